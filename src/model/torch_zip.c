/* torch_zip: checkpoints as torch.save writes them, a zip archive (PKWARE's APPNOTE.TXT; pytorch/pytorch:
 * caffe2/serialize/inline_container.cc) of a pickle and the storages it names, into the list of tensors. Owns the
 * archive: its members lie apart, as they are, and every storage lies in its member. Refuses to know what the tensors
 * mean; what the pickle says, torch_pickle knows. */
#define _GNU_SOURCE
#include "model/torch_pickle.h"

#include <stdlib.h>

enum {
    END_BYTES = 22,     /* of the record at the end, with a comment of at most 65535 behind it */
    LOCATOR_BYTES = 20, /* where the 64-bit one is */
    END64_BYTES = 56,
    CENTRAL_BYTES = 46, /* of a member, before its name */
    LOCAL_BYTES = 30,
    MAX_LIST = 256 << 20, /* bytes of the list of members */
    MAX_MEMBERS = HN_CKPT_MAX_TENSORS + 1024,
    MAX_PICKLE = 64 << 20
};

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)
#define LL(x) ((unsigned long long)(x))

typedef struct member {
    hone_str name;          /* first, as hn_index wants; in the list */
    uint64_t at, off, size; /* its header, its bytes */
} member;

typedef struct archive {
    const hn_source *s;
    char *list; /* of members, as the file has it */
    uint64_t list_at, n_list;
    member *m;
    size_t n;
    hn_index ix;
    size_t n_stem; /* bytes of "X/" before all names */
    const char *stem;
} archive;

static uint64_t get(const char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)(unsigned char)p[i] << 8 * i;
    return v;
}

static bool ends(hone_str s, const char *with)
{
    size_t n = strlen(with);
    return s.len >= n && !memcmp(s.ptr + s.len - n, with, n);
}

/* ---- where the list is --------------------------------------------------------------------------------- */

static hone_status cut_short(const hn_source *s, hone_error *err)
{
    return HN_FAIL(err, HONE_E_FORMAT, "%s: a zip archive without the record that ends one: truncated?", s->path);
}

/* The record of 64-bit sizes, which a locator before the usual one points at. */
static hone_status find_end64(archive *a, const char *locator, uint64_t end_at, uint64_t *count, hone_error *err)
{
    char r[END64_BYTES];
    uint64_t at = get(locator + 8, 8);
    hone_status st;
    if (!hn_in_range(at, END64_BYTES, end_at)) return cut_short(a->s, err);
    TRY(hn_source_read(a->s, at, r, sizeof r, err));
    if (memcmp(r, "PK\6\6", 4) || get(r + 16, 4) || get(r + 20, 4)) return cut_short(a->s, err);
    *count = get(r + 32, 8);
    a->n_list = get(r + 40, 8);
    a->list_at = get(r + 48, 8);
    return HONE_OK;
}

static hone_status find_list(archive *a, uint64_t *count, hone_error *err)
{
    uint64_t n = a->s->size < END_BYTES + 65535 ? a->s->size : END_BYTES + 65535, at = a->s->size - n, end_at;
    hone_status st = HONE_OK;
    if (n < END_BYTES) return cut_short(a->s, err);
    char *tail = malloc(n);
    if (!tail) return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu bytes", a->s->path, LL(n));
    if ((st = hn_source_read(a->s, at, tail, n, err)) != HONE_OK) goto done;
    uint64_t i = n - END_BYTES + 1;
    while (i-- > 0)
        if (!memcmp(tail + i, "PK\5\6", 4) && i + END_BYTES + get(tail + i + 20, 2) == n) break;
    if (i == UINT64_MAX) {
        st = cut_short(a->s, err);
        goto done;
    }
    end_at = at + i;
    *count = get(tail + i + 10, 2);
    a->n_list = get(tail + i + 12, 4);
    a->list_at = get(tail + i + 16, 4);
    if (get(tail + i + 4, 4))
        st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: a zip archive in several files, expected one", a->s->path);
    else if (i >= LOCATOR_BYTES && !memcmp(tail + i - LOCATOR_BYTES, "PK\6\7", 4))
        st = find_end64(a, tail + i - LOCATOR_BYTES, end_at, count, err);
    if (st == HONE_OK && !hn_in_range(a->list_at, a->n_list, end_at))
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: its list of members is said to be at %llu, %llu bytes, of %llu",
                     a->s->path, LL(a->list_at), LL(a->n_list), LL(end_at));
    if (st == HONE_OK && (a->n_list > MAX_LIST || *count > MAX_MEMBERS || *count > a->n_list / CENTRAL_BYTES))
        st = HN_FAIL(err, HONE_E_FORMAT,
                     "%s: %llu members in a list of %llu bytes, expected at most %d, of %d bytes each", a->s->path,
                     LL(*count), LL(a->n_list), MAX_MEMBERS, CENTRAL_BYTES);
