/* Ways whose places are drawn anew each run: where a token comes alone, how wide a session is, which sequences stand
 * beside each other and with how many rows. All places cannot be looked at in a second, and who knows which are may be
 * wrong at all others. Owns the draws: the same number (hn_paths.draw) draws the same ones. */
#include "lab/quality/paths_walk.h"

#include "lab/quality/proof.h"

#include <stdlib.h>
#include <string.h>

enum {
    PLACES = 64, /* of a token alone, of a small model: wrong at a tenth of them all is missed once in 800 runs */
    GROUPS = 6,  /* of a large one */
    EACH = 3,
    SIZES = 5 /* of sessions, each up to twice as wide as the one before */
};

int32_t hn_walk_draw(hn_walk *w, int32_t n) { return (int32_t)(hn_rand64(w->out->draw, w->n_drawn++) % (uint64_t)n); }

void hn_walk_draw_places(hn_walk *w)
{
    int32_t pieces = w->n / HN_Q_PIECE;
    if (w->p->quick || pieces < 2) return;
    for (int32_t i = 0; i < PLACES && w->small; i++) w->here[hn_walk_draw(w, w->n)] = 1;
    for (int32_t i = 0; i < GROUPS && !w->small; i++) {
        int32_t at = (1 + hn_walk_draw(w, pieces - 1)) * HN_Q_PIECE + hn_walk_draw(w, HN_Q_PIECE - EACH);
        memset(w->here + at, 1, EACH);
    }
}

int32_t hn_walk_draw_width(hn_walk *w, int32_t n_ctx)
{
    int32_t size = (int32_t)((w->out->draw + (uint64_t)w->n_widths++) % SIZES), least = HN_Q_LONG + HN_Q_MORE,
            base = (n_ctx > least ? n_ctx : least) << size;
    return base + 1 + hn_walk_draw(w, base);
}

void hn_walk_draw_settings(hn_walk *w, hn_q_way *way)
{
    enum { LEAST = 65, MOST = 160, THREADS = 8, WIDE = 800, WIDER = 300 };
    const int32_t threads = w->p->threads_more > THREADS ? w->p->threads_more : THREADS;
    way->chunk = LEAST + hn_walk_draw(w, MOST - LEAST);
    const uint64_t wide = hn_rand64(w->out->draw, 0x77696465u + (uint64_t)way->chunk); /* others come as they came */
    if (wide % 3 == 0) way->chunk = WIDE + (int32_t)((wide >> 32) % (uint64_t)WIDER);  /* than any chunk of default */
    if (!w->some_threads) w->some_threads = hn_walk_draw(w, threads);
    way->threads = w->p->threads_more ? 1 + (w->some_threads += 3) % threads : 1; /* another one each time */
}

/* Rows of a long call: most often a multiple of 64 or one beside it, from 129 to 512; as many as are left. */
static int32_t draw_many_rows(hn_walk *w, int32_t left)
{
    enum { LEAST = 129, MOST = 512, EDGE = 64, EDGES = MOST / EDGE };
    static const int32_t beside[] = { 0, 0, 1, -1 };
    int32_t n = LEAST + hn_walk_draw(w, MOST - LEAST + 1);
    if (hn_walk_draw(w, 8) > 0) n = EDGE * (2 + hn_walk_draw(w, EDGES - 1)) + beside[hn_walk_draw(w, 4)];
    if (n > MOST) n = MOST;
    return n < left ? n : left;
}

/* ---- batches of anything -------------------------------------------------------------------------- */

enum { SEQS = 4, MOST_ROWS = 48 }; /* of one batch; of each of its sequences */

/* So many, as often few as many. */
static int32_t draw_rows(hn_walk *w, int32_t left)
{
    int32_t n = 1 + hn_walk_draw(w, 1 + hn_walk_draw(w, 1 + hn_walk_draw(w, MOST_ROWS)));
    return n < left ? n : left;
}

