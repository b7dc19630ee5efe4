/* dialect: files that say the same in other words. Part of ollama's registry was made by ollama's own converter: other
 * names of architectures, keys and tensors, values left out, tables of tokens longer than the embedding. Such a file
 * is told from others here and said in the words of llama.cpp's converter, which the rest of this room reads.
 * Owns these rules; refuses to change what a key means: what is not listed stays, and is refused by its name (keys.c).
 * Facts: ollama/ollama, convert/ and llama/compat/ (2026). */
#include "model/model.h"

#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

typedef struct renaming {
    const char *arch, *from, *to;
} renaming;

/* general.architecture, and with it the beginning of keys */
static const renaming arch_names[] = {
    { "gptoss", "gptoss", "gpt-oss" },
    { "olmo3", "olmo3", "olmo2" }, /* hone's, as llama.cpp's, is both */
    { "glm4moelite", "glm4moelite", "deepseek2" },
    /* models that see: the positions of text are equal in all parts, and its layers get nothing from images */
    { "qwen2vl", "qwen2vl", "qwen2" },
    { "qwen25vl", "qwen25vl", "qwen2" },
    { "qwen3vl", "qwen3vl", "qwen3" },
    { "qwen3vlmoe", "qwen3vlmoe", "qwen3moe" },
    { "paddleocr", "paddleocr", "qwen2" },
    { "deepseek2-ocr", "deepseek2-ocr", "glm4moe" },
    /* other makers' names of the same formula, whose converters wrote rows in its order */
    { "internlm2", "internlm2", "llama" },
    { "xverse", "xverse", "llama" },
    { "minicpm", "minicpm", "granite" },
    { "qwen", "qwen", "qwen2" },
    { "baichuan", "baichuan", "llama" },
    { "pangu-embedded", "pangu-embedded", "seed_oss" }, /* with the second norm's usual name */
    { "codeshell", "codeshell", "starcoder2" },
    { "jais2", "jais2", "nemotron" },
    { "bailingmoe", "bailingmoe", "deepseek" },
    { "hy_v3", "hy_v3", "bailingmoe2" },
    { "bitnet-25", "bitnet-25", "bitnet-b1.58" }, /* the same formula in the fork that reads both */
};

static const renaming key_names[] = {
    { "mistral3", "mistral3.rope.scaling.beta_fast", "mistral3.rope.scaling.yarn_beta_fast" },
    { "mistral3", "mistral3.rope.scaling.beta_slow", "mistral3.rope.scaling.yarn_beta_slow" },
    { "mistral3", "mistral3.rope.scaling.mscale_all_dim", "mistral3.rope.scaling.yarn_log_multiplier" },
    { "mistral3", "mistral3.rope.scaling_beta", "mistral3.attention.temperature_scale" },
};

static const renaming tensor_names[] = {
    { "gptoss", "attn_out.weight", "attn_output.weight" },
    { "gptoss", "attn_out.bias", "attn_output.bias" },
    { "gptoss", "attn_sinks", "attn_sinks.weight" },
    { "gptoss", "ffn_norm.weight", "post_attention_norm.weight" },
    { "qwen35", "ssm_dt", "ssm_dt.bias" },
    { "qwen35moe", "ssm_dt", "ssm_dt.bias" },
    { "qwen3next", "ssm_dt", "ssm_dt.bias" },
    { "gemma4", "ffn_gate_inp.per_expert_scale", "ffn_down_exps.scale" },
    { "nemotron_h_moe", "ffn_latent_in.weight", "ffn_latent_down.weight" },
    { "nemotron_h_moe", "ffn_latent_out.weight", "ffn_latent_up.weight" },
    { "nemotron_h_omni", "ffn_latent_in.weight", "ffn_latent_down.weight" },
    { "nemotron_h_omni", "ffn_latent_out.weight", "ffn_latent_up.weight" },
    { "hy_v3", "exp_probs_b", "exp_probs_b.bias" },
    { "pangu-embedded", "ffn_norm.weight", "post_attention_norm.weight" },
    { "deepseek2-ocr", "ffn_norm.weight", "post_attention_norm.weight" },
};

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && !memcmp(s.ptr, t, s.len); }
static bool has(const hn_gguf *g, const char *key) { return hn_gguf_find(g, key) >= 0; }

/* A string that is absent, or of another type, is empty. */
static hone_str string_of(const hn_gguf *g, const char *key)
{
    hone_str s = { "", 0 };
    return hn_gguf_get_str(g, key, &s, NULL, NULL) == HONE_OK ? s : (hone_str){ "", 0 };
}

