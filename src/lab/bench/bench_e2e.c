/* Entries that measure whole requests in fresh processes: e2e.clean, gen, kvcache, cold, cpu.
 * Owns which settings and which numbers; how processes are run is bench_process.c's. */
#define _GNU_SOURCE
#include "lab/bench/runner.h"
#include "lab/bench/bench.h"
#include "lab/bench/process.h"
#include "base/os.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <inttypes.h>
#include <stdlib.h>

/* What known models answer to "Once upon a time", greedily, 64 tokens. A model is known by its metadata and
 * tensor directory, so one with damaged weights is still held to its text. */
static const struct {
    uint64_t fingerprint;
    const char *name, *text;
} known[] = {
    { 0x38075668277d06fcu, "hone-tiny", /* from another implementation: tests/dev/read_tiny.py */
      ", there was a little boy named Finn. He lived with his mother in a tidy cottage. One day, Finn saw a small "
      "light in the garden. "
      "It came from a pink stone. When Finn rubbed it, a voice said, \"You have two wishes.\" He" },
};
enum { KNOWN_TOKENS = 64 };
#define KNOWN_PROMPT "Once upon a time"

static int32_t or_default(int32_t asked, int32_t def) { return asked > 0 ? asked : def; }

/* Ends an entry: the bunch is freed, the first failure returned. */
static hone_status end(hn_bunch *b, size_t k, hone_status st, hone_status ran)
{
    for (size_t i = 0; i < k; i++) hn_bunch_free(&b[i]);
    return st == HONE_OK ? ran : st;
}

/* ---- e2e.clean ------------------------------------------------------------------------------------- */

/* What people start is another command than what is measured: hone run, with the same settings. */
static void give_run(hn_argv *a, const char *self, const hn_bench_settings *set)
{
    const char *const words[] = { self, "run", "-m", set->model, "-p", KNOWN_PROMPT, "--ignore-eos", "--no-echo" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) hn_argv_add(a, "%s", words[i]);
    hn_argv_add(a, "--temp=0");
    hn_argv_add(a, "--n-predict=%d", KNOWN_TOKENS);
    hn_argv_add(a, "--kv=%s", set->kv);
    if (set->threads > 0) hn_argv_add(a, "--threads=%d", set->threads);
    if (set->chunk > 0) hn_argv_add(a, "--chunk=%d", set->chunk);
    if (set->cpu) hn_argv_add(a, "--cpu=%s", set->cpu);
    if (set->pre) hn_argv_add(a, "--pre=%s", set->pre);
    if (set->packed) hn_argv_add(a, "--packed=%s", set->packed);
    if (set->allow_paging) hn_argv_add(a, "--allow-paging");
}

/* It says what the measured processes said; a stream may begin with the space that encoding added. */
static hone_status as_hone_run(hn_runner *p, hn_bunch *b, const char *said, hone_error *err)
{
    char self[1024], why[300];
    hn_argv a = { 0 };
    hn_process r;
    if (!said || b->verdict.state == HN_INVALID) return HONE_OK;
    if (!hn_os_program_path(self, sizeof self))
        return HN_FAIL(err, HONE_E_IO, "this system does not tell where the program is");
    give_run(&a, self, &p->r->set);
    hone_status st = hn_argv_check(&a, "hone run", err);
    const hn_process_params how = { .argv = hn_argv_words(&a), .keep_out = true, .stop = p->r->set.stop };
    if (st == HONE_OK) st = hn_process_run(&r, &how, err);
    hn_argv_free(&a);
    if (st != HONE_OK) return st;
    hn_process_why(&r, why, sizeof why);
    size_t n = strlen(said), skip = r.out && r.n_out > n && r.out[0] == ' ' && said[0] != ' ';
    if (why[0]) hn_invalid(&b->verdict, "hone run with the same prompt: %s", why);
    else if (r.n_out < skip + n || memcmp(r.out + skip, said, n) != 0 || r.n_out - skip - n > 1)
        hn_invalid(&b->verdict, "hone run says another text than what is measured: '%.60s', expected '%.60s'",
                   r.out ? r.out : "", said);
    hn_process_free(&r);
    return HONE_OK;
}

