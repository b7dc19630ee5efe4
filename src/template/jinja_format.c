/* jinja_format: text from patterns: '%' formatting, str.format, strftime. */
#include "template/jinja_priv.h"

enum { MAX_WIDTH = 10000, MAX_PRECISION = 300 };

/* Pads what lies between from and the end of b. */
static void pad(hn_jrun *r, hn_jbuf *b, const hn_jstr *s, int64_t width, uint32_t fill, bool fill_input, char align)
{
    int64_t n = (int64_t)hn_js_chars(r, s);
    if (align == '^' && width > n) { /* the odd one on the right; str.center has it elsewhere */
        s = hn_js_pad(r, s, n + (width - n) / 2, fill, fill_input, HN_J_RIGHT);
        align = '<';
    }
    hn_jb_str(r, b, hn_js_pad(r, s, width, fill, fill_input, align == '<' ? HN_J_LEFT : HN_J_RIGHT));
}

/* In base 8 or 16 as Python writes it: sign, 0x or 0o where flags ask for it, digits. */
static void based_digits(char *out, size_t cap, int64_t i, const char *flags, int precision, char conv)
{
    char fmt[32], digits[512];
    const char *sign = i < 0 ? "-" : strchr(flags, '+') ? "+" : strchr(flags, ' ') ? " " : "";
    const char prefix[3] = { strchr(flags, '#') ? '0' : 0, conv, 0 };
    snprintf(fmt, sizeof fmt, "%%.%dll%c", precision < 1 ? 1 : precision, conv);
    snprintf(digits, sizeof digits, fmt, i < 0 ? 0 - (unsigned long long)i : (unsigned long long)i);
    snprintf(out, cap, "%s%s%s", sign, prefix, digits);
}

/* x as printf would print it with %[flags].precision(conv), locale apart. */
static hn_jstr *number_text(hn_jrun *r, double x, int64_t i, bool is_int, const char *flags, int precision, char conv,
                            bool input)
{
    char fmt[32], out[700];
    if (is_int) {
        if (precision >= 0) snprintf(fmt, sizeof fmt, "%%%s.%dll%c", flags, precision, conv);
        else snprintf(fmt, sizeof fmt, "%%%sll%c", flags, conv);
        if (conv == 'd') snprintf(out, sizeof out, fmt, (long long)i);
        else based_digits(out, sizeof out, i, flags, precision, conv);
    } else {
        snprintf(fmt, sizeof fmt, "%%%s.%d%c", flags, precision < 0 ? 6 : precision, conv);
        snprintf(out, sizeof out, fmt, x);
        for (char *p = out; *p; p++)
            if (*p == ',') *p = '.';
    }
    return hn_js_copy(HN_JC(r), out, strlen(out), input);
}

/* fill between sign and digits up to width. */
static hn_jstr *fill_inside(hn_jrun *r, const hn_jstr *s, int64_t width, uint32_t fill, bool fill_input)
{
    size_t sign = s->len && hn_jj_one_of(s->p[0], "+- ");
    if (s->len > sign + 1 && s->p[sign] == '0' && hn_jj_one_of(s->p[sign + 1], "xXoO")) sign += 2;
    return hn_js_concat(
        r, hn_js_part(r, s, 0, sign),
        hn_js_pad(r, hn_js_part(r, s, sign, s->len - sign), width - (int64_t)sign, fill, fill_input, HN_J_RIGHT));
}

static hn_jstr *cut(hn_jrun *r, hn_jstr *s, int precision)
{
    return precision >= 0 && hn_js_chars(r, s) > (size_t)precision
               ? hn_js_part(r, s, 0, hn_js_offset(s, (size_t)precision))
               : s;
}

static int small_number(hn_jrun *r, const hn_jstr *f, size_t *i, int max)
{
    int n = 0;
    for (; *i < f->len && f->p[*i] >= '0' && f->p[*i] <= '9'; ++*i) {
        n = n * 10 + (f->p[*i] - '0');
        if (n > max) HN_JFAIL(r, "width or precision beyond %d in a format", max);
    }
    return n;
}

