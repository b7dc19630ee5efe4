/* data_files: which files are read, and as what. A file's kind is the end of its name; of a folder all files of such
 * kinds are read, and those of the folders in it, in the order of their names. What looks like data and is of no such
 * kind is told by its first bytes. Refuses to know what else stands in them. */
#include "base/file.h"
#include "train/data_parts.h"

#include <dirent.h>
#include <errno.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- what is not read --------------------------------------------------------------------------------- */

/* What a file begins with that is no text, and what makes a text of it. */
static const struct form {
    const char *first, *is, *next;
    uint8_t n;
    bool words; /* a text might begin so */
} forms[] = {
    { "\x1F\x8B", "compressed (gzip)", "gunzip -k FILE", 2, false },
    { "\x28\xB5\x2F\xFD", "compressed (zstd)", "unzstd FILE", 4, false },
    { "\xFD\x37zXZ", "compressed (xz)", "unxz -k FILE", 5, false },
    { "BZh", "compressed (bzip2)", "bunzip2 -k FILE", 3, true },
    { "PK\x03\x04", "a ZIP archive", "unzip FILE -d FOLDER, and that folder as data", 4, false },
    { "PAR1", "a Parquet table",
      "python3 -c \"import pandas; pandas.read_parquet('FILE').to_json('data.jsonl', orient='records', lines=True)\"",
      4, true },
    { "ARROW1", "an Arrow table",
      "python3 -c \"import pandas; pandas.read_feather('FILE').to_json('data.jsonl', orient='records', lines=True)\"",
      6, true },
    { "\xFF\xFF\xFF\xFF", "an Arrow table",
      "python3 -c \"import datasets; datasets.Dataset.from_file('FILE').to_json('data.jsonl')\"", 4, false },
    { "\xFF\xFE", "UTF-16, expected UTF-8", "iconv -f UTF-16 -t UTF-8 FILE >NEW_FILE", 2, false },
    { "\xFE\xFF", "UTF-16, expected UTF-8", "iconv -f UTF-16 -t UTF-8 FILE >NEW_FILE", 2, false },
    { "%PDF", "a PDF", "pdftotext FILE data.txt", 4, true },
    { "GGUF", "a model", "a text or records in its place", 4, true },
};

/* What path is, where it is none of the kinds that are read; NULL: a text, it seems, or *st. *binary: no text. */
static const struct form *look_at(hn_data_reader *r, const char *path, bool *binary, hone_status *st)
{
    hn_source f;
    char first[256];
    *binary = false;
    if ((*st = hn_source_open(&f, path, r->err)) != HONE_OK) return NULL;
    size_t n = f.size < sizeof first ? (size_t)f.size : sizeof first;
    *st = hn_source_read(&f, 0, first, n, r->err);
    hn_source_close(&f);
    if (*st != HONE_OK) return NULL;
    *binary = memchr(first, 0, n) != NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (n >= forms[i].n && memcmp(first, forms[i].first, forms[i].n) == 0) return &forms[i];
    return NULL;
}

/* Data, by the end of its name, in a form that is not read. */
static bool is_other_data(const char *name)
{
    static const char *const ends[] = { ".parquet", ".arrow", ".feather", ".gz", ".bz2", ".xz",  ".zst",
                                        ".zip",     ".tar",   ".tgz",     ".7z", ".xls", ".xlsx" };
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t k = strlen(ends[i]);
        if (n > k && strcasecmp(name + n - k, ends[i]) == 0) return true;
    }
    return false;
}

/* A file that tells about the others: a text of such a name, or "LICENSE-MIT". */
static bool is_about(const char *path)
{
    const hn_data_form form = hn_data_form_of(path);
    static const char *const names[] = { "readme", "license", "licence", "copying", "notice" };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (form && form != HN_FORM_TEXT && form != HN_FORM_MARKDOWN) return false; /* "license_clauses.jsonl" */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t k = strlen(names[i]);
        if (strncasecmp(name, names[i], k) == 0 && (!name[k] || strchr("._-", name[k]))) return true;
    }
    return false;
}

static void pass(hn_data_reader *r, const char *path)
{
    hn_data_stats *s = &r->d->stats;
    if (!s->n_passed++) snprintf(s->first_passed, sizeof s->first_passed, "%s", path);
}

/* ---- files -------------------------------------------------------------------------------------------- */

