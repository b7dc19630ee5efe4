/* convert_write: carries out a plan. Chooses the types, and writes every tensor in pieces that
 * threads read, check and encode; which thread does what changes nothing. Memory is bounded by
 * the pieces, except that a tensor to be transposed is held whole. Refuses to know what the
 * tensors mean. */
#include "model/convert.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define TRY(x) do { if ((st = (x)) != HONE_OK) return st; } while (0)

/* ---- plans ------------------------------------------------------------------------------ */

void hn_plan_free(hn_plan *p)
{
    free(p->t);
    *p = (hn_plan){0};
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

static bool interrupted(const hone_progress *pr) { return pr && pr->abort_fn && pr->abort_fn(pr->arg); }

static uint64_t elements(const hn_ckpt_tensor *t)
{
    uint64_t n = 1;
    for (int i = 0; i < t->n_dim; i++) n *= t->ne[i]; /* its bytes lie in a file */
    return n;
}

static bool is_float(hn_type t) { return t == HN_F32 || t == HN_F16 || t == HN_BF16 || t == HN_F64; }

enum { PIECE = 1 << 18 }; /* elements, or one row if that is longer */

/* Whether every F32 is a BF16: one scan, that ends at the first which is not. */
static hone_status is_bf16(bool *out, const hn_ckpt *c, const hn_ckpt_tensor *t, uint16_t *buf, const hone_progress *pr, hone_error *err)
{
    hone_status st;
    *out = true;
    for (uint64_t at = 0; at < t->n_bytes && *out;) {
        uint64_t n = t->n_bytes - at < 4 * PIECE ? t->n_bytes - at : 4 * PIECE;
        if (interrupted(pr)) return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted; nothing was written", c->path);
        TRY(hn_source_read(&c->part[t->part], t->off + at, buf, n, err));
        uint16_t low = 0; /* little-endian: the first of each two */
        for (uint64_t i = 0; i < n / 2; i += 2) low |= buf[i];
        *out = low == 0;
        at += n;
    }
    return HONE_OK;
}

static hone_status lossless(hn_type *out, const hn_plan_tensor *t, const hn_ckpt *c, uint16_t *buf, const hone_progress *pr, hone_error *err)
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

static hone_status choose(hn_plan_tensor *t, const hn_ckpt *c, const char *mixture, hn_type base, const hn_mix_model *mix, hn_mix_state *state, uint16_t *buf,
                          const hone_progress *pr, hone_error *err)
{
    const hn_ckpt_tensor *s = t->src[0];
    hone_status st;
    t->type = HN_F32;
    if (t->always_f32) return HONE_OK;
    if (mixture && (base == HN_F32 || base == HN_F16 || base == HN_BF16)) t->type = base;
    else if (mixture) t->type = hn_mix_type(mixture, mix, state, t->name, t->ne, t->n_dim);
    if (!mixture || (t->type == HN_F32 && base != HN_F32)) TRY(lossless(&t->type, t, c, buf, pr, err)); /* small matrices that mixtures leave alone */
    const hn_type_info *ti = hn_type_get(t->type);
    if (!ti || t->ne[0] % ti->block_elems)
        return HN_FAIL(err, HONE_E_ARG, "%s: rows of %llu elements do not fit type %s", t->name, (unsigned long long)t->ne[0], ti ? ti->name : mixture);
    if (t->type == s->type && t->n_src == 1 && !t->n_mat) return HONE_OK;
    if (!is_float(t->type) && !is_float(s->type))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s is %s already, and %s would round it a second time: convert the unquantized checkpoint, or leave the type as it is",
                       c->part[s->part].path, HN_ESC(s->name.ptr, s->name.len), hn_type_get(s->type)->name, ti->name);
    if (!ti->quantize)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: hone has no encoder for %s, which %s asks for; expected a type such as F16, Q8_0 or Q4_K_M", t->name, ti->name, mixture);
    return HONE_OK;
}

