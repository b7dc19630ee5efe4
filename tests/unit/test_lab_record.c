/* Records: appended whole, also behind a line that was cut off; the history row; fresh
 * processes that end in every way; what /proc says. This program is its own child. */
#include "base/file.h"
#include "lab/bench/process.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/machine/memory.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[64];

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *t = calloc(1, 1 << 20);
    assert_non_null(t);
    assert_true(fread(t, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return t;
}

static void spill(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static json_t *record(const char *title)
{
    json_t *r = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:n, s:[s], s:{s:i,s:i,s:i,s:i,s:s,s:s}, s:{s:s}, s:{s:s}, s:[i,i,i]}",
        "schema", HN_BENCH_SCHEMA, "ts", "2025-01-31T12:34:56Z", "title", title, "change", "a | b", "quality",
        "q1-00000001-00000002", "valid", 1, "invalid_reason", "notes", "calm: as a lake", "config", "n_prompt", 512,
        "n_gen", 64, "depth", 0, "threads", 2, "kv", "f16", "cpu", "avx2", "model", "path_name", "m.gguf", "env",
        "hash", "12345678", "samples", 1, 2, 3);
    assert_non_null(r);
    const double few[] = { 10, 12, 11 }, six[] = { 100, 104, 102, 101, 103, 105 };
    hn_stats s;
    json_t *stats = json_object();
    hn_stats_of(&s, few, 3, NULL);
    json_object_set_new(stats, "load_ms", hn_stats_json(&s));
    hn_stats_of(&s, six, 6, NULL);
    json_object_set_new(stats, "prefill_tok_s", hn_stats_json(&s));
    json_object_set_new(r, "stats", stats);
    return r;
}

static void test_append_survives_a_cut_line(void **state)
{
    char base[128], path[160];
    hone_error err;
    snprintf(base, sizeof base, "%s/new/folder/h", dir);
    snprintf(path, sizeof path, "%s.jsonl", base);
    json_t *r = record("one");
    assert_int_equal(hn_record_append(base, r, &err), HONE_OK);
    char *t = slurp(path);
    size_t whole = strlen(t);
    t[whole / 2] = 0; /* as after a power cut */
    spill(path, t);
    free(t);
    assert_int_equal(hn_record_append(base, r, &err), HONE_OK);
    assert_int_equal(hn_record_append(base, r, &err), HONE_OK);
    t = slurp(path);
    int good = 0, bad = 0;
    for (char *line = t, *end; (end = strchr(line, '\n')); line = end + 1) {
        json_t *j = json_loadb(line, (size_t)(end - line), 0, NULL);
        if (j && json_equal(j, r)) good++;
        else bad++;
        json_decref(j);
    }
    assert_int_equal(good, 2);
    assert_int_equal(bad, 1);
    free(t);
    json_decref(r);
}

static void test_history_row(void **state)
{
    char base[128], path[160], row[2048];
    hone_error err;
    snprintf(base, sizeof base, "%s/hist", dir);
    snprintf(path, sizeof path, "%s.md", base);
    json_t *r = record("a <title>\nof | two lines");
    assert_int_equal(hn_history_append(base, r, row, sizeof row, &err), HONE_OK);
    assert_string_equal(
        row,
        "| 2025-01-31 12:34 | a &lt;title> of \\| two lines | a \\| b | 11.0 ± n/a [10.0, 12.0] | 102.5 ± 2.5 | – | "
        "q1-00000001-00000002 | 12345678 | m.gguf, p512 n64 d0 t2 kv f16, avx2, 3 samples; calm |\n");
    json_object_set_new(r, "valid", json_false());
    json_object_set_new(r, "invalid_reason", json_string("all 512 logits are equal"));
    assert_int_equal(hn_history_append(base, r, row, sizeof row, &err), HONE_OK);
    assert_non_null(strstr(row, "~~102.5 ± 2.5~~"));
    assert_non_null(strstr(row, "INVALID: all 512 logits are equal"));
    char *t = slurp(path);
    assert_true(strncmp(t, hn_history_header, strlen(hn_history_header)) == 0);
    assert_null(strstr(t + 1, "# Benchmark history")); /* the header once */
    int lines = 0;
    for (char *p = t; (p = strchr(p, '\n')); p++) lines++;
    int header = 0;
    for (const char *p = hn_history_header; (p = strchr(p, '\n')); p++) header++;
    assert_int_equal(lines, header + 2);
    free(t);
    char *small = malloc(40); /* a row that does not fit stays within bounds and ends */
    hn_history_row(small, 40, r);
    assert_true(strlen(small) < 40 && strcmp(small + strlen(small) - 3, " |\n") == 0);
    free(small);
    json_decref(r);
}

