/* model: opening one: which family, its numbers within policy, its plan, its tensors; and what is known of it. */
#include "base/options.h"
#include "base/floats.h"
#include "model/hparams.h"

#include <stdlib.h>

/* ---- opening ------------------------------------------------------------------------------------- */

static hone_status choose_arch(hone_model *m, hone_error *err)
{
    hone_str arch, type;
    bool found;
    hone_status st = hn_gguf_get_str(m->file, "general.type", &type, &found, err);
    if (st != HONE_OK) return st;
    if (found && !(type.len == 5 && !memcmp(type.ptr, "model", 5)))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: general.type = \"%s\" is not a model%s", m->path,
                       HN_ESC(type.ptr, type.len),
                       type.len == 7 && !memcmp(type.ptr, "adapter", 7)
                           ? "; open the model it was made for, with --lora and this file"
                           : "");
    if ((st = hn_gguf_get_str(m->file, "general.architecture", &arch, &found, err)) != HONE_OK) return st;
    if (!found)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key general.architecture is missing; this is not a model file",
                       m->path);
    if ((m->arch = hn_family_find(arch.ptr, arch.len))) return HONE_OK;
    const char *names[HN_MAX_FAMILIES], *said = HN_ESC(arch.ptr, arch.len);
    size_t n = hn_family_names(names);
    const char *near = hn_nearest(said, names, n);
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s: architecture \"%s\" is not supported; expected one of the %zu that docs/MODELS.md lists%s%s",
                   m->path, said, n, near ? ", as " : "", near ? near : "");
}

/* general.file_type's name, or the type that holds most bytes. */
static const char *type_name(const hone_model *m)
{
    static const char *const names[] = { "F32",    "F16",    "Q4_0",    "Q4_1",   0,        0,         0,
                                         "Q8_0",   "Q5_0",   "Q5_1",    "Q2_K",   "Q3_K_S", "Q3_K_M",  "Q3_K_L",
                                         "Q4_K_S", "Q4_K_M", "Q5_K_S",  "Q5_K_M", "Q6_K",   "IQ2_XXS", "IQ2_XS",
                                         "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S",  "IQ4_NL", "IQ3_S",   "IQ3_M",
                                         "IQ2_S",  "IQ2_M",  "IQ4_XS",  "IQ1_M",  "BF16",   0,         0,
                                         0,        "TQ1_0",  "TQ2_0",   "MXFP4",  "NVFP4",  "Q1_0",    "Q2_0" };
    uint32_t ft = UINT32_MAX;
    if (hn_gguf_get_u32(m->file, "general.file_type", &ft, NULL, NULL) == HONE_OK &&
        ft < sizeof names / sizeof *names && names[ft])
        return names[ft];
    uint64_t bytes[HN_TYPE_COUNT] = { 0 };
    int best = 0;
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        bytes[t->type] += t->n_bytes;
        if (bytes[t->type] > bytes[best]) best = (int)t->type;
    }
    return hn_type_get((uint32_t)best)->name;
}

static hone_status make_plan(hone_model *m, hone_error *err)
{
    if (!(m->plan = hn_arena_alloc(m->arena, (size_t)m->hp.n_layer * sizeof *m->plan)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: layer table", m->path);
    hone_status st = HONE_OK;
    for (int32_t il = 0; st == HONE_OK && il < m->hp.n_layer; il++) {
        m->arch->plan(&m->plan[il], &m->hp, il);
        st = hn_moe_check_layer(m, il, err);
    }
    return st;
}

/* What of a tensor of experts a token does not read: those that were not chosen. */
static uint64_t idle_expert_bytes(const hone_model *m, uint64_t i)
{
    const hn_packed_entry *packed = m->packed_of ? m->packed_of[i] : NULL;
    const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
    uint64_t n = packed ? packed->n_bytes : t->n_bytes, n_expert = (uint64_t)m->hp.moe.n_expert, il = 0;
    for (size_t k = sizeof "blk." - 1; k < t->name.len && t->name.ptr[k] != '.'; k++)
        il = 10 * il + (uint64_t)(t->name.ptr[k] - '0'); /* bound: it is the name of a slot */
    return n / n_expert * (n_expert - (uint64_t)m->plan[il].n_used);
}

/* What layers that are a block again read once more. */
static uint64_t again_bytes(const hone_model *m)
{
    char block[32];
    uint64_t n = 0;
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        if (!hn_is_again(&m->hp, il)) continue;
        const size_t len = (size_t)snprintf(block, sizeof block, "blk.%d.", (int)hn_block_of(&m->hp, il));
        for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
            const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
            if (m->bound[i] == HN_BOUND_UNUSED || t->name.len < len || memcmp(t->name.ptr, block, len)) continue;
            n += m->packed_of && m->packed_of[i] ? m->packed_of[i]->n_bytes : t->n_bytes;
        }
    }
    return n;
}

