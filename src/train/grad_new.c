/* grad_new: what is trained, and the memory it takes; see grad.c. */
#include "train/grad.h"

#include <math.h>
#include <stdlib.h>

/* HN_LIN_… and HN_TGT_… are roles, in their order. */
_Static_assert(HN_ROLE_ATTN_Q + HN_LIN_DOWN == HN_ROLE_FFN_DOWN && HN_LIN_KINDS == (int)HN_TGT_KINDS, "roles");

static void *take(hn_grad *g, uint64_t bytes)
{
    void *p = NULL;
    if (g->n_own == g->cap_own) {
        int32_t cap = g->cap_own ? 2 * g->cap_own : 64;
        void **own = realloc(g->own, (size_t)cap * sizeof *own);
        if (!own) return NULL;
        g->own = own;
        g->cap_own = cap;
    }
    bytes = (bytes + 63) & ~(uint64_t)63;
    if (!bytes) bytes = 64;
    if (!(p = aligned_alloc(64, bytes))) return NULL;
    memset(p, 0, bytes);
    g->bytes += bytes;
    return g->own[g->n_own++] = p;
}
static bool floats(hn_grad *g, float **p, uint64_t n) { return (*p = take(g, n * sizeof(float))) != NULL; }

/* Rows of logits at a time: the more, the seldomer the head is decoded. So many bytes, and a part of the model's. */
enum { LOGITS_BYTES = 64 << 20, LOGITS_PART = 16 };

/* What the layers want and the head does not: its logits take the same memory. */
static bool share(hn_grad *g, float **p, uint64_t n)
{
    if (g->n_shared == HN_MAX_SHARED) return false;
    g->shared[g->n_shared++] = (hn_shared){ p, (n + 15) & ~(uint64_t)15 };
    g->shared_floats += (n + 15) & ~(uint64_t)15;
    return true;
}
static bool share_with_logits(hn_grad *g)
{
    uint64_t T = (uint64_t)g->p.max_tok, V = (uint64_t)g->m->hp.n_vocab, at = 0;
    uint64_t bytes = LOGITS_BYTES + g->shared_floats * sizeof(float) + g->m->n_bytes / LOGITS_PART,
             rows = bytes / (V * sizeof(float));
    rows = rows < 16 ? 16 : rows;
    uint64_t n_chunk = (T + rows - 1) / rows;
    g->chunk = (int32_t)((T + n_chunk - 1) / n_chunk);
    uint64_t n = (uint64_t)g->chunk * V;
    if (!floats(g, &g->logits, n > g->shared_floats ? n : g->shared_floats)) return false;
    for (int32_t i = 0; i < g->n_shared; i++) {
        *g->shared[i].p = g->logits + at;
        at += g->shared[i].n;
    }
    return true;
}

/* ---- parameters ----------------------------------------------------------------------------------- */

static hn_param *param(hn_grad *g, const char *name, int64_t rows, int64_t cols, bool decay)
{
    hn_param *p = &g->param[g->n_param];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->rows = rows;
    p->cols = cols;
    p->decay = decay;
    if (!floats(g, &p->p, (uint64_t)(rows * cols)) || !floats(g, &p->g, (uint64_t)(rows * cols))) return NULL;
    g->n_param++;
    return p;
}

static bool whole_vector(hn_grad *g, hn_tensor_ref *r, const char *name, int64_t n)
{
    if (!r->values || !g->p.full) return true;
    if (!(r->full = param(g, name, 1, n, false))) return false;
    memcpy(r->full->p, r->values, (size_t)n * sizeof(float));
    return true;
}

static bool whole_matrix(hn_grad *g, hn_tensor_ref *r, const char *name)
{
    const hn_weight *w = r->frozen;
    if (!g->p.full) return true;
    if (!(r->full = param(g, name, w->n_out, w->n_in, true))) return false;
    for (int64_t i = 0; i < w->n_out; i++)
        hn_type_get(w->type)->dequantize(r->full->p + i * w->n_in, (const char *)w->data + (size_t)i * w->row_bytes,
                                         w->n_in);
    return true;
}

/* A: uniform in ±1/√n_in, a number of its own for each element; B: zero (Hu et al. 2021, as PEFT does it). */
static bool adapter(hn_grad *g, hn_linear *l, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "%s.weight.lora_a", name);
    if (!(l->a = param(g, full, g->p.rank, l->n_in, true))) return false;
    snprintf(full, sizeof full, "%s.weight.lora_b", name);
    if (!(l->b = param(g, full, l->n_out, g->p.rank, true))) return false;
    const double bound = 1 / sqrt((double)l->n_in);
    for (int64_t i = 0; i < g->p.rank * l->n_in; i++) {
        double u = (double)(hn_rand64(hn_rand64(g->p.seed, l->id), (uint64_t)i) >> 11) * 0x1p-53; /* [0, 1) */
        l->a->p[i] = (float)((u * 2 - 1) * bound);
    }
    return true;
}

