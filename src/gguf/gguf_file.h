/* gguf_file: a file as gguf_read.c has read it, for gguf_values.c, which hands it out. Nobody else includes this. */
#ifndef HN_GGUF_FILE_H
#define HN_GGUF_FILE_H

#include "gguf/gguf.h"

typedef struct hn_gguf_entry {
    hone_kv kv; /* first: begins with the key, as hn_index wants */
    const unsigned char *elems;
    uint64_t n_bytes; /* of the elements, arrays only */
    const unsigned char *raw;
    uint64_t raw_len;
} hn_gguf_entry;

typedef struct hn_gguf_table {
    hn_gguf_entry *e;
    uint64_t n;
    hn_index ix;
} hn_gguf_table;

typedef struct hn_gguf_part {
    const unsigned char *map;
    uint64_t size;
    hn_file_stamp stamp;
    char *file;  /* its name */
    bool mapped; /* map is ours to unmap */
    char *label; /* escaped path, for messages */
    uint32_t version;
    uint64_t align, dir_bytes, data_start;
    hn_gguf_table kv;
    uint64_t t0, n_tensor; /* its range in hn_gguf.t */
} hn_gguf_part;

struct hn_gguf {
    char *path;
    hn_gguf_part *parts;
    int32_t n_parts;
    hn_gguf_tensor *t;
    uint64_t n_t;
    hn_index t_ix;
    hn_arena *own;           /* what gguf_amend.c adds; NULL: nothing */
    hn_gguf_tensor *filed;   /* [n_t] in own: tensors as they were before it changed some; NULL: it changed none */
    hn_gguf_entry *filed_kv; /* [n_filed_kv] in own: the first part's entries, likewise */
    uint64_t n_filed_kv;
};

enum { HN_GGUF_VALUE_TYPES = HONE_KV_F64 + 1, HN_GGUF_SAID = 800 };

/* A value of the file is fetched once: what was compared must be what is used, even if
 * the mapping changes in between. The empty asm keeps the compiler from fetching again. */
#define FETCH_ONCE(v) __asm__ volatile("" : "+r"(v))

static inline uint32_t hn_load_u32(const unsigned char *p)
{
    uint32_t v = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    FETCH_ONCE(v);
    return v;
}

static inline uint64_t hn_load_u64(const unsigned char *p)
{
    uint64_t v = (uint64_t)hn_load_u32(p) | (uint64_t)hn_load_u32(p + 4) << 32;
    return v;
}

const hn_gguf_entry *hn_gguf_find_entry(const hn_gguf_table *t, const char *key); /* NULL: absent */
/* An integer of any type in [0, max]. Absent: *out and *found as said for hn_gguf_get_*. */
hone_status hn_gguf_get_uint(const hn_gguf_part *p, const char *key, uint64_t max, uint64_t *out, bool *found,
                             hone_error *err);
/* "u32 7", "string 'abc'", "array of 3 u32": what was seen, for messages. */
const char *hn_gguf_seen(char buf[HN_GGUF_SAID], const hone_kv *kv);
#define SEEN(kv) hn_gguf_seen((char[HN_GGUF_SAID]){ 0 }, (kv))

#endif
