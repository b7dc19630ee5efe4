/* The measured processes of hone bench: this program again, with a hidden first argument
 * and, last, the time at which it was started. Each measures once, prints one JSON
 * object and ends. Owns opening the model; the measuring is lab's. */
#include "cli/cli.h"
#include "cli/lab/quality_paths.h"
#include "lab/bench/asked.h"
#include "lab/bench/bench.h"
#include "lab/bench/claims.h"
#include "lab/bench/process.h"
#include "lab/bench/sample.h"
#include "lab/inside/bench_stages.h"
#include "lab/inside/net.h"
#include "lab/machine/clock.h"
#include "lab/machine/evidence.h"
#include "lab/machine/memory.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct child {
    const hn_cli *cli;
    uint64_t t_spawn, t_main; /* started by the parent; here */
    uint64_t witness;         /* here, by the second clock */
    hone_model *m;
    hone_context *ctx;
    hone_session *s;
    hone_model_info info;
    hn_stages stages;
    double load_ms, engine_ms, load_witness_ms; /* the last by the second clock, from the beginning of main on */
    json_t *looks;                              /* of memory after each stage, or NULL */
    hn_evidence before;
} child;

static void look(void *arg, const char *stage)
{
    child *c = arg;
    hn_look l;
    if (!c->looks) return;
    hn_look_at(&l, c->m, c->s);
    json_array_append_new(c->looks, hn_look_json(stage, &l));
}

static hone_model_params model_params(const hn_cli *cli)
{
    return (hone_model_params){ .tokenizer_pre = hn_opts_str(cli->opts, "pre"),
                                .packed = hn_opts_str(cli->opts, "packed") };
}

/* Model, threads and session of n_ctx positions (0: as hone run without -c has), n_seq sequences. */
static int open_all(child *c, int32_t n_ctx, int32_t n_seq)
{
    const char *path = hn_opts_str(c->cli->opts, "model");
    const hone_model_params p = model_params(c->cli);
    hone_error err;
    if (!path) return hn_cli_usage(c->cli, "no model; expected -m FILE.gguf");
    if (hn_stages_open(&c->m, &c->stages, path, &p, c->looks ? look : NULL, c, &err) != HONE_OK)
        return hn_cli_fail_model(&err);
    /* One step begins when the one before it ends: where another process has the CPU in between, their sum is the
     * load all the same. */
    uint64_t t0 = c->looks ? hn_clock_ns() : c->stages.done_ns;
    int rc = hn_cli_new_context(c->cli, &c->ctx);
    look(c, "context");
    if (rc == 0) rc = hn_cli_new_session(c->cli, c->ctx, c->m, n_ctx, n_seq, &c->s);
    uint64_t now = hn_clock_ns();
    c->engine_ms = (double)(now - t0) * 1e-6;
    c->load_ms = (double)(now - c->t_spawn) * 1e-6;
    const hn_clocks begin = { .from = c->t_main, .witness = c->witness };
    c->load_witness_ms = (double)(c->t_main - c->t_spawn) * 1e-6 + (double)hn_clocks_seen(&begin, now) * 1e-6;
    if (rc == 0) hone_model_get_info(c->m, &c->info);
    look(c, "session");
    return rc;
}

static json_t *engine_json(const child *c)
{
    hone_session_memory mem;
    hone_session_get_memory(c->s, &mem);
    json_t *adapters = hn_cli_adapters_json();
    json_t *o = json_pack("{s:s, s:i, s:i, s:f, s:f, s:f}", "cpu", hone_context_cpu(c->ctx), "threads",
                          (int)hone_context_threads(c->ctx), "threads_batch", (int)hone_context_threads_batch(c->ctx),
                          "cache_mb", (double)mem.cache_bytes / 1e6, "scratch_mb", (double)mem.scratch_bytes / 1e6,
                          "logits_mb", (double)mem.logits_bytes / 1e6);
    json_object_set_new(o, "packed", json_boolean(c->info.packed_path != NULL)); /* all of its weights, or some */
    if (adapters) json_object_set_new(o, "adapters", adapters);
    return o;
}

