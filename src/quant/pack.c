/* The packed layout of pack.h, from one table of fields. */
#include "quant/pack.h"

/* n units of `size` bytes at `at` of a file block. */
typedef struct field {
    uint8_t at, size, n, change;
} field;
enum { AS_IS, REGROUP_BITS, PLUS_128 };

typedef struct layout {
    const field *f; /* in packed order; size 0 ends them */
    bool pairs;     /* the 2 bytes at d_at stand before each two blocks */
    uint8_t d_at;
} layout;

#define FIELDS(...)        \
    (const field[])        \
    {                      \
        __VA_ARGS__, { 0 } \
    }
/* h[8n+i], l[16n+i], l[16n+8+i] */
#define Q6_WORDS(n, i) \
    { 128 + 32 * (n) + 4 * (i), 4, 1, 0 }, { 64 * (n) + 4 * (i), 4, 1, 0 }, { 64 * (n) + 32 + 4 * (i), 4, 1, 0 }
#define Q6_HALF(n)                                                                                              \
    { 192 + 8 * (n), 4, 2, 0 }, Q6_WORDS(n, 0), Q6_WORDS(n, 1), Q6_WORDS(n, 2), Q6_WORDS(n, 3), Q6_WORDS(n, 4), \
        Q6_WORDS(n, 5), Q6_WORDS(n, 6), Q6_WORDS(n, 7)

static const layout layouts[HN_TYPE_COUNT] = {
    [HN_Q4_K] = { .f = FIELDS({ 0, 2, 2, 0 }, { 4, 4, 3, 0 }, { 16, 4, 32, 0 }) },
    [HN_Q5_K] = { .f = FIELDS({ 0, 2, 2, 0 }, { 4, 4, 3, 0 }, { 16, 4, 8, 0 }, { 48, 4, 32, 0 }) },
    [HN_Q6_K] = { .f = FIELDS(Q6_HALF(0), Q6_HALF(1)), .pairs = true, .d_at = 208 },
    [HN_IQ4_XS] = { .f = FIELDS({ 0, 2, 1, 0 }, { 2, 2, 1, 0 }, { 4, 4, 1, 0 }, { 8, 4, 32, 0 }) },
    [HN_Q4_0] = { .f = FIELDS({ 2, 4, 4, 0 }), .pairs = true },
    [HN_IQ4_NL] = { .f = FIELDS({ 2, 4, 4, 0 }), .pairs = true },
    [HN_Q5_0] = { .f = FIELDS({ 2, 4, 1, REGROUP_BITS }, { 6, 4, 4, 0 }), .pairs = true },
    [HN_Q8_0] = { .f = FIELDS({ 2, 4, 8, PLUS_128 }), .pairs = true },
    [HN_F16] = { .f = FIELDS({ 0, 2, 1, 0 }) },
    [HN_BF16] = { .f = FIELDS({ 0, 2, 1, 0 }) },
    [HN_F32] = { .f = FIELDS({ 0, 4, 1, 0 }) },
};

size_t hn_packed_block_bytes(hn_type t)
{
    size_t n = 0;
    for (const field *f = layouts[t].f; f && f->size; f++) n += (size_t)f->size * f->n * HN_PACK_ROWS;
    return n;
}

bool hn_can_pack(hn_type t) { return hn_packed_block_bytes(t) != 0; }

/* Bytes of nb blocks with their d. */
static size_t used_bytes(const layout *l, size_t block, size_t nb)
{
    return nb * block + (l->pairs ? (nb + 1) / 2 * 64 : 0);
}
/* Where block b begins. */
static size_t block_at(const layout *l, size_t block, size_t b)
{
    return l->pairs ? hn_pair_block(block, (int64_t)b) : b * block;
}

size_t hn_packed_group_bytes(hn_type t, int64_t n_in)
{
    size_t nb = (size_t)n_in / hn_type_get(t)->block_elems;
    return (used_bytes(&layouts[t], hn_packed_block_bytes(t), nb) + 63) & ~(size_t)63;
}

