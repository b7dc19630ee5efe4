/* recipe: see recipe.h. Two buffers: while threads fill one, one of them writes the other, so that a disk and the cores
 * work at once and memory stays bounded whatever the size of the file. */
#include "forge/recipe.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- pieces ------------------------------------------------------------------------------------- */

enum {
    PIECE_BYTES = 512 << 10, /* of `bytes`, or as the floats of `values`; one unit if that is longer */
    BATCH_BYTES = 24 << 20,  /* at most, or one piece */
    MAX_PIECES = 512,
    MAX_THREADS = 32 /* where each takes memory of its own */
};

typedef struct batch {
    unsigned char *buf;
    int32_t n;
    uint64_t n_bytes; /* of tensors */
    hn_recipe_piece piece[MAX_PIECES];
} batch;

typedef struct job {
    hn_recipe *r;
    const hn_recipe_sink *sink;
    void *to;
    hn_pool *pool;
    batch *fill, *write; /* n = 0: nothing */
    uint64_t piece_bytes, batch_bytes;
    char *scratch; /* [threads] room for values, then what the sources ask for */
    size_t x_bytes, thread_bytes;
    size_t tensor; /* where the next batch begins */
    uint64_t at;
    bool opened;          /* that tensor is open */
    hone_status write_st; /* of writing, by one thread */
    hone_error write_err;
    pthread_mutex_t mu;
    int32_t bad_piece; /* the first that failed, -1: none; guarded by mu */
    hone_status bad_st;
    hone_error bad; /* guarded by mu */
} job;

static uint64_t row_bytes(const hn_recipe_tensor *t) { return hn_row_bytes(hn_type_get(t->type), t->ne[0]); }

static uint64_t n_rows(const hn_recipe_tensor *t) { return t->ne[1] * t->ne[2] * t->ne[3]; }

static uint64_t unit_of(const hn_recipe_tensor *t) { return t->unit_bytes ? t->unit_bytes : row_bytes(t); }

/* Announced: it has no overflow. */
static uint64_t all_bytes(const hn_recipe_tensor *t) { return t->n_bytes ? t->n_bytes : n_rows(t) * row_bytes(t); }

/* Bytes of all pieces but the last. */
static uint64_t piece_bytes(const hn_recipe_tensor *t, uint64_t most)
{
    uint64_t unit = unit_of(t), n = most / (t->source->values ? t->ne[0] * sizeof(float) : unit), all;
    all = (n ? n : 1) * unit;
    return all < all_bytes(t) ? all : all_bytes(t);
}

static uint64_t piece_elems(const hn_recipe_tensor *t, uint64_t most)
{
    return piece_bytes(t, most) / row_bytes(t) * t->ne[0];
}

uint64_t hn_recipe_piece_elems(const hn_recipe_tensor *t) { return piece_elems(t, PIECE_BYTES); }

static void next_batch(job *j, batch *b)
{
    uint64_t used = 0;
    b->n = 0;
    b->n_bytes = 0;
    while (j->tensor < j->r->n && b->n < MAX_PIECES) {
        const hn_recipe_tensor *t = &j->r->t[j->tensor];
        uint64_t left = all_bytes(t) - j->at, n = piece_bytes(t, j->piece_bytes),
                 row = t->n_bytes ? unit_of(t) : row_bytes(t);
        if (n > left) n = left;
        if (t->source->open && !j->opened) break; /* not beside another */
        if (n > j->batch_bytes - used) break;
        unsigned char *out = b->buf + used;
        b->piece[b->n++] = (hn_recipe_piece){
            .t = t, .at = j->at, .n_bytes = n, .row = j->at / row, .n_row = n / row, .out = out, .data = out
        };
        b->n_bytes += n;
        used = (used + n + 63) & ~(uint64_t)63;
        if (used > j->batch_bytes) used = j->batch_bytes;
        j->at += n;
        if (n < left) continue;
        j->at = 0;
        j->tensor++;
        if (t->source->open) break;
    }
}

static void write_batch(job *j)
{
    for (int32_t i = 0; i < j->write->n && j->write_st == HONE_OK && j->sink->put; i++)
        j->write_st = j->sink->put(j->to, &j->write->piece[i], &j->write_err);
}

