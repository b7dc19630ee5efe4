/* merge: W' = W + Σ s·BA in the base's file, one pass for all adapters. Matrices that an
 * adapter changes are decoded, changed in f32 and encoded again; everything else is copied
 * byte for byte, keys and names as the file has them, and so are rows to which nothing is
 * added. Says of each matrix what its encoding lost. Refuses to know sessions. */
#define _GNU_SOURCE
#include "forge/recipe.h"
#include "base/floats.h"
#include "kernels/kernels.h"
#include "model/lora.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* What one adapter adds to a tensor. */
typedef struct addend {
    const hn_lora_pair *pair;
    float s; /* the adapter's scale times the pair's */
} addend;

typedef struct merge {
    const hone_merge_params *p;
    const char *dst;
    const hone_progress *pr;
    hone_error *err;
    hone_model *m;
    hn_lora **lora; /* [n_adapters] */
    hn_type *type;  /* [tensors] in the new file */
    hn_typed *list; /* [tensors] what p->type makes of each */
    bool *changed;  /* [tensors] */
    const hn_kernels *k;
    hn_gguf_writer *w;
    double *sums; /* of the tensor at work: [its rows][3] of squares: W, ΔW, error */
    float factor; /* of that tensor */
    addend *add;  /* [n_add] of that tensor, in the order of adapters; room for all pairs of all adapters */
    size_t n_add;
} merge;

static float scale_of(const merge *g, int32_t adapter) { return g->p->scales ? g->p->scales[adapter] : 1.0f; }

static bool is_tensor(const hn_lora_pair *p, const hn_gguf_tensor *t)
{
    return strlen(p->name) == t->name.len && !memcmp(p->name, t->name.ptr, t->name.len);
}

typedef struct finding {
    const hn_gguf_tensor *t;
    const float *factor;
} finding;
static void find_factor(void *arg, const hn_weight *w, int32_t il)
{
    finding *f = arg;
    int64_t first;
    if (w->factor && hn_weight_is_of(w, f->t, &first)) f->factor = w->factor;
}

/* What the numbers of t are times in the model, which is not theirs. */
static float factor_of(const merge *g, const hn_gguf_tensor *t)
{
    finding f = { t, NULL };
    hn_each_weight(g->m, find_factor, &f);
    return f.factor ? *f.factor : 1;
}

/* d[n] = Σ s·BA of row r, in the units of t; h: room for a row of s·B. */
static void add_rows(const merge *g, const hn_gguf_tensor *t, uint64_t r, float *d, float *h)
{
    int64_t n = (int64_t)t->ne[0];
    memset(d, 0, (size_t)n * sizeof *d);
    for (size_t i = 0; i < g->n_add; i++) {
        const hn_lora_pair *p = g->add[i].pair;
        for (int64_t j = 0; j < p->rank; j++) h[j] = g->add[i].s * p->b[(int64_t)r * p->rank + j];
        g->k->low_rank(d, p->a, n, h, p->rank, n);
    }
}

/* The pairs that t has, looked for once for all of its rows. */
static void find_pairs(merge *g, const hn_gguf_tensor *t)
{
    g->n_add = 0;
    for (int32_t a = 0; a < g->p->n_adapters; a++)
        for (int32_t q = 0; q < g->lora[a]->n_pair && scale_of(g, a) != 0; q++) {
            const hn_lora_pair *p = &g->lora[a]->pair[q];
            if (is_tensor(p, t)) g->add[g->n_add++] = (addend){ p, scale_of(g, a) * p->scale / g->factor };
        }
}

/* Row r of t, in the type `to`; x and d: room for a row. False: it has numbers that `to` does not hold. */
static bool merge_row(merge *g, const hn_gguf_tensor *t, hn_type type, uint64_t r, char *out, float *x, float *d,
                      float *h)
{
    const hn_type_info *from = hn_type_get(t->type), *to = hn_type_get(type);
    int64_t n = (int64_t)t->ne[0];
    double *sum = g->sums + 3 * r;
    const char *old = (const char *)t->data + r * hn_row_bytes(from, t->ne[0]);
    bool moved = false, fits = true;
    from->dequantize(x, old, n);
    add_rows(g, t, r, d, h);
    sum[0] = sum[1] = sum[2] = 0;
    for (int64_t c = 0; c < n; c++) {
        sum[0] += (double)x[c] * (double)x[c];
        sum[1] += (double)d[c] * (double)d[c];
        moved = moved || d[c] != 0;
        x[c] += d[c];
        fits = fits && isfinite(x[c]) && (type != HN_F16 || fabsf(x[c]) < 65520);
    }
    if (!moved && from == to) { /* encoding it again would change it */
        memcpy(out, old, hn_row_bytes(from, t->ne[0]));
        return fits;
    }
    to->quantize(out, x, n, NULL);
    to->dequantize(d, out, n);
    for (int64_t c = 0; c < n; c++) {
        double e = (double)d[c] - (double)x[c];
        fits = fits && isfinite(d[c]);
        sum[2] += e * e;
    }
    return fits;
}

