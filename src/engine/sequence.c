/* Sequences: cutting, forking, remembering them and going back. Knows how the memory of
 * one sequence lies in a session: positions of a KV cache, or a recurrent state, which
 * has no past but what was remembered. */
#include "engine/engine.h"

#include <stdlib.h>

int32_t hone_session_n_ctx(const hone_session *s) { return s ? s->n_ctx : 0; }

int32_t hone_seq_length(const hone_session *s, int32_t seq) { return !s || seq < 0 || seq >= s->n_seq ? -1 : s->length[seq]; }

static hone_status check_seq(const hone_session *s, int32_t seq, hone_error *err)
{
    if (seq < 0 || seq >= s->n_seq) return HN_FAIL(err, HONE_E_ARG, "sequence %d, expected 0 to %d", seq, s->n_seq - 1);
    return HONE_OK;
}

static size_t state_bytes(const hone_session *s) { return (size_t)s->state_floats * sizeof(float); }

/* ---- checkpoints of recurrent states ------------------------------------------------------------- */

void hn_checkpoints_drop(hone_session *s, int32_t seq, int32_t pos)
{
    for (int32_t i = 0; i < s->n_checkpoint; i++)
        if (s->checkpoint[i].seq == seq && s->checkpoint[i].pos > pos) s->checkpoint[i].seq = -1;
}

void hn_checkpoints_free(hone_session *s)
{
    for (int32_t i = 0; s->checkpoint && i < s->n_checkpoint; i++) hn_pages_free(s->checkpoint[i].mem, state_bytes(s));
    free(s->checkpoint);
}

/* The furthest checkpoint of a sequence at or before pos; NULL: none. */
static hn_checkpoint *furthest(hone_session *s, int32_t seq, int32_t pos)
{
    hn_checkpoint *best = NULL;
    for (int32_t i = 0; i < s->n_checkpoint; i++) {
        hn_checkpoint *c = &s->checkpoint[i];
        if (c->seq == seq && c->pos <= pos && (!best || c->pos > best->pos)) best = c;
    }
    return best;
}

hone_status hone_seq_checkpoint(hone_session *s, int32_t seq, hone_error *err)
{
    HN_NEED(err, s, "a session");
    hone_status st = check_seq(s, seq, err);
    if (st != HONE_OK || !hn_is_recurrent(s) || s->length[seq] == 0) return st;
    hn_checkpoint *c = furthest(s, seq, s->length[seq]);
    if (!c || c->pos != s->length[seq]) { /* a new one: a free place, else the one not used for longest */
        c = &s->checkpoint[0];
        for (int32_t i = 1; i < s->n_checkpoint; i++) {
            hn_checkpoint *o = &s->checkpoint[i];
            if (c->seq >= 0 && (o->seq < 0 || o->used < c->used)) c = o;
        }
    }
    if (!c->mem && !(c->mem = hn_pages_alloc(state_bytes(s)))) return HN_FAIL(err, HONE_E_NOMEM, "checkpoint of %zu bytes", state_bytes(s));
    memcpy(c->mem, hn_state_of(s, seq), state_bytes(s));
    c->seq = seq;
    c->pos = s->length[seq];
    c->used = ++s->checkpoint_clock;
    return HONE_OK;
}

/* To a place that can be reached: 0, the present length or c. */
static void go_back(hone_session *s, int32_t seq, int32_t n_pos, hn_checkpoint *c)
{
    if (n_pos != s->length[seq] && n_pos == 0) memset(hn_state_of(s, seq), 0, state_bytes(s));
    else if (n_pos != s->length[seq]) {
        memcpy(hn_state_of(s, seq), c->mem, state_bytes(s));
        c->used = ++s->checkpoint_clock;
    }
    s->length[seq] = n_pos;
    hn_checkpoints_drop(s, seq, n_pos);
}

