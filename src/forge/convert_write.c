/* convert_write: carries out a plan. Chooses the types, and reads every tensor piece by piece for the recipe; a tensor
 * to be transposed is held whole. Refuses to know what the tensors mean. */
#include "forge/convert.h"

#include "forge/recipe.h"

#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* ---- plans ------------------------------------------------------------------------------ */

void hn_plan_free(hn_plan *p)
{
    free(p->t);
    *p = (hn_plan){ 0 };
}

hone_status hn_plan_add(hn_plan *p, const hn_plan_tensor *t, hone_error *err)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 256;
        hn_plan_tensor *n = realloc(p->t, cap * sizeof *n);
        if (!n) return HN_FAIL(err, HONE_E_NOMEM, "plan of %zu tensors", cap);
        p->t = n;
        p->cap = cap;
    }
    p->t[p->n++] = *t;
    return HONE_OK;
}

static int64_t layer_of(const char *name) { return strncmp(name, "blk.", 4) ? -1 : strtol(name + 4, NULL, 10); }

static int by_place(const void *a, const void *b)
{
    const hn_plan_tensor *x = a, *y = b;
    int64_t lx = layer_of(x->name), ly = layer_of(y->name);
    return lx != ly ? (lx < ly ? -1 : 1) : strcmp(x->name, y->name);
}

static uint64_t elements(const hn_ckpt_tensor *t)
{
    uint64_t n = 1;
    for (int i = 0; i < t->n_dim; i++) n *= t->ne[i]; /* its bytes lie in a file */
    return n;
}

static bool is_float(hn_type t) { return hn_is_float(t) || t == HN_F64; }

enum { PIECE = 1 << 18 }; /* elements looked at at once */

/* Whether every F32 is a BF16: one scan, that ends at the first which is not. */
static hone_status is_bf16(bool *out, const hn_ckpt *c, const hn_ckpt_tensor *t, uint16_t *buf, const hone_progress *pr,
                           hone_error *err)
{
    hone_status st;
    *out = true;
    for (uint64_t at = 0; at < t->n_bytes && *out;) {
        uint64_t n = t->n_bytes - at < 4 * PIECE ? t->n_bytes - at : 4 * PIECE;
        if (hn_interrupted(pr))
            return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted; nothing was written", c->path);
        TRY(hn_source_read(&c->part[t->part], t->off + at, buf, n, err));
        uint16_t low = 0; /* little-endian: the first of each two */
        for (uint64_t i = 0; i < n / 2; i += 2) low |= buf[i];
        *out = low == 0;
        at += n;
    }
    return HONE_OK;
}

static hone_status lossless(hn_type *out, const hn_plan_tensor *t, const hn_ckpt *c, uint16_t *buf,
                            const hone_progress *pr, hone_error *err)
{
    hn_type type = t->src[0]->type;
    bool narrow = true;
    for (int i = 1; i < t->n_src; i++)
        if (t->src[i]->type != type) type = HN_F32;
    if (type == HN_F64 || (t->n_mat && !is_float(type)) || t->ne[0] % hn_type_get(type)->block_elems) type = HN_F32;
    for (int i = 0; i < t->n_src && narrow; i++) {
        narrow = t->src[i]->type == HN_F32;
        if (narrow) {
            hone_status st;
            TRY(is_bf16(&narrow, c, t->src[i], buf, pr, err));
        }
    }
    *out = narrow ? HN_BF16 : type;
    return HONE_OK;
}

/* mixed: what the name makes of it */
static hone_status choose(hn_plan_tensor *t, const hn_ckpt *c, const hn_typing *y, hn_type mixed, uint16_t *buf,
                          const hone_progress *pr, hone_error *err)
{
    const hn_ckpt_tensor *s = t->src[0];
    hone_status st;
    t->type = HN_F32;
    if (t->always_f32) return HONE_OK;
    if (y->name) t->type = mixed;
    if (!y->name || (t->type == HN_F32 && y->base != HN_F32))
        TRY(lossless(&t->type, t, c, buf, pr, err)); /* small matrices that mixtures leave alone */
    const hn_type_info *ti = hn_type_get(t->type);
    bool same = t->type == s->type && t->n_src == 1 && !t->n_mat;
    if (ti && t->ne[0] % ti->block_elems == 0 && same) return HONE_OK;
    if (ti && t->ne[0] % ti->block_elems == 0 && !is_float(t->type) && !is_float(s->type))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s is %s already, and %s would round it a second time: convert the unquantized checkpoint, "
                       "or leave the type as it is",
                       c->part[s->part].path, HN_ESC(s->name.ptr, s->name.len), hn_type_get(s->type)->name, ti->name);
    return hn_typing_check(y, t->name, t->type, t->ne[0], err);
}

