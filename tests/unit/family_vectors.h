/* Published vectors of families (tests/golden/families: keys, tensors by a rule, tokens, logits) as files, written byte
 * by byte, by nothing of hone: as they are, or with experts laid out another way, other types of weights, another
 * window. Knows nothing of what is computed from them. */
#ifndef HN_FAMILY_VECTORS_H
#define HN_FAMILY_VECTORS_H

#include "tiny_model.h"

#include <jansson.h>

enum { MAX_TOK = 16, MAX_VOCAB = 64, N_VECTOR = 103 };
#define FOLDER "tests/golden/families"

typedef struct vector {
    json_t *j;
    const char *name;
    int32_t tok[MAX_TOK];
    int n, n_vocab;
    uint64_t types;                 /* 0: all F32; else what draws a type for each matrix */
    uint32_t window;                /* in place of a window that the file has; 0: its own */
    const char *const (*called)[2]; /* what the file calls tensors (behind "blk.7."), up to NULL; NULL: as the vector */
} vector;

/* ---- files --------------------------------------------------------------------------------------- */

static inline void put_number(bb *b, const char *type, const json_t *v)
{
    if (!strcmp(type, "FLOAT32")) {
        float f = json_is_string(v) ? strtof(json_string_value(v), NULL) : (float)json_number_value(v); /* "-inf" */
        bb_raw(b, &f, sizeof f);
    } else if (!strcmp(type, "BOOL")) {
        bb_u8(b, json_is_true(v));
    } else if (!strcmp(type, "STRING")) {
        bb_str(b, json_string_value(v));
    } else {
        bb_u32(b, (uint32_t)json_integer_value(v));
    }
}

static inline uint32_t type_id(const char *type)
{
    static const struct {
        const char *name;
        uint32_t id;
    } ids[] = { { "UINT32", 4 }, { "INT32", 5 }, { "FLOAT32", 6 }, { "BOOL", 7 }, { "STRING", 8 } };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (!strcmp(ids[i].name, type)) return ids[i].id;
    fail_msg("%s: no such type of a value here", type);
    return 0;
}

static inline bool ends(const char *s, const char *with)
{
    size_t n = strlen(s), k = strlen(with);
    return n >= k && !strcmp(s + n - k, with);
}

static inline void put_kv(bb *b, const json_t *kv, uint32_t window)
{
    const char *type = json_string_value(json_array_get(kv, 1));
    const json_t *v = json_array_get(kv, 2);
    bb_str(b, json_string_value(json_array_get(kv, 0)));
    if (!strncmp(type, "ARRAY:", 6)) {
        bb_u32(b, 9), bb_u32(b, type_id(type + 6)), bb_u64(b, json_array_size(v));
        for (size_t i = 0; i < json_array_size(v); i++) put_number(b, type + 6, json_array_get(v, i));
        return;
    }
    bb_u32(b, type_id(type));
    if (!strcmp(type, "STRING")) bb_str(b, json_string_value(v));
    else if (window && ends(json_string_value(json_array_get(kv, 0)), ".attention.sliding_window") &&
             json_integer_value(v))
        bb_u32(b, window);
    else put_number(b, type, v);
}

/* A tensor is [name, ne, s, o], values o + s·u by the rule, or [name, ne, [values]]. */
static inline float *values_of(const vector *v, const json_t *t, uint64_t ne[4], uint32_t *n_dim)
{
    char name[160];
    const json_t *dims = json_array_get(t, 1), *s = json_array_get(t, 2);
    uint64_t n = 1;
    *n_dim = (uint32_t)json_array_size(dims);
    for (size_t i = 0; i < 4; i++) {
        ne[i] = i < *n_dim ? (uint64_t)json_integer_value(json_array_get(dims, i)) : 1;
        n *= ne[i];
    }
    float *f = malloc(n * sizeof *f);
    assert_non_null(f);
    snprintf(name, sizeof name, "%s%s", json_string_value(json_object_get(v->j, "name_prefix")),
             json_string_value(json_array_get(t, 0)));
    double o = json_number_value(json_array_get(t, 3)), scale = json_number_value(s);
    uint64_t seed = tm_fnv(name);
    for (uint64_t k = 0; k < n; k++)
        f[k] =
            json_is_array(s) ? (float)json_number_value(json_array_get(s, k)) : (float)(o + scale * tm_u_of(seed, k));
    return f;
}

