/* lora_halves: the matrices A and B of an adapter's pairs as tensors of a recipe, whatever file they go to. Owns what
 * is written of a number and the words for one that cannot be; refuses to know containers. */
#ifndef HN_LORA_HALVES_H
#define HN_LORA_HALVES_H

#include "forge/recipe.h"
#include "model/lora.h"
#include "model/lora_modules.h"

typedef struct hn_lora_half_of {
    char name[HN_LORA_NAME + 8]; /* "blk.0.attn_q.weight.lora_a", or of a module, which GGUF could not name */
    const float *x;              /* the pair's, [rows, cols] */
    float factor;                /* of each number */
} hn_lora_half_of;

/* Of a piece, for recipes of adapters: these are small, and so is the memory that writing one takes. */
enum { HN_LORA_PIECE_BYTES = 64 << 10 };

typedef struct hn_lora_halves {
    hn_lora_half_of *half; /* [n] A and B in turn, in the order of the pairs */
    hn_recipe_tensor *t;   /* [n] */
    size_t n;
} hn_lora_halves;

/* HONE_E_ARG: no pairs, a type that adapters do not have, a name that is too long. Free it either way. */
hone_status hn_lora_halves_make(hn_lora_halves *out, const char *path, const hn_lora_pair *pair, int32_t n_pair,
                                hn_type type, hone_error *err);
void hn_lora_halves_free(hn_lora_halves *h);

#endif
