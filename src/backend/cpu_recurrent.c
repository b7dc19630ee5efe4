/* Recurrences of hybrids on the CPU: short convolutions, n-grams, the gated delta rule, Mamba, Mamba-2. Owns how they
 * are cut: by channels or heads, each over all rows in order, so that a sequence's states are one thread's; refuses to
 * know layers. */
#include "backend/cpu.h"

enum {
    CONV_CHANNELS = 512, /* of a chunk at least: fewer are not worth waking another thread */
    RUNS = 4             /* chunks of heads per thread */
};

static float *state_of(const cpu_backend *c, const hn_state *st, int32_t seq, size_t at)
{
    size_t block = c->step.block ? c->step.block[seq] : (size_t)seq;
    return st->mem->p + at + block * st->block_floats;
}

/* ---- convolution ------------------------------------------------------------------------------------- */

typedef struct conv_job {
    cpu_backend *c;
    const hn_conv *v;
    const hn_state *state;
    float *out;
    int64_t out_stride, run; /* channels of a chunk */
} conv_job;

static float *tail_of(const conv_job *j, int32_t seq)
{
    return state_of(j->c, j->state, seq, j->state->conv_at + j->v->tail);
}

/* Rows between a first tap and a last, and the distance from one to the next. */
static int32_t apart(const hn_conv *v) { return v->apart ? v->apart : 1; }
static int32_t reach(const hn_conv *v) { return (v->taps - 1) * apart(v); }

/* What lies under row t's taps and between them, from channel c on: rows of its sequence in the step, before them those
 * of its tail. */
static void taps_of(const conv_job *j, int64_t t, int64_t c, const float *x[HN_MAX_REACH + 1])
{
    const hn_conv *v = j->v;
    const hn_row *rows = j->c->step.rows;
    int32_t seq = rows[t].seq, k = reach(v), in_tail = k - 1;
    for (int64_t r = t; k >= 0 && r >= 0; r = rows[r].prev) x[k--] = v->x->p + r * v->n + c;
    for (; k >= 0; k--) x[k] = tail_of(j, seq) + (int64_t)in_tail-- * v->n + c;
}

/* The tail of t's sequence, of which it is the last row: what its taps are but for the oldest, in ascending order, for
 * each comes from its own place or a later one. */
static void keep_tail(const conv_job *j, int64_t t, int64_t c, int64_t n)
{
    const float *x[HN_MAX_REACH + 1];
    float *tail = tail_of(j, j->c->step.rows[t].seq);
    taps_of(j, t, c, x);
    for (int32_t k = 1; k <= reach(j->v); k++) memmove(tail + (k - 1) * j->v->n + c, x[k], (size_t)n * sizeof *tail);
}

/* The row so many behind t in its sequence, of those of the step; less where that ends: *ahead is how many then. */
static int64_t row_ahead(const conv_job *j, int64_t t, int32_t *ahead)
{
    const hn_row *rows = j->c->step.rows;
    int32_t n = 0;
    for (; n < *ahead && !rows[t].last; n++) {
        int64_t next = t + 1;
        while (rows[next].prev != t) next++; /* texts stand together: it is the first */
        t = next;
    }
    *ahead = n;
    return t;
}

/* Row i of those that are given, channels [c, c + n). */
static void conv_row(const conv_job *j, int64_t i, int64_t t, int64_t c, int64_t n)
{
    const hn_conv *v = j->v;
    const float *x[HN_MAX_REACH + 1], *gate = v->out_gate ? v->out_gate->p + t * v->n + c : NULL;
    float *y = j->out + i * j->out_stride + c;
    int32_t ahead = v->ahead;
    taps_of(j, row_ahead(j, t, &ahead), c, x);
    for (int32_t k = 1; apart(v) > 1 && k < v->taps; k++) x[k] = x[k * apart(v)];
    const int32_t skipped = v->ahead - ahead; /* of the last taps, which nothing lies under: the others move up */
    const hn_conv_row row = { .y = y,
                              .x = x + skipped,
                              .w = v->w + c,
                              .b = v->b ? v->b + c : NULL,
                              .n = n,
                              .ldw = v->n,
                              .taps = v->taps - skipped,
                              .silu = v->silu };
    j->c->k->conv(&row);
    for (int64_t e = 0; gate && e < n; e++) y[e] *= gate[e];
}

