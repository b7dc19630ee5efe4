/* known: see known.h. A record is text: what it is, its key, the fact, the file's name, and a SHA-256 of all that;
 * whatever is not exactly so counts as nothing kept. */
#define _GNU_SOURCE
#include "base/known.h"
#include "base/file.h"
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 64, SAMPLE_BYTES = 1024, PATH_CAP = 4096, RECORD_CAP = 2048, HASH = 32 };

/* ---- stamps ------------------------------------------------------------------------------ */

void hn_stamp_of(hn_file_stamp *out, const struct stat *sb)
{
    *out = (hn_file_stamp){
        .dev = (uint64_t)sb->st_dev,
        .ino = (uint64_t)sb->st_ino,
        .size = (uint64_t)sb->st_size,
        .mtime_ns = hn_os_mtime_ns(sb),
        .ctime_ns = hn_os_ctime_ns(sb),
    };
}

static bool same_stamp(const hn_file_stamp *a, const struct stat *sb)
{
    hn_file_stamp b;
    hn_stamp_of(&b, sb);
    return a->dev == b.dev && a->ino == b.ino && a->size == b.size && a->mtime_ns == b.mtime_ns &&
           a->ctime_ns == b.ctime_ns;
}

bool hn_stamp_holds(const hn_file_stamp *stamp, const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 && same_stamp(stamp, &sb);
}

/* Nanoseconds until a change would get another time than this one; 0: it would. */
static int64_t unsettled_ns(int64_t time_ns)
{
    const int64_t second = 1000000000;
    int64_t grain = time_ns % second ? second / 50 : 2 * second; /* ticks of the kernel; whole seconds, two for FAT */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (int64_t)now.tv_sec * second + now.tv_nsec - time_ns;
    return age >= 0 && age < grain ? grain - age : 0; /* a time to come: waiting would not help */
}

static int64_t rest_of(const hn_file_stamp *stamp)
{
    int64_t m = unsettled_ns(stamp->mtime_ns), c = unsettled_ns(stamp->ctime_ns);
    return m > c ? m : c;
}

bool hn_stamp_fresh(const hn_file_stamp *stamp) { return rest_of(stamp) > 0; }

void hn_stamp_settle(const hn_file_stamp *stamp)
{
    int64_t rest = rest_of(stamp);
    struct timespec t = { (time_t)(rest / 1000000000), (long)(rest % 1000000000) };
    if (rest > 0) nanosleep(&t, NULL);
}

/* ---- keys -------------------------------------------------------------------------------- */

static void add_u64(hn_sha256 *s, uint64_t v)
{
    unsigned char b[8];
    for (int i = 0; i < 8; i++) b[i] = (unsigned char)(v >> (8 * i));
    hn_sha256_add(s, b, sizeof b);
}

/* False with errno 0: the file has become shorter. */
static bool pread_all(int fd, unsigned char *b, size_t n, uint64_t at)
{
    for (size_t have = 0; have < n;) {
        errno = 0;
        ssize_t k = pread(fd, b + have, n - have, (off_t)(at + have));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        have += (size_t)k;
    }
    return true;
}

/* n_sample pieces, evenly spread from the first byte to the last. */
static bool add_sample(hn_sha256 *s, int fd, uint64_t size, uint64_t n_sample)
{
    unsigned char b[SAMPLE_BYTES];
    uint64_t piece = size < SAMPLE_BYTES ? size : SAMPLE_BYTES;
    if (size <= n_sample * SAMPLE_BYTES) n_sample = (size + SAMPLE_BYTES - 1) / SAMPLE_BYTES; /* all of it */
    for (uint64_t i = 0; i < n_sample; i++) {
        uint64_t last = size - piece, at = n_sample > 1 ? last / (n_sample - 1) * i : 0;
        if (i + 1 == n_sample) at = last;
        if (!pread_all(fd, b, (size_t)piece, at)) return false;
        hn_sha256_add(s, b, (size_t)piece);
    }
    return true;
}

