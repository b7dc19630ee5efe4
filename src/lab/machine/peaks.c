/* Measures the peaks of this machine: what it reads from memory, multiplies and hands
 * out to threads at most. Owns how (sizes, patterns, repetitions, placement) and what is
 * believed; refuses to know files and reports. */
#include "base/os.h"
#include "kernels/peaks.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/stats/stats.h"

#include <stdarg.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    MAX_CPUS = 1024,
    MIN_ROUNDS = 7,
    MAX_ROUNDS = 25, /* until the best has company */
    COMPANY = 3,
    TOP = 16,
    PASSES = 2, /* of everything: neighbours of a virtual machine come and go */
    READ_STREAMS_MAX = 16,
    /* no power of two, so that streams side by side do not share cache sets */
    CHUNK_BYTES = READ_STREAMS_MAX * ((256 << 10) + HN_PEAK_STEP),
    QUICK_CHUNK_BYTES = READ_STREAMS_MAX * ((16 << 10) + HN_PEAK_STEP),
    STEPS = 20000,
    QUICK_STEPS = 500, /* of one chunk of arithmetic: some 0.1 ms */
    CHUNKS_PER_THREAD = 32,
    DISPATCHES = 200,
    BATCH = 50, /* samples, and jobs in one: the clock is coarse */
    HUGE_PAGE = 2 << 20
};
static const int stream_counts[] = { 1, 2, 4, 8, 16 };
static const size_t aheads[] = { 0, 256 };

typedef struct bench {
    const hn_peaks_params *p;
    const hn_peak_loops *loops;
    hn_peaks *out;
    hn_pool *pool;
    int32_t threads;
    /* reading */
    char *map, *buf;
    size_t map_bytes, chunk_bytes;
    int64_t n_chunk;
    uint64_t expected;
    int streams;
    size_t ahead;
    _Atomic uint64_t sum;
    /* arithmetic */
    const hn_peak_op *op;
    int64_t steps;
    _Atomic int64_t wrong; /* chunks whose sum is not what the work gives */
    /* placement */
    int32_t cpu[MAX_CPUS];
    int32_t n_cpu;
    _Atomic int32_t arrived, misplaced;
    double top[HN_PEAK_DISPATCH][HN_PEAK_POINTS][TOP]; /* greatest rates of all patterns and passes, descending */
    double fastest[HN_PEAK_KINDS][HN_PEAK_POINTS];
    uint64_t done, total; /* of progress */
} bench;

