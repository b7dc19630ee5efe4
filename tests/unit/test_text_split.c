/* Character classes against utf8proc and against the Unicode Character Database; word
 * splits against other regular-expression engines; time on long monotonous texts.
 * usage: test_text_split [PRETOK_FILE]   (default tests/golden/pretok.txt) */
#include "growth.h"
#include "text/text_priv.h"

#include <jansson.h>
#include <stdlib.h>
#include <utf8proc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define DATA "../shared/data/tokenizers/"

static const char *golden = "tests/golden/pretok.txt";

static hn_class class_of_category(int c)
{
    switch (c) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return HN_CLASS_UPPER;
    case UTF8PROC_CATEGORY_LL: return HN_CLASS_LOWER;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return HN_CLASS_LETTER;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return HN_CLASS_MARK;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return HN_CLASS_NUMBER;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return HN_CLASS_PUNCT;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return HN_CLASS_SYMBOL;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return HN_CLASS_SPACE;
    default: return HN_CLASS_OTHER;
    }
}

static void classes_utf8proc(void **state)
{
    const hn_class_table *t = hn_class_table_get();
    int differ = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        hn_class want = class_of_category(utf8proc_category((utf8proc_int32_t)c)), got = hn_class_of(t, c);
        if ((c >= 9 && c <= 13) || c == 0x85) want = HN_CLASS_SPACE; /* controls with White_Space */
        if (got == want) continue;
        bool new_letter = c >= 0x2EBF0 && c <= 0x2EE5D, new_symbol = (c >= 0x2FFC && c <= 0x2FFF) || c == 0x31EF;
        if (want == HN_CLASS_OTHER &&
            ((new_letter && got == HN_CLASS_LETTER) || (new_symbol && got == HN_CLASS_SYMBOL)))
            continue; /* all that 15.1 added to 15.0 */
        if (got == HN_CLASS_OTHER && strcmp(utf8proc_unicode_version(), "16") >= 0) continue; /* assigned after 15.1 */
        if (differ++ < 10)
            fprintf(stderr, "U+%04X: class %d, utf8proc (Unicode %s) says %d\n", c, got, utf8proc_unicode_version(),
                    want);
    }
    assert_int_equal(differ, 0);
}

static void classes_ucd(void **state)
{
    FILE *f = fopen(DATA "unicode_categories.tsv", "r");
    if (!f) {
        printf("SKIP: " DATA "unicode_categories.tsv is not there\n");
        skip();
    }
    static uint8_t want[0x110000];
    char line[256], cat[8];
    unsigned a, b, n = 0;
    while (fgets(line, sizeof line, f)) {
        if (*line == '#') continue;
        assert_int_equal(sscanf(line, "%x %x %7s", &a, &b, cat), 3);
        hn_class k = HN_CLASS_OTHER;
        if (strcmp(cat, "WS") == 0) k = HN_CLASS_SPACE;
        else if (*cat == 'L')
            k = cat[1] == 'u' || cat[1] == 't' ? HN_CLASS_UPPER : cat[1] == 'l' ? HN_CLASS_LOWER : HN_CLASS_LETTER;
        else if (*cat == 'M') k = HN_CLASS_MARK;
        else if (*cat == 'N') k = HN_CLASS_NUMBER;
        else if (*cat == 'P') k = HN_CLASS_PUNCT;
        else if (*cat == 'S') k = HN_CLASS_SYMBOL;
        if (k != HN_CLASS_OTHER) memset(want + a, k, b - a + 1);
        n++;
    }
    fclose(f);
    assert_true(n > 3000);
    const hn_class_table *t = hn_class_table_get();
    for (uint32_t c = 0; c < 0x110000; c++)
        if (hn_class_of(t, c) != want[c]) fail_msg("U+%04X: class %d, expected %d", c, hn_class_of(t, c), want[c]);
}