/* Chunk: some channels of all rows. */
static void conv_chunk(void *arg, int64_t chunk, int32_t thread)
{
    conv_job *j = arg;
    const hn_conv *v = j->v;
    const hn_step_block *step = &j->c->step;
    int64_t c = chunk * j->run, n = v->n - c < j->run ? v->n - c : j->run;
    for (int64_t t = 0; v->in_gate && t < step->n_tok; t++) {
        float *x = v->x->p + t * v->n + c;
        const float *gate = v->in_gate->p + t * v->n + c;
        for (int64_t e = 0; e < n; e++) x[e] *= gate[e];
    }
    hn_which which = v->act ? v->which : HN_ALL;
    for (int64_t i = 0; i < cpu_n_rows(j->c, which); i++) conv_row(j, i, cpu_row(j->c, which, i), c, n);
    for (int64_t t = 0; t < step->n_tok; t++)
        if (step->rows[t].last) keep_tail(j, t, c, n);
}

void cpu_conv(hn_backend *b, const hn_conv *v, const hn_state *state)
{
    cpu_backend *c = cpu_self(b);
    conv_job j = { .c = c,
                   .v = v,
                   .state = state,
                   .out = v->act ? v->act->f32 : v->y->p,
                   .out_stride = v->act ? (int64_t)hn_f32_stride(v->n) : v->n };
    if (v->in_gate) cpu_wrote(c, v->x);
    if (v->act) cpu_act_begin(c, v->act, v->n, cpu_n_rows(c, v->which));
    else cpu_wrote(c, v->y);
    int64_t fair = (cpu_div_up(v->n, hn_pool_active(c->p.pool)) + 15) & ~(int64_t)15;
    j.run = fair < CONV_CHANNELS ? CONV_CHANNELS : fair;
    hn_pool_run(c->p.pool, conv_chunk, &j, cpu_div_up(v->n, j.run));
}

/* ---- n-grams -------------------------------------------------------------------------------------------- */

typedef struct ngram_job {
    cpu_backend *c;
    const hn_ngram *n;
    const hn_state *state;
    const hn_type_info *ti;
} ngram_job;

static float *ids_of(const ngram_job *j, int32_t seq)
{
    return state_of(j->c, j->state, seq, j->state->conv_at + j->n->tail);
}

/* The id so many places before row t in its sequence; -1: there is none. */
static int64_t id_before(const ngram_job *j, int64_t t, int32_t back)
{
    const hn_row *rows = j->c->step.rows;
    const int32_t seq = rows[t].seq;
    for (; back > 0 && rows[t].prev >= 0; back--) t = rows[t].prev;
    return back == 0 ? rows[t].token : (int64_t)ids_of(j, seq)[j->n->n_gram - 1 - back] - 1;
}

static void ngram_row(void *arg, int64_t t, int32_t thread)
{
    const ngram_job *j = arg;
    const hn_ngram *n = j->n;
    const int64_t d = n->w->n_in;
    uint64_t m = (uint64_t)id_before(j, t, 0) * n->mul[0];
    float *y = n->y->p + t * (n->n_gram - 1) * n->per_gram * d;
    bool cut = false;
    for (int32_t k = 1, h = 0; k < n->n_gram; k++) {
        int64_t id = cut ? -1 : id_before(j, t, k);
        cut = cut || id < 0 || id == n->eos;
        m ^= (uint64_t)(cut ? n->eos : id) * n->mul[k];
        for (int32_t i = 0; i < n->per_gram; i++, h++, y += d)
            cpu_open_row(y, n->w, j->ti, (int64_t)(m % n->size[h] + n->at[h]), 0, d);
    }
}

/* The ids of t's sequence, of which it is the last row, in ascending order, for each comes from its own place or a
 * later one. */
static void keep_ids(const ngram_job *j, int64_t t)
{
    const int32_t last = j->n->n_gram - 1;
    float *ids = ids_of(j, j->c->step.rows[t].seq);
    for (int32_t i = 0; i < last; i++) ids[i] = (float)(id_before(j, t, last - 1 - i) + 1);
}

