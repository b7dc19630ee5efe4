/* lora_view: a model whose weights may carry adapters: a copy of the tables that a forward
 * pass reads, in one block with them. The weights themselves stay where they are, so that
 * any number of sessions can each have their own. */
#include "model/lora.h"

#include <stdlib.h>

void hn_lora_each_weight(hone_model *m, hn_lora_weight_fn *fn, void *arg)
{
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        if (m->layers) {
            hn_layer *l = &m->layers[il];
            hn_weight *const w[] = { &l->attn_q, &l->attn_k, &l->attn_v, &l->attn_output, &l->ffn_gate, &l->ffn_up, &l->ffn_down };
            for (size_t i = 0; i < sizeof w / sizeof *w; i++) fn(arg, w[i], il);
        } else {
            hn_rwkv_layer *l = &m->rwkv[il];
            hn_weight *const w[] = { &l->receptance, &l->key, &l->value, &l->gate, &l->output, &l->w1, &l->w2, &l->a1, &l->a2, &l->v1, &l->v2, &l->g1, &l->g2,
                                     &l->channel_key, &l->channel_value, &l->channel_receptance };
            for (size_t i = 0; i < sizeof w / sizeof *w; i++)
                if (w[i]->data) fn(arg, w[i], il);
            for (int i = 0; i < 5; i++) {
                if (l->mix1[i].data) fn(arg, &l->mix1[i], il);
                if (l->mix2[i].data) fn(arg, &l->mix2[i], il);
            }
        }
    }
    if (m->output.data != m->token_embd.data) fn(arg, &m->output, -1);
}

hone_model *hn_lora_view(const hone_model *m)
{
    size_t n = (size_t)m->hp.n_layer, table = m->layers ? n * sizeof *m->layers : n * sizeof *m->rwkv, head = (sizeof *m + 63) & ~(size_t)63;
    char *block = calloc(1, head + table);
    if (!block) return NULL;
    hone_model *v = (hone_model *)block;
    *v = (hone_model){ .file = m->file, .arch = m->arch, .hp = m->hp, .token_embd = m->token_embd, .output = m->output, .output_norm = m->output_norm,
                       .output_norm_b = m->output_norm_b, .token_embd_norm = m->token_embd_norm, .token_embd_norm_b = m->token_embd_norm_b,
                       .path = m->path, .name = m->name, .type_name = m->type_name };
    memcpy(block + head, m->layers ? (const void *)m->layers : (const void *)m->rwkv, table);
    if (m->layers) v->layers = (hn_layer *)(void *)(block + head);
    else v->rwkv = (hn_rwkv_layer *)(void *)(block + head);
    return v;
}

bool hn_lora_is_of(const hn_weight *w, const hn_gguf_tensor *t, int64_t *first)
{
    uintptr_t a = (uintptr_t)t->data, b = (uintptr_t)w->data;
    if (b < a || b - a >= t->n_bytes) return false;
    *first = (int64_t)((b - a) / w->row_bytes);
    return true;
}
