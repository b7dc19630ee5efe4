/* llama, qwen2 and qwen3: the same pre-norm block with grouped-query attention, rotary
 * positions and SwiGLU (Touvron et al. 2023; Qwen technical reports). They differ in
 *   llama   pairs (2i, 2i+1); optional biases; rope_freqs factors
 *   qwen2   pairs (i, i + n/2); biases on q, k, v
 *   qwen3   pairs (i, i + n/2); RMSNorm of each q and k head before the rotation
 * Binding checks every tensor's shape; the forward pass trusts it. */
#include "model/model.h"

#include <math.h>

/* ---- binding -------------------------------------------------------------------------------- */

enum bias { BIAS_NONE, BIAS_OPTIONAL, BIAS_REQUIRED };

static hone_status bind_linear(hone_model *m, hn_weight *w, int32_t il, const char *what, int64_t n_in, int64_t n_out, enum bias bias, hone_error *err)
{
    char name[96];
    hone_status st;
    snprintf(name, sizeof name, "blk.%d.%s.weight", (int)il, what);
    if ((st = hn_bind_matrix(m, w, name, n_in, n_out, false, err)) != HONE_OK || bias == BIAS_NONE) return st;
    snprintf(name, sizeof name, "blk.%d.%s.bias", (int)il, what);
    return hn_bind_vector(m, &w->bias, name, n_out, bias == BIAS_OPTIONAL, err);
}

static hone_status bind_norm(hone_model *m, const float **v, int32_t il, const char *what, int64_t n, hone_error *err)
{
    char name[96];
    snprintf(name, sizeof name, "blk.%d.%s.weight", (int)il, what);
    return hn_bind_vector(m, v, name, n, false, err);
}

static hone_status bind_qkv(hone_model *m, hn_layer *l, int32_t il, enum bias bias, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    int64_t n_q = (int64_t)hp->n_head * hp->head_dim, n_kv = (int64_t)hp->n_head_kv * hp->head_dim;
    hone_status st;
    char name[96];
    snprintf(name, sizeof name, "blk.%d.attn_qkv.weight", (int)il);
    if (hn_gguf_find_tensor(m->file, name)) { /* rows q, then k, then v */
        hn_weight w = { 0 };
        if ((st = bind_linear(m, &w, il, "attn_qkv", hp->n_embd, n_q + 2 * n_kv, bias, err)) != HONE_OK) return st;
        l->attn_q = hn_rows_of(&w, 0, n_q);
        l->attn_k = hn_rows_of(&w, n_q, n_kv);
        l->attn_v = hn_rows_of(&w, n_q + n_kv, n_kv);
        return HONE_OK;
    }
    if ((st = bind_linear(m, &l->attn_q, il, "attn_q", hp->n_embd, n_q, bias, err)) != HONE_OK) return st;
    if ((st = bind_linear(m, &l->attn_k, il, "attn_k", hp->n_embd, n_kv, bias, err)) != HONE_OK) return st;
    return bind_linear(m, &l->attn_v, il, "attn_v", hp->n_embd, n_kv, bias, err);
}

static hone_status bind(hone_model *m, enum bias qkv, enum bias other, bool qk_norm, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    hone_status st;
    if (!(m->layers = hn_arena_alloc(m->arena, (size_t)hp->n_layer * sizeof *m->layers))) return HN_FAIL(err, HONE_E_NOMEM, "%s: layer table", m->path);
    if ((st = hn_bind_matrix(m, &m->token_embd, "token_embd.weight", hp->n_embd, hp->n_vocab, false, err)) != HONE_OK) return st;
    if ((st = hn_bind_vector(m, &m->output_norm, "output_norm.weight", hp->n_embd, false, err)) != HONE_OK) return st;
    if ((st = hn_bind_matrix(m, &m->output, "output.weight", hp->n_embd, hp->n_vocab, true, err)) != HONE_OK) return st;
    if (!m->output.data) m->output = m->token_embd; /* tied */
    if ((st = hn_bind_vector(m, &m->output.bias, "output.bias", hp->n_vocab, true, err)) != HONE_OK) return st;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        hn_layer *l = &m->layers[il];
        if ((st = bind_norm(m, &l->attn_norm, il, "attn_norm", hp->n_embd, err)) != HONE_OK) return st;
        if ((st = bind_qkv(m, l, il, qkv, err)) != HONE_OK) return st;
        if (qk_norm && (st = bind_norm(m, &l->attn_q_norm, il, "attn_q_norm", hp->head_dim, err)) != HONE_OK) return st;
        if (qk_norm && (st = bind_norm(m, &l->attn_k_norm, il, "attn_k_norm", hp->head_dim, err)) != HONE_OK) return st;
        if ((st = bind_linear(m, &l->attn_output, il, "attn_output", (int64_t)hp->n_head * hp->head_dim, hp->n_embd, other, err)) != HONE_OK) return st;
        if ((st = bind_norm(m, &l->ffn_norm, il, "ffn_norm", hp->n_embd, err)) != HONE_OK) return st;
        if ((st = bind_linear(m, &l->ffn_gate, il, "ffn_gate", hp->n_embd, hp->n_ff, other, err)) != HONE_OK) return st;
        if ((st = bind_linear(m, &l->ffn_up, il, "ffn_up", hp->n_embd, hp->n_ff, other, err)) != HONE_OK) return st;
        if ((st = bind_linear(m, &l->ffn_down, il, "ffn_down", hp->n_ff, hp->n_embd, other, err)) != HONE_OK) return st;
    }
    return hn_bind_rope(m, err);
}

