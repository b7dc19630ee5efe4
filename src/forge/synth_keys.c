/* synth_keys: a shape as the keys of its file. Presets of most families are these keys, as text; what follows from them
 * (numbers, what each layer does) the model's own reader says. Knows no tensors. */
#include "forge/synth.h"

#include <stdlib.h>

/* ---- words of a text ----------------------------------------------------------------------------------- */

bool hn_synth_has(const char *words, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = words; p && *p;) {
        size_t k = strcspn(p, " ");
        if (k == n && !memcmp(p, w, n)) return true;
        p += k;
        while (*p == ' ') p++;
    }
    return false;
}

/* "name=value" at *at: true, and *at behind it; false at the end. */
static bool next_key(const char **at, hone_str *name, hone_str *value)
{
    const char *p = *at;
    while (p && *p == ' ') p++;
    if (!p || !*p) return false;
    size_t n = strcspn(p, " "), k = strcspn(p, "= ");
    *name = (hone_str){ p, k };
    *value = (hone_str){ p + k + 1, n > k ? n - k - 1 : 0 };
    *at = p + n;
    return true;
}

double hn_synth_key_of(const hn_synth_shape *s, const char *key, double absent)
{
    hone_str name, value;
    for (const char *at = s->keys; next_key(&at, &name, &value);)
        if (name.len == strlen(key) && !memcmp(name.ptr, key, name.len)) return strtod(value.ptr, NULL);
    return absent;
}

/* ---- values ---------------------------------------------------------------------------------------------- */

static bool is(hone_str v, const char *word) { return v.len == strlen(word) && !memcmp(v.ptr, word, v.len); }
static bool is_bool(hone_str v) { return is(v, "true") || is(v, "false"); }
static bool has_byte(hone_str v, const char *any)
{
    for (size_t i = 0; i < v.len; i++)
        if (strchr(any, v.ptr[i])) return true;
    return false;
}

/* The one list whose values are not of layers. */
static bool has_own_length(const char *key)
{
    const char *tail = strstr(key, ".rope.dimension_sections");
    return tail && !tail[strlen(".rope.dimension_sections")];
}

static int32_t n_values(hone_str v)
{
    int32_t n = v.len > 0 && v.ptr[v.len - 1] != ','; /* a comma may end it */
    for (size_t i = 0; i < v.len; i++) n += v.ptr[i] == ',';
    return n;
}

/* Values between commas, again from the first until each layer has one. */
static hone_status put_layers(hn_gguf_writer *w, const char *key, hone_str v, int32_t n_layer, hone_error *err)
{
    if (has_own_length(key)) n_layer = n_values(v);
    bool truth = is_bool((hone_str){ v.ptr, strcspn(v.ptr, ", ") });
    uint8_t *b = malloc((size_t)n_layer * 5);
    int32_t *x = (int32_t *)(void *)b;
    if (!b) return HN_FAIL(err, HONE_E_NOMEM, "%s: %d layers", key, n_layer);
    const char *p = v.ptr, *end = v.ptr + v.len;
    for (int32_t il = 0; il < n_layer; il++) {
        if (p >= end) p = v.ptr;
        hone_str one = { p, strcspn(p, ", ") };
        if (truth) b[il] = is(one, "true");
        else x[il] = (int32_t)strtol(p, NULL, 10);
        p += one.len + 1;
    }
    hone_status st = hn_gguf_put_array(w, key, truth ? HONE_KV_BOOL : HONE_KV_I32, b, (uint64_t)n_layer, err);
    free(b);
    return st;
}

static hone_status put_value(hn_gguf_writer *w, const char *key, hone_str v, int32_t n_layer, hone_error *err)
{
    if (has_byte(v, ",")) return put_layers(w, key, v, n_layer, err);
    if (is_bool(v)) return hn_gguf_put_bool(w, key, is(v, "true"), err);
    if (!v.len || !strchr("-0123456789", v.ptr[0])) return hn_gguf_put_str(w, key, v.ptr, v.len, err);
    if (has_byte(v, ".eE")) return hn_gguf_put_f32(w, key, strtof(v.ptr, NULL), err);
    return hn_gguf_put_u32(w, key, (uint32_t)strtoul(v.ptr, NULL, 10), err);
}

hone_status hn_synth_put_keys(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err)
{
    char key[160];
    hone_str name, value;
    snprintf(key, sizeof key, "%s.block_count", s->arch);
    hone_status st = hn_gguf_put_u32(w, key, (uint32_t)s->n_layer, err);
    for (const char *at = s->keys; st == HONE_OK && next_key(&at, &name, &value);) {
        const bool bare = name.len > 6 && !memcmp(name.ptr, "xielu.", 6); /* not below the family's name */
        snprintf(key, sizeof key, "%s%s%.*s", bare ? "" : s->arch, bare ? "" : ".", (int)name.len, name.ptr);
        if (is(name, "attention.shared_kv_layers")) { /* the last so many: a slice has fewer, or none */
            int32_t n = (int32_t)strtol(value.ptr, NULL, 10) - s->n_cut;
            st = hn_gguf_put_u32(w, key, (uint32_t)(n > 0 ? n : 0), err);
        } else st = put_value(w, key, value, s->n_layer, err);
    }
    return st;
}

/* ---- what follows from the keys ------------------------------------------------------------------------- */

static hone_status put_all(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err)
{
    hone_status st = hn_gguf_put_str(w, "general.architecture", s->arch, strlen(s->arch), err);
    if (st != HONE_OK) return st;
    return hn_synth_is_rwkv(s) ? hn_synth_put_rwkv(w, s, err) : hn_synth_put_shape(w, s, err);
}

void hn_synth_numbers_free(hn_synth_numbers *n)
{
    hone_model_close(n->model);
    free(n->bytes);
    *n = (hn_synth_numbers){ 0 };
}

hone_status hn_synth_numbers_of(hn_synth_numbers *out, const hn_synth_shape *s, hone_error *err)
{
    hn_gguf_writer *w = NULL;
    hn_gguf *keys = NULL;
    size_t n;
    *out = (hn_synth_numbers){ 0 };
    hone_status st = hn_gguf_writer_new(&w, err);
    if (st == HONE_OK) st = put_all(w, s, err);
    if (st == HONE_OK) st = hn_gguf_write_keys(w, &out->bytes, &n, err);
    if (st == HONE_OK) st = hn_gguf_parse(&keys, out->bytes, n, "the shape", err);
    if (st == HONE_OK) st = hn_model_from_keys(&out->model, keys, s->n_vocab, err);
    hn_gguf_writer_free(w);
    if (st != HONE_OK) hn_synth_numbers_free(out);
    return st;
}
