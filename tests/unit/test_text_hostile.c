/* Hostile vocabularies: tokens as long as files may hold, nested in one another, against a
 * megabyte made for them. The time must stay linear in the text, and the ids those of the
 * rules as one would write them down first. */
#include "golden_vocab.h"
#include "slowed.h"

#define MODEL "tokenizer.ggml.model"
#define TOKENS "tokenizer.ggml.tokens"
#define SCORES "tokenizer.ggml.scores"
#define TYPES "tokenizer.ggml.token_type"

enum { MEGABYTE = SLOWED ? 250000 : 1000000, LONGEST = 65535 };

typedef struct vocab {
    bb tokens, types, scores;
    uint64_t n;
} vocab;

static void add(vocab *t, const char *s, size_t n, int32_t type, float score)
{
    bb_strn(&t->tokens, s, n);
    bb_raw(&t->types, &type, 4);
    bb_raw(&t->scores, &score, 4);
    t->n++;
}

static hn_vocab *made(vocab *t, const char *model, bool merges)
{
    bb f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL, model);
    bb_kv_array(&f, TOKENS, 8, t->n), bb_raw(&f, t->tokens.p, t->tokens.n);
    bb_kv_array(&f, TYPES, 5, t->n), bb_raw(&f, t->types.p, t->types.n);
    bb_kv_array(&f, SCORES, 6, t->n), bb_raw(&f, t->scores.p, t->scores.n);
    if (merges) bb_kv_array(&f, "tokenizer.ggml.merges", 8, 0);
    bb_free(&t->tokens), bb_free(&t->types), bb_free(&t->scores);
    *t = (vocab){ 0 };
    return must(&f, merges ? 5 : 4);
}

typedef struct encoding {
    const hn_vocab *v;
    const char *unit;
    size_t n_unit;
    hn_ids out;
    hone_status st;
    hone_error err;
} encoding;

/* n bytes of repetitions, with a last byte that is none. */
static void encode_repeated(void *arg, size_t n)
{
    encoding *c = arg;
    char *text = malloc(n);
    free(c->out.data);
    c->out = (hn_ids){ 0 };
    c->st = text ? HONE_OK : HN_FAIL(&c->err, HONE_E_NOMEM, "%zu bytes of text", n);
    if (!text) return;
    for (size_t i = 0; i < n; i++) text[i] = c->unit[i % c->n_unit];
    text[n - 1] = '#';
    c->st = hn_vocab_encode(c->v, text, n, HONE_TOK_SPECIAL, &c->out, &c->err);
    free(text);
}

/* The ids of a megabyte of it; and a sixteenth of a megabyte took its share of the work. */
static hn_ids repeated(const hn_vocab *v, const char *what, const char *s, size_t n)
{
    encoding c = { .v = v, .unit = s, .n_unit = n };
    bool good = grows_as_input(what, encode_repeated, &c, MEGABYTE / 16, MEGABYTE) && c.st == HONE_OK;
    if (!good) {
        free(c.out.data);
        fail_msg("%s: %s", what, c.st == HONE_OK ? "it grows faster than the text" : c.err.message);
    }
    printf("    %s: %zu ids\n", what, c.out.n);
    return c.out;
}

static void bytes(vocab *t, bool hex)
{
    char s[8];
    for (unsigned b = 0; b < 256; b++) add(t, s, (size_t)sprintf(s, hex ? "<0x%02X>" : "\\x%02x", b), hex ? 6 : 1, 0);
}

