/* One measured process beyond the plain sample: requests of text, generation without a
 * cache, several sequences, and the pace of a generation. Owns where the clock is
 * read; refuses to know processes and files. */
#include "lab/bench/sample.h"
#include "lab/machine/clock.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

/* ---- pace ---------------------------------------------------------------------------------- */

static double peak_of(const double *gap_ms, int32_t n)
{
    const double second = 1000;
    double sum = 0, peak = NAN;
    for (int32_t from = 0, to = 0; to < n; to++) { /* shortest stretches of so long and more that end at `to` */
        sum += gap_ms[to];
        while (sum - gap_ms[from] >= second) sum -= gap_ms[from++];
        if (sum >= second) peak = fmax(peak, 1000 * (to - from + 1) / sum);
    }
    return peak;
}

hone_status hn_pace_of(hn_pace *out, const double *gap_ms, int32_t n, hone_error *err)
{
    *out = (hn_pace){ .steady = NAN, .peak = NAN, .sustained = NAN };
    int32_t drop = n / 10 > 8 ? n / 10 : 8, half = n / 2;
    if (n > drop) {
        hn_stats st;
        hone_status s = hn_stats_of(&st, gap_ms + drop, (size_t)(n - drop), err);
        if (s != HONE_OK) return s;
        out->steady = 1000 / st.median;
    }
    double sum = 0;
    for (int32_t i = n - half; i < n; i++) sum += gap_ms[i];
    if (half > 0) out->sustained = 1000 * half / sum;
    out->peak = peak_of(gap_ms, n);
    return HONE_OK;
}

static json_t *timed_allocs(const hn_timed *t)
{
    json_t *o = hn_allocs_json("token", t->gen_allocs, t->n_gaps, t->n_gaps ? NULL : "no token was generated");
    bool any = !isnan(t->prefill_tok_s);
    json_object_set_new(o, "prompt",
                        hn_allocs_json("prompt", t->prompt_allocs, any, any ? NULL : "there was no prompt"));
    return o;
}

void hn_timed_json(json_t *o, const hn_timed *t)
{
    json_t *ids = json_array(), *gaps = json_array();
    hn_pace pace;
    hn_stats gap;
    if (hn_pace_of(&pace, t->gap_ms, t->n_gaps, NULL) != HONE_OK) pace = (hn_pace){ NAN, NAN, NAN };
    if (hn_stats_of(&gap, t->gap_ms, (size_t)t->n_gaps, NULL) != HONE_OK) gap.median = NAN;
    for (int32_t i = 0; i < t->n_gaps; i++) json_array_append_new(gaps, hn_lab_num(t->gap_ms[i]));
    for (int32_t i = 0; i < t->n_ids; i++) json_array_append_new(ids, json_integer(t->ids[i]));
    json_object_set_new(o, "ttft_ms", hn_lab_num(t->ttft_ms));
    json_object_set_new(o, "prefill_tok_s", hn_lab_num(t->prefill_tok_s));
    json_object_set_new(o, "decode_tok_s", hn_lab_num(t->decode_tok_s));
    json_object_set_new(o, "itl_ms", t->n_gaps ? hn_lab_num(gap.median) : json_null());
    json_object_set_new(o, "steady_tok_s", hn_lab_num(pace.steady));
    json_object_set_new(o, "peak_tok_s", hn_lab_num(pace.peak));
    json_object_set_new(o, "sustained_tok_s", hn_lab_num(pace.sustained));
    json_object_set_new(o, "gaps_ms", gaps);
    json_object_set_new(o, "ids", ids);
    json_object_set_new(o, "positions", json_integer(t->positions));
    json_object_set_new(o, "prompt_witness_ms", hn_lab_num(t->prompt_witness_ms));
    json_object_set_new(o, "gen_witness_ms", hn_lab_num(t->gen_witness_ms));
    json_object_set_new(o, "proof", hn_proof_json(t->proof));
    json_object_set_new(o, "allocs", timed_allocs(t));
    json_object_set_new(o, "invalid_reason",
                        t->verdict->state == HN_INVALID ? hn_lab_str(t->verdict->reason) : json_null());
}

/* ---- a request ------------------------------------------------------------------------------- */

