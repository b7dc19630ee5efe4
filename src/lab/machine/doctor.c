/* The doctor: reads what Linux says about the machine, watches it for a moment, and
 * judges. Owns the list of what disturbs a measurement; refuses to change anything and
 * to guess what it cannot read. */
#define _GNU_SOURCE
#include "base/file.h"
#include "lab/machine/around.h"
#include "lab/machine/doctor.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdarg.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HOT_C = 85, MAX_CPUS = 4096 };
#define CPU "/sys/devices/system/cpu"

typedef struct doctor {
    const hn_doctor_params *p;
    const hn_environ *e;
    hn_around around;
    json_t *record, *warnings;
} doctor;

/* ---- reading ----------------------------------------------------------------------------------- */

static bool text_of(const doctor *d, char *dst, size_t cap, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* First line of a file below the root; false and "" if it cannot be read or is empty. */
static bool text_of(const doctor *d, char *dst, size_t cap, const char *fmt, ...)
{
    char path[4200];
    size_t n = (size_t)snprintf(path, 2000, "%.1900s", d->p->root);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path + n, sizeof path - n, fmt, ap);
    va_end(ap);
    dst[0] = 0;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    if (!fgets(dst, (int)cap, f)) dst[0] = 0;
    fclose(f);
    dst[strcspn(dst, "\n")] = 0;
    return dst[0] != 0;
}

static double number_of(const doctor *d, const char *path)
{
    char text[64], *end;
    if (!text_of(d, text, sizeof text, "%s", path)) return NAN;
    double x = strtod(text, &end);
    return end == text ? NAN : x;
}

static json_t *file_json(const doctor *d, const char *path)
{
    char text[512];
    text_of(d, text, sizeof text, "%s", path);
    return hn_lab_text(text);
}
static json_t *int_json(double x) { return isfinite(x) ? json_integer((json_int_t)x) : json_null(); }

/* Calls fn for each entry of a folder whose name begins so; their number, -1 without the folder. */
typedef void entry_fn(doctor *d, const char *name, void *arg);
static int each(doctor *d, const char *folder, const char *prefix, bool digit_next, entry_fn *fn, void *arg)
{
    char path[4200];
    struct dirent **list;
    snprintf(path, sizeof path, "%.1900s%s", d->p->root, folder);
    int n = scandir(path, &list, NULL, alphasort), hits = 0;
    if (n < 0) return -1;
    for (int i = 0; i < n; i++) {
        const char *s = list[i]->d_name;
        size_t k = strlen(prefix);
        if (s[0] != '.' && strncmp(s, prefix, k) == 0 && (!digit_next || (s[k] >= '0' && s[k] <= '9'))) {
            hits++;
            if (fn) fn(d, s, arg);
        }
        free(list[i]);
    }
    free(list);
    return hits;
}

/* ---- warnings ------------------------------------------------------------------------------------ */