static inline bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* How a file is written: experts in one tensor or one each; a block that drafts behind the layers; and what other
 * converters write: q, k and v in one, what qwen3next makes of a token in one, deepseek2's keys and values in one; one
 * number of heads for layers that differ, or 0. */
typedef enum layout {
    AS_IS = 0,
    FUSED,
    ONE_EACH,
    DRAFT,
    QKV,
    SSM_IN,
    KV_B,
    ONE_NUMBER,
    NO_NUMBER,
    NO_WIDTH, /* of a feed-forward part, where all have experts */
    LAYOUTS,
    NO_HEAD_NORMS,
    HEAD_NORMS_OF_ONE,
    DRAFT_OF_NONE
} layout;

/* The matrices of a feed-forward have types by their kind, so that they are the same however experts lie. */
static inline hn_type drawn_type(const vector *v, const char *name, uint32_t n_dim, uint64_t n_in)
{
    static const hn_type any[] = { HN_F32, HN_F16, HN_BF16, HN_Q8_0, HN_Q4_0, HN_Q4_1, HN_Q5_0, HN_Q5_1, HN_IQ4_NL };
    static const char *const plain[] = { "norm", "conv1d", "ffn_gate_inp", "_embd." };
    const char *part = strstr(name, "ffn_");
    if (!v->types || n_dim < 2 || !ends(name, ".weight")) return HN_F32;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strstr(name, plain[i])) return HN_F32;
    uint64_t key = v->types;
    for (const char *c = name; *c && c != part; c++) key = hn_mix64(key + (unsigned char)*c);
    if (part) key = hn_mix64(key + (starts(part, "ffn_down") ? 1 : 2) + (strstr(part, "shexp") ? 4 : 0));
    hn_type type = any[hn_mix64(key) % (sizeof any / sizeof *any)];
    return n_in % hn_type_get(type)->block_elems ? HN_F32 : type;
}

/* What the file calls a tensor. */
static inline const char *called(const vector *v, const char *name, char own[160])
{
    const char *rest = name;
    int n = 0;
    if (sscanf(name, "blk.%*d.%n", &n) == 0 && n) rest += n;
    for (int i = 0; v->called && v->called[i][0]; i++)
        if (!strcmp(rest, v->called[i][0])) {
            snprintf(own, 160, "%.*s%s", n, name, v->called[i][1]);
            return own;
        }
    return name;
}

static inline void put_tensor(const vector *v, bb *file, bb *data, const char *name, uint32_t n_dim,
                              const uint64_t ne[4], const float *f)
{
    hn_type type = drawn_type(v, name, n_dim, ne[0]);
    const hn_type_info *ti = hn_type_get(type);
    uint64_t n_row = ne[1] * ne[2] * ne[3], row = hn_row_bytes(ti, ne[0]), off = data->n;
    char own[160];
    bb_tensor(file, called(v, name, own), n_dim, ne, type, off);
    bb_raw(data, type == HN_F32 ? f : NULL, n_row * row);
    for (uint64_t r = 0; r < n_row && type != HN_F32; r++)
        ti->quantize(data->p + off + r * row, f + r * ne[0], (int64_t)ne[0], NULL);
    bb_pad(data, 32);
}

/* Each expert's matrix in a tensor of its own. */
static inline uint64_t put_each(const vector *v, bb *file, bb *data, const char *name, const uint64_t ne[4],
                                const float *f)
{
    char own[96];
    for (uint64_t e = 0; e < ne[2]; e++) {
        snprintf(own, sizeof own, "%.*s.%d.weight", (int)(strstr(name, "_exps") - name), name, (int)e);
        put_tensor(v, file, data, own, 2, (uint64_t[4]){ ne[0], ne[1], 1, 1 }, f + e * ne[0] * ne[1]);
    }
    return ne[2];
}

