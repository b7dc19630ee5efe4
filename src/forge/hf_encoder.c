/* hf_encoder: classes of transformers that read a whole text at once (BERT, XLM-RoBERTa, nomic-bert, EmbeddingGemma),
 * and what sentence-transformers puts behind any model: modules.json with pooling and layers. Refuses to know how
 * pieces are walked (hf_make.c) and how rows are pooled (engine/embed.c). */
#include "forge/hf_rows.h"

#include <stdlib.h>

/* ---- modules of sentence-transformers --------------------------------------------------------------------------- */

static const hn_json_rules rules = { .max_bytes = 16 << 20, .max_depth = 40, .flags = HN_JSON_UNIQUE | HN_JSON_PYTHON };

/* "a.b.Dense" is "Dense". */
static const char *last_word(const char *s)
{
    const char *dot = strrchr(s, '.');
    return dot ? dot + 1 : s;
}

/* A folder of this one, or the folder itself ("). */
static bool is_plain(const char *path)
{
    size_t n = strlen(path);
    return n < 128 && path[0] != '.' && !strchr(path, '/') && !strchr(path, '\\');
}

static hone_status read_beside(json_t **out, const hn_hf *f, const char *folder, const char *file, hone_error *err)
{
    char name[192], path[4352];
    bool there;
    hone_status st;
    *out = NULL;
    snprintf(name, sizeof name, "%s/%s", folder, file);
    TRY(hn_hf_beside(&there, f->c->path, name, path, err));
    if (there) return hn_json_tree_file(out, path, &rules, err);
    return HN_FAIL(err, HONE_E_FORMAT, "%s: has no %s, which its modules.json names", f->c->path, name);
}

static hone_status put_pooling(hn_hf *f, const char *folder, hone_error *err)
{
    static const char *const words[] = { "pooling_mode_mean_tokens", "pooling_mode_cls_token",
                                         "pooling_mode_lasttoken" };
    static const char *const modes[] = { "mean", "cls", "lasttoken" };
    static const hn_pooling kinds[] = { HN_POOL_MEAN, HN_POOL_FIRST, HN_POOL_LAST };
    json_t *o;
    const char *k;
    json_t *v;
    int kind = -1, n = 0;
    hone_status st = read_beside(&o, f, folder, "config.json", err);
    if (st != HONE_OK) return st;
    json_object_foreach(o, k, v)
    {
        bool mode = !strcmp(k, "pooling_mode") && json_is_string(v);
        if (!mode && (strncmp(k, "pooling_mode_", 13) || !json_is_true(v))) continue;
        n++;
        for (int i = 0; i < 3; i++)
            if (!strcmp(mode ? json_string_value(v) : k, mode ? modes[i] : words[i])) kind = i;
    }
    json_decref(o);
    if (n == 1 && kind >= 0) return hn_hf_put_u32(f, "pooling_type", (uint32_t)kinds[kind], err);
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s/%s/config.json: %d ways of pooling%s, expected one of mean, cls and lasttoken", f->c->path,
                   folder, n, kind < 0 ? " that hone does not have" : "");
}

/* A layer behind pooling: its matrix joins the list of sources as "FOLDER.linear.weight". */
static hone_status add_dense(hn_hf *f, const char *folder, int32_t number, hone_error *err)
{
    static const char key[] = "linear.weight";
    char name[192], path[4352], in[40], out[40];
    bool there;
    json_t *o;
    hn_ckpt *c;
    int32_t part;
    hone_status st;
    TRY(read_beside(&o, f, folder, "config.json", err));
    const char *act = last_word(hn_json_text_of(o, "activation_function"));
    bool plain = !strcmp(act, "Identity") && !json_is_true(json_object_get(o, "bias"));
    json_decref(o);
    if (!plain || strcmp(f->of->arch, "gemma-embedding"))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s/%s/config.json: a layer with %s behind pooling, expected one without bias and Identity, of "
                       "gemma-embedding",
                       f->c->path, folder, plain ? "Identity" : "a bias or another function");
    snprintf(name, sizeof name, "%s/model.safetensors", folder);
    TRY(hn_hf_beside(&there, f->c->path, name, path, err));
    if (!there) return HN_FAIL(err, HONE_E_FORMAT, "%s: has no %s, which its modules.json names", f->c->path, name);
    TRY(hn_ckpt_new(&c, f->c->path, err));
    st = hn_ckpt_add_part(c, path, &part, err);
    if (st == HONE_OK) st = hn_safetensors_read(c, part, err);
    const hn_ckpt_tensor *t = st == HONE_OK ? hn_ckpt_find(c, key, sizeof key - 1) : NULL;
    if (st == HONE_OK && (!t || t->n_dim != 2 || c->n != 1))
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: has %zu tensors, expected a matrix %s alone", path, c->n, key);
    if (st == HONE_OK) st = hn_ckpt_add_part(f->c, path, &part, err);
    hn_ckpt_tensor own = st == HONE_OK ? *t : (hn_ckpt_tensor){ 0 };
    snprintf(name, sizeof name, "dense_%d.weight", (int)number);
    own.name = (hone_str){ name, strlen(name) };
    own.part = part;
    if (st == HONE_OK) st = hn_ckpt_add(f->c, &own, err);
    if (st == HONE_OK) st = hn_hf_grow(f, err);
    hn_ckpt_free(c);
    if (st != HONE_OK) return st;
    snprintf(in, sizeof in, "dense_%d_feat_in", (int)number);
    snprintf(out, sizeof out, "dense_%d_feat_out", (int)number);
    if (own.ne[0] > HN_MAX_EMBD || own.ne[1] > HN_MAX_EMBD)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s of shape %s is too large", path, key, HN_SHAPE(&own));
    TRY(hn_hf_put_u32(f, in, (uint32_t)own.ne[0], err));
    return hn_hf_put_u32(f, out, (uint32_t)own.ne[1], err);
}

