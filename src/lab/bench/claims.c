/* What a measured process may claim. Owns the tolerances; refuses to judge answers. */
#include "lab/bench/claims.h"

#include "lab/bench/runner.h"
#include "lab/machine/clock.h"
#include "lab/record/record_read.h"
#include "lab/stats/stats.h"
#include "base/json_tree.h"
#include "base/os.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

/* Two clocks that are read one after the other differ by what lies between: nothing, or now and then a switch to
 * another process; a sample that had one is measured again. */
static const double clock_share = 0.02, clock_s = 0.0005;
/* From the start of a process to its first instruction, and from its result to its end. */
static const double around_s = 0.004;
/* A busy machine may take longer to begin with it, and to hear of its result. */
static const double busy_share = 0.1, busy_s = 0.25;
/* What a thread does beside what it times: draws the ids of its prompt, reads counters; and hashes the logits of each
 * step, which no machine does as slowly as that. */
static const double beside_share = 0.05, beside_s = 0.006, hashed_mb_s = 1000;
/* Counters of memory are kept per CPU or thread, up to 64 pages behind, and printing the result takes some. */
static const double memory_share = 0.03, memory_mb = 2, memory_cpu_mb = 0.5;

typedef struct check {
    char *why;
    size_t cap;
    bool ok;
} check;

/* The first reason stays. */
static void wrong(check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void wrong(check *c, const char *fmt, ...)
{
    if (!c->ok) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->why, c->cap, fmt, ap);
    va_end(ap);
    c->ok = false;
}

static double sum_of(json_t *array)
{
    double sum = 0;
    size_t i;
    json_t *v;
    json_array_foreach(array, i, v) sum += json_number_value(v);
    return sum;
}

/* ---- what was asked for ------------------------------------------------------------------------- */

static void counts(check *c, json_t *r, const hn_asked *a)
{
    json_t *ids = json_object_get(r, "ids"), *gaps = json_object_get(r, "gaps_ms"),
           *proof = json_object_get(r, "proof");
    int64_t n = (int64_t)json_array_size(ids), positions = json_integer_value(json_object_get(r, "positions"));
    int64_t steps = json_integer_value(json_object_get(proof, "steps")), least = a->n_gen > 0 ? a->n_gen : 1;
    int64_t prompt = a->n_prompt;
    if (json_object_get(r, "n_prompt")) prompt = json_integer_value(json_object_get(r, "n_prompt"));
    if (a->n_prompt > 0 && prompt > a->n_prompt)
        wrong(c, "a prompt of %lld tokens was measured, %d were asked for", (long long)prompt, (int)a->n_prompt);
    if (n != a->n_gen) wrong(c, "%lld tokens were generated, %d were asked for", (long long)n, (int)a->n_gen);
    if ((int64_t)json_array_size(gaps) != (n > 0 ? n - 1 : 0))
        wrong(c, "%zu gaps between %lld tokens", json_array_size(gaps), (long long)n);
    if (!proof || steps != least)
        wrong(c, "logits of %lld steps are proved, expected %lld", (long long)steps, (long long)least);
    if (prompt < 1) prompt = 1; /* without a prompt, one token of the stream */
    int64_t expected = a->depth + prompt + (a->n_gen > 0 ? a->n_gen - 1 : 0);
    if (positions != expected)
        wrong(
            c,
            "the sequence holds %lld positions at the end, expected %lld: %d before, %lld of the prompt, %d generated",
            (long long)positions, (long long)expected, (int)a->depth, (long long)prompt, (int)a->n_gen);
}

/* ---- its own figures ------------------------------------------------------------------------------ */

/* Faster than the second clock saw it? */
static void not_faster(check *c, const char *what, double claimed_ms, double seen_ms)
{
    if (isfinite(claimed_ms) && isfinite(seen_ms) && hn_clock_lies(1e-3 * claimed_ms, 1e-3 * seen_ms))
        wrong(c, "%s took %.3f ms by its own clock, and %.3f ms by the kernel's", what, claimed_ms, seen_ms);
}