hone_status hn_run_e2e_clean(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hn_runner p;
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    if (!p.has_tokenizer)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "e2e.clean compares text, and the model has no tokenizer");
    hn_bunch b = { .mode = "_request", .word = "known,1" };
    hn_argv_add(&b.args, "--n-prompt=16");
    hn_argv_add(&b.args, "--n-gen=%d", KNOWN_TOKENS);
    b.asked = (hn_asked){ .n_prompt = -1, .n_gen = KNOWN_TOKENS };
    b.counted = true;
    hone_status ran = hn_bunch_measure(&p, &b, 1, hn_runner_samples(&p, 1000), err);
    const char *said = json_string_value(json_object_get(json_array_get(b.all, 0), "text"));
    size_t i = 0, n = sizeof known / sizeof *known;
    while (i < n && known[i].fingerprint != p.fingerprint) i++;
    bool exact = strcmp(r->set.kv, "q8_0") != 0; /* which may change a word */
    if (b.verdict.state == HN_INVALID) {
    } else if (i == n || !exact) {
        snprintf(b.verdict.reason, sizeof b.verdict.reason, "no known text of this model%s to compare with",
                 exact ? "" : " with --kv q8_0");
    } else if (said && strcmp(said, known[i].text) != 0) {
        size_t at = 0;
        while (said[at] && said[at] == known[i].text[at]) at++;
        hn_invalid(&b.verdict, "%s does not say what it should: after %zu bytes '%.60s', expected '%.60s'",
                   known[i].name, at, said + at, known[i].text + at);
    } else if (said) {
        b.verdict.state = HN_VALID;
    }
    if (ran == HONE_OK) ran = as_hone_run(&p, &b, said, err);
    json_t *extra =
        json_pack("{s:o, s:o}", "text", hn_lab_str(said), "expected", i < n ? json_string(known[i].text) : json_null());
    const hn_runner_record rec = { .path = "requests.0.decode_tok_s",
                                   .decode = true,
                                   .raw = true,
                                   .extra = extra,
                                   .memory = hn_runner_memory(&b),
                                   .config = hn_runner_config(
                                       &p, (int32_t)hn_result_number(json_array_get(b.all, 0), "requests.0.n_prompt"),
                                       KNOWN_TOKENS, "greedy") };
    if (hn_bunch_to_record(&b)) st = hn_runner_add(&p, &b, &rec, err);
    else {
        json_decref(rec.extra);
        json_decref(rec.config);
        json_decref(rec.memory);
    }
    return end(&b, 1, st, ran);
}

/* ---- e2e.gen ------------------------------------------------------------------------------------------ */

/* tok/s for each GB that the process holds: anonymous memory and resident pages of the model. */
static double efficiency(const hn_bunch *b)
{
    double x[1000];
    size_t i, n = 0;
    json_t *s;
    hn_stats st;
    json_array_foreach(b->all, i, s)
    {
        double gb = (hn_result_number(s, "peak_anon_mb") + hn_result_number(s, "model_resident_mb")) / 1e3,
               v = hn_result_number(s, "requests.0.decode_tok_s") / gb;
        if (n < 1000 && isfinite(v)) x[n++] = v;
    }
    return n && hn_stats_of(&st, x, n, NULL) == HONE_OK ? st.median : NAN;
}

