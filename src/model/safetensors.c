/* safetensors: one file, or the shards of a folder, into the list of tensors
 * (huggingface/safetensors: README.md, safetensors/src/tensor.rs). u64 n; n bytes of JSON, an
 * object of names to {dtype, shape, data_offsets}; data, which the ranges must tile without hole,
 * overlap or tail. Knows the container; refuses to know what the tensors mean. */
#include "model/ckpt.h"

#include <errno.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MAX_HEADER = 100000000, MAX_INDEX = 64 << 20, MAX_META = 1 << 16 };

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && memcmp(s.ptr, t, s.len) == 0; }

/* ---- one tensor ---------------------------------------------------------------------------- */

static hone_status dtype(hn_type *out, const hn_jread *j, hone_str name, hone_str t, hone_error *err)
{
    static const struct {
        const char *name;
        hn_type type;
    } known[] = { { "F32", HN_F32 }, { "BF16", HN_BF16 }, { "F16", HN_F16 }, { "F64", HN_F64 } };
    static const char *const refused[] = { "BOOL",    "U8",      "I8",      "I16",     "U16",         "I32",
                                           "U32",     "I64",     "U64",     "C64",     "F4",          "F6_E2M3",
                                           "F6_E3M2", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is(t, known[i].name)) {
            *out = known[i].type;
            return HONE_OK;
        }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (is(t, refused[i]))
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: %s has dtype %s; expected F32, F16, BF16 or F64: convert the unquantized checkpoint",
                           j->name, HN_ESC(name.ptr, name.len), refused[i]);
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has dtype \"%s\"; expected F32, F16, BF16 or F64", j->name,
                   HN_ESC(name.ptr, name.len), HN_ESC(t.ptr, t.len));
}

/* Outermost first in the file. */
static hone_status shape(hn_ckpt_tensor *t, hn_jread *j)
{
    uint64_t d[HN_CKPT_MAX_DIM];
    bool more;
    hone_status st;
    t->n_dim = 0;
    for (st = hn_jread_open(j, '[', &more); st == HONE_OK && more; st = hn_jread_next(j, '[', &more)) {
        if (t->n_dim == HN_CKPT_MAX_DIM) return hn_jread_fail(j, "at most 8 dimensions");
        TRY(hn_jread_u64(j, &d[t->n_dim++]));
    }
    for (int i = 0; i < HN_CKPT_MAX_DIM; i++) t->ne[i] = i < t->n_dim ? d[t->n_dim - 1 - i] : 1;
    return st;
}

static hone_status check_size(const hn_ckpt_tensor *t, const hn_jread *j, uint64_t begin, uint64_t end, uint64_t data,
                              hone_error *err)
{
    uint64_t n = hn_type_get(t->type)->block_bytes;
    const char *name = HN_ESC(t->name.ptr, t->name.len);
    for (int i = 0; i < t->n_dim; i++)
        if (!hn_mul_u64(n, t->ne[i], &n))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has shape %s: too large", j->name, name, HN_SHAPE(t));
    if (begin > end || end > data)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has data_offsets [%llu, %llu], expected ascending ones up to %llu",
                       j->name, name, (unsigned long long)begin, (unsigned long long)end, (unsigned long long)data);
    if (end - begin != n)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has %llu bytes of data, expected %llu for %s of shape %s", j->name,
                       name, (unsigned long long)(end - begin), (unsigned long long)n, hn_type_get(t->type)->name,
                       HN_SHAPE(t));
    return HONE_OK;
}

static hone_status read_tensor(hn_ckpt *c, int32_t part, hone_str name, hn_jread *j, uint64_t base, hone_error *err)
{
    hn_ckpt_tensor t = { .name = name, .part = part };
    bool more, seen[3] = { false };
    uint64_t range[2] = { 0 };
    hone_str key, type = { 0 };
    hone_status st;
    for (st = hn_jread_open(j, '{', &more); st == HONE_OK && more; st = hn_jread_next(j, '{', &more)) {
        TRY(hn_jread_key_str(j, &key));
        int k = is(key, "dtype") ? 0 : is(key, "shape") ? 1 : is(key, "data_offsets") ? 2 : -1;
        if (k < 0 || seen[k])
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has \"%s\"%s; expected dtype, shape and data_offsets", j->name,
                           HN_ESC(name.ptr, name.len), HN_ESC(key.ptr, key.len), k < 0 ? "" : " twice");
        seen[k] = true;
        if (k == 0) TRY(hn_jread_str(j, &type));
        if (k == 1) TRY(shape(&t, j));
        if (k == 2) {
            TRY(hn_jread_open(j, '[', &more));
            if (!more) return hn_jread_fail(j, "two offsets");
            TRY(hn_jread_u64(j, &range[0]));
            TRY(hn_jread_next(j, '[', &more));
            if (!more) return hn_jread_fail(j, "two offsets");
            TRY(hn_jread_u64(j, &range[1]));
            TRY(hn_jread_next(j, '[', &more));
            if (more) return hn_jread_fail(j, "two offsets");
        }
    }
    if (st != HONE_OK) return st;
    if (!seen[0] || !seen[1] || !seen[2])
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has no %s", j->name, HN_ESC(name.ptr, name.len),
                       !seen[0]   ? "dtype"
                       : !seen[1] ? "shape"
                                  : "data_offsets");
    TRY(dtype(&t.type, j, name, type, err));
    TRY(check_size(&t, j, range[0], range[1], c->part[part].size - base, err));
    t.off = base + range[0];
    t.n_bytes = range[1] - range[0];
    return hn_ckpt_add(c, &t, err);
}