/* What is wrong with x[n], and with which; false: nothing. x is used up. */
static bool encode(char *out, hn_type type, float *x, uint64_t n, uint64_t row, hn_recipe_fault *what, uint64_t *at)
{
    const hn_type_info *ti = hn_type_get(type);
    uint64_t row_out = hn_row_bytes(ti, row);
    if ((*at = hn_first_odd(x, HN_F32, n)) < n) {
        *what = isnan(x[*at]) ? HN_FAULT_NAN : HN_FAULT_INFINITE;
        return true;
    }
    for (uint64_t r = 0; r < n / row; r++) ti->quantize(out + r * row_out, x + r * row, (int64_t)row, NULL);
    if (type == HN_F32) return false;
    if (hn_is_float(type)) { /* F16 may be all there is */
        *what = HN_FAULT_BEYOND;
        return (*at = hn_first_odd(out, type, n)) < n;
    }
    for (uint64_t r = 0; r < n / row; r++) /* a block's scale is an F16 */
        ti->dequantize(x + r * row, out + r * row_out, (int64_t)row);
    *what = HN_FAULT_BLOCK;
    return (*at = hn_first_odd(x, HN_F32, n)) < n;
}

static hone_status make(job *j, hn_recipe_piece *p, char *scratch, hone_error *err)
{
    const hn_recipe_source *s = p->t->source;
    float *x = (float *)(void *)scratch;
    hn_recipe_fault what;
    uint64_t at, ne0 = p->t->ne[0];
    char *own = scratch ? scratch + j->x_bytes : NULL;
    if (s->bytes) return s->bytes(j->r->arg, p, own, err);
    hone_status st = s->values(j->r->arg, p, x, own, err);
    if (st == HONE_OK && encode(p->out, p->t->type, x, p->n_row * ne0, ne0, &what, &at))
        st = s->fault(j->r->arg, p->t, p->row * ne0 + at, what, err);
    return st;
}

/* Chunk 0 writes what was made before, the others make. */
static void run_chunk(void *arg, int64_t chunk, int32_t thread)
{
    job *j = arg;
    hone_error e = { 0 };
    if (chunk == 0) {
        write_batch(j);
        return;
    }
    int32_t i = (int32_t)chunk - 1;
    char *scratch = j->scratch ? j->scratch + (size_t)thread * j->thread_bytes : NULL; /* no source asks for room */
    hone_status st = make(j, &j->fill->piece[i], scratch, &e);
    if (st == HONE_OK) return;
    pthread_mutex_lock(&j->mu);
    if (j->bad_piece < 0 || i < j->bad_piece) {
        j->bad_piece = i;
        j->bad_st = st;
        j->bad = e;
    }
    pthread_mutex_unlock(&j->mu);
}

/* ---- the file ------------------------------------------------------------------------------------ */

static hone_status failed(hone_status st, const hone_error *e, hone_error *err)
{
    if (err) *err = *e;
    return st;
}

/* Opens the next tensor if it is one that is opened; what was open before is done. */
static hone_status open_next(job *j, hone_error *err)
{
    const hn_recipe_tensor *t = j->tensor < j->r->n ? &j->r->t[j->tensor] : NULL;
    if (!t || !t->source->open || j->opened) return HONE_OK;
    hone_status st = t->source->open(j->r->arg, t, err);
    j->opened = st == HONE_OK;
    return st;
}

static void close_last(job *j, const hn_recipe_tensor *t)
{
    if (!j->opened || t == &j->r->t[j->tensor]) return; /* there is more of it */
    if (t->source->close) t->source->close(j->r->arg, t);
    j->opened = false;
}

static hone_status write_tensors(job *j, hone_error *err)
{
    hn_recipe *r = j->r;
    const hone_progress *pr = r->pr;
    hone_status st;
    for (;;) {
        const hn_recipe_tensor *t = j->tensor < r->n ? &r->t[j->tensor] : NULL;
        if ((st = open_next(j, err)) != HONE_OK) return st;
        next_batch(j, j->fill);
        if (!j->fill->n && !j->write->n) return HONE_OK;
        hn_pool_run(j->pool, run_chunk, j, 1 + j->fill->n);
        if (j->write_st != HONE_OK) return failed(j->write_st, &j->write_err, err);
        if (j->bad_piece >= 0) return failed(j->bad_st, &j->bad, err);
        close_last(j, t);
        r->done += j->write->n_bytes;
        batch *b = j->fill;
        j->fill = j->write;
        j->write = b;
        if (pr && pr->fn) pr->fn(pr->arg, r->done, r->total);
        if (hn_interrupted(pr))
            return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted%s", HN_ESC(r->dst, strlen(r->dst)),
                           j->sink->put ? "; nothing is left on disk" : "");
    }
}

