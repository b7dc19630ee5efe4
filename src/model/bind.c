/* bind: tensors of a file become fields of a model. Walks a family's slots: finds each tensor by name, compares its
 * shape with what the slot's dimensions are in this model, and says of every weight what it is. Refuses to know what
 * families there are (families.c) and what a tensor is for. */
#include "model/hparams.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- tensors ------------------------------------------------------------------------------ */

/* kind: of the field. any: rows in any dimensions. *packed: what the side file has of it, or NULL. */
static hone_status find(hone_model *m, const hn_gguf_tensor **out, const hn_packed_entry **packed, const char *name,
                        uint8_t kind, int64_t ne0, int64_t ne1, bool any, bool optional, hone_error *err)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, name);
    *out = NULL;
    *packed = NULL;
    if (!t) {
        if (optional) return HONE_OK;
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s is missing; architecture %s needs it, shape {%lld, %lld}",
                       m->path, name, m->arch->name, (long long)ne0, (long long)ne1);
    }
    bool rows = any && t->ne[1] <= (uint64_t)ne1 && t->ne[2] <= (uint64_t)ne1 && t->ne[3] <= (uint64_t)ne1 &&
                t->ne[1] * t->ne[2] <= (uint64_t)ne1 && t->ne[1] * t->ne[2] * t->ne[3] == (uint64_t)ne1;
    if (t->ne[0] != (uint64_t)ne0 || (!rows && (t->ne[1] != (uint64_t)ne1 || t->ne[2] != 1 || t->ne[3] != 1)))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s has shape {%llu, %llu, %llu, %llu}, expected {%lld, %lld}",
                       m->path, name, (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
                       (unsigned long long)t->ne[2], (unsigned long long)t->ne[3], (long long)ne0, (long long)ne1);
    ptrdiff_t i = t - hn_gguf_tensor_at(m->file, 0);
    m->bound[i] = kind;
    if (m->packed_of && m->packed_of[i] &&
        m->packed_of[i]->kind == (kind == HN_BOUND_VECTOR ? HN_PACKED_VECTOR : HN_PACKED_MATRIX))
        *packed = m->packed_of[i];
    *out = t;
    return HONE_OK;
}

/* W [n_out, n_in]: found, of a type that can be a weight, exactly of that shape. */
static hone_status bind_matrix(hone_model *m, hn_weight *out, const char *name, uint8_t kind, int64_t n_in,
                               int64_t n_out, bool any, bool optional, hone_error *err)
{
    const hn_gguf_tensor *t;
    const hn_packed_entry *e;
    hone_status st = find(m, &t, &e, name, kind, n_in, n_out, any, optional, err);
    if (st != HONE_OK || !t) return st;
    const hn_type_info *ti = hn_type_get(t->type);
    if (!ti->weight)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: tensor %s has type %s, which cannot be a weight", m->path, name,
                       ti->name);
    const float *bias = out->bias;
    *out = (hn_weight){ .data = t->data,
                        .bias = bias,
                        .type = t->type,
                        .n_in = n_in,
                        .n_out = n_out,
                        .row_bytes = (size_t)hn_row_bytes(ti, (uint64_t)n_in) };
    if (e) {
        out->packed = e->data;
        out->group_bytes = hn_packed_group_bytes(t->type, n_in);
    }
    return HONE_OK;
}

/* Rows [first, first + n_out) of a matrix. */
static hn_weight rows_of(const hn_weight *w, int64_t first, int64_t n_out)
{
    hn_weight v = *w;
    v.data = (const char *)w->data + (size_t)first * w->row_bytes;
    v.bias = w->bias ? w->bias + first : NULL;
    v.n_out = n_out;
    if (v.packed)
        v.packed = first % HN_PACK_ROWS ? NULL
                                        : (const char *)w->packed + (size_t)(first / HN_PACK_ROWS) *
                                                                        w->group_bytes; /* views begin with a group */
    return v;
}

