/* The machine a number comes from. Owns reading it and the hash that says whether two
 * numbers may be compared; refuses to judge. */
#define _GNU_SOURCE
#include "lab/machine/environ.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"
#include "base/lines.h"
#include "base/os.h"

#include <math.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

/* "key : value" of /proc/cpuinfo. */
static bool cpuinfo_value(char *dst, size_t cap, const char *line, const char *key)
{
    size_t n = strlen(key);
    if (dst[0] || strncmp(line, key, n) != 0 || !strchr(" \t:", line[n])) return false;
    const char *v = strchr(line, ':');
    if (!v) return false;
    v += 1 + strspn(v + 1, " \t");
    snprintf(dst, cap, "%.*s", (int)strcspn(v, "\n"), v);
    return true;
}

static void read_cpuinfo(hn_environ *e)
{
    hn_lines r;
    char line[512], implementer[16] = "", part[16] = "";
    hn_lines_open(&r, "/proc/cpuinfo");
    while (hn_lines_next(&r, line, sizeof line)) {
        cpuinfo_value(e->cpu_model, sizeof e->cpu_model, line, "model name");
        cpuinfo_value(e->microcode, sizeof e->microcode, line, "microcode");
        cpuinfo_value(implementer, sizeof implementer, line, "CPU implementer");
        cpuinfo_value(part, sizeof part, line, "CPU part");
    }
    hn_lines_close(&r);
    if (!e->cpu_model[0] && part[0]) /* ARM names no model */
        snprintf(e->cpu_model, sizeof e->cpu_model, "ARM implementer %s part %s", implementer, part);
}

static void read_load(hn_environ *e)
{
    char line[128];
    e->runnable = -1;
    if (!hn_lines_first(line, sizeof line, "/proc/loadavg")) return;
    if (sscanf(line, "%lf %lf %lf %d/", &e->load[0], &e->load[1], &e->load[2], &e->runnable) < 3) e->load[0] = NAN;
}

static uint64_t memory_total(void)
{
    unsigned long long kib = 0;
    char line[128];
    hn_lines r;
    hn_lines_open(&r, "/proc/meminfo");
    while (hn_lines_next(&r, line, sizeof line))
        if (sscanf(line, "MemTotal: %llu kB", &kib) == 1) break;
    hn_lines_close(&r);
    return (uint64_t)kib * 1024;
}

/* hone_build_info(): "compiler; flags; commit X". */
static void read_build(hn_environ *e)
{
    const char *s = hone_build_info(), *a = strstr(s, "; "), *b = NULL;
    for (const char *p = strstr(s, "; commit "); p; p = strstr(p + 1, "; commit ")) b = p;
    snprintf(e->compiler, sizeof e->compiler, "%.*s", a ? (int)(a - s) : (int)strlen(s), s);
    if (a && b && b > a) snprintf(e->flags, sizeof e->flags, "%.*s", (int)(b - a - 2), a + 2);
    if (b) snprintf(e->commit, sizeof e->commit, "%s", b + 9);
}

static void hash_environ(hn_environ *e)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "%s|%s|%s|%s|%d|%d|%llu|%s|%s|%s|%s", e->machine, e->cpu_model, e->microcode,
                     e->kernel, e->cores, e->cores_online, (unsigned long long)((e->mem_total + (1u << 29)) >> 30),
                     e->governor, e->boost, e->thp, e->cgroup_cpu);
    /* Only what is there: the hash of a machine with nothing around the process stays as it was. Foreign code is not in
     * it: whether a library was preloaded for one run does not make another machine. */
    size_t len = n > 0 && (size_t)n < sizeof text ? (size_t)n : strlen(text);
    if (e->around.nice) len += (size_t)snprintf(text + len, sizeof text - len, "|nice %d", e->around.nice);
    if (e->around.quota < e->cores && strcmp(e->around.quota_at, "/") != 0 && len < sizeof text)
        snprintf(text + len, sizeof text - len, "|quota %.3f", e->around.quota);
    n = (int)strlen(text);
    hn_sha256 s;
    unsigned char d[32];
    hn_sha256_init(&s);
    hn_sha256_add(&s, text, n > 0 && (size_t)n < sizeof text ? (size_t)n : strlen(text));
    hn_sha256_end(&s, d);
    hn_hex(e->hash, d, 4);
}