/* Special tokens x^1 … x^n: every one of them stands at every place. */
static void nested_specials(void **state)
{
    static char x[LONGEST];
    memset(x, 'x', sizeof x);
    vocab t = { 0 };
    bytes(&t, false);
    for (size_t k = 1; k <= 1400; k++) add(&t, x, k, 4, 0);
    hn_vocab *v = made(&t, "rwkv", false);
    hn_ids o = repeated(v, "nested added tokens", x, 1);
    enum { N = MEGABYTE / 1400 };
    assert_int_equal(o.n, N + 1 + 1);
    for (size_t i = 0; i < N; i++) assert_int_equal(o.data[i], 256 + 1399);
    assert_int_equal(o.data[N], 256 + MEGABYTE - 1 - N * 1400 - 1);
    free(o.data);
    x[1000] = '|'; /* each of them blocked by a longer one on its right */
    o = repeated(v, "nested added tokens, divided", x, 1400);
    free(o.data);
    x[1000] = 'x';
    hn_vocab_free(v);

    bytes(&t, false); /* x^k, and the longest of them all in the midst of a run */
    for (size_t k = 1; k <= 1400; k++) add(&t, x, k, 4, 0);
    x[700] = '|';
    add(&t, x, 1401, 4, 0);
    hn_vocab *w = made(&t, "rwkv", false);
    memset(x, 'x', sizeof x);
    x[1400] = '|';
    o = repeated(w, "nested added tokens before a longer one", x, 2800);
    free(o.data);
    hn_vocab_free(w);
}

/* One special token of 65,535 bytes that is never quite there. */
static void long_special(void **state)
{
    static char x[LONGEST];
    static const char *const models[] = { "llama", "gpt2", "rwkv", "bert", "t5" };
    for (size_t m = 0; m < 5; m++)
        for (int32_t type = 3; type <= 4; type++) {
            vocab t = { 0 };
            bytes(&t, m != 2);
            memset(x, 'x', sizeof x);
            x[LONGEST - 1] = 'y';
            add(&t, x, LONGEST, type, 0);
            hn_vocab *v = made(&t, models[m], m == 1);
            hn_ids o = repeated(v, models[m], "x", 1);
            free(o.data);
            o = repeated(v, models[m], x, LONGEST);
            free(o.data);
            hn_vocab_free(v);
        }
}

/* Longest match with tokens of one byte and of 65,535: each is begun, none is finished. */
static void long_rwkv(void **state)
{
    static char x[LONGEST];
    memset(x, 'x', sizeof x);
    vocab t = { 0 };
    bytes(&t, false);
    for (size_t k = 1024; k <= LONGEST; k *= 2) x[k - 1] = '!', add(&t, x, k, 1, 0), x[k - 1] = 'x';
    x[LONGEST - 1] = '!';
    add(&t, x, LONGEST, 1, 0);
    hn_vocab *v = made(&t, "rwkv", false);
    hn_ids o = repeated(v, "rwkv", "x", 1);
    assert_int_equal(o.n, MEGABYTE);
    free(o.data);
    hn_vocab_free(v);
}

/* SentencePiece: a chain that grows by one byte a merge, between symbols of thousands. */
static void long_spm(void **state)
{
    static char x[LONGEST];
    memset(x, 'x', sizeof x);
    vocab t = { 0 };
    add(&t, "<unk>", 5, 2, 0);
    add(&t, "x", 1, 1, 0), add(&t, "y", 1, 1, 0);
    for (size_t k = 2; k <= 32768; k *= 2) add(&t, x, k, 1, 1);
    memset(x, 'y', sizeof x);
    for (size_t k = 2; k <= 1400; k++) add(&t, x, k, 1, -(float)k);
    hn_vocab *v = made(&t, "llama", false);
    memset(x, 'x', sizeof x);
    hn_ids o = repeated(v, "spm, x", x, 1);
    free(o.data);
    memset(x, 'y', sizeof x);
    o = repeated(v, "spm, y", x, 1);
    free(o.data);
    memset(x, 'x', 32768);
    o = repeated(v, "spm, x and y", x, 32768 + 1400);
    free(o.data);
    hn_vocab_free(v);
}

