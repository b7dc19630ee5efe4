/* identity: see identity.h. */
#include "gguf/identity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { PIECE = 1 << 20, PER_THREAD = 16 }; /* pieces of a batch: how soon a wish to stop is heard */
static const char kind[] = "content-1";

typedef unsigned char digest[HN_HASH_BYTES];
_Static_assert(sizeof(hn_identity) <= HN_KNOWN_FACT, "fits into a record");

/* ---- files ------------------------------------------------------------------------------- */

/* Malloc'ed; NULL: not files (errno 0), or no memory (errno). */
static hn_known_file *files_of(const hn_gguf *g)
{
    hn_known_file *f = calloc((size_t)hn_gguf_n_parts(g), sizeof *f);
    if (!f) return NULL;
    if (hn_gguf_files(g, f)) return f;
    free(f);
    errno = 0;
    return NULL;
}

static bool key_of(const hn_gguf *g, hn_known_key *key)
{
    hn_known_file *f = files_of(g);
    bool done = f && hn_known_key_of(key, f, hn_gguf_n_parts(g));
    int e = errno;
    free(f);
    errno = e;
    return done;
}

void hn_gguf_settle(const hn_gguf *g)
{
    hn_known_file *f = files_of(g);
    for (int32_t i = 0; f && i < hn_gguf_n_parts(g); i++) hn_stamp_settle(&f[i].stamp);
    free(f);
}

hone_status hn_gguf_unchanged(const hn_gguf *g, hone_error *err)
{
    hone_status st = HONE_OK;
    hn_known_file *f = files_of(g);
    for (int32_t i = 0; f && st == HONE_OK && i < hn_gguf_n_parts(g); i++)
        if (!hn_stamp_holds(&f[i].stamp, f[i].path))
            st = HN_FAIL(err, HONE_E_IO, "%s: changed while it was read; try again when nobody writes it",
                         HN_ESC(f[i].path, strlen(f[i].path)));
    free(f);
    return st;
}

/* ---- hashing ------------------------------------------------------------------------------- */

/* Runs of bytes that are hashed piece by piece: what stands before the data in each file, then each tensor. */
typedef struct run {
    const unsigned char *p;
    uint64_t n_bytes, first;
} run; /* first: its first piece */

typedef struct hashing {
    run *r;
    uint64_t n_run, n_piece, begin; /* begin: first piece of the batch under way */
    digest *piece;                  /* [n_piece] */
} hashing;

static uint64_t pieces_of(uint64_t n_bytes) { return (n_bytes + PIECE - 1) / PIECE; }

static hone_status cut(hashing *h, const hn_gguf *g, hone_error *err)
{
    uint64_t n_part = (uint64_t)hn_gguf_n_parts(g), n_t = hn_gguf_n_tensors(g);
    h->n_run = n_part + n_t;
    h->r = calloc((size_t)h->n_run, sizeof *h->r);
    if (!h->r) return HN_FAIL(err, HONE_E_NOMEM, "table of %" PRIu64 " tensors to hash", n_t);
    for (uint64_t i = 0; i < h->n_run; i++) {
        run *r = &h->r[i];
        if (i < n_part) r->p = hn_gguf_directory(g, (int32_t)i, &r->n_bytes);
        else {
            const hn_gguf_tensor *t = hn_gguf_tensor_in_file(g, i - n_part);
            r->p = t->data;
            r->n_bytes = t->n_bytes;
        }
        r->first = h->n_piece;
        h->n_piece += pieces_of(r->n_bytes);
    }
    h->piece = calloc(h->n_piece ? (size_t)h->n_piece : 1, sizeof *h->piece);
    return h->piece ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "hashes of %" PRIu64 " pieces", h->n_piece);
}

/* The run that has piece i: the last that begins at or before it and is not empty. */
static const run *run_of(const hashing *h, uint64_t i)
{
    uint64_t lo = 0, hi = h->n_run; /* r[lo].first <= i < r[hi].first */
    while (hi - lo > 1) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (h->r[mid].first <= i) lo = mid;
        else hi = mid;
    }
    return &h->r[lo];
}

static void hash_piece(void *arg, int64_t chunk, int32_t thread)
{
    hashing *h = arg;
    uint64_t i = h->begin + (uint64_t)chunk;
    const run *r = run_of(h, i);
    uint64_t at = (i - r->first) * PIECE, n = r->n_bytes - at < PIECE ? r->n_bytes - at : PIECE;
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, r->p + at, (size_t)n);
    hn_sha256_end(&s, h->piece[i]);
}

