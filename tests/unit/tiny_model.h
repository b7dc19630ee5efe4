/* Tiny models whose every weight follows from its name, so that a test can state what
 * logits must come out. Writes them with hone's own writer, or byte by byte when a file
 * is to be wrong. Knows what the families' files look like; nothing of src/model. */
#ifndef HN_TINY_MODEL_H
#define HN_TINY_MODEL_H

#include "gguf/gguf.h"
#include "gguf_bytes.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct tm_shape {
    const char *arch;
    int E, H, G, d, F, V, L;
    double base, eps;
    bool tied, qkv_bias, all_bias, out_bias;
    int n_rot;               /* 0: key absent, all of d */
    const float *rope_freqs; /* [d/2] or NULL */
    int window;              /* gemma3: of two layers of three; 0: key absent */
} tm_shape;

/* TM("llama", E, H, G, d, F, V, L, base, eps, .tied = true …) */
#define TM(a, e, h, g, d_, f, v, l, b, ep, ...)                                                               \
    {                                                                                                         \
        .arch = a, .E = e, .H = h, .G = g, .d = d_, .F = f, .V = v, .L = l, .base = b, .eps = ep, __VA_ARGS__ \
    }

typedef struct tm_kv {
    char key[96];
    uint32_t type;
    bb value;
} tm_kv; /* value as it stands in a file */
typedef struct tm_tensor {
    char name[64];
    hn_type type;
    int n_dim;
    uint64_t ne[4], n_bytes;
    void *data;
    float *f; /* the same, decoded */
} tm_tensor;

typedef struct tiny {
    tm_shape s;
    tm_kv kv[64];
    tm_tensor t[128];
    int n_kv, n_t;
} tiny;

/* ---- the rule ----------------------------------------------------------------------------- */