hone_status hn_request_text(char **text, const hone_model *m, int32_t n, hone_error *err)
{
    hone_model_info info;
    hone_model_get_info(m, &info);
    *text = NULL;
    if (!info.has_tokenizer) return HONE_OK;
    size_t len = 0, cap = 0;
    for (int round = 1;; round *= 2) { /* more text until there are enough tokens */
        for (int k = 0; k < HN_Q_PROMPTS * round; k++) {
            const char *t = hn_q_texts[k % HN_Q_PROMPTS];
            size_t add = strlen(t) + 1;
            if (len + add + 1 > cap) {
                char *grown = realloc(*text, cap = 2 * (len + add + 1));
                if (!grown) {
                    free(*text);
                    *text = NULL;
                    return HN_FAIL(err, HONE_E_NOMEM, "a text of %d tokens", n);
                }
                *text = grown;
            }
            memcpy(*text + len, t, add - 1);
            len += add;
            (*text)[len - 1] = '\n';
            (*text)[len] = 0;
        }
        int32_t *ids;
        hone_span *spans;
        size_t n_ids;
        hone_status st = hone_tokenize_spans(m, *text, len, HONE_TOK_ADD, &ids, &spans, &n_ids, err);
        bool enough = st == HONE_OK && n_ids > (size_t)n + 1;
        if (enough && spans[n].end > 0 && spans[n].end <= len) (*text)[spans[n].end] = 0;
        if (st == HONE_OK) {
            hone_free(ids);
            hone_free(spans);
        }
        if (st != HONE_OK || enough || len > (size_t)64 << 20) {
            if (st != HONE_OK || !enough) {
                free(*text);
                *text = NULL;
            }
            return st == HONE_OK && !enough
                       ? HN_FAIL(err, HONE_E_FORMAT, "the tokenizer makes fewer than %d tokens of %zu bytes of text", n,
                                 len)
                       : st;
        }
    }
}

/* A token is usable when its bytes are there. */
static void use_bytes(hone_stream *stream, int32_t id)
{
    const char *text;
    size_t len;
    bool stopped;
    if (stream && hone_stream_push(stream, id, &text, &len, &stopped, NULL) == HONE_OK && len)
        __asm__ volatile("" : : "r"(text) : "memory");
}

typedef struct request_run {
    hone_session *s;
    const hone_model *m;
    hone_sampler *sampler;
    hone_stream *stream;
    int32_t *prompt;
    int32_t n_vocab;
} request_run;

static void request_run_free(request_run *r)
{
    hone_sampler_free(r->sampler);
    hone_stream_free(r->stream);
    free(r->prompt);
}

/* The next id, or −1 with a verdict. */
static int32_t draw(request_run *r, hn_request *q, const float *logits)
{
    int32_t id = -1;
    hone_error err;
    if (hone_sampler_pick(r->sampler, logits, 0, hone_seq_length(r->s, 0), &id, &err) != HONE_OK) {
        hn_invalid(&q->verdict, "generated token %d: %s", q->n_ids, err.message);
        return -1;
    }
    hone_sampler_accept(r->sampler, id);
    use_bytes(r->stream, id);
    return id;
}

