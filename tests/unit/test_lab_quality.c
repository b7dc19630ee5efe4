/* The quality hash against one computed by other means, and degenerate outputs: each
 * kind, faked, must be caught; sound ones must not. */
#include "engine/engine.h"
#include "lab/quality/paths.h"
#include "lab/quality/quality.h"
#include "lab/stats/verdict.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { NV = 40 };

typedef struct fake fake;
struct fake {
    void (*row)(const fake *f, float *out, const hone_token *t);
    int calls;
    float value;
};

static void sound(const fake *f, float *out, const hone_token *t)
{
    for (int j = 0; j < NV; j++) out[j] = (float)((7 * t->id + 3 * t->pos + 5 * j + 11 * t->seq) % 37) + (float)j / 64;
}
static void constant(const fake *f, float *out, const hone_token *t)
{
    for (int j = 0; j < NV; j++) out[j] = f->value;
}
static void poisoned(const fake *f, float *out, const hone_token *t)
{
    sound(f, out, t);
    if (t->seq == 5 && t->pos >= 9) out[17] = f->value;
}
/* plausible logits, different at every place, but always the same winner */
static void stuck(const fake *f, float *out, const hone_token *t)
{
    sound(f, out, t);
    out[7] = 100;
}
static void repeats_itself(const fake *f, float *out, const hone_token *t)
{
    sound(f, out, t);
    out[t->id] = 100; /* each prompt another token, for ever */
}
static void two_tokens(const fake *f, float *out, const hone_token *t)
{
    sound(f, out, t);
    out[3 + (t->pos & 1)] = 100;
}
static void deaf(const fake *f, float *out, const hone_token *t) /* position is all it knows */
{
    for (int j = 0; j < NV; j++) out[j] = (float)((3 * (t->pos % 64) + 5 * j) % 37);
}
static void one_stuck(const fake *f, float *out, const hone_token *t)
{
    sound(f, out, t);
    if (t->seq == 2) out[9] = 100; /* one prompt of eight may */
}

static hone_status run_fake(void *arg, const hone_token *tokens, int32_t n, float *logits, hone_error *err)
{
    fake *f = arg;
    f->calls++;
    for (int32_t i = 0; i < n; i++)
        if (tokens[i].want_logits) {
            f->row(f, logits, &tokens[i]);
            logits += NV;
        }
    return HONE_OK;
}

static void prompts(hn_q_prompts *p, bool same_length)
{
    memset(p, 0, sizeof *p);
    for (int k = 0; k < HN_Q_PROMPTS; k++) {
        p->n[k] = same_length ? 4 : k + 1;
        for (int i = 0; i < p->n[k]; i++) p->ids[k][i] = (k * 5 + i * 3) % NV;
    }
}

static hn_quality run(void (*row)(const fake *, float *, const hone_token *), float value, bool together)
{
    static hn_q_prompts p;
    static hn_quality q;
    prompts(&p, row == deaf);
    fake f = { .row = row, .value = value };
    hn_logits_source src = { .n_vocab = NV, .run = run_fake, .arg = &f };
    assert_int_equal(hn_quality_run(&q, &src, &p, together, HN_Q_STEPS, NULL), HONE_OK);
    return q;
}

/* Expected value: the same logits, Python's hashlib and struct.pack('<I'), ('<40f'),
 * prompt after prompt, in each the steps 0, 1, 16, 63. */
static void test_hash_of_known_logits(void **state)
{
    hn_quality q = run(sound, 0, true);
    assert_string_equal(q.hash, "q1-a83a0ef7-e4bab6fd");
    const int32_t first[] = { 22, 35, 31, 36, 21, 34 };
    for (int i = 0; i < 6; i++) assert_int_equal(q.ids[0][i], first[i]);
    assert_int_equal(q.verdict.state, HN_VALID);
    assert_int_equal(q.n_steps, HN_Q_STEPS);
    q = run(sound, 0, false);
    assert_string_equal(q.hash, "q1-a83a0ef7-e4bab6fd");
}

static void expect_invalid(void (*row)(const fake *, float *, const hone_token *), float value, const char *word,
                           bool hashed)
{
    for (int together = 0; together < 2; together++) {
        hn_quality q = run(row, value, together);
        assert_int_equal(q.verdict.state, HN_INVALID);
        if (!strstr(q.verdict.reason, word)) fail_msg("'%s' is not in '%s'", word, q.verdict.reason);
        assert_int_equal(q.hash[0] != 0, hashed);
        json_t *j = hn_quality_json(&q, true);
        assert_true(json_is_false(json_object_get(j, "valid")));
        assert_true(json_is_string(json_object_get(j, "reason")));
        json_decref(j);
    }
}

