/* hf_files: small folders as transformers saves them, for tests: config.json and model.safetensors, or two shards and
 * their index. A tensor's numbers follow from its name, as tests/dev/make_hf_golden.py has them. */
#ifndef HN_TEST_HF_FILES_H
#define HN_TEST_HF_FILES_H

#include "hone.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { HF_MAX = 384 };

typedef struct hf_tensor {
    char name[96];
    const char *as; /* whose numbers it has; NULL: its own */
    int n_dim;
    size_t shape[4]; /* outermost first */
} hf_tensor;

typedef struct hf_folder {
    const char *config;
    hf_tensor t[HF_MAX];
    int n;
    bool bf16, shards;
    const hf_tensor *bad; /* one number of it is another */
    size_t bad_at;
    float bad_value;
} hf_folder;

static size_t hf_count(const hf_tensor *t)
{
    size_t n = 1;
    for (int i = 0; i < t->n_dim; i++) n *= t->shape[i];
    return n;
}

/* Element i of a tensor: a multiple of 1/128 in [-1/2, 1/2), so that BF16 holds it; of norms 1 more. */
static float hf_value(const char *name, size_t i)
{
    uint32_t h = 2166136261u;
    for (const char *p = name; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
    h = (h + (uint32_t)i) * 2654435761u;
    h ^= h >> 15;
    h *= 2246822519u;
    return (float)(h >> 25) / 128.0f - 0.5f + (strstr(name, "norm") && !strstr(name, "bias") ? 1.0f : 0.0f);
}

/* shape: "8,4" */
static void hf_add(hf_folder *f, const char *name, const char *shape)
{
    assert_true(f->n < HF_MAX);
    hf_tensor *t = &f->t[f->n++];
    *t = (hf_tensor){ .n_dim = 0 };
    snprintf(t->name, sizeof t->name, "%s", name);
    for (const char *p = shape; *p; p += *p == ',') t->shape[t->n_dim++] = (size_t)strtoul(p, (char **)&p, 10);
}

/* "name shape; name shape; …", in which "L." stands for "model.layers.IL." of each of n_layer layers. */
static void hf_add_all(hf_folder *f, const char *list, const char *layers, int n_layer)
{
    for (int il = -1; il < n_layer; il++)
        for (const char *p = il < 0 ? list : layers; p && *p;) {
            char name[64], shape[32], full[96];
            int n;
            assert_int_equal(sscanf(p, "%63s %31[0-9,];%n", name, shape, &n), 2);
            if (il < 0) snprintf(full, sizeof full, "%s", name);
            else
                snprintf(full, sizeof full, "%.*s%d%s", (int)(strchr(name, '#') - name), name, il,
                         strchr(name, '#') + 1);
            hf_add(f, full, shape);
            p += n;
            while (*p == ' ') p++;
        }
}

static void hf_write_text(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *o = fopen(path, "wb");
    assert_non_null(o);
    assert_int_equal(fwrite(text, 1, strlen(text), o), strlen(text));
    assert_int_equal(fclose(o), 0);
}

/* Tensors first, first + step, … as one file. */
static void hf_write_part(const hf_folder *f, const char *folder, const char *name, int first, int step)
{
    char path[256], head[65536];
    size_t n = 1, at = 0;
    head[0] = '{';
    for (int i = first; i < f->n; i += step) {
        const hf_tensor *t = &f->t[i];
        size_t bytes = hf_count(t) * (f->bf16 ? 2 : 4);
        n += (size_t)snprintf(head + n, sizeof head - n, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", n > 1 ? "," : "",
                              t->name, f->bf16 ? "BF16" : "F32");
        for (int d = 0; d < t->n_dim; d++)
            n += (size_t)snprintf(head + n, sizeof head - n, "%s%zu", d ? "," : "", t->shape[d]);
        n += (size_t)snprintf(head + n, sizeof head - n, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
        assert_true(n + 256 < sizeof head);
        at += bytes;
    }
    head[n++] = '}';
    while (n % 8) head[n++] = ' ';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *o = fopen(path, "wb");
    uint64_t len = n;
    assert_non_null(o);
    fwrite(&len, 8, 1, o);
    fwrite(head, 1, n, o);
    for (int i = first; i < f->n; i += step)
        for (size_t k = 0; k < hf_count(&f->t[i]); k++) {
            float x = f->bad && f->bad == &f->t[i] && k == f->bad_at
                          ? f->bad_value
                          : hf_value(f->t[i].as ? f->t[i].as : f->t[i].name, k);
            uint32_t u;
            memcpy(&u, &x, 4);
            u >>= f->bf16 ? 16 : 0;
            fwrite(&u, f->bf16 ? 2 : 4, 1, o);
        }
    assert_int_equal(fclose(o), 0);
}

static void hf_write(const hf_folder *f, const char *folder)
{
    char index[16384];
    size_t n;
    mkdir(folder, 0700);
    hf_write_text(folder, "config.json", f->config);
    if (!f->shards) {
        hf_write_part(f, folder, "model.safetensors", 0, 1);
        return;
    }
    n = (size_t)snprintf(index, sizeof index,
                         "{\"metadata\":{\"total_size\":1000000000000000019884624838656},\"weight_map\":{");
    for (int i = 0; i < f->n; i++)
        n += (size_t)snprintf(index + n, sizeof index - n, "%s\"%s\":\"%s.safetensors\"", i ? "," : "", f->t[i].name,
                              i % 2 ? "b" : "a");
    snprintf(index + n, sizeof index - n, "}}");
    hf_write_text(folder, "model.safetensors.index.json", index);
    hf_write_part(f, folder, "a.safetensors", 0, 2);
    hf_write_part(f, folder, "b.safetensors", 1, 2);
}

/* Files of a folder, and itself. */
static int hf_remove(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) return -1;
    for (struct dirent *e; (e = readdir(d));) {
        char path[512];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (unlink(path) != 0) hf_remove(path);
    }
    closedir(d);
    return rmdir(folder);
}

/* ---- models --------------------------------------------------------------------------------------------- */

#define HF_EMBD "model.embed_tokens.weight 32,16;model.norm.weight 16;"
#define HF_LLAMA_CONFIG                                                                                               \
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":16,\"intermediate_size\":24," \
    "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":32,"                  \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5,\"head_dim\":8,\"attention_bias\":true,"                    \
    "\"hidden_act\":\"silu\",\"rope_theta\":5e5,\"tie_word_embeddings\":false,\"rope_scaling\":{\"rope_type\":"       \
    "\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"                                     \
    "\"original_max_position_embeddings\":16},\"transformers_version\":\"4.57.0\",\"some_null\":null}"
#define HF_GLU                                                                            \
    "model.layers.#.mlp.gate_proj.weight 24,16;model.layers.#.mlp.up_proj.weight 24,16;"  \
    "model.layers.#.mlp.down_proj.weight 16,24;model.layers.#.input_layernorm.weight 16;" \
    "model.layers.#.post_attention_layernorm.weight 16;"
#define HF_QKVO                                                                                  \
    "model.layers.#.self_attn.q_proj.weight 32,16;model.layers.#.self_attn.k_proj.weight 16,16;" \
    "model.layers.#.self_attn.v_proj.weight 16,16;model.layers.#.self_attn.o_proj.weight 16,32;"
#define HF_QKVO_BIASES                                                                 \
    "model.layers.#.self_attn.q_proj.bias 32;model.layers.#.self_attn.k_proj.bias 16;" \
    "model.layers.#.self_attn.v_proj.bias 16;model.layers.#.self_attn.o_proj.bias 16;"

/* Heads of 8, rotated in pairs of halves, with biases, Llama 3's angles, an output of its own. */
static inline void hf_llama(hf_folder *f)
{
    *f = (hf_folder){ .config = HF_LLAMA_CONFIG };
    hf_add_all(f, "lm_head.weight 32,16;" HF_EMBD, HF_GLU HF_QKVO HF_QKVO_BIASES, 2);
}

/* Norms of 1 + w on both sides, caps, windows; tied. */
#define HF_GEMMA2_CONFIG                                                                                             \
    "{\"architectures\":[\"Gemma2ForCausalLM\"],\"model_type\":\"gemma2\",\"hidden_size\":16,\"intermediate_size\":" \
    "24,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":32,"              \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,\"head_dim\":8,\"query_pre_attn_scalar\":8,"               \
    "\"attn_logit_softcapping\":5.0,\"final_logit_softcapping\":null,\"sliding_window\":6,\"hidden_activation\":"    \
    "\"gelu_pytorch_tanh\",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000.0},"                  \
    "\"layer_types\":[\"sliding_attention\",\"full_attention\"]}"
static inline void hf_gemma2(hf_folder *f)
{
    *f = (hf_folder){ .config = HF_GEMMA2_CONFIG, .bf16 = true, .shards = true };
    hf_add_all(f, HF_EMBD,
               HF_GLU HF_QKVO "model.layers.#.pre_feedforward_layernorm.weight 16;"
                              "model.layers.#.post_feedforward_layernorm.weight 16;",
               2);
}

/* Matrices [n_in, n_out], q, k and v in one; learnt positions. */
#define HF_GPT2_CONFIG                                                                                           \
    "{\"architectures\":[\"GPT2LMHeadModel\"],\"model_type\":\"gpt2\",\"n_embd\":16,\"n_layer\":2,\"n_head\":2," \
    "\"n_positions\":64,\"n_ctx\":64,\"vocab_size\":32,\"n_inner\":null,\"layer_norm_epsilon\":1e-5,"            \
    "\"activation_function\":\"gelu_new\",\"tie_word_embeddings\":true}"
static inline void hf_gpt2(hf_folder *f)
{
    *f = (hf_folder){ .config = HF_GPT2_CONFIG };
    hf_add_all(f, "wte.weight 32,16;wpe.weight 64,16;ln_f.weight 16;ln_f.bias 16;",
               "h.#.ln_1.weight 16;h.#.ln_1.bias 16;h.#.ln_2.weight 16;h.#.ln_2.bias 16;"
               "h.#.attn.c_attn.weight 16,48;h.#.attn.c_attn.bias 48;h.#.attn.c_proj.weight 16,16;"
               "h.#.attn.c_proj.bias 16;h.#.mlp.c_fc.weight 16,64;h.#.mlp.c_fc.bias 64;h.#.mlp.c_proj.weight 64,16;"
               "h.#.mlp.c_proj.bias 16;h.#.attn.bias 1,64,64;",
               2);
}

/* Norms are 1 + w, their biases what they are. */
#define HF_NEMOTRON_CONFIG                                                                                        \
    "{\"architectures\":[\"NemotronForCausalLM\"],\"model_type\":\"nemotron\",\"hidden_size\":16,\"intermediate_" \
    "size\":"                                                                                                     \
    "24,\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":32,"           \
    "\"max_position_embeddings\":64,\"norm_eps\":1e-5,\"hidden_act\":\"relu2\",\"partial_rotary_factor\":0.5,"    \
    "\"rope_theta\":10000,\"tie_word_embeddings\":false}"
static inline void hf_nemotron(hf_folder *f)
{
    *f = (hf_folder){ .config = HF_NEMOTRON_CONFIG };
    hf_add_all(f, "model.embed_tokens.weight 32,16;model.norm.weight 16;model.norm.bias 16;lm_head.weight 32,16;",
               "model.layers.#.input_layernorm.weight 16;model.layers.#.input_layernorm.bias 16;"
               "model.layers.#.post_attention_layernorm.weight 16;model.layers.#.post_attention_layernorm.bias 16;"
               "model.layers.#.self_attn.q_proj.weight 16,16;model.layers.#.self_attn.k_proj.weight 8,16;"
               "model.layers.#.self_attn.v_proj.weight 8,16;model.layers.#.self_attn.o_proj.weight 16,16;"
               "model.layers.#.mlp.up_proj.weight 24,16;model.layers.#.mlp.down_proj.weight 16,24;",
               1);
}

/* q, k and v of each head together. */
#define HF_GPTNEOX_CONFIG                                                                                        \
    "{\"architectures\":[\"GPTNeoXForCausalLM\"],\"model_type\":\"gpt_neox\",\"hidden_size\":16,\"intermediate_" \
    "size\":"                                                                                                    \
    "24,\"num_hidden_layers\":1,\"num_attention_heads\":2,\"vocab_size\":32,\"max_position_embeddings\":64,"     \
    "\"layer_norm_eps\":1e-5,\"hidden_act\":\"gelu\",\"rotary_pct\":0.5,\"rotary_emb_base\":10000}"
static inline void hf_gptneox(hf_folder *f)
{
    *f = (hf_folder){ .config = HF_GPTNEOX_CONFIG };
    hf_add_all(
        f,
        "gpt_neox.embed_in.weight 32,16;gpt_neox.final_layer_norm.weight 16;gpt_neox.final_layer_norm.bias 16;"
        "embed_out.weight 32,16;",
        "gpt_neox.layers.#.input_layernorm.weight 16;gpt_neox.layers.#.input_layernorm.bias 16;"
        "gpt_neox.layers.#.post_attention_layernorm.weight 16;gpt_neox.layers.#.post_attention_layernorm.bias 16;"
        "gpt_neox.layers.#.attention.query_key_value.weight 48,16;"
        "gpt_neox.layers.#.attention.query_key_value.bias 48;gpt_neox.layers.#.attention.dense.weight 16,16;"
        "gpt_neox.layers.#.attention.dense.bias 16;gpt_neox.layers.#.mlp.dense_h_to_4h.weight 24,16;"
        "gpt_neox.layers.#.mlp.dense_h_to_4h.bias 24;gpt_neox.layers.#.mlp.dense_4h_to_h.weight 16,24;"
        "gpt_neox.layers.#.mlp.dense_4h_to_h.bias 16;",
        1);
}

/* Layers of two widths, the last two without keys of their own and twice as wide; values of those that see everything
 * are their keys; rows of each token and layer; of the first pairs a quarter turns. */
#define HF_GEMMA4_CONFIG                                                                                           \
    "{\"architectures\":[\"Gemma4ForCausalLM\"],\"model_type\":\"gemma4_text\",\"hidden_size\":16,"                \
    "\"intermediate_size\":24,\"num_hidden_layers\":4,\"num_attention_heads\":2,\"num_key_value_heads\":2,"        \
    "\"num_global_key_value_heads\":1,\"attention_k_eq_v\":true,\"head_dim\":8,\"global_head_dim\":16,"            \
    "\"num_kv_shared_layers\":2,\"use_double_wide_mlp\":true,\"hidden_size_per_layer_input\":4,\"vocab_size\":32," \
    "\"vocab_size_per_layer_input\":32,\"max_position_embeddings\":64,\"sliding_window\":6,\"layer_types\":"       \
    "[\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"],"                         \
    "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\",\"partial_rotary_factor\":0.25,"      \
    "\"rope_theta\":1e6},\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":10000.0}}}"
