/* Saving and restoring a session, bit-exactly. Little-endian file:
 *   "HONESES2", the model's identity (32 bytes, gguf/identity.h), u32 cache type, n_layer, n_head_kv,
 *   head_dim, n_seq, the adapters (folded hash of them, 0: none, SEVERAL: not the same of all sequences); i32
 *   length[n_seq]; with SEVERAL u32 the adapters of each; then per sequence, layer and head:
 * K blocks of 16 positions (lanes past the length are zero), V rows (q8_0: blocks of 16, rows past the length zero);
 * behind the first head's the rows of an index, f32; u64 FNV-1a of all before. Layers with latent rows have these in
 * place of K and V, as V; windowed ones begin with the first page that their window needs. A model with states has,
 * behind the positions of each sequence that has a what all its layers keep, f32; one without positions has RECURRENT
 * in place of the cache type.
 * Sealed (base/sealed.h). Everything is checked before the session is touched. */
#include "base/sealed.h"
#include "engine/snapshot.h"

#include <errno.h>
#include <stdlib.h>

static const char magic[8] = HN_SEALED_SESSION "2";

typedef struct header {
    char magic[8];
    unsigned char model[HN_HASH_BYTES];
    uint32_t cache, n_layer, n_head_kv, head_dim, n_seq, adapters;
} header;
_Static_assert(sizeof(header) == 64, "no padding");

#define SEVERAL 2u /* hashes are odd */

static uint32_t word_of(const hone_session *s, int32_t seq)
{
    uint64_t h = hn_seq_set_hash(s, seq);
    return !h ? 0 : (uint32_t)(h ^ h >> 32) | 1;
}

static uint32_t adapters_of(const hone_session *s)
{
    uint32_t word = word_of(s, 0);
    for (int32_t i = 1; i < s->n_seq; i++)
        if (word_of(s, i) != word) return SEVERAL;
    return word;
}

/* In place of a cache type; and beside one: the session took the angles of more positions than the model was trained
 * for at first. */
#define RECURRENT 0x53544154u
#define LENGTHENED 0x100u

static uint32_t cache_word(const hone_session *s)
{
    if (!s->mem->n_group) return RECURRENT;
    return (uint32_t)s->cache | (hn_is_lengthened(s) ? LENGTHENED : 0);
}

/* What a file of this session begins with. Reads all of the model where nothing is kept of it. */
static hone_status make_header(const hone_session *s, header *h, hone_error *err)
{
    const hn_hparams *hp = &s->model->hp;
    hn_identity id;
    hone_status st = hn_model_identity(s->model, &id, NULL, err);
    if (st != HONE_OK) return st;
    *h = (header){
        .cache = cache_word(s),
        .n_layer = (uint32_t)hp->n_layer,
        .n_head_kv = (uint32_t)hp->n_head_kv,
        .head_dim = (uint32_t)hp->head_dim,
        .n_seq = (uint32_t)s->n_seq,
        .adapters = adapters_of(s),
    };
    memcpy(h->magic, magic, sizeof magic);
    memcpy(h->model, id.content, sizeof h->model);
    return HONE_OK;
}

_Static_assert((int)HN_CACHE_F16 == HONE_CACHE_F16 && (int)HN_CACHE_F32 == HONE_CACHE_F32 &&
                   (int)HN_CACHE_Q8_0 == HONE_CACHE_Q8_0,
               "files hold them");

static const char *cache_name(uint32_t type)
{
    static const char *const names[HN_CACHE_TYPES] = { "f16", "f32", "q8_0" };
    if (type == RECURRENT) return "recurrent";
    type &= ~LENGTHENED;
    return type < HN_CACHE_TYPES ? names[type] : "unknown to this version";
}

