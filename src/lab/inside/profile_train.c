/* The profile of a training: two trainers in step, the hook on one of them by turns. Owns what steps are made and how
 * their operations become phases; sums and pictures are profile.c's. */
#include "lab/inside/profile_train.h"

#include "base/os.h"
#include "lab/machine/clock.h"
#include "train/grad.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>

typedef struct told {
    hone_profile_event e;
    hn_train_part part;
} told;

typedef struct train_run {
    hn_profile *p;
    const hn_profile_train_params *params;
    hone_trainer *t[2];
    told *told; /* of one step */
    size_t n, cap;
    double *ratio; /* ln(with / without) */
    size_t n_ratio;
    double count[HN_COUNTS]; /* of the steps without */
    int64_t counted;         /* tokens */
} train_run;

static void on_told(void *arg, const hone_profile_event *e, hn_train_part part)
{
    train_run *r = arg;
    if (r->n < r->cap) r->told[r->n] = (told){ *e, part };
    r->n++;
}

/* ---- from events to phases ---------------------------------------------------------------------------- */

/* A run of operations of one part is a call of the trace, as long as there is room. */
static void keep_run(train_run *r, size_t from, size_t end, uint64_t t0, uint64_t t1, int64_t step)
{
    hn_profile *p = r->p;
    int32_t n_tok = 0;
    if (!r->params->max_trace) return;
    if (p->n_call == p->cap_call || end - from > p->cap_event - p->n_event) {
        p->not_traced += (int64_t)(end - from);
        return;
    }
    hn_profile_call *c = &p->call[p->n_call++];
    for (size_t i = from; i < end; i++) n_tok = r->told[i].e.n_tok > n_tok ? r->told[i].e.n_tok : n_tok;
    *c = (hn_profile_call){
        HN_PROFILE_FORWARD + (int)r->told[from].part, (int32_t)step, n_tok, t0, t1, p->n_event, end - from
    };
    for (size_t i = from; i < end; i++) p->event[p->n_event++] = r->told[i].e;
}

