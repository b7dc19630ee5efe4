/* Sides of a comparison: what words mean, processes of any program, and programs that are
 * shell scripts here: they answer the public command line as hone does, old and new, or
 * badly. Commits come from a repository made for the test, whose Makefile "builds" such a
 * script. */
#define _GNU_SOURCE
#include "base/os.h"
#include "lab/judge/ab.h"
#include "lab/judge/same.h"
#include "lab/stats/stats.h"
#include <math.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[64];

static void sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void sh(const char *fmt, ...)
{
    char cmd[4000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(cmd, sizeof cmd, fmt, ap);
    va_end(ap);
    const char *argv[] = { "/bin/sh", "-c", cmd, NULL };
    hn_process r;
    assert_int_equal(hn_process_run(&r, &(hn_process_params){ .argv = argv, .dir = dir[0] ? dir : NULL }, NULL),
                     HONE_OK);
    if (r.exit_code != 0) print_error("%s\n%s\n", cmd, r.said);
    assert_int_equal(r.exit_code, 0);
    hn_process_free(&r);
}

static const char *at(const char *name)
{
    static char path[8][200];
    static int i;
    char *p = path[i++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

/* A program that calls itself hone; `bench` is what it does then. */
static void fake(const char *name, const char *bench)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    fprintf(f,
            "#!/bin/sh\nif [ \"$1\" = version ]; then\n"
            "echo '{\"schema\":\"hone.version/1\",\"version\":\"0.0.9\",\"build\":\"cc; -O; commit "
            "abcdef123456+dirty\"}'; exit 0; fi\n"
            "[ \"$1\" = bench ] || exit 2\necho \"$*\" >>%s/args\n%s\n",
            dir, bench);
    fclose(f);
    assert_int_equal(chmod(at(name), 0755), 0);
}

static hn_side *side(const char *spec)
{
    hn_side *s;
    hone_error err = { 0 };
    hone_status st = hn_side_open(&s, spec, &(hn_side_params){ 0 }, &err);
    if (st != HONE_OK) print_error("%s: %s\n", spec, err.message);
    assert_int_equal(st, HONE_OK);
    return s;
}

static void refused(const char *spec, hone_status want, const char *saying)
{
    hn_side *s;
    hone_error err = { 0 };
    assert_int_equal(hn_side_open(&s, spec, &(hn_side_params){ 0 }, &err), want);
    assert_null(s);
    if (!strstr(err.message, saying)) print_error("%s\n", err.message);
    assert_non_null(strstr(err.message, saying));
}

/* ---- processes -------------------------------------------------------------------------------------- */

static void run_sh(hn_process *r, const char *cmd, const char *const *env, bool keep)
{
    const char *argv[] = { "/bin/sh", "-c", cmd, NULL };
    assert_int_equal(hn_process_run(r, &(hn_process_params){ .argv = argv, .env = env, .keep_out = keep }, NULL),
                     HONE_OK);
}

static void test_processes(void **state)
{
    hn_process r;
    char why[300];
    setenv("HN_TEST_OLD", "1", 1);
    const char *env[] = { "HN_TEST_OLD=first", "HN_TEST_NEW=a b", "HN_TEST_OLD=last", NULL };
    run_sh(&r, "echo \"$HN_TEST_OLD $HN_TEST_NEW\"; cat; echo gone >&2", env, true);
    assert_string_equal(r.out, "last a b\n"); /* stdin is empty, the last of equal names wins */
    assert_string_equal(r.said, "gone\n");
    assert_int_equal(r.exit_code, 0);
    hn_process_why(&r, why, sizeof why);
    assert_string_equal(why, "");
    assert_true(r.wall_s > 0 && r.wall_s < 60 && r.max_rss > 100000 && r.user_s + r.sys_s < 60);
    hn_process_free(&r);
    run_sh(&r, "echo one >&2; echo 'two words' >&2; exit 3", NULL, false);
    hn_process_why(&r, why, sizeof why);
    assert_string_equal(why, "ended with exit code 3: two words");
    assert_null(r.out);
    hn_process_free(&r);
    run_sh(&r, "kill -SEGV $$", NULL, false);
    hn_process_why(&r, why, sizeof why);
    assert_non_null(strstr(why, "died of signal 11"));
    hn_process_free(&r);
    const char *none[] = { "/no/such/program", NULL };
    assert_int_equal(hn_process_run(&r, &(hn_process_params){ .argv = none }, NULL), HONE_OK);
    assert_int_equal(r.exit_code, 127);
    hn_process_free(&r);
    run_sh(&r, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", NULL, false); /* user time is counted */
    assert_true(r.user_s + r.sys_s > 0);
    hn_process_free(&r);
}

/* What goes on behind the end of a process that was to be alone is counted and ended. */
static void test_what_is_left_behind(void **state)
{
    static const struct {
        const char *cmd;
        bool alone;
        int32_t left;
    } t[] = { { "sleep 60 >/dev/null 2>&1 & exit 0", true, 1 },
              { "(setsid sleep 60; exit 0) >/dev/null 2>&1 & sleep 60 >/dev/null 2>&1 & exit 0", true, 2 },
              { "sleep 0.1 & wait", true, 0 },
              { "sleep 0.1 >/dev/null 2>&1 & exit 0", false, 0 } };
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    if (access(path, R_OK) != 0) {
        print_message("SKIP: the system does not tell children\n");
        skip();
    }
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const char *argv[] = { "/bin/sh", "-c", t[i].cmd, NULL };
        hn_process r;
        assert_int_equal(hn_process_run(&r, &(hn_process_params){ .argv = argv, .alone = t[i].alone }, NULL), HONE_OK);
        if (r.n_left < t[i].left || (t[i].left == 0 && r.n_left)) fail_msg("case %zu: %d", i, (int)r.n_left);
        hn_process_free(&r);
    }
    int32_t pid[4];
    assert_int_equal(hn_os_children(pid, 4), 0);
}

/* A process that changes where its parent may run, and so whoever is measured next, is told. */
static void test_cpus_of_the_parent(void **state)
{
    int32_t cpu[64], n = hn_os_cpus(cpu, 64);
    hn_process r;
    if (n < 2 || n == 64 || system("taskset -p $$ >/dev/null 2>&1") != 0) {
        print_message("SKIP: one CPU, or no taskset\n");
        skip();
    }
    run_sh(&r, "exit 0", NULL, false);
    assert_null(r.changed);
    hn_process_free(&r);
    char script[80];
    snprintf(script, sizeof script, "taskset -cp %d $PPID >/dev/null", (int)cpu[0]);
    run_sh(&r, script, NULL, false);
    const char *changed = r.changed;
    hn_process_free(&r);
    assert_true(hn_os_run_on(cpu, n));
    assert_string_equal(changed, "the CPUs that its parent may run on");
}

/* Nor what it may use, nor how soon it gets it. */
static void test_standing_of_the_parent(void **state)
{
    static const struct {
        const char *tool, *change, *back, *saying;
    } t[] = { { "prlimit --version", "prlimit --pid $PPID --nofile=200:1000000", NULL, "the limits of its parent" },
              { "[ \"$(nice -n -1 nice)\" != \"$(nice)\" ]", "renice -n 1 -p $PPID", "renice -n -1 -p $PPID",
                "the priority of its parent" } };
    int tried = 0;
    struct rlimit was;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char cmd[200];
        hn_process r;
        snprintf(cmd, sizeof cmd, "%s >/dev/null 2>&1", t[i].tool);
        if (system(cmd) != 0) continue;
        snprintf(cmd, sizeof cmd, "%s >/dev/null 2>&1", t[i].change);
        run_sh(&r, cmd, NULL, false);
        const char *changed = r.changed;
        const bool could = r.exit_code == 0;
        hn_process_free(&r);
        setrlimit(RLIMIT_NOFILE, &was);
        if (could && t[i].back) run_sh(&r, t[i].back, NULL, false), hn_process_free(&r);
        if (!could) continue;
        tried++;
        assert_non_null(changed);
        assert_string_equal(changed, t[i].saying);
    }
    if (!tried) {
        print_message("SKIP: nobody here may change what a process may do\n");
        skip();
    }
}

/* Dead, with nobody yet to ask for its status (init may be slow, or not there). */
static bool is_zombie(int pid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const char *end = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    fclose(f);
    return end && end[1] == ' ' && end[2] == 'Z';
}

/* Asked to stop, between signals, until the command has said that it runs. */
static void on_alarm(int sig) {}
static char started[] = "/tmp/test_sides.XXXXXX";
static bool has_started(void *unused) { return access(started, F_OK) == 0; }

static void test_stop(void **state)
{
    char script[160];
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    const struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction old, a = { .sa_handler = on_alarm };
    hn_process r;
    int fd = mkstemp(started);
    assert_true(fd >= 0);
    close(fd);
    unlink(started);
    snprintf(script, sizeof script, "sleep 1000 & echo $! >%s.new; mv %s.new %s; wait", started, started, started);
    sigaction(SIGALRM, &a, &old);
    setitimer(ITIMER_REAL, &often, NULL);
    hone_status st = hn_process_run(&r, &(hn_process_params){ .argv = argv, .stop = has_started }, NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    assert_int_equal(st, HONE_E_INTERRUPTED);
    FILE *f = fopen(started, "r"); /* it and what it started were killed, not waited for */
    int pid = 0;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d", &pid), 1);
    fclose(f);
    unlink(started);
    for (int i = 0; i < 6000 && kill(pid, 0) == 0 && !is_zombie(pid); i++)
        usleep(10000); /* a minute: signals take their time */
    assert_true(kill(pid, 0) != 0 || is_zombie(pid));
}

/* And what a side leaves behind when it is only asked: it would take time from whoever is measured next. */
static void test_left_behind_answers(void **state)
{
    static const char *const does[] = {
        "sleep 60 >/dev/null 2>&1 &\necho '{\"valid\":true,\"quality\":\"q2-00000001-00000001\"}'",
        "case \"$*\" in *--help*) sleep 60 >/dev/null 2>&1 & ;; esac\necho '{\"valid\":true,\"quality\":\"q2-1-1\"}'"
    };
    char path[64], hash[24], why[512];
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    if (access(path, R_OK) != 0) {
        print_message("SKIP: the system does not tell children\n");
        skip();
    }
    for (int i = 0; i < 2; i++) {
        hn_side *s = NULL;
        hone_error err = { 0 };
        const hn_target t = { .id = "e2e", .model = "/nonexistent/m.gguf" };
        fake("leaver", does[i]);
        hone_status st = hn_side_open(&s, at("leaver"), &(hn_side_params){ 0 }, &err);
        if (st == HONE_OK) st = hn_side_quality(s, &t, hash, why, sizeof why, &err);
        assert_int_equal(st, HONE_E_NUMERIC);
        assert_non_null(strstr(err.message, "left 1 process behind"));
        hn_side_close(s);
    }
}

/* ---- words ------------------------------------------------------------------------------------------ */

static void test_configurations(void **state)
{
    hn_side *s = side("threads=1,kv=q8_0,env:HONE_CPU=avx2,env:EMPTY=");
    assert_string_equal(hn_side_label(s), "threads=1,kv=q8_0,env:HONE_CPU=avx2,env:EMPTY=");
    json_t *o = hn_side_json(s);
    assert_string_equal(json_string_value(json_object_get(o, "what")), "config");
    assert_string_equal(json_string_value(json_object_get(json_object_get(o, "config"), "kv")), "q8_0");
    assert_string_equal(json_string_value(json_object_get(json_object_get(o, "env"), "HONE_CPU")), "avx2");
    assert_string_equal(json_string_value(json_object_get(json_object_get(o, "env"), "EMPTY")), "");
    assert_string_equal(json_string_value(json_object_get(o, "version")), hone_version());
    assert_true(json_is_null(json_object_get(o, "quality")));
    json_decref(o);
    hn_side_close(s);
    hn_side_close(side("this"));
    refused("", HONE_E_ARG, "empty side");
    refused("threads=1,", HONE_E_ARG, "is no setting");
    refused("this,threads", HONE_E_ARG, "'threads' is no setting");
    refused("env:=1", HONE_E_ARG, "without a name");
    refused("/no/such/file", HONE_E_IO, "No such file");
    refused("no-such-word", HONE_E_ARG, "no file and no commit");
    refused("tests", HONE_E_ARG, "not a program");
    refused("Makefile", HONE_E_ARG, "not a program");
    refused("/bin/true", HONE_E_ARG, "not a hone program");
}

/* ---- programs --------------------------------------------------------------------------------------- */

/* Who was asked for one thread, and computes with two, is seen by all of its CPU time beside its own: whenever both had
 * a CPU, which others may not leave them. */
static void test_threads_as_asked(void **state)
{
    enum { TIMES = 4 };
    static const char does[] =
        "burn() { i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; }\n"
        "case \"$*\" in *--kv=f32*) burn & ;; esac\nburn; wait\n"
        "echo '{\"schema\":\"hone.bench/1\",\"load_ms\":0,\"decode_tok_s\":9,\"quality\":null,\"valid\":null}'";
    static const struct {
        hn_target t;
        bool one; /* thread is asked for */
    } rows[] = { { { .id = "e2e", .model = "m", .args = { "--threads=1" } }, true },
                 { { .id = "e2e", .model = "m", .args = { "--threads=2", "--kv=f32" } }, false },
                 { { .id = "e2e", .model = "m", .args = { "--kv=f32" } }, false },
                 { { .id = "e2e", .model = "m", .args = { "--threads=1", "--kv=f32" } }, true } };
    fake("threads", does);
    hn_side *s = side(at("threads"));
    for (size_t i = 0; i < TIMES * sizeof rows / sizeof *rows; i++) {
        hn_measured m;
        hone_error err = { 0 };
        assert_int_equal(hn_side_measure(&m, s, &rows[i / TIMES].t, 1, &err), HONE_OK);
        const double wall = hn_measured_find(&m, "wall")->value, cpu = hn_measured_find(&m, "cpu_ms")->value;
        const bool beyond = rows[i / TIMES].one && cpu > 1.05 * wall + 10;
        if (beyond != (m.invalid[0] != 0)) fail_msg("case %zu: %.1f of %.1f ms: '%s'", i, cpu, wall, m.invalid);
        if (beyond) assert_non_null(strstr(m.invalid, "more than the 1 thread that it was asked to have"));
    }
    hn_side_close(s);
}

static const char old_bench[] =
    "echo "
    "'{\"schema\":\"hone.bench/"
    "1\",\"load_ms\":5,\"ttft_ms\":null,\"prefill_tok_s\":200,\"decode_tok_s\":100,\"peak_anon_mb\":7,"
    "\"quality\":\"q1-11111111-22222222\",\"valid\":null,\"invalid_reason\":null}'";

static void test_a_program(void **state)
{
    hn_measured m;
    hone_error err = { 0 };
    fake("old", old_bench);
    sh(": >args");
    char spec[200];
    snprintf(spec, sizeof spec, "%s,t=3,packed=off", at("old"));
    hn_side *s = side(spec);
    hn_target t = { .id = "e2e", .model = "m.gguf", .args = { "--n-prompt=9" } };
    assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), HONE_OK);
    sh("grep -qx 'bench --model=m.gguf --n-prompt=9 --threads=3 --packed=off -r 1 --no-quality --json' args");
    /* the side's words come last and win */
    assert_true(hn_measured_find(&m, "decode")->value == 100 && hn_measured_find(&m, "decode")->higher);
    assert_true(hn_measured_find(&m, "load_ms")->value == 5 && !hn_measured_find(&m, "load")->higher);
    assert_null(hn_measured_find(&m, "ttft"));
    assert_true(hn_measured_find(&m, "wall")->value > 0 && hn_measured_find(&m, "rss")->value > 0);
    assert_string_equal(m.invalid, "");
    char hash[24], why[200];
    assert_int_equal(hn_side_quality(s, &t, hash, why, sizeof why, &err), HONE_OK);
    assert_string_equal(hash, "q1-11111111-22222222");
    assert_string_equal(why, "");
    sh(": >args"); /* remembered */
    assert_int_equal(hn_side_quality(s, &t, hash, why, sizeof why, &err), HONE_OK);
    sh("[ ! -s args ]");
    json_t *o = hn_side_json(s);
    assert_string_equal(json_string_value(json_object_get(o, "what")), "binary");
    assert_string_equal(json_string_value(json_object_get(o, "version")), "0.0.9");
    assert_string_equal(json_string_value(json_object_get(o, "commit")), "abcdef123456");
    assert_true(json_is_true(json_object_get(o, "dirty")));
    assert_string_equal(json_string_value(json_object_get(o, "quality")), "q1-11111111-22222222");
    json_decref(o);
    hn_side_close(s);
}

