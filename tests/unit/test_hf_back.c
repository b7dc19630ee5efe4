/* hf_back: a file becomes a folder again: every tensor of the first folder with its numbers, a config that makes the
 * same file; files that no class of transformers can be are refused by name, and nothing is left behind. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "gguf/gguf.h"
#include "hf_files.h"
#include "model/ckpt.h"

#include <math.h>

static char dir[64];

static const char *at(const char *name)
{
    static char path[16][192];
    static int k;
    k = (k + 1) % 16;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-back-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}
static int remove_dir(void **state) { return getenv("KEEPIT") ? 0 : hf_remove(dir); }

static void convert(const char *src, const char *type, const char *dst)
{
    hone_error err;
    if (hone_convert(src, NULL, type, dst, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
}

static void refused(const char *src, const char *type, const char *dst, hone_status code, const char *says)
{
    hone_error err;
    hone_status st = hone_convert(src, NULL, type, dst, NULL, &err);
    if (st != code || !strstr(err.message, says)) fail_msg("%d: %s; expected %d, \"%s\"", st, err.message, code, says);
}

static void assert_same_files(const char *a, const char *b)
{
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    int c;
    assert_true(x && y);
    for (size_t i = 0; (c = fgetc(x)) != EOF; i++)
        if (c != fgetc(y)) fail_msg("%s and %s differ at byte %zu", a, b, i);
    assert_int_equal(fgetc(y), EOF);
    fclose(x);
    fclose(y);
}

/* Every tensor of f, in a folder that hone made; `root` stands before their names there. */
static void check_folder(const hf_folder *f, const char *folder, const char *root)
{
    hone_error err;
    hn_ckpt *c;
    assert_int_equal(hn_ckpt_new(&c, folder, &err), HONE_OK);
    if (hn_ckpt_folder(c, folder, &err) != HONE_OK) fail_msg("%s", err.message);
    size_t n = 0;
    for (int i = 0; i < f->n; i++) {
        const hf_tensor *want = &f->t[i];
        char name[128];
        if (strstr(want->name, ".attn.bias") || strstr(want->name, ".attn.masked_bias")) continue; /* buffers */
        n++;
        snprintf(name, sizeof name, "%s%s", root, want->name);
        const hn_ckpt_tensor *t = hn_ckpt_find(c, name, strlen(name));
        if (!t) fail_msg("%s is missing", name);
        assert_int_equal(t->n_dim, want->n_dim);
        for (int d = 0; d < t->n_dim; d++) assert_int_equal(t->ne[t->n_dim - 1 - d], want->shape[d]);
        for (size_t k = 0; k < hf_count(want); k++) {
            uint32_t u = 0;
            float x;
            size_t each = t->type == HN_F32 ? 4 : 2;
            assert_int_equal(hn_source_read(&c->part[t->part], t->off + each * k, &u, each, &err), HONE_OK);
            u <<= each == 2 ? 16 : 0;
            memcpy(&x, &u, 4);
            float own = hf_value(want->name, k);
            bool through_exp = strstr(name, "A_log") != NULL; /* log(exp x) */
            if (through_exp ? !(fabsf(x - own) <= 1e-6f) : x != own)
                fail_msg("%s[%zu] is %g, expected %g", name, k, (double)x, (double)own);
        }
    }
    assert_int_equal(c->n, n);
    hn_ckpt_free(c);
}

/* Folder, file, folder, file. */
static void round_trip(const hf_folder *f, const char *type, const char *root)
{
    hf_write(f, at("first"));
    convert(at("first"), type, at("first.gguf"));
    mkdir(at("again"), 0700);
    convert(at("first.gguf"), NULL, at("again/first"));
    check_folder(f, at("again/first"), root);
    convert(at("again/first"), type, at("again/first.gguf"));
    assert_same_files(at("first.gguf"), at("again/first.gguf"));
    hf_remove(at("first"));
    hf_remove(at("again"));
}

static void llama(void **state)
{
    hf_folder f;
    hf_llama(&f);
    round_trip(&f, NULL, "");
    round_trip(&f, "F32", "");
    f.bf16 = f.shards = true;
    round_trip(&f, NULL, "");
}

static void gemma2(void **state)
{
    hf_folder f;
    hf_gemma2(&f);
    round_trip(&f, NULL, "");
}

static void gpt2(void **state)
{
    hf_folder f;
    hf_gpt2(&f);
    round_trip(&f, "F32", "transformer.");
}

static void nemotron(void **state)
{
    hf_folder f;
    hf_nemotron(&f);
    round_trip(&f, "F32", "");
}

static void gemma4(void **state)
{
    static const char base[] = ",\"rope_theta\":10000.0";
    char config[2048];
    hf_folder f;
    hf_gemma4(&f);
    round_trip(&f, "F32", "");
    const char *p = strstr(f.config, base); /* of windowed layers: what the class has, whatever others turn by */
    assert_non_null(p);
    snprintf(config, sizeof config, "%.*s%s", (int)(p - f.config), f.config, p + sizeof base - 1);
    f.config = config;
    hf_write(&f, at("unsaid"));
    convert(at("unsaid"), "F32", at("unsaid.gguf"));
    hone_error err;
    hn_gguf *g;
    float x = 0;
    assert_int_equal(hn_gguf_open(&g, at("unsaid.gguf"), &err), HONE_OK);
    assert_int_equal(hn_gguf_get_f32(g, "gemma4.rope.freq_base_swa", &x, NULL, &err), HONE_OK);
    assert_true(x == 10000);
    hn_gguf_close(g);
}

