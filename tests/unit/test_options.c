/* The options table: spellings, numbers, suggestions, contradictions, and what the
 * table prints about itself. */
#include "base/options.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

static const hn_opt own_opts[] = {
    HN_OPT("model", "-m", FILE, "FILE", "model file…", .forward = HN_FORWARD_MODEL),
    HN_OPT("prompt", "-p", STR, "TEXT", "text", .excl = "input"),
    HN_OPT("file", "-f", FILE, "FILE", "file", .excl = "input"),
    HN_OPT("n-predict", "-n --predict", I32, "N", "how many", .def = "128", .min = -1, .max = 1000,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("seed", "-s", U64, "N", "seed", .min = -1),
    HN_OPT("temp", "--temperature", F32, "X", "temperature's [range]: odd 'text' \\ here", .def = "0.8", .min = 0,
           .max = 10),
    HN_OPT("top-k", NULL, I32, "N", "top", .def = "40"),
    HN_OPT("chunk", "-ub --ubatch-size", I32, "N", "chunk", .def = "512", .min = 1, .max = 65536),
    HN_OPT("kv", NULL, CHOICE, "TYPE", "cache", .def = "f16", .choices = "f16|f32", .forward = HN_FORWARD_SETTINGS),
    HN_OPT("stop", NULL, STR, "TEXT", "stop", .repeat = true, .forward = HN_FORWARD_SETTINGS),
    HN_OPT("out", "-o", STR, "FILE", "written", .use = HN_USE_WRITE),
    HN_OPT("ignore-eos", NULL, FLAG, NULL, "go on", .forward = HN_FORWARD_SETTINGS),
    HN_OPT_END,
};
static const hn_opt_group own = { "Own", own_opts };
static const hn_opt common_opts[] = { HN_OPT("json", NULL, FLAG, NULL, "json"), HN_OPT_END };
static const hn_opt_group common_group = { "Common", common_opts };
static const hn_opt_group *const groups[] = { &own, NULL }, *const common[] = { &common_group, NULL };
static const hn_command cmd = {
    .name = "demo", .summary = "Show", .args = "[FILE]", .max_args = 1, .groups = groups, .examples = "hone demo -p x\n"
};
static const hn_opt below_opts[] = { HN_OPT("rounds", "-r", I32, "N", "so often"), HN_OPT_END };
static const hn_opt_group below_group = { "Below", below_opts };
static const hn_opt_group *const below_groups[] = { &below_group, NULL };
static const hn_command below = { .name = "lab ab",
                                  .summary = "Compare two",
                                  .groups = below_groups,
                                  .examples = "hone lab ab x y\n" },
                        below2 = { .name = "lab list", .summary = "List them" };
static const hn_command *const subs[] = { &below, &below2, NULL };
static const hn_command lab = { .name = "lab", .summary = "Laboratory", .args = "COMMAND", .subs = subs };
static const hn_command *const cmds[] = { &cmd, &lab, NULL };

#define ARGS(...) (char *[]){ __VA_ARGS__ }, (int)(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *))

static hn_opts *parse_ok(char **argv, int argc)
{
    hn_opts *o = NULL;
    hone_error err = { 0 };
    if (hn_opts_parse(&o, &cmd, common, argc, argv, &err) != HONE_OK) fail_msg("%s", err.message);
    return o;
}

static const char *parse_bad(char **argv, int argc)
{
    static hone_error err;
    hn_opts *o = (hn_opts *)1;
    assert_int_equal(hn_opts_parse(&o, &cmd, common, argc, argv, &err), HONE_E_ARG);
    assert_null(o);
    return err.message;
}

#define ASSERT_SAYS(msg, part)                                        \
    do {                                                              \
        const char *m_ = (msg);                                       \
        if (!strstr(m_, part)) fail_msg("'%s' lacks '%s'", m_, part); \
    } while (0)

static void spellings(void **state)
{
    hn_opts *o = parse_ok(ARGS("-n", "5", "--temp=0.25", "-ub", "7", "--kv", "f32", "--json", "pos", "-m", "a b.gguf"));
    assert_int_equal(hn_opts_i32(o, "n-predict"), 5);
    assert_float_equal(hn_opts_f32(o, "temp"), 0.25f, 0);
    assert_int_equal(hn_opts_i32(o, "chunk"), 7);
    assert_string_equal(hn_opts_str(o, "kv"), "f32");
    assert_true(hn_opts_flag(o, "json"));
    assert_false(hn_opts_flag(o, "ignore-eos"));
    assert_string_equal(hn_opts_str(o, "model"), "a b.gguf");
    assert_int_equal(hn_opts_n_args(o), 1);
    assert_string_equal(hn_opts_arg(o, 0), "pos");
    assert_null(hn_opts_arg(o, 1));
    assert_false(hn_opts_has(o, "nothing"));
    hn_opts_free(o);
    o = parse_ok(ARGS("--ubatch-size", "9", "--predict=-1", "--temperature", "1e-1"));
    assert_int_equal(hn_opts_i32(o, "chunk"), 9);
    assert_int_equal(hn_opts_i32(o, "n-predict"), -1);
    assert_float_equal(hn_opts_f32(o, "temp"), 0.1f, 0);
    hn_opts_free(o);
}

static void defaults(void **state)
{
    hn_opts *o = parse_ok(ARGS("--json"));
    assert_int_equal(hn_opts_i32(o, "n-predict"), 128);
    assert_float_equal(hn_opts_f32(o, "temp"), 0.8f, 0);
    assert_string_equal(hn_opts_str(o, "kv"), "f16");
    assert_null(hn_opts_str(o, "prompt"));
    assert_false(hn_opts_given(o, "temp"));
    assert_int_equal(hn_opts_u64(o, "seed"), 0);
    assert_int_equal(hn_opts_count(o, "stop"), 0);
    hn_opts_free(o);
}

/* What is supplied afterwards is as if it had been on the command line. */
static void supplied(void **state)
{
    hone_error e;
    hn_opts *o = parse_ok(ARGS("--json"));
    assert_false(hn_opts_given(o, "model"));
    assert_int_equal(hn_opts_supply(o, "model", "found.gguf", &e), HONE_OK);
    assert_true(hn_opts_given(o, "model"));
    assert_string_equal(hn_opts_str(o, "model"), "found.gguf");
    assert_int_equal(hn_opts_count(o, "model"), 1);
    hn_opts_free(o);
}

/* A name becomes a file: the text of a value or an argument, and nothing beside it. */
static void replaced(void **state)
{
    hone_error e;
    char text[] = "/cache/%s/a.gguf";
    hn_opts *o = parse_ok(ARGS("-m", "name", "--stop", "a", "--stop=b", "x", "y"));
    assert_int_equal(hn_opts_replace(o, "model", 0, text, &e), HONE_OK);
    assert_int_equal(hn_opts_replace(o, "stop", 1, "c", &e), HONE_OK);
    assert_int_equal(hn_opts_replace(o, NULL, 1, "z", &e), HONE_OK);
    assert_int_equal(hn_opts_replace(o, NULL, 1, "z2", &e), HONE_OK);
    memset(text, '-', sizeof text - 1); /* it was copied */
    assert_string_equal(hn_opts_str(o, "model"), "/cache/%s/a.gguf");
    assert_int_equal(hn_opts_count(o, "model"), 1);
    assert_string_equal(hn_opts_nth(o, "stop", 0), "a");
    assert_string_equal(hn_opts_nth(o, "stop", 1), "c");
    assert_string_equal(hn_opts_arg(o, 0), "x");
    assert_string_equal(hn_opts_arg(o, 1), "z2");
    hn_opts_free(o);
}

static void values_that_look_like_options(void **state)
{
    hn_opts *o = parse_ok(ARGS("-p", "-f", "--stop", "--", "--stop=", "-n", "-1", "--", "--json", "-"));
    assert_string_equal(hn_opts_str(o, "prompt"), "-f");
    assert_string_equal(hn_opts_nth(o, "stop", 0), "--");
    assert_string_equal(hn_opts_nth(o, "stop", 1), "");
    assert_null(hn_opts_nth(o, "stop", 2));
    assert_int_equal(hn_opts_i32(o, "n-predict"), -1);
    assert_false(hn_opts_flag(o, "json")); /* after "--" it is an argument */
    assert_string_equal(hn_opts_arg(o, 0), "--json");
    assert_string_equal(hn_opts_arg(o, 1), "-");
    hone_error err;
    assert_int_equal(hn_opts_check_args(o, &cmd, &err), HONE_E_ARG);
    ASSERT_SAYS(err.message, "unexpected argument '-'");
    hn_opts_free(o);
}

static void last_one_wins(void **state)
{
    hn_opts *o = parse_ok(ARGS("--temp", "1", "-n", "3", "--temp", "0", "-s", "1", "-s", "-1"));
    assert_float_equal(hn_opts_f32(o, "temp"), 0, 0);
    assert_true(hn_opts_u64(o, "seed") == UINT64_MAX);
    size_t at = 0;
    const char *was, *is;
    assert_string_equal(hn_opts_overruled(o, &at, &was, &is), "-s"); /* not in silence */
    assert_string_equal(was, "1");
    assert_string_equal(is, "-1");
    assert_string_equal(hn_opts_overruled(o, &at, &was, &is), "--temp");
    assert_null(hn_opts_overruled(o, &at, &was, &is));
    hn_opts_free(o);
}

/* Arguments stand for options that are not given. */
static void arguments_for_options(void **state)
{
    static const hn_command taking = { .name = "demo", .groups = groups, .args = "[M] [P]", .takes = "model prompt" };
    hn_opts *o;
    hone_error err;
    char *const both[] = { "m.gguf", "-n", "3", "hello" }, *const one[] = { "-m", "x", "hello" },
                *const many[] = { "m", "p", "q" };
    assert_int_equal(hn_opts_parse(&o, &taking, common, 4, both, &err), HONE_OK);
    assert_string_equal(hn_opts_str(o, "model"), "m.gguf");
    assert_string_equal(hn_opts_str(o, "prompt"), "hello");
    assert_int_equal(hn_opts_n_args(o), 0);
    hn_opts_free(o);
    assert_int_equal(hn_opts_parse(&o, &taking, common, 3, one, &err), HONE_OK);
    assert_string_equal(hn_opts_str(o, "prompt"), "hello");
    hn_opts_free(o);
    assert_int_equal(hn_opts_parse(&o, &taking, common, 3, many, &err), HONE_OK);
    assert_int_equal(hn_opts_check_args(o, &taking, &err), HONE_E_ARG);
    ASSERT_SAYS(err.message, "unexpected argument 'q'; demo takes [M] [P]; text of several words");
    hn_opts_free(o);
}

/* Of two models, of two texts, or two files to write, only one would be used: nobody means that. */
static void files_once(void **state)
{
    assert_non_null(strstr(parse_bad(ARGS("-m", "a", "-m", "b")), "-m is given twice, with 'a' and with 'b'"));
    assert_non_null(strstr(parse_bad(ARGS("--model=a", "-m", "")), "-m is given twice, with 'a' and with ''"));
    assert_non_null(strstr(parse_bad(ARGS("-o", "x", "--out", "y")), "--out is given twice"));
    assert_non_null(strstr(parse_bad(ARGS("-p", "a", "-p", "b")), "-p is given twice, with 'a' and with 'b'"));
    hn_opts *o = parse_ok(ARGS("-m", "a", "--model", "a"));
    assert_string_equal(hn_opts_str(o, "model"), "a");
    hn_opts_free(o);
}

static void words_are(hn_argv *a, const char *expected)
{
    char all[400] = "";
    for (size_t i = 0; i < a->n; i++) snprintf(all + strlen(all), sizeof all - strlen(all), "%s|", a->word[i]);
    assert_string_equal(all, expected);
    assert_true(!a->n || !a->word[a->n]);
    hn_argv_free(a);
}

static void handed_on(void **state)
{
    hn_argv a = { 0 };
    hn_opts *o = parse_ok(ARGS("--kv", "f16", "--kv", "f32", "-m", "a b", "--stop", "x", "--stop=y", "--ignore-eos"));
    hn_opts_forward(o, HN_FORWARD_MODEL | HN_FORWARD_SETTINGS, false, &a);
    words_are(&a, "--model=a b|--kv=f32|--stop=x|--stop=y|--ignore-eos|");
    hn_opts_forward(o, HN_FORWARD_LENGTHS, false, &a);
    words_are(&a, "");
    hn_opts_forward(o, HN_FORWARD_LENGTHS, true, &a);
    words_are(&a, "--n-predict=128|");
    size_t at = 0, n = 0;
    const char *spelled, *names[8];
    while (n < 8 && (names[n] = hn_opts_next(o, &at, &spelled))) n++;
    assert_int_equal(n, 4);
    assert_string_equal(names[0], "model");
    assert_string_equal(spelled, "--ignore-eos");
    hn_opts_free(o);
}

static void each_option_once(void **state)
{
    hn_argv a = { 0 };
    hn_argv_extend(&a, (const char *const[]){ "hone", "bench", "x", "x", "--kv=f16", "--kvx=1", "--flag", NULL });
    hn_argv_extend(&a, (const char *const[]){ "--kv=f32", "--flag", "-r", "1", "-r", "1", "--", NULL });
    hn_argv_set(&a, "kvx", "%d", 2);
    hn_argv_set(&a, "new", "%s", "n=w");
    for (int i = 0; i < 40; i++) hn_argv_add(&a, "%d", i % 2);
    assert_int_equal(a.n, 53);
    while (a.n > 14) free(a.word[--a.n]);
    a.word[a.n] = NULL;
    words_are(&a, "hone|bench|x|x|--kv=f32|--kvx=2|--flag|-r|1|-r|1|--|--new=n=w|0|");
    hn_argv_extend(&a, (const char *const[]){ "hone", "--lora=a", "--kv=f16", "--lora=b", "--lora=c", NULL });
    hn_argv_extend(&a, (const char *const[]){ "-r", "1", NULL });
    words_are(&a, "hone|--lora=a|--kv=f16|--lora=b|--lora=c|-r|1|");
    hn_argv_extend(&a, (const char *const[]){ "hone", "--lora=a", "--kv=f16", "--lora=b", "x", "--lora=c", NULL });
    hn_argv_extend(&a, (const char *const[]){ "--lora=d", "--kv=f32", "--lora=e", NULL });
    words_are(&a, "hone|--lora=d|--kv=f32|x|--lora=e|");
    hn_argv_extend(&a, (const char *const[]){ "--lora=a", "--lora=b", "x", NULL });
    hn_argv_set(&a, "lora", "c");
    words_are(&a, "--lora=c|x|");
    assert_true(hn_argv_is("--kv=1", "kv") && hn_argv_is("--kv", "kv"));
    assert_false(hn_argv_is("--kvx=1", "kv") || hn_argv_is("-kv", "kv") || hn_argv_is("", "kv"));
}

static void bad_numbers(void **state)
{
    static char *const ints[] = { "",    " 1", "1 ", "1x", "0x10", "1.0",
                                  "1e3", "--", "+",  "-",  "NaN",  "99999999999999999999999",
                                  "٣" };
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        const char *m = parse_bad(ARGS("-n", ints[i]));
        ASSERT_SAYS(m, "-n: ");
        ASSERT_SAYS(m, "from -1 to 1000");
    }
    ASSERT_SAYS(parse_bad(ARGS("-n", "1001")), "1001 is out of range");
    ASSERT_SAYS(parse_bad(ARGS("-n", "-2")), "-2 is out of range");
    ASSERT_SAYS(parse_bad(ARGS("--top-k", "2147483648")), "out of range");
    ASSERT_SAYS(parse_bad(ARGS("-s", "-2")), "out of range");
    ASSERT_SAYS(parse_bad(ARGS("-s", "9223372036854775808")), "out of range");
    static char *const floats[] = { "",  "nan", "NAN", "inf", "-inf", "infinity", "0x1p3", "1e",   "1e+",
                                    ".", "-",   " 1",  "1 ",  "1,5",  "1f",       "1e999", "-0.1", "10.5" };
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        const char *m = parse_bad(ARGS("--temp", floats[i]));
        ASSERT_SAYS(m, "--temp: ");
        ASSERT_SAYS(m, "from 0 to 10");
    }
    hn_opts *o = parse_ok(ARGS("--temp", ".5", "-s", "9223372036854775807", "--top-k=+7"));
    assert_float_equal(hn_opts_f32(o, "temp"), 0.5f, 0);
    assert_true(hn_opts_u64(o, "seed") == (uint64_t)INT64_MAX);
    assert_int_equal(hn_opts_i32(o, "top-k"), 7);
    hn_opts_free(o);
}

