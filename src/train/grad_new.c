/* grad_new: what is trained, and the memory it takes; see grad.c. */
#include "train/grad.h"

#include <math.h>
#include <stddef.h>
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
/* Of the last few: the tensor that holds another matrix of the layer too. */
static hn_param *param_of(hn_grad *g, const char *name)
{
    for (int32_t i = g->n_param; i-- > 0 && i > g->n_param - 1 - 4 * HN_LIN_KINDS;)
        if (!strcmp(g->param[i].name, name)) return &g->param[i];
    return NULL;
}

/* Values [at, at + n) of a vector of `all`; the first part comes first. */
static bool whole_vector(hn_grad *g, hn_tensor_ref *r, const char *name, int64_t at, int64_t n, int64_t all)
{
    if (!r->values || !g->p.full) return true;
    r->at = at;
    if (at) return (r->full = param_of(g, name)) != NULL;
    if (!(r->full = param(g, name, 1, all, false))) return false;
    memcpy(r->full->p, r->values, (size_t)all * sizeof(float));
    return true;
}

/* Likewise rows [row, …) of a matrix of `all` rows. */
static bool whole_matrix(hn_grad *g, hn_tensor_ref *r, const char *name, int64_t row, int64_t all)
{
    const hn_weight *w = r->frozen;
    if (!g->p.full) return true;
    r->at = row * w->n_in;
    if (row) return (r->full = param_of(g, name)) != NULL;
    if (!(r->full = param(g, name, all, w->n_in, true))) return false;
    for (int64_t i = 0; i < all; i++)
        hn_type_get(w->type)->dequantize(r->full->p + i * w->n_in, (const char *)w->data + (size_t)i * w->row_bytes,
                                         w->n_in);
    return true;
}

/* A: uniform in ±1/√n_in, a number of its own for each element; B: zero (Hu et al. 2021, as PEFT does it). Of a tensor
 * of several matrices the adapter is one, of all its rows. */
static bool adapter(hn_grad *g, hn_linear *l, const char *name, int64_t row, int64_t all)
{
    char full[96];
    snprintf(full, sizeof full, "%s.lora_a", name);
    l->b_row = row;
    if (row) l->a = param_of(g, full);
    else l->a = param(g, full, g->p.rank, l->n_in, true);
    if (!l->a) return false;
    snprintf(full, sizeof full, "%s.lora_b", name);
    if (row) return (l->b = param_of(g, full)) != NULL;
    if (!(l->b = param(g, full, all, g->p.rank, true))) return false;
    const double bound = 1 / sqrt((double)l->n_in);
    for (int64_t i = 0; i < g->p.rank * l->n_in; i++) {
        double u = (double)(hn_rand64(hn_rand64(g->p.seed, l->id), (uint64_t)i) >> 11) * 0x1p-53; /* [0, 1) */
        l->a->p[i] = (float)((u * 2 - 1) * bound);
    }
    return true;
}

/* A matrix of a layer as its file has it: tensor `name` of `all` rows, of which the first is `row`. */
typedef struct lin_place {
    const hn_weight *w; /* NULL: the layer has none */
    char name[80];
    const hn_slot *slot;
    int64_t row, all;
} lin_place;

static const size_t lin_field[HN_LIN_KINDS] = { offsetof(hn_layer, attn_q),   offsetof(hn_layer, attn_k),
                                                offsetof(hn_layer, attn_v),   offsetof(hn_layer, attn_output),
                                                offsetof(hn_layer, ffn_gate), offsetof(hn_layer, ffn_up),
                                                offsetof(hn_layer, ffn_down) };

static lin_place place_of(const hone_model *m, int32_t il, int kind)
{
    lin_place p = { .slot = hn_bound_slot(m, il, lin_field[kind], &p.row) };
    if (!p.slot) return p;
    p.w = (const hn_weight *)(const void *)((const char *)&m->layers[il] + lin_field[kind]);
    p.all = hn_dim_value(&m->hp, &m->plan[il], p.slot->ne[1]);
    snprintf(p.name, sizeof p.name, "blk.%d.%.60s", (int)il, p.slot->name);
    return p;
}

