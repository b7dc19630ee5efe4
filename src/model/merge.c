/* merge: W' = W + Σ s·BA in the base's file, one pass for all adapters. Matrices that an
 * adapter changes are decoded, changed in f32 and encoded again; everything else is copied
 * byte for byte, and so are rows to which nothing is added. Says of each matrix what its encoding lost. Refuses to know sessions. */
#define _GNU_SOURCE
#include "model/lora.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

enum { PIECE = 1 << 16, MAX_THREADS = 32 }; /* elements of a chunk, or one row */

#define TRY(x) do { if ((st = (x)) != HONE_OK) return st; } while (0)

typedef struct merge {
    const hone_merge_params *p;
    const char *dst;
    const hone_progress *pr;
    hone_error *err;
    hone_model *m;
    hn_lora **lora;         /* [n_adapters] */
    hn_type *type;          /* [tensors] in the new file */
    bool *changed;          /* [tensors] */
    hn_pool *pool;
    const hn_kernels *k;
    hn_gguf_writer *w;
    uint64_t done, total;
    /* of the tensor at work */
    const hn_gguf_tensor *t;
    hn_type to;
    uint64_t row0, n_row, rows; /* of this batch, and of one chunk */
    float *x, *d;           /* [threads][n_in] a row; what is added to it */
    float *b;               /* [threads][HN_LORA_MAX_RANK] a row of s·B */
    char *out;
    double *sums;           /* [rows of the tensor][3] of squares: W, ΔW, error */
    _Atomic int64_t bad;    /* the first row that cannot be encoded, INT64_MAX: none */
} merge;

static bool interrupted(const merge *g) { return g->pr && g->pr->abort_fn && g->pr->abort_fn(g->pr->arg); }

static void lower(_Atomic int64_t *a, int64_t v)
{
    int64_t seen = atomic_load(a);
    while (v < seen && !atomic_compare_exchange_weak(a, &seen, v)) {}
}

static float scale_of(const merge *g, int32_t adapter) { return g->p->scales ? g->p->scales[adapter] : 1.0f; }

static bool is_tensor(const hn_lora_pair *p, const hn_gguf_tensor *t) { return strlen(p->name) == t->name.len && !memcmp(p->name, t->name.ptr, t->name.len); }

static void merge_rows(void *arg, int64_t chunk, int32_t thread)
{
    merge *g = arg;
    const hn_type_info *from = hn_type_get(g->t->type), *to = hn_type_get(g->to);
    int64_t n = (int64_t)g->t->ne[0];
    float *x = g->x + (size_t)thread * (size_t)n, *d = g->d + (size_t)thread * (size_t)n, *h = g->b + (size_t)thread * HN_LORA_MAX_RANK;
    for (uint64_t i = (uint64_t)chunk * g->rows; i < ((uint64_t)chunk + 1) * g->rows && i < g->n_row; i++) {
        uint64_t r = g->row0 + i;
        double *sum = g->sums + 3 * r;
        char *out = g->out + i * hn_row_bytes(to, (uint64_t)n);
        const char *old = (const char *)g->t->data + r * hn_row_bytes(from, (uint64_t)n);
        bool moved = false;
        from->dequantize(x, old, n);
        memset(d, 0, (size_t)n * sizeof *d);
        for (int32_t a = 0; a < g->p->n_adapters; a++)
            for (int32_t q = 0; q < g->lora[a]->n_pair; q++) {
                const hn_lora_pair *p = &g->lora[a]->pair[q];
                if (!is_tensor(p, g->t) || scale_of(g, a) == 0) continue;
                float s = scale_of(g, a) * p->scale;
                for (int64_t j = 0; j < p->rank; j++) h[j] = s * p->b[(int64_t)r * p->rank + j];
                g->k->low_rank(d, p->a, n, h, p->rank, n);
            }
        sum[0] = sum[1] = sum[2] = 0;
        for (int64_t c = 0; c < n; c++) {
            sum[0] += (double)x[c] * (double)x[c];
            sum[1] += (double)d[c] * (double)d[c];
            moved = moved || d[c] != 0;
            x[c] += d[c];
            if (!isfinite(x[c]) || (g->to == HN_F16 && fabsf(x[c]) >= 65520)) lower(&g->bad, (int64_t)r);
        }
        if (!moved && from == to) { /* encoding it again would change it */
            memcpy(out, old, hn_row_bytes(from, (uint64_t)n));
            continue;
        }
        to->quantize(out, x, n, NULL);
        to->dequantize(d, out, n);
        for (int64_t c = 0; c < n; c++) {
            double e = (double)d[c] - (double)x[c];
            if (!isfinite(d[c])) lower(&g->bad, (int64_t)r);
            sum[2] += e * e;
        }
    }
}

static hone_status emit(merge *g, const void *p, uint64_t n)
{
    hone_status st;
    TRY(hn_gguf_write_data(g->w, p, n, g->err));
    g->done += n;
    if (g->pr && g->pr->fn) g->pr->fn(g->pr->arg, g->done, g->total);
    return interrupted(g) ? HN_FAIL(g->err, HONE_E_INTERRUPTED, "%s: interrupted; nothing is left on disk", g->dst) : HONE_OK;
}

