/* The sampler chain: penalties, top-k, top-p, min-p, temperature, draw. Owns the
 * order of survivors and every rounding between logits and token, so that the
 * same logits give the same token on every machine (docs/SAMPLING.md). Refuses
 * to know models and sessions; usable alone.
 *
 * A candidate is one 64-bit key, ordered value << 32 | ~id: descending keys are
 * descending logits with ties to the lower id, and no two keys are equal. */
#include "engine/sampler.h"
#include "base/floats.h"

#include "base/base.h"
#include "kernels/kernels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum {
    FIRST_REACH = 4,
    LAST_REACH = 200,
    SCAN = 64,
    FIRST_SORTED = 64,
    LAST_N_MAX = 1 << 20,
    INSERTION = 24,
    VOCAB_MAX = 1 << 28
};

struct hone_sampler {
    hone_sampler_params p;
    int32_t n_vocab;
    uint64_t *keys; /* [n_vocab] candidates; the first n_sorted are in final order */
    int64_t n_key, n_sorted;
    float *changed;   /* [n_vocab] copy of the logits with bias and mask; made by the first pick that has them */
    float *penalized; /* [n_vocab] copy of the logits, when penalties apply */
    int32_t *never;   /* [n_never] ids that are never picked */
    size_t n_never;
    /* accepted tokens: counts, and the distinct ones as a dense list */
    int32_t *count, *where, *seen; /* [n_vocab]; where[id] = index in seen */
    int32_t n_seen;
    int32_t *ring; /* [penalty_last_n] the window, when limited */
    int32_t ring_at, ring_n;
};

/* A temperature that small that 1/T is no number picks the best, as 0 does. */
static bool is_greedy(const hone_sampler *s) { return s->p.temp <= 0 || !(1.0f / s->p.temp <= FLT_MAX); }

/* What a caller adds makes no infinity of a number: that would be blamed on the model. */
static float bounded(float x) { return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : x; }

void hone_sampler_defaults(hone_sampler_params *p)
{
    if (!p) return;
    *p = (hone_sampler_params){
        .temp = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .repeat_penalty = 1, .penalty_last_n = 64
    };
}

static bool penalties_on(const hone_sampler_params *p)
{
    return p->penalty_last_n != 0 && (p->repeat_penalty != 1 || p->presence_penalty != 0 || p->frequency_penalty != 0);
}

hone_status hn_sampler_check(int32_t n_vocab, const hone_sampler_params *p, hone_error *err)
{
    if (n_vocab < 1 || n_vocab > VOCAB_MAX)
        return HN_FAIL(err, HONE_E_ARG, "sampler: n_vocab %d; expected 1 to %d", n_vocab, VOCAB_MAX);
    if (!isfinite(p->temp)) return HN_FAIL(err, HONE_E_ARG, "sampler: temp %g; expected a finite number", p->temp);
    if (p->top_k < 0) return HN_FAIL(err, HONE_E_ARG, "sampler: top_k %d; expected 0 (off) or more", p->top_k);
    if (!(p->top_p >= 0 && p->top_p <= 1))
        return HN_FAIL(err, HONE_E_ARG, "sampler: top_p %g; expected 0 to 1", p->top_p);
    if (!(p->min_p >= 0 && p->min_p <= 1))
        return HN_FAIL(err, HONE_E_ARG, "sampler: min_p %g; expected 0 to 1", p->min_p);
    if (!(p->repeat_penalty > 0 && p->repeat_penalty <= FLT_MAX))
        return HN_FAIL(err, HONE_E_ARG, "sampler: repeat_penalty %g; expected more than 0", p->repeat_penalty);
    if (!isfinite(p->presence_penalty) || !isfinite(p->frequency_penalty))
        return HN_FAIL(err, HONE_E_ARG, "sampler: presence_penalty %g, frequency_penalty %g; expected finite numbers",
                       p->presence_penalty, p->frequency_penalty);
    if (p->penalty_last_n < -1 || p->penalty_last_n > LAST_N_MAX)
        return HN_FAIL(err, HONE_E_ARG, "sampler: penalty_last_n %d; expected -1 (all) to %d", p->penalty_last_n,
                       LAST_N_MAX);
    return HONE_OK;
}