/* What every result holds besides its numbers. */
static int finish(child *c, json_t *o, bool evidence)
{
    hn_mapped mapped;
    hn_memory mem;
    hn_evidence after;
    if (evidence) {
        hn_evidence_look(&after);
        hn_evidence_json(o, &c->before, &after);
    }
    if (!json_object_get(o, "load_ms")) json_object_set_new(o, "load_ms", hn_lab_num(c->load_ms));
    json_object_set_new(o, "load_witness_ms", hn_lab_num(c->load_witness_ms));
    if (hn_memory_read(&mem, 0)) {
        if (!json_object_get(o, "peak_anon_mb"))
            json_object_set_new(o, "peak_anon_mb", hn_lab_num((double)mem.anon / 1e6)); /* the parent sees more */
        json_object_set_new(o, "hwm_mb", hn_lab_num((double)mem.hwm / 1e6));
    }
    if (hn_memory_mapped(&mapped, hn_opts_str(c->cli->opts, "model"), c->info.packed_path)) {
        json_object_set_new(o, "mapped_mb", hn_lab_num((double)mapped.mapped / 1e6));
        json_object_set_new(o, "model_resident_mb", hn_lab_num((double)mapped.resident / 1e6));
        json_object_set_new(o, "model_huge_mb",
                            mapped.knows_huge ? hn_lab_num((double)mapped.huge / 1e6) : json_null());
    }
    if (c->looks) json_object_set(o, "stages", c->looks);
    json_object_set_new(o, "engine", engine_json(c));
    json_object_set_new(o, "start_s", hn_lab_num((double)(c->t_main - c->t_spawn) * 1e-9));
    hn_claims_add(o, c->t_main, c->witness);
    return hn_json_print(o);
}

static hn_bench_config config_of(const hn_cli *cli)
{
    return (hn_bench_config){ .n_prompt = hn_opts_i32(cli->opts, "n-prompt"),
                              .n_gen = hn_opts_i32(cli->opts, "n-gen"),
                              .depth = hn_opts_i32(cli->opts, "depth"),
                              .prompt_seed = hn_opts_u64(cli->opts, "prompt-seed") };
}

/* What this thread computed since `from`, for whom it has been measuring, its looks at the machine left out: no more
 * than it tells times of. */
static void tell_cpu(json_t *o, uint64_t from, double looks_s)
{
    double all_s = (double)(hn_clock_thread_cpu_ns() - from) * 1e-9;
    json_object_set_new(o, "main_cpu_s", hn_lab_num(fmax(all_s - looks_s, 0)));
}

/* ---- modes --------------------------------------------------------------------------------- */

static int run_sample(child *c, const char *unused)
{
    hn_bench_config k = config_of(c->cli);
    hn_sample s;
    hone_error err;
    int rc = open_all(c, k.depth + (k.n_prompt > 0 ? k.n_prompt : 1) + k.n_gen, 1);
    if (rc) return rc;
    int32_t first;
    hn_bench_ids(&first, 1, 0, 0, c->m); /* the tokenizer is there from now on */
    uint64_t from = hn_clock_thread_cpu_ns();
    if (hn_bench_measure(&s, c->s, c->m, &k, &err) != HONE_OK) return hn_cli_fail(&err);
    s.load_ms = c->load_ms;
    json_t *o = hn_sample_json(&s);
    if (k.n_prompt > 0) tell_cpu(o, from, s.looks_cpu_s); /* else nobody times the first token */
    rc = finish(c, o, false);
    hn_sample_free(&s);
    return rc;
}

/* What is asked on its standard input (lab/bench/asked.h). */
static int run_asked(child *c, const char *unused)
{
    hn_bench_config k = config_of(c->cli);
    hone_error err;
    json_t *o;
    int rc = open_all(c, k.depth + (k.n_prompt > 0 ? k.n_prompt : 1) + k.n_gen, 1);
    if (rc) return rc;
    if (hn_asked_answer(&o, c->s, c->m, STDIN_FILENO, STDOUT_FILENO, &err) != HONE_OK) return hn_cli_fail(&err);
    json_t *engine = engine_json(c);
    json_object_set_new(engine, "kv", hn_lab_str(hn_opts_str(c->cli->opts, "kv")));
    json_object_set_new(engine, "chunk", json_integer(hn_opts_i32(c->cli->opts, "chunk")));
    json_object_set_new(o, "engine", engine);
    return hn_json_print(o);
}