done:
    free(tail);
    return st;
}

/* ---- members ------------------------------------------------------------------------------------------- */

static hone_status bad_member(const archive *a, const member *m, hone_status code, const char *what, hone_error *err)
{
    return HN_FAIL(err, code, "%s: its member \"%s\" %s", a->s->path, HN_ESC(m->name.ptr, m->name.len), what);
}

/* Sizes that do not fit in 32 bits stand behind the name, in this order. */
static bool wide_sizes(const char *extra, uint64_t n, uint64_t *size, uint64_t *packed, uint64_t *at)
{
    uint64_t *want[] = { size, packed, at };
    bool any = *size == UINT32_MAX || *packed == UINT32_MAX || *at == UINT32_MAX;
    for (uint64_t i = 0; any && n - i >= 4;) {
        uint64_t id = get(extra + i, 2), len = get(extra + i + 2, 2), k = i + 4;
        if (len > n - k) return false;
        i = k + len;
        if (id != 1) continue;
        for (int w = 0; w < 3; w++) {
            if (*want[w] != UINT32_MAX) continue;
            if (i - k < 8) return false;
            *want[w] = get(extra + k, 8);
            k += 8;
        }
        return true;
    }
    return !any;
}

static const char *name_fault(hone_str s)
{
    if (s.len == 0 || s.len > 1024) return "has a name that is empty or longer than 1024 bytes";
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7F || s.ptr[i] == '\\')
            return "has a name that no file has";
    if (s.ptr[0] == '/' || memmem(s.ptr, s.len, "..", 2)) return "has a name that leads elsewhere";
    return NULL;
}

/* One entry of the list; *used: its bytes. */
static hone_status read_entry(archive *a, const char *p, uint64_t left, uint64_t *used, hone_error *err)
{
    member *m = &a->m[a->n];
    int64_t dup;
    if (left < CENTRAL_BYTES || memcmp(p, "PK\1\2", 4))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: entry %zu of its list of members is none", a->s->path, a->n);
    uint64_t n_name = get(p + 28, 2), n_extra = get(p + 30, 2), packed = get(p + 20, 4);
    *used = CENTRAL_BYTES + n_name + n_extra + get(p + 32, 2);
    if (*used > left)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: entry %zu of its list of members is cut short", a->s->path, a->n);
    *m = (member){ { p + CENTRAL_BYTES, n_name }, get(p + 42, 4), 0, get(p + 24, 4) };
    const char *wrong = name_fault(m->name);
    if (wrong) return bad_member(a, m, HONE_E_FORMAT, wrong, err);
    if (ends(m->name, "/constants.pkl") || memmem(m->name.ptr, m->name.len, "/code/", 6))
        return bad_member(a, m, HONE_E_UNSUPPORTED,
                          "belongs to TorchScript, a program with weights; expected a state dict: save its tensors as "
                          "safetensors",
                          err);
    if (!wide_sizes(p + CENTRAL_BYTES + n_name, n_extra, &m->size, &packed, &m->at))
        return bad_member(a, m, HONE_E_FORMAT, "lacks its sizes of 64 bits", err);
    if (get(p + 8, 2) & 1) return bad_member(a, m, HONE_E_UNSUPPORTED, "is encrypted, expected plain bytes", err);
    if (get(p + 10, 2) || packed != m->size)
        return bad_member(a, m, HONE_E_UNSUPPORTED, "is compressed, expected plain bytes as torch.save writes them",
                          err);
    if (!hn_index_add(&a->ix, a->m, sizeof *a->m, (uint32_t)a->n, &dup))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu members", a->s->path, a->n);
    if (dup >= 0) return bad_member(a, m, HONE_E_FORMAT, "is there twice", err);
    a->n++;
    return HONE_OK;
}