hone_status hn_plan_types(hn_plan *p, const hn_ckpt *c, const char *type, const hn_mix_model *mix,
                          const hone_progress *pr, hone_error *err)
{
    hn_typing y;
    uint64_t count[HN_TYPE_COUNT] = { 0 };
    hone_status st;
    if (p->n) qsort(p->t, p->n, sizeof *p->t, by_place);
    TRY(hn_typing_begin(&y, type, "", err));
    p->exact = !type;
    hn_typed *list = calloc(p->n + 1, sizeof *list);
    uint16_t *buf = malloc(4 * PIECE);
    st = list && buf ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "buffer of %d bytes", 4 * PIECE);
    for (size_t i = 0; i < p->n && st == HONE_OK; i++)
        list[i] = (hn_typed){ { p->t[i].name, strlen(p->t[i].name) }, p->t[i].ne, p->t[i].n_dim, HN_F32 };
    if (st == HONE_OK) st = hn_typing_of(&y, mix, list, p->n, err);
    for (size_t i = 0; i < p->n && st == HONE_OK; i++) {
        hn_plan_tensor *t = &p->t[i];
        st = choose(t, c, &y, list[i].type, buf, pr, err);
        if (st == HONE_OK && !t->always_f32) count[t->type] += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    free(list);
    free(buf);
    p->file_type = type ? y.file_type : hn_file_type_of(count);
    return st;
}

/* ---- decoding ------------------------------------------------------------------------------ */

/* x[n] from raw; what is wrong with element *bad, or NULL. */
static const char *decode(float *x, const char *raw, hn_type type, uint64_t n, bool exact, uint64_t *bad)
{
    if (type == HN_F64) {
        for (uint64_t i = 0; i < n; i++) {
            double d;
            memcpy(&d, raw + 8 * i, 8);
            x[i] = (float)d;
            *bad = i;
            if (isfinite(d) && !isfinite(x[i])) return "beyond F32";
            if (exact && isfinite(d) && (double)x[i] != d) return "no F32; --type F32 would round it";
        }
    } else {
        hn_type_get(type)->dequantize(x, raw, (int64_t)n);
    }
    uint64_t i = hn_first_odd(x, HN_F32, n);
    if (i == n) return NULL;
    *bad = i;
    return isnan(x[i]) ? "NaN" : "infinite";
}

typedef struct work {
    const hn_plan *p;
    const hn_ckpt *c;
    float *whole; /* of the tensor that is transposed now */
} work;

/* Element i of `s`, as the checkpoint names it. */
static hone_status bad_element(const work *k, const hn_ckpt_tensor *s, uint64_t i, const char *what, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: element %llu is %s, expected a finite number",
                   k->c->part[s->part].path, HN_ESC(s->name.ptr, s->name.len), (unsigned long long)i, what);
}

static hone_status fault(void *arg, const hn_recipe_tensor *t, uint64_t i, hn_recipe_fault what, hone_error *err)
{
    const work *k = arg;
    const hn_plan_tensor *o = t->what;
    static const char *const words[] = { [HN_FAULT_NAN] = "NaN",
                                         [HN_FAULT_INFINITE] = "infinite",
                                         [HN_FAULT_BEYOND] = "beyond F16; --type BF16 holds it",
                                         [HN_FAULT_BLOCK] =
                                             "in a block with numbers too large for its type; --type BF16 holds them" };
    const char *say = what == HN_FAULT_BEYOND && o->type == HN_BF16 ? "beyond BF16; --type F32 holds it" : words[what];
    if (o->n_mat) { /* column `col` of a matrix became a row */
        uint64_t row = i / o->n_row, m = row / o->n_col, col = row % o->n_col;
        return bad_element(k, o->src[0], (m * o->n_row + i % o->n_row) * o->n_col + col, say, err);
    }
    uint64_t each = elements(o->src[0]);
    return bad_element(k, o->src[i / each], i % each, say, err);
}

/* Elements [first, first + n) of `s`. */
static hone_status read_elements(const work *k, const hn_ckpt_tensor *s, uint64_t first, uint64_t n, void *raw,
                                 hone_error *err)
{
    const hn_type_info *ti = hn_type_get(s->type);
    return hn_source_read(&k->c->part[s->part], s->off + hn_row_bytes(ti, first), raw, hn_row_bytes(ti, n), err);
}