/* "ID,ID,…": [n_gen]; NULL: not so many. */
static int32_t *ids_again(const char *s, int32_t n_gen)
{
    int32_t *ids = calloc((size_t)n_gen + 1, sizeof *ids), n = 0;
    for (char *end; ids && *s && n < n_gen; s = *end == ',' ? end + 1 : end) {
        ids[n++] = (int32_t)strtol(s, &end, 10);
        if (end == s) break;
    }
    if (n == n_gen) return ids;
    free(ids);
    return NULL;
}

static hn_request_config request_of(const hn_bench_config *k, bool sampled)
{
    return (hn_request_config){
        .n_prompt = k->n_prompt, .n_gen = k->n_gen, .temp = sampled ? 0.7f : 0, .top_p = sampled ? 0.9f : 1, .seed = 1
    };
}

/* What a sample must prove, computed in other ways. word: the ids that it generated, "ID,ID,…", or "-"; behind
 * "sampled:" or "greedy:" those of such a request. */
static int run_check(child *c, const char *word)
{
    hn_bench_config k = config_of(c->cli);
    hn_proof proof;
    hone_error err;
    const char *colon = strchr(word, ':');
    bool request = colon && k.n_prompt > 0;
    hn_request_config q = request_of(&k, strncmp(word, "sampled", 7) == 0);
    if (request) k.depth = 0;
    int rc = open_all(c, k.depth + (k.n_prompt > 0 ? k.n_prompt : 1) + k.n_gen, 1);
    if (rc) return rc;
    char *text = NULL;
    int32_t *ids = ids_again(colon ? colon + 1 : word, k.n_gen);
    if (!ids) return hn_cli_usage(c->cli, "_check: expected %d ids", (int)k.n_gen);
    hone_status st = request ? hn_request_text(&text, c->m, k.n_prompt, &err) : HONE_OK;
    if (st == HONE_OK)
        st = request ? hn_request_again(&proof, c->s, c->m, text, &q, ids, &err)
                     : hn_bench_again(&proof, c->s, c->m, &k, ids, &err);
    free(text);
    free(ids);
    if (st != HONE_OK && st != HONE_E_NUMERIC) return hn_cli_fail(&err);
    return hn_json_print(st == HONE_OK ? json_pack("{s:o}", "proof", hn_proof_json(&proof))
                                       : json_pack("{s:o}", "invalid_reason", hn_lab_str(err.message)));
}

static hone_status session_logits(void *arg, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err)
{
    return hone_run_batch(arg, tokens, n_tok, logits, err);
}

static int run_quality(child *c, const char *unused)
{
    static hn_q_prompts prompts;
    static hn_quality q;
    hone_error err;
    const hone_model_params p = model_params(c->cli);
    if (hone_model_open(&c->m, hn_opts_str(c->cli->opts, "model"), &p, &err) != HONE_OK) return hn_cli_fail_model(&err);
    int rc = hn_cli_new_context(c->cli, &c->ctx);
    if (rc == 0 && hn_q_prompts_make(&prompts, c->m, &err) != HONE_OK) rc = hn_cli_fail(&err);
    int32_t longest = 0;
    for (int k = 0; k < HN_Q_PROMPTS; k++)
        if (prompts.n[k] > longest) longest = prompts.n[k];
    if (rc == 0) rc = hn_cli_new_session(c->cli, c->ctx, c->m, longest + HN_Q_STEPS, HN_Q_PROMPTS, &c->s);
    if (rc) return rc;
    hone_model_get_info(c->m, &c->info);
    hn_logits_source src = { .n_vocab = c->info.n_vocab, .run = session_logits, .arg = c->s };
    hn_evidence_look(&c->before);
    uint64_t t0 = hn_clock_ns();
    bool quick = strcmp(hn_opts_str(c->cli->opts, "quality"), "quick") == 0;
    hn_paths paths;
    if (hn_quality_run(&q, &src, &prompts, true, quick ? HN_Q_QUICK_STEPS : HN_Q_STEPS, &err) != HONE_OK)
        return hn_cli_fail(&err);
    hone_session_free(c->s); /* its memory is wanted */
    c->s = NULL;
    if ((rc = hn_cli_paths(c->cli, c->m, &prompts, &q, quick, &paths)) != 0) return rc;
    json_t *o = hn_cli_paths_json(hn_quality_json(&q, prompts.from_text), &paths, &q);
    json_object_set_new(o, "seconds", hn_lab_num((double)(hn_clock_ns() - t0) * 1e-9));
    hn_evidence after;
    hn_evidence_look(&after);
    hn_evidence_json(o, &c->before, &after);
    return hn_json_print(o);
}