size_t hn_packed_bytes(hn_type t, int64_t n_in, int64_t n_out)
{
    return hn_packed_group_bytes(t, n_in) * (size_t)((n_out + HN_PACK_ROWS - 1) / HN_PACK_ROWS);
}

/* Word bit 8b+w ↔ bit 4w+b, so that (word >> w) & 01010101 are bits 4w … 4w+3. */
static uint32_t regroup_bits(uint32_t h, bool forth)
{
    uint32_t r = 0;
    for (int w = 0; w < 8; w++)
        for (int b = 0; b < 4; b++) {
            int file = 4 * w + b, packed = 8 * b + w;
            r |= forth ? (h >> file & 1) << packed : (h >> packed & 1) << file;
        }
    return r;
}

static uint32_t load4(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* The n words at src of sixteen rows, row bytes apart, as [n][16]. */
static void words_in(uint8_t *dst, const uint8_t *src, size_t row, int n)
{
    for (int u = 0; u < n; u++, src += 4)
        for (size_t i = 0; i < HN_PACK_ROWS; i++, dst += 4) memcpy(dst, src + i * row, 4);
}

static void halves_in(uint8_t *dst, const uint8_t *src, size_t row, int n)
{
    for (int u = 0; u < n; u++, src += 2)
        for (size_t i = 0; i < HN_PACK_ROWS; i++, dst += 2) memcpy(dst, src + i * row, 2);
}

static void regrouped_in(uint8_t *dst, const uint8_t *src, size_t row, int n)
{
    for (int u = 0; u < n; u++, src += 4)
        for (size_t i = 0; i < HN_PACK_ROWS; i++, dst += 4)
            memcpy(dst, &(uint32_t){ regroup_bits(load4(src + i * row), true) }, 4);
}

static void plus_128_in(uint8_t *dst, const uint8_t *src, size_t row, int n)
{
    for (int u = 0; u < n; u++, src += 4)
        for (size_t i = 0; i < HN_PACK_ROWS; i++, dst += 4)
            memcpy(dst, &(uint32_t){ load4(src + i * row) ^ 0x80808080u }, 4);
}

/* Types of one element a block: their field is the whole row. */
static bool is_plain(const layout *l) { return !l->pairs && l->f[0].n == 1 && l->f[1].size == 0; }

/* Sixteen whole rows. */
static void pack_rows(const layout *l, const hn_type_info *ti, uint8_t *group, const uint8_t *rows, size_t row,
                      size_t nb)
{
    if (is_plain(l)) { /* by pieces: sixteen rows a power of two apart would drive each other out of the cache */
        uint8_t tile[HN_PACK_ROWS][64];
        size_t size = l->f[0].size, n_bytes = nb * size;
        for (size_t at = 0; at < n_bytes; at += sizeof *tile) {
            size_t n = n_bytes - at < sizeof *tile ? n_bytes - at : sizeof *tile;
            for (size_t i = 0; i < HN_PACK_ROWS; i++) memcpy(tile[i], rows + i * row + at, n);
            (size == 2 ? halves_in : words_in)(group + at * HN_PACK_ROWS, tile[0], sizeof *tile, (int)(n / size));
        }
        return;
    }
    size_t block = hn_packed_block_bytes((hn_type)(l - layouts));
    for (size_t b = 0; b < nb; b++, rows += ti->block_bytes) {
        uint8_t *dst = group + block_at(l, block, b);
        for (const field *f = l->f; f->size; dst += (size_t)f->size * f->n * HN_PACK_ROWS, f++) {
            if (f->change == REGROUP_BITS) regrouped_in(dst, rows + f->at, row, f->n);
            else if (f->change == PLUS_128) plus_128_in(dst, rows + f->at, row, f->n);
            else if (f->size == 4) words_in(dst, rows + f->at, row, f->n);
            else halves_in(dst, rows + f->at, row, f->n);
        }
        if (!l->pairs) continue;
        halves_in(group + hn_pair_d(block, (int64_t)b), rows + l->d_at, row, 1);
        if (b + 1 == nb && b % 2 == 0) memset(group + hn_pair_d(block, (int64_t)b + 1), 0, 2 * HN_PACK_ROWS);
    }
}

/* Fewer than sixteen rows, into a group of zero bytes. */
static void pack_few(const layout *l, const hn_type_info *ti, uint8_t *group, const uint8_t *rows, size_t row,
                     int n_rows, size_t nb)
{
    size_t block = hn_packed_block_bytes((hn_type)(l - layouts));
    for (size_t b = 0; b < nb; b++)
        for (int i = 0; i < n_rows; i++) {
            const uint8_t *src = rows + (size_t)i * row + b * ti->block_bytes;
            uint8_t *dst = group + block_at(l, block, b);
            for (const field *f = l->f; f->size; f++)
                for (int u = 0; u < f->n; u++, dst += (size_t)f->size * HN_PACK_ROWS) {
                    const uint8_t *unit = src + f->at + u * f->size;
                    if (f->change == AS_IS) memcpy(dst + (size_t)i * f->size, unit, f->size);
                    else {
                        uint32_t v =
                            f->change == REGROUP_BITS ? regroup_bits(load4(unit), true) : load4(unit) ^ 0x80808080u;
                        memcpy(dst + (size_t)i * 4, &v, 4);
                    }
                }
            if (l->pairs) memcpy(group + hn_pair_d(block, (int64_t)b) + (size_t)i * 2, src + l->d_at, 2);
        }
}

void hn_pack_group(hn_type t, void *group, const void *rows, size_t row_bytes, int n_rows, int64_t n_in)
{
    const hn_type_info *ti = hn_type_get(t);
    const layout *l = &layouts[t];
    size_t nb = (size_t)n_in / ti->block_elems, all = hn_packed_group_bytes(t, n_in);
    size_t used = used_bytes(l, hn_packed_block_bytes(t), nb);
    if (n_rows == HN_PACK_ROWS) {
        memset((uint8_t *)group + used, 0, all - used);
        pack_rows(l, ti, group, rows, row_bytes, nb);
    } else {
        memset(group, 0, all); /* of the rows that are missing */
        pack_few(l, ti, group, rows, row_bytes, n_rows, nb);
    }
}

void hn_unpack_blocks(hn_type t, void *dst, const void *group, int64_t n_in, int i, int64_t b0, int64_t b1)
{
    const hn_type_info *ti = hn_type_get(t);
    const layout *l = &layouts[t];
    size_t block = hn_packed_block_bytes(t);
    uint8_t *out = dst;
    if (is_plain(l)) {
        size_t size = l->f[0].size;
        const uint8_t *src = (const uint8_t *)group + (size_t)b0 * block + (size_t)i * size;
        for (int64_t b = b0; b < b1; b++, src += block, out += size) memcpy(out, src, size);
        return;
    }
    for (size_t b = (size_t)b0; b < (size_t)b1; b++, out += ti->block_bytes) {
        const uint8_t *src = (const uint8_t *)group + block_at(l, block, b);
        for (const field *f = l->f; f->size; f++)
            for (int u = 0; u < f->n; u++, src += (size_t)f->size * HN_PACK_ROWS) {
                uint8_t *unit = out + f->at + u * f->size;
                if (f->change == AS_IS) memcpy(unit, src + (size_t)i * f->size, f->size);
                else {
                    uint32_t v = load4(src + (size_t)i * 4);
                    v = f->change == REGROUP_BITS ? regroup_bits(v, false) : v ^ 0x80808080u;
                    memcpy(unit, &v, 4);
                }
            }
        if (l->pairs) memcpy(out + l->d_at, (const uint8_t *)group + hn_pair_d(block, (int64_t)b) + (size_t)i * 2, 2);
    }
}