/* The class's own cap where none is said; none where it is null. */
static void gemma3n(void **state)
{
    static const char cap[] = "\"final_logit_softcapping\":7.0,";
    static const char *const caps[] = { cap, "", "\"final_logit_softcapping\":null," };
    static const float want[] = { 7, 30, 0 };
    char config[2048];
    for (int i = 0; i < 3; i++) {
        hone_error err;
        hn_gguf *g;
        float x = -1; /* none stands there too: files without the key mean 30 */
        hf_folder f;
        hf_gemma3n(&f);
        const char *p = strstr(f.config, cap);
        assert_non_null(p);
        snprintf(config, sizeof config, "%.*s%s%s", (int)(p - f.config), f.config, caps[i], p + sizeof cap - 1);
        f.config = config;
        round_trip(&f, "F32", "");
        assert_int_equal(hn_gguf_open(&g, at("first.gguf"), &err), HONE_OK);
        assert_int_equal(hn_gguf_get_f32(g, "gemma3n.final_logit_softcapping", &x, NULL, &err), HONE_OK);
        assert_true(x == want[i]);
        hn_gguf_close(g);
    }
}

static const char *edited(char *dst, size_t cap, const char *text, const char *old, const char *new)
{
    const char *p = strstr(text, old);
    if (!p) fail_msg("\"%s\" is not in the config", old);
    snprintf(dst, cap, "%.*s%s%s", (int)(p - text), text, new, p + strlen(old));
    return dst;
}

static void hear(void *arg, const char *text) { snprintf(arg, 512, "%s", text); }

#define HALF_KINDS "\"sliding_attention\",\"full_attention\","
#define KINDS "\"layer_types\":[" HALF_KINDS "\"sliding_attention\",\"full_attention\"],"

