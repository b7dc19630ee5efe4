/* sha1: SHA-1, plainly: what it hashes is small. */
#include "hub/sha1.h"

static uint32_t rol(uint32_t x, int n) { return x << n | x >> (32 - n); }

static void block(uint32_t *h, const unsigned char *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                     : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                              : (b ^ c ^ d) + 0xCA62C1D6;
        uint32_t t = rol(a, 5) + f + e + w[i];
        e = d, d = c, c = rol(b, 30), b = a, a = t;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

void hn_sha1_init(hn_sha1 *s)
{
    static const uint32_t h[5] = { 0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0 };
    memcpy(s->h, h, sizeof h);
    s->n = 0;
}

void hn_sha1_add(hn_sha1 *s, const void *p, size_t n)
{
    const unsigned char *b = p;
    size_t at = s->n % 64;
    s->n += n;
    while (n) {
        size_t k = 64 - at < n ? 64 - at : n;
        memcpy(s->buf + at, b, k);
        b += k, n -= k, at += k;
        if (at == 64) block(s->h, s->buf), at = 0;
    }
}

void hn_sha1_end(hn_sha1 *s, unsigned char out[20])
{
    unsigned char tail[72] = { 0x80 };
    uint64_t bits = s->n * 8;
    size_t pad = (s->n % 64 < 56 ? 56 : 120) - s->n % 64;
    for (int i = 0; i < 8; i++) tail[pad + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    hn_sha1_add(s, tail, pad + 8);
    for (int i = 0; i < 20; i++) out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