/* Rows of each token and layer. */
static inline void hf_add_rows_of_layers(hf_folder *f, int n)
{
    char list[512];
    snprintf(list, sizeof list,
             HF_EMBD "model.embed_tokens_per_layer.weight 32,%d;model.per_layer_model_projection.weight %d,16;"
                     "model.per_layer_projection_norm.weight 4;",
             4 * n, 4 * n);
    hf_add_all(f, list, NULL, 0);
}

/* Tensors of n layers, of which the last of each `period` sees everything and n_own have keys. */
static inline void hf_gemma4_of(hf_folder *f, int n, int period, int n_own)
{
    static const char *const own[] = { "", "_proj.weight 16,16;", "_proj.weight 32,16;" };
    char list[1024];
    *f = (hf_folder){ .config = HF_GEMMA4_CONFIG };
    hf_add_rows_of_layers(f, n);
    hf_add_all(f, "",
               "model.layers.#.input_layernorm.weight 16;model.layers.#.post_attention_layernorm.weight 16;"
               "model.layers.#.pre_feedforward_layernorm.weight 16;model.layers.#.post_feedforward_layernorm.weight 16;"
               "model.layers.#.post_per_layer_input_norm.weight 16;model.layers.#.per_layer_input_gate.weight 4,16;"
               "model.layers.#.per_layer_projection.weight 16,4;model.layers.#.layer_scalar 1;",
               n);
    for (int il = 0; il < n; il++) {
        bool all = (il + 1) % period == 0;
        int d = all ? 16 : 8, ff = il < n_own ? 24 : 48;
        snprintf(list, sizeof list,
                 "model.layers.%d.self_attn.q%smodel.layers.%d.self_attn.q_norm.weight %d;"
                 "model.layers.%d.self_attn.o_proj.weight 16,%d;model.layers.%d.mlp.gate_proj.weight %d,16;"
                 "model.layers.%d.mlp.up_proj.weight %d,16;model.layers.%d.mlp.down_proj.weight 16,%d;",
                 il, own[1 + all], il, d, il, 2 * d, il, ff, il, ff, il, ff);
        hf_add_all(f, list, NULL, 0);
        if (il >= n_own) continue;
        snprintf(list, sizeof list,
                 "model.layers.%d.self_attn.k_proj.weight 16,16;model.layers.%d.self_attn.k_norm.weight %d;", il, il,
                 d);
        hf_add_all(f, list, NULL, 0);
        snprintf(list, sizeof list, "model.layers.%d.self_attn.v_proj.weight 16,16;", il);
        if (!all) hf_add_all(f, list, NULL, 0);
    }
}
static inline void hf_gemma4(hf_folder *f) { hf_gemma4_of(f, 4, 2, 2); }

