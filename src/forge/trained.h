/* trained: a model's file with new values. Knows names, shapes and types; refuses to know how the values came to be. */
#ifndef HN_TRAINED_H
#define HN_TRAINED_H

#include "model/model.h"

typedef struct hn_trained_tensor {
    const char *name;
    const float *p; /* [rows, cols] */
    int64_t rows, cols;
} hn_trained_tensor;

typedef struct hn_trained {
    const hn_trained_tensor *tensor; /* [n_tensor] whole ones, by their names in base */
    int32_t n_tensor;
    const char
        *type; /* "F32", "F16", "BF16" or a mixture as "Q4_K_M"; NULL: as in base, but F32 where that is quantized */
    const char *name;          /* general.name; NULL: as base */
    const char *chat_template; /* tokenizer.chat_template, Jinja source; NULL: as base */
    int32_t n_threads;         /* 0: all cores */
} hn_trained;

/* Writes base with new values: its metadata and tensors in its order; trained matrices in the type asked for, vectors
 * F32, what was not trained as it is. Atomic. HONE_E_ARG: a tensor that base has not, or of another shape.
 * HONE_E_NUMERIC: a value that is not finite, or beyond the type; nothing is written. */
hone_status hn_write_trained(const char *dst, const hone_model *base, const hn_trained *p, hone_error *err);
/* The same without a file and without a look at the values: names, shapes and types. */
hone_status hn_check_trained(const hone_model *base, const hn_trained *p, hone_error *err);

#endif
