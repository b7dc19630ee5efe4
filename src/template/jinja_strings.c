/* jinja_strings: what the template interpreter does with text, as Python's str does.
 * Every byte of a result keeps the origin of the byte it comes from. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "template/jinja_priv.h"

#include "base/utf8.h"

#include <utf8proc.h>

/* ---- case ------------------------------------------------------------------------------------- */

/* Upper case of more than one character (Unicode SpecialCasing, what occurs in running text). */
static const struct {
    uint32_t cp;
    const char *upper, *title;
} special[] = {
    { 0xDF, "SS", "Ss" },
    { 0x149, "\xCA\xBCN", "\xCA\xBCN" },
    { 0x1F0, "J\xCC\x8C", "J\xCC\x8C" },
    { 0x587, "\xD4\xB5\xD5\x92", "\xD4\xB5\xD6\x82" },
    { 0xFB00, "FF", "Ff" },
    { 0xFB01, "FI", "Fi" },
    { 0xFB02, "FL", "Fl" },
    { 0xFB03, "FFI", "Ffi" },
    { 0xFB04, "FFL", "Ffl" },
    { 0xFB05, "ST", "St" },
    { 0xFB06, "ST", "St" },
};

static bool is_cased(uint32_t cp)
{
    if (cp < 0x80) return (cp | 32) >= 'a' && (cp | 32) <= 'z';
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}
static bool is_upper(uint32_t cp)
{
    return cp < 0x80 ? cp >= 'A' && cp <= 'Z'
                     : is_cased(cp) && utf8proc_category((utf8proc_int32_t)cp) != UTF8PROC_CATEGORY_LL;
}

static bool case_ignorable(uint32_t cp)
{
    if (cp < 0x80) return cp == '\'' || cp == '.' || cp == ':' || cp == '^' || cp == '`';
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
           c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK || cp == 0xB7 || cp == 0x2019;
}

/* A capital sigma at the end of a word becomes its final form (Unicode, table 3-17). */
static bool final_sigma(const hn_jstr *s, size_t at, bool cased_before)
{
    size_t used;
    if (!cased_before) return false;
    for (size_t i = at + 2, seen = 0; i < s->len && seen < 64; i += used, seen++) {
        uint32_t cp = hn_jj_cp(s->p + i, s->len - i, &used);
        if (!case_ignorable(cp)) return !is_cased(cp);
    }
    return true;
}

hn_jstr *hn_js_case(hn_jrun *r, const hn_jstr *s, hn_jcase how)
{
    hn_jbuf b = { 0 };
    bool start = true, cased_before = false;
    size_t used;
    for (size_t i = 0; i < s->len; i += used) {
        uint32_t cp = hn_jj_cp(s->p + i, s->len - i, &used);
        bool input = s->fl ? s->fl[i] : s->input;
        hn_jcase now = how;
        if (how == HN_J_SWAP) now = is_upper(cp) ? HN_J_LOWER : HN_J_UPPER;
        if (how == HN_J_TITLE) now = start ? HN_J_TITLE : HN_J_LOWER;
        if (how == HN_J_CAPITALIZE) now = i == 0 ? HN_J_TITLE : HN_J_LOWER;
        if (how == HN_J_TITLE_FILTER) now = start ? HN_J_UPPER : HN_J_LOWER;
        start = how == HN_J_TITLE_FILTER
                    ? cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<' || hn_jj_is_space(cp)
                    : !is_cased(cp);
        const char *many = NULL;
        if (cp < 0x80) {
            char c = (char)cp;
            if (now == HN_J_LOWER && cp >= 'A' && cp <= 'Z') c = (char)(cp + 32);
            if (now != HN_J_LOWER && cp >= 'a' && cp <= 'z') c = (char)(cp - 32);
            hn_jb_put(r, &b, &c, 1, input);
        } else {
            for (size_t k = 0; now != HN_J_LOWER && k < sizeof special / sizeof *special; k++)
                if (special[k].cp == cp) many = now == HN_J_TITLE ? special[k].title : special[k].upper;
            if (many) hn_jb_put(r, &b, many, strlen(many), input);
            else if (now == HN_J_LOWER && cp == 0x130) hn_jb_put(r, &b, "i\xCC\x87", 3, input);
            else if (now == HN_J_LOWER && cp == 0x3A3)
                hn_jb_cp(r, &b, final_sigma(s, i, cased_before) ? 0x3C2 : 0x3C3, input);
            else
                hn_jb_cp(r, &b,
                         (uint32_t)(now == HN_J_LOWER   ? utf8proc_tolower((utf8proc_int32_t)cp)
                                    : now == HN_J_TITLE ? utf8proc_totitle((utf8proc_int32_t)cp)
                                                        : utf8proc_toupper((utf8proc_int32_t)cp)),
                         input);
        }
        if (!case_ignorable(cp)) cased_before = is_cased(cp);
    }
    return hn_js_mark(r, hn_jb_done(r, &b), s->markup && how != HN_J_TITLE_FILTER);
}

