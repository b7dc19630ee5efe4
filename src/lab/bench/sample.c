/* One measured sample: fill, prefill, generate, and what the machine did meanwhile.
 * Owns where the clock is read; refuses to know processes and files. */
#include "lab/bench/sample.h"
#include "lab/machine/clock.h"
#include "lab/machine/evidence.h"
#include "lab/machine/memory.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

static bool usable(const hone_model *m, int32_t id)
{
    size_t len = 0;
    return hone_token_piece(m, id, false, &len) && len > 0 && !hone_token_is_eog(m, id);
}

enum { TRIES = 64 }; /* after that many even a control token will do */

/* Try number t for the id at place `at` of a stream. */
static int32_t tried(uint64_t seed, int64_t at, uint64_t t, int32_t n_vocab)
{
    const uint64_t stream = 0x62656E6368u ^ (seed << 8);
    return (int32_t)(hn_rand64(stream, (uint64_t)at * TRIES + t) % (uint64_t)n_vocab);
}

void hn_bench_ids(int32_t *ids, int32_t n, int32_t first, uint64_t seed, const hone_model *m)
{
    hone_model_info info;
    hone_model_get_info(m, &info);
    for (int32_t i = 0; i < n; i++)
        for (uint64_t t = 0; t < TRIES; t++) {
            ids[i] = tried(seed, first + i, t, info.n_vocab);
            if (!info.has_tokenizer || usable(m, ids[i])) break;
        }
}

void hn_bench_ids_of(int32_t *ids, int32_t n, int32_t first, uint64_t seed, const bool *may, int32_t n_vocab)
{
    for (int32_t i = 0; i < n; i++)
        for (uint64_t t = 0; t < TRIES; t++)
            if (may[ids[i] = tried(seed, first + i, t, n_vocab)]) break;
}

void hn_bench_usable(bool *out, const hone_model *m)
{
    hone_model_info info;
    hone_model_get_info(m, &info);
    for (int32_t id = 0; id < info.n_vocab; id++) out[id] = !info.has_tokenizer || usable(m, id);
}

/* The kernel's files take as long as the kernel likes, some milliseconds on a virtual machine that is busy: what they
 * cost is told apart, or it would pass for work that nothing times. */
static void look_at_memory(hn_sample *s)
{
    hn_memory m;
    uint64_t from = hn_clock_thread_cpu_ns();
    bool read = hn_memory_read(&m, 0);
    s->looks_cpu_s += (double)(hn_clock_thread_cpu_ns() - from) * 1e-9;
    if (!read) return;
    s->peak_anon_mb = fmax(s->peak_anon_mb, (double)m.anon / 1e6); /* fmax ignores a NaN */
    s->hwm_mb = (double)m.hwm / 1e6;
}

static void look_at_machine(hn_sample *s, hn_evidence *out)
{
    uint64_t from = hn_clock_thread_cpu_ns();
    hn_evidence_look(out);
    s->looks_cpu_s += (double)(hn_clock_thread_cpu_ns() - from) * 1e-9;
}

/* The next id, or -1 with a verdict. */
static int32_t pick(hn_sample *s, const float *logits, int32_t n_vocab, int32_t i)
{
    hn_logit_scan r = hn_scan_logits(logits, n_vocab);
    if (!r.finite) hn_invalid(&s->verdict, "generated token %d: the logits hold a NaN or an infinity", i);
    else if (r.all_equal)
        hn_invalid(&s->verdict, "generated token %d: all %d logits are equal (%g)", i, n_vocab, logits[0]);
    return r.best;
}

/* Every token but the first, which the prompt gave. The clock stands while a step is hashed: the sum of the gaps is the
 * time of the generation. */
static hone_status generate(hn_sample *s, hone_session *session, int32_t n_vocab, int32_t n_gen, hone_error *err)
{
    const float *logits;
    double total_ms = 0;
    uint64_t seen = 0;
    while (s->n_ids < n_gen) {
        int32_t id = s->ids[s->n_ids - 1];
        hn_allocs_begin();
        hn_clocks both = hn_clocks_begin();
        hone_status st = hone_append(session, 0, &id, 1, &logits, err);
        if (st != HONE_OK) return st;
        id = pick(s, logits, n_vocab, s->n_ids);
        uint64_t end = hn_clock_ns();
        double gap_ms = (double)(end - both.from) * 1e-6;
        seen += hn_clocks_seen(&both, end);
        hn_allocs_end(&s->gen_allocs);
        if (id < 0) return HONE_OK;
        s->ids[s->n_ids++] = id;
        s->gap_ms[s->n_gaps++] = gap_ms;
        total_ms += gap_ms;
        hn_proof_step(&s->proof, logits, n_vocab, id);
    }
    if (s->n_gaps > 0) {
        s->decode_tok_s = s->n_gaps / (total_ms * 1e-3);
        s->gen_witness_ms = (double)seen * 1e-6;
    }
    return HONE_OK;
}