/* What Gemma's classes have where a config does not say what layers see. */
static void unsaid_layers(void **state)
{
    char a[2048], b[2048], note[512] = "";
    const hone_convert_params p = { .note = hear, .note_arg = note, .type = "F32" };
    hone_error err;
    hf_folder f;
    hf_gemma4(&f); /* the last layer sees everything, whatever is said */
    hf_write(&f, at("said"));
    convert(at("said"), "F32", at("said/same.gguf"));
    f.config = edited(a, sizeof a, f.config, KINDS,
                      "\"layer_types\":[" HALF_KINDS "\"sliding_attention\",\"sliding_attention\"],");
    hf_write(&f, at("said"));
    if (hone_convert_with(at("said"), at("forced.gguf"), &p, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_non_null(strstr(note, "layer_types ends with sliding_attention"));
    assert_same_files(at("said/same.gguf"), at("forced.gguf"));

    hf_gemma4_of(&f, 6, 6, 6);
    edited(a, sizeof a, f.config, "\"num_hidden_layers\":4", "\"num_hidden_layers\":6");
    edited(b, sizeof b, a, "\"num_kv_shared_layers\":2", "\"num_kv_shared_layers\":0");
    f.config = edited(a, sizeof a, b, KINDS, "");
    round_trip(&f, "F32", "");
    hf_gemma3n_of(&f, 12); /* of more than ten layers the first ten keep a part of their gates */
    edited(a, sizeof a, f.config, "\"num_hidden_layers\":4", "\"num_hidden_layers\":12");
    edited(b, sizeof b, a, "[24,24,20,24]", "24");
    edited(a, sizeof a, b, "\"activation_sparsity_pattern\":[0.95,0.0,0.7,0.1],", "");
    f.config = edited(b, sizeof b, a, KINDS, "\"layer_types\":null,");
    round_trip(&f, "F32", "");
    hn_gguf *g;
    hn_gguf_array cuts, windows;
    assert_int_equal(hn_gguf_open(&g, at("first.gguf"), &err), HONE_OK);
    assert_int_equal(hn_gguf_get_array(g, "gemma3n.activation_sparsity_scale", &cuts, NULL, &err), HONE_OK);
    assert_int_equal(hn_gguf_get_array(g, "gemma3n.attention.sliding_window_pattern", &windows, NULL, &err), HONE_OK);
    assert_true(cuts.count == 12 && windows.count == 12);
    for (int il = 0; il < 12; il++) {
        float x;
        memcpy(&x, cuts.data + 4 * il, 4);
        assert_true(il < 10 ? fabsf(x - 1.6448536f) < 1e-6f : isinf(x) && x < 0);
        assert_int_equal(windows.data[il], il != 4 && il != 9);
    }
    hn_gguf_close(g);
    hf_remove(at("said"));
}

/* How its authors draw tokens, which transformers asks do_sample for. */
static void sampling(void **state)
{
    static const struct {
        const char *config, *back;
    } all[] = {
        { "{\"do_sample\":true,\"temperature\":0.5,\"top_k\":20,\"repetition_penalty\":1.25}",
          "{\"do_sample\":true,\"repetition_penalty\":1.25,\"temperature\":0.5,\"top_k\":20}" },
        { "{\"top_p\":0.75}", "{\"do_sample\":true,\"top_p\":0.75}" },
        { "{\"do_sample\":false,\"temperature\":0.5,\"top_k\":20,\"top_p\":0.75,\"min_p\":0.125,"
          "\"repetition_penalty\":1.25}",
          "{\"repetition_penalty\":1.25}" },
        { "{\"temperature\":0,\"top_k\":20,\"repetition_penalty\":1.25}", "{\"repetition_penalty\":1.25}" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        hf_folder f;
        hf_llama(&f);
        hf_write(&f, at("draws"));
        hf_write_text(at("draws"), "generation_config.json", all[i].config);
        convert(at("draws"), NULL, at("draws.gguf"));
        convert(at("draws.gguf"), NULL, at("drawn"));
        json_t *o = json_load_file(at("drawn/generation_config.json"), 0, NULL);
        char *have = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
        assert_non_null(have);
        assert_string_equal(have, all[i].back);
        free(have);
        json_decref(o);
        hf_remove(at("draws"));
        hf_remove(at("drawn"));
    }
}

static void kimi_linear(void **state)
{
    hf_folder f;
    hf_kimi(&f);
    round_trip(&f, "F32", "");
}

/* ---- blocks that draft ----- */

/* A number of a file; −1: it has no such key. */
static int64_t number_in(const hn_gguf *g, const char *key)
{
    uint32_t n;
    bool found;
    hone_error err;
    assert_int_equal(hn_gguf_get_u32(g, key, &n, &found, &err), HONE_OK);
    return found ? (int64_t)n : -1;
}

/* first.gguf has so many blocks, the last `n_draft` of which draft and have these tensors; the model runs. */
static void has_blocks(const char *arch, int n_block, int n_draft, const char *const *parts)
{
    hone_error err = { 0 };
    char name[96];
    hn_gguf *g;
    hone_model *m;
    assert_int_equal(hn_gguf_open(&g, at("first.gguf"), &err), HONE_OK);
    snprintf(name, sizeof name, "%s.block_count", arch);
    assert_int_equal(number_in(g, name), n_block);
    snprintf(name, sizeof name, "%s.nextn_predict_layers", arch);
    assert_int_equal(number_in(g, name), n_draft ? n_draft : -1);
    snprintf(name, sizeof name, "%s.attention.recurrent_layers", arch);
    hn_gguf_array list;
    if (hn_gguf_find(g, name) >= 0) {
        assert_true(hn_gguf_kv_array(g, (uint64_t)hn_gguf_find(g, name), &list));
        assert_int_equal(list.count, n_block); /* llama.cpp wants one for each */
    }
    for (int il = n_block - n_draft; il < n_block; il++)
        for (const char *const *p = parts; *p; p++) {
            snprintf(name, sizeof name, "blk.%d.%s", il, *p);
            if (!hn_gguf_find_tensor(g, name)) fail_msg("%s is missing", name);
        }
    snprintf(name, sizeof name, "blk.%d.attn_norm.weight", n_block);
    assert_null(hn_gguf_find_tensor(g, name));
    hn_gguf_close(g);
    if (hone_model_open(&m, at("first.gguf"), NULL, &err)) fail_msg("%s", err.message);
    hone_model_info info;
    hone_model_get_info(m, &info);
    assert_int_equal(info.n_layer, n_block - n_draft);
    hone_model_close(m);
}

static const char *const joins[] = { "nextn.eh_proj.weight", "nextn.enorm.weight",
                                     "nextn.hnorm.weight",   "attn_q.weight",
                                     "attn_norm.weight",     "nextn.shared_head_norm.weight",
                                     "attn_output.weight",   NULL };

static void drafts_behind(void **state)
{
    static const char *const own[] = { "nextn.embed_tokens.weight", "nextn.shared_head_head.weight", NULL };
    hf_folder f;
    for (int n_draft = 0; n_draft < 3; n_draft++) { /* whatever the config says: what is there counts */
        hf_glm(&f, n_draft);
        round_trip(&f, "F32", "");
        has_blocks("glm4moe", 2 + n_draft, n_draft, joins);
    }
    hf_glm(&f, 1);
    hf_add_all(&f, "model.layers.2.embed_tokens.weight 32,16;model.layers.2.shared_head.head.weight 32,16;", NULL, 0);
    round_trip(&f, NULL, "");
    has_blocks("glm4moe", 3, 1, own);
    /* what is no block, and what is not whole */
    hf_add_all(&f, "model.layers.3.enorm.weight 16;", NULL, 0);
    hf_write(&f, at("first"));
    convert(at("first"), "F32", at("first.gguf"));
    has_blocks("glm4moe", 3, 1, own);
    hf_remove(at("first"));
    for (int i = 0; i < f.n; i++)
        if (!strcmp(f.t[i].name, "model.layers.2.hnorm.weight")) f.t[i] = f.t[--f.n];
    hf_write(&f, at("first"));
    convert(at("first"), "F32", at("first.gguf"));
    has_blocks("glm4moe", 2, 0, own);
    hf_remove(at("first"));
    hf_glm(&f, 2); /* the second without its queries: the first stays */
    for (int i = 0; i < f.n; i++)
        if (!strcmp(f.t[i].name, "model.layers.3.self_attn.q_proj.weight")) f.t[i] = f.t[--f.n];
    hf_write(&f, at("first"));
    convert(at("first"), "F32", at("first.gguf"));
    has_blocks("glm4moe", 3, 1, joins);
    hf_remove(at("first"));
}

/* What the class has where a config does not say it: llama.cpp opens no file without. */
static void has_sections(const char *arch)
{
    static const int32_t want[4] = { 11, 11, 10, 0 };
    char key[64];
    hn_gguf *g;
    hn_gguf_array a;
    hone_error err;
    bool found = false;
    snprintf(key, sizeof key, "%s.rope.dimension_sections", arch);
    assert_int_equal(hn_gguf_open(&g, at("first.gguf"), &err), HONE_OK);
    assert_int_equal(hn_gguf_get_array(g, key, &a, &found, &err), HONE_OK);
    assert_true(found && a.elem_type == HONE_KV_I32 && a.count == 4);
    assert_memory_equal(a.data, want, sizeof want);
    hn_gguf_close(g);
}

static void drafts_apart(void **state)
{
    hf_folder f;
    for (int draft = 0; draft < 2; draft++) {
        hf_qwen35(&f, draft);
        round_trip(&f, "F32", "");
        has_blocks("qwen35", 3 + draft, draft, joins);
        has_sections("qwen35");
    }
    hf_add_all(&f, "mtp.layers.1.input_layernorm.weight 16;", NULL, 0); /* two of them would share what joins */
    hf_write(&f, at("first"));
    convert(at("first"), "F32", at("first.gguf"));
    has_blocks("qwen35", 3, 0, joins);
    hf_remove(at("first"));
}

/* ---- models that give rows ------------------------------------------------------------------------------- */

static bool says(const char *file, const char *what)
{
    char text[4096] = { 0 };
    FILE *o = fopen(file, "rb");
    if (!o) return false;
    size_t n = fread(text, 1, sizeof text - 1, o);
    fclose(o);
    return n < sizeof text - 1 && strstr(text, what) != NULL;
}

/* With modules of sentence-transformers: there, back, there. mode NULL: without. */
static void rows_and_back(hf_folder *f, const char *mode, bool dense)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        f->bf16 = bf16 != 0;
        hf_write(f, at("rows"));
        if (mode) hf_modules(at("rows"), mode, dense);
        convert(at("rows"), NULL, at("rows.gguf"));
        mkdir(at("again"), 0700);
        convert(at("rows.gguf"), NULL, at("again/rows"));
        check_folder(f, at("again/rows"), "");
        convert(at("again/rows"), NULL, at("again/rows.gguf"));
        assert_same_files(at("rows.gguf"), at("again/rows.gguf"));
        assert_int_equal(access(at("again/rows/modules.json"), F_OK) == 0, mode != NULL);
        assert_int_equal(access(at("again/rows/3_Dense/model.safetensors"), F_OK) == 0, dense);
        for (int i = 2; dense && i < 4; i++) {
            hf_folder d;
            hf_dense(&d, i);
            check_folder(&d, at(i == 2 ? "again/rows/2_Dense" : "again/rows/3_Dense"), "");
        }
        if (bf16) break;
        hf_remove(at("rows"));
        hf_remove(at("again"));
    }
}

static void forget(void)
{
    hf_remove(at("rows"));
    hf_remove(at("again"));
}

/* Norms of the first ones have other names. */
static void first_bert(void **state)
{
    static char names[HF_MAX][96];
    hf_folder f;
    int n = 0;
    hf_bert(&f);
    hf_write(&f, at("said"));
    convert(at("said"), NULL, at("said/same.gguf"));
    for (int i = 0; i < f.n; i++) {
        char *p = strstr(f.t[i].name, "LayerNorm.");
        if (!p) continue;
        f.t[i].as = memcpy(names[i], f.t[i].name, sizeof names[i]);
        strcpy(p + 10, p[10] == 'w' ? "gamma" : "beta");
        n++;
    }
    assert_int_equal(n, 10);
    mkdir(at("first"), 0700);
    hf_write(&f, at("first/said")); /* a model is named by its folder */
    convert(at("first/said"), NULL, at("first.gguf"));
    assert_same_files(at("said/same.gguf"), at("first.gguf"));
    hf_remove(at("said"));
    hf_remove(at("first"));
}

static void bert(void **state)
{
    static const char *const modes[] = { "cls_token", "mean_tokens", "lasttoken" };
    char want[64];
    hf_folder f;
    hf_bert(&f);
    rows_and_back(&f, NULL, false);
    forget();
    for (int i = 0; i < 3; i++) {
        rows_and_back(&f, modes[i], false);
        for (int k = 0; k < 3; k++) {
            snprintf(want, sizeof want, "\"pooling_mode_%s\": %s", modes[k], k == i ? "true" : "false");
            assert_true(says(at("again/rows/1_Pooling/config.json"), want));
        }
        assert_true(says(at("again/rows/modules.json"), "\"sentence_transformers.models.Normalize\""));
        assert_true(says(at("again/rows/sentence_bert_config.json"), "\"max_seq_length\": 64"));
        forget();
    }
}

/* Two rows of positions are in no file of GGUF: they are 0 again. */
static void roberta(void **state)
{
    static const char name[] = "roberta.embeddings.position_embeddings.weight";
    hone_error err;
    hn_ckpt *c;
    hf_folder f;
    float x[66 * 16];
    hf_roberta(&f);
    hf_write(&f, at("rows"));
    convert(at("rows"), NULL, at("rows.gguf"));
    mkdir(at("again"), 0700);
    convert(at("rows.gguf"), NULL, at("again/rows"));
    assert_int_equal(hn_ckpt_new(&c, at("again/rows"), &err), HONE_OK);
    assert_int_equal(hn_ckpt_folder(c, at("again/rows"), &err), HONE_OK);
    const hn_ckpt_tensor *t = hn_ckpt_find(c, name, strlen(name));
    assert_non_null(t);
    assert_int_equal(t->ne[1], 66);
    assert_int_equal(hn_source_read(&c->part[t->part], t->off, x, sizeof x, &err), HONE_OK);
    for (size_t i = 0; i < 66 * 16; i++) assert_true(x[i] == (i < 32 ? 0 : hf_value(name, i)));
    assert_int_equal(c->n, (size_t)f.n);
    hn_ckpt_free(c);
    convert(at("again/rows"), NULL, at("again/rows.gguf"));
    assert_same_files(at("rows.gguf"), at("again/rows.gguf"));
    assert_true(says(at("again/rows/config.json"), "\"XLMRobertaForSequenceClassification\""));
    assert_true(says(at("again/rows/config.json"), "\"1\": \"perhaps\""));
    assert_true(says(at("again/rows/config.json"), "\"max_position_embeddings\": 66"));
    forget();
}

static void nomic(void **state)
{
    hf_folder f;
    hf_nomic(&f);
    rows_and_back(&f, "mean_tokens", false);
    assert_true(says(at("again/rows/config.json"), "\"hidden_size\": 16")); /* as transformers' own class says it */
    forget();
}

/* K-EXAONE, Hy3, Youtu-LLM. */
static void routed_and_latent(void **state)
{
    char config[1024];
    hf_folder f;
    hf_routed(&f, true);
    round_trip(&f, NULL, "");
    snprintf(config, sizeof config, "%s", f.config);
    memcpy(strstr(config, "\"sliding_window\":6"), "\"use_cache\" : true", 18);
    f.config = config;
    hf_write(&f, at("first"));
    refused(at("first"), NULL, at("first.gguf"), HONE_E_FORMAT, "has no sliding_window");
    hf_remove(at("first"));
    memcpy(strstr(config, "\"use_cache\" : true"), "\"sliding_window\":0", 18);
    hf_write(&f, at("first"));
    refused(at("first"), NULL, at("first.gguf"), HONE_E_FORMAT, "exaone-moe.attention.sliding_window = 0");
    hf_remove(at("first"));
    hf_routed(&f, false);
    round_trip(&f, NULL, "");
    hf_youtu(&f);
    round_trip(&f, NULL, "");
    f.bf16 = true;
    round_trip(&f, NULL, "");
}

static void jina(void **state)
{
    hf_folder f;
    hf_jina(&f, false);
    rows_and_back(&f, "mean_tokens", false);
    assert_true(says(at("again/rows/config.json"), "\"max_position_embeddings\": 66"));
    forget();
    hf_jina(&f, true);
    hf_write(&f, at("rows"));
    convert(at("rows"), NULL, at("rows.gguf"));
    mkdir(at("again"), 0700);
    convert(at("rows.gguf"), NULL, at("again/rows"));
    check_folder(&f, at("again/rows"), "");
    forget();
}

static void eurobert(void **state)
{
    hf_folder f;
    hf_eurobert(&f);
    rows_and_back(&f, "mean_tokens", false);
    forget();
}

static void check_u32(const hn_gguf *g, const char *key, uint32_t want)
{
    hone_error err;
    uint32_t v;
    bool found = false;
    if (hn_gguf_get_u32(g, key, &v, &found, &err) || !found || v != want) fail_msg("%s is not %u", key, want);
}

/* A list of layers that is no period, and another gate. */
static void modern(void **state)
{
    char config[1024];
    hf_folder f;
    hone_error err;
    hn_gguf *g;
    hf_modern(&f, false);
    rows_and_back(&f, "cls_token", false);
    assert_int_equal(hn_gguf_open(&g, at("rows.gguf"), &err), HONE_OK);
    check_u32(g, "modern-bert.attention.sliding_window", 8);
    check_u32(g, "modern-bert.attention.sliding_window_pattern", 3);
    check_u32(g, "modern-bert.classifier.pooling_type", 1);
    hn_gguf_close(g);
    forget();
    snprintf(config, sizeof config,
             "%.*s,\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\","
             "\"full_attention\"]}",
             (int)strlen(f.config) - 1, f.config);
    memcpy(strstr(config, "\"gelu\""), "\"silu\"", 6);
    f.config = config;
    rows_and_back(&f, NULL, false);
    assert_true(says(at("again/rows/config.json"), "\"hidden_activation\": \"silu\""));
    forget();
    hf_modern(&f, false); /* a list holds, whatever the period is */
    snprintf(config, sizeof config,
             "%.*s,\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\",\"full_attention\"]}",
             (int)strlen(f.config) - 1, f.config);
    memcpy(strstr(config, "every_n_layers\":3"), "every_n_layers\":0", 17);
    f.config = config;
    hf_write(&f, at("rows"));
    convert(at("rows"), NULL, at("rows.gguf"));
    assert_int_equal(hn_gguf_open(&g, at("rows.gguf"), &err), HONE_OK);
    hn_gguf_array a = { 0 };
    assert_int_equal(hn_gguf_get_array(g, "modern-bert.attention.sliding_window_pattern", &a, NULL, &err), HONE_OK);
    assert_true(a.count == 4 && a.elem_type == HONE_KV_BOOL && !a.data[0] && !a.data[2]);
    hn_gguf_close(g);
    forget();
    hf_modern(&f, true);
    rows_and_back(&f, NULL, false);
    assert_true(says(at("again/rows/config.json"), "\"1\": \"b\""));
    assert_true(says(at("again/rows/config.json"), "\"classifier_pooling\": \"mean\""));
    forget();
}

/* Of files of no class in transformers no folder is made; what they are made of is here. */
static void one_way(void **state)
{
    static const char w1[] = "encoder.layers.1.mlp.experts.mlp.w1", w2[] = "encoder.layers.1.mlp.experts.mlp.w2";
    hone_error err;
    hn_gguf *g;
    hf_folder f;
    hf_nomic_moe(&f);
    hf_write(&f, at("rows"));
    convert(at("rows"), "F32", at("rows.gguf"));
    refused(at("rows.gguf"), NULL, at("again"), HONE_E_UNSUPPORTED, "nomic-bert-moe, which hone cannot make a folder");
    assert_int_equal(hn_gguf_open(&g, at("rows.gguf"), &err), HONE_OK);
    check_u32(g, "nomic-bert-moe.context_length", 512);
    check_u32(g, "nomic-bert-moe.expert_count", 3);
    const hn_gguf_tensor *up = hn_gguf_find_tensor(g, "blk.1.ffn_up_exps.weight");
    const hn_gguf_tensor *down = hn_gguf_find_tensor(g, "blk.1.ffn_down_exps.weight");
    assert_true(up && down && up->ne[0] == 16 && up->ne[1] == 24 && up->ne[2] == 3);
    assert_true(down->type == HN_F32 && down->ne[0] == 24 && down->ne[1] == 16 && down->ne[2] == 3);
    for (size_t e = 0; e < 3; e++)
        for (size_t o = 0; o < 16; o++)
            for (size_t i = 0; i < 24; i++) {
                assert_true(((const float *)down->data)[(e * 16 + o) * 24 + i] == hf_value(w2, (e * 24 + i) * 16 + o));
                assert_true(((const float *)up->data)[(e * 24 + i) * 16 + o] == hf_value(w1, (e * 24 + i) * 16 + o));
            }
    hn_gguf_close(g);
    hf_remove(at("rows"));
    /* what all experts add */
    hf_add(&f, "encoder.layers.1.mlp.experts.bias", "16");
    hf_write(&f, at("rows"));
    refused(at("rows"), NULL, at("rows.gguf"), HONE_E_UNSUPPORTED, "encoder.layers.1.mlp.experts.bias is not 0");
    setenv("HONE_IGNORE_KEYS", "mlp.experts.bias", 1);
    convert(at("rows"), NULL, at("rows.gguf"));
    unsetenv("HONE_IGNORE_KEYS");
    hf_remove(at("rows"));
    hf_llama_both(&f);
    hf_write(&f, at("rows"));
    convert(at("rows"), NULL, at("rows.gguf"));
    refused(at("rows.gguf"), NULL, at("again"), HONE_E_UNSUPPORTED, "llama-embed, which hone cannot make a folder");
    hf_remove(at("rows"));
}

static void embedding_gemma(void **state)
{
    hf_folder f;
    hf_embedding_gemma(&f);
    rows_and_back(&f, NULL, false);
    forget();
    rows_and_back(&f, "mean_tokens", true);
    assert_true(says(at("again/rows/config.json"), "\"use_bidirectional_attention\": true"));
    assert_true(says(at("again/rows/2_Dense/config.json"), "\"out_features\": 12"));
    forget();
}

/* Another family's rows may be pooled, too. */
static void pooled_llama(void **state)
{
    hf_folder f;
    hf_llama(&f);
    rows_and_back(&f, "lasttoken", false);
    forget();
}

/* −exp is no one to one of F32: the number that comes back is one that leads to the same file. */
static void decays(void **state)
{
    static const float values[] = { 2.7725887f, 2.3025851f, -4.1f, 0.6931472f, 1.0000001f, -0.3f, 7.3f, 0 };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        hf_folder f;
        hf_kimi(&f);
        for (int k = 0; k < f.n; k++)
            if (strstr(f.t[k].name, "A_log")) f.bad = &f.t[k];
        assert_non_null(f.bad);
        f.bad_at = 1;
        f.bad_value = values[i];
        hf_write(&f, at("decay"));
        convert(at("decay"), "F32", at("decay.gguf"));
        mkdir(at("again"), 0700);
        convert(at("decay.gguf"), NULL, at("again/decay"));
        convert(at("again/decay"), "F32", at("again/decay.gguf"));
        assert_same_files(at("decay.gguf"), at("again/decay.gguf"));
        hf_remove(at("decay"));
        hf_remove(at("again"));
    }
}