static void refusals(void **state)
{
    ASSERT_SAYS(parse_bad(ARGS("--tmep", "1")), "unknown option --tmep; did you mean --temp?");
    ASSERT_SAYS(parse_bad(ARGS("--temprature=1")), "did you mean --temperature?");
    ASSERT_SAYS(parse_bad(ARGS("--ignore")), "did you mean --ignore-eos?");
    ASSERT_SAYS(parse_bad(ARGS("-n5")), "unknown option -n5; write -n 5");
    assert_null(strstr(parse_bad(ARGS("--quux")), "did you mean"));
    ASSERT_SAYS(parse_bad(ARGS("-x\n\033")), "-x\\x0a\\x1b");
    ASSERT_SAYS(parse_bad(ARGS("-m")), "-m needs a value: -m FILE");
    ASSERT_SAYS(parse_bad(ARGS("--json=1")), "--json takes no value");
    ASSERT_SAYS(parse_bad(ARGS("--kv", "f64")), "--kv: unknown value 'f64'; expected one of f16|f32");
    ASSERT_SAYS(parse_bad(ARGS("--kv", "f16|f32")), "unknown value");
    ASSERT_SAYS(parse_bad(ARGS("--kv=f")), "unknown value");
    ASSERT_SAYS(parse_bad(ARGS("-f", "a", "-p", "b")), "contradict");
    char longest[5000];
    memset(longest, 'a', sizeof longest - 1);
    longest[0] = longest[1] = '-';
    longest[sizeof longest - 1] = 0;
    ASSERT_SAYS(parse_bad(ARGS(longest)), "unknown option --aaa");
}