static int64_t as_int(hn_jrun *r, hn_jval v, char conv)
{
    if (v.kind == HN_J_FLOAT && v.u.f > -0x1p63 && v.u.f < 0x1p63 && conv == 'd') return (int64_t)v.u.f;
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (v.kind != HN_J_INT && v.kind != HN_J_BOOL)
        HN_JFAIL(r, "%%%c format: a number is required, not %s", conv, hn_jv_type(v));
    return hn_jv_int(v);
}
static double as_float(hn_jrun *r, hn_jval v)
{
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (!hn_jv_is_num(v)) HN_JFAIL(r, "must be real number, not %s", hn_jv_type(v));
    return hn_jv_num(v);
}

static hn_jstr *repr(hn_jrun *r, hn_jval v)
{
    hn_jbuf b = { 0 };
    hn_jv_repr(r, &b, v);
    return hn_jb_done(r, &b);
}

/* ---- '%' ---------------------------------------------------------------------------------------- */

typedef struct percent_args {
    hn_jval all;
    hn_jval *v;
    size_t n, at;
} percent_args;

static hn_jval next_arg(hn_jrun *r, percent_args *p)
{
    if (p->at >= p->n) HN_JFAIL(r, "not enough arguments for format string");
    return p->v[p->at++];
}

static void one_percent(hn_jrun *r, hn_jbuf *b, const hn_jstr *f, size_t *i, percent_args *p)
{
    hn_jval v = HN_JNIL;
    char flags[8] = "";
    size_t n_flags = 0;
    bool left = false, zero = false;
    int width = 0, precision = -1;
    size_t start = *i;
    if (*i < f->len && f->p[*i] == '(') {
        const char *e = memchr(f->p + *i, ')', f->len - *i);
        if (!e) HN_JFAIL(r, "incomplete format key");
        if (p->all.kind != HN_J_DICT) HN_JFAIL(r, "format requires a mapping");
        size_t end = (size_t)(e - f->p);
        hn_jval *found = hn_jd_get(r, p->all.u.d, HN_JSTR(hn_js_part(r, f, *i + 1, end - *i - 1)));
        if (!found) HN_JFAIL(r, "format key '%s' is missing", HN_ESC(f->p + *i + 1, end - *i - 1));
        v = *found;
        p->at = p->n;
        *i = end + 1;
    }
    for (; *i < f->len && hn_jj_one_of(f->p[*i], "-+ #0"); ++*i) {
        if (f->p[*i] == '-') left = true;
        else if (f->p[*i] == '0') zero = true;
        else if (n_flags + 1 < sizeof flags && !hn_jj_one_of(f->p[*i], flags))
            flags[n_flags++] = f->p[*i], flags[n_flags] = 0;
    }
    if (*i < f->len && f->p[*i] == '*') {
        ++*i;
        int64_t w = as_int(r, next_arg(r, p), 'd');
        if (w < -MAX_WIDTH || w > MAX_WIDTH) HN_JFAIL(r, "width beyond %d in a format", MAX_WIDTH);
        left |= w < 0;
        width = (int)(w < 0 ? -w : w);
    } else {
        width = small_number(r, f, i, MAX_WIDTH);
    }
    if (*i < f->len && f->p[*i] == '.') {
        ++*i;
        precision = small_number(r, f, i, MAX_PRECISION);
    }
    while (*i < f->len && hn_jj_one_of(f->p[*i], "hlL")) ++*i;
    if (*i >= f->len) HN_JFAIL(r, "incomplete format");
    char conv = f->p[(*i)++];
    if (conv == '%' && *i == start + 1) {
        hn_jb_lit(r, b, "%");
        return;
    }
    if (!hn_jj_one_of(conv, "sradiuxXoeEfFgGc")) HN_JFAIL(r, "unsupported format character '%s'", HN_ESC(&conv, 1));
    if (v.kind == HN_J_NIL) v = next_arg(r, p);
    hn_jstr *s;
    if (conv == 's') {
        s = cut(r, hn_jv_text(r, v), precision);
    } else if (conv == 'r') {
        s = cut(r, repr(r, v), precision);
    } else if (conv == 'a') {
        HN_JUNSUPPORTED(r, "the format %%a is not supported");
    } else if (conv == 'c') {
        if (v.kind == HN_J_STR) {
            if (hn_js_chars(r, v.u.s) != 1) HN_JFAIL(r, "%%c requires int or char");
            s = v.u.s;
        } else {
            int64_t c = as_int(r, v, conv);
            if (c < 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) HN_JFAIL(r, "%%c arg not in range(0x110000)");
            hn_jbuf one = { 0 };
            hn_jb_cp(r, &one, (uint32_t)c, v.input);
            s = hn_jb_done(r, &one);
        }
    } else if (hn_jj_one_of(conv, "diuxXo")) {
        char k = conv == 'i' || conv == 'u' ? 'd' : conv;
        s = number_text(r, 0, as_int(r, v, k), true, flags, precision, k, v.input);
    } else {
        s = number_text(r, as_float(r, v), 0, false, flags, precision, conv, v.input);
    }
    if (zero && !left && !hn_jj_one_of(conv, "sracC")) s = fill_inside(r, s, width, '0', false);
    pad(r, b, s, width, ' ', false, left ? '<' : '>');
}

