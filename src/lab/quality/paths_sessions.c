/* Ways that need a session of their own: of another chunk, number of threads, level, layout, type of cache; of many
 * sequences; two at once. Owns which these are. */
#define _GNU_SOURCE
#include "lab/quality/paths_walk.h"

#include "lab/quality/proof.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CHUNK = 64, /* of a session whose calls are of many chunks */
    CHUNK_QUICK = 20,
    MANY_APART = 3,                           /* positions between sequences of which there are many */
    MANY_TO_NINE = HN_Q_MANY - HN_Q_SEQS + 1, /* batches of all of them down to HN_Q_SEQS */
    MANY_ROUNDS = HN_Q_MANY - 1,              /* and to two */
    MANY_CTX = MANY_APART * HN_Q_MANY + MANY_ROUNDS
};

static hone_status open_as(hn_walk *w, const hn_q_way *way)
{
    w->s = NULL; /* the opener ends the one before */
    return w->p->open(w->p->arg, way, &w->s, w->err);
}

/* Wider than the prompt needs, where there is memory for that and the model turns no otherwise there. */
static hone_status open_wide(hn_walk *w, const hn_q_way *way)
{
    hn_q_way wide = *way;
    wide.n_ctx = hn_walk_draw_width(w, way->n_ctx);
    if (way->plain && wide.n_ctx > w->widest) wide.n_ctx = w->widest; /* the probe is of the other model */
    if (!w->probe || wide.n_ctx <= way->n_ctx) return open_as(w, way);
    hone_status st = open_as(w, &wide);
    if (st != HONE_OK && st != HONE_E_NOMEM && st != HONE_E_ARG) return st;
    if (st == HONE_OK && (!w->s || way->plain)) return st;
    if (st == HONE_OK) {
        st = hone_seq_restore(w->s, 0, w->probe, w->err);
        if (st != HONE_OK && st != HONE_E_ARG && st != HONE_E_NOMEM) return st;
    }
    if (st != HONE_OK) return open_as(w, way);
    if (wide.n_ctx > w->widest) w->widest = wide.n_ctx;
    return hone_seq_truncate(w->s, 0, 0, w->err);
}

/* Opens a session that differs, and leaves the next one a clean table. */
static hone_status open_way(hn_walk *w, const char *name, const hn_q_way *way)
{
    hone_status st = w->wide ? open_wide(w, way) : open_as(w, way);
    if (st != HONE_OK || !w->s) {
        if (st == HONE_OK) hn_walk_left_out(w, name);
        return st;
    }
    w->way = name;
    w->of_plain = way->plain;
    w->out->n_ways++;
    return st;
}

hone_status hn_walk_with(hn_walk *w, const char *name, const hn_q_way *way, hone_status (*go)(hn_walk *w))
{
    hone_status st = open_way(w, name, way);
    return st == HONE_OK && w->s ? go(w) : st;
}

enum { TOKENS = 8 }; /* of a session that differs, one by one */

/* Two pieces and some tokens. */
static hone_status a_beginning(hn_walk *w)
{
    enum { PIECES = 2 * HN_Q_PIECE };
    int32_t to = w->n < PIECES ? w->n : PIECES;
    hone_status st = hn_walk_call(w, 0, 0, to, 0);
    return st == HONE_OK ? hn_walk_singles(w, 0, to, to + TOKENS < w->n ? to + TOKENS : w->n) : st;
}

/* All n sequences to a file and back; then seq alone, as a snapshot. Where no file can be written nothing has
 * changed. */