/* Rows of up to SEQS sequences: one behind the other, or in turn. 0: all of them are at the end. */
static int32_t draw_batch(hn_walk *w)
{
    int32_t pos[SEQS], end[SEQS], seq[SEQS], k = 0, first = hn_walk_draw(w, HN_Q_SEQS), n = 1 + hn_walk_draw(w, SEQS);
    const bool in_turn = hn_walk_draw(w, 4) == 0;
    const int32_t wanted = 1 + hn_walk_draw(w, 8); /* one row in so many, and most of the last ones */
    for (int32_t i = 0; i < n; i++) {
        seq[i] = (first + i) % HN_Q_SEQS;
        pos[i] = hone_seq_length(w->s, seq[i]);
        end[i] = pos[i] + draw_rows(w, w->n - pos[i]);
    }
    for (bool any = true; any;) {
        any = false;
        for (int32_t i = 0; i < n; i++)
            for (bool again = true; again && pos[i] < end[i]; pos[i]++) {
                const bool last = pos[i] + 1 == end[i], want = hn_walk_draw(w, last ? 4 : wanted) < (last ? 3 : 1);
                w->batch[k] = (hone_token){ w->ids[pos[i]], pos[i], seq[i], want && k < HN_WALK_ROOM_WIDE };
                k++;
                again = !in_turn;
                any = true;
            }
    }
    return k;
}

/* Now and then a sequence goes back, takes another's place, or begins anew. */
static hone_status draw_change(hn_walk *w)
{
    int32_t seq = hn_walk_draw(w, HN_Q_SEQS), other = hn_walk_draw(w, HN_Q_SEQS), n = hone_seq_length(w->s, seq);
    switch (hn_walk_draw(w, 12)) {
    case 0: {
        hone_status st = hone_seq_truncate(w->s, seq, n - hn_walk_draw(w, n / 2 + 1), w->err);
        return st == HONE_E_UNSUPPORTED ? HONE_OK : st; /* a window or a state is in the way */
    }
    case 1: return seq == other ? HONE_OK : hone_seq_copy(w->s, other, seq, w->err);
    case 2: return hone_seq_truncate(w->s, seq, 0, w->err);
    default: return HONE_OK;
    }
}

/* Of a sequence that is drawn, from its beginning: one call of many rows, or now and then all of the prompt. */
static hone_status in_a_long_call(hn_walk *w, int32_t *n)
{
    const int32_t seq = hn_walk_draw(w, HN_Q_SEQS);
    *n = hn_walk_draw(w, 8) == 0 ? w->n : draw_many_rows(w, w->n);
    return hn_walk_call(w, seq, 0, *n, 0);
}

hone_status hn_walk_in_drawn_batches(hn_walk *w)
{
    enum { ROWS = 600, ROWS_LARGE = 96, LEAST = 120, TRIES = 400 };
    int32_t left = w->small ? ROWS : ROWS_LARGE;
    hone_status st = HONE_OK;
    w->way = "in batches that are drawn";
    w->drawn = true;
    if (w->small) {
        int32_t many;
        st = in_a_long_call(w, &many);
        left = left - many > LEAST ? left - many : LEAST;
    }
    for (int32_t i = 0; i < TRIES && left > 0 && st == HONE_OK && !hn_walk_over(w); i++) {
        int32_t k = draw_batch(w);
        if (k > 0) st = hn_walk_run(w, k);
        left -= k;
        if (st == HONE_OK) st = draw_change(w);
    }
    w->drawn = false;
    return st;
}

/* ---- sequences that part ------------------------------------------------------------------------------ */

enum { PAGE = 64 };

/* Forks around the end of a page that is drawn: `fork` goes on as the prompt does, `other` by ids that are none of it,
 * written behind and over nothing of the first. Whole: `of` holds the prompt, of which nothing is computed again. */