hn_jval hn_jj_percent(hn_jrun *r, const hn_jstr *f, hn_jval args)
{
    hn_jbuf b = { 0 };
    if (f->markup) HN_JUNSUPPORTED(r, "formatting markup (of the filters safe and escape)");
    percent_args p = { .all = args, .v = &args, .n = 1 };
    if (args.kind == HN_J_TUPLE) p.v = args.u.l->v, p.n = args.u.l->n;
    for (size_t i = 0; i < f->len;) {
        const char *k = memchr(f->p + i, '%', f->len - i);
        size_t e = k ? (size_t)(k - f->p) : f->len;
        hn_jb_str(r, &b, hn_js_part(r, f, i, e - i));
        if (!k) break;
        i = e + 1;
        hn_jj_charge(r, 1);
        one_percent(r, &b, f, &i, &p);
    }
    if (p.at < p.n && args.kind != HN_J_DICT && args.kind != HN_J_LIST)
        HN_JFAIL(r, "not all arguments converted during string formatting");
    return HN_JSTR(hn_jb_done(r, &b));
}

/* ---- str.format ------------------------------------------------------------------------------------ */

/* One replacement field's value: "0.name[key]" with automatic numbering. */
static hn_jval field_value(hn_jrun *r, const hn_jstr *name, const hn_jargs *a, size_t *automatic, bool *manual)
{
    size_t e = 0;
    while (e < name->len && name->p[e] != '.' && name->p[e] != '[') e++;
    hn_jval v = HN_JNIL;
    bool digits = e > 0 && e < 8;
    size_t index = 0;
    for (size_t i = 0; i < e; i++) {
        digits &= name->p[i] >= '0' && name->p[i] <= '9';
        if (digits) index = index * 10 + (size_t)(name->p[i] - '0');
    }
    if (e == 0 || digits) {
        if (e == 0 ? *manual : *automatic > 0) HN_JFAIL(r, "cannot mix numbered and automatic fields in a format");
        *manual = e > 0;
    }
    if (e == 0) index = (*automatic)++;
    if (e == 0 || digits) {
        if (index >= a->n) HN_JFAIL(r, "Replacement index %zu out of range for positional args tuple", index);
        v = a->v[index];
    } else {
        for (size_t k = 0; k < a->n_kw; k++)
            if (a->kw[k].name->len == e && memcmp(a->kw[k].name->p, name->p, e) == 0) v = a->kw[k].v;
        if (v.kind == HN_J_NIL) HN_JFAIL(r, "format: no argument '%s'", HN_ESC(name->p, e));
    }
    while (e < name->len) {
        if (name->p[e] == '.') {
            size_t from = ++e;
            while (e < name->len && name->p[e] != '.' && name->p[e] != '[') e++;
            v = hn_jj_attr(r, v, hn_js_part(r, name, from, e - from));
        } else {
            const char *close = memchr(name->p + e, ']', name->len - e);
            if (name->p[e] != '[' || !close) HN_JFAIL(r, "malformed replacement field");
            hn_jstr *key = hn_js_part(r, name, e + 1, (size_t)(close - name->p) - e - 1);
            bool number = key->len > 0 && key->len < 8;
            int64_t k = 0;
            for (size_t i = 0; number && i < key->len; i++) {
                number = key->p[i] >= '0' && key->p[i] <= '9';
                k = k * 10 + (key->p[i] - '0');
            }
            v = hn_jj_index(r, v, number ? HN_JINT(k) : HN_JSTR(key));
            e = (size_t)(close - name->p) + 1;
        }
        if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    }
    return v;
}