/* Four streams, a low-rank pair, gates that keep a part; the last two layers without keys of their own. */
#define HF_GEMMA3N_CONFIG                                                                                              \
    "{\"architectures\":[\"Gemma3nForCausalLM\"],\"model_type\":\"gemma3n_text\",\"hidden_size\":16,"                  \
    "\"intermediate_size\":[24,24,20,24],\"num_hidden_layers\":4,\"num_attention_heads\":2,\"num_key_value_heads\":1," \
    "\"head_dim\":8,\"num_kv_shared_layers\":2,\"hidden_size_per_layer_input\":4,\"vocab_size\":32,"                   \
    "\"vocab_size_per_layer_input\":32,\"max_position_embeddings\":64,\"sliding_window\":6,\"laurel_rank\":3,"         \
    "\"altup_active_idx\":1,\"activation_sparsity_pattern\":[0.95,0.0,0.7,0.1],\"final_logit_softcapping\":7.0,"       \
    "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"],"             \
    "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\",\"rope_theta\":1e6},"                          \
    "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":10000.0}}}"
static inline void hf_gemma3n_of(hf_folder *f, int n)
{
    char list[512];
    *f = (hf_folder){ .config = HF_GEMMA3N_CONFIG };
    hf_add_rows_of_layers(f, n);
    hf_add_all(f, "",
               "model.layers.#.input_layernorm.weight 16;model.layers.#.post_attention_layernorm.weight 16;"
               "model.layers.#.pre_feedforward_layernorm.weight 16;model.layers.#.post_feedforward_layernorm.weight 16;"
               "model.layers.#.post_per_layer_input_norm.weight 16;model.layers.#.per_layer_input_gate.weight 4,16;"
               "model.layers.#.per_layer_projection.weight 16,4;model.layers.#.laurel.linear_left.weight 3,16;"
               "model.layers.#.laurel.linear_right.weight 16,3;model.layers.#.laurel.post_laurel_norm.weight 16;"
               "model.layers.#.altup.correct_output_scale 16;model.layers.#.altup.correction_coefs.weight 4,4;"
               "model.layers.#.altup.modality_router.weight 4,16;model.layers.#.altup.prediction_coefs.weight 16,4;"
               "model.layers.#.altup.router_norm.weight 16;model.layers.#.self_attn.q_proj.weight 16,16;"
               "model.layers.#.self_attn.q_norm.weight 8;model.layers.#.self_attn.o_proj.weight 16,16;",
               n);
    hf_add_all(f, "", "model.altup_projections.#.weight 16,16;model.altup_unembed_projections.#.weight 16,16;", 3);
    hf_add_all(f, "",
               "model.layers.#.self_attn.k_proj.weight 8,16;model.layers.#.self_attn.v_proj.weight 8,16;"
               "model.layers.#.self_attn.k_norm.weight 8;",
               n - 2);
    for (int il = 0; il < n; il++) {
        int ff = n == 4 && il == 2 ? 20 : 24;
        snprintf(list, sizeof list,
                 "model.layers.%d.mlp.gate_proj.weight %d,16;model.layers.%d.mlp.up_proj.weight %d,16;"
                 "model.layers.%d.mlp.down_proj.weight 16,%d;",
                 il, ff, il, ff, il, ff);
        hf_add_all(f, list, NULL, 0);
    }
}
static inline void hf_gemma3n(hf_folder *f) { hf_gemma3n_of(f, 4); }

