/* Sequences: cutting, forking, remembering them and going back, and copies of one outside of the session. Refuses to
 * know how their memory is counted (seq_memory.c). */
#include "engine/snapshot.h"
#include "engine/prefix.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

int32_t hone_session_n_ctx(const hone_session *s) { return s ? s->n_ctx : 0; }

int32_t hone_seq_length(const hone_session *s, int32_t seq)
{
    return !s || seq < 0 || seq >= s->n_seq ? -1 : s->mem->length[seq];
}

hone_status hn_check_seq(const hone_session *s, int32_t seq, hone_error *err)
{
    if (seq < 0 || seq >= s->n_seq) return HN_FAIL(err, HONE_E_ARG, "sequence %d, expected 0 to %d", seq, s->n_seq - 1);
    return HONE_OK;
}

/* The layer whose state has float i of a block. */
static int32_t layer_of(const hn_seq_memory *m, int32_t n_layer, size_t i)
{
    int32_t il = n_layer - 1;
    while (il > 0 && m->state_at[il] > i) il--;
    return il;
}

hone_status hn_check_state(const hone_session *s, int32_t seq, hone_error *err)
{
    enum { PIECE = 4096 };
    float x[PIECE];
    size_t at, n = (size_t)s->mem->state_floats;
    char why[HN_BLAME];
    if (!s->mem->length[seq] || !hn_memory_state_at(s->mem, seq, &at)) return HONE_OK;
    for (size_t i = 0, k; i < n; i += k) {
        k = n - i < PIECE ? n - i : PIECE;
        s->be->op->read(s->be, x, s->mem->states.mem, at + i * sizeof *x, k * sizeof *x);
        if (hn_all_within(x, (int64_t)k, FLT_MAX)) continue;
        while (isfinite(x[i % PIECE])) i++; /* pieces are whole but for the last */
        const hone_model *m = s->model;
        return HN_FAIL(
            err, HONE_E_NUMERIC,
            "%s: layer %d: the state of sequence %d at %d positions has a number that is %s, expected finite "
            "ones: %s",
            HN_ESC(m->path, strlen(m->path)), (int)layer_of(s->mem, m->hp.n_layer, i), (int)seq,
            (int)s->mem->length[seq], isnan(x[i % PIECE]) ? "NaN" : "infinite", hn_blame(why, m, s->set[seq], ""));
    }
    return HONE_OK;
}

hone_status hone_seq_checkpoint(hone_session *s, int32_t seq, hone_error *err)
{
    HN_NEED(err, s, "a session");
    hone_status st = hn_check_seq(s, seq, err);
    if (st == HONE_OK && s->mem->p.n_checkpoint) st = hn_check_state(s, seq, err);
    if (st == HONE_OK) hn_memory_checkpoint(s->mem, seq);
    return st;
}

hone_status hone_seq_truncate(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err)
{
    HN_NEED(err, s, "a session");
    hone_status st = hn_check_seq(s, seq, err);
    if (st != HONE_OK) return st;
    if (n_pos < 0 || n_pos > s->mem->length[seq])
        return HN_FAIL(err, HONE_E_ARG, "truncate sequence %d to %d positions, expected 0 to %d", seq, n_pos,
                       s->mem->length[seq]);
    hn_checkpoint *c;
    if (hn_memory_reach(s->mem, seq, n_pos, &c) != n_pos)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       s->mem->state_floats
                           ? "a recurrent state of %d positions cannot be cut to %d: expected 0, %d or a checkpoint"
                           : "%d positions, of which a window has dropped the first, cannot be cut to %d: expected 0, "
                             "near %d, or a checkpoint",
                       s->mem->length[seq], n_pos, s->mem->length[seq]);
    hn_memory_cut(s->mem, seq, n_pos, c);
    return HONE_OK;
}

hone_status hone_seq_rewind(hone_session *s, int32_t seq, int32_t n_pos, int32_t *kept, hone_error *err)
{
    if (kept) *kept = -1;
    HN_NEED(err, s, "a session");
    HN_NEED(err, kept, "a place for the length that is left");
    hone_status st = hn_check_seq(s, seq, err);
    if (st != HONE_OK) return st;
    if (n_pos < 0)
        return HN_FAIL(err, HONE_E_ARG, "rewind sequence %d to %d positions, expected 0 or more", seq, n_pos);
    hn_checkpoint *c;
    *kept = hn_memory_reach(s->mem, seq, n_pos, &c);
    hn_memory_cut(s->mem, seq, *kept, c);
    return HONE_OK;
}

