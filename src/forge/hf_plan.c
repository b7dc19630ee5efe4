/* hf_plan: which tensors the file has and what of the folder each is made of. Walks the family's slots; owns names,
 * shapes and the account of sources: each is used, or left out by name. Refuses to know classes. */
#include "forge/hf.h"

#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* ---- sources ------------------------------------------------------------------------------------------ */

/* The folder's name of "model.X" or "lm_head.X". */
static void real_name(const hn_hf *f, char out[320], const char *name)
{
    const char *root = f->of->root ? f->of->root : "model.";
    size_t n = strlen(root);
    if (n && !strncmp(name, root, n)) snprintf(out, 320, "%s%s", f->prefix, name + n);
    else if (!strncmp(name, "lm_head.", 8)) snprintf(out, 320, "%s%s", f->head, name + 7);
    else snprintf(out, 320, "%s", name);
}

/* What the first BERTs call a norm's weight and bias, in place; false: it is none. */
static bool first_name(char *name)
{
    static const char *const now[] = { "LayerNorm.weight", "LayerNorm.bias" };
    static const char *const then[] = { "LayerNorm.gamma", "LayerNorm.beta" };
    size_t n = strlen(name);
    for (int i = 0; i < 2; i++) {
        size_t k = strlen(now[i]);
        if (n < k || strcmp(name + n - k, now[i])) continue;
        memcpy(name + n - k, then[i], strlen(then[i]) + 1);
        return true;
    }
    return false;
}

const hn_ckpt_tensor *hn_hf_find(const hn_hf *f, const char *name)
{
    char real[320];
    real_name(f, real, name);
    const hn_ckpt_tensor *t = hn_ckpt_find(f->c, real, strlen(real));
    return t || !first_name(real) ? t : hn_ckpt_find(f->c, real, strlen(real));
}

static bool same_shape(const hn_ckpt_tensor *t, int32_t n_dim, const uint64_t *ne)
{
    for (int32_t i = 0; i < HN_CKPT_MAX_DIM; i++)
        if (t->ne[i] != (i < n_dim ? ne[i] : 1)) return false;
    return true;
}

/* A source of the way back: there is room for as many as the file can make. */
static hone_status imagine(const hn_ckpt_tensor **out, hn_hf *f, const char *name, hn_ckpt_tensor *t, hone_error *err)
{
    char real[320];
    hone_status st;
    real_name(f, real, name);
    t->name = (hone_str){ real, strlen(real) };
    t->type = HN_F32;
    for (int32_t i = t->n_dim; i < HN_CKPT_MAX_DIM; i++) t->ne[i] = 1;
    if (f->c->n == f->c->cap)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: its tensors would become more than %zu", f->c->path, f->c->cap);
    TRY(hn_ckpt_add(f->c, t, err));
    *out = &f->c->t[f->c->n - 1];
    return HONE_OK;
}

hone_status hn_hf_need(const hn_ckpt_tensor **out, hn_hf *f, const char *name, int32_t n_dim, const uint64_t *ne,
                       hone_error *err)
{
    hn_ckpt_tensor want = { .n_dim = n_dim };
    for (int32_t i = 0; i < n_dim; i++) want.ne[i] = ne[i];
    const hn_ckpt_tensor *t = *out = hn_hf_find(f, name);
    if (f->back && !t) return imagine(out, f, name, &want, err);
    if (!t) {
        char real[320];
        real_name(f, real, name);
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s is missing; expected one of shape %s, as %s says", f->c->path,
                       real, HN_SHAPE(&want), f->path);
    }
    if (!same_shape(t, n_dim, ne))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has shape %s, expected %s as %s says", f->c->part[t->part].path,
                       HN_ESC(t->name.ptr, t->name.len), HN_SHAPE(t), HN_SHAPE(&want), f->path);
    if (t->raw && !f->stored[t - f->c->t])
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s has dtype %s, and no scales beside it; expected F32, F16, BF16 or F64: convert the "
                       "unquantized checkpoint",
                       f->c->part[t->part].path, HN_ESC(t->name.ptr, t->name.len), hn_ckpt_raw_name(t->raw));
    return HONE_OK;
}

