/* synth_presets: shapes of models that people run, and the JSON form of any other
 * shape. Numbers: the published configurations, as in docs on architectures. */
#include "base/json_tree.h"
#include "forge/synth.h"

#include <jansson.h>
#include <math.h>
#include <strings.h>

typedef struct preset {
    const char *name, *aliases, *description; /* aliases: separated by spaces */
    hn_synth_shape s;
} preset;

#define TRANSFORMER(...)                          \
    {                                             \
        __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }
/* the last: window */
#define GEMMA3(n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_ctx, factor, window)                             \
    {                                                                                                                 \
        "gemma3", n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, 262144, n_ctx, 1e6f, 1e-6f, true, factor, 0, 0, \
            0, 0, 0, 0, window, 0, 0, 0                                                                               \
    }
#define RWKV(arch, n_layer, n_embd, n_ff, ...)                                                             \
    {                                                                                                      \
        arch, n_layer, n_embd, (n_embd) / 64, (n_embd) / 64, 64, n_ff, 65536, 1048576, 0, 1e-5f, false, 1, \
            __VA_ARGS__, 0, 0, 0, 0                                                                        \
    }

/* the last: as TRANSFORMER's, window, experts, those of a token, their width */
#define EXPERTS(window, n_expert, n_used, n_ff_exp, ...)                  \
    {                                                                     \
        __VA_ARGS__, 0, 0, 0, 0, 0, 0, window, n_expert, n_used, n_ff_exp \
    }

/* arch, n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train, base, eps, tied, factor
 * RWKV: arch, n_layer, n_embd, n_ff, ranks of decay, iclr, value, gate, mix; rescale_every */