static int run_net(child *c, const char *points)
{
    hone_error err;
    json_t *o;
    if (hn_net_measure(&o, points, hn_opts_str(c->cli->opts, "cpu"), &err) == HONE_OK) return hn_json_print(o);
    return err.code == HONE_E_ARG ? hn_cli_usage(c->cli, "%s", err.message) : hn_cli_fail(&err);
}

static int run_load(child *c, const char *unused)
{
    hone_error err;
    hn_allocs allocs = { 0 };
    hn_evidence_look(&c->before);
    hn_allocs_begin();
    int rc = open_all(c, 0, 1);
    hn_allocs_end(&allocs);
    if (rc) return rc;
    json_t *o = json_object();
    json_object_set_new(o, "allocs", hn_allocs_json("load", &allocs, 1, NULL));
    double start = (double)(c->stages.begun_ns - c->t_spawn) * 1e-6;
    json_object_set_new(o, "start_ms", hn_lab_num(start));
    json_object_set_new(o, "parse_ms", hn_lab_num(c->stages.parse_ms));
    json_object_set_new(o, "config_ms", hn_lab_num(c->stages.config_ms));
    json_object_set_new(o, "engine_ms", hn_lab_num(c->engine_ms));
    json_object_set_new(o, "total_ms", hn_lab_num(c->load_ms));
    double tokenizer = NAN;
    if (c->info.has_tokenizer) { /* built when it is first needed */
        int32_t *ids;
        size_t n;
        uint64_t t0 = hn_clock_ns();
        if (hone_tokenize(c->m, "a", 1, 0, &ids, &n, &err) != HONE_OK) {
            json_decref(o);
            return hn_cli_fail(&err);
        }
        tokenizer = (double)(hn_clock_ns() - t0) * 1e-6;
        hone_free(ids);
    }
    json_object_set_new(o, "tokenizer_ms", hn_lab_num(tokenizer));
    return finish(c, o, true);
}

/* word: "load", "forward", "kv" or "train". Memory after each stage, and after the prompt, after 512 and 2048
 * positions, in a step of training. */
static int run_memory(child *c, const char *word)
{
    enum { KV_FIRST = 512, KV = 2048 };
    hn_bench_config k = config_of(c->cli);
    bool forward = strcmp(word, "forward") == 0, kv = strcmp(word, "kv") == 0, train = strcmp(word, "train") == 0;
    hone_error err;
    const float *logits = NULL;
    if (!forward && !kv && !train && strcmp(word, "load") != 0)
        return hn_cli_usage(c->cli, "unknown measurement '%s'", HN_ESC(word, strlen(word)));
    c->looks = json_array();
    look(c, "start");
    hn_evidence_look(&c->before);
    int rc = open_all(c, kv ? KV : forward ? k.n_prompt + k.n_gen : train ? 1 : 0, 1);
    if (rc) return rc;
    int32_t n = kv ? KV : k.n_prompt, *ids = calloc((size_t)n + 1, sizeof *ids);
    hone_status st = ids ? HONE_OK : HN_FAIL(&err, HONE_E_NOMEM, "%d ids", n);
    if (st == HONE_OK && (forward || kv)) {
        hn_bench_ids(ids, n, 0, 0, c->m);
        look(c, "ids"); /* the tokenizer is there now */
        /* in two calls, since from the second on a state is kept to go back to: no growth, but the whole of it */
        int32_t first = kv ? KV_FIRST : n, half = kv ? KV_FIRST / 2 : n;
        st = hone_append(c->s, 0, ids, half, &logits, &err);
        if (st == HONE_OK && half < first) st = hone_append(c->s, 0, ids + half, first - half, &logits, &err);
        look(c, kv ? "512 positions" : "prompt");
        if (st == HONE_OK && kv) {
            st = hone_append(c->s, 0, ids + KV_FIRST, KV - KV_FIRST, &logits, &err);
            look(c, "2048 positions");
        }
        for (int32_t i = 0; forward && i < k.n_gen && st == HONE_OK; i++) {
            int32_t id = hn_scan_logits(logits, c->info.n_vocab).best;
            st = id < 0 ? HN_FAIL(&err, HONE_E_NUMERIC, "token %d: the logits hold a NaN or an infinity", i)
                        : hone_append(c->s, 0, &id, 1, &logits, &err);
        }
        if (forward) look(c, "generated");
    }
    if (st == HONE_OK && train) st = hn_bench_train_once(c->ctx, c->m, k.n_prompt, look, c, &err);
    free(ids);
    if (st != HONE_OK && st != HONE_E_NUMERIC) return hn_cli_fail(&err);
    json_t *o = json_object();
    if (st == HONE_E_NUMERIC)
        json_object_set_new(o, "invalid_reason", hn_lab_str(err.message)); /* a verdict, not a failure */
    else if (logits && !hn_scan_logits(logits, c->info.n_vocab).finite)
        json_object_set_new(o, "invalid_reason", json_string("the logits hold a NaN or an infinity"));
    return finish(c, o, true);
}

