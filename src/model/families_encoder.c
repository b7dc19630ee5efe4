/* families_encoder: models that read a whole text at once, attention looking both ways: they give rows, no next token.
 *   bert             norms of the stream after each half, learnt positions, kinds of text, no gate, GELU itself (Devlin
 *                    et al. 2019); bge, e5, MiniLM, and XLM-RoBERTa's (bge-m3, bge-reranker), which hide what differs
 *                    in their files
 *   nomic-bert       likewise; positions turn pairs (i, i + n/2), gates, no biases (Nussbaum et al. 2024)
 *   gemma-embedding  gemma3, whose windows reach as far forward as back; layers behind pooling (Vera et al. 2025) */
#include "model/family_rows.h"

/* ---- BERT ------------------------------------------------------------------------------------------------- */

#define TYPES MATRIX("token_types", OUTSIDE(type_embd), NONE, WHOLE, E, HN_DIM_TYPES, MAY)
#define FIRST_NORM                                                 \
    VECTOR("token_embd_norm.weight", OUTSIDE(token_embd_norm), E), \
        VECTOR("token_embd_norm.bias", OUTSIDE(token_embd_norm_b), E)
#define AFTER(gguf, to) VECTOR(gguf ".weight", OF(to), E), VECTOR(gguf ".bias", OF(to##_b), E)

static const hn_slot bert_outer[] = {
    EMBD, MATRIX("position_embd", OUTSIDE(pos_embd), EMBD, WHOLE, E, HN_DIM_CTX), TYPES, FIRST_NORM, CLASSIFIER, { 0 },
};
static const hn_slot bert_layer[] = {
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    AFTER("attn_output_norm", attn_out_norm),
    MLP,
    AFTER("layer_output_norm", layer_out_norm),
    { 0 },
};
const hn_family hn_family_bert =
    TRANSFORMER("bert", HN_BERT, false, bert_outer, bert_layer, .both = true, .layer_norm = true, .ffn = HN_FFN_MLP,
                .map = HN_MAP_GELU_ERF, .nope_period = -1);

static const hn_slot nomic_outer[] = { EMBD, TYPES, FIRST_NORM, CLASSIFIER, { 0 } };
static const hn_slot nomic_layer[] = {
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    AFTER("attn_output_norm", attn_out_norm),
    GLU,
    AFTER("layer_output_norm", layer_out_norm),
    { 0 },
};
const hn_family hn_family_nomic_bert = TRANSFORMER("nomic-bert", HN_NOMIC_BERT, false, nomic_outer, nomic_layer,
                                                   .both = true, .neox = true, .layer_norm = true);

/* ---- EmbeddingGemma ------------------------------------------------------------------------------------------ */

static const hn_slot gemma_outer[] = {
    EMBD,
    VECTOR("output_norm.weight", OUTSIDE(output_norm), E, .hf = "model.norm", .turn = HN_TURN_PLUS_ONE),
    MATRIX("dense_2", OUTSIDE(dense[0]), NONE, WHOLE, E, HN_DIM_DENSE, MAY),
    MATRIX("dense_3", OUTSIDE(dense[1]), NONE, WHOLE, HN_DIM_DENSE, HN_DIM_DENSE2, RARE(.with = "dense_2.weight"), MAY),
    { 0 },
};
static const hn_slot gemma_layer[] = {
    NORM("attn_norm", attn_norm, E, "input_layernorm", .turn = HN_TURN_PLUS_ONE),
    QKV(HN_TURN_NONE, HN_TURN_NONE),
    QK_NORM(HN_TURN_PLUS_ONE),
    ATTN_OUT,
    NORM("ffn_norm", ffn_norm, E, "pre_feedforward_layernorm", .turn = HN_TURN_PLUS_ONE),
    GATE,
    UP,
    DOWN,
    POST_NORMS(HN_TURN_PLUS_ONE),
    { 0 },
};
const hn_family hn_family_gemma_embedding =
    TRANSFORMER("gemma-embedding", HN_GEMMA_EMBEDDING, false, gemma_outer, gemma_layer, .both = true, .neox = true,
                .qk_norm = HN_HEAD_NORM_EACH, .act = HN_GLU_GELU, .sqrt_embd = true, .reads = HN_READS_WINDOW,
                .needs_window = true, .window_period = 6, .window_rope = HN_WINDOW_ROPE_PLAIN, .window_base = 10000);
