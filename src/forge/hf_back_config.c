/* hf_back_config: keys of GGUF become a config.json, by the rows that lead the other way, read backwards. What rows do
 * not say, a class's `more` did: those keys have members here. Owns no certainty: whoever calls follows the config
 * forwards and compares all numbers. Refuses to know tensors. */
#include "forge/hf_back.h"

#include <math.h>
#include <stdlib.h>

typedef struct back {
    const hn_hf *f;
    const hone_model *m;
    json_t *o;
    bool lost;          /* no memory */
    const char *unsaid; /* what no member can say */
} back;

static void set(back *b, const char *name, json_t *v) { b->lost |= !v || json_object_set_new(b->o, name, v) != 0; }
static void set_in(back *b, json_t *o, const char *name, json_t *v)
{
    b->lost |= !v || json_object_set_new(o, name, v) != 0;
}

/* The shortest decimal that is the same F32. */
static json_t *real(float x)
{
    char text[40];
    for (int p = 6; p <= 9; p++) {
        snprintf(text, sizeof text, "%.*g", p, (double)x);
        if (strtof(text, NULL) == x) break;
    }
    return json_real(strtod(text, NULL));
}

static const char *first_word(char out[96], const char *words)
{
    snprintf(out, 96, "%.*s", (int)strcspn(words, "|"), words);
    return out;
}

static int64_t find(const back *b, const char *suffix)
{
    char key[160];
    snprintf(key, sizeof key, "%s.%s", b->f->of->arch, suffix);
    return hn_gguf_find(b->f->back, key);
}