/* ---- views --------------------------------------------------------------------------------------------- */

static uint64_t elements(const uint64_t *n, int dims)
{
    uint64_t x = 1;
    for (int i = 0; i < dims; i++) x *= n[i];
    return x;
}

hn_hf_view hn_hf_all(const hn_ckpt_tensor *t)
{
    hn_hf_view v = { .from = t, .n = { elements(t->ne, HN_CKPT_MAX_DIM), 1, 1, 1, 1, 1 }, .stride = { 1 } };
    return v;
}

/* Steps that follow one another without a gap become one. */
static void join(hn_hf_view *v)
{
    int k = 0;
    for (int i = 1; i < HN_HF_DIMS; i++) {
        if (v->n[i] == 1) continue;
        if (v->n[k] == 1) v->n[k] = v->n[i], v->stride[k] = v->stride[i];
        else if (v->stride[i] == v->n[k] * v->stride[k]) v->n[k] *= v->n[i];
        else k++, v->n[k] = v->n[i], v->stride[k] = v->stride[i];
    }
    for (int i = k + 1; i < HN_HF_DIMS; i++) v->n[i] = 1, v->stride[i] = 0;
}

hone_status hn_hf_begin(hn_hf *f, const char *name, int32_t n_dim, const uint64_t *ne, hone_error *err)
{
    if (f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 256;
        hn_hf_tensor *p = realloc(f->t, cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: plan of %zu tensors", f->c->path, cap);
        f->t = p;
        f->cap = cap;
    }
    hn_hf_tensor *t = &f->t[f->n++];
    *t = (hn_hf_tensor){ .n_dim = n_dim, .ne = { 1, 1, 1, 1 }, .view = f->n_v };
    for (int32_t i = 0; i < n_dim; i++) t->ne[i] = ne[i];
    if (snprintf(t->name, sizeof t->name, "%s", name) >= (int)sizeof t->name)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor name %s is longer than %zu bytes", f->c->path, name,
                       sizeof t->name - 1);
    return HONE_OK;
}

hone_status hn_hf_add(hn_hf *f, const hn_hf_view *view, hone_error *err)
{
    hn_hf_view v = *view;
    uint64_t last = v.first;
    for (int i = 0; i < HN_HF_DIMS; i++) {
        if (v.n[i] == 0) v.n[i] = 1;
        last += (v.n[i] - 1) * v.stride[i];
    }
    if (v.from && last >= elements(v.from->ne, HN_CKPT_MAX_DIM)) /* shapes were checked before */
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: a view of %s reaches beyond it", f->t[f->n - 1].name,
                       HN_ESC(v.from->name.ptr, v.from->name.len));
    if (f->n_v == f->cap_v) {
        size_t cap = f->cap_v ? 2 * f->cap_v : 512;
        hn_hf_view *p = realloc(f->v, cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: plan of %zu views", f->c->path, cap);
        f->v = p;
        f->cap_v = cap;
    }
    join(&v);
    f->v[f->n_v++] = v;
    f->t[f->n - 1].n_view++;
    if (v.from) f->used[v.from - f->c->t] += elements(v.n, HN_HF_DIMS);
    return HONE_OK;
}

/* ---- from slots ----------------------------------------------------------------------------------------- */

hone_status hn_hf_plain(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const hn_ckpt_tensor *t;
    hone_status st;
    TRY(hn_hf_need(&t, f, at->hf, at->n_dim, at->ne, err));
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    hn_hf_view v = hn_hf_all(t);
    if (at->turn == HN_TURN_PLUS_ONE) v.map = HN_HF_PLUS_ONE;
    if (at->plan && (at->turn == HN_TURN_Q || at->turn == HN_TURN_K)) {
        /* rows i and i + d/2 of a head become neighbours */
        uint64_t w = at->n_dim > 1 ? at->ne[0] : 1, d = (uint64_t)at->plan->d_k, n_row = at->ne[at->n_dim - 1];
        v = (hn_hf_view){ .from = t, .n = { w, 2, d / 2, n_row / d, 1, 1 }, .stride = { 1, d / 2 * w, w, d * w } };
    }
    return hn_hf_add(f, &v, err);
}

