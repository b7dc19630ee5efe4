/* synth of RWKV-7 and RWKV-6: every tensor against a table of converted files, keys, types of
 * quantized files, the World vocabulary through the tokenizer, a state that lives. */
#include "gguf/gguf.h"
#include "forge/synth.h"
#include "text/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char path_json[64], path_gguf[64];

static int make_paths(void **state)
{
    snprintf(path_json, sizeof path_json, "/tmp/hone-synth-rwkv-%d.json", (int)getpid());
    snprintf(path_gguf, sizeof path_gguf, "/tmp/hone-synth-rwkv-%d.gguf", (int)getpid());
    return 0;
}

static int remove_paths(void **state)
{
    unlink(path_json);
    unlink(path_gguf);
    return 0;
}

/* ---- the tables --------------------------------------------------------------------------- */

/* Sizes as letters: E embedding, F feed-forward, V vocabulary, 1, 5, 6 themselves, H heads, N head size;
 * rwkv7 ranks d a v g; rwkv6 D decay, X mix, Y 5 X. kind: f always F32, w quantized, l F16 in quantized files. */
typedef struct row {
    const char *name, *ne, *ne_in_0;
    char kind;
} row;

static const row outside[] = {
    { "output.weight", "EV", NULL, 'w' },       { "output_norm.bias", "E", NULL, 'f' },
    { "output_norm.weight", "E", NULL, 'f' },   { "token_embd.weight", "EV", NULL, 'w' },
    { "token_embd_norm.bias", "E", NULL, 'f' }, { "token_embd_norm.weight", "E", NULL, 'f' },
};
static const row in7[] = {
    { "attn_norm.bias", "E", NULL, 'f' },
    { "attn_norm.weight", "E", NULL, 'f' },
    { "attn_norm_2.bias", "E", NULL, 'f' },
    { "attn_norm_2.weight", "E", NULL, 'f' },
    { "channel_mix_key.weight", "EF", NULL, 'w' },
    { "channel_mix_lerp_k.weight", "E", NULL, 'f' },
    { "channel_mix_value.weight", "FE", NULL, 'w' },
    { "time_mix_a0.weight", "E", NULL, 'f' },
    { "time_mix_a1.weight", "Ea", NULL, 'l' },
    { "time_mix_a2.weight", "aE", NULL, 'l' },
    { "time_mix_g1.weight", "Eg", NULL, 'l' },
    { "time_mix_g2.weight", "gE", NULL, 'l' },
    { "time_mix_k_a.weight", "E", NULL, 'f' },
    { "time_mix_k_k.weight", "E", NULL, 'f' },
    { "time_mix_key.weight", "EE", NULL, 'w' },
    { "time_mix_lerp_fused.weight", "E116", NULL, 'f' },
    { "time_mix_ln.bias", "E", NULL, 'f' },
    { "time_mix_ln.weight", "E", NULL, 'f' },
    { "time_mix_output.weight", "EE", NULL, 'w' },
    { "time_mix_r_k.weight", "E", NULL, 'f' },
    { "time_mix_receptance.weight", "EE", NULL, 'w' },
    { "time_mix_v0.weight", "E", NULL, 'f' },
    { "time_mix_v1.weight", "Ev", "Ea", 'l' },
    { "time_mix_v2.weight", "vE", "aE", 'l' },
    { "time_mix_value.weight", "EE", NULL, 'w' },
    { "time_mix_w0.weight", "E", NULL, 'f' },
    { "time_mix_w1.weight", "Ed", NULL, 'f' },
    { "time_mix_w2.weight", "dE", NULL, 'f' },
};
static const row in6[] = {
    { "attn_norm.bias", "E", NULL, 'f' },
    { "attn_norm.weight", "E", NULL, 'f' },
    { "attn_norm_2.bias", "E", NULL, 'f' },
    { "attn_norm_2.weight", "E", NULL, 'f' },
    { "channel_mix_key.weight", "EF", NULL, 'w' },
    { "channel_mix_lerp_k.weight", "E", NULL, 'f' },
    { "channel_mix_lerp_r.weight", "E", NULL, 'f' },
    { "channel_mix_receptance.weight", "EE", NULL, 'w' },
    { "channel_mix_value.weight", "FE", NULL, 'w' },
    { "time_mix_decay.weight", "E", NULL, 'f' },
    { "time_mix_decay_w1.weight", "ED", NULL, 'f' },
    { "time_mix_decay_w2.weight", "DE", NULL, 'f' },
    { "time_mix_first.weight", "NH", NULL, 'f' },
    { "time_mix_gate.weight", "EE", NULL, 'w' },
    { "time_mix_key.weight", "EE", NULL, 'w' },
    { "time_mix_lerp_fused.weight", "E115", NULL, 'f' },
    { "time_mix_lerp_x.weight", "E", NULL, 'f' },
    { "time_mix_ln.bias", "E", NULL, 'f' },
    { "time_mix_ln.weight", "E", NULL, 'f' },
    { "time_mix_output.weight", "EE", NULL, 'w' },
    { "time_mix_receptance.weight", "EE", NULL, 'w' },
    { "time_mix_value.weight", "EE", NULL, 'w' },
    { "time_mix_w1.weight", "EY", NULL, 'f' },
    { "time_mix_w2.weight", "XE5", NULL, 'f' },
};
enum { N_OUTSIDE = sizeof outside / sizeof *outside, N_7 = sizeof in7 / sizeof *in7, N_6 = sizeof in6 / sizeof *in6 };