static inline uint64_t tm_fnv(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}
/* Number k of a name whose hash is seed, in [-1, 1), a multiple of 2^-15. */
static inline double tm_u_of(uint64_t seed, uint64_t k)
{
    uint64_t z = seed + (k + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return ((double)(z >> 48) - 32768.0) / 32768.0;
}
static inline double tm_u(const char *name, uint64_t k) { return tm_u_of(tm_fnv(name), k); }

/* ---- metadata ------------------------------------------------------------------------------- */

static inline tm_kv *tm_find_kv(tiny *m, const char *key)
{
    for (int i = 0; i < m->n_kv; i++)
        if (!strcmp(m->kv[i].key, key)) return &m->kv[i];
    return NULL;
}
/* Adds or replaces; the value is empty afterwards. */
static inline bb *tm_put(tiny *m, const char *key, uint32_t type)
{
    tm_kv *e = tm_find_kv(m, key);
    if (!e) {
        assert_true(m->n_kv < 64);
        e = &m->kv[m->n_kv++];
        assert_true(strlen(key) < sizeof e->key);
        memcpy(e->key, key, strlen(key) + 1);
    }
    e->type = type;
    e->value.n = 0;
    return &e->value;
}
static inline void tm_put_u32(tiny *m, const char *key, uint32_t v) { bb_u32(tm_put(m, key, HONE_KV_U32), v); }
static inline void tm_put_f32(tiny *m, const char *key, float v) { bb_raw(tm_put(m, key, HONE_KV_F32), &v, 4); }
static inline void tm_put_str(tiny *m, const char *key, const char *s) { bb_str(tm_put(m, key, HONE_KV_STRING), s); }
static inline void tm_put_u32s(tiny *m, const char *key, uint64_t n, uint32_t v)
{
    bb *b = tm_put(m, key, HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_U32), bb_u64(b, n);
    for (uint64_t i = 0; i < n; i++) bb_u32(b, v);
}
static inline void tm_drop_kv(tiny *m, const char *key)
{
    tm_kv *e = tm_find_kv(m, key);
    assert_non_null(e);
    bb_free(&e->value);
    *e = m->kv[--m->n_kv];
    m->kv[m->n_kv] = (tm_kv){ .key = "" };
}
/* "{arch}.{suffix}" */
static inline const char *tm_key(const tiny *m, const char *suffix)
{
    static char key[8][96];
    static int k;
    k = (k + 1) % 8;
    snprintf(key[k], sizeof key[k], "%s.%s", m->s.arch, suffix);
    return key[k];
}

/* ---- tensors ----------------------------------------------------------------------------------- */

static inline tm_tensor *tm_find(tiny *m, const char *name)
{
    for (int i = 0; i < m->n_t; i++)
        if (!strcmp(m->t[i].name, name)) return &m->t[i];
    return NULL;
}
static inline uint64_t tm_elems(const tm_tensor *t) { return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; }

/* Encodes f as another type; f becomes what the file then says. */
static inline void tm_encode(tm_tensor *t, hn_type type)
{
    const hn_type_info *ti = hn_type_get(type);
    uint64_t n = tm_elems(t), rows = n / t->ne[0];
    t->type = type;
    t->n_bytes = n / ti->block_elems * ti->block_bytes;
    free(t->data);
    t->data = calloc(1, t->n_bytes + 1);
    assert_non_null(t->data);
    if (type == HN_F32) {
        memcpy(t->data, t->f, t->n_bytes);
        return;
    }
    if (!ti->quantize) return;
    for (uint64_t r = 0; r < rows; r++)
        ti->quantize((char *)t->data + r * hn_row_bytes(ti, t->ne[0]), t->f + r * t->ne[0], (int64_t)t->ne[0], NULL);
    ti->dequantize(t->f, t->data, (int64_t)n);
}
static inline void tm_retype(tiny *m, const char *name, hn_type type)
{
    tm_tensor *t = tm_find(m, name);
    assert_non_null(t);
    tm_encode(t, type);
}
static inline tm_tensor *tm_add(tiny *m, const char *name, int n_dim, uint64_t ne0, uint64_t ne1)
{
    assert_true(m->n_t < 128);
    tm_tensor *t = &m->t[m->n_t++];
    *t = (tm_tensor){ .n_dim = n_dim, .ne = { ne0, ne1, 1, 1 } };
    snprintf(t->name, sizeof t->name, "%s", name);
    uint64_t n = tm_elems(t), seed = tm_fnv(name);
    bool norm = strstr(name, "norm") && strstr(name, ".weight");
    double s = !strcmp(name, "token_embd.weight") ? 1.0 : 0.25, o = norm ? 1.0 : 0.0;
    t->f = malloc(n * sizeof(float));
    assert_non_null(t->f);
    for (uint64_t k = 0; k < n; k++) t->f[k] = (float)(o + s * tm_u_of(seed, k));
    tm_encode(t, HN_F32);
    return t;
}
static inline void tm_drop(tiny *m, const char *name)
{
    tm_tensor *t = tm_find(m, name);
    assert_non_null(t);
    free(t->data);
    free(t->f);
    memmove(t, t + 1, (size_t)(&m->t[m->n_t] - (t + 1)) * sizeof *t);
    m->n_t--;
}
static inline void tm_linear(tiny *m, int il, const char *what, int n_in, int n_out, bool bias)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", il, what);
    tm_add(m, name, 2, (uint64_t)n_in, (uint64_t)n_out);
    snprintf(name, sizeof name, "blk.%d.%s.bias", il, what);
    if (bias) tm_add(m, name, 1, (uint64_t)n_out, 1);
}
static inline void tm_norm(tiny *m, int il, const char *what, int n)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", il, what);
    tm_add(m, name, 1, (uint64_t)n, 1);
}

/* ---- a whole model ------------------------------------------------------------------------------- */

