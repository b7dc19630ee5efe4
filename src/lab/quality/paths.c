/* The long prompt on every way, and the hash q2. Owns which ways there are and which rows of
 * logits are compared. Anything here that changes the bytes hashed needs another prefix than
 * q2: the eight prompts' digests; the logits behind the first piece, behind the prompt and of
 * HASHED steps after it; the ids of prompts and steps. */
#define _GNU_SOURCE
#include "lab/quality/paths_walk.h"

#include "lab/quality/perplexity.h"
#include "lab/quality/proof.h"
#include "lab/quality/sketch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROOM = 400,         /* rows of logits of one call */
    HASHED = 8,         /* generated steps that the hash covers */
    WINDOW_MOST = 2048, /* a window up to here is crossed by a longer prompt */
    BACK = 490,         /* where a sequence goes back to: in a page, before the end of a chunk */
    BACK_NEAR = 40      /* of a short prompt, or where memory of what was cannot be had back */
};
#define SMALL_BYTES (32u << 20) /* of weights a token reads: every way goes the whole prompt */

/* ---- comparing -------------------------------------------------------------------------------- */

void hn_walk_left_out(hn_walk *w, const char *what)
{
    for (int32_t i = 0; i < w->out->n_left; i++)
        if (strcmp(w->out->left[i], what) == 0) return;
    if (w->out->n_left < HN_PATHS_LEFT) w->out->left[w->out->n_left++] = what;
}

/* A row of logits behind position pos. */
void hn_walk_row(hn_walk *w, int32_t pos, const float *x)
{
    hn_walk_seen *at = &w->seen[pos];
    uint64_t bits = hn_bits_hash(x, w->info.n_vocab);
    if (!hn_scan_logits(x, w->info.n_vocab).finite)
        hn_invalid(&w->out->verdict, "the long quality prompt, %s, position %d: the logits hold a NaN or an infinity",
                   w->way, pos);
    if (!at->way) *at = (hn_walk_seen){ .bits = bits, .way = w->way };
    w->out->n_compared += at->counted && !w->drawn;
    if (!at->counted && !w->drawn) at->counted = w->attempt;
    if (at->bits == bits) return;
    hn_invalid(&w->out->verdict,
               "one prompt, two answers: the logits behind position %d are others %s than %s; the engine is wrong in "
               "one of the two",
               pos, w->way, at->way);
}

/* Whatever is wrong may be so at what was drawn alone, which depends on the options, too. */
static void name_the_draw(hn_paths *out, bool quick)
{
    char *why = out->verdict.reason, again[120];
    size_t n = strlen(why);
    if (out->verdict.state != HN_INVALID) return;
    size_t k = (size_t)snprintf(again, sizeof again, "; again, with the same options, by hone %s --draw %llu",
                                quick ? "bench --quality quick" : "lab quality hash", (unsigned long long)out->draw);
    size_t at = n + k < sizeof out->verdict.reason ? n : sizeof out->verdict.reason - 1 - k;
    memcpy(why + at, again, k + 1);
}

/* Is this one of the positions whose logits every way is asked for? Edges of chunks, pages, windows and powers of two,
 * and some between. */
static bool compared(const hn_walk *w, int32_t pos)
{
    static const int32_t edges[] = { 0,   1,   2,   3,   7,   8,   15,  16,  31,   32,   36,   63,   64,   127, 128,
                                     255, 256, 510, 511, 512, 513, 514, 999, 1000, 1001, 1022, 1023, 1024, 1025 };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        if (edges[i] == pos) return true;
    int32_t edge = w->info.n_window, behind = pos - w->back;
    if (behind >= 0 && behind < HN_WALK_BACK_SPAN &&
        (behind % HN_WALK_STEP == 0 || behind % HN_WALK_STEP == HN_WALK_STEP - 1))
        return true;
    return pos + 1 == w->n || pos + 1 == HN_WALK_FIRST || (edge && pos >= edge - 1 && pos <= edge + 1) ||
           pos % hn_walk_apart(w) == 0;
}

/* ---- steps of a way ----------------------------------------------------------------------------- */

/* The first k tokens of the batch. Those that want logits are of sequences that hold the prompt. */
hone_status hn_walk_run(hn_walk *w, int32_t k)
{
    hone_status st = hone_run_batch(w->s, w->batch, k, w->logits, w->err);
    const bool drawn = w->drawn;
    for (int32_t i = 0, r = 0; i < k && st == HONE_OK; i++) {
        int32_t pos = w->batch[i].pos;
        if (!w->batch[i].want_logits) continue;
        w->drawn = drawn || (w->ask_here && w->here[pos] && !compared(w, pos));
        hn_walk_row(w, pos, w->logits + (size_t)r++ * (size_t)w->info.n_vocab);
    }
    w->drawn = drawn;
    return st;
}

/* ids [from, to) of the prompt in one call to sequence seq, with neighbours' tokens before and behind: `beside` of
 * each of two other sequences. */
hone_status hn_walk_call(hn_walk *w, int32_t seq, int32_t from, int32_t to, int32_t beside)
{
    int32_t k = 0, rows = 0;
    for (int32_t i = 0; i < beside; i++)
        w->batch[k++] =
            (hone_token){ w->ids[(7 * (from + i)) % w->n], hone_seq_length(w->s, seq + 1) + i, seq + 1, false };
    for (int32_t i = from; i < to; i++) {
        bool want = i + 1 == to ? compared(w, i) || to - from < 4 : w->all_rows || compared(w, i);
        want = want || (w->ask_here && w->here[i]);
        if (rows == w->room) want = false;
        rows += want;
        w->batch[k++] = (hone_token){ w->ids[i], i, seq, want };
    }
    for (int32_t i = 0; i < beside; i++)
        w->batch[k++] =
            (hone_token){ w->ids[(5 * (from + i)) % w->n], hone_seq_length(w->s, seq + 2) + i, seq + 2, false };
    return hn_walk_run(w, k);
}

