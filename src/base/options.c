/* The options table at work: parsing and typed access. Owns the words of the
 * command line; what they mean is the commands' business. Help, manual and
 * completion are in options_help.c. */
#include "base/options.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

typedef struct slot {
    const hn_opt *opt;
    char *spelled;     /* as given the last time ("-n"); NULL: not given */
    const char **vals; /* every value given, in order */
    size_t n, cap;
} slot;

struct hn_opts {
    slot *slots;
    size_t n_slot;
    const char **args;
    int n_arg;
    hn_argv own; /* texts of hn_opts_replace */
};

/* ---- numbers --------------------------------------------------------------------------- */

hone_status hn_parse_i64(int64_t *out, const char *s, int64_t min, int64_t max, const char *what, hone_error *err)
{
    const char *p = s;
    bool neg = *p == '-';
    if (*p == '-' || *p == '+') p++;
    bool ok = *p >= '0' && *p <= '9', big = false;
    int64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++) /* negative accumulator: INT64_MIN has no positive twin */
        big = big || __builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, *p - '0', &v);
    if (*p) ok = false;
    if (ok && !neg && !big) {
        if (v == INT64_MIN) big = true;
        else v = -v;
    }
    if (!ok)
        return HN_FAIL(err, HONE_E_ARG, "%s: '%s' is not a whole number; expected one from %lld to %lld", what,
                       HN_ESC(s, strlen(s)), (long long)min, (long long)max);
    if (big || v < min || v > max)
        return HN_FAIL(err, HONE_E_ARG, "%s: %s is out of range; expected a whole number from %lld to %lld", what,
                       HN_ESC(s, strlen(s)), (long long)min, (long long)max);
    *out = v;
    return HONE_OK;
}

/* [+-]digits[.digits][e[+-]digits], at least one digit in the mantissa: no hex
 * floats, names, blanks or locale. */
static bool is_decimal(const char *p)
{
    if (*p == '-' || *p == '+') p++;
    size_t digits = 0;
    for (; *p >= '0' && *p <= '9'; p++) digits++;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++) digits++;
    if (!digits) return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '-' || *p == '+') p++;
        if (*p < '0' || *p > '9') return false;
        while (*p >= '0' && *p <= '9') p++;
    }
    return *p == 0;
}

hone_status hn_parse_f32(float *out, const char *s, double min, double max, const char *what, hone_error *err)
{
    if (!is_decimal(s))
        return HN_FAIL(err, HONE_E_ARG, "%s: '%s' is not a number; expected one from %g to %g", what,
                       HN_ESC(s, strlen(s)), min, max);
    /* the program never calls setlocale, so the point is '.' */
    double d = strtod(s, NULL);
    float v = strtof(s, NULL);
    if (!(d >= min && d <= max) || !isfinite(v))
        return HN_FAIL(err, HONE_E_ARG, "%s: %s is out of range; expected a number from %g to %g", what,
                       HN_ESC(s, strlen(s)), min, max);
    *out = v;
    return HONE_OK;
}

