/* disp.*, mem.*: what a call of the pool costs, what a call through a table costs, and
 * memory as programs meet it: patterns of access, buffers, a mapped file against a
 * copied one. Knows the kernels' table for disp.dynamic, else base/ and the system. */
#define _GNU_SOURCE
#include "base/os.h"
#include "base/mapped.h"
#include "kernels/kernels.h"
#include "lab/inside/bench_rooms.h"
#include "lab/bench/bench.h"
#include "lab/machine/clock.h"
#include "lab/machine/roof.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- disp.call: every launch timed by itself ------------------------------------------------------- */

enum { MAX_LAUNCH = 5000, N_COUNTS = 8 };

typedef struct launch_job {
    _Atomic int64_t ran, arrived;
    int64_t n;
} launch_job;

static void launched(void *arg, int64_t chunk, int32_t thread)
{
    atomic_fetch_add_explicit(&((launch_job *)arg)->ran, 1, memory_order_relaxed);
}

/* Waits for the others: one thread cannot do it all. */
static void all_arrive(void *arg, int64_t chunk, int32_t thread)
{
    launch_job *j = arg;
    atomic_fetch_add_explicit(&j->ran, 1, memory_order_relaxed);
    atomic_fetch_add(&j->arrived, 1);
    for (int spin = 0; atomic_load(&j->arrived) < j->n; spin++)
        if (spin > 1000) sched_yield();
}

static int counts_of(const hn_bench_run *r, int32_t *out, hone_error *err)
{
    static const int32_t all[] = { 100, 1000, MAX_LAUNCH };
    int n = 0;
    const char *s = r->set.counts;
    if (!s) {
        for (; n < (r->set.quick ? 2 : 3); n++) out[n] = all[n];
        return n;
    }
    while (*s) {
        char *end;
        long v = strtol(s, &end, 10);
        if (end == s || v < 1 || v > MAX_LAUNCH || n == N_COUNTS || (*end && *end != ',')) {
            HN_FAIL(err, HONE_E_ARG, "--counts %s: expected at most %d numbers of 1 to %d, as in 100,1000",
                    HN_ESC(r->set.counts, strlen(r->set.counts)), N_COUNTS, MAX_LAUNCH);
            return -1;
        }
        out[n++] = (int32_t)v;
        s = *end ? end + 1 : end;
    }
    return n;
}

static hone_status launch(hn_bench_run *r, const hn_bench_entry *e, hn_pool *pool, double *us, int32_t count, bool meet,
                          hone_error *err)
{
    launch_job j = { .n = hn_pool_threads(pool) };
    hn_pool_fn *fn = meet ? all_arrive : launched;
    char variant[48];
    snprintf(variant, sizeof variant, "%d launches%s", count, meet ? ", all threads meet" : "");
    hn_bench_result res = { .variant = variant,
                            .samples = us,
                            .n = (size_t)count,
                            .warmups = count / 10 + 1,
                            .config = json_pack("{s:i}", "launches", (int)count) };
    uint64_t clock_ns = UINT64_MAX;
    hn_allocs allocs = { 0 };
    hn_allocs_begin();
    for (int32_t i = 0; i < res.warmups + count; i++) {
        j.arrived = 0;
        if (i == res.warmups) {
            hn_allocs_end(&allocs);
            j.ran = 0;
        }
        uint64_t t = hn_clock_ns();
        hn_pool_run(pool, fn, &j, j.n);
        uint64_t t2 = hn_clock_ns(), t3 = hn_clock_ns();
        if (i >= res.warmups) us[i - res.warmups] = (double)(t2 - t) * 1e-3;
        if (t3 - t2 < clock_ns) clock_ns = t3 - t2;
    }
    if (j.ran == j.n * count) res.verdict.state = HN_VALID;
    else
        hn_invalid(&res.verdict, "%lld pieces of work ran, %lld were handed out", (long long)j.ran,
                   (long long)(j.n * count));
    res.allocs = hn_allocs_json("call", &allocs, res.warmups, NULL);
    res.extra = json_pack("{s:I}", "clock_ns", (json_int_t)clock_ns); /* part of each sample */
    return hn_bench_add(r, e, &res, err);
}