/* Byte lengths of the pieces of valid UTF-8. */
static size_t split(const hn_pre *p, const char *s, size_t len, uint32_t *lens)
{
    const hn_class_table *t = hn_class_table_get();
    uint32_t *x = malloc((len + 1) * sizeof *x);
    size_t n = 0, used, k = 0;
    for (size_t i = 0; i < len; i += used) {
        int32_t cp = hn_utf8_next((const unsigned char *)s + i, len - i, &used);
        assert_true(cp >= 0);
        x[n++] = (uint32_t)cp | (uint32_t)hn_class_of(t, (uint32_t)cp) << 21;
    }
    hn_pre_split(p, x, n);
    for (size_t i = 0; i < n; i++) {
        if (i == 0) assert_true(x[0] & HN_CUT);
        if (x[i] & HN_CUT) lens[k++] = 0;
        lens[k - 1] += (uint32_t)hn_utf8_width(HN_CP(x[i]));
    }
    free(x);
    return k;
}

static void check_split(const char *kind, const char *s, size_t len, const uint32_t *want, size_t n_want)
{
    const hn_pre *p = hn_pre_find(kind, strlen(kind));
    if (!p) fail_msg("kind %s is unknown", kind);
    uint32_t *got = malloc((len + 1) * sizeof *got);
    size_t n = split(p, s, len, got);
    if (n != n_want || memcmp(got, want, n * sizeof *got) != 0) {
        fprintf(stderr, "%s\n got:", kind);
        const char *q = s;
        for (size_t i = 0; i < n; q += got[i++]) fprintf(stderr, " \"%s\"", HN_ESC(q, got[i]));
        fprintf(stderr, "\nwant:");
        q = s;
        for (size_t i = 0; i < n_want; q += want[i++]) fprintf(stderr, " \"%s\"", HN_ESC(q, want[i]));
        fprintf(stderr, "\n");
        fail_msg("%s: wrong pieces", kind);
    }
    free(got);
}

/* Digits in threes from the right, up to the end of a word. To tokenizers 0.23 letters in circles and squares belong to
 * words, and joiners do not. */
static void ends_of_words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t want[4];
        size_t n;
    } all[] = {
        { "1234", { 1, 3 }, 2 },
        { "1234\xE2\x93\x8D", { 3, 1, 3 }, 3 },     /* U+24CD */
        { "1234\xF0\x9F\x84\xB0", { 3, 1, 4 }, 3 }, /* U+1F130 */
        { "1234\xE2\x92\xB5", { 1, 3, 3 }, 3 },     /* U+24B5: in parentheses */
        { "1234\xE2\x80\x8D", { 1, 3, 3 }, 3 },     /* a joiner */
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_split("tiny_aya", all[i].text, strlen(all[i].text), all[i].want, all[i].n);
}

static void golden_pieces(void **state)
{
    FILE *f = fopen(golden, "r");
    if (!f) fail_msg("%s is not there", golden);
    char *line = NULL;
    size_t cap = 0, n_line = 0;
    while (getline(&line, &cap, f) > 0) {
        if (*line == '#') continue;
        char *kind = strtok(line, "\t"), *hex = strtok(NULL, "\t"), *lens = strtok(NULL, "\t\n");
        assert_non_null(lens);
        size_t len = strlen(hex) / 2, n = 0, sum = 0;
        char *s = malloc(len + 1);
        uint32_t *want = malloc((len + 1) * sizeof *want);
        for (size_t i = 0; i < len; i++) {
            unsigned b;
            assert_int_equal(sscanf(hex + 2 * i, "%2x", &b), 1);
            s[i] = (char)b;
        }
        for (char *e; *lens; lens = e + (*e == ' ')) sum += want[n++] = (uint32_t)strtoul(lens, &e, 10);
        assert_int_equal(sum, len);
        check_split(kind, s, len, want, n);
        free(s);
        free(want);
        n_line++;
    }
    assert_true(n_line >= 20 * 20);
    free(line);
    fclose(f);
}

