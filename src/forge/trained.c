/* trained: see trained.h. Owns what becomes of a model's tensors when some have new values. */
#include "forge/trained.h"

#include "forge/recipe.h"

#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

typedef struct tensor {
    const hn_gguf_tensor *src;    /* as the file has it */
    hone_str name;                /* as the model has it */
    const hn_trained_tensor *now; /* NULL: not trained */
    hn_type type;
} tensor;

static uint64_t elements(const hn_gguf_tensor *t) { return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; }

static hone_status find_tensors(tensor *t, uint64_t n, const hone_model *base, const hn_trained *p, hone_error *err)
{
    for (int32_t i = 0; i < p->n_tensor; i++) {
        const hn_trained_tensor *x = &p->tensor[i];
        tensor *found = NULL;
        for (uint64_t k = 0; k < n && !found; k++)
            if (t[k].name.len == strlen(x->name) && memcmp(t[k].name.ptr, x->name, t[k].name.len) == 0) found = &t[k];
        if (!found) return HN_FAIL(err, HONE_E_ARG, "%s: no tensor \"%s\", which was trained", base->path, x->name);
        if (found->now) return HN_FAIL(err, HONE_E_ARG, "%s: tensor \"%s\" is given twice", base->path, x->name);
        if (x->rows < 1 || x->cols < 1 || (uint64_t)x->rows * (uint64_t)x->cols != elements(found->src) ||
            (found->src->n_dim > 1 && (uint64_t)x->cols != found->src->ne[0]))
            return HN_FAIL(err, HONE_E_ARG,
                           "%s: tensor \"%s\" has rows of %llu and %llu elements, trained were %lld rows of %lld",
                           base->path, x->name, (unsigned long long)found->src->ne[0],
                           (unsigned long long)elements(found->src), (long long)x->rows, (long long)x->cols);
        found->now = x;
    }
    return HONE_OK;
}

static hone_status choose_type(tensor *x, const hn_typing *y, hn_type mixed, hone_error *err)
{
    x->type = x->src->type;
    if (!x->now) return HONE_OK;
    x->type = x->src->n_dim > 1 && (y->name || hn_is_float(x->type)) ? mixed : HN_F32;
    const hn_type_info *ti = hn_type_get(x->type);
    if (ti && !ti->quantize)
        return HN_FAIL(err, HONE_E_ARG, "%s: hone does not write %s, which %s asks for; expected another type",
                       x->now->name, ti->name, y->name);
    if (!ti || x->src->ne[0] % ti->block_elems)
        return HN_FAIL(err, HONE_E_ARG, "%s: rows of %llu cannot be %s, which %s asks for", x->now->name,
                       (unsigned long long)x->src->ne[0], ti ? ti->name : "?", y->name);
    return HONE_OK;
}

static hone_status choose_types(tensor *t, uint64_t n, const hone_model *base, hn_typing *y, hone_error *err)
{
    const hn_mix_model mix = hn_typing_model(base);
    hn_typed *list = calloc((size_t)n + 1, sizeof *list);
    if (!list) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %llu tensors", base->path, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) list[i] = (hn_typed){ t[i].name, t[i].src->ne, t[i].src->n_dim, t[i].src->type };
    hone_status st = hn_typing_of(y, &mix, list, n, err);
    for (uint64_t i = 0; i < n && st == HONE_OK; i++) st = choose_type(&t[i], y, list[i].type, err);
    free(list);
    return st;
}

/* ---- the file -------------------------------------------------------------------------------------- */

static hone_status values(void *arg, const hn_recipe_piece *p, float *x, void *scratch, hone_error *err)
{
    const tensor *t = p->t->what;
    uint64_t ne0 = t->src->ne[0];
    memcpy(x, t->now->p + p->row * ne0, p->n_row * ne0 * sizeof *x);
    return HONE_OK;
}

static hone_status fault(void *arg, const hn_recipe_tensor *r, uint64_t i, hn_recipe_fault what, hone_error *err)
{
    const tensor *t = r->what;
    const char *say = what == HN_FAULT_BEYOND  ? "beyond its type"
                      : what == HN_FAULT_BLOCK ? "in a block with numbers too large for its type"
                                               : "expected a finite number";
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: element %lld is %g, %s; nothing was written", t->now->name, (long long)i,
                   (double)t->now->p[i], say);
}

static hone_status kept(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    const tensor *t = p->t->what;
    p->data = (const char *)t->src->data + p->at;
    return HONE_OK;
}

