/* Names: what may be one, and finding records by them. Owns the seeded hash index.
 * Refuses to know what the names stand for. */
#include "base/os.h"
#include "gguf/gguf.h"

#include <stdlib.h>
#include <time.h>

/* ---- what may be a name ---------------------------------------------------------- */

static bool utf8_ok(const unsigned char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        if (s[i] < 0x80) {
            i++;
            continue;
        }
        if (s[i] < 0xC2 || s[i] > 0xF4) return false;
        size_t k = s[i] < 0xE0 ? 2 : s[i] < 0xF0 ? 3 : 4;
        if (k > n - i) return false;
        unsigned lo = s[i] == 0xE0 ? 0xA0 : s[i] == 0xF0 ? 0x90 : 0x80;
        unsigned hi = s[i] == 0xED ? 0x9F : s[i] == 0xF4 ? 0x8F : 0xBF;
        if (s[i + 1] < lo || s[i + 1] > hi) return false;
        for (size_t j = 2; j < k; j++)
            if (s[i + j] < 0x80 || s[i + j] > 0xBF) return false;
        i += k;
    }
    return true;
}

const char *hn_gguf_key_fault(const char *s, size_t len)
{
    if (len == 0) return "is empty";
    if (len > HN_GGUF_MAX_KEY) return "is longer than 65535 bytes";
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == 0) return "contains a NUL byte";
        if (c < 0x20 || c == 0x7F) return "contains a control byte";
    }
    return utf8_ok((const unsigned char *)s, len) ? NULL : "is not valid UTF-8";
}

const char *hn_gguf_name_fault(const char *s, size_t len, size_t max)
{
    if (len == 0) return "is empty";
    if (len > max) return max == HN_GGUF_MAX_NAME ? "is longer than 255 bytes" : "is longer than 63 bytes";
    if (memchr(s, 0, len)) return "contains a NUL byte";
    return utf8_ok((const unsigned char *)s, len) ? NULL : "is not valid UTF-8";
}

/* ---- SipHash-2-4 -------------------------------------------------------------------- */

static uint64_t rol(uint64_t x, int n) { return x << n | x >> (64 - n); }

static void sip_round(uint64_t v[4])
{
    v[0] += v[1], v[2] += v[3];
    v[1] = rol(v[1], 13) ^ v[0], v[3] = rol(v[3], 16) ^ v[2];
    v[0] = rol(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rol(v[1], 17) ^ v[2], v[3] = rol(v[3], 21) ^ v[0];
    v[2] = rol(v[2], 32);
}

uint64_t hn_siphash(const uint64_t key[2], const void *p, size_t n)
{
    const unsigned char *b = p;
    uint64_t v[4] = { key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                      key[1] ^ 0x7465646279746573u };
    for (size_t left = n;; left -= 8, b += 8) {
        uint64_t m = 0;
        for (size_t i = 0; i < (left < 8 ? left : 8); i++) m |= (uint64_t)b[i] << (8 * i);
        if (left < 8) m |= (uint64_t)n << 56;
        v[3] ^= m;
        sip_round(v);
        sip_round(v);
        v[0] ^= m;
        if (left < 8) break;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- the index: open addressing, at most half full ---------------------------------- */

static const hone_str *record(const void *base, size_t stride, uint32_t i)
{
    return (const hone_str *)((const char *)base + stride * i);
}

static void seed(uint64_t key[2])
{
    if (hn_os_random(key, 16)) return;
    struct timespec t = { 0 }; /* before the kernel's pool is ready: the best there is */
    clock_gettime(CLOCK_REALTIME, &t);
    key[0] = hn_mix64((uint64_t)t.tv_nsec ^ (uint64_t)(uintptr_t)key);
    key[1] = hn_mix64((uint64_t)t.tv_sec ^ key[0] ^ (uint64_t)(uintptr_t)&seed);
}

/* The slot holding this name, or the empty one where it belongs. */
static uint64_t probe(const hn_index *ix, const void *base, size_t stride, const char *s, size_t len)
{
    uint64_t mask = ix->n_slot - 1, at = hn_siphash(ix->key, s, len) & mask;
    for (; ix->slot[at]; at = (at + 1) & mask) {
        const hone_str *o = record(base, stride, ix->slot[at] - 1);
        if (o->len == len && memcmp(o->ptr, s, len) == 0) break;
    }
    return at;
}

bool hn_index_add(hn_index *ix, const void *base, size_t stride, uint32_t i, int64_t *dup)
{
    *dup = -1;
    if (2 * (ix->n + 1) > ix->n_slot) {
        hn_index big = { .n_slot = ix->n_slot ? 2 * ix->n_slot : 16, .n = ix->n, .key = { ix->key[0], ix->key[1] } };
        if (!ix->n_slot) seed(big.key);
        big.slot = calloc(big.n_slot, sizeof *big.slot);
        if (!big.slot) return false;
        for (uint64_t k = 0; k < ix->n_slot; k++) {
            if (!ix->slot[k]) continue;
            const hone_str *s = record(base, stride, ix->slot[k] - 1);
            /* names are distinct already; comparing would re-read the file's bytes */
            uint64_t at = hn_siphash(big.key, s->ptr, s->len) & (big.n_slot - 1);
            while (big.slot[at]) at = (at + 1) & (big.n_slot - 1);
            big.slot[at] = ix->slot[k];
        }
        free(ix->slot);
        *ix = big;
    }
    const hone_str *s = record(base, stride, i);
    uint64_t at = probe(ix, base, stride, s->ptr, s->len);
    if (ix->slot[at]) {
        *dup = ix->slot[at] - 1;
        return true;
    }
    ix->slot[at] = i + 1;
    ix->n++;
    return true;
}

int64_t hn_index_find(const hn_index *ix, const void *base, size_t stride, const char *s, size_t len)
{
    if (!ix->n_slot) return -1;
    return (int64_t)ix->slot[probe(ix, base, stride, s, len)] - 1;
}

void hn_index_free(hn_index *ix)
{
    free(ix->slot);
    *ix = (hn_index){ 0 };
}