/* The number of a key; false: it is not there, or no single number. */
static bool number_of(const back *b, const char *suffix, double *out)
{
    hone_kv kv;
    int64_t i = find(b, suffix);
    if (i < 0) return false;
    hn_gguf_kv(b->f->back, (uint64_t)i, &kv);
    switch (kv.type) {
    case HONE_KV_F32:
    case HONE_KV_F64: *out = kv.v.f; return true;
    case HONE_KV_BOOL: *out = kv.v.b; return true;
    case HONE_KV_STRING:
    case HONE_KV_ARRAY: return false;
    case HONE_KV_I8:
    case HONE_KV_I16:
    case HONE_KV_I32:
    case HONE_KV_I64: *out = (double)kv.v.i; return true;
    default: *out = (double)kv.v.u; return true;
    }
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

static bool has_slot(const back *b, const char *words)
{
    for (const char *p = words; *p;) {
        char name[160];
        size_t n = strcspn(p, "|");
        for (int32_t il = 0; il < b->m->hp.n_layer; il++) { /* layers may differ */
            snprintf(name, sizeof name, "blk.%d.%.*s", (int)il, (int)n, p);
            if (hn_gguf_find_tensor(b->f->back, name)) return true;
        }
        p += n;
        p += *p != 0;
    }
    return false;
}

/* The same, or what tensors say of widths whose keys a file leaves out. */
static bool width_of(const back *b, const char *suffix, double *out)
{
    const hn_moe_numbers *n = &b->m->hp.moe;
    if (number_of(b, suffix, out)) return true;
    *out = !strcmp(suffix, "expert_feed_forward_length")          ? n->n_ff
           : !strcmp(suffix, "expert_shared_feed_forward_length") ? n->n_ff_shared
                                                                  : 0;
    return n->n_expert > 0 && *out > 0;
}

static void put_row(void *arg, const hn_hf_key *k)
{
    back *b = arg;
    char name[96], key[96];
    double x;
    if (!strncmp(k->config, "rope_", 5)) return;
    first_word(name, k->config);
    if (hn_hf_is_word(k->config, "max_position_embeddings", 23) && strcmp(name, "n_positions"))
        snprintf(name, sizeof name, "max_position_embeddings"); /* whatever else configs have called it */
    if (k->kind == HN_HF_TENSORS) {
        set(b, name, json_boolean(has_slot(b, k->says)));
        return;
    }
    if (k->kind == HN_HF_WORD) set(b, name, json_string(first_word(key, k->says)));
    const char *keys = hn_hf_row_key(k);
    if (!keys || !width_of(b, first_word(key, keys), &x)) return;
    if (!strcmp(key, "block_count")) x -= b->m->hp.n_nextn; /* configs count layers alone */
    if (k->kind == HN_HF_F32) set(b, name, real((float)x));
    else if (k->kind == HN_HF_BOOL) set(b, name, json_boolean(x != 0));
    else if (k->kind == HN_HF_U32 || k->kind == HN_HF_MORE) set(b, name, json_integer((json_int_t)x));
}

/* The row by which the class reads a member. */
typedef struct asked {
    const char *name;
    const hn_hf_key *row;
} asked;
static void look(void *arg, const hn_hf_key *k)
{
    asked *a = arg;
    if (hn_hf_is_word(k->config, a->name, strlen(a->name))) a->row = k;
}
static const hn_hf_key *reads(const back *b, const char *name)
{
    asked a = { name, NULL };
    hn_hf_each_row(b->f, look, &a);
    return a.row;
}

/* ---- what `more` reads ------------------------------------------------------------------------------------- */

static const char *type_of(const back *b) { return b->f->of->types; }
static bool is_type(const back *b, const char *words)
{
    char name[96];
    first_word(name, type_of(b));
    return hn_hf_is_word(words, name, strlen(name));
}

/* Numbers whose key has no row; the member is set where the class knows it. */
static const struct {
    const char *member, *key;
} also[] = {
    { "n_shared_experts", "expert_shared_count" },
    { "moe_num_shared_experts", "expert_shared_count" },
    { "num_shared_experts", "expert_shared_count" },
    { "first_k_dense_replace", "leading_dense_block_count" },
    { "n_group", "expert_group_count" },
    { "topk_group", "expert_group_used_count" },
    { "num_expert_group", "expert_group_count" },
    { "num_nextn_predict_layers", "nextn_predict_layers" },
    { "mtp_num_hidden_layers", "nextn_predict_layers" },
    { "mamba_d_state", "ssm.state_size" },
    { "mamba_n_heads", "ssm.time_step_rank" },
    { "mamba_n_groups", "ssm.group_count" },
    { "mamba_d_conv", "ssm.conv_kernel" },
    { "mamba_d_ssm", "ssm.inner_size" },
    { "state_size", "ssm.state_size" },
    { "num_heads", "ssm.time_step_rank" },
    { "n_groups", "ssm.group_count" },
    { "conv_kernel", "ssm.conv_kernel" },
    { "ssm_state_size", "ssm.state_size" },
    { "mamba_num_heads", "ssm.time_step_rank" },
    { "linear_conv_kernel_dim", "ssm.conv_kernel" },
    { "linear_head_dim", "kda.head_dim" },
    { "linear_key_head_dim", "ssm.state_size" },
    { "linear_num_key_heads", "ssm.group_count" },
    { "linear_num_value_heads", "ssm.time_step_rank" },
    { "shared_intermediate_size", "expert_shared_feed_forward_length" },
    { "shared_expert_intermediate_size", "expert_shared_feed_forward_length" },
    { "full_attention_interval", "full_attention_interval" },
    { "conv_L_cache", "shortconv.l_cache" },
    { "q_lora_rank", "attention.q_lora_rank" },
    { "kv_lora_rank", "attention.kv_lora_rank" },
};

static void put_others(back *b)
{
    double x, y;
    for (size_t i = 0; i < sizeof also / sizeof *also; i++)
        if (reads(b, also[i].member) && width_of(b, also[i].key, &x))
            set(b, also[i].member, json_integer((json_int_t)x));
    if (reads(b, "scoring_func") && number_of(b, "expert_gating_func", &x)) {
        set(b, "scoring_func", json_string(x == 2 ? "sigmoid" : "softmax"));
        if (reads(b, "topk_method")) set(b, "topk_method", json_string(x == 2 ? "noaux_tc" : "greedy"));
    }
    if (b->m->hp.moe.best_alone) set(b, "topk_method", json_string("group_limited_greedy"));
    if (number_of(b, "ssm.inner_size", &x) && number_of(b, "ssm.time_step_rank", &y) && y > 0) {
        static const char *const widths[] = { "mamba_d_head", "mamba_head_dim", "linear_value_head_dim" };
        for (size_t i = 0; i < 3; i++)
            if (reads(b, widths[i])) set(b, widths[i], json_integer((json_int_t)(x / y)));
        if (reads(b, "time_step_rank")) set(b, "time_step_rank", json_integer((json_int_t)y));
        if (is_type(b, "mamba|falcon_mamba")) set(b, "intermediate_size", json_integer((json_int_t)x));
        if (is_type(b, "mamba2")) set(b, "head_dim", json_integer((json_int_t)(x / y)));
        if (number_of(b, "embedding_length", &y) && y > 0) {
            if (reads(b, "mamba_expand")) set(b, "mamba_expand", json_integer((json_int_t)(x / y)));
            if (is_type(b, "mamba|falcon_mamba|mamba2")) set(b, "expand", json_integer((json_int_t)(x / y)));
        }
    }
}

/* Those whose layers are of two widths: their configs always say which layer is windowed. */
#define WIDE "gemma3n_text|gemma4_text"

static const char *layer_kind(const back *b, const hn_layer_plan *p)
{
    switch (p->mixer) {
    case HN_MIXER_CONV: return "conv";
    case HN_MIXER_MAMBA2: return "mamba";
    case HN_MIXER_GDN:
    case HN_MIXER_KDA: return "linear_attention";
    default: break;
    }
    if (is_type(b, "granitemoehybrid")) return "attention";
    return p->window ? "sliding_attention" : p->chunk ? "chunked_attention" : "full_attention";
}

/* Nemotron's: a letter for each layer, and widths of those that have one. */
static void put_pattern(back *b)
{
    char text[HN_MAX_LAYER + 1] = { 0 };
    int64_t n_ff = 0, n_exp = 0;
    for (int32_t il = 0; il < b->m->hp.n_layer; il++) {
        const hn_layer_plan *p = &b->m->plan[il];
        bool half = p->mixer == HN_MIXER_NONE, experts = half && p->ffn == HN_FFN_MOE;
        text[il] = p->mixer == HN_MIXER_MAMBA2 ? 'M' : !half ? '*' : experts ? 'E' : '-';
        if (experts) n_exp = b->m->hp.moe.n_ff;
        else if (half) n_ff = p->n_ff;
    }
    set(b, "hybrid_override_pattern", json_string(text));
    if (n_ff) set(b, "intermediate_size", json_integer(n_ff));
    if (n_exp) set(b, "moe_intermediate_size", json_integer(n_exp));
    set(b, "num_hidden_layers", json_integer(b->m->hp.n_layer));
}

/* Keys and values that are compressed. */
static void put_latent(back *b)
{
    double all = 0, rope = 0;
    if (!reads(b, "qk_nope_head_dim") || !number_of(b, "attention.key_length_mla", &all) ||
        !number_of(b, "rope.dimension_count", &rope))
        return;
    set(b, "qk_rope_head_dim", json_integer((json_int_t)rope));
    set(b, "qk_nope_head_dim", json_integer((json_int_t)(all - rope)));
    set(b, "num_key_value_heads", json_integer(b->m->hp.n_head));
    json_object_del(b->o, "head_dim");
    if (is_type(b, "mistral4")) set(b, "head_dim", json_integer((json_int_t)all));
    if (!number_of(b, "attention.q_lora_rank", &all)) set(b, "q_lora_rank", json_null());
}

/* Windows, which no row or a class's own way says. */
static void put_windows(back *b)
{
    const hn_hparams *hp = &b->m->hp;
    double w = 0;
    bool any = number_of(b, "attention.sliding_window", &w) && w > 0;
    if (is_type(b, "mistral|ministral3|phi3|starcoder2|mixtral"))
        set(b, "sliding_window", any ? json_integer((json_int_t)w) : json_null());
    if (is_type(b, "exaone4")) set(b, "sliding_window", hp->window ? json_integer(hp->window) : json_null());
    if (is_type(b, "qwen2|qwen3")) {
        set(b, "use_sliding_window", json_boolean(any));
        if (any) set(b, "sliding_window", json_integer((json_int_t)w));
        if (any) set(b, "max_window_layers", json_integer(0));
    }
    bool differ = false, turns = false, rests = false;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        const hn_layer_plan *p = &b->m->plan[il];
        differ |= p->window || p->chunk;
        turns |= hn_plan_has_positions(p) && p->rope >= 0;
        rests |= hn_plan_has_positions(p) && p->rope < 0;
    }
    json_t *kinds = json_array(), *rope = json_array();
    bool mixed = false;
    b->lost |= !kinds || !rope;
    for (int32_t il = 0; il < hp->n_layer && kinds && rope; il++) {
        const hn_layer_plan *p = &b->m->plan[il];
        mixed |= p->mixer == HN_MIXER_CONV || p->mixer == HN_MIXER_MAMBA2 || p->mixer == HN_MIXER_GDN ||
                 p->mixer == HN_MIXER_KDA;
        b->lost |= json_array_append_new(kinds, json_string(layer_kind(b, p))) != 0;
        b->lost |= json_array_append_new(rope, json_integer(p->rope >= 0)) != 0;
    }
    if (differ || is_type(b, WIDE "|exaone4") || (mixed && !is_type(b, "nemotron_h|mamba2|falcon_h1")))
        b->lost |= json_object_set(b->o, "layer_types", kinds) != 0;
    if (turns && rests && (!differ || is_type(b, "llama4_text")))
        b->lost |= json_object_set(b->o, "no_rope_layers", rope) != 0;
    json_decref(kinds);
    json_decref(rope);
}

