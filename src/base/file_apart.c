/* file_apart: which files are one, and that a command writes none that it reads; see file.h. Owns the comparison
 * of names, of those that are there and of those that would come to be, and which names are data; changes nothing. */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#define _GNU_SOURCE
#include "base/file.h"
#include "base/os.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static hn_file_id id_of(const struct stat *sb) { return (hn_file_id){ (uint64_t)sb->st_dev, (uint64_t)sb->st_ino }; }

bool hn_file_id_of(hn_file_id *out, const char *path)
{
    struct stat sb;
    if (stat(path, &sb) != 0) return false;
    *out = id_of(&sb);
    return true;
}

bool hn_file_id_of_fd(hn_file_id *out, int fd)
{
    struct stat sb;
    if (fstat(fd, &sb) != 0) return false;
    *out = id_of(&sb);
    return true;
}

/* ---- where a name leads -------------------------------------------------------------------------- */

/* A file that is there, rest "". Else the deepest folder that is, and the names from there on. */
typedef struct place {
    hn_file_id id;
    char rest[PATH_MAX];
    bool known, folds; /* folds: A and a are one name in that folder */
} place;

/* A link to nothing, followed to the name of what it would make. */
static void follow_dangling(char *path)
{
    char to[PATH_MAX];
    for (int i = 0; i < 40; i++) {
        ssize_t n = readlink(path, to, sizeof to - 1);
        if (n <= 0) return;
        to[n] = 0;
        const char *slash = strrchr(path, '/');
        size_t keep = to[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - path);
        if (keep + (size_t)n >= PATH_MAX) return;
        memcpy(path + keep, to, (size_t)n + 1);
    }
}

/* Puts the name [name, name + n) before what is in rest; "." and "" say nothing. */
static void put_before(char *rest, const char *name, size_t n)
{
    size_t len = strlen(rest);
    if (n == 0 || (n == 1 && name[0] == '.') || n + 1 + len >= PATH_MAX) return;
    memmove(rest + n + 1, rest, len + 1);
    memcpy(rest + 1, name, n);
    rest[0] = '/';
}

static void find_place(place *p, const char *path)
{
    char buf[PATH_MAX];
    size_t n = strlen(path);
    *p = (place){ .known = false };
    if (n == 0 || n >= PATH_MAX) return;
    memcpy(buf, path, n + 1);
    while (n > 1 && buf[n - 1] == '/') buf[--n] = 0;
    if ((p->known = hn_file_id_of(&p->id, buf))) return;
    follow_dangling(buf);
    while (!p->known) {
        for (n = strlen(buf); n > 1 && buf[n - 1] == '/';) buf[--n] = 0;
        size_t at = n;
        while (at > 0 && buf[at - 1] != '/') at--;
        if (at == n) return; /* not even "/" can be looked at */
        put_before(p->rest, buf + at, n - at);
        buf[at] = 0;
        if (at == 0) memcpy(buf, ".", 2);
        p->known = hn_file_id_of(&p->id, buf);
        if (!p->known && at == 0) return;
    }
    p->folds = hn_os_ignores_case(buf);
}

static bool same_place(const place *a, const place *b)
{
    if (!a->known || !b->known || !hn_file_id_same(a->id, b->id)) return false;
    return a->folds ? strcasecmp(a->rest, b->rest) == 0 : strcmp(a->rest, b->rest) == 0;
}

bool hn_file_same(const char *a, const char *b)
{
    place p, q;
    find_place(&p, a);
    find_place(&q, b);
    return same_place(&p, &q);
}

/* ---- what is read with a file -------------------------------------------------------------------- */

/* "…-00002-of-00003.gguf": where its number stands, and how many parts there are; 0: no part. */
static int parts_of(const char *path, size_t *at)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *of = NULL;
    for (const char *p = name; (p = strstr(p, "-of-")); p++) of = p;
    if (!of || of - name < 6 || of[-6] != '-') return 0;
    int n = 0;
    for (int i = 0; i < 5; i++) {
        if (!isdigit((unsigned char)of[-5 + i]) || !isdigit((unsigned char)of[4 + i])) return 0;
        n = 10 * n + (of[4 + i] - '0');
    }
    *at = (size_t)(of - 5 - path);
    return of[9] == '.' ? n : 0;
}

/* Is the written place one of the parts that are read together with `path`? */
static bool in_set(const place *w, const char *path)
{
    size_t at = 0;
    int n = parts_of(path, &at);
    char part[PATH_MAX], digits[16];
    if (n < 2 || strlen(path) >= sizeof part) return false;
    memcpy(part, path, strlen(path) + 1);
    for (int i = 1; i <= n && i <= 99999; i++) {
        place p;
        snprintf(digits, sizeof digits, "%05d", i);
        memcpy(part + at, digits, 5);
        find_place(&p, part);
        if (same_place(w, &p)) return true;
    }
    return false;
}

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcasecmp(name + n - k, end) == 0;
}

