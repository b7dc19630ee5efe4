/* Checkpoints: everything a run needs to go on as if it had not stopped. Little-endian file:
 *   "HONETRN1", u64 bytes of the file, u64 bytes of the settings, u64 arrays, u64 1 where the best validation's weights
 *   are there, the settings as text, hn_train_state; then per array u64 elements, f32 weights, first and
 *   second moments, best weights; u64 FNV-1a of all before.
 * Sealed (base/sealed.h); checked as a whole before anything is taken from it. */
#define _GNU_SOURCE
#include "base/sealed.h"
#include "train/trainer.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "HONETRN1";
typedef struct header {
    char magic[8];
    uint64_t n_bytes, n_settings, n_array, best;
} header;
_Static_assert(sizeof(header) == 40, "no padding");

enum { NAME = 64, EVAL_DUE = 2 };
#define SUFFIX ".ckpt"

/* ---- writing ------------------------------------------------------------------------------ */

static uint64_t file_bytes(const hone_trainer *t, bool best)
{
    return sizeof(header) + strlen(t->settings) + sizeof(hn_train_state) + (uint64_t)t->n_array * 8 +
           t->n_float * sizeof(float) * (best ? 4 : 3) + 8;
}

static void put_all(hn_sealing *o, hone_trainer *t)
{
    header h = { .n_bytes = file_bytes(t, t->has_best),
                 .n_settings = strlen(t->settings),
                 .n_array = (uint64_t)t->n_array,
                 .best = t->has_best };
    memcpy(h.magic, magic, sizeof magic);
    hn_seal_put(o, &h, sizeof h);
    hn_seal_put(o, t->settings, (size_t)h.n_settings);
    hn_train_state s = t->st;
    s.done |= t->eval_due ? EVAL_DUE : 0;
    hn_seal_put(o, &s, sizeof s);
    for (int32_t i = 0; i < t->n_array; i++) {
        const hn_param *a = hn_grad_param(t->grad, i);
        uint64_t n = (uint64_t)a->rows * (uint64_t)a->cols;
        hn_seal_put(o, &n, sizeof n);
        hn_seal_put(o, a->p, (size_t)n * sizeof(float));
        hn_seal_put(o, t->mom[i], (size_t)n * sizeof(float));
        hn_seal_put(o, t->var[i], (size_t)n * sizeof(float));
        if (t->has_best) hn_seal_put(o, t->best[i], (size_t)n * sizeof(float));
    }
}

static char *join(const char *folder, const char *name)
{
    char *p;
    return asprintf(&p, "%s/%s", folder, name) < 0 ? NULL : p;
}

static hone_status write_file(hone_trainer *t, const char *path, hone_error *err)
{
    hn_sealing o;
    hone_error why;
    hone_status st = hn_seal_begin(&o, path, file_bytes(t, t->has_best), &why);
    if (st == HONE_OK) {
        put_all(&o, t);
        st = hn_seal_end(&o, &why);
    }
    if (st == HONE_OK) return st;
    return HN_FAIL(err, st, "cannot write the checkpoint of step %lld (%llu bytes): %s; older ones are untouched",
                   (long long)t->st.step, (unsigned long long)file_bytes(t, t->has_best), why.message);
}

/* ---- a folder of them ------------------------------------------------------------------------ */

