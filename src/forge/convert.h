/* convert: checkpoints of other programs become GGUF. Containers (safetensors, rwkv.cpp)
 * are read into one list of tensors, whose sizes and places are checked against the files;
 * an architecture's names turn the list into a plan of output tensors; one writer carries
 * the plan out. Knows files and names; refuses to know how a model is run. */
#ifndef HN_CONVERT_H
#define HN_CONVERT_H

#include "model/ckpt.h"

/* The container of rwkv.cpp: every number of it is checked before anything is allocated by it. */
hone_status hn_rwkv_cpp_read(hn_ckpt *c, int32_t part, hone_error *err);

/* ---- plans ------------------------------------------------------------------------------- */

/* An output tensor: the elements of its sources, one after the other. With n_mat, each of the
 * n_mat matrices [n_row, n_col] of the only source is transposed. */
typedef struct hn_plan_tensor {
    char name[HN_GGUF_MAX_NAME_WRITE + 1];
    const hn_ckpt_tensor *src[6];
    int32_t n_src;
    uint64_t n_mat, n_row, n_col;
    bool always_f32;
    int32_t n_dim;
    uint64_t ne[4];
    hn_type type;
} hn_plan_tensor;

typedef struct hn_plan {
    hn_plan_tensor *t;
    size_t n, cap;
    uint32_t file_type;
    bool exact;
} hn_plan;

enum { HN_PLAN_MAX_TRANSPOSED = 1 << 24 }; /* elements: such a tensor is held whole */

void hn_plan_free(hn_plan *p);
hone_status hn_plan_add(hn_plan *p, const hn_plan_tensor *t, hone_error *err);
/* Puts the tensors in the order of files (outside layers, then layer by layer, by name) and
 * chooses their types. type NULL: lossless, which looks at data: F32 whose low halves are all
 * zero becomes BF16. */
hone_status hn_plan_types(hn_plan *p, const hn_ckpt *c, const char *type, const hn_mix_model *mix,
                          const hone_progress *pr, hone_error *err);
/* Announces the tensors to w and writes dst. */
hone_status hn_plan_write(const hn_plan *p, const hn_ckpt *c, hn_gguf_writer *w, const char *dst,
                          const hone_progress *pr, hone_error *err);

/* ---- conversions --------------------------------------------------------------------------- */

/* What hone_convert was asked for; src is open. */
typedef struct hn_convert {
    const char *src, *tokenizer, *type, *dst;
    const hone_progress *pr;
    const char *pre;
    void (*note)(void *arg, const char *text);
    void *note_arg;
} hn_convert;
/* What a user should know, in a sentence. */
void hn_convert_note(const hn_convert *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

hone_status hn_convert_llama2c(const hn_convert *a, const hn_source *s, hone_error *err);
hone_status hn_convert_rwkv(const hn_convert *a, const hn_ckpt *c, hone_error *err);
/* What would become of that checkpoint, config and all, of which no number is read: the plan (types not chosen;
 * hn_plan_free it, also after a failure) and all keys but the tokenizer's. */
hone_status hn_convert_rwkv_follow(hn_plan *plan, hn_gguf_writer *w, const hn_ckpt *c, hone_error *err);
/* True: an architecture of config.json that hn_convert_rwkv takes; *version 6 or 7. */
bool hn_convert_rwkv_knows(const char *arch, size_t len, int *version);

/* World vocabulary from its published text file, padded to n_vocab. template_: chat template. */
hone_status hn_world_put(hn_gguf_writer *w, const char *path, uint64_t n_vocab, hone_str chat_template,
                         const char *ckpt, hone_error *err);

/* And back: the text of that file, malloc'ed. HONE_E_UNSUPPORTED: the tokens are none of a World vocabulary. */
hone_status hn_world_write(const hn_gguf *g, uint64_t n_vocab, char **text, size_t *n, hone_error *err);

/* general.name from the last part of a path, without extension. */
hone_status hn_put_name(hn_gguf_writer *w, const char *path, hone_error *err);

#endif
