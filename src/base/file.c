/* file: writing whole files; see file.h. Owns temporaries, their names, locks and removal. */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#define _GNU_SOURCE
#include "base/file.h"
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = HN_OS_HUGE_PAGE, MAX_WRITE = 1 << 30, MAX_LINKS = 40, MAX_TRIES = 100 };
enum { LABEL = 512 }; /* bytes of an escaped path in messages */
/* A temporary is the name or its first bytes, MARK, RANDOM letters of five bits. */
#define MARK ".hone-tmp-"
enum { RANDOM = 16, NAME_BYTES = 80 };

struct hn_file {
    char *path;  /* where it goes: links followed */
    char *tmp;   /* NULL: none made, or gone */
    char *label; /* the name as given, for messages */
    int fd;
    int error; /* errno of the first failure; nothing is written after it */
    bool live; /* tmp is in the table of those */
    uint64_t n_bytes, written;
    unsigned char *buf;
    size_t n_buf;
};

/* ---- temporaries of this process, for signals ---------------------------------------------------- */

/* A slot owns the string in it: whoever takes it out (the writer, or a handler on its way to the end of the
 * process) may use it, nobody else. With more writers at once than slots, the rest are left to the next writer. */
enum { LIVE = 64 };
static _Atomic(char *) live[LIVE];
static _Atomic long live_pid; /* a child between fork and exec must not remove its parent's */
_Static_assert(ATOMIC_POINTER_LOCK_FREE == 2 && ATOMIC_LONG_LOCK_FREE == 2, "used by signal handlers");

static bool enter_live(char *tmp)
{
    atomic_store(&live_pid, (long)getpid());
    for (int i = 0; i < LIVE; i++) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&live[i], &none, tmp)) return true;
    }
    return false;
}

/* False: a handler took it, and the process ends. */
static bool leave_live(char *tmp)
{
    for (int i = 0; i < LIVE; i++) {
        char *mine = tmp;
        if (atomic_compare_exchange_strong(&live[i], &mine, NULL)) return true;
    }
    return false;
}

void hn_file_unlink_live(void)
{
    int saved = errno;
    if (atomic_load(&live_pid) != (long)getpid()) return;
    for (int i = 0; i < LIVE; i++) {
        char *tmp = atomic_exchange(&live[i], NULL);
        if (tmp) unlink(tmp);
    }
    errno = saved;
}

/* ---- names ----------------------------------------------------------------------------------------- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The folder of path, malloc'ed; NULL: no memory. */
static char *folder_of(const char *path)
{
    size_t n = (size_t)(last_part(path) - path);
    return n ? strndup(path, n) : strdup(".");
}

void hn_file_sync_folder(const char *path)
{
    char *dir = folder_of(path);
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(dir);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

hone_status hn_file_make_folders(const char *path, hone_error *err)
{
    char *dir = strdup(path);
    hone_status st = dir ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "path of %zu bytes", strlen(path));
    for (char *p = dir; st == HONE_OK && *p && (p = strchr(p + 1, '/'));) {
        *p = 0;
        if (mkdir(dir, 0777) != 0 && errno != EEXIST)
            st = HN_FAIL(err, HONE_E_IO, "folder %s: %s", HN_ESC(dir, strlen(dir)), strerror(errno));
        *p = '/';
    }
    free(dir);
    return st;
}

/* What the link at dst, of cap bytes, leads to, in its place. errno on failure. */
static int follow_link(char *dst, size_t cap)
{
    char to[PATH_MAX];
    ssize_t n = readlink(dst, to, sizeof to - 1);
    if (n < 0) return errno;
    to[n] = 0;
    size_t keep = to[0] == '/' ? 0 : (size_t)(last_part(dst) - dst);
    if (keep + (size_t)n + 1 > cap) return ENAMETOOLONG;
    memcpy(dst + keep, to, (size_t)n + 1);
    return 0;
}

static hone_status refuse_kind(const char *label, mode_t mode, hone_error *err)
{
    return HN_FAIL(err, HONE_E_IO, "%s: exists and is %s; expected the name of a regular file, or of none", label,
                   S_ISDIR(mode) ? "a directory" : "a device or pipe, which would be replaced");
}