/* As the model has it, whose file may mean one without saying so; null: there is none. */
static void put_cap(back *b, const char *name, float cap) { set(b, name, cap != 0 ? real(cap) : json_null()); }

/* ---- Gemma 3n and 4, Kimi-Linear ------------------------------------------------------------------------------ */

/* The share of a normal distribution below x, as an F32 that leads to x again. */
static json_t *share_below(float x)
{
    float p = (float)(0.5 * erfc(-(double)x * sqrt(0.5))), low = p, high = p;
    if (isinf(x)) return json_real(0);
    for (int i = 0; i < 8; i++, low = nextafterf(low, 0), high = nextafterf(high, 1)) {
        if (hn_hf_cut_of((double)low) == x) return real(low);
        if (hn_hf_cut_of((double)high) == x) return real(high);
    }
    return real(p); /* whoever follows it forwards refuses it */
}

/* Which layers keep how much of their gates, and the width of a low-rank pair, which only its tensors have. */
static void put_gemma3n(back *b)
{
    const hn_hparams *hp = &b->m->hp;
    const hn_gguf_tensor *left = hn_gguf_find_tensor(b->f->back, "blk.0.laurel_l.weight");
    json_t *list = json_array();
    b->lost |= !list;
    for (int32_t il = 0; il < hp->n_layer && list; il++)
        b->lost |= json_array_append_new(list, hp->sparsity ? share_below(hp->sparsity[il]) : json_real(0)) != 0;
    b->lost |= json_object_set(b->o, "activation_sparsity_pattern", list) != 0; /* unsaid, some would be sparse */
    json_decref(list);
    if (left) set(b, "laurel_rank", json_integer((json_int_t)left->ne[1]));
    put_cap(b, "final_logit_softcapping", hp->logit_cap);
}