/* Kimi's delta rule, then latent attention with two experts and one that is always asked. */
#define HF_KIMI_CONFIG                                                                                       \
    "{\"architectures\":[\"KimiLinearForCausalLM\"],\"model_type\":\"kimi_linear\",\"hidden_size\":16,"      \
    "\"intermediate_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":2,\"num_key_value_heads\":2,"  \
    "\"layer_types\":[\"linear_attention\",\"full_attention\"],\"mlp_layer_types\":[\"dense\",\"sparse\"],"  \
    "\"linear_conv_kernel_dim\":4,\"linear_head_dim\":8,\"linear_num_heads\":2,\"kv_lora_rank\":6,"          \
    "\"qk_nope_head_dim\":4,\"qk_rope_head_dim\":2,\"v_head_dim\":5,\"q_lora_rank\":null,\"num_experts\":2," \
    "\"num_experts_per_token\":1,\"num_shared_experts\":1,\"moe_intermediate_size\":12,\"vocab_size\":32,"   \
    "\"model_max_length\":64,\"rms_norm_eps\":1e-6,\"routed_scaling_factor\":1.5,\"tie_word_embeddings\":false}"
static inline void hf_kimi(hf_folder *f)
{
    *f = (hf_folder){ .config = HF_KIMI_CONFIG };
    hf_add_all(f,
               "lm_head.weight 32,16;" HF_EMBD
               "model.layers.0.mlp.gate_proj.weight 24,16;model.layers.0.mlp.up_proj.weight 24,16;"
               "model.layers.0.mlp.down_proj.weight 16,24;model.layers.0.self_attn.A_log 1,1,2,1;"
               "model.layers.0.self_attn.b_proj.weight 2,16;model.layers.0.self_attn.dt_bias 16;"
               "model.layers.0.self_attn.f_a_proj.weight 8,16;model.layers.0.self_attn.f_b_proj.weight 16,8;"
               "model.layers.0.self_attn.g_a_proj.weight 8,16;model.layers.0.self_attn.g_b_proj.weight 16,8;"
               "model.layers.0.self_attn.q_conv1d.weight 16,1,4;model.layers.0.self_attn.k_conv1d.weight 16,1,4;"
               "model.layers.0.self_attn.v_conv1d.weight 16,1,4;model.layers.0.self_attn.q_proj.weight 16,16;"
               "model.layers.0.self_attn.k_proj.weight 16,16;model.layers.0.self_attn.v_proj.weight 16,16;"
               "model.layers.0.self_attn.o_norm.weight 8;model.layers.0.self_attn.o_proj.weight 16,16;"
               "model.layers.1.self_attn.q_proj.weight 12,16;model.layers.1.self_attn.kv_a_proj_with_mqa.weight 8,16;"
               "model.layers.1.self_attn.kv_a_layernorm.weight 6;model.layers.1.self_attn.kv_b_proj.weight 18,6;"
               "model.layers.1.self_attn.o_proj.weight 16,10;model.layers.1.block_sparse_moe.gate.weight 2,16;"
               "model.layers.1.block_sparse_moe.gate.e_score_correction_bias 2;"
               "model.layers.1.block_sparse_moe.shared_experts.gate_proj.weight 12,16;"
               "model.layers.1.block_sparse_moe.shared_experts.up_proj.weight 12,16;"
               "model.layers.1.block_sparse_moe.shared_experts.down_proj.weight 16,12;",
               "model.layers.#.input_layernorm.weight 16;model.layers.#.post_attention_layernorm.weight 16;", 2);
    hf_add_all(f, "",
               "model.layers.1.block_sparse_moe.experts.#.w1.weight 12,16;"
               "model.layers.1.block_sparse_moe.experts.#.w2.weight 16,12;"
               "model.layers.1.block_sparse_moe.experts.#.w3.weight 12,16;",
               2);
}

/* ---- blocks that draft ------------------------------------------------------------------------------------- */

/* A dense layer, one with two experts, and, with drafts, blocks like it behind them. */
#define HF_GLM_LAYER                                                                              \
    "model.layers.#.input_layernorm.weight 16;model.layers.#.post_attention_layernorm.weight 16;" \
    "model.layers.#.self_attn.q_proj.weight 16,16;model.layers.#.self_attn.k_proj.weight 8,16;"   \
    "model.layers.#.self_attn.v_proj.weight 8,16;model.layers.#.self_attn.o_proj.weight 16,16;"
