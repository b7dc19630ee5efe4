/* The profile of a training: what is told of products is what their shapes say, parts sum to the whole in every way of
 * training, and looking leaves the training as it is. */
#include "lab/inside/profile_train.h"
#include "train_model.h"

#include <math.h>

static int begin(void **state) { return tr_begin(state, NULL, 2, 23); }

static hn_profile look(hone_train_params *p, int32_t steps)
{
    hn_profile out;
    hone_train_info info;
    hone_error e = { 0 };
    const hn_profile_train_params params = { .train = p, .steps = steps, .max_trace = 100000 };
    if (hn_profile_train(&out, &info, ctx, model, &params, &e)) fail_msg("%s", e.message);
    assert_int_not_equal(out.verdict.state, HN_INVALID);
    assert_int_equal(out.lost, 0);
    assert_true(info.state_bytes > 0);
    return out;
}

static const hn_profile_op *op_of(const hn_profile *p, int phase, const char *name)
{
    for (int i = 0; i < p->phase[phase].n_op; i++)
        if (strcmp(p->phase[phase].op[i].name, name) == 0) return &p->phase[phase].op[i];
    fail_msg("%s is not told", name);
    return NULL;
}

/* D 16, 2 query heads of 8 on one of keys, F 24, two layers, adapters of rank 3 on queries. */
static void products(void **state)
{
    enum { D = 16, KV = 8, F = 24, R = 3, STEPS = 4 };
    hone_train_params p = tr_params(data);
    p.targets = "q";
    hn_profile x = look(&p, STEPS);
    double n = (double)x.phase[HN_PROFILE_STEP].n_tok;
    assert_true(n > 0);
    assert_int_equal(x.phase[HN_PROFILE_STEP].n_call, STEPS);
    static const struct {
        const char *name;
        double layer0, layer1; /* multiplications and additions a token */
    } forward[] = { { "attn_q", 2 * (D * D + R * (D + D)), 2 * (D * D + R * (D + D)) },
                    { "attn_k", 2 * D * KV, 2 * D * KV },
                    { "attn_output", 2 * D * D, 2 * D * D },
                    { "ffn_gate", 2 * D * F, 2 * D * F },
                    { "ffn_down", 2 * D * F, 2 * D * F } },
      back[] = { { "attn_q", 2 * R * (2 * D + 2 * D), 2 * (D * D + R * (3 * D + 2 * D)) },
                 { "attn_k", 0, 2 * D * KV }, /* nothing below the first layer learns */
                 { "attn_output", 2 * D * D, 2 * D * D },
                 { "ffn_up", 2 * D * F, 2 * D * F } };
    for (size_t i = 0; i < sizeof forward / sizeof *forward; i++) {
        const hn_profile_op *op = op_of(&x, HN_PROFILE_FORWARD, forward[i].name);
        assert_true(op->layer[0].ops_float == n * forward[i].layer0 && op->layer[1].ops_float == n * forward[i].layer1);
        assert_int_equal(op->all.calls, 2 * STEPS * p.accumulate);
        assert_string_equal(op->types, "F32");
    }
    for (size_t i = 0; i < sizeof back / sizeof *back; i++) {
        const hn_profile_op *op = op_of(&x, HN_PROFILE_BACKWARD, back[i].name);
        assert_true(op->layer[0].ops_float == n * back[i].layer0 && op->layer[1].ops_float == n * back[i].layer1);
    }
    /* scores and values forward; back the scores again and four more */
    double there = op_of(&x, HN_PROFILE_FORWARD, "attention")->all.ops_float,
           again = op_of(&x, HN_PROFILE_BACKWARD, "attention")->all.ops_float;
    assert_true(there > 0 && again == 2.5 * there);
    assert_int_equal(op_of(&x, HN_PROFILE_UPDATE, "adamw")->all.calls, STEPS);
    hn_profile_free(&x);
}

/* Adapters, all weights, rounded, recomputed: parts are phases, phases are steps; the trace is one step of them. */
static void sums(void **state)
{
    for (int way = 0; way < 8; way++) {
        hone_train_params p = tr_params(data);
        p.full = way & 1;
        p.bf16 = way & 2;
        p.recompute = way & 4;
        if (p.full) p.dropout = 0;
        hn_profile x = look(&p, 2);
        uint64_t whole = 0, parts = 0;
        for (int k = HN_PROFILE_FORWARD; k <= HN_PROFILE_UPDATE; k++) {
            const hn_profile_phase *ph = &x.phase[k];
            uint64_t ns = 0, layers = 0;
            for (int i = 0; i < ph->n_op; i++) {
                ns += ph->op[i].all.ns;
                for (int32_t il = 0; il <= x.n_layer; il++) layers += ph->op[i].layer[il].ns;
            }
            assert_true(ns == ph->parts_ns && layers == ns && ns <= ph->whole_ns);
            whole += ph->whole_ns;
            parts += ns;
        }
        assert_true(whole == x.phase[HN_PROFILE_STEP].whole_ns && parts == x.phase[HN_PROFILE_STEP].parts_ns);
        assert_true(isfinite(hn_profile_cost(&x.phase[HN_PROFILE_STEP], (double[2]){ 0 })));
        size_t at = 0;
        for (size_t i = 0; i < x.n_call; i++) {
            const hn_profile_call *c = &x.call[i];
            assert_true(c->first_event == at && c->n_event > 0 && c->start_ns <= x.event[at].start_ns);
            at += c->n_event;
            assert_true(x.event[at - 1].end_ns == c->end_ns && (i == 0 || x.call[i - 1].end_ns <= c->start_ns));
        }
        assert_true(at == x.n_event && at > 0);
        bool again = false; /* recomputed: the way back has products forward, too */
        const hn_profile_op *gate = op_of(&x, HN_PROFILE_BACKWARD, "ffn_gate");
        again = gate->all.calls == 2 * op_of(&x, HN_PROFILE_FORWARD, "ffn_gate")->all.calls;
        assert_true(again == p.recompute);
        hn_profile_free(&x);
    }
}

/* Losses of a training that is looked at, and of one that is not. */
static void as_it_is(void **state)
{
    hone_train_params p = tr_params(data);
    double loss[6];
    for (int on = 0; on < 2; on++) {
        hone_trainer *t = tr_new(ctx, model, p);
        for (int i = 0; i < 6; i++) {
            double now = tr_step(t).loss;
            assert_true(!on || memcmp(&loss[i], &now, sizeof now) == 0);
            loss[i] = now;
        }
        hone_trainer_free(t);
        hn_profile x = look(&p, 3);
        hn_profile_free(&x);
    }
}

/* What is not finite is no profile. */
static void not_finite(void **state)
{
    hone_model *m = tr_model("nan.gguf", NAN);
    hone_train_params p = tr_params(data);
    hn_profile x;
    hone_error e = { 0 };
    const hn_profile_train_params params = { .train = &p, .steps = 2 };
    assert_int_equal(hn_profile_train(&x, NULL, ctx, m, &params, &e), HONE_OK);
    assert_int_equal(x.verdict.state, HN_INVALID);
    hn_profile_free(&x);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(products), cmocka_unit_test(sums), cmocka_unit_test(as_it_is),
                                        cmocka_unit_test(not_finite) };
    return cmocka_run_group_tests(tests, begin, tr_end);
}
