/* Files of logits: what a model said about a text, kept for a comparison without it. Owns
 * the format. Everything read is checked: sizes before use, contents by checksums.
 *
 *   "honelgts"  u32 version 1  u32 bits (32 or 16)  i32 n_vocab n_ctx stride first bos
 *   i32 0  i64 n_ids n_window  u64 fingerprint  [32] vocabulary  [128] label, zero-filled
 *   i32 ids [n_ids]  [32] SHA-256 of all before
 *   n_window times: rows [n_ctx - 1 - first]  [32] SHA-256 of these rows
 *   row of 32 bits: f32 [n_vocab]
 *   row of 16 bits: f32 top  f32 step  u16 [n_vocab]; logit = top - step * code
 *
 * Little-endian. */
#define _GNU_SOURCE
#include "lab/quality/perplexity.h"
#include "base/file.h"

#include <math.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files of logits are written as they lie in memory");

static const char magic[8] = "honelgts";
enum { VERSION = 1, DIGEST = 32, DEPTH_16 = 32 };

typedef struct head_bytes {
    char magic[8];
    uint32_t version, bits;
    int32_t n_vocab, n_ctx, stride, first, bos, zero;
    int64_t n_ids, n_window;
    uint64_t fingerprint;
    unsigned char vocab[DIGEST];
    char label[128];
} head_bytes;
_Static_assert(sizeof(head_bytes) == 224, "as documented, without gaps");

struct hn_logits_file {
    FILE *f;     /* being read; else NULL */
    hn_file *to; /* being written; else NULL */
    char *path;
    int32_t bits, n_vocab, scored;
    int64_t n_rows, row;
    hn_sha256 sum;        /* of this window's rows */
    unsigned char *bytes; /* one row */
    size_t row_bytes;
};

static hone_status io_fail(const hn_logits_file *f, const char *what, hone_error *err)
{
    return HN_FAIL(err, HONE_E_IO, "%s: %s: %s", HN_ESC(f->path, strlen(f->path)), what,
                   errno ? strerror(errno) : "failed");
}

static hone_status make_handle(hn_logits_file **out, const char *path, hone_error *err)
{
    *out = calloc(1, sizeof **out);
    if (*out && ((*out)->path = strdup(path))) return HONE_OK;
    hn_logits_close(*out);
    *out = NULL;
    return HN_FAIL(err, HONE_E_NOMEM, "logits file handle");
}

static hone_status set_shape(hn_logits_file *f, const hn_logits_head *h, const hn_windows *w, hone_error *err)
{
    f->bits = h->bits;
    f->n_vocab = h->n_vocab;
    f->scored = hn_windows_scored(w);
    f->n_rows = hn_windows_rows(w);
    f->row_bytes = (size_t)h->n_vocab * (h->bits == 32 ? 4 : 2) + (h->bits == 32 ? 0 : 8);
    f->bytes = malloc(f->row_bytes);
    hn_sha256_init(&f->sum);
    return f->bytes ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "a row of %d logits", h->n_vocab);
}

static hone_status put(hn_logits_file *f, const void *p, size_t n, hone_error *err)
{
    hn_sha256_add(&f->sum, p, n);
    return hn_file_put(f->to, p, n, err);
}

static hone_status put_digest(hn_logits_file *f, hone_error *err)
{
    unsigned char d[DIGEST];
    hn_sha256_end(&f->sum, d);
    hn_sha256_init(&f->sum);
    return hn_file_put(f->to, d, DIGEST, err);
}

/* What a file of this shape has; what check_head expects of it. */
static uint64_t file_bytes(const hn_logits_file *f, const hn_windows *w)
{
    uint64_t windows = (uint64_t)w->n_window * (f->row_bytes * (uint64_t)f->scored + DIGEST);
    return sizeof(head_bytes) + 4 * (uint64_t)w->n_ids + DIGEST + windows;
}

/* ---- writing ----------------------------------------------------------------------------------- */