static bool id_separator(char c) { return c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

hone_status hn_parse_ids(int32_t **ids, size_t *n, const char *s, size_t len, const char *what, hone_error *err)
{
    *ids = NULL;
    *n = 0;
    int32_t *v = NULL;
    size_t count = 0, cap = 0, i = 0;
    bool comma = true; /* a comma needs an id on both sides */
    hone_status st;
    for (;;) {
        size_t commas = 0;
        for (; i < len && id_separator(s[i]); i++) commas += s[i] == ',';
        if (commas > 1 || (commas && count == 0)) goto empty;
        comma = commas != 0;
        if (i == len) break;
        size_t start = i;
        int64_t x = 0;
        for (; i < len && s[i] >= '0' && s[i] <= '9' && x <= INT32_MAX; i++) x = x * 10 + (s[i] - '0');
        if (i == start || x > INT32_MAX || (i < len && !id_separator(s[i]))) {
            while (i < len && !id_separator(s[i])) i++;
            st = HN_FAIL(err, HONE_E_ARG,
                         "%s: '%s' (item %zu) is not a token id; expected ids from 0 to %d separated by commas", what,
                         HN_ESC(s + start, i - start), count + 1, INT32_MAX);
            goto fail;
        }
        if (count == cap) {
            cap = cap ? cap * 2 : 64;
            int32_t *w = realloc(v, cap * sizeof *v);
            if (!w) {
                st = HN_FAIL(err, HONE_E_NOMEM, "%s: no memory for %zu ids", what, cap);
                goto fail;
            }
            v = w;
        }
        v[count++] = (int32_t)x;
        comma = false;
    }
    if (count == 0) {
        st = HN_FAIL(err, HONE_E_ARG, "%s: no token ids; expected ids separated by commas, as in 1,2,3", what);
        goto fail;
    }
    if (comma) goto empty;
    *ids = v;
    *n = count;
    return HONE_OK;
empty:
    st = HN_FAIL(err, HONE_E_ARG, "%s: empty item %zu; expected ids separated by single commas, as in 1,2,3", what,
                 count + 1);
fail:
    free(v);
    return st;
}

/* ---- nearest word ------------------------------------------------------------------------- */

enum { WORD_MAX = 40 };

/* Edits (insert, delete, replace, swap of neighbours) from a to b; WORD_MAX for long words. */
static int edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n >= WORD_MAX || m >= WORD_MAX) return WORD_MAX;
    int d[WORD_MAX + 1][WORD_MAX + 1];
    for (size_t i = 0; i <= n; i++) d[i][0] = (int)i;
    for (size_t j = 0; j <= m; j++) d[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

const char *hn_nearest(const char *s, const char *const *words, size_t n)
{
    while (*s == '-') s++;
    size_t len = strlen(s);
    if (len == 0) return NULL;
    const char *best = NULL;
    int best_d = 1 + (int)(len + 1) / 4; /* one edit in a short word, a quarter of a long one */
    if (len == 1) best_d = 1;
    for (size_t i = 0; i < n; i++) {
        if (!words[i]) continue;
        const char *w = words[i];
        while (*w == '-') w++;
        int d = edit_distance(s, w);
        if (len >= 3 && d >= best_d && strncmp(s, w, len) == 0 && !best) { /* an abbreviation */
            best = words[i];
            continue;
        }
        if (d < best_d) {
            best_d = d;
            best = words[i];
        }
    }
    return best;
}

/* ---- table -------------------------------------------------------------------------------- */

/* Does word[0..len) equal one of the space separated spellings of o? */
static bool spells(const hn_opt *o, const char *word, size_t len)
{
    if (len > 2 && word[0] == '-' && word[1] == '-' && strlen(o->name) == len - 2 &&
        memcmp(o->name, word + 2, len - 2) == 0)
        return true;
    for (const char *a = o->alias; a && *a;) {
        size_t k = strcspn(a, " ");
        if (k == len && memcmp(a, word, len) == 0) return true;
        a += k;
        while (*a == ' ') a++;
    }
    return false;
}

static slot *find_spelling(hn_opts *o, const char *word, size_t len)
{
    for (size_t i = 0; i < o->n_slot; i++)
        if (spells(o->slots[i].opt, word, len)) return &o->slots[i];
    return NULL;
}

static const slot *find_name(const hn_opts *o, const char *name)
{
    for (size_t i = 0; i < o->n_slot; i++)
        if (strcmp(o->slots[i].opt->name, name) == 0) return &o->slots[i];
    return NULL;
}

static bool choice_known(const char *choices, const char *s)
{
    size_t len = strlen(s);
    for (const char *c = choices;;) {
        size_t k = strcspn(c, "|");
        if (k == len && memcmp(c, s, k) == 0) return true;
        if (!c[k]) return false;
        c += k + 1;
    }
}

static void int_range(const hn_opt *o, int64_t *min, int64_t *max)
{
    *min = o->kind == HN_OPT_I32 ? INT32_MIN : 0;
    *max = o->kind == HN_OPT_I32 ? INT32_MAX : INT64_MAX;
    if (o->min == 0 && o->max == 0) return;
    *min = (int64_t)o->min;
    if (o->max != 0 && o->max < 0x1p62) *max = (int64_t)o->max;
}

static hone_status check_value(const hn_opt *o, const char *what, const char *val, hone_error *err)
{
    int64_t min, max, v;
    float f;
    switch (o->kind) {
    case HN_OPT_I32:
    case HN_OPT_U64: int_range(o, &min, &max); return hn_parse_i64(&v, val, min, max, what, err);
    case HN_OPT_F32:
        return hn_parse_f32(&f, val, o->min == 0 && o->max == 0 ? -3.4e38 : o->min,
                            o->min == 0 && o->max == 0 ? 3.4e38 : o->max, what, err);
    case HN_OPT_CHOICE:
        if (!choice_known(o->choices, val))
            return HN_FAIL(err, HONE_E_ARG, "%s: unknown value '%s'; expected one of %s", what,
                           HN_ESC(val, strlen(val)), o->choices);
        return HONE_OK;
    default: return HONE_OK;
    }
}

/* "did you mean --temp?" for an unknown spelling, or "" */
static void suggest(const hn_opts *o, const char *word, size_t len, char *dst, size_t cap)
{
    *dst = 0;
    char w[WORD_MAX], all[4096];
    const char *words[256];
    size_t n = 0, used = 0;
    if (len >= sizeof w) return;
    memcpy(w, word, len);
    w[len] = 0;
    for (size_t i = 0; i < o->n_slot; i++) {
        const hn_opt *p = o->slots[i].opt;
        size_t room = sizeof all - used;
        size_t k = (size_t)snprintf(all + used, room, "--%s %s", p->name, p->alias ? p->alias : "");
        if (k >= room) break;
        char *s = all + used, *save = NULL;
        used += k + 1;
        for (char *t = strtok_r(s, " ", &save); t && n < 256; t = strtok_r(NULL, " ", &save)) words[n++] = t;
    }
    /* a short option with its value attached: -n5 */
    if (len > 2 && w[0] == '-' && w[1] != '-')
        for (size_t i = 0; i < o->n_slot; i++)
            if (o->slots[i].opt->kind != HN_OPT_FLAG && spells(o->slots[i].opt, w, 2) &&
                (w[2] == '=' || w[2] == '-' || (w[2] >= '0' && w[2] <= '9'))) {
                snprintf(dst, cap, "; write %.2s %s", w, w + 2 + (w[2] == '='));
                return;
            }
    const char *best = hn_nearest(w, words, n);
    if (best) snprintf(dst, cap, "; did you mean %s?", best);
}

static hone_status add_value(slot *s, const char *val, hone_error *err)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 2;
        const char **v = realloc(s->vals, cap * sizeof *v);
        if (!v) return HN_FAIL(err, HONE_E_NOMEM, "command line");
        s->vals = v;
        s->cap = cap;
    }
    s->vals[s->n++] = val;
    return HONE_OK;
}

