/* lora_halves: see lora_halves.h. */
#include "forge/lora_halves.h"

#include <math.h>
#include <stdlib.h>

static hone_status take_rows(void *arg, const hn_recipe_piece *p, float *x, void *scratch, hone_error *err)
{
    const hn_lora_half_of *h = p->t->what;
    uint64_t cols = p->t->ne[0];
    for (uint64_t r = 0; r < p->n_row; r++, x += cols) {
        const float *from = h->x + (p->row + r) * cols;
        if (h->factor == 1.0f) memcpy(x, from, cols * sizeof *x);
        else
            for (uint64_t i = 0; i < cols; i++) x[i] = from[i] * h->factor;
    }
    return HONE_OK;
}

static hone_status say_fault(void *arg, const hn_recipe_tensor *t, uint64_t i, hn_recipe_fault what, hone_error *err)
{
    const hn_lora_half_of *h = t->what;
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: element %llu is %g, expected a finite number%s", h->name,
                   (unsigned long long)i, (double)(h->x[i] * h->factor),
                   what == HN_FAULT_BEYOND ? " of F16: write F32" : "");
}

hone_status hn_lora_halves_make(hn_lora_halves *out, const char *path, const hn_lora_pair *pair, int32_t n_pair,
                                hn_type type, hone_error *err)
{
    static const hn_recipe_source source = { .values = take_rows, .fault = say_fault };
    *out = (hn_lora_halves){ .n = 0 };
    if (type != HN_F32 && type != HN_F16)
        return HN_FAIL(err, HONE_E_ARG, "%s: adapters are written as F32 or F16", path);
    if (n_pair < 1) return HN_FAIL(err, HONE_E_ARG, "%s: an adapter without pairs", path);
    out->half = calloc(2 * (size_t)n_pair, sizeof *out->half);
    out->t = calloc(2 * (size_t)n_pair, sizeof *out->t);
    if (!out->half || !out->t) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %d pairs", path, n_pair);
    for (; out->n < 2 * (size_t)n_pair; out->n++) {
        const hn_lora_pair *p = &pair[out->n / 2];
        bool b = out->n % 2;
        hn_lora_half_of *h = &out->half[out->n];
        *h = (hn_lora_half_of){ .x = b ? p->b : p->a, .factor = 1 };
        if (snprintf(h->name, sizeof h->name, "%s.lora_%c", p->name, b ? 'b' : 'a') >= (int)sizeof h->name)
            return HN_FAIL(err, HONE_E_ARG, "%s.lora_%c: longer than %zu bytes", p->name, b ? 'b' : 'a',
                           sizeof h->name - 1);
        out->t[out->n] =
            (hn_recipe_tensor){ .name = { h->name, strlen(h->name) },
                                .type = type,
                                .n_dim = 2,
                                .ne = { (uint64_t)(b ? p->rank : p->n_in), (uint64_t)(b ? p->n_out : p->rank), 1, 1 },
                                .source = &source,
                                .what = h };
    }
    return HONE_OK;
}

void hn_lora_halves_free(hn_lora_halves *h)
{
    free(h->half);
    free(h->t);
}