static hone_status request_timed(request_run *r, hn_request *q, const char *text, const hn_request_config *c,
                                 hone_error *err)
{
    const float *logits;
    hone_status st;
    hn_allocs_begin();
    const hn_clocks whole = hn_clocks_begin();
    uint64_t t0 = whole.from, t1 = t0, seen = 0;
    if (text) {
        int32_t *ids;
        size_t n;
        if ((st = hone_tokenize(r->m, text, strlen(text), HONE_TOK_ADD, &ids, &n, err)) != HONE_OK) return st;
        if (n < (size_t)q->n_prompt) q->n_prompt = (int32_t)n;
        memcpy(r->prompt, ids, (size_t)q->n_prompt * sizeof *ids);
        hone_free(ids);
        t1 = hn_clock_ns();
        q->tokenize_ms = (double)(t1 - t0) * 1e-6;
    }
    if ((st = hone_append(r->s, 0, r->prompt, q->n_prompt, &logits, err)) != HONE_OK) return st;
    uint64_t t2 = hn_clock_ns();
    q->prefill_tok_s = q->n_prompt / ((double)(t2 - t1) * 1e-9);
    int32_t id = draw(r, q, logits);
    if (id < 0) return HONE_OK;
    double total_ms = 0;
    uint64_t first = hn_clock_ns();
    q->ttft_ms = (double)(first - t0) * 1e-6;
    q->prompt_witness_ms = (double)hn_clocks_seen(&whole, first) * 1e-6;
    hn_allocs_end(&q->prompt_allocs);
    q->ids[q->n_ids++] = id;
    hn_proof_step(&q->proof, logits, r->n_vocab, id); /* between the gaps: no clock runs */
    while (q->n_ids < c->n_gen) {
        hn_allocs_begin();
        const hn_clocks both = hn_clocks_begin();
        if ((st = hone_append(r->s, 0, &id, 1, &logits, err)) != HONE_OK) return st;
        if ((id = draw(r, q, logits)) < 0) return HONE_OK;
        uint64_t end = hn_clock_ns();
        double gap_ms = (double)(end - both.from) * 1e-6;
        seen += hn_clocks_seen(&both, end);
        hn_allocs_end(&q->gen_allocs);
        q->gap_ms[q->n_gaps++] = gap_ms;
        q->ids[q->n_ids++] = id;
        total_ms += gap_ms;
        hn_proof_step(&q->proof, logits, r->n_vocab, id);
    }
    q->total_ms = q->ttft_ms + total_ms;
    if (q->n_gaps > 0) {
        q->decode_tok_s = q->n_gaps / (total_ms * 1e-3);
        q->gen_witness_ms = (double)seen * 1e-6;
    }
    return HONE_OK;
}

static hone_status sampler_of(hone_sampler **out, const hone_model *m, const hn_request_config *c, hone_error *err)
{
    const hone_sampler_params p = { .temp = c->temp, .top_p = c->top_p, .repeat_penalty = 1, .seed = c->seed };
    hone_model_info info;
    hone_model_get_info(m, &info);
    hone_status st = hone_sampler_new(out, info.n_vocab, &p, err);
    return st == HONE_OK ? hone_sampler_suppress(*out, m, err) : st;
}

hone_status hn_request_run(hn_request *out, hone_session *s, const hone_model *m, const char *text,
                           const hn_request_config *c, hone_error *err)
{
    *out = (hn_request){ .tokenize_ms = NAN,
                         .ttft_ms = NAN,
                         .prefill_tok_s = NAN,
                         .decode_tok_s = NAN,
                         .total_ms = NAN,
                         .prompt_witness_ms = NAN,
                         .gen_witness_ms = NAN };
    hone_model_info info;
    hone_model_get_info(m, &info);
    request_run r = { .s = s, .m = m, .n_vocab = info.n_vocab };
    hn_proof_begin(&out->proof, c->n_gen);
    int32_t room = hone_session_n_ctx(s) - c->n_gen;
    out->n_prompt = c->text || c->n_prompt > room ? room : c->n_prompt;
    hone_status st = hone_seq_truncate(s, 0, 0, err);
    if (st == HONE_OK && out->n_prompt < 1)
        st = HN_FAIL(err, HONE_E_CTX, "a context of %d positions for %d generated tokens", hone_session_n_ctx(s),
                     c->n_gen);
    if (st == HONE_OK) st = sampler_of(&r.sampler, m, c, err);
    if (st == HONE_OK && text) st = hone_stream_new(&r.stream, m, NULL, 0, err);
    if (st == HONE_OK) {
        r.prompt = calloc((size_t)out->n_prompt, sizeof *r.prompt);
        out->ids = calloc((size_t)c->n_gen + 1, sizeof *out->ids);
        out->gap_ms = calloc((size_t)c->n_gen + 1, sizeof *out->gap_ms);
        if (!r.prompt || !out->ids || !out->gap_ms)
            st = HN_FAIL(err, HONE_E_NOMEM, "a request of %d tokens", out->n_prompt);
    }
    if (st == HONE_OK && !text) hn_bench_ids(r.prompt, out->n_prompt, 0, 0, m);
    if (st == HONE_OK) st = request_timed(&r, out, text, c, err);
    if (st == HONE_E_NUMERIC) { /* a verdict, not a failure */
        hn_invalid(&out->verdict, "%s", err ? err->message : "not a number");
        st = HONE_OK;
    }
    out->positions = hone_seq_length(s, 0);
    request_run_free(&r);
    if (st != HONE_OK) hn_request_free(out);
    return st;
}