hone_status hn_logits_create(hn_logits_file **out, const char *path, const hn_logits_head *h, const hn_windows *w,
                             hone_error *err)
{
    hone_status st = make_handle(out, path, err);
    if (st != HONE_OK) return st;
    hn_logits_file *f = *out;
    head_bytes b = { .version = VERSION,
                     .bits = (uint32_t)h->bits,
                     .n_vocab = h->n_vocab,
                     .n_ctx = w->n_ctx,
                     .stride = w->stride,
                     .first = w->first,
                     .bos = w->bos,
                     .n_ids = w->n_ids,
                     .n_window = w->n_window,
                     .fingerprint = h->fingerprint };
    memcpy(b.magic, magic, sizeof magic);
    memcpy(b.vocab, h->vocab, DIGEST);
    memcpy(b.label, h->label, sizeof b.label - 1);
    if ((st = set_shape(f, h, w, err)) != HONE_OK) goto fail;
    if ((st = hn_file_begin(&f->to, path, &(hn_file_want){ .n_bytes = file_bytes(f, w) }, err)) != HONE_OK) goto fail;
    st = put(f, &b, sizeof b, err);
    if (st == HONE_OK) st = put(f, w->ids, (size_t)w->n_ids * sizeof *w->ids, err);
    if (st == HONE_OK) st = put_digest(f, err);
    if (st == HONE_OK) return HONE_OK;
fail:
    hn_logits_close(f);
    *out = NULL;
    return st;
}

static void encode16(unsigned char *dst, const float *x, int32_t n)
{
    float top = x[0], low = x[0];
    for (int32_t i = 1; i < n; i++) {
        top = x[i] > top ? x[i] : top;
        low = x[i] < low ? x[i] : low;
    }
    if (!(low > top - DEPTH_16)) low = top - DEPTH_16;
    float step = (top - low) / 65535.0f;
    memcpy(dst, &top, 4);
    memcpy(dst + 4, &step, 4);
    for (int32_t i = 0; i < n; i++) {
        double code = step > 0 ? rint(((double)top - x[i]) / step) : 0;
        uint16_t c = code < 65535 ? (uint16_t)code : 65535;
        memcpy(dst + 8 + 2 * (size_t)i, &c, 2);
    }
}

static void decode16(float *x, const unsigned char *src, int32_t n)
{
    float top, step;
    memcpy(&top, src, 4);
    memcpy(&step, src + 4, 4);
    for (int32_t i = 0; i < n; i++) {
        uint16_t c;
        memcpy(&c, src + 8 + 2 * (size_t)i, 2);
        x[i] = (float)((double)top - (double)step * c);
    }
}

hone_status hn_logits_put(hn_logits_file *f, const float *rows, int64_t n, hone_error *err)
{
    for (int64_t r = 0; r < n; r++) {
        const float *x = rows + r * f->n_vocab;
        if (f->bits == 32) memcpy(f->bytes, x, f->row_bytes);
        else encode16(f->bytes, x, f->n_vocab);
        hone_status st = put(f, f->bytes, f->row_bytes, err);
        if (st == HONE_OK && ++f->row % f->scored == 0) st = put_digest(f, err);
        if (st != HONE_OK) return st;
    }
    return HONE_OK;
}

hone_status hn_logits_finish(hn_logits_file *f, hone_error *err)
{
    if (f->row != f->n_rows)
        return HN_FAIL(err, HONE_E_ARG, "%s: %lld rows of logits, expected %lld", HN_ESC(f->path, strlen(f->path)),
                       (long long)f->row, (long long)f->n_rows);
    return hn_file_end(f->to, err);
}

/* ---- reading -------------------------------------------------------------------------------------- */

bool hn_logits_is_file(const char *path)
{
    char b[sizeof magic] = "";
    FILE *f = fopen(path, "rbe");
    bool is = f && fread(b, 1, sizeof b, f) == sizeof b && memcmp(b, magic, sizeof b) == 0;
    if (f) fclose(f);
    return is;
}

