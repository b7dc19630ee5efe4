/* base/os.c: what it promises, on the system that runs this. */
#include "base/os.h"
#include "base/park.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int by_key(const void *a, const void *b, void *arg)
{
    const int *key = arg;
    int x = key[*(const int32_t *)a], y = key[*(const int32_t *)b];
    return x < y ? -1 : x > y;
}

static void sort_passes_its_argument(void **state)
{
    (void)state;
    enum { N = 1000 };
    static int key[N];
    static int32_t id[N];
    for (int n = 0; n <= N; n += n < 20 ? 1 : 245) {
        for (int i = 0; i < n; i++) key[i] = (int)(hn_rand64(1, (uint64_t)i) % 97), id[i] = i;
        hn_os_sort(id, (size_t)n, sizeof *id, by_key, key);
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum += id[i];
            if (i) assert_true(key[id[i - 1]] <= key[id[i]]);
        }
        assert_int_equal(sum, (long)n * (n - 1) / 2);
    }
}

static void flushing_caches_changes_nothing(void **state)
{
    (void)state;
    unsigned char p[1000], want[sizeof p];
    for (size_t i = 0; i < sizeof p; i++) p[i] = want[i] = (unsigned char)(i * 7);
    for (size_t at = 0; at < 70; at++) {
        bool can = hn_os_flush_caches(p + at, sizeof p - 2 * at);
#if defined(__x86_64__)
        assert_true(can);
#else
        assert_false(can);
#endif
        assert_memory_equal(p, want, sizeof p);
    }
}

static void pipes_are_not_inherited(void **state)
{
    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        int fd[2];
        char c;
        assert_int_equal(hn_os_pipe(fd, nonblocking), 0);
        for (int i = 0; i < 2; i++) {
            assert_true(fcntl(fd[i], F_GETFD) & FD_CLOEXEC);
            assert_int_equal((fcntl(fd[i], F_GETFL) & O_NONBLOCK) != 0, nonblocking);
        }
        if (nonblocking) {
            assert_int_equal(read(fd[0], &c, 1), -1);
            assert_int_equal(errno, EAGAIN);
        }
        assert_int_equal(write(fd[1], "x", 1), 1);
        assert_int_equal(read(fd[0], &c, 1), 1);
        close(fd[0]);
        close(fd[1]);
    }
}

static void the_program_is_found(void **state)
{
    (void)state;
    char path[1024];
    struct stat sb;
    assert_false(hn_os_program_path(path, 3));
    assert_true(hn_os_program_path(path, sizeof path));
    assert_int_equal(access(path, X_OK), 0);
    assert_int_equal(stat(path, &sb), 0);
    assert_true(S_ISREG(sb.st_mode));
    assert_int_equal(hn_os_mtime_ns(&sb) / 1000000000, sb.st_mtime);
}

static void a_file_leaves_memory(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    char path[] = "test-os-XXXXXX", *text = malloc(N); /* here, not in /tmp, which may be memory */
    int fd = mkstemp(path);
    assert_true(fd >= 0 && text);
    memset(text, 'x', N);
    assert_int_equal(write(fd, text, N), N);
    double left = hn_os_drop_file(path);
    assert_true(left <= 1);
    if (left < 0) printf("SKIP: this system does not show which files are in memory\n");
    else if (left > 0.01) printf("SKIP: this file system keeps files in memory (%.0f %%)\n", 100 * left);
    else {
        assert_int_equal(pread(fd, text, N / 2, 0), N / 2); /* so that something is there */
        hn_os_drop_file(path);
    }
    close(fd);
    unlink(path);
    free(text);
    assert_true(hn_os_drop_file(path) < 0); /* it is gone */
    assert_true(hn_os_drop_file(".") < 0);
}

static void touched_pages_are_counted(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 5000 * page;
    char *p = hn_pages_alloc(n);
    assert_non_null(p);
    int64_t none = hn_os_resident(p, n);
    if (none < 0) {
        printf("SKIP: this system does not tell which pages are in memory\n");
        hn_pages_free(p, n);
        skip();
    }
    assert_int_equal(none, 0);
    const size_t touched[] = { 0, 1, 4095, 4096, 4999 }; /* in the first and in the second piece of the answer */
    for (size_t i = 0; i < 5; i++) p[touched[i] * page] = 1;
    assert_int_equal(hn_os_resident(p, n), 5 * (int64_t)page);
    assert_int_equal(hn_os_resident(p, page), (int64_t)page);
    hn_pages_free(p, n);
}

static void *touch_some(void *p)
{
    for (size_t i = 0; i < 64; i++) ((volatile char *)p)[i * (size_t)sysconf(_SC_PAGESIZE)] = 1;
    return NULL;
}