hone_status hone_sampler_new(hone_sampler **out, int32_t n_vocab, const hone_sampler_params *p, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the sampler");
    hone_sampler_params defaults;
    if (!p) {
        hone_sampler_defaults(&defaults);
        p = &defaults;
    }
    hone_status st = hn_sampler_check(n_vocab, p, err);
    if (st != HONE_OK) return st;
    hone_sampler *s = calloc(1, sizeof *s);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "sampler");
    s->p = *p;
    s->n_vocab = n_vocab;
    size_t n = (size_t)n_vocab;
    bool ok = (s->keys = malloc(n * sizeof *s->keys)) != NULL;
    if (penalties_on(p)) {
        ok = ok && (s->penalized = malloc(n * sizeof *s->penalized)) && (s->count = calloc(n, sizeof *s->count)) &&
             (s->where = malloc(n * sizeof *s->where)) && (s->seen = malloc(n * sizeof *s->seen));
        if (p->penalty_last_n > 0) ok = ok && (s->ring = malloc((size_t)p->penalty_last_n * sizeof *s->ring));
    }
    if (!ok) {
        hone_sampler_free(s);
        return HN_FAIL(err, HONE_E_NOMEM, "sampler for a vocabulary of %d", n_vocab);
    }
    *out = s;
    return HONE_OK;
}

void hone_sampler_free(hone_sampler *s)
{
    if (!s) return;
    free(s->keys);
    free(s->changed);
    free(s->never);
    free(s->penalized);
    free(s->count);
    free(s->where);
    free(s->seen);
    free(s->ring);
    free(s);
}

/* ---- accepted tokens ------------------------------------------------------------------------ */

static void forget(hone_sampler *s, int32_t id)
{
    if (--s->count[id] > 0) return;
    int32_t last = s->seen[--s->n_seen];
    s->seen[s->where[id]] = last;
    s->where[last] = s->where[id];
}

void hone_sampler_accept(hone_sampler *s, int32_t id)
{
    if (!s || !s->count || id < 0 || id >= s->n_vocab) return;
    if (s->ring) {
        if (s->ring_n == s->p.penalty_last_n) forget(s, s->ring[s->ring_at]);
        else s->ring_n++;
        s->ring[s->ring_at] = id;
        s->ring_at = (s->ring_at + 1) % s->p.penalty_last_n;
    }
    if (s->count[id] == INT32_MAX) return;
    if (s->count[id]++ == 0) {
        s->where[id] = s->n_seen;
        s->seen[s->n_seen++] = id;
    }
}

void hone_sampler_reset(hone_sampler *s)
{
    if (!s) return;
    for (int32_t i = 0; i < s->n_seen; i++) s->count[s->seen[i]] = 0;
    s->n_seen = s->ring_at = s->ring_n = 0;
}

/* Repeat penalty of CTRL (Keskar et al. 2019, section 4.1) in the form that also
 * lowers negative logits; frequency and presence as in the OpenAI API. */
static const float *penalize(hone_sampler *s, const float *logits)
{
    if (!s->count || s->n_seen == 0) return logits;
    memcpy(s->penalized, logits, (size_t)s->n_vocab * sizeof *logits);
    for (int32_t i = 0; i < s->n_seen; i++) {
        int32_t id = s->seen[i];
        float x = logits[id], less = (float)s->count[id] * s->p.frequency_penalty + s->p.presence_penalty;
        if (!isfinite(x)) continue; /* never picked, or the model's fault */
        x = bounded(x <= 0 ? x * s->p.repeat_penalty : x / s->p.repeat_penalty);
        s->penalized[id] = bounded(x - bounded(less));
    }
    return s->penalized;
}