/* The step of "step-00000100.ckpt", or -1. */
static int64_t step_of(const char *name)
{
    char back[NAME];
    long long step = 0;
    if (strncmp(name, "step-", 5) != 0 || strlen(name) >= NAME) return -1;
    for (const char *c = name + 5; *c >= '0' && *c <= '9' && step < (long long)1e15; c++) step = step * 10 + (*c - '0');
    snprintf(back, sizeof back, "step-%08lld" SUFFIX, step);
    return strcmp(back, name) == 0 ? step : -1;
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Steps that have a file, newest first; none where there is no folder. leftovers: half-written files are removed. */
static hone_status list_steps(const char *folder, bool leftovers, int64_t **steps, size_t *n, hone_error *err)
{
    *steps = NULL;
    *n = 0;
    DIR *d = opendir(folder);
    if (!d) return errno == ENOENT ? HONE_OK : HN_FAIL(err, HONE_E_IO, "%s: %s", folder, strerror(errno));
    hone_status st = HONE_OK;
    if (leftovers) hn_file_clean_folder(folder);
    int unread;
    for (struct dirent *e; st == HONE_OK && (errno = 0, e = readdir(d));) {
        int64_t step = step_of(e->d_name);
        if (step < 0) continue;
        int64_t *more = realloc(*steps, (*n + 1) * sizeof *more);
        if (!more) st = HN_FAIL(err, HONE_E_NOMEM, "%s: list of checkpoints", folder);
        else {
            *steps = more;
            more[(*n)++] = step;
        }
    }
    unread = st == HONE_OK ? errno : 0; /* the end of a folder leaves it 0 */
    closedir(d);
    if (unread) st = HN_FAIL(err, HONE_E_IO, "%s: the folder cannot be read: %s", folder, strerror(unread));
    if (st != HONE_OK) {
        free(*steps);
        *steps = NULL;
        *n = 0;
    } else if (*n) qsort(*steps, *n, sizeof **steps, descending);
    return st;
}

static char *path_of(const char *folder, int64_t step)
{
    char name[NAME];
    snprintf(name, sizeof name, "step-%08lld" SUFFIX, (long long)step);
    return join(folder, name);
}

hone_status hone_trainer_save(hone_trainer *t, const char *folder, int32_t keep, hone_error *err)
{
    HN_NEED(err, t, "a trainer");
    HN_NEED(err, folder, "the path of a folder for checkpoints");
    if (!t->grad) return HN_FAIL(err, HONE_E_ARG, "this trainer is a plan");
    if (keep < 0) return HN_FAIL(err, HONE_E_ARG, "%s: keep %d checkpoints, expected 0 (all) or more", folder, keep);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return HN_FAIL(err, HONE_E_IO, "%s: %s", folder, strerror(errno));
    char *path = path_of(folder, t->st.step);
    if (!path) return HN_FAIL(err, HONE_E_NOMEM, "%s: path", folder);
    hone_status st = hn_trainer_apart(t, path, false, err);
    if (st == HONE_OK) st = write_file(t, path, err);
    free(path);
    if (st != HONE_OK) return st;
    int64_t *steps;
    size_t n, older = 0;
    if ((st = list_steps(folder, true, &steps, &n, err)) != HONE_OK) return st;
    for (size_t i = 0; keep && i < n; i++) {
        if (steps[i] == t->st.step || (steps[i] < t->st.step && ++older < (size_t)keep)) continue;
        if ((path = path_of(folder, steps[i]))) unlink(path);
        free(path);
    }
    free(steps);
    return HONE_OK;
}

hone_status hone_train_checkpoints(const char *folder, bool remove, int64_t *step, hone_error *err)
{
    int64_t *steps;
    size_t n;
    if (step) *step = 0;
    HN_NEED(err, folder, "the path of a folder");
    HN_NEED(err, step, "a place for the step");
    hone_status st = list_steps(folder, remove, &steps, &n, err);
    if (st != HONE_OK) return st;
    *step = n && !remove ? steps[0] : 0;
    for (size_t i = 0; remove && i < n && st == HONE_OK; i++) {
        char *path = path_of(folder, steps[i]);
        if (!path || unlink(path) != 0)
            st = HN_FAIL(err, path ? HONE_E_IO : HONE_E_NOMEM, "%s: step %lld: cannot be removed", folder,
                         (long long)steps[i]);
        free(path);
    }
    free(steps);
    return st;
}

/* ---- reading ---------------------------------------------------------------------------------- */

/* Both end every line with \n. Names the first setting in which they differ. */
static hone_status compare_settings(const char *path, const char *then, size_t n, const char *now, hone_error *err)
{
    static const char added[] = "micro_batches ";
    const char *end = then + n;
    while (then < end && *now) {
        size_t k = sizeof added - 1;
        if (strncmp(now, added, k) == 0 && ((size_t)(end - then) < k || memcmp(then, added, k) != 0)) {
            now += strcspn(now, "\n") + 1; /* an older hone did not say */
            continue;
        }
        const char *nl = memchr(then, '\n', (size_t)(end - then));
        size_t a = nl ? (size_t)(nl - then) : (size_t)(end - then), b = strcspn(now, "\n"), word = strcspn(now, " ");
        if (a != b || memcmp(then, now, a)) {
            bool named = a > word && memcmp(then, now, word + 1) == 0;
            if (named && word == 4 && memcmp(now, "base", 4) == 0 && a == sizeof "base 0123456789abcdef" - 1)
                return HN_FAIL(err, HONE_E_UNSUPPORTED,
                               "%s: a checkpoint of an older hone, which knew its base by a few bytes; "
                               "go on with the version that wrote it, or train anew",
                               path);
            return HN_FAIL(
                err, HONE_E_ARG,
                "%s: %.*s is %s there and %s now: a checkpoint goes on with its own settings, data and base only", path,
                named ? (int)word : 20, named ? now : "another setting",
                named ? HN_ESC(then + word + 1, a - word - 1) : HN_ESC(then, a),
                named ? HN_ESC(now + word + 1, b - word - 1) : HN_ESC(now, b));
        }
        then += a + (nl != NULL);
        now += b + 1;
    }
    if (then < end || *now) return HN_FAIL(err, HONE_E_ARG, "%s: has other settings than these", path);
    return HONE_OK;
}

static hone_status check_file(const hone_trainer *t, const char *path, const hn_sealed *f, hone_error *err)
{
    header h;
    const unsigned char *p = f->p;
    uint64_t size = f->size;
    if (size < sizeof h + 8)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes are too few for a checkpoint", path,
                       (unsigned long long)size);
    memcpy(&h, p, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: not a checkpoint of hone's training", path);
    if (h.n_bytes != size)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes, expected %llu: cut off or damaged", path,
                       (unsigned long long)size, (unsigned long long)h.n_bytes);
    if (!hn_sealed_fits(f)) return HN_FAIL(err, HONE_E_FORMAT, "%s: checksum does not match: damaged", path);
    if (h.n_settings > size - sizeof h - 8)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes of settings do not fit", path,
                       (unsigned long long)h.n_settings);
    hone_status st = compare_settings(path, (const char *)p + sizeof h, (size_t)h.n_settings, t->settings, err);
    if (st != HONE_OK) return st;
    uint64_t at = sizeof h + h.n_settings + sizeof(hn_train_state), n,
             want = file_bytes(t, h.best == 1) - strlen(t->settings) + h.n_settings;
    if (h.n_array != (uint64_t)t->n_array || h.best > 1 || want != size)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu arrays in %llu bytes, expected %d in %llu", path,
                       (unsigned long long)h.n_array, (unsigned long long)size, t->n_array, (unsigned long long)want);
    for (int32_t i = 0; i < t->n_array; i++, at += 8 + n * sizeof(float) * (h.best ? 4 : 3)) {
        const hn_param *a = hn_grad_param(t->grad, i);
        memcpy(&n, p + at, sizeof n); /* in the file: so far all are as long as here, and the total is */
        if (n != (uint64_t)a->rows * (uint64_t)a->cols)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has %llu elements, expected %lld", path, a->name,
                           (unsigned long long)n, (long long)(a->rows * a->cols));
    }
    return HONE_OK;
}

