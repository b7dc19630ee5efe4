/* doctor: everything about this machine that moves a measurement, and what to do about
 * it. What cannot be read is null, never assumed. */
#ifndef HN_DOCTOR_H
#define HN_DOCTOR_H

#include "base/base.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "base/json_text.h"

#define HN_DOCTOR_SCHEMA "hone.doctor/1"

typedef struct hn_doctor_params {
    const char
        *root; /* "" the machine; else a folder with its own proc/ and sys/, for tests: programs are not asked then */
    int32_t watch_ms;      /* how long to watch steal and throttling; 0: not at all */
    const char *model;     /* NULL: none */
    const hn_peaks *peaks; /* NULL: none, and why */
    const char *no_peaks;
    const char *level; /* kernel level that would be used */
} hn_doctor_params;

/* The record: {"cpu": {…}, "clock": {…}, …, "warnings": [{"id", "text", "do"}], "unknown": ["clock.governor", …],
 * "ok": no warning}. HONE_E_IO: the model cannot be read. */
hone_status hn_doctor_look(json_t **out, const hn_environ *e, const hn_doctor_params *p, hone_error *err);

#endif
