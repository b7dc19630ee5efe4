/* The profile: runs prompts and tokens with the hook and without it by turns, sums what
 * the hook says, and checks that looking changed neither answers nor times. Knows hone.h
 * and base/ alone; refuses to know options and terminals. */
#include "lab/bench/profile.h"

#include "base/os.h"
#include "lab/bench/sample.h"
#include "lab/machine/clock.h"
#include "lab/machine/roof.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

const char *const hn_count_names[HN_COUNTS] = { "cycles", "instructions", "cache_misses" };

void hn_counters_open(hn_counters *c)
{
    static const hn_os_counter what[HN_COUNTS] = { HN_OS_CYCLES, HN_OS_INSTRUCTIONS, HN_OS_CACHE_MISSES };
    for (int i = 0; i < HN_COUNTS; i++) {
        c->why[i] = NULL;
        c->fd[i] = hn_os_count_open(what[i], &c->why[i]);
    }
}

void hn_counters_close(hn_counters *c)
{
    for (int i = 0; i < HN_COUNTS; i++)
        if (c->fd[i] >= 0) close(c->fd[i]);
}

/* ---- what the hook says -------------------------------------------------------------------- */

/* The events of one call; room is made before it starts. */
typedef struct call_events {
    hone_profile_event *e;
    size_t n, cap;
    int64_t lost;
} call_events;

static void on_event(void *arg, const hone_profile_event *e)
{
    call_events *c = arg;
    if (c->n == c->cap) c->lost++;
    else c->e[c->n++] = *e;
}

static void add(hn_profile_sum *s, const hone_profile_event *e)
{
    s->calls++;
    s->ns += e->end_ns - e->start_ns;
    s->bytes += e->bytes;
    s->ops_int8 += e->ops_int8;
    s->ops_float += e->ops_float;
}

static hn_profile_op *op_of(hn_profile *p, hn_profile_phase *ph, const char *name)
{
    for (int i = 0; i < ph->n_op; i++)
        if (strcmp(ph->op[i].name, name) == 0) return &ph->op[i];
    if (ph->n_op == HN_PROFILE_OPS) return NULL;
    hn_profile_op *op = &ph->op[ph->n_op];
    op->name = name;
    op->layer = calloc((size_t)p->n_layer + 1, sizeof *op->layer);
    if (!op->layer) return NULL;
    ph->n_op++;
    return op;
}

static void add_type(hn_profile_op *op, const char *type)
{
    size_t n = strlen(op->types);
    if (type && !strstr(op->types, type)) snprintf(op->types + n, sizeof op->types - n, "%s%s", n ? ", " : "", type);
}

void hn_profile_add(hn_profile *p, hn_profile_phase *ph, const hone_profile_event *e)
{
    hn_profile_op *op = op_of(p, ph, e->op);
    if (!op) {
        p->lost++;
        return;
    }
    add(&op->all, e);
    add(&op->layer[e->layer >= 0 && e->layer < p->n_layer ? e->layer : p->n_layer], e);
    add_type(op, e->type);
    ph->parts_ns += e->end_ns - e->start_ns;
}

static void add_events(hn_profile *p, hn_profile_phase *ph, const call_events *c)
{
    p->lost += c->lost;
    for (size_t i = 0; i < c->n; i++) hn_profile_add(p, ph, &c->e[i]);
}

/* ---- running ----------------------------------------------------------------------------------- */

typedef struct run {
    hn_profile *p;
    const hn_profile_params *params;
    hone_session *s;
    const float *logits;
    float *kept; /* logits of the other call of a pair */
    call_events events;
    int32_t n_vocab;
    bool recurrent;
    hone_snapshot *base; /* recurrent: the state at `depth`, where every round begins; NULL: depth 0 */
    hone_snapshot *here; /* recurrent: at here_pos, where a pair of calls begins; NULL: at `depth` */
    int32_t here_pos;
    double *ratio[HN_PROFILE_ANSWER]; /* ln(with / without) */
    size_t n_ratio[HN_PROFILE_ANSWER];
    double count[HN_PROFILE_ANSWER][HN_COUNTS];
    int64_t counted[HN_PROFILE_ANSWER]; /* tokens */
} run;