/* Widths of feed-forward parts: a number for all, twice it for layers without keys of their own, or a list. */
static void put_widths(back *b, bool may_double)
{
    const hn_hparams *hp = &b->m->hp;
    bool alike = true, doubled = may_double && hp->n_own > 0;
    json_t *list = json_array();
    b->lost |= !list;
    for (int32_t il = 0; il < hp->n_layer && list; il++) {
        int32_t n = b->m->plan[il].n_ff, first = b->m->plan[0].n_ff;
        alike &= n == first;
        doubled &= n == first * (1 + (il >= hp->n_own));
        b->lost |= json_array_append_new(list, json_integer(n)) != 0;
    }
    if (doubled || (alike && may_double)) set(b, "intermediate_size", json_integer(b->m->plan[0].n_ff));
    else b->lost |= json_object_set(b->o, "intermediate_size", list) != 0;
    if (may_double) set(b, "use_double_wide_mlp", json_boolean(doubled));
    json_decref(list);
}

/* Heads of layers that see everything are wider, may have fewer keys, and may have no values of their own. */
static void put_gemma4(back *b)
{
    const hn_hparams *hp = &b->m->hp;
    int32_t kv = 0, kv_all = 0;
    bool shared = false;
    char name[64];
    for (int32_t il = 0; il < hp->n_layer; il++) {
        const hn_layer_plan *p = &b->m->plan[il];
        if (p->window) kv = p->n_head_kv;
        else kv_all = p->n_head_kv;
        snprintf(name, sizeof name, "blk.%d.attn_v.weight", (int)il);
        shared |= !p->window && !p->no_keys && !hn_gguf_find_tensor(b->f->back, name);
    }
    set(b, "num_key_value_heads", json_integer(kv ? kv : kv_all));
    set(b, "num_global_key_value_heads", shared && kv_all ? json_integer(kv_all) : json_null());
    set(b, "attention_k_eq_v", json_boolean(shared));
    set(b, "head_dim", json_integer(hp->head_dim_window));
    set(b, "global_head_dim", json_integer(hp->head_dim));
    set(b, "hidden_size_per_layer_input", json_integer(hp->n_ple));
    set(b, "enable_moe_block", json_boolean(hp->moe.n_expert > 0));
    set(b, "use_bidirectional_attention", json_null()); /* of images */
    if (!hp->moe.n_expert) return;
    set(b, "num_experts", json_integer(hp->moe.n_expert));
    set(b, "top_k_experts", json_integer(hp->moe.n_used));
    set(b, "moe_intermediate_size", json_integer(hp->moe.n_ff));
}

static void put_wide(back *b)
{
    if (!is_type(b, WIDE)) return;
    set(b, "vocab_size_per_layer_input", json_integer(b->m->hp.n_vocab));
    put_widths(b, is_type(b, "gemma4_text"));
    if (is_type(b, "gemma4_text")) put_gemma4(b);
    else put_gemma3n(b);
}

