/* Ways that need adapters: sequences with and without beside each other, prefixes of the one and the other, other
 * scales. Owns which these are. */
#include "lab/quality/paths_walk.h"

#include "lab/quality/proof.h"

#include <stdlib.h>

enum { OURS = 1, FORK }; /* sequences: as asked, and without adapters */

/* The first k tokens of the batch, all of which want logits: rows of FORK, which has no adapters, are compared with
 * each other (plain [w->n]). */
static hone_status run_mixed(hn_walk *w, int32_t k, hn_walk_seen *plain)
{
    hn_walk_seen *ours = w->seen;
    hone_status st = hone_run_batch(w->s, w->batch, k, w->logits, w->err);
    for (int32_t i = 0; i < k && st == HONE_OK; i++) {
        w->seen = w->batch[i].seq == FORK ? plain : ours;
        hn_walk_row(w, w->batch[i].pos, w->logits + (size_t)i * (size_t)w->info.n_vocab);
    }
    w->seen = ours;
    return st;
}

static int32_t push_run(hn_walk *w, int32_t k, int32_t seq, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++) w->batch[k++] = (hone_token){ w->ids[i], i, seq, true };
    return k;
}

/* OURS as asked, and FORK without adapters, in one batch: as runs of each, in turn, and one row of each. FORK alone
 * comes first. */
static hone_status in_mixed_company(hn_walk *w, hn_walk_seen *plain)
{
    enum { ALL = 30, RUN = 7, TURNS = 4, ONES = 4 };
    w->way = "without adapters";
    hone_status st = hone_seq_set_adapters(w->s, FORK, NULL, NULL, 0, w->err);
    if (st == HONE_OK) st = run_mixed(w, push_run(w, 0, FORK, 0, ALL), plain);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, FORK, 0, w->err);
    w->way = "beside a sequence of other adapters";
    int32_t k = 0, at = 2 * RUN;
    for (int32_t i = 0; i < 2; i++) {
        k = push_run(w, k, i ? FORK : OURS, i * RUN, (i + 1) * RUN);
        k = push_run(w, k, i ? OURS : FORK, i * RUN, (i + 1) * RUN);
    }
    for (int32_t i = 0; i < TURNS; i++, at++) {
        k = push_run(w, k, FORK, at, at + 1);
        k = push_run(w, k, OURS, at, at + 1);
    }
    if (st == HONE_OK) st = run_mixed(w, k, plain);
    for (int32_t i = 0; i < ONES && st == HONE_OK; i++, at++) {
        k = push_run(w, 0, i % 2 ? FORK : OURS, at, at + 1);
        st = run_mixed(w, push_run(w, k, i % 2 ? OURS : FORK, at, at + 1), plain);
    }
    if (st == HONE_OK) st = hone_seq_truncate(w->s, FORK, 0, w->err);
    return st == HONE_OK ? hone_seq_copy(w->s, FORK, OURS, w->err) : st; /* it has them again */
}

/* What was computed with adapters is not there for a sequence without, nor the other way round. */
static hone_status prefixes_of_other_adapters(hn_walk *w)
{
    enum { TEXT = 100 };
    const int32_t n = w->n < TEXT ? w->n : TEXT;
    hone_status st = HONE_OK;
    for (int32_t with = 0; with < 2 && st == HONE_OK; with++) { /* who looks */
        int32_t kept = 0;
        const int32_t of = with ? FORK : OURS, looks = with ? OURS : FORK;
        st = hn_walk_empty(w);
        if (st == HONE_OK) st = hone_seq_set_adapters(w->s, FORK, NULL, NULL, 0, w->err);
        for (int32_t i = 0; i < n; i++) w->batch[i] = (hone_token){ w->ids[i], i, of, false };
        if (st == HONE_OK) st = hone_run_batch(w->s, w->batch, n, w->logits, w->err);
        if (st == HONE_OK) st = hone_seq_keep(w->s, of, w->err);
        if (st == HONE_OK) st = hone_seq_match(w->s, looks, w->ids, n, &kept, w->err);
        if (st == HONE_OK && kept > 0)
            hn_invalid(&w->out->verdict, "a sequence %s adapters shares %d positions with one that has %s",
                       with ? "with" : "without", (int)kept, with ? "none" : "some");
        hone_session_drop_prefixes(w->s);
    }
    if (st == HONE_E_NOMEM) st = HONE_OK; /* nothing is kept where there is no room */
    if (st == HONE_OK) st = hn_walk_empty(w);
    return st == HONE_OK ? hone_seq_copy(w->s, FORK, OURS, w->err) : st; /* it has them again */
}

