/* synth_presets: shapes of models that people run, and the JSON form of any other
 * shape. Numbers: the published configurations, as in docs on architectures. */
#include "model/synth.h"

#include <jansson.h>
#include <math.h>
#include <strings.h>

typedef struct preset {
    const char *name, *aliases, *description; /* aliases: separated by spaces */
    hn_synth_shape s;
} preset;

/* arch, n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train, base, eps, tied, factor */
static const preset presets[] = {
    {"llama-3.2-1b", "llama-1b llama3.2-1b", "Llama 3.2 1B, tied, RoPE factors 32",
     {"llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 5e5f, 1e-5f, true, 32}},
    {"llama-3.2-3b", "llama-3b llama3.2-3b", "Llama 3.2 3B, tied, RoPE factors 32",
     {"llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, 5e5f, 1e-5f, true, 32}},
    {"llama-3-8b", "llama-8b llama3-8b", "Llama 3 8B",
     {"llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 5e5f, 1e-5f, false, 1}},
    {"llama-3.1-8b", "llama3.1-8b", "Llama 3.1 8B, RoPE factors 8",
     {"llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, 5e5f, 1e-5f, false, 8}},
    {"llama-3-70b", "llama-70b llama3-70b", "Llama 3 70B",
     {"llama", 80, 8192, 64, 8, 128, 28672, 128256, 8192, 5e5f, 1e-5f, false, 1}},
    {"qwen2.5-coder-0.5b", "qwen-0.5b qwen2.5-0.5b qwen2-0.5b", "Qwen2.5-Coder 0.5B, tied",
     {"qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e6f, 1e-6f, true, 1}},
    {"qwen2.5-coder-1.5b", "qwen-1.5b qwen2.5-1.5b qwen2-1.5b", "Qwen2.5-Coder 1.5B, tied",
     {"qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 32768, 1e6f, 1e-6f, true, 1}},
    {"qwen2.5-coder-3b", "qwen-3b qwen2.5-3b", "Qwen2.5-Coder 3B, tied",
     {"qwen2", 36, 2048, 16, 2, 128, 11008, 151936, 32768, 1e6f, 1e-6f, true, 1}},
    {"qwen2.5-coder-7b", "qwen-7b qwen2.5-7b qwen2-7b", "Qwen2.5-Coder 7B",
     {"qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e6f, 1e-6f, false, 1}},
    {"qwen2.5-coder-14b", "qwen-14b qwen2.5-14b", "Qwen2.5-Coder 14B",
     {"qwen2", 48, 5120, 40, 8, 128, 13824, 152064, 32768, 1e6f, 1e-6f, false, 1}},
    {"qwen3-0.6b", "qwen-0.6b", "Qwen3 0.6B, tied",
     {"qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1e6f, 1e-6f, true, 1}},
    {"qwen3-1.7b", "qwen-1.7b", "Qwen3 1.7B, tied",
     {"qwen3", 28, 2048, 16, 8, 128, 6144, 151936, 40960, 1e6f, 1e-6f, true, 1}},
    {"qwen3-4b", "qwen-4b", "Qwen3 4B, tied",
     {"qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, 1e6f, 1e-6f, true, 1}},
    {"qwen3-8b", "qwen-8b", "Qwen3 8B",
     {"qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1e6f, 1e-6f, false, 1}},
    {"qwen3-14b", "", "Qwen3 14B",
     {"qwen3", 40, 5120, 40, 8, 128, 17408, 151936, 40960, 1e6f, 1e-6f, false, 1}},
    {"qwen3-32b", "qwen-32b", "Qwen3 32B",
     {"qwen3", 64, 5120, 64, 8, 128, 25600, 151936, 40960, 1e6f, 1e-6f, false, 1}},
};
enum { n_presets = sizeof presets / sizeof *presets };

static bool has_word(const char *words, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = words; *p && n;) {
        size_t k = strcspn(p, " ");
        if (k == n && !strncasecmp(p, w, n)) return true;
        p += k;
        while (*p == ' ') p++;
    }
    return false;
}

const hn_synth_shape *hn_synth_preset(const char *name, const char **canonical)
{
    for (int i = 0; i < n_presets; i++)
        if (!strcasecmp(presets[i].name, name) || has_word(presets[i].aliases, name)) {
            if (canonical) *canonical = presets[i].name;
            return &presets[i].s;
        }
    return NULL;
}

uint64_t hn_synth_n_params(const hn_synth_shape *s)
{
    uint64_t e = (uint64_t)s->n_embd, d = (uint64_t)s->head_dim, q = (uint64_t)s->n_head * d, kv = (uint64_t)s->n_head_kv * d;
    uint64_t layer = 2 * e + 2 * e * q + 2 * e * kv + 3 * e * (uint64_t)s->n_ff;
    if (!strcmp(s->arch, "qwen2")) layer += q + 2 * kv;
    if (!strcmp(s->arch, "qwen3")) layer += 2 * d;
    return (uint64_t)s->n_layer * layer + e + (s->tied ? 1 : 2) * e * (uint64_t)s->n_vocab;
}

size_t hone_synth_presets(const hone_synth_preset **out)
{
    /* Written in full by whoever comes first; all write the same bytes. */
    static hone_synth_preset list[n_presets];
    static _Atomic int state; /* 0 none, 1 being made, 2 ready */
    int none = 0;
    if (atomic_compare_exchange_strong(&state, &none, 1)) {
        for (int i = 0; i < n_presets; i++)
            list[i] = (hone_synth_preset){presets[i].name, presets[i].s.arch, presets[i].description, hn_synth_n_params(&presets[i].s)};
        atomic_store(&state, 2);
    }
    while (atomic_load(&state) != 2) {}
    if (out) *out = list;
    return n_presets;
}

/* ---- shapes from JSON ------------------------------------------------------------- */

static const struct { const char *key; size_t off; int64_t min, max; bool required; } int_fields[] = {
    {"n_layer", offsetof(hn_synth_shape, n_layer), 1, 1024, true},
    {"n_embd", offsetof(hn_synth_shape, n_embd), 1, 1 << 17, true},
    {"n_head", offsetof(hn_synth_shape, n_head), 1, 4096, true},
    {"n_ff", offsetof(hn_synth_shape, n_ff), 1, 1 << 20, true},
    {"n_vocab", offsetof(hn_synth_shape, n_vocab), 2, 1 << 23, true},
    {"n_head_kv", offsetof(hn_synth_shape, n_head_kv), 1, 4096, false},
    {"head_dim", offsetof(hn_synth_shape, head_dim), 2, 4096, false},
    {"n_ctx_train", offsetof(hn_synth_shape, n_ctx_train), 1, 1 << 30, false},
};
static const struct { const char *key; size_t off; double min, max; } float_fields[] = {
    {"rope_base", offsetof(hn_synth_shape, rope_base), 1, 1e12},
    {"rms_eps", offsetof(hn_synth_shape, rms_eps), 1e-12, 1},
    {"rope_factor", offsetof(hn_synth_shape, rope_factor), 1, 1e6},
};
enum { n_int = sizeof int_fields / sizeof *int_fields, n_float = sizeof float_fields / sizeof *float_fields };
#define FIELDS "arch, n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train, rope_base, rms_eps, tied, rope_factor"

static const char *kind(const json_t *v)
{
    static const char *const names[] = {"an object", "an array", "a string", "an integer", "a real number", "true", "false", "null"};
    return (size_t)json_typeof(v) < sizeof names / sizeof *names ? names[json_typeof(v)] : "something else";
}

static hone_status read_field(hn_synth_shape *s, const char *path, const char *key, const json_t *v, hone_error *err)
{
    if (!strcmp(key, "arch")) {
        const char *a = json_string_value(v);
        if (!a) return HN_FAIL(err, HONE_E_ARG, "%s: arch is %s, expected \"llama\", \"qwen2\" or \"qwen3\"", path, kind(v));
        s->arch = !strcmp(a, "llama") ? "llama" : !strcmp(a, "qwen2") ? "qwen2" : !strcmp(a, "qwen3") ? "qwen3" : NULL;
        if (!s->arch) return HN_FAIL(err, HONE_E_ARG, "%s: arch is \"%s\", expected \"llama\", \"qwen2\" or \"qwen3\"", path, HN_ESC(a, strlen(a)));
        return HONE_OK;
    }
    if (!strcmp(key, "tied")) {
        if (!json_is_boolean(v)) return HN_FAIL(err, HONE_E_ARG, "%s: tied is %s, expected true or false", path, kind(v));
        s->tied = json_is_true(v);
        return HONE_OK;
    }
    for (int i = 0; i < n_int; i++) {
        if (strcmp(key, int_fields[i].key)) continue;
        if (!json_is_integer(v)) return HN_FAIL(err, HONE_E_ARG, "%s: %s is %s, expected an integer", path, key, kind(v));
        json_int_t x = json_integer_value(v);
        if (x < int_fields[i].min || x > int_fields[i].max)
            return HN_FAIL(err, HONE_E_ARG, "%s: %s is %lld, expected %lld to %lld", path, key, (long long)x,
                           (long long)int_fields[i].min, (long long)int_fields[i].max);
        memcpy((char *)s + int_fields[i].off, &(int32_t){(int32_t)x}, 4);
        return HONE_OK;
    }
    for (int i = 0; i < n_float; i++) {
        if (strcmp(key, float_fields[i].key)) continue;
        if (!json_is_number(v)) return HN_FAIL(err, HONE_E_ARG, "%s: %s is %s, expected a number", path, key, kind(v));
        double x = json_number_value(v);
        if (!(x >= float_fields[i].min && x <= float_fields[i].max))
            return HN_FAIL(err, HONE_E_ARG, "%s: %s is %g, expected %g to %g", path, key, x, float_fields[i].min, float_fields[i].max);
        memcpy((char *)s + float_fields[i].off, &(float){(float)x}, 4);
        return HONE_OK;
    }
    return HN_FAIL(err, HONE_E_ARG, "%s: unknown field \"%s\"; known: " FIELDS, path, HN_ESC(key, strlen(key)));
}

hone_status hn_synth_check(const hn_synth_shape *s, const char *where, hone_error *err)
{
    if (s->n_head % s->n_head_kv)
        return HN_FAIL(err, HONE_E_ARG, "%s: n_head is %d, expected a multiple of n_head_kv = %d", where, s->n_head, s->n_head_kv);
    if (s->head_dim % 2)
        return HN_FAIL(err, HONE_E_ARG, "%s: head_dim is %d, expected an even number (RoPE turns pairs)", where, s->head_dim);
    if (!strcmp(s->arch, "qwen2") && (int64_t)s->head_dim * s->n_head != s->n_embd)
        return HN_FAIL(err, HONE_E_ARG, "%s: head_dim is %d, expected n_embd / n_head = %d / %d (qwen2 files do not store it)",
                       where, s->head_dim, s->n_embd, s->n_head);
    if (strcmp(s->arch, "llama") && s->rope_factor != 1)
        return HN_FAIL(err, HONE_E_ARG, "%s: rope_factor is %g, expected 1: only llama has rope_freqs.weight", where, (double)s->rope_factor);
    return HONE_OK;
}

static hone_status read_shape(hn_synth_shape *s, const char *path, const json_t *root, hone_error *err)
{
    hone_status st;
    if (!json_is_object(root)) return HN_FAIL(err, HONE_E_ARG, "%s: holds %s, expected an object with the fields " FIELDS, path, kind(root));
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)root, key, v)
        if ((st = read_field(s, path, key, v, err)) != HONE_OK) return st;
    if (!s->arch) return HN_FAIL(err, HONE_E_ARG, "%s: field arch is missing, expected \"llama\", \"qwen2\" or \"qwen3\"", path);
    for (int i = 0; i < n_int; i++)
        if (int_fields[i].required && !json_object_get(root, int_fields[i].key))
            return HN_FAIL(err, HONE_E_ARG, "%s: field %s is missing, expected an integer of %lld to %lld", path, int_fields[i].key,
                           (long long)int_fields[i].min, (long long)int_fields[i].max);
    bool llama = !strcmp(s->arch, "llama");
    if (!s->n_head_kv) s->n_head_kv = s->n_head;
    if (!s->head_dim) {
        if (s->n_embd % s->n_head)
            return HN_FAIL(err, HONE_E_ARG, "%s: n_embd is %d, expected a multiple of n_head = %d, or a field head_dim", path, s->n_embd, s->n_head);
        s->head_dim = s->n_embd / s->n_head;
    }
    if (s->rope_base == 0) s->rope_base = llama ? 1e4f : 1e6f;
    if (s->rms_eps == 0) s->rms_eps = llama ? 1e-5f : 1e-6f;
    return hn_synth_check(s, path, err);
}

hone_status hn_synth_config(hn_synth_shape *out, const char *path, hone_error *err)
{
    json_error_t je;
    hn_synth_shape s = {.n_ctx_train = 4096, .tied = true, .rope_factor = 1};
    FILE *f = fopen(path, "rb");
    if (!f) return HN_FAIL(err, HONE_E_IO, "%s: cannot open: %m", path);
    json_t *root = json_loadf(f, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
    bool io = ferror(f);
    fclose(f);
    if (!root) {
        if (io) return HN_FAIL(err, HONE_E_IO, "%s: cannot read", path);
        return HN_FAIL(err, HONE_E_ARG, "%s: line %d: %s; expected JSON such as {\"arch\": \"llama\", \"n_layer\": 2, …}", path, je.line,
                       HN_ESC(je.text, strlen(je.text)));
    }
    hone_status st = read_shape(&s, path, root, err);
    json_decref(root);
    if (st == HONE_OK) *out = s;
    return st;
}
