/* What fuzz targets of files share: a folder of their own (in memory where there is such a place), reading the
 * input piece by piece, and editing a good file as the input says, so that mutations stay near what is accepted.
 * Knows no format. */
#ifndef HN_FUZZ_FILE_H
#define HN_FUZZ_FILE_H

#include "edits.h"
#include "must.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the folder ------------------------------------------------------------------------------ */

static char ff_dir[64];

static void ff_empty(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[400];
    while (d && (e = readdir(d))) {
        struct stat sb;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (lstat(path, &sb) == 0 && S_ISDIR(sb.st_mode)) {
            ff_empty(path);
            rmdir(path);
        } else {
            unlink(path);
        }
    }
    if (d) closedir(d);
}

static void ff_end(void)
{
    ff_empty(ff_dir);
    rmdir(ff_dir);
}

static __attribute__((unused)) void ff_begin(void)
{
    static const char *const places[] = { "/dev/shm", "/tmp" };
    for (size_t i = 0; i < 2 && !*ff_dir; i++) {
        snprintf(ff_dir, sizeof ff_dir, "%s/hone-fuzz-XXXXXX", places[i]);
        if (!mkdtemp(ff_dir)) *ff_dir = 0;
    }
    FF_MUST(*ff_dir);
    setenv("XDG_STATE_HOME", ff_dir, 1); /* what is remembered of files goes with them */
    atexit(ff_end);
}

/* With FUZZ_SAY set: why an input is refused, for who writes seeds. */
static __attribute__((unused)) void ff_say(const char *message)
{
    static int say = -1;
    if (say < 0) say = getenv("FUZZ_SAY") != NULL;
    if (say) fprintf(stderr, "%s\n", message);
}

/* One of eight buffers in turn. */
static __attribute__((unused)) const char *ff_path(const char *name)
{
    static char path[8][200];
    static unsigned k;
    char *p = path[k++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", ff_dir, name);
    return p;
}

static __attribute__((unused)) const char *ff_put(const char *name, const void *data, size_t n)
{
    const char *path = ff_path(name);
    FILE *f = fopen(path, "wb");
    FF_MUST(f && (!n || fwrite(data, 1, n, f) == n) && fclose(f) == 0);
    return path;
}

/* *p malloc'ed. */
static __attribute__((unused)) size_t ff_get(const char *path, uint8_t **p)
{
    FILE *f = fopen(path, "rb");
    FF_MUST(f && fseek(f, 0, SEEK_END) == 0);
    size_t n = (size_t)ftell(f);
    rewind(f);
    *p = malloc(n + 1);
    FF_MUST(*p && fread(*p, 1, n, f) == n);
    fclose(f);
    return n;
}

/* ---- the input ---------------------------------------------------------------------------------- */

typedef struct ff_in {
    const uint8_t *p;
    size_t n;
} ff_in;

static inline unsigned ff_u8(ff_in *in) { return in->n ? in->n--, *in->p++ : 0; }
static inline unsigned ff_u16(ff_in *in)
{
    unsigned lo = ff_u8(in);
    return lo | ff_u8(in) << 8;
}

/* The next n bytes, or as many as there are. */
static inline ff_in ff_take(ff_in *in, size_t n)
{
    if (n > in->n) n = in->n;
    ff_in out = { in->p, n };
    in->p += n;
    in->n -= n;
    return out;
}

/* What stands before the next byte `end`, which is dropped; else all. */
static __attribute__((unused)) ff_in ff_until(ff_in *in, uint8_t end)
{
    const uint8_t *e = in->n ? memchr(in->p, end, in->n) : NULL;
    ff_in out = ff_take(in, e ? (size_t)(e - in->p) : in->n);
    if (e) ff_take(in, 1);
    return out;
}

/* ---- files that the input names ----------------------------------------------------------------------- */

enum { FF_NAME = 64 };

/* May a file of the folder have that name? One folder in it may be named before. */
static bool ff_is_name(ff_in name)
{
    const uint8_t *slash = name.n ? memchr(name.p, '/', name.n) : NULL;
    if (!name.n || name.n >= FF_NAME || memchr(name.p, 0, name.n) || *name.p == '.' || *name.p == '/') return false;
    return !slash || (slash + 1 < name.p + name.n && slash[1] != '.' && slash[1] != '/' &&
                      !memchr(slash + 1, '/', (size_t)(name.p + name.n - slash - 1)));
}

/* A file of the folder: its name, a line's end, what stands in it. "-": it goes, "@" and ">": it is a link, to a folder
 * and to nothing. */
static __attribute__((unused)) void ff_put_named(const char *folder, ff_in piece)
{
    ff_in name = ff_until(&piece, '\n');
    char path[300], *slash;
    if (!ff_is_name(name)) return;
    size_t n = (size_t)snprintf(path, sizeof path, "%.200s/%.*s", folder, (int)name.n, name.p);
    FF_MUST(n < sizeof path);
    if ((slash = strchr(path + strlen(folder) + 1, '/'))) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    if (piece.n == 1 && strchr("@>-", *piece.p)) {
        unlink(path);
        if (*piece.p != '-' && symlink(*piece.p == '@' ? "/" : "no", path) != 0) return; /* its folder is a file */
        return;
    }
    FILE *f = fopen(path, "wb"); /* not where a folder is */
    if (f) fwrite(piece.p, 1, piece.n, f), fclose(f);
}

/* ---- edits of a good file --------------------------------------------------------------------------- */

enum { FF_EDIT_ROOM = 1 << 12 }; /* by which edits make a file longer at most */

/* One edit, as the input says: u8 kind, u16 place, and what the kind wants. buf has room for cap bytes. */
static __attribute__((unused)) size_t ff_edit(uint8_t *buf, size_t n, size_t cap, ff_in *in)
{
    unsigned kind = ff_u8(in), at = ff_u16(in), what;
    if (kind & 128 && n > 65536) at = (unsigned)(n - 1 - at); /* counted from the end */
    if (at > n) at = n ? (unsigned)(at % n) : 0;
    size_t k;
    ff_in b;
    switch (kind & 7) {
    case 0:
    case 1: b = ff_take(in, kind >> 3 & 15); return ed_put(buf, n, at, b.p, b.n);
    case 2: /* a number at the border of its type, or slightly off */
        what = ff_u8(in);
        k = (size_t)1 << (kind >> 3 & 3);
        return what < ED_BORDERS ? ed_set(buf, n, at, k, ed_border[what]) : ed_shift(buf, n, at, k, (int8_t)what);
    case 3: return kind & 64 ? at : n - (at < 256 ? at : 0); /* cut */
    case 4: k = ff_u8(in); return ed_remove(buf, n, at, k < n - at ? k : n - at);
    case 5: b = ff_take(in, ff_u8(in)); return ed_insert(buf, n, cap, at, b.p, b.n);
    case 6: return ed_repeat(buf, n, cap, at, ff_u8(in));
    default: return ed_flip(buf, n, at, kind >> 3);
    }
}

/* A copy of good[n] with all edits that the input holds; malloc'ed. */
static __attribute__((unused)) uint8_t *ff_edited(const uint8_t *good, size_t *n, ff_in *in)
{
    size_t cap = *n + FF_EDIT_ROOM;
    uint8_t *buf = malloc(cap);
    FF_MUST(buf);
    memcpy(buf, good, *n);
    while (in->n) *n = ff_edit(buf, *n, cap, in);
    return buf;
}

#endif
