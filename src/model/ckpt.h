/* ckpt: checkpoints of other programs, as conversions and adapters read them: config.json, safetensors and the
 * shards of a folder, as one list of tensors whose sizes and places are checked against the files. Knows files and
 * names; refuses to know what the tensors mean. */
#ifndef HN_CKPT_H
#define HN_CKPT_H

#include "base/guard.h"
#include "base/json.h"
#include "base/source.h"
#include "gguf/gguf.h"

/* ---- JSON from strangers: read in passing, nothing is built ------------------------------ */

/* As hn_jread_begin, with room: the text is changed while it is read, strings are unescaped in place. */
hone_status hn_ckpt_json(hn_jread *j, char *text, size_t len, const char *path, const char *what, hone_error *err);

enum { HN_CONFIG_BYTES = 64 << 20 }; /* of a config.json at most */

/* The members of an object, as config.json is. Python's NaN and Infinity count as null. */
typedef struct hn_member {
    hone_str key; /* first, as hn_index wants */
    enum { HN_J_NULL, HN_J_BOOL, HN_J_NUMBER, HN_J_STRING, HN_J_OTHER } kind;
    double num;   /* BOOL: 0 or 1 */
    hone_str str; /* of a string, or the text of an array or object */
} hn_member;
typedef struct hn_config {
    char *path, *text;
    hn_member *m;
    size_t n, cap;
    hn_index ix;
} hn_config;
/* Zero-initialize; free also after a failure. */
hone_status hn_config_load(hn_config *c, const char *path, hone_error *err);
/* The same of a text, malloc'ed, which it takes and changes. path: of messages. */
hone_status hn_config_take(hn_config *c, const char *path, char *text, size_t len, hone_error *err);
void hn_config_free(hn_config *c);
const hn_member *hn_config_get(const hn_config *c, const char *key); /* NULL: absent or null */

/* ---- checkpoints: tensors of one or several files ---------------------------------------- */

enum {
    HN_CKPT_MAX_DIM = 8,
    HN_CKPT_MAX_TENSORS = HN_LIMIT(1 << 20, 1 << 9),
    HN_CKPT_MAX_PARTS = 512,
    HN_CKPT_MAX_NAME = 255
};

/* Numbers that are none of hone's: `type` then has their width alone, and nobody may take them for weights. */
typedef enum hn_ckpt_raw {
    HN_RAW_NOT = 0,
    HN_RAW_BOOL,
    HN_RAW_U8,
    HN_RAW_I8,
    HN_RAW_I16,
    HN_RAW_U16,
    HN_RAW_I32,
    HN_RAW_U32,
    HN_RAW_I64,
    HN_RAW_U64,
    HN_RAW_F8_E4M3,
    HN_RAW_F8_E5M2,
    HN_RAW_F8_E8M0,
    HN_RAW_KINDS
} hn_ckpt_raw;
const char *hn_ckpt_raw_name(hn_ckpt_raw raw); /* as safetensors has it: "I32" */

typedef struct hn_ckpt_tensor {
    hone_str name; /* first, as hn_index wants */
    int32_t part;
    hn_type type; /* F64 F32 F16 BF16, or blocks; of raw ones I8, I16, I32, I64 */
    hn_ckpt_raw raw;
    int32_t n_dim;
    uint64_t ne[HN_CKPT_MAX_DIM]; /* fastest first, padded with 1 */
    uint64_t off, n_bytes;        /* in its part; not aligned */
} hn_ckpt_tensor;

typedef struct hn_ckpt {
    const char *path; /* as the user named it */
    char **part_path; /* [n_part] owned */
    hn_source *part;  /* [n_part] */
    int32_t n_part;
    hn_ckpt_tensor *t;
    size_t n, cap;
    hn_index ix;
    hn_arena *arena;  /* names */
    hn_config config; /* of a folder; no members: none */
    bool no_weights;  /* the folder has no file of them; hn_ckpt_folder failed */
    bool takes_raw;   /* raw tensors may be there; else they are refused when the file is read */
    int version;      /* of the RWKV that the config names, 0: none */
    bool rwkv_cpp;    /* and what the header of such a file says: */
    uint32_t n_vocab, n_embd, n_layer;
} hn_ckpt;

hone_status hn_ckpt_new(hn_ckpt **out, const char *path, hone_error *err);
void hn_ckpt_free(hn_ckpt *c);
/* Opens one more file; *part is its number. */
hone_status hn_ckpt_add_part(hn_ckpt *c, const char *path, int32_t *part, hone_error *err);
/* One more without a name, of elements that lie otherwise in `path`, which messages name. */
hone_status hn_ckpt_add_scratch(hn_ckpt *c, const char *path, int32_t *part, hone_error *err);
/* Takes a tensor whose place was checked; its name is copied. */
hone_status hn_ckpt_add(hn_ckpt *c, const hn_ckpt_tensor *t, hone_error *err);
const hn_ckpt_tensor *hn_ckpt_find(const hn_ckpt *c, const char *name, size_t len);
/* "[2048, 64]", outermost first. */
#define HN_SHAPE(t) hn_ckpt_shape((char[160]){ 0 }, (t))
const char *hn_ckpt_shape(char dst[160], const hn_ckpt_tensor *t);

/* Containers: every number of them is checked before anything is allocated by it. */
hone_status hn_safetensors_read(hn_ckpt *c, int32_t part, hone_error *err);
/* By torch.save (torch_zip.c). hn_torch_is: does a file begin like one, of its first n bytes? */
bool hn_torch_is(const unsigned char *p, size_t n);
hone_status hn_torch_read(hn_ckpt *c, int32_t part, hone_error *err);
/* The files of a folder: model.safetensors, or its shards; without any, pytorch_model.bin, or its shards. */
hone_status hn_ckpt_folder(hn_ckpt *c, const char *folder, hone_error *err);

#endif