static const preset presets[] = {
    { "llama-3.2-1b", "llama-1b llama3.2-1b", "Llama 3.2 1B, tied, RoPE factors 32",
      TRANSFORMER("llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 5e5f, 1e-5f, true, 32) },
    { "llama-3.2-3b", "llama-3b llama3.2-3b", "Llama 3.2 3B, tied, RoPE factors 32",
      TRANSFORMER("llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, 5e5f, 1e-5f, true, 32) },
    { "llama-3-8b", "llama-8b llama3-8b", "Llama 3 8B",
      TRANSFORMER("llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 5e5f, 1e-5f, false, 1) },
    { "llama-3.1-8b", "llama3.1-8b", "Llama 3.1 8B, RoPE factors 8",
      TRANSFORMER("llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, 5e5f, 1e-5f, false, 8) },
    { "llama-3-70b", "llama-70b llama3-70b", "Llama 3 70B",
      TRANSFORMER("llama", 80, 8192, 64, 8, 128, 28672, 128256, 8192, 5e5f, 1e-5f, false, 1) },
    { "qwen2.5-coder-0.5b", "qwen-0.5b qwen2.5-0.5b qwen2-0.5b", "Qwen2.5-Coder 0.5B, tied",
      TRANSFORMER("qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e6f, 1e-6f, true, 1) },
    { "qwen2.5-coder-1.5b", "qwen-1.5b qwen2.5-1.5b qwen2-1.5b", "Qwen2.5-Coder 1.5B, tied",
      TRANSFORMER("qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 32768, 1e6f, 1e-6f, true, 1) },
    { "qwen2.5-coder-3b", "qwen-3b qwen2.5-3b", "Qwen2.5-Coder 3B, tied",
      TRANSFORMER("qwen2", 36, 2048, 16, 2, 128, 11008, 151936, 32768, 1e6f, 1e-6f, true, 1) },
    { "qwen2.5-coder-7b", "qwen-7b qwen2.5-7b qwen2-7b", "Qwen2.5-Coder 7B",
      TRANSFORMER("qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e6f, 1e-6f, false, 1) },
    { "qwen2.5-coder-14b", "qwen-14b qwen2.5-14b", "Qwen2.5-Coder 14B",
      TRANSFORMER("qwen2", 48, 5120, 40, 8, 128, 13824, 152064, 32768, 1e6f, 1e-6f, false, 1) },
    { "qwen3-0.6b", "qwen-0.6b", "Qwen3 0.6B, tied",
      TRANSFORMER("qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1e6f, 1e-6f, true, 1) },
    { "qwen3-1.7b", "qwen-1.7b", "Qwen3 1.7B, tied",
      TRANSFORMER("qwen3", 28, 2048, 16, 8, 128, 6144, 151936, 40960, 1e6f, 1e-6f, true, 1) },
    { "qwen3-4b", "qwen-4b", "Qwen3 4B, tied",
      TRANSFORMER("qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, 1e6f, 1e-6f, true, 1) },
    { "qwen3-8b", "qwen-8b", "Qwen3 8B",
      TRANSFORMER("qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1e6f, 1e-6f, false, 1) },
    { "qwen3-14b", "", "Qwen3 14B",
      TRANSFORMER("qwen3", 40, 5120, 40, 8, 128, 17408, 151936, 40960, 1e6f, 1e-6f, false, 1) },
    { "qwen3-32b", "qwen-32b", "Qwen3 32B",
      TRANSFORMER("qwen3", 64, 5120, 64, 8, 128, 25600, 151936, 40960, 1e6f, 1e-6f, false, 1) },
    { "qwen3-30b-a3b", "qwen-30b-a3b qwen3-30b", "Qwen3 30B-A3B, 128 experts, 8 of a token",
      EXPERTS(0, 128, 8, 768, "qwen3moe", 48, 2048, 32, 4, 128, 6144, 151936, 40960, 1e6f, 1e-6f, false, 1) },
    { "gpt-oss-20b", "", "gpt-oss 20B, 32 experts, 4 of a token, MXFP4, window 128",
      EXPERTS(128, 32, 4, 2880, "gpt-oss", 24, 2880, 64, 8, 64, 2880, 201088, 131072, 1.5e5f, 1e-5f, false, 32) },
    { "gemma-3-270m", "gemma3-270m", "Gemma 3 270M, tied, window 512",
      GEMMA3(18, 640, 4, 1, 256, 2048, 32768, 1, 512) },
    { "gemma-3-1b", "gemma3-1b", "Gemma 3 1B, tied, window 512", GEMMA3(26, 1152, 4, 1, 256, 6912, 32768, 1, 512) },
    { "gemma-3-4b", "gemma3-4b", "Gemma 3 4B (text), tied, window 1024, RoPE factor 8",
      GEMMA3(34, 2560, 8, 4, 256, 10240, 131072, 8, 1024) },
    { "rwkv7-0.1b", "rwkv-0.1b rwkv7-191m rwkv-7-0.1b", "RWKV-7 World 0.1B",
      RWKV("rwkv7", 12, 768, 3072, 64, 64, 32, 128, 0, 0) },
    { "rwkv7-0.4b", "rwkv-0.4b rwkv7-450m rwkv-7-0.4b", "RWKV-7 World 0.4B",
      RWKV("rwkv7", 24, 1024, 4096, 64, 64, 32, 128, 0, 0) },
    { "rwkv7-1.5b", "rwkv-1.5b rwkv-7-1.5b", "RWKV-7 World 1.5B",
      RWKV("rwkv7", 24, 2048, 8192, 96, 96, 64, 256, 0, 0) },
    { "rwkv7-2.9b", "rwkv-2.9b rwkv-7-2.9b", "RWKV-7 World 2.9B",
      RWKV("rwkv7", 32, 2560, 10240, 96, 96, 64, 320, 0, 0) },
    { "rwkv6-1.6b", "rwkv-1.6b rwkv-6-1.6b", "RWKV-6 Finch 1.6B, stream halved every 6 layers",
      RWKV("rwkv6", 24, 2048, 7168, 64, 0, 0, 0, 32, 6) },
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

size_t hone_synth_presets(const hone_synth_preset **out)
{
    /* Written in full by whoever comes first; all write the same bytes. */
    static hone_synth_preset list[n_presets];
    static _Atomic int state; /* 0 none, 1 being made, 2 ready */
    int none = 0;
    if (atomic_compare_exchange_strong(&state, &none, 1)) {
        for (int i = 0; i < n_presets; i++)
            list[i] = (hone_synth_preset){ presets[i].name, presets[i].s.arch, presets[i].description,
                                           hn_synth_n_params(&presets[i].s) };
        atomic_store(&state, 2);
    }
    while (atomic_load(&state) != 2) {}
    if (out) *out = list;
    return n_presets;
}

/* ---- shapes from JSON ------------------------------------------------------------- */

/* Which architectures have a field, and which need it. */
enum { LLM = 1, V7 = 2, V6 = 4, GEMMA = 8, ANY = 7 };
#define ARCHS "\"llama\", \"qwen2\", \"qwen3\", \"gemma3\", \"rwkv7\" or \"rwkv6\""
static const char *const archs[] = { "llama", "qwen2", "qwen3", "gemma3", "rwkv7", "rwkv6" };

static unsigned family(const hn_synth_shape *s)
{
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
    { "n_layer", offsetof(hn_synth_shape, n_layer), 1, 1024, ANY, ANY },
    { "n_embd", offsetof(hn_synth_shape, n_embd), 1, 1 << 17, ANY, ANY },
    { "n_head", offsetof(hn_synth_shape, n_head), 1, 4096, ANY, LLM },
    { "n_ff", offsetof(hn_synth_shape, n_ff), 1, 1 << 20, ANY, LLM },
    { "n_vocab", offsetof(hn_synth_shape, n_vocab), 2, 1 << 23, ANY, ANY },
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
    { "rope_factor", offsetof(hn_synth_shape, rope_factor), 1, 1e6, LLM },
    { "norm_eps", offsetof(hn_synth_shape, rms_eps), 1e-12, 1, V7 | V6 },
};
enum { n_int = sizeof int_fields / sizeof *int_fields, n_float = sizeof float_fields / sizeof *float_fields };
#define FIELDS                                                                                                   \
    "arch, n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train, rope_base, rms_eps, tied, " \
    "rope_factor; gemma3: window; "                                                                              \
    "RWKV: norm_eps, rank_decay, rank_iclr, rank_value, rank_gate, rank_mix, rescale_every"

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

static hone_status read_arch(hn_synth_shape *s, const char *path, const json_t *v, hone_error *err)
{
    if (!v) return HN_FAIL(err, HONE_E_ARG, "%s: field arch is missing, expected " ARCHS, path);
    const char *a = json_string_value(v);
    if (!a) return HN_FAIL(err, HONE_E_ARG, "%s: arch is %s, expected " ARCHS, path, kind(v));
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (!strcmp(a, archs[i])) s->arch = archs[i];
    return s->arch ? HONE_OK
                   : HN_FAIL(err, HONE_E_ARG, "%s: arch is \"%s\", expected " ARCHS, path, HN_ESC(a, strlen(a)));
}

static hone_status read_field(hn_synth_shape *s, const char *path, const char *key, const json_t *v, hone_error *err)
{
    if (!strcmp(key, "arch")) { return HONE_OK; /* read first */ }
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

hone_status hn_synth_check(const hn_synth_shape *s, const char *where, hone_error *err)
{
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
    if ((st = read_arch(s, path, json_object_get(root, "arch"), err)) != HONE_OK) return st;
    json_object_foreach((json_t *)root, key, v) if ((st = read_field(s, path, key, v, err)) != HONE_OK) return st;
    for (int i = 0; i < n_int; i++)
        if (int_fields[i].needs & family(s) && !json_object_get(root, int_fields[i].key) &&
            !(n_vocab && int_fields[i].off == offsetof(hn_synth_shape, n_vocab)))
            return HN_FAIL(err, HONE_E_ARG, "%s: field %s is missing, expected an integer of %lld to %lld", path,
                           int_fields[i].key, (long long)int_fields[i].min, (long long)int_fields[i].max);
    if (n_vocab && s->n_vocab != n_vocab)
        return HN_FAIL(err, HONE_E_ARG, "%s: n_vocab is %d, expected the %d tokens of the tokenizer, or nothing", path,
                       s->n_vocab, n_vocab);
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
    return st;
}
