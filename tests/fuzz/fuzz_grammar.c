/* Fuzzes grammars: the first byte chooses the notation (and strictness), then its text, and behind a NUL bytes to
 * match. A grammar either is refused with a message, or reads any bytes without a fault; what a mask allows
 * is what trying each token says; taking steps back gives the mask that was there before, and so it is where what
 * nobody holds has gone; a copy is where its original is, and goes its own way. Bit 5: with a vocabulary of some
 * thousand tokens.
 * covers: src/text/lang.c src/text/lang_near.c src/text/lang_sweep.c src/text/lexeme.c
 * covers: src/text/grammar.c src/text/gbnf.c src/text/pattern.c
 * covers: src/text/schema.c src/text/schema_tree.c src/text/schema_words.c src/text/schema_valid.c
 * covers: src/text/schema_choice.c src/text/schema_emit.c
 * covers: src/text/matcher.c src/text/masks.c src/text/finish.c src/text/token_tree.c */
#include "text/machine.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) abort();
}

enum { N_VOCABULARY = 2, MANY = 2500 };

static hn_token_tree vocabularies[N_VOCABULARY];
static void drop(void)
{
    for (int i = 0; i < N_VOCABULARY; i++) hn_token_tree_free(&vocabularies[i]);
}

/* Bytes, and a few longer tokens; many: with words of three to nine letters, some of them behind a quote. */
static const hn_token_tree *vocabulary(bool many)
{
    static const char *const parts[] = {
        "\"", "{\"",   "\":",   "\",",      "\"}",      "}]",   "],",
        "[[", "\\u00", "\\ud8", "\xC3\xA9", "\xE4\xB8", "abc",  "true",
        "00", "-1",    ".5",    " \"",      "\n  ",     "\\\"", "aaaaaaaaaaaaaaaaaaaaaaaa"
    };
    enum { N_PARTS = sizeof parts / sizeof *parts, N = 256 + N_PARTS };
    static char byte[256], word[MANY][12];
    static hn_token_text list[N + MANY];
    hn_token_tree *t = &vocabularies[many];
    int n = N + (many ? MANY : 0);
    if (t->n) return t;
    if (!vocabularies[!many].n) atexit(drop);
    hone_str *piece = calloc((size_t)n + 1, sizeof *piece);
    must(piece != NULL);
    for (int i = 0; i < n; i++) {
        if (i < 256) byte[i] = (char)i, piece[i] = (hone_str){ &byte[i], 1 };
        else if (i < N) piece[i] = (hone_str){ parts[i - 256], strlen(parts[i - 256]) };
        else {
            char *w = word[i - N];
            int k = snprintf(w, 12, "%s%d", i % 7 ? "" : "\"", i * 7919 % 99991);
            for (int c = 0; c < k && i % 3; c++)
                if (w[c] != '"') w[c] = (char)(w[c] + 'a' - '0' + i % 9);
            piece[i] = (hone_str){ w, (size_t)k };
        }
        list[i] = (hn_token_text){ piece[i].ptr, (uint32_t)piece[i].len, i };
    }
    must(hn_token_tree_make(t, list, (size_t)n, NULL) == HONE_OK);
    t->n_vocab = n + 1;
    t->piece = piece;
    t->end_ids = malloc(sizeof *t->end_ids);
    must(t->end_ids != NULL);
    t->end_ids[0] = n;
    t->n_end = 1;
    must(hn_token_tree_plain(t, NULL) == HONE_OK);
    return t;
}

/* What may come where few tokens are left may come, and is something where something is. */
static void shortened(hn_matcher *m, const uint64_t *mask, size_t words, int64_t n, int64_t left)
{
    uint64_t within[64];
    int64_t k;
    if (hn_matcher_mask_within(m, left, within, words, &k, NULL) != HONE_OK) return;
    for (size_t i = 0; i < words; i++) must((within[i] & ~mask[i]) == 0);
    must((k > 0) == (n > 0));
}

