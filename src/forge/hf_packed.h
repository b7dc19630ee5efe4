/* hf_packed: tensors of a folder whose numbers are stored otherwise: in eight bits with scales, in words of several
 * codes with scales and zeros, in blocks. Between who finds them (hf_quantized.c) and who reads them (hf_dequant.c). */
#ifndef HN_HF_PACKED_H
#define HN_HF_PACKED_H

#include "forge/hf.h"

typedef enum hn_packing {
    HN_PACKED_F8_E4M3,
    HN_PACKED_F8_E5M2,
    HN_PACKED_I8,
    HN_PACKED_WORDS,   /* compressed-tensors: codes of a row along words of 32 bits, the first in the lowest bits */
    HN_PACKED_GPTQ,    /* codes of a column along words, zeros of a row likewise */
    HN_PACKED_AWQ,     /* codes and zeros of a row along words, in its own order */
    HN_PACKED_MXFP4,   /* pairs of neighbours in a byte, a scale for 32 */
    HN_PACKED_NVFP4,   /* the same, a scale of eight bits for 16, and one factor */
    HN_PACKED_TERNARY, /* BitNet: rows r, r + n/4, … in two bits of a byte each, the first lowest; less 1; one scale */
    HN_PACKED_MASTER   /* its numbers before that: they become what they round to, of the mean of all magnitudes */
} hn_packing;

/* Rows [n_row, n_in] in matrices of n_out each; value = (code − zero) · scale. */
typedef struct hn_hf_packed {
    hn_hf_stored s; /* first */
    hn_packing how;
    int64_t codes, scale, zero, order; /* places in hn_ckpt.t; −1: none. order: the group of each column */
    uint64_t n_in, n_out, n_row;
    uint64_t block_in, block_out;     /* columns and rows of a matrix that share a scale; 0: the words' own groups */
    uint64_t n_scale_in, n_scale_out; /* so many scales of a matrix */
    int32_t bits;
    bool one_less;   /* zeros are stored less one */
    bool divides;    /* HN_PACKED_TERNARY: the scale */
    float beside[2]; /* as in s */
    float *scales;   /* held while the tensor is written */
    int32_t *orders;
    uint32_t *words, *zeros; /* of HN_PACKED_I8: bytes, one for each scale */
} hn_hf_packed;

/* Readers of one packing: `s` of an hn_hf_packed. */
void hn_hf_packed_reader(hn_hf_packed *p, hn_type as);

#endif
