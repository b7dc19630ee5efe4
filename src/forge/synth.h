/* synth: GGUF files of a real model's exact shape with random, sane weights. What
 * synth.c, synth_fill.c and their tests share. Knows names, shapes and spreads of
 * tensors; refuses to know how they are multiplied. */
#ifndef HN_SYNTH_H
#define HN_SYNTH_H

#include "gguf/gguf.h"
#include "model/model.h"
#include "quant/quant.h"

/* Of families that have `keys`, these say everything but what stands before them. */
typedef struct hn_synth_shape {
    const char *arch;  /* general.architecture */
    const char *keys;  /* "name=value …": what a file has as {arch}.name. true, false; a number with a point or an
                       * exponent is a float; values between commas are a list, begun again until each layer has one.
                       * NULL: the numbers below say it, of llama, qwen2, qwen3, gemma3, qwen3moe, gpt-oss and RWKV */
    const char *has;   /* "tensor …": of those that a file may lack, which this one has; of layers without blk.N. */
    const char *owned; /* keys and has lie there: hn_synth_shape_free; or NULL */
    int32_t n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train;
    float rope_base, rms_eps; /* RWKV: rms_eps is the LayerNorm's */
    bool tied;
    float rope_factor; /* llama: 1, or the Llama 3.1 factor of rope_freqs.weight; gemma3: how much slower layers without
                        * a window turn; gpt-oss: YaRN's */
    /* RWKV only. Inner widths of the low-rank pairs: rwkv7 decay, iclr, value, gate; rwkv6 decay
     * and mix (the token shift). rescale_every: rwkv6 halves the stream after so many layers, 0 never. */
    int32_t rank_decay, rank_iclr, rank_value, rank_gate, rank_mix, rescale_every;
    int32_t window; /* gemma3, gpt-oss: positions that five layers of six, every other one see; 0: all */
    int32_t n_expert, n_used, n_ff_exp; /* experts of a layer, of a token, their width; 0: none */
    int32_t n_cut;                      /* layers at the end that a slice leaves out */
} hn_synth_shape;

static inline bool hn_synth_is_rwkv(const hn_synth_shape *s) { return !strncmp(s->arch, "rwkv", 4); }

/* NULL: no such preset. Aliases count, letter case does not. *name: the preset's own name. */
const hn_synth_shape *hn_synth_preset(const char *name, const char **canonical);
/* Reads the JSON form of a shape. HONE_E_ARG names the field: unknown, missing, of the
 * wrong kind, out of range, contradicting another. *out->arch is static. */
hone_status hn_synth_config(hn_synth_shape *out, const char *path, hone_error *err);
/* The same for a vocabulary of n_vocab > 0 tokens, which the file need not name and must not contradict. */
hone_status hn_synth_config_for(hn_synth_shape *out, const char *path, int32_t n_vocab, hone_error *err);
hone_status hn_synth_check(const hn_synth_shape *s, const char *where, hone_error *err);
void hn_synth_shape_free(hn_synth_shape *s); /* of one that was read from a file */

/* What the reader of models makes of a shape's keys: a model without tensors. */
typedef struct hn_synth_numbers {
    hone_model *model;
    void *bytes; /* the keys */
} hn_synth_numbers;
/* Errors as of a file with these keys. Free with hn_synth_numbers_free. */
hone_status hn_synth_numbers_of(hn_synth_numbers *out, const hn_synth_shape *s, hone_error *err);
void hn_synth_numbers_free(hn_synth_numbers *n);
/* The number that a key of s->keys has. */
double hn_synth_key_of(const hn_synth_shape *s, const char *key, double absent);
/* Is w among the words, between spaces? words may be NULL. */
bool hn_synth_has(const char *words, const char *w);
/* Weights of the shape; rope_freqs and RWKV-7's dummies in layer 0 not counted. 0: keys that contradict each other, or
 * no memory. */
uint64_t hn_synth_n_params(const hn_synth_shape *s);

/* ---- plan: every tensor in file order --------------------------------------------- */

typedef enum hn_synth_kind {
    HN_SYNTH_MATRIX, /* stored as the mixture says */
    HN_SYNTH_F32,    /* always F32 */
    HN_SYNTH_MXFP4,  /* always MXFP4, as its only files have it */
    HN_SYNTH_LOWRANK /* as converted: F16 where the mixture quantizes, else its type */
} hn_synth_kind;

