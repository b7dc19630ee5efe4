/* pack_model: making the packed file of a model, and comparing one with it. Knows what is bound to what; the container
 * is gguf/pack_file.h, the layout quant/pack.h, finding and trusting one packed_find.c. */
#define _GNU_SOURCE
#include "base/file.h"
#include "forge/recipe.h"
#include "model/packed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HASH = HN_PACKED_HASH, PER_THREAD = 8 }; /* pieces of a batch */

/* ---- work on all pieces -------------------------------------------------------------------- */

typedef struct piece {
    uint64_t entry;
    hn_packed_piece at;
} piece;

typedef struct work {
    const hn_gguf_tensor **t; /* [n] of each entry */
    hn_packed_entry *e;       /* [n] */
    uint64_t n;
    piece *p;
    uint64_t n_piece, first;     /* first of the batch under way */
    unsigned char (*hash)[HASH]; /* [n_piece] of what was packed */
    char *buf;                   /* a packed piece for each thread */
    size_t buf_bytes;
    hn_packed_writer *w; /* to be written, or NULL: compared with what e->data holds */
    _Atomic int error;
    _Atomic uint64_t differs; /* first piece that does; UINT64_MAX: none */
} work;

static void pack_piece(char *buf, const hn_packed_entry *e, const char *src, size_t row, int64_t n_rows)
{
    if (e->kind == HN_PACKED_VECTOR) {
        hn_type_get((uint32_t)e->type)->dequantize((float *)(void *)buf, src, (int64_t)e->n_in);
        return;
    }
    size_t group = hn_packed_group_bytes(e->type, (int64_t)e->n_in);
    for (int64_t r = 0; r < n_rows; r += HN_PACK_ROWS, buf += group) {
        int n = (int)(n_rows - r < HN_PACK_ROWS ? n_rows - r : HN_PACK_ROWS);
        hn_pack_group(e->type, buf, src + (size_t)r * row, row, n, (int64_t)e->n_in);
    }
}

static void do_piece(void *arg, int64_t chunk, int32_t thread)
{
    work *k = arg;
    uint64_t i = k->first + (uint64_t)chunk;
    const hn_packed_piece *at = &k->p[i].at;
    const hn_packed_entry *e = &k->e[k->p[i].entry];
    size_t row = (size_t)hn_row_bytes(hn_type_get((uint32_t)e->type), e->n_in);
    const char *src = (const char *)k->t[k->p[i].entry]->data + (size_t)at->row * row;
    char *buf = k->buf + (size_t)thread * k->buf_bytes;
    pack_piece(buf, e, src, row, at->n_rows);
    if (k->w) {
        hn_sha256 s;
        hn_sha256_init(&s);
        hn_sha256_add(&s, buf, at->n_bytes);
        hn_sha256_end(&s, k->hash[i]);
        int error = hn_packed_write(k->w, e->offset + at->at, buf, at->n_bytes);
        if (error) atomic_store(&k->error, error);
    } else if (memcmp(buf, (const char *)e->data + at->at, at->n_bytes) != 0) {
        uint64_t old = atomic_load(&k->differs);
        while (i < old && !atomic_compare_exchange_weak(&k->differs, &old, i)) {}
    }
}

/* Cuts pieces and makes room. */
static hone_status plan_pieces(work *k, int32_t n_threads, hone_error *err)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < k->n; i++) n += hn_packed_pieces(&k->e[i]);
    k->n_piece = n;
    k->p = calloc(n ? n : 1, sizeof *k->p);
    k->hash = calloc(n ? n : 1, sizeof *k->hash);
    if (!k->p || !k->hash) return HN_FAIL(err, HONE_E_NOMEM, "table of %" PRIu64 " pieces", n);
    n = 0;
    for (uint64_t i = 0; i < k->n; i++)
        for (uint64_t x = 0; x < hn_packed_pieces(&k->e[i]); x++, n++) {
            k->p[n] = (piece){ i, hn_packed_piece_at(&k->e[i], x) };
            if (k->p[n].at.n_bytes > k->buf_bytes) k->buf_bytes = (k->p[n].at.n_bytes + 63) & ~(size_t)63;
        }
    k->buf = hn_pages_alloc((k->buf_bytes ? k->buf_bytes : 64) * (size_t)n_threads);
    if (!k->buf)
        return HN_FAIL(err, HONE_E_NOMEM, "buffers of %d threads for pieces of %zu bytes", n_threads, k->buf_bytes);
    atomic_store(&k->differs, UINT64_MAX);
    return HONE_OK;
}

static void drop_plan(work *k, int32_t n_threads)
{
    if (k->buf) hn_pages_free(k->buf, (k->buf_bytes ? k->buf_bytes : 64) * (size_t)n_threads);
    free(k->p);
    free(k->hash);
}