static hone_status write_all(hn_gguf_writer *w, const tensor *t, uint64_t n, const hn_trained *p, const char *dst,
                             hone_error *err)
{
    static const hn_recipe_source trained = { .values = values, .fault = fault };
    static const hn_recipe_source as_it_is = { .bytes = kept };
    hn_recipe_tensor *list = calloc((size_t)n + 1, sizeof *list);
    hn_recipe r = { .dst = dst, .t = list, .n = n, .n_threads = p->n_threads };
    if (!list) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %llu tensors", dst, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        const hn_gguf_tensor *s = t[i].src;
        list[i] = (hn_recipe_tensor){ .name = s->name,
                                      .type = t[i].type,
                                      .n_dim = s->n_dim,
                                      .ne = { s->ne[0], s->ne[1], s->ne[2], s->ne[3] },
                                      .source = t[i].now ? &trained : &as_it_is,
                                      .what = &t[i] };
    }
    hone_status st = hn_recipe_write(&r, w, err);
    free(list);
    return st;
}

/* file_type of weights that keep their types: what most of them are. */
static uint32_t file_type_of(const tensor *t, uint64_t n)
{
    uint64_t count[HN_TYPE_COUNT] = { 0 };
    for (uint64_t i = 0; i < n; i++)
        if (t[i].src->n_dim > 1) count[t[i].type] += elements(t[i].src);
    return hn_file_type_of(count);
}

static hone_status put_trained(hn_gguf_writer *w, const tensor *t, uint64_t n, const hone_model *base,
                               const hn_trained *p, hone_error *err)
{
    const char *except[7] = { "general.file_type", "general.quantization_version", "hone.synth.shape",
                              "hone.synth.type", "hone.synth.seed" };
    size_t n_except = 5;
    if (p->name) except[n_except++] = "general.name";
    uint32_t file_type = 0;
    hone_status st;
    if (!p->type || !hn_mix_find(p->type, NULL, &file_type)) file_type = file_type_of(t, n);
    TRY(hn_gguf_put_filed(w, base->file, except, p->chat_template ? HN_TEMPLATE_KEYS : NULL, err));
    if (p->name) TRY(hn_gguf_put_str(w, "general.name", p->name, strlen(p->name), err));
    if (p->chat_template)
        TRY(hn_gguf_put_str(w, "tokenizer.chat_template", p->chat_template, strlen(p->chat_template), err));
    TRY(hn_gguf_put_u32(w, "general.file_type", file_type, err));
    TRY(hn_gguf_put_u32(w, "general.quantization_version", 2, err));
    return HONE_OK;
}

/* Base's tensors with what becomes of them; *out is the caller's to free on success. */
static hone_status plan_trained(tensor **out, const hone_model *base, const hn_trained *p, hone_error *err)
{
    uint64_t n = hn_gguf_n_tensors(base->file);
    hn_typing y;
    hone_status st;
    *out = NULL;
    TRY(hn_typing_begin(&y, p->type, "; expected F32, F16, BF16, Q8_0, Q4_K_M or another mixture name", err));
    tensor *t = calloc((size_t)n + 1, sizeof *t);
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %llu tensors", base->path, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++)
        t[i] = (tensor){ .src = hn_gguf_tensor_in_file(base->file, i), .name = hn_gguf_tensor_at(base->file, i)->name };
    st = find_tensors(t, n, base, p, err);
    if (st == HONE_OK) st = choose_types(t, n, base, &y, err);
    if (st == HONE_OK) *out = t;
    else free(t);
    return st;
}

hone_status hn_check_trained(const hone_model *base, const hn_trained *p, hone_error *err)
{
    tensor *t;
    hone_status st = plan_trained(&t, base, p, err);
    free(t);
    return st;
}

hone_status hn_write_trained(const char *dst, const hone_model *base, const hn_trained *p, hone_error *err)
{
    uint64_t n = hn_gguf_n_tensors(base->file);
    tensor *t;
    hn_gguf_writer *w = NULL;
    hone_status st = plan_trained(&t, base, p, err);
    if (st == HONE_OK && (st = hn_gguf_writer_new(&w, err)) == HONE_OK &&
        (st = put_trained(w, t, n, base, p, err)) == HONE_OK)
        st = write_all(w, t, n, p, dst, err);
    hn_gguf_writer_free(w);
    free(t);
    return st;
}