/* Blocks become numbers; matrices take the type that is asked for, vectors stay. */
static void types(void **state)
{
    static const struct {
        const char *to, *name;
        hn_type type;
    } all[] = { { NULL, "q8", HN_F32 },
                { "F16", "f16", HN_F16 },
                { "bf16", "bf16", HN_BF16 },
                { "F32", "f32", HN_F32 },
                { "f16", "small", HN_F16 } };
    static const char matrix[] = "lm_head.weight", vector[] = "model.norm.weight";
    hone_error err;
    hf_folder f;
    hf_llama(&f);
    hf_write(&f, at("m"));
    convert(at("m"), "F16", at("m.gguf"));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        hn_ckpt *c;
        convert(at("m.gguf"), i ? all[i].to : "F32", at(all[i].name));
        assert_int_equal(hn_ckpt_new(&c, at(all[i].name), &err), HONE_OK);
        assert_int_equal(hn_ckpt_folder(c, at(all[i].name), &err), HONE_OK);
        assert_int_equal(hn_ckpt_find(c, matrix, strlen(matrix))->type, all[i].type);
        assert_int_equal(hn_ckpt_find(c, vector, strlen(vector))->type, HN_F32);
        hn_ckpt_free(c);
    }
    refused(at("m.gguf"), "Q8_0", at("x"), HONE_E_ARG, "F32, F16 or BF16");
    assert_int_not_equal(access(at("x"), F_OK), 0);
}

