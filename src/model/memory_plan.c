/* What each layer of a model keeps of a sequence. Owns the table; refuses to know how it is stored. */
#include "model/model.h"

hone_status hn_model_plan_memory(hone_model *m, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    hn_memory_layer *l = hn_arena_alloc(m->arena, (size_t)hp->n_layer * sizeof *l);
    if (!l) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of memory", m->path);
    for (int32_t il = 0; il < hp->n_layer; il++) {
        const hn_layer_plan *p = &m->plan[il];
        l[il].kv_from = -1;
        if (hn_plan_has_state(p)) {
            l[il].kind = HN_MEMORY_STATE;
            l[il].state_floats = hn_state_floats(hp);
        } else {
            bool latent = p->mixer == HN_MIXER_MLA;
            l[il].kind = latent ? HN_MEMORY_LATENT : HN_MEMORY_KV;
            l[il].n_head_kv = p->n_head_kv;
            l[il].d_k = p->d_k;
            l[il].d_v = latent ? 0 : p->d_v;
            l[il].window = p->window;
        }
    }
    m->memory = l;
    return HONE_OK;
}
