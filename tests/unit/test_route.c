/* The router of mixtures of experts against a plain program in double: which experts, by rank, and their weights, for
 * every function, with a bias of the choice, groups, ties; and that who else is in the step changes no bit. */
#include "engine/engine.h"
#include "tiny_model.h"

#include <math.h>

enum { EXPERTS = 16, USED = 4, TOK = 24 };

/* An identity as the router: its logits are the activation's numbers. */
typedef struct bench {
    hone_context *c;
    hn_backend *be;
    hn_act *act;
    hn_buf *picks;
    float unit[EXPERTS * EXPERTS], bias[EXPERTS], scale[EXPERTS], x[TOK * EXPERTS];
    hn_weight router;
} bench;

static bench open_bench(const char *cpu, int threads)
{
    bench b = { .c = tm_context(cpu, threads) };
    hone_error err = { 0 };
    const hn_backend_params p = { .pool = b.c->pool,
                                  .level = b.c->level,
                                  .n_tok = TOK,
                                  .max_n_in = EXPERTS,
                                  .max_n_out = EXPERTS,
                                  .n_expert = EXPERTS,
                                  .n_used = USED };
    if (hn_backend_open(&b.be, "cpu", &p, &err)) fail_msg("%s", err.message);
    assert_non_null(b.act = b.be->op->act_alloc(b.be, EXPERTS, TOK));
    assert_non_null(b.picks = b.be->op->alloc(b.be, TOK * 8 * USED, HN_MEM_ROWS));
    for (int e = 0; e < EXPERTS; e++) {
        b.unit[e * EXPERTS + e] = 1;
        b.bias[e] = (float)tm_u("bias", (uint64_t)e);
        b.scale[e] = 1 + (float)tm_u("scale", (uint64_t)e) / 2;
    }
    for (int i = 0; i < TOK * EXPERTS; i++) b.x[i] = 3 * (float)tm_u("x", (uint64_t)i);
    b.router = (hn_weight){ .type = HN_F32, .n_in = EXPERTS, .n_out = EXPERTS, .row_bytes = EXPERTS * sizeof(float) };
    return b;
}

static void close_bench(bench *b)
{
    b->be->op->act_release(b->be, b->act);
    b->be->op->release(b->be, b->picks);
    b->be->op->free(b->be);
    hone_context_free(b->c);
}

/* Rows [t0, t0 + n) of x, as one step. */
static void route(bench *b, hn_route r, int t0, int n, int32_t *id, float *w)
{
    const hn_backend_ops *op = b->be->op;
    b->router.data = b->unit;
    r.router = &b->router;
    op->step_begin(b->be, &(hn_step_block){ .n_tok = n });
    op->act_shape(b->be, b->act, EXPERTS, n);
    op->act_write(b->be, b->act, b->x + t0 * EXPERTS, &(hn_act_part){ 0, n, 0, EXPERTS });
    op->route(b->be, b->picks, b->act, &r);
    for (int t = 0; t < n; t++) {
        op->read(b->be, id + t * r.n_used, b->picks, (size_t)t * 8 * (size_t)r.n_used, (size_t)r.n_used * 4);
        op->read(b->be, w + t * r.n_used, b->picks, (size_t)(2 * t + 1) * 4 * (size_t)r.n_used, (size_t)r.n_used * 4);
    }
    assert_int_equal(op->step_end(b->be, NULL, NULL), HONE_OK);
}

/* ---- the plain program --------------------------------------------------------------------------------- */

static int best_of(const double *s, const bool *out, int from, int to)
{
    int best = -1;
    for (int e = from; e < to; e++)
        if (!out[e] && (best < 0 || s[e] > s[best])) best = e;
    return best;
}

static void plain(const bench *b, const hn_route *r, const float *l, int32_t *id, double *w)
{
    double p[EXPERTS], s[EXPERTS], group[EXPERTS], sum = 0, chosen = 0;
    bool out[EXPERTS] = { false }, gone[EXPERTS] = { false };
    for (int e = 0; e < EXPERTS; e++) sum += exp((double)l[e]);
    for (int e = 0; e < EXPERTS; e++) {
        p[e] = r->gating == HN_GATING_SOFTMAX   ? exp((double)l[e]) / sum
               : r->gating == HN_GATING_SIGMOID ? 1 / (1 + exp(-(double)l[e]))
                                                : (double)l[e];
        s[e] = p[e] + (r->bias ? (double)b->bias[e] : 0);
    }
    if (r->n_group > 1) {
        int size = EXPERTS / r->n_group;
        for (int g = 0; g < r->n_group; g++) {
            int one = best_of(s, out, g * size, (g + 1) * size);
            out[one] = true;
            group[g] = s[one];
            if (!r->best_alone) group[g] += s[best_of(s, out, g * size, (g + 1) * size)];
            out[one] = false;
        }
        for (int e = 0; e < EXPERTS; e++) out[e] = true;
        for (int i = 0; i < r->n_group_used; i++) {
            int g = best_of(group, gone, 0, r->n_group);
            gone[g] = true;
            for (int e = g * size; e < (g + 1) * size; e++) out[e] = false;
        }
    }
    for (int j = 0; j < r->n_used; j++) {
        id[j] = best_of(s, out, 0, EXPERTS);
        double near = 0; /* of those left; as SparseMixer's authors wrote it, without noise */
        for (int e = 0; e < EXPERTS; e++)
            if (!out[e] && (s[id[j]] - s[e]) / fmax(fabs(s[e]), s[id[j]]) <= 0.02) near += exp(s[e] - s[id[j]]);
        out[id[j]] = true;
        w[j] = r->gating == HN_GATING_CHOSEN   ? exp((double)l[id[j]])
               : r->gating == HN_GATING_INPUT  ? 1 / (1 + exp(-(double)l[id[j]]))
               : r->gating == HN_GATING_SPARSE ? 1 / near
                                               : p[id[j]];
        chosen += w[j];
    }
    for (int j = 0; j < r->n_used; j++) {
        if (r->norm || r->gating == HN_GATING_CHOSEN) w[j] /= fmax(chosen, 0x1p-14);
        if (r->scale != 0) w[j] *= (double)r->scale;
        if (r->per_expert) w[j] *= (double)b->scale[id[j]];
    }
}

