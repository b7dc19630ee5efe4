/* keys: which metadata hone knows. Every key below the family's name is read by the loader, without effect
 * on the answer, harmless at the value it has, or refused: what hone does not know could be another formula. Owns the
 * lists and the way around them (hone_model_params.ignore_keys); refuses to know what is done with the keys that are
 * read. The names are those of ggml-org/llama.cpp:gguf-py/gguf/constants.py and src/llama-arch.cpp. */
#include "model/hparams.h"

#include <math.h>
#include <stdlib.h>

#define LLAMA HN_LLAMA
#define RWKV6 HN_RWKV6
#define RWKV7 HN_RWKV7
#define GEMMA3 HN_GEMMA3
#define GEMMA34 (HN_GEMMA3N | HN_GEMMA4)
#define BITNET (HN_BITNET | HN_BITNET158)
#define OTHER_NEOX (HN_SPARK2_5 | HN_HRM_TEXT | HN_OPENELM | HN_DBRX | HN_TALKIE | HN_PLAMO3 | BITNET)
/* pairs (i, i + n/2), and the others of attention */
#define NEOX                                                                                                          \
    (HN_QWEN2 | HN_QWEN3 | HN_GEMMA | HN_GEMMA2 | HN_GEMMA3 | HN_PHI3 | HN_OLMO2 | HN_EXAONE4 | HN_SEED_OSS |         \
     HN_HUNYUAN | HN_STARCODER2 | HN_GPTNEOX | HN_QWEN3MOE | HN_QWEN2MOE | HN_OLMOE | HN_DOTS1 | HN_GLM4MOE |         \
     HN_MINIMAX_M2 | HN_GPT_OSS | HN_EXAONE | HN_PHI2 | HN_STABLELM | HN_NEMOTRON | HN_ORION | HN_HUNYUAN_MOE |       \
     HN_BAILINGMOE2 | HN_MELLUM | HN_EXAONE_MOE | HN_AFMOE | GEMMA34 | (HYBRID & ~HN_GRANITEHYBRID) | HN_NOMIC_BERT | \
     HN_GEMMA_EMBEDDING | HN_APERTUS | HN_SMALLTHINKER | HN_PHIMOE | HN_MINICPM3 | HN_NOMIC_BERT_MOE |                \
     HN_JINA_BERT_V3 | HN_MODERN_BERT | HN_EUROBERT | HN_LAGUNA | HN_STEP35 | HN_MIMO2 | OTHER_NEOX)
#define MAMBA2 (HN_MAMBA2 | HN_FALCON_H1 | HN_NEMOTRON_H | HN_NEMOTRON_H_MOE | HN_GRANITEHYBRID)
#define SHORTCONV (HN_LFM2 | HN_LFM2MOE)
#define GDN (HN_QWEN35 | HN_QWEN35MOE | HN_QWEN3NEXT | HN_QWEN4EXP)
#define MAMBA (HN_MAMBA | HN_JAMBA)
#define SSM (MAMBA | MAMBA2 | GDN)
#define HYBRID (SSM | SHORTCONV)
#define CHOOSING (HN_DEEPSEEK32 | HN_GLM_DSA)
#define INDEXED (HN_QWEN4EXP | CHOOSING)
#define ROUTED_LATENT (HN_DEEPSEEK2 | HN_MISTRAL4 | HN_KIMI_LINEAR | CHOOSING)
#define LATENT (ROUTED_LATENT | HN_MINICPM3)
#define FADES (HN_BLOOM | HN_MPT | HN_REFACT | HN_JINA_BERT_V2) /* scores do, with the distance */
#define WARM (HN_MISTRAL3 | HN_DEEPSEEK2 | HN_MISTRAL4)         /* queries may grow with their positions */
#define OTHER_PAIRS (HN_MUSE_GLIMMER | HN_OLMO | HN_NANBEIGE)
#define PAIRS                                                                                                        \
    (HN_LLAMA | HN_MISTRAL3 | HN_SMOLLM3 | HN_GRANITE | HN_GLM4 | HN_ERNIE45 | HN_COMMAND_R | HN_COHERE2 | HN_GPT2 | \
     HN_ARCEE | HN_MAINCODER | HN_DECI | HN_CHATGLM | HN_STARCODER | HN_DEEPSEEK | HN_GRANITEMOE | HN_ERNIE45MOE |   \
     HN_GRANITE_SWA | HN_LLAMA4 | ROUTED_LATENT | HN_GRANITEHYBRID | HN_BERT | HN_COHERE2MOE | HN_LLAMA_EMBED |      \
     FADES | OTHER_PAIRS)
#define MOE                                                                                                         \
    (HN_QWEN3MOE | HN_QWEN2MOE | HN_OLMOE | HN_GRANITEMOE | HN_DOTS1 | HN_ERNIE45MOE | HN_GLM4MOE | HN_MINIMAX_M2 | \
     HN_GPT_OSS | HN_LLAMA | HN_MISTRAL3 | HN_LLAMA4 | HN_LFM2MOE | HN_NEMOTRON_H_MOE | HN_GRANITEHYBRID |          \
     HN_QWEN35MOE | HN_QWEN3NEXT | HN_HUNYUAN_MOE | HN_DEEPSEEK | HN_BAILINGMOE2 | HN_MELLUM | HN_EXAONE_MOE |      \
     HN_AFMOE | HN_SMALLTHINKER | HN_PHIMOE | HN_COHERE2MOE | ROUTED_LATENT | HN_GEMMA4 | HN_NOMIC_BERT_MOE |       \
     HN_JAMBA | HN_GRANITE_SWA | HN_LAGUNA | HN_QWEN4EXP | HN_STEP35 | HN_DBRX | HN_MIMO2)
#define NEXTN                                                                                              \
    (HN_NEMOTRON_H_MOE | HN_BAILINGMOE2 | HN_DEEPSEEK2 | HN_MISTRAL4 | HN_GLM4 | HN_GLM4MOE | HN_EXAONE4 | \
     HN_EXAONE_MOE | HN_COHERE2MOE | HN_STEP35 | HN_MIMO2 | CHOOSING |                                     \
     (GDN & ~HN_QWEN4EXP)) /* files may have blocks that draft */