static void counters_count_later_threads(void **state)
{
    (void)state;
    const char *why = NULL;
    int fd = hn_os_count_open(HN_OS_PAGE_FAULTS, &why);
    if (fd < 0) {
        assert_non_null(why);
        printf("SKIP: no counters: %s\n", why);
        skip();
    }
    size_t n = 64 * (size_t)sysconf(_SC_PAGESIZE);
    char *p = hn_pages_alloc(n);
    int64_t before = hn_os_count_read(fd);
    pthread_t t;
    assert_non_null(p);
    assert_int_equal(pthread_create(&t, NULL, touch_some, p), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_true(before >= 0);
    assert_true(hn_os_count_read(fd) >= before + 64);
    close(fd);
    hn_pages_free(p, n);
    assert_int_equal(hn_os_count_read(-1), -1);
}

static void random_bytes_differ(void **state)
{
    (void)state;
    unsigned char a[256] = { 0 }, b[256] = { 0 };
    assert_true(hn_os_random(a, sizeof a));
    assert_true(hn_os_random(b, sizeof b));
    assert_memory_not_equal(a, b, sizeof a);
}

/* What waits for a word, as this system has it and as the others do. */
typedef struct waiting {
    void (*wait)(_Atomic uint32_t *w, uint32_t seen);
    void (*wake)(_Atomic uint32_t *w, int n);
} waiting;
static void wake_parked(_Atomic uint32_t *w, int n) { hn_park_wake(w, n); }
static const waiting ways[] = { { hn_os_wait, hn_os_wake }, { hn_park_wait, wake_parked } };

typedef struct sleeper {
    const waiting *way;
    _Atomic uint32_t *w;
    _Atomic int *n_up;
} sleeper;
static void *wait_for_change(void *arg)
{
    sleeper *s = arg;
    while (atomic_load(s->w) == 7) s->way->wait(s->w, 7);
    atomic_fetch_add(s->n_up, 1);
    return NULL;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Three wait for one word and one for another: they cost nothing, and who waits for the other does not take a wake. */
static void waiters_are_woken(void **state)
{
    enum { N = 4 };
    for (int k = 0; k < 2; k++) {
        pthread_t t[N];
        _Atomic uint32_t word = 7, other = 7;
        _Atomic int n_up = 0, other_up = 0;
        const waiting *way = &ways[k];
        sleeper s[2] = { { way, &word, &n_up }, { way, &other, &other_up } };
        way->wait(&word, 8); /* another value: returns */
        for (int i = 0; i < N; i++) assert_int_equal(pthread_create(&t[i], NULL, wait_for_change, &s[i == N - 1]), 0);
        nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
        double before = cpu_seconds();
        nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
        assert_true(cpu_seconds() - before < 0.003); /* four that look each 50 us: more */
        assert_true(n_up == 0 && other_up == 0);
        atomic_store(&word, 8);
        for (int i = 0; i < N - 1; i++) way->wake(&word, 1);
        for (int i = 0; i < N - 1; i++) pthread_join(t[i], NULL); /* the stage's time limit, if one sleeps on */
        assert_true(n_up == N - 1 && other_up == 0);
        atomic_store(&other, 8);
        way->wake(&other, N);
        pthread_join(t[N - 1], NULL);
        assert_int_equal(other_up, 1);
    }
}

static void cpus_can_be_chosen(void **state)
{
    (void)state;
    int32_t cpu[1024], n = hn_os_cpus(cpu, 1024);
    assert_true(n >= 0);
    if (n == 0) {
        printf("SKIP: this system does not list CPUs\n");
        skip();
    }
    assert_int_equal(n, hn_os_cpu_count());
    assert_int_equal(hn_cpu_count(), hn_os_thread_count(n, ""));
    for (int32_t i = 1; i < n; i++) assert_true(cpu[i - 1] < cpu[i]);
    int32_t one[1];
    assert_int_equal(hn_os_cpus(one, 1), 1);
    for (int32_t i = 0; i < n && i < 4; i++) {
        assert_true(hn_os_run_on(&cpu[i], 1));
        assert_int_equal(hn_os_current_cpu(), cpu[i]);
        assert_int_equal(hn_os_cpus(one, 1), 1);
        assert_int_equal(one[0], cpu[i]);
    }
    assert_true(hn_os_run_on(cpu, n));
    assert_int_equal(hn_os_cpus(cpu, 1024), n);
}

/* Each architecture's levels form one ladder: a CPU that has one has those below; but avx_vnni, a step that AVX-512 may
 * lack. The best is the last there is. */
static void levels_are_a_ladder(void **state)
{
    (void)state;
    bool missing = false;
    hn_cpu_level best = HN_CPU_SCALAR;
    assert_true(hn_cpu_built(HN_CPU_SCALAR) && hn_cpu_has(HN_CPU_SCALAR));
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        hn_cpu_level level = (hn_cpu_level)l, got = HN_CPU_LEVELS;
        hone_error err;
        hone_status st = hn_cpu_choose(&got, hn_cpu_level_name(level), &err);
        if (hn_cpu_has(level)) {
            assert_true(hn_cpu_built(level) && !missing);
            assert_int_equal(st, HONE_OK);
            assert_int_equal(got, level);
            best = level;
        } else {
            missing = missing || (hn_cpu_built(level) && level != HN_CPU_AVX_VNNI);
            assert_int_equal(st, HONE_E_UNSUPPORTED);
            assert_non_null(strstr(err.message, hn_cpu_level_name(level)));
            assert_non_null(strstr(err.message, hn_cpu_built(level) ? "this machine lacks it; best here: "
                                                                    : "another architecture; expected scalar"));
        }
    }
    assert_int_equal(best, hn_cpu_best());
    assert_true(hn_cpu_has(HN_CPU_AVX2) || !hn_cpu_has(HN_CPU_AVX_VNNI));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sort_passes_its_argument),
        cmocka_unit_test(pipes_are_not_inherited),
        cmocka_unit_test(the_program_is_found),
        cmocka_unit_test(random_bytes_differ),
        cmocka_unit_test(a_file_leaves_memory),
        cmocka_unit_test(touched_pages_are_counted),
        cmocka_unit_test(counters_count_later_threads),
        cmocka_unit_test(waiters_are_woken),
        cmocka_unit_test(cpus_can_be_chosen),
        cmocka_unit_test(levels_are_a_ladder),
        cmocka_unit_test(flushing_caches_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