static void id_lists(void **state)
{
    int32_t *ids;
    size_t n;
    hone_error err;
    static const char good[] = " 1,2, 3\n4 ,2147483647\n";
    assert_int_equal(hn_parse_ids(&ids, &n, good, strlen(good), "--ids", &err), HONE_OK);
    assert_int_equal(n, 5);
    static const int32_t want[] = { 1, 2, 3, 4, INT32_MAX };
    assert_memory_equal(ids, want, sizeof want);
    free(ids);
    static const char *const bad[] = { "",      " ",  ",",   "1,",  ",1",         "1,,2",
                                       "1, ,2", "-1", "1,x", "1.5", "2147483648", "99999999999999999999",
                                       "1;2",   "0x1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ids = (int32_t *)1;
        if (hn_parse_ids(&ids, &n, bad[i], strlen(bad[i]), "--ids", &err) != HONE_E_ARG)
            fail_msg("'%s' accepted", bad[i]);
        assert_null(ids);
        ASSERT_SAYS(err.message, "--ids: ");
    }
    assert_int_equal(hn_parse_ids(&ids, &n, "1\0,2", 4, "--ids", &err), HONE_E_ARG); /* NUL is no separator */
    char many[30000];
    size_t len = 0;
    for (int i = 0; i < 5000; i++) len += (size_t)sprintf(many + len, "%d,", i);
    assert_int_equal(hn_parse_ids(&ids, &n, many, len - 1, "--ids", &err), HONE_OK);
    assert_int_equal(n, 5000);
    assert_int_equal(ids[4999], 4999);
    free(ids);
}

