/* lora: adapters of a model's matrices, y += scale·B(A·x), and their files. Formulas
 * and layouts: Hu et al. 2021; llama.cpp's adapter files; PEFT's folders. */
#ifndef HN_LORA_H
#define HN_LORA_H

#include "model/model.h"

typedef struct hn_lora_pair {
    char *name;                /* of the base tensor: "blk.3.attn_q.weight" */
    int64_t n_in, n_out, rank;
    float *a, *b;              /* [rank, n_in], [n_out, rank] in the GGUF's row order */
    float scale;               /* alpha/rank, or 1 where the file has no alpha */
} hn_lora_pair;

typedef struct hn_lora {
    char *path, *arch;
    hn_lora_pair *pair;        /* [n_pair] in the base file's tensor order */
    int32_t n_pair;
    uint64_t hash;             /* of names, shapes, values and scales */
} hn_lora;

/* What a file says besides its pairs. */
typedef struct hn_lora_about {
    const char *name, *arch, *base_name;
    float alpha;               /* scale·rank; with rank-stabilised scaling alpha·√rank */
    float dropout;
    int64_t steps;             /* trained; 0: unknown */
    bool rslora;
    hn_type type;              /* HN_F32 or HN_F16 */
} hn_lora_about;

/* A GGUF adapter or a PEFT folder for m: every pair is there whole, names a matrix of m and fits it. */
hone_status hn_lora_open(hn_lora **out, const hone_model *m, const char *path, hone_error *err);
void hn_lora_close(hn_lora *l);
/* Atomic: a file of that name is replaced when the new one is complete. */
hone_status hn_lora_write_gguf(const char *path, const hn_lora_pair *pair, int32_t n_pair, const hn_lora_about *about, hone_error *err);
/* adapter_config.json and adapter_model.safetensors in folder path (made); q and k rows in Hugging Face's order. */
hone_status hn_lora_write_peft(const char *path, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair, const hn_lora_about *about, hone_error *err);

#endif