hone_status hn_walk_forks_that_part(hn_walk *w, int32_t of, int32_t fork, int32_t other)
{
    static const int32_t beside[] = { -2, -1, 0, 1 };
    enum { JUNK = 3 };
    const int32_t pages = (hone_seq_length(w->s, of) - JUNK - 2) / PAGE;
    if (pages < 1 || !w->small) return HONE_OK;
    const int32_t edge = PAGE * (1 + hn_walk_draw(w, pages));
    hone_status st = HONE_OK;
    w->way = "behind a fork that parts";
    w->drawn = true;
    for (size_t i = 0; i < sizeof beside / sizeof *beside && st == HONE_OK && !hn_walk_over(w); i++) {
        const int32_t at = edge + beside[i];
        const float *x;
        st = hone_seq_copy(w->s, fork, of, w->err);
        if (st == HONE_OK) st = hone_seq_truncate(w->s, fork, at, w->err);
        if (st == HONE_OK) st = hone_seq_copy(w->s, other, fork, w->err);
        if (st == HONE_OK) st = hn_walk_singles(w, fork, at, at + 1);
        for (int32_t k = 0; k < JUNK && st == HONE_OK; k++)
            st = hone_append(w->s, other, &w->ids[(at + 17 + 5 * k) % w->n], 1, &x, w->err);
        if (st == HONE_OK) st = hn_walk_singles(w, fork, at + 1, at + 3);
    }
    w->drawn = false;
    return st == HONE_E_UNSUPPORTED ? HONE_OK : st; /* a window or a state is in the way */
}

/* `to` ids of the prompt are kept. Of texts that part from it at the ends of pages, and where it is drawn, no more is
 * found than they have in common. */
hone_status hn_walk_prefixes_of_others(hn_walk *w, int32_t seq, int32_t to)
{
    if (to <= PAGE || w->info.n_vocab < 2 || hn_walk_over(w)) return HONE_OK;
    const int32_t edge = PAGE * (1 + hn_walk_draw(w, (to - 1) / PAGE)),
                  places[] = { edge - 1, edge < to ? edge : to - 1, hn_walk_draw(w, to), to - 1 };
    int32_t *ids = malloc((size_t)to * sizeof *ids);
    hone_status st = ids ? HONE_OK : HN_FAIL(w->err, HONE_E_NOMEM, "%d ids", to);
    for (size_t i = 0; i < sizeof places / sizeof *places && st == HONE_OK; i++) {
        int32_t kept = 0;
        memcpy(ids, w->ids, (size_t)to * sizeof *ids);
        ids[places[i]] = (ids[places[i]] + 1 + hn_walk_draw(w, w->info.n_vocab - 1)) % w->info.n_vocab;
        st = hone_seq_truncate(w->s, seq, 0, w->err);
        if (st == HONE_OK) st = hone_seq_match(w->s, seq, ids, to, &kept, w->err);
        if (st == HONE_OK && kept > places[i])
            hn_invalid(&w->out->verdict,
                       "of a kept prefix %d positions are found for a text that has %d of its ids and then another",
                       (int)kept, (int)places[i]);
    }
    if (st == HONE_OK) st = hone_seq_truncate(w->s, seq, 0, w->err);
    free(ids);
    return st;
}