/* Bytes that the backend has of so many positions, and the file. */
static size_t held_bytes(const hn_plane *p, int64_t len)
{
    return (size_t)((len + HN_KEY_BLOCK - 1) / HN_KEY_BLOCK) * p->block;
}
static size_t file_bytes(const hone_session *s, const hn_plane *p, int64_t len)
{
    return !p->rows || (s->cache == HN_CACHE_Q8_0 && !p->exact) ? held_bytes(p, len)
                                                                : (size_t)len * (p->block / HN_KEY_BLOCK);
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* K, or V, of one head: what its pages hold of the positions that the layer must have. A walk over it in pieces that
 * end where a page does. */
typedef struct head_walk {
    size_t at;    /* in the layer's buffer */
    int64_t n;    /* positions of the piece */
    int64_t pos;  /* the next piece's */
    size_t bytes; /* of the piece there: whole blocks */
} head_walk;

static bool next_piece(head_walk *w, const hone_session *s, int32_t seq, int32_t il, int32_t ih, const hn_plane *p)
{
    int64_t len = s->mem->length[seq], end = (w->pos / HN_PAGE + 1) * HN_PAGE;
    if (w->pos >= len) return false;
    w->n = (end < len ? end : len) - w->pos;
    w->at = hn_memory_block_at(s->mem, il, seq, w->pos, ih, p->which);
    w->bytes = held_bytes(p, w->n);
    w->pos += w->n;
    return true;
}

/* Where a sequence's pieces of a layer begin; its length: it has none. */
static int64_t first_of(const hone_session *s, int32_t il, int32_t length)
{
    int32_t from = hn_memory_from(s->mem, il, length);
    return from < 0 ? length : from;
}

static void put_head(hn_sealing *o, const hone_session *s, int32_t seq, int32_t il, int32_t ih, char *host)
{
    int64_t first = first_of(s, il, s->mem->length[seq]);
    for (int i = 0; i < HN_PLANES; i++) {
        if (!hn_memory_has_plane(s->mem, il, ih, i)) continue;
        const hn_plane p = hn_plane_of(s, il, i);
        for (head_walk w = { .pos = first }; next_piece(&w, s, seq, il, ih, &p);) {
            s->be->op->read(s->be, host, s->kv[il].mem, w.at, w.bytes);
            hn_plane_clear(s, &p, host, w.n); /* past the length is what a longer sequence left */
            hn_seal_put(o, host, file_bytes(s, &p, w.n));
        }
    }
}

static void put_positions(hn_sealing *o, const hone_session *s, int32_t seq, char *host)
{
    for (int32_t il = 0; il < s->model->hp.n_layer; il++)
        for (int32_t ih = 0; ih < s->kv[il].n_head_kv; ih++) put_head(o, s, seq, il, ih, host);
}

/* The state in pieces of what the buffer holds. */
static void put_state(hn_sealing *o, const hone_session *s, int32_t seq, char *host, size_t n_host)
{
    size_t block;
    if (!hn_memory_state_at(s->mem, seq, &block)) return;
    for (size_t at = 0, all = hn_state_bytes(s); at < all; at += n_host) {
        size_t n = all - at < n_host ? all - at : n_host;
        s->be->op->read(s->be, host, s->mem->states.mem, block + at, n);
        hn_seal_put(o, host, n);
    }
}

/* Bytes of the file that a sequence of a length has. */
static uint64_t sequence_bytes(const hone_session *s, int32_t len)
{
    uint64_t n = len ? hn_state_bytes(s) : 0;
    for (int32_t il = 0; il < s->model->hp.n_layer; il++) {
        int64_t held = len - first_of(s, il, len);
        for (int i = 0; i < HN_PLANES; i++) {
            if (!hn_memory_has_plane(s->mem, il, 0, i)) continue;
            const hn_plane p = hn_plane_of(s, il, i);
            const int32_t heads = i == HN_PLANE_INDEX ? 1 : s->kv[il].n_head_kv;
            n += (uint64_t)file_bytes(s, &p, held) * (uint64_t)heads;
        }
    }
    return n;
}

/* None of what this session was made of is to be replaced by it, and nothing that is no session, of any version. */
static hone_status check_apart(const hone_session *s, const char *path, hone_error *err)
{
    const hone_model *m = s->model;
    const char *packed = m->packed ? m->packed->path : NULL;
    const hn_file_use use[] = { { path, "the session", NULL, HN_FILE_WRITTEN },
                                { m->path, "its model", NULL, HN_FILE_READ },
                                { packed, "the packed weights in use", NULL, HN_FILE_READ } };
    hone_status st = hn_files_apart(use, sizeof use / sizeof *use, err);
    for (int32_t seq = 0; seq < s->n_seq; seq++)
        for (int32_t i = 0; st == HONE_OK && s->set[seq] && i < s->set[seq]->n; i++) {
            hone_adapter_info info;
            hone_adapter_get_info(s->set[seq]->adapter[i], &info);
            const hn_file_use pair[] = { use[0], { info.path, "an adapter in use", NULL, HN_FILE_READ } };
            st = hn_files_apart(pair, 2, err);
        }
    if (st == HONE_OK) st = hn_file_check(path, err); /* it says what a folder or a device is */
    return st == HONE_OK ? hn_sealed_check_place(path, magic, sizeof magic - 1, "session file", err) : st;
}

/* Of a buffer for what passes from and to the backend: K or V of a head of a page, or 64 KiB. */
static size_t host_bytes(const hone_session *s)
{
    size_t most = (size_t)64 << 10;
    for (int32_t il = 0; il < s->model->hp.n_layer; il++)
        for (int i = 0; i < HN_PLANES; i++) {
            const hn_plane p = hn_plane_of(s, il, i);
            most = held_bytes(&p, HN_PAGE) > most ? held_bytes(&p, HN_PAGE) : most;
        }
    return most;
}

hone_status hone_session_save(const hone_session *s, const char *path, hone_error *err)
{
    hn_sealing o;
    HN_NEED(err, s, "a session");
    HN_NEED(err, path, "the path of the file to write");
    header h;
    size_t n_host = host_bytes(s);
    hone_status st = check_apart(s, path, err);
    for (int32_t seq = 0; st == HONE_OK && seq < s->n_seq; seq++) st = hn_check_state(s, seq, err);
    if (st == HONE_OK) st = make_header(s, &h, err);
    char *host = st == HONE_OK ? malloc(n_host) : NULL;
    if (st == HONE_OK && !host) st = HN_FAIL(err, HONE_E_NOMEM, "%s: a buffer of %zu bytes", path, n_host);
    if (st == HONE_OK) st = hn_seal_begin(&o, path, 0, err);
    if (st != HONE_OK) {
        free(host);
        return st;
    }
    hn_seal_put(&o, &h, sizeof h);
    hn_seal_put(&o, s->mem->length, (size_t)s->n_seq * sizeof *s->mem->length);
    for (int32_t seq = 0; h.adapters == SEVERAL && seq < s->n_seq; seq++)
        hn_seal_put(&o, &(uint32_t){ word_of(s, seq) }, sizeof(uint32_t));
    for (int32_t seq = 0; seq < s->n_seq; seq++) {
        put_positions(&o, s, seq, host);
        if (s->mem->length[seq]) put_state(&o, s, seq, host, n_host);
    }
    free(host);
    return hn_seal_end(&o, err);
}

/* ---- restoring ----------------------------------------------------------------------------------- */

/* Bytes of what the head has of a sequence. */
static size_t item_bytes(const header *h) { return h->adapters == SEVERAL ? 2 * sizeof(int32_t) : sizeof(int32_t); }

static hone_status check_file(const hone_session *s, const char *path, const hn_sealed *f, hone_error *err)
{
    const unsigned char *p = f->p;
    uint64_t size = f->size;
    header h, want;
    if (size < sizeof h + sizeof(uint64_t))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes are too few for a session file", path,
                       (unsigned long long)size);
    memcpy(&h, p, sizeof h);
    if (memcmp(h.magic, "HONESES1", sizeof magic) == 0)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: a session file of an older hone, which knew its model by a few bytes; make it anew", path);
    if (memcmp(h.magic, magic, sizeof magic)) return HN_FAIL(err, HONE_E_FORMAT, "%s: not a hone session file", path);
    hone_status st = make_header(s, &want, err);
    if (st != HONE_OK) return st;
    bool several = h.adapters == SEVERAL || want.adapters == SEVERAL; /* looked at one by one */
    bool whole = hn_sealed_fits(f), fits = memcmp(h.model, want.model, sizeof h.model) == 0 && h.cache == want.cache &&
                                           h.n_layer == want.n_layer && h.n_head_kv == want.n_head_kv &&
                                           h.head_dim == want.head_dim && (several || h.adapters == want.adapters);
    if (!fits && !whole) return HN_FAIL(err, HONE_E_FORMAT, "%s: checksum does not match: cut off or damaged", path);
    if (memcmp(h.model, want.model, sizeof h.model) != 0) {
        char theirs[2 * HN_HASH_BYTES + 1], ours[2 * HN_HASH_BYTES + 1];
        hn_hex(theirs, h.model, sizeof h.model);
        hn_hex(ours, want.model, sizeof want.model);
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: the session belongs to another model (identity %.16s…, this one is %.16s…)", path, theirs,
                       ours);
    }
    if ((h.cache ^ want.cache) == LENGTHENED)
        return HN_FAIL(
            err, HONE_E_ARG,
            "%s: saved with a context of %s %d positions, this session has %d: the model turns otherwise there "
            "(-c)",
            path, h.cache & LENGTHENED ? "more than" : "at most", s->model->hp.n_ctx_long, s->n_ctx);
    if (h.cache != want.cache || h.n_layer != want.n_layer || h.n_head_kv != want.n_head_kv ||
        h.head_dim != want.head_dim)
        return HN_FAIL(err, HONE_E_ARG, "%s: saved with cache type %s, this session has %s (--kv)", path,
                       cache_name(h.cache), cache_name(want.cache));
    if (!several && h.adapters != want.adapters)
        return HN_FAIL(err, HONE_E_ARG, "%s: saved %s, this session has %s (--lora)", path,
                       h.adapters ? "with adapters" : "without adapters",
                       !want.adapters ? "none"
                       : h.adapters   ? "others, or other scales of them"
                                      : "some");
    if (h.n_seq < 1 || h.n_seq > (size - sizeof h - sizeof(uint64_t)) / item_bytes(&h))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %u sequences do not fit the file", path, h.n_seq);
    if (h.n_seq > want.n_seq)
        return HN_FAIL(err, HONE_E_CTX, "%s: holds %u sequences, this session has %u", path, h.n_seq, want.n_seq);
    uint64_t need = sizeof h + (uint64_t)h.n_seq * item_bytes(&h) + sizeof(uint64_t);
    for (uint32_t i = 0; i < h.n_seq; i++) {
        int32_t len;
        uint32_t word = h.adapters;
        memcpy(&len, p + sizeof h + i * sizeof len, sizeof len);
        if (word == SEVERAL) memcpy(&word, p + sizeof h + (h.n_seq + (size_t)i) * sizeof len, sizeof word);
        if (len < 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: sequence %u has length %d", path, i, len);
        if (len > s->n_ctx)
            return HN_FAIL(err, HONE_E_CTX, "%s: sequence %u holds %d positions, the context is %d (-c)", path, i, len,
                           s->n_ctx);
        if (len && word != word_of(s, (int32_t)i))
            return HN_FAIL(
                err, HONE_E_ARG,
                "%s: sequence %u was saved with other adapters, or other scales of them, than it has in this "
                "session (--lora)",
                path, i);
        need += sequence_bytes(s, len);
    }
    if (need != size)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes, expected %llu: cut off or damaged", path,
                       (unsigned long long)size, (unsigned long long)need);
    if (!whole) return HN_FAIL(err, HONE_E_FORMAT, "%s: checksum does not match: damaged", path);
    return HONE_OK;
}

