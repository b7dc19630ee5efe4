/* layer.*: the parts of a forward pass over 512 tokens of one sequence, with the model's own
 * weights, through the backend, as the engine runs them; layers take turns, so that their
 * weights are as cold as in a pass. Before anything is timed, the parts put together must
 * give the logits of the engine's own pass, bit by bit. Knows the engine's session. */
#include "engine/engine.h"
#include "lab/inside/bench_rooms.h"
#include "lab/bench/bench.h"
#include "lab/bench/sample.h"
#include "lab/quality/proof.h"
#include "lab/quality/quality.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { TOKENS = 512, PIECE = 37, N_PASSES = 3 };

typedef enum part {
    PART_EMBED = 0,
    PART_TABLE,
    PART_ROPE,
    PART_NORM,
    PART_CORE,
    PART_ATTN,
    PART_FFN,
    PART_TIME_MIX,
    PART_CHANNEL_MIX,
    PART_FULL,
    PART_ALL
} part;

/* A timed pass: its tokens and the logits it left. */
typedef struct pass {
    int32_t ids[TOKENS];
    uint64_t logits;
} pass;

typedef struct layer_job {
    hn_bench_run *r;
    hone_session *s;
    const hone_model *m;
    part part;
    int32_t il;
    hn_row *rows;
    hn_step_block step; /* all rows, and the logits of the last, number `want` */
    int32_t want;
    hone_token *tokens;
    int32_t ids[TOKENS]; /* of the rows and tokens at first; timed passes and embeddings have another order each, other
                            parts one before each stretch of calls */
    hn_bench_turned turned;
    int32_t from;  /* the stretch: its first layer, */
    int64_t calls; /* and its calls; 0: none yet */
    float *q;      /* queries of all rows, for PART_CORE */
    bool other;    /* what the last stretch left is not what it is in another way */
    float *logits, *mine;
    pass was[N_PASSES];        /* the last ones of the stretches before this one, of PART_ALL */
    int64_t n_was;             /* how many there were: number i is was[i % N_PASSES] */
    uint64_t proof;            /* of the logits of the pass */
    hn_bench_place place;      /* in what the part writes, where one looks at it in each call */
    int64_t n_watched, n_left; /* n_left: calls that left what they were to overwrite */
    hone_error err;
    bool failed;
} layer_job;

/* ---- the parts ------------------------------------------------------------------------------- */

/* One pass over all rows; logits of the last token if wanted. */
static hn_forward batch_of(layer_job *j)
{
    hn_forward f = {
        .be = j->s->be, .s = &j->s->s, .kv = j->s->kv, .state = j->s->state, .step = &j->step, .logits = j->mine
    };
    hn_forward_start(&f);
    return f;
}

/* A half of a layer for all rows. */
static void do_half(layer_job *j, hn_half_fn *half, int32_t il)
{
    hn_forward f = batch_of(j);
    half(j->m, &f, il);
}

static void do_layer(layer_job *j, int32_t il)
{
    do_half(j, hn_mixer_forward, il);
    do_half(j, hn_ffn_forward, il);
}

static void do_heads(layer_job *j, int32_t il)
{
    const hn_forward f = batch_of(j);
    hn_attn_heads(j->m, &f, il);
}

static void do_core(layer_job *j, int32_t il)
{
    const hn_forward f = batch_of(j);
    hn_attn_core(j->m, &f, il);
}

static void do_table(layer_job *j) { j->s->be->op->rope(j->s->be, j->s->s.rope[0], 0); }

static void do_embed(layer_job *j) { j->s->be->op->embed(j->s->be, j->s->s.x, &j->m->token_embd, false); }

/* To a buffer: one to an activation may be made with what the product takes. */
static void do_norm(layer_job *j, int32_t il)
{
    const hn_hparams *hp = &j->m->hp;
    const hn_layer *l = &j->m->layers[il];
    const hn_norm norm = { .kind = l->attn_norm_b ? HN_NORM_LAYER : HN_NORM_RMS,
                           .x = j->s->s.x,
                           .y = j->s->s.h,
                           .w = l->attn_norm,
                           .b = l->attn_norm_b,
                           .n = hp->n_embd,
                           .n_tok = j->step.n_tok,
                           .eps = l->attn_norm_b ? hp->ln_eps : hp->rms_eps };
    j->s->be->op->norm(j->s->be, &norm);
}