/* Two models or two texts, and only the last would be used: nobody means that. */
static bool is_setting(const hn_opt *o) { return o->kind != HN_OPT_STR && o->kind != HN_OPT_FILE; }

static hone_status check_once(const slot *s, const char *val, hone_error *err)
{
    const char *was = s->n ? s->vals[s->n - 1] : NULL;
    if (s->opt->repeat || !was || is_setting(s->opt) || strcmp(was, val) == 0) return HONE_OK;
    return HN_FAIL(err, HONE_E_ARG, "%s is given twice, with '%s' and with '%s'; give one of them", s->spelled,
                   HN_ESC(was, strlen(was)), HN_ESC(val, strlen(val)));
}

static hone_status parse_option(hn_opts *o, int *i, int argc, char *const *argv, hone_error *err)
{
    const char *word = argv[*i];
    const char *eq = strchr(word, '=');
    size_t len = word[1] == '-' && eq ? (size_t)(eq - word) : strlen(word);
    slot *s = find_spelling(o, word, len);
    if (!s) {
        char hint[160];
        suggest(o, word, len, hint, sizeof hint);
        return HN_FAIL(err, HONE_E_ARG, "unknown option %s%s", HN_ESC(word, len), hint);
    }
    free(s->spelled);
    s->spelled = strndup(word, len);
    if (!s->spelled) return HN_FAIL(err, HONE_E_NOMEM, "command line");
    const char *val = NULL;
    if (s->opt->kind == HN_OPT_FLAG) {
        if (len < strlen(word))
            return HN_FAIL(err, HONE_E_ARG, "%s takes no value; seen '%s'", s->spelled, HN_ESC(word, strlen(word)));
    } else if (len < strlen(word)) {
        val = word + len + 1;
    } else {
        if (*i + 1 >= argc)
            return HN_FAIL(err, HONE_E_ARG, "%s needs a value: %s %s", s->spelled, s->spelled,
                           s->opt->arg ? s->opt->arg : "VALUE");
        val = argv[++*i];
    }
    if (val) {
        hone_status st = check_value(s->opt, s->spelled, val, err);
        if (st == HONE_OK) st = check_once(s, val, err);
        if (st != HONE_OK) return st;
    }
    return add_value(s, val, err);
}