static hone_status to_files_and_back(hn_walk *w, int32_t n, int32_t seq)
{
    char folder[512], path[560];
    const char *tmp = getenv("TMPDIR");
    hone_snapshot *snap = NULL;
    snprintf(folder, sizeof folder, "%.400s/hone-hash-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) {
        hn_walk_left_out(w, "files of a session and a snapshot: no folder for them (TMPDIR says where)");
        return HONE_OK;
    }
    snprintf(path, sizeof path, "%s/sequences", folder);
    hone_status st = hone_session_save(w->s, path, w->err);
    bool written = st == HONE_OK;
    for (int32_t q = 0; q < n && st == HONE_OK; q++) st = hone_seq_truncate(w->s, q, 0, w->err);
    if (st == HONE_OK) st = hone_session_load(w->s, path, w->err);
    unlink(path);
    if (st == HONE_OK) st = hone_seq_snapshot(w->s, seq, &snap, w->err);
    if (st == HONE_OK) st = hone_snapshot_save(snap, path, w->err);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, seq, 0, w->err);
    hone_snapshot_free(snap);
    snap = NULL;
    if (st == HONE_OK) st = hone_snapshot_load(&snap, w->p->m, path, w->err);
    if (st == HONE_OK) st = hone_seq_restore(w->s, seq, snap, w->err);
    hone_snapshot_free(snap);
    unlink(path);
    rmdir(folder);
    if (written || st != HONE_E_IO) return st;
    hn_walk_left_out(w, "files of a session and a snapshot: they cannot be written (TMPDIR says where)");
    return HONE_OK;
}

/* A session that differs in one thing: a beginning, and where the model is small a large piece; then, from what another
 * session kept, the end. */
static hone_status otherwise(hn_walk *w)
{
    const hone_snapshot *deep = w->of_plain ? NULL : w->deep; /* of one model's session, for others of that */
    hone_status st = a_beginning(w);
    int32_t at = hone_seq_length(w->s, 0), end = deep ? HN_WALK_FIRST : w->n;
    if (st == HONE_OK && w->small && at < end) st = hn_walk_call(w, 0, at, end, 0);
    if (st != HONE_OK || !deep) return st;
    st = hone_seq_truncate(w->s, 0, 0, w->err);
    if (st == HONE_OK) st = hone_seq_restore(w->s, 0, deep, w->err);
    if (st == HONE_OK) st = hn_walk_singles(w, 0, HN_WALK_FAR_DOWN, HN_WALK_FAR_DOWN + TOKENS);
    return st == HONE_OK ? hn_walk_call(w, 0, HN_WALK_FAR_DOWN + TOKENS, w->n, 0) : st;
}

/* otherwise(), and again what is far down, behind files of so many positions. */
static hone_status otherwise_from_files(hn_walk *w)
{
    enum { FEW = 3 };
    hone_status st = otherwise(w);
    if (st != HONE_OK || !w->deep || hn_walk_over(w)) return st;
    w->way = "from files of a session and a snapshot";
    st = hone_seq_truncate(w->s, 0, 0, w->err);
    if (st == HONE_OK) st = hone_seq_restore(w->s, 0, w->deep, w->err);
    if (st == HONE_OK) st = to_files_and_back(w, 1, 0);
    w->drawn = true; /* the same rows in any case, of which earlier programs had none */
    if (st == HONE_OK) st = hn_walk_singles(w, 0, HN_WALK_FAR_DOWN, HN_WALK_FAR_DOWN + FEW);
    w->drawn = false;
    return st;
}

static hone_status chunks_of_one(hn_walk *w)
{
    int32_t to = w->small ? 4 * HN_Q_PIECE : 24;
    return hn_walk_call(w, 0, 0, to < w->n ? to : w->n, 0);
}

/* One call of many chunks, which is stopped in the second and made again. */
static hone_status in_many_chunks(hn_walk *w)
{
    enum { MOST = 5 * CHUNK - 27, SINGLES = 3 };
    int32_t to = w->p->quick ? 3 * CHUNK_QUICK : MOST;
    if (to > w->n || (w->small && !w->p->quick)) to = w->n - SINGLES;
    hone_status st = hn_walk_call_again(w, 0, 0, to, w->info.n_layer + (w->info.n_layer + 1) / 2);
    if (st == HONE_OK) st = hn_walk_singles(w, 0, to, to + SINGLES < w->n ? to + SINGLES : w->n);
    return st == HONE_OK && !hn_walk_over(w) ? hn_walk_embed_again(w) : st;
}

