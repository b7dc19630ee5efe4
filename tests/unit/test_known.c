/* What is kept of files: found again for the very file, never for another, whatever its name, size and times say. */
#define _GNU_SOURCE
#include "base/known.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];

static const char *at(const char *name)
{
    static char path[8][200];
    static int k;
    k = (k + 1) % 8;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

static void write_file(const char *name, const unsigned char *p, size_t n)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, p, n) == (ssize_t)n && close(fd) == 0);
}

static hn_known_file opened(const char *name)
{
    struct stat sb;
    hn_known_file f = { strdup(at(name)), { 0 } };
    assert_int_equal(stat(f.path, &sb), 0);
    hn_stamp_of(&f.stamp, &sb);
    return f;
}

static hn_known_key key_of(const char *name)
{
    hn_known_key key;
    hn_known_file f = opened(name);
    assert_true(hn_known_key_of(&key, &f, 1));
    free((void *)(uintptr_t)f.path);
    return key;
}

static bool known(const char *name)
{
    char fact[8];
    hn_known_key key = key_of(name);
    return hn_known_get(&key, "test", fact, 8) && memcmp(fact, "12345678", 8) == 0;
}

static void keep(const char *name)
{
    hn_known_key key = key_of(name);
    assert_true(hn_known_put(&key, "test", at(name), "12345678", 8));
    assert_true(known(name));
}

static void kept_for_the_very_file(void **state)
{
    enum { N = 200000 };
    unsigned char *p = calloc(1, N);
    assert_non_null(p);
    write_file("a", p, N);
    assert_false(known("a"));
    keep("a");
    char fact[8];
    hn_known_key key = key_of("a");
    assert_false(hn_known_get(&key, "other", fact, 8)); /* another kind */
    assert_false(hn_known_get(&key, "test", fact, 7));  /* another length */

    /* a time set, and set back: ctime tells */
    struct stat sb;
    assert_int_equal(stat(at("a"), &sb), 0);
    hn_file_stamp stamp;
    hn_stamp_of(&stamp, &sb);
    hn_stamp_settle(&stamp);
    assert_false(hn_stamp_fresh(&stamp));
    assert_int_equal(utimensat(AT_FDCWD, at("a"), (struct timespec[2]){ sb.st_atim, sb.st_mtim }, 0), 0);
    assert_false(known("a"));
    assert_false(hn_stamp_holds(&stamp, at("a")));
    keep("a");
    /* another file of that size and time takes the name */
    assert_int_equal(stat(at("a"), &sb), 0);
    write_file("b", p, N);
    assert_int_equal(utimensat(AT_FDCWD, at("b"), (struct timespec[2]){ sb.st_atim, sb.st_mtim }, 0), 0);
    assert_false(known("b"));
    assert_int_equal(rename(at("b"), at("a")), 0);
    assert_false(known("a"));
    /* longer by a byte, empty, small */
    for (size_t n = 0; n < 4000; n = n * 3 + 1) {
        write_file("c", p, n);
        assert_false(known("c"));
        keep("c");
    }
    free(p);
}

static void no_key_for_what_changed(void **state)
{
    unsigned char p[100] = { 0 };
    hn_known_key key;
    write_file("x", p, 100);
    write_file("y", p, 50);
    hn_known_file f[2] = { opened("x"), opened("y") };
    assert_true(hn_known_key_of(&key, f, 2) && hn_known_key_of(&key, f, 1));
    assert_false(hn_known_key_of(&key, f, 0));
    write_file("y", p, 51);
    assert_true(hn_known_key_of(&key, f, 1));
    assert_false(hn_known_key_of(&key, f, 2));
    unlink(at("x"));
    assert_false(hn_known_key_of(&key, f, 1));
    assert_int_equal(mkfifo(at("x"), 0600), 0); /* must not wait for a writer */
    assert_false(hn_known_key_of(&key, f, 1));
    unlink(at("x"));
    for (int i = 0; i < 2; i++) free((void *)(uintptr_t)f[i].path);
}

/* Many at once write one record: it is whole at any time. */
static void *writer(void *arg)
{
    const hn_known_key *key = arg;
    char fact[8];
    for (int i = 0; i < 300; i++) {
        if (!hn_known_put(key, "race", "r", "12345678", 8)) return "put";
        if (!hn_known_get(key, "race", fact, 8)) return "get";
    }
    return NULL;
}

static void records_are_whole(void **state)
{
    unsigned char p[10] = { 0 };
    write_file("r", p, 10);
    hn_known_key key = key_of("r");
    pthread_t t[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, writer, &key), 0);
    for (int i = 0; i < 4; i++) {
        void *what;
        pthread_join(t[i], &what);
        if (what) fail_msg("%s", (char *)what);
    }
    int n = 0;
    char known_dir[200];
    snprintf(known_dir, sizeof known_dir, "%s/hone/known", getenv("XDG_STATE_HOME"));
    DIR *d = opendir(known_dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += strncmp(e->d_name, "race", 4) == 0;
    closedir(d);
    assert_int_equal(n, 1); /* no temporary left */
}

