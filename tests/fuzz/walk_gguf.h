/* Parses bytes as GGUF and uses everything the reader hands out, the way the rest of
 * hone would; aborts where a promise of gguf.h is broken. Shared by the fuzz target and
 * the structural mutator. */
#ifndef HN_WALK_GGUF_H
#define HN_WALK_GGUF_H

#include "gguf/gguf.h"
#include "must.h"

#include <stdio.h>
#include <stdlib.h>

static volatile uint64_t walk_sink;

static inline bool walk_inside(const void *p, uint64_t n, const void *buf, size_t len)
{
    const unsigned char *b = buf, *q = p;
    return n == 0 || (q >= b && (uint64_t)(q - b) <= len && n <= len - (uint64_t)(q - b));
}

static inline uint64_t walk_bytes(const void *p, uint64_t n)
{
    const unsigned char *b = p;
    uint64_t s = 0;
    for (uint64_t i = 0; i < n; i++) s += b[i];
    return s;
}

static inline void walk_array(const hn_gguf_array *a, const void *buf, size_t len, int depth)
{
    uint64_t pos = 0, n = 0;
    hone_str s;
    hn_gguf_array in;
    FF_MUST(depth <= HN_GGUF_MAX_DEPTH && walk_inside(a->data, a->n_bytes, buf, len));
    walk_sink += walk_bytes(a->data, a->n_bytes);
    if (a->elem_type == HONE_KV_STRING) {
        for (; hn_gguf_next_str(a, &pos, &s); n++) FF_MUST(walk_inside(s.ptr, s.len, buf, len));
        FF_MUST(n == a->count);
    } else if (a->elem_type == HONE_KV_ARRAY) {
        for (; hn_gguf_next_array(a, &pos, &in); n++) walk_array(&in, buf, len, depth + 1);
        FF_MUST(n == a->count);
    } else FF_MUST(a->n_bytes == a->count * hn_gguf_type_size(a->elem_type) && !hn_gguf_next_str(a, &pos, &s));
}

static inline void walk_entries(const hn_gguf *g, const void *buf, size_t len)
{
    static char key[HN_GGUF_MAX_KEY + 1];
    for (uint64_t i = 0; i < hn_gguf_n_kv(g); i++) {
        hone_kv kv;
        hn_gguf_kv(g, i, &kv);
        FF_MUST(kv.key.len >= 1 && kv.key.len <= HN_GGUF_MAX_KEY && walk_inside(kv.key.ptr, kv.key.len, buf, len));
        hone_str raw = hn_gguf_kv_raw(g, i);
        FF_MUST(walk_inside(raw.ptr, raw.len, buf, len) && raw.len > kv.key.len + 12);
        memcpy(key, kv.key.ptr, kv.key.len);
        key[kv.key.len] = 0;
        FF_MUST(hn_gguf_find(g, key) == (int64_t)i);
        uint32_t u;
        float f;
        bool b, found[5];
        hone_str s;
        hn_gguf_array a;
        int ok = 0;
        hone_error err;
        ok += hn_gguf_get_u32(g, key, &u, &found[0], &err) == HONE_OK;
        ok += hn_gguf_get_f32(g, key, &f, &found[1], &err) == HONE_OK;
        ok += hn_gguf_get_bool(g, key, &b, &found[2], &err) == HONE_OK;
        ok += hn_gguf_get_str(g, key, &s, &found[3], &err) == HONE_OK;
        ok += hn_gguf_get_array(g, key, &a, &found[4], &err) == HONE_OK;
        FF_MUST(ok <= 1 && found[0] && found[1] && found[2] && found[3] && found[4]);
        if (kv.type == HONE_KV_STRING) {
            FF_MUST(walk_inside(kv.v.s.ptr, kv.v.s.len, buf, len));
            walk_sink += walk_bytes(kv.v.s.ptr, kv.v.s.len);
        }
        FF_MUST(hn_gguf_kv_array(g, i, &a) == (kv.type == HONE_KV_ARRAY));
        if (kv.type == HONE_KV_ARRAY) walk_array(&a, buf, len, 1);
    }
}

static inline void walk_tensors(const hn_gguf *g, const void *buf, size_t len)
{
    static float y[4096];
    char name[HN_GGUF_MAX_NAME + 1];
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
        const hn_type_info *ti = hn_type_get((uint32_t)t->type);
        FF_MUST(ti && t->n_dim >= 1 && t->n_dim <= 4 && t->part == 0);
        FF_MUST(t->name.len >= 1 && t->name.len <= HN_GGUF_MAX_NAME && walk_inside(t->name.ptr, t->name.len, buf, len));
        memcpy(name, t->name.ptr, t->name.len);
        name[t->name.len] = 0;
        FF_MUST(hn_gguf_find_tensor(g, name) == t);
        uint64_t n = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
        FF_MUST(n >= 1 && n % ti->block_elems == 0 && n / ti->block_elems * ti->block_bytes == t->n_bytes);
        FF_MUST(walk_inside(t->data, t->n_bytes, buf, len));
        FF_MUST((uint64_t)((const unsigned char *)t->data - (const unsigned char *)buf) % hn_gguf_alignment(g) == 0);
        for (uint64_t k = 0; k < i && hn_gguf_n_tensors(g) < 64; k++) {
            const hn_gguf_tensor *o = hn_gguf_tensor_at(g, k);
            FF_MUST(t->offset >= o->offset + o->n_bytes || o->offset >= t->offset + t->n_bytes);
        }
        if (n > 1 << 20) continue;
        for (uint64_t at = 0; at < n; at += 4096) {
            ti->dequantize(y, (const unsigned char *)t->data + at / ti->block_elems * ti->block_bytes,
                           (int64_t)(n - at < 4096 ? n - at : 4096));
            walk_sink += hn_f32_bits(y[0]);
        }
    }
}

/* True if the bytes were accepted. */
static inline bool walk_gguf(const void *buf, size_t len)
{
    hn_gguf *g = NULL;
    hone_error err = { 0 };
    hone_status st = hn_gguf_parse(&g, buf, len, "fuzz", &err);
    if (st != HONE_OK) {
        FF_MUST(!g && err.code == st && strncmp(err.message, "fuzz: ", 6) == 0 &&
                strlen(err.message) < sizeof err.message);
        FF_MUST(st == HONE_E_FORMAT || st == HONE_E_UNSUPPORTED);
        for (const char *p = err.message; *p; p++) FF_MUST((unsigned char)*p >= 0x20 && *p != 0x7F);
        return false;
    }
    walk_entries(g, buf, len);
    walk_tensors(g, buf, len);
    walk_sink += hn_gguf_fingerprint(g);
    FF_MUST(hn_gguf_size(g) == len && (hn_gguf_version(g) == 2 || hn_gguf_version(g) == 3));
    hn_gguf_close(g);
    return true;
}

#endif