/* The file with keys or tensors changed. */
static void rewrite_as(const char *from, const char *to, const char *leave_key, const uint32_t *value,
                       const char *leave_tensor, const char *add)
{
    hone_error err;
    hn_gguf *g;
    hn_gguf_writer *w;
    const char *const except[] = { leave_key, NULL };
    assert_int_equal(hn_gguf_open(&g, from, &err), HONE_OK);
    assert_int_equal(hn_gguf_writer_new(&w, &err), HONE_OK);
    assert_int_equal(hn_gguf_put_all(w, g, leave_key ? except : NULL, &err), HONE_OK);
    if (value) assert_int_equal(hn_gguf_put_u32(w, leave_key, *value, &err), HONE_OK);
    else if (leave_key) assert_int_equal(hn_gguf_put_f32(w, leave_key, 0.25f, &err), HONE_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
            const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
            if (leave_tensor && !strcmp(name, leave_tensor)) continue;
            if (pass) assert_int_equal(hn_gguf_write_data(w, t->data, t->n_bytes, &err), HONE_OK);
            else assert_int_equal(hn_gguf_put_tensor(w, name, t->type, t->ne, t->n_dim, &err), HONE_OK);
        }
        const uint64_t ne = 4;
        const float some[4] = { 1, 3, 2, 5 };
        if (add && pass) assert_int_equal(hn_gguf_write_data(w, some, sizeof some, &err), HONE_OK);
        else if (add) assert_int_equal(hn_gguf_put_tensor(w, add, HN_F32, &ne, 1, &err), HONE_OK);
        if (!pass) assert_int_equal(hn_gguf_write_begin(w, to, &err), HONE_OK);
    }
    assert_int_equal(hn_gguf_write_end(w, &err), HONE_OK);
    hn_gguf_writer_free(w);
    hn_gguf_close(g);
}