static void long_ugm(void **state)
{
    static char x[LONGEST];
    memset(x, 'x', sizeof x);
    vocab t = { 0 };
    add(&t, "<pad>", 5, 3, 0), add(&t, "</s>", 4, 3, 0), add(&t, "<unk>", 5, 2, 0);
    for (size_t k = 1; k <= 128; k++) add(&t, x, k, 1, -1);
    hn_vocab *v = made(&t, "t5", false);
    hn_ids o = repeated(v, "unigram", "x", 1);
    free(o.data);
    hn_vocab_free(v);

    /* more than that many at each place would be quadratic: an error, not a wait */
    add(&t, "<pad>", 5, 3, 0), add(&t, "</s>", 4, 3, 0), add(&t, "<unk>", 5, 2, 0);
    for (size_t k = 1; k <= 1400; k++) add(&t, x, k, 1, -1);
    v = made(&t, "t5", false);
    char *text = malloc(MEGABYTE);
    assert_non_null(text);
    memset(text, 'x', MEGABYTE);
    hone_error e = { 0 };
    o = (hn_ids){ 0 };
    assert_int_equal(hn_vocab_encode(v, text, MEGABYTE, 0, &o, &e), HONE_E_UNSUPPORTED);
    printf("    %s\n", e.message);
    assert_non_null(strstr(e.message, "tokens of up to 1400 bytes"));
    assert_int_equal(o.n, 0);
    ids_are(v, text, 1400, 0, (int32_t[]){ 3 + 1399 }, 1);
    free(text);
    hn_vocab_free(v);
}

static void long_wpm(void **state)
{
    static char x[LONGEST];
    memset(x, 'x', sizeof x);
    vocab t = { 0 };
    memcpy(x, SP, 3);
    add(&t, x, 4, 1, 0);
    for (size_t k = 5; k <= LONGEST; k *= 2) x[k - 1] = '!', add(&t, x, k, 1, 0), x[k - 1] = 'x';
    memset(x, 'x', 3);
    add(&t, x, 1, 1, 0);
    for (size_t k = 2; k <= LONGEST; k *= 2) x[k - 1] = '!', add(&t, x, k, 1, 0), x[k - 1] = 'x';
    hn_vocab *v = made(&t, "bert", false);
    x[100] = ' ';
    hn_ids o = repeated(v, "wordpiece", x, 101);
    free(o.data);
    hn_vocab_free(v);
}

/* ---- the automaton against the rules --------------------------------------------------------------- */

static uint32_t rng = 1;
static uint32_t below(uint32_t n) { return (rng = rng * 1664525u + 1013904223u) / 65536u % n; }

enum { MAX_TOK = 24, MAX_LEN = 9, TEXT = 60 };
static struct {
    char s[MAX_LEN];
    size_t n;
    int32_t type;
    bool structure;
} tok[MAX_TOK];

/* Ids with the tokens that take part taken one after the other, longest first, then by id. */
static size_t by_hand(const char *s, size_t len, size_t n_tok, bool special, const bool *dirty, int32_t *ids)
{
    int owner[TEXT];
    size_t n = 0;
    memset(owner, 0xFF, sizeof owner);
    for (size_t L = MAX_LEN; L > 0; L--)
        for (size_t k = 0; k < n_tok; k++) {
            if (tok[k].n != L || tok[k].type == 1 || (!special && tok[k].type != 4)) continue;
            for (size_t i = 0; i + L <= len; i++) {
                bool fits = memcmp(s + i, tok[k].s, L) == 0;
                for (size_t j = i; j < i + L; j++) fits = fits && owner[j] < 0 && !(tok[k].structure && dirty[j]);
                for (size_t j = i; fits && j < i + L; j++) owner[j] = (int)k;
                if (fits) i += L - 1;
            }
        }
    for (size_t i = 0; i < len;) {
        if (owner[i] >= 0) {
            ids[n++] = owner[i];
            i += tok[owner[i]].n;
            continue;
        }
        size_t e = i; /* longest match over plain tokens, within what is free */
        while (e < len && owner[e] < 0) e++;
        while (i < e) {
            size_t best = n_tok;
            for (size_t k = 0; k < n_tok; k++)
                if (tok[k].type == 1 && tok[k].n <= e - i && memcmp(s + i, tok[k].s, tok[k].n) == 0 &&
                    (best == n_tok || tok[k].n > tok[best].n))
                    best = k;
            ids[n++] = (int32_t)best;
            i += tok[best].n;
        }
    }
    return n;
}

