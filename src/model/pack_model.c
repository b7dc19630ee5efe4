/* Which side file belongs to which model, and making one. Knows what is bound to what;
 * the container is gguf/pack_file.h, the layout quant/pack.h.
 *
 * Identity. A packed file keeps the SHA-256 of every tensor it was made from, and a stamp of
 * the model's files: their sizes and times of change. An equal stamp is trusted, so that
 * nothing of the model need be read; with another stamp all data is hashed once, and the
 * stamp renewed. Hash of a tensor: of the hashes of its pieces, so that threads share it;
 * a piece is as many sixteens of rows as 1 MiB holds, at least one, and a vector one piece. */
#define _GNU_SOURCE
#include "model/model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, HASH = HN_PACKED_HASH };

/* ---- names and stamps ----------------------------------------------------------------------- */

/* MODEL.hpack; of a split set, that of its first file. NULL: no memory. */
static char *default_path(const hn_gguf *g)
{
    const char *path = hn_gguf_path(g);
    size_t n = strlen(path);
    char *p = malloc(n + 8);
    if (!p) return NULL;
    snprintf(p, n + 8, "%s.hpack", path);
    const size_t tail = sizeof "-00001-of-00002.gguf" - 1; /* which the reader has checked */
    if (hn_gguf_n_parts(g) > 1 && n >= tail) memcpy(p + n - tail, "-00001", 6);
    return p;
}

/* False: not files. */
static bool stamp_of(const hn_gguf *g, unsigned char out[HASH])
{
    hn_sha256 s;
    hn_sha256_init(&s);
    for (int32_t i = 0; i < hn_gguf_n_parts(g); i++) {
        uint64_t size;
        int64_t mtime;
        if (!hn_gguf_part_stat(g, i, &size, &mtime)) return false;
        unsigned char b[16];
        for (int k = 0; k < 8; k++) b[k] = (unsigned char)(size >> (8 * k)), b[8 + k] = (unsigned char)((uint64_t)mtime >> (8 * k));
        hn_sha256_add(&s, b, sizeof b);
    }
    hn_sha256_end(&s, out);
    return true;
}

/* Two changes within the grain of a file system's clock look like one: what was written a
 * moment ago is given the moment to become old, so that a later change shows. */
static void let_settle(const hn_gguf *g)
{
    for (int32_t i = 0; i < hn_gguf_n_parts(g); i++) {
        uint64_t size;
        int64_t mtime, grain, age;
        struct timespec now;
        if (!hn_gguf_part_stat(g, i, &size, &mtime)) continue;
        grain = mtime % 1000000000 ? 20000000 : 2000000000; /* ticks of the kernel; whole seconds, two for FAT */
        clock_gettime(CLOCK_REALTIME, &now);
        age = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - mtime;
        if (age < 0 || age >= grain) continue;
        struct timespec rest = { (time_t)((grain - age) / 1000000000), (long)((grain - age) % 1000000000) };
        nanosleep(&rest, NULL);
    }
}

static void shapes_of(const hn_gguf *g, unsigned char out[HASH])
{
    hn_sha256 s;
    hn_sha256_init(&s);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
        char b[96];
        hn_sha256_add(&s, t->name.ptr, t->name.len);
        int n = snprintf(b, sizeof b, "\n%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", (int)t->type, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
        hn_sha256_add(&s, b, (size_t)n);
    }
    hn_sha256_end(&s, out);
}

/* ---- work on all pieces ------------------------------------------------------------------------ */

typedef struct piece { uint64_t entry, row; int64_t n_rows; } piece;

typedef struct work {
    const hn_gguf_tensor **t; /* [n] of each entry */
    hn_packed_entry *e;       /* [n] */
    uint64_t n;
    piece *p;
    uint64_t n_piece, first;  /* first of the batch under way */
    unsigned char (*hash)[HASH]; /* [n_piece] */
    char *buf;                /* a packed piece for each thread; NULL: only hash */
    size_t buf_bytes;
    hn_packed_writer *w;      /* to be written, */
    bool compare;             /* or compared with what e->data holds */
    _Atomic int error;
    _Atomic uint64_t differs; /* first piece that does; UINT64_MAX: none */
} work;

