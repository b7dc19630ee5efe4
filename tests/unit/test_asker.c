/* Plain runs that are asked and timed from here (lab/judge/asker.c), by programs of a few lines of shell: whose clock
 * counts, what is asked, and what is no answer. */
#include "lab/judge/asker.h"
#include "lab/bench/asked.h"
#include "lab/judge/front.h"
#include "lab/judge/same.h"
#include "lab/judge/sides.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const model = "models/hone-tiny.gguf";
static char dir[64];
static hn_asker *asker;

enum { PROMPT = 5, GEN = 3 };
/* The last line of a right answer of three tokens to a prompt of five. */
#define ENDS(ids, positions, steps) \
    "echo '{\"ids\":[" ids "],\"positions\":" positions ",\"proof\":{\"steps\":" steps ",\"all\":\"1\"}}'\n"
/* Reads a question of n ids. */
#define READS(n) "dd bs=1 count=$((8 + 4 * " n ")) 2>/dev/null >>question\n"

/* Asks `sh -c script`, in the test's folder. */
static hone_status ask(hn_heard *h, const char *script, int32_t depth, uint64_t question, bool (*stop)(void *),
                       hone_error *err)
{
    char all[2000], depths[40];
    snprintf(all, sizeof all, "cd %s || exit 9\n%s", dir, script);
    snprintf(depths, sizeof depths, "--depth=%d", (int)depth);
    const char *argv[] = { "/bin/sh", "-c", all, "--n-prompt=7", "--n-prompt=5", "--n-gen=3", depths, NULL };
    const hn_ask_run q = { .argv = argv, .question = question, .stop = stop };
    return hn_asker_run(h, asker, &q, err);
}

/* Everything that it was asked, since the last time. */
static size_t asked(int32_t *x, size_t most)
{
    char path[120];
    snprintf(path, sizeof path, "%s/question", dir);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(x, sizeof *x, most, f) : 0;
    if (f) fclose(f);
    unlink(path);
    return n;
}

/* Sleeps are seen, each in its part; a word may come in two pieces, and two words in one. */
static void test_whose_clock(void **state)
{
    static const char *const slow = "sleep 0.05; printf 'rea'; sleep 0.01; printf 'dy 8\\n'\n" READS(
        "5") "sleep 0.1; echo 'first 4'; sleep 0.2; echo 'last 6'\n" ENDS("4,5,6", "7", "3") "sleep 0.1\n";
    hn_heard h;
    hone_error err = { 0 };
    assert_int_equal(ask(&h, slow, 0, 1, NULL, &err), HONE_OK);
    assert_string_equal(h.invalid, "");
    assert_int_equal(h.n_prompt, PROMPT);
    assert_int_equal(h.n_gen, GEN);
    assert_true(h.load_s >= 0.06 && h.prompt_s >= 0.1 && h.gen_s >= 0.2);
    assert_true(h.process.wall_s >= h.load_s + h.prompt_s + h.gen_s + 0.1); /* and what comes behind is nobody's */
    assert_non_null(h.told);
    char children[64]; /* what sleeps is another process, and seen, where the system tells */
    snprintf(children, sizeof children, "/proc/self/task/%ld/children", (long)getpid());
    assert_int_equal(h.n_children > 0, access(children, R_OK) == 0);
    hn_heard_free(&h);
    static const char *const at_once =
        "echo 'ready 8'\n" READS("5") "printf 'first 4\\nlast 6\\n'\n" ENDS("4,5,6", "7", "3");
    assert_int_equal(ask(&h, at_once, 0, 1, NULL, &err), HONE_OK);
    assert_string_equal(h.invalid, "");
    assert_true(h.prompt_s > 0 && h.gen_s >= 0);
    hn_heard_free(&h);
}

