/* tok.*: encoding and decoding of texts, checked there and back. Knows the public API alone. */
#include "lab/bench/bench.h"
#include "lab/machine/clock.h"
#include "lab/quality/proof.h"
#include "lab/quality/quality.h"
#include "lab/quality/sketch.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <stdlib.h>

enum { LONG_TEXT = 4096, MAX_TEXT = 1 << 16 };

/* The quality prompts, again and again, about n bytes, cut behind a word. */
static char *make_text(size_t n)
{
    char *t = malloc(n + 1);
    size_t at = 0;
    for (int i = 0; t && at < n; i = (i + 1) % HN_Q_PROMPTS) {
        size_t len = strlen(hn_q_texts[i]);
        if (len > n - at) len = n - at;
        memcpy(t + at, hn_q_texts[i], len);
        at += len;
        if (at < n) t[at++] = ' ';
    }
    if (!t) return NULL;
    while (at > 1 && t[at - 1] != ' ') at--; /* spaces are ASCII: no character is cut */
    t[at - 1] = 0;
    return t;
}

typedef struct text_job {
    const hone_model *m;
    char *text;
    size_t len;
    int32_t *ids;
    size_t n;
    hone_stream *stream;
    char *said, *kept; /* what the stream says of the ids; what it said in a pass that the clock ran for */
    size_t n_said, n_kept;
    uint64_t key, n_drawn; /* of the texts, and of which pass is kept: nobody knows it before */
    int64_t calls, keep;   /* of the stretch at work; its pass that is kept */
    /* what these calls are given, and none before: texts of len bytes, or passes of n ids; and what came out */
    char *texts;
    int32_t *given, *got; /* got: ids of the first calls, one behind the other, as many as there is room for */
    size_t *n_got;        /* [calls]: ids, or bytes */
    size_t n_fits;        /* calls whose ids are in got */
    int64_t n_tok, n_all; /* tokens and calls of all stretches */
    bool failed, other;   /* a call; its answer was another one */
} text_job;

/* Who remembers answers must not be faster than who finds them, since nobody asks the same again and again: each call
 * has a text of its own, of the fixed text's words in an order that is drawn, and the same in every run. */
static void draw_text(text_job *j, char *t)
{
    enum { PIECE = 5, START = 16 };
    const size_t all = strlen(hn_q_corpus) - 2 * START;
    for (size_t at = 0; at < j->len;) {
        const char *p = hn_q_corpus + hn_rand64(j->key, j->n_drawn++) % all;
        while (*p != ' ') p++;
        for (size_t i = 1; at < j->len && (i <= PIECE || p[i] != ' ') && p[i]; i++)
            t[at++] = (unsigned char)p[i] < 0x80 ? p[i] : 'e'; /* no character is cut */
        if (at < j->len) t[at++] = ' ';
    }
    if (t[j->len - 1] == ' ') t[j->len - 1] = 'a';
}

static bool room_for(text_job *j, int64_t calls, size_t given, size_t got)
{
    char *texts = realloc(j->texts, (size_t)calls * j->len + 1);
    if (texts) j->texts = texts;
    int32_t *ids = realloc(j->given, (given + 1) * sizeof *ids), *out = realloc(j->got, (got + 1) * sizeof *out);
    if (ids) j->given = ids;
    if (out) j->got = out;
    size_t *n = realloc(j->n_got, (size_t)calls * sizeof *n);
    if (n) j->n_got = n;
    j->failed |= !texts || !ids || !out || !n;
    j->calls = j->failed ? 0 : calls;
    return !j->failed;
}

enum { MOST_GOT = 1 << 20 }; /* ids of a stretch that are kept */

static void encode(void *arg, int64_t calls)
{
    text_job *j = arg;
    size_t at = 0;
    j->n_fits = 0;
    for (int64_t i = 0; i < calls && !j->failed; i++) {
        int32_t *ids;
        size_t n;
        if (hone_tokenize(j->m, j->texts + (size_t)i * j->len, j->len, 0, &ids, &n, NULL) != HONE_OK) {
            j->failed = true;
            break;
        }
        j->n_got[i] = n;
        if (at + n <= MOST_GOT) {
            memcpy(j->got + at, ids, n * sizeof *ids);
            at += n;
            j->n_fits = (size_t)i + 1;
        }
        hone_free(ids);
    }
}

/* The ids of a call are those of the same call now. What they say is looked at once, of the fixed text: tokenizers that
 * normalise say another one of some texts alone. */
static void look_at_ids(text_job *j, int64_t i, const int32_t *got)
{
    int32_t *ids;
    size_t n;
    if (hone_tokenize(j->m, j->texts + (size_t)i * j->len, j->len, 0, &ids, &n, NULL) != HONE_OK) {
        j->failed = true;
        return;
    }
    j->other |= n != j->n_got[i] || (got && memcmp(got, ids, n * sizeof *ids) != 0);
    hone_free(ids);
}

