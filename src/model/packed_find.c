/* packed_find: which side file belongs to which model, and whether its numbers are to be trusted. Owns the answer to
 * "may this packed file stand for these weights?"; knows what is bound to what; refuses to know how one is made
 * (forge/pack_model.c). The container is gguf/pack_file.h.
 *
 * Two proofs are asked for, each once for a file and then kept (base/known.h): that the file was made from this
 * model's tensor data (hn_identity.data against what the header says), and that its numbers are what was written then
 * (hn_packed_check). Without both nothing is answered from it. */
#define _GNU_SOURCE
#include "model/packed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum { HASH = HN_PACKED_HASH };

/* ---- names and shapes ---------------------------------------------------------------------- */

char *hn_packed_default_path(const hn_gguf *g)
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

void hn_packed_shapes(const hn_gguf *g, unsigned char out[HASH])
{
    hn_sha256 s;
    hn_sha256_init(&s);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
        char b[96];
        hn_sha256_add(&s, t->name.ptr, t->name.len);
        int n = snprintf(b, sizeof b, "\n%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", (int)t->type, t->ne[0],
                         t->ne[1], t->ne[2], t->ne[3]);
        hn_sha256_add(&s, b, (size_t)n);
    }
    hn_sha256_end(&s, out);
}

/* ---- does it belong? ------------------------------------------------------------------------ */

