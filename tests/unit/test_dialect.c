/* Files that say the same in other words, as ollama's registry has them: each is a published vector under those names,
 * and gives the bits that the vector gives under llama.cpp's (which test_families.c compares with its logits). Names
 * and what is left out: ollama/ollama, convert/ and llama/compat/; nothing of hone. */
#include "engine/engine.h"
#include "family_vectors.h"
#include "gguf/identity.h"
#include "model/lora_modules.h"

#include <math.h>

enum { PAGE = 64, MAX_EDIT = 12 };

/* ---- files ------------------------------------------------------------------------------------------ */

/* What is done to a key: goes (to NULL), or is called so; with a number, it has that value. */
typedef struct edit {
    const char *key, *to;
    double value;
    const char *type; /* NULL: as it was */
} edit;

typedef struct dialect {
    const char *vector, *arch; /* arch: in place of its own; NULL: that */
    edit edits[MAX_EDIT];
    const char *const (*tensors)[2];
    const char *beside; /* a tensor that is not of the text model, or NULL */
} dialect;

static json_t *find_key(const vector *v, const char *key, size_t *at)
{
    json_t *kv = json_object_get(v->j, "kv");
    for (*at = 0; *at < json_array_size(kv); ++*at)
        if (!strcmp(json_string_value(json_array_get(json_array_get(kv, *at), 0)), key)) return json_array_get(kv, *at);
    return NULL;
}

static void set_key(const vector *v, const char *key, const char *type, json_t *value)
{
    json_array_append_new(json_object_get(v->j, "kv"), json_pack("[s,s,o]", key, type, value));
}

static void do_edit(const vector *v, const char *arch, const edit *e)
{
    char key[128], to[128];
    size_t at;
    snprintf(key, sizeof key, "%s.%s", arch, e->key);
    json_t *kv = find_key(v, key, &at);
    if (!kv && !e->type) fail_msg("%s: has no key %s", v->name, key);
    if (!e->to) {
        json_array_remove(json_object_get(v->j, "kv"), at);
        return;
    }
    if (!kv) {
        set_key(v, key, e->type, !strcmp(e->type, "BOOL") ? json_boolean(e->value != 0) : json_real(e->value));
        return;
    }
    snprintf(to, sizeof to, "%s.%s", arch, e->to);
    json_array_set_new(kv, 0, json_string(to));
    if (e->type) json_array_set_new(kv, 1, json_string(e->type));
    if (e->type) json_array_set_new(kv, 2, json_integer((json_int_t)e->value));
}

/* Every key under another architecture. */
static void call_arch(const vector *v, const char *from, const char *to)
{
    char key[128];
    size_t i;
    json_t *kv, *list = json_object_get(v->j, "kv");
    json_array_foreach(list, i, kv)
    {
        const char *k = json_string_value(json_array_get(kv, 0));
        if (!strcmp(k, "general.architecture")) json_array_set_new(kv, 2, json_string(to));
        if (!starts(k, from) || k[strlen(from)] != '.') continue;
        snprintf(key, sizeof key, "%s%s", to, k + strlen(from));
        json_array_set_new(kv, 0, json_string(key));
    }
}

/* A list of words, of which the last may repeat. */
static json_t *words(const char *first, int n)
{
    json_t *list = json_array();
    char own[32];
    for (int i = 0; i < n; i++) {
        snprintf(own, sizeof own, "%s%d", first, i);
        json_array_append_new(list, json_string(own));
    }
    return list;
}

static hone_model *open_at(const char *path)
{
    hone_model *m;
    hone_error err = { 0 };
    if (hone_model_open(&m, path, NULL, &err)) fail_msg("%s", err.message);
    return m;
}

static void logits_of(const vector *v, const char *path, float *y)
{
    hone_model *m = open_at(path);
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, m, PAGE, 1, v->n, HONE_CACHE_F32);
    tm_run(s, 0, v->tok, v->n, y);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
}

/* ---- families ----------------------------------------------------------------------------------------- */

static const char *const gptoss_names[][2] = {
    { "attn_output.weight", "attn_out.weight" },
    { "attn_output.bias", "attn_out.bias" },
    { "attn_sinks.weight", "attn_sinks" },
    { "post_attention_norm.weight", "ffn_norm.weight" },
    { NULL, NULL },
};
static const char *const ssm_names[][2] = { { "ssm_dt.bias", "ssm_dt" }, { NULL, NULL } };
static const char *const lfm2_names[][2] = { { "token_embd_norm.weight", "output_norm.weight" }, { NULL, NULL } };
static const char *const latent_names[][2] = { { "ffn_latent_down.weight", "ffn_latent_in.weight" },
                                               { "ffn_latent_up.weight", "ffn_latent_out.weight" },
                                               { NULL, NULL } };
static const char *const gemma4_names[][2] = { { "ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale" },
                                               { NULL, NULL } };

static const char *const pangu_names[][2] = { { "post_attention_norm.weight", "ffn_norm.weight" }, { NULL, NULL } };
static const char *const hy_names[][2] = { { "exp_probs_b.bias", "exp_probs_b" }, { NULL, NULL } };
static const char *const tied_names[][2] = { { "token_embd.weight", "output.weight" }, { NULL, NULL } };
static const char *const falcon_names[][2] = { { "attn_norm.weight", "attn_norm_2.weight" },
                                               { "attn_norm.bias", "attn_norm_2.bias" },
                                               { "ffn_norm.weight", "attn_norm.weight" },
                                               { "ffn_norm.bias", "attn_norm.bias" },
                                               { NULL, NULL } };

