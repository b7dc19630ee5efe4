/* hf_delta: classes of transformers with the gated delta rule (Qwen3-Next, Qwen3.5) and with Kimi's. Owns how their
 * rows are dealt: by heads of keys there, all of one kind together here, or heads of values in tiles. Refuses to know
 * how pieces are walked (hf_make.c). */
#include "forge/hf_rows.h"

#include <stdlib.h>

/* ---- numbers ----- */

#define RECURS "linear_attention"
#define INDEXED "|indexed_attention" /* Qwen 4's */

#define GDN_ROWS                                                                                                  \
    MORE("linear_num_key_heads", NULL), MORE("linear_num_value_heads", NULL), MORE("linear_key_head_dim", NULL),  \
        MORE("linear_value_head_dim", NULL), MORE("linear_conv_kernel_dim", NULL),                                \
        MORE("full_attention_interval", NULL), MORE("mtp_num_hidden_layers", NULL),                               \
        MORE("intermediate_size", "feed_forward_length"), ONLY("attention_bias", 0), ONLY("attn_output_gate", 1), \
        ONLY("use_sliding_window", 0), U32_OR("head_dim", "attention.key_length|attention.value_length", 256)
#define GDN_MOE_ROWS                                                                                                 \
    U32("num_experts", "expert_count"), USED, WIDTH,                                                                 \
        U32("shared_expert_intermediate_size", "expert_shared_feed_forward_length"), ONLY("decoder_sparse_step", 1), \
        ONLY("norm_topk_prob", 1), MORE("mlp_only_layers", NULL)
#define GDN_IDLE "mamba_ssm_dtype mtp_use_dedicated_embeddings sliding_window max_window_layers " ROUTER_IDLE

/* The last of so many layers attends; or, where the config has another order, a truth value for each. */
static hone_status put_order(hn_hf *f, hone_error *err)
{
    hn_hf_layers l;
    int64_t period;
    uint8_t *recurs;
    bool regular = true;
    hone_status st;
    TRY(hn_hf_read_layers(f, "layer_types", &l, err));
    TRY(hn_hf_whole(f, "full_attention_interval", 4, &period, err));
    const int64_t n_block = l.n + f->n_draft; /* blocks that draft attend */
    if (!(recurs = hn_arena_alloc(f->arena, (size_t)n_block))) return HN_FAIL(err, HONE_E_NOMEM, "%s: layers", f->path);
    memset(recurs, 0, (size_t)n_block);
    for (int64_t il = 0; il < l.n && l.list; il++) {
        recurs[il] = hn_hf_layer_is(l.list, il, RECURS);
        if (!recurs[il] && !hn_hf_layer_is(l.list, il, ATTENDS INDEXED))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: layer_types[%lld], expected one of " RECURS "|" ATTENDS,
                           f->path, (long long)il);
        regular &= period > 0 && recurs[il] == ((il + 1) % period != 0);
    }
    if (regular) return hn_hf_put_u32(f, "full_attention_interval", (uint32_t)period, err);
    return hn_hf_put_layers(f, "attention.recurrent_layers", HONE_KV_BOOL, recurs, n_block, err);
}

/* Parts of positions of several inputs: of text all are equal, but other programs ask for the key. Unsaid, they are
 * what the classes of Qwen3.5 and 4 have. */