static hn_jstr *group_digits(hn_jrun *r, const hn_jstr *s, char with)
{
    size_t first = 0, last;
    while (first < s->len && (s->p[first] < '0' || s->p[first] > '9')) first++;
    for (last = first; last < s->len && s->p[last] >= '0' && s->p[last] <= '9';) last++;
    hn_jbuf b = { 0 };
    for (size_t i = 0; i < s->len; i++) {
        if (i > first && i < last && (last - i) % 3 == 0) hn_jb_put(r, &b, &with, 1, false);
        hn_jb_put(r, &b, s->p + i, 1, s->fl ? s->fl[i] : s->input);
    }
    return hn_jb_done(r, &b);
}

/* Text by a specifier: what means something for numbers alone is refused. */
static void check_text_spec(hn_jrun *r, const char *flags, char group, char align)
{
    if (hn_jj_one_of(*flags, "+-")) HN_JFAIL(r, "Sign not allowed in string format specifier");
    if (*flags == ' ') HN_JFAIL(r, "Space not allowed in string format specifier");
    if (*flags == '#') HN_JFAIL(r, "Alternate form (#) not allowed in string format specifier");
    if (align == '=') HN_JFAIL(r, "'=' alignment not allowed in string format specifier");
    if (group) HN_JFAIL(r, "Cannot specify '%c' with 's'.", group);
}

/* [[fill]align][sign][#][0][width][,][.precision][type] */
static void put_formatted(hn_jrun *r, hn_jbuf *b, hn_jval v, const hn_jstr *spec)
{
    size_t i = 0, used = 0;
    uint32_t fill = ' ';
    char align = 0, flags[4] = "", group = 0, type = 0;
    bool zero = false, filled = false, fill_input = hn_js_any_input(spec);
    int precision = -1;
    if (spec->len) {
        uint32_t c = hn_jj_cp(spec->p, spec->len, &used);
        filled = used < spec->len && hn_jj_one_of(spec->p[used], "<>^=");
        if (filled) fill = c, align = spec->p[used], i = used + 1;
        else if (hn_jj_one_of(spec->p[0], "<>^=")) align = spec->p[0], i = 1;
    }
    if (i < spec->len && hn_jj_one_of(spec->p[i], "+ -")) flags[0] = spec->p[i++];
    if (i < spec->len && spec->p[i] == '#') flags[strlen(flags)] = spec->p[i++];
    if (!filled && i < spec->len && spec->p[i] == '0') zero = true, fill = '0', i++;
    int width = small_number(r, spec, &i, MAX_WIDTH);
    if (i < spec->len && (spec->p[i] == ',' || spec->p[i] == '_')) group = spec->p[i++];
    if (i < spec->len && spec->p[i] == '.') {
        i++;
        precision = small_number(r, spec, &i, MAX_PRECISION);
    }
    if (i < spec->len) type = spec->p[i++];
    if (i < spec->len || (i && !spec->p[i - 1]))
        HN_JFAIL(r, "Invalid format specifier '%s'", HN_ESC(spec->p, spec->len));
    hn_jstr *s;
    bool number = hn_jv_is_num(v) && !(v.kind == HN_J_BOOL && !spec->len);
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (!number) {
        if (type && type != 's')
            HN_JFAIL(r, "Unknown format code '%s' for object of type '%s'", HN_ESC(&type, 1), hn_jv_type(v));
        if (v.kind != HN_J_STR && spec->len && v.kind != HN_J_BOOL)
            HN_JFAIL(r, "unsupported format string passed to %s.__format__", hn_jv_type(v));
        check_text_spec(r, flags, group, align);
        s = cut(r, hn_jv_text(r, v), precision);
        pad(r, b, s, width, fill, fill_input && filled, align ? align : '<');
        return;
    }
    if (flags[0] == '-') flags[0] = flags[1], flags[1] = 0; /* the usual */
    if (precision >= 0 && v.kind != HN_J_FLOAT && (!type || hn_jj_one_of(type, "dxXo")))
        HN_JFAIL(r, "Precision not allowed in integer format specifier");
    if (group && (zero || align == '=' || (type && !hn_jj_one_of(type, "deEfFgG%"))))
        HN_JUNSUPPORTED(r, "the format specifier '%s' is not supported", HN_ESC(spec->p, spec->len));
    if (!type && v.kind == HN_J_FLOAT && precision < 0 && !strchr(flags, '#')) {
        s = hn_jv_text(r, v);
        if (*flags && s->len && s->p[0] != '-') s = hn_js_concat(r, hn_js_copy(HN_JC(r), flags, 1, v.input), s);
    } else if ((!type || type == 'd') && v.kind != HN_J_FLOAT)
        s = number_text(r, 0, hn_jv_int(v), true, flags, -1, 'd', v.input);
    else if (hn_jj_one_of(type, "xXo")) s = number_text(r, 0, as_int(r, v, type), true, flags, -1, type, v.input);
    else if (type == '%')
        s = hn_js_concat(r, number_text(r, hn_jv_num(v) * 100, 0, false, flags, precision, 'f', v.input),
                         hn_js_lit(HN_JC(r), "%"));
    else if (hn_jj_one_of(type, "eEfFgG")) s = number_text(r, hn_jv_num(v), 0, false, flags, precision, type, v.input);
    else HN_JUNSUPPORTED(r, "the format specifier '%s' is not supported", HN_ESC(spec->p, spec->len));
    if (group) s = group_digits(r, s, group);
    if ((zero && !align) || align == '=') s = fill_inside(r, s, width, fill, fill_input && filled);
    pad(r, b, s, width, fill, fill_input && filled, align && align != '=' ? align : '>');
}