static int64_t rows_per_piece(const hn_packed_entry *e)
{
    if (e->kind == HN_PACKED_VECTOR) return 1;
    uint64_t group = hn_row_bytes(hn_type_get((uint32_t)e->type), e->n_in) * HN_PACK_ROWS, k = PIECE_BYTES / group;
    return (int64_t)(k ? k : 1) * HN_PACK_ROWS;
}

static size_t packed_piece_bytes(const hn_packed_entry *e, int64_t n_rows)
{
    return e->kind == HN_PACKED_VECTOR ? (size_t)e->n_bytes : hn_packed_bytes(e->type, (int64_t)e->n_in, n_rows);
}

static void pack_piece(char *buf, const hn_packed_entry *e, const char *src, size_t row, int64_t n_rows)
{
    if (e->kind == HN_PACKED_VECTOR) {
        hn_type_get((uint32_t)e->type)->dequantize((float *)(void *)buf, src, (int64_t)e->n_in);
        return;
    }
    size_t group = hn_packed_group_bytes(e->type, (int64_t)e->n_in);
    for (int64_t r = 0; r < n_rows; r += HN_PACK_ROWS, buf += group)
        hn_pack_group(e->type, buf, src + (size_t)r * row, row, (int)(n_rows - r < HN_PACK_ROWS ? n_rows - r : HN_PACK_ROWS), (int64_t)e->n_in);
}

static uint64_t piece_at(const hn_packed_entry *e, const piece *p)
{
    return e->kind == HN_PACKED_VECTOR ? 0 : p->row / HN_PACK_ROWS * hn_packed_group_bytes(e->type, (int64_t)e->n_in);
}

static uint64_t piece_end(const work *k, const piece *p)
{
    const hn_packed_entry *e = &k->e[p->entry];
    return e->offset + piece_at(e, p) + packed_piece_bytes(e, p->n_rows);
}

static void do_piece(void *arg, int64_t chunk, int32_t thread)
{
    work *k = arg;
    uint64_t i = k->first + (uint64_t)chunk;
    const piece *p = &k->p[i];
    const hn_packed_entry *e = &k->e[p->entry];
    size_t row = (size_t)hn_row_bytes(hn_type_get((uint32_t)e->type), e->n_in), n = packed_piece_bytes(e, p->n_rows);
    const char *src = (const char *)k->t[p->entry]->data + (size_t)p->row * row;
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, src, row * (size_t)p->n_rows);
    hn_sha256_end(&s, k->hash[i]);
    if (!k->buf) return;
    char *buf = k->buf + (size_t)thread * k->buf_bytes;
    uint64_t at = piece_at(e, p);
    pack_piece(buf, e, src, row, p->n_rows);
    if (k->w) {
        int error = hn_packed_write(k->w, e->offset + at, buf, n);
        if (error) atomic_store(&k->error, error);
    } else if (k->compare && memcmp(buf, (const char *)e->data + at, n) != 0) {
        uint64_t old = atomic_load(&k->differs);
        while (i < old && !atomic_compare_exchange_weak(&k->differs, &old, i)) {}
    }
}

/* Cuts pieces and makes room; with_buffers: packed pieces too. */
static hone_status plan(work *k, int32_t n_threads, bool with_buffers, hone_error *err)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < k->n; i++) {
        int64_t rows = rows_per_piece(&k->e[i]);
        size_t bytes = packed_piece_bytes(&k->e[i], rows);
        n += (k->e[i].n_out + (uint64_t)rows - 1) / (uint64_t)rows;
        if (bytes > k->buf_bytes) k->buf_bytes = (bytes + 63) & ~(size_t)63;
    }
    k->n_piece = n;
    k->p = calloc(n ? n : 1, sizeof *k->p);
    k->hash = calloc(n ? n : 1, sizeof *k->hash);
    if (with_buffers) k->buf = hn_pages_alloc(k->buf_bytes * (size_t)n_threads);
    if (!k->p || !k->hash || (with_buffers && !k->buf)) return HN_FAIL(err, HONE_E_NOMEM, "buffers of %d threads for pieces of %zu bytes", n_threads, k->buf_bytes);
    n = 0;
    for (uint64_t i = 0; i < k->n; i++)
        for (uint64_t r = 0, step = (uint64_t)rows_per_piece(&k->e[i]); r < k->e[i].n_out; r += step)
            k->p[n++] = (piece){ i, r, (int64_t)(k->e[i].n_out - r < step ? k->e[i].n_out - r : step) };
    atomic_store(&k->differs, UINT64_MAX);
    return HONE_OK;
}

