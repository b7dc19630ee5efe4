/* Fuzz target: the packed side file. The bytes as they are, and with a checksum that fits, so
 * that what is behind it is reached; every byte an accepted file hands out is read.
 * covers: src/gguf/pack_file.c */
#include "gguf/pack_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROMISE(x)         \
    do {                   \
        if (!(x)) abort(); \
    } while (0)

static void walk(const uint8_t *data, size_t size)
{
    hn_packed *p;
    hone_error err = { 0 };
    hone_status st = hn_packed_parse(&p, data, size, "fuzz", &err);
    if (st != HONE_OK) {
        PROMISE(!p && strncmp(err.message, "fuzz: ", 6) == 0);
        return;
    }
    const unsigned char *last = data + HN_PACKED_HEADER;
    unsigned sum = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        const hn_packed_entry *e = &p->e[i];
        const unsigned char *at = e->data;
        PROMISE(at >= last && e->n_bytes <= (uint64_t)(data + size - at) && e->offset % 64 == 0 && e->name.len >= 1 &&
                e->name.len <= HN_GGUF_MAX_NAME);
        for (uint64_t k = 0; k < e->n_bytes; k++) sum += at[k];
        for (size_t k = 0; k < e->name.len; k++) sum += (unsigned char)e->name.ptr[k];
        if (e->kind == HN_PACKED_MATRIX) {
            const hn_type_info *ti = hn_type_get((uint32_t)e->type);
            unsigned char *row = malloc((size_t)hn_row_bytes(ti, e->n_in));
            size_t group = hn_packed_group_bytes(e->type, (int64_t)e->n_in), n = e->n_bytes / group;
            if (row && n)
                hn_unpack_blocks(e->type, row, at + (n - 1) * group, (int64_t)e->n_in, 15, 0,
                                 (int64_t)(e->n_in / ti->block_elems));
            free(row);
        }
        last = at + e->n_bytes;
    }
    PROMISE(sum || !p->n || size);
    hn_packed_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk(data, size);
    if (size < HN_PACKED_HEADER) return 0;
    uint8_t *copy = malloc(size);
    if (!copy) return 0;
    memcpy(copy, data, size);
    uint64_t n_dir = 0;
    for (int i = 0; i < 8; i++) n_dir |= (uint64_t)copy[32 + i] << (8 * i);
    for (int i = 0; i < 8; i++) copy[16 + i] = (uint8_t)((uint64_t)size >> (8 * i));
    memcpy(copy, "HONEPACK\2\0\0\0", 12);
    copy[12] = HN_PACK_VERSION, copy[13] = copy[14] = copy[15] = 0;
    if (n_dir <= size - HN_PACKED_HEADER) {
        hn_sha256 s;
        hn_sha256_init(&s);
        hn_sha256_add(&s, copy, 112);
        hn_sha256_add(&s, copy + HN_PACKED_HEADER, (size_t)n_dir);
        hn_sha256_end(&s, copy + 112);
    }
    walk(copy, size);
    free(copy);
    return 0;
}
