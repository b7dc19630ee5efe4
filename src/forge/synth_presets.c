/* synth_presets: shapes of models that people run. Numbers: the published configurations, as in docs on architectures.
 * Knows no files. */
#include "forge/synth.h"

#include <strings.h>

typedef struct preset {
    const char *name, *aliases, *description; /* aliases: separated by spaces */
    uint64_t n_params;                        /* as hn_synth_n_params: what is listed needs no memory */
    hn_synth_shape s;
} preset;

#define NO_KEYS NULL, NULL, NULL /* what they say, the numbers do */
#define TRANSFORMER(arch, ...)                                      \
    {                                                               \
        arch, NO_KEYS, __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }
/* the last: window */
#define GEMMA3(n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_ctx, factor, window)                        \
    {                                                                                                            \
        "gemma3", NO_KEYS, n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, 262144, n_ctx, 1e6f, 1e-6f, true, \
            factor, 0, 0, 0, 0, 0, 0, window, 0, 0, 0, 0                                                         \
    }
#define RWKV(arch, n_layer, n_embd, n_ff, ...)                                                                      \
    {                                                                                                               \
        arch, NO_KEYS, n_layer, n_embd, (n_embd) / 64, (n_embd) / 64, 64, n_ff, 65536, 1048576, 0, 1e-5f, false, 1, \
            __VA_ARGS__, 0, 0, 0, 0, 0                                                                              \
    }

/* the last: as TRANSFORMER's, window, experts, those of a token, their width */
#define EXPERTS(window, n_expert, n_used, n_ff_exp, arch, ...)                              \
    {                                                                                       \
        arch, NO_KEYS, __VA_ARGS__, 0, 0, 0, 0, 0, 0, window, n_expert, n_used, n_ff_exp, 0 \
    }

/* Of other families: what their files have as keys; of tensors that a file may lack, those that it has. */
#define KEYS(arch_, layers, vocab, tied_, keys_, ...)                                                        \
    {                                                                                                        \
        .arch = arch_, .keys = keys_, .n_layer = layers, .n_vocab = vocab, .tied = tied_, .has = __VA_ARGS__ \
    }
#define RMS5 " attention.layer_norm_rms_epsilon=1e-5"
#define BOTH5 RMS5 " attention.layer_norm_epsilon=1e-5" /* which llama.cpp asks for */
#define RMS6 " attention.layer_norm_rms_epsilon=1e-6"
#define SHARED "ffn_gate_shexp.weight ffn_up_shexp.weight ffn_down_shexp.weight"

/* n_embd, n_ff, heads of queries and keys, heads of values of the delta rule */
#define QWEN35(E, F, H, G, V)                                                                                  \
    "context_length=262144 embedding_length=" #E " feed_forward_length=" #F " attention.head_count=" #H        \
    " attention.head_count_kv=" #G " attention.key_length=256 attention.value_length=256 "                     \
    "rope.dimension_count=64 rope.dimension_sections=11,11,10,0 rope.freq_base=1e7 full_attention_interval=4 " \
    "ssm.conv_kernel=4 "                                                                                       \
    "ssm.state_size=128 ssm.group_count=16 ssm.time_step_rank=" #V " ssm.inner_size=" INNER_##V RMS6
#define INNER_32 "4096"
#define INNER_48 "6144"
#define QWEN_EXPERTS(n, used)                                                                                \
    " expert_feed_forward_length=512 expert_shared_feed_forward_length=512 expert_count=" #n " expert_used_" \
    "count=" #used
/* which layers are what: published patterns */
#define NANO2_FF                                                                                       \
    "feed_forward_length=0,15680,0,15680,0,15680,0,0,15680,0,15680,0,15680,0,0,15680,0,15680,0,15680," \
    "0,0,15680,0,15680,0,15680,0,15680,0,0,15680,0,15680,0,15680,0,15680,0,0,15680,0,15680,0,0,15680," \
    "0,15680,0,15680,0,15680,0,15680,0,15680 "
#define NANO2_KV                                                                                       \
    "attention.head_count_kv=0,0,0,0,0,0,0,0,0,0,0,0,0,0,8,0,0,0,0,0,0,8,0,0,0,0,0,0,0,0,8,0,0,0,0,0," \
    "0,0,0,8,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 "
#define NANO3_FF                                                                                       \
    "feed_forward_length=0,1856,0,1856,0,0,1856,0,1856,0,1856,0,0,1856,0,1856,0,1856,0,0,1856,0,1856," \
    "0,1856,0,0,1856,0,1856,0,1856,0,0,1856,0,1856,0,1856,0,1856,0,0,1856,0,1856,0,1856,0,1856,0,1856" \
    " "
#define NANO3_KV                                                                                       \
    "attention.head_count_kv=0,0,0,0,0,2,0,0,0,0,0,0,2,0,0,0,0,0,0,2,0,0,0,0,0,0,2,0,0,0,0,0,0,2,0,0," \
    "0,0,0,0,0,0,2,0,0,0,0,0,0,0,0,0 "

