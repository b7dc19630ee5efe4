/* What RWKV-6 and RWKV-7 share: metadata, names of tensors, embedding and head. */
#include "model/model.h"

#include <math.h>

hone_status hn_rwkv_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    char key[128];
    if ((st = hn_get_int(m, "block_count", 1, HN_MAX_LAYER, -1, &hp->n_layer, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "context_length", 1, HN_MAX_CTX, -1, &hp->n_ctx_train, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "embedding_length", 1, HN_MAX_EMBD, -1, &hp->n_embd, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "feed_forward_length", 1, HN_MAX_FF, -1, &hp->n_ff, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "wkv.head_size", 1, HN_MAX_WKV, -1, &hp->head_dim, err)) != HONE_OK) return st;
    if (hp->n_embd % hp->head_dim)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d is not a multiple of wkv.head_size = %d", m->path, hn_arch_key(m, key, "embedding_length"), hp->n_embd, hp->head_dim);
    hp->n_head = hp->n_head_kv = hp->n_embd / hp->head_dim;
    int32_t shifts;
    if ((st = hn_get_int(m, "token_shift_count", 0, 1024, HN_RWKV_STATE_VECTORS, &shifts, err)) != HONE_OK) return st;
    if (shifts != HN_RWKV_STATE_VECTORS)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d, expected %d: time mix and channel mix", m->path, hn_arch_key(m, key, "token_shift_count"), shifts, HN_RWKV_STATE_VECTORS);
    hp->recurrent = true;
    return hn_get_real(m, "attention.layer_norm_epsilon", 0, 1.0, NAN, &hp->ln_eps, err);
}

hone_status hn_rwkv_norm(hone_model *m, const float **w, const float **b, int32_t il, const char *what, hone_error *err)
{
    hone_status st;
    char name[96];
    snprintf(name, sizeof name, "blk.%d.%s.weight", (int)il, what);
    if ((st = hn_bind_vector(m, w, name, m->hp.n_embd, false, err)) != HONE_OK) return st;
    snprintf(name, sizeof name, "blk.%d.%s.bias", (int)il, what);
    return hn_bind_vector(m, b, name, m->hp.n_embd, false, err);
}

/* Files have a value per head and channel as a vector or as rows of heads. */
hone_status hn_rwkv_vector(hone_model *m, const float **v, int32_t il, const char *what, bool optional, hone_error *err)
{
    char name[96];
    snprintf(name, sizeof name, "blk.%d.%s.weight", (int)il, what);
    const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, name);
    bool heads = t && t->ne[0] == (uint64_t)m->hp.head_dim;
    return hn_bind_values(m, v, name, heads ? m->hp.head_dim : m->hp.n_embd, m->hp.n_embd, optional, err);
}

hone_status hn_rwkv_matrix(hone_model *m, hn_weight *w, int32_t il, const char *what, int64_t n_in, int64_t n_out, hone_error *err)
{
    char name[96];
    snprintf(name, sizeof name, "blk.%d.%s.weight", (int)il, what);
    return hn_bind_matrix(m, w, name, n_in, n_out, false, err);
}

hone_status hn_rwkv_lerps(hone_model *m, const float **lerp, int32_t il, const char *letters, hone_error *err)
{
    hone_status st;
    char name[96], fused[96];
    int64_t e = m->hp.n_embd, n = (int64_t)strlen(letters);
    snprintf(fused, sizeof fused, "blk.%d.time_mix_lerp_fused.weight", (int)il);
    snprintf(name, sizeof name, "blk.%d.time_mix_lerp_%c.weight", (int)il, letters[0]);
    if (hn_gguf_find_tensor(m->file, fused) || !hn_gguf_find_tensor(m->file, name)) {
        const float *all;
        if ((st = hn_bind_values(m, &all, fused, e, n * e, false, err)) != HONE_OK) return st;
        for (int i = 0; i < n; i++) lerp[i] = all + i * e;
        return HONE_OK;
    }
    for (int i = 0; i < n; i++) {
        char what[24];
        snprintf(what, sizeof what, "time_mix_lerp_%c", letters[i]);
        if ((st = hn_rwkv_vector(m, &lerp[i], il, what, false, err)) != HONE_OK) return st;
    }
    return HONE_OK;
}