hone_status hn_hf_put_modules(hn_hf *f, hone_error *err)
{
    char path[4352];
    bool there;
    json_t *list;
    int32_t n_dense = 0;
    hone_status st;
    if (f->back) return hn_hf_back_modules(f, err);
    TRY(hn_hf_beside(&there, f->c->path, "modules.json", path, err));
    if (!there) return HONE_OK;
    TRY(hn_json_tree_file(&list, path, &rules, err));
    for (size_t i = 0; i < json_array_size(list) && st == HONE_OK; i++) {
        const json_t *m = json_array_get(list, i);
        const char *kind = last_word(hn_json_text_of(m, "type")), *folder = hn_json_text_of(m, "path");
        if (!is_plain(folder))
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: path \"%s\", expected a plain folder name", path,
                         HN_ESC(folder, strlen(folder)));
        else if (!strcmp(kind, "Pooling")) st = put_pooling(f, folder, err);
        else if (!strcmp(kind, "Dense") && n_dense < 2) st = add_dense(f, folder, 2 + n_dense++, err);
        else if (strcmp(kind, "Transformer") && strcmp(kind, "Normalize"))
            st = HN_FAIL(err, HONE_E_UNSUPPORTED,
                         "%s: a module \"%s\", expected Transformer, Pooling, Normalize, and two Dense at most", path,
                         HN_ESC(kind, strlen(kind)));
    }
    json_decref(list);
    return st;
}

/* ---- BERT ----- */

/* XLM-RoBERTa's positions begin behind the padding's. */
static bool is_roberta(const hn_hf *f) { return strstr(f->of->names, "XLMRoberta") != NULL; }

static hone_status first_position(hn_hf *f, int64_t *n, hone_error *err)
{
    hone_status st;
    *n = 0;
    if (!is_roberta(f)) return HONE_OK;
    TRY(hn_hf_whole(f, "pad_token_id", 1, n, err));
    ++*n;
    return HONE_OK;
}

static hone_status positions(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const hn_ckpt_tensor *t;
    int64_t first;
    hone_status st;
    TRY(first_position(f, &first, err));
    uint64_t skipped = (uint64_t)first, n = at->ne[0] * at->ne[1];
    TRY(hn_hf_need(&t, f, at->hf, 2, (uint64_t[]){ at->ne[0], at->ne[1] + skipped }, err));
    TRY(hn_hf_begin(f, at->name, 2, at->ne, err));
    TRY(hn_hf_add(f, &(hn_hf_view){ .from = t, .first = skipped * at->ne[0], .n = { n }, .stride = { 1 } }, err));
    f->used[t - f->c->t] += skipped * at->ne[0]; /* rows of no position */
    return HONE_OK;
}

/* As many kinds of text as the config has: its key is the tokenizer's. */
static hone_status types(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_at as = *at;
    int64_t n;
    hone_status st;
    TRY(hn_hf_whole(f, "type_vocab_size", 2, &n, err));
    as.ne[1] = (uint64_t)n;
    return hn_hf_plain(f, &as, err);
}

/* Names of the scores, where there are several. */
static hone_status put_labels(hn_hf *f, hone_error *err)
{
    const json_t *of = hn_hf_get(f, "id2label");
    size_t n = of ? json_object_size(of) : 2; /* what the classes have where nothing is said */
    char number[24], made[32];
    char full[160];
    hone_str *names = n > 0 && n < 65536 ? hn_arena_alloc(f->arena, n * sizeof *names) : NULL;
    if (n < 2) return HONE_OK;
    if (!names) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu labels", f->path, n);
    for (size_t i = 0; i < n; i++) {
        snprintf(number, sizeof number, "%zu", i);
        snprintf(made, sizeof made, "LABEL_%zu", i);
        const char *w = hn_json_text_of(of, number);
        if (!*w) w = made;
        names[i] = (hone_str){ hn_arena_strndup(f->arena, w, strlen(w)), strlen(w) };
        if (!names[i].ptr) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu labels", f->path, n);
    }
    snprintf(full, sizeof full, "%s.classifier.output_labels", f->of->arch);
    return hn_gguf_put_str_array(f->w, full, names, n, err);
}

