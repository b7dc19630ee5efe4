/* Mixtures of experts on the CPU: which experts a row asks, products of the rows of each, and their sum. Owns how rows
 * are grouped by expert; refuses to know what is computed before and after. An expert's rows are one product, and a
 * row's experts are added in ascending number, so no bit depends on who else is in the step (Shazeer et al. 2017). */
#include "backend/cpu.h"

#include <assert.h>
#include <stdlib.h>

enum {
    FEW_ROWS = 16,             /* a chunk's rows are a multiple of it, as of packed groups, */
    MANY_ROWS = HN_PANEL_ROWS, /* and of this where weights are opened for many columns */
    MOE_CHUNKS = 4096,
    LOOK = 4 /* what an expert costs each time that the best is looked for, in numbers */
};
#define NORM_LEAST 0x1p-14f /* of a sum of weights that divides */
#define SPARSE_FAR 0.02f    /* twice the jitter that SparseMixer's routers were trained with */

/* ---- scratch ------------------------------------------------------------------------------------------ */

/* Rows [r0, r1) of an expert's matrices. */
typedef struct moe_chunk {
    int32_t expert, r0, r1;
} moe_chunk;

static size_t tile_floats(const cpu_backend *c) { return (size_t)c->p.n_tok * CPU_MOE_ROWS; }

bool cpu_moe_open(cpu_backend *c)
{
    cpu_moe *g = &c->moe;
    size_t n = (size_t)c->p.n_expert, threads = (size_t)c->n_threads, rows = (size_t)c->p.n_tok;
    if (!n) return true;
    g->n_pick = c->p.n_tok * c->p.n_used;
    g->first = calloc(n + 1, sizeof *g->first);
    g->active = calloc(n, sizeof *g->active);
    g->row = calloc((size_t)g->n_pick, sizeof *g->row);
    g->weight = calloc((size_t)g->n_pick, sizeof *g->weight);
    g->chunks = malloc(MOE_CHUNKS * sizeof *g->chunks);
    g->tiles = hn_pages_alloc(threads * tile_floats(c) * sizeof(float));
    g->scores = hn_pages_alloc(threads * 3 * n * sizeof(float));
    g->logits = hn_pages_alloc(rows * n * sizeof(float));
    return g->first && g->active && g->row && g->weight && g->chunks && g->tiles && g->scores && g->logits;
}

void cpu_moe_close(cpu_backend *c)
{
    cpu_moe *g = &c->moe;
    size_t n = (size_t)c->p.n_expert, threads = (size_t)c->n_threads;
    hn_pages_free(g->tiles, threads * tile_floats(c) * sizeof(float));
    hn_pages_free(g->scores, threads * 3 * n * sizeof(float));
    hn_pages_free(g->logits, (size_t)c->p.n_tok * n * sizeof(float));
    free(g->first);
    free(g->active);
    free(g->row);
    free(g->weight);
    free(g->chunks);
    *g = (cpu_moe){ 0 };
}

void cpu_moe_blocks(const cpu_backend *c, hn_mem_block_fn *fn, void *arg)
{
    const cpu_moe *g = &c->moe;
    size_t n = (size_t)c->p.n_expert, threads = (size_t)c->n_threads;
    if (!n) return;
    fn(arg, &(hn_mem_block){ HN_MEM_OWN, NULL, g->tiles, threads * tile_floats(c) * sizeof(float) });
    fn(arg, &(hn_mem_block){ HN_MEM_OWN, NULL, g->scores, threads * 3 * n * sizeof(float) });
    fn(arg, &(hn_mem_block){ HN_MEM_OWN, NULL, g->logits, (size_t)c->p.n_tok * n * sizeof(float) });
}

/* ---- the router ------------------------------------------------------------------------------------------ */

float cpu_sum(const float *x, int64_t n)
{
    float t[16] = { 0 };
    for (int64_t b = 0; b < n; b += 256) {
        float p[16] = { 0 };
        for (int64_t k = b; k < n && k < b + 256; k++) p[k % 16] += x[k];
        for (int l = 0; l < 16; l++) t[l] = b ? t[l] + p[l] : p[l];
    }
    for (int apart = 8; apart > 0; apart /= 2)
        for (int l = 0; l < apart; l++) t[l] += t[l + apart];
    return t[0];
}

static void softmax(const cpu_backend *c, float *p, const float *l, int64_t n)
{
    float most = l[0];
    for (int64_t i = 1; i < n; i++) most = l[i] > most ? l[i] : most;
    for (int64_t i = 0; i < n; i++) p[i] = l[i] - most;
    c->k->exp(p, p, n);
    float sum = cpu_sum(p, n);
    for (int64_t i = 0; i < n; i++) p[i] = p[i] / sum;
}

