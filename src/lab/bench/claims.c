/* What a measured process may claim. Owns the tolerances; refuses to judge answers. */
#include "lab/bench/claims.h"

#include "lab/machine/clock.h"
#include "lab/stats/stats.h"
#include "base/json_tree.h"

#include <math.h>
#include <stdarg.h>

/* Two clocks that are read one after the other differ by what lies between: nothing, or now and then a switch to
 * another process; a sample that had one is measured again. */
static const double clock_share = 0.02, clock_s = 0.0005;
/* From the start of a process to its first instruction, and from its result to its end. */
static const double around_s = 0.004;
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
    if (isfinite(claimed_ms) && isfinite(seen_ms) && claimed_ms < (1 - clock_share) * seen_ms - 1e3 * clock_s)
        wrong(c, "%s took %.3f ms by its own clock, and %.3f ms by the kernel's", what, claimed_ms, seen_ms);
}

static void agree(check *c, const char *what, double rate, double of_ms)
{
    const double rounding = 1e-3;
    if (isfinite(rate) && isfinite(of_ms) && fabs(rate / of_ms - 1) > rounding)
        wrong(c, "%s is %.5g tok/s, and by the times it reports %.5g", what, rate, of_ms);
}

static void times(check *c, json_t *r, int64_t n_prompt)
{
    json_t *gaps = json_object_get(r, "gaps_ms");
    double gap_ms = sum_of(gaps), n_gaps = (double)json_array_size(gaps),
           prefill = hn_json_number_of(r, "prefill_tok_s"), ttft = hn_json_number_of(r, "ttft_ms");
    if (n_gaps > 0) {
        agree(c, "generation", hn_json_number_of(r, "decode_tok_s"), 1e3 * n_gaps / gap_ms);
        not_faster(c, "generation", gap_ms, hn_json_number_of(r, "gen_witness_ms"));
    }
    not_faster(c, "prompt and first token", ttft, hn_json_number_of(r, "prompt_witness_ms"));
    double prefill_ms = n_prompt > 0 ? 1e3 * (double)n_prompt / prefill : NAN,
           rest = hn_json_number_of(r, "tokenize_ms");
    if (isfinite(rest)) prefill_ms += rest;
    /* choosing the first token is all that lies between */
    if (isfinite(prefill_ms) && prefill_ms > ttft * (1 + clock_share) + 1e3 * clock_s)
        wrong(c, "the prompt took %.3f ms, its first token was there after %.3f ms", prefill_ms, ttft);
    if (isfinite(hn_json_number_of(r, "prefill_witness_ms")))
        not_faster(c, "the prompt", prefill_ms, hn_json_number_of(r, "prefill_witness_ms"));
    else if (isfinite(prefill_ms) && isfinite(ttft) && prefill_ms < 0.5 * ttft - 1e3 * around_s)
        wrong(c, "the prompt took %.3f ms of the %.3f ms until the first token", prefill_ms, ttft);
}

/* ---- what the parent saw ---------------------------------------------------------------------------- */

/* Seconds that it claims to have worked. */
static double claimed_s(json_t *result)
{
    double ms = fmax(hn_json_number_of(result, "load_ms"), 0), ttft = hn_json_number_of(result, "ttft_ms");
    size_t i;
    json_t *r;
    ms += (isfinite(ttft) ? ttft : 0) + sum_of(json_object_get(result, "gaps_ms"));
    json_array_foreach(json_object_get(result, "requests"), i, r)
    {
        ttft = hn_json_number_of(r, "ttft_ms");
        ms += (isfinite(ttft) ? ttft : 0) + sum_of(json_object_get(r, "gaps_ms"));
    }
    return 1e-3 * ms;
}

static void clocks(check *c, json_t *result, const hn_seen *seen)
{
    double clock = hn_json_number_of(result, "process_s"), witness = hn_json_number_of(result, "process_witness_s");
    if (isfinite(clock) && isfinite(witness) && fabs(clock - witness) > clock_share * witness + clock_s)
        wrong(c, "its clock ran %.3f s while the kernel's ran %.3f s", clock, witness);
    not_faster(c, "loading", hn_json_number_of(result, "load_ms"), hn_json_number_of(result, "load_witness_ms"));
    if (!seen || seen->wall_s <= 0) return;
    double most = seen->wall_s * (1 + clock_share) + around_s, claimed = claimed_s(result);
    if (witness > most) wrong(c, "it ran for %.3f s, its parent saw %.3f s", witness, seen->wall_s);
    if (claimed > most) wrong(c, "it claims %.3f s of work, its parent saw it for %.3f s", claimed, seen->wall_s);
}

static void memory(check *c, json_t *result, const hn_seen *seen)
{
    double hwm = hn_json_number_of(result, "hwm_mb"), max_rss = seen ? (double)seen->max_rss / 1e6 : 0,
           slack = memory_mb + memory_cpu_mb * hn_cpu_count();
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
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

bool hn_claims_hold(json_t *result, const hn_asked *asked, const hn_seen *seen, char *why, size_t cap)
{
    check c = { .why = why, .cap = cap, .ok = true };
    size_t i;
    json_t *r;
    if (json_object_get(result, "invalid_reason") && !json_is_null(json_object_get(result, "invalid_reason")))
        return true; /* it says itself that it is worth nothing */
    json_t *requests = json_object_get(result, "requests");
    if (asked && !requests) counts(&c, result, asked);
    if (!requests) times(&c, result, asked ? asked->n_prompt : 0);
    json_array_foreach(requests, i, r)
    {
        if (json_is_string(json_object_get(r, "invalid_reason"))) continue;
        if (asked) counts(&c, r, asked);
        times(&c, r, json_integer_value(json_object_get(r, "n_prompt")));
    }
    clocks(&c, result, seen);
    memory(&c, result, seen);
    return c.ok;
}

void hn_claims_add(json_t *result, uint64_t clock0_ns, uint64_t witness0_ns)
{
    json_object_set_new(result, "process_s", hn_lab_num((double)(hn_clock_ns() - clock0_ns) * 1e-9));
    json_object_set_new(result, "process_witness_s", hn_lab_num((double)(hn_clock_witness_ns() - witness0_ns) * 1e-9));
}