#define E2B_FF                                                                                         \
    "feed_forward_length=6144,6144,6144,6144,6144,6144,6144,6144,6144,6144,6144,6144,6144,6144,6144,1" \
    "2288,12288,12288,12288,12288,12288,12288,12288,12288,12288,12288,12288,12288,12288,12288,12288,1" \
    "2288,12288,12288,12288 "
/* n_embd, heads of queries, the window; 5 layers of 6 have it, or 4 of 5 */
#define GEMMA4(E, H, W)                                                                                        \
    " embedding_length=" #E " attention.head_count=" #H " attention.sliding_window=" #W                        \
    " attention.key_length=512 attention.value_length=512 attention.key_length_swa=256 "                       \
    "attention.value_length_swa=256 rope.dimension_count=512 rope.dimension_count_swa=256 rope.freq_base=1e6 " \
    "rope.freq_base_swa=10000.0 final_logit_softcapping=30.0" RMS6
#define FIVE_OF_SIX " attention.sliding_window_pattern=true,true,true,true,true,false"
#define FOUR_OF_FIVE " attention.sliding_window_pattern=true,true,true,true,false"

/* positions, n_embd, n_ff, heads */
#define BERT(C, E, F, H, eps)                                                                           \
    "context_length=" #C " embedding_length=" #E " feed_forward_length=" #F " attention.head_count=" #H \
    " attention.layer_norm_epsilon=" eps " attention.causal=false"
#define BERT_HAS "token_types.weight attn_q.bias attn_k.bias attn_v.bias attn_output.bias ffn_up.bias ffn_down.bias"

/* arch, n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train, base, eps, tied, factor
 * RWKV: arch, n_layer, n_embd, n_ff, ranks of decay, iclr, value, gate, mix; rescale_every */