/* Positions [from, to) one after the other, as generation does; every third through the batch. */
hone_status hn_walk_singles(hn_walk *w, int32_t seq, int32_t from, int32_t to)
{
    hone_status st = HONE_OK;
    for (int32_t i = from; i < to && st == HONE_OK; i++) {
        if (i % 3 == 2) {
            const hone_token t = { w->ids[i], i, seq, true };
            st = hone_run_batch(w->s, &t, 1, w->logits, w->err);
            if (st == HONE_OK) hn_walk_row(w, i, w->logits);
        } else {
            const float *x;
            st = hone_append(w->s, seq, &w->ids[i], 1, &x, w->err);
            if (st == HONE_OK) hn_walk_row(w, i, x);
        }
    }
    return st;
}

hone_status hn_walk_empty(hn_walk *w)
{
    hone_status st = HONE_OK;
    for (int32_t q = 0; q < HN_Q_SEQS && st == HONE_OK; q++)
        if (hone_seq_length(w->s, q) > 0) st = hone_seq_truncate(w->s, q, 0, w->err);
    return st;
}

/* ---- ways ------------------------------------------------------------------------------------------ */

static void hash_row(hn_walk *w, const float *x) { hn_sha256_add(&w->bits, x, (size_t)w->info.n_vocab * sizeof *x); }

/* The prompt in two calls, and a generation behind it: what is hashed. */
static hone_status as_measured(hn_walk *w)
{
    int32_t first = w->n < HN_WALK_FIRST ? w->n : HN_WALK_FIRST;
    const float *x;
    w->way = "appended at once";
    hone_status st = hone_append(w->s, 0, w->ids, first, &x, w->err);
    if (st != HONE_OK) return st;
    hn_walk_row(w, first - 1, x);
    hash_row(w, x);
    if (first < w->n) {
        st = hone_append(w->s, 0, w->ids + first, w->n - first, &x, w->err);
        if (st != HONE_OK) return st;
        hn_walk_row(w, w->n - 1, x);
        hash_row(w, x);
    }
    w->way = "generated";
    for (int32_t i = 0; i < w->n_more && st == HONE_OK; i++) {
        int32_t id = hn_scan_logits(x, w->info.n_vocab).best;
        w->ids[w->n + i] = id < 0 ? 0 : id;
        st = hone_append(w->s, 0, &w->ids[w->n + i], 1, &x, w->err);
        if (st == HONE_OK) hn_walk_row(w, w->n + i, x);
        if (st == HONE_OK && i < HASHED) hash_row(w, x);
    }
    return st;
}

/* Sequences of a session on the way of in_pieces and of those that go on from there. */
enum { OURS = 1, FORK, MIDDLE, DEEP, ANEW, N_BESIDE = HN_Q_SEQS - MIDDLE };

/* The generation behind FORK in batches of two to seven sequences, each time at another place in them. Of its
 * neighbours MIDDLE holds half of a long prompt, DEEP all but its end, and ANEW begins it: they are compared, too. The
 * others hold something else. */
static hone_status among_neighbours(hn_walk *w)
{
    hone_status st = HONE_OK;
    w->way = "generated beside neighbours";
    for (int32_t i = 0; i < w->n_more && st == HONE_OK; i++) {
        int32_t n = 2 + i % N_BESIDE, round = i / N_BESIDE, ours = (i + round) % n;
        for (int32_t k = 0; k < n; k++) {
            int32_t beside = MIDDLE + (k - (k > ours) + round / 2) % N_BESIDE;
            int32_t q = k == ours ? FORK : beside, pos = hone_seq_length(w->s, q);
            bool want = q <= ANEW;
            w->batch[k] = (hone_token){ w->ids[want ? pos : (q * 31 + pos) % w->n], pos, q, want };
        }
        st = hn_walk_run(w, n);
    }
    return st;
}

/* What OURS holds, for sessions that need not compute it again. */
static hone_status keep_deep(hn_walk *w)
{
    enum { LEAST = HN_Q_PIECE }; /* behind it */
    if (w->p->quick || w->n < HN_WALK_FAR_DOWN + LEAST) return HONE_OK;
    hone_status st = hone_seq_snapshot(w->s, OURS, &w->deep, w->err);
    if (st != HONE_E_NOMEM) return st;
    hn_walk_left_out(w, "other counts of threads far down: no memory for a snapshot");
    return HONE_OK;
}

/* Of a large model, drawn places in the piece that begins at `at`: tokens alone, of a fork. */
static hone_status drawn_here(hn_walk *w, int32_t at)
{
    int32_t from = at, end = at + HN_Q_PIECE < w->n ? at + HN_Q_PIECE : w->n, to;
    if (w->small || at == 0) return HONE_OK;
    while (from < end && !w->here[from]) from++;
    for (to = from; to < end && w->here[to]; to++) {}
    if (from == to) return HONE_OK;
    w->drawn = true;
    hone_status st = hone_seq_copy(w->s, FORK, OURS, w->err);
    if (st == HONE_OK && from > at) st = hn_walk_call(w, FORK, at, from, 0);
    w->way = "token by token";
    if (st == HONE_OK) st = hn_walk_singles(w, FORK, from, to);
    w->drawn = false;
    return st;
}

/* A snapshot that other sessions are tried with; without memory for it they are not. */
static hone_status keep_probe(hn_walk *w)
{
    hone_status st = hone_seq_snapshot(w->s, OURS, &w->probe, w->err);
    return st == HONE_E_NOMEM ? HONE_OK : st;
}

/* In chunks of 37, and from places of it on token by token; then the generation with neighbours. */
static hone_status in_pieces(hn_walk *w)
{
    enum { STRETCH = 38, HALF = 14 * HN_Q_PIECE /* attention over more than 512 is in parts */ };
    hone_status st = HONE_OK;
    int32_t last = (w->n - 1) / HN_Q_PIECE * HN_Q_PIECE;
    for (int32_t at = 0; at < w->n && st == HONE_OK; at += HN_Q_PIECE) {
        bool fork = !w->small && (at == 0 || at == 481 || at == 999 || at == last);
        if (at == HN_WALK_FAR_DOWN && w->small && st == HONE_OK) st = keep_deep(w);
        if (fork && at > 0 && st == HONE_OK) st = hone_seq_copy(w->s, FORK, OURS, w->err);
        if ((at == last || at == HALF) && st == HONE_OK)
            st = hone_seq_copy(w->s, at == last ? DEEP : MIDDLE, OURS, w->err);
        int32_t end = at + STRETCH < w->n ? at + STRETCH : w->n;
        w->way = "token by token";
        if (fork && st == HONE_OK) st = hn_walk_singles(w, FORK, at, at == 0 ? end / 2 : end);
        if (st == HONE_OK) st = drawn_here(w, at);
        w->way = "in chunks of 37";
        w->ask_here = true;
        if (st == HONE_OK) st = hn_walk_call(w, OURS, at, at + HN_Q_PIECE < w->n ? at + HN_Q_PIECE : w->n, 0);
        w->ask_here = false;
        if (at == 0 && st == HONE_OK) st = keep_probe(w);
    }
    if (st == HONE_OK) st = hone_seq_copy(w->s, FORK, OURS, w->err);
    return st == HONE_OK ? among_neighbours(w) : st;
}

