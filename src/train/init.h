/* init: model files before and after training. */
#ifndef HN_INIT_H
#define HN_INIT_H

#include "train/bpe.h"

typedef struct hn_init {
    const char *config;          /* file: the shape, in the JSON form of `hone synth --config`; n_vocab may be left to the tokenizer */
    const hn_bpe *bpe;           /* the tokenizer: this one … */
    int32_t bos, eos;            /* … with ids of its special tokens, -1: none … */
    bool add_bos;
    const hone_model *tokenizer; /* … or that of another model */
    const char *name;            /* general.name; NULL: of the file */
    uint64_t seed;
} hn_init;

/* Writes a model with F32 weights to begin training from: matrices of mean 0 and deviation 0.02, those that write to the
 * residual stream (attn_output, ffn_down) of 0.02/√(2·n_layer) (Radford et al. 2019, section 2.3), norms 1, biases 0. Values
 * depend on (seed, tensor name) alone. Atomic. HONE_E_UNSUPPORTED: a recurrent architecture. */
hone_status hn_init_model(const char *dst, const hn_init *p, hone_error *err);

typedef struct hn_trained {
    const hn_param *const *param; /* [n_param] whole tensors by their names in base */
    int32_t n_param;
    const char *type;             /* "F32", "F16", "BF16" or a mixture as "Q4_K_M"; NULL: as in base, but F32 where that is quantized */
    const char *name;             /* general.name; NULL: as base */
} hn_trained;

/* Writes base with new values: its metadata and tensors in its order; trained matrices in the type asked for, vectors F32,
 * what was not trained as it is. Atomic. HONE_E_ARG: a tensor that base has not, or of another shape. HONE_E_NUMERIC: a
 * value that is not finite, or beyond the type; nothing is written. */
hone_status hn_write_trained(const char *dst, const hone_model *base, const hn_trained *p, hone_error *err);
/* The same without a file and without a look at the values: names, shapes and types. */
hone_status hn_check_trained(const hone_model *base, const hn_trained *p, hone_error *err);

#endif