static void count_file(hn_data_reader *r, const char *path)
{
    hn_data_stats *s = &r->d->stats;
    size_t at = strlen(s->files), n = strlen(path);
    s->n_file++;
    if (n + 2 > sizeof s->files - at) return;
    memcpy(s->files + at, path, n);
    memcpy(s->files + at + n, "\n", 2);
}

static hone_status read_file(hn_data_reader *r, const char *path)
{
    hn_data_form form = hn_data_form_of(path);
    bool binary;
    hone_status st;
    const struct form *is = look_at(r, path, &binary, &st);
    if (st != HONE_OK) return st;
    if (is && (!form || !is->words))
        return HN_FAIL(r->err, form ? HONE_E_FORMAT : HONE_E_ARG, "%s: %s; try: %s", path, is->is, is->next);
    r->path = path;
    r->line = 1;
    count_file(r, path);
    switch (form) {
    case HN_FORM_TEXT: return hn_data_text(r, false);
    case HN_FORM_MARKDOWN: return hn_data_text(r, true);
    case HN_FORM_LINES: return hn_data_jsonl(r);
    case HN_FORM_JSON: return hn_data_json(r);
    case HN_FORM_COMMAS: return hn_data_table(r, false);
    case HN_FORM_TABS: return hn_data_table(r, true);
    default: break;
    }
    return HN_FAIL(r->err, HONE_E_ARG, "%s: what it is cannot be told from its name; expected " HN_DATA_KINDS "%s",
                   path, binary ? ", and it is no text" : " (a text of another name: cp FILE data.txt)");
}

static hone_status read_any(hn_data_reader *r, const char *path, int depth);

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Folders, and files that are data by the end of their names; also such names that lead nowhere, as links of a hub's
 * cache do whose file was removed: that they cannot be opened is told. */
static bool counts(const char *path, const char *name)
{
    struct stat sb;
    const bool data = hn_data_form_of(name) || is_other_data(name);
    if (stat(path, &sb) != 0) return data;
    return S_ISDIR(sb.st_mode) || (S_ISREG(sb.st_mode) && data);
}

/* Names in a folder that count. */
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
        size_t len = strlen(folder) + strlen(e->d_name) + 2;
        if (e->d_name[0] == '.') continue;
        char *path = malloc(len), **more = *list;
        if (path) snprintf(path, len, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", e->d_name);
        if (path && *n == cap && (more = realloc(*list, (cap = 2 * cap + 16) * sizeof *more))) *list = more;
        if (!path || !more) st = HN_FAIL(err, HONE_E_NOMEM, "%s: list of its files", folder);
        else if (counts(path, e->d_name)) {
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
    if (S_ISDIR(sb.st_mode)) return read_folder(r, path, depth + 1);
    if (depth && !hn_data_form_of(path)) { /* in a folder that is data by its name alone */
        pass(r, path);
        return HONE_OK;
    }
    r->n_about += depth && is_about(path);
    return read_file(r, path);
}

/* A folder without data in a form that is read. files: those that tell about it; passed: in other forms; `first` of
 * these. */
static hone_status no_data(hn_data_reader *r, const char *path, int64_t files, int64_t passed, const char *first)
{
    bool binary;
    hone_status st;
    const struct form *is = *first ? look_at(r, first, &binary, &st) : NULL;
    const char *but = files ? "but what tells about it (README, LICENSE)" : "to learn from";
    if (passed)
        return HN_FAIL(r->err, HONE_E_ARG, "%s: a folder without files %s; %lld in forms that are not read%s%s%s%s%s%s",
                       path, but, (long long)passed, *first ? ": " : "", first, is ? " is " : "", is ? is->is : "",
                       is ? "; try: " : "", is ? is->next : "");
    return HN_FAIL(r->err, HONE_E_ARG, "%s: a folder without files %s; expected %s", path, but,
                   files ? "others, or one of these named itself" : "files " HN_DATA_KINDS);
}

hone_status hn_data_read_path(hn_data_reader *r, const char *path)
{
    const hn_data_stats *s = &r->d->stats;
    int64_t files = s->n_file, passed = s->n_passed, about = r->n_about;
    hone_status st = read_any(r, path, 0);
    files = s->n_file - files;
    if (st != HONE_OK || files > r->n_about - about) return st;
    return no_data(r, path, files, s->n_passed - passed, passed ? "" : s->first_passed);
}
