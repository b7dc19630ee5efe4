/* The thread pool's promise: every chunk exactly once, all done on return, whatever
 * the number of threads, chunks and cores. Results are written without atomics, so
 * that ThreadSanitizer sees a missing ordering. */
#include "base/base.h"
#include "base/lines.h"
#include "base/os.h"

#include <dirent.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

typedef struct job {
    int32_t n_threads;
    int64_t n_chunk;
    uint8_t *seen;    /* [n_chunk] */
    uint64_t *result; /* [n_chunk] */
    uint64_t key;
    _Atomic int wrong; /* thread or chunk out of range */
} job;

static void work(void *arg, int64_t chunk, int32_t thread)
{
    job *j = arg;
    if (chunk < 0 || chunk >= j->n_chunk || thread < 0 || thread >= j->n_threads) {
        atomic_fetch_add(&j->wrong, 1);
        return;
    }
    j->seen[chunk]++;
    j->result[chunk] = hn_rand64(j->key, (uint64_t)chunk);
}

static void run_and_check(hn_pool *p, int64_t n_chunk, uint64_t key)
{
    /* on this stack frame: a late worker that still held the job would write here */
    uint8_t seen[257] = { 0 };
    uint64_t result[257] = { 0 };
    job j = { .n_threads = hn_pool_active(p), .n_chunk = n_chunk, .seen = seen, .result = result, .key = key };
    assert_in_range(n_chunk, 0, 256);
    hn_pool_run(p, work, &j, n_chunk);
    assert_int_equal(atomic_load(&j.wrong), 0);
    for (int64_t c = 0; c < n_chunk; c++) {
        assert_int_equal(seen[c], 1);
        assert_true(result[c] == hn_rand64(key, (uint64_t)c));
    }
    assert_int_equal(seen[n_chunk], 0);
}

static void every_chunk_once(void **state)
{
    const int32_t threads[] = { 1, 2, 3, 8, 33 };
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        hn_pool *p;
        assert_int_equal(hn_pool_new(&p, threads[i], NULL), HONE_OK);
        assert_int_equal(hn_pool_threads(p), threads[i]);
        for (int64_t n = 0; n <= 256; n += n < 20 ? 1 : 59) run_and_check(p, n, (uint64_t)n + 1);
        hn_pool_free(p);
    }
}

/* Fewer threads may work for a while, and all of them again; sleepers too. */
static void limited(void **state)
{
    hn_pool *p;
    assert_int_equal(hn_pool_new(&p, 5, NULL), HONE_OK);
    for (uint64_t k = 0; k < 2000; k++) {
        int32_t n = (int32_t)(hn_rand64(10, k) % 7); /* 0 and 6 are clamped */
        hn_pool_limit(p, n);
        assert_int_equal(hn_pool_active(p), n < 1 ? 1 : n > 5 ? 5 : n);
        if (k % 100 == 0) usleep(500);
        run_and_check(p, (int64_t)(hn_rand64(11, k) % 40), k);
    }
    hn_pool_free(p);
}

/* Jobs in quick succession: a worker that wakes late must not take a chunk of a later job for an earlier one. */
static void many_small_jobs(void **state)
{
    const int32_t threads[] = { 2, 4, 16 };
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        hn_pool *p;
        assert_int_equal(hn_pool_new(&p, threads[i], NULL), HONE_OK);
        for (uint64_t k = 0; k < 3000; k++) run_and_check(p, (int64_t)(hn_rand64(9, k) % 7), k);
        hn_pool_free(p);
    }
}

/* Pauses longer than the spin: workers sleep and must be woken. */
static void sleepers_wake(void **state)
{
    hn_pool *p;
    assert_int_equal(hn_pool_new(&p, 4, NULL), HONE_OK);
    for (uint64_t k = 0; k < 60; k++) {
        usleep(k % 3 * 400);
        run_and_check(p, 16, k);
    }
    hn_pool_free(p);
}

static void slow_first_chunk(void *arg, int64_t chunk, int32_t thread)
{
    if (chunk == 0) usleep(20000);
    work(arg, chunk, thread);
}