/* scratch: two rows and a row of s·B. */
static hone_status merge_rows(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    merge *g = arg;
    const hn_gguf_tensor *t = p->t->what;
    float *x = scratch, *d = x + t->ne[0], *h = d + t->ne[0];
    uint64_t out_row = p->n_bytes / p->n_row;
    for (uint64_t i = 0; i < p->n_row; i++)
        if (!merge_row(g, t, p->t->type, p->row + i, (char *)p->out + i * out_row, x, d, h))
            return HN_FAIL(err, HONE_E_NUMERIC, "%s: row %lld of %s has numbers that %s does not hold after merging",
                           g->p->base, (long long)(p->row + i), HN_ESC(t->name.ptr, t->name.len),
                           hn_type_get(p->t->type)->name);
    return HONE_OK;
}

static hone_status make_sums(void *arg, const hn_recipe_tensor *t, hone_error *err)
{
    merge *g = arg;
    g->factor = factor_of(g, t->what);
    find_pairs(g, t->what);
    g->sums = malloc(t->ne[1] * 3 * sizeof *g->sums);
    return g->sums ? HONE_OK
                   : HN_FAIL(err, HONE_E_NOMEM, "%s: sums of %llu rows", g->p->base, (unsigned long long)t->ne[1]);
}

static void tell(void *arg, const hn_recipe_tensor *t)
{
    merge *g = arg;
    const hn_gguf_tensor *from = t->what;
    double s[3] = { 0 }, n = (double)t->ne[1] * (double)t->ne[0];
    char name[HN_GGUF_MAX_NAME + 1];
    for (uint64_t r = 0; r < t->ne[1]; r++)
        for (int i = 0; i < 3; i++) s[i] += g->sums[3 * r + (uint64_t)i];
    free(g->sums);
    g->sums = NULL;
    snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
    const hone_merge_tensor m = { .name = name,
                                  .from = hn_type_get(from->type)->name,
                                  .to = hn_type_get(t->type)->name,
                                  .n = (uint64_t)n,
                                  .weight_rms = sqrt(s[0] / n),
                                  .delta_rms = sqrt(s[1] / n),
                                  .error_rms = sqrt(s[2] / n) };
    if (g->p->report) g->p->report(g->p->report_arg, &m);
}

static hone_status copy(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    const hn_gguf_tensor *t = p->t->what;
    p->data = (const char *)t->data + p->at;
    return HONE_OK;
}

/* ---- what is to be done ----------------------------------------------------------------------------- */

static hone_status open_all(merge *g)
{
    const hone_merge_params *p = g->p;
    const hone_model_params mp = { .packed = "off" };
    hone_status st;
    if (p->n_adapters < 1)
        return HN_FAIL(g->err, HONE_E_ARG, "%s: %d adapters to merge, expected at least 1", p->base, p->n_adapters);
    for (int32_t i = 0; p->scales && i < p->n_adapters; i++)
        if (!isfinite(p->scales[i]))
            return HN_FAIL(g->err, HONE_E_ARG, "%s: scale %g, expected a finite number", p->adapters[i],
                           (double)p->scales[i]);
    TRY(hone_model_open(&g->m, p->base, &mp, g->err));
    const hn_file_use out = { g->dst, "the result", NULL, HN_FILE_WRITTEN };
    TRY(hn_files_apart((const hn_file_use[]){ out, { p->base, "the base itself", NULL, HN_FILE_READ } }, 2, g->err));
    for (int32_t i = 0; i < p->n_adapters; i++)
        TRY(hn_files_apart((const hn_file_use[]){ out, { p->adapters[i], "an adapter to merge", NULL, HN_FILE_READ } },
                           2, g->err));
    if (!(g->lora = calloc((size_t)p->n_adapters, sizeof *g->lora)))
        return HN_FAIL(g->err, HONE_E_NOMEM, "%d adapters", p->n_adapters);
    size_t n_pair = 0;
    for (int32_t i = 0; i < p->n_adapters; i++) {
        TRY(hn_lora_open(&g->lora[i], g->m, p->adapters[i], g->err));
        n_pair += (size_t)g->lora[i]->n_pair;
    }
    g->add = calloc(n_pair + 1, sizeof *g->add);
    return g->add ? HONE_OK : HN_FAIL(g->err, HONE_E_NOMEM, "%zu pairs of adapters", n_pair);
}

