/* The packed side file: reading with every number checked, writing all or nothing.
 * Layout in pack_file.h. */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#define _GNU_SOURCE
#include "base/mapped.h"
#include "base/file.h"
#include "base/os.h"
#include "gguf/pack_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    AT_SIZE = 16,
    AT_COUNT = 24,
    AT_DIR = 32,
    AT_ZERO = 40,
    AT_SHAPES = 48,
    AT_DATA = 80,
    AT_CHECK = 112,
    AT_END = 144,
    ENTRY_BYTES = 4 + 4 + 4 * 8 + HN_PACKED_HASH + 4,
    ALIGN = 64,
    MAX_DIR = HN_GGUF_MAX_TENSORS * (ENTRY_BYTES + HN_GGUF_MAX_NAME + 8)
};
static const char magic[8] = "HONEPACK";

static uint32_t get32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static uint64_t get64(const unsigned char *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }
static void put32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (8 * i));
}
static void put64(unsigned char *p, uint64_t v)
{
    put32(p, (uint32_t)v);
    put32(p + 4, (uint32_t)(v >> 32));
}

static uint64_t entry_bytes(size_t name) { return (ENTRY_BYTES + (uint64_t)name + 7) & ~(uint64_t)7; }

/* Bytes of an entry's data; false: no such matrix or vector. */
static bool data_bytes(const hn_packed_entry *e, uint64_t *out)
{
    const hn_type_info *ti = hn_type_get((uint32_t)e->type);
    uint64_t n;
    if (!ti || !e->n_in || !e->n_out || e->n_in >= HN_GGUF_MAX_DIM_SIZE || e->n_out >= HN_GGUF_MAX_DIM_SIZE)
        return false;
    if (e->kind == HN_PACKED_VECTOR) {
        *out = e->n_in * sizeof(float);
        return e->n_out == 1 && (e->type == HN_F32 || e->type == HN_F16 || e->type == HN_BF16);
    }
    if (e->kind != HN_PACKED_MATRIX || !hn_can_pack(e->type) || e->n_in % ti->block_elems) return false;
    return hn_tensor_nbytes(ti, (const uint64_t[2]){ e->n_in, e->n_out }, 2, &n) &&
           hn_mul_u64(hn_packed_group_bytes(e->type, (int64_t)e->n_in), (e->n_out + HN_PACK_ROWS - 1) / HN_PACK_ROWS,
                      out) &&
           *out <= INT64_MAX;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void check_of(unsigned char out[HN_PACKED_HASH], const unsigned char *head, const unsigned char *dir, size_t n)
{
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, head, AT_CHECK);
    hn_sha256_add(&s, dir, n);
    hn_sha256_end(&s, out);
}

