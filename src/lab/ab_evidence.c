/* What the machine itself says about a stretch of time: whether something outside took the
 * processor away, slowed it down, or whether pages came from disk. Numbers that were
 * measured are no evidence here. */
#include "lab/ab.h"

#include <stdlib.h>

static bool number_in(double *out, const char *path)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fscanf(f, "%lf", out) == 1;
    if (f) fclose(f);
    return ok;
}

void hn_ab_evidence_read(hn_ab_evidence *e)
{
    *e = (hn_ab_evidence){ 0 };
    hn_cpu_ticks_read(&e->ticks);
    for (int cpu = 0; cpu < 1024; cpu++) {
        char path[128];
        double v;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", cpu);
        bool any = number_in(&v, path);
        if (any) e->throttled += (uint64_t)v;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
        if (number_in(&v, path)) {
            any = true;
            e->khz = fmax(e->khz, v);
        }
        if (!any) break;
    }
}

const char *hn_ab_evidence_of(const hn_ab_evidence *before, const hn_ab_evidence *after, int64_t major_faults)
{
    const double max_steal = 0.01, max_freq = 0.05;
    double total = (double)(after->ticks.total - before->ticks.total), steal = (double)(after->ticks.steal - before->ticks.steal);
    if (total > 0 && steal / total > max_steal) return "steal";
    if (major_faults > 0) return "major faults";
    if (after->throttled > before->throttled) return "thermal throttle";
    if (before->khz > 0 && fabs(after->khz - before->khz) > max_freq * before->khz) return "frequency";
    return "";
}