hone_status hn_walk_other_ends(hn_walk *w, int32_t seq)
{
    enum { LEAST = 3, MOST = 80, MORE = 2 };
    hone_status st = HONE_OK;
    if (w->n < MOST + MORE || w->info.n_vocab < 2) return HONE_OK;
    w->way = "behind a text with another end";
    w->drawn = true;
    const uint64_t draw = hn_rand64(w->out->draw, 0x656E6473u); /* its own: others come as they came */
    const int32_t drawn = LEAST + (int32_t)(draw % (MOST - LEAST - 1));
    hone_session_drop_prefixes(w->s);
    for (int32_t n = drawn; n < drawn + 2 && st == HONE_OK && !hn_walk_over(w); n++) {
        int32_t kept = 0;
        const float *x = NULL;
        const int32_t other =
            (w->ids[n - 1] + 1 + (int32_t)((draw >> 32) % (uint64_t)(w->info.n_vocab - 1))) % w->info.n_vocab;
        st = hn_walk_empty(w); /* nobody else holds the text */
        if (st == HONE_OK) st = hone_append(w->s, seq, w->ids, n - 1, &x, w->err);
        if (st == HONE_OK) st = hone_append(w->s, seq, &other, 1, &x, w->err);
        if (st == HONE_OK) st = hone_seq_sync(w->s, seq, w->ids, n + MORE, &kept, &x, w->err);
        if (st == HONE_OK && kept > n - 1)
            hn_invalid(&w->out->verdict, "of %d ids, the last of them another one, %d are taken for those of a text",
                       (int)n, (int)kept);
        if (st == HONE_OK) hn_walk_row(w, n + MORE - 1, x);
    }
    w->drawn = false;
    return st == HONE_OK ? hone_seq_truncate(w->s, seq, 0, w->err) : st;
}

/* ids that are none of the prompt's there: [at, to) of another text. */
static hone_status run_others(hn_walk *w, int32_t seq, int32_t at, int32_t to, const float **x)
{
    if (at >= to) return HONE_OK;
    int32_t *ids = malloc((size_t)(to - at) * sizeof *ids);
    if (!ids) return HN_FAIL(w->err, HONE_E_NOMEM, "%d ids", (int)(to - at));
    for (int32_t i = at; i < to; i++) ids[i - at] = w->ids[(7 * i + 3) % w->n];
    hone_status st = hone_append(w->s, seq, ids, to - at, x, w->err);
    free(ids);
    return st;
}

/* So far that what layers with a window saw of the place is gone, where the prompt comes that far. */
static int32_t beyond_window(const hn_walk *w, int32_t at) { return w->small && w->windows ? w->n - at : 2; }

hone_status hn_walk_old_places(hn_walk *w, int32_t seq, int32_t other)
{
    enum { FIRST = 20, FAR = 6, LEAST = 64 };
    int32_t kept = 0;
    const float *x = NULL;
    uint64_t bits = 0;
    if (w->n < LEAST) return HONE_OK;
    w->way = "behind a place that is remembered";
    w->drawn = true;
    hone_status st = hone_seq_truncate(w->s, seq, 0, w->err);
    if (st == HONE_OK) st = hn_walk_call(w, seq, 0, FIRST, 0);
    if (st == HONE_OK) st = hone_seq_checkpoint(w->s, seq, w->err);
    if (st == HONE_OK) st = hn_walk_call(w, seq, FIRST, FIRST + FAR, 0);
    if (st == HONE_OK) st = hone_seq_checkpoint(w->s, seq, w->err);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, seq, FIRST, w->err);
    if (st == HONE_OK) st = run_others(w, seq, FIRST, FIRST + FAR + beyond_window(w, FIRST + FAR), &x);
    if (st == HONE_OK) st = hone_seq_rewind(w->s, seq, FIRST + FAR, &kept, w->err);
    if (st == HONE_OK) st = run_others(w, seq, kept, FIRST + FAR + 1, &x);
    if (st == HONE_OK) bits = hn_bits_hash(x, w->info.n_vocab);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, other, 0, w->err);
    if (st == HONE_OK) st = hn_walk_call(w, other, 0, FIRST, 0);
    if (st == HONE_OK) st = run_others(w, other, FIRST, FIRST + FAR + 1, &x);
    if (st == HONE_OK && bits != hn_bits_hash(x, w->info.n_vocab))
        hn_invalid(&w->out->verdict,
                   "one text, two answers: of a sequence that was taken back to %d positions after it had been cut and "
                   "went on otherwise, others than of a new one; the engine is wrong in one of the two",
                   (int)kept);
    w->drawn = false;
    if (st == HONE_OK) st = hone_seq_truncate(w->s, seq, 0, w->err);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, other, 0, w->err);
    return st == HONE_E_NOMEM || st == HONE_E_UNSUPPORTED ? HONE_OK : st;
}