hone_status hn_hf_transposed(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const hn_ckpt_tensor *t;
    hone_status st;
    uint64_t n_in = at->ne[0], n_out = at->ne[1];
    if (at->n_dim < 2) return hn_hf_plain(f, at, err);
    TRY(hn_hf_need(&t, f, at->hf, 2, (uint64_t[]){ n_out, n_in }, err));
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    return hn_hf_add(f, &(hn_hf_view){ .from = t, .n = { n_in, n_out }, .stride = { n_out, 1 } }, err);
}

/* What the class, or the slot of the matrix, calls it. */
static const char *module_of(const hn_hf *f, const hn_slot *list, const char *name, size_t stem, const hn_hf_name **row)
{
    *row = NULL;
    for (const hn_hf_name *n = f->of->tensors; n && n->gguf; n++)
        if (!strcmp(n->gguf, name) || (strlen(n->gguf) == stem && !memcmp(n->gguf, name, stem))) {
            *row = n;
            return strcmp(n->hf, "-") ? n->hf : NULL;
        }
    for (const hn_slot *s = list; s->name; s++)
        if (s->hf && !strncmp(s->name, name, stem) && (s->name[stem] == '.' || !s->name[stem])) return s->hf;
    return NULL;
}

/* Length of a name without ".weight" or ".bias". */
static size_t stem_of(const char *name)
{
    size_t n = strlen(name);
    if (n > 7 && !strcmp(name + n - 7, ".weight")) return n - 7;
    if (n > 5 && !strcmp(name + n - 5, ".bias")) return n - 5;
    return n;
}

/* A bias turns as its matrix does, whose slot says it; what a norm's weight lacks, its bias has. */
static hn_turn turn_of(const hn_slot *list, const hn_slot *s)
{
    size_t n = stem_of(s->name);
    for (const hn_slot *m = list; m->name; m++)
        if (m->turn && (m == s || m->turn != HN_TURN_PLUS_ONE) && stem_of(m->name) == n && !memcmp(m->name, s->name, n))
            return m->turn;
    return HN_TURN_NONE;
}

/* Layers stand together: it is near the end, or outside them at the beginning. */
static bool has_tensor(const hn_hf *f, const char *name)
{
    for (size_t i = f->n; i-- > 0;)
        if (!strcmp(f->t[i].name, name)) return true;
    return false;
}

/* The name in the file. */
static void full_name(char out[128], int32_t il, const char *name)
{
    if (il < 0) snprintf(out, 128, "%s", name);
    else snprintf(out, 128, "blk.%d.%s", (int)il, name);
}

static bool has_sibling(const hn_hf *f, int32_t il, const char *name)
{
    char full[128];
    full_name(full, il, name);
    return has_tensor(f, full);
}

static bool is_listed(const char *list, const char *name) { return hn_hf_is_word(list, name, strlen(name)); }

/* F32 whatever the type: vectors, routers, kernels of convolutions, what no matrix product reads. */
static bool always_f32(const hn_slot *s, const char *name, int32_t n_dim)
{
    size_t n = strlen(name);
    return !hn_slot_is_matrix(s) || n_dim < 2 || n < 7 || strcmp(name + n - 7, ".weight") ||
           s->role == HN_ROLE_ROUTER || !strcmp(s->name, "position_embd.weight") ||
           (n > 12 && !strcmp(name + n - 12, "_norm.weight"));
}

/* The folder's name of a slot that a row of the class names, or itself. */
static void folder_name(const hn_hf *f, char out[320], const hn_slot *s, int32_t il, const char *module, bool by_class,
                        bool whole)
{
    const char *root = f->of->root ? f->of->root : "model.", *layers = f->of->layers ? f->of->layers : "layers";
    const char *tail = whole ? "" : s->name + stem_of(s->name);
    if (il >= 0 && il >= f->m->hp.n_layer && f->of->drafts == HN_HF_MTP) {
        root = "mtp.";
        il -= f->m->hp.n_layer;
    }
    const int32_t n = f->m->hp.n_stack;
    if (il >= 0 && n)
        snprintf(out, 320, "%s%c_module.%s.%d.%s%s", root, il < n ? 'L' : 'H', layers, (int)(il % n), module, tail);
    else if (il >= 0) snprintf(out, 320, "%s%s.%d.%s%s", root, layers, (int)il, module, tail);
    else if (!by_class || *module == '/') snprintf(out, 320, "%s%s", module + (*module == '/'), tail);
    else snprintf(out, 320, "%s%s%s", root, module, tail);
}

