/* Vocabularies in memory for tests: files byte by byte, and the golden files of
 * make_wpm_ugm.py with their cases. */
#ifndef HN_GOLDEN_VOCAB_H
#define HN_GOLDEN_VOCAB_H

#include "gguf_bytes.h"
#include "growth.h"
#include "text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define SP "\xE2\x96\x81"

static __attribute__((unused)) void kv_bool(bb *f, const char *k, bool v) { bb_kv(f, k, 7, v, 1); }
static __attribute__((unused)) void kv_strs(bb *f, const char *k, const char *const *s, size_t n)
{
    bb_kv_array(f, k, 8, n);
    for (size_t i = 0; i < n; i++) bb_str(f, s[i]);
}
#define COUNT(T, ...) (sizeof((T[]){ __VA_ARGS__ }) / sizeof(T))
#define STRS(f, k, ...) kv_strs(f, k, (const char *const[]){ __VA_ARGS__ }, COUNT(char *, __VA_ARGS__))
#define I32S(f, k, ...)                                 \
    (bb_kv_array(f, k, 5, COUNT(int32_t, __VA_ARGS__)), \
     bb_raw(f, (int32_t[]){ __VA_ARGS__ }, sizeof((int32_t[]){ __VA_ARGS__ })))
#define F32S(f, k, ...)                               \
    (bb_kv_array(f, k, 6, COUNT(float, __VA_ARGS__)), \
     bb_raw(f, (float[]){ __VA_ARGS__ }, sizeof((float[]){ __VA_ARGS__ })))

/* Takes f, whose count of keys is not known before. */
static __attribute__((unused)) hone_status make(hn_vocab **v, bb *f, uint64_t n_kv, hone_error *e)
{
    hn_gguf *g;
    memcpy(f->p + 16, &n_kv, 8);
    if (hn_gguf_parse(&g, f->p, f->n, "test.gguf", e) != HONE_OK) fail_msg("not even a GGUF file: %s", e->message);
    hone_status st = hn_vocab_new(v, g, NULL, e);
    if (st != HONE_OK) assert_null(*v);
    hn_gguf_close(g);
    memset(f->p, 0xAA, f->n); /* a vocabulary must not lean on the file */
    bb_free(f);
    return st;
}
static __attribute__((unused)) hn_vocab *must(bb *f, uint64_t n_kv)
{
    hn_vocab *v;
    hone_error e = { 0 };
    if (make(&v, f, n_kv, &e) != HONE_OK) fail_msg("%s", e.message);
    return v;
}
static __attribute__((unused)) void refused(bb *f, uint64_t n_kv, const char *a, const char *b)
{
    hn_vocab *v;
    hone_error e = { 0 };
    hone_status st = make(&v, f, n_kv, &e);
    if (st != HONE_E_FORMAT || !strstr(e.message, a) || !strstr(e.message, b))
        fail_msg("status %s, message \"%s\"; expected %s with \"%s\" and \"%s\"", hone_status_name(st), e.message,
                 hone_status_name(HONE_E_FORMAT), a, b);
}

static __attribute__((unused)) void ids_are(const hn_vocab *v, const char *s, size_t len, int flags,
                                            const int32_t *want, size_t n)
{
    hn_ids o = { 0 };
    hone_error e = { 0 };
    if (hn_vocab_encode(v, s, len, flags, &o, &e) != HONE_OK) fail_msg("%s", e.message);
    if (o.n != n || (n && memcmp(o.data, want, 4 * n) != 0)) {
        fprintf(stderr, "\"%s\"\n got:", HN_ESC(s, len));
        for (size_t i = 0; i < o.n && i < 64; i++) fprintf(stderr, " %d", o.data[i]);
        fprintf(stderr, "\nwant:");
        for (size_t i = 0; i < n && i < 64; i++) fprintf(stderr, " %d", want[i]);
        fail_msg("wrong ids");
    }
    free(o.data);
}
#define IDS(v, s, flags, ...) ids_are(v, s, strlen(s), flags, (int32_t[]){ __VA_ARGS__ }, COUNT(int32_t, __VA_ARGS__))
#define NO_IDS(v, s, flags) ids_are(v, s, strlen(s), flags, NULL, 0)

static __attribute__((unused)) void text_is(const hn_vocab *v, bool special, const char *want, const int32_t *ids,
                                            size_t n)
{
    char *s;
    size_t len;
    hone_error e = { 0 };
    assert_int_equal(hn_vocab_decode(v, ids, n, special, &s, &len, &e), HONE_OK);
    assert_string_equal(s, want);
    assert_int_equal(len, strlen(want));
    free(s);
}
#define TEXT(v, special, want, ...) text_is(v, special, want, (int32_t[]){ __VA_ARGS__ }, COUNT(int32_t, __VA_ARGS__))