/* word: "KIND,N": sampled, greedy, or the known text; N requests, one after the other. */
static int run_request(child *c, const char *word)
{
    hn_bench_config k = config_of(c->cli);
    bool sampled = strncmp(word, "sampled,", 8) == 0, known = strncmp(word, "known,", 6) == 0;
    const char *count = strchr(word, ',');
    int64_t n = 1;
    hone_error err;
    if (!count || hn_parse_i64(&n, count + 1, 1, 10000, "requests", &err) != HONE_OK)
        return hn_cli_usage(c->cli, "unknown request '%s'", HN_ESC(word, strlen(word)));
    hn_request_config q = request_of(&k, sampled);
    q.text = known ? "Once upon a time" : NULL;
    int rc = open_all(c, k.n_prompt + k.n_gen, 1);
    if (rc) return rc;
    char *text = NULL, *answer = NULL;
    size_t len = 0;
    if (known && !c->info.has_tokenizer)
        return hn_cli_error(HN_EXIT_MODEL, "the model has no tokenizer: no text to compare");
    if (!known && hn_request_text(&text, c->m, k.n_prompt, &err) != HONE_OK) return hn_cli_fail(&err);
    uint64_t ready = hn_clock_ns();
    hn_evidence_look(&c->before);
    json_t *o = json_object(), *all = json_array();
    hone_status st = HONE_OK;
    uint64_t from = hn_clock_thread_cpu_ns();
    for (int64_t i = 0; i < n && st == HONE_OK; i++) {
        hn_request r;
        st = hn_request_run(&r, c->s, c->m, known ? q.text : text, &q, &err);
        if (st != HONE_OK) break;
        json_array_append_new(all, hn_request_json(&r));
        hone_free(answer); /* of the request before */
        answer = NULL;
        if (known) st = hone_detokenize(c->m, r.ids, (size_t)r.n_ids, false, &answer, &len, &err);
        hn_request_free(&r);
    }
    if (st != HONE_OK) {
        free(text);
        hone_free(answer);
        json_decref(all);
        json_decref(o);
        return hn_cli_fail(&err);
    }
    tell_cpu(o, from, 0);
    json_object_set_new(o, "requests", all);
    /* what a user waits for: start, model, the tokenizer's first use, first token */
    json_t *ttft = json_object_get(json_array_get(all, 0), "ttft_ms");
    json_object_set_new(o, "ready_ms", hn_lab_num((double)(ready - c->t_spawn) * 1e-6));
    json_object_set_new(o, "start_to_first_ms",
                        json_is_number(ttft) ? hn_lab_num((double)(ready - c->t_spawn) * 1e-6 + json_number_value(ttft))
                                             : json_null());
    if (answer) json_object_set_new(o, "text", hn_json_str(answer, len));
    free(text);
    hone_free(answer);
    return finish(c, o, true);
}

