/* evidence: what happened to the machine while a sample was taken. Only this, never its value, may
 * void a sample. */
#ifndef HN_EVIDENCE_H
#define HN_EVIDENCE_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/machine/environ.h"

typedef struct hn_evidence { /* before and after are subtracted */
    hn_cpu_ticks ticks;
    int64_t major, switches, waits; /* page faults from disk; involuntary and voluntary switches */
    double cpu_s;
    int64_t throttled; /* of all cores; −1: unknown */
    int64_t stopped;   /* by the quota of a control group; −1: unknown */
    double mhz;        /* mean of the cores; 0: unknown */
    uint64_t ns;
} hn_evidence;

enum { HN_STEAL_PCT = 1, HN_CLOCK_PCT = 5 }; /* more than so much voids */

void hn_evidence_look(hn_evidence *out);
/* Adds steal_pct, major_faults, throttled, quota_stops, clock_mhz (at the end, under load), cpu_use and switches
 * to o. */
void hn_evidence_json(json_t *o, const hn_evidence *before, const hn_evidence *after);
/* Why a sample with these keys should be measured again; false: no reason. from_disk: reading
 * from disk is what is measured. usual_mhz: of the samples before; NaN: there were none. */
bool hn_evidence_voids(json_t *sample, bool from_disk, double usual_mhz, char *why, size_t cap);

/* Cache misses of this process and of the threads it starts from now on: a file descriptor, or −1 and why. */
int hn_count_misses(const char **why_not);
int64_t hn_count_read(int fd); /* so far; −1: unknown */

#endif