/* Is this a place at which a token comes alone: near the beginning, near 512, from 1000 on, at both sides of edges of
 * pages, and at whatever every way is asked for? */
static bool alone(const hn_walk *w, int32_t pos)
{
    enum { BEGINNING = 100, NEAR = 500, FAR = 530, DEEP_FROM = 1000, PAGE = 64 };
    int32_t in_page = (pos + 2) % PAGE;
    return pos < BEGINNING || (pos >= NEAR && pos < FAR) || pos >= DEEP_FROM || in_page < 4 || compared(w, pos);
}

enum place { TOGETHER = 0, ALWAYS_ALONE, DRAWN };
static enum place place_of(const hn_walk *w, int32_t pos)
{
    return alone(w, pos) ? ALWAYS_ALONE : w->here[pos] ? DRAWN : TOGETHER;
}

/* All of the prompt; what lies between those places, and others that are drawn, in one call each, of a few tokens. */
static hone_status token_by_token(hn_walk *w)
{
    hone_status st = HONE_OK;
    w->way = "token by token";
    for (int32_t at = 0, to; at < w->n && st == HONE_OK; at = to) {
        const enum place is = place_of(w, at);
        for (to = at; to < w->n && place_of(w, to) == is; to++) {}
        w->drawn = is != ALWAYS_ALONE; /* how long a call between is hangs by what is drawn */
        st = is == TOGETHER ? hn_walk_call(w, 0, at, to, 0) : hn_walk_singles(w, 0, at, to);
    }
    w->drawn = false;
    return st;
}

/* ids [at, at + k) in one call to sequence 0; its first and its last row are looked at in any case, and of some calls
 * all of them. */
static hone_status crumb(hn_walk *w, int32_t at, int32_t k)
{
    const bool all = k % 4 == 1;
    for (int32_t i = 0; i < k; i++)
        w->batch[i] = (hone_token){ w->ids[at + i], at + i, 0, all || i == 0 || i + 1 == k || compared(w, at + i) };
    return hn_walk_run(w, k);
}

/* Calls of 1, 2, 3, … HN_Q_CRUMBS tokens, each count once: products of few columns, and every remainder of a panel of
 * them. Where the prompt ends it is begun again. Of counts that are large for the model only each eighth is asked. */
hone_status hn_walk_crumbs(hn_walk *w)
{
    enum { ALL_TO = 16, THEN = 8 };
    int32_t at = 0, all_to = w->small ? HN_Q_CRUMBS : w->p->quick ? 0 : ALL_TO;
    hone_status st = HONE_OK;
    for (int32_t k = all_to ? 1 : THEN; k <= HN_Q_CRUMBS && k <= w->n && st == HONE_OK; k += k < all_to ? 1 : THEN) {
        if (at + k > w->n) st = hone_seq_truncate(w->s, 0, at = 0, w->err);
        if (st == HONE_OK) st = crumb(w, at, k);
        at += k;
    }
    return st;
}

static hone_status in_crumbs(hn_walk *w)
{
    w->way = "in calls of 1 to 40 tokens";
    return hn_walk_crumbs(w);
}

/* Of the last call all rows are asked for, which token by token are, too: of a large model, whose prompt does not come
 * that far, a call of its first ids. */
static hone_status beside_others(hn_walk *w)
{
    enum { THEIRS = 4, FEW = 4, BEGINNING = 96 };
    /* rows of each call: no way else has these; then as many as there are */
    static const int32_t rows[] = { 37, 41, 56, 96, 44, 128, 47, 100, 48, 52, 132, 256, 72 };
    enum { CALLS = sizeof rows / sizeof *rows };
    hone_status st = HONE_OK;
    w->way = "beside neighbours";
    for (int32_t at = 0, i = 0; at < w->n && (w->small || i < FEW) && st == HONE_OK; i++) {
        int32_t to = i < CALLS ? at + rows[i] - 2 * THEIRS : w->n;
        if (to > w->n) to = w->n;
        w->all_rows = i >= CALLS;
        st = hn_walk_call(w, 4, at, to, THEIRS);
        at = to;
    }
    if (!w->small) {
        w->all_rows = true;
        if (st == HONE_OK) st = hone_seq_truncate(w->s, 4, 0, w->err);
        if (st == HONE_OK) st = hn_walk_call(w, 4, 0, w->n < BEGINNING ? w->n : BEGINNING, THEIRS);
    }
    w->all_rows = false;
    return st;
}

/* ---- back, and on ---------------------------------------------------------------------------------- */

/* Stops a call of ours after some layers; whoever opened the session may stop it at any time. */
typedef struct stopper {
    const hn_paths_params *p;
    int32_t n_layer; /* to be run */
    bool ours;       /* it was stopped for this */
    bool asked;      /* by the engine, ever */
} stopper;

static bool stop_there(void *arg)
{
    stopper *s = arg;
    s->asked = true;
    if (s->p->abort_fn && s->p->abort_fn(s->p->abort_arg)) return true;
    s->ours = s->n_layer-- <= 0;
    return s->ours;
}

/* call(), stopped before layer n_layer of all its chunks, and made again. */
hone_status hn_walk_call_again(hn_walk *w, int32_t seq, int32_t from, int32_t to, int32_t n_layer)
{
    stopper s = { .p = w->p, .n_layer = n_layer };
    hone_session_set_abort(w->s, stop_there, &s);
    hone_status st = hn_walk_call(w, seq, from, to, 0);
    hone_session_set_abort(w->s, w->p->abort_fn, w->p->abort_arg);
    if (st == HONE_OK && !s.asked && !hn_walk_over(w))
        hn_invalid(&w->out->verdict,
                   "a call of ids %d to %d of the long quality prompt asked nobody whether it should be stopped, %s; "
                   "the engine does not let itself be",
                   (int)from, (int)to, w->way);
    return st == HONE_E_INTERRUPTED && s.ours ? hn_walk_call(w, seq, from, to, 0) : st;
}

