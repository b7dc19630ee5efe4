/* What a model file may get wrong: tensors missing, unexpected, of another shape or type;
 * hyper-parameters absurd, contradictory, of another kind. Each is refused with a status
 * and a message that names the file and the key or tensor, and nothing crashes. */
#include "tiny_model.h"

#include <math.h>
#include <unistd.h>

/* ---- how a refusal is looked at ------------------------------------------------------------ */

enum { ANY = -1 };

static hone_status open_raw(const tiny *m, hone_model **out, hone_error *err)
{
    const char *path = tm_path("refused.gguf");
    tm_save_raw(m, path);
    *out = (hone_model *)1;
    memset(err, 0, sizeof *err);
    return hone_model_open(out, path, NULL, err);
}

/* Refused, with the file and both words in the message. */
static void refuse(const tiny *m, int want, const char *a, const char *b)
{
    hone_error err;
    hone_model *out;
    hone_status st = open_raw(m, &out, &err);
    if (st == HONE_OK) fail_msg("opened, should be refused for %s %s", a, b ? b : "");
    assert_null(out);
    assert_int_equal(st, err.code);
    if (want == ANY ? st != HONE_E_FORMAT && st != HONE_E_UNSUPPORTED : st != (hone_status)want)
        fail_msg("%s: %s", hone_status_name(st), err.message);
    if (!strstr(err.message, "refused.gguf: ") || (a && !strstr(err.message, a)) || (b && !strstr(err.message, b)))
        fail_msg("message lacks the file, \"%s\" or \"%s\": %s", a, b ? b : "", err.message);
    assert_true(err.file && err.line > 0);
    assert_int_equal(hone_model_open(&out, tm_path("refused.gguf"), NULL, NULL), st); /* err may be NULL */
}

static void accept(const tiny *m)
{
    hone_error err;
    hone_model *out;
    if (open_raw(m, &out, &err)) fail_msg("%s", err.message);
    hone_model_close(out);
}

static const tm_shape llama_bias =
    TM("llama", 32, 4, 2, 8, 48, 16, 2, 1e4, 1e-5, .qkv_bias = true, .all_bias = true, .out_bias = true);