static hone_status run_call(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    int32_t counts[N_COUNTS], n_counts = counts_of(r, counts, err);
    if (n_counts < 0) return HONE_E_ARG;
    hn_pool *pool = NULL;
    double *us = malloc(MAX_LAUNCH * sizeof *us);
    hone_status st = us ? hn_pool_new(&pool, r->set.threads, err) : HN_FAIL(err, HONE_E_NOMEM, "samples");
    for (int c = 0; st == HONE_OK && c < n_counts; c++)
        for (int meet = 0; meet < 2 && st == HONE_OK; meet++) {
            st = launch(r, e, pool, us, counts[c], meet, err);
            if (hn_bench_step(r, (c + 0.5 * (meet + 1)) / n_counts) && st == HONE_OK)
                st = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
        }
    hn_pool_free(pool);
    free(us);
    return st;
}

/* ---- disp.dynamic: through the table or directly ------------------------------------------------------ */

typedef uint64_t step_fn(uint64_t x);
static __attribute__((noinline)) uint64_t step(uint64_t x)
{
    __asm__ volatile("" : "+r"(x)); /* nobody may know what comes out */
    return x + 1;
}

typedef struct step_job {
    step_fn *volatile fn;
    bool dynamic;
    uint64_t sum;
} step_job;

static void call_steps(void *arg, int64_t calls)
{
    step_job *j = arg;
    uint64_t x = 0;
    if (j->dynamic)
        for (int64_t i = 0; i < calls; i++) x = j->fn(x);
    else
        for (int64_t i = 0; i < calls; i++) x = step(x);
    j->sum = x;
    hn_bench_sink(&j->sum);
}

static hone_status run_dynamic(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hone_status st = HONE_OK;
    for (int dynamic = 0; dynamic < 2 && st == HONE_OK; dynamic++) {
        step_job j = { .fn = step, .dynamic = dynamic };
        hn_bench_result res = { .variant = dynamic ? "through a table" : "direct", .threads = 1 };
        call_steps(&j, 1000);
        if (j.sum == 1000) res.verdict.state = HN_VALID;
        else hn_invalid(&res.verdict, "1000 calls counted to %llu", (unsigned long long)j.sum);
        st = hn_bench_loop(r, e, &res, call_steps, &j, 1e9, false, NULL, err);
    }
    return st;
}

/* ---- mem.access ------------------------------------------------------------------------------------------ */

enum { LINE = 8, MIN_BUFFER = 64 << 20, CHASE = 1 << 16, SKIP = 4097 }; /* LINE: words of 8 bytes in a cache line */

typedef enum access_kind { READ_ALL = 0, WRITE_ALL, READ_STRIDE, READ_RANDOM, CHASE_LINES, ACCESS_KINDS } access_kind;

typedef struct access_job {
    access_kind kind;
    uint64_t *x, n, lines, at, sum; /* n: words */
    uint64_t turn;
} access_job;