static const dialect dialects[] = {
    { "gptoss",
      "gptoss",
      { { .key = "rope.scaling.type" }, { .key = "expert_feed_forward_length" } },
      gptoss_names,
      NULL },
    { "olmo3", "olmo3", { { 0 } }, NULL, NULL },
    { "glm47flash",
      "glm4moelite",
      { { "attention.key_length", "attention.key_length", 12, "UINT32" },
        { "attention.value_length", "attention.value_length", 12, "UINT32" },
        { "attention.key_length_mla", "attention.key_length_mla", 20, "UINT32" },
        { "attention.value_length_mla", "attention.value_length_mla", 16, "UINT32" },
        { "attention.head_count_kv", "attention.head_count_kv", 2, "UINT32" } },
      NULL,
      NULL },
    /* 4B and more: no epsilon, no bases, no scaling */
    { "gemma3",
      NULL,
      { { .key = "attention.layer_norm_rms_epsilon" },
        { .key = "rope.freq_base" },
        { .key = "rope.freq_base_swa" },
        { .key = "rope.scaling.type" },
        { .key = "rope.scaling.factor" },
        { "context_length", "context_length", 131072, "UINT32" },
        { "mm.tokens_per_image", "mm.tokens_per_image", 256, "UINT32" },
        { "vision.block_count", "vision.block_count", 27, "UINT32" } },
      NULL,
      "v.patch_embedding.weight" },
    /* 1B: bases under names of their own */
    { "gemma3",
      NULL,
      { { .key = "rope.freq_base", .to = "rope.global.freq_base" },
        { .key = "rope.freq_base_swa", .to = "rope.local.freq_base" } },
      NULL,
      NULL },
    { "ministral3",
      NULL,
      { { .key = "rope.scaling.yarn_beta_fast", .to = "rope.scaling.beta_fast" },
        { .key = "rope.scaling.yarn_beta_slow", .to = "rope.scaling.beta_slow" },
        { .key = "rope.scaling.yarn_log_multiplier", .to = "rope.scaling.mscale_all_dim" },
        { .key = "attention.temperature_scale", .to = "rope.scaling_beta" },
        { "rope.scaling.mscale", "rope.scaling.mscale", 1, "FLOAT32" },
        { "mm.projector_bias", "mm.projector_bias", 0, "BOOL" } },
      NULL,
      "mm.merging_layer.weight" },
    { "qwen3next", NULL, { { 0 } }, ssm_names, NULL },
    { "qwen35", NULL, { { "rope.mrope_interleaved", "x", 1, "BOOL" } }, ssm_names, "v.blk.0.attn_qkv.weight" },
    { "qwen35moe", NULL, { { "ssm.v_head_reordered", "x", 1, "BOOL" } }, ssm_names, "mtp.fc.weight" },
    { "lfm2", NULL, { { "feed_forward_length", "feed_forward_length", 72, "UINT32" } }, lfm2_names, NULL },
    { "lfm2moe", NULL, { { "feed_forward_length", "feed_forward_length", 72, "UINT32" } }, lfm2_names, NULL },
    { "gemma4moe", NULL, { { 0 } }, gemma4_names, "a.conv1d.0.weight" },
    { "llama4", NULL, { { "use_qk_norm", "x", 1, "BOOL" } }, NULL, "mm.linear_1.weight" },
    { "nemotronh", "nemotron_h_omni", { { "vision.patch_size", "x", 16, "UINT32" } }, NULL, "a.blk.0.ln1.weight" },
    { "nemotronhmoe", "nemotron_h_omni", { { 0 } }, NULL, "v.position_embd.weight" },
    { "nemotronsuper", NULL, { { .key = "moe_latent_size" } }, latent_names, "mtp.layers.0.norm.weight" },
    { "nemotronsuper", "nemotron_h_omni", { { .key = "moe_latent_size" } }, latent_names, NULL },
    /* models that see, of llama.cpp's own converter: their text is that of the model without eyes */
    { "qwen3moe", "qwen3vlmoe", { { "n_deepstack_layers", "x", 3, "UINT32" } }, NULL, NULL },
    /* other makers' names of a formula that is there */
    { "mistral", "internlm2", { { 0 } }, NULL, NULL },
    { "mistral", "xverse", { { 0 } }, NULL, NULL },
    { "granite", "minicpm", { { "rope.scaling.finetuned", "x", 0, "BOOL" } }, NULL, NULL },
    { "starcoder2", "codeshell", { { 0 } }, NULL, NULL },
    { "starcoder2", "codeshell", { { 0 } }, tied_names, NULL },
    { "seedoss", "pangu-embedded", { { 0 } }, pangu_names, NULL },
    { "nemotron", "jais2", { { 0 } }, NULL, NULL },
    { "deepseek", "bailingmoe", { { 0 } }, NULL, NULL },
    { "bailingmoe2", "hy_v3", { { .key = "leading_dense_block_count" } }, hy_names, NULL },
    { "phi2", "falcon", { { 0 } }, NULL, NULL },
    { "gptneox", "falcon", { { .key = "use_parallel_residual" } }, falcon_names, NULL },
};

static void *bytes_of(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    void *p = malloc(*n);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, *n, f), *n);
    fclose(f);
    return p;
}

/* A file is known by what is in it, not by how it is read. */
static void check_identity(const char *name, const char *path)
{
    hn_identity id[2];
    hone_error err = { 0 };
    size_t n;
    void *p = bytes_of(path, &n);
    for (int k = 0; k < 2; k++) {
        hn_gguf *g;
        assert_int_equal(hn_gguf_parse(&g, p, n, name, &err), HONE_OK);
        if (k && hn_dialect(g, &err)) fail_msg("%s", err.message);
        if (hn_identity_of(g, &id[k], NULL, NULL, &err)) fail_msg("%s", err.message);
        hn_gguf_close(g);
    }
    if (memcmp(&id[0].content, &id[1].content, sizeof id[0].content)) fail_msg("%s: another identity", name);
    free(p);
}