/* One chunk that takes long: the caller sleeps and is woken by the last worker. */
static void caller_waits_for_the_last(void **state)
{
    hn_pool *p;
    assert_int_equal(hn_pool_new(&p, 3, NULL), HONE_OK);
    for (uint64_t k = 0; k < 5; k++) {
        uint8_t seen[8] = { 0 };
        uint64_t result[8] = { 0 };
        job j = { .n_threads = 3, .n_chunk = 8, .seen = seen, .result = result, .key = k };
        hn_pool_run(p, slow_first_chunk, &j, 8);
        for (int c = 0; c < 8; c++) assert_true(seen[c] == 1 && result[c] == hn_rand64(k, (uint64_t)c));
    }
    hn_pool_free(p);
}

static void two_pools_do_not_meet(void **state)
{
    hn_pool *a, *b;
    assert_int_equal(hn_pool_new(&a, 3, NULL), HONE_OK);
    assert_int_equal(hn_pool_new(&b, 2, NULL), HONE_OK);
    for (uint64_t k = 0; k < 500; k++) {
        run_and_check(a, 9, k);
        run_and_check(b, 5, k + 1000);
    }
    hn_pool_free(a);
    run_and_check(b, 30, 1);
    hn_pool_free(b);
}

static void bad_counts_are_refused(void **state)
{
    const int32_t bad[] = { 0, -1, INT32_MIN, 1000000 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hn_pool *p = (hn_pool *)1;
        hone_error err;
        char number[16];
        snprintf(number, sizeof number, "%d", bad[i]);
        assert_int_equal(hn_pool_new(&p, bad[i], &err), HONE_E_ARG);
        assert_null(p);
        assert_non_null(strstr(err.message, number));
    }
    hn_pool_free(NULL);
}

/* Voluntary switches of every thread of this process but the first; how many threads. */
static int switches(int64_t *n, int cap)
{
    int k = 0;
    int64_t self = (int64_t)getpid();
    DIR *d = opendir("/proc/self/task");
    for (const struct dirent *e; d && k < cap && (e = readdir(d));) {
        char path[64], line[128];
        hn_lines r;
        long long v = -1, id = strtoll(e->d_name, NULL, 10);
        if (id <= 0 || id == self) continue;
        snprintf(path, sizeof path, "/proc/self/task/%lld/status", id);
        hn_lines_open(&r, path);
        while (hn_lines_next(&r, line, sizeof line))
            if (sscanf(line, "voluntary_ctxt_switches: %lld", &v) == 1) break;
        hn_lines_close(&r);
        if (v >= 0) n[k++] = (int64_t)v;
    }
    if (d) closedir(d);
    return k;
}

/* Workers beyond the limit are asleep for as long as it holds, however many jobs pass; then they work again. */
static void beyond_the_limit_sleep(void **state)
{
    enum { THREADS = 8, JOBS = 2000, FEW = 100, MOST = THREADS + 2 }; /* sanitizers may have a thread of their own */
    int64_t before[MOST] = { 0 }, after[MOST] = { 0 };
    hn_pool *p;
    assert_int_equal(hn_pool_new(&p, THREADS, NULL), HONE_OK);
    run_and_check(p, 64, 1);
    hn_pool_limit(p, 2);
    usleep(50000);
    int n = switches(before, MOST), awake = 0;
    for (uint64_t k = 0; k < JOBS; k++) {
        run_and_check(p, 4, k);
        usleep(100);
    }
    assert_int_equal(switches(after, MOST), n);
    for (int i = 0; i < n; i++) awake += after[i] - before[i] > FEW;
    if (n) assert_in_range(awake, 0, 1); /* the one that may work */
    hn_pool_limit(p, THREADS);
    for (uint64_t k = 0; k < 200; k++) run_and_check(p, 64, k);
    n = switches(before, MOST);
    hn_pool_free(p);
    if (n < THREADS - 1) {
        print_message("SKIP: this system does not tell how often threads slept\n");
        skip();
    }
}

static _Atomic int arrived;

/* Nobody leaves before all have come: a thread that sleeps on hangs the test. */
static void meet(void *arg, int64_t chunk, int32_t thread)
{
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < *(int *)arg) usleep(10);
}