static void do_all(layer_job *j)
{
    j->failed |= hone_seq_truncate(j->s, 0, 0, &j->err) != HONE_OK ||
                 hone_run_batch(j->s, j->tokens, TOKENS, j->logits, &j->err) != HONE_OK;
}

/* Two tokens change places: of a pass that was computed before nobody can have kept the answer. */
static void other_order(layer_job *j)
{
    int32_t at[2];
    for (int i = 0; i < 2; i++) at[i] = (int32_t)hn_bench_draw(&j->turned, TOKENS);
    const hone_token was = j->tokens[at[0]];
    j->tokens[at[0]].id = j->rows[at[0]].token = j->tokens[at[1]].id;
    j->tokens[at[1]].id = j->rows[at[1]].token = was.id;
}

static void set_order(layer_job *j, const int32_t *ids)
{
    for (int32_t t = 0; t < TOKENS; t++) j->tokens[t].id = j->rows[t].token = ids[t];
}

/* The last pass of a stretch is looked at behind the clock. */
static void keep_pass(layer_job *j)
{
    pass *p = &j->was[j->n_was++ % N_PASSES];
    for (int32_t t = 0; t < TOKENS; t++) p->ids[t] = j->tokens[t].id;
    p->logits = hn_bits_hash(j->logits, j->m->hp.n_vocab);
}

/* What a call is seen by: a number of what it writes, spoilt before it, or kept, where it adds. */
typedef struct watched {
    hn_buf *y; /* NULL: several buffers, or a host's, or a layer without that half */
    bool adds;
    int64_t at;
    float was;
} watched;

static watched watch(layer_job *j)
{
    const hn_scratch *s = &j->s->s;
    const hn_layer_plan *plan = &j->m->plan[j->il];
    watched w = { .at = hn_bench_next_place(&j->place), .was = NAN };
    switch (j->part) {
    case PART_TABLE: w.y = s->rope[0]; break;
    case PART_NORM: w.y = s->h; break;
    case PART_EMBED: w.y = s->x; break;
    case PART_ROPE: /* the number of a head that turns fastest, in no row but the first, which does not turn */
        w.adds = true;
        if (plan->rope >= 0) w.y = s->q;
        w.at = (plan->n_head + w.at % ((TOKENS - 1) * plan->n_head)) * plan->d_k;
        break;
    case PART_ATTN:
    case PART_TIME_MIX:
        w.adds = !plan->parallel; /* else the other half adds what this one leaves in h */
        if (plan->mixer != HN_MIXER_NONE) w.y = plan->parallel ? s->h : s->x;
        break;
    case PART_FFN:
    case PART_CHANNEL_MIX:
        w.adds = true;
        if (plan->ffn != HN_FFN_NONE) w.y = s->x;
        break;
    case PART_FULL:
        w.adds = true;
        w.y = s->x;
        break;
    default: break;
    }
    if (w.adds && j->m->hp.n_stream) w.y = NULL; /* what is left of a sparse half may be nothing */
    if (j->part == PART_ALL) j->logits[w.at % j->m->hp.n_vocab] = NAN;
    else if (w.y && w.adds) w.was = hn_bench_look(j->s->be, w.y, w.at);
    else if (w.y) hn_bench_spoil(j->s->be, w.y, w.at);
    return w;
}

static void look(layer_job *j, const watched *w)
{
    if (!w->y && j->part != PART_ALL) return;
    float is = w->y ? hn_bench_look(j->s->be, w->y, w->at) : j->logits[w->at % j->m->hp.n_vocab];
    j->place.n_missed += w->adds && is == w->was;
    j->n_left += !w->adds && isnan(is);
    j->n_watched++;
}

/* Is there anything of it in layer il? Some have no attention, or no second half. */
static bool has_part(const layer_job *j, int32_t il)
{
    const hn_layer_plan *p = &j->m->plan[il];
    switch (j->part) {
    case PART_ROPE:
    case PART_CORE: return HN_PLAN_BIT(p->mixer) & HN_WITH_ATTN;
    case PART_ATTN:
    case PART_TIME_MIX: return p->mixer != HN_MIXER_NONE;
    case PART_FFN:
    case PART_CHANNEL_MIX: return p->ffn != HN_FFN_NONE;
    case PART_FULL: return p->mixer != HN_MIXER_NONE || p->ffn != HN_FFN_NONE;
    default: return true;
    }
}

static int32_t n_with_part(const layer_job *j)
{
    int32_t n = 0;
    for (int32_t il = 0; il < j->m->hp.n_layer; il++) n += has_part(j, il);
    return n;
}