#define GRANITE (HN_GRANITE | HN_GRANITEMOE | HN_GRANITEHYBRID | HN_GRANITE_SWA)
#define SCALED (GRANITE | HN_MINICPM3) /* of embeddings, of what is added, of logits */
#define TIMES_LOGITS (HN_COMMAND_R | HN_COHERE2 | HN_COHERE2MOE | HN_MUSE_GLIMMER | HN_TALKIE)
#define DENSE_GRANITE (HN_GRANITE | HN_GRANITEMOE) /* Granite 4.0 without layers that recur too */
#define ATTN (PAIRS | NEOX)
#define WINDOWED                                                                                                     \
    (HN_GEMMA2 | HN_GEMMA3 | HN_OLMO2 | HN_EXAONE4 | HN_COHERE2 | HN_GPT_OSS | HN_MELLUM | HN_EXAONE_MOE | GEMMA34 | \
     HN_AFMOE | HN_SMALLTHINKER | HN_COHERE2MOE | HN_GEMMA_EMBEDDING | HN_MODERN_BERT | HN_GRANITE_SWA | HN_LAGUNA | \
     HN_STEP35 | HN_MIMO2 | HN_MUSE_GLIMMER | HN_SPARK2_5 | HN_PLAMO3)
#define BLIND (ATTN & ~WINDOWED) /* to windows: every layer sees everything */
#define BERTS (HN_JINA_BERT_V2 | HN_BERT | HN_NOMIC_BERT | HN_NOMIC_BERT_MOE | HN_JINA_BERT_V3 | HN_MODERN_BERT)
#define ENCODERS (BERTS | HN_GEMMA_EMBEDDING | HN_EUROBERT | HN_LLAMA_EMBED) /* attention looks both ways */
#define LAYER_NORM                                                                                            \
    (HN_COMMAND_R | HN_COHERE2 | HN_STARCODER2 | HN_GPTNEOX | HN_GPT2 | HN_PHI2 | HN_STABLELM | HN_NEMOTRON | \
     HN_ORION | HN_STARCODER | HN_BLOOM | HN_MPT | HN_OLMO | HN_DBRX | BERTS)
#define EITHER_EPS (HN_NEMOTRON_H | HN_NEMOTRON_H_MOE | HN_COHERE2MOE | HN_PHIMOE) /* one or the other */
#define CLIPPED (HN_MPT | HN_OLMO | HN_DBRX)                                       /* queries, keys and values */
#define CAPPED (HN_GEMMA2 | HN_GEMMA3 | GEMMA34 | HN_MUSE_GLIMMER)                 /* logits; scores, of gemma2 alone */
#define GELU                                                                                                      \
    (HN_GEMMA | HN_GEMMA2 | HN_GEMMA3 | HN_STARCODER2 | HN_GPTNEOX | HN_GPT2 | HN_PHI2 | HN_STARCODER | GEMMA34 | \
     HN_BERT | HN_GEMMA_EMBEDDING | HN_NOMIC_BERT_MOE | HN_JINA_BERT_V3 | HN_BLOOM | HN_MPT | HN_JINA_BERT_V2 |   \
     HN_SPARK2_5)
#define RELU2 (HN_ARCEE | HN_NEMOTRON | HN_NEMOTRON_H | HN_NEMOTRON_H_MOE | HN_BITNET158)
#define RWKV (RWKV6 | RWKV7)
#define ALL (ATTN | RWKV)

typedef enum HN_SMALL rule {
    READ,      /* by the loader, which checks it */
    NO_EFFECT, /* on logits; why stands beside it */
    ONLY,      /* value (or, where it may be, 0): the formula is then the one hone has */
    ONLY_THIS, /* the same without 0 */
    ONLY_WORD, /* a string, one of words */
    THREE /* parts of what turns by time, height and width, whose positions are equal in text; a fourth has others */
} rule;

/* What a neutral value is, where it is no constant. */
typedef enum HN_SMALL neutral_kind {
    CONSTANT = 0,
    ONE_OVER_SQRT_D,
    HEAD_DIM,
    VALUE_DIM,
    N_ROT,
    FREQ_BASE,
    N_EMBD,
    N_HEAD,
    TURNS
} neutral_kind;

typedef struct known_key {
    const char *suffix;
    hn_family_set families;
    union {
        double value;      /* ONLY: of all elements, where it is an array */
        const char *words; /* ONLY_WORD: "a|b" */
    };
    rule rule;
    neutral_kind of;
} known_key;

#define READS(key, who)                              \
    {                                                \
        .suffix = key, .families = who, .rule = READ \
    }
#define IDLE(key, who)                                    \
    {                                                     \
        .suffix = key, .families = who, .rule = NO_EFFECT \
    }
#define AT(x, key, who)                                          \
    {                                                            \
        .suffix = key, .families = who, .rule = ONLY, .value = x \
    }
#define AT_OWN(what, key, who)                                   \
    {                                                            \
        .suffix = key, .families = who, .rule = ONLY, .of = what \
    }
#define TRUE_ONLY(key, who)                                           \
    {                                                                 \
        .suffix = key, .families = who, .rule = ONLY_THIS, .value = 1 \
    }
#define WORD(list, key, who)                                             \
    {                                                                    \
        .suffix = key, .families = who, .rule = ONLY_WORD, .words = list \
    }
