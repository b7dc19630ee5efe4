/* synth_config: the JSON form of a shape. Owns what it may say and what is wrong with it; knows no tensors. */
#include "base/json_tree.h"
#include "forge/synth.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* Which architectures have a field, and which need it. */
enum { LLM = 1, V7 = 2, V6 = 4, GEMMA = 8, BY_KEYS = 16, ANY = 7 };
#define ARCHS "\"llama\", \"qwen2\", \"qwen3\", \"gemma3\", \"rwkv7\", \"rwkv6\", or, with keys, that of any family"
static const char *const archs[] = { "llama", "qwen2", "qwen3", "gemma3", "rwkv7", "rwkv6" };

static unsigned family(const hn_synth_shape *s)
{
    if (s->keys) return BY_KEYS;
    return !strcmp(s->arch, "rwkv7")    ? V7
           : !strcmp(s->arch, "rwkv6")  ? V6
           : !strcmp(s->arch, "gemma3") ? LLM | GEMMA
                                        : LLM;
}

static const struct {
    const char *key;
    size_t off;
    int64_t min, max;
    unsigned has, needs;
} int_fields[] = {
    { "n_layer", offsetof(hn_synth_shape, n_layer), 1, 1024, ANY | BY_KEYS, ANY | BY_KEYS },
    { "n_embd", offsetof(hn_synth_shape, n_embd), 1, 1 << 17, ANY, ANY },
    { "n_head", offsetof(hn_synth_shape, n_head), 1, 4096, ANY, LLM },
    { "n_ff", offsetof(hn_synth_shape, n_ff), 1, 1 << 20, ANY, LLM },
    { "n_vocab", offsetof(hn_synth_shape, n_vocab), 2, 1 << 22, ANY | BY_KEYS, ANY | BY_KEYS },
    { "n_head_kv", offsetof(hn_synth_shape, n_head_kv), 1, 4096, LLM, 0 },
    { "head_dim", offsetof(hn_synth_shape, head_dim), 2, 4096, ANY, 0 },
    { "n_ctx_train", offsetof(hn_synth_shape, n_ctx_train), 1, 1 << 30, ANY, 0 },
    { "rank_decay", offsetof(hn_synth_shape, rank_decay), 1, 1 << 14, V7 | V6, 0 },
    { "rank_iclr", offsetof(hn_synth_shape, rank_iclr), 1, 1 << 14, V7, 0 },
    { "rank_value", offsetof(hn_synth_shape, rank_value), 1, 1 << 14, V7, 0 },
    { "rank_gate", offsetof(hn_synth_shape, rank_gate), 1, 1 << 14, V7, 0 },
    { "rank_mix", offsetof(hn_synth_shape, rank_mix), 1, 1 << 14, V6, 0 },
    { "rescale_every", offsetof(hn_synth_shape, rescale_every), 0, 1024, V6, 0 },
    { "window", offsetof(hn_synth_shape, window), 0, 1 << 30, GEMMA, 0 },
};
static const struct {
    const char *key;
    size_t off;
    double min, max;
    unsigned has;
} float_fields[] = {
    { "rope_base", offsetof(hn_synth_shape, rope_base), 1, 1e12, LLM },
    { "rms_eps", offsetof(hn_synth_shape, rms_eps), 1e-12, 1, LLM },
    { "rope_factor", offsetof(hn_synth_shape, rope_factor), 1, 1e6, LLM | BY_KEYS },
    { "norm_eps", offsetof(hn_synth_shape, rms_eps), 1e-12, 1, V7 | V6 },
};
enum { n_int = sizeof int_fields / sizeof *int_fields, n_float = sizeof float_fields / sizeof *float_fields };
#define FIELDS                                                                                                   \
    "arch, n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train, rope_base, rms_eps, tied, " \
    "rope_factor; gemma3: window; "                                                                              \
    "RWKV: norm_eps, rank_decay, rank_iclr, rank_value, rank_gate, rank_mix, rescale_every; "                    \
    "any family: arch, n_layer, n_vocab, tied, rope_factor, keys, tensors"

static const char *kind(const json_t *v)
{
    static const char *const names[] = { "an object",     "an array", "a string", "an integer",
                                         "a real number", "true",     "false",    "null" };
    return (size_t)json_typeof(v) < sizeof names / sizeof *names ? names[json_typeof(v)] : "something else";
}