hone_status hn_request_again(hn_proof *out, hone_session *s, const hone_model *m, const char *text,
                             const hn_request_config *c, const int32_t *ids, hone_error *err)
{
    int32_t *own = calloc((size_t)c->n_prompt, sizeof *own), *of_text = NULL;
    size_t n = (size_t)c->n_prompt;
    hn_answer a = { .prompt = own, .ids = ids, .n_gen = c->n_gen };
    hone_status st = own ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "a request of %d tokens", c->n_prompt);
    if (st == HONE_OK && !text) hn_bench_ids(own, c->n_prompt, 0, 0, m);
    if (st == HONE_OK && text) st = hone_tokenize(m, text, strlen(text), HONE_TOK_ADD, &of_text, &n, err);
    if (of_text) a.prompt = of_text;
    a.n_prompt = n < (size_t)c->n_prompt ? (int32_t)n : c->n_prompt;
    if (st == HONE_OK) st = sampler_of(&a.sampler, m, c, err);
    if (st == HONE_OK) st = hn_answer_again(out, s, m, &a, err);
    hone_sampler_free(a.sampler);
    hone_free(of_text);
    free(own);
    return st;
}

void hn_request_free(hn_request *q)
{
    free(q->gap_ms);
    free(q->ids);
    *q = (hn_request){ 0 };
}

json_t *hn_request_json(const hn_request *q)
{
    json_t *o = json_object();
    json_object_set_new(o, "n_prompt", json_integer(q->n_prompt));
    json_object_set_new(o, "tokenize_ms", hn_lab_num(q->tokenize_ms));
    json_object_set_new(o, "total_ms", hn_lab_num(q->total_ms));
    hn_timed_json(o, &(hn_timed){ .ttft_ms = q->ttft_ms,
                                  .prefill_tok_s = q->prefill_tok_s,
                                  .decode_tok_s = q->decode_tok_s,
                                  .prompt_witness_ms = q->prompt_witness_ms,
                                  .gen_witness_ms = q->gen_witness_ms,
                                  .gap_ms = q->gap_ms,
                                  .ids = q->ids,
                                  .n_gaps = q->n_gaps,
                                  .n_ids = q->n_ids,
                                  .positions = q->positions,
                                  .proof = &q->proof,
                                  .prompt_allocs = &q->prompt_allocs,
                                  .gen_allocs = &q->gen_allocs,
                                  .verdict = &q->verdict });
    return o;
}

/* ---- without a cache --------------------------------------------------------------------------- */

/* Greedy; −1 with a verdict. */
static int32_t best(hn_verdict *v, const float *logits, int32_t n_vocab, int32_t i)
{
    hn_logit_scan r = hn_scan_logits(logits, n_vocab);
    if (!r.finite) hn_invalid(v, "generated token %d: the logits hold a NaN or an infinity", i);
    else if (r.all_equal) hn_invalid(v, "generated token %d: all %d logits are equal (%g)", i, n_vocab, logits[0]);
    return r.best;
}

/* With the cache. ids [n_tok] hold n_prompt tokens, the rest is generated. row [n_tok]: hashes of the steps' logits. */
static hone_status generate(hn_uncached *u, hone_session *s, int32_t *ids, int32_t n_vocab, uint64_t *row,
                            hone_error *err)
{
    const float *logits;
    uint64_t spent = 0, seen = 0;
    hn_proof_begin(&u->proof, u->n_tok - u->n_prompt);
    hone_status st = hone_seq_truncate(s, 0, 0, err);
    for (int32_t n = u->n_prompt; n < u->n_tok && st == HONE_OK; n++) {
        const hn_clocks both = hn_clocks_begin();
        st = n == u->n_prompt ? hone_append(s, 0, ids, n, &logits, err)
                              : hone_append(s, 0, ids + n - 1, 1, &logits, err);
        if (st == HONE_OK && (ids[n] = best(&u->verdict, logits, n_vocab, n)) < 0) break;
        uint64_t end = hn_clock_ns();
        spent += end - both.from;
        seen += hn_clocks_seen(&both, end);
        if (st != HONE_OK) break;
        hn_proof_step(&u->proof, logits, n_vocab, ids[n]);
        row[n] = hn_bits_hash(logits, n_vocab);
    }
    u->on_s = (double)spent * 1e-9;
    u->on_witness_ms = (double)seen * 1e-6;
    return st;
}