hone_status hn_run_e2e_gen(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const struct {
        const char *variant, *unit, *path;
        int better;
        bool decode;
    } rows[] = { { "decode", "tok/s", "requests.0.decode_tok_s", 1, true },
                 { "prefill", "tok/s", "requests.0.prefill_tok_s", 1, false },
                 { "first token", "ms", "requests.0.ttft_ms", -1, false },
                 { "between tokens", "ms", "requests.0.itl_ms", -1, false },
                 { "steady", "tok/s", "requests.0.steady_tok_s", 1, true },
                 { "sustained", "tok/s", "requests.0.sustained_tok_s", 1, true },
                 { "total", "ms", "requests.0.total_ms", -1, false } };
    hn_runner p;
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    int32_t n_prompt = or_default(r->set.n_prompt, 128), n_gen = or_default(r->set.n_gen, 100);
    hn_bunch b = { .mode = "_request", .word = "sampled,1" };
    if ((st = hn_runner_quality(&p, &b.verdict, err)) != HONE_OK) return st;
    hn_bunch_ask(&b, n_prompt, n_gen, -1);
    hone_status ran = hn_bunch_measure(&p, &b, 1, hn_runner_samples(&p, 1000), err);
    ran = hn_bunch_check(&p, &b, ran, err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && hn_bunch_to_record(&b) && st == HONE_OK; i++) {
        json_t *extra = json_object();
        if (i == 0) {
            json_object_set_new(extra, "itl_ms", hn_bunch_gaps(&b, "requests.0.gaps_ms"));
            json_object_set_new(extra, "tok_s_per_gb", hn_lab_num(efficiency(&b)));
            json_object_set_new(extra, "peak_tok_s",
                                hn_lab_num(hn_result_number(json_array_get(b.all, 0), "requests.0.peak_tok_s")));
        }
        bool few = isnan(hn_result_number(json_array_get(b.all, 0), rows[i].path)) && b.verdict.state != HN_INVALID;
        const hn_runner_record rec = { .variant = rows[i].variant,
                                       .unit = rows[i].unit,
                                       .better = rows[i].better,
                                       .path = rows[i].path,
                                       .decode = rows[i].decode,
                                       .raw = i == 0,
                                       .extra = extra,
                                       .config = hn_runner_config(&p, n_prompt, n_gen, "temp 0.7, top-p 0.9"),
                                       .memory = hn_runner_memory(&b) };
        if (!few) st = hn_runner_add(&p, &b, &rec, err); /* a short generation has no steady part */
        else {
            json_decref(rec.extra);
            json_decref(rec.config);
            json_decref(rec.memory);
        }
    }
    return end(&b, 1, st, ran);
}

/* ---- e2e.kvcache ----------------------------------------------------------------------------------------- */

hone_status hn_run_e2e_kv_on(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    enum { PROMPT = 16, ALL = 512 };
    hn_runner p;
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    int32_t n_tok = r->set.n_gen > PROMPT ? r->set.n_gen : ALL;
    hn_bunch b = { .mode = "_sample" };
    if ((st = hn_runner_quality(&p, &b.verdict, err)) != HONE_OK) return st;
    hn_bunch_ask(&b, PROMPT, n_tok - PROMPT, 0);
    hone_status ran = hn_bunch_measure(&p, &b, 1, hn_runner_samples(&p, 6), err);
    ran = hn_bunch_check(&p, &b, ran, err);
    char rate[64];
    snprintf(rate, sizeof rate, "%d / (ttft_ms + gaps_ms)", n_tok - PROMPT);
    for (int k = 0; k < 2 && hn_bunch_to_record(&b) && st == HONE_OK; k++) {
        json_t *config = hn_runner_config(&p, PROMPT, n_tok - PROMPT, "greedy");
        const hn_runner_record rec = { .variant = k ? "rate" : "seconds",
                                       .unit = k ? "tok/s" : "s",
                                       .better = k ? 1 : -1,
                                       .path = k ? rate : "ttft_ms + gaps_ms",
                                       .scale = k ? 1e3 : 1e-3,
                                       .config = config,
                                       .raw = k == 0,
                                       .memory = hn_runner_memory(&b) };
        st = hn_runner_add(&p, &b, &rec, err);
    }
    return end(&b, 1, st, ran);
}

/* As many tokens as were asked for, and the answer with the cache computed again. */
static hone_status check_uncached(hn_runner *p, hn_bunch *b, int32_t asked, hone_status ran, hone_error *err)
{
    enum { PROMPT = 16 };
    json_t *s;
    size_t i;
    hn_bunch c = { .mode = "_uncached", .counted = true, .all = b->all };
    json_array_foreach(b->all, i, s)
    {
        json_int_t n = json_integer_value(json_object_get(s, "n_tok")),
                   steps = json_integer_value(json_object_get(json_object_get(s, "proof"), "steps"));
        size_t ids = json_array_size(json_object_get(s, "ids"));
        if (json_is_string(json_object_get(s, "invalid_reason"))) continue;
        if (n != asked || steps != asked - PROMPT || ids != (size_t)steps)
            hn_invalid(&b->verdict,
                       "sample %zu: %lld tokens, of which %zu are told and %lld proved; expected %d and %d", i + 1,
                       (long long)n, ids, (long long)steps, (int)asked, (int)asked - PROMPT);
    }
    hn_bunch_ask(&c, PROMPT, asked - PROMPT, 0);
    c.verdict = b->verdict;
    ran = hn_bunch_check(p, &c, ran, err);
    b->verdict = c.verdict;
    hn_argv_free(&c.args);
    return ran;
}

