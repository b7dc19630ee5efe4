/* Embeddings against what transformers makes of small models in float64 (tests/golden/embeddings), and the same bits
 * on every level, with any threads and chunks, alone and in company. Files are written byte by byte, by nothing of
 * hone. */
#include "engine/engine.h"
#include "family_vectors.h"
#include "model/lora.h"
#include "model/lora_modules.h"

#include <math.h>

enum { N_CTX = 192, N_TEXT = 2 };
static const char *const files[] = { "bert",      "bert_mean",   "xlmr_rank",   "nomic",         "gemma",
                                     "qwen3",     "qwen3_rank",  "jina_v2",     "jina_v2_fused", "jina_v3",
                                     "nomic_moe", "modern",      "modern_silu", "modern_rank",   "modern_rank_cls",
                                     "eurobert",  "llama_embed", NULL };

typedef struct texts {
    vector v;
    hone_model *m;
    int32_t ids[N_TEXT][N_CTX];
    hone_text_ids of[N_TEXT];
} texts;

static texts open_file(const char *name)
{
    char path[160];
    json_error_t e;
    hone_error err = { 0 };
    texts t = { 0 };
    snprintf(path, sizeof path, "tests/golden/embeddings/%s.json", name);
    t.v.j = json_load_file(path, 0, &e);
    if (!t.v.j) fail_msg("%s: %s", path, e.text);
    t.v.name = name;
    save_without(&t.v, tm_path("embed.gguf"), NULL);
    if (hone_model_open(&t.m, tm_path("embed.gguf"), NULL, &err)) fail_msg("%s: %s", name, err.message);
    return t;
}

/* One of its texts. */
static const json_t *text_of(const texts *t, int i)
{
    return json_array_get(json_object_get(t->v.j, "texts"), (size_t)i);
}

static void load_ids(texts *t)
{
    for (int i = 0; i < N_TEXT; i++) {
        const json_t *ids = json_object_get(text_of(t, i), "ids");
        for (size_t k = 0; k < json_array_size(ids); k++)
            t->ids[i][k] = (int32_t)json_integer_value(json_array_get(ids, k));
        t->of[i] = (hone_text_ids){ t->ids[i], (int32_t)json_array_size(ids) };
    }
}

static void close_file(texts *t)
{
    hone_model_close(t->m);
    json_decref(t->v.j);
}

/* The farthest number, over the range of what is expected. */
static double farthest(const json_t *want, const float *y)
{
    double most = 0, lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < json_array_size(want); i++) {
        double w = json_number_value(json_array_get(want, i));
        most = fmax(most, fabs((double)y[i] - w));
        lo = fmin(lo, w);
        hi = fmax(hi, w);
    }
    return most / (json_array_size(want) > 2 ? hi - lo : fmax(1, fabs(hi)));
}

static void near(const texts *t, const char *what, const json_t *want, const float *y, double *worst)
{
    double far = farthest(want, y);
    *worst = fmax(*worst, far);
    if (!(far <= 1e-5)) fail_msg("%s: %s: %.2g of the range away", t->v.name, what, far);
}

static void embed(hone_session *s, const hone_text_ids *of, int32_t n, hone_pooling pooling, bool plain, float *y)
{
    hone_error err = { 0 };
    const hone_embed_params p = { .pooling = pooling, .plain = plain };
    if (hone_embed(s, of, n, &p, y, &err)) fail_msg("%s", err.message);
}

static void check_values(const texts *t)
{
    static const struct {
        const char *name;
        hone_pooling pooling;
    } kinds[] = { { "mean", HONE_POOL_MEAN }, { "cls", HONE_POOL_CLS }, { "last", HONE_POOL_LAST } };
    float y[N_CTX * 32];
    double worst = 0;
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, t->m, N_CTX, 2, N_CTX, HONE_CACHE_F32);
    int32_t width = hone_embed_width(t->m, HONE_POOL_FILE, NULL);
    embed(s, t->of, N_TEXT, HONE_POOL_FILE, false, y);
    for (int i = 0; i < N_TEXT; i++) {
        const json_t *want = json_object_get(text_of(t, i), "embedding");
        assert_int_equal(json_array_size(want), width);
        near(t, "embedding", want, y + i * width, &worst);
    }
    for (size_t k = 0; k < 3; k++)
        for (int i = 0; i < N_TEXT; i++) {
            const json_t *want = json_object_get(json_object_get(text_of(t, i), "pooled"), kinds[k].name);
            if (!want) continue;
            embed(s, &t->of[i], 1, kinds[k].pooling, true, y);
            near(t, kinds[k].name, want, y, &worst);
        }
    const char *pos;
    json_t *row;
    embed(s, t->of, 1, HONE_POOL_NONE, false, y);
    json_object_foreach(json_object_get(text_of(t, 0), "rows"), pos, row)
        near(t, "a row", row, y + 32 * atoi(pos), &worst);
    printf("#  %-10s farthest %.1e of the range\n", t->v.name, worst);
    hone_session_free(s);
    hone_context_free(c);
}