static hone_status put_sections(hn_hf *f, hone_error *err)
{
    const json_t *rope = hn_hf_get(f, "rope_parameters|rope_scaling"), *list = json_object_get(rope, "mrope_section");
    int32_t part[4] = { 11, 11, 10 };
    if (!json_is_array(list) && !strcmp(f->of->arch, "qwen3next")) return HONE_OK;
    for (size_t i = 0; i < 4 && json_is_array(list); i++)
        part[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return hn_hf_put_layers(f, "rope.dimension_sections", HONE_KV_I32, part, 4, err);
}

static hone_status gdn_more(hn_hf *f, hone_error *err)
{
    static const char *const names[] = { "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
                                         "linear_value_head_dim", "linear_conv_kernel_dim" };
    static const int64_t absent[] = { 16, 32, 128, 128, 4 };
    int64_t v[5], n_ff, n_exp;
    const json_t *dense = hn_hf_get(f, "mlp_only_layers");
    hone_status st;
    for (size_t i = 0; i < 5; i++) TRY(hn_hf_whole(f, names[i], absent[i], &v[i], err));
    if (v[2] != v[3] || v[1] > HN_MAX_HEAD || v[2] > HN_MAX_EMBD)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %lld values of %lld, keys of %lld, expected linear_key_head_dim = linear_value_head_dim",
                       f->path, (long long)v[1], (long long)v[3], (long long)v[2]);
    if (json_array_size(dense)) return hn_hf_refuse(f, "mlp_only_layers", dense, "[]", err);
    TRY(hn_hf_put_u32(f, "ssm.conv_kernel", (uint32_t)v[4], err));
    TRY(hn_hf_put_u32(f, "ssm.state_size", (uint32_t)v[2], err));
    TRY(hn_hf_put_u32(f, "ssm.group_count", (uint32_t)v[0], err));
    TRY(hn_hf_put_u32(f, "ssm.time_step_rank", (uint32_t)v[1], err));
    TRY(hn_hf_put_u32(f, "ssm.inner_size", (uint32_t)(v[1] * v[2]), err));
    TRY(hn_hf_whole(f, "moe_intermediate_size", 0, &n_exp, err));
    TRY(hn_hf_whole(f, "intermediate_size", n_exp, &n_ff, err)); /* of no layer, where there are experts */
    TRY(hn_hf_put_u32(f, "feed_forward_length", (uint32_t)n_ff, err));
    TRY(put_order(f, err));
    return put_sections(f, err);
}

/* ---- by heads of keys: Qwen3-Next ----- */

typedef struct deal {
    uint64_t w, d, n_key, r; /* elements of a row; width of a head; heads of keys; of values for each */
} deal;

static deal deal_of(const hn_hf *f, const hn_hf_at *at)
{
    const hn_hparams *hp = &f->m->hp;
    return (deal){ at->n_dim > 1 ? at->ne[0] : 1, (uint64_t)hp->ssm_state, (uint64_t)hp->ssm_group,
                   (uint64_t)(hp->ssm_head / hp->ssm_group) };
}

static bool recurs_at(const hn_hf_at *at) { return at->plan->mixer == HN_MIXER_GDN; }

/* Of each head of keys: its query, its key, its values, their gates. */
static hone_status next_qkvz(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const deal k = deal_of(f, at);
    const uint64_t part = k.d * k.w, group = (2 + 2 * k.r) * part;
    const bool gate = strstr(at->name, "attn_gate") != NULL;
    const uint64_t first[3] = { 0, part, 2 * part }, n[3] = { part, part, k.r * part };
    const hn_ckpt_tensor *t;
    hone_status st;
    if (!recurs_at(at)) return HONE_OK; /* a layer that attends has its rows elsewhere */
    TRY(hn_hf_need(&t, f, at->hf, 2, (uint64_t[]){ k.w, k.n_key * (2 + 2 * k.r) * k.d }, err));
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    if (gate)
        return hn_hf_add(
            f,
            &(hn_hf_view){ .from = t, .first = (2 + k.r) * part, .n = { k.r * part, k.n_key }, .stride = { 1, group } },
            err);
    for (size_t i = 0; i < 3; i++) {
        hn_hf_view v = { .from = t, .first = first[i], .n = { n[i], k.n_key }, .stride = { 1, group } };
        TRY(hn_hf_add(f, &v, err));
    }
    return HONE_OK;
}

#define GDN_NAMES                                                                                                     \
    { "output_norm", "norm", hn_hf_plus_one }, { "attn_norm", "input_layernorm", hn_hf_plus_one },                    \
        { "post_attention_norm", "post_attention_layernorm", hn_hf_plus_one },                                        \
        { "attn_q_norm", "self_attn.q_norm", hn_hf_plus_one }, { "attn_k_norm", "self_attn.k_norm", hn_hf_plus_one }, \
    {                                                                                                                 \
        "ssm_norm", "linear_attn.norm", NULL                                                                          \
    }