/* Where the bytes begin, by the header before them. */
static hone_status find_bytes(const archive *a, member *m, hone_error *err)
{
    char h[LOCAL_BYTES], name[1024];
    hone_status st;
    if (!hn_in_range(m->at, LOCAL_BYTES + m->name.len, a->list_at))
        return bad_member(a, m, HONE_E_FORMAT, "lies beyond the file", err);
    TRY(hn_source_read(a->s, m->at, h, sizeof h, err));
    TRY(hn_source_read(a->s, m->at + LOCAL_BYTES, name, m->name.len, err));
    if (memcmp(h, "PK\3\4", 4) || get(h + 8, 2) || get(h + 26, 2) != m->name.len ||
        memcmp(name, m->name.ptr, m->name.len))
        return bad_member(a, m, HONE_E_FORMAT, "has another header than the list of members says", err);
    m->off = m->at + LOCAL_BYTES + m->name.len + get(h + 28, 2);
    return hn_in_range(m->off, m->size, a->list_at) ? HONE_OK
                                                    : bad_member(a, m, HONE_E_FORMAT, "lies beyond the file", err);
}

static int by_place(const void *x, const void *y)
{
    const member *a = *(const member *const *)x, *b = *(const member *const *)y;
    return a->at < b->at ? -1 : a->at > b->at;
}

static hone_status check_apart(const archive *a, hone_error *err)
{
    hone_status st = HONE_OK;
    const member **order = malloc((a->n + 1) * sizeof *order);
    if (!order) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu members", a->s->path, a->n);
    for (size_t i = 0; i < a->n; i++) order[i] = &a->m[i];
    qsort(order, a->n, sizeof *order, by_place);
    for (size_t i = 1; i < a->n && st == HONE_OK; i++)
        if (order[i]->at < order[i - 1]->off + order[i - 1]->size)
            st = bad_member(a, order[i], HONE_E_FORMAT, "overlaps another", err);
    free(order);
    return st;
}

static hone_status read_list(archive *a, hone_error *err)
{
    uint64_t count = 0, used = 0;
    hone_status st;
    TRY(find_list(a, &count, err));
    a->list = malloc(a->n_list + 1);
    a->m = calloc(count + 1, sizeof *a->m);
    if (!a->list || !a->m) return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu members", a->s->path, LL(count));
    TRY(hn_source_read(a->s, a->list_at, a->list, a->n_list, err));
    for (uint64_t at = 0; a->n < count; at += used) TRY(read_entry(a, a->list + at, a->n_list - at, &used, err));
    for (size_t i = 0; i < a->n; i++) TRY(find_bytes(a, &a->m[i], err));
    return check_apart(a, err);
}

static const member *find(const archive *a, const char *name, size_t n)
{
    char full[1400];
    if (a->n_stem + n > sizeof full) return NULL;
    memcpy(full, a->stem, a->n_stem);
    memcpy(full + a->n_stem, name, n);
    int64_t i = hn_index_find(&a->ix, a->m, sizeof *a->m, full, a->n_stem + n);
    return i < 0 ? NULL : &a->m[i];
}