static void tell(merge *g, uint64_t n_row)
{
    double s[3] = { 0 }, n = (double)n_row * (double)g->t->ne[0];
    char name[HN_GGUF_MAX_NAME + 1];
    for (uint64_t r = 0; r < n_row; r++)
        for (int i = 0; i < 3; i++) s[i] += g->sums[3 * r + (uint64_t)i];
    snprintf(name, sizeof name, "%.*s", (int)g->t->name.len, g->t->name.ptr);
    const hone_merge_tensor m = { .name = name, .from = hn_type_get(g->t->type)->name, .to = hn_type_get(g->to)->name, .n = (uint64_t)n, .weight_rms = sqrt(s[0] / n),
                                  .delta_rms = sqrt(s[1] / n), .error_rms = sqrt(s[2] / n) };
    if (g->p->report) g->p->report(g->p->report_arg, &m);
}

static hone_status merge_tensor(merge *g, hn_type to)
{
    uint64_t ne0 = g->t->ne[0], rows = g->t->ne[1], threads = (uint64_t)hn_pool_threads(g->pool), out_row = hn_row_bytes(hn_type_get(to), ne0);
    hone_status st = HONE_OK;
    g->to = to;
    g->rows = ne0 < PIECE ? PIECE / ne0 : 1;
    uint64_t batch = 4 * threads * g->rows < rows ? 4 * threads * g->rows : rows;
    g->x = malloc(threads * ne0 * sizeof *g->x);
    g->d = malloc(threads * ne0 * sizeof *g->d);
    g->b = malloc(threads * HN_LORA_MAX_RANK * sizeof *g->b);
    g->out = malloc(batch * out_row);
    g->sums = malloc(rows * 3 * sizeof *g->sums);
    if (!g->x || !g->d || !g->b || !g->out || !g->sums)
        st = HN_FAIL(g->err, HONE_E_NOMEM, "%s: buffers of %llu rows of %llu numbers", g->p->base, (unsigned long long)(batch + 2 * threads), (unsigned long long)ne0);
    for (g->row0 = 0; st == HONE_OK && g->row0 < rows; g->row0 += g->n_row) {
        g->n_row = rows - g->row0 < batch ? rows - g->row0 : batch;
        atomic_store(&g->bad, INT64_MAX);
        hn_pool_run(g->pool, merge_rows, g, (int64_t)((g->n_row + g->rows - 1) / g->rows));
        int64_t bad = atomic_load(&g->bad);
        if (bad != INT64_MAX)
            st = HN_FAIL(g->err, HONE_E_NUMERIC, "%s: row %lld of %s has numbers that %s does not hold after merging", g->p->base, (long long)bad,
                         HN_ESC(g->t->name.ptr, g->t->name.len), hn_type_get(to)->name);
        else st = emit(g, g->out, g->n_row * out_row);
    }
    if (st == HONE_OK) tell(g, rows);
    free(g->x);
    free(g->d);
    free(g->b);
    free(g->out);
    free(g->sums);
    return st;
}

static hone_status copy_tensor(merge *g)
{
    enum { STEP = 4 << 20 };
    hone_status st;
    for (uint64_t at = 0; at < g->t->n_bytes; at += STEP)
        TRY(emit(g, (const char *)g->t->data + at, g->t->n_bytes - at < STEP ? g->t->n_bytes - at : STEP));
    return HONE_OK;
}

/* ---- what is to be done ----------------------------------------------------------------------------- */

static hone_status open_all(merge *g)
{
    const hone_merge_params *p = g->p;
    const hone_model_params mp = { .packed = "off" };
    hone_status st;
    if (p->n_adapters < 1) return HN_FAIL(g->err, HONE_E_ARG, "%s: %d adapters to merge, expected at least 1", p->base, p->n_adapters);
    for (int32_t i = 0; p->scales && i < p->n_adapters; i++)
        if (!isfinite(p->scales[i])) return HN_FAIL(g->err, HONE_E_ARG, "%s: scale %g, expected a finite number", p->adapters[i], (double)p->scales[i]);
    TRY(hone_model_open(&g->m, p->base, &mp, g->err));
    const hn_file_use out = { g->dst, "the result", NULL, HN_FILE_WRITTEN };
    TRY(hn_files_apart((const hn_file_use[]){ out, { p->base, "the base itself", NULL, HN_FILE_READ } }, 2, g->err));
    for (int32_t i = 0; i < p->n_adapters; i++)
        TRY(hn_files_apart((const hn_file_use[]){ out, { p->adapters[i], "an adapter to merge", NULL, HN_FILE_READ } },
                           2, g->err));
    if (!(g->lora = calloc((size_t)p->n_adapters, sizeof *g->lora))) return HN_FAIL(g->err, HONE_E_NOMEM, "%d adapters", p->n_adapters);
    for (int32_t i = 0; i < p->n_adapters; i++) TRY(hn_lora_open(&g->lora[i], g->m, p->adapters[i], g->err));
    return HONE_OK;
}

