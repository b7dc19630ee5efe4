/* Keys of single families: where they stand, what a file means that does not say them, and what is wrong with them. On
 * published vectors with these keys changed. */
#include "optional_files.h"

/* Apertus' numbers stand below no family's name: one of each layer, or of all. */
static void xielu_of_layers(void **state)
{
    static const char eps[] = "xielu.eps";
    float y[2][ROWS];
    vector v = load("apertus.json");
    json_t *kv = json_object_get(v.j, "kv"), *list = NULL;
    size_t at = 0;
    while (strcmp(json_string_value(json_array_get(json_array_get(kv, at), 0)), eps)) at++;
    answer(&v, v.n, y[0]);
    json_array_set_new(kv, at, json_pack("[s,s,f]", eps, "FLOAT32", -1e-6));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    json_array_set_new(kv, at, json_pack("[s,s,o]", eps, "ARRAY:FLOAT32", list = json_array()));
    for (int i = 0; i < 2; i++) json_array_append_new(list, json_real(-1e-6));
    refused(&v, "xielu.eps has 2 values, expected one for each of 3 layers");
    json_array_remove(kv, at);
    refused(&v, "xielu.eps is missing");
    json_decref(v.j);
}

/* What SmallThinker's and MiniCPM 3's files do not say, and the two experts of Phi. */
static void said_by_the_family(void **state)
{
    static const int mistakes[] = { 1, 3 }, twos[] = { 2, 2 };
    float y[3][ROWS];
    vector v = load("smallthinker.json");
    answer(&v, v.n, y[0]);
    set_key(&v, "attention.sliding_window_pattern", "UINT32", json_integer(4));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    set_key(&v, "attention.sliding_window", "UINT32", json_integer(5));
    answer(&v, v.n, y[1]);
    assert_true(apart(&v, y[0], y[1], 0, 5) == 0 && apart(&v, y[0], y[1], 5, v.n) > 0.01);
    json_decref(v.j);
    v = load("minicpm3.json");
    answer(&v, v.n, y[0]);
    set_key(&v, "embedding_scale", "FLOAT32", json_real(12));
    set_key(&v, "logit_scale", "FLOAT32", json_real(32.0 / 256));
    set_key(&v, "attention.value_length", "UINT32", json_integer(8));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    static const char *const none[] = { "embedding_scale", "residual_scale", "logit_scale",
                                        "attention.key_length_mla" };
    for (int i = 0; i < 4; i++)
        set_key(&v, none[i], i < 3 ? "FLOAT32" : "UINT32", i < 3 ? json_real(0) : json_integer(0));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    set_key(&v, "embedding_scale", "FLOAT32", json_real(6));
    answer(&v, v.n, y[2]);
    assert_true(apart(&v, y[0], y[2], 0, v.n) > 0.01);
    json_decref(v.j);
    v = load("cohere2moe.json");
    answer(&v, v.n, y[0]);
    set_key(&v, "attention.layer_norm_rms_epsilon", "FLOAT32", json_real(0));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    set_key(&v, "attention.layer_norm_rms_epsilon", "FLOAT32", json_real(1e-5)); /* another norm */
    answer(&v, v.n, y[2]);
    assert_true(apart(&v, y[0], y[2], 0, v.n) > 0.01);
    set_key(&v, "attention.layer_norm_epsilon", "FLOAT32", json_real(0)); /* as llama.cpp saves that file */
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[1], y[2], sizeof y[1]);
    json_decref(v.j);
    v = load("phimoe.json");
    for (int i = 0; i < 2; i++) {
        set_key(&v, "expert_used_count", "UINT32", json_integer(mistakes[i]));
        refused(&v, "expected 2 in all layers");
    }
    set_key(&v, "expert_used_count", "UINT32", json_integer(2));
    answer(&v, v.n, y[0]);
    set_key(&v, "expert_used_count", "ARRAY:UINT32", numbers(2, twos)); /* as llama.cpp saves it, with other zeros */
    set_key(&v, "attention.layer_norm_epsilon", "FLOAT32", json_real(0));
    answer(&v, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    json_decref(v.j);
}

