/* weights: the matrices of a model as a list. Owns their order, in which they are numbered; refuses to know what they
 * are for. */
#include "model/hparams.h"

#include <stdlib.h>

/* Those of experts that are in no tensor of all. */
static void each_expert(const hn_experts *x, int32_t n_expert, hn_weight_fn *fn, void *arg, int32_t il)
{
    for (int32_t e = 0; x->of && e < n_expert; e++) fn(arg, &x->of[e], il);
}

/* Does an earlier slot of the layer fill the same field? */
static bool is_again(const hone_model *m, const hn_slot *s, int32_t il)
{
    for (const hn_slot *k = m->arch->layer; k != s; k++)
        if (k->field == s->field && !hn_slot_rarely(k)->part[0] && hn_slot_in(k, &m->plan[il])) return true;
    return false;
}

/* The matrices of a layer: what slots that it has fill with a tensor of their own, or parts of one. */
static void each_of_layer(const hone_model *m, hn_weight_fn *fn, void *arg, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    for (const hn_slot *s = m->arch->layer; s->name; s++) {
        if (!hn_slot_is_matrix(s) || !hn_slot_in(s, &m->plan[il])) continue;
        const hn_dim *part = hn_slot_rarely(s)->part;
        if (part[0] ? hn_family_field(m->arch, s->field) != s : is_again(m, s, il)) continue;
        for (int i = 0; i == 0 || (i < HN_MAX_PART && part[i]); i++) {
            const void *at = (const char *)l + s->field + (size_t)i * hn_slot_stride(s);
            const hn_weight *w = at;
            if (hn_weight_is_there(w)) fn(arg, w, il);
            else if (s->kind == HN_SLOT_EXPERTS) each_expert(at, m->hp.moe.n_expert, fn, arg, il);
        }
    }
}

void hn_each_weight(const hone_model *m, hn_weight_fn *fn, void *arg)
{
    for (int32_t il = 0; il < m->hp.n_layer; il++)
        if (!hn_is_again(&m->hp, il)) each_of_layer(m, fn, arg, il);
    if (hn_weight_is_there(&m->output) && m->output.data != m->token_embd.data) fn(arg, &m->output, -1);
}

static void count_weight(void *arg, const hn_weight *w, int32_t il) { ++*(int32_t *)arg; }

static void number_weight(void *arg, const hn_weight *w, int32_t il)
{
    hone_model *m = arg;
    ((hn_weight *)(uintptr_t)w)->id = m->n_weight; /* the model is still being made */
    m->weight[m->n_weight++] = w;
}

hone_status hn_number_weights(hone_model *m, hone_error *err)
{
    hn_weight *const outer[] = { &m->ple_embd,      &m->ple_model_proj,  &m->altup_proj[0],   &m->altup_proj[1],
                                 &m->altup_proj[2], &m->altup_unembd[0], &m->altup_unembd[1], &m->altup_unembd[2],
                                 &m->hyper.down,    &m->hyper.up,        &m->ngrams };
    const size_t n_outer = sizeof outer / sizeof *outer;
    int32_t n = 1 + (int32_t)n_outer;
    hn_each_weight(m, count_weight, &n);
    m->weight = hn_arena_alloc(m->arena, (size_t)n * sizeof *m->weight);
    if (!m->weight) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of %d weights", m->path, (int)n);
    m->n_weight = 0;
    number_weight(m, &m->token_embd, -1);
    m->output.id = m->token_embd.id; /* the same, or numbered now */
    for (size_t i = 0; i < n_outer; i++)
        if (hn_weight_is_there(outer[i])) number_weight(m, outer[i], -1);
    hn_each_weight(m, number_weight, m);
    for (int32_t il = 0; il < m->hp.n_layer; il++) /* experts of one tensor are one */
        for (const hn_slot *s = m->arch->layer; s->name; s++) {
            const hn_experts *x = (const void *)((const char *)&m->layers[il] + s->field);
            if (s->kind != HN_SLOT_EXPERTS || hn_slot_rarely(s)->part[0] || !x->of || !x->all.data) continue;
            for (int32_t e = 0; e < m->hp.moe.n_expert; e++) ((hn_weight *)(uintptr_t)x->of)[e].id = x->all.id;
        }
    return HONE_OK;
}

hn_upload hn_model_upload(const hone_model *m, int32_t n_ctx)
{
    _Static_assert((int)HN_ROPES <= (int)HN_MAX_ANGLES, "a table of angles each");
    hn_upload u = { .weight = m->weight, .n_weight = m->n_weight };
    for (int i = 0; i < HN_ROPES; i++) {
        bool lengthened = i == HN_ROPE_ALL && m->hp.n_ctx_long && n_ctx > m->hp.n_ctx_long;
        const hn_rope *r = &m->hp.rope[lengthened ? HN_ROPE_LONG : i];
        u.angles[i] = (hn_angles){ r->freq, r->n_rot, r->mscale };
    }
    return u;
}

bool hn_weight_is_of(const hn_weight *w, const hn_gguf_tensor *t, int64_t *first)
{
    uintptr_t a = (uintptr_t)t->data, b = (uintptr_t)w->data;
    if (b < a || b - a >= t->n_bytes) return false;
    *first = (int64_t)((b - a) / w->row_bytes);
    return true;
}