static void test_all_equal(void **state)
{
    expect_invalid(constant, 0, "are equal", true);
    expect_invalid(constant, -3.5f, "are equal", true);
}
static void test_not_finite(void **state)
{
    expect_invalid(poisoned, NAN, "prompt 5, step 4: the logits hold a NaN", false);
    expect_invalid(poisoned, INFINITY, "NaN or an infinity", false);
    expect_invalid(poisoned, -INFINITY, "NaN or an infinity", false);
    expect_invalid(constant, NAN, "prompt 0, step 0", false);
}
static void test_one_token(void **state)
{
    expect_invalid(stuck, 0, "one token repeated through 8 of 8", true);
    expect_invalid(repeats_itself, 0, "one token repeated", true);
}
static void test_two_tokens(void **state) { expect_invalid(two_tokens, 0, "only 2 different tokens", true); }
static void test_deaf(void **state) { expect_invalid(deaf, 0, "do not depend on the prompt", true); }

static void test_one_repeating_prompt_is_sound(void **state)
{
    hn_quality q = run(one_stuck, 0, true);
    assert_int_equal(q.verdict.state, HN_VALID);
    assert_int_equal(q.n_constant, 1);
}

static hone_status numeric_error(void *arg, const hone_token *t, int32_t n, float *logits, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NUMERIC, "layer 3 overflowed");
}
static hone_status other_error(void *arg, const hone_token *t, int32_t n, float *logits, hone_error *err)
{
    return HN_FAIL(err, HONE_E_INTERRUPTED, "stopped");
}
static void test_source_errors(void **state)
{
    static hn_q_prompts p;
    static hn_quality q;
    hone_error err;
    prompts(&p, false);
    hn_logits_source src = { .n_vocab = NV, .run = numeric_error };
    assert_int_equal(hn_quality_run(&q, &src, &p, true, HN_Q_STEPS, &err), HONE_OK);
    assert_int_equal(q.verdict.state, HN_INVALID);
    assert_non_null(strstr(q.verdict.reason, "layer 3 overflowed"));
    src.run = other_error;
    assert_int_equal(hn_quality_run(&q, &src, &p, true, HN_Q_STEPS, &err), HONE_E_INTERRUPTED);
}

static void test_scan(void **state)
{
    enum { MAX = 67 };
    float x[MAX];
    for (int n = 1; n <= MAX; n++)
        for (uint64_t trial = 0; trial < 40; trial++) {
            int best = 0;
            bool equal = true;
            for (int i = 0; i < n; i++) { /* few values, so that there are ties */
                x[i] = (float)(hn_rand64(trial * 100 + (uint64_t)n, (uint64_t)i) % 5) - 2;
                if (x[i] > x[best]) best = i;
                if (x[i] != x[0]) equal = false;
            }
            hn_logit_scan s = hn_scan_logits(x, n);
            assert_true(s.finite);
            assert_int_equal(s.best, best);
            assert_int_equal(s.all_equal, n > 1 && equal);
        }
    for (int n = 1; n <= MAX; n++)
        for (int at = 0; at < n; at++)
            for (int kind = 0; kind < 3; kind++) {
                for (int i = 0; i < n; i++) x[i] = (float)i;
                x[at] = kind == 0 ? NAN : kind == 1 ? INFINITY : -INFINITY;
                hn_logit_scan s = hn_scan_logits(x, n);
                assert_false(s.finite);
                assert_int_equal(s.best, -1);
            }
    const float zeros[] = { -0.0f, 0.0f, -0.0f };
    assert_int_equal(hn_scan_logits(zeros, 3).best, 0);
    const float big[] = { 3.4e38f, -3.4e38f, 3.4e38f };
    assert_true(hn_scan_logits(big, 3).finite); /* no overflow of its own */
}

static void test_random_prompts(void **state)
{
    static hn_q_prompts p, again;
    hn_q_prompts_random(&p, 97);
    hn_q_prompts_random(&again, 97);
    assert_memory_equal(&p, &again, sizeof p);
    for (int k = 0; k < HN_Q_PROMPTS; k++) {
        assert_true(p.n[k] > 0);
        for (int i = 0; i < p.n[k]; i++) assert_in_range(p.ids[k][i], 0, 96);
        for (int m = 0; m < k; m++) assert_memory_not_equal(p.ids[k], p.ids[m], 16 * sizeof(int32_t));
    }
}

