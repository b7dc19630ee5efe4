/* Keys and tensors that files of a family may have or lack, on its published vector with one of them added, changed or
 * left out: what it means where it is there, what is meant where it is not, and what is refused by name. */
#include "model/lora_modules.h"
#include "optional_files.h"

/* ---- files ---------------------------------------------------------------------------------------------- */

/* Beside each tensor that ends so one of as many values as it has rows: scale times the rule's. */
static int add_biases(vector *v, const char *matrix, const char *bias, double scale)
{
    char name[96];
    json_t *ts = json_object_get(v->j, "tensors");
    int n = 0;
    for (size_t i = 0, end = json_array_size(ts); i < end; i++) {
        const json_t *t = json_array_get(ts, i);
        const char *stem = json_string_value(json_array_get(t, 0));
        if (!ends(stem, matrix) || stem[strlen(stem) - strlen(matrix) - 1] != '.') continue;
        snprintf(name, sizeof name, "%.*s%s", (int)(strlen(stem) - strlen(matrix)), stem, bias);
        json_int_t rows = json_integer_value(json_array_get(json_array_get(t, 1), 1));
        json_array_append_new(ts, json_pack("[s,[I],f,f]", name, rows, scale, 0.0));
        n++;
    }
    return n;
}

/* ---- what turns ------------------------------------------------------------------------------------------- */

/* rope.scaling.finetuned: without it granite turns; false: nothing does, which is what angles near 0 come to. */
static void granite_turns_unless_told(void **state)
{
    static const char *const files[] = { "granite.json", "granitehybrid.json" };
    for (int i = 0; i < 2; i++) {
        float absent[ROWS], yes[ROWS], no[ROWS], still[ROWS];
        vector v = load(files[i]);
        set_key(&v, "rope.scaling.finetuned", NULL, NULL);
        answer(&v, v.n, absent);
        set_key(&v, "rope.scaling.finetuned", "BOOL", json_true());
        answer(&v, v.n, yes);
        assert_memory_equal(absent, yes, sizeof yes);
        set_key(&v, "rope.scaling.factor", "FLOAT32", json_real(1e6));
        answer(&v, v.n, still);
        set_key(&v, "rope.scaling.finetuned", "BOOL", json_false());
        answer(&v, v.n, no);
        assert_true(apart(&v, no, still, 0, v.n) < 1e-4);
        assert_true(apart(&v, no, yes, 0, v.n) > 1e-3);
        set_key(&v, "rope.scaling.finetuned", "UINT32", json_integer(1));
        refused(&v, "rope.scaling.finetuned");
        json_decref(v.j);
    }
}

/* Factors of angles: all 2 are a scaling by 2. */
static void granitehybrid_has_factors(void **state)
{
    vector v = load("granitehybrid.json");
    float y[3][ROWS];
    json_t *ts = json_object_get(v.j, "tensors");
    set_key(&v, "rope.scaling.finetuned", "BOOL", json_true());
    answer(&v, v.n, y[0]);
    set_key(&v, "rope.scaling.factor", "FLOAT32", json_real(2));
    answer(&v, v.n, y[1]);
    set_key(&v, "rope.scaling.factor", NULL, NULL);
    json_array_append_new(ts, json_pack("[s,[I],f,f]", "rope_freqs.weight",
                                        (json_int_t)number_of(&v, "rope.dimension_count") / 2, 0.0, 2.0));
    answer(&v, v.n, y[2]);
    assert_true(apart(&v, y[1], y[2], 0, v.n) < 1e-5);
    assert_true(apart(&v, y[0], y[2], 0, v.n) > 1e-4);
    json_decref(v.j);
}

/* MiniCPM 4 is granite with factors of short sessions and of long ones: a session of 64 positions takes either. */
static void granite_has_two_factors(void **state)
{
    static const char *const names[] = { "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight" };
    static const struct {
        double factor[3]; /* 0: the file has none */
        int first_context;
    } files[] = { { { 3, 0, 0 }, 0 }, { { 0, 3, 7 }, 64 }, { { 0, 7, 3 }, 8 } };
    float y[3][ROWS];
    for (int k = 0; k < 3; k++) {
        vector v = load("granite.json");
        json_t *ts = json_object_get(v.j, "tensors");
        for (int i = 0; i < 3; i++)
            if (files[k].factor[i] != 0)
                json_array_append_new(ts, json_pack("[s,[I],f,f]", names[i],
                                                    (json_int_t)number_of(&v, "rope.dimension_count") / 2, 0.0,
                                                    files[k].factor[i]));
        set_key(&v, "rope.scaling.finetuned", "BOOL", json_true());
        if (k) set_key(&v, "rope.scaling.type", "STRING", json_string("longrope"));
        if (k) set_key(&v, "rope.scaling.original_context_length", "UINT32", json_integer(files[k].first_context));
        answer(&v, v.n, y[k]);
        if (k) assert_memory_equal(y[0], y[k], sizeof y[0]);
        json_decref(v.j);
    }
}

/* Without rope.scaling.original_context_length the file's context_length is it, also where it has a window. */
static void first_context_is_the_context(void **state)
{
    static const char *const files[] = { "mistral.json", "ministral3.json", "phi4mini.json" };
    static const char original[] = "rope.scaling.original_context_length";
    for (int i = 0; i < 3; i++) {
        float y[3][ROWS];
        vector v = load(files[i]);
        set_key(&v, "context_length", "UINT32", json_integer(8));
        if (i == 0) {
            set_key(&v, "rope.scaling.type", "STRING", json_string("yarn"));
            set_key(&v, "rope.scaling.factor", "FLOAT32", json_real(4));
        }
        for (int k = 0; k < 3; k++) {
            set_key(&v, original, "UINT32", k < 2 ? json_integer(k ? 8 : 512) : NULL);
            if (k == 2) set_key(&v, "attention.sliding_window", "UINT32", json_integer(5));
            answer(&v, v.n, y[k]);
        }
        assert_memory_equal(y[1], y[2], sizeof y[1]);
        assert_true(apart(&v, y[0], y[1], 0, v.n) > 1e-4);
        json_decref(v.j);
    }
}