static size_t unhex(char *dst, const char *hex)
{
    size_t n = 0;
    unsigned b;
    for (; *hex && *hex != '-' && sscanf(hex, "%2x", &b) == 1; hex += 2) dst[n++] = (char)b;
    return n;
}

typedef struct golden {
    bb tokens, types, scores, map;
    uint64_t n_token, n_case;
    hn_vocab *v;
} golden;

/* Builds the vocabulary of a golden file, and runs its cases if asked. */
static __attribute__((unused)) golden golden_run(const char *path, const char *model, bool merge_spaces, bool cases)
{
    FILE *in = fopen(path, "r");
    if (!in) fail_msg("%s is not there", path);
    golden t = { 0 };
    char *line = NULL, buf[4096], hex[8192];
    size_t cap = 0;
    while (getline(&line, &cap, in) > 0) {
        int32_t type;
        float score;
        int at;
        if (sscanf(line, "token %4095s %d %f", hex, &type, &score) == 3) {
            bb_strn(&t.tokens, buf, unhex(buf, hex));
            bb_raw(&t.types, &type, 4);
            bb_raw(&t.scores, &score, 4);
            t.n_token++;
        } else if (sscanf(line, "map %4095s", hex) == 1) {
            bb_raw(&t.map, buf, unhex(buf, hex));
        } else if (sscanf(line, "case %4095s%n", hex, &at) == 1) {
            if (!t.v) {
                bb f = bb_head(3, 0, 0);
                bb_kv_str(&f, "tokenizer.ggml.model", model);
                bb_kv_array(&f, "tokenizer.ggml.tokens", 8, t.n_token), bb_raw(&f, t.tokens.p, t.tokens.n);
                bb_kv_array(&f, "tokenizer.ggml.token_type", 5, t.n_token), bb_raw(&f, t.types.p, t.types.n);
                bb_kv_array(&f, "tokenizer.ggml.scores", 6, t.n_token), bb_raw(&f, t.scores.p, t.scores.n);
                bb_kv_array(&f, "tokenizer.ggml.precompiled_charsmap", 0, t.map.n), bb_raw(&f, t.map.p, t.map.n);
                kv_bool(&f, "tokenizer.ggml.add_space_prefix", true);
                kv_bool(&f, "tokenizer.ggml.remove_extra_whitespaces", merge_spaces);
                t.v = must(&f, 7);
            }
            if (!cases) break;
            int32_t want[1024];
            size_t n = 0, len = unhex(buf, hex);
            for (char *p = line + at, *e; want[n] = (int32_t)strtol(p, &e, 10), e != p; p = e) n++;
            ids_are(t.v, buf, len, 0, want, n);
            t.n_case++;
        }
    }
    assert_true(t.n_token >= 150 && (!cases || t.n_case >= 150));
    free(line);
    fclose(in);
    return t;
}
static __attribute__((unused)) void golden_free(golden *t)
{
    bb_free(&t->tokens), bb_free(&t->types), bb_free(&t->scores), bb_free(&t->map);
    hn_vocab_free(t->v);
}

typedef struct run_of {
    const hn_vocab *v;
    const char *unit;
    size_t n_ids;
    hone_status st;
} run_of;

/* Encodes n bytes, or a few less, of repetitions of one unit. */
static __attribute__((unused)) void encode_run(void *arg, size_t n)
{
    run_of *r = arg;
    size_t u = strlen(r->unit);
    hn_ids o = { 0 };
    char *s = malloc(n);
    r->st = HONE_E_NOMEM;
    if (!s) return;
    n = n / u * u;
    for (size_t i = 0; i < n; i++) s[i] = r->unit[i % u];
    r->st = hn_vocab_encode(r->v, s, n, 0, &o, NULL);
    r->n_ids = o.n;
    free(o.data);
    free(s);
}

/* A long run of one unit costs its share of a short one. False: printed why; the caller frees and fails. */
static __attribute__((unused)) bool long_runs_of_units(const hn_vocab *v)
{
    static const char *const units[] = { "a", " ",    "\n",   "\xE4\xB8\xAD", "\xCC\x81",     "e\xCC\x81", "a ",
                                         ".", "\x01", "\xFF", "\xED\x95\x9C", "\xEF\xB7\xBA", SP };
    for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
        run_of r = { .v = v, .unit = units[k] };
        char what[64];
        snprintf(what, sizeof what, "a run of \"%s\"", HN_ESC(units[k], strlen(units[k])));
        if (!grows_as_input(what, encode_run, &r, 1 << 13, 1 << 19) || r.st != HONE_OK) return false;
        printf("    %s: %zu ids\n", what, r.n_ids);
    }
    return true;
}

#endif