#define BAD(code, ...) bad(err, code, label, __LINE__, __VA_ARGS__)
__attribute__((format(printf, 5, 6))) static hone_status bad(hone_error *err, hone_status code, const char *label,
                                                             int line, const char *fmt, ...)
{
    char why[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return hn_fail(err, code, __FILE__, line, "%s: %s", label, why);
}

/* dir is a copy: what was checked is what is used. */
static hone_status read_entries(hn_packed *p, const unsigned char *dir, uint64_t n_dir, const char *label,
                                hone_error *err)
{
    uint64_t at = 0, end = HN_PACKED_HEADER + n_dir, need;
    for (uint64_t i = 0; i < p->n; i++) {
        hn_packed_entry *e = &p->e[i];
        const unsigned char *r = dir + at;
        if (n_dir - at < ENTRY_BYTES)
            return BAD(HONE_E_FORMAT, "the directory ends in entry %" PRIu64 " of %" PRIu64, i, p->n);
        uint32_t name = get32(r + ENTRY_BYTES - 4);
        if (name < 1 || name > HN_GGUF_MAX_NAME || entry_bytes(name) > n_dir - at)
            return BAD(HONE_E_FORMAT,
                       "entry %" PRIu64 ": a name of %" PRIu32 " bytes, expected 1 to %d within the directory", i, name,
                       HN_GGUF_MAX_NAME);
        *e = (hn_packed_entry){ .name = { (const char *)r + ENTRY_BYTES, name },
                                .type = (hn_type)get32(r),
                                .kind = (hn_packed_kind)get32(r + 4),
                                .n_in = get64(r + 8),
                                .n_out = get64(r + 16),
                                .offset = get64(r + 24),
                                .n_bytes = get64(r + 32) };
        memcpy(e->hash, r + 40, sizeof e->hash);
        if (get32(r) >= HN_TYPE_COUNT || !data_bytes(e, &need) || need != e->n_bytes)
            return BAD(HONE_E_FORMAT,
                       "entry %" PRIu64 " '%s': type %" PRIu32 ", kind %" PRIu32 ", {%" PRIu64 ", %" PRIu64
                       "} in %" PRIu64 " bytes is not a packed tensor",
                       i, HN_ESC((const char *)r + ENTRY_BYTES, name), get32(r), get32(r + 4), e->n_in, e->n_out,
                       e->n_bytes);
        if (e->offset % ALIGN || e->offset < end || !hn_in_range(e->offset, e->n_bytes, p->size))
            return BAD(HONE_E_FORMAT,
                       "entry %" PRIu64 " '%s': %" PRIu64 " bytes at %" PRIu64
                       " are not where they should be in a file of %" PRIu64,
                       i, HN_ESC((const char *)r + ENTRY_BYTES, name), e->n_bytes, e->offset, p->size);
        end = e->offset + e->n_bytes;
        e->data = p->map + e->offset;
        at += entry_bytes(name);
    }
    if (at != n_dir)
        return BAD(HONE_E_FORMAT, "%" PRIu64 " bytes follow the last of %" PRIu64 " entries", n_dir - at, p->n);
    return HONE_OK;
}

static hone_status read_all(hn_packed *p, const char *label, hone_error *err)
{
    unsigned char h[AT_END], sum[HN_PACKED_HASH];
    if (p->size < sizeof magic || memcmp(p->map, magic, sizeof magic) != 0)
        return BAD(HONE_E_FORMAT, "not a packed file of hone");
    if (p->size < HN_PACKED_HEADER) return BAD(HONE_E_FORMAT, "%" PRIu64 " bytes: cut short", p->size);
    memcpy(h, p->map, sizeof h);
    if (get32(h + 8) != HN_PACKED_CONTAINER || get32(h + 12) != HN_PACK_VERSION)
        return BAD(HONE_E_UNSUPPORTED, "packed in version %" PRIu32 ".%" PRIu32 ", this hone reads %d.%d", get32(h + 8),
                   get32(h + 12), HN_PACKED_CONTAINER, HN_PACK_VERSION);
    uint64_t n_dir = get64(h + AT_DIR);
    if (get64(h + AT_SIZE) != p->size)
        return BAD(HONE_E_FORMAT, "%" PRIu64 " bytes, expected %" PRIu64 ": cut short or damaged", p->size,
                   get64(h + AT_SIZE));
    if (n_dir > p->size - HN_PACKED_HEADER || n_dir > MAX_DIR)
        return BAD(HONE_E_FORMAT, "a directory of %" PRIu64 " bytes in a file of %" PRIu64, n_dir, p->size);
    p->n = get64(h + AT_COUNT);
    if (p->n > HN_GGUF_MAX_TENSORS || p->n > n_dir / ENTRY_BYTES || get64(h + AT_ZERO))
        return BAD(HONE_E_FORMAT, "%" PRIu64 " entries do not fit a directory of %" PRIu64 " bytes", p->n, n_dir);
    memcpy(p->shapes, h + AT_SHAPES, sizeof p->shapes);
    memcpy(p->data, h + AT_DATA, sizeof p->data);
    unsigned char *dir = p->dir = malloc(n_dir ? (size_t)n_dir : 1);
    p->e = calloc(p->n ? (size_t)p->n : 1, sizeof *p->e);
    hone_status st = HONE_OK;
    if (!dir || !p->e) return BAD(HONE_E_NOMEM, "directory of %" PRIu64 " entries", p->n);
    memcpy(dir, p->map + HN_PACKED_HEADER, (size_t)n_dir);
    check_of(sum, h, dir, (size_t)n_dir);
    if (memcmp(sum, h + AT_CHECK, sizeof sum) != 0)
        st = BAD(HONE_E_FORMAT, "the checksum of its directory does not match: damaged");
    else st = read_entries(p, dir, n_dir, label, err);
    return st;
}

static hone_status finish(hn_packed **out, hn_packed *p, const char *path, hone_error *err)
{
    char label[300];
    hn_escape(label, sizeof label, path, strlen(path));
    hone_status st = read_all(p, label, err);
    if (st == HONE_OK) *out = p;
    else hn_packed_close(p);
    return st;
}

hone_status hn_packed_parse(hn_packed **out, const void *bytes, size_t len, const char *name, hone_error *err)
{
    *out = NULL;
    hn_packed *p = calloc(1, sizeof *p);
    if (!p || !(p->path = strdup(name))) {
        free(p);
        return HN_FAIL(err, HONE_E_NOMEM, "packed file handle");
    }
    p->map = bytes;
    p->size = len;
    return finish(out, p, name, err);
}

hone_status hn_packed_open(hn_packed **out, const char *path, bool *missing, hone_error *err)
{
    struct stat sb;
    const char *label = HN_ESC(path, strlen(path));
    *out = NULL;
    if (missing) *missing = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        if (missing) *missing = errno == ENOENT || errno == ENOTDIR;
        return BAD(HONE_E_IO, "cannot open: %s", strerror(errno));
    }
    hn_packed *p = calloc(1, sizeof *p);
    hone_status st = HONE_OK;
    if (!p || !(p->path = strdup(path))) st = BAD(HONE_E_NOMEM, "packed file handle");
    else if (fstat(fd, &sb) != 0) st = BAD(HONE_E_IO, "cannot stat: %s", strerror(errno));
    else if (!S_ISREG(sb.st_mode) || (uint64_t)sb.st_size > SIZE_MAX / 2)
        st = BAD(HONE_E_FORMAT, "not a packed file of hone");
    else if (sb.st_size > 0) {
        void *m = hn_mapped_open(fd, (size_t)sb.st_size, path);
        if (!m) st = BAD(HONE_E_IO, "cannot map %lld bytes: %s", (long long)sb.st_size, strerror(errno));
        else {
            p->map = m;
            p->size = (uint64_t)sb.st_size;
            p->mapped = true;
            hn_stamp_of(&p->stamp, &sb);
        }
    }
    close(fd);
    if (st == HONE_OK) return finish(out, p, path, err);
    hn_packed_close(p);
    return st;
}