static void warn(doctor *d, const char *id, const char *what_to_do, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void warn(doctor *d, const char *id, const char *what_to_do, const char *fmt, ...)
{
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_array_append_new(d->warnings,
                          json_pack("{s:s, s:o, s:s}", "id", id, "text", hn_lab_str(text), "do", what_to_do));
}

/* ---- CPU -------------------------------------------------------------------------------------------- */

static void cache_of(doctor *d, const char *name, void *arg)
{
    char level[16], type[32], size[32], shared[64];
    const char *at = CPU "/cpu0/cache";
    text_of(d, level, sizeof level, "%s/%s/level", at, name);
    text_of(d, type, sizeof type, "%s/%s/type", at, name);
    text_of(d, size, sizeof size, "%s/%s/size", at, name);
    text_of(d, shared, sizeof shared, "%s/%s/shared_cpu_list", at, name);
    json_array_append_new(arg, json_pack("{s:o, s:o, s:o, s:o}", "level", hn_lab_text(level), "type", hn_lab_text(type),
                                         "size", hn_lab_text(size), "cpus", hn_lab_text(shared)));
}

typedef struct topology {
    int32_t n, core[MAX_CPUS], package[MAX_CPUS];
    bool known;
} topology;
static void topology_of(doctor *d, const char *name, void *arg)
{
    topology *t = arg;
    char path[256];
    snprintf(path, sizeof path, CPU "/%.60s/topology/core_id", name);
    double core = number_of(d, path);
    snprintf(path, sizeof path, CPU "/%.60s/topology/physical_package_id", name);
    double package = number_of(d, path);
    if (!isfinite(core) || t->n == MAX_CPUS) return; /* offline ones have none */
    t->core[t->n] = (int32_t)core;
    t->package[t->n++] = isfinite(package) ? (int32_t)package : 0;
    t->known = true;
}

/* Cores, and packages, that differ. */
static void count_topology(const topology *t, int *cores, int *packages)
{
    *cores = *packages = 0;
    for (int32_t i = 0; i < t->n; i++) {
        bool new_core = true, new_package = true;
        for (int32_t k = 0; k < i; k++) {
            if (t->package[k] != t->package[i]) continue;
            new_package = false;
            if (t->core[k] == t->core[i]) new_core = false;
        }
        *cores += new_core;
        *packages += new_package;
    }
}

static json_t *isa_flags(doctor *d)
{
    static const char *const known[] = { "sse4_2",      "avx",         "f16c",        "fma",      "avx2",
                                         "avx_vnni",    "avx512f",     "avx512bw",    "avx512vl", "avx512dq",
                                         "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8",
                                         "amx_bf16",    "asimd",       "asimdhp",     "asimddp",  "i8mm",
                                         "bf16",        "sve",         "sve2",        NULL };
    char path[2100], *line = NULL;
    size_t cap = 0;
    json_t *list = json_null();
    snprintf(path, sizeof path, "%.1900s/proc/cpuinfo", d->p->root);
    FILE *f = fopen(path, "re");
    while (f && getline(&line, &cap, f) > 0) {
        if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0) continue;
        list = json_array();
        if (line[0] == 'f')
            json_object_set_new(d->record, "virtual", json_false()); /* x86 says so when it is; ARM does not */
        for (char *save, *w = strtok_r(line, " \t:\n", &save); w; w = strtok_r(NULL, " \t:\n", &save)) {
            for (const char *const *k = known; *k; k++)
                if (strcmp(w, *k) == 0) json_array_append_new(list, json_string(w));
            if (strcmp(w, "hypervisor") == 0) json_object_set_new(d->record, "virtual", json_true());
        }
        break;
    }
    free(line);
    if (f) fclose(f);
    return list;
}

static void look_at_cpu(doctor *d)
{
    static topology t;
    t.n = 0;
    t.known = false;
    json_t *o = json_object(), *caches = json_array(), *levels = json_array();
    char smt[32];
    int cores, packages, nodes = each(d, "/sys/devices/system/node", "node", true, NULL, NULL);
    each(d, CPU, "cpu", true, topology_of, &t);
    count_topology(&t, &cores, &packages);
    int n_cache = each(d, CPU "/cpu0/cache", "index", true, cache_of, caches);
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) json_array_append_new(levels, json_string(hn_cpu_level_name((hn_cpu_level)l)));
    text_of(d, smt, sizeof smt, CPU "/smt/control");
    bool shared = t.known && t.n > cores;
    json_object_set_new(o, "model", hn_lab_text(d->e->cpu_model));
    json_object_set_new(o, "microcode", hn_lab_text(d->e->microcode));
    json_object_set_new(o, "isa", isa_flags(d));
    json_object_set_new(o, "levels", levels);
    json_object_set_new(o, "level", d->p->level ? json_string(d->p->level) : json_null());
    json_object_set_new(o, "packages", t.known ? json_integer(packages) : json_null());
    json_object_set_new(o, "cores", t.known ? json_integer(cores) : json_null());
    json_object_set_new(o, "cpus", t.known ? json_integer(t.n) : json_null());
    json_object_set_new(o, "usable", json_integer(d->e->cores));
    json_object_set_new(o, "smt", hn_lab_text(smt));
    json_object_set_new(o, "numa_nodes", nodes > 0 ? json_integer(nodes) : json_null());
    json_object_set_new(o, "caches", n_cache > 0 ? json_incref(caches) : json_null());
    json_decref(caches);
    json_object_set_new(d->record, "cpu", o);
    if (shared)
        warn(d, "smt",
             "measure with as many threads as there are cores: -t N; or switch SMT off: echo off > " CPU "/smt/control",
             "%d CPUs are %d cores: two threads may share one", (int)t.n, cores);
    if (nodes > 1)
        warn(d, "numa", "keep to one node: numactl --cpunodebind=0 --membind=0 hone …",
             "%d memory nodes: memory of another one is slower", nodes);
}

