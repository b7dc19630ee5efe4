/* Sequences: cutting, forking, remembering them and going back, and copies of one outside of the session. Refuses to
 * know how their memory is counted (seq_memory.c). */
#include "engine/engine.h"
#include "engine/prefix.h"

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

hone_status hone_seq_checkpoint(hone_session *s, int32_t seq, hone_error *err)
{
    HN_NEED(err, s, "a session");
    hone_status st = hn_check_seq(s, seq, err);
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

hone_status hone_seq_keep(hone_session *s, int32_t seq, hone_error *err)
{
    HN_NEED(err, s, "a session");
    hone_status st = hn_check_seq(s, seq, err);
    return st != HONE_OK ? st : hn_prefix_keep(s->mem, seq, err);
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

/* Calls fn for every piece of what a sequence must hold at a length, always in the same order, whatever the pages. */
typedef void piece_fn(const hone_session *s, void *arg, hn_buf *buf, size_t at, size_t bytes);
static void each_piece(const hone_session *s, int32_t seq, int32_t length, piece_fn *fn, void *arg)
{
    enum { UNIT = HN_SOFT_BLOCK };
    const hn_seq_memory *m = s->mem;
    for (int32_t il = 0; il < s->model->hp.n_layer; il++) {
        int64_t from = hn_memory_from(m, il, length);
        size_t k_block = hn_memory_k_block(m, il), v_block = hn_memory_v_block(m, il);
        for (int64_t at = from < 0 ? length : from; at < length;) {
            int64_t end = (at / UNIT + 1) * UNIT < length ? (at / UNIT + 1) * UNIT : length;
            size_t n = (size_t)((end - at + HN_KEY_BLOCK - 1) / HN_KEY_BLOCK);
            hn_buf *buf = s->kv[il].mem;
            for (int32_t h = 0; h < s->kv[il].n_head_kv; h++) {
                fn(s, arg, buf, hn_memory_block_at(m, il, seq, at, h, false), n * k_block);
                if (v_block) fn(s, arg, buf, hn_memory_block_at(m, il, seq, at, h, true), n * v_block);
            }
            at = end;
        }
    }
    size_t state;
    if (length && m->state_floats && hn_memory_state_at(m, seq, &state))
        fn(s, arg, m->states.mem, state, hn_state_bytes(s));
}

struct hone_snapshot {
    const hone_model *model;
    uint64_t adapters;
    hn_cache_type cache;
    int32_t length;
    size_t bytes;
    char *mem;
    int32_t *ids; /* [length] */
    bool known;   /* the ids */
};

static void count_piece(const hone_session *s, void *arg, hn_buf *buf, size_t at, size_t bytes)
{
    *(size_t *)arg += bytes;
}
static void save_piece(const hone_session *s, void *arg, hn_buf *buf, size_t at, size_t bytes)
{
    char **to = arg;
    s->be->op->read(s->be, *to, buf, at, bytes);
    *to += bytes;
}
static void load_piece(const hone_session *s, void *arg, hn_buf *buf, size_t at, size_t bytes)
{
    char **from = arg;
    s->be->op->write(s->be, buf, at, *from, bytes);
    *from += bytes;
}

hone_status hone_seq_snapshot(const hone_session *s, int32_t seq, hone_snapshot **out, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, s, "a session");
    HN_NEED(err, out, "a place for the snapshot");
    hone_status st = hn_check_seq(s, seq, err);
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
    p->cache = s->cache;
    p->length = len;
    p->bytes = bytes;
    p->known = s->mem->n_ids[seq] == len;
    if (p->known && len) memcpy(p->ids, hn_memory_ids(s->mem, seq), (size_t)len * sizeof *p->ids);
    char *to = p->mem;
    each_piece(s, seq, len, save_piece, &to);
    *out = p;
    return HONE_OK;
}

hone_status hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err)
{
    const hone_snapshot *p = snap;
    HN_NEED(err, s, "a session");
    HN_NEED(err, snap, "a snapshot");
    hone_status st = hn_check_seq(s, seq, err);
    if (st != HONE_OK) return st;
    if (p->model != s->model)
        return HN_FAIL(err, HONE_E_ARG, "the snapshot is of another model (%s), this session runs %s", p->model->path,
                       s->model->path);
    if (p->adapters != hn_seq_set_hash(s, seq))
        return HN_FAIL(err, HONE_E_ARG,
                       "the snapshot was taken with other adapters, or other scales of them, than sequence %d of this "
                       "session has",
                       seq);
    if (s->mem->n_group && p->cache != s->cache)
        return HN_FAIL(err, HONE_E_ARG, "the snapshot is of a cache of another type");
    if (p->length > s->n_ctx)
        return HN_FAIL(err, HONE_E_CTX, "a snapshot of %d positions does not fit a context of %d", p->length, s->n_ctx);
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