/* Which layers are dense, of classes that take no number of them. */
static void put_dense_layers(back *b)
{
    const hn_hparams *hp = &b->m->hp;
    if (!is_type(b, "kimi_linear|hy_v3")) return;
    json_t *kinds = json_array();
    for (int32_t il = 0; il < hp->n_layer && kinds; il++)
        b->lost |= json_array_append_new(kinds, json_string(il < hp->moe.n_lead ? "dense" : "sparse")) != 0;
    set(b, "mlp_layer_types", kinds);
    if (is_type(b, "kimi_linear")) set(b, "linear_num_heads", json_integer(hp->n_head));
}

/* ---- models that give rows ------------------------------------------------------------------------------------ */

#define BERTS "bert|xlm-roberta|nomic_bert|jina_embeddings_v3"

static uint32_t id_of(const back *b, const char *key, uint32_t absent)
{
    uint32_t id = absent;
    (void)hn_gguf_get_u32(b->f->back, key, &id, NULL, NULL);
    return id;
}

/* A config numbers the scores whose names the file lists; a file without names has one. */
static void put_labels(back *b)
{
    char key[160], number[24];
    hn_gguf_array a = { 0 };
    hone_str s = { "LABEL_0", 7 };
    bool named = false;
    uint64_t pos = 0;
    json_t *names = json_object(), *ids = json_object();
    snprintf(key, sizeof key, "%s.classifier.output_labels", b->f->of->arch);
    (void)hn_gguf_get_array(b->f->back, key, &a, &named, NULL);
    b->lost |= !names || !ids;
    if (named && a.count < 2) b->unsaid = "classifier.output_labels";
    for (uint64_t i = 0; i < (named ? a.count : 1) && !b->lost && !b->unsaid; i++) {
        bool text = !named || hn_gguf_next_str(&a, &pos, &s);
        char *name = text ? hn_arena_strndup(b->f->arena, s.ptr, s.len) : NULL;
        snprintf(number, sizeof number, "%llu", (unsigned long long)i);
        b->lost |= text && !name;
        json_t *v = name && *name && strlen(name) == s.len ? json_string(name) : NULL;
        if (!v) b->unsaid = "classifier.output_labels";
        else
            b->lost |= json_object_set_new(names, number, v) != 0 ||
                       json_object_set_new(ids, name, json_integer((json_int_t)i)) != 0;
    }
    set(b, "id2label", names);
    set(b, "label2id", ids);
}

static void put_modern(back *b)
{
    const hn_glu act = b->m->hp.act;
    set(b, "hidden_activation",
        json_string(act == HN_GLU_SILU   ? "silu"
                    : act == HN_GLU_GELU ? "gelu_pytorch_tanh"
                                         : "gelu"));
    set(b, "classifier_pooling", json_string(b->m->hp.rank_mean ? "mean" : "cls"));
    if (b->m->hp.pooling == HN_POOL_RANK) put_labels(b);
}

/* Positions of RoBERTa's begin behind the padding's; Jina's number as many. */
static void put_rows_of_text(back *b)
{
    const hn_gguf_tensor *types = hn_gguf_find_tensor(b->f->back, "token_types.weight");
    const hn_hparams *hp = &b->m->hp;
    if (!strcmp(b->f->of->arch, "gemma-embedding")) set(b, "use_bidirectional_attention", json_true());
    if (is_type(b, "modernbert")) put_modern(b);
    if (!is_type(b, BERTS)) return;
    if (types) set(b, "type_vocab_size", json_integer((json_int_t)types->ne[1]));
    if (hp->pooling == HN_POOL_RANK) put_labels(b);
    if (!is_type(b, "xlm-roberta|jina_embeddings_v3")) return;
    uint32_t pad = id_of(b, "tokenizer.ggml.padding_token_id", 1);
    if (pad >= (uint32_t)hp->n_vocab) pad = 1;
    set(b, "max_position_embeddings", json_integer((json_int_t)hp->n_ctx_train + pad + 1));
    set(b, "pad_token_id", json_integer(pad));
}

/* The width of heads, of a file that leaves it out, where a config without it would mean another. */
static void put_head_width(back *b)
{
    const hn_hparams *hp = &b->m->hp;
    bool usual = b->f->of->usual && strstr(b->f->of->usual, "head_dim ");
    const hn_layer_plan *p = hp->n_layer ? &b->m->plan[hp->n_layer - 1] : NULL;
    const hn_hf_key *row = reads(b, "head_dim");
    usual |= row && row->kind == HN_HF_U32 && row->when == HN_HF_USUALLY;
    if (usual && p && p->d_k > 0 && !json_object_get(b->o, "head_dim")) set(b, "head_dim", json_integer(p->d_k));
}

/* ---- what a class says in its own way ------------------------------------------------------------------------- */

