/* synth: shapes against the published models, spreads of every block type through the
 * decoders, the same bytes whatever the threads, clean failures. */
#define _GNU_SOURCE
#include "gguf/gguf.h"
#include "forge/synth.h"
#include "slowed.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-synth-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int n_files(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static int remove_dir(void **state)
{
    DIR *d = opendir(dir);
    if (!d) return -1;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    return rmdir(dir);
}

static const char *in_dir(const char *name)
{
    static char path[4][128];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static char *read_whole(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *p = malloc(*n);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, *n, f), *n);
    fclose(f);
    return p;
}

/* ---- shapes ---------------------------------------------------------------------- */

/* Millions of parameters and tensor counts as published for the real models. */
static const struct {
    const char *preset;
    double m_params;
    size_t n_tensors;
} published[] = {
    { "llama-3.2-1b", 1235.8, 147 },
    { "llama-3.2-3b", 3212.7, 255 },
    { "llama-3-8b", 8030.3, 291 },
    { "llama-3.1-8b", 8030.3, 292 },
    { "llama-3-70b", 70553.7, 723 },
    { "qwen2.5-coder-0.5b", 494.0, 290 },
    { "qwen2.5-coder-1.5b", 1543.7, 338 },
    { "qwen2.5-coder-3b", 3085.9, 434 },
    { "qwen2.5-coder-7b", 7615.6, 339 },
    { "qwen2.5-coder-14b", 14770.0, 579 },
    { "qwen3-0.6b", 596.0, 310 },
    { "qwen3-1.7b", 1720.6, 310 },
    { "qwen3-4b", 4022.5, 398 },
    { "qwen3-8b", 8190.7, 399 },
    { "qwen3-14b", 14768.3, 443 },
    { "qwen3-32b", 32762.1, 707 },
    { "qwen3-30b-a3b", 30532.1, 579 },
    { "gpt-oss-20b", 20914.8, 459 },
    { "gemma-3-270m", 268.1, 236 },
    { "gemma-3-1b", 999.9, 340 },
    { "gemma-3-4b", 3880.1, 444 },
    { "gemma-3-12b", 11765.8, 626 },
    { "gemma-3-27b", 27009.0, 808 },
    { "gemma-4-e2b", 4628.6, 541 },
    { "gemma-4-e4b", 7463.0, 666 },
    { "gemma-4-26b-a4b", 25233.1, 658 },
    { "gemma-4-31b", 30697.3, 833 },
    { "qwen3-235b-a22b", 235093.6, 1131 },
    { "gpt-oss-120b", 116829.2, 687 },
    { "mistral-small-3.2-24b", 23572.4, 363 },
    { "smollm3-3b", 3075.1, 326 },
    { "phi-4", 14659.5, 243 },
    { "phi-4-mini", 3836.0, 196 },
    { "olmo-7b", 6888.1, 226 },
    { "bitnet-2b", 2412.8, 332 },
    { "olmo-3-7b", 7298.0, 355 },
    { "olmo-3-32b", 32233.5, 707 },
    { "glm-4.7-flash", 29943.4, 844 },
    { "deepseek-v2-lite", 15706.5, 404 },
    { "glm-4.5-air", 106852.3, 780 },
    { "llama-4-scout", 107769.9, 628 },
    { "qwen3.5-4b", 4205.8, 426 },
    { "qwen3.5-9b", 8953.8, 427 },
    { "qwen3.5-27b", 26896.0, 851 },
    { "qwen3.5-35b-a3b", 34660.6, 733 },
    { "qwen3-next-80b-a3b", 79674.4, 843 },
    { "mixtral-8x7b", 46702.8, 323 },
    { "kimi-linear-48b-a3b", 49122.7, 610 },
    { "granite-4.0-h-tiny", 6939.0, 666 },
    { "lfm2-1.2b", 1170.3, 148 },
    { "lfm2-8b-a1b", 8339.9, 256 },
    { "mamba-2.8b", 2768.3, 642 },
    { "falcon-mamba-7b", 7272.7, 643 },
    { "jamba-v0.1", 51570.3, 531 },
    { "falcon-h1-0.5b", 521.4, 579 },
    { "nemotron-nano-9b-v2", 8888.2, 341 },
    { "nemotron-3-nano-30b-a3b", 31577.9, 401 },
    { "qwen3-embedding-0.6b", 595.8, 310 },
    { "embeddinggemma-300m", 307.6, 316 },
    { "bge-small-en-v1.5", 33.2, 197 },
    { "nomic-embed-text-v1.5", 136.7, 112 },
    { "nomic-embed-text-v2-moe", 475.3, 190 },
    { "jina-embeddings-v3", 558.3, 388 },
    { "gte-modernbert-base", 149.0, 134 },
    { "eurobert-210m", 211.8, 110 },
    { "llama-embed-nemotron-8b", 7504.9, 290 },
    { "bge-reranker-v2-m3", 567.8, 393 },
    { "rwkv7-0.1b", 191.03, 342 },
    { "rwkv7-0.4b", 450.8, 678 },
    { "rwkv7-1.5b", 1527.4, 678 },
    { "rwkv7-2.9b", 2947.7, 902 },
    { "rwkv6-1.6b", 1599.9, 582 },
};
enum { n_published = sizeof published / sizeof *published };