static bool add_file(hn_sha256 *s, const hn_known_file *f, uint64_t n_sample)
{
    struct stat sb;
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), e; /* a pipe must not hold us */
    if (fd < 0) {
        if (errno == ENOENT) errno = 0;
        return false;
    }
    const hn_file_stamp *t = &f->stamp;
    bool seen = fstat(fd, &sb) == 0, done = seen && S_ISREG(sb.st_mode) && same_stamp(t, &sb);
    if (seen && !done) errno = 0;
    if (done) {
        const uint64_t all[] = { t->dev, t->ino, t->size, (uint64_t)t->mtime_ns, (uint64_t)t->ctime_ns };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_u64(s, all[i]);
        done = add_sample(s, fd, t->size, n_sample);
    }
    e = errno;
    close(fd);
    errno = e;
    return done;
}

bool hn_known_key_of(hn_known_key *key, const hn_known_file *f, int32_t n)
{
    hn_sha256 s;
    errno = 0;
    if (n < 1) return false;
    uint64_t n_sample = (uint64_t)(n < SAMPLES / 4 ? SAMPLES / n : 4);
    hn_sha256_init(&s);
    for (int32_t i = 0; i < n; i++)
        if (!add_file(&s, &f[i], n_sample)) return false;
    hn_sha256_end(&s, key->sum);
    key->dev = f[0].stamp.dev;
    key->ino = f[0].stamp.ino;
    return true;
}

/* ---- records ----------------------------------------------------------------------------- */

bool hn_state_path(char *dst, size_t cap, const char *leaf)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool own = state && state[0] == '/';
    if (!own && !(home && home[0])) return false;
    int n = snprintf(dst, cap, "%s%s/hone/%s", own ? state : home, own ? "" : "/.local/state", leaf);
    return n > 0 && (size_t)n < cap;
}

static bool record_path(char dst[PATH_CAP], const hn_known_key *key, const char *kind)
{
    char leaf[160];
    int n = snprintf(leaf, sizeof leaf, "known/%s-%" PRIx64 "-%" PRIx64, kind, key->dev, key->ino);
    return n > 0 && (size_t)n < sizeof leaf && hn_state_path(dst, PATH_CAP, leaf);
}

static bool get_hex(unsigned char *dst, const char *s, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 2 * n; i++) {
        const char *d = s[i] ? strchr(digits, s[i]) : NULL;
        if (!d) return false;
        dst[i / 2] = (unsigned char)(i % 2 ? dst[i / 2] << 4 | (d - digits) : d - digits);
    }
    return true;
}

static void hash_text(char hex[2 * HASH + 1], const char *text, size_t n)
{
    unsigned char sum[HASH];
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, text, n);
    hn_sha256_end(&s, sum);
    hn_hex(hex, sum, HASH);
}

/* Everything up to the fact. */
static size_t record_head(char dst[RECORD_CAP], const hn_known_key *key, const char *kind)
{
    char hex[2 * HASH + 1];
    hn_hex(hex, key->sum, HASH);
    return (size_t)snprintf(dst, RECORD_CAP, "hone.known/1 %s\nkey %s\nfact ", kind, hex);
}

/* The whole of a small file; its bytes, 0 if there is none or it has more than cap - 1 (errno 0), or for errno. */
static size_t read_small(char *dst, size_t cap, const char *path)
{
    size_t n = 0;
    ssize_t k = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), e = 0;
    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR) errno = 0;
        return 0;
    }
    while (n < cap && (k = read(fd, dst + n, cap - n)) != 0) {
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) {
            e = errno;
            break;
        }
        n += (size_t)k;
    }
    close(fd);
    errno = e;
    return k == 0 && n < cap ? n : 0;
}

bool hn_known_get(const hn_known_key *key, const char *kind, void *fact, size_t n)
{
    char path[PATH_CAP], text[RECORD_CAP], head[RECORD_CAP], sum[2 * HASH + 1];
    const size_t tail = sizeof "sum " - 1 + 2 * HASH + 1; /* "sum HEX\n" */
    errno = 0;
    if (n > HN_KNOWN_FACT || !record_path(path, key, kind)) return false;
    size_t size = read_small(text, sizeof text, path), n_head = record_head(head, key, kind);
    if (size < n_head + 2 * n + 1 + tail || memcmp(text, head, n_head) != 0 || text[n_head + 2 * n] != '\n')
        return false;
    hash_text(sum, text, size - tail);
    const char *end = text + (size - tail);
    if (memcmp(end, "sum ", 4) != 0 || memcmp(end + 4, sum, 2 * HASH) != 0 || end[tail - 1] != '\n') return false;
    return get_hex(fact, text + n_head, n);
}