static hone_status check_exclusive(const hn_opts *o, hone_error *err)
{
    for (size_t i = 0; i < o->n_slot; i++) {
        const slot *a = &o->slots[i];
        if (!a->n || !a->opt->excl) continue;
        for (size_t j = i + 1; j < o->n_slot; j++) {
            const slot *b = &o->slots[j];
            if (b->n && b->opt->excl && strcmp(a->opt->excl, b->opt->excl) == 0)
                return HN_FAIL(err, HONE_E_ARG, "%s and %s contradict each other; give one of them", a->spelled,
                               b->spelled);
        }
    }
    return HONE_OK;
}

hone_status hn_opts_supply(hn_opts *o, const char *name, const char *value, hone_error *err)
{
    slot *s = (slot *)find_name(o, name); /* one of o's, which is not const here */
    assert(s && "option not in the command's table");
    if (!s->spelled && !(s->spelled = strdup(name))) return HN_FAIL(err, HONE_E_NOMEM, "command line");
    return add_value(s, value, err);
}

hone_status hn_opts_replace(hn_opts *o, const char *name, size_t i, const char *value, hone_error *err)
{
    slot *s = name ? (slot *)find_name(o, name) : NULL;
    const char **at = !name ? (i < (size_t)o->n_arg ? &o->args[i] : NULL) : s && i < s->n ? &s->vals[i] : NULL;
    assert(at && "nothing there to be replaced");
    hn_argv_add(&o->own, "%s", value);
    hone_status st = hn_argv_check(&o->own, "the command line", err);
    if (st == HONE_OK) *at = o->own.word[o->own.n - 1];
    return st;
}

/* Arguments that stand for options move there. */
static hone_status place_args(hn_opts *o, const char *takes, hone_error *err)
{
    int from = 0;
    for (const char *w = takes; w && *w && from < o->n_arg;) {
        size_t k = strcspn(w, " ");
        for (size_t i = 0; i < o->n_slot; i++) {
            slot *s = &o->slots[i];
            if (strlen(s->opt->name) != k || memcmp(s->opt->name, w, k) != 0 || s->n) continue;
            s->spelled = strndup(o->args[from], strlen(o->args[from]));
            hone_status st =
                s->spelled ? add_value(s, o->args[from++], err) : HN_FAIL(err, HONE_E_NOMEM, "command line");
            if (st != HONE_OK) return st;
            break;
        }
        w += k + (w[k] == ' ');
    }
    o->n_arg -= from;
    memmove(o->args, o->args + from, (size_t)o->n_arg * sizeof *o->args);
    return HONE_OK;
}

