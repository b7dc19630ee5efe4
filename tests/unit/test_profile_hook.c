/* The profile hook: with it and without it the same bits; its events are the operations
 * of the forward pass in order, with layers; bytes and operations are those that follow
 * from the file's tensors and the formula of attention, counted here anew. */
#include "tiny_model.h"

enum { CAP = 4096, LEN = 40 };

typedef struct seen {
    hone_profile_event e[CAP];
    int n;
} seen;

static void see(void *arg, const hone_profile_event *e)
{
    seen *s = arg;
    assert_in_range(s->n, 0, CAP - 1);
    s->e[s->n++] = *e;
}

static int32_t ids[LEN];
static void make_ids(int32_t n_vocab)
{
    for (int i = 0; i < LEN; i++) ids[i] = (int32_t)(hn_rand64(7, (uint64_t)i) % (uint64_t)n_vocab);
}

static tiny *types(void)
{
    tiny *t = tm_new((tm_shape)TM("qwen2", 256, 4, 2, 64, 256, 24, 2, 1e6, 1e-6, .qkv_bias = true));
    tm_retype(t, "blk.0.attn_q.weight", HN_Q4_K);
    tm_retype(t, "blk.0.attn_k.weight", HN_Q4_K);
    tm_retype(t, "blk.0.attn_v.weight", HN_Q6_K);
    tm_retype(t, "blk.0.ffn_down.weight", HN_Q8_0);
    tm_retype(t, "blk.1.ffn_gate.weight", HN_Q4_K);
    tm_retype(t, "blk.1.ffn_up.weight", HN_Q4_K);
    tm_retype(t, "output.weight", HN_Q6_K);
    return t;
}

/* Prompts in chunks, single tokens, a batch of two sequences: all logits, bit by bit. */
static void run_all(hone_session *s, int32_t V, float *logits)
{
    hone_error err = { 0 };
    tm_run(s, 0, ids, 21, logits);
    for (int i = 21; i < 25; i++) tm_run(s, 0, ids + i, 1, logits + i * V);
    tm_run(s, 1, ids, 3, NULL); /* no logits wanted: the last layer is cut short */
    hone_token both[] = { { ids[25], 25, 0, true }, { ids[3], 3, 1, false }, { ids[4], 4, 1, true } };
    if (hone_decode(s, both, 3, logits + 25 * V, &err)) fail_msg("%s", err.message);
}

static void same_bits(void **state)
{
    tiny *models[] = { tm_new(tm_llama), tm_new(tm_llama_tied), tm_new(tm_qwen2),
                       tm_new(tm_qwen3), tm_new(tm_gemma3),     types() };
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        int32_t V = models[k]->s.V;
        make_ids(V);
        hone_model *m = tm_open(models[k]);
        float *plain = calloc((size_t)(27 * V), sizeof *plain), *profiled = calloc((size_t)(27 * V), sizeof *profiled),
              *again = calloc((size_t)(27 * V), sizeof *again);
        seen *got = calloc(1, sizeof *got);
        assert_true(plain && profiled && again && got);
        for (int32_t threads = 1; threads <= 2; threads++) {
            hone_context *c = tm_context(NULL, threads);
            hone_session *a = tm_session(c, m, LEN, 2, 8, HONE_CACHE_F16),
                         *b = tm_session(c, m, LEN, 2, 8, HONE_CACHE_F16);
            run_all(a, V, plain);
            got->n = 0;
            hone_session_set_profile(b, see, got);
            run_all(b, V, profiled);
            int n = got->n;
            assert_in_range(n, 100, CAP);
            assert_memory_equal(plain, profiled, (size_t)(27 * V) * sizeof *plain);
            hone_session_set_profile(b, NULL, NULL); /* off again: not a word, the same */
            hone_error err;
            assert_int_equal(hone_seq_truncate(b, 0, 0, &err), HONE_OK);
            assert_int_equal(hone_seq_truncate(b, 1, 0, &err), HONE_OK);
            run_all(b, V, again);
            assert_int_equal(got->n, n);
            assert_memory_equal(plain, again, (size_t)(27 * V) * sizeof *plain);
            hone_session_free(a);
            hone_session_free(b);
            hone_context_free(c);
        }
        free(plain);
        free(profiled);
        free(again);
        free(got);
        hone_model_close(m);
        tm_free(models[k]);
    }
}

static void is_op(const hone_profile_event *e, const char *op, int32_t layer, int32_t n_tok)
{
    if (strcmp(e->op, op) != 0 || e->layer != layer || e->n_tok != n_tok)
        fail_msg("event %s of layer %d with %d tokens, expected %s, %d, %d", e->op, e->layer, e->n_tok, op, layer,
                 n_tok);
}

static void order_and_times(void **state)
{
    tiny *t = tm_new(tm_llama);
    make_ids(t->s.V);
    hone_model *m = tm_open(t);
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, m, LEN, 1, 16, HONE_CACHE_F32);
    static seen got;
    got.n = 0;
    hone_session_set_profile(s, see, &got);
    const float *logits;
    hone_error err;
    assert_int_equal(hone_prefill(s, ids, 6, &logits, &err), HONE_OK);
    static const char *const layer_ops[] = {
        "attn_qkv", "heads", "attention", "attn_output", "ffn_gate_up", "ffn_down"
    };
    int k = 0;
    is_op(&got.e[k++], "embed", -1, 6);
    is_op(&got.e[k++], "rope_table", -1, 6);
    for (int il = 0; il < 2; il++) {
        int32_t n = 6;
        for (int i = 0; i < 6; i++) {
            if (il == 1 && i == 2) n = 1; /* only the last token's logits are wanted */
            is_op(&got.e[k++], layer_ops[i], il, n);
            if (il == 1 && i == 2) is_op(&got.e[k++], "gather", il, 1);
        }
    }
    is_op(&got.e[k++], "output", -1, 1);
    assert_int_equal(got.n, k);
    for (int i = 0; i < got.n; i++) {
        assert_true(got.e[i].end_ns >= got.e[i].start_ns);
        if (i) assert_true(got.e[i].start_ns >= got.e[i - 1].end_ns);
    }
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
    tm_free(t);
}