/* ---- tests ------------------------------------------------------------------------------------------------ */

static void choices_are_the_plain_programs(void **state)
{
    bench b = open_bench(NULL, 3);
    for (hn_gating g = HN_GATING_SOFTMAX; g <= HN_GATING_SPARSE; g++)
        for (int k = 1; k <= USED; k++)
            for (int how = 0; how < 32; how++) {
                const hn_route r = { .n_used = k,
                                     .gating = g,
                                     .bias = how & 1 ? b.bias : NULL,
                                     .per_expert = how & 2 ? b.scale : NULL,
                                     .norm = how & 4,
                                     .scale = how & 4 ? 2.5f : 0,
                                     .n_group = how & 8 ? 4 : 1,
                                     .n_group_used = how & 8 ? 2 : 1,
                                     .best_alone = how & 16 };
                int32_t id[TOK * USED], want_id[USED];
                float w[TOK * USED];
                double want[USED];
                route(&b, r, 0, TOK, id, w);
                for (int t = 0; t < TOK; t++) {
                    plain(&b, &r, b.x + t * EXPERTS, want_id, want);
                    for (int j = 0; j < k; j++) {
                        assert_int_equal(id[t * k + j], want_id[j]);
                        assert_true(fabs((double)w[t * k + j] - want[j]) <= 2e-6 * fabs(want[j]));
                    }
                }
            }
    close_bench(&b);
}

static void ties_go_to_the_lower_number(void **state)
{
    bench b = open_bench("scalar", 1);
    int32_t id[USED];
    float w[USED];
    for (int e = 0; e < EXPERTS; e++) b.x[e] = e == 9 || e == 3 || e == 14 ? 1.0f : e == 6 ? 2.0f : 0.0f;
    const hn_route r = { .n_used = USED, .gating = HN_GATING_SOFTMAX, .norm = true };
    route(&b, r, 0, 1, id, w);
    assert_int_equal(id[0], 6), assert_int_equal(id[1], 3), assert_int_equal(id[2], 9), assert_int_equal(id[3], 14);
    for (int e = 0; e < EXPERTS; e++) b.x[e] = -200; /* all weights are nothing: the least sum divides */
    const hn_route s = { .n_used = USED, .gating = HN_GATING_SIGMOID, .norm = true };
    route(&b, s, 0, 1, id, w);
    for (int j = 0; j < USED; j++) assert_true(id[j] == j && w[j] >= 0 && w[j] < 1e-30f);
    b.x[5] = NAN; /* some choice, within bounds */
    route(&b, r, 0, 1, id, w);
    for (int j = 0; j < USED; j++) assert_in_range(id[j], 0, EXPERTS - 1);
    close_bench(&b);
}

/* Of several that are near the best each weighs its share, of those that are not there it is all. */
static void sparse_shares_are_of_those_near(void **state)
{
    bench b = open_bench("scalar", 1);
    int32_t id[2];
    float w[2];
    for (int e = 0; e < EXPERTS; e++) b.x[e] = e == 3 ? 4.0f : e == 7 ? 3.95f : e == 9 ? 3.9f : e == 12 ? -4.0f : 1.0f;
    const hn_route r = { .n_used = 2, .gating = HN_GATING_SPARSE };
    route(&b, r, 0, 1, id, w); /* 3.9 is 0.025 below 4, 0.0127 below 3.95 */
    assert_int_equal(id[0], 3), assert_int_equal(id[1], 7);
    assert_true(fabs((double)w[0] - 1 / (1 + exp(-0.05))) < 1e-6 && fabs((double)w[1] - 1 / (1 + exp(-0.05))) < 1e-6);
    for (int e = 0; e < EXPERTS; e++) b.x[e] = e == 5 ? -1.0f : e == 6 ? -1.01f : -3.0f; /* nobody is above 0 */
    route(&b, r, 0, 1, id, w);
    assert_int_equal(id[0], 5), assert_int_equal(id[1], 6);
    assert_true(fabs((double)w[0] - 1 / (1 + exp(-0.01))) < 1e-6 && w[1] == 1.0f);
    close_bench(&b);
}

static void company_changes_nothing(void **state)
{
    int32_t id[TOK * USED], first_id[TOK * USED];
    float w[TOK * USED], first[TOK * USED];
    const hn_route r = { .n_used = USED, .gating = HN_GATING_SOFTMAX, .norm = true, .scale = 2.5f };
    bench one = open_bench("scalar", 1);
    route(&one, r, 0, TOK, first_id, first);
    close_bench(&one);
    for (const char *const *cpu = tm_levels(); *cpu; cpu++)
        for (int n = 1; n <= TOK; n += n < 3 ? 1 : 7) {
            bench b = open_bench(*cpu, 2);
            for (int t = 0; t < TOK; t += n) route(&b, r, t, TOK - t < n ? TOK - t : n, id + t * USED, w + t * USED);
            assert_memory_equal(id, first_id, sizeof id);
            assert_memory_equal(w, first, sizeof w);
            close_bench(&b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_the_plain_programs),
        cmocka_unit_test(ties_go_to_the_lower_number),
        cmocka_unit_test(sparse_shares_are_of_those_near),
        cmocka_unit_test(company_changes_nothing),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