static uint64_t read_all(const uint64_t *x, uint64_t n)
{
    uint64_t s[8] = { 0 };
    for (uint64_t i = 0; i < n; i += 8)
        for (int l = 0; l < 8; l++) s[l] += x[i + (uint64_t)l];
    return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

static void call_access(void *arg, int64_t calls)
{
    access_job *j = arg;
    for (int64_t c = 0; c < calls; c++) {
        uint64_t s = 0;
        switch (j->kind) {
        case READ_ALL: s = read_all(j->x, j->n); break;
        case WRITE_ALL:
            memset(j->x, (int)(++j->turn & 127), j->n * sizeof *j->x);
            hn_bench_sink(j->x);
            break;
        case READ_STRIDE: /* one word of every second line */
            for (uint64_t i = 0; i < j->lines; i += 2) s += j->x[i * LINE];
            break;
        case READ_RANDOM: /* whole lines, in an order that no prefetcher knows; addresses do not wait for each other */
            for (uint64_t i = 0; i < CHASE; i++) {
                const uint64_t *l = j->x + hn_mix64(i + j->turn) % j->lines * LINE;
                s += l[0] + l[1] + l[2] + l[3] + l[4] + l[5] + l[6] + l[7];
            }
            j->turn += CHASE;
            break;
        default: /* each line says where the next one is */
            for (uint64_t i = 0; i < CHASE; i++) j->at = j->x[j->at * LINE];
            s = j->at;
        }
        j->sum = s;
        hn_bench_sink(&j->sum);
    }
}

/* One ring through all lines (Sattolo's shuffle). */
static void make_ring(access_job *j, uint64_t key)
{
    for (uint64_t i = 0; i < j->lines; i++) j->x[i * LINE] = i;
    for (uint64_t i = j->lines - 1; i > 0; i--) {
        uint64_t k = hn_rand64(key, i) % i, t = j->x[i * LINE];
        j->x[i * LINE] = j->x[k * LINE];
        j->x[k * LINE] = t;
    }
}

static void check_access(access_job *j, hn_verdict *v)
{
    uint64_t want = 0;
    call_access(j, 1);
    switch (j->kind) {
    case READ_ALL:
        for (uint64_t i = 0; i < j->n; i++) want += j->x[i];
        if (j->sum != want) hn_invalid(v, "the sum of all words is wrong");
        break;
    case READ_STRIDE:
        for (uint64_t i = j->lines; i-- > 0;) want += i % 2 ? 0 : j->x[i * LINE];
        if (j->sum != want) hn_invalid(v, "the sum of the words is wrong");
        break;
    case WRITE_ALL:
        for (uint64_t i = 0; i < j->n; i += SKIP)
            if (j->x[i] != 0x0101010101010101u * (j->turn & 127))
                hn_invalid(v, "word %llu was not written", (unsigned long long)i);
        break;
    case CHASE_LINES: { /* a ring comes back to its beginning after all lines and not before */
        uint64_t at = 0, n = 0;
        do at = j->x[at * LINE];
        while (++n < j->lines && at != 0);
        if (n != j->lines || at != 0)
            hn_invalid(v, "the ring has %llu lines, expected %llu", (unsigned long long)n,
                       (unsigned long long)j->lines);
        j->at = 0;
        break;
    }
    default:
        for (uint64_t i = 0; i < CHASE; i++)
            for (int l = 0; l < LINE; l++) want += j->x[hn_mix64(i + j->turn - CHASE) % j->lines * LINE + (uint64_t)l];
        if (j->sum != want) hn_invalid(v, "the sum of the lines is wrong");
    }
    hn_bench_proved(v);
}

static hone_status run_access(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const char *const names[ACCESS_KINDS] = { "read in order", "write in order", "read every second line",
                                                     "read lines at random", "chase lines" };
    uint64_t bytes = 4 * hn_cache_bytes();
    if (bytes < MIN_BUFFER) bytes = MIN_BUFFER;
    if (r->set.quick || bytes > hn_memory_available() / 4) bytes = MIN_BUFFER;
    access_job j = { .x = hn_pages_alloc(bytes), .n = bytes / 8, .lines = bytes / 64 };
    if (!j.x) return HN_FAIL(err, HONE_E_NOMEM, "buffer of %.0f MB", (double)bytes / 1e6);
    hone_status st = HONE_OK;
    for (int k = 0; k < ACCESS_KINDS && st == HONE_OK; k++) {
        j.kind = (access_kind)k;
        j.turn = 0;
        if (k == CHASE_LINES) make_ring(&j, r->set.seed);
        else if (k != WRITE_ALL)
            for (uint64_t i = 0; i < j.n; i++) j.x[i] = hn_mix64(i);
        double one = k == READ_RANDOM ? 64.0 * CHASE : k == READ_STRIDE ? (double)bytes / 2 : (double)bytes;
        hn_bench_result res = { .variant = names[k],
                                .unit = k == CHASE_LINES ? "ns" : "GB/s",
                                .better = k == CHASE_LINES ? -1 : 1,
                                .threads = 1,
                                .config = json_pack("{s:o}", "buffer_mb", hn_lab_num((double)bytes / 1e6)) };
        if (k == READ_ALL) { /* the roof is of reading in order */
            res.bytes = one;
            res.rotated_bytes = (double)bytes;
        }
        check_access(&j, &res.verdict);
        st = hn_bench_loop(r, e, &res, call_access, &j, k == CHASE_LINES ? 1e9 / CHASE : one * 1e-9, k != CHASE_LINES,
                           NULL, err);
        if (hn_bench_step(r, (k + 1.0) / ACCESS_KINDS) && st == HONE_OK)
            st = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
    }
    hn_pages_free(j.x, bytes);
    return st;
}

/* ---- mem.buffer --------------------------------------------------------------------------------------------- */

enum { BUFFER = 1 << 20, PAGE = 4096 };
typedef struct buffer_job {
    int kind;
    char *a, *b;
    uint8_t turn;
} buffer_job;

static void call_buffer(void *arg, int64_t calls)
{
    buffer_job *j = arg;
    for (int64_t i = 0; i < calls; i++) {
        char *p;
        switch (j->kind) {
        case 0: /* reserved and given back */
            p = hn_pages_alloc(BUFFER);
            hn_bench_sink(p);
            hn_pages_free(p, BUFFER);
            break;
        case 1: /* and each page touched between: the system zeroes it */
            p = hn_pages_alloc(BUFFER);
            for (size_t k = 0; p && k < BUFFER; k += PAGE) p[k] = 1;
            hn_bench_sink(p);
            hn_pages_free(p, BUFFER);
            break;
        case 2: memcpy(j->b, j->a, BUFFER); break;
        default: memset(j->b, j->turn, BUFFER); break;
        }
        hn_bench_sink(j->b);
    }
}

static hone_status run_buffer(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const char *const names[] = { "allocate", "allocate and touch", "copy", "zero" };
    buffer_job j = { .a = hn_pages_alloc(BUFFER), .b = hn_pages_alloc(BUFFER) };
    hone_status st = j.a && j.b ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "buffers");
    for (size_t i = 0; st == HONE_OK && i < BUFFER; i++) j.a[i] = (char)hn_mix64(i);
    for (j.kind = 0; j.kind < 4 && st == HONE_OK; j.kind++) {
        hn_bench_result res = { .variant = names[j.kind],
                                .threads = 1,
                                .config = json_pack("{s:i}", "bytes", (int)BUFFER) };
        memset(j.b, 1, BUFFER);
        call_buffer(&j, 1);
        if (j.kind == 2 && memcmp(j.a, j.b, BUFFER) != 0) hn_invalid(&res.verdict, "the copy differs");
        for (size_t i = 0; j.kind == 3 && i < BUFFER; i++)
            if (j.b[i]) hn_invalid(&res.verdict, "byte %zu is not zero", i);
        if (j.kind >= 2) hn_bench_proved(&res.verdict);
        st = hn_bench_loop(r, e, &res, call_buffer, &j, 1e6, false, NULL, err);
    }
    hn_pages_free(j.a, BUFFER);
    hn_pages_free(j.b, BUFFER);
    return st;
}