static void agree(check *c, const char *what, double rate, double of_ms)
{
    const double rounding = 1e-3;
    if (isfinite(rate) && isfinite(of_ms) && fabs(rate / of_ms - 1) > rounding)
        wrong(c, "%s is %.5g tok/s, and by the times it reports %.5g", what, rate, of_ms);
}

/* Of a result that says what it says all alone: sequences that one of its gaps is between. */
static double sequences_of(json_t *r) { return fmax((double)json_array_size(json_object_get(r, "each")), 1); }

/* A number that a result tells beside the gaps that it follows from. */
static void of_gaps(check *c, json_t *r, const char *key, double is)
{
    const double rounding = 1e-3;
    double told = hn_json_number_of(r, key);
    if (isfinite(told) && !(fabs(told - is) <= rounding * fabs(is)))
        wrong(c, "%s is %.5g, and by the times it reports %.5g", key, told, is);
}

/* The fastest that a stretch of a second may have been, if none was shorter by a gap and its times are rounded: whether
 * a stretch that is nearly a second long is one, or the gap before it belongs to it, is not known any more. */
static double peak_at_most(const double *gap_ms, size_t n, double rounding)
{
    const double second = 1000;
    double sum = 0, peak = NAN;
    for (size_t from = 0, to = 0; to < n; to++) {
        sum += gap_ms[to];
        while (from < to && sum - gap_ms[from] >= second * (1 + rounding)) sum -= gap_ms[from++];
        double left = sum;
        for (size_t i = from; i <= to && left >= second * (1 - rounding); left -= gap_ms[i++])
            peak = fmax(peak, 1000 * (double)(to - i + 1) / left);
    }
    return peak;
}

/* What a result tells of its pace is what its gaps say. */
static void pace(check *c, json_t *r)
{
    json_t *gaps = json_object_get(r, "gaps_ms"), *v;
    size_t n = json_array_size(gaps), i;
    hn_pace of = { NAN, NAN, NAN };
    hn_stats st = { .median = NAN };
    double *x = calloc(n + 1, sizeof *x), gap_ms = sum_of(gaps), ttft = hn_json_number_of(r, "ttft_ms");
    if (!x) {
        wrong(c, "no memory for %zu gaps", n);
        return;
    }
    json_array_foreach(gaps, i, v) x[i] = json_number_value(v);
    if (n && (hn_pace_of(&of, x, (int32_t)n, NULL) != HONE_OK || hn_stats_of(&st, x, n, NULL) != HONE_OK))
        wrong(c, "the gaps between its tokens are no times");
    const double rounding = 1e-3, told_peak = hn_json_number_of(r, "peak_tok_s"), peak = peak_at_most(x, n, rounding);
    if (isfinite(told_peak) && !(told_peak <= peak * (1 + rounding)))
        wrong(c, "peak_tok_s is %.5g, and by the times it reports %.5g", told_peak, peak);
    free(x);
    if (n) agree(c, "generation", hn_json_number_of(r, "decode_tok_s"), 1e3 * (double)n * sequences_of(r) / gap_ms);
    of_gaps(c, r, "itl_ms", st.median);
    of_gaps(c, r, "steady_tok_s", of.steady);
    of_gaps(c, r, "sustained_tok_s", of.sustained);
    if (json_object_get(r, "ttft_ms")) of_gaps(c, r, "total_ms", ttft + gap_ms);
}