static void write_dialect(vector *v, const dialect *d, const char *path)
{
    const char *arch = json_string_value(json_object_get(v->j, "arch"));
    for (int i = 0; i < MAX_EDIT && d->edits[i].key; i++) do_edit(v, arch, &d->edits[i]);
    if (d->arch) call_arch(v, arch, d->arch);
    if (d->beside)
        json_array_append_new(json_object_get(v->j, "tensors"),
                              json_pack("[s,[i,i],[f,f,f,f]]", d->beside, 2, 2, 1.0, 2.0, 3.0, 4.0));
    v->called = d->tensors;
    save_without(v, path, NULL);
}

static void other_words_give_the_same_bits(void **state)
{
    (void)state;
    float y[2][MAX_TOK * MAX_VOCAB];
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.json", dialects[i].vector);
        vector v = load(file);
        save_without(&v, tm_path("plain.gguf"), NULL);
        logits_of(&v, tm_path("plain.gguf"), y[0]);
        write_dialect(&v, &dialects[i], tm_path("said.gguf"));
        logits_of(&v, tm_path("said.gguf"), y[1]);
        if (memcmp(y[0], y[1], (size_t)(v.n * v.n_vocab) * sizeof **y))
            fail_msg("%s: other bits than under its own names", v.name);
        check_identity(v.name, tm_path("said.gguf"));
        json_decref(v.j);
    }
}

/* A tensor under both names, a key that says otherwise: told, not guessed. */
static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const struct {
        dialect d;
        const char *says;
    } wrong[] = {
        { { "gptoss", "gptoss", { { 0 } }, gptoss_names, "attn_sinks.weight" }, NULL },
        { { "llama4", NULL, { { "use_qk_norm", "x", 0, "BOOL" } }, NULL, NULL }, "llama4.use_qk_norm = false" },
        { { "ministral3",
            NULL,
            { { .key = "rope.scaling.yarn_log_multiplier", .to = "rope.scaling.mscale_all_dim" },
              { "rope.scaling.mscale", "x", 2, "FLOAT32" } },
            NULL,
            NULL },
          "mistral3.rope.scaling.mscale = 2" },
        { { "gptoss", "gptoss", { { 0 } }, NULL, "blk.0.attn_sinks" }, "blk.0.attn_sinks.weight is there under two" },
        { { "gemma3", NULL, { { 0 } }, NULL, "vision.weight" }, "tensor vision.weight is not part" },
        { { "mistral", "baichuan", { { 0 } }, NULL, NULL }, "baichuan.block_count = 2, expected 32" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_model *m;
        hone_error err = { 0 };
        char file[64];
        snprintf(file, sizeof file, "%s.json", wrong[i].d.vector);
        vector v = load(file);
        write_dialect(&v, &wrong[i].d, tm_path("said.gguf"));
        assert_int_not_equal(hone_model_open(&m, tm_path("said.gguf"), NULL, &err), HONE_OK);
        assert_null(m);
        if (wrong[i].says && !strstr(err.message, wrong[i].says)) fail_msg("%s: says %s", v.name, err.message);
        json_decref(v.j);
    }
}

/* MiniCPM's first files have no scalars: 12, 1.4/√layers and a 256th of the width are meant. */
static void minicpm_means_scalars(void **state)
{
    (void)state;
    static const char *const scalars[] = { "embedding_scale", "residual_scale", "logit_scale", "attention.scale" };
    float y[2][MAX_TOK * MAX_VOCAB];
    for (int k = 0; k < 2; k++) {
        char key[64];
        size_t at;
        vector v = load("granite.json");
        const double width = (double)number_of(&v, "embedding_length"),
                     values[] = { 12, 1.4 / sqrt((double)number_of(&v, "block_count")), width / 256 };
        for (int i = 0; i < 4; i++) {
            snprintf(key, sizeof key, "granite.%s", scalars[i]);
            if (find_key(&v, key, &at)) json_array_remove(json_object_get(v.j, "kv"), at);
            if (!k && i < 3) set_key(&v, key, "FLOAT32", json_real(values[i]));
        }
        if (k) call_arch(&v, "granite", "minicpm");
        save_without(&v, tm_path("said.gguf"), NULL);
        logits_of(&v, tm_path("said.gguf"), y[k]);
        if (k) assert_memory_equal(y[0], y[1], (size_t)(v.n * v.n_vocab) * sizeof **y);
        json_decref(v.j);
    }
}

/* As many layers as that, those behind the first like it but for their numbers. */
static void deepen(vector *v, int n_layer)
{
    json_t *ts = json_object_get(v->j, "tensors");
    const size_t n = json_array_size(ts);
    for (int il = (int)number_of(v, "block_count"); il < n_layer; il++)
        for (size_t i = 0; i < n; i++) {
            char name[96];
            const char *of = json_string_value(json_array_get(json_array_get(ts, i), 0));
            if (!starts(of, "blk.0.")) continue;
            json_t *t = json_deep_copy(json_array_get(ts, i));
            snprintf(name, sizeof name, "blk.%d.%s", il, of + strlen("blk.0."));
            json_array_set_new(t, 0, json_string(name));
            json_array_append_new(ts, t);
        }
}

/* Baichuan of 13B, which has 40 layers, is a refact: scores fade, and nothing turns. */
static void baichuan_that_fades(void **state)
{
    (void)state;
    float y[3][MAX_TOK * MAX_VOCAB];
    vector v = load("mistral.json");
    hone_model *m;
    size_t at;
    deepen(&v, 40);
    find_key(&v, "llama.block_count", &at);
    json_array_remove(json_object_get(v.j, "kv"), at);
    set_key(&v, "llama.block_count", "UINT32", json_integer(40));
    save_without(&v, tm_path("said.gguf"), NULL);
    logits_of(&v, tm_path("said.gguf"), y[0]);
    call_arch(&v, "llama", "baichuan");
    save_without(&v, tm_path("said.gguf"), NULL);
    logits_of(&v, tm_path("said.gguf"), y[1]);
    assert_int_equal(hone_model_open(&m, tm_path("said.gguf"), NULL, NULL), HONE_OK);
    assert_non_null(strstr(hn_modules_refused(m), "another order")); /* of rows, as in files of 7B: no PEFT folders */
    hone_model_close(m);
    call_arch(&v, "baichuan", "refact");
    save_without(&v, tm_path("said.gguf"), NULL);
    logits_of(&v, tm_path("said.gguf"), y[2]);
    assert_memory_equal(y[1], y[2], (size_t)(v.n * v.n_vocab) * sizeof **y);
    assert_memory_not_equal(y[0], y[1], (size_t)(v.n * v.n_vocab) * sizeof **y);
    json_decref(v.j);
}

