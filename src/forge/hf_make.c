/* hf_make: tensors of the file that are made in a way that several classes share: stacks of experts, halves, latent
 * keys and values, decays. Every way is views of sources, checked by shape; refuses to know which class does what. */
#include "forge/hf_rows.h"

#include <stdlib.h>

hone_status hn_hf_make(hn_hf *f, const hn_hf_at *at, int32_t n, const uint64_t *from, const hn_hf_view *v,
                       hone_error *err)
{
    const hn_ckpt_tensor *t;
    hn_hf_view of = *v;
    hone_status st;
    TRY(hn_hf_need(&t, f, at->hf, n, from, err));
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    of.from = t;
    return hn_hf_add(f, &of, err);
}

static uint64_t elements(const hn_hf_at *at) { return at->ne[0] * at->ne[1] * at->ne[2] * at->ne[3]; }

/* ---- the same elements --------------------------------------------------------------------------------------- */

/* Dimensions that are not 1. */
static int32_t squeezed(uint64_t out[HN_CKPT_MAX_DIM], const uint64_t *ne, int32_t n)
{
    int32_t k = 0;
    for (int32_t i = 0; i < n; i++)
        if (ne[i] != 1) out[k++] = ne[i];
    for (int32_t i = k; i < HN_CKPT_MAX_DIM; i++) out[i] = 1;
    return k;
}

/* As the folder has it, where that is the slot's shape but for dimensions of 1, or a list of its elements. */
static hone_status need_same(const hn_ckpt_tensor **t, hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const hn_ckpt_tensor *have = hn_hf_find(f, at->hf);
    uint64_t a[HN_CKPT_MAX_DIM], b[HN_CKPT_MAX_DIM];
    if (have) {
        bool list = squeezed(a, have->ne, have->n_dim) < 2 && a[0] == elements(at);
        squeezed(b, at->ne, at->n_dim);
        if (list || !memcmp(a, b, sizeof a)) return hn_hf_need(t, f, at->hf, have->n_dim, have->ne, err);
    }
    return hn_hf_need(t, f, at->hf, at->n_dim, at->ne, err);
}

static hone_status same(hn_hf *f, const hn_hf_at *at, bool flat, hn_hf_map map, hone_error *err)
{
    const hn_ckpt_tensor *t;
    const uint64_t n = elements(at);
    hone_status st;
    TRY(need_same(&t, f, at, err));
    TRY(hn_hf_begin(f, at->name, flat ? 1 : at->n_dim, flat ? &n : at->ne, err));
    hn_hf_view v = hn_hf_all(t);
    v.map = map;
    return hn_hf_add(f, &v, err);
}

hone_status hn_hf_flat(hn_hf *f, const hn_hf_at *at, hone_error *err) { return same(f, at, true, HN_HF_SAME, err); }

hone_status hn_hf_reshaped(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    return same(f, at, false, HN_HF_SAME, err);
}

hone_status hn_hf_minus_exp(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    return same(f, at, false, HN_HF_MINUS_EXP, err);
}

hone_status hn_hf_plus_one(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    return same(f, at, false, HN_HF_PLUS_ONE, err);
}

/* ---- halves --------------------------------------------------------------------------------------------------- */

static bool is_second(const hn_hf_at *at) { return strstr(at->name, "_up") != NULL; }

hone_status hn_hf_half(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    uint64_t n = at->ne[0] * at->ne[1];
    return hn_hf_make(f, at, 2, (uint64_t[]){ at->ne[0], 2 * at->ne[1] },
                      &(hn_hf_view){ .first = is_second(at) ? n : 0, .n = { n }, .stride = { 1 } }, err);
}

/* ---- experts ---------------------------------------------------------------------------------------------------- */

/* The name of one expert's tensor: * is its number. */
static void name_of(char out[320], const char *hf, const char *star, uint64_t k)
{
    snprintf(out, 320, "%.*s%llu%s", (int)(star - hf), hf, (unsigned long long)k, star + 1);
}

/* All experts' in one, [n_expert, n_out, n_in]: gate and up one behind the other. */
static hone_status of_one(hn_hf *f, const hn_hf_at *at, const char *name, hone_error *err)
{
    hn_hf_at as = *at;
    uint64_t n = at->ne[0] * at->ne[1], half = at->slot->role == HN_ROLE_EXPERT_DOWN ? 1 : 2;
    as.hf = name;
    hn_hf_view v = { .first = half == 2 && is_second(at) ? n : 0, .n = { n, at->ne[2] }, .stride = { 1, half * n } };
    return hn_hf_make(f, &as, 3, (uint64_t[]){ at->ne[0], half * at->ne[1], at->ne[2] }, &v, err);
}

hone_status hn_hf_experts(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    char name[320];
    const char *star = strchr(at->hf, '*');
    bool down = at->slot->role == HN_ROLE_EXPERT_DOWN;
    hone_status st;
    if (!star) return of_one(f, at, at->hf, err);
    snprintf(name, sizeof name, "%.*s%s", (int)(star - at->hf), at->hf, down ? "down_proj" : "gate_up_proj");
    /* on the way back as they are published: Mistral 4's in one */
    if (f->back ? !strcmp(f->of->arch, "mistral4") : hn_hf_find(f, name) != NULL) return of_one(f, at, name, err);
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    for (uint64_t k = 0; k < at->ne[2]; k++) {
        const hn_ckpt_tensor *t;
        name_of(name, at->hf, star, k);
        TRY(hn_hf_need(&t, f, name, 2, at->ne, err));
        hn_hf_view v = hn_hf_all(t);
        TRY(hn_hf_add(f, &v, err));
    }
    return HONE_OK;
}

