/* rwkv7: a linear recurrence with a matrix-valued state and a generalized delta rule
 * (Peng et al. 2025, "RWKV-7 Goose"). Per layer, time mix and channel mix, each on
 * inputs interpolated with those of the token before; decay, in-context learning rate,
 * value residual and gate come from low-rank products. Binding checks every tensor's
 * shape; the forward pass trusts it. */
#include "model/model.h"

/* The lerps in the order of the file. */
enum { R, W, K, V, A, G };

/* ---- binding -------------------------------------------------------------------------------- */

/* The rank of a low-rank pair: its key, or what the first factor has. */
static hone_status rank_of(const hone_model *m, const char *key, const char *tensor, int32_t *rank, hone_error *err)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, tensor);
    int64_t def = t && t->ne[1] <= HN_MAX_EMBD ? (int64_t)t->ne[1] : -1;
    return hn_get_int(m, key, 1, HN_MAX_EMBD, def, rank, err);
}

static hone_status hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    if ((st = hn_rwkv_hparams(m, err)) != HONE_OK) return st;
    if ((st = rank_of(m, "attention.decay_lora_rank", "blk.0.time_mix_w1.weight", &hp->rank_decay, err)) != HONE_OK) return st;
    if ((st = rank_of(m, "attention.iclr_lora_rank", "blk.0.time_mix_a1.weight", &hp->rank_iclr, err)) != HONE_OK) return st;
    hp->rank_value = 1; /* one layer has no use for it */
    if (hp->n_layer > 1 && (st = rank_of(m, "attention.value_residual_mix_lora_rank", "blk.1.time_mix_v1.weight", &hp->rank_value, err)) != HONE_OK) return st;
    return rank_of(m, "attention.gate_lora_rank", "blk.0.time_mix_g1.weight", &hp->rank_gate, err);
}

/* X1, X2 and, as the bias of X2, X0. */
static hone_status bind_pair(hone_model *m, hn_weight *first, hn_weight *second, int32_t il, char letter, int32_t rank, bool bias, hone_error *err)
{
    hone_status st;
    char what[32];
    int64_t e = m->hp.n_embd;
    snprintf(what, sizeof what, "time_mix_%c1", letter);
    if ((st = hn_rwkv_matrix(m, first, il, what, e, rank, err)) != HONE_OK) return st;
    snprintf(what, sizeof what, "time_mix_%c2", letter);
    if ((st = hn_rwkv_matrix(m, second, il, what, rank, e, err)) != HONE_OK || !bias) return st;
    snprintf(what, sizeof what, "time_mix_%c0", letter);
    return hn_rwkv_vector(m, &second->bias, il, what, false, err);
}