/* word: "TOKENS,SECONDS"; TOKENS 0: as many as may take SECONDS without a cache. */
static int run_uncached(child *c, const char *word)
{
    enum { N_PROMPT = 16 };
    int64_t n = 0;
    float most = 0;
    char count[24];
    const char *comma = strchr(word, ',');
    hone_error err;
    snprintf(count, sizeof count, "%.*s", comma ? (int)(comma - word) : 0, word);
    if (!comma || hn_parse_i64(&n, count, 0, 65536, "tokens", &err) != HONE_OK ||
        hn_parse_f32(&most, comma + 1, 0, 1e6, "seconds", &err) != HONE_OK || (n > 0 && n <= N_PROMPT))
        return hn_cli_usage(c->cli, "unknown length '%s'; expected more than %d tokens", HN_ESC(word, strlen(word)),
                            N_PROMPT);
    int rc = open_all(c, n > 512 ? (int32_t)n : 512, 1);
    if (rc) return rc;
    hn_uncached u;
    hn_evidence_look(&c->before);
    if (hn_uncached_run(&u, c->s, c->m, N_PROMPT, (int32_t)n, (double)most, &err) != HONE_OK) return hn_cli_fail(&err);
    json_t *o = json_object();
    json_object_set_new(o, "n_prompt", json_integer(u.n_prompt));
    json_object_set_new(o, "n_tok", json_integer(u.n_tok));
    json_object_set_new(o, "on_s", hn_lab_num(u.on_s));
    json_object_set_new(o, "off_s", hn_lab_num(u.off_s));
    json_object_set_new(o, "on_witness_ms", hn_lab_num(u.on_witness_ms));
    json_object_set_new(o, "off_witness_ms", hn_lab_num(u.off_witness_ms));
    json_object_set_new(o, "ids", hn_json_ids(u.ids + u.n_prompt, (size_t)(u.n_tok - u.n_prompt)));
    json_object_set_new(o, "same", json_boolean(u.same));
    json_object_set_new(o, "proof", hn_proof_json(&u.proof));
    json_object_set_new(o, "invalid_reason",
                        u.verdict.state == HN_INVALID ? hn_lab_str(u.verdict.reason) : json_null());
    hn_uncached_free(&u);
    return finish(c, o, true);
}

enum { MOST_SEQUENCES = 256 };

/* What each sequence answered, for the one who knows what each answers alone. */
static json_t *batch_json(const hn_batch *b)
{
    json_t *o = json_object(), *each = json_array();
    for (int32_t q = 0; q < b->n_seq; q++) {
        char hash[24];
        snprintf(hash, sizeof hash, "%016" PRIx64, b->each[q]);
        json_array_append_new(each, json_string(hash));
    }
    json_object_set_new(o, "each", each);
    json_object_set_new(o, "invalid_reason",
                        b->verdict.state == HN_INVALID ? hn_lab_str(b->verdict.reason) : json_null());
    return o;
}

/* What a sample of so many sequences must have answered. */
static int run_alone(child *c, const char *word)
{
    hn_bench_config k = config_of(c->cli);
    int64_t n;
    hn_batch b;
    hone_error err;
    if (hn_parse_i64(&n, word, 1, MOST_SEQUENCES, "sequences", &err) != HONE_OK)
        return hn_cli_usage(c->cli, "%s", err.message);
    int rc = open_all(c, k.n_prompt + k.n_gen, 1);
    if (rc) return rc;
    if (hn_batch_alone(&b, c->s, c->m, (int32_t)n, k.n_prompt, k.n_gen, &err) != HONE_OK) return hn_cli_fail(&err);
    json_t *o = batch_json(&b);
    hn_batch_free(&b);
    return hn_json_print(o);
}

/* word: how many sequences. */
static int run_batch(child *c, const char *word)
{
    hn_bench_config k = config_of(c->cli);
    int64_t n;
    hone_error err;
    if (hn_parse_i64(&n, word, 1, MOST_SEQUENCES, "sequences", &err) != HONE_OK)
        return hn_cli_usage(c->cli, "%s", err.message);
    int rc = open_all(c, k.n_prompt + k.n_gen, (int32_t)n);
    if (rc) return rc;
    hn_batch b;
    hn_evidence_look(&c->before);
    if (hn_batch_run(&b, c->s, c->m, (int32_t)n, k.n_prompt, k.n_gen, &err) != HONE_OK) return hn_cli_fail(&err);
    json_t *o = batch_json(&b);
    json_object_set_new(o, "prefill_tok_s", hn_lab_num(b.prefill_tok_s));
    json_object_set_new(o, "decode_tok_s", hn_lab_num(b.decode_tok_s));
    json_object_set_new(o, "prefill_witness_ms", hn_lab_num(b.prefill_witness_ms));
    json_object_set_new(o, "gen_witness_ms", hn_lab_num(b.gen_witness_ms));
    json_object_set_new(o, "n_prompt_all", json_integer((json_int_t)n * k.n_prompt));
    json_t *gaps = json_array();
    for (int32_t i = 0; i + 1 < b.n_gen; i++) json_array_append_new(gaps, hn_lab_num(b.gap_ms[i]));
    json_object_set_new(o, "gaps_ms", gaps);
    json_object_set_new(o, "ids", hn_json_ids(b.ids, (size_t)b.n_gen));
    json_t *proof = hn_proof_json(&b.proof), *company = hn_proof_json(&b.company);
    json_object_set(proof, "company", json_object_get(company, "all"));
    json_object_set_new(o, "proof", proof);
    json_decref(company);
    json_object_set_new(o, "allocs", hn_allocs_json("step", &b.gen_allocs, k.n_gen - 1, NULL));
    hn_batch_free(&b);
    return finish(c, o, true);
}

