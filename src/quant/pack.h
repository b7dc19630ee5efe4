/* pack: the layout for products of few columns. Sixteen rows side by side, so that a
 * lane of a register is a row: scales are vectors, no sum runs across lanes, and one
 * contiguous stream feeds a core. The same bytes as the rows, in another order.
 *
 * A group holds 16 consecutive rows of a matrix (the last one padded with zero rows).
 * Per block of the type, ascending in k, units of the sixteen rows stand together,
 * row 0 first, in the order in which a product meets them: one ascending stream. Where
 * d[16] does not fill a cache line, a line with the d of two blocks stands before the two
 * (the second half is zero where a row ends with the first):
 *
 *   Q4_K    d[16] dmin[16] as 2 bytes each; s[3][16] 4 bytes; q[32][16] 4 bytes          2304 a block
 *   Q5_K    d[16] dmin[16]; s[3][16]; h[8][16]; q[32][16]                                2816
 *   Q6_K    twice, n = 0, 1: s[2n, 2n+1][16]; for i < 8: h[8n+i] l[16n+i] l[16n+8+i]     3328 and d
 *   IQ4_XS  d[16]; scales_h[16] 2 bytes; scales_l[16] 4 bytes; q[32][16]                 2176
 *   Q4_0, IQ4_NL  q[4][16]                                                                256 and d
 *   Q5_0    h[16] bits regrouped: bit w of byte b is bit 4w+b of the block's h; q[4][16]  320 and d
 *   Q8_0    q[8][16], each code + 128                                                     512 and d
 *   F16, BF16  [n_in][16] 2 bytes;  F32  [n_in][16] 4 bytes
 *
 * Names of fields are those of quant.h; [i][16] of 4 bytes is the i-th 4-byte word of
 * the field in the sixteen rows. A group begins on a cache line and takes
 * hn_packed_group_bytes. Knows blocks and rows; refuses to know files and kernels. */
#ifndef HN_PACK_H
#define HN_PACK_H

#include "quant/quant.h"

enum { HN_PACK_ROWS = 16 };

/* Changes whenever a byte of any packed layout does. */
#define HN_PACK_VERSION 2

bool hn_can_pack(hn_type t);

/* Where block b and its d stand in a group of blocks of `bytes` that come in pairs behind their d. */
static inline size_t hn_pair_block(size_t bytes, int64_t b)
{
    return (size_t)(b / 2) * (2 * bytes + 64) + 64 + (size_t)(b % 2) * bytes;
}
static inline size_t hn_pair_d(size_t bytes, int64_t b)
{
    return (size_t)(b / 2) * (2 * bytes + 64) + (size_t)(b % 2) * 32;
}
/* The same of Q6_K's words: 4-byte word j of s, h, l in a block. */
static inline size_t hn_pack_q6_s(int j) { return (size_t)(1664 * (j / 2) + 64 * (j % 2)); }
static inline size_t hn_pack_q6_h(int j) { return (size_t)(1664 * (j / 8) + 128 + 192 * (j % 8)); }
static inline size_t hn_pack_q6_l(int j) { return (size_t)(1664 * (j / 16) + 192 + 192 * (j % 8) + 64 * (j / 8 % 2)); }

/* Bytes of one block of 16 rows without the d of a pair; 0: the type has no packed form. */
size_t hn_packed_block_bytes(hn_type t);
/* Bytes of a group of rows of n_in elements, a multiple of 64. */
size_t hn_packed_group_bytes(hn_type t, int64_t n_in);
/* Bytes of a matrix [n_out, n_in]. */
size_t hn_packed_bytes(hn_type t, int64_t n_in, int64_t n_out);
/* One group from n_rows ≤ 16 rows, row_bytes apart. */
void hn_pack_group(hn_type t, void *group, const void *rows, size_t row_bytes, int n_rows, int64_t n_in);
/* Blocks [b0, b1) of row i of a group, as in the file, to dst (packed blocks end to end). */
void hn_unpack_blocks(hn_type t, void *dst, const void *group, int64_t n_in, int i, int64_t b0, int64_t b1);

#endif
