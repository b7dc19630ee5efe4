/* Measurements for baselines and gates: command lines of fresh processes, and what comes
 * back. Refuses to judge. */
#include "lab/judge/gate.h"
#include "lab/bench/bench.h"
#include "lab/bench/claims.h"
#include "lab/record/history.h"
#include "lab/bench/process.h"
#include "lab/machine/clock.h"
#include "lab/quality/proof.h"
#include "base/json_text.h"

#include <inttypes.h>
#include <stdlib.h>

static hone_status run(hn_child *out, hn_argv *a, bool (*stop)(void *), hone_error *err)
{
    hone_status st = hn_argv_check(a, "a measured process", err);
    if (st == HONE_OK) st = hn_child_run(out, hn_argv_words(a), stop, err);
    hn_argv_free(a);
    return st;
}

/* A baseline has the same settings for all entries: those that none of these takes would be refused. */
static void add_args(hn_argv *a, const hn_gate_run *g, bool quality,
                     bool (*wanted)(const hn_gate_run *g, const char *arg))
{
    size_t i;
    json_t *arg;
    json_array_foreach(g->args, i, arg) if (json_is_string(arg) && wanted(g, json_string_value(arg)) &&
                                            (quality || !hn_argv_is(json_string_value(arg), "quality")))
        hn_argv_add(a, "%s", json_string_value(arg));
}

static bool any_takes(const hn_gate_run *g, const char *arg)
{
    size_t i;
    json_t *id;
    json_array_foreach(g->ids, i, id) if (hn_bench_takes(json_string_value(id), arg)) return true;
    return false;
}

static bool quality_takes(const hn_gate_run *g, const char *arg) { return hn_bench_takes("quality", arg); }

hone_status hn_gate_quality(json_t **out, const hn_gate_run *g, char *why, size_t cap, hone_error *err)
{
    hn_argv a = { 0 };
    hn_child child;
    *out = NULL;
    why[0] = 0;
    hn_argv_extend(&a, (const char *const[]){ "hone", "bench", "_quality", NULL });
    hn_argv_add(&a, "--model=%s", g->model);
    add_args(&a, g, true, quality_takes);
    hn_argv_add(&a, "%" PRIu64, hn_clock_ns());
    hone_status st = run(&child, &a, g->stop, err);
    if (st != HONE_OK) return st;
    json_t *r = child.result;
    if (r && child.exit_code == 0 && json_object_get(r, "hash")) *out = json_incref(r);
    else hn_child_why(&child, why, cap);
    hn_child_free(&child);
    return HONE_OK;
}

/* One record of what a process printed. */
static void take(json_t *records, json_t *r, char *why, size_t cap)
{
    const char *reason = json_string_value(json_object_get(r, "invalid_reason"));
    if (json_is_false(json_object_get(r, "valid")) && !why[0])
        snprintf(why, cap, "%s: %s", hn_record_id(r), reason ? reason : "invalid");
    else if (hn_record_is_plain(r) && !why[0]) hn_claims_record(r, true, why, cap);
    json_array_append(records, r);
}

hone_status hn_gate_measure(json_t *records, const hn_gate_run *g, int32_t samples, bool quality, char *why, size_t cap,
                            int *exit_code, hone_error *err)
{
    hn_argv a = { 0 };
    hn_child child;
    size_t i, before = json_array_size(records);
    json_t *id, *r;
    why[0] = 0;
    *exit_code = 0;
    hn_argv_extend(&a, (const char *const[]){ "hone", "bench", NULL });
    json_array_foreach(g->ids, i, id) hn_argv_add(&a, "%s", json_string_value(id));
    add_args(&a, g, quality, any_takes);
    if (g->model && any_takes(g, "--model")) hn_argv_add(&a, "--model=%s", g->model);
    hn_argv_add(&a, "--samples=%d", (int)samples);
    if (!quality && any_takes(g, "--no-quality")) hn_argv_add(&a, "--no-quality");
    hn_argv_add(&a, "--json");
    hone_status st = run(&child, &a, g->stop, err);
    if (st != HONE_OK) return st;
    json_array_foreach(json_object_get(child.result, "records"), i, r) take(records, r, why, cap);
    if (!why[0]) hn_claims_records(json_object_get(child.result, "records"), why, cap);
    if (json_array_size(records) == before) {
        if (!why[0]) hn_child_why(&child, why, cap);
        *exit_code = child.exit_code > 0 ? child.exit_code : 1;
    }
    hn_child_free(&child);
    return HONE_OK;
}

/* Samples of `is` whose times between tokens are those of a sample of `was`, every one: none of them was measured. */
static bool same_times(json_t *was, json_t *is)
{
    enum { ALIKE = 6 };
    json_t *a, *b;
    size_t i, k;
    json_array_foreach(json_object_get(is, "samples"), i, a) json_array_foreach(json_object_get(was, "samples"), k, b)
    {
        json_t *x = json_object_get(a, "gaps_ms");
        if (json_array_size(x) >= ALIKE && json_equal(x, json_object_get(b, "gaps_ms"))) return true;
    }
    return false;
}

bool hn_gate_unproved(json_t *was, json_t *is)
{
    return hn_proof_less(json_object_get(json_object_get(is, "extra"), "proof"),
                         json_object_get(json_object_get(was, "extra"), "proof"), false);
}

void hn_gate_answers_differ(char *dst, size_t cap, json_t *was, json_t *is)
{
    char what[120];
    json_t *a = json_object_get(json_array_get(json_object_get(was, "samples"), 0), "ids");
    json_t *b = json_object_get(json_array_get(json_object_get(is, "samples"), 0), "ids");
    dst[0] = 0;
    if (!json_is_array(a) || !json_is_array(b) || json_equal(a, b)) {
        if (hn_proof_differ(what, sizeof what, json_object_get(json_object_get(was, "extra"), "proof"),
                            json_object_get(json_object_get(is, "extra"), "proof")))
            snprintf(dst, cap, "%s of the timed processes are not those of the baseline's", what);
        else if (same_times(was, is))
            snprintf(dst, cap, "a sample has the very times of one of the baseline's: it was not measured");
        return;
    }
    size_t i = 0;
    while (i < json_array_size(a) && json_equal(json_array_get(a, i), json_array_get(b, i))) i++;
    snprintf(dst, cap, "the timed processes generated other tokens than the baseline's, from token %zu on", i + 1);
}
