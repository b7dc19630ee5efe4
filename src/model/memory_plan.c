/* What each layer of a model keeps of a sequence. Owns the table; refuses to know how it is stored. */
#include "model/model.h"

static void keep_positions(hn_memory_layer *l, const hn_hparams *hp, const hn_layer_plan *p)
{
    bool latent = p->mixer == HN_MIXER_MLA;
    if (!hn_plan_has_positions(p)) return;
    l->kind = latent ? HN_MEMORY_LATENT : HN_MEMORY_KV;
    l->n_head_kv = p->n_head_kv;
    l->d_k = p->d_k;
    l->d_v = latent ? 0 : p->d_v;
    l->window = p->window;
    l->d_i = p->index ? hp->index.d : 0;
    if (p->no_keys) l->kv_from = p->kv_from;
}

static void keep_state(hn_memory_layer *l, const hn_hparams *hp, const hn_layer_plan *p)
{
    int64_t tail = hp->taps - 1;
    switch (p->mixer) {
    case HN_MIXER_RWKV6:
    case HN_MIXER_RWKV7: l->state_floats = hn_state_floats(hp); break;
    case HN_MIXER_CONV: l->conv_floats = tail * hp->n_embd; break;
    case HN_MIXER_MAMBA2:
    case HN_MIXER_ATTN_MAMBA2:
        l->state_floats = (int64_t)hp->ssm_inner * hp->ssm_state;
        l->conv_floats = tail * hn_dim_value(hp, p, HN_DIM_SSM_CONV);
        break;
    case HN_MIXER_MAMBA:
        l->state_floats = (int64_t)hp->ssm_inner * hp->ssm_state;
        l->conv_floats = tail * hp->ssm_inner;
        break;
    case HN_MIXER_GDN:
        l->state_floats = (int64_t)hp->ssm_inner * hp->ssm_state;
        l->conv_floats = tail * hn_dim_value(hp, p, HN_DIM_GDN_CONV);
        break;
    case HN_MIXER_KDA:
        l->state_floats = (int64_t)hp->ssm_inner * hp->ssm_state;
        l->conv_floats = tail * 3 * hp->ssm_inner; /* of queries, keys and values */
        break;
    default: break;
    }
    if (p->ngram) l->conv_floats += hn_ngram_floats(hp);
    if (l->state_floats) l->kind |= HN_MEMORY_STATE;
    if (l->conv_floats) l->kind |= HN_MEMORY_CONV;
}

hone_status hn_model_plan_memory(hone_model *m, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    hn_memory_layer *l = hn_arena_alloc(m->arena, (size_t)hp->n_layer * sizeof *l);
    if (!l) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of memory", m->path);
    for (int32_t il = 0; il < hp->n_layer; il++) {
        l[il].kv_from = -1;
        keep_positions(&l[il], hp, &m->plan[il]);
        keep_state(&l[il], hp, &m->plan[il]);
        if ((hn_plan_has_positions(&m->plan[il]) || hn_plan_has_state(&m->plan[il])) && l[il].kv_from < 0)
            m->n_filling = il + 1;
    }
    m->memory = l;
    return HONE_OK;
}