/* A program that can prove its answers must, one that has the newer hash must give it, and what its record says at the
 * top is what its sample says. */
static void test_programs_that_could(void **state)
{
    static const char sample[] = "[{\"gaps_ms\":[10,10],\"decode_tok_s\":100,\"ttft_ms\":81,"
                                 "\"prefill_tok_s\":100}]";
    static const char proof[] = "{\"proof\":{\"steps\":3,\"ids\":\"1\",\"all\":\"2\"}}";
    static const struct {
        const char *extra, *quality;
        int rate;
        const char *samples, *saying;
    } t[] = { { proof, "q2-11111111-22222222", 100, sample, "" },
              { "{}", "q2-11111111-22222222", 100, sample, "proves nothing of its answer, and its program" },
              { "{\"proof\":{}}", "q2-11111111-22222222", 100, sample, "proves nothing of its answer" },
              { proof, "q2-11111111-22222222", 130, sample, "the record says decode_tok_s 130, and its samples 100" },
              { proof, "q2-11111111-22222222", 100, "[]", "none of its samples does" },
              { proof, "q1-11111111-22222222", 100, sample, "a hash of the older kind" } };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char does[2000], hash[24], why[200], lie[1100];
        hn_measured m;
        hn_same *same;
        hone_error err = { 0 };
        hn_target target = { .id = "e2e", .model = "m" };
        snprintf(does, sizeof does,
                 "[ \"$2\" = --help ] && echo '--prompt-seed S  --quality HOW' && exit\n"
                 "echo '{\"config\":{\"n_prompt\":8},\"decode_tok_s\":%d,\"samples\":%s,\"extra\":%s,"
                 "\"quality\":\"%s\",\"quality_detail\":{\"q1\":\"q1-11111111-22222222\"},\"valid\":true}'",
                 t[i].rate, t[i].samples, t[i].extra, t[i].quality);
        fake("new", does);
        hn_side *s = side(at("new"));
        assert_int_equal(hn_same_new(&same, s, s, false, false, 1, &err), HONE_OK);
        assert_int_equal(hn_side_measure(&m, s, &target, 1, &err), HONE_OK);
        snprintf(lie, sizeof lie, "%s", m.invalid);
        if (!lie[0] && hn_same_check(same, s, &target, &m, &err) != HONE_OK)
            snprintf(lie, sizeof lie, "%s", err.message);
        assert_int_equal(hn_side_quality(s, &target, hash, why, sizeof why, &err), HONE_OK);
        if (!lie[0]) snprintf(lie, sizeof lie, "%s", why);
        if (!t[i].saying[0] ? lie[0] != 0 : !strstr(lie, t[i].saying)) fail_msg("case %zu: '%s'", i, lie);
        hn_same_free(same);
        hn_side_close(s);
    }
}