/* Prefill and generation. -p 0 needs a first token all the same: one of the stream. */
static hone_status timed_part(hn_sample *s, hone_session *session, const int32_t *prompt, int32_t n_vocab,
                              const hn_bench_config *c, hone_error *err)
{
    const float *logits;
    hn_allocs_begin();
    hn_clocks both = hn_clocks_begin();
    hone_status st = hone_append(session, 0, prompt, c->n_prompt > 0 ? c->n_prompt : 1, &logits, err);
    uint64_t t0 = both.from, t1 = hn_clock_ns(), seen = hn_clocks_seen(&both, t1);
    if (st != HONE_OK) return st;
    int32_t id = pick(s, logits, n_vocab, 0);
    uint64_t t_first = hn_clock_ns(), first_seen = hn_clocks_seen(&both, t_first);
    hn_allocs_end(&s->prompt_allocs);
    if (c->n_prompt > 0) {
        s->prefill_tok_s = c->n_prompt / ((double)(t1 - t0) * 1e-9);
        s->ttft_ms = (double)(t_first - t0) * 1e-6;
        s->prefill_witness_ms = (double)seen * 1e-6;
        s->prompt_witness_ms = (double)first_seen * 1e-6;
    }
    look_at_memory(s);
    hn_proof_step(&s->proof, logits, n_vocab, c->n_gen > 0 ? id : -1);
    if (c->n_gen < 1 || id < 0) return HONE_OK;
    s->ids[s->n_ids++] = id;
    st = generate(s, session, n_vocab, c->n_gen, err);
    look_at_memory(s);
    return st;
}

hone_status hn_bench_measure(hn_sample *out, hone_session *session, const hone_model *m, const hn_bench_config *c,
                             hone_error *err)
{
    *out = (hn_sample){ .load_ms = NAN,
                        .depth_ms = NAN,
                        .ttft_ms = NAN,
                        .prefill_tok_s = NAN,
                        .decode_tok_s = NAN,
                        .peak_anon_mb = NAN,
                        .hwm_mb = NAN,
                        .mapped_mb = NAN,
                        .model_resident_mb = NAN,
                        .prefill_witness_ms = NAN,
                        .prompt_witness_ms = NAN,
                        .gen_witness_ms = NAN };
    hone_model_info info;
    hone_model_get_info(m, &info);
    int32_t n_prompt = c->n_prompt > 0 ? c->n_prompt : 1;
    hn_proof_begin(&out->proof, c->n_gen);
    look_at_memory(out); /* what loading took */
    int32_t *prompt = calloc((size_t)n_prompt + (size_t)c->depth, sizeof *prompt);
    out->ids = calloc((size_t)c->n_gen + 1, sizeof *out->ids);
    hone_status st = HONE_OK;
    out->gap_ms = calloc((size_t)c->n_gen + 1, sizeof *out->gap_ms);
    if (!prompt || !out->ids || !out->gap_ms)
        st = HN_FAIL(err, HONE_E_NOMEM, "ids of %d prompt and %d generated tokens", n_prompt + c->depth, c->n_gen);
    if (st == HONE_OK) {
        hn_bench_ids(prompt, n_prompt + c->depth, 0, c->prompt_seed, m);
        if (c->depth > 0) {
            const float *unused;
            uint64_t from = hn_clock_ns();
            st = hone_append(session, 0, prompt, c->depth, &unused, err);
            out->depth_ms = (double)(hn_clock_ns() - from) * 1e-6;
        }
    }
    hn_evidence before, after;
    look_at_machine(out, &before);
    if (st == HONE_OK) st = timed_part(out, session, prompt + c->depth, info.n_vocab, c, err);
    look_at_machine(out, &after);
    if (st == HONE_E_NUMERIC) { /* a verdict, not a failure */
        hn_invalid(&out->verdict, "%s", err ? err->message : "not a number");
        st = HONE_OK;
    }
    out->positions = hone_seq_length(session, 0);
    if ((out->evidence = json_object())) hn_evidence_json(out->evidence, &before, &after);
    out->constant = out->n_ids >= HN_Q_STEPS / 4;
    for (int32_t i = 1; i < out->n_ids; i++) out->constant = out->constant && out->ids[i] == out->ids[0];
    free(prompt);
    if (st != HONE_OK) hn_sample_free(out);
    return st;
}

/* One way to compute an answer again: in calls of so many, its ids chosen as they were. */
typedef struct again {
    hn_proof *out;
    hone_session *s;
    hone_sampler *sampler; /* NULL: greedily */
    float *logits;         /* [GROUP, n_vocab] */
    int32_t n_vocab;
    bool choose;
} again;

enum { PIECE = 37, GROUP = 5 };

static hone_status choose(int32_t *id, const again *a, const float *x, int32_t pos, hone_error *err)
{
    *id = -1;
    if (!a->choose) return HONE_OK;
    if (!a->sampler) {
        *id = hn_scan_logits(x, a->n_vocab).best;
        return HONE_OK;
    }
    hone_status st = hone_sampler_pick(a->sampler, x, 0, pos, id, err);
    if (st == HONE_OK) hone_sampler_accept(a->sampler, *id);
    return st;
}