/* All of ids [n] anew, in calls of `chunk`; the hash of the last logits. */
static hone_status pass_of(uint64_t *row, hone_session *s, const int32_t *ids, int32_t n, int32_t chunk,
                           int32_t n_vocab, hone_error *err)
{
    const float *logits = NULL;
    hone_status st = hone_seq_truncate(s, 0, 0, err);
    for (int32_t i = 0; i < n && st == HONE_OK; i += chunk)
        st = hone_append(s, 0, ids + i, n - i < chunk ? n - i : chunk, &logits, err);
    if (st == HONE_OK) *row = hn_bits_hash(logits, n_vocab);
    return st;
}

/* Without the cache: the pass of n tokens begins with own[n], drawn now, so that none has the beginning of another and
 * what was kept of one is of no use to the next. drawn [n_tok]: hashes of their logits. */
static hone_status recompute(hn_uncached *u, hone_session *s, int32_t *ids, int32_t n_vocab, const int32_t *own,
                             uint64_t *drawn, hone_error *err)
{
    uint64_t spent = 0, seen = 0;
    const int32_t first = ids[0];
    hone_status st = HONE_OK;
    for (int32_t n = u->n_prompt; n < u->n_tok && st == HONE_OK; n++) {
        const float *logits;
        ids[0] = own[n];
        const hn_clocks both = hn_clocks_begin();
        st = hone_seq_truncate(s, 0, 0, err);
        if (st == HONE_OK) st = hone_append(s, 0, ids, n, &logits, err);
        if (st == HONE_OK && best(&u->verdict, logits, n_vocab, n) < 0) break;
        uint64_t end = hn_clock_ns();
        spent += end - both.from;
        seen += hn_clocks_seen(&both, end);
        if (st == HONE_OK) drawn[n] = hn_bits_hash(logits, n_vocab);
    }
    ids[0] = first;
    u->off_s = (double)spent * 1e-9;
    u->off_witness_ms = (double)seen * 1e-6;
    return st;
}

/* Behind the clock, at the first, the last and some drawn lengths: what was computed anew is what other calls make of
 * it, and the generation's own tokens, computed anew, give what its cache gave. */
static hone_status check_again(hn_uncached *u, hone_session *s, int32_t *ids, int32_t n_vocab, const int32_t *own,
                               const uint64_t *drawn, const uint64_t *row, hone_error *err)
{
    enum { LOOKS = 6, CALLS = 37 };
    const uint64_t draw = hn_clock_ns();
    const int32_t first = ids[0], n_step = u->n_tok - u->n_prompt;
    hone_status st = HONE_OK;
    for (int k = 0; k < LOOKS && n_step > 0 && st == HONE_OK && u->verdict.state != HN_INVALID; k++) {
        int32_t at = k == 0 ? 0 : k == 1 ? n_step - 1 : (int32_t)(hn_rand64(draw, (uint64_t)k) % (uint64_t)n_step);
        const int32_t n = u->n_prompt + at;
        uint64_t again, anew;
        ids[0] = own[n];
        st = pass_of(&again, s, ids, n, CALLS, n_vocab, err);
        ids[0] = first;
        if (st == HONE_OK) st = pass_of(&anew, s, ids, n, n, n_vocab, err);
        if (st != HONE_OK) break;
        u->same = again == drawn[n] && anew == row[n];
        if (again != drawn[n])
            hn_invalid(&u->verdict, "without the cache, a pass of %d tokens was not of its tokens", n);
        else if (anew != row[n])
            hn_invalid(&u->verdict, "with and without the cache, token %d came from other logits", n);
    }
    return st;
}

/* Tokens for which recomputing everything takes less than most_s: from the time of one prompt of 256. */
static hone_status choose_length(hn_uncached *u, hone_session *s, const int32_t *ids, double most_s, hone_error *err)
{
    enum { PILOT = 256 };
    const float *logits;
    hone_status st = hone_seq_truncate(s, 0, 0, err);
    uint64_t t0 = hn_clock_ns();
    if (st == HONE_OK) st = hone_append(s, 0, ids, PILOT, &logits, err);
    double per_token = (double)(hn_clock_ns() - t0) * 1e-9 / PILOT;
    for (u->n_tok = 512; u->n_tok > 32 && 0.5 * u->n_tok * u->n_tok * per_token > most_s;) u->n_tok /= 2;
    return st;
}