/* OURS, which holds all of the prompt, holds its first w->back positions. Where a window or a state is in the way it
 * begins anew, remembers the place, and comes back from near it. */
static hone_status cut(hn_walk *w)
{
    hone_status st = hone_seq_truncate(w->s, OURS, w->back, w->err);
    if (st != HONE_E_UNSUPPORTED) return st;
    hn_walk_left_out(w, "going far back: a window or a recurrent state is in the way; near, by a checkpoint");
    st = hone_seq_truncate(w->s, OURS, 0, w->err);
    if (st == HONE_OK) st = hn_walk_call(w, OURS, 0, w->back, 0);
    if (st == HONE_OK) st = hone_seq_checkpoint(w->s, OURS, w->err);
    if (st == HONE_OK) st = hn_walk_call(w, OURS, w->back, w->back + HN_WALK_STEP, 0);
    return st == HONE_OK ? hone_seq_truncate(w->s, OURS, w->back, w->err) : st;
}

/* OURS is forked at `at` in a page and goes on; then the fork, otherwise, in the page that was theirs; then OURS to
 * `to`, beyond it. */
static hone_status fork_and_go_on(hn_walk *w, int32_t at, int32_t to)
{
    w->way = "after a fork of it";
    hone_status st = hone_seq_copy(w->s, FORK, OURS, w->err);
    if (st == HONE_OK) st = hn_walk_call(w, OURS, at, at + HN_WALK_STEP, 0);
    for (int32_t i = 0; i < HN_WALK_STEP; i++)
        w->batch[i] = (hone_token){ w->ids[(3 * (at + i) + 1) % w->n], at + i, FORK, false };
    if (st == HONE_OK) st = hn_walk_run(w, HN_WALK_STEP);
    return st == HONE_OK ? hn_walk_call(w, OURS, at + HN_WALK_STEP, to, 0) : st;
}

/* The same ids asked for again, then of another sequence, which shares them; one more of them is run. */
static hone_status sync_again(hn_walk *w, int32_t n)
{
    const float *x = NULL;
    int32_t kept;
    w->way = "through hone_seq_sync";
    hone_status st = hone_seq_sync(w->s, OURS, w->ids, n, &kept, &x, w->err);
    if (st == HONE_OK) hn_walk_row(w, n - 1, x);
    if (st == HONE_OK) st = hone_seq_sync(w->s, ANEW, w->ids, n + 1, &kept, &x, w->err);
    if (st == HONE_OK) hn_walk_row(w, n, x);
    return st;
}

static hone_status restore(hn_walk *w, int32_t at)
{
    hone_snapshot *snap;
    w->way = "after a restore";
    hone_status st = hone_seq_snapshot(w->s, OURS, &snap, w->err);
    if (st == HONE_E_NOMEM) {
        hn_walk_left_out(w, "snapshots: no memory for one");
        return HONE_OK;
    }
    if (st == HONE_OK) st = hone_seq_truncate(w->s, OURS, 0, w->err);
    if (st == HONE_OK) st = hone_seq_restore(w->s, OURS, snap, w->err);
    hone_snapshot_free(snap);
    return st == HONE_OK ? hn_walk_singles(w, OURS, at, at + 1) : st;
}

/* As where drafts are refused: one to MOST tokens behind `at` come, go, and come again. A window or a state may be in
 * the way of that. */
static hone_status back_by_few(hn_walk *w, int32_t at)
{
    enum { MOST = 4 };
    hone_status st = HONE_OK;
    w->way = "behind a cut of a few tokens";
    w->drawn = true; /* of which earlier programs had none */
    for (int32_t k = 1; k <= MOST && st == HONE_OK && !hn_walk_over(w); k++) {
        int32_t kept = at;
        st = hn_walk_singles(w, OURS, at, at + k);
        if (st != HONE_OK) break;
        st = k % 2 ? hone_seq_truncate(w->s, OURS, at, w->err) : hone_seq_rewind(w->s, OURS, at, &kept, w->err);
        if (st == HONE_OK && kept != at)
            hn_invalid(&w->out->verdict, "hone_seq_rewind: to %d of %d positions, %d was asked for", (int)kept,
                       (int)(at + k), (int)at);
    }
    w->drawn = false;
    return st == HONE_E_UNSUPPORTED ? HONE_OK : st;
}

/* `each` tokens of OURS from `at` and of ANEW from `other` in turn. */
static hone_status in_turn(hn_walk *w, int32_t at, int32_t other, int32_t each)
{
    for (int32_t i = 0; i < each; i++) {
        w->batch[2 * i] = (hone_token){ w->ids[at + i], at + i, OURS, compared(w, at + i) };
        w->batch[2 * i + 1] = (hone_token){ w->ids[other + i], other + i, ANEW, compared(w, other + i) };
    }
    return hn_walk_run(w, 2 * each);
}

/* Both in turn: fewer rows than a panel has, and more. */
static hone_status interleaved(hn_walk *w, int32_t at, int32_t other)
{
    enum { FEW = HN_WALK_STEP + 4, MANY = 36 };
    w->way = "interleaved with another sequence";
    hone_status st = in_turn(w, at, other, FEW);
    bool room = (at > other ? at : other) + FEW + MANY < w->n;
    return st == HONE_OK && room ? in_turn(w, at + FEW, other + FEW, MANY) : st;
}

/* Two tokens of OURS, one before and one behind a chunk of FORK, which begins the prompt. */
static hone_status beside_a_chunk(hn_walk *w, int32_t at)
{
    enum { THEIRS = 2 * HN_WALK_STEP };
    hone_status st = hone_seq_truncate(w->s, FORK, 0, w->err);
    w->way = "beside a chunk of a prompt";
    for (int32_t half = 0; half < 2 && st == HONE_OK; half++) {
        const hone_token one = { w->ids[at + half], at + half, OURS, true };
        int32_t k = 0, from = half * THEIRS;
        if (half == 0) w->batch[k++] = one;
        for (int32_t i = from; i < from + THEIRS; i++)
            w->batch[k++] = (hone_token){ w->ids[i], i, FORK, compared(w, i) };
        if (half == 1) w->batch[k++] = one;
        st = hn_walk_run(w, k);
    }
    return st;
}