static inline void hf_glm(hf_folder *f, int n_draft)
{
    char list[2048];
    *f = (hf_folder){
        .config = "{\"architectures\":[\"Glm4MoeForCausalLM\"],\"model_type\":\"glm4_moe\",\"hidden_size\":16,"
                  "\"intermediate_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
                  "\"num_key_value_heads\":1,\"head_dim\":8,\"n_routed_experts\":2,\"num_experts_per_tok\":1,"
                  "\"moe_intermediate_size\":12,\"n_shared_experts\":1,\"first_k_dense_replace\":1,"
                  "\"vocab_size\":32,\"max_position_embeddings\":64,\"rope_theta\":10000.0,\"rms_norm_eps\":1e-5,"
                  "\"n_group\":1,\"topk_group\":1,\"norm_topk_prob\":true,\"routed_scaling_factor\":1.5,"
                  "\"attention_bias\":false,\"use_qk_norm\":false,\"tie_word_embeddings\":false,"
                  "\"partial_rotary_factor\":0.5,\"num_nextn_predict_layers\":2}"
    };
    hf_add_all(f,
               "lm_head.weight 32,16;" HF_EMBD
               "model.layers.0.mlp.gate_proj.weight 24,16;model.layers.0.mlp.up_proj.weight 24,16;"
               "model.layers.0.mlp.down_proj.weight 16,24;",
               HF_GLM_LAYER, 2 + n_draft);
    for (int il = 1; il < 2 + n_draft; il++) {
        static const char *const of[] = { "experts.0", "experts.1", "shared_experts" };
        snprintf(list, sizeof list,
                 "model.layers.%d.mlp.gate.weight 2,16;model.layers.%d.mlp.gate.e_score_correction_bias 2;", il, il);
        hf_add_all(f, list, NULL, 0);
        for (int k = 0; k < 3; k++) {
            snprintf(list, sizeof list,
                     "model.layers.%d.mlp.%s.gate_proj.weight 12,16;model.layers.%d.mlp.%s.up_proj.weight 12,16;"
                     "model.layers.%d.mlp.%s.down_proj.weight 16,12;",
                     il, of[k], il, of[k], il, of[k]);
            hf_add_all(f, list, NULL, 0);
        }
        if (il < 2) continue;
        snprintf(list, sizeof list,
                 "model.layers.%d.eh_proj.weight 16,32;model.layers.%d.enorm.weight 16;"
                 "model.layers.%d.hnorm.weight 16;model.layers.%d.shared_head.norm.weight 16;",
                 il, il, il, il);
        hf_add_all(f, list, NULL, 0);
    }
}

/* The gated delta rule, then attention; with a draft a block like the second, whatever is behind it. */
#define HF_QWEN35_ATTENDS(root)                                                                                       \
    root "self_attn.q_proj.weight 32,16;" root "self_attn.k_proj.weight 8,16;" root                                   \
         "self_attn.v_proj.weight 8,16;" root "self_attn.o_proj.weight 16,16;" root "self_attn.q_norm.weight 8;" root \
         "self_attn.k_norm.weight 8;"
#define HF_QWEN35_LAYER(root)                                                         \
    root "input_layernorm.weight 16;" root "post_attention_layernorm.weight 16;" root \
         "mlp.gate_proj.weight 24,16;" root "mlp.up_proj.weight 24,16;" root "mlp.down_proj.weight 16,24;"
static inline void hf_qwen35(hf_folder *f, bool draft)
{
    *f = (hf_folder){ .config = "{\"architectures\":[\"Qwen3_5ForCausalLM\"],\"model_type\":\"qwen3_5_text\","
                                "\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":3,"
                                "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":8,\"layer_types\":"
                                "[\"linear_attention\",\"full_attention\",\"linear_attention\"],"
                                "\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":4,\"linear_value_head_dim\":4,"
                                "\"linear_num_key_heads\":1,\"linear_num_value_heads\":2,\"vocab_size\":32,"
                                "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,\"tie_word_embeddings\":false,"
                                "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000.0,"
                                "\"partial_rotary_factor\":0.25},\"mtp_num_hidden_layers\":1}" };
    hf_add_all(f, "lm_head.weight 32,16;" HF_EMBD HF_QWEN35_ATTENDS("model.layers.1."),
               HF_QWEN35_LAYER("model.layers.#."), 3);
    for (int il = 0; il < 3; il += 2) {
        static const char *const parts[] = { "in_proj_qkv.weight 16,16",
                                             "in_proj_z.weight 8,16",
                                             "in_proj_b.weight 2,16",
                                             "in_proj_a.weight 2,16",
                                             "conv1d.weight 16,1,4",
                                             "dt_bias 2",
                                             "A_log 2",
                                             "norm.weight 4",
                                             "out_proj.weight 16,8" };
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            char list[128];
            snprintf(list, sizeof list, "model.layers.%d.linear_attn.%s;", il, parts[i]);
            hf_add_all(f, list, NULL, 0);
        }
    }
    if (draft)
        hf_add_all(f,
                   HF_QWEN35_ATTENDS("mtp.layers.0.") HF_QWEN35_LAYER(
                       "mtp.layers.0.") "mtp.fc.weight 16,32;mtp.norm.weight 16;mtp.pre_fc_norm_embedding.weight 16;"
                                        "mtp.pre_fc_norm_hidden.weight 16;",
                   NULL, 0);
}

/* ---- experts of a sigmoid, and latent attention without any ------------------------------------------------ */

#define HF_ROUTED_SIZES                                                                               \
    "\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":2,"  \
    "\"num_key_value_heads\":1,\"head_dim\":8,\"vocab_size\":32,\"max_position_embeddings\":64,"      \
    "\"rms_norm_eps\":1e-5,\"num_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":12," \
    "\"num_shared_experts\":1,\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000.0},"

/* The first layer is dense, the other has two experts and a shared one. */
static inline void hf_routed(hf_folder *f, bool exaone)
{
    static const char *const parts[] = { "gate", "up", "down" };
    const char *mlp = "model.layers.1.mlp.", *shared = exaone ? "shared_experts" : "shared_mlp";
    char name[96];
    *f = (hf_folder){
        .config = exaone
                      ? "{\"architectures\":[\"ExaoneMoeForCausalLM\"],\"model_type\":\"exaone_moe\"," HF_ROUTED_SIZES
                        "\"first_k_dense_replace\":1,\"sliding_window\":6,\"routed_scaling_factor\":2.5,"
                        "\"layer_types\":[\"sliding_attention\",\"full_attention\"]}"
                      : "{\"architectures\":[\"HYV3ForCausalLM\"],\"model_type\":\"hy_v3\"," HF_ROUTED_SIZES
                        "\"router_scaling_factor\":1.5,\"mlp_layer_types\":[\"dense\",\"sparse\"]}"
    };
    hf_add_all(f,
               "model.embed_tokens.weight 32,16;model.norm.weight 16;lm_head.weight 32,16;"
               "model.layers.0.mlp.gate_proj.weight 24,16;model.layers.0.mlp.up_proj.weight 24,16;"
               "model.layers.0.mlp.down_proj.weight 16,24;",
               "model.layers.#.input_layernorm.weight 16;model.layers.#.post_attention_layernorm.weight 16;"
               "model.layers.#.self_attn.q_proj.weight 16,16;model.layers.#.self_attn.k_proj.weight 8,16;"
               "model.layers.#.self_attn.v_proj.weight 8,16;model.layers.#.self_attn.o_proj.weight 16,16;"
               "model.layers.#.self_attn.q_norm.weight 8;model.layers.#.self_attn.k_norm.weight 8;",
               2);
    snprintf(name, sizeof name, "%s%s", mlp, exaone ? "gate.weight" : "router.gate.weight");
    hf_add(f, name, "2,16");
    snprintf(name, sizeof name, "%s%s", mlp, exaone ? "e_score_correction_bias" : "expert_bias");
    hf_add(f, name, "2");
    for (int e = 0; e < 3; e++)
        for (int i = 0; i < 3; i++) {
            if (e < 2) snprintf(name, sizeof name, "%sexperts.%d.%s_proj.weight", mlp, e, parts[i]);
            else snprintf(name, sizeof name, "%s%s.%s_proj.weight", mlp, shared, parts[i]);
            hf_add(f, name, i < 2 ? "12,16" : "16,12");
        }
}

