/* pack_model: making the packed file of a model, and comparing one with it. Knows what is bound to what; the container
 * is gguf/pack_file.h, the layout quant/pack.h, finding and trusting one packed_find.c. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/floats.h"
#include "forge/recipe.h"
#include "model/packed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HASH = HN_PACKED_HASH };

/* ---- the pieces ------------------------------------------------------------------------------ */

typedef struct work {
    const hn_gguf_tensor **t; /* [n] of each entry */
    hn_packed_entry *e;       /* [n] */
    uint64_t n;
    hn_recipe_tensor *list;      /* [n] */
    uint64_t *first;             /* [n + 1] its first piece */
    unsigned char (*hash)[HASH]; /* [pieces] of what was packed */
    hn_packed_writer *w;         /* NULL: compared with what the entries hold */
} work;

static void pack_rows(char *buf, const hn_packed_entry *e, const char *src, size_t row, int64_t n_rows)
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

/* A piece of the recipe is a piece of the file's format, whose hashes are its proof. */
static hn_packed_piece pack_piece(const work *k, const hn_recipe_piece *p, uint64_t entry)
{
    const hn_packed_entry *e = &k->e[entry];
    hn_packed_piece at = hn_packed_piece_at(e, p->row);
    size_t row = (size_t)hn_row_bytes(hn_type_get((uint32_t)e->type), e->n_in);
    pack_rows(p->out, e, (const char *)k->t[entry]->data + (size_t)at.row * row, row, at.n_rows);
    return at;
}

static hone_status make_piece(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    work *k = arg;
    uint64_t entry = (uint64_t)(p->t - k->list);
    hn_sha256 s;
    pack_piece(k, p, entry);
    hn_sha256_init(&s);
    hn_sha256_add(&s, p->out, p->n_bytes);
    hn_sha256_end(&s, k->hash[k->first[entry] + p->row]);
    return HONE_OK;
}

static hone_status compare_piece(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    work *k = arg;
    uint64_t entry = (uint64_t)(p->t - k->list);
    const hn_packed_entry *e = &k->e[entry];
    hn_packed_piece at = pack_piece(k, p, entry);
    if (memcmp(p->out, (const char *)e->data + p->at, p->n_bytes) == 0) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "tensor %s differs from the model within rows %" PRIu64 " to %" PRIu64,
                   HN_ESC(e->name.ptr, e->name.len), at.row, at.row + (uint64_t)at.n_rows - 1);
}

static hone_status put_piece(void *to, const hn_recipe_piece *p, hone_error *err)
{
    work *k = to;
    const hn_packed_entry *e = &k->e[p->t - k->list];
    int error = hn_packed_write(k->w, e->offset + p->at, p->data, p->n_bytes);
    if (!error) error = hn_packed_flush(k->w, e->offset + p->at + p->n_bytes);
    return error ? hn_packed_failed(k->w, error, err) : HONE_OK;
}

/* The entries as tensors of a recipe; of a file to be written they have their places. */
static hone_status plan(work *k, hone_error *err)
{
    static const hn_recipe_source made = { .bytes = make_piece }, compared = { .bytes = compare_piece };
    uint64_t n = 0;
    k->list = calloc(k->n + 1, sizeof *k->list);
    k->first = calloc(k->n + 1, sizeof *k->first);
    if (!k->list || !k->first) return HN_FAIL(err, HONE_E_NOMEM, "list of %" PRIu64 " tensors", k->n);
    for (uint64_t i = 0; i < k->n; i++) {
        const hn_packed_entry *e = &k->e[i];
        const hn_gguf_tensor *t = k->t[i];
        k->list[i] = (hn_recipe_tensor){ .name = e->name,
                                         .type = e->type,
                                         .n_dim = t->n_dim,
                                         .ne = { t->ne[0], t->ne[1], t->ne[2], t->ne[3] },
                                         .source = k->w ? &made : &compared,
                                         .unit_bytes = hn_packed_piece_at(e, 0).n_bytes,
                                         .n_bytes = e->n_bytes };
        k->first[i] = n;
        n += hn_packed_pieces(e);
    }
    k->first[k->n] = n;
    if (k->w && !(k->hash = calloc(n + 1, sizeof *k->hash)))
        return HN_FAIL(err, HONE_E_NOMEM, "hashes of %" PRIu64 " pieces", n);
    return HONE_OK;
}

