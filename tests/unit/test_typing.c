/* Types of a file's tensors: what a name makes of each, in whatever order the file has them, also where layers are not
 * alike, blocks draft, or only a part is written anew. What is expected is what llama.cpp's llama_model_quantize chose
 * for the same keys and tensors (tests/dev/check_types.py). */
#include "forge/synth.h"
#include "forge/trained.h"
#include "forge/typing.h"
#include "model/lora.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static const char *in(const char *file)
{
    static char path[5][128];
    static int i;
    snprintf(path[i %= 5], sizeof path[0], "%s/%s", folder, file);
    return path[i++];
}

static hn_typed named(const char *name, const uint64_t *ne)
{
    return (hn_typed){ { name, strlen(name) }, ne, 2, HN_Q5_0 };
}

static void test_names(void **state)
{
    const hn_mix_model mix = { .arch = "llama", .n_layer = 2, .n_head = 2, .n_head_kv = 2 };
    const uint64_t ne[4] = { 256, 64, 1, 1 };
    hone_error err = { 0 };
    hn_typing y;
    assert_int_equal(hn_typing_begin(&y, "Q9", "; expected better", &err), HONE_E_ARG);
    assert_string_equal(err.message, "unknown type \"Q9\"; expected better");
    static const struct {
        const char *name;
        hn_type q, out, embd; /* embd: without an output */
    } rows[] = { { NULL, HN_Q5_0, HN_Q5_0, HN_Q5_0 },
                 { "bf16", HN_BF16, HN_BF16, HN_BF16 },
                 { "Q4_K_M", HN_Q4_K, HN_Q6_K, HN_Q6_K } };
    for (size_t i = 0; i < 3; i++) {
        hn_typed t[] = { named("blk.0.attn_q.weight", ne), named("token_embd.weight", ne), named("output.weight", ne) };
        assert_int_equal(hn_typing_begin(&y, rows[i].name, "", &err), HONE_OK);
        assert_int_equal(hn_typing_of(&y, &mix, t, 3, &err), HONE_OK);
        assert_int_equal(t[0].type, rows[i].q);
        assert_int_equal(t[1].type, i == 2 ? HN_Q4_K : rows[i].embd);
        assert_int_equal(t[2].type, rows[i].out);
        assert_int_equal(hn_typing_of(&y, &mix, t, 2, &err), HONE_OK);
        assert_int_equal(t[1].type, rows[i].embd);
    }
    assert_int_equal(hn_typing_check(&y, "w", HN_Q4_K, 256, &err), HONE_OK);
    assert_int_equal(hn_typing_check(&y, "w", HN_Q4_K, 255, &err), HONE_E_ARG);
    assert_string_equal(err.message, "w: rows of 255 elements do not fit type Q4_K");
    assert_int_equal(hn_typing_check(&y, "w", HN_IQ2_XS, 256, &err), HONE_E_UNSUPPORTED);
    uint64_t count[HN_TYPE_COUNT] = { [HN_F32] = 5, [HN_Q8_0] = 9, [HN_F16] = 8 };
    assert_int_equal(hn_file_type_of(count), 7);
}

/* Of a preset in a mixture: the layers in which that tensor has that type, "2 5 "; il -1: "-". */
static void has(const char *preset, const char *mixture, const char *tensor, const char *type, const char *layers)
{
    const char *name;
    const hn_synth_shape *s = hn_synth_preset(preset, &name);
    hn_synth_plan *p;
    hone_error err = { 0 };
    char got[512] = "", of[64];
    assert_non_null(s);
    if (hn_synth_plan_new(&p, s, mixture, &err) != HONE_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < p->n; i++) {
        int il = -1;
        const char *rest = p->t[i].name;
        if (sscanf(rest, "blk.%d.", &il) == 1) rest = strchr(rest + 4, '.') + 1;
        if (strcmp(rest, tensor) || p->t[i].type != (hn_type)hn_type_by_name(type)) continue;
        snprintf(of, sizeof of, il < 0 ? "- " : "%d ", il);
        strcat(got, of);
    }
    hn_synth_plan_free(p);
    if (strcmp(got, layers)) fail_msg("%s %s: %s is %s in %s, expected %s", preset, mixture, tensor, type, got, layers);
}

static void test_layers(void **state)
{
    /* layers without values do not count */
    has("lfm2-1.2b", "Q4_K_M", "attn_v.weight", "Q6_K", "8 14 ");
    has("granite-4.0-h-tiny", "Q4_K_M", "attn_v.weight", "Q6_K", "25 35 ");
    has("gemma-4-e2b", "Q4_K_M", "attn_v.weight", "Q6_K", "0 3 6 9 12 13 14 ");
    /* the first layer has no heads of keys */
    has("lfm2-1.2b", "Q2_K", "attn_v.weight", "Q3_K", "2 5 8 10 12 14 ");
    has("kimi-linear-48b-a3b", "IQ4_XS", "attn_v.weight", "Q5_K", "");
    /* no output: the embedding is it */
    has("embeddinggemma-300m", "Q4_K_M", "token_embd.weight", "Q6_K", "- ");
    has("llama-3-8b", "Q4_K_M", "token_embd.weight", "Q4_K", "- ");
}

