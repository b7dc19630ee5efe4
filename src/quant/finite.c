/* finite: is every number one? Of floats that is a question of their exponents' bits, eight bytes at a time. */
#include "quant/quant.h"

enum { RUN = 4096 }; /* bytes looked at before it is asked whether there was one */

/* Bits of the exponent of each number in a word, and what added to them reaches the sign where all are set. */
typedef struct pattern {
    uint64_t exponent, one, sign;
    size_t size;
} pattern;

static pattern pattern_of(hn_type type)
{
    switch (type) {
    case HN_F16: return (pattern){ 0x7C007C007C007C00, 0x0400040004000400, 0x8000800080008000, 2 };
    case HN_BF16: return (pattern){ 0x7F807F807F807F80, 0x0080008000800080, 0x8000800080008000, 2 };
    case HN_F64: return (pattern){ 0x7FF0000000000000, 0x0010000000000000, 0x8000000000000000, 8 };
    default: return (pattern){ 0x7F8000007F800000, 0x0080000000800000, 0x8000000080000000, 4 };
    }
}

/* Only exponents are added to, so that no sum reaches the number beside it. */
static uint64_t odd_bits(const pattern *of, const unsigned char *p, size_t n)
{
    uint64_t any = 0, word = 0;
    const uint64_t exponent = of->exponent, one = of->one;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, p + i, 8);
        any |= (word & exponent) + one;
    }
    if (i < n) {
        word = 0;
        memcpy(&word, p + i, n - i);
        any |= (word & exponent) + one;
    }
    return any & of->sign;
}

uint64_t hn_first_odd(const void *numbers, hn_type type, uint64_t n)
{
    const pattern of = pattern_of(type);
    const unsigned char *p = numbers;
    for (uint64_t at = 0; at < n; at += RUN / of.size) {
        uint64_t run = n - at < RUN / of.size ? n - at : RUN / of.size;
        if (!odd_bits(&of, p + at * of.size, run * of.size)) continue;
        while (!odd_bits(&of, p + at * of.size, of.size)) at++;
        return at;
    }
    return n;
}