/* k of those in [from, to) that are not taken yet, best first, ties to the lower number; they are taken then. */
static void choose(int32_t *id, int32_t k, const float *score, uint8_t *taken, int32_t from, int32_t to)
{
    for (int32_t j = 0; j < k; j++) {
        int32_t best = -1;
        for (int32_t e = from; e < to; e++)
            if (!taken[e] && (best < 0 || score[e] > score[best])) best = e;
        taken[best] = 1;
        id[j] = best;
    }
}

/* The best of those left, k times; a weight is its share of a softmax of those left that are near it. e: room for n. */
static void choose_sparsely(const cpu_backend *c, int32_t *id, float *w, int32_t k, float *e, const float *l,
                            uint8_t *taken, int32_t n)
{
    for (int32_t j = 0; j < k; j++) {
        choose(&id[j], 1, l, taken, 0, n);
        const float most = l[id[j]];
        for (int32_t i = 0; i < n; i++) {
            const float size = fabsf(l[i]) < most ? most : fabsf(l[i]);
            const bool left = !taken[i] || i == id[j];
            e[i] = left && !((most - l[i]) / size > SPARSE_FAR) ? l[i] - most : -INFINITY;
        }
        c->k->exp(e, e, n);
        w[j] = 1.0f / cpu_sum(e, n);
    }
}

/* Takes all groups away but those whose two best experts, or best one, score most together. */
static void take_groups(uint8_t *taken, const float *score, const hn_route *r, int32_t n_expert)
{
    int32_t size = n_expert / r->n_group, best[2], kept[HN_MAX_GROUPS];
    float group[HN_MAX_GROUPS];
    uint8_t seen[HN_MAX_GROUPS] = { 0 };
    for (int32_t i = 0; i < r->n_group; i++) {
        int32_t n = size < 2 || r->best_alone ? 1 : 2;
        choose(best, n, score, taken, i * size, (i + 1) * size);
        group[i] = n < 2 ? score[best[0]] : score[best[0]] + score[best[1]];
    }
    choose(kept, r->n_group_used, group, seen, 0, r->n_group);
    memset(taken, 1, (size_t)n_expert);
    for (int32_t i = 0; i < r->n_group_used; i++) memset(taken + kept[i] * size, 0, (size_t)size);
}

/* The weights of the chosen ones; p: of all. Those of a sparse choice are there. */
static void weigh(const cpu_backend *c, float *w, const int32_t *id, const float *p, const hn_route *r)
{
    int32_t k = r->n_used;
    for (int32_t j = 0; j < k && r->gating != HN_GATING_SPARSE; j++) w[j] = p[id[j]];
    if (r->gating == HN_GATING_CHOSEN) softmax(c, w, w, k);
    if (r->gating == HN_GATING_INPUT) c->k->map[HN_MAP_SIGMOID](w, k);
    if (r->norm) {
        float sum = cpu_sum(w, k);
        if (sum < NORM_LEAST) sum = NORM_LEAST;
        for (int32_t j = 0; j < k; j++) w[j] = w[j] / sum;
    }
    for (int32_t j = 0; j < k && r->scale != 0; j++) w[j] *= r->scale;
    for (int32_t j = 0; j < k && r->per_expert; j++) w[j] *= r->per_expert[id[j]];
}

typedef struct route_job {
    cpu_backend *c;
    const hn_route *r;
    char *picks;
} route_job;

static void route_row(void *arg, int64_t t, int32_t thread)
{
    const route_job *j = arg;
    const hn_route *r = j->r;
    int32_t n = (int32_t)r->router->n_out, *id = (int32_t *)(void *)(j->picks + (size_t)t * 8 * (size_t)r->n_used);
    const float *l = j->c->moe.logits + t * n;
    float *p = j->c->moe.scores + (size_t)thread * 3 * (size_t)n, *score = p + n;
    uint8_t *taken = (uint8_t *)(score + n);
    if (r->gating == HN_GATING_SOFTMAX) {
        softmax(j->c, p, l, n);
    } else {
        memcpy(p, l, (size_t)n * sizeof *p);
        if (r->gating == HN_GATING_SIGMOID) j->c->k->map[HN_MAP_SIGMOID](p, n);
    }
    for (int32_t e = 0; e < n; e++) score[e] = r->bias ? p[e] + r->bias[e] : p[e];
    memset(taken, 0, (size_t)n);
    if (r->n_group > 1 && r->n_group_used < r->n_group) take_groups(taken, score, r, n);
    float *w = (float *)(void *)(id + r->n_used);
    if (r->gating == HN_GATING_SPARSE) choose_sparsely(j->c, id, w, r->n_used, p, score, taken, n);
    else choose(id, r->n_used, score, taken, 0, n);
    weigh(j->c, w, id, p, r);
}