/* What all rows of an embedding take. */
static uint64_t table_bytes(const hn_weight *w)
{
    return w->packed ? hn_packed_bytes(w->type, w->n_in, w->n_out) : (uint64_t)w->row_bytes * (uint64_t)w->n_out;
}

/* The embedding has a row for each token of the tokenizer: then the number that a key says is a note, which llama.cpp
 * does not read. Without tokens it is all there is to check the embedding with. */
static hone_status check_declared(const hone_model *m, hone_error *err)
{
    hn_gguf_array tokens = { 0 };
    int32_t declared;
    char key[128];
    hone_status st = hn_get_int(m, "vocab_size", 1, HN_MAX_VOCAB, m->hp.n_vocab, &declared, err);
    if (st != HONE_OK || declared == m->hp.n_vocab) return st;
    if (hn_gguf_get_array(m->file, "tokenizer.ggml.tokens", &tokens, NULL, NULL) == HONE_OK && tokens.count &&
        tokens.count <= (uint64_t)m->hp.n_vocab)
        return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, but tensor token_embd.weight has %d rows", m->path,
                   hn_arch_key(m, key, "vocab_size"), declared, m->hp.n_vocab);
}

static hone_status bind_all(hone_model *m, const char *ignore_keys, hone_error *err)
{
    hone_status st;
    uint64_t n_tensor = hn_gguf_n_tensors(m->file);
    if (!(m->bound = hn_arena_alloc(m->arena, n_tensor + 1)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: tensor table", m->path);
    if ((st = m->arch->hparams(m, err)) != HONE_OK || (st = hn_pool_hparams(m, err)) != HONE_OK ||
        (st = hn_check_keys(m, ignore_keys, err)) != HONE_OK)
        return st;
    if ((st = make_plan(m, err)) != HONE_OK) return st;
    const hn_gguf_tensor *e = hn_gguf_find_tensor(m->file, "token_embd.weight");
    if (!e)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor token_embd.weight is missing; architecture %s needs it", m->path,
                       m->arch->name);
    if (e->ne[1] < 1 || e->ne[1] > HN_MAX_VOCAB)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: tensor token_embd.weight has %llu rows, expected a vocabulary of 1 to %d", m->path,
                       (unsigned long long)e->ne[1], HN_MAX_VOCAB);
    m->hp.n_vocab = (int32_t)e->ne[1];
    if ((st = check_declared(m, err)) != HONE_OK) return st;
    if ((st = hn_bind(m, err)) != HONE_OK) return st;
    if ((st = hn_model_plan_memory(m, err)) != HONE_OK) return st;
    for (uint64_t i = 0; i < n_tensor; i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        m->n_params += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
        const hn_packed_entry *packed = m->packed_of ? m->packed_of[i] : NULL;
        m->n_bytes += packed ? packed->n_bytes : t->n_bytes;
        m->packed_bytes += packed ? packed->n_bytes : 0;
    }
    /* every weight is read once a token; of embeddings that are no head only one row */
    m->bytes_per_token = m->n_bytes;
    for (uint64_t i = 0; i < n_tensor; i++)
        if (m->bound[i] == HN_BOUND_UNUSED) m->bytes_per_token -= hn_gguf_tensor_at(m->file, i)->n_bytes;
        else if (m->bound[i] == HN_BOUND_EXPERTS) m->bytes_per_token -= idle_expert_bytes(m, i);
    m->again_bytes = again_bytes(m);
    m->bytes_per_token += m->again_bytes;
    if (m->output.data != m->token_embd.data)
        m->bytes_per_token -= table_bytes(&m->token_embd) - m->token_embd.row_bytes;
    if (hn_weight_is_there(&m->ple_embd)) m->bytes_per_token -= table_bytes(&m->ple_embd) - m->ple_embd.row_bytes;
    const uint64_t n_gram_rows = (uint64_t)hn_ngram_heads(&m->hp.ngram);
    if (hn_weight_is_there(&m->ngrams))
        m->bytes_per_token -= table_bytes(&m->ngrams) - n_gram_rows * m->ngrams.row_bytes;
    return HONE_OK;
}

