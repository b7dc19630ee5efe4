/* tok.*: encoding and decoding of texts, checked there and back. Knows the public API alone. */
#include "lab/bench/bench.h"
#include "lab/machine/clock.h"
#include "lab/quality/proof.h"
#include "lab/quality/quality.h"
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
    uint64_t key, n_drawn; /* of which pass is kept */
    bool failed, other;    /* a call; its answer was another one */
} text_job;

static void encode(void *arg, int64_t calls)
{
    text_job *j = arg;
    for (int64_t i = 0; i < calls; i++) {
        int32_t *ids;
        size_t n;
        if (hone_tokenize(j->m, j->text, j->len, 0, &ids, &n, NULL) != HONE_OK) {
            j->failed = true;
            continue;
        }
        j->other |= n != j->n || memcmp(ids, j->ids, n * sizeof *ids) != 0;
        hone_free(ids);
    }
}

/* What was kept is what must be said. */
static void look_at_kept(text_job *j)
{
    j->other |= j->n_kept > 0 && (j->n_kept != j->n_said || memcmp(j->kept, j->said, j->n_said) != 0);
    j->n_kept = 0;
}

/* Of all passes the length is held against what was proved; of one, which nobody knows before, the text: it is kept,
 * and looked at when the next ones begin. Looking at each piece was 7 % of the time that is measured. */
static void decode(void *arg, int64_t calls)
{
    text_job *j = arg;
    const char *text;
    size_t len;
    bool stopped;
    look_at_kept(j);
    int64_t keep = (int64_t)(hn_rand64(j->key, j->n_drawn++) % (uint64_t)calls);
    for (int64_t i = 0; i < calls && !j->failed; i++) {
        size_t at = 0;
        for (size_t k = 0; k <= j->n; k++) {
            hone_status st = k < j->n ? hone_stream_push(j->stream, j->ids[k], &text, &len, &stopped, NULL)
                                      : hone_stream_flush(j->stream, &text, &len, NULL);
            if (st != HONE_OK) {
                j->failed = true;
                return;
            }
            if (i == keep && at + len <= MAX_TEXT) memcpy(j->kept + at, text, len);
            at += len;
        }
        if (i == keep) j->n_kept = at;
        j->other |= at != j->n_said;
    }
}

static bool prepare(text_job *j, hn_bench_run *r, size_t bytes, hone_status *st, hone_error *err)
{
    hone_model *m;
    *j = (text_job){ 0 };
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
    free(j->said);
    free(j->kept);
}

/* What the timed calls answered is what was proved, which the record says. */
static void prove_text(hn_bench_result *res, const text_job *j, const char *what, const void *p, size_t bytes)
{
    if (j->failed) hn_invalid(&res->verdict, "a call failed");
    if (j->other) hn_invalid(&res->verdict, "a timed call gave other %s than the one before the clock", what);
    json_object_set_new(res->extra, "proof", hn_proof_of("output", hn_fnv1a(HN_FNV_INIT, p, bytes)));
}

/* Whole-sequence decoding must give the text back. Tokenizers that normalise cannot. */
static hone_status check_back(const text_job *j, hn_bench_result *res, hone_error *err)
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
    res->config = json_pack("{s:I, s:I}", "bytes", (json_int_t)j->len, "tokens", (json_int_t)j->n);
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
            (st = hn_bench_time(r, &t, encode, &j, 1, NULL, err)) == HONE_OK) {
            double s = hn_bench_median(t.s, t.n);
            add_text_config(&res, &j);
            hn_bench_use(&res, &t, 1e6, false);
            json_object_set_new(res.extra, "mb_s", hn_lab_num((double)j.len / s * 1e-6));
            json_object_set_new(res.extra, "tokens_s", hn_lab_num((double)j.n / s));
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
    size_t skip = at == n + 1 && got[0] == ' '; /* a whole sequence loses the one space that encoding added */
    if (st == HONE_OK && at - skip == n && memcmp(got + skip, whole, n) == 0) res->verdict.state = HN_VALID;
    else if (st == HONE_OK)
        hn_invalid(&res->verdict, "the stream gives %zu bytes, decoding at once %zu, or they differ", at, n);
    hone_free(whole);
    j->said = got;
    j->n_said = at;
    j->key = hn_rand64(hn_clock_ns(), 0);
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
        (st = hn_bench_time(r, &t, decode, &j, 1, NULL, err)) == HONE_OK) {
        double s = hn_bench_median(t.s, t.n);
        add_text_config(&res, &j);
        res.parts = (int64_t)j.n;
        hn_bench_use(&res, &t, 1e9 / (double)j.n, false);
        json_object_set_new(res.extra, "mb_s", hn_lab_num((double)j.len / s * 1e-6));
        look_at_kept(&j);
        prove_text(&res, &j, "text", j.said, j.n_said);
        st = hn_bench_add(r, e, &res, err);
    } else hn_bench_result_free(&res);
    hn_bench_timing_free(&t);
    release(&j);
    return st;
}

const hn_bench_entry hn_bench_text[] = {
    { .id = "tok.encode",
      .what = "text to ids: a word, a sentence, a page; and back again, which must give the text",
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