/* ---- candidates -------------------------------------------------------------------------------- */

static uint64_t key_of(float x, int32_t id)
{
    uint32_t u;
    x += 0.0f; /* -0 and +0 are a tie */
    memcpy(&u, &x, 4);
    u = u & 0x80000000u ? ~u : u | 0x80000000u;
    return (uint64_t)u << 32 | (uint32_t) ~(uint32_t)id;
}

static int32_t key_id(uint64_t k) { return (int32_t) ~(uint32_t)k; }

static float key_logit(uint64_t k)
{
    uint32_t u = (uint32_t)(k >> 32);
    float x;
    u = u & 0x80000000u ? u & 0x7FFFFFFFu : ~u;
    memcpy(&x, &u, 4);
    return x;
}

static hone_status bad_logit(float x, int32_t id, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NUMERIC, "logit of token %d is %s; expected a number", id,
                   isnan(x) ? "NaN" : "+infinity");
}

static void swap(uint64_t *a, uint64_t *b)
{
    uint64_t t = *a;
    *a = *b;
    *b = t;
}

/* Splits a[0..n) around a pivot: larger keys first. Returns the pivot's place.
 * The pivot is the median of three at hashed places, so that no order of the
 * vocabulary makes this quadratic. */
static int64_t partition(uint64_t *a, int64_t n)
{
    uint64_t h = hn_mix64((uint64_t)n ^ a[0]), m = (uint64_t)n;
    int64_t i = (int64_t)(h % m), j = (int64_t)((h >> 20) % m), k = (int64_t)((h >> 40) % m);
    int64_t mid = a[i] > a[j] ? (a[j] > a[k] ? j : a[i] > a[k] ? k : i) : (a[i] > a[k] ? i : a[j] > a[k] ? k : j);
    swap(&a[0], &a[mid]);
    uint64_t pivot = a[0];
    int64_t lo = 1, hi = n - 1;
    for (;;) {
        while (lo <= hi && a[lo] > pivot) lo++;
        while (lo <= hi && a[hi] < pivot) hi--;
        if (lo >= hi) break;
        swap(&a[lo++], &a[hi--]);
    }
    swap(&a[0], &a[hi]);
    return hi;
}

/* Brings the k largest of a[0..n) to the front, in any order. */
static void select_top(uint64_t *a, int64_t n, int64_t k)
{
    while (k > 0 && k < n) {
        int64_t at = partition(a, n);
        if (at == k || at == k - 1) return;
        if (at > k) {
            n = at;
        } else {
            a += at + 1;
            n -= at + 1;
            k -= at + 1;
        }
    }
}