/* A fourth part of what turns goes by positions that text has not. */
static void sections_of_text(void **state)
{
    vector v = load("qwen35.json");
    float y[2][ROWS];
    answer(&v, v.n, y[0]);
    set_key(&v, "rope.dimension_sections", "ARRAY:INT32", json_pack("[i,i,i,i]", 0, 1, 1, 0));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    set_key(&v, "rope.dimension_sections", "ARRAY:INT32", json_pack("[i,i,i,i]", 1, 0, 0, 1));
    refused(&v, "qwen35.rope.dimension_sections");
    json_decref(v.j);
}

/* The first n rows of each head of d: neighbours become halves, as the converter has it of models that see. */
static json_t *in_halves(const vector *v, const json_t *t, uint64_t d, uint64_t n)
{
    uint64_t ne[4];
    uint32_t n_dim;
    float *f = values_of(v, t, ne, &n_dim);
    uint64_t width = n_dim == 1 ? 1 : ne[0], rows = n_dim == 1 ? ne[0] : ne[1];
    json_t *all = json_array();
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t i = r % d, from = i >= n ? i : i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1;
        for (uint64_t c = 0; c < width; c++)
            json_array_append_new(all, json_real((double)f[(r - i + from) * width + c]));
    }
    free(f);
    return json_pack("[s,O,o]", json_string_value(json_array_get(t, 0)), json_array_get(t, 1), all);
}

/* GLM-4.1V and 4.6V-Flash: the text model of GLM-4 whose heads turn in halves. */
static void glm4_that_sees(void **state)
{
    static const char key[] = "rope.dimension_sections";
    vector v = load("glm4.json");
    float y[3][ROWS];
    json_t *ts = json_object_get(v.j, "tensors");
    uint64_t n_rot = (uint64_t)number_of(&v, "rope.dimension_count"),
             d = (uint64_t)(number_of(&v, "embedding_length") / number_of(&v, "attention.head_count"));
    if (number_of(&v, "attention.key_length")) d = (uint64_t)number_of(&v, "attention.key_length");
    answer(&v, v.n, y[0]);
    for (size_t i = 0; i < json_array_size(ts); i++) {
        const json_t *t = json_array_get(ts, i);
        const char *name = json_string_value(json_array_get(t, 0));
        if (strstr(name, "attn_q.") || strstr(name, "attn_k.")) json_array_set_new(ts, i, in_halves(&v, t, d, n_rot));
    }
    answer(&v, v.n, y[1]);
    assert_true(apart(&v, y[0], y[1], 0, v.n) > 1e-4);
    set_key(&v, key, "ARRAY:INT32", json_pack("[i,i,i,i]", 1, 1, 0, 0));
    answer(&v, v.n, y[2]);
    assert_true(apart(&v, y[0], y[2], 0, v.n) < 1e-5);
    hone_model *m = opened(&v); /* rows of a PEFT folder's modules are in another order, and not in all of a head */
    assert_true(m->hp.rope_neox);
    assert_non_null(hn_modules_refused(m));
    hone_model_close(m);
    set_key(&v, key, "ARRAY:INT32", json_pack("[i,i,i,i]", 0, 0, 0, 0)); /* none */
    answer(&v, v.n, y[2]);
    assert_memory_equal(y[1], y[2], sizeof y[1]);
    set_key(&v, key, "ARRAY:INT32", json_pack("[i,i,i,i]", 1, 1, 0, 1));
    refused(&v, "glm4.rope.dimension_sections");
    json_decref(v.j);
}

/* ---- latent attention ------------------------------------------------------------------------------------- */

/* The first layer alone; its queries by a factor. */
static void one_layer(vector *v, double queries)
{
    json_t *ts = json_object_get(v->j, "tensors");
    for (size_t i = json_array_size(ts); i-- > 0;) {
        json_t *t = json_array_get(ts, i);
        const char *name = json_string_value(json_array_get(t, 0));
        if (starts(name, "blk.") && !starts(name, "blk.0.")) json_array_remove(ts, i);
        else if (ends(name, "attn_q_b.weight"))
            for (size_t k = 2; k < 4; k++)
                json_array_set_new(t, k, json_real(queries * json_number_value(json_array_get(t, k))));
    }
    set_key(v, "block_count", "UINT32", json_integer(1));
}

/* Queries that grow with their positions: by 1 + s·ln(1 + ⌊pos/length⌋), the length by its key or the first context. */
static void latent_queries_grow(void **state)
{
    static const char *const files[] = { "dsv3.json", "mistral4.json" };
    enum { LENGTH = 4 };
    const double s = 0.5;
    for (int i = 0; i < 2; i++) {
        float y[ROWS], by[ROWS];
        vector v = load(files[i]);
        one_layer(&v, 1);
        set_key(&v, "attention.temperature_scale", "FLOAT32", json_real(s));
        for (int from_key = 1; from_key >= 0; from_key--) {
            set_key(&v, "attention.temperature_length", "UINT32", from_key ? json_integer(LENGTH) : NULL);
            if (!from_key) set_key(&v, "rope.scaling.original_context_length", "UINT32", json_integer(LENGTH));
            answer(&v, v.n, y);
            for (int t = 0; t < v.n; t += LENGTH) {
                vector w = load(files[i]);
                one_layer(&w, 1 + s * log(1 + t / LENGTH));
                if (!from_key) set_key(&w, "rope.scaling.original_context_length", "UINT32", json_integer(LENGTH));
                answer(&w, w.n, by);
                int to = t + LENGTH < v.n ? t + LENGTH : v.n;
                assert_true(apart(&v, y, by, t, to) < 1e-5);
                assert_true(t == 0 ? apart(&v, y, by, to, v.n) > 1e-4 : apart(&v, y, by, 0, LENGTH) > 1e-4);
                json_decref(w.j);
            }
        }
        json_decref(v.j);
    }
}