static void test_base_names(void **state)
{
    char b[64];
    assert_int_equal(hn_record_base(b, sizeof b, "local", NULL), HONE_OK);
    assert_string_equal(b, "benchmarks/local");
    assert_int_equal(hn_record_base(b, sizeof b, "local.md", NULL), HONE_OK);
    assert_string_equal(b, "benchmarks/local");
    assert_int_equal(hn_record_base(b, sizeof b, "x/y.jsonl", NULL), HONE_OK);
    assert_string_equal(b, "x/y");
    for (const char *const *bad = (const char *const[]){ "", "x/", ".", "..", NULL }; *bad; bad++)
        assert_int_equal(hn_record_base(b, sizeof b, *bad, NULL), HONE_E_ARG);
    char name[200];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(hn_record_base(b, sizeof b, name, NULL), HONE_E_ARG);
}

static void test_append_errors(void **state)
{
    hone_error err;
    json_t *r = record("x");
    char file[128], base[160];
    snprintf(file, sizeof file, "%s/plain", dir);
    spill(file, "x");
    snprintf(base, sizeof base, "%s/below", file); /* a file where a folder is needed */
    assert_int_equal(hn_record_append(base, r, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "plain"));
    json_decref(r);
}

static void test_sha256_of_a_file(void **state)
{
    char path[128], hex[65];
    snprintf(path, sizeof path, "%s/abc", dir);
    spill(path, "abc");
    assert_int_equal(hn_file_sha256(hex, path, NULL), HONE_OK);
    assert_string_equal(hex,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); /* FIPS 180-4 example */
    assert_int_equal(hn_file_sha256(hex, "/nonexistent", NULL), HONE_E_IO);
}

/* ---- fresh processes ------------------------------------------------------------------------ */

static const char *self = "test";