static void times(check *c, json_t *r, int64_t n_prompt)
{
    json_t *gaps = json_object_get(r, "gaps_ms");
    double gap_ms = sum_of(gaps), prefill = hn_json_number_of(r, "prefill_tok_s"),
           ttft = hn_json_number_of(r, "ttft_ms");
    pace(c, r);
    if (json_array_size(gaps)) not_faster(c, "generation", gap_ms, hn_json_number_of(r, "gen_witness_ms"));
    not_faster(c, "tokens with a cache", 1e3 * hn_json_number_of(r, "on_s"), hn_json_number_of(r, "on_witness_ms"));
    not_faster(c, "tokens without one", 1e3 * hn_json_number_of(r, "off_s"), hn_json_number_of(r, "off_witness_ms"));
    not_faster(c, "prompt and first token", ttft, hn_json_number_of(r, "prompt_witness_ms"));
    double prefill_ms = n_prompt > 0 ? 1e3 * (double)n_prompt / prefill : NAN,
           rest = hn_json_number_of(r, "tokenize_ms");
    if (isfinite(rest)) prefill_ms += rest;
    /* choosing the first token is all that lies between */
    if (isfinite(prefill_ms) && prefill_ms > ttft * (1 + clock_share) + 1e3 * clock_s)
        wrong(c, "the prompt took %.3f ms, its first token was there after %.3f ms", prefill_ms, ttft);
    double seen = hn_json_number_of(r, "prefill_witness_ms"), least = isfinite(seen) ? 0.8 : 0.5;
    not_faster(c, "the prompt", prefill_ms, seen);
    /* what is left for later is the prompt's all the same; a request's first token is drawn by a sampler */
    if (isfinite(prefill_ms) && isfinite(ttft) && prefill_ms < least * ttft - 1e3 * around_s)
        wrong(c, "the prompt took %.3f ms of the %.3f ms until the first token", prefill_ms, ttft);
}

/* ---- what the parent saw ---------------------------------------------------------------------------- */

/* Seconds that it claims to have worked once the model was there. */
static double timed_s(json_t *result)
{
    double ttft = hn_json_number_of(result, "ttft_ms"), on = hn_json_number_of(result, "on_s"),
           off = hn_json_number_of(result, "off_s"), served = hn_json_number_of(result, "served_s"),
           ms = (isfinite(ttft) ? ttft : 0) + sum_of(json_object_get(result, "gaps_ms"));
    size_t i;
    json_t *r;
    ms += 1e3 * ((isfinite(on) ? on : 0) + (isfinite(off) ? off : 0) + (isfinite(served) ? served : 0));
    json_array_foreach(json_object_get(result, "requests"), i, r)
    {
        ttft = hn_json_number_of(r, "ttft_ms");
        ms += (isfinite(ttft) ? ttft : 0) + sum_of(json_object_get(r, "gaps_ms"));
    }
    return 1e-3 * ms;
}

static double load_s(json_t *result) { return 1e-3 * fmax(hn_json_number_of(result, "load_ms"), 0); }

double hn_claims_told_s(json_t *result) { return load_s(result) + timed_s(result); }

/* Its result came so much later than its clocks say that one of them is slow, or it began late. */
static bool overdue(double by_its_clocks, const hn_seen *seen)
{
    return by_its_clocks < seen->told_s * (1 - busy_share) - busy_s;
}

static double threads_of(json_t *result)
{
    json_t *engine = json_object_get(result, "engine");
    return fmax(hn_json_number_of(engine, "threads"), hn_json_number_of(engine, "threads_batch"));
}

/* More CPU time than its threads can have had in so many seconds, `load` of which it opened the model: any core may
 * read a file. */
static bool too_much_cpu(json_t *result, const hn_seen *seen, double seconds, double load)
{
    double threads = threads_of(result), cores = fmax(hn_os_cpu_count(), threads);
    return hn_cpu_beyond(seen->cpu_s - cores * load, threads, fmax(seconds - load, 0));
}