static void test_records_of_suites(void **state)
{
    hn_measured m;
    hone_error err = { 0 };
    hn_target t = { .id = "tok.*" };
    fake("suite", "echo '{\"schema\":\"hone.suite/1\",\"records\":["
                  "{\"id\":\"tok.encode\",\"unit\":\"us\",\"better\":\"lower\",\"config\":{\"threads\":1},\"stats\":{"
                  "\"median\":4.5},\"valid\":true},"
                  "{\"id\":\"tok.decode\",\"unit\":\"MB/"
                  "s\",\"better\":\"higher\",\"config\":{\"threads\":1,\"variant\":\"long\"},\"stats\":{\"median\":70},"
                  "\"valid\":true}]}'");
    hn_side *s = side(at("suite"));
    assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), HONE_OK);
    assert_true(hn_measured_find(&m, "tok.encode/t1")->value == 4.5 && !hn_measured_find(&m, "tok.encode/t1")->higher);
    assert_true(hn_measured_find(&m, "tok.decode/long/t1")->value == 70 &&
                hn_measured_find(&m, "tok.decode/long/t1")->higher);
    hn_side_close(s);
    fake("kern", "echo "
                 "'{\"schema\":\"hone.kern/"
                 "1\",\"results\":[{\"id\":\"kern.norm.96\",\"unit\":\"us\",\"value\":0.5,\"valid\":false,\"invalid_"
                 "reason\":\"differs\"}]}'; exit 1");
    s = side(at("kern"));
    assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), HONE_OK);
    assert_true(hn_measured_find(&m, "kern.norm.96")->value == 0.5);
    assert_string_equal(m.invalid, "kern.norm.96: differs");
    hn_side_close(s);
}

