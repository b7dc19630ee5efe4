/* rwkv_files: small RWKV checkpoints made in a test: one list of tensors in the original's names
 * and shapes, written as safetensors in three dialects or as an rwkv.cpp file. Element i of a
 * tensor is a function of its original name and i, so that what a conversion wrote can be told
 * from the names alone. Used by tests of the converter. */
#ifndef RWKV_FILES_H
#define RWKV_FILES_H

#include "gguf/gguf.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define UNUSED_FN __attribute__((unused)) static

/* ---- files -------------------------------------------------------------------------- */

static char dir[64];

UNUSED_FN int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-convert-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static void empty_folder(const char *path)
{
    DIR *d = opendir(path);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));) {
        char p[512];
        if (snprintf(p, sizeof p, "%s/%s", path, e->d_name) >= (int)sizeof p) continue;
        if (e->d_name[0] == '.' || unlink(p) == 0) continue;
        empty_folder(p);
        rmdir(p);
    }
    closedir(d);
}

UNUSED_FN int remove_dir(void **state)
{
    empty_folder(dir);
    return rmdir(dir);
}

UNUSED_FN int n_files(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

UNUSED_FN const char *in_dir(const char *name)
{
    static char path[512][192]; /* some are kept for long */
    static int k;
    k = (k + 1) % 512;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

UNUSED_FN void write_bytes(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}
UNUSED_FN void write_text(const char *path, const char *s) { write_bytes(path, s, strlen(s)); }

/* ---- the model ------------------------------------------------------------------------ */

enum { E = 32, N = 16, H = 2, F = 96, V = 40, L = 3, RW = 8, RA = 4, RV = 12, RG = 16, X = 6, DD = 20 };

typedef struct spec {
    char name[64];
    int n_dim;
    uint64_t shape[3];
} spec; /* outermost first */
typedef struct model {
    spec t[160];
    size_t n;
    int version;
    bool fine;
} model; /* fine: values that need 24 bits */

static uint64_t count(const spec *s)
{
    uint64_t n = 1;
    for (int i = 0; i < s->n_dim; i++) n *= s->shape[i];
    return n;
}

/* Multiples of 1/64 below 2: the same in every float type. */
static float value(const char *name, uint64_t i, bool fine)
{
    uint64_t z = hn_rand64(hn_fnv1a(HN_FNV_INIT, name, strlen(name)), i);
    return fine ? (float)((int32_t)(z >> 40) - (1 << 23)) * 0x1p-22f : (float)((int)(z >> 57) - 64) / 32;
}

static void have(model *m, const char *name, int n_dim, uint64_t a, uint64_t b, uint64_t c)
{
    spec *s = &m->t[m->n++];
    snprintf(s->name, sizeof s->name, "%s", name);
    s->n_dim = n_dim;
    s->shape[0] = a, s->shape[1] = b, s->shape[2] = c;
}

static void have_in(model *m, int il, const char *name, int n_dim, uint64_t a, uint64_t b, uint64_t c)
{
    char s[64];
    assert_true((size_t)snprintf(s, sizeof s, "blocks.%d.%s", il, name) < sizeof s);
    have(m, s, n_dim, a, b, c);
}

static void have_norm(model *m, int il, const char *name)
{
    char s[64];
    snprintf(s, sizeof s, "%s.weight", name);
    have_in(m, il, s, 1, E, 0, 0);
    snprintf(s, sizeof s, "%s.bias", name);
    have_in(m, il, s, 1, E, 0, 0);
}

/* The original's shapes: vectors as [1, 1, E], low-rank matrices as [in, out]. */
static void make_model(model *m, int version)
{
    *m = (model){ .version = version };
    have(m, "emb.weight", 2, V, E, 0);
    for (int il = 0; il < L; il++) {
        char s[64];
        if (!il) have_norm(m, il, "ln0");
        have_norm(m, il, "ln1");
        have_norm(m, il, "ln2");
        if (version == 7) {
            static const struct {
                const char *name;
                int r;
            } low[] = { { "w", RW }, { "a", RA }, { "v", RV }, { "g", RG } };
            for (int i = 0; i < 6; i++) {
                snprintf(s, sizeof s, "att.x_%c", "rwkvag"[i]);
                have_in(m, il, s, 3, 1, 1, E);
            }
            for (int i = 0; i < 4; i++) {
                if (il == 0 && *low[i].name == 'v') continue;
                snprintf(s, sizeof s, "att.%s0", low[i].name);
                if (*low[i].name != 'g') have_in(m, il, s, 3, 1, 1, E);
                snprintf(s, sizeof s, "att.%s1", low[i].name);
                have_in(m, il, s, 2, E, (uint64_t)low[i].r, 0);
                snprintf(s, sizeof s, "att.%s2", low[i].name);
                have_in(m, il, s, 2, (uint64_t)low[i].r, E, 0);
            }
            have_in(m, il, "att.k_k", 3, 1, 1, E);
            have_in(m, il, "att.k_a", 3, 1, 1, E);
            have_in(m, il, "att.r_k", 2, H, N, 0);
            have_in(m, il, "ffn.x_k", 3, 1, 1, E);
        } else {
            for (int i = 0; i < 6; i++) {
                snprintf(s, sizeof s, "att.time_maa_%c", "xwkvrg"[i]);
                have_in(m, il, s, 3, 1, 1, E);
            }
            have_in(m, il, "att.time_maa_w1", 2, E, 5 * X, 0);
            have_in(m, il, "att.time_maa_w2", 3, 5, X, E);
            have_in(m, il, "att.time_decay", 3, 1, 1, E);
            have_in(m, il, "att.time_decay_w1", 2, E, DD, 0);
            have_in(m, il, "att.time_decay_w2", 2, DD, E, 0);
            have_in(m, il, "att.time_faaaa", 2, H, N, 0);
            have_in(m, il, "att.gate.weight", 2, E, E, 0);
            have_in(m, il, "ffn.time_maa_k", 3, 1, 1, E);
            have_in(m, il, "ffn.time_maa_r", 3, 1, 1, E);
            have_in(m, il, "ffn.receptance.weight", 2, E, E, 0);
        }
        have_in(m, il, "att.receptance.weight", 2, E, E, 0);
        have_in(m, il, "att.key.weight", 2, E, E, 0);
        have_in(m, il, "att.value.weight", 2, E, E, 0);
        have_in(m, il, "att.output.weight", 2, E, E, 0);
        have_norm(m, il, "att.ln_x");
        have_in(m, il, "ffn.key.weight", 2, F, E, 0);
        have_in(m, il, "ffn.value.weight", 2, E, F, 0);
    }
    have(m, "ln_out.weight", 1, E, 0, 0);
    have(m, "ln_out.bias", 1, E, 0, 0);
    have(m, "head.weight", 2, V, E, 0);
}

UNUSED_FN spec *find_spec(model *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->t[i].name, name)) return &m->t[i];
    fail_msg("the test has no tensor %s", name);
    return NULL;
}

