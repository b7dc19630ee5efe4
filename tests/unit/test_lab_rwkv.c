/* The laboratory on recurrent models: a profile from any depth, the state in the ledger and
 * in samples, bytes of a token, a depth that changes no memory. */
#include "lab/bench/bench.h"
#include "lab/machine/ledger.h"
#include "lab/bench/profile.h"
#include "lab/bench/sample.h"
#include "lab/inside/bench_stages.h"
#include "lab/record/record.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { E = 64, N = 32, LAYERS = 3, VOCAB = 300 };
static char path[2][64];
static hone_context *ctx;

static int make(void **state)
{
    static const char *const shapes[] = {
        "{\"arch\":\"rwkv7\",\"n_layer\":3,\"n_embd\":64,\"head_dim\":32,\"n_ff\":96,\"n_vocab\":300,\"rank_decay\":8,"
        "\"rank_iclr\":4,\"rank_value\":4,\"rank_gate\":12}",
        "{\"arch\":\"rwkv6\",\"n_layer\":3,\"n_embd\":64,\"head_dim\":32,\"n_ff\":96,\"n_vocab\":300,\"rank_mix\":4,"
        "\"rank_decay\":8,\"rescale_every\":2}"
    };
    char config[64];
    snprintf(config, sizeof config, "/tmp/hone-lab-rwkv-%d.json", (int)getpid());
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(config, "w");
        if (!f) return -1;
        fputs(shapes[i], f);
        fclose(f);
        snprintf(path[i], sizeof path[i], "/tmp/hone-lab-rwkv-%d-%d.gguf", i, (int)getpid());
        if (hone_synth(&(hone_synth_params){ .config_path = config, .type = i ? "F16" : "Q8_0" }, path[i], NULL,
                       NULL) != HONE_OK)
            return -1;
    }
    unlink(config);
    return hone_context_new(&ctx, &(hone_context_params){ .n_threads = 2 }, NULL) == HONE_OK ? 0 : -1;
}

static int clean(void **state)
{
    hone_context_free(ctx);
    unlink(path[0]);
    unlink(path[1]);
    return 0;
}

static hone_model *open_model(int i)
{
    hone_model *m;
    hone_error err;
    if (hone_model_open(&m, path[i], &(hone_model_params){ .packed = "off" }, &err) != HONE_OK)
        fail_msg("%s", err.message);
    return m;
}

static hone_session *new_session(const hone_model *m, int32_t n_ctx)
{
    hone_session *s;
    hone_error err;
    if (hone_session_new(&s, ctx, m, &(hone_session_params){ .n_ctx = n_ctx, .n_seq = 1, .n_chunk = 16 }, &err) !=
        HONE_OK)
        fail_msg("%s", err.message);
    return s;
}

static const size_t state_bytes = (size_t)LAYERS * (2 * E + E * N) * 4;

/* Every pair of calls starts from one state, at any depth, round after round: else the answers with the
 * hook and without would differ, which the profile calls invalid. */
static void profile_from_any_depth(void **state)
{
    for (int i = 0; i < 2; i++)
        for (int32_t depth = 0; depth <= 37; depth += 37) {
            hone_model *m = open_model(i);
            hone_session *s = new_session(m, 200);
            hn_profile p;
            hone_error err;
            const hn_profile_params pp = { .n_prompt = 40, .n_gen = 12, .depth = depth, .rounds = 3, .n_chunk = 16 };
            if (hn_profile_run(&p, s, m, &pp, &err) != HONE_OK) fail_msg("%s", err.message);
            if (p.verdict.state == HN_INVALID) fail_msg("%s", p.verdict.reason);
            assert_int_equal(p.lost, 0);
            assert_int_equal(p.phase[HN_PROFILE_PREFILL].n_call, 3);
            assert_int_equal(p.phase[HN_PROFILE_DECODE].n_call, 36);
            assert_int_equal(hone_seq_length(s, 0), depth + 40 + 12);
            int wkv = 0, shift = 0;
            for (int k = 0; k < p.phase[HN_PROFILE_DECODE].n_op; k++) {
                const hn_profile_op *op = &p.phase[HN_PROFILE_DECODE].op[k];
                if (strcmp(op->name, "wkv") == 0) {
                    wkv++;
                    assert_int_equal(op->all.calls, 36 * LAYERS);
                    assert_int_equal(op->all.bytes, 36 * LAYERS * 2 * E * N * 4); /* the state, read and written */
                }
                shift += strcmp(op->name, "token_shift") == 0;
                assert_string_not_equal(op->name, "memory_copy"); /* nobody but the profile holds the state, too */
            }
            assert_int_equal(wkv, 1);
            assert_int_equal(shift, 1);
            hn_profile_free(&p);
            hone_session_free(s);
            hone_model_close(m);
        }
}