#define GDN_MOE_NAMES                                                                                                  \
    { "ffn_gate_inp", "mlp.gate", NULL }, { "ffn_gate_inp_shexp", "mlp.shared_expert_gate", hn_hf_flat }, MLP_EXPERTS, \
        SHARED_NAMES("mlp.shared_expert")

static const hn_hf_name next_names[] = {
    GDN_NAMES,
    GDN_MOE_NAMES,
    { "attn_qkv", "linear_attn.in_proj_qkvz", next_qkvz },
    { "attn_gate", "linear_attn.in_proj_qkvz", next_qkvz },
    { "ssm_ba", "linear_attn.in_proj_ba", NULL },
    { "ssm_conv1d", "linear_attn.conv1d", hn_hf_reshaped },
    { "ssm_dt.bias", "linear_attn.dt_bias", NULL },
    { "ssm_a", "linear_attn.A_log", hn_hf_minus_exp },
    { "ssm_out", "linear_attn.out_proj", NULL },
    NAMES_END,
};
static const hn_hf_key next_keys[] = { GDN_ROWS, GDN_MOE_ROWS, KEYS_END };
static const hn_hf_class qwen3next = { .names = "Qwen3NextForCausalLM",
                                       .types = "qwen3_next",
                                       .arch = "qwen3next",
                                       .keys = next_keys,
                                       .tensors = next_names,
                                       .idle = GDN_IDLE,
                                       .left = "mtp.*",
                                       .drafts = HN_HF_MTP,
                                       .part = 0.25,
                                       .more = gdn_more };

/* ---- in tiles: Qwen3.5 ----- */

/* A head of values stands by its key there; here the first of each key come first. `first`: rows that stay in front;
 * per: rows of a head. */
static hone_status tiled(hn_hf *f, const hn_hf_at *at, const hn_ckpt_tensor *t, uint64_t first, uint64_t per,
                         hn_hf_map map, hone_error *err)
{
    const deal k = deal_of(f, at);
    const uint64_t head = per * k.w;
    hone_status st;
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    hn_hf_view front = { .from = t, .n = { first * k.w }, .stride = { 1 } };
    if (first) TRY(hn_hf_add(f, &front, err));
    hn_hf_view v = {
        .from = t, .first = first * k.w, .n = { head, k.n_key, k.r }, .stride = { 1, k.r * head, head }, .map = map
    };
    return hn_hf_add(f, &v, err);
}

/* Queries, keys and values, or gates: rows of heads. */
static hone_status tiled_heads(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const deal k = deal_of(f, at);
    const hn_ckpt_tensor *t;
    hone_status st;
    if (!recurs_at(at)) return HONE_OK;
    TRY(hn_hf_need(&t, f, at->hf, at->n_dim, at->ne, err));
    return tiled(f, at, t, strstr(at->name, "attn_qkv") ? 2 * k.n_key * k.d : 0, k.d, HN_HF_SAME, err);
}

/* A row, or a number, of each head of values. */
static hone_status tiled_rows(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const hn_ckpt_tensor *t;
    hone_status st;
    TRY(hn_hf_need(&t, f, at->hf, at->n_dim, at->ne, err));
    return tiled(f, at, t, 0, 1, strcmp(at->slot->name, "ssm_a") ? HN_HF_SAME : HN_HF_MINUS_EXP, err);
}

static hone_status tiled_taps(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const deal k = deal_of(f, at);
    const hn_ckpt_tensor *t;
    hone_status st;
    TRY(hn_hf_need(&t, f, at->hf, 3, (uint64_t[]){ at->ne[0], 1, at->ne[1] }, err));
    return tiled(f, at, t, 2 * k.n_key * k.d, k.d, HN_HF_SAME, err);
}

static hone_status tiled_columns(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const deal k = deal_of(f, at);
    hn_hf_view v = { .n = { k.d, k.n_key, k.r, at->ne[1] }, .stride = { 1, k.r * k.d, k.d, at->ne[0] } };
    return hn_hf_make(f, at, 2, at->ne, &v, err);
}