UNUSED_FN void drop(model *m, const char *name)
{
    spec *s = find_spec(m, name);
    memmove(s, s + 1, (size_t)(&m->t[--m->n] - s) * sizeof *s);
}

/* ---- what a file has of a tensor ---------------------------------------------------------- */

typedef enum dialect { ORIGINAL, FLA, FLA_XX, HF } dialect;

static const char *tail_of(const spec *s)
{
    return strncmp(s->name, "blocks.", 7) ? s->name : strchr(s->name + 7, '.') + 1;
}

/* A low-rank matrix: [in, out] in the original. */
static bool is_low(const spec *s)
{
    const char *t = tail_of(s);
    if (strncmp(t, "att.", 4)) return false;
    return (strlen(t) == 6 && strchr("wavg", t[4]) && (t[5] == '1' || t[5] == '2')) || !strcmp(t, "att.time_maa_w1") ||
           !strcmp(t, "att.time_maa_w2") || !strncmp(t, "att.time_decay_w", 16);
}

/* Element i of the stored tensor, where turned swaps the last two dimensions of the original's. */
static float stored(const model *m, const spec *s, uint64_t i, bool turned)
{
    if (turned) { /* stored [.., b, a] of the original [.., a, b] */
        uint64_t a = s->shape[s->n_dim - 2], b = s->shape[s->n_dim - 1], mat = i / (a * b), r = i % (a * b);
        i = mat * a * b + r % a * b + r / a;
    }
    return value(s->name, i, m->fine);
}