static void check_bits(const texts *t, hone_kv_cache_type cache)
{
    float want[N_TEXT * 32 + 64], y[3 * 32 + 64];
    int32_t width = hone_embed_width(t->m, HONE_POOL_FILE, NULL);
    size_t bytes = (size_t)width * sizeof *y;
    hone_context *c = tm_context("scalar", 1);
    hone_session *s = tm_session(c, t->m, N_CTX, 1, N_CTX, cache);
    for (int i = 0; i < N_TEXT; i++) embed(s, &t->of[i], 1, HONE_POOL_FILE, false, want + i * width);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_info info;
    hone_model_get_info(t->m, &info);
    for (const char *const *cpu = tm_levels(); *cpu; cpu++)
        for (int32_t threads = cache == HONE_CACHE_F16 ? 1 : 3; threads <= 3; threads += 2)
            for (int32_t chunk = info.causal ? 7 : 150; chunk <= N_CTX; chunk += 93) {
                c = tm_context(*cpu, threads);
                s = tm_session(c, t->m, N_CTX, 1 + threads, chunk, cache);
                const hone_text_ids three[] = { t->of[0], t->of[1], t->of[0] };
                embed(s, three, 3, HONE_POOL_FILE, false, y);
                for (int i = 0; i < 3; i++)
                    if (memcmp(y + i * width, want + i % 2 * width, bytes))
                        fail_msg("%s: %s, %d threads, chunks of %d: other bits of text %d", t->v.name, *cpu, threads,
                                 chunk, i);
                for (int32_t q = 0; q <= threads; q++) assert_int_equal(hone_seq_length(s, q), 0);
                hone_session_free(s);
                hone_context_free(c);
            }
}

static void vectors_are_transformers(void **state)
{
    for (const char *const *name = files; *name; name++) {
        texts t = open_file(*name);
        load_ids(&t);
        check_values(&t);
        for (int cache = HONE_CACHE_F16; cache <= HONE_CACHE_Q8_0; cache++) check_bits(&t, (hone_kv_cache_type)cache);
        close_file(&t);
    }
}

static void fails(hone_status st, const hone_error *err, hone_status want, const char *word)
{
    assert_int_equal(st, want);
    if (!strstr(err->message, word)) fail_msg("\"%s\" says nothing of \"%s\"", err->message, word);
}

/* What cannot be done is told, and leaves the session as it was. */
static void refusals_are_told(void **state)
{
    texts t = open_file("bert");
    load_ids(&t);
    hone_error err = { 0 };
    const float *logits;
    float y[64];
    hone_embed_params p = { 0 };
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, t.m, N_CTX, 1, 20, HONE_CACHE_F16);
    fails(hone_append(s, 0, t.ids[0], 3, &logits, &err), &err, HONE_E_UNSUPPORTED, "hone_embed");
    fails(hone_run_batch(s, &(hone_token){ 1, 0, 0, false }, 1, NULL, &err), &err, HONE_E_UNSUPPORTED, "next token");
    fails(hone_embed(s, t.of, 2, &p, y, &err), &err, HONE_E_CTX, "--chunk");
    fails(hone_embed(s, &(hone_text_ids){ t.ids[0], 0 }, 1, &p, y, &err), &err, HONE_E_ARG, "at least 1");
    fails(hone_embed(s, &(hone_text_ids){ (int32_t[]){ 16 }, 1 }, 1, &p, y, &err), &err, HONE_E_ARG, "0 to 15");
    p.pooling = HONE_POOL_RANK;
    fails(hone_embed(s, t.of, 1, &p, y, &err), &err, HONE_E_UNSUPPORTED, "cls.output.weight");
    p.pooling = (hone_pooling)99;
    fails(hone_embed(s, t.of, 1, &p, y, &err), &err, HONE_E_ARG, "pooling 99");
    assert_int_equal(hone_embed_width(t.m, HONE_POOL_RANK, NULL), 0);
    assert_int_equal(hone_embed(s, t.of, 0, &(hone_embed_params){ 0 }, NULL, &err), HONE_OK);
    assert_int_equal(hone_embed(s, t.of, 1, &(hone_embed_params){ 0 }, y, &err), HONE_OK);
    hone_session_free(s);
    close_file(&t);
    /* a causal one whose only sequence is taken; beyond the context */
    t = open_file("qwen3");
    load_ids(&t);
    s = tm_session(c, t.m, 40, 1, 7, HONE_CACHE_F16);
    fails(hone_embed(s, t.of, 2, &(hone_embed_params){ 0 }, y, &err), &err, HONE_E_CTX, "context of 40");
    assert_int_equal(hone_append(s, 0, t.ids[0], 3, &logits, &err), HONE_OK);
    fails(hone_embed(s, t.of, 1, &(hone_embed_params){ 0 }, y, &err), &err, HONE_E_ARG, "empty");
    assert_int_equal(hone_seq_length(s, 0), 3);
    hone_session_free(s);
    hone_context_free(c);
    close_file(&t);
}