/* Baichuan of 7B, which has 32 layers, is a llama; the layout of Falcon's rows is said by a word. */
static void baichuan_and_falcon(void **state)
{
    (void)state;
    float y[2][MAX_TOK * MAX_VOCAB];
    vector v = load("mistral.json");
    size_t at;
    deepen(&v, 32);
    find_key(&v, "llama.block_count", &at);
    json_array_remove(json_object_get(v.j, "kv"), at);
    set_key(&v, "llama.block_count", "UINT32", json_integer(32));
    for (int k = 0; k < 2; k++) {
        if (k) call_arch(&v, "llama", "baichuan");
        save_without(&v, tm_path("said.gguf"), NULL);
        logits_of(&v, tm_path("said.gguf"), y[k]);
    }
    assert_memory_equal(y[0], y[1], (size_t)(v.n * v.n_vocab) * sizeof **y);
    json_decref(v.j);
    v = load("phi2.json");
    call_arch(&v, "phi2", "falcon");
    for (int k = 0; k < 2; k++) {
        hone_model *m;
        hone_error err = { 0 };
        set_key(&v, "falcon.tensor_data_layout", "STRING", json_string(k ? "other" : "jploski"));
        save_without(&v, tm_path("said.gguf"), NULL);
        assert_int_equal(hone_model_open(&m, tm_path("said.gguf"), NULL, &err), k ? HONE_E_UNSUPPORTED : HONE_OK);
        if (k) assert_non_null(strstr(err.message, "tensor_data_layout = \"other\""));
        hone_model_close(m);
        find_key(&v, "falcon.tensor_data_layout", &at);
        json_array_remove(json_object_get(v.j, "kv"), at);
    }
    json_decref(v.j);
}

/* Orion's converter says that rows are as Meta has them, and does not turn them; what else it says is refused. */
static void orion_says_a_layout(void **state)
{
    (void)state;
    static const char *const said[] = { NULL, "Meta AI original pth", "other" };
    float y[2][MAX_TOK * MAX_VOCAB];
    vector v = load("orion.json");
    size_t at;
    for (int k = 0; k < 3; k++) {
        hone_model *m;
        hone_error err = { 0 };
        if (find_key(&v, "orion.tensor_data_layout", &at)) json_array_remove(json_object_get(v.j, "kv"), at);
        if (said[k]) set_key(&v, "orion.tensor_data_layout", "STRING", json_string(said[k]));
        save_without(&v, tm_path("said.gguf"), NULL);
        assert_int_equal(hone_model_open(&m, tm_path("said.gguf"), NULL, &err), k < 2 ? HONE_OK : HONE_E_UNSUPPORTED);
        if (k == 2) assert_non_null(strstr(err.message, "tensor_data_layout = \"other\""));
        hone_model_close(m);
        if (k < 2) logits_of(&v, tm_path("said.gguf"), y[k]);
    }
    assert_memory_equal(y[0], y[1], (size_t)(v.n * v.n_vocab) * sizeof **y);
    json_decref(v.j);
}

/* DeepSeek-OCR is glm4moe with heads that turn whole and a softmax, neither of which its files say. */
static void deepseek_that_reads(void **state)
{
    (void)state;
    static const char *const keys[] = { "glm4moe.rope.dimension_count", "glm4moe.expert_gating_func",
                                        "glm4moe.expert_weights_norm" };
    static const dialect d = { "glm4moe", "deepseek2-ocr", { { 0 } }, pangu_names, NULL };
    float y[2][MAX_TOK * MAX_VOCAB];
    vector v = load("glm4moe.json");
    size_t at;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 3; i++)
            if (find_key(&v, keys[i], &at)) json_array_remove(json_object_get(v.j, "kv"), at);
        if (k) set_key(&v, keys[0], "UINT32", json_integer(0));
        else set_key(&v, keys[1], "UINT32", json_integer(1));
        if (!k) set_key(&v, keys[2], "BOOL", json_false());
        if (k) write_dialect(&v, &d, tm_path("said.gguf"));
        else save_without(&v, tm_path("said.gguf"), NULL);
        logits_of(&v, tm_path("said.gguf"), y[k]);
    }
    assert_memory_equal(y[0], y[1], (size_t)(v.n * v.n_vocab) * sizeof **y);
    json_decref(v.j);
}