hone_status hn_plan_types(hn_plan *p, const hn_ckpt *c, const char *type, const hn_mix_model *mix, const hone_progress *pr, hone_error *err)
{
    hn_mix_state state = {0};
    hn_type base = HN_F32, most = HN_F32;
    uint64_t count[HN_TYPE_COUNT] = {0};
    hone_status st = HONE_OK;
    if (p->n) qsort(p->t, p->n, sizeof *p->t, by_place);
    if (type && !hn_mix_find(type, &base, &p->file_type)) return HN_FAIL(err, HONE_E_ARG, "unknown type \"%s\"", HN_ESC(type, strlen(type)));
    p->exact = !type;
    uint16_t *buf = malloc(4 * PIECE);
    if (!buf) return HN_FAIL(err, HONE_E_NOMEM, "buffer of %d bytes", 4 * PIECE);
    for (size_t i = 0; i < p->n && st == HONE_OK; i++) {
        hn_plan_tensor *t = &p->t[i];
        st = choose(t, c, type, base, mix, &state, buf, pr, err);
        if (st == HONE_OK && !t->always_f32) count[t->type] += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    free(buf);
    if (!type) { /* named after what most weights are */
        for (int i = 0; i < HN_TYPE_COUNT; i++)
            if (count[i] > count[most]) most = (hn_type)i;
        if (!hn_mix_find(hn_type_get(most)->name, NULL, &p->file_type)) p->file_type = 0;
    }
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
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) {
            *bad = i;
            return isnan(x[i]) ? "NaN" : "infinite";
        }
    return NULL;
}

/* x is used up. */
static const char *encode(char *dst, const hn_type_info *ti, hn_type type, float *x, uint64_t n, uint64_t row, uint64_t *bad)
{
    uint64_t out = hn_row_bytes(ti, row);
    for (uint64_t i = 0; type == HN_F16 && i < n; i++)
        if (fabsf(x[i]) >= 65520) {
            *bad = i;
            return "beyond F16; --type BF16 holds it";
        }
    for (uint64_t i = 0; type == HN_BF16 && i < n; i++)
        if (!isfinite(hn_bf16_to_f32(hn_f32_to_bf16(x[i])))) {
            *bad = i;
            return "beyond BF16; --type F32 holds it";
        }
    for (uint64_t r = 0; r < n / row; r++) {
        ti->quantize(dst + r * out, x + r * row, (int64_t)row, NULL);
        if (is_float(type)) continue;
        ti->dequantize(x + r * row, dst + r * out, (int64_t)row); /* a block's scale is an F16 */
        for (uint64_t i = r * row; i < (r + 1) * row; i++)
            if (!isfinite(x[i])) {
                *bad = i;
                return "in a block with numbers too large for its type; --type BF16 holds them";
            }
    }
    return NULL;
}

static hone_status bad_element(const hn_ckpt *c, const hn_ckpt_tensor *t, uint64_t i, const char *what, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: element %llu is %s, expected a finite number", c->part[t->part].path, HN_ESC(t->name.ptr, t->name.len),
                   (unsigned long long)i, what);
}

/* ---- pieces by threads ----------------------------------------------------------------------- */

typedef struct job {
    const hn_plan *p;
    const hn_ckpt *c;
    const hn_plan_tensor *t;
    const hn_ckpt_tensor *s;
    uint64_t row0, n_row, rows;  /* of this batch, and of one chunk */
    char *raw, *out;             /* [threads] raw pieces; the batch's output */
    float *x;                    /* [threads] pieces */
    uint64_t raw_bytes, x_elems; /* of each */
    pthread_mutex_t mu;
    int64_t bad_chunk;           /* the first that failed, -1: none; guarded by mu */
    hone_error bad;              /* guarded by mu */
} job;