/* Names that begin alike, or hold commas, are names; one name of two records is none. */
static void test_names_of_records(void **state)
{
    static const char *const row =
        "{\"id\":\"e2e.scale.batch\",\"unit\":\"tok/"
        "s\",\"better\":\"higher\",\"config\":{\"variant\":\"%s\"},\"stats\":{\"median\":%d},\"valid\":true}";
    char list[4000], text[4400], name[64];
    hn_measured m;
    hone_error err = { 0 };
    hn_target t = { .id = "e2e.scale.batch" };
    for (int twice = 0; twice < 2; twice++) {
        size_t n = 0;
        for (int i = 0; i < 18; i++) { /* more than any bench has */
            snprintf(name, sizeof name, "%d sequences, %s", i / 2 + 1,
                     i % 2 && !(twice && i == 17) ? "prefill" : "decode");
            n += (size_t)snprintf(list + n, sizeof list - n, i ? "," : "");
            n += (size_t)snprintf(list + n, sizeof list - n, row, name, 100 + i);
        }
        snprintf(text, sizeof text, "echo '{\"schema\":\"hone.suite/1\",\"records\":[%s]}'", list);
        fake("suite", text);
        hn_side *s = side(at("suite"));
        assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), twice ? HONE_E_FORMAT : HONE_OK);
        if (twice) assert_non_null(strstr(err.message, "two records are called e2e.scale.batch/9 sequences decode"));
        for (int i = 0; i < 18 && !twice; i++) {
            snprintf(name, sizeof name, "e2e.scale.batch/%d sequences %s", i / 2 + 1, i % 2 ? "prefill" : "decode");
            const hn_measured_metric *x = hn_measured_find(&m, name);
            if (!x || x->value != 100 + i) fail_msg("%s", name);
        }
        hn_side_close(s);
    }
}

/* Kernels of all shapes are hundreds of records: all are judged, and what all of them prove is kept, or it is said. */
static void test_many_records(void **state)
{
    enum { MANY = 300, EACH = 250, LONG = 70000 };
    static const char *const row =
        "%s{\"id\":\"kern.gemm\",\"unit\":\"TOPS\",\"better\":\"higher\",\"config\":{\"variant\":\"%d\"},\"stats\":{"
        "\"median\":%d},\"valid\":true,\"extra\":{\"proof\":{\"output\":\"%.*d\"}}}";
    hn_measured m;
    hone_error err = { 0 };
    hn_target t = { .id = "kern.gemm.Q4_K" };
    char *text = malloc(MANY * EACH + LONG);
    for (int wide = 0; wide < 2; wide++) {
        size_t n = (size_t)sprintf(text, "echo '{\"schema\":\"hone.suite/1\",\"records\":[");
        for (int i = 0; i < MANY; i++)
            n += (size_t)sprintf(text + n, row, i ? "," : "", i, i + 1, wide && i == 7 ? LONG - 100 : 16, i);
        sprintf(text + n, "]}'");
        fake("suite", text);
        hn_side *s = side(at("suite"));
        assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), wide ? HONE_E_ARG : HONE_OK);
        if (wide) assert_non_null(strstr(err.message, "what 300 records prove of their answers is too long"));
        else {
            assert_true(hn_measured_find(&m, "kern.gemm/299")->value == 300);
            assert_non_null(strstr(m.proof, "\"kern.gemm 300\":{\"output\":\"0000000000000299\"}"));
        }
        hn_side_close(s);
    }
    free(text);
}

