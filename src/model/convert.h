/* convert: checkpoints of other programs become GGUF. Containers (safetensors, rwkv.cpp)
 * are read into one list of tensors, whose sizes and places are checked against the files;
 * an architecture's names turn the list into a plan of output tensors; one writer carries
 * the plan out. Knows files and names; refuses to know how a model is run. */
#ifndef HN_CONVERT_H
#define HN_CONVERT_H

#include "base/json.h"
#include "gguf/gguf.h"

/* ---- files ---------------------------------------------------------------------------- */

typedef struct hn_source { const char *path; int fd; uint64_t size; } hn_source; /* path borrowed */

/* A regular file; nothing else is waited for. Zero-filled with fd -1 on failure. */
hone_status hn_source_open(hn_source *s, const char *path, hone_error *err);
void hn_source_close(hn_source *s);
hone_status hn_source_read(const hn_source *s, uint64_t off, void *dst, uint64_t n, hone_error *err);
/* The whole of a text file of at most max bytes, with a NUL behind it; free() it. */
hone_status hn_source_text(char **text, size_t *len, const char *path, uint64_t max, hone_error *err);
/* True if dst names the file that s reads. */

/* ---- JSON from strangers: read in passing, nothing is built ------------------------------ */

/* As hn_jread_begin, with room: the text is changed while it is read, strings are unescaped in place. */
hone_status hn_convert_json(hn_jread *j, char *text, size_t len, const char *path, const char *what, hone_error *err);

/* The members of an object, as config.json is. Python's NaN and Infinity count as null. */
typedef struct hn_member {
    hone_str key; /* first, as hn_index wants */
    enum { HN_J_NULL, HN_J_BOOL, HN_J_NUMBER, HN_J_STRING, HN_J_OTHER } kind;
    double num;   /* BOOL: 0 or 1 */
    hone_str str; /* of a string, or the text of an array or object */
} hn_member;
typedef struct hn_config { char *path, *text; hn_member *m; size_t n, cap; hn_index ix; } hn_config;
/* Zero-initialize; free also after a failure. */
hone_status hn_config_load(hn_config *c, const char *path, hone_error *err);
void hn_config_free(hn_config *c);
const hn_member *hn_config_get(const hn_config *c, const char *key); /* NULL: absent or null */

/* ---- checkpoints: tensors of one or several files ---------------------------------------- */

enum { HN_CKPT_MAX_DIM = 8, HN_CKPT_MAX_TENSORS = 1 << 20, HN_CKPT_MAX_PARTS = 512, HN_CKPT_MAX_NAME = 255 };

typedef struct hn_ckpt_tensor {
    hone_str name;    /* first, as hn_index wants */
    int32_t part;
    hn_type type;     /* F64 F32 F16 BF16, or blocks */
    int32_t n_dim;
    uint64_t ne[HN_CKPT_MAX_DIM]; /* fastest first, padded with 1 */
    uint64_t off, n_bytes;        /* in its part; not aligned */
} hn_ckpt_tensor;

typedef struct hn_ckpt {
    const char *path;        /* as the user named it */
    char **part_path;        /* [n_part] owned */
    hn_source *part;         /* [n_part] */
    int32_t n_part;
    hn_ckpt_tensor *t;
    size_t n, cap;
    hn_index ix;
    hn_arena *arena;         /* names */
    hn_config config;        /* of a folder; no members: none */
    int version;             /* of the RWKV that the config names, 0: none */
    bool rwkv_cpp;           /* and what the header of such a file says: */
    uint32_t n_vocab, n_embd, n_layer;
} hn_ckpt;

hone_status hn_ckpt_new(hn_ckpt **out, const char *path, hone_error *err);
void hn_ckpt_free(hn_ckpt *c);
/* Opens one more file; *part is its number. */
hone_status hn_ckpt_add_part(hn_ckpt *c, const char *path, int32_t *part, hone_error *err);
/* Takes a tensor whose place was checked; its name is copied. */
hone_status hn_ckpt_add(hn_ckpt *c, const hn_ckpt_tensor *t, hone_error *err);
const hn_ckpt_tensor *hn_ckpt_find(const hn_ckpt *c, const char *name, size_t len);
/* "[2048, 64]", outermost first. */
#define HN_SHAPE(t) hn_ckpt_shape((char[160]){0}, (t))
const char *hn_ckpt_shape(char dst[160], const hn_ckpt_tensor *t);

/* Containers: every number of them is checked before anything is allocated by it. */
hone_status hn_safetensors_read(hn_ckpt *c, int32_t part, hone_error *err);
hone_status hn_rwkv_cpp_read(hn_ckpt *c, int32_t part, hone_error *err);
/* The safetensors files of a folder: model.safetensors, or the shards. */
hone_status hn_safetensors_folder(hn_ckpt *c, const char *folder, hone_error *err);

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

typedef struct hn_plan { hn_plan_tensor *t; size_t n, cap; uint32_t file_type; bool exact; } hn_plan;

enum { HN_PLAN_MAX_TRANSPOSED = 1 << 24 }; /* elements: such a tensor is held whole */

void hn_plan_free(hn_plan *p);
hone_status hn_plan_add(hn_plan *p, const hn_plan_tensor *t, hone_error *err);
/* Puts the tensors in the order of files (outside layers, then layer by layer, by name) and
 * chooses their types. type NULL: lossless, which looks at data: F32 whose low halves are all
 * zero becomes BF16. */
hone_status hn_plan_types(hn_plan *p, const hn_ckpt *c, const char *type, const hn_mix_model *mix, const hone_progress *pr, hone_error *err);
/* Announces the tensors to w and writes dst. */
hone_status hn_plan_write(const hn_plan *p, const hn_ckpt *c, hn_gguf_writer *w, const char *dst, const hone_progress *pr, hone_error *err);

/* ---- conversions --------------------------------------------------------------------------- */

/* What hone_convert was asked for; src is open. */
typedef struct hn_convert { const char *src, *tokenizer, *type, *dst; const hone_progress *pr; } hn_convert;

hone_status hn_convert_llama2c(const hn_convert *a, const hn_source *s, hone_error *err);
hone_status hn_convert_rwkv(const hn_convert *a, const hn_ckpt *c, hone_error *err);
/* True: an architecture of config.json that hn_convert_rwkv takes; *version 6 or 7. */
bool hn_convert_rwkv_knows(const char *arch, size_t len, int *version);

/* World vocabulary from its published text file, padded to n_vocab. template_: chat template. */
hone_status hn_world_put(hn_gguf_writer *w, const char *path, uint64_t n_vocab, hone_str chat_template, const char *ckpt, hone_error *err);

/* general.name from the last part of a path, without extension. */
hone_status hn_put_name(hn_gguf_writer *w, const char *path, hone_error *err);

#endif