static const tm_shape *const shapes[] = { &tm_llama, &tm_llama_tied, &tm_qwen2, &tm_qwen3, &llama_bias };
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* The model, with its vocabulary declared too. */
static tiny *make(const tm_shape *s)
{
    tiny *m = tm_new(*s);
    tm_put_u32(m, tm_key(m, "vocab_size"), (uint32_t)s->V);
    return m;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void missing(void **state)
{
    for (int i = 0; i < 2 * N_SHAPES; i++) {
        tiny *m = make(shapes[i / 2]);
        if (i % 2) tm_fuse_qkv(m);
        int n = m->n_t, n_refused = 0;
        for (int k = 0; k < n; k++) {
            tm_tensor t = m->t[k];
            bool biased = strcmp(m->s.arch, "qwen3") != 0;
            bool optional = !strcmp(t.name, "output.weight") || !strcmp(t.name, "output.bias") ||
                            !strcmp(t.name, "rope_freqs.weight") || (biased && strstr(t.name, ".bias"));
            memmove(&m->t[k], &m->t[k + 1], (size_t)(n - k - 1) * sizeof t);
            m->n_t--;
            if (optional) accept(m);
            else if (strstr(t.name, "attn_qkv.weight")) refuse(m, HONE_E_FORMAT, "attn_q.weight", "missing");
            else refuse(m, HONE_E_FORMAT, t.name, "missing");
            n_refused += !optional;
            memmove(&m->t[k + 1], &m->t[k], (size_t)(n - k - 1) * sizeof t);
            m->t[k] = t;
            m->n_t++;
        }
        assert_true(n_refused >= 2 + 7 * 2);
        accept(m);
        tm_free(m);
    }
}

static void unexpected(void **state)
{
    static const struct {
        const tm_shape *s;
        const char *name;
    } list[] = {
        { &tm_llama, "blk.0.attn_sinks.weight" },
        { &tm_llama, "blk.2.attn_norm.weight" },
        { &tm_llama, "blk.00.attn_norm.weight" },
        { &tm_llama, "blk.0.attn_q_norm.weight" },
        { &tm_llama, "blk.0.attn_norm.bias" },
        { &tm_llama, "token_embd.bias" },
        { &tm_llama, "x" },
        { &tm_llama, "blk.0.ffn_gate.0.weight" },
        { &tm_llama, "output_norm.bias" },
        { &tm_llama, "Output.weight" },
        { &tm_llama, "blk.0.attn_rot_embd" },
        { &tm_qwen2, "rope_freqs.weight" },
        { &tm_qwen2, "blk.1.attn_output.bias" },
        { &tm_qwen2, "blk.1.ffn_up.bias" },
        { &tm_qwen3, "blk.0.ffn_up.bias" },
        { &tm_qwen3, "blk.1.attn_v_norm.weight" },
        { &tm_qwen3, "blk.0.ffn_gate_inp.weight" },
        { &tm_qwen3, "rope_freqs.weight" },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        tiny *m = make(list[i].s);
        tm_add(m, list[i].name, 1, 32, 1);
        refuse(m, HONE_E_UNSUPPORTED, list[i].name, m->s.arch);
        tm_free(m);
    }
    tiny *m = make(&tm_llama); /* fused and split at once: which one is meant? */
    tm_add(m, "blk.0.attn_qkv.weight", 2, 32, 64);
    refuse(m, HONE_E_UNSUPPORTED, "blk.0.attn_q.weight", NULL);
    tm_free(m);
    m = make(&tm_llama);
    tm_add(m, "evil\033[31m.weight", 1, 32, 1);
    refuse(m, ANY, "evil\\x1b[31m", NULL);
    tm_free(m);
}

static void shape_of(tiny *m, tm_tensor *t, int n_dim, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t ne[4], seen = a;
    char text[32];
    int nd = t->n_dim;
    void *data = t->data;
    uint64_t n_bytes = t->n_bytes;
    memcpy(ne, t->ne, sizeof ne);
    if (ne[0] == a && ne[1] == b && ne[2] == c) return;
    if (ne[0] == a) seen = ne[1] == b ? c : b;
    t->n_dim = n_dim;
    t->ne[0] = a, t->ne[1] = b, t->ne[2] = c;
    t->n_bytes = a * b * c * 4;
    t->data = calloc(1, t->n_bytes);
    assert_non_null(t->data);
    snprintf(text, sizeof text, "%d", (int)seen);
    bool vocab = !strcmp(t->name, "token_embd.weight") &&
                 b != ne[1]; /* its rows are compared with the declared vocabulary first */
    refuse(m, HONE_E_FORMAT, t->name, vocab ? "rows" : text);
    snprintf(text, sizeof text, "%d",
             vocab ? m->s.V
                   : (int)(ne[0] == a && ne[1] == b ? ne[0]
                           : ne[0] == a             ? ne[1]
                                                    : ne[0]));
    refuse(m, HONE_E_FORMAT, t->name, text);
    free(t->data);
    t->data = data;
    t->n_bytes = n_bytes;
    t->n_dim = nd;
    memcpy(t->ne, ne, sizeof ne);
}

static void wrong_shape(void **state)
{
    for (int i = 0; i < 2 * N_SHAPES; i++) {
        tiny *m = make(shapes[i / 2]);
        if (i % 2) tm_fuse_qkv(m);
        for (int k = 0; k < m->n_t; k++) {
            tm_tensor *t = &m->t[k];
            uint64_t a = t->ne[0], b = t->ne[1];
            shape_of(m, t, 2, a + 1, b, 1);
            shape_of(m, t, 2, a - 1, b, 1);
            shape_of(m, t, 2, 2 * a, b, 1);
            shape_of(m, t, 2, a, b + 1, 1);
            shape_of(m, t, 2, b, a, 1);
            shape_of(m, t, 1, a * b, 1, 1);
            shape_of(m, t, 3, a, b, 2);
            shape_of(m, t, 3, a, 1, b);
            if (b > 1) shape_of(m, t, 2, a, b - 1, 1);
        }
        accept(m);
        tm_free(m);
    }
}

static void wrong_type(void **state)
{
    static const hn_type no_weight[] = { HN_I8, HN_I16, HN_I32, HN_I64, HN_Q8_1 };
    static const hn_type no_vector[] = { HN_I32, HN_Q8_0, HN_Q4_0, HN_Q5_1, HN_IQ4_NL, HN_F64 };
    for (int i = 0; i < N_SHAPES; i++) {
        tiny *m = make(shapes[i]);
        for (int k = 0; k < m->n_t; k++) {
            tm_tensor *t = &m->t[k];
            const hn_type *list = t->n_dim == 1 ? no_vector : no_weight;
            for (int j = 0; j < (t->n_dim == 1 ? 6 : 5); j++) {
                if (t->ne[0] % hn_type_get(list[j])->block_elems) continue;
                tm_encode(t, list[j]);
                refuse(m, HONE_E_UNSUPPORTED, t->name, hn_type_get(list[j])->name);
            }
            tm_encode(t, HN_F32);
        }
        accept(m);
        tm_free(m);
    }
    static const hn_type k_quants[] = { HN_Q2_K, HN_Q3_K, HN_Q4_K, HN_Q5_K, HN_Q6_K, HN_Q8_K, HN_IQ4_XS, HN_TQ2_0 };
    tiny *m = make(&(tm_shape)TM("qwen2", 256, 4, 2, 64, 256, 16, 1, 1e6, 1e-6, .qkv_bias = true, .out_bias = true));
    static const char *const vectors[] = { "output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight",
                                           "blk.0.attn_q.bias" };
    for (size_t j = 0; j < sizeof k_quants / sizeof *k_quants; j++)
        for (int k = 0; k < 4; k++) {
            tm_retype(m, vectors[k], k_quants[j]);
            refuse(m, HONE_E_UNSUPPORTED, vectors[k], hn_type_get(k_quants[j])->name);
            tm_retype(m, vectors[k], HN_F32);
        }
    tm_retype(m, "blk.0.attn_q.weight", HN_Q8_K); /* a form of activations, not of files */
    refuse(m, HONE_E_UNSUPPORTED, "blk.0.attn_q.weight", "Q8_K");
    tm_free(m);
}

/* ---- hyper-parameters ---------------------------------------------------------------------------- */

static const char *const ints[] = { "block_count",          "context_length",
                                    "embedding_length",     "feed_forward_length",
                                    "attention.head_count", "attention.head_count_kv",
                                    "attention.key_length", "attention.value_length",
                                    "rope.dimension_count", "vocab_size" };
enum { N_INTS = sizeof ints / sizeof *ints };

/* A key's present value, and the model back to it. */
typedef struct saved {
    tm_kv e;
    bool there;
} saved;
static saved save(tiny *m, const char *key)
{
    tm_kv *e = tm_find_kv(m, key);
    saved s = { .there = e != NULL };
    if (e) s.e = *e, s.e.value = (bb){ 0 }, bb_raw(&s.e.value, e->value.p, e->value.n);
    return s;
}
static void restore(tiny *m, const char *key, saved *s)
{
    if (tm_find_kv(m, key)) tm_drop_kv(m, key);
    if (s->there) {
        bb *b = tm_put(m, key, s->e.type);
        bb_raw(b, s->e.value.p, s->e.value.n);
    }
    bb_free(&s->e.value);
}

static void bad_ints(void **state)
{
    for (int i = 0; i < N_SHAPES; i++) {
        tiny *m = make(shapes[i]);
        tm_put_u32(m, tm_key(m, "attention.key_length"), (uint32_t)m->s.d);
        tm_put_u32(m, tm_key(m, "attention.value_length"), (uint32_t)m->s.d);
        tm_put_u32(m, tm_key(m, "rope.dimension_count"), (uint32_t)m->s.d);
        accept(m);
        for (int k = 0; k < N_INTS; k++) {
            char key[96];
            snprintf(key, sizeof key, "%s", tm_key(m, ints[k]));
            saved s = save(m, key);
            uint32_t good;
            memcpy(&good, s.e.value.p, 4);
            tm_put_u32(m, key, 0);
            refuse(m, ANY, key, "0");
            tm_put_u32(m, key, UINT32_MAX);
            refuse(m, ANY, key, "4294967295");
            tm_put_u32(m, key, INT32_MAX);
            refuse(m, ANY, key, "2147483647");
            tm_put_u32(m, key, 0x80000000u);
            refuse(m, ANY, key, "2147483648");
            bb_u32(tm_put(m, key, HONE_KV_I32), (uint32_t)-1);
            refuse(m, ANY, key, "-1");
            bb_u8(tm_put(m, key, HONE_KV_I8), (uint8_t) - (int)1);
            refuse(m, ANY, key, "-1");
            bb_u64(tm_put(m, key, HONE_KV_I64), (uint64_t)INT64_MIN);
            refuse(m, ANY, key, "-9223372036854775808");
            bb_u64(tm_put(m, key, HONE_KV_U64), ((uint64_t)1 << 32) + good); /* cut to 32 bits it would be right */
            refuse(m, ANY, key, NULL);
            bb_u64(tm_put(m, key, HONE_KV_U64), (uint64_t)1 << 63);
            refuse(m, ANY, key, "9223372036854775808");
            tm_put_f32(m, key, (float)good);
            refuse(m, HONE_E_FORMAT, key, "f32");
            tm_put_str(m, key, "8");
            refuse(m, HONE_E_FORMAT, key, "string");
            bb_u8(tm_put(m, key, HONE_KV_BOOL), 1);
            refuse(m, HONE_E_FORMAT, key, "bool");

            bool per_layer = k == 3 || k == 4 || k == 5;
            tm_put_u32s(m, key, 2, good);
            if (per_layer) accept(m);
            else refuse(m, HONE_E_FORMAT, key, "array");
            static const uint64_t lengths[] = { 0, 1, 3, 100 };
            for (int j = 0; j < 4; j++) {
                tm_put_u32s(m, key, lengths[j], good);
                refuse(m, HONE_E_FORMAT, key, per_layer ? "2 layers" : "array");
            }
            tm_put_u32s(m, key, 2, 0);
            refuse(m, HONE_E_FORMAT, key, NULL);
            tm_put_u32s(m, key, 2, UINT32_MAX);
            refuse(m, HONE_E_FORMAT, key, NULL);
            bb *b = tm_put(m, key, HONE_KV_ARRAY);
            bb_u32(b, HONE_KV_U32), bb_u64(b, 2), bb_u32(b, good), bb_u32(b, good + 1);
            refuse(m, per_layer ? HONE_E_UNSUPPORTED : HONE_E_FORMAT, key, per_layer ? "differs" : "array");
            b = tm_put(m, key, HONE_KV_ARRAY);
            bb_u32(b, HONE_KV_I64), bb_u64(b, 2), bb_u64(b, (uint64_t)-1), bb_u64(b, (uint64_t)-1);
            refuse(m, HONE_E_FORMAT, key, per_layer ? "-1" : "array");
            b = tm_put(m, key, HONE_KV_ARRAY);
            bb_u32(b, HONE_KV_U64), bb_u64(b, 2), bb_u64(b, ((uint64_t)1 << 32) + good),
                bb_u64(b, ((uint64_t)1 << 32) + good);
            refuse(m, HONE_E_FORMAT, key, NULL);
            b = tm_put(m, key, HONE_KV_ARRAY);
            bb_u32(b, HONE_KV_F32), bb_u64(b, 2), bb_u32(b, hn_f32_bits((float)good)),
                bb_u32(b, hn_f32_bits((float)good));
            refuse(m, HONE_E_FORMAT, key, "array");
            b = tm_put(m, key, HONE_KV_ARRAY);
            bb_u32(b, HONE_KV_STRING), bb_u64(b, 2), bb_str(b, "4"), bb_str(b, "4");
            refuse(m, HONE_E_FORMAT, key, "array");
            b = tm_put(m, key, HONE_KV_ARRAY);
            bb_u32(b, HONE_KV_ARRAY), bb_u64(b, 1), bb_u32(b, HONE_KV_U32), bb_u64(b, 1), bb_u32(b, good);
            refuse(m, HONE_E_FORMAT, key, "array");
            restore(m, key, &s);
            accept(m);
        }
        tm_free(m);
    }
}

static void missing_keys(void **state)
{
    for (int i = 0; i < N_SHAPES; i++) {
        tiny *m = make(shapes[i]);
        char names[64][96];
        int n = m->n_kv;
        for (int k = 0; k < n; k++) memcpy(names[k], m->kv[k].key, sizeof names[k]);
        for (int k = 0; k < n; k++) {
            const char *key = names[k];
            saved s = save(m, key);
            tm_drop_kv(m, key);
            if (strstr(key, "rope.") || strstr(key, "vocab_size") || strstr(key, "value_length"))
                accept(m); /* a default stands */
            else if (strstr(key, "head_count_kv"))
                refuse(m, HONE_E_FORMAT, "blk.0.attn_k.weight", "32"); /* default: head_count */
            else if (strstr(key, "key_length"))
                refuse(m, ANY, "key_length", NULL); /* default: E/H, not what value_length says */
            else refuse(m, HONE_E_FORMAT, key, "missing");
            restore(m, key, &s);
        }
        accept(m);
        tm_free(m);
    }
}

/* Contradictions between keys, and between keys and tensors. */
static void contradictions(void **state)
{
    static const struct {
        const tm_shape *s;
        const char *key;
        uint32_t v;
        int st;
        const char *a, *b;
    } list[] = {
        { &tm_llama, "attention.head_count", 5, HONE_E_FORMAT, "llama.attention.head_count", "multiple" },
        { &tm_llama, "attention.head_count", 6, HONE_E_FORMAT, "llama.embedding_length", "multiple" },
        { &tm_llama, "attention.head_count", 8, HONE_E_FORMAT, "blk.0.attn_k.weight", "{32, 8}" },
        { &tm_llama, "attention.head_count_kv", 3, HONE_E_FORMAT, "llama.attention.head_count", "3" },
        { &tm_llama, "attention.head_count_kv", 8, HONE_E_FORMAT, "llama.attention.head_count", "8" },
        { &tm_llama, "attention.head_count_kv", 1, HONE_E_FORMAT, "blk.0.attn_k.weight", "{32, 8}" },
        { &tm_llama, "attention.key_length", 16, HONE_E_FORMAT, "blk.0.attn_q.weight", "{32, 64}" },
        { &tm_llama, "attention.value_length", 16, ANY, "llama.attention.value_length", "16" },
        { &tm_qwen3, "attention.value_length", 8, ANY, "qwen3.attention.value_length", "8" },
        { &tm_qwen3, "attention.key_length", 15, ANY, "qwen3.attention.", "15" },
        { &tm_llama, "block_count", 3, HONE_E_FORMAT, "blk.2.attn_norm.weight", "missing" },
        { &tm_llama, "block_count", 1, HONE_E_UNSUPPORTED, "blk.1.", "1 layers" },
        { &tm_llama, "block_count", 1025, HONE_E_FORMAT, "llama.block_count", "1024" },
        { &tm_llama, "embedding_length", 64, HONE_E_FORMAT, "token_embd.weight", "{64, 16}" },
        { &tm_qwen2, "embedding_length", 64, HONE_E_FORMAT, "token_embd.weight", "{64, 16}" },
        { &tm_llama, "embedding_length", (1 << 20) + 4, HONE_E_FORMAT, "llama.embedding_length", "1048576" },
        { &tm_llama, "feed_forward_length", 47, HONE_E_FORMAT, "blk.0.ffn_gate.weight", "{32, 47}" },
        { &tm_llama, "vocab_size", 15, HONE_E_FORMAT, "llama.vocab_size", "16" },
        { &tm_llama, "vocab_size", 17, HONE_E_FORMAT, "llama.vocab_size", "16" },
        { &tm_llama, "rope.dimension_count", 7, HONE_E_FORMAT, "llama.rope.dimension_count", "7" },
        { &tm_llama, "rope.dimension_count", 6, HONE_E_UNSUPPORTED, "llama.rope.dimension_count", "6" },
        { &tm_llama, "rope.dimension_count", 10, HONE_E_FORMAT, "llama.rope.dimension_count", "10" },
        { &tm_qwen2, "rope.dimension_count", 7, HONE_E_FORMAT, "qwen2.rope.dimension_count", "odd" },
        { &tm_qwen2, "rope.dimension_count", 1, HONE_E_FORMAT, "qwen2.rope.dimension_count", "1" },
        { &tm_qwen3, "rope.dimension_count", 18, HONE_E_FORMAT, "qwen3.rope.dimension_count", "18" },
        { &tm_llama, "context_length", (1 << 26) + 1, HONE_E_FORMAT, "llama.context_length", "67108864" },
        { &tm_llama, "expert_count", 8, HONE_E_FORMAT, "llama.expert_used_count", "needs it" },
        { &tm_qwen2, "expert_count", 8, HONE_E_UNSUPPORTED, "qwen2.expert_count", "8" },
        { &tm_qwen3, "expert_count", 100000, ANY, "qwen3.expert_count", "100000" },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        tiny *m = make(list[i].s);
        tm_put_u32(m, tm_key(m, list[i].key), list[i].v);
        refuse(m, list[i].st, list[i].a, list[i].b);
        tm_free(m);
    }
    tiny *m = make(&tm_llama);
    tm_put_u32(m, tm_key(m, "expert_count"), 0); /* as dense files write it */
    tm_put_u32(m, tm_key(m, "expert_used_count"), 0);
    accept(m);
    tm_free(m);
    /* tokens that have rows make another number a note; one more than there are rows does not */
    for (uint32_t n = 15; n < 18; n++) {
        m = make(&tm_llama);
        bb *tokens = tm_put(m, "tokenizer.ggml.tokens", HONE_KV_ARRAY);
        bb_u32(tokens, HONE_KV_STRING);
        bb_u64(tokens, n);
        for (uint32_t i = 0; i < n; i++) bb_str(tokens, "a");
        tm_put_u32(m, tm_key(m, "vocab_size"), 17);
        if (n < 17) accept(m);
        else refuse(m, HONE_E_FORMAT, "llama.vocab_size", "16");
        tm_free(m);
    }
    /* an odd head width without a rope key */
    m = make(&(tm_shape)TM("qwen3", 32, 4, 2, 7, 48, 16, 2, 1e6, 1e-6));
    refuse(m, HONE_E_FORMAT, "qwen3.rope.dimension_count", "7");
    tm_free(m);
    /* heads so many and wide that their product does not fit */
    m = make(&tm_qwen3);
    tm_put_u32(m, tm_key(m, "attention.head_count"), 4096);
    tm_put_u32(m, tm_key(m, "attention.key_length"), 65536);
    tm_put_u32(m, tm_key(m, "attention.value_length"), 65536);
    refuse(m, HONE_E_FORMAT, "head_count", "65536");
    tm_free(m);
}

static void bad_reals(void **state)
{
    static const struct {
        const char *key;
        float v[6];
        int n;
    } list[] = {
        { "attention.layer_norm_rms_epsilon", { 0, -0.0f, -1e-5f, 2.0f, -1e30f, 1e30f }, 6 },
        { "rope.freq_base", { 0, -0.0f, -10000, 0.5f, 1e30f, -1 }, 6 },
        { "rope.scaling.factor", { -1, -1e-30f, 1e30f, 1e-30f, 1e-38f }, 5 },
        { "rope.scale_linear", { 0, -1, 1e30f, 1e-30f }, 4 },
        { "rope.scaling.yarn_beta_fast", { 0, -1, 1e30f }, 3 },
        { "rope.scaling.yarn_beta_slow", { 0, -1, 1e30f }, 3 },
        { "rope.scaling.yarn_ext_factor", { 1e30f, 1e6f }, 2 },
        { "rope.scaling.attn_factor", { 0, -1, 1e30f }, 3 },
        { "rope.scaling.yarn_attn_factor", { 0, -1, 1e30f }, 3 },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        bool yarn = strstr(list[i].key, "attn_factor") || strstr(list[i].key, "yarn");
        tiny *m = make(i % 2 ? &tm_qwen2 : &tm_llama);
        char key[96];
        snprintf(key, sizeof key, "%s", tm_key(m, list[i].key));
        if (yarn) {
            tm_put_str(m, tm_key(m, "rope.scaling.type"), "yarn");
            tm_put_f32(m, tm_key(m, "rope.scaling.factor"), 4);
            tm_put_u32(m, tm_key(m, "rope.scaling.original_context_length"), 64);
            accept(m);
        }
        for (int k = 0; k < list[i].n; k++) {
            tm_put_f32(m, key, list[i].v[k]);
            refuse(m, HONE_E_FORMAT,
                   list[i].v[k] == 1e-30f || list[i].v[k] == 1e-38f || list[i].v[k] == 1e6f ? "rope." : key, NULL);
        }
        static const float odd[] = { NAN, -NAN, INFINITY, -INFINITY };
        for (int k = 0; k < 4; k++) {
            tm_put_f32(m, key, odd[k]);
            refuse(m, HONE_E_FORMAT, key, "finite");
        }
        bb_u64(tm_put(m, key, HONE_KV_F64), 0x7FEFFFFFFFFFFFFF); /* the largest double: no f32 */
        refuse(m, HONE_E_FORMAT, key, "finite");
        tm_put_u32(m, key, 1);
        refuse(m, HONE_E_FORMAT, key, "u32");
        tm_put_str(m, key, "1");
        refuse(m, HONE_E_FORMAT, key, "string");
        tm_free(m);
    }
}

/* Keys that ask for a formula the forward pass does not have: refused, unless they ask for nothing. */
static void other_formulas(void **state)
{
    static const struct {
        const char *key;
        float bad, good;
    } reals[] = {
        { "attention.scale", 0.5f, 0.35355339f /* 1/√8 */ },
        { "logit_scale", 0.0625f, 1 },
        { "residual_scale", 0.22f, 1 },
        { "embedding_scale", 12, 1 },
        { "attn_logit_softcapping", 50, 0 },
        { "final_logit_softcapping", 30, 0 },
    };
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        tiny *m = make(&tm_llama);
        assert_int_equal(m->s.d, 8);
        tm_put_f32(m, tm_key(m, reals[i].key), reals[i].bad);
        refuse(m, HONE_E_UNSUPPORTED, reals[i].key, "expected");
        tm_put_f32(m, tm_key(m, reals[i].key), reals[i].good);
        accept(m);
        tm_put_f32(m, tm_key(m, reals[i].key), 0);
        accept(m);
        tm_free(m);
    }
    static const struct {
        const char *key;
        bool good;
    } bools[] = { { "attention.causal", true }, { "use_parallel_residual", false } };
    for (size_t i = 0; i < sizeof bools / sizeof *bools; i++) {
        tiny *m = make(&tm_qwen2);
        for (int v = 0; v < 2; v++) {
            bb_u8(tm_put(m, tm_key(m, bools[i].key), HONE_KV_BOOL), (uint8_t)v);
            if (v == bools[i].good) accept(m);
            else refuse(m, HONE_E_UNSUPPORTED, bools[i].key, "expected");
        }
        tm_free(m);
    }
}