/* Benches whose model is asked the same are one question; one without a model is none. */
static void test_targets_answering(void **state)
{
    const hn_target t[] = { { .id = "kern.norm.96" },
                            { .id = "e2e", .model = "m", .args = { "--kv=q8_0", "--n-prompt=9" } },
                            { .id = "e2e.gen", .model = "m", .args = { "--threads=1", "--kv=q8_0" } },
                            { .id = "tok.encode", .model = "m" } };
    const hn_target *of[4];
    assert_int_equal(hn_targets_answering(of, t, 4), 2);
    assert_ptr_equal(of[0], &t[1]);
    assert_ptr_equal(of[1], &t[3]);
    assert_int_equal(hn_targets_answering(of, t, 1), 0);
}

static void test_bad_programs(void **state)
{
    static const struct {
        const char *does, *saying;
    } bad[] = {
        { "echo 'hone: unknown option --packed' >&2; exit 2", "exit code 2: hone: unknown option --packed" },
        { "echo nonsense", "printed no result" },
        { "echo '[1]'", "printed no result" },
        { "kill -KILL $$", "died of signal 9" },
        { "echo '{\"schema\":\"hone.bench/1\",\"valid\":true}'", "printed no result" },
        { "echo '{\"decode_tok_s\":1}'; exit 1", "exit code 1" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hn_measured m;
        hone_error err = { 0 };
        char hash[24], why[200];
        fake("bad", bad[i].does);
        hn_side *s = side(at("bad"));
        hn_target t = { .id = "e2e", .model = "m" };
        hone_status expected =
            i == 0 ? HONE_E_ARG : HONE_E_FORMAT; /* a setting it does not know is the caller's mistake */
        assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), expected);
        if (!strstr(err.message, bad[i].saying)) print_error("%s\n", err.message);
        assert_non_null(strstr(err.message, bad[i].saying));
        if (i < 4) assert_int_equal(hn_side_quality(s, &t, hash, why, sizeof why, &err), expected);
        hn_side_close(s);
    }
    fake("bad",
         "echo "
         "'{\"schema\":\"hone.bench/1\",\"decode_tok_s\":9,\"quality\":null,\"valid\":false,\"invalid_reason\":\"the "
         "logits hold a NaN\"}'; exit 1");
    hn_side *s = side(at("bad"));
    hn_target t = { .id = "e2e", .model = "m" };
    char hash[24], why[200];
    assert_int_equal(hn_side_quality(s, &t, hash, why, sizeof why, NULL), HONE_OK);
    assert_string_equal(hash, "");
    assert_string_equal(why, "the logits hold a NaN");
    hn_side_close(s);
}

/* ---- commits ---------------------------------------------------------------------------------------- */

static void test_commits(void **state)
{
    const char *git[] = { "/bin/sh", "-c", "git --version && make --version", NULL };
    hn_process r;
    assert_int_equal(hn_process_run(&r, &(hn_process_params){ .argv = git }, NULL), HONE_OK);
    bool there = r.exit_code == 0;
    hn_process_free(&r);
    if (!there) {
        print_message("SKIP: no git or no make\n");
        skip();
    }
    char cwd[1000];
    assert_non_null(getcwd(cwd, sizeof cwd));
    fake("commit_hone", old_bench);
    sh("mkdir repo && cd repo && git init -q . && git config user.email t@example.org && git config user.name t && cp "
       "../commit_hone source &&"
       "printf 'build/release/hone:\\n\\tmkdir -p build/release && cp source $@ && echo built >>../../../builds\\n' "
       ">Makefile &&"
       "git add . && git commit -qm one && git tag good && printf 'build/release/hone:\\n\\techo \"x.c:1: error: no "
       "luck\" >&2; false\\n' >Makefile && git commit -qam two");
    assert_int_equal(setenv("XDG_CACHE_HOME", at("cache"), 1), 0);
    assert_int_equal(chdir(at("repo")), 0);
    hn_side *s = side("git:good");
    json_t *o = hn_side_json(s);
    assert_string_equal(json_string_value(json_object_get(o, "what")), "commit");
    assert_int_equal(strlen(json_string_value(json_object_get(o, "commit"))), 12);
    assert_true(json_is_false(json_object_get(o, "dirty")));
    json_decref(o);
    hn_measured m;
    hn_target t = { .id = "e2e", .model = "m" };
    assert_int_equal(hn_side_measure(&m, s, &t, 1, NULL), HONE_OK);
    hn_side_close(s);
    hn_side_close(side("good")); /* a word that names a commit and no file; built before */
    hn_side_close(side("HEAD~1,threads=2"));
    sh("[ $(wc -l <cache/builds) -eq 1 ]");
    refused("HEAD", HONE_E_IO, "x.c:1: error: no luck");
    refused("git:nothing", HONE_E_ARG, "no commit");
    refused("git:--all", HONE_E_ARG, "no commit");

    /* what an interrupted run left is cleared away, wherever it stopped; $D is the folder of the build */
    static const char *const left[] = {
        "rm -rf $D/build $D/Makefile $D.ready", /* in a checkout, early */
        "rm -rf $D/build $D/source $D.ready",   /* in a checkout, later: the Makefile is there */
        "rm -rf $D && mkdir $D",                /* before a checkout, or by hand */
        "rm -rf $D",                            /* by hand */
        "rm -rf $D/build $D.ready && git -C repo worktree prune && rm -rf repo/.git/worktrees",
        /* git has forgotten it */
        "mv $D $D.trash",  /* in a clearing */
        "rm -rf $D/build", /* in make */
    };
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char script[700];
        snprintf(script, sizeof script,
                 "D=$PWD/cache/hone/builds/$(git -C repo rev-parse good | cut -c 1-16); rm -f cache/builds; %s",
                 left[i]);
        sh("%s", script);
        hn_side_close(side("good"));
        sh("[ $(wc -l <cache/builds) -eq 1 ] && [ -z \"$(ls cache/hone/builds | grep trash)\" ]");
    }
    /* what is not hone's stays, and is told with the way out */
    sh("D=$PWD/cache/hone/builds/$(git -C repo rev-parse good | cut -c 1-16); rm -rf $D && mkdir $D && echo mine "
       ">$D/keep");
    refused("good", HONE_E_IO, "is in the way of building");
    refused("good", HONE_E_IO, "rm -r ");
    sh("D=$PWD/cache/hone/builds/$(git -C repo rev-parse good | cut -c 1-16); [ -s $D/keep ] && rm -rf $D && echo mine "
       ">$D");
    refused("good", HONE_E_IO, "is in the way of building");
    sh("D=$PWD/cache/hone/builds/$(git -C repo rev-parse good | cut -c 1-16); [ -f $D ] && rm $D");
    hn_side_close(side("good"));
    assert_int_equal(chdir(cwd), 0);
}

