/* shown: see shown.h. */
#include "base/shown.h"
#include "base/utf8.h"

/* ---- characters --------------------------------------------------------------------------- */

typedef struct range {
    uint32_t first, last;
} range;

static bool within(uint32_t c, const range *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last) return true;
    return false;
}

bool hn_steers_terminal(uint32_t c)
{
    static const range steering[] = {
        { 0x061C, 0x061C },   /* Arabic letter mark */
        { 0x200E, 0x200F },   /* left-to-right and right-to-left mark */
        { 0x2028, 0x202E },   /* line, paragraph; embeddings and overrides of direction */
        { 0x2066, 0x206F },   /* isolates; deprecated format characters */
        { 0xFFF9, 0xFFFB },   /* interlinear annotation: text that is not shown */
        { 0xE0000, 0xE007F }, /* tags: text that is not shown */
    };
    if (c < 0x20) return c != '\n' && c != '\t';
    if (c < 0x7F) return false;
    return c < 0xA0 || within(c, steering, sizeof steering / sizeof *steering);
}

bool hn_hides_in_name(uint32_t c)
{
    static const range unseen[] = {
        { 0x00AD, 0x00AD }, /* soft hyphen */
        { 0x180E, 0x180E }, /* Mongolian vowel separator */
        { 0x200B, 0x200B }, /* zero width space */
        { 0x2060, 0x2065 }, /* word joiner, invisible operators */
        { 0xFEFF, 0xFEFF }, /* zero width no-break space */
    };
    return c == '\n' || c == '\t' || hn_steers_terminal(c) || within(c, unseen, sizeof unseen / sizeof *unseen);
}

/* ---- streams ---------------------------------------------------------------------------------- */

/* A flag of a region (UTS 51, ED-14a) is U+1F3F4, up to six tags of letters and digits, and the cancel tag. */
enum { FLAG = 0x1F3F4, TAG_DIGIT = 0xE0030, TAG_A = 0xE0061, TAG_Z = 0xE007A, TAG_CANCEL = 0xE007F, MOST_TAGS = 7 };

/* Whether c is shown as it is; once for each character, in order. */
static bool passes(hn_shown *s, uint32_t c)
{
    bool tag = (c >= TAG_DIGIT && c < TAG_DIGIT + 10) || (c >= TAG_A && c <= TAG_Z) || c == TAG_CANCEL;
    bool of_flag = tag && s->tags > 0;
    if (c == FLAG) s->tags = MOST_TAGS;
    else if (!of_flag || c == TAG_CANCEL) s->tags = 0;
    else s->tags--;
    return of_flag || !hn_steers_terminal(c);
}

static bool write_code(const hn_shown *s, uint32_t c, hn_shown_sink *sink, void *arg)
{
    char t[16];
    int n;
    if (s->json && c > 0xFFFF) {
        uint32_t v = c - 0x10000;
        n = snprintf(t, sizeof t, "\\u%04x\\u%04x", 0xD800 + (v >> 10), 0xDC00 + (v & 0x3FF));
    } else if (s->json) {
        n = snprintf(t, sizeof t, "\\u%04x", c);
    } else if (c > 0xFFFF) {
        n = snprintf(t, sizeof t, "\\U%08X", c);
    } else {
        n = snprintf(t, sizeof t, c < 0xA0 ? "\\x%02X" : "\\u%04X", c);
    }
    return sink(arg, t, (size_t)n);
}

static bool write_bad(const hn_shown *s, const unsigned char *p, size_t n, hn_shown_sink *sink, void *arg)
{
    char t[8];
    if (s->json) return sink(arg, "\xEF\xBF\xBD", 3);
    for (size_t i = 0; i < n; i++)
        if (!sink(arg, t, (size_t)snprintf(t, sizeof t, "\\x%02X", p[i]))) return false;
    return true;
}

/* What p[0..n) begins with: complete, that is followed by what it depends on? */
static bool is_whole(const unsigned char *p, size_t n, size_t *len, int32_t *c)
{
    *c = hn_utf8_next(p, n, len);
    return *c != HN_UTF8_CUT && (*c != '\r' || n > 1);
}

/* p[0..len), which may not pass, as something that may. */
static bool write_instead(hn_shown *s, int32_t c, const unsigned char *p, size_t len, hn_shown_sink *sink, void *arg)
{
    if (c == HN_UTF8_BAD) {
        s->tags = 0;
        return write_bad(s, p, len, sink, arg);
    }
    if (c == '\r' && p[1] == '\n') return true; /* the \n follows, and does on a terminal what both mean */
    return write_code(s, (uint32_t)c, sink, arg);
}

/* Completes what is held with bytes of p, and shows it; how many were used. */
static size_t show_held(hn_shown *s, const unsigned char *p, size_t n, bool *ok, hn_shown_sink *sink, void *arg)
{
    size_t used = 0, len;
    int32_t c;
    while (s->n_held && *ok) {
        if (!is_whole(s->held, s->n_held, &len, &c)) {
            if (used == n) break;
            s->held[s->n_held++] = p[used++];
            continue;
        }
        if (c >= 0 && passes(s, (uint32_t)c)) *ok = sink(arg, (const char *)s->held, len);
        else *ok = write_instead(s, c, s->held, len, sink, arg);
        s->n_held = (uint8_t)(s->n_held - len); /* what the last byte has ended, and that byte */
        memmove(s->held, s->held + len, s->n_held);
    }
    return used;
}

bool hn_shown_put(hn_shown *s, const char *text, size_t n, hn_shown_sink *sink, void *arg)
{
    const unsigned char *p = (const unsigned char *)text;
    int32_t c;
    bool ok = true;
    size_t i = show_held(s, p, n, &ok, sink, arg), from = i, len;
    for (; ok && i < n; i += len) {
        if (p[i] >= 0x20 && p[i] < 0x7F) { /* most of all text */
            len = 1;
            s->tags = 0;
            continue;
        }
        if (!is_whole(p + i, n - i, &len, &c)) break;
        if (c >= 0 && passes(s, (uint32_t)c)) continue;
        ok = i == from || sink(arg, text + from, i - from);
        ok = ok && write_instead(s, c, p + i, len, sink, arg);
        from = i + len;
    }
    if (!ok || (i > from && !sink(arg, text + from, i - from))) return false;
    while (i < n) s->held[s->n_held++] = p[i++];
    return true;
}

bool hn_shown_end(hn_shown *s, hn_shown_sink *sink, void *arg)
{
    size_t n = s->n_held;
    s->n_held = 0;
    s->tags = 0;
    if (n == 1 && s->held[0] == '\r') return write_code(s, '\r', sink, arg);
    return !n || write_bad(s, s->held, n, sink, arg);
}