static void rope_scaling(void **state)
{
    static const char *const types[] = { "longrope", "", "Linear", "yarn2", "su", "dynamic", "linear ", "\033[2J" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tiny *m = make(&tm_llama);
        tm_put_str(m, tm_key(m, "rope.scaling.type"), types[i]);
        refuse(m, HONE_E_UNSUPPORTED, "llama.rope.scaling.type", types[i][0] == '\033' ? "\\x1b" : types[i]);
        tm_put_u32(m, tm_key(m, "rope.scaling.type"), 1);
        refuse(m, HONE_E_FORMAT, "llama.rope.scaling.type", "string");
        tm_free(m);
    }
    tiny *m = make(&tm_llama); /* 0 is written for "none" */
    tm_put_f32(m, tm_key(m, "rope.scaling.factor"), 0);
    accept(m);
    tm_put_str(m, tm_key(m, "rope.scaling.type"), "yarn");
    tm_put_f32(m, tm_key(m, "rope.scaling.factor"), 4);
    tm_put_f32(m, tm_key(m, "rope.freq_base"), 1); /* no angle differs: the ramp's ends are infinite */
    accept(m);
    tm_put_f32(m, tm_key(m, "rope.scaling.yarn_ext_factor"), -1); /* means: as YaRN says */
    accept(m);
    tm_put_u32(m, tm_key(m, "rope.scaling.original_context_length"), 0);
    refuse(m, HONE_E_FORMAT, "llama.rope.scaling.original_context_length", "0");
    tm_free(m);

    static const float bad[] = { 0, -0.0f, -1, NAN, INFINITY, 1e-30f, 1e-38f, 1e-45f };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        m = make(&tm_llama_tied);
        tm_tensor *t = tm_find(m, "rope_freqs.weight");
        ((float *)t->data)[1] = bad[i];
        refuse(m, HONE_E_FORMAT, "rope_freqs.weight", "[1]");
        tm_free(m);
    }
}