static void sort_desc(uint64_t *a, int64_t n)
{
    while (n > INSERTION) {
        int64_t at = partition(a, n);
        if (at < n - at - 1) { /* recurse into the smaller part: depth stays logarithmic */
            sort_desc(a, at);
            a += at + 1;
            n -= at + 1;
        } else {
            sort_desc(a + at + 1, n - at - 1);
            n = at;
        }
    }
    for (int64_t i = 1; i < n; i++) {
        uint64_t x = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] < x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

/* Makes at least the first `want` keys final. */
static void sort_until(hone_sampler *s, int64_t want)
{
    if (want > s->n_key) want = s->n_key;
    if (want <= s->n_sorted) return;
    uint64_t *rest = s->keys + s->n_sorted;
    select_top(rest, s->n_key - s->n_sorted, want - s->n_sorted);
    sort_desc(rest, want - s->n_sorted);
    s->n_sorted = want;
}

/* The i-th best key; sorts more of them when needed. */
static uint64_t key_at(hone_sampler *s, int64_t i)
{
    if (i >= s->n_sorted) sort_until(s, i < FIRST_SORTED ? FIRST_SORTED : i * 8);
    return s->keys[i];
}

/* Is anything in x[0..n) above floor, or a NaN? Written for the vectorizer. */
static bool any_above(const float *x, int32_t n, float floor)
{
    int hit = 0;
    if (n == SCAN)
        for (int i = 0; i < SCAN; i++) hit |= !(x[i] <= floor);
    else
        for (int i = 0; i < n; i++) hit |= !(x[i] <= floor);
    return hit != 0;
}

static hone_status greedy(const float *logits, int32_t n, int32_t *id, hone_error *err)
{
    float best = -INFINITY;
    int32_t at = -1;
    for (int32_t b = 0; b < n; b += SCAN) {
        int32_t end = n - b < SCAN ? n : b + SCAN;
        if (!any_above(logits + b, end - b, best)) continue;
        for (int32_t i = b; i < end; i++) {
            if (!(logits[i] <= FLT_MAX)) return bad_logit(logits[i], i, err);
            if (logits[i] > best) {
                best = logits[i];
                at = i;
            }
        }
    }
    if (at < 0) return HN_FAIL(err, HONE_E_NUMERIC, "none of the %d logits is finite", n);
    *id = at;
    return HONE_OK;
}

/* Fills keys with the k best candidates above floor (k >= n: all of them), unsorted. The
 * floor rises to the k-th best seen whenever the buffer is full; later ids with
 * that very logit lose the tie, so "above" is strict. */
static hone_status collect(hone_sampler *s, const float *logits, int64_t k, float floor, hone_error *err)
{
    int32_t n = s->n_vocab;
    int64_t cap = k < n / 4 ? 2 * k + SCAN : n, m = 0;
    for (int32_t b = 0; b < n; b += SCAN) {
        int32_t end = n - b < SCAN ? n : b + SCAN;
        if (!any_above(logits + b, end - b, floor)) continue;
        for (int32_t i = b; i < end; i++) {
            if (!(logits[i] <= FLT_MAX)) return bad_logit(logits[i], i, err);
            if (!(logits[i] > floor)) continue;
            if (m == cap) { /* never with cap n: each id enters once */
                select_top(s->keys, m, k);
                m = k;
                uint64_t lowest = s->keys[0];
                for (int64_t j = 1; j < k; j++)
                    if (s->keys[j] < lowest) lowest = s->keys[j];
                floor = key_logit(lowest);
                if (!(logits[i] > floor)) continue;
            }
            s->keys[m++] = key_of(logits[i], i);
        }
    }
    if (m == 0) return HN_FAIL(err, HONE_E_NUMERIC, "none of the %d logits is finite", n);
    if (k < m) {
        select_top(s->keys, m, k);
        m = k;
    }
    s->n_key = m;
    s->n_sorted = 0;
    return HONE_OK;
}

/* ---- the chain ------------------------------------------------------------------------------------ */

/* exp((x - max) · inv_temp), 1 for the best. */
static float weight(float x, float max, float inv_temp)
{
    float d = (x - max) * inv_temp;
    return d < -104.0f ? 0.0f : hn_exp_f32(d); /* exp(-104) is below the least positive float */
}

/* Sum of the weights of all ids, in 16 lanes; in double, so that 150,000 small terms add up. */
static double weight_of_all(const float *logits, int32_t n, float max, float inv_temp)
{
    enum { PART = 512 };
    double lane[16] = { 0 }, sum = 0;
    float w[PART];
    for (int32_t at = 0; at < n; at += PART) {
        int32_t k = n - at < PART ? n - at : PART;
        for (int32_t i = 0; i < k; i++) w[i] = (logits[at + i] - max) * inv_temp; /* as weight() */
        hn_exp_many(w, w, k);
        for (int32_t i = k; i < PART; i++) w[i] = 0;
        for (int32_t i = 0; i < PART; i += 16)
            for (int j = 0; j < 16; j++) lane[j] += (double)w[i + j];
    }
    for (int j = 0; j < 16; j++) sum += lane[j];
    return sum;
}

/* Sum of the weights of the best n keys, in their order. */
static double weight_of_best(hone_sampler *s, int64_t n, float max, float inv_temp)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)weight(key_logit(key_at(s, i)), max, inv_temp);
    return sum;
}