static const known_key known[] = {
    /* read */
    READS("context_length", ALL),
    READS("embedding_length", ALL),
    READS("block_count", ALL),
    READS("feed_forward_length", ALL),
    READS("vocab_size", ALL),
    READS("pooling_type", ALL),
    READS("classifier.output_labels", ALL), /* as many as there are scores */
    READS("classifier.pooling_type", HN_MODERN_BERT),
    READS("hidden_activation", HN_MODERN_BERT),
    READS("attention.causal", HN_LFM2),
    READS("embedding_length_out", HN_LFM2),
    READS("dense_2_feat_out", HN_GEMMA_EMBEDDING),
    READS("dense_3_feat_out", HN_GEMMA_EMBEDDING),
    READS("nextn_predict_layers", NEXTN),
    READS("attention.head_count", ATTN),
    READS("attention.head_count_kv", ATTN),
    READS("attention.key_length",
          ATTN), /* LATENT: of files of the first layout; else of rows as llama.cpp keeps them */
    READS("attention.value_length", ATTN),
    READS("attention.layer_norm_rms_epsilon", ATTN & ~LAYER_NORM),
    READS("attention.layer_norm_epsilon", RWKV | LAYER_NORM | EITHER_EPS),
    READS("attention.sliding_window", ATTN), /* hone_model_info.n_window */
    READS("expert_count", ATTN),             /* must be 0 where there are no experts */
    READS("expert_used_count", MOE),
    READS("expert_feed_forward_length", MOE),
    READS("expert_shared_feed_forward_length", MOE),
    READS("expert_group_count", MOE),
    READS("expert_group_used_count", MOE),
    READS("expert_weights_scale", MOE),
    READS("expert_weights_norm", MOE),
    READS("expert_gating_func", MOE),
    READS("interleave_moe_layer_step", MOE),
    READS("moe_every_n_layers", HN_NOMIC_BERT_MOE),
    READS("moe_latent_size", HN_NEMOTRON_H_MOE),
    READS("leading_dense_block_count", MOE),
    READS("attention.sliding_window_pattern", WINDOWED | HN_LFM2 | HN_LLAMA4),
    READS("rope.freq_base_swa", WINDOWED),
    READS("rope.dimension_count_swa", HN_GEMMA4 | HN_LAGUNA | HN_STEP35 | HN_SPARK2_5),
    READS("swiglu_clamp_exp", HN_STEP35),
    READS("swiglu_clamp_shexp", HN_STEP35),
    READS("attention.key_length_swa", HN_GEMMA4),
    READS("attention.value_length_swa", HN_GEMMA4),
    READS("attention.shared_kv_layers", GEMMA34),
    READS("embedding_length_per_layer_input", GEMMA34 | HN_QWEN4EXP),
    READS("hyper_connection.count", HN_QWEN4EXP),
    READS("hyper_connection.low_rank", HN_QWEN4EXP),
    READS("attention.indexer.head_count", INDEXED),
    READS("attention.indexer.key_length", INDEXED),
    READS("attention.indexer.top_k", INDEXED),
    READS("attention.indexer.types", HN_GLM_DSA),
    READS("attention.compress_ratios", HN_QWEN4EXP),
    READS("ple.layers", HN_QWEN4EXP),
    READS("ple.ngram_size", HN_QWEN4EXP),
    READS("ple.heads_per_ngram", HN_QWEN4EXP),
    READS("ple.conv_kernel", HN_QWEN4EXP),
    READS("ple.eos_token_id", HN_QWEN4EXP),
    READS("ple.layer_multipliers", HN_QWEN4EXP),
    READS("ple.head_offsets", HN_QWEN4EXP),
    READS("ple.head_vocab_sizes", HN_QWEN4EXP),
    IDLE("ple.image_token_id", HN_QWEN4EXP), /* what stands for images */
    READS("altup.num_inputs", HN_GEMMA3N),
    READS("altup.active_idx", HN_GEMMA3N),
    READS("activation_sparsity_scale", HN_GEMMA3N),
    READS("attention.max_alibi_bias", FADES),
    READS("attn_logit_softcapping", HN_GEMMA2),
    READS("final_logit_softcapping", CAPPED),
    READS("embedding_scale", SCALED | HN_HRM_TEXT),
    READS("residual_scale", SCALED),
    READS("attention.scale", GRANITE),
    READS("logit_scale", SCALED | TIMES_LOGITS),
    READS("attention.clamp_kqv", CLIPPED),
    READS("attention.value_scale", HN_MIMO2),
    READS("attention.rope_pattern", HN_GRANITE_SWA),
    READS("attention.temperature_scale", WARM),
    READS("attention.temperature_length", HN_DEEPSEEK2 | HN_MISTRAL4),
    READS("rope.scaling.yarn_log_multiplier", HN_LLAMA | HN_MISTRAL3 | LATENT), /* of llama: Mistral's own format */
    READS("num_loops", HN_NANBEIGE),
    READS("skip_loop_final_norm", HN_NANBEIGE),
    READS("hrm.layers_per_stack", HN_HRM_TEXT),
    READS("hrm.h_cycles", HN_HRM_TEXT),
    READS("hrm.l_cycles", HN_HRM_TEXT),
    READS("hrm.prefix_lm", HN_HRM_TEXT), /* told in a note */
    READS("use_parallel_residual", HN_GPTNEOX),
    READS("attention.key_length_mla", LATENT),
    READS("attention.value_length_mla", LATENT),
    READS("attention.q_lora_rank", LATENT),
    READS("attention.kv_lora_rank", LATENT),
    READS("rope.dimension_count", ATTN),
    READS("rope.freq_base", ATTN),
    READS("rope.scale_linear", ATTN),
    READS("rope.scaling.type", ATTN),
    READS("rope.scaling.factor", ATTN),
    READS("rope.scaling.original_context_length", ATTN),
    READS("rope.scaling.attn_factor", ATTN),
    READS("rope.scaling.yarn_ext_factor", ATTN),
    READS("rope.scaling.yarn_attn_factor", ATTN),
    READS("rope.scaling.yarn_beta_fast", ATTN),
    READS("rope.scaling.yarn_beta_slow", ATTN),
    READS("rope.scaling.finetuned", HN_GRANITE | HN_GRANITEHYBRID),
    READS("ssm.conv_kernel", SSM | HN_KIMI_LINEAR),
    READS("kda.head_dim", HN_KIMI_LINEAR),
    READS("ssm.inner_size", SSM),
    READS("ssm.state_size", SSM),
    READS("ssm.time_step_rank", SSM),
    READS("ssm.group_count", SSM & ~MAMBA),
    READS("ssm.dt_b_c_rms", MAMBA),
    READS("shortconv.l_cache", SHORTCONV),
    READS("attention.recurrent_layers", GDN),
    READS("full_attention_interval", GDN),
    READS("wkv.head_size", RWKV),
    READS("token_shift_count", RWKV),
    READS("time_mix_extra_dim", RWKV6),
    READS("time_decay_extra_dim", RWKV6),
    READS("rescale_every_n_layers", RWKV6),
    READS("attention.decay_lora_rank", RWKV7),
    READS("attention.iclr_lora_rank", RWKV7),
    READS("attention.value_residual_mix_lora_rank", RWKV7),
    READS("attention.gate_lora_rank", RWKV7),

    /* without effect on logits */
    IDLE("final_logit_softcapping", HN_GEMMA_EMBEDDING), /* of logits, which it has not */
    IDLE("dense_2_feat_in", ALL),                        /* what pooling gives; where there is no such layer, nothing */
    IDLE("dense_3_feat_in", ALL),
    IDLE("dense_2_feat_out", ALL & ~HN_GEMMA_EMBEDDING),
    IDLE("dense_3_feat_out", ALL & ~HN_GEMMA_EMBEDDING),
    IDLE("rope.scaling.finetuned", ATTN & ~(HN_GRANITE | HN_GRANITEHYBRID)), /* where the weights come from */
    { .suffix = "rope.dimension_sections", .families = NEOX | HN_GLM4, .rule = THREE }, /* of glm4: HN_READS_SECTIONS */
    IDLE("rope.mrope_section", NEOX), /* the same, as ollama's converter writes it */
    IDLE("mrope_sections", NEOX),
    IDLE("rope.mrope_interleaved", NEOX),
    /* of images, and what ollama's converter copies of a config beside what is read */
    IDLE("image_token_id", ALL),
    IDLE("image_token_index", ALL),
    IDLE("spatial_merge_size", ALL),
    IDLE("vision_start_token_id", ALL),
    IDLE("vision_end_token_id", ALL),
    IDLE("max_position_embeddings", ALL),
    IDLE("norm_top_k_prob", ALL & ~MOE),
    IDLE("altup.lr_multiplier", HN_GEMMA3N), /* of training */
    IDLE("deepstack_mapping", GRANITE),      /* layers that get images once more */
    /* the converter writes them of every Granite 4.0, also where no layer recurs */
    IDLE("ssm.conv_kernel", DENSE_GRANITE),
    IDLE("ssm.inner_size", DENSE_GRANITE),
    IDLE("ssm.state_size", DENSE_GRANITE),
    IDLE("ssm.time_step_rank", DENSE_GRANITE),
    IDLE("ssm.group_count", DENSE_GRANITE),
    IDLE("normalize_embeddings", ENCODERS), /* hone embed does */
    IDLE("attention.sliding_window_pattern",
         BLIND & ~(HN_LLAMA4 | HN_LFM2)), /* which layers have the window: hone runs none, and says so */
    IDLE("attention.layer_norm_epsilon", ATTN & ~(LAYER_NORM | EITHER_EPS)), /* the family has RMSNorm alone, */
    IDLE("attention.group_norm_epsilon", ATTN),
    IDLE("attention.group_norm_groups", ATTN),
    IDLE("attention.layer_norm_rms_epsilon", RWKV | LAYER_NORM), /* and this one LayerNorm */
    IDLE("attention.head_count", RWKV),                          /* a placeholder: wkv.head_size says it */
    IDLE("attention.head_count_kv", RWKV),
    IDLE("attention.key_length", RWKV),
    IDLE("attention.value_length", RWKV),
    IDLE("rope.dimension_count", RWKV),
    IDLE("rope.freq_base", RWKV),     /* nothing turns */
    IDLE("expert_shared_count", ALL), /* one matrix of them all, whose width says it */
    /* of experts, and expert_count is 0 */
    IDLE("expert_used_count", ALL & ~MOE),
    IDLE("expert_feed_forward_length", ALL & ~MOE),
    IDLE("expert_shared_feed_forward_length", ALL & ~MOE),
    IDLE("expert_chunk_feed_forward_length", ALL & ~MOE),
    IDLE("expert_group_count", ALL & ~MOE),
    IDLE("expert_group_used_count", ALL & ~MOE),
    IDLE("expert_group_scale", ALL & ~MOE),
    IDLE("experts_per_group", ALL & ~MOE),
    IDLE("expert_weights_scale", ALL & ~MOE),
    IDLE("expert_weights_norm", ALL & ~MOE),
    IDLE("expert_gating_func", ALL & ~MOE),
    IDLE("moe_every_n_layers", ALL & ~MOE),
    IDLE("interleave_moe_layer_step", ALL & ~MOE),
    IDLE("leading_dense_block_count", ALL & ~MOE),
    IDLE("router_logit_softcapping", ALL & ~MOE),

    /* harmless at one value */
    AT_OWN(HEAD_DIM, "attention.head_dim", ATTN),
    AT_OWN(HEAD_DIM, "head_dim", ATTN),
    TRUE_ONLY("norm_top_k_prob", HN_QWEN3MOE | HN_QWEN3NEXT | HN_QWEN35MOE | HN_QWEN4EXP),
    TRUE_ONLY("ssm.v_head_reordered", GDN),
    TRUE_ONLY("altup.correct_scale", HN_GEMMA3N),
    AT(10000, "rope.freq_base_local", HN_GEMMA3N),
    AT(8192, "attention.chunk_size", HN_LLAMA4),
    AT_OWN(ONE_OVER_SQRT_D, "attention.scale", ATTN & ~GRANITE),
    AT(0, "attention.clamp_kqv", ALL & ~CLIPPED),
    AT(0, "attention.max_alibi_bias", ALL & ~FADES),
    AT(1, "attention.output_scale", ALL),
    AT(1, "attention.value_scale", ALL & ~HN_MIMO2),
    AT(0, "attention.temperature_scale", ALL & ~(WARM | HN_LLAMA4)),
    AT(0.1, "attention.temperature_scale", HN_LLAMA4), /* the family's */
    AT(0, "attention.temperature_length", ALL & ~(HN_DEEPSEEK2 | HN_MISTRAL4)),
    TRUE_ONLY("attention.causal", ALL & ~(ENCODERS | HN_LFM2)),
    AT(0, "attention.causal", ENCODERS),
    AT(2, "classifier.pooling_type", ALL & ~HN_MODERN_BERT), /* 2: of one row */
    { .suffix = "attention.rope_pattern", .families = ALL, .rule = ONLY_THIS, .of = TURNS },
    AT(0, "attn_logit_softcapping", ALL & ~HN_GEMMA2),
    AT(0, "final_logit_softcapping", ALL & ~CAPPED),
    AT(1, "logit_scale", ALL & ~(SCALED | TIMES_LOGITS)),
    AT(1, "residual_scale", ALL & ~SCALED),
    AT(1, "embedding_scale", ALL & ~(SCALED | HN_HRM_TEXT)),
    IDLE("use_parallel_residual", HN_STABLELM), /* whether the second half has a norm says it */
    AT(0, "use_parallel_residual", ALL & ~(HN_GPTNEOX | HN_STABLELM)),
    AT(0, "swin_norm", ALL),
    AT(0, "activation_sparsity_scale", ALL & ~HN_GEMMA3N),
    AT(0, "swiglu_clamp_exp", ALL & ~HN_STEP35),
    AT(0, "swiglu_clamp_shexp", ALL & ~HN_STEP35),
    AT(0, "nextn_predict_layers", ALL & ~NEXTN),
    AT(0, "n_deepstack_layers", ALL),
    AT(0, "full_attention_interval", ALL & ~GDN),
    AT(0, "decoder_block_count", ALL),
    AT(0, "moe_latent_size", ALL & ~HN_NEMOTRON_H_MOE),
    AT(0, "expert_latent_length", ALL),
    AT(0, "expert_count", RWKV),
    AT(0, "expert_chunk_feed_forward_length", MOE),
    AT(1, "expert_group_scale", MOE),
    AT(0, "experts_per_group", MOE),
    AT(1, "moe_every_n_layers", MOE & ~HN_NOMIC_BERT_MOE),
    AT(0, "router_logit_softcapping", MOE),
    AT(0, "attention.sliding_window", RWKV),
    AT_OWN(HEAD_DIM, "attention.key_length_swa", ATTN & ~HN_GEMMA4),
    AT_OWN(VALUE_DIM, "attention.value_length_swa", ATTN & ~HN_GEMMA4),
    AT(0, "attention.key_length_mla", ALL & ~LATENT),
    AT(0, "attention.value_length_mla", ALL & ~LATENT),
    AT(0, "attention.q_lora_rank", ALL & ~LATENT),
    AT(0, "attention.kv_lora_rank", ALL & ~LATENT),
    AT(0, "attention.shared_kv_layers", ALL & ~GEMMA34),
    IDLE("attention.recurrent_layers", (HYBRID | HN_KIMI_LINEAR) & ~GDN), /* a layer is what its tensors say */
    AT(0, "attention.recurrent_layers", ALL & ~(HYBRID | HN_KIMI_LINEAR)),
    AT(0, "attention.relative_buckets_count", ALL),
    AT(0, "attention.indexer.top_k", ALL & ~INDEXED),
    AT(0, "attention.indexer.head_count", ALL & ~INDEXED),
    AT(0, "attention.indexer.key_length", ALL & ~INDEXED),
    AT(HN_RWKV_GROUP_EPS, "attention.group_norm_epsilon", RWKV),
    AT_OWN(N_HEAD, "attention.group_norm_groups", RWKV),
    AT(0, "rescale_every_n_layers", ATTN | RWKV7),
    AT(0, "time_mix_extra_dim", ATTN | RWKV7),
    AT(0, "time_decay_extra_dim", ATTN | RWKV7),
    IDLE("token_shift_count", ATTN),
    AT(0, "wkv.head_size", ATTN),
    AT(0, "attention.decay_lora_rank", ATTN | RWKV6),
    AT(0, "attention.iclr_lora_rank", ATTN | RWKV6),
    AT(0, "attention.value_residual_mix_lora_rank", ATTN | RWKV6),
    AT(0, "attention.gate_lora_rank", ATTN | RWKV6),
    AT_OWN(N_EMBD, "embedding_length_out", ALL & ~HN_LFM2),
    AT(0, "embedding_length_per_layer_input", ALL & ~(GEMMA34 | HN_QWEN4EXP)),
    AT(0, "rope.dimension_sections", PAIRS & ~HN_GLM4),
    AT_OWN(N_ROT, "rope.dimension_count_swa", ATTN & ~HN_GEMMA4),
    AT_OWN(FREQ_BASE, "rope.freq_base_swa", ATTN & ~WINDOWED),
    AT(1, "rope.scaling.alpha", ALL),
    AT(0, "rope.scaling.yarn_log_multiplier", ALL & ~(HN_LLAMA | HN_MISTRAL3 | LATENT)),
    AT(0, "ssm.conv_kernel", ALL & ~(SSM | HN_KIMI_LINEAR | DENSE_GRANITE)),
    AT(0, "kda.head_dim", ALL & ~HN_KIMI_LINEAR),
    AT(0, "ssm.inner_size", ALL & ~(SSM | DENSE_GRANITE)),
    AT(0, "ssm.state_size", ALL & ~(SSM | DENSE_GRANITE)),
    AT(0, "ssm.time_step_rank", ALL & ~(SSM | DENSE_GRANITE)),
    AT(0, "ssm.group_count", (ALL & ~(SSM | DENSE_GRANITE)) | MAMBA),
    AT(0, "ssm.dt_b_c_rms", ALL & ~MAMBA),
    /* pairs (2i, 2i+1), as in Meta's own files and in converted ones; pairs (i, i + n/2) have one layout alone. Orion's
     * converter writes Meta's name, and leaves the rows as they are */
    WORD("reference|Meta AI original pth", "tensor_data_layout", PAIRS | HN_ORION),
    WORD("reference", "tensor_data_layout", (NEOX & ~HN_ORION) | RWKV),
    WORD("silu|swish", "hidden_activation", ATTN & ~(GELU | RELU2 | HN_APERTUS | HN_SMALLTHINKER)),
    WORD("relu2", "hidden_activation", RELU2),
    WORD("xielu", "hidden_activation", HN_APERTUS),
    WORD("relu", "hidden_activation", HN_SMALLTHINKER),
    WORD("gelu_pytorch_tanh|gelu_tanh|gelu_new|gelu", "hidden_activation", GELU),
};