/* HONE_E_INTERRUPTED: asked to stop. A failure to write ends it too: see k->error. */
static hone_status do_all(work *k, hn_pool *pool, const hone_progress *pr, const char *what, hone_error *err)
{
    uint64_t batch = (uint64_t)hn_pool_threads(pool) * PER_THREAD;
    if (k->w) hn_packed_gather(k->w, (size_t)batch * (k->buf_bytes + 4096)); /* entries begin on a page */
    for (k->first = 0; k->first < k->n_piece && !atomic_load(&k->error); k->first += batch) {
        if (pr && pr->fn) pr->fn(pr->arg, k->first, k->n_piece);
        if (hn_interrupted(pr)) return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted", what);
        uint64_t n = k->n_piece - k->first < batch ? k->n_piece - k->first : batch;
        hn_pool_run(pool, do_piece, k, (int64_t)n);
        if (k->w && !atomic_load(&k->error)) {
            const piece *last = &k->p[k->first + n - 1];
            int error = hn_packed_flush(k->w, k->e[last->entry].offset + last->at.at + last->at.n_bytes);
            if (error) atomic_store(&k->error, error);
        }
    }
    if (pr && pr->fn) pr->fn(pr->arg, k->n_piece, k->n_piece);
    return HONE_OK;
}

/* The hash of each entry from those of its pieces. */
static void entry_hashes(work *k)
{
    for (uint64_t i = 0, at = 0; i < k->n; i++) {
        uint64_t n = hn_packed_pieces(&k->e[i]);
        hn_sha256 s;
        hn_sha256_init(&s);
        hn_sha256_add(&s, k->hash[at], (size_t)n * HASH);
        hn_sha256_end(&s, k->e[i].hash);
        at += n;
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

static void describe(hone_packed_info *out, const hn_packed *p)
{
    for (uint64_t i = 0; i < p->n; i++) {
        out->n_matrices += p->e[i].kind == HN_PACKED_MATRIX;
        out->n_vectors += p->e[i].kind == HN_PACKED_VECTOR;
    }
    hn_hex(out->data_sha256, p->data, sizeof p->data);
    out->size = p->size;
}

static hone_status name_it(hone_packed_info *out, const char *path, hone_error *err)
{
    *out = (hone_packed_info){ .state = HONE_PACKED_NONE };
    if (strlen(path) >= sizeof out->path)
        return HN_FAIL(err, HONE_E_ARG, "a path of %zu bytes, expected less than %zu", strlen(path), sizeof out->path);
    memcpy(out->path, path, strlen(path) + 1);
    return HONE_OK;
}

hone_status hone_packed_describe(const char *file, hone_packed_info *out, hone_error *err)
{
    hn_packed *p;
    hone_error e = { 0 };
    if (out) *out = (hone_packed_info){ .state = HONE_PACKED_NONE };
    HN_NEED(err, file, "the path of a packed file");
    HN_NEED(err, out, "a place for what is found");
    hone_status st = name_it(out, file, err);
    if (st != HONE_OK) return st;
    if (!hn_packed_is(file))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: not a packed file of hone", HN_ESC(file, strlen(file)));
    st = hn_packed_open(&p, file, NULL, &e);
    if (st == HONE_OK) {
        out->state = HONE_PACKED_READY;
        describe(out, p);
        if (!hn_packed_proven(p))
            snprintf(out->note, sizeof out->note,
                     "its numbers were not checked here yet: the first start with its model does");
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
    hn_packed_found f;
    char *path = file ? strdup(file) : hn_packed_default_path(g);
    if (!path) return HN_FAIL(err, HONE_E_NOMEM, "name of the packed file");
    hone_status st = name_it(out, path, err);
    if (st == HONE_OK) st = hn_packed_look(&f, g, path, err);
    free(path);
    if (st != HONE_OK) return st;
    out->state = f.state;
    if (f.state == HONE_PACKED_READY || f.state == HONE_PACKED_TOUCHED) describe(out, f.file);
    const char *unproven =
        "new here, or it or the model was copied or touched since: the next start checks all of both";
    snprintf(out->note, sizeof out->note, "%s", f.state == HONE_PACKED_TOUCHED && !f.why[0] ? unproven : f.why);
    hn_packed_drop(&f);
    return HONE_OK;
}

hone_status hone_packed_find(const char *model, const char *file, hone_packed_info *out, hone_error *err)
{
    hn_gguf *g;
    if (out) *out = (hone_packed_info){ .state = HONE_PACKED_NONE };
    HN_NEED(err, model, "the path of a model");
    HN_NEED(err, out, "a place for what is found");
    hone_status st = hn_gguf_open(&g, model, err);
    if (st != HONE_OK) return st;
    st = find_in(g, file, out, err);
    hn_gguf_close(g);
    return st;
}

/* ---- making ------------------------------------------------------------------------------------ */

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
        k->e[k->n++] = (hn_packed_entry){
            .name = t->name,
            .type = t->type,
            .kind = vector ? HN_PACKED_VECTOR : HN_PACKED_MATRIX,
            .n_in = vector ? t->ne[0] * rows : t->ne[0],
            .n_out = vector ? 1 : rows,
        };
        out->n_vectors += vector;
        out->n_matrices += !vector;
    }
    if (!out->n_matrices)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: none of its weights has a type that can be packed",
                       HN_ESC(m->path, strlen(m->path)));
    return HONE_OK;
}

