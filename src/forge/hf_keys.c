/* hf_keys: what of config.json becomes keys of GGUF. Owns the rows of all classes and what each kind of row does;
 * refuses to know single classes. */
#include "forge/hf_rows.h"

#include <math.h>
#include <stdlib.h>

/* ---- writing ------------------------------------------------------------------------------------------ */

static const char *arch_key(const hn_hf *f, char key[160], const char *suffix)
{
    snprintf(key, 160, "%s.%s", f->of->arch, suffix);
    return key;
}

hone_status hn_hf_put_u32(hn_hf *f, const char *key, uint32_t v, hone_error *err)
{
    char full[160];
    return hn_gguf_put_u32(f->w, arch_key(f, full, key), v, err);
}

hone_status hn_hf_put_f32(hn_hf *f, const char *key, double v, hone_error *err)
{
    char full[160];
    return hn_gguf_put_f32(f->w, arch_key(f, full, key), (float)v, err);
}

hone_status hn_hf_put_bool(hn_hf *f, const char *key, bool v, hone_error *err)
{
    char full[160];
    return hn_gguf_put_bool(f->w, arch_key(f, full, key), v, err);
}

hone_status hn_hf_put_str(hn_hf *f, const char *key, const char *v, hone_error *err)
{
    char full[160];
    return hn_gguf_put_str(f->w, arch_key(f, full, key), v, strlen(v), err);
}

hone_status hn_hf_put_layers(hn_hf *f, const char *key, hone_kv_type type, const void *v, int64_t n, hone_error *err)
{
    char full[160];
    return hn_gguf_put_array(f->w, arch_key(f, full, key), type, v, (uint64_t)n, err);
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

/* Rows of transformers; a class's own row of the same member or key replaces one. */
static const hn_hf_key common[] = {
    { "max_position_embeddings", "context_length", HN_HF_U32, HN_HF_NEEDED, 0 },
    { "hidden_size", "embedding_length", HN_HF_U32, HN_HF_NEEDED, 0 },
    { "num_hidden_layers", "block_count", HN_HF_U32, HN_HF_NEEDED, 0 },
    { "intermediate_size", "feed_forward_length", HN_HF_U32, HN_HF_NEEDED, 0 },
    { "num_attention_heads", "attention.head_count", HN_HF_U32, HN_HF_NEEDED, 0 },
    { "num_key_value_heads", "attention.head_count_kv", HN_HF_U32, HN_HF_OPTIONAL, 0 },
    { "head_dim", "attention.key_length|attention.value_length", HN_HF_U32, HN_HF_OPTIONAL, 0 },
    { "rms_norm_eps", "attention.layer_norm_rms_epsilon", HN_HF_F32, HN_HF_USUALLY, 1e-6 },
    { "vocab_size", "vocab_size", HN_HF_U32, HN_HF_NEEDED, 0 },
    { "hidden_act", "silu|swish", HN_HF_WORD, HN_HF_OPTIONAL, 0 },
    { NULL, NULL, HN_HF_U32, HN_HF_NEEDED, 0 },
};

/* The same member, or the same key. */
static bool same_row(const hn_hf_key *a, const hn_hf_key *b)
{
    size_t n = strcspn(a->config, "|"), m = strcspn(b->config, "|");
    if (n == m && !memcmp(a->config, b->config, n)) return true;
    const char *p = hn_hf_row_key(a), *q = hn_hf_row_key(b);
    return p && q && !strcmp(p, q);
}

static bool is_replaced(const hn_hf *f, const hn_hf_key *row)
{
    for (const hn_hf_key *k = f->of->keys; k && k->config; k++)
        if (same_row(k, row)) return true;
    return false;
}

void hn_hf_each_row(const hn_hf *f, hn_hf_row_fn *fn, void *arg)
{
    for (const hn_hf_key *k = common; k->config; k++)
        if (!is_replaced(f, k)) fn(arg, k);
    for (const hn_hf_key *k = f->of->keys; k && k->config; k++) fn(arg, k);
}

static hone_status put_number(hn_hf *f, const hn_hf_key *k, hone_error *err)
{
    char key[96];
    int64_t n = 0;
    double absent = f->of->eps != 0 && !strcmp(k->config, "rms_norm_eps") ? f->of->eps : k->absent, x = absent;
    bool was = true, yes = false;
    hone_status st = HONE_OK;
    if (k->kind == HN_HF_BOOL) TRY(hn_hf_truth(f, k->config, k->absent != 0, &yes, err));
    if (k->kind == HN_HF_U32) {
        TRY(hn_hf_whole(f, k->config, -1, &n, err));
        was = n >= 0;
        if (was && !strcmp(k->says, "block_count")) n += f->n_draft;
    } else if (k->kind == HN_HF_F32) TRY(hn_hf_number(f, k->config, absent, &x, &was, err));
    else was = hn_hf_get(f, k->config) != NULL;
    if (!was && k->when == HN_HF_NEEDED)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: has no %.*s, which a model of class %.*s needs", f->path,
                       (int)strcspn(k->config, "|"), k->config, (int)strcspn(f->of->names, "|"), f->of->names);
    if (!was && k->when == HN_HF_OPTIONAL) return HONE_OK;
    if (!was) n = (int64_t)k->absent;
    for (const char *p = k->says; st == HONE_OK && *p;) {
        size_t len = strcspn(p, "|");
        snprintf(key, sizeof key, "%.*s", (int)len, p);
        if (k->kind == HN_HF_U32) st = hn_hf_put_u32(f, key, (uint32_t)n, err);
        else if (k->kind == HN_HF_F32) st = hn_hf_put_f32(f, key, x, err);
        else st = hn_hf_put_bool(f, key, yes, err);
        p += len;
        p += *p != 0;
    }
    return st;
}