/* n values in rows of ne0, whatever dimensions the rows are in; F16 and BF16 are widened into the arena. */
static hone_status bind_values(hone_model *m, const float **out, const char *name, int64_t ne0, int64_t n,
                               bool optional, hone_error *err)
{
    const hn_gguf_tensor *t;
    const hn_packed_entry *e;
    *out = NULL;
    hone_status st = find(m, &t, &e, name, HN_BOUND_VECTOR, ne0, n / ne0, true, optional, err);
    if (st != HONE_OK || !t) return st;
    if (t->type != HN_F32 && t->type != HN_F16 && t->type != HN_BF16)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: tensor %s has type %s, expected F32, F16 or BF16 for a vector",
                       m->path, name, hn_type_get(t->type)->name);
    if (e) {
        *out = e->data;
        return HONE_OK;
    }
    if (t->type == HN_F32 && (uintptr_t)t->data % _Alignof(float) == 0) {
        *out = t->data;
        return HONE_OK;
    }
    float *f = hn_arena_alloc(m->arena, (size_t)n * sizeof(float));
    if (!f) return HN_FAIL(err, HONE_E_NOMEM, "%s: tensor %s", m->path, name);
    hn_type_get(t->type)->dequantize(f, t->data, n);
    *out = f;
    return HONE_OK;
}

/* ---- slots -------------------------------------------------------------------------------------- */

static void full_name(char dst[96], const char *name, int32_t il)
{
    enum { LONGEST = 64 }; /* of slots */
    if (il < 0) snprintf(dst, 96, "%.*s", LONGEST, name);
    else snprintf(dst, 96, "blk.%d.%.*s", (int)il, LONGEST, name);
}

static const hn_gguf_tensor *tensor_of(const hone_model *m, const char *name, int32_t il)
{
    char full[96];
    full_name(full, name, hn_block_of(&m->hp, il));
    return hn_gguf_find_tensor(m->file, full);
}

/* Is it a tensor of the family, in layer il? */
static bool is_slot(const hone_model *m, const char *name, int32_t il)
{
    char full[96];
    for (const hn_slot *s = il < 0 ? m->arch->outer : m->arch->layer; s->name; s++) {
        full_name(full, s->name, hn_block_of(&m->hp, il));
        if (!strcmp(full, name)) return true;
    }
    return false;
}

/* What the numbers of NAME.weight are times, one for each of n matrices: NAME.scale, as files of NVFP4 have it.
 * NAME.input_scale is for activations of 4 bits, which hone has not. */
static hone_status bind_factor(hone_model *m, const float **factor, const char *name, int64_t n, int32_t il,
                               hone_error *err)
{
    char other[104];
    int stem = (int)strlen(name) - (int)strlen(".weight");
    snprintf(other, sizeof other, "%.*s.input_scale", stem, name);
    const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, other);
    if (t) m->bound[t - hn_gguf_tensor_at(m->file, 0)] = HN_BOUND_UNUSED;
    snprintf(other, sizeof other, "%.*s.scale", stem, name);
    *factor = NULL;
    if (!hn_gguf_find_tensor(m->file, other) || is_slot(m, other, il)) return HONE_OK;
    hone_status st = bind_values(m, factor, other, n, n, false, err);
    for (int64_t i = 0; st == HONE_OK && i < n; i++)
        if (!((*factor)[i] > 0 && (*factor)[i] <= FLT_MAX))
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: tensor %s: value %lld is %g, expected one above 0: a matrix is times it", m->path,
                           other, (long long)i, (double)(*factor)[i]);
    return st;
}