static hone_status not_in(const hn_synth_shape *s, const char *path, const char *key, hone_error *err)
{
    return HN_FAIL(err, HONE_E_ARG, "%s: field %s has no meaning for arch \"%s\"", path, key, s->arch);
}

static hone_status read_arch(hn_synth_shape *s, const char *path, const json_t *v, bool keys, hone_error *err)
{
    if (!v) return HN_FAIL(err, HONE_E_ARG, "%s: field arch is missing, expected " ARCHS, path);
    const char *a = json_string_value(v);
    if (!a) return HN_FAIL(err, HONE_E_ARG, "%s: arch is %s, expected " ARCHS, path, kind(v));
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (!strcmp(a, archs[i])) s->arch = archs[i];
    const hn_family *f = hn_family_find(a, strlen(a));
    if (f && !s->arch && !keys)
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: arch is \"%s\", whose shape is what its files have, but field keys is missing", path,
                       f->name);
    if (f && !strncmp(f->name, "rwkv", 4) && keys)
        return HN_FAIL(err, HONE_E_ARG, "%s: keys are there, expected none: arch \"%s\" is described by fields", path,
                       f->name);
    if (f) s->arch = f->name;
    return s->arch ? HONE_OK
                   : HN_FAIL(err, HONE_E_ARG, "%s: arch is \"%s\", expected " ARCHS, path, HN_ESC(a, strlen(a)));
}

/* ---- keys and tensors, as text ------------------------------------------------------------------------------ */

typedef struct text {
    char *p; /* malloc'ed */
    size_t n, cap;
    bool failed;
} text;

static void add_text(text *t, const char *s)
{
    size_t n = strlen(s);
    if (t->n + n + 1 > t->cap) {
        size_t cap = 2 * (t->n + n + 1);
        char *p = realloc(t->p, cap);
        if (!p) {
            t->failed = true;
            return;
        }
        t->p = p;
        t->cap = cap;
    }
    memcpy(t->p + t->n, s, n + 1);
    t->n += n;
}

/* A word: what has no blank, comma or equals sign, and no byte that is not shown. */
static bool is_word(const char *s)
{
    for (const char *p = s; *p; p++)
        if (*p <= ' ' || *p >= 0x7F || *p == '=' || *p == ',') return false;
    return *s != 0;
}

static bool is_integer(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= INT32_MAX;
}

static hone_status add_value(text *t, const char *path, const char *key, const json_t *v, hone_error *err)
{
    char number[40];
    double x = json_is_real(v) ? json_real_value(v) : 0;
    if (json_is_boolean(v)) add_text(t, json_is_true(v) ? "true" : "false");
    else if (is_integer(v)) snprintf(number, sizeof number, "%d", (int)json_integer_value(v)), add_text(t, number);
    else if (json_is_real(v) && isfinite(x) && fabs(x) < 1e30)
        snprintf(number, sizeof number, "%.9e", x), add_text(t, number);
    else if (json_is_string(v) && is_word(json_string_value(v)) && !strchr("-0123456789", *json_string_value(v)))
        add_text(t, json_string_value(v));
    else
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: keys: %s is %s, expected true, false, an integer from 0, a number, a word or a list", path,
                       HN_ESC(key, strlen(key)), kind(v));
    return HONE_OK;
}

/* A value for each layer; shorter lists begin again. All of one kind. */
static hone_status add_list(text *t, const char *path, const char *key, const json_t *list, hone_error *err)
{
    size_t n = json_array_size(list);
    const json_t *first = json_array_get(list, 0);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        if (json_is_boolean(v) ? !json_is_boolean(first) : !is_integer(v) || !is_integer(first))
            return HN_FAIL(err, HONE_E_ARG, "%s: keys: %s[%zu] is %s, expected truth values or integers from 0 alone",
                           path, HN_ESC(key, strlen(key)), i, kind(v));
        hone_status st = add_value(t, path, key, v, err);
        if (st != HONE_OK) return st;
        add_text(t, ","); /* behind the last too: it is a list */
    }
    if (n) return HONE_OK;
    return HN_FAIL(err, HONE_E_ARG, "%s: keys: %s is an empty list", path, HN_ESC(key, strlen(key)));
}