static void wrong_file(const char *name, const char *key, json_t *kv, json_t *tensor, const char *words)
{
    hone_model *m = NULL;
    hone_error err = { 0 };
    texts t = open_file(name);
    json_t *list = json_object_get(t.v.j, "kv");
    for (size_t i = json_array_size(list); key && i-- > 0;)
        if (!strcmp(json_string_value(json_array_get(json_array_get(list, i), 0)), key)) json_array_remove(list, i);
    if (kv) json_array_append_new(list, kv);
    if (tensor) json_array_append_new(json_object_get(t.v.j, "tensors"), tensor);
    save_without(&t.v, tm_path("wrong.gguf"), NULL);
    hone_status st = hone_model_open(&m, tm_path("wrong.gguf"), NULL, &err);
    if (st == HONE_OK || !strstr(err.message, words))
        fail_msg("%s: \"%s\" says nothing of %s", name, err.message, words);
    close_file(&t);
}

/* What asks for another formula than these families have is refused by name. */
static void other_formulas(void **state)
{
    static const char every[] = "nomic-bert-moe.moe_every_n_layers", act[] = "modern-bert.hidden_activation",
                      step[] = "nomic-bert-moe.interleave_moe_layer_step",
                      window[] = "modern-bert.attention.sliding_window";
    wrong_file("nomic_moe", every, json_pack("[ssi]", every, "UINT32", 3), NULL, "moe_every_n_layers = 3");
    wrong_file("nomic_moe", every, NULL, NULL, "moe_every_n_layers is missing");
    wrong_file("nomic_moe", NULL, json_pack("[ssi]", step, "UINT32", 2), NULL, "interleave_moe_layer_step = 2");
    wrong_file("modern", act, json_pack("[sss]", act, "STRING", "relu"), NULL, "hidden_activation = \"relu\"");
    wrong_file("modern", window, NULL, NULL, "sliding_window is missing");
    wrong_file("modern", NULL, NULL, json_pack("[s[i]ff]", "blk.0.attn_norm.weight", 32, 0.25, 1.0),
               "blk.0.attn_norm.weight");
    wrong_file("eurobert", "eurobert.attention.causal", json_pack("[ssb]", "eurobert.attention.causal", "BOOL", 1),
               NULL, "attention.causal");
}

