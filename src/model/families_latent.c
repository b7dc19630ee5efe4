/* families_latent: transformers whose keys and values are compressed to one row a position (block_mla.c). A row is its
 * tensors, its switches and how it chooses experts.
 *   deepseek2  GLM-4.7-Flash, DeepSeek V2 and V3, Kimi K2: the first layers dense; groups of experts, a shared one;
 *              queries compressed too, or not (lite); Youtu-LLM: all layers dense
 *   mistral4   as deepseek2; softmax over all, no bias of the choice
 *   minicpm3   all layers dense; halves of what turns, factors of angles, granite's scalars (dialect.c) */
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
