/* rwkv6: a linear recurrence with a matrix-valued state and a decay per channel that
 * depends on the input, as do the interpolations with the token before (Peng et al.
 * 2024, "Eagle and Finch"). Binding checks every tensor's shape; the forward pass
 * trusts it. */
#include "model/model.h"

/* The lerps in the order of the file. */
enum { W, K, V, R, G, N_LERP };

/* ---- binding -------------------------------------------------------------------------------- */

static hone_status hparams(hone_model *m, hone_error *err)
{
    hone_status st;
    if ((st = hn_rwkv_hparams(m, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "time_mix_extra_dim", 1, HN_MAX_EMBD / N_LERP, -1, &m->hp.n_extra, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "time_decay_extra_dim", 1, HN_MAX_EMBD, -1, &m->hp.n_decay, err)) != HONE_OK) return st;
    return hn_get_int(m, "rescale_every_n_layers", 0, HN_MAX_LAYER, 0, &m->hp.rescale_every, err);
}

static hone_status bind_mix(hone_model *m, hn_rwkv_layer *l, int32_t il, hone_error *err)
{
    hone_status st;
    char name[96];
    int64_t e = m->hp.n_embd, x = m->hp.n_extra;
    hn_weight first = { 0 }, second = { 0 };
    if ((st = hn_rwkv_matrix(m, &first, il, "time_mix_w1", e, N_LERP * x, err)) != HONE_OK) return st;
    snprintf(name, sizeof name, "blk.%d.time_mix_w2.weight", (int)il);
    if ((st = hn_bind_rows(m, &second, name, x, N_LERP * e, err)) != HONE_OK) return st;
    for (int c = 0; c < N_LERP; c++) {
        l->mix1[c] = hn_rows_of(&first, c * x, x);
        l->mix2[c] = hn_rows_of(&second, c * e, e);
    }
    if ((st = hn_rwkv_vector(m, &l->lerp_x, il, "time_mix_lerp_x", false, err)) != HONE_OK) return st;
    return hn_rwkv_lerps(m, l->lerp, il, "wkvrg", err);
}