hone_status hn_walk_kept_page(hn_walk *w, int32_t seq, int32_t other)
{
    if (w->n <= 2 * PAGE + 2) return HONE_OK;
    const uint64_t draw = hn_rand64(w->out->draw, 0x70616765u); /* its own: others come as they came */
    const int32_t n = PAGE * (1 + (int32_t)(draw >> 32 & 1)), back = 1 + (int32_t)(draw % (PAGE - 2));
    int32_t kept = 0;
    const float *x = NULL;
    w->way = "behind what a sequence wrote that shared the page";
    w->drawn = true;
    hone_session_drop_prefixes(w->s);
    hone_status st = hn_walk_empty(w);
    if (st == HONE_OK) st = hn_walk_call(w, seq, 0, n, 0);
    if (st == HONE_OK) st = hone_seq_keep(w->s, seq, w->err);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, seq, n - back, w->err);
    if (st == HONE_OK) st = run_others(w, seq, n - back, n, &x);
    if (st == HONE_OK) st = hone_seq_match(w->s, other, w->ids, n, &kept, w->err);
    if (st == HONE_OK && kept > n) hn_invalid(&w->out->verdict, "of %d ids %d are kept", (int)n, (int)kept);
    if (st == HONE_OK && !hn_walk_over(w) && kept < n) st = hn_walk_call(w, other, kept, n, 0);
    if (st == HONE_OK && !hn_walk_over(w)) st = hn_walk_singles(w, other, n, n + 2);
    w->drawn = false;
    if (st == HONE_OK) st = hn_walk_empty(w);
    return st == HONE_E_NOMEM || st == HONE_E_UNSUPPORTED ? HONE_OK : st;
}

/* ---- beyond the prompt ------------------------------------------------------------------------------ */

enum { ALONE = 6 };

/* What a long call that begins at `at` says is said by a fork, too, at the first place whose row is asked for. */
static hone_status fork_alone(hn_walk *w, int32_t at)
{
    const int32_t apart = hn_walk_apart(w), to = (at + apart - 1) / apart * apart;
    if (to >= w->n) return HONE_OK;
    hone_status st = hone_seq_copy(w->s, 1, 0, w->err);
    if (st == HONE_OK && to > at) st = hn_walk_call(w, 1, at, to, 0);
    return st == HONE_OK ? hn_walk_singles(w, 1, to, to + 1) : st;
}

/* To position `to` by long calls, of which the last are HN_Q_PIECE rows in one call, and ALONE tokens of a fork. */
static hone_status to_depth(hn_walk *w, int32_t to)
{
    int32_t at = hone_seq_length(w->s, 0), from = to - HN_Q_PIECE;
    hone_status st = HONE_OK;
    for (int32_t end; at < from && st == HONE_OK; at = end) {
        end = at + draw_many_rows(w, from - at);
        st = fork_alone(w, at);
        if (st == HONE_OK) st = hn_walk_call(w, 0, at, end, 0);
    }
    if (st == HONE_OK) st = hone_seq_copy(w->s, 1, 0, w->err);
    if (st == HONE_OK) st = hn_walk_singles(w, 1, from, from + ALONE);
    w->all_rows = true;
    if (st == HONE_OK) st = hn_walk_call(w, 0, from, to - 1, 0);
    w->all_rows = false;
    for (int32_t i = 0; i < 2; i++)
        w->batch[i] = i ? (hone_token){ w->ids[to - 1], to - 1, 0, true }
                        : (hone_token){ w->ids[from + ALONE], from + ALONE, 1, true };
    return st == HONE_OK ? hn_walk_run(w, 2) : st;
}