static void doubt(hn_peaks *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void doubt(hn_peaks *p, const char *fmt, ...)
{
    size_t n = strlen(p->doubts);
    va_list ap;
    if (n && n + 3 < sizeof p->doubts) n += (size_t)snprintf(p->doubts + n, sizeof p->doubts - n, "; ");
    va_start(ap, fmt);
    vsnprintf(p->doubts + n, sizeof p->doubts - n, fmt, ap);
    va_end(ap);
}

static bool stopped(const bench *b) { return b->p->stop && b->p->stop(NULL); }

static void advance(bench *b)
{
    b->done++;
    if (b->p->progress) b->p->progress(b->p->progress_arg, b->done, b->total);
}

/* ---- threads, one to a CPU --------------------------------------------------------------------- */

/* Each chunk holds its thread until all have one, so that no thread takes two. */
static void settle(void *arg, int64_t chunk, int32_t thread)
{
    bench *b = arg;
    if (!hn_os_run_on(&b->cpu[chunk], 1)) atomic_fetch_add(&b->misplaced, 1);
    atomic_fetch_add(&b->arrived, 1);
    uint64_t until = hn_clock_ns() + 1000000000;
    while (atomic_load(&b->arrived) < b->threads && hn_clock_ns() < until) sched_yield();
    if (atomic_load(&b->arrived) < b->threads || hn_os_current_cpu() != b->cpu[chunk])
        atomic_fetch_add(&b->misplaced, 1);
}

static void place(bench *b)
{
    b->out->cpus[0] = 0;
    if (b->threads > b->n_cpu) return;
    atomic_store(&b->arrived, 0);
    hn_pool_run(b->pool, settle, b, b->threads);
    for (int32_t i = 0; i < b->threads; i++) {
        size_t n = strlen(b->out->cpus);
        if (n + 12 < sizeof b->out->cpus)
            snprintf(b->out->cpus + n, sizeof b->out->cpus - n, "%s%d", n ? "," : "", b->cpu[i]);
        else if (i == b->threads - 1) snprintf(b->out->cpus + n, sizeof b->out->cpus - n, ",…");
    }
}

/* ---- the clock -------------------------------------------------------------------------------------- */

static hone_status look_at_clock(bench *b, hone_error *err)
{
    int64_t n = b->p->quick ? 2000 : 20000;
    double best = 0;
    for (int r = 0; r < 5; r++) {
        uint64_t v, t = hn_clock_ns();
        if (!hn_peak_chain(&v, n)) return HONE_OK;
        double ghz = 64.0 * (double)n / (double)(hn_clock_ns() - t);
        if (v != hn_peak_chain_expect(n))
            return HN_FAIL(err, HONE_E_NUMERIC, "clock: the chain of rotations gave another number than it must");
        if (ghz > best) best = ghz;
    }
    double *c = b->out->clock_ghz;
    if (c[0] == 0 || best < c[0]) c[0] = best;
    if (best > c[1]) c[1] = best;
    return HONE_OK;
}

/* ---- one point ------------------------------------------------------------------------------------------ */

static double cpu_seconds(void)
{
    struct rusage r = { 0 };
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The greatest rate that two others come near; alone at the top it may be a slip of the clock, or a
 * moment that will not come again. rates descend; zeros are none. */
static double confirmed(const double *rates, int n)
{
    const double near = 0.97;
    while (n > 1 && rates[n - 1] <= 0) n--;
    for (int i = 0; i + COMPANY <= n; i++)
        if (rates[i + COMPANY - 1] >= near * rates[i]) return rates[i];
    return rates[n < COMPANY ? n - 1 : COMPANY - 1];
}

static hone_status check_work(const bench *b, int64_t n_chunk, hone_error *err)
{
    if (!b->op && b->sum != b->expected)
        return HN_FAIL(err, HONE_E_NUMERIC,
                       "reading with %d threads, %d streams: the sum is %016llx, expected %016llx: not all was read",
                       (int)b->threads, b->streams, (unsigned long long)b->sum, (unsigned long long)b->expected);
    if (b->wrong)
        return HN_FAIL(err, HONE_E_NUMERIC, "%s with %d threads: %lld of %lld sums are not what the products give",
                       b->op ? b->op->how : "?", (int)b->threads, (long long)b->wrong, (long long)n_chunk);
    return HONE_OK;
}

/* amount / time of one run on the pool, several times: the roof is the best of them, since
 * whatever disturbs can only slow it down; more rounds while the best stands alone.
 * rates [MAX_ROUNDS], descending; *n_rates of them. */
static hone_status rounds(bench *b, hn_peak_point *out, double *rates, int *n_rates, hn_pool_fn *fn, int64_t n_chunk,
                          double amount, hone_error *err)
{
    int least = b->p->quick ? 3 : MIN_ROUNDS, most = b->p->quick ? 3 : MAX_ROUNDS, n = 0;
    double wall = 0, cpu = cpu_seconds();
    for (int r = -1; r < most && (n < least || confirmed(rates, n) < rates[0]); r++) { /* one to warm up */
        atomic_store(&b->sum, 0);
        uint64_t t = hn_clock_ns();
        hn_pool_run(b->pool, fn, b, n_chunk);
        double ns = (double)(hn_clock_ns() - t);
        wall += ns * 1e-9;
        if (r >= 0) rates[n++] = amount / ns;
        qsort(rates, (size_t)n, sizeof *rates, descending);
        hone_status st = check_work(b, n_chunk, err);
        if (st != HONE_OK) return st;
        if (stopped(b)) return HN_FAIL(err, HONE_E_INTERRUPTED, "measuring peaks: stopped");
    }
    hn_stats s;
    hone_status st = hn_stats_of(&s, rates, (size_t)n, err);
    if (st != HONE_OK) return st;
    *out = (hn_peak_point){ .threads = b->threads,
                            .best = confirmed(rates, n),
                            .most = s.max,
                            .median = s.median,
                            .spread = (s.max - s.min) / s.median,
                            .cpu_use = wall > 0 ? (cpu_seconds() - cpu) / (wall * b->threads) : NAN };
    *n_rates = n;
    return HONE_OK;
}

/* Adds what one pattern reached to the point of this kind and number of threads: its numbers if
 * it is the fastest so far; the roof from the rates of all. */
static void keep(bench *b, hn_peak_kind k, hn_peak_point at, const double *rates, int n)
{
    int32_t i = 0;
    while (i < b->out->n[k] && b->out->at[k][i].threads != at.threads) i++;
    if (i == HN_PEAK_POINTS) return;
    hn_peak_point *p = &b->out->at[k][i];
    bool first = i == b->out->n[k];
    if (first || (k >= HN_PEAK_DISPATCH ? at.median < p->median : at.best > b->fastest[k][i])) {
        *p = at;
        b->fastest[k][i] = at.best;
    }
    if (first) b->out->n[k]++;
    if (k >= HN_PEAK_DISPATCH) return;
    double all[TOP + MAX_ROUNDS];
    memcpy(all, b->top[k][i], sizeof b->top[k][i]);
    memcpy(all + TOP, rates, (size_t)n * sizeof *rates);
    qsort(all, (size_t)(TOP + n), sizeof *all, descending);
    memcpy(b->top[k][i], all, sizeof b->top[k][i]);
    p->best = confirmed(all, TOP + n);
    p->most = all[0];
}

/* ---- reading ---------------------------------------------------------------------------------------------- */

static void read_chunk(void *arg, int64_t chunk, int32_t thread)
{
    bench *b = arg;
    const char *p = b->buf + (size_t)chunk * b->chunk_bytes;
    atomic_fetch_add(&b->sum, b->loops->read(p, b->chunk_bytes / (size_t)b->streams, b->streams, b->ahead));
}

static void fill_chunk(void *arg, int64_t chunk, int32_t thread)
{
    bench *b = arg;
    uint64_t sum = 0, n = b->chunk_bytes / 8, *p = (uint64_t *)(void *)(b->buf + (size_t)chunk * b->chunk_bytes);
    for (uint64_t i = 0; i < n; i++) sum += p[i] = hn_mix64((uint64_t)chunk * n + i);
    atomic_fetch_add(&b->sum, sum);
}

/* Share of the mapping at p that is in huge pages. */
static double huge_share(const void *p, size_t n)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[256];
    unsigned long long from, to, kib = 0;
    bool ours = false;
    double huge = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2) ours = from < (uintptr_t)p + n && to > (uintptr_t)p;
        else if (ours && sscanf(line, "AnonHugePages: %llu kB", &kib) == 1) huge += (double)kib * 1024;
    }
    if (f) fclose(f);
    return huge / (double)n < 1 ? huge / (double)n : 1;
}