/* ---- what the file is ------------------------------------------------------------------------------- */

static void architecture(void **state)
{
    static const char *const names[] = { "gptj",      "grok",   "Llama",      "",     "llama4x",
                                         "deepseek9", "arwkv7", "rwkv6qwen2", "llam", "llama " };
    tiny *m = make(&tm_llama);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tm_put_str(m, "general.architecture", names[i]);
        refuse(m, HONE_E_UNSUPPORTED, "architecture", names[i]);
    }
    tm_put_str(m, "general.architecture", "a\033[31mb\nc");
    refuse(m, HONE_E_UNSUPPORTED, "a\\x1b[31mb\\x0ac", NULL);
    bb *b = tm_put(m, "general.architecture", HONE_KV_STRING);
    bb_strn(b, "llama\0x", 7);
    refuse(m, HONE_E_FORMAT, "llama\\x00x", "NUL");
    tm_put_u32(m, "general.architecture", 1);
    refuse(m, HONE_E_FORMAT, "general.architecture", "string");
    tm_drop_kv(m, "general.architecture");
    refuse(m, HONE_E_FORMAT, "general.architecture", "missing");
    tm_free(m);

    static const char *const types[] = { "adapter", "mmproj", "", "Model", "imatrix", "vocab" };
    m = make(&tm_llama);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tm_put_str(m, "general.type", types[i]);
        refuse(m, HONE_E_UNSUPPORTED, "general.type", types[i]);
    }
    tm_put_u32(m, "general.type", 0);
    refuse(m, HONE_E_FORMAT, "general.type", "string");
    tm_put_str(m, "general.type", "model");
    accept(m);
    tm_put_u32(m, "general.name", 1);
    refuse(m, HONE_E_FORMAT, "general.name", "string");
    tm_free(m);
}