static hn_synth_plan *plan_of(const char *preset, const char *type)
{
    hone_error err = { 0 };
    hn_synth_plan *p;
    const hn_synth_shape *s = hn_synth_preset(preset, NULL);
    assert_non_null(s);
    if (hn_synth_plan_new(&p, s, type, &err) != HONE_OK) fail_msg("%s %s: %s", preset, type, err.message);
    return p;
}

static void test_presets(void **state)
{
    const hone_synth_preset *list;
    assert_int_equal(hone_synth_presets(&list), n_published);
    for (int i = 0; i < n_published; i += SLOWED ? 5 : 1) {
        assert_string_equal(list[i].name, published[i].preset);
        assert_true(fabs((double)list[i].n_params / 1e6 - published[i].m_params) <= 0.0501);
        hn_synth_plan *p = plan_of(published[i].preset, "Q4_K_M");
        uint64_t n = 0;
        for (size_t k = 0; k < p->n; k++)
            if (p->t[k].base == 0 && !*p->t[k].values_of)
                n += p->t[k].ne[0] * p->t[k].ne[1] * p->t[k].ne[2] * p->t[k].ne[3];
        assert_int_equal(n, list[i].n_params);
        assert_int_equal(n, hn_synth_n_params(hn_synth_preset(list[i].name, NULL)));
        assert_int_equal(p->n, published[i].n_tensors);
        hn_synth_plan_free(p);
    }
}

static void test_aliases(void **state)
{
    const char *name = NULL;
    assert_non_null(hn_synth_preset("Llama-1B", &name));
    assert_string_equal(name, "llama-3.2-1b");
    assert_non_null(hn_synth_preset("qwen-0.5b", &name));
    assert_string_equal(name, "qwen2.5-coder-0.5b");
    assert_null(hn_synth_preset("qwen", NULL));
    assert_null(hn_synth_preset("", NULL));
    assert_null(hn_synth_preset("llama-1b llama3.2-1b", NULL));
}

static const hn_synth_tensor *find(const hn_synth_plan *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->t[i].name, name)) return &p->t[i];
    return NULL;
}

static void assert_ne(const hn_synth_plan *p, const char *name, uint64_t ne0, uint64_t ne1)
{
    const hn_synth_tensor *t = find(p, name);
    if (!t) fail_msg("no tensor %s", name);
    assert_int_equal(t->ne[0], ne0);
    assert_int_equal(t->ne[1], ne1);
}

static void test_shapes(void **state)
{
    hn_synth_plan *p = plan_of("qwen3-0.6b", "F16"); /* heads wider than n_embd / n_head */
    assert_ne(p, "blk.27.attn_q.weight", 1024, 2048);
    assert_ne(p, "blk.27.attn_k.weight", 1024, 1024);
    assert_ne(p, "blk.27.attn_output.weight", 2048, 1024);
    assert_ne(p, "blk.0.attn_q_norm.weight", 128, 1);
    assert_ne(p, "blk.0.ffn_down.weight", 3072, 1024);
    assert_ne(p, "token_embd.weight", 1024, 151936);
    assert_null(find(p, "output.weight"));
    assert_null(find(p, "blk.0.attn_q.bias"));
    hn_synth_plan_free(p);
    p = plan_of("qwen2.5-coder-7b", "F16");
    assert_ne(p, "output.weight", 3584, 152064);
    assert_ne(p, "blk.0.attn_k.bias", 512, 1);
    assert_ne(p, "blk.0.attn_q.bias", 3584, 1);
    assert_null(find(p, "rope_freqs.weight"));
    hn_synth_plan_free(p);
    p = plan_of("llama-3.2-1b", "F16");
    assert_ne(p, "rope_freqs.weight", 32, 1);
    assert_ne(p, "blk.15.attn_v.weight", 2048, 512);
    assert_null(find(p, "blk.15.attn_v.bias"));
    hn_synth_plan_free(p);
}