static bool check_digest(hn_logits_file *f, hn_sha256 *sum)
{
    unsigned char seen[DIGEST], d[DIGEST];
    hn_sha256_end(sum, d);
    hn_sha256_init(sum);
    return fread(seen, 1, DIGEST, f->f) == DIGEST && memcmp(seen, d, DIGEST) == 0;
}

#define BAD(...) HN_FAIL(err, HONE_E_FORMAT, __VA_ARGS__)

static hone_status check_head(const head_bytes *b, uint64_t size, const char *name, hone_error *err)
{
    if (memcmp(b->magic, magic, sizeof magic) != 0) return BAD("%s: no file of logits", name);
    if (b->version != VERSION) return BAD("%s: version %u of files of logits, expected %d", name, b->version, VERSION);
    if (b->bits != 32 && b->bits != 16) return BAD("%s: logits of %u bits, expected 32 or 16", name, b->bits);
    int64_t n_ids = b->n_ids, last;
    bool sane = b->n_vocab > 0 && b->n_ctx >= 4 && b->stride >= 1 && b->stride <= b->n_ctx && b->first >= 0 &&
                b->first < b->n_ctx - 1 && b->bos >= -1 && b->bos < b->n_vocab && n_ids > 0 && b->n_window > 0 &&
                (uint64_t)n_ids <= size / 4 && b->n_window <= n_ids &&
                !__builtin_mul_overflow(b->n_window - 1, (int64_t)b->stride, &last) && last <= n_ids - b->n_ctx;
    if (!sane) return BAD("%s: the head of this file of logits contradicts itself", name);
    uint64_t row = (uint64_t)b->n_vocab * (b->bits / 8) + (b->bits == 16 ? 8 : 0), want;
    bool fits = !__builtin_mul_overflow(row, (uint64_t)(b->n_ctx - 1 - b->first), &want) &&
                !__builtin_add_overflow(want, (uint64_t)DIGEST, &want) &&
                !__builtin_mul_overflow(want, (uint64_t)b->n_window, &want) &&
                !__builtin_add_overflow(want, sizeof *b + DIGEST + 4 * (uint64_t)n_ids, &want);
    if (!fits || want != size)
        return BAD("%s: %llu bytes, but its head promises %llu: incomplete or damaged", name, (unsigned long long)size,
                   (unsigned long long)(fits ? want : 0));
    return HONE_OK;
}

hone_status hn_logits_open(hn_logits_file **out, const char *path, hn_logits_head *h, hn_windows *w, hone_error *err)
{
    head_bytes b = { 0 };
    struct stat sb;
    *w = (hn_windows){ 0 };
    hone_status st = make_handle(out, path, err);
    if (st != HONE_OK) return st;
    hn_logits_file *f = *out;
    const char *name = HN_ESC(path, strlen(path));
    errno = 0;
    f->f = fopen(path, "rbe");
    if (!f->f || fstat(fileno(f->f), &sb) != 0) st = io_fail(f, "cannot be read", err);
    else if (fread(&b, 1, sizeof b, f->f) != sizeof b)
        st = BAD("%s: %lld bytes are no file of logits", name, (long long)sb.st_size);
    else st = check_head(&b, (uint64_t)sb.st_size, name, err);
    if (st != HONE_OK) goto fail;
    *w = (hn_windows){ .n_ids = b.n_ids,
                       .n_ctx = b.n_ctx,
                       .stride = b.stride,
                       .first = b.first,
                       .bos = b.bos,
                       .n_window = b.n_window,
                       .n_possible = b.n_window };
    *h = (hn_logits_head){ .bits = (int32_t)b.bits, .n_vocab = b.n_vocab, .fingerprint = b.fingerprint };
    memcpy(h->vocab, b.vocab, DIGEST);
    memcpy(h->label, b.label, sizeof h->label - 1);
    w->ids = malloc((size_t)b.n_ids * sizeof *w->ids);
    if (!w->ids) st = HN_FAIL(err, HONE_E_NOMEM, "%lld token ids", (long long)b.n_ids);
    else if ((st = set_shape(f, h, w, err)) == HONE_OK) {
        bool read = fread(w->ids, sizeof *w->ids, (size_t)b.n_ids, f->f) == (size_t)b.n_ids;
        hn_sha256_add(&f->sum, &b, sizeof b);
        hn_sha256_add(&f->sum, w->ids, (size_t)b.n_ids * sizeof *w->ids);
        if (!read || !check_digest(f, &f->sum)) st = BAD("%s: damaged: the checksum of its head is wrong", name);
        for (int64_t i = 0; i < b.n_ids && st == HONE_OK; i++)
            if (w->ids[i] < 0 || w->ids[i] >= b.n_vocab) st = BAD("%s: token id %d of %d", name, w->ids[i], b.n_vocab);
    }
    if (st == HONE_OK) return st;
fail:
    hn_logits_close(f);
    hn_windows_free(w);
    *out = NULL;
    return st;
}