static void read_counters(const run *r, int64_t v[HN_COUNTS])
{
    for (int i = 0; i < HN_COUNTS; i++) v[i] = r->params->counters ? hn_os_count_read(r->params->counters->fd[i]) : -1;
}

/* Keeps a call with the hook for the trace, as long as there is room. */
static void keep(run *r, int phase, int32_t pos, int32_t n, uint64_t t0, uint64_t t1)
{
    hn_profile *p = r->p;
    if (!r->params->max_trace) return;
    if (p->n_call == p->cap_call || r->events.n > p->cap_event - p->n_event) {
        p->not_traced += (int64_t)r->events.n;
        return;
    }
    p->call[p->n_call++] = (hn_profile_call){ phase, pos, n, t0, t1, p->n_event, r->events.n };
    memcpy(p->event + p->n_event, r->events.e, r->events.n * sizeof *p->event);
    p->n_event += r->events.n;
}

/* Sequence 0 at position pos again. A recurrent state cannot be cut: rounds begin at a copy of it, and so do both
 * calls of a pair. (A checkpoint would do, but what it holds is copied by the call that writes to it, in the call's
 * time. A snapshot has all that the sequence holds, keys and values too, in memory of its own.) */
static hone_status back_to(run *r, int32_t pos, hone_error *err)
{
    hone_status st = HONE_OK;
    if (!r->recurrent) {
        st = hone_seq_truncate(r->s, 0, pos, err);
        return st == HONE_OK ? hone_seq_checkpoint(r->s, 0, err) : st;
    }
    if (r->here && r->here_pos == pos) return hone_seq_restore(r->s, 0, r->here, err);
    hone_snapshot_free(r->here);
    r->here = NULL;
    if (hone_seq_length(r->s, 0) != pos) /* a round begins */
        st = r->base ? hone_seq_restore(r->s, 0, r->base, err) : hone_seq_truncate(r->s, 0, 0, err);
    r->here_pos = pos;
    return st == HONE_OK && pos != r->params->depth ? hone_seq_snapshot(r->s, 0, &r->here, err) : st;
}

/* One call from position pos on, with the hook or without; *ns: how long it took. */
static hone_status one(run *r, int phase, const int32_t *ids, int32_t n, int32_t pos, bool on, bool trace, uint64_t *ns,
                       hone_error *err)
{
    hn_profile_phase *ph = &r->p->phase[phase];
    int64_t before[HN_COUNTS], after[HN_COUNTS];
    hone_status st = back_to(r, pos, err);
    if (st != HONE_OK) return st;
    r->events.n = 0;
    r->events.lost = 0;
    hone_session_set_profile(r->s, on ? on_event : NULL, &r->events);
    read_counters(r, before);
    uint64_t t0 = hn_clock_ns();
    st = hone_append(r->s, 0, ids, n, &r->logits, err);
    uint64_t t1 = hn_clock_ns();
    read_counters(r, after);
    hone_session_set_profile(r->s, NULL, NULL);
    if (st != HONE_OK) return st;
    *ns = t1 - t0;
    if (on) {
        ph->n_call++;
        ph->n_tok += n;
        ph->whole_ns += t1 - t0;
        add_events(r->p, ph, &r->events);
        if (trace) keep(r, phase, pos, n, t0, t1);
        return HONE_OK;
    }
    r->counted[phase] += n;
    for (int i = 0; i < HN_COUNTS; i++)
        r->count[phase][i] += before[i] >= 0 && after[i] >= before[i] ? (double)(after[i] - before[i]) : NAN;
    return HONE_OK;
}

/* The same call twice; `turn` says which way first. */
static hone_status pair(run *r, int phase, const int32_t *ids, int32_t n, int32_t pos, bool turn, bool trace,
                        hone_error *err)
{
    uint64_t ns[2];
    for (int k = 0; k < 2; k++) {
        bool on = (k == 1) != turn;
        hone_status st = one(r, phase, ids, n, pos, on, trace, &ns[on], err);
        if (st != HONE_OK) return st;
        if (k == 0) memcpy(r->kept, r->logits, (size_t)r->n_vocab * sizeof *r->kept);
    }
    if (memcmp(r->kept, r->logits, (size_t)r->n_vocab * sizeof *r->kept) != 0)
        hn_invalid(&r->p->verdict, "the logits at position %d with the hook and without differ", pos + n - 1);
    if (ns[0] && ns[1]) r->ratio[phase][r->n_ratio[phase]++] = log((double)ns[1] / (double)ns[0]);
    return HONE_OK;
}