/* The published Q4_K_M of Qwen2.5-0.5B: rows of 896 fall back almost everywhere. */
static void test_mixture_of_qwen(void **state)
{
    int n[HN_TYPE_COUNT] = { 0 };
    hn_synth_plan *p = plan_of("qwen2.5-coder-0.5b", "Q4_K_M");
    for (size_t i = 0; i < p->n; i++) n[p->t[i].type]++;
    assert_int_equal(n[HN_Q5_0], 132);
    assert_int_equal(n[HN_Q8_0], 13);
    assert_int_equal(n[HN_Q4_K], 12);
    assert_int_equal(n[HN_Q6_K], 12);
    assert_int_equal(n[HN_F32], 121);
    assert_int_equal(p->file_type, 15);
    hn_synth_plan_free(p);
}

/* GiB of weights that llama-quantize gives for Llama-3-8B. */
static void test_sizes_of_mixtures(void **state)
{
    static const struct {
        const char *type;
        double gib;
    } known[] = {
        { "Q3_K_M", 3.74 }, { "Q4_0", 4.33 },   { "Q4_K_S", 4.36 }, { "Q4_K_M", 4.58 },
        { "Q5_K_S", 5.21 }, { "Q5_K_M", 5.33 }, { "Q6_K", 6.14 },   { "Q8_0", 7.95 },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        hn_synth_plan *p = plan_of("llama-3-8b", known[i].type);
        uint64_t n = 0;
        for (size_t k = 0; k < p->n; k++) n += p->t[k].n_bytes;
        if (fabs((double)n / 0x1p30 - known[i].gib) > 0.0051)
            fail_msg("%s: %.3f GiB, expected %.2f", known[i].type, (double)n / 0x1p30, known[i].gib);
        hn_synth_plan_free(p);
    }
}

static void test_rope_freqs(void **state)
{
    static const double f8[] = { 1.207484, 1.553415, 2.026313, 2.694530, 3.684253, 5.257327 };
    float f[64];
    hn_synth_rope_freqs(f, 128, 5e5f, 8);
    for (int i = 0; i < 64; i++) assert_true(fabs((double)f[i] - (i < 29 ? 1 : i >= 35 ? 8 : f8[i - 29])) < 2e-6);
    hn_synth_rope_freqs(f, 64, 5e5f, 32);
    static const double f32[] = { 1.651329, 3.292262, 9.666729 };
    for (int i = 0; i < 32; i++) assert_true(fabs((double)f[i] - (i < 15 ? 1 : i >= 18 ? 32 : f32[i - 15])) < 2e-6);
}

/* ---- values ---------------------------------------------------------------------------- */

static hn_synth_tensor tensor_of(hn_type type, uint64_t n, float std)
{
    hn_synth_tensor t = { .type = type, .n_dim = 1, .ne = { n, 1, 1, 1 }, .std = std, .unit = hn_synth_unit(type) };
    t.n_bytes = hn_row_bytes(hn_type_get(type), n);
    return t;
}

static void test_spread_of_every_type(void **state)
{
    enum { n = SLOWED ? 1 << 15 : 1 << 18 };
    float *y = malloc(n * sizeof *y);
    unsigned char *b = malloc(n * 4);
    int n_types = 0;
    assert_true(y && b);
    for (int type = 0; type < HN_TYPE_COUNT; type++) {
        const hn_type_info *ti = hn_type_get((uint32_t)type);
        if (!ti || !ti->weight || type == HN_F64) continue;
        for (int k = 0; k < 3; k++) {
            float std = (const float[]){ 1.0f, 0.022f, 0.0023f }[k];
            hn_synth_tensor t = tensor_of((hn_type)type, n, std);
            if (t.unit <= 0) fail_msg("%s cannot be filled", ti->name);
            hn_synth_fill(&t, hn_synth_key(7, "w"), 0, t.n_bytes, b);
            ti->dequantize(y, b, n);
            double s = 0, q = 0, max = 0;
            for (int i = 0; i < n; i++) {
                assert_true(isfinite(y[i]));
                s += (double)y[i], q += (double)y[i] * (double)y[i];
                if (fabs((double)y[i]) > max) max = fabs((double)y[i]);
            }
            double rms = sqrt(q / n);
            if (fabs(s / n) > 0.02 * rms || fabs(rms / (double)std - 1) > 0.04 || max > 7 * rms)
                fail_msg("%s: mean %g, rms %g, max %g, expected 0, %g, below 7 times that", ti->name, s / n, rms, max,
                         (double)std);
            if (type == HN_Q8_0)
                for (uint64_t i = 0; i < t.n_bytes; i++) assert_false(i % 34 > 1 && b[i] == 0x80);
        }
        n_types++;
    }
    assert_true(n_types >= 26);
    free(y);
    free(b);
}

static void test_norm_weights(void **state)
{
    hn_synth_tensor t = {
        .type = HN_F32, .ne = { 4096, 1, 1, 1 }, .n_bytes = 16384, .mean = 1, .std = 0.05f, .unit = 1
    };
    float y[4096];
    double s = 0;
    hn_synth_fill(&t, 3, 0, sizeof y, y);
    for (int i = 0; i < 4096; i++) {
        assert_true(y[i] > 0.7f && y[i] < 1.3f);
        s += (double)y[i];
    }
    assert_true(fabs(s / 4096 - 1) < 0.005);
}

