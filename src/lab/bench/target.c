/* Wishes and requirements against numbers. Owns how they are read; refuses to measure. */
#include "lab/bench/target.h"
#include "lab/record/record_read.h"

#include <math.h>
#include <stdlib.h>

const char *hn_wish_word(hn_wish w)
{
    static const char *const words[] = { "", "met", "not met", "open" };
    return words[w];
}

/* ---- targets ----------------------------------------------------------------------------------------- */

/* How many of `to` one `from` is; NaN: other things. */
static double factor(const char *from, size_t n, const char *to)
{
    static const struct {
        const char *unit;
        int kind;
        double size;
    } units[] = { { "s", 0, 1 },    { "ms", 0, 1e-3 }, { "us", 0, 1e-6 }, { "ns", 0, 1e-9 },
                  { "GB", 1, 1e9 }, { "MB", 1, 1e6 },  { "kB", 1, 1e3 },  { "x", 2, 1 } };
    double a = NAN, b = NAN;
    int ka = -1, kb = -2;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].unit) == n && strncmp(from, units[i].unit, n) == 0) a = units[i].size, ka = units[i].kind;
        if (strcmp(to, units[i].unit) == 0) b = units[i].size, kb = units[i].kind;
    }
    return ka == kb ? a / b : NAN;
}

/* "< 5 us a word", "0": the most that the wish allows, in `unit`, of the variant "word"; "> 2 x": the least, *least.
 * NaN: not to be judged. */
static double limit_of(const char *s, const char *unit, const char *variant, bool *least)
{
    char *end;
    bool less = *s == '<';
    *least = *s == '>';
    s += less || *least;
    double x = strtod(s, &end);
    if (end == s) return NAN;
    end += strspn(end, " ");
    if (!*end || *end == ',') return x == 0 && !*least ? 0 : NAN;
    size_t n = strcspn(end, " ,");
    const char *rest = end + n;
    bool plain = !*rest || *rest == ',' || strncmp(rest, " (", 2) == 0 ||
                 (strncmp(rest, " a ", 3) == 0 && strcmp(rest + 3, variant) == 0);
    return (less || *least) && plain ? x * factor(end, n, unit) : NAN;
}

/* The part of the target that speaks of this record: behind the word of its variant, or all of it. */
static const char *part_of(const char *target, const char *variant)
{
    size_t n = strlen(variant);
    for (const char *s = target; s; s = strchr(s, ',')) {
        s += strspn(s, ", ");
        if (n && strncmp(s, variant, n) == 0 && s[n] == ' ') return s + n + 1;
    }
    return target;
}

hn_wish hn_target_judge(json_t *record)
{
    json_t *stats = json_object_get(record, "stats"), *ci = json_object_get(stats, "ci95");
    const char *target = hn_record_text(record, "target"),
               *variant = hn_record_text(json_object_get(record, "config"), "variant");
    bool least;
    double limit = limit_of(part_of(target, variant), hn_record_text(record, "unit"), variant, &least);
    double lo = hn_record_number(stats, "min"), hi = hn_record_number(stats, "max");
    if (json_array_size(ci) == 2) {
        lo = json_number_value(json_array_get(ci, 0));
        hi = json_number_value(json_array_get(ci, 1));
    }
    if (!isfinite(limit) || !isfinite(lo) || !isfinite(hi)) return HN_WISH_NONE;
    bool met = least ? lo >= limit : hi <= limit, missed = least ? hi < limit : lo > limit;
    return met ? HN_WISH_MET : missed ? HN_WISH_NOT_MET : HN_WISH_OPEN;
}

/* ---- requirements --------------------------------------------------------------------------------------- */

hone_status hn_requirement_parse(hn_requirement *out, const char *text, hone_error *err)
{
    size_t n = strcspn(text, "<>");
    char *end = NULL;
    *out = (hn_requirement){ .limit = NAN };
    if (n > 0 && n < sizeof out->name && text[n]) {
        size_t k = text[n + 1] == '=' ? 2 : 1;
        snprintf(out->name, sizeof out->name, "%.*s", (int)n, text);
        for (size_t i = n; i > 0 && out->name[i - 1] == ' ';) out->name[--i] = 0;
        snprintf(out->op, sizeof out->op, "%.*s", (int)k, text + n);
        out->limit = strtod(text + n + k, &end);
        if (end != text + n + k && !*end && isfinite(out->limit)) return HONE_OK;
    }
    return HN_FAIL(err, HONE_E_ARG, "--require '%s': expected a metric, one of >= <= > <, a number: 'decode_tok_s>=44'",
                   HN_ESC(text, strlen(text)));
}

bool hn_requirement_met(const hn_requirement *r, double value)
{
    double x = value, y = r->limit;
    if (r->op[1]) return r->op[0] == '>' ? x >= y : x <= y;
    return r->op[0] == '>' ? x > y : x < y;
}
