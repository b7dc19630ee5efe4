/* Wrong builds that the fourth stranger thought up: angles of far positions, small halves,
 * the last position of what is saved, the reason why an answer ends. */
#include "mutants.h"
#include "others.h"

#include "engine/snapshot.h"
#include "kernels/kernels.h"
#include "quant/quant.h"
#include "serve/voice_parts.h"

#include <math.h>

/* Far positions turn by angles of single precision. */
void __real_hn_rope_table(float *cs, const double *freq, int32_t n_rot, int64_t pos, float mscale);
void __wrap_hn_rope_table(float *cs, const double *freq, int32_t n_rot, int64_t pos, float mscale);
void __wrap_hn_rope_table(float *cs, const double *freq, int32_t n_rot, int64_t pos, float mscale)
{
    enum { FAR = 16384, MOST = 1024 };
    double near[MOST];
    const bool wrong = mt_is("rope-far") && pos >= FAR && n_rot / 2 <= MOST;
    for (int32_t i = 0; wrong && i < n_rot / 2; i++) near[i] = (double)((float)pos * (float)freq[i]) / (double)pos;
    __real_hn_rope_table(cs, wrong ? near : freq, n_rot, pos, mscale);
}

/* Halves below the least normal one are zeros. */
hn_quantize_fn __real_hn_q_f16, __wrap_hn_q_f16;
void __wrap_hn_q_f16(void *dst, const float *x, int64_t n, const float *importance)
{
    uint8_t *bytes = dst;
    __real_hn_q_f16(dst, x, n, importance);
    for (int64_t i = 0; mt_is("f16-flushes") && i < n; i++)
        if (fabsf(x[i]) < 0x1p-14F) bytes[2 * i] = 0, bytes[2 * i + 1] &= 0x80;
}

/* What is saved lacks its last position, where that is not the last of a line. */
void __real_hn_plane_clear(const hone_session *s, const hn_plane *plane, char *p, int64_t len);
void __wrap_hn_plane_clear(const hone_session *s, const hn_plane *plane, char *p, int64_t len);
void __wrap_hn_plane_clear(const hone_session *s, const hn_plane *plane, char *p, int64_t len)
{
    const bool wrong = mt_is("saved-last") && s->cache == HN_CACHE_Q8_0 && len % HN_KEY_BLOCK > 1;
    __real_hn_plane_clear(s, plane, p, wrong ? len - 1 : len);
}

/* An answer that fills the context has ended by itself. */
const char *__real_hn_finish_reason(const hn_say *end, int32_t complete_calls);
const char *__wrap_hn_finish_reason(const hn_say *end, int32_t complete_calls);
const char *__wrap_hn_finish_reason(const hn_say *end, int32_t complete_calls)
{
    if (mt_is("context-is-stop") && end->why == HN_WHY_CONTEXT) return "stop";
    return __real_hn_finish_reason(end, complete_calls);
}