/* A number that is absent, or of another type, is 0. */
static uint32_t number_of(const hn_gguf *g, const char *key)
{
    uint32_t v = 0;
    return hn_gguf_get_u32(g, key, &v, NULL, NULL) == HONE_OK ? v : 0;
}

static hone_status f32_if_absent(hn_gguf *g, const char *key, float v, hone_error *err)
{
    return has(g, key) ? HONE_OK : hn_gguf_set_f32(g, key, v, err);
}

/* 0: what llama.cpp saves of numbers that a family does not read. */
static hone_status f32_if_none(hn_gguf *g, const char *key, float v, hone_error *err)
{
    float now = 0;
    const hone_status st = hn_gguf_get_f32(g, key, &now, NULL, NULL);
    return st != HONE_OK || now != 0 ? HONE_OK : hn_gguf_set_f32(g, key, v, err);
}

static hone_status drop_if_none(hn_gguf *g, const char *key, hone_error *err)
{
    float real = 0;
    uint32_t whole = 0;
    const bool none = (hn_gguf_get_f32(g, key, &real, NULL, NULL) == HONE_OK && real == 0) ||
                      (hn_gguf_get_u32(g, key, &whole, NULL, NULL) == HONE_OK && whole == 0);
    return none ? hn_gguf_drop_key(g, key, err) : HONE_OK;
}

static hone_status u32_if_absent(hn_gguf *g, const char *key, uint32_t v, hone_error *err)
{
    return has(g, key) ? HONE_OK : hn_gguf_set_u32(g, key, v, err);
}

static hone_status str_if_absent(hn_gguf *g, const char *key, const char *v, hone_error *err)
{
    return has(g, key) ? HONE_OK : hn_gguf_set_str(g, key, v, err);
}

/* No pre-tokenizer, or that of files whose converter knew none. */
static hone_status name_pre(hn_gguf *g, const char *pre, hone_error *err)
{
    hone_str now = string_of(g, "tokenizer.ggml.pre");
    return now.len && !is(now, "default") ? HONE_OK : hn_gguf_set_str(g, "tokenizer.ggml.pre", pre, err);
}

/* No more tokens than the embedding has rows: what stands behind them marks images and sound. */
static hone_status cut_tokens(hn_gguf *g, uint64_t rows, hone_error *err)
{
    hone_status st;
    TRY(hn_gguf_cut_array(g, "tokenizer.ggml.tokens", rows, err));
    TRY(hn_gguf_cut_array(g, "tokenizer.ggml.scores", rows, err));
    return hn_gguf_cut_array(g, "tokenizer.ggml.token_type", rows, err);
}

/* ---- Gemma -------------------------------------------------------------------------------------------------- */

/* As Google describes it: a system text goes before the first question, roles are user and model. */
static const char gemma_template[] =
    "{{ bos_token }}{% set ns = namespace(before='') %}"
    "{% for m in messages %}"
    "{% if m['role'] == 'system' %}{% set ns.before = m['content'] + '\n\n' %}"
    "{% else %}"
    "{{ '<start_of_turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\n' }}"
    "{{ ns.before + (m['content'] | trim) + '<end_of_turn>\n' }}{% set ns.before = '' %}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}";

/* Embeddings of Gemma were written as gemma3 with two more layers. */
static hone_status embedding_gemma(hn_gguf *g, hone_error *err)
{
    hone_status st;
    const hn_gguf_tensor *a = hn_gguf_find_tensor(g, "dense.0.weight"), *b = hn_gguf_find_tensor(g, "dense.1.weight");
    uint64_t wide = a->ne[1], out = b ? b->ne[1] : 0;
    TRY(hn_gguf_set_str(g, "general.architecture", "gemma-embedding", err));
    TRY(hn_gguf_rename_keys(g, "gemma3.", "gemma-embedding.", err));
    TRY(hn_gguf_drop_key(g, "gemma-embedding.attention.causal", err));
    TRY(hn_gguf_drop_key(g, "gemma-embedding.attention.sliding_window_pattern", err));
    TRY(f32_if_absent(g, "gemma-embedding.attention.layer_norm_rms_epsilon", 1e-6f, err));
    TRY(f32_if_absent(g, "gemma-embedding.rope.freq_base", 1e6f, err));
    TRY(f32_if_absent(g, "gemma-embedding.rope.freq_base_swa", 1e4f, err));
    TRY(u32_if_absent(g, "gemma-embedding.pooling_type", 1, err)); /* the mean */
    TRY(hn_gguf_set_u32(g, "gemma-embedding.dense_2_feat_out", wide <= UINT32_MAX ? (uint32_t)wide : 0, err));
    TRY(hn_gguf_set_u32(g, "gemma-embedding.dense_3_feat_out", out <= UINT32_MAX ? (uint32_t)out : 0, err));
    TRY(hn_gguf_rename_tensors(g, "dense.0.weight", "dense_2.weight", err));
    TRY(hn_gguf_rename_tensors(g, "dense.1.weight", "dense_3.weight", err));
    return hn_gguf_rename_tensors(g, "norm.weight", "output_norm.weight", err);
}