/* May the slot's tensor be missing? What the config, a row of the class or the first layer has may not. */
static bool may_miss(const hn_hf *f, const hn_slot *s, int32_t il, const hn_hf_name *row)
{
    if (s->when != HN_OPTIONAL && s->when != HN_GOES_WITH) return false;
    if (is_listed(f->needed, s->name) || (row && hn_slot_is_matrix(s))) return false;
    return !(il > 0 && strstr(s->name, ".bias") && has_sibling(f, 0, s->name));
}

/* In the folder; on the way back, in the file. */
static bool is_there(const hn_hf *f, const char *name, const char *hf)
{
    return f->back ? hn_gguf_find_tensor(f->back, name) != NULL : hn_hf_find(f, hf) != NULL;
}

static hone_status add_slot(hn_hf *f, const hn_slot *list, const hn_slot *s, int32_t il, const hn_layer_plan *plan,
                            hone_error *err)
{
    const hn_hf_name *row;
    char name[128], hf[320];
    const char *module = module_of(f, list, s->name, stem_of(s->name), &row);
    hn_hf_at at = { .slot = s, .plan = plan, .il = il, .name = name, .hf = hf, .ne = { 1, 1, 1, 1 } };
    if (!hn_slot_in(s, plan) || !module || is_listed(f->without, s->name)) return HONE_OK;
    if (il >= 0 && il < s->from_layer) return HONE_OK;
    const hn_slot_rare *rare = hn_slot_rarely(s);
    if (rare->without && has_sibling(f, il, rare->without)) return HONE_OK;
    if (rare->with && strcmp(rare->with, s->name) && !has_sibling(f, il, rare->with)) return HONE_OK;
    if (s->when == HN_TIED && f->tied) return HONE_OK;
    for (; at.n_dim < 4 && s->ne[at.n_dim]; at.n_dim++) {
        at.ne[at.n_dim] = (uint64_t)hn_dim_value(&f->m->hp, plan, s->ne[at.n_dim]);
        if (at.ne[at.n_dim] == 0) return HONE_OK; /* of a width that the model has not */
    }
    at.turn = turn_of(list, s);
    full_name(name, il, s->name);
    if (has_tensor(f, name)) return HONE_OK; /* in another form */
    folder_name(f, hf, s, il, module, row != NULL, row && !strcmp(row->gguf, s->name));
    if (may_miss(f, s, il, row) && !is_there(f, name, hf)) return HONE_OK;
    size_t n = f->n;
    hone_status st = (row && row->make ? row->make : hn_hf_plain)(f, &at, err);
    for (; n < f->n; n++) f->t[n].always_f32 |= always_f32(s, f->t[n].name, f->t[n].n_dim);
    return st;
}

/* ---- tied embeddings -------------------------------------------------------------------------------------- */

enum { COMPARED = 1 << 20 };

static hone_status same_bytes(const hn_hf *f, const hn_ckpt_tensor *a, const hn_ckpt_tensor *b, bool *same,
                              hone_error *err)
{
    hone_status st = HONE_OK;
    char *buf = malloc(2 * COMPARED);
    if (!buf) return HN_FAIL(err, HONE_E_NOMEM, "buffer of %d bytes", 2 * COMPARED);
    *same = a->type == b->type && a->n_bytes == b->n_bytes;
    for (uint64_t at = 0; *same && at < a->n_bytes && st == HONE_OK; at += COMPARED) {
        uint64_t n = a->n_bytes - at < COMPARED ? a->n_bytes - at : COMPARED;
        if ((st = hn_source_read(&f->c->part[a->part], a->off + at, buf, n, err)) == HONE_OK)
            st = hn_source_read(&f->c->part[b->part], b->off + at, buf + COMPARED, n, err);
        *same = st == HONE_OK && !memcmp(buf, buf + COMPARED, n);
    }
    free(buf);
    return st;
}