/* ---- one file -------------------------------------------------------------------------------- */

static hone_status skip_metadata(hn_jread *j, hone_error *err)
{
    hone_str *key = NULL, value;
    hn_index ix = { 0 };
    size_t n = 0, cap = 0;
    bool more;
    hone_status st;
    for (st = hn_jread_open(j, '{', &more); st == HONE_OK && more; st = hn_jread_next(j, '{', &more), n++) {
        int64_t dup = -1;
        if (n == cap) {
            cap = cap ? 2 * cap : 16;
            hone_str *p = n < MAX_META ? realloc(key, cap * sizeof *p) : NULL;
            if (!p) {
                st = n < MAX_META ? HN_FAIL(err, HONE_E_NOMEM, "%s: __metadata__", j->name)
                                  : hn_jread_fail(j, "fewer entries of __metadata__");
                break;
            }
            key = p;
        }
        if ((st = hn_jread_key_str(j, &key[n])) != HONE_OK || (st = hn_jread_str(j, &value)) != HONE_OK) break;
        if (!hn_index_add(&ix, key, sizeof *key, (uint32_t)n, &dup))
            st = HN_FAIL(err, HONE_E_NOMEM, "%s: __metadata__", j->name);
        else if (dup >= 0)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: __metadata__ has \"%s\" twice", j->name,
                         HN_ESC(key[n].ptr, key[n].len));
        if (st != HONE_OK) break;
    }
    free(key);
    hn_index_free(&ix);
    return st;
}

static int by_offset(const void *a, const void *b)
{
    const hn_ckpt_tensor *x = *(const hn_ckpt_tensor *const *)a, *y = *(const hn_ckpt_tensor *const *)b;
    if (x->off != y->off) return x->off < y->off ? -1 : 1;
    return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes; /* empty ones first */
}

/* Tensors [first, c->n) must tile the data. */
static hone_status check_tiling(const hn_ckpt *c, size_t first, uint64_t base, const hn_source *s, hone_error *err)
{
    size_t n = c->n - first;
    hone_status st = HONE_OK;
    const hn_ckpt_tensor **t = malloc((n + 1) * sizeof *t);
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu tensors", s->path, n);
    for (size_t i = 0; i < n; i++) t[i] = &c->t[first + i];
    qsort(t, n, sizeof *t, by_offset);
    uint64_t at = base;
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        if (t[i]->off != at)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: the data of %s begins at %llu, expected %llu: tensors %s", s->path,
                         HN_ESC(t[i]->name.ptr, t[i]->name.len), (unsigned long long)(t[i]->off - base),
                         (unsigned long long)(at - base), t[i]->off < at ? "overlap" : "leave a hole");
        at += t[i]->n_bytes;
    }
    if (st == HONE_OK && at != s->size)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes follow the data of the last tensor, expected none", s->path,
                     (unsigned long long)(s->size - at));
    free(t);
    return st;
}

hone_status hn_safetensors_read(hn_ckpt *c, int32_t part, hone_error *err)
{
    const hn_source *s = &c->part[part];
    unsigned char h[8];
    uint64_t n = 0;
    size_t first = c->n;
    bool more, meta = false;
    hone_str name;
    hn_jread j;
    hone_status st;
    if (s->size < 10)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes, expected a safetensors file of 10 and more", s->path,
                       (unsigned long long)s->size);
    TRY(hn_source_read(s, 0, h, sizeof h, err));
    for (int i = 0; i < 8; i++) n |= (uint64_t)h[i] << 8 * i;
    if (n < 2 || n > s->size - 8)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: its safetensors header claims %llu bytes, expected 2 to the %llu that follow; truncated?",
                       s->path, (unsigned long long)n, (unsigned long long)(s->size - 8));
    if (n > MAX_HEADER)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: its safetensors header claims %llu bytes, expected at most %d", s->path,
                       (unsigned long long)n, MAX_HEADER);
    char *text = malloc((size_t)n + 1);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "%s: header of %llu bytes", s->path, (unsigned long long)n);
    if ((st = hn_source_read(s, 8, text, n, err)) != HONE_OK) goto end;
    if ((st = hn_ckpt_json(&j, text, (size_t)n, s->path, "safetensors header", err)) != HONE_OK) goto end;
    for (st = hn_jread_open(&j, '{', &more); st == HONE_OK && more; st = hn_jread_next(&j, '{', &more)) {
        if ((st = hn_jread_key_str(&j, &name)) != HONE_OK) break;
        if (is(name, "__metadata__")) {
            st =
                meta ? HN_FAIL(err, HONE_E_FORMAT, "%s: __metadata__ is there twice", s->path) : skip_metadata(&j, err);
            meta = true;
        } else {
            st = read_tensor(c, part, name, &j, 8 + n, err);
        }
        if (st != HONE_OK) break;
    }
    if (st == HONE_OK) st = hn_jread_end(&j);
    if (st == HONE_OK) st = check_tiling(c, first, 8 + n, s, err);
