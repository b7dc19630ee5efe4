/* hf_back_rwkv: an RWKV file becomes a folder: in flash-linear-attention's names of RWKV-7, which the hub's folders
 * have, and of RWKV-6 in those of Hugging Face's class. Owns which tensors such a folder has, their shapes, and its
 * config. What they are in GGUF is said by the conversion that reads them (convert_rwkv.c), whose plan is walked the
 * other way; refuses to know the vocabulary's literals (convert_world.c). */
#include "base/json_tree.h"
#include "forge/hf_back.h"

#include "base/file.h"

#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static const hn_hf_class rwkv7 = { .names = "RWKV7ForCausalLM", .types = "rwkv7", .arch = "rwkv7" };
static const hn_hf_class rwkv6 = { .names = "Rwkv6ForCausalLM", .types = "rwkv6", .arch = "rwkv6" };

const hn_hf_class *hn_hf_back_rwkv_class(const char *arch)
{
    return !strcmp(arch, "rwkv7") ? &rwkv7 : !strcmp(arch, "rwkv6") ? &rwkv6 : NULL;
}

/* ---- sources -------------------------------------------------------------------------------------------------- */

/* A name and its sizes, outermost first: E width, V vocabulary, F feed-forward, H heads of N; ranks: W decay, A, R
 * value, G gate (7), D decay, X mixing, Y five of it (6). L stands for the layer. */
static const char *const outside7[] = {
    "model.embeddings.weight VE",
    "lm_head.weight VE",
    "model.norm.weight E",
    "model.norm.bias E",
    "model.layers.0.pre_norm.weight E",
    "model.layers.0.pre_norm.bias E",
    NULL,
};
static const char *const layer7[] = {
    "attn_norm.weight E",
    "attn_norm.bias E",
    "ffn_norm.weight E",
    "ffn_norm.bias E",
    "attn.x_r 11E",
    "attn.x_w 11E",
    "attn.x_k 11E",
    "attn.x_v 11E",
    "attn.x_a 11E",
    "attn.x_g 11E",
    "attn.k_k E",
    "attn.k_a E",
    "attn.r_k HN",
    "attn.r_proj.weight EE",
    "attn.k_proj.weight EE",
    "attn.v_proj.weight EE",
    "attn.o_proj.weight EE",
    "attn.w_lora.lora.0.weight WE",
    "attn.w_lora.lora.2.weight EW",
    "attn.w_lora.lora.2.bias E",
    "attn.a_lora.lora.0.weight AE",
    "attn.a_lora.lora.2.weight EA",
    "attn.a_lora.lora.2.bias E",
    "attn.g_lora.lora.0.weight GE",
    "attn.g_lora.lora.2.weight EG",
    "attn.g_norm.weight E",
    "attn.g_norm.bias E",
    "ffn.x_k E",
    "ffn.key.weight FE",
    "ffn.value.weight EF",
    NULL,
};
/* The first layer has no value of an earlier one to mix in. */
static const char *const later7[] = {
    "attn.v_lora.lora.0.weight RE",
    "attn.v_lora.lora.2.weight ER",
    "attn.v_lora.lora.2.bias E",
    NULL,
};
static const char *const outside6[] = {
    "rwkv.embeddings.weight VE",
    "head.weight VE",
    "rwkv.ln_out.weight E",
    "rwkv.ln_out.bias E",
    "rwkv.blocks.0.pre_ln.weight E",
    "rwkv.blocks.0.pre_ln.bias E",
    NULL,
};
static const char *const layer6[] = {
    "ln1.weight E",
    "ln1.bias E",
    "ln2.weight E",
    "ln2.bias E",
    "attention.time_maa_x 11E",
    "attention.time_maa_w 11E",
    "attention.time_maa_k 11E",
    "attention.time_maa_v 11E",
    "attention.time_maa_r 11E",
    "attention.time_maa_g 11E",
    "attention.time_maa_w1 EY",
    "attention.time_maa_w2 5XE",
    "attention.time_decay 11E",
    "attention.time_decay_w1 ED",
    "attention.time_decay_w2 DE",
    "attention.time_faaaa HN",
    "attention.receptance.weight EE",
    "attention.key.weight EE",
    "attention.value.weight EE",
    "attention.output.weight EE",
    "attention.gate.weight EE",
    "attention.ln_x.weight E",
    "attention.ln_x.bias E",
    "feed_forward.time_maa_k 11E",
    "feed_forward.time_maa_r 11E",
    "feed_forward.key.weight FE",
    "feed_forward.receptance.weight EE",
    "feed_forward.value.weight EF",
    NULL,
};