/* About the weight of all keys, in any order: enough to see whether sorting them is worth it.
 * Nothing is added when nothing is needed. */
static double weight_of_keys(const hone_sampler *s, float max, float inv_temp, double need)
{
    double sum = 0;
    for (int64_t i = 0; i < s->n_key && sum < need; i++) sum += (double)weight(key_logit(s->keys[i]), max, inv_temp);
    return sum;
}

/* The chain on the collected keys. complete: no other key can count. whole: no top-k; all_1
 * is the weight of the vocabulary at T = 1, all_t at T if nothing is cut, else 0. left_out: keys that min-p
 * cuts were not even collected. False: what is asked for was not collected. */
static bool choose(hone_sampler *s, bool complete, bool left_out, bool whole, double all_1, double all_t, float u,
                   int32_t *id)
{
    float max = key_logit(key_at(s, 0)), inv_temp = 1.0f / s->p.temp;
    int64_t n = s->n_key;
    bool cut = false;
    if (s->p.top_p < 1) { /* the fewest whose probability reaches top_p */
        double want = (double)s->p.top_p * (whole ? all_1 : weight_of_best(s, n, max, 1)), sum = 0;
        for (int64_t i = 0; i < n && !cut; i++) {
            sum += (double)weight(key_logit(key_at(s, i)), max, 1);
            if (sum < want) continue;
            n = i + 1;
            cut = true;
        }
        if (!cut && !complete) return false;
    }
    if (s->p.min_p > 0) { /* those at least min_p times as probable as the best */
        int64_t keep = 1;
        while (keep < n && weight(key_logit(key_at(s, keep)), max, 1) >= s->p.min_p) keep++;
        if (keep == n && !cut && !complete) return false;
        cut = cut || keep < n || left_out;
        n = keep;
    }
    double want = (double)u * (whole && all_t > 0 ? all_t : weight_of_best(s, n, max, inv_temp)), sum = 0;
    int64_t pick = 0;
    bool found = false;
    for (int64_t i = 0; i < n && !found; i++) {
        double w = weight(key_logit(key_at(s, i)), max, inv_temp);
        if (w == 0) break; /* the rest weighs nothing either */
        pick = i;          /* the last one of weight, should rounding leave sum short */
        sum += w;
        found = want < sum;
    }
    if (!found && !cut && !complete) return false;
    *id = key_id(s->keys[pick]);
    return true;
}

hone_status hn_bias_check(int32_t n_vocab, const hone_bias *bias, size_t n, hone_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (bias[i].id < 0 || bias[i].id >= n_vocab || !(bias[i].bias <= FLT_MAX))
            return HN_FAIL(err, HONE_E_ARG,
                           "bias %g of token id %d; expected a number or -infinity, of an id from 0 to %d",
                           bias[i].bias, bias[i].id, n_vocab - 1);
    return HONE_OK;
}

hone_status hn_sampler_forbid(hone_sampler *s, int32_t id, hone_error *err)
{
    if (id < 0 || id >= s->n_vocab) return HONE_OK;
    int32_t *ids = realloc(s->never, (s->n_never + 1) * sizeof *ids);
    if (!ids) return HN_FAIL(err, HONE_E_NOMEM, "%zu tokens that are never picked", s->n_never + 1);
    s->never = ids;
    s->never[s->n_never++] = id;
    return HONE_OK;
}

