/* Files as llama.cpp's converter makes them (tests/golden/families) become folders, and those files again: every
 * number of every tensor, and every key but those that say what is so without them. */
#include "family_vectors.h"

#include <dirent.h>
#include <sys/stat.h>

static void clear(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char sub[600];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(sub, sizeof sub, "%s/%s", path, e->d_name);
        unlink(sub);
    }
    if (d) closedir(d);
    rmdir(path);
}

/* Ends a key in one of the words? */
static bool one_of(hone_str key, const char *const *list)
{
    for (; *list; list++) {
        size_t n = strlen(*list);
        if (key.len > n && !memcmp(key.ptr + key.len - n, *list, n) && key.ptr[key.len - n - 1] == '.') return true;
    }
    return false;
}

static void same_keys(const char *name, const hn_gguf *a, const hn_gguf *b)
{
    /* what holds without it: no scaling, a whole head turns, one group; the usual order of layers */
    static const char *const unsaid[] = { "scaling.type",
                                          "scaling.factor",
                                          "scaling.original_context_length",
                                          "scaling.yarn_attn_factor",
                                          "scaling.finetuned",
                                          "rope.dimension_count",
                                          "expert_group_count",
                                          "expert_group_used_count",
                                          "attention.recurrent_layers",
                                          NULL };
    /* one value for all layers, or one for each; what a norm says, too; the last place of a float; of latent rows what
     * nobody reads */
    static const char *const otherwise[] = {
        "attention.sliding_window_pattern", "feed_forward_length",   "activation_sparsity_scale",
        "attention.value_length",           "use_parallel_residual", NULL
    };
    for (uint64_t i = 0; i < hn_gguf_n_kv(a); i++) {
        char key[128];
        hone_kv kv;
        hn_gguf_kv(a, i, &kv);
        if (!strncmp(kv.key.ptr, "general.", 8) || !strncmp(kv.key.ptr, "tokenizer.", 10)) continue;
        snprintf(key, sizeof key, "%.*s", (int)kv.key.len, kv.key.ptr);
        int64_t k = hn_gguf_find(b, key);
        if (k < 0 && !one_of(kv.key, unsaid)) fail_msg("%s: %s is lost", name, key);
        if (k < 0 || one_of(kv.key, otherwise)) continue;
        hone_str x = hn_gguf_kv_raw(a, i), y = hn_gguf_kv_raw(b, (uint64_t)k);
        if (x.len != y.len || memcmp(x.ptr, y.ptr, x.len)) fail_msg("%s: %s is another", name, key);
    }
}

static void same_tensors(const char *name, const hn_gguf *a, const hn_gguf *b)
{
    assert_int_equal(hn_gguf_n_tensors(a), hn_gguf_n_tensors(b));
    for (uint64_t i = 0; i < hn_gguf_n_tensors(a); i++) {
        const hn_gguf_tensor *x = hn_gguf_tensor_at(a, i);
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)x->name.len, x->name.ptr);
        const hn_gguf_tensor *y = hn_gguf_find_tensor(b, key);
        if (!y || y->type != HN_F32 || y->n_bytes != x->n_bytes) fail_msg("%s: %s is none, or another", name, key);
        if (strstr(key, "ssm_a")) continue; /* −exp(log −a) */
        if (memcmp(x->data, y->data, x->n_bytes)) fail_msg("%s: %s has other numbers", name, key);
    }
}

/* Families whose folders hone does not write (docs/CONVERT.md). */
static bool has_no_folder(const char *name)
{
    static const char *const names[] = { "afmoe",      "apertus",       "bloom",      "mpt",           "cohere2moe",
                                         "deci",       "deepseek",      "jamba",      "jambadense",    "maincoder",
                                         "minicpm3",   "nemotronsuper", "orion",      "phimoe",        "smallthinker",
                                         "graniteswa", "granitemoeswa", "laguna",     "lagunaelement", "qwen4exp",
                                         "step35",     "mimo2",         "deepseek32", "glmdsa",        "plamo3",
                                         "talkie",     "openelm",       "dbrx",       "museglimmer",   "hrm",
                                         "spark2_5" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static void refused(const vector *v)
{
    hone_error err = { 0 };
    save_without(v, tm_path("a.gguf"), NULL);
    if (hone_convert(tm_path("a.gguf"), NULL, NULL, tm_path("folder"), NULL, &err) != HONE_E_UNSUPPORTED)
        fail_msg("%s: not refused", v->name);
    unlink(tm_path("a.gguf"));
}

static void round_trip(const vector *v)
{
    char file[200], folder[200], again[200];
    hone_error err = { 0 };
    hn_gguf *a, *b;
    snprintf(file, sizeof file, "%s", tm_path("a.gguf"));
    snprintf(folder, sizeof folder, "%s", tm_path("folder"));
    snprintf(again, sizeof again, "%s", tm_path("b.gguf"));
    save_without(v, file, NULL);
    if (hone_convert(file, NULL, NULL, folder, NULL, &err)) fail_msg("%s: %s", v->name, err.message);
    if (hone_convert(folder, NULL, "F32", again, NULL, &err)) fail_msg("%s: %s", v->name, err.message);
    assert_int_equal(hn_gguf_open(&a, file, &err), HONE_OK);
    assert_int_equal(hn_gguf_open(&b, again, &err), HONE_OK);
    same_keys(v->name, a, b);
    same_tensors(v->name, a, b);
    hn_gguf_close(a);
    hn_gguf_close(b);
    unlink(file);
    unlink(again);
    clear(folder);
}

static void all(void **state)
{
    int n = 0;
    DIR *d = opendir(FOLDER);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len < 5 || strcmp(e->d_name + len - 5, ".json")) continue;
        vector v = load(e->d_name);
        /* its class has gate and up of experts apart; the file has them in one */
        if (has_no_folder(v.name)) refused(&v);
        else if (strcmp(v.name, "mistral4")) round_trip(&v);
        json_decref(v.j);
        n++;
    }
    closedir(d);
    assert_int_equal(n, N_VECTOR);
}