/* Looks at the stretch behind, and draws the texts of the one to come. */
static void turn_encode(void *arg, int64_t calls)
{
    text_job *j = arg;
    size_t at = 0;
    for (int64_t i = 0; i < j->calls && !j->failed; i++) {
        look_at_ids(j, i, (size_t)i < j->n_fits ? j->got + at : NULL);
        at += j->n_got[i];
        j->n_tok += (int64_t)j->n_got[i];
        j->n_all++;
    }
    j->calls = 0;
    if (!calls || j->failed || !room_for(j, calls, 0, MOST_GOT)) return;
    for (int64_t i = 0; i < calls; i++) draw_text(j, j->texts + (size_t)i * j->len);
}
static const hn_bench_left left_encode = { .turn = turn_encode };

/* Of all passes the length is held against what decoding at once gives; of one, which nobody knows before, the text.
 * Looking at each piece was 7 % of the time that is measured. */
static void decode(void *arg, int64_t calls)
{
    text_job *j = arg;
    const char *text;
    size_t len;
    bool stopped;
    for (int64_t i = 0; i < calls && !j->failed; i++) {
        const int32_t *ids = j->given + (size_t)i * j->n;
        size_t at = 0;
        for (size_t k = 0; k <= j->n; k++) {
            hone_status st = k < j->n ? hone_stream_push(j->stream, ids[k], &text, &len, &stopped, NULL)
                                      : hone_stream_flush(j->stream, &text, &len, NULL);
            if (st != HONE_OK) {
                j->failed = true;
                return;
            }
            if (i == j->keep && at + len <= MAX_TEXT) memcpy(j->kept + at, text, len);
            at += len;
        }
        if (i == j->keep) j->n_kept = at;
        j->n_got[i] = at;
    }
}

/* What a stream says of ids is what they say at once; that loses the one space that encoding added. */
static bool says_whole(const char *said, size_t n_said, const char *whole, size_t n)
{
    size_t skip = n_said == n + 1 && (!said || said[0] == ' ');
    return n_said - skip == n && (!said || memcmp(said + skip, whole, n) == 0);
}

static void turn_decode(void *arg, int64_t calls)
{
    text_job *j = arg;
    char *whole;
    size_t n;
    for (int64_t i = 0; i < j->calls && !j->failed; i++) {
        j->failed |= hone_detokenize(j->m, j->given + (size_t)i * j->n, j->n, false, &whole, &n, NULL) != HONE_OK;
        if (j->failed) break;
        j->other |= !says_whole(i == j->keep && n < MAX_TEXT ? j->kept : NULL, j->n_got[i], whole, n);
        hone_free(whole);
    }
    j->calls = 0;
    if (!calls || j->failed || !room_for(j, calls, (size_t)calls * j->n, 0)) return;
    j->keep = (int64_t)(hn_rand64(hn_clock_ns(), 0) % (uint64_t)calls);
    for (size_t at = 0, all = (size_t)calls * j->n; at < all && !j->failed;) {
        int32_t *ids;
        draw_text(j, j->texts);
        j->failed |= hone_tokenize(j->m, j->texts, j->len, 0, &ids, &n, NULL) != HONE_OK;
        if (j->failed) break;
        for (size_t i = 0; i < n && at < all; i++) j->given[at++] = ids[i];
        hone_free(ids);
    }
}
static const hn_bench_left left_decode = { .turn = turn_decode };

static bool prepare(text_job *j, hn_bench_run *r, size_t bytes, hone_status *st, hone_error *err)
{
    hone_model *m;
    *j = (text_job){ .key = r->set.seed ^ 0x746578u };
    if ((*st = hn_bench_model(r, &m, err)) != HONE_OK) return false;
    j->m = m;
    if (!r->info.has_tokenizer) {
        *st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s has no tokenizer", r->set.model);
        return false;
    }
    if (!(j->text = make_text(bytes))) {
        *st = HN_FAIL(err, HONE_E_NOMEM, "text of %zu bytes", bytes);
        return false;
    }
    j->len = strlen(j->text);
    *st = hone_tokenize(m, j->text, j->len, 0, &j->ids, &j->n, err);
    return *st == HONE_OK;
}

static void release(text_job *j)
{
    hone_stream_free(j->stream);
    hone_free(j->ids);
    free(j->text);
    free(j->texts);
    free(j->given);
    free(j->got);
    free(j->n_got);
    free(j->said);
    free(j->kept);
}

/* What the timed calls answered is what was proved, which the record says. */
static void prove_text(hn_bench_result *res, const text_job *j, const char *what, const void *p, size_t bytes)
{
    if (j->failed) hn_invalid(&res->verdict, "a call failed");
    if (j->other) hn_invalid(&res->verdict, "a timed call gave other %s than the same text does without a clock", what);
    json_object_set_new(res->extra, "proof", hn_proof_of("output", hn_fnv1a(HN_FNV_INIT, p, bytes)));
}

/* Whole-sequence decoding must give the text back. Tokenizers that normalise cannot. */
static hone_status check_back(text_job *j, hn_bench_result *res, hone_error *err)
{
    char *back;
    size_t len;
    hone_status st = hone_detokenize(j->m, j->ids, j->n, false, &back, &len, err);
    if (st != HONE_OK) return st;
    if (len == j->len && memcmp(back, j->text, len) == 0) res->verdict.state = HN_VALID;
    else
        snprintf(res->verdict.reason, sizeof res->verdict.reason,
                 "the text does not come back byte for byte: this tokenizer normalises");
    hone_free(back);
    return HONE_OK;
}