/* ---- windows ---------------------------------------------------------------------------------------------- */

static void lfm2_has_windows(void **state)
{
    enum { WINDOW = 3 };
    vector v = load("lfm2.json");
    float all[ROWS], wide[ROWS], y[ROWS], again[ROWS];
    answer(&v, v.n, all);
    set_key(&v, "attention.sliding_window", "UINT32", json_integer(v.n));
    answer(&v, v.n, wide);
    assert_memory_equal(all, wide, sizeof all);
    set_key(&v, "attention.sliding_window", "UINT32", json_integer(WINDOW));
    answer(&v, v.n, y);
    assert_int_equal(memcmp(y, all, (size_t)(WINDOW * v.n_vocab) * sizeof *y), 0);
    for (int t = WINDOW; t < v.n; t++) assert_true(apart(&v, y, all, t, t + 1) > 1e-4);
    for (int chunk = 1; chunk < v.n; chunk += 4) {
        answer(&v, chunk, again);
        assert_memory_equal(again, y, sizeof y);
    }
    hone_model *m = opened(&v);
    for (int32_t il = 0; il < m->hp.n_layer; il++)
        assert_int_equal(m->plan[il].window, m->plan[il].mixer == HN_MIXER_ATTN ? WINDOW : 0);
    hone_model_close(m);
    json_decref(v.j);
}

/* The vector with its two layers over and over. */
static void repeat_layers(vector *v, int n_layer)
{
    char name[96];
    json_t *ts = json_object_get(v->j, "tensors");
    for (size_t i = 0, end = json_array_size(ts); i < end; i++) {
        json_t *t = json_array_get(ts, i);
        int il, n = 0;
        if (sscanf(json_string_value(json_array_get(t, 0)), "blk.%d.%n", &il, &n) != 1 || !n) continue;
        for (int to = il + 2; to < n_layer; to += 2) {
            json_t *copy = json_deep_copy(t);
            snprintf(name, sizeof name, "blk.%d.%s", to, json_string_value(json_array_get(t, 0)) + n);
            json_array_set_new(copy, 0, json_string(name));
            json_array_append_new(ts, copy);
        }
    }
    set_key(v, "block_count", "UINT32", json_integer(n_layer));
}

/* Of 64 layers, EXAONE 4.0 32B, three of four have a window of 4096 where no key says another, and they alone turn. */
static void exaone4_of_64_layers(void **state)
{
    vector v = load("exaone4.json");
    repeat_layers(&v, 64);
    for (int32_t window = 4096; window > 0; window -= 4089) {
        if (window != 4096) set_key(&v, "attention.sliding_window", "UINT32", json_integer(window));
        hone_model *m = opened(&v);
        for (int32_t il = 0; il < m->hp.n_layer; il++) {
            bool sees_all = il % 4 == 3;
            assert_int_equal(m->plan[il].window, sees_all ? 0 : window);
            assert_int_equal(m->plan[il].rope < 0, sees_all);
        }
        hone_model_close(m);
    }
    json_decref(v.j);
}

/* ---- Gemma 3n --------------------------------------------------------------------------------------------- */

/* Files without the key mean 30, as the models have it. */
static void gemma3n_is_capped(void **state)
{
    vector v = load("gemma3n.json");
    float y[3][ROWS];
    answer(&v, v.n, y[0]);
    set_key(&v, "final_logit_softcapping", NULL, NULL);
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    set_key(&v, "final_logit_softcapping", "FLOAT32", json_real(0));
    answer(&v, v.n, y[2]);
    double most = 0;
    for (int i = 0; i < v.n * v.n_vocab; i++) {
        double cap = 30 * tanh((double)y[2][i] / 30);
        most = fmax(most, fabs(cap - (double)y[0][i]));
    }
    assert_true(most < 1e-5);
    assert_true(apart(&v, y[0], y[2], 0, v.n) > 1e-4);
    json_decref(v.j);
}

/* Caps that a file of gemma2 means without saying so stand in the folder that is made of it. */
static void caps_go_back(void **state)
{
    static const char *const caps[] = { "attn_logit_softcapping", "final_logit_softcapping" };
    static const double want[] = { 50, 30 };
    for (int i = 0; i < 2; i++) {
        char folder[200], path[240];
        hone_error err = { 0 };
        json_error_t e;
        vector v = load("gemma2.json");
        set_key(&v, caps[i], NULL, NULL);
        save_without(&v, tm_path("optional.gguf"), NULL);
        snprintf(folder, sizeof folder, "%s", tm_path("folder"));
        if (hone_convert(tm_path("optional.gguf"), NULL, NULL, folder, NULL, &err)) fail_msg("%s", err.message);
        snprintf(path, sizeof path, "%s/config.json", folder);
        json_t *config = json_load_file(path, 0, &e);
        assert_non_null(config);
        assert_true(json_number_value(json_object_get(config, caps[i])) == want[i]);
        json_decref(config);
        json_decref(v.j);
        snprintf(path, sizeof path, "%s/model.safetensors", folder);
        assert_int_equal(unlink(path), 0);
        snprintf(path, sizeof path, "%s/config.json", folder);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(folder), 0);
    }
}