/* One question is the same for everyone, and is not to be seen before the clock runs: in no word of a command line. */
static void test_questions(void **state)
{
    static const char *const answers =
        "echo 'ready 8'\n" READS("5") "echo 'first 4'; echo 'last 6'\n" ENDS("4,5,6", "7", "3");
    static const char *const deep = "echo 'ready 8'\n" READS("9") "echo 'filled 9'\n" READS(
        "5") "echo 'first 4'; echo 'last 6'\n" ENDS("4,5,6", "16", "3");
    int32_t one[40], again[40], other[40];
    hn_heard h;
    hone_error err = { 0 };
    int32_t *const into[] = { one, again, other };
    for (int i = 0; i < 3; i++) {
        (void)asked(into[i], 40);
        assert_int_equal(ask(&h, answers, 0, i < 2 ? 77 : 78, NULL, &err), HONE_OK);
        assert_string_equal(h.invalid, "");
        hn_heard_free(&h);
        assert_int_equal(asked(into[i], 40), 2 + PROMPT);
    }
    assert_int_equal(one[0], PROMPT);
    assert_int_equal(one[1], GEN);
    assert_memory_equal(one, again, (2 + PROMPT) * sizeof *one);
    assert_memory_not_equal(one + 2, other + 2, PROMPT * sizeof *one);
    assert_int_equal(ask(&h, deep, 9, 77, NULL, &err), HONE_OK);
    assert_string_equal(h.invalid, "");
    hn_heard_free(&h);
    assert_int_equal(asked(again, 40), 2 + 9 + 2 + PROMPT);
    assert_int_equal(again[0], 9);
    assert_int_equal(again[1], HN_ASKED_FILL);
    assert_memory_equal(again + 2, one + 2, PROMPT * sizeof *one); /* one stream, and the prompt goes on with it */
    assert_memory_not_equal(again + 2 + 9 + 2, one + 2, PROMPT * sizeof *one);
}

static void test_no_answers(void **state)
{
    static const struct {
        const char *script, *saying;
    } t[] = {
        { "echo 'ready 8'\n" READS("5") "echo 'first 4'; echo 'last 6'\n" ENDS("4,5", "7", "3"),
          "2 tokens were generated, 3" },
        { "echo 'ready 8'\n" READS("5") "echo 'first 4'; echo 'last 6'\n" ENDS("4,5,6", "8", "3"),
          "8 positions at the end, expected 7" },
        { "echo 'ready 8'\n" READS("5") "echo 'first 4'; echo 'last 6'\n" ENDS("4,5,6", "7", "2"),
          "logits of 2 steps are proved, expected 3" },
        { "echo 'ready 8'\n" READS("5") "echo 'first 5'; echo 'last 6'\n" ENDS("4,5,6", "7", "3"),
          "token 5 was the first, and then that it was 4" },
        { "echo 'ready 8'\n" READS("5") "echo 'first 4'; echo 'last 5'\n" ENDS("4,5,6", "7", "3"),
          "token 5 was the last, and then that it was 6" },
        { "echo 'ready 8'\n" READS("5") "echo 'first 4'\n" ENDS("4,5,6", "7", "3"), "token -2 was the last" },
        { "echo 'hello'\n", "it said 'hello', expected 'ready' and a number" },
        { "echo 'ready 8'\n" READS("5") "echo 'first x'\n", "it said 'first x', expected 'first'" },
        { "echo 'ready 8'\n" READS("5") "echo 'first 4'; echo 'last 6'; echo '[1]'\n", "it said '[1]', expected" },
        { "echo 'ready 8'\n" READS("5") "echo 'first 4'; echo 'last 6'; echo '{'\n", "did not say what it answered" },
        { "echo 'ready 8'\n" READS("5") "echo 'first 4'; echo 'last 6'\n", "did not say what it answered" },
        { "exit 0", "did not say what it answered" },
        { "echo 'ready 8'\n" READS("5") "echo '{\"invalid_reason\":\"the logits hold a NaN\"}'\n",
          "the logits hold a NaN" },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        hn_heard h;
        hone_error err = { 0 };
        assert_int_equal(ask(&h, t[i].script, 0, 1, NULL, &err), HONE_OK);
        if (!strstr(h.invalid, t[i].saying)) fail_msg("case %zu: '%s'", i, h.invalid);
        hn_heard_free(&h);
    }
    hn_heard h;
    hone_error err = { 0 };
    assert_int_equal(ask(&h, "echo 'ready 8'; echo 'no room' >&2; exit 4", 0, 1, NULL, &err), HONE_OK);
    assert_null(h.told);
    assert_int_equal(h.process.exit_code, 4);
    assert_string_equal(h.process.said, "no room\n");
    hn_heard_free(&h);
}