static hone_status bind_layer(hone_model *m, int32_t il, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    hn_rwkv_layer *l = &m->rwkv[il];
    int64_t e = hp->n_embd;
    hone_status st;
    if ((st = hn_rwkv_bind_layer(m, il, err)) != HONE_OK) return st;
    if ((st = bind_mix(m, l, il, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_vector(m, &l->first, il, "time_mix_first", false, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_matrix(m, &l->w1, il, "time_mix_decay_w1", e, hp->n_decay, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_matrix(m, &l->w2, il, "time_mix_decay_w2", hp->n_decay, e, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_vector(m, &l->w2.bias, il, "time_mix_decay", false, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_matrix(m, &l->gate, il, "time_mix_gate", e, e, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_vector(m, &l->channel_lerp[1], il, "channel_mix_lerp_r", false, err)) != HONE_OK) return st;
    return hn_rwkv_matrix(m, &l->channel_receptance, il, "channel_mix_receptance", e, e, err);
}

static hone_status bind(hone_model *m, hone_error *err)
{
    hone_status st = hn_rwkv_bind_ends(m, err);
    for (int32_t il = 0; st == HONE_OK && il < m->hp.n_layer; il++) st = bind_layer(m, il, err);
    return st;
}

/* ---- forward ------------------------------------------------------------------------------------ */

static void time_mix(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    hn_backend *be = f->be;
    hn_scratch *s = f->s;
    const hn_rwkv_layer *l = &m->rwkv[il];
    float *const delta[N_LERP] = { s->w, s->k, s->v, s->r, s->g }; /* until the products of these names are made */

    hn_shift shift = { .x = s->x, .ln_w = l->attn_norm, .ln_b = l->attn_norm_b, .h = s->h, .eps = hp->ln_eps, .n = 1, .out = { &s->act }, .lerp = { l->lerp_x }, .part = HN_PREV_TIME_MIX };
    op->token_shift(be, &shift, &f->state[il], f->rows, f->n_tok, NULL, f->n_tok);
    hn_product mix[N_LERP];
    for (int c = 0; c < N_LERP; c++) mix[c] = (hn_product){ .w = &l->mix1[c], .in = &s->act, .out = &s->low[c], .map = HN_MAP_TANH };
    op->matmul(be, NULL, mix, N_LERP);
    for (int c = 0; c < N_LERP; c++) mix[c] = (hn_product){ .w = &l->mix2[c], .in = &s->low[c], .y = delta[c] };
    op->matmul(be, NULL, mix, N_LERP);
    shift.x = NULL;
    shift.keep = true;
    shift.n = N_LERP;
    for (int c = 0; c < N_LERP; c++) {
        shift.out[c] = &s->shift[c];
        shift.lerp[c] = l->lerp[c];
        shift.delta[c] = delta[c];
    }
    op->token_shift(be, &shift, &f->state[il], f->rows, f->n_tok, NULL, f->n_tok);

    const hn_product in[] = {
        { .w = &l->receptance, .in = &s->shift[R], .y = s->r }, { .w = &l->key, .in = &s->shift[K], .y = s->k }, { .w = &l->value, .in = &s->shift[V], .y = s->v },
        { .w = &l->gate, .in = &s->shift[G], .y = s->g, .map = HN_MAP_SILU }, { .w = &l->w1, .in = &s->shift[W], .out = &s->low[0], .map = HN_MAP_TANH },
    };
    op->matmul(be, NULL, in, 5);
    op->matmul(be, &s->low[0], &(hn_product){ .w = &l->w2, .y = s->w }, 1);
    const hn_time_mix step = { .r = s->r, .k = s->k, .v = s->v, .w = s->w, .g = s->g, .ln_w = l->ln, .ln_b = l->ln_b, .first = l->first,
                               .n_head = hp->n_head, .n = hp->head_dim, .eps = HN_RWKV_GROUP_EPS };
    op->time_mix(be, &s->act, &step, &f->state[il], f->rows, f->n_tok);
    op->matmul(be, &s->act, &(hn_product){ .w = &l->output, .y = s->h, .sum = s->x }, 1);
}

/* index: the rows whose logits are wanted, n of them; NULL: all. */
static void channel_mix(const hone_model *m, const hn_forward *f, int32_t il, const int32_t *index, int64_t n)
{
    const hn_backend_ops *op = f->be->op;
    hn_scratch *s = f->s;
    const hn_rwkv_layer *l = &m->rwkv[il];
    const hn_shift shift = { .x = s->x, .ln_w = l->attn_norm_2, .ln_b = l->attn_norm_2_b, .h = s->h, .eps = m->hp.ln_eps, .n = 2, .out = { &s->shift[0], &s->shift[1] },
                             .lerp = { l->channel_lerp[0], l->channel_lerp[1] }, .part = HN_PREV_CHANNEL_MIX, .keep = true };
    op->token_shift(f->be, &shift, &f->state[il], f->rows, f->n_tok, index, n);
    if (!n) return;
    if (index) op->gather(f->be, s->x, s->x, index, m->hp.n_embd, n);
    const hn_product in[] = { { .w = &l->channel_key, .in = &s->shift[0], .out = &s->ff, .map = HN_MAP_SQRELU },
                              { .w = &l->channel_receptance, .in = &s->shift[1], .y = s->r, .map = HN_MAP_SIGMOID } };
    op->matmul(f->be, NULL, in, 2);
    op->matmul(f->be, &s->ff, &(hn_product){ .w = &l->channel_value, .y = s->h, .mul = s->r, .sum = s->x }, 1);
    /* such files hold output matrices of layer il divided by 2^(il / rescale_every) */
    if (m->hp.rescale_every && (il + 1) % m->hp.rescale_every == 0) op->scale(f->be, s->x, 0.5f, n * m->hp.n_embd);
}

static bool forward(const hone_model *m, const hn_forward *f)
{
    hn_rwkv_begin(m, f);
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        if (f->abort_fn && f->abort_fn(f->abort_arg)) return false;
        bool some = il == m->hp.n_layer - 1 && f->n_want < f->n_tok; /* the last products only where logits are wanted */
        time_mix(m, f, il);
        channel_mix(m, f, il, some ? f->want : NULL, some ? f->n_want : f->n_tok);
    }
    if (f->n_want) hn_rwkv_end(m, f);
    return true;
}

static void channel_mix_all(const hone_model *m, const hn_forward *f, int32_t il) { channel_mix(m, f, il, NULL, f->n_tok); }

const hn_arch hn_arch_rwkv6 = { "rwkv6", hparams, bind, forward, time_mix, channel_mix_all };