/* A copy has the same mask, and what it reads is its own. */
static void copied(hn_matcher *m, const uint64_t *mask, size_t words)
{
    static const char some[] = "\"a";
    uint64_t own[64];
    int64_t n;
    bool ok;
    hn_matcher *c;
    size_t steps = hn_matcher_steps(m);
    bool ends = hn_matcher_ends(m);
    if (hn_matcher_copy(&c, m, NULL) != HONE_OK) return;
    must(hn_matcher_steps(c) == steps && hn_matcher_ends(c) == ends);
    if (hn_matcher_mask(c, own, words, &n, NULL) == HONE_OK) must(memcmp(own, mask, words * sizeof *own) == 0);
    if (hn_matcher_bytes(c, some, 2, &ok, NULL) == HONE_OK && ok) must(hn_matcher_steps(c) == steps + 1);
    must(hn_matcher_steps(m) == steps && hn_matcher_ends(m) == ends);
    hn_matcher_free(c);
}

static void match(hn_grammar *g, const uint8_t *text, size_t len, bool many)
{
    enum { WORDS = 64, STEPS = 40 };
    const hn_token_tree *t = vocabulary(many);
    const size_t words = ((size_t)t->n_vocab + 63) / 64;
    const int32_t apart = many ? 97 : 7;
    hn_matcher *m;
    uint64_t mask[WORDS] = { 0 }, again[WORDS] = { 0 };
    int64_t n;
    must(hn_matcher_new(&m, g, t, NULL) == HONE_OK);
    for (size_t i = 0; i < len && i < (many ? STEPS / 2 : STEPS); i++) {
        bool ok;
        if (hn_matcher_mask(m, mask, words, &n, NULL) != HONE_OK) break;      /* too large */
        for (int32_t id = (int32_t)i % apart; id < t->n_vocab; id += apart) { /* some of them each time */
            if (hn_matcher_token(m, id, &ok, NULL) != HONE_OK) break;
            must(ok == (mask[id / 64] >> id % 64 & 1));
            if (ok) must(hn_matcher_back(m, 1, NULL) == HONE_OK);
        }
        if (i % 3 == 2) hn_grammar_machine(g)->high = 0;
        if (hn_matcher_mask(m, again, words, &n, NULL) != HONE_OK) break;
        must(memcmp(mask, again, sizeof mask) == 0);
        if (i == 2) copied(m, mask, words);
        if (i % 4 == 1) shortened(m, mask, words, n, text[i] % 64);
        if (n == 0) break;
        /* the byte itself, else the allowed token that it chooses */
        int32_t id = text[i];
        if (!(mask[id / 64] >> id % 64 & 1))
            for (int64_t k = text[i] % n, at = 0; at < t->n_vocab; at++)
                if (mask[at / 64] >> at % 64 & 1 && k-- == 0) id = (int32_t)at;
        if (hn_matcher_token(m, id, &ok, NULL) != HONE_OK) break;
        must(ok);
        if (id == t->n_vocab - 1) break;
    }
    hn_matcher_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const uint8_t *text = data + 1, *zero = memchr(text, 0, size - 1);
    size_t len = zero ? (size_t)(zero - text) : size - 1;
    hone_grammar *g;
    hone_error err = { 0 };
    hone_str words[2] = { { (const char *)text, len / 2 }, { (const char *)text + len / 2, len - len / 2 } };
    hone_grammar_params p = { .kind = (hone_grammar_kind)(data[0] % 5),
                              .text = (const char *)text,
                              .len = len,
                              .choices = words,
                              .n_choices = 2,
                              .strict = data[0] >> 6 & 1,
                              .compact = data[0] >> 7 };
    hone_status st = hone_grammar_compile(&g, &p, &err);
    if (st != HONE_OK) {
        must(!g && *err.message && (st == HONE_E_ARG || st == HONE_E_UNSUPPORTED));
        return 0;
    }
    must(hone_grammar_notes(g) != NULL);
    if (zero) match(g, zero + 1, size - 1 - len - 1, data[0] & 32);
    hone_grammar_free(g);
    return 0;
}