static hone_status write_packed(const hone_model *m, const char *path, hn_pool *pool, hone_packed_info *out,
                                const hone_progress *pr, hone_error *err)
{
    unsigned char shapes[HASH];
    hn_identity id;
    work k = { .w = NULL };
    hone_status st = hn_identity_of(m->file, &id, NULL, pr, err);
    if (st == HONE_OK) st = choose(&k, m, out, err);
    if (st == HONE_OK) st = hn_packed_begin(&k.w, path, k.e, k.n, err); /* sets sizes */
    if (st == HONE_OK) st = plan_pieces(&k, hn_pool_threads(pool), err);
    if (st == HONE_OK) st = do_all(&k, pool, pr, HN_ESC(path, strlen(path)), err);
    if (st == HONE_OK && k.error) st = hn_packed_failed(k.w, k.error, err);
    if (st == HONE_OK) st = hn_gguf_unchanged(m->file, err);
    if (st == HONE_OK) {
        entry_hashes(&k);
        hn_packed_shapes(m->file, shapes);
        st = hn_packed_end(k.w, shapes, id.data, err);
    }
    hn_packed_writer_free(k.w);
    drop_plan(&k, hn_pool_threads(pool));
    free(k.t);
    free(k.e);
    return st;
}

/* Reads back what was written. */
static hone_status check_written(const char *path, hn_pool *pool, const hone_progress *pr, hone_error *err)
{
    hn_packed *p;
    hone_status st = hn_packed_open(&p, path, NULL, err);
    if (st != HONE_OK) return st;
    hn_stamp_settle(&p->stamp); /* so that once is enough */
    st = hn_packed_check(p, pool, pr, NULL, err);
    hn_packed_close(p);
    return st;
}

/* Packs the model again in memory and compares every byte. */
static hone_status compare_packed(const hone_model *m, hn_packed_found *f, hn_pool *pool, const hone_progress *pr,
                                  hone_error *err)
{
    const char *label = HN_ESC(f->file->path, strlen(f->file->path));
    work k = { .t = f->t, .e = f->file->e, .n = f->file->n };
    hone_status st = plan_pieces(&k, hn_pool_threads(pool), err);
    if (st == HONE_OK) st = do_all(&k, pool, pr, label, err);
    uint64_t differs = atomic_load(&k.differs);
    if (st == HONE_OK && differs != UINT64_MAX) {
        const hn_packed_piece *x = &k.p[differs].at;
        const hn_packed_entry *e = &k.e[k.p[differs].entry];
        st = HN_FAIL(err, HONE_E_FORMAT,
                     "%s: damaged: tensor %s differs from the model within rows %" PRIu64 " to %" PRIu64, label,
                     HN_ESC(e->name.ptr, e->name.len), x->row, x->row + (uint64_t)x->n_rows - 1);
    }
    drop_plan(&k, hn_pool_threads(pool));
    return st;
}

static hone_status verify(const hone_model *m, const char *path, hn_pool *pool, hone_packed_info *out,
                          const hone_progress *pr, hone_error *err)
{
    hn_packed_found f;
    hn_identity id;
    hone_status st = hn_packed_look(&f, m->file, path, err);
    if (st != HONE_OK) return st;
    out->state = f.state;
    if (f.state == HONE_PACKED_NONE) st = HN_FAIL(err, HONE_E_IO, "%s", f.why);
    else if (f.state == HONE_PACKED_UNUSABLE) st = HN_FAIL(err, HONE_E_FORMAT, "%s", f.why);
    if (st == HONE_OK) st = compare_packed(m, &f, pool, pr, err);
    /* Equal numbers are not all: the next start asks what the header says. */
    if (st == HONE_OK) st = hn_identity_of(m->file, &id, NULL, pr, err);
    if (st == HONE_OK && memcmp(id.data, f.file->data, HASH) != 0)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: made from other tensor data than that of %s", HN_ESC(path, strlen(path)),
                     HN_ESC(m->path, strlen(m->path)));
    if (st == HONE_OK) st = hn_packed_check(f.file, pool, pr, NULL, err);
    if (st == HONE_OK) describe(out, f.file);
    if (st == HONE_E_FORMAT) out->state = HONE_PACKED_UNUSABLE;
    hn_packed_drop(&f);
    return st;
}

