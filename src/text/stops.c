/* stops: see stops.h. One automaton a string. */
#include "text/stops.h"

#include "base/utf8.h"

#include <stdlib.h>

static hone_status make(hn_stop_text *t, const char *s, size_t i, hone_error *err)
{
    size_t len = strlen(s), used;
    if (!len) return HN_FAIL(err, HONE_E_ARG, "stop string %zu is empty; expected at least one character", i);
    if (len > UINT32_MAX / 8)
        return HN_FAIL(err, HONE_E_ARG, "stop string %zu has %zu bytes, expected at most %u", i, len, UINT32_MAX / 8);
    for (size_t k = 0; k < len; k += used)
        if (hn_utf8_next((const unsigned char *)s + k, len - k, &used) < 0)
            return HN_FAIL(err, HONE_E_ARG, "stop string %zu, \"%s\", is not UTF-8 at byte %zu", i, HN_ESC(s, len), k);
    t->len = (uint32_t)len;
    if (!(t->s = malloc(len + 1)) || !(t->fail = malloc((len + 1) * sizeof *t->fail)))
        return HN_FAIL(err, HONE_E_NOMEM, "stop string %zu of %zu bytes", i, len);
    memcpy(t->s, s, len + 1);
    t->fail[0] = t->fail[1] = 0;
    for (uint32_t k = 1, f = 0; k < len; k++) {
        while (f && s[k] != s[f]) f = t->fail[f];
        f += s[k] == s[f];
        t->fail[k + 1] = f;
    }
    return HONE_OK;
}

hone_status hn_stops_new(hn_stops *s, const char *const *list, size_t n, hone_error *err)
{
    *s = (hn_stops){ .one = calloc(n + 1, sizeof *s->one) };
    hone_status st = s->one ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%zu stop strings", n);
    for (; st == HONE_OK && s->n < n; s->n++)
        if ((st = make(&s->one[s->n], list[s->n], s->n, err)) != HONE_OK) {
            s->n++; /* it may be half made */
            break;
        }
    if (st != HONE_OK) hn_stops_free(s);
    return st;
}

void hn_stops_free(hn_stops *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->one[i].s);
        free(s->one[i].fail);
    }
    free(s->one);
    *s = (hn_stops){ 0 };
}

size_t hn_stops_byte(hn_stops *s, char byte, size_t *which)
{
    size_t longest = 0;
    for (size_t k = 0; k < s->n; k++) {
        hn_stop_text *t = &s->one[k];
        if (t->matched == t->len) t->matched = t->fail[t->len];
        while (t->matched && t->s[t->matched] != byte) t->matched = t->fail[t->matched];
        t->matched += t->s[t->matched] == byte;
        if (t->matched == t->len && t->len > longest) {
            longest = t->len;
            *which = k;
        }
    }
    return longest;
}

size_t hn_stops_held(const hn_stops *s)
{
    size_t most = 0;
    for (size_t k = 0; k < s->n; k++)
        if (s->one[k].matched > most) most = s->one[k].matched;
    return most;
}

void hn_stops_reset(hn_stops *s)
{
    for (size_t k = 0; k < s->n; k++) s->one[k].matched = 0;
}