/* Groups of DeepSeek V2 have a method of their own there. */
static void groups_of_v2(void **state)
{
    vector v = load("dsv2lite.json");
    json_t *kv = json_object_get(v.j, "kv");
    json_array_append_new(kv, json_pack("[s,s,i]", "deepseek2.expert_group_count", "UINT32", 4));
    json_array_append_new(kv, json_pack("[s,s,i]", "deepseek2.expert_group_used_count", "UINT32", 2));
    round_trip(&v);
    json_decref(v.j);
}

/* A folder that hone wrote, under another class that has the same tensors. */
static void call_class(const char *folder, const char *class, const char *type, bool eyes)
{
    char path[300];
    json_error_t e;
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *o = json_load_file(path, 0, &e);
    if (!o) fail_msg("%s: %s", path, e.text);
    json_object_set_new(o, "model_type", json_string(type));
    json_object_set_new(o, "architectures", json_pack("[s]", class));
    if (eyes) json_object_del(o, "attention_bias"); /* what these classes always have, or never */
    json_object_del(o, "use_qk_norm");
    if (eyes) o = json_pack("{s:[s],s:o,s:{}}", "architectures", class, "text_config", o, "vision_config");
    assert_int_equal(json_dump_file(o, path, 0), 0);
    json_decref(o);
}

static void classes_of_one_formula(void **state)
{
    static const struct {
        const char *vector, *class, *type;
        bool eyes;
    } list[] = { { "glm4moe.json", "SolarOpenForCausalLM", "solar_open", false },
                 { "glm4.json", "Glm4vForConditionalGeneration", "glm4v_text", true },
                 { "qwen3moe.json", "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text", true } };
    char file[200], folder[200], again[200];
    hone_error err = { 0 };
    snprintf(file, sizeof file, "%s", tm_path("a.gguf"));
    snprintf(folder, sizeof folder, "%s", tm_path("folder"));
    snprintf(again, sizeof again, "%s", tm_path("b.gguf"));
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        hn_gguf *a, *b;
        vector v = load(list[i].vector);
        save_without(&v, file, NULL);
        if (hone_convert(file, NULL, NULL, folder, NULL, &err)) fail_msg("%s: %s", v.name, err.message);
        call_class(folder, list[i].class, list[i].type, list[i].eyes);
        if (hone_convert(folder, NULL, "F32", again, NULL, &err)) fail_msg("%s: %s", list[i].class, err.message);
        assert_int_equal(hn_gguf_open(&a, file, &err), HONE_OK);
        assert_int_equal(hn_gguf_open(&b, again, &err), HONE_OK);
        same_keys(v.name, a, b);
        same_tensors(v.name, a, b);
        hn_gguf_close(a);
        hn_gguf_close(b);
        unlink(file);
        unlink(again);
        clear(folder);
        json_decref(v.j);
    }
}

/* Falcon is Phi's formula, or GPT-NeoX', without the biases that their classes have. */
static void biases_of_classes(void **state)
{
    static const char *const names[] = { "phi2.json", "gptneox.json" };
    for (size_t i = 0; i < 2; i++) {
        vector v = load(names[i]);
        json_t *ts = json_object_get(v.j, "tensors");
        for (size_t k = json_array_size(ts); k-- > 0;) {
            const char *name = json_string_value(json_array_get(json_array_get(ts, k), 0));
            if (strstr(name, "bias") && !strstr(name, "norm")) json_array_remove(ts, k);
        }
        save_without(&v, tm_path("a.gguf"), NULL);
        hone_model *m;
        hone_error err = { 0 };
        if (hone_model_open(&m, tm_path("a.gguf"), NULL, &err)) fail_msg("%s: %s", v.name, err.message); /* it runs */
        hone_model_close(m);
        refused(&v);
        json_decref(v.j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(all), cmocka_unit_test(groups_of_v2),
                                        cmocka_unit_test(biases_of_classes), cmocka_unit_test(classes_of_one_formula) };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