/* ---- commands --------------------------------------------------------------------------------------- */

static void test_commands(void **state)
{
    hn_side *s;
    hn_measured m;
    hone_error err = { 0 };
    hn_side_params p = { .command = true };
    assert_int_equal(hn_side_open(&s, "echo 'took 12.5 ms'; echo \"${#HONE_AB_PAD}\" >>len", &p, &err), HONE_OK);
    hn_target t = { .number = "took ([0-9.]+)" };
    for (uint64_t salt = 0; salt < 4; salt++) assert_int_equal(hn_side_measure(&m, s, &t, salt, &err), HONE_OK);
    assert_true(hn_measured_find(&m, "number")->value == 12.5);
    const char *argv[] = { "/bin/sh", "-c", "[ $(sort -u len | wc -l) -gt 1 ] && rm len",
                           NULL }; /* the environment's size changes */
    hn_process r;
    assert_int_equal(hn_process_run(&r, &(hn_process_params){ .argv = argv }, NULL), HONE_OK);
    assert_int_equal(r.exit_code, 0);
    hn_process_free(&r);
    t.number = "took nothing";
    assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "nothing like"));
    t.number = "(took)";
    assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "no number"));
    t.number = "took (";
    assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), HONE_E_ARG);
    hn_side_close(s);
    unlink("len");
    assert_int_equal(hn_side_open(&s, "echo bad luck >&2; exit 4", &p, &err), HONE_OK);
    t.number = NULL;
    assert_int_equal(hn_side_measure(&m, s, &t, 1, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "exit code 4: bad luck"));
    hn_side_close(s);
}

/* ---- kernels stay ----------------------------------------------------------------------------------- */

static void test_resident_kernels(void **state)
{
    hn_side *a = side("layout=plain"), *b = side("layout=packed,threads=1"), *c = side("kv=f32"),
            *d = side("threads=0");
    hn_target t = { .id = "kern.gemv.Q8_0.64x256", .threads = 1 }, e2e = { .id = "e2e" };
    hn_measured m;
    hone_error err = { 0 };
    assert_true(hn_sides_resident(a, b, &t) && !hn_sides_resident(a, c, &t) && !hn_sides_resident(a, b, &e2e));
    assert_int_equal(hn_side_settle(a, &t, &err), HONE_OK);
    assert_int_equal(hn_side_measure(&m, a, &t, 0, &err), HONE_OK);
    assert_true(m.n == 1 && hn_measured_find(&m, "us")->value > 0);
    assert_int_equal(hn_side_settle(d, &t, &err), HONE_OK);
    assert_int_equal(hn_side_measure(&m, d, &t, 0, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "expected a number from 1"));
    hn_side_close(a);
    hn_side_close(b);
    hn_side_close(c);
    hn_side_close(d);
}

/* ---- whole comparisons of programs whose numbers are known ------------------------------------------ */

static void compare(hn_ab_report *r, const char *a, const char *b, const char *metrics)
{
    hn_target t = { .id = "e2e", .model = "m" };
    hn_ab_params p = { .targets = &t,
                       .n_targets = 1,
                       .a = side(at(a)),
                       .b = side(at(b)),
                       .rounds = 8,
                       .runs = 1,
                       .seed = 7,
                       .metrics = metrics };
    hone_error err = { 0 };
    hone_status st = hn_ab_run(r, &p, &err);
    if (st != HONE_OK) print_error("%s\n", err.message);
    assert_int_equal(st, HONE_OK);
    hn_environ env = { 0 };
    json_t *o = hn_ab_record(r, &r->line[0], p.a, p.b, &env);
    assert_string_equal(json_string_value(json_object_get(o, "schema")), "hone.ab/1");
    for (const char *const *k =
             (const char *const[]){ "id", "metric", "unit", "a", "b", "seed", "rounds", "n", "looks", "ratio", "ci95",
                                    "coverage", "margin", "aa_half_width", "verdict", "note", "env", "ts", NULL };
         *k; k++)
        assert_non_null(json_object_get(o, *k));
    json_t *rounds = json_object_get(o, "rounds");
    assert_int_equal(json_array_size(rounds), r->line[0].n_rounds);
    size_t ab = 0;
    for (size_t i = 0; i < json_array_size(rounds); i++)
        ab += strcmp(json_string_value(json_object_get(json_array_get(rounds, i), "order")), "AB") == 0;
    if (json_array_size(rounds) % 2 == 0) assert_int_equal(2 * ab, json_array_size(rounds));
    json_decref(o);
    hn_side_close(p.a);
    hn_side_close(p.b);
}

static void speaks(const char *name, double decode)
{
    char script[600]; /* ± 0.1 %, by the process number, so that nothing is suspiciously equal */
    snprintf(script, sizeof script,
             "echo \"{\\\"decode_tok_s\\\":$(( %d + ($$ * 7919) %% 20 )),\\\"prefill_tok_s\\\":1000}\"",
             (int)(decode * 100));
    fake(name, script);
}