/* Rows out of one source after the other. */
static hone_status read_values(void *arg, const hn_recipe_piece *p, float *x, void *raw, hone_error *err)
{
    const work *k = arg;
    const hn_plan_tensor *o = p->t->what;
    uint64_t ne0 = o->ne[0], each = elements(o->src[0]), at = p->row * ne0, end = at + p->n_row * ne0, n, bad = 0;
    hone_status st;
    for (; at < end; at += n, x += n) {
        const hn_ckpt_tensor *s = o->src[at / each];
        uint64_t first = at % each;
        n = end - at < each - first ? end - at : each - first;
        TRY(read_elements(k, s, first, n, raw, err));
        const char *wrong = decode(x, raw, s->type, n, k->p->exact, &bad);
        if (wrong) return bad_element(k, s, first + bad, wrong, err);
    }
    return HONE_OK;
}

/* What stays as it is, looked at all the same. */
static hone_status read_bytes(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    const work *k = arg;
    const hn_plan_tensor *o = p->t->what;
    uint64_t first = p->row * o->ne[0], n = p->n_row * o->ne[0], bad = 0;
    hone_status st;
    TRY(read_elements(k, o->src[0], first, n, p->out, err));
    const char *wrong = decode(scratch, p->out, o->type, n, k->p->exact, &bad);
    return wrong ? bad_element(k, o->src[0], first + bad, wrong, err) : HONE_OK;
}

static hone_status hold(void *arg, const hn_recipe_tensor *t, hone_error *err)
{
    work *k = arg;
    const hn_plan_tensor *o = t->what;
    const hn_ckpt_tensor *s = o->src[0];
    uint64_t n = elements(s), bad = 0;
    char *raw = malloc(s->n_bytes);
    const char *wrong = NULL;
    hone_status st = HONE_OK;
    k->whole = malloc(4 * n);
    if (!raw || !k->whole) st = HN_FAIL(err, HONE_E_NOMEM, "%s: %llu elements", o->name, (unsigned long long)n);
    else if ((st = read_elements(k, s, 0, n, raw, err)) == HONE_OK &&
             (wrong = decode(k->whole, raw, s->type, n, k->p->exact, &bad)))
        st = bad_element(k, s, bad, wrong, err);
    free(raw);
    return st;
}

static void let_go(void *arg, const hn_recipe_tensor *t)
{
    work *k = arg;
    free(k->whole);
    k->whole = NULL;
}

static hone_status transposed(void *arg, const hn_recipe_piece *p, float *x, void *scratch, hone_error *err)
{
    const work *k = arg;
    const hn_plan_tensor *o = p->t->what;
    for (uint64_t r = p->row; r < p->row + p->n_row; r++) {
        uint64_t m = r / o->n_col, col = r % o->n_col;
        for (uint64_t i = 0; i < o->n_row; i++) *x++ = k->whole[(m * o->n_row + i) * o->n_col + col];
    }
    return HONE_OK;
}

static const hn_recipe_source as_it_is = { .bytes = read_bytes };
static const hn_recipe_source in_rows = { .values = read_values, .fault = fault };
static const hn_recipe_source turned = { .values = transposed, .fault = fault, .open = hold, .close = let_go };

static const hn_recipe_source *source_of(const hn_plan_tensor *o)
{
    if (o->n_mat) return &turned;
    return o->n_src == 1 && o->type == o->src[0]->type ? &as_it_is : &in_rows;
}

hone_status hn_plan_write(const hn_plan *p, const hn_ckpt *c, hn_gguf_writer *w, const char *dst,
                          const hone_progress *pr, hone_error *err)
{
    work k = { .p = p, .c = c };
    hn_recipe_tensor *t = calloc(p->n + 1, sizeof *t);
    hn_recipe r = { .dst = dst, .t = t, .n = p->n, .arg = &k, .pr = pr };
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %zu tensors", dst, p->n);
    for (size_t i = 0; i < p->n; i++) {
        const hn_plan_tensor *o = &p->t[i];
        t[i] = (hn_recipe_tensor){ .name = { o->name, strlen(o->name) },
                                   .type = o->type,
                                   .n_dim = o->n_dim,
                                   .ne = { o->ne[0], o->ne[1], o->ne[2], o->ne[3] },
                                   .source = source_of(o),
                                   .what = o };
        for (int32_t x = 0; x < o->n_src; x++) { /* raw, or decoded to be looked at */
            size_t each = o->src[x]->type == HN_F64 ? sizeof(double) : sizeof(float);
            if (hn_recipe_piece_elems(&t[i]) * each > r.scratch_bytes)
                r.scratch_bytes = hn_recipe_piece_elems(&t[i]) * each;
        }
    }
    hone_status st = hn_recipe_write(&r, w, err);
    free(k.whole);
    free(t);
    return st;
}
