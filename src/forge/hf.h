/* hf: folders of Hugging Face's transformers (config.json, safetensors, tokenizer) become GGUF. A class of models is a
 * row: what its config's members are called in GGUF, and what its tensors are. Shapes come from the model's own reader
 * (the keys that were just made) and the family's slots, so a folder that disagrees with its config is told.
 *
 * Every tensor of the file is made of views, one behind the other: strided walks through one source each, with a map
 * of each number. Rotary pairs, fused and split matrices, stacks of experts, transposes, tiles: nothing else is needed,
 * and each view can be walked the other way, from the file into the folder. */
#ifndef HN_HF_H
#define HN_HF_H

#include "base/json_tree.h"
#include "forge/convert.h"
#include "forge/recipe.h"
#include "model/model.h"

typedef struct hn_hf hn_hf;

/* ---- views -------------------------------------------------------------------------------------------- */

enum { HN_HF_DIMS = 6 };

typedef enum hn_hf_map {
    HN_HF_SAME = 0,
    HN_HF_PLUS_ONE,  /* 1 + x */
    HN_HF_MINUS_EXP, /* −exp(x) */
    HN_HF_TIMES      /* x · by */
} hn_hf_map;

/* Elements of a source in the file's order: n[0] of them, stride[0] apart; n[1] such rows, stride[1] apart; … */
typedef struct hn_hf_view {
    const hn_ckpt_tensor *from;                        /* NULL: */
    const float *given;                                /* numbers of the config, in the arena */
    uint64_t first, n[HN_HF_DIMS], stride[HN_HF_DIMS]; /* in elements; n beyond what is used: 1 */
    hn_hf_map map;
    float by;
} hn_hf_view;

typedef struct hn_hf_tensor {
    char name[HN_GGUF_MAX_NAME_WRITE + 1];
    hn_type type; /* once types are chosen */
    int32_t n_dim;
    uint64_t ne[4]; /* fastest first, padded with 1 */
    bool always_f32;
    hn_type in_blocks;   /* of its sources; HN_TYPE_COUNT: they are not such. Once types are chosen */
    size_t view, n_view; /* hn_hf.v */
} hn_hf_tensor;

/* Numbers of a source that are stored otherwise (quantized): read through this. Any thread. */
typedef struct hn_hf_stored {
    hone_status (*read)(const hn_hf *f, const struct hn_hf_stored *s, uint64_t first, uint64_t n, float *x,
                        hone_error *err);
    /* The same as blocks of type `as`, where a conversion need not round: whole ones. NULL: there are none. */
    hone_status (*blocks)(const hn_hf *f, const struct hn_hf_stored *s, uint64_t first, uint64_t n, void *out,
                          hone_error *err);
    /* What is held while a tensor is made of it; NULL: nothing. `open` may come twice, `close` without it. */
    hone_status (*open)(const hn_hf *f, struct hn_hf_stored *s, hone_error *err);
    void (*close)(struct hn_hf_stored *s);
    hn_type as; /* what a conversion that rounds nothing makes of it */
    /* What all numbers are times, and those they are multiplied with, that blocks leave out; 0: nothing. */
    float beside[2];
} hn_hf_stored;

/* ---- classes ------------------------------------------------------------------------------------------ */

typedef enum HN_SMALL hn_hf_kind {
    HN_HF_U32 = 0,
    HN_HF_F32,
    HN_HF_BOOL,
    HN_HF_ONLY,   /* nothing is written: it must be `absent`, or not be there */
    HN_HF_WORD,   /* the same of a word: one of the words it says */
    HN_HF_MORE,   /* nothing here: `more` does it */
    HN_HF_TENSORS /* nothing is written: says whether layers have the slots of its words */
} hn_hf_kind;
typedef enum HN_SMALL hn_hf_when {
    HN_HF_NEEDED = 0,
    HN_HF_OPTIONAL, /* where it is absent, there is no key */
    HN_HF_USUALLY   /* where it is absent, it is `absent` */
} hn_hf_when;