static void against_rules(void **state)
{
    static char big[200];
    memset(big, 'z', sizeof big);
    size_t n_special = 0;
    for (int round = 0; round < 3000; round++) {
        vocab t = { 0 };
        char s[TEXT], hex[4 * MAX_LEN + 1];
        size_t n_tok = 3 + below(MAX_TOK - 3), letters = 1 + below(3), made_n = 0;
        for (size_t k = 0; k < n_tok; k++) {
            tok[made_n].n = k < 3 ? 1 : 1 + below(MAX_LEN);
            for (size_t i = 0; i < tok[made_n].n; i++)
                tok[made_n].s[i] = (char)('a' + (k < 3 ? k : below((uint32_t)letters)));
            tok[made_n].type = k < 3 ? 1 : (int32_t[]){ 1, 3, 4, 4 }[below(4)];
            tok[made_n].structure = tok[made_n].type == 3;
            bool twice = false;
            for (size_t i = 0; i < made_n; i++)
                twice |= tok[i].n == tok[made_n].n && memcmp(tok[i].s, tok[made_n].s, tok[i].n) == 0;
            if (twice) continue;
            for (size_t i = 0; i < tok[made_n].n; i++) sprintf(hex + 4 * i, "\\x%02x", tok[made_n].s[i]);
            add(&t, hex, 4 * tok[made_n].n, tok[made_n].type, 0);
            made_n++;
        }
        if (round & 1) add(&t, big, sizeof big, 1, 0); /* plain tokens by automaton, too */
        hn_vocab *v = made(&t, "rwkv", false);
        for (int k = 0; k < 8; k++) {
            size_t len = 1 + below(TEXT), n_span = 0;
            bool dirty[TEXT] = { 0 };
            hone_span span[TEXT];
            int32_t want[TEXT];
            for (size_t i = 0; i < len; i++) s[i] = (char)('a' + below((uint32_t)letters));
            for (size_t i = below(20), j; k & 1 && i < len; i = j + 1 + below(12)) {
                j = i + below(5);
                if (j > len) j = len;
                span[n_span++] = (hone_span){ i, j };
                for (size_t b = i; b < j; b++) dirty[b] = true;
            }
            for (size_t i = 0; i < n_span; i++) /* an empty span marks no byte */
                if (span[i].begin == span[i].end) memmove(span + i, span + i + 1, (--n_span - i) * sizeof *span), i--;
            bool special = k & 2;
            size_t n = by_hand(s, len, made_n, special, dirty, want);
            hn_ids o = { 0 };
            hone_error e = { 0 };
            if (hn_vocab_encode_spans(v, s, len, special ? HONE_TOK_SPECIAL : 0, span, n_span, &o, &e) != HONE_OK)
                fail_msg("%s", e.message);
            if (o.n != n || memcmp(o.data, want, n * sizeof *want) != 0)
                fail_msg("round %d, text %d: \"%s\"", round, k, HN_ESC(s, len));
            for (size_t i = 0; i < n; i++) n_special += tok[want[i]].type != 1;
            free(o.data);
        }
        hn_vocab_free(v);
    }
    assert_true(n_special > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_specials), cmocka_unit_test(long_special), cmocka_unit_test(long_rwkv),
        cmocka_unit_test(long_spm),        cmocka_unit_test(long_ugm),     cmocka_unit_test(long_wpm),
        cmocka_unit_test(against_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