void cpu_route(hn_backend *b, hn_buf *picks, hn_act *act, const hn_route *r)
{
    cpu_backend *c = cpu_self(b);
    hn_buf y = { .p = c->moe.logits };
    const hn_product p[2] = { { .w = r->router, .y = &y }, { .w = r->next } };
    route_job j = { c, r, (char *)picks->p };
    assert(r->router->n_out <= c->p.n_expert && r->n_used <= c->p.n_used);
    cpu_wrote(c, picks);
    cpu_act_prepare(c, act, p, r->next ? 2 : 1);
    cpu_matmul(b, act, p, 1);
    cpu_for_rows(c, route_row, &j, act->n_tok, (int64_t)LOOK * r->n_used * r->router->n_out);
}

/* ---- rows by expert --------------------------------------------------------------------------------------- */

/* A counting sort of what was picked: rows ascending within each expert. */
static void group_rows(cpu_moe *g, const hn_moe *m, int64_t n_tok)
{
    int32_t k = m->n_used, n = m->n_expert;
    const int32_t *picks = (const int32_t *)(const void *)m->picks->p;
    assert(n_tok * k <= g->n_pick);
    memset(g->first, 0, (size_t)(n + 1) * sizeof *g->first);
    for (int64_t t = 0; t < n_tok; t++)
        for (int32_t j = 0; j < k; j++) g->first[picks[2 * t * k + j] + 1]++;
    g->n_active = 0;
    for (int32_t e = 0; e < n; e++) {
        if (g->first[e + 1]) g->active[g->n_active++] = e;
        g->first[e + 1] += g->first[e];
    }
    for (int64_t t = 0; t < n_tok; t++)
        for (int32_t j = 0; j < k; j++) {
            const int32_t *id = picks + 2 * t * k;
            int32_t at = g->first[id[j]]++; /* each begins where the next one did, after this */
            g->row[at] = (int32_t)t;
            memcpy(&g->weight[at], id + k + j, sizeof(float));
        }
    memmove(g->first + 1, g->first, (size_t)n * sizeof *g->first);
    g->first[0] = 0;
}

/* Rows [first, first + n) of an activation. */
static hn_act rows_of(const hn_act *a, int64_t first, int64_t n)
{
    hn_act v = *a;
    v.f32 += (size_t)first * hn_f32_stride(a->n);
    v.q256 = (char *)a->q256 + (size_t)first * hn_act_row_bytes(HN_ACT_Q256, a->n);
    v.q32 = (char *)a->q32 + (size_t)first * hn_act_row_bytes(HN_ACT_Q32, a->n);
    v.n_tok = n;
    return v;
}

/* Cuts rows [0, n) of each active expert into chunks, by what is left to do. */
static int cut(cpu_backend *c, int64_t n, int64_t n_pick, int64_t n_tok)
{
    cpu_moe *g = &c->moe;
    bool many = n_tok > CPU_FEW_TOKENS;
    int64_t unit = many ? MANY_ROWS : FEW_ROWS, left = n * n_pick;
    int n_chunk = 0;
    while (g->n_active * n / unit > MOE_CHUNKS / 2) unit *= 2;
    for (int32_t i = 0; i < g->n_active; i++) {
        int32_t e = g->active[i], cols = g->first[e + 1] - g->first[e];
        for (int64_t r = 0; r < n;) {
            int64_t rows = left * 3 / (4 * hn_pool_active(c->p.pool)) / cols / unit * unit;
            if (rows < unit) rows = unit;
            if (many && rows > 8 * MANY_ROWS && unit <= 8 * MANY_ROWS) rows = 8 * MANY_ROWS;
            if (rows > n - r) rows = n - r;
            g->chunks[n_chunk++] = (moe_chunk){ e, (int32_t)r, (int32_t)(r + rows) };
            r += rows;
            left -= rows * cols;
        }
    }
    return n_chunk;
}