static hone_status bind_llama(hone_model *m, hone_error *err) { return bind(m, BIAS_OPTIONAL, BIAS_OPTIONAL, false, err); }

static hone_status bind_qwen2(hone_model *m, hone_error *err)
{
    m->hp.rope_neox = true;
    return bind(m, BIAS_REQUIRED, BIAS_NONE, false, err);
}

static hone_status bind_qwen3(hone_model *m, hone_error *err)
{
    m->hp.rope_neox = true;
    return bind(m, BIAS_NONE, BIAS_NONE, true, err);
}

/* ---- forward ------------------------------------------------------------------------------------ */

static bool forward(const hone_model *m, const hn_forward *f)
{
    const hn_hparams *hp = &m->hp;
    const hn_backend_ops *op = f->be->op;
    hn_backend *be = f->be;
    hn_scratch *s = f->s;
    const float scale = 1.0f / sqrtf((float)hp->head_dim);
    int64_t n_tok = f->n_tok;

    op->embed(be, s->x, &m->token_embd, f->rows, n_tok);
    op->rope_table(be, s->rope, hp->rope_freq, hp->n_rot, hp->rope_mscale, f->rows, n_tok);
    for (int32_t il = 0; il < hp->n_layer; il++) {
        const hn_layer *l = &m->layers[il];
        if (f->abort_fn && f->abort_fn(f->abort_arg)) return false;

        op->rms_norm(be, &s->act, s->x, l->attn_norm, hp->n_embd, n_tok, hp->rms_eps);
        const hn_product qkv[] = { { .w = &l->attn_q, .y = s->q }, { .w = &l->attn_k, .y = s->k }, { .w = &l->attn_v, .y = s->v } };
        op->matmul(be, &s->act, qkv, 3);
        const hn_heads heads = { .q = s->q, .k = s->k, .v = s->v, .q_norm = l->attn_q_norm, .k_norm = l->attn_k_norm, .cs = s->rope,
                                 .n_head = hp->n_head, .n_rot = hp->n_rot, .neox = hp->rope_neox, .eps = hp->rms_eps };
        op->heads(be, &heads, &f->kv[il], f->rows, n_tok);
        if (il == hp->n_layer - 1 && !f->n_want) return true; /* the caches are filled */
        bool some = il == hp->n_layer - 1 && f->n_want < n_tok; /* the rest only where logits are wanted */
        if (some) n_tok = f->n_want;
        op->attention(be, &s->act, s->q, &f->kv[il], f->rows, some ? f->want : NULL, n_tok, hp->n_head, scale);
        if (some) op->gather(be, s->x, s->x, f->want, hp->n_embd, n_tok);
        op->matmul(be, &s->act, &(hn_product){ .w = &l->attn_output, .y = s->h, .sum = s->x }, 1);

        op->rms_norm(be, &s->act, s->x, l->ffn_norm, hp->n_embd, n_tok, hp->rms_eps);
        op->gate_up(be, &s->ff, &s->act, &l->ffn_gate, &l->ffn_up, s->up);
        op->matmul(be, &s->ff, &(hn_product){ .w = &l->ffn_down, .y = s->h, .sum = s->x }, 1);
    }
    op->rms_norm(be, &s->act, s->x, m->output_norm, hp->n_embd, n_tok, hp->rms_eps);
    op->head(be, f->logits, &s->act, &m->output);
    return true;
}

const hn_arch hn_arch_llama = { "llama", hn_attention_hparams, bind_llama, forward, NULL, NULL };
const hn_arch hn_arch_qwen2 = { "qwen2", hn_attention_hparams, bind_qwen2, forward, NULL, NULL };
const hn_arch hn_arch_qwen3 = { "qwen3", hn_attention_hparams, bind_qwen3, forward, NULL, NULL };