/* ---- mem.unified: the model's file, mapped or copied --------------------------------------------------------------
 */

enum { FILE_MOST = 256 << 20 };
typedef struct file_job {
    const char *path;
    int fd;
    size_t n;
    char *copy;
    bool mapped, failed;
    uint64_t sum;
} file_job;

static uint64_t sum_bytes(const char *p, size_t n)
{
    uint64_t s = 0, w;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        memcpy(&w, p + i, 8);
        s += w;
    }
    return s;
}

static void call_file(void *arg, int64_t calls)
{
    file_job *j = arg;
    for (int64_t i = 0; i < calls; i++) {
        if (j->mapped) {
            char *p = mmap(NULL, j->n, PROT_READ, MAP_PRIVATE, j->fd, 0);
            j->failed |= p == MAP_FAILED;
            if (p == MAP_FAILED) return;
            hn_mapped_add(p, j->n, j->path); /* without memory for it, only the name would be missing */
            j->sum = sum_bytes(p, j->n);
            hn_mapped_remove(p);
            munmap(p, j->n);
        } else {
            for (size_t at = 0; at < j->n;) {
                ssize_t k = pread(j->fd, j->copy + at, j->n - at, (off_t)at);
                if (k < 0 && errno == EINTR) continue;
                j->failed |= k <= 0;
                if (k <= 0) return;
                at += (size_t)k;
            }
            j->sum = sum_bytes(j->copy, j->n);
        }
        hn_bench_sink(&j->sum);
    }
}

