/* Products of the CPU backend: what a weight's type asks of its activations, adapters, and rows of the result. Owns how
 * rows are cut into chunks; refuses to know what is computed with them. */
#include "backend/cpu.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>

enum {
    PANEL_ROWS = 8, /* rows decoded to f32 at a time for types without a kernel */
    MIN_ROWS = 16,  /* kernels work in tiles of 16 rows at most */
    PREFILL_ROWS =
        8 * HN_PANEL_ROWS, /* rows of a chunk at most: longer runs of every column of y, fewer visits to it */
    DELTA_ALONE = 1 << 16  /* multiplications of A·x that are not worth waking the others */
};
_Static_assert(PANEL_ROWS * sizeof(float) <= HN_PANEL_ELEM, "HN_PANEL_BYTES");

/* ---- matmul ----------------------------------------------------------------------------------- */

typedef struct prepare_job {
    cpu_backend *c;
    int n;
    struct {
        hn_act *act;
        bool want[HN_ACT_KINDS];
    } a[HN_MAX_PRODUCT];
} prepare_job;

/* Row t of every activation in every form that is wanted; each is made of the one before while that is in cache. */
static void prepare_row(void *arg, int64_t t, int32_t thread)
{
    prepare_job *j = arg;
    const hn_kernels *k = j->c->k;
    for (int i = 0; i < j->n; i++) {
        hn_act *a = j->a[i].act;
        float *x = a->f32 + (size_t)t * hn_f32_stride(a->n);
        if (a->late_x) cpu_norm_row(j->c, a, t);
        if (j->a[i].want[HN_ACT_Q256])
            k->quantize256((hn_a256 *)((char *)a->q256 + (size_t)t * hn_act_row_bytes(HN_ACT_Q256, a->n)), x, a->n);
        if (j->a[i].want[HN_ACT_Q32])
            k->quantize32((char *)a->q32 + (size_t)t * hn_act_row_bytes(HN_ACT_Q32, a->n), x, a->n);
    }
}

/* The activation of product p. */
static hn_act *in_of(hn_act *act, const hn_product *p) { return p->in ? p->in : act; }

/* The forms that n products ask for; act: of those without their own. */
void cpu_act_prepare(cpu_backend *c, hn_act *act, const hn_product *p, int n)
{
    prepare_job j = { .c = c };
    for (int i = 0; i < n; i++) {
        hn_act *a = in_of(act, &p[i]);
        hn_act_kind kind = hn_act_kind_of(p[i].w->type);
        if (a->have[kind] && !a->late_x) continue;
        int at = 0;
        while (at < j.n && j.a[at].act != a) at++;
        if (at == j.n) j.a[j.n++].act = a;
        j.a[at].want[kind] = !a->have[kind];
    }
    if (!j.n) return;
    int64_t work = 0;
    for (int i = 0; i < j.n; i++) work += j.a[i].act->n;
    cpu_for_rows(c, prepare_row, &j, in_of(act, p)->n_tok, work);
    for (int i = 0; i < j.n; i++) {
        hn_act *a = j.a[i].act;
        for (int k = 0; k < HN_ACT_KINDS; k++) a->have[k] = a->have[k] || j.a[i].want[k];
        if (a->late_x) cpu_late_done(c, a);
    }
}

/* ---- adapters: h = scale·(A·x), before the rows of the product -------------------------------------- */

/* Floats of h that a row has of a weight. */
static int64_t h_floats(const hn_adapters *set, const hn_weight *w)
{
    int64_t n = 0;
    for (int d = 0; d < set->of[w->id].n; d++) n += (int64_t)hn_f32_stride(set->of[w->id].delta[d].rank);
    return n;
}

/* The set of row t, and the first row after it, at most end, that has another. */
static const hn_adapters *run_of(const cpu_backend *c, int64_t n_tok, int64_t t, int64_t *end)
{
    const hn_adapters *set = hn_step_set(&c->step, n_tok, t);
    for (int64_t i = t + 1; i < *end; i++)
        if (hn_step_set(&c->step, n_tok, i) != set) *end = i;
    return set;
}