/* Gate rows of an expert, then its up rows. */
static inline uint64_t put_fused(const vector *v, bb *file, bb *data, const json_t *gate, const char *tail)
{
    char up[96], both[96];
    const char *name = json_string_value(json_array_get(gate, 0));
    const json_t *ts = json_object_get(v->j, "tensors"), *other = NULL;
    int n = (int)(strstr(name, "ffn_gate_exps") - name);
    snprintf(up, sizeof up, "%.*sffn_up_exps%s", n, name, tail);
    snprintf(both, sizeof both, "%.*sffn_gate_up_exps%s", n, name, tail);
    for (size_t i = 0; i < json_array_size(ts); i++)
        if (!strcmp(json_string_value(json_array_get(json_array_get(ts, i), 0)), up)) other = json_array_get(ts, i);
    assert_non_null(other);
    uint64_t ne[4];
    uint32_t n_dim;
    float *a = values_of(v, gate, ne, &n_dim), *b = values_of(v, other, ne, &n_dim);
    uint64_t experts = ne[n_dim - 1], one = ne[0] * (n_dim == 3 ? ne[1] : 1);
    float *f = malloc(2 * experts * one * sizeof *f);
    assert_non_null(f);
    for (uint64_t e = 0; e < experts; e++) {
        memcpy(f + 2 * e * one, a + e * one, one * sizeof *f);
        memcpy(f + (2 * e + 1) * one, b + e * one, one * sizeof *f);
    }
    ne[n_dim - 2] *= 2;
    put_tensor(v, file, data, both, n_dim, ne, f);
    free(a), free(b), free(f);
    return 1;
}

static inline int64_t number_of(const vector *v, const char *suffix)
{
    char key[96];
    const json_t *kv = json_object_get(v->j, "kv");
    snprintf(key, sizeof key, "%s.%s", json_string_value(json_object_get(v->j, "arch")), suffix);
    for (size_t i = 0; i < json_array_size(kv); i++)
        if (!strcmp(json_string_value(json_array_get(json_array_get(kv, i), 0)), key))
            return json_integer_value(json_array_get(json_array_get(kv, i), 2));
    return 0;
}

/* A tensor of the last layer, in the block behind it too. */
static inline uint64_t put_draft(const vector *v, bb *file, bb *data, const char *name, uint32_t n_dim,
                                 const uint64_t ne[4], const float *f)
{
    char block[32], own[96];
    int64_t n_layer = number_of(v, "block_count");
    snprintf(block, sizeof block, "blk.%d.", (int)n_layer - 1);
    if (!starts(name, block)) return 0;
    snprintf(own, sizeof own, "blk.%d.%s", (int)n_layer, name + strlen(block));
    put_tensor(v, file, data, own, n_dim, ne, f);
    if (!strstr(name, "attn_norm.weight")) return 1;
    snprintf(own, sizeof own, "blk.%d.nextn.eh_proj.weight", (int)n_layer);
    put_tensor(v, file, data, own, n_dim, ne, f); /* of another shape in true files: nobody looks */
    return 2;
}

/* Rows of so many tensors of a layer, one below the other; rows: how many of each. */
static inline float *rows_of(const vector *v, const char *block, const char *const *stems, uint64_t *rows,
                             uint64_t *n_in)
{
    char name[96];
    uint64_t total = 0;
    float *all = NULL;
    const json_t *ts = json_object_get(v->j, "tensors");
    for (int p = 0; stems[p]; p++) {
        const json_t *t = NULL;
        uint64_t ne[4];
        uint32_t n_dim;
        snprintf(name, sizeof name, "%s%s.weight", block, stems[p]);
        for (size_t i = 0; i < json_array_size(ts); i++)
            if (!strcmp(json_string_value(json_array_get(json_array_get(ts, i), 0)), name)) t = json_array_get(ts, i);
        if (!t) fail_msg("%s: no tensor %s", v->name, name);
        float *f = values_of(v, t, ne, &n_dim);
        *n_in = ne[0];
        rows[p] = ne[1] * ne[2];
        all = realloc(all, (total + rows[p]) * ne[0] * sizeof *all);
        assert_non_null(all);
        memcpy(all + total * ne[0], f, rows[p] * ne[0] * sizeof *f);
        total += rows[p];
        free(f);
    }
    return all;
}