bool hn_claims_late(json_t *result, const hn_seen *seen, char *why, size_t cap)
{
    double witness = hn_json_number_of(result, "process_witness_s"), start = hn_json_number_of(result, "start_s");
    if (!overdue(witness, seen) || !(start > 0) || overdue(witness + start, seen)) return false;
    if (start > load_s(result) + around_s) return false; /* what is told of loading counts from the start */
    if (witness + start > seen->told_s * (1 + clock_share) + around_s) return false;
    double load = fmax(load_s(result) - start, 0);
    if (!(seen->cpu_s > 0) || !(threads_of(result) > 0) || too_much_cpu(result, seen, witness, load)) return false;
    snprintf(why, cap, "it began %.3f s after its start", start);
    return true;
}

/* By how much a number of which six digits are told may be off. */
static double rounded(double x) { return x > 0 ? 0.5 * pow(10, floor(log10(x)) - 5) : 0; }

/* What a load is made of follows one on the other: by one clock, each step beginning where the one before it ends, all
 * of them are the load. */
static void load_parts(check *c, json_t *result)
{
    static const char *const parts[] = { "start_ms", "parse_ms", "config_ms", "engine_ms" };
    double all = hn_json_number_of(result, "total_ms"), sum = 0, rounding = rounded(all) + 1e-9 * all;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double part = hn_json_number_of(result, parts[i]);
        sum += part;
        rounding += rounded(part);
    }
    if (isfinite(sum) && isfinite(all) && fabs(all - sum) > rounding)
        wrong(c, "loading took %.3f ms, and its parts %.3f ms", all, sum);
}

static void clocks(check *c, json_t *result, const hn_seen *seen)
{
    char late[80];
    double clock = hn_json_number_of(result, "process_s"), witness = hn_json_number_of(result, "process_witness_s");
    if (isfinite(clock) && isfinite(witness) && fabs(clock - witness) > clock_share * witness + clock_s)
        wrong(c, "its clock ran %.3f s while the kernel's ran %.3f s", clock, witness);
    not_faster(c, "loading", hn_json_number_of(result, "load_ms"), hn_json_number_of(result, "load_witness_ms"));
    if (!seen) return;
    if (!(seen->wall_s > 0)) wrong(c, "its parent did not see how long it ran");
    if (overdue(witness, seen) && !hn_claims_late(result, seen, late, sizeof late))
        wrong(c, "it ran for %.3f s by its own clocks, and its parent waited %.3f s for its result", witness,
              seen->told_s);
    double most = seen->wall_s * (1 + clock_share) + around_s, claimed = hn_claims_told_s(result);
    if (witness > most) wrong(c, "it ran for %.3f s, its parent saw %.3f s", witness, seen->wall_s);
    if (claimed > most) wrong(c, "it claims %.3f s of work, its parent saw it for %.3f s", claimed, seen->wall_s);
}

static int64_t steps_proved(json_t *result)
{
    int64_t n = json_integer_value(json_object_get(json_object_get(result, "proof"), "steps"));
    size_t i;
    json_t *r;
    json_array_foreach(json_object_get(result, "requests"), i, r) n +=
        json_integer_value(json_object_get(json_object_get(r, "proof"), "steps"));
    return n;
}

/* The thread that measures waits or computes while it times something, and in between it has next to nothing to do:
 * more CPU time than all its times together went into work that no time tells. */
static void beside_the_clock(check *c, json_t *result)
{
    double cpu = hn_json_number_of(result, "main_cpu_s"), depth = hn_json_number_of(result, "depth_ms"),
           row_mb = hn_json_number_of(json_object_get(result, "engine"), "logits_mb"),
           told = timed_s(result) + (isfinite(depth) ? 1e-3 * depth : 0);
    double hash_s = isfinite(row_mb) ? (double)steps_proved(result) * row_mb / hashed_mb_s : 0;
    if (isfinite(cpu) && cpu > told * (1 + beside_share) + hash_s + beside_s)
        wrong(c, "its thread computed for %.3f s, and the times it reports are %.3f s: it works while nothing is timed",
              cpu, told);
}