/* Bias, what is never picked, then the mask. *logits then points to the copy. */
static hone_status change(hone_sampler *s, const float **logits, const hone_pick *p, hone_error *err)
{
    int64_t n_allowed = 0;
    if (!p->allowed && p->n_bias == 0 && s->n_never == 0) return HONE_OK;
    if (!s->changed && !(s->changed = malloc((size_t)s->n_vocab * sizeof *s->changed)))
        return HN_FAIL(err, HONE_E_NOMEM, "sampler for a vocabulary of %d", s->n_vocab);
    memcpy(s->changed, *logits, (size_t)s->n_vocab * sizeof **logits);
    *logits = s->changed;
    hone_status st = hn_bias_check(s->n_vocab, p->bias, p->n_bias, err);
    if (st != HONE_OK) return st;
    for (size_t i = 0; i < p->n_bias; i++) {
        float *x = &s->changed[p->bias[i].id], b = p->bias[i].bias;
        *x = isfinite(*x) && isfinite(b) ? bounded(*x + b) : *x + b;
    }
    for (size_t i = 0; i < s->n_never; i++) s->changed[s->never[i]] = -INFINITY;
    if (!p->allowed) return HONE_OK;
    for (int32_t at = 0; at < s->n_vocab; at += 64) {
        uint64_t word = p->allowed[at / 64];
        int32_t end = s->n_vocab - at < 64 ? s->n_vocab - at : 64;
        if (word == UINT64_MAX) {
            n_allowed += end;
            continue;
        }
        for (int32_t i = 0; i < end; i++) {
            if (word >> i & 1) n_allowed++;
            else s->changed[at + i] = -INFINITY;
        }
    }
    if (n_allowed == 0) return HN_FAIL(err, HONE_E_NUMERIC, "none of the %d tokens is allowed", s->n_vocab);
    return HONE_OK;
}

hone_status hone_sampler_pick(hone_sampler *s, const float *logits, int32_t seq, int32_t pos, int32_t *id,
                              hone_error *err)
{
    if (id) *id = -1;
    HN_NEED(err, s, "a sampler");
    HN_NEED(err, logits, "a pointer to n_vocab logits");
    HN_NEED(err, id, "a place for the token's id");
    return hone_sampler_pick_from(s, logits, &(hone_pick){ .choice = seq, .pos = pos }, id, err);
}

hone_status hone_sampler_pick_from(hone_sampler *s, const float *logits, const hone_pick *p, int32_t *id,
                                   hone_error *err)
{
    HN_FLOATS;
    if (id) *id = -1;
    HN_NEED(err, s, "a sampler");
    HN_NEED(err, logits, "a pointer to n_vocab logits");
    HN_NEED(err, p, "what to pick from");
    HN_NEED(err, id, "a place for the token's id");
    if (p->n_bias) HN_NEED(err, p->bias, "a pointer to n_bias biases");
    hone_status st = change(s, &logits, p, err);
    if (st != HONE_OK) return st;
    logits = penalize(s, logits);
    if (is_greedy(s)) return greedy(logits, s->n_vocab, id, err);
    float u = hn_rand_f32(hn_rand64(s->p.seed, (uint64_t)(uint32_t)p->choice), (uint64_t)(uint32_t)p->pos);
    if (s->p.top_k > 0 && s->p.top_k < s->n_vocab) {
        if ((st = collect(s, logits, s->p.top_k, -INFINITY, err)) != HONE_OK) return st;
        choose(s, true, false, false, 0, 0, u, id);
        return HONE_OK;
    }

    /* The whole vocabulary: its weight costs one pass; then few candidates near the best
     * nearly always decide. Only where they do not, deeper ones are looked at. */
    int32_t best;
    if ((st = greedy(logits, s->n_vocab, &best, err)) != HONE_OK) return st;
    float max = logits[best] + 0.0f, inv_temp = 1.0f / s->p.temp;
    double all_1 = s->p.top_p < 1 ? weight_of_all(logits, s->n_vocab, max, 1) : 0;
    bool uncut = s->p.top_p >= 1 && s->p.min_p <= 0;
    double all_t = uncut ? weight_of_all(logits, s->n_vocab, max, inv_temp) : 0;
    double need_1 = s->p.top_p < 1 ? (double)s->p.top_p * all_1 : 0, need_t = (double)u * all_t;
    for (float reach = FIRST_REACH;; reach *= 1.5f) {
        float floor = max - reach;
        bool complete = !(floor < max);
        if (s->p.min_p > 0) { /* below it no weight reaches min_p; the exact test comes later */
            float lowest =
                max + (float)(hn_log2_f64((double)s->p.min_p) * 0.6931471805599453) - 0.01f * (1 + fabsf(max));
            complete = lowest >= floor;
            floor = complete ? lowest : floor;
        }
        if (!(floor < max) || (!complete && reach > LAST_REACH)) {
            floor = -INFINITY;
            complete = true;
        }
        if ((st = collect(s, logits, s->n_vocab, floor, err)) != HONE_OK) return st;
        if (!complete &&
            (weight_of_keys(s, max, 1, need_1) < need_1 || weight_of_keys(s, max, inv_temp, need_t) < need_t))
            continue;
        if (choose(s, complete, complete && floor > -INFINITY, true, all_1, all_t, u, id)) return HONE_OK;
    }
}