typedef struct hn_hf_key {
    const char *config; /* "a|b": the first that is there; rows of a class come before those of all */
    const char *says;   /* the key in GGUF, below the architecture; "a|b": the same value under each (hn_hf_row_key); of
                       * WORD and TENSORS, which have none, words: "a|b" */
    hn_hf_kind kind;
    hn_hf_when when;
    float absent; /* as narrow as what is written: there are hundreds of rows */
} hn_hf_key;

/* NULL: the row has none. */
static inline const char *hn_hf_row_key(const hn_hf_key *k)
{
    return k->kind == HN_HF_WORD || k->kind == HN_HF_TENSORS ? NULL : k->says;
}

/* Where a slot of the family is in a layer, or outside layers (il −1). */
typedef struct hn_hf_at {
    const hn_slot *slot;
    const hn_layer_plan *plan; /* NULL: outside layers */
    int32_t il;
    const char *name; /* in the file */
    const char *hf;   /* in the folder, prefix and suffix too */
    int32_t n_dim;
    uint64_t ne[4]; /* as the slot says */
    hn_turn turn;   /* of the slot, or of the matrix whose bias it is */
} hn_hf_at;

/* Another name than the slot has (family.h), or another way than the slot's turn. */
typedef struct hn_hf_name {
    const char *gguf; /* without ".weight", ".bias"; or the whole name */
    const char *hf;   /* the same, behind "model.layers.IL." or "model."; "/…": behind nothing; "-": there is none */
    hone_status (*make)(hn_hf *f, const hn_hf_at *at, hone_error *err); /* NULL: hn_hf_plain */
} hn_hf_name;

/* Where a folder has blocks that draft further tokens. */
typedef enum HN_SMALL hn_hf_drafts {
    HN_HF_NO_DRAFTS = 0,
    HN_HF_BEHIND, /* as further layers: "model.layers.N.", N from num_hidden_layers on */
    HN_HF_MTP     /* "mtp.layers.0." and "mtp." */
} hn_hf_drafts;

typedef struct hn_hf_class {
    const char *names; /* architectures of config.json, "A|B" */
    /* The class itself, or, as the config says, another of the same names. NULL: itself. */
    const struct hn_hf_class *(*which)(const hn_hf *f);
    const char *types;         /* model_type, "a|b" */
    const char *arch;          /* general.architecture */
    const char *root;          /* before names: "model."; NULL: that */
    const char *front;         /* the same in folders that the way back writes; NULL: root */
    const char *layers;        /* "layers"; NULL: that */
    const hn_hf_key *keys;     /* own ones; the last has no config */
    const hn_hf_name *tensors; /* likewise; may be NULL */
    const char *idle;          /* members of the config that change no answer, or that `more` reads: "a b" */
    const char *left;          /* sources that are left out, "*" any text: "a b" */
    const char *said;  /* "a|b": one of these members must be there: programs differ in what they take without */
    const char *usual; /* "a 1|b 2": whole numbers of members that the config does not say */
    const char *rope;  /* rope_parameters where neither they nor rope_scaling are there */
    bool tied;         /* where the config does not say */
    double base;       /* of angles, likewise; 0: 10000 */
    double part;       /* of a head that turns, likewise; 0: all */
    double eps;        /* of RMS norms, likewise; 0: 1e-6 */
    hn_hf_drafts drafts;
    bool ternary;                   /* what its matrices' numbers round to is what runs: BitNet */
    bool windows;                   /* layer_types may say which layers are windowed, in any order */
    bool (*fits)(const hn_gguf *g); /* the way back: of classes that one model can be of, this one? NULL: yes */
    hone_status (*more)(hn_hf *f, hone_error *err);        /* keys that no table says; before the model's reader */
    void (*tune)(hn_hf *f);                                /* behind it: what a file's tensors would say; NULL: none */
    hone_status (*tensors_too)(hn_hf *f, hone_error *err); /* tensors that no slot says; behind those outside layers */
} hn_hf_class;
bool hn_hf_never(const hn_gguf *g); /* fits of a class that no folder is made of: files are another's, or nobody's */

/* ---- a conversion under way ------------------------------------------------------------------------------ */