/* Forks of the prompt at HN_Q_MANY places, each of which goes on in batches of all down to two of them, at another row
 * every time. Each of their rows is compared. A quick look at a large model has few places and batches. */
static hone_status many_sequences(hn_walk *w)
{
    enum { TOGETHER_QUICK = 5, LESS_QUICK = 4 };
    const bool few = w->p->quick && !w->small;
    const int32_t together = few ? TOGETHER_QUICK : 1, less = few ? LESS_QUICK : 1;
    hone_status st = HONE_OK;
    if (w->n < MANY_CTX) {
        hn_walk_left_out(w, "batches of more than 9 sequences: the prompt is too short");
        return st;
    }
    for (int32_t q = 1, at = 0; q < HN_Q_MANY && st == HONE_OK; q++) {
        if ((q - 1) % together == 0) {
            st = hn_walk_call(w, 0, at, at + MANY_APART, 0);
            at += MANY_APART;
        }
        if (st == HONE_OK) st = hone_seq_copy(w->s, q, 0, w->err);
    }
    for (int32_t i = 0; i < (few ? MANY_TO_NINE : MANY_ROUNDS) && st == HONE_OK && !hn_walk_over(w); i += less) {
        w->drawn = i >= MANY_TO_NINE; /* earlier programs had none of fewer */
        for (int32_t k = 0; k < HN_Q_MANY - i; k++) {
            int32_t q = (k + 7 * i) % HN_Q_MANY, pos = hone_seq_length(w->s, q);
            w->batch[k] = (hone_token){ w->ids[pos], pos, q, true };
        }
        if (i + 1 == MANY_TO_NINE && w->small && !w->p->quick) {
            w->way = "from files of a session and a snapshot";
            st = to_files_and_back(w, w->n_all, w->batch[0].seq);
        }
        if (st == HONE_OK) st = hn_walk_run(w, HN_Q_MANY - i);
        if (i + 1 == MANY_TO_NINE) w->way = "among 1 to 6 neighbours";
    }
    w->drawn = false;
    return st;
}

/* One token of some of all sequences, appended alone: which ones is drawn, from the first to the last of them. */
static hone_status appended_in_some(hn_walk *w)
{
    enum { SOME = 9, SOME_LARGE = 3 };
    const int32_t some = w->small ? SOME : SOME_LARGE, first = hn_walk_draw(w, w->n_all);
    hone_status st = HONE_OK;
    w->way = "appended to one of many sequences";
    w->drawn = true;
    for (int32_t i = 0; i < some && st == HONE_OK && !hn_walk_over(w); i++) {
        const int32_t q = (first + i * w->n_all / some) % w->n_all;
        const int32_t pos = hone_seq_length(w->s, q);
        const float *x;
        st = hone_append(w->s, q, &w->ids[pos], 1, &x, w->err);
        if (st == HONE_OK) hn_walk_row(w, pos, x);
    }
    w->drawn = false;
    return st;
}

/* Has the session no room for one sequence more, of the widest cache? One that was not opened has none. */
static bool is_full(const hn_walk *w)
{
    hone_session_memory has;
    hone_sequence_cost one;
    hone_session_get_memory(w->s, &has);
    return hone_model_sequence_cost(w->p->m, MANY_CTX, HONE_CACHE_F32, &one, NULL) == HONE_OK &&
           has.cache_used_bytes + one.bytes > has.cache_budget_bytes;
}

/* All sequences that the session has room for, one row each: each beyond HN_Q_MANY is a fork of the one
 * before. */