/* PaddleOCR's text is Qwen2's, with biases or without. Bamba, of which half a head turns, has rows of whole ones. */
static void paddle_and_bamba(void **state)
{
    (void)state;
    enum { N = 6, VOCAB = 16 };
    static const int32_t tok[N] = { 3, 1, 4, 1, 5, 9 };
    float y[2][N * VOCAB];
    for (int k = 0; k < 2; k++) {
        tm_shape shape = tm_qwen2;
        shape.arch = k ? "paddleocr" : "qwen2";
        tiny *t = tm_new(shape);
        if (k) tm_put_u32s(t, "paddleocr.rope.dimension_sections", 4, 0);
        tm_save_raw(t, tm_path("said.gguf"));
        hone_model *m = open_at(tm_path("said.gguf"));
        hone_context *c = tm_context(NULL, 1);
        hone_session *s = tm_session(c, m, PAGE, 1, N, HONE_CACHE_F32);
        tm_run(s, 0, tok, N, y[k]);
        hone_session_free(s);
        hone_context_free(c);
        hone_model_close(m);
        tm_free(t);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    vector v = load("granitehybrid.json");
    static const char *const keys[] = { "granitehybrid.rope.scaling.finetuned", "granitehybrid.rope.dimension_count" };
    for (int k = 0; k < 2; k++) { /* not turning says nothing of rows */
        hone_model *m = NULL;
        hone_error err = { 0 };
        size_t at;
        for (int i = 0; i < 2; i++)
            if (find_key(&v, keys[i], &at)) json_array_remove(json_object_get(v.j, "kv"), at);
        set_key(&v, keys[0], "BOOL", json_true());
        set_key(&v, keys[1], "UINT32", json_integer(k ? 4 : 8));
        save_without(&v, tm_path("said.gguf"), NULL);
        assert_int_equal(hone_model_open(&m, tm_path("said.gguf"), NULL, &err), k ? HONE_E_UNSUPPORTED : HONE_OK);
        if (k) assert_non_null(strstr(err.message, "heads are of 8 (Bamba)"));
        hone_model_close(m);
    }
    json_decref(v.j);
}

/* Qwen's first width is that of gate and up together. */
static void qwen_has_half_the_width(void **state)
{
    (void)state;
    enum { N = 6, VOCAB = 16, FF = 48 };
    static const int32_t tok[N] = { 3, 1, 4, 1, 5, 9 };
    float y[2][N * VOCAB];
    for (int k = 0; k < 2; k++) {
        tm_shape shape = tm_qwen2;
        shape.arch = k ? "qwen" : "qwen2";
        tiny *t = tm_new(shape);
        if (k) tm_put_u32(t, "qwen.feed_forward_length", 2 * FF);
        tm_save_raw(t, tm_path("said.gguf"));
        hone_model *m = open_at(tm_path("said.gguf"));
        hone_context *c = tm_context(NULL, 1);
        hone_session *s = tm_session(c, m, PAGE, 1, N, HONE_CACHE_F32);
        tm_run(s, 0, tok, N, y[k]);
        hone_session_free(s);
        hone_context_free(c);
        hone_model_close(m);
        tm_free(t);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    hone_error err = { 0 };
    hone_model *m;
    tm_shape shape = tm_qwen2;
    shape.arch = "qwen";
    tiny *t = tm_new(shape);
    tm_drop_kv(t, "qwen.feed_forward_length");
    tm_save_raw(t, tm_path("said.gguf"));
    assert_int_equal(hone_model_open(&m, tm_path("said.gguf"), NULL, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "feed_forward_length is missing"));
    tm_free(t);
}

static void expect_str(const hn_gguf *g, const char *key, const char *want)
{
    hone_str s = { "", 0 };
    assert_int_equal(hn_gguf_get_str(g, key, &s, NULL, NULL), HONE_OK);
    if (s.len != strlen(want) || memcmp(s.ptr, want, s.len)) fail_msg("%s is %.*s", key, (int)s.len, s.ptr);
}

/* An adapter calls what it adapts as the file of its base does. */
static void adapters_have_the_names_of_their_base(void **state)
{
    (void)state;
    static const char *const names[][2] = { { "blk.0.attn_out.weight", "blk.0.attn_output.weight" },
                                            { "blk.0.attn_q.weight", "blk.0.attn_q.weight" } };
    vector v = load("gptoss.json");
    write_dialect(&v, &dialects[0], tm_path("said.gguf"));
    hone_model *m = open_at(tm_path("said.gguf"));
    for (int i = 0; i < 2; i++) {
        hone_error err = { 0 };
        hn_lora *l;
        const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, names[i][1]);
        assert_non_null(t);
        hn_lora_pair p = { .name = (char *)(uintptr_t)names[i][0], .rank = 1, .scale = 1 };
        p.n_in = (int64_t)t->ne[0], p.n_out = (int64_t)t->ne[1];
        p.a = calloc((size_t)p.n_in, sizeof *p.a), p.b = calloc((size_t)p.n_out, sizeof *p.b);
        assert_true(p.a && p.b);
        const hn_lora_about about = { .name = "a", .arch = "gptoss", .alpha = 1, .type = HN_F32 };
        assert_int_equal(hn_lora_write_gguf(tm_path("a.gguf"), &p, 1, &about, &err), HONE_OK);
        if (hn_lora_open(&l, m, tm_path("a.gguf"), &err)) fail_msg("%s", err.message);
        assert_string_equal(l->pair[0].name, names[i][1]);
        hn_lora_close(l);
        char half[64];
        hn_gguf *g;
        const hn_lora_about own = { .name = "a", .arch = m->filed_arch, .base = m->file, .alpha = 1, .type = HN_F32 };
        p.name = (char *)(uintptr_t)names[i][1]; /* as m has it: written as its file does */
        assert_int_equal(hn_lora_write_gguf(tm_path("a.gguf"), &p, 1, &own, &err), HONE_OK);
        assert_int_equal(hn_gguf_open(&g, tm_path("a.gguf"), &err), HONE_OK);
        snprintf(half, sizeof half, "%s.lora_a", names[i][0]);
        assert_non_null(hn_gguf_find_tensor(g, half));
        expect_str(g, "general.architecture", "gptoss");
        hn_gguf_close(g);
        const hn_lora_about old = { .name = "a", .arch = m->arch->name, .alpha = 1, .type = HN_F32 };
        assert_int_equal(hn_lora_write_gguf(tm_path("a.gguf"), &p, 1, &old, &err), HONE_OK); /* as hone wrote them */
        if (hn_lora_open(&l, m, tm_path("a.gguf"), &err)) fail_msg("%s", err.message);
        assert_string_equal(l->pair[0].name, names[i][1]);
        hn_lora_close(l);
        free(p.a), free(p.b);
    }
    hone_model_close(m);
    json_decref(v.j);
}

/* An adapter of m's first matrix of a layer that is one here, which changes nothing, called as the file does. */
static void save_idle_adapter(const hone_model *m, const char *path)
{
    hone_error err = { 0 };
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        char name[HN_GGUF_MAX_NAME + 1];
        hn_lora *l = NULL;
        if (m->bound[i] != HN_BOUND_MATRIX || !starts(t->name.ptr, "blk.")) continue;
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        hn_lora_pair p = { .name = name, .rank = 1, .scale = 1, .n_in = (int64_t)t->ne[0], .n_out = (int64_t)t->ne[1] };
        p.a = calloc((size_t)p.n_in, sizeof *p.a), p.b = calloc((size_t)p.n_out, sizeof *p.b);
        assert_true(p.a && p.b);
        const hn_lora_about about = { .name = "a", .arch = m->filed_arch, .base = m->file, .alpha = 1, .type = HN_F32 };
        assert_int_equal(hn_lora_write_gguf(path, &p, 1, &about, &err), HONE_OK);
        free(p.a), free(p.b);
        if (hn_lora_open(&l, m, path, &err) != HONE_OK) continue;
        assert_string_equal(l->arch, m->filed_arch);
        hn_lora_close(l);
        return;
    }
    fail_msg("%s: no matrix to adapt", m->path);
}