/* At least 4 caches and 512 MB; but not more than half of the memory that is free. */
static hone_status make_buffer(bench *b, hone_error *err)
{
    uint64_t want = b->p->quick ? 8u << 20 : 512u << 20, room = hn_memory_available() / 2, cache = b->out->cache_bytes;
    if (!b->p->quick && 4 * cache > want) want = 4 * cache;
    if (!b->p->quick && room && want > room) {
        want = room;
        if (want < 2 * cache)
            return HN_FAIL(err, HONE_E_NOMEM,
                           "reading needs a buffer of %.0f MB, far beyond the cache of %.0f MB; %.0f MB are available",
                           4e-6 * (double)cache, 1e-6 * (double)cache, 2e-6 * (double)room);
        if (want < 4 * cache) doubt(b->out, "memory for a buffer of only %.0f MB", 1e-6 * (double)want);
    }
    b->chunk_bytes = b->p->quick ? QUICK_CHUNK_BYTES : CHUNK_BYTES;
    b->n_chunk = (int64_t)((want + b->chunk_bytes - 1) / b->chunk_bytes);
    size_t n = (size_t)b->n_chunk * b->chunk_bytes;
    b->map_bytes = n + HUGE_PAGE + 4096;
    b->map = hn_pages_alloc(b->map_bytes);
    if (!b->map) return HN_FAIL(err, HONE_E_NOMEM, "buffer of %zu bytes", b->map_bytes);
    b->buf = (char *)(((uintptr_t)b->map + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    hn_os_want_huge_pages(b->buf, n); /* the roof is what the memory gives, not what small pages leave of it */
    atomic_store(&b->sum, 0);
    hn_pool_run(b->pool, fill_chunk, b, b->n_chunk);
    b->expected = atomic_load(&b->sum);
    b->out->buffer_bytes = n;
    b->out->huge_pages = huge_share(b->buf, n);
    return HONE_OK;
}

static hone_status measure_read(bench *b, hone_error *err)
{
    double rates[MAX_ROUNDS];
    int n;
    b->op = NULL;
    for (size_t s = 0; s < sizeof stream_counts / sizeof *stream_counts; s++)
        for (size_t a = 0; a < sizeof aheads / sizeof *aheads; a++) {
            hn_peak_point at;
            b->streams = stream_counts[s];
            b->ahead = aheads[a];
            hone_status st = rounds(b, &at, rates, &n, read_chunk, b->n_chunk, (double)b->out->buffer_bytes, err);
            if (st != HONE_OK) return st;
            at.streams = b->streams;
            at.ahead = (int32_t)b->ahead;
            keep(b, HN_PEAK_READ_BW, at, rates, n);
            advance(b);
        }
    return HONE_OK;
}

/* ---- arithmetic and dispatch --------------------------------------------------------------------------------- */

static void multiply(void *arg, int64_t chunk, int32_t thread)
{
    bench *b = arg;
    if (b->op->run(b->steps) != hn_peak_expect(b->op, b->steps)) atomic_fetch_add(&b->wrong, 1);
}

static hone_status measure_op(bench *b, hn_peak_kind kind, const hn_peak_op *op, hone_error *err)
{
    advance(b);
    if (!op->how) return HONE_OK;
    hn_peak_point at;
    double rates[MAX_ROUNDS];
    int n;
    int64_t n_chunk = (int64_t)b->threads * CHUNKS_PER_THREAD;
    b->op = op;
    hone_status st = rounds(b, &at, rates, &n, multiply, n_chunk, op->ops * (double)b->steps * (double)n_chunk, err);
    if (st == HONE_OK) keep(b, kind, at, rates, n);
    return st;
}

static void nothing(void *arg, int64_t chunk, int32_t thread) {}

/* As many chunks as threads, none done before all are taken: every thread has come. */
static void meet(void *arg, int64_t chunk, int32_t thread)
{
    bench *b = arg;
    const uint64_t patience = 100000000;
    atomic_fetch_add(&b->arrived, 1);
    uint64_t until = 0;
    for (int64_t spin = 1; atomic_load(&b->arrived) < b->threads; spin++) {
        if (spin % 1024) continue;
        uint64_t now = hn_clock_ns();
        if (!until) until = now + patience;
        if (now > until) return;
        sched_yield();
    }
}

static hone_status measure_pool(bench *b, hn_peak_kind kind, hn_pool_fn *fn, hone_error *err)
{
    int n = b->p->quick ? 10 : DISPATCHES;
    double ns[DISPATCHES];
    for (int i = -n / 10; i < n; i++) {
        uint64_t t = hn_clock_ns();
        for (int k = 0; k < BATCH; k++) {
            atomic_store(&b->arrived, 0);
            hn_pool_run(b->pool, fn, b, b->threads);
        }
        if (i >= 0) ns[i] = (double)(hn_clock_ns() - t) / BATCH;
    }
    hn_stats s;
    hone_status st = hn_stats_of(&s, ns, (size_t)n, err);
    if (st != HONE_OK) return st;
    keep(b, kind,
         (hn_peak_point){ .threads = b->threads,
                          .best = s.min,
                          .most = s.max,
                          .median = s.median,
                          .spread = s.mad / s.median,
                          .cpu_use = NAN },
         NULL, 0);
    advance(b);
    return HONE_OK;
}

/* ---- all ----------------------------------------------------------------------------------------------------------
 */

static int32_t next_count(int32_t n, int32_t all) /* 1 to 8, then doubling, then all; 0: done */
{
    if (n >= all) return 0;
    int32_t k = n < 8 ? n + 1 : 2 * n;
    return k < all ? k : all;
}

/* kinds: bits, 1 << hn_peak_kind. */
static hone_status measure_with(bench *b, unsigned kinds, int32_t threads, hone_error *err)
{
    const bool read = kinds & 1u << HN_PEAK_READ_BW;
    b->threads = threads;
    hone_status st = hn_pool_new(&b->pool, threads, err);
    if (st != HONE_OK) return st;
    /* before the threads are pinned: as the engine runs */
    if (kinds & 1u << HN_PEAK_DISPATCH) st = measure_pool(b, HN_PEAK_DISPATCH, nothing, err);
    if (st == HONE_OK && kinds & 1u << HN_PEAK_BARRIER) st = measure_pool(b, HN_PEAK_BARRIER, meet, err);
    place(b);
    if (read && !b->buf && st == HONE_OK) st = make_buffer(b, err);
    if (st == HONE_OK) st = look_at_clock(b, err);
    if (st == HONE_OK && read) st = measure_read(b, err);
    if (st == HONE_OK && kinds & 1u << HN_PEAK_INT8) st = measure_op(b, HN_PEAK_INT8, &b->loops->int8, err);
    if (st == HONE_OK && kinds & 1u << HN_PEAK_F32) st = measure_op(b, HN_PEAK_F32, &b->loops->f32, err);
    if (st == HONE_OK && kinds & 1u << HN_PEAK_BF16) st = measure_op(b, HN_PEAK_BF16, &b->loops->bf16, err);
    if (st == HONE_OK) st = look_at_clock(b, err);
    hn_pool_free(b->pool);
    b->pool = NULL;
    return st;
}

static const char *const names[] = { "reading", "int8", "f32", "bf16" }; /* in doubts, by kind */

static void look_for_doubts(bench *b, hn_cpu_ticks before)
{
    hn_peaks *p = b->out;
    hn_cpu_ticks now;
    const double usual = 0.85, alone = 1.1, idle = 0.9, steal = 1, drift = 0.05;
    for (int k = 0; k < HN_PEAK_DISPATCH && !p->quick; k++)
        for (int32_t i = 0; i < p->n[k]; i++) {
            const hn_peak_point *at = &p->at[k][i];
            const char *s = at->threads == 1 ? "" : "s";
            if (at->most > alone * at->best)
                doubt(p, "%s with %d thread%s: once %.4g, then never again", names[k], at->threads, s, at->most);
            else if (at->median < usual * at->best)
                doubt(p, "%s with %d thread%s: median %.0f %% of the best", names[k], at->threads, s,
                      100 * at->median / at->best);
            else if (at->cpu_use < idle)
                doubt(p, "%s with %d thread%s: only %.0f %% of their time on a CPU", names[k], at->threads, s,
                      100 * at->cpu_use);
        }
    if (hn_cpu_ticks_read(&now) && now.total > before.total) {
        p->steal_pct = 100.0 * (double)(now.steal - before.steal) / (double)(now.total - before.total);
        if (p->steal_pct > steal) doubt(p, "the hypervisor took %.1f %% of the time", p->steal_pct);
    }
    if (p->clock_ghz[1] > (1 + drift) * p->clock_ghz[0])
        doubt(p, "clock between %.2f and %.2f GHz", p->clock_ghz[0], p->clock_ghz[1]);
    if (b->misplaced) doubt(p, "threads could not be placed on CPUs of their own");
}

static void describe(bench *b, hn_cpu_level level)
{
    hn_peaks *p = b->out;
    hn_environ e;
    hn_environ_read(&e);
    snprintf(p->hash, sizeof p->hash, "%s", e.hash);
    snprintf(p->level, sizeof p->level, "%s", hn_cpu_level_name(level));
    snprintf(p->cpu_model, sizeof p->cpu_model, "%s", e.cpu_model[0] ? e.cpu_model : e.machine);
    snprintf(p->kernel, sizeof p->kernel, "%s", e.kernel);
    hn_utc_now(p->ts, sizeof p->ts);
    p->cores = e.cores;
    p->load = e.load[0];
    p->cache_bytes = hn_cache_bytes();
    p->bound = b->loops->bound;
    p->quick = b->p->quick;
    const char *const how[HN_PEAK_KINDS] = {
        b->loops->read_how, b->loops->int8.how, b->loops->f32.how,
        b->loops->bf16.how, "an empty job",     "a job in which all threads meet"
    };
    for (int k = 0; k < HN_PEAK_KINDS; k++) snprintf(p->how[k], sizeof p->how[k], "%s", how[k] ? how[k] : "");
}

hone_status hn_peaks_measure(hn_peaks *out, const hn_peaks_params *params, hone_error *err)
{
    *out = (hn_peaks){ 0 };
    hn_cpu_level level;
    hone_status st = hn_cpu_choose(&level, params->cpu, err);
    if (st != HONE_OK) return st;
    bench b = {
        .p = params, .loops = hn_peak_loops_get(level), .out = out, .steps = params->quick ? QUICK_STEPS : STEPS
    };
    describe(&b, level);
    int32_t all = params->n_threads > 0 ? params->n_threads : out->cores;
    b.n_cpu = hn_os_cpus(b.cpu, MAX_CPUS);
    int passes = params->quick ? 1 : PASSES;
    for (int32_t n = 1; n; n = next_count(n, all)) b.total += (uint64_t)passes * (5 + 10);
    hn_cpu_ticks before;
    hn_cpu_ticks_read(&before);
    for (int pass = 0; pass < passes; pass++)
        for (int32_t n = 1; n && st == HONE_OK; n = next_count(n, all)) {
            st = measure_with(&b, (1u << HN_PEAK_KINDS) - 1, n, err);
            if (b.n_cpu > 0) hn_os_run_on(b.cpu, b.n_cpu);
        }
    hn_pages_free(b.map, b.map_bytes);
    if (st != HONE_OK) return st;
    look_for_doubts(&b, before);
    return hn_peaks_check(out, err);
}

/* ---- a second look ------------------------------------------------------------------------------------------ */

/* The point that is the roof at so many threads, as hn_peaks_at finds it. */
static hn_peak_point *point_at(hn_peaks *p, int k, int32_t threads)
{
    int32_t i = 0;
    while (i + 1 < p->n[k] && p->at[k][i].threads < threads) i++;
    return p->n[k] ? &p->at[k][i] : NULL;
}

static bool raise(hn_peaks *p, int k, int32_t threads, const hn_peak_point *now)
{
    hn_peak_point *was = point_at(p, k, threads);
    if (!was || !(now->most > was->most)) return false;
    doubt(p, "%s with %d thread%s: %.4g, and %.4g when a result was beyond it", names[k], (int)threads,
          threads == 1 ? "" : "s", was->best, now->best);
    was->most = now->most;
    was->best = fmax(was->best, now->best);
    was->median = fmax(was->median, now->median);
    return true;
}

bool hn_peaks_again(hn_peaks *p, unsigned kinds, int32_t threads, bool (*stop)(void *))
{
    const hn_peaks_params params = { .n_threads = threads, .cpu = p->level, .quick = p->quick, .stop = stop };
    const int32_t counts[] = { 1, threads };
    hn_peaks now = { .cache_bytes = p->cache_bytes, .cores = p->cores }, raised = *p;
    hn_cpu_level level;
    hone_error err;
    bool any = false;
    if (threads < 1 || hn_cpu_choose(&level, p->level, &err) != HONE_OK) return false;
    bench *b = calloc(1, sizeof *b);
    if (!b) return false;
    *b = (bench){
        .p = &params, .loops = hn_peak_loops_get(level), .out = &now, .steps = p->quick ? QUICK_STEPS : STEPS
    };
    b->n_cpu = hn_os_cpus(b->cpu, MAX_CPUS);
    hone_status st = HONE_OK;
    for (int i = threads == 1; i < 2 && st == HONE_OK; i++) {
        st = measure_with(b, kinds, counts[i], &err);
        if (b->n_cpu > 0) hn_os_run_on(b->cpu, b->n_cpu);
    }
    hn_pages_free(b->map, b->map_bytes);
    free(b);
    for (int k = 0; k < HN_PEAK_DISPATCH && st == HONE_OK; k++)
        for (int32_t i = 0; i < now.n[k]; i++) any = raise(&raised, k, now.at[k][i].threads, &now.at[k][i]) || any;
    if (!(raised.clock_ghz[0] > 0)) raised.clock_ghz[0] = now.clock_ghz[0];
    raised.clock_ghz[1] = fmax(raised.clock_ghz[1], now.clock_ghz[1]);
    if (!any || hn_peaks_check(&raised, &err) != HONE_OK) return false;
    *p = raised;
    return true;
}
