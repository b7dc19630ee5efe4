/* data_files: which files are read, and as what. A file's kind is the end of its name; of a folder all files of such
 * kinds are read, and those of the folders in it, in the order of their names. Refuses to know what stands in them. */
#include "base/file.h"
#include "train/data_parts.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static hone_status read_file(hn_data_reader *r, const char *path)
{
    r->path = path;
    r->line = 1;
    r->d->stats.n_file++;
    switch (hn_data_form_of(path)) {
    case HN_FORM_TEXT: return hn_data_text(r, false);
    case HN_FORM_MARKDOWN: return hn_data_text(r, true);
    case HN_FORM_LINES: return hn_data_jsonl(r);
    case HN_FORM_JSON: return hn_data_json(r);
    case HN_FORM_COMMAS: return hn_data_table(r, false);
    case HN_FORM_TABS: return hn_data_table(r, true);
    default: break;
    }
    return HN_FAIL(r->err, HONE_E_ARG,
                   "%s: what it is cannot be told from its name; expected " HN_DATA_KINDS
                   " (a text of another name: cp FILE data.txt)",
                   path);
}

static hone_status read_any(hn_data_reader *r, const char *path, int depth);

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Names in a folder that count: of folders, and of files with a known end. */
static hone_status list_folder(const char *folder, char ***list, size_t *n, hone_error *err)
{
    size_t cap = 0;
    *list = NULL;
    *n = 0;
    DIR *d = opendir(folder);
    if (!d)
        return HN_FAIL(err, errno == ENOMEM ? HONE_E_NOMEM : HONE_E_IO, "%s: cannot open: %s", folder, strerror(errno));
    hone_status st = HONE_OK;
    struct dirent *e;
    while (st == HONE_OK && (errno = 0, e = readdir(d))) {
        struct stat sb;
        size_t len = strlen(folder) + strlen(e->d_name) + 2;
        if (e->d_name[0] == '.') continue;
        char *path = malloc(len), **more = *list;
        if (path) snprintf(path, len, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", e->d_name);
        if (path && *n == cap && (more = realloc(*list, (cap = 2 * cap + 16) * sizeof *more))) *list = more;
        if (!path || !more) st = HN_FAIL(err, HONE_E_NOMEM, "%s: list of its files", folder);
        else if (stat(path, &sb) == 0 && (S_ISDIR(sb.st_mode) || (S_ISREG(sb.st_mode) && hn_data_form_of(e->d_name)))) {
            (*list)[(*n)++] = path;
            continue;
        }
        free(path);
    }
    int unread = st == HONE_OK ? errno : 0; /* the end of a folder leaves it 0 */
    closedir(d);
    if (unread) st = HN_FAIL(err, HONE_E_IO, "%s: the folder cannot be read: %s", folder, strerror(unread));
    if (*n) qsort(*list, *n, sizeof **list, by_name);
    return st;
}

static hone_status read_folder(hn_data_reader *r, const char *folder, int depth)
{
    char **list;
    size_t n;
    if (depth > HN_DATA_DEPTH)
        return HN_FAIL(r->err, HONE_E_ARG, "%s: %d folders within each other; expected at most %d", folder, depth,
                       HN_DATA_DEPTH);
    hone_status st = list_folder(folder, &list, &n, r->err);
    for (size_t i = 0; i < n && st == HONE_OK; i++) st = read_any(r, list[i], depth);
    for (size_t i = 0; i < n; i++) free(list[i]);
    free(list);
    r->path = folder; /* what it named is gone */
    return st;
}

static hone_status read_any(hn_data_reader *r, const char *path, int depth)
{
    struct stat sb;
    if (stat(path, &sb) != 0) return HN_FAIL(r->err, HONE_E_IO, "%s: cannot open: %s", path, strerror(errno));
    return S_ISDIR(sb.st_mode) ? read_folder(r, path, depth + 1) : read_file(r, path);
}

hone_status hn_data_read_path(hn_data_reader *r, const char *path)
{
    int64_t before = r->d->stats.n_file;
    hone_status st = read_any(r, path, 0);
    if (st != HONE_OK || r->d->stats.n_file > before) return st;
    return HN_FAIL(r->err, HONE_E_ARG, "%s: a folder without files to learn from; expected files " HN_DATA_KINDS, path);
}