static bool bind_linear(hn_grad *g, hn_linear *l, const hn_weight *w, const char *name, uint64_t id, bool adapted)
{
    char full[96];
    *l = (hn_linear){
        .w = { .frozen = w }, .bias = { .values = w->bias }, .n_in = w->n_in, .n_out = w->n_out, .id = id
    };
    snprintf(full, sizeof full, "%s.weight", name);
    if (!whole_matrix(g, &l->w, full)) return false;
    snprintf(full, sizeof full, "%s.bias", name);
    if (!whole_vector(g, &l->bias, full, w->n_out)) return false;
    return !adapted || adapter(g, l, name);
}

/* Of its input and its output's gradient nothing is made but products that round them. */
static bool only_rounded(const hn_grad *g, const hn_linear *l)
{
    return g->p.bf16 && !l->a && !l->w.full && !l->bias.full;
}

static bool bind_layer(hn_grad *g, int32_t il)
{
    const hn_layer *m = &g->m->layers[il];
    const hn_hparams *hp = &g->m->hp;
    hn_tgrad_layer *l = &g->layer[il];
    struct {
        hn_tensor_ref *r;
        const float *v;
        const char *name;
        int64_t n;
    } const norm[] = {
        { &l->attn_norm, m->attn_norm, "attn_norm", hp->n_embd },
        { &l->ffn_norm, m->ffn_norm, "ffn_norm", hp->n_embd },
        { &l->q_norm, m->attn_q_norm, "attn_q_norm", hp->head_dim },
        { &l->k_norm, m->attn_k_norm, "attn_k_norm", hp->head_dim },
    };
    char name[64];
    for (size_t i = 0; i < sizeof norm / sizeof norm[0]; i++) {
        norm[i].r->values = norm[i].v;
        snprintf(name, sizeof name, "blk.%d.%s.weight", (int)il, norm[i].name);
        if (!whole_vector(g, norm[i].r, name, norm[i].n)) return false;
    }
    bool bare[HN_LIN_KINDS];
    for (int i = 0; i < HN_LIN_KINDS; i++) {
        const hn_slot *s = hn_family_slot(g->m->arch, (hn_role)(HN_ROLE_ATTN_Q + i));
        snprintf(name, sizeof name, "blk.%d.%.*s", (int)il, (int)strcspn(s->name, "."), s->name);
        bool adapted = !g->p.full && il >= g->p.first_layer && (g->p.targets >> i & 1);
        if (!bind_linear(g, &l->lin[i], hn_layer_weight(g->m->arch, m, s->role), name,
                         (uint64_t)il * HN_LIN_KINDS + (uint64_t)i + 1, adapted))
            return false;
        bare[i] = only_rounded(g, &l->lin[i]);
    }
    l->lin[HN_LIN_DOWN].x_rounded = bare[HN_LIN_DOWN];
    l->lin[HN_LIN_GATE].dy_rounded = l->lin[HN_LIN_UP].dy_rounded = bare[HN_LIN_GATE] && bare[HN_LIN_UP];
    return true;
}

