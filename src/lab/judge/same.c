/* Answers of a comparison's runs, kept and compared. Owns the pairing of runs that were asked
 * the same. */
#include "lab/judge/same.h"

#include "base/json_tree.h"
#include "lab/quality/proof.h"
#include "lab/stats/compare.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    const hn_target *t;
    int side;                                                    /* 0: a */
    bool differs;                                                /* from the other side's, which is allowed */
    bool compared;                                               /* with a run of the other side */
    uint64_t question;                                           /* runs with equal questions were asked the same */
    char *proof;                                                 /* JSON text; NULL: it proves nothing */
    double claimed_s, wall_s, part_s[HN_PARTS], anon_mb, rss_mb; /* NaN: not said */
    int n_clocked;
    char model[HN_MODEL_PARTS][65]; /* as hn_measured has it */
} run;

struct hn_same {
    hn_side *a, *b;
    bool allowed; /* other answers of the two sides */
    bool told;    /* b's plain runs cannot be timed from here, and a's could */
    run *run;
    size_t n, cap;
};

hone_status hn_same_new(hn_same **out, hn_side *a, hn_side *b, bool different, bool allowed, uint64_t seed,
                        hone_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return HN_FAIL(err, HONE_E_NOMEM, "answers of a comparison");
    **out = (hn_same){ .a = a, .b = b, .allowed = different || allowed };
    bool both = hn_side_can_ask(a) && hn_side_can_ask(b) && !different;
    hn_side_ask(a, both ? seed | 1 : 0);
    hn_side_ask(b, both ? seed | 1 : 0);
    bool asked = hn_side_can_talk(a) && hn_side_can_talk(b);
    (*out)->told = hn_side_can_talk(a) && !asked;
    hn_side_talk(a, asked);
    hn_side_talk(b, asked);
    return HONE_OK;
}

void hn_same_free(hn_same *s)
{
    for (size_t i = 0; s && i < s->n; i++) free(s->run[i].proof);
    if (s) free(s->run);
    free(s);
}

bool hn_same_differs(const hn_same *s, const hn_target *t)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->run[i].t == t && s->run[i].differs) return true;
    return false;
}

bool hn_same_compared(const hn_same *s, const hn_target *t)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->run[i].t == t && s->run[i].compared) return true;
    return false;
}

/* Words for the first difference of two proofs: objects of proofs by the names of records. */
static bool differ(char *what, size_t cap, const char *a, const char *b)
{
    json_t *x = NULL, *y = NULL;
    const char *name;
    json_t *of;
    char part[160];
    bool found = false;
    hn_json_tree(&x, a, strlen(a), NULL, "a proof", NULL);
    hn_json_tree(&y, b, strlen(b), NULL, "a proof", NULL);
    json_object_foreach(x, name, of)
    {
        if (found || !hn_proof_differ(part, sizeof part, of, json_object_get(y, name))) continue;
        snprintf(what, cap, "%s%s%s", name, name[0] ? ": " : "", part);
        found = true;
    }
    json_decref(x);
    json_decref(y);
    return found;
}

static const char *name_of(const hn_same *s, int side) { return hn_side_label(side ? s->b : s->a); }

static size_t runs_before(const hn_same *s, size_t i)
{
    size_t n = 0;
    for (size_t k = 0; k <= i; k++) n += s->run[k].side == s->run[i].side && s->run[k].t == s->run[i].t;
    return n;
}

static hone_status compare(hn_same *s, size_t i, hone_error *err)
{
    char what[240];
    run *now = &s->run[i];
    for (size_t k = 0; k < i; k++) {
        const run *was = &s->run[k];
        if (was->t != now->t || was->question != now->question || !was->proof) continue;
        now->compared = now->compared || was->side != now->side;
        bool same = strcmp(was->proof, now->proof) == 0 || !differ(what, sizeof what, was->proof, now->proof);
        if (s->allowed && was->side != now->side) { /* it is held against a run of its own side all the same */
            now->differs = now->differs || !same;
            continue;
        }
        if (same) return HONE_OK;
        return HN_FAIL(
            err, HONE_E_NUMERIC,
            "different answers: run %zu of side %c (%s) and run %zu of side %c (%s) were asked the same, and %s "
            "differ; their speeds mean nothing",
            runs_before(s, k), "ab"[was->side], HN_ESC(name_of(s, was->side), strlen(name_of(s, was->side))),
            runs_before(s, i), "ab"[now->side], HN_ESC(name_of(s, now->side), strlen(name_of(s, now->side))), what);
    }
    return HONE_OK;
}