enum { MORE_TEXT = 24 }; /* rows with one adapter more */

/* FORK with one adapter more, whose rows alone had these bits, in turn with OURS: as runs of each, then one row of
 * each. */
static hone_status beside_fewer(hn_walk *w, const uint64_t *alone, int32_t n)
{
    enum { RUN = 8 };
    int32_t k = 0;
    hone_status st = hone_seq_truncate(w->s, FORK, 0, w->err);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, OURS, 0, w->err);
    for (int32_t at = 0; at < n; at += at < n - RUN ? RUN : 1) {
        const int32_t to = at < n - RUN ? at + RUN : at + 1;
        k = push_run(w, k, at / RUN % 2 ? FORK : OURS, at, to);
        k = push_run(w, k, at / RUN % 2 ? OURS : FORK, at, to);
    }
    if (st == HONE_OK) st = hone_run_batch(w->s, w->batch, k, w->logits, w->err);
    w->way = "beside a sequence with one adapter more";
    w->drawn = true; /* of which earlier programs had none */
    for (int32_t i = 0; i < k && st == HONE_OK && !hn_walk_over(w); i++) {
        const float *x = w->logits + (size_t)i * (size_t)w->info.n_vocab;
        const int32_t pos = w->batch[i].pos;
        if (w->batch[i].seq == OURS) hn_walk_row(w, pos, x);
        else if (hn_bits_hash(x, w->info.n_vocab) != alone[pos])
            hn_invalid(
                &w->out->verdict,
                "one prompt, two answers: the logits behind position %d, with one adapter more, are others beside "
                "a sequence with fewer than alone; the engine is wrong in one of the two",
                (int)pos);
    }
    w->drawn = false;
    return st;
}

/* One adapter more, at scales that are drawn, where it may be by a number that others draw by, too. */
static hone_status at_other_scales(hn_walk *w)
{
    uint64_t h = HN_FNV_INIT, bits[MORE_TEXT];
    const int32_t n = w->n < MORE_TEXT ? w->n : MORE_TEXT;
    if (!w->p->scale_adapters) return HONE_OK;
    hone_status st = w->p->scale_adapters(w->p->arg, w->s, FORK, w->p->draw, w->err);
    if (st == HONE_OK) st = hone_run_batch(w->s, w->batch, push_run(w, 0, FORK, 0, n), w->logits, w->err);
    for (int32_t i = 0; i < n && st == HONE_OK; i++) {
        bits[i] = hn_bits_hash(w->logits + (size_t)i * (size_t)w->info.n_vocab, w->info.n_vocab);
        h = hn_fnv1a(h, &bits[i], sizeof bits[i]);
    }
    if (st == HONE_OK && w->p->shared) hn_outer_set_drawn(&w->out->outer, HN_OUTER_ADAPTED, h, w->p->draw);
    if (st == HONE_OK && w->room >= 2 * MORE_TEXT) st = beside_fewer(w, bits, n);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, OURS, 0, w->err);
    if (st == HONE_OK) st = hone_seq_truncate(w->s, FORK, 0, w->err);
    return st == HONE_OK ? hone_seq_copy(w->s, FORK, OURS, w->err) : st; /* as they were */
}

hone_status hn_walk_mixed_adapters(hn_walk *w)
{
    enum { LEAST = 64 };
    if (w->n < LEAST || w->room < LEAST) return HONE_OK;
    hn_walk_seen *plain = calloc((size_t)w->n, sizeof *plain);
    if (!plain) return HN_FAIL(w->err, HONE_E_NOMEM, "rows without adapters");
    hone_status st = in_mixed_company(w, plain);
    free(plain);
    if (st == HONE_OK && !hn_walk_over(w)) st = prefixes_of_other_adapters(w);
    if (st == HONE_OK && !hn_walk_over(w)) st = at_other_scales(w);
    return st;
}