/* ---- clock -------------------------------------------------------------------------------------------- */

typedef struct governors {
    char text[128];
    bool slow;
} governors;
static void governor_of(doctor *d, const char *name, void *arg)
{
    governors *g = arg;
    char one[32];
    if (!text_of(d, one, sizeof one, CPU "/%s/cpufreq/scaling_governor", name)) return;
    if (strcmp(one, "performance") != 0) g->slow = true;
    if (strstr(g->text, one)) return;
    size_t n = strlen(g->text);
    snprintf(g->text + n, sizeof g->text - n, "%s%s", n ? ", " : "", one);
}

static void look_at_clock(doctor *d)
{
    json_t *o = json_object();
    governors g = { "", false };
    char source[32];
    each(d, CPU, "cpu", true, governor_of, &g);
    double boost = number_of(d, CPU "/cpufreq/boost"), no_turbo = number_of(d, CPU "/intel_pstate/no_turbo");
    if (!isfinite(boost) && isfinite(no_turbo)) boost = no_turbo == 0;
    double least = number_of(d, CPU "/cpu0/cpufreq/scaling_min_freq"),
           now = number_of(d, CPU "/cpu0/cpufreq/scaling_cur_freq");
    double most = number_of(d, CPU "/cpu0/cpufreq/scaling_max_freq"),
           hardware = number_of(d, CPU "/cpu0/cpufreq/cpuinfo_max_freq");
    text_of(d, source, sizeof source, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    json_object_set_new(o, "governor", hn_lab_text(g.text));
    json_object_set_new(o, "boost", isfinite(boost) ? json_boolean(boost != 0) : json_null());
    json_object_set_new(o, "min_mhz", hn_lab_num(least / 1e3));
    json_object_set_new(o, "cur_mhz", hn_lab_num(now / 1e3));
    json_object_set_new(o, "max_mhz", hn_lab_num(most / 1e3));
    json_object_set_new(o, "hardware_max_mhz", hn_lab_num(hardware / 1e3));
    json_object_set_new(o, "energy_preference", file_json(d, CPU "/cpu0/cpufreq/energy_performance_preference"));
    json_object_set_new(o, "clocksource", hn_lab_text(source));
    json_object_set_new(d->record, "clock", o);
    if (g.slow)
        warn(d, "governor", "cpupower frequency-set -g performance",
             "the frequency governor is %s: the clock follows the load", g.text);
    if (boost == 1)
        warn(d, "boost",
             isfinite(no_turbo) ? "echo 1 > " CPU "/intel_pstate/no_turbo" : "echo 0 > " CPU "/cpufreq/boost",
             "boost is on: the clock depends on temperature and on what else runs");
    if (most < hardware)
        warn(d, "clock_limit", "cpupower frequency-set -u MAX, or look for a power profile that limits it",
             "the clock is limited to %.0f MHz of %.0f", most / 1e3, hardware / 1e3);
    if (source[0] && (strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 || strcmp(source, "jiffies") == 0))
        warn(d, "clocksource", "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
             "the clock is read from %s, which is slow", source);
}

/* ---- power, heat ------------------------------------------------------------------------------------------ */

typedef struct supplies {
    int mains, mains_online, batteries, discharging;
} supplies;
static void supply_of(doctor *d, const char *name, void *arg)
{
    supplies *s = arg;
    char type[32], state[32];
    text_of(d, type, sizeof type, "/sys/class/power_supply/%s/type", name);
    if (strcmp(type, "Mains") == 0) {
        s->mains++;
        s->mains_online +=
            text_of(d, state, sizeof state, "/sys/class/power_supply/%s/online", name) && strcmp(state, "1") == 0;
    } else if (strcmp(type, "Battery") == 0) {
        s->batteries++;
        s->discharging += text_of(d, state, sizeof state, "/sys/class/power_supply/%s/status", name) &&
                          strcmp(state, "Discharging") == 0;
    }
}

static void heat_of(doctor *d, const char *name, void *arg)
{
    double *most = arg;
    char path[256];
    snprintf(path, sizeof path, "/sys/class/thermal/%.100s/temp", name);
    *most = fmax(*most, number_of(d, path) / 1e3); /* fmax ignores a NaN */
}

static void throttle_of(doctor *d, const char *name, void *arg)
{
    double *sum = arg;
    char path[256];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, CPU "/%.60s/thermal_throttle/%s_throttle_count", name, i ? "package" : "core");
        double x = number_of(d, path);
        if (isfinite(x)) *sum = (isfinite(*sum) ? *sum : 0) + x;
    }
}
static double throttles(doctor *d)
{
    double sum = NAN;
    each(d, CPU, "cpu", true, throttle_of, &sum);
    return sum;
}

