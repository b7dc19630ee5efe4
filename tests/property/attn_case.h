/* A cache of random vectors for tests of attention: filled by the scalar level, read number by number. Its caller has
 * rndf(). */
#ifndef HN_ATTN_CASE_H
#define HN_ATTN_CASE_H

#include "kernels/kernels.h"

enum { MAX_D = 576 };

/* One number of the cache, by the drawing in kernels.h. */
static double cached(hn_cache_type type, bool is_v, const void *plane, int64_t d, int64_t t, int64_t i)
{
    int64_t d4 = (d + 3) / 4 * 4, n_g = (d + 31) / 32, lane = t % 16, block = t / 16;
    if (type != HN_CACHE_Q8_0) {
        int64_t at = is_v ? t * d + i : (block * d + i) * 16 + lane;
        return type == HN_CACHE_F16 ? hn_f16_to_f32(((const uint16_t *)plane)[at]) : ((const float *)plane)[at];
    }
    const uint8_t *b = (const uint8_t *)plane + block * 16 * (d4 + 2 * n_g);
    uint16_t scale;
    memcpy(&scale, b + 16 * d4 + 2 * (is_v ? lane * n_g + i / 32 : i / 32 * 16 + lane), 2);
    int code = is_v ? (int8_t)b[lane * d4 + i] : b[(i / 4 * 16 + lane) * 4 + i % 4] - 128;
    return (double)hn_f16_to_f32(scale) * code;
}

/* q as the q8_0 scores see it */
static void q_seen(hn_cache_type type, double *y, const float *q, int64_t d)
{
    for (int64_t g = 0; g < d; g += 32) {
        int64_t end = g + 32 < d ? g + 32 : d;
        double amax = 0;
        for (int64_t i = g; i < end; i++) amax = fmax(amax, fabs((double)q[i]));
        for (int64_t i = g; i < end; i++)
            y[i] = type == HN_CACHE_Q8_0 && amax > 0 ? rint(q[i] * 127 / amax) * amax / 127 : q[i];
    }
}

typedef struct attn_case {
    hn_cache_type type;
    int64_t d, n_q, n_tok, n_kv;      /* keys of the first token */
    int64_t window, split_first, d_v; /* d_v: of latent rows, or of values that are narrower; 0: keys and values of d */
    bool narrower;                    /* rows of values are d_v wide */
    int64_t n_end;                    /* keys that there are; 0: up to the last token's own */
    float cap;
    const float *sink, *fade; /* [n_q] or NULL */
    int64_t ahead;            /* so many of its keys are behind the first token, where scores fade */
    void *k, *v;
    float *q;
    /* the same pages somewhere else: what the calls under test read */
    char *far_k, *far_v;
    uint32_t *page;
} attn_case;

/* Keys that token t sees the last of. */
static int64_t keys_of(const attn_case *c, int64_t t)
{
    return c->n_end && c->n_kv + t > c->n_end ? c->n_end : c->n_kv + t;
}

static bool is_latent(const attn_case *c) { return c->d_v && !c->narrower; }
/* How wide rows of values are. */
static int64_t row_v(const attn_case *c) { return c->narrower ? c->d_v : c->d; }

static size_t plane_bytes(hn_cache_type type, int64_t d, int64_t n_pos)
{
    return hn_cache_block_bytes(type, d) * (size_t)((n_pos + 63) / 64 * 4);
}

/* Pages in an order of chance, one in two of the places in use; what lies between is NaN. */
static void scatter_case(attn_case *c, int64_t n_page)
{
    size_t bytes = plane_bytes(c->type, c->d, HN_PAGE);
    size_t bytes_v = plane_bytes(c->type, row_v(c), HN_PAGE);
    c->far_k = malloc(2 * bytes * (size_t)n_page);
    c->far_v = malloc(2 * bytes * (size_t)n_page);
    c->page = malloc((size_t)n_page * sizeof *c->page);
    memset(c->far_k, 0xFF, 2 * bytes * (size_t)n_page);
    memset(c->far_v, 0xFF, 2 * bytes * (size_t)n_page);
    for (int64_t i = 0; i < n_page; i++) c->page[i] = (uint32_t)i;
    for (int64_t i = n_page - 1; i > 0; i--) {
        int64_t other = (int64_t)(hn_rand64(77, (uint64_t)(n_page * 1000 + i)) % (uint64_t)(i + 1));
        uint32_t t = c->page[i];
        c->page[i] = c->page[other];
        c->page[other] = t;
    }
    for (int64_t i = 0; i < n_page; i++) {
        c->page[i] = 2 * c->page[i] + 1;
        memcpy(c->far_k + c->page[i] * bytes, (char *)c->k + (size_t)i * bytes, bytes);
        /* pages are as far apart as those of keys */
        memcpy(c->far_v + c->page[i] * bytes, (char *)c->v + (size_t)i * bytes, bytes_v);
    }
}

static void fill_case(attn_case *c)
{
    int64_t n_all = keys_of(c, c->n_tok - 1), n_page = (n_all + HN_PAGE - 1) / HN_PAGE;
    size_t bytes = plane_bytes(c->type, c->d, n_page * HN_PAGE);
    float row[MAX_D];
    c->k = malloc(bytes);
    c->v = malloc(bytes);
    memset(c->k, 0xFF, bytes); /* keys beyond the last are NaN and must not matter */
    memset(c->v, 0xFF, bytes);
    c->q = malloc((size_t)(c->n_tok * c->n_q * c->d) * sizeof(float));
    const hn_kernels *k = hn_kernels_get(HN_CPU_SCALAR);
    for (int64_t t = 0; t < n_all; t++) {
        for (int64_t i = 0; i < c->d; i++) row[i] = rndf() * 3.0f;
        (is_latent(c) ? k->store_v : k->store_k)[c->type](c->k, row, c->d, t);
        for (int64_t i = 0; i < c->d; i++) row[i] = rndf() * 2.0f;
        k->store_v[c->type]((char *)c->v + (size_t)(t / HN_PAGE) * plane_bytes(c->type, c->d, HN_PAGE), row, row_v(c),
                            t % HN_PAGE);
    }
    for (int64_t i = 0; i < c->n_tok * c->n_q * c->d; i++) c->q[i] = rndf() * 3.0f;
    if (is_latent(c)) memcpy(c->v, c->k, bytes);
    scatter_case(c, n_page);
}

static void free_case(attn_case *c)
{
    free(c->k);
    free(c->v);
    free(c->q);
    free(c->far_k);
    free(c->far_v);
    free(c->page);
}

static const char *page_of(const attn_case *c, int64_t t)
{
    return (const char *)c->v + (size_t)(t / HN_PAGE) * plane_bytes(c->type, c->d, HN_PAGE);
}

/* Keys or values of all positions, [n][d]; those before what any query sees are not numbers. */
static double *held(const attn_case *c, bool values)
{
    int64_t n = keys_of(c, c->n_tok - 1);
    double *x = malloc((size_t)(n * c->d) * sizeof *x);
    for (int64_t t = 0; t < n; t++)
        for (int64_t i = 0; i < c->d; i++)
            x[t * c->d + i] = !values         ? cached(c->type, is_latent(c), c->k, c->d, t, i)
                              : i >= row_v(c) ? 0
                                              : cached(c->type, true, page_of(c, t), row_v(c), t % HN_PAGE, i);
    return x;
}

#endif