/* More CPU time than its threads can have had: it has others, or all its clocks are slow. */
static void cpu_time(check *c, json_t *result, const hn_seen *seen)
{
    double threads = threads_of(result), use = hn_json_number_of(result, "cpu_use"), timed = timed_s(result);
    if (!(threads > 0)) return;
    if (isfinite(use) && hn_cpu_beyond(use * timed, threads, timed))
        wrong(c, "it used %.2f CPUs while it was timed, with %.0f thread%s as it says", use, threads,
              threads == 1 ? "" : "s");
    if (!seen || seen->wall_s <= 0) return;
    if (too_much_cpu(result, seen, seen->wall_s, load_s(result)))
        wrong(c, "the kernel counted %.3f s of CPU time in %.3f s, with %.0f thread%s as it says", seen->cpu_s,
              seen->wall_s, threads, threads == 1 ? "" : "s");
}

/* Its memory stage by stage is no less than what it holds in the end. */
static void stages(check *c, json_t *result, const hn_seen *seen, double slack_mb)
{
    double most = NAN, end = (double)seen->anon_end / 1e6;
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(result, "stages"), i, s) most = fmax(most, hn_json_number_of(s, "anon_mb"));
    if (isfinite(most) && most < (1 - memory_share) * end - slack_mb)
        wrong(c, "its stages took %.1f MB of anonymous memory at most, its parent saw %.1f MB at its end", most, end);
}