static void dialect_name(char *dst, size_t cap, const spec *s, dialect d)
{
    static const char *const fla[][2] = { { "emb.weight", "model.embeddings.weight" },
                                          { "head.weight", "lm_head.weight" },
                                          { "ln_out.", "model.norm." },
                                          { "ln0.", "pre_norm." },
                                          { "ln1.", "attn_norm." },
                                          { "ln2.", "ffn_norm." },
                                          { "att.ln_x.", "attn.g_norm." },
                                          { "att.receptance.", "attn.r_proj." },
                                          { "att.key.", "attn.k_proj." },
                                          { "att.value.", "attn.v_proj." },
                                          { "att.output.", "attn.o_proj." },
                                          { "att.", "attn." },
                                          { NULL, NULL } };
    static const char *const hf[][2] = { { "emb.weight", "rwkv.embeddings.weight" },
                                         { "ln_out.", "rwkv.ln_out." },
                                         { "ln0.", "pre_ln." },
                                         { "att.", "attention." },
                                         { "ffn.", "feed_forward." },
                                         { NULL, NULL } };
    const char *t = tail_of(s), *const(*map)[2] = d == HF ? hf : fla;
    size_t n = 0;
    if (d == ORIGINAL) {
        snprintf(dst, cap, "%s", s->name);
        return;
    }
    if (t != s->name)
        n = (size_t)snprintf(dst, cap, "%s.%.*s", d == HF ? "rwkv.blocks" : "model.layers", (int)(t - s->name - 7),
                             s->name + 7);
    if (d != HF && !strncmp(t, "att.", 4) && strlen(t) == 6 && strchr("wavg", t[4])) {
        snprintf(dst + n, cap - n, "attn.%c_lora.lora.%s", t[4],
                 t[5] == '0'   ? "2.bias"
                 : t[5] == '1' ? "0.weight"
                               : "2.weight");
        return;
    }
    for (; (*map)[0]; map++)
        if (!strncmp(t, (*map)[0], strlen((*map)[0]))) {
            snprintf(dst + n, cap - n, "%s%s", (*map)[1], t + strlen((*map)[0]));
            return;
        }
    snprintf(dst + n, cap - n, "%s", t);
}

/* ---- safetensors ------------------------------------------------------------------------------ */

typedef struct buffer {
    unsigned char *p;
    size_t n, cap;
} buffer;

static void put(buffer *b, const void *p, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = 2 * (b->n + n);
        b->p = realloc(b->p, b->cap);
        assert_non_null(b->p);
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
}
static void put_u32(buffer *b, uint32_t v) { put(b, &v, 4); }

static void put_value(buffer *b, float f, const char *dtype)
{
    if (!strcmp(dtype, "F32")) put(b, &f, 4);
    else if (!strcmp(dtype, "F64")) put(b, &(double){ f }, 8);
    else if (!strcmp(dtype, "F16")) put(b, &(uint16_t){ hn_f32_to_f16(f) }, 2);
    else put(b, &(uint16_t){ hn_f32_to_bf16(f) }, 2);
}