/* Raised, lowered and raised again: all that may work do, at once, also right after. */
static void the_limit_is_lifted(void **state)
{
    hn_pool *p;
    assert_int_equal(hn_pool_new(&p, 6, NULL), HONE_OK);
    for (uint64_t k = 0; k < 600; k++) {
        int n = (int)(hn_rand64(12, k) % 6) + 1;
        hn_pool_limit(p, n);
        if (k % 50 == 0) usleep(2000);
        atomic_store(&arrived, 0);
        hn_pool_run(p, meet, &n, n);
        assert_int_equal(atomic_load(&arrived), n);
    }
    hn_pool_free(p);
}

/* Where the worker of a pool of two was, and how many CPUs it may run on; pin: it sets them itself. */
typedef struct place {
    int32_t cpu, n_may, pin, n_all;
    const int32_t *all; /* [n_all], which the worker sets before it looks; NULL: none */
    _Atomic int arrived;
} place;

static void tell_place(void *arg, int64_t chunk, int32_t thread)
{
    place *p = arg;
    int32_t all[HN_MOST_THREADS];
    atomic_fetch_add(&p->arrived, 1);
    while (atomic_load(&p->arrived) < 2) usleep(10); /* a chunk each */
    if (thread == 0) return;
    if (p->pin >= 0) hn_os_run_on(&p->pin, 1);
    if (p->all) hn_os_run_on(p->all, p->n_all);
    p->cpu = hn_os_current_cpu();
    p->n_may = hn_os_cpus(all, HN_MOST_THREADS);
}

/* Asked from a thread of its own, on one CPU: of the first thread's CPUs hone has an opinion. */
typedef struct caller {
    hn_pool *pool;
    int32_t cpu;
    place at;
} caller;

static void *call(void *arg)
{
    caller *c = arg;
    if (c->cpu >= 0) hn_os_run_on(&c->cpu, 1);
    hn_pool_run(c->pool, tell_place, &c->at, 2);
    return NULL;
}

static place worker_place(hn_pool *p, int32_t cpu, int32_t pin)
{
    caller c = { .pool = p, .cpu = cpu, .at = { .cpu = -1, .pin = pin } };
    pthread_t id;
    assert_int_equal(pthread_create(&id, NULL, call, &c), 0);
    pthread_join(id, NULL);
    return c.at;
}

/* A caller that is moved to the worker's CPU in the moment after the worker looked meets it there, once. */
static void assert_elsewhere(hn_pool *p, int32_t cpu, int32_t n_may)
{
    place at = worker_place(p, cpu, -1);
    for (int again = 0; again < 3 && at.cpu == cpu; again++) at = worker_place(p, cpu, -1);
    assert_int_not_equal(at.cpu, cpu);
    assert_int_equal(at.n_may, n_may);
}

static int32_t cpus_or_skip(int32_t all[HN_MOST_THREADS])
{
    int32_t n = hn_os_cpus(all, HN_MOST_THREADS);
    if (n < 2 || n >= HN_MOST_THREADS || hn_cpu_count() < 2) {
        print_message("SKIP: one CPU\n");
        skip();
    }
    return n;
}

/* The worker is on another CPU than the caller, wherever that one goes and whether the worker sleeps then or not; who
 * sets the CPUs of a worker himself has them so. */
static void workers_keep_off_the_caller(void **state)
{
    int32_t all[HN_MOST_THREADS];
    hn_pool *p, *many;
    const int32_t n = cpus_or_skip(all);
    assert_int_equal(hn_pool_new(&p, 2, NULL), HONE_OK);
    assert_int_equal(hn_pool_new(&many, hn_cpu_count() + 1, NULL), HONE_OK);
    for (int32_t round = 0; round < 40; round++) {
        const int32_t mine = all[round % 2 ? n - 1 : 0];
        for (int32_t k = 0; k < 3; k++) {
            usleep(k == 1 ? 0 : 1000); /* it sleeps after some 30 */
            if (round >= 2) assert_elsewhere(p, mine, n - 1);
            else worker_place(p, mine, -1); /* it begins */
        }
    }
    assert_int_equal(worker_place(many, all[0], -1).n_may,
                     n); /* more threads than CPUs are where the system has them */
    assert_elsewhere(p, all[0], n - 1);
    assert_int_equal(worker_place(p, all[0], all[0]).cpu, all[0]);
    for (int32_t k = 0; k < 4; k++) {
        place at = worker_place(p, all[k % 2], -1);
        assert_int_equal(at.cpu, all[0]);
        assert_int_equal(at.n_may, 1);
    }
    hn_pool_free(many);
    hn_pool_free(p);
}

