/* stream: tokens in, text that may be shown out. Joins characters whose bytes are spread
 * over tokens, replaces ill-formed bytes, and holds back what may become a stop string.
 * Refuses to know where tokens come from. */
#include "text/stops.h"
#include "text/text_priv.h"

#include <stdlib.h>

struct hn_stream {
    const hn_vocab *v;
    hn_stops stops;
    bool stopped;
    unsigned char *raw; /* bytes not decoded yet: between calls at most an unfinished character */
    size_t n_raw, cap_raw;
    char *text; /* shown [0, shown), pending [shown, n) */
    size_t n, cap, shown;
    int32_t number, *raw_of, *text_of; /* number of the next token; of each byte that of the token it came from */
};

hone_status hn_stream_new(hn_stream **out, const hn_vocab *v, const char *const *stops, size_t n_stops, hone_error *err)
{
    *out = NULL;
    hn_stream *s = calloc(1, sizeof *s);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "stream with %zu stop strings", n_stops);
    s->v = v;
    hone_status st = hn_stops_new(&s->stops, stops, n_stops, err);
    if (st == HONE_OK) *out = s;
    else hn_stream_free(s);
    return st;
}

void hn_stream_free(hn_stream *s)
{
    if (!s) return;
    hn_stops_free(&s->stops);
    free(s->raw);
    free(s->text);
    free(s->raw_of);
    free(s->text_of);
    free(s);
}

/* Text of the last call leaves; room for n more raw bytes and what they become. */
static hone_status make_room(hn_stream *s, size_t n, hone_error *err)
{
    if (n > s->cap_raw - s->n_raw) {
        size_t cap = (s->n_raw + n) * 2 + 16;
        unsigned char *r = realloc(s->raw, cap);
        if (r) s->raw = r;
        int32_t *of = r ? realloc(s->raw_of, cap * sizeof *of) : NULL;
        if (!of) return HN_FAIL(err, HONE_E_NOMEM, "stream buffer of %zu bytes", cap);
        s->raw_of = of;
        s->cap_raw = cap;
    }
    n = 3 * (s->n_raw + n); /* a bad byte becomes three */
    if (s->shown) {
        memmove(s->text, s->text + s->shown, s->n - s->shown);
        memmove(s->text_of, s->text_of + s->shown, (s->n - s->shown) * sizeof *s->text_of);
    }
    s->n -= s->shown;
    s->shown = 0;
    if (n <= s->cap - s->n) return HONE_OK;
    size_t cap = (s->n + n) * 2 + 64;
    char *t = realloc(s->text, cap);
    if (t) s->text = t;
    int32_t *of = t ? realloc(s->text_of, cap * sizeof *of) : NULL;
    if (!of) return HN_FAIL(err, HONE_E_NOMEM, "stream buffer of %zu bytes", cap);
    s->text_of = of;
    s->cap = cap;
    return HONE_OK;
}

/* Appends a complete character, which came from the tokens of [n_of]; the first stop string that is completed ends the
 * text. Which one that is depends on the bytes alone, not on how they were spread over tokens. */
static void add_text(hn_stream *s, const char *c, size_t n, const int32_t *of, size_t n_of)
{
    for (size_t i = 0; i < n && !s->stopped; i++) {
        s->text_of[s->n] = of[i < n_of ? i : n_of - 1];
        s->text[s->n++] = c[i];
        size_t which, longest = hn_stops_byte(&s->stops, c[i], &which);
        s->n -= longest;
        s->stopped = longest > 0;
    }
}

/* Bytes at the end that may become a stop string. */
static size_t held(const hn_stream *s) { return s->stopped ? 0 : hn_stops_held(&s->stops); }

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
        if (cp < 0) add_text(s, "\xEF\xBF\xBD", 3, s->raw_of + i, used);
        else add_text(s, (const char *)p, used, s->raw_of + i, used);
    }
    s->n_raw -= i;
    memmove(s->raw, s->raw + i, s->n_raw);
    if (s->n_raw) memmove(s->raw_of, s->raw_of + i, s->n_raw * sizeof *s->raw_of);
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
        for (size_t i = 0; i < n; i++) s->raw_of[s->n_raw + i] = s->number;
        s->n_raw += n;
        decode(s, false);
    }
    s->shown = s->n - held(s);
    *text = s->text ? s->text : "";
    *len = s->shown;
    *stopped = s->stopped;
    return HONE_OK;
}

void hn_stream_number(hn_stream *s, int32_t number) { s->number = number; }
const int32_t *hn_stream_sources(const hn_stream *s) { return s->text_of; }

int32_t hn_stream_oldest(const hn_stream *s)
{
    if (s->n > s->shown) return s->text_of[s->shown];
    return s->n_raw ? s->raw_of[0] : -1;
}

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
    hn_stops_reset(&s->stops); /* what was held is out */
    s->shown = s->n;
    *text = s->text ? s->text : "";
    *len = s->n;
    return HONE_OK;
}