void hn_packed_close(hn_packed *p)
{
    if (!p) return;
    if (p->mapped) hn_mapped_close(p->map, (size_t)p->size);
    free(p->dir);
    free(p->e);
    free(p->path);
    free(p);
}

bool hn_packed_is(const char *path)
{
    char b[sizeof magic];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return false;
    bool is = read(fd, b, sizeof b) == (ssize_t)sizeof b && memcmp(b, magic, sizeof b) == 0;
    close(fd);
    return is;
}

/* ---- writing ------------------------------------------------------------------------------------- */

struct hn_packed_writer {
    char *path;
    hn_file *file;
    hn_packed_entry *e;
    uint64_t n, n_dir, size;
    char *win; /* bytes [win_at, win_at + win_bytes) of the file, not written yet; or NULL */
    uint64_t win_at;
    size_t win_bytes;
};

static hone_status place(hn_packed_writer *w, const char *path, hone_error *err)
{
    uint64_t at;
    w->n_dir = 0;
    for (uint64_t i = 0; i < w->n; i++) w->n_dir += entry_bytes(w->e[i].name.len);
    at = (HN_PACKED_HEADER + w->n_dir + 4095) & ~(uint64_t)4095;
    for (uint64_t i = 0; i < w->n; i++) {
        hn_packed_entry *e = &w->e[i];
        if (!data_bytes(e, &e->n_bytes) || e->n_bytes > (uint64_t)INT64_MAX - at)
            return HN_FAIL(err, HONE_E_ARG, "%s: tensor %s cannot be packed", HN_ESC(path, strlen(path)),
                           HN_ESC(e->name.ptr, e->name.len));
        e->offset = at;
        at = (at + e->n_bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
    }
    w->size = at;
    return HONE_OK;
}

hone_status hn_packed_begin(hn_packed_writer **out, const char *path, hn_packed_entry *e, uint64_t n, hone_error *err)
{
    hone_status st;
    *out = NULL;
    hn_packed_writer *w = calloc(1, sizeof *w);
    if (!w) return HN_FAIL(err, HONE_E_NOMEM, "packed file writer");
    w->e = e;
    w->n = n;
    st = (w->path = strdup(path)) ? place(w, path, err) : HN_FAIL(err, HONE_E_NOMEM, "path of %zu bytes", strlen(path));
    if (st == HONE_OK) st = hn_file_begin(&w->file, path, &(hn_file_want){ .n_bytes = w->size }, err);
    if (st != HONE_OK) {
        hn_packed_writer_free(w);
        return st;
    }
    *out = w;
    return HONE_OK;
}

uint64_t hn_packed_size(const hn_packed_writer *w) { return w->size; }

void hn_packed_gather(hn_packed_writer *w, size_t most)
{
    w->win_bytes = HN_PACKED_HEADER + (size_t)w->n_dir + 4096 + most + HN_OS_HUGE_PAGE;
    w->win = hn_pages_alloc(w->win_bytes); /* NULL: pieces are written as they come */
}

int hn_packed_write(hn_packed_writer *w, uint64_t offset, const void *data, size_t n)
{
    if (!w->win) return hn_file_put_at(w->file, offset, data, n);
    if (offset < w->win_at || !hn_in_range(offset - w->win_at, n, w->win_bytes))
        return EOVERFLOW; /* against the promise */
    memcpy(w->win + (offset - w->win_at), data, n);
    return 0;
}

int hn_packed_flush(hn_packed_writer *w, uint64_t end)
{
    if (!w->win) return 0;
    if (end < w->win_at || end - w->win_at > w->win_bytes) return EOVERFLOW;
    if (end < w->size) end = end / HN_OS_HUGE_PAGE * HN_OS_HUGE_PAGE;
    size_t n = end > w->win_at ? (size_t)(end - w->win_at) : 0;
    if (!n) return 0;
    int error = hn_file_put_at(w->file, w->win_at, w->win, n);
    memmove(w->win, w->win + n, w->win_bytes - n);
    memset(w->win + (w->win_bytes - n), 0, n);
    w->win_at = end;
    return error;
}

hone_status hn_packed_failed(hn_packed_writer *w, int error, hone_error *err)
{
    return hn_file_failed(w->file, error, err);
}

static unsigned char *make_head(const hn_packed_writer *w, const unsigned char *shapes, const unsigned char *data)
{
    unsigned char *h = calloc(1, (size_t)(HN_PACKED_HEADER + w->n_dir)), *r = h + HN_PACKED_HEADER;
    if (!h) return NULL;
    memcpy(h, magic, sizeof magic);
    put32(h + 8, HN_PACKED_CONTAINER);
    put32(h + 12, HN_PACK_VERSION);
    put64(h + AT_SIZE, w->size);
    put64(h + AT_COUNT, w->n);
    put64(h + AT_DIR, w->n_dir);
    memcpy(h + AT_SHAPES, shapes, HN_PACKED_HASH);
    memcpy(h + AT_DATA, data, HN_PACKED_HASH);
    for (uint64_t i = 0; i < w->n; r += entry_bytes(w->e[i].name.len), i++) {
        const hn_packed_entry *e = &w->e[i];
        put32(r, (uint32_t)e->type);
        put32(r + 4, (uint32_t)e->kind);
        put64(r + 8, e->n_in);
        put64(r + 16, e->n_out);
        put64(r + 24, e->offset);
        put64(r + 32, e->n_bytes);
        memcpy(r + 40, e->hash, HN_PACKED_HASH);
        put32(r + ENTRY_BYTES - 4, (uint32_t)e->name.len);
        memcpy(r + ENTRY_BYTES, e->name.ptr, e->name.len);
    }
    check_of(h + AT_CHECK, h, h + HN_PACKED_HEADER, (size_t)w->n_dir);
    return h;
}

hone_status hn_packed_end(hn_packed_writer *w, const unsigned char shapes[HN_PACKED_HASH],
                          const unsigned char data[HN_PACKED_HASH], hone_error *err)
{
    unsigned char *h = make_head(w, shapes, data);
    if (!h)
        return HN_FAIL(err, HONE_E_NOMEM, "%s: directory of %" PRIu64 " entries", HN_ESC(w->path, strlen(w->path)),
                       w->n);
    int error = hn_packed_flush(w, w->size);
    if (!error) error = hn_file_put_at(w->file, 0, h, (size_t)(HN_PACKED_HEADER + w->n_dir));
    free(h);
    return error ? hn_packed_failed(w, error, err) : hn_file_end(w->file, err);
}

void hn_packed_writer_free(hn_packed_writer *w)
{
    if (!w) return;
    hn_file_drop(w->file);
    if (w->win) hn_pages_free(w->win, w->win_bytes);
    free(w->path);
    free(w);
}