/* Every other layer has experts: of one layer none, and no tensor says how wide they would be. */
static void one_layer_has_no_experts(void **state)
{
    static const char count[] = "nomic-bert-moe.block_count";
    float y[64];
    hone_error err = { 0 };
    texts t = open_file("nomic_moe");
    json_t *list = json_object_get(t.v.j, "kv"), *ts = json_object_get(t.v.j, "tensors");
    load_ids(&t);
    hone_model_close(t.m);
    for (size_t i = json_array_size(list); i-- > 0;)
        if (!strcmp(json_string_value(json_array_get(json_array_get(list, i), 0)), count)) json_array_remove(list, i);
    json_array_append_new(list, json_pack("[ssi]", count, "UINT32", 1));
    for (size_t i = json_array_size(ts); i-- > 0;) {
        const char *name = json_string_value(json_array_get(json_array_get(ts, i), 0));
        if (!strncmp(name, "blk.", 4) && name[4] != '0') json_array_remove(ts, i);
    }
    save_without(&t.v, tm_path("embed.gguf"), NULL);
    if (hone_model_open(&t.m, tm_path("embed.gguf"), NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(t.m->plan[0].ffn, HN_FFN_MLP);
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, t.m, N_CTX, 1, N_CTX, HONE_CACHE_F16);
    assert_int_equal(hone_embed(s, t.of, 1, &(hone_embed_params){ .pooling = HONE_POOL_MEAN }, y, &err), HONE_OK);
    hone_session_free(s);
    hone_context_free(c);
    close_file(&t);
}

/* Modules of an adapter that transformers' classes have, and the rows of a fused one. */
static void modules_of_encoders(void **state)
{
    static const struct {
        const char *file, *module, *tensor;
        int n_part;
        bool alone;
    } list[] = { { "eurobert", "layers.1.self_attn.q_proj", "blk.1.attn_q.weight", 1, true },
                 { "llama_embed", "layers.1.self_attn.q_proj", "blk.1.attn_q.weight", 1,
                   false }, /* its rows are turned */
                 { "modern", "layers.1.attn.Wqkv", "blk.1.attn_qkv.weight", 3, true },
                 { "modern", "layers.2.mlp.Wi", "blk.2.ffn_up.weight", 2, true },
                 { "modern", "layers.2.mlp.Wo", "blk.2.ffn_down.weight", 1, true } };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        texts t = open_file(list[i].file);
        char tensor[96], again[HN_MAX_PART][HN_LORA_NAME];
        bool alone;
        hn_lora_place at, of, to[HN_MAX_PART];
        hone_str name = { list[i].module, strlen(list[i].module) };
        if (!hn_module_find(&at, tensor, &alone, t.m, name)) fail_msg("no module %s", list[i].module);
        assert_string_equal(tensor, list[i].tensor);
        assert_int_equal(at.n_part, list[i].n_part);
        assert_int_equal(alone, list[i].alone);
        assert_true(hn_module_tensor(&of, t.m, tensor));
        assert_int_equal(hn_modules_of(again, to, t.m, &of), 1);
        assert_string_equal(again[0], list[i].module);
        close_file(&t);
    }
}

/* ---- long texts ------------------------------------------------------------------------------------------ */

typedef struct heard {
    double ops; /* of attention */
    int n;
} heard;
static void hear(void *arg, const hone_profile_event *e)
{
    heard *h = arg;
    if (strcmp(e->op, "attention") != 0) return;
    h->ops += e->ops_float;
    h->n++;
}

/* Of more keys than a split has, where one row alone is wanted at last: several threads share it. Every row sees all,
 * but for windows, as far forward as back; the profile counts that. */
static void long_texts_are_shared(void **state)
{
    enum { LONG = 700 };
    static const char *const names[] = { "nomic", "gemma" };
    int32_t ids[LONG];
    for (int i = 0; i < LONG; i++) ids[i] = (i * 7 + i / 16) % 16;
    const hone_text_ids of = { ids, LONG };
    for (int k = 0; k < 2; k++) {
        texts t = open_file(names[k]);
        float y[2][32] = { 0 };
        heard h = { 0 };
        int32_t width = hone_embed_width(t.m, HONE_POOL_CLS, NULL);
        for (int i = 0; i < 2; i++) {
            hone_context *c = tm_context(i ? NULL : "scalar", i ? 4 : 1);
            hone_session *s = tm_session(c, t.m, LONG, 1, LONG, HONE_CACHE_F16);
            hone_session_set_profile(s, hear, &h);
            embed(s, &of, 1, HONE_POOL_CLS, false, y[i]);
            hone_session_free(s);
            hone_context_free(c);
        }
        assert_memory_equal(y[0], y[1], (size_t)width * sizeof **y);
        /* two layers that see 700 keys of each of 4 heads of 8, of which the last does so for one row */
        if (k == 0) assert_true(h.n == 4 && fabs(h.ops / 2 - 4.0 * 8 * 4 * (LONG * LONG + LONG)) < 1);
        close_file(&t);
    }
}