void hn_environ_read(hn_environ *e)
{
    *e = (hn_environ){ 0 };
    struct utsname u;
    if (uname(&u) == 0) {
        snprintf(e->kernel, sizeof e->kernel, "%.60s %.60s", u.sysname, u.release);
        snprintf(e->machine, sizeof e->machine, "%.30s", u.machine);
    }
    read_cpuinfo(e);
    read_load(e);
    read_build(e);
    hn_lines_first(e->governor, sizeof e->governor, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    hn_lines_first(e->boost, sizeof e->boost, "/sys/devices/system/cpu/cpufreq/boost");
    hn_lines_first(e->thp, sizeof e->thp, "/sys/kernel/mm/transparent_hugepage/enabled");
    hn_lines_first(e->hypervisor, sizeof e->hypervisor, "/sys/hypervisor/type");
    if (!e->hypervisor[0]) hn_lines_first(e->hypervisor, sizeof e->hypervisor, "/sys/class/dmi/id/sys_vendor");
    hn_lines_first(e->cgroup_cpu, sizeof e->cgroup_cpu, "/sys/fs/cgroup/cpu.max");
    hn_around_read(&e->around, "");
    e->cores = hn_os_cpu_count();
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    e->cores_online = online > 0 ? (int32_t)online : 0;
    e->mem_total = memory_total();
    e->mem_available = hn_memory_available();
    hash_environ(e);
}

json_t *hn_environ_json(const hn_environ *e)
{
    json_t *o = json_object(), *load = json_array();
    for (int i = 0; i < 3; i++) json_array_append_new(load, hn_lab_num(e->load[i]));
    json_object_set_new(o, "hash", json_string(e->hash));
    json_object_set_new(o, "machine", hn_lab_text(e->machine));
    json_object_set_new(o, "cpu_model", hn_lab_text(e->cpu_model));
    json_object_set_new(o, "microcode", hn_lab_text(e->microcode));
    json_object_set_new(o, "cores", json_integer(e->cores));
    json_object_set_new(o, "cores_online", json_integer(e->cores_online));
    json_object_set_new(o, "governor", hn_lab_text(e->governor));
    json_object_set_new(o, "boost", hn_lab_text(e->boost));
    json_object_set_new(o, "thp", hn_lab_text(e->thp));
    json_object_set_new(o, "vendor", hn_lab_text(e->hypervisor));
    json_object_set_new(o, "cgroup_cpu_max", hn_lab_text(e->cgroup_cpu));
    json_object_set_new(o, "cgroup_cpus", hn_lab_num(e->around.quota));
    json_object_set_new(o, "nice", json_integer(e->around.nice));
    json_object_set_new(o, "preload", hn_lab_text(e->around.preload));
    json_object_set_new(o, "kernel", hn_lab_text(e->kernel));
    json_object_set_new(o, "mem_total_mb", hn_lab_num((double)e->mem_total / 1e6));
    json_object_set_new(o, "mem_available_mb", hn_lab_num((double)e->mem_available / 1e6));
    json_object_set_new(o, "load", load);
    json_object_set_new(o, "runnable", e->runnable >= 0 ? json_integer(e->runnable) : json_null());
    return o;
}

bool hn_cpu_ticks_read(hn_cpu_ticks *out)
{
    *out = (hn_cpu_ticks){ 0 };
    char line[256];
    unsigned long long t[8] = { 0 }; /* user nice system idle iowait irq softirq steal */
    if (!hn_lines_first(line, sizeof line, "/proc/stat")) return false;
    int n =
        sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", t, t + 1, t + 2, t + 3, t + 4, t + 5, t + 6, t + 7);
    if (n != 8) return false;
    for (int i = 0; i < 8; i++) out->total += t[i];
    out->steal = t[7];
    return true;
}