void hn_state_lost(hone_session *s, int32_t seq)
{
    hn_checkpoint *c = furthest(s, seq, s->length[seq]);
    if (c) memcpy(hn_state_of(s, seq), c->mem, state_bytes(s));
    else memset(hn_state_of(s, seq), 0, state_bytes(s));
    s->length[seq] = c ? c->pos : 0;
    if (c) c->used = ++s->checkpoint_clock;
}

hone_status hone_seq_truncate(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err)
{
    HN_NEED(err, s, "a session");
    hone_status st = check_seq(s, seq, err);
    if (st != HONE_OK) return st;
    if (n_pos < 0 || n_pos > s->length[seq]) return HN_FAIL(err, HONE_E_ARG, "truncate sequence %d to %d positions, expected 0 to %d", seq, n_pos, s->length[seq]);
    if (!hn_is_recurrent(s)) {
        s->length[seq] = n_pos;
        return HONE_OK;
    }
    hn_checkpoint *c = n_pos > 0 && n_pos < s->length[seq] ? furthest(s, seq, n_pos) : NULL;
    if (n_pos > 0 && n_pos < s->length[seq] && (!c || c->pos != n_pos))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "a recurrent state of %d positions cannot be cut to %d: expected 0, %d or a checkpoint", s->length[seq], n_pos, s->length[seq]);
    go_back(s, seq, n_pos, c);
    return HONE_OK;
}

hone_status hone_seq_rewind(hone_session *s, int32_t seq, int32_t n_pos, int32_t *kept, hone_error *err)
{
    if (kept) *kept = -1;
    HN_NEED(err, s, "a session");
    HN_NEED(err, kept, "a place for the length that is left");
    hone_status st = check_seq(s, seq, err);
    if (st != HONE_OK) return st;
    if (n_pos < 0) return HN_FAIL(err, HONE_E_ARG, "rewind sequence %d to %d positions, expected 0 or more", seq, n_pos);
    if (n_pos > s->length[seq]) n_pos = s->length[seq];
    hn_checkpoint *c = NULL;
    if (hn_is_recurrent(s) && n_pos < s->length[seq]) {
        c = furthest(s, seq, n_pos);
        n_pos = c ? c->pos : 0;
    }
    if (hn_is_recurrent(s)) go_back(s, seq, n_pos, c);
    s->length[seq] = n_pos;
    *kept = n_pos;
    return HONE_OK;
}

/* ---- copies of a sequence --------------------------------------------------------------------------- */

/* Calls fn for every piece of a sequence's KV cache up to `length`, always in the same order. */
typedef void piece_fn(void *arg, char *piece, size_t bytes);
static void each_piece(const hone_session *s, int32_t seq, int32_t length, piece_fn *fn, void *arg)
{
    for (int64_t at = 0; at < length; at += HN_SPLIT) {
        int64_t n = length - at < HN_SPLIT ? length - at : HN_SPLIT;
        size_t bytes = (size_t)((n + HN_KEY_BLOCK - 1) / HN_KEY_BLOCK) * hn_cache_block_bytes(s->cache, s->model->hp.head_dim);
        for (int32_t il = 0; il < s->model->hp.n_layer; il++)
            for (int32_t h = 0; h < s->model->hp.n_head_kv; h++) {
                const hn_kv *kv = &s->kv[il];
                size_t here = (size_t)(at / HN_SPLIT) * kv->split_bytes + (size_t)h * kv->head_bytes + (size_t)seq * kv->seq_bytes;
                fn(arg, kv->k + here, bytes);
                fn(arg, kv->v + here, bytes);
            }
    }
}

static void copy_to(void *arg, char *piece, size_t bytes)
{
    memcpy(piece + *(ptrdiff_t *)arg, piece, bytes);
}