static void memory(check *c, json_t *result, const hn_seen *seen)
{
    double hwm = hn_json_number_of(result, "hwm_mb"), max_rss = seen ? (double)seen->max_rss / 1e6 : 0,
           slack = memory_mb + memory_cpu_mb * hn_os_cpu_count();
    if (!seen) return;
    if (isfinite(hwm) && max_rss > (double)seen->own_rss / 1e6 + slack && hwm < (1 - memory_share) * max_rss - slack)
        wrong(c, "at most %.1f MB were resident, the kernel counted %.1f MB", hwm, max_rss);
    double resident =
        (double)seen->resident / 1e6; /* of its own pages alone: a process no larger than its parent, too */
    if (isfinite(hwm) && hwm < (1 - memory_share) * resident - slack)
        wrong(c, "at most %.1f MB were resident, its parent saw %.1f MB resident at its end", hwm, resident);
    if ((double)seen->anon < (1 - memory_share) * (double)seen->anon_again - 1e6 * slack)
        wrong(c, "%.1f MB of anonymous memory, and %.1f MB by another way", (double)seen->anon / 1e6,
              (double)seen->anon_again / 1e6);
    stages(c, result, seen, slack);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

/* It says itself that it is worth nothing. */
static bool gives_up(json_t *r) { return json_is_string(json_object_get(r, "invalid_reason")); }

bool hn_claims_exact(json_t *result, const hn_asked *asked, char *why, size_t cap)
{
    check c = { .why = why, .cap = cap, .ok = true };
    size_t i;
    json_t *r, *requests = json_object_get(result, "requests");
    double load = hn_json_number_of(result, "load_ms");
    if (gives_up(result)) return true;
    if (asked && !requests) counts(&c, result, asked);
    pace(&c, result);
    json_array_foreach(requests, i, r)
    {
        if (gives_up(r)) continue;
        if (asked) counts(&c, r, asked);
        pace(&c, r);
    }
    if (json_object_get(result, "engine_ms")) of_gaps(&c, result, "total_ms", load);
    load_parts(&c, result);
    return c.ok;
}

/* The value of --name= that counts, the last; NULL: there is none. */
static const char *option_of(const char *const *argv, const char *name)
{
    const size_t n = strlen(name);
    const char *value = NULL;
    for (; *argv; argv++)
        if (strncmp(*argv, name, n) == 0) value = *argv + n;
    return value;
}

bool hn_claims_settings(json_t *result, const char *const *argv, char *why, size_t cap)
{
    check c = { .why = why, .cap = cap, .ok = true };
    json_t *engine = json_object_get(result, "engine");
    const char *threads = option_of(argv, "--threads="), *batch = option_of(argv, "--threads-batch="),
               *cpu = option_of(argv, "--cpu="), *own = json_string_value(json_object_get(engine, "cpu")),
               *packed = option_of(argv, "--packed=");
    const char *const asked[] = { threads, batch ? batch : threads }, *const keys[] = { "threads", "threads_batch" };
    for (int i = 0; i < 2; i++) {
        double is = hn_json_number_of(engine, keys[i]);
        if (asked[i] && isfinite(is) && is != strtod(asked[i], NULL))
            wrong(&c, "it ran with %.0f %s, %.10s were asked for", is, i ? "threads for prompts" : "threads", asked[i]);
    }
    const json_t *is_packed = json_object_get(engine, "packed");
    if (packed && strcmp(packed, "auto") != 0 && json_is_boolean(is_packed) &&
        json_is_true(is_packed) != (strcmp(packed, "off") != 0))
        wrong(&c, "it read %s weights, --packed %.60s was asked for", json_is_true(is_packed) ? "packed" : "plain",
              packed);
    if (cpu && own && strcmp(cpu, "auto") != 0 && strcmp(cpu, own) != 0)
        wrong(&c, "it ran with kernels of level %.20s, %.20s was asked for", own, cpu);
    return c.ok;
}

bool hn_claims_hold(json_t *result, const hn_asked *asked, const hn_seen *seen, char *why, size_t cap)
{
    check c = { .why = why, .cap = cap, .ok = true };
    size_t i;
    json_t *r;
    if (gives_up(result)) return true;
    if (!hn_claims_exact(result, asked, why, cap)) return false;
    json_t *requests = json_object_get(result, "requests");
    if (!requests) {
        int64_t own = json_integer_value(json_object_get(result, "n_prompt_all"));
        times(&c, result, own ? own : asked ? asked->n_prompt : 0);
    }
    json_array_foreach(requests, i, r)
    {
        if (!gives_up(r)) times(&c, r, json_integer_value(json_object_get(r, "n_prompt")));
    }
    clocks(&c, result, seen);
    beside_the_clock(&c, result);
    cpu_time(&c, result, seen);
    memory(&c, result, seen);
    return c.ok;
}

bool hn_claims_disturbed(json_t *result, const hn_seen *seen, char *why, size_t cap)
{
    const struct {
        const char *key, *words;
        int64_t most;
    } all[] = { { "major_faults", "pages read from disk", seen->major_faults },
                { "throttled", "times the CPU was throttled", seen->throttled },
                { "quota_stops", "stops by the control group's limit", seen->stopped } };
    check c = { .why = why, .cap = cap, .ok = true };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double told = hn_json_number_of(result, all[i].key);
        if ((i == 0 || seen->counted) && all[i].most >= 0 && told > (double)all[i].most)
            wrong(&c, "it claims %.0f %s, the kernel counted %lld", told, all[i].words, (long long)all[i].most);
    }
    if (seen->counted && seen->stolen == 0 && hn_json_number_of(result, "steal_pct") > 0)
        wrong(&c, "it claims that the hypervisor took %.1f %% of the time, the kernel counted nothing",
              hn_json_number_of(result, "steal_pct"));
    if (seen->usual != INT32_MAX && seen->priority < seen->usual) /* else nobody could read its own */
        wrong(&c, "it ran at priority %d, where its parent has %d: it raised its own", (int)seen->priority,
              (int)seen->usual);
    if (seen->n_left > 0) wrong(&c, "it left %d process%s behind", (int)seen->n_left, seen->n_left == 1 ? "" : "es");
    return c.ok;
}

/* ---- records ------------------------------------------------------------------------------------------- */