static void no_model(void **state)
{
    hone_error err;
    hone_model *out = (hone_model *)1;
    assert_int_equal(hone_model_open(&out, tm_path("absent.gguf"), NULL, &err), HONE_E_IO);
    assert_null(out);
    assert_non_null(strstr(err.message, "absent.gguf"));
    out = (hone_model *)1;
    assert_int_not_equal(hone_model_open(&out, tm_dir, NULL, &err), HONE_OK);
    assert_null(out);
    assert_non_null(strstr(err.message, tm_dir));
    assert_int_not_equal(hone_model_open(&out, "", NULL, &err), HONE_OK);
    /* metadata alone is no model, and has no tokenizer either */
    tiny *m = make(&tm_llama);
    int n_t = m->n_t, n_kv = m->n_kv;
    m->n_t = 0;
    refuse(m, HONE_E_FORMAT, "token_embd.weight", "missing");
    assert_int_equal(hone_model_open(&out, tm_path("refused.gguf"), &(hone_model_params){ .vocab_only = true }, &err),
                     HONE_E_UNSUPPORTED);
    assert_null(out);
    assert_non_null(strstr(err.message, "tokenizer.ggml.model"));
    m->n_kv = 0;
    refuse(m, HONE_E_FORMAT, "general.architecture", NULL);
    m->n_t = n_t;
    m->n_kv = n_kv;
    tm_free(m);
    hone_model_close(NULL);
}

