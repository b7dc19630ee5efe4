/* The report: numbers and scales, texts that must not become markup or formulas, what is called out, and
 * pages that parse. The parsers here are independent of the writers. */
#include "lab/record/report_data.h"
#include <math.h>

#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a small XML checker: tags nest, attributes are quoted and unique, nothing is left bare ------------ */

enum { DEPTH = 64, NAME = 40 };

static const char *name_end(const char *s)
{
    while ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '-' || *s == ':' ||
           *s == '_')
        s++;
    return s;
}

static const char *entity_end(const char *s) /* behind "&…;", or NULL */
{
    static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;", NULL };
    for (const char *const *k = known; *k; k++)
        if (strncmp(s, *k, strlen(*k)) == 0) return s + strlen(*k);
    return NULL;
}

static const char *well_formed(const char *s) /* NULL: yes; else where not */
{
    char open[DEPTH][NAME];
    int depth = 0;
    if (strncmp(s, "<!DOCTYPE html>", 15) == 0) s += 15;
    while (*s) {
        if ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t') return s;
        if (*s == '>') return s;
        if (*s == '&') {
            const char *e = entity_end(s);
            if (!e) return s;
            s = e;
            continue;
        }
        if (*s != '<') {
            s++;
            continue;
        }
        const char *at = s;
        bool closing = s[1] == '/';
        const char *n0 = s + 1 + closing, *n1 = name_end(n0);
        size_t len = (size_t)(n1 - n0);
        if (len == 0 || len >= NAME) return at;
        s = n1;
        char seen[16][NAME];
        int n_seen = 0;
        while (*s == ' ') { /* name="value" */
            const char *a0 = s + 1, *a1 = name_end(a0);
            size_t alen = (size_t)(a1 - a0);
            if (alen == 0 || alen >= NAME || closing || a1[0] != '=' || a1[1] != '"' || n_seen == 16) return a0;
            snprintf(seen[n_seen], NAME, "%.*s", (int)alen, a0);
            for (int i = 0; i < n_seen; i++)
                if (strcmp(seen[i], seen[n_seen]) == 0) return a0;
            n_seen++;
            for (s = a1 + 2; *s && *s != '"';) {
                if (*s == '<') return s;
                const char *e = *s == '&' ? entity_end(s) : s + 1;
                if (!e) return s;
                s = e;
            }
            if (!*s) return a0;
            s++;
        }
        bool empty = s[0] == '/' && s[1] == '>';
        if (!empty && *s != '>') return at;
        s += empty ? 2 : 1;
        if (closing) {
            if (depth == 0 || strlen(open[depth - 1]) != len || strncmp(open[depth - 1], n0, len) != 0) return at;
            depth--;
        } else if (!empty) {
            if (depth == DEPTH) return at;
            snprintf(open[depth++], NAME, "%.*s", (int)len, n0);
        }
        if (!closing && !empty && len == 5 && strncmp(n0, "style", 5) == 0) { /* CSS has no entities in HTML */
            const char *e = strstr(s, "</style>");
            if (!e || memchr(s, '<', (size_t)(e - s)) || memchr(s, '&', (size_t)(e - s))) return s;
            s = e;
        }
    }
    return depth ? "an element is left open" : NULL;
}

static void test_checker(void **state)
{
    assert_null(well_formed("<a><b c=\"d\"/>x &amp; y</a>"));
    assert_non_null(well_formed("<a><b></a></b>"));
    assert_non_null(well_formed("<a>"));
    assert_non_null(well_formed("<a b=c/>"));
    assert_non_null(well_formed("<a b=\"1\" b=\"2\"/>"));
    assert_non_null(well_formed("x & y"));
    assert_non_null(well_formed("<a b=\"<\"/>"));
    assert_non_null(well_formed("a > b"));
    assert_non_null(well_formed("\x01"));
}

/* ---- numbers and scales ---------------------------------------------------------------------------- */