static hone_status deeper(hn_walk *w)
{
    int32_t somewhere = HN_Q_LONG + HN_Q_MORE + HN_Q_PIECE + 1;
    hone_status st = w->deep ? hone_seq_restore(w->s, 0, w->deep, w->err) : HONE_OK;
    somewhere += hn_walk_draw(w, HN_Q_DEEP - 2 * HN_Q_PIECE - somewhere);
    if (st == HONE_OK) st = to_depth(w, somewhere);
    if (st == HONE_OK) st = to_depth(w, HN_Q_DEEP);
    return st == HONE_OK ? hone_seq_snapshot(w->s, 0, &w->far, w->err) : st;
}

/* One token of each of several forks: of few positions first, then of nearly all, whose attention is split over more
 * parts than there is room for at once. The last of them have been asked before. */
static hone_status of_all_depths(hn_walk *w)
{
    static const int32_t behind[] = { HN_Q_DEEP - 6, HN_Q_DEEP - 70, HN_Q_DEEP - 300, 30, 12, 2 };
    enum { N = sizeof behind / sizeof *behind };
    hone_status st = hone_seq_restore(w->s, 0, w->far, w->err);
    for (int32_t k = 0; k < N && st == HONE_OK; k++) {
        const int32_t pos = HN_Q_DEEP - behind[k];
        if (k > 0) st = hone_seq_copy(w->s, k, 0, w->err);
        w->batch[k] = (hone_token){ w->ids[pos], pos, k, true };
    }
    for (int32_t k = N - 1; k >= 0 && st == HONE_OK; k--) st = hone_seq_truncate(w->s, k, w->batch[k].pos, w->err);
    if (st == HONE_OK) st = hn_walk_run(w, N);
    return st == HONE_E_UNSUPPORTED ? HONE_OK : st; /* a state, or a window, does not go back so far */
}

/* The prompt again and again, to a depth that is drawn and to one that is always the same, of which outer holds a
 * hash. */
hone_status hn_walk_far_beyond(hn_walk *w)
{
    const hn_q_way way = { .n_ctx = HN_Q_DEEP, .n_seq = 2 }, among = { .n_ctx = HN_Q_DEEP, .n_seq = 8, .threads = 4 };
    hn_walk_seen *seen = w->seen;
    int32_t *ids = w->ids, n = w->n;
    uint64_t h = HN_FNV_INIT;
    hone_status st = HONE_OK;
    w->seen = calloc(HN_Q_DEEP, sizeof *w->seen);
    w->ids = calloc(HN_Q_DEEP, sizeof *w->ids);
    if (!w->seen || !w->ids) st = HN_FAIL(w->err, HONE_E_NOMEM, "%d ids", (int)HN_Q_DEEP);
    for (int32_t i = 0; i < HN_Q_DEEP && st == HONE_OK; i++) w->ids[i] = ids[i % n];
    w->n = HN_Q_DEEP;
    w->drawn = true;
    if (st == HONE_OK) st = hn_walk_with(w, "far beyond the prompt", &way, deeper);
    if (st == HONE_OK && !hn_walk_over(w) && w->far)
        st = hn_walk_with(w, "far beyond the prompt, among others that are not", &among, of_all_depths);
    hone_snapshot_free(w->far);
    w->far = NULL;
    for (int32_t i = HN_Q_DEEP - HN_Q_PIECE; i < HN_Q_DEEP && st == HONE_OK; i++)
        h = hn_fnv1a(h, &w->seen[i].bits, sizeof w->seen[i].bits);
    if (st == HONE_OK && !hn_walk_over(w)) hn_outer_set(&w->out->outer, HN_OUTER_DEPTH, h);
    free(w->seen);
    free(w->ids);
    w->seen = seen;
    w->ids = ids;
    w->n = n;
    w->drawn = false;
    if (st != HONE_E_NOMEM && st != HONE_E_ARG) return st;
    hn_walk_left_out(w, st == HONE_E_NOMEM ? "positions beyond the prompt: no memory for a session of so many"
                                           : "positions beyond the prompt: no session of so many");
    return HONE_OK;
}