/* Modules of Ling are not those of DeepSeek, whose formula it has; Falcon has its own; Nemotron with eyes and ears fits
 * no list here. */
static void modules_of_other_names(void **state)
{
    (void)state;
    static const struct {
        const char *vector, *arch, *tensor, *module; /* module NULL: refused by the name of the file */
    } list[] = {
        { "deepseek", "bailingmoe", "blk.1.attn_k.weight", "model.layers.1.attention.query_key_value" },
        { "deepseek", "bailingmoe", "blk.0.attn_output.weight", "model.layers.0.attention.dense" },
        { "deepseek", "deepseek", "blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj" },
        { "qwen3moe", "qwen3vlmoe", "blk.1.attn_q.weight", "model.language_model.layers.1.self_attn.q_proj" },
        { "phi2", "falcon", "blk.0.attn_output.weight", "transformer.h.0.self_attention.dense" },
        { "nemotronh", "nemotron_h_omni", "blk.0.ssm_in.weight", NULL },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char file[64], module[HN_MAX_PART][HN_LORA_NAME];
        hn_lora_place at, to[HN_MAX_PART];
        snprintf(file, sizeof file, "%s.json", list[i].vector);
        vector v = load(file);
        call_arch(&v, json_string_value(json_object_get(v.j, "arch")), list[i].arch);
        save_without(&v, tm_path("said.gguf"), NULL);
        hone_model *m = open_at(tm_path("said.gguf"));
        assert_int_equal(hn_modules_unwritten(m) != NULL, !list[i].module);
        assert_null(hn_modules_refused(m));
        assert_true(hn_module_tensor(&at, m, list[i].tensor));
        assert_true(hn_modules_of(module, to, m, &at) >= 1);
        if (list[i].module) assert_string_equal(module[0], list[i].module);
        hone_model_close(m);
        json_decref(v.j);
    }
}

/* What is merged has the keys and names of its base, whoever reads them: where nothing is added, byte for byte. */
static void check_merged(const char *name, const char *path)
{
    const char *adapter = tm_path("a.gguf"), *out = tm_path("merged.gguf");
    const hone_merge_params p = { .base = path, .adapters = &adapter, .n_adapters = 1 };
    hone_model *m = open_at(path);
    hone_error err = { 0 };
    size_t n[2];
    save_idle_adapter(m, adapter);
    hone_model_close(m);
    if (hone_merge(&p, out, NULL, &err)) fail_msg("%s: %s", name, err.message);
    unsigned char *a = bytes_of(path, &n[0]), *b = bytes_of(out, &n[1]);
    if (n[0] != n[1] || memcmp(a, b, n[0]) != 0) fail_msg("%s: merged, the file has other words or numbers", name);
    free(a), free(b);
}

static void merged_files_have_the_words_of_their_base(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.json", dialects[i].vector);
        vector v = load(file);
        write_dialect(&v, &dialects[i], tm_path("said.gguf"));
        check_merged(v.name, tm_path("said.gguf"));
        json_decref(v.j);
    }
}

/* ---- tables of tokens ------------------------------------------------------------------------------------ */

static json_t *numbers(int n, int value)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(value));
    return list;
}