/* Another prefix, which parts from what DEEP holds in the middle: its end in `tail`, what the last of it says in *bits.
 * Kept, where there is memory for it. */
enum { TAIL = 5 };
static hone_status keep_another(hn_walk *w, int32_t middle, int32_t *tail, uint64_t *bits)
{
    const float *x = NULL;
    hone_status st = hone_seq_copy(w->s, FORK, DEEP, w->err);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, FORK, middle, w->err);
    if (st != HONE_OK) return st;
    for (int32_t i = 0; i < TAIL; i++) tail[i] = w->ids[(middle + 3 * i + 1) % w->n];
    st = hone_append(w->s, FORK, tail, TAIL, &x, w->err);
    if (st == HONE_OK) *bits = hn_bits_hash(x, w->info.n_vocab);
    return st == HONE_OK ? hone_seq_keep(w->s, FORK, w->err) : st;
}

/* FORK goes on from what was kept of it. */
static hone_status match_another(hn_walk *w, int32_t middle, const int32_t *tail, uint64_t bits)
{
    int32_t n = middle + TAIL, kept = 0;
    const float *x = NULL;
    int32_t *ids = malloc((size_t)n * sizeof *ids);
    if (!ids) return HN_FAIL(w->err, HONE_E_NOMEM, "%d ids", n);
    memcpy(ids, w->ids, (size_t)middle * sizeof *ids);
    memcpy(ids + middle, tail, TAIL * sizeof *ids);
    hone_status st = hone_seq_match(w->s, FORK, ids, n - 1, &kept, w->err);
    if (st == HONE_OK) st = hone_append(w->s, FORK, ids + kept, n - kept, &x, w->err);
    if (st == HONE_OK && hn_bits_hash(x, w->info.n_vocab) != bits)
        hn_invalid(&w->out->verdict,
                   "one text, two answers: from the second of two kept prefixes, %d of its %d tokens, others than "
                   "before it was kept; the engine is wrong in one of the two",
                   (int)kept, (int)n);
    free(ids);
    return st;
}

/* DEEP holds `to` positions, which are kept: again, from the one and from the other of two prefixes. A window or a
 * state is in the way of a fork in the middle. */
static hone_status from_two(hn_walk *w, int32_t to)
{
    enum { BEHIND = 2 };
    const int32_t middle = to / 2;
    int32_t kept = 0, tail[TAIL];
    uint64_t bits = 0;
    if (hn_walk_over(w) || middle < 1) return HONE_OK;
    w->drawn = true; /* of which earlier programs had none */
    hone_status st = keep_another(w, middle, tail, &bits);
    if (st == HONE_OK) st = hn_walk_empty(w);
    if (st == HONE_OK) st = match_another(w, middle, tail, bits);
    w->way = "from one of two kept prefixes";
    if (st == HONE_OK) st = hone_seq_match(w->s, DEEP, w->ids, to, &kept, w->err);
    if (st == HONE_OK && kept < to - BEHIND) st = hn_walk_call(w, DEEP, kept, to - BEHIND, 0);
    if (st == HONE_OK) st = hn_walk_singles(w, DEEP, hone_seq_length(w->s, DEEP), to);
    w->drawn = false;
    return st == HONE_E_UNSUPPORTED || st == HONE_E_NOMEM ? HONE_OK : st;
}

/* What is kept of one scope is not there for another. */
static hone_status of_another_scope(hn_walk *w, int32_t to)
{
    enum { OTHER = 9 };
    int32_t kept = 0;
    hone_status st = hone_seq_set_scope(w->s, FORK, OTHER, w->err);
    if (st == HONE_OK) st = hone_seq_match(w->s, FORK, w->ids, to, &kept, w->err);
    if (st == HONE_OK && kept > 0)
        hn_invalid(&w->out->verdict, "a sequence of a scope of its own shares %d positions with another's", (int)kept);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, FORK, 0, w->err);
    return st == HONE_OK ? hone_seq_set_scope(w->s, FORK, 0, w->err) : st;
}

/* What OURS holds is kept, no sequence holds it any more, and another one goes on from it. A model whose states nobody
 * keeps begins anew. Then once more, beside another prefix, which parts from it in the middle. */
static hone_status from_kept(hn_walk *w)
{
    enum { BEHIND = 3 };
    int32_t to = hone_seq_length(w->s, OURS), kept = 0;
    w->way = "from a kept prefix";
    hone_status st = hone_seq_keep(w->s, OURS, w->err);
    if (st == HONE_E_NOMEM) {
        hn_walk_left_out(w, "kept prefixes: no memory for one");
        return HONE_OK;
    }
    if (st == HONE_OK) st = hn_walk_empty(w);
    if (st == HONE_OK) st = of_another_scope(w, to);
    if (st == HONE_OK) st = hone_seq_match(w->s, DEEP, w->ids, to, &kept, w->err);
    if (st == HONE_OK && kept < to - BEHIND) st = hn_walk_call(w, DEEP, kept, to - BEHIND, 0);
    if (st == HONE_OK) st = hn_walk_singles(w, DEEP, hone_seq_length(w->s, DEEP), to);
    if (st == HONE_OK) st = from_two(w, to);
    if (st == HONE_OK) st = hn_walk_prefixes_of_others(w, FORK, to);
    if (st == HONE_OK && !hn_walk_over(w)) st = hn_walk_other_ends(w, FORK);
    if (st == HONE_OK && !hn_walk_over(w)) st = hn_walk_old_places(w, FORK, MIDDLE);
    if (st == HONE_OK && !hn_walk_over(w)) st = hn_walk_kept_page(w, FORK, MIDDLE);
    hone_session_drop_prefixes(w->s); /* the ways behind this one find the session as if it had not been */
    return st;
}

/* Cut to the end of a page, forked there, and both go on. Where nothing goes far back: the first page, computed for
 * that. */