static bool bind(hn_grad *g)
{
    const hn_hparams *hp = &g->m->hp;
    const hone_model *m = g->m;
    int64_t per_layer = g->p.full ? 4 + 2 * HN_LIN_KINDS : 2 * HN_LIN_KINDS;
    g->param = calloc((size_t)(per_layer * hp->n_layer + 4), sizeof *g->param);
    g->layer = calloc((size_t)hp->n_layer, sizeof *g->layer);
    if (!g->param || !g->layer) return false;
    g->token_embd.frozen = &m->token_embd;
    if (!whole_matrix(g, &g->token_embd, "token_embd.weight")) return false;
    for (int32_t il = 0; il < hp->n_layer; il++)
        if (!bind_layer(g, il)) return false;
    g->output_norm.values = m->output_norm;
    if (!whole_vector(g, &g->output_norm, "output_norm.weight", hp->n_embd)) return false;
    bool tied = m->output.data == m->token_embd.data;
    g->output = (hn_linear){ .w = { .frozen = &m->output, .full = tied ? g->token_embd.full : NULL },
                             .bias = { .values = m->output.bias },
                             .n_in = hp->n_embd,
                             .n_out = hp->n_vocab };
    if (!tied && !whole_matrix(g, &g->output.w, "output.weight")) return false;
    if (!whole_vector(g, &g->output.bias, "output.bias", hp->n_vocab)) return false;
    g->output.dy_rounded = only_rounded(g, &g->output);
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static bool keep(hn_grad *g)
{
    const hn_hparams *hp = &g->m->hp;
    const hn_linear *l = g->layer[0].lin;
    uint64_t T = (uint64_t)g->p.max_tok;
    bool normed = g->layer[0].q_norm.values;
    const uint64_t width[HN_KEPT_ARRAYS] = { (uint64_t)l[HN_LIN_Q].n_out,
                                             (uint64_t)l[HN_LIN_K].n_out,
                                             (uint64_t)l[HN_LIN_V].n_out,
                                             (uint64_t)l[HN_LIN_O].n_in,
                                             (uint64_t)hp->n_embd,
                                             (uint64_t)hp->n_ff,
                                             (uint64_t)hp->n_ff,
                                             normed ? (uint64_t)l[HN_LIN_Q].n_out : 0,
                                             normed ? (uint64_t)l[HN_LIN_K].n_out : 0 };
    g->n_kept = g->p.checkpoint ? 1 : hp->n_layer - g->low;
    bool halves = g->p.bf16;
    int32_t n_f32 = halves ? 1 : g->n_kept;
    if (!(g->kept = calloc((size_t)g->n_kept, sizeof *g->kept))) return false;
    bool one = halves || g->p.checkpoint; /* a set for all layers: no one wants it while the head is at work */
    for (int32_t i = 0; i < g->n_kept; i++) {
        hn_kept *k = &g->kept[i];
        float **const f[HN_KEPT_ARRAYS] = {
            &k->q, &k->k, &k->v, &k->o, &k->x1, &k->gate, &k->up, &k->q_raw, &k->k_raw
        };
        if (!floats(g, &k->lse, T * (uint64_t)hp->n_head)) return false;
        for (int a = 0; i < n_f32 && a < HN_KEPT_ARRAYS; a++)
            if (width[a] && !(one ? share(g, f[a], T * width[a]) : floats(g, f[a], T * width[a]))) return false;
    }
    if (halves && !(g->half = calloc((size_t)g->n_kept, sizeof *g->half))) return false;
    for (int32_t i = 0; halves && i < g->n_kept; i++) {
        if (!(g->half[i].x0 = take(g, T * (uint64_t)hp->n_embd * 2))) return false;
        for (int a = 0; a < HN_KEPT_ARRAYS; a++)
            if (width[a] && !(g->half[i].part[a] = take(g, T * width[a] * 2))) return false;
    }
    /* inputs of layers: each one's where they are kept as f32, else two in turn */
    if (!(g->x0 = calloc((size_t)hp->n_layer + 1, sizeof *g->x0))) return false;
    float *turn[2];
    for (int i = 0; i < 2; i++)
        if (!floats(g, &turn[i], T * (uint64_t)hp->n_embd)) return false;
    for (int32_t il = 0; il <= hp->n_layer; il++) {
        bool own = il == hp->n_layer || (il >= g->low && (!halves || g->p.checkpoint));
        g->x0[il] = turn[il & 1];
        if (own && !floats(g, &g->x0[il], T * (uint64_t)hp->n_embd)) return false;
    }
    return true;
}

static bool scratch(hn_grad *g)
{
    const hn_hparams *hp = &g->m->hp;
    uint64_t T = (uint64_t)g->p.max_tok, D = (uint64_t)hp->n_embd, F = (uint64_t)hp->n_ff,
             q = (uint64_t)hp->n_head * (uint64_t)hp->head_dim, kv = (uint64_t)hp->n_head_kv * (uint64_t)hp->head_dim,
             widest = F > q ? F : q;
    if (D > widest) widest = D;
    if (!share(g, &g->h, T * F) || !share(g, &g->dh, T * F) || !share_with_logits(g)) return false;
    uint64_t chunk = (uint64_t)g->chunk;
    bool normed = g->layer[0].q_norm.values, drop = g->p.dropout > 0;
    uint64_t r = g->p.full ? 0 : (uint64_t)g->p.rank;
    struct {
        float **p;
        uint64_t n;
    } const want[] = {
        { &g->n1, T * D },
        { &g->dropped, drop ? T * widest : 0 },
        { &g->inner, T * r },
        { &g->d_inner, T * r },
        { &g->dx, T * D },
        { &g->dn, T * D },
        { &g->dq, T * q },
        { &g->dk, T * kv },
        { &g->dv, T * kv },
        { &g->d_o, T * q },
        { &g->dq_raw, normed ? T * q : 0 },
        { &g->dk_raw, normed ? T * kv : 0 },
        { &g->delta, T * (uint64_t)hp->n_head },
        { &g->inv_rms, T * (uint64_t)hp->n_head },
        { &g->rope, T * (uint64_t)hp->n_rot },
        { &g->rope_back, T * (uint64_t)hp->n_rot },
        { &g->attn, hn_attn_scratch(hp) * (uint64_t)hn_pool_threads(g->p.pool) },
        { &g->last, chunk * D },
        { &g->z, chunk * D },
        { &g->dz, chunk * D },
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        if (want[i].n && !floats(g, want[i].p, want[i].n)) return false;
    return (g->rows = take(g, T * sizeof *g->rows)) && (g->loss = take(g, T * sizeof *g->loss));
}

static hone_status refuse(const hone_model *m, const hn_grad_params *p, hone_error *err)
{
    char name[64];
    if (!hn_model_trains(m))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: training of %s models%s is not supported (llama, qwen2, qwen3 are)", m->path, m->arch->name,
                       m->hp.moe.n_expert ? " with experts" : "");
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        snprintf(name, sizeof name, "blk.%d.attn_qkv.weight", (int)il);
        if (hn_gguf_find_tensor(m->file, name))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s: q, k and v in one tensor cannot be trained", m->path,
                           name);
    }
    if (p->max_tok < 1) return HN_FAIL(err, HONE_E_ARG, "batches of %d tokens", p->max_tok);
    if (p->full) return HONE_OK;
    if (p->rank < 1 || p->rank > m->hp.n_embd)
        return HN_FAIL(err, HONE_E_ARG, "rank %d: expected 1 to %d", p->rank, m->hp.n_embd);
    if (!(p->targets & ((1u << HN_TGT_KINDS) - 1)) || p->targets >> HN_TGT_KINDS)
        return HN_FAIL(err, HONE_E_ARG, "targets 0x%x", p->targets);
    if (p->first_layer < 0 || p->first_layer >= m->hp.n_layer)
        return HN_FAIL(err, HONE_E_ARG, "first layer %d: expected 0 to %d", p->first_layer, m->hp.n_layer - 1);
    if (!(p->dropout >= 0 && p->dropout < 1))
        return HN_FAIL(err, HONE_E_ARG, "dropout %g: expected 0 or more and less than 1", (double)p->dropout);
    if (!isfinite(p->scale)) return HN_FAIL(err, HONE_E_ARG, "scale %g", (double)p->scale);
    return HONE_OK;
}