static void test_numbers(void **state)
{
    char t[HN_REP_NUM];
    assert_string_equal(hn_rep_num(t, 3.14159, 3), "3.14");
    assert_string_equal(hn_rep_num(t, 1234.5, 4), "1234"); /* ties to even, as printf has it */
    assert_string_equal(hn_rep_num(t, 12345.6, 4), "12\xE2\x80\xAF"
                                                   "346");
    assert_string_equal(hn_rep_num(t, 1234567, 3), "1\xE2\x80\xAF"
                                                   "234\xE2\x80\xAF"
                                                   "567");
    assert_string_equal(hn_rep_num(t, -0.05, 1), "\xE2\x88\x92"
                                                 "0.05");
    assert_string_equal(hn_rep_num(t, NAN, 3), "\xE2\x80\x93");
    assert_string_equal(hn_rep_num(t, INFINITY, 3), "\xE2\x80\x93");
    assert_string_equal(hn_rep_num(t, 1e300, 3), "1.00e+300");
    assert_string_equal(hn_rep_num(t, 0, 3), "0.00");
    /* digits that the interval supports, three at least, four at most */
    assert_string_equal(hn_rep_med(t, 2161.59, 1320.15, 2795.54), "2160"); /* as hone bench shows it */
    assert_string_equal(hn_rep_med(t, 48749.3, 48100, 49300), "48\xE2\x80\xAF"
                                                              "750");
    assert_string_equal(hn_rep_med(t, 1339.4, NAN, NAN), "1340");
    assert_string_equal(hn_rep_med(t, 43.1492, 42.86, 44.02), "43.15");
    assert_string_equal(hn_rep_med(t, 96.2451, 96.2449, 96.2453), "96.25");
    assert_string_equal(hn_rep_med(t, 3.751, NAN, NAN), "3.75");
    assert_string_equal(hn_rep_med(t, 3, NAN, NAN), "3");
    assert_string_equal(hn_rep_pct(t, 1.084), "+8.4\xE2\x80\xAF%");
    assert_string_equal(hn_rep_pct(t, 0.5), "\xE2\x88\x92"
                                            "50\xE2\x80\xAF%");
    assert_string_equal(hn_rep_pct(t, 1.0001), "\xC2\xB1"
                                               "0\xE2\x80\xAF%");
}

static void check_axis(double lo, double hi, bool log)
{
    hn_rep_axis a = hn_rep_axis_make(lo, hi, 4, log);
    double from = fmin(lo, hi), to = fmax(lo, hi);
    assert_true(a.lo <= from && a.hi >= to && a.lo < a.hi);
    assert_in_range(a.n, 1, 16);
    for (int i = 0; i < a.n; i++) {
        char t[HN_REP_NUM], before[HN_REP_NUM];
        assert_true(a.tick[i] >= a.lo - 1e-9 * fabs(a.lo) && a.tick[i] <= a.hi + 1e-9 * fabs(a.hi));
        assert_true(i == 0 || a.tick[i] > a.tick[i - 1]);
        if (i)
            assert_string_not_equal(hn_rep_tick(t, &a, i),
                                    hn_rep_tick(before, &a, i - 1)); /* two labels are two numbers */
        double p = hn_rep_pos(&a, a.tick[i]);
        assert_true(p >= 0 && p <= 100);
    }
    assert_true(hn_rep_pos(&a, from) <= hn_rep_pos(&a, to));
}

static void test_axes(void **state)
{
    static const double bounds[] = { 0,    1e-9, 0.00123, 0.5,  0.97, 1,      1.03, 3,   7.3,
                                     9.99, 10,   42,      99.5, 100,  1234.5, 5e4,  1e6, 3e9 };
    size_t n = sizeof bounds / sizeof *bounds;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            check_axis(bounds[i], bounds[k], false);
            check_axis(-bounds[i], bounds[k], false);
            if (bounds[i] > 0 && bounds[k] > 0) check_axis(bounds[i], bounds[k], true);
        }
    hn_rep_axis a = hn_rep_axis_make(NAN, INFINITY, 4, false);
    assert_true(a.n > 0 && a.lo < a.hi);
    assert_true(hn_rep_pos(&a, NAN) == 0); /* whatever comes, a place in the drawing */
}

/* ---- texts ---------------------------------------------------------------------------------------------- */

typedef void put_fn(FILE *f, const char *s);
static char *written(put_fn *put, const char *s)
{
    char *t = NULL;
    size_t n;
    FILE *f = open_memstream(&t, &n);
    put(f, s);
    fclose(f);
    return t;
}
static void check_text(put_fn *put, const char *s, const char *want)
{
    char *t = written(put, s);
    assert_string_equal(t, want);
    free(t);
}

static void test_texts(void **state)
{
    check_text(hn_rep_html, "<script>alert(\"1\") & 'x'</script>",
               "&lt;script&gt;alert(&quot;1&quot;) &amp; &#39;x&#39;&lt;/script&gt;");
    check_text(hn_rep_html,
               "a\x01"
               "b\x7F",
               "a\xEF\xBF\xBD"
               "b\xEF\xBF\xBD");
    check_text(hn_rep_html,
               "\xE2\x80\xAE"
               "evil \xE2\x81\xA6",
               "\xEF\xBF\xBD"
               "evil \xEF\xBF\xBD");                         /* turns the direction of writing */
    check_text(hn_rep_html, "\xEF\xBF\xBF", "\xEF\xBF\xBD"); /* no XML */
    check_text(hn_rep_html, "\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80", "\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80");
    check_text(hn_rep_html, NULL, "");
    check_text(hn_rep_md, "a|b *c* [d](e) <f> `g`\n# h", "a\\|b \\*c\\* \\[d\\](e) &lt;f&gt; \\`g\\` \\# h");
    check_text(hn_rep_csv, "plain", "\"plain\"");
    check_text(hn_rep_csv, "a \"b\", c\nd", "\"a \"\"b\"\", c d\"");
    check_text(hn_rep_csv, "=1+1", "\"'=1+1\"");
    check_text(hn_rep_csv, "@SUM(A1)", "\"'@SUM(A1)\"");
    check_text(hn_rep_csv, "+1", "\"'+1\"");
    check_text(hn_rep_csv, "-1", "\"'-1\"");
    check_text(hn_rep_csv, "  =1", "\"'  =1\"");
    check_text(hn_rep_csv,
               "\xEF\xBC\x9D"
               "1",
               "\"'\xEF\xBC\x9D"
               "1\""); /* full width */
    check_text(hn_rep_csv, "a=1", "\"a=1\"");
    check_text(hn_rep_csv, "", "\"\"");
    check_text(hn_rep_csv, "   ", "\"   \"");
}