/* ids at positions [pos, pos + n) in calls of `each`; the logits of those from number `from` on are steps of the
 * proof. */
static hone_status run_again(const again *a, const int32_t *ids, int32_t n, int32_t pos, int32_t each, int32_t from,
                             hone_error *err)
{
    enum { MOST = 64 };
    hone_token t[MOST];
    hone_status st = HONE_OK;
    for (int32_t at = 0; at < n && st == HONE_OK; at += each) {
        int32_t k = at + each < n ? each : n - at;
        for (int32_t i = 0; i < k; i++) t[i] = (hone_token){ ids[at + i], pos + at + i, 0, at + i >= from };
        st = hone_run_batch(a->s, t, k, a->logits, err);
        for (int32_t i = 0, row = 0; i < k && st == HONE_OK; i++) {
            if (!t[i].want_logits) continue;
            const float *x = a->logits + (size_t)row++ * (size_t)a->n_vocab;
            int32_t id;
            st = choose(&id, a, x, t[i].pos + 1, err);
            if (st == HONE_OK) hn_proof_step(a->out, x, a->n_vocab, id);
        }
    }
    return st;
}

hone_status hn_answer_again(hn_proof *out, hone_session *s, const hone_model *m, const hn_answer *answer,
                            hone_error *err)
{
    hone_model_info info;
    hone_model_get_info(m, &info);
    again a = { .out = out, .s = s, .sampler = answer->sampler, .n_vocab = info.n_vocab, .choose = answer->n_gen > 0 };
    a.logits = calloc((size_t)GROUP * (size_t)info.n_vocab, sizeof *a.logits);
    int32_t n = answer->n_prompt;
    hone_status st = a.logits ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%d ids again", n);
    hn_proof_begin(out, answer->n_gen);
    if (st == HONE_OK) st = run_again(&a, answer->prompt, n, 0, PIECE, n - 1, err);
    if (st == HONE_OK && answer->n_gen > 1) st = run_again(&a, answer->ids, answer->n_gen - 1, n, GROUP, 0, err);
    free(a.logits);
    return st;
}

hone_status hn_bench_again(hn_proof *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                           const int32_t *ids, hone_error *err)
{
    int32_t n = c->depth + (c->n_prompt > 0 ? c->n_prompt : 1);
    int32_t *prompt = calloc((size_t)n, sizeof *prompt);
    if (!prompt) return HN_FAIL(err, HONE_E_NOMEM, "%d ids again", n);
    hn_bench_ids(prompt, n, 0, c->prompt_seed, m);
    const hn_answer answer = { .prompt = prompt, .n_prompt = n, .ids = ids, .n_gen = c->n_gen };
    hone_status st = hn_answer_again(out, s, m, &answer, err);
    free(prompt);
    return st;
}

void hn_sample_free(hn_sample *s)
{
    free(s->ids);
    free(s->gap_ms);
    json_decref(s->evidence);
    s->ids = NULL;
    s->gap_ms = NULL;
    s->evidence = NULL;
    s->n_ids = s->n_gaps = 0;
}

json_t *hn_sample_json(const hn_sample *s)
{
    json_t *o = json_object();
    json_object_set_new(o, "load_ms", hn_lab_num(s->load_ms));
    if (isfinite(s->depth_ms)) json_object_set_new(o, "depth_ms", hn_lab_num(s->depth_ms));
    json_object_set_new(o, "peak_anon_mb", hn_lab_num(s->peak_anon_mb));
    json_object_set_new(o, "hwm_mb", hn_lab_num(s->hwm_mb));
    json_object_set_new(o, "mapped_mb", hn_lab_num(s->mapped_mb));
    json_object_set_new(o, "model_resident_mb", hn_lab_num(s->model_resident_mb));
    if (s->evidence) json_object_update(o, s->evidence);
    json_object_set_new(o, "constant", json_boolean(s->constant));
    json_object_set_new(o, "prefill_witness_ms", hn_lab_num(s->prefill_witness_ms));
    hn_timed_json(o, &(hn_timed){ .ttft_ms = s->ttft_ms,
                                  .prefill_tok_s = s->prefill_tok_s,
                                  .decode_tok_s = s->decode_tok_s,
                                  .prompt_witness_ms = s->prompt_witness_ms,
                                  .gen_witness_ms = s->gen_witness_ms,
                                  .gap_ms = s->gap_ms,
                                  .ids = s->ids,
                                  .n_gaps = s->n_gaps,
                                  .n_ids = s->n_ids,
                                  .positions = s->positions,
                                  .proof = &s->proof,
                                  .prompt_allocs = &s->prompt_allocs,
                                  .gen_allocs = &s->gen_allocs,
                                  .verdict = &s->verdict });
    return o;
}