bool hn_opts_knows(const hn_command *cmd, const hn_opt_group *const *common, const char *word)
{
    const hn_opt_group *const *lists[] = { cmd->groups, common };
    for (int i = 0; i < 2; i++)
        for (const hn_opt_group *const *g = lists[i]; g && *g; g++)
            for (const hn_opt *p = (*g)->opts; p->name; p++)
                if (spells(p, word, strcspn(word, "="))) return true;
    return false;
}

static size_t count_options(const hn_opt_group *const *g)
{
    size_t n = 0;
    for (; g && *g; g++)
        for (const hn_opt *p = (*g)->opts; p->name; p++) n++;
    return n;
}

static void add_slots(hn_opts *o, const hn_opt_group *const *g)
{
    for (; g && *g; g++)
        for (const hn_opt *p = (*g)->opts; p->name; p++) o->slots[o->n_slot++].opt = p;
}

hone_status hn_opts_parse(hn_opts **out, const hn_command *cmd, const hn_opt_group *const *common, int argc,
                          char *const *argv, hone_error *err)
{
    hone_status st;
    *out = NULL;
    hn_opts *o = calloc(1, sizeof *o);
    size_t n = count_options(cmd->groups) + count_options(common);
    if (o) o->slots = calloc(n + 1, sizeof *o->slots);
    if (o) o->args = calloc((size_t)argc + 1, sizeof *o->args);
    if (!o || !o->slots || !o->args) {
        hn_opts_free(o);
        return HN_FAIL(err, HONE_E_NOMEM, "command line");
    }
    add_slots(o, cmd->groups);
    add_slots(o, common);
    bool only_args = false;
    for (int i = 0; i < argc; i++) {
        const char *a = argv[i];
        if (!only_args && strcmp(a, "--") == 0) {
            only_args = true;
        } else if (!only_args && a[0] == '-' && a[1]) {
            if ((st = parse_option(o, &i, argc, argv, err)) != HONE_OK) goto fail;
        } else {
            o->args[o->n_arg++] = a;
        }
    }
    if ((st = place_args(o, cmd->takes, err)) != HONE_OK) goto fail;
    if ((st = check_exclusive(o, err)) != HONE_OK) goto fail;
    *out = o;
    return HONE_OK;
fail:
    hn_opts_free(o);
    return st;
}

hone_status hn_opts_check_args(const hn_opts *o, const hn_command *cmd, hone_error *err)
{
    if (cmd->max_args >= 0 && o->n_arg > cmd->max_args) {
        const char *extra = o->args[cmd->max_args];
        const char *quotes =
            cmd->takes && strstr(cmd->takes, "prompt") ? "; text of several words stands between quotes" : "";
        if (!cmd->args)
            return HN_FAIL(err, HONE_E_ARG, "unexpected argument '%s'; %s takes only options",
                           HN_ESC(extra, strlen(extra)), cmd->name);
        return HN_FAIL(err, HONE_E_ARG, "unexpected argument '%s'; %s takes %s%s", HN_ESC(extra, strlen(extra)),
                       cmd->name, cmd->args, quotes);
    }
    if (o->n_arg < cmd->min_args)
        return HN_FAIL(err, HONE_E_ARG, "missing argument: %s needs %s", cmd->name, cmd->args);
    return HONE_OK;
}

void hn_opts_free(hn_opts *o)
{
    if (!o) return;
    for (size_t i = 0; o->slots && i < o->n_slot; i++) {
        free(o->slots[i].vals);
        free(o->slots[i].spelled);
    }
    free(o->slots);
    free(o->args);
    hn_argv_free(&o->own);
    free(o);
}

/* ---- getters --------------------------------------------------------------------------------- */

static const slot *get(const hn_opts *o, const char *name)
{
    const slot *s = find_name(o, name);
    assert(s && "option not in the command's table");
    return s;
}