/* Of tokenizers: fine where tokenizer.ggml.model is `but`, whose reader does it; else they must ask for nothing, or
 * text would become other tokens, or answers hold tokens they should not. Other keys below "tokenizer." are read by
 * text/, or say nothing of how text becomes tokens. */
static const struct {
    const char *key, *but;
} tokenizer_none[] = {
    { "tokenizer.ggml.remove_extra_whitespaces", "t5" },
    { "tokenizer.ggml.precompiled_charsmap", "t5" },
    { "tokenizer.ggml.normalizer.lowercase", "bert" },
    { "tokenizer.ggml.normalizer.strip_accents", "bert" },
};

static const known_key *find_known(hn_family_set family, const char *suffix, size_t n)
{
    for (const known_key *k = known; k < known + sizeof known / sizeof *known; k++)
        if (k->families & family && strlen(k->suffix) == n && !memcmp(k->suffix, suffix, n)) return k;
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A number or truth value as a double; false: neither. */
static bool number_of(const hone_kv *kv, double *x)
{
    switch (kv->type) {
    case HONE_KV_U8:
    case HONE_KV_U16:
    case HONE_KV_U32:
    case HONE_KV_U64: *x = (double)kv->v.u; return true;
    case HONE_KV_I8:
    case HONE_KV_I16:
    case HONE_KV_I32:
    case HONE_KV_I64: *x = (double)kv->v.i; return true;
    case HONE_KV_F32:
    case HONE_KV_F64: *x = kv->v.f; return true;
    case HONE_KV_BOOL: *x = kv->v.b; return true;
    default: return false;
    }
}

bool hn_array_number(const hn_gguf_array *a, uint64_t i, double *x)
{
    hone_kv kv = { .type = a->elem_type };
    uint32_t size = hn_gguf_type_size(a->elem_type);
    uint64_t u = 0;
    float f;
    if (!size) return false;
    for (uint32_t b = 0; b < size; b++) u |= (uint64_t)a->data[i * size + b] << (8 * b);
    if (a->elem_type == HONE_KV_F32) {
        uint32_t bits = (uint32_t)u;
        memcpy(&f, &bits, 4);
        kv.v.f = (double)f;
    } else if (a->elem_type == HONE_KV_F64) {
        memcpy(&kv.v.f, &u, 8);
    } else if (a->elem_type == HONE_KV_BOOL) {
        kv.v.b = u != 0;
    } else if (a->elem_type == HONE_KV_I8 || a->elem_type == HONE_KV_I16 || a->elem_type == HONE_KV_I32 ||
               a->elem_type == HONE_KV_I64) {
        kv.v.i = (int64_t)(u << (64 - 8 * size)) >> (64 - 8 * size);
    } else {
        kv.v.u = u;
    }
    return number_of(&kv, x);
}

/* A value in words fit for a message. */
static void value_words(char *dst, size_t cap, const hone_kv *kv)
{
    double x;
    if (kv->type == HONE_KV_STRING) {
        snprintf(dst, cap, "\"%s\"", HN_ESC(kv->v.s.ptr, kv->v.s.len < 60 ? kv->v.s.len : 60));
    } else if (kv->type == HONE_KV_BOOL) {
        snprintf(dst, cap, "%s", kv->v.b ? "true" : "false");
    } else if (number_of(kv, &x)) {
        snprintf(dst, cap, "%.9g", x);
    } else {
        snprintf(dst, cap, "an array of %llu %s", (unsigned long long)kv->count, hn_gguf_type_name(kv->elem_type));
    }
}

static double neutral_of(const hone_model *m, const known_key *k)
{
    char key[128];
    float base = 10000.0f;
    int32_t n_rot = m->hp.head_dim;
    switch (k->of) {
    case ONE_OVER_SQRT_D:
        return (double)(m->hp.attn_scale != 0 ? m->hp.attn_scale : 1.0f / sqrtf((float)m->hp.head_dim));
    case HEAD_DIM: return m->hp.head_dim;
    case VALUE_DIM:
        return hn_get_int(m, "attention.value_length", 0, INT32_MAX, n_rot, &n_rot, NULL) == HONE_OK ? n_rot : 0;
    case TURNS: return !m->hp.nope;
    case N_EMBD: return m->hp.n_embd;
    case N_HEAD: return m->hp.n_head;
    case N_ROT: return hn_get_int(m, "rope.dimension_count", 0, INT32_MAX, n_rot, &n_rot, NULL) == HONE_OK ? n_rot : 0;
    case FREQ_BASE:
        hn_arch_key(m, key, "rope.freq_base");
        return hn_gguf_get_f32(m->file, key, &base, NULL, NULL) == HONE_OK ? (double)base : 0;
    default: return k->rule == ONLY_WORD ? 0 : k->value;
    }
}

static bool is_neutral(const known_key *k, double neutral, double x)
{
    if (x == 0 && k->rule == ONLY) return true; /* how files write "none" */
    return fabs(x - neutral) <= 1e-4 * fabs(neutral);
}

/* Is one of the words of "a|b" s? */
static bool is_word(const char *words, hone_str s)
{
    for (const char *p = words;; p++) {
        size_t n = strcspn(p, "|");
        if (n == s.len && !memcmp(p, s.ptr, n)) return true;
        p += n;
        if (!*p) return false;
    }
}

/* ---- keys that somebody wants ignored ------------------------------------------------------------- */

/* Is key in a list "a,b,c"? Spaces around names do not count. */
static bool is_listed(const char *list, hone_str key)
{
    for (const char *p = list; p && *p; p += *p == ',') {
        size_t n = strcspn(p, ","), a = 0, b = n;
        while (a < b && p[a] == ' ') a++;
        while (b > a && p[b - 1] == ' ') b--;
        if (b - a == key.len && !memcmp(p + a, key.ptr, key.len)) return true;
        p += n;
    }
    return false;
}

/* Appends "key = value" to what is ignored. */
static hone_status note_ignored(hone_model *m, const hone_kv *kv, const char *value, hone_error *err)
{
    const char *before = m->ignored_keys, *key = HN_ESC(kv->key.ptr, kv->key.len);
    size_t n = strlen(before) + strlen(key) + strlen(value) + 8;
    char *s = hn_arena_alloc(m->arena, n);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "%s: metadata", m->path);
    snprintf(s, n, "%s%s%s = %s", before, *before ? ", " : "", key, value);
    m->ignored_keys = s;
    return HONE_OK;
}

