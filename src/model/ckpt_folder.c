/* ckpt_folder: the files of a checkpoint's folder: one, or shards that an index names, or a series by their names; of
 * safetensors, or without any of PyTorch. Owns those names, and that index and files agree; refuses to know what is in
 * the files. */
#include "model/ckpt.h"

#include <errno.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MAX_INDEX = 64 << 20 };

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && memcmp(s.ptr, t, s.len) == 0; }

/* How a kind of files is called. */
typedef struct files {
    const char *stem, *tail; /* STEM + TAIL, STEM-00001-of-00002 + TAIL */
    hone_status (*read)(hn_ckpt *c, int32_t part, hone_error *err);
} files;
static const files kinds[] = { { "model", ".safetensors", hn_safetensors_read },
                               { "pytorch_model", ".bin", hn_torch_read } };

static bool exists(const char *folder, const char *file, char *path, size_t cap)
{
    struct stat sb;
    int n = snprintf(path, cap, "%s/%s", folder, file);
    return n > 0 && (size_t)n < cap && stat(path, &sb) == 0 && S_ISREG(sb.st_mode);
}

/* A cache has links: one that leads nowhere is a file that is missing, not a folder without it. */
static hone_status refuse_dangling(const char *path, hone_error *err)
{
    struct stat sb;
    if (lstat(path, &sb) != 0 || !S_ISLNK(sb.st_mode) || stat(path, &sb) == 0) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO, "%s: a link to a file that is not there; fetch it, or remove the link",
                   HN_ESC(path, strlen(path)));
}

static hone_status add_file(hn_ckpt *c, const files *k, const char *path, hone_error *err)
{
    int32_t part;
    hone_status st = hn_ckpt_add_part(c, path, &part, err);
    return st != HONE_OK ? st : k->read(c, part, err);
}

/* A file name of weight_map: plain, in this folder. */
static bool plain(hone_str s)
{
    if (s.len == 0 || s.len > 255 || s.ptr[0] == '.') return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == '/' || s.ptr[i] == '\\' || (unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7F) return false;
    return true;
}

/* An entry of weight_map: a tensor and the part that must hold it. */
typedef struct entry {
    hone_str name;
    hone_str file;
    int32_t part;
} entry;
typedef struct weight_map {
    entry *e;
    size_t n, cap;
    hn_index ix;
} weight_map;

static hone_status read_weight_map(weight_map *m, hn_jread *j, hone_error *err)
{
    bool more;
    hone_status st;
    for (st = hn_jread_open(j, '{', &more); st == HONE_OK && more; st = hn_jread_next(j, '{', &more)) {
        int64_t dup;
        if (m->n == m->cap) {
            size_t cap = m->cap ? 2 * m->cap : 256;
            entry *p = m->n < HN_CKPT_MAX_TENSORS ? realloc(m->e, cap * sizeof *p) : NULL;
            if (!p)
                return m->n < HN_CKPT_MAX_TENSORS ? HN_FAIL(err, HONE_E_NOMEM, "%s: %zu entries", j->name, cap)
                                                  : hn_jread_fail(j, "fewer entries");
            m->e = p;
            m->cap = cap;
        }
        entry *e = &m->e[m->n];
        TRY(hn_jread_key_str(j, &e->name));
        TRY(hn_jread_str(j, &e->file));
        if (!plain(e->file))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is said to be in \"%s\"; expected a plain file name", j->name,
                           HN_ESC(e->name.ptr, e->name.len), HN_ESC(e->file.ptr, e->file.len));
        if (!hn_index_add(&m->ix, m->e, sizeof *m->e, (uint32_t)m->n, &dup))
            return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu entries", j->name, m->n);
        if (dup >= 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: weight_map has \"%s\" twice", j->name,
                           HN_ESC(e->name.ptr, e->name.len));
        m->n++;
    }
    return st;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Opens every file that is named; all missing ones are found before one is read. */
static hone_status open_shards(hn_ckpt *c, weight_map *m, const char *folder, const char *index, hone_error *err)
{
    hone_status st;
    for (size_t i = 0; i < m->n; i++) {
        entry *e = &m->e[i];
        char file[256], path[4352];
        e->part = -1;
        for (int32_t k = c->n_part; k-- > 0 && e->part < 0;)
            if (is(e->file, last_part(c->part[k].path))) e->part = k;
        if (e->part >= 0) continue;
        snprintf(file, sizeof file, "%.*s", (int)e->file.len, e->file.ptr);
        if (!exists(folder, file, path, sizeof path))
            return HN_FAIL(err, HONE_E_IO, "%s: its file %s is not in %s", index, HN_ESC(file, strlen(file)), folder);
        TRY(hn_ckpt_add_part(c, path, &e->part, err));
    }
    return HONE_OK;
}