static hone_status slot_matrix(hone_model *m, const hn_slot *s, const char *name, char *base, const hn_layer_plan *p,
                               int32_t il, hone_error *err)
{
    hn_weight *first = (hn_weight *)(void *)(base + s->field), w = { .bias = first->bias };
    const hn_slot_rare *rare = hn_slot_rarely(s);
    int64_t n_out = 1, row = 0;
    for (int i = 1; i < 4 && s->ne[i]; i++) n_out *= hn_dim_value(&m->hp, p, s->ne[i]);
    hone_status st =
        bind_matrix(m, &w, name, rare->dealt ? HN_BOUND_COPIED : HN_BOUND_MATRIX, hn_dim_value(&m->hp, p, s->ne[0]),
                    n_out, s->kind == HN_SLOT_ROWS, s->when != HN_NEEDED, err);
    if (st != HONE_OK || (!w.data && s->when != HN_TIED)) return st;
    if (!w.data) w = m->token_embd;
    else if (il >= 0 || s->role == HN_ROLE_OUTPUT) st = bind_factor(m, &w.factor, name, 1, il, err);
    if (st != HONE_OK) return st;
    w.layer = il;
    w.role = s->role;
    w.cut = s->cut;
    if (!rare->part[0]) *first = w;
    if (rare->dealt && (st = hn_undeal(m, s, &w, p, err)) != HONE_OK) return st;
    for (int i = 0; i < HN_MAX_PART && rare->part[i]; i++) {
        size_t field = s->field + (size_t)i * hn_slot_stride(s);
        const hn_slot *own = il < 0 ? s : hn_family_field(m->arch, field);
        hn_weight *part = (hn_weight *)(void *)(base + field);
        int64_t n = hn_dim_value(&m->hp, p, rare->part[i]);
        *part = rows_of(&w, row, n);
        part->role = own->role;
        part->cut = own->cut;
        row += n;
    }
    return HONE_OK;
}

static hone_status slot_kv_b(hone_model *m, const hn_slot *s, const char *name, char *base, const hn_layer_plan *p,
                             int32_t il, hone_error *err)
{
    hn_weight w = { 0 }, *to[2];
    for (int i = 0; i < 2; i++) to[i] = (hn_weight *)(void *)(base + s->field + (size_t)i * sizeof w);
    hone_status st = bind_matrix(m, &w, name, HN_BOUND_COPIED, hn_dim_value(&m->hp, p, s->ne[0]),
                                 hn_dim_value(&m->hp, p, s->ne[1]), false, false, err);
    if (st == HONE_OK) st = bind_factor(m, &w.factor, name, 1, il, err);
    if (st == HONE_OK) st = hn_split_kv_b(m, to[0], to[1], &w, p, err);
    for (int i = 0; st == HONE_OK && i < 2; i++) {
        const hn_slot *own = hn_family_field(m->arch, s->field + (size_t)i * sizeof w);
        to[i]->layer = il;
        to[i]->role = own->role;
        to[i]->cut = own->cut;
    }
    return st;
}

/* ---- experts ---------------------------------------------------------------------------------------- */

static hone_status new_experts(hone_model *m, hn_weight **of, hone_error *err)
{
    *of = hn_arena_alloc(m->arena, (size_t)m->hp.moe.n_expert * sizeof **of);
    return *of ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: table of %d experts", m->path, m->hp.moe.n_expert);
}

/* What "NAME_exps.weight" is called of expert e alone, in a tensor of its own, as the first converters wrote them. */
enum { EXPERT_NAME = 96 };
static void expert_name(char dst[EXPERT_NAME], const char *all, int32_t il, int32_t e)
{
    int n = (int)strlen(all) - (int)strlen("_exps.weight");
    snprintf(dst, EXPERT_NAME, "blk.%d.%.*s.%d.weight", (int)il, n, all, (int)e);
}

static hone_status each_expert(hone_model *m, const hn_slot *s, hn_experts *to, int64_t n_in, int64_t n_out, int32_t il,
                               hone_error *err)
{
    char name[EXPERT_NAME];
    hn_weight *of;
    hone_status st = new_experts(m, &of, err);
    for (int32_t e = 0; st == HONE_OK && e < m->hp.moe.n_expert; e++) {
        expert_name(name, s->name, hn_block_of(&m->hp, il), e);
        st = bind_matrix(m, &of[e], name, HN_BOUND_EXPERTS, n_in, n_out, false, false, err);
        if (st == HONE_OK) st = bind_factor(m, &of[e].factor, name, 1, il, err);
        of[e].layer = il;
        of[e].role = s->role;
        of[e].cut = s->cut;
    }
    to->of = of;
    return st;
}

