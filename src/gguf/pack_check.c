/* pack_check: are the packed numbers what was written? Every piece is hashed once for a file, the verdict kept
 * beside what else is known of files; layout and hashes as gguf/pack_file.h says. */
#include "gguf/pack_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { PIECE_BYTES = 1 << 20, PER_THREAD = 16 }; /* pieces of a batch: how soon a wish to stop is heard */
static const char kind[] = "packed-2";

/* ---- pieces -------------------------------------------------------------------------------- */

/* Rows of a whole piece. */
static uint64_t piece_rows(const hn_packed_entry *e)
{
    uint64_t group = hn_packed_group_bytes(e->type, (int64_t)e->n_in), k = PIECE_BYTES / group;
    return (k ? k : 1) * HN_PACK_ROWS;
}

uint64_t hn_packed_pieces(const hn_packed_entry *e)
{
    if (e->kind == HN_PACKED_VECTOR) return 1;
    uint64_t rows = piece_rows(e);
    return e->n_out / rows + (e->n_out % rows != 0);
}

hn_packed_piece hn_packed_piece_at(const hn_packed_entry *e, uint64_t k)
{
    if (e->kind == HN_PACKED_VECTOR) return (hn_packed_piece){ .n_rows = 1, .n_bytes = (size_t)e->n_bytes };
    uint64_t rows = piece_rows(e), first = k * rows, left = e->n_out - first;
    int64_t n = (int64_t)(left < rows ? left : rows);
    return (hn_packed_piece){
        .row = first,
        .n_rows = n,
        .at = first / HN_PACK_ROWS * hn_packed_group_bytes(e->type, (int64_t)e->n_in),
        .n_bytes = hn_packed_bytes(e->type, (int64_t)e->n_in, n),
    };
}

/* ---- hashing --------------------------------------------------------------------------------- */

typedef struct checking {
    const hn_packed *p;
    uint64_t *first;                       /* [n + 1] number of each entry's first piece */
    uint64_t begin;                        /* of the batch under way */
    unsigned char (*hash)[HN_PACKED_HASH]; /* of each piece */
} checking;

static void hash_piece(void *arg, int64_t chunk, int32_t thread)
{
    checking *c = arg;
    uint64_t i = c->begin + (uint64_t)chunk, lo = 0, hi = c->p->n;
    while (hi - lo > 1) { /* first[lo] <= i < first[hi] */
        uint64_t mid = lo + (hi - lo) / 2;
        if (c->first[mid] <= i) lo = mid;
        else hi = mid;
    }
    const hn_packed_entry *e = &c->p->e[lo];
    hn_packed_piece x = hn_packed_piece_at(e, i - c->first[lo]);
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, (const char *)e->data + x.at, x.n_bytes);
    hn_sha256_end(&s, c->hash[i]);
}

static hone_status begin(checking *c, const hn_packed *p, const char *label, hone_error *err)
{
    *c = (checking){ .p = p, .first = calloc((size_t)p->n + 1, sizeof *c->first) };
    for (uint64_t i = 0; c->first && i < p->n; i++) c->first[i + 1] = c->first[i] + hn_packed_pieces(&p->e[i]);
    if (c->first) c->hash = calloc((size_t)c->first[p->n] + 1, sizeof *c->hash);
    return c->hash ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: hashes of %" PRIu64 " entries", label, p->n);
}

static hone_status hash_all(checking *c, hn_pool *pool, const char *label, const hone_progress *pr, hone_error *err)
{
    uint64_t n_piece = c->first[c->p->n], batch = (uint64_t)hn_pool_threads(pool) * PER_THREAD;
    for (c->begin = 0; c->begin < n_piece; c->begin += batch) {
        if (pr && pr->fn) pr->fn(pr->arg, c->begin, n_piece);
        if (pr && pr->abort_fn && pr->abort_fn(pr->arg))
            return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted while its content was checked", label);
        hn_pool_run(pool, hash_piece, c, (int64_t)(n_piece - c->begin < batch ? n_piece - c->begin : batch));
    }
    if (pr && pr->fn) pr->fn(pr->arg, n_piece, n_piece);
    return HONE_OK;
}

static hone_status compare(const checking *c, const char *label, hone_error *err)
{
    for (uint64_t i = 0; i < c->p->n; i++) {
        const hn_packed_entry *e = &c->p->e[i];
        unsigned char d[HN_PACKED_HASH];
        hn_sha256 s;
        hn_sha256_init(&s);
        hn_sha256_add(&s, c->hash[c->first[i]], (size_t)(c->first[i + 1] - c->first[i]) * HN_PACKED_HASH);
        hn_sha256_end(&s, d);
        if (memcmp(d, e->hash, sizeof d) != 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: damaged: the data of %s is not what was packed (another SHA-256)",
                           label, HN_ESC(e->name.ptr, e->name.len));
    }
    return HONE_OK;
}

/* ---- the verdict ------------------------------------------------------------------------------ */

static bool key_of(const hn_packed *p, hn_known_key *key)
{
    errno = 0;
    return p->mapped && hn_known_key_of(key, &(hn_known_file){ p->path, p->stamp }, 1);
}

bool hn_packed_proven(const hn_packed *p)
{
    hn_known_key key;
    unsigned char of[HN_PACKED_HASH];
    return key_of(p, &key) && hn_known_get(&key, kind, of, sizeof of) && memcmp(of, p->data, sizeof of) == 0;
}

hone_status hn_packed_check(const hn_packed *p, hn_pool *pool, const hone_progress *pr, bool *kept, hone_error *err)
{
    checking c;
    hn_known_key key;
    const char *label = HN_ESC(p->path, strlen(p->path));
    if (kept) *kept = false;
    bool fresh = p->mapped && hn_stamp_fresh(&p->stamp);
    hone_status st = begin(&c, p, label, err);
    if (st == HONE_OK) st = hash_all(&c, pool, label, pr, err);
    if (st == HONE_OK) st = compare(&c, label, err);
    if (st == HONE_OK && fresh) { /* a change since would not have shown: once more, when it would */
        hn_stamp_settle(&p->stamp);
        st = hash_all(&c, pool, label, pr, err);
        if (st == HONE_OK) st = compare(&c, label, err);
    }
    free(c.first);
    free(c.hash);
    if (st != HONE_OK) return st;
    struct stat sb;
    bool there = p->mapped && stat(p->path, &sb) == 0;
    bool ours = there && p->stamp.dev == (uint64_t)sb.st_dev && p->stamp.ino == (uint64_t)sb.st_ino;
    if (ours && !hn_stamp_holds(&p->stamp, p->path))
        return HN_FAIL(err, HONE_E_IO, "%s: changed while it was read; try again when nobody writes it", label);
    /* Another file may have taken the name since: ours is right, but nothing can be kept of it. */
    bool keep = key_of(p, &key) && hn_known_put(&key, kind, p->path, p->data, sizeof p->data);
    if (kept) *kept = keep;
    return HONE_OK;
}