static hone_status refuse_pruned(hn_hf *f, hone_error *err)
{
    const json_t *v = hn_hf_get(f, "pruned_heads");
    return json_object_size(v) ? hn_hf_refuse(f, "pruned_heads", v, "{}", err) : HONE_OK;
}

static hone_status bert_more(hn_hf *f, hone_error *err)
{
    int64_t n_ctx, first;
    hone_status st;
    TRY(refuse_pruned(f, err));
    TRY(hn_hf_whole(f, "max_position_embeddings", 512, &n_ctx, err));
    TRY(first_position(f, &first, err));
    if (n_ctx <= first)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: max_position_embeddings = %lld, expected more than %lld", f->path,
                       (long long)n_ctx, (long long)first);
    TRY(hn_hf_put_u32(f, "context_length", (uint32_t)(n_ctx - first), err));
    return hn_hf_put_bool(f, "attention.causal", false, err);
}
static hone_status bert_rank_more(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(bert_more(f, err));
    TRY(hn_hf_put_u32(f, "pooling_type", HN_POOL_RANK, err));
    return put_labels(f, err);
}

/* A decoder's attention looks back alone, and to what another model has read. */
#define NOT_DECODER ONLY("is_decoder", 0), ONLY("add_cross_attention", 0), MORE("pruned_heads", NULL)
static const hn_hf_key bert_keys[] = {
    F32_OR("layer_norm_eps", "attention.layer_norm_epsilon", 1e-12),
    MORE("rms_norm_eps", NULL),
    MORE("max_position_embeddings", "context_length"),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    MORE("type_vocab_size", NULL),
    WORD("hidden_act", "gelu"),
    WORD("position_embedding_type", "absolute"),
    NOT_DECODER,
    KEYS_END,
};
#define BERT_NAMES                                                                                                     \
    { "token_embd", "embeddings.word_embeddings", NULL },                                                              \
        { "position_embd", "embeddings.position_embeddings", positions },                                              \
        { "token_types", "embeddings.token_type_embeddings", types },                                                  \
        { "token_embd_norm", "embeddings.LayerNorm", NULL }, { "attn_q", "attention.self.query", NULL },               \
        { "attn_k", "attention.self.key", NULL }, { "attn_v", "attention.self.value", NULL },                          \
        { "attn_output_norm", "attention.output.LayerNorm", NULL }, { "attn_output", "attention.output.dense", NULL }, \
        { "ffn_up", "intermediate.dense", NULL }, { "ffn_down", "output.dense", NULL },                                \
    {                                                                                                                  \
        "layer_output_norm", "output.LayerNorm", NULL                                                                  \
    }
static const hn_hf_name bert_names[] = { BERT_NAMES, NAMES_END };
static const hn_hf_name bert_rank_names[] = {
    BERT_NAMES, { "cls", "pooler.dense", NULL }, { "cls.output", "/classifier", NULL }, NAMES_END
};
static const hn_hf_name roberta_rank_names[] = {
    BERT_NAMES, { "cls", "/classifier.dense", NULL }, { "cls.output", "/classifier.out_proj", NULL }, NAMES_END
};
/* Beside hone's own: rests of Google's first files, which no class reads. */
#define BERT_IDLE                                                                                      \
    "gradient_checkpointing position_offset directionality pooler_fc_size pooler_num_attention_heads " \
    "pooler_num_fc_layers pooler_size_per_head pooler_type"
#define BERT(class_names, class_types, names_of, numbers, without, before, suits)                               \
    {                                                                                                           \
        .names = class_names, .types = class_types, .arch = "bert", .root = "bert.", .layers = "encoder.layer", \
        .keys = bert_keys, .tensors = names_of, .idle = BERT_IDLE, .left = "*embeddings.position_ids " without, \
        .more = numbers, .front = before, .fits = suits                                                         \
    }
/* Of a file nothing says which of both it was, but that BERT's are trained with two kinds of text and RoBERTa's with
 * one. As the other one it gives the same rows. */
static bool has_one_type(const hn_gguf *g)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "token_types.weight");
    return t && t->ne[1] == 1;
}
static bool has_types(const hn_gguf *g) { return !has_one_type(g); }
#define POOLER "*pooler.dense.weight *pooler.dense.bias cls.* lm_head.*"
static const hn_hf_class bert =
    BERT("BertModel|BertForMaskedLM|BertForPreTraining", "bert", bert_names, bert_more, POOLER, "", has_types);