/* The rows dealt to n groups: of each part (the last is followed by 0) its share, one after the other. */
static inline uint64_t put_dealt(const vector *v, bb *file, bb *data, const char *block, const char *stem,
                                 const float *rows, uint64_t n_in, const uint64_t *part, uint64_t n)
{
    char name[96];
    uint64_t total = 0, at = 0;
    for (int p = 0; part[p]; p++) total += part[p];
    float *f = malloc(total * n_in * sizeof *f);
    assert_non_null(f);
    for (uint64_t g = 0; g < n; g++)
        for (uint64_t p = 0, first = 0; part[p]; first += part[p++]) {
            uint64_t share = part[p] / n;
            memcpy(f + at * n_in, rows + (first + g * share) * n_in, share * n_in * sizeof *f);
            at += share;
        }
    snprintf(name, sizeof name, "%s%s.weight", block, stem);
    put_tensor(v, file, data, name, 2, (uint64_t[4]){ n_in, total, 1, 1 }, f);
    free(f);
    return 1;
}

/* The matrix of keys and values of latent attention: keys of a head, turned round, then its values. */
static inline uint64_t put_kv_b(const vector *v, bb *file, bb *data, const char *block)
{
    uint64_t part[3] = { 0 }, nope, rank, n = (uint64_t)number_of(v, "attention.head_count");
    float *k = rows_of(v, block, (const char *const[]){ "attn_k_b", NULL }, part, &nope);
    float *values = rows_of(v, block, (const char *const[]){ "attn_v_b", NULL }, part + 1, &rank);
    float *all = malloc((n * nope + part[1]) * rank * sizeof *all);
    assert_non_null(all);
    for (uint64_t h = 0; h < n; h++)
        for (uint64_t i = 0; i < nope; i++)
            for (uint64_t c = 0; c < rank; c++) all[(h * nope + i) * rank + c] = k[(h * rank + c) * nope + i];
    memcpy(all + n * nope * rank, values, part[1] * rank * sizeof *all);
    part[0] = n * nope;
    put_dealt(v, file, data, block, "attn_kv_b", all, rank, part, n);
    free(k), free(values), free(all);
    return 1;
}

/* What other converters write in place of the tensor, where it is one of those that are joined; −1: it is none. */
static inline int64_t put_joined(const vector *v, bb *file, bb *data, const char *name, layout how)
{
    static const char *const joined[][4] = { [QKV] = { "attn_q", "attn_k", "attn_v" },
                                             [SSM_IN] = { "attn_qkv", "attn_gate" },
                                             [KV_B] = { "attn_k_b", "attn_v_b" } },
                             *const whole[] = { [QKV] = "attn_qkv", [SSM_IN] = "ssm_in", [KV_B] = "attn_kv_b" };
    char block[32], stem[64];
    uint64_t part[5] = { 0 }, n_in, n = 1;
    int at = 0;
    if (how < QKV || how > KV_B || sscanf(name, "%16[^.].%8[0-9].%40[^.].weight", block, block + 8, stem) != 3)
        return -1;
    while (joined[how][at] && strcmp(joined[how][at], stem) != 0) at++;
    if (!joined[how][at]) return -1;
    if (at > 0) return 0; /* with the first of them */
    snprintf(block, sizeof block, "%.*s", (int)(strstr(name, stem) - name), name);
    if (how == KV_B) return (int64_t)put_kv_b(v, file, data, block);
    float *rows = rows_of(v, block, joined[how], part, &n_in);
    if (how == SSM_IN) { /* queries, keys, values, gates */
        n = (uint64_t)number_of(v, "ssm.group_count");
        uint64_t keys = n * (uint64_t)number_of(v, "ssm.state_size");
        part[3] = part[1];
        part[2] = part[0] - 2 * keys;
        part[0] = part[1] = keys;
    }
    put_dealt(v, file, data, block, whole[how], rows, n_in, part, n);
    free(rows);
    return 1;
}