/* Follows links to where the file is or would be: dst[PATH_MAX]. *there: is it, with what in *sb? */
static hone_status find_target(char *dst, const char *path, const char *label, bool *there, struct stat *sb,
                               hone_error *err)
{
    size_t n = strlen(path);
    *there = false;
    if (!n) return HN_FAIL(err, HONE_E_ARG, "no file name given to write to");
    if (n >= PATH_MAX)
        return HN_FAIL(err, HONE_E_IO, "%s: %zu bytes of name, expected fewer than %d", label, n, PATH_MAX);
    memcpy(dst, path, n + 1);
    for (int links = 0; links <= MAX_LINKS; links++) {
        int e = 0;
        if (hn_os_names_open_file(dst))
            return HN_FAIL(err, HONE_E_IO,
                           "%s: is a device or pipe, or an open file's number; expected the name of a file", label);
        if (lstat(dst, sb) != 0) {
            e = errno;
            if (e == ENOENT && !links) return HONE_OK;
            if (e == ENOENT)
                return HN_FAIL(err, HONE_E_IO,
                               "%s: is a link to %s, which does not exist; remove the link, or make the file", label,
                               HN_ESC(dst, strlen(dst)));
            return HN_FAIL(err, HONE_E_IO, "%s: cannot write: %s", label, strerror(e));
        }
        if (!S_ISLNK(sb->st_mode)) {
            *there = true;
            return S_ISREG(sb->st_mode) ? HONE_OK : refuse_kind(label, sb->st_mode, err);
        }
        if ((e = follow_link(dst, PATH_MAX)) != 0) return HN_FAIL(err, HONE_E_IO, "%s: a link: %s", label, strerror(e));
    }
    return HN_FAIL(err, HONE_E_IO, "%s: a link that leads to itself; expected a file's name", label);
}

hone_status hn_file_check(const char *path, hone_error *err)
{
    char target[PATH_MAX], label[LABEL];
    struct stat sb;
    bool there;
    hn_escape(label, sizeof label, path, strlen(path));
    return find_target(target, path, label, &there, &sb, err);
}

/* How temporaries for the file `name` begin; returns the length, below NAME_BYTES + sizeof MARK. */
static size_t prefix_for(char *dst, const char *name)
{
    size_t n = strlen(name);
    if (n > NAME_BYTES)
        for (n = NAME_BYTES; n > 1 && ((unsigned char)name[n] & 0xC0) == 0x80; n--) {} /* not within a character */
    memcpy(dst, name, n);
    memcpy(dst + n, MARK, sizeof MARK);
    return n + sizeof MARK - 1;
}

static void random_letters(char *dst)
{
    static _Atomic uint64_t count;
    static const char letter[] = "0123456789abcdefghijklmnopqrstuv";
    unsigned char b[RANDOM];
    if (!hn_os_random(b, sizeof b)) { /* the name is only harder to guess; O_EXCL is what keeps files apart */
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        uint64_t key = hn_mix64((uint64_t)t.tv_nsec ^ (uint64_t)getpid() << 32) + atomic_fetch_add(&count, 1);
        for (int i = 0; i < RANDOM; i++) b[i] = (unsigned char)hn_rand64(key, (uint64_t)i);
    }
    for (int i = 0; i < RANDOM; i++) dst[i] = letter[b[i] & 31];
    dst[RANDOM] = 0;
}

/* ---- leftovers ----------------------------------------------------------------------------------------- */

/* Is it named as temporaries are? prefix NULL: of any file. */
static bool is_temporary(const char *name, const char *prefix, size_t n_prefix)
{
    size_t n = strlen(name), mark = sizeof MARK - 1;
    if (n < 1 + mark + RANDOM) return false;
    const char *random = name + n - RANDOM;
    if (memcmp(random - mark, MARK, mark) != 0 || strspn(random, "0123456789abcdefghijklmnopqrstuv") != RANDOM)
        return false;
    return !prefix || (n == n_prefix + RANDOM && memcmp(name, prefix, n_prefix) == 0);
}