/* ---- llama.cpp's own files ----------------------------------------------------------------------------- */

/* llama_model_save_to_file writes all numbers that it holds, those of other families' formulas too, at the values that
 * say nothing (ggml-org/llama.cpp:src/llama-hparams.h). A suffix that ends in '.' is the beginning of many. */
static const struct {
    const char *suffix;
    double value;
} saved_idle[] = {
    { "activation.situ_beta", 1 },
    { "activation.situ_linear_beta", 0 },
    { "attention.compress_ratios", 0 },
    { "attention.compress_rope_freq_base", 0 },
    { "attention.indexer.kpool_select_tail", 1 },
    { "attention.indexer.", 0 },
    { "attention.key_length_mla_swa", 0 },
    { "attention.value_length_mla_swa", 0 },
    { "attention.kv_lora_rank_swa", 0 },
    { "attention.output_group_count", 0 },
    { "attention.output_lora_rank", 0 },
    { "attn_logit_softcapping", 50 },
    { "attn_res.block_size", 0 },
    { "convnext.", 0 },
    { "decoder_start_token_id", -1 },
    { "deepstack_mapping", -1 },
    { "expert_group_scale", 0.05 },
    { "final_logit_softcapping", 30 },
    { "hash_layer_count", 0 },
    { "hrm.", 0 },
    { "hyper_connection.", 0 },
    { "kda.gate_lower_bound", -INFINITY },
    { "kda.safe_gate", 0 },
    { "posnet.", 0 },
    { "rope.freq_base_swa", 10000 },
    { "router_logit_softcapping", 30 },
    { "shortconv.l_cache", 0 },
};