static hn_child child(const char *mode)
{
    hn_child c;
    hone_error err;
    const char *argv[] = { self, mode, NULL };
    if (hn_child_run(&c, argv, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    return c;
}

static void test_child_result(void **state)
{
    hn_child c = child("child:good");
    assert_non_null(c.result);
    assert_int_equal(json_integer_value(json_object_get(c.result, "x")), 42);
    assert_int_equal(c.exit_code, 0);
    hn_child_free(&c);
    c = child("child:large"); /* more than a pipe holds */
    assert_int_equal(json_array_size(json_object_get(c.result, "x")), 100000);
    hn_child_free(&c);
}

static void test_child_failures(void **state)
{
    static const struct {
        const char *mode, *word;
        int exit_code, signal;
    } cases[] = {
        { "child:killed", "killed by signal 9", -1, SIGKILL },
        { "child:terminated", "died of signal 15", -1, SIGTERM },
        { "child:fails", "exit code 4: no memory for this", 4, 0 },
        { "child:garbage", "no result", 0, 0 },
        { "child:cut", "no result", 0, 0 },
        { "child:array", "no result", 0, 0 },
        { "child:silent", "no result", 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_child c = child(cases[i].mode);
        char why[640];
        assert_null(c.result);
        assert_int_equal(c.exit_code, cases[i].exit_code);
        assert_int_equal(c.signal, cases[i].signal);
        hn_child_why(&c, why, sizeof why);
        if (!strstr(why, cases[i].word)) fail_msg("%s: '%s' is not in '%s'", cases[i].mode, cases[i].word, why);
        hn_child_free(&c);
    }
}

static bool stop_now(void *unused) { return true; }

static void test_child_is_stopped(void **state)
{
    hn_child c;
    hone_error err;
    const char *argv[] = { self, "child:hangs", NULL };
    assert_int_equal(hn_child_run(&c, argv, stop_now, &err), HONE_E_INTERRUPTED);
    hn_child_free(&c);
}

static void test_child_memory_is_seen(void **state)
{
    hn_child c = child("child:memory"); /* holds 64 MB until it was looked at, gives it back before its result */
    assert_non_null(c.result);
    assert_true(c.seen.anon >= 64000000);
    hn_child_free(&c);
}

/* The parent reads our memory each time before it reads what we say: what was said is gone, we were looked at. */
static void wait_for_a_look(void)
{
    int waiting = 1;
    fputs("# holding memory\n", stderr);
    for (int i = 0; i < 60000 && waiting > 0; i++) { /* two minutes at least */
        if (ioctl(STDERR_FILENO, FIONREAD, &waiting) != 0) break;
        usleep(2000);
    }
}

static int be_child(const char *mode)
{
    if (strcmp(mode, "child:good") == 0) return printf("{\"x\": 42}\n") < 0;
    if (strcmp(mode, "child:large") == 0) {
        printf("{\"x\": [0");
        for (int i = 1; i < 100000; i++) printf(",%d", i);
        return printf("]}\n") < 0;
    }
    if (strcmp(mode, "child:killed") == 0) raise(SIGKILL);
    if (strcmp(mode, "child:terminated") == 0) raise(SIGTERM);
    if (strcmp(mode, "child:garbage") == 0) puts("all is well");
    if (strcmp(mode, "child:cut") == 0) printf("{\"x\": 4");
    if (strcmp(mode, "child:array") == 0) puts("[1]");
    if (strcmp(mode, "child:hangs") == 0) sleep(100);
    if (strcmp(mode, "child:memory") == 0) {
        volatile char *p = malloc(64000000); /* volatile: or the compiler writes nothing */
        if (!p) return 1;
        for (size_t i = 0; i < 64000000; i += 512) p[i] = 1;
        wait_for_a_look();
        free((void *)(uintptr_t)p);
        puts("{}");
    }
    if (strcmp(mode, "child:fails") == 0) {
        fputs("something before\nhone: no memory for this\n", stderr);
        return 4;
    }
    return 0;
}

/* ---- the machine --------------------------------------------------------------------------------- */

static void test_memory_counters(void **state)
{
    hn_memory a, b;
    if (!hn_memory_read(&a, 0)) {
        puts("SKIP: /proc/self/status has no RssAnon here");
        skip();
    }
    size_t n = 32000000;
    volatile char *p = malloc(n);
    assert_true(p != NULL);
    for (size_t i = 0; i < n; i += 512) p[i] = 1;
    assert_true(hn_memory_read(&b, 0));
    assert_true(b.anon >= a.anon + n - 1000000);
    assert_true(b.hwm >= b.anon);
    free((void *)(uintptr_t)p);
    assert_false(hn_memory_read(&b, 0x3ffffff)); /* no such process */
    /* memory hidden in a file that is written to through its mapping */
    char path[] = "/tmp/hone-mapped-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)n) == 0 && unlink(path) == 0);
    char *file = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(file != MAP_FAILED && hn_memory_read(&a, 0));
    memset(file, 1, n);
    assert_true(hn_memory_read(&b, 0));
    assert_true(b.anon >= a.anon + n - 1000000 && b.anon <= a.anon + n + 4000000);
    assert_int_equal(munmap(file, n), 0);
    close(fd);
}

static void test_environ(void **state)
{
    hn_environ e, f;
    hn_environ_read(&e);
    hn_environ_read(&f);
    assert_int_equal(strlen(e.hash), 8);
    assert_string_equal(e.hash, f.hash);
    assert_true(e.cores >= 1 && e.kernel[0]);
    json_t *j = hn_environ_json(&e);
    assert_string_equal(json_string_value(json_object_get(j, "hash")), e.hash);
    json_decref(j);
}

static void test_clock(void **state)
{
    uint64_t a = hn_clock_ns();
    usleep(2000);
    uint64_t b = hn_clock_ns();
    assert_true(b - a >= 1900000); /* a raw clock may be a little slow; how late we wake is the machine's affair */
}

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/test_lab_record.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strncmp(argv[1], "child:", 6) == 0) return be_child(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_survives_a_cut_line),
        cmocka_unit_test(test_history_row),
        cmocka_unit_test(test_base_names),
        cmocka_unit_test(test_append_errors),
        cmocka_unit_test(test_sha256_of_a_file),
        cmocka_unit_test(test_child_result),
        cmocka_unit_test(test_child_failures),
        cmocka_unit_test(test_child_is_stopped),
        cmocka_unit_test(test_child_memory_is_seen),
        cmocka_unit_test(test_memory_counters),
        cmocka_unit_test(test_environ),
        cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