hone_status hone_seq_match(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept, hone_error *err)
{
    if (kept) *kept = 0;
    HN_NEED(err, s, "a session");
    HN_NEED(err, ids, "a pointer to n ids");
    HN_NEED(err, kept, "a place for the number of positions that were there");
    hone_status st = hn_check_seq(s, seq, err);
    if (st != HONE_OK) return st;
    if (n < 1) return HN_FAIL(err, HONE_E_ARG, "prompt of %d tokens, expected at least 1", n);
    if (n > s->n_ctx) return HN_FAIL(err, HONE_E_CTX, "%d tokens do not fit a context of %d positions", n, s->n_ctx);
    *kept = hn_memory_match(s->mem, seq, ids, n);
    return HONE_OK;
}

/* ---- what stays when sequences go ------------------------------------------------------------------- */

hone_status hone_seq_set_scope(hone_session *s, int32_t seq, uint64_t scope, hone_error *err)
{
    HN_NEED(err, s, "a session");
    hone_status st = hn_check_seq(s, seq, err);
    if (st != HONE_OK) return st;
    if (s->mem->key[seq].scope != scope && s->mem->length[seq])
        return HN_FAIL(err, HONE_E_ARG,
                       "sequence %d holds %d positions of another scope; a scope is set while it is empty", seq,
                       s->mem->length[seq]);
    s->mem->key[seq].scope = scope;
    return HONE_OK;
}

hone_status hn_seq_keep(hone_session *s, int32_t seq, hone_error *err)
{
    if (!hn_adapters_note(s, seq)) return HN_FAIL(err, HONE_E_NOMEM, "adapters of what is to be kept");
    return hn_prefix_keep(s->mem, seq, err);
}

hone_status hone_seq_keep(hone_session *s, int32_t seq, hone_error *err)
{
    HN_NEED(err, s, "a session");
    hone_status st = hn_check_seq(s, seq, err);
    if (st == HONE_OK && s->mem->tree->most_states) st = hn_check_state(s, seq, err);
    return st == HONE_OK ? hn_seq_keep(s, seq, err) : st;
}

void hone_session_prefix_info(const hone_session *s, hone_prefix_info *out)
{
    if (!out) return;
    *out = (hone_prefix_info){ 0 };
    if (!s) return;
    const hn_prefix_tree *t = s->mem->tree;
    *out = (hone_prefix_info){ .n_nodes = t->n_node,
                               .n_pages = t->n_page,
                               .n_states = t->n_state,
                               .n_hits = t->n_hit,
                               .n_hit_positions = t->n_hit_positions,
                               .n_evicted = t->n_evicted };
    hn_prefix_bytes(s->mem, &out->bytes, &out->alone_bytes);
}

void hone_session_drop_prefixes(hone_session *s)
{
    if (s) hn_prefix_drop_all(s->mem);
}

/* ---- copies of a sequence --------------------------------------------------------------------------- */

hone_status hone_seq_copy(hone_session *s, int32_t dst, int32_t src, hone_error *err)
{
    hone_status st;
    HN_NEED(err, s, "a session");
    if ((st = hn_check_seq(s, dst, err)) != HONE_OK || (st = hn_check_seq(s, src, err)) != HONE_OK) return st;
    if (dst == src) return HONE_OK;
    hn_memory_fork(s->mem, dst, src);
    hn_memory_drop_checkpoints(s->mem, dst, -1);
    hn_seq_use_set(s, dst, s->set[src]);
    return HONE_OK;
}

hn_plane hn_plane_of(const hone_session *s, int32_t il, int which)
{
    const hn_memory_layer *l = &s->mem->p.layer[il];
    const int64_t d[HN_PLANES] = { l->d_k, l->d_v, l->d_i };
    return (hn_plane){ .which = which,
                       .rows = which != HN_PLANE_K || (l->kind & HN_MEMORY_LATENT),
                       .exact = which == HN_PLANE_INDEX,
                       .d = d[which],
                       .block = hn_memory_block(s->mem, il, which) };
}

/* Of n_row rows of 16 items each, those behind the first `keep`. Returns the end. */
static char *clear_items(char *p, size_t n_row, size_t keep, size_t bytes)
{
    for (; n_row; n_row--, p += HN_KEY_BLOCK * bytes) memset(p + keep * bytes, 0, (HN_KEY_BLOCK - keep) * bytes);
    return p;
}