/* The one with such a part behind layer il. */
static int32_t next_layer(const layer_job *j, int32_t il)
{
    const int32_t n = j->m->hp.n_layer, from = il;
    do il = (il + 1) % n;
    while (il != from && !has_part(j, il));
    return il;
}

static void do_part(layer_job *j, int32_t il)
{
    switch (j->part) {
    case PART_EMBED: do_embed(j); break;
    case PART_TABLE: do_table(j); break;
    case PART_ROPE: do_heads(j, il); break;
    case PART_NORM: do_norm(j, il); break;
    case PART_CORE: do_core(j, il); break;
    case PART_ATTN:
    case PART_TIME_MIX: do_half(j, hn_mixer_forward, il); break;
    case PART_FFN:
    case PART_CHANNEL_MIX: do_half(j, hn_ffn_forward, il); break;
    case PART_FULL: do_layer(j, il); break;
    default: do_all(j); break;
    }
}

static void call_part(void *arg, int64_t calls)
{
    layer_job *j = arg;
    hn_backend *be = j->s->be;
    if (j->part != PART_ALL) be->op->step_begin(be, &j->step);
    for (int64_t i = 0; i < calls && !j->failed; i++) {
        const watched w = watch(j);
        if (j->part == PART_ALL || j->part == PART_EMBED) other_order(j);
        do_part(j, j->il);
        j->il = next_layer(j, j->il);
        hn_bench_sink(j->s->s.x);
        look(j, &w);
    }
    if (j->part != PART_ALL) be->op->step_end(be, NULL, NULL);
}

/* ---- all parts together are the engine's pass ------------------------------------------------------- */

static void forward(layer_job *j)
{
    const hone_model *m = j->m;
    hn_forward f = batch_of(j);
    hn_session_zero_state(j->s, 0);
    f.be->op->step_begin(f.be, f.step);
    hn_forward_begin(m, &f);
    for (int32_t il = 0; il < m->hp.n_layer; il++) { /* with one f: it knows which streams are where */
        hn_mixer_forward(m, &f, il);
        hn_ffn_forward(m, &f, il);
    }
    f.give = HN_WANTED;
    hn_forward_narrow(m, &f);
    hn_forward_end(m, &f);
    f.be->op->step_end(f.be, NULL, NULL);
}

/* ---- what a stretch of calls begins with, and what it leaves ---------------------------------------------- */

/* Does a part of this model begin with nothing but tokens? Not where a layer reads what another one left elsewhere: it
 * begins with a whole pass, and all rows of it stay together. */
static bool begins_with_tokens(const layer_job *j)
{
    const hone_model *m = j->m;
    bool halves = j->part == PART_FFN, all = m->hp.n_stream == 0 || j->part == PART_TABLE;
    for (int32_t il = 0; il < m->hp.n_layer && j->part != PART_TABLE; il++) {
        const hn_layer_plan *p = &m->plan[il];
        all = all && !p->no_keys && !p->both && !p->n_ple && !(halves && (p->early || p->parallel));
        all = all && !(j->part == PART_CORE && (p->mixer != HN_MIXER_ATTN || p->out_gate));
    }
    return all;
}

/* Can what a stretch left be compared? Heads turn in place what was projected for one layer, again and again: not where
 * others have other widths, or where they grow each time. */
static bool is_compared(const layer_job *j)
{
    const hone_model *m = j->m;
    const hn_layer_plan *first = NULL;
    bool all = j->part != PART_ROPE || begins_with_tokens(j);
    for (int32_t il = 0; il < m->hp.n_layer && j->part == PART_ROPE; il++) {
        const hn_layer_plan *p = &m->plan[il];
        if (!has_part(j, il)) continue;
        if (!first) first = p;
        all = all && p->mixer == HN_MIXER_ATTN && !p->out_gate && !p->warm && p->n_head == first->n_head &&
              p->n_head_kv == first->n_head_kv && p->d_k == first->d_k && p->d_v == first->d_v &&
              (p->rope < 0 || m->hp.rope[p->rope].mscale == 1);
    }
    return all;
}

static int64_t q_width(const hone_model *m)
{
    int64_t most = 0;
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        int64_t n = (int64_t)m->plan[il].n_head * m->plan[il].d_k;
        most = n > most ? n : most;
    }
    return most;
}

/* Within a step: its rows from their tokens on, as far as where a stretch that begins at layer il begins. Of RWKV-7 all
 * layers read values of the first one. */