/* One that says nothing is waited for until somebody stops it. */
static int patience;
static bool impatient(void *unused) { return ++patience > 3; }

static void test_stopped(void **state)
{
    hn_heard h;
    hone_error err = { 0 };
    patience = 0;
    assert_int_equal(ask(&h, "echo 'ready 8'\nexec sleep 1000", 0, 1, impatient, &err), HONE_E_INTERRUPTED);
}

/* A program that tells its own times is no side b of one that can be asked; as side a it is compared by what both
 * know. */
static void test_older_programs(void **state)
{
    static const char *const old =
        "#!/bin/sh\n[ \"$1\" = version ] && echo '{\"version\":\"0.0.9\",\"build\":\"cc\"}' && exit\n"
        "[ \"$2\" = --help ] && echo '--prompt-seed S  --quality HOW' && exit\n"
        "echo '{\"config\":{\"n_prompt\":8},\"decode_tok_s\":100,\"samples\":[{\"gaps_ms\":[10,10],"
        "\"decode_tok_s\":100,\"ttft_ms\":81,\"prefill_tok_s\":100}],\"extra\":{\"proof\":{\"steps\":3,\"ids\":\"1\","
        "\"all\":\"2\"}},\"valid\":true}'\n";
    char path[2][120];
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", dir, i ? "new" : "old");
        FILE *f = fopen(path[i], "w");
        assert_non_null(f);
        if (i)
            fprintf(
                f,
                "#!/bin/sh\n[ \"$1\" = version ] && echo '{\"version\":\"1\",\"build\":\"cc\",\"asked\":1}' && exit\n"
                "[ \"$2\" = --help ] && echo '--prompt-seed S  --quality HOW'\n");
        else fputs(old, f);
        fclose(f);
        assert_int_equal(chmod(path[i], 0755), 0);
    }
    hn_side *side[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(hn_side_open(&side[i], path[i], &(hn_side_params){ 0 }, NULL), HONE_OK);
    assert_false(hn_side_can_talk(side[0]));
    assert_true(hn_side_can_talk(side[1]));
    const hn_target plain = { .id = "e2e", .model = model };
    for (int i = 0; i < 2; i++) {
        hn_same *same;
        hn_measured m;
        hone_error err = { 0 };
        hn_side *a = side[!i], *b = side[i];
        assert_int_equal(hn_same_new(&same, a, b, false, false, 1, &err), HONE_OK);
        assert_int_equal(hn_side_measure(&m, side[0], &plain, 1, &err), HONE_OK);
        hone_status st = hn_same_check(same, side[0], &plain, &m, &err);
        assert_int_equal(st, i ? HONE_OK : HONE_E_NUMERIC);
        if (!i) assert_non_null(strstr(err.message, "tells the times of its runs itself"));
        hn_same_free(same);
    }
    for (int i = 0; i < 2; i++) hn_side_close(side[i]);
}

/* ---- what people start ------------------------------------------------------------------------------ */

static hn_side *program(const char *name, const char *does)
{
    char path[120];
    hn_side *s;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "#!/bin/sh\n[ \"$1\" = version ] && echo '{\"version\":\"1\",\"build\":\"cc\"}' && exit\n"
            "[ \"$1\" = bench ] && exit\n%s\n",
            does);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(hn_side_open(&s, path, &(hn_side_params){ 0 }, NULL), HONE_OK);
    return s;
}

/* A server of nobody: it listens, as it says, and answers nothing. */
#define SERVES "[ \"$1\" = serve ] && echo 'listening on http://127.0.0.1:1' >&2 && exec sleep 1000"

