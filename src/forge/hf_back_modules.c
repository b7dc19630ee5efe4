/* hf_back_modules: what sentence-transformers reads beside a model, made of a GGUF file: how rows become one, the
 * layers behind that, and that vectors have length 1, as `hone embed` gives them. Owns which of the folder's files
 * those are; refuses to know numbers (hf_back_write.c) and how such files are read (hf_encoder.c). */
#include "base/json_tree.h"
#include "forge/hf_back.h"

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

enum { MAX_DENSE = 2 };

/* The matrix of the i-th layer behind pooling; NULL: it has none. */
static const hn_gguf_tensor *dense_of(const hn_hf *f, int i)
{
    char name[32];
    snprintf(name, sizeof name, "dense_%d.weight", 2 + i);
    return strcmp(f->of->arch, "gemma-embedding") ? NULL : hn_gguf_find_tensor(f->back, name);
}

const char *hn_hf_back_folder(const hn_hf *f, const hn_ckpt_tensor *t)
{
    static const char *const names[MAX_DENSE] = { "dense_2.weight", "dense_3.weight" };
    static const char *const folders[MAX_DENSE] = { "2_Dense", "3_Dense" };
    for (int i = 0; i < MAX_DENSE; i++)
        if (dense_of(f, i) && t->name.len == strlen(names[i]) && !memcmp(t->name.ptr, names[i], t->name.len))
            return folders[i];
    return NULL;
}

/* What a classifier makes of its row is the class's own. */
static hone_status pooling_of(const hn_hf *f, uint32_t *kind, hone_error *err)
{
    char key[160];
    bool found = false;
    *kind = HN_POOL_KINDS;
    snprintf(key, sizeof key, "%s.pooling_type", f->of->arch);
    hone_status st = hn_gguf_get_u32(f->back, key, kind, &found, err);
    if (*kind != HN_POOL_MEAN && *kind != HN_POOL_FIRST && *kind != HN_POOL_LAST) *kind = HN_POOL_KINDS;
    return st;
}

hone_status hn_hf_back_modules(hn_hf *f, hone_error *err)
{
    char key[64];
    uint32_t kind;
    hone_status st;
    TRY(pooling_of(f, &kind, err));
    if (kind != HN_POOL_KINDS) TRY(hn_hf_put_u32(f, "pooling_type", kind, err));
    for (int i = 0; i < MAX_DENSE; i++) {
        const hn_gguf_tensor *t = dense_of(f, i);
        if (!t) break;
        if (t->ne[0] > HN_MAX_EMBD || t->ne[1] > HN_MAX_EMBD)
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: dense_%d.weight has ne = [%llu, %llu], expected at most %d",
                           f->path, 2 + i, (unsigned long long)t->ne[0], (unsigned long long)t->ne[1], HN_MAX_EMBD);
        snprintf(key, sizeof key, "dense_%d_feat_in", 2 + i);
        TRY(hn_hf_put_u32(f, key, (uint32_t)t->ne[0], err));
        snprintf(key, sizeof key, "dense_%d_feat_out", 2 + i);
        TRY(hn_hf_put_u32(f, key, (uint32_t)t->ne[1], err));
    }
    return HONE_OK;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* Takes o. */
static hone_status put_file(const hn_hf *f, const char *file, json_t *o, hone_error *err)
{
    hone_status st = o ? hn_hf_back_json(f, file, o, err) : HN_FAIL(err, HONE_E_NOMEM, "%s", file);
    json_decref(o);
    return st;
}

static bool add_module(json_t *list, const char *folder, const char *kind)
{
    char type[96], name[16];
    size_t i = json_array_size(list);
    snprintf(type, sizeof type, "sentence_transformers.models.%s", kind);
    snprintf(name, sizeof name, "%zu", i);
    return json_array_append_new(list, json_pack("{s:I, s:s, s:s, s:s}", "idx", (json_int_t)i, "name", name, "path",
                                                 folder, "type", type)) == 0;
}

static hone_status write_pooling(const hn_hf *f, uint32_t kind, hone_error *err)
{
    json_t *o = json_pack("{s:i, s:b, s:b, s:b, s:b, s:b, s:b, s:b}", "word_embedding_dimension", f->m->hp.n_embd,
                          "pooling_mode_cls_token", kind == HN_POOL_FIRST, "pooling_mode_mean_tokens",
                          kind == HN_POOL_MEAN, "pooling_mode_max_tokens", 0, "pooling_mode_mean_sqrt_len_tokens", 0,
                          "pooling_mode_weightedmean_tokens", 0, "pooling_mode_lasttoken", kind == HN_POOL_LAST,
                          "include_prompt", 1);
    return put_file(f, "1_Pooling/config.json", o, err);
}

static hone_status write_dense(const hn_hf *f, int i, hone_error *err)
{
    const hn_gguf_tensor *t = dense_of(f, i);
    char file[64];
    snprintf(file, sizeof file, "%d_Dense/config.json", 2 + i);
    return put_file(f, file,
                    json_pack("{s:I, s:I, s:b, s:s}", "in_features", (json_int_t)t->ne[0], "out_features",
                              (json_int_t)t->ne[1], "bias", 0, "activation_function",
                              "torch.nn.modules.linear.Identity"),
                    err);
}

static hone_status write_list(const hn_hf *f, bool pools, int n_dense, hone_error *err)
{
    json_t *list = json_array();
    char folder[32];
    bool made = list && add_module(list, "", "Transformer");
    if (pools) made = made && add_module(list, "1_Pooling", "Pooling");
    for (int i = 0; i < n_dense && made; i++) {
        snprintf(folder, sizeof folder, "%d_Dense", 2 + i);
        made = add_module(list, folder, "Dense");
    }
    snprintf(folder, sizeof folder, "%d_Normalize", 2 + n_dense);
    if (made && add_module(list, folder, "Normalize")) return put_file(f, "modules.json", list, err);
    json_decref(list);
    return HN_FAIL(err, HONE_E_NOMEM, "modules.json");
}

/* A model whose rows nothing says how to pool has none of these files. As many positions as the model has: the config
 * of RoBERTa's counts two more than there are. */
hone_status hn_hf_back_modules_write(const hn_hf *f, hone_error *err)
{
    uint32_t kind;
    int n_dense = 0;
    hone_status st;
    TRY(pooling_of(f, &kind, err));
    while (n_dense < MAX_DENSE && dense_of(f, n_dense)) n_dense++;
    if (kind == HN_POOL_KINDS && !n_dense) return HONE_OK;
    if (kind != HN_POOL_KINDS) TRY(write_pooling(f, kind, err));
    for (int i = 0; i < n_dense; i++) TRY(write_dense(f, i, err));
    json_t *o = json_pack("{s:i, s:b}", "max_seq_length", f->m->hp.n_ctx_train, "do_lower_case", 0);
    TRY(put_file(f, "sentence_bert_config.json", o, err));
    return write_list(f, kind != HN_POOL_KINDS, n_dense, err);
}
