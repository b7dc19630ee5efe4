/* The laboratory's profile on a tiny model: its sums are those of the trace and of the
 * folded stacks, the trace nests, shares follow from peaks, and what is wrong is said. */
#include "lab/bench/profile.h"
#include "tiny_model.h"

#include <math.h>

static hn_profile p;

static int measure(void **state)
{
    if (tm_make_dir(state)) return -1;
    tiny *t = tm_new(tm_llama);
    hone_model *m = tm_open(t);
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, m, 80, 1, 16, HONE_CACHE_F16);
    hn_counters counters;
    hone_error err = { 0 };
    hn_counters_open(&counters);
    hn_profile_params pp = {
        .n_prompt = 40, .n_gen = 9, .depth = 5, .rounds = 2, .n_chunk = 16, .max_trace = 100000, .counters = &counters
    };
    if (hn_profile_run(&p, s, m, &pp, &err) != HONE_OK) fail_msg("%s", err.message);
    hn_counters_close(&counters);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
    tm_free(t);
    return 0;
}

static int end(void **state)
{
    hn_profile_free(&p);
    return tm_remove_dir(state);
}

static void sums(void **state)
{
    assert_int_not_equal(p.verdict.state, HN_INVALID);
    assert_int_equal(p.lost, 0);
    assert_int_equal(p.phase[HN_PROFILE_PREFILL].n_call, 2);
    assert_int_equal(p.phase[HN_PROFILE_PREFILL].n_tok, 80);
    assert_int_equal(p.phase[HN_PROFILE_DECODE].n_call, 18);
    assert_int_equal(p.phase[HN_PROFILE_PREFILL].cost.n, 2);
    assert_int_equal(p.phase[HN_PROFILE_DECODE].cost.n, 18);
    for (int k = 0; k < HN_PROFILE_ANSWER; k++) {
        const hn_profile_phase *ph = &p.phase[k];
        uint64_t ns = 0, layers = 0;
        for (int i = 0; i < ph->n_op; i++) {
            ns += ph->op[i].all.ns;
            for (int32_t il = 0; il <= p.n_layer; il++) layers += ph->op[i].layer[il].ns;
        }
        assert_int_equal(ns, ph->parts_ns);
        assert_int_equal(layers, ph->parts_ns);
        assert_true(ph->parts_ns > 0 && ph->parts_ns <= ph->whole_ns);
        double rest = hn_profile_rest(ph), ci[2];
        assert_true(rest >= 0 && rest < 1);
        assert_true(isfinite(hn_profile_cost(ph, ci)));
        assert_true(isfinite(ci[0]) == (ph->cost.n >= 6));
        for (int i = 0; i < HN_COUNTS; i++)
            assert_true(isfinite(ph->count[i]) || p.counters.why[i] || p.counters.fd[i] >= 0);
    }
    /* 40 tokens in chunks of 16 are three passes of two layers, 2 rounds */
    const hn_profile_op *qkv = NULL;
    for (int i = 0; i < p.phase[0].n_op; i++)
        if (strcmp(p.phase[0].op[i].name, "attn_qkv") == 0) qkv = &p.phase[0].op[i];
    assert_non_null(qkv);
    assert_int_equal(qkv->all.calls, 12);
    assert_string_equal(qkv->types, "F32");
    assert_int_equal(qkv->layer[1].calls, 6);
}

typedef struct span {
    double a, b;
} span;
static bool inside(span x, span y)
{
    return x.a >= y.a - 0.0005 && x.b <= y.b + 0.0011;
} /* three decimals of a microsecond */

static void trace(void **state)
{
    char *text;
    size_t n, i;
    hone_error err;
    json_error_t je;
    assert_int_equal(hn_profile_trace(&p, &text, &n, &err), HONE_OK);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &je), *e;
    if (!root) fail_msg("line %d: %s", je.line, je.text);
    free(text);
    int calls = 0, layers = 0, ops = 0;
    double op_us = 0;
    span call = { 0 }, layer = { 0 };
    json_array_foreach(json_object_get(root, "traceEvents"), i, e)
    {
        const char *ph = json_string_value(json_object_get(e, "ph")),
                   *cat = json_string_value(json_object_get(e, "cat"));
        assert_non_null(json_string_value(json_object_get(e, "name")));
        assert_true(json_is_integer(json_object_get(e, "pid")) && json_is_integer(json_object_get(e, "tid")));
        if (strcmp(ph, "M") == 0) continue;
        assert_string_equal(ph, "X");
        span x = { json_real_value(json_object_get(e, "ts")), 0 };
        double dur = json_real_value(json_object_get(e, "dur"));
        assert_true(x.a >= 0 && dur >= 0);
        x.b = x.a + dur;
        if (strcmp(cat, "call") == 0) {
            assert_true(x.a >= call.b);
            call = x;
            calls++;
        } else if (strcmp(cat, "layer") == 0) {
            assert_true(inside(x, call) && x.a >= layer.b - 0.0011);
            layer = x;
            layers++;
        } else {
            assert_true(inside(x, call));
            if (x.a < layer.b) assert_true(inside(x, layer) || x.a < layer.a);
            op_us += dur;
            ops++;
        }
    }
    assert_int_equal(calls, 1 + 9); /* the first round */
    assert_int_equal(layers, 3 * 2 + 9 * 2);
    assert_int_equal((size_t)ops, p.n_event);
    assert_int_equal(p.not_traced, 0);
    uint64_t ns = 0;
    for (size_t k = 0; k < p.n_event; k++) ns += p.event[k].end_ns - p.event[k].start_ns;
    assert_true(fabs(op_us * 1e3 - (double)ns) < 1.0 * ops);
    json_decref(root);
}