/* The number of layers without keys, as first converters wrote it. */
static void gemma3n_shares_a_real_number(void **state)
{
    static const char key[] = "attention.shared_kv_layers";
    static const double bad[] = { 1.5, -1, 99 };
    vector v = load("gemma3n_shared.json");
    float y[2][ROWS];
    int64_t n = number_of(&v, key);
    assert_true(n > 0);
    answer(&v, v.n, y[0]);
    set_key(&v, key, "FLOAT32", json_real((double)n));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        set_key(&v, key, "FLOAT32", json_real(bad[i]));
        refused(&v, "gemma3n.attention.shared_kv_layers");
    }
    json_decref(v.j);
}

/* ---- other words for the same ----------------------------------------------------------------------------- */

static void other_words(void **state)
{
    float y[3][ROWS];
    vector v = load("nemotronh.json"); /* an epsilon by the other name; the first name goes before */
    set_key(&v, "attention.layer_norm_rms_epsilon", "FLOAT32", json_real(0.125));
    set_key(&v, "attention.layer_norm_epsilon", "FLOAT32", json_real(0.5));
    answer(&v, v.n, y[0]);
    set_key(&v, "attention.layer_norm_rms_epsilon", NULL, NULL);
    answer(&v, v.n, y[1]);
    set_key(&v, "attention.layer_norm_epsilon", "FLOAT32", json_real(0.125));
    answer(&v, v.n, y[2]);
    assert_memory_equal(y[0], y[2], sizeof y[0]);
    assert_true(apart(&v, y[0], y[1], 0, v.n) > 1e-4);
    set_key(&v, "attention.layer_norm_epsilon", NULL, NULL);
    refused(&v, "nemotron_h.attention.layer_norm_rms_epsilon are missing");
    json_decref(v.j);
    v = load("hunyuan.json"); /* a mixture of one */
    answer(&v, v.n, y[0]);
    set_key(&v, "expert_count", "UINT32", json_integer(1));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    set_key(&v, "expert_count", "UINT32", json_integer(2));
    refused(&v, "hunyuan-dense.expert_count = 2");
    json_decref(v.j);
}

/* ---- converters that write more ---------------------------------------------------------------------------- */

/* The same file under another family's name. */
static void call_arch(vector *v, const char *to)
{
    const char *from = json_string_value(json_object_get(v->j, "arch"));
    json_t *kv, *all = json_object_get(v->j, "kv");
    size_t i;
    json_array_foreach(all, i, kv)
    {
        char key[96];
        const char *old = json_string_value(json_array_get(kv, 0));
        if (!strcmp(old, "general.architecture")) json_array_set_new(kv, 2, json_string(to));
        if (!starts(old, from) || old[strlen(from)] != '.') continue;
        snprintf(key, sizeof key, "%s%s", to, old + strlen(from));
        json_array_set_new(kv, 0, json_string(key));
    }
    json_object_set_new(v->j, "arch", json_string(to));
}

/* Granite 4.0 without layers that recur (micro, 1B, 350M) has the numbers of such layers all the same, an array of
 * heads of keys, and, where it is the text of a model that sees, which layers get images. */
static void dense_granite_of_4(void **state)
{
    static const char *const numbers[] = { "conv_kernel", "inner_size", "state_size", "time_step_rank", "group_count" };
    static const char *const arch[] = { "granite", "granitemoe" };
    float y[3][ROWS];
    for (int k = 0; k < 2; k++) {
        vector v = load("granite.json");
        answer(&v, v.n, y[0]);
        json_t *heads = json_array(), *images = json_array();
        for (int64_t il = 0; il < number_of(&v, "block_count"); il++) {
            json_array_append_new(heads, json_integer(number_of(&v, "attention.head_count_kv")));
            json_array_append_new(images, json_integer(il - 1));
        }
        call_arch(&v, arch[k]);
        for (int i = 0; i < 5; i++) {
            char key[32];
            snprintf(key, sizeof key, "ssm.%s", numbers[i]);
            set_key(&v, key, "UINT32", json_integer(4 + i));
        }
        set_key(&v, "attention.head_count_kv", "ARRAY:INT32", heads);
        set_key(&v, "deepstack_mapping", "ARRAY:INT32", images);
        set_key(&v, "rope.scaling.finetuned", "BOOL", json_true());
        set_key(&v, "expert_count", "UINT32", json_integer(0));
        set_key(&v, "expert_used_count", "UINT32", json_integer(0));
        set_key(&v, "expert_shared_feed_forward_length", "UINT32", json_integer(8));
        answer(&v, v.n, y[1]);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        json_decref(v.j);
    }
}

/* Latent attention without experts: Youtu-LLM 2B has no key of them but the number of dense layers, which is all. */
static void latent_without_experts(void **state)
{
    static const char *const keys[] = { "expert_count",
                                        "expert_used_count",
                                        "expert_feed_forward_length",
                                        "expert_shared_count",
                                        "expert_shared_feed_forward_length",
                                        "expert_group_count",
                                        "expert_group_used_count",
                                        "expert_gating_func",
                                        "expert_weights_norm",
                                        "expert_weights_scale" };
    float y[2][ROWS];
    vector v = load("dsv3.json");
    one_layer(&v, 1);
    answer(&v, v.n, y[0]);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) set_key(&v, keys[i], NULL, NULL);
    set_key(&v, "leading_dense_block_count", "UINT32", json_integer(1));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    json_decref(v.j);
}

/* ---- experts ------------------------------------------------------------------------------------------------ */

/* expert_gating_func as files number it; what hone has of its own has no number there. */
static void gating_by_files_numbers(void **state)
{
    static const char *const any[] = { "dots1.json", "minimaxm2.json", "nemotronhmoe.json" };
    for (int i = 0; i < 3; i++) {
        vector v = load(any[i]);
        set_key(&v, "expert_gating_func", "UINT32", json_integer(4));
        refused(&v, "expert_gating_func = 4");
        json_decref(v.j);
    }
    vector v = load("llama4.json");
    float y[2][ROWS];
    answer(&v, v.n, y[0]);
    set_key(&v, "expert_gating_func", "UINT32", json_integer(2));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    for (int i = 1; i < 6; i += i == 1 ? 2 : 1) {
        set_key(&v, "expert_gating_func", "UINT32", json_integer(i));
        refused(&v, "expected 2");
    }
    json_decref(v.j);
}

