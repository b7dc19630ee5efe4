/* lora: adapters of a model's matrices, y += scale·B(A·x), and their files. Formulas
 * and layouts: Hu et al. 2021; llama.cpp's adapter files; PEFT's folders. */
#ifndef HN_LORA_H
#define HN_LORA_H

#include "base/file.h"
#include "model/model.h"

enum { HN_LORA_MAX_RANK = 4096 };

typedef struct hn_lora_pair {
    char *name; /* of the base tensor: "blk.3.attn_q.weight" */
    int64_t n_in, n_out, rank;
    float *a, *b; /* [rank, n_in], [n_out, rank] in the GGUF's row order */
    float scale;  /* alpha/rank, or 1 where the file has no alpha */
} hn_lora_pair;

typedef struct hn_lora {
    char *path, *arch;
    char *name;             /* general.name or "" */
    char *chat_template;    /* Jinja source of the conversations it was trained on, or "" */
    char base_identity[65]; /* hone_model_identity of the base it was trained on, or "" */
    hn_lora_pair *pair;     /* [n_pair] in the base file's tensor order */
    int32_t n_pair;
    uint64_t hash; /* of names, shapes, values and scales */
} hn_lora;

/* What a file says besides its pairs. */
typedef struct hn_lora_about {
    const char *name, *arch, *base_name; /* base_name may be NULL */
    const hn_gguf *base;                 /* GGUF: calls matrices as this file does; NULL: as the pairs do */
    const char *base_identity;           /* as above; may be NULL */
    const char *chat_template;           /* as above; may be NULL */
    float alpha;                         /* scale·rank; with rank-stabilised scaling alpha·√rank */
    float dropout;
    int64_t steps; /* trained; 0: unknown */
    bool rslora;
    hn_type type; /* HN_F32 or HN_F16 */
} hn_lora_about;

/* A GGUF adapter or a PEFT folder for m: every pair is there whole, names a matrix of m and fits it. */
hone_status hn_lora_open(hn_lora **out, const hone_model *m, const char *path, hone_error *err);
/* The same of an open GGUF file, which stays the caller's. */
hone_status hn_lora_from_gguf(hn_lora **out, const hone_model *m, const hn_gguf *file, hone_error *err);
void hn_lora_close(hn_lora *l);
/* Atomic: a file of that name is replaced when the new one is complete. A pair whose scale is not alpha/rank
 * has the difference multiplied into its B, since the file holds one alpha. */
hone_status hn_lora_write_gguf(const char *path, const hn_lora_pair *pair, int32_t n_pair, const hn_lora_about *about,
                               hone_error *err);
/* adapter_config.json and adapter_model.safetensors in folder path (made); q and k rows in Hugging Face's order. */
hone_status hn_lora_write_peft(const char *path, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair,
                               const hn_lora_about *about, hone_error *err);
/* HONE_E_ARG where a new adapter at dst (peft: a folder) would replace one of the n_read files that are read. */
hone_status hn_lora_apart(const char *dst, bool peft, const hn_file_use *read, size_t n_read, hone_error *err);

/* ---- what the two readers share (lora.c) ------------------------------------------------------ */

typedef struct hn_lora_build {
    hn_lora *l;
    const hone_model *m;
    int32_t *slot; /* [tensors of m] 1 + its pair; 0: none */
    int32_t cap;
} hn_lora_build;

/* Zero-filled on failure; hn_lora_end must follow in either case. */
hone_status hn_lora_begin(hn_lora_build *b, const hone_model *m, const char *path, hone_error *err);
/* Room for A [rank, n_in] (is_b: B [n_out, rank]) of base tensor `base`, to be filled with finite numbers. file,
 * tensor: for messages. */
hone_status hn_lora_half(hn_lora_build *b, float **dst, hn_lora_pair **pair, hone_str base, bool is_b, uint64_t rows,
                         uint64_t cols, const char *file, hone_str tensor, hone_error *err);
/* The NaN or infinity in x[n] by name, or HONE_OK. */
hone_status hn_lora_check(const float *x, uint64_t n, const char *file, hone_str tensor, hone_error *err);
/* st: how the reading went. All pairs whole? Then *out; scales are set by the caller before. */
hone_status hn_lora_end(hn_lora_build *b, hone_status st, hn_lora **out, hone_error *err);
/* PEFT's side of hn_lora_open and lora_peft.c's of it. */
hone_status hn_lora_read_peft(hn_lora **out, const hone_model *m, const char *folder, hone_error *err);

#endif