static void rewrite(const char *from, const char *to, const char *leave_key, const char *leave_tensor, const char *add)
{
    rewrite_as(from, to, leave_key, NULL, leave_tensor, add);
}
static void rewrite_key(const char *from, const char *to, const char *key, uint32_t value)
{
    rewrite_as(from, to, key, &value, NULL, NULL);
}

/* A file without some keys, as others write it, whose reader takes what they said for granted: the folder says it. */
static void unsaid(const hf_folder *f, const char *const *except)
{
    hone_error err;
    hn_gguf *g;
    hn_gguf_writer *w;
    hf_write(f, at("full"));
    convert(at("full"), NULL, at("full.gguf"));
    assert_int_equal(hn_gguf_open(&g, at("full.gguf"), &err), HONE_OK);
    for (int i = 0; except[i]; i++) assert_true(hn_gguf_find(g, except[i]) >= 0);
    assert_int_equal(hn_gguf_writer_new(&w, &err), HONE_OK);
    assert_int_equal(hn_gguf_put_all(w, g, except, &err), HONE_OK);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        assert_int_equal(hn_gguf_put_tensor(w, name, t->type, t->ne, t->n_dim, &err), HONE_OK);
    }
    assert_int_equal(hn_gguf_write_begin(w, at("less.gguf"), &err), HONE_OK);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
        assert_int_equal(hn_gguf_write_data(w, t->data, t->n_bytes, &err), HONE_OK);
    }
    assert_int_equal(hn_gguf_write_end(w, &err), HONE_OK);
    hn_gguf_writer_free(w);
    hn_gguf_close(g);
    mkdir(at("again"), 0700);
    convert(at("less.gguf"), NULL, at("again/full"));
    convert(at("again/full"), NULL, at("again/full.gguf"));
    assert_same_files(at("full.gguf"), at("again/full.gguf"));
    hf_remove(at("full"));
    hf_remove(at("again"));
}