static void do_chunk(void *arg, int64_t chunk, int32_t thread)
{
    job *k = arg;
    const hn_type_info *from = hn_type_get(k->s->type), *to = hn_type_get(k->t->type);
    uint64_t r0 = (uint64_t)chunk * k->rows, r1 = r0 + k->rows < k->n_row ? r0 + k->rows : k->n_row, ne0 = k->t->ne[0], n = (r1 - r0) * ne0, bad = 0;
    uint64_t in_row = hn_row_bytes(from, ne0), first = (k->row0 + r0) * ne0;
    bool copy = k->s->type == k->t->type;
    char *dst = k->out + r0 * hn_row_bytes(to, ne0), *raw = copy ? dst : k->raw + (uint64_t)thread * k->raw_bytes;
    float *x = k->x + (uint64_t)thread * k->x_elems;
    hone_error e = {0};
    hone_status st = hn_source_read(&k->c->part[k->s->part], k->s->off + (k->row0 + r0) * in_row, raw, (r1 - r0) * in_row, &e);
    if (st == HONE_OK) {
        const char *wrong = decode(x, raw, k->s->type, n, k->p->exact, &bad);
        if (!wrong && !copy) wrong = encode(dst, to, k->t->type, x, n, ne0, &bad);
        if (wrong) st = bad_element(k->c, k->s, first + bad, wrong, &e);
    }
    if (st == HONE_OK) return;
    pthread_mutex_lock(&k->mu);
    if (k->bad_chunk < 0 || chunk < k->bad_chunk) {
        k->bad_chunk = chunk;
        k->bad = e;
    }
    pthread_mutex_unlock(&k->mu);
}

typedef struct output { hn_gguf_writer *w; hn_pool *pool; const hone_progress *pr; const char *dst; uint64_t done, total; hone_error *err; } output;

static hone_status emit(output *o, const void *p, uint64_t n)
{
    hone_status st;
    TRY(hn_gguf_write_data(o->w, p, n, o->err));
    o->done += n;
    if (o->pr && o->pr->fn) o->pr->fn(o->pr->arg, o->done, o->total);
    return interrupted(o->pr) ? HN_FAIL(o->err, HONE_E_INTERRUPTED, "%s: interrupted; nothing is left on disk", o->dst) : HONE_OK;
}

static uint64_t chunk_rows(const hn_plan_tensor *t) { return t->ne[0] < PIECE ? PIECE / t->ne[0] : 1; }

static hone_status write_rows(output *o, job *k)
{
    uint64_t rows = k->t->ne[1] * k->t->ne[2] * k->t->ne[3] / (uint64_t)k->t->n_src, out_row = hn_row_bytes(hn_type_get(k->t->type), k->t->ne[0]);
    uint64_t batch = 2 * (uint64_t)hn_pool_threads(o->pool) * chunk_rows(k->t);
    hone_status st;
    k->rows = chunk_rows(k->t);
    for (int i = 0; i < k->t->n_src; i++) {
        k->s = k->t->src[i];
        for (k->row0 = 0; k->row0 < rows; k->row0 += k->n_row) {
            k->n_row = rows - k->row0 < batch ? rows - k->row0 : batch;
            k->bad_chunk = -1;
            hn_pool_run(o->pool, do_chunk, k, (int64_t)((k->n_row + k->rows - 1) / k->rows));
            if (k->bad_chunk >= 0) {
                if (o->err) *o->err = k->bad;
                return k->bad.code;
            }
            TRY(emit(o, k->out, k->n_row * out_row));
        }
    }
    return HONE_OK;
}