/* Weights are fine, the wish is not. */
static void too_large(void **state)
{
    /* 128 KiB a position: terabytes for one sequence of the longest context */
    static const tm_shape wide = TM("llama", 32, 16, 16, 256, 48, 16, 4, 1e4, 1e-5, .n_rot = 256);
    tiny *m = make(&wide);
    hone_model *model = tm_open(m);
    hone_context *c = tm_context("scalar", 1);
    static const struct {
        hone_session_params p;
        hone_status st;
        const char *say;
    } list[] = {
        { { .n_ctx = 1 << 26, .n_seq = 4096, .n_chunk = 1, .cache = HONE_CACHE_F32 }, HONE_E_NOMEM, "GiB" },
        { { .n_ctx = 1 << 26, .n_seq = 4096, .n_chunk = 0, .cache = HONE_CACHE_F16 },
          HONE_E_NOMEM,
          "67108864 positions" },
        { { .n_ctx = (1 << 26) + 1, .n_seq = 1, .n_chunk = 0, .cache = HONE_CACHE_F16 }, HONE_E_ARG, "67108865" },
        { { .n_ctx = -1, .n_seq = 1, .n_chunk = 0, .cache = HONE_CACHE_F16 }, HONE_E_ARG, "-1" },
        { { .n_ctx = INT32_MIN, .n_seq = 1, .n_chunk = 0, .cache = HONE_CACHE_F16 }, HONE_E_ARG, "-2147483648" },
        { { .n_ctx = 16, .n_seq = -1, .n_chunk = 0, .cache = HONE_CACHE_F16 }, HONE_E_ARG, "-1" },
        { { .n_ctx = 16, .n_seq = 4097, .n_chunk = 0, .cache = HONE_CACHE_F16 }, HONE_E_ARG, "4097" },
        { { .n_ctx = 16, .n_seq = 1, .n_chunk = -1, .cache = HONE_CACHE_F16 }, HONE_E_ARG, "-1" },
        { { .n_ctx = 16, .n_seq = 1, .n_chunk = 65537, .cache = HONE_CACHE_F16 }, HONE_E_ARG, "65537" },
        { { .n_ctx = 16, .n_seq = 1, .n_chunk = 1, .cache = (hone_kv_cache_type)7 }, HONE_E_ARG, "7" },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        hone_error err = { 0 };
        hone_session *s = (hone_session *)1;
        assert_int_equal(hone_session_new(&s, c, model, &list[i].p, &err), list[i].st);
        assert_null(s);
        if (!strstr(err.message, list[i].say)) fail_msg("%s", err.message);
        assert_int_equal(hone_session_new(&s, c, model, &list[i].p, NULL), list[i].st);
    }
    hone_session *s; /* nothing given: the file's context, 2048, is below the default */
    hone_error err;
    assert_int_equal(hone_session_new(&s, c, model, NULL, &err), HONE_OK);
    assert_int_equal(hone_session_n_ctx(s), 2048);
    hone_session_free(s);
    hone_session_free(NULL);
    hone_context_free(c);
    hone_model_close(model);
    tm_free(m);
}