hone_status hn_grad_new(hn_grad **out, const hone_model *m, const hn_grad_params *p, hone_error *err)
{
    *out = NULL;
    hone_status st = refuse(m, p, err);
    if (st != HONE_OK) return st;
    hn_grad *g = calloc(1, sizeof *g);
    if (!g) return HN_FAIL(err, HONE_E_NOMEM, "gradients");
    g->p = *p;
    g->m = m;
    g->low = p->full ? 0 : p->first_layer;
    g->embd_trained = p->full;
    if (p->full) g->p.rank = 0, g->p.dropout = 0;
    if (!bind(g) || !keep(g) || !scratch(g)) {
        uint64_t bytes = g->bytes;
        hn_grad_free(g);
        return HN_FAIL(err, HONE_E_NOMEM, "%s: memory to train batches of %d tokens: more than %.0f MB", m->path,
                       p->max_tok, (double)bytes / 1e6);
    }
    if ((st = hn_gemm_new(&g->gemm, p->pool, p->kernels, err)) != HONE_OK) {
        hn_grad_free(g);
        return st;
    }
    *out = g;
    return HONE_OK;
}

void hn_grad_free(hn_grad *g)
{
    if (!g) return;
    hn_gemm_free(g->gemm);
    for (int32_t i = 0; i < g->n_own; i++) free(g->own[i]);
    free(g->own);
    free(g->param);
    free(g->layer);
    free(g->kept);
    free(g->half);
    free(g->x0);
    free(g);
}

uint64_t hn_grad_bytes(const hn_grad *g) { return g->bytes + hn_gemm_bytes(g->gemm); }
int32_t hn_grad_n_param(const hn_grad *g) { return g->n_param; }
hn_param *hn_grad_param(hn_grad *g, int32_t i) { return &g->param[i]; }

void hn_grad_zero(hn_grad *g)
{
    for (int32_t i = 0; i < g->n_param; i++)
        memset(g->param[i].g, 0, (size_t)(g->param[i].rows * g->param[i].cols) * sizeof(float));
}