typedef struct sizes {
    int e, f, v, n, d, a, vr, g, x;
} sizes;

static uint64_t size_of(char c, const sizes *z)
{
    switch (c) {
    case 'E': return (uint64_t)z->e;
    case 'F': return (uint64_t)z->f;
    case 'V': return (uint64_t)z->v;
    case 'N': return (uint64_t)z->n;
    case 'H': return (uint64_t)(z->e / z->n);
    case 'd':
    case 'D': return (uint64_t)z->d;
    case 'a': return (uint64_t)z->a;
    case 'v': return (uint64_t)z->vr;
    case 'g': return (uint64_t)z->g;
    case 'X': return (uint64_t)z->x;
    case 'Y': return 5 * (uint64_t)z->x;
    default: return (uint64_t)(c - '0');
    }
}

static void check_row(const hn_synth_tensor *t, const row *r, int il, const sizes *z, const hn_type type[3])
{
    char name[64];
    const char *ne = il == 0 && r->ne_in_0 ? r->ne_in_0 : r->ne;
    if (il < 0) snprintf(name, sizeof name, "%s", r->name);
    else snprintf(name, sizeof name, "blk.%d.%s", il, r->name);
    assert_string_equal(t->name, name);
    if (t->n_dim != (int)strlen(ne)) fail_msg("%s: %d dimensions, expected %s", name, t->n_dim, ne);
    for (int i = 0; i < 4; i++) {
        uint64_t want = i < t->n_dim ? size_of(ne[i], z) : 1;
        if (t->ne[i] != want)
            fail_msg("%s: ne[%d] is %llu, expected %llu", name, i, (unsigned long long)t->ne[i],
                     (unsigned long long)want);
    }
    hn_type want = type[r->kind == 'f' ? 0 : r->kind == 'l' ? 1 : 2];
    if (!strcmp(r->name, "output.weight") && want == HN_Q4_K) want = HN_Q6_K;
    if (t->type != want) fail_msg("%s: type %d, expected %d", name, t->type, want);
}