static inline tiny *tm_new(tm_shape s)
{
    tiny *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->s = s;
    bool gemma3 = !strcmp(s.arch, "gemma3"), qwen3 = gemma3 || !strcmp(s.arch, "qwen3");
    tm_put_str(m, "general.architecture", s.arch);
    tm_put_u32(m, tm_key(m, "context_length"), 2048);
    tm_put_u32(m, tm_key(m, "embedding_length"), (uint32_t)s.E);
    tm_put_u32(m, tm_key(m, "block_count"), (uint32_t)s.L);
    tm_put_u32(m, tm_key(m, "feed_forward_length"), (uint32_t)s.F);
    tm_put_u32(m, tm_key(m, "attention.head_count"), (uint32_t)s.H);
    tm_put_u32(m, tm_key(m, "attention.head_count_kv"), (uint32_t)s.G);
    if (s.d * s.H != s.E || qwen3) {
        tm_put_u32(m, tm_key(m, "attention.key_length"), (uint32_t)s.d);
        tm_put_u32(m, tm_key(m, "attention.value_length"), (uint32_t)s.d);
    }
    if (s.n_rot) tm_put_u32(m, tm_key(m, "rope.dimension_count"), (uint32_t)s.n_rot);
    tm_put_f32(m, tm_key(m, "rope.freq_base"), (float)s.base);
    tm_put_f32(m, tm_key(m, "attention.layer_norm_rms_epsilon"), (float)s.eps);

    if (s.window) { /* and the third layer turns eight times slower */
        tm_put_u32(m, tm_key(m, "attention.sliding_window"), (uint32_t)s.window);
        tm_put_u32(m, tm_key(m, "attention.sliding_window_pattern"), 3);
        tm_put_f32(m, tm_key(m, "rope.freq_base_swa"), 10000.0f);
        tm_put_str(m, tm_key(m, "rope.scaling.type"), "linear");
        tm_put_f32(m, tm_key(m, "rope.scaling.factor"), 8.0f);
    }

    tm_add(m, "token_embd.weight", 2, (uint64_t)s.E, (uint64_t)s.V);
    tm_add(m, "output_norm.weight", 1, (uint64_t)s.E, 1);
    if (!s.tied) tm_add(m, "output.weight", 2, (uint64_t)s.E, (uint64_t)s.V);
    if (s.out_bias) tm_add(m, "output.bias", 1, (uint64_t)s.V, 1);
    if (s.rope_freqs) {
        tm_tensor *t = tm_add(m, "rope_freqs.weight", 1, (uint64_t)s.d / 2, 1);
        memcpy(t->f, s.rope_freqs, (size_t)s.d / 2 * sizeof(float));
        tm_encode(t, HN_F32);
    }
    for (int il = 0; il < s.L; il++) {
        tm_norm(m, il, "attn_norm", s.E);
        tm_linear(m, il, "attn_q", s.E, s.H * s.d, s.qkv_bias);
        tm_linear(m, il, "attn_k", s.E, s.G * s.d, s.qkv_bias);
        tm_linear(m, il, "attn_v", s.E, s.G * s.d, s.qkv_bias);
        if (qwen3) tm_norm(m, il, "attn_q_norm", s.d);
        if (qwen3) tm_norm(m, il, "attn_k_norm", s.d);
        tm_linear(m, il, "attn_output", s.H * s.d, s.E, s.all_bias);
        if (gemma3) tm_norm(m, il, "post_attention_norm", s.E);
        tm_norm(m, il, "ffn_norm", s.E);
        tm_linear(m, il, "ffn_gate", s.E, s.F, s.all_bias);
        tm_linear(m, il, "ffn_up", s.E, s.F, s.all_bias);
        tm_linear(m, il, "ffn_down", s.F, s.E, s.all_bias);
        if (gemma3) tm_norm(m, il, "post_ffw_norm", s.E);
    }
    return m;
}

static inline void tm_free(tiny *m)
{
    if (!m) return;
    for (int i = 0; i < m->n_kv; i++) bb_free(&m->kv[i].value);
    for (int i = 0; i < m->n_t; i++) free(m->t[i].data), free(m->t[i].f);
    free(m);
}