/* The type of each tensor in the new file. */
static hone_status choose_types(merge *g, uint32_t *file_type, bool *new_file_type)
{
    const hn_gguf *f = g->m->file;
    const hn_hparams *hp = &g->m->hp;
    uint64_t n = hn_gguf_n_tensors(f), bytes[2] = { 0 };
    hn_type base = HN_F32;
    const char *type = g->p->type && strcasecmp(g->p->type, "keep") ? g->p->type : NULL;
    hn_mix_model mix = { .arch = g->m->arch->name, .n_layer = hp->n_layer, .n_head = hp->n_head, .n_head_kv = hp->n_head_kv, .tied = g->m->output.data == g->m->token_embd.data };
    hn_mix_state state = { 0 };
    if (type && !hn_mix_find(type, &base, file_type)) return HN_FAIL(g->err, HONE_E_ARG, "unknown type \"%s\"; expected keep, F32, F16, Q8_0, Q4_K_M …", HN_ESC(type, strlen(type)));
    g->type = malloc((n + 1) * sizeof *g->type);
    g->changed = calloc(n + 1, sizeof *g->changed);
    if (!g->type || !g->changed) return HN_FAIL(g->err, HONE_E_NOMEM, "%s: %llu tensors", g->p->base, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(f, i);
        char name[HN_GGUF_MAX_NAME + 1];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        for (int32_t a = 0; a < g->p->n_adapters; a++)
            for (int32_t q = 0; q < g->lora[a]->n_pair && scale_of(g, a) != 0; q++) g->changed[i] |= is_tensor(&g->lora[a]->pair[q], t);
        hn_type mixed = !type ? t->type : base == HN_F32 || base == HN_F16 || base == HN_BF16 ? base : hn_mix_type(type, &mix, &state, name, t->ne, t->n_dim);
        g->type[i] = g->changed[i] ? mixed : t->type;
        const hn_type_info *ti = hn_type_get(g->type[i]);
        if (g->changed[i] && type && !ti->quantize)
            return HN_FAIL(g->err, HONE_E_UNSUPPORTED, "%s: hone has no encoder for %s; expected a type such as keep, F16, Q8_0 or Q4_K_M", name, ti->name);
        if (g->changed[i] && (!ti->quantize || t->ne[0] % ti->block_elems)) g->type[i] = HN_F16; /* the report says so */
        uint64_t size = 0;
        hn_tensor_nbytes(hn_type_get(g->type[i]), t->ne, 4, &size);
        bytes[g->changed[i]] += size;
        g->total += size;
    }
    *new_file_type = type && bytes[1] > bytes[0];
    return HONE_OK;
}

static hone_status write_all(merge *g)
{
    static const char *const file_type_key[] = { "general.file_type", NULL };
    const hn_gguf *f = g->m->file;
    uint32_t file_type = 0;
    bool new_file_type = false;
    hone_status st;
    int32_t threads = hn_cpu_count();
    TRY(choose_types(g, &file_type, &new_file_type));
    TRY(hn_pool_new(&g->pool, threads < MAX_THREADS ? threads : MAX_THREADS, g->err));
    g->k = hn_kernels_get(hn_cpu_best());
    TRY(hn_gguf_writer_new(&g->w, g->err));
    TRY(hn_gguf_put_all(g->w, f, new_file_type ? file_type_key : NULL, g->err));
    if (new_file_type) TRY(hn_gguf_put_u32(g->w, "general.file_type", file_type, g->err));
    for (uint64_t i = 0; i < hn_gguf_n_tensors(f); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(f, i);
        char name[HN_GGUF_MAX_NAME + 1];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        TRY(hn_gguf_put_tensor(g->w, name, g->type[i], t->ne, t->n_dim, g->err));
    }
    TRY(hn_gguf_write_begin(g->w, g->dst, g->err));
    for (uint64_t i = 0; i < hn_gguf_n_tensors(f); i++) {
        g->t = hn_gguf_tensor_at(f, i);
        TRY(g->changed[i] ? merge_tensor(g, g->type[i]) : copy_tensor(g));
    }
    return hn_gguf_write_end(g->w, g->err);
}

hone_status hone_merge(const hone_merge_params *p, const char *dst, const hone_progress *pr, hone_error *err)
{
    HN_NEED(err, p, "parameters");
    HN_NEED(err, p->base, "the path of a model");
    if (p->n_adapters > 0) HN_NEED(err, p->adapters, "a pointer to n_adapters paths");
    HN_NEED_EACH(err, p->adapters, p->n_adapters, "the path of an adapter");
    HN_NEED(err, dst, "the path of the file to write");
    merge g = { .p = p, .dst = dst, .pr = pr, .err = err };
    hone_status st = open_all(&g);
    if (st == HONE_OK) st = write_all(&g);
    hn_gguf_writer_free(g.w);
    hn_pool_free(g.pool);
    for (int32_t i = 0; g.lora && i < p->n_adapters; i++) hn_lora_close(g.lora[i]);
    free(g.lora);
    free(g.type);
    free(g.changed);
    hone_model_close(g.m);
    return st;
}