static hone_status read_index(hn_ckpt *c, const files *k, const char *folder, const char *path, hone_error *err)
{
    weight_map m = { 0 };
    hone_str key;
    char *text = NULL;
    size_t len;
    bool more, seen = false;
    hn_jread j;
    hone_status st;
    if ((st = hn_source_text(&text, &len, path, MAX_INDEX, err)) != HONE_OK) return st;
    if ((st = hn_ckpt_json(&j, text, len, path, NULL, err)) != HONE_OK) goto end;
    for (st = hn_jread_open(&j, '{', &more); st == HONE_OK && more; st = hn_jread_next(&j, '{', &more)) {
        if ((st = hn_jread_key_str(&j, &key)) != HONE_OK) goto end;
        bool map = is(key, "weight_map");
        if (map && seen) st = HN_FAIL(err, HONE_E_FORMAT, "%s: weight_map is there twice", path);
        else st = map ? read_weight_map(&m, &j, err) : hn_jread_skip(&j);
        seen |= map;
        if (st != HONE_OK) goto end;
    }
    if (st != HONE_OK || (st = hn_jread_end(&j)) != HONE_OK) goto end;
    if (!m.n) {
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: no weight_map of tensors", path);
        goto end;
    }
    if ((st = open_shards(c, &m, folder, path, err)) != HONE_OK) goto end;
    for (int32_t i = 0, n = c->n_part; i < n; i++) /* reading may add parts */
        if ((st = k->read(c, i, err)) != HONE_OK) goto end;
    for (size_t i = 0; i < m.n && st == HONE_OK; i++) {
        const hn_ckpt_tensor *t = hn_ckpt_find(c, m.e[i].name.ptr, m.e[i].name.len);
        if (!t || strcmp(c->part[t->part].path, c->part[m.e[i].part].path))
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: %s is said to be in %s, but it is %s", path,
                         HN_ESC(m.e[i].name.ptr, m.e[i].name.len), last_part(c->part[m.e[i].part].path),
                         t ? "in another file" : "missing there");
    }
    for (size_t i = 0; i < c->n && st == HONE_OK; i++)
        if (hn_index_find(&m.ix, m.e, sizeof *m.e, c->t[i].name.ptr, c->t[i].name.len) < 0)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: %s of %s is not in its weight_map", path,
                         HN_ESC(c->t[i].name.ptr, c->t[i].name.len), last_part(c->part[c->t[i].part].path));
end:
    free(text);
    free(m.e);
    hn_index_free(&m.ix);
    return st;
}

/* STEM-00001-of-NNNNN.TAIL: how many it says there are; 0: not such a name. */
static unsigned series_of(const files *k, const char *name)
{
    char head[48];
    size_t n = strlen(name), m = (size_t)snprintf(head, sizeof head, "%s-00001-of-", k->stem);
    unsigned v = 0;
    if (n != m + 5 + strlen(k->tail) || strncmp(name, head, m) || strcmp(name + m + 5, k->tail)) return 0;
    for (size_t i = m; i < m + 5; i++) {
        if (name[i] < '0' || name[i] > '9') return 0;
        v = 10 * v + (unsigned)(name[i] - '0');
    }
    return v;
}

static hone_status read_series(hn_ckpt *c, const files *k, const char *folder, unsigned n, hone_error *err)
{
    char file[64], path[4352];
    hone_status st;
    for (int pass = 0; pass < 2; pass++) /* missing files first */
        for (unsigned i = 1; i <= n; i++) {
            snprintf(file, sizeof file, "%s-%05u-of-%05u%s", k->stem, i, n, k->tail);
            if (!exists(folder, file, path, sizeof path))
                return HN_FAIL(err, HONE_E_IO, "%s: has no %s, one of a series of %u", folder, file, n);
            if (pass) TRY(add_file(c, k, path, err));
        }
    return HONE_OK;
}

/* How many files the series in the folder has; 0: there is none. */
static hone_status find_series(const files *k, const char *folder, unsigned *n, hone_error *err)
{
    DIR *d = opendir(folder);
    int unread = d ? 0 : errno;
    unsigned v, other = 0;
    *n = 0;
    for (struct dirent *e; d && (errno = 0, e = readdir(d));) {
        if ((v = series_of(k, e->d_name)) == 0 || v == *n) continue;
        other = *n; /* one of two that differ */
        *n = v;
    }
    if (d) {
        unread = errno; /* the end of a folder leaves it 0 */
        closedir(d);
    }
    if (unread) return HN_FAIL(err, HONE_E_IO, "%s: the folder cannot be read: %s", folder, strerror(unread));
    if (!other) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT,
                   "%s: has files of two series, %s-00001-of-%05u%s and %s-00001-of-%05u%s; expected one, or an index "
                   "that says which",
                   folder, k->stem, other < *n ? other : *n, k->tail, k->stem, other < *n ? *n : other, k->tail);
}

hone_status hn_ckpt_folder(hn_ckpt *c, const char *folder, hone_error *err)
{
    char file[64], path[4352];
    unsigned n;
    hone_status st;
    for (const files *k = kinds; k < kinds + sizeof kinds / sizeof *kinds; k++) {
        snprintf(file, sizeof file, "%s%s", k->stem, k->tail);
        if (exists(folder, file, path, sizeof path)) return add_file(c, k, path, err);
        TRY(refuse_dangling(path, err));
        snprintf(file, sizeof file, "%s%s.index.json", k->stem, k->tail);
        if (exists(folder, file, path, sizeof path)) return read_index(c, k, folder, path, err);
        TRY(refuse_dangling(path, err));
        TRY(find_series(k, folder, &n, err));
        if (n) return read_series(c, k, folder, n, err);
    }
    c->no_weights = true;
    return HN_FAIL(err, HONE_E_FORMAT,
                   "%s: has no model.safetensors and no model.safetensors.index.json, no pytorch_model.bin and no "
                   "pytorch_model.bin.index.json",
                   folder);
}
