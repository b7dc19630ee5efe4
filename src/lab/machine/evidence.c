/* What the machine did while a sample was measured, and whether that is a reason to
 * measure again. Owns the limits; refuses to look at what was measured. */
#include "base/os.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/machine/evidence.h"
#include "lab/stats/stats.h"
#include "base/json_tree.h"
#include "base/json_text.h"

#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

static double number_of_file(const char *path)
{
    double v = NAN;
    FILE *f = fopen(path, "re");
    if (!f) return NAN;
    if (fscanf(f, "%lf", &v) != 1) v = NAN;
    fclose(f);
    return v;
}

static double clock_mhz(int32_t cores)
{
    char path[96];
    double sum = 0, v;
    int32_t n = 0;
    for (int32_t c = 0; c < cores; c++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", c);
        if (isfinite(v = number_of_file(path))) sum += v / 1000, n++;
    }
    if (n) return sum / n;
    FILE *f = fopen("/proc/cpuinfo", "re"); /* virtual machines: often a constant */
    char line[512];
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "cpu MHz : %lf", &v) == 1) sum += v, n++;
    if (f) fclose(f);
    return n ? sum / n : 0;
}

static int64_t throttle_count(int32_t cores)
{
    char path[96];
    double v;
    int64_t sum = -1;
    for (int32_t c = 0; c < cores; c++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", c);
        if (isfinite(v = number_of_file(path))) sum = (sum < 0 ? 0 : sum) + (int64_t)v;
    }
    return sum;
}

void hn_evidence_look(hn_evidence *out)
{
    struct rusage r = { 0 };
    long cores = sysconf(_SC_NPROCESSORS_CONF);
    getrusage(RUSAGE_SELF, &r);
    *out = (hn_evidence){ .major = r.ru_majflt,
                          .switches = r.ru_nivcsw,
                          .waits = r.ru_nvcsw,
                          .throttled = throttle_count((int32_t)cores),
                          .cpu_s = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
                                   1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec),
                          .mhz = clock_mhz((int32_t)cores) };
    hn_around a;
    hn_around_read(&a, "");
    out->stopped = a.stopped;
    hn_cpu_ticks_read(&out->ticks);
    out->ns = hn_clock_ns();
}

void hn_evidence_json(json_t *o, const hn_evidence *a, const hn_evidence *b)
{
    double steal = NAN, wall_s = (double)(b->ns - a->ns) * 1e-9;
    if (b->ticks.total > a->ticks.total)
        steal = 100.0 * (double)(b->ticks.steal - a->ticks.steal) / (double)(b->ticks.total - a->ticks.total);
    json_object_set_new(o, "cpu_use", wall_s > 0 ? hn_lab_num((b->cpu_s - a->cpu_s) / wall_s) : json_null());
    json_object_set_new(o, "steal_pct", hn_lab_num(steal));
    json_object_set_new(o, "major_faults", json_integer(b->major - a->major));
    json_object_set_new(o, "involuntary_switches", json_integer(b->switches - a->switches));
    json_object_set_new(o, "voluntary_switches", json_integer(b->waits - a->waits));
    json_object_set_new(o, "throttled",
                        a->throttled >= 0 && b->throttled >= 0 ? json_integer(b->throttled - a->throttled)
                                                               : json_null());
    json_object_set_new(o, "quota_stops",
                        a->stopped >= 0 && b->stopped >= 0 ? json_integer(b->stopped - a->stopped) : json_null());
    json_object_set_new(o, "clock_mhz", b->mhz > 0 ? hn_lab_num(b->mhz) : json_null());
}

bool hn_evidence_voids(json_t *sample, bool from_disk, double usual_mhz, char *why, size_t cap)
{
    double steal = hn_json_number_of(sample, "steal_pct"), major = hn_json_number_of(sample, "major_faults"),
           hot = hn_json_number_of(sample, "throttled"), stops = hn_json_number_of(sample, "quota_stops"),
           clock = 100 * (hn_json_number_of(sample, "clock_mhz") / usual_mhz - 1);
    if (steal > HN_STEAL_PCT) snprintf(why, cap, "the hypervisor took %.1f %% of the time", steal);
    else if (major > 0 && !from_disk) snprintf(why, cap, "%.0f pages had to be read from disk", major);
    else if (hot > 0) snprintf(why, cap, "the CPU was throttled for its temperature");
    else if (stops > 0) snprintf(why, cap, "the control group's CPU limit stopped it %.0f times", stops);
    else if (fabs(clock) > HN_CLOCK_PCT)
        snprintf(why, cap, "the clock was %+.1f %% off that of the other samples", clock);
    else return false;
    return true;
}

int hn_count_misses(const char **why_not) { return hn_os_count_open(HN_OS_CACHE_MISSES, why_not); }
int64_t hn_count_read(int fd) { return hn_os_count_read(fd); }