static const preset presets[] = {
    { "llama-3.2-1b", "llama-1b llama3.2-1b", "Llama 3.2 1B, tied, RoPE factors 32", 1235814400,
      TRANSFORMER("llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 5e5f, 1e-5f, true, 32) },
    { "llama-3.2-3b", "llama-3b llama3.2-3b", "Llama 3.2 3B, tied, RoPE factors 32", 3212749824,
      TRANSFORMER("llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, 5e5f, 1e-5f, true, 32) },
    { "llama-3-8b", "llama-8b llama3-8b", "Llama 3 8B", 8030261248,
      TRANSFORMER("llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 5e5f, 1e-5f, false, 1) },
    { "llama-3.1-8b", "llama3.1-8b", "Llama 3.1 8B, RoPE factors 8", 8030261248,
      TRANSFORMER("llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, 5e5f, 1e-5f, false, 8) },
    { "llama-3-70b", "llama-70b llama3-70b", "Llama 3 70B", 70553706496,
      TRANSFORMER("llama", 80, 8192, 64, 8, 128, 28672, 128256, 8192, 5e5f, 1e-5f, false, 1) },
    { "qwen2.5-coder-0.5b", "qwen-0.5b qwen2.5-0.5b qwen2-0.5b", "Qwen2.5-Coder 0.5B, tied", 494032768,
      TRANSFORMER("qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e6f, 1e-6f, true, 1) },
    { "qwen2.5-coder-1.5b", "qwen-1.5b qwen2.5-1.5b qwen2-1.5b", "Qwen2.5-Coder 1.5B, tied", 1543714304,
      TRANSFORMER("qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 32768, 1e6f, 1e-6f, true, 1) },
    { "qwen2.5-coder-3b", "qwen-3b qwen2.5-3b", "Qwen2.5-Coder 3B, tied", 3085938688,
      TRANSFORMER("qwen2", 36, 2048, 16, 2, 128, 11008, 151936, 32768, 1e6f, 1e-6f, true, 1) },
    { "qwen2.5-coder-7b", "qwen-7b qwen2.5-7b qwen2-7b", "Qwen2.5-Coder 7B", 7615616512,
      TRANSFORMER("qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e6f, 1e-6f, false, 1) },
    { "qwen2.5-coder-14b", "qwen-14b qwen2.5-14b", "Qwen2.5-Coder 14B", 14770033664,
      TRANSFORMER("qwen2", 48, 5120, 40, 8, 128, 13824, 152064, 32768, 1e6f, 1e-6f, false, 1) },
    { "qwen3-0.6b", "qwen-0.6b", "Qwen3 0.6B, tied", 596049920,
      TRANSFORMER("qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1e6f, 1e-6f, true, 1) },
    { "qwen3-1.7b", "qwen-1.7b", "Qwen3 1.7B, tied", 1720574976,
      TRANSFORMER("qwen3", 28, 2048, 16, 8, 128, 6144, 151936, 40960, 1e6f, 1e-6f, true, 1) },
    { "qwen3-4b", "qwen-4b", "Qwen3 4B, tied", 4022468096,
      TRANSFORMER("qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, 1e6f, 1e-6f, true, 1) },
    { "qwen3-8b", "qwen-8b", "Qwen3 8B", 8190735360,
      TRANSFORMER("qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1e6f, 1e-6f, false, 1) },
    { "qwen3-14b", "", "Qwen3 14B", 14768307200,
      TRANSFORMER("qwen3", 40, 5120, 40, 8, 128, 17408, 151936, 40960, 1e6f, 1e-6f, false, 1) },
    { "qwen3-32b", "qwen-32b", "Qwen3 32B", 32762123264,
      TRANSFORMER("qwen3", 64, 5120, 64, 8, 128, 25600, 151936, 40960, 1e6f, 1e-6f, false, 1) },
    { "qwen3-30b-a3b", "qwen-30b-a3b qwen3-30b", "Qwen3 30B-A3B, 128 experts, 8 of a token", 30532122624,
      EXPERTS(0, 128, 8, 768, "qwen3moe", 48, 2048, 32, 4, 128, 6144, 151936, 40960, 1e6f, 1e-6f, false, 1) },
    { "gpt-oss-20b", "", "gpt-oss 20B, 32 experts, 4 of a token, MXFP4, window 128", 20914757184,
      EXPERTS(128, 32, 4, 2880, "gpt-oss", 24, 2880, 64, 8, 64, 2880, 201088, 131072, 1.5e5f, 1e-5f, false, 32) },
    { "gemma-3-270m", "gemma3-270m", "Gemma 3 270M, tied, window 512", 268098176,
      GEMMA3(18, 640, 4, 1, 256, 2048, 32768, 1, 512) },
    { "gemma-3-1b", "gemma3-1b", "Gemma 3 1B, tied, window 512", 999885952,
      GEMMA3(26, 1152, 4, 1, 256, 6912, 32768, 1, 512) },
    { "gemma-3-4b", "gemma3-4b", "Gemma 3 4B (text), tied, window 1024, RoPE factor 8", 3880099328,
      GEMMA3(34, 2560, 8, 4, 256, 10240, 131072, 8, 1024) },
    { "gemma-3-12b", "gemma3-12b", "Gemma 3 12B (text), tied, window 1024, RoPE factor 8", 11765788416,
      GEMMA3(48, 3840, 16, 8, 256, 15360, 131072, 8, 1024) },
    { "gemma-3-27b", "gemma3-27b", "Gemma 3 27B (text), tied, window 1024, RoPE factor 8", 27009002240,
      GEMMA3(62, 5376, 32, 16, 128, 21504, 131072, 8, 1024) },
    { "gemma-4-e2b", "gemma4-e2b",
      "Gemma 4 E2B (text), tied: rows of each token and layer, the last 20 layers share keys", 4628569379,
      KEYS("gemma4", 35, 262144, true,
           "context_length=131072 attention.head_count_kv=1 attention.shared_kv_layers=20 "
           "embedding_length_per_layer_input=256 " E2B_FF GEMMA4(1536, 8, 512) FOUR_OF_FIVE,
           "attn_v.weight rope_freqs.weight layer_output_scale.weight") },
    { "gemma-4-e4b", "gemma4-e4b",
      "Gemma 4 E4B (text), tied: rows of each token and layer, the last 18 layers share keys", 7463013418,
      KEYS("gemma4", 42, 262144, true,
           "context_length=131072 attention.head_count_kv=2 attention.shared_kv_layers=18 "
           "embedding_length_per_layer_input=256 feed_forward_length=10240" GEMMA4(2560, 8, 512) FIVE_OF_SIX,
           "attn_v.weight rope_freqs.weight layer_output_scale.weight") },
    { "gemma-4-26b-a4b", "gemma4-26b-a4b gemma-4-26b",
      "Gemma 4 26B-A4B (text), tied: 128 experts, 8 of a token, beside a dense part", 25233141790,
      KEYS("gemma4", 30, 262144, true,
           "context_length=262144 attention.head_count_kv=8,8,8,8,8,2 embedding_length_per_layer_input=0 "
           "feed_forward_length=2112 expert_count=128 expert_used_count=8 "
           "expert_feed_forward_length=704" GEMMA4(2816, 16, 1024) FIVE_OF_SIX,
           "ffn_gate_up_exps.weight rope_freqs.weight layer_output_scale.weight") },
    { "gemma-4-31b", "gemma4-31b", "Gemma 4 31B (text), tied, window 1024", 30697345340,
      KEYS("gemma4", 60, 262144, true,
           "context_length=262144 attention.head_count_kv=16,16,16,16,16,4 embedding_length_per_layer_input=0 "
           "feed_forward_length=21504" GEMMA4(5376, 32, 1024) FIVE_OF_SIX,
           "rope_freqs.weight layer_output_scale.weight") },
    { "qwen3-235b-a22b", "qwen3-235b", "Qwen3 235B-A22B, 128 experts, 8 of a token", 235093634560,
      EXPERTS(0, 128, 8, 1536, "qwen3moe", 94, 4096, 64, 4, 128, 12288, 151936, 40960, 1e6f, 1e-6f, false, 1) },
    { "gpt-oss-120b", "", "gpt-oss 120B, 128 experts, 4 of a token, MXFP4, window 128", 116829156672,
      EXPERTS(128, 128, 4, 2880, "gpt-oss", 36, 2880, 64, 8, 64, 2880, 201088, 131072, 1.5e5f, 1e-5f, false, 32) },
    { "mistral-small-3.2-24b", "mistral-small mistral-small-3.1-24b", "Mistral Small 3.1 and 3.2, 24B (text)",
      23572403200, TRANSFORMER("llama", 40, 5120, 32, 8, 128, 32768, 131072, 131072, 1e9f, 1e-5f, false, 1) },
    { "smollm3-3b", "", "SmolLM3 3B, tied, every fourth layer does not turn", 3075098624,
      KEYS("smollm3", 36, 128256, true,
           "context_length=65536 embedding_length=2048 feed_forward_length=11008 attention.head_count=16 "
           "attention.head_count_kv=4 rope.freq_base=5e6 rope.dimension_count=128" RMS6,
           "") },
    { "phi-4", "phi4 phi-4-14b", "Phi-4 14B, one matrix for q, k and v", 14659507200,
      KEYS("phi3", 40, 100352, false,
           "context_length=16384 embedding_length=5120 feed_forward_length=17920 attention.head_count=40 "
           "attention.head_count_kv=10 rope.freq_base=250000.0 rope.dimension_count=128" RMS5,
           "attn_qkv.weight") },
    { "phi-4-mini", "phi4-mini phi-4-mini-3.8b", "Phi-4-mini 3.8B, tied, other angles beyond 4096 positions",
      3836021856,
      KEYS("phi3", 32, 200064, true,
           "context_length=131072 embedding_length=3072 feed_forward_length=8192 attention.head_count=24 "
           "attention.head_count_kv=8 rope.freq_base=10000.0 rope.dimension_count=96 rope.scaling.type=longrope "
           "rope.scaling.original_context_length=4096 rope.scaling.attn_factor=1.1902381" RMS5,
           "attn_qkv.weight rope_factors_short.weight rope_factors_long.weight") },
    { "olmo-7b", "olmo-1-7b", "OLMo 7B of 2024, norms without weights", 6888095744,
      KEYS("olmo", 32, 50304, false,
           "context_length=2048 embedding_length=4096 feed_forward_length=11008 attention.head_count=32 "
           "attention.head_count_kv=32 rope.freq_base=10000.0 rope.dimension_count=128 "
           "attention.layer_norm_epsilon=1e-5",
           "") },
    { "bitnet-2b", "bitnet-b1.58-2b-4t", "BitNet b1.58 2B-4T, norms within halves, squared ReLU", 2412820480,
      KEYS("bitnet-b1.58", 30, 128256, true,
           "context_length=4096 embedding_length=2560 feed_forward_length=6912 attention.head_count=20 "
           "attention.head_count_kv=5 rope.freq_base=500000.0 rope.dimension_count=128" RMS5,
           "") },
    { "olmo-3-7b", "olmo3-7b", "OLMo 3 7B, window 4096 on three layers of four", 7298011136,
      KEYS("olmo2", 32, 100278, false,
           "context_length=65536 embedding_length=4096 feed_forward_length=11008 attention.head_count=32 "
           "attention.head_count_kv=32 attention.sliding_window=4096 rope.freq_base=5e5 rope.scaling.type=yarn "
           "rope.scaling.factor=8.0 rope.scaling.original_context_length=8192" RMS6,
           "") },
    { "olmo-3-32b", "olmo3-32b", "OLMo 3 32B, window 4096 on three layers of four", 32233522176,
      KEYS("olmo2", 64, 100278, false,
           "context_length=65536 embedding_length=5120 feed_forward_length=27648 attention.head_count=40 "
           "attention.head_count_kv=8 attention.sliding_window=4096 rope.freq_base=5e5 rope.scaling.type=yarn "
           "rope.scaling.factor=8.0 rope.scaling.original_context_length=8192" RMS6,
           "") },
    { "glm-4.7-flash", "glm4.7-flash",
      "GLM-4.7-Flash 30B-A3B: latent attention, 64 experts, 4 of a token and a shared one", 29943393920,
      KEYS("deepseek2", 47, 154880, false,
           "context_length=202752 embedding_length=2048 feed_forward_length=10240 attention.head_count=20 "
           "attention.head_count_kv=1 attention.q_lora_rank=768 attention.kv_lora_rank=512 attention.key_length=576 "
           "attention.value_length=512 attention.key_length_mla=256 attention.value_length_mla=256 "
           "rope.dimension_count=64 rope.freq_base=1e6 leading_dense_block_count=1 expert_count=64 "
           "expert_used_count=4 expert_feed_forward_length=1536 expert_shared_count=1 "
           "expert_shared_feed_forward_length=1536 expert_weights_scale=1.8 expert_weights_norm=true "
           "expert_gating_func=2" RMS5,
           "attn_q_a.weight exp_probs_b.bias " SHARED) },
    { "deepseek-v2-lite", "", "DeepSeek-V2-Lite 16B: latent attention, 64 experts, 6 of a token and two shared ones",
      15706484224,
      KEYS("deepseek2", 27, 102400, false,
           "context_length=163840 embedding_length=2048 feed_forward_length=10944 attention.head_count=16 "
           "attention.head_count_kv=1 attention.kv_lora_rank=512 attention.key_length=576 attention.value_length=512 "
           "attention.key_length_mla=192 attention.value_length_mla=128 rope.dimension_count=64 "
           "rope.freq_base=10000.0 rope.scaling.type=yarn rope.scaling.factor=40.0 "
           "rope.scaling.original_context_length=4096 rope.scaling.yarn_log_multiplier=0.0707 "
           "leading_dense_block_count=1 expert_count=64 expert_used_count=6 expert_feed_forward_length=1408 "
           "expert_shared_count=2 expert_shared_feed_forward_length=2816 expert_weights_scale=1.0 "
           "expert_gating_func=1" RMS6,
           SHARED) },
    { "glm-4.5-air", "glm4.5-air", "GLM-4.5-Air 106B-A12B, 128 experts, 8 of a token and a shared one", 106852251264,
      KEYS("glm4moe", 46, 151552, false,
           "context_length=131072 embedding_length=4096 feed_forward_length=10944 attention.head_count=96 "
           "attention.head_count_kv=8 attention.key_length=128 attention.value_length=128 rope.dimension_count=64 "
           "rope.freq_base=1e6 leading_dense_block_count=1 expert_count=128 expert_used_count=8 "
           "expert_feed_forward_length=1408 expert_shared_feed_forward_length=1408 expert_shared_count=1 "
           "expert_weights_scale=1.0 expert_weights_norm=true expert_gating_func=2" RMS5,
           "attn_q.bias attn_k.bias attn_v.bias exp_probs_b.bias " SHARED) },
    { "llama-4-scout", "llama4-scout", "Llama 4 Scout 109B-A17B (text), 16 experts, one of a token and a shared one",
      107769861120,
      KEYS("llama4", 48, 202048, false,
           "context_length=10485760 embedding_length=5120 feed_forward_length=16384 attention.head_count=40 "
           "attention.head_count_kv=8 attention.key_length=128 attention.value_length=128 rope.dimension_count=128 "
           "rope.freq_base=5e5 interleave_moe_layer_step=1 expert_count=16 expert_used_count=1 "
           "expert_feed_forward_length=8192 expert_shared_feed_forward_length=8192" RMS5,
           "rope_freqs.weight " SHARED, .rope_factor = 16) },
    { "qwen3.5-4b", "", "Qwen3.5 4B, tied: three layers of four the gated delta rule", 4205751296,
      KEYS("qwen35", 32, 248320, true, QWEN35(2560, 9216, 16, 4, 32), "") },
    { "qwen3.5-9b", "", "Qwen3.5 9B: three layers of four the gated delta rule", 8953803264,
      KEYS("qwen35", 32, 248320, false, QWEN35(4096, 12288, 16, 4, 32), "") },
    { "qwen3.5-27b", "", "Qwen3.5 27B: three layers of four the gated delta rule", 26895998464,
      KEYS("qwen35", 64, 248320, false, QWEN35(5120, 17408, 24, 4, 48), "") },
    { "qwen3.5-35b-a3b", "", "Qwen3.5 35B-A3B: the gated delta rule, 256 experts, 8 of a token and a shared one",
      34660610688, KEYS("qwen35moe", 40, 248320, false, QWEN35(2048, 512, 16, 2, 32) QWEN_EXPERTS(256, 8), "") },
    { "qwen3-next-80b-a3b", "qwen3-next qwen3-next-80b",
      "Qwen3-Next 80B-A3B: the gated delta rule, 512 experts, 10 of a token and a shared one", 79674391296,
      KEYS("qwen3next", 48, 151936, false, QWEN35(2048, 5120, 16, 2, 32) QWEN_EXPERTS(512, 10), "") },
    { "mixtral-8x7b", "mixtral", "Mixtral 8x7B, 8 experts, 2 of a token", 46702792704,
      KEYS("llama", 32, 32000, false,
           "context_length=32768 embedding_length=4096 feed_forward_length=14336 attention.head_count=32 "
           "attention.head_count_kv=8 rope.dimension_count=128 rope.freq_base=1e6 expert_count=8 expert_used_count=2 "
           "expert_feed_forward_length=14336 vocab_size=32000" RMS5,
           "") },
    { "kimi-linear-48b-a3b", "kimi-linear",
      "Kimi Linear 48B-A3B: Kimi's delta rule, every fourth layer latent attention; 256 experts", 49122681728,
      KEYS("kimi-linear", 27, 163840, false,
           "context_length=1048576 embedding_length=2304 feed_forward_length=9216 attention.head_count=32 "
           "attention.head_count_kv=0,0,0,1,0,0,0,1,0,0,0,1,0,0,0,1,0,0,0,1,0,0,0,1,0,0,1 "
           "attention.key_length=576 attention.value_length=512 attention.key_length_mla=192 "
           "attention.value_length_mla=128 attention.kv_lora_rank=512 rope.dimension_count=64 ssm.conv_kernel=4 "
           "kda.head_dim=128 leading_dense_block_count=1 expert_count=256 expert_used_count=8 "
           "expert_feed_forward_length=1024 expert_shared_count=1 expert_shared_feed_forward_length=1024 "
           "expert_weights_scale=2.446 expert_gating_func=2" RMS5,
           "exp_probs_b.bias " SHARED) },
    { "granite-4.0-h-tiny", "granite-4-h-tiny granite-4-tiny",
      "Granite 4.0 H-Tiny 7B-A1B, tied: Mamba-2, every tenth layer attention; 64 experts, 6 of a token, a shared one",
      6939037248,
      KEYS("granitehybrid", 40, 100352, true,
           "context_length=131072 embedding_length=1536 feed_forward_length=512 attention.head_count=12 "
           "attention.head_count_kv=0,0,0,0,0,4,0,0,0,0 attention.scale=0.0078125 embedding_scale=12.0 "
           "residual_scale=0.22 logit_scale=6.0 rope.dimension_count=128 rope.freq_base=10000.0 "
           "rope.scaling.finetuned=false ssm.conv_kernel=4 ssm.inner_size=3072 ssm.state_size=128 "
           "ssm.time_step_rank=48 ssm.group_count=1 expert_count=64 expert_used_count=6 "
           "expert_feed_forward_length=512 expert_shared_feed_forward_length=1024" RMS5,
           "ssm_conv1d.bias " SHARED) },
    { "lfm2-1.2b", "", "LFM2 1.2B, tied: gated convolutions, six layers of sixteen attention", 1170340608,
      KEYS("lfm2", 16, 65536, true,
           "context_length=128000 embedding_length=2048 feed_forward_length=8192 attention.head_count=32 "
           "attention.head_count_kv=0,0,8,0,0,8,0,0,8,0,8,0,8,0,8,0 shortconv.l_cache=3 rope.freq_base=1e6" RMS5,
           "") },
    { "lfm2-8b-a1b", "", "LFM2 8B-A1B, tied: gated convolutions, 32 experts, 4 of a token", 8339930560,
      KEYS("lfm2moe", 24, 65536, true,
           "context_length=128000 embedding_length=2048 feed_forward_length=7168 attention.head_count=32 "
           "attention.head_count_kv=0,0,8,0,0,0,8,0,0,0,8,0,0,0,8,0,0,0,8,0,0,8,0,0 shortconv.l_cache=3 "
           "rope.freq_base=1e6 leading_dense_block_count=2 expert_count=32 expert_used_count=4 "
           "expert_feed_forward_length=1792 expert_gating_func=2" RMS5,
           "exp_probs_b.bias") },
    { "mamba-2.8b", "", "Mamba 2.8B, tied: no attention, no feed-forward parts", 2768345600,
      KEYS("mamba", 64, 50280, true,
           "context_length=1048576 embedding_length=2560 feed_forward_length=0 attention.head_count=0 "
           "ssm.conv_kernel=4 ssm.inner_size=5120 ssm.state_size=16 ssm.time_step_rank=160" RMS5,
           "ssm_conv1d.bias") },
    { "falcon-mamba-7b", "falcon-mamba", "Falcon-Mamba 7B: no attention, no feed-forward parts", 7272665088,
      KEYS("mamba", 64, 65024, false,
           "context_length=1048576 embedding_length=4096 feed_forward_length=0 attention.head_count=0 "
           "ssm.conv_kernel=4 ssm.inner_size=8192 ssm.state_size=16 ssm.time_step_rank=256 "
           "ssm.dt_b_c_rms=true" RMS5,
           "ssm_conv1d.bias") },
    { "jamba-v0.1", "jamba",
      "Jamba v0.1: Mamba, every eighth layer attention, every second one 16 experts, 2 of a token", 51570323328,
      KEYS("jamba", 32, 65536, false,
           "context_length=262144 embedding_length=4096 feed_forward_length=14336 attention.head_count=32 "
           "attention.head_count_kv=0,0,0,0,8,0,0,0,0,0,0,0,8,0,0,0,0,0,0,0,8,0,0,0,0,0,0,0,8,0,0,0 "
           "ssm.conv_kernel=4 ssm.inner_size=8192 ssm.state_size=16 ssm.time_step_rank=256 expert_count=16 "
           "expert_used_count=2 expert_feed_forward_length=14336 interleave_moe_layer_step=2" RMS6,
           "ssm_conv1d.bias") },
    { "falcon-h1-0.5b", "", "Falcon-H1 0.5B: Mamba-2 beside attention in every layer", 521411104,
      KEYS("falcon-h1", 36, 32784, false,
           "context_length=16384 embedding_length=1024 feed_forward_length=2048 attention.head_count=8 "
           "attention.head_count_kv=2 attention.key_length=64 attention.value_length=64 rope.freq_base=1e11 "
           "ssm.conv_kernel=4 ssm.inner_size=1536 ssm.state_size=128 ssm.time_step_rank=24 ssm.group_count=1" RMS5,
           "ssm_conv1d.bias") },
    { "nemotron-nano-9b-v2", "nemotron-nano-9b",
      "Nemotron Nano 9B v2: each layer one half, Mamba-2, attention or relu²", 8888227328,
      KEYS("nemotron_h", 56, 131072, false,
           "context_length=131072 embedding_length=4480 " NANO2_FF NANO2_KV
           "attention.head_count=40 attention.key_length=128 attention.value_length=128 ssm.conv_kernel=4 "
           "ssm.inner_size=10240 ssm.state_size=128 ssm.time_step_rank=128 ssm.group_count=8" BOTH5,
           "ssm_conv1d.bias") },
    { "nemotron-3-nano-30b-a3b", "nemotron-3-nano",
      "Nemotron 3 Nano 30B-A3B: each layer one half, Mamba-2, attention or 128 experts, 6 of a token, a shared one",
      31577940288,
      KEYS("nemotron_h_moe", 52, 131072, false,
           "context_length=1048576 embedding_length=2688 " NANO3_FF NANO3_KV
           "attention.head_count=32 attention.key_length=128 attention.value_length=128 ssm.conv_kernel=4 "
           "ssm.inner_size=4096 ssm.state_size=128 ssm.time_step_rank=64 ssm.group_count=8 expert_count=128 "
           "expert_used_count=6 expert_feed_forward_length=1856 expert_shared_feed_forward_length=3712 "
           "expert_weights_norm=true expert_weights_scale=2.5 expert_gating_func=2" BOTH5,
           "ssm_conv1d.bias exp_probs_b.bias ffn_up_shexp.weight ffn_down_shexp.weight") },
    { "qwen3-embedding-0.6b", "qwen3-embedding", "Qwen3-Embedding 0.6B, tied: the last row of a text", 595776512,
      KEYS("qwen3", 28, 151669, true,
           "context_length=32768 embedding_length=1024 feed_forward_length=3072 attention.head_count=16 "
           "attention.head_count_kv=8 attention.key_length=128 attention.value_length=128 rope.freq_base=1e6 "
           "pooling_type=3" RMS6,
           "") },
    { "embeddinggemma-300m", "embeddinggemma gemma-embedding",
      "EmbeddingGemma 300M: attention both ways, windows of 512, the mean, two layers behind it", 307581696,
      KEYS("gemma-embedding", 24, 262144, false,
           "context_length=2048 embedding_length=768 feed_forward_length=1152 attention.head_count=3 "
           "attention.head_count_kv=1 attention.key_length=256 attention.value_length=256 "
           "attention.sliding_window=512 rope.freq_base=1e6 pooling_type=1 dense_2_feat_in=768 "
           "dense_2_feat_out=3072 dense_3_feat_in=3072 dense_3_feat_out=768" RMS6,
           "dense_2.weight dense_3.weight") },
    { "bge-small-en-v1.5", "bge-small", "BGE small 1.5: BERT, the first row", 33212160,
      KEYS("bert", 12, 30522, false, BERT(512, 384, 1536, 12, "1e-12") " pooling_type=2", BERT_HAS) },
    { "nomic-embed-text-v1.5", "nomic-embed nomic-embed-v1.5",
      "Nomic Embed 1.5: BERT with rotations and gates, the mean", 136731648,
      KEYS("nomic-bert", 12, 30528, false, BERT(2048, 768, 3072, 12, "1e-12") " rope.freq_base=1000.0 pooling_type=1",
           "attn_qkv.weight token_types.weight") },
    { "nomic-embed-text-v2-moe", "nomic-embed-v2-moe nomic-embed-v2",
      "Nomic Embed 2: BERT with rotations, 8 experts in every other layer, 2 of a token", 475289088,
      KEYS("nomic-bert-moe", 12, 250048, false,
           BERT(512, 768, 3072, 12, "1e-5") " expert_count=8 expert_used_count=2 expert_feed_forward_length=3072 "
                                            "moe_every_n_layers=2 pooling_type=1",
           BERT_HAS) },
    { "jina-embeddings-v3", "jina-v3", "Jina Embeddings 3: XLM-RoBERTa large with rotations, the mean", 558315520,
      KEYS("jina-bert-v3", 24, 250002, false,
           BERT(8192, 1024, 4096, 16, "1e-5") " rope.freq_base=20000.0 pooling_type=1", BERT_HAS) },
    { "gte-modernbert-base", "modernbert-base modernbert", "ModernBERT base: windows on two layers of three", 149014272,
      KEYS("modern-bert", 22, 50368, false,
           BERT(8192, 768, 1152, 12, "1e-5") " attention.sliding_window=128 attention.sliding_window_pattern=3 "
                                             "rope.freq_base=160000.0 rope.freq_base_swa=10000.0 pooling_type=2",
           "attn_qkv.weight") },
    { "eurobert-210m", "eurobert", "EuroBERT 210M: Llama both ways, the mean", 211766016,
      KEYS("eurobert", 12, 128256, false,
           "context_length=8192 embedding_length=768 feed_forward_length=3072 attention.head_count=12 "
           "attention.head_count_kv=12 rope.freq_base=250000.0 attention.causal=false pooling_type=1" RMS5,
           "") },
    { "llama-embed-nemotron-8b", "llama-embed-nemotron", "Llama-Embed-Nemotron 8B: Llama 3.1 both ways, the mean",
      7504924672,
      KEYS("llama-embed", 32, 128256, false,
           "context_length=131072 embedding_length=4096 feed_forward_length=14336 attention.head_count=32 "
           "attention.head_count_kv=8 rope.freq_base=500000.0 attention.causal=false pooling_type=1" RMS5,
           "") },
    { "bge-reranker-v2-m3", "bge-reranker", "BGE reranker 2 M3: XLM-RoBERTa large, one score", 567754753,
      KEYS("bert", 24, 250002, false, BERT(8192, 1024, 4096, 16, "1e-5") " pooling_type=4",
           BERT_HAS " cls.weight cls.bias cls.output.weight cls.output.bias") },
    { "rwkv7-0.1b", "rwkv-0.1b rwkv7-191m rwkv-7-0.1b", "RWKV-7 World 0.1B", 191034624,
      RWKV("rwkv7", 12, 768, 3072, 64, 64, 32, 128, 0, 0) },
    { "rwkv7-0.4b", "rwkv-0.4b rwkv7-450m rwkv-7-0.4b", "RWKV-7 World 0.4B", 450767872,
      RWKV("rwkv7", 24, 1024, 4096, 64, 64, 32, 128, 0, 0) },
    { "rwkv7-1.5b", "rwkv-1.5b rwkv-7-1.5b", "RWKV-7 World 1.5B", 1527404544,
      RWKV("rwkv7", 24, 2048, 8192, 96, 96, 64, 256, 0, 0) },
    { "rwkv7-2.9b", "rwkv-2.9b rwkv-7-2.9b", "RWKV-7 World 2.9B", 2947735040,
      RWKV("rwkv7", 32, 2560, 10240, 96, 96, 64, 320, 0, 0) },
    { "rwkv6-1.6b", "rwkv-1.6b rwkv-6-1.6b", "RWKV-6 Finch 1.6B, stream halved every 6 layers", 1599873024,
      RWKV("rwkv6", 24, 2048, 7168, 64, 0, 0, 0, 32, 6) },
};
enum { n_presets = sizeof presets / sizeof *presets };

static bool has_word(const char *words, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = words; *p && n;) {
        size_t k = strcspn(p, " ");
        if (k == n && !strncasecmp(p, w, n)) return true;
        p += k;
        while (*p == ' ') p++;
    }
    return false;
}

const hn_synth_shape *hn_synth_preset(const char *name, const char **canonical)
{
    for (int i = 0; i < n_presets; i++)
        if (!strcasecmp(presets[i].name, name) || has_word(presets[i].aliases, name)) {
            if (canonical) *canonical = presets[i].name;
            return &presets[i].s;
        }
    return NULL;
}

size_t hone_synth_presets(const hone_synth_preset **out)
{
    /* Written in full by whoever comes first; all write the same bytes. */
    static hone_synth_preset list[n_presets];
    static _Atomic int state; /* 0 none, 1 being made, 2 ready */
    int none = 0;
    if (atomic_compare_exchange_strong(&state, &none, 1)) {
        for (int i = 0; i < n_presets; i++)
            list[i] =
                (hone_synth_preset){ presets[i].name, presets[i].s.arch, presets[i].description, presets[i].n_params };
        atomic_store(&state, 2);
    }
    while (atomic_load(&state) != 2) {}
    if (out) *out = list;
    return n_presets;
}