struct hn_hf {
    const hn_convert *a;
    const hn_gguf *back; /* the way back: the file that is to become a folder. Sources are made as they are needed */
    json_t *written;     /* likewise: names of files that are in the folder by now */
    hn_ckpt *c;
    const hn_hf_class *of;
    const char *path;     /* of config.json */
    json_t *root;         /* all of it */
    const json_t *config; /* of the text's model: it, or its text_config */
    uint8_t *read;        /* members of config that were looked at */
    hn_arena *arena;
    hn_gguf_writer *w;
    hone_model *m; /* its numbers, once its keys are put */
    void *keys;
    char prefix[64];                /* before names behind "model." */
    char head[64];                  /* the output's module */
    bool tied, own_base, own_width; /* `more` has put rope.freq_base, rope.dimension_count */
    uint64_t *used;                 /* [c->n] elements of it that views have */
    hn_hf_stored **stored;          /* [c->n], of each NULL: it is as it says */
    size_t n_used, n_stored;        /* room of both */
    char needed[512], without[512]; /* of TENSORS: names of slots that must, that must not be there: "a|b" */
    hn_hf_tensor *t;
    size_t n, cap;
    hn_hf_view *v;
    size_t n_v, cap_v;
    uint32_t file_type;
    int32_t n_draft; /* blocks behind the layers that the file keeps */
    bool exact;
};

/* The member of the config, the first of "a|b" that is there and not null; it counts as known. NULL: none. */
const json_t *hn_hf_get(hn_hf *f, const char *names);
/* What a class makes of its config before anything else is read: a member, which is taken. */
hone_status hn_hf_set(hn_hf *f, const char *name, json_t *v, hone_error *err);
/* A number of it; where it is absent, `absent`. *was (may be NULL): it was there. HONE_E_FORMAT: something else. */
hone_status hn_hf_number(hn_hf *f, const char *names, double absent, double *out, bool *was, hone_error *err);
/* A whole number in [0, 2^31). */
hone_status hn_hf_whole(hn_hf *f, const char *names, int64_t absent, int64_t *out, hone_error *err);
/* true or false, or the numbers 1 and 0. HONE_E_FORMAT: something else. */
hone_status hn_hf_truth(hn_hf *f, const char *names, bool absent, bool *out, hone_error *err);
/* HONE_E_UNSUPPORTED: a member that asks for what hone does not do. */
hone_status hn_hf_refuse(const hn_hf *f, const char *name, const json_t *v, const char *expected, hone_error *err);
/* Does the user want a member ignored, by HONE_IGNORE_KEYS, as keys of files are? */
bool hn_hf_ignored(const char *key);
/* A member of any config that changes no answer: of training, of generation, of Python. */
bool hn_hf_idle(const char *member);
/* Is w one of "a|b"? */
bool hn_hf_is_word(const char *words, const char *w, size_t n);

/* Keys below the architecture. */
hone_status hn_hf_put_u32(hn_hf *f, const char *key, uint32_t v, hone_error *err);
hone_status hn_hf_put_f32(hn_hf *f, const char *key, double v, hone_error *err);
hone_status hn_hf_put_bool(hn_hf *f, const char *key, bool v, hone_error *err);
hone_status hn_hf_put_str(hn_hf *f, const char *key, const char *v, hone_error *err);
hone_status hn_hf_put_layers(hn_hf *f, const char *key, hone_kv_type type, const void *v, int64_t n, hone_error *err);
/* All keys of the config: the class's rows and those of all classes, rotations, `more`. */
hone_status hn_hf_put_keys(hn_hf *f, hone_error *err);
/* rope.*: bases and scaling (hf_rope.c). hn_hf_rope_tensors: factors, once the model's numbers are there. */
hone_status hn_hf_put_rope(hn_hf *f, hone_error *err);
hone_status hn_hf_rope_tensors(hn_hf *f, hone_error *err);

/* Deviations above the mean of a normal distribution that a share of it lies below, as torch has it (hf_gemma.c); of 0:
 * −∞. */
float hn_hf_cut_of(double share);

/* general.*: before all others; and what is known only once types are chosen (hf_general.c). */
hone_status hn_hf_put_general(hn_hf *f, hone_error *err);
hone_status hn_hf_put_file(hn_hf *f, hone_error *err);
/* Is that file in the folder? HONE_E_IO: it cannot be told. */
hone_status hn_hf_beside(bool *there, const char *folder, const char *file, char path[4352], hone_error *err);