/* A key of another family that the user has ignored is nothing: no buffer is made for experts of that width. */
static void ignored_is_ignored(void **state)
{
    float y[2][ROWS];
    for (int i = 0; i < 2; i++) {
        vector v = load("qwen3moe.json");
        if (i) set_key(&v, "moe_latent_size", "UINT32", json_integer(8));
        if (i) assert_int_equal(setenv("HONE_IGNORE_KEYS", "qwen3moe.moe_latent_size", 1), 0);
        answer(&v, PAGE, y[i]);
        unsetenv("HONE_IGNORE_KEYS");
        json_decref(v.j);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
}

/* Where experts take less than the stream, both ways are there, of that width. */
static void latent_experts_have_both_ways(void **state)
{
    static const char *const ways[] = { "blk.1.ffn_latent_down.weight", "blk.3.ffn_latent_up.weight" };
    for (int i = 0; i < 2; i++) {
        vector v = load("nemotronsuper.json");
        json_t *ts = json_object_get(v.j, "tensors");
        for (size_t k = json_array_size(ts); k-- > 0;)
            if (!strcmp(json_string_value(json_array_get(json_array_get(ts, k), 0)), ways[i])) json_array_remove(ts, k);
        refused(&v, ways[i]);
        json_decref(v.j);
    }
    float y[2][ROWS];
    vector v = load("nemotronsuper.json");
    answer(&v, v.n, y[0]);
    set_key(&v, "moe_latent_size", NULL, NULL); /* as llama.cpp saves it: the tensors say it */
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    json_decref(v.j);
    v = load("dots1.json");
    set_key(&v, "moe_latent_size", "UINT32", json_integer(8));
    refused(&v, "dots1.moe_latent_size = 8");
    json_decref(v.j);
}

/* Weights that stay as they are would be other weights if they added up to 1; those of the chosen do. */
static void weights_that_are_never_normed(void **state)
{
    static const char *const files[] = { "olmoe.json", "qwen2moe.json", "llama4.json", "gptoss.json" };
    for (int i = 0; i < 4; i++) {
        vector v = load(files[i]);
        float y[2][ROWS];
        answer(&v, v.n, y[0]);
        set_key(&v, "expert_weights_norm", "BOOL", i < 3 ? json_false() : json_true());
        answer(&v, v.n, y[1]);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        set_key(&v, "expert_weights_norm", "BOOL", json_true());
        if (i < 3) refused(&v, "expert_weights_norm = true");
        json_decref(v.j);
    }
    vector v = load("qwen3moe.json"); /* and the other way round; but what llama.cpp saved (test_saved) */
    set_key(&v, "expert_weights_norm", "BOOL", json_false());
    refused(&v, "expert_weights_norm = false, expected true");
    json_decref(v.j);
}

/* DeepSeek's and Ling's weights add up to 1 where the key says so: the last row of logits, as tests/dev/
 * families_reference.py has it in double, which llama.cpp is within 4e-7 of (bailingmoe, experts in all layers). */
static void weights_normed_by_the_key(void **state)
{
    static const float last[] = { -0.861937F, 1.3681F,    -0.038615F, 0.296569F, -1.19977F,  1.355039F,
                                  -0.211465F, -0.497177F, -0.441965F, 0.301264F, -0.935944F, -0.724953F,
                                  -0.377885F, 0.30778F,   -0.148185F, -0.20471F };
    float y[2][ROWS];
    vector v = load("deepseek.json");
    const int32_t n = v.n_vocab;
    assert_int_equal(n, sizeof last / sizeof *last);
    answer(&v, v.n, y[0]);
    for (int k = 0; k < 2; k++) {
        set_key(&v, "expert_weights_norm", "BOOL", k ? json_true() : json_false());
        answer(&v, v.n, y[1]);
        if (!k) assert_memory_equal(y[0], y[1], sizeof y[0]);
    }
    double most = 0;
    for (int32_t i = 0; i < n; i++) most = fmax(most, fabs((double)y[1][(v.n - 1) * n + i] - (double)last[i]));
    if (!(most < 2e-5)) fail_msg("%.3g from the reference", most);
    assert_true(apart(&v, y[0], y[1], v.n - 1, v.n) > 1e-2);
    json_decref(v.j);
}

/* ---- biases ------------------------------------------------------------------------------------------------- */

/* Where the file has them they are added: none is what zeros are, others are not. */
static void biases_are_added(void **state)
{
    static const struct {
        const char *file, *part;
    } list[] = {
        { "gemma3.json", "attn_q" },
        { "gemma3.json", "attn_v" },
        { "gemma3.json", "attn_output" },
        { "lfm2.json", "attn_k" },
        { "lfm2.json", "attn_output" },
        { "falconh1.json", "attn_v" },
        { "falconh1.json", "ffn_gate" },
        { "falconh1.json", "ffn_down" },
        { "nemotronh.json", "attn_v" },
        { "nemotronh.json", "ffn_up" },
        { "nemotronh.json", "ffn_down" },
        { "granitehybrid.json", "attn_v" },
        { "granitehybrid.json", "attn_output" },
        { "qwen35.json", "attn_q" },
        { "qwen3next.json", "attn_v" },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char matrix[32], bias[32];
        float y[3][ROWS];
        snprintf(matrix, sizeof matrix, "%s.weight", list[i].part);
        snprintf(bias, sizeof bias, "%s.bias", list[i].part);
        for (int k = 0; k < 3; k++) {
            vector v = load(list[i].file);
            if (k) assert_true(add_biases(&v, matrix, bias, k == 1 ? 0 : 0.5) > 0);
            answer(&v, v.n, y[k]);
            if (k == 1) assert_true(apart(&v, y[0], y[1], 0, v.n) == 0);
            if (k == 2 && !(apart(&v, y[0], y[2], 0, v.n) > 1e-4)) fail_msg("%s: %s without effect", v.name, bias);
            json_decref(v.j);
        }
    }
}

/* ---- layers that keep nothing ----------------------------------------------------------------------------- */

/* Layers a and b change places, b −1: a goes. */
static void move_layers(vector *v, int a, int b)
{
    json_t *ts = json_object_get(v->j, "tensors");
    for (size_t i = json_array_size(ts); i-- > 0;) {
        json_t *t = json_array_get(ts, i);
        char name[96];
        int il;
        const char *old = json_string_value(json_array_get(t, 0));
        if (sscanf(old, "blk.%d.", &il) != 1 || (il != a && il != b)) continue;
        if (b < 0) {
            json_array_remove(ts, i);
            continue;
        }
        snprintf(name, sizeof name, "blk.%d%s", il == a ? b : a, strchr(old + 4, '.'));
        json_array_set_new(t, 0, json_string(name));
    }
}

/* One tap keeps nothing of what came before; still such a layer runs over all rows, and gives the last alone. */
static void one_tap(void **state)
{
    for (int k = 0; k < 2; k++) {
        vector v = load("lfm2.json"); /* a convolution, then attention */
        json_t *ts = json_object_get(v.j, "tensors");
        float all[ROWS];
        const float *last;
        hone_error err = { 0 };
        size_t i;
        json_t *t;
        json_array_foreach(ts, i, t)
        {
            if (ends(json_string_value(json_array_get(t, 0)), "shortconv.conv.weight"))
                json_array_set_new(json_array_get(t, 1), 0, json_integer(1));
        }
        set_key(&v, "shortconv.l_cache", "UINT32", json_integer(1));
        set_key(&v, "attention.head_count_kv", "ARRAY:INT32", k ? json_pack("[i,i]", 2, 0) : json_pack("[i]", 0));
        move_layers(&v, k ? 0 : 1, k ? 1 : -1);
        if (!k) set_key(&v, "block_count", "UINT32", json_integer(1));
        answer(&v, v.n, all);
        hone_model *m = opened(&v);
        hone_context *c = tm_context(NULL, 1);
        hone_session *s = tm_session(c, m, PAGE, 1, v.n, HONE_CACHE_F32);
        assert_int_equal(hone_append(s, 0, v.tok, v.n, &last, &err), HONE_OK);
        assert_memory_equal(last, all + (v.n - 1) * v.n_vocab, (size_t)v.n_vocab * sizeof *last);
        hone_session_free(s);
        hone_context_free(c);
        hone_model_close(m);
        json_decref(v.j);
    }
}

/* Layers whose tensors attend need heads, whatever the file says. */
static void no_heads(void **state)
{
    vector v = load("lfm2.json");
    set_key(&v, "attention.head_count", "UINT32", json_integer(0));
    set_key(&v, "attention.head_count_kv", "UINT32", json_integer(0));
    refused(&v, "head");
    json_decref(v.j);
    v = load("lfm2.json");
    json_t *ts = json_object_get(v.j, "tensors"); /* rows of queries alone in the matrix of all */
    json_array_append_new(ts, json_pack("[s,[i,i],f,f]", "blk.1.attn_qkv.weight", 32, 32, 0.25, 0.0));
    for (size_t i = json_array_size(ts); i-- > 0;) {
        const char *name = json_string_value(json_array_get(json_array_get(ts, i), 0));
        if (!strcmp(name, "blk.1.attn_q.weight") || !strcmp(name, "blk.1.attn_k.weight") ||
            !strcmp(name, "blk.1.attn_v.weight"))
            json_array_remove(ts, i);
    }
    set_key(&v, "attention.head_count_kv", "UINT32", json_integer(0));
    refused(&v, "layer 1 attends, with 4 heads and 0 of keys");
    json_decref(v.j);
}

/* Nemotron 51B has layers that multiply instead of attending: heads without keys. hone has none; nor two numbers. */
static void layers_without_a_half(void **state)
{
    vector v = load("deci.json");
    set_key(&v, "attention.head_count", "ARRAY:INT32", json_pack("[i,i,i,i]", 4, 4, 0, 4));
    refused(&v, "blk.1.attn_norm.weight"); /* one matrix in place of attention, and its norm */
    set_key(&v, "attention.head_count_kv", "ARRAY:INT32", json_pack("[i,i,i,i]", 2, 0, 2, 2));
    refused(&v, "layer 2 has no heads of queries and 2 of keys");
    set_key(&v, "attention.head_count", "ARRAY:INT32", json_pack("[i,i,i,i]", 4, 0, 0, 2));
    refused(&v, "deci.attention.head_count[3] = 2");
    set_key(&v, "attention.head_count", "ARRAY:INT32", json_pack("[i,i,i,i]", 0, 0, 0, 0));
    set_key(&v, "attention.head_count_kv", "ARRAY:INT32", json_pack("[i,i,i,i]", 0, 0, 0, 0));
    refused(&v, "blk.0.attn_q.weight");
    json_decref(v.j);
}

/* The vector without the tensors whose names begin so. */
static void cut_layer(vector *v, const char *stem)
{
    json_t *ts = json_object_get(v->j, "tensors");
    for (size_t i = json_array_size(ts); i-- > 0;)
        if (starts(json_string_value(json_array_get(json_array_get(ts, i), 0)), stem)) json_array_remove(ts, i);
}

/* Such a layer's module is called otherwise, and no other layer's so. */
static void check_names_of_one_matrix(const vector *v)
{
    static const char *const names[] = { "self_attn.linear_attn", "self_attn.o_proj" };
    hone_model *m;
    hone_error err = { 0 };
    save_without(v, tm_path("one.gguf"), NULL);
    if (hone_model_open(&m, tm_path("one.gguf"), NULL, &err)) fail_msg("%s", err.message);
    for (int il = 0; il < 4; il += 3) { /* blk.0: the matrix; blk.3: attention */
        char tensor[96], full[96], module[HN_MAX_PART][HN_LORA_NAME];
        hn_lora_place at, to[HN_MAX_PART];
        bool alone;
        for (int k = 0; k < 2; k++) {
            int len = snprintf(full, sizeof full, "model.layers.%d.%s", il, names[k]);
            bool found = hn_module_find(&at, tensor, &alone, m, (hone_str){ full, (size_t)len });
            assert_int_equal(found, (il == 0) == (k == 0));
        }
        snprintf(tensor, sizeof tensor, "blk.%d.attn_output.weight", il);
        assert_true(hn_module_tensor(&at, m, tensor));
        assert_int_equal(hn_modules_of(module, to, m, &at), 1);
        snprintf(full, sizeof full, "model.layers.%d.%s", il, names[il != 0]);
        assert_string_equal(module[0], full);
    }
    hone_model_close(m);
}

/* One matrix in place of attention: what attention is at the first position where values are what they are made of; at
 * others it is the same. */
static void one_matrix_for_attention(void **state)
{
    enum { E = 32 };
    float y[2][ROWS];
    vector v = load("deci.json");
    json_t *ts = json_object_get(v.j, "tensors"), *one = json_array();
    for (int i = 0; i < E * E; i++) json_array_append_new(one, json_real(i / E == i % E));
    cut_layer(&v, "blk.3.attn_output");
    json_array_append_new(ts, json_pack("[s,[i,i],f,f]", "blk.3.attn_output.weight", E, E, 0.0, 0.0));
    cut_layer(&v, "blk.0.attn_v");
    cut_layer(&v, "blk.0.attn_k");
    json_array_append_new(ts, json_pack("[s,[i,i],o]", "blk.0.attn_v.weight", E, E, one));
    json_array_append_new(ts, json_pack("[s,[i,i],f,f]", "blk.0.attn_k.weight", E, E, 0.25, 0.0));
    set_key(&v, "attention.head_count_kv", "ARRAY:INT32", json_pack("[i,i,i,i]", 4, 0, 0, 2));
    answer(&v, v.n, y[0]);
    cut_layer(&v, "blk.0.attn_q");
    cut_layer(&v, "blk.0.attn_k");
    cut_layer(&v, "blk.0.attn_v");
    set_key(&v, "attention.head_count_kv", "ARRAY:INT32", json_pack("[i,i,i,i]", 0, 0, 0, 2));
    answer(&v, v.n, y[1]);
    assert_true(apart(&v, y[0], y[1], 0, 1) < 1e-5);
    assert_true(apart(&v, y[0], y[1], 1, v.n) > 1e-3);
    check_names_of_one_matrix(&v);
    memcpy(y[0], y[1], sizeof *y);
    v.tok[0] = v.tok[3]; /* no row looks at another */
    answer(&v, 2, y[1]);
    assert_memory_equal(y[1], y[0] + 3 * v.n_vocab, (size_t)v.n_vocab * sizeof **y);
    json_decref(v.j);
}

/* Mamba-2 has no other layers. */
static void mamba2_never_attends(void **state)
{
    vector v = load("mamba2.json");
    float absent[ROWS], said[ROWS];
    answer(&v, v.n, absent);
    set_key(&v, "attention.head_count", "UINT32", json_integer(1));
    set_key(&v, "attention.head_count_kv", "UINT32", json_integer(1));
    answer(&v, v.n, said);
    assert_memory_equal(absent, said, sizeof said);
    json_decref(v.j);
}

/* Numbers of experts, and their widths, that differ between layers: those of a layer whose experts give nothing change
 * nothing, those of another do. */
static void experts_differ_between_layers(void **state)
{
    float y[2][ROWS];
    vector v = load("qwen3moe.json");
    json_t *ts = json_object_get(v.j, "tensors");
    for (size_t i = 0; i < json_array_size(ts); i++)
        if (!strcmp(json_string_value(json_array_get(json_array_get(ts, i), 0)), "blk.1.ffn_down_exps.weight"))
            json_array_set_new(json_array_get(ts, i), 2, json_real(0));
    const int used = (int)number_of(&v, "expert_used_count"), ff = (int)number_of(&v, "expert_feed_forward_length");
    answer(&v, v.n, y[0]);
    set_key(&v, "expert_used_count", "ARRAY:UINT32", numbers(2, (int[]){ used, 1 }));
    answer(&v, 3, y[1]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    set_key(&v, "expert_used_count", "ARRAY:UINT32", numbers(2, (int[]){ 1, used }));
    answer(&v, v.n, y[1]);
    assert_true(apart(&v, y[0], y[1], 0, v.n) > 1e-3);
    set_key(&v, "expert_used_count", "ARRAY:UINT32", numbers(2, (int[]){ used, 0 }));
    refused(&v, "expert_used_count[1] = 0");
    set_key(&v, "expert_used_count", "ARRAY:UINT32", numbers(2, (int[]){ 0, 0 }));
    refused(&v, "expert_used_count is 0 in all layers");
    set_key(&v, "expert_used_count", "ARRAY:UINT32", numbers(2, (int[]){ used, 1 }));
    for (size_t i = 0; i < json_array_size(ts); i++) {
        json_t *t = json_array_get(ts, i), *ne = json_array_get(t, 1);
        const char *name = json_string_value(json_array_get(t, 0));
        if (strstr(name, "blk.1.ffn_") && strstr(name, "_exps"))
            json_array_set_new(ne, strstr(name, "down") ? 0 : 1, json_integer(ff / 2));
    }
    refused(&v, "blk.1.ffn_");
    set_key(&v, "expert_feed_forward_length", "ARRAY:UINT32", numbers(2, (int[]){ ff, ff / 2 }));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    json_decref(v.j);
    v = load("nemotronsuper.json"); /* as its converter writes them: layers without experts have 0 */
    answer(&v, v.n, y[0]);
    set_key(&v, "expert_used_count", "ARRAY:UINT32", numbers(4, (int[]){ 0, 3, 0, 3 }));
    set_key(&v, "expert_feed_forward_length", "ARRAY:UINT32", numbers(4, (int[]){ 0, 28, 0, 28 }));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    json_decref(v.j);
}

/* The width of each of two shared experts, which are one matrix: Ling's files. */
static void width_of_each_shared_expert(void **state)
{
    float y[2][ROWS];
    vector v = load("bailingmoe2.json");
    const int64_t width = number_of(&v, "expert_shared_feed_forward_length");
    answer(&v, v.n, y[0]);
    set_key(&v, "expert_shared_feed_forward_length", "UINT32", json_integer(width / 2));
    refused(&v, "ffn_gate_shexp");
    set_key(&v, "expert_shared_count", "UINT32", json_integer(2));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    json_decref(v.j);
}

static void longrope_has_factors(void **state)
{
    vector v = load("mistral.json");
    set_key(&v, "rope.scaling.type", "STRING", json_string("longrope"));
    refused(&v, "rope_factors_long.weight");
    json_decref(v.j);
}

/* Mistral's own format goes by llama's name: a multiplier of 1 takes YaRN's magnitude away. */
static void llama_of_mistrals_format(void **state)
{
    float y[3][ROWS];
    vector v = load("mistral.json");
    set_key(&v, "rope.scaling.type", "STRING", json_string("yarn"));
    set_key(&v, "rope.scaling.factor", "FLOAT32", json_real(4));
    set_key(&v, "rope.scaling.original_context_length", "UINT32", json_integer(16));
    answer(&v, v.n, y[0]);
    set_key(&v, "rope.scaling.yarn_log_multiplier", "FLOAT32", json_real(1));
    answer(&v, v.n, y[1]);
    assert_true(apart(&v, y[0], y[1], 0, v.n) > 1e-4);
    set_key(&v, "rope.scaling.yarn_log_multiplier", NULL, NULL);
    set_key(&v, "rope.scaling.attn_factor", "FLOAT32", json_real(1 / (1 + 0.1 * log(4))));
    answer(&v, v.n, y[2]);
    assert_true(apart(&v, y[1], y[2], 0, v.n) < 1e-5);
    json_decref(v.j);
}

/* Groups of DeepSeek V2 compete by their best expert: where one is asked for, it is the one that it is without groups.
 * Those of V3 compete by two. */
static void groups_of_two_kinds(void **state)
{
    static const struct {
        const char *file;
        bool same;
    } files[] = { { "dsv2lite.json", true }, { "dsv3.json", false } };
    for (int i = 0; i < 2; i++) {
        float y[2][ROWS];
        bool same = true;
        vector v = load(files[i].file);
        set_key(&v, "expert_used_count", "UINT32", json_integer(1));
        set_key(&v, "expert_group_used_count", "UINT32", json_integer(1));
        for (int groups = 1; groups <= 4; groups *= 2) {
            set_key(&v, "expert_group_count", "UINT32", json_integer(groups));
            answer(&v, v.n, y[groups > 1]);
            same = same && (groups == 1 || !memcmp(y[0], y[1], sizeof *y));
        }
        assert_int_equal(same, files[i].same);
        json_decref(v.j);
    }
}

/* Queries that are compressed, and no matrix that does: nothing is computed of what is not there. */
static void compressed_queries_have_both_ways(void **state)
{
    static const char *const files[] = { "dsv2lite.json", "kimilinear.json" };
    for (int i = 0; i < 2; i++) {
        vector v = load(files[i]);
        set_key(&v, "attention.q_lora_rank", "UINT32", json_integer(16));
        refused(&v, "attn_q_a.weight is missing");
        json_decref(v.j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(granite_turns_unless_told),
        cmocka_unit_test(granitehybrid_has_factors),
        cmocka_unit_test(granite_has_two_factors),
        cmocka_unit_test(first_context_is_the_context),
        cmocka_unit_test(sections_of_text),
        cmocka_unit_test(glm4_that_sees),
        cmocka_unit_test(latent_queries_grow),
        cmocka_unit_test(lfm2_has_windows),
        cmocka_unit_test(exaone4_of_64_layers),
        cmocka_unit_test(gemma3n_is_capped),
        cmocka_unit_test(caps_go_back),
        cmocka_unit_test(gemma3n_shares_a_real_number),
        cmocka_unit_test(other_words),
        cmocka_unit_test(dense_granite_of_4),
        cmocka_unit_test(latent_without_experts),
        cmocka_unit_test(gating_by_files_numbers),
        cmocka_unit_test(latent_experts_have_both_ways),
        cmocka_unit_test(ignored_is_ignored),
        cmocka_unit_test(weights_that_are_never_normed),
        cmocka_unit_test(weights_normed_by_the_key),
        cmocka_unit_test(biases_are_added),
        cmocka_unit_test(one_tap),
        cmocka_unit_test(no_heads),
        cmocka_unit_test(layers_without_a_half),
        cmocka_unit_test(mamba2_never_attends),
        cmocka_unit_test(one_matrix_for_attention),
        cmocka_unit_test(experts_differ_between_layers),
        cmocka_unit_test(groups_of_two_kinds),
        cmocka_unit_test(width_of_each_shared_expert),
        cmocka_unit_test(llama_of_mistrals_format),
        cmocka_unit_test(longrope_has_factors),
        cmocka_unit_test(compressed_queries_have_both_ways),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
