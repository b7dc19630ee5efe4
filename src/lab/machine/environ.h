/* environ: the machine and the build that a measurement was made with. */
#ifndef HN_ENVIRON_H
#define HN_ENVIRON_H

#include "base/json_text.h"
#include "base/base.h"
#include "lab/machine/around.h"

typedef struct hn_environ {
    char cpu_model[128], microcode[32], kernel[128], machine[32], governor[32], boost[16], thp[32], hypervisor[32];
    char cgroup_cpu[32];
    char compiler[160], flags[256], commit[64];
    int32_t cores, cores_online;
    double load[3];
    int32_t runnable; /* threads running or ready, this one included; -1 unknown */
    uint64_t mem_total, mem_available;
    hn_around around;
    char hash[9]; /* of what makes two machines comparable: not the load, not the build */
} hn_environ;
void hn_environ_read(hn_environ *e); /* unknown texts are "" */
json_t *hn_environ_json(const hn_environ *e);

typedef struct hn_cpu_ticks {
    uint64_t total, steal;
} hn_cpu_ticks; /* of the whole machine */
bool hn_cpu_ticks_read(hn_cpu_ticks *out);

#endif