/* Of two names of the norms' epsilon a file has either; without both both are told. */
static void either_epsilon(void **state)
{
    static const char *const files[] = { "cohere2moe.json", "phimoe.json", "nemotronh.json", "nemotronhmoe.json" };
    static const char layer[] = "attention.layer_norm_epsilon", rms[] = "attention.layer_norm_rms_epsilon";
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        float y[2][ROWS];
        char words[160];
        vector v = load(files[i]);
        const char *arch = json_string_value(json_object_get(v.j, "arch"));
        answer(&v, v.n, y[0]);
        set_key(&v, layer, "FLOAT32", json_real(1e-5));
        set_key(&v, rms, NULL, NULL);
        answer(&v, v.n, y[1]);
        if (i) assert_memory_equal(y[0], y[1], sizeof y[0]);
        set_key(&v, layer, "FLOAT32", json_real(-1));
        refused(&v, layer);
        set_key(&v, layer, NULL, NULL);
        snprintf(words, sizeof words, "%s.%s and %s.%s are missing", arch, layer, arch, rms);
        refused(&v, words);
        set_key(&v, rms, "FLOAT32", json_real(-1));
        refused(&v, rms);
        set_key(&v, rms, "FLOAT32", json_real(0));
        refused(&v, rms); /* alone, or beside another that is none: named with its value, not missing */
        set_key(&v, layer, "FLOAT32", json_real(0));
        refused(&v, "epsilon = 0");
        json_decref(v.j);
    }
}

/* Of what a file says of the function of gates the family's own is heard, and no other. */
static void activation_is_the_familys(void **state)
{
    static const struct {
        const char *file, *word, *other;
    } of[] = { { "apertus.json", "xielu", "silu" },
               { "smallthinker.json", "relu", "silu" },
               { "arcee.json", "relu2", "silu" },
               { "nemotronh.json", "relu2", "silu" } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        float y[2][ROWS];
        char words[96];
        vector v = load(of[i].file);
        answer(&v, v.n, y[0]);
        set_key(&v, "hidden_activation", "STRING", json_string(of[i].word));
        answer(&v, v.n, y[1]);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        set_key(&v, "hidden_activation", "STRING", json_string(of[i].other));
        snprintf(words, sizeof words, "hidden_activation = \"%s\", expected %s", of[i].other, of[i].word);
        refused(&v, words);
        json_decref(v.j);
    }
}

/* Phi's sessions of more positions than it was trained for at first take other factors: here of 64, or of 8. */
static void phi_has_two_factors(void **state)
{
    static const char *const names[] = { "rope_factors_long.weight", "rope_factors_short.weight" };
    float y[3][ROWS];
    vector v = load("phimoe.json");
    json_t *ts = json_object_get(v.j, "tensors"), *t;
    size_t i;
    answer(&v, v.n, y[0]);
    set_key(&v, "rope.scaling.original_context_length", "UINT32", json_integer(8));
    answer(&v, v.n, y[1]);
    json_array_foreach(ts, i, t)
    {
        const char *name = json_string_value(json_array_get(t, 0));
        for (int k = 0; k < 2; k++)
            if (!strcmp(name, names[k])) {
                json_array_set_new(t, 0, json_string(names[!k]));
                break;
            }
    }
    answer(&v, v.n, y[2]);
    assert_memory_equal(y[0], y[2], sizeof y[0]);
    assert_true(apart(&v, y[0], y[1], 0, v.n) > 0.01);
    json_decref(v.j);
}

/* Without the second norm halves stand side by side; what is left of it is told by what is missing. */
static void bias_of_no_norm(void **state)
{
    vector v = load("stablelm.json");
    json_t *ts = json_object_get(v.j, "tensors");
    for (size_t i = json_array_size(ts); i-- > 0;)
        if (ends(json_string_value(json_array_get(json_array_get(ts, i), 0)), ".ffn_norm.weight"))
            json_array_remove(ts, i);
    refused(&v, "blk.0.ffn_norm.weight is missing, though blk.0.ffn_norm.bias is there");
    json_decref(v.j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xielu_of_layers),     cmocka_unit_test(said_by_the_family),
        cmocka_unit_test(either_epsilon),      cmocka_unit_test(activation_is_the_familys),
        cmocka_unit_test(phi_has_two_factors), cmocka_unit_test(bias_of_no_norm),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