static hone_status gemma3(hn_gguf *g, hone_error *err)
{
    hone_status st;
    if (hn_gguf_find_tensor(g, "dense.0.weight")) return embedding_gemma(g, err);
    bool local = has(g, "gemma3.rope.local.freq_base") || has(g, "gemma3.rope.global.freq_base");
    if (!local && has(g, "gemma3.attention.layer_norm_rms_epsilon")) return HONE_OK;
    TRY(f32_if_absent(g, "gemma3.attention.layer_norm_rms_epsilon", 1e-6f, err));
    TRY(hn_gguf_rename_key(g, "gemma3.rope.global.freq_base", "gemma3.rope.freq_base", err));
    TRY(hn_gguf_rename_key(g, "gemma3.rope.local.freq_base", "gemma3.rope.freq_base_swa", err));
    TRY(f32_if_absent(g, "gemma3.rope.freq_base", 1e6f, err));
    TRY(f32_if_absent(g, "gemma3.rope.freq_base_swa", 1e4f, err));
    bool scaled = has(g, "gemma3.rope.scaling.type") || has(g, "gemma3.rope.scaling.factor");
    if (number_of(g, "gemma3.context_length") >= 131072 && !scaled) { /* all but the smallest */
        TRY(hn_gguf_set_str(g, "gemma3.rope.scaling.type", "linear", err));
        TRY(hn_gguf_set_f32(g, "gemma3.rope.scaling.factor", 8, err));
    }
    const hn_gguf_tensor *embd = hn_gguf_find_tensor(g, "token_embd.weight");
    if (embd) TRY(cut_tokens(g, embd->ne[1], err));
    return str_if_absent(g, "tokenizer.chat_template", gemma_template, err);
}

/* Tokens of images and sound have rows in one table and none in the other; byte tokens are not typed so. */
static hone_status gemma3n(hn_gguf *g, hone_error *err)
{
    enum { NORMAL = 1, BYTE = 6 };
    hone_status st;
    const hn_gguf_tensor *embd = hn_gguf_find_tensor(g, "token_embd.weight"),
                         *ple = hn_gguf_find_tensor(g, "per_layer_token_embd.weight");
    hn_gguf_array text = { 0 }, type = { 0 };
    hone_str s;
    uint64_t at = 0;
    if (!embd || !ple || embd->ne[1] <= ple->ne[1]) return HONE_OK;
    uint64_t n = ple->ne[1];
    TRY(hn_gguf_cut_rows(g, "token_embd.weight", n, err));
    TRY(cut_tokens(g, n, err));
    TRY(hn_gguf_set_str(g, "tokenizer.ggml.model", "llama", err));
    if (hn_gguf_get_array(g, "tokenizer.ggml.tokens", &text, NULL, NULL) != HONE_OK ||
        hn_gguf_get_array(g, "tokenizer.ggml.token_type", &type, NULL, NULL) != HONE_OK ||
        type.elem_type != HONE_KV_I32 || type.count != text.count || text.elem_type != HONE_KV_STRING)
        return HONE_OK; /* the tokenizer says what is wrong with them */
    int32_t *types = malloc((size_t)type.n_bytes + 1);
    if (!types) return HN_FAIL(err, HONE_E_NOMEM, "%s: types of tokens", hn_gguf_path(g));
    memcpy(types, type.data, (size_t)type.n_bytes);
    for (uint64_t i = 0; i < type.count && hn_gguf_next_str(&text, &at, &s); i++)
        if (s.len == 6 && !memcmp(s.ptr, "<0x", 3) && s.ptr[5] == '>') types[i] = BYTE;
        else if (s.len > 7 && !memcmp(s.ptr, "<unused", 7)) types[i] = NORMAL;
    st = hn_gguf_set_array(g, "tokenizer.ggml.token_type", HONE_KV_I32, types, type.count, err);
    free(types);
    return st;
}