/* One tensor of the vector as the layout has it; how many that makes. */
static inline uint64_t put_one(const vector *v, bb *file, bb *data, const json_t *t, layout how)
{
    const char *name = json_string_value(json_array_get(t, 0)), *tail = strrchr(name, '.');
    bool weight = !strcmp(tail, ".weight"), gate = strstr(name, "ffn_gate_exps") != NULL;
    if (how == FUSED && strstr(name, "ffn_up_exps")) return 0;
    if (how == FUSED && gate) return put_fused(v, file, data, t, tail);
    bool head_norm = strstr(name, "attn_q_norm") || strstr(name, "attn_k_norm");
    if (how == NO_HEAD_NORMS && head_norm) return 0;
    int64_t joined = put_joined(v, file, data, name, how);
    if (joined >= 0) return (uint64_t)joined;
    uint64_t ne[4], n = 1;
    uint32_t n_dim;
    float *f = values_of(v, t, ne, &n_dim);
    for (uint64_t i = 0; how == HEAD_NORMS_OF_ONE && head_norm && i < ne[0]; i++) f[i] = 1;
    if (how == ONE_EACH && strstr(name, "_exps") && weight) n = put_each(v, file, data, name, ne, f);
    else put_tensor(v, file, data, name, n_dim, ne, f), n = 1;
    if (how == DRAFT) n += put_draft(v, file, data, name, n_dim, ne, f);
    free(f);
    return n;
}

/* One key as the layout has it; how many that makes. */
static inline uint64_t put_key(const vector *v, bb *b, const json_t *kv, layout how)
{
    const char *key = json_string_value(json_array_get(kv, 0)), *tail = strrchr(key, '.');
    char own[96];
    int64_t x = -1, most = 0;
    if (how == ONE_NUMBER || how == NO_NUMBER) {
        const json_t *list = json_array_get(kv, 2);
        if (!strcmp(tail, ".recurrent_layers") || !strcmp(tail, ".full_attention_interval")) return 0;
        for (size_t i = 0; i < json_array_size(list); i++)
            if (json_integer_value(json_array_get(list, i)) > most) most = json_integer_value(json_array_get(list, i));
        if (json_is_array(list) && (!strcmp(tail, ".head_count_kv") || !strcmp(tail, ".feed_forward_length"))) {
            bb_kv_u32(b, key, how == NO_NUMBER ? 0 : (uint32_t)most);
            return 1;
        }
    }
    if (how == KV_B && strstr(tail, "_length_mla")) return 0;
    if (how == NO_WIDTH && !strcmp(tail, ".feed_forward_length")) return 0;
    if (how == KV_B && !strcmp(tail, ".key_length") && !strstr(key, "indexer"))
        x = number_of(v, "attention.key_length_mla");
    if (how == KV_B && !strcmp(tail, ".value_length")) x = number_of(v, "attention.value_length_mla");
    if (how == DRAFT && !strcmp(tail, ".block_count")) x = number_of(v, "block_count") + 1;
    put_kv(b, kv, v->window);
    if (x >= 0) memcpy(b->p + b->n - 4, &(uint32_t){ (uint32_t)x }, 4);
    if ((how != DRAFT && how != DRAFT_OF_NONE) || strcmp(tail, ".block_count") != 0) return 1;
    snprintf(own, sizeof own, "%.*s.nextn_predict_layers", (int)(tail - key), key);
    bb_kv_u32(b, own, 1);
    return 2;
}