bool hn_saved_by_llama(const hone_model *m)
{
    char key[128];
    hone_kv kv;
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, "decoder_start_token_id"));
    if (at < 0) return false;
    hn_gguf_kv(m->file, (uint64_t)at, &kv);
    return kv.type == HONE_KV_I32 && kv.v.i == -1;
}

/* Of latent attention such a file has ten times what converters write. */
static hone_status check_multiplier(const hone_model *m, hone_error *err)
{
    static const char suffix[] = "rope.scaling.yarn_log_multiplier";
    char key[128];
    float x = 0;
    if (!m->hp.is || !m->hp.is->latent || !hn_saved_by_llama(m)) return HONE_OK;
    hone_status st = hn_gguf_get_f32(m->file, hn_arch_key(m, key, suffix), &x, NULL, err);
    if (st != HONE_OK || x == 0) return st;
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s: %s = %g: llama.cpp saves this number times ten, and reads it so; expected a file of its "
                   "converter",
                   m->path, key, (double)x);
}

static bool says_nothing(const hone_model *m, uint64_t at, const hone_kv *kv, size_t prefix)
{
    hn_gguf_array a = { .count = 1 };
    double x;
    const bool list = kv->type == HONE_KV_ARRAY && hn_gguf_kv_array(m->file, at, &a);
    for (size_t i = 0; i < sizeof saved_idle / sizeof *saved_idle; i++) {
        const char *s = saved_idle[i].suffix;
        const size_t n = strlen(s);
        bool good = kv->key.len - prefix >= n && !memcmp(kv->key.ptr + prefix, s, n) &&
                    (s[n - 1] == '.' || kv->key.len - prefix == n);
        if (!good) continue;
        for (uint64_t k = 0; good && k < a.count; k++) {
            good = list ? hn_array_number(&a, k, &x) : number_of(kv, &x);
            good = good && (x == saved_idle[i].value || (float)x == (float)saved_idle[i].value);
        }
        return good && hn_saved_by_llama(m);
    }
    return false;
}