static const hn_hf_class bert_rank =
    BERT("BertForSequenceClassification", "bert", bert_rank_names, bert_rank_more, "cls.*", NULL, has_types);
static const hn_hf_class roberta = BERT("XLMRobertaModel|XLMRobertaForMaskedLM|RobertaModel|RobertaForMaskedLM",
                                        "xlm-roberta|roberta", bert_names, bert_more, POOLER, "", has_one_type);
static const hn_hf_class roberta_rank = BERT(
    "XLMRobertaForSequenceClassification|RobertaForSequenceClassification", "xlm-roberta|roberta", roberta_rank_names,
    bert_rank_more, "*pooler.dense.weight *pooler.dense.bias lm_head.*", "roberta.", has_one_type);

/* ---- nomic-bert ----- */

static const hn_hf_key nomic_keys[] = {
    U32("hidden_size|n_embd", "embedding_length"),
    U32("num_hidden_layers|n_layer", "block_count"),
    U32("num_attention_heads|n_head", "attention.head_count"),
    U32("intermediate_size|n_inner", "feed_forward_length"),
    MORE("max_position_embeddings|n_positions", "context_length"),
    F32_OR("layer_norm_eps|layer_norm_epsilon", "attention.layer_norm_epsilon", 1e-12),
    MORE("rms_norm_eps", NULL),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    MORE("head_dim", "attention.key_length|attention.value_length"),
    MORE("type_vocab_size", NULL),
    MORE("max_trained_positions", NULL),
    MORE("rotary_scaling_factor", NULL),
    ONLY("parallel_block_tied_norm", 0),
    WORD("activation_function|hidden_act", "swiglu|silu"),
    WORD("hidden_act", "silu"),
    ONLY("causal", 0),
    ONLY("prenorm", 0),
    ONLY("parallel_block", 0),
    ONLY("qkv_proj_bias", 0),
    ONLY("mlp_fc1_bias", 0),
    ONLY("mlp_fc2_bias", 0),
    ONLY("rotary_emb_fraction", 1),
    ONLY("rotary_emb_interleaved", 0),
    ONLY("rotary_emb_scale_base", 0),
    ONLY("use_rms_norm", 0),
    ONLY("scale_attn_weights", 1),
    ONLY("scale_attn_by_inverse_layer_idx", 0),
    NOT_DECODER,
    KEYS_END,
};
/* Longer texts than those it was trained on are scaled as they come, which hone does not do: it runs up to those. */
static hone_status nomic_more(hn_hf *f, hone_error *err)
{
    int64_t n_ctx, trained;
    double factor;
    hone_status st;
    TRY(refuse_pruned(f, err));
    TRY(hn_hf_whole(f, "max_position_embeddings|n_positions", 2048, &n_ctx, err));
    TRY(hn_hf_whole(f, "max_trained_positions", 2048, &trained, err));
    TRY(hn_hf_number(f, "rotary_scaling_factor", 1, &factor, NULL, err));
    if (factor > 1 && trained < n_ctx) n_ctx = trained;
    TRY(hn_hf_put_u32(f, "context_length", (uint32_t)n_ctx, err));
    return hn_hf_put_bool(f, "attention.causal", false, err);
}
static const hn_hf_name nomic_names[] = {
    { "token_embd", "embeddings.word_embeddings", NULL },
    { "token_types", "embeddings.token_type_embeddings", types },
    { "token_embd_norm", "emb_ln", NULL },
    { "attn_qkv", "attn.Wqkv", NULL },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { "attn_output_norm", "norm1", NULL },
    { "attn_output", "attn.out_proj", NULL },
    { "ffn_up", "mlp.fc11", NULL },
    { "ffn_gate", "mlp.fc12", NULL },
    { "ffn_down", "mlp.fc2", NULL },
    { "layer_output_norm", "norm2", NULL },
    NAMES_END,
};
#define NOMIC_IDLE                                                                                             \
    "dense_seq_output fused_bias_fc fused_dropout_add_ln last_layer_subset pad_vocab_size_multiple "           \
    "reorder_and_upcast_attn rotary_emb_base summary_activation summary_first_dropout summary_proj_to_labels " \
    "summary_type summary_use_proj use_xentropy"
static const hn_hf_class *nomic_which(const hn_hf *f);
static const hn_hf_class nomic = { .names = "NomicBertModel",
                                   .types = "nomic_bert",
                                   .which = nomic_which,
                                   .arch = "nomic-bert",
                                   .root = "nomic_bert.",
                                   .front = "",
                                   .layers = "encoder.layers",
                                   .keys = nomic_keys,
                                   .tensors = nomic_names,
                                   .idle = NOMIC_IDLE,
                                   .base = 1000,
                                   .more = nomic_more };