/* ---- probabilities -------------------------------------------------------------------------------- */

/* How many of the collected keys the cuts leave: as choose has it, with nothing left out. */
static int64_t n_left(hone_sampler *s, bool whole, double all_1)
{
    float max = key_logit(key_at(s, 0));
    int64_t n = s->n_key;
    if (s->p.top_p < 1) {
        double want = (double)s->p.top_p * (whole ? all_1 : weight_of_best(s, n, max, 1)), sum = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += (double)weight(key_logit(key_at(s, i)), max, 1);
            if (sum >= want) n = i + 1;
        }
    }
    if (s->p.min_p > 0) {
        int64_t keep = 1;
        while (keep < n && weight(key_logit(key_at(s, keep)), max, 1) >= s->p.min_p) keep++;
        n = keep;
    }
    return n;
}

hone_status hn_sampler_probs(hone_sampler *s, const float *logits, const hone_pick *p, int32_t id, float *prob,
                             hone_logprob *top, int32_t most, int32_t *n_top, hone_error *err)
{
    int32_t best;
    *prob = 0;
    *n_top = 0;
    hone_status st = change(s, &logits, p, err);
    if (st != HONE_OK) return st;
    logits = penalize(s, logits);
    if (is_greedy(s)) {
        if ((st = greedy(logits, s->n_vocab, &best, err)) != HONE_OK) return st;
        *prob = id == best;
        if (most > 0) top[(*n_top)++] = (hone_logprob){ best, 1 };
        return HONE_OK;
    }

    bool whole = s->p.top_k <= 0 || s->p.top_k >= s->n_vocab;
    if ((st = collect(s, logits, whole ? s->n_vocab : s->p.top_k, -INFINITY, err)) != HONE_OK) return st;
    float max = key_logit(key_at(s, 0)), inv_temp = 1.0f / s->p.temp;
    bool uncut = whole && s->p.top_p >= 1 && s->p.min_p <= 0;
    int64_t n = uncut ? s->n_key : n_left(s, whole, weight_of_all(logits, s->n_vocab, max, 1));
    double all = uncut ? weight_of_all(logits, s->n_vocab, max, inv_temp) : weight_of_best(s, n, max, inv_temp);
    bool is_left = uncut || key_of(logits[id], id) >= key_at(s, n - 1);
    if (is_left) *prob = (float)((double)weight(logits[id], max, inv_temp) / all);
    for (; *n_top < most && *n_top < n; ++*n_top) {
        uint64_t k = key_at(s, *n_top);
        float w = weight(key_logit(k), max, inv_temp);
        if (w == 0) break;
        top[*n_top] = (hone_logprob){ key_id(k), (float)((double)w / all) };
    }
    return HONE_OK;
}