static hone_status run_unified(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    file_job j = { .path = r->set.model, .fd = open(r->set.model, O_RDONLY | O_CLOEXEC) };
    struct stat sb;
    hone_model *m; /* for the record */
    hone_status st = hn_bench_model(r, &m, err);
    if (st == HONE_OK && (j.fd < 0 || fstat(j.fd, &sb) != 0))
        st = HN_FAIL(err, HONE_E_IO, "%s: %s", r->set.model, strerror(errno));
    if (st == HONE_OK) {
        j.n = (size_t)(sb.st_size < FILE_MOST ? sb.st_size : FILE_MOST) / 8 * 8;
        j.copy = hn_pages_alloc(j.n);
        if (!j.copy) st = HN_FAIL(err, HONE_E_NOMEM, "copy of %zu bytes", j.n);
    }
    uint64_t sums[2] = { 0, 1 };
    for (int i = 0; i < 2 && st == HONE_OK; i++) { /* also reads the file into memory */
        j.mapped = i;
        call_file(&j, 1);
        sums[i] = j.sum;
    }
    for (int mapped = 1; mapped >= 0 && st == HONE_OK; mapped--) {
        j.mapped = mapped;
        hn_bench_result res = { .variant = mapped ? "mapped" : "copied",
                                .threads = 1,
                                .config = json_pack("{s:I}", "bytes", (json_int_t)j.n) };
        if (j.failed || sums[0] != sums[1])
            hn_invalid(&res.verdict, "mapped and copied, the file has different contents, or could not be read");
        hn_bench_proved(&res.verdict);
        hn_bench_note(&res, "mapped or read again each time, from the system's memory; no device memory in this build");
        st = hn_bench_loop(r, e, &res, call_file, &j, (double)j.n * 1e-9, true, NULL, err);
    }
    hn_pages_free(j.copy, j.n);
    if (j.fd >= 0) close(j.fd);
    return st;
}

#define MACHINE(id_, what_, unit_, higher_, model_, suites_, cost_, run_)                                              \
    {                                                                                                                  \
        .id = id_, .what = what_, .unit = unit_, .method = 'K', .higher = higher_, .model = model_, .suites = suites_, \
        .cost = cost_, .run = run_                                                                                     \
    }
const hn_bench_entry hn_bench_machine[] = {
    { .id = "disp.call",
      .what = "an empty job handed to the pool, and one in which all threads meet; every launch a sample (p50, p99)",
      .unit = "us",
      .method = 'K',
      .suites = "quick full ci",
      .cost = 1,
      .uses = "counts",
      .run = run_call },
    MACHINE("disp.dynamic", "a call through a table of functions, and directly: the price of choosing at run time",
            "ns", false, false, "full", 1, run_dynamic),
    MACHINE("mem.access", "one thread, plain C: in order, strided, at random, and lines that name the next (ns a line)",
            "GB/s", true, false, "quick full", 6, run_access),
    MACHINE("mem.buffer", "1 MiB: reserved, touched, copied, zeroed", "us", false, false, "full ci", 1, run_buffer),
    MACHINE(
        "mem.unified",
        "the model's file summed where it is mapped, or copied first (up to 256 MiB); devices are not in this build",
        "GB/s", true, true, "full", 4, run_unified),
    { 0 },
};
