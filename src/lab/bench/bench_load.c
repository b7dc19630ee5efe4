/* The entries that measure a server, this program's own in a process of its own (load.c). serve.load asks it with 1, 4
 * and 16 clients, e2e.stream with one, in streams and in one piece. Answers are compared before rates: they must be the
 * same whatever the load, and however they come. `hone bench serve` measures a server that runs,
 * alone or beside another. */
#define _GNU_SOURCE
#include "lab/bench/load.h"
#include "base/os.h"
#include "lab/bench/runner.h"
#include "lab/machine/clock.h"
#include "lab/quality/proof.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N_SIZE = 3, SLOTS = 16, WAIT_S = 300 };
static const int32_t sizes[N_SIZE] = { 1, 4, SLOTS };

/* ---- the server ------------------------------------------------------------------------------------------------- */

typedef struct served {
    char self[1024], url[64], threads[16], ctx[16];
    const char *argv[24];
    hn_beside process;
} served;

static void give_args(served *s, const hn_bench_settings *set, int32_t n_ctx)
{
    size_t n = 0;
    snprintf(s->threads, sizeof s->threads, "%d", set->threads);
    snprintf(s->ctx, sizeof s->ctx, "%d", n_ctx);
    const char *const always[] = { s->self, "serve", "-m",         set->model, "--port", "0",    "--no-ui",
                                   "-c",    s->ctx,  "--parallel", "16",       "--kv",   set->kv };
    for (; n < sizeof always / sizeof *always; n++) s->argv[n] = always[n];
    if (set->threads > 0) s->argv[n++] = "-t", s->argv[n++] = s->threads;
    if (set->pre) s->argv[n++] = "--pre", s->argv[n++] = set->pre;
    if (set->packed) s->argv[n++] = "--packed", s->argv[n++] = set->packed;
    if (set->allow_paging) s->argv[n++] = "--allow-paging";
    s->argv[n] = NULL;
}

static hone_status end_server(served *s, hone_status st, hone_error *err)
{
    char why[300];
    bool early = hn_beside_gone(&s->process);
    hn_beside_stop(&s->process, why, sizeof why);
    return early ? HN_FAIL(err, HONE_E_IO, "the server ended by itself: %s", why) : st;
}

