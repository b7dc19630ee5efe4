/* block_rwkv: time mix and channel mix of RWKV-6 (Peng et al. 2024, "Eagle and Finch") and RWKV-7 (Peng et al. 2025,
 * "Goose"): linear recurrences with a matrix-valued state, on inputs interpolated with those of the token before. In
 * RWKV-6 the decay of each channel and the interpolations depend on the input; RWKV-7 has a generalized delta rule,
 * whose decay, learning rate, value residual and gate come from low-rank products. Every row passes through the state,
 * so a layer is narrowed to the wanted rows in its channel mix alone. */
#include "model/forward.h"

/* The lerps in the order of the file. */
enum { W6, K6, V6, R6, G6 };
enum { R7, W7, K7, V7, A7, G7 };

void hn_block_rwkv6(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    hn_backend *be = f->be;
    const hn_scratch *s = f->s;
    const hn_layer *l = &m->layers[il];
    hn_buf *const delta[HN_RWKV_MIXES] = { s->w, s->k, s->v, s->r,
                                           s->g }; /* until the products of these names are made */

    hn_shift shift = { .x = f->x,
                       .ln_w = l->attn_norm,
                       .ln_b = l->attn_norm_b,
                       .h = f->h,
                       .eps = hp->ln_eps,
                       .n = 1,
                       .out = { s->act },
                       .lerp = { l->lerp_x },
                       .part = HN_PREV_TIME_MIX };
    op->token_shift(be, &shift, &f->state[il]);
    hn_product mix[HN_RWKV_MIXES];
    for (int c = 0; c < HN_RWKV_MIXES; c++)
        mix[c] = (hn_product){ .w = &l->mix1[c], .in = s->act, .out = s->low[c], .map = HN_MAP_TANH };
    op->matmul(be, NULL, mix, HN_RWKV_MIXES);
    for (int c = 0; c < HN_RWKV_MIXES; c++) mix[c] = (hn_product){ .w = &l->mix2[c], .in = s->low[c], .y = delta[c] };
    op->matmul(be, NULL, mix, HN_RWKV_MIXES);
    shift.x = NULL;
    shift.keep = true;
    shift.n = HN_RWKV_MIXES;
    for (int c = 0; c < HN_RWKV_MIXES; c++) {
        shift.out[c] = s->shift[c];
        shift.lerp[c] = l->lerp[c];
        shift.delta[c] = delta[c];
    }
    op->token_shift(be, &shift, &f->state[il]);

    const hn_product in[] = {
        { .w = &l->receptance, .in = s->shift[R6], .y = s->r },
        { .w = &l->key, .in = s->shift[K6], .y = s->k },
        { .w = &l->value, .in = s->shift[V6], .y = s->v },
        { .w = &l->gate, .in = s->shift[G6], .y = s->g, .map = HN_MAP_SILU },
        { .w = &l->w1, .in = s->shift[W6], .out = s->low[0], .map = HN_MAP_TANH },
    };
    op->matmul(be, NULL, in, 5);
    op->matmul(be, s->low[0], &(hn_product){ .w = &l->w2, .y = s->w }, 1);
    const hn_time_mix step = { .r = s->r,
                               .k = s->k,
                               .v = s->v,
                               .w = s->w,
                               .g = s->g,
                               .ln_w = l->ln,
                               .ln_b = l->ln_b,
                               .first = l->first,
                               .n_head = m->plan[il].n_head,
                               .n = m->plan[il].d_k,
                               .eps = HN_RWKV_GROUP_EPS };
    op->time_mix(be, s->act, &step, &f->state[il]);
    op->matmul(be, s->act, &(hn_product){ .w = &l->output, .sum = f->x }, 1);
}