/* Sources. `find`: NULL where there is none. `need`: of the shape ne[n_dim] (fastest first), else an error that names
 * it. Both take "model." and "lm_head" for what the folder has instead. */
const hn_ckpt_tensor *hn_hf_find(const hn_hf *f, const char *name);
hone_status hn_hf_need(const hn_ckpt_tensor **out, hn_hf *f, const char *name, int32_t n_dim, const uint64_t *ne,
                       hone_error *err);
/* Begins a tensor of the file; its views follow. */
hone_status hn_hf_begin(hn_hf *f, const char *name, int32_t n_dim, const uint64_t *ne, hone_error *err);
/* One more view of the last tensor. Its elements must lie in the source. */
hone_status hn_hf_add(hn_hf *f, const hn_hf_view *v, hone_error *err);
/* All elements of a source, as they lie. */
hn_hf_view hn_hf_all(const hn_ckpt_tensor *t);
/* The tensor of a slot as its turn says: as it is, rotary pairs, 1 + w. */
hone_status hn_hf_plain(hn_hf *f, const hn_hf_at *at, hone_error *err);
/* [n_out, n_in] of [n_in, n_out]. */
hone_status hn_hf_transposed(hn_hf *f, const hn_hf_at *at, hone_error *err);

/* Blocks that draft (hf_draft.c): how many there are, before keys are put; their tensors, behind those of layers. */
hone_status hn_hf_find_drafts(hn_hf *f, hone_error *err);
hone_status hn_hf_plan_drafts(hn_hf *f, hone_error *err);
/* The slots of block il, as a layer with that plan has them. */
hone_status hn_hf_plan_layer(hn_hf *f, int32_t il, const hn_layer_plan *plan, hone_error *err);

/* All tensors: the family's slots in their order. Every source is then used, or left out by name. */
hone_status hn_hf_plan(hn_hf *f, hone_error *err);
/* Types, then the file (hf_write.c). */
hone_status hn_hf_types(hn_hf *f, hone_error *err);
hone_status hn_hf_write(hn_hf *f, hone_error *err);

/* Sources whose numbers are stored otherwise, before anything else is looked for (hf_quantized.c). */
hone_status hn_hf_find_stored(hn_hf *f, hone_error *err);
/* Room for what goes with sources that were added to the list. */
hone_status hn_hf_grow(hn_hf *f, hone_error *err);
/* How rows become one, as sentence-transformers' modules beside the model say it; and the layers behind that
 * (hf_encoder.c). A folder without such modules: nothing. */
hone_status hn_hf_put_modules(hn_hf *f, hone_error *err);
/* The way back: the same of the file (hf_back_modules.c). */
hone_status hn_hf_back_modules(hn_hf *f, hone_error *err);

/* The classes: rows of hf_dense.c and others. By a name of architectures, or by model_type. */
const hn_hf_class *hn_hf_class_find(const char *name, const char *type);
extern const hn_hf_class *const hn_hf_dense[],
    *const hn_hf_moe[], *const hn_hf_hybrid[], *const hn_hf_latent[],
                                                   *const hn_hf_delta[],
                                                       *const hn_hf_gemma[],
                                                           *const hn_hf_encoder[],
                                                               *const hn_hf_window[],
                                                                   *const hn_hf_other[]; /* the last is NULL */

/* The k-th class of an architecture of GGUF; NULL: it has fewer. */
const hn_hf_class *hn_hf_class_of(const char *arch, size_t k);
/* Calls fn for each row that holds for f's class. */
typedef void hn_hf_row_fn(void *arg, const hn_hf_key *row);
void hn_hf_each_row(const hn_hf *f, hn_hf_row_fn *fn, void *arg);
/* From the config to the plan of tensors: keys, the numbers they make, all that is checked. */
hone_status hn_hf_follow(hn_hf *f, hone_error *err);
void hn_hf_drop(hn_hf *f);

/* A folder whose config.json names no RWKV. c: with its tensors. */
hone_status hn_convert_hf(const hn_convert *a, hn_ckpt *c, hone_error *err);
/* A GGUF file becomes such a folder (hf_back.c). */
hone_status hn_convert_back(const hn_convert *a, hone_error *err);

#endif