static void folded(void **state)
{
    char *text;
    size_t n;
    hone_error err;
    assert_int_equal(hn_profile_folded(&p, &text, &n, &err), HONE_OK);
    uint64_t sum = 0, lines = 0, rests = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *space = strrchr(line, ' '), *endp;
        assert_non_null(space);
        unsigned long long v = strtoull(space + 1, &endp, 10);
        assert_int_equal(*endp, 0);
        assert_true(v > 0 && strncmp(line, "hone;", 5) == 0 && strchr(line, ' ') == space);
        rests += strstr(line, "(rest)") != NULL;
        sum += v;
        lines++;
    }
    assert_int_equal(sum, p.phase[0].whole_ns + p.phase[1].whole_ns); /* the whole, not only the parts */
    assert_true(lines > 20);
    assert_int_equal(rests, 2);
    free(text);
}

static void shares(void **state)
{
    static hn_peaks k;
    k.n[HN_PEAK_READ_BW] = k.n[HN_PEAK_INT8] = k.n[HN_PEAK_F32] = 1;
    k.at[HN_PEAK_READ_BW][0] = (hn_peak_point){ .threads = 2, .best = 20, .most = 20 };
    k.at[HN_PEAK_INT8][0] = (hn_peak_point){ .threads = 2, .best = 1000, .most = 1000 };
    k.at[HN_PEAK_F32][0] = (hn_peak_point){ .threads = 2, .best = 100, .most = 100 };
    const char *bound;
    hn_profile_sum s = { .calls = 1, .ns = 1000, .bytes = 10000 }; /* 10 GB/s of 20 */
    assert_float_equal(hn_profile_share(&s, &k, 2, false, &bound), 0.5, 1e-12);
    assert_string_equal(bound, "read");
    assert_true(isnan(hn_profile_share(&s, &k, 2, true, &bound))); /* from a cache: no roof */
    assert_null(bound);
    s.ops_int8 = 800e3; /* 800 GOPS of 1000 */
    assert_float_equal(hn_profile_share(&s, &k, 2, false, &bound), 0.8, 1e-12);
    assert_string_equal(bound, "int8");
    s.ops_float = 90e3;
    assert_float_equal(hn_profile_share(&s, &k, 2, false, &bound), 1.7, 1e-12); /* impossible, and not hidden */
    assert_string_equal(bound, "f32");
    assert_true(isnan(hn_profile_share(&s, NULL, 2, false, &bound)));
    k.cache_bytes = 100;
    static hn_profile_phase ph;
    ph.n_call = 2;
    ph.n_op = 1;
    ph.op[0].all.bytes = 400;
    assert_true(hn_profile_in_cache(&ph, &k));
    ph.op[0].all.bytes = 402;
    assert_false(hn_profile_in_cache(&ph, &k));
}

static json_t *phase_of(const hn_profile *x)
{
    json_t *o = hn_profile_json(x, NULL, 1, 1), *d = json_incref(json_object_get(o, "decode"));
    assert_true(json_is_null(json_object_get(o, "prefill")));
    json_decref(o);
    return d;
}

/* Numbers that are not good are called so. */
static void bars(void **state)
{
    static hn_profile x;
    hn_profile_phase *ph = &x.phase[HN_PROFILE_DECODE];
    ph->n_call = ph->n_tok = 10;
    ph->whole_ns = 1000;
    ph->parts_ns = 960;
    double few[3] = { 0.05, 0.05, 0.05 }, dear[8], cheap[8], unsure[8];
    for (int i = 0; i < 8; i++)
        dear[i] = 0.03 + 0.0001 * i, cheap[i] = 0.001 * i - 0.004, unsure[i] = 0.02 + 0.01 * (i - 4);
    static const struct {
        const char *cost;
    } want[] = { { "null" }, { "false" }, { "true" }, { "null" } };
    double *list[] = { few, dear, cheap, unsure };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(hn_stats_of(&ph->cost, list[i], i == 0 ? 3 : 8, NULL), HONE_OK);
        json_t *o = phase_of(&x);
        char *text = json_dumps(json_object_get(o, "cost_ok"), JSON_ENCODE_ANY);
        assert_string_equal(text, want[i].cost);
        assert_true(json_is_true(json_object_get(o, "rest_ok")));
        free(text);
        json_decref(o);
    }
    ph->parts_ns = 940; /* six parts in a hundred are missing */
    json_t *o = phase_of(&x);
    assert_true(json_is_false(json_object_get(o, "rest_ok")));
    json_decref(o);
    ph->parts_ns = 1000;
    x.lost = 1;
    o = phase_of(&x);
    assert_true(json_is_false(json_object_get(o, "rest_ok")));
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums), cmocka_unit_test(trace), cmocka_unit_test(folded),
                                        cmocka_unit_test(shares), cmocka_unit_test(bars) };
    return cmocka_run_group_tests(tests, measure, end);
}