void hn_plane_clear(const hone_session *s, const hn_plane *plane, char *p, int64_t len)
{
    size_t d = (size_t)plane->d, d4 = (size_t)hn_cache_d4(plane->d), n_g = (size_t)hn_cache_groups(plane->d);
    size_t tail = (size_t)(len % HN_KEY_BLOCK);
    if (!tail) return;
    p += (size_t)(len / HN_KEY_BLOCK) * plane->block;
    if (plane->exact || s->cache != HN_CACHE_Q8_0) {
        if (plane->rows) clear_items(p, 1, tail, plane->block / HN_KEY_BLOCK);
        else clear_items(p, d, tail, plane->block / HN_KEY_BLOCK / d);
        return;
    }
    p = plane->rows ? clear_items(p, 1, tail, d4) : clear_items(p, d4 / 4, tail, 4);
    if (plane->rows) clear_items(p, 1, tail, 2 * n_g);
    else clear_items(p, n_g, tail, 2);
}

/* A part of what a sequence must hold: positions of a plane of a layer in whole blocks, or (n_pos 0) its state. */
typedef struct piece {
    hn_buf *buf;
    size_t at, bytes;
    hn_plane plane;
    int64_t n_pos;
} piece;

/* Calls fn for every piece of a length, always in the same order, whatever the pages. */
typedef void piece_fn(const hone_session *s, void *arg, const piece *p);
static void each_piece(const hone_session *s, int32_t seq, int32_t length, piece_fn *fn, void *arg)
{
    enum { UNIT = HN_SOFT_BLOCK };
    const hn_seq_memory *m = s->mem;
    for (int32_t il = 0; il < s->model->hp.n_layer; il++) {
        int64_t from = hn_memory_from(m, il, length);
        for (int64_t at = from < 0 ? length : from; at < length;) {
            int64_t end = (at / UNIT + 1) * UNIT < length ? (at / UNIT + 1) * UNIT : length;
            size_t n = (size_t)((end - at + HN_KEY_BLOCK - 1) / HN_KEY_BLOCK);
            for (int32_t h = 0; h < s->kv[il].n_head_kv; h++)
                for (int i = 0; i < HN_PLANES; i++) {
                    if (!hn_memory_has_plane(m, il, h, i)) continue;
                    const hn_plane p = hn_plane_of(s, il, i);
                    size_t where = hn_memory_block_at(m, il, seq, at, h, i);
                    fn(s, arg, &(piece){ s->kv[il].mem, where, n * p.block, p, end - at });
                }
            at = end;
        }
    }
    size_t state;
    if (length && m->state_floats && hn_memory_state_at(m, seq, &state))
        fn(s, arg, &(piece){ .buf = m->states.mem, .at = state, .bytes = hn_state_bytes(s) });
}

static void count_piece(const hone_session *s, void *arg, const piece *p) { *(size_t *)arg += p->bytes; }
static void save_piece(const hone_session *s, void *arg, const piece *p)
{
    char **to = arg;
    s->be->op->read(s->be, *to, p->buf, p->at, p->bytes);
    if (p->n_pos) hn_plane_clear(s, &p->plane, *to, p->n_pos);
    *to += p->bytes;
}
static void load_piece(const hone_session *s, void *arg, const piece *p)
{
    char **from = arg;
    s->be->op->write(s->be, p->buf, p->at, *from, p->bytes);
    *from += p->bytes;
}

hone_status hone_seq_snapshot(const hone_session *s, int32_t seq, hone_snapshot **out, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, s, "a session");
    HN_NEED(err, out, "a place for the snapshot");
    hone_status st = hn_check_seq(s, seq, err);
    if (st == HONE_OK) st = hn_check_state(s, seq, err);
    if (st != HONE_OK) return st;
    size_t bytes = 0;
    int32_t len = s->mem->length[seq];
    each_piece(s, seq, len, count_piece, &bytes);
    hone_snapshot *p = calloc(1, sizeof *p);
    if (p && ((bytes && !(p->mem = malloc(bytes))) || (len && !(p->ids = malloc((size_t)len * sizeof *p->ids))))) {
        hone_snapshot_free(p);
        p = NULL;
    }
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "snapshot of %zu bytes", bytes);
    p->model = s->model;
    p->adapters = hn_seq_set_hash(s, seq);
    p->scope = s->mem->key[seq].scope;
    p->cache = s->cache;
    p->lengthened = hn_is_lengthened(s);
    p->length = len;
    p->bytes = bytes;
    p->known = s->mem->n_ids[seq] == len;
    if (p->known && len) memcpy(p->ids, hn_memory_ids(s->mem, seq), (size_t)len * sizeof *p->ids);
    char *to = p->mem;
    each_piece(s, seq, len, save_piece, &to);
    *out = p;
    return HONE_OK;
}