static hone_status find_tied(hn_hf *f, hone_error *err)
{
    const hn_hf_name *row;
    const hn_slot *embd = f->m->arch->outer, *out = embd;
    char name[320], head[320];
    bool same = true, said;
    hone_status st;
    const json_t *whole = json_object_get(f->root, "tie_word_embeddings"); /* of a model of several inputs */
    TRY(hn_hf_truth(f, "tie_word_embeddings", json_is_boolean(whole) ? json_is_true(whole) : f->of->tied, &said, err));
    while (out->name && out->when != HN_TIED) out++;
    const char *module = out->name ? module_of(f, embd, out->name, stem_of(out->name), &row) : NULL;
    if (!module) return HONE_OK;
    folder_name(f, head, out, -1, module, row != NULL, false);
    if (f->back) {
        f->tied = !hn_gguf_find_tensor(f->back, out->name);
        return HONE_OK;
    }
    const hn_ckpt_tensor *h = hn_hf_find(f, head), *e;
    f->tied = !h;
    if (!h && !said)
        hn_convert_note(f->a, "%s: tie_word_embeddings is false, but there is no %s: the embedding serves as output",
                        f->path, head);
    if (!h || !said) return HONE_OK;
    module = module_of(f, embd, embd->name, stem_of(embd->name), &row);
    folder_name(f, name, embd, -1, module, row != NULL, false);
    if (!(e = hn_hf_find(f, name)) || e == h) return HONE_OK; /* told where it is needed */
    TRY(same_bytes(f, e, h, &same, err));
    if (!same)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: tie_word_embeddings is true, but %s differs from %s; expected equal tensors, or false",
                       f->path, HN_ESC(h->name.ptr, h->name.len), HN_ESC(e->name.ptr, e->name.len));
    f->tied = true;
    f->used[h - f->c->t] = elements(h->ne, HN_CKPT_MAX_DIM);
    return HONE_OK;
}

/* ---- the account ------------------------------------------------------------------------------------------ */

/* Buffers, masks; parts of models with other inputs than text. */
static const char left_out[] = "*rotary_emb.inv_freq *.rotary_emb.cos_cached *.rotary_emb.sin_cached *.attention.bias "
                               "*.attention.masked_bias *.attn.bias *.attn.masked_bias";
static const char other_inputs[] =
    "vision_tower.* vision_model.* visual.* vision_encoder.* vision_language_adapter.* multi_modal_projector.* "
    "audio_tower.* embed_audio.* embed_vision.* patch_merger.* pre_mm_projector_norm.* mm_projector.* "
    "model.vision_tower.* model.vision_model.* model.visual.* model.multi_modal_projector.* model.audio_tower.* "
    "model.embed_audio.* model.embed_vision.* model.vision_embed_tokens.* image_newline model.image_newline "
    "model.connector.* connector.* encoder.* projector.* qformer.* model.qformer.* model.vision_projection.* "
    "vision_proj.* mlp1.* model.mm_projector.* vision_backbone.* model.vision_backbone.* mm_vision.* "
    "model.vision_adapter.*";

/* Does a word of the list fit, in which a * at an end stands for any text? */
static bool is_left(const char *list, const char *name, size_t n)
{
    for (const char *p = list; p && *p;) {
        size_t k = strcspn(p, " ");
        bool any = *p == '*', rest = p[k - 1] == '*';
        if (any    ? n >= k - 1 && !memcmp(name + n - (k - 1), p + 1, k - 1)
            : rest ? n >= k - 1 && !memcmp(name, p, k - 1)
                   : n == k && !memcmp(name, p, k))
            return true;
        p += k;
        while (*p == ' ') p++;
    }
    return false;
}

