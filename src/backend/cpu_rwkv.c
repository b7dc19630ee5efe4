/* Recurrences of the CPU backend: tokens shifted and mixed with those before them, and RWKV's states. Owns how that is
 * cut; refuses to know layers. */
#include "backend/cpu.h"

typedef struct shift_job {
    cpu_backend *c;
    const hn_shift *s;
    const hn_state *state;
} shift_job;

static float *prev_of(const cpu_backend *c, const hn_state *st, int32_t seq, int part)
{
    size_t block = c->step.block ? c->step.block[seq] : (size_t)seq;
    return st->mem->p + st->at + block * st->block_floats + part * st->n_embd;
}

static void shift_norm_row(void *arg, int64_t t, int32_t thread)
{
    shift_job *j = arg;
    int64_t n = j->state->n_embd;
    j->c->k->layer_norm(j->s->h->p + t * n, j->s->x->p + t * n, j->s->ln_w, j->s->ln_b, n, j->s->eps);
}

static void shift_row(void *arg, int64_t i, int32_t thread)
{
    shift_job *j = arg;
    const hn_shift *s = j->s;
    int64_t n = j->state->n_embd, t = cpu_row(j->c, s->which, i);
    const hn_row *row = &j->c->step.rows[t];
    const float *prev = row->prev >= 0 ? s->h->p + row->prev * n : prev_of(j->c, j->state, row->seq, s->part);
    for (int c = 0; c < s->n; c++)
        j->c->k->lerp(s->out[c]->f32 + (size_t)i * hn_f32_stride(n), s->h->p + t * n, prev, s->lerp[c],
                      s->delta[c] ? s->delta[c]->p + t * n : NULL, n);
}

void cpu_token_shift(hn_backend *b, const hn_shift *s, const hn_state *state)
{
    shift_job j = { cpu_self(b), s, state };
    cpu_backend *c = j.c;
    int64_t n_tok = c->step.n_tok, n_index = cpu_n_rows(c, s->which);
    for (int i = 0; i < s->n; i++) cpu_act_begin(c, s->out[i], state->n_embd, n_index);
    cpu_wrote(c, s->h);
    if (s->x) cpu_for_rows(c, shift_norm_row, &j, n_tok, state->n_embd);
    cpu_for_rows(c, shift_row, &j, n_index, s->n * state->n_embd);
    for (int64_t t = 0; s->keep && t < n_tok; t++)
        if (c->step.rows[t].last)
            memcpy(prev_of(c, state, c->step.rows[t].seq, s->part), s->h->p + t * state->n_embd,
                   (size_t)state->n_embd * sizeof(float));
}

typedef struct time_mix_job {
    cpu_backend *c;
    const hn_time_mix *m;
    const hn_state *state;
    float *out;
    int64_t out_stride, n_tok;
    int32_t run; /* heads of a chunk */
} time_mix_job;

/* Chunk: some heads, all rows of the batch in order; a head's state stays in cache. */
static void time_mix_chunk(void *arg, int64_t chunk, int32_t thread)
{
    time_mix_job *j = arg;
    const hn_time_mix *m = j->m;
    int64_t n = m->n, width = n * m->n_head;
    int32_t end = (int32_t)(chunk + 1) * j->run < m->n_head ? (int32_t)(chunk + 1) * j->run : m->n_head;
    for (int32_t ih = (int32_t)chunk * j->run; ih < end; ih++)
        for (int64_t t = 0; t < j->n_tok; t++) {
            int64_t at = t * width + ih * n, c = ih * n;
            hn_wkv a = { .s = prev_of(j->c, j->state, j->c->step.rows[t].seq, 2) + c * n,
                         .out = j->out + t * j->out_stride + c,
                         .r = m->r->p + at,
                         .k = m->k->p + at,
                         .v = m->v->p + at,
                         .w = m->w->p + at,
                         .g = m->g->p + at,
                         .ln_w = m->ln_w + c,
                         .ln_b = m->ln_b + c,
                         .n = m->n,
                         .eps = m->eps };
            if (m->first) {
                a.first = m->first + c;
                j->c->k->wkv6(&a);
                continue;
            }
            a.a = m->a->p + at;
            a.v_mix = m->v_mix ? m->v_mix->p + at : NULL;
            a.v_first = m->v_first->p + at;
            a.k_k = m->k_k + c;
            a.k_a = m->k_a + c;
            a.r_k = m->r_k + c;
            j->c->k->wkv7(&a);
        }
}

void cpu_time_mix(hn_backend *b, hn_act *act, const hn_time_mix *m, const hn_state *state)
{
    enum { RUNS = 4 }; /* chunks per thread */
    int64_t width = (int64_t)m->n * m->n_head;
    cpu_backend *c = cpu_self(b);
    time_mix_job j = { .c = c,
                       .m = m,
                       .state = state,
                       .out = act->f32,
                       .out_stride = (int64_t)hn_f32_stride(width),
                       .n_tok = c->step.n_tok };
    cpu_act_begin(c, act, width, j.n_tok);
    if (m->v_first) cpu_wrote(c, m->v_first);
    j.run = (int32_t)cpu_div_up(m->n_head, (int64_t)RUNS * hn_pool_active(c->p.pool));
    hn_pool_run(c->p.pool, time_mix_chunk, &j, cpu_div_up(m->n_head, j.run));
}