/* One tensor {n_in, n_out, n_expert}, or, where the slot has parts, rows of several matrices of each expert. */
static hone_status slot_experts(hone_model *m, const hn_slot *s, const char *name, char *base, const hn_layer_plan *p,
                                int32_t il, hone_error *err)
{
    int64_t n_in = hn_dim_value(&m->hp, p, s->ne[0]), n_out = hn_dim_value(&m->hp, p, s->ne[1]);
    int32_t n = m->hp.moe.n_expert;
    hn_weight w = { 0 }, *of;
    const hn_dim *part = hn_slot_rarely(s)->part;
    char first[EXPERT_NAME];
    expert_name(first, s->name, hn_block_of(&m->hp, il), 0);
    hn_experts *to = (hn_experts *)(void *)(base + s->field);
    if (!part[0] && !tensor_of(m, s->name, il) && hn_gguf_find_tensor(m->file, first))
        return each_expert(m, s, to, n_in, n_out, il, err);
    const float *factor;
    hone_status st = bind_matrix(m, &w, name, HN_BOUND_EXPERTS, n_in, n_out * n, true, s->when != HN_NEEDED, err);
    if (st != HONE_OK || !w.data) return st;
    if ((st = bind_factor(m, &factor, name, n, il, err)) != HONE_OK) return st;
    w.layer = il;
    w.role = s->role;
    w.cut = s->cut;
    if (!part[0]) to->all = w;
    int64_t row = 0;
    for (int i = 0; i == 0 || (i < HN_MAX_PART && part[i]); i++) {
        int64_t rows = part[0] ? hn_dim_value(&m->hp, p, part[i]) : n_out;
        const hn_slot *own = part[0] ? hn_family_field(m->arch, s->field + (size_t)i * hn_slot_stride(s)) : s;
        if ((st = new_experts(m, &of, err)) != HONE_OK) return st;
        for (int32_t e = 0; e < n; e++) {
            of[e] = rows_of(&w, e * n_out + row, rows);
            of[e].factor = factor ? factor + e : NULL;
            of[e].role = own->role;
            of[e].cut = own->cut;
        }
        to[i].of = of;
        row += rows;
    }
    return HONE_OK;
}

/* Biases of experts that are bound: {n_out, n_expert}, or as slot_experts has it. */
static hone_status slot_expert_bias(hone_model *m, const hn_slot *s, const char *name, char *base,
                                    const hn_layer_plan *p, hone_error *err)
{
    const float *v;
    int64_t n_out = hn_dim_value(&m->hp, p, s->ne[0]), n = m->hp.moe.n_expert;
    hn_experts *to = (hn_experts *)(void *)(base + s->field);
    hone_status st = bind_values(m, &v, name, n_out, n_out * n, s->when == HN_OPTIONAL, err);
    if (st != HONE_OK || !v) return st;
    const hn_dim *part = hn_slot_rarely(s)->part;
    for (int i = 0; i == 0 || (i < HN_MAX_PART && part[i]); i++) {
        for (int64_t e = 0; e < n; e++) ((hn_weight *)(uintptr_t)to[i].of)[e].bias = v + e * n_out; /* being made */
        if (part[0]) v += hn_dim_value(&m->hp, p, part[i]);
    }
    return HONE_OK;
}

/* Rows {taps, channels}, in any dimensions, turned round: lanes of a convolution are channels. */
static hone_status slot_taps(hone_model *m, const hn_slot *s, const char *name, char *base, const hn_layer_plan *p,
                             hone_error *err)
{
    const float *v;
    int64_t taps = hn_dim_value(&m->hp, p, s->ne[0]), n = hn_dim_value(&m->hp, p, s->ne[1]);
    hone_status st = bind_values(m, &v, name, taps, taps * n, s->when == HN_OPTIONAL, err);
    if (st != HONE_OK || !v) return st;
    float *w = hn_arena_alloc(m->arena, (size_t)(taps * n) * sizeof *w);
    if (!w) return HN_FAIL(err, HONE_E_NOMEM, "%s: tensor %s", m->path, name);
    for (int64_t c = 0; c < n; c++)
        for (int64_t j = 0; j < taps; j++) w[j * n + c] = v[c * taps + j];
    *(const float **)(void *)(base + s->field) = w;
    return HONE_OK;
}