void cpu_ngram(hn_backend *b, const hn_ngram *n, const hn_state *state)
{
    ngram_job j = { .c = cpu_self(b), .n = n, .state = state, .ti = hn_type_get(n->w->type) };
    const hn_step_block *step = &j.c->step;
    cpu_wrote(j.c, n->y);
    cpu_for_rows(j.c, ngram_row, &j, step->n_tok, (n->n_gram - 1) * n->per_gram * n->w->n_in);
    for (int64_t t = 0; t < step->n_tok; t++)
        if (step->rows[t].last) keep_ids(&j, t);
}

/* ---- heads --------------------------------------------------------------------------------------------- */

/* Chunks of heads, each over all rows of the step. */
typedef struct heads_run {
    cpu_backend *c;
    const hn_state *state;
    float *out; /* of the rows that are given */
    int64_t out_stride;
    const hn_delta_rule *d; /* one of these */
    const hn_ssm *m;
    hn_which which;
    int32_t n_head, run; /* heads of a chunk */
} heads_run;

/* The row among those that are given, ascending, which t is; −1: none. *i: how many were passed. */
static int64_t given(const heads_run *j, int64_t t, int64_t *i)
{
    const hn_step_block *s = &j->c->step;
    if (j->which == HN_ALL) return t;
    return *i < s->n_want && s->want[*i] == t ? (*i)++ : -1;
}

static void delta_head(const heads_run *j, int64_t t, int32_t ih, float *out)
{
    const hn_delta_rule *d = j->d;
    int64_t n = d->n, row = t * d->stride, hk = d->tiled ? ih % d->n_head_k : ih / (d->n_head / d->n_head_k);
    const hn_delta_head a = { .s = state_of(j->c, j->state, j->c->step.rows[t].seq, j->state->at) + ih * n * n,
                              .out = out,
                              .q = d->q->p + row + d->q_at + hk * n,
                              .k = d->k->p + row + d->k_at + hk * n,
                              .v = d->v->p + row + d->v_at + ih * n,
                              .gate = d->gate->p + (t * d->n_head + ih) * n,
                              .norm = d->norm,
                              .decay = d->decay->p + (t * d->n_head + ih) * (d->each ? n : 1),
                              .a = d->a[ih],
                              .beta = d->beta->p[t * d->n_head + ih],
                              .eps = d->eps,
                              .each = d->each,
                              .sigmoid = d->sigmoid,
                              .n = d->n };
    j->c->k->delta(&a);
}

static void ssm_head(const heads_run *j, int64_t t, int32_t ih, float *out)
{
    const hn_ssm *m = j->m;
    int64_t inner = (int64_t)m->n_head * m->p, group = ih / (m->n_head / m->n_group),
            states = (int64_t)m->n_group * m->n;
    const float *row = m->xbc->p + t * (inner + 2 * states);
    float dt = m->dt->p[t * m->n_head + ih];
    const hn_ssm_head a = { .s = state_of(j->c, j->state, j->c->step.rows[t].seq, j->state->at) +
                                 (int64_t)ih * m->p * m->n,
                            .y = out,
                            .x = row + (int64_t)ih * m->p,
                            .b = row + inner + group * m->n,
                            .c = row + inner + states + group * m->n,
                            .dt = dt,
                            .decay = hn_exp_inline(dt * m->a[ih]),
                            .d = m->d[ih],
                            .p = m->p,
                            .n = m->n };
    j->c->k->ssm(&a);
}

/* Channels [from, end) of row t, of Mamba: heads of one channel each. */
static void scan_run(const heads_run *j, int64_t t, int32_t from, int32_t end, float *out)
{
    const hn_ssm *m = j->m;
    const int64_t row = t * m->n_head + from;
    const hn_scan_run a = { .s = state_of(j->c, j->state, j->c->step.rows[t].seq, j->state->at) + from,
                            .y = out,
                            .x = m->xbc->p + row,
                            .dt = m->dt->p + row,
                            .a = m->a + from,
                            .b = m->b->p + t * m->n,
                            .c = m->c->p + t * m->n,
                            .d = m->d + from,
                            .lds = m->n_head,
                            .lda = m->n_head,
                            .p = end - from,
                            .n = m->n };
    j->c->k->scan(&a);
}