static void nearest(void **state)
{
    static const char *const words[] = { "run", "inspect", "tokenize", "detokenize", "logits", "env", NULL };
    assert_string_equal(hn_nearest("rnu", words, 7), "run");
    assert_string_equal(hn_nearest("tokenise", words, 7), "tokenize");
    assert_string_equal(hn_nearest("logit", words, 7), "logits");
    assert_string_equal(hn_nearest("insp", words, 7), "inspect");
    assert_null(hn_nearest("frobnicate", words, 7));
    assert_null(hn_nearest("", words, 7));
    assert_null(hn_nearest("zzz", words, 7));
}

/* Everything a printer wrote, malloc'ed. */
static const hn_command *man_of = &cmd;

static char *written(int what)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    assert_non_null(f);
    if (what == 0) hn_help_command(f, "hone", &cmd, common, 100);
    if (what == 1) hn_help_global(f, "hone", "tag", cmds, 80);
    if (what == 2) hn_help_man(f, "hone", "tag", cmds, common, man_of);
    static const char *const shells[] = { "bash", "zsh", "fish" };
    if (what >= 3) assert_true(hn_help_completion(f, "hone", shells[what - 3], cmds, common));
    fclose(f);
    return text;
}

static void printed(void **state)
{
    for (int what = 0; what < 6; what++) {
        char *t = written(what);
        for (const hn_opt *o = own_opts; what != 1 && o->name; o++) {
            char name[40], *w = name;
            if (what != 5) *w++ = '-', *w++ = '-'; /* fish: -l name */
            strcpy(w, o->name);
            if (what == 2) { /* roff writes \- for each dash */
                char esc[80], *e = esc;
                for (const char *s = name; *s; s++) {
                    if (*s == '-') *e++ = '\\';
                    *e++ = *s;
                }
                *e = 0;
                ASSERT_SAYS(t, esc);
            } else {
                ASSERT_SAYS(t, name);
            }
        }
        ASSERT_SAYS(t, "demo");
        free(t);
    }
    char *t = written(0);
    ASSERT_SAYS(t, "-n, --n-predict, --predict N");
    ASSERT_SAYS(t, "(default 0.8)");
    ASSERT_SAYS(t, "cache: f16|f32 (default f16)");
    free(t);
    t = written(2); /* … is not ASCII */
    ASSERT_SAYS(t, "model file\\[u2026]");
    for (const char *c = t; *c; c++) assert_true((unsigned char)*c < 0x80);
    free(t);
    assert_false(hn_help_completion(stdout, "hone", "tcsh", cmds, common));
}