/* What of s no run of t comes to, or NULL: then nothing overflows from here on. */
static const char *impossible(const hone_trainer *t, const hn_train_state *s)
{
    const struct {
        const char *name;
        int64_t n;
    } count[] = {
        { "steps", s->step },
        { "steps applied", s->n_applied },
        { "steps skipped", s->n_skipped },
        { "bad steps in a row", s->n_bad_row },
        { "micro-batches", s->n_micro },
        { "epochs", s->cursor.epoch },
        { "sequences", s->cursor.at },
        { "tokens", s->n_tok },
        { "targets", s->n_target },
        { "steps to the best", s->best_step },
        { "validations since the best", s->n_since_best },
    };
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        if (count[i].n < 0 || count[i].n > (int64_t)1 << 53) return count[i].name;
    if (s->n_applied + s->n_skipped != s->step) return "steps applied and skipped";
    if (s->best_step > s->step) return "steps to the best";
    if ((s->done & ~(int64_t)EVAL_DUE) >> 1 || s->stopped_early >> 1) return "ends";
    return !(s->done & 1) && t->micro_total && s->n_micro >= t->micro_total ? "micro-batches" : NULL;
}

static hone_status take_all(hone_trainer *t, const char *path, const unsigned char *p, hone_error *err)
{
    header h;
    hn_train_state s;
    hone_error why;
    memcpy(&h, p, sizeof h);
    p += sizeof h + h.n_settings;
    memcpy(&s, p, sizeof s);
    p += sizeof s;
    const char *what = impossible(t, &s);
    if (what)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: the number of %s is one that no run comes to: damaged", path, what);
    if (hn_loader_seek(t->loader, s.cursor, &why) != HONE_OK)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s", path, why.message);
    t->st = s;
    t->st.done &= 1;
    /* with more patience, or none, training that ended early goes on */
    if (s.stopped_early && (!t->p.patience || s.n_since_best < t->p.patience) && s.step < t->schedule.total &&
        !(t->micro_total && s.n_micro >= t->micro_total))
        t->st.done = t->st.stopped_early = 0;
    t->eval_due = t->val_loader && (s.done & EVAL_DUE);
    t->has_best = h.best && t->best;
    if (t->best && !h.best && isfinite(s.best_val)) { /* nobody kept those weights: the best is sought from here on */
        t->st.best_val = NAN;
        t->st.best_step = t->st.n_since_best = 0;
    }
    for (int32_t i = 0; i < t->n_array; i++) {
        const hn_param *a = hn_grad_param(t->grad, i);
        size_t n = (size_t)(a->rows * a->cols) * sizeof(float);
        p += 8;
        memcpy(a->p, p, n);
        memcpy(t->mom[i], p + n, n);
        memcpy(t->var[i], p + 2 * n, n);
        if (t->has_best) memcpy(t->best[i], p + 3 * n, n);
        p += n * (h.best ? 4 : 3);
    }
    return HONE_OK;
}