static uint64_t size_of(const hn_hparams *hp, char letter)
{
    switch (letter) {
    case 'E': return (uint64_t)hp->n_embd;
    case 'V': return (uint64_t)hp->n_vocab;
    case 'F': return (uint64_t)hp->n_ff;
    case 'H': return (uint64_t)hp->n_head;
    case 'N': return (uint64_t)hp->head_dim;
    case 'W':
    case 'D': return (uint64_t)hp->rank_decay;
    case 'A': return (uint64_t)hp->rank_iclr;
    case 'R': return (uint64_t)hp->rank_value;
    case 'G': return (uint64_t)hp->rank_gate;
    case 'X': return (uint64_t)hp->rank_mix;
    case 'Y': return 5 * (uint64_t)hp->rank_mix;
    default: return (uint64_t)(letter - '0');
    }
}

static hone_status add_sources(hn_hf *f, const hn_hparams *hp, const char *const *rows, int32_t il, hone_error *err)
{
    hone_status st;
    for (; *rows; rows++) {
        char name[96];
        size_t n = strcspn(*rows, " ");
        const char *dims = *rows + n + 1;
        uint64_t ne[3];
        const hn_ckpt_tensor *t;
        int32_t n_dim = (int32_t)strlen(dims);
        const char *layers = f->of == &rwkv7 ? "model.layers" : "rwkv.blocks";
        if (il < 0) snprintf(name, sizeof name, "%.*s", (int)n, *rows);
        else snprintf(name, sizeof name, "%s.%d.%.*s", layers, (int)il, (int)n, *rows);
        for (int32_t d = 0; d < n_dim; d++) ne[n_dim - 1 - d] = size_of(hp, dims[d]);
        TRY(hn_hf_need(&t, f, name, n_dim, ne, err));
    }
    return HONE_OK;
}

static hone_status add_all_sources(hn_hf *f, const hn_hparams *hp, hone_error *err)
{
    bool seven = f->of == &rwkv7;
    hone_status st;
    TRY(add_sources(f, hp, seven ? outside7 : outside6, -1, err));
    for (int32_t il = 0; il < hp->n_layer; il++) {
        TRY(add_sources(f, hp, seven ? layer7 : layer6, il, err));
        if (seven && il > 0) TRY(add_sources(f, hp, later7, il, err));
    }
    return HONE_OK;
}

/* ---- the config ----------------------------------------------------------------------------------------------- */

/* fla's norm of heads has an ε of head_dim · norm_eps, which is right for heads of 64 alone: of others it is said. */
static json_t *config7(const hn_hparams *hp)
{
    json_t *o = json_pack(
        "{s:[s], s:s, s:n, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:b, s:b, s:f, s:b, s:b, "
        "s:i, s:i}",
        "architectures", "RWKV7ForCausalLM", "model_type", "rwkv7", "attn", "attn_mode", "chunk", "vocab_size",
        hp->n_vocab, "hidden_size", hp->n_embd, "intermediate_size", hp->n_ff, "num_hidden_layers", hp->n_layer,
        "head_dim", hp->head_dim, "num_heads", hp->n_head, "decay_low_rank_dim", hp->rank_decay, "a_low_rank_dim",
        hp->rank_iclr, "v_low_rank_dim", hp->rank_value, "gate_low_rank_dim", hp->rank_gate, "max_position_embeddings",
        hp->n_ctx_train, "hidden_act", "sqrelu", "norm_first", 1, "norm_bias", 1, "norm_eps", 1e-5, "use_cache", 1,
        "tie_word_embeddings", 0, "bos_token_id", 0, "eos_token_id", 0);
    bool lost = o && hp->head_dim != 64 && json_object_set_new(o, "group_norm_epsilon", json_real(64e-5)) != 0;
    if (!lost) return o;
    json_decref(o);
    return NULL;
}

static json_t *config6(const hn_hparams *hp)
{
    return json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:i, s:b, s:b, s:i, s:i}", "architectures",
                     "Rwkv6ForCausalLM", "model_type", "rwkv6", "vocab_size", hp->n_vocab, "hidden_size", hp->n_embd,
                     "attention_hidden_size", hp->n_embd, "intermediate_size", hp->n_ff, "num_hidden_layers",
                     hp->n_layer, "head_size", hp->head_dim, "head_size_divisor", 8, "layer_norm_epsilon", 1e-5,
                     "rescale_every", hp->rescale_every, "use_cache", 1, "tie_word_embeddings", 0, "bos_token_id", 0,
                     "eos_token_id", 0);
}

static hone_status make_config(hn_hf *f, const hn_hparams *hp, hone_error *err)
{
    f->root = f->of == &rwkv7 ? config7(hp) : config6(hp);
    f->config = f->root;
    char *text = f->root ? hn_json_dump(f->root, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "%s: a config", f->path);
    f->c->version = f->of == &rwkv7 ? 7 : 6;
    return hn_config_take(&f->c->config, f->path, text, strlen(text), err);
}