hone_status hn_run_e2e_kv_off(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    enum { FEW = 6, MOST_S = 10, QUICK_S = 2 };
    hn_runner p;
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    hn_bunch b = { .mode = "_uncached" };
    if ((st = hn_runner_quality(&p, &b.verdict, err)) != HONE_OK) return st;
    int32_t n = hn_runner_samples(&p, FEW), asked = r->set.n_gen > 0 ? r->set.n_gen : 0,
            most_s = p.quick ? QUICK_S : MOST_S;
    if (asked == 0) { /* one process chooses the length for all */
        hn_bunch pilot = { .mode = "_uncached" };
        bool free_warmups = r->free_warmups;
        int32_t warmups = r->set.warmups;
        double measure_s = r->set.measure_s;
        snprintf(pilot.word, sizeof pilot.word, "0,%d", most_s);
        r->free_warmups = false;
        r->set.warmups = 0;
        r->set.measure_s = 0;
        st = hn_bunch_measure(&p, &pilot, 1, 1, err);
        r->free_warmups = free_warmups;
        r->set.warmups = warmups;
        r->set.measure_s = measure_s;
        asked = (int32_t)hn_result_number(json_array_get(pilot.all, 0), "n_tok");
        if (asked <= 0) {
            asked = 512;
            b.verdict = pilot.verdict;
        }
        hn_bunch_free(&pilot);
        if (st != HONE_OK) return st;
    }
    snprintf(b.word, sizeof b.word, "%d,%d", asked, most_s);
    hone_status ran = hn_bunch_measure(&p, &b, 1, n, err);
    ran = check_uncached(&p, &b, asked, ran, err);
    char note[120] = "", rate[64];
    snprintf(rate, sizeof rate, "%d - n_prompt / off_s", asked);
    if (asked != 512)
        snprintf(note, sizeof note, "%d tokens, not 512%s", asked,
                 r->set.n_gen > 0 ? "" : ": those would take too long here (-n 512 insists)");
    for (int k = 0; k < 3 && hn_bunch_to_record(&b) && st == HONE_OK; k++) {
        json_t *config = hn_runner_config(&p, 16, asked - 16, "greedy");
        const hn_runner_record rec = { .variant = k == 0   ? "seconds"
                                                  : k == 1 ? "rate"
                                                           : "times slower",
                                       .unit = k == 0   ? "s"
                                               : k == 1 ? "tok/s"
                                                        : "x",
                                       .better = k == 1 ? 1 : -1,
                                       .path = k == 0   ? "off_s"
                                               : k == 1 ? rate
                                                        : "off_s / on_s",
                                       .config = config,
                                       .raw = k == 0,
                                       .memory = hn_runner_memory(&b),
                                       .note = note[0] ? note : NULL };
        st = hn_runner_add(&p, &b, &rec, err);
    }
    return end(&b, 1, st, ran);
}

/* ---- e2e.cold ------------------------------------------------------------------------------------------------ */