static hone_status all_sequences(hn_walk *w)
{
    hone_status st = many_sequences(w);
    int32_t n = w->n_all;
    if (st != HONE_OK || w->n < MANY_CTX || hn_walk_over(w)) return st;
    if (n <= HN_Q_MANY) return appended_in_some(w);
    w->way = "among more than 20";
    w->drawn = true;
    for (int32_t q = HN_Q_MANY; q < n && st == HONE_OK; q++) st = hone_seq_copy(w->s, q, q - 1, w->err);
    for (int32_t k = 0; k < n && st == HONE_OK; k++) {
        int32_t q = (k + n / 2) % n, pos = hone_seq_length(w->s, q);
        w->batch[k] = (hone_token){ w->ids[pos], pos, q, true };
    }
    if (st == HONE_OK) st = hn_walk_run(w, n);
    w->drawn = false;
    return st == HONE_OK && !hn_walk_over(w) ? appended_in_some(w) : st;
}

/* many_sequences() in a session of its own, the only one of so many: a state of each may be more than there is
 * memory for. Memory that is refused where there is some is a failure. */
hone_status hn_walk_among_many(hn_walk *w)
{
    hn_q_way of_many = { .n_ctx = MANY_CTX, .n_seq = HN_Q_MANY };
    const int32_t before = w->out->n_compared;
    const bool far = w->small && w->room >= HN_Q_MOST_SMALL && hn_walk_draw(w, 2) == 1;
    const int32_t most = far ? HN_Q_MOST_SMALL : HN_Q_MOST;
    w->n_all = w->room < most ? HN_Q_MANY : HN_Q_MANY + 1 + hn_walk_draw(w, most - HN_Q_MANY);
    of_many.n_seq = w->n_all;
    w->attempt = 2;
    hone_status st = hn_walk_with(w, "among 8 to 19 neighbours", &of_many, all_sequences);
    w->attempt = 1;
    const bool again = st == HONE_E_NOMEM && is_full(w);
    for (int32_t i = 0; i < w->n + w->n_more; i++)
        if (w->seen[i].counted == 2) w->seen[i].counted = again ? 0 : 1;
    if (again) { /* as many as are compared in any case */
        w->out->n_compared = before;
        of_many.n_seq = w->n_all = HN_Q_MANY;
        st = hn_walk_with(w, "among 8 to 19 neighbours", &of_many, all_sequences);
    }
    if (st != HONE_E_NOMEM || !is_full(w)) return st;
    hn_walk_left_out(w, "batches of more than 9 sequences: no memory for 20");
    return HONE_OK;
}

/* Two sessions at once, in turn: a piece of each, then token by token. */
hone_status hn_walk_in_two_sessions(hn_walk *w)
{
    hn_q_way way = { .n_ctx = HN_WALK_CACHE_CTX, .n_seq = 1 };
    hone_session *both[2] = { NULL, NULL };
    hone_status st = HONE_OK;
    if (w->n < HN_WALK_CACHE_CTX) return st;
    for (int i = 0; i < 2 && st == HONE_OK; i++, way.beside = true) {
        st = open_way(w, "in one of two sessions", &way);
        both[i] = w->s;
    }
    if (st == HONE_E_NOMEM || (st == HONE_OK && (!both[0] || !both[1]))) {
        hn_walk_left_out(w, st == HONE_OK ? "two sessions at once: there is one"
                                          : "two sessions at once: no memory for two");
        return HONE_OK;
    }
    for (int32_t at = 0, to; at < HN_Q_PIECE + TOKENS; at = to) {
        to = at ? at + 1 : HN_Q_PIECE;
        for (int i = 0; i < 2 && st == HONE_OK; i++) {
            w->s = both[i];
            st = at ? hn_walk_singles(w, 0, at, to) : hn_walk_call(w, 0, at, to, 0);
        }
    }
    return st;
}

/* Tokens one by one at a place that is drawn, behind `least` positions of the `most` that the session holds. A window
 * or a state that is in the way leaves them behind all of those. */
static hone_status somewhere_alone(hn_walk *w, int32_t least, int32_t most)
{
    enum { FEW = 3 };
    int32_t to = least + hn_walk_draw(w, most - least);
    while (to < most && !w->seen[to].way) to++; /* somebody else was asked there */
    hone_status st = hone_seq_truncate(w->s, 0, to, w->err);
    if (st != HONE_OK && st != HONE_E_UNSUPPORTED) return st;
    const int32_t at = hone_seq_length(w->s, 0);
    w->drawn = true;
    st = hn_walk_singles(w, 0, at, at + FEW < w->n ? at + FEW : w->n);
    w->drawn = false;
    return st;
}

