/* families_encoder: models that read a whole text at once, attention looking both ways: they give rows, no next token.
 *   bert             norms of the stream after each half, learnt positions, kinds of text, no gate, GELU itself (Devlin
 *                    et al. 2019); bge, e5, MiniLM, and XLM-RoBERTa's (bge-m3, bge-reranker), which hide what differs
 *                    in their files
 *   nomic-bert       likewise; positions turn pairs (i, i + n/2), gates, no biases (Nussbaum et al. 2024)
 *   nomic-bert-moe   bert whose positions turn; every other layer has experts, of a softmax as it is (2025)
 *   jina-bert-v2     nomic-bert whose scores fade with the distance; nothing turns, GELU itself (Günther et al. 2023)
 *   jina-bert-v3     bert whose positions turn (Sturua et al. 2024); its adapters are files of their own
 *   modern-bert      LayerNorm before each half, without biases; gates, windows on two layers of three (Warner et al.
 *                    2024)
 *   eurobert, llama-embed  llama both ways (Boizard et al. 2025; Babakhin et al. 2025), whatever the file says of it
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

const hn_family hn_family_jina_bert_v3 =
    TRANSFORMER("jina-bert-v3", HN_JINA_BERT_V3, false, nomic_outer, bert_layer, .both = true, .neox = true,
                .layer_norm = true, .ffn = HN_FFN_MLP, .map = HN_MAP_GELU_ERF);

/* gate and up may be one matrix */
static const hn_slot jina2_layer[] = {
    ATTN(HN_TURN_NONE, HN_TURN_NONE),   AFTER("attn_output_norm", attn_out_norm),   FUSED_GLU,
    BIAS("ffn_down", ffn_down, E, MAY), AFTER("layer_output_norm", layer_out_norm), { 0 },
};
const hn_family hn_family_jina_bert_v2 =
    TRANSFORMER("jina-bert-v2", HN_JINA_BERT_V2, false, nomic_outer, jina2_layer, .both = true, .layer_norm = true,
                .act = HN_GLU_GELU_ERF, .nope_period = -1, .fade = 8);

static const hn_slot nomic_moe_layer[] = {
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    AFTER("attn_output_norm", attn_out_norm),
    LINEAR("ffn_up", ffn_up, FFN_UP, KEEP, E, FF, DENSE),
    BIAS("ffn_up", ffn_up, FF, MAY, DENSE),
    LINEAR("ffn_down", ffn_down, FFN_DOWN, ROWS, FF, E, DENSE),
    BIAS("ffn_down", ffn_down, E, MAY, DENSE),
    ROUTER,
    EXPERT("ffn_up", ffn_up_exps, EXPERT_UP, KEEP, E, HN_DIM_FF_EXP),
    EXPERT("ffn_down", ffn_down_exps, EXPERT_DOWN, ROWS, HN_DIM_FF_EXP, E),
    AFTER("layer_output_norm", layer_out_norm),
    { 0 },
};
const hn_family hn_family_nomic_bert_moe =
    TRANSFORMER("nomic-bert-moe", HN_NOMIC_BERT_MOE, false, nomic_outer, nomic_moe_layer, .both = true, .neox = true,
                .layer_norm = true, .ffn = HN_FFN_MLP, .map = HN_MAP_GELU_ERF,
                MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_NEVER, .every_other = true));

/* ---- ModernBERT ---------------------------------------------------------------------------------------------- */

static const hn_slot modern_outer[] = {
    EMBD,
    VECTOR("token_embd_norm.weight", OUTSIDE(token_embd_norm), E),
    VECTOR("output_norm.weight", OUTSIDE(output_norm), E),
    CLASSIFIER,
    VECTOR("cls.norm.weight", OUTSIDE(cls_norm), E, RARE(.with = "cls.weight"), MAY),
    { 0 },
};
static const hn_slot modern_layer[] = {
    NORM("attn_norm", attn_norm, E, NULL, .from_layer = 1), /* the first takes the normed embedding as it is */
    QKV(HN_TURN_NONE, HN_TURN_NONE),
    ATTN_OUT,
    NORM("ffn_norm", ffn_norm, E, NULL),
    FUSED_GLU,
    { 0 },
};
const hn_family hn_family_modern_bert = TRANSFORMER(
    "modern-bert", HN_MODERN_BERT, false, modern_outer, modern_layer, .both = true, .neox = true, .layer_norm = true,
    .act = HN_GLU_GELU_ERF, .reads = HN_READS_WINDOW | HN_READS_ACT, .needs_window = true, .first_sees = true,
    .window_period = 3, .window_rope = HN_WINDOW_ROPE_PLAIN, .window_base = 10000);

/* ---- llama both ways ----------------------------------------------------------------------------------------- */

static const hn_slot euro_outer[] = {
    EMBD,
    VECTOR("output_norm.weight", OUTSIDE(output_norm), E, .hf = "model.norm"),
    { 0 },
};
static const hn_slot euro_layer[] = {
    ATTN_NORM, QKV(HN_TURN_NONE, HN_TURN_NONE), ATTN_OUT, FFN_NORM, GATE, UP, DOWN, { 0 },
};
const hn_family hn_family_eurobert =
    TRANSFORMER("eurobert", HN_EUROBERT, false, euro_outer, euro_layer, .both = true, .neox = true);

static const hn_slot llama_outer[] = {
    EMBD,
    VECTOR("output_norm.weight", OUTSIDE(output_norm), E, .hf = "model.norm"),
    VECTOR("rope_freqs.weight", OUTSIDE(rope_factors), HN_DIM_ROT_PAIRS, MAY),
    { 0 },
};
static const hn_slot llama_layer[] = {
    ATTN_NORM, QKV(HN_TURN_Q, HN_TURN_K), ATTN_OUT, FFN_NORM, GATE, UP, DOWN, { 0 },
};
const hn_family hn_family_llama_embed =
    TRANSFORMER("llama-embed", HN_LLAMA_EMBED, false, llama_outer, llama_layer, .both = true);

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