/* The forms of act that the active experts' matrices of two lists ask for (b NULL: of one), marked in want. */
static void prepare(cpu_backend *c, hn_act *act, const hn_weight *a, const hn_weight *b, bool want[HN_ACT_KINDS])
{
    hn_product p[HN_ACT_KINDS];
    int n = 0;
    for (int32_t i = 0; i < c->moe.n_active; i++)
        for (int k = 0; k < (b ? 2 : 1); k++) {
            const hn_weight *w = (k ? b : a) + c->moe.active[i];
            int at = 0;
            while (at < n && hn_act_kind_of(p[at].w->type) != hn_act_kind_of(w->type)) at++;
            if (at == n) p[n++] = (hn_product){ .w = w };
            want[hn_act_kind_of(w->type)] = true;
        }
    cpu_act_prepare(c, act, p, n);
}

/* ---- gate and up -------------------------------------------------------------------------------------------- */

typedef struct glu_job {
    cpu_backend *c;
    const hn_moe *m;
    hn_act *out, *act;
    bool sorted; /* act holds a row for each pick */
    bool want[HN_ACT_KINDS];
} glu_job;

/* Row i of what the experts take: its token's, times its weight where that is multiplied first. */
static void sorted_row(void *arg, int64_t i, int32_t thread)
{
    const glu_job *j = arg;
    const cpu_moe *g = &j->c->moe;
    const hn_act *a = j->act;
    hn_act from = rows_of(a, g->row[i], 1), to = rows_of(j->m->in, i, 1);
    if (j->m->weigh_input) {
        for (int64_t k = 0; k < a->n; k++) to.f32[k] = from.f32[k] * g->weight[i];
        return;
    }
    if (j->want[HN_ACT_F32]) memcpy(to.f32, from.f32, hn_act_row_bytes(HN_ACT_F32, a->n));
    if (j->want[HN_ACT_Q256]) memcpy(to.q256, from.q256, hn_act_row_bytes(HN_ACT_Q256, a->n));
    if (j->want[HN_ACT_Q32]) memcpy(to.q32, from.q32, hn_act_row_bytes(HN_ACT_Q32, a->n));
}

static void glu_chunk(void *arg, int64_t i, int32_t thread)
{
    const glu_job *j = arg;
    cpu_backend *c = j->c;
    const moe_chunk *k = &c->moe.chunks[i];
    int64_t first = c->moe.first[k->expert], n = c->moe.first[k->expert + 1] - first, rows = k->r1 - k->r0;
    int64_t ldy = (int64_t)hn_f32_stride(j->out->n);
    float *y = j->out->f32 + first * ldy, *up = c->wide + first * ldy;
    const hn_weight *gate = j->m->gate ? j->m->gate + k->expert : NULL;
    hn_act in = rows_of(j->act, j->sorted ? first : 0, n);
    if (gate) cpu_product_rows(c, gate, &in, NULL, y, ldy, k->r0, k->r1, thread);
    cpu_product_rows(c, j->m->up + k->expert, &in, NULL, gate ? up : y, ldy, k->r0, k->r1, thread);
    for (int64_t t = 0; t < n; t++) {
        float *row = y + t * ldy + k->r0;
        if (gate) cpu_glu_row(c, j->m->glu, row, row, up + t * ldy + k->r0, rows, j->m->limit);
        else if (j->m->map) c->k->map[j->m->map](row, rows);
    }
}

void cpu_moe_glu(hn_backend *b, hn_act *out, hn_act *act, const hn_moe *m)
{
    glu_job j = { .c = cpu_self(b), .m = m, .out = out, .act = act };
    cpu_backend *c = j.c;
    int64_t n_pick = act->n_tok * m->n_used, n_ff = m->up->n_out;
    group_rows(&c->moe, m, act->n_tok);
    if (m->weigh_input) cpu_wrote(c, act->late_x); /* else it is made with the forms that experts ask for */
    if (!m->weigh_input) prepare(c, act, m->up, m->gate, j.want);
    if (act->n_tok > 1 || m->weigh_input) {
        cpu_act_begin(c, m->in, act->n, n_pick);
        if (!m->weigh_input) memcpy(m->in->have, j.want, sizeof j.want);
        cpu_for_rows(c, sorted_row, &j, n_pick, act->n);
        if (m->weigh_input) prepare(c, m->in, m->up, m->gate, j.want);
        j.act = m->in;
        j.sorted = true;
    }
    cpu_act_begin(c, out, n_ff, n_pick);
    assert((uint64_t)n_pick * hn_f32_stride(n_ff) <= c->wide_floats);
    hn_pool_run(c->p.pool, glu_chunk, &j, cut(c, n_ff, n_pick, act->n_tok));
}