void hn_packed_drop(hn_packed_found *f)
{
    hn_packed_close(f->file);
    free(f->t);
    *f = (hn_packed_found){ .file = NULL };
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

/* Finds each entry's tensor, once: f->t. *sound: there is one for each. */
static hone_status match_entries(hn_packed_found *f, const hn_gguf *g, bool *sound, hone_error *err)
{
    uint64_t n = hn_gguf_n_tensors(g);
    bool *seen = calloc(n + 1, 1);
    *sound = false;
    f->t = calloc(f->file->n + 1, sizeof *f->t);
    if (!seen || !f->t) {
        free(seen);
        return HN_FAIL(err, HONE_E_NOMEM, "%s: table of %" PRIu64 " tensors",
                       HN_ESC(f->file->path, strlen(f->file->path)), n);
    }
    *sound = true;
    for (uint64_t i = 0; *sound && i < f->file->n; i++) {
        f->t[i] = tensor_of(g, &f->file->e[i]);
        uint64_t at = f->t[i] ? (uint64_t)(f->t[i] - hn_gguf_tensor_at(g, 0)) : n;
        *sound = f->t[i] && !seen[at];
        seen[at] = true;
    }
    free(seen);
    return HONE_OK;
}

static void not_usable(hn_packed_found *f, const char *why)
{
    const char *path = f->file->path;
    f->state = HONE_PACKED_UNUSABLE;
    snprintf(f->why, sizeof f->why, "%s: %s", HN_ESC(path, strlen(path)), why);
}

static const char foreign[] = "made from other tensor data of the same shapes";

hone_status hn_packed_look(hn_packed_found *f, const hn_gguf *g, const char *path, hone_error *err)
{
    hone_error e = { 0 };
    bool missing, sound = false;
    unsigned char shapes[HASH];
    hn_identity id;
    *f = (hn_packed_found){ .state = HONE_PACKED_UNUSABLE };
    hone_status st = hn_packed_open(&f->file, path, &missing, &e);
    if (st == HONE_E_NOMEM) {
        if (err) *err = e;
        return st;
    }
    if (st != HONE_OK) {
        f->state = missing ? HONE_PACKED_NONE : HONE_PACKED_UNUSABLE;
        snprintf(f->why, sizeof f->why, "%.590s", e.message);
        return HONE_OK;
    }
    hn_packed_shapes(g, shapes);
    bool same = memcmp(shapes, f->file->shapes, HASH) == 0;
    if (same && (st = match_entries(f, g, &sound, err)) != HONE_OK) {
        hn_packed_drop(f);
        return st;
    }
    bool known = hn_identity_known(g, &id);
    int unread = known ? 0 : errno;
    if (!same) not_usable(f, "made from a model with other tensors");
    else if (!sound) not_usable(f, "its directory does not fit the model: damaged");
    else if (known && memcmp(id.data, f->file->data, HASH) != 0) not_usable(f, foreign);
    else {
        bool proven = known && hn_packed_proven(f->file);
        f->state = proven ? HONE_PACKED_READY : HONE_PACKED_TOUCHED;
        if (known && !proven) unread = errno;
        if (unread) snprintf(f->why, sizeof f->why, "what is known of it cannot be read: %s", strerror(unread));
    }
    return HONE_OK;
}

hone_status hn_packed_prove(hn_packed_found *f, const hn_gguf *g, const hone_progress *pr, bool *kept, hone_error *err)
{
    hn_identity id;
    hn_identity_from from;
    hn_pool *pool;
    hone_error e = { 0 };
    *kept = true;
    hone_status st = hn_identity_of(g, &id, &from, pr, err);
    if (st != HONE_OK) return st;
    *kept = from != HN_IDENTITY_FORGOTTEN;
    if (memcmp(id.data, f->file->data, HASH) != 0) {
        not_usable(f, foreign);
        return HONE_OK;
    }
    if (!hn_packed_proven(f->file)) {
        bool stays = false;
        if ((st = hn_pool_new(&pool, hn_cpu_count(), err)) != HONE_OK) return st;
        st = hn_packed_check(f->file, pool, pr, &stays, &e);
        hn_pool_free(pool);
        *kept = *kept && stays;
    }
    if (st == HONE_OK) f->state = HONE_PACKED_READY;
    if (st == HONE_E_FORMAT) {
        f->state = HONE_PACKED_UNUSABLE;
        snprintf(f->why, sizeof f->why, "%.590s", e.message);
        return HONE_OK;
    }
    if (st != HONE_OK && err) *err = e;
    return st;
}

/* ---- taken into a model ------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static hone_status note(hone_model *m, hone_error *err, const char *fmt, ...)
{
    char text[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    m->packed_note = hn_arena_strndup(m->arena, text, strlen(text));
    return m->packed_note ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: note", m->path);
}

/* Takes f->file into the model, but for matrices that are plain by choice. */
static hone_status use_packed(hone_model *m, hn_packed_found *f, const hn_packed_choice *c, hone_error *err)
{
    uint64_t n = hn_gguf_n_tensors(m->file);
    m->packed_of = hn_arena_alloc(m->arena, (size_t)(n + 1) * sizeof *m->packed_of);
    if (!m->packed_of) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of tensors", m->path);
    for (uint64_t i = 0; i < f->file->n; i++) {
        const hn_packed_entry *e = &f->file->e[i];
        if (e->kind == HN_PACKED_MATRIX && c->plain[e->type]) continue;
        m->packed_of[f->t[i] - hn_gguf_tensor_at(m->file, 0)] = e;
    }
    m->packed = f->file;
    f->file = NULL;
    return HONE_OK;
}

static bool is_mixed(const hn_packed_choice *c) { return c->n_plain && c->n_packed; }

static double seconds_between(const struct timespec *a, const struct timespec *b)
{
    return (double)(b->tv_sec - a->tv_sec) + (double)(b->tv_nsec - a->tv_nsec) * 1e-9;
}

/* The first use of these two files together, as they are now: everything is read before anything is answered. */
static hone_status use_touched(hone_model *m, hn_packed_found *f, const hn_packed_choice *c, const char *words,
                               const hone_progress *pr, hone_error *err)
{
    bool kept;
    struct timespec a, b;
    char path[160];
    hn_escape(path, sizeof path, f->file->path, strlen(f->file->path));
    clock_gettime(CLOCK_MONOTONIC, &a);
    hone_status st = hn_packed_prove(f, m->file, pr, &kept, err);
    clock_gettime(CLOCK_MONOTONIC, &b);
    if (st != HONE_OK || f->state != HONE_PACKED_READY) return st;
    if ((st = use_packed(m, f, c, err)) != HONE_OK) return st;
    m->packed_compared = true;
    const char *mixed = is_mixed(c) ? words : "", *after = is_mixed(c) ? "" : words;
    return note(m, err,
                "%s%s%s: new here, or copied or touched since; all of it and of the model was checked in %.1f s and is "
                "right%s%s%s",
                mixed, *mixed ? "; " : "", path, seconds_between(&a, &b),
                kept ? "" : " (nowhere to remember that, so every start checks: set XDG_STATE_HOME or HOME)",
                *after ? "; " : "", after);
}

static hone_status refuse_packed(hone_model *m, const hn_packed_found *f, bool automatic, hone_error *err)
{
    const char *model = HN_ESC(m->path, strlen(m->path));
    m->packed_ignored = true;
    if (automatic) return note(m, err, "%s; it is not used; hone pack -m %s makes a new one", f->why, model);
    hone_status st = f->state == HONE_PACKED_NONE ? HONE_E_IO : HONE_E_FORMAT;
    return HN_FAIL(err, st, "%s; expected a packed file of %s, as hone pack makes it", f->why, model);
}

hone_status hn_model_find_packed(hone_model *m, const hone_model_params *p, hone_error *err)
{
    const char *want = p && p->packed ? p->packed : getenv("HONE_PACKED");
    bool automatic = !want || !*want || strcmp(want, "auto") == 0;
    hn_known_file *files = calloc((size_t)hn_gguf_n_parts(m->file), sizeof *files);
    bool on_disk = files && hn_gguf_files(m->file, files);
    free(files);
    if (!files) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of files", m->path);
    if (!on_disk) return note(m, err, "not a file");
    if (!automatic && strcmp(want, "off") == 0) return note(m, err, "switched off");
    char *path = automatic ? hn_packed_default_path(m->file) : strdup(want);
    if (!path) return HN_FAIL(err, HONE_E_NOMEM, "%s: name of its packed file", m->path);
    hn_packed_found f;
    hn_packed_choice c = { .n_plain = 0 };
    char words[500] = "";
    hone_status st = hn_packed_look(&f, m->file, path, err);
    bool usable = st == HONE_OK && (f.state == HONE_PACKED_READY || f.state == HONE_PACKED_TOUCHED);
    if (usable && automatic) {
        hn_packed_choose(&c, f.file, p && p->n_answers > 1, true);
        hn_packed_choice_words(words, sizeof words, &c);
    }
    if (usable && c.n_plain && !c.n_packed) {
        st = note(m, err, "%s would be slower; --packed %s reads it all the same; %s", HN_ESC(path, strlen(path)),
                  HN_ESC(path, strlen(path)), words);
    } else if (usable && f.state == HONE_PACKED_READY) {
        st = use_packed(m, &f, &c, err);
        const char *shown = HN_ESC(path, strlen(path)), *sep = words[0] ? "; " : "";
        if (st == HONE_OK && is_mixed(&c)) st = note(m, err, "%s; %s", words, shown);
        else if (st == HONE_OK) st = note(m, err, "%s%s%s", shown, sep, words);
    } else if (usable) {
        st = use_touched(m, &f, &c, words, p ? p->progress : NULL, err);
    } else if (st == HONE_OK && f.state == HONE_PACKED_NONE && automatic) {
        st = note(m, err, "no packed file; hone pack makes one");
    }
    if (st == HONE_OK && !m->packed && !m->packed_note) st = refuse_packed(m, &f, automatic, err);
    hn_packed_drop(&f);
    free(path);
    return st;
}