#define TILED_NAMES                                                                                                \
    { "attn_qkv", "linear_attn.in_proj_qkv", tiled_heads }, { "attn_gate", "linear_attn.in_proj_z", tiled_heads }, \
        { "ssm_beta", "linear_attn.in_proj_b", tiled_rows }, { "ssm_alpha", "linear_attn.in_proj_a", tiled_rows }, \
        { "ssm_conv1d", "linear_attn.conv1d", tiled_taps }, { "ssm_dt.bias", "linear_attn.dt_bias", tiled_rows },  \
        { "ssm_a", "linear_attn.A_log", tiled_rows },                                                              \
    {                                                                                                              \
        "ssm_out", "linear_attn.out_proj", tiled_columns                                                           \
    }

static const hn_hf_name qwen35_names[] = { GDN_NAMES, TILED_NAMES, NAMES_END };
static const hn_hf_name qwen35_moe_names[] = { GDN_NAMES, TILED_NAMES, GDN_MOE_NAMES, NAMES_END };
static const hn_hf_key qwen35_keys[] = { GDN_ROWS, MORE("shared_expert_intermediate_size", NULL), KEYS_END };
static const hn_hf_class qwen35 = { .names = "Qwen3_5ForCausalLM|Qwen3_5ForConditionalGeneration",
                                    .types = "qwen3_5_text",
                                    .arch = "qwen35",
                                    .keys = qwen35_keys,
                                    .tensors = qwen35_names,
                                    .idle = GDN_IDLE,
                                    .left = "mtp.*",
                                    .drafts = HN_HF_MTP,
                                    .part = 0.25,
                                    .more = gdn_more };
static const hn_hf_class qwen35_moe = { .names = "Qwen3_5MoeForCausalLM|Qwen3_5MoeForConditionalGeneration",
                                        .types = "qwen3_5_moe_text",
                                        .arch = "qwen35moe",
                                        .keys = next_keys,
                                        .tensors = qwen35_moe_names,
                                        .idle = GDN_IDLE,
                                        .left = "mtp.*",
                                        .drafts = HN_HF_MTP,
                                        .part = 0.25,
                                        .more = gdn_more };

/* ---- a wide stream, an index, n-grams: Qwen 4 ----- */

#define NGRAMS "ple.ple_embedding."

/* What the layer with n-grams has, layer from 0: "model.layers.IL.ple.ple_embedding.PART". */
static void ngram_name(char out[320], int64_t il, const char *part)
{
    snprintf(out, 320, "model.layers.%lld." NGRAMS "%s", (long long)il, part);
}

/* Whole numbers that are no weights: of a hash. */
static hone_status put_hash(hn_hf *f, int64_t il, const char *part, const char *key, int64_t n, hone_error *err)
{
    char name[320];
    uint8_t raw[8 * HN_MAX_NGRAM_HEADS];
    uint64_t v[HN_MAX_NGRAM_HEADS];
    hone_status st;
    ngram_name(name, il, part);
    const hn_ckpt_tensor *t = hn_hf_find(f, name);
    if (!t || t->raw != HN_RAW_I64 || t->n_dim != 1 || t->ne[0] != (uint64_t)n)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s%s; expected %lld whole numbers of 64 bits, as %s says",
                       f->c->path, name, t ? " is of another shape or type" : " is missing", (long long)n, f->path);
    TRY(hn_source_read(&f->c->part[t->part], t->off, raw, t->n_bytes, err));
    for (int64_t i = 0; i < n; i++) {
        v[i] = 0;
        for (int b = 0; b < 8; b++) v[i] |= (uint64_t)raw[8 * i + b] << 8 * b;
    }
    f->used[t - f->c->t] = (uint64_t)n;
    return hn_hf_put_layers(f, key, HONE_KV_U64, v, n, err);
}

/* The first of a config's ids of the end; -1: none. */
static int64_t first_end(hn_hf *f)
{
    const json_t *eos = hn_hf_get(f, "eos_token_id");
    if (json_is_array(eos)) eos = json_array_get(eos, 0);
    return json_is_integer(eos) ? json_integer_value(eos) : -1;
}