static void begin_rows(layer_job *j, int32_t il)
{
    hn_forward f = batch_of(j);
    hn_forward_begin(j->m, &f);
    if (j->part == PART_ROPE) hn_attn_project(j->m, &f, il);
    if (il > 0 && j->m->plan[0].mixer == HN_MIXER_RWKV7) do_half(j, hn_mixer_forward, 0);
}

/* Other tokens than before, from the first on, or other queries. */
static void begin_stretch(layer_job *j, int64_t calls)
{
    hn_backend *be = j->s->be;
    const int64_t width = q_width(j->m);
    const bool whole = !begins_with_tokens(j);
    j->from = j->il;
    j->calls = calls;
    if (j->part == PART_CORE && !whole) {
        hn_bench_turn(&j->turned, j->q, TOKENS, width);
        be->op->write(be, j->s->s.q, 0, j->q, (size_t)(TOKENS * width) * sizeof *j->q);
        return;
    }
    for (int i = 0; i < HN_TURNED; i++) other_order(j);
    if (whole) forward(j);
    else hn_session_zero_state(j->s, 0);
    be->op->step_begin(be, &j->step);
    if (whole) do_embed(j);
    else begin_rows(j, j->from);
    be->op->step_end(be, NULL, NULL);
}

/* n rows of `of`, as a step of j. */
static void take_rows(layer_job *j, const layer_job *of, int32_t at, int32_t n)
{
    j->want = n - 1;
    for (int32_t i = 0; i < n; i++)
        j->rows[i] = (hn_row){ .token = of->rows[at + i].token, .pos = at + i, .prev = i - 1, .last = i == j->want };
    j->step.n_tok = n;
}

/* Rows of j's output from `at` on and t's: the same bits? */
static bool same_rows(layer_job *j, layer_job *t, int32_t at, int32_t n, int32_t il)
{
    const hn_layer_plan *p = &j->m->plan[il];
    const bool core = j->part == PART_CORE || j->part == PART_ROPE, table = j->part == PART_TABLE;
    const bool in_h = j->part == PART_NORM || (j->part == PART_ATTN && p->parallel);
    hn_buf *const *ours = table ? j->s->s.rope : in_h ? &j->s->s.h : &j->s->s.x;
    hn_buf *const *theirs = table ? t->s->s.rope : in_h ? &t->s->s.h : &t->s->s.x;
    const int64_t width = core ? (int64_t)p->n_head * p->d_v : table ? j->m->hp.rope[0].n_rot : j->m->hp.n_embd;
    const size_t bytes = (size_t)(n * width) * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes);
    bool same = a && b;
    if (same && core) {
        hn_bench_get(j->s->be, a, j->s->s.act, at, n, width);
        hn_bench_get(t->s->be, b, t->s->s.act, 0, n, width);
    } else if (same) {
        j->s->be->op->read(j->s->be, a, *ours, (size_t)(at * width) * sizeof *a, bytes);
        t->s->be->op->read(t->s->be, b, *theirs, 0, bytes);
    }
    same = same && memcmp(a, b, bytes) == 0;
    free(a);
    free(b);
    return same;
}

/* A step of attention on what the calls of PART_ROPE left: queries and a cache. */
static void attend(layer_job *j, int32_t il)
{
    j->s->be->op->step_begin(j->s->be, &j->step);
    do_core(j, il);
    j->s->be->op->step_end(j->s->be, NULL, NULL);
}

/* The stretch again in a session of its own: its rows in pieces of 37, one piece through all calls and then the next,
 * which is the same as long as no layer that adds comes twice; else, and behind a whole pass, all rows at once. */