/* ---- how many ------------------------------------------------------------------------------ */

typedef struct record_age {
    int64_t mtime_ns;
    char name[64];
} record_age;

/* "KIND-DEV-INO", as record_path makes it. */
static bool is_record(const char *name)
{
    size_t kind = strspn(name, "abcdefghijklmnopqrstuvwxyz"), dev, ino;
    if (!kind || name[kind] != '-') return false;
    const char *s = name + kind + 1;
    dev = strspn(s, "0123456789abcdef");
    if (!dev || s[dev] != '-') return false;
    ino = strspn(s + dev + 1, "0123456789abcdef");
    return ino && !s[dev + 1 + ino] && strlen(name) < sizeof((record_age){ 0 }).name;
}

static int by_age(const void *a, const void *b)
{
    const record_age *x = a, *y = b;
    return x->mtime_ns != y->mtime_ns ? (x->mtime_ns < y->mtime_ns ? -1 : 1) : strcmp(x->name, y->name);
}

/* The records of an open folder with their ages; there may be more by now, or fewer. 0: none, or no memory. */
static size_t list_records(record_age **out, DIR *d)
{
    size_t n = 0, cap = 0;
    struct stat sb;
    *out = NULL;
    for (struct dirent *e; (e = readdir(d));) {
        if (!is_record(e->d_name) || fstatat(dirfd(d), e->d_name, &sb, AT_SYMLINK_NOFOLLOW) || !S_ISREG(sb.st_mode))
            continue;
        if (n == cap) {
            record_age *more = realloc(*out, (cap = cap ? 2 * cap : 1024) * sizeof *more);
            if (!more) return 0;
            *out = more;
        }
        (*out)[n].mtime_ns = hn_os_mtime_ns(&sb);
        memcpy((*out)[n++].name, e->d_name, strlen(e->d_name) + 1); /* it fits: is_record */
    }
    return n;
}

/* Removes the oldest records beyond HN_KNOWN_MAX. Others may do the same now, or keep something: a record that has been
 * replaced since it was listed stays, one that is gone is gone, and whoever loses one computes it again. */
static void remove_oldest(const char *record)
{
    char folder[PATH_CAP];
    const char *slash = strrchr(record, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - record), record);
    DIR *d = opendir(folder);
    if (!d) return;
    record_age *r;
    struct stat sb;
    size_t n = list_records(&r, d);
    if (n > HN_KNOWN_MAX) qsort(r, n, sizeof *r, by_age);
    for (size_t i = 0; n > HN_KNOWN_MAX && i < n - HN_KNOWN_MAX; i++)
        if (fstatat(dirfd(d), r[i].name, &sb, AT_SYMLINK_NOFOLLOW) == 0 && hn_os_mtime_ns(&sb) == r[i].mtime_ns)
            unlinkat(dirfd(d), r[i].name, 0);
    free(r);
    closedir(d);
}

bool hn_known_put(const hn_known_key *key, const char *kind, const char *path, const void *fact, size_t n)
{
    char record[PATH_CAP], text[RECORD_CAP], hex[2 * HN_KNOWN_FACT + 1], sum[2 * HASH + 1];
    if (n > HN_KNOWN_FACT || !record_path(record, key, kind)) return false;
    size_t at = record_head(text, key, kind);
    hn_hex(hex, fact, n);
    at += (size_t)snprintf(text + at, sizeof text - at, "%s\nfile %s\n", hex, HN_ESC(path, strlen(path)));
    hash_text(sum, text, at);
    at += (size_t)snprintf(text + at, sizeof text - at, "sum %s\n", sum);
    if (hn_file_replace(record, text, at, NULL) != HONE_OK) return false;
    remove_oldest(record);
    return true;
}