/* n values over n or √n. */
static hone_status divide(hone_model *m, const float **v, int64_t n, hn_slot_kind by, hone_error *err)
{
    float *f = hn_arena_alloc(m->arena, (size_t)n * sizeof *f), d = by == HN_SLOT_OVER_N ? (float)n : sqrtf((float)n);
    if (!f) return HN_FAIL(err, HONE_E_NOMEM, "%s: %lld values", m->path, (long long)n);
    for (int64_t i = 0; i < n; i++) f[i] = (*v)[i] / d;
    *v = f;
    return HONE_OK;
}

static hone_status slot_vector(hone_model *m, const hn_slot *s, const char *name, char *base, const hn_layer_plan *p,
                               hone_error *err)
{
    const float *v;
    int64_t ne0 = hn_dim_value(&m->hp, p, s->ne[0]), n = 1;
    for (int i = 0; i < 4 && s->ne[i]; i++) n *= hn_dim_value(&m->hp, p, s->ne[i]);
    if (s->kind == HN_SLOT_CHANNELS) { /* files have it as a vector or as rows of heads */
        const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, name);
        ne0 = t && t->ne[0] == (uint64_t)p->d_k ? p->d_k : n;
    } else if (s->kind != HN_SLOT_VALUES) {
        ne0 = n;
    }
    hone_status st = bind_values(m, &v, name, ne0, n, s->when == HN_OPTIONAL, err);
    if (st != HONE_OK || !v) return st;
    const bool over = s->kind == HN_SLOT_OVER_ROOT || s->kind == HN_SLOT_OVER_N;
    if (over && (st = divide(m, &v, n, s->kind, err)) != HONE_OK) return st;
    const hn_dim *part = hn_slot_rarely(s)->part;
    if (!part[0]) *(const float **)(void *)(base + s->field) = v;
    for (int i = 0; i < HN_MAX_PART && part[i]; i++) {
        *(const float **)(void *)(base + s->field + (size_t)i * hn_slot_stride(s)) = v;
        v += hn_dim_value(&m->hp, p, part[i]);
    }
    return HONE_OK;
}

/* One slot of layer il, or, where that is −1, of what stands outside. */
static hone_status bind_slot(hone_model *m, const hn_slot *s, int32_t il, hone_error *err)
{
    char name[96], with[96];
    const hn_layer_plan *p = il < 0 ? NULL : &m->plan[il];
    const int32_t block = hn_block_of(&m->hp, il);
    char *base = il < 0 ? (char *)m : (char *)&m->layers[il];
    const hn_gguf_tensor *t = tensor_of(m, s->name, il);
    if (s->layers == HN_IN_PLE && !m->hp.n_ple) return HONE_OK;
    if (s->layers == HN_IN_NGRAM && !m->hp.ngram.n_gram) return HONE_OK;
    bool idle = p && p->no_keys && s->layers >= HN_IN_OWN && s->layers <= HN_IN_OWN_GLOBAL;
    if (!hn_slot_in(s, p) && !idle) return HONE_OK;
    const bool early = il >= 0 && il < s->from_layer;
    if (early && m->arch->is) return HONE_OK; /* of a transformer: refused as what is left over */
    if (idle || early) {
        if (t) m->bound[t - hn_gguf_tensor_at(m->file, 0)] = HN_BOUND_UNUSED;
        return HONE_OK;
    }
    const hn_slot_rare *rare = hn_slot_rarely(s);
    if (rare->with && !tensor_of(m, rare->with, il)) {
        if (!t || s->when != HN_GOES_WITH) return HONE_OK;
        full_name(with, rare->with, block);
        full_name(name, s->name, block);
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s is missing, though %s is there", m->path, with, name);
    }
    if (rare->without && tensor_of(m, rare->without, il)) {
        if (t && s->kind == HN_SLOT_KV_B) m->bound[t - hn_gguf_tensor_at(m->file, 0)] = HN_BOUND_UNUSED; /* both */
        return HONE_OK;
    }
    if (!t && rare->instead && tensor_of(m, rare->instead, il)) return HONE_OK;
    full_name(name, s->name, block);
    if (s->kind == HN_SLOT_EXPERTS) return slot_experts(m, s, name, base, p, il, err);
    if (s->kind == HN_SLOT_EXPERT_BIAS) return slot_expert_bias(m, s, name, base, p, err);
    if (s->kind == HN_SLOT_KV_B) return slot_kv_b(m, s, name, base, p, il, err);
    if (s->kind == HN_SLOT_TAPS) return slot_taps(m, s, name, base, p, err);
    return hn_slot_is_matrix(s) ? slot_matrix(m, s, name, base, p, il, err) : slot_vector(m, s, name, base, p, err);
}

