/* torch_bytes: archives as torch.save writes them, made by hand: members one behind the other, 64-aligned as torch has
 * them, a list of them, and the record that ends it. Made wrong where a test wants it. */
#ifndef HN_TORCH_BYTES_H
#define HN_TORCH_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct tb_member {
    const char *name;
    const void *data;
    size_t n;
} tb_member;

typedef struct tb_bytes {
    unsigned char *p;
    size_t n, cap;
} tb_bytes;

static void tb_add(tb_bytes *b, const void *p, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = 2 * (b->n + n) + 256;
        b->p = realloc(b->p, b->cap);
        if (!b->p) abort();
    }
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void tb_num(tb_bytes *b, int n, uint64_t v)
{
    for (int i = 0; i < n; i++) tb_add(b, &(unsigned char){ (unsigned char)(v >> 8 * i) }, 1);
}

enum { TB_WIDE = 1 /* sizes of 64 bits everywhere */ };

/* The local header (of the list where `at` is not −1) of a member. */
static void tb_header(tb_bytes *b, const tb_member *m, int64_t at, unsigned how, size_t pad)
{
    int list = at >= 0, wide = list && how & TB_WIDE;
    size_t extra = list ? (wide ? 28 : 0) : pad;
    tb_add(b, list ? "PK\1\2" : "PK\3\4", 4);
    if (list) tb_num(b, 2, 0);
    tb_num(b, 2, 0);
    tb_num(b, 2, list ? 0 : 8); /* flags: torch leaves sizes to the list */
    tb_num(b, 2, 0);            /* as it is */
    tb_num(b, 4, 0);            /* when */
    tb_num(b, 4, 0);            /* crc */
    for (int i = 0; i < 2; i++) tb_num(b, 4, !list ? 0 : wide ? UINT32_MAX : m->n);
    tb_num(b, 2, strlen(m->name));
    tb_num(b, 2, extra);
    if (list) {
        tb_num(b, 2, 0);
        tb_num(b, 2, 0);
        tb_num(b, 2, 0);
        tb_num(b, 4, 0);
        tb_num(b, 4, wide ? UINT32_MAX : (uint64_t)at);
    }
    tb_add(b, m->name, strlen(m->name));
    if (wide) {
        tb_num(b, 2, 1);
        tb_num(b, 2, 24);
        tb_num(b, 8, m->n);
        tb_num(b, 8, m->n);
        tb_num(b, 8, (uint64_t)at);
    } else if (!list && pad) {
        tb_add(b, "FB", 2);
        tb_num(b, 2, pad - 4);
        for (size_t i = 4; i < pad; i++) tb_add(b, "Z", 1);
    }
}

/* free() p. */
static tb_bytes tb_archive(const tb_member *m, size_t n, unsigned how)
{
    tb_bytes b = { 0 };
    size_t *at = calloc(n + 1, sizeof *at);
    if (!at) abort();
    for (size_t i = 0; i < n; i++) {
        size_t begin = b.n + 30 + strlen(m[i].name), pad = (64 - begin % 64) % 64;
        at[i] = b.n;
        tb_header(&b, &m[i], -1, how, pad && pad < 4 ? pad + 64 : pad);
        tb_add(&b, m[i].data, m[i].n);
    }
    size_t list = b.n;
    for (size_t i = 0; i < n; i++) tb_header(&b, &m[i], (int64_t)at[i], how, 0);
    size_t n_list = b.n - list, end = b.n;
    if (how & TB_WIDE) {
        tb_add(&b, "PK\6\6", 4);
        tb_num(&b, 8, 44);
        tb_num(&b, 4, 0);
        tb_num(&b, 8, 0);
        tb_num(&b, 8, n);
        tb_num(&b, 8, n);
        tb_num(&b, 8, n_list);
        tb_num(&b, 8, list);
        tb_add(&b, "PK\6\7", 4);
        tb_num(&b, 4, 0);
        tb_num(&b, 8, end);
        tb_num(&b, 4, 1);
    }
    tb_add(&b, "PK\5\6", 4);
    tb_num(&b, 4, 0);
    for (int i = 0; i < 2; i++) tb_num(&b, 2, how & TB_WIDE ? 0xFFFF : n);
    tb_num(&b, 4, how & TB_WIDE ? UINT32_MAX : n_list);
    tb_num(&b, 4, how & TB_WIDE ? UINT32_MAX : list);
    tb_num(&b, 2, 0);
    free(at);
    return b;
}

/* An archive of a pickle, with storages "0" to "2" of 64 bytes that count up. */
static __attribute__((unused)) tb_bytes tb_dict(const void *pickle, size_t n, unsigned how)
{
    unsigned char data[64];
    for (int i = 0; i < 64; i++) data[i] = (unsigned char)i;
    const tb_member m[] = { { "X/data.pkl", pickle, n }, { "X/byteorder", "little", 6 }, { "X/data/0", data, 64 },
                            { "X/data/1", data, 64 },    { "X/data/2", data, 64 },       { "X/version", "3\n", 2 } };
    return tb_archive(m, sizeof m / sizeof *m, how);
}

/* Pieces of pickles: names, a storage and a tensor of it, in protocol 2. */
#define TB_TENSOR "ctorch._utils\n_rebuild_tensor_v2\n"
#define TB_TEXT(n, s) "X" n "\0\0\0" s
#define TB_STORAGE(type, key, n) \
    "(" TB_TEXT("\7", "storage") "ctorch\n" type "\n" TB_TEXT("\1", key) TB_TEXT("\3", "cpu") n "tQ"
#define TB_HOOKS \
    "\x89"       \
    "ccollections\nOrderedDict\n)R"
#define TB_BYTES(s) (s), sizeof(s) - 1
/* {"w": [2, 3] of F32 from element 1 of "0"} */
#define TB_GOOD                            \
    "\x80\2}" TB_TEXT("\1", "w") TB_TENSOR \
        "(" TB_STORAGE("FloatStorage", "0", "K\x10") "K\1K\2K\3\x86K\3K\1\x86" TB_HOOKS "tRs."

#endif
