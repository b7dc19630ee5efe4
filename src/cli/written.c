/* written: the summary of a file that convert or synth has just made. */
#include "cli/written.h"

typedef struct tally {
    uint64_t n_params;
    json_t *types;
} tally;

/* Tensors of each type, in order of first appearance. */
static tally count(const hone_file *f)
{
    tally t = { 0, json_object() };
    for (uint64_t i = 0; i < hone_file_n_tensors(f); i++) {
        hone_tensor_info ti;
        hone_file_tensor(f, i, &ti);
        t.n_params += ti.ne[0] * ti.ne[1] * ti.ne[2] * ti.ne[3];
        json_int_t n = json_integer_value(json_object_get(t.types, ti.type_name));
        json_object_set_new(t.types, ti.type_name, json_integer(n + 1));
    }
    return t;
}

int hn_cli_written(const hn_cli *cli, const char *schema, const char *path, double seconds, json_t *extra)
{
    hone_file *f;
    hone_error err;
    if (hone_file_open(&f, path, &err) != HONE_OK) {
        json_decref(extra);
        return hn_cli_fail_model(&err);
    }
    uint64_t bytes = hone_file_size(f);
    tally t = count(f);
    hone_file_close(f);
    if (cli->json) {
        json_t *o = hn_json_new(schema);
        json_object_set_new(o, "file", hn_json_str(path, strlen(path)));
        json_object_set_new(o, "bytes", json_integer((json_int_t)bytes));
        json_object_set_new(o, "parameters", json_integer((json_int_t)t.n_params));
        json_object_set(o, "types", t.types);
        json_object_set_new(o, "seconds", hn_json_num(seconds));
        if (extra) json_object_update(o, extra);
        json_decref(extra);
        json_decref(t.types);
        return hn_json_print(o);
    }
    hn_out_printf("%s: %.1f MB, %.1f M parameters,", path, (double)bytes / 1e6, (double)t.n_params / 1e6);
    const char *name;
    json_t *n;
    json_object_foreach(t.types, name, n) hn_out_printf(" %s %lld", name, (long long)json_integer_value(n));
    hn_out_printf("; %.1f s, %.0f MB/s\n", seconds, seconds > 0 ? (double)bytes / 1e6 / seconds : 0);
    json_decref(extra);
    json_decref(t.types);
    return HN_EXIT_OK;
}

/* What cannot be written is named first in the message, or what stands in the folder of that name. */
static bool is_of(const char *message, const char *path)
{
    char label[512]; /* as files name themselves (base/file.c) */
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    hn_escape(label, sizeof label, path, n);
    n = strlen(label);
    return strncmp(message, label, n) == 0 && (message[n] == ':' || message[n] == '/');
}

int hn_cli_fail_made(const hone_error *err, const char *dst)
{
    return is_of(err->message, dst) ? hn_cli_fail(err) : hn_cli_fail_model(err);
}