/* A BPE vocabulary that says it is SentencePiece's: only BPE has merges. */
static hone_status gemma4(hn_gguf *g, hone_error *err)
{
    bool bpe = is(string_of(g, "tokenizer.ggml.model"), "llama") && has(g, "tokenizer.ggml.merges");
    return bpe ? hn_gguf_set_str(g, "tokenizer.ggml.model", "gemma4", err) : HONE_OK;
}

/* ---- others ------------------------------------------------------------------------------------------------- */

static hone_status gptoss(hn_gguf *g, hone_error *err)
{
    hone_status st;
    const hn_gguf_tensor *gate = hn_gguf_find_tensor(g, "blk.0.ffn_gate_exps.weight");
    if (gate && gate->ne[1] <= UINT32_MAX)
        TRY(u32_if_absent(g, "gpt-oss.expert_feed_forward_length", (uint32_t)gate->ne[1], err));
    TRY(str_if_absent(g, "gpt-oss.rope.scaling.type", "yarn", err));
    return has(g, "tokenizer.ggml.model") ? hn_gguf_set_str(g, "tokenizer.ggml.pre", "gpt-4o", err) : HONE_OK;
}

/* Lengths were those of heads, and the *_mla ones those of what is cached: the other way round. */
static hone_status glm4moelite(hn_gguf *g, hone_error *err)
{
    hone_status st;
    uint32_t k = number_of(g, "deepseek2.attention.key_length"), v = number_of(g, "deepseek2.attention.value_length"),
             rank = number_of(g, "deepseek2.attention.kv_lora_rank"),
             rope = number_of(g, "deepseek2.rope.dimension_count");
    if (k && v && rank && rope && rank < UINT32_MAX - rope) {
        TRY(hn_gguf_set_u32(g, "deepseek2.attention.key_length_mla", k, err));
        TRY(hn_gguf_set_u32(g, "deepseek2.attention.value_length_mla", v, err));
        TRY(hn_gguf_set_u32(g, "deepseek2.attention.key_length", rank + rope, err));
        TRY(hn_gguf_set_u32(g, "deepseek2.attention.value_length", rank, err));
    }
    TRY(hn_gguf_set_u32(g, "deepseek2.attention.head_count_kv", 1, err));
    return has(g, "tokenizer.ggml.model") ? hn_gguf_set_str(g, "tokenizer.ggml.pre", "glm4", err) : HONE_OK;
}

static hone_status lfm2(hn_gguf *g, hone_error *err)
{
    hone_status st;
    const char *width =
        is(string_of(g, "general.architecture"), "lfm2") ? "lfm2.feed_forward_length" : "lfm2moe.feed_forward_length";
    const hn_gguf_tensor *gate = hn_gguf_find_tensor(g, "blk.0.ffn_gate.weight");
    if (!hn_gguf_find_tensor(g, "output_norm.weight") || hn_gguf_find_tensor(g, "token_embd_norm.weight"))
        return HONE_OK;
    TRY(hn_gguf_rename_tensors(g, "output_norm.weight", "token_embd_norm.weight", err));
    if (gate && gate->ne[1] <= UINT32_MAX) /* the key has what the width was made from */
        TRY(hn_gguf_set_u32(g, width, (uint32_t)gate->ne[1], err));
    return has(g, "tokenizer.ggml.model") ? hn_gguf_set_str(g, "tokenizer.ggml.pre", "lfm2", err) : HONE_OK;
}

/* Ministral 3 has the magnitude of YaRN twice; where both are one, it is that of all. */
static hone_status mistral3(hn_gguf *g, hone_error *err)
{
    hone_status st;
    float a = 0, b = 1;
    bool both = hn_gguf_get_f32(g, "mistral3.rope.scaling.mscale", &a, NULL, NULL) == HONE_OK &&
                hn_gguf_get_f32(g, "mistral3.rope.scaling.yarn_log_multiplier", &b, NULL, NULL) == HONE_OK;
    if (both && a == b) TRY(hn_gguf_drop_key(g, "mistral3.rope.scaling.mscale", err));
    return is(string_of(g, "tokenizer.ggml.model"), "gpt2") ? name_pre(g, "tekken", err) : HONE_OK;
}