/* Is a matrix that lies in the same tensor among the targets? */
static bool is_target(const hone_model *m, uint32_t targets, int32_t il, const lin_place *p)
{
    for (int i = 0; i < HN_LIN_KINDS; i++)
        if (targets >> i & 1 && place_of(m, il, i).slot == p->slot) return true;
    return false;
}

int64_t hn_grad_count(const hone_model *m, uint32_t targets, int32_t first_layer, int32_t rank)
{
    int64_t n = 0;
    for (int32_t il = first_layer; il < m->hp.n_layer; il++)
        for (int i = 0; i < HN_LIN_KINDS; i++) {
            lin_place p = place_of(m, il, i);
            if (p.w && !p.row && is_target(m, targets, il, &p)) n += rank * (p.w->n_in + p.all);
        }
    return n;
}

static bool bind_linear(hn_grad *g, hn_linear *l, const lin_place *p, int32_t il, uint64_t id, bool adapted)
{
    const hn_weight *w = p->w;
    char bias[80];
    *l = (hn_linear){
        .w = { .frozen = w }, .bias = { .values = w->bias }, .n_in = w->n_in, .n_out = w->n_out, .id = id
    };
    if (!whole_matrix(g, &l->w, p->name, p->row, p->all)) return false;
    snprintf(bias, sizeof bias, "%.*s.bias", (int)(strlen(p->name) - strlen(".weight")), p->name);
    if (!whole_vector(g, &l->bias, bias, p->row, w->n_out, p->all)) return false;
    return !adapted || adapter(g, l, p->name, p->row, p->all);
}

/* Of its input and its output's gradient nothing is made but products that round them. */
static bool only_rounded(const hn_grad *g, const hn_linear *l)
{
    return g->p.bf16 && !l->a && !l->w.full && !l->bias.full;
}

static bool bind_norms(hn_grad *g, int32_t il)
{
    const hn_layer *m = &g->m->layers[il];
    hn_tgrad_layer *l = &g->layer[il];
    struct {
        hn_tensor_ref *r;
        size_t field;
    } const norm[] = {
        { &l->attn_norm, offsetof(hn_layer, attn_norm) },      { &l->ffn_norm, offsetof(hn_layer, ffn_norm) },
        { &l->q_norm, offsetof(hn_layer, attn_q_norm) },       { &l->k_norm, offsetof(hn_layer, attn_k_norm) },
        { &l->attn_post, offsetof(hn_layer, attn_post_norm) }, { &l->ffn_post, offsetof(hn_layer, ffn_post_norm) },
        { &l->attn_norm_b, offsetof(hn_layer, attn_norm_b) },  { &l->ffn_norm_b, offsetof(hn_layer, ffn_norm_b) },
    };
    char name[80];
    for (size_t i = 0; i < sizeof norm / sizeof norm[0]; i++) {
        int64_t row, n;
        const hn_slot *s = hn_bound_slot(g->m, il, norm[i].field, &row);
        if (!s) continue;
        norm[i].r->values = *(const float *const *)(const void *)((const char *)m + norm[i].field);
        n = hn_dim_value(&g->m->hp, l->plan, s->ne[0]);
        snprintf(name, sizeof name, "blk.%d.%.60s", (int)il, s->name);
        if (!whole_vector(g, norm[i].r, name, 0, n, n)) return false;
    }
    return true;
}

