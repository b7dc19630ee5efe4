/* typing: what a name of a type ("F16", "Q4_K_M") makes of the tensors of a file. Mixtures count tensors from layer to
 * layer, so all of a file are looked at together, also those that then keep what they have. Owns the order and the
 * numbers that the rules ask for; refuses to know the rules (quant/mixture.c) and what the tensors hold. */
#ifndef HN_TYPING_H
#define HN_TYPING_H

#include "model/model.h"
#include "quant/quant.h"

typedef struct hn_typing {
    const char *name; /* NULL: each keeps what it has */
    hn_type base;
    uint32_t file_type;
} hn_typing;

typedef struct hn_typed {
    hone_str name;
    const uint64_t *ne;
    int32_t n_dim;
    hn_type type; /* what it has now; then what it gets */
} hn_typed;

/* HONE_E_ARG: an unknown name; `expected` ends the message. */
hone_status hn_typing_begin(hn_typing *y, const char *name, const char *expected, hone_error *err);
/* The types of a file's tensors, all of them, in any order. */
hone_status hn_typing_of(hn_typing *y, const hn_mix_model *mix, hn_typed *t, size_t n, hone_error *err);
/* What mixtures ask of a model: of blocks that draft, too; hn_typing_of sees the rest by names of tensors. */
hn_mix_model hn_typing_model(const hone_model *m);
/* Can hone write rows of ne0 elements in this type? HONE_E_ARG: they do not fit. HONE_E_UNSUPPORTED: no encoder. */
hone_status hn_typing_check(const hn_typing *y, const char *name, hn_type type, uint64_t ne0, hone_error *err);
/* general.file_type of a file in which count[t] elements are of type t: that of most of them, 0 if it has none. */
uint32_t hn_file_type_of(const uint64_t count[HN_TYPE_COUNT]);
/* Types that hold single numbers, and are written as they are. */
static inline bool hn_is_float(hn_type t) { return t == HN_F32 || t == HN_F16 || t == HN_BF16; }

#endif