/* Of slots that go together, all or none; a shared expert that some layer has, all have; queries that the model's
 * numbers say are compressed are so in each layer. */
static hone_status check_together(const hone_model *m, int32_t il, hone_error *err)
{
    static const char compresses[] = "attn_q_a.weight";
    const hn_layer_plan *p = &m->plan[il];
    if (p->mixer == HN_MIXER_MLA && m->hp.rank_q && !tensor_of(m, compresses, il))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor blk.%d.%s is missing, though %s.attention.q_lora_rank = %d",
                       m->path, (int)hn_block_of(&m->hp, il), compresses, m->arch->name, m->hp.rank_q);
    for (int8_t g = HN_TOGETHER_NOT + 1; g < HN_TOGETHER_END; g++) {
        const hn_slot *there = NULL, *missing = NULL;
        for (const hn_slot *s = m->arch->layer; s->name; s++) {
            if (s->together != g || !hn_slot_in(s, p)) continue;
            if (tensor_of(m, s->name, il)) there = s;
            else if (!missing) missing = s;
        }
        bool needed = there || (g == HN_TOGETHER_SHARED && m->hp.moe.n_ff_shared > 0);
        if (missing && needed)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor blk.%d.%s is missing, though %s%s", m->path,
                           (int)hn_block_of(&m->hp, il), missing->name,
                           there ? there->name : "the model has a shared expert", there ? " is there" : "");
    }
    return HONE_OK;
}

/* Blocks behind the layers serve nobody. */
static void leave_drafts(hone_model *m)
{
    char block[32];
    for (int32_t il = m->hp.n_layer; il < m->hp.n_layer + m->hp.n_nextn; il++) {
        size_t n = (size_t)snprintf(block, sizeof block, "blk.%d.", (int)il);
        for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
            hone_str name = hn_gguf_tensor_at(m->file, i)->name;
            if (name.len > n && !memcmp(name.ptr, block, n)) m->bound[i] = HN_BOUND_UNUSED;
        }
    }
}

/* Some converters put what sees and hears into the same file; text does without. */
static void leave_other_senses(hone_model *m)
{
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++)
        if (!m->bound[i] && hn_tensor_of_other_senses(hn_gguf_tensor_at(m->file, i)->name))
            m->bound[i] = HN_BOUND_UNUSED;
}

static hone_status refuse_leftovers(const hone_model *m, hone_error *err)
{
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        if (!m->bound[i])
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: tensor %s is not part of architecture %s as hone knows it (%d layers); running without "
                           "it would give wrong answers",
                           m->path, HN_ESC(t->name.ptr, t->name.len), m->arch->name, m->hp.n_layer);
    }
    return HONE_OK;
}