static void in_pieces(layer_job *j, layer_job *t)
{
    int32_t last = j->from;
    const bool whole = !begins_with_tokens(j), core = j->part == PART_CORE && !whole, rope = j->part == PART_ROPE;
    const bool over = core || j->part == PART_EMBED || j->part == PART_NORM || j->part == PART_TABLE;
    const int32_t most = whole || (!over && !rope && j->calls >= n_with_part(j)) ? TOKENS : PIECE;
    hn_backend *be = t->s->be;
    t->part = j->part;
    for (int64_t i = 1; i < j->calls; i++) last = next_layer(j, last);
    if (core) forward(t); /* the cache */
    if (rope) attend(j, last);
    hn_session_zero_state(t->s, 0);
    for (int32_t at = 0; at < TOKENS && !j->other; at += most) {
        const int32_t n = TOKENS - at < most ? TOKENS - at : most;
        const int64_t width = (int64_t)j->m->plan[last].n_head * j->m->plan[last].d_k;
        take_rows(t, j, at, n);
        if (whole) forward(t);
        be->op->step_begin(be, &t->step);
        if (core) be->op->write(be, t->s->s.q, 0, j->q + at * width, (size_t)(n * width) * sizeof *j->q);
        else if (whole) do_embed(t);
        else begin_rows(t, j->from);
        for (int64_t i = 0, il = over ? last : j->from; i < (over ? 1 : j->calls); i++, il = next_layer(j, (int32_t)il))
            do_part(t, (int32_t)il);
        be->op->step_end(be, NULL, NULL);
        if (rope) attend(t, last);
        j->other = !same_rows(j, t, at, n, last);
    }
}

/* The last order in calls of 37. */
static void pass_in_pieces(layer_job *j, layer_job *t)
{
    hn_proof again;
    int32_t ids[TOKENS];
    for (int32_t i = 0; i < TOKENS; i++) ids[i] = j->tokens[i].id;
    j->failed |=
        hone_seq_truncate(t->s, 0, 0, &j->err) != HONE_OK ||
        hn_answer_again(&again, t->s, j->m, &(hn_answer){ .prompt = ids, .n_prompt = TOKENS }, &j->err) != HONE_OK;
    j->other = !j->failed && again.last != hn_bits_hash(j->logits, j->m->hp.n_vocab);
}

static void close_job(layer_job *j);
static hone_status open_job(layer_job *j, hn_bench_run *r, hone_error *err);

/* Before a stretch, and, behind the last one, whether it left what it was to. */
static void turn_part(void *arg, int64_t calls)
{
    layer_job *j = arg, t;
    if (j->failed || !is_compared(j)) return;
    if (calls && j->part == PART_ALL) {
        if (j->calls) keep_pass(j);
        j->calls = calls;
    } else if (calls) begin_stretch(j, calls);
    if (calls) return;
    j->failed = open_job(&t, j->r, &j->err) != HONE_OK;
    if (!j->failed && j->part == PART_ALL) pass_in_pieces(j, &t);
    else if (!j->failed && j->calls) in_pieces(j, &t);
    close_job(&t);
}
static const hn_bench_left left_part = { .turn = turn_part };

/* Once for a run and its model. */
static hone_status check_forward(layer_job *j, const hn_bench_run *r, hn_verdict *v, hone_error *err)
{
    static uint64_t known, proof;
    static hn_verdict verdict;
    uint64_t key = hn_mix64(r->t0_ns) ^ r->info.fingerprint;
    if (known != key) {
        verdict = (hn_verdict){ 0 };
        do_all(j);
        if (j->failed) {
            *err = j->err;
            return j->err.code;
        }
        forward(j);
        hn_logit_scan scan = hn_scan_logits(j->logits, j->m->hp.n_vocab);
        if (!scan.finite || scan.all_equal)
            hn_invalid(&verdict, "the logits of the pass are %s", scan.finite ? "all equal" : "not all numbers");
        hn_bench_same(&verdict, j->mine, j->logits, j->m->hp.n_vocab, "logits of the parts together");
        hn_bench_proved(&verdict);
        proof = hn_bits_hash(j->logits, j->m->hp.n_vocab);
        known = key;
    }
    j->proof = proof;
    *v = verdict;
    return HONE_OK;
}

/* Are the logits of the passes that were kept those of their parts together? An engine that gives an old answer again
 * is right now and then, where it has to compute: so more than one is looked at. */
static bool are_passes(layer_job *j)
{
    bool same = true;
    for (int64_t i = 0; i < j->n_was && i < N_PASSES && same; i++) {
        set_order(j, j->was[i].ids);
        forward(j);
        same = hn_bits_hash(j->mine, j->m->hp.n_vocab) == j->was[i].logits;
    }
    return same;
}

/* Behind the clock: whole passes that were timed, the last of each of the last stretches, must have answered as their
 * parts do. A part has the proof of the pass that it is part of, and that pass is made once more. Of sums that many
 * calls add to, one now and then is too large for what is added. */
