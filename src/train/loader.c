/* loader: samples into micro-batches. Owns the order of an epoch and its sequences; refuses
 * to know where samples come from. The order is Fisher and Yates's with numbers that depend
 * on (seed, epoch, place) alone, so any batch can be made again. */
#include "train/data.h"

#include <stdlib.h>

struct hn_loader {
    const hn_dataset *d;
    int32_t seq, n_seq;
    bool pack, shuffle;
    uint64_t seed;
    int64_t max_tok;
    hn_cursor at;
    int64_t epoch;   /* whose order is made, -1: none … */
    uint32_t *order; /* [d->n] … */
    int64_t n_epoch; /* … its sequences … */
    uint32_t *start; /* … [n_epoch of d->n] their first places … */
    int64_t next;    /* … and the place of the cursor in it */
    int32_t *ids, *target, *pos, *doc;
};

/* A number in [0, n) of stream key. */
static uint32_t below(uint64_t key, uint64_t k, uint32_t n)
{
    return (uint32_t)(((unsigned __int128)hn_rand64(key, k) * n) >> 64);
}

/* Places of the order that sequence from `first` on takes. */
static int64_t sequence_end(const hn_loader *l, int64_t first)
{
    int64_t i = first, room = l->seq;
    do room -= l->d->sample[l->order[i++]].n;
    while (l->pack && i < l->d->n && l->d->sample[l->order[i]].n <= room);
    return i;
}

static void begin_epoch(hn_loader *l, int64_t epoch)
{
    uint64_t key = hn_mix64(l->seed ^ hn_mix64(0x6c6f61646572u + (uint64_t)epoch));
    l->epoch = epoch;
    l->next = 0;
    for (int64_t i = 0; i < l->d->n; i++) l->order[i] = (uint32_t)i;
    for (int64_t i = l->d->n - 1; l->shuffle && i > 0; i--) {
        uint32_t k = below(key, (uint64_t)i, (uint32_t)i + 1), t = l->order[k];
        l->order[k] = l->order[i];
        l->order[i] = t;
    }
    l->n_epoch = 0;
    for (int64_t i = 0; i < l->d->n; i = sequence_end(l, i)) l->start[l->n_epoch++] = (uint32_t)i;
}

hone_status hn_loader_new(hn_loader **out, const hn_dataset *d, int32_t seq, int32_t n_seq, bool pack, bool shuffle,
                          uint64_t seed, hone_error *err)
{
    *out = NULL;
    int32_t longest = 0;
    int64_t all = 0;
    for (int64_t i = 0; i < d->n; i++) {
        longest = d->sample[i].n > longest ? d->sample[i].n : longest;
        all += d->sample[i].n;
    }
    if (d->n < 1 || d->n >= UINT32_MAX)
        return HN_FAIL(err, HONE_E_ARG, "%lld samples, expected 1 to %u", (long long)d->n, UINT32_MAX - 1);
    if (n_seq < 1) return HN_FAIL(err, HONE_E_ARG, "batches of %d sequences, expected at least 1", n_seq);
    if (longest > seq)
        return HN_FAIL(err, HONE_E_ARG, "a sample of %d tokens does not fit sequences of %d", longest, seq);
    hn_loader *l = calloc(1, sizeof *l);
    if (!l) return HN_FAIL(err, HONE_E_NOMEM, "loader");
    *l = (hn_loader){ .d = d, .seq = seq, .n_seq = n_seq, .pack = pack, .shuffle = shuffle, .seed = seed, .epoch = -1 };
    int64_t max_tok = (int64_t)n_seq * (pack ? seq : longest), max_doc = pack ? max_tok : n_seq;
    if (max_tok > all) max_tok = all; /* no batch is larger than an epoch */
    if (max_doc > d->n) max_doc = d->n;
    l->max_tok = max_tok;
    if (max_tok > INT32_MAX) {
        free(l);
        return HN_FAIL(err, HONE_E_ARG, "batches of %d sequences of %d tokens, expected at most %d tokens", n_seq,
                       pack ? seq : longest, INT32_MAX);
    }
    l->order = malloc((size_t)d->n * sizeof *l->order);
    l->start = malloc((size_t)d->n * sizeof *l->start);
    l->ids = malloc((size_t)max_tok * sizeof *l->ids);
    l->target = malloc((size_t)max_tok * sizeof *l->target);
    l->pos = malloc((size_t)max_tok * sizeof *l->pos);
    l->doc = malloc((size_t)(max_doc + 1) * sizeof *l->doc);
    if (!l->order || !l->start || !l->ids || !l->target || !l->pos || !l->doc) {
        hn_loader_free(l);
        return HN_FAIL(err, HONE_E_NOMEM, "batches of %lld tokens of %lld samples", (long long)max_tok,
                       (long long)d->n);
    }
    *out = l;
    return HONE_OK;
}

