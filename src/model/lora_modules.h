/* lora_modules: what Hugging Face's modules are in a model's file, and adapters carried from the one to the other. */
#ifndef HN_LORA_MODULES_H
#define HN_LORA_MODULES_H

#include "model/lora.h"

/* Heads of values that stand by their heads of keys in Hugging Face's matrix, and in the file the first of each key
 * before the second: rows (or columns) in front that are none, those of a head, heads of keys (0: nothing is in tiles),
 * heads of values for each. */
typedef struct hn_lora_tiles {
    int64_t front, per;
    int32_t n_key, each;
} hn_lora_tiles;

/* A matrix of Hugging Face's or of a file, as the matrices of the model that its rows are, in their order. */
typedef struct hn_lora_place {
    int32_t il, n_part; /* n_part 0: outside layers, or unknown here: it stands for itself */
    struct {
        size_t field; /* of hn_layer */
        int64_t rows;
        int32_t turned; /* heads whose rows are halves in Hugging Face's matrix and neighbours in the file; 0: none */
        hn_lora_tiles tiles;
    } part[HN_MAX_PART];
    hn_lora_tiles columns;
    bool dealt, module; /* of q, k and v the rows of each head of keys together; Hugging Face's, not the file's */
} hn_lora_place;

/* An adapter of such a matrix. */
typedef struct hn_lora_thing {
    hn_lora_place at;
    hn_lora_pair pair;
} hn_lora_thing;

/* Why PEFT adapters of the family are refused; NULL: they are not. */
const char *hn_modules_refused(const hone_model *m);
/* The same of writing them: names that fit no model are read, if hone wrote them, and not written. */
const char *hn_modules_unwritten(const hone_model *m);
/* PEFT's modules of the family have transposed weights (fan_in_fan_out). */
bool hn_modules_transposed(const hone_model *m);
/* What "model.layers.3.self_attn.q_proj" is, and the tensor that it is, or its first part, in the file or, where it is
 * in none, in the family's: *tensor "blk.3.attn_q.weight"; *alone: it is that tensor, row for row. False: the family
 * has no such module. */
bool hn_module_find(hn_lora_place *at, char tensor[96], bool *alone, const hone_model *m, hone_str module);
/* The module that a tensor outside layers is, or NULL. */
const char *hn_module_outside(const char *tensor);
/* What a tensor of the file is, by its name. False: it is none of a layer's. */
bool hn_module_tensor(hn_lora_place *at, const hone_model *m, const char *tensor);
/* The modules that the matrices of a tensor's place are in, [n] names of HN_LORA_NAME bytes each; −1: PEFT has no name
 * for one of them. */
enum { HN_LORA_NAME = 96 };
int hn_modules_of(char name[HN_MAX_PART][HN_LORA_NAME], hn_lora_place at[HN_MAX_PART], const hone_model *m,
                  const hn_lora_place *tensor);
/* The tensors of the file that the matrices of a module's place are in, likewise; −1: the file lacks one. */
int hn_modules_tensors(char name[HN_MAX_PART][HN_LORA_NAME], hn_lora_place at[HN_MAX_PART], const hone_model *m,
                       const hn_lora_place *module);
/* The rank of what `to` gets of n things, and how many of them give anything. */
int64_t hn_modules_rank(const hn_lora_place *to, const hn_lora_thing *thing, int32_t n, int32_t *n_source);
/* A [rank, n_in] and B [n_out, rank] of it: of one thing its A and its rows; of several their A below each other, each
 * one's B, times its scale, in its own columns. *scale: what then is the pair's. head_dim: of the model. */
void hn_modules_gather(float *a, float *b, float *scale, const hn_lora_place *to, int64_t rank,
                       const hn_lora_thing *thing, int32_t n, int64_t head_dim);
int64_t hn_modules_rows(const hn_lora_place *at);

#endif