/* Only a packed file, or nothing, may be replaced. */
static hone_status may_write(const hone_model *m, const char *path, hone_error *err)
{
    struct stat sb;
    const char *label = HN_ESC(path, strlen(path));
    const hn_file_use use[] = { { path, "the packed file", "-o", HN_FILE_WRITTEN },
                                { m->path, "the model", NULL, HN_FILE_READ } };
    hone_status st = hn_files_apart(use, sizeof use / sizeof *use, err);
    if (st != HONE_OK) return st;
    if (stat(path, &sb) != 0) /* whoever cannot look does not know that nothing is lost */
        return errno == ENOENT ? HONE_OK : HN_FAIL(err, HONE_E_IO, "%s: %s", label, strerror(errno));
    if (!S_ISREG(sb.st_mode) || (sb.st_size > 0 && !hn_packed_is(path)))
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: exists and is not a packed file, so it is not replaced; expected another name", label);
    return HONE_OK;
}

/* Whether the file at path may stay: proven now, if it was not before. */
static hone_status may_stay(const hone_model *m, const char *path, const hone_progress *pr, bool *stays,
                            hone_error *err)
{
    hn_packed_found f;
    bool kept;
    hone_status st = hn_packed_look(&f, m->file, path, err);
    if (st == HONE_OK && f.state == HONE_PACKED_TOUCHED) st = hn_packed_prove(&f, m->file, pr, &kept, err);
    *stays = st == HONE_OK && f.state == HONE_PACKED_READY;
    hn_packed_drop(&f);
    return st;
}

static hone_status make_packed(const hone_model *m, const char *path, const hone_pack_params *p, hone_packed_info *info,
                               const hone_progress *pr, hone_error *err)
{
    hn_pool *pool;
    bool stays = false;
    hone_status st = may_write(m, path, err);
    if (st == HONE_OK && !p->force) st = may_stay(m, path, pr, &stays, err);
    if (st != HONE_OK) return st;
    if (stays) return find_in(m->file, path, info, err);
    if ((st = hn_pool_new(&pool, p->n_threads > 0 ? p->n_threads : hn_cpu_count(), err)) != HONE_OK) return st;
    hone_packed_info made = { .state = HONE_PACKED_NONE };
    st = write_packed(m, path, pool, &made, pr, err);
    if (st == HONE_OK) st = check_written(path, pool, pr, err);
    hn_pool_free(pool);
    if (st == HONE_OK) st = find_in(m->file, path, info, err);
    if (st != HONE_OK) return st;
    if (info->state != HONE_PACKED_READY && info->state != HONE_PACKED_TOUCHED) /* READY needs a state folder */
        return HN_FAIL(err, HONE_E_IO,
                       "%s: written, but it cannot be used: %s; hone pack --verify compares it with the model",
                       HN_ESC(path, strlen(path)), info->note);
    info->n_plain = made.n_plain;
    info->plain_bytes = made.plain_bytes;
    info->written = true;
    return HONE_OK;
}

hone_status hone_pack(const char *model, const hone_pack_params *params, hone_packed_info *out, const hone_progress *pr,
                      hone_error *err)
{
    if (out) *out = (hone_packed_info){ .state = HONE_PACKED_NONE };
    HN_NEED(err, model, "the path of a model");
    hone_pack_params p = params ? *params : (hone_pack_params){ .file = NULL };
    if (p.n_threads < 0) return HN_FAIL(err, HONE_E_ARG, "pack: n_threads is %d, expected 0 or more", p.n_threads);
    hone_packed_info none, *info = out ? out : &none;
    hone_model *m;
    hn_pool *pool = NULL;
    *info = (hone_packed_info){ .state = HONE_PACKED_NONE };
    hone_status st = hone_model_open(&m, model, &(hone_model_params){ .packed = "off" }, err);
    if (st != HONE_OK) return st;
    char *name = p.file ? strdup(p.file) : hn_packed_default_path(m->file);
    st = name ? name_it(info, name, err) : HN_FAIL(err, HONE_E_NOMEM, "name of the packed file");
    free(name);
    char path[sizeof info->path];
    memcpy(path, info->path, sizeof path);
    if (st == HONE_OK && !p.verify) st = make_packed(m, path, &p, info, pr, err);
    else if (st == HONE_OK) st = hn_pool_new(&pool, p.n_threads > 0 ? p.n_threads : hn_cpu_count(), err);
    if (pool) st = verify(m, path, pool, info, pr, err);
    hn_pool_free(pool);
    hone_model_close(m);
    return st;
}
