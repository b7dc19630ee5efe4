/* lora_view: a model whose weights may carry adapters: a copy of the tables that a forward
 * pass reads, in one block with them. The weights themselves stay where they are, so that
 * any number of sessions can each have their own. */
#include "model/lora.h"

#include <stdlib.h>

/* The matrices of a layer: what slots fill with a tensor of their own, or parts of one. */
static void each_of_layer(const hn_family *family, hn_layer *l, hn_lora_weight_fn *fn, void *arg, int32_t il)
{
    for (const hn_slot *s = family->layer; s->name; s++) {
        if (!hn_slot_is_matrix(s) || (s->part[0] && hn_family_field(family, s->field) != s)) continue;
        for (int i = 0; i == 0 || (i < HN_MAX_PART && s->part[i]); i++) {
            hn_weight *w = (hn_weight *)(void *)((char *)l + s->field + (size_t)i * hn_slot_stride(s));
            if (w->data) fn(arg, w, il);
        }
    }
}

void hn_lora_each_weight(hone_model *m, hn_lora_weight_fn *fn, void *arg)
{
    for (int32_t il = 0; il < m->hp.n_layer; il++) each_of_layer(m->arch, &m->layers[il], fn, arg, il);
    if (m->output.data != m->token_embd.data) fn(arg, &m->output, -1);
}

hone_model *hn_lora_view(const hone_model *m)
{
    size_t table = (size_t)m->hp.n_layer * sizeof *m->layers, head = (sizeof *m + 63) & ~(size_t)63;
    char *block = calloc(1, head + table);
    if (!block) return NULL;
    hone_model *v = (hone_model *)block;
    *v = (hone_model){ .file = m->file,
                       .arch = m->arch,
                       .hp = m->hp,
                       .plan = m->plan,
                       .token_embd = m->token_embd,
                       .output = m->output,
                       .output_norm = m->output_norm,
                       .output_norm_b = m->output_norm_b,
                       .token_embd_norm = m->token_embd_norm,
                       .token_embd_norm_b = m->token_embd_norm_b,
                       .path = m->path,
                       .name = m->name,
                       .type_name = m->type_name };
    memcpy(block + head, m->layers, table);
    v->layers = (hn_layer *)(void *)(block + head);
    return v;
}

bool hn_lora_is_of(const hn_weight *w, const hn_gguf_tensor *t, int64_t *first)
{
    uintptr_t a = (uintptr_t)t->data, b = (uintptr_t)w->data;
    if (b < a || b - a >= t->n_bytes) return false;
    *first = (int64_t)((b - a) / w->row_bytes);
    return true;
}