/* ---- stripping -------------------------------------------------------------------------------------- */

static bool in_set(const hn_jstr *chars, uint32_t cp, const char *p, size_t n)
{
    if (!chars) return hn_jj_is_space(cp);
    size_t used;
    for (size_t i = 0; i < chars->len; i += used) {
        hn_jj_cp(chars->p + i, chars->len - i, &used);
        if (used == n && memcmp(chars->p + i, p, n) == 0) return true;
    }
    return false;
}

hn_jstr *hn_js_strip(hn_jrun *r, const hn_jstr *s, const hn_jstr *chars, int sides)
{
    size_t a = 0, e = s->len, used;
    while (sides & HN_J_LEFT && a < e) {
        uint32_t cp = hn_jj_cp(s->p + a, e - a, &used);
        if (chars) hn_jj_bytes(r, chars->len);
        if (!in_set(chars, cp, s->p + a, used)) break;
        a += used;
    }
    while (sides & HN_J_RIGHT && e > a) {
        size_t k = e - 1;
        while (k > a && e - k < 4 && ((unsigned char)s->p[k] & 0xC0) == 0x80) k--;
        uint32_t cp = hn_jj_cp(s->p + k, e - k, &used);
        if (chars) hn_jj_bytes(r, chars->len);
        if (used != e - k || !in_set(chars, cp, s->p + k, used)) break;
        e = k;
    }
    hn_jj_charge(r, 1 + (s->len - (e - a)) / 4); /* character by character */
    return hn_js_part(r, s, a, e - a);
}

/* ---- searching ---------------------------------------------------------------------------------------- */

size_t hn_js_find(const hn_jstr *s, size_t from, size_t end, const hn_jstr *what)
{
    if (from > end || what->len > end - from) return SIZE_MAX;
    if (!what->len) return from;
    const char *p = memmem(s->p + from, end - from, what->p, what->len);
    return p ? (size_t)(p - s->p) : SIZE_MAX;
}

/* Last occurrence, found from left to right: memmem is linear, and occurrences may overlap. */
size_t hn_js_rfind(const hn_jstr *s, size_t from, size_t end, const hn_jstr *what)
{
    if (from > end || what->len > end - from) return SIZE_MAX;
    if (!what->len) return end;
    for (size_t i = end - what->len + 1; i-- > from;) /* candidates by first byte; verified in place */
        if (s->p[i] == what->p[0] && memcmp(s->p + i, what->p, what->len) == 0) return i;
    return SIZE_MAX;
}

/* What a search in s costs: a long needle is looked at closely beforehand. */
void hn_js_charge_find(hn_jrun *r, const hn_jstr *s, const hn_jstr *what)
{
    hn_jj_charge(r, 1 + s->len / 32 + (what->len <= s->len ? what->len / 4 : 0));
}

/* rfind compares at many places: pay for all of them beforehand. */
void hn_js_charge_rfind(hn_jrun *r, const hn_jstr *s, const hn_jstr *what)
{
    hn_jj_charge(r, 1 + s->len / 32 + what->len / 32 * (uint64_t)(s->len / 64));
}

hn_jstr *hn_js_replace(hn_jrun *r, const hn_jstr *s, const hn_jstr *old, const hn_jstr *new_, int64_t count)
{
    hn_jbuf b = { 0 };
    size_t at = 0;
    hn_js_charge_find(r, s, old);
    if (!old->len) { /* before every character and at the end */
        size_t used;
        for (; count != 0; count -= count > 0) {
            hn_jb_str(r, &b, new_);
            if (at >= s->len) break;
            hn_jj_cp(s->p + at, s->len - at, &used);
            hn_jb_str(r, &b, hn_js_part(r, s, at, used));
            at += used;
        }
        if (at < s->len) hn_jb_str(r, &b, hn_js_part(r, s, at, s->len - at));
        return hn_jb_done(r, &b);
    }
    for (size_t k; count != 0 && (k = hn_js_find(s, at, s->len, old)) != SIZE_MAX; count -= count > 0) {
        hn_jj_charge(r, 1);
        hn_jb_str(r, &b, hn_js_part(r, s, at, k - at));
        hn_jb_str(r, &b, new_);
        at = k + old->len;
    }
    if (at == 0) return (hn_jstr *)s;
    hn_jb_str(r, &b, hn_js_part(r, s, at, s->len - at));
    return hn_jb_done(r, &b);
}

/* ---- splitting ------------------------------------------------------------------------------------------ */

static void push_part(hn_jrun *r, hn_jlist *l, const hn_jstr *s, size_t a, size_t e)
{
    hn_jj_charge(r, 1);
    hn_jl_push(r, l, HN_JSTR(hn_js_part(r, s, a, e - a)));
}

static void reverse(hn_jlist *l)
{
    for (size_t i = 0; i + 1 < l->n - i; i++) {
        hn_jval t = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = t;
    }
}