/* Of the code beside nomic-embed-text-v2-moe, which transformers lacks. */
static const hn_hf_key nomic_moe_keys[] = {
    U32("n_embd", "embedding_length"),
    U32("n_layer", "block_count"),
    U32("n_head", "attention.head_count"),
    U32("n_inner", "feed_forward_length"),
    MORE("n_positions", "context_length"),
    F32_OR("layer_norm_epsilon", "attention.layer_norm_epsilon", 1e-12),
    MORE("rms_norm_eps", NULL),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    MORE("head_dim", "attention.key_length|attention.value_length"),
    MORE("type_vocab_size", NULL),
    MORE("rotary_scaling_factor", NULL),
    U32("num_experts|num_local_experts", "expert_count"),
    U32("moe_top_k", "expert_used_count"),
    U32("moe_every_n_layers", "moe_every_n_layers"),
    ONLY("moe_normalize_expert_weights", 0),
    ONLY("expert_choice_router", 0),
    ONLY("num_shared_experts", 0),
    ONLY("ffn_div", 1),
    WORD("activation_function", "gelu"),
    WORD("hidden_act", "gelu"),
    ONLY("causal", 0),
    ONLY("prenorm", 0),
    ONLY("parallel_block", 0),
    ONLY("parallel_block_tied_norm", 0),
    ONLY("qkv_proj_bias", 1),
    ONLY("mlp_fc1_bias", 1),
    ONLY("mlp_fc2_bias", 1),
    ONLY("rotary_emb_fraction", 1),
    ONLY("rotary_emb_interleaved", 0),
    ONLY("rotary_emb_scale_base", 0),
    ONLY("use_rms_norm", 0),
    ONLY("scale_attn_weights", 1),
    ONLY("scale_attn_by_inverse_layer_idx", 0),
    NOT_DECODER,
    KEYS_END,
};
/* The published model was trained on texts of 512 tokens, whatever its config says of others. */
static hone_status nomic_moe_more(hn_hf *f, hone_error *err)
{
    enum { TRAINED = 512 };
    int64_t n_ctx, n_ff;
    double factor;
    hone_status st;
    TRY(refuse_pruned(f, err));
    TRY(hn_hf_whole(f, "n_inner", 0, &n_ff, err));
    TRY(hn_hf_put_u32(f, "expert_feed_forward_length", (uint32_t)n_ff, err));
    TRY(hn_hf_whole(f, "n_positions", TRAINED, &n_ctx, err));
    TRY(hn_hf_number(f, "rotary_scaling_factor", 1, &factor, NULL, err));
    TRY(hn_hf_put_u32(f, "context_length", (uint32_t)(n_ctx < TRAINED ? n_ctx : TRAINED), err));
    return hn_hf_put_bool(f, "attention.causal", false, err);
}
/* {E, FF} of each expert, one below the other. */
static hone_status experts_up(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_view v = { .n = { at->ne[0] * at->ne[1] * at->ne[2] }, .stride = { 1 } };
    return hn_hf_make(f, at, 2, (uint64_t[]){ at->ne[0], at->ne[1] * at->ne[2] }, &v, err);
}
/* Of the other matrix the same, turned round. */
static hone_status experts_down(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    uint64_t ff = at->ne[0], e = at->ne[1], n = at->ne[2];
    hn_hf_view v = { .n = { ff, e, n }, .stride = { e, 1, e * ff } };
    return hn_hf_make(f, at, 2, (uint64_t[]){ e, ff * n }, &v, err);
}
/* What all experts add, whichever they are, has no place in GGUF: it must be 0. */
static hone_status no_bias(hn_hf *f, hone_error *err)
{
    static const char tail[] = ".mlp.experts.bias", key[] = "mlp.experts.bias";
    const size_t k = sizeof tail - 1;
    uint8_t buf[4096];
    hone_status st;
    for (size_t i = 0; i < f->c->n && !hn_hf_ignored(key); i++) {
        const hn_ckpt_tensor *t = &f->c->t[i];
        if (t->name.len < k || memcmp(t->name.ptr + t->name.len - k, tail, k) != 0) continue;
        for (uint64_t at = 0, n; at < t->n_bytes; at += n) {
            n = t->n_bytes - at < sizeof buf ? t->n_bytes - at : sizeof buf;
            TRY(hn_source_read(&f->c->part[t->part], t->off + at, buf, n, err));
            for (uint64_t b = 0; b < n; b++)
                if (buf[b])
                    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                                   "%s: %s is not 0, and files of nomic-bert-moe have no place for it; to convert "
                                   "without it: HONE_IGNORE_KEYS=%s",
                                   f->c->part[t->part].path, HN_ESC(t->name.ptr, t->name.len), key);
        }
    }
    return HONE_OK;
}
static const hn_hf_name nomic_moe_names[] = {
    { "token_embd", "embeddings.word_embeddings", NULL },
    { "token_types", "embeddings.token_type_embeddings", types },
    { "token_embd_norm", "emb_ln", NULL },
    { "attn_qkv", "attn.Wqkv", NULL },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { "attn_output_norm", "norm1", NULL },
    { "attn_output", "attn.out_proj", NULL },
    { "ffn_up", "mlp.fc1", NULL },
    { "ffn_down", "mlp.fc2", NULL },
    { "ffn_gate_inp", "mlp.router.layer", NULL },
    { "ffn_up_exps.weight", "mlp.experts.mlp.w1", experts_up },
    { "ffn_down_exps.weight", "mlp.experts.mlp.w2", experts_down },
    { "layer_output_norm", "norm2", NULL },
    NAMES_END,
};
static const hn_hf_class nomic_moe = { .names = "NomicBertMoE", /* found by which */
                                       .arch = "nomic-bert-moe",
                                       .root = "nomic_bert.",
                                       .layers = "encoder.layers",
                                       .keys = nomic_moe_keys,
                                       .tensors = nomic_moe_names,
                                       .idle = NOMIC_IDLE " add_pooling_layer max_trained_positions moe_impl "
                                                          "moe_resid_pdrop router_aux_loss_coef",
                                       .left = "*.mlp.experts.bias",
                                       .fits = hn_hf_never,
                                       .more = nomic_moe_more,
                                       .tensors_too = no_bias };