/* A handle that has taken the file, also where that fails. */
static hone_status new_model(hone_model **out, hn_gguf *file, hone_error *err)
{
    const char *path = hn_gguf_path(file);
    hone_model *m = *out = calloc(1, sizeof *m);
    if (!m) {
        hn_gguf_close(file);
        return HN_FAIL(err, HONE_E_NOMEM, "model handle");
    }
    pthread_mutex_init(&m->vocab_mu, NULL);
    pthread_mutex_init(&m->identity_mu, NULL);
    m->file = file;
    m->ignored_keys = m->formula_note = "";
    m->arena = hn_arena_new();
    const hone_str arch = hn_gguf_str_in_file(file, "general.architecture");
    if (m->arena && (m->path = hn_arena_strndup(m->arena, path, strlen(path))) &&
        (m->filed_arch = hn_arena_strndup(m->arena, arch.ptr, arch.len)))
        return HONE_OK;
    hone_status st = HN_FAIL(err, HONE_E_NOMEM, "%s: model", path);
    hone_model_close(m); /* path was the file's */
    *out = NULL;
    return st;
}

hone_status hn_model_from_gguf(hone_model **out, hn_gguf *file, const hone_model_params *params, hone_error *err)
{
    hone_model *m;
    hone_status st;
    *out = NULL;
    if ((st = new_model(&m, file, err)) != HONE_OK) return st;
    const char *path = m->path;
    if (params && params->tokenizer_pre &&
        !(m->pre = hn_arena_strndup(m->arena, params->tokenizer_pre, strlen(params->tokenizer_pre)))) {
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: model", path);
        goto fail;
    }
    m->has_tokenizer = hn_gguf_find(m->file, "tokenizer.ggml.model") >= 0;
    const char *ignore = params ? params->ignore_keys : NULL;
    if (m->has_tokenizer && (st = hn_check_tokenizer_keys(m, ignore, err)) != HONE_OK) goto fail;
    hone_str name = { "", 0 };
    if ((st = hn_gguf_get_str(m->file, "general.name", &name, NULL, err)) != HONE_OK) goto fail;
    if (params && params->vocab_only) {
        const hn_vocab *v;
        if ((st = hn_model_vocab(m, &v, err)) != HONE_OK) goto fail;
        m->hp.n_vocab = hn_vocab_size(v);
        m->type_name = "none";
    } else {
        if ((st = choose_arch(m, err)) != HONE_OK) goto fail;
        if ((st = hn_model_find_packed(m, params, err)) != HONE_OK) goto fail;
        if ((st = bind_all(m, ignore, err)) != HONE_OK) goto fail;
        m->type_name = type_name(m);
    }
    if (!(m->name = hn_arena_strndup(m->arena, name.ptr, name.len))) {
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: model", path);
        goto fail;
    }
    *out = m;
    return HONE_OK;
fail:
    hone_model_close(m);
    return st;
}

hone_status hn_model_from_keys(hone_model **out, hn_gguf *keys, int32_t n_vocab, hone_error *err)
{
    hone_model *m;
    hone_status st;
    *out = NULL;
    if ((st = new_model(&m, keys, err)) != HONE_OK) return st;
    m->hp.n_vocab = n_vocab;
    m->type_name = "none";
    m->name = "";
    if ((st = choose_arch(m, err)) != HONE_OK || (st = m->arch->hparams(m, err)) != HONE_OK ||
        (st = hn_pool_hparams(m, err)) != HONE_OK || (st = hn_check_keys(m, NULL, err)) != HONE_OK ||
        (st = make_plan(m, err)) != HONE_OK || (hn_turns(m) && (st = hn_rope_width(m, err)) != HONE_OK) ||
        (st = hn_model_plan_memory(m, err)) != HONE_OK) {
        hone_model_close(m);
        return st;
    }
    *out = m;
    return HONE_OK;
}

hone_status hone_model_open(hone_model **out, const char *path, const hone_model_params *params, hone_error *err)
{
    HN_FLOATS;
    hn_gguf *file;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the model");
    HN_NEED(err, path, "the path of a GGUF file");
    hone_status st = hn_model_file_open(&file, path, err);
    if (st == HONE_E_FORMAT && hn_packed_is(path))
        return HN_FAIL(err, st, "%s: a packed file, which goes with a model; expected the model it was made from",
                       HN_ESC(path, strlen(path)));
    return st == HONE_OK ? hn_model_from_gguf(out, file, params, err) : st;
}