static void drop_plan(work *k)
{
    free(k->list);
    free(k->first);
    free(k->hash);
}

/* HONE_E_INTERRUPTED: asked to stop. */
static hone_status do_all(work *k, const char *path, int32_t n_threads, const hone_progress *pr, hone_error *err)
{
    static const hn_recipe_sink kept = { .put = put_piece }, looked_at = { .put = NULL };
    hn_recipe r = { .dst = path, .t = k->list, .n = k->n, .arg = k, .n_threads = n_threads, .pr = pr };
    hone_status st = plan(k, err);
    if (st != HONE_OK) return st;
    r.t = k->list;
    return hn_recipe_run(&r, k->w ? &kept : &looked_at, k, err);
}

/* The hash of each entry from those of its pieces. */
static void entry_hashes(work *k)
{
    for (uint64_t i = 0; i < k->n; i++) {
        hn_sha256 s;
        hn_sha256_init(&s);
        hn_sha256_add(&s, k->hash[k->first[i]], (size_t)(k->first[i + 1] - k->first[i]) * HASH);
        hn_sha256_end(&s, k->e[i].hash);
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

/* Which types will be read packed, as far as it is known. */
static void say_choice(char *note, size_t cap, const hn_packed *file, bool several)
{
    hn_packed_choice c;
    hn_packed_choose(&c, file, several, false);
    if (c.n_measured || !c.n_plain) hn_packed_choice_words(note, cap, &c);
    else snprintf(note, cap, "the next start measures which types are faster packed at %s", c.level);
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
    if (f.state == HONE_PACKED_READY) {
        say_choice(out->note, sizeof out->note, f.file, false);
        say_choice(out->note_several, sizeof out->note_several, f.file, true);
    }
    hn_packed_drop(&f);
    return HONE_OK;
}

hone_status hone_packed_find(const char *model, const char *file, hone_packed_info *out, hone_error *err)
{
    hn_gguf *g;
    if (out) *out = (hone_packed_info){ .state = HONE_PACKED_NONE };
    HN_NEED(err, model, "the path of a model");
    HN_NEED(err, out, "a place for what is found");
    hone_status st = hn_model_file_open(&g, model, err);
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
        bool table = t->data == m->ple_embd.data; /* of it single rows are read, which lie well where they are */
        uint64_t rows = t->ne[1] * t->ne[2] * t->ne[3];
        if (m->bound[i] == HN_BOUND_UNUSED || m->bound[i] == HN_BOUND_COPIED) continue; /* not read there */
        if (!vector && (table || !hn_can_pack(t->type))) {
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

static size_t largest_piece(const work *k)
{
    size_t most = 0;
    for (uint64_t i = 0; i < k->n; i++) {
        size_t n = hn_packed_piece_at(&k->e[i], 0).n_bytes;
        if (n > most) most = n;
    }
    return most;
}

static hone_status write_packed(const hone_model *m, const char *path, int32_t n_threads, hone_packed_info *out,
                                const hone_progress *pr, hone_error *err)
{
    unsigned char shapes[HASH];
    hn_identity id;
    work k = { .w = NULL };
    hone_status st = hn_identity_of(m->file, &id, NULL, pr, err);
    if (st == HONE_OK) st = choose(&k, m, out, err);
    if (st == HONE_OK) st = hn_packed_begin(&k.w, path, k.e, k.n, err); /* sets sizes */
    if (st == HONE_OK) hn_packed_gather(k.w, largest_piece(&k) + 4096); /* entries begin on a page */
    if (st == HONE_OK) st = do_all(&k, path, n_threads, pr, err);
    if (st == HONE_OK) st = hn_gguf_unchanged(m->file, err);
    if (st == HONE_OK) {
        entry_hashes(&k);
        hn_packed_shapes(m->file, shapes);
        st = hn_packed_end(k.w, shapes, id.data, err);
    }
    hn_packed_writer_free(k.w);
    drop_plan(&k);
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
static hone_status compare_packed(hn_packed_found *f, int32_t n_threads, const hone_progress *pr, hone_error *err)
{
    hone_error why = { 0 };
    const char *path = f->file->path;
    work k = { .t = f->t, .e = f->file->e, .n = f->file->n };
    hone_status st = do_all(&k, path, n_threads, pr, &why);
    drop_plan(&k);
    if (st == HONE_E_FORMAT) return HN_FAIL(err, st, "%s: damaged: %.700s", HN_ESC(path, strlen(path)), why.message);
    if (st != HONE_OK && err) *err = why;
    return st;
}

static hone_status verify(const hone_model *m, const char *path, int32_t n_threads, hone_packed_info *out,
                          const hone_progress *pr, hone_error *err)
{
    hn_packed_found f;
    hn_identity id;
    hn_pool *pool = NULL;
    hone_status st = hn_packed_look(&f, m->file, path, err);
    if (st != HONE_OK) return st;
    out->state = f.state;
    if (f.state == HONE_PACKED_NONE) st = HN_FAIL(err, HONE_E_IO, "%s", f.why);
    else if (f.state == HONE_PACKED_UNUSABLE) st = HN_FAIL(err, HONE_E_FORMAT, "%s", f.why);
    if (st == HONE_OK) st = compare_packed(&f, n_threads, pr, err);
    /* Equal numbers are not all: the next start asks what the header says. */
    if (st == HONE_OK) st = hn_identity_of(m->file, &id, NULL, pr, err);
    if (st == HONE_OK && memcmp(id.data, f.file->data, HASH) != 0)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: made from other tensor data than that of %s", HN_ESC(path, strlen(path)),
                     HN_ESC(m->path, strlen(m->path)));
    if (st == HONE_OK) st = hn_pool_new(&pool, n_threads, err);
    if (st == HONE_OK) st = hn_packed_check(f.file, pool, pr, NULL, err);
    hn_pool_free(pool);
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
    hn_pool *pool = NULL;
    bool stays = false;
    hone_status st = may_write(m, path, err);
    if (st == HONE_OK && !p->force) st = may_stay(m, path, pr, &stays, err);
    if (st != HONE_OK) return st;
    if (stays) return find_in(m->file, path, info, err);
    hone_packed_info made = { .state = HONE_PACKED_NONE };
    st = write_packed(m, path, p->n_threads, &made, pr, err);
    if (st == HONE_OK) st = hn_pool_new(&pool, p->n_threads, err);
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
    HN_FLOATS;
    if (out) *out = (hone_packed_info){ .state = HONE_PACKED_NONE };
    HN_NEED(err, model, "the path of a model");
    hone_pack_params p = params ? *params : (hone_pack_params){ .file = NULL };
    if (p.n_threads < 0) return HN_FAIL(err, HONE_E_ARG, "pack: n_threads is %d, expected 0 or more", p.n_threads);
    hone_packed_info none, *info = out ? out : &none;
    hone_model *m;
    if (!p.n_threads) p.n_threads = hn_cpu_count();
    *info = (hone_packed_info){ .state = HONE_PACKED_NONE };
    hone_status st = hone_model_open(&m, model, &(hone_model_params){ .packed = "off" }, err);
    if (st != HONE_OK) return st;
    char *name = p.file ? strdup(p.file) : hn_packed_default_path(m->file);
    st = name ? name_it(info, name, err) : HN_FAIL(err, HONE_E_NOMEM, "name of the packed file");
    free(name);
    char path[sizeof info->path];
    memcpy(path, info->path, sizeof path);
    if (st == HONE_OK && !p.verify) st = make_packed(m, path, &p, info, pr, err);
    else if (st == HONE_OK) st = verify(m, path, p.n_threads, info, pr, err);
    hone_model_close(m);
    return st;
}