static void ledger_has_a_state(void **state)
{
    static hn_ledger l;
    hone_error err;
    hn_ledger_start(&l);
    hone_model *m = open_model(0);
    hn_ledger_model(&l);
    hn_ledger_vocabulary(&l);
    hone_session *s = new_session(m, 0);
    hone_model_info info;
    int32_t ids[100];
    const float *logits;
    hone_model_get_info(m, &info);
    assert_int_equal(info.state_bytes, state_bytes);
    hn_bench_ids(ids, 100, 0, 0, m);
    assert_int_equal(hone_prefill(s, ids, 100, &logits, NULL), HONE_OK);
    hone_status st = hn_ledger_end(&l, s, &info, path[0], &err);
    if (st == HONE_E_UNSUPPORTED) {
        printf("SKIP: %s\n", err.message);
        skip();
    }
    assert_int_equal(st, HONE_OK);
    int found = 0;
    for (int i = 0; i < l.n; i++) {
        assert_string_not_equal(l.part[i].name, "kv_cache");
        if (strcmp(l.part[i].name, "state") != 0) continue;
        found++;
        assert_true(l.part[i].reserved >= state_bytes && l.part[i].reserved <= 10 * state_bytes);
        assert_true(l.part[i].resident >= (double)state_bytes &&
                    l.part[i].resident <= (double)l.part[i].reserved + 8192);
    }
    assert_int_equal(found, 1);
    hn_look look;
    hn_look_at(&look, m, s);
    assert_int_equal(look.cache, -1);
    assert_true(look.state < 0 || look.state >= (int64_t)state_bytes);
    hone_session_free(s);
    hone_model_close(m);
}

/* What a token must move: weights once, the state in and out; what a prompt multiplies: matrices, and the
 * state of each head five times two operations an element. */
static void bytes_and_work(void **state)
{
    hone_model *m = open_model(0);
    hone_model_info info;
    hn_work w, all;
    hone_model_get_info(m, &info);
    assert_int_equal(hn_bytes_per_token(&info), info.bytes_per_token + 2 * state_bytes);
    assert_int_equal(hn_work_of(&w, path[0], NULL), HONE_OK);
    /* Q8_0: four square matrices and the block; F16 and F32: the low-rank pairs, layer 0 without v */
    assert_true(w.int8_layers == LAYERS * (4 * E * E + 2 * E * 96));
    assert_true(w.float_layers == LAYERS * 2 * E * (8 + 4 + 12) + (LAYERS - 1) * 2 * E * 4);
    assert_true(w.int8_head == E * VOCAB && w.float_head == 0);
    all = w;
    hn_work_add(&all, &info);
    assert_int_equal(all.bytes_per_token, hn_bytes_per_token(&info));
    assert_true(all.float_layers == w.float_layers + 5 * LAYERS * E * N);
    json_t *o = hn_bench_model_json(path[0], &info);
    assert_true(fabs(json_number_value(json_object_get(o, "state_mb")) - state_bytes / 1e6) < 1e-9);
    json_decref(o);
    hone_model_close(m);
}

/* A depth is reached by running it; it costs no memory, and the same tokens come whatever the chunk. */
static void depth_takes_no_memory(void **state)
{
    hone_model *m = open_model(1);
    hn_sample s[3];
    static const int32_t depths[] = { 0, 5000, 5000 };
    uint64_t cache[3];
    for (int i = 0; i < 3; i++) {
        hone_error err;
        hone_session *h;
        hone_memory u;
        assert_int_equal(
            hone_session_new(&h, ctx, m, &(hone_session_params){ .n_seq = 1, .n_chunk = i == 2 ? 512 : 64 }, NULL),
            HONE_OK);
        const hn_bench_config c = { .n_prompt = 30, .n_gen = 20, .depth = depths[i] };
        if (hn_bench_measure(&s[i], h, m, &c, &err) != HONE_OK) fail_msg("%s", err.message);
        assert_int_not_equal(s[i].verdict.state, HN_INVALID);
        assert_int_equal(s[i].n_ids, 20);
        assert_int_equal(hone_seq_length(h, 0), depths[i] + 30 + 19);
        hone_session_memory_use(h, &u);
        cache[i] = u.cache.reserved;
        hone_session_free(h);
    }
    assert_int_equal(cache[0], cache[1]);
    assert_memory_equal(s[1].ids, s[2].ids, 20 * sizeof(int32_t));
    assert_memory_not_equal(s[0].ids, s[1].ids, 20 * sizeof(int32_t)); /* what was there before is not forgotten */
    for (int i = 0; i < 3; i++) hn_sample_free(&s[i]);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(profile_from_any_depth), cmocka_unit_test(ledger_has_a_state),
                                        cmocka_unit_test(bytes_and_work), cmocka_unit_test(depth_takes_no_memory) };
    return cmocka_run_group_tests(tests, make, clean);
}