/* Of the numbers at `key` of the samples, or of samples that are numbers; NaN: there are none. */
static double median_of(json_t *samples, const char *key)
{
    size_t i, n = 0;
    json_t *s;
    hn_stats st;
    double *x = calloc(json_array_size(samples) + 1, sizeof *x), median = NAN;
    json_array_foreach(samples, i, s)
    {
        double v = key ? hn_json_number_of(s, key) : json_is_number(s) ? json_number_value(s) : NAN;
        if (x && isfinite(v)) x[n++] = v;
    }
    if (n && hn_stats_of(&st, x, n, NULL) == HONE_OK) median = st.median;
    free(x);
    return median;
}

static bool near(double a, double b)
{
    const double rounding = 1e-3;
    return fabs(a - b) <= rounding * fabs(b) + 1e-9;
}

/* The samples of a record, one after the other, are this number of these processes; those that lack it are none. */
static bool comes_from(json_t *record, json_t *processes, const char *path)
{
    json_t *samples = json_object_get(record, "samples"), *p;
    double scale = hn_json_number_of(json_object_get(record, "extra"), "scale");
    size_t i, n = 0;
    json_array_foreach(processes, i, p)
    {
        double v = hn_result_number(p, path);
        if (!isfinite(v)) continue;
        if (!near(json_number_value(json_array_get(samples, n++)), v * (isfinite(scale) ? scale : 1))) return false;
    }
    return n == json_array_size(samples);
}

/* The samples of the record of this id and variant; NULL: there is none. */
static json_t *samples_of(json_t *records, const char *id, const char *variant)
{
    size_t i;
    json_t *r;
    json_array_foreach(records, i, r) if (strcmp(hn_record_text(r, "id"), id) == 0 &&
                                          strcmp(hn_record_text(json_object_get(r, "config"), "variant"), variant) ==
                                              0) return json_object_get(r, "samples");
    return NULL;
}