/* Sizes of the buffers. */
static hone_status plan(job *j, hone_error *err)
{
    hn_recipe *r = j->r;
    for (size_t i = 0; i < r->n; i++) {
        const hn_recipe_tensor *t = &r->t[i];
        uint64_t n;
        if (!hn_tensor_nbytes(hn_type_get(t->type), t->ne, 4, &n))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: too large", HN_ESC(t->name.ptr, t->name.len));
        r->total += all_bytes(t);
        if ((n = piece_bytes(t, j->piece_bytes)) > j->batch_bytes) j->batch_bytes = n;
        n = t->source->values ? piece_elems(t, j->piece_bytes) * sizeof(float) : 0;
        if (n > j->x_bytes) j->x_bytes = (n + 63) & ~(size_t)63;
    }
    j->thread_bytes = (j->x_bytes + r->scratch_bytes + 63) & ~(size_t)63;
    return HONE_OK;
}

hone_status hn_recipe_run(hn_recipe *r, const hn_recipe_sink *sink, void *to, hone_error *err)
{
    job j = { .r = r, .sink = sink, .to = to, .bad_piece = -1 };
    j.piece_bytes = r->piece_bytes ? r->piece_bytes : PIECE_BYTES;
    unsigned char *buf = NULL;
    r->done = r->total = 0;
    hone_status st = plan(&j, err);
    if (st != HONE_OK) return st;
    int32_t n_threads = r->n_threads > 0 ? r->n_threads : hn_cpu_count();
    if (r->n_threads <= 0 && j.thread_bytes && n_threads > MAX_THREADS) n_threads = MAX_THREADS;
    uint64_t wanted = 2 * (uint64_t)n_threads * j.piece_bytes;
    if (wanted > BATCH_BYTES) wanted = BATCH_BYTES;
    if (j.batch_bytes < wanted) j.batch_bytes = wanted;
    size_t scratch_bytes = (size_t)n_threads * j.thread_bytes;
    batch *b = calloc(2, sizeof *b);
    if (!b || !(buf = hn_pages_alloc(2 * j.batch_bytes)) ||
        (scratch_bytes && !(j.scratch = hn_pages_alloc(scratch_bytes)))) {
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: buffers of %llu bytes for %d threads", r->dst,
                     (unsigned long long)(2 * j.batch_bytes + scratch_bytes), n_threads);
        goto end;
    }
    b[0].buf = buf;
    b[1].buf = buf + j.batch_bytes;
    j.fill = &b[0];
    j.write = &b[1];
    pthread_mutex_init(&j.mu, NULL);
    if ((st = hn_pool_new(&j.pool, n_threads, err)) == HONE_OK &&
        (!sink->begin || (st = sink->begin(to, err)) == HONE_OK) && (st = write_tensors(&j, err)) == HONE_OK &&
        sink->end)
        st = sink->end(to, err);
    hn_pool_free(j.pool);
    pthread_mutex_destroy(&j.mu);
end:
    if (j.scratch) hn_pages_free(j.scratch, scratch_bytes);
    if (buf) hn_pages_free(buf, 2 * j.batch_bytes);
    free(b);
    return st;
}

/* ---- GGUF files ------------------------------------------------------------------------------------ */

typedef struct gguf_file {
    hn_gguf_writer *w;
    const char *dst;
} gguf_file;

static hone_status begin_gguf(void *to, hone_error *err)
{
    gguf_file *f = to;
    return hn_gguf_write_begin(f->w, f->dst, err);
}

static hone_status put_gguf(void *to, const hn_recipe_piece *p, hone_error *err)
{
    return hn_gguf_write_data(((gguf_file *)to)->w, p->data, p->n_bytes, err);
}

static hone_status end_gguf(void *to, hone_error *err) { return hn_gguf_write_end(((gguf_file *)to)->w, err); }

hone_status hn_recipe_write(hn_recipe *r, hn_gguf_writer *w, hone_error *err)
{
    static const hn_recipe_sink sink = { begin_gguf, put_gguf, end_gguf };
    gguf_file f = { w, r->dst };
    for (size_t i = 0; i < r->n; i++) {
        const hn_recipe_tensor *t = &r->t[i];
        char name[HN_GGUF_MAX_NAME + 1];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        hone_status st = hn_gguf_put_tensor(w, name, t->type, t->ne, t->n_dim, err);
        if (st != HONE_OK) return st;
    }
    return hn_recipe_run(r, &sink, &f, err);
}