/* Start of the character before byte e. */
static size_t char_before(const hn_jstr *s, size_t e)
{
    size_t k = e - 1;
    while (k > 0 && e - k < 4 && ((unsigned char)s->p[k] & 0xC0) == 0x80) k--;
    return k;
}
static bool space_at(const hn_jstr *s, size_t i, size_t *used)
{
    return hn_jj_is_space(hn_jj_cp(s->p + i, s->len - i, used));
}

static hn_jlist *split_space(hn_jrun *r, const hn_jstr *s, int64_t max, bool from_right)
{
    hn_jlist *l = hn_jl_new(r, 0);
    size_t used;
    if (!from_right) {
        for (size_t i = 0;;) {
            while (i < s->len && space_at(s, i, &used)) i += used;
            if (i >= s->len) return l;
            size_t a = i;
            if (max == 0) { /* the rest as it is */
                push_part(r, l, s, a, s->len);
                return l;
            }
            while (i < s->len && !space_at(s, i, &used)) i += used;
            push_part(r, l, s, a, i);
            if (max > 0) max--;
        }
    }
    for (size_t e = s->len;;) {
        while (e && space_at(s, char_before(s, e), &used)) e = char_before(s, e);
        if (!e) break;
        size_t a = e;
        if (max == 0) {
            push_part(r, l, s, 0, e);
            break;
        }
        while (a && !space_at(s, char_before(s, a), &used)) a = char_before(s, a);
        push_part(r, l, s, a, e);
        e = a;
        if (max > 0) max--;
    }
    if (l->n) reverse(l);
    return l;
}

hn_jlist *hn_js_split(hn_jrun *r, const hn_jstr *s, const hn_jstr *sep, int64_t max, bool from_right)
{
    hn_jj_bytes(r, s->len);
    if (!sep) return split_space(r, s, max, from_right);
    if (!sep->len) HN_JFAIL(r, "empty separator");
    hn_jlist *l = hn_jl_new(r, 0);
    hn_js_charge_find(r, s, sep);
    if (!from_right) {
        size_t at = 0;
        for (size_t k; max != 0 && (k = hn_js_find(s, at, s->len, sep)) != SIZE_MAX; max -= max > 0) {
            push_part(r, l, s, at, k);
            at = k + sep->len;
        }
        push_part(r, l, s, at, s->len);
        return l;
    }
    hn_js_charge_rfind(r, s, sep);
    size_t e = s->len;
    for (size_t k; max != 0 && (k = hn_js_rfind(s, 0, e, sep)) != SIZE_MAX; max -= max > 0) {
        push_part(r, l, s, k + sep->len, e);
        e = k;
    }
    push_part(r, l, s, 0, e);
    reverse(l);
    return l;
}

hn_jlist *hn_js_lines(hn_jrun *r, const hn_jstr *s, bool keep)
{
    hn_jlist *l = hn_jl_new(r, 0);
    size_t from = 0, used;
    hn_jj_bytes(r, s->len);
    for (size_t i = 0; i < s->len; i += used) {
        uint32_t cp = hn_jj_cp(s->p + i, s->len - i, &used);
        if (!((cp >= 10 && cp <= 13) || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 || cp == 0x2029))
            continue;
        if (cp == '\r' && i + 1 < s->len && s->p[i + 1] == '\n') used = 2;
        push_part(r, l, s, from, i + (keep ? used : 0));
        from = i + used;
    }
    if (from < s->len) push_part(r, l, s, from, s->len);
    return l;
}

/* ---- filling -------------------------------------------------------------------------------------------- */

static void fill_with(hn_jrun *r, hn_jbuf *b, uint32_t cp, bool input, uint64_t n)
{
    while (n--) hn_jb_cp(r, b, cp, input);
}

hn_jstr *hn_js_pad(hn_jrun *r, const hn_jstr *s, int64_t width, uint32_t fill, bool fill_input, int side)
{
    size_t n = hn_js_chars(r, s);
    if (width <= 0 || (uint64_t)width <= n) return (hn_jstr *)s;
    uint64_t pad = (uint64_t)width - n, left = side == HN_J_LEFT    ? 0
                                               : side == HN_J_RIGHT ? pad
                                                                    : pad / 2 + (pad & (uint64_t)width & 1);
    hn_jbuf b = { 0 };
    fill_with(r, &b, fill, fill_input, left);
    hn_jb_str(r, &b, s);
    fill_with(r, &b, fill, fill_input, pad - left);
    return hn_js_mark(r, hn_jb_done(r, &b), s->markup);
}

hn_jstr *hn_js_repeat(hn_jrun *r, const hn_jstr *s, int64_t times)
{
    hn_jbuf b = { 0 };
    for (; times > 0 && s->len; times--) hn_jb_str(r, &b, s);
    return hn_js_mark(r, hn_jb_done(r, &b), s->markup);
}