/* Layers behind pooling are shared out too, and read once for all texts of a step. */
static void dense_layers_are_shared(void **state)
{
    texts t = open_file("gemma");
    load_ids(&t);
    float y[N_TEXT * N_CTX * 32];
    int64_t handed[3];
    for (int i = 0; i < 3; i++) {
        hone_context *c = tm_context(NULL, 3);
        hone_session *s = tm_session(c, t.m, N_CTX, N_TEXT, 2 * N_CTX, HONE_CACHE_F16);
        const hone_text_ids twice[N_TEXT] = { t.of[0], t.of[0] };
        embed(s, twice, N_TEXT, i ? HONE_POOL_FILE : HONE_POOL_NONE, i == 2, y);
        handed[i] = hn_pool_handed(c->pool);
        hone_session_free(s);
        hone_context_free(c);
    }
    assert_int_equal(handed[1] - handed[0], (t.m->dense[0].n_out + 7) / 8 + (t.m->dense[1].n_out + 7) / 8);
    assert_int_equal(handed[1], handed[2]);
    close_file(&t);
}

/* ---- a query and a document ---------------------------------------------------------------------------- */

/* The smallest vocabulary of pieces that has "yes" and "no". */
static const char *const pieces[] = { "<unk>", "<s>", "</s>", "y", "e", "s", "n", "o",
                                      "ye",    "yes", "no",   "a", "b", "c", " ", "d" };
enum { EOS = 2, YES = 9, NO = 10 };

static void add_kv(const texts *t, json_t *kv)
{
    assert_non_null(kv);
    assert_int_equal(json_array_append_new(json_object_get(t->v.j, "kv"), kv), 0);
}

/* The file of a vector with that vocabulary, and a template or none. */
static void give_vocabulary(texts *t, const char *template)
{
    hone_error err = { 0 };
    json_t *token = json_array(), *score = json_array(), *type = json_array();
    for (int i = 0; i < 16; i++) {
        json_array_append_new(token, json_string(pieces[i]));
        json_array_append_new(score, json_real(-i));
        json_array_append_new(type, json_integer(i == 0 ? 2 : i <= EOS ? 3 : 1));
    }
    add_kv(t, json_pack("[sss]", "tokenizer.ggml.model", "STRING", "llama"));
    add_kv(t, json_pack("[sso]", "tokenizer.ggml.tokens", "ARRAY:STRING", token));
    add_kv(t, json_pack("[sso]", "tokenizer.ggml.scores", "ARRAY:FLOAT32", score));
    add_kv(t, json_pack("[sso]", "tokenizer.ggml.token_type", "ARRAY:INT32", type));
    add_kv(t, json_pack("[ssi]", "tokenizer.ggml.bos_token_id", "UINT32", 1));
    add_kv(t, json_pack("[ssi]", "tokenizer.ggml.eos_token_id", "UINT32", EOS));
    add_kv(t, json_pack("[ssb]", "tokenizer.ggml.add_eos_token", "BOOL", 1));
    add_kv(t, json_pack("[ssb]", "tokenizer.ggml.add_space_prefix", "BOOL", 0));
    if (template) add_kv(t, json_pack("[sss]", "tokenizer.chat_template.rerank", "STRING", template));
    hone_model_close(t->m);
    save_without(&t->v, tm_path("embed.gguf"), NULL);
    if (hone_model_open(&t->m, tm_path("embed.gguf"), NULL, &err)) fail_msg("%s", err.message);
}

static void check_ids(const hone_model *m, const char *query, const char *document, const int32_t *want, size_t n)
{
    hone_error err = { 0 };
    int32_t *ids;
    size_t n_ids;
    if (hone_rank_tokenize(m, NULL, query, strlen(query), document, strlen(document), &ids, &n_ids, &err))
        fail_msg("%s", err.message);
    assert_int_equal(n_ids, n);
    assert_memory_equal(ids, want, n * sizeof *ids);
    hone_free(ids);
}

/* Without a classifier "yes" and "no" are weighed as the next token. The template's control tokens are such, a text's
 * are not. */
static void next_tokens_are_scores(void **state)
{
    texts t = open_file("qwen3");
    load_ids(&t);
    give_vocabulary(&t, "</s>{query}d{document}</s>");
    /* "</s>" in a text: none of its characters but s is a piece */
    check_ids(t.m, "ab", "yes", (int32_t[]){ EOS, 11, 12, 15, YES, EOS }, 6);
    check_ids(t.m, "</s>", "c", (int32_t[]){ EOS, 0, 0, 5, 0, 15, 13, EOS }, 8);
    hone_error err = { 0 };
    const float *logits;
    float y[2];
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, t.m, N_CTX, 1, 64, HONE_CACHE_F32);
    assert_int_equal(hone_embed_width(t.m, HONE_POOL_RANK, NULL), 2);
    embed(s, t.of, 1, HONE_POOL_RANK, false, y);
    assert_int_equal(hone_append(s, 0, t.of[0].ids, t.of[0].n, &logits, &err), HONE_OK);
    double yes = 1 / (1 + exp((double)logits[NO] - (double)logits[YES]));
    assert_true(fabs(yes - (double)y[0]) < 1e-6 && fabs((double)y[0] + (double)y[1] - 1) < 1e-6);
    hone_session_free(s);
    hone_context_free(c);
    close_file(&t);
}