static void put_special(back *b)
{
    const hn_hparams *hp = &b->m->hp;
    float scale = hp->n_layer ? b->m->plan[0].scale : 0;
    double x;
    if (is_type(b, "gemma2")) put_cap(b, "attn_logit_softcapping", hp->attn_cap);
    if (is_type(b, "gemma2")) put_cap(b, "final_logit_softcapping", hp->logit_cap);
    if (is_type(b, "gemma2|gemma3_text") && scale > 0)
        set(b, "query_pre_attn_scalar", json_integer((json_int_t)lround(1 / ((double)scale * (double)scale))));
    if (is_type(b, "gpt2") && number_of(b, "feed_forward_length", &x)) set(b, "n_inner", json_integer((json_int_t)x));
    if (is_type(b, "mixtral|olmoe|granitemoe") && number_of(b, "feed_forward_length", &x))
        set(b, "intermediate_size", json_integer((json_int_t)x));
    if (is_type(b, "nemotron_h")) put_pattern(b);
    if (is_type(b, "granitemoehybrid")) {
        bool turns = !number_of(b, "rope.scaling.finetuned", &x) || x != 0;
        set(b, "position_embedding_type", json_string(turns ? "rope" : "nope"));
        if (!hp->moe.n_expert) {
            set(b, "num_local_experts", json_integer(0));
            set(b, "num_experts_per_tok", json_integer(0));
            set(b, "shared_intermediate_size", json_integer(hp->n_ff));
        }
    }
    if (is_type(b, "lfm2")) set(b, "block_auto_adjust_ff_dim", json_false());
    if (is_type(b, "stablelm")) set(b, "use_parallel_residual", json_boolean(!has_slot(b, "ffn_norm.weight")));
    if (is_type(b, "falcon_h1")) set(b, "mamba_norm_before_gate", json_false());
    if (reads(b, "n_group") && !json_object_get(b->o, "n_group")) {
        set(b, "n_group", json_integer(1));
        set(b, "topk_group", json_integer(1));
    }
    put_head_width(b);
    put_latent(b);
    put_wide(b);
    put_dense_layers(b);
    put_rows_of_text(b);
    if (is_type(b, "qwen3_moe")) set(b, "norm_topk_prob", json_true());
    set(b, "vocab_size", json_integer(hp->n_vocab)); /* a key may say another number */
    if (!is_type(b, "gpt2|gpt_neox|" BERTS) && reads(b, "num_key_value_heads") &&
        !json_object_get(b->o, "num_key_value_heads") && hp->n_head_kv)
        set(b, "num_key_value_heads", json_integer(hp->n_head_kv));
}

/* ---- rotations ---------------------------------------------------------------------------------------------- */

static const double two_pi = 6.283185307179586477;

/* Factors of a tensor of the file, for each pair; NULL: there is none, or of other numbers. Free it. */
static float *factors(back *b, const char *name, size_t *n)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(b->f->back, name);
    if (!t || t->n_dim != 1 || t->type != HN_F32 || t->ne[0] > HN_MAX_EMBD) return NULL;
    float *v = malloc(t->n_bytes);
    if (!v) b->lost = true;
    else memcpy(v, t->data, t->n_bytes);
    *n = t->ne[0];
    return v;
}

static json_t *list_of(back *b, const char *name)
{
    size_t n = 0;
    float *v = factors(b, name, &n);
    json_t *a = json_array();
    for (size_t i = 0; i < n && a; i++) b->lost |= json_array_append_new(a, real(v[i])) != 0;
    free(v);
    return a;
}

/* Which first context makes these factors, with the low and high borders 1 and 4 that all such models have: one pair
 * on the ramp tells. */
static void put_llama3(back *b, json_t *p, const float *v, size_t n)
{
    double base = 10000, factor = 1, orig = 8192;
    number_of(b, "rope.freq_base", &base);
    for (size_t i = 0; i < n; i++) factor = (double)v[i] > factor ? (double)v[i] : factor;
    for (size_t i = 0; i < n; i++) {
        if (v[i] <= 1 || (double)v[i] >= factor) continue;
        double freq = pow(base, -2.0 * (double)i / (2.0 * (double)n));
        double smooth = (1 / (double)v[i] - 1 / factor) / (1 - 1 / factor);
        orig = round((3 * smooth + 1) * two_pi / freq);
        break;
    }
    set_in(b, p, "rope_type", json_string("llama3"));
    set_in(b, p, "factor", real((float)factor));
    set_in(b, p, "low_freq_factor", json_real(1));
    set_in(b, p, "high_freq_factor", json_real(4));
    set_in(b, p, "original_max_position_embeddings", json_integer((json_int_t)orig));
}