/* Is the written place one of the files of a folder that is read? Models that hone made there are not read. */
static bool in_folder(const place *w, const char *folder)
{
    bool found = false;
    DIR *d = opendir(folder);
    if (!d) return false;
    for (struct dirent *e; !found && (e = readdir(d));) {
        struct stat sb;
        if (ends_in(e->d_name, ".gguf") || ends_in(e->d_name, ".hpack")) continue;
        if (fstatat(dirfd(d), e->d_name, &sb, 0) != 0 || !S_ISREG(sb.st_mode)) continue;
        found = !w->rest[0] && hn_file_id_same(w->id, id_of(&sb));
    }
    closedir(d);
    return found;
}

/* ---- what is read of a folder of data ------------------------------------------------------------ */

hn_data_form hn_data_form_of(const char *name)
{
    static const struct {
        const char *end;
        hn_data_form form;
    } ends[] = { { ".txt", HN_FORM_TEXT },          { ".text", HN_FORM_TEXT },   { ".md", HN_FORM_MARKDOWN },
                 { ".markdown", HN_FORM_MARKDOWN }, { ".jsonl", HN_FORM_LINES }, { ".ndjson", HN_FORM_LINES },
                 { ".json", HN_FORM_JSON },         { ".csv", HN_FORM_COMMAS },  { ".tsv", HN_FORM_TABS } };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_in(name, ends[i].end)) return ends[i].form;
    return HN_FORM_NONE;
}

/* Is what would come to be at rest, "/…" of a folder of data, read with it? */
static bool would_be_data(const char *rest) { return *rest && !strstr(rest, "/.") && hn_data_form_of(rest); }

/* Is the written place one of the files that the folder at fd, which is closed, or those in it have, or would have? The
 * walk is that of who reads them. -1: too deep for that, too; 0: no. */
static int in_data(const place *w, int fd, int depth)
{
    struct stat sb;
    DIR *d = depth <= HN_DATA_DEPTH && fstat(fd, &sb) == 0 ? fdopendir(fd) : NULL;
    if (!d) {
        close(fd);
        return depth <= HN_DATA_DEPTH ? 0 : -1;
    }
    int found = would_be_data(w->rest) && hn_file_id_same(w->id, id_of(&sb));
    for (struct dirent *e; !found && (e = readdir(d));) {
        int in = -1;
        if (e->d_name[0] == '.' || (w->rest[0] && e->d_type == DT_REG)) continue; /* of files only w itself counts */
        if (fstatat(fd, e->d_name, &sb, 0) != 0) continue;
        if (S_ISREG(sb.st_mode) && hn_data_form_of(e->d_name))
            found = !w->rest[0] && hn_file_id_same(w->id, id_of(&sb));
        if (S_ISDIR(sb.st_mode)) in = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (in >= 0) found = in_data(w, in, depth + 1);
    }
    closedir(d);
    return found;
}

static bool is_data(const place *w, const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && in_data(w, fd, 1) == 1;
}

/* ---- a command's files ------------------------------------------------------------------------------ */

static bool is_used(const hn_file_use *u) { return u->path && *u->path; }

static bool clashes(const hn_file_use *w, const place *at, const hn_file_use *other)
{
    place p;
    find_place(&p, other->path);
    if (!at->known || !p.known) return false;
    if (same_place(at, &p)) return true;
    if (w->role != HN_FILE_WRITTEN) return false;
    if (other->role == HN_FILE_DATA) return is_data(at, other->path);
    if (other->role != HN_FILE_READ) return false;
    return in_set(at, other->path) || in_folder(at, other->path);
}

static hone_status say_clash(const hn_file_use *w, const hn_file_use *other, hone_error *err)
{
    bool twice = !hn_file_is_read(other->role);
    bool spelt_alike = strcmp(w->path, other->path) == 0;
    return HN_FAIL(err, HONE_E_ARG, "%s would be %s and %s %s%s%s%s; nothing was touched; expected another name%s%s%s",
                   HN_ESC(w->path, strlen(w->path)), w->what, twice ? "also" : "is", other->what,
                   spelt_alike ? "" : " (", spelt_alike ? "" : HN_ESC(other->path, strlen(other->path)),
                   spelt_alike ? "" : ")", w->option ? " (" : "", w->option ? w->option : "", w->option ? ")" : "");
}

hone_status hn_files_apart(const hn_file_use *use, size_t n, hone_error *err)
{
    for (size_t i = 0; i < n; i++) {
        place at;
        if (!is_used(&use[i]) || hn_file_is_read(use[i].role)) continue;
        find_place(&at, use[i].path);
        for (size_t k = 0; k < n; k++) {
            if (k == i || !is_used(&use[k]) || (!hn_file_is_read(use[k].role) && k > i)) continue; /* each pair once */
            if (clashes(&use[i], &at, &use[k])) return say_clash(&use[i], &use[k], err);
        }
    }
    return HONE_OK;
}