/* A pool of two whose worker keeps off all[0], where its caller was. */
static hn_pool *pool_off_first(const int32_t *all, int32_t n)
{
    hn_pool *p;
    assert_int_equal(hn_pool_new(&p, 2, NULL), HONE_OK);
    for (int32_t k = 0; k < 4; k++) assert_true(worker_place(p, all[k % 2], -1).cpu >= 0);
    assert_elsewhere(p, all[0], n - 1);
    return p;
}

/* taskset -a, which sets the CPUs of all threads there are: the worker leaves none of them, and goes on as before when
 * they have all of them again. */
static void all_of_a_process_is_moved(void **state)
{
    int32_t all[HN_MOST_THREADS];
    const int32_t n = cpus_or_skip(all);
    hn_pool *p = pool_off_first(all, n);
    assert_true(hn_os_run_on(&all[n - 1], 1)); /* n is 2: the worker has this one alone already */
    if (n == 2) {
        for (int32_t k = 0; k < 3; k++) assert_int_equal(worker_place(p, all[1], -1).cpu, all[1]);
        assert_true(hn_os_run_on(all, n));
        assert_elsewhere(p, all[0], 1);
        assert_elsewhere(p, all[1], 1);
    }
    assert_true(hn_os_run_on(all, n));
    /* all of them to all CPUs: the worker's are not what was asked for it, but those of the first thread */
    caller c = { .pool = p, .cpu = all[0], .at = { .cpu = -1, .pin = -1, .n_all = n, .all = all } };
    call(&c);
    assert_true(hn_os_run_on(all, n));
    assert_int_equal(c.at.n_may, n);
    for (int32_t k = 0; k < 4; k++) worker_place(p, all[k % 2], -1);
    assert_elsewhere(p, all[1], n - 1);
    assert_elsewhere(p, all[0], n - 1);
    hn_pool_free(p);
}

static void nothing(void *arg, int64_t chunk, int32_t thread) {}

/* The child of a fork has the pool, and the numbers of threads that are its parent's. */
static void a_child_moves_nobody(void **state)
{
    int32_t all[HN_MOST_THREADS];
    const int32_t n = cpus_or_skip(all);
    hn_pool *p = pool_off_first(all, n);
    usleep(2000); /* it sleeps, so that whoever calls would send it away */
    pid_t child = fork();
    if (child == 0) {
        hn_os_run_on(&all[1], 1);
        hn_pool_run(p, nothing, NULL, 4);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    place at = worker_place(p, all[0], -1);
    assert_int_not_equal(at.cpu, all[0]);
    assert_int_equal(at.n_may, n - 1);
    hn_pool_free(p);
}

static void chunks_are_counted(void **state)
{
    hn_pool *p;
    assert_int_equal(hn_pool_new(&p, 2, NULL), HONE_OK);
    assert_int_equal(hn_pool_handed(p), 0);
    run_and_check(p, 5, 1);
    run_and_check(p, 1, 1);
    run_and_check(p, 0, 1);
    hn_pool_limit(p, 1);
    run_and_check(p, 7, 1);
    assert_int_equal(hn_pool_handed(p), 13);
    hn_pool_free(p);
}

int main(void)
{
    alarm(300); /* a pool that hangs is a failure, not a long test */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chunk_once),
        cmocka_unit_test(limited),
        cmocka_unit_test(many_small_jobs),
        cmocka_unit_test(sleepers_wake),
        cmocka_unit_test(caller_waits_for_the_last),
        cmocka_unit_test(two_pools_do_not_meet),
        cmocka_unit_test(bad_counts_are_refused),
        cmocka_unit_test(beyond_the_limit_sleep),
        cmocka_unit_test(the_limit_is_lifted),
        cmocka_unit_test(chunks_are_counted),
        cmocka_unit_test(workers_keep_off_the_caller),
        cmocka_unit_test(all_of_a_process_is_moved),
        cmocka_unit_test(a_child_moves_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