/* Times between two operations belong to the part of the second, what follows the last one to the update. */
static void add_step(train_run *r, const hone_train_step *s, uint64_t t0, uint64_t t1, bool trace)
{
    hn_profile *p = r->p;
    hn_profile_phase *step = &p->phase[HN_PROFILE_STEP];
    size_t n = r->n < r->cap ? r->n : r->cap, first = 0;
    uint64_t at = t0, begin = t0;
    p->lost += (int64_t)(r->n - n);
    for (size_t i = 0; i < n; i++) {
        const hone_profile_event *e = &r->told[i].e;
        hn_profile_phase *ph = &p->phase[HN_PROFILE_FORWARD + (int)r->told[i].part];
        hn_profile_add(p, ph, e);
        ph->whole_ns += e->end_ns - at;
        step->parts_ns += e->end_ns - e->start_ns;
        at = e->end_ns;
        if (i + 1 < n && r->told[i + 1].part == r->told[i].part) continue;
        if (trace) keep_run(r, first, i + 1, begin, at, s->step);
        first = i + 1;
        begin = at;
    }
    p->phase[HN_PROFILE_UPDATE].whole_ns += t1 - at;
    step->whole_ns += t1 - t0;
    for (int k = HN_PROFILE_STEP; k < HN_PROFILE_PHASES; k++) {
        p->phase[k].n_call++;
        p->phase[k].n_tok += s->n_tok;
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------ */

static void read_counters(const train_run *r, int64_t v[HN_COUNTS])
{
    for (int i = 0; i < HN_COUNTS; i++) v[i] = r->params->counters ? hn_os_count_read(r->params->counters->fd[i]) : -1;
}

static hone_status one_step(train_run *r, hone_trainer *t, bool on, bool trace, hone_train_step *s, uint64_t *ns,
                            hone_error *err)
{
    int64_t before[HN_COUNTS], after[HN_COUNTS];
    r->n = 0;
    hn_trainer_set_look(t, on ? on_told : NULL, r);
    read_counters(r, before);
    uint64_t t0 = hn_clock_ns();
    hone_status st = hone_trainer_step(t, s, err);
    uint64_t t1 = hn_clock_ns();
    read_counters(r, after);
    hn_trainer_set_look(t, NULL, NULL);
    if (st != HONE_OK) return st;
    *ns = t1 - t0;
    if (on) {
        add_step(r, s, t0, t1, trace);
        return HONE_OK;
    }
    r->counted += s->n_tok;
    for (int i = 0; i < HN_COUNTS; i++)
        r->count[i] += before[i] >= 0 && after[i] >= before[i] ? (double)(after[i] - before[i]) : NAN;
    return HONE_OK;
}

static bool same_bits(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

/* The same step of both; the hook goes from one to the other, and who is first, too. */
static hone_status pair(train_run *r, int32_t k, hone_error *err)
{
    hone_train_step s[2];
    uint64_t ns[2]; /* without, with */
    for (int i = 0; i < 2; i++) {
        int which = (k & 1) ^ i;
        bool on = ((k >> 1) & 1) == which;
        hone_status st = one_step(r, r->t[which], on, k == 0, &s[which], &ns[on], err);
        if (st != HONE_OK) return st;
    }
    if (!same_bits(s[0].loss, s[1].loss) || !same_bits(s[0].grad_norm, s[1].grad_norm))
        hn_invalid(&r->p->verdict, "step %lld: loss and gradient with the hook and without differ",
                   (long long)s[0].step);
    if (!isfinite(s[0].loss) || !isfinite(s[0].grad_norm))
        hn_invalid(&r->p->verdict, "step %lld: the loss is %g, the gradient's norm %g", (long long)s[0].step, s[0].loss,
                   s[0].grad_norm);
    if (ns[0] && ns[1]) r->ratio[r->n_ratio++] = log((double)ns[1] / (double)ns[0]);
    return HONE_OK;
}

/* What was trained, in both. */
static void compare_trained(train_run *r)
{
    for (int32_t i = 0; i < r->t[0]->n_array; i++) {
        const hn_param *a = hn_grad_param(r->t[0]->grad, i), *b = hn_grad_param(r->t[1]->grad, i);
        if (memcmp(a->p, b->p, (size_t)(a->rows * a->cols) * sizeof *a->p) != 0)
            hn_invalid(&r->p->verdict, "%s: trained with the hook and without, it differs", a->name);
    }
}

/* A step of each, unmeasured: pages, clocks and caches are warm, and how many operations there are is known. */
static hone_status warm_up(train_run *r, hone_error *err)
{
    enum { MORE = 256 }; /* a longer sequence has the same operations, but for pieces of the head's rows */
    hone_train_step s;
    hone_status st = HONE_OK;
    for (int i = 0; i < 2 && st == HONE_OK; i++) {
        r->n = 0;
        hn_trainer_set_look(r->t[i], on_told, r);
        st = hone_trainer_step(r->t[i], &s, err);
        hn_trainer_set_look(r->t[i], NULL, NULL);
    }
    if (st != HONE_OK) return st;
    size_t cap = 2 * r->n + MORE, trace = cap < r->params->max_trace ? cap : r->params->max_trace;
    r->told = calloc(cap, sizeof *r->told);
    if (r->told) r->cap = cap;
    if (trace) {
        r->p->event = calloc(trace, sizeof *r->p->event);
        r->p->call = calloc(trace, sizeof *r->p->call);
        if (r->p->event && r->p->call) r->p->cap_event = r->p->cap_call = trace;
    }
    bool ok = r->cap && (!trace || r->p->cap_call);
    return ok ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "profile: records of %zu operations", cap);
}

hone_status hn_profile_train(hn_profile *out, hone_train_info *info, hone_context *ctx, const hone_model *m,
                             const hn_profile_train_params *p, hone_error *err)
{
    *out = (hn_profile){ .training = true, .n_layer = m->hp.n_layer };
    if (p->counters) out->counters = *p->counters;
    hone_train_params tp = *p->train;
    tp.steps = (int64_t)p->steps + 1;
    tp.epochs = 0;
    tp.plan_only = false;
    tp.n_val_data = 0;
    tp.val_share = 0;
    tp.eval_every = tp.patience = 0;
    train_run r = { .p = out, .params = p, .ratio = calloc((size_t)p->steps, sizeof(double)) };
    hone_status st = r.ratio ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "profile: times of %d steps", p->steps);
    for (int i = 0; i < 2 && st == HONE_OK; i++) st = hone_trainer_new(&r.t[i], ctx, m, &tp, err);
    if (st == HONE_OK && info) hone_trainer_get_info(r.t[0], info);
    if (st == HONE_OK) st = warm_up(&r, err);
    for (int32_t k = 0; k < p->steps && st == HONE_OK && out->verdict.state != HN_INVALID; k++) {
        st = pair(&r, k, err);
        if (tp.abort_fn && tp.abort_fn(tp.abort_arg)) st = HN_FAIL(err, HONE_E_INTERRUPTED, "profile: interrupted");
    }
    if (st == HONE_OK) compare_trained(&r);
    hn_profile_phase *step = &out->phase[HN_PROFILE_STEP];
    if (st == HONE_OK) st = hn_stats_of(&step->cost, r.ratio, r.n_ratio, err);
    for (int i = 0; i < HN_COUNTS; i++) {
        for (int k = HN_PROFILE_STEP; k < HN_PROFILE_PHASES; k++) out->phase[k].count[i] = NAN;
        if (p->counters && r.counted) step->count[i] = r.count[i] / (double)r.counted;
    }
    hone_trainer_free(r.t[0]);
    hone_trainer_free(r.t[1]);
    free(r.told);
    free(r.ratio);
    if (st != HONE_OK) hn_profile_free(out);
    return st;
}