/* The first pairs turn: their share of all, in as many digits as a config is written with. */
static void put_part(back *b, json_t *p, const float *v, size_t n)
{
    size_t turning = 0;
    char text[32];
    while (turning < n && v[turning] == 1) turning++;
    snprintf(text, sizeof text, "%.9g", (double)turning / (double)n);
    double part = strtod(text, NULL);
    if ((size_t)((double)n * part) != turning) part = ((double)turning + 0.25) / (double)n;
    set_in(b, p, "rope_type", json_string("proportional"));
    set_in(b, p, "partial_rotary_factor", json_real(part));
}

/* x with x / by = a, all of them F32. */
static float factor_of(double a, double by)
{
    float x = (float)(a * by);
    if ((float)((double)nextafterf(x, 0) / by) == (float)a) x = nextafterf(x, 0);
    else if ((float)((double)x / by) != (float)a) x = nextafterf(x, INFINITY);
    return x;
}

static void put_yarn(back *b, json_t *p)
{
    double x = 0, factor = 1, l, a = 1, all = 0;
    bool latent = b->m->arch->is && b->m->arch->is->latent, multiplies = !strcmp(b->f->of->arch, "mistral3");
    set_in(b, p, "rope_type", json_string("yarn"));
    if (number_of(b, "rope.scaling.factor", &factor)) set_in(b, p, "factor", real((float)factor));
    if (number_of(b, "rope.scaling.original_context_length", &x))
        set_in(b, p, "original_max_position_embeddings", json_integer((json_int_t)x));
    if (number_of(b, "rope.scaling.yarn_beta_fast", &x)) set_in(b, p, "beta_fast", real((float)x));
    if (number_of(b, "rope.scaling.yarn_beta_slow", &x)) set_in(b, p, "beta_slow", real((float)x));
    l = factor > 1 ? 0.1 * log(factor) : 0;
    bool said = number_of(b, "rope.scaling.attn_factor", &a);
    if ((latent || multiplies) && number_of(b, "rope.scaling.yarn_log_multiplier", &all) && all != 0) {
        if (latent) all *= 10;
        set_in(b, p, "mscale_all_dim", real((float)all));
        set_in(b, p, "mscale", real((float)all));
        if (said || !latent)
            set_in(b, p, "attention_factor", real((float)(a * (latent ? 1 : (1 + l) / (1 + all * l)))));
        return;
    }
    if (said) set_in(b, p, "attention_factor", real(factor_of(a, 1 + l)));
}

static void put_longrope(back *b, json_t *p)
{
    double x;
    set_in(b, p, "rope_type", json_string("longrope"));
    set_in(b, p, "short_factor", list_of(b, "rope_factors_short.weight"));
    set_in(b, p, "long_factor", list_of(b, "rope_factors_long.weight"));
    if (number_of(b, "rope.scaling.attn_factor", &x)) set_in(b, p, "attention_factor", real((float)x));
    if (!number_of(b, "rope.scaling.original_context_length", &x)) return;
    set_in(b, p, "original_max_position_embeddings", json_integer((json_int_t)x));
    set(b, "original_max_position_embeddings", json_integer((json_int_t)x));
}

/* *scaled: more than a base. */
static void put_kind(back *b, json_t *p, bool *scaled)
{
    hone_str type = { 0 };
    char key[160];
    size_t n = 0;
    double x;
    float *v = factors(b, "rope_freqs.weight", &n);
    snprintf(key, sizeof key, "%s.rope.scaling.type", b->f->of->arch);
    (void)hn_gguf_get_str(b->f->back, key, &type, NULL, NULL);
    *scaled = true;
    if (v && is_type(b, "gemma4_text")) put_part(b, p, v, n);
    else if (v) put_llama3(b, p, v, n);
    else if (hn_gguf_find_tensor(b->f->back, "rope_factors_long.weight")) put_longrope(b, p);
    else if (type.len == 4 && !memcmp(type.ptr, "yarn", 4)) put_yarn(b, p);
    else if (type.len == 6 && !memcmp(type.ptr, "linear", 6)) {
        set_in(b, p, "rope_type", json_string("linear"));
        if (number_of(b, "rope.scaling.factor", &x)) set_in(b, p, "factor", real((float)x));
    } else {
        set_in(b, p, "rope_type", json_string("default"));
        *scaled = false;
    }
    free(v);
}

/* Parts of pairs for positions in time, height and width: of text all are the same. */
static void put_sections(back *b, json_t *p)
{
    hn_gguf_array a = { 0 };
    char key[160];
    bool found = false;
    snprintf(key, sizeof key, "%s.rope.dimension_sections", b->f->of->arch);
    if (hn_gguf_get_array(b->f->back, key, &a, &found, NULL) != HONE_OK || !found || a.elem_type != HONE_KV_I32 ||
        a.count < 3)
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < 3; i++) {
        int32_t v;
        memcpy(&v, a.data + 4 * i, 4);
        b->lost |= json_array_append_new(list, json_integer(v)) != 0;
    }
    set_in(b, p, "mrope_section", list);
    set_in(b, p, "mrope_interleaved", json_true());
}