hone_status hn_uncached_run(hn_uncached *out, hone_session *s, const hone_model *m, int32_t n_prompt, int32_t n_tok,
                            double most_s, hone_error *err)
{
    *out = (hn_uncached){ .n_prompt = n_prompt, .n_tok = n_tok, .on_s = NAN, .off_s = NAN };
    hone_model_info info;
    hone_model_get_info(m, &info);
    int32_t most = n_tok > 512 ? n_tok : 512, *ids = calloc(2 * (size_t)most, sizeof *ids);
    uint64_t *row = calloc(2 * (size_t)most, sizeof *row);
    hone_status st = ids && row ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "ids of %d tokens", most);
    if (st == HONE_OK) hn_bench_ids(ids, most, 0, 0, m);
    if (st == HONE_OK) hn_bench_ids(ids + most, most, 0, hn_clock_ns(), m);
    if (st == HONE_OK && n_tok <= 0) st = choose_length(out, s, ids, most_s, err);
    if (st == HONE_OK) st = generate(out, s, ids, info.n_vocab, row, err);
    out->same = out->verdict.state != HN_INVALID;
    if (st == HONE_OK && out->same) st = recompute(out, s, ids, info.n_vocab, ids + most, row + most, err);
    if (st == HONE_OK && out->same) st = check_again(out, s, ids, info.n_vocab, ids + most, row + most, row, err);
    free(row);
    if (st == HONE_E_NUMERIC) {
        hn_invalid(&out->verdict, "%s", err ? err->message : "not a number");
        st = HONE_OK;
    }
    if (st == HONE_OK) out->ids = ids;
    else free(ids);
    return st;
}

void hn_uncached_free(hn_uncached *u)
{
    free(u->ids);
    u->ids = NULL;
}

/* ---- several sequences ---------------------------------------------------------------------------- */

static void add_row(uint64_t *sum, const float *logits, int32_t n_vocab)
{
    uint64_t bits = hn_bits_hash(logits, n_vocab);
    *sum = hn_fnv1a(*sum, &bits, sizeof bits);
}

static hone_status batch_timed(hn_batch *b, hone_session *s, const int32_t *prompts, int32_t n_vocab, hone_token *tok,
                               float *logits, hone_error *err)
{
    int32_t n = 0, np = b->n_prompt;
    for (int32_t q = 0; q < b->n_seq; q++)
        for (int32_t i = 0; i < np; i++) tok[n++] = (hone_token){ prompts[q * np + i], i, q, i + 1 == np };
    hn_stretches prompt = { 0 }, gen = { 0 };
    hn_clocks from = hn_clocks_begin();
    hone_status st = hone_run_batch(s, tok, n, logits, err);
    b->prefill_tok_s = n / hn_stretches_add(&prompt, &from);
    b->prefill_witness_ms = (double)prompt.seen * 1e-6;
    hn_proof_begin(&b->proof, b->n_gen);
    hn_proof_begin(&b->company, b->n_gen);
    for (int32_t step = 0; st == HONE_OK; step++) {
        from = hn_clocks_begin(); /* choosing belongs to the gap before it, the first time to the one behind */
        double *gap = &b->gap_ms[step > 0 ? step - 1 : 0];
        for (int32_t q = 0; q < b->n_seq; q++) {
            int32_t id = best(&b->verdict, logits + (size_t)q * (size_t)n_vocab, n_vocab, step);
            if (id < 0) return HONE_OK;
            tok[q] = (hone_token){ id, np + step, q, true };
        }
        b->ids[step] = tok[0].id;
        *gap += 1e3 * hn_stretches_add(&gen, &from);
        hn_proof_step(&b->proof, logits, n_vocab, tok[0].id);
        hn_proof_step(&b->company, logits, (int64_t)b->n_seq * n_vocab, tok[b->n_seq - 1].id);
        for (int32_t q = 0; q < b->n_seq; q++) add_row(&b->each[q], logits + (size_t)q * (size_t)n_vocab, n_vocab);
        if (step + 1 == b->n_gen) break;
        hn_allocs_begin();
        from = hn_clocks_begin();
        st = hone_run_batch(s, tok, b->n_seq, logits, err);
        b->gap_ms[step] += 1e3 * hn_stretches_add(&gen, &from);
        hn_allocs_end(&b->gen_allocs);
    }
    b->decode_tok_s = (double)b->n_seq * (b->n_gen - 1) / ((double)gen.ns * 1e-9);
    b->gen_witness_ms = (double)gen.seen * 1e-6;
    return st;
}