static const hn_hf_class *nomic_which(const hn_hf *f)
{
    return json_number_value(json_object_get(f->config, "moe_every_n_layers")) > 0 ? &nomic_moe : &nomic;
}

/* ---- Jina Embeddings 3 ----- */

static const hn_hf_key jina_keys[] = {
    F32_OR("layer_norm_eps", "attention.layer_norm_epsilon", 1e-5),
    MORE("rms_norm_eps", NULL),
    MORE("max_position_embeddings", "context_length"),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    MORE("type_vocab_size", NULL),
    WORD("hidden_act", "gelu"),
    NOT_DECODER,
    KEYS_END,
};
/* As many as XLM-RoBERTa has, though here no position has a row. */
static hone_status jina_more(hn_hf *f, hone_error *err)
{
    int64_t n_ctx, pad;
    hone_status st;
    TRY(refuse_pruned(f, err));
    TRY(hn_hf_whole(f, "max_position_embeddings", 8194, &n_ctx, err));
    TRY(hn_hf_whole(f, "pad_token_id", 1, &pad, err));
    if (n_ctx <= pad + 1)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: max_position_embeddings = %lld, expected more than %lld", f->path,
                       (long long)n_ctx, (long long)pad + 1);
    TRY(hn_hf_put_u32(f, "context_length", (uint32_t)(n_ctx - pad - 1), err));
    return hn_hf_put_bool(f, "attention.causal", false, err);
}
/* As the first code and the checkpoints have it, and by the names of transformers. */
#define JINA_OUTSIDE(norm)                                                                               \
    { "token_embd", "embeddings.word_embeddings", NULL },                                                \
        { "token_types", "embeddings.token_type_embeddings", types }, { "token_embd_norm", norm, NULL }, \
        { "ffn_up", "mlp.fc1", NULL },                                                                   \
    {                                                                                                    \
        "ffn_down", "mlp.fc2", NULL                                                                      \
    }
static const hn_hf_name jina_names[] = {
    JINA_OUTSIDE("emb_ln"),
    { "attn_qkv", "mixer.Wqkv", NULL },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { "attn_output", "mixer.out_proj", NULL },
    { "attn_output_norm", "norm1", NULL },
    { "layer_output_norm", "norm2", NULL },
    NAMES_END,
};
static const hn_hf_name jina_names_now[] = {
    JINA_OUTSIDE("embeddings.LayerNorm"),
    { "attn_output_norm", "post_attention_layernorm", NULL },
    { "layer_output_norm", "post_mlp_layernorm", NULL },
    NAMES_END,
};
#define JINA(names_of, where, choice)                                                                                 \
    {                                                                                                                 \
        .names = "JinaEmbeddingsV3Model|JinaEmbeddingsV3ForMaskedLM", .which = choice, .types = "jina_embeddings_v3", \
        .arch = "jina-bert-v3", .root = "roberta.", .front = "", .layers = where, .keys = jina_keys,                  \
        .tensors = names_of, .idle = "position_embedding_type",                                                       \
        .left = "*pooler.dense.weight *pooler.dense.bias lm_head.*", .base = 20000, .more = jina_more                 \
    }
