/* hone env: the switches of the environment and what hone sees of this machine. */
#include "cli/cli.h"

#include <stdlib.h>

/* The value of a switch, or what stands for one that nobody may read over a shoulder; NULL: it is not set. */
static const char *value_of(const hn_env_switch *e)
{
    const char *v = getenv(e->name);
    return v && *v && e->secret ? "(set)" : v;
}

static int env_json(void)
{
    json_t *o = hn_json_new("hone.env/1"), *switches = json_object(), *levels = json_array();
    for (const hn_env_switch *e = hn_env_switches; e->name; e++) {
        const char *v = value_of(e);
        json_object_set_new(switches, e->name, v ? hn_json_str(v, strlen(v)) : json_null());
    }
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) json_array_append_new(levels, json_string(hn_cpu_level_name((hn_cpu_level)l)));
    hn_cpu_level chosen;
    hone_error err;
    bool ok = hn_cpu_choose(&chosen, NULL, &err) == HONE_OK;
    json_object_set_new(o, "switches", switches);
    json_object_set_new(o, "cpu_levels", levels);
    json_object_set_new(o, "cpu", ok ? json_string(hn_cpu_level_name(chosen)) : json_null());
    json_object_set_new(o, "cpu_error", ok ? json_null() : hn_json_str(err.message, strlen(err.message)));
    json_object_set_new(o, "cores", json_integer(hn_cpu_count()));
    json_object_set_new(o, "memory_available_bytes", json_integer((json_int_t)hn_memory_available()));
    json_object_set_new(o, "version", json_string(hone_version()));
    json_object_set_new(o, "build", json_string(hone_build_info()));
    return hn_json_print(o);
}

static int run(const hn_cli *cli)
{
    if (cli->json) return env_json();
    for (const hn_env_switch *e = hn_env_switches; e->name; e++) {
        const char *v = value_of(e);
        hn_out_printf("%-17s %-12s %s\n", e->name, v ? HN_ESC(v, strlen(v)) : "-", e->help);
    }
    hn_out_printf("%-17s", "cpu levels");
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!hn_cpu_built((hn_cpu_level)l)) continue;
        hn_out_printf(" %s%s", hn_cpu_level_name((hn_cpu_level)l), hn_cpu_has((hn_cpu_level)l) ? "" : " (not here)");
    }
    hn_cpu_level chosen;
    hone_error err;
    bool ok = hn_cpu_choose(&chosen, NULL, &err) == HONE_OK;
    hn_out_printf("\n%-17s %s\n", "cpu", ok ? hn_cpu_level_name(chosen) : err.message);
    hn_out_printf("%-17s %d\n", "cores", hn_cpu_count());
    hn_out_printf("%-17s %.1f GiB available\n", "memory", (double)hn_memory_available() / 0x1p30);
    hn_out_printf("%-17s %s, %s\n", "build", hone_version(), hone_build_info());
    return HN_EXIT_OK;
}

const hn_command hn_command_env = {
    .name = "env", .summary = "Show the switches of the environment and what hone sees of this machine", .run = run
};
