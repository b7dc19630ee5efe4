/* Which file is mapped where: looked up at both ends, among many, while others come and go, and from a handler. */
#include "base/mapped.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 5000000, MANY = 100 };

static char name[] = "/tmp/hone-mapped-XXXXXX";

static int make_file(void)
{
    memcpy(name + strlen(name) - 6, "XXXXXX", 6);
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    return fd;
}

static void test_lookup(void **unused)
{
    int fd = make_file();
    char *p = hn_mapped_open(fd, SIZE, name);
    const char *path = NULL;
    uint64_t offset, size;
    assert_non_null(p);
    assert_true(hone_mapped_file_at(p, &path, &offset, &size));
    assert_string_equal(path, name);
    assert_int_equal(offset, 0);
    assert_int_equal(size, SIZE);
    assert_true(hone_mapped_file_at(p + SIZE - 1, NULL, &offset, NULL));
    assert_int_equal(offset, SIZE - 1);
    assert_false(hone_mapped_file_at(p + SIZE, &path, NULL, NULL));
    assert_false(hone_mapped_file_at(p - 1, &path, NULL, NULL));
    assert_false(hone_mapped_file_at(NULL, &path, &offset, &size));
    assert_false(hone_mapped_file_at(&fd, &path, &offset, &size));
    hn_mapped_close(p, SIZE);
    assert_false(hone_mapped_file_at(p, &path, &offset, &size));
    hn_mapped_close(NULL, 0);
    close(fd);
    unlink(name);
}

static void test_many(void **unused)
{
    int fd = make_file();
    char *p[MANY], long_path[3000];
    uint64_t offset;
    memset(long_path, 'x', sizeof long_path - 1);
    memcpy(long_path + sizeof long_path - 5, ".end", 5);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            p[i] = hn_mapped_open(fd, (size_t)(4096 * (i + 1)), i == 7 ? long_path : name);
            assert_non_null(p[i]);
        }
        for (int i = 0; i < MANY; i++) {
            const char *path;
            uint64_t size;
            assert_true(hone_mapped_file_at(p[i] + i, &path, &offset, &size));
            assert_int_equal(offset, i);
            assert_int_equal(size, SIZE);
            if (i == 7) assert_string_equal(path + strlen(path) - 4, ".end");
            else assert_string_equal(path, name);
        }
        for (int i = 0; i < MANY; i++) hn_mapped_close(p[i], (size_t)(4096 * (i + 1)));
    }
    close(fd);
    unlink(name);
}

static void *come_and_go(void *fd)
{
    for (int i = 0; i < 300; i++) {
        const char *path;
        uint64_t offset;
        char *p = hn_mapped_open(*(int *)fd, 8192, name);
        bool found = p && hone_mapped_file_at(p + 5000, &path, &offset, NULL);
        if (!found || offset != 5000 || strcmp(path, name) != 0) return "not found";
        hn_mapped_close(p, 8192);
    }
    return NULL;
}

static void test_threads(void **unused)
{
    int fd = make_file();
    char *stays = hn_mapped_open(fd, SIZE, name);
    pthread_t t[4];
    void *fault;
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, come_and_go, &fd), 0);
    for (int i = 0; i < 2000; i++) assert_true(hone_mapped_file_at(stays + i, NULL, NULL, NULL));
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &fault);
        assert_null(fault);
    }
    hn_mapped_close(stays, SIZE);
    close(fd);
    unlink(name);
}

static void on_bus(int sig, siginfo_t *info, void *unused)
{
    const char *path;
    uint64_t offset, size;
    bool known = hone_mapped_file_at(info->si_addr, &path, &offset, &size);
    _exit(known && strcmp(path, name) == 0 && offset / 4096 == 3000000 / 4096 && size == SIZE ? 42 : 1);
}

/* What the header promises to other programs: a handler of theirs learns which file it was. */
static void test_handler(void **unused)
{
    int fd = make_file(), status;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct sigaction sa = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
        sigaction(SIGBUS, &sa, NULL);
        volatile char *p = hn_mapped_open(fd, SIZE, name);
        if (!p || ftruncate(fd, 100000) != 0) _exit(2);
        _exit(p[3000000] + 3);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    close(fd);
    unlink(name);
}

typedef struct reading {
    volatile char *p;
} reading;

/* Thread 0, the caller's, waits: the worker is to fault. */
static void read_in_worker(void *arg, int64_t chunk, int32_t thread)
{
    const reading *r = arg;
    if (thread) _exit(r->p[3000000] + 3);
    sleep(20);
}

/* The pool's threads take no signal meant for the process, but their own faults: else the handler is not asked. */
static void test_worker(void **unused)
{
    int fd = make_file(), status;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct sigaction sa = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
        hn_pool *pool;
        sigaction(SIGBUS, &sa, NULL);
        reading r = { hn_mapped_open(fd, SIZE, name) };
        if (!r.p || ftruncate(fd, 100000) != 0 || hn_pool_new(&pool, 2, NULL) != HONE_OK) _exit(2);
        hn_pool_run(pool, read_in_worker, &r, 2);
        _exit(4);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    close(fd);
    unlink(name);
}

static void test_changed(void **unused)
{
    hn_mapped_file m;
    uint64_t now;
    int fd = make_file();
    /* only read, or replaced: not this one's concern */
    void *p = hn_mapped_open(fd, SIZE, name);
    hn_mapped_close(p, SIZE);
    p = hn_mapped_open(fd, SIZE, name);
    int other = open("/dev/null", O_RDONLY);
    unlink(name);
    hn_mapped_close(p, SIZE);
    assert_false(hn_mapped_changed(&m, &now));
    close(fd);
    fd = make_file();
    p = hn_mapped_open(fd, SIZE, name);
    assert_int_equal(ftruncate(fd, SIZE - 10), 0);
    hn_mapped_close(p, SIZE);
    assert_true(hn_mapped_changed(&m, &now));
    assert_string_equal(m.path, name);
    assert_int_equal(m.size, SIZE);
    assert_int_equal(now, SIZE - 10);
    close(other);
    close(fd);
    unlink(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup),  cmocka_unit_test(test_many),   cmocka_unit_test(test_threads),
        cmocka_unit_test(test_handler), cmocka_unit_test(test_worker), cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