/* Any split into pieces gives the same bytes; a canary guards the end. */
static void test_pieces(void **state)
{
    static const hn_type types[] = { HN_F32,  HN_F16,  HN_BF16,  HN_Q4_0,  HN_Q5_1, HN_Q8_0,
                                     HN_Q4_K, HN_Q6_K, HN_IQ1_M, HN_NVFP4, HN_TQ1_0 };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        hn_synth_tensor t = tensor_of(types[k], 256 * 37, 0.1f);
        uint64_t grain = hn_synth_grain(types[k]);
        unsigned char *whole = malloc(t.n_bytes + 8), *parts = malloc(t.n_bytes + 8);
        assert_true(whole && parts);
        memset(whole, 0xA5, t.n_bytes + 8);
        memset(parts, 0xA5, t.n_bytes + 8);
        hn_synth_fill(&t, 99, 0, t.n_bytes, whole);
        uint64_t n = 0;
        for (uint64_t off = 0, step = grain; off < t.n_bytes; off += n, step = step % (5 * grain) + grain) {
            n = t.n_bytes - off < step ? t.n_bytes - off : step;
            hn_synth_fill(&t, 99, off, n, parts + off);
        }
        assert_memory_equal(whole, parts, t.n_bytes + 8);
        for (int i = 0; i < 8; i++) assert_int_equal(whole[t.n_bytes + (uint64_t)i], 0xA5);
        free(whole);
        free(parts);
    }
}

/* ---- files ------------------------------------------------------------------------------- */

#define SMALL                                                                                                         \
    "{\"arch\":\"%s\",\"n_layer\":3,\"n_embd\":256,\"n_head\":4,\"n_head_kv\":2,\"n_ff\":512,\"n_vocab\":%d,\"n_ctx_" \
    "train\":1024%s}"

static void synth(const char *config, const char *type, uint64_t seed, int32_t n_threads, const char *dst)
{
    hone_error err = { 0 };
    hone_synth_params p = { .config_path = config, .type = type, .seed = seed, .n_threads = n_threads };
    if (hone_synth(&p, dst, NULL, &err) != HONE_OK) fail_msg("%s: %s", dst, err.message);
}

static const char *config_file(const char *arch, int n_vocab, const char *more)
{
    static char path[128]; /* outlives many in_dir calls */
    char text[512];
    snprintf(path, sizeof path, "%s/shape.json", dir);
    snprintf(text, sizeof text, SMALL, arch, n_vocab, more);
    write_text(path, text);
    return path;
}

static void test_same_bytes_for_any_threads(void **state)
{
    const char *config = config_file("qwen2", 40000, "");
    size_t n, m;
    synth(config, "Q4_K_M", 5, 1, in_dir("a.gguf"));
    char *a = read_whole(in_dir("a.gguf"), &n);
    for (int32_t t = 2; t <= 8; t += 3) {
        synth(config, "Q4_K_M", 5, t, in_dir("b.gguf"));
        char *b = read_whole(in_dir("b.gguf"), &m);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
        free(b);
    }
    synth(config, "Q4_K_M", 6, 2, in_dir("b.gguf"));
    char *b = read_whole(in_dir("b.gguf"), &m);
    assert_int_equal(n, m);
    assert_memory_not_equal(a, b, n);
    free(b);
    free(a);
}

static uint32_t get_u32(const hn_gguf *g, const char *key)
{
    uint32_t v = 0;
    bool found = false;
    hone_error err = { 0 };
    if (hn_gguf_get_u32(g, key, &v, &found, &err) != HONE_OK || !found)
        fail_msg("%s: %s", key, found ? err.message : "absent");
    return v;
}

typedef struct sorted {
    hone_str *s;
    size_t n;
} sorted;
static int by_bytes(const void *a, const void *b)
{
    const hone_str *x = a, *y = b;
    int c = memcmp(x->ptr, y->ptr, x->len < y->len ? x->len : y->len);
    return c ? c : (x->len > y->len) - (x->len < y->len);
}
static bool has(const sorted *v, const char *p, size_t n)
{
    hone_str key = { p, n };
    return bsearch(&key, v->s, v->n, sizeof key, by_bytes) != NULL;
}

