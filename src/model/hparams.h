/* hparams: reading a model's metadata; of hparams.c, rope.c and keys.c, for binding. */
#ifndef HN_HPARAMS_H
#define HN_HPARAMS_H

#include "model/model.h"

/* Did llama.cpp save the file itself, with every number that it has, read or not? It has one then that converters write
 * of encoders with decoders alone, and none there. */
bool hn_saved_by_llama(const hone_model *m);
/* "{arch}.{suffix}" into key[128]. */
const char *hn_arch_key(const hone_model *m, char key[128], const char *suffix);
/* An integer key in [lo, hi]; absent: def, or an error if def < 0. */
hone_status hn_get_int(const hone_model *m, const char *suffix, int64_t lo, int64_t hi, int64_t def, int32_t *out,
                       hone_error *err);
/* A value for each layer into out [n_layer]; where the key has one alone, or is absent, it is that of all. */
hone_status hn_get_layers(const hone_model *m, const char *suffix, int64_t lo, int64_t hi, int64_t def, int32_t *out,
                          hone_error *err);
/* A real key in (lo, hi]; absent: def, or an error if def is NaN. */
hone_status hn_get_real(const hone_model *m, const char *suffix, double lo, double hi, double def, float *out,
                        hone_error *err);

/* The context that the model was trained on at first, before its angles were scaled: its key, or context_length. */
hone_status hn_first_context(const hone_model *m, int32_t *n, hone_error *err);

/* A truth value, which must be there. */
hone_status hn_get_bool(const hone_model *m, const char *suffix, bool *out, hone_error *err);

/* A truth value for each layer, of an array of them or of numbers 0 and 1, in the model's arena. *out is NULL where the
 * key is absent or no array. */
hone_status hn_get_truths(hone_model *m, const char *suffix, const bool **out, hone_error *err);
/* The same; a key that is no array is refused. */
hone_status hn_get_layer_truths(hone_model *m, const char *suffix, const bool **out, hone_error *err);

/* Has an array of so many values one for each layer? The blocks behind them may have theirs too. */
static inline bool hn_for_each_layer(const hn_hparams *hp, uint64_t count)
{
    return count == (uint64_t)hp->n_layer || count == (uint64_t)hp->n_layer + (uint64_t)hp->n_nextn;
}

/* Each family's numbers. */
hone_status hn_attn_hparams(hone_model *m, hone_error *err); /* of transformers, by their switches */
/* How much slower all pairs turn (1: as they are), and whether YaRN says which. */
hone_status hn_rope_scaling(const hone_model *m, float *factor, bool *yarn, hone_error *err);
hone_status hn_moe_hparams(hone_model *m, hone_error *err); /* hparams_moe.c: of experts, by their switches */
bool hn_moe_is_routed(const hone_model *m);                 /* has any layer a router? */
hone_status hn_moe_check_layer(const hone_model *m, int32_t il, hone_error *err); /* when the plan is known */
/* hparams_pool.c: what becomes of rows that are no logits; of every family. */
hone_status hn_pool_hparams(hone_model *m, hone_error *err);
hone_status hn_rwkv6_hparams(hone_model *m, hone_error *err);
hone_status hn_rwkv7_hparams(hone_model *m, hone_error *err);

/* Width of the rotated part; and tables of angles, when rope_factors, which have that width, are bound. */
hone_status hn_rope_width(hone_model *m, hone_error *err);
hone_status hn_rope_tables(hone_model *m, hone_error *err);

/* keys.c: refuses metadata below the family's name that would ask for another formula, or may, but for the keys in
 * `ignore` ("a,b"; NULL: HONE_IGNORE_KEYS), which it notes. Call it when hparams are known. HONE_E_UNSUPPORTED. */
hone_status hn_check_keys(hone_model *m, const char *ignore, hone_error *err);
/* Element i of an array of numbers or truth values; false: it holds none. */
bool hn_array_number(const hn_gguf_array *a, uint64_t i, double *x);
/* The same for keys of the tokenizer that change what text becomes, where hone's of this kind does not. */
hone_status hn_check_tokenizer_keys(hone_model *m, const char *ignore, hone_error *err);

/* recut.c. Rows that are dealt in groups, each with a share of every part of s: w becomes a copy with one part after
 * the other. */
hone_status hn_undeal(hone_model *m, const hn_slot *s, hn_weight *w, const hn_layer_plan *p, hone_error *err);
/* Rows {rank_kv} of each head, d_nope of keys, then d_value of values, into what absorbed attention takes: k_b, keys
 * turned round, {d_nope} for each of rank_kv; v_b, rows of values as they are. Keys in blocks become F32: a block goes
 * along a row, so that turned round they would have to be rounded once more. */
hone_status hn_split_kv_b(hone_model *m, hn_weight *k_b, hn_weight *v_b, const hn_weight *kv_b, const hn_layer_plan *p,
                          hone_error *err);

/* bind.c: all tensors of the family's slots to their fields, found by name, of exactly the expected shape; a tensor
 * that is left over is refused. */
hone_status hn_bind(hone_model *m, hone_error *err);

#endif