static void unsaid_keys(void **state)
{
    static const char *const bases[] = { "gemma-embedding.rope.freq_base_swa", NULL };
    static const char *const heads[] = { "gemma-embedding.attention.key_length",
                                         "gemma-embedding.attention.value_length", NULL };
    static const char *const widths[] = { "kimi-linear.expert_feed_forward_length",
                                          "kimi-linear.expert_shared_feed_forward_length", NULL };
    hf_folder f;
    hf_embedding_gemma(&f);
    unsaid(&f, bases);
    unsaid(&f, heads);
    hf_kimi(&f);
    unsaid(&f, widths);
}

/* An element of the tensor becomes NaN, in the file. */
static void poison(const char *path, const char *name)
{
    hone_error err;
    hn_gguf *g;
    assert_int_equal(hn_gguf_open(&g, path, &err), HONE_OK);
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
    assert_non_null(t);
    FILE *o = fopen(path, "r+b");
    const float nan = NAN;
    uint64_t end = 0;
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *u = hn_gguf_tensor_at(g, i);
        uint64_t behind = (u->offset + u->n_bytes + 31) / 32 * 32;
        end = behind > end ? behind : end;
    }
    assert_non_null(o);
    fseek(o, 0, SEEK_END);
    long size = ftell(o), data = size - (long)end;
    assert_true(data > 0);
    fseek(o, data + (long)t->offset + 40, SEEK_SET);
    assert_int_equal(fwrite(&nan, 4, 1, o), 1);
    fclose(o);
    hn_gguf_close(g);
}

static void refusals(void **state)
{
    hf_folder f;
    hf_llama(&f);
    hf_write(&f, at("m2"));
    convert(at("m2"), NULL, at("m2.gguf"));
    rewrite(at("m2.gguf"), at("x.gguf"), NULL, NULL, "mystery.weight");
    refused(at("x.gguf"), NULL, at("x"), HONE_E_UNSUPPORTED,
            "mystery.weight has no place in a folder of class LlamaForCausalLM");
    rewrite(at("m2.gguf"), at("x.gguf"), NULL, "blk.1.ffn_up.weight", NULL);
    refused(at("x.gguf"), NULL, at("x"), HONE_E_UNSUPPORTED, "no tensor blk.1.ffn_up.weight");
    rewrite(at("m2.gguf"), at("x.gguf"), NULL, "token_embd.weight", NULL);
    refused(at("x.gguf"), NULL, at("x"), HONE_E_UNSUPPORTED, "no token_embd.weight");
    rewrite(at("m2.gguf"), at("x.gguf"), NULL, "rope_freqs.weight", "rope_freqs.weight"); /* up and down */
    refused(at("x.gguf"), NULL, at("x"), HONE_E_UNSUPPORTED, "rope_freqs.weight are none that a config");
    rewrite(at("m2.gguf"), at("x.gguf"), "llama.attention.layer_norm_rms_epsilon", NULL,
            NULL); /* another number is one */
    convert(at("x.gguf"), NULL, at("other"));
    assert_int_equal(access(at("other/config.json"), F_OK), 0);
    rewrite(at("m2.gguf"), at("x.gguf"), "llama.attention.key_length", NULL, NULL); /* of a type that none has */
    refused(at("x.gguf"), NULL, at("x"), HONE_E_FORMAT, "llama.attention.key_length");
    assert_int_not_equal(access(at("x"), F_OK), 0); /* nothing is left */
    refused(at("m2.gguf"), NULL, at("m2"), HONE_E_ARG, "there are files in it");
    refused(at("m2.gguf"), NULL, at("x.gguf"), HONE_E_UNSUPPORTED, "already GGUF");
    refused(at("m2.gguf"), NULL, at("m2/config.json"), HONE_E_ARG, "is a file");
    refused(at("m2.gguf"), NULL, at("m2.gguf"), HONE_E_ARG, "m2.gguf");
    hf_llama(&f); /* what is no number */
    hf_write(&f, at("odd"));
    convert(at("odd"), "F32", at("odd.gguf"));
    poison(at("odd.gguf"), "output.weight");
    refused(at("odd.gguf"), NULL, at("x"), HONE_E_NUMERIC, "output.weight: element 10 is NaN");
    rewrite(at("m2.gguf"), at("x.gguf"), "llama.rope.scaling.attn_factor", NULL, NULL);
    refused(at("x.gguf"), NULL, at("x"), HONE_E_UNSUPPORTED, "the angles that its keys llama.rope.* make are none");
    mkdir(at("empty"), 0700);
    convert(at("m2.gguf"), NULL, at("empty"));
    assert_int_equal(access(at("empty/config.json"), F_OK), 0);
}

