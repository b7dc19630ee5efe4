/* Counters and histograms of tally.h: relaxed atomics, read as they are. */
#include "serve/tally.h"

#include <math.h>
#include <stdlib.h>

typedef struct histogram {
    _Atomic uint64_t bucket[HN_TALLY_BUCKETS + 1]; /* not cumulated; the last: beyond all limits */
    _Atomic uint64_t sum_us;
} histogram;

typedef struct route_count {
    _Atomic(const char *) route; /* of the program's constants */
    _Atomic int code;
    _Atomic uint64_t n;
} route_count;

struct hn_tally {
    _Atomic uint64_t count[HN_TALLY_COUNTS];
    histogram time[HN_TALLY_TIMES];
    route_count answer[HN_TALLY_ROUTES * HN_TALLY_CODES];
};

/* Upper limits in seconds: of the request's parts; of the time between two tokens. */
static const double long_limits[HN_TALLY_BUCKETS] = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                      2.5,   5,    10,    25,   50,  100,  250, 600 };
static const double short_limits[HN_TALLY_BUCKETS] = { 0.001, 0.002, 0.004, 0.008, 0.012, 0.016, 0.024, 0.032,
                                                       0.048, 0.064, 0.1,   0.15,  0.25,  0.5,   1,     5 };

static const double *limits_of(hn_tally_time what) { return what == HN_TIME_BETWEEN ? short_limits : long_limits; }

hn_tally *hn_tally_new(void) { return calloc(1, sizeof(hn_tally)); }
void hn_tally_free(hn_tally *t) { free(t); }

void hn_tally_add(hn_tally *t, hn_tally_count what, uint64_t n)
{
    atomic_fetch_add_explicit(&t->count[what], n, memory_order_relaxed);
}

uint64_t hn_tally_total(const hn_tally *t, hn_tally_count what)
{
    return atomic_load_explicit(&t->count[what], memory_order_relaxed);
}