/* Runs of one target measured one content, and each says as much of it as side a did: to leave it out saves time. */
static hone_status same_model(const hn_same *s, size_t i, hone_error *err)
{
    static const char *const words[HN_MODEL_PARTS] = { "fingerprint", "hash of the file", "identity" };
    const run *now = &s->run[i], *first = NULL;
    for (size_t k = 0; k < i && !first; k++)
        if (s->run[k].t == now->t && s->run[k].side == 0) first = &s->run[k];
    for (int p = 0; first && p < HN_MODEL_PARTS; p++) {
        if (!first->model[p][0] || strcmp(first->model[p], now->model[p]) == 0) continue;
        return HN_FAIL(
            err, HONE_E_NUMERIC,
            "run %zu of side %c (%s) measured another model than run 1 of side a: its %s is %.16s…, expected "
            "%.16s…",
            runs_before(s, i), "ab"[now->side], HN_ESC(name_of(s, now->side), strlen(name_of(s, now->side))), words[p],
            now -> model[p][0] ? now -> model[p] : "not told", first->model[p]);
    }
    return HONE_OK;
}

/* The name of a record of which a proved more in its first run than b in this one; NULL: none. It lives as long as
 * *keep, which the caller frees. */
static const char *unproved(const hn_same *s, size_t i, json_t **keep)
{
    const run *now = &s->run[i], *first = NULL;
    const char *name, *missing = NULL;
    json_t *of, *mine = NULL;
    for (size_t k = 0; k < i && !first; k++)
        if (s->run[k].t == now->t && s->run[k].side == 0 && s->run[k].proof) first = &s->run[k];
    if (now->side == 0 || !first) return NULL;
    hn_json_tree(keep, first->proof, strlen(first->proof), NULL, "a proof", NULL);
    if (now->proof) hn_json_tree(&mine, now->proof, strlen(now->proof), NULL, "a proof", NULL);
    json_object_foreach(*keep, name, of) if (!missing && hn_proof_less(json_object_get(mine, name), of, true)) missing =
        name;
    json_decref(mine);
    return missing;
}

hone_status hn_same_check(hn_same *s, const hn_side *side, const hn_target *t, const hn_measured *m, hone_error *err)
{
    const double share = 0.02, slack_s = 0.005;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        run *grown = realloc(s->run, cap * sizeof *grown);
        if (!grown) return HN_FAIL(err, HONE_E_NOMEM, "answers of a comparison");
        s->run = grown;
        s->cap = cap;
    }
    run *r = &s->run[s->n];
    *r = (run){ .t = t,
                .side = side != s->a,
                .question = m->question,
                .anon_mb = m->anon_mb > 0 ? m->anon_mb : NAN,
                .rss_mb = m->rss_mb > 0 ? m->rss_mb : NAN,
                .n_clocked = m->n_clocked,
                .claimed_s = m->claimed_s > 0 ? m->claimed_s : NAN,
                .wall_s = m->wall_s > 0 ? m->wall_s : NAN };
    memcpy(r->part_s, m->part_s, sizeof r->part_s);
    memcpy(r->model, m->model, sizeof r->model);
    if (m->proof[0] && !(r->proof = strdup(m->proof))) return HN_FAIL(err, HONE_E_NOMEM, "answers of a comparison");
    s->n++;
    hone_status st = s->allowed ? HONE_OK : same_model(s, s->n - 1, err);
    if (st != HONE_OK) return st;
    if (r->claimed_s > (1 + share) * r->wall_s + slack_s)
        return HN_FAIL(err, HONE_E_NUMERIC, "side %c (%s) claims %.3f s of work, and its process ran for %.3f s",
                       "ab"[r->side], HN_ESC(name_of(s, r->side), strlen(name_of(s, r->side))), r -> claimed_s,
                       r -> wall_s);
    if (!r->proof && hn_side_must_prove(side, t))
        return HN_FAIL(err, HONE_E_NUMERIC,
                       "run %zu of side %c (%s) proves nothing of its answer, and its program is one that can",
                       runs_before(s, s->n - 1), "ab"[r->side],
                       HN_ESC(name_of(s, r->side), strlen(name_of(s, r->side))));
    if (s->told && !s->allowed && hn_side_must_prove(s->a, t))
        return HN_FAIL(err, HONE_E_NUMERIC,
                       "side b (%s) tells the times of its runs itself, and side a's can be asked and timed from here; "
                       "an older program, which cannot, is named first, as side a",
                       HN_ESC(name_of(s, 1), strlen(name_of(s, 1))));
    json_t *keep = NULL;
    const char *missing = unproved(s, s->n - 1, &keep);
    r->differs = missing && s->allowed;
    if (missing && !s->allowed)
        HN_FAIL(err, HONE_E_NUMERIC,
                "run %zu of side b (%s) proves nothing, or less, of its answer%s%s than side a does; an older "
                "program, which cannot, is named first, as side a",
                runs_before(s, s->n - 1), HN_ESC(name_of(s, 1), strlen(name_of(s, 1))), missing[0] ? " to " : "",
                HN_ESC(missing, strlen(missing)));
    json_decref(keep);
    if (missing && !s->allowed) return HONE_E_NUMERIC;
    return r->proof ? compare(s, s->n - 1, err) : HONE_OK;
}