/* What stands in the file under a name, with what is added to it. */
static uint64_t stored(const tiny *t, const char *base)
{
    char name[80];
    uint64_t n = 0;
    for (int i = 0; i < t->n_t; i++) {
        snprintf(name, sizeof name, "%s.weight", base);
        bool hit = strcmp(t->t[i].name, name) == 0;
        snprintf(name, sizeof name, "%s.bias", base);
        if (hit || strcmp(t->t[i].name, name) == 0) n += t->t[i].n_bytes;
    }
    assert_true(n > 0);
    return n;
}

static const hone_profile_event *find(const seen *s, const char *op, int32_t layer)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->e[i].op, op) == 0 && s->e[i].layer == layer) return &s->e[i];
    fail_msg("no event %s of layer %d", op, layer);
    return NULL;
}

static void bytes_and_operations(void **state)
{
    tiny *t = types(); /* 256 wide, 4 heads of 64 on 2, feed-forward 256, vocabulary 24 */
    make_ids(t->s.V);
    hone_model *m = tm_open(t);
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, m, LEN, 2, 16, HONE_CACHE_F16);
    static seen got;
    float logits[24];
    tm_run(s, 0, ids, 9, NULL);
    got.n = 0;
    hone_session_set_profile(s, see, &got);
    tm_run(s, 0, ids + 9, 1, logits); /* position 9 */
    const hone_profile_event *e = find(&got, "attn_qkv", 0);
    assert_int_equal(e->bytes, stored(t, "blk.0.attn_q") + stored(t, "blk.0.attn_k") + stored(t, "blk.0.attn_v"));
    assert_string_equal(e->type, "mixed");
    assert_float_equal(e->ops_int8, 2.0 * 256 * (256 + 128 + 128), 0);
    assert_float_equal(e->ops_float, 0, 0);
    e = find(&got, "attn_qkv", 1); /* floats */
    assert_string_equal(e->type, "F32");
    assert_float_equal(e->ops_float, 2.0 * 256 * (256 + 128 + 128), 0);
    e = find(&got, "ffn_gate_up", 1);
    assert_int_equal(e->bytes, stored(t, "blk.1.ffn_gate") + stored(t, "blk.1.ffn_up"));
    assert_string_equal(e->type, "Q4_K");
    assert_float_equal(e->ops_int8, 2.0 * 256 * 512, 0);
    e = find(&got, "ffn_down", 0);
    assert_int_equal(e->bytes, stored(t, "blk.0.ffn_down"));
    assert_string_equal(e->type, "Q8_0");
    e = find(&got, "output", -1);
    assert_int_equal(e->bytes, stored(t, "output"));
    assert_float_equal(e->ops_int8, 2.0 * 256 * 24, 0);
    e = find(&got, "embed", -1);
    assert_int_equal(e->bytes, 256 * sizeof(float));
    e = find(&got, "attention", 1); /* ten positions, keys and values, 2 heads of 64 halves */
    assert_int_equal(e->bytes, 10 * 2 * 2 * 64 * 2);
    assert_float_equal(e->ops_float, 10.0 * 4 * 4 * 64, 0);
    assert_null(e->type);
    assert_int_equal(find(&got, "heads", 0)->bytes, 0);
    /* two sequences in one batch: both caches are read */
    got.n = 0;
    hone_error err;
    hone_token both[] = { { 1, 10, 0, true }, { 2, 0, 1, false }, { 3, 1, 1, false } };
    assert_int_equal(hone_decode(s, both, 3, logits, &err), HONE_OK);
    e = find(&got, "attention", 0);
    assert_int_equal(e->n_tok, 3);
    assert_int_equal(e->bytes, (11 + 2) * 2 * 2 * 64 * 2);
    assert_float_equal(e->ops_float, (11.0 + 1 + 2) * 4 * 4 * 64, 0);
    assert_float_equal(find(&got, "ffn_down", 0)->ops_int8, 3 * 2.0 * 256 * 256, 0);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
    tm_free(t);
}

/* What is copied as it is written to while others hold it, too, is an operation of the call that writes. */
static void copies(void **state)
{
    tiny *t = types();
    make_ids(t->s.V);
    hone_model *m = tm_open(t);
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, m, LEN, 2, 16, HONE_CACHE_F16);
    static seen got;
    hone_error err;
    float logits[24];
    tm_run(s, 0, ids, 9, NULL);
    assert_int_equal(hone_seq_copy(s, 1, 0, &err), HONE_OK);
    got.n = 0;
    hone_session_set_profile(s, see, &got);
    tm_run(s, 1, ids + 9, 1, logits);
    is_op(&got.e[0], "memory_copy", -1, 1);
    assert_int_equal(got.e[0].bytes, 64 * 2 * 2 * 2 * 64 * 2); /* positions, layers, K and V, heads of 64 halves */
    assert_null(got.e[0].type);
    assert_true(got.e[0].end_ns >= got.e[0].start_ns && got.e[1].start_ns >= got.e[0].end_ns);
    is_op(&got.e[1], "embed", -1, 1);
    got.n = 0;
    tm_run(s, 1, ids + 10, 1, logits); /* its own by now */
    is_op(&got.e[0], "embed", -1, 1);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
    tm_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(order_and_times),
        cmocka_unit_test(bytes_and_operations),
        cmocka_unit_test(copies),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