/* Gemma 3n's embedding and tokens go on where the second table ends; bytes are not typed so. */
static void rows_behind_the_text_are_cut(void **state)
{
    (void)state;
    enum { ROWS = 16, MORE = 18 };
    float y[2][MAX_TOK * MAX_VOCAB];
    size_t i;
    json_t *t;
    vector v = load("gemma3n.json");
    save_without(&v, tm_path("plain.gguf"), NULL);
    logits_of(&v, tm_path("plain.gguf"), y[0]);
    json_array_foreach(json_object_get(v.j, "tensors"), i,
                       t) if (!strcmp(json_string_value(json_array_get(t, 0)), "token_embd.weight"))
        json_array_set_new(json_array_get(t, 1), 1, json_integer(MORE));
    json_t *tokens = words("t", MORE);
    json_array_set_new(tokens, 0, json_string("<unk>"));
    json_array_set_new(tokens, 3, json_string("<0x41>"));
    json_array_set_new(tokens, 4, json_string("<unused7>"));
    set_key(&v, "tokenizer.ggml.model", "STRING", json_string("gemma"));
    set_key(&v, "tokenizer.ggml.tokens", "ARRAY:STRING", tokens);
    set_key(&v, "tokenizer.ggml.token_type", "ARRAY:INT32", numbers(MORE, 3));
    set_key(&v, "tokenizer.ggml.scores", "ARRAY:FLOAT32", numbers(MORE, -1));
    save_without(&v, tm_path("said.gguf"), NULL);
    logits_of(&v, tm_path("said.gguf"), y[1]);
    assert_memory_equal(y[0], y[1], (size_t)(v.n * v.n_vocab) * sizeof **y);

    check_identity(v.name, tm_path("said.gguf"));
    check_merged(v.name, tm_path("said.gguf"));
    hn_gguf *g;
    hn_gguf_array a;
    uint32_t type;
    hone_str model;
    hone_error err = { 0 };
    assert_int_equal(hn_model_file_open(&g, tm_path("said.gguf"), &err), HONE_OK);
    assert_int_equal(hn_gguf_get_str(g, "tokenizer.ggml.model", &model, NULL, &err), HONE_OK);
    assert_int_equal(model.len, 5);
    assert_memory_equal(model.ptr, "llama", 5);
    for (const char *const *key = (const char *const[]){ "tokens", "scores", "token_type", NULL }; *key; key++) {
        char name[64];
        snprintf(name, sizeof name, "tokenizer.ggml.%s", *key);
        assert_int_equal(hn_gguf_get_array(g, name, &a, NULL, &err), HONE_OK);
        assert_int_equal(a.count, ROWS);
    }
    for (int k = 0; k < ROWS; k++) { /* a: the types */
        memcpy(&type, a.data + 4 * k, 4);
        assert_int_equal(type, k == 3 ? 6 : k == 4 ? 1 : 3);
    }
    hn_gguf_close(g);
    json_decref(v.j);
}

static hn_gguf *said(bb *b)
{
    hn_gguf *g;
    hone_error err = { 0 };
    if (hn_gguf_parse(&g, b->p, b->n, "said", &err) || hn_dialect(g, &err)) fail_msg("%s", err.message);
    return g;
}

/* Only its tokens tell the first files of Llama 3. */
static void llama3_without_pre_is_known_by_its_tokens(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) { /* none, "default", another, another vocabulary */
        static const char *const want[] = { "llama-bpe", "llama-bpe", "qwen2", "" };
        bb b = bb_head(3, 0, 3 + (how == 1 || how == 2));
        bb_kv_str(&b, "general.architecture", "llama");
        bb_kv_str(&b, "tokenizer.ggml.model", "gpt2");
        if (how == 1) bb_kv_str(&b, "tokenizer.ggml.pre", "default");
        if (how == 2) bb_kv_str(&b, "tokenizer.ggml.pre", "qwen2");
        bb_kv_array(&b, "tokenizer.ggml.tokens", 8, 128010);
        for (int i = 0; i < 128010; i++)
            bb_str(&b, i == 128006 ? "<|start_header_id|>" : i == 128009 && how != 3 ? "<|eot_id|>" : "x");
        hn_gguf *g = said(&b);
        if (*want[how]) expect_str(g, "tokenizer.ggml.pre", want[how]);
        else assert_true(hn_gguf_find(g, "tokenizer.ggml.pre") < 0);
        hn_gguf_close(g);
        bb_free(&b);
    }
}

static void tokenizers_are_called_by_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *arch, *model, *pre, *tensor, *key, *want;
    } all[] = {
        { "gptoss", "gpt2", "default", "x", "tokenizer.ggml.pre", "gpt-4o" },
        { "glm4moelite", "gpt2", "glm", "x", "tokenizer.ggml.pre", "glm4" },
        { "lfm2", "gpt2", "default", "output_norm.weight", "tokenizer.ggml.pre", "lfm2" },
        { "lfm2moe", "gpt2", "default", "output_norm.weight", "tokenizer.ggml.pre", "lfm2" },
        { "mistral3", "gpt2", "default", "x", "tokenizer.ggml.pre", "tekken" },
        { "mistral3", "gpt2", "llama-bpe", "x", "tokenizer.ggml.pre", "llama-bpe" },
        { "gemma4", "llama", "gemma4", "x", "tokenizer.ggml.model", "gemma4" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bb b = bb_head(3, 1, 4);
        bb_kv_str(&b, "general.architecture", all[i].arch);
        bb_kv_str(&b, "tokenizer.ggml.model", all[i].model);
        bb_kv_str(&b, "tokenizer.ggml.pre", all[i].pre);
        bb_kv_array(&b, "tokenizer.ggml.merges", 8, 0);
        bb_tensor(&b, all[i].tensor, 1, (uint64_t[4]){ 8, 1, 1, 1 }, 0, 0);
        bb_pad(&b, 32);
        bb_raw(&b, (float[8]){ 0 }, 32);
        hn_gguf *g = said(&b);
        expect_str(g, all[i].key, all[i].want);
        hn_gguf_close(g);
        bb_free(&b);
    }
}

/* One letter of base64 in each element: "AQID/w==" is 1, 2, 3, 255. */
static void a_map_in_letters_becomes_bytes(void **state)
{
    (void)state;
    for (int bad = 0; bad < 3; bad++) {
        static const char *const letters[] = { "A", "Q", "I", "D", "/", "w", "=", "=" };
        hn_gguf *g;
        hn_gguf_array a;
        hone_error err = { 0 };
        bb b = bb_head(3, 0, 2);
        bb_kv_str(&b, "general.architecture", "bert");
        bb_kv_array(&b, "tokenizer.ggml.precompiled_charsmap", 8, 8);
        for (int i = 0; i < 8; i++) bb_str(&b, bad && i == 2 ? (bad == 1 ? "!" : "AB") : letters[i]);
        assert_int_equal(hn_gguf_parse(&g, b.p, b.n, "said", &err), HONE_OK);
        if (bad) {
            assert_int_equal(hn_dialect(g, &err), HONE_E_FORMAT);
            assert_non_null(strstr(err.message, "precompiled_charsmap[2]"));
        } else {
            assert_int_equal(hn_dialect(g, &err), HONE_OK);
            assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.precompiled_charsmap", &a, NULL, &err), HONE_OK);
            assert_int_equal(a.elem_type, HONE_KV_U8);
            assert_int_equal(a.count, 4);
            assert_memory_equal(a.data, "\1\2\3\xFF", 4);
        }
        hn_gguf_close(g);
        bb_free(&b);
    }
}