/* Chunk: some channels of all rows, no more than have room where nobody takes them. */
static void scan_chunk(void *arg, int64_t chunk, int32_t thread)
{
    heads_run *j = arg;
    float nobody[HN_MAX_WKV];
    int32_t from = (int32_t)chunk * j->run, end = from + j->run < j->n_head ? from + j->run : j->n_head;
    for (int64_t t = 0, i = 0; t < j->c->step.n_tok; t++) {
        int64_t r = given(j, t, &i);
        scan_run(j, t, from, end, r < 0 ? nobody : j->out + r * j->out_stride + from);
    }
}

static void heads_chunk(void *arg, int64_t chunk, int32_t thread)
{
    heads_run *j = arg;
    float nobody[HN_MAX_WKV]; /* takes what comes out of the other rows */
    int64_t width = j->d ? j->d->n : j->m->p;
    int32_t end = (int32_t)(chunk + 1) * j->run < j->n_head ? (int32_t)(chunk + 1) * j->run : j->n_head;
    for (int32_t ih = (int32_t)chunk * j->run; ih < end; ih++)
        for (int64_t t = 0, i = 0; t < j->c->step.n_tok; t++) {
            int64_t r = given(j, t, &i);
            float *out = r < 0 ? nobody : j->out + r * j->out_stride + ih * width;
            if (j->d) delta_head(j, t, ih, out);
            else ssm_head(j, t, ih, out);
        }
}

static void begin_heads(heads_run *j, hn_act *act, int64_t width)
{
    cpu_act_begin(j->c, act, width * j->n_head, cpu_n_rows(j->c, j->which));
    j->out = act->f32;
    j->out_stride = (int64_t)hn_f32_stride(width * j->n_head);
    j->run = (int32_t)cpu_div_up(j->n_head, (int64_t)RUNS * hn_pool_active(j->c->p.pool));
}
static void run_heads(heads_run *j, hn_act *act, int64_t width)
{
    begin_heads(j, act, width);
    hn_pool_run(j->c->p.pool, heads_chunk, j, cpu_div_up(j->n_head, j->run));
}
/* Heads of one channel: whole vectors of them a chunk. */
static void run_channels(heads_run *j, hn_act *act)
{
    begin_heads(j, act, 1);
    j->run = (j->run + 15) & ~15;
    if (j->run > HN_MAX_WKV) j->run = HN_MAX_WKV;
    hn_pool_run(j->c->p.pool, scan_chunk, j, cpu_div_up(j->n_head, j->run));
}

void cpu_delta(hn_backend *b, hn_act *act, const hn_delta_rule *d, const hn_state *state)
{
    heads_run j = { .c = cpu_self(b), .state = state, .d = d, .which = d->which, .n_head = d->n_head };
    run_heads(&j, act, d->n);
}

/* Chunk: one group of one row: y·silu(z), normed. */
static void group_chunk(void *arg, int64_t chunk, int32_t thread)
{
    heads_run *j = arg;
    const hn_ssm *m = j->m;
    int64_t i = chunk / m->n_group, inner = (int64_t)m->n_head * m->p, n = inner / m->n_group,
            at = chunk % m->n_group * n;
    float *y = j->out + i * j->out_stride + at;
    j->c->k->silu_mul(y, m->z->p + cpu_row(j->c, m->which, i) * inner + at, y, n);
    if (m->norm) j->c->k->rms_norm(y, y, m->norm + at, n, m->eps);
}

void cpu_ssm(hn_backend *b, hn_act *act, const hn_ssm *m, const hn_state *state)
{
    heads_run j = { .c = cpu_self(b), .state = state, .m = m, .which = m->which, .n_head = m->n_head };
    if (m->b) run_channels(&j, act);
    else run_heads(&j, act, m->p);
    hn_pool_run(j.c->p.pool, group_chunk, &j, cpu_n_rows(j.c, m->which) * m->n_group);
}