static void after_part(void *arg, hn_bench_result *res, const hn_bench_timing *t)
{
    enum { ONE_OF = 50 };
    layer_job *j = arg;
    if (j->failed) return;
    if (j->part == PART_ALL) {
        keep_pass(j);
        if (!are_passes(j)) hn_invalid(&res->verdict, "the logits of a timed pass are not those of its parts together");
    }
    if (j->other)
        hn_invalid(&res->verdict, "what the last timed calls left is not what they give in pieces of %d tokens",
                   (int)PIECE);
    set_order(j, j->ids);
    if (j->part == PART_ALL) do_all(j);
    else forward(j);
    if (hn_bits_hash(j->part == PART_ALL ? j->logits : j->mine, j->m->hp.n_vocab) != j->proof)
        hn_invalid(&res->verdict, "the logits of the %s are not those of the pass before the clock",
                   j->part == PART_ALL ? "pass behind the timed ones" : "same pass behind it");
    if (j->n_left || j->place.n_missed * ONE_OF > j->n_watched)
        hn_invalid(&res->verdict, "%lld of %lld calls did not write what they were to",
                   (long long)(j->n_left + j->place.n_missed), (long long)j->n_watched);
    if (!is_compared(j) && res->verdict.state == HN_VALID) {
        res->verdict.state = HN_UNCHECKED;
        snprintf(res->verdict.reason, sizeof res->verdict.reason,
                 "what the timed calls leave of such layers cannot be compared");
    }
    if (!res->extra) res->extra = json_object();
    json_object_set_new(res->extra, "proof", hn_proof_of("output", j->proof));
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void close_job(layer_job *j)
{
    hone_session_free(j->s);
    free(j->q);
    free(j->rows);
    free(j->tokens);
    free(j->logits);
    free(j->mine);
}

static hone_status open_job(layer_job *j, hn_bench_run *r, hone_error *err)
{
    *j = (layer_job){ .r = r };
    hone_model *m;
    int32_t chunk = r->set.chunk, ids[TOKENS];
    hone_status st = hn_bench_model(r, &m, err);
    if (st != HONE_OK) return st;
    j->m = m;
    r->set.chunk = TOKENS; /* one pass, whatever the engine is told elsewhere */
    st = hn_bench_session(r, &j->s, TOKENS, 1, err);
    r->set.chunk = chunk;
    if (st != HONE_OK) return st;
    j->rows = calloc(TOKENS, sizeof *j->rows);
    j->tokens = calloc(TOKENS, sizeof *j->tokens);
    j->logits = calloc((size_t)m->hp.n_vocab, sizeof *j->logits);
    j->mine = calloc((size_t)m->hp.n_vocab, sizeof *j->mine);
    if (!j->rows || !j->tokens || !j->logits || !j->mine)
        return HN_FAIL(err, HONE_E_NOMEM, "pass of %d tokens", (int)TOKENS);
    hn_bench_ids(ids, TOKENS, 0, 0, m);
    memcpy(j->ids, ids, sizeof ids);
    for (int32_t t = 0; t < TOKENS; t++) {
        j->rows[t] = (hn_row){ .token = ids[t], .pos = t, .prev = t - 1, .last = t == TOKENS - 1 };
        j->tokens[t] = (hone_token){ .id = ids[t], .pos = t, .want_logits = t == TOKENS - 1 };
    }
    j->want = TOKENS - 1;
    j->step = (hn_step_block){ .rows = j->rows, .n_tok = TOKENS, .want = &j->want, .n_want = 1 };
    hn_memory_step(j->s->mem, &j->step);
    st = hn_session_hold(j->s, 0, TOKENS, err); /* the parts write there */
    for (int32_t il = 0; il < m->hp.n_layer && st == HONE_OK; il++)
        if (m->plan[il].window) {
            do_all(j);
            break;
        }
    if (j->failed) *err = j->err;
    return j->failed ? j->err.code : st;
}

/* ---- the work, for the roof ------------------------------------------------------------------------------- */

typedef struct work {
    double int8, floats;
} work; /* products of two numbers */
static void add_work(work *w, const hn_weight *m, double n_tok)
{
    *(hn_act_kind_of(m->type) == HN_ACT_F32 ? &w->floats : &w->int8) += n_tok * (double)m->n_in * (double)m->n_out;
}

/* Is a weight of that role multiplied with in the part that is measured? */
static bool is_of_part(hn_role role, part p)
{
    bool mixer = (role >= HN_ROLE_ATTN_Q && role <= HN_ROLE_ATTN_OUTPUT) ||
                 (role >= HN_ROLE_ATTN_Q_A && role <= HN_ROLE_KDA_HIGH) ||
                 (role >= HN_ROLE_TIME_R && role <= HN_ROLE_MIX_OUT),
         time_mix = role >= HN_ROLE_TIME_R;
    if (p >= PART_FULL) return true;
    if (mixer) return p == (time_mix ? PART_TIME_MIX : PART_ATTN);
    return p == (time_mix ? PART_CHANNEL_MIX : PART_FFN);
}

typedef struct work_of_part {
    work sum;
    part p;
    const hone_model *m;
} work_of_part;

/* At least so much: a token has some of the experts, and from the last layer that fills a cache on a pass may give the
 * one row that is wanted. */
static void add_weight(void *arg, const hn_weight *w, int32_t il)
{
    work_of_part *k = arg;
    const hn_moe_numbers *moe = &k->m->hp.moe;
    double n_tok = k->p == PART_ALL && il >= k->m->n_filling - 1 ? 1 : TOKENS;
    if (il < 0 || !is_of_part(w->role, k->p)) return;
    if (w->role >= HN_ROLE_EXPERT_GATE && w->role <= HN_ROLE_EXPERT_DOWN)
        n_tok *= (double)(moe->used_of ? moe->used_of[il] : moe->n_used) / moe->n_expert;
    add_work(&k->sum, w, n_tok);
}

static void set_ops(hn_bench_result *res, const layer_job *j)
{
    int32_t n = n_with_part(j);
    work_of_part all = { { 0, 0 }, j->part, j->m };
    hn_each_weight(j->m, add_weight, &all);
    const work w = all.sum;
    double passes = j->part == PART_ALL || n == 0 ? 1 : n;
    if (w.int8 > 0 && w.floats > 0) hn_bench_note(res, "weights of both kinds of arithmetic: no one roof");
    else {
        res->int8 = w.int8 > 0;
        res->ops = 2 * (w.int8 + w.floats) / passes;
    }
}

static const char *kind_text(const layer_job *j, char *dst, size_t cap)
{
    const hn_hparams *hp = &j->m->hp;
    snprintf(dst, cap, "width %d, %d layers", hp->n_embd, hp->n_layer);
    return dst;
}

/* Those that a pass left. */
static hone_status keep_queries(layer_job *j, hone_error *err)
{
    const size_t bytes = (size_t)(TOKENS * q_width(j->m)) * sizeof *j->q;
    if (!(j->q = malloc(bytes))) return HN_FAIL(err, HONE_E_NOMEM, "queries of %d tokens", (int)TOKENS);
    j->s->be->op->read(j->s->be, j->q, j->s->s.q, 0, bytes);
    return HONE_OK;
}

static hone_status one_part(hn_bench_run *r, const hn_bench_entry *e, layer_job *j, part p, const char *variant,
                            hone_error *err)
{
    char shape[64];
    j->part = p;
    j->il = has_part(j, 0) ? 0 : next_layer(j, 0);
    j->n_watched = j->n_left = j->n_was = 0;
    j->calls = 0;
    j->other = false;
    j->place =
        hn_bench_places((int64_t)TOKENS * (p == PART_TABLE && j->m->hp.n_rot ? j->m->hp.n_rot : j->m->hp.n_embd));
    hn_bench_result res = { .variant = variant,
                            .left = &left_part,
                            .config =
                                json_pack("{s:i, s:i, s:s, s:s, s:i}", "n_prompt", (int)TOKENS, "chunk", (int)TOKENS,
                                          "kv", r->set.kv, "shape", kind_text(j, shape, sizeof shape), "batch", 1) };
    hone_status st = check_forward(j, r, &res.verdict, err);
    if (st != HONE_OK) {
        hn_bench_result_free(&res);
        return st;
    }
    set_ops(&res, j);
    if (TOKENS > j->m->hp.n_ctx_train)
        hn_bench_note(&res, "%d positions, but the model was trained for %d", (int)TOKENS, j->m->hp.n_ctx_train);
    if (p != PART_ALL) { /* what a part finds: activations of a pass, and the table */
        forward(j);
        j->s->be->op->step_begin(j->s->be, &j->step);
        do_embed(j);
        j->s->be->op->step_end(j->s->be, NULL, NULL);
    }
    if (p == PART_CORE && begins_with_tokens(j) && (st = keep_queries(j, err)) != HONE_OK) {
        hn_bench_result_free(&res);
        return st;
    }
    st = hn_bench_loop(r, e, &res, call_part, j, 1e3, false, after_part, err);
    if (j->failed) {
        *err = j->err;
        return j->err.code;
    }
    return st;
}

/* Has the first layer, which these parts are measured in, them: queries and keys that turn? */
static bool has_parts(const hone_model *m, part p)
{
    const hn_layer_plan *first = &m->plan[0];
    if (p != PART_TABLE && p != PART_CORE) return true;
    return first->mixer == HN_MIXER_ATTN && (p == PART_CORE || first->rope == HN_ROPE_ALL);
}

static hone_status run(hn_bench_run *r, const hn_bench_entry *e, const part *parts, const char *const *variants, int n,
                       hone_error *err)
{
    layer_job j;
    hone_status st = open_job(&j, r, err);
    bool recurrent = st == HONE_OK && !hn_has_positions(j.m),
         mixes = parts[0] == PART_TIME_MIX || parts[0] == PART_CHANNEL_MIX;
    if (recurrent && parts[0] == PART_TABLE) st = hn_bench_not_recurrent(e, "it has no positions to rotate by", err);
    else if (recurrent && parts[0] == PART_CORE)
        st = hn_bench_not_recurrent(e, "it has no attention (layer.time_mix)", err);
    else if (recurrent && parts[0] == PART_FFN)
        st = hn_bench_not_recurrent(e, "it has no such block (layer.channel_mix)", err);
    else if (st == HONE_OK && mixes && !recurrent) st = hn_bench_only_recurrent(e, err);
    else if (st == HONE_OK && !has_parts(j.m, parts[0]))
        st = HN_FAIL(err, HONE_E_UNSUPPORTED,
                     "%s: the first layer of %s models has no such part; layer.full has all of it", e->id,
                     j.m->arch->name);
    for (int i = 0; i < n && st == HONE_OK; i++) st = one_part(r, e, &j, parts[i], variants ? variants[i] : NULL, err);
    close_job(&j);
    return st;
}

static hone_status run_one(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const struct {
        const char *name;
        part p;
    } names[] = { { "embed", PART_EMBED },
                  { "norm", PART_NORM },
                  { "ffn", PART_FFN },
                  { "time_mix", PART_TIME_MIX },
                  { "channel_mix", PART_CHANNEL_MIX },
                  { "full", PART_FULL },
                  { "all", PART_ALL } };
    const char *name = strchr(e->id, '.') + 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0) return run(r, e, &names[i].p, NULL, 1, err);
    return HN_FAIL(err, HONE_E_ARG, "%s: no such part", e->id);
}