static void look_at_power(doctor *d, double throttle_before, double throttle_after)
{
    json_t *o = json_object();
    supplies s = { 0 };
    double heat = NAN;
    bool known = each(d, "/sys/class/power_supply", "", false, supply_of, &s) > 0,
         battery = s.discharging || (s.batteries && s.mains && !s.mains_online);
    each(d, "/sys/class/thermal", "thermal_zone", true, heat_of, &heat);
    json_object_set_new(o, "on_battery", known ? json_boolean(battery) : json_null());
    json_object_set_new(o, "temperature_c", hn_lab_num(heat));
    json_object_set_new(o, "throttle_count", int_json(throttle_after));
    json_object_set_new(d->record, "power", o);
    if (battery) warn(d, "battery", "plug it in", "the machine runs on its battery");
    if (heat >= HOT_C)
        warn(d, "temperature", "let it cool, clean the fan", "%.0f °C: the CPU slows down near its limit", heat);
    if (throttle_after > throttle_before)
        warn(d, "throttled", "let it cool, clean the fan", "the CPU was slowed down because of heat just now");
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

static double meminfo(doctor *d, const char *key)
{
    char path[2100], line[128];
    size_t n = strlen(key);
    double kib = NAN;
    snprintf(path, sizeof path, "%.1900s/proc/meminfo", d->p->root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, n) == 0 && line[n] == ':') kib = strtod(line + n + 1, NULL);
    if (f) fclose(f);
    return kib * 1024;
}

/* "always [madvise] never": the word in brackets. */
static void chosen(char *s)
{
    char *a = strchr(s, '['), *b = a ? strchr(a, ']') : NULL;
    if (!b) return;
    memmove(s, a + 1, (size_t)(b - a - 1));
    s[b - a - 1] = 0;
}

static void look_at_memory(doctor *d)
{
    json_t *o = json_object();
    char thp[128], defrag[128];
    double total = meminfo(d, "MemTotal"), available = meminfo(d, "MemAvailable"), swap = meminfo(d, "SwapTotal"),
           swap_free = meminfo(d, "SwapFree");
    text_of(d, thp, sizeof thp, "/sys/kernel/mm/transparent_hugepage/enabled");
    text_of(d, defrag, sizeof defrag, "/sys/kernel/mm/transparent_hugepage/defrag");
    chosen(thp);
    chosen(defrag);
    json_object_set_new(o, "total_mb", hn_lab_num(total / 1e6));
    json_object_set_new(o, "available_mb", hn_lab_num(available / 1e6));
    json_object_set_new(o, "swap_mb", hn_lab_num(swap / 1e6));
    json_object_set_new(o, "swap_used_mb", hn_lab_num((swap - swap_free) / 1e6));
    json_object_set_new(o, "thp", hn_lab_text(thp));
    json_object_set_new(o, "thp_defrag", hn_lab_text(defrag));
    json_object_set_new(d->record, "memory", o);
    if (strcmp(thp, "never") == 0)
        warn(d, "thp", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
             "huge pages are off: the KV cache is read more slowly");
    if (available < 0.1 * total)
        warn(d, "memory", "end what holds the memory", "only %.0f of %.0f MB of memory are available", available / 1e6,
             total / 1e6);
}

/* ---- load ----------------------------------------------------------------------------------------------------- */

typedef struct ticks {
    double total, steal;
} ticks;
static ticks ticks_of(doctor *d)
{
    char line[256];
    double v[8] = { 0 };
    if (!text_of(d, line, sizeof line, "/proc/stat") ||
        sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7) != 8)
        return (ticks){ NAN, NAN };
    return (ticks){ v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7], v[7] };
}

