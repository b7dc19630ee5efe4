/* part: the part file, its journal, its lock. What makes and renames files here is listed in
 * scripts/lint.sh. */
#include "hub/part.h"
#include "base/file.h"
#include "base/json_tree.h"
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PIECES = 1 << 16, MIN_PIECE = 1 << 12, MAX_JOURNAL = 4 << 20 };

static hone_status failed(const char *path, const char *what, hone_error *err)
{
    return HN_FAIL(err, HONE_E_IO, "%s: cannot %s: %s", HN_ESC(path, strlen(path)), what, strerror(errno));
}

/* ---- the lock -------------------------------------------------------------------------------- */

static int lock_open(const char *path) { return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666); }

/* Is what fd has locked still what path names? Somebody may have removed or renamed it meanwhile. */
static bool still_named(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static hone_status take_lock(int *out, const char *path, bool (*stop)(void *), void (*waiting)(void *), void *arg,
                             hone_error *err)
{
    bool told = false;
    const struct timespec nap = { 0, 50 * 1000 * 1000 };
    for (;;) {
        int fd = lock_open(path);
        if (fd < 0) return failed(path, "make or open it", err);
        while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno == ENOTSUP || errno == ENOLCK || errno == ENOSYS) break; /* a file system without: best effort */
            if (errno != EWOULDBLOCK && errno != EINTR) {
                hone_status st = failed(path, "lock it", err);
                close(fd);
                return st;
            }
            if (!told && waiting) waiting(arg);
            told = true;
            if (stop && stop(arg)) {
                close(fd);
                return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted while another program downloads this file");
            }
            nanosleep(&nap, NULL);
        }
        *out = fd;
        if (still_named(fd, path)) return HONE_OK;
        close(fd);
        *out = -1;
    }
}

static bool is_whole(const hn_part_names *n)
{
    struct stat sb;
    if (stat(n->whole, &sb) != 0 || !S_ISREG(sb.st_mode)) return false;
    return n->size == UINT64_MAX || (uint64_t)sb.st_size == n->size;
}

/* The whole file is there: of a process that was killed between its last two steps the journal may be, too, or all of a
 * part, where another program fetched the file meanwhile. Not while somebody holds the lock. */
static void drop_leftovers(const hn_part_names *n)
{
    struct stat sb;
    const char *lock = n->lock ? n->lock : n->part;
    if (lstat(n->journal, &sb) != 0 && lstat(n->part, &sb) != 0) return;
    int fd = open(lock, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 ? flock(fd, LOCK_EX | LOCK_NB) == 0 : errno == ENOENT) {
        unlink(n->part);
        unlink(n->journal);
    }
    if (fd >= 0) close(fd);
}

hone_status hn_part_lock(hn_part *p, const hn_part_names *names, bool *whole, bool (*stop)(void *),
                         void (*waiting)(void *), void *arg, hone_error *err)
{
    const char *lock = names->lock ? names->lock : names->part;
    struct stat sb;
    hone_status st;
    memset(p, 0, sizeof *p);
    p->fd = p->lock_fd = -1;
    p->names = *names;
    *whole = is_whole(names);
    if (*whole) drop_leftovers(names);
    if (*whole) return HONE_OK; /* complete files are only ever renamed to there */
    if ((st = hn_file_make_folders(names->part, err)) != HONE_OK) return st;
    if ((st = hn_file_make_folders(lock, err)) != HONE_OK) return st;
    if ((st = take_lock(&p->lock_fd, lock, stop, waiting, arg, err)) != HONE_OK) return st;
    *whole = is_whole(names);
    if (!*whole) return HONE_OK;
    if (!names->lock && fstat(p->lock_fd, &sb) == 0 && sb.st_size == 0) unlink(names->part);
    close(p->lock_fd);
    p->lock_fd = -1;
    return HONE_OK;
}

/* ---- the journal --------------------------------------------------------------------------------- */

uint64_t hn_part_first(const hn_part *p, size_t i) { return (uint64_t)i * p->piece; }

uint64_t hn_part_len(const hn_part *p, size_t i)
{
    uint64_t left = p->size - hn_part_first(p, i);
    return left < p->piece ? left : p->piece;
}

static const hn_json_rules journal_rules = { .max_bytes = MAX_JOURNAL, .max_depth = 4, .fault = HONE_E_FORMAT };

static bool u64_at(const json_t *o, const char *key, uint64_t *v)
{
    const json_t *n = json_object_get(o, key);
    *v = (uint64_t)json_integer_value(n);
    return json_is_integer(n) && json_integer_value(n) >= 0;
}

/* NULL: none that can be used. */
static json_t *read_journal(const hn_part *p)
{
    json_t *o;
    if (hn_json_tree_file(&o, p->names.journal, &journal_rules, NULL) != HONE_OK) return NULL;
    if (json_is_object(o) && strcmp(hn_json_text_of(o, "schema"), "hone.part/1") == 0) return o;
    json_decref(o);
    return NULL;
}