hone_status hn_logits_get(hn_logits_file *f, float *rows, int64_t n, hone_error *err)
{
    for (int64_t r = 0; r < n; r++) {
        errno = 0;
        if (f->row >= f->n_rows || fread(f->bytes, 1, f->row_bytes, f->f) != f->row_bytes)
            return io_fail(f, "reading logits", err);
        hn_sha256_add(&f->sum, f->bytes, f->row_bytes);
        float *x = rows + r * f->n_vocab;
        if (f->bits == 32) memcpy(x, f->bytes, f->row_bytes);
        else decode16(x, f->bytes, f->n_vocab);
        if (++f->row % f->scored == 0 && !check_digest(f, &f->sum))
            return BAD("%s: damaged: the checksum of window %lld is wrong", HN_ESC(f->path, strlen(f->path)),
                       (long long)(f->row / f->scored - 1));
    }
    return HONE_OK;
}

void hn_logits_close(hn_logits_file *f)
{
    if (!f) return;
    if (f->f) fclose(f->f);
    hn_file_drop(f->to);
    free(f->path);
    free(f->bytes);
    free(f);
}

/* ---- vocabularies ----------------------------------------------------------------------------------- */

bool hn_vocab_hash(unsigned char out[32], const hone_model *m)
{
    hone_model_info info;
    hn_sha256 s;
    hone_model_get_info(m, &info);
    memset(out, 0, 32);
    if (!info.has_tokenizer) return false;
    hn_sha256_init(&s);
    for (int32_t id = 0; id < info.n_vocab; id++) {
        size_t n = 0;
        const char *p = hone_token_piece(m, id, true, &n);
        uint64_t len = p ? n : UINT64_MAX;
        hn_sha256_add(&s, &len, sizeof len);
        if (p) hn_sha256_add(&s, p, n);
    }
    hn_sha256_end(&s, out);
    return true;
}

hone_status hn_vocab_compare(const hone_model *a, const char *name_a, const hone_model *b, const char *name_b,
                             hone_error *err)
{
    hone_model_info ia, ib;
    hone_model_get_info(a, &ia);
    hone_model_get_info(b, &ib);
    if (ia.n_vocab != ib.n_vocab)
        return HN_FAIL(err, HONE_E_ARG, "different vocabularies: %s has %d tokens, %s has %d", name_a, ia.n_vocab,
                       name_b, ib.n_vocab);
    if (!ia.has_tokenizer || !ib.has_tokenizer) return HONE_OK;
    for (int32_t id = 0; id < ia.n_vocab; id++) {
        size_t na = 0, nb = 0;
        const char *pa = hone_token_piece(a, id, true, &na), *pb = hone_token_piece(b, id, true, &nb);
        if (!pa != !pb || na != nb || (pa && memcmp(pa, pb, na) != 0))
            return HN_FAIL(err, HONE_E_ARG, "different vocabularies: token %d is '%s' in %s and '%s' in %s", id,
                           HN_ESC(pa ? pa : "", pa ? na : 0), name_a, HN_ESC(pb ? pb : "", pb ? nb : 0), name_b);
    }
    return HONE_OK;
}