/* A block that drafts is one of those that are counted, and the order of the file is no matter. */
static void test_order(void **state)
{
    enum { LAYERS = 9, N = LAYERS * 2 + 1 };
    static const uint64_t ne[4] = { 256, 256, 1, 1 };
    char name[N][64];
    hn_typed t[2][N];
    hone_error err = { 0 };
    hn_typing y;
    for (int i = 0; i < N; i++) {
        snprintf(name[i], sizeof name[i], i / 2 < LAYERS ? "blk.%d.%s" : "output.weight", i / 2,
                 i % 2 ? "attn_v.weight" : "ffn_down.weight");
        t[0][i] = t[1][N - 1 - i] = named(name[i], ne);
    }
    const hn_mix_model mix = { .arch = "llama", .n_layer = LAYERS, .n_head = 4, .n_head_kv = 4 };
    for (int k = 0; k < 2; k++) {
        assert_int_equal(hn_typing_begin(&y, "Q4_K_M", "", &err), HONE_OK);
        assert_int_equal(hn_typing_of(&y, &mix, t[k], N, &err), HONE_OK);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(t[0][i].type, t[1][N - 1 - i].type);
        const int il = i / 2;
        bool most = il == LAYERS || il == 0 || il == 3 || il == 6 || il >= 7;
        assert_int_equal(t[0][i].type, most ? HN_Q6_K : HN_Q4_K);
    }
}

/* ---- files ------------------------------------------------------------------------------------------------ */

/* Four layers of a llama. Mixtral's rules hold for eight experts. */
static const char *llama(bool experts)
{
    const char *path = in("base.gguf"), *json = in("base.json");
    hone_error err = { 0 };
    FILE *f = fopen(json, "w");
    assert_non_null(f);
    fprintf(f,
            "{\"arch\":\"llama\",\"n_layer\":4,\"n_vocab\":300,\"tied\":false,\"keys\":{\"context_length\":64,"
            "\"embedding_length\":64,\"feed_forward_length\":64,\"attention.head_count\":2,"
            "\"attention.head_count_kv\":2,\"rope.dimension_count\":32,\"rope.freq_base\":10000.0,\"vocab_size\":300,"
            "\"attention.layer_norm_rms_epsilon\":1e-5%s}}",
            experts ? ",\"expert_count\":8,\"expert_used_count\":2,\"expert_feed_forward_length\":64" : "");
    fclose(f);
    const hone_synth_params p = { .config_path = json, .type = "F32", .n_threads = 1 };
    if (hone_synth(&p, path, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    unlink(json);
    return path;
}

static void is_type(const char *path, const char *name, hn_type type)
{
    hn_gguf *g;
    hone_error err = { 0 };
    if (hn_gguf_open(&g, path, &err) != HONE_OK) fail_msg("%s", err.message);
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
    assert_non_null(t);
    if (t->type != type) fail_msg("%s is %s", name, hn_type_get(t->type)->name);
    hn_gguf_close(g);
}

static void test_merged(void **state)
{
    const char *base = llama(true), *adapter = in("a.gguf"), *out = in("out.gguf");
    char name[] = "blk.1.attn_v.weight";
    float a[64] = { 1 }, b[64] = { 1 };
    hone_error err = { 0 };
    hn_lora_pair pair = { .name = name, .n_in = 64, .n_out = 64, .rank = 1, .scale = 1, .a = a, .b = b };
    const hn_lora_about about = { .arch = "llama", .alpha = 1, .type = HN_F32 };
    if (hn_lora_write_gguf(adapter, &pair, 1, &about, &err)) fail_msg("%s", err.message);
    const hone_merge_params p = { .base = base, .adapters = &adapter, .n_adapters = 1, .type = "Q4_K_M" };
    if (hone_merge(&p, out, NULL, &err)) fail_msg("%s", err.message);
    is_type(out, name, HN_Q8_0); /* of another model it were Q5_0, for Q4_K */
    is_type(out, "blk.0.attn_v.weight", HN_F32);
    unlink(base), unlink(adapter), unlink(out);
}

/* Trained parts alone get another type, that which they have in a whole file. */
static void test_trained(void **state)
{
    static const struct {
        bool experts;
        const char *name;
    } rows[] = { { true, "blk.1.attn_v.weight" }, { false, "blk.3.ffn_down.weight" } };
    static float w[64 * 64];
    for (size_t i = 0; i < 2; i++) {
        const char *base = llama(rows[i].experts), *out = in("out.gguf");
        hone_error err = { 0 };
        hone_model *m;
        if (hone_model_open(&m, base, NULL, &err)) fail_msg("%s", err.message);
        const hn_trained_tensor t[] = { { rows[i].name, w, 64, 64 }, { "blk.3.attn_q.weight", w, 64, 64 } };
        const hn_trained p = { .tensor = t, .n_tensor = 2, .type = "Q4_K_M", .n_threads = 1 };
        if (hn_write_trained(out, m, &p, &err)) fail_msg("%s", err.message);
        is_type(out, rows[i].name, HN_Q8_0); /* 64 elements: for Q6_K, in the last layer, or by the experts */
        is_type(out, "blk.3.attn_q.weight", HN_Q5_0);
        is_type(out, "blk.2.attn_v.weight", HN_F32);
        hone_model_close(m);
        unlink(base), unlink(out);
    }
}

/* ---- templates ---------------------------------------------------------------------------------------------- */

/* The same file with templates of conversations by several names. */
static const char *talking(const char *from)
{
    static const hone_str names[] = { { "rag", 3 } };
    const char *to = in("talking.gguf");
    hone_error err;
    hn_gguf *g;
    hn_gguf_writer *w;
    assert_int_equal(hn_gguf_open(&g, from, &err), HONE_OK);
    assert_int_equal(hn_gguf_writer_new(&w, &err), HONE_OK);
    assert_int_equal(hn_gguf_put_all(w, g, NULL, &err), HONE_OK);
    assert_int_equal(hn_gguf_put_str(w, "tokenizer.chat_template", "old", 3, &err), HONE_OK);
    assert_int_equal(hn_gguf_put_str(w, "tokenizer.chat_template.rag", "old rag", 7, &err), HONE_OK);
    assert_int_equal(hn_gguf_put_str_array(w, "tokenizer.chat_templates", names, 1, &err), HONE_OK);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        assert_int_equal(hn_gguf_put_tensor(w, name, t->type, t->ne, t->n_dim, &err), HONE_OK);
    }
    assert_int_equal(hn_gguf_write_begin(w, to, &err), HONE_OK);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
        assert_int_equal(hn_gguf_write_data(w, t->data, t->n_bytes, &err), HONE_OK);
    }
    assert_int_equal(hn_gguf_write_end(w, &err), HONE_OK);
    hn_gguf_writer_free(w);
    hn_gguf_close(g);
    return to;
}