static void drop_plan(work *k, int32_t n_threads)
{
    if (k->buf) hn_pages_free(k->buf, k->buf_bytes * (size_t)n_threads);
    free(k->p);
    free(k->hash);
}

enum { PER_THREAD = 8 }; /* pieces of a batch */

/* HONE_E_INTERRUPTED: asked to stop. A failure to write ends it too: see k->error. */
static hone_status run(work *k, hn_pool *pool, const hone_progress *pr, const char *what, hone_error *err)
{
    uint64_t batch = (uint64_t)hn_pool_threads(pool) * PER_THREAD;
    if (k->w) hn_packed_gather(k->w, (size_t)batch * (k->buf_bytes + 4096)); /* entries begin on a page */
    for (k->first = 0; k->first < k->n_piece && !atomic_load(&k->error); k->first += batch) {
        if (pr && pr->fn) pr->fn(pr->arg, k->first, k->n_piece);
        if (pr && pr->abort_fn && pr->abort_fn(pr->arg)) return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted", what);
        uint64_t n = k->n_piece - k->first < batch ? k->n_piece - k->first : batch;
        hn_pool_run(pool, do_piece, k, (int64_t)n);
        if (k->w && !atomic_load(&k->error)) {
            int error = hn_packed_flush(k->w, piece_end(k, &k->p[k->first + n - 1]));
            if (error) atomic_store(&k->error, error);
        }
    }
    if (pr && pr->fn) pr->fn(pr->arg, k->n_piece, k->n_piece);
    return HONE_OK;
}

/* Hash of entry i from its pieces, which begin at *at. */
static void entry_hash(const work *k, uint64_t i, uint64_t *at, unsigned char out[HASH])
{
    hn_sha256 s;
    hn_sha256_init(&s);
    for (; *at < k->n_piece && k->p[*at].entry == i; ++*at) hn_sha256_add(&s, k->hash[*at], HASH);
    hn_sha256_end(&s, out);
}

/* The first entry whose hash is not that of the model's data; k->n: none. */
static uint64_t first_foreign(const work *k)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < k->n; i++) {
        unsigned char h[HASH];
        entry_hash(k, i, &at, h);
        if (memcmp(h, k->e[i].hash, HASH) != 0) return i;
    }
    return k->n;
}

/* ---- does it belong? ------------------------------------------------------------------------------ */

typedef struct found {
    hn_packed *file;          /* READY and TOUCHED */
    const hn_gguf_tensor **t; /* [file->n] the tensor of each entry */
    hone_packed_state state;
    char why[600];            /* UNUSABLE */
} found;

static void drop_found(found *f)
{
    hn_packed_close(f->file);
    free(f->t);
    *f = (found){ .file = NULL };
}

static bool matches(const hn_packed_entry *e, const hn_gguf_tensor *t)
{
    uint64_t rows = t ? t->ne[1] * t->ne[2] * t->ne[3] : 0;
    return t && t->name.len == e->name.len && t->type == e->type &&
           (e->kind == HN_PACKED_VECTOR ? t->ne[0] * rows == e->n_in : t->ne[0] == e->n_in && rows == e->n_out);
}

static const hn_gguf_tensor *tensor_of(const hn_gguf *g, const hn_packed_entry *e)
{
    char name[HN_GGUF_MAX_NAME + 1];
    memcpy(name, e->name.ptr, e->name.len);
    name[e->name.len] = 0;
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
    return matches(e, t) ? t : NULL;
}