/* ---- with the engine ---------------------------------------------------------------------------- */

static hone_status session_logits(void *arg, const hone_token *t, int32_t n, float *logits, hone_error *err)
{
    return hone_decode(arg, t, n, logits, err);
}

static void engine_hash(const char *path, int32_t threads, bool together, char *hash)
{
    static hn_q_prompts p;
    static hn_quality q;
    hone_model *m;
    hone_context *ctx = NULL;
    hone_session *s = NULL;
    hone_error err;
    hone_context_params cp = { .n_threads = threads };
    hone_session_params sp = { .n_ctx = HN_Q_MAX_PROMPT + HN_Q_STEPS, .n_seq = HN_Q_PROMPTS };
    if (hone_model_open(&m, path, NULL, &err) != HONE_OK || hone_context_new(&ctx, &cp, &err) != HONE_OK ||
        hone_session_new(&s, ctx, m, &sp, &err) != HONE_OK || hn_q_prompts_make(&p, m, &err) != HONE_OK)
        fail_msg("%s", err.message);
    hone_model_info info;
    hone_model_get_info(m, &info);
    assert_true(p.from_text);
    hn_logits_source src = { .n_vocab = info.n_vocab, .run = session_logits, .arg = s };
    if (hn_quality_run(&q, &src, &p, together, HN_Q_STEPS, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(q.verdict.state, HN_VALID);
    snprintf(hash, 24, "%s", q.hash);
    hone_session_free(s);
    hone_context_free(ctx);
    hone_model_close(m);
}

static void test_engine_alone_and_together(void **state)
{
    const char *path = "models/hone-tiny.gguf", *data = "../shared/data/stories260K/stories260K.bin";
    char made[64] = "";
    if (access(path, R_OK) != 0) {
        if (access(data, R_OK) != 0) {
            puts("SKIP: neither models/hone-tiny.gguf nor the stories260K data is here");
            skip();
        }
        hone_error err;
        snprintf(made, sizeof made, "/tmp/test_lab_quality.%ld.gguf", (long)getpid());
        if (hone_convert(data, "../shared/data/stories260K/tok512.bin", NULL, made, NULL, &err) != HONE_OK)
            fail_msg("%s", err.message);
        path = made;
    }
    char a[24], b[24], c[24];
    engine_hash(path, 1, true, a);
    engine_hash(path, 1, false, b);
    engine_hash(path, 2, true, c);
    if (made[0]) unlink(made);
    assert_string_equal(a, b);
    assert_string_equal(a, c);
}

/* ---- all ways ----------------------------------------------------------------------------------- */

typedef struct opened {
    hone_model *m;
    hone_context *ctx, *ctx_before;
    hone_session *s, *before; /* the second: of a way that the next one stands beside */
    int32_t n_beside;
    int32_t n_opened, wrong_chunk; /* the session of this chunk is given another cache: it answers otherwise */
    int32_t n_asked, stop_at;      /* whether to stop; from this time on it is said; 0: never */
    int32_t n_asked_before;        /* the session was opened */
    bool counted;                  /* open_counted */
    bool few;                      /* there is no memory for sequences of HN_Q_MANY */
    int32_t more;                  /* a count of threads that cannot be started; 0: any can */
    uint64_t budget;               /* bytes of such a session; 0: its own */
    bool refuses;                  /* open_counted, of a session of so many: memory, although there is some */
} opened;

static bool stop_at(void *arg)
{
    opened *o = arg;
    return ++o->n_asked >= o->stop_at && o->stop_at;
}

static hone_status open_way(void *arg, const hn_q_way *w, hone_session **out, hone_error *err)
{
    opened *o = arg;
    const hone_context_params cp = { .n_threads = w->threads ? w->threads : 2, .cpu = w->cpu };
    const hone_session_params sp = { .n_ctx = w->n_ctx,
                                     .n_seq = w->n_seq,
                                     .n_chunk = w->chunk,
                                     .cache_budget = w->n_seq >= HN_Q_MANY ? o->budget : 0,
                                     .cache =
                                         w->chunk && w->chunk == o->wrong_chunk ? HONE_CACHE_Q8_0 : HONE_CACHE_F16 };
    hone_session_free(o->before);
    hone_context_free(o->ctx_before);
    o->before = w->beside ? o->s : NULL;
    o->ctx_before = w->beside ? o->ctx : NULL;
    if (!w->beside) {
        hone_session_free(o->s);
        hone_context_free(o->ctx);
    }
    o->s = NULL;
    o->ctx = NULL;
    o->n_beside += w->beside;
    o->n_opened++;
    o->n_asked_before = o->n_asked;
    *out = NULL;
    if (w->threads && w->threads == o->more) return HN_FAIL(err, HONE_E_NOMEM, "%d threads", w->threads);
    if (o->few && w->n_seq >= HN_Q_MANY) return HN_FAIL(err, HONE_E_NOMEM, "%d sequences", w->n_seq);
    hone_status st = hone_context_new(&o->ctx, &cp, err);
    if (st == HONE_OK) st = hone_session_new(&o->s, o->ctx, o->m, &sp, err);
    hone_session_set_abort(o->s, stop_at, o);
    *out = o->s;
    return st;
}

/* ---- how many tokens the backend is asked for at once */

static int32_t n_steps[HN_Q_CRUMBS + 1], most_seqs; /* steps of so many tokens; of the step with the most sequences */
static int32_t n_many;                              /* steps of sessions with 10 sequences and more */
static int32_t most_wanted;                         /* rows of one step */
static const hn_backend_ops *real_ops;

static void counted_step(hn_backend *b, const hn_step_block *step)
{
    n_many += step->n_seq >= 10;
    if (step->n_want > most_wanted) most_wanted = step->n_want;
    if (step->n_tok <= HN_Q_CRUMBS) n_steps[step->n_tok]++;
    if (step->n_seq == step->n_tok && step->n_seq > most_seqs) most_seqs = step->n_seq;
    real_ops->step_begin(b, step);
}

static hone_status refused_step(hn_backend *b, hn_fault *fault, hone_error *err)
{
    real_ops->step_end(b, fault, err);
    return HN_FAIL(err, HONE_E_NOMEM, "refused");
}

static hone_status open_counted(void *arg, const hn_q_way *w, hone_session **out, hone_error *err)
{
    static hn_backend_ops ops;
    const opened *o = arg;
    hone_status st = open_way(arg, w, out, err);
    if (st != HONE_OK) return st;
    real_ops = (*out)->be->op;
    ops = *real_ops;
    ops.step_begin = counted_step;
    if (o->refuses && w->n_seq >= HN_Q_MANY) ops.step_end = refused_step;
    (*out)->be->op = &ops;
    return HONE_OK;
}

static hn_paths walk(opened *o, bool quick)
{
    static hn_q_prompts prompts;
    hn_quality eight = { .verdict = { .state = HN_VALID }, .n_distinct = 1 };
    hn_paths out = { 0 };
    hone_error err;
    const hn_paths_params p = { .m = o->m,
                                .quick = quick,
                                .open = o->counted ? open_counted : open_way,
                                .arg = o,
                                .abort_fn = stop_at,
                                .abort_arg = o,
                                .threads_more = o->more };
    o->n_asked = 0;
    if (hn_q_prompts_make(&prompts, o->m, &err) != HONE_OK) fail_msg("%s", err.message);
    hone_status st = hn_paths_run(&out, &p, &prompts, &eight, &err);
    if (st != (o->stop_at ? HONE_E_INTERRUPTED : o->refuses ? HONE_E_NOMEM : HONE_OK))
        fail_msg("stop at %d: %s", (int)o->stop_at, err.message);
    return out;
}

/* One model: every way gives the same bits; a session that does not is named with its way, and gets no hash. (All ways
 * of a sound build: tests/e2e/bench_quality.sh.) */
static void test_all_ways(void **state)
{
    opened o = { .m = NULL };
    if (hone_model_open(&o.m, "models/hone-tiny.gguf", NULL, NULL) != HONE_OK) {
        puts("SKIP: models/hone-tiny.gguf is not here");
        skip();
    }
    o.counted = true;
    hn_paths a = walk(&o, true);
    assert_int_equal(a.verdict.state, HN_VALID);
    assert_memory_equal(a.hash, "q2q-", 4);
    assert_int_equal(a.n_long, HN_Q_LONG_QUICK);
    assert_true(a.n_left == 1 && strstr(a.left[0], "positions beyond"));
    assert_true(a.n_compared > 4 && o.n_opened == 5 && o.n_beside == 1);
    assert_true(most_seqs > HN_Q_MANY && most_seqs <= HN_Q_MOST_SMALL);
    for (int32_t k = 1; k <= HN_Q_CRUMBS; k++)
        if (!n_steps[k]) fail_msg("no call of %d tokens", (int)k);
    assert_int_equal(n_many, 48); /* 19 that fill them, 20 to 2 at once, all that there are, and nine alone */
    uint64_t bytes = o.m->bytes_per_token;
    o.m->bytes_per_token = 1u << 26;
    n_many = 0;
    a = walk(&o, true);
    assert_int_equal(n_many, 11); /* four that fill them, 20, 16, 12, all, three: a large model pays for each */
    assert_non_null(strstr(a.left[0], "but of 12, 16 and 20"));
    assert_non_null(strstr(a.left[0], "two sessions at once"));
    o.m->bytes_per_token = bytes;
    o.refuses = true;
    walk(&o, true);
    o.refuses = o.counted = false;
    for (int k = 0; k < 2; k++) { /* not opened; opened, and full with its first sequences */
        o.few = k == 0;
        o.budget = k;
        hn_paths few = walk(&o, true);
        assert_int_equal(few.verdict.state, HN_VALID);
        assert_string_equal(few.hash, a.hash);
        assert_true(few.n_left == 2 && strstr(few.left[1], "more than 9 sequences: no memory"));
    }
    o.budget = 0;
    walk(&o, true);
    /* of the last session every layer asks: one chunk and a half, then three and three tokens */
    int32_t n_asked = o.n_asked;
    hone_model_info info;
    hone_model_get_info(o.m, &info);
    assert_true(n_asked - o.n_asked_before >= 7 * info.n_layer);
    for (o.stop_at = n_asked; o.stop_at > 0;
         o.stop_at -= 17) { /* some of the calls are stopped and made again anyway */
        walk(&o, true);
        assert_true(o.n_asked >= o.stop_at && o.n_asked <= o.stop_at + 1);
    }
    o.stop_at = 0;
    o.wrong_chunk = 20;
    a = walk(&o, true);
    assert_int_equal(a.verdict.state, HN_INVALID);
    if (!strstr(a.verdict.reason, "in chunks of 20 than")) fail_msg("%s", a.verdict.reason);
    o.wrong_chunk = 1;
    a = walk(&o, false);
    assert_int_equal(a.verdict.state, HN_INVALID);
    assert_int_equal(a.n_long, HN_Q_LONG);
    assert_int_equal(a.hash[0], 0);
    if (!strstr(a.verdict.reason, "in chunks of 1 than")) fail_msg("%s", a.verdict.reason);
    hone_session_free(o.s);
    hone_context_free(o.ctx);
    hone_model_close(o.m);
}

static bool says_left(const hn_paths *p, int32_t from, const char *word)
{
    for (int32_t i = from; i < p->n_left; i++)
        if (strstr(p->left[i], word)) return true;
    return false;
}

/* What a large model's ways are, and where one of them has no room. */
static void test_large(void **state)
{
    opened o = { .more = 3, .counted = true };
    if (hone_model_open(&o.m, "models/hone-tiny.gguf", NULL, NULL) != HONE_OK) {
        puts("SKIP: models/hone-tiny.gguf is not here");
        skip();
    }
    o.m->bytes_per_token = 1u << 26;
    most_wanted = 0;
    hn_paths a = walk(&o, false);
    assert_int_equal(most_wanted, 95); /* of a call of 96, beside neighbours, all but the last */
    assert_int_equal(a.verdict.state, HN_VALID);
    assert_true(says_left(&a, a.n_never, "one thread more"));
    hone_session_free(o.s);
    hone_context_free(o.ctx);
    hone_model_close(o.m);
}

static void test_kinds_of_hashes(void **state)
{
    assert_true(hn_q_same_kind("q2-11111111-22222222", "q2-33333333-44444444"));
    assert_false(hn_q_same_kind("q1-11111111-22222222", "q2-11111111-22222222"));
    assert_false(hn_q_same_kind("q2q-11111111-22222222", "q2-11111111-22222222"));
    assert_false(hn_q_same_kind("", ""));
    assert_true(hn_q_same_answers("q2q-11111111-22222222", "q2q-11111111-44444444"));
    assert_false(hn_q_same_answers("q2-11111111-22222222", "q2-11111112-22222222"));
    assert_false(hn_q_same_answers("q1-11111111-22222222", "q2-11111111-22222222"));
}

/* What stands around the engine answers the same every time; a hash that changed, or is gone, has its part's name. */
static void test_outer(void **state)
{
    hone_model *m;
    hn_outer a = { 0 }, b = { 0 }, back;
    if (hone_model_open(&m, "models/hone-tiny.gguf", NULL, NULL) != HONE_OK) {
        puts("SKIP: models/hone-tiny.gguf is not here");
        skip();
    }
    assert_int_equal(hn_outer_ask(&a, m, 0, NULL), HONE_OK);
    assert_int_equal(hn_outer_ask(&b, m, 0, NULL), HONE_OK);
    assert_memory_equal(&a, &b, sizeof a);
    for (int k = 0; k < HN_OUTER_EMBEDDINGS; k++) {
        assert_int_equal(strlen(a.hash[k]), 8);
        for (int i = 0; i < k; i++) assert_string_not_equal(a.hash[i], a.hash[k]);
    }
    hn_outer_set(&a, HN_OUTER_EMBEDDINGS, 0x100000002u);
    assert_string_equal(a.hash[HN_OUTER_EMBEDDINGS], "00000003");
    json_t *o = hn_outer_json(&a), *older = json_object();
    hn_outer_read(&back, o);
    assert_memory_equal(&a, &back, sizeof a);
    enum { NOT_ASKED = 8 }; /* vectors, means, caches, depth, numbers and what is drawn (adapters, too) */
    assert_int_equal(json_object_size(o), HN_OUTER_PARTS - NOT_ASKED);
    assert_int_equal(strlen(a.hash[HN_OUTER_EDGES]), 8);
    assert_null(hn_outer_differ(o, o));
    assert_null(hn_outer_differ(older, o));
    assert_null(hn_outer_differ(NULL, NULL));
    assert_null(hn_outer_differ(o, older)); /* what one of both does not tell nobody compares */
    assert_int_equal(hn_outer_of(&a, &b), HN_OUTER_PARTS);
    char untold[120];
    hn_outer_untold(untold, sizeof untold, o, o);
    assert_string_equal(untold, "");
    json_t *less = json_deep_copy(o);
    json_object_del(less, "edges");
    json_object_del(less, "masks");
    hn_outer_untold(untold, sizeof untold, o, less);
    assert_string_equal(untold, "masks edges");
    hn_outer_untold(untold, sizeof untold, less, o);
    assert_string_equal(untold, "masks edges");
    json_decref(less);
    b = a;
    b.hash[HN_OUTER_MASKS][7] ^= 1;
    assert_string_equal(hn_outer_name(hn_outer_of(&a, &b)), "masks");
    /* what is drawn: the same by one number, and by two it is not compared */
    hn_outer drawn[3] = { { .hash = { "" } } };
    for (int i = 0; i < 3; i++) assert_int_equal(hn_outer_ask(&drawn[i], m, i < 2 ? 77 : 78, NULL), HONE_OK);
    assert_string_equal(drawn[0].hash[HN_OUTER_DRAWN], drawn[1].hash[HN_OUTER_DRAWN]);
    assert_string_not_equal(drawn[0].hash[HN_OUTER_DRAWN] + 3, drawn[2].hash[HN_OUTER_DRAWN] + 3);
    assert_int_equal(hn_outer_of(&drawn[0], &drawn[2]), HN_OUTER_PARTS);
    drawn[1].hash[HN_OUTER_DRAWN][7] ^= 1;
    assert_string_equal(hn_outer_name(hn_outer_of(&drawn[0], &drawn[1])), "drawn2");
    json_decref(o);
    json_decref(older);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outer),          cmocka_unit_test(test_hash_of_known_logits),
        cmocka_unit_test(test_all_equal),      cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_one_token),      cmocka_unit_test(test_two_tokens),
        cmocka_unit_test(test_deaf),           cmocka_unit_test(test_one_repeating_prompt_is_sound),
        cmocka_unit_test(test_source_errors),  cmocka_unit_test(test_scan),
        cmocka_unit_test(test_random_prompts), cmocka_unit_test(test_engine_alone_and_together),
        cmocka_unit_test(test_all_ways),       cmocka_unit_test(test_kinds_of_hashes),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