/* Distinct tokens; each merge has one space and its parts and result are tokens. */
static void check_vocab(const hn_gguf *g, uint64_t n_vocab)
{
    hn_gguf_array a;
    bool found = false;
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.tokens", &a, &found, NULL), HONE_OK);
    assert_true(found);
    assert_int_equal(a.count, n_vocab);
    sorted v = { calloc(a.count, sizeof(hone_str)), 0 };
    uint64_t pos = 0;
    hone_str s;
    while (hn_gguf_next_str(&a, &pos, &s)) {
        assert_true(s.len > 0);
        v.s[v.n++] = s;
    }
    assert_int_equal(v.n, n_vocab);
    qsort(v.s, v.n, sizeof *v.s, by_bytes);
    for (size_t i = 1; i < v.n; i++) assert_true(by_bytes(&v.s[i - 1], &v.s[i]) < 0);
    assert_true(has(&v, "A", 1) && has(&v, "\xC4\xA0", 2) && has(&v, "\xC4\x8A", 2) && has(&v, "\xC5\x83", 2));
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.merges", &a, &found, NULL), HONE_OK);
    assert_true(found && a.count >= 1);
    pos = 0;
    while (hn_gguf_next_str(&a, &pos, &s)) {
        const char *sp = memchr(s.ptr + 1, ' ', s.len - 1);
        char joined[64];
        assert_non_null(sp);
        size_t l = (size_t)(sp - s.ptr), r = s.len - l - 1;
        assert_null(memchr(sp + 1, ' ', r));
        memcpy(joined, s.ptr, l);
        memcpy(joined + l, sp + 1, r);
        assert_true(has(&v, s.ptr, l) && has(&v, sp + 1, r) && has(&v, joined, l + r));
    }
    free(v.s);
}

static void check_token(const hn_gguf *g, uint32_t id, const char *text)
{
    hn_gguf_array a;
    uint64_t pos = 0;
    hone_str s = { 0 };
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.tokens", &a, NULL, NULL), HONE_OK);
    for (uint32_t i = 0; i <= id; i++) assert_true(hn_gguf_next_str(&a, &pos, &s));
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.ptr, text, s.len);
}

static hn_gguf *open_gguf(const char *path)
{
    hn_gguf *g;
    hone_error err = { 0 };
    if (hn_gguf_open(&g, path, &err) != HONE_OK) fail_msg("%s", err.message);
    return g;
}

static void test_llama_file(void **state)
{
    synth(config_file("llama", 128256, ",\"rope_factor\":32,\"rope_base\":500000,\"tied\":false"), "Q8_0", 1, 2,
          in_dir("l.gguf"));
    hn_gguf *g = open_gguf(in_dir("l.gguf"));
    assert_int_equal(hn_gguf_n_tensors(g), 3 * 9 + 4);
    assert_int_equal(get_u32(g, "llama.block_count"), 3);
    assert_int_equal(get_u32(g, "llama.embedding_length"), 256);
    assert_int_equal(get_u32(g, "llama.feed_forward_length"), 512);
    assert_int_equal(get_u32(g, "llama.attention.head_count"), 4);
    assert_int_equal(get_u32(g, "llama.attention.head_count_kv"), 2);
    assert_int_equal(get_u32(g, "llama.attention.key_length"), 64);
    assert_int_equal(get_u32(g, "llama.rope.dimension_count"), 64);
    assert_int_equal(get_u32(g, "llama.context_length"), 1024);
    assert_int_equal(get_u32(g, "general.file_type"), 7);
    assert_int_equal(get_u32(g, "tokenizer.ggml.bos_token_id"), 128000);
    check_vocab(g, 128256);
    check_token(g, 128000, "<|begin_of_text|>");
    check_token(g, 128009, "<|eot_id|>");
    check_token(g, 0, "!");
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "rope_freqs.weight");
    float f[32], want[32];
    assert_true(t && t->type == HN_F32 && t->n_bytes == sizeof f);
    memcpy(f, t->data, sizeof f);
    hn_synth_rope_freqs(want, 64, 5e5f, 32);
    assert_memory_equal(f, want, sizeof f);
    t = hn_gguf_find_tensor(g, "blk.2.ffn_down.weight");
    assert_true(t && t->type == HN_Q8_0 && t->ne[0] == 512 && t->ne[1] == 256);
    hn_synth_plan *p; /* what was planned is what lies there */
    hn_synth_shape s;
    assert_int_equal(hn_synth_config(&s, in_dir("shape.json"), NULL), HONE_OK);
    assert_int_equal(hn_synth_plan_new(&p, &s, "Q8_0", NULL), HONE_OK);
    const hn_synth_tensor *pt = find(p, "blk.2.ffn_down.weight");
    unsigned char *b = malloc(pt->n_bytes);
    hn_synth_fill(pt, hn_synth_key(1, pt->name), 0, pt->n_bytes, b);
    assert_memory_equal(b, t->data, pt->n_bytes);
    free(b);
    hn_synth_plan_free(p);
    hn_gguf_close(g);
}