typedef struct delta_job {
    cpu_backend *c;
    hn_act *act;
    const hn_product *p;
    int n;
    int64_t n_part; /* runs of the adapters */
    int64_t ld;
} delta_job;

/* Rows [t0, t1), all of one set: every n_part-th of its adapters, `part` the first. */
static void delta_rows(const delta_job *j, const hn_adapters *set, int64_t t0, int64_t t1, int64_t part, int32_t thread)
{
    cpu_backend *c = j->c;
    float *h = c->h + t0 * j->ld;
    for (int64_t i = 0, k = 0; i < j->n; i++) {
        const hn_act *a = in_of(j->act, &j->p[i]);
        const hn_delta_list *l = &set->of[j->p[i].w->id];
        for (int d = 0; d < l->n; d++, k++) {
            const hn_delta *e = &l->delta[d];
            hn_mm m = { .y = h,
                        .ldy = j->ld,
                        .w = e->a,
                        .w_stride = (size_t)a->n * sizeof(float),
                        .x = a->f32 + (size_t)t0 * hn_f32_stride(a->n),
                        .x_stride = hn_act_row_bytes(HN_ACT_F32, a->n),
                        .n_in = a->n,
                        .n_col = t1 - t0,
                        .r1 = e->rank,
                        .panel = c->panels + (uint64_t)thread * c->panel_floats };
            h += hn_f32_stride(e->rank);
            if (k % j->n_part != part) continue;
            c->k->matmul[HN_F32](&m);
            for (int64_t t = 0; t < m.n_col; t++)
                for (int64_t r = 0; r < e->rank; r++) m.y[t * j->ld + r] *= e->scale;
        }
    }
}

/* Chunk: some rows of the batch, one of n_part of the adapters. */
static void delta_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const delta_job *j = arg;
    int64_t n_tok = in_of(j->act, j->p)->n_tok, t0 = chunk / j->n_part * CPU_ROWS;
    int64_t t1 = t0 + CPU_ROWS < n_tok ? t0 + CPU_ROWS : n_tok;
    for (int64_t t = t0, end; t < t1; t = end) {
        end = t1;
        const hn_adapters *set = run_of(j->c, n_tok, t, &end);
        if (set) delta_rows(j, set, t, end, chunk % j->n_part, thread);
    }
}

/* The h of all adapters of n products; h[i].ld 0: no row has any. */
static void make_h(cpu_backend *c, hn_act *act, const hn_product *p, int n, cpu_delta_rows h[HN_MAX_PRODUCT])
{
    delta_job j = { c, act, p, n, 1, 0 };
    int64_t most = 0, work = 0, n_tok = in_of(act, p)->n_tok;
    for (int32_t k = 0; c->step.adapters && k < c->step.n_adapters; k++) {
        const hn_adapters *set = c->step.adapters[k];
        int64_t n_delta = 0, floats = 0, rank = 0;
        for (int i = 0; i < n; i++) {
            int64_t more = h_floats(set, p[i].w);
            n_delta += set->of[p[i].w->id].n;
            rank += more * p[i].w->n_in;
            floats += more;
        }
        most = n_delta > most ? n_delta : most;
        work = rank * n_tok > work ? rank * n_tok : work;
        j.ld = floats > j.ld ? floats : j.ld;
    }
    for (int i = 0; i < n; i++) h[i] = (cpu_delta_rows){ p, i, j.ld };
    if (!j.ld) return;
    if (n_tok <= CPU_ROWS && work > DELTA_ALONE) j.n_part = most;
    hn_pool_run(c->p.pool, delta_chunk, &j, cpu_div_up(n_tok, CPU_ROWS) * j.n_part);
}