/* Rows that stay as they are have no module; a classifier's names are texts. */
static void odd_rows(void **state)
{
    hf_folder f;
    hf_bert(&f);
    hf_write(&f, at("m4"));
    hf_modules(at("m4"), "cls_token", false);
    convert(at("m4"), NULL, at("m4.gguf"));
    static const uint32_t none = 0, rank = 4;
    rewrite_key(at("m4.gguf"), at("x.gguf"), "bert.pooling_type", none);
    refused(at("x.gguf"), NULL, at("x"), HONE_E_UNSUPPORTED,
            "bert.pooling_type is nothing that a config of class BertModel can say");
    rewrite_key(at("m4.gguf"), at("x.gguf"), "bert.pooling_type", rank);
    refused(at("x.gguf"), NULL, at("x"), HONE_E_UNSUPPORTED, "bert.pooling_type");
    assert_int_not_equal(access(at("x"), F_OK), 0);
}

/* Asked to stop: nothing is left, and a folder that was there stays. */
static bool stop(void *arg) { return --*(int *)arg < 0; }
static bool intrude(void *arg)
{
    hf_write_text(at("shared"), "note.txt", "mine");
    return true;
}
static void stopped(void **state)
{
    hf_folder f;
    hf_llama(&f);
    hf_write(&f, at("m3"));
    convert(at("m3"), NULL, at("m3.gguf"));
    for (int n = 0; n < 20; n += 3) {
        int left = n;
        hone_error err;
        const hone_progress pr = { .arg = &left, .abort_fn = stop };
        assert_int_equal(hone_convert(at("m3.gguf"), NULL, NULL, at("gone"), &pr, &err), HONE_E_INTERRUPTED);
        assert_int_not_equal(access(at("gone"), F_OK), 0);
    }
    hf_embedding_gemma(&f); /* and nothing of folders in it */
    hf_write(&f, at("m5"));
    hf_modules(at("m5"), "mean_tokens", true);
    convert(at("m5"), NULL, at("m5.gguf"));
    int most = 0;
    for (int n = 0;; n++) {
        int left = n;
        hone_error err;
        const hone_progress pr = { .arg = &left, .abort_fn = stop };
        hone_status st = hone_convert(at("m5.gguf"), NULL, NULL, at("gone"), &pr, &err);
        most = n;
        if (st == HONE_OK) break;
        assert_int_equal(st, HONE_E_INTERRUPTED);
        assert_int_not_equal(access(at("gone"), F_OK), 0);
    }
    assert_true(most > 80); /* its tensors, the last ones in folders of their own */
    hf_remove(at("gone"));
    hone_error err;
    const hone_progress pr = { .abort_fn = intrude }; /* what another puts there meanwhile is not ours */
    mkdir(at("shared"), 0700);
    assert_int_equal(hone_convert(at("m3.gguf"), NULL, NULL, at("shared"), &pr, &err), HONE_E_INTERRUPTED);
    assert_int_equal(unlink(at("shared/note.txt")), 0);
    assert_int_equal(rmdir(at("shared")), 0); /* and nothing else is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama),
        cmocka_unit_test(gemma2),
        cmocka_unit_test(gpt2),
        cmocka_unit_test(types),
        cmocka_unit_test(refusals),
        cmocka_unit_test(stopped),
        cmocka_unit_test(gemma4),
        cmocka_unit_test(gemma3n),
        cmocka_unit_test(kimi_linear),
        cmocka_unit_test(decays),
        cmocka_unit_test(bert),
        cmocka_unit_test(roberta),
        cmocka_unit_test(first_bert),
        cmocka_unit_test(nomic),
        cmocka_unit_test(routed_and_latent),
        cmocka_unit_test(jina),
        cmocka_unit_test(eurobert),
        cmocka_unit_test(modern),
        cmocka_unit_test(one_way),
        cmocka_unit_test(embedding_gemma),
        cmocka_unit_test(unsaid_keys),
        cmocka_unit_test(pooled_llama),
        cmocka_unit_test(odd_rows),
        cmocka_unit_test(drafts_behind),
        cmocka_unit_test(drafts_apart),
        cmocka_unit_test(unsaid_layers),
        cmocka_unit_test(sampling),
        cmocka_unit_test(nemotron),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