/* A sample, and what its tokens cost besides time. Counters first: they count the threads that start later. */
static int run_cost(child *c, const char *unused)
{
    hn_bench_config k = config_of(c->cli);
    hn_sample s;
    hone_error err;
    const char *why = NULL;
    int counter = hn_count_misses(&why);
    int rc = open_all(c, k.n_prompt + k.n_gen, 1);
    if (rc) return rc;
    int64_t misses = hn_count_read(counter);
    if (hn_bench_measure(&s, c->s, c->m, &k, &err) != HONE_OK) return hn_cli_fail(&err);
    int64_t after = hn_count_read(counter);
    s.load_ms = c->load_ms;
    json_t *o = hn_sample_json(&s);
    json_object_set_new(o, "cache_misses", misses >= 0 && after >= 0 ? json_integer(after - misses) : json_null());
    json_object_set_new(o, "no_cache_misses", hn_lab_str(why));
    rc = finish(c, o, false);
    hn_sample_free(&s);
    if (counter >= 0) close(counter);
    return rc;
}

/* ---- which ------------------------------------------------------------------------------------ */

bool hn_is_bench_child(const hn_cli *cli)
{
    int n = hn_opts_n_args(cli->opts);
    int64_t t0;
    return n >= 2 && n <= 3 && hn_opts_arg(cli->opts, 0)[0] == '_' &&
           hn_parse_i64(&t0, hn_opts_arg(cli->opts, n - 1), 0, INT64_MAX, "time", NULL) == HONE_OK;
}

int hn_bench_child(const hn_cli *cli)
{
    static const struct {
        const char *name;
        bool word;
        int (*run)(child *, const char *);
    } modes[] = { { "_sample", false, run_sample },    { "_asked", false, run_asked },
                  { "_quality", false, run_quality },  { "_load", false, run_load },
                  { "_memory", true, run_memory },     { "_request", true, run_request },
                  { "_uncached", true, run_uncached }, { "_batch", true, run_batch },
                  { "_alone", true, run_alone },       { "_cost", false, run_cost },
                  { "_check", true, run_check },       { "_net", true, run_net } };
    int n = hn_opts_n_args(cli->opts), rc = -1;
    int64_t t0 = 0;
    hn_parse_i64(&t0, hn_opts_arg(cli->opts, n - 1), 0, INT64_MAX, "time", NULL);
    const hn_clocks begin = hn_clocks_begin();
    child c = { .cli = cli, .t_spawn = (uint64_t)t0, .t_main = begin.from, .witness = begin.witness };
    for (size_t i = 0; i < sizeof modes / sizeof *modes && rc < 0; i++)
        if (strcmp(hn_opts_arg(cli->opts, 0), modes[i].name) == 0 && n == (modes[i].word ? 3 : 2))
            rc = modes[i].run(&c, n == 3 ? hn_opts_arg(cli->opts, 1) : "");
    if (rc == 0) hn_child_hold();
    if (rc < 0)
        rc = hn_cli_usage(cli, "unexpected argument '%s'",
                          HN_ESC(hn_opts_arg(cli->opts, 0), strlen(hn_opts_arg(cli->opts, 0))));
    json_decref(c.looks);
    hone_session_free(c.s);
    hone_context_free(c.ctx);
    hone_model_close(c.m);
    return rc;
}