static void pretokenize_jsonl(void **state)
{
    FILE *f = fopen(DATA "pretokenize.jsonl", "r");
    if (!f) {
        printf("SKIP: " DATA "pretokenize.jsonl is not there\n");
        skip();
    }
    char *line = NULL;
    size_t cap = 0, n_line = 0;
    for (ssize_t k; (k = getline(&line, &cap, f)) > 0; n_line++) {
        json_error_t je;
        json_t *o = json_loadb(line, (size_t)k, JSON_ALLOW_NUL, &je), *piece;
        if (!o) fail_msg("%s", je.text);
        json_t *t = json_object_get(o, "text"), *pieces = json_object_get(o, "pieces");
        uint32_t *want = malloc((json_array_size(pieces) + 1) * sizeof *want);
        size_t i;
        json_array_foreach(pieces, i, piece) want[i] = (uint32_t)json_string_length(piece);
        check_split(json_string_value(json_object_get(o, "pre")), json_string_value(t), json_string_length(t), want,
                    json_array_size(pieces));
        free(want);
        json_decref(o);
    }
    assert_int_equal(n_line, 1680);
    free(line);
    fclose(f);
}

/* What files of the families of docs/MODELS.md say they are divided by; each must be known, and no two spellings of one
 * behaviour may part. */