/* Bytes of all pieces of a sequence of a length. */
static size_t bytes_at(const hone_session *s, int32_t length)
{
    const hn_seq_memory *m = s->mem;
    size_t n = length ? hn_state_bytes(s) : 0;
    for (int32_t il = 0; il < s->model->hp.n_layer; il++) {
        int32_t from = hn_memory_from(m, il, length);
        size_t held = from < 0 ? 0 : (size_t)(length - from),
               block = (hn_memory_k_block(m, il) + hn_memory_v_block(m, il)) * (size_t)s->kv[il].n_head_kv +
                       hn_memory_block(m, il, HN_PLANE_INDEX);
        n += (held + HN_KEY_BLOCK - 1) / HN_KEY_BLOCK * block;
    }
    return n;
}

/* Another handle may be of the same content, which its directory alone does not tell. */
static hone_status check_model(const hone_model *theirs, const hone_model *ours, hone_error *err)
{
    hn_identity a, b;
    hone_status st = HONE_OK;
    if (theirs == ours) return HONE_OK;
    bool same = hn_gguf_fingerprint(theirs->file) == hn_gguf_fingerprint(ours->file);
    if (same && (st = hn_model_identity(theirs, &a, NULL, err)) == HONE_OK) st = hn_model_identity(ours, &b, NULL, err);
    if (st != HONE_OK || (same && memcmp(a.content, b.content, sizeof a.content) == 0)) return st;
    return HN_FAIL(err, HONE_E_ARG, "the snapshot is of another model (%s), this session runs %s%s", theirs->path,
                   ours->path, strcmp(theirs->path, ours->path) ? "" : ", a file that was replaced meanwhile");
}

hone_status hn_snapshot_fits(const hone_session *s, int32_t seq, uint64_t adapters, const hone_snapshot *p,
                             hone_error *err)
{
    hone_status st = check_model(p->model, s->model, err);
    if (st != HONE_OK) return st;
    if (p->adapters != adapters)
        return HN_FAIL(err, HONE_E_ARG,
                       "the snapshot was taken with other adapters, or other scales of them, than sequence %d of this "
                       "session has",
                       seq);
    if (s->mem->n_group && p->cache != s->cache)
        return HN_FAIL(err, HONE_E_ARG, "the snapshot is of a cache of another type");
    if (p->lengthened != hn_is_lengthened(s))
        return HN_FAIL(
            err, HONE_E_ARG,
            "the snapshot is of a context of %s %d positions, this session has %d: the model turns otherwise "
            "there (-c)",
            p->lengthened ? "more than" : "at most", s->model->hp.n_ctx_long, s->n_ctx);
    if (p->length > s->n_ctx)
        return HN_FAIL(err, HONE_E_CTX, "a snapshot of %d positions does not fit a context of %d", p->length, s->n_ctx);
    if (p->bytes != bytes_at(s, p->length))
        return HN_FAIL(err, HONE_E_FORMAT, "a snapshot of %d positions has %zu bytes, expected %zu: damaged", p->length,
                       p->bytes, bytes_at(s, p->length));
    return HONE_OK;
}

hone_status hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err)
{
    const hone_snapshot *p = snap;
    HN_NEED(err, s, "a session");
    HN_NEED(err, snap, "a snapshot");
    hone_status st = hn_check_seq(s, seq, err);
    if (st == HONE_OK) st = hn_snapshot_fits(s, seq, hn_seq_set_hash(s, seq), p, err);
    if (st != HONE_OK) return st;
    if ((st = hn_memory_renew(s->mem, seq, p->length, p->known ? p->ids : NULL, err)) != HONE_OK) return st;
    char *from = p->mem;
    each_piece(s, seq, p->length, load_piece, &from);
    return HONE_OK;
}

void hone_snapshot_free(hone_snapshot *p)
{
    if (!p) return;
    free(p->mem);
    free(p->ids);
    free(p);
}

int32_t hone_snapshot_length(const hone_snapshot *p) { return p ? p->length : 0; }
size_t hone_snapshot_bytes(const hone_snapshot *p) { return p ? p->bytes : 0; }