static hone_status at_an_edge(hn_walk *w)
{
    enum { PAGE = 64, FAR = 7 * PAGE, FEW = 3, OTHER = MIDDLE };
    const int32_t edge = w->back == BACK ? FAR : PAGE;
    hone_status st =
        w->back == BACK ? hone_seq_copy(w->s, FORK, OURS, w->err) : hone_seq_truncate(w->s, FORK, 0, w->err);
    w->drawn = true; /* of which earlier programs had none */
    w->way = "behind the end of a page";
    if (st == HONE_OK && w->back == BACK) st = hone_seq_truncate(w->s, FORK, edge, w->err);
    if (st == HONE_OK && w->back != BACK) st = hn_walk_call(w, FORK, 0, edge, 0);
    if (st == HONE_OK) st = hn_walk_singles(w, FORK, edge, edge + FEW);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, FORK, edge, w->err);
    if (st == HONE_OK) st = hone_seq_copy(w->s, OTHER, FORK, w->err);
    if (st == HONE_OK) st = hn_walk_call(w, OTHER, edge, edge + FEW, 0);
    if (st == HONE_OK) st = hn_walk_singles(w, FORK, edge, edge + FEW);
    if (st == HONE_OK) st = hn_walk_singles(w, OTHER, edge + FEW, edge + 2 * FEW);
    w->drawn = false;
    return st == HONE_E_UNSUPPORTED ? HONE_OK : st;
}

/* Behind in_pieces, in its session: sequences that are cut, forked, restored, stopped, kept, and go on. */
static hone_status back_and_on(hn_walk *w)
{
    int32_t at = w->back, far = at + 5 * HN_WALK_STEP;
    if (at + HN_WALK_BACK_SPAN > w->n) {
        hn_walk_left_out(w, "sequences that go back: the prompt is too short");
        return HONE_OK;
    }
    w->out->n_ways++;
    hone_status st = at_an_edge(w);
    if (st == HONE_OK && w->back == BACK) st = hn_walk_forks_that_part(w, OURS, FORK, MIDDLE);
    w->way = "behind a cut";
    if (st == HONE_OK) st = cut(w);
    if (st == HONE_OK) st = hn_walk_call(w, OURS, at, at + HN_WALK_STEP, 0);
    if (st == HONE_OK) st = fork_and_go_on(w, at + HN_WALK_STEP, far);
    if (st == HONE_OK) st = sync_again(w, far);
    if (st == HONE_OK) st = restore(w, far);
    if (st == HONE_OK) st = back_by_few(w, hone_seq_length(w->s, OURS));
    if (st != HONE_OK || hn_walk_over(w)) return st;
    w->way = "after a call that was stopped";
    far = hone_seq_length(w->s, OURS);
    if (st == HONE_OK) st = hn_walk_call_again(w, OURS, far, far + HN_WALK_STEP, (w->info.n_layer + 1) / 2);
    if (st == HONE_OK) st = interleaved(w, far + HN_WALK_STEP, hone_seq_length(w->s, ANEW));
    if (st == HONE_OK) st = beside_a_chunk(w, hone_seq_length(w->s, OURS));
    return st == HONE_OK ? from_kept(w) : st;
}

static hone_status on_the_same(hn_walk *w, hone_status (*go)(hn_walk *w))
{
    hone_status st = hn_walk_empty(w);
    w->out->n_ways++;
    return st == HONE_OK ? go(w) : st;
}

/* ---- all of it ------------------------------------------------------------------------------------------ */

static hone_status begin(hn_walk *w, bool from_text)
{
    hone_sequence_cost cost = { 0 };
    hone_model_get_info(w->p->m, &w->info);
    bool far = w->info.n_window > HN_Q_LONG - HASHED && w->info.n_window < WINDOW_MOST;
    w->small = w->info.bytes_per_token <= SMALL_BYTES;
    w->n = w->p->quick ? HN_Q_LONG_QUICK : far ? w->info.n_window + 2 * HN_Q_PIECE : HN_Q_LONG;
    w->n_more = w->small && !w->p->quick ? HN_Q_MORE : HASHED;
    hone_status st = hone_model_sequence_cost(w->p->m, w->n, HONE_CACHE_F16, &cost, w->err);
    if (st != HONE_OK) return st;
    w->windows = cost.n_window > 0;
    w->back = w->p->quick || cost.n_window || cost.n_state ? BACK_NEAR : BACK;
    w->room = (size_t)ROOM * (size_t)w->info.n_vocab > 16u << 20 ? HN_WALK_ROOM_WIDE : ROOM;
    size_t n = (size_t)w->n + (size_t)w->n_more;
    w->ids = calloc(n, sizeof *w->ids);
    w->seen = calloc(n, sizeof *w->seen);
    w->batch = calloc(n + HN_Q_SEQS * HN_Q_PIECE, sizeof *w->batch);
    w->here = calloc(n, 1);
    w->out->draw = w->p->draw;
    w->logits = calloc((size_t)w->room * (size_t)w->info.n_vocab, sizeof *w->logits);
    hn_sha256_init(&w->bits);
    if (!w->ids || !w->seen || !w->batch || !w->logits || !w->here)
        return HN_FAIL(w->err, HONE_E_NOMEM, "the long quality prompt, %zu ids", n);
    st = hn_q_long_ids(w->ids, &w->n, w->p->m, from_text, w->err);
    if (w->n < BACK + HN_WALK_BACK_SPAN) w->back = BACK_NEAR;
    hn_walk_draw_places(w);
    if (w->p->quick)
        hn_walk_left_out(
            w, w->small ? "positions beyond 112, calls of more tokens, token by token beyond a few, other counts "
                          "of threads, plain weights, levels"
                        : "positions beyond 112, token by token beyond a few, batches of 10 to 20 sequences but "
                          "of 12, 16 and 20, two sessions at once, other counts of threads, plain weights, levels");
    else if (!w->small)
        hn_walk_left_out(w, "large model: token by token but for stretches around 0, 512, 1024 and the end, and six "
                            "drawn places; other levels; "
                            "calls of 17 to 39 tokens but 24 and 32; "
                            "other counts of threads and plain weights beyond 82 positions; more than 5 chunks of 64");
    else
        hn_walk_left_out(
            w, "tokens alone between 100 and 1000 at places that were not drawn; more than 18 chunks of 64; other "
               "counts of threads "
               "between 600 and 999 positions; scalar kernels, where there are others: positions beyond 40, calls of "
               "other counts than 1 and 32");
    if (w->info.n_window >= w->n) hn_walk_left_out(w, "positions beyond the sliding window");
    if (w->n < HN_WALK_CACHE_CTX)
        hn_walk_left_out(w, "two sessions at once, other types of cache: the prompt is too short");
    if (!w->p->quick) {
        snprintf(w->out->beyond, sizeof w->out->beyond, "positions beyond %d",
                 (int)(w->small && w->n + w->n_more < HN_Q_DEEP ? HN_Q_DEEP : w->n + w->n_more));
        hn_walk_left_out(w, w->out->beyond);
    }
    if (w->p->adapted) hn_walk_left_out(w, "requests of a scheduler: they bring their adapters themselves");
    if (!w->p->quick && w->p->packed && w->p->adapted)
        hn_walk_left_out(w, "plain weights: adapters go with the packed ones");
    w->out->n_never = w->out->n_left;
    w->out->n_long = w->n;
    return st;
}