/* A sparse file of weights of twice the machine's memory: refused, unless asked for. */
static void larger_than_memory(void **state)
{
    uint64_t total = hn_memory_total(), E = 1 << 14, F = 16, off = 0;
    while (3 * E * F * 4 < 2 * total && F < 1 << 22) F *= 2;
    tiny *m = tm_new((tm_shape)TM("qwen3", 4, 1, 1, 4, 4, 1, 1, 1e6, 1e-6, .tied = true));
    tm_put_u32(m, tm_key(m, "embedding_length"), (uint32_t)E);
    tm_put_u32(m, tm_key(m, "feed_forward_length"), (uint32_t)F);
    for (int i = 0; i < m->n_t; i++) {
        tm_tensor *t = &m->t[i];
        bool ffn = strstr(t->name, "ffn_") && !strstr(t->name, "norm"), down = strstr(t->name, "down") != NULL,
             qk_norm = strstr(t->name, "_q_norm") || strstr(t->name, "_k_norm");
        if (ffn) t->ne[0] = down ? F : E, t->ne[1] = down ? E : F;
        else if (strstr(t->name, "attn_output")) t->ne[1] = E;
        else if (!qk_norm) t->ne[0] = E;
    }
    bb b = bb_head(3, (uint64_t)m->n_t, (uint64_t)m->n_kv);
    for (int i = 0; i < m->n_kv; i++) {
        bb_str(&b, m->kv[i].key);
        bb_u32(&b, m->kv[i].type);
        bb_raw(&b, m->kv[i].value.p, m->kv[i].value.n);
    }
    for (int i = 0; i < m->n_t; i++) {
        bb_tensor(&b, m->t[i].name, (uint32_t)m->t[i].n_dim, m->t[i].ne, HN_F32, off);
        off += (tm_elems(&m->t[i]) * 4 + 31) / 32 * 32;
    }
    bb_pad(&b, 32);
    bb_save(&b, tm_path("sparse.gguf"));
    int rc = truncate(tm_path("sparse.gguf"), (off_t)(b.n + off));
    bb_free(&b);
    tm_free(m);
    hone_error err = { 0 };
    hone_model *model = NULL;
    if (!total || off < 2 * total || rc || hone_model_open(&model, tm_path("sparse.gguf"), NULL, &err) == HONE_E_IO) {
        print_message("SKIP: no sparse file of %llu bytes here\n", (unsigned long long)off);
        skip();
    }
    if (!model) fail_msg("%s", err.message);
    hone_context *c = tm_context("scalar", 1);
    hone_session *s = (hone_session *)1;
    hone_session_params p = { .n_ctx = 4, .n_chunk = 1 };
    assert_int_equal(hone_session_new(&s, c, model, &p, &err), HONE_E_NOMEM);
    assert_null(s);
    assert_non_null(strstr(err.message, "sparse.gguf"));
    assert_non_null(strstr(err.message, "GiB"));
    p.allow_paging = true;
    if (hone_session_new(&s, c, model, &p, &err)) fail_msg("%s", err.message);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(model);
}