/* Keys of templates, and what the usual one is. */
static void says(const char *path, const char *want, int n)
{
    hn_gguf *g;
    hone_error err;
    hone_str usual = { "", 0 };
    int n_found = 0;
    if (hn_gguf_open(&g, path, &err) != HONE_OK) fail_msg("%s", err.message);
    for (uint64_t i = 0; i < hn_gguf_n_kv(g); i++) {
        hone_kv kv;
        hn_gguf_kv(g, i, &kv);
        n_found += kv.key.len >= 23 && !memcmp(kv.key.ptr, "tokenizer.chat_template", 23);
    }
    assert_int_equal(hn_gguf_get_str(g, "tokenizer.chat_template", &usual, NULL, &err), HONE_OK);
    assert_true(usual.len == strlen(want) && !memcmp(usual.ptr, want, usual.len));
    assert_int_equal(n_found, n);
    hn_gguf_close(g);
}

/* Who brings a template replaces them all. */
static void test_templates(void **state)
{
    const char *first = llama(false), *base = talking(first), *adapter = in("a.gguf"), *out = in("out.gguf");
    char name[] = "blk.1.attn_v.weight";
    static float w[64 * 64];
    float a[64] = { 1 }, b[64] = { 1 };
    for (int own = 0; own < 2; own++) {
        hone_error err = { 0 };
        hone_model *m;
        const char *template = own ? "new" : NULL;
        hn_lora_pair pair = { .name = name, .n_in = 64, .n_out = 64, .rank = 1, .scale = 1, .a = a, .b = b };
        const hn_lora_about about = { .arch = "llama", .alpha = 1, .type = HN_F32, .chat_template = template };
        if (hn_lora_write_gguf(adapter, &pair, 1, &about, &err)) fail_msg("%s", err.message);
        const hone_merge_params p = { .base = base, .adapters = (const char *const[]){ adapter }, .n_adapters = 1 };
        if (hone_merge(&p, out, NULL, &err)) fail_msg("%s", err.message);
        says(out, own ? "new" : "old", own ? 1 : 3);
        if (hone_model_open(&m, base, NULL, &err)) fail_msg("%s", err.message);
        const hn_trained_tensor t = { name, w, 64, 64 };
        const hn_trained now = { .tensor = &t, .n_tensor = 1, .n_threads = 1, .chat_template = template };
        if (hn_write_trained(out, m, &now, &err)) fail_msg("%s", err.message);
        says(out, own ? "new" : "old", own ? 1 : 3);
        hone_model_close(m);
    }
    unlink(first), unlink(base), unlink(adapter), unlink(out);
}

static int begin(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/hone-typing-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}
static int end(void **state) { return rmdir(folder); }

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_names),   cmocka_unit_test(test_layers),
                                        cmocka_unit_test(test_order),   cmocka_unit_test(test_merged),
                                        cmocka_unit_test(test_trained), cmocka_unit_test(test_templates) };
    return cmocka_run_group_tests(tests, begin, end);
}