hone_status hone_seq_copy(hone_session *s, int32_t dst, int32_t src, hone_error *err)
{
    hone_status st;
    HN_NEED(err, s, "a session");
    if ((st = check_seq(s, dst, err)) != HONE_OK || (st = check_seq(s, src, err)) != HONE_OK) return st;
    if (dst == src) return HONE_OK;
    if (hn_is_recurrent(s)) {
        memcpy(hn_state_of(s, dst), hn_state_of(s, src), state_bytes(s));
        hn_checkpoints_drop(s, dst, -1);
    } else {
        ptrdiff_t away = (ptrdiff_t)(dst - src) * (ptrdiff_t)s->kv[0].seq_bytes;
        each_piece(s, src, s->length[src], copy_to, &away);
    }
    s->length[dst] = s->length[src];
    return HONE_OK;
}

struct hone_snapshot {
    const hone_model *model;
    uint64_t adapters;
    hn_cache_type cache;
    int32_t length;
    size_t bytes;
    char *mem;
};

static void count_piece(void *arg, char *piece, size_t bytes) { *(size_t *)arg += bytes; }
static void save_piece(void *arg, char *piece, size_t bytes)
{
    char **to = arg;
    memcpy(*to, piece, bytes);
    *to += bytes;
}
static void load_piece(void *arg, char *piece, size_t bytes)
{
    char **from = arg;
    memcpy(piece, *from, bytes);
    *from += bytes;
}

hone_status hone_seq_snapshot(const hone_session *s, int32_t seq, hone_snapshot **out, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, s, "a session");
    HN_NEED(err, out, "a place for the snapshot");
    hone_status st = check_seq(s, seq, err);
    if (st != HONE_OK) return st;
    size_t bytes = hn_is_recurrent(s) ? state_bytes(s) : 0;
    if (!hn_is_recurrent(s)) each_piece(s, seq, s->length[seq], count_piece, &bytes);
    hone_snapshot *p = calloc(1, sizeof *p);
    if (p && bytes && !(p->mem = malloc(bytes))) {
        free(p);
        p = NULL;
    }
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "snapshot of %zu bytes", bytes);
    p->model = s->model;
    p->adapters = s->adapters.hash;
    p->cache = s->cache;
    p->length = s->length[seq];
    p->bytes = bytes;
    char *to = p->mem;
    if (hn_is_recurrent(s)) memcpy(to, hn_state_of(s, seq), bytes);
    else each_piece(s, seq, p->length, save_piece, &to);
    *out = p;
    return HONE_OK;
}

hone_status hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err)
{
    const hone_snapshot *p = snap;
    HN_NEED(err, s, "a session");
    HN_NEED(err, snap, "a snapshot");
    hone_status st = check_seq(s, seq, err);
    if (st != HONE_OK) return st;
    if (p->model != s->model) return HN_FAIL(err, HONE_E_ARG, "the snapshot is of another model (%s), this session runs %s", p->model->path, s->model->path);
    if (p->adapters != s->adapters.hash) return HN_FAIL(err, HONE_E_ARG, "the snapshot was taken with other adapters, or other scales of them, than this session has");
    if (!hn_is_recurrent(s) && p->cache != s->cache) return HN_FAIL(err, HONE_E_ARG, "the snapshot is of a cache of another type");
    if (p->length > s->n_ctx) return HN_FAIL(err, HONE_E_CTX, "a snapshot of %d positions does not fit a context of %d", p->length, s->n_ctx);
    char *from = p->mem;
    if (hn_is_recurrent(s)) {
        memcpy(hn_state_of(s, seq), from, p->bytes);
        hn_checkpoints_drop(s, seq, -1);
    } else {
        each_piece(s, seq, p->length, load_piece, &from);
    }
    s->length[seq] = p->length;
    return HONE_OK;
}

void hone_snapshot_free(hone_snapshot *p)
{
    if (!p) return;
    free(p->mem);
    free(p);
}

int32_t hone_snapshot_length(const hone_snapshot *p) { return p ? p->length : 0; }
size_t hone_snapshot_bytes(const hone_snapshot *p) { return p ? p->bytes : 0; }