static void look_at_load(doctor *d, ticks a, ticks b)
{
    json_t *o = json_object(), *load = json_array();
    char text[128];
    double l[3] = { NAN, NAN, NAN };
    int runnable = -1;
    if (text_of(d, text, sizeof text, "/proc/loadavg") &&
        sscanf(text, "%lf %lf %lf %d/", l, l + 1, l + 2, &runnable) < 4)
        runnable = -1;
    for (int i = 0; i < 3; i++) json_array_append_new(load, hn_lab_num(l[i]));
    double steal = b.total > a.total ? 100 * (b.steal - a.steal) / (b.total - a.total) : NAN;
    json_object_set_new(o, "average", load);
    json_object_set_new(o, "runnable", runnable >= 0 ? json_integer(runnable) : json_null());
    json_object_set_new(o, "steal_pct", hn_lab_num(steal));
    json_object_set_new(o, "steal_since_boot_pct", hn_lab_num(100 * b.steal / b.total));
    json_object_set_new(d->record, "load", o);
    if (l[0] > 0.5 * d->e->cores)
        warn(d, "load", "end what else runs, or wait a minute",
             "load average %.1f on %d cores: other programs take part of the machine", l[0], d->e->cores);
    if (runnable > d->e->cores)
        warn(d, "runnable", "end what else runs", "%d threads want %d cores at this moment", runnable, d->e->cores);
    if (steal > 1)
        warn(d, "steal",
             "measure at another time or on a machine of your own; compare only interleaved runs (hone lab ab)",
             "the hypervisor gave %.1f %% of the time to others", steal);
}

/* ---- container ----------------------------------------------------------------------------------------------------
 */