static hone_status put_ngrams(hn_hf *f, hone_error *err)
{
    const json_t *ids = hn_hf_get(f, "ple_layer_ids");
    int64_t size, per, width, n_embd, taps, eos = first_end(f);
    hone_status st;
    TRY(hn_hf_whole(f, "hidden_size", 0, &n_embd, err));
    TRY(hn_hf_whole(f, "ple_embed_dim", n_embd, &width, err));
    TRY(hn_hf_whole(f, "ngram_size", 3, &size, err));
    TRY(hn_hf_whole(f, "heads_per_ngram", 8, &per, err));
    TRY(hn_hf_whole(f, "ple_conv_kernel_size", 4, &taps, err));
    if (!json_array_size(ids)) return HONE_OK;
    const int64_t il = json_integer_value(json_array_get(ids, 0)) - 1, heads = (size - 1) * per;
    if (json_array_size(ids) != 1 || il < 0) return hn_hf_refuse(f, "ple_layer_ids", ids, "one layer, from 1 on", err);
    if (size < 2 || size > HN_MAX_NGRAM || heads < 1 || heads > HN_MAX_NGRAM_HEADS || width % heads || eos < 0)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: ngram_size = %lld, heads_per_ngram = %lld, ple_embed_dim = %lld, eos_token_id = %lld, "
                       "expected n-grams of 2 to %d with at most %d heads of equal widths, and an end",
                       f->path, (long long)size, (long long)per, (long long)width, (long long)eos, HN_MAX_NGRAM,
                       HN_MAX_NGRAM_HEADS);
    TRY(hn_hf_put_layers(f, "ple.layers", HONE_KV_U32, &(uint32_t){ (uint32_t)il }, 1, err));
    TRY(hn_hf_put_u32(f, "ple.ngram_size", (uint32_t)size, err));
    TRY(hn_hf_put_u32(f, "ple.heads_per_ngram", (uint32_t)per, err));
    TRY(hn_hf_put_u32(f, "ple.conv_kernel", (uint32_t)taps, err));
    TRY(hn_hf_put_u32(f, "ple.eos_token_id", (uint32_t)eos, err));
    TRY(hn_hf_put_u32(f, "embedding_length_per_layer_input", (uint32_t)(width / heads), err));
    TRY(put_hash(f, il, "layer_multipliers", "ple.layer_multipliers", size, err));
    TRY(put_hash(f, il, "ngram_heads_offsets", "ple.head_offsets", heads, err));
    return put_hash(f, il, "ngram_heads_vocab_sizes", "ple.head_vocab_sizes", heads, err);
}

static hone_status qwen4_more(hn_hf *f, hone_error *err)
{
    const json_t *gate = hn_hf_get(f, "output_gate_type"), *image = json_object_get(f->root, "image_token_id");
    hn_hf_layers l;
    int64_t ratio, period;
    hone_status st;
    TRY(gdn_more(f, err));
    if (!gate || strcmp(json_is_string(gate) ? json_string_value(gate) : "", "sigmoid")) /* unsaid it is silu */
        return hn_hf_refuse(f, "output_gate_type", gate, "\"sigmoid\"", err);
    TRY(hn_hf_whole(f, "indexer_compress_ratio", 0, &ratio, err));
    TRY(hn_hf_read_layers(f, "layer_types", &l, err));
    TRY(hn_hf_whole(f, "full_attention_interval", 4, &period, err));
    int32_t *of = hn_arena_alloc(f->arena, (size_t)l.n * sizeof *of);
    if (!of) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", f->path);
    for (int64_t il = 0; il < l.n; il++) {
        bool recurs = l.list ? hn_hf_layer_is(l.list, il, RECURS) : period < 1 || (il + 1) % period;
        of[il] = recurs ? 0 : (int32_t)ratio;
    }
    TRY(hn_hf_put_layers(f, "attention.compress_ratios", HONE_KV_I32, of, l.n, err));
    TRY(put_ngrams(f, err));
    return json_is_integer(image) && json_array_size(hn_hf_get(f, "ple_layer_ids"))
               ? hn_hf_put_u32(f, "ple.image_token_id", (uint32_t)json_integer_value(image), err)
               : HONE_OK;
}