/* "X/" of X/data.pkl, and that it is an archive of numbers as this machine has them. */
static hone_status check_kind(archive *a, const member **pickle, hone_error *err)
{
    char order[16] = "little";
    hone_status st;
    *pickle = NULL;
    for (size_t i = 0; i < a->n; i++) {
        const member *m = &a->m[i];
        if (!ends(m->name, "/data.pkl") || memchr(m->name.ptr, '/', m->name.len) != m->name.ptr + m->name.len - 9)
            continue;
        if (*pickle) return bad_member(a, m, HONE_E_FORMAT, "is the second of its kind, expected one data.pkl", err);
        *pickle = m;
        a->stem = m->name.ptr;
        a->n_stem = m->name.len - 8;
    }
    if (!*pickle)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: a zip archive of %zu members without data.pkl, expected one by torch.save", a->s->path,
                       a->n);
    if (!find(a, "version", 7))
        return bad_member(a, *pickle, HONE_E_FORMAT, "has no version beside it: truncated?", err);
    const member *m = find(a, "byteorder", 9);
    if (m && m->size == 6) TRY(hn_source_read(a->s, m->off, order, 6, err));
    if (m && (m->size != 6 || memcmp(order, "little", 6)))
        return bad_member(a, m, HONE_E_UNSUPPORTED, "says that numbers are not little-endian, as hone reads them", err);
    if ((*pickle)->size > MAX_PICKLE)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: data.pkl has %llu bytes, expected at most %d", a->s->path,
                       LL((*pickle)->size), MAX_PICKLE);
    return HONE_OK;
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

/* Elements, and whether they lie one behind the other. False: not within the storage. */
static bool measure(const hn_torch_tensor *t, uint64_t *count, uint64_t *last, bool *in_order)
{
    uint64_t step;
    *count = 1;
    *last = t->first;
    *in_order = true;
    for (int32_t i = 0; i < t->n_dim; i++) {
        if (t->ne[i] > 1 && t->stride[i] != *count) *in_order = false;
        if (t->ne[i] && (!hn_mul_u64(t->ne[i] - 1, t->stride[i], &step) || !hn_add_u64(*last, step, last)))
            return false;
        if (!hn_mul_u64(*count, t->ne[i], count)) return false;
    }
    return *count == 0 || *last < t->n_stored;
}

/* Elements of a storage in another order than they lie: written one behind the other, in a part of their own. */
static hone_status put_in_order(hn_ckpt *c, const hn_torch_tensor *t, uint64_t each, uint64_t count, uint64_t last,
                                uint64_t from, hn_ckpt_tensor *to, int32_t *scratch, hone_error *err)
{
    const hn_source *s = &c->part[to->part];
    uint64_t n_span = (last - t->first + 1) * each, i[HN_CKPT_MAX_DIM] = { 0 };
    hone_status st = HONE_OK;
    if (*scratch < 0 && (st = hn_ckpt_add_scratch(c, s->path, scratch, err)) != HONE_OK) return st;
    hn_source *room = &c->part[*scratch];
    s = &c->part[to->part];
    if (count > t->n_stored || room->size + count * each > s->size)
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: %s, of shape %s, shows elements of its storage in another order and more often than they are "
            "there; save it with .contiguous()",
            s->path, HN_ESC(t->name.ptr, t->name.len), HN_SHAPE(to));
    char *span = malloc(n_span), *out = malloc(count * each), *p = out;
    if (!span || !out) st = HN_FAIL(err, HONE_E_NOMEM, "%s: %llu elements", s->path, LL(count));
    else st = hn_source_read(s, from + t->first * each, span, n_span, err);
    for (uint64_t k = 0; st == HONE_OK && k < count; k++, p += each) {
        uint64_t at = 0;
        for (int32_t d = 0; d < t->n_dim; d++) at += i[d] * t->stride[d];
        memcpy(p, span + at * each, each);
        for (int32_t d = 0; d < t->n_dim && ++i[d] == t->ne[d]; d++) i[d] = 0;
    }
    to->off = room->size;
    to->part = *scratch;
    if (st == HONE_OK) st = hn_source_append(room, out, count * each, err);
    free(span);
    free(out);
    return st;
}