/* Scout norms the heads of queries and keys, Maverick, with 128 experts, does not; files of llama.cpp do not say it. */
static hone_status llama4(hn_gguf *g, hone_error *err)
{
    bool normed, found;
    if (hn_gguf_get_bool(g, "llama4.use_qk_norm", &normed, &found, NULL) != HONE_OK || !found) return HONE_OK;
    bool maverick = number_of(g, "llama4.expert_count") == 128;
    return normed != maverick ? hn_gguf_drop_key(g, "llama4.use_qk_norm", err) : HONE_OK;
}

/* Is token i text? */
static bool token_is(const hn_gguf *g, uint64_t i, const char *text)
{
    hn_gguf_array a = { 0 };
    hone_str s = { "", 0 };
    uint64_t at = 0;
    if (hn_gguf_get_array(g, "tokenizer.ggml.tokens", &a, NULL, NULL) != HONE_OK || a.elem_type != HONE_KV_STRING ||
        a.count <= i)
        return false;
    for (uint64_t k = 0; k <= i; k++)
        if (!hn_gguf_next_str(&a, &at, &s)) return false;
    return is(s, text);
}

/* The first files of Llama 3 have no pre-tokenizer; their tokens tell them. */
static hone_status llama(hn_gguf *g, hone_error *err)
{
    hone_str pre = string_of(g, "tokenizer.ggml.pre");
    if ((pre.len && !is(pre, "default")) || !is(string_of(g, "tokenizer.ggml.model"), "gpt2")) return HONE_OK;
    bool llama3 = token_is(g, 128006, "<|start_header_id|>") && token_is(g, 128009, "<|eot_id|>");
    return llama3 ? name_pre(g, "llama-bpe", err) : HONE_OK;
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The normalisation map of SentencePiece as an array of strings, each one letter of base64. */
static hone_status bert(hn_gguf *g, hone_error *err)
{
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    hn_gguf_array a = { 0 };
    hone_str s;
    uint64_t at = 0, n = 0;
    uint32_t bits = 0;
    int n_bit = 0;
    if (!has(g, key) || hn_gguf_get_array(g, key, &a, NULL, NULL) != HONE_OK || a.elem_type != HONE_KV_STRING)
        return HONE_OK;
    unsigned char *map = malloc((size_t)(a.count / 4 + 1) * 3);
    if (!map) return HN_FAIL(err, HONE_E_NOMEM, "%s: %s", hn_gguf_path(g), key);
    hone_status st = HONE_OK;
    for (uint64_t i = 0; i < a.count && hn_gguf_next_str(&a, &at, &s); i++) {
        int v = s.len == 1 ? base64_value(*s.ptr) : -1;
        if (s.len == 1 && *s.ptr == '=') break;
        if (v < 0) {
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%llu] is \"%s\", expected a letter of base64", hn_gguf_path(g),
                         key, (unsigned long long)i, HN_ESC(s.ptr, s.len < 20 ? s.len : 20));
            break;
        }
        bits = bits << 6 | (uint32_t)v;
        n_bit += 6;
        if (n_bit < 8) continue;
        n_bit -= 8;
        map[n++] = (unsigned char)(bits >> n_bit);
    }
    if (st == HONE_OK) st = hn_gguf_set_array(g, key, HONE_KV_U8, map, n, err);
    free(map);
    return st;
}

/* ---- all together --------------------------------------------------------------------------------------------- */

/* Experts of less than the stream have that width in their tensors alone. */
static hone_status nemotron_moe(hn_gguf *g, hone_error *err)
{
    static const char key[] = "nemotron_h_moe.moe_latent_size";
    char name[64];
    const uint32_t n_layer = number_of(g, "nemotron_h_moe.block_count");
    for (uint32_t il = 0; il < n_layer && il < HN_MAX_LAYER && !has(g, key); il++) {
        snprintf(name, sizeof name, "blk.%u.ffn_latent_down.weight", il);
        const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
        if (t && t->ne[1] <= UINT32_MAX) return hn_gguf_set_u32(g, key, (uint32_t)t->ne[1], err);
    }
    return HONE_OK;
}

/* Nemotron with eyes and ears is the text model that its keys describe. */
static hone_status nemotron_omni(hn_gguf *g, hone_error *err)
{
    bool experts = number_of(g, "nemotron_h_omni.expert_count") > 0;
    hone_status st;
    TRY(hn_gguf_set_str(g, "general.architecture", experts ? "nemotron_h_moe" : "nemotron_h", err));
    TRY(hn_gguf_rename_keys(g, "nemotron_h_omni.", experts ? "nemotron_h_moe." : "nemotron_h.", err));
    return nemotron_moe(g, err);
}