static void check_plan(const hn_synth_shape *s, const sizes *z, const char *mixture, hn_type lowrank, hn_type matrix)
{
    hone_error err = { 0 };
    hn_synth_plan *p;
    const hn_type type[3] = { HN_F32, lowrank, matrix };
    bool v7 = !strcmp(s->arch, "rwkv7");
    const row *rows = v7 ? in7 : in6;
    size_t n_row = v7 ? N_7 : N_6, k = 0;
    if (hn_synth_plan_new(&p, s, mixture, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(p->n, N_OUTSIDE + n_row * (size_t)s->n_layer);
    for (int i = 0; i < N_OUTSIDE; i++) check_row(&p->t[k++], &outside[i], -1, z, type);
    for (int il = 0; il < s->n_layer; il++)
        for (size_t i = 0; i < n_row; i++) check_row(&p->t[k++], &rows[i], il, z, type);
    hn_synth_plan_free(p);
}

static void test_tensors_of_presets(void **state)
{
    static const struct {
        const char *name;
        int n_layer;
        sizes z;
    } known[] = {
        { "rwkv7-0.1b", 12, { 768, 3072, 65536, 64, 64, 64, 32, 128, 0 } },
        { "rwkv7-0.4b", 24, { 1024, 4096, 65536, 64, 64, 64, 32, 128, 0 } },
        { "rwkv7-1.5b", 24, { 2048, 8192, 65536, 64, 96, 96, 64, 256, 0 } },
        { "rwkv7-2.9b", 32, { 2560, 10240, 65536, 64, 96, 96, 64, 320, 0 } },
        { "rwkv6-1.6b", 24, { 2048, 7168, 65536, 64, 64, 0, 0, 0, 32 } },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const hn_synth_shape *s = hn_synth_preset(known[i].name, NULL);
        assert_non_null(s);
        assert_int_equal(s->n_layer, known[i].n_layer);
        check_plan(s, &known[i].z, "F32", HN_F32, HN_F32);
        check_plan(s, &known[i].z, "BF16", HN_BF16, HN_BF16);
        check_plan(s, &known[i].z, "Q4_K_M", HN_F16, HN_Q4_K);
        check_plan(s, &known[i].z, "Q8_0", HN_F16, HN_Q8_0);
    }
    const char *name = NULL;
    assert_non_null(hn_synth_preset("RWKV-2.9B", &name));
    assert_string_equal(name, "rwkv7-2.9b");
    assert_null(hn_synth_preset("rwkv", NULL));
}

/* ---- shapes from JSON ------------------------------------------------------------------------ */

static hone_status read_json(hn_synth_shape *s, const char *text, hone_error *err)
{
    FILE *f = fopen(path_json, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    return hn_synth_config(s, path_json, err);
}

static void shape(hn_synth_shape *s, const char *text)
{
    hone_error err = { 0 };
    if (read_json(s, text, &err) != HONE_OK) fail_msg("%s", err.message);
}

#define ODD7                                                                                                       \
    "{\"arch\":\"rwkv7\",\"n_layer\":2,\"n_embd\":16,\"head_dim\":8,\"n_ff\":36,\"n_vocab\":300,\"rank_decay\":3," \
    "\"rank_iclr\":5,\"rank_value\":7,\"rank_gate\":1}"
#define ODD6                                                                                                         \
    "{\"arch\":\"rwkv6\",\"n_layer\":3,\"n_embd\":24,\"head_dim\":8,\"n_head\":3,\"n_ff\":40,\"n_vocab\":16,\"rank_" \
    "mix\":3,\"rank_decay\":5,\"rescale_every\":2}"

/* Field by field: there is room between them. */
static void same_shape(const hn_synth_shape *s, const char *preset)
{
    const hn_synth_shape *p = hn_synth_preset(preset, NULL);
    const size_t first = offsetof(hn_synth_shape, rank_decay);
    assert_string_equal(s->arch, p->arch);
    assert_memory_equal(&s->n_layer, &p->n_layer, offsetof(hn_synth_shape, tied) - offsetof(hn_synth_shape, n_layer));
    assert_int_equal(s->tied, p->tied);
    assert_true(s->rope_factor == p->rope_factor && !s->keys && !s->has);
    assert_memory_equal(&s->rank_decay, &p->rank_decay, offsetof(hn_synth_shape, n_cut) - first);
}

static void test_json(void **state)
{
    hn_synth_shape s;
    shape(&s, ODD7);
    assert_int_equal(s.n_head, 2);
    check_plan(&s, &(sizes){ 16, 36, 300, 8, 3, 5, 7, 1, 0 }, "F32", HN_F32, HN_F32);
    shape(&s, ODD6);
    check_plan(&s, &(sizes){ 24, 40, 16, 8, 5, 0, 0, 0, 3 }, "F16", HN_F16, HN_F16);
    /* What is left out: the ranks of the published models of these widths. */
    shape(&s, "{\"n_embd\":2560,\"arch\":\"rwkv7\",\"n_layer\":32,\"n_vocab\":65536}");
    same_shape(&s, "rwkv7-2.9b");
    shape(&s, "{\"arch\":\"rwkv7\",\"n_embd\":768,\"n_layer\":12,\"n_vocab\":65536}");
    same_shape(&s, "rwkv7-0.1b");
    shape(&s, "{\"arch\":\"rwkv6\",\"n_embd\":2048,\"n_layer\":24,\"n_vocab\":65536,\"rescale_every\":6}");
    same_shape(&s, "rwkv6-1.6b");
    shape(&s, "{\"arch\":\"rwkv6\",\"n_embd\":4096,\"n_layer\":32,\"n_vocab\":65536,\"norm_eps\":1e-6}");
    assert_int_equal(s.rank_mix, 64);
    assert_int_equal(s.rank_decay, 128);
    assert_int_equal(s.n_ff, 14336);
    assert_true(s.rms_eps == 1e-6f);
}

static void test_json_errors(void **state)
{
    static const struct {
        const char *json, *says;
    } bad[] = {
        { "{\"arch\":\"rwkv5\"}", "arch is \"rwkv5\"" },
        { "{\"arch\":\"rwkv7\",\"n_layer\":2,\"n_embd\":64}", "n_vocab is missing" },
        { "{\"arch\":\"rwkv7\",\"n_layer\":2,\"n_embd\":96,\"n_vocab\":300}", "head_dim is 64" },
        { "{\"arch\":\"rwkv7\",\"n_layer\":2,\"n_embd\":128,\"n_head\":3,\"n_vocab\":300}", "n_head is 3" },
        { "{\"arch\":\"rwkv7\",\"n_layer\":2,\"n_embd\":128,\"rank_mix\":3,\"n_vocab\":300}",
          "field rank_mix has no meaning" },
        { "{\"arch\":\"rwkv7\",\"rescale_every\":3}", "field rescale_every has no meaning" },
        { "{\"arch\":\"rwkv6\",\"rank_gate\":3}", "field rank_gate has no meaning" },
        { "{\"arch\":\"rwkv6\",\"rope_base\":3}", "field rope_base has no meaning" },
        { "{\"rms_eps\":1e-5,\"arch\":\"rwkv6\"}", "field rms_eps has no meaning" },
        { "{\"arch\":\"llama\",\"norm_eps\":1e-5}", "field norm_eps has no meaning" },
        { "{\"arch\":\"qwen3\",\"rank_decay\":4}", "field rank_decay has no meaning" },
        { "{\"arch\":\"rwkv7\",\"n_head_kv\":2}", "field n_head_kv has no meaning" },
        { "{\"arch\":\"rwkv7\",\"rank_decay\":0}", "rank_decay is 0" },
        { "{\"arch\":\"rwkv7\",\"rank_gate\":\"32\"}", "rank_gate is a string" },
        { "{\"arch\":\"rwkv7\",\"tied\":true}", "tied is true" },
        { "{\"arch\":\"rwkv6\",\"rescale_every\":-1}", "rescale_every is -1" },
        { "{\"arch\":\"rwkv7\",\"head_dim\":1}", "head_dim is 1" },
        { "{\"arch\":\"rwkv7\",\"rank\":1}", "unknown field \"rank\"" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hn_synth_shape s;
        hone_error err = { 0 };
        assert_int_equal(read_json(&s, bad[i].json, &err), HONE_E_ARG);
        if (!strstr(err.message, bad[i].says) || !strstr(err.message, path_json))
            fail_msg("%s\ngave: %s\nexpected to mention: %s", bad[i].json, err.message, bad[i].says);
    }
}

/* ---- files ------------------------------------------------------------------------------------ */

static hn_gguf *file(const char *json, const char *type)
{
    hone_error err = { 0 };
    hn_gguf *g;
    hn_synth_shape s;
    shape(&s, json);
    if (hone_synth(&(hone_synth_params){ .config_path = path_json, .type = type, .seed = 4, .n_threads = 2 }, path_gguf,
                   NULL, &err) != HONE_OK)
        fail_msg("%s", err.message);
    if (hn_gguf_open(&g, path_gguf, &err) != HONE_OK) fail_msg("%s", err.message);
    return g;
}

static void check_u32(const hn_gguf *g, const char *key, uint32_t want)
{
    uint32_t v = 0;
    bool found = false;
    hone_error err = { 0 };
    if (hn_gguf_get_u32(g, key, &v, &found, &err) != HONE_OK || !found)
        fail_msg("%s: %s", key, found ? err.message : "absent");
    if (v != want) fail_msg("%s is %u, expected %u", key, v, want);
}

static void test_keys(void **state)
{
    hn_gguf *g = file(ODD7, "F32");
    static const struct {
        const char *key;
        uint32_t v;
    } k7[] = {
        { "rwkv7.context_length", 1048576 },
        { "rwkv7.embedding_length", 16 },
        { "rwkv7.block_count", 2 },
        { "rwkv7.wkv.head_size", 8 },
        { "rwkv7.attention.decay_lora_rank", 3 },
        { "rwkv7.attention.iclr_lora_rank", 5 },
        { "rwkv7.attention.value_residual_mix_lora_rank", 7 },
        { "rwkv7.attention.gate_lora_rank", 1 },
        { "rwkv7.feed_forward_length", 36 },
        { "rwkv7.attention.head_count", 0 },
        { "tokenizer.ggml.bos_token_id", 0 },
        { "tokenizer.ggml.eos_token_id", 0 },
        { "tokenizer.ggml.eot_token_id", 261 },
    };
    for (size_t i = 0; i < sizeof k7 / sizeof *k7; i++) check_u32(g, k7[i].key, k7[i].v);
    assert_int_equal(hn_gguf_find(g, "rwkv7.rescale_every_n_layers"), -1);
    assert_int_equal(hn_gguf_find(g, "rwkv7.attention.head_count_kv"), -1);
    assert_true(hn_gguf_find(g, "rwkv7.attention.layer_norm_epsilon") >= 0);
    for (int i = 0; i < 3; i++) { /* layer 0's value pair repeats the learning rate's */
        char a[40], v[40];
        snprintf(a, sizeof a, "blk.0.time_mix_a%d.weight", i);
        snprintf(v, sizeof v, "blk.0.time_mix_v%d.weight", i);
        const hn_gguf_tensor *x = hn_gguf_find_tensor(g, a), *y = hn_gguf_find_tensor(g, v);
        assert_true(x && y && x->n_bytes == y->n_bytes);
        assert_memory_equal(x->data, y->data, x->n_bytes);
        snprintf(a, sizeof a, "blk.1.time_mix_a%d.weight", i);
        assert_memory_not_equal(hn_gguf_find_tensor(g, a)->data, x->data, 16);
    }
    hn_gguf_close(g);
    g = file(ODD6, "F16");
    static const struct {
        const char *key;
        uint32_t v;
    } k6[] = {
        { "rwkv6.embedding_length", 24 },    { "rwkv6.wkv.head_size", 8 },          { "rwkv6.time_mix_extra_dim", 3 },
        { "rwkv6.time_decay_extra_dim", 5 }, { "rwkv6.rescale_every_n_layers", 2 }, { "rwkv6.feed_forward_length", 40 },
        { "rwkv6.attention.head_count", 0 },
    };
    for (size_t i = 0; i < sizeof k6 / sizeof *k6; i++) check_u32(g, k6[i].key, k6[i].v);
    assert_int_equal(hn_gguf_find(g, "tokenizer.ggml.model"), -1); /* 16 tokens cannot hold the bytes */
    hn_gguf_close(g);
}

/* Every mixture: finite values, and the spread that was asked for whatever the type. */
static void test_every_type(void **state)
{
    static const char *const types[] = { "F32",  "F16",  "BF16", "Q8_0",   "Q6_K",    "Q5_K_M", "Q4_K_M",   "Q3_K_L",
                                         "Q2_K", "Q4_0", "Q5_1", "IQ4_XS", "IQ2_XXS", "TQ2_0",  "MXFP4_MOE" };
    static const char *const json = "{\"arch\":\"rwkv%d\",\"n_layer\":1,\"n_embd\":256,\"n_vocab\":300}";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char text[128];
        snprintf(text, sizeof text, json, 6 + (int)(i % 2));
        hn_gguf *g = file(text, types[i]);
        hone_error err = { 0 };
        if (hn_gguf_check_data(g, &err) != HONE_OK) fail_msg("%s: %s", types[i], err.message);
        const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "blk.0.time_mix_key.weight");
        float y[256];
        double sum = 0;
        assert_non_null(t);
        const hn_type_info *ti = hn_type_get(t->type);
        for (uint64_t r = 0; r < 256; r++) {
            ti->dequantize(y, t->data + r * hn_row_bytes(ti, 256), 256);
            for (int k = 0; k < 256; k++) sum += (double)y[k] * (double)y[k];
        }
        double rms = sqrt(sum / 65536) * 16; /* 1/sqrt(256) was asked for */
        if (fabs(rms - 1) > 0.06) fail_msg("%s: rms %g of what was asked for", types[i], rms);
        hn_gguf_close(g);
    }
}

static void check_encode(const hn_vocab *v, const char *text, size_t len, const int32_t *want, size_t n)
{
    hn_ids ids = { 0 };
    hone_error err = { 0 };
    if (hn_vocab_encode(v, text, len, 0, &ids, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(ids.n, n);
    assert_memory_equal(ids.data, want, n * sizeof *want);
    free(ids.data);
}

static void test_world_vocabulary(void **state)
{
    hn_gguf *g = file("{\"arch\":\"rwkv7\",\"n_layer\":1,\"n_embd\":64,\"n_vocab\":65536,\"n_ff\":64}", "Q4_0");
    hn_vocab *v;
    hone_error err = { 0 };
    if (hn_vocab_new(&v, g, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_non_null(v);
    assert_int_equal(hn_vocab_get_kind(v), HN_VOCAB_RWKV);
    assert_int_equal(hn_vocab_size(v), 65536);
    assert_int_equal(hn_vocab_eos(v), 0);
    assert_int_equal(hn_vocab_eot(v), 261);
    assert_false(hn_vocab_add_bos(v));
    char byte[256];
    for (int b = 0; b < 256; b++) { /* every byte is its own token, also those that are escaped */
        byte[b] = (char)b;
        check_encode(v, &byte[b], 1, &(int32_t){ b + 1 }, 1);
        size_t len = 0;
        const char *piece = hn_vocab_piece(v, b + 1, false, &len);
        assert_int_equal(len, 1);
        assert_int_equal((unsigned char)piece[0], b);
    }
    check_encode(v, "\n\n", 2, &(int32_t){ 261 }, 1);
    check_encode(v, "\t\t\r\n \\'", 7, (int32_t[]){ 257, 263, 33, 93, 40 }, 5);
    check_encode(v, "ba ba", 5, (int32_t[]){ 264, 265 }, 2);
    /* Ordinary tokens are distinct: each encodes to itself. */
    for (int32_t id = 1; id < 65530; id += 97) {
        size_t len = 0;
        const char *piece = hn_vocab_piece(v, id, false, &len);
        char text[32];
        assert_true(len > 0 && len < sizeof text);
        memcpy(text, piece, len);
        check_encode(v, text, len, &id, 1);
    }
    hn_vocab_free(v);
    hn_gguf_close(g);
}

/* ---- the state --------------------------------------------------------------------------------- */

static uint64_t seed = 9;
static double noise(void) /* about normal */
{
    double s = -6;
    for (int i = 0; i < 12; i++) s += (double)(hn_rand64(7, seed++) >> 11) * 0x1p-53;
    return s;
}

/* One head of RWKV-7 in double with a file's own decays and rates, inputs at random: S neither fades
 * nor grows, whatever the length. (The whole model does the same through the engine elsewhere.) */
static void test_state_lives(void **state)
{
    enum { N = 32, T = 12000 };
    static double s[N][N];
    hn_gguf *g = file("{\"arch\":\"rwkv7\",\"n_layer\":1,\"n_embd\":32,\"head_dim\":32,\"n_vocab\":300}", "F32");
    const hn_gguf_tensor *t[4];
    static const char *const names[4] = { "w0", "a0", "k_k", "k_a" };
    float par[4][N];
    double at[3] = { 0 };
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.0.time_mix_%s.weight", names[i]);
        assert_non_null(t[i] = hn_gguf_find_tensor(g, name));
        memcpy(par[i], t[i]->data, sizeof par[i]);
    }
    for (int step = 1; step <= T; step++) {
        double k[N], v[N], kk[N], a[N], w[N], norm = 0;
        for (int j = 0; j < N; j++) {
            k[j] = noise(), v[j] = noise();
            w[j] = exp(-0.606531 / (1 + exp(-(double)par[0][j] - 0.3 * noise())));
            a[j] = 1 / (1 + exp(-(double)par[1][j] - 0.5 * noise()));
            kk[j] = k[j] * (double)par[2][j];
            norm += kk[j] * kk[j];
            k[j] *= 1 + (a[j] - 1) * (double)par[3][j];
        }
        for (int j = 0; j < N; j++) kk[j] /= sqrt(norm);
        for (int i = 0; i < N; i++) {
            double z = 0;
            for (int j = 0; j < N; j++) z -= s[i][j] * kk[j];
            for (int j = 0; j < N; j++) s[i][j] = s[i][j] * w[j] + v[i] * k[j] + z * kk[j] * a[j];
        }
        int which = step == 100 ? 0 : step == 3000 ? 1 : step == T ? 2 : -1;
        if (which < 0) continue;
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) at[which] += s[i][j] * s[i][j] / (N * N);
        at[which] = sqrt(at[which]);
    }
    hn_gguf_close(g);
    if (!(at[0] > 0.3 && at[0] < 6 && at[1] > 0.3 && at[1] < 6 && at[2] > 0.5 * at[1] && at[2] < 2 * at[1]))
        fail_msg("rms of S is %g, %g, %g after 100, 3000, %d tokens", at[0], at[1], at[2], (int)T);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_of_presets), cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_errors),        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_every_type),         cmocka_unit_test(test_world_vocabulary),
        cmocka_unit_test(test_state_lives),
    };
    return cmocka_run_group_tests(tests, make_paths, remove_paths);
}