/* q, k and v of every layer, and their biases, become one tensor attn_qkv. */
static inline void tm_fuse_qkv(tiny *m)
{
    static const char *const kinds[] = { "weight", "bias" };
    for (int il = 0; il < m->s.L; il++)
        for (int j = 0; j < 2; j++) {
            char name[3][64], to[64];
            uint64_t at = 0;
            for (int i = 0; i < 3; i++) snprintf(name[i], sizeof name[i], "blk.%d.attn_%c.%s", il, "qkv"[i], kinds[j]);
            if (!tm_find(m, name[0])) continue;
            snprintf(to, sizeof to, "blk.%d.attn_qkv.%s", il, kinds[j]);
            uint64_t rows = (uint64_t)(m->s.H + 2 * m->s.G) * (uint64_t)m->s.d;
            tm_tensor *t = j ? tm_add(m, to, 1, rows, 1) : tm_add(m, to, 2, (uint64_t)m->s.E, rows);
            hn_type type = tm_find(m, name[0])->type;
            tm_encode(t, type);
            for (int i = 0; i < 3; i++) {
                tm_tensor *part = tm_find(m, name[i]);
                assert_int_equal(part->type, type);
                memcpy((char *)t->data + at, part->data, part->n_bytes);
                at += part->n_bytes;
            }
            assert_int_equal(at, t->n_bytes);
            for (int i = 0; i < 3; i++) {
                tm_drop(m, name[i]);
                t = tm_find(m, to);
            }
        }
}

/* ---- files -------------------------------------------------------------------------------------------- */

static char tm_dir[64];