/* The vector's file; keys that begin with `without` (NULL: none) are left out. */
static inline void save_as(const vector *v, const char *path, const char *without, layout how)
{
    const json_t *kv = json_object_get(v->j, "kv"), *ts = json_object_get(v->j, "tensors");
    uint64_t n_kv = 0, n_tensor = 0;
    size_t n_t = json_array_size(ts);
    bb b = { 0 }, data = { 0 }, list = { 0 };
    for (size_t i = 0; i < json_array_size(kv); i++) {
        const json_t *e = json_array_get(kv, i);
        if (without && starts(json_string_value(json_array_get(e, 0)), without)) continue;
        n_kv += put_key(v, &b, e, how);
    }
    for (size_t i = 0; i < n_t; i++) n_tensor += put_one(v, &list, &data, json_array_get(ts, i), how);
    bb file = bb_head(3, n_tensor, n_kv);
    bb_raw(&file, b.p, b.n);
    bb_raw(&file, list.p, list.n);
    bb_pad(&file, 32);
    bb_raw(&file, data.p, data.n);
    bb_save(&file, path);
    bb_free(&b), bb_free(&data), bb_free(&list), bb_free(&file);
}

static inline void save_without(const vector *v, const char *path, const char *without)
{
    save_as(v, path, without, AS_IS);
}

static inline bool has_tensor(const vector *v, const char *word)
{
    const json_t *ts = json_object_get(v->j, "tensors");
    for (size_t i = 0; i < json_array_size(ts); i++)
        if (strstr(json_string_value(json_array_get(json_array_get(ts, i), 0)), word)) return true;
    return false;
}

static inline bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(name, *list)) return true;
    return false;
}

/* Can the vector's file be written so? */
static inline bool has_layout(const vector *v, layout how)
{
    static const char *const drafts[] = { "glm4",      "glm4moe", "bailingmoe2", "deepseek2",      "exaone4",
                                          "qwen3next", "qwen35",  "qwen35moe",   "nemotron_h_moe", NULL };
    static const char *const hybrids[] = { "falcon-h1", "granitehybrid", "lfm2",      "lfm2moe", "nemotron_h",
                                           "qwen35",    "qwen35moe",     "qwen3next", "gemma3",  NULL };
    static const char *const differ[] = { "lfm2",        "lfm2moe", "granitehybrid", "nemotron_h", "nemotron_h_moe",
                                          "kimi-linear", "qwen35",  "qwen35moe",     "qwen3next",  NULL };
    const char *arch = json_string_value(json_object_get(v->j, "arch"));
    if (how == ONE_NUMBER || how == NO_NUMBER) return is_one_of(arch, differ);
    if (how == DRAFT) return is_one_of(arch, drafts);
    if (how == QKV) return is_one_of(arch, hybrids);
    if (how == SSM_IN) return !strcmp(v->name, "qwen3next");
    if (how == KV_B) return has_tensor(v, "attn_k_b");
    if (how == NO_WIDTH) return has_tensor(v, "ffn_down_exps") && !has_tensor(v, "ffn_down.weight");
    return has_tensor(v, "ffn_gate_exps"); /* gate and up of experts are tensors of their own */
}

static inline vector load(const char *file)
{
    char path[320];
    json_error_t e;
    snprintf(path, sizeof path, FOLDER "/%s", file);
    vector v = { .j = json_load_file(path, 0, &e) };
    if (!v.j) fail_msg("%s: %s", path, e.text);
    v.name = json_string_value(json_object_get(v.j, "case"));
    const json_t *t = json_object_get(v.j, "tokens");
    v.n = (int)json_array_size(t);
    assert_in_range(v.n, 1, MAX_TOK);
    for (int i = 0; i < v.n; i++) v.tok[i] = (int32_t)json_integer_value(json_array_get(t, (size_t)i));
    v.n_vocab = (int)json_array_size(json_object_iter_value(json_object_iter(json_object_get(v.j, "logits"))));
    assert_in_range(v.n_vocab, 1, MAX_VOCAB);
    return v;
}

#endif