static inline void hf_youtu(hf_folder *f)
{
    *f = (hf_folder){ .config = "{\"architectures\":[\"YoutuForCausalLM\"],\"model_type\":\"youtu\",\"hidden_size\":16,"
                                "\"intermediate_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
                                "\"num_key_value_heads\":2,\"vocab_size\":32,\"max_position_embeddings\":64,"
                                "\"rms_norm_eps\":1e-6,\"q_lora_rank\":6,\"kv_lora_rank\":5,\"qk_nope_head_dim\":4,"
                                "\"qk_rope_head_dim\":4,\"v_head_dim\":3,\"rope_interleave\":true,"
                                "\"embedding_initializer_range\":0.02,\"rope_theta\":1600000}" };
    hf_add_all(f, "model.embed_tokens.weight 32,16;model.norm.weight 16;",
               "model.layers.#.input_layernorm.weight 16;model.layers.#.post_attention_layernorm.weight 16;"
               "model.layers.#.self_attn.q_a_proj.weight 6,16;model.layers.#.self_attn.q_a_layernorm.weight 6;"
               "model.layers.#.self_attn.q_b_proj.weight 16,6;model.layers.#.self_attn.kv_a_proj_with_mqa.weight 9,16;"
               "model.layers.#.self_attn.kv_a_layernorm.weight 5;model.layers.#.self_attn.kv_b_proj.weight 14,5;"
               "model.layers.#.self_attn.o_proj.weight 16,6;model.layers.#.mlp.gate_proj.weight 24,16;"
               "model.layers.#.mlp.up_proj.weight 24,16;model.layers.#.mlp.down_proj.weight 16,24;",
               2);
}

/* ---- models that give rows ------------------------------------------------------------------------------- */

#define HF_BERT_SIZES                                                                                \
    "\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":2," \
    "\"vocab_size\":32,\"hidden_act\":\"gelu\",\"layer_norm_eps\":1e-12,"
#define HF_BERT_LAYER(root)                                                                                           \
    root "encoder.layer.#.attention.self.query.weight 16,16;" root                                                    \
         "encoder.layer.#.attention.self.query.bias 16;" root "encoder.layer.#.attention.self.key.weight 16,16;" root \
         "encoder.layer.#.attention.self.key.bias 16;" root "encoder.layer.#.attention.self.value.weight 16,16;" root \
         "encoder.layer.#.attention.self.value.bias 16;" root                                                         \
         "encoder.layer.#.attention.output.dense.weight 16,16;" root                                                  \
         "encoder.layer.#.attention.output.dense.bias 16;" root                                                       \
         "encoder.layer.#.attention.output.LayerNorm.weight 16;" root                                                 \
         "encoder.layer.#.attention.output.LayerNorm.bias 16;" root                                                   \
         "encoder.layer.#.intermediate.dense.weight 24,16;" root "encoder.layer.#.intermediate.dense.bias 24;" root   \
         "encoder.layer.#.output.dense.weight 16,24;" root "encoder.layer.#.output.dense.bias 16;" root               \
         "encoder.layer.#.output.LayerNorm.weight 16;" root "encoder.layer.#.output.LayerNorm.bias 16;"
#define HF_BERT_EMBD(root, positions, types)                                                                \
    root "embeddings.word_embeddings.weight 32,16;" root "embeddings.position_embeddings.weight " positions \
         ",16;" root "embeddings.token_type_embeddings.weight " types ",16;" root                           \
         "embeddings.LayerNorm.weight 16;" root "embeddings.LayerNorm.bias 16;"

#define HF_MODERN_CONFIG                                                                                 \
    "\"model_type\":\"modernbert\",\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":4," \
    "\"num_attention_heads\":2,\"vocab_size\":32,\"max_position_embeddings\":64,\"norm_eps\":1e-5,"      \
    "\"layer_norm_eps\":1e-5,\"local_attention\":8,\"global_attn_every_n_layers\":3,"                    \
    "\"global_rope_theta\":160000.0,\"local_rope_theta\":10000.0,\"hidden_activation\":\"gelu\","        \
    "\"position_embedding_type\":\"absolute\",\"classifier_pooling\":\"mean\"}"

static inline void hf_bert(hf_folder *f)
{
    *f = (hf_folder){ .config = "{\"architectures\":[\"BertModel\"],\"model_type\":\"bert\"," HF_BERT_SIZES
                                "\"max_position_embeddings\":64,\"type_vocab_size\":2}" };
    hf_add_all(f, HF_BERT_EMBD("", "64", "2"), HF_BERT_LAYER(""), 2);
}

/* Scores of three classes; positions begin behind those of nothing and of the padding. */
static inline void hf_roberta(hf_folder *f)
{
    *f = (hf_folder){ .config = "{\"architectures\":[\"XLMRobertaForSequenceClassification\"],\"model_type\":"
                                "\"xlm-roberta\"," HF_BERT_SIZES "\"max_position_embeddings\":66,"
                                "\"type_vocab_size\":1,\"pad_token_id\":1,"
                                "\"id2label\":{\"0\":\"no\",\"1\":\"perhaps\",\"2\":\"\u00e9\"}}" };
    hf_add_all(f,
               HF_BERT_EMBD("roberta.", "66", "1") "classifier.dense.weight 16,16;classifier.dense.bias 16;"
                                                   "classifier.out_proj.weight 3,16;classifier.out_proj.bias 3;",
               HF_BERT_LAYER("roberta."), 2);
}