/* The first command whose output differs is named; what side a cannot do is nobody's fault, what b alone cannot is
 * b's. */
static void test_front_texts(void **state)
{
    static const char *const says = "[ \"$1\" = serve ] || echo \"$*\"\n";
    static const struct {
        const char *a, *b, *name, *why;
    } t[] = {
        { "", "", "", "" },
        { "", "case \"$*\" in *--temp=1.5*) echo more ;; esac", "run:drawn", "" },
        { "", "case \"$*\" in *--chat*) echo more ;; esac", "run:chat", "" },
        { "", "[ \"$1\" != tokenize ] || echo more", "run:tokens", "" },
        { "", "[ \"$1\" != chat ] || { read a; read b; echo \"$a $b\"; }", "run:talk", "" }, /* it is given questions */
        { "", "case \"$*\" in tokenize* | *--threads=1*) ;; *) echo more ;; esac", "", "" }, /* both got it */
        { "", "case \"$*\" in *--n-prompt*) echo more ;; esac", "", "" }, /* which is no option of theirs */
        { "exit 2", "case \"$*\" in *--temp=1.5*) echo more ;; esac", "", "" },
        { "", "case \"$*\" in *--regex*) echo 'no such option' >&2; exit 2 ;; esac", "run:form",
          "hone run (form) ended with exit code 2: no such option" },
        { SERVES, "", "serve:server", "hone serve ended by itself, and side a's does not" },
        { SERVES, SERVES, "", "" },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char a[400], b[400];
        hn_front f;
        hone_error err = { 0 };
        const hn_target plain = { .id = "e2e", .model = model, .args = { "--threads=1", "--n-prompt=8" } };
        snprintf(a, sizeof a, "%s%s", says, t[i].a);
        snprintf(b, sizeof b, "%s%s", says, t[i].b);
        hn_side *side[2] = { program("old", a), program("new", b) };
        assert_int_equal(hn_front_texts(&f, side, &plain, 7, &err), HONE_OK);
        if (strcmp(f.name, t[i].name) != 0 || !strstr(f.why, t[i].why))
            fail_msg("case %zu: '%s' '%s'", i, f.name, f.why);
        for (int k = 0; k < 2; k++) hn_side_close(side[k]);
    }
}

/* Much slower in nearly all pairs is slower; as fast now and then is not. */
static void test_front_times(void **state)
{
    static const struct {
        const char *b;
        bool slower;
    } t[] = { { "sleep 0.03", false },
              { "sleep 0.09", true },
              { "[ -e question ] && rm question || { touch question; sleep 0.09; }", false } };
    const hn_target plain = { .id = "e2e", .model = model };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char what[200], b[200];
        snprintf(b, sizeof b, "cd %s && %s", dir, t[i].b);
        hn_side *side[2] = { program("old", "sleep 0.03"), program("new", b) };
        assert_int_equal(hn_front_slower(what, sizeof what, side, &plain, NULL), HONE_OK);
        if (t[i].slower ? !strstr(what, "times as long in") : what[0] != 0) fail_msg("case %zu: '%s'", i, what);
        for (int k = 0; k < 2; k++) hn_side_close(side[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_clock), cmocka_unit_test(test_questions),      cmocka_unit_test(test_no_answers),
        cmocka_unit_test(test_stopped),     cmocka_unit_test(test_older_programs), cmocka_unit_test(test_front_texts),
        cmocka_unit_test(test_front_times),
    };
    signal(SIGPIPE, SIG_IGN); /* as in hone: who does not listen any more is no reason to end */
    snprintf(dir, sizeof dir, "/tmp/hone-asker-XXXXXX");
    if (!mkdtemp(dir)) return 1;
    hone_error err;
    if (hn_asker_new(&asker, model, NULL, &err) != HONE_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    hn_asker_free(asker);
    for (const char *const *name = (const char *const[]){ "question", "old", "new", NULL }; *name; name++) {
        char path[120];
        snprintf(path, sizeof path, "%s/%s", dir, *name);
        unlink(path);
    }
    rmdir(dir);
    return rc;
}