void hn_tally_take(hn_tally *t, hn_tally_time what, double seconds)
{
    const double *limit = limits_of(what);
    int i = 0;
    if (!(seconds >= 0)) return;
    while (i < HN_TALLY_BUCKETS && seconds > limit[i]) i++;
    atomic_fetch_add_explicit(&t->time[what].bucket[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->time[what].sum_us, (uint64_t)(seconds * 1e6), memory_order_relaxed);
}

double hn_tally_mean(const hn_tally *t, hn_tally_time what)
{
    uint64_t n = 0;
    for (int i = 0; i <= HN_TALLY_BUCKETS; i++)
        n += atomic_load_explicit(&t->time[what].bucket[i], memory_order_relaxed);
    return n ? (double)atomic_load_explicit(&t->time[what].sum_us, memory_order_relaxed) * 1e-6 / (double)n : 0;
}

/* Called by the event thread alone; readers see a route before its first count. */
void hn_tally_answer(hn_tally *t, const char *route, int status)
{
    for (int i = 0; i < HN_TALLY_ROUTES * HN_TALLY_CODES; i++) {
        route_count *c = &t->answer[i];
        const char *there = atomic_load(&c->route);
        if (!there) {
            atomic_store(&c->code, status);
            atomic_store(&c->route, route);
        } else if (strcmp(there, route) != 0 || atomic_load(&c->code) != status) {
            continue;
        }
        atomic_fetch_add_explicit(&c->n, 1, memory_order_relaxed);
        return;
    }
}

static void head(hn_bytes *o, const char *name, const char *type, const char *help)
{
    hn_bytes_printf(o, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(hn_bytes *o, const char *name, const char *type, const char *help, double v)
{
    head(o, name, type, help);
    hn_bytes_printf(o, "%s %.17g\n", name, v);
}

static void write_times(const hn_tally *t, hn_tally_time what, const char *name, const char *help, hn_bytes *o)
{
    const double *limit = limits_of(what);
    uint64_t n = 0;
    head(o, name, "histogram", help);
    for (int i = 0; i <= HN_TALLY_BUCKETS; i++) {
        n += atomic_load_explicit(&t->time[what].bucket[i], memory_order_relaxed);
        if (i < HN_TALLY_BUCKETS)
            hn_bytes_printf(o, "%s_bucket{le=\"%g\"} %llu\n", name, limit[i], (unsigned long long)n);
        else hn_bytes_printf(o, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)n);
    }
    hn_bytes_printf(o, "%s_sum %.6f\n%s_count %llu\n", name,
                    (double)atomic_load_explicit(&t->time[what].sum_us, memory_order_relaxed) * 1e-6, name,
                    (unsigned long long)n);
}

/* A label's value: backslash, quote and line break are escaped. */
static void label(hn_bytes *o, const char *s)
{
    for (; *s; s++) {
        if (*s == '\\' || *s == '"') hn_bytes_add(o, "\\", 1);
        if (*s == '\n') hn_bytes_add(o, "\\n", 2);
        else hn_bytes_add(o, s, 1);
    }
}

static const struct {
    hn_tally_count what;
    const char *name, *help;
} counters[] = {
    { HN_COUNT_CANCELLED, "hone_cancelled_total", "Requests whose client went away." },
    { HN_COUNT_PROMPT, "hone_prompt_tokens_total", "Tokens of prompts, those that were there included." },
    { HN_COUNT_CACHED, "hone_cached_prompt_tokens_total", "Tokens of prompts that were not computed again." },
    { HN_COUNT_GENERATED, "hone_generated_tokens_total", "Tokens that were picked." },
};

static const struct {
    hn_tally_time what;
    const char *name, *vllm, *help;
} times[] = {
    { HN_TIME_QUEUE, "hone_queue_seconds", NULL, "From a request's arrival to its first step." },
    { HN_TIME_FIRST, "hone_time_to_first_token_seconds", "vllm:time_to_first_token_seconds",
      "From a request's arrival to its first token." },
    { HN_TIME_BETWEEN, "hone_inter_token_seconds", NULL, "Between two tokens of an answer." },
    { HN_TIME_REQUEST, "hone_request_seconds", NULL, "From a request's arrival to its end, whatever was asked." },
    { HN_TIME_ANSWER, "hone_answer_seconds", NULL, "From a prompt's first step to the end of its answers." },
};

/* What endpoint pickers read under vLLM's names. */
static void write_compat(const hn_tally *t, const hn_tally_now *now, hn_bytes *o)
{
    one(o, "vllm:num_requests_waiting", "gauge", "Requests that wait.", (double)now->waiting);
    one(o, "vllm:num_requests_running", "gauge", "Requests that run.", (double)now->running);
    one(o, "vllm:kv_cache_usage_perc", "gauge", "Share of the cache in use, 0 to 1.",
        now->kv_total ? (double)now->kv_used / (double)now->kv_total : 0);
    head(o, "vllm:cache_config_info", "gauge", "Positions of a page, and how many pages.");
    hn_bytes_printf(o, "vllm:cache_config_info{block_size=\"%llu\",num_gpu_blocks=\"%llu\"} 1\n",
                    (unsigned long long)now->page_tokens, (unsigned long long)now->pages_total);
    one(o, "vllm:prompt_tokens_total", "counter", "Tokens of prompts.", (double)hn_tally_total(t, HN_COUNT_PROMPT));
    one(o, "vllm:generation_tokens_total", "counter", "Tokens that were picked.",
        (double)hn_tally_total(t, HN_COUNT_GENERATED));
}

static double seconds_of(const hn_tally *t, hn_tally_time what)
{
    return (double)atomic_load_explicit(&t->time[what].sum_us, memory_order_relaxed) * 1e-6;
}

/* What boards for llama-server show. Times are of each request, also where many run at once; rates since the start. */
static void write_llama(const hn_tally *t, const hn_tally_now *now, hn_bytes *o)
{
    double cached = (double)hn_tally_total(t, HN_COUNT_CACHED),
           prompt = (double)hn_tally_total(t, HN_COUNT_PROMPT) - cached,
           reading = seconds_of(t, HN_TIME_FIRST) - seconds_of(t, HN_TIME_QUEUE),
           mean = hn_tally_mean(t, HN_TIME_BETWEEN);
    if (!(reading > 0)) reading = 0;
    one(o, "llamacpp:prompt_tokens_total", "counter", "Tokens of prompts that were computed.", prompt > 0 ? prompt : 0);
    one(o, "llamacpp:prompt_tokens_cached_total", "counter", "Tokens of prompts that were not.", cached);
    one(o, "llamacpp:prompt_seconds_total", "counter", "From first steps to first tokens.", reading);
    one(o, "llamacpp:tokens_predicted_total", "counter", "Tokens that were picked.",
        (double)hn_tally_total(t, HN_COUNT_GENERATED));
    one(o, "llamacpp:tokens_predicted_seconds_total", "counter", "Between tokens.", seconds_of(t, HN_TIME_BETWEEN));
    one(o, "llamacpp:prompt_tokens_seconds", "gauge", "Tokens of prompts a second.",
        reading > 0 && prompt > 0 ? prompt / reading : 0);
    one(o, "llamacpp:predicted_tokens_seconds", "gauge", "Tokens of one answer a second.", mean > 0 ? 1 / mean : 0);
    one(o, "llamacpp:requests_processing", "gauge", "Requests that run.", (double)now->running);
    one(o, "llamacpp:requests_deferred", "gauge", "Requests that wait.", (double)now->waiting);
}

void hn_tally_write(const hn_tally *t, const hn_tally_now *now, hn_tally_names compat, hn_bytes *o)
{
    head(o, "hone_requests_total", "counter", "Answers sent, by route and status.");
    for (int i = 0; i < HN_TALLY_ROUTES * HN_TALLY_CODES; i++) {
        const char *route = atomic_load(&t->answer[i].route);
        if (!route) break;
        hn_bytes_text(o, "hone_requests_total{route=\"");
        label(o, route);
        hn_bytes_printf(o, "\",code=\"%d\"} %llu\n", atomic_load(&t->answer[i].code),
                        (unsigned long long)atomic_load_explicit(&t->answer[i].n, memory_order_relaxed));
    }

    head(o, "hone_rejected_total", "counter", "Requests that were not begun, by reason.");
    hn_bytes_printf(o,
                    "hone_rejected_total{reason=\"queue_full\"} %llu\nhone_rejected_total{reason=\"draining\"} %llu\n",
                    (unsigned long long)hn_tally_total(t, HN_COUNT_REJECTED_QUEUE),
                    (unsigned long long)hn_tally_total(t, HN_COUNT_REJECTED_DRAIN));
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        one(o, counters[i].name, "counter", counters[i].help, (double)hn_tally_total(t, counters[i].what));
    one(o, "hone_preempted_total", "counter", "Requests that gave up their memory, and were computed again.",
        (double)now->preempted);

    one(o, "hone_requests_running", "gauge", "Requests that run.", (double)now->running);
    one(o, "hone_requests_waiting", "gauge", "Requests that wait.", (double)now->waiting);
    one(o, "hone_kv_bytes", "gauge", "Bytes of the cache in use.", (double)now->kv_used);
    one(o, "hone_kv_bytes_total", "gauge", "Bytes that the cache may come to hold.", (double)now->kv_total);
    one(o, "hone_kv_pages", "gauge", "Pages of the cache in use.", (double)now->pages);
    one(o, "hone_kv_pages_total", "gauge", "Pages that the cache may come to hold.", (double)now->pages_total);
    one(o, "hone_kv_usage_ratio", "gauge", "Share of the cache in use, 0 to 1.",
        now->kv_total ? (double)now->kv_used / (double)now->kv_total : 0);
    one(o, "hone_kv_page_tokens", "gauge", "Positions of a page of the cache.", (double)now->page_tokens);
    if (!isnan(now->roof_ratio))
        one(o, "hone_decode_roof_ratio", "gauge", "Rate of the last steps beside what memory allows.", now->roof_ratio);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        write_times(t, times[i].what, times[i].name, times[i].help, o);
        if (compat == HN_NAMES_VLLM && times[i].vllm) write_times(t, times[i].what, times[i].vllm, times[i].help, o);
    }

    head(o, "hone_build_info", "gauge", "What runs here.");
    hn_bytes_printf(o, "hone_build_info{version=\"%s\",cpu=\"", hone_version());
    label(o, now->cpu);
    hn_bytes_text(o, "\",model=\"");
    label(o, now->model);
    hn_bytes_text(o, "\"} 1\n");
    if (compat == HN_NAMES_VLLM) write_compat(t, now, o);
    if (compat == HN_NAMES_LLAMA) write_llama(t, now, o);
}