/* An adapter of the head changes the scores as it changes the next token. */
static void scores_have_their_adapters(void **state)
{
    enum { WIDTH = 32, VOCAB = 16, RANK = 2 };
    texts t = open_file("qwen3");
    load_ids(&t);
    json_array_append_new(json_object_get(t.v.j, "tensors"),
                          json_pack("[s[ii]ff]", "output.weight", WIDTH, VOCAB, 1.0, 0.0));
    give_vocabulary(&t, "</s>{query}d{document}</s>");
    static float a[RANK * WIDTH], b[VOCAB * RANK];
    static char name[] = "output.weight";
    for (int i = 0; i < RANK * WIDTH; i++) a[i] = (float)(0.2 * tm_u("a", (uint64_t)i));
    for (int i = 0; i < VOCAB * RANK; i++) b[i] = (float)tm_u("b", (uint64_t)i);
    hn_lora_pair pair = { .name = name, .a = a, .b = b, .n_in = WIDTH, .n_out = VOCAB, .rank = RANK, .scale = 0.5f };
    const hn_lora_about about = { .arch = "qwen3", .alpha = 0.5f * RANK, .type = HN_F32 };
    hone_error err = { 0 };
    hone_adapter *adapter;
    const float *logits;
    float y[2], alone[2];
    if (hn_lora_write_gguf(tm_path("head.gguf"), &pair, 1, &about, &err)) fail_msg("%s", err.message);
    if (hone_adapter_open(&adapter, t.m, tm_path("head.gguf"), &err)) fail_msg("%s", err.message);
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, t.m, N_CTX, 1, 64, HONE_CACHE_F32);
    embed(s, t.of, 1, HONE_POOL_RANK, false, alone);
    assert_int_equal(hone_session_set_adapters(s, &adapter, NULL, 1, &err), HONE_OK);
    embed(s, t.of, 1, HONE_POOL_RANK, false, y);
    assert_int_equal(hone_append(s, 0, t.of[0].ids, t.of[0].n, &logits, &err), HONE_OK);
    double yes = 1 / (1 + exp((double)logits[NO] - (double)logits[YES]));
    assert_true(fabs(yes - (double)y[0]) < 1e-6 && fabs(yes - (double)alone[0]) > 1e-3);
    hone_session_free(s);
    hone_context_free(c);
    hone_adapter_close(adapter);
    close_file(&t);
}

/* Between separators, where there is no template: of what has no next token. */
static void separators_stand_between(void **state)
{
    texts t = open_file("xlmr_rank");
    give_vocabulary(&t, NULL);
    check_ids(t.m, "ab", "yes", (int32_t[]){ 1, 11, 12, EOS, YES, EOS }, 6);
    close_file(&t);
}

/* ---- LFM2 both ways ----------------------------------------------------------------------------------------- */

enum { LFM2_TOK = 7, LFM2_EMBD = 32, LFM2_DENSE = 5 };

static void set(vector *v, const char *key, const char *type, json_t *value)
{
    size_t i;
    json_t *kv, *list = json_object_get(v->j, "kv");
    json_array_foreach(list, i, kv) if (!strcmp(json_string_value(json_array_get(kv, 0)), key)) break;
    json_t *entry = json_pack("[s,s,o]", key, type, value);
    if (i < json_array_size(list)) json_array_set_new(list, i, entry);
    else json_array_append_new(list, entry);
}

/* The vector's layer of a convolution alone, whose taps are those, of channel c a little more. */
static void convolve(vector *v, const double taps[3])
{
    json_t *ts = json_object_get(v->j, "tensors"), *values = json_array();
    for (int i = 0; i < 3 * LFM2_EMBD; i++)
        json_array_append_new(values, json_real(taps[i % 3] * (1 + (double)(i / 3) / 64)));
    for (size_t i = json_array_size(ts); i-- > 0;) {
        json_t *t = json_array_get(ts, i);
        const char *name = json_string_value(json_array_get(t, 0));
        if (starts(name, "blk.1.")) json_array_remove(ts, i);
        else if (strstr(name, "shortconv.conv.weight")) json_array_set(t, 2, values);
    }
    json_decref(values);
    set(v, "lfm2.block_count", "UINT32", json_integer(1));
    set(v, "lfm2.attention.head_count_kv", "UINT32", json_integer(0));
}