void hn_loader_free(hn_loader *l)
{
    if (!l) return;
    free(l->order);
    free(l->start);
    free(l->ids);
    free(l->target);
    free(l->pos);
    free(l->doc);
    free(l);
}

int64_t hn_loader_n_seq(hn_loader *l)
{
    if (l->epoch != l->at.epoch) begin_epoch(l, l->at.epoch);
    return l->n_epoch;
}

int64_t hn_loader_max_tok(const hn_loader *l) { return l->max_tok; }

hn_cursor hn_loader_tell(const hn_loader *l) { return l->at; }

/* False: the epoch has no such sequence, and the place is its end. Within an epoch it costs nothing: every step comes
 * here, and making the order takes as long as the data is large. */
static bool go_to(hn_loader *l, hn_cursor c)
{
    if (l->epoch != c.epoch) begin_epoch(l, c.epoch);
    bool inside = c.at < l->n_epoch;
    l->next = inside ? l->start[c.at] : l->d->n;
    l->at = inside ? c : (hn_cursor){ c.epoch + 1, 0 };
    return c.at <= l->n_epoch;
}

hone_status hn_loader_seek(hn_loader *l, hn_cursor c, hone_error *err)
{
    hn_cursor before = l->at;
    if (c.epoch < 0 || c.epoch == INT64_MAX)
        return HN_FAIL(err, HONE_E_ARG, "epoch %lld of the data, expected at least 0", (long long)c.epoch);
    if (c.at >= 0 && go_to(l, c)) return HONE_OK;
    int64_t n = c.at < 0 ? -1 : l->n_epoch;
    go_to(l, before);
    if (n < 0)
        return HN_FAIL(err, HONE_E_ARG, "sequence %lld of epoch %lld, expected at least 0", (long long)c.at,
                       (long long)c.epoch);
    return HN_FAIL(err, HONE_E_ARG, "sequence %lld of epoch %lld, which has %lld", (long long)c.at, (long long)c.epoch,
                   (long long)n);
}

static void put_sample(hn_loader *l, hn_train_batch *b, const hn_data_sample *s)
{
    l->doc[b->n_doc++] = b->n_tok;
    for (int32_t i = 0; i < s->n; i++) {
        bool counts = i + 1 < s->n && s->target[i + 1];
        l->ids[b->n_tok] = s->ids[i];
        l->pos[b->n_tok] = i;
        l->target[b->n_tok++] = counts ? s->ids[i + 1] : -1;
        b->n_target += counts;
    }
}

hone_status hn_loader_next(hn_loader *l, hn_train_batch *b, hone_error *err)
{
    if (l->epoch != l->at.epoch) begin_epoch(l, l->at.epoch);
    *b = (hn_train_batch){ .ids = l->ids, .target = l->target, .pos = l->pos, .doc = l->doc };
    for (int32_t k = 0; k < l->n_seq && l->next < l->d->n; k++, l->at.at++)
        for (int64_t end = sequence_end(l, l->next); l->next < end; l->next++)
            put_sample(l, b, &l->d->sample[l->order[l->next]]);
    l->doc[b->n_doc] = b->n_tok;
    if (l->next == l->d->n) l->at = (hn_cursor){ l->at.epoch + 1, 0 };
    return HONE_OK;
}