/* Layers behind which images are added once more. */
static hone_status qwen3vl(hn_gguf *g, hone_error *err)
{
    hone_status st;
    TRY(hn_gguf_drop_key(g, "qwen3.n_deepstack_layers", err));
    return hn_gguf_drop_key(g, "qwen3moe.n_deepstack_layers", err);
}

/* Files of MiniCPM before its converter wrote scalars mean those of all models of then; everything turns. */
static hone_status minicpm(hn_gguf *g, hone_error *err)
{
    hone_status st;
    const uint32_t n_layer = number_of(g, "granite.block_count"), n_embd = number_of(g, "granite.embedding_length");
    TRY(f32_if_absent(g, "granite.embedding_scale", 12, err));
    TRY(f32_if_absent(g, "granite.residual_scale", n_layer ? 1.4f / sqrtf((float)n_layer) : 1, err));
    TRY(f32_if_absent(g, "granite.logit_scale", (float)n_embd / 256, err)); /* logits are divided by it */
    return hn_gguf_drop_key(g, "granite.rope.scaling.finetuned", err);
}

/* MiniCPM 3 has no others either, and no width of values: its one model's is an even share of the stream. */
static hone_status minicpm3(hn_gguf *g, hone_error *err)
{
    hone_status st;
    const uint32_t n_layer = number_of(g, "minicpm3.block_count"), n_embd = number_of(g, "minicpm3.embedding_length"),
                   n_head = number_of(g, "minicpm3.attention.head_count");
    TRY(f32_if_none(g, "minicpm3.embedding_scale", 12, err));
    TRY(f32_if_none(g, "minicpm3.residual_scale", n_layer ? 1.4f / sqrtf((float)n_layer) : 1, err));
    TRY(f32_if_none(g, "minicpm3.logit_scale", (float)n_embd / 256, err));
    TRY(drop_if_none(g, "minicpm3.attention.key_length_mla", err));
    TRY(drop_if_none(g, "minicpm3.attention.value_length_mla", err));
    if (has(g, "minicpm3.attention.value_length_mla") || !n_head || n_embd % n_head) return HONE_OK;
    return u32_if_absent(g, "minicpm3.attention.value_length", n_embd / n_head, err);
}

/* Either norm's epsilon is there, and that of the other no number. Of two that are none one stays, to be named. */
static hone_status one_epsilon(hn_gguf *g, const char *layer, const char *rms, hone_error *err)
{
    hone_status st;
    if (has(g, rms)) TRY(drop_if_none(g, layer, err));
    return has(g, layer) ? drop_if_none(g, rms, err) : HONE_OK;
}

static hone_status phimoe(hn_gguf *g, hone_error *err)
{
    return one_epsilon(g, "phimoe.attention.layer_norm_epsilon", "phimoe.attention.layer_norm_rms_epsilon", err);
}

static hone_status cohere2moe(hn_gguf *g, hone_error *err)
{
    return one_epsilon(g, "cohere2moe.attention.layer_norm_epsilon", "cohere2moe.attention.layer_norm_rms_epsilon",
                       err);
}

/* Qwen's first width was that of gate and up together. */
static hone_status qwen(hn_gguf *g, hone_error *err)
{
    const uint32_t n_ff = number_of(g, "qwen2.feed_forward_length");
    return !n_ff || n_ff % 2 ? HONE_OK : hn_gguf_set_u32(g, "qwen2.feed_forward_length", n_ff / 2, err);
}

static hone_status rename_arch(hn_gguf *g, const renaming *r, hone_error *err)
{
    char from[32], to[32];
    hone_status st;
    snprintf(from, sizeof from, "%s.", r->from);
    snprintf(to, sizeof to, "%s.", r->to);
    TRY(hn_gguf_set_str(g, "general.architecture", r->to, err));
    return hn_gguf_rename_keys(g, from, to, err);
}

/* Baichuan turns in the models of 7B; those of 13B have scores that fade with the distance instead. */
static hone_status baichuan(hn_gguf *g, hone_error *err)
{
    enum { OF_7B = 32, OF_13B = 40 };
    const uint32_t n_layer = number_of(g, "llama.block_count");
    if (n_layer == OF_7B) return HONE_OK;
    if (n_layer == OF_13B) return rename_arch(g, &(const renaming){ NULL, "llama", "refact" }, err);
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s: baichuan.block_count = %u, expected %d, whose positions turn, or %d, whose scores fade",
                   hn_gguf_path(g), n_layer, OF_7B, OF_13B);
}