hn_jval hn_jj_format(hn_jrun *r, const hn_jstr *f, const hn_jargs *a)
{
    hn_jbuf b = { 0 };
    size_t automatic = 0;
    bool manual = false;
    if (f->markup) HN_JUNSUPPORTED(r, "formatting markup (of the filters safe and escape)");
    for (size_t i = 0; i < f->len;) {
        size_t e = i;
        while (e < f->len && f->p[e] != '{' && f->p[e] != '}') e++;
        hn_jb_str(r, &b, hn_js_part(r, f, i, e - i));
        if (e >= f->len) break;
        hn_jj_charge(r, 1);
        if (e + 1 < f->len && f->p[e + 1] == f->p[e]) {
            hn_jb_str(r, &b, hn_js_part(r, f, e, 1));
            i = e + 2;
            continue;
        }
        if (f->p[e] == '}') HN_JFAIL(r, "Single '}' encountered in format string");
        size_t close = e + 1, spec = 0, conv = 0, brackets = 0;
        for (; close < f->len && f->p[close] != '}'; close++) {
            if (f->p[close] == '{') HN_JUNSUPPORTED(r, "fields within fields of a format are not supported");
            if (f->p[close] == '[') brackets = 1;
            if (f->p[close] == ']') brackets = 0;
            if (brackets || spec) continue;
            if (f->p[close] == ':') spec = close;
            if (f->p[close] == '!') conv = close;
        }
        if (close >= f->len) HN_JFAIL(r, "expected '}' before end of string");
        size_t end = conv ? conv : spec ? spec : close;
        hn_jval v = field_value(r, hn_js_part(r, f, e + 1, end - e - 1), a, &automatic, &manual);
        if (conv) {
            char c = conv + 1 < close ? f->p[conv + 1] : 0;
            if (c != 's' && c != 'r') HN_JFAIL(r, "Unknown conversion specifier in a format");
            v = HN_JSTR(c == 's' ? hn_jv_text(r, v) : repr(r, v));
        }
        put_formatted(r, &b, v, spec ? hn_js_part(r, f, spec + 1, close - spec - 1) : hn_js_lit(HN_JC(r), ""));
        i = close + 1;
    }
    return HN_JSTR(hn_jb_done(r, &b));
}

