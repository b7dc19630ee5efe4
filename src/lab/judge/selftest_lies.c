/* The quick wrong builds of the selftest: results of a measured process that were tampered with, and one way of
 * computing that answers otherwise. Owns what is put before the laboratory; nothing is mocked but the lie. */
#include "lab/judge/selftest.h"

#include "lab/bench/claims.h"
#include "lab/bench/process.h"
#include "lab/machine/clock.h"
#include "lab/quality/paths.h"
#include "lab/quality/proof.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- claims ------------------------------------------------------------------------------------- */

enum { PROMPT = 32, GEN = 16 };

static void scale(json_t *o, const char *key, double by)
{
    json_object_set_new(o, key, json_real(by * json_number_value(json_object_get(o, key))));
}

static void tamper(json_t *o, int lie)
{
    json_t *gaps = json_object_get(o, "gaps_ms");
    switch (lie) {
    case 0: json_array_remove(json_object_get(o, "ids"), 0); break;
    case 1: json_object_set_new(o, "positions", json_integer(PROMPT)); break;
    case 2: scale(o, "decode_tok_s", 1.3); break;
    case 3: scale(o, "prefill_tok_s", 0.2); break;
    case 4: /* a generation that says it took a tenth, in figures that agree with each other */
        for (size_t i = 0; i < json_array_size(gaps); i++)
            json_array_set_new(gaps, i, json_real(0.1 * json_number_value(json_array_get(gaps, i))));
        scale(o, "decode_tok_s", 10);
        scale(o, "itl_ms", 0.1);
        scale(o, "steady_tok_s", 10);
        scale(o, "sustained_tok_s", 10);
        scale(o, "gen_witness_ms", 10);
        break;
    case 5: json_object_set_new(o, "process_s", json_real(1e3)); break;
    case 6: json_object_set_new(o, "load_ms", json_real(1e7)); break;
    case 7: json_object_del(o, "proof"); break;
    default: break;
    }
}

hone_status hn_selftest_claims(hn_selftest_check *c, const char *model, bool (*stop)(void *), hone_error *err)
{
    enum { LIES = 8 };
    const hn_asked asked = { .n_prompt = PROMPT, .n_gen = GEN };
    hn_argv a = { 0 };
    hn_child child;
    char why[300] = "";
    hn_argv_extend(&a, (const char *const[]){ "hone", "bench", "_sample", "--n-prompt=32", "--n-gen=16", NULL });
    hn_argv_add(&a, "--model=%s", model);
    hn_argv_add(&a, "%" PRIu64, hn_clock_ns());
    hone_status st = hn_argv_check(&a, "a measured process", err);
    if (st == HONE_OK) st = hn_child_run(&child, hn_argv_words(&a), stop, err);
    hn_argv_free(&a);
    if (st != HONE_OK) return st;
    if (!child.result || !hn_claims_hold(child.result, &asked, &child.seen, why, sizeof why))
        st = HN_FAIL(err, HONE_E_NUMERIC, "an honest process is not believed: %s", child.result ? why : child.message);
    for (int lie = 0; lie < LIES && st == HONE_OK; lie++) {
        json_t *o = json_deep_copy(child.result);
        tamper(o, lie);
        bool noticed = o && !hn_claims_hold(o, &asked, &child.seen, why, sizeof why);
        c->n++;
        c->good += noticed;
        c->exercised = true;
        snprintf(c->detail, sizeof c->detail, "%.390s", noticed ? why : "a false claim was believed");
        json_decref(o);
    }
    hn_child_free(&child);
    return st;
}

/* ---- a way that answers otherwise ------------------------------------------------------------------ */

typedef struct opened {
    const hone_model *m;
    hone_context *ctx;
    hone_session *s;
} opened;

static void close_opened(opened *o)
{
    hone_session_free(o->s);
    hone_context_free(o->ctx);
    o->s = NULL;
    o->ctx = NULL;
}

/* The session of one chunk keeps its cache in another type: its logits are a little different. */
static hone_status open_wrong(void *arg, const hn_q_way *w, hone_session **out, hone_error *err)
{
    opened *o = arg;
    *out = NULL;
    if (w->beside) return HONE_OK; /* one at a time is enough here */
    close_opened(o);
    const hone_context_params cp = { .n_threads = w->threads, .cpu = w->cpu };
    const hone_session_params sp = { .n_ctx = w->n_ctx,
                                     .n_seq = w->n_seq,
                                     .n_chunk = w->chunk,
                                     .cache = w->chunk == 1 ? HONE_CACHE_Q8_0 : HONE_CACHE_F16 };
    hone_status st = hone_context_new(&o->ctx, &cp, err);
    if (st == HONE_OK) st = hone_session_new(&o->s, o->ctx, o->m, &sp, err);
    *out = o->s;
    return st;
}

hone_status hn_selftest_ways(hn_selftest_check *c, const char *model, hone_error *err)
{
    hone_model *m;
    hone_model_info info;
    opened o = { .m = NULL };
    hn_paths paths;
    const hn_quality sound = { .verdict = { .state = HN_VALID }, .n_distinct = 1 };
    hone_status st = hone_model_open(&m, model, NULL, err);
    if (st != HONE_OK) return st;
    hone_model_get_info(m, &info);
    hn_q_prompts *prompts = calloc(1, sizeof *prompts);
    o.m = m;
    const hn_paths_params p = { .m = m, .open = open_wrong, .arg = &o };
    if (!prompts) st = HN_FAIL(err, HONE_E_NOMEM, "quality prompts");
    if (info.recurrent) snprintf(c->detail, sizeof c->detail, "not exercised: a recurrent model has no cache");
    else if (st == HONE_OK && (st = hn_q_prompts_make(prompts, m, err)) == HONE_OK &&
             (st = hn_paths_run(&paths, &p, prompts, &sound, err)) == HONE_OK) {
        bool noticed = paths.verdict.state == HN_INVALID && strstr(paths.verdict.reason, "in chunks of 1");
        c->n++;
        c->good += noticed;
        c->exercised = true;
        snprintf(c->detail, sizeof c->detail, "%.390s", paths.verdict.reason);
    }
    close_opened(&o);
    free(prompts);
    hone_model_close(m);
    return st;
}