static hone_status read_keys(text *t, const char *path, const json_t *keys, hone_error *err)
{
    const char *key;
    json_t *v;
    if (!json_is_object(keys)) return HN_FAIL(err, HONE_E_ARG, "%s: keys is %s, expected an object", path, kind(keys));
    json_object_foreach((json_t *)keys, key, v)
    {
        if (!is_word(key) || strlen(key) > 100 || !strcmp(key, "block_count"))
            return HN_FAIL(err, HONE_E_ARG,
                           "%s: keys: \"%s\", expected what follows the family's name and a point, "
                           "as \"embedding_length\"; n_layer says block_count",
                           path, HN_ESC(key, strlen(key)));
        add_text(t, key);
        add_text(t, "=");
        hone_status st = json_is_array(v) ? add_list(t, path, key, v, err) : add_value(t, path, key, v, err);
        if (st != HONE_OK) return st;
        add_text(t, " ");
    }
    return HONE_OK;
}

static hone_status read_tensors(text *t, const hn_family *f, const char *path, const json_t *list, hone_error *err)
{
    if (list && !json_is_array(list))
        return HN_FAIL(err, HONE_E_ARG, "%s: tensors is %s, expected an array", path, kind(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        bool known = false;
        for (const hn_slot *s = f->outer; name && s->name; s++) known |= !strcmp(s->name, name);
        for (const hn_slot *s = f->layer; name && s->name; s++) known |= !strcmp(s->name, name);
        if (!known)
            return HN_FAIL(err, HONE_E_ARG,
                           "%s: tensors[%zu] is %s, expected one of %s, of layers without blk.N., as \"attn_q.bias\"",
                           path, i, name ? HN_ESC(name, strlen(name)) : kind(json_array_get(list, i)), f->name);
        add_text(t, name);
        add_text(t, " ");
    }
    return HONE_OK;
}

/* s->keys and s->has from the fields of these names, one behind the other in s->owned. */
static hone_status read_texts(hn_synth_shape *s, const char *path, const json_t *root, hone_error *err)
{
    text keys = { 0 }, has = { 0 };
    const hn_family *f = hn_family_find(s->arch, strlen(s->arch));
    hone_status st = read_keys(&keys, path, json_object_get(root, "keys"), err);
    if (st == HONE_OK) st = read_tensors(&has, f, path, json_object_get(root, "tensors"), err);
    size_t n = keys.n + 1;
    add_text(&has, "");
    char *all = st == HONE_OK && !keys.failed && !has.failed ? calloc(n + has.n + 1, 1) : NULL;
    if (st == HONE_OK && !all) st = HN_FAIL(err, HONE_E_NOMEM, "%s: keys", path);
    if (st == HONE_OK) {
        memcpy(all, keys.p ? keys.p : "", n);
        memcpy(all + n, has.p, has.n + 1);
        s->keys = s->owned = all;
        s->has = all + n;
    }
    free(keys.p);
    free(has.p);
    return st;
}

void hn_synth_shape_free(hn_synth_shape *s)
{
    free((void *)(uintptr_t)s->owned);
    s->keys = s->has = s->owned = NULL;
}

/* ---- fields --------------------------------------------------------------------------------------------------- */

static hone_status read_field(hn_synth_shape *s, const char *path, const char *key, const json_t *v, hone_error *err)
{
    if (!strcmp(key, "arch") || !strcmp(key, "keys")) return HONE_OK; /* read first */
    if (!strcmp(key, "tensors")) return s->keys ? HONE_OK : not_in(s, path, key, err);
    if (!strcmp(key, "tied")) {
        if (!json_is_boolean(v))
            return HN_FAIL(err, HONE_E_ARG, "%s: tied is %s, expected true or false", path, kind(v));
        s->tied = json_is_true(v);
        if (s->tied && hn_synth_is_rwkv(s))
            return HN_FAIL(err, HONE_E_ARG,
                           "%s: tied is true, expected false: %s files have an output matrix of their own", path,
                           s->arch);
        return HONE_OK;
    }
    for (int i = 0; i < n_int; i++) {
        if (strcmp(key, int_fields[i].key)) continue;
        if (!(int_fields[i].has & family(s))) return not_in(s, path, key, err);
        if (!json_is_integer(v))
            return HN_FAIL(err, HONE_E_ARG, "%s: %s is %s, expected an integer", path, key, kind(v));
        json_int_t x = json_integer_value(v);
        if (x < int_fields[i].min || x > int_fields[i].max)
            return HN_FAIL(err, HONE_E_ARG, "%s: %s is %lld, expected %lld to %lld", path, key, (long long)x,
                           (long long)int_fields[i].min, (long long)int_fields[i].max);
        memcpy((char *)s + int_fields[i].off, &(int32_t){ (int32_t)x }, 4);
        return HONE_OK;
    }
    for (int i = 0; i < n_float; i++) {
        if (strcmp(key, float_fields[i].key)) continue;
        if (!(float_fields[i].has & family(s))) return not_in(s, path, key, err);
        if (!json_is_number(v)) return HN_FAIL(err, HONE_E_ARG, "%s: %s is %s, expected a number", path, key, kind(v));
        double x = json_number_value(v);
        if (!(x >= float_fields[i].min && x <= float_fields[i].max))
            return HN_FAIL(err, HONE_E_ARG, "%s: %s is %g, expected %g to %g", path, key, x, float_fields[i].min,
                           float_fields[i].max);
        memcpy((char *)s + float_fields[i].off, &(float){ (float)x }, 4);
        return HONE_OK;
    }
    return HN_FAIL(err, HONE_E_ARG, "%s: unknown field \"%s\"; known: " FIELDS, path, HN_ESC(key, strlen(key)));
}

/* Keys are the reader's to judge. */
static hone_status check_keys(const hn_synth_shape *s, const char *where, hone_error *err)
{
    hn_synth_numbers n;
    hone_error e;
    hone_status st = hn_synth_numbers_of(&n, s, &e);
    if (st == HONE_OK) st = hn_synth_check_tensors(s, &n, where, err);
    else st = HN_FAIL(err, st == HONE_E_NOMEM ? st : HONE_E_ARG, "%s: %s", where, e.message);
    hn_synth_numbers_free(&n);
    return st;
}

hone_status hn_synth_check(const hn_synth_shape *s, const char *where, hone_error *err)
{
    if (s->keys) return check_keys(s, where, err);
    if (hn_synth_is_rwkv(s)) {
        if (s->n_embd % s->head_dim)
            return HN_FAIL(err, HONE_E_ARG, "%s: head_dim is %d, expected a divisor of n_embd = %d", where, s->head_dim,
                           s->n_embd);
        if (s->n_head != s->n_embd / s->head_dim)
            return HN_FAIL(err, HONE_E_ARG, "%s: n_head is %d, expected n_embd / head_dim = %d / %d, or nothing", where,
                           s->n_head, s->n_embd, s->head_dim);
        return HONE_OK;
    }
    if (s->n_head % s->n_head_kv)
        return HN_FAIL(err, HONE_E_ARG, "%s: n_head is %d, expected a multiple of n_head_kv = %d", where, s->n_head,
                       s->n_head_kv);
    if (s->head_dim % 2)
        return HN_FAIL(err, HONE_E_ARG, "%s: head_dim is %d, expected an even number (RoPE turns pairs)", where,
                       s->head_dim);
    if (!strcmp(s->arch, "qwen2") && (int64_t)s->head_dim * s->n_head != s->n_embd)
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: head_dim is %d, expected n_embd / n_head = %d / %d (qwen2 files do not store it)", where,
                       s->head_dim, s->n_embd, s->n_head);
    if (strcmp(s->arch, "llama") && strcmp(s->arch, "gemma3") && strcmp(s->arch, "gpt-oss") && s->rope_factor != 1)
        return HN_FAIL(err, HONE_E_ARG, "%s: rope_factor is %g, expected 1: only llama has rope_freqs.weight", where,
                       (double)s->rope_factor);
    return HONE_OK;
}