static bool bind_layer(hn_grad *g, int32_t il)
{
    hn_tgrad_layer *l = &g->layer[il];
    l->plan = &g->m->plan[il];
    if (!bind_norms(g, il)) return false;
    bool bare[HN_LIN_KINDS] = { false };
    uint64_t first = 0;
    for (int i = 0; i < HN_LIN_KINDS; i++) {
        lin_place p = place_of(g->m, il, i);
        if (!p.w) continue;
        if (!p.row) first = (uint64_t)il * HN_LIN_KINDS + (uint64_t)i + 1;
        bool adapted = !g->p.full && il >= g->p.first_layer && is_target(g->m, g->p.targets, il, &p);
        if (!bind_linear(g, &l->lin[i], &p, il, first, adapted)) return false;
        bare[i] = only_rounded(g, &l->lin[i]);
    }
    l->lin[HN_LIN_DOWN].x_rounded = bare[HN_LIN_DOWN];
    bool gate = l->lin[HN_LIN_GATE].n_out != 0;
    l->lin[HN_LIN_GATE].dy_rounded = l->lin[HN_LIN_UP].dy_rounded = (!gate || bare[HN_LIN_GATE]) && bare[HN_LIN_UP];
    return true;
}

static bool bind(hn_grad *g)
{
    const hn_hparams *hp = &g->m->hp;
    const hone_model *m = g->m;
    int64_t per_layer = g->p.full ? 8 + 2 * HN_LIN_KINDS : 2 * HN_LIN_KINDS, V = hp->n_vocab, D = hp->n_embd;
    g->param = calloc((size_t)(per_layer * hp->n_layer + 6), sizeof *g->param);
    g->layer = calloc((size_t)hp->n_layer, sizeof *g->layer);
    if (!g->param || !g->layer) return false;
    g->token_embd.frozen = &m->token_embd;
    if (!whole_matrix(g, &g->token_embd, "token_embd.weight", 0, V)) return false;
    for (int32_t il = 0; il < hp->n_layer; il++)
        if (!bind_layer(g, il)) return false;
    g->output_norm.values = m->output_norm;
    g->output_norm_b.values = m->output_norm_b;
    if (!whole_vector(g, &g->output_norm, "output_norm.weight", 0, D, D)) return false;
    if (!whole_vector(g, &g->output_norm_b, "output_norm.bias", 0, D, D)) return false;
    if (hn_weight_is_there(&m->pos_embd)) {
        g->pos_embd.frozen = &m->pos_embd;
        if (!whole_matrix(g, &g->pos_embd, "position_embd.weight", 0, m->pos_embd.n_out)) return false;
    }
    bool tied = m->output.data == m->token_embd.data;
    g->output = (hn_linear){ .w = { .frozen = &m->output, .full = tied ? g->token_embd.full : NULL },
                             .bias = { .values = m->output.bias },
                             .n_in = D,
                             .n_out = V };
    if (!tied && !whole_matrix(g, &g->output.w, "output.weight", 0, V)) return false;
    if (!whole_vector(g, &g->output.bias, "output.bias", 0, V, V)) return false;
    g->output.dy_rounded = only_rounded(g, &g->output);
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------------- */

float **hn_kept_array(const hn_grad *g, hn_kept *k, int i, int64_t *width)
{
    const hn_tgrad_layer *l = g->layer;
    bool normed = l->q_norm.values;
    int64_t D = g->m->hp.n_embd, q = l->lin[HN_LIN_Q].n_out, kv = l->lin[HN_LIN_K].n_out;
    struct {
        float **f;
        int64_t width;
    } const a[HN_KEPT_ARRAYS] = {
        { &k->q, q },
        { &k->k, kv },
        { &k->v, l->lin[HN_LIN_V].n_out },
        { &k->o, l->lin[HN_LIN_O].n_in },
        { &k->x1, D },
        { &k->gate, l->lin[HN_LIN_GATE].n_out },
        { &k->up, l->lin[HN_LIN_UP].n_out },
        { &k->q_raw, normed ? q : 0 },
        { &k->k_raw, normed ? kv : 0 },
        { &k->half1, l->attn_post.values ? D : 0 },
        { &k->half2, l->ffn_post.values ? D : 0 },
    };
    *width = a[i].width;
    return a[i].f;
}

static bool keep(hn_grad *g)
{
    const hn_hparams *hp = &g->m->hp;
    uint64_t T = (uint64_t)g->p.max_tok;
    g->n_kept = g->p.checkpoint ? 1 : hp->n_layer - g->low;
    bool halves = g->p.bf16;
    int32_t n_f32 = halves ? 1 : g->n_kept;
    if (!(g->kept = calloc((size_t)g->n_kept, sizeof *g->kept))) return false;
    bool one = halves || g->p.checkpoint; /* a set for all layers: no one wants it while the head is at work */
    for (int32_t i = 0; i < g->n_kept; i++) {
        hn_kept *k = &g->kept[i];
        if (!floats(g, &k->lse, T * (uint64_t)hp->n_head)) return false;
        for (int a = 0; i < n_f32 && a < HN_KEPT_ARRAYS; a++) {
            int64_t width;
            float **f = hn_kept_array(g, k, a, &width);
            uint64_t n = T * (uint64_t)width;
            if (width && !(one ? share(g, f, n) : floats(g, f, n))) return false;
        }
    }
    if (halves && !(g->half = calloc((size_t)g->n_kept, sizeof *g->half))) return false;
    for (int32_t i = 0; halves && i < g->n_kept; i++) {
        if (!(g->half[i].x0 = take(g, T * (uint64_t)hp->n_embd * 2))) return false;
        for (int a = 0; a < HN_KEPT_ARRAYS; a++) {
            int64_t width;
            hn_kept_array(g, g->kept, a, &width);
            if (width && !(g->half[i].part[a] = take(g, T * (uint64_t)width * 2))) return false;
        }
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

/* The tables of angles that layers turn by; sessions of so many positions take the long one, where there is one. */
static void choose_angles(hn_grad *g)
{
    const hn_hparams *hp = &g->m->hp;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        int r = g->m->plan[il].rope;
        bool lengthened = r == HN_ROPE_ALL && hp->n_ctx_long && g->p.n_ctx > hp->n_ctx_long;
        if (r >= 0) g->angles[r] = &hp->rope[lengthened ? HN_ROPE_LONG : r];
    }
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
    uint64_t r = g->p.full ? 0 : (uint64_t)g->p.rank, threads = (uint64_t)hn_pool_threads(g->p.pool),
             turns[HN_ROPES] = { 0 };
    bool apart = hp->layer_norm || hp->res_mul != 0 || g->layer[0].attn_post.values || g->layer[0].ffn_post.values;
    for (int i = 0; i < HN_ROPES; i++) turns[i] = g->angles[i] ? T * (uint64_t)hp->n_rot : 0;
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
        { &g->dr, apart ? T * D : 0 },
        { &g->rope[HN_ROPE_ALL], turns[HN_ROPE_ALL] },
        { &g->rope_back[HN_ROPE_ALL], turns[HN_ROPE_ALL] },
        { &g->rope[HN_ROPE_WINDOW], turns[HN_ROPE_WINDOW] },
        { &g->rope_back[HN_ROPE_WINDOW], turns[HN_ROPE_WINDOW] },
        { &g->tau, hp->temperature.scale != 0 ? T : 0 },
        { &g->slope, hp->logit_cap != 0 ? threads * (uint64_t)hp->n_vocab : 0 },
        { &g->attn, hn_attn_scratch(hp) * threads },
        { &g->last, chunk * D },
        { &g->z, chunk * D },
        { &g->dz, chunk * D },
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        if (want[i].n && !floats(g, want[i].p, want[i].n)) return false;
    return (g->rows = take(g, T * sizeof *g->rows)) && (g->loss = take(g, T * sizeof *g->loss));
}

/* What of a layer has no gradient here; NULL: all has. */
static const char *lacks(const hone_model *m, int32_t il)
{
    static const char *const mixer[HN_MIXER_KINDS] = {
        [HN_MIXER_MLA] = "latent attention",
        [HN_MIXER_RWKV6] = "RWKV's time mix",
        [HN_MIXER_RWKV7] = "RWKV's time mix",
        [HN_MIXER_NONE] = "layers of one half",
        [HN_MIXER_CONV] = "gated convolutions",
        [HN_MIXER_MAMBA2] = "Mamba-2",
        [HN_MIXER_MAMBA] = "Mamba",
        [HN_MIXER_GDN] = "the gated delta rule",
        [HN_MIXER_ATTN_MAMBA2] = "Mamba-2",
        [HN_MIXER_KDA] = "Kimi's delta rule",
        [HN_MIXER_LINEAR] = "layers without attention",
    };
    const hn_layer_plan *p = &m->plan[il], *first = m->plan;
    if (m->hp.fade) return "scores that fade with the distance";
    if (p->mixer != HN_MIXER_ATTN) return mixer[p->mixer] ? mixer[p->mixer] : "its mixer";
    if (HN_PLAN_BIT(p->ffn) & HN_WITH_EXPERTS) return "mixtures of experts";
    if (p->ffn != HN_FFN_GLU && p->ffn != HN_FFN_MLP) return "its feed-forward part";
    if (m->layers[il].attn_sinks) return "attention sinks";
    if (p->chunk || p->out_gate || p->tiled) return "its kind of attention";
    if (p->qk_norm == HN_HEAD_NORM_PLAIN) return "norms of heads without weights";
    if (p->qk_norm == HN_HEAD_NORM_LAYER && m->layers[il].attn_q_norm) return "LayerNorm of heads";
    if (p->ffn == HN_FFN_GLU && p->act != HN_GLU_SILU && p->act != HN_GLU_GELU) return "its gate";
    if (p->ffn == HN_FFN_MLP && p->map != HN_MAP_GELU && p->map != HN_MAP_SQRELU) return "its activation";
    bool alike = p->n_head == first->n_head && p->n_head_kv == first->n_head_kv && p->d_k == first->d_k &&
                 p->d_v == first->d_k && p->n_ff == first->n_ff;
    return alike ? NULL : "layers of different shapes";
}

static void find_factor(void *what, const hn_weight *w, int32_t il)
{
    if (w->factor) *(const char **)what = "a matrix with a factor of its own (a tensor \".scale\")";
}

hone_status hn_grad_check(const hone_model *m, hone_error *err)
{
    const char *what = NULL;
    for (int32_t il = 0; !what && il < m->hp.n_layer; il++) what = lacks(m, il);
    if (!what && m->token_embd_norm) what = "a norm of the embedding";
    if (!what) hn_each_weight(m, find_factor, &what);
    if (!what && !m->arch->trains) what = "one of its blocks";
    if (!what) return HONE_OK;
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s: %s: hone does not train this family: %s has no gradient here; expected a dense transformer "
                   "(docs/TRAIN.md lists them)",
                   m->path, m->arch->name, what);
}

static hone_status refuse(const hone_model *m, const hn_grad_params *p, hone_error *err)
{
    hone_status st = hn_grad_check(m, err);
    if (st != HONE_OK) return st;
    if (p->max_tok < 1) return HN_FAIL(err, HONE_E_ARG, "batches of %d tokens", p->max_tok);
    if (p->full) return HONE_OK;
    if (p->rank < 1 || p->rank > m->hp.n_embd)
        return HN_FAIL(err, HONE_E_ARG, "rank %d: expected 1 to %d", p->rank, m->hp.n_embd);
    if (!(p->targets & ((1u << HN_TGT_KINDS) - 1)) || p->targets >> HN_TGT_KINDS)
        return HN_FAIL(err, HONE_E_ARG, "targets 0x%x", p->targets);
    if (p->first_layer >= 0 && p->first_layer < m->hp.n_layer && !hn_grad_count(m, p->targets, p->first_layer, 1))
        return HN_FAIL(err, HONE_E_ARG, "%s: no layer of %s models has a matrix among the targets", m->path,
                       m->arch->name);
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
    choose_angles(g);
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
