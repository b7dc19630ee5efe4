/* init: a model file to begin training from. */
#ifndef HN_INIT_H
#define HN_INIT_H

#include "model/model.h"
#include "text/bpe.h"

typedef struct hn_init {
    const char
        *config; /* file: the shape, in the JSON form of `hone synth --config`; n_vocab may be left to the tokenizer */
    const hn_bpe *bpe; /* the tokenizer: this one … */
    int32_t bos, eos;  /* … with ids of its special tokens, -1: none … */
    bool add_bos;
    const hone_model *tokenizer; /* … or that of another model */
    const char *name;            /* general.name; NULL: of the file */
    uint64_t seed;
} hn_init;

/* Writes a model with F32 weights to begin training from: matrices of mean 0 and deviation 0.02, those that write to
 * the residual stream (attn_output, ffn_down) of 0.02/√(2·n_layer) (Radford et al. 2019, section 2.3), norms 1, biases
 * 0. Values depend on (seed, tensor name) alone. Atomic. HONE_E_UNSUPPORTED: a recurrent architecture. */
hone_status hn_init_model(const char *dst, const hn_init *p, hone_error *err);

#endif