/* The times of a side's last n runs of a target, the last one first. */
static size_t last_runs(const run **out, size_t n, const hn_same *s, const hn_target *t, int side)
{
    size_t k = 0;
    for (size_t i = s->n; i-- > 0 && k < n;)
        if (s->run[i].t == t && s->run[i].side == side && isfinite(s->run[i].claimed_s) && isfinite(s->run[i].wall_s))
            out[k++] = &s->run[i];
    return k;
}

/* What b claims to be better by, of a pair of runs, and how much of it was not seen; seconds, or MB. */
static void gain_of(double *gain, double *unseen, const run *a, const run *b, const char *metric, double ratio)
{
    if (strcmp(metric, "peak_anon_mb") == 0) {
        *gain = a->anon_mb - b->anon_mb;
        *unseen = *gain - (a->rss_mb - b->rss_mb);
        return;
    }
    *unseen = b->wall_s - b->claimed_s - (a->wall_s - a->claimed_s);
    *gain = b->n_clocked ? b->claimed_s / b->n_clocked * (ratio - 1) : a->claimed_s - b->claimed_s;
    if (!a->n_clocked != !b->n_clocked) *gain = NAN;
}

bool hn_same_seen(const hn_same *s, const hn_target *t, const char *metric, double ratio)
{
    const double part = 0.6, level = 0.01 / HN_AB_LOOKS;
    size_t used = 0, n = 0, cap = s->n + 1;
    long shown = 0;
    hn_stats g = { .median = 0 };
    const run **a = calloc(2 * cap, sizeof *a), **b = a ? a + cap : NULL;
    double *gain = calloc(2 * cap, sizeof *gain), *unseen = gain ? gain + cap : NULL;
    if (a && gain) {
        size_t n_a = last_runs(a, s->n, s, t, 0), n_b = last_runs(b, s->n, s, t, 1);
        n = n_a < n_b ? n_a : n_b;
    }
    for (size_t i = 0; i < n; i++) {
        gain_of(&gain[used], &unseen[used], a[i], b[i], metric, ratio);
        used += isfinite(gain[used]) && isfinite(unseen[used]);
    }
    if (used && hn_stats_of(&g, gain, used, NULL) != HONE_OK) used = 0;
    for (size_t i = 0; i < used; i++) shown += unseen[i] <= part * g.median;
    free(a);
    free(gain);
    return used && g.median > 0 && hn_binomial_half(used, (long)used - shown) <= level;
}

/* Which part's time a metric tells, or HN_PARTS: none's. */
static int part_of(const char *metric)
{
    static const char *const names[HN_PARTS] = { "load_ms", "prefill_tok_s", "ttft_ms", "decode_tok_s" };
    int k = 0;
    while (k < HN_PARTS && strcmp(metric, names[k]) != 0) k++;
    return k;
}

bool hn_same_tells_time(const char *metric) { return part_of(metric) != HN_PARTS; }

/* Seconds that a claims to take more than b, of a part alone. */
static double less_of(const run *a, const run *b, int part) { return a->part_s[part] - b->part_s[part]; }

