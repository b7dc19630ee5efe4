/* Thread pool. Owns the workers and the hand-out of chunks; refuses to know the work.
 *
 * A job is published in one 64-bit word {generation, next chunk}; taking a chunk is
 * a compare-and-swap on it, so a worker that wakes late can never take a chunk of
 * another job. The caller works too and waits only for chunks that were taken: a
 * worker that the system does not schedule delays nobody. Spinning is bounded, and
 * off when there are more threads than cores, since then a spinner burns the core
 * of the one it waits for.
 *
 * Workers keep off the caller's CPU. A system that puts the thread that it wakes on the CPU of the one that woke it,
 * though another is idle, has both take turns there until it notices, some milliseconds later. Linux does so in virtual
 * machines, where an idle CPU looks as if the host had taken it away: short prompts took 1.6 times as long. A worker
 * goes by itself, before it looks for work; a caller that has moved sends a few of those that sleep away first. */
#include "base/floats.h"
#include "base/os.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { SPIN_NS = 30000, MOVED = 8 /* workers at most whom the caller sends to other CPUs: 7 us each */ };
#define NO_CHUNK UINT32_MAX

struct hn_pool {
    _Alignas(64) _Atomic uint64_t word; /* generation << 32 | next chunk */
    _Atomic int32_t caller_cpu;         /* of the newest job; -1: unknown */
    _Alignas(64) _Atomic uint32_t done; /* chunks finished of this job; futex of the caller */
    _Atomic uint32_t caller_sleeps;
    _Alignas(64) _Atomic uint32_t epoch; /* futex of the workers that may work */
    _Atomic uint32_t sleepers;           /* of those */
    _Atomic bool quit;
    /* the job; written only while word holds NO_CHUNK */
    _Atomic(hn_pool_fn *) fn;
    _Atomic(void *) arg;
    _Atomic uint32_t n_chunk;
    _Atomic int32_t n_active; /* threads that may take chunks */
    _Atomic uint32_t recall;  /* futex of the others: changes when more may */
    int32_t n_threads;
    int64_t spin_ns;
    struct worker {
        pthread_t id;
        hn_pool *pool;
        int32_t index;
        bool started;
        hn_os_thread thread;
        _Atomic int32_t off;     /* the CPU that it was told last to keep off */
        _Atomic bool asleep;     /* or about to be */
        _Atomic bool moving;     /* whose `thread` is in somebody's hands */
    } * workers;                 /* [n_threads - 1] */
    _Alignas(64) int64_t handed; /* chunks of all jobs so far; the caller's alone, nobody waits for this line */
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes and runs one chunk of the current job; false if there is none. */
static bool run_one(hn_pool *p, int32_t thread)
{
    uint64_t w = atomic_load_explicit(&p->word, memory_order_acquire);
    for (;;) {
        uint32_t chunk = (uint32_t)w;
        if (chunk == NO_CHUNK) return false;
        if (thread >= atomic_load_explicit(&p->n_active, memory_order_relaxed)) return false;
        uint32_t total = atomic_load_explicit(&p->n_chunk, memory_order_relaxed);
        hn_pool_fn *fn = atomic_load_explicit(&p->fn, memory_order_relaxed);
        void *arg = atomic_load_explicit(&p->arg, memory_order_relaxed);
        if (chunk >= total) return false;
        /* success: the job cannot end before this chunk does, so fn and arg are its own */
        if (!atomic_compare_exchange_weak_explicit(&p->word, &w, w + 1, memory_order_acq_rel, memory_order_acquire))
            continue;
        fn(arg, chunk, thread);
        if (atomic_fetch_add(&p->done, 1) + 1 == total && atomic_load(&p->caller_sleeps)) hn_os_wake(&p->done, 1);
        return true;
    }
}

static bool has_work(hn_pool *p, int32_t thread)
{
    uint64_t w = atomic_load(&p->word);
    return thread < atomic_load(&p->n_active) && (uint32_t)w != NO_CHUNK && (uint32_t)w < atomic_load(&p->n_chunk);
}

/* By the worker itself, or by the caller before it wakes it. Who comes while the other is at it goes away: that one
 * looks again. */
static void keep_off(hn_pool *p, struct worker *w)
{
    int32_t cpu;
    while ((cpu = atomic_load(&p->caller_cpu)) != atomic_load_explicit(&w->off, memory_order_relaxed)) {
        if (atomic_exchange(&w->moving, true)) return;
        hn_os_keep_off(&w->thread, cpu);
        atomic_store_explicit(&w->off, cpu, memory_order_relaxed);
        atomic_store(&w->moving, false);
    }
}

/* Those of some workers that sleep, but a few at most. */
static void send_sleepers(hn_pool *p, int32_t from, int32_t to)
{
    if (!p->spin_ns) return;
    for (int32_t i = from, n = 0; i < to && n < MOVED; i++)
        if (atomic_load_explicit(&p->workers[i].asleep, memory_order_relaxed)) {
            keep_off(p, &p->workers[i]);
            n++;
        }
}

/* Where a thread that may not work waits: jobs of the others neither wake it nor let it spin. */
static void park(hn_pool *p, int32_t thread)
{
    uint32_t recall = atomic_load(&p->recall);
    atomic_store_explicit(&p->workers[thread - 1].asleep, true, memory_order_relaxed);
    if (thread >= atomic_load(&p->n_active) && !atomic_load(&p->quit)) hn_os_wait(&p->recall, recall);
    atomic_store_explicit(&p->workers[thread - 1].asleep, false, memory_order_relaxed);
}

static void *worker_main(void *arg)
{
    struct worker *me = arg;
    hn_pool *p = me->pool;
    hn_floats_begin(); /* not as who made the pool has it */
    hn_os_thread_begin(&me->thread);
    atomic_store(&me->moving, !p->spin_ns); /* more threads than CPUs stay where the system has them */
    while (!atomic_load(&p->quit)) {
        if (p->spin_ns) keep_off(p, me);
        if (me->index >= atomic_load(&p->n_active)) {
            park(p, me->index);
            continue;
        }
        if (run_one(p, me->index)) continue;
        int64_t until = p->spin_ns ? now_ns() + p->spin_ns : 0;
        bool work = false;
        while (until && !(work = has_work(p, me->index)) && now_ns() < until)
            for (int i = 0; i < 16; i++) cpu_relax();
        if (work) continue;
        uint32_t epoch = atomic_load(&p->epoch);
        atomic_store_explicit(&me->asleep, true, memory_order_relaxed);
        atomic_fetch_add(&p->sleepers, 1);
        /* who may no longer work does not wait here: it would be woken in place of one who may */
        if (!has_work(p, me->index) && me->index < atomic_load(&p->n_active) && !atomic_load(&p->quit))
            hn_os_wait(&p->epoch, epoch);
        atomic_fetch_sub(&p->sleepers, 1);
        atomic_store_explicit(&me->asleep, false, memory_order_relaxed);
    }
    return NULL;
}

static void wake_all(_Atomic uint32_t *futex)
{
    atomic_fetch_add(futex, 1);
    hn_os_wake(futex, HN_MOST_THREADS);
}

hone_status hn_pool_new(hn_pool **out, int32_t n_threads, hone_error *err)
{
    *out = NULL;
    if (n_threads < 1 || n_threads > HN_MOST_THREADS)
        return HN_FAIL(err, HONE_E_ARG, "threads: %d, expected 1 to %d", n_threads, HN_MOST_THREADS);
    hn_pool *p = aligned_alloc(64, sizeof *p);
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "thread pool");
    memset(p, 0, sizeof *p);
    atomic_init(&p->word, NO_CHUNK);
    p->n_threads = n_threads;
    atomic_init(&p->n_active, n_threads);
    atomic_init(&p->caller_cpu, hn_os_current_cpu());
    p->spin_ns = n_threads <= hn_cpu_count() ? SPIN_NS : 0;
    p->workers = calloc((size_t)n_threads, sizeof *p->workers);
    if (!p->workers) {
        free(p);
        return HN_FAIL(err, HONE_E_NOMEM, "thread pool");
    }
    /* signals belong to the program's own threads, but for a worker's own faults: blocked, they would kill unheard */
    static const int own[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGTRAP };
    sigset_t others, old;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&others, own[i]);
    pthread_sigmask(SIG_SETMASK, &others, &old);
    int rc = 0;
    for (int32_t i = 0; i < n_threads - 1 && rc == 0; i++) {
        struct worker *w = &p->workers[i];
        w->pool = p;
        w->index = i + 1;
        hn_os_thread_new(&w->thread); /* here: a worker may first run in the middle of what is measured */
        atomic_init(&w->off, -1);
        atomic_init(&w->asleep, false);
        atomic_init(&w->moving, true); /* until it runs */
        rc = pthread_create(&w->id, NULL, worker_main, w);
        w->started = rc == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        hn_pool_free(p);
        return HN_FAIL(err, HONE_E_NOMEM, "thread pool: cannot start %d threads: %s", n_threads, strerror(rc));
    }
    *out = p;
    return HONE_OK;
}