static void put_entry(buffer *h, const buffer *data, size_t begin, const char *name, const char *dtype,
                      const uint64_t *shape, int n_dim)
{
    char s[512];
    size_t n =
        (size_t)snprintf(s, sizeof s, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", h->n > 1 ? "," : "", name, dtype);
    for (int i = 0; i < n_dim; i++)
        n += (size_t)snprintf(s + n, sizeof s - n, "%s%llu", i ? "," : "", (unsigned long long)shape[i]);
    n += (size_t)snprintf(s + n, sizeof s - n, "],\"data_offsets\":[%zu,%zu]}", begin, data->n);
    put(h, s, n);
}

static void end_safetensors(const char *path, buffer *h, buffer *data)
{
    put(h, "}", 1);
    while (h->n % 8) put(h, " ", 1);
    buffer f = { 0 };
    put(&f, &(uint64_t){ h->n }, 8);
    put(&f, h->p, h->n);
    put(&f, data->p, data->n);
    write_bytes(path, f.p, f.n);
    free(f.p);
    free(h->p);
    free(data->p);
}

/* Tensors of `of` files, number k of them; all of them in one: 0 of 1. */
UNUSED_FN void write_safetensors_part(const char *path, const model *m, dialect d, const char *dtype, size_t k,
                                      size_t of)
{
    buffer h = { 0 }, data = { 0 };
    put(&h, "{", 1);
    if (k == 0) {
        static const char meta[] = "\"__metadata__\":{\"format\":\"pt\"}";
        put(&h, meta, sizeof meta - 1);
    }
    for (size_t i = k; i < m->n; i += of) {
        const spec *s = &m->t[i];
        uint64_t shape[3] = { s->shape[0], s->shape[1], s->shape[2] };
        bool turned = is_low(s) && (d == FLA || d == FLA_XX);
        int n_dim = s->n_dim, first = 0;
        char name[128];
        size_t begin = data.n;
        dialect_name(name, sizeof name, s, d);
        if (turned) shape[0] = s->shape[1], shape[1] = s->shape[0];
        if (d == FLA || d == FLA_XX) /* vectors as they are there */
            while (n_dim > 1 && shape[first] == 1) first++, n_dim--;
        const char *x = strstr(tail_of(s), "att.x_");
        if (d == FLA_XX && x) {
            if (x[6] != 'r') continue; /* all six of them under the first's place */
            char *tail = strstr(name, "x_r");
            tail[2] = 'x';
            for (int c = 0; c < 6; c++) {
                spec one = *s;
                one.name[strlen(one.name) - 1] = "rwkvag"[c];
                for (uint64_t j = 0; j < E; j++) put_value(&data, value(one.name, j, m->fine), dtype);
            }
            put_entry(&h, &data, begin, name, dtype, (uint64_t[]){ 6, E }, 2);
            continue;
        }
        for (uint64_t j = 0; j < count(s); j++) put_value(&data, stored(m, s, j, turned), dtype);
        put_entry(&h, &data, begin, name, dtype, shape + first, n_dim);
    }
    end_safetensors(path, &h, &data);
}
UNUSED_FN void write_safetensors(const char *path, const model *m, dialect d, const char *dtype)
{
    write_safetensors_part(path, m, d, dtype, 0, 1);
}

/* ---- rwkv.cpp ---------------------------------------------------------------------------------- */

static void put_bin_head(buffer *b, const char *name, uint32_t type, const uint64_t *shape, int n_dim)
{
    put_u32(b, (uint32_t)n_dim);
    put_u32(b, (uint32_t)strlen(name));
    put_u32(b, type);
    for (int i = n_dim; i-- > 0;) put_u32(b, (uint32_t)shape[i]);
    put(b, name, strlen(name));
}

/* As RWKV/rwkv.cpp:python/convert_pytorch_to_ggml.py stores it. heads, if not NULL: [n] ends of the
 * descriptions of tensors. */
UNUSED_FN void make_bin(buffer *b, const model *m, size_t *ends)
{
    put_u32(b, 0x67676d66);
    put_u32(b, 101);
    put_u32(b, V);
    put_u32(b, E);
    put_u32(b, L);
    put_u32(b, 0);
    for (size_t i = 0; i < m->n; i++) {
        const spec *s = &m->t[i];
        const char *t = tail_of(s);
        uint64_t shape[3] = { s->shape[0], s->shape[1], s->shape[2] };
        int n_dim = s->n_dim;
        char name[64];
        snprintf(name, sizeof name, "%s", s->name);
        if (ends) ends[i] = 0;
        if (!strncmp(t, "att.x_", 6)) { /* six vectors side by side */
            if (t[6] != 'r') continue;
            snprintf(name, sizeof name, "%.*satt.x_rwkvag", (int)(t - s->name), s->name);
            put_bin_head(b, name, 0, (uint64_t[]){ 6, 1, E }, 3);
            if (ends) ends[i] = b->n;
            for (int c = 0; c < 6; c++) {
                spec one = *s;
                one.name[strlen(one.name) - 1] = "rwkvag"[c];
                for (uint64_t j = 0; j < E; j++) put_value(b, value(one.name, j, m->fine), "F32");
            }
            continue;
        }
        if (is_low(s)) shape[n_dim - 2] = s->shape[n_dim - 1], shape[n_dim - 1] = s->shape[n_dim - 2];
        if (!strcmp(t, "att.time_faaaa")) shape[2] = 1, n_dim = 3;
        else if (!strcmp(t, "att.time_decay") && n_dim == 3) shape[0] = H, shape[1] = N, shape[2] = 1;
        else if (strstr(t, ".time_") && s->n_dim == 3 && shape[0] == 1) shape[0] = E, n_dim = 1;
        put_bin_head(b, name, 0, shape, n_dim);
        if (ends) ends[i] = b->n;
        for (uint64_t j = 0; j < count(s); j++) put_value(b, stored(m, s, j, is_low(s)), "F32");
    }
}

UNUSED_FN void write_bin(const char *path, const model *m)
{
    buffer b = { 0 };
    make_bin(&b, m, NULL);
    write_bytes(path, b.p, b.n);
    free(b.p);
}

/* ---- what must come out -------------------------------------------------------------------------- */

UNUSED_FN hn_gguf *open_gguf(const char *path)
{
    hn_gguf *g;
    hone_error err = { 0 };
    if (hn_gguf_open(&g, path, &err) != HONE_OK) fail_msg("%s", err.message);
    return g;
}

UNUSED_FN uint32_t get_u32(const hn_gguf *g, const char *key)
{
    uint32_t v = 0;
    bool found = false;
    assert_int_equal(hn_gguf_get_u32(g, key, &v, &found, NULL), HONE_OK);
    if (!found) fail_msg("%s is absent", key);
    return v;
}

/* The tensor `name` holds those of the original, in this order, of this shape (fastest first);
 * turned: the last two dimensions swapped. */
static void expect_tensor(const hn_gguf *g, const model *m, const char *name, const char *const *from, int n_from,
                          bool turned, uint64_t ne0, uint64_t ne1, uint64_t ne2, uint64_t ne3)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
    if (!t) fail_msg("no tensor %s", name);
    const hn_type_info *ti = hn_type_get(t->type);
    uint64_t n = ne0 * ne1 * ne2 * ne3;
    if (t->ne[0] != ne0 || t->ne[1] != ne1 || t->ne[2] != ne2 || t->ne[3] != ne3)
        fail_msg("%s has another shape", name);
    float *x = malloc(4 * n);
    assert_non_null(x);
    ti->dequantize(x, t->data, (int64_t)n);
    for (uint64_t i = 0; i < n; i++) {
        spec s = *find_spec((model *)(uintptr_t)m, from[i / (n / (uint64_t)n_from)]);
        float want = stored(m, &s, i % (n / (uint64_t)n_from), turned);
        if (x[i] != want)
            fail_msg("%s: element %llu is %g, expected %g of %s", name, (unsigned long long)i, (double)x[i],
                     (double)want, s.name);
    }
    free(x);
}