/* Files damaged at random in their directory: refused, or run without harm. */
static void damaged(void **state)
{
    hone_context *c = tm_context(NULL, 1);
    int opened = 0, refused = 0;
    for (int i = 0; i < N_SHAPES; i++) {
        tiny *m = make(shapes[i]);
        tm_put_str(m, tm_key(m, "rope.scaling.type"), "yarn");
        tm_put_f32(m, tm_key(m, "rope.scaling.factor"), 4);
        tm_save_raw(m, tm_path("whole.gguf"));
        FILE *f = fopen(tm_path("whole.gguf"), "rb");
        assert_non_null(f);
        static unsigned char whole[400000];
        size_t n = fread(whole, 1, sizeof whole, f), dir = n;
        fclose(f);
        assert_true(n < sizeof whole);
        for (int k = 0; k < m->n_t; k++) dir -= (m->t[k].n_bytes + 31) / 32 * 32;
        for (uint64_t k = 0; k < 500; k++) {
            size_t at = (size_t)(hn_rand64(77 + (uint64_t)i, 2 * k) % dir);
            unsigned char old = whole[at];
            uint64_t r = hn_rand64(77 + (uint64_t)i, 2 * k + 1);
            whole[at] = r & 256 ? (unsigned char)(old ^ 1u << (r & 7)) : (unsigned char)r;
            f = fopen(tm_path("damaged.gguf"), "wb");
            assert_non_null(f);
            assert_int_equal(fwrite(whole, 1, n, f), n);
            fclose(f);
            whole[at] = old;
            hone_error err = { 0 };
            hone_model *model;
            hone_status st = hone_model_open(&model, tm_path("damaged.gguf"), NULL, &err);
            if (st) {
                refused++;
                assert_null(model);
                assert_true(st == HONE_E_FORMAT || st == HONE_E_UNSUPPORTED);
                assert_non_null(strstr(err.message, "damaged.gguf"));
                continue;
            }
            opened++;
            hone_session *s;
            if (hone_session_new(
                    &s, c, model,
                    &(hone_session_params){ .n_ctx = 8, .n_seq = 1, .n_chunk = 4, .cache = HONE_CACHE_F16 },
                    &err) == HONE_OK) {
                float y[3 * 16];
                hone_model_info in;
                hone_model_get_info(model, &in);
                assert_int_equal(in.n_vocab, 16);
                hone_token tok[3];
                for (int t = 0; t < 3; t++) tok[t] = (hone_token){ .id = t + 1, .pos = t, .want_logits = true };
                st = hone_decode(s, tok, 3, y, &err);
                assert_true(st == HONE_OK || st == HONE_E_NUMERIC); /* an epsilon of nothing, say */
                hone_session_free(s);
            }
            hone_model_close(model);
        }
        tm_free(m);
    }
    print_message("  %d refused, %d opened\n", refused, opened);
    assert_true(refused > 100 && opened > 20);
    hone_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing),        cmocka_unit_test(unexpected),         cmocka_unit_test(wrong_shape),
        cmocka_unit_test(wrong_type),     cmocka_unit_test(bad_ints),           cmocka_unit_test(missing_keys),
        cmocka_unit_test(contradictions), cmocka_unit_test(bad_reals),          cmocka_unit_test(rope_scaling),
        cmocka_unit_test(other_formulas), cmocka_unit_test(architecture),       cmocka_unit_test(no_model),
        cmocka_unit_test(too_large),      cmocka_unit_test(larger_than_memory), cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