static hone_status bind_layer(hone_model *m, int32_t il, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    hn_rwkv_layer *l = &m->rwkv[il];
    hone_status st;
    if ((st = hn_rwkv_bind_layer(m, il, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_lerps(m, l->lerp, il, "rwkvag", err)) != HONE_OK) return st;
    if ((st = bind_pair(m, &l->w1, &l->w2, il, 'w', hp->rank_decay, true, err)) != HONE_OK) return st;
    if ((st = bind_pair(m, &l->a1, &l->a2, il, 'a', hp->rank_iclr, true, err)) != HONE_OK) return st;
    if (il > 0) {
        if ((st = bind_pair(m, &l->v1, &l->v2, il, 'v', hp->rank_value, true, err)) != HONE_OK) return st;
    } else { /* converters write copies of a0, a1, a2 for what the first layer does not have */
        hn_bind_unused(m, "blk.0.time_mix_v0.weight");
        hn_bind_unused(m, "blk.0.time_mix_v1.weight");
        hn_bind_unused(m, "blk.0.time_mix_v2.weight");
    }
    if ((st = bind_pair(m, &l->g1, &l->g2, il, 'g', hp->rank_gate, false, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_vector(m, &l->k_k, il, "time_mix_k_k", false, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_vector(m, &l->k_a, il, "time_mix_k_a", false, err)) != HONE_OK) return st;
    return hn_rwkv_vector(m, &l->r_k, il, "time_mix_r_k", false, err);
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
    bool mix_v = il > 0;

    hn_shift shift = { .x = s->x, .ln_w = l->attn_norm, .ln_b = l->attn_norm_b, .h = s->h, .eps = hp->ln_eps, .n = 6, .part = HN_PREV_TIME_MIX, .keep = true };
    for (int c = 0; c < 6; c++) {
        shift.out[c] = &s->shift[c];
        shift.lerp[c] = l->lerp[c];
    }
    op->token_shift(be, &shift, &f->state[il], f->rows, f->n_tok, NULL, f->n_tok);

    hn_product first[] = {
        { .w = &l->receptance, .in = &s->shift[R], .y = s->r }, { .w = &l->key, .in = &s->shift[K], .y = s->k }, { .w = &l->value, .in = &s->shift[V], .y = s->v },
        { .w = &l->g1, .in = &s->shift[G], .out = &s->low[0], .map = HN_MAP_SIGMOID }, { .w = &l->w1, .in = &s->shift[W], .out = &s->low[1], .map = HN_MAP_TANH },
        { .w = &l->a1, .in = &s->shift[A], .out = &s->low[2] }, { .w = &l->v1, .in = &s->shift[V], .out = &s->low[3] },
    };
    op->matmul(be, NULL, first, mix_v ? 7 : 6);
    const hn_product second[] = {
        { .w = &l->g2, .in = &s->low[0], .y = s->g }, { .w = &l->w2, .in = &s->low[1], .y = s->w },
        { .w = &l->a2, .in = &s->low[2], .y = s->a }, { .w = &l->v2, .in = &s->low[3], .y = s->v_mix },
    };
    op->matmul(be, NULL, second, mix_v ? 4 : 3);

    const hn_time_mix mix = { .r = s->r, .k = s->k, .v = s->v, .w = s->w, .g = s->g, .ln_w = l->ln, .ln_b = l->ln_b, .a = s->a, .v_mix = mix_v ? s->v_mix : NULL,
                              .k_k = l->k_k, .k_a = l->k_a, .r_k = l->r_k, .v_first = s->v_first, .n_head = hp->n_head, .n = hp->head_dim, .eps = HN_RWKV_GROUP_EPS };
    op->time_mix(be, &s->act, &mix, &f->state[il], f->rows, f->n_tok);
    op->matmul(be, &s->act, &(hn_product){ .w = &l->output, .y = s->h, .sum = s->x }, 1);
}

/* index: the rows whose logits are wanted, n of them; NULL: all. */
static void channel_mix(const hone_model *m, const hn_forward *f, int32_t il, const int32_t *index, int64_t n)
{
    const hn_backend_ops *op = f->be->op;
    hn_scratch *s = f->s;
    const hn_rwkv_layer *l = &m->rwkv[il];
    const hn_shift shift = { .x = s->x, .ln_w = l->attn_norm_2, .ln_b = l->attn_norm_2_b, .h = s->h, .eps = m->hp.ln_eps, .n = 1, .out = { &s->act },
                             .lerp = { l->channel_lerp[0] }, .part = HN_PREV_CHANNEL_MIX, .keep = true };
    op->token_shift(f->be, &shift, &f->state[il], f->rows, f->n_tok, index, n);
    if (!n) return;
    if (index) op->gather(f->be, s->x, s->x, index, m->hp.n_embd, n);
    op->matmul(f->be, &s->act, &(hn_product){ .w = &l->channel_key, .out = &s->ff, .map = HN_MAP_SQRELU }, 1);
    op->matmul(f->be, &s->ff, &(hn_product){ .w = &l->channel_value, .y = s->h, .sum = s->x }, 1);
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

const hn_arch hn_arch_rwkv7 = { "rwkv7", hparams, bind, forward, time_mix, channel_mix_all };