/* ---- the check -------------------------------------------------------------------------------------- */

/* *fits: the value asks for nothing that hone does not do; else *want says what would. */
static hone_status fits(const hone_model *m, uint64_t at, const hone_kv *kv, const known_key *k, bool *good,
                        char want[96], hone_error *err)
{
    double x, neutral = neutral_of(m, k);
    const char *key = HN_ESC(kv->key.ptr, kv->key.len);
    *good = true;
    if (k->rule == READ || k->rule == NO_EFFECT) return HONE_OK;
    if (k->rule == ONLY_WORD) {
        if (kv->type != HONE_KV_STRING)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has type %s, expected string", m->path, key,
                           hn_gguf_type_name(kv->type));
        *good = is_word(k->words, kv->v.s);
        snprintf(want, 96, "%s", k->words);
        return HONE_OK;
    }
    if (k->rule == THREE) snprintf(want, 96, "0 as the fourth");
    else if (k->rule == ONLY && neutral != 0) snprintf(want, 96, "%.9g, or 0 for none", neutral);
    else snprintf(want, 96, "%.9g", neutral);
    if (kv->type == HONE_KV_ARRAY) { /* one per layer */
        hn_gguf_array a;
        if (!hn_gguf_kv_array(m->file, at, &a)) a.count = 0;
        for (uint64_t i = k->rule == THREE ? 3 : 0; i < a.count && *good; i++)
            *good = hn_array_number(&a, i, &x) && is_neutral(k, neutral, x);
        return HONE_OK;
    }
    if (!number_of(kv, &x))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has type %s, expected a number", m->path, key,
                       hn_gguf_type_name(kv->type));
    *good = is_neutral(k, neutral, x);
    return HONE_OK;
}