/* The limit of the outermost control group, of version 2 or 1, as it is written. */
static void cpu_max(doctor *d, char *text, size_t cap)
{
    if (text_of(d, text, cap, "/sys/fs/cgroup/cpu.max")) return;
    double quota = number_of(d, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
           period = number_of(d, "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (quota > 0) snprintf(text, cap, "%.0f %.0f", quota, period);
    else if (isfinite(quota)) snprintf(text, cap, "max");
}

/* Library of others, priority, limits, and whether a limit bit while the doctor watched. */
static void look_around(doctor *d, const hn_around *before)
{
    const hn_around *a = &d->around;
    json_object_set_new(d->record, "process",
                        json_pack("{s:o, s:i, s:o, s:o, s:o}", "preload",
                                  a->preload[0] ? hn_lab_str(a->preload) : json_string("none"), "nice", a->nice,
                                  "cpus_allowed", hn_lab_num(isfinite(a->quota) ? a->quota : d->e->cores), "limited_by",
                                  a->quota_at[0] ? hn_lab_str(a->quota_at) : json_string("none"), "quota_stops",
                                  a->stopped >= 0 ? json_integer(a->stopped) : json_null()));
    if (a->preload[0])
        warn(d, "preload", "unset LD_PRELOAD LD_AUDIT, and empty /etc/ld.so.preload",
             "code of others runs in every process: %.300s", a->preload);
    if (a->nice)
        warn(d, "nice", "start it from a shell of the usual priority",
             "niceness %d: this process gets %s of a busy CPU than others", a->nice, a->nice > 0 ? "less" : "more");
    if (a->quota < d->e->cores)
        warn(d, "cpu_quota", "lift the limit of the control group (cpu.max)",
             "the control group %s may use %.2f of %d cores", a->quota_at, a->quota, d->e->cores);
    if (a->stopped > before->stopped && before->stopped >= 0)
        warn(d, "cpu_stopped", "lift the limit of the control group (cpu.max), or end what else runs in it",
             "its limit stopped the control group %lld times just now", (long long)(a->stopped - before->stopped));
}

static void look_at_container(doctor *d)
{
    json_t *o = json_object();
    char cpu[64], memory[64], cpus[256], path[2100];
    cpu[0] = 0;
    cpu_max(d, cpu, sizeof cpu);
    if (!text_of(d, memory, sizeof memory, "/sys/fs/cgroup/memory.max"))
        text_of(d, memory, sizeof memory, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
    if (strtod(memory, NULL) > 0x1p60)
        snprintf(memory, sizeof memory, "max"); /* how cgroup v1 says that there is none */
    if (!text_of(d, cpus, sizeof cpus, "/sys/fs/cgroup/cpuset.cpus.effective"))
        text_of(d, cpus, sizeof cpus, "/sys/fs/cgroup/cpuset/cpuset.effective_cpus");
    bool docker = (snprintf(path, sizeof path, "%.1900s/.dockerenv", d->p->root), access(path, F_OK) == 0);
    bool podman = (snprintf(path, sizeof path, "%.1900s/run/.containerenv", d->p->root), access(path, F_OK) == 0);
    json_object_set_new(o, "kind",
                        docker   ? json_string("docker")
                        : podman ? json_string("podman")
                                 : json_string("none seen"));
    json_object_set_new(o, "cpu_max", hn_lab_text(cpu));
    json_object_set_new(o, "memory_max", hn_lab_text(memory));
    json_object_set_new(o, "cpus", hn_lab_text(cpus));
    json_object_set_new(d->record, "container", o);
    if (d->e->cores_online > d->e->cores)
        warn(d, "affinity", "measure with all of them, or compare only with the same ones",
             "this process may use %d of %d CPUs", d->e->cores, d->e->cores_online);
}

/* ---- kernel, build
 * ---------------------------------------------------------------------------------------------------- */

static void vulnerability_of(doctor *d, const char *name, void *arg)
{
    char text[512];
    text_of(d, text, sizeof text, CPU "/vulnerabilities/%s", name);
    json_object_set_new(arg, name, hn_lab_text(text));
}

static void look_at_kernel(doctor *d)
{
    json_t *o = json_object(), *v = json_object();
    int n = each(d, CPU "/vulnerabilities", "", false, vulnerability_of, v);
    double aslr = number_of(d, "/proc/sys/kernel/randomize_va_space");
    json_object_set_new(o, "release", hn_lab_text(d->e->kernel));
    json_object_set_new(o, "machine", hn_lab_text(d->e->machine));
    json_object_set_new(o, "vendor", hn_lab_text(d->e->hypervisor));
    json_object_set_new(o, "aslr", int_json(aslr));
    json_object_set_new(o, "perf_event_paranoid", int_json(number_of(d, "/proc/sys/kernel/perf_event_paranoid")));
    json_object_set_new(o, "mitigations", n > 0 ? json_incref(v) : json_null());
    json_decref(v);
    json_object_set_new(d->record, "kernel", o);
}

static void look_at_build(doctor *d)
{
    const hn_environ *e = d->e;
    bool known = e->commit[0] && strcmp(e->commit, "unknown") != 0, dirty = strstr(e->commit, "+dirty") != NULL;
    json_object_set_new(d->record, "build",
                        json_pack("{s:s, s:o, s:o, s:o, s:o}", "version", hone_version(), "cc",
                                  hn_lab_text(e->compiler), "flags", hn_lab_text(e->flags), "commit",
                                  known ? hn_lab_str(e->commit) : json_null(), "dirty",
                                  known ? json_boolean(dirty) : json_null()));
    if (dirty)
        warn(d, "dirty", "commit, then build again",
             "built from a working tree with changes that no commit has: the result cannot be repeated");
    if (!known)
        warn(d, "commit", "build in a git checkout, or from an archive made by make dist",
             "nobody can say which sources this program was built from");
    if (strstr(e->flags, "-fsanitize") || !(strstr(e->flags, "-O2") || strstr(e->flags, "-O3")))
        warn(d, "flags", "make, without FLAVOUR", "this program was not built for speed (%.200s)", e->flags);
}

/* ---- model, peaks
 * ------------------------------------------------------------------------------------------------------- */

static hone_status look_at_model(doctor *d, hone_error *err)
{
    char hex[65];
    struct stat sb;
    const char *path = d->p->model, *slash = path ? strrchr(path, '/') : NULL;
    if (!path) {
        json_object_set_new(d->record, "model", json_null());
        return HONE_OK;
    }
    hone_status st = hn_file_sha256(hex, path, err);
    if (st != HONE_OK) return st;
    double size = stat(path, &sb) == 0 ? (double)sb.st_size : NAN, available = meminfo(d, "MemAvailable");
    json_object_set_new(d->record, "model",
                        json_pack("{s:o, s:s, s:o}", "path_name", hn_lab_str(slash ? slash + 1 : path), "sha256", hex,
                                  "mb", hn_lab_num(size / 1e6)));
    const char *fs = hn_file_system(path);
    json_object_set_new(json_object_get(d->record, "model"), "file_system", hn_lab_text(fs));
    if (hn_file_system_is_memory(fs))
        warn(d, "model_fs", "put the model on a disk, as its users do",
             "the model is on %s, which is memory: loading it says nothing of a disk, and it cannot be dropped", fs);
    if (size > available)
        warn(d, "model_memory", "end what holds memory, or take a smaller model",
             "the model has %.0f MB, but %.0f MB of memory are available", size / 1e6, available / 1e6);
    return HONE_OK;
}

static void look_at_peaks(doctor *d)
{
    const hn_peaks *k = d->p->peaks;
    if (!k) {
        json_object_set_new(d->record, "peaks", json_null());
        warn(d, "peaks", "hone lab peaks", "the roof is not known: %s",
             d->p->no_peaks ? d->p->no_peaks : "not measured");
        return;
    }
    json_object_set_new(d->record, "peaks",
                        json_pack("{s:o, s:o, s:s, s:o, s:s, s:s, s:b, s:s}", "read_gb_s",
                                  hn_lab_num(hn_peaks_at(k, HN_PEAK_READ_BW, k->cores)), "int8_gops",
                                  hn_lab_num(hn_peaks_at(k, HN_PEAK_INT8, k->cores)), "int8_how", k->how[HN_PEAK_INT8],
                                  "f32_gflops", hn_lab_num(hn_peaks_at(k, HN_PEAK_F32, k->cores)), "level", k->level,
                                  "ts", k->ts, "noisy", k->doubts[0] != 0, "doubts", k->doubts));
    if (k->doubts[0])
        warn(d, "peaks_noisy", "hone lab peaks --force, when nothing else runs",
             "the roof was measured on a noisy machine: %s", k->doubts);
}

/* ---- all of it
 * --------------------------------------------------------------------------------------------------------------- */

/* Names of what is null: "clock.governor". Lists and tables inside are not entered. */
static json_t *unknowns(json_t *record)
{
    json_t *list = json_array(), *group, *v;
    const char *name, *key;
    char path[200];
    json_object_foreach(record, name, group)
    {
        if (!json_is_object(group)) continue;
        json_object_foreach(group, key, v)
        {
            if (!json_is_null(v)) continue;
            snprintf(path, sizeof path, "%s.%s", name, key);
            json_array_append_new(list, hn_lab_str(path));
        }
    }
    return list;
}

hone_status hn_doctor_look(json_t **out, const hn_environ *e, const hn_doctor_params *p, hone_error *err)
{
    *out = NULL;
    doctor d = { .p = p, .e = e, .record = json_object(), .warnings = json_array() };
    if (!d.record || !d.warnings) {
        json_decref(d.record);
        json_decref(d.warnings);
        return HN_FAIL(err, HONE_E_NOMEM, "doctor");
    }
    json_object_set_new(d.record, "env_hash", json_string(e->hash));
    ticks a = ticks_of(&d);
    double throttled = throttles(&d);
    hn_around before;
    hn_around_read(&before, p->root);
    if (p->watch_ms > 0)
        nanosleep(&(struct timespec){ p->watch_ms / 1000, (long)(p->watch_ms % 1000) * 1000000 }, NULL);
    ticks b = ticks_of(&d);
    look_at_cpu(&d);
    look_at_clock(&d);
    look_at_power(&d, throttled, throttles(&d));
    look_at_memory(&d);
    look_at_load(&d, a, b);
    look_at_container(&d);
    hn_around_read(&d.around, p->root);
    look_around(&d, &before);
    look_at_kernel(&d);
    look_at_build(&d);
    hone_status st = look_at_model(&d, err);
    look_at_peaks(&d);
    if (!json_object_get(d.record, "virtual")) json_object_set_new(d.record, "virtual", json_null());
    json_object_set_new(d.record, "unknown", unknowns(d.record));
    json_object_set_new(d.record, "ok", json_boolean(json_array_size(d.warnings) == 0));
    json_object_set_new(d.record, "warnings", d.warnings);
    if (st == HONE_OK) *out = d.record;
    else json_decref(d.record);
    return st;
}