static const hn_hf_class *jina_which(const hn_hf *f);
static const hn_hf_class jina = JINA(jina_names, "encoder.layers", jina_which);
static const hn_hf_class jina_now = JINA(jina_names_now, "layers", NULL);
static const hn_hf_class *jina_which(const hn_hf *f)
{
    static const char *const first[] = { "layers.0.mlp.fc1.weight", "roberta.layers.0.mlp.fc1.weight" };
    for (int i = 0; i < 2; i++)
        if (hn_ckpt_find(f->c, first[i], strlen(first[i]))) return &jina_now;
    return &jina;
}

/* ---- ModernBERT ----- */

static const hn_hf_key modern_keys[] = {
    F32_OR("norm_eps", "attention.layer_norm_epsilon", 1e-5),
    MORE("rms_norm_eps", NULL),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    MORE("head_dim", "attention.key_length|attention.value_length"),
    U32_OR("local_attention", "attention.sliding_window", 128),
    MORE("global_attn_every_n_layers", NULL),
    MORE("layer_types", NULL),
    MORE("hidden_activation", NULL),
    MORE("classifier_pooling", NULL),
    WORD("classifier_activation", "gelu"),
    ONLY("attention_bias", 0),
    ONLY("mlp_bias", 0),
    ONLY("norm_bias", 0),
    KEYS_END,
};
/* A word of the config, which must be one of "a|b". */
static hone_status word_of(hn_hf *f, const char *name, const char *absent, const char *words, const char **out,
                           hone_error *err)
{
    const json_t *v = hn_hf_get(f, name);
    *out = v ? json_string_value(v) : absent;
    return *out && hn_hf_is_word(words, *out, strlen(*out)) ? HONE_OK : hn_hf_refuse(f, name, v, words, err);
}
/* The first of each so many layers sees everything, unless a list says which do. */
static hone_status put_pattern(hn_hf *f, hone_error *err)
{
    const hn_switches *is = hn_family_find(f->of->arch, strlen(f->of->arch))->is;
    uint8_t windowed[HN_MAX_LAYER];
    int64_t period;
    hn_hf_layers l;
    hone_status st;
    TRY(hn_hf_whole(f, "global_attn_every_n_layers", is->window_period, &period, err));
    TRY(hn_hf_read_windows(f, &l, windowed, err));
    bool usual = period > 0; /* in a file 0 is windows alone */
    if (!l.list && !period) return hn_hf_refuse(f, "global_attn_every_n_layers", NULL, "1 or more", err);
    for (int32_t il = 0; l.list && usual && il < l.n; il++)
        usual = windowed[il] == hn_windowed_by_period(is, (int32_t)period, il);
    if (usual) return hn_hf_put_u32(f, "attention.sliding_window_pattern", (uint32_t)period, err);
    return hn_hf_put_layers(f, "attention.sliding_window_pattern", HONE_KV_BOOL, windowed, l.n, err);
}
static hone_status modern_more(hn_hf *f, hone_error *err)
{
    const char *act, *pooling;
    hone_status st;
    TRY(word_of(f, "hidden_activation", "gelu", "gelu|gelu_pytorch_tanh|silu", &act, err));
    TRY(word_of(f, "classifier_pooling", "cls", "cls|mean", &pooling, err));
    TRY(put_pattern(f, err));
    TRY(hn_hf_put_str(f, "hidden_activation", act, err));
    TRY(hn_hf_put_u32(f, "classifier.pooling_type", strcmp(pooling, "mean") ? HN_POOL_FIRST : HN_POOL_MEAN, err));
    return hn_hf_put_bool(f, "attention.causal", false, err);
}
static hone_status modern_rank_more(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(modern_more(f, err));
    TRY(hn_hf_put_u32(f, "pooling_type", HN_POOL_RANK, err));
    return put_labels(f, err);
}
#define MODERN_NAMES                                                                                                   \
    { "token_embd", "embeddings.tok_embeddings", NULL }, { "token_embd_norm", "embeddings.norm", NULL },               \
        { "output_norm", "final_norm", NULL }, { "attn_norm", "attn_norm", NULL }, { "attn_qkv", "attn.Wqkv", NULL },  \
        { "attn_q", "-", NULL }, { "attn_k", "-", NULL }, { "attn_v", "-", NULL }, { "attn_output", "attn.Wo", NULL }, \
        { "ffn_norm", "mlp_norm", NULL }, { "ffn_up", "mlp.Wi", NULL }, { "ffn_gate", "-", NULL },                     \
    {                                                                                                                  \
        "ffn_down", "mlp.Wo", NULL                                                                                     \
    }