hone_status hone_trainer_load(hone_trainer *t, const char *path, hone_error *err)
{
    HN_NEED(err, t, "a trainer");
    HN_NEED(err, path, "the path of a checkpoint");
    if (!t->grad) return HN_FAIL(err, HONE_E_ARG, "this trainer is a plan");
    hn_sealed f;
    int why = hn_sealed_open(&f, path, magic, sizeof magic);
    if (why == HN_SEALED_OTHER) return HN_FAIL(err, HONE_E_FORMAT, "%s: not a checkpoint of hone's training", path);
    if (why == HN_SEALED_CHANGED)
        return HN_FAIL(err, HONE_E_IO, "%s: was written to while it was read; try again", path);
    if (why == ENOMEM) return HN_FAIL(err, HONE_E_NOMEM, "%s: no memory to read it", path);
    if (why < 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: empty, or not a file", path);
    if (why) return HN_FAIL(err, HONE_E_IO, "%s: %s", path, strerror(why));
    hone_status st = check_file(t, path, &f, err);
    if (st == HONE_OK) st = take_all(t, path, f.p, err);
    hn_sealed_close(&f);
    return st;
}

hone_status hone_trainer_resume(hone_trainer *t, const char *folder, int64_t *step, char *note, size_t n_note,
                                hone_error *err)
{
    int64_t *steps;
    size_t n, i;
    hone_error why = { 0 };
    if (step) *step = 0;
    if (note && n_note) note[0] = 0;
    HN_NEED(err, t, "a trainer");
    HN_NEED(err, folder, "the path of a folder of checkpoints");
    HN_NEED(err, step, "a place for the step");
    if (n_note) HN_NEED(err, note, "room for n_note bytes");
    hone_status st = list_steps(folder, false, &steps, &n, err);
    if (st != HONE_OK) return st;
    for (i = 0; i < n; i++) {
        char *path = path_of(folder, steps[i]);
        st = path ? hone_trainer_load(t, path, &why) : HN_FAIL(&why, HONE_E_NOMEM, "%s: path", folder);
        free(path);
        if (st == HONE_OK) *step = steps[i];
        else if (i == 0) snprintf(note, n_note, "%s", why.message);
        if (st != HONE_E_FORMAT) break;
    }
    free(steps);
    if (st != HONE_OK && err) *err = why;
    return st;
}