/* Opens the file and looks whether it is of this model; reads no tensor data. Fails only for want of memory. */
static hone_status look(found *f, const hn_gguf *g, const char *path, hone_error *err)
{
    hone_error e = { 0 };
    bool missing;
    *f = (found){ .state = HONE_PACKED_UNUSABLE };
    hone_status st = hn_packed_open(&f->file, path, &missing, &e);
    if (st == HONE_E_NOMEM) {
        if (err) *err = e;
        return st;
    }
    const char *label = HN_ESC(path, strlen(path));
    if (st != HONE_OK) {
        f->state = missing ? HONE_PACKED_NONE : HONE_PACKED_UNUSABLE;
        snprintf(f->why, sizeof f->why, "%.590s", e.message);
        return HONE_OK;
    }
    unsigned char shapes[HASH], stamp[HASH];
    shapes_of(g, shapes);
    bool same = memcmp(shapes, f->file->shapes, HASH) == 0, is_file = stamp_of(g, stamp);
    bool *seen = calloc(hn_gguf_n_tensors(g) + 1, 1);
    f->t = calloc(f->file->n + 1, sizeof *f->t);
    if (!seen || !f->t) {
        free(seen);
        drop_found(f);
        return HN_FAIL(err, HONE_E_NOMEM, "%s: table of tensors", label);
    }
    bool sound = true;
    for (uint64_t i = 0; same && sound && i < f->file->n; i++) {
        f->t[i] = tensor_of(g, &f->file->e[i]);
        uint64_t at = f->t[i] ? (uint64_t)(f->t[i] - hn_gguf_tensor_at(g, 0)) : hn_gguf_n_tensors(g);
        sound = f->t[i] && !seen[at];
        seen[at] = true;
    }
    free(seen);
    if (!same) snprintf(f->why, sizeof f->why, "%s: made from a model with other tensors", label);
    else if (!sound) snprintf(f->why, sizeof f->why, "%s: its directory does not fit the model: damaged", label);
    else f->state = is_file && memcmp(stamp, f->file->stamp, HASH) == 0 ? HONE_PACKED_READY : HONE_PACKED_TOUCHED;
    return HONE_OK;
}

/* Reads all data of the model that the file has. *belongs: it was made from this. */
static hone_status compare_hashes(found *f, const hn_gguf *g, const hone_progress *pr, bool *belongs, hone_error *err)
{
    hn_pool *pool;
    hone_status st = hn_pool_new(&pool, hn_cpu_count(), err);
    if (st != HONE_OK) return st;
    work k = { .t = f->t, .e = f->file->e, .n = f->file->n };
    if ((st = plan(&k, hn_pool_threads(pool), false, err)) == HONE_OK) st = run(&k, pool, pr, "comparing the packed file with the model", err);
    *belongs = st == HONE_OK && first_foreign(&k) == k.n;
    drop_plan(&k, hn_pool_threads(pool));
    hn_pool_free(pool);
    return st;
}