static void test_verdicts_of_known_programs(void **state)
{
    static const struct {
        double b;
        hn_ab_verdict v;
    } cases[] = { { 95, HN_AB_REGRESSED }, { 100, HN_AB_SAME }, { 106, HN_AB_IMPROVED }, { 99, HN_AB_SAME } };
    speaks("A", 100);
    for (size_t i = 0; i < 4; i++) {
        hn_ab_report r;
        speaks("B", cases[i].b);
        compare(&r, "A", "B", "decode");
        assert_int_equal(r.line[0].r.verdict, cases[i].v);
        assert_int_equal(r.overall, cases[i].v);
        assert_true(fabs(r.line[0].r.ratio - cases[i].b / 100) < 0.003);
        assert_true(isnan(r.line[0].aa_half_width));          /* too few to say it by */
        assert_true(r.line[0].aa_n == 4 || r.line[0].voided); /* rounds put aside break their pairs */
        assert_true(r.line[0].r.margin == 0.02);
        assert_int_equal(r.looks, 1);
        assert_int_equal(r.line[0].n_rounds - r.line[0].voided, 8);
        hn_ab_report_free(&r);
    }
    hn_ab_report r; /* 2 % is the margin: never an improvement, and all looks may not settle it */
    speaks("B", 98);
    compare(&r, "A", "B", "decode,prefill");
    assert_int_equal(r.n, 2);
    assert_int_not_equal(r.overall, HN_AB_IMPROVED);
    assert_int_equal(r.line[1].r.verdict, HN_AB_SAME);
    if (r.overall == HN_AB_INCONCLUSIVE) {
        assert_int_equal(r.line[0].n_rounds - r.line[0].voided, 64);
        assert_true(r.line[0].aa_half_width < 0.005 && r.line[0].aa_n >= 16);
    }
    hn_ab_report_free(&r);
}

/* Sides that may answer differently, and do of one of two benches: that is never called better, the other is. Where
 * they may not, it is a failure. */
static void test_differences_that_are_allowed(void **state)
{
    static const char *const script =
        "v=$(( %d + ($$ * 7919) %% 20 )); echo \"{\\\"records\\\":[{\\\"id\\\":\\\"$2\\\",\\\"unit\\\":\\\"us\\\","
        "\\\"better\\\":\\\"lower\\\",\\\"stats\\\":{\\\"median\\\":$v},\\\"extra\\\":{\\\"proof\\\":{\\\"output\\\":"
        "\\\"$(case $2 in tok.decode) echo %s;; *) echo 1;; esac)\\\"}}}]}\"";
    const hn_target t[] = { { .id = "tok.encode" }, { .id = "tok.decode" } };
    char does[900];
    hn_ab_report r;
    hone_error err = { 0 };
    snprintf(does, sizeof does, script, 11000, "2");
    fake("A", does);
    snprintf(does, sizeof does, script, 10000, "3");
    fake("B", does);
    hn_ab_params p = {
        .targets = t, .n_targets = 2, .a = side(at("A")), .b = side(at("B")), .rounds = 8, .runs = 1, .seed = 7
    };
    assert_int_equal(hn_ab_run(&r, &p, &err), HONE_E_NUMERIC);
    assert_non_null(strstr(err.message, "different answers"));
    p.allowed = true;
    assert_int_equal(hn_ab_run(&r, &p, &err), HONE_OK);
    assert_int_equal(r.line[0].r.verdict, HN_AB_IMPROVED);
    assert_int_equal(r.line[1].r.verdict, HN_AB_DIFFERENT);
    assert_int_equal(r.overall, HN_AB_DIFFERENT);
    assert_string_equal(r.note[0], "tok.decode: the sides answer differently: neither is called better");
    hn_ab_report_free(&r);
    p.n_targets = 1; /* nothing differs */
    assert_int_equal(hn_ab_run(&r, &p, &err), HONE_OK);
    assert_int_equal(r.overall, HN_AB_IMPROVED);
    hn_ab_report_free(&r);
    hn_side_close(p.a);
    hn_side_close(p.b);
}

/* What a ratio means, in words and digits that its interval supports. */
static void test_words(void **state)
{
    static const struct {
        double ratio, lo, hi;
        bool higher;
        const char *unit, *words;
    } t[] = {
        { 0.9285, 0.921, 0.948, false, "ms", "B takes 7.7 % longer (5.5 to 8.6)" },
        { 0.9285, 0.921, 0.948, true, "tok/s", "B takes 7.7 % longer (5.5 to 8.6)" },
        { 1.25, 1.1, 1.4, true, "tok/s", "B takes 20.0 % less time (9.1 to 28.6)" },
        { 1.002, 0.991, 1.011, false, "us", "B takes from 1.09 % less to 0.91 % more time" },
        { 0.5, 0.4999, 0.5001, false, "MB", "B needs 100.00 % more (99.96 to 100.04)" },
        { 0.9, NAN, NAN, false, "ms", "" },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        hn_ab_line l = { .higher = t[i].higher, .r = { .ratio = t[i].ratio, .ci = { t[i].lo, t[i].hi } } };
        char words[200];
        snprintf(l.unit, sizeof l.unit, "%s", t[i].unit);
        assert_string_equal(hn_ab_say(words, sizeof words, &l), t[i].words);
    }
    char label[160];
    hn_ab_progress at = { .look = 0, .done = 3, .total = 20, .left_s = 12.4, .most_s = 130 };
    assert_string_equal(hn_ab_say_progress(label, sizeof label, &at),
                        "look 1 of 4, about 12 s left (2 min if it stays open)");
    at = (hn_ab_progress){ .look = 3, .left_s = 7000, .most_s = 7000 };
    assert_string_equal(hn_ab_say_progress(label, sizeof label, &at), "look 4 of 4, about 2 h left");
}