/* Where tokens and output share a matrix, the file may have it by the latter's name. */
static hone_status codeshell(hn_gguf *g, hone_error *err)
{
    if (hn_gguf_find_tensor(g, "token_embd.weight")) return HONE_OK;
    return hn_gguf_rename_tensors(g, "output.weight", "token_embd.weight", err);
}

/* Both halves side by side, with one norm (7B) or with two (40B, 180B), of which the feed-forward part's has the name
 * of the other. */
static hone_status falcon(hn_gguf *g, hone_error *err)
{
    hone_status st;
    bool two = hn_gguf_find_tensor(g, "blk.0.attn_norm_2.weight");
    TRY(hn_gguf_set_str(g, "general.architecture", two ? "gptneox" : "phi2", err));
    TRY(hn_gguf_rename_keys(g, "falcon.", two ? "gptneox." : "phi2.", err));
    if (is(string_of(g, two ? "gptneox.tensor_data_layout" : "phi2.tensor_data_layout"), "jploski")) /* rows of qkv */
        TRY(hn_gguf_drop_key(g, two ? "gptneox.tensor_data_layout" : "phi2.tensor_data_layout", err));
    if (!two) return HONE_OK;
    TRY(hn_gguf_set_bool(g, "gptneox.use_parallel_residual", true, err));
    TRY(hn_gguf_rename_tensors(g, "attn_norm.weight", "ffn_norm.weight", err));
    TRY(hn_gguf_rename_tensors(g, "attn_norm.bias", "ffn_norm.bias", err));
    TRY(hn_gguf_rename_tensors(g, "attn_norm_2.weight", "attn_norm.weight", err));
    return hn_gguf_rename_tensors(g, "attn_norm_2.bias", "attn_norm.bias", err);
}

/* DeepSeek-OCR: heads turn whole, whatever the key says (0); what is not said of experts is a softmax as it is. */
static hone_status deepseek_ocr(hn_gguf *g, hone_error *err)
{
    hone_status st;
    TRY(hn_gguf_drop_key(g, "glm4moe.rope.dimension_count", err));
    if (!number_of(g, "glm4moe.expert_gating_func")) TRY(hn_gguf_set_u32(g, "glm4moe.expert_gating_func", 1, err));
    return has(g, "glm4moe.expert_weights_norm") ? HONE_OK
                                                 : hn_gguf_set_bool(g, "glm4moe.expert_weights_norm", false, err);
}

/* Bamba's converter orders rows as if all of a head turned, of which half does: no reader of such a file gives the
 * model's answers, llama.cpp's neither. */
static hone_status granitehybrid(hn_gguf *g, hone_error *err)
{
    bool turns = true;
    const uint32_t n_embd = number_of(g, "granitehybrid.embedding_length"),
                   n_head = number_of(g, "granitehybrid.attention.head_count"),
                   n_rot = number_of(g, "granitehybrid.rope.dimension_count"),
                   said = number_of(g, "granitehybrid.attention.key_length"),
                   width = said || !n_head ? said : n_embd / n_head;
    (void)hn_gguf_get_bool(g, "granitehybrid.rope.scaling.finetuned", &turns, NULL, NULL); /* the family checks it */
    if (!turns || !n_rot || n_rot >= width) return HONE_OK;
    return HN_FAIL(
        err, HONE_E_UNSUPPORTED,
        "%s: granitehybrid.rope.dimension_count = %u, and heads are of %u (Bamba): the rows of such files are in "
        "an order in which no part of a head can turn; expected Granite 4.0",
        hn_gguf_path(g), n_rot, width);
}

/* The first layers without a router are dense: no key says how many. */
static hone_status hy_v3(hn_gguf *g, hone_error *err)
{
    char name[64];
    const uint32_t n_layer = number_of(g, "bailingmoe2.block_count");
    uint32_t lead = 0;
    for (bool dense = true; lead < n_layer && lead < HN_MAX_LAYER && dense; lead += dense) {
        snprintf(name, sizeof name, "blk.%u.ffn_gate_inp.weight", lead);
        dense = !hn_gguf_find_tensor(g, name);
    }
    return u32_if_absent(g, "bailingmoe2.leading_dense_block_count", lead, err);
}