static hone_status round_of(run *r, const int32_t *ids, int32_t k, hone_error *err)
{
    const hn_profile_params *p = r->params;
    int32_t n_prompt = p->n_prompt > 0 ? p->n_prompt : 1;
    hone_status st = HONE_OK;
    if (p->n_prompt > 0) st = pair(r, HN_PROFILE_PREFILL, ids, n_prompt, p->depth, k & 1, k == 0, err);
    else if ((st = back_to(r, p->depth, err)) == HONE_OK) st = hone_append(r->s, 0, ids, 1, &r->logits, err);
    for (int32_t i = 0; i < p->n_gen && st == HONE_OK; i++) {
        hn_logit_scan scan = hn_scan_logits(r->logits, r->n_vocab);
        if (scan.best < 0) {
            hn_invalid(&r->p->verdict, "generated token %d: the logits hold a NaN or an infinity", i);
            return HONE_OK;
        }
        st = pair(r, HN_PROFILE_DECODE, &scan.best, 1, p->depth + n_prompt + i, (i + k) & 1, k == 0, err);
    }
    return st;
}

static hone_status alloc_run(run *r, hn_profile *out, const hn_profile_params *p, hone_error *err)
{
    enum { PER_LAYER = 24, PER_CALL = 32 };
    size_t n_call = (size_t)p->n_gen + 1, n_chunk = p->n_chunk > 0 ? (size_t)p->n_chunk : 1,
           chunks = ((size_t)p->n_prompt + n_chunk - 1) / n_chunk + 1;
    r->events.cap = chunks * ((size_t)out->n_layer * PER_LAYER + PER_CALL);
    r->events.e = calloc(r->events.cap, sizeof *r->events.e);
    r->kept = calloc((size_t)r->n_vocab, sizeof *r->kept);
    bool ok = r->events.e && r->kept;
    for (int i = 0; i < HN_PROFILE_ANSWER; i++)
        ok = (r->ratio[i] = calloc((i == HN_PROFILE_PREFILL ? 1 : n_call) * (size_t)p->rounds, sizeof(double))) && ok;
    if (p->max_trace) {
        size_t want = r->events.cap + (size_t)p->n_gen * ((size_t)out->n_layer * PER_LAYER + PER_CALL);
        out->cap_event = want < p->max_trace ? want : p->max_trace;
        out->cap_call = n_call;
        out->event = calloc(out->cap_event, sizeof *out->event);
        out->call = calloc(out->cap_call, sizeof *out->call);
        ok = ok && out->event && out->call;
    }
    return ok ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "profile: records of %zu calls", n_call);
}

hone_status hn_profile_run(hn_profile *out, hone_session *s, const hone_model *m, const hn_profile_params *p,
                           hone_error *err)
{
    enum { WARM = 512 };
    *out = (hn_profile){ 0 };
    hone_model_info info;
    hone_model_get_info(m, &info);
    out->n_layer = info.n_layer;
    if (p->counters) out->counters = *p->counters;
    int32_t n_prompt = p->n_prompt > 0 ? p->n_prompt : 1;
    run r = { .p = out, .params = p, .s = s, .n_vocab = info.n_vocab, .recurrent = info.state_bytes > 0 };
    int32_t *ids = calloc((size_t)n_prompt + (size_t)p->depth, sizeof *ids);
    hone_status st = ids ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "ids of %d tokens", n_prompt + p->depth);
    if (st == HONE_OK) st = alloc_run(&r, out, p, err);
    if (st == HONE_OK) {
        hn_bench_ids(ids, n_prompt + p->depth, 0, 0, m);
        st = hone_seq_truncate(s, 0, 0, err);
    }
    if (st == HONE_OK && p->depth > 0) st = hone_append(s, 0, ids, p->depth, &r.logits, err);
    if (st == HONE_OK && p->depth > 0 && r.recurrent) st = hone_seq_snapshot(s, 0, &r.base, err);
    /* once unmeasured: pages, clocks and caches are warm */
    if (st == HONE_OK) st = hone_append(s, 0, ids + p->depth, n_prompt < WARM ? n_prompt : WARM, &r.logits, err);
    for (int32_t k = 0; k < p->rounds && st == HONE_OK && out->verdict.state != HN_INVALID; k++)
        st = round_of(&r, ids + p->depth, k, err);
    for (int i = 0; i < HN_PROFILE_ANSWER; i++) {
        if (st == HONE_OK) st = hn_stats_of(&out->phase[i].cost, r.ratio[i], r.n_ratio[i], err);
        for (int k = 0; k < HN_COUNTS; k++)
            out->phase[i].count[k] = p->counters && r.counted[i] ? r.count[i][k] / (double)r.counted[i] : NAN;
        free(r.ratio[i]);
    }
    free(r.events.e);
    free(r.kept);
    free(ids);
    hone_snapshot_free(r.base);
    hone_snapshot_free(r.here);
    if (st != HONE_OK) hn_profile_free(out);
    return st;
}