static void add_deltas(const cpu_backend *c, const cpu_delta_rows *d, float *y, int64_t ldy, int64_t n_tok, int64_t r0,
                       int64_t r1)
{
    const hn_weight *w = d->p[d->i].w;
    for (int64_t t0 = 0, t1; t0 < n_tok; t0 = t1) {
        t1 = n_tok;
        const hn_adapters *set = run_of(c, n_tok, t0, &t1);
        if (!set) continue;
        const float *h = c->h + t0 * d->ld;
        for (int i = 0; i < d->i; i++) h += h_floats(set, d->p[i].w);
        for (int k = 0; k < set->of[w->id].n; k++) {
            const hn_delta *e = &set->of[w->id].delta[k];
            for (int64_t t = t0; t < t1; t++)
                c->k->low_rank(y + t * ldy + r0, e->b + r0, e->ldb, h + (t - t0) * d->ld, e->rank, r1 - r0);
            h += hn_f32_stride(e->rank);
        }
    }
}

/* Rows [r0, r1) of product p. */
typedef struct mm_chunk {
    int32_t p, r0, r1;
} mm_chunk;

typedef struct mm_job {
    cpu_backend *c;
    hn_act *act;
    const hn_product *p;
    const hn_weight *up; /* glu: p is the gate */
    hn_glu glu;
    float limit;
    cpu_delta_rows d[HN_MAX_PRODUCT]; /* of make_h */
    float *wide[HN_MAX_PRODUCT];      /* scratch of products that are added to a sum; of up */
    float cap;                        /* of logits; 0: none */
    bool finite;                      /* logits: whether they are is looked at */
} mm_job;

static void scale_rows(float *y, int64_t ldy, int64_t n_tok, int64_t r0, int64_t r1, float factor)
{
    for (int64_t t = 0; t < n_tok; t++)
        for (int64_t r = r0; r < r1; r++) y[t * ldy + r] *= factor;
}

/* Rows [r0, r1) of one product, all columns, into y, times its factor, adapters and bias added. */
void cpu_product_rows(cpu_backend *c, const hn_weight *w, const hn_act *a, const cpu_delta_rows *d, float *y,
                      int64_t ldy, int64_t r0, int64_t r1, int32_t thread)
{
    hn_act_kind kind = hn_act_kind_of(w->type);
    hn_mm m = { .y = y,
                .ldy = ldy,
                .w = w->data,
                .w_stride = w->row_bytes,
                .x = kind == HN_ACT_Q256  ? a->q256
                     : kind == HN_ACT_Q32 ? a->q32
                                          : (void *)a->f32,
                .x_stride = hn_act_row_bytes(kind, a->n),
                .n_in = w->n_in,
                .n_col = a->n_tok,
                .r0 = r0,
                .r1 = r1,
                .panel = c->panels + (uint64_t)thread * c->panel_floats };
    hn_matmul_fn *fn = c->k->matmul[w->type];
    if (w->packed && c->k->packed[w->type]) { /* chunks are whole groups */
        fn = c->k->packed[w->type];
        m.w = w->packed;
        m.w_stride = w->group_bytes;
    }
    if (fn) {
        fn(&m);
    } else { /* decode a panel of rows exactly, then the float rule */
        const hn_type_info *ti = hn_type_get(w->type);
        float *panel = m.panel;
        m.w = panel;
        m.w_stride = (size_t)w->n_in * sizeof(float);
        m.r0 = 0;
        for (int64_t r = r0; r < r1; r += PANEL_ROWS) {
            m.r1 = r1 - r < PANEL_ROWS ? r1 - r : PANEL_ROWS;
            for (int64_t i = 0; i < m.r1; i++)
                ti->dequantize(panel + i * w->n_in, (const char *)w->data + (size_t)(r + i) * w->row_bytes, w->n_in);
            m.y = y + r;
            c->k->matmul[HN_F32](&m);
        }
    }
    if (w->factor) scale_rows(y, ldy, a->n_tok, r0, r1, *w->factor);
    if (d && d->ld) add_deltas(c, d, y, ldy, a->n_tok, r0, r1);
    if (w->bias)
        for (int64_t t = 0; t < a->n_tok; t++) hn_add(y + t * ldy + r0, w->bias + r0, r1 - r0);
}

