/* The roof in plain C and on Arm, the clock, and which loops a level has. */
#include "kernels/peaks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

int64_t hn_peak_expect(const hn_peak_op *op, int64_t n) { return op->n_lane * (op->per_lane * n & op->mask); }

/* ---- the clock: rotations take one cycle everywhere, and no core skips them ---------------- */

#define ROT 7
#if defined(__x86_64__)
#define ROTATE "ror $7, %0\n\t"
#elif defined(__aarch64__)
#define ROTATE "ror %0, %0, #7\n\t"
#endif
#define EIGHT(x) x x x x x x x x

static const uint64_t chain_start = 0x0123456789ABCDEFu;

bool hn_peak_chain(uint64_t *value, int64_t n)
{
#if defined(ROTATE)
    uint64_t v = chain_start;
    for (int64_t i = 0; i < n; i++) __asm__ volatile(EIGHT(EIGHT(ROTATE)) : "+r"(v));
    *value = v;
    return true;
#else
    *value = 0;
    return false;
#endif
}

uint64_t hn_peak_chain_expect(int64_t n)
{
    unsigned by = (unsigned)((uint64_t)n * 64 * ROT % 64);
    return by ? chain_start >> by | chain_start << (64 - by) : chain_start;
}

/* ---- Arm --------------------------------------------------------------------------------------- */

#if defined(__aarch64__)

enum { N_ACC = 16 };

static inline __attribute__((always_inline)) uint64x2_t load128(const char *p)
{
    return vld1q_u64((const uint64_t *)p);
}
static inline __attribute__((always_inline)) uint64_t total(uint64x2_t v)
{
    return vgetq_lane_u64(v, 0) + vgetq_lane_u64(v, 1);
}
HN_PEAK_READ(uint64x2_t, 16, vdupq_n_u64(0), load128, vaddq_u64, total, read_plain)

static inline __attribute__((always_inline)) int64_t sum_i32(const int32x4_t *acc)
{
    int64_t s = 0;
    HN_PEAK_EACH(i, N_ACC) s += vaddlvq_s32(acc[i]);
    return s;
}

static int64_t int8_plain(int64_t n)
{
    int32x4_t acc[N_ACC];
    int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(1);
    HN_PEAK_EACH(i, N_ACC) acc[i] = vdupq_n_s32(0);
    for (int64_t k = 0; k < n; k++)
        HN_PEAK_EACH(i, N_ACC) {
            HN_PEAK_HELD("w", a);
            int16x8_t p = vmlal_s8(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vget_high_s8(a), vget_high_s8(b));
            acc[i] = vpadalq_s16(acc[i], p);
            HN_PEAK_HELD("w", acc[i]);
        }
    return sum_i32(acc);
}

static int64_t f32_plain(int64_t n)
{
    float32x4_t acc[N_ACC], a = vdupq_n_f32(1), b = a;
    HN_PEAK_EACH(i, N_ACC) acc[i] = vdupq_n_f32(0);
    HN_PEAK_HELD("w", a);
    HN_PEAK_HELD("w", b);
    for (int64_t k = 0; k < n; k++)
        HN_PEAK_EACH(i, N_ACC) {
            acc[i] = vfmaq_f32(acc[i], a, b);
            HN_PEAK_HELD("w", acc[i]);
        }
    int64_t s = 0;
    float t[N_ACC][4];
    HN_PEAK_EACH(i, N_ACC) vst1q_f32(t[i], acc[i]);
    for (int i = 0; i < N_ACC * 4; i++) s += (int64_t)t[i / 4][i % 4];
    return s;
}

static const hn_peak_loops loops_plain = {
    .read_how = "128-bit loads",
    .read = read_plain,
    .bound = true,
    .int8 = { "smull + smlal + sadalp, 128 bits", N_ACC * 32, int8_plain, N_ACC * 4, 12, -1 },
    .f32 = { "fmla, 128 bits", N_ACC * 8, f32_plain, N_ACC * 4, 1, -1 },
};

/* ---- plain C ---------------------------------------------------------------------------------------- */

#else

static inline __attribute__((always_inline)) uint64_t load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
#define ADD64(a, b) ((a) + (b))
#define SAME64(a) (a)
HN_PEAK_READ(uint64_t, 8, 0, load64, ADD64, SAME64, read_plain)

enum { N_LANE = 32 };

static int64_t int8_plain(int64_t n)
{
    int32_t acc[N_LANE] = { 0 };
    int8_t a[N_LANE], b[N_LANE];
    memset(a, 3, sizeof a);
    memset(b, 1, sizeof b);
    for (int64_t k = 0; k < n; k++) {
        __asm__("" : "+m"(a), "+m"(b));
        for (int l = 0; l < N_LANE; l++) acc[l] += (int32_t)a[l] * b[l];
    }
    int64_t s = 0;
    for (int l = 0; l < N_LANE; l++) s += acc[l];
    return s;
}

static int64_t f32_plain(int64_t n)
{
    float acc[N_LANE] = { 0 }, a[N_LANE], b[N_LANE];
    for (int l = 0; l < N_LANE; l++) a[l] = b[l] = 1;
    for (int64_t k = 0; k < n; k++) {
        __asm__("" : "+m"(a), "+m"(b));
        for (int l = 0; l < N_LANE; l++) acc[l] += a[l] * b[l];
    }
    int64_t s = 0;
    for (int l = 0; l < N_LANE; l++) s += (int64_t)acc[l];
    return s;
}

static const hn_peak_loops loops_plain = {
    .read_how = "64-bit loads, as the compiler joins them",
    .read = read_plain,
    .bound = false,
    .int8 = { "plain C", N_LANE * 2, int8_plain, N_LANE, 3, -1 },
    .f32 = { "plain C", N_LANE * 2, f32_plain, N_LANE, 1, -1 },
};
#endif

/* ---- the choice ------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
static bool has_bf16(void) /* CPUID 7.1: EAX bit 5; the OS state is that of AVX-512 */
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 5);
}
#endif

const hn_peak_loops *hn_peak_loops_get(hn_cpu_level level)
{
#if defined(__x86_64__)
    static hn_peak_loops best, vnni; /* written with the same bytes by everyone */
    if (level == HN_CPU_AVX2) return &hn_peaks_avx2;
    if (level == HN_CPU_AVX_VNNI) {
        vnni = hn_peaks_avx2;
        vnni.int8 = hn_avx_vnni_peak;
        return &vnni;
    }
    if (level == HN_CPU_AVX512) {
        if (!has_bf16()) return &hn_peaks_avx512;
        best = hn_peaks_avx512;
        best.bf16 = hn_peak_avx512_bf16;
        return &best;
    }
#elif defined(__aarch64__)
    static hn_peak_loops dotprod, i8mm; /* likewise; plain C becomes NEON here, so scalar has its loops too */
    if (level == HN_CPU_NEON_DOTPROD) {
        dotprod = loops_plain;
        dotprod.int8 = hn_peak_neon_dotprod;
        return &dotprod;
    }
    if (level == HN_CPU_NEON_I8MM) {
        i8mm = loops_plain;
        i8mm.int8 = hn_peak_neon_i8mm;
        return &i8mm;
    }
#endif
    return &loops_plain;
}
