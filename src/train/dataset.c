/* dataset: the samples of files. Owns their memory, their statistics and the division into two sets. Refuses to know
 * kinds of files, chat templates and batches. */
#include "train/data_parts.h"

#include <ctype.h>

enum { BLOCK = 1 << 20 };

/* ---- memory ------------------------------------------------------------------------------------ */

static void *take(hn_data_store *s, size_t n_bytes)
{
    n_bytes = (n_bytes + 3) & ~(size_t)3;
    if (!s->block || s->block->cap - s->block->n < n_bytes) {
        size_t cap = n_bytes > BLOCK ? n_bytes : BLOCK;
        hn_data_block *b = malloc(sizeof *b + cap);
        if (!b) return NULL;
        *b = (hn_data_block){ .next = s->block, .cap = cap };
        s->block = b;
    }
    void *p = s->block->data + s->block->n;
    s->block->n += n_bytes;
    return p;
}

static void store_free(hn_data_store *s)
{
    if (!s || --s->n_user > 0) return;
    for (hn_data_block *b = s->block, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(s->ones);
    free(s);
}

void hn_dataset_free(hn_dataset *d)
{
    if (!d) return;
    store_free(d->own);
    free(d->sample);
    free(d);
}

/* ---- samples -------------------------------------------------------------------------------------- */

hone_status hn_data_go_on(hn_data_reader *r)
{
    if (!r->p->abort_fn || !r->p->abort_fn(r->p->abort_arg)) return HONE_OK;
    return HN_FAIL(r->err, HONE_E_INTERRUPTED, "interrupted while %s was read; nothing was trained", r->path);
}

hone_status hn_data_bad(hn_data_reader *r, const char *fmt, ...)
{
    char why[512];
    hn_data_stats *s = &r->d->stats;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (!s->n_bad++) snprintf(s->first_bad, sizeof s->first_bad, "%s:%lld: %.180s", r->path, (long long)r->line, why);
    if (s->n_bad <= r->p->max_bad) return HONE_OK;
    if (s->n_bad == 1)
        return HN_FAIL(r->err, HONE_E_FORMAT, "%s:%lld: %s (hone train --max-bad-lines N leaves such lines out)",
                       r->path, (long long)r->line, why);
    return HN_FAIL(r->err, HONE_E_FORMAT, "%s:%lld: %s; bad line %lld where %lld are allowed, the first: %s", r->path,
                   (long long)r->line, why, (long long)s->n_bad, (long long)r->p->max_bad, s->first_bad);
}

static hone_status add_sample(hn_data_reader *r, int32_t *ids, uint8_t *target, int32_t n)
{
    hn_dataset *d = r->d;
    if (d->n == r->cap_sample) {
        int64_t cap = d->n ? 2 * d->n : 256;
        hn_data_sample *s = realloc(d->sample, (size_t)cap * sizeof *s);
        if (!s)
            return HN_FAIL(r->err, HONE_E_NOMEM, "%s:%lld: list of %lld samples", r->path, (long long)r->line,
                           (long long)cap);
        d->sample = s;
        r->cap_sample = cap;
    }
    d->sample[d->n++] = (hn_data_sample){ ids, target, n };
    return HONE_OK;
}

static hone_status no_room(hn_data_reader *r, size_t n)
{
    return HN_FAIL(r->err, HONE_E_NOMEM, "%s:%lld: memory for %zu tokens", r->path, (long long)r->line, n);
}

/* Samples of a text share their border: the last token of one is the first of the next, where it only stands before the
 * others. Where prompts begin with BOS that place is BOS's. */
hone_status hn_data_put_text(hn_data_reader *r, bool last)
{
    int32_t bos = hn_data_bos(r);
    size_t n = r->ids.n, step = (size_t)r->p->seq - 1, whole = n ? (n - 1) / step : 0, rest = n - whole * step;
    size_t used = whole * step + (last ? rest : 1), n_sample = whole + (last && rest > 1);
    hone_status st = HONE_OK;
    if (n_sample) {
        size_t far = bos < 0 ? step : step + 1, n_id = bos < 0 ? used : whole * far + (last ? rest : 0);
        int32_t *ids = take(r->store, n_id * sizeof *ids);
        if (!ids) return no_room(r, n_id);
        for (size_t i = 0; i < n_sample && st == HONE_OK; i++) {
            size_t len = i < whole ? step + 1 : rest;
            int32_t *at = ids + i * far;
            memcpy(at, r->ids.data + i * step, len * sizeof *at);
            if (bos >= 0) at[0] = bos;
            st = add_sample(r, at, r->store->ones, (int32_t)len);
        }
        r->d->stats.n_mid += (int64_t)n_sample - (r->n_of_text == 0);
        r->d->stats.n_split += r->n_of_text < 2 && r->n_of_text + n_sample >= 2;
        r->n_of_text += n_sample;
    } else if (last && !r->n_of_text) {
        r->d->stats.n_empty++;
    }
    if (last) {
        r->ids.n = 0;
        r->n_of_text = 0;
    } else if (whole) {
        memmove(r->ids.data, r->ids.data + whole * step, rest * sizeof *r->ids.data);
        r->ids.n = rest;
    }
    return st;
}

hone_status hn_data_put(hn_data_reader *r, const uint8_t *target)
{
    size_t n = r->ids.n, some = 0;
    if (n > (size_t)r->p->seq) {
        n = (size_t)r->p->seq;
        r->d->stats.n_cut++;
    }
    if (!target) some = n > 1;
    else
        for (size_t i = 1; i < n; i++) some += target[i];
    if (!some) {
        r->d->stats.n_empty++;
        return HONE_OK;
    }
    int32_t *ids = take(r->store, n * sizeof *ids);
    uint8_t *t = target ? take(r->store, n) : r->store->ones;
    if (!ids || !t) return no_room(r, n);
    memcpy(ids, r->ids.data, n * sizeof *ids);
    if (target) memcpy(t, target, n);
    return add_sample(r, ids, t, (int32_t)n);
}

/* ---- ids ----------------------------------------------------------------------------------------------- */

/* A text that begins with the name of a special token, which is text, was written by a template. */
static hone_status look_for_names(hn_data_reader *r, const char *s, size_t n)
{
    enum { LONGEST = 64 };
    hn_data_stats *d = &r->d->stats;
    size_t len = hn_data_well_formed(s, n < LONGEST ? n : LONGEST), k;
    if (!len || s[0] == ' ' || s[0] == '\n' || isalnum((unsigned char)s[0])) return HONE_OK; /* as most do */
    r->other.n = 0;
    hone_status st = hn_vocab_encode(r->v, s, len, HONE_TOK_SPECIAL, &r->other, r->err);
    int32_t id = st == HONE_OK && r->other.n ? r->other.data[0] : -1;
    r->other.n = 0;
    if (id < 0 || !(hn_vocab_is_control(r->v, id) || hn_vocab_is_eog(r->v, id))) return st;
    const char *piece = hn_vocab_piece(r->v, id, true, &k);
    if (!d->n_spelt++) snprintf(d->first_spelt, sizeof d->first_spelt, "%.*s", (int)(k < LONGEST ? k : LONGEST), piece);
    return st;
}

hone_status hn_data_encode(hn_data_reader *r, const char *s, size_t n, hn_ids *out)
{
    hone_span all = { 0, n };
    size_t at = out->n;
    int32_t bos = hn_data_bos(r);
    bool begins = !r->n_of_text && at == (bos >= 0);
    hone_status st = HONE_OK;
    if (!r->p->special) {
        if (begins && out == &r->ids) st = look_for_names(r, s, n);
        return st == HONE_OK ? hn_vocab_encode_spans(r->v, s, n, 0, &all, n > 0, out, r->err) : st;
    }
    st = hn_vocab_encode(r->v, s, n, HONE_TOK_SPECIAL, out, r->err);
    if (st == HONE_OK && begins && bos >= 0 && out->n > at &&
        out->data[at] == bos) { /* it brings the one that is put */
        out->n--;
        memmove(out->data + at, out->data + at + 1, (out->n - at) * sizeof *out->data);
    }
    return st;
}

int32_t hn_data_bos(const hn_data_reader *r) { return hn_vocab_add_bos(r->v) ? hn_vocab_bos(r->v) : -1; }

hone_status hn_data_put_bos(hn_data_reader *r, hn_ids *out)
{
    int32_t id = hn_data_bos(r);
    return id >= 0 ? hn_ids_put(out, id, r->err) : HONE_OK;
}

hone_status hn_data_put_eos(hn_data_reader *r, hn_ids *out)
{
    int32_t id = hn_vocab_eos(r->v);
    return id < 0 || (out->n && out->data[out->n - 1] == id) ? HONE_OK : hn_ids_put(out, id, r->err);
}

hone_status hn_data_targets(hn_data_reader *r, size_t from, uint8_t value)
{
    if (r->ids.n > r->cap_target) {
        size_t cap = 2 * r->ids.n + 256;
        uint8_t *p = realloc(r->target, cap);
        if (!p) return no_room(r, cap);
        r->target = p;
        r->cap_target = cap;
    }
    if (r->ids.n > from) memset(r->target + from, value, r->ids.n - from);
    return HONE_OK;
}

size_t hn_data_common(const hn_ids *a, const hn_ids *b)
{
    size_t n = a->n < b->n ? a->n : b->n, i = 0;
    while (i < n && a->data[i] == b->data[i]) i++;
    return i;
}

/* ---- statistics --------------------------------------------------------------------------------------------- */

/* count: zeros, as many as the longest sample has tokens and one more; zeros again afterwards. */
static void measure(hn_dataset *d, int64_t *count)
{
    hn_data_stats *s = &d->stats;
    int32_t max = 0;
    int64_t seen = 0;
    s->n_sample = d->n;
    s->n_tok = s->n_target = 0;
    d->hash = HN_FNV_INIT;
    for (int64_t i = 0; i < d->n; i++) max = d->sample[i].n > max ? d->sample[i].n : max;
    for (int64_t i = 0; i < d->n; i++) {
        const hn_data_sample *x = &d->sample[i];
        count[x->n]++;
        s->n_tok += x->n;
        for (int32_t t = 1; t < x->n; t++) s->n_target += x->target[t];
        d->hash = hn_fnv1a(d->hash, &x->n, sizeof x->n);
        d->hash = hn_fnv1a(d->hash, x->ids, (size_t)x->n * sizeof *x->ids);
        if (x->n > 1) d->hash = hn_fnv1a(d->hash, x->target + 1, (size_t)x->n - 1);
    }
    /* the k-th shortest, k from 1: half and 95 of 100, rounded up */
    int64_t half = (d->n + 1) / 2, most = d->n - d->n / 20;
    s->min_len = s->median_len = s->p95_len = 0;
    s->max_len = max;
    for (int32_t len = 0; len <= max; len++) {
        if (!count[len]) continue;
        if (!seen) s->min_len = len;
        if (seen < half && seen + count[len] >= half) s->median_len = len;
        if (seen < most && seen + count[len] >= most) s->p95_len = len;
        seen += count[len];
        count[len] = 0;
    }
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static hone_status begin(hn_data_reader *r)
{
    hn_dataset *d = r->d = calloc(1, sizeof *d);
    hn_data_store *s = r->store = calloc(1, sizeof *s);
    if (!d || !s || !(s->ones = malloc((size_t)r->p->seq))) {
        free(s);
        return HN_FAIL(r->err, HONE_E_NOMEM, "data of %d files", r->p->n_path);
    }
    memset(s->ones, 1, (size_t)r->p->seq);
    s->n_user = 1;
    d->own = s;
    return HONE_OK;
}

static hone_status check_any(const hn_data_reader *r)
{
    const hn_data_stats *s = &r->d->stats;
    if (r->d->n) return HONE_OK;
    return HN_FAIL(
        r->err, HONE_E_FORMAT, "%s%s: nothing to train on: %lld record%s, %lld bad, %lld in which no token counts%s%s",
        r->p->path[0], r->p->n_path > 1 ? " and others" : "", (long long)s->n_line, s->n_line == 1 ? "" : "s",
        (long long)s->n_bad, (long long)s->n_empty, s->n_rejected ? "; others are labelled false" : "",
        s->n_cut ? "; some were cut before what counts: a longer sequence would keep it" : "");
}

hone_status hn_dataset_read(hn_dataset **out, const hone_model *m, const hn_data_params *p, hone_error *err)
{
    hn_data_reader r = { .p = p, .m = m, .err = err };
    hone_status st;
    *out = NULL;
    if (p->seq < 2) return HN_FAIL(err, HONE_E_ARG, "sequences of %d tokens, expected at least 2", p->seq);
    if (p->n_path < 1) return HN_FAIL(err, HONE_E_ARG, "no data: expected files, as " HN_DATA_KINDS);
    if ((st = hn_model_vocab(m, &r.v, err)) != HONE_OK) return st;
    int64_t *count = NULL;
    st = begin(&r);
    if (st == HONE_OK && !(count = calloc((size_t)p->seq + 1, sizeof *count)))
        st = HN_FAIL(err, HONE_E_NOMEM, "lengths up to %d", p->seq);
    for (int32_t i = 0; i < p->n_path && st == HONE_OK; i++) { st = hn_data_read_path(&r, p->path[i]); }
    if (st == HONE_OK) st = check_any(&r);
    if (st == HONE_OK) measure(r.d, count);
    free(count);
    free(r.ids.data);
    free(r.other.data);
    free(r.target);
    free(r.text);
    hn_data_chat_free(r.chat);
    if (st == HONE_OK) *out = r.d;
    else hn_dataset_free(r.d);
    return st;
}

/* ---- two sets --------------------------------------------------------------------------------------------------- */

hone_status hn_dataset_split(hn_dataset *d, double share, uint64_t seed, hn_dataset **second, hone_error *err)
{
    *second = NULL;
    if (!(share >= 0 && share < 1))
        return HN_FAIL(err, HONE_E_ARG, "a share of %g for validation, expected at least 0 and less than 1", share);
    if (share == 0) return HONE_OK;
    if (d->n < 2) return HN_FAIL(err, HONE_E_ARG, "%lld sample cannot be divided in two sets", (long long)d->n);
    int64_t k = (int64_t)(share * (double)d->n + 0.5), left = 0, n = d->n;
    k = k < 1 ? 1 : k > n - 1 ? n - 1 : k;
    hn_dataset *b = calloc(1, sizeof *b);
    int64_t *count = calloc((size_t)d->stats.max_len + 1, sizeof *count);
    if (!b || !count || !(b->sample = malloc((size_t)k * sizeof *b->sample))) {
        free(b);
        free(count);
        return HN_FAIL(err, HONE_E_NOMEM, "%lld samples for validation", (long long)k);
    }
    /* selection sampling (Knuth, TAOCP 2, 3.4.2, algorithm S): each set keeps the order of the whole */
    for (int64_t i = 0; i < n; i++) {
        uint64_t u = (uint64_t)(((unsigned __int128)hn_rand64(seed, (uint64_t)i) * (uint64_t)(n - i)) >> 64);
        if (u < (uint64_t)(k - b->n)) b->sample[b->n++] = d->sample[i];
        else d->sample[left++] = d->sample[i];
    }
    d->n = left;
    b->own = d->own;
    ((hn_data_store *)d->own)->n_user++;
    measure(d, count);
    measure(b, count);
    free(count);
    *second = b;
    return HONE_OK;
}