static hone_status run_rope(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const part parts[] = { PART_TABLE, PART_ROPE };
    return run(r, e, parts, (const char *const[]){ "table of angles", "rotate and store" }, 2, err);
}

static hone_status run_attn(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const part parts[] = { PART_CORE, PART_ATTN };
    return run(r, e, parts, (const char *const[]){ "core", "with products" }, 2, err);
}

#define LAYER(id_, what_, target_, suites_, cost_, run_)                                                            \
    {                                                                                                               \
        .id = id_, .what = what_, .unit = "ms", .target = target_, .method = 'O', .model = true, .suites = suites_, \
        .cost = cost_, .uses = "threads-batch kv allow-paging", .run = run_                                         \
    }
const hn_bench_entry hn_bench_layer[] = {
    LAYER("layer.embed", "rows of the embedding for 512 tokens", NULL, "full", 1, run_one),
    LAYER("layer.rope", "cosines and sines of a pass; queries and keys of a layer rotated, keys and values stored",
          NULL, "full", 1, run_rope),
    LAYER("layer.norm", "one norm of 512 rows (the engine makes it together with what the product takes)", NULL, "full",
          1, run_one),
    LAYER("layer.attn", "attention of a layer, alone, and with norm, rotation and its four products", NULL, "full", 3,
          run_attn),
    LAYER("layer.ffn", "norm, gate, up, silu, down of a layer", NULL, "full", 3, run_one),
    LAYER("layer.time_mix", "time mix of a layer of a recurrent model: shift, products, recurrence", NULL, "full", 3,
          run_one),
    LAYER("layer.channel_mix", "channel mix of a layer of a recurrent model: shift and its two or three products", NULL,
          "full", 3, run_one),
    LAYER("layer.full", "one whole layer", "< 100 ms at width 5120", "quick full ci", 3, run_one),
    LAYER("layer.all", "a whole pass: embedding, all layers, logits of the last token", "< 5 s for 48 layers",
          "quick full ci", 10, run_one),
    { 0 },
};