static hone_status add_tensor(hn_ckpt *c, int32_t part, const archive *a, const hn_torch_tensor *t, int32_t *scratch,
                              hone_error *err)
{
    char key[1100];
    const char *path = c->part[part].path, *name = HN_ESC(t->name.ptr, t->name.len);
    hn_ckpt_tensor to = { .name = t->name, .part = part, .type = t->type, .raw = t->raw, .n_dim = t->n_dim };
    uint64_t each = hn_type_get(t->type)->block_bytes, count, last, n_bytes;
    bool in_order;
    hone_status st;
    memcpy(to.ne, t->ne, sizeof to.ne);
    int n = snprintf(key, sizeof key, "data/%.*s", t->key.len < 1024 ? (int)t->key.len : 1024, t->key.ptr);
    const member *m = find(a, key, (size_t)n);
    if (!m)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: the storage of %s, member %s, is missing", path, name,
                       HN_ESC(key, strlen(key)));
    if (!hn_mul_u64(t->n_stored, each, &n_bytes) || n_bytes > m->size)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has a storage of %llu elements, but its member %s has %llu bytes",
                       path, name, LL(t->n_stored), HN_ESC(key, strlen(key)), LL(m->size));
    if (!measure(t, &count, &last, &in_order))
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %s, of shape %s from element %llu on, reaches beyond its storage of %llu", path, name,
                       HN_SHAPE(&to), LL(t->first), LL(t->n_stored));
    if (t->raw && !c->takes_raw)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s has dtype %s; expected F32, F16, BF16 or F64: convert the unquantized checkpoint", path,
                       name, hn_ckpt_raw_name(t->raw));
    to.n_bytes = count * each;
    to.off = m->off + (count ? t->first * each : 0);
    if (count && !in_order) TRY(put_in_order(c, t, each, count, last, m->off, &to, scratch, err));
    return hn_ckpt_add(c, &to, err);
}

static const unsigned char legacy[] = { 0x80, 2, 0x8a, 10 }; /* a pickle with torch's own number, until 1.5 */

bool hn_torch_is(const unsigned char *p, size_t n)
{
    return n >= 4 && (!memcmp(p, "PK\3\4", 4) || !memcmp(p, legacy, 4));
}

/* What is no archive at all. */
static hone_status check_head(const hn_source *s, hone_error *err)
{
    unsigned char h[4] = { 0 };
    hone_status st = HONE_OK;
    if (s->size >= 4) TRY(hn_source_read(s, 0, h, 4, err));
    if (!memcmp(h, "PK\3\4", 4)) return HONE_OK;
    if (h[0] == 0x80)
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: a PyTorch checkpoint as torch wrote them before 1.6, a bare pickle; expected a zip archive: "
            "load it where you trust it and save its tensors as safetensors",
            s->path);
    return HN_FAIL(err, HONE_E_FORMAT, "%s: begins with bytes %02x%02x%02x%02x, expected a zip archive by torch.save",
                   s->path, h[0], h[1], h[2], h[3]);
}

hone_status hn_torch_read(hn_ckpt *c, int32_t part, hone_error *err)
{
    archive a = { .s = &c->part[part] };
    hn_torch_tensor *t = NULL;
    size_t n = 0;
    const member *pickle;
    int32_t scratch = -1;
    unsigned char *text = NULL;
    hone_status st = check_head(a.s, err);
    if (st == HONE_OK) st = read_list(&a, err);
    if (st == HONE_OK) st = check_kind(&a, &pickle, err);
    if (st == HONE_OK && !(text = malloc(pickle->size + 1)))
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: data.pkl of %llu bytes", a.s->path, LL(pickle->size));
    if (st == HONE_OK) st = hn_source_read(a.s, pickle->off, text, pickle->size, err);
    if (st == HONE_OK) st = hn_torch_pickle(&t, &n, text, pickle->size, a.s->path, err);
    for (size_t i = 0; i < n && st == HONE_OK; i++) st = add_tensor(c, part, &a, &t[i], &scratch, err);
    if (st == HONE_OK && n == 0) st = HN_FAIL(err, HONE_E_FORMAT, "%s: its dictionary has no tensor", a.s->path);
    free(t);
    free(text);
    free(a.list);
    free(a.m);
    hn_index_free(&a.ix);
    return st;
}