static void put_rope(back *b)
{
    const hn_family *family = b->m->arch;
    const hn_hparams *hp = &b->m->hp;
    double base = 10000, x;
    bool scaled;
    if (!family->is || family->is->nope_period < 0 || hp->nope) return;
    json_t *p = json_object();
    if (!p) {
        b->lost = true;
        return;
    }
    number_of(b, "rope.freq_base", &base);
    set_in(b, p, "rope_theta", real((float)base));
    int32_t d = hp->n_layer ? b->m->plan[hp->n_layer - 1].d_k : 0;
    if (!family->is->latent && !is_type(b, WIDE) && d > 0 && hp->n_rot > 0 && (hp->n_rot != d || b->f->of->part != 0)) {
        set_in(b, p, "partial_rotary_factor", real((float)hp->n_rot / (float)d));
        set(b, "partial_rotary_factor", real((float)hp->n_rot / (float)d));
    }
    if (is_type(b, "mistral4") && number_of(b, "attention.key_length_mla", &x) && x > 0)
        set_in(b, p, "partial_rotary_factor", json_real((double)hp->n_rot / x));
    put_sections(b, p);
    put_kind(b, p, &scaled);
    if (is_type(b, "mistral4")) set_in(b, p, "llama_4_scaling_beta", real((float)hp->temperature.scale));
    if (is_type(b, "ministral3") && number_of(b, "attention.temperature_scale", &x))
        set_in(b, p, "llama_4_scaling_beta", real((float)x));
    bool own = hp->window && (family->is->window_base != 0 || number_of(b, "rope.freq_base_swa", &x));
    if (own) {
        double window_base = hp->window_base != 0 ? (double)hp->window_base : base;
        if (hp->window_base == 0 && family->is->window_base != 0) window_base = (double)family->is->window_base;
        number_of(b, "rope.freq_base_swa", &window_base);
        json_t *w = json_object(), *both = json_object();
        set_in(b, w, "rope_type", json_string("default"));
        set_in(b, w, "rope_theta", real((float)window_base));
        set_in(b, both, "full_attention", p);
        set_in(b, both, "sliding_attention", w);
        set(b, "rope_parameters", both);
        set(b, "rope_local_base_freq", real((float)window_base));
    } else {
        if (scaled) b->lost |= json_object_set(b->o, "rope_scaling", p) != 0;
        set(b, "rope_parameters", p);
    }
    set(b, "rope_theta", real((float)base));
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

static void put_ids(back *b)
{
    static const char *const ids[][2] = { { "bos_token_id", "tokenizer.ggml.bos_token_id" },
                                          { "eos_token_id", "tokenizer.ggml.eos_token_id" },
                                          { "pad_token_id", "tokenizer.ggml.padding_token_id" } };
    for (size_t i = 0; i < 3; i++) {
        uint32_t id = 0;
        bool found = false;
        (void)hn_gguf_get_u32(b->f->back, ids[i][1], &id, &found, NULL);
        if (!found && is_type(b, BERTS)) continue; /* theirs may not be null */
        set(b, ids[i][0], found ? json_integer(id) : json_null());
    }
}

hone_status hn_hf_back_config(json_t **out, const hn_hf *f, const hone_model *m, hone_error *err)
{
    char word[96];
    back b = { .f = f, .m = m, .o = json_object() };
    json_t *names = json_array();
    *out = NULL;
    b.lost |= !b.o || !names || json_array_append_new(names, json_string(first_word(word, f->of->names))) != 0;
    if (b.o && names) {
        set(&b, "architectures", names);
        names = NULL;
        set(&b, "model_type", json_string(first_word(word, f->of->types)));
        hn_hf_each_row(f, put_row, &b);
        put_others(&b);
        put_windows(&b);
        put_special(&b);
        put_rope(&b);
        put_ids(&b);
        set(&b, "tie_word_embeddings", json_boolean(!hn_gguf_find_tensor(f->back, "output.weight")));
    }
    json_decref(names);
    *out = b.o;
    if (b.lost) return HN_FAIL(err, HONE_E_NOMEM, "%s: a config", f->path);
    if (!b.unsaid) return HONE_OK;
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s.%s is nothing that a config of class %.*s can say", f->path,
                   f->of->arch, b.unsaid, (int)strcspn(f->of->names, "|"), f->of->names);
}