static inline void hf_nomic(hf_folder *f)
{
    *f = (hf_folder){ .config = "{\"architectures\":[\"NomicBertModel\"],\"model_type\":\"nomic_bert\",\"n_embd\":16,"
                                "\"n_layer\":2,\"n_head\":2,\"n_inner\":24,\"n_positions\":64,\"vocab_size\":32,"
                                "\"layer_norm_epsilon\":1e-12,\"activation_function\":\"swiglu\","
                                "\"rotary_emb_base\":1000,\"rotary_emb_fraction\":1.0,\"type_vocab_size\":2}" };
    hf_add_all(f,
               "embeddings.word_embeddings.weight 32,16;embeddings.token_type_embeddings.weight 2,16;"
               "emb_ln.weight 16;emb_ln.bias 16;",
               "encoder.layers.#.attn.Wqkv.weight 48,16;encoder.layers.#.attn.out_proj.weight 16,16;"
               "encoder.layers.#.norm1.weight 16;encoder.layers.#.norm1.bias 16;encoder.layers.#.norm2.weight 16;"
               "encoder.layers.#.norm2.bias 16;encoder.layers.#.mlp.fc11.weight 24,16;"
               "encoder.layers.#.mlp.fc12.weight 24,16;encoder.layers.#.mlp.fc2.weight 16,24;",
               2);
}

/* Every other layer has experts, whose matrices are one each; "": what all of them add beside. */
static inline void hf_nomic_moe(hf_folder *f)
{
    *f = (hf_folder){ .config = "{\"architectures\":[\"NomicBertModel\"],\"model_type\":\"nomic_bert\",\"n_embd\":16,"
                                "\"n_layer\":2,\"n_head\":2,\"n_inner\":24,\"n_positions\":2048,\"vocab_size\":32,"
                                "\"layer_norm_epsilon\":1e-5,\"activation_function\":\"gelu\",\"num_experts\":3,"
                                "\"moe_top_k\":2,\"moe_every_n_layers\":2,\"qkv_proj_bias\":true,"
                                "\"mlp_fc1_bias\":true,\"mlp_fc2_bias\":true,\"moe_impl\":\"megablocks\","
                                "\"rotary_emb_base\":10000,\"type_vocab_size\":1}" };
    hf_add_all(f,
               "embeddings.word_embeddings.weight 32,16;embeddings.token_type_embeddings.weight 1,16;"
               "emb_ln.weight 16;emb_ln.bias 16;encoder.layers.0.mlp.fc1.weight 24,16;"
               "encoder.layers.0.mlp.fc1.bias 24;encoder.layers.0.mlp.fc2.weight 16,24;"
               "encoder.layers.0.mlp.fc2.bias 16;encoder.layers.1.mlp.router.layer.weight 3,16;"
               "encoder.layers.1.mlp.experts.mlp.w1 72,16;encoder.layers.1.mlp.experts.mlp.w2 72,16;",
               "encoder.layers.#.attn.Wqkv.weight 48,16;encoder.layers.#.attn.Wqkv.bias 48;"
               "encoder.layers.#.attn.out_proj.weight 16,16;encoder.layers.#.attn.out_proj.bias 16;"
               "encoder.layers.#.norm1.weight 16;encoder.layers.#.norm1.bias 16;encoder.layers.#.norm2.weight 16;"
               "encoder.layers.#.norm2.bias 16;",
               2);
}

#define HF_LLAMA_BOTH_LAYER                                                           \
    "layers.#.input_layernorm.weight 16;layers.#.post_attention_layernorm.weight 16;" \
    "layers.#.self_attn.q_proj.weight 16,16;layers.#.self_attn.k_proj.weight 8,16;"   \
    "layers.#.self_attn.v_proj.weight 8,16;layers.#.self_attn.o_proj.weight 16,16;"   \
    "layers.#.mlp.gate_proj.weight 24,16;layers.#.mlp.up_proj.weight 24,16;layers.#.mlp.down_proj.weight 16,24;"
#define HF_BOTH_SIZES                                                                                \
    "\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":2," \
    "\"num_key_value_heads\":1,\"vocab_size\":32,\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5,"

static inline void hf_eurobert(hf_folder *f)
{
    *f = (hf_folder){ .config = "{\"architectures\":[\"EuroBertModel\"],\"model_type\":\"eurobert\"," HF_BOTH_SIZES
                                "\"rope_theta\":250000,\"mask_token_id\":5,\"classifier_pooling\":\"late\"}" };
    hf_add_all(f, "embed_tokens.weight 32,16;norm.weight 16;", HF_LLAMA_BOTH_LAYER, 2);
}

static inline void hf_llama_both(hf_folder *f)
{
    *f = (hf_folder){
        .config = "{\"architectures\":[\"LlamaBidirectionalModel\"],\"model_type\":\"llama_bidirec\"," HF_BOTH_SIZES
                  "\"rope_theta\":500000,\"pooling\":\"avg\"}"
    };
    hf_add_all(f, "embed_tokens.weight 32,16;norm.weight 16;", HF_LLAMA_BOTH_LAYER, 2);
}

/* As checkpoints have it, or as transformers 5 calls it. */
static inline void hf_jina(hf_folder *f, bool now)
{
    *f = (hf_folder){
        .config = "{\"architectures\":[\"JinaEmbeddingsV3Model\"],\"model_type\":\"jina_embeddings_v3\"," HF_BERT_SIZES
                  "\"max_position_embeddings\":66,\"type_vocab_size\":2,"
                  "\"pad_token_id\":1,\"rope_parameters\":{\"rope_type\":\"default\","
                  "\"rope_theta\":20000.0}}"
    };
    hf_add_all(f,
               now ? "embeddings.word_embeddings.weight 32,16;embeddings.token_type_embeddings.weight 2,16;"
                     "embeddings.LayerNorm.weight 16;embeddings.LayerNorm.bias 16;"
                   : "embeddings.word_embeddings.weight 32,16;embeddings.token_type_embeddings.weight 2,16;"
                     "emb_ln.weight 16;emb_ln.bias 16;",
               now ? "layers.#.self_attn.q_proj.weight 16,16;layers.#.self_attn.q_proj.bias 16;"
                     "layers.#.self_attn.k_proj.weight 16,16;layers.#.self_attn.k_proj.bias 16;"
                     "layers.#.self_attn.v_proj.weight 16,16;layers.#.self_attn.v_proj.bias 16;"
                     "layers.#.self_attn.o_proj.weight 16,16;layers.#.self_attn.o_proj.bias 16;"
                     "layers.#.post_attention_layernorm.weight 16;layers.#.post_attention_layernorm.bias 16;"
                     "layers.#.mlp.fc1.weight 24,16;layers.#.mlp.fc1.bias 24;layers.#.mlp.fc2.weight 16,24;"
                     "layers.#.mlp.fc2.bias 16;layers.#.post_mlp_layernorm.weight 16;"
                     "layers.#.post_mlp_layernorm.bias 16;"
                   : "encoder.layers.#.mixer.Wqkv.weight 48,16;encoder.layers.#.mixer.Wqkv.bias 48;"
                     "encoder.layers.#.mixer.out_proj.weight 16,16;encoder.layers.#.mixer.out_proj.bias 16;"
                     "encoder.layers.#.norm1.weight 16;encoder.layers.#.norm1.bias 16;"
                     "encoder.layers.#.mlp.fc1.weight 24,16;encoder.layers.#.mlp.fc1.bias 24;"
                     "encoder.layers.#.mlp.fc2.weight 16,24;encoder.layers.#.mlp.fc2.bias 16;"
                     "encoder.layers.#.norm2.weight 16;encoder.layers.#.norm2.bias 16;",
               2);
}