/* Rows k, in the parts that checkpoints are saved in, or in one (k 0). NULL: there are none. */
static const hn_ckpt_tensor *ngram_part(const hn_hf *f, uint64_t k, char name[320])
{
    char part[64];
    ngram_name(name, f->m->hp.ngram.layer, "ngram_embedding.weight");
    const hn_ckpt_tensor *t = hn_hf_find(f, name);
    if (t) return k ? NULL : t;
    snprintf(part, sizeof part, "ngram_embedding.shard_%llu.weight", (unsigned long long)k);
    ngram_name(name, f->m->hp.ngram.layer, part);
    return hn_hf_find(f, name);
}

static void qwen4_tune(hn_hf *f)
{
    char name[320];
    hn_ngram_numbers *n = &f->m->hp.ngram;
    const hn_ckpt_tensor *t;
    if (!n->n_gram) return;
    n->n_row = 0;
    for (uint64_t k = 0; (t = ngram_part(f, k, name)); k++) n->n_row += (int64_t)t->ne[1];
}

static hone_status ngram_table(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    char name[320];
    const hn_ckpt_tensor *t;
    hone_status st;
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    for (uint64_t k = 0; k == 0 || ngram_part(f, k, name); k++) {
        t = ngram_part(f, k, name);
        TRY(hn_hf_need(&t, f, name, 2, (uint64_t[]){ at->ne[0], t ? t->ne[1] : 1 }, err));
        hn_hf_view v = hn_hf_all(t);
        TRY(hn_hf_add(f, &v, err));
    }
    return HONE_OK;
}

/* Queries' rows come first. */
static hone_status index_rows(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const hn_index_numbers *n = &f->m->hp.index;
    const uint64_t w = at->ne[0], all = (uint64_t)(n->n_head + 1) * (uint64_t)n->d;
    const bool key = strstr(at->name, "k_proj") != NULL;
    return hn_hf_make(
        f, at, 2, (uint64_t[]){ w, all },
        &(hn_hf_view){ .first = key ? (all - (uint64_t)n->d) * w : 0, .n = { w * at->ne[1] }, .stride = { 1 } }, err);
}

#define HYPER_NAMES(gguf, module)                                                                                 \
    { gguf "_norm", module ".hc_norm", hn_hf_plus_one }, { gguf "_down", module ".input_mix_weight_down", NULL }, \
        { gguf "_up", module ".input_mix_weight_up", NULL },                                                      \
    {                                                                                                             \
        gguf "_inject", module ".block_inject_weight", NULL                                                       \
    }
static const hn_hf_name qwen4_names[] = {
    HYPER_NAMES("hc_attn", "attn_hyper_connection"),
    HYPER_NAMES("hc_ffn", "mlp_hyper_connection"),
    HYPER_NAMES("output_hc", "hyper_connection_mixer"),
    { "indexer.q_proj", "self_attn.indexer.index_qk_proj", index_rows },
    { "indexer.k_proj", "self_attn.indexer.index_qk_proj", index_rows },
    { "indexer.q_norm", "self_attn.indexer.q_layernorm", hn_hf_plus_one },
    { "indexer.k_norm", "self_attn.indexer.k_layernorm", hn_hf_plus_one },
    { "per_layer_token_embd", "layers.*", ngram_table },
    { "ple_key", "ple.key_proj", NULL },
    { "ple_value", "ple.value_proj", NULL },
    { "ple_norm_key", "ple.norm_key", hn_hf_plus_one },
    { "ple_norm_query", "ple.norm_query", hn_hf_plus_one },
    { "ple_norm_conv", "ple.norm_conv", hn_hf_plus_one },
    { "ple_conv1d", "ple.conv1d", hn_hf_reshaped },
    GDN_NAMES,
    TILED_NAMES,
    GDN_MOE_NAMES,
    NAMES_END,
};
static const hn_hf_key qwen4_keys[] = { GDN_ROWS,
                                        GDN_MOE_ROWS,
                                        U32_OR("hc_count", "hyper_connection.count", 4),
                                        U32_OR("hc_lowrank", "hyper_connection.low_rank", 320),
                                        U32("indexer_n_heads", "attention.indexer.head_count"),
                                        U32("indexer_head_dim", "attention.indexer.key_length"),
                                        U32("indexer_budget", "attention.indexer.top_k"),
                                        ONLY("indexer_kv_heads", 1),
                                        MORE("indexer_compress_ratio", NULL),
                                        MORE("output_gate_type", NULL),
                                        MORE("ple_layer_ids", NULL),
                                        MORE("ple_embed_dim", NULL),
                                        MORE("ple_conv_kernel_size", NULL),
                                        MORE("ngram_size", NULL),
                                        MORE("heads_per_ngram", NULL),
                                        KEYS_END };