static void test_qwen_files(void **state)
{
    synth(config_file("qwen2", 1000, ",\"tied\":true"), "F16", 1, 2, in_dir("q.gguf"));
    hn_gguf *g = open_gguf(in_dir("q.gguf"));
    check_vocab(g, 1000); /* smaller than the real one: the special tokens end it */
    check_token(g, get_u32(g, "tokenizer.ggml.eos_token_id"), "<|im_end|>");
    check_token(g, get_u32(g, "tokenizer.ggml.bos_token_id"), "<|endoftext|>");
    assert_int_equal(hn_gguf_find(g, "qwen2.attention.key_length"), -1);
    assert_non_null(hn_gguf_find_tensor(g, "blk.0.attn_v.bias"));
    assert_null(hn_gguf_find_tensor(g, "output.weight"));
    hn_gguf_close(g);
    synth(config_file("qwen3", 151936, ",\"head_dim\":128"), "BF16", 1, 2, in_dir("q.gguf"));
    g = open_gguf(in_dir("q.gguf"));
    check_vocab(g, 151936);
    check_token(g, 151645, "<|im_end|>");
    assert_int_equal(get_u32(g, "qwen3.attention.key_length"), 128);
    assert_int_equal(hn_gguf_find_tensor(g, "blk.0.attn_k_norm.weight")->ne[0], 128);
    hn_gguf_close(g);
    synth(config_file("llama", 16, ""), "F32", 1, 2, in_dir("q.gguf")); /* too small for the bytes */
    g = open_gguf(in_dir("q.gguf"));
    assert_int_equal(hn_gguf_find(g, "tokenizer.ggml.model"), -1);
    hn_gguf_close(g);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void test_config_errors(void **state)
{
    static const struct {
        const char *json, *says;
    } bad[] = {
        { "", "line" },
        { "[1]", "an array" },
        { "3", "an integer" },
        { "{\"arch\":", "line 1" },
        { "{\"n_layer\":1}", "arch is missing" },
        { "{\"n_layers\":1}", "arch is missing" },
        { "{\"arch\":\"gpt2\"}", "arch is \"gpt2\"" },
        { "{\"arch\":3}", "arch is an integer" },
        { "{\"arch\":\"llama\"}", "n_layer is missing" },
        { "{\"arch\":\"llama\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"n_ff\":64}", "n_vocab is missing" },
        { "{\"arch\":\"llama\",\"n_layer\":0}", "n_layer is 0" },
        { "{\"arch\":\"llama\",\"n_layer\":-3}", "n_layer is -3" },
        { "{\"arch\":\"llama\",\"n_layer\":2.5}", "a real number" },
        { "{\"arch\":\"llama\",\"n_layer\":\"2\"}", "a string" },
        { "{\"arch\":\"llama\",\"n_layers\":2}", "unknown field \"n_layers\"" },
        { "{\"arch\":\"llama\",\"n_embd\":99999999999}", "n_embd is 99999999999" },
        { "{\"arch\":\"llama\",\"arch\":\"llama\"}", "line 1" },
        { "{\"arch\":\"llama\",\"tied\":1}", "tied is an integer" },
        { "{\"arch\":\"llama\",\"rope_base\":0}", "rope_base is 0" },
        { "{\"arch\":\"llama\",\"rms_eps\":-1}", "rms_eps is -1" },
        { "{\"arch\":\"llama\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"n_head_kv\":3,\"n_ff\":64,\"n_vocab\":300}",
          "multiple of n_head_kv = 3" },
        { "{\"arch\":\"llama\",\"n_layer\":2,\"n_embd\":65,\"n_head\":4,\"n_ff\":64,\"n_vocab\":300}",
          "multiple of n_head = 4" },
        { "{\"arch\":\"llama\",\"n_layer\":2,\"n_embd\":60,\"n_head\":4,\"n_ff\":64,\"n_vocab\":300}",
          "head_dim is 15" },
        { "{\"arch\":\"qwen2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"head_dim\":32,\"n_ff\":64,\"n_vocab\":300}",
          "head_dim is 32" },
        { "{\"arch\":\"qwen3\",\"n_layer\":2,\"n_embd\":64,\"n_head\":4,\"rope_factor\":8,\"n_ff\":64,\"n_vocab\":300}",
          "rope_factor is 8" },
    };
    const char *path = in_dir("bad.json");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hn_synth_shape s;
        hone_error err = { 0 };
        write_text(path, bad[i].json);
        assert_int_equal(hn_synth_config(&s, path, &err), HONE_E_ARG);
        if (!strstr(err.message, bad[i].says) || !strstr(err.message, "bad.json"))
            fail_msg("%s\ngave: %s\nexpected to mention: %s", bad[i].json, err.message, bad[i].says);
    }
    hn_synth_shape s;
    assert_int_equal(hn_synth_config(&s, in_dir("absent.json"), NULL), HONE_E_IO);
    assert_int_equal(hn_synth_config(&s, dir, NULL), HONE_E_IO);
}