/* ---- down, and the sum ---------------------------------------------------------------------------------------- */

typedef struct down_job {
    cpu_backend *c;
    const hn_moe *m;
    const hn_act *act;
    int64_t n_tok, n_embd;
} down_job;

/* Rows [r0, r0 + n) of a matrix, r0 a multiple of a packed group's. */
static hn_weight part_of(const hn_weight *w, int64_t r0, int64_t n)
{
    hn_weight v = *w;
    v.data = (const char *)w->data + (size_t)r0 * w->row_bytes;
    if (w->packed) v.packed = (const char *)w->packed + (size_t)(r0 / HN_PACK_ROWS) * w->group_bytes;
    if (w->bias) v.bias = w->bias + r0;
    v.n_out = n;
    return v;
}

/* What row t's rest of the sum is: the shared expert, the scale; then to where it belongs. */
static void finish(const down_job *j, float *acc, int64_t t, int64_t r0, int64_t n)
{
    const hn_moe *m = j->m;
    const float *shared = cpu_rows(m->shared), *gate = cpu_rows(m->shared_gate);
    int64_t at = t * j->n_embd + r0;
    if (shared && gate) j->c->k->low_rank(acc, shared + at, 0, gate + t, 1, n);
    else if (shared) hn_add(acc, shared + at, n);
    for (int64_t r = 0; r < n && m->scale != 0; r++) acc[r] *= m->scale;
    if (m->y) memcpy(m->y->p + at, acc, (size_t)n * sizeof(float));
    else hn_add(m->sum->p + at, acc, n);
}

static void down_chunk(void *arg, int64_t i, int32_t thread)
{
    const down_job *j = arg;
    cpu_backend *c = j->c;
    const cpu_moe *g = &c->moe;
    const moe_chunk *k = &g->chunks[i];
    int64_t r0 = k->r0, n = k->r1 - k->r0, ld = (int64_t)hn_f32_stride(j->n_embd);
    float *tile = g->tiles + (size_t)thread * tile_floats(c), one = 1.0f;
    for (int64_t t = 0; t < j->n_tok; t++) memset(c->wide + t * ld + r0, 0, (size_t)n * sizeof(float));
    for (int32_t a = 0; a < g->n_active; a++) {
        int32_t e = g->active[a];
        hn_act in = rows_of(j->act, g->first[e], g->first[e + 1] - g->first[e]);
        hn_weight w = part_of(j->m->down + e, r0, n);
        cpu_product_rows(c, &w, &in, NULL, tile, n, 0, n, thread);
        for (int64_t q = 0; q < in.n_tok; q++) {
            const float *weight = j->m->weigh_input ? &one : &g->weight[g->first[e] + q];
            c->k->low_rank(c->wide + g->row[g->first[e] + q] * ld + r0, tile + q * n, 0, weight, 1, n);
        }
    }
    for (int64_t t = 0; t < j->n_tok; t++) finish(j, c->wide + t * ld + r0, t, r0, n);
}

/* Rows of all experts together. */
static int cut_sum(cpu_backend *c, int64_t n, int64_t n_tok)
{
    int64_t unit = n_tok > CPU_FEW_TOKENS ? MANY_ROWS : FEW_ROWS;
    int n_chunk = 0;
    for (int64_t r = 0; r < n;) {
        int64_t rows = (n - r) * 3 / (4 * hn_pool_active(c->p.pool)) / unit * unit;
        rows = rows < unit ? unit : rows > CPU_MOE_ROWS ? CPU_MOE_ROWS : rows;
        rows = rows < n - r ? rows : n - r;
        assert(n_chunk < MOE_CHUNKS);
        c->moe.chunks[n_chunk++] = (moe_chunk){ 0, (int32_t)r, (int32_t)(r + rows) };
        r += rows;
    }
    return n_chunk;
}

void cpu_moe_down(hn_backend *b, hn_act *act, const hn_moe *m, int64_t n_tok)
{
    cpu_backend *c = cpu_self(b);
    down_job j = { c, m, act, n_tok, m->down->n_out };
    cpu_wrote(c, m->y ? m->y : m->sum);
    group_rows(&c->moe, m, n_tok);
    bool want[HN_ACT_KINDS] = { false };
    prepare(c, act, m->down, NULL, want);
    assert((uint64_t)n_tok * hn_f32_stride(j.n_embd) <= c->wide_floats);
    hn_pool_run(c->p.pool, down_chunk, &j, cut_sum(c, j.n_embd, n_tok));
}
