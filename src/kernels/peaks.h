/* peaks: loops that do one thing as fast as a core can, so that the roof above the
 * kernels is measured and not believed. Each returns something that only the whole
 * work gives, and says what it must be. Knows instructions; refuses to know clocks. */
#ifndef HN_PEAKS_H
#define HN_PEAKS_H

#include "base/base.h"

#define HN_PEAK_STEP 256            /* bytes that a stream advances at a time */
#define HN_PEAK_MAX_STEPS (1 << 22) /* of hn_peak_op.run: sums stay exact */

typedef struct hn_peak_op {
    const char *how;                /* "vpdpbusd, 512 bits"; NULL: this CPU or level has none */
    double ops;                     /* multiplications and additions of one step */
    int64_t (*run)(int64_t n_step); /* sum of all accumulator lanes */
    int64_t n_lane, per_lane, mask; /* which is n_lane · ((per_lane · n_step) & mask) */
} hn_peak_op;

typedef struct hn_peak_loops {
    const char *read_how; /* "512-bit loads" */
    /* Sum of the 64-bit words of n_stream (1, 2, 4, 8 or 16) runs that stand end to end
     * and are read side by side; run_bytes a multiple of HN_PEAK_STEP, p of 64.
     * ahead: bytes to prefetch ahead, 0: leave it to the hardware. */
    uint64_t (*read)(const char *p, size_t run_bytes, int n_stream, size_t ahead);
    hn_peak_op int8, f32, bf16;
    bool bound; /* no kernel of this level can be faster; false: plain C, which says only what this loop reaches */
} hn_peak_loops;

/* The loops of a level that is present. */
const hn_peak_loops *hn_peak_loops_get(hn_cpu_level level);
int64_t hn_peak_expect(const hn_peak_op *op, int64_t n_step);

/* A chain of n·64 dependent instructions of one cycle each; its value is hn_peak_chain_expect.
 * False: not known for this architecture. */
bool hn_peak_chain(uint64_t *value, int64_t n);
uint64_t hn_peak_chain_expect(int64_t n);

/* A loop over accumulators, unrolled before they are given places: later, an array of them stays in memory. */
#ifdef __clang__
#define HN_PEAK_EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)
#else
#define HN_PEAK_EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif
/* x is in a register here (CLASS: what the compiler calls its kind), and holds what nobody knows: nothing that is
 * computed of it is known to have been computed before, and one accumulator's sum is not moved to another's. */
#define HN_PEAK_HELD(CLASS, x) __asm__ volatile("" : "+" CLASS(x))

/* For dispatch alone. */
extern const hn_peak_loops hn_peaks_avx2, hn_peaks_avx512;
extern const hn_peak_op hn_avx_vnni_peak;    /* the rest is AVX2's */
extern const hn_peak_op hn_peak_avx512_bf16; /* needs AVX512_BF16 */
extern const hn_peak_op hn_peak_neon_dotprod, hn_peak_neon_i8mm;

/* The body of every read loop: V a vector, LOAD, ADD, PREFETCH; four loads a step. */
#define HN_PEAK_READ(V, BYTES, ZERO, LOAD, ADD, TOTAL, NAME)                                                       \
    static inline __attribute__((always_inline)) uint64_t NAME##_n(const char *p, size_t run, int n, size_t ahead) \
    {                                                                                                              \
        V a0 = ZERO, a1 = ZERO, a2 = ZERO, a3 = ZERO;                                                              \
        for (size_t off = 0; off < run; off += HN_PEAK_STEP)                                                       \
            for (int s = 0; s < n; s++) {                                                                          \
                const char *q = p + (size_t)s * run + off;                                                         \
                if (ahead)                                                                                         \
                    for (int i = 0; i < HN_PEAK_STEP; i += 64) __builtin_prefetch(q + ahead + i);                  \
                for (int i = 0; i < HN_PEAK_STEP; i += 4 * (BYTES)) {                                              \
                    a0 = ADD(a0, LOAD(q + i));                                                                     \
                    a1 = ADD(a1, LOAD(q + i + (BYTES)));                                                           \
                    a2 = ADD(a2, LOAD(q + i + 2 * (BYTES)));                                                       \
                    a3 = ADD(a3, LOAD(q + i + 3 * (BYTES)));                                                       \
                }                                                                                                  \
            }                                                                                                      \
        return TOTAL(ADD(ADD(a0, a1), ADD(a2, a3)));                                                               \
    }                                                                                                              \
    static uint64_t NAME(const char *p, size_t run, int n, size_t ahead)                                           \
    {                                                                                                              \
        switch (n + (ahead ? 100 : 0)) {                                                                           \
        case 1: return NAME##_n(p, run, 1, 0);                                                                     \
        case 2: return NAME##_n(p, run, 2, 0);                                                                     \
        case 4: return NAME##_n(p, run, 4, 0);                                                                     \
        case 8: return NAME##_n(p, run, 8, 0);                                                                     \
        case 16: return NAME##_n(p, run, 16, 0);                                                                   \
        case 101: return NAME##_n(p, run, 1, ahead);                                                               \
        case 102: return NAME##_n(p, run, 2, ahead);                                                               \
        case 104: return NAME##_n(p, run, 4, ahead);                                                               \
        case 108: return NAME##_n(p, run, 8, ahead);                                                               \
        default: return NAME##_n(p, run, n, ahead);                                                                \
        }                                                                                                          \
    }

#endif