static void add_text_config(hn_bench_result *res, const text_job *j)
{
    res->config = json_pack("{s:I, s:I, s:s}", "bytes", (json_int_t)j->len, "tokens", (json_int_t)j->n, "texts", "new");
}

static hone_status run_encode(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const struct {
        const char *variant;
        size_t bytes;
    } sizes[] = { { "word", 12 }, { "sentence", 100 }, { "page", LONG_TEXT } };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && st == HONE_OK; i++) {
        text_job j;
        hn_bench_timing t = { 0 };
        hn_bench_result res = { .variant = sizes[i].variant, .threads = 1 };
        if (prepare(&j, r, sizes[i].bytes, &st, err) && (st = check_back(&j, &res, err)) == HONE_OK &&
            (st = hn_bench_time(r, &t, encode, &j, 1, &left_encode, err)) == HONE_OK) {
            double s = hn_bench_median(t.s, t.n);
            add_text_config(&res, &j);
            hn_bench_use(&res, &t, 1e6, false);
            json_object_set_new(res.extra, "mb_s", hn_lab_num((double)j.len / s * 1e-6));
            json_object_set_new(res.extra, "tokens_s",
                                hn_lab_num((double)j.n_tok / (double)(j.n_all ? j.n_all : 1) / s));
            prove_text(&res, &j, "ids", j.ids, j.n * sizeof *j.ids);
            st = hn_bench_add(r, e, &res, err);
        } else hn_bench_result_free(&res);
        hn_bench_timing_free(&t);
        release(&j);
        if (hn_bench_step(r, (double)(i + 1) / 3) && st == HONE_OK)
            st = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
    }
    return st;
}

/* What the stream says of the ids, put together, is what whole-sequence decoding says. */
static hone_status check_stream(text_job *j, hn_bench_result *res, hone_error *err)
{
    char *whole, *got = malloc(MAX_TEXT);
    size_t n = 0, at = 0, len;
    const char *part;
    bool stopped;
    hone_status st =
        got ? hone_detokenize(j->m, j->ids, j->n, false, &whole, &n, err) : HN_FAIL(err, HONE_E_NOMEM, "text");
    if (st != HONE_OK) {
        free(got);
        return st;
    }
    for (size_t k = 0; k <= j->n && st == HONE_OK; k++) {
        st = k < j->n ? hone_stream_push(j->stream, j->ids[k], &part, &len, &stopped, err)
                      : hone_stream_flush(j->stream, &part, &len, err);
        if (st == HONE_OK && len <= MAX_TEXT - at) {
            memcpy(got + at, part, len);
            at += len;
        }
    }
    if (st == HONE_OK && says_whole(got, at, whole, n)) res->verdict.state = HN_VALID;
    else if (st == HONE_OK)
        hn_invalid(&res->verdict, "the stream gives %zu bytes, decoding at once %zu, or they differ", at, n);
    hone_free(whole);
    j->said = got;
    j->n_said = at;
    if (st == HONE_OK && !(j->kept = malloc(MAX_TEXT))) st = HN_FAIL(err, HONE_E_NOMEM, "text");
    return st;
}

static hone_status run_decode(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    text_job j;
    hone_status st;
    hn_bench_timing t = { 0 };
    hn_bench_result res = { .threads = 1 };
    if (prepare(&j, r, LONG_TEXT, &st, err) && (st = hone_stream_new(&j.stream, j.m, NULL, 0, err)) == HONE_OK &&
        (st = check_stream(&j, &res, err)) == HONE_OK &&
        (st = hn_bench_time(r, &t, decode, &j, 1, &left_decode, err)) == HONE_OK) {
        double s = hn_bench_median(t.s, t.n);
        add_text_config(&res, &j);
        res.parts = (int64_t)j.n;
        hn_bench_use(&res, &t, 1e9 / (double)j.n, false);
        json_object_set_new(res.extra, "mb_s", hn_lab_num((double)j.len / s * 1e-6));
        prove_text(&res, &j, "text", j.said, j.n_said);
        st = hn_bench_add(r, e, &res, err);
    } else hn_bench_result_free(&res);
    hn_bench_timing_free(&t);
    release(&j);
    return st;
}

const hn_bench_entry hn_bench_text[] = {
    { .id = "tok.encode",
      .what = "text to ids: words, sentences, pages, none twice; and back again, which must give the text",
      .unit = "us",
      .target = "< 5 us a word",
      .method = 'K',
      .model = true,
      .suites = "quick full ci",
      .run = run_encode },
    { .id = "tok.decode",
      .what = "ids to text, one by one as in generation: time of one token",
      .unit = "ns",
      .target = "< 100 ns",
      .method = 'K',
      .model = true,
      .suites = "quick full ci",
      .run = run_decode },
    { 0 },
};