/* Usual inner widths of an RWKV-7 of this size: multiples of 32. */
static int32_t usual_rank(int32_t n_embd, double exponent, double factor)
{
    double n = rint(pow((double)n_embd, exponent) * factor / 32);
    return 32 * (n < 1 ? 1 : (int32_t)n);
}

static void rwkv_defaults(hn_synth_shape *s, bool has_ctx)
{
    int32_t e = s->n_embd;
    bool v7 = !strcmp(s->arch, "rwkv7"), large = e >= 4096;
    struct {
        int32_t *field, usual;
    } f[] = {
        { &s->head_dim, 64 },
        { &s->n_ff, v7 ? 4 * e : 7 * e / 64 * 32 },
        { &s->rank_decay, v7      ? usual_rank(e, 0.5, 1.8)
                          : large ? 128
                                  : 64 },
        { &s->rank_iclr, v7 ? usual_rank(e, 0.5, 1.8) : 0 },
        { &s->rank_value, v7 ? usual_rank(e, 0.5, 1.3) : 0 },
        { &s->rank_gate, v7 ? usual_rank(e, 0.8, 0.6) : 0 },
        { &s->rank_mix, v7      ? 0
                        : large ? 64
                                : 32 },
    };
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        if (!*f[i].field) *f[i].field = f[i].usual;
    if (!s->n_ff) s->n_ff = 32; /* rwkv6 of fewer than 10 columns */
    if (!s->n_head && s->n_embd % s->head_dim == 0) s->n_head = s->n_embd / s->head_dim;
    s->n_head_kv = s->n_head;
    if (!has_ctx) s->n_ctx_train = 1 << 20;
    if (s->rms_eps == 0) s->rms_eps = 1e-5f;
    s->tied = false;
}