void hn_profile_free(hn_profile *p)
{
    for (int i = 0; i < HN_PROFILE_PHASES; i++)
        for (int k = 0; k < p->phase[i].n_op; k++) free(p->phase[i].op[k].layer);
    free(p->event);
    free(p->call);
    *p = (hn_profile){ 0 };
}

/* ---- shares --------------------------------------------------------------------------------------- */

double hn_profile_share(const hn_profile_sum *s, const hn_peaks *peaks, int32_t threads, bool in_cache,
                        const char **bound)
{
    if (bound) *bound = NULL;
    if (!peaks || !s->ns) return NAN;
    double read = hn_peaks_at(peaks, HN_PEAK_READ_BW, threads), int8 = hn_peaks_at(peaks, HN_PEAK_INT8, threads),
           f32 = hn_peaks_at(peaks, HN_PEAK_F32, threads);
    double t_read = !in_cache && read > 0 ? (double)s->bytes / read : 0;
    double t_int8 = int8 > 0 ? s->ops_int8 / int8 : 0,
           t_f32 = f32 > 0 ? s->ops_float / f32 : 0; /* 10^9 a second is one a ns */
    double least = fmax(t_read, t_int8 + t_f32);
    if (!(least > 0)) return NAN;
    if (bound) *bound = t_read >= t_int8 + t_f32 ? "read" : t_int8 >= t_f32 ? "int8" : "f32";
    return least / (double)s->ns;
}

bool hn_profile_in_cache(const hn_profile_phase *ph, const hn_peaks *peaks)
{
    uint64_t bytes = 0;
    for (int i = 0; i < ph->n_op; i++) bytes += ph->op[i].all.bytes;
    return peaks && ph->n_call && bytes / (uint64_t)ph->n_call <= 2 * peaks->cache_bytes;
}

double hn_profile_cost(const hn_profile_phase *ph, double ci[2])
{
    ci[0] = ci[1] = NAN;
    if (!ph->cost.n) return NAN;
    if (ph->cost.n >= 6)
        for (int i = 0; i < 2; i++) ci[i] = expm1(ph->cost.ci95[i]);
    return expm1(ph->cost.median);
}

double hn_profile_rest(const hn_profile_phase *ph)
{
    return ph->whole_ns ? 1 - (double)ph->parts_ns / (double)ph->whole_ns : NAN;
}

static const char *const phase_names[HN_PROFILE_PHASES] = {
    "prefill", "decode", "step", "forward", "backward", "update"
};

/* ---- JSON ------------------------------------------------------------------------------------------- */

static json_t *sum_json(const hn_profile_sum *s, const hn_profile_phase *ph)
{
    json_t *o = json_object();
    json_object_set_new(o, "calls", json_integer(s->calls));
    json_object_set_new(o, "ms", hn_lab_num((double)s->ns * 1e-6));
    json_object_set_new(o, "pct", hn_lab_num(100 * (double)s->ns / (double)ph->whole_ns));
    json_object_set_new(o, "bytes", json_integer((json_int_t)s->bytes));
    json_object_set_new(o, "gb_s", hn_lab_num(s->bytes && s->ns ? (double)s->bytes / (double)s->ns : NAN));
    json_object_set_new(o, "ops_int8", hn_lab_num(s->ops_int8));
    json_object_set_new(o, "ops_float", hn_lab_num(s->ops_float));
    double ops = s->ops_int8 + s->ops_float;
    json_object_set_new(o, "gops", hn_lab_num(ops > 0 && s->ns ? ops / (double)s->ns : NAN));
    return o;
}