static const hn_hf_class qwen4 = {
    .names = "Qwen4ExpForCausalLM|Qwen4ExpForConditionalGeneration",
    .types = "qwen4_exp_text",
    .arch = "qwen4exp",
    .keys = qwen4_keys,
    .tensors = qwen4_names,
    .idle = GDN_IDLE
    "ngram_vocab_size_base make_ngram_vocab_size_divisible_by seed split_ngram_parts number_of_conv_states",
    .left = "mtp.*",
    .part = 0.25,
    .fits = hn_hf_never,
    .more = qwen4_more,
    .tune = qwen4_tune
};

/* ---- Kimi-Linear ----- */

/* Of dense layers: as published, or as transformers saves them. */
static hone_status kimi_dense(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_at as = *at;
    char name[320];
    const char *p = strstr(at->hf, "mlp.");
    if (p && !hn_hf_find(f, at->hf)) {
        snprintf(name, sizeof name, "%.*sblock_sparse_moe.%s", (int)(p - at->hf), at->hf, p + 4);
        if (hn_hf_find(f, name)) as.hf = name;
    }
    return hn_hf_plain(f, &as, err);
}

static const hn_hf_name kimi_names[] = {
    LATENT_NAMES,
    { "ssm_conv1d_q", "self_attn.q_conv1d", hn_hf_reshaped },
    { "ssm_conv1d_k", "self_attn.k_conv1d", hn_hf_reshaped },
    { "ssm_conv1d_v", "self_attn.v_conv1d", hn_hf_reshaped },
    { "ssm_f_a", "self_attn.f_a_proj", NULL },
    { "ssm_f_b", "self_attn.f_b_proj", NULL },
    { "ssm_g_a", "self_attn.g_a_proj", NULL },
    { "ssm_g_b", "self_attn.g_b_proj", NULL },
    { "ssm_beta", "self_attn.b_proj", NULL },
    { "ssm_dt.bias", "self_attn.dt_bias", NULL },
    { "ssm_a", "self_attn.A_log", hn_hf_minus_exp },
    { "ssm_norm", "self_attn.o_norm", NULL },
    { "ffn_gate", "mlp.gate_proj", kimi_dense },
    { "ffn_up", "mlp.up_proj", kimi_dense },
    { "ffn_down", "mlp.down_proj", kimi_dense },
    { "ffn_gate_inp", "block_sparse_moe.gate", NULL },
    { "exp_probs_b.bias", "block_sparse_moe.gate.e_score_correction_bias", hn_hf_flat },
    EXPERT_NAMES("block_sparse_moe.experts", "w1", "w3", "w2"),
    SHARED_NAMES("block_sparse_moe.shared_experts"),
    NAMES_END,
};
static const hn_hf_key kimi_keys[] = {
    LATENT_ROWS,
    U32_OR("model_max_length|max_position_embeddings", "context_length", 1048576),
    U32("num_experts", "expert_count"),
    U32("num_experts_per_token", "expert_used_count"),
    WIDTH,
    F32_OR("routed_scaling_factor", "expert_weights_scale", 2.446),
    ONLY("moe_renormalize", 1),
    ONLY("moe_layer_freq", 1),
    ONLY("mla_use_nope", 1),
    ONLY("use_grouped_topk", 1),
    WORD("moe_router_activation_func", "sigmoid"),
    MORE("num_expert_group", NULL),
    MORE("topk_group", NULL),
    MORE("num_shared_experts", NULL),
    MORE("first_k_dense_replace", NULL),
    MORE("mlp_layer_types", NULL),
    MORE("layer_types", NULL),
    MORE("linear_attn_config", NULL),
    MORE("linear_head_dim", NULL),
    MORE("linear_num_heads", NULL),
    MORE("linear_conv_kernel_dim", NULL),
    KEYS_END,
};