bool hn_part_known(const hn_part *p, char etag[132], uint64_t *size)
{
    json_t *o = read_journal(p);
    bool known = o && u64_at(o, "size", size);
    snprintf(etag, 132, "%s", o ? hn_json_text_of(o, "etag") : "");
    json_decref(o);
    return known;
}

/* The pieces of the journal, if it is of this content and the part is as large as it was made. */
static bool resume(hn_part *p, const json_t *o)
{
    uint64_t size, piece;
    struct stat sb;
    const json_t *have = json_object_get(o, "have");
    if (!*p->etag) return false; /* known by nothing */
    if (!u64_at(o, "size", &size) || size != p->size || strcmp(hn_json_text_of(o, "etag"), p->etag) != 0) return false;
    if (!u64_at(o, "piece", &piece) || piece < MIN_PIECE || fstat(p->fd, &sb) != 0 || (uint64_t)sb.st_size != size)
        return false;
    uint64_t n = (size - 1) / piece + 1;
    if (n > MAX_PIECES || json_array_size(have) != n) return false;
    uint64_t *bytes = calloc(n, sizeof *bytes);
    if (!bytes) return false;
    p->piece = piece;
    p->n_piece = n;
    p->have = bytes;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(have, i);
        json_int_t k = json_integer_value(v);
        if (!json_is_integer(v) || k < 0 || (uint64_t)k > hn_part_len(p, i)) {
            free(bytes);
            p->have = NULL;
            return false;
        }
        bytes[i] = (uint64_t)k;
        p->total += (uint64_t)k;
    }
    p->journalled = p->total;
    return true;
}

static hone_status synced(hn_part *p, hone_error *err)
{
    if (!p->unsynced && fsync(p->fd) != 0) p->unsynced = errno;
    if (!p->unsynced) return HONE_OK;
    errno = p->unsynced;
    return failed(p->names.part, "write it to disk", err);
}

hone_status hn_part_note(hn_part *p, hone_error *err)
{
    hone_error why;
    if (!err) err = &why;
    if (p->fd < 0 || !p->have) return HONE_OK;
    hn_os_text t;
    if (!hn_os_text_open(&t)) return HN_FAIL(err, HONE_E_NOMEM, "the journal of a download");
    fprintf(t.f, "{\"schema\":\"hone.part/1\",\"etag\":\"%s\",\"size\":%" PRIu64 ",\"piece\":%" PRIu64 ",\"have\":[",
            p->etag, p->size, p->piece);
    pthread_mutex_lock(&p->mu);
    uint64_t total = p->total;
    for (size_t i = 0; i < p->n_piece; i++) fprintf(t.f, "%s%" PRIu64, i ? "," : "", p->have[i]);
    pthread_mutex_unlock(&p->mu);
    fputs("]}\n", t.f);
    size_t n;
    char *text = hn_os_text_close(&t, &n);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "the journal of a download");
    hone_status st = HONE_OK;
    if (total != p->journalled) st = synced(p, err);
    struct stat sb;
    bool link = lstat(p->names.journal, &sb) == 0 && S_ISLNK(sb.st_mode); /* nobody's link is written through */
    if (st == HONE_OK && link && unlink(p->names.journal) != 0) st = failed(p->names.journal, "remove this link", err);
    if (st == HONE_OK && total != p->journalled) st = hn_file_replace(p->names.journal, text, n, err);
    if (st == HONE_OK) p->journalled = total;
    free(text);
    return st;
}

/* ---- the part --------------------------------------------------------------------------------------- */

static int part_open(const char *path) { return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666); }

static int part_cut(int fd) { return ftruncate(fd, 0); }

static hone_status take_room(hn_part *p, hone_error *err)
{
    int e = hn_os_file_room(p->fd, p->size);
    if (e == 0) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO,
                   "%s: no room for its %" PRIu64 " bytes at %s: %s; make room, then the same command "
                   "goes on",
                   HN_ESC(p->names.what, strlen(p->names.what)), p->size, HN_ESC(p->names.part, strlen(p->names.part)),
                   strerror(e));
}