static const hn_hf_name modern_names[] = { MODERN_NAMES, NAMES_END };
static const hn_hf_name modern_rank_names[] = { MODERN_NAMES,
                                                { "cls", "/head.dense", NULL },
                                                { "cls.norm", "/head.norm", NULL },
                                                { "cls.output", "/classifier", NULL },
                                                NAMES_END };
#define MODERN_IDLE                                                                                                \
    "cls_token_id decoder_bias classifier_bias deterministic_flash_attn initializer_cutoff_factor layer_norm_eps " \
    "mlp_dropout position_embedding_type reference_compile repad_logits_with_grad sparse_pred_ignore_index "       \
    "sparse_prediction"
#define MODERN(class_names, class_types, names_of, numbers, without, before, suits)                               \
    {                                                                                                             \
        .names = class_names, .types = class_types, .arch = "modern-bert", .front = before, .keys = modern_keys,  \
        .tensors = names_of, .idle = MODERN_IDLE, .left = without, .tied = true, .base = 160000, .more = numbers, \
        .fits = suits                                                                                             \
    }
static bool has_scores(const hn_gguf *g) { return hn_gguf_find_tensor(g, "cls.output.weight") != NULL; }
static bool has_no_scores(const hn_gguf *g) { return !has_scores(g); }
static const hn_hf_class modern =
    MODERN("ModernBertModel|ModernBertForMaskedLM", "modernbert", modern_names, modern_more,
           "head.dense.weight head.norm.weight decoder.weight decoder.bias", "", has_no_scores);
static const hn_hf_class modern_rank = MODERN("ModernBertForSequenceClassification", "modernbert", modern_rank_names,
                                              modern_rank_more, NULL, NULL, has_scores);

/* ---- Llama both ways ----- */

static const hn_hf_key both_keys[] = {
    ONLY("attention_bias", 0),
    ONLY("mlp_bias", 0),
    KEYS_END,
};
static hone_status both_more(hn_hf *f, hone_error *err) { return hn_hf_put_bool(f, "attention.causal", false, err); }
static const hn_hf_class eurobert = { .names = "EuroBertModel|EuroBertForMaskedLM",
                                      .types = "eurobert",
                                      .arch = "eurobert",
                                      .front = "",
                                      .keys = both_keys,
                                      .idle = "mask_token_id classifier_pooling clf_pooling mask_token",
                                      .left = "lm_head.weight",
                                      .eps = 1e-5,
                                      .more = both_more };
static const hn_hf_class llama_both = { .names = "LlamaBidirectionalModel",
                                        .types = "llama_bidirec",
                                        .arch = "llama-embed",
                                        .keys = both_keys,
                                        .idle = "pooling temperature",
                                        .left = "lm_head.weight",
                                        .fits = hn_hf_never,
                                        .more = both_more };

/* ---- EmbeddingGemma ----- */

static const hn_hf_key gemma_keys[] = {
    WORD("hidden_activation|hidden_act", GELU),
    WORD("hidden_act", GELU),
    ONLY("attention_bias", 0),
    ONLY("attn_logit_softcapping", 0),
    ONLY("final_logit_softcapping", 0),
    ONLY("sliding_window_pattern|_sliding_window_pattern", 6),
    MORE("_sliding_window_pattern", NULL),
    U32_OR("max_position_embeddings", "context_length", 131072),
    U32_OR("head_dim", "attention.key_length|attention.value_length", 256),
    U32("sliding_window", "attention.sliding_window"),
    MORE("use_bidirectional_attention", NULL),
    KEYS_END,
};
static const hn_hf_name gemma_names[] = { { "dense_2", "/dense_2", NULL }, { "dense_3", "/dense_3", NULL }, NAMES_END };
/* Without both ways of attention it is the first part of a Gemma 3. */
static const hn_hf_class *gemma_which(const hn_hf *f);
static hone_status gemma_more(hn_hf *f, hone_error *err) { return hn_hf_put_bool(f, "attention.causal", false, err); }
static const hn_hf_class gemma = { .names = "Gemma3TextModel",
                                   .types = "gemma3_text", /* by which Gemma 3 is found before */
                                   .which = gemma_which,
                                   .arch = "gemma-embedding",
                                   .front = "",
                                   .keys = gemma_keys,
                                   .tensors = gemma_names,
                                   .tied = true,
                                   .base = 1e6,
                                   .more = gemma_more };
static const hn_hf_class *gemma_which(const hn_hf *f)
{
    bool both = json_is_true(json_object_get(f->config, "use_bidirectional_attention"));
    return both ? &gemma : hn_hf_class_find("Gemma3ForCausalLM", NULL);
}

const hn_hf_class *const hn_hf_encoder[] = { &bert,      &bert_rank,  &roberta,  &roberta_rank, &nomic,
                                             &nomic_moe, &jina,       &jina_now, &modern,       &modern_rank,
                                             &eurobert,  &llama_both, &gemma,    NULL };