/* Slots outside layers: those sized by what is rotated, or the others. */
static hone_status bind_outer(hone_model *m, bool rotated, hone_error *err)
{
    hone_status st = HONE_OK;
    for (const hn_slot *s = m->arch->outer; st == HONE_OK && s->name; s++)
        if ((s->ne[0] == HN_DIM_ROT_PAIRS) == rotated) st = bind_slot(m, s, -1, err);
    return st;
}

/* Layers that are a block again have its tensors; behind passes the stream is normed. */
static void bind_again(hone_model *m)
{
    const hn_hparams *hp = &m->hp;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        if (hn_is_again(hp, il)) m->layers[il] = m->layers[hn_layer_of(hp, hp->block_of[il])];
        const bool ends = hp->n_pass && (il + 1) % hp->n_pass == 0 && il + 1 < hp->n_layer;
        m->layers[il].layer_out_norm = ends ? m->output_norm : NULL;
    }
}

/* Norms without weights: a vector of ones, which multiplies exactly. */
static hone_status bind_plain_norms(hone_model *m, hone_error *err)
{
    const int plain = m->arch->is ? m->arch->is->plain : 0;
    if (!plain) return HONE_OK;
    float *one = hn_arena_alloc(m->arena, (size_t)m->hp.n_embd * sizeof *one);
    if (!one) return HN_FAIL(err, HONE_E_NOMEM, "%s: norms", m->path);
    for (int32_t i = 0; i < m->hp.n_embd; i++) one[i] = 1.0f;
    if (plain & HN_PLAIN_EMBD) m->token_embd_norm = one;
    if (!(plain & HN_PLAIN_NORMS)) return HONE_OK;
    m->output_norm = one;
    for (int32_t il = 0; il < m->hp.n_layer; il++) m->layers[il].attn_norm = m->layers[il].ffn_norm = one;
    return HONE_OK;
}

hone_status hn_bind(hone_model *m, hone_error *err)
{
    size_t n = (size_t)m->hp.n_layer;
    if (!(m->layers = hn_arena_alloc(m->arena, n * sizeof *m->layers)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: layer table", m->path);
    hone_status st = bind_outer(m, false, err);
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        if (hn_is_again(&m->hp, il)) continue;
        if (st == HONE_OK) st = check_together(m, il, err);
        for (const hn_slot *s = m->arch->layer; st == HONE_OK && s->name; s++) st = bind_slot(m, s, il, err);
    }
    if (st == HONE_OK && hn_turns(m) && (st = hn_rope_width(m, err)) == HONE_OK &&
        (st = bind_outer(m, true, err)) == HONE_OK)
        st = hn_rope_tables(m, err);
    if (st == HONE_OK) st = bind_plain_norms(m, err);
    leave_drafts(m);
    leave_other_senses(m);
    m->type_embd.row_bytes = 0; /* the first row, wherever a text is */
    m->type_embd.packed = NULL;
    if (st == HONE_OK) st = refuse_leftovers(m, err);
    if (st == HONE_OK) st = hn_number_weights(m, err);
    if (st == HONE_OK && m->hp.block_of) bind_again(m);
    return st;
}

/* ---- what was bound ---------------------------------------------------------------------------------- */

const hn_slot *hn_bound_slot(const hone_model *m, int32_t il, size_t field, int64_t *row)
{
    const hn_layer_plan *p = &m->plan[il];
    for (const hn_slot *s = m->arch->layer; s->name; s++) {
        if (!hn_slot_in(s, p) || il < s->from_layer || !tensor_of(m, s->name, il)) continue;
        const hn_slot_rare *r = hn_slot_rarely(s);
        if ((r->with && !tensor_of(m, r->with, il)) || (r->without && tensor_of(m, r->without, il))) continue;
        *row = 0;
        if (!r->part[0] && s->field == field) return s;
        for (int i = 0; i < HN_MAX_PART && r->part[i]; i++) {
            if (s->field + (size_t)i * hn_slot_stride(s) == field) return s;
            *row += hn_dim_value(&m->hp, p, r->part[i]);
        }
    }
    *row = 0;
    return NULL;
}