/* ---- records to reports ----------------------------------------------------------------------------------- */

#define EVIL "<b onmouseover=\\\"x\\\">&\\u202e=1|`"

static char *file_of(const char *text)
{
    char *path = strdup("/tmp/hone-report-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static char *records(void)
{
    char *t = NULL;
    size_t n;
    FILE *f = open_memstream(&t, &n);
    for (int i = 0; i < 24;
         i++) { /* twelve runs at 100 tok/s, twelve at 80; the fourth invalid; quality changes at the tenth */
        double v = (i < 12 ? 100 : 80) + 0.1 * (i * 7 % 5);
        fprintf(f,
                "{\"schema\":\"hone.bench/1\",\"id\":\"%012x\",\"ts\":\"2026-01-%02dT10:00:00Z\",\"title\":\"" EVIL
                "\",\"change\":\"c%d\",\"quality\":\"q1-0000000%d-11111111\",",
                i + 1, i + 1, i, i >= 10);
        fprintf(f,
                "\"valid\":%s,\"invalid_reason\":%s,\"notes\":[\"" EVIL
                "\"],\"config\":{\"threads\":2,\"n_prompt\":16,\"kv\":\"f16\"},",
                i == 3 ? "false" : "true", i == 3 ? "\"broken <i>\"" : "null");
        fprintf(f,
                "\"model\":{\"path_name\":\"" EVIL
                "\",\"fingerprint\":\"00ff\",\"params\":1000},\"env\":{\"hash\":\"abcd\",\"kernel\":\"%d\"},",
                i < 20 ? 1 : 2);
        fprintf(f, "\"better\":{\"decode_tok_s\":\"higher\"},\"samples\":[");
        for (int k = 0; k < 6; k++) fprintf(f, "%s{\"decode_tok_s\":%g}", k ? "," : "", v + 0.01 * k);
        fprintf(f,
                "],\"stats\":{\"decode_tok_s\":{\"n\":6,\"median\":%g,\"ci95\":[%g,%g],\"mean\":%g,\"min\":%g,\"max\":%"
                "g,\"outliers\":[0,0,0,0]}},",
                v, v - 0.1, v + 0.1, v, v - 0.1, v + 0.1);
        fprintf(f, "\"memory\":{\"peak_anon_mb\":4,\"model_resident_mb\":5,\"hwm_mb\":10},\"roofline\":{\"bytes_per_"
                   "token\":2000,\"gb_s\":2,\"roof_gb_s\":10,\"pct\":20}}\n");
    }
    static const struct {
        const char *word, *note;
        double ratio, lo, hi;
    } ab[] = { { "SAME", "null", 1, 0.995, 1.005 },
               { "REGRESSED", "null", 0.9, 0.88, 0.92 },
               { "IMPROVED", "null", 1.2, 1.1, 1.3 },
               { "INCONCLUSIVE", "\"slower, size unresolved\"", 0.97, 0.95, 0.999 } };
    for (size_t i = 0; i < 4; i++)
        fprintf(f,
                "{\"schema\":\"hone.ab/"
                "1\",\"record\":\"ab%zu\",\"ts\":\"2026-02-01T00:00:00Z\",\"id\":\"e2e\",\"metric\":\"decode_tok_s\","
                "\"unit\":\"tok/s\",\"a\":{\"label\":\"=cmd\"},\"b\":{\"label\":\"" EVIL "\"},"
                "\"rounds\":[{\"order\":\"AB\",\"a\":100,\"b\":%g,\"voided\":false},{\"order\":\"BA\",\"a\":1,\"b\":9,"
                "\"voided\":true}],\"ratio\":%g,\"ci95\":[%g,%g],\"margin\":0.02,\"verdict\":\"%s\",\"note\":%s}\n",
                i, 100 * ab[i].ratio, ab[i].ratio, ab[i].lo, ab[i].hi, ab[i].word, ab[i].note);
    fputs("{\"schema\":\"hone.kern/"
          "1\",\"ts\":\"2026-01-05T00:00:00Z\",\"id\":\"kern.gemv.Q4_K.64x256\",\"env\":\"abcd\",\"unit\":\"GB/"
          "s\",\"better\":\"higher\",\"value\":8,\"samples_us\":[9,10,11,10,10,20],"
          "\"stats_us\":{\"median\":10},\"config\":{\"threads\":2},\"roofline\":{\"bytes\":80000,\"ops\":160000,"
          "\"bound\":\"read\",\"pct\":40},\"valid\":true}\n",
          f);
    fputs("{\"schema\":\"hone.bench/"
          "1\",\"id\":\"e2e.gen\",\"record\":\"g\",\"ts\":\"2026-01-06T00:00:00Z\",\"unit\":\"tok/"
          "s\",\"better\":\"higher\",\"valid\":null,\"samples\":[1,2],\"stats\":{\"n\":2,\"median\":1.5,\"ci95\":null},"
          "\"extra\":{\"samples\":[{\"requests\":[{\"gaps_ms\":[1,2,3,4,5,6,7,8,9,10,11,500]}]}]}}\n",
          f);
    fputs("{\"schema\":\"hone.profile/"
          "1\",\"ts\":\"2026-01-07T00:00:00Z\",\"decode\":{\"whole_ms\":10,\"rest_ms\":1,\"rest_pct\":10,\"tokens\":4,"
          "\"ops\":[{\"op\":\"<op>\",\"ms\":9,\"pct\":90,\"calls\":3,\"no_layer_ms\":2,\"layer_ms\":[4,3]}]}}\n",
          f);
    fputs("{\"schema\":\"hone.train/1\",\"kind\":\"step\",\"step\":1,\"loss\":2,"
          "\"ms\":{\"data\":1,\"gradient\":8,\"optimizer\":1,\"eval\":null}}\n",
          f);
    fputs("{\"schema\":\"hone.ledger/"
          "1\",\"ts\":\"2026-01-08T00:00:00Z\",\"measured_mb\":10,\"parts\":[{\"name\":\"<w>\",\"mb\":8},{\"name\":"
          "\"kv\",\"bytes\":2000000}]}\n",
          f);
    fputs("not json\n{\"schema\":\"hone.bench/1\",\"id\":\"cut o", f);
    fclose(f);
    return t;
}

static hn_report *report_of(const char *const *paths)
{
    hn_report *r;
    assert_int_equal(hn_report_new(&r, NULL), HONE_OK);
    for (; *paths; paths++) assert_int_equal(hn_report_add(r, *paths, NULL), HONE_OK);
    assert_int_equal(hn_report_finish(r, NULL, NULL, NULL), HONE_OK);
    return r;
}

/* not inlined: gcc 12 takes what t points to for t itself, and warns */
__attribute__((noinline)) static char *text_of(const hn_report *r, hn_report_format format)
{
    char *t;
    size_t n;
    assert_int_equal(hn_report_write(&t, &n, r, format, NULL), HONE_OK);
    assert_int_equal(strlen(t), n);
    return t;
}

static size_t place_of(const char *text, const char *what)
{
    const char *p = strstr(text, what);
    if (!p) print_message("no '%s'\n", what);
    assert_non_null(p);
    return (size_t)(p - text);
}

static void test_html(void **state)
{
    char *all = records(), *path = file_of(all);
    hn_report *r = report_of((const char *const[]){ path, NULL });
    char *t = text_of(r, HN_REPORT_HTML);
    const char *bad = well_formed(t);
    if (bad) print_message("here: %.200s\n", bad);
    assert_null(bad);
    /* flame graphs: a phase, its layers, the operations in each; a training step and its parts */
    static const char *const blocks[] = { "Flame graph of Decode",
                                          "<title>layer 1: 3.00 ms, 30 %</title>",
                                          "<title>no layer: 2.00 ms, 20 %</title>",
                                          "<title>&lt;op&gt;: 4.00 ms, 40 %</title>",
                                          "Flame graph of the steps",
                                          "<title>gradient: 8.00 ms, 80 %</title>",
                                          NULL };
    for (const char *const *b = blocks; *b; b++) place_of(t, *b);
    /* loads nothing, runs nothing */
    static const char *const never[] = {
        "<script",        " src=",        "url(", "@import", "<iframe", "<object", "<link rel=\"stylesheet",
        "<b onmouseover", "\xE2\x80\xAE", NULL
    };
    for (const char *const *s = never; *s; s++) assert_null(strstr(t, *s));
    for (const char *p = t; (p = strstr(p, "href=\"")); p += 6)
        assert_true(p[6] == '#' || strncmp(p + 6, "data:,", 6) == 0);
    assert_non_null(strstr(t, "default-src 'none'"));
    /* every part is there */
    static const char *const parts[] = { "newest",   "verdicts", "measurements", "samples",     "history", "gaps",
                                         "roofline", "memory",   "profile",      "environment", "reading", NULL };
    for (const char *const *s = parts; *s; s++) {
        char mark[40];
        snprintf(mark, sizeof mark, "<section id=\"%s\">", *s);
        if (!strstr(t, mark)) print_message("no %s\n", mark);
        assert_non_null(strstr(t, mark));
        snprintf(mark, sizeof mark, "<a href=\"#%s\">", *s);
        assert_non_null(strstr(t, mark));
    }
    /* what is wrong comes before anything else */
    size_t invalid = place_of(t, "broken &lt;i&gt;"), quality = place_of(t, "answers changed"),
           regressed = place_of(t, "regressed</span>");
    assert_true(invalid < quality && quality < regressed && regressed < place_of(t, "<section"));
    assert_non_null(strstr(t, "1 of 26 results is invalid."));
    assert_non_null(strstr(t, "\xE2\x88\x92"
                              "20\xE2\x80\xAF% worse")); /* the step */
    assert_non_null(strstr(t, "\xE2\x89\xA0 "));         /* another kernel */
    free(t);
    hn_report_free(r);
    unlink(path);
    free(path);
    free(all);
}

/* An adapter, another tokenizer have answers of their own: they did not change. */
static void test_answers_of_adapters(void **state)
{
    static const char *const line =
        "{\"schema\":\"hone.bench/1\",\"id\":\"e2e.gen\",\"ts\":\"2026-01-0%dT00:00:00Z\",\"unit\":\"tok/s\","
        "\"quality\":\"q2-1111111%d-22222222\",\"valid\":true,\"model\":{\"fingerprint\":\"f\"},"
        "\"config\":{\"kv\":\"f16\"%s},\"stats\":{\"median\":5},\"samples\":[5]}\n";
    static const char *const settings[] = { "", ",\"adapters\":[{\"path\":\"a\"}]", ",\"pre\":\"qwen2\"" };
    for (int with = 0; with < 3; with++) {
        char text[1200];
        size_t n = (size_t)snprintf(text, sizeof text, line, 1, 1, "");
        snprintf(text + n, sizeof text - n, line, 2, 2, settings[with]);
        char *path = file_of(text);
        hn_report *r = report_of((const char *const[]){ path, NULL });
        char *t = text_of(r, HN_REPORT_HTML);
        assert_true((strstr(t, "answers changed") != NULL) == !with);
        free(t);
        hn_report_free(r);
        unlink(path);
        free(path);
    }
}

static void test_same_bytes(void **state)
{
    char *all = records(), *path = file_of(all), *half = strstr(all, "{\"schema\":\"hone.ab/1\"");
    char *second = file_of(half);
    *half = 0;
    char *first = file_of(all);
    for (int f = HN_REPORT_HTML; f <= HN_REPORT_JSON; f++) {
        hn_report *a = report_of((const char *const[]){ path, NULL }),
                  *b = report_of((const char *const[]){ path, NULL });
        char *x = text_of(a, (hn_report_format)f), *y = text_of(b, (hn_report_format)f);
        assert_string_equal(x, y);
        free(y);
        hn_report_free(b);
        /* cut into two files, in the other order: the same but for the list of files */
        b = report_of((const char *const[]){ second, first, NULL });
        assert_int_equal(hn_report_records(a), hn_report_records(b));
        y = text_of(b, (hn_report_format)f);
        if (f == HN_REPORT_CSV) assert_string_equal(x, y);
        free(x);
        free(y);
        hn_report_free(a);
        hn_report_free(b);
    }
    unlink(path);
    unlink(first);
    unlink(second);
    free(path);
    free(first);
    free(second);
    free(all);
}

static json_int_t count(json_t *o, const char *a, const char *b, const char *c)
{
    o = json_object_get(o, a);
    if (b) o = json_object_get(o, b);
    if (c) o = json_object_get(o, c);
    assert_true(json_is_integer(o));
    return json_integer_value(o);
}

static void test_json(void **state)
{
    char *all = records(), *path = file_of(all);
    hn_report *r = report_of((const char *const[]){ path, path, NULL }); /* twice: nothing counts double */
    assert_int_equal(hn_report_skipped(r), 4);
    char *t = text_of(r, HN_REPORT_JSON);
    json_t *o = json_loads(t, 0, NULL);
    assert_string_equal(hn_record_text(o, "schema"), "hone.report/1");
    assert_string_equal(hn_record_text(o, "date"), "2026-02-01T00:00:00Z");
    assert_int_equal(count(o, "summary", "records", NULL), 26);
    assert_int_equal(count(o, "summary", "invalid", NULL), 1);
    assert_int_equal(count(o, "summary", "unchecked", NULL), 1);
    assert_int_equal(count(o, "summary", "comparisons", NULL), 4);
    assert_int_equal(count(o, "summary", "verdicts", "REGRESSED"), 1);
    assert_int_equal(count(o, "summary", "verdicts", "SAME"), 1);
    assert_int_equal(count(o, "summary", "verdicts", "IMPROVED"), 1);
    assert_int_equal(count(o, "summary", "verdicts", "INCONCLUSIVE"), 1);
    assert_int_equal(count(o, "summary", "attention", "quality changed"), 1);
    assert_int_equal(count(o, "summary", "attention", "worse"), 2); /* a comparison, and the step in the history */
    json_t *second = json_array_get(json_object_get(o, "files"), 1);
    assert_int_equal(json_integer_value(json_object_get(second, "records")), 1);
    assert_int_equal(json_integer_value(json_object_get(second, "seen_before")), 32);
    json_t *line = json_array_get(json_object_get(o, "series"), 0); /* the one with a step leads */
    assert_int_equal(json_array_size(json_object_get(line, "points")), 23);
    assert_int_equal(json_integer_value(json_object_get(line, "invalid")), 1);
    assert_true(json_is_object(json_object_get(line, "steps")));
    json_decref(o);
    free(t);
    hn_report_free(r);
    unlink(path);
    free(path);
    free(all);
}

/* RFC 4180, on its own: fields of the row at s; *end behind its CRLF. */
static size_t fields(const char *s, const char **end, char formula[1])
{
    size_t n = 1;
    bool at_start = true, quoted = false;
    for (; *s; s++) {
        if (quoted) {
            if (*s != '"') continue;
            if (s[1] == '"') s++;
            else quoted = false;
            continue;
        }
        if (at_start && *s == '"') {
            quoted = true;
            if (strchr("=+-@", s[1]) && s[1]) *formula = s[1];
        } else if (*s == ',') {
            n++;
            at_start = true;
            continue;
        } else if (*s == '\r') {
            assert_int_equal(s[1], '\n');
            *end = s + 2;
            return n;
        } else assert_true(*s != '\n');
        at_start = false;
    }
    fail_msg("no end of line");
    return 0;
}

static void test_csv(void **state)
{
    char *all = records(), *path = file_of(all), formula = 0;
    hn_report *r = report_of((const char *const[]){ path, NULL });
    char *t = text_of(r, HN_REPORT_CSV);
    const char *p = t;
    size_t columns = fields(p, &p, &formula), rows = 0;
    for (; *p; rows++) assert_int_equal(fields(p, &p, &formula), columns);
    assert_int_equal(rows, 30); /* 26 records of one metric, 4 comparisons */
    assert_int_equal(formula, 0);
    assert_non_null(strstr(t, "\"'=cmd\""));
    free(t);
    t = text_of(r, HN_REPORT_MD);
    assert_non_null(strstr(t, "| REGRESSED |"));
    assert_null(strstr(t, "<b"));
    for (const char *row = t; (row = strstr(row, "\n| "));
         row++) { /* no text breaks a table: bars as many as in its head */
        size_t bars = 0, want = 0;
        const char *head = row;
        while (head > t && !(head[0] == '\n' && head[1] == '\n')) head--;
        for (const char *c = head + 2; *c != '\n'; c++) want += *c == '|' && c[-1] != '\\';
        for (const char *c = row + 1; *c && *c != '\n'; c++) bars += *c == '|' && c[-1] != '\\';
        assert_int_equal(bars, want);
    }
    free(t);
    hn_report_free(r);
    unlink(path);
    free(path);
    free(all);
}

/* What a gate says of stored samples is of another time, and its intervals cover more than 95 %. */
static void test_stored(void **state)
{
    char *path = file_of(
        "{\"schema\":\"hone.gate/"
        "1\",\"ts\":\"2026-01-01T00:00:00Z\",\"baseline\":\"old\",\"records\":[],\"rows\":[{\"id\":"
        "\"tok.encode\",\"metric\":\"MB/s\",\"unit\":\"MB/s\",\"n_before\":9,\"n_after\":8,\"ratio\":0.8,\"ci\":[0.75,"
        "0.85],\"coverage\":0.9834,\"margin\":0.1,\"verdict\":\"REGRESSED\"}]}\n");
    hn_report *r = report_of((const char *const[]){ path, NULL });
    static const struct {
        hn_report_format format;
        const char *has[4], *lacks[3];
    } forms[] = {
        { HN_REPORT_HTML,
          { "<section id=\"stored\"><h2>Verdicts against stored samples</h2>", "98.3\xE2\x80\xAF% interval</small>",
            "98.3\xE2\x80\xAF% interval \xE2\x88\x92", "8 samples" },
          { "measured in turns", "<section id=\"verdicts\">", "0 rounds" } },
        { HN_REPORT_MD,
          { "## Verdicts against stored samples", "98.3\xE2\x80\xAF% interval", "| 98.3 % | 10 % | 8 |" },
          { "measured in turns", "95\xE2\x80\xAF%", "## Verdicts\n" } },
        { HN_REPORT_CSV,
          { ",8,,,,0.9834,,,", ",\"old\",\"now\",0.8,0.75,0.85,0.1,\"REGRESSED\"," },
          { "0.95", NULL, NULL } },
        { HN_REPORT_JSON, { "\"coverage\":0.9834", "\"ci95\":null", "\"ci\":[0.75,0.85]" }, { NULL, NULL, NULL } },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *t = text_of(r, forms[i].format), *to = t;
        if (forms[i].format == HN_REPORT_JSON) { /* without white space */
            for (char *from = t; *from; from++)
                if (*from != ' ' && *from != '\n') *to++ = *from;
            *to = 0;
        }
        for (int k = 0; k < 4 && forms[i].has[k]; k++)
            if (!strstr(t, forms[i].has[k])) fail_msg("format %zu lacks '%s':\n%s", i, forms[i].has[k], t);
        for (int k = 0; k < 3 && forms[i].lacks[k]; k++)
            if (strstr(t, forms[i].lacks[k])) fail_msg("format %zu has '%s'", i, forms[i].lacks[k]);
        free(t);
    }
    hn_report_free(r);
    unlink(path);
    free(path);
}

/* Two copies of a log, one made while the training went on: the longer one counts, whichever comes first. */
static void test_longer_log(void **state)
{
    static const char run[] = "{\"schema\":\"hone.train/1\",\"kind\":\"run\",\"ts\":\"2026-01-01T00:00:00Z\"}\n",
                      step[] = "{\"schema\":\"hone.train/1\",\"kind\":\"step\",\"step\":%d,\"loss\":%d}\n";
    char text[2][600], *path[2];
    for (int k = 0; k < 2; k++) {
        size_t n = (size_t)snprintf(text[k], sizeof text[k], "%s", run);
        for (int i = 1; i <= (k ? 4 : 2); i++) n += (size_t)snprintf(text[k] + n, sizeof text[k] - n, step, i, 10 - i);
        path[k] = file_of(text[k]);
    }
    for (int first = 0; first < 2; first++) {
        hn_report *r = report_of((const char *const[]){ path[first], path[1 - first], NULL });
        char *t = text_of(r, HN_REPORT_JSON);
        json_t *o = json_loads(t, 0, NULL), *runs = json_object_get(o, "training"), *one = json_array_get(runs, 0);
        assert_int_equal(json_array_size(runs), 1);
        assert_int_equal(json_array_size(json_object_get(one, "steps")), 4);
        assert_int_equal(json_number_value(json_object_get(one, "last_loss")), 6);
        json_t *second = json_array_get(json_object_get(o, "files"), 1);
        assert_int_equal(json_integer_value(json_object_get(second, "seen_before")), 3); /* the run and two steps */
        json_decref(o);
        free(t);
        hn_report_free(r);
    }
    for (int k = 0; k < 2; k++) {
        unlink(path[k]);
        free(path[k]);
    }
}

/* Whole numbers that a record says are none, or beyond any: what is shown is a number all the same. */
static void test_whole_numbers(void **state)
{
    static const char ops[] = "\"decode\":{\"ms\":2,\"ops\":[{\"op\":\"a\",\"ms\":1,\"pct\":50},"
                              "{\"op\":\"b\",\"ms\":1,\"pct\":50,\"calls\":1e300}]}";
    char text[600];
    snprintf(text, sizeof text,
             "{\"schema\":\"hone.profile/1\",\"ts\":\"2026-01-01T00:00:00Z\",%s}\n"
             "{\"schema\":\"hone.ab/"
             "1\",\"id\":\"e2e\",\"ts\":\"2026-01-01T00:00:00Z\",\"ratio\":1.0,\"ci95\":[0.9,1.1],\"n\":1e300,"
             "\"verdict\":\"same\"}\n",
             ops);
    char *path = file_of(text);
    hn_report *r;
    assert_int_equal(hn_report_new(&r, NULL), HONE_OK);
    assert_int_equal(hn_report_add(r, path, NULL), HONE_OK);
    assert_int_equal(hn_report_finish(r, "t", "d", NULL), HONE_OK);
    char *t = text_of(r, HN_REPORT_HTML);
    assert_non_null(strstr(t, "data-h=\"calls\">0<"));
    assert_non_null(strstr(t, "data-h=\"calls\">9007199254740992<"));
    assert_null(strstr(t, "9223372036854775808"));
    free(t);
    hn_report_free(r);
    unlink(path);
    free(path);
}

/* Records that lack everything, or hold the wrong kinds of things, are no reason to fall. */
static void test_odd(void **state)
{
    static const char *const odd[] = {
        "{\"schema\":\"hone.bench/1\"}",
        "{\"schema\":\"hone.bench/"
        "1\",\"id\":7,\"stats\":[],\"samples\":{},\"config\":3,\"model\":\"x\",\"env\":1,\"ts\":{}}",
        "{\"schema\":\"hone.bench/"
        "1\",\"id\":\"a\",\"stats\":{\"median\":0,\"n\":-1,\"ci95\":[1]},\"samples\":[null,\"x\",1e308]}",
        "{\"schema\":\"hone.bench/"
        "1\",\"id\":\"a\",\"stats\":{\"n\":9,\"median\":-5,\"ci95\":[-9,-1]},\"samples\":[-5,-9,-1],\"valid\":false}",
        "{\"schema\":\"hone.ab/1\"}",
        "{\"schema\":\"hone.ab/"
        "1\",\"ratio\":-1,\"ci95\":[0,\"x\"],\"rounds\":[1,null,{\"a\":0,\"b\":0}],\"verdict\":\"MAYBE\",\"margin\":5}",
        "{\"schema\":\"hone.ab/1\",\"ratio\":1e300,\"ci95\":[1e-300,1e300],\"rounds\":7,\"verdict\":7}",
        "{\"schema\":\"hone.kern/1\"}",
        "{\"schema\":\"hone.kern/1\",\"results\":[{},1]}",
        "{\"schema\":\"hone.peaks/1\",\"read\":{\"points\":[1]}}",
        "{\"schema\":\"hone.profile/1\",\"decode\":{\"ops\":[{},1]}}",
        "{\"schema\":\"hone.ledger/1\",\"parts\":{\"a\":1,\"b\":\"x\"}}",
        "{\"schema\":\"hone.suite/1\",\"records\":[1,{}]}",
        "{\"schema\":\"hone.other/9\",\"ts\":\"x\"}",
        ("{\"schema\":\"hone.bench/"
         "1\",\"id\":\"e2e\",\"record\":\"1\",\"stats\":{\"decode_tok_s\":{\"median\":1e-300,\"ci95\":[0,1e300],\"n\":"
         "6}},\"samples\":[{\"decode_tok_s\":1}],"
         "\"roofline\":{\"bytes_per_token\":1,\"gb_s\":1e300,\"prefill_gops\":1e-300,\"roof_value\":0,\"pct\":0},"
         "\"model\":{\"params\":1e300},\"config\":{\"n_prompt\":1},\"memory\":{\"peak_anon_mb\":0,\"model_resident_"
         "mb\":0}}"),
    };
    char *all = NULL;
    size_t n, k = sizeof odd / sizeof *odd;
    FILE *f = open_memstream(&all, &n);
    for (size_t i = 0; i < k; i++) {
        char *one = file_of(odd[i]); /* each alone, and all together */
        hn_report *r;
        assert_int_equal(hn_report_new(&r, NULL), HONE_OK);
        if (hn_report_add(r, one, NULL) == HONE_OK && hn_report_finish(r, "t", "d", NULL) == HONE_OK)
            for (int form = HN_REPORT_HTML; form <= HN_REPORT_JSON; form++) {
                char *t = text_of(r, (hn_report_format)form);
                if (form == HN_REPORT_HTML) assert_null(well_formed(t));
                if (form == HN_REPORT_HTML &&
                    (strstr(t, "nan%") || strstr(t, "inf%") || strstr(t, "\"nan\"") || strstr(t, "\"-nan")))
                    fail_msg("%s: no place in the drawing", odd[i]);
                free(t);
            }
        hn_report_free(r);
        unlink(one);
        free(one);
        fprintf(f, "%s\n", odd[i]);
    }
    fclose(f);
    char *path = file_of(all);
    hn_report *r = report_of((const char *const[]){ path, NULL });
    char *t = text_of(r, HN_REPORT_HTML);
    const char *bad = well_formed(t);
    if (bad) print_message("here: %.200s\n", bad);
    assert_null(bad);
    free(t);
    hn_report_free(r);
    assert_int_equal(hn_report_new(&r, NULL), HONE_OK);
    assert_int_equal(hn_report_add(r, "/nonexistent/x.jsonl", NULL), HONE_E_IO);
    hn_report_free(r);
    unlink(path);
    free(path);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checker),       cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_axes),          cmocka_unit_test(test_texts),
        cmocka_unit_test(test_html),          cmocka_unit_test(test_answers_of_adapters),
        cmocka_unit_test(test_same_bytes),    cmocka_unit_test(test_json),
        cmocka_unit_test(test_csv),           cmocka_unit_test(test_odd),
        cmocka_unit_test(test_longer_log),    cmocka_unit_test(test_stored),
        cmocka_unit_test(test_whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