/* Where product i is made, and the floats between its columns. */
static float *place_of(const mm_job *j, int i, int64_t *ldy)
{
    const hn_product *p = &j->p[i];
    *ldy = p->y ? p->w->n_out : (int64_t)hn_f32_stride(p->w->n_out);
    return p->y ? p->y->p : p->out ? p->out->f32 : j->wide[i];
}

/* x = tanh(x·(1/cap))·cap */
static void cap_row(const cpu_backend *c, float *x, int64_t n, float cap)
{
    const float inverse = 1.0f / cap;
    for (int64_t i = 0; i < n; i++) x[i] *= inverse;
    c->k->map[HN_MAP_TANH](x, n);
    for (int64_t i = 0; i < n; i++) x[i] *= cap;
}

/* Where the factors of column t begin. */
static int64_t mul_at(const mm_job *j, const hn_product *p, int64_t t)
{
    return p->mul_row ? cpu_row(j->c, p->mul_of, t) * p->mul_row + p->mul_at : t * p->w->n_out;
}

static void run_chunk(void *arg, int64_t i, int32_t thread)
{
    mm_job *j = arg;
    cpu_backend *c = j->c;
    const mm_chunk *k = &c->chunks[i];
    const hn_product *p = &j->p[k->p];
    const hn_act *in = in_of(j->act, p);
    int64_t n_out = p->w->n_out, r0 = k->r0, n = k->r1 - k->r0, ldy;
    float *y = place_of(j, k->p, &ldy);
    cpu_product_rows(c, p->w, in, &j->d[k->p], y, ldy, r0, k->r1, thread);
    if (j->up) {
        float *up = j->wide[1];
        cpu_product_rows(c, j->up, in, &j->d[1], up, ldy, r0, k->r1, thread);
        for (int64_t t = 0; t < in->n_tok; t++)
            cpu_glu_row(c, j->glu, y + t * ldy + r0, y + t * ldy + r0, up + t * ldy + r0, n, j->limit);
    }
    const float *mul = cpu_rows(p->mul);
    float *sum = cpu_rows(p->sum);
    for (int64_t t = 0; t < in->n_tok; t++) {
        float *row = y + t * ldy + r0;
        if (p->map) c->k->map[p->map](row, n);
        if (p->xielu) c->k->xielu(row, n, p->xielu);
        if (mul)
            for (int64_t r = 0; r < n; r++) row[r] *= mul[mul_at(j, p, t) + r0 + r];
        if (p->scale != 0)
            for (int64_t r = 0; r < n; r++) row[r] *= p->scale;
        if (j->cap != 0) cap_row(c, row, n, j->cap);
        /* here, where they lie in this thread's cache: to fetch 150,000 of them again takes longer than to look */
        if (j->finite && !hn_all_within(row, n, FLT_MAX)) c->bad_logits = true;
        if (sum) hn_add(sum + t * n_out + r0, row, n);
    }
}

/* Cuts the rows of n products into chunks of whole tiles: large ones first, since few
 * streams are fetched best, small ones last, so that nobody waits long for the last. */
static int cut(cpu_backend *c, const hn_product *p, int n, int64_t n_tok)
{
    bool many = n_tok > CPU_FEW_TOKENS;
    int64_t unit = many ? HN_PANEL_ROWS : MIN_ROWS, most = many ? PREFILL_ROWS : INT32_MAX, left = 0;
    for (int i = 0; i < n; i++) left += p[i].w->n_out;
    while (left / unit > CPU_MAX_CHUNKS / 2) unit *= 2;
    if (most < unit) most = unit;
    int n_chunk = 0;
    for (int i = 0; i < n; i++)
        for (int64_t r = 0; r < p[i].w->n_out;) {
            int64_t rows = left * 3 / (4 * hn_pool_active(c->p.pool)) / unit * unit;
            rows = rows < unit ? unit : rows > most ? most : rows;
            rows = rows < p[i].w->n_out - r ? rows : p[i].w->n_out - r;
            c->chunks[n_chunk++] = (mm_chunk){ i, (int32_t)r, (int32_t)(r + rows) };
            r += rows;
            left -= rows;
        }
    return n_chunk;
}