/* Not a number is a verdict; any other error leaves nothing. */
static hone_status end_batch(hn_batch *b, hone_status st, const hone_error *err)
{
    if (st == HONE_E_NUMERIC) {
        hn_invalid(&b->verdict, "%s", err ? err->message : "not a number");
        st = HONE_OK;
    }
    if (st != HONE_OK) hn_batch_free(b);
    return st;
}

hone_status hn_batch_run(hn_batch *out, hone_session *s, const hone_model *m, int32_t n_seq, int32_t n_prompt,
                         int32_t n_gen, hone_error *err)
{
    *out =
        (hn_batch){ .n_seq = n_seq, .n_prompt = n_prompt, .n_gen = n_gen, .prefill_tok_s = NAN, .decode_tok_s = NAN };
    hone_model_info info;
    hone_model_get_info(m, &info);
    size_t n = (size_t)n_seq * (size_t)n_prompt, n_logits = (size_t)n_seq * (size_t)info.n_vocab;
    int32_t *prompts = calloc(n, sizeof *prompts);
    hone_token *tok = calloc(n, sizeof *tok);
    float *logits = calloc(n_logits, sizeof *logits);
    out->ids = calloc((size_t)n_gen, sizeof *out->ids);
    out->each = calloc((size_t)n_seq, sizeof *out->each);
    out->gap_ms = calloc((size_t)n_gen, sizeof *out->gap_ms);
    hone_status st = HONE_OK;
    if (!prompts || !tok || !logits || !out->ids || !out->each || !out->gap_ms)
        st = HN_FAIL(err, HONE_E_NOMEM, "a batch of %d sequences", n_seq);
    if (st == HONE_OK) {
        hn_bench_ids(prompts, (int32_t)n, 0, 0, m);
        memset(logits, 1, n_logits * sizeof *logits); /* its pages are there before the clock runs */
        st = batch_timed(out, s, prompts, info.n_vocab, tok, logits, err);
    }
    free(prompts);
    free(tok);
    free(logits);
    return end_batch(out, st, err);
}

/* One sequence's prompt and greedy steps, in sequence 0. */
static hone_status one_alone(hn_batch *b, int32_t q, hone_session *s, const int32_t *prompt, int32_t n_vocab,
                             hone_error *err)
{
    const float *x;
    hone_status st = hone_seq_truncate(s, 0, 0, err);
    if (st == HONE_OK) st = hone_append(s, 0, prompt, b->n_prompt, &x, err);
    for (int32_t step = 0; step < b->n_gen && st == HONE_OK; step++) {
        add_row(&b->each[q], x, n_vocab);
        int32_t id = best(&b->verdict, x, n_vocab, step);
        if (id < 0) return HONE_OK;
        if (step + 1 < b->n_gen) st = hone_append(s, 0, &id, 1, &x, err);
    }
    return st;
}

hone_status hn_batch_alone(hn_batch *out, hone_session *s, const hone_model *m, int32_t n_seq, int32_t n_prompt,
                           int32_t n_gen, hone_error *err)
{
    *out =
        (hn_batch){ .n_seq = n_seq, .n_prompt = n_prompt, .n_gen = n_gen, .prefill_tok_s = NAN, .decode_tok_s = NAN };
    hone_model_info info;
    hone_model_get_info(m, &info);
    int32_t *prompt = calloc((size_t)n_prompt, sizeof *prompt);
    out->each = calloc((size_t)n_seq, sizeof *out->each);
    hone_status st = prompt && out->each ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%d sequences alone", n_seq);
    for (int32_t q = 0; q < n_seq && st == HONE_OK && out->verdict.state != HN_INVALID; q++) {
        hn_bench_ids(prompt, n_prompt, q * n_prompt, 0, m);
        st = one_alone(out, q, s, prompt, info.n_vocab, err);
    }
    free(prompt);
    return end_batch(out, st, err);
}

void hn_batch_free(hn_batch *b)
{
    free(b->ids);
    free(b->each);
    free(b->gap_ms);
    b->ids = NULL;
    b->each = NULL;
    b->gap_ms = NULL;
}