/* Rows of texts of LFM2_TOK ids in one step; how wide they are. */
static int32_t rows_of_texts(const vector *v, const int32_t *ids, int n_text, float *y)
{
    hone_error err = { 0 };
    hone_model *m;
    hone_text_ids of[2] = { { ids, LFM2_TOK }, { ids + LFM2_TOK, LFM2_TOK } };
    save_without(v, tm_path("lfm2.gguf"), NULL);
    if (hone_model_open(&m, tm_path("lfm2.gguf"), NULL, &err)) fail_msg("%s", err.message);
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, m, 64, n_text, 32, HONE_CACHE_F32);
    embed(s, of, n_text, HONE_POOL_NONE, true, y);
    int32_t width = hone_embed_width(m, HONE_POOL_NONE, NULL);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
    return width;
}

/* A centred convolution: with nothing ahead it is a causal one of one tap less; a text the other way round, with
 * taps the other way round, gives rows the other way round; beyond a text's end is nothing, whoever follows. */
static void centred_taps(void **state)
{
    static const int32_t ids[2 * LFM2_TOK] = { 1, 5, 2, 9, 3, 3, 7, /* and back */ 7, 3, 3, 9, 2, 5, 1 };
    enum { ROW = LFM2_EMBD, ALL = LFM2_TOK * ROW };
    float causal[ALL], back[ALL], y[2 * ALL], z[2 * ALL];
    vector v = load("lfm2.json");
    convolve(&v, (const double[]){ 0, 0.75, -1.25 });
    rows_of_texts(&v, ids, 1, causal);
    set(&v, "lfm2.attention.causal", "BOOL", json_false());
    convolve(&v, (const double[]){ 0.75, -1.25, 0 });
    rows_of_texts(&v, ids, 1, y);
    assert_memory_equal(causal, y, sizeof causal);
    convolve(&v, (const double[]){ 0.75, -1.25, 0.5 });
    rows_of_texts(&v, ids, 2, y);
    convolve(&v, (const double[]){ 0.5, -1.25, 0.75 });
    rows_of_texts(&v, ids + LFM2_TOK, 1, back);
    for (int t = 0; t < LFM2_TOK; t++)
        for (int k = 0; k < ROW; k++)
            assert_true(fabs((double)y[t * ROW + k] - (double)back[(LFM2_TOK - 1 - t) * ROW + k]) < 1e-5);
    convolve(&v, (const double[]){ 0.75, -1.25, 0.5 });
    rows_of_texts(&v, ids, 1, z);
    assert_memory_equal(y, z, ALL * sizeof *y); /* alone */
    assert_memory_not_equal(causal, z, sizeof causal);
    json_decref(v.j);
}