static inline int tm_make_dir(void **state)
{
    snprintf(tm_dir, sizeof tm_dir, "/tmp/hone-tiny-XXXXXX");
    if (!mkdtemp(tm_dir)) return -1;
    char kept[80]; /* what hone remembers of files: not beside what the user's programs remember */
    snprintf(kept, sizeof kept, "%s/.state", tm_dir);
    return setenv("XDG_STATE_HOME", kept, 1);
}
/* Everything in the folder of fd, which is closed. */
static inline void tm_empty_dir(int fd)
{
    DIR *d = fdopendir(fd);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        int sub = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub >= 0) tm_empty_dir(sub);
        unlinkat(dirfd(d), e->d_name, sub >= 0 ? AT_REMOVEDIR : 0);
    }
    closedir(d);
}
static inline int tm_remove_dir(void **state)
{
    int fd = open(tm_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -1;
    tm_empty_dir(fd);
    return rmdir(tm_dir);
}
static inline const char *tm_path(const char *name)
{
    static char path[8][160];
    static int k;
    k = (k + 1) % 8;
    snprintf(path[k], sizeof path[k], "%s/%s", tm_dir, name);
    return path[k];
}

/* With hone's writer: u32, f32 and text only. */
static inline void tm_save(const tiny *m, const char *path)
{
    hone_error err = { 0 };
    hn_gguf_writer *w;
    assert_int_equal(hn_gguf_writer_new(&w, &err), HONE_OK);
    for (int i = 0; i < m->n_kv; i++) {
        const tm_kv *e = &m->kv[i];
        uint32_t u;
        memcpy(&u, e->value.p, 4);
        hone_status st = e->type == HONE_KV_U32 ? hn_gguf_put_u32(w, e->key, u, &err)
                         : e->type == HONE_KV_F32
                             ? hn_gguf_put_f32(w, e->key, hn_bits_f32(u), &err)
                             : hn_gguf_put_str(w, e->key, (const char *)e->value.p + 8, e->value.n - 8, &err);
        if (st) fail_msg("%s", err.message);
    }
    for (int i = 0; i < m->n_t; i++)
        if (hn_gguf_put_tensor(w, m->t[i].name, m->t[i].type, m->t[i].ne, m->t[i].n_dim, &err))
            fail_msg("%s", err.message);
    if (hn_gguf_write_begin(w, path, &err)) fail_msg("%s", err.message);
    for (int i = 0; i < m->n_t; i++)
        if (hn_gguf_write_data(w, m->t[i].data, m->t[i].n_bytes, &err)) fail_msg("%s", err.message);
    if (hn_gguf_write_end(w, &err)) fail_msg("%s", err.message);
    hn_gguf_writer_free(w);
}

/* Byte by byte, whatever it holds. */
static inline void tm_save_raw(const tiny *m, const char *path)
{
    bb b = bb_head(3, (uint64_t)m->n_t, (uint64_t)m->n_kv);
    for (int i = 0; i < m->n_kv; i++) {
        bb_str(&b, m->kv[i].key);
        bb_u32(&b, m->kv[i].type);
        bb_raw(&b, m->kv[i].value.p, m->kv[i].value.n);
    }
    uint64_t off = 0;
    for (int i = 0; i < m->n_t; i++) {
        bb_tensor(&b, m->t[i].name, (uint32_t)m->t[i].n_dim, m->t[i].ne, m->t[i].type, off);
        off += (m->t[i].n_bytes + 31) / 32 * 32;
    }
    bb_pad(&b, 32);
    for (int i = 0; i < m->n_t; i++) {
        bb_raw(&b, m->t[i].data, m->t[i].n_bytes);
        bb_pad(&b, 32);
    }
    bb_save(&b, path);
    bb_free(&b);
}

/* ---- running ------------------------------------------------------------------------------------------- */

static inline hone_model *tm_open(const tiny *m)
{
    static int k;
    char name[32];
    hone_error err = { 0 };
    hone_model *out;
    snprintf(name, sizeof name, "m%d.gguf", k++);
    const char *path = tm_path(name);
    tm_save(m, path);
    if (hone_model_open(&out, path, NULL, &err)) fail_msg("%s", err.message);
    return out;
}
static inline hone_context *tm_context(const char *cpu, int32_t n_threads)
{
    hone_error err = { 0 };
    hone_context *c;
    if (hone_context_new(&c, &(hone_context_params){ .n_threads = n_threads, .cpu = cpu }, &err))
        fail_msg("%s", err.message);
    return c;
}
static inline hone_session *tm_session(hone_context *c, const hone_model *m, int32_t n_ctx, int32_t n_seq,
                                       int32_t n_chunk, hone_kv_cache_type cache)
{
    hone_error err = { 0 };
    hone_session *s;
    if (hone_session_new(&s, c, m,
                         &(hone_session_params){ .n_ctx = n_ctx, .n_seq = n_seq, .n_chunk = n_chunk, .cache = cache },
                         &err))
        fail_msg("%s", err.message);
    return s;
}
/* Appends ids to a sequence; logits of all of them. */
static inline void tm_run(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, float *logits)
{
    hone_error err = { 0 };
    hone_token *t = calloc((size_t)n + 1, sizeof *t);
    assert_non_null(t);
    int32_t pos = hone_seq_length(s, seq);
    for (int32_t i = 0; i < n; i++) t[i] = (hone_token){ ids[i], pos + i, seq, logits != NULL };
    if (hone_decode(s, t, n, logits, &err)) fail_msg("%s", err.message);
    free(t);
}

/* The CPU levels of this machine; ends with NULL. */
static inline const char *const *tm_levels(void)
{
    static const char *list[HN_CPU_LEVELS + 1];
    int n = 0;
    for (int l = 0; l < HN_CPU_LEVELS; l++)
        if (hn_cpu_has((hn_cpu_level)l)) list[n++] = hn_cpu_level_name((hn_cpu_level)l);
    list[n] = NULL;
    return list;
}

/* The shapes of the published check vectors. */
static const float tm_factors[4] = { 1.0f, 1.0f, 2.69452969f, 8.0f };
static const tm_shape tm_llama = TM("llama", 32, 4, 2, 8, 48, 16, 2, 1e4, 1e-5, .n_rot = 8);
static const tm_shape tm_llama_tied =
    TM("llama", 32, 4, 2, 8, 48, 16, 2, 5e5, 1e-5, .tied = true, .n_rot = 8, .rope_freqs = tm_factors);
static const tm_shape tm_qwen2 = TM("qwen2", 32, 4, 2, 8, 48, 16, 2, 1e6, 1e-6, .tied = true, .qkv_bias = true);
static const tm_shape tm_gemma3 = TM("gemma3", 32, 4, 2, 16, 48, 16, 3, 1e6, 1e-6, .tied = true, .window = 4);
static const tm_shape tm_qwen3 = TM("qwen3", 32, 4, 2, 16, 48, 16, 2, 1e6, 1e-6);

#endif