/* And all in all, as the metric of the part tells it: the prompt alone, without what its first token took more. A
 * longer load is seen twice outside: the model is opened once to know it. */
static double less_in_all(const run *a, const run *b, int part)
{
    double load = less_of(a, b, HN_PART_LOAD), all = a->claimed_s - b->claimed_s + (load < 0 ? load : 0);
    return part == HN_PART_PROMPT ? all - less_of(a, b, HN_PART_FIRST) + less_of(a, b, part) : all;
}

/* Seconds that b's other parts take more. The first token's is the prompt's and more. */
static double lost_elsewhere(const run *a, const run *b, int part)
{
    double lost = 0;
    for (int k = 0; k < HN_PARTS; k++) {
        bool same = k == part || k == HN_PART_FIRST || (part == HN_PART_FIRST && k == HN_PART_PROMPT);
        double more = -less_of(a, b, k);
        if (!same && isfinite(more)) lost += more;
    }
    return lost;
}

/* Of pairs of runs, how many hide more than a part of the claimed gain from who looks from outside? Honest programs
 * show all of it, more or less as chance has it: at most half of the pairs then, beyond what a coin gives. Of a lie,
 * half of the pairs show that much; where a gain is to be seen, more do, beyond what a coin gives. */
hone_status hn_same_outside(const hn_same *s, const hn_target *t, const char *metric, int asks, bool *seen, bool *moved,
                            hone_error *err)
{
    /* an accusation shares its chance with all others of the comparison; what is not seen is none, and asks each look
     * alone; rest: of what nobody times, start and end */
    const double part = 0.6, level = 0.01 / (asks > 1 ? asks : 1), in_look = 0.01 / HN_AB_LOOKS, slack_s = 0.001,
                 rest = 0.02;
    size_t cap = s->n + 1, used = 0;
    long hidden = 0, shown = 0, kept = 0;
    int which = part_of(metric);
    *seen = true;
    *moved = false;
    if (which == HN_PARTS) return HONE_OK;
    const run **a = calloc(2 * cap, sizeof *a), **b = a ? a + cap : NULL;
    double *gain = calloc(4 * cap, sizeof *gain), *unseen = gain ? gain + cap : NULL,
           *slack = gain ? unseen + cap : NULL, *lost = gain ? slack + cap : NULL;
    hone_status st = a && gain ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "times of a comparison");
    size_t n_a = a ? last_runs(a, s->n, s, t, 0) : 0, n_b = a ? last_runs(b, s->n, s, t, 1) : 0;
    for (size_t i = 0; i < n_a && i < n_b && st == HONE_OK; i++) {
        gain[used] = less_of(a[i], b[i], which);
        unseen[used] = less_in_all(a[i], b[i], which) - (a[i]->wall_s - b[i]->wall_s);
        lost[used] = lost_elsewhere(a[i], b[i], which);
        slack[used] = slack_s + rest * fmax(b[i]->wall_s - b[i]->claimed_s, 0);
        used += isfinite(gain[used]) && isfinite(unseen[used]);
    }
    hn_stats g = { .median = 0 };
    if (st == HONE_OK && used) st = hn_stats_of(&g, gain, used, err);
    for (size_t i = 0; i < used; i++) {
        hidden += unseen[i] - slack[i] > part * g.median;
        shown += unseen[i] <= part * g.median;
        kept += lost[i] <= part * g.median;
    }
    *moved = used && g.median > 0 && hn_binomial_half(used, kept) <= in_look;
    /* of programs that can, one that tells no times is not seen to be better, nor one that may have moved its gain */
    if (used && g.median > 0)
        *seen = hn_binomial_half(used, (long)used - shown) <= in_look &&
                hn_binomial_half(used, (long)used - kept) <= in_look;
    else if (!used) *seen = !hn_side_can_ask(s->a) && !hn_side_can_ask(s->b);
    *seen = *seen && !*moved;
    if (st == HONE_OK && g.median > 0 && hn_binomial_half(used, (long)used - hidden) <= level)
        st = HN_FAIL(err, HONE_E_NUMERIC,
                     "side b (%s) claims to take %.1f ms less a run (%s), and in %ld of %zu pairs of runs its process "
                     "was not seen to",
                     HN_ESC(name_of(s, 1), strlen(name_of(s, 1))), 1e3 * g.median, metric, hidden, used);
    free(a);
    free(gain);
    return st;
}