static const char *text_of(const slot *s) { return s->n ? s->vals[s->n - 1] : s->opt->def; }

bool hn_opts_has(const hn_opts *o, const char *name) { return find_name(o, name) != NULL; }
bool hn_opts_given(const hn_opts *o, const char *name) { return get(o, name)->n != 0; }

bool hn_opts_flag(const hn_opts *o, const char *name)
{
    const slot *s = get(o, name);
    assert(s->opt->kind == HN_OPT_FLAG);
    return s->n != 0;
}

const char *hn_opts_str(const hn_opts *o, const char *name)
{
    const slot *s = get(o, name);
    assert(s->opt->kind == HN_OPT_STR || s->opt->kind == HN_OPT_FILE || s->opt->kind == HN_OPT_CHOICE);
    return text_of(s);
}

static int64_t int_value(const slot *s)
{
    const char *t = text_of(s);
    int64_t v = 0;
    if (t) hn_parse_i64(&v, t, INT64_MIN, INT64_MAX, s->opt->name, NULL);
    return v;
}

int32_t hn_opts_i32(const hn_opts *o, const char *name)
{
    const slot *s = get(o, name);
    assert(s->opt->kind == HN_OPT_I32);
    return (int32_t)int_value(s);
}

uint64_t hn_opts_u64(const hn_opts *o, const char *name)
{
    const slot *s = get(o, name);
    assert(s->opt->kind == HN_OPT_U64);
    return (uint64_t)int_value(s);
}

float hn_opts_f32(const hn_opts *o, const char *name)
{
    const slot *s = get(o, name);
    assert(s->opt->kind == HN_OPT_F32);
    const char *t = text_of(s);
    return t ? strtof(t, NULL) : 0;
}

size_t hn_opts_count(const hn_opts *o, const char *name) { return get(o, name)->n; }

const char *hn_opts_nth(const hn_opts *o, const char *name, size_t i)
{
    const slot *s = get(o, name);
    return i < s->n ? s->vals[i] : NULL;
}

void hn_opts_forward(const hn_opts *o, unsigned groups, bool defaults, hn_argv *out)
{
    for (size_t i = 0; i < o->n_slot; i++) {
        const slot *s = &o->slots[i];
        if (!(s->opt->forward & groups)) continue;
        if (s->opt->kind == HN_OPT_FLAG && s->n) hn_argv_add(out, "--%s", s->opt->name);
        if (s->opt->kind == HN_OPT_FLAG) continue;
        size_t from = s->opt->repeat || !s->n ? 0 : s->n - 1; /* the last one wins */
        for (size_t k = from; k < s->n; k++) hn_argv_add(out, "--%s=%s", s->opt->name, s->vals[k]);
        if (!s->n && defaults && s->opt->def) hn_argv_add(out, "--%s=%s", s->opt->name, s->opt->def);
    }
}

const char *hn_opts_overruled(const hn_opts *o, size_t *at, const char **was, const char **is)
{
    for (; *at < o->n_slot; ++*at) {
        const slot *s = &o->slots[*at];
        if (s->opt->repeat || s->n < 2 || !s->vals[0]) continue;
        *was = s->vals[s->n - 2];
        *is = s->vals[s->n - 1];
        if (strcmp(*was, *is) == 0) continue;
        ++*at;
        return s->spelled;
    }
    return NULL;
}

const char *hn_opts_next(const hn_opts *o, size_t *at, const char **spelled)
{
    while (*at < o->n_slot && !o->slots[*at].n) ++*at;
    if (*at >= o->n_slot) return NULL;
    *spelled = o->slots[*at].spelled;
    return o->slots[(*at)++].opt->name;
}

int hn_opts_n_args(const hn_opts *o) { return o->n_arg; }
const char *hn_opts_arg(const hn_opts *o, int i) { return i >= 0 && i < o->n_arg ? o->args[i] : NULL; }