/* ---- other answers than logits ------------------------------------------------------------------------- */

/* Texts as vectors: all together, and, where they are several, one by one, which must be the same; *h goes on by
 * them. */
static hone_status embed_as(hn_walk *w, const hone_text_ids *t, int32_t n, const hone_embed_params *p, uint64_t *h)
{
    const size_t width = (size_t)hone_embed_width(w->p->m, p->pooling, NULL);
    size_t rows = 0, at = 0;
    for (int32_t i = 0; i < n; i++) rows += p->pooling == HONE_POOL_NONE ? (size_t)t[i].n : 1;
    float *both = calloc(2 * rows * width + 1, sizeof *both), *alone = both + rows * width;
    if (!both) return HN_FAIL(w->err, HONE_E_NOMEM, "%zu vectors", 2 * rows);
    hone_status st = hone_embed(w->s, t, n, p, both, w->err);
    for (int32_t i = 0; i < n && n > 1 && st == HONE_OK; i++) {
        st = hone_embed(w->s, &t[i], 1, p, alone + at * width, w->err);
        at += p->pooling == HONE_POOL_NONE ? (size_t)t[i].n : 1;
    }
    if (st == HONE_OK && n > 1 && memcmp(both, alone, rows * width * sizeof *both) != 0)
        hn_invalid(&w->out->verdict,
                   "one text, two vectors: %s beside others than alone; the engine is wrong in one "
                   "of the two",
                   w->way);
    uint64_t bits = hn_bits_hash(both, (int64_t)(rows * width));
    *h = hn_fnv1a(*h, &bits, sizeof bits);
    free(both);
    return st;
}

enum { EMBED_TEXTS = 3 };
typedef struct embed_question {
    hone_pooling pooling;
    bool plain;
    int32_t n[EMBED_TEXTS]; /* ids of each text; 0: there is none */
} embed_question;

static hone_status embed_all(hn_walk *w, const embed_question *asked, size_t n_asked, hn_outer_part part)
{
    uint64_t h = HN_FNV_INIT;
    hone_status st = HONE_OK;
    for (size_t i = 0; i < n_asked && st == HONE_OK; i++) {
        const hone_embed_params p = { .pooling = asked[i].pooling, .plain = asked[i].plain };
        hone_text_ids t[EMBED_TEXTS];
        int32_t n = 0;
        for (int32_t at = 0; n < EMBED_TEXTS && asked[i].n[n] && at + asked[i].n[n] <= w->n; n++) {
            t[n] = (hone_text_ids){ w->ids + at, asked[i].n[n] };
            at += asked[i].n[n];
        }
        if (n) st = embed_as(w, t, n, &p, &h);
    }
    if (st == HONE_OK) hn_outer_set(&w->out->outer, part, h);
    return st;
}

hone_status hn_walk_ask_around(hn_walk *w, hone_error *err)
{
    uint64_t h = HN_FNV_INIT;
    hone_status st = w->p->numbers ? w->p->numbers(&h, err) : HONE_OK;
    if (st == HONE_OK && w->p->numbers) hn_outer_set(&w->out->outer, HN_OUTER_NUMBERS, h);
    return st == HONE_OK ? hn_outer_ask(&w->out->outer, w->p->m, w->p->shared ? w->p->draw : 0, err) : st;
}

/* Of lengths that are drawn by a number which others draw by, too: one of them is nearly all that there is. */
static hone_status of_drawn_lengths(hn_walk *w)
{
    enum { TEXTS = 3, LEFT = 20 };
    static const hone_pooling poolings[TEXTS] = { HONE_POOL_MEAN, HONE_POOL_MEAN, HONE_POOL_LAST };
    uint64_t h = HN_FNV_INIT;
    hone_status st = HONE_OK;
    if (!w->p->shared || w->n < 2 * LEFT) return HONE_OK;
    for (uint64_t i = 0; i < TEXTS && st == HONE_OK; i++) {
        const uint64_t drawn = hn_rand64(w->p->draw, 0x6C656E67u + i);
        const int32_t n = i ? 2 + (int32_t)(drawn % (uint64_t)(w->n - 1)) : w->n - (int32_t)(drawn % LEFT);
        const hone_embed_params p = { .pooling = poolings[i] };
        st = embed_as(w, (hone_text_ids[]){ { w->ids + w->n - n, n } }, 1, &p, &h);
    }
    if (st == HONE_OK) hn_outer_set_drawn(&w->out->outer, HN_OUTER_LENGTHS, h, w->p->draw);
    return st;
}

static const embed_question far_mean = { HONE_POOL_MEAN, false, { 300 } };

hone_status hn_walk_embed_again(hn_walk *w)
{
    hn_outer before = w->out->outer;
    if (!before.hash[HN_OUTER_MEANS][0]) return HONE_OK;
    hone_status st = hone_seq_truncate(w->s, 0, 0, w->err); /* texts take an empty sequence */
    if (st == HONE_OK) st = embed_all(w, &far_mean, 1, HN_OUTER_MEANS);
    if (st == HONE_OK && strcmp(before.hash[HN_OUTER_MEANS], w->out->outer.hash[HN_OUTER_MEANS]) != 0)
        hn_invalid(&w->out->verdict,
                   "one text, two vectors: of %d ids as an embedding, %s, and in one chunk; the engine is wrong in one "
                   "of the two",
                   (int)far_mean.n[0], w->way);
    w->out->outer = before;
    return st;
}