hone_status hn_run_e2e_cold(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    enum { REQUESTS = 6 };
    hn_runner p;
    hone_status st = hn_runner_begin(&p, r, e, err), ran = HONE_OK;
    int32_t n_prompt = or_default(r->set.n_prompt, 64), n_gen = or_default(r->set.n_gen, 16);
    hn_verdict quality = { 0 };
    if (st == HONE_OK) st = hn_runner_quality(&p, &quality, err);
    for (int cold = 0; cold < 2 && st == HONE_OK && ran == HONE_OK; cold++) {
        hn_bunch b = { .mode = "_request", .drop = cold, .from_disk = cold, .verdict = quality };
        snprintf(b.word, sizeof b.word, "greedy,%d", cold ? 1 : REQUESTS);
        hn_bunch_ask(&b, n_prompt, n_gen, -1);
        ran = hn_bunch_measure(&p, &b, 1, hn_runner_samples(&p, 6), err);
        ran = hn_bunch_check(&p, &b, ran, err);
        static const struct {
            const char *variant, *unit, *path;
        } warm_rows[] = { { "first / later", "x", "requests.0.total_ms / requests.1-.total_ms" },
                          { "first", "ms", "requests.0.total_ms" },
                          { "later", "ms", "requests.1-.total_ms" } };
        for (int k = 0; k < 3 && !cold && hn_bunch_to_record(&b) && st == HONE_OK; k++) {
            const hn_runner_record rec = { .variant = warm_rows[k].variant,
                                           .unit = warm_rows[k].unit,
                                           .better = -1,
                                           .path = warm_rows[k].path,
                                           .raw = k == 0,
                                           .config = hn_runner_config(&p, n_prompt, n_gen, "greedy"),
                                           .memory = hn_runner_memory(&b) };
            st = hn_runner_add(&p, &b, &rec, err);
        }
        const hn_runner_record start = { .variant = !cold          ? "start to first token, warm"
                                                    : b.unverified ? "start to first token, cold-unverified"
                                                                   : "start to first token, cold",
                                         .unit = "ms",
                                         .better = -1,
                                         .path = "start_to_first_ms",
                                         .raw = cold,
                                         .config = hn_runner_config(&p, n_prompt, n_gen, "greedy"),
                                         .memory = hn_runner_memory(&b),
                                         .note = "process started, model, tokenizer, prompt, first token" };
        if (hn_bunch_to_record(&b) && st == HONE_OK) st = hn_runner_add(&p, &b, &start, err);
        else {
            json_decref(start.config);
            json_decref(start.memory);
        }
        hn_bunch_free(&b);
    }
    return st == HONE_OK ? ran : st;
}

/* ---- e2e.cpu --------------------------------------------------------------------------------------------------- */

hone_status hn_run_e2e_cpu(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hn_runner p;
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    int32_t n_prompt = or_default(r->set.n_prompt, 128), n_gen = or_default(r->set.n_gen, 64);
    hn_bunch b = { .mode = "_cost" };
    if ((st = hn_runner_quality(&p, &b.verdict, err)) != HONE_OK) return st;
    hn_bunch_ask(&b, n_prompt, n_gen, -1);
    hn_argv_add(&b.args, "--depth=0");
    hone_status ran = hn_bunch_measure(&p, &b, 1, hn_runner_samples(&p, 1000), err);
    ran = hn_bunch_check(&p, &b, ran, err);
    json_t *first = json_array_get(b.all, 0);
    double threads = fmax(hn_result_number(first, "engine.threads"), hn_result_number(first, "engine.threads_batch")),
           tokens = n_prompt + n_gen;
    static const struct {
        const char *variant, *unit, *path;
    } rows[] = { { "CPU use", "%", "cpu_use" },
                 { "involuntary switches per token", "count", "involuntary_switches" },
                 { "voluntary switches per token", "count", "voluntary_switches" },
                 { "cache misses per token", "count", "cache_misses" } };
    bool counted = isfinite(hn_result_number(first, "cache_misses"));
    char note[200] = "";
    const char *why = json_string_value(json_object_get(first, "no_cache_misses"));
    if (first && !counted) snprintf(note, sizeof note, "no cache misses: %.150s", why ? why : "not counted");
    for (int k = 0; k < (counted ? 4 : 3) && hn_bunch_to_record(&b) && st == HONE_OK; k++) {
        const hn_runner_record rec = { .variant = rows[k].variant,
                                       .unit = rows[k].unit,
                                       .better = k == 0 ? 1 : -1,
                                       .path = rows[k].path,
                                       .scale = k == 0 ? 100 / threads : 1 / tokens,
                                       .zero_ok = true,
                                       .raw = k == 0,
                                       .config = hn_runner_config(&p, n_prompt, n_gen, "greedy"),
                                       .memory = hn_runner_memory(&b),
                                       .note = k == 0 && note[0] ? note : NULL };
        st = hn_runner_add(&p, &b, &rec, err);
    }
    return end(&b, 1, st, ran);
}