/* Of images and sound, which text has not: "vision.block_count". Some converters put both into one file. */
static bool of_other_senses(const char *suffix, size_t n)
{
    static const char *const senses[] = { "vision.", "audio.", "mm." };
    for (size_t i = 0; i < sizeof senses / sizeof *senses; i++) {
        size_t k = strlen(senses[i]);
        if (n > k && !memcmp(suffix, senses[i], k)) return true;
    }
    return false;
}

static hone_status check_one(hone_model *m, uint64_t at, const hone_kv *kv, size_t prefix, const char *ignore,
                             hone_error *err)
{
    char value[160], want[96] = "";
    if (of_other_senses(kv->key.ptr + prefix, kv->key.len - prefix)) return HONE_OK;
    const known_key *k = find_known(m->arch->bit, kv->key.ptr + prefix, kv->key.len - prefix);
    bool good = false;
    hone_status st = k ? fits(m, at, kv, k, &good, want, err) : HONE_OK;
    if (st != HONE_OK || good || says_nothing(m, at, kv, prefix)) return st;
    value_words(value, sizeof value, kv);
    if (is_listed(ignore, kv->key)) return note_ignored(m, kv, value, err);
    const char *key = HN_ESC(kv->key.ptr, kv->key.len);
    if (k)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s = %s, expected %s: architecture %s has no such formula here; "
                       "to run without it, and get other answers than the model's: HONE_IGNORE_KEYS=%s",
                       m->path, key, value, want, m->arch->name, key);
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s: metadata key %s = %s is unknown for architecture %s, expected only keys "
                   "hone knows: it may ask for another formula; to run without it: HONE_IGNORE_KEYS=%s",
                   m->path, key, value, m->arch->name, key);
}

static hone_status check_tokenizer_key(hone_model *m, const hone_kv *kv, hone_str model, const char *ignore,
                                       hone_error *err)
{
    static const char suppress[] = "tokenizer.ggml.suppress_tokens"; /* of sampling: hone_sampler_suppress */
    double x;
    char value[160];
    if (kv->key.len == sizeof suppress - 1 && !memcmp(kv->key.ptr, suppress, sizeof suppress - 1)) {
        if (kv->type == HONE_KV_ARRAY && (kv->elem_type == HONE_KV_I32 || kv->elem_type == HONE_KV_U32 || !kv->count))
            return HONE_OK;
        value_words(value, sizeof value, kv);
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %s, expected an array of token ids (i32)", m->path, suppress,
                       value);
    }
    for (size_t i = 0; i < sizeof tokenizer_none / sizeof *tokenizer_none; i++) {
        const char *key = tokenizer_none[i].key, *but = tokenizer_none[i].but;
        if (strlen(key) != kv->key.len || memcmp(key, kv->key.ptr, kv->key.len)) continue;
        if (strlen(but) == model.len && !memcmp(but, model.ptr, model.len)) return HONE_OK;
        if (kv->type == HONE_KV_ARRAY ? kv->count == 0 : number_of(kv, &x) && x == 0) return HONE_OK;
        value_words(value, sizeof value, kv);
        if (is_listed(ignore, kv->key)) return note_ignored(m, kv, value, err);
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s = %s, expected none: hone does not do that with "
                       "tokenizer.ggml.model \"%s\"; to run without it, and get other tokens than the model's: "
                       "HONE_IGNORE_KEYS=%s",
                       m->path, key, value, HN_ESC(model.ptr, model.len), key);
    }
    return HONE_OK;
}

/* ignore: as given, else of the environment. */
static const char *list_of(const char *ignore) { return ignore ? ignore : getenv("HONE_IGNORE_KEYS"); }

hone_status hn_check_tokenizer_keys(hone_model *m, const char *ignore, hone_error *err)
{
    static const char prefix[] = "tokenizer.";
    hone_str model = { "", 0 };
    hone_kv kv;
    hone_status st = hn_gguf_get_str(m->file, "tokenizer.ggml.model", &model, NULL, err);
    for (uint64_t i = 0; st == HONE_OK && i < hn_gguf_n_kv(m->file); i++) {
        hn_gguf_kv(m->file, i, &kv);
        if (kv.key.len < sizeof prefix || memcmp(kv.key.ptr, prefix, sizeof prefix - 1)) continue;
        st = check_tokenizer_key(m, &kv, model, list_of(ignore), err);
    }
    return st;
}

hone_status hn_check_keys(hone_model *m, const char *ignore, hone_error *err)
{
    size_t n = strlen(m->arch->name);
    hone_kv kv;
    hone_status st = check_multiplier(m, err);
    ignore = list_of(ignore);
    for (uint64_t i = 0; st == HONE_OK && i < hn_gguf_n_kv(m->file); i++) {
        hn_gguf_kv(m->file, i, &kv);
        if (kv.key.len <= n + 1 || memcmp(kv.key.ptr, m->arch->name, n) || kv.key.ptr[n] != '.') continue;
        st = check_one(m, i, &kv, n + 1, ignore, err);
    }
    return st;
}