static hone_status embedded(hn_walk *w)
{
    static const embed_question asked[] = { { HONE_POOL_NONE, false, { 9, 16, 65 } },
                                            { HONE_POOL_MEAN, false, { 1, 2, 7 } },
                                            { HONE_POOL_CLS, false, { 3, 5, 1 } },
                                            { HONE_POOL_LAST, false, { 9, 1, 4 } } };
    static const embed_question longer[] = { { HONE_POOL_MEAN, false, { 90 } },
                                             { HONE_POOL_MEAN, true, { 9, 2 } },
                                             { HONE_POOL_CLS, true, { 3 } },
                                             { HONE_POOL_LAST, true, { 70 } } };
    w->way = "as an embedding,";
    hone_status st = embed_all(w, asked, sizeof asked / sizeof *asked, HN_OUTER_EMBEDDINGS);
    if (st == HONE_OK) st = embed_all(w, longer, sizeof longer / sizeof *longer, HN_OUTER_VECTORS);
    if (st == HONE_OK && w->small) st = embed_all(w, &far_mean, 1, HN_OUTER_MEANS);
    if (st == HONE_OK && w->small) st = of_drawn_lengths(w);
    if (st != HONE_E_UNSUPPORTED && st != HONE_E_ARG) return st;
    hn_walk_left_out(w, "embeddings");
    return HONE_OK;
}

static void id_bytes(hn_sha256 *s, int32_t id)
{
    uint32_t v = (uint32_t)id;
    const unsigned char b[4] = { (unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
                                 (unsigned char)(v >> 24) };
    hn_sha256_add(s, b, 4);
}

static void make_hash(hn_walk *w, const hn_q_prompts *prompts, const hn_quality *eight)
{
    unsigned char t[32], l[32];
    hn_sha256 s;
    hn_sha256_init(&s);
    for (int p = 0; p < HN_Q_PROMPTS; p++)
        for (int32_t i = 0; i < prompts->n[p]; i++) id_bytes(&s, prompts->ids[p][i]);
    hn_sha256_add(&s, eight->answers, sizeof eight->answers);
    for (int32_t i = 0; i < w->n + HASHED; i++) id_bytes(&s, w->ids[i]);
    hn_sha256_end(&s, t);
    hn_sha256_add(&w->bits, eight->logits, sizeof eight->logits);
    hn_sha256_end(&w->bits, l);
    snprintf(w->out->hash, sizeof w->out->hash, "%s-%02x%02x%02x%02x-%02x%02x%02x%02x", w->p->quick ? "q2q" : "q2",
             t[0], t[1], t[2], t[3], l[0], l[1], l[2], l[3]);
}

static hone_status walk_all(hn_walk *w)
{
    const hn_q_way base = { .n_ctx = w->n + w->n_more, .n_seq = HN_Q_SEQS };
    hone_status st = hn_walk_with(w, "appended at once", &base, as_measured);
    if (st == HONE_OK && !hn_walk_over(w)) st = on_the_same(w, in_pieces);
    if (st == HONE_OK && !hn_walk_over(w)) st = back_and_on(w);
    if (st == HONE_OK && !hn_walk_over(w) && w->small && !w->p->quick) st = on_the_same(w, token_by_token);
    if (st == HONE_OK && !hn_walk_over(w)) st = on_the_same(w, in_crumbs);
    if (st == HONE_OK && !hn_walk_over(w) && !w->p->quick) st = on_the_same(w, beside_others);
    if (st == HONE_OK && !hn_walk_over(w) && !w->p->quick) st = on_the_same(w, hn_walk_in_drawn_batches);
    if (st == HONE_OK && !hn_walk_over(w) && hone_session_adapters_hash(w->s))
        st = on_the_same(w, hn_walk_mixed_adapters);
    if (st == HONE_OK && !hn_walk_over(w)) st = on_the_same(w, embedded);
    if (st == HONE_OK && !hn_walk_over(w) && (w->small || !w->p->quick))
        st = on_the_same(w, hn_walk_through_a_scheduler);
    if (st == HONE_OK && !hn_walk_over(w) && w->small && !w->p->quick) st = on_the_same(w, hn_walk_in_a_crowd);
    if (st == HONE_OK && !hn_walk_over(w)) st = hn_walk_among_many(w);
    if (st == HONE_OK && !hn_walk_over(w) && (w->small || !w->p->quick)) st = hn_walk_in_two_sessions(w);
    if (st == HONE_OK && !hn_walk_over(w)) st = hn_walk_other_sessions(w, &base);
    w->wide = false;
    if (st == HONE_OK && !hn_walk_over(w) && w->small && !w->p->quick) st = hn_walk_far_beyond(w);
    if (st == HONE_OK && !hn_walk_over(w) && w->small && !w->p->quick) st = hn_walk_on_caches(w);
    return st;
}

hone_status hn_paths_run(hn_paths *out, const hn_paths_params *p, const hn_q_prompts *prompts, const hn_quality *eight,
                         hone_error *err)
{
    hone_error own;
    hn_walk w = { .out = out, .p = p, .err = err ? err : &own, .attempt = 1 };
    memset(out, 0, sizeof *out);
    hone_status st = begin(&w, prompts->from_text);
    if (st == HONE_OK) st = walk_all(&w);
    if (st == HONE_OK && !hn_walk_over(&w) && !w.outer_asked) st = hn_walk_ask_around(&w, w.err);
    if (st == HONE_E_NUMERIC) {
        hn_invalid(&out->verdict, "the long quality prompt, %s: %s", w.way ? w.way : "", w.err->message);
        st = HONE_OK;
    } else if (st == HONE_OK && !hn_walk_over(&w)) { /* answers that contradict each other have no hash */
        if (eight->n_distinct > 0) make_hash(&w, prompts, eight);
        out->verdict.state = HN_VALID;
    }
    name_the_draw(out, p->quick);
    if (out->verdict.state == HN_VALID && eight->verdict.state == HN_INVALID) out->verdict = eight->verdict;
    out->widest = w.widest;
    free(w.ids);
    free(w.seen);
    free(w.here);
    free(w.batch);
    free(w.logits);
    hone_snapshot_free(w.deep);
    hone_snapshot_free(w.probe);
    return st;
}