static void families(void **state)
{
    static const char *const same[][5] = {
        { "llama-bpe", "falcon-h1", "lfm2", "pixtral" }, /* Llama 3, SmolLM3, Falcon-H1, LFM2 */
        { "smaug-bpe", "dbrx" },                         /* OLMo 2, Phi 4, Granite 4 */
        { "qwen2", "deepseek-r1-qwen", "hunyuan" },
        { "qwen35" },
        { "starcoder", "refact", "command-r", "smollm" }, /* StarCoder 2, Granite 3, Cohere, SmolLM 2 */
        { "gpt-2", "olmo", "exaone4", "mpt" },
        { "gpt-4o", "llama4", "minimax-m2" }, /* gpt-oss, Phi 4-mini */
        { "deepseek-v3", "hunyuan-dense" },
        { "deepseek-llm" },
        { "kimi-k2" },
        { "glm4" },
        { "chatglm-bpe" },
        { "tekken" },
        { "seed-coder" },
        { "default" },
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (size_t k = 0; k < 5 && same[i][k]; k++) {
            const hn_pre *p = hn_pre_find(same[i][k], strlen(same[i][k]));
            if (!p || p != hn_pre_find(same[i][0], strlen(same[i][0]))) fail_msg("%s", same[i][k]);
        }
}

static void names(void **state)
{
    assert_null(hn_pre_find("", 0));
    assert_null(hn_pre_find("gpt", 3));
    assert_null(hn_pre_find("gpt-2 phi-2", 11));
    assert_ptr_equal(hn_pre_find("phi-2", 5), hn_pre_find("gpt-2", 5));
    assert_true(hn_pre_ignore_merges(hn_pre_find("falcon3", 7)));
    assert_true(hn_pre_add_bos(hn_pre_find("tekken", 6)));
    assert_true(hn_pre_ignore_merges(hn_pre_find("youtu", 5)));
    assert_false(hn_pre_add_bos(hn_pre_find("youtu", 5)));
    assert_false(hn_pre_add_bos(hn_pre_find("glm4", 4)));
    size_t n = 0;
    for (const char *p = hn_pre_list(); *p; n++) { /* every name that messages offer exists */
        size_t k = strcspn(p, ",");
        if (!hn_pre_find(p, k)) fail_msg("%.*s is listed but unknown", (int)k, p);
        p += k + (p[k] ? 2 : 0);
    }
    assert_int_equal(n, 33);
}

static void decoder(void **state)
{
    static const struct {
        const char *s;
        size_t n;
        int32_t cp;
        size_t used;
    } c[] = {
        { "A", 1, 'A', 1 },
        { "\x80", 1, HN_UTF8_BAD, 1 },
        { "\xC1\xBF", 2, HN_UTF8_BAD, 1 },
        { "\xC3\xA9", 2, 0xE9, 2 },
        { "\xC3", 1, HN_UTF8_CUT, 1 },
        { "\xC3x", 2, HN_UTF8_BAD, 1 },
        { "\xE0\x9F\x80", 3, HN_UTF8_BAD, 1 },
        { "\xE2\x82", 2, HN_UTF8_CUT, 2 },
        { "\xE2\x82x", 3, HN_UTF8_BAD, 2 },
        { "\xED\xA0\x80", 3, HN_UTF8_BAD, 1 },
        { "\xED\x9F\xBF", 3, 0xD7FF, 3 },
        { "\xF0\x8F\xBF\xBF", 4, HN_UTF8_BAD, 1 },
        { "\xF0\x90\x80\x80", 4, 0x10000, 4 },
        { "\xF0\x9F\x98", 3, HN_UTF8_CUT, 3 },
        { "\xF4\x8F\xBF\xBF", 4, 0x10FFFF, 4 },
        { "\xF4\x90\x80\x80", 4, HN_UTF8_BAD, 1 },
        { "\xF5\x80", 2, HN_UTF8_BAD, 1 },
        { "\0", 1, 0, 1 },
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        size_t used = 0;
        assert_int_equal(hn_utf8_next((const unsigned char *)c[i].s, c[i].n, &used), c[i].cp);
        assert_int_equal(used, c[i].used);
    }
    for (uint32_t cp = 0; cp < 0x110000; cp += 7) {
        if (cp - 0xD800 < 0x800) continue;
        char s[4];
        size_t used, n = hn_utf8_put(s, cp);
        assert_int_equal(n, hn_utf8_width(cp));
        assert_int_equal(hn_utf8_next((const unsigned char *)s, n, &used), (int32_t)cp);
        assert_int_equal(used, n);
    }
}

/* A run of one unit, as code points with their classes: x [most]. */
static void fill_run(uint32_t *x, size_t most, const char *unit)
{
    const hn_class_table *t = hn_class_table_get();
    size_t len = strlen(unit), n = 0, used;
    while (n < most)
        for (size_t i = 0; i < len && n < most; i += used) {
            uint32_t cp = (uint32_t)hn_utf8_next((const unsigned char *)unit + i, len - i, &used);
            x[n++] = cp | (uint32_t)hn_class_of(t, cp) << 21;
        }
}

typedef struct splitting {
    const hn_pre *pre;
    uint32_t *run, *x;
} splitting;

static void split_run(void *arg, size_t n)
{
    splitting *c = arg;
    memcpy(c->x, c->run, n * sizeof *c->x);   /* splitting marks the pieces in place */
    c->x[n - 1] = 'x' | HN_CLASS_LOWER << 21; /* runs that end short of the text are the harder ones */
    hn_pre_split(c->pre, c->x, n);
}

/* No rule may be quadratic. */
static void long_runs(void **state)
{
    static const char *const unit[] = { "a",
                                        "A",
                                        "\xCA\xB0"
                                        "A",
                                        " ",
                                        " \n",
                                        "\n",
                                        "\xE2\x80\x89",
                                        "7",
                                        "'",
                                        "\xCC\x81",
                                        "\xCC\x81"
                                        "A",
                                        ".",
                                        "<",
                                        "/",
                                        "\xE4\xB8\xAD",
                                        "\xE3\x80\x80",
                                        "a ",
                                        "IMGIMG",
                                        "<sentinel:",
                                        "\xEE\x80\x80" };
    enum { SMALL = 1 << 11, LARGE = 1 << 17 };
    splitting c = { .run = malloc(LARGE * sizeof *c.run), .x = malloc(LARGE * sizeof *c.x) };
    bool good = c.run && c.x;
    for (size_t u = 0; good && u < sizeof unit / sizeof *unit; u++) {
        fill_run(c.run, LARGE, unit[u]);
        for (const char *p = hn_pre_list(); good && *p;) {
            size_t k = strcspn(p, ",");
            char what[128];
            snprintf(what, sizeof what, "%.*s on \"%s\"", (int)k, p, HN_ESC(unit[u], strlen(unit[u])));
            c.pre = hn_pre_find(p, k);
            good = grows_as_input(what, split_run, &c, SMALL, LARGE);
            p += k + (p[k] ? 2 : 0);
        }
    }
    free(c.run);
    free(c.x);
    assert_true(good);
}

int main(int argc, char **argv)
{
    if (argc > 1) golden = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_utf8proc),  cmocka_unit_test(classes_ucd),
        cmocka_unit_test(decoder),           cmocka_unit_test(names),
        cmocka_unit_test(families),          cmocka_unit_test(golden_pieces),
        cmocka_unit_test(pretokenize_jsonl), cmocka_unit_test(long_runs),
        cmocka_unit_test(ends_of_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