/* The samples of a record that is one record by another are so, round by round. */
static void ratio(check *c, json_t *records, json_t *r, const char *id)
{
    json_t *of = json_object_get(json_object_get(r, "extra"), "ratio"), *samples = json_object_get(r, "samples"), *x[2];
    size_t n = json_array_size(samples);
    if (!of) return;
    for (size_t i = 0; i < 2; i++) {
        const char *variant = json_string_value(json_array_get(of, i));
        x[i] = variant ? samples_of(records, id, variant) : NULL;
        if (!x[i]) {
            wrong(c, "%.60s: no record of it is '%.60s', by which its samples stand", id, variant ? variant : "?");
            return;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (!near(json_number_value(json_array_get(samples, i)) * json_number_value(json_array_get(x[1], i)),
                  json_number_value(json_array_get(x[0], i))))
            wrong(c, "%.60s: its samples are not those of '%.60s' by those of '%.60s'", id,
                  json_string_value(json_array_get(of, 0)), json_string_value(json_array_get(of, 1)));
}

/* The samples of a calibrated loop take as long, all together, as its clock ran. */
static void clocked(check *c, json_t *r, const char *id)
{
    const double rounding = 2e-3;
    json_t *clock = json_object_get(json_object_get(r, "extra"), "clock"), *v;
    double s = hn_json_number_of(clock, "s"), scale = hn_json_number_of(clock, "scale"),
           calls = hn_json_number_of(clock, "calls"), sum = 0;
    size_t i;
    if (!clock) return;
    json_array_foreach(json_object_get(r, "samples"), i, v)
    {
        double x = json_number_value(v);
        sum += calls * (json_is_true(json_object_get(clock, "rate")) ? scale / x : x / scale);
    }
    if (!(fabs(sum - s) <= rounding * fabs(s) + 1e-9))
        wrong(c, "%.60s: its samples add up to %.6g s, and its clock ran %.6g s", id, sum, s);
}

static void one_number(check *c, json_t *records, json_t *r)
{
    const char *id = json_string_value(json_object_get(r, "id")), *other;
    json_t *extra = json_object_get(r, "extra"), *o;
    const char *path = json_string_value(json_object_get(extra, "from"));
    double said = hn_json_number_of(json_object_get(r, "stats"), "median"),
           own = median_of(json_object_get(r, "samples"), NULL);
    size_t i, n = 0;
    bool found = false;
    if (!id) id = "";
    if (isfinite(said) && isfinite(own) && !near(said, own))
        wrong(c, "%.60s: the record says a median of %.5g, and its samples %.5g", id, said, own);
    ratio(c, records, r, id);
    clocked(c, r, id);
    json_array_foreach(records, i, o)
    {
        json_t *processes = json_object_get(json_object_get(o, "extra"), "samples");
        if (!path || found || !(other = json_string_value(json_object_get(o, "id"))) || strcmp(id, other) != 0)
            continue;
        n += json_array_size(processes) > 0;
        found = json_array_size(processes) > 0 && comes_from(r, processes, path);
    }
    if (n && !found)
        wrong(c, "%.60s: its samples are not what its processes say (%.60s), by whose times they stand", id, path);
}

bool hn_claims_records(json_t *records, char *why, size_t cap)
{
    check c = { .why = why, .cap = cap, .ok = true };
    size_t i;
    json_t *r;
    json_array_foreach(records, i, r) if (!json_is_false(json_object_get(r, "valid"))) one_number(&c, records, r);
    return c.ok;
}

double hn_claims_seconds(json_t *records)
{
    size_t i, k;
    json_t *r, *p;
    double sum = 0;
    bool any = false;
    json_array_foreach(records, i, r)
    {
        json_t *extra = json_object_get(r, "extra"), *clock = json_object_get(extra, "clock");
        any = any || clock || json_array_size(json_object_get(extra, "samples"));
        if (clock) sum += hn_json_number_of(clock, "s");
        json_array_foreach(json_object_get(extra, "samples"), k, p) sum += hn_claims_told_s(p);
    }
    return any ? sum : NAN;
}

bool hn_claims_record(json_t *record, bool whole, char *why, size_t cap)
{
    static const char *const keys[] = { "decode_tok_s", "prefill_tok_s", "ttft_ms", "load_ms", "peak_anon_mb" };
    const double rounding = 1e-3;
    check c = { .why = why, .cap = cap, .ok = true };
    json_t *samples = json_object_get(record, "samples"), *s;
    double n_prompt = hn_json_number_of(json_object_get(record, "config"), "n_prompt");
    size_t i;
    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        double top = hn_json_number_of(record, keys[i]), own = median_of(samples, keys[i]);
        if (!isfinite(top) || (!isfinite(own) && !whole)) continue;
        if (!isfinite(own)) wrong(&c, "the record says %s, and none of its samples does", keys[i]);
        else if (fabs(top - own) > rounding * fabs(own))
            wrong(&c, "the record says %s %.5g, and its samples %.5g", keys[i], top, own);
    }
    if (whole && isfinite(hn_json_number_of(record, "prefill_tok_s")) && !(n_prompt > 0))
        wrong(&c, "the record says the rate of a prompt, and not how long it is");
    json_array_foreach(samples, i, s)
    {
        if (!whole || json_is_string(json_object_get(s, "invalid_reason"))) continue;
        times(&c, s, n_prompt > 0 ? (int64_t)n_prompt : 0);
    }
    return c.ok;
}

void hn_claims_add(json_t *result, uint64_t clock0_ns, uint64_t witness0_ns)
{
    const hn_clocks now = hn_clocks_begin(); /* of one moment: who loses the processor between them tells no lie */
    json_object_set_new(result, "process_s", hn_lab_num((double)(now.from - clock0_ns) * 1e-9));
    json_object_set_new(result, "process_witness_s", hn_lab_num((double)(now.witness - witness0_ns) * 1e-9));
}