void hn_block_rwkv7(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    hn_backend *be = f->be;
    const hn_scratch *s = f->s;
    const hn_layer *l = &m->layers[il];
    bool mix_v = il > 0;

    hn_shift shift = { .x = f->x,
                       .ln_w = l->attn_norm,
                       .ln_b = l->attn_norm_b,
                       .h = f->h,
                       .eps = hp->ln_eps,
                       .n = 6,
                       .part = HN_PREV_TIME_MIX,
                       .keep = true };
    for (int c = 0; c < 6; c++) {
        shift.out[c] = s->shift[c];
        shift.lerp[c] = l->lerp[c];
    }
    op->token_shift(be, &shift, &f->state[il]);

    hn_product first[] = {
        { .w = &l->receptance, .in = s->shift[R7], .y = s->r },
        { .w = &l->key, .in = s->shift[K7], .y = s->k },
        { .w = &l->value, .in = s->shift[V7], .y = s->v },
        { .w = &l->g1, .in = s->shift[G7], .out = s->low[0], .map = HN_MAP_SIGMOID },
        { .w = &l->w1, .in = s->shift[W7], .out = s->low[1], .map = HN_MAP_TANH },
        { .w = &l->a1, .in = s->shift[A7], .out = s->low[2] },
        { .w = &l->v1, .in = s->shift[V7], .out = s->low[3] },
    };
    op->matmul(be, NULL, first, mix_v ? 7 : 6);
    const hn_product second[] = {
        { .w = &l->g2, .in = s->low[0], .y = s->g },
        { .w = &l->w2, .in = s->low[1], .y = s->w },
        { .w = &l->a2, .in = s->low[2], .y = s->a },
        { .w = &l->v2, .in = s->low[3], .y = s->v_mix },
    };
    op->matmul(be, NULL, second, mix_v ? 4 : 3);

    const hn_time_mix mix = { .r = s->r,
                              .k = s->k,
                              .v = s->v,
                              .w = s->w,
                              .g = s->g,
                              .ln_w = l->ln,
                              .ln_b = l->ln_b,
                              .a = s->a,
                              .v_mix = mix_v ? s->v_mix : NULL,
                              .k_k = l->k_k,
                              .k_a = l->k_a,
                              .r_k = l->r_k,
                              .v_first = s->v_first,
                              .n_head = m->plan[il].n_head,
                              .n = m->plan[il].d_k,
                              .eps = HN_RWKV_GROUP_EPS };
    op->time_mix(be, s->act, &mix, &f->state[il]);
    op->matmul(be, s->act, &(hn_product){ .w = &l->output, .sum = f->x }, 1);
}

/* x += value·relu(key·x_k)² (RWKV-6: times sigmoid(receptance·x_r)) */
void hn_block_channel_mix(const hone_model *m, hn_forward *f, int32_t il)
{
    const hn_backend_ops *op = f->be->op;
    const hn_scratch *s = f->s;
    const hn_layer *l = &m->layers[il];
    bool gated = hn_weight_is_there(&l->channel_receptance);
    const hn_shift shift = { .x = f->x,
                             .ln_w = l->ffn_norm,
                             .ln_b = l->ffn_norm_b,
                             .h = f->h,
                             .eps = m->hp.ln_eps,
                             .n = gated ? 2 : 1,
                             .out = { s->shift[0], s->shift[1] },
                             .lerp = { l->channel_lerp[0], l->channel_lerp[1] },
                             .part = HN_PREV_CHANNEL_MIX,
                             .keep = true,
                             .which = f->give };
    op->token_shift(f->be, &shift, &f->state[il]);
    hn_forward_narrow(m, f);
    if (!hn_forward_rows(f)) return;
    const hn_product in[] = { { .w = &l->channel_key, .in = s->shift[0], .out = s->ff, .map = HN_MAP_SQRELU },
                              { .w = &l->channel_receptance, .in = s->shift[1], .y = s->r, .map = HN_MAP_SIGMOID } };
    op->matmul(f->be, NULL, in, gated ? 2 : 1);
    const hn_product out = { .w = &l->channel_value, .mul = gated ? s->r : NULL, .sum = f->x };
    op->matmul(f->be, s->ff, &out, 1);
    /* such files hold output matrices of layer il divided by 2^(il / rescale_every) */
    if (m->hp.rescale_every && (il + 1) % m->hp.rescale_every == 0)
        op->scale(f->be, f->x, 0.5f, hn_forward_rows(f) * m->hp.n_embd);
}

void hn_block_rwkv_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    const int32_t rank[] = { hp->rank_decay, hp->rank_iclr, hp->rank_value, hp->rank_gate, hp->rank_mix };
    int64_t e = hp->n_embd, *const rows[] = { &w->r, &w->k, &w->v, &w->w, &w->a, &w->v_mix, &w->g, &w->v_first };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) hn_at_least(rows[i], e);
    for (size_t i = 0; i < sizeof rank / sizeof *rank; i++) hn_at_least(&w->low, rank[i]);
    hn_at_least(&w->shift, e);
}

void hn_block_channel_mix_scratch(const hn_hparams *hp, const hn_layer_plan *p, hn_scratch_width *w)
{
    hn_at_least(&w->shift, hp->n_embd);
    hn_at_least(&w->r, hp->n_embd);
    hn_at_least(&w->ff, p->n_ff);
}
