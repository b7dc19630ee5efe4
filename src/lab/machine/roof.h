/* roof: the peaks of this machine, measured (peaks.c) and kept from run to run (peaks_store.c),
 * and what they say of a rate (roof.c). */
#ifndef HN_ROOF_H
#define HN_ROOF_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/machine/environ.h"
#include "lab/stats/verdict.h"
#include <math.h>

#define HN_PEAKS_SCHEMA "hone.peaks/1"
enum { HN_PEAK_POINTS = 24 }; /* thread counts measured: 1 to 8, then doubling, then all */

typedef enum hn_peak_kind {
    HN_PEAK_READ_BW = 0,
    HN_PEAK_INT8,
    HN_PEAK_F32,
    HN_PEAK_BF16,
    HN_PEAK_DISPATCH,
    HN_PEAK_BARRIER,
    HN_PEAK_KINDS
} hn_peak_kind;

typedef struct hn_peak_point {
    int32_t threads;
    /* GB/s, 10^9 operations a second, or ns */
    double best;            /* the roof: reached three times, within 3 %; of times the least */
    double most;            /* reached at all: a rate above it is wrong */
    double median, spread;  /* of the fastest pattern; spread: (max - min) / median */
    int32_t streams, ahead; /* reading: that pattern */
    double cpu_use;         /* CPU time / (wall time · threads) */
} hn_peak_point;

typedef struct hn_peaks {
    char hash[9], level[16], ts[32], cpu_model[128], kernel[128];
    char how[HN_PEAK_KINDS][80]; /* "vpdpbusd, 512 bits"; "": this CPU has none */
    int32_t n[HN_PEAK_KINDS];
    hn_peak_point at[HN_PEAK_KINDS][HN_PEAK_POINTS]; /* ascending threads */
    int32_t cores;
    double clock_ghz[2];   /* least and most seen; 0: unknown */
    uint64_t cache_bytes;  /* last-level cache; 0: unknown */
    uint64_t buffer_bytes; /* what was read */
    double huge_pages;     /* share of the buffer in huge pages */
    double load, steal_pct;
    char cpus[64];    /* where the threads were put: "0,1" */
    bool bound;       /* a kernel above these is wrong, not fast */
    bool quick;       /* small sizes: shows that it works, says nothing */
    char doubts[320]; /* "": a quiet measurement; else what disturbed it */
} hn_peaks;

typedef struct hn_peaks_params {
    int32_t n_threads; /* 0: all cores */
    const char *cpu;   /* NULL: as hone_context_params */
    bool quick;
    bool (*stop)(void *);                                       /* NULL allowed */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* NULL allowed */
    void *progress_arg;
} hn_peaks_params;

/* Measures. HONE_E_NUMERIC: what was computed is not what the work gives, or a rate beyond
 * what such a machine can do: nothing of it is to be believed. */
hone_status hn_peaks_measure(hn_peaks *out, const hn_peaks_params *p, hone_error *err);
/* These kinds (bits, 1 << hn_peak_kind) again, in a second or two each, with so many threads and with one: what is
 * faster now is raised in *p, and told among its doubts. False: nothing was, or it could not be measured; *p is as
 * before. */
bool hn_peaks_again(hn_peaks *p, unsigned kinds, int32_t threads, bool (*stop)(void *));
/* Is this physically possible and complete? HONE_E_NUMERIC says why not. */
hone_status hn_peaks_check(const hn_peaks *p, hone_error *err);
json_t *hn_peaks_json(const hn_peaks *p);
/* HONE_E_FORMAT names the field. */
hone_status hn_peaks_parse(hn_peaks *out, json_t *o, hone_error *err);

/* Where the peaks of a level on this machine are kept: $XDG_STATE_HOME/hone, else
 * ~/.local/state/hone. HONE_E_IO: no home. */
hone_status hn_peaks_path(char *dst, size_t cap, const hn_environ *e, const char *level, hone_error *err);
/* Replaces the file at once, or leaves it. Quick ones are refused. */
hone_status hn_peaks_store(const hn_peaks *p, const char *path, hone_error *err);
/* HONE_E_IO: none stored. HONE_E_FORMAT: damaged. HONE_E_UNSUPPORTED: of another machine or
 * level. The message says how to get them. */
hone_status hn_peaks_load(hn_peaks *out, const char *path, const hn_environ *e, const char *level, hone_error *err);

