/* stream: tokens in, text that may be shown out. Joins characters whose bytes are spread
 * over tokens, replaces ill-formed bytes, and holds back what may become a stop string.
 * Refuses to know where tokens come from. */
#include "text/text_priv.h"

#include <stdlib.h>

typedef struct stop {
    char *s;
    uint32_t len, matched; /* matched: longest prefix of s that ends the text so far */
    uint32_t *fail;        /* [len + 1], Knuth, Morris, Pratt (1977): where to go on after a mismatch */
} stop;

struct hn_stream {
    const hn_vocab *v;
    stop *stops;
    size_t n_stops;
    bool stopped;
    size_t stop;        /* the one that did */
    unsigned char *raw; /* bytes not decoded yet: between calls at most an unfinished character */
    size_t n_raw, cap_raw;
    char *text; /* shown [0, shown), pending [shown, n) */
    size_t n, cap, shown;
};

static hone_status make_stop(stop *t, const char *s, size_t i, hone_error *err)
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

hone_status hn_stream_new(hn_stream **out, const hn_vocab *v, const char *const *stops, size_t n_stops, hone_error *err)
{
    *out = NULL;
    hn_stream *s = calloc(1, sizeof *s);
    if (!s || !(s->stops = calloc(n_stops + 1, sizeof *s->stops))) {
        free(s);
        return HN_FAIL(err, HONE_E_NOMEM, "stream with %zu stop strings", n_stops);
    }
    s->v = v;
    for (; s->n_stops < n_stops; s->n_stops++) {
        hone_status st = make_stop(&s->stops[s->n_stops], stops[s->n_stops], s->n_stops, err);
        if (st != HONE_OK) {
            s->n_stops++;
            hn_stream_free(s);
            return st;
        }
    }
    *out = s;
    return HONE_OK;
}

void hn_stream_free(hn_stream *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_stops; i++) {
        free(s->stops[i].s);
        free(s->stops[i].fail);
    }
    free(s->stops);
    free(s->raw);
    free(s->text);
    free(s);
}

/* Text of the last call leaves; room for n more raw bytes and what they become. */
static hone_status make_room(hn_stream *s, size_t n, hone_error *err)
{
    if (n > s->cap_raw - s->n_raw) {
        size_t cap = (s->n_raw + n) * 2 + 16;
        unsigned char *r = realloc(s->raw, cap);
        if (!r) return HN_FAIL(err, HONE_E_NOMEM, "stream buffer of %zu bytes", cap);
        s->raw = r;
        s->cap_raw = cap;
    }
    n = 3 * (s->n_raw + n); /* a bad byte becomes three */
    if (s->shown) memmove(s->text, s->text + s->shown, s->n - s->shown);
    s->n -= s->shown;
    s->shown = 0;
    if (n <= s->cap - s->n) return HONE_OK;
    size_t cap = (s->n + n) * 2 + 64;
    char *t = realloc(s->text, cap);
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "stream buffer of %zu bytes", cap);
    s->text = t;
    s->cap = cap;
    return HONE_OK;
}

/* Appends a complete character; the first stop string that is completed ends the text. Which
 * one that is depends on the bytes alone, not on how they were spread over tokens. */
static void add_text(hn_stream *s, const char *c, size_t n)
{
    for (size_t i = 0; i < n && !s->stopped; i++) {
        uint32_t longest = 0;
        s->text[s->n++] = c[i];
        for (size_t k = 0; k < s->n_stops; k++) {
            stop *t = &s->stops[k];
            while (t->matched && t->s[t->matched] != c[i]) t->matched = t->fail[t->matched];
            t->matched += t->s[t->matched] == c[i];
            if (t->matched == t->len && t->len > longest) {
                longest = t->len;
                s->stop = k;
            }
        }
        if (longest) {
            s->n -= longest;
            s->stopped = true;
        }
    }
}

/* Bytes at the end that may become a stop string. */
static size_t held(const hn_stream *s)
{
    size_t most = 0;
    for (size_t k = 0; !s->stopped && k < s->n_stops; k++)
        if (s->stops[k].matched > most) most = s->stops[k].matched;
    return most;
}

/* Moves raw bytes to the text, except an unfinished character unless the text ends here.
 * ED A0..BF, half a surrogate, cannot become a character, but is held until its third byte
 * as incremental decoders elsewhere do: the text is the same, and so is what each token shows. */
static void decode(hn_stream *s, bool end)
{
    size_t i = 0, used;
    for (; i < s->n_raw; i += used) {
        const unsigned char *p = s->raw + i;
        size_t n = s->n_raw - i;
        int32_t cp = hn_utf8_next(p, n, &used);
        if (!end && (cp == HN_UTF8_CUT || (n == 2 && p[0] == 0xED && (p[1] & 0xE0) == 0xA0))) break;
        if (cp < 0) add_text(s, "\xEF\xBF\xBD", 3);
        else add_text(s, (const char *)p, used);
    }
    s->n_raw -= i;
    memmove(s->raw, s->raw + i, s->n_raw);
}

hone_status hn_stream_push(hn_stream *s, int32_t id, const char **text, size_t *len, bool *stopped, hone_error *err)
{
    *text = "";
    *len = 0;
    *stopped = s->stopped;
    size_t n;
    const char *piece = hn_vocab_piece(s->v, id, false, &n);
    if (!piece) return HN_FAIL(err, HONE_E_ARG, "token id %d, expected 0 to %d", id, hn_vocab_size(s->v) - 1);
    if (s->stopped) return HONE_OK;
    if (hn_vocab_is_eog(s->v, id)) n = 0;
    hone_status st = make_room(s, n, err);
    if (st != HONE_OK) return st;
    if (n) {
        memcpy(s->raw + s->n_raw, piece, n);
        s->n_raw += n;
        decode(s, false);
    }
    s->shown = s->n - held(s);
    *text = s->text ? s->text : "";
    *len = s->shown;
    *stopped = s->stopped;
    return HONE_OK;
}

size_t hn_stream_stop(const hn_stream *s) { return s->stop; }

const char *hn_stream_stop_text(const hn_stream *s) { return s->stops[s->stop].s; }

hn_stream_rest hn_stream_held(const hn_stream *s)
{
    return (hn_stream_rest){ { s->text ? s->text + s->shown : "", s->n - s->shown },
                             { s->raw ? (const char *)s->raw : "", s->n_raw } };
}

hone_status hn_stream_flush(hn_stream *s, const char **text, size_t *len, hone_error *err)
{
    *text = "";
    *len = 0;
    hone_status st = make_room(s, 1, err);
    if (st != HONE_OK) return st;
    decode(s, true);
    for (size_t k = 0; k < s->n_stops; k++) s->stops[k].matched = 0; /* what was held is out */
    s->shown = s->n;
    *text = s->text ? s->text : "";
    *len = s->n;
    return HONE_OK;
}