/* All of the prompt in calls of every count and one of the rest; then a whole chunk of the engine's, and some alone. */
static hone_status on_level(hn_walk *w)
{
    enum { WHOLE = 512, LEAST = 65 };
    hone_status st = hn_walk_crumbs(w);
    int32_t at = hone_seq_length(w->s, 0);
    if (st == HONE_OK && at < w->n) st = hn_walk_call(w, 0, at, w->n, 0);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, 0, 0, w->err);
    if (st != HONE_OK || w->n < WHOLE) return st;
    st = hn_walk_call(w, 0, 0, WHOLE, 0);
    return st == HONE_OK ? somewhere_alone(w, LEAST, WHOLE) : st;
}

/* Plain C is slow. */
static hone_status on_plain_c(hn_walk *w)
{
    enum { PIECE = 32 };
    if (w->n < PIECE + TOKENS) return hn_walk_call(w, 0, 0, w->n, 0);
    hone_status st = hn_walk_call(w, 0, 0, PIECE, 0);
    return st == HONE_OK ? hn_walk_singles(w, 0, PIECE, PIECE + TOKENS) : st;
}

/* On each lower level of kernels. */
static hone_status on_levels(hn_walk *w, const hn_q_way *base)
{
    hone_status st = HONE_OK;
    if (!w->small) return st;
    for (const char *const *l = w->p->levels; l && *l && st == HONE_OK && !hn_walk_over(w); l++) {
        hn_q_way level = *base;
        level.cpu = *l;
        bool plain = strcmp(*l, hn_cpu_level_name(HN_CPU_SCALAR)) == 0;
        st = hn_walk_with(w, *l, &level, plain ? on_plain_c : on_level);
    }
    return st;
}

/* One thread more than asked, which may be one too many for what limits them. */
static hone_status on_more_threads(hn_walk *w, const hn_q_way *more)
{
    snprintf(w->way_more, sizeof w->way_more, "on %d threads", (int)more->threads);
    hone_status st = open_way(w, w->way_more, more);
    if (st == HONE_OK && w->s) return a_beginning(w);
    if (st != HONE_E_NOMEM) return st;
    hn_walk_left_out(w, "one thread more: no memory for it, or no thread to be had");
    return HONE_OK;
}

/* Of a chunk and a count of threads that are drawn: more than a chunk in one call, and tokens alone. */
static hone_status of_drawn_settings(hn_walk *w, const hn_q_way *base)
{
    enum { ALONE = 4 };
    hn_q_way way = *base;
    hn_walk_draw_settings(w, &way);
    snprintf(w->way_drawn, sizeof w->way_drawn, "in chunks of %d on %d threads", (int)way.chunk, (int)way.threads);
    hone_status st = open_way(w, w->way_drawn, &way);
    if (st == HONE_E_NOMEM) {
        hn_walk_left_out(w, "a drawn chunk and count of threads: no memory for it, or no thread to be had");
        return HONE_OK;
    }
    if (st != HONE_OK || !w->s) return st;
    const int32_t all = way.chunk + way.chunk / 4, to = all + ALONE < w->n ? all : w->n - ALONE;
    w->drawn = true;
    if (to > 0) st = hn_walk_call(w, 0, 0, to, 0);
    if (st == HONE_OK && to > 0) st = hn_walk_singles(w, 0, to, to + ALONE);
    w->drawn = false;
    return st;
}

/* As few positions and as many sequences as are drawn: one of them is filled to its end. */
static hone_status to_its_end(hn_walk *w)
{
    enum { ALONE = 5 };
    const int32_t end = w->narrow.n_ctx, to = end - ALONE, seq = hn_walk_draw(w, w->narrow.n_seq);
    w->drawn = true;
    hone_status st = hn_walk_call(w, seq, 0, to, 0);
    if (st == HONE_OK) st = hn_walk_singles(w, seq, to, end);
    w->drawn = false;
    return st;
}

