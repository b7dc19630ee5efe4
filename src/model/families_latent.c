/* families_latent: transformers whose keys and values are compressed to one row a position (block_mla.c). A row is its
 * tensors, its switches and how it chooses experts.
 *   deepseek2  GLM-4.7-Flash, DeepSeek V2 and V3, Kimi K2: the first layers dense; groups of experts, a shared one;
 *              queries compressed too, or not (lite); Youtu-LLM: all layers dense
 *   mistral4   as deepseek2; softmax over all, no bias of the choice
 *   minicpm3   all layers dense; halves of what turns, factors of angles, granite's scalars (dialect.c)
 *   deepseek32, glm-dsa  as deepseek2; an index of each layer chooses the positions that its queries see, or, in some
 *              layers of glm-dsa, that of the last one before which has one */
#include "model/family_rows.h"

static const hn_slot deepseek2_layer[] = {
    ATTN_NORM, MLA(.mixers = 0), FFN_NORM, DENSE_GLU, ROUTER, CHOICE_BIAS, EXPERTS, SHARED(HN_OPTIONAL), { 0 },
};
const hn_family hn_family_deepseek2 =
    TRANSFORMER("deepseek2", HN_DEEPSEEK2, false, hn_plain_outer, deepseek2_layer, .latent = true, .part_turns = true,
                .reads = HN_READS_NEXTN | HN_READS_TEMPERATURE, .ffn = HN_FFN_MOE,
                MOE(.gating_by_bias = true, .reads_lead = true, .maybe = true));
const hn_family hn_family_mistral4 =
    TRANSFORMER("mistral4", HN_MISTRAL4, false, hn_plain_outer, deepseek2_layer, .latent = true, .part_turns = true,
                .reads = HN_READS_NEXTN | HN_READS_TEMPERATURE, .ffn = HN_FFN_MOE,
                MOE(.gating = HN_GATING_SOFTMAX, .reads_lead = true));

static const hn_slot minicpm3_outer[] = { ENDS(HN_TURN_NONE), TWO_FACTORS, { 0 } };
static const hn_slot minicpm3_layer[] = { ATTN_NORM, MLA(.mixers = 0), FFN_NORM, GATE, UP, DOWN, { 0 } };
const hn_family hn_family_minicpm3 = TRANSFORMER("minicpm3", HN_MINICPM3, false, minicpm3_outer, minicpm3_layer,
                                                 .neox = true, .latent = true, .reads = HN_READS_SCALES);

/* ---- latent attention that chooses ---------------------------------------------------------------------------- */

#define IN_INDEX .layers = HN_IN_INDEX
static const hn_slot indexed_layer[] = {
    ATTN_NORM,
    MLA(.mixers = 0),
    LINEAR("indexer.attn_q_b", index_q, INDEX_Q, WHOLE, HN_DIM_RANK_Q, HN_DIM_INDEX_Q, IN_INDEX),
    LINEAR("indexer.attn_k", index_k, INDEX_K, WHOLE, E, HN_DIM_INDEX, IN_INDEX),
    LINEAR("indexer.proj", index_w, INDEX_W, WHOLE, E, HN_DIM_INDEX_HEADS, IN_INDEX),
    NORM("indexer.k_norm", index_k_norm, HN_DIM_INDEX, NULL, IN_INDEX),
    VECTOR("indexer.k_norm.bias", OF(index_k_norm_b), HN_DIM_INDEX, IN_INDEX),
    FFN_NORM,
    DENSE_GLU,
    ROUTER,
    CHOICE_BIAS,
    EXPERTS,
    SHARED(HN_OPTIONAL),
    { 0 },
};

/* Which layers of GLM 5.2 have an index, where no key says it: files of GLM 5 and 5.1, whose contexts are shorter, have
 * no such key either, and all of theirs do. */
static hone_status own_indexes(hone_model *m, hone_error *err)
{
    enum { CONTEXT_52 = 1048576, LEAD = 2, PERIOD = 4 };
    static const char suffix[] = "attention.indexer.types";
    hn_hparams *hp = &m->hp;
    char key[128];
    hone_status st = hn_get_layer_truths(m, suffix, &hp->index.own, err);
    if (st != HONE_OK) return st;
    if (!hp->index.own && hp->n_ctx_train >= CONTEXT_52) {
        bool *own = hn_arena_alloc(m->arena, (size_t)hp->n_layer);
        if (!own) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of layers", m->path);
        for (int32_t il = 0; il < hp->n_layer; il++) own[il] = il < LEAD || (il - LEAD) % PERIOD == 0;
        hp->index.own = own;
    }
    if (!hp->index.own || hp->index.own[0]) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[0] is false, expected true: there is no layer before it", m->path,
                   hn_arch_key(m, key, suffix));
}

static hone_status indexed_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hn_index_numbers *n = &hp->index;
    char key[128];
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK) return st;
    if (!hp->rank_q)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing or 0; architecture %s needs it", m->path,
                       hn_arch_key(m, key, "attention.q_lora_rank"), m->arch->name);
    if ((st = hn_get_int(m, "attention.indexer.head_count", 1, HN_MAX_HEAD, -1, &n->n_head, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "attention.indexer.key_length", 2, HN_MAX_INDEX, -1, &n->d, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "attention.indexer.top_k", 1, HN_MAX_CTX, -1, &n->n_best, err)) != HONE_OK) return st;
    if (hp->d_rope > n->d)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected at least rope.dimension_count = %d", m->path,
                       hn_arch_key(m, key, "attention.indexer.key_length"), n->d, hp->d_rope);
    n->block = 1;
    n->neox = m->arch->bit == HN_DEEPSEEK32;
    return n->neox ? HONE_OK : own_indexes(m, err);
}

static void indexed_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    const bool *own = hp->index.own;
    hn_attn_plan(out, hp, il);
    out->index = !own || own[il];
    while (own && !own[il]) il--;
    out->index_from = il;
}

#define INDEXED(arch, bit_)                                                                                   \
    {                                                                                                         \
        .name = arch, .bit = bit_, .hparams = indexed_hparams, .plan = indexed_plan, .outer = hn_plain_outer, \
        .layer = indexed_layer, .is = &(const hn_switches)                                                    \
        {                                                                                                     \
            .latent = true, .part_turns = true, .reads = HN_READS_NEXTN, .ffn = HN_FFN_MOE,                   \
            MOE(.gating_absent = HN_GATING_SIGMOID, .reads_lead = true)                                       \
        }                                                                                                     \
    }
const hn_family hn_family_deepseek32 = INDEXED("deepseek32", HN_DEEPSEEK32);
const hn_family hn_family_glm_dsa = INDEXED("glm-dsa", HN_GLM_DSA);