/* The roof at so many threads: the most of all counts up to the next one measured. 0: none. */
double hn_peaks_at(const hn_peaks *p, hn_peak_kind kind, int32_t threads);
double hn_peaks_most(const hn_peaks *p, hn_peak_kind kind, int32_t threads); /* the same of hn_peak_point.most */
/* The fewest threads that read within 3 % of what any number of them reads: more only wait
 * for memory when tokens come one at a time. 0: not measured. */
int32_t hn_peaks_decode_threads(const hn_peaks *p);
/* One line for reports: level, date, doubts. */
void hn_peaks_say(const hn_peaks *p, char *dst, size_t cap);

/* Bytes that must move to decode one token: weights read; a recurrent state read and written. */
static inline uint64_t hn_bytes_per_token(const hone_model_info *info)
{
    return info->bytes_per_token + 2 * info->state_bytes;
}

/* What a sequence is remembered in, in words: "kv f16", or of a recurrent model "state f32". */
static inline const char *hn_kv_words(char dst[24], const hone_model_info *info, const char *kv)
{
    if (info->recurrent) snprintf(dst, 24, "state f32");
    else snprintf(dst, 24, "kv %.15s", kv ? kv : "?");
    return dst;
}

/* How weights are read, in words, for configurations: "packed", "plain", or where types differ "mixed: Q4_K packed,
 * Q5_0 plain", as the note of a model that was opened begins. */
enum { HN_WEIGHTS_WORDS = 240 };
static inline const char *hn_weights_words(char dst[HN_WEIGHTS_WORDS], const hone_model_info *info)
{
    const char *note = info->packed_path ? info->packed_note : "";
    bool mixed = strncmp(note, "mixed: ", 7) == 0;
    snprintf(dst, HN_WEIGHTS_WORDS, "%.*s", mixed ? (int)strcspn(note, ";") : 8,
             mixed               ? note
             : info->packed_path ? "packed"
                                 : "plain");
    return dst;
}

/* What one token asks of a machine, by the types of the weights. */
typedef struct hn_work {
    uint64_t bytes_per_token;         /* moved to decode one token */
    double int8_layers, float_layers; /* weights multiplied for each token, by the arithmetic of their type */
    double int8_head, float_head;     /* and once, for the logits */
} hn_work;
/* From the tensor directory of a model file; the rest is hn_work_add's. */
hone_status hn_work_of(hn_work *out, const char *path, hone_error *err);
/* What the file does not say: bytes of a token, and a recurrent model's passes over its state. */
void hn_work_add(hn_work *w, const hone_model_info *info);
/* Seconds that the multiplications of a prompt take at the roof, or at the most; NaN without. */
double hn_work_prefill_s(const hn_work *w, const hn_peaks *p, int32_t threads, int32_t n_tok, bool most);

/* A prompt that took s on so many threads: invalid if no CPU is as fast, whatever this one's peaks are. */
void hn_check_possible(hn_verdict *v, const hn_work *w, int32_t threads, int32_t n_tok, double s);

/* A rate this much above the roof is wrong: measurements of the roof have errors too. */
#define HN_ROOF_TOLERANCE 0.05

/* A decode rate cannot exceed read bandwidth / weight bytes per token, except for what a cache
 * of cache_bytes holds from token to token: against most_gb_s. roof_gb_s 0: not measured, nothing is
 * said. Returns the share of the roof; NaN without one, or when a cache could hold half of the weights. */
double hn_check_roof(hn_verdict *v, double decode_tok_s, uint64_t bytes_per_token, double roof_gb_s, double most_gb_s,
                     uint64_t cache_bytes);
/* Bytes that were read in s, of which a cache may hold the share `kept`, where the machine reads most_b_s a second. */
void hn_check_read(hn_verdict *v, double bytes, double kept, double most_b_s, double s);
/* How near something comes to the roof p; v: invalid where it is beyond. */
typedef void hn_roof_judge(void *arg, hn_verdict *v, const hn_peaks *p);
/* What judge says goes to v. Whatever is beyond the roof by no more than machines differ from minute to minute (clocks
 * that rise, neighbours that leave) is not believed, and neither is the roof: it is measured again first. */
void hn_check_twice(hn_verdict *v, hn_roof_judge *judge, void *arg, hn_peaks *p, unsigned kinds, int32_t threads,
                    bool (*stop)(void *));
/* Work that took s, and takes least_s at the very least: NaN says nothing. */
void hn_check_compute(hn_verdict *v, const char *what, double least_s, double s);

#endif