/* Commands below a command, with options of their own. */
static void printed_below(void **state)
{
    static const char *const wanted[6][5] = {
        [2] = { ".SS hone lab ab [OPTIONS]", "\\-\\-rounds", "hone lab ab x y", ".SS hone lab list [OPTIONS]" },
        [3] = { "  lab)", "_hone_of -W 'ab list'", "    ab)", "--rounds" },
        [4] = { "'ab:Compare two'", "'list:List them'", "    cmd=$words[2]", "'*'{--rounds,-r}'[so often]:N:'" },
        [5] = { "-n '__hone_is '\n", "complete $c -a lab -d", "-n '__hone_is lab'\ncomplete $c -a ab -d",
                "-n '__hone_in lab/ab'\ncomplete $c -l rounds", "-d 'List them'" },
    };
    static const char *const sections[] = { "EXIT STATUS", "ENVIRONMENT", "FILES",
                                            "SEE ALSO",    "hone\\-demo", "hone\\-lab" };
    man_of = NULL;
    char *page = written(2);
    for (int i = 0; i < 6; i++) ASSERT_SAYS(page, sections[i]);
    free(page);
    man_of = &lab;
    for (int what = 2; what < 6; what++) {
        char *t = written(what);
        for (int i = 0; i < 5 && wanted[what][i]; i++) ASSERT_SAYS(t, wanted[what][i]);
        free(t);
    }
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    assert_non_null(f);
    hn_help_command(f, "hone", &lab, common, 80);
    fclose(f);
    ASSERT_SAYS(text, "  ab           Compare two");
    free(text);
}

/* An option that many commands have is there once, whatever their number; in fish with the commands' names. */
static void completed_once(void **state)
{
    static const char *const option[] = { " --json", "'*--json[json]'", "complete $c -l json -d 'json'" };
    for (int shell = 0; shell < 3; shell++) {
        char *t = written(3 + shell), *at = strstr(t, option[shell]);
        assert_non_null(at);
        assert_null(strstr(at + 1, option[shell]));
        if (shell == 2) ASSERT_SAYS(t, "-n '__hone_in demo lab/ab lab/list'\n");
        free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings),      cmocka_unit_test(defaults),
        cmocka_unit_test(supplied),       cmocka_unit_test(values_that_look_like_options),
        cmocka_unit_test(last_one_wins),  cmocka_unit_test(arguments_for_options),
        cmocka_unit_test(replaced),       cmocka_unit_test(files_once),
        cmocka_unit_test(handed_on),      cmocka_unit_test(each_option_once),
        cmocka_unit_test(bad_numbers),    cmocka_unit_test(refusals),
        cmocka_unit_test(id_lists),       cmocka_unit_test(nearest),
        cmocka_unit_test(printed),        cmocka_unit_test(printed_below),
        cmocka_unit_test(completed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