/* ---- the plan, the other way ------------------------------------------------------------------------------------ */

/* Copies of the first layer's a0, a1, a2, which nothing reads: a folder has none. */
static bool is_copy(const hn_hf *f, const char *name)
{
    return f->of == &rwkv7 && !strncmp(name, "blk.0.time_mix_v", 16) && strchr("012", name[16]) && name[17] == '.';
}

/* Files of a rescaled RWKV-6 hold the outputs of layer il divided by 2^(il / n). */
static hn_hf_view scaled(const hn_hf_view *v, const char *name, int32_t every)
{
    hn_hf_view out = *v;
    int il = 0;
    bool output = strstr(name, ".time_mix_output.weight") || strstr(name, ".channel_mix_value.weight");
    if (!every || !output || sscanf(name, "blk.%d.", &il) != 1 || il < every) return out;
    out.map = HN_HF_TIMES;
    out.by = 1;
    for (int i = 0; i < il / every; i++) out.by *= 0.5f;
    return out;
}

static hone_status add_tensor(hn_hf *f, const hn_plan_tensor *t, int32_t every, hone_error *err)
{
    hone_status st;
    TRY(hn_hf_begin(f, t->name, t->n_dim, t->ne, err));
    f->t[f->n - 1].always_f32 = t->always_f32;
    if (is_copy(f, t->name)) return HONE_OK;
    for (int32_t i = 0; i < t->n_src; i++) {
        hn_hf_view v = hn_hf_all(t->src[i]);
        if (t->n_mat)
            v = (hn_hf_view){ .from = t->src[i],
                              .n = { t->n_row, t->n_col, t->n_mat },
                              .stride = { t->n_col, 1, t->n_row * t->n_col } };
        v = scaled(&v, t->name, every);
        TRY(hn_hf_add(f, &v, err));
    }
    return HONE_OK;
}

static hone_status read_numbers(hn_hf *f, int32_t n_vocab, hone_error *err)
{
    hn_gguf *keys = NULL;
    size_t n;
    hone_status st;
    TRY(hn_gguf_write_keys(f->w, &f->keys, &n, err));
    TRY(hn_gguf_parse(&keys, f->keys, n, f->path, err));
    return hn_model_from_keys(&f->m, keys, n_vocab, err);
}

hone_status hn_hf_back_rwkv(hn_hf *f, const hone_model *m, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    hn_plan plan = { 0 };
    hone_status st;
    snprintf(f->prefix, sizeof f->prefix, "model.");
    snprintf(f->head, sizeof f->head, "lm_head");
    TRY(add_all_sources(f, hp, err));
    TRY(make_config(f, hp, err));
    TRY(hn_gguf_writer_new(&f->w, err));
    st = hn_convert_rwkv_follow(&plan, f->w, f->c, err);
    for (size_t i = 0; i < plan.n && st == HONE_OK; i++) st = add_tensor(f, &plan.t[i], hp->rescale_every, err);
    hn_plan_free(&plan);
    return st == HONE_OK ? read_numbers(f, hp->n_vocab, err) : st;
}

/* ---- the vocabulary --------------------------------------------------------------------------------------------- */

static hone_status write_text(const hn_hf *f, const char *file, const char *text, size_t n, hone_error *err)
{
    char path[4352];
    hone_status st;
    snprintf(path, sizeof path, "%s/%s", f->a->dst, file);
    TRY(hn_hf_back_tell(f, file, err));
    return hn_file_replace(path, text, n, err);
}

/* The template's name is what a folder without one has. */
hone_status hn_hf_back_world(const hn_hf *f, hone_error *err)
{
    hone_str model = { 0 }, chat = { 0 };
    bool found = false;
    char *text = NULL;
    size_t n = 0;
    hone_status st;
    TRY(hn_gguf_get_str(f->back, "tokenizer.ggml.model", &model, &found, err));
    if (!found) return HONE_OK;
    if (model.len != 4 || memcmp(model.ptr, "rwkv", 4))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: tokenizer.ggml.model is \"%s\", expected rwkv: hone reads no other vocabulary of a folder "
                       "of RWKV",
                       f->path, HN_ESC(model.ptr, model.len));
    TRY(hn_world_write(f->back, (uint64_t)f->m->hp.n_vocab, &text, &n, err));
    st = write_text(f, "rwkv_vocab_v20230424.txt", text, n, err);
    free(text);
    if (st != HONE_OK) return st;
    TRY(hn_gguf_get_str(f->back, "tokenizer.chat_template", &chat, &found, err));
    if (!chat.len || (chat.len == 10 && !memcmp(chat.ptr, "rwkv-world", 10))) return HONE_OK;
    return write_text(f, "chat_template.jinja", chat.ptr, chat.len, err);
}
