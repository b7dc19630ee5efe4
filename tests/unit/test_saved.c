/* Files that llama.cpp itself saved: they hold all its numbers, those of other families' formulas too. On published
 * vectors with those keys added: what says nothing is passed over there, and nowhere else. */
#include "optional_files.h"

/* What llama_model_save_to_file writes of every model, whatever its family is. */
static const struct {
    const char *suffix, *type;
    double value, other; /* which would be another formula; NAN: the family may have others */
} saved[] = {
    { "decoder_start_token_id", "INT32", -1, NAN },
    { "activation.situ_beta", "FLOAT32", 1, 2 },
    { "attention.compress_ratios", "UINT32", 0, 4 },
    { "attention.indexer.block_size", "UINT32", 0, 64 },
    { "attention.indexer.kpool_select_tail", "BOOL", 1, 0 },
    { "attention.indexer.types", "UINT32", 0, 1 },
    { "attention.kv_lora_rank_swa", "UINT32", 0, 8 },
    { "attention.rope_pattern", "UINT32", 1, NAN },
    { "attn_logit_softcapping", "FLOAT32", 50, NAN },
    { "expert_group_scale", "FLOAT32", 0.05, 0.5 },
    { "final_logit_softcapping", "FLOAT32", 30, NAN },
    { "hrm.prefix_lm", "BOOL", 0, 1 },
    { "hyper_connection.epsilon", "FLOAT32", 0, 1 },
    { "kda.gate_lower_bound", "FLOAT32", -INFINITY, -5 },
    { "kda.safe_gate", "BOOL", 0, 1 },
    { "posnet.block_count", "UINT32", 0, 1 },
    { "router_logit_softcapping", "FLOAT32", 30, 20 },
    { "pooling_type", "UINT32", 4294967295.0, NAN },
};
enum { N_SAVED = sizeof saved / sizeof *saved };

static void set_number(vector *v, const char *suffix, const char *type, double x)
{
    json_t *j = isinf(x)                  ? json_string("-inf")
                : !strcmp(type, "BOOL")   ? json_boolean(x != 0)
                : strcmp(type, "FLOAT32") ? json_integer((json_int_t)x)
                                          : json_real(x);
    set_key(v, suffix, type, j);
}

/* Each family with those numbers gives the bits it gave; at another value, or in another's file, they are refused. */
static void saved_by_llama_cpp(void **state)
{
    static const struct {
        const char *file, *pattern, *width;
        int of[4];
        bool layers; /* the pattern is of layers that recur */
    } files[] = {
        { "gptoss.json", "attention.sliding_window_pattern", NULL, { 1, 0 }, false },
        { "lfm2moe.json", "attention.recurrent_layers", "expert_feed_forward_length", { 1, 0, 1 }, true },
        { "qwen3next.json", "attention.recurrent_layers", "expert_shared_feed_forward_length", { 1, 0 }, true },
        { "llama4.json", "attention.sliding_window_pattern", NULL, { 1, 1, 1, 0 }, false },
        { "qwen3moe.json", NULL, "expert_feed_forward_length", { 0 }, false },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        float y[2][ROWS];
        vector v = load(files[i].file);
        const int n_layer = (int)number_of(&v, "block_count");
        answer(&v, v.n, y[0]);
        for (int k = 0; k < N_SAVED; k++) set_number(&v, saved[k].suffix, saved[k].type, saved[k].value);
        if (files[i].pattern) set_key(&v, files[i].pattern, "ARRAY:UINT32", numbers(n_layer, files[i].of));
        if (files[i].width) set_key(&v, files[i].width, "UINT32", json_integer(0));
        if (files[i].width) set_key(&v, "expert_weights_norm", "BOOL", json_false());
        if (files[i].width) set_key(&v, "deepstack_mapping", "ARRAY:INT32", numbers(2, (int[]){ -1, -1 }));
        set_key(&v, "classifier.output_labels", "ARRAY:STRING", json_array());
        answer(&v, v.n, y[1]);
        if (memcmp(y[0], y[1], sizeof *y)) fail_msg("%s: other bits", v.name);
        for (int k = 0; k < N_SAVED; k++) {
            if (isnan(saved[k].other)) continue;
            set_number(&v, saved[k].suffix, saved[k].type, saved[k].other);
            refused(&v, saved[k].suffix);
            set_number(&v, saved[k].suffix, saved[k].type, saved[k].value);
        }
        if (files[i].pattern) {
            set_key(&v, files[i].pattern, "ARRAY:UINT32", numbers(n_layer, (int[]){ 2, 2, 2, 2 }));
            if (strcmp(files[i].file, "lfm2moe.json")) refused(&v, files[i].pattern);
            set_key(&v, files[i].pattern, "ARRAY:UINT32", numbers(n_layer, files[i].of));
        }
        set_key(&v, "decoder_start_token_id", NULL, NULL);
        refused(&v, "");
        json_decref(v.j);
    }
}

/* Of latent attention it saves ten times the number that converters write: nothing tells which of both is meant. */
static void saved_multiplier(void **state)
{
    vector v = load("dsv3.json");
    float y[ROWS];
    set_number(&v, saved[0].suffix, saved[0].type, saved[0].value);
    set_number(&v, "rope.scaling.yarn_log_multiplier", "FLOAT32", 0);
    answer(&v, v.n, y);
    set_number(&v, "rope.scaling.yarn_log_multiplier", "FLOAT32", 1);
    refused(&v, "rope.scaling.yarn_log_multiplier = 1");
    json_decref(v.j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_by_llama_cpp),
        cmocka_unit_test(saved_multiplier),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
