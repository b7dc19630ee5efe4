/* What fills a gap ends at every mark of gaps that the vocabulary has, and nothing of the mark is said. A vocabulary
 * that ends whole texts ends no prompt. */
#define _GNU_SOURCE
#include "serve_site.h"

#include "data_files.h"
#include "tiny_model.h"

enum { PRE = 2, N_SPECIAL = 8, N_VOCAB = N_SPECIAL + 256 };

/* A model of random weights over bytes, with all six marks. */
static void make_model(const char *path)
{
    static const char *const marks[] = { "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep" };
    tiny *m = tm_new((tm_shape)TM("llama", 16, 2, 1, 8, 24, N_VOCAB, 2, 10000, 1e-5, .tied = true));
    char name[64];
    tm_put_str(m, "tokenizer.ggml.model", "gpt2");
    tm_put_str(m, "tokenizer.ggml.pre", "gpt-2");
    bb *b = tm_put(m, "tokenizer.ggml.tokens", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_STRING), bb_u64(b, N_VOCAB);
    bb_str(b, "<s>"), bb_str(b, "</s>");
    for (int i = 0; i < 6; i++) snprintf(name, sizeof name, "<|%s|>", marks[i]), bb_str(b, name);
    for (int i = 0; i < 256; i++) df_symbol(name, i), bb_str(b, name);
    b = tm_put(m, "tokenizer.ggml.token_type", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_I32), bb_u64(b, N_VOCAB);
    for (int i = 0; i < N_VOCAB; i++) bb_u32(b, i < N_SPECIAL ? 3 : 1);
    b = tm_put(m, "tokenizer.ggml.merges", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_STRING), bb_u64(b, 0);
    tm_put_u32(m, "tokenizer.ggml.bos_token_id", 0);
    tm_put_u32(m, "tokenizer.ggml.eos_token_id", 1);
    bb_u8(tm_put(m, "tokenizer.ggml.add_bos_token", HONE_KV_BOOL), 1);
    bb_u8(tm_put(m, "tokenizer.ggml.add_eos_token", HONE_KV_BOOL), 1);
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "tokenizer.ggml.%s_token_id", marks[i]);
        tm_put_u32(m, name, (uint32_t)(PRE + i));
    }
    tm_save_raw(m, path);
    tm_free(m);
}

/* What the model says where nothing but token id can come. */
static void says(int port, int id, const char *more, const char *content, int n_tok, const char *type)
{
    char body[300];
    snprintf(body, sizeof body,
             "{\"input_prefix\":\"ab\",\"input_suffix\":\"cd\",\"n_predict\":6,\"temperature\":0,"
             "\"logit_bias\":[[%d,100]]%s}",
             id, more);
    json_t *j = ask_json(port, "POST", "/infill", body, 200);
    assert_string_equal(json_string_value(json_object_get(j, "content")), content);
    assert_int_equal(json_integer_value(json_object_get(j, "tokens_predicted")), n_tok);
    assert_string_equal(json_string_value(json_object_get(j, "stop_type")), type);
    json_decref(j);
}

static void gaps_end_at_marks(void **state)
{
    running r = { .path = tm_path("fim.gguf") };
    make_model(r.path);
    start(&r, 2);
    says(r.port, N_SPECIAL + 'x', "", "xxxxxx", 6, "limit");
    says(r.port, 1, "", "", 1, "eos");
    for (int i = PRE; i < N_SPECIAL; i++) {
        says(r.port, i, "", "", 1, "eos");
        says(r.port, i, ",\"ignore_eos\":true", "", 6, "limit");
    }

    /* elsewhere the mark of a prefix is a token like others */
    json_t *j = ask_json(r.port, "POST", "/completion",
                         "{\"prompt\":\"ab\",\"n_predict\":6,\"temperature\":0,\"logit_bias\":[[2,100]]}", 200);
    assert_int_equal(json_integer_value(json_object_get(j, "tokens_predicted")), 6);
    json_decref(j);
    stop(&r);
}