static const struct {
    const char *arch; /* as the file has it */
    hone_status (*read)(hn_gguf *, hone_error *);
} dialects[] = {
    { "baichuan", baichuan },
    { "bert", bert },
    { "codeshell", codeshell },
    { "cohere2moe", cohere2moe },
    { "deepseek2-ocr", deepseek_ocr },
    { "falcon", falcon },
    { "gemma3", gemma3 },
    { "gemma3n", gemma3n },
    { "gemma4", gemma4 },
    { "gptoss", gptoss },
    { "glm4moelite", glm4moelite },
    { "granitehybrid", granitehybrid },
    { "hy_v3", hy_v3 },
    { "lfm2", lfm2 },
    { "lfm2moe", lfm2 },
    { "llama", llama },
    { "llama4", llama4 },
    { "minicpm", minicpm },
    { "minicpm3", minicpm3 },
    { "mistral3", mistral3 },
    { "nemotron_h_moe", nemotron_moe },
    { "nemotron_h_omni", nemotron_omni },
    { "phimoe", phimoe },
    { "qwen", qwen },
    { "qwen3vl", qwen3vl },
    { "qwen3vlmoe", qwen3vl },
};

hone_status hn_dialect(hn_gguf *g, hone_error *err)
{
    char name[32];
    hone_str s = string_of(g, "general.architecture");
    hone_status st;
    if (!s.len || s.len >= sizeof name) return HONE_OK;
    memcpy(name, s.ptr, s.len); /* what it was called, when its entry changes */
    const hone_str arch = { name, s.len };
    for (size_t i = 0; i < sizeof key_names / sizeof *key_names; i++)
        if (is(arch, key_names[i].arch) && has(g, key_names[i].from))
            TRY(hn_gguf_rename_key(g, key_names[i].from, key_names[i].to, err));
    for (size_t i = 0; i < sizeof tensor_names / sizeof *tensor_names; i++)
        if (is(arch, tensor_names[i].arch))
            TRY(hn_gguf_rename_tensors(g, tensor_names[i].from, tensor_names[i].to, err));
    for (size_t i = 0; i < sizeof arch_names / sizeof *arch_names; i++)
        if (is(arch, arch_names[i].arch)) TRY(rename_arch(g, &arch_names[i], err));
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
        if (is(arch, dialects[i].arch)) return dialects[i].read(g, err);
    return HONE_OK;
}

/* ---- adapters -------------------------------------------------------------------------------------------------- */

/* Families whose names depend on what an adapter's file lacks. */
static const renaming adapter_names[] = {
    { "baichuan", "baichuan", "refact" },
    { "falcon", "falcon", "phi2" },
    { "falcon", "falcon", "gptneox" },
    { "nemotron_h_omni", "nemotron_h_omni", "nemotron_h" },
    { "nemotron_h_omni", "nemotron_h_omni", "nemotron_h_moe" },
};

static bool is_called(const renaming *r, size_t n, hone_str arch, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (is(arch, r[i].from) && !strcmp(r[i].to, name)) return true;
    return false;
}

bool hn_dialect_same_arch(hone_str arch, const char *name)
{
    return is(arch, name) || is_called(arch_names, sizeof arch_names / sizeof *arch_names, arch, name) ||
           is_called(adapter_names, sizeof adapter_names / sizeof *adapter_names, arch, name);
}

hone_str hn_dialect_tensor(char buf[HN_DIALECT_NAME], hone_str arch, hone_str tensor)
{
    for (size_t i = 0; i < sizeof tensor_names / sizeof *tensor_names; i++) {
        const renaming *r = &tensor_names[i];
        size_t n = strlen(r->from);
        if (!is(arch, r->arch) || tensor.len <= n || tensor.ptr[tensor.len - n - 1] != '.' ||
            memcmp(tensor.ptr + tensor.len - n, r->from, n) != 0)
            continue;
        int len = snprintf(buf, HN_DIALECT_NAME, "%.*s%s", (int)(tensor.len - n), tensor.ptr, r->to);
        return len < HN_DIALECT_NAME ? (hone_str){ buf, (size_t)len } : tensor;
    }
    return tensor;
}

bool hn_tensor_of_other_senses(hone_str name)
{
    static const char *const parts[] = { "v.", "a.", "mm.", "mtp.", "model.vision_tower." };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = strlen(parts[i]);
        if (name.len > n && !memcmp(name.ptr, parts[i], n)) return true;
    }
    return false;
}

hone_status hn_model_file_open(hn_gguf **out, const char *path, hone_error *err)
{
    hone_status st = hn_gguf_open(out, path, err);
    if (st != HONE_OK || (st = hn_dialect(*out, err)) == HONE_OK) return st;
    hn_gguf_close(*out);
    *out = NULL;
    return st;
}
