/* utf8: see utf8.h. */
#include "base/utf8.h"
#include "base/unicode_classes.h"

#include <pthread.h>

static hn_class_table table; /* written once under once_table, then constant */
static pthread_once_t once_table = PTHREAD_ONCE_INIT;

/* Blocks 0..8 hold nothing but one class; mixed blocks follow. */
static void make_table(void)
{
    enum { N_RUNS = sizeof unicode_runs / sizeof *unicode_runs };
    unsigned n_block = HN_CLASS_SPACE + 1;
    for (unsigned c = 0; c < n_block; c++) memset(table.cls[c], (int)c, 256);
    uint32_t r = 0; /* run that holds the current code point */
    for (uint32_t b = 0; b < 0x1100; b++) {
        uint32_t cp = b << 8, end = cp + 256;
        while (r + 1 < N_RUNS && unicode_runs[r + 1] >> 4 <= cp) r++;
        if (r + 1 >= N_RUNS || unicode_runs[r + 1] >> 4 >= end) {
            table.block[b] = unicode_runs[r] & 15;
            continue;
        }
        table.block[b] = (uint8_t)n_block;
        for (; cp < end; cp++) {
            while (r + 1 < N_RUNS && unicode_runs[r + 1] >> 4 <= cp) r++;
            table.cls[n_block][cp & 255] = unicode_runs[r] & 15;
        }
        n_block++; /* 15.1 has 146 mixed blocks; a test compares every code point */
    }
}

const hn_class_table *hn_class_table_get(void)
{
    pthread_once(&once_table, make_table);
    return &table;
}

int32_t hn_utf8_next(const unsigned char *s, size_t n, size_t *used)
{
    unsigned c = s[0];
    *used = 1;
    if (c < 0x80) return (int32_t)c;
    if (c < 0xC2 || c > 0xF4) return HN_UTF8_BAD;
    size_t k = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    /* second byte: E0 A0-BF, ED 80-9F, F0 90-BF, F4 80-8F, else 80-BF (Unicode table 3-7) */
    unsigned lo = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    unsigned hi = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    uint32_t cp = c & (0x7Fu >> k);
    for (size_t i = 1; i < k; i++) {
        if (i == n) return *used = i, HN_UTF8_CUT;
        if (s[i] < lo || s[i] > hi) return *used = i, HN_UTF8_BAD;
        cp = cp << 6 | (s[i] & 0x3Fu);
        lo = 0x80;
        hi = 0xBF;
    }
    *used = k;
    return (int32_t)cp;
}

int hn_str_compare(hone_str a, hone_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

size_t hn_utf8_put(char *dst, uint32_t cp)
{
    unsigned char *d = (unsigned char *)dst;
    if (cp < 0x80) return d[0] = (unsigned char)cp, 1;
    if (cp < 0x800) return d[0] = (unsigned char)(0xC0 | cp >> 6), d[1] = (unsigned char)(0x80 | (cp & 63)), 2;
    if (cp < 0x10000) {
        d[0] = (unsigned char)(0xE0 | cp >> 12);
        d[1] = (unsigned char)(0x80 | (cp >> 6 & 63));
        d[2] = (unsigned char)(0x80 | (cp & 63));
        return 3;
    }
    d[0] = (unsigned char)(0xF0 | cp >> 18);
    d[1] = (unsigned char)(0x80 | (cp >> 12 & 63));
    d[2] = (unsigned char)(0x80 | (cp >> 6 & 63));
    d[3] = (unsigned char)(0x80 | (cp & 63));
    return 4;
}