static const unsigned char *get_head(hone_session *s, int32_t seq, int32_t il, int32_t ih, const unsigned char *at)
{
    int64_t first = first_of(s, il, s->mem->length[seq]);
    for (int i = 0; i < HN_PLANES; i++) {
        if (!hn_memory_has_plane(s->mem, il, ih, i)) continue;
        const hn_plane p = hn_plane_of(s, il, i);
        for (head_walk w = { .pos = first }; next_piece(&w, s, seq, il, ih, &p);) {
            size_t n = file_bytes(s, &p, w.n);
            s->be->op->write(s->be, s->kv[il].mem, w.at, at, n);
            at += n;
        }
    }
    return at;
}

static const unsigned char *get_positions(hone_session *s, int32_t seq, const unsigned char *at)
{
    for (int32_t il = 0; il < s->model->hp.n_layer; il++)
        for (int32_t ih = 0; ih < s->kv[il].n_head_kv; ih++) at = get_head(s, seq, il, ih, at);
    return at;
}

/* All sequences, from a file that was checked. */
static hone_status get_all(hone_session *s, const hn_sealed *f, const char *path, hone_error *err)
{
    header h;
    memcpy(&h, f->p, sizeof h);
    const unsigned char *at = f->p + sizeof h + h.n_seq * item_bytes(&h);
    memset(s->next, 0, (size_t)s->n_seq * sizeof *s->next);
    memcpy(s->next, f->p + sizeof h, h.n_seq * sizeof *s->next);
    if (!hn_memory_fits(s->mem, s->next, s->n_seq))
        return HN_FAIL(err, HONE_E_NOMEM,
                       "%s: its sequences need more than the %.1f MiB that this session's may take; use a larger "
                       "cache_budget",
                       path, (double)s->mem->p.budget / 0x1p20);
    for (int32_t seq = 0; seq < s->n_seq; seq++) { /* first nobody holds anything: no order can fail then */
        hn_memory_drop_checkpoints(s->mem, seq, -1);
        hn_memory_cut(s->mem, seq, 0, NULL);
    }
    hone_status st = HONE_OK;
    for (int32_t seq = 0; st == HONE_OK && seq < s->n_seq; seq++) {
        if ((st = hn_memory_renew(s->mem, seq, s->next[seq], NULL, err)) != HONE_OK) break;
        at = get_positions(s, seq, at);
        if (!s->next[seq]) continue;
        size_t block;
        if (hn_memory_state_at(s->mem, seq, &block))
            s->be->op->write(s->be, s->mem->states.mem, block, at, hn_state_bytes(s));
        at += hn_state_bytes(s);
    }
    return st;
}

hone_status hone_session_load(hone_session *s, const char *path, hone_error *err)
{
    hn_sealed f;
    HN_NEED(err, s, "a session");
    HN_NEED(err, path, "the path of a session file");
    int why = hn_sealed_open(&f, path, magic, sizeof magic - 1); /* of any version */
    if (why == HN_SEALED_CHANGED)
        return HN_FAIL(err, HONE_E_IO, "%s: was written to while it was read; try again", path);
    if (why < 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: not a hone session file", path);
    if (why == ENOMEM) return HN_FAIL(err, HONE_E_NOMEM, "%s: no memory to read it", path);
    if (why) return HN_FAIL(err, HONE_E_IO, "%s: cannot open: %s", path, strerror(why));
    hone_status st = check_file(s, path, &f, err);
    if (st == HONE_OK) st = get_all(s, &f, path, err);
    hn_sealed_close(&f);
    return st;
}