static json_t *layers_json(const hn_profile *p, const hn_profile_op *op)
{
    json_t *a = json_array();
    for (int32_t il = 0; il < p->n_layer; il++) json_array_append_new(a, hn_lab_num((double)op->layer[il].ns * 1e-6));
    return a;
}

static json_t *phase_json(const hn_profile *p, const hn_profile_phase *ph, const hn_peaks *peaks, int32_t threads)
{
    if (!ph->n_call) return json_null();
    json_t *o = json_object(), *ops = json_array(), *counters = json_object();
    bool cached = hn_profile_in_cache(ph, peaks);
    double ci[2], cost = hn_profile_cost(ph, ci), rest = hn_profile_rest(ph);
    for (int i = 0; i < ph->n_op; i++) {
        const char *bound;
        const hn_profile_op *op = &ph->op[i];
        double share = hn_profile_share(&op->all, peaks, threads, cached, &bound);
        json_t *e = sum_json(&op->all, ph);
        json_object_set_new(e, "op", json_string(op->name));
        json_object_set_new(e, "type", op->types[0] ? json_string(op->types) : json_null());
        json_object_set_new(e, "bound", bound ? json_string(bound) : json_null());
        json_object_set_new(e, "roof_pct", hn_lab_num(100 * share));
        json_object_set_new(e, "no_layer_ms", hn_lab_num((double)op->layer[p->n_layer].ns * 1e-6));
        json_object_set_new(e, "layer_ms", layers_json(p, op));
        json_array_append_new(ops, e);
    }
    for (int k = 0; k < HN_COUNTS; k++) {
        json_object_set_new(counters, hn_count_names[k], hn_lab_num(ph->count[k]));
        const char *why = p->counters.why[k];
        if (isnan(ph->count[k])) {
            char key[40];
            snprintf(key, sizeof key, "%s_missing", hn_count_names[k]);
            json_object_set_new(counters, key, json_string(why ? why : "not counted all the time, or not asked for"));
        }
    }
    json_object_set_new(o, "calls", json_integer(ph->n_call));
    json_object_set_new(o, "tokens", json_integer(ph->n_tok));
    json_object_set_new(o, "threads", json_integer(threads));
    json_object_set_new(o, "whole_ms", hn_lab_num((double)ph->whole_ns * 1e-6));
    json_object_set_new(o, "parts_ms", hn_lab_num((double)ph->parts_ns * 1e-6));
    json_object_set_new(o, "rest_ms", hn_lab_num(((double)ph->whole_ns - (double)ph->parts_ns) * 1e-6));
    json_object_set_new(o, "rest_pct", hn_lab_num(100 * rest));
    bool part = p->training && ph != &p->phase[HN_PROFILE_STEP]; /* the whole step is judged */
    json_object_set_new(o, "rest_ok", part ? json_null() : json_boolean(rest <= HN_PROFILE_MAX_REST && p->lost == 0));
    json_object_set_new(o, "cost",
                        json_pack("{s:o, s:[o, o], s:i}", "pct", hn_lab_num(100 * cost), "ci95",
                                  hn_lab_num(100 * ci[0]), hn_lab_num(100 * ci[1]), "pairs", (int)ph->cost.n));
    json_object_set_new(o, "cost_ok",
                        isnan(ci[1])                   ? json_null()
                        : ci[1] <= HN_PROFILE_MAX_COST ? json_true()
                        : ci[0] > HN_PROFILE_MAX_COST  ? json_false()
                                                       : json_null());
    json_object_set_new(o, "in_cache", peaks ? json_boolean(cached) : json_null());
    json_object_set_new(o, "counters_per_token", counters);
    json_object_set_new(o, "ops", ops);
    return o;
}

json_t *hn_profile_json(const hn_profile *p, const hn_peaks *peaks, int32_t threads, int32_t threads_batch)
{
    json_t *o = json_object();
    int from = p->training ? HN_PROFILE_STEP : HN_PROFILE_PREFILL,
        end = p->training ? HN_PROFILE_PHASES : HN_PROFILE_ANSWER;
    for (int k = from; k < end; k++)
        json_object_set_new(o, phase_names[k],
                            phase_json(p, &p->phase[k], peaks, k == HN_PROFILE_DECODE ? threads : threads_batch));
    return o;
}