/* Until it answers. */
static hone_status await_server(served *s, bool (*interrupted)(void *), hone_error *err)
{
    const hn_load_params one = {
        .url = s->url, .n_clients = 1, .n_requests = 1, .n_words = 4, .n_gen = 2, .timeout_s = 60, .stop = interrupted
    };
    const struct timespec pause = { .tv_nsec = 50000000 };
    for (uint64_t begin = hn_clock_ns(); hn_clock_ns() - begin < (uint64_t)WAIT_S * 1000000000;) {
        hn_load_run run = { 0 };
        if (hn_beside_gone(&s->process)) return HONE_OK; /* end_server says why */
        if (interrupted && interrupted(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        if (s->url[0] || hn_load_address(s->url, sizeof s->url, &s->process)) {
            hone_status st = hn_load(&run, &one, err);
            bool answered = st == HONE_OK && run.n_failed == 0;
            hn_load_free(&run);
            if (st == HONE_E_FORMAT) return HONE_OK; /* it is there; what is wrong with its answers, the rounds tell */
            if (answered || (st != HONE_OK && st != HONE_E_NETWORK)) return st;
        }
        nanosleep(&pause, NULL);
    }
    return HN_FAIL(err, HONE_E_NETWORK, "the server does not answer%s%s within %d s", s->url[0] ? " at " : "", s->url,
                   (int)WAIT_S);
}

static hone_status begin_server(served *s, const hn_bench_run *r, int32_t n_ctx, hone_error *err)
{
    *s = (served){ 0 };
    if (!hn_os_program_path(s->self, sizeof s->self))
        return HN_FAIL(err, HONE_E_IO, "this system does not tell where the program is");
    give_args(s, &r->set, n_ctx);
    hone_status st = hn_beside_start(&s->process, s->argv, NULL, err);
    if (st != HONE_OK) return st;
    st = await_server(s, r->set.stop, err);
    return st == HONE_OK && !hn_beside_gone(&s->process) ? HONE_OK : end_server(s, st, err);
}

static const float drawn_temp = 0.8f; /* of answers that are not greedy */

/* ---- measuring -------------------------------------------------------------------------------------------------- */

enum { N_BIAS = 12 };
typedef struct load_sums {
    int32_t n_changed, n_failed;
    char problem[96];
    hn_load_proof last;   /* of the last requests: one of them is computed here */
    hn_load_proof drawn;  /* of some whose tokens were drawn: likewise */
    hn_load_proof biased; /* of one with biases for tokens that are drawn: likewise */
    hone_bias bias[N_BIAS];
    size_t n_bias;
    char other[240]; /* what its answer is not; "" */
} load_sums;

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double ms_at(uint64_t *x, size_t n, double share)
{
    if (!n) return NAN;
    qsort(x, n, sizeof *x, by_size);
    size_t i = (size_t)(share * (double)(n - 1) + 0.5);
    return (double)x[i] / 1e6;
}

/* One size of one round. A round has two requests a client: of so few the slowest is told, no percentile (stats.h).
 * NULL: no memory. */
static json_t *numbers(load_sums *sums, const hn_load_run *run)
{
    uint64_t *first = calloc((size_t)run->n + 1, sizeof *first);
    size_t n = 0;
    if (!first) return NULL;
    for (int32_t i = 0; i < run->n; i++) {
        const hn_load_one *one = &run->one[i];
        if (one->problem[0]) {
            snprintf(sums->problem, sizeof sums->problem, "%s", one->problem);
            continue;
        }
        if (one->first) first[n++] = one->first; /* else none of its tokens has text */
    }
    sums->n_failed += run->n_failed;
    json_t *o = json_object();
    json_object_set_new(o, "tok_s", hn_lab_num((double)run->n_token / run->seconds));
    json_object_set_new(o, "req_s", hn_lab_num((double)(run->n - run->n_failed) / run->seconds));
    json_object_set_new(o, "first_ms", hn_lab_num(ms_at(first, n, 0.5)));
    json_object_set_new(o, "first_max_ms", hn_lab_num(ms_at(first, n, 1)));
    json_object_set_new(o, "gap_ms", hn_lab_num(ms_at(run->gap, run->n_gap, 0.5)));
    json_object_set_new(o, "gap_max_ms", hn_lab_num(ms_at(run->gap, run->n_gap, 1)));
    free(first);
    return o;
}

/* The answers of all rounds, where those of the first are proved: of records that stand for all of them. */
static void prove_rounds(const hn_bunch *b)
{
    json_t *rounds = json_array(), *round;
    size_t i;
    json_array_foreach(b->all, i, round)
        json_array_append(rounds, json_object_get(json_object_get(round, "proof"), "output"));
    json_object_set_new(json_object_get(json_array_get(b->all, 0), "proof"), "rounds", rounds);
}

/* Rounds of all sizes, each with prompts of its own: what the server still knows of others would be time that is not
 * measured. Then some of each size's last ones again, alone. */
static hone_status measure(hn_runner *p, hn_bunch *b, load_sums *sums, const served *s, int32_t n_words, int32_t n_gen,
                           hone_error *err)
{
    hone_status st = HONE_OK;
    hn_load_proof proof[N_SIZE] = { { 0 } };
    hn_load_params ask = {
        .url = s->url, .n_words = n_words, .n_gen = n_gen, .exact = true, .timeout_s = 600, .stop = p->r->set.stop
    };
    b->all = json_array();
    b->wanted = hn_runner_samples(p, 6);
    for (int32_t k = 0; k < b->wanted && st == HONE_OK; k++) {
        json_t *round = json_pack("{s:{s:i, s:s}, s:{}}", "engine", "threads", (int)p->r->set.threads, "cpu",
                                  p->r->level, "clients");
        uint64_t answers = HN_FNV_INIT;
        double served_s = 0;
        for (int i = 0; i < N_SIZE && st == HONE_OK; i++) {
            char name[16];
            hn_load_run run = { 0 };
            ask.n_clients = sizes[i];
            ask.n_requests = p->quick ? sizes[i] : 2 * sizes[i];
            ask.seed = p->r->set.seed + (uint64_t)(k * N_SIZE + i);
            snprintf(name, sizeof name, "%d", sizes[i]);
            st = hn_load(&run, &ask, err);
            if (run.lie[0]) snprintf(sums->other, sizeof sums->other, "%s", run.lie);
            json_t *o = st == HONE_OK ? numbers(sums, &run) : NULL;
            served_s += run.seconds;
            if (st == HONE_OK && !o) st = HN_FAIL(err, HONE_E_NOMEM, "%d requests", run.n);
            if (o) {
                json_object_set_new(json_object_get(round, "clients"), name, o);
                hn_load_keep(&proof[i], &run, ask.seed);
                sums->last = proof[i];
                const uint64_t hash = hn_load_hash(&run);
                answers = hn_fnv1a(answers, &hash, sizeof hash);
            }
            hn_load_free(&run);
        }
        json_object_set_new(round, "proof", hn_proof_of("output", answers));
        json_object_set_new(round, "served_s", hn_lab_num(served_s)); /* what a gain must be seen in from outside */
        if (st == HONE_OK) json_array_append(b->all, round);
        json_decref(round);
    }
    prove_rounds(b);
    for (int i = 0; i < N_SIZE && st == HONE_OK; i++) {
        st = hn_load_prove(&proof[i], &ask, &sums->n_changed, &sums->n_failed, err);
    }
    return st;
}

static void judge(hn_bunch *b, const load_sums *sums)
{
    if (sums->n_failed) hn_invalid(&b->verdict, "%d requests failed: %s", sums->n_failed, sums->problem);
    else if (sums->n_changed) hn_invalid(&b->verdict, "%d answers were others than without load", sums->n_changed);
    else b->verdict.state = HN_VALID;
}

static hone_status add_rows(hn_runner *p, hn_bunch *b, int32_t n_words, int32_t n_gen, hone_error *err)
{
    static const struct {
        const char *what, *unit, *key;
        int better;
    } rows[] = { { "", "tok/s", "tok_s", 1 },
                 { ", requests", "req/s", "req_s", 1 },
                 { ", first text", "ms", "first_ms", -1 },
                 { ", slowest first text", "ms", "first_max_ms", -1 },
                 { ", between texts", "ms", "gap_ms", -1 },
                 { ", longest between", "ms", "gap_max_ms", -1 } };
    hone_status st = HONE_OK;
    for (int i = 0; i < N_SIZE; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows && st == HONE_OK; k++) {
            char variant[64], path[64];
            snprintf(variant, sizeof variant, "%d client%s%s", sizes[i], sizes[i] == 1 ? "" : "s", rows[k].what);
            snprintf(path, sizeof path, "clients.%d.%s", sizes[i], rows[k].key);
            json_t *config = hn_runner_config(p, n_words, n_gen, "greedy");
            json_object_set_new(config, "clients", json_integer(sizes[i]));
            const hn_runner_record rec = { .variant = variant,
                                           .unit = rows[k].unit,
                                           .better = rows[k].better,
                                           .path = path,
                                           .config = config,
                                           .raw = i == 0 && k == 0 };
            st = hn_runner_add(p, b, &rec, err);
        }
    return st;
}

/* ---- what streaming costs --------------------------------------------------------------------------------------- */

/* Nanoseconds a token of the answers; NaN: one failed. Their texts join the hash. */
static double ns_a_token(const hn_load_run *run, uint64_t *hash, load_sums *sums)
{
    uint64_t ns = 0, n = 0;
    for (int32_t i = 0; i < run->n; i++) {
        const hn_load_one *one = &run->one[i];
        if (one->problem[0]) snprintf(sums->problem, sizeof sums->problem, "%s", one->problem);
        ns += one->end;
        n += (uint64_t)one->n_token;
        *hash = hn_fnv1a(*hash, &one->hash, sizeof one->hash);
    }
    sums->n_failed += run->n_failed;
    return run->n_failed || !n ? NAN : (double)ns / (double)n;
}

/* A round: the same requests as streams and in one piece, which of them first by turns, behind a run that brings their
 * prompts into the server's memory. */
static hone_status measure_stream(hn_runner *p, hn_bunch *b, load_sums *sums, const served *s, int32_t n_words,
                                  int32_t n_gen, hone_error *err)
{
    hone_status st = HONE_OK;
    b->all = json_array();
    b->wanted = hn_runner_samples(p, 12);
    for (int32_t k = 0; k < b->wanted && st == HONE_OK; k++) {
        double ns[2] = { NAN, NAN };
        uint64_t hash[2] = { HN_FNV_INIT, HN_FNV_INIT };
        for (int i = 0; i < 3 && st == HONE_OK; i++) {
            hn_load_run run = { 0 };
            const hn_load_params ask = { .url = s->url,
                                         .n_clients = 1,
                                         .n_requests = p->quick ? 1 : 4,
                                         .n_words = n_words,
                                         .n_gen = n_gen,
                                         .exact = true,
                                         .whole = (i + k) % 2,
                                         .seed = p->r->set.seed + (uint64_t)k,
                                         .timeout_s = 600,
                                         .stop = p->r->set.stop };
            st = hn_load(&run, &ask, err);
            uint64_t *answers = &hash[ask.whole];
            *answers = HN_FNV_INIT;
            if (run.lie[0]) snprintf(sums->other, sizeof sums->other, "%s", run.lie);
            if (st == HONE_OK) {
                ns[ask.whole] = ns_a_token(&run, answers, sums);
                hn_load_keep(&sums->last, &run, ask.seed);
            }
            hn_load_free(&run);
        }
        if (st != HONE_OK) break;
        sums->n_changed += hash[0] != hash[1];
        json_t *round = json_pack("{s:{s:i, s:s}}", "engine", "threads", (int)p->r->set.threads, "cpu", p->r->level);
        json_object_set_new(round, "stream_us", hn_lab_num(ns[0] * 1e-3));
        json_object_set_new(round, "whole_us", hn_lab_num(ns[1] * 1e-3));
        json_object_set_new(round, "more_us", hn_lab_num((ns[0] - ns[1]) * 1e-3));
        json_array_append_new(b->all, round);
    }
    return st;
}

static void judge_stream(hn_bunch *b, const load_sums *sums)
{
    if (sums->n_failed) hn_invalid(&b->verdict, "%d requests failed: %s", sums->n_failed, sums->problem);
    else if (sums->n_changed) hn_invalid(&b->verdict, "answers of %d rounds changed with streaming", sums->n_changed);
    else b->verdict.state = HN_VALID;
}

static hone_status add_stream_rows(hn_runner *p, hn_bunch *b, int32_t n_words, int32_t n_gen, hone_error *err)
{
    static const struct {
        const char *variant, *path;
    } rows[] = { { "more", "more_us" }, { "in a stream", "stream_us" }, { "in one piece", "whole_us" } };
    hone_status st = HONE_OK;
    for (size_t k = 0; k < sizeof rows / sizeof *rows && st == HONE_OK; k++) {
        json_t *config = hn_runner_config(p, n_words, n_gen, "greedy");
        json_object_set_new(config, "clients", json_integer(1));
        const hn_runner_record rec = { .variant = rows[k].variant,
                                       .unit = "us",
                                       .better = -1,
                                       .path = rows[k].path,
                                       .zero_ok = true,
                                       .config = config,
                                       .raw = k == 0 };
        st = hn_runner_add(p, b, &rec, err);
    }
    return st;
}

/* ---- one of its answers, computed here -------------------------------------------------------------------------- */

typedef struct hn_answer_as { /* how an answer is asked for */
    const char *named;        /* in the reason: "with drawn tokens"; "" */
    int32_t n_gen;
    float temp;
    const hone_bias *bias;
    size_t n_bias;
} hn_answer_as;

/* What the prompt is followed by, greedily or drawn as the server was asked to: the hash of n_gen tokens' text, as
 * hn_load_one has it. */
static hone_status answer_here(uint64_t *hash, hone_session *s, const hone_model *m, const int32_t *ids, int32_t n,
                               const hn_answer_as *as, hone_error *err)
{
    const int32_t n_gen = as->n_gen;
    const hone_sampler_params params = { .temp = as->temp, .top_p = 1, .repeat_penalty = 1, .seed = 1 };
    hone_pick pick = { .bias = as->bias, .n_bias = as->n_bias };
    hone_model_info info;
    hone_sampler *sampler = NULL;
    hone_stream *stream = NULL;
    const float *logits;
    const char *text;
    size_t len;
    bool stopped;
    int32_t id;
    hone_model_get_info(m, &info);
    *hash = HN_FNV_INIT;
    hone_status st = hone_sampler_new(&sampler, info.n_vocab, &params, err);
    if (st == HONE_OK) st = hone_sampler_suppress(sampler, m, err);
    if (st == HONE_OK) st = hone_stream_new(&stream, m, NULL, 0, err);
    for (int32_t i = 0; i < n_gen && st == HONE_OK; i++) {
        st = i ? hone_append(s, 0, &id, 1, &logits, err) : hone_append(s, 0, ids, n, &logits, err);
        pick.pos = hone_seq_length(s, 0);
        if (st == HONE_OK) st = hone_sampler_pick_from(sampler, logits, &pick, &id, err);
        if (st == HONE_OK) hone_sampler_accept(sampler, id);
        if (st == HONE_OK) st = hone_stream_push(stream, id, &text, &len, &stopped, err);
        if (st == HONE_OK) *hash = hn_fnv1a(*hash, text, len);
    }
    if (st == HONE_OK) st = hone_stream_flush(stream, &text, &len, err);
    if (st == HONE_OK) *hash = hn_fnv1a(*hash, text, len);
    hone_stream_free(stream);
    hone_sampler_free(sampler);
    return st;
}

/* What a server says of its tokens nobody else counts: a drawn one of the last requests must have the prompt and the
 * text that the library gives it, in a session as wide as the server's: some models turn otherwise in wide ones. The
 * server is gone by now. */
static hone_status same_here(hn_bench_run *r, load_sums *sums, const hn_load_proof *last, int32_t n_words,
                             int32_t n_ctx, const hn_answer_as *as, hone_error *err)
{
    hone_session *s = NULL;
    int32_t *ids = NULL, at = last->n ? (int32_t)(hn_rand64(last->seed, 0x0a) % (uint64_t)last->n) : 0;
    uint64_t hash;
    size_t n;
    if (!last->n || !last->hash[at]) return HONE_OK;
    char *prompt = hn_load_prompt(&(hn_load_params){ .seed = last->seed, .n_words = n_words }, last->place[at]);
    hone_model *m;
    hone_status st = prompt ? hn_bench_model(r, &m, err) : HN_FAIL(err, HONE_E_NOMEM, "%d words", n_words);
    if (st == HONE_OK) st = hone_tokenize(m, prompt, strlen(prompt), HONE_TOK_ADD, &ids, &n, err);
    if (st == HONE_OK) st = hn_bench_session(r, &s, n_ctx, 1, err);
    if (st == HONE_OK) st = answer_here(&hash, s, m, ids, (int32_t)n, as, err);
    if (st == HONE_OK && (int32_t)n != last->n_prompt[at])
        snprintf(sums->other, sizeof sums->other, "the server counts %d tokens in a prompt of %zu", last->n_prompt[at],
                 n);
    else if (st == HONE_OK && (hash | 1) != last->hash[at])
        snprintf(sums->other, sizeof sums->other,
                 "an answer of the server%s is not the text of the %d tokens that the model goes on with", as->named,
                 as->n_gen);
    hone_session_free(s);
    hn_bench_model_close(r);
    hone_free(ids);
    free(prompt);
    return st;
}

/* Two more answers, of drawn tokens, side by side: a server whose samplers are wrong is fast for nothing. */
static hone_status ask_drawn(const hn_bench_run *r, load_sums *sums, const served *s, int32_t n_words, int32_t n_gen,
                             hone_error *err)
{
    const hn_load_params ask = { .url = s->url,
                                 .n_clients = 2,
                                 .n_requests = 2,
                                 .n_words = n_words,
                                 .n_gen = n_gen,
                                 .temp = drawn_temp,
                                 .exact = true,
                                 .seed = r->set.seed ^ 0x64726177u,
                                 .timeout_s = 600,
                                 .stop = r->set.stop };
    hn_load_run run = { 0 };
    hone_status st = hn_load(&run, &ask, err);
    if (st == HONE_OK) hn_load_keep(&sums->drawn, &run, ask.seed);
    sums->n_failed += st == HONE_OK ? run.n_failed : 0;
    hn_load_free(&run);
    return st;
}

/* One request that is not answered well is an answer that is wrong. */
static hone_status not_answered(load_sums *sums, const char *with, hone_status st, const hone_error *err)
{
    if (st != HONE_E_FORMAT) return st;
    snprintf(sums->other, sizeof sums->other, "the server does not answer with %s: %.180s", with, err->message);
    return HONE_OK;
}

/* Tokens of a fixed text, drawn anew each time, none twice: special ones need not have a text that is seen. */
static hone_status draw_biases(hn_bench_run *r, load_sums *sums, hone_error *err)
{
    enum { TRIES = 200 };
    const float much = 9;
    const uint64_t key = hn_clock_ns();
    const char *text = hn_q_texts[hn_rand64(key, TRIES) % HN_Q_PROMPTS];
    hone_model *m;
    int32_t *ids = NULL;
    size_t n = 0;
    hone_status st = hn_bench_model(r, &m, err);
    if (st == HONE_OK) st = hone_tokenize(m, text, strlen(text), 0, &ids, &n, err);
    for (uint64_t i = 0; st == HONE_OK && n && i < TRIES && sums->n_bias < N_BIAS; i++) {
        const int32_t id = ids[hn_rand64(key, i) % n];
        bool known = false;
        for (size_t k = 0; k < sums->n_bias; k++) known |= sums->bias[k].id == id;
        if (!known) sums->bias[sums->n_bias++] = (hone_bias){ id, much };
    }
    hone_free(ids);
    hn_bench_model_close(r);
    return st;
}

/* An answer in which these tokens are much likelier. */
static hone_status ask_biased(const hn_bench_run *r, load_sums *sums, const served *s, int32_t n_words, int32_t n_gen,
                              hone_error *err)
{
    char more[N_BIAS * 24 + 32] = ",\"logit_bias\":{";
    size_t n = strlen(more);
    hn_load_params ask = { .url = s->url,
                           .n_clients = 1,
                           .n_requests = 1,
                           .n_words = n_words,
                           .n_gen = n_gen,
                           .more = more,
                           .exact = true,
                           .seed = r->set.seed ^ 0x62696173u,
                           .timeout_s = 600,
                           .stop = r->set.stop };
    hn_load_run run = { 0 };
    for (size_t i = 0; i < sums->n_bias; i++)
        n += (size_t)snprintf(more + n, sizeof more - n, "%s\"%d\":%g", i ? "," : "", sums->bias[i].id,
                              (double)sums->bias[i].bias);
    snprintf(more + n, sizeof more - n, "}");
    hone_status st = hn_load(&run, &ask, err);
    if (st == HONE_OK) hn_load_keep(&sums->biased, &run, ask.seed);
    sums->n_failed += st == HONE_OK ? run.n_failed : 0;
    hn_load_free(&run);
    return not_answered(sums, "logit_bias", st, err);
}

/* An answer whose form leaves one text, which is drawn: with `ends` it ends at a stop string in that. Nobody need
 * compute what it is. */
static hone_status ask_formed(const hn_bench_run *r, load_sums *sums, const served *s, bool ends, hone_error *err)
{
    enum { LETTERS = 12, HALF = LETTERS / 2, END = 3, ROOM = 32 };
    char word[LETTERS + 1] = "", stop[40] = "", more[300];
    const uint64_t key = hn_clock_ns();
    for (int i = 0; i < LETTERS; i++) /* the letters of a stop come in it alone */
        word[i] = (char)((i >= HALF && i < HALF + END ? 'n' : 'a') + (int)(hn_rand64(key, (uint64_t)i) % 13));
    if (ends) snprintf(stop, sizeof stop, ",\"stop\":[\"%.*s\"]", (int)END, word + HALF);
    snprintf(more, sizeof more,
             "%s,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"w\",\"schema\":"
             "{\"const\":\"%s\"}}}",
             stop, word);
    const hn_load_params ask = { .url = s->url,
                                 .n_clients = 1,
                                 .n_requests = 1,
                                 .n_words = 4,
                                 .n_gen = ROOM,
                                 .more = more,
                                 .seed = r->set.seed,
                                 .timeout_s = 600,
                                 .stop = r->set.stop };
    hn_load_run run = { 0 };
    hone_status st = hn_load(&run, &ask, err);
    char text[LETTERS + 3];
    snprintf(text, sizeof text, ends ? "\"%.*s" : "\"%.*s\"", ends ? (int)HALF : (int)LETTERS, word);
    if (st == HONE_OK && !run.n_failed && run.one[0].hash != hn_fnv1a(HN_FNV_INIT, text, strlen(text)))
        snprintf(sums->other, sizeof sums->other, "an answer of the server with response_format%s is not %s",
                 ends ? " and stop" : "", text);
    sums->n_failed += st == HONE_OK ? run.n_failed : 0;
    hn_load_free(&run);
    return not_answered(sums, ends ? "response_format and stop" : "response_format", st, err);
}

/* A third clock: the server's CPU time, of which the cores give no more. */
static void check_cpu(const served *s, load_sums *sums)
{
    const hn_beside *p = &s->process;
    if (!sums->other[0] && hn_cpu_beyond(p->cpu_s, hn_os_cpu_count(), p->wall_s))
        snprintf(sums->other, sizeof sums->other, "the kernel counted %.3f s of CPU time in %.3f s of the server",
                 p->cpu_s, p->wall_s);
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

typedef struct serve_entry {
    hone_status (*measure)(hn_runner *p, hn_bunch *b, load_sums *sums, const served *s, int32_t n_words, int32_t n_gen,
                           hone_error *err);
    void (*judge)(hn_bunch *b, const load_sums *sums);
    hone_status (*add)(hn_runner *p, hn_bunch *b, int32_t n_words, int32_t n_gen, hone_error *err);
} serve_entry;

static hone_status run_entry(hn_bench_run *r, const hn_bench_entry *e, const serve_entry *how, hone_error *err)
{
    hn_runner p;
    served s;
    hn_bunch b = { .mode = "serve" };
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    if (!p.has_tokenizer)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s asks with words, and the model has no tokenizer", e->id);
    int32_t n_words = r->set.n_prompt > 0 ? r->set.n_prompt
                      : p.quick           ? 32
                                          : 128,
            n_gen = r->set.n_gen > 1 ? r->set.n_gen
                    : p.quick        ? 16
                                     : 64,
            n_ctx = 4 * n_words + n_gen + 64;
    if (p.n_ctx_train && n_ctx > p.n_ctx_train) n_ctx = p.n_ctx_train;
    load_sums sums = { .n_failed = 0 };
    st = draw_biases(r, &sums, err);
    if (st == HONE_OK) st = begin_server(&s, r, n_ctx, err);
    if (st == HONE_OK) {
        st = how->measure(&p, &b, &sums, &s, n_words, n_gen, err);
        if (st == HONE_OK) st = ask_drawn(r, &sums, &s, n_words, n_gen, err);
        if (st == HONE_OK) st = ask_biased(r, &sums, &s, n_words, n_gen, err);
        if (st == HONE_OK) st = ask_formed(r, &sums, &s, false, err);
        if (st == HONE_OK) st = ask_formed(r, &sums, &s, true, err);
        st = end_server(&s, st, err);
        const hn_answer_as plain = { "", n_gen, 0, NULL, 0 },
                           drawn = { " with drawn tokens", n_gen, drawn_temp, NULL, 0 },
                           biased = { " with logit_bias", n_gen, 0, sums.bias, sums.n_bias };
        if (st == HONE_OK) st = same_here(r, &sums, &sums.last, n_words, n_ctx, &plain, err);
        if (st == HONE_OK) st = same_here(r, &sums, &sums.drawn, n_words, n_ctx, &drawn, err);
        if (st == HONE_OK) st = same_here(r, &sums, &sums.biased, n_words, n_ctx, &biased, err);
        check_cpu(&s, &sums);
        if (json_array_size(b.all)) {
            if (sums.other[0]) hn_invalid(&b.verdict, "%s", sums.other);
            else how->judge(&b, &sums);
            st = hn_bunch_not_checked(&b, st);
            hone_status added = how->add(&p, &b, n_words, n_gen, err);
            if (st == HONE_OK) st = added;
        }
    }
    hn_bunch_free(&b);
    return st;
}

hone_status hn_run_serve_load(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    return run_entry(r, e, &(const serve_entry){ measure, judge, add_rows }, err);
}

hone_status hn_run_e2e_stream(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    return run_entry(r, e, &(const serve_entry){ measure_stream, judge_stream, add_stream_rows }, err);
}