/* Scratch for product i, behind that of those before it, which end at *used. */
static void take_wide(mm_job *j, int i, int64_t n_tok, uint64_t *used)
{
    j->wide[i] = j->c->wide + *used;
    *used += (uint64_t)n_tok * hn_f32_stride(j->p[i].w->n_out);
    assert(*used <= j->c->wide_floats);
}

static void products(mm_job j, int n)
{
    hn_act *act = j.act;
    const hn_product *p = j.p;
    int64_t n_tok = in_of(act, p)->n_tok;
    uint64_t used = 0;
    cpu_act_prepare(j.c, act, p, n);
    make_h(j.c, act, p, n, j.d);
    for (int i = 0; i < n; i++) {
        if (p[i].y) cpu_wrote(j.c, p[i].y);
        else if (p[i].out) cpu_act_begin(j.c, p[i].out, p[i].w->n_out, n_tok);
        else take_wide(&j, i, n_tok, &used);
        if (p[i].sum) cpu_wrote(j.c, p[i].sum);
    }
    hn_pool_run(j.c->p.pool, run_chunk, &j, cut(j.c, p, n, n_tok));
}

void cpu_matmul(hn_backend *b, hn_act *act, const hn_product *p, int n)
{
    products((mm_job){ .c = cpu_self(b), .act = act, .p = p }, n);
}

void cpu_glu_limited(const cpu_backend *c, hn_glu kind, float *y, const float *g, const float *u, int64_t n,
                     float limit)
{
    assert(kind == HN_GLU_SILU);
    if (y != g) memcpy(y, g, (size_t)n * sizeof *y);
    c->k->map[HN_MAP_SILU](y, n);
    for (int64_t i = 0; i < n; i++) { /* what is no number stays so */
        const float most = y[i] > limit ? limit : y[i], other = u[i] > limit ? limit : u[i] < -limit ? -limit : u[i];
        y[i] = most * other;
    }
}

void cpu_glu(hn_backend *b, hn_act *out, hn_act *act, hn_glu kind, const hn_weight *gate, const hn_weight *up,
             float limit)
{
    const hn_product p[2] = { { .w = gate, .out = out }, { .w = up } };
    mm_job j = { .c = cpu_self(b), .act = act, .p = p, .up = up, .glu = kind, .limit = limit };
    uint64_t used = 0;
    cpu_act_prepare(j.c, act, p, 2);
    make_h(j.c, act, p, 2, j.d);
    cpu_act_begin(j.c, out, gate->n_out, act->n_tok);
    take_wide(&j, 1, act->n_tok, &used);
    hn_pool_run(j.c->p.pool, run_chunk, &j, cut(j.c, p, 1, act->n_tok));
}

/* ---- a matrix for each head --------------------------------------------------------------------------------- */

enum { HEAD_ROWS = 128 }; /* of a head's matrix in a chunk: whole groups of packed rows and of panels */

typedef struct head_job {
    cpu_backend *c;
    const hn_head_product *p;
    int64_t n_out, n_piece; /* of a head: rows, chunks */
} head_job;

/* Row h·n_tok + t of the room is head h of row t. */
static void gather_head(void *arg, int64_t row, int32_t thread)
{
    const head_job *j = arg;
    const hn_head_product *p = j->p;
    int64_t n = p->w->n_in, h = row / p->n_tok, t = row % p->n_tok;
    const float *x =
        p->x ? p->x->p + t * p->x_row + h * p->x_head : p->x_act->f32 + (size_t)t * hn_f32_stride(p->x_act->n) + h * n;
    memcpy(p->room->f32 + (size_t)row * hn_f32_stride(n), x, (size_t)n * sizeof *x);
}