static int64_t member(const json_t *o, const char *key, int64_t absent)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) < 1 << 20 ? json_integer_value(v)
                                                                                              : absent;
}

/* Layers with latent attention have one head of keys: by words, or numbers from 1 on. */
static hone_status kimi_layers(hn_hf *f, const json_t *own, hone_error *err)
{
    hn_hf_layers l;
    const json_t *list = json_object_get(own, "full_attn_layers");
    int32_t *of;
    hone_status st;
    TRY(hn_hf_read_layers(f, "layer_types", &l, err));
    if (l.list) return hn_hf_put_numbers(f, "attention.head_count_kv", "layer_types", ATTENDS, RECURS, 1, err);
    if (!json_is_array(list)) return hn_hf_refuse(f, "linear_attn_config", own, "full_attn_layers in it", err);
    if (!(of = hn_arena_alloc(f->arena, (size_t)l.n * sizeof *of)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", f->path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > l.n)
            return hn_hf_refuse(f, "full_attn_layers", list, "numbers of layers from 1 on", err);
        of[json_integer_value(v) - 1] = 1;
    }
    return hn_hf_put_layers(f, "attention.head_count_kv", HONE_KV_I32, of, l.n, err);
}

static hone_status kimi_more(hn_hf *f, hone_error *err)
{
    const json_t *own = hn_hf_get(f, "linear_attn_config");
    int64_t rank, nope, rope, d, heads, n_head, taps, groups, used;
    hone_status st;
    TRY(hn_hf_whole(f, "kv_lora_rank", 0, &rank, err));
    TRY(hn_hf_whole(f, "qk_nope_head_dim", 0, &nope, err));
    TRY(hn_hf_whole(f, "qk_rope_head_dim", 0, &rope, err));
    TRY(hn_hf_whole(f, "num_attention_heads", 0, &n_head, err));
    TRY(hn_hf_whole(f, "linear_head_dim", member(own, "head_dim", 128), &d, err));
    TRY(hn_hf_whole(f, "linear_num_heads", member(own, "num_heads", n_head), &heads, err));
    TRY(hn_hf_whole(f, "linear_conv_kernel_dim", member(own, "short_conv_kernel_size", 4), &taps, err));
    if (heads != n_head || hn_hf_get(f, "q_lora_rank"))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %lld linear heads, expected as many as num_attention_heads = %lld, and no q_lora_rank",
                       f->path, (long long)heads, (long long)n_head);
    TRY(hn_hf_put_u32(f, "attention.key_length", (uint32_t)(rank + rope), err));
    TRY(hn_hf_put_u32(f, "attention.key_length_mla", (uint32_t)(nope + rope), err));
    TRY(hn_hf_put_u32(f, "rope.dimension_count", (uint32_t)rope, err));
    TRY(hn_hf_put_u32(f, "kda.head_dim", (uint32_t)d, err));
    TRY(hn_hf_put_u32(f, "ssm.conv_kernel", (uint32_t)taps, err));
    TRY(kimi_layers(f, own, err));
    TRY(hn_hf_put_u32(f, "expert_gating_func", 2, err));
    TRY(hn_hf_put_lead(f, 0, err));
    TRY(hn_hf_whole(f, "num_expert_group", 1, &groups, err));
    TRY(hn_hf_whole(f, "topk_group", 1, &used, err));
    if (groups > 1) TRY(hn_hf_put_u32(f, "expert_group_count", (uint32_t)groups, err));
    if (groups > 1) TRY(hn_hf_put_u32(f, "expert_group_used_count", (uint32_t)used, err));
    return hn_hf_put_shared(f, "num_shared_experts", "moe_intermediate_size", err);
}
static const hn_hf_class kimi = { .names = "KimiLinearForCausalLM",
                                  .types = "kimi_linear",
                                  .arch = "kimi-linear",
                                  .eps = 1e-5,
                                  .keys = kimi_keys,
                                  .tensors = kimi_names,
                                  .idle = ROUTER_IDLE "num_nextn_predict_layers rope_theta rope_scaling",
                                  .more = kimi_more };

const hn_hf_class *const hn_hf_delta[] = { &qwen3next, &qwen35, &qwen35_moe, &qwen4, &kimi, NULL };