void hn_pool_free(hn_pool *p)
{
    if (!p) return;
    atomic_store(&p->quit, true);
    wake_all(&p->epoch);
    wake_all(&p->recall);
    for (int32_t i = 0; i < p->n_threads - 1; i++) {
        if (p->workers[i].started) pthread_join(p->workers[i].id, NULL);
        hn_os_thread_end(&p->workers[i].thread);
    }
    free(p->workers);
    free(p);
}

int32_t hn_pool_threads(const hn_pool *p) { return p->n_threads; }

void hn_pool_stacks(const hn_pool *p, hn_block_fn *fn, void *arg)
{
    void *lo;
    size_t n;
    for (int32_t i = 0; i < p->n_threads - 1; i++)
        if (p->workers[i].started && hn_os_stack(&p->workers[i].id, &lo, &n)) fn(arg, lo, n);
}

/* Those that may no longer work leave the futex of those that may, and the other way round. */
void hn_pool_limit(hn_pool *p, int32_t n)
{
    int32_t before = hn_pool_active(p);
    n = n < 1 ? 1 : n > p->n_threads ? p->n_threads : n;
    if (n == before) return;
    if (n > before) send_sleepers(p, before - 1, n - 1);
    atomic_store(&p->n_active, n);
    wake_all(n > before ? &p->recall : &p->epoch);
}
int32_t hn_pool_active(const hn_pool *p) { return atomic_load_explicit(&p->n_active, memory_order_relaxed); }
int64_t hn_pool_handed(const hn_pool *p) { return p->handed; }