static void expect_in(const hn_gguf *g, const model *m, int il, const char *to, const char *from, bool turned,
                      uint64_t ne0, uint64_t ne1, uint64_t ne2)
{
    char a[64], b[64];
    snprintf(a, sizeof a, "blk.%d.%s", il, to);
    snprintf(b, sizeof b, "blocks.%d.%s", il, from);
    expect_tensor(g, m, a, (const char *[]){ b }, 1, turned, ne0, ne1, ne2, 1);
}

static void expect_fused(const hn_gguf *g, const model *m, int il, const char *stem, const char *order)
{
    char name[64], from[6][64];
    const char *list[6];
    int n = (int)strlen(order);
    snprintf(name, sizeof name, "blk.%d.time_mix_lerp_fused.weight", il);
    for (int i = 0; i < n; i++) {
        snprintf(from[i], sizeof from[i], "blocks.%d.%s%c", il, stem, order[i]);
        list[i] = from[i];
    }
    expect_tensor(g, m, name, list, n, false, E, 1, 1, (uint64_t)n);
}

/* Every tensor and every size of the file. */
UNUSED_FN void expect_model(const hn_gguf *g, const model *m)
{
    static const struct {
        const char *to, *from;
        uint64_t ne0, ne1;
    } plain[] = {
        { "attn_norm.weight", "ln1.weight", E, 1 },
        { "attn_norm.bias", "ln1.bias", E, 1 },
        { "attn_norm_2.weight", "ln2.weight", E, 1 },
        { "attn_norm_2.bias", "ln2.bias", E, 1 },
        { "time_mix_receptance.weight", "att.receptance.weight", E, E },
        { "time_mix_key.weight", "att.key.weight", E, E },
        { "time_mix_value.weight", "att.value.weight", E, E },
        { "time_mix_output.weight", "att.output.weight", E, E },
        { "time_mix_ln.weight", "att.ln_x.weight", E, 1 },
        { "time_mix_ln.bias", "att.ln_x.bias", E, 1 },
        { "channel_mix_key.weight", "ffn.key.weight", E, F },
        { "channel_mix_value.weight", "ffn.value.weight", F, E },
    };
    expect_tensor(g, m, "token_embd.weight", (const char *[]){ "emb.weight" }, 1, false, E, V, 1, 1);
    expect_tensor(g, m, "output.weight", (const char *[]){ "head.weight" }, 1, false, E, V, 1, 1);
    expect_tensor(g, m, "output_norm.weight", (const char *[]){ "ln_out.weight" }, 1, false, E, 1, 1, 1);
    expect_tensor(g, m, "output_norm.bias", (const char *[]){ "ln_out.bias" }, 1, false, E, 1, 1, 1);
    expect_tensor(g, m, "token_embd_norm.weight", (const char *[]){ "blocks.0.ln0.weight" }, 1, false, E, 1, 1, 1);
    expect_tensor(g, m, "token_embd_norm.bias", (const char *[]){ "blocks.0.ln0.bias" }, 1, false, E, 1, 1, 1);
    for (int il = 0; il < L; il++) {
        for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
            expect_in(g, m, il, plain[i].to, plain[i].from, false, plain[i].ne0, plain[i].ne1, 1);
        if (m->version == 7) {
            expect_fused(g, m, il, "att.x_", "rwkvag");
            expect_in(g, m, il, "time_mix_w0.weight", "att.w0", false, E, 1, 1);
            expect_in(g, m, il, "time_mix_w1.weight", "att.w1", true, E, RW, 1);
            expect_in(g, m, il, "time_mix_w2.weight", "att.w2", true, RW, E, 1);
            expect_in(g, m, il, "time_mix_a0.weight", "att.a0", false, E, 1, 1);
            expect_in(g, m, il, "time_mix_a1.weight", "att.a1", true, E, RA, 1);
            expect_in(g, m, il, "time_mix_a2.weight", "att.a2", true, RA, E, 1);
            expect_in(g, m, il, "time_mix_v0.weight", il ? "att.v0" : "att.a0", false, E, 1, 1);
            expect_in(g, m, il, "time_mix_v1.weight", il ? "att.v1" : "att.a1", true, E, il ? RV : RA, 1);
            expect_in(g, m, il, "time_mix_v2.weight", il ? "att.v2" : "att.a2", true, il ? RV : RA, E, 1);
            expect_in(g, m, il, "time_mix_g1.weight", "att.g1", true, E, RG, 1);
            expect_in(g, m, il, "time_mix_g2.weight", "att.g2", true, RG, E, 1);
            expect_in(g, m, il, "time_mix_k_k.weight", "att.k_k", false, E, 1, 1);
            expect_in(g, m, il, "time_mix_k_a.weight", "att.k_a", false, E, 1, 1);
            expect_in(g, m, il, "time_mix_r_k.weight", "att.r_k", false, E, 1, 1);
            expect_in(g, m, il, "channel_mix_lerp_k.weight", "ffn.x_k", false, E, 1, 1);
        } else {
            expect_fused(g, m, il, "att.time_maa_", "wkvrg");
            expect_in(g, m, il, "time_mix_lerp_x.weight", "att.time_maa_x", false, E, 1, 1);
            expect_in(g, m, il, "time_mix_w1.weight", "att.time_maa_w1", true, E, 5 * X, 1);
            expect_in(g, m, il, "time_mix_w2.weight", "att.time_maa_w2", true, X, E, 5);
            expect_in(g, m, il, "time_mix_decay.weight", "att.time_decay", false, E, 1, 1);
            expect_in(g, m, il, "time_mix_decay_w1.weight", "att.time_decay_w1", true, E, DD, 1);
            expect_in(g, m, il, "time_mix_decay_w2.weight", "att.time_decay_w2", true, DD, E, 1);
            expect_in(g, m, il, "time_mix_first.weight", "att.time_faaaa", false, N, H, 1);
            expect_in(g, m, il, "time_mix_gate.weight", "att.gate.weight", false, E, E, 1);
            expect_in(g, m, il, "channel_mix_lerp_k.weight", "ffn.time_maa_k", false, E, 1, 1);
            expect_in(g, m, il, "channel_mix_lerp_r.weight", "ffn.time_maa_r", false, E, 1, 1);
            expect_in(g, m, il, "channel_mix_receptance.weight", "ffn.receptance.weight", false, E, E, 1);
        }
    }
    assert_int_equal(hn_gguf_n_tensors(g), 6 + L * (m->version == 7 ? 28 : 24));
    char key[64];
#define SIZE(suffix) (snprintf(key, sizeof key, "rwkv%d.%s", m->version, suffix), get_u32(g, key))
    assert_int_equal(SIZE("context_length"), 1048576);
    assert_int_equal(SIZE("block_count"), L);
    assert_int_equal(SIZE("embedding_length"), E);
    assert_int_equal(SIZE("feed_forward_length"), F);
    assert_int_equal(SIZE("wkv.head_size"), N);
    assert_int_equal(SIZE("attention.head_count"), 0);
    if (m->version == 7) {
        assert_int_equal(SIZE("attention.decay_lora_rank"), RW);
        assert_int_equal(SIZE("attention.iclr_lora_rank"), RA);
        assert_int_equal(SIZE("attention.value_residual_mix_lora_rank"), RV);
        assert_int_equal(SIZE("attention.gate_lora_rank"), RG);
    } else {
        assert_int_equal(SIZE("time_mix_extra_dim"), X);
        assert_int_equal(SIZE("time_decay_extra_dim"), DD);
        assert_int_equal(SIZE("rescale_every_n_layers"), 0);
    }
#undef SIZE
}