static hone_status write_transposed(output *o, const job *k)
{
    const hn_plan_tensor *t = k->t;
    const hn_ckpt_tensor *s = t->src[0];
    const hn_type_info *ti = hn_type_get(t->type);
    uint64_t n = elements(s), bad = 0, row = t->n_row, out_row = hn_row_bytes(ti, row);
    hone_status st = HONE_OK;
    char *raw = malloc(s->n_bytes > 4 * n ? s->n_bytes : 4 * n); /* then the output */
    float *x = malloc(4 * n), *y = malloc(4 * row);
    const char *wrong = NULL;
    if (!raw || !x || !y) st = HN_FAIL(o->err, HONE_E_NOMEM, "%s: %llu elements", t->name, (unsigned long long)n);
    else if ((st = hn_source_read(&k->c->part[s->part], s->off, raw, s->n_bytes, o->err)) == HONE_OK && (wrong = decode(x, raw, s->type, n, k->p->exact, &bad)))
        st = bad_element(k->c, s, bad, wrong, o->err);
    for (uint64_t m = 0, w = 0; m < t->n_mat && st == HONE_OK; m++)
        for (uint64_t col = 0; col < t->n_col && st == HONE_OK; col++, w++) {
            for (uint64_t i = 0; i < row; i++) y[i] = x[(m * row + i) * t->n_col + col];
            if ((wrong = encode(raw + w * out_row, ti, t->type, y, row, row, &bad))) st = bad_element(k->c, s, (m * row + bad) * t->n_col + col, wrong, o->err);
        }
    if (st == HONE_OK) st = emit(o, raw, t->n_mat * t->n_col * out_row);
    free(raw);
    free(x);
    free(y);
    return st;
}

static hone_status write_tensors(output *o, const hn_plan *p, const hn_ckpt *c)
{
    uint64_t out = 0, threads = (uint64_t)hn_pool_threads(o->pool);
    job k = {.p = p, .c = c};
    hone_status st = HONE_OK;
    for (size_t i = 0; i < p->n; i++) {
        const hn_plan_tensor *t = &p->t[i];
        uint64_t elems = chunk_rows(t) * t->ne[0], bytes = chunk_rows(t) * hn_row_bytes(hn_type_get(t->type), t->ne[0]);
        if (elems > k.x_elems) k.x_elems = elems;
        if (bytes > out) out = bytes;
        for (int s = 0; s < t->n_src; s++) {
            uint64_t raw = hn_type_get(t->src[s]->type)->block_elems == 1 ? elems * hn_type_get(t->src[s]->type)->block_bytes : 4 * elems;
            if (raw > k.raw_bytes) k.raw_bytes = raw;
        }
    }
    k.raw = malloc(threads * k.raw_bytes);
    k.x = malloc(threads * k.x_elems * sizeof *k.x);
    k.out = malloc(2 * threads * out);
    if (!k.raw || !k.x || !k.out) st = HN_FAIL(o->err, HONE_E_NOMEM, "buffers of %llu bytes for %llu threads",
                                               (unsigned long long)(k.raw_bytes + 4 * k.x_elems + 2 * out), (unsigned long long)threads);
    pthread_mutex_init(&k.mu, NULL);
    for (size_t i = 0; i < p->n && st == HONE_OK; i++) {
        k.t = &p->t[i];
        st = k.t->n_mat ? write_transposed(o, &k) : write_rows(o, &k);
    }
    pthread_mutex_destroy(&k.mu);
    free(k.raw);
    free(k.x);
    free(k.out);
    return st;
}

hone_status hn_plan_write(const hn_plan *p, const hn_ckpt *c, hn_gguf_writer *w, const char *dst, const hone_progress *pr, hone_error *err)
{
    output o = {.w = w, .pr = pr, .dst = dst, .err = err};
    int32_t threads = hn_cpu_count();
    hone_status st;
    for (size_t i = 0; i < p->n; i++) {
        const hn_plan_tensor *t = &p->t[i];
        uint64_t n;
        TRY(hn_gguf_put_tensor(w, t->name, t->type, t->ne, t->n_dim, err));
        if (!hn_tensor_nbytes(hn_type_get(t->type), t->ne, 4, &n)) return HN_FAIL(err, HONE_E_FORMAT, "%s: too large", t->name);
        o.total += n;
    }
    TRY(hn_pool_new(&o.pool, threads < 32 ? threads : 32, err)); /* each takes a few megabytes */
    if ((st = hn_gguf_write_begin(w, dst, err)) == HONE_OK && (st = write_tensors(&o, p, c)) == HONE_OK) st = hn_gguf_write_end(w, err);
    hn_pool_free(o.pool);
    return st;
}