/* A new model made of what was said otherwise (hn_gguf_put_all) needs no dialect. */
static void copies_speak_plainly(void **state)
{
    (void)state;
    hn_gguf *g, *copy;
    hn_gguf_writer *w;
    void *bytes = NULL;
    size_t n = 0;
    uint32_t u;
    hone_error err = { 0 };
    bb b = bb_head(3, 0, 3);
    bb_kv_str(&b, "general.architecture", "gptoss");
    bb_kv_u32(&b, "gptoss.block_count", 7);
    bb_kv_str(&b, "tokenizer.ggml.model", "gpt2");
    g = said(&b);
    assert_int_equal(hn_gguf_writer_new(&w, &err), HONE_OK);
    if (hn_gguf_put_all(w, g, NULL, &err) || hn_gguf_write_keys(w, &bytes, &n, &err)) fail_msg("%s", err.message);
    assert_int_equal(hn_gguf_parse(&copy, bytes, n, "copy", &err), HONE_OK);
    assert_int_equal(hn_gguf_n_kv(copy), hn_gguf_n_kv(g));
    expect_str(copy, "general.architecture", "gpt-oss");
    expect_str(copy, "gpt-oss.rope.scaling.type", "yarn");
    expect_str(copy, "tokenizer.ggml.pre", "gpt-4o");
    assert_int_equal(hn_gguf_get_u32(copy, "gpt-oss.block_count", &u, NULL, &err), HONE_OK);
    assert_int_equal(u, 7);
    for (uint64_t i = 0; i < hn_gguf_n_kv(g); i++) {
        hone_str one = hn_gguf_kv_raw(g, i), other = hn_gguf_kv_raw(copy, i);
        assert_int_equal(one.len, other.len);
        assert_memory_equal(one.ptr, other.ptr, one.len);
    }
    hn_gguf_writer_free(w);
    hn_gguf_close(copy);
    hn_gguf_close(g);
    free(bytes);
    bb_free(&b);
}

/* ---- embeddings ---------------------------------------------------------------------------------------------- */

static void embedding_gemma_under_gemma3(void **state)
{
    (void)state;
    static const char *const names[][2] = { { "dense_2.weight", "dense.0.weight" },
                                            { "dense_3.weight", "dense.1.weight" },
                                            { "output_norm.weight", "norm.weight" },
                                            { NULL, NULL } };
    static const dialect d = { "gemma",
                               "gemma3",
                               { { .key = "pooling_type" },
                                 { .key = "dense_2_feat_in" },
                                 { .key = "dense_2_feat_out" },
                                 { .key = "dense_3_feat_in" },
                                 { .key = "dense_3_feat_out" },
                                 { .key = "rope.freq_base" },
                                 { .key = "attention.layer_norm_rms_epsilon" },
                                 { "attention.causal", "x", 0, "BOOL" } },
                               names,
                               NULL };
    float y[2][64];
    json_error_t e;
    hone_error err = { 0 };
    vector v = { .j = json_load_file("tests/golden/embeddings/gemma.json", 0, &e), .name = "gemma" };
    if (!v.j) fail_msg("%s", e.text);
    save_without(&v, tm_path("plain.gguf"), NULL);
    write_dialect(&v, &d, tm_path("said.gguf"));
    for (int k = 0; k < 2; k++) {
        hone_model *m = open_at(tm_path(k ? "said.gguf" : "plain.gguf"));
        hone_context *c = tm_context(NULL, 1);
        hone_session *s = tm_session(c, m, PAGE, 1, PAGE, HONE_CACHE_F32);
        const int32_t ids[] = { 3, 1, 4, 1, 5, 9, 2, 6 };
        const hone_text_ids one = { ids, 8 };
        const hone_embed_params p = { .pooling = HONE_POOL_FILE };
        assert_int_equal(hone_embed_width(m, HONE_POOL_FILE, NULL), 24);
        if (hone_embed(s, &one, 1, &p, y[k], &err)) fail_msg("%s", err.message);
        hone_session_free(s);
        hone_context_free(c);
        hone_model_close(m);
    }
    assert_memory_equal(y[0], y[1], 24 * sizeof **y);
    check_merged(v.name, tm_path("said.gguf"));
    json_decref(v.j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_words_give_the_same_bits),
        cmocka_unit_test(minicpm_means_scalars),
        cmocka_unit_test(baichuan_and_falcon),
        cmocka_unit_test(baichuan_that_fades),
        cmocka_unit_test(orion_says_a_layout),
        cmocka_unit_test(paddle_and_bamba),
        cmocka_unit_test(deepseek_that_reads),
        cmocka_unit_test(qwen_has_half_the_width),
        cmocka_unit_test(adapters_have_the_names_of_their_base),
        cmocka_unit_test(modules_of_other_names),
        cmocka_unit_test(merged_files_have_the_words_of_their_base),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(rows_behind_the_text_are_cut),
        cmocka_unit_test(llama3_without_pre_is_known_by_its_tokens),
        cmocka_unit_test(tokenizers_are_called_by_their_names),
        cmocka_unit_test(a_map_in_letters_becomes_bytes),
        cmocka_unit_test(copies_speak_plainly),
        cmocka_unit_test(embedding_gemma_under_gemma3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