static void head_chunk(void *arg, int64_t chunk, int32_t thread)
{
    const head_job *j = arg;
    const hn_head_product *p = j->p;
    int64_t h = chunk / j->n_piece, r0 = chunk % j->n_piece * HEAD_ROWS, n = p->w->n_in, first = h * j->n_out;
    int64_t r1 = r0 + HEAD_ROWS < j->n_out ? r0 + HEAD_ROWS : j->n_out, ldy = p->y ? p->y_row : 0;
    size_t skip = (size_t)(h * p->n_tok);
    hn_weight w = *p->w;
    w.data = (const char *)w.data + (size_t)first * w.row_bytes;
    if (w.packed)
        w.packed =
            j->n_out % HN_PACK_ROWS ? NULL : (const char *)w.packed + (size_t)(first / HN_PACK_ROWS) * w.group_bytes;
    hn_act x = *p->room;
    x.n_tok = p->n_tok;
    x.f32 += skip * hn_f32_stride(n);
    x.q256 = (char *)x.q256 + skip * hn_act_row_bytes(HN_ACT_Q256, n);
    x.q32 = (char *)x.q32 + skip * hn_act_row_bytes(HN_ACT_Q32, n);
    if (!p->y) ldy = (int64_t)hn_f32_stride(p->out->n);
    float *y = p->y ? p->y->p + h * p->y_head : p->out->f32 + first;
    cpu_product_rows(j->c, &w, &x, NULL, y, ldy, r0, r1, thread);
}

void cpu_matmul_heads(hn_backend *b, const hn_head_product *p)
{
    head_job j = { .c = cpu_self(b), .p = p, .n_out = p->w->n_out / p->n_head };
    j.n_piece = cpu_div_up(j.n_out, HEAD_ROWS);
    if (p->x_act) cpu_wrote(j.c, p->x_act->late_x);
    cpu_act_begin(j.c, p->room, p->w->n_in, p->n_head * p->n_tok);
    cpu_for_rows(j.c, gather_head, &j, p->n_head * p->n_tok, p->w->n_in);
    cpu_act_prepare(j.c, p->room, &(hn_product){ .w = p->w }, 1);
    if (p->y) cpu_wrote(j.c, p->y);
    else cpu_act_begin(j.c, p->out, p->n_head * j.n_out, p->n_tok);
    hn_pool_run(j.c->p.pool, head_chunk, &j, p->n_head * j.n_piece);
}

/* Host memory is ours: it is a buffer for as long as that. */
void cpu_logits(hn_backend *b, float *host, hn_act *act, const hn_weight *w, hn_logits_tail tail)
{
    hn_buf y = { .p = host };
    const hn_product p = { .w = w, .y = &y, .scale = tail.scale };
    products((mm_job){ .c = cpu_self(b), .act = act, .p = &p, .cap = tail.cap, .finite = true }, 1);
}

/* The most floats that a row's adapters can ask for in one call: of all weights of a layer together. */
static uint64_t most_h(const cpu_backend *c, const hn_adapters *a)
{
    uint64_t most = 0, sum = 0;
    for (int32_t i = 0; i < a->n_weight; i++) {
        bool same = i > 0 && i < c->model.n_weight && c->model.weight[i]->layer == c->model.weight[i - 1]->layer;
        sum = same ? sum : 0;
        sum += (uint64_t)h_floats(a, c->model.weight[i]);
        most = sum > most ? sum : most;
    }
    return most;
}

bool cpu_reserve(hn_backend *b, const hn_adapters *a)
{
    cpu_backend *c = cpu_self(b);
    uint64_t n, bytes;
    if (!hn_mul_u64(most_h(c, a), (uint64_t)c->p.n_tok, &n) || !hn_mul_u64(n, sizeof(float), &bytes)) return false;
    if (n <= c->h_floats) return true;
    float *h = hn_pages_alloc((size_t)bytes);
    if (!h) return false;
    hn_pages_free(c->h, (size_t)c->h_floats * sizeof(float));
    c->h = h;
    c->h_floats = n;
    return true;
}

size_t cpu_chunk_bytes(void) { return CPU_MAX_CHUNKS * sizeof(mm_chunk); }