/* The type of each tensor in the new file. */
static hone_status choose_types(merge *g, hn_typing *y, bool *new_file_type)
{
    const hn_gguf *f = g->m->file;
    const hn_mix_model mix = hn_typing_model(g->m);
    uint64_t n = hn_gguf_n_tensors(f), bytes[2] = { 0 };
    const char *type = g->p->type && strcasecmp(g->p->type, "keep") ? g->p->type : NULL;
    hone_status st;
    TRY(hn_typing_begin(y, type, "; expected keep, F32, F16, Q8_0, Q4_K_M …", g->err));
    hn_typed *list = g->list = calloc(n + 1, sizeof *list);
    g->type = malloc((n + 1) * sizeof *g->type);
    g->changed = calloc(n + 1, sizeof *g->changed);
    if (!list || !g->type || !g->changed)
        return HN_FAIL(g->err, HONE_E_NOMEM, "%s: %llu tensors", g->p->base, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(f, i);
        list[i] = (hn_typed){ t->name, t->ne, t->n_dim, t->type };
    }
    TRY(hn_typing_of(y, &mix, list, n, g->err));
    for (uint64_t i = 0; i < n; i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(f, i);
        for (int32_t a = 0; a < g->p->n_adapters; a++)
            for (int32_t q = 0; q < g->lora[a]->n_pair && scale_of(g, a) != 0; q++)
                g->changed[i] |= is_tensor(&g->lora[a]->pair[q], t);
        g->type[i] = g->changed[i] ? list[i].type : t->type;
        const hn_type_info *ti = hn_type_get(g->type[i]);
        if (g->changed[i] && type && !ti->quantize)
            return HN_FAIL(g->err, HONE_E_UNSUPPORTED,
                           "%s: hone has no encoder for %s; expected a type such as keep, F16, Q8_0 or Q4_K_M",
                           HN_ESC(t->name.ptr, t->name.len), ti->name);
        if (g->changed[i] && (!ti->quantize || t->ne[0] % ti->block_elems))
            g->type[i] = HN_F16; /* the report says so */
        uint64_t size = 0;
        hn_tensor_nbytes(hn_type_get(g->type[i]), t->ne, 4, &size);
        bytes[g->changed[i]] += size;
    }
    *new_file_type = type && bytes[1] > bytes[0];
    return HONE_OK;
}

static hone_status write_tensors(merge *g)
{
    static const hn_recipe_source merged = { .bytes = merge_rows, .open = make_sums, .close = tell };
    static const hn_recipe_source copied = { .bytes = copy };
    uint64_t n = hn_gguf_n_tensors(g->m->file);
    hn_recipe_tensor *list = calloc(n + 1, sizeof *list);
    hn_recipe r = { .dst = g->dst, .t = list, .n = n, .arg = g, .pr = g->pr };
    if (!list) return HN_FAIL(g->err, HONE_E_NOMEM, "%s: %llu tensors", g->p->base, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g->m->file, i), *in_file = hn_gguf_tensor_in_file(g->m->file, i),
                             *as = g->changed[i] ? t : in_file;
        list[i] = (hn_recipe_tensor){ .name = in_file->name,
                                      .type = g->type[i],
                                      .n_dim = as->n_dim,
                                      .ne = { as->ne[0], as->ne[1], as->ne[2], as->ne[3] },
                                      .source = g->changed[i] ? &merged : &copied,
                                      .what = t };
        size_t need = (2 * t->ne[0] + HN_LORA_MAX_RANK) * sizeof(float);
        if (g->changed[i] && need > r.scratch_bytes) r.scratch_bytes = need;
    }
    hone_status st = hn_recipe_write(&r, g->w, g->err);
    free(list);
    return st;
}

static hone_status write_all(merge *g)
{
    const char *except[] = { NULL, NULL }, *chat = NULL;
    bool new_file_type = false;
    hn_typing y;
    hone_status st;
    TRY(choose_types(g, &y, &new_file_type));
    g->k = hn_kernels_get(hn_cpu_best());
    TRY(hn_gguf_writer_new(&g->w, g->err));
    for (int32_t i = 0; i < g->p->n_adapters; i++) /* the last that has one: it was trained to be talked to so */
        if (scale_of(g, i) != 0 && *g->lora[i]->chat_template) chat = g->lora[i]->chat_template;
    if (new_file_type) except[0] = "general.file_type";
    TRY(hn_gguf_put_filed(g->w, g->m->file, except, chat ? HN_TEMPLATE_KEYS : NULL, g->err));
    if (chat) TRY(hn_gguf_put_str(g->w, "tokenizer.chat_template", chat, strlen(chat), g->err));
    if (new_file_type) TRY(hn_gguf_put_u32(g->w, "general.file_type", y.file_type, g->err));
    return write_tensors(g);
}

hone_status hone_merge(const hone_merge_params *p, const char *dst, const hone_progress *pr, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, p, "parameters");
    HN_NEED(err, p->base, "the path of a model");
    if (p->n_adapters > 0) HN_NEED(err, p->adapters, "a pointer to n_adapters paths");
    HN_NEED_EACH(err, p->adapters, p->n_adapters, "the path of an adapter");
    HN_NEED(err, dst, "the path of the file to write");
    merge g = { .p = p, .dst = dst, .pr = pr, .err = err };
    hone_status st = open_all(&g);
    if (st == HONE_OK) st = write_all(&g);
    hn_gguf_writer_free(g.w);
    for (int32_t i = 0; g.lora && i < p->n_adapters; i++) hn_lora_close(g.lora[i]);
    free(g.lora);
    free(g.add);
    free(g.sums);
    free(g.type);
    free(g.list);
    free(g.changed);
    hone_model_close(g.m);
    return st;
}
