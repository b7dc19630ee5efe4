/* e2e.profile: what each operation of a prompt and of a token takes, sample after sample. Owns
 * how samples become records; the looking is profile.c's. */
#define _GNU_SOURCE
#include "lab/bench/runner.h"
#include "lab/bench/profile.h"
#include "lab/bench/bench.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <stdlib.h>

enum { MOST_SAMPLES = 200 };
typedef struct taken { /* of one phase */
    char name[HN_PROFILE_OPS][64], types[HN_PROFILE_OPS][64];
    int n_op;
    double share[HN_PROFILE_OPS + 1][MOST_SAMPLES],
        ms[HN_PROFILE_OPS + 1][MOST_SAMPLES]; /* the last: between the operations */
} taken;
typedef struct profiled {
    hn_profile p;
    taken phase[HN_PROFILE_ANSWER];
} profiled;

static void copy_name(char to[64], const char *from)
{
    size_t n = strlen(from);
    if (n > 63) n = 63;
    memcpy(to, from, n);
    to[n] = 0;
}

static void take(taken *t, const hn_profile_phase *ph, size_t i)
{
    t->n_op = ph->n_op;
    for (int k = 0; k < ph->n_op; k++) {
        const hn_profile_op *op = &ph->op[k];
        copy_name(t->name[k], op->name);
        copy_name(t->types[k], op->types);
        t->share[k][i] = 100 * (double)op->all.ns / (double)ph->whole_ns;
        t->ms[k][i] = (double)op->all.ns * 1e-6 / (double)ph->n_call;
    }
    double rest = hn_profile_rest(ph);
    t->share[ph->n_op][i] = 100 * rest;
    t->ms[ph->n_op][i] = rest * (double)ph->whole_ns * 1e-6 / (double)ph->n_call;
}

static hone_status add_phase(hn_bench_run *r, const hn_bench_entry *e, const taken *t, const char *name, size_t n,
                             const hn_verdict *v, int32_t n_prompt, int32_t n_gen, size_t wanted, hone_error *err)
{
    hone_status st = HONE_OK;
    for (int k = 0; k <= t->n_op && n && st == HONE_OK; k++) {
        bool rest = k == t->n_op;
        char variant[160];
        hn_stats ms;
        if ((st = hn_stats_of(&ms, t->ms[k], n, err)) != HONE_OK) break;
        snprintf(variant, sizeof variant, "%s, %s", name, rest ? "(rest)" : t->name[k]);
        hn_bench_result res = { .variant = variant, .samples = t->share[k], .n = n, .zero_ok = true, .verdict = *v };
        res.config = json_pack("{s:i, s:i, s:i, s:s, s:i, s:s}", "n_prompt", (int)n_prompt, "n_gen", (int)n_gen,
                               "depth", 0, "kv", r->set.kv, "chunk", (int)r->set.chunk, "sampler", "greedy");
        res.extra = json_pack("{s:o, s:o}", "ms_per_call", hn_lab_num(ms.median), "weights",
                              !rest && t->types[k][0] ? hn_lab_str(t->types[k]) : json_null());
        if (rest && ms.n && res.samples[0] > 100 * HN_PROFILE_MAX_REST)
            hn_bench_note(&res, "more than 5 %% of the time is not in the operations");
        if (n < wanted) hn_bench_note(&res, "interrupted after %zu of %zu", n, wanted);
        st = hn_bench_add(r, e, &res, err);
    }
    return st;
}

hone_status hn_run_e2e_profile(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const char *const names[HN_PROFILE_ANSWER] = { "prompt", "token" };
    hone_model *m;
    hone_session *s = NULL;
    int32_t n_prompt = r->set.n_prompt > 0 ? r->set.n_prompt : 128, n_gen = r->set.n_gen > 0 ? r->set.n_gen : 32;
    size_t wanted = r->free_samples && r->set.samples > 6 ? 6 : (size_t)r->set.samples, n = 0;
    if (wanted > MOST_SAMPLES)
        return HN_FAIL(err, HONE_E_ARG, "%s: %zu samples, expected at most %d", e->id, wanted, MOST_SAMPLES);
    profiled *w = calloc(1, sizeof *w);
    if (!w) return HN_FAIL(err, HONE_E_NOMEM, "%s: samples", e->id);
    hn_verdict v = { .state = HN_VALID };
    hone_status st = hn_bench_model(r, &m, err), ran = HONE_OK;
    if (st == HONE_OK) st = hn_bench_session(r, &s, n_prompt + n_gen, 1, err);
    const hn_profile_params p = { .n_prompt = n_prompt, .n_gen = n_gen, .rounds = 1, .n_chunk = r->set.chunk };
    for (size_t i = 0; i < wanted + 1 && st == HONE_OK && ran == HONE_OK; i++) { /* the first is a warm-up */
        if (hn_bench_step(r, (double)i / (double)(wanted + 1))) {
            ran = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
            break;
        }
        ran = hn_profile_run(&w->p, s, m, &p, err);
        if (ran != HONE_OK) break;
        if (w->p.verdict.state == HN_INVALID) hn_invalid(&v, "%s", w->p.verdict.reason);
        for (int k = 0; k < HN_PROFILE_ANSWER && i > 0; k++) take(&w->phase[k], &w->p.phase[k], i - 1);
        n += i > 0;
        hn_profile_free(&w->p);
    }
    hone_session_free(s);
    for (int k = 0; k < HN_PROFILE_ANSWER && st == HONE_OK; k++)
        st = add_phase(r, e, &w->phase[k], names[k], n, &v, n_prompt, n_gen, wanted, err);
    free(w);
    return st == HONE_OK ? ran : st;
}