static hone_status llm_defaults(hn_synth_shape *s, const char *path, hone_error *err)
{
    bool llama = !strcmp(s->arch, "llama");
    if (!s->n_head_kv) s->n_head_kv = s->n_head;
    if (!s->head_dim) {
        if (s->n_embd % s->n_head)
            return HN_FAIL(err, HONE_E_ARG, "%s: n_embd is %d, expected a multiple of n_head = %d, or a field head_dim",
                           path, s->n_embd, s->n_head);
        s->head_dim = s->n_embd / s->n_head;
    }
    if (s->rope_base == 0) s->rope_base = llama ? 1e4f : 1e6f;
    if (s->rms_eps == 0) s->rms_eps = llama ? 1e-5f : 1e-6f;
    return HONE_OK;
}

static hone_status read_shape(hn_synth_shape *s, const char *path, const json_t *root, int32_t n_vocab, hone_error *err)
{
    hone_status st;
    s->n_vocab = n_vocab;
    if (!json_is_object(root))
        return HN_FAIL(err, HONE_E_ARG, "%s: holds %s, expected an object with the fields " FIELDS, path, kind(root));
    const char *key;
    json_t *v;
    bool keys = json_object_get(root, "keys") != NULL;
    if ((st = read_arch(s, path, json_object_get(root, "arch"), keys, err)) != HONE_OK) return st;
    if (keys && (st = read_texts(s, path, root, err)) != HONE_OK) return st;
    json_object_foreach((json_t *)root, key, v) if ((st = read_field(s, path, key, v, err)) != HONE_OK) return st;
    for (int i = 0; i < n_int; i++)
        if (int_fields[i].needs & family(s) && !json_object_get(root, int_fields[i].key) &&
            !(n_vocab && int_fields[i].off == offsetof(hn_synth_shape, n_vocab)))
            return HN_FAIL(err, HONE_E_ARG, "%s: field %s is missing, expected an integer of %lld to %lld", path,
                           int_fields[i].key, (long long)int_fields[i].min, (long long)int_fields[i].max);
    if (n_vocab && s->n_vocab != n_vocab)
        return HN_FAIL(err, HONE_E_ARG, "%s: n_vocab is %d, expected the %d tokens of the tokenizer, or nothing", path,
                       s->n_vocab, n_vocab);
    if (s->keys) return hn_synth_check(s, path, err);
    if (s->window < 0) s->window = strcmp(s->arch, "gemma3") ? 0 : 512;
    if (hn_synth_is_rwkv(s)) rwkv_defaults(s, json_object_get(root, "n_ctx_train") != NULL);
    else if ((st = llm_defaults(s, path, err)) != HONE_OK) return st;
    return hn_synth_check(s, path, err);
}

hone_status hn_synth_config(hn_synth_shape *out, const char *path, hone_error *err)
{
    return hn_synth_config_for(out, path, 0, err);
}

enum { MAX_CONFIG = 1 << 20 };

hone_status hn_synth_config_for(hn_synth_shape *out, const char *path, int32_t n_vocab, hone_error *err)
{
    const hn_json_rules rules = { .max_bytes = MAX_CONFIG, .flags = HN_JSON_UNIQUE, .fault = HONE_E_ARG };
    json_t *root;
    hn_synth_shape s = { .n_ctx_train = 4096, .tied = true, .rope_factor = 1, .window = -1 };
    hone_status st = hn_json_tree_file(&root, path, &rules, err);
    if (st != HONE_OK) return st;
    st = read_shape(&s, path, root, n_vocab, err);
    json_decref(root);
    if (st == HONE_OK) *out = s;
    else hn_synth_shape_free(&s);
    return st;
}