/* ---- for other programs ---------------------------------------------------------------------------------- */

static void slice(FILE *f, uint64_t zero, const char *cat, uint64_t start, uint64_t end, const char *name)
{
    fprintf(f, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,\"name\":\"%s\"", cat,
            (double)(start - zero) * 1e-3, (double)(end - start) * 1e-3, name);
}

static void trace_call(FILE *f, const hn_profile *p, const hn_profile_call *c, uint64_t zero)
{
    const hone_profile_event *e = p->event + c->first_event;
    char name[48];
    slice(f, zero, "call", c->start_ns, c->end_ns, phase_names[c->phase]);
    fprintf(f, ",\"args\":{\"tokens\":%d,\"position\":%d}}", c->n_tok, c->pos);
    for (size_t i = 0; i < c->n_event; i++) {
        if (e[i].layer >= 0 && (i == 0 || e[i - 1].layer != e[i].layer)) {
            size_t last = i;
            while (last + 1 < c->n_event && e[last + 1].layer == e[i].layer) last++;
            snprintf(name, sizeof name, "layer %d", e[i].layer);
            slice(f, zero, "layer", e[i].start_ns, e[last].end_ns, name);
            fputc('}', f);
        }
        slice(f, zero, "operation", e[i].start_ns, e[i].end_ns, e[i].op);
        fprintf(f, ",\"args\":{\"tokens\":%d,\"bytes\":%llu,\"ops_int8\":%.0f,\"ops_float\":%.0f", e[i].n_tok,
                (unsigned long long)e[i].bytes, e[i].ops_int8, e[i].ops_float);
        if (e[i].type) fprintf(f, ",\"type\":\"%s\"", e[i].type);
        fputs("}}", f);
    }
}

static hone_status written(hn_os_text *t, char **text, size_t *n, hone_error *err)
{
    *text = hn_os_text_close(t, n);
    if (*text) return HONE_OK;
    return HN_FAIL(err, HONE_E_NOMEM, "profile as text");
}

hone_status hn_profile_trace(const hn_profile *p, char **text, size_t *n, hone_error *err)
{
    *text = NULL;
    hn_os_text t;
    if (!hn_os_text_open(&t)) return HN_FAIL(err, HONE_E_NOMEM, "trace");
    FILE *f = t.f;
    uint64_t zero = p->n_call ? p->call[0].start_ns : 0;
    fprintf(f,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":\"hone "
            "%s\",\"events_left_out\":%lld},\"traceEvents\":[\n",
            hone_version(), (long long)p->not_traced);
    fputs("{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"hone\"}},\n"
          "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"forward passes\"}}",
          f);
    for (size_t i = 0; i < p->n_call; i++) trace_call(f, p, &p->call[i], zero);
    fputs("\n]}\n", f);
    return written(&t, text, n, err);
}

hone_status hn_profile_folded(const hn_profile *p, char **text, size_t *n, hone_error *err)
{
    *text = NULL;
    hn_os_text t;
    if (!hn_os_text_open(&t)) return HN_FAIL(err, HONE_E_NOMEM, "folded stacks");
    FILE *f = t.f;
    for (int k = 0; k < HN_PROFILE_PHASES; k++) {
        const hn_profile_phase *ph = &p->phase[k];
        if (k == HN_PROFILE_STEP) continue; /* its parts follow */
        for (int32_t il = 0; il <= p->n_layer; il++)
            for (int i = 0; i < ph->n_op; i++) {
                const hn_profile_sum *s = &ph->op[i].layer[il];
                if (!s->ns) continue;
                if (il < p->n_layer)
                    fprintf(f, "hone;%s;layer_%03d;%s %llu\n", phase_names[k], il, ph->op[i].name,
                            (unsigned long long)s->ns);
                else fprintf(f, "hone;%s;%s %llu\n", phase_names[k], ph->op[i].name, (unsigned long long)s->ns);
            }
        if (ph->whole_ns > ph->parts_ns)
            fprintf(f, "hone;%s;(rest) %llu\n", phase_names[k], (unsigned long long)(ph->whole_ns - ph->parts_ns));
    }
    return written(&t, text, n, err);
}
