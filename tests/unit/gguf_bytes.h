/* Builds GGUF files byte by byte, right or wrong, for tests. Knows the format from the
 * document, not from src/gguf: nothing here calls the writer. */
#ifndef HN_GGUF_BYTES_H
#define HN_GGUF_BYTES_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bb {
    unsigned char *p;
    size_t n, cap;
} bb;

static inline void bb_raw(bb *b, const void *p, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = 2 * (b->n + n);
        b->p = realloc(b->p, b->cap);
        assert(b->p);
    }
    if (n && p) memcpy(b->p + b->n, p, n);
    else if (n) memset(b->p + b->n, 0, n);
    b->n += n;
}
static inline void bb_le(bb *b, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) bb_raw(b, &(unsigned char){ (unsigned char)(v >> (8 * i)) }, 1);
}
static inline void bb_u8(bb *b, uint32_t v) { bb_le(b, v, 1); }
static inline void bb_u32(bb *b, uint32_t v) { bb_le(b, v, 4); }
static inline void bb_u64(bb *b, uint64_t v) { bb_le(b, v, 8); }
static inline void bb_strn(bb *b, const char *s, size_t n)
{
    bb_u64(b, n);
    bb_raw(b, s, n);
}
static inline void bb_str(bb *b, const char *s) { bb_strn(b, s, strlen(s)); }
static inline bb bb_head(uint32_t version, uint64_t n_tensor, uint64_t n_kv)
{
    bb b = { 0 };
    bb_raw(&b, "GGUF", 4);
    bb_u32(&b, version);
    bb_u64(&b, n_tensor);
    bb_u64(&b, n_kv);
    return b;
}
static inline void bb_kv(bb *b, const char *key, uint32_t type, uint64_t v, int size)
{
    bb_str(b, key);
    bb_u32(b, type);
    bb_le(b, v, size);
}
static inline void bb_kv_u32(bb *b, const char *key, uint32_t v) { bb_kv(b, key, 4, v, 4); }
static inline void bb_kv_str(bb *b, const char *key, const char *s)
{
    bb_str(b, key);
    bb_u32(b, 8);
    bb_str(b, s);
}
static inline void bb_kv_array(bb *b, const char *key, uint32_t et, uint64_t n)
{
    bb_str(b, key);
    bb_u32(b, 9);
    bb_u32(b, et);
    bb_u64(b, n);
}
static inline void bb_tensor(bb *b, const char *name, uint32_t n_dim, const uint64_t *ne, uint32_t type, uint64_t off)
{
    bb_str(b, name);
    bb_u32(b, n_dim);
    for (uint32_t i = 0; i < n_dim; i++) bb_u64(b, ne[i]);
    bb_u32(b, type);
    bb_u64(b, off);
}
static inline void bb_pad(bb *b, size_t a) { bb_raw(b, NULL, (a - b->n % a) % a); }
static inline void bb_free(bb *b)
{
    free(b->p);
    *b = (bb){ 0 };
}
static inline void bb_save(const bb *b, const char *path)
{
    FILE *f = fopen(path, "wb");
    assert(f);
    size_t k = b->n ? fwrite(b->p, 1, b->n, f) : 0;
    int r = fclose(f);
    assert(k == b->n && r == 0);
    (void)k, (void)r;
}
#define NE(...) ((const uint64_t[]){ __VA_ARGS__ })

#endif