hone_status hn_part_open(hn_part *p, uint64_t size, const char *etag, uint64_t piece, hone_error *err)
{
    if (p->names.lock) p->fd = part_open(p->names.part);
    else p->fd = dup(p->lock_fd);
    if (p->fd < 0) return failed(p->names.part, "make or open it", err);
    p->size = size;
    snprintf(p->etag, sizeof p->etag, "%s", etag);
    for (char *c = p->etag; *c; c++)
        if (*c < ' ' || *c == '"' || *c == '\\' || *c == 0x7F) *c = '_'; /* it stands in the journal */
    pthread_mutex_init(&p->mu, NULL);
    json_t *o = size ? read_journal(p) : NULL;
    bool resumed = o && resume(p, o);
    json_decref(o);
    if (resumed) return take_room(p, err);
    if (piece < MIN_PIECE) piece = MIN_PIECE;
    while (size / piece >= MAX_PIECES) piece *= 2;
    p->piece = piece;
    p->n_piece = size ? (size - 1) / piece + 1 : 0;
    p->have = calloc(p->n_piece + 1, sizeof *p->have);
    if (!p->have) return HN_FAIL(err, HONE_E_NOMEM, "the pieces of %s", HN_ESC(p->names.what, strlen(p->names.what)));
    return hn_part_forget(p, p->etag, err);
}

hone_status hn_part_forget(hn_part *p, const char *etag, hone_error *err)
{
    pthread_mutex_lock(&p->mu);
    memset(p->have, 0, p->n_piece * sizeof *p->have);
    p->total = p->journalled = 0;
    pthread_mutex_unlock(&p->mu);
    if (etag != p->etag) snprintf(p->etag, sizeof p->etag, "%s", etag);
    if (unlink(p->names.journal) != 0 && errno != ENOENT) return failed(p->names.journal, "remove it", err);
    if (part_cut(p->fd) != 0) return failed(p->names.part, "empty it", err);
    return take_room(p, err);
}

uint64_t hn_part_prefix(hn_part *p)
{
    uint64_t n = 0;
    pthread_mutex_lock(&p->mu);
    for (size_t i = 0; i < p->n_piece; i++) {
        n += p->have[i];
        if (p->have[i] < hn_part_len(p, i)) break;
    }
    pthread_mutex_unlock(&p->mu);
    return n;
}

int hn_part_put(hn_part *p, uint64_t at, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(p->fd, (const char *)bytes + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return k < 0 ? errno : EIO;
        done += (size_t)k;
    }
    pthread_mutex_lock(&p->mu);
    for (uint64_t from = at, end = at + n; from < end;) {
        size_t i = (size_t)(from / p->piece);
        uint64_t in = from - hn_part_first(p, i), k = hn_part_len(p, i) - in;
        if (k > end - from) k = end - from;
        if (p->have[i] >= in && p->have[i] < in + k) {
            p->total += in + k - p->have[i];
            p->have[i] = in + k;
        }
        from += k;
    }
    pthread_mutex_unlock(&p->mu);
    return 0;
}

uint64_t hn_part_covers(hn_part *p, uint64_t at)
{
    size_t i = p->piece ? (size_t)(at / p->piece) : 0;
    if (i >= p->n_piece) return 0;
    pthread_mutex_lock(&p->mu);
    uint64_t end = hn_part_first(p, i) + p->have[i];
    pthread_mutex_unlock(&p->mu);
    return end > at ? end - at : 0;
}

int hn_part_get(const hn_part *p, uint64_t at, void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pread(p->fd, (char *)bytes + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return k < 0 ? errno : EIO;
        done += (size_t)k;
    }
    return 0;
}

hone_status hn_part_publish(hn_part *p, hone_error *err)
{
    hone_status st = synced(p, err);
    if (st != HONE_OK) return st;
    if (!still_named(p->fd, p->names.part)) /* what has its name now may be another program's, and half of it */
        return HN_FAIL(err, HONE_E_IO, "%s: was removed while it was written; pull again, and let it be",
                       HN_ESC(p->names.part, strlen(p->names.part)));
    if (rename(p->names.part, p->names.whole) != 0) return failed(p->names.whole, "give a file this name", err);
    hn_file_sync_folder(p->names.whole);
    unlink(p->names.journal);
    return HONE_OK;
}

void hn_part_close(hn_part *p, bool remove)
{
    struct stat sb;
    /* never opened: what it holds is an earlier download's, and only an empty file is this one's, made to be locked */
    bool made = p->fd < 0 && p->lock_fd >= 0 && !p->names.lock && fstat(p->lock_fd, &sb) == 0 && sb.st_size == 0;
    if (remove && made) unlink(p->names.part);
    if (remove && p->fd >= 0) {
        unlink(p->names.journal);
        unlink(p->names.part);
    }
    if (p->fd >= 0) {
        close(p->fd);
        pthread_mutex_destroy(&p->mu);
    }
    if (p->lock_fd >= 0) close(p->lock_fd);
    free(p->have);
    memset(p, 0, sizeof *p);
    p->fd = p->lock_fd = -1;
}

uint64_t hn_part_missing(const char *part, uint64_t size)
{
    struct stat sb;
    if (lstat(part, &sb) != 0 || !S_ISREG(sb.st_mode)) return size;
    uint64_t there = (uint64_t)sb.st_blocks * 512;
    return there < size ? size - there : 0;
}