void hn_pool_run(hn_pool *p, hn_pool_fn *fn, void *arg, int64_t n_chunk)
{
    if (n_chunk <= 0) return;
    p->handed += n_chunk;
    if (n_chunk == 1 || hn_pool_active(p) == 1) {
        for (int64_t c = 0; c < n_chunk; c++) fn(arg, c, 0);
        return;
    }
    const int32_t cpu = hn_os_current_cpu();
    if (cpu != atomic_load_explicit(&p->caller_cpu, memory_order_relaxed)) {
        atomic_store(&p->caller_cpu, cpu);
        if (atomic_load(&p->sleepers) > 0) send_sleepers(p, 0, hn_pool_active(p) - 1);
    }
    uint64_t gen = atomic_load_explicit(&p->word, memory_order_relaxed) >> 32;
    atomic_store(&p->fn, fn);
    atomic_store(&p->arg, arg);
    atomic_store(&p->n_chunk, (uint32_t)n_chunk);
    atomic_store(&p->done, 0);
    atomic_store(&p->word, (gen + 1) << 32);
    if (atomic_load(&p->sleepers) > 0) {
        atomic_fetch_add(&p->epoch, 1);
        hn_os_wake(&p->epoch, n_chunk < HN_MOST_THREADS ? (int)(n_chunk - 1) : HN_MOST_THREADS);
    }
    while (run_one(p, 0)) {}
    int64_t until = 0;
    uint32_t d;
    while ((d = atomic_load(&p->done)) != (uint32_t)n_chunk) {
        int64_t t = p->spin_ns ? now_ns() : 1;
        if (!until) until = t + p->spin_ns;
        if (t < until) {
            for (int i = 0; i < 16; i++) cpu_relax();
            continue;
        }
        atomic_store(&p->caller_sleeps, 1);
        d = atomic_load(&p->done);
        if (d != (uint32_t)n_chunk) hn_os_wait(&p->done, d);
        atomic_store(&p->caller_sleeps, 0);
    }
    atomic_store(&p->word, (gen + 1) << 32 | NO_CHUNK);
}