static hone_status in_a_narrow_session(hn_walk *w)
{
    enum { LEAST = 8, MOST = 100, SEQS = 6 };
    if (w->n < MOST) return HONE_OK;
    const bool wide = w->wide;
    w->narrow = (hn_q_way){ .n_ctx = LEAST + hn_walk_draw(w, MOST - LEAST), .n_seq = 1 + hn_walk_draw(w, SEQS) };
    w->wide = false;
    snprintf(w->way_narrow, sizeof w->way_narrow, "in a session of %d positions and %d sequences", (int)w->narrow.n_ctx,
             (int)w->narrow.n_seq);
    hone_status st = hn_walk_with(w, w->way_narrow, &w->narrow, to_its_end);
    w->wide = wide;
    return st;
}

static void *ask_around(void *arg)
{
    hn_walk *w = arg;
    hone_error err;
    w->outer_asked = hn_walk_ask_around(w, &err) == HONE_OK; /* else it is asked again, and says why */
    return NULL;
}

/* One thread of a session leaves the other cores to the questions that need no session. */
static hone_status on_one_thread(hn_walk *w, const hn_q_way *one)
{
    pthread_t thread;
    const bool beside = pthread_create(&thread, NULL, ask_around, w) == 0;
    hone_status st = hn_walk_with(w, "on one thread", one, otherwise_from_files);
    if (beside) pthread_join(thread, NULL);
    return st;
}

/* The ways that need a session of their own, of one sequence. */
hone_status hn_walk_other_sessions(hn_walk *w, const hn_q_way *of_nine)
{
    enum { DRAWN = 3 };
    hn_q_way base = *of_nine;
    base.n_seq = 1;
    hn_q_way one = base, some = base, more = base, chunk = base, many = base, plain = base;
    one.threads = 1;
    some.threads = w->p->threads;
    more.threads = w->p->threads_more;
    chunk.chunk = 1;
    many.chunk = w->p->quick ? CHUNK_QUICK : CHUNK;
    plain.plain = true;
    w->wide = true;
    if (w->p->quick) return hn_walk_with(w, "in chunks of 20", &many, in_many_chunks);
    hone_status st = hn_walk_with(w, "in chunks of 1", &chunk, chunks_of_one);
    if (st == HONE_OK && !hn_walk_over(w)) st = hn_walk_with(w, "in chunks of 64", &many, in_many_chunks);
    if (st == HONE_OK && !hn_walk_over(w)) st = on_one_thread(w, &one);
    snprintf(w->way_threads, sizeof w->way_threads, "on %d threads", (int)some.threads);
    if (st == HONE_OK && !hn_walk_over(w) && some.threads) st = hn_walk_with(w, w->way_threads, &some, otherwise);
    if (st == HONE_OK && !hn_walk_over(w) && more.threads) st = on_more_threads(w, &more);
    for (int i = 0; i < DRAWN && st == HONE_OK && !hn_walk_over(w) && w->small; i++) st = of_drawn_settings(w, &base);
    if (st == HONE_OK && !hn_walk_over(w) && w->small) st = in_a_narrow_session(w);
    if (st == HONE_OK && !hn_walk_over(w) && w->p->packed && !w->p->adapted)
        st = hn_walk_with(w, "from plain weights", &plain, otherwise);
    return st == HONE_OK && !hn_walk_over(w) ? on_levels(w, &base) : st;
}