static hone_status hash_all(hashing *h, hn_pool *pool, const char *path, const hone_progress *pr, hone_error *err)
{
    uint64_t batch = (uint64_t)hn_pool_threads(pool) * PER_THREAD;
    for (h->begin = 0; h->begin < h->n_piece; h->begin += batch) {
        if (pr && pr->fn) pr->fn(pr->arg, h->begin, h->n_piece);
        if (pr && pr->abort_fn && pr->abort_fn(pr->arg))
            return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted while its content was hashed",
                           HN_ESC(path, strlen(path)));
        uint64_t n = h->n_piece - h->begin < batch ? h->n_piece - h->begin : batch;
        hn_pool_run(pool, hash_piece, h, (int64_t)n);
    }
    if (pr && pr->fn) pr->fn(pr->arg, h->n_piece, h->n_piece);
    return HONE_OK;
}

static void run_digest(const hashing *h, const run *r, digest out)
{
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, h->piece[r->first], (size_t)pieces_of(r->n_bytes) * HN_HASH_BYTES);
    hn_sha256_end(&s, out);
}

static void fold(const hashing *h, const hn_gguf *g, hn_identity *out)
{
    static const char title[] = "hone content 1\n";
    uint64_t n_part = (uint64_t)hn_gguf_n_parts(g);
    hn_sha256 s;
    digest d;
    hn_sha256_init(&s);
    for (uint64_t i = n_part; i < h->n_run; i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_in_file(g, i - n_part);
        char line[120];
        int n = snprintf(line, sizeof line, "\n%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", (int)t->type,
                         t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
        hn_sha256_add(&s, t->name.ptr, t->name.len);
        hn_sha256_add(&s, line, (size_t)n);
        run_digest(h, &h->r[i], d);
        hn_sha256_add(&s, d, sizeof d);
    }
    hn_sha256_end(&s, out->data);
    hn_sha256_init(&s);
    hn_sha256_add(&s, title, sizeof title - 1);
    for (uint64_t i = 0; i < n_part; i++) {
        run_digest(h, &h->r[i], d);
        hn_sha256_add(&s, d, sizeof d);
    }
    hn_sha256_add(&s, out->data, sizeof out->data);
    hn_sha256_end(&s, out->content);
}

/* The stamps that g's files have now, zeros where another file, or none, has taken the name: what is mapped is then
 * out of others' reach. NULL: bytes in memory, or no memory. */
static hn_file_stamp *stamps_now(const hn_gguf *g)
{
    struct stat sb;
    hn_known_file *f = files_of(g);
    hn_file_stamp *now = f ? calloc((size_t)hn_gguf_n_parts(g), sizeof *now) : NULL;
    for (int32_t i = 0; now && i < hn_gguf_n_parts(g); i++) {
        const hn_file_stamp *was = &f[i].stamp;
        if (stat(f[i].path, &sb) != 0) continue;
        hn_stamp_of(&now[i], &sb);
        if (now[i].dev != was->dev || now[i].ino != was->ino) now[i] = (hn_file_stamp){ .dev = 0 };
    }
    free(f);
    return now;
}

static hone_status compute(const hn_gguf *g, hn_identity *out, const hone_progress *pr, hone_error *err)
{
    hashing h = { .r = NULL };
    hn_pool *pool = NULL;
    hn_gguf_settle(g);
    hn_file_stamp *before = stamps_now(g), *after = NULL;
    hone_status st = hn_pool_new(&pool, hn_cpu_count(), err);
    if (st == HONE_OK) st = cut(&h, g, err);
    if (st == HONE_OK) st = hash_all(&h, pool, hn_gguf_path(g), pr, err);
    if (st == HONE_OK) fold(&h, g, out);
    if (st == HONE_OK && before) after = stamps_now(g);
    for (int32_t i = 0; after && st == HONE_OK && i < hn_gguf_n_parts(g); i++)
        if (after[i].ino && memcmp(&before[i], &after[i], sizeof *after) != 0) st = hn_gguf_unchanged(g, err);
    hn_pool_free(pool);
    free(before);
    free(after);
    free(h.r);
    free(h.piece);
    return st;
}

bool hn_identity_known(const hn_gguf *g, hn_identity *out)
{
    hn_known_key key;
    hn_identity found;
    if (!key_of(g, &key) || !hn_known_get(&key, kind, &found, sizeof found)) return false;
    *out = found;
    return true;
}

hone_status hn_identity_of(const hn_gguf *g, hn_identity *out, hn_identity_from *from, const hone_progress *pr,
                           hone_error *err)
{
    hn_known_key key;
    hn_identity_from dummy, *how = from ? from : &dummy;
    *how = HN_IDENTITY_KEPT;
    if (hn_identity_known(g, out)) return HONE_OK;
    hone_status st = compute(g, out, pr, err);
    if (st != HONE_OK) return st;
    bool kept = key_of(g, &key) && hn_known_put(&key, kind, hn_gguf_path(g), out, sizeof *out);
    *how = kept ? HN_IDENTITY_COMPUTED : HN_IDENTITY_FORGOTTEN;
    return HONE_OK;
}
