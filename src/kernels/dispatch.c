/* The one place that picks kernels: a level's table, its holes filled from below. */
#include "kernels/kernels.h"
#include "kernels/watched.h"

#include <pthread.h>

static hn_kernels tables[HN_CPU_LEVELS];
static const hn_kernels *best; /* of this CPU: asking it each time is slow under a hypervisor */
static pthread_once_t once = PTHREAD_ONCE_INIT;

void hn_kernels_overlay(hn_kernels *dst, const hn_kernels *src)
{
    if (src->name) dst->name = src->name;
    for (int t = 0; t < HN_TYPE_COUNT; t++) {
        if (src->decode[t]) dst->decode[t] = src->decode[t];
        if (!src->matmul[t]) continue;
        dst->matmul[t] = src->matmul[t];
        dst->packed[t] = src->packed[t]; /* a packed product of a lower level is slower than plain rows here */
    }
    if (src->quantize256) dst->quantize256 = src->quantize256;
    if (src->quantize32) dst->quantize32 = src->quantize32;
    if (src->rms_norm) dst->rms_norm = src->rms_norm;
    if (src->silu_mul) dst->silu_mul = src->silu_mul;
    if (src->gelu_mul) dst->gelu_mul = src->gelu_mul;
    if (src->gelu_erf_mul) dst->gelu_erf_mul = src->gelu_erf_mul;
    if (src->oai_mul) dst->oai_mul = src->oai_mul;
    if (src->relu_mul) dst->relu_mul = src->relu_mul;
    if (src->silu_mul_grad) dst->silu_mul_grad = src->silu_mul_grad;
    if (src->gelu_mul_grad) dst->gelu_mul_grad = src->gelu_mul_grad;
    if (src->to_bf16) dst->to_bf16 = src->to_bf16;
    if (src->rms_norm_grad) dst->rms_norm_grad = src->rms_norm_grad;
    if (src->gemm) dst->gemm = src->gemm;
    if (src->exp) dst->exp = src->exp;
    if (src->layer_norm) dst->layer_norm = src->layer_norm;
    if (src->lerp) dst->lerp = src->lerp;
    for (int i = 0; i < HN_MAP_KINDS; i++)
        if (src->map[i]) dst->map[i] = src->map[i];
    if (src->xielu) dst->xielu = src->xielu;
    if (src->wkv6) dst->wkv6 = src->wkv6;
    if (src->wkv7) dst->wkv7 = src->wkv7;
    if (src->conv) dst->conv = src->conv;
    if (src->ssm) dst->ssm = src->ssm;
    if (src->scan) dst->scan = src->scan;
    if (src->delta) dst->delta = src->delta;
    for (int t = 0; t < HN_CACHE_TYPES; t++) {
        if (src->attn[t]) dst->attn[t] = src->attn[t];
        if (src->attn_latent[t]) dst->attn_latent[t] = src->attn_latent[t];
        if (src->store_k[t]) dst->store_k[t] = src->store_k[t];
        if (src->store_v[t]) dst->store_v[t] = src->store_v[t];
    }
    if (src->attn_merge) dst->attn_merge = src->attn_merge;
    if (src->low_rank) dst->low_rank = src->low_rank;
}

static void fill(void)
{
    tables[HN_CPU_SCALAR] = hn_kernels_scalar;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) tables[HN_CPU_SCALAR] = hn_kernels_scalar_fma;
    tables[HN_CPU_AVX2] = tables[HN_CPU_SCALAR];
    hn_kernels_overlay(&tables[HN_CPU_AVX2], &hn_kernels_avx2);
    tables[HN_CPU_AVX_VNNI] = tables[HN_CPU_AVX2];
    hn_kernels_overlay(&tables[HN_CPU_AVX_VNNI], &hn_avx_vnni_kernels);
    tables[HN_CPU_AVX512] = tables[HN_CPU_AVX2]; /* what AVX-VNNI has, these CPUs may lack */
    hn_kernels_overlay(&tables[HN_CPU_AVX512], &hn_kernels_avx512);
    if (hn_cpu_has_bf16()) tables[HN_CPU_AVX512].gemm = &hn_gemm_avx512_bf16;
#elif defined(__aarch64__)
    tables[HN_CPU_NEON] = tables[HN_CPU_SCALAR];
    hn_kernels_overlay(&tables[HN_CPU_NEON], &hn_kernels_neon);
    hn_kernels_overlay(&tables[HN_CPU_NEON], &hn_kernels_neon_int);
    tables[HN_CPU_NEON_DOTPROD] = tables[HN_CPU_NEON];
    hn_kernels_overlay(&tables[HN_CPU_NEON_DOTPROD], &hn_kernels_neon_dotprod);
    tables[HN_CPU_NEON_I8MM] = tables[HN_CPU_NEON_DOTPROD];
    hn_kernels_overlay(&tables[HN_CPU_NEON_I8MM], &hn_kernels_neon_i8mm);
#endif
#if HN_WATCHED
    hn_kernels_watch(tables);
#endif
    best = &tables[hn_cpu_best()];
}

const hn_kernels *hn_kernels_get(hn_cpu_level level)
{
    pthread_once(&once, fill);
    return &tables[level];
}

hn_act_kind hn_act_kind_of(hn_type t)
{
    switch (t) {
    case HN_Q4_K:
    case HN_Q5_K:
    case HN_Q6_K:
    case HN_IQ4_XS: return HN_ACT_Q256;
    case HN_Q4_0:
    case HN_Q5_0:
    case HN_Q8_0:
    case HN_MXFP4:
    case HN_IQ4_NL: return HN_ACT_Q32;
    default: return HN_ACT_F32;
    }
}

void hn_exp_many(float *y, const float *x, int64_t n)
{
    pthread_once(&once, fill);
    best->exp(y, x, n);
}