/* Four layers, of which the first and the last see everything; rank: with scores of three classes. */
static inline void hf_modern(hf_folder *f, bool rank)
{
    *f = (hf_folder){ .config = rank ? "{\"architectures\":[\"ModernBertForSequenceClassification\"],\"id2label\":"
                                       "{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"}," HF_MODERN_CONFIG
                                     : "{\"architectures\":[\"ModernBertModel\"]," HF_MODERN_CONFIG };
#define HF_MODERN_OUTER(root) \
    root "embeddings.tok_embeddings.weight 32,16;" root "embeddings.norm.weight 16;" root "final_norm.weight 16;"
#define HF_MODERN_LAYER(root)                                                          \
    root "layers.#.attn.Wqkv.weight 48,16;" root "layers.#.attn.Wo.weight 16,16;" root \
         "layers.#.mlp_norm.weight 16;" root "layers.#.mlp.Wi.weight 48,16;" root "layers.#.mlp.Wo.weight 16,24;"
    hf_add_all(f,
               rank ? HF_MODERN_OUTER("model.") "head.dense.weight 16,16;head.norm.weight 16;classifier.weight 3,16;"
                                                "classifier.bias 3;"
                    : HF_MODERN_OUTER(""),
               rank ? HF_MODERN_LAYER("model.") : HF_MODERN_LAYER(""), 4);
    for (int il = 1; il < 4; il++) {
        char name[64];
        snprintf(name, sizeof name, "%slayers.%d.attn_norm.weight", rank ? "model." : "", il);
        hf_add(f, name, "16");
    }
}

/* Six layers, of which the last sees everything. */
static inline void hf_embedding_gemma(hf_folder *f)
{
    *f = (hf_folder){ .config =
                          "{\"architectures\":[\"Gemma3TextModel\"],\"model_type\":\"gemma3_text\",\"hidden_size\":16,"
                          "\"intermediate_size\":24,\"num_hidden_layers\":6,\"num_attention_heads\":2,"
                          "\"num_key_value_heads\":1,\"head_dim\":8,\"query_pre_attn_scalar\":8,\"vocab_size\":32,"
                          "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,\"sliding_window\":6,"
                          "\"hidden_activation\":\"gelu_pytorch_tanh\",\"use_bidirectional_attention\":true,"
                          "\"rope_theta\":1e6,\"rope_local_base_freq\":10000.0}" };
    hf_add_all(f, "embed_tokens.weight 32,16;norm.weight 16;",
               "layers.#.input_layernorm.weight 16;layers.#.post_attention_layernorm.weight 16;"
               "layers.#.pre_feedforward_layernorm.weight 16;layers.#.post_feedforward_layernorm.weight 16;"
               "layers.#.self_attn.q_proj.weight 16,16;layers.#.self_attn.k_proj.weight 8,16;"
               "layers.#.self_attn.v_proj.weight 8,16;layers.#.self_attn.o_proj.weight 16,16;"
               "layers.#.self_attn.q_norm.weight 8;layers.#.self_attn.k_norm.weight 8;"
               "layers.#.mlp.gate_proj.weight 24,16;layers.#.mlp.up_proj.weight 24,16;"
               "layers.#.mlp.down_proj.weight 16,24;",
               6);
}

/* The matrix of 2_Dense, 3_Dense. */
static inline void hf_dense(hf_folder *f, int i)
{
    *f = (hf_folder){ .n = 0 };
    hf_add_all(f, i == 2 ? "linear.weight 12,16;" : "linear.weight 10,12;", NULL, 0);
}

/* What sentence-transformers puts beside a model: pooling, and two layers behind it where `dense`. */
static inline void hf_modules(const char *folder, const char *mode, bool dense)
{
    char path[256], text[1024];
    int n = snprintf(text, sizeof text,
                     "[{\"idx\":0,\"name\":\"0\",\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
                     "{\"idx\":1,\"name\":\"1\",\"path\":\"1_Pooling\",\"type\":"
                     "\"sentence_transformers.models.Pooling\"}");
    snprintf(path, sizeof path, "%s/1_Pooling", folder);
    mkdir(path, 0700);
    for (int i = 2; dense && i < 4; i++) {
        hf_folder f;
        char config[256];
        hf_dense(&f, i);
        snprintf(config, sizeof config,
                 "{\"in_features\":%d,\"out_features\":%d,\"bias\":false,\"activation_function\":"
                 "\"torch.nn.modules.linear.Identity\"}",
                 i == 2 ? 16 : 12, i == 2 ? 12 : 10);
        f.config = config;
        snprintf(path, sizeof path, "%s/%d_Dense", folder, i);
        hf_write(&f, path);
        n += snprintf(text + n, sizeof text - (size_t)n,
                      ",{\"idx\":%d,\"name\":\"%d\",\"path\":\"%d_Dense\",\"type\":"
                      "\"sentence_transformers.models.Dense\"}",
                      i, i, i);
    }
    snprintf(text + n, sizeof text - (size_t)n, "]");
    hf_write_text(folder, "modules.json", text);
    snprintf(text, sizeof text, "{\"word_embedding_dimension\":16,\"pooling_mode_%s\":true}", mode);
    hf_write_text(folder, "1_Pooling/config.json", text);
}

#endif