/* Attention does so too; an even number of taps has no middle; and the layer behind rows is of each row. */
static void rows_of_lfm2(void **state)
{
    static const int32_t ids[2 * LFM2_TOK] = { 1, 5, 2, 9, 3, 3, 7, 1, 5, 2, 9, 3, 3, 8 };
    hone_error err = { 0 };
    hone_model *m;
    float y[2 * LFM2_TOK * LFM2_EMBD], d[2 * LFM2_TOK * LFM2_DENSE];
    vector v = load("lfm2.json");
    assert_int_equal(rows_of_texts(&v, ids, 2, y), LFM2_EMBD);
    assert_memory_equal(y, y + LFM2_TOK * LFM2_EMBD, LFM2_EMBD * sizeof *y);
    set(&v, "lfm2.attention.causal", "BOOL", json_false());
    rows_of_texts(&v, ids, 2, y);
    assert_memory_not_equal(y, y + LFM2_TOK * LFM2_EMBD, LFM2_EMBD * sizeof *y);
    set(&v, "lfm2.embedding_length_out", "UINT32", json_integer(LFM2_DENSE));
    save_without(&v, tm_path("lfm2.gguf"), NULL);
    assert_int_equal(hone_model_open(&m, tm_path("lfm2.gguf"), NULL, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "no tensor dense_2.weight"));
    json_t *ts = json_object_get(v.j, "tensors"), *w = json_array(), *b = json_array();
    for (int i = 0; i < LFM2_DENSE * LFM2_EMBD; i++) json_array_append_new(w, json_real((i * 7 % 11 - 5) / 4.0));
    for (int i = 0; i < LFM2_DENSE; i++) json_array_append_new(b, json_real(i));
    json_array_append_new(ts, json_pack("[s,[i,i],o]", "dense_2.weight", LFM2_EMBD, LFM2_DENSE, w));
    json_array_append_new(ts, json_pack("[s,[i],o]", "dense_2.bias", LFM2_DENSE, b));
    assert_int_equal(rows_of_texts(&v, ids, 2, d), LFM2_DENSE);
    for (int t = 0; t < 2 * LFM2_TOK; t++)
        for (int o = 0; o < LFM2_DENSE; o++) {
            double want = o;
            for (int k = 0; k < LFM2_EMBD; k++)
                want += (double)y[t * LFM2_EMBD + k] * ((o * LFM2_EMBD + k) * 7 % 11 - 5) / 4.0;
            assert_true(fabs((double)d[t * LFM2_DENSE + o] - want) < 1e-4);
        }
    set(&v, "lfm2.shortconv.l_cache", "UINT32", json_integer(4));
    save_without(&v, tm_path("lfm2.gguf"), NULL);
    assert_int_equal(hone_model_open(&m, tm_path("lfm2.gguf"), NULL, &err), HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "l_cache = 4"));
    set(&v, "lfm2.attention.sliding_window", "UINT32", json_integer(4));
    save_without(&v, tm_path("lfm2.gguf"), NULL);
    assert_int_equal(hone_model_open(&m, tm_path("lfm2.gguf"), NULL, &err), HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "sliding_window = 4"));
    json_decref(v.j);
}

typedef struct passes {
    int32_t most, longest, n, n_tok; /* rows of one, asked for and had; passes; tokens of all but the last */
} passes;

static int32_t count_pass(void *arg, int32_t n_last)
{
    passes *p = arg;
    if (n_last > p->longest) p->longest = n_last;
    p->n += 1;
    p->n_tok += n_last;
    return p->most;
}

/* A caller who has other things to do between passes says how many rows one may have; a model that reads a text at once
 * has whole texts. Vectors are the same bits. */
static void passes_have_rows(void **state)
{
    static const char *const some[] = { "qwen3", "bert_mean" };
    hone_context *c = tm_context(NULL, 2);
    for (int k = 0; k < 2; k++)
        for (int32_t most = 0; most < 40; most += 7) {
            texts t = open_file(some[k]);
            load_ids(&t);
            float want[N_TEXT * 64], got[N_TEXT * 64];
            hone_error err = { 0 };
            const int32_t all = t.of[0].n + t.of[1].n, longer = t.of[0].n > t.of[1].n ? t.of[0].n : t.of[1].n;
            const int32_t width = hone_embed_width(t.m, HONE_POOL_MEAN, NULL), rows = most ? most : 1;
            hone_session *s = tm_session(c, t.m, N_CTX, 2, N_CTX, HONE_CACHE_F32);
            passes seen = { .most = most };
            const hone_embed_params p = { .pooling = HONE_POOL_MEAN, .rows = count_pass, .rows_arg = &seen };
            assert_true(width <= 64);
            embed(s, t.of, N_TEXT, HONE_POOL_MEAN, false, want);
            if (hone_embed(s, t.of, N_TEXT, &p, got, &err)) fail_msg("%s", err.message);
            assert_memory_equal(want, got, (size_t)(N_TEXT * width) * sizeof *got);
            if (k == 0) assert_int_equal(seen.n, (all + rows - 1) / rows);
            assert_true(seen.longest <= (k == 0 || rows > longer ? rows : longer) && seen.n_tok < all);
            hone_session_free(s);
            close_file(&t);
        }
    hone_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_transformers),
        cmocka_unit_test(refusals_are_told),
        cmocka_unit_test(modules_of_encoders),
        cmocka_unit_test(other_formulas),
        cmocka_unit_test(one_layer_has_no_experts),
        cmocka_unit_test(long_texts_are_shared),
        cmocka_unit_test(next_tokens_are_scores),
        cmocka_unit_test(scores_have_their_adapters),
        cmocka_unit_test(separators_stand_between),
        cmocka_unit_test(centred_taps),
        cmocka_unit_test(rows_of_lfm2),
        cmocka_unit_test(dense_layers_are_shared),
        cmocka_unit_test(passes_have_rows),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