/* ---- latent attention ----------------------------------------------------------------------------------------- */

hone_status hn_hf_k_b(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    uint64_t nope = at->ne[0], rank = at->ne[1], n_head = at->ne[2], both = nope + (uint64_t)f->m->hp.d_value;
    hn_hf_view v = { .n = { nope, rank, n_head }, .stride = { rank, 1, both * rank } };
    return hn_hf_make(f, at, 2, (uint64_t[]){ rank, both * n_head }, &v, err);
}

hone_status hn_hf_v_b(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    uint64_t rank = at->ne[0], value = at->ne[1], n_head = at->ne[2], nope = (uint64_t)f->m->hp.d_nope;
    hn_hf_view v = { .first = nope * rank, .n = { rank * value, n_head }, .stride = { 1, (nope + value) * rank } };
    return hn_hf_make(f, at, 2, (uint64_t[]){ rank, (nope + value) * n_head }, &v, err);
}

hone_status hn_hf_q_alone(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    return f->m->hp.rank_q ? HONE_OK : hn_hf_plain(f, at, err);
}

/* ---- layers ----------------------------------------------------------------------------------------------------- */

void hn_hf_leave_drafts(hn_hf *f, int64_t n_layer)
{
    char head[160];
    const char *layers = f->of->layers ? f->of->layers : "layers";
    n_layer += f->n_draft;
    size_t n = (size_t)snprintf(head, sizeof head, "%s%s.", f->prefix, layers);
    for (size_t i = 0; i < f->c->n; i++) {
        const hn_ckpt_tensor *t = &f->c->t[i];
        uint64_t all = 1;
        if (t->name.len <= n || n >= sizeof head || memcmp(t->name.ptr, head, n)) continue;
        if (t->name.ptr[n] < '0' || t->name.ptr[n] > '9' || strtol(t->name.ptr + n, NULL, 10) < n_layer) continue;
        for (int k = 0; k < HN_CKPT_MAX_DIM; k++) all *= t->ne[k];
        f->used[i] = all;
    }
}

bool hn_hf_layer_is(const json_t *list, int64_t il, const char *words)
{
    char letter[2] = { 0 };
    const char *w = json_string_value(json_array_get(list, (size_t)il));
    if (json_is_string(list) && il < (int64_t)json_string_length(list)) {
        letter[0] = json_string_value(list)[il];
        w = letter;
    }
    return w && hn_hf_is_word(words, w, strlen(w));
}

hone_status hn_hf_read_layers(hn_hf *f, const char *names, hn_hf_layers *l, hone_error *err)
{
    hone_status st;
    *l = (hn_hf_layers){ .list = hn_hf_get(f, names) };
    int64_t n = json_is_string(l->list) ? (int64_t)json_string_length(l->list) : (int64_t)json_array_size(l->list);
    TRY(hn_hf_whole(f, "num_hidden_layers", n, &l->n, err));
    if (l->n < 1 || l->n > HN_MAX_LAYER)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: num_hidden_layers = %lld, expected 1 to %d", f->path, (long long)l->n,
                       HN_MAX_LAYER);
    if (!l->list || n == l->n) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %.*s has %lld entries, expected one for each of %lld layers", f->path,
                   (int)strcspn(names, "|"), names, (long long)n, (long long)l->n);
}

hone_status hn_hf_read_windows(hn_hf *f, hn_hf_layers *l, uint8_t windowed[HN_MAX_LAYER], hone_error *err)
{
    char name[40];
    hone_status st;
    memset(windowed, 0, HN_MAX_LAYER);
    TRY(hn_hf_read_layers(f, "layer_types", l, err));
    for (int64_t il = 0; l->list && il < l->n; il++) {
        windowed[il] = hn_hf_layer_is(l->list, il, "sliding_attention");
        if (windowed[il] || hn_hf_layer_is(l->list, il, "full_attention")) continue;
        snprintf(name, sizeof name, "layer_types[%lld]", (long long)il);
        return hn_hf_refuse(f, name, json_array_get(l->list, (size_t)il), "sliding_attention or full_attention", err);
    }
    return HONE_OK;
}

hone_status hn_hf_put_numbers(hn_hf *f, const char *key, const char *names, const char *words, const char *others,
                              int64_t value, hone_error *err)
{
    hn_hf_layers l;
    int32_t *of;
    hone_status st;
    TRY(hn_hf_read_layers(f, names, &l, err));
    if (!(of = hn_arena_alloc(f->arena, (size_t)l.n * sizeof *of)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", f->path);
    for (int64_t il = 0; il < l.n; il++) {
        bool is = hn_hf_layer_is(l.list, il, words);
        if (!is && !hn_hf_layer_is(l.list, il, others))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %.*s[%lld], expected one of %s|%s", f->path,
                           (int)strcspn(names, "|"), names, (long long)il, words, others);
        of[il] = is ? (int32_t)value : 0;
    }
    return hn_hf_put_layers(f, key, HONE_KV_I32, of, l.n, err);
}