void hone_model_close(hone_model *m)
{
    if (!m) return;
    hn_vocab_free(m->vocab);
    hn_packed_close(m->packed);
    hn_gguf_close(m->file);
    hn_arena_free(m->arena);
    pthread_mutex_destroy(&m->vocab_mu);
    pthread_mutex_destroy(&m->identity_mu);
    free(m);
}

hone_status hn_model_vocab(const hone_model *cm, const hn_vocab **out, hone_error *err)
{
    hone_model *m = (hone_model *)cm; /* the tokenizer is a cache; the model stays what it is */
    hone_status st = HONE_OK;
    pthread_mutex_lock(&m->vocab_mu);
    if (!m->vocab_tried) {
        st = hn_vocab_new(&m->vocab, m->file, m->pre, &m->vocab_err);
        m->vocab_tried = st != HONE_E_NOMEM; /* memory may come back; a bad file stays bad */
        if (st == HONE_OK && !m->vocab)
            HN_FAIL(&m->vocab_err, HONE_E_UNSUPPORTED,
                    "%s: the file has no tokenizer; expected metadata tokenizer.ggml.model and what belongs to it",
                    m->path);
    }
    *out = m->vocab;
    if (!m->vocab) {
        st = m->vocab_err.code;
        if (err) *err = m->vocab_err;
    }
    pthread_mutex_unlock(&m->vocab_mu);
    return st;
}

/* Megabytes of metadata are hashed once, and not by those who only open a model. */
static uint64_t fingerprint(const hone_model *cm)
{
    hone_model *m = (hone_model *)cm;
    pthread_mutex_lock(&m->vocab_mu);
    if (!m->fingerprint) m->fingerprint = hn_gguf_fingerprint(m->file);
    uint64_t h = m->fingerprint;
    pthread_mutex_unlock(&m->vocab_mu);
    return h;
}

hone_status hn_model_identity(const hone_model *cm, hn_identity *out, const hone_progress *pr, hone_error *err)
{
    hone_model *m = (hone_model *)cm; /* a cache */
    hone_status st = HONE_OK;
    pthread_mutex_lock(&m->identity_mu);
    if (!m->has_identity) st = hn_identity_of(m->file, &m->identity, NULL, pr, err);
    m->has_identity = st == HONE_OK;
    if (m->has_identity) *out = m->identity;
    pthread_mutex_unlock(&m->identity_mu);
    return st;
}

hone_status hone_model_identity(const hone_model *m, char *hex, const hone_progress *pr, hone_error *err)
{
    hn_identity id;
    HN_NEED(err, hex, "room for 65 characters");
    hex[0] = 0;
    HN_NEED(err, m, "a model");
    hone_status st = hn_model_identity(m, &id, pr, err);
    if (st == HONE_OK) hn_hex(hex, id.content, sizeof id.content);
    return st;
}

void hone_model_get_info(const hone_model *m, hone_model_info *out)
{
    if (!out) return;
    *out = (hone_model_info){ 0 };
    if (!m) return;
    const hn_hparams *hp = &m->hp;
    *out = (hone_model_info){
        .arch = m->arch ? m->arch->name : "",
        .name = m->name,
        .type = m->type_name,
        .n_vocab = hp->n_vocab,
        .n_embd = hp->n_embd,
        .n_layer = hp->n_layer,
        .n_head = hp->n_head,
        .n_head_kv = hp->n_head_kv,
        .head_dim = hp->head_dim,
        .n_ff = hp->n_ff,
        .n_ctx_train = hp->n_ctx_train,
        .n_params = m->n_params,
        .n_bytes = m->n_bytes,
        .bytes_per_token = m->bytes_per_token,
        .fingerprint = fingerprint(m),
        .has_tokenizer = m->has_tokenizer,
        .packed_path = m->packed ? m->packed->path : NULL,
        .packed_note = m->packed_note ? m->packed_note : "",
        .packed_bytes = m->packed_bytes,
        .packed_compared = m->packed_compared,
        .packed_ignored = m->packed_ignored,
        .ignored_keys = m->ignored_keys,
        .formula_note = m->formula_note,
        .n_window = hp->n_window,
        .state_bytes = m->memory ? (uint64_t)hn_all_state_floats(m) * sizeof(float) : 0,
        .recurrent = m->memory && !hn_has_positions(m),
        .causal = m->arch && !hp->both,
        .pooling = m->arch ? hp->pooling - HN_POOL_NONE + HONE_POOL_NONE : HONE_POOL_FILE,
        .n_class = hn_weight_is_there(&m->cls_out) ? hp->n_class : 0,
    };
}