/* The error function's gelu of a family that is run with the tanh form; which Gemma's hidden_act means by it. */
static void note_gelu(const hn_hf *f, const hn_hf_key *k, const char *word)
{
    bool newer = json_is_string(json_object_get(f->config, "hidden_activation")) && strcmp(k->config, "hidden_act");
    bool older = !strncmp(f->of->arch, "gemma", 5) && !newer;
    if (!strcmp(word, "gelu") && !strncmp(k->says, "gelu_", 5) && !older)
        hn_convert_note(f->a, "%s: %.*s is gelu by the error function; hone and llama.cpp run %s with its tanh form",
                        f->path, (int)strcspn(k->config, "|"), k->config, f->of->arch);
}

/* Nothing is written: the formula is hone's at that value alone. */
static hone_status check_value(hn_hf *f, const hn_hf_key *k, hone_error *err)
{
    char want[96];
    const json_t *v = hn_hf_get(f, k->config);
    if (!v && k->kind == HN_HF_WORD && k->when == HN_HF_USUALLY) note_gelu(f, k, "gelu");
    if (!v) return HONE_OK;
    if (k->kind == HN_HF_WORD) {
        const char *w = json_string_value(v);
        if (!w || !hn_hf_is_word(k->says, w, strlen(w))) return hn_hf_refuse(f, k->config, v, k->says, err);
        note_gelu(f, k, w);
        return HONE_OK;
    }
    double x = json_is_boolean(v) ? json_is_true(v) : json_is_number(v) ? json_number_value(v) : NAN;
    if ((float)x == k->absent) return HONE_OK;
    if (json_is_boolean(v)) snprintf(want, sizeof want, "%s", k->absent != 0 ? "true" : "false");
    else snprintf(want, sizeof want, "%g", k->absent);
    return hn_hf_refuse(f, k->config, v, want, err);
}

static hone_status note_tensors(hn_hf *f, const hn_hf_key *k, hone_error *err)
{
    bool yes;
    hone_status st;
    TRY(hn_hf_truth(f, k->config, k->absent != 0, &yes, err));
    char *list = yes ? f->needed : f->without;
    size_t n = strlen(list), cap = sizeof f->needed;
    if (n + strlen(k->says) + 2 > cap)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: more than %zu bytes of names", k->config, cap);
    snprintf(list + n, cap - n, "%s%s", n ? "|" : "", k->says);
    return HONE_OK;
}

static hone_status put_rows(hn_hf *f, const hn_hf_key *rows, bool own, hone_error *err)
{
    hone_status st;
    for (const hn_hf_key *k = rows; k && k->config; k++) {
        if (!own && is_replaced(f, k)) continue;
        if (k->kind == HN_HF_ONLY || k->kind == HN_HF_WORD) TRY(check_value(f, k, err));
        else if (k->kind == HN_HF_MORE) hn_hf_get(f, k->config); /* known */
        else if (k->kind == HN_HF_TENSORS) TRY(note_tensors(f, k, err));
        else TRY(put_number(f, k, err));
    }
    return HONE_OK;
}

/* Which layers have the window, where that is no period that the family's files have without saying. */
static hone_status put_pattern(hn_hf *f, hone_error *err)
{
    const hn_switches *is = hn_family_find(f->of->arch, strlen(f->of->arch))->is;
    uint8_t windowed[HN_MAX_LAYER];
    hn_hf_layers l;
    hone_status st;
    if (!is || !(is->reads & HN_READS_WINDOW) || !hn_hf_get(f, "sliding_window")) return HONE_OK;
    TRY(hn_hf_read_windows(f, &l, windowed, err));
    if (!l.list) return HONE_OK;
    bool usual =
        is->window_rope != HN_WINDOW_ROPE_PLAIN || is->window_base != 0; /* llama.cpp's olmo 3 says it always */
    for (int32_t il = 0; il < l.n && is->window_period; il++)
        usual &= windowed[il] == hn_windowed_by_period(is, is->window_period, il);
    if (usual) return HONE_OK;
    return hn_hf_put_layers(f, "attention.sliding_window_pattern", HONE_KV_BOOL, windowed, l.n, err);
}

hone_status hn_hf_put_keys(hn_hf *f, hone_error *err)
{
    hone_status st;
    const json_t *said = f->of->said ? hn_hf_get(f, f->of->said) : NULL;
    if (f->of->said && (!said || (json_is_object(said) && !json_object_size(said))))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: has no %.*s, which a model of class %.*s needs", f->path,
                       (int)strcspn(f->of->said, "|"), f->of->said, (int)strcspn(f->of->names, "|"), f->of->names);
    TRY(hn_hf_find_drafts(f, err));
    TRY(put_rows(f, common, false, err));
    if (f->n_draft) TRY(hn_hf_put_u32(f, "nextn_predict_layers", (uint32_t)f->n_draft, err));
    TRY(put_rows(f, f->of->keys, true, err));
    if (f->of->more) TRY(f->of->more(f, err));
    TRY(hn_hf_put_modules(f, err));
    if (f->of->windows) TRY(put_pattern(f, err));
    return hn_hf_put_rope(f, err);
}