end:
    free(text);
    return st;
}

/* ---- folders ------------------------------------------------------------------------------------ */

static bool exists(const char *folder, const char *file, char *path, size_t cap)
{
    struct stat sb;
    int n = snprintf(path, cap, "%s/%s", folder, file);
    return n > 0 && (size_t)n < cap && stat(path, &sb) == 0 && S_ISREG(sb.st_mode);
}

static hone_status add_file(hn_ckpt *c, const char *path, hone_error *err)
{
    int32_t part;
    hone_status st = hn_ckpt_add_part(c, path, &part, err);
    return st != HONE_OK ? st : hn_safetensors_read(c, part, err);
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

static hone_status read_index(hn_ckpt *c, const char *folder, const char *path, hone_error *err)
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
    for (int32_t i = 0; i < c->n_part; i++)
        if ((st = hn_safetensors_read(c, i, err)) != HONE_OK) goto end;
    for (size_t i = 0; i < m.n && st == HONE_OK; i++) {
        const hn_ckpt_tensor *t = hn_ckpt_find(c, m.e[i].name.ptr, m.e[i].name.len);
        if (!t || t->part != m.e[i].part)
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

/* model-00001-of-NNNNN.safetensors: how many it says there are; 0: not such a name. */
static unsigned series_of(const char *name)
{
    static const char head[] = "model-00001-of-", tail[] = ".safetensors";
    size_t n = strlen(name);
    unsigned v = 0;
    if (n != sizeof head - 1 + 5 + sizeof tail - 1 || strncmp(name, head, sizeof head - 1) ||
        strcmp(name + sizeof head - 1 + 5, tail))
        return 0;
    for (size_t i = sizeof head - 1; i < sizeof head - 1 + 5; i++) {
        if (name[i] < '0' || name[i] > '9') return 0;
        v = 10 * v + (unsigned)(name[i] - '0');
    }
    return v;
}

static hone_status read_series(hn_ckpt *c, const char *folder, unsigned n, hone_error *err)
{
    char file[64], path[4352];
    hone_status st;
    for (int pass = 0; pass < 2; pass++) /* missing files first */
        for (unsigned i = 1; i <= n; i++) {
            snprintf(file, sizeof file, "model-%05u-of-%05u.safetensors", i, n);
            if (!exists(folder, file, path, sizeof path))
                return HN_FAIL(err, HONE_E_IO, "%s: has no %s, one of a series of %u", folder, file, n);
            if (pass) TRY(add_file(c, path, err));
        }
    return HONE_OK;
}

hone_status hn_safetensors_folder(hn_ckpt *c, const char *folder, hone_error *err)
{
    char path[4352];
    unsigned n = 0, k;
    if (exists(folder, "model.safetensors", path, sizeof path)) return add_file(c, path, err);
    if (exists(folder, "model.safetensors.index.json", path, sizeof path)) return read_index(c, folder, path, err);
    DIR *d = opendir(folder);
    int unread = d ? 0 : errno;
    for (struct dirent *e; d && (errno = 0, e = readdir(d));)
        if ((k = series_of(e->d_name)) > n) n = k;
    if (d) {
        unread = errno; /* the end of a folder leaves it 0 */
        closedir(d);
    }
    if (unread) return HN_FAIL(err, HONE_E_IO, "%s: the folder cannot be read: %s", folder, strerror(unread));
    if (n) return read_series(c, folder, n, err);
    bool torch = exists(folder, "pytorch_model.bin", path, sizeof path) ||
                 exists(folder, "pytorch_model.bin.index.json", path, sizeof path);
    return HN_FAIL(err, torch ? HONE_E_UNSUPPORTED : HONE_E_IO,
                   "%s: has no model.safetensors and no model.safetensors.index.json%s", folder,
                   torch ? ", only PyTorch files, which hone does not convert: save it as safetensors" : "");
}