static hone_status note(hone_model *m, hone_error *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static hone_status note(hone_model *m, hone_error *err, const char *fmt, ...)
{
    char text[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    m->packed_note = hn_arena_strndup(m->arena, text, strlen(text));
    return m->packed_note ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: note", m->path);
}

/* Takes f->file into the model. */
static hone_status use(hone_model *m, found *f, hone_error *err)
{
    uint64_t n = hn_gguf_n_tensors(m->file);
    m->packed_of = hn_arena_alloc(m->arena, (size_t)(n + 1) * sizeof *m->packed_of);
    if (!m->packed_of) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of tensors", m->path);
    for (uint64_t i = 0; i < f->file->n; i++) m->packed_of[f->t[i] - hn_gguf_tensor_at(m->file, 0)] = &f->file->e[i];
    m->packed = f->file;
    f->file = NULL;
    return HONE_OK;
}

/* The file has the right shapes but another stamp. */
static hone_status use_touched(hone_model *m, found *f, const hone_progress *pr, hone_error *err)
{
    bool belongs;
    unsigned char stamp[HASH];
    struct timespec a, b;
    const char *label = HN_ESC(f->file->path, strlen(f->file->path));
    clock_gettime(CLOCK_MONOTONIC, &a);
    let_settle(m->file);
    hone_status st = compare_hashes(f, m->file, pr, &belongs, err);
    if (st != HONE_OK) return st;
    clock_gettime(CLOCK_MONOTONIC, &b);
    double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    if (!belongs) {
        f->state = HONE_PACKED_UNUSABLE;
        snprintf(f->why, sizeof f->why, "%s: made from other tensor data of the same shapes", label);
        return HONE_OK;
    }
    bool kept = stamp_of(m->file, stamp) && hn_packed_restamp(f->file->path, stamp);
    if ((st = use(m, f, err)) != HONE_OK) return st;
    m->packed_compared = true;
    return note(m, err, "%s: the model was copied or touched since; its data was compared in %.1f s and is the same%s", label, s,
                kept ? "" : " (the packed file cannot be written, so every start compares)");
}

hone_status hn_model_find_packed(hone_model *m, const hone_model_params *p, hone_error *err)
{
    const char *want = p && p->packed ? p->packed : getenv("HONE_PACKED");
    bool automatic = !want || !*want || strcmp(want, "auto") == 0;
    unsigned char stamp[HASH];
    found f;
    if (!stamp_of(m->file, stamp)) return note(m, err, "not a file");
    if (!automatic && strcmp(want, "off") == 0) return note(m, err, "switched off");
    char *path = automatic ? default_path(m->file) : strdup(want);
    if (!path) return HN_FAIL(err, HONE_E_NOMEM, "%s: name of its packed file", m->path);
    hone_status st = look(&f, m->file, path, err);
    if (st == HONE_OK && f.state == HONE_PACKED_READY) {
        st = use(m, &f, err);
        if (st == HONE_OK) st = note(m, err, "%s", HN_ESC(path, strlen(path)));
    } else if (st == HONE_OK && f.state == HONE_PACKED_TOUCHED) {
        st = use_touched(m, &f, p ? p->progress : NULL, err);
    } else if (st == HONE_OK && f.state == HONE_PACKED_NONE && automatic) {
        st = note(m, err, "no packed file; hone pack makes one");
    }
    if (st == HONE_OK && !m->packed && !m->packed_note) { /* unusable, or named and not there */
        m->packed_ignored = true;
        if (automatic) st = note(m, err, "%s; it is not used; hone pack -m %s makes a new one", f.why, HN_ESC(m->path, strlen(m->path)));
        else st = HN_FAIL(err, f.state == HONE_PACKED_NONE ? HONE_E_IO : HONE_E_FORMAT, "%s; expected a packed file of %s, as hone pack makes it", f.why, HN_ESC(m->path, strlen(m->path)));
    }
    drop_found(&f);
    free(path);
    return st;
}

/* ---- the public calls --------------------------------------------------------------------------------- */

static void describe(hone_packed_info *out, const hn_packed *p)
{
    unsigned char d[HASH];
    hn_sha256 s;
    hn_sha256_init(&s);
    for (uint64_t i = 0; i < p->n; i++) {
        out->n_matrices += p->e[i].kind == HN_PACKED_MATRIX;
        out->n_vectors += p->e[i].kind == HN_PACKED_VECTOR;
        hn_sha256_add(&s, p->e[i].hash, HASH);
    }
    hn_sha256_end(&s, d);
    for (int i = 0; i < HASH; i++) snprintf(out->data_sha256 + 2 * i, 3, "%02x", d[i]);
    out->size = p->size;
}

static hone_status name_it(hone_packed_info *out, const char *path, hone_error *err)
{
    *out = (hone_packed_info){ .state = HONE_PACKED_NONE };
    if (strlen(path) >= sizeof out->path) return HN_FAIL(err, HONE_E_ARG, "a path of %zu bytes, expected less than %zu", strlen(path), sizeof out->path);
    memcpy(out->path, path, strlen(path) + 1);
    return HONE_OK;
}

hone_status hone_packed_describe(const char *file, hone_packed_info *out, hone_error *err)
{
    hn_packed *p;
    hone_error e = { 0 };
    hone_status st = name_it(out, file, err);
    if (st != HONE_OK) return st;
    if (!hn_packed_is(file)) return HN_FAIL(err, HONE_E_FORMAT, "%s: not a packed file of hone", HN_ESC(file, strlen(file)));
    st = hn_packed_open(&p, file, NULL, &e);
    if (st == HONE_OK) {
        out->state = HONE_PACKED_READY;
        describe(out, p);
        hn_packed_close(p);
        return HONE_OK;
    }
    out->state = HONE_PACKED_UNUSABLE;
    snprintf(out->note, sizeof out->note, "%.590s", e.message);
    if (st == HONE_E_FORMAT || st == HONE_E_UNSUPPORTED) return HONE_OK;
    if (err) *err = e;
    return st;
}

static hone_status find_in(const hn_gguf *g, const char *file, hone_packed_info *out, hone_error *err)
{
    found f;
    char *path = file ? strdup(file) : default_path(g);
    if (!path) return HN_FAIL(err, HONE_E_NOMEM, "name of the packed file");
    hone_status st = name_it(out, path, err);
    if (st == HONE_OK) st = look(&f, g, path, err);
    free(path);
    if (st != HONE_OK) return st;
    out->state = f.state;
    if (f.state == HONE_PACKED_READY || f.state == HONE_PACKED_TOUCHED) describe(out, f.file);
    snprintf(out->note, sizeof out->note, "%s", f.state == HONE_PACKED_TOUCHED ? "the model was copied or touched since: the next start compares its data" : f.why);
    drop_found(&f);
    return HONE_OK;
}

hone_status hone_packed_find(const char *model, const char *file, hone_packed_info *out, hone_error *err)
{
    hn_gguf *g;
    *out = (hone_packed_info){ .state = HONE_PACKED_NONE };
    hone_status st = hn_gguf_open(&g, model, err);
    if (st != HONE_OK) return st;
    st = find_in(g, file, out, err);
    hn_gguf_close(g);
    return st;
}

/* What there is to pack in a model opened without a packed file. */
static hone_status choose(work *k, const hone_model *m, hone_packed_info *out, hone_error *err)
{
    uint64_t n = hn_gguf_n_tensors(m->file);
    k->t = calloc(n + 1, sizeof *k->t);
    k->e = calloc(n + 1, sizeof *k->e);
    if (!k->t || !k->e) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of tensors", m->path);
    for (uint64_t i = 0; i < n; i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        bool vector = m->bound[i] == HN_BOUND_VECTOR;
        uint64_t rows = t->ne[1] * t->ne[2] * t->ne[3];
        if (m->bound[i] == HN_BOUND_UNUSED) continue;
        if (!vector && !hn_can_pack(t->type)) {
            out->n_plain++;
            out->plain_bytes += t->n_bytes;
            continue;
        }
        k->t[k->n] = t;
        k->e[k->n++] = (hn_packed_entry){ .name = t->name, .type = t->type, .kind = vector ? HN_PACKED_VECTOR : HN_PACKED_MATRIX, .n_in = vector ? t->ne[0] * rows : t->ne[0],
                                        .n_out = vector ? 1 : rows };
        out->n_vectors += vector;
        out->n_matrices += !vector;
    }
    if (!out->n_matrices)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: none of its weights has a type that can be packed", HN_ESC(m->path, strlen(m->path)));
    return HONE_OK;
}

static hone_status changed(const hone_model *m, hone_error *err)
{
    return HN_FAIL(err, HONE_E_IO, "%s: changed while it was read; try again when nobody writes it", HN_ESC(m->path, strlen(m->path)));
}

static hone_status write_packed(const hone_model *m, const char *path, hn_pool *pool, hone_packed_info *out, const hone_progress *pr, hone_error *err)
{
    unsigned char shapes[HASH], stamp[HASH], after[HASH];
    work k = { .w = NULL };
    hn_gguf *again = NULL;
    uint64_t at = 0;
    let_settle(m->file);
    hone_status st = choose(&k, m, out, err);
    if (st == HONE_OK) st = hn_packed_begin(&k.w, path, k.e, k.n, err); /* sets sizes */
    if (st == HONE_OK) st = plan(&k, hn_pool_threads(pool), true, err);
    if (st == HONE_OK) st = run(&k, pool, pr, HN_ESC(path, strlen(path)), err);
    if (st == HONE_OK && k.error) st = hn_packed_failed(k.w, k.error, err);
    if (st == HONE_OK) {
        for (uint64_t i = 0; i < k.n; i++) entry_hash(&k, i, &at, k.e[i].hash);
        shapes_of(m->file, shapes);
        stamp_of(m->file, stamp);
        st = hn_gguf_open(&again, m->path, err);
        if (st == HONE_OK && (!stamp_of(again, after) || memcmp(stamp, after, HASH) != 0)) st = changed(m, err);
        hn_gguf_close(again);
    }
    if (st == HONE_OK) st = hn_packed_end(k.w, shapes, stamp, err);
    hn_packed_writer_free(k.w);
    drop_plan(&k, hn_pool_threads(pool));
    free(k.t);
    free(k.e);
    return st;
}

static hone_status verify(const hone_model *m, const char *path, hn_pool *pool, hone_packed_info *out, const hone_progress *pr, hone_error *err)
{
    found f;
    const char *label = HN_ESC(path, strlen(path));
    hone_status st = look(&f, m->file, path, err);
    if (st != HONE_OK) return st;
    out->state = f.state;
    if (f.state == HONE_PACKED_NONE) st = HN_FAIL(err, HONE_E_IO, "%s", f.why);
    else if (f.state == HONE_PACKED_UNUSABLE) st = HN_FAIL(err, HONE_E_FORMAT, "%s", f.why);
    if (st != HONE_OK) {
        drop_found(&f);
        return st;
    }
    work k = { .t = f.t, .e = f.file->e, .n = f.file->n, .compare = true };
    if ((st = plan(&k, hn_pool_threads(pool), true, err)) == HONE_OK) st = run(&k, pool, pr, label, err);
    if (st == HONE_OK) {
        uint64_t bad = first_foreign(&k), differs = atomic_load(&k.differs);
        if (bad < k.n)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: made from other data than that of %s (tensor %s has another SHA-256)", label, HN_ESC(m->path, strlen(m->path)),
                         HN_ESC(k.e[bad].name.ptr, k.e[bad].name.len));
        else if (differs != UINT64_MAX)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: damaged: tensor %s differs from the model within rows %" PRIu64 " to %" PRIu64, label,
                         HN_ESC(k.e[k.p[differs].entry].name.ptr, k.e[k.p[differs].entry].name.len), k.p[differs].row, k.p[differs].row + (uint64_t)k.p[differs].n_rows - 1);
        else describe(out, f.file);
        if (st != HONE_OK) out->state = HONE_PACKED_UNUSABLE;
    }
    drop_plan(&k, hn_pool_threads(pool));
    drop_found(&f);
    return st;
}

