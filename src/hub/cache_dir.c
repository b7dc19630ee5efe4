/* cache_dir: see cache_dir.h. */
#include "hub/cache_dir.h"

#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_NAMES = 100000 };

static hone_status no_memory(hone_error *err, const char *path)
{
    return HN_FAIL(err, HONE_E_NOMEM, "%s: no memory for the list of its files", HN_ESC(path, strlen(path)));
}

bool hn_is_absent(int e) { return e == ENOENT || e == ENOTDIR; }

/* Nobody may look there, or a name that leads nowhere: so it stays, and all else is as it was. Other failures are those
 * of a moment, or of a disk: then nothing is known of what is there. */
bool hn_is_closed(int e) { return e == EACCES || e == EPERM || e == ELOOP || e == ENAMETOOLONG; }

hone_status hn_cannot_look(const char *path, int e, hone_error *err)
{
    return HN_FAIL(err,
                   e == ENOMEM       ? HONE_E_NOMEM
                   : hn_is_closed(e) ? HONE_E_ARG
                                     : HONE_E_IO,
                   "%s: cannot be read: %s", HN_ESC(path, strlen(path)), strerror(e));
}

char *hn_cache_join(hn_arena *arena, const char *a, const char *b)
{
    size_t n = strlen(a), k = strlen(b);
    char *s = hn_arena_alloc(arena, n + k + 2);
    if (!s) return NULL;
    memcpy(s, a, n);
    if (n) s[n] = '/';
    memcpy(s + n + (n > 0), b, k);
    return s;
}

static int by_text(const void *a, const void *b, void *unused)
{
    (void)unused;
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* *list with room for one more, twice as large where it is full. */
static bool grow(hn_arena *arena, void **list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) return true;
    size_t more = *cap ? 2 * *cap : 16;
    void *p = hn_arena_alloc(arena, more * size);
    if (!p) return false;
    if (n) memcpy(p, *list, n * size);
    *list = p;
    *cap = more;
    return true;
}

hone_status hn_cache_names(const char ***names, size_t *n, hn_arena *arena, const char *path, bool hidden,
                           hone_error *err)
{
    void *list = NULL;
    size_t cap = 0;
    *names = NULL;
    *n = 0;
    DIR *d = opendir(path);
    if (!d && hn_is_absent(errno)) return HONE_OK;
    if (!d) return hn_cannot_look(path, errno, err);
    hone_status st = HONE_OK;
    for (struct dirent *e; st == HONE_OK && (errno = 0, e = readdir(d));) {
        if (e->d_name[0] == '.' && (!hidden || !e->d_name[1] || !strcmp(e->d_name, ".."))) continue;
        char *name = hn_arena_strndup(arena, e->d_name, strlen(e->d_name));
        if (!name || !grow(arena, &list, *n, &cap, sizeof name)) st = no_memory(err, path);
        else if (*n == MOST_NAMES)
            st = HN_FAIL(err, HONE_E_IO, "%s: more than %d files in one folder; expected a folder of models",
                         HN_ESC(path, strlen(path)), MOST_NAMES);
        else ((const char **)list)[(*n)++] = name;
    }
    if (st == HONE_OK && errno) st = hn_cannot_look(path, errno, err);
    closedir(d);
    if (st == HONE_OK && list) hn_os_sort(list, *n, sizeof(char *), by_text, NULL);
    *names = list;
    return st;
}

/* Does a link lead to what lies below home? errno 0: that could be told. */
static bool inside(const char *path, const char *home)
{
    char there[PATH_MAX], top[PATH_MAX];
    if (!realpath(home, top) || !realpath(path, there)) return false;
    size_t n = strlen(top);
    errno = 0;
    return strncmp(there, top, n) == 0 && there[n] == '/';
}

static hone_status add_file(hn_cache_dir *d, const char *rel, const char *path, const struct stat *entry,
                            hone_error *err)
{
    struct stat sb = *entry;
    const char *trouble = "";
    bool link = S_ISLNK(entry->st_mode);
    if (link && stat(path, &sb) != 0) {
        if (!hn_is_absent(errno) && !hn_is_closed(errno)) return hn_cannot_look(path, errno, err);
        trouble = hn_is_absent(errno) ? "what its link leads to is gone" : "its link leads nowhere";
    } else if (link && d->home && !inside(path, d->home)) {
        if (errno && !hn_is_closed(errno)) return hn_cannot_look(path, errno, err);
        trouble = "its link leads out of the cache";
    }
    if (!*trouble && !S_ISREG(sb.st_mode)) return HONE_OK; /* a folder behind a link, a pipe */
    if (!*trouble && !sb.st_size) trouble = "it is empty";
    size_t cap = d->cap;
    void *file = d->file, *about = d->about;
    if (!grow(d->arena, &file, d->n, &d->cap, sizeof *d->file) || !grow(d->arena, &about, d->n, &cap, sizeof *d->about))
        return no_memory(err, path);
    d->file = file;
    d->about = about;
    bool gone = link && *trouble;
    d->file[d->n] = (hn_repo_file){ rel, gone ? 0 : (uint64_t)sb.st_size };
    d->about[d->n++] = (hn_cache_file){ trouble, gone ? 0 : (int64_t)sb.st_mtime };
    if (d->n <= MOST_NAMES) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO, "%s: more than %d files below it; expected a folder of models",
                   HN_ESC(d->path, strlen(d->path)), MOST_NAMES);
}

/* rel: of the folder below d->path, "" is itself. */
static hone_status walk(hn_cache_dir *d, const char *rel, int depth, bool only_gguf, hone_error *err)
{
    const char **names, *folder = *rel ? hn_cache_join(d->arena, d->path, rel) : d->path;
    size_t n;
    if (!folder) return no_memory(err, d->path);
    hone_status st = hn_cache_names(&names, &n, d->arena, folder, !only_gguf, err);
    if (st == HONE_E_ARG && *rel) return HONE_OK; /* one that is closed, below one that is not */
    for (size_t i = 0; st == HONE_OK && i < n; i++) {
        const char *below = hn_cache_join(d->arena, rel, names[i]), *path = hn_cache_join(d->arena, folder, names[i]);
        struct stat sb;
        if (!below || !path) return no_memory(err, d->path);
        if (lstat(path, &sb) != 0) {
            if (!hn_is_absent(errno)) return hn_cannot_look(path, errno, err);
            continue; /* it went while we looked */
        }
        if (S_ISDIR(sb.st_mode)) {
            if (depth > 0) st = walk(d, below, depth - 1, only_gguf, err);
        } else if (!only_gguf || hn_ends_with_gguf(names[i])) st = add_file(d, below, path, &sb, err);
    }
    return st;
}

hone_status hn_cache_walk(hn_cache_dir *d, hn_arena *arena, const char *path, const char *home, int depth,
                          bool only_gguf, hone_error *err)
{
    *d = (hn_cache_dir){ .arena = arena, .path = path, .home = home };
    return walk(d, "", depth, only_gguf, err);
}
