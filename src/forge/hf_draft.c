/* hf_draft: blocks behind the layers that draft further tokens (multi-token prediction). Each is a layer of the family
 * and what joins a token with a state. hone runs none, but the file keeps them, as llama.cpp's converter does: a block
 * more in block_count, and nextn_predict_layers. Owns where a folder has them; refuses to know what they compute. */
#include "forge/hf_rows.h"

enum { MOST_DRAFTS = 8 };

/* What a block has beside a layer: in the file behind "blk.N.", in the folder behind the layer's name, or "mtp.". */
static const struct part {
    const char *gguf, *behind, *mtp;
    bool joins;    /* [n_embd, 2 n_embd] */
    bool words;    /* [n_vocab, n_embd] */
    bool may_miss; /* then it is the model's own */
} parts[] = {
    { "nextn.eh_proj.weight", "eh_proj.weight", "fc.weight", true, false, false },
    { "nextn.enorm.weight", "enorm.weight", "pre_fc_norm_embedding.weight", false, false, false },
    { "nextn.hnorm.weight", "hnorm.weight", "pre_fc_norm_hidden.weight", false, false, false },
    { "nextn.embed_tokens.weight", "embed_tokens.weight", "embed_tokens.weight", false, true, true },
    { "nextn.shared_head_head.weight", "shared_head.head.weight", "shared_head.head.weight", false, true, true },
    { "nextn.shared_head_norm.weight", "shared_head.norm.weight", "norm.weight", false, false, true },
};
enum { N_PART = sizeof parts / sizeof *parts };

static void names_of(const hn_hf *f, const struct part *p, int64_t il, char gguf[128], char hf[320])
{
    snprintf(gguf, 128, "blk.%lld.%s", (long long)il, p->gguf);
    if (f->of->drafts == HN_HF_MTP) snprintf(hf, 320, "mtp.%s", p->mtp);
    else snprintf(hf, 320, "model.layers.%lld.%s", (long long)il, p->behind);
}

static bool is_there(const hn_hf *f, const struct part *p, int64_t il)
{
    char gguf[128], hf[320];
    names_of(f, p, il, gguf, hf);
    return f->back ? hn_gguf_find_tensor(f->back, gguf) != NULL : hn_hf_find(f, hf) != NULL;
}

static bool ends_in(hone_str s, const char *tail)
{
    size_t n = strlen(tail);
    return s.len > n && !memcmp(s.ptr + s.len - n, tail, n);
}

/* Where the names of the last layer that attends begin; false: there is none. */
static bool last_layer(const hn_hf *f, int64_t n_layer, char root[128])
{
    char name[320];
    for (int64_t il = n_layer - 1; il >= 0; il--) {
        snprintf(name, sizeof name, "model.layers.%lld.self_attn.o_proj.weight", (long long)il);
        const hn_ckpt_tensor *t = hn_hf_find(f, name);
        if (!t) continue;
        snprintf(root, 128, "%.*s", (int)(t->name.len - strlen("self_attn.o_proj.weight")), t->name.ptr);
        return true;
    }
    return false;
}

/* Has block il the matrices and norms of a layer, and what joins? A folder may hold a part of it, which drafts nothing
 * and would stop a model that runs without. *missing: the first that is not there. */
static bool is_whole(const hn_hf *f, int64_t n_layer, int64_t il, char missing[320])
{
    char root[128], gguf[128];
    for (size_t i = 0; i < N_PART; i++) {
        names_of(f, &parts[i], il, gguf, missing);
        if (!parts[i].may_miss && !is_there(f, &parts[i], il)) return false;
    }
    if (f->back || !last_layer(f, n_layer, root)) return true;
    const size_t n = strlen(root);
    for (size_t i = 0; i < f->c->n; i++) {
        const hone_str name = f->c->t[i].name;
        if (name.len <= n || memcmp(name.ptr, root, n) || !(ends_in(name, ".weight") || ends_in(name, "_bias")))
            continue;
        if (f->of->drafts == HN_HF_MTP) snprintf(missing, 320, "mtp.layers.0.%.*s", (int)(name.len - n), name.ptr + n);
        else snprintf(missing, 320, "model.layers.%lld.%.*s", (long long)il, (int)(name.len - n), name.ptr + n);
        if (!hn_hf_find(f, missing)) return false;
    }
    return true;
}

hone_status hn_hf_find_drafts(hn_hf *f, hone_error *err)
{
    char missing[320];
    int64_t n_layer;
    hone_status st;
    f->n_draft = 0;
    if (!f->of->drafts) return HONE_OK;
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    int32_t most = f->of->drafts == HN_HF_MTP ? 1 : MOST_DRAFTS; /* what joins is there once */
    if (n_layer < 1 || n_layer > HN_MAX_LAYER - most) return HONE_OK;
    if (most == 1 && !f->back && hn_hf_find(f, "mtp.layers.1.input_layernorm.weight")) {
        hn_convert_note(f->a, "%s: blocks that draft further tokens (mtp.*) are left out: more than one", f->path);
        return HONE_OK;
    }
    for (; f->n_draft < most && is_there(f, &parts[0], n_layer + f->n_draft); f->n_draft++) {
        if (is_whole(f, n_layer, n_layer + f->n_draft, missing)) continue;
        hn_convert_note(f->a, "%s: a block that drafts further tokens is left out, as it has no %s", f->path, missing);
        break;
    }
    return HONE_OK;
}

/* A block is made as the last layer that attends; with an index of its own where it has one. */
static const hn_layer_plan *plan_of(const hn_hf *f, int32_t block)
{
    char index[96];
    int32_t il = f->m->hp.n_layer - 1;
    while (il > 0 && !hn_plan_has_positions(&f->m->plan[il])) il--;
    snprintf(index, sizeof index, "model.layers.%d.self_attn.indexer.wk.weight", (int)block);
    if (f->m->hp.index.own && hn_hf_find(f, index)) il = f->m->plan[il].index_from;
    return &f->m->plan[il];
}

static hone_status add_part(hn_hf *f, const struct part *p, int32_t il, hone_error *err)
{
    const uint64_t n_embd = (uint64_t)f->m->hp.n_embd, n_vocab = (uint64_t)f->m->hp.n_vocab;
    const bool matrix = p->joins || p->words;
    char name[128], hf[320];
    hn_hf_at at = { .il = il, .name = name, .hf = hf, .n_dim = matrix ? 2 : 1, .ne = { n_embd, 1, 1, 1 } };
    if (p->may_miss && !is_there(f, p, il)) return HONE_OK;
    names_of(f, p, il, name, hf);
    if (p->joins) at.ne[0] = 2 * n_embd, at.ne[1] = n_embd;
    if (p->words) at.ne[1] = n_vocab;
    size_t n = f->n;
    /* norms of models that name their blocks so are of 1 + w, as their layers' are */
    hone_status st = !matrix && f->of->drafts == HN_HF_MTP ? hn_hf_plus_one(f, &at, err) : hn_hf_plain(f, &at, err);
    for (; n < f->n; n++) f->t[n].always_f32 |= !matrix;
    return st;
}

hone_status hn_hf_plan_drafts(hn_hf *f, hone_error *err)
{
    hone_status st;
    for (int32_t il = f->m->hp.n_layer; il < f->m->hp.n_layer + f->n_draft; il++) {
        TRY(hn_hf_plan_layer(f, il, plan_of(f, il), err));
        for (size_t i = 0; i < N_PART; i++) TRY(add_part(f, &parts[i], il, err));
    }
    return HONE_OK;
}