static void expect(const hone_synth_params *p, const char *dst, hone_status want, const char *says)
{
    hone_error err = { 0 };
    int before = n_files();
    hone_status st = hone_synth(p, dst, NULL, &err);
    if (st != want || !strstr(err.message, says))
        fail_msg("status %d, message: %s; expected %d and: %s", st, err.message, want, says);
    assert_int_equal(n_files(), before);
}

/* Any family by what its files have: the file is a model, and has the tensors that were asked for. */
static void test_keys(void **state)
{
    static const char shape[] =
        "{\"arch\":\"lfm2\",\"n_layer\":4,\"n_vocab\":300,\"tied\":true,\"keys\":{\"context_length\":64,"
        "\"embedding_length\":32,\"feed_forward_length\":48,\"attention.head_count\":4,"
        "\"attention.head_count_kv\":[0,2],\"shortconv.l_cache\":3,\"attention.layer_norm_rms_epsilon\":1e-5}}";
    static const char biased[] = "{\"arch\":\"seed_oss\",\"n_layer\":2,\"n_vocab\":300,\"keys\":{\"context_length\":64,"
                                 "\"embedding_length\":32,\"feed_forward_length\":48,\"attention.head_count\":4,"
                                 "\"attention.layer_norm_rms_epsilon\":1e-5},\"tensors\":[\"attn_q.bias\"]}";
    static const struct {
        const char *text, *tensor, *none;
    } shapes[] = { { shape, "blk.1.attn_k.weight", "blk.2.attn_k.weight" },
                   { biased, "blk.1.attn_q.bias", "blk.1.attn_k.bias" } };
    const char *config = in_dir("keys.json"), *path = in_dir("keys.gguf");
    for (size_t i = 0; i < 2; i++) {
        hone_error err;
        hone_model *m = NULL;
        hn_gguf *g;
        write_text(config, shapes[i].text);
        const hone_synth_params how = { .config_path = config, .type = "F32" };
        if (hone_synth(&how, path, NULL, &err) || hone_model_open(&m, path, NULL, &err)) fail_msg("%s", err.message);
        hone_model_close(m);
        assert_int_equal(hn_gguf_open(&g, path, &err), HONE_OK);
        assert_non_null(hn_gguf_find_tensor(g, shapes[i].tensor));
        assert_null(hn_gguf_find_tensor(g, shapes[i].none));
        hn_gguf_close(g);
    }
}

static void test_wrong_keys(void **state)
{
#define LFM2(keys) "{\"arch\":\"lfm2\",\"n_layer\":2,\"n_vocab\":300,\"keys\":" keys "}"
#define DEEPSEEK(key, tensors)                                                                                        \
    "{\"arch\":\"deepseek2\",\"n_layer\":2,\"n_vocab\":99,\"tensors\":[" tensors "],\"keys\":{\"context_length\":99," \
    "\"embedding_length\":64,\"feed_forward_length\":96,\"attention.head_count\":4,\"attention.head_count_kv\":1,"    \
    "\"attention.kv_lora_rank\":32,\"attention.key_length\":48,\"attention.value_length\":32,"                        \
    "\"attention.key_length_mla\":32,\"attention.value_length_mla\":16,\"rope.dimension_count\":16,"                  \
    "\"leading_dense_block_count\":1,\"expert_count\":4,\"expert_used_count\":2,\"expert_gating_func\":2,"            \
    "\"expert_feed_forward_length\":32,\"attention.layer_norm_rms_epsilon\":1e-6," key "}}"
    static const char *const wrong[][2] = {
        { LFM2("3"), "keys is an integer, expected an object" },
        { LFM2("{}"), "lfm2.context_length is missing" },
        { LFM2("{\"a b\":1}"), "\"a b\", expected what follows the family's name" },
        { LFM2("{\"block_count\":1}"), "n_layer says block_count" },
        { LFM2("{\"x\":-1}"), "x is an integer, expected true, false" },
        { LFM2("{\"x\":\"1\"}"), "x is a string, expected true, false" },
        { LFM2("{\"x\":null}"), "x is null" },
        { LFM2("{\"x\":[]}"), "x is an empty list" },
        { LFM2("{\"x\":[1,true]}"), "x[1] is true, expected truth values or integers" },
        { "{\"arch\":\"lfm2\",\"n_layer\":2,\"n_vocab\":300,\"n_embd\":3,\"keys\":{}}", "n_embd has no meaning" },
        { "{\"arch\":\"rwkv7\",\"n_layer\":2,\"n_vocab\":300,\"keys\":{}}", "keys are there, expected none" },
        { "{\"arch\":\"lfm2\",\"n_layer\":2,\"n_vocab\":300,\"keys\":{},\"tensors\":[\"x\"]}",
          "tensors[0] is x, expected one of lfm2" },
        { "{\"arch\":\"llama\",\"n_layer\":2,\"tensors\":[]}", "tensors has no meaning" },
        { DEEPSEEK("\"expert_shared_feed_forward_length\":32", "\"exp_probs_b.bias\""),
          "tensors lacks ffn_gate_shexp.weight, which expert_shared_feed_forward_length = 32 needs" },
        { DEEPSEEK("\"expert_shared_feed_forward_length\":32", "\"ffn_gate_shexp.weight\",\"ffn_up_shexp.weight\""),
          "tensors lacks ffn_down_shexp.weight, which goes with" },
        { DEEPSEEK("\"attention.q_lora_rank\":32", ""),
          "lacks attn_q_a.weight, which attention.q_lora_rank = 32 needs" },
    };
#undef LFM2
#undef DEEPSEEK
    const char *config = in_dir("wrong.json");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_error err;
        hn_synth_shape s = { 0 };
        write_text(config, wrong[i][0]);
        assert_int_equal(hn_synth_config(&s, config, &err), HONE_E_ARG);
        if (!strstr(err.message, wrong[i][1])) fail_msg("%s\nexpected: %s", err.message, wrong[i][1]);
    }
}