/* A bias of zeros beside GPTQ's words, as AutoGPTQ gave to every linear layer, adds nothing. */
static hone_status adds_nothing(bool *yes, const hn_hf *f, const hn_ckpt_tensor *t, hone_error *err)
{
    char words[320];
    uint8_t part[4096];
    hone_status st;
    size_t n = t->name.len;
    *yes = n > 5 && !memcmp(t->name.ptr + n - 5, ".bias", 5);
    if (*yes) {
        snprintf(words, sizeof words, "%.*sqweight", (int)n - 4, t->name.ptr);
        *yes = hn_ckpt_find(f->c, words, strlen(words));
    }
    for (uint64_t at = 0, k; at < t->n_bytes && *yes; at += k) {
        k = t->n_bytes - at < sizeof part ? t->n_bytes - at : sizeof part;
        TRY(hn_source_read(&f->c->part[t->part], t->off + at, part, k, err));
        for (uint64_t i = 0; i < k; i++) *yes &= !part[i];
    }
    return HONE_OK;
}

static hone_status check_sources(const hn_hf *f, hone_error *err)
{
    const hn_ckpt_tensor *other = NULL;
    bool sees = f->config != f->root || json_is_object(json_object_get(f->root, "vision_config"));
    size_t n_other = 0;
    hone_status st;
    for (size_t i = 0; i < f->c->n; i++) {
        const hn_ckpt_tensor *t = &f->c->t[i];
        uint64_t all = elements(t->ne, HN_CKPT_MAX_DIM);
        if (f->used[i] == all) continue;
        const char *name = HN_ESC(t->name.ptr, t->name.len), *path = f->c->part[t->part].path;
        if (f->used[i])
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s: %llu of its %llu elements would be written", path, name,
                           (unsigned long long)f->used[i], (unsigned long long)all);
        if (is_left(left_out, t->name.ptr, t->name.len) || is_left(f->of->left, t->name.ptr, t->name.len)) continue;
        if (sees && is_left(other_inputs, t->name.ptr, t->name.len)) {
            other = other ? other : t;
            n_other++;
            continue;
        }
        bool nothing;
        TRY(adds_nothing(&nothing, f, t, err));
        if (nothing) continue;
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %s, of shape %s, is no tensor of a model of class %.*s as %s says it is", path, name,
                       HN_SHAPE(t), (int)strcspn(f->of->names, "|"), f->of->names, f->path);
    }
    if (other)
        hn_convert_note(f->a, "%zu tensors of other inputs than text (%s, ...) are left out", n_other,
                        HN_ESC(other->name.ptr, other->name.len));
    return HONE_OK;
}

/* Views that are more or less than their tensor would be read past their end. */
static hone_status check_views(const hn_hf *f, hone_error *err)
{
    for (size_t i = 0; i < f->n; i++) {
        const hn_hf_tensor *t = &f->t[i];
        uint64_t n = 0, all = elements(t->ne, 4);
        for (size_t k = t->view; k < t->view + t->n_view; k++) n += elements(f->v[k].n, HN_HF_DIMS);
        if (n != all)
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: %s would have %llu elements of its sources, expected %llu: a model of class %.*s of "
                           "these sizes is not what hone knows",
                           f->path, t->name, (unsigned long long)n, (unsigned long long)all,
                           (int)strcspn(f->of->names, "|"), f->of->names);
    }
    return HONE_OK;
}

hone_status hn_hf_plan_layer(hn_hf *f, int32_t il, const hn_layer_plan *plan, hone_error *err)
{
    const hn_slot *list = f->m->arch->layer;
    hone_status st = HONE_OK;
    for (const hn_slot *s = list; st == HONE_OK && s->name; s++) st = add_slot(f, list, s, il, plan, err);
    return st;
}

hone_status hn_hf_plan(hn_hf *f, hone_error *err)
{
    const hn_family *family = f->m->arch;
    hone_status st;
    TRY(find_tied(f, err));
    for (const hn_slot *s = family->outer; s->name; s++) TRY(add_slot(f, family->outer, s, -1, NULL, err));
    TRY(hn_hf_rope_tensors(f, err));
    if (f->of->tensors_too) TRY(f->of->tensors_too(f, err));
    for (int32_t il = 0; il < f->m->hp.n_layer; il++)
        if (!hn_is_again(&f->m->hp, il)) TRY(hn_hf_plan_layer(f, hn_block_of(&f->m->hp, il), &f->m->plan[il], err));
    TRY(hn_hf_plan_drafts(f, err));
    TRY(check_views(f, err));
    return check_sources(f, err);
}