/* What is gone on with begins as texts do, and has no end. */
static void prompts_go_on(void **state)
{
    static const struct {
        const char *route, *body;
        int n_prompt;
    } rows[] = {
        { "/completion", "{\"prompt\":\"ab\",\"n_predict\":1}", 3 },
        { "/completion", "{\"prompt\":[\"ab\",98],\"n_predict\":1}", 4 },
        { "/infill", "{\"input_prefix\":\"ab\",\"input_suffix\":\"cd\",\"n_predict\":1}", 8 },
    };
    running r = { .path = tm_path("ends.gguf") };
    make_model(r.path);
    start(&r, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *j = ask_json(r.port, "POST", rows[i].route, rows[i].body, 200);
        assert_int_equal(json_integer_value(json_object_get(j, "tokens_evaluated")), rows[i].n_prompt);
        json_decref(j);
    }
    json_t *j = ask_json(r.port, "POST", "/tokenize", "{\"content\":\"ab\",\"add_special\":true}", 200);
    assert_int_equal(json_array_size(json_object_get(j, "tokens")), 4); /* a whole text */
    json_decref(j);
    stop(&r);
}

/* The prompt that an infill makes of its parts. */
static void reads(int port, const char *body, const char *prompt, bool truncated)
{
    json_t *j = ask_json(port, "POST", "/infill", body, 200);
    assert_string_equal(json_string_value(json_object_get(j, "prompt")), prompt);
    assert_int_equal(json_is_true(json_object_get(j, "truncated")), truncated);
    json_decref(j);
}

static char *filled(char *to, char c, int n)
{
    memset(to, c, (size_t)n);
    to[n] = 0;
    return to;
}

/* What a prompt adds stands in front of the gap, as its prefix does, and is cut with it: the end stays. */
static void prompts_end_the_prefix(void **state)
{
    enum { CTX = 512, ROOM = CTX - 256 };
    char body[2000], prompt[2000], a[600], b[600], c[600];
    running r = { .path = tm_path("parts.gguf"), .p.shelf.scheduler.session.n_ctx = CTX };
    make_model(r.path);
    start(&r, 2);
    reads(r.port, "{\"input_prefix\":\"ab\",\"input_suffix\":\"cd\",\"prompt\":\"ef\",\"n_predict\":1}",
          "<s><|fim_pre|>abef<|fim_suf|>cd<|fim_mid|>", false);
    reads(r.port, "{\"input_prefix\":\"\",\"input_suffix\":\"\",\"prompt\":\"ef\",\"n_predict\":1}",
          "<s><|fim_pre|>ef<|fim_suf|><|fim_mid|>", false);

    /* a quarter of the room for the suffix, the rest for what stands in front: here all of the prompt, some prefix */
    snprintf(body, sizeof body, "{\"input_prefix\":\"%s\",\"input_suffix\":\"%s\",\"prompt\":\"%s\",\"n_predict\":1}",
             filled(a, 'a', 300), filled(b, 'b', 300), filled(c, 'c', 100));
    snprintf(prompt, sizeof prompt, "<s><|fim_pre|>%s%s<|fim_suf|>%s<|fim_mid|>",
             filled(a, 'a', ROOM - ROOM / 4 - 8 - 100), c, filled(b, 'b', ROOM / 4));
    reads(r.port, body, prompt, true);

    /* a prompt alone that is longer than the context, which was refused */
    snprintf(body, sizeof body, "{\"input_prefix\":\"ab\",\"input_suffix\":\"cd\",\"prompt\":\"%s\",\"n_predict\":1}",
             filled(c, 'c', 550));
    snprintf(prompt, sizeof prompt, "<s><|fim_pre|>%s<|fim_suf|>cd<|fim_mid|>", filled(c, 'c', ROOM - 2 - 8));
    reads(r.port, body, prompt, true);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(gaps_end_at_marks), cmocka_unit_test(prompts_go_on),
                                        cmocka_unit_test(prompts_end_the_prefix) };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