static void test_bad_requests(void **state)
{
    const char *dst = in_dir("x.gguf"), *config = config_file("llama", 512, "");
    expect(&(hone_synth_params){ .preset = "llama-9000b" }, dst, HONE_E_ARG, "llama-9000b");
    expect(&(hone_synth_params){ .preset = "llama-1b", .config_path = config }, dst, HONE_E_ARG, "both");
    expect(&(hone_synth_params){ 0 }, dst, HONE_E_ARG, "neither");
    expect(&(hone_synth_params){ .config_path = config, .type = "Q9_X" }, dst, HONE_E_ARG, "Q9_X");
    expect(&(hone_synth_params){ .config_path = config, .n_threads = -1 }, dst, HONE_E_ARG, "-1");
    expect(&(hone_synth_params){ .config_path = config }, in_dir("no/such/dir/x.gguf"), HONE_E_IO, "no/such/dir");
    expect(&(hone_synth_params){ .config_path = config }, dir, HONE_E_IO, dir);
}

static void test_too_large_for_the_disk(void **state)
{
    struct statvfs v;
    assert_int_equal(statvfs(dir, &v), 0);
    if ((double)v.f_bavail * (double)v.f_frsize > 280e9) {
        printf("SKIP: the disk has room for 282 GB\n");
        skip();
    }
    expect(&(hone_synth_params){ .preset = "llama-3-70b", .type = "F32" }, in_dir("big.gguf"), HONE_E_IO,
           "2822"); /* 282.2 GB needed */
}

static void test_disk_full_midway(void **state)
{
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    const char *config = config_file("llama", 40000, "");
    signal(SIGXFSZ, SIG_IGN);
    small = (struct rlimit){ 8 << 20, old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    hone_error err = { 0 };
    int before = n_files();
    hone_status st =
        hone_synth(&(hone_synth_params){ .config_path = config, .type = "F16" }, in_dir("full.gguf"), NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(st, HONE_E_IO);
    assert_non_null(strstr(err.message, "full.gguf"));
    assert_int_equal(n_files(), before);
}

static bool stop_at_once(void *arg)
{
    ++*(int *)arg;
    return true;
}
static void count_progress(void *arg, uint64_t done, uint64_t total) { assert_true(done <= total && total > 0); }

static void test_interruption(void **state)
{
    int asked = 0, before;
    hone_error err = { 0 };
    hone_progress pr = { count_progress, &asked, stop_at_once };
    const char *config = config_file("llama", 40000, "");
    before = n_files();
    assert_int_equal(
        hone_synth(&(hone_synth_params){ .config_path = config, .type = "F16" }, in_dir("int.gguf"), &pr, &err),
        HONE_E_INTERRUPTED);
    assert_true(asked > 0);
    assert_int_equal(n_files(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_mixture_of_qwen),
        cmocka_unit_test(test_sizes_of_mixtures),
        cmocka_unit_test(test_rope_freqs),
        cmocka_unit_test(test_spread_of_every_type),
        cmocka_unit_test(test_norm_weights),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_same_bytes_for_any_threads),
        cmocka_unit_test(test_llama_file),
        cmocka_unit_test(test_qwen_files),
        cmocka_unit_test(test_config_errors),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_wrong_keys),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_too_large_for_the_disk),
        cmocka_unit_test(test_disk_full_midway),
        cmocka_unit_test(test_interruption),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