/* Only a packed file, or nothing, may be replaced. */
static hone_status may_write(const hone_model *m, const char *path, hone_error *err)
{
    struct stat sb, sm;
    const char *label = HN_ESC(path, strlen(path));
    if (stat(path, &sb) != 0) /* whoever cannot look does not know that nothing is lost */
        return errno == ENOENT ? HONE_OK : HN_FAIL(err, HONE_E_IO, "%s: %s", label, strerror(errno));
    if (stat(m->path, &sm) == 0 && sm.st_dev == sb.st_dev && sm.st_ino == sb.st_ino)
        return HN_FAIL(err, HONE_E_ARG, "%s: is the model itself; expected another name for the packed file", label);
    if (!S_ISREG(sb.st_mode) || (sb.st_size > 0 && !hn_packed_is(path)))
        return HN_FAIL(err, HONE_E_ARG, "%s: exists and is not a packed file, so it is not replaced; expected another name", label);
    return HONE_OK;
}

hone_status hone_pack(const char *model, const hone_pack_params *params, hone_packed_info *out, const hone_progress *pr, hone_error *err)
{
    hone_pack_params p = params ? *params : (hone_pack_params){ .file = NULL };
    hone_packed_info none, *info = out ? out : &none;
    hone_model *m;
    hn_pool *pool = NULL;
    *info = (hone_packed_info){ .state = HONE_PACKED_NONE };
    hone_status st = hone_model_open(&m, model, &(hone_model_params){ .packed = "off" }, err);
    if (st != HONE_OK) return st;
    st = find_in(m->file, p.file, info, err);
    char path[sizeof info->path];
    memcpy(path, info->path, sizeof path);
    if (st == HONE_OK && !p.verify) st = may_write(m, path, err);
    bool there = info->state == HONE_PACKED_READY;
    if (st == HONE_OK && (p.verify || p.force || !there)) st = hn_pool_new(&pool, p.n_threads > 0 ? p.n_threads : hn_cpu_count(), err);
    if (pool) {
        st = name_it(info, path, err);
        if (st == HONE_OK) st = p.verify ? verify(m, path, pool, info, pr, err) : write_packed(m, path, pool, info, pr, err);
        hn_pool_free(pool);
    }
    if (st == HONE_OK && pool && !p.verify) {
        hone_packed_info done;
        st = find_in(m->file, path, &done, err);
        if (st == HONE_OK && done.state != HONE_PACKED_READY)
            st = HN_FAIL(err, HONE_E_IO, "%s: written, but it cannot be used: %s; hone pack --verify compares it with the model",
                         HN_ESC(path, strlen(path)), done.note);
        if (st == HONE_OK) {
            done.n_plain = info->n_plain;
            done.plain_bytes = info->plain_bytes;
            done.written = true;
            *info = done;
        }
    }
    hone_model_close(m);
    return st;
}