/* Removes it unless somebody writes it. Only ours, and only files: opening others can wait or do something. */
static void remove_leftover(int dir, const char *name)
{
    struct stat named, opened;
    if (fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(named.st_mode)) return;
    if (named.st_uid != geteuid()) return;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    bool same = fstat(fd, &opened) == 0 && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
    if (same && flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(dir, name, 0);
    close(fd);
}

static void clean(const char *folder, const char *prefix, size_t n_prefix)
{
    DIR *d = opendir(folder);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (is_temporary(e->d_name, prefix, n_prefix)) remove_leftover(dirfd(d), e->d_name);
    closedir(d);
}

void hn_file_clean_folder(const char *folder) { clean(folder, NULL, 0); }

/* ---- the temporary ------------------------------------------------------------------------------------- */

/* Not locked by us and still there: a cleaner was faster. Where a file system has no locks nobody cleans. */
static bool lost_to_cleaner(int fd)
{
    struct stat sb;
    int r;
    while ((r = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) {}
    if (r != 0 && errno == EWOULDBLOCK) return true;
    return fstat(fd, &sb) == 0 && sb.st_nlink == 0;
}

static void forget_temporary(hn_file *f, bool remove)
{
    if (!f->tmp) return;
    if (remove) unlink(f->tmp);
    if (!f->live || leave_live(f->tmp)) free(f->tmp);
    f->tmp = NULL;
}

/* A new file in the folder of f->path, locked. errno, or 0. */
static int open_temporary(hn_file *f, mode_t mode)
{
    char prefix[NAME_BYTES + sizeof MARK];
    const char *name = last_part(f->path);
    size_t n_dir = (size_t)(name - f->path), n = prefix_for(prefix, name);
    int e = EEXIST;
    for (int i = 0; i < MAX_TRIES && e == EEXIST; i++) {
        if (!(f->tmp = malloc(n_dir + n + RANDOM + 1))) return ENOMEM;
        memcpy(f->tmp, f->path, n_dir);
        memcpy(f->tmp + n_dir, prefix, n);
        random_letters(f->tmp + n_dir + n);
        f->live = enter_live(f->tmp); /* before it is there: no signal finds it unknown */
        f->fd = open(f->tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        e = f->fd < 0 ? errno : 0;
        if (e == EINTR) e = EEXIST;
        if (e) forget_temporary(f, false);
        else if (lost_to_cleaner(f->fd) && i + 1 < MAX_TRIES) {
            close(f->fd);
            f->fd = -1;
            forget_temporary(f, true);
            e = EEXIST;
        }
    }
    return e;
}

/* Permission bits of the file to be replaced; its owner and group where they may read it. */
static int keep_attributes(const hn_file *f, const struct stat *old, bool owner)
{
    struct stat now;
    if (fstat(f->fd, &now) != 0) return errno;
    if (owner && (now.st_uid != old->st_uid || now.st_gid != old->st_gid)) { /* as far as we may */
        if (fchown(f->fd, old->st_uid, old->st_gid) != 0) (void)!fchown(f->fd, (uid_t)-1, old->st_gid);
    }
    if (((now.st_mode ^ old->st_mode) & 0777) == 0) return 0;
    if (fchmod(f->fd, old->st_mode & 0777) == 0 || errno == EPERM || errno == ENOTSUP) return 0; /* vfat has none */
    return errno;
}

/* Free bytes of the file system of fd; UINT64_MAX: some network file systems do not say. */
static uint64_t room_of(int fd)
{
    struct statvfs v;
    if (fstatvfs(fd, &v) != 0 || v.f_blocks == 0) return UINT64_MAX;
    return (uint64_t)v.f_bavail * (v.f_frsize ? v.f_frsize : v.f_bsize);
}

static hone_status check_room(const hn_file *f, hone_error *err)
{
    struct rlimit rl;
    uint64_t room = room_of(f->fd);
    if (room < f->n_bytes)
        return HN_FAIL(err, HONE_E_IO, "%s: file system too full: %" PRIu64 " bytes needed, %" PRIu64 " free", f->label,
                       f->n_bytes, room);
    if (getrlimit(RLIMIT_FSIZE, &rl) == 0 && rl.rlim_cur != RLIM_INFINITY && rl.rlim_cur < f->n_bytes)
        return HN_FAIL(err, HONE_E_IO, "%s: %" PRIu64 " bytes needed, the file size limit (ulimit -f) is %" PRIu64,
                       f->label, f->n_bytes, (uint64_t)rl.rlim_cur);
    return HONE_OK;
}

static hone_status open_file(hn_file *f, const char *path, const hn_file_want *want, hone_error *err)
{
    char target[PATH_MAX], prefix[NAME_BYTES + sizeof MARK];
    struct stat old;
    bool replaces;
    f->label = malloc(LABEL);
    if (!f->label) return HN_FAIL(err, HONE_E_NOMEM, "a file's name");
    hn_escape(f->label, LABEL, path, strlen(path));
    hone_status st = find_target(target, path, f->label, &replaces, &old, err);
    if (st != HONE_OK) return st;
    f->path = strdup(target);
    char *folder = folder_of(target);
    if (f->path && folder) clean(folder, prefix, prefix_for(prefix, last_part(target))); /* before room is looked at */
    bool named = f->path && folder;
    free(folder);
    if (!named) return HN_FAIL(err, HONE_E_NOMEM, "%s: a file's name", f->label);
    mode_t most = want->mode ? (mode_t)want->mode : 0666; /* a mode that is wanted holds for what is replaced, too */
    if (replaces && !want->mode) most = 0777;
    if (replaces) old.st_mode &= ~(mode_t)0777 | most;
    int e = open_temporary(f, replaces ? old.st_mode & 0777 : most); /* never more than in the end */
    if (e) return HN_FAIL(err, e == ENOMEM ? HONE_E_NOMEM : HONE_E_IO, "%s: cannot create: %s", f->label, strerror(e));
    if (replaces && (e = keep_attributes(f, &old, !want->mode)) != 0)
        return HN_FAIL(err, HONE_E_IO, "%s: cannot take over the permissions: %s", f->label, strerror(e));
    return want->n_bytes ? check_room(f, err) : HONE_OK;
}

hone_status hn_file_begin(hn_file **out, const char *path, const hn_file_want *want, hone_error *err)
{
    static const hn_file_want nothing;
    *out = NULL;
    if (!path) return HN_FAIL(err, HONE_E_ARG, "no file name given to write to");
    hn_file *f = calloc(1, sizeof *f);
    if (!f) return HN_FAIL(err, HONE_E_NOMEM, "a file to write");
    f->fd = -1;
    f->n_bytes = want ? want->n_bytes : 0;
    hone_status st = open_file(f, path, want ? want : &nothing, err);
    if (st == HONE_OK) *out = f;
    else hn_file_drop(f);
    return st;
}

/* ---- content ----------------------------------------------------------------------------------------------- */

hone_status hn_file_failed(const hn_file *f, int error, hone_error *err)
{
    if (error == ENOMEM) return HN_FAIL(err, HONE_E_NOMEM, "%s: no memory to write with", f->label);
    bool room_matters = f->n_bytes && (error == ENOSPC || error == EDQUOT || error == EFBIG);
    uint64_t room = room_matters && f->fd >= 0 ? room_of(f->fd) : UINT64_MAX;
    if (room_matters && f->buf) /* written in order */
        return HN_FAIL(err, HONE_E_IO,
                       "%s: %s after %" PRIu64 " of %" PRIu64 " bytes (%" PRIu64 " more needed, %" PRIu64
                       " free); nothing is left on disk",
                       f->label, strerror(error), f->written, f->n_bytes,
                       f->n_bytes > f->written ? f->n_bytes - f->written : 0, room);
    if (room_matters)
        return HN_FAIL(err, HONE_E_IO, "%s: %s: %" PRIu64 " bytes needed, %" PRIu64 " free; nothing is left on disk",
                       f->label, strerror(error), f->n_bytes, room);
    return HN_FAIL(err, HONE_E_IO, "%s: cannot write: %s; nothing is left on disk", f->label, strerror(error));
}

/* *done grows by what was written, also where not all was. errno, or 0. */
static int write_all(int fd, const unsigned char *p, uint64_t n, uint64_t *done)
{
    while (n) {
        ssize_t k = write(fd, p, n < MAX_WRITE ? (size_t)n : MAX_WRITE);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return k < 0 ? errno : EIO;
        p += k;
        n -= (uint64_t)k;
        *done += (uint64_t)k;
    }
    return 0;
}

static void flush_buffer(hn_file *f)
{
    size_t n = f->n_buf;
    f->n_buf = 0;
    if (n && !f->error) f->error = write_all(f->fd, f->buf, n, &f->written);
}

hone_status hn_file_put(hn_file *f, const void *data, uint64_t n, hone_error *err)
{
    const unsigned char *p = data;
    if (!f->buf && !f->error && !(f->buf = malloc(BUFFER))) f->error = ENOMEM;
    while (n && !f->error) {
        if (p && f->n_buf == 0 && n >= BUFFER) {
            uint64_t whole = n / BUFFER * BUFFER;
            f->error = write_all(f->fd, p, whole, &f->written);
            p += whole;
            n -= whole;
            continue;
        }
        size_t k = n < BUFFER - f->n_buf ? (size_t)n : BUFFER - f->n_buf;
        if (p) {
            memcpy(f->buf + f->n_buf, p, k);
            p += k;
        } else memset(f->buf + f->n_buf, 0, k);
        f->n_buf += k;
        n -= k;
        if (f->n_buf == BUFFER) flush_buffer(f);
    }
    return f->error ? hn_file_failed(f, f->error, err) : HONE_OK;
}

FILE *hn_file_stream(hn_file *f)
{
    int fd = dup(f->fd);
    if (fd < 0) return NULL;
    (void)!fcntl(fd, F_SETFD, FD_CLOEXEC);
    FILE *s = fdopen(fd, "w");
    if (!s) close(fd);
    return s;
}

int hn_file_put_at(hn_file *f, uint64_t at, const void *data, size_t n)
{
    for (const char *p = data; n > 0;) {
        ssize_t k = pwrite(f->fd, p, n < MAX_WRITE ? n : MAX_WRITE, (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return k < 0 && errno ? errno : EIO;
        p += k;
        n -= (size_t)k;
        at += (uint64_t)k;
    }
    return 0;
}

int hn_file_get_at(hn_file *f, uint64_t at, void *data, size_t n)
{
    for (char *p = data; n > 0;) {
        ssize_t k = pread(f->fd, p, n, (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return k < 0 && errno ? errno : EIO;
        p += k;
        n -= (size_t)k;
        at += (uint64_t)k;
    }
    return 0;
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

static int sync_file(int fd)
{
    int r;
    while ((r = fsync(fd)) != 0 && errno == EINTR) {}
    return r != 0 && errno != EINVAL && errno != EROFS ? errno : 0; /* EINVAL: a file system that cannot */
}

/* To the size that was promised: the end may be padding that nobody wrote. */
static int fill_up(const hn_file *f)
{
    struct stat sb;
    if (!f->n_bytes) return 0;
    if (fstat(f->fd, &sb) != 0) return errno;
    if ((uint64_t)sb.st_size >= f->n_bytes) return 0;
    return ftruncate(f->fd, (off_t)f->n_bytes) != 0 ? errno : 0;
}

hone_status hn_file_end(hn_file *f, hone_error *err)
{
    if (f->fd < 0 || !f->tmp) return HN_FAIL(err, HONE_E_ARG, "%s: ended twice", f->label);
    flush_buffer(f);
    if (!f->error) f->error = fill_up(f);
    if (!f->error) f->error = sync_file(f->fd);
    /* network file systems report full disks on closing; the second descriptor keeps the lock until the rename */
    int hold = f->error ? -1 : dup(f->fd);
    if (hold >= 0) (void)!fcntl(hold, F_SETFD, FD_CLOEXEC);
    int fd = f->fd;
    if (close(fd) != 0 && errno != EINTR && !f->error) f->error = errno;
    f->fd = -1;
    hone_status st = f->error ? hn_file_failed(f, f->error, err) : HONE_OK;
    if (st == HONE_OK && rename(f->tmp, f->path) != 0) {
        f->error = errno;
        st = HN_FAIL(err, HONE_E_IO, "%s: cannot rename to this name: %s", f->label, strerror(f->error));
    }
    forget_temporary(f, st != HONE_OK);
    if (st == HONE_OK) hn_file_sync_folder(f->path);
    if (hold >= 0) close(hold);
    return st;
}

void hn_file_drop(hn_file *f)
{
    if (!f) return;
    forget_temporary(f, true);
    if (f->fd >= 0) close(f->fd);
    free(f->buf);
    free(f->path);
    free(f->label);
    free(f);
}

hone_status hn_file_replace(const char *path, const void *text, size_t n, hone_error *err)
{
    hn_file *f;
    hone_status st = hn_file_make_folders(path, err);
    if (st == HONE_OK) st = hn_file_begin(&f, path, &(hn_file_want){ .n_bytes = n }, err);
    if (st != HONE_OK) return st;
    st = hn_file_put(f, text, n, err);
    if (st == HONE_OK) st = hn_file_end(f, err);
    hn_file_drop(f);
    return st;
}

/* ---- files that grow ------------------------------------------------------------------------------------- */

/* Behind what is there, sb->st_size bytes; errno, and then it is as before. */
static int append_at_end(int fd, off_t size, const char *header, const char *line, size_t n)
{
    char last = '\n';
    uint64_t done = 0;
    int e = 0;
    if (size > 0 && pread(fd, &last, 1, size - 1) != 1) return errno ? errno : EIO;
    if (size == 0 && header) e = write_all(fd, (const unsigned char *)header, strlen(header), &done);
    if (!e && last != '\n') e = write_all(fd, (const unsigned char *)"\n", 1, &done);
    if (!e) e = write_all(fd, (const unsigned char *)line, n, &done);
    if (!e) e = sync_file(fd);
    if (e) (void)!ftruncate(fd, size);
    return e;
}

hone_status hn_file_append_line(const char *path, const char *header, const char *line, size_t n, hone_error *err)
{
    struct stat sb = { 0 };
    int e = 0;
    hone_status st = hn_file_make_folders(path, err);
    if (st == HONE_OK) st = hn_file_check(path, err);
    if (st != HONE_OK) return st;
    const char *label = HN_ESC(path, strlen(path));
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd < 0) return HN_FAIL(err, HONE_E_IO, "%s: %s", label, strerror(errno));
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {}
    if (fstat(fd, &sb) != 0) st = HN_FAIL(err, HONE_E_IO, "%s: %s", label, strerror(errno));
    else if (!S_ISREG(sb.st_mode)) st = refuse_kind(label, sb.st_mode, err);
    else if ((e = append_at_end(fd, sb.st_size, header, line, n)) != 0)
        st = HN_FAIL(err, HONE_E_IO, "%s: appending %zu bytes: %s", label, n, strerror(e));
    if (close(fd) != 0 && errno != EINTR && st == HONE_OK)
        st = HN_FAIL(err, HONE_E_IO, "%s: %s", label, strerror(errno));
    if (st == HONE_OK && sb.st_size == 0) hn_file_sync_folder(path);
    return st;
}

hone_status hn_file_sha256(char *hex, const char *path, hone_error *err)
{
    hex[0] = 0;
    FILE *f = fopen(path, "re");
    if (!f) return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
    unsigned char buf[16384];
    hn_sha256 s;
    unsigned char d[32];
    size_t k;
    hn_sha256_init(&s);
    while ((k = fread(buf, 1, sizeof buf, f)) > 0) hn_sha256_add(&s, buf, k);
    bool bad = ferror(f);
    int e = errno;
    fclose(f);
    if (bad) return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(e));
    hn_sha256_end(&s, d);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", d[i]);
    return HONE_OK;
}
