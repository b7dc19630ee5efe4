/* Entries that measure loading, memory and the quality hash in fresh processes, and the
 * rows of all entries that do (bench_e2e.c, bench_plain.c, bench_scale.c). How processes
 * are run is runner.c's. */
#define _GNU_SOURCE
#include "lab/bench/runner.h"
#include "lab/bench/bench.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>

/* ---- loading -------------------------------------------------------------------------------------- */

static hone_status run_load(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hn_runner p;
    char path[40];
    hone_status st = hn_runner_begin(&p, r, e, err);
    snprintf(path, sizeof path, "%s_ms", strchr(e->id, '.') + 1);
    for (int cold = 0; cold < 2 && st == HONE_OK; cold++) {
        hn_bunch b = { .mode = "_load", .from_disk = cold, .drop = cold };
        snprintf(b.verdict.reason, sizeof b.verdict.reason, "loading has no output to compare");
        hone_status ran = hn_bunch_measure(&p, &b, 1, hn_runner_samples(&p, 1000), err);
        json_t *extra = json_object();
        for (const char *const *k = (const char *const[]){ "start_ms", "parse_ms", "config_ms", "engine_ms", "total_ms",
                                                           "tokenizer_ms", NULL };
             *k; k++)
            json_object_set_new(extra, *k, hn_lab_num(hn_bunch_median(&b, *k)));
        const hn_runner_record rec = { .variant = !cold          ? "warm"
                                                  : b.unverified ? "cold-unverified"
                                                                 : "cold",
                                       .path = path,
                                       .extra = extra,
                                       .config = hn_runner_config(&p, -1, -1, NULL),
                                       .raw = true,
                                       .memory = hn_runner_memory(&b) };
        if (hn_bunch_some(&b) || b.verdict.state == HN_INVALID) st = hn_runner_add(&p, &b, &rec, err);
        else {
            json_decref(rec.extra);
            json_decref(rec.config);
            json_decref(rec.memory);
        }
        hn_bunch_free(&b);
        if (st == HONE_OK) st = ran;
    }
    return st;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* A number of a stage, less that of another. */
typedef struct memory_row {
    const char *variant, *key, *stage, *less;
    double scale;
    const char *note;
} memory_row;

static hone_status memory_rows(hn_runner *p, hn_bunch *b, const memory_row *rows, int32_t n_prompt, int32_t n_gen,
                               hone_error *err)
{
    hone_status st = HONE_OK;
    for (const memory_row *row = rows; row->key && st == HONE_OK; row++) {
        char path[120], less[56] = "";
        if (row->less) snprintf(less, sizeof less, " - stages.%s.%s", row->less, row->key);
        snprintf(path, sizeof path, "stages.%s.%s%s", row->stage, row->key, less);
        const hn_runner_record rec = { .variant = row->variant,
                                       .path = path,
                                       .scale = row->scale,
                                       .zero_ok = true,
                                       .extra = hn_runner_stages(b),
                                       .raw = row == rows,
                                       .config = hn_runner_config(p, n_prompt, n_gen, NULL),
                                       .memory = hn_runner_memory(b),
                                       .note = row->note };
        st = hn_runner_add(p, b, &rec, err);
    }
    return st;
}

/* What a sequence of so many positions must hold, by the model's own plan: a process that tells less has not filled
 * it. */
static hone_status judge_cache(hn_runner *p, hn_bunch *b, const char *key, hone_error *err)
{
    enum { POSITIONS = 2048 };
    const double part = 0.97;
    hone_model *m;
    hone_sequence_cost cost;
    size_t i;
    json_t *s;
    char path[64];
    hone_status st = hn_bench_model(p->r, &m, err);
    if (st == HONE_OK) st = hone_model_sequence_cost(m, POSITIONS, hn_bench_cache(p->r), &cost, err);
    hn_bench_model_close(p->r);
    if (st != HONE_OK) return st;
    double least = part * (double)(cost.position_bytes * POSITIONS + cost.state_bytes) / 1e6;
    snprintf(path, sizeof path, "stages.%d positions.%s", POSITIONS, key);
    json_array_foreach(b->all, i, s)
    {
        double told = hn_result_number(s, path);
        if (isfinite(told) && told < least)
            hn_invalid(&b->verdict, "sample %zu: %s of %d positions is %.4g MB, and the model's plan has %.4g MB",
                       i + 1, key, POSITIONS, told, least / part);
    }
    return HONE_OK;
}

static hone_status run_memory(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    enum { FEW = 6, PROMPT = 512, GEN = 16 };
    static const memory_row of_loading[] = {
        { "anon", "anon_mb", "config", NULL, 1,
          "all anonymous memory of a process that has opened the model; the session comes later" },
        { "metadata", "anon_mb", "parse", "start", 1, "what reading the file's directory added" },
        { "tensors", "tensors_mb", "config", NULL, 1,
          "pages of weights mapped: touched, or mapped by the kernel around what was touched" },
        { 0 }
    };
    static const memory_row loaded[] = { { "anon", "anon_mb", "session", NULL, 1, NULL },
                                         { "all", "rss_mb", "session", NULL, 1,
                                           "shared libraries and pages of the model included" },
                                         { 0 } };
    static const memory_row forward[] = { { "anon", "anon_mb", "generated", NULL, 1, NULL },
                                          { "growth", "anon_mb", "generated", "session", 1,
                                            "over the loaded model: KV cache or state, scratch, tokenizer" },
                                          { 0 } };
    static const memory_row kv[] = { { NULL, "kv_mb", "2048 positions", NULL, 1, NULL }, { 0 } };
    static const memory_row state[] = {
        { NULL, "state_mb", "2048 positions", NULL, 1, "with the copy that an interrupted call goes back to" },
        { "growth", "state_mb", "2048 positions", "512 positions", 1, "from 512 to 2048 positions" },
        { 0 }
    };
    static const memory_row per_token[] = { { NULL, "anon_mb", "2048 positions", "512 positions", 1.0 / 1536,
                                              "all growth of the process from 512 to 2048 positions, by 1536" },
                                            { 0 } };
    static const memory_row trained[] = {
        { NULL, "anon_mb", "step", "session", 1,
          "what the first step of training added: adapters, moments, activations; the mapped model is extra" },
        { 0 }
    };
    static const struct {
        const char *id, *word;
        const memory_row *rows;
    } which[] = { { "load.memory", "load", of_loading },    { "memory.load", "load", loaded },
                  { "memory.forward", "forward", forward }, { "memory.kv2048", "kv", kv },
                  { "memory.state", "kv", state },          { "memory.per_token", "kv", per_token },
                  { "memory.train", "train", trained } };
    size_t i = 0;
    while (strcmp(which[i].id, e->id) != 0) i++;
    hn_runner p;
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    if (p.state_bytes && which[i].rows == kv)
        return hn_bench_not_recurrent(e, "it has no KV cache; memory.state is what it has", err);
    if (p.state_bytes && which[i].rows == trained)
        return hn_bench_not_recurrent(e, "hone does not train recurrent models", err);
    if (!p.state_bytes && which[i].rows == state) return hn_bench_only_recurrent(e, err);
    bool trains = which[i].rows == trained, forwards = strcmp(which[i].word, "forward") == 0;
    int32_t n_prompt = r->set.n_prompt > 0      ? r->set.n_prompt
                       : trains && r->set.quick ? 64
                                                : PROMPT,
            n_gen = r->set.n_gen >= 0 ? r->set.n_gen : GEN;
    hn_bunch b = { .mode = "_memory", .from_disk = true }; /* time is not what is measured */
    snprintf(b.word, sizeof b.word, "%s", which[i].word);
    snprintf(b.verdict.reason, sizeof b.verdict.reason, "memory has no output to compare");
    if (forwards || trains) {
        hn_argv_add(&b.args, "--n-prompt=%d", n_prompt);
        hn_argv_add(&b.args, "--n-gen=%d", trains ? 0 : n_gen);
    }
    hone_status ran = hn_bunch_measure(&p, &b, 1, hn_runner_samples(&p, FEW), err);
    if (ran == HONE_OK && (which[i].rows == kv || which[i].rows == state))
        ran = judge_cache(&p, &b, which[i].rows->key, err);
    if (hn_bunch_some(&b) || b.verdict.state == HN_INVALID)
        st = memory_rows(&p, &b, which[i].rows, forwards || trains ? n_prompt : -1, forwards ? n_gen : -1, err);
    hn_bunch_free(&b);
    return st == HONE_OK ? ran : st;
}

/* ---- quality ----------------------------------------------------------------------------------------- */

static hone_status run_quality(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    enum { FEW = 2 };
    hn_runner p;
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    hn_bunch b = { .mode = "_quality" };
    hone_status ran = hn_bunch_measure(&p, &b, 1, hn_runner_samples(&p, FEW), err);
    json_t *first = json_array_get(b.all, 0), *s;
    size_t i;
    json_array_foreach(b.all, i, s)
    {
        const char *why = json_string_value(json_object_get(s, "reason"));
        if (!json_is_true(json_object_get(s, "valid")))
            hn_invalid(&b.verdict, "%s", why ? why : "the quality run gave no verdict");
        if (!json_equal(json_object_get(s, "hash"), json_object_get(first, "hash")))
            hn_invalid(&b.verdict, "two processes gave two hashes: the engine is not deterministic");
    }
    if (hn_bunch_some(&b) && b.verdict.state != HN_INVALID) b.verdict.state = HN_VALID;
    if (first) { /* this run's later entries need not do it again */
        json_decref(r->quality);
        r->quality = json_incref(first);
    }
    const hn_runner_record rec = { .path = "seconds",
                                   .config = hn_runner_config(&p, -1, HN_Q_STEPS, "greedy"),
                                   .raw = true,
                                   .note = "the record is the hash; the samples say how long it took" };
    if (hn_bunch_some(&b) || b.verdict.state == HN_INVALID) st = hn_runner_add(&p, &b, &rec, err);
    else json_decref(rec.config);
    hn_bunch_free(&b);
    return st == HONE_OK ? ran : st;
}

/* ---- the catalogue's rows ------------------------------------------------------------------------------- */

/* what a request, or a sample, and the check of its answers take */
#define TOKENS "n-prompt n-gen lora no-quality quality draw"

#define PROC(id_, what_, unit_, higher_, target_, suites_, cost_, run_, ...)                                         \
    {                                                                                                                \
        .id = id_, .what = what_, .unit = unit_, .target = target_, .method = 'P', .higher = higher_, .model = true, \
        .suites = suites_, .cost = cost_, .run = run_, __VA_ARGS__                                                   \
    }
#define NEEDS(id_, what_, unit_, needs_)                                                                     \
    {                                                                                                        \
        .id = id_, .what = what_, .unit = unit_, .method = 'P', .model = true, .suites = "", .needs = needs_ \
    }

const hn_bench_entry hn_bench_process[] = {
    PROC("load.parse", "mapping the file and checking its directory, warm and cold", "ms", false, "< 1 ms",
         "quick full ci", 1, run_load, .uses = NULL),
    PROC("load.config", "architecture, hyper-parameters, binding every weight, warm and cold", "ms", false, "< 1 ms",
         "quick full ci", 1, run_load, .uses = NULL),
    PROC("load.engine", "threads and session, warm and cold", "ms", false, "about 106 ms", "quick full ci", 1, run_load,
         .uses = NULL),
    PROC("load.total", "process started to ready, warm and cold", "ms", false, "< 200 ms (guides: < 5 s)",
         "quick full ci", 1, run_load, .uses = NULL),
    PROC("load.memory", "what an opened model takes: anonymous memory, the directory, weights touched", "MB", false,
         "anon < 2 MB, metadata < 1 MB, tensors 0", "quick full ci", 1, run_memory, .uses = NULL),
    PROC("e2e", "a prompt and a generation of tokens that mean nothing: what hone bench measures without an id",
         "tok/s", true, NULL, "full", 20, hn_run_e2e, .uses = TOKENS " depth timing prompt-seed", .plain = true),
    PROC("e2e.clean", "a known text comes out, and how fast", "tok/s", true, NULL, "quick full ci", 2, hn_run_e2e_clean,
         .uses = NULL),
    PROC("e2e.gen", "a request: prompt 128, 100 tokens, temperature 0.7, top-p 0.9", "tok/s", true,
         "guides: decode 90+, prefill 150+ (2.9B); 5 to 20 tok/s, first token < 500 ms (14B)", "quick full ci", 40,
         hn_run_e2e_gen, .uses = TOKENS),
    PROC("e2e.kvcache.on", "512 tokens with the KV cache, or a recurrent state", "s", false, NULL, "full", 60,
         hn_run_e2e_kv_on, .uses = "n-gen lora no-quality quality draw", .least = 17),
    PROC("e2e.kvcache.off", "the same, every token from the whole text before it; and how many times slower", "s",
         false, "times slower > 2 x", "full", 60, hn_run_e2e_kv_off, .uses = "n-gen lora no-quality quality draw",
         .least = 17),
    PROC("e2e.cold", "the first request of a process against later ones; start to first token, warm and cold", "x",
         false, NULL, "full", 30, hn_run_e2e_cold, .uses = TOKENS),
    PROC("e2e.cpu", "CPU use, context switches and cache misses of a token", "%", true, NULL, "quick full ci", 20,
         hn_run_e2e_cpu, .uses = TOKENS),
    PROC("e2e.backend", "each kernel level of this machine, in turns, and their ratios", "x", true, NULL, "full", 60,
         hn_run_e2e_backend, .uses = TOKENS, .sets = "cpu"),
    PROC("e2e.scale.size", "the same shape with a quarter, half and all of its layers (random weights)", "tok/s", true,
         NULL, "full", 60, hn_run_scale_size, .uses = "n-prompt n-gen", .sets = "packed"),
    PROC("e2e.scale.quant", "the same shape in other weight types (random weights)", "tok/s", true, NULL, "full", 90,
         hn_run_scale_quant, .uses = "n-prompt n-gen", .sets = "packed"),
    PROC("e2e.scale.threads", "1 to all threads, in turns", "tok/s", true, NULL, "full ci", 40, hn_run_scale_threads,
         .uses = TOKENS, .sets = "threads threads-batch"),
    PROC("e2e.scale.batch", "1, 4, 8 and 16 sequences at once", "tok/s", true, NULL, "full", 40, hn_run_scale_batch,
         .uses = TOKENS),
    { .id = "e2e.stream",
      .what = "what a token takes more in a stream than in an answer of one piece, of the same server",
      .unit = "us",
      .target = "more < 30 us",
      .method = 'S',
      .model = true,
      .suites = "full",
      .cost = 30,
      .uses = "n-prompt n-gen kv allow-paging",
      .run = hn_run_e2e_stream },
    NEEDS("e2e.fused.on", "fused operations", "x",
          "an unfused path to choose: hone computes gate and up, and attention with its soft-max, in one operation "
          "each, and keeps no other"),
    NEEDS("e2e.fused.off", "the same without", "x", "an unfused path to choose: there is none"),
    { .id = "e2e.profile",
      .what = "what each operation of a prompt and of a token takes of its time",
      .unit = "%",
      .method = 'O',
      .model = true,
      .suites = "full",
      .cost = 20,
      .uses = "n-prompt n-gen " HN_BENCH_SESSION,
      .run = hn_run_e2e_profile },
    PROC("memory.load", "memory of a process that is ready to generate", "MB", false, NULL, "quick full ci", 2,
         run_memory, .uses = NULL),
    PROC("memory.forward", "the same after a prompt and a few tokens", "MB", false, NULL, "quick full ci", 10,
         run_memory, .uses = "n-prompt n-gen"),
    PROC("memory.kv2048", "KV cache of 2048 positions, as it is in memory", "MB", false, NULL, "full", 30, run_memory,
         .uses = NULL),
    PROC("memory.state", "state of a recurrent model after 2048 positions, as it is in memory, and its growth", "MB",
         false, NULL, "full", 10, run_memory, .uses = NULL),
    PROC("memory.train", "memory that a step of training adds: LoRA r8 on Q and V, seq 512 (quick: 64)", "MB", false,
         NULL, "full", 20, run_memory, .uses = "n-prompt"),
    PROC("memory.per_token", "growth of the whole process by a token", "MB", false, "< 100 MB", "full", 30, run_memory,
         .uses = NULL),
    { .id = "serve.load",
      .what = "a server with 1, 4 and 16 clients: all tokens, requests, waiting for the first text and between two",
      .unit = "tok/s",
      .method = 'S',
      .higher = true,
      .model = true,
      .suites = "full",
      .cost = 60,
      .uses = "n-prompt n-gen kv allow-paging",
      .run = hn_run_serve_load },
    PROC("quality", "the quality hash: what the model answers, and with which bits", "s", false, NULL, "quick full ci",
         15, run_quality, .uses = "lora quality draw"),
    { 0 },
};