/* Both sequences hold the prompt: they are cut where no line of a cache ends, and go on, one behind files. */
static hone_status goes_on_from_files(hn_walk *w)
{
    enum { CUT = 69 };
    uint64_t bits[2] = { 0 };
    hone_status st = HONE_OK;
    for (int32_t q = 0; q < 2 && st == HONE_OK; q++) {
        const float *x = NULL;
        st = hone_seq_truncate(w->s, q, CUT, w->err);
        if (st == HONE_OK && q == 1) st = to_files_and_back(w, 2, 1);
        if (st == HONE_OK) st = hone_append(w->s, q, w->ids + CUT, HN_WALK_CACHE_CTX - CUT, &x, w->err);
        if (st == HONE_OK) bits[q] = hn_bits_hash(x, w->info.n_vocab);
    }
    if (st == HONE_OK && bits[0] != bits[1])
        hn_invalid(
            &w->out->verdict,
            "one prompt, two answers: behind %d positions that came from files, %s, others than behind those that "
            "were computed; the engine is wrong in one of the two",
            (int)CUT, w->way);
    return st == HONE_E_UNSUPPORTED ? HONE_OK : st; /* what cannot be cut there */
}

/* A prompt at once; then in chunks, with tokens one by one around the edges of its pages. */
static hone_status across_pages(hn_walk *w)
{
    static const struct {
        int32_t to;
        bool one_by_one;
    } parts[] = { { 37, false }, { 60, false }, { 68, true }, { HN_WALK_CACHE_CTX, false } };
    hone_status st = hn_walk_call(w, 0, 0, HN_WALK_CACHE_CTX, 0);
    for (size_t i = 0, from = 0; i < sizeof parts / sizeof *parts && st == HONE_OK; from = (size_t)parts[i++].to)
        st = parts[i].one_by_one ? hn_walk_singles(w, 1, (int32_t)from, parts[i].to)
                                 : hn_walk_call(w, 1, (int32_t)from, parts[i].to, 0);
    return st == HONE_OK && w->small && !hn_walk_over(w) ? goes_on_from_files(w) : st;
}

/* With one other type of cache: its ways agree with each other, and *h goes on by what they say. */
static hone_status on_cache(hn_walk *w, hone_kv_cache_type cache, uint64_t *h)
{
    const hn_q_way way = { .n_ctx = HN_WALK_CACHE_CTX, .n_seq = 2, .cache = 1 + (int32_t)cache };
    hn_walk_seen *asked = w->seen;
    w->seen = calloc((size_t)w->n, sizeof *w->seen);
    hone_status st = w->seen ? hn_walk_with(w, "with another type of cache", &way, across_pages)
                             : HN_FAIL(w->err, HONE_E_NOMEM, "rows of another cache");
    for (int32_t i = 0; w->seen && i < w->n; i++)
        if (w->seen[i].way) *h = hn_fnv1a(*h, &w->seen[i].bits, sizeof w->seen[i].bits);
    free(w->seen);
    w->seen = asked;
    return st;
}

hone_status hn_walk_on_caches(hn_walk *w)
{
    hone_sequence_cost narrow, wide;
    uint64_t h = HN_FNV_INIT;
    hone_status st = hone_model_sequence_cost(w->p->m, HN_WALK_CACHE_CTX, HONE_CACHE_F16, &narrow, w->err);
    if (st == HONE_OK) st = hone_model_sequence_cost(w->p->m, HN_WALK_CACHE_CTX, HONE_CACHE_F32, &wide, w->err);
    if (st != HONE_OK || narrow.bytes == wide.bytes || w->n < HN_WALK_CACHE_CTX)
        return st; /* there is no cache, or no prompt */
    for (int c = HONE_CACHE_F16; c <= HONE_CACHE_Q8_0 && st == HONE_OK && !hn_walk_over(w); c++)
        if (c != (int)w->p->cache) st = on_cache(w, (hone_kv_cache_type)c, &h);
    if (st == HONE_OK) hn_outer_set(&w->out->outer, HN_OUTER_CACHES, h);
    if (st == HONE_E_NUMERIC && strstr(w->err->message, "expected a finite number"))
        return st; /* not one that is too large for a cache: what is none comes from no cache */
    if (st != HONE_E_NUMERIC && st != HONE_E_UNSUPPORTED && st != HONE_E_ARG) return st;
    hn_walk_left_out(w, "other types of cache: the model cannot do with one");
    return HONE_OK;
}