static void nowhere_to_keep(void **state)
{
    unsigned char p[10] = { 0 };
    char path[300];
    write_file("n", p, 10);
    hn_known_key key = key_of("n");
    char *was = strdup(getenv("XDG_STATE_HOME"));
    setenv("XDG_STATE_HOME", "/dev/null/nowhere", 1);
    assert_false(hn_known_put(&key, "test", "n", p, 8));
    setenv("XDG_STATE_HOME", "relative", 1); /* to be ignored, says its specification */
    setenv("HOME", "/home/me", 1);
    assert_true(hn_state_path(path, sizeof path, "x"));
    assert_string_equal(path, "/home/me/.local/state/hone/x");
    assert_false(hn_state_path(path, 20, "x"));
    unsetenv("HOME");
    assert_false(hn_state_path(path, sizeof path, "x"));
    assert_false(hn_known_put(&key, "test", "n", p, 8) || hn_known_get(&key, "test", p, 8));
    setenv("XDG_STATE_HOME", was, 1);
    assert_true(hn_known_put(&key, "test", "n", p, 8));
    free(was);
}

static int set_up(void **state)
{
    char kept[80];
    snprintf(dir, sizeof dir, "/tmp/hone-known-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(kept, sizeof kept, "%s/.state", dir);
    return setenv("XDG_STATE_HOME", kept, 1);
}

static int tear_down(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* ---- how many are kept ------------------------------------------------------------------------ */

static hn_known_key numbered(uint64_t i)
{
    hn_known_key key = { .dev = 7, .ino = 0x1000 + i };
    memcpy(key.sum, &i, sizeof i);
    return key;
}
static bool has(uint64_t i)
{
    uint64_t fact;
    hn_known_key key = numbered(i);
    return hn_known_get(&key, "number", &fact, sizeof fact) && fact == i;
}
static const char *record_of(uint64_t i)
{
    char name[64];
    snprintf(name, sizeof name, ".state/hone/known/number-7-%llx", 0x1000 + (unsigned long long)i);
    return at(name);
}
/* A second younger than the one before. */
static void set_age(uint64_t i)
{
    struct timespec t[2] = { { 1000 + (time_t)i, 0 }, { 1000 + (time_t)i, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, record_of(i), t, 0), 0);
}
static void keep_number(uint64_t i)
{
    hn_known_key key = numbered(i);
    assert_true(hn_known_put(&key, "number", "x", &i, sizeof i));
    set_age(i);
}
static int n_records(void)
{
    int n = 0;
    DIR *d = opendir(at(".state/hone/known"));
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += strncmp(e->d_name, "number-", 7) == 0;
    closedir(d);
    return n;
}

static void the_oldest_go(void **state)
{
    static const char *const others[] = { ".state/hone/known/README", ".state/hone/known/number-7",
                                          ".state/hone/known/number-7-1g", ".state/hone/known/.number-7-1" };
    keep_number(0);
    for (size_t i = 0; i < 4; i++) { /* the oldest of all */
        write_file(others[i], (const unsigned char *)"x", 1);
        assert_int_equal(utimensat(AT_FDCWD, at(others[i]), (const struct timespec[2]){ { 1, 0 }, { 1, 0 } }, 0), 0);
    }
    for (uint64_t i = 1; i < HN_KNOWN_MAX; i++) { /* of others, for speed */
        write_file(strstr(record_of(i), ".state"), (const unsigned char *)"x", 1);
        set_age(i);
    }
    assert_true(has(0));
    for (uint64_t i = HN_KNOWN_MAX; i < HN_KNOWN_MAX + 20; i++) {
        keep_number(i);
        assert_true(n_records() <= HN_KNOWN_MAX + 2); /* and two that only look like them */
        assert_true(has(i) && access(record_of(i - HN_KNOWN_MAX), F_OK) != 0);
    }
    assert_int_equal(access(record_of(20 + HN_KNOWN_MAX / 2), F_OK), 0);
    for (size_t i = 0; i < 4; i++) assert_int_equal(access(at(others[i]), F_OK), 0); /* not ours */
}

static void *keep_many(void *arg)
{
    uint64_t from = 100000 * (uint64_t)(uintptr_t)arg;
    for (uint64_t i = from; i < from + 40; i++) {
        hn_known_key key = numbered(i);
        if (!hn_known_put(&key, "number", "x", &i, sizeof i)) return "a record was not kept";
        if (!has(i)) return "a record that was just kept is gone"; /* its neighbours are older */
    }
    return NULL;
}

static void several_at_once(void **state)
{
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, keep_many, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *said;
        pthread_join(t[i], &said);
        if (said) fail_msg("%s", (char *)said);
    }
    keep_number(500000);
    assert_true(n_records() <= HN_KNOWN_MAX + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_for_the_very_file), cmocka_unit_test(no_key_for_what_changed),
        cmocka_unit_test(records_are_whole),      cmocka_unit_test(nowhere_to_keep),
        cmocka_unit_test(the_oldest_go),          cmocka_unit_test(several_at_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