/* ---- time ----------------------------------------------------------------------------------------------- */

static bool leap(int y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

static int day_of_year(const hn_jinja_time *t) /* from 1 */
{
    static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    return before[t->month - 1] + t->day + (t->month > 2 && leap(t->year));
}

static int day_of_week(const hn_jinja_time *t) /* 0: Sunday */
{
    int y = t->year - 1;
    return (int)(((int64_t)y * 365 + y / 4 - y / 100 + y / 400 + day_of_year(t)) % 7);
}

/* Week of ISO 8601 and the year it belongs to. */
static int iso_week(const hn_jinja_time *t, int *year)
{
    int wd = (day_of_week(t) + 6) % 7 + 1, w = (day_of_year(t) - wd + 10) / 7; /* Monday is 1 */
    *year = t->year;
    if (w < 1) {
        hn_jinja_time last = { .year = t->year - 1, .month = 12, .day = 31 };
        return iso_week(&last, year);
    }
    if (w == 53) {
        hn_jinja_time first = { .year = t->year + 1, .month = 1, .day = 1 };
        if ((day_of_week(&first) + 6) % 7 < 4) {
            ++*year;
            return 1;
        }
    }
    return w;
}

static const char *const months[] = { "January", "February", "March",     "April",   "May",      "June",
                                      "July",    "August",   "September", "October", "November", "December" };
static const char *const days[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" };

/* Fields that are words, or several numbers. False: c is none of them. */
static bool time_words(const hn_jinja_time *t, char c, char out[80])
{
    int hour12 = t->hour % 12 ? t->hour % 12 : 12, wd = day_of_week(t);
    *out = 0;
    switch (c) {
    case 'A': snprintf(out, 80, "%s", days[wd]); return true;
    case 'a': snprintf(out, 80, "%.3s", days[wd]); return true;
    case 'B': snprintf(out, 80, "%s", months[t->month - 1]); return true;
    case 'b':
    case 'h': snprintf(out, 80, "%.3s", months[t->month - 1]); return true;
    case 'p': snprintf(out, 80, "%s", t->hour < 12 ? "AM" : "PM"); return true;
    case 'P': snprintf(out, 80, "%s", t->hour < 12 ? "am" : "pm"); return true;
    case 'F': snprintf(out, 80, "%d-%02d-%02d", t->year, t->month, t->day); return true;
    case 'D':
    case 'x': snprintf(out, 80, "%02d/%02d/%02d", t->month, t->day, t->year % 100); return true;
    case 'T':
    case 'X': snprintf(out, 80, "%02d:%02d:%02d", t->hour, t->minute, t->second); return true;
    case 'R': snprintf(out, 80, "%02d:%02d", t->hour, t->minute); return true;
    case 'r':
        snprintf(out, 80, "%02d:%02d:%02d %s", hour12, t->minute, t->second, t->hour < 12 ? "AM" : "PM");
        return true;
    case 'c':
        snprintf(out, 80, "%.3s %.3s %2d %02d:%02d:%02d %d", days[wd], months[t->month - 1], t->day, t->hour, t->minute,
                 t->second, t->year);
        return true;
    case 'n': snprintf(out, 80, "%s", "\n"); return true;
    case 't': snprintf(out, 80, "%s", "\t"); return true;
    case '%': snprintf(out, 80, "%s", "%"); return true;
    case 'z':
    case 'Z': return true; /* a time without a zone */
    default: return false;
    }
}

/* Into out; sign: '-' no padding, '_' spaces, '0' zeros, 0 the usual. False: unknown. */
static bool time_field(const hn_jinja_time *t, char c, char sign, char out[80])
{
    int n, width = 2, hour12 = t->hour % 12 ? t->hour % 12 : 12, iso_year, wd = day_of_week(t);
    char fill = '0';
    if (time_words(t, c, out)) return true;
    switch (c) {
    case 'Y':
        n = t->year;
        width = 1;
        break;
    case 'C': n = t->year / 100; break;
    case 'y': n = t->year % 100; break;
    case 'm': n = t->month; break;
    case 'd': n = t->day; break;
    case 'e':
        n = t->day;
        fill = ' ';
        break;
    case 'H': n = t->hour; break;
    case 'k':
        n = t->hour;
        fill = ' ';
        break;
    case 'I': n = hour12; break;
    case 'l':
        n = hour12;
        fill = ' ';
        break;
    case 'M': n = t->minute; break;
    case 'S': n = t->second; break;
    case 'f':
        n = 0;
        width = 6;
        break; /* the clock has whole seconds */
    case 'j':
        n = day_of_year(t);
        width = 3;
        break;
    case 'u':
        n = wd ? wd : 7;
        width = 1;
        break;
    case 'w':
        n = wd;
        width = 1;
        break;
    case 'U': n = (day_of_year(t) + 6 - wd) / 7; break;
    case 'W': n = (day_of_year(t) + 6 - (wd + 6) % 7) / 7; break;
    case 'V': n = iso_week(t, &iso_year); break;
    case 'G':
        iso_week(t, &n);
        width = 1;
        break;
    case 'g':
        iso_week(t, &n);
        n %= 100;
        break;
    default: return false;
    }
    if (sign == '_') fill = ' ';
    if (sign == '0') fill = '0';
    if (sign == '-') snprintf(out, 80, "%d", n);
    else snprintf(out, 80, fill == ' ' ? "%*d" : "%0*d", width, n);
    return true;
}

hn_jstr *hn_jj_strftime(hn_jrun *r, const hn_jstr *f)
{
    hn_jbuf b = { 0 };
    char out[80];
    for (size_t i = 0; i < f->len;) {
        if (f->p[i] != '%' || i + 1 >= f->len) {
            hn_jb_str(r, &b, hn_js_part(r, f, i, 1));
            i++;
            continue;
        }
        char sign = hn_jj_one_of(f->p[i + 1], "-_0") ? f->p[i + 1] : 0;
        size_t at = i + 1 + (sign != 0);
        if (at < f->len && time_field(&r->now, f->p[at], sign, out)) {
            hn_jb_lit(r, &b, out);
            i = at + 1;
        } else { /* unknown: as it stands */
            hn_jb_str(r, &b, hn_js_part(r, f, i, 1));
            i++;
        }
    }
    return hn_jb_done(r, &b);
}

/* "+01:00" or "-0530". */
static bool parse_distance(int *minutes, const char *s)
{
    int v[4];
    bool colon = s[0] && s[1] && s[2] && s[3] == ':';
    if ((*s != '+' && *s != '-') || strlen(s) != 5 + (size_t)colon) return false;
    for (int i = 0; i < 4; i++) {
        char c = s[1 + i + (colon && i > 1)];
        if (c < '0' || c > '9') return false;
        v[i] = c - '0';
    }
    int n = 60 * (10 * v[0] + v[1]) + 10 * v[2] + v[3];
    *minutes = *s == '-' ? -n : n;
    return n < 24 * 60 && v[2] < 6;
}

bool hn_jinja_parse_time(hn_jinja_time *out, int *east, const char *s)
{
    static const int limit[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    const char *shape = "dddd-dd-ddTdd:dd:dd";
    size_t n = strlen(shape);
    int minutes = 0;
    if (strlen(s) < n || (s[n] && !parse_distance(&minutes, s + n))) return false;
    if (east) *east = minutes;
    for (size_t i = 0; shape[i]; i++)
        if (shape[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != shape[i] && !(shape[i] == 'T' && s[i] == ' '))
            return false;
    int v[6] = { 0 }, k = 0;
    for (size_t i = 0; shape[i]; i++) {
        if (shape[i] == 'd') v[k] = v[k] * 10 + (s[i] - '0');
        else k++;
    }
    *out = (hn_jinja_time){ v[0], v[1], v[2], v[3], v[4], v[5] };
    return out->year >= 1 && out->month >= 1 && out->month <= 12 && out->day >= 1 &&
           out->day <= limit[out->month - 1] && (out->month != 2 || out->day < 29 || leap(out->year)) &&
           out->hour < 24 && out->minute < 60 && out->second < 61;
}