hone_status hn_rwkv_bind_layer(hone_model *m, int32_t il, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    hn_rwkv_layer *l = &m->rwkv[il];
    int64_t e = hp->n_embd;
    hone_status st;
    if ((st = hn_rwkv_norm(m, &l->attn_norm, &l->attn_norm_b, il, "attn_norm", err)) != HONE_OK) return st;
    if ((st = hn_rwkv_norm(m, &l->attn_norm_2, &l->attn_norm_2_b, il, "attn_norm_2", err)) != HONE_OK) return st;
    if ((st = hn_rwkv_matrix(m, &l->receptance, il, "time_mix_receptance", e, e, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_matrix(m, &l->key, il, "time_mix_key", e, e, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_matrix(m, &l->value, il, "time_mix_value", e, e, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_matrix(m, &l->output, il, "time_mix_output", e, e, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_norm(m, &l->ln, &l->ln_b, il, "time_mix_ln", err)) != HONE_OK) return st;
    if ((st = hn_rwkv_vector(m, &l->channel_lerp[0], il, "channel_mix_lerp_k", false, err)) != HONE_OK) return st;
    if ((st = hn_rwkv_matrix(m, &l->channel_key, il, "channel_mix_key", e, hp->n_ff, err)) != HONE_OK) return st;
    return hn_rwkv_matrix(m, &l->channel_value, il, "channel_mix_value", hp->n_ff, e, err);
}

hone_status hn_rwkv_bind_ends(hone_model *m, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    hone_status st;
    if (!(m->rwkv = hn_arena_alloc(m->arena, (size_t)hp->n_layer * sizeof *m->rwkv))) return HN_FAIL(err, HONE_E_NOMEM, "%s: layer table", m->path);
    if ((st = hn_bind_matrix(m, &m->token_embd, "token_embd.weight", hp->n_embd, hp->n_vocab, false, err)) != HONE_OK) return st;
    if ((st = hn_bind_matrix(m, &m->output, "output.weight", hp->n_embd, hp->n_vocab, false, err)) != HONE_OK) return st; /* never tied */
    /* absent: folded into the table */
    if ((st = hn_bind_vector(m, &m->token_embd_norm, "token_embd_norm.weight", hp->n_embd, true, err)) != HONE_OK) return st;
    if ((st = hn_bind_vector(m, &m->token_embd_norm_b, "token_embd_norm.bias", hp->n_embd, !m->token_embd_norm, err)) != HONE_OK) return st;
    if (m->token_embd_norm_b && !m->token_embd_norm)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor token_embd_norm.weight is missing, though its bias is there", m->path);
    if ((st = hn_bind_vector(m, &m->output_norm, "output_norm.weight", hp->n_embd, false, err)) != HONE_OK) return st;
    return hn_bind_vector(m, &m->output_norm_b, "output_norm.bias", hp->n_embd, false, err);
}

void hn_rwkv_begin(const hone_model *m, const hn_forward *f)
{
    const hn_backend_ops *op = f->be->op;
    op->embed(f->be, f->s->x, &m->token_embd, f->rows, f->n_tok);
    if (m->token_embd_norm) op->layer_norm_rows(f->be, f->s->x, m->token_embd_norm, m->token_embd_norm_b, m->hp.n_embd, f->n_tok, m->hp.ln_eps);
}

void hn_rwkv_end(const hone_model *m, const hn_forward *f)
{
    const hn_backend_ops *op = f->be->op;
    op->layer_norm(f->be, &f->s->act, f->s->x, m->output_norm, m->output_norm_b, m->hp.n_embd, f->n_want, m->hp.ln_eps);
    op->head(f->be, f->logits, &f->s->act, &m->output);
}