typedef struct hn_synth_tensor {
    char name[64];
    hn_synth_kind kind;
    hn_type type; /* once all are there */
    int32_t n_dim;
    uint64_t ne[4], n_bytes;
    float mean, std;    /* of the values; mean only for F32 */
    float unit;         /* block types: rms of a tensor filled with scale 1 */
    float base, factor; /* not 0: it is rope_freqs.weight of that base and factor, not random */
    char values_of[64]; /* not empty: this is a copy of that tensor, which no model reads */
} hn_synth_tensor;

typedef struct hn_synth_plan {
    hn_synth_shape shape;
    uint32_t file_type;
    size_t n;
    hn_synth_tensor *t;
} hn_synth_plan;

/* HONE_E_ARG: unknown mixture. Free with hn_synth_plan_free. */
hone_status hn_synth_plan_new(hn_synth_plan **out, const hn_synth_shape *s, const char *type, hone_error *err);
void hn_synth_plan_free(hn_synth_plan *p);
/* The file of a plan: w has the metadata, which the tensors follow. Values depend on (seed, tensor) alone. n_threads
 * 0: all cores. */
hone_status hn_synth_write(const hn_synth_plan *plan, hn_gguf_writer *w, uint64_t seed, int32_t n_threads,
                           const char *dst, const hone_progress *pr, hone_error *err);
/* {arch}.*: the metadata of a transformer's shape. */
hone_status hn_synth_put_shape(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err);

/* Room for the tensor list of one architecture: appends a tensor. ne ends with 0 or after 4. */
typedef struct hn_synth_planner hn_synth_planner;
hone_status hn_synth_add(hn_synth_planner *b, const char *name, int32_t layer, hn_synth_kind kind, const uint64_t ne[4],
                         float mean, float std);
/* The tensor added last holds the values of tensor `of`, which has its shape and spread. */
void hn_synth_mark_copy(hn_synth_planner *b, const char *of);
hone_status hn_synth_add_rope_freqs(hn_synth_planner *b, const uint64_t ne[4], float base, float factor);
/* All tensors of the shape's family: synth_slots.c. n: of that shape. */
hone_status hn_synth_add_all(hn_synth_planner *b, const hn_synth_shape *s, const hn_synth_numbers *n);
/* HONE_E_ARG, naming a tensor: a file of these would lack one that the model needs beside others, or by its keys. */
hone_status hn_synth_check_tensors(const hn_synth_shape *s, const hn_synth_numbers *n, const char *where,
                                   hone_error *err);
/* {arch}.* of a shape that is given by its keys: synth_keys.c. */
hone_status hn_synth_put_keys(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err);
/* The same of RWKV: synth_rwkv.c. */
hone_status hn_synth_put_rwkv(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err);
/* A tokenizer of pieces with scores, as gemma has one. */
hone_status hn_synth_put_pieces(hn_gguf_writer *w, int32_t n_vocab, bool add_eos, hone_error *err);
/* The same of WordPiece, as BERT has it. */
hone_status hn_synth_put_wordpieces(hn_gguf_writer *w, int32_t n_vocab, hone_error *err);
hone_status hn_synth_put_world(hn_gguf_writer *w, int32_t n_vocab, hone_error *err);
/* Word i of the invented language: consonant-vowel syllables, shorter words first. Every second id is the
 * same word after a space. dst: 24 bytes; *space: whether a space precedes. */
void hn_synth_word(char *dst, int64_t i, bool *space);

/* ---- values -------------------------------------------------------------------------- */

/* Stream of tensor `name` under a seed. */
uint64_t hn_synth_key(uint64_t seed, const char *name);
/* Bytes [off, off+n) of the tensor: depends on (tensor, key, off) alone. off and n are
 * multiples of hn_synth_grain(type), except that the last piece ends where the tensor does. */
void hn_synth_fill(const hn_synth_tensor *t, uint64_t key, uint64_t off, uint64_t n, void *dst);
uint64_t hn_synth_grain(hn_type type);
/* Root mean square of blocks of `type` filled with scale 1 (F32, F16, BF16: 1). 0: not a type
 * that synth can fill; -1: out of memory. */
float hn_synth_unit(hn_type type);
/* rope_freqs.weight of Llama 3.1: dst[n_rot/2]. */
void hn_synth_rope_freqs(float *dst, int32_t n_rot, float base, float factor);

#endif