static void test_digits(void **state)
{
    static const struct {
        double x, half;
        const char *text;
    } t[] = {
        { 2632.4, 134, "2630" },  { 2632.4, 13.4, "2632" }, { 44.1234, 0.8, "44.12" },     { 44.1234, 3.1, "44.1" },
        { 44.1234, NAN, "44.1" }, { 44.1234, 0, "44.12" },  { 0.98761, 0.0004, "0.9876" }, { 123456, 1.5, "123500" },
        { 8.4, 44, "8" },         { NAN, 1, "n/a" },        { -3.456, 0.2, "-3.46" }
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char text[40];
        assert_string_equal(hn_digits(text, sizeof text, t[i].x, t[i].half), t[i].text);
    }
}

/* A machine that tells 20 benches from themselves only within 10 % and more: as many notes as are read, and how many
 * more there are. */
static void test_many_notes(void **state)
{
    enum { BENCHES = HN_AB_NOTES + 4 };
    hn_target t = { .id = "tok" };
    hn_ab_report r;
    hone_error err = { 0 };
    char script[900];
    snprintf(script, sizeof script,
             "echo >>%s/count; v=$((1000 + $(wc -l <%s/count) %% 3 * 200)); i=0; l=\n"
             "while [ $i -lt %d ]; do i=$((i + 1)); "
             "l=\"$l${l:+,}{\\\"id\\\":\\\"tok.$i\\\",\\\"unit\\\":\\\"us\\\",\\\"better\\\":"
             "\\\"lower\\\",\\\"stats\\\":{\\\"median\\\":$v}}\"; done\necho \"{\\\"records\\\":[$l]}\"",
             dir, dir, BENCHES);
    fake("N", script);
    const hn_ab_params p = {
        .targets = &t, .n_targets = 1, .a = side(at("N")), .b = side(at("N")), .rounds = 20, .runs = 1, .looks = 1
    };
    hone_status st = hn_ab_run(&r, &p, &err);
    if (st != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(r.n, BENCHES);
    assert_int_equal(r.n_notes, HN_AB_NOTES + 1);
    assert_non_null(strstr(r.note[0], "tells it from itself only within"));
    assert_true(r.n_unsaid >= 4); /* and that of rounds which a busy machine disturbed */
    snprintf(script, sizeof script, "and %d more such notes", r.n_unsaid);
    assert_string_equal(r.note[HN_AB_NOTES], script);
    hn_ab_report_free(&r);
    hn_side_close(p.a);
    hn_side_close(p.b);
}

static int asked;
static bool stop_third(void *unused) { return ++asked >= 3; }

static void test_comparisons_that_cannot_be(void **state)
{
    hn_target t = { .id = "e2e", .model = "m" };
    hn_ab_report r;
    hone_error err = { 0 };
    speaks("A", 100);
    hn_ab_params p = { .targets = &t,
                       .n_targets = 1,
                       .a = side(at("A")),
                       .b = side(at("A")),
                       .rounds = 8,
                       .runs = 1,
                       .metrics = "beauty" };
    assert_int_equal(hn_ab_run(&r, &p, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "decode_tok_s, prefill_tok_s"));
    hn_side_close(p.b);
    hn_target drone = t; /* one token repeated in what is timed is a note, unless one side has it */
    p.targets = &drone;
    p.metrics = "decode";
    const char *said = "echo '{\"decode_tok_s\":9,\"prefill_tok_s\":1,\"valid\":false,"
                       "\"invalid_reason\":\"degenerate output: one token repeated\"}'";
    fake("D", said);
    p.b = side(at("D"));
    assert_int_equal(hn_ab_run(&r, &p, &err), HONE_E_NUMERIC);
    assert_non_null(strstr(err.message, "b repeated one token"));
    hn_side *good = p.a;
    p.a = side(at("D"));
    assert_int_equal(hn_ab_run(&r, &p, &err), HONE_OK);
    hn_ab_report_free(&r);
    hn_side_close(p.a);
    hn_side_close(p.b);
    p.a = good;
    p.targets = &t;
    p.metrics = "beauty";
    fake("Z", "echo '{\"decode_tok_s\":0,\"prefill_tok_s\":1}'");
    p.b = side(at("Z"));
    p.metrics = NULL;
    assert_int_equal(hn_ab_run(&r, &p, &err), HONE_E_FORMAT);
    hn_side_close(p.b);
    fake("Z", "echo '{\"decode_tok_s\":5,\"valid\":false,\"invalid_reason\":\"above the roof\"}'; exit 1");
    p.b = side(at("Z"));
    assert_int_equal(hn_ab_run(&r, &p, &err), HONE_E_NUMERIC);
    assert_non_null(strstr(err.message, "above the roof"));
    asked = 0;
    p.stop = stop_third; /* stopped early: what there is, no verdict */
    hn_side_close(p.b);
    p.b = side(at("A"));
    t.stop = stop_third;
    assert_int_equal(hn_ab_run(&r, &p, &err), HONE_OK);
    assert_true(r.interrupted && r.overall == HN_AB_INCONCLUSIVE);
    hn_ab_report_free(&r);
    hn_side_close(p.a);
    hn_side_close(p.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_what_is_left_behind),
        cmocka_unit_test(test_cpus_of_the_parent),
        cmocka_unit_test(test_standing_of_the_parent),
        cmocka_unit_test(test_left_behind_answers),
        cmocka_unit_test(test_threads_as_asked),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_a_program),
        cmocka_unit_test(test_programs_that_could),
        cmocka_unit_test(test_records_of_suites),
        cmocka_unit_test(test_names_of_records),
        cmocka_unit_test(test_many_records),
        cmocka_unit_test(test_targets_answering),
        cmocka_unit_test(test_bad_programs),
        cmocka_unit_test(test_commits),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_resident_kernels),
        cmocka_unit_test(test_verdicts_of_known_programs),
        cmocka_unit_test(test_differences_that_are_allowed),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_many_notes),
        cmocka_unit_test(test_comparisons_that_cannot_be),
    };
    snprintf(dir, sizeof dir, "/tmp/hone-sides-XXXXXX");
    if (!mkdtemp(dir)) return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    sh("rm -rf repo cache; find . -type f -delete; find . -type d -empty -delete || true");
    rmdir(dir);
    return rc;
}
