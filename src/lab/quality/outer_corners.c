/* The questions at corners that a fourth reader of the others found empty: stops whose beginning comes again within
 * them, texts that formats just let in or just refuse. Owns them: a change of one is a change of its part's hash
 * (corners), and needs another name for it. */
#include "lab/quality/outer_ask.h"

#include <stdlib.h>
#include <string.h>

/* ---- stops ----------------------------------------------------------------------------------------------- */

/* Texts of two letters, so that what begins a stop begins it again before it is whole. */
static hone_status overlapping_stops(hn_asking *a)
{
    static const char *const stops[] = { "aab",   "abaab", "aabaaab", "bab",        "bbbba", "abab",
                                         "\n\nU", " a a",  "abba ab", "aabaabaaac", "aaaab", "ba\nba" };
    enum { N_STOPS = sizeof stops / sizeof *stops, TEXTS = 48, BYTES = 60 };
    static const char letters[] = "aaabbaab\nU ";
    hone_status st = HONE_OK;
    for (uint64_t i = 0; i < TEXTS && st != HONE_E_NOMEM; i++) {
        const uint64_t kinds = i % 4 ? 2 : sizeof letters - 1; /* a and b alone, most of the time */
        char text[BYTES];
        for (uint64_t k = 0; k < BYTES; k++) {
            const uint64_t drawn = hn_rand64(0x73746F70u + i, k);
            text[k] = kinds == 2 ? (drawn % 3 ? 'a' : 'b') : letters[drawn % kinds];
        }
        int32_t *ids = NULL;
        size_t n = 0;
        hone_stream *s = NULL;
        st = hone_tokenize(a->m, text, sizeof text, 0, &ids, &n, &a->err);
        const size_t n_stops = 1 + i % 3, first = i % N_STOPS;
        const char *own[3];
        for (size_t k = 0; k < n_stops; k++) own[k] = stops[(first + 5 * k) % N_STOPS];
        if (st == HONE_OK) st = hone_stream_new(&s, a->m, own, n_stops, &a->err);
        bool stopped = false;
        const char *piece = "";
        size_t len = 0;
        for (size_t k = 0; hn_asking_took(a, st) && k < n && !stopped; k++) {
            st = hone_stream_push(s, ids[k], &piece, &len, &stopped, &a->err);
            if (st != HONE_OK) continue;
            hn_asking_add(a, piece, len);
            hn_asking_number(a, stopped);
        }
        if (st == HONE_OK && hn_asking_took(a, hone_stream_flush(s, &piece, &len, &a->err)))
            hn_asking_add(a, piece, len);
        hone_stream_free(s);
        hone_free(ids);
    }
    return st;
}

/* ---- formats --------------------------------------------------------------------------------------------- */

/* How far each text goes, and whether it may end there. */
static hone_status edges_of_formats(hn_asking *a)
{
    static const struct {
        const char *format, *texts[18];
    } all[] = {
        { "date",
          { "1900-02-29", "2000-02-29", "2100-02-29", "2024-02-29", "2023-02-29", "2400-02-29", "0000-02-29",
            "0004-02-29", "0100-02-29", "9999-12-31", "2024-13-01", "2024-00-10", "2024-04-31", "2024-06-31",
            "2024-12-32", "2024-01-00", "2023-11-30" } },
        { "time",
          { "23:59:60Z", "24:00:00Z", "12:00:00+24:00", "12:00:00.123456789z", "12:60:00Z", "00:00:00-00:00",
            "22:59:60Z", "23:59:60+01:00", "12:00Z", "12:00:00", "12:00:61Z" } },
        { "date-time",
          { "1900-02-29T00:00:00Z", "2000-02-29t00:00:00z", "2024-02-30T00:00:00Z", "2024-02-29 00:00:00Z",
            "1998-12-31T23:59:60Z", "2024-01-01T00:00:00+23:59" } },
        { "duration",
          { "P1Y", "P1W", "P1Y2W", "PT", "P", "P1DT", "P1DT1S", "PT1H2S", "PT1H2M3S", "P1Y2M3D", "P1Y3D", "PT0.5S",
            "P1M", "PT1M" } },
        { "uuid",
          { "123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000",
            "123e4567e89b12d3a456426614174000", "g23e4567-e89b-12d3-a456-426614174000" } },
        { "ipv4",
          { "0.0.0.0", "255.255.255.255", "256.1.1.1", "1.2.3.04", "1.2.3", "1.2.3.4.5", "199.249.250.1",
            "1.2.3.260" } },
        { "ipv6",
          { "::", "::1", "1::", "1::2::3", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7",
            "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "12345::", "::1.2.3.256",
            "fe80::1%25" } },
        { "hostname",
          { "a", "a-b.c", "-a", "a-", "a..b", "a.", "xn--a", "1.2",
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk.x",
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl.x" } },
        { "email", { "a@b", "a.b@c.d", ".a@b", "a..b@c", "a@", "@b", "a@-b", "a+b@c", "a@[1.2.3.4]" } },
        { "uri", { "a:", "a:b", "http://", "http://a/?b#c", "http://[::1]/", "1a:b", "a b:c", "a:%zz", "a:%41" } },
    };
    char schema[80];
    hone_status st = HONE_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && st != HONE_E_NOMEM; i++) {
        hone_grammar *g = NULL;
        snprintf(schema, sizeof schema, "{\"type\":\"string\",\"format\":\"%s\"}", all[i].format);
        const hone_grammar_params p = { .kind = HONE_GRAMMAR_JSON_SCHEMA, .text = schema, .len = strlen(schema) };
        st = hone_grammar_compile(&g, &p, &a->err);
        hn_asking_took(a, st);
        for (const char *const *text = all[i].texts; g && *text && st != HONE_E_NOMEM; text++) {
            hone_matcher *m = NULL;
            int64_t n = 0;
            st = hone_matcher_new(&m, g, a->m, &a->err);
            if (m) st = hone_matcher_accept_text(m, "\"", 1, &a->err);
            for (const char *c = *text; m && *c && st == HONE_OK; c++, n++)
                st = hone_matcher_accept_text(m, c, 1, &a->err);
            if (m && st == HONE_OK) st = hone_matcher_accept_text(m, "\"", 1, &a->err);
            hn_asking_took(a, st);
            hn_asking_number(a, n);
            hn_asking_number(a, m && hone_matcher_can_end(m));
            hone_matcher_free(m);
        }
        hone_grammar_free(g);
    }
    return st;
}

hone_status hn_ask_corners(hn_asking *a)
{
    hone_status st = overlapping_stops(a);
    return st == HONE_E_NOMEM ? st : edges_of_formats(a);
}
