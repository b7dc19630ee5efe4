/* What is done to bytes so that a reader has to think: the numbers at the borders of their types, and pieces taken out,
 * repeated or put in. Shared by the plain driver, which draws edits, and by targets whose input says them. Knows no
 * format. */
#ifndef HN_FUZZ_EDITS_H
#define HN_FUZZ_EDITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ED_BORDERS = 16 };
static const uint64_t ed_border[ED_BORDERS] = { 0,
                                                1,
                                                2,
                                                0x7F,
                                                0x80,
                                                0xFF,
                                                0x7FFF,
                                                0xFFFF,
                                                0x7FFFFFFF,
                                                0x80000000,
                                                0xFFFFFFFF,
                                                0x7FFFFFFFFFFFFFFF,
                                                0x8000000000000000,
                                                0xFFFFFFFFFFFFFFFF,
                                                0x2000000000000000,
                                                0x4000000000000001 };

/* All: buf[n] has room for cap bytes; what does not fit is left out. They return the new n. */

static inline size_t ed_put(uint8_t *buf, size_t n, size_t at, const void *p, size_t k)
{
    if (at <= n && k && k <= n - at) memcpy(buf + at, p, k);
    return n;
}

/* A number of 1, 2, 4 or 8 bytes. */
static inline size_t ed_set(uint8_t *buf, size_t n, size_t at, size_t width, uint64_t v)
{
    return ed_put(buf, n, at, &v, width);
}

static inline size_t ed_shift(uint8_t *buf, size_t n, size_t at, size_t width, int64_t by)
{
    uint64_t v = 0;
    if (at > n || width > n - at) return n;
    memcpy(&v, buf + at, width);
    return ed_set(buf, n, at, width, v + (uint64_t)by);
}

static inline size_t ed_flip(uint8_t *buf, size_t n, size_t at, unsigned bit)
{
    if (at < n) buf[at] ^= (uint8_t)(1u << (bit & 7));
    return n;
}

static inline size_t ed_remove(uint8_t *buf, size_t n, size_t at, size_t k)
{
    if (at > n || k > n - at) return n;
    memmove(buf + at, buf + at + k, n - at - k);
    return n - k;
}

static inline size_t ed_insert(uint8_t *buf, size_t n, size_t cap, size_t at, const void *p, size_t k)
{
    if (at > n || !k || n > cap || k > cap - n) return n;
    memmove(buf + at + k, buf + at, n - at);
    memcpy(buf + at, p, k);
    return n + k;
}

/* buf[at, at + k) twice. */
static inline size_t ed_repeat(uint8_t *buf, size_t n, size_t cap, size_t at, size_t k)
{
    if (at > n || k > n - at || n > cap || k > cap - n) return n;
    memmove(buf + at + k, buf + at, n - at);
    return n + k;
}

#endif