/* ---- config.json --------------------------------------------------------------------------------- */

#define CONFIG7                                                                                                       \
    "{\"architectures\":[\"RWKV7ForCausalLM\"],\"model_type\":\"rwkv7\",\"attn\":null,\"hidden_act\":\"sqrelu\","     \
    "\"hidden_size\":32,"                                                                                             \
    "\"head_size\":16,\"num_heads\":32,\"intermediate_size\":96,\"num_hidden_layers\":3,\"vocab_size\":40,\"decay_"   \
    "low_rank_dim\":8,\"a_low_rank_dim\":4,"                                                                          \
    "\"v_low_rank_dim\":12,\"gate_low_rank_dim\":16,\"norm_eps\":1e-05,\"norm_bias\":true,\"norm_first\":true,\"tie_" \
    "word_embeddings\":false,"                                                                                        \
    "\"value_dim\":[32,null,32],\"x\":NaN,\"torch_dtype\":\"float32\",\"deep\":{\"a\":[1,{\"b\":\"\\u00e9\\n\"}]}%s}"
#define CONFIG6                                                                                                      \
    "{\"architectures\":[\"Rwkv6ForCausalLM\"],\"model_type\":\"rwkv6\",\"hidden_size\":32,\"head_size\":16,\"head_" \
    "size_divisor\":8,"                                                                                              \
    "\"intermediate_size\":null,\"num_hidden_layers\":3,\"vocab_size\":40,\"layer_norm_epsilon\":0.00001,\"rescale_" \
    "every\":6%s}"

#endif
