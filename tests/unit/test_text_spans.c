/* Where tokens come from: against Hugging Face `tokenizers` and sentencepiece (spans.txt of
 * make_spans.py), and by what must hold for any text, ill-formed ones included. */
#include "golden_vocab.h"

#define MODEL "tokenizer.ggml.model"
#define TOKENS "tokenizer.ggml.tokens"
#define TYPES "tokenizer.ggml.token_type"

/* A golden file with its kind; its bytes ("<0x41>") called so, or words like others. */
static hn_vocab *load_as(const char *name, bool bytes)
{
    char path[64], *line = NULL, buf[4096], hex[8192];
    snprintf(path, sizeof path, "tests/golden/%s", name);
    FILE *in = fopen(path, "r");
    if (!in) fail_msg("%s is not there", path);
    bb tokens = { 0 }, types = { 0 }, scores = { 0 }, merges = { 0 }, map = { 0 };
    uint64_t n = 0, n_merge = 0;
    size_t cap = 0;
    while (getline(&line, &cap, in) > 0) {
        int32_t type;
        float score;
        if (sscanf(line, "token %4095s %d %f", hex, &type, &score) == 3) {
            bb_strn(&tokens, buf, unhex(buf, hex));
            if (type == 6 && !bytes) type = 1;
            bb_raw(&types, &type, 4);
            bb_raw(&scores, &score, 4);
            n++;
        } else if (sscanf(line, "merge %4095s", hex) == 1) {
            bb_strn(&merges, buf, unhex(buf, hex));
            n_merge++;
        } else if (sscanf(line, "map %4095s", hex) == 1) {
            bb_raw(&map, buf, unhex(buf, hex));
        }
    }
    free(line);
    fclose(in);
    bb f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL,
              strstr(name, "wpm")      ? "bert"
              : strstr(name, "bpe")    ? "gpt2"
              : strstr(name, "gemma4") ? "gemma4"
              : strstr(name, "spm")    ? "llama"
                                       : "t5");
    bb_kv_str(&f, "tokenizer.ggml.pre", "gpt-2");
    bb_kv_array(&f, TOKENS, 8, n), bb_raw(&f, tokens.p, tokens.n);
    bb_kv_array(&f, TYPES, 5, n), bb_raw(&f, types.p, types.n);
    bb_kv_array(&f, "tokenizer.ggml.scores", 6, n), bb_raw(&f, scores.p, scores.n);
    bb_kv_array(&f, "tokenizer.ggml.merges", 8, n_merge), bb_raw(&f, merges.p, merges.n);
    bb_kv_array(&f, "tokenizer.ggml.precompiled_charsmap", 0, map.n), bb_raw(&f, map.p, map.n);
    kv_bool(&f, "tokenizer.ggml.add_space_prefix", !strstr(name, "bpe"));
    kv_bool(&f, "tokenizer.ggml.remove_extra_whitespaces", strcmp(name, "vocab_ugm.txt") == 0);
    bb_free(&tokens), bb_free(&types), bb_free(&scores), bb_free(&merges), bb_free(&map);
    return must(&f, 9);
}
static hn_vocab *load(const char *name) { return load_as(name, true); }

static bool continues(const char *s, size_t i, size_t n) { return i < n && ((unsigned char)s[i] & 0xC0) == 0x80; }

static void golden_spans(void **state)
{
    FILE *in = fopen("tests/golden/spans.txt", "r");
    if (!in) fail_msg("tests/golden/spans.txt is not there");
    char *line = NULL, text[4096], hex[8192], name[32], now[32] = "";
    size_t cap = 0, n_line = 0, n_token = 0;
    hn_vocab *v = NULL;
    while (getline(&line, &cap, in) > 0) {
        int at;
        if (sscanf(line, "%31s %8191s%n", name, hex, &at) != 2 || *line == '#') continue;
        if (strcmp(name, now) != 0) {
            hn_vocab_free(v);
            v = load(strcpy(now, name));
        }
        size_t len = unhex(text, hex), n = 0;
        hn_ids o = { 0 };
        hone_span *span;
        hone_error e = { 0 };
        if (hn_vocab_locate(v, text, len, 0, &o, &span, &e) != HONE_OK) fail_msg("%s", e.message);
        for (int used, id;; at += used, n++) {
            size_t begin, end;
            if (sscanf(line + at, " %d:%zu:%zu%n", &id, &begin, &end, &used) != 3) break;
            if (n >= o.n) fail_msg("%s: \"%s\": %zu tokens", name, HN_ESC(text, len), o.n);
            size_t a = span[n].begin, b = span[n].end;
            if (strstr(name, "bpe")) { /* there, characters are counted */
                while (a && continues(text, a, len)) a--;
                while (continues(text, b, len)) b++;
            }
            if (id != o.data[n] || a != begin || b != end)
                fail_msg("%s: \"%s\": token %zu is %d at %zu to %zu, expected %d at %zu to %zu", name,
                         HN_ESC(text, len), n, o.data[n], a, b, id, begin, end);
            n_token++;
        }
        assert_int_equal(n, o.n);
        n_line++;
        free(o.data);
        free(span);
    }
    printf("    %zu texts, %zu tokens\n", n_line, n_token);
    assert_true(n_line > 250);
    hn_vocab_free(v);
    free(line);
    fclose(in);
}

static uint32_t rng = 1;
static uint32_t below(uint32_t n) { return (rng = rng * 1664525u + 1013904223u) / 65536u % n; }

/* The same ids as without; spans ascend within the text; where nothing is normalised the bytes are those of the piece.
 */
static void any_bytes(void **state)
{
    static const char *const parts[] = { "the ",
                                         " ",
                                         "a",
                                         "\xC3",
                                         "\xA9",
                                         "\xE2\x82",
                                         "\xF0\x9F\x98\x80",
                                         "\xFF",
                                         "\xED\xA0\x80",
                                         "\n",
                                         "\xE4\xB8\xAD",
                                         "town",
                                         SP,
                                         "\xE2\x96",
                                         "\0",
                                         "<tool>",
                                         "<|end|>",
                                         "[SEP]",
                                         "e\xCC\x81",
                                         "\xEF\xBC\xA1",
                                         "\xC2\xAD",
                                         "0" };
    static const char *const names[] = { "vocab_spm.txt", "vocab_bpe.txt",        "vocab_wpm.txt",
                                         "vocab_ugm.txt", "vocab_ugm_spaces.txt", "vocab_gemma4.txt" };
    for (size_t k = 0; k < 6; k++) {
        bool bpe = k == 1 || k == 5;
        hn_vocab *v = load(names[k]);
        for (int round = 0; round < 4000; round++) {
            char s[400];
            size_t len = 0;
            for (uint32_t n = below(40); n; n--) {
                size_t p = below(sizeof parts / sizeof *parts), m = strlen(parts[p]) + (*parts[p] == 0);
                memcpy(s + len, parts[p], m);
                len += m;
            }
            hn_ids o = { 0 }, plain = { 0 };
            hone_span *span;
            hone_error e = { 0 };
            int flags = (int)below(4);
            assert_int_equal(hn_vocab_encode(v, s, len, flags, &plain, &e), HONE_OK);
            assert_int_equal(hn_vocab_locate(v, s, len, flags, &o, &span, &e), HONE_OK);
            assert_int_equal(o.n, plain.n);
            if (o.n) assert_memory_equal(o.data, plain.data, o.n * sizeof *o.data);
            for (size_t i = 0; i < o.n; i++) {
                size_t m;
                const char *p = hn_vocab_piece(v, o.data[i], true, &m);
                assert_true(span[i].begin <= span[i].end && span[i].end <= len);
                if (i) assert_true(span[i].begin >= span[i - 1].begin && span[i].end >= span[i - 1].end);
                size_t n = span[i].end - span[i].begin;
                bool same = n == m && memcmp(s + span[i].begin, p, n) == 0;
                if (k == 0) { /* spaces, and the mark that texts may hold themselves */
                    bool mark = false;
                    for (size_t j = span[i].begin; j < span[i].end; j++)
                        mark |= s[j] == '\xE2' || s[j] == '\x96' || s[j] == '\x81' || s[j] == ' ';
                    bool prefix = n + 1 == m && *p == ' ' && memcmp(s + span[i].begin, p + 1, n) == 0;
                    if (!same && !mark && !prefix && n)
                        fail_msg("\"%s\": token %zu, %zu to %zu, is not \"%s\"", HN_ESC(s, len), i, span[i].begin,
                                 span[i].end, HN_ESC(p, m));
                }
                if (bpe && n && !same) {
                    bool bad = false;
                    for (size_t j = span[i].begin; j < span[i].end; j++) bad |= (unsigned char)s[j] >= 0x80;
                    if (!bad)
                        fail_msg("\"%s\": token %zu, %zu to %zu, is not \"%s\"", HN_ESC(s, len), i, span[i].begin,
                                 span[i].end, HN_ESC(p, m));
                }
                if ((k == 0 || bpe) && i && !(flags & HONE_TOK_SPECIAL)) /* every byte belongs to a token, unless it is
                                                                            a part of U+FFFD spelt in several */
                    assert_true(span[i].begin == span[i - 1].end || (bpe && span[i].begin < span[i - 1].end) ||
                                (k == 0 && s[span[i].begin] == ' '));
            }
            free(o.data);
            free(plain.data);
            free(span);
        }
        hn_vocab_free(v);
    }
}

static void spans_are(const hn_vocab *v, const char *s, size_t len, int flags, const size_t *want, size_t n)
{
    hn_ids o = { 0 };
    hone_span *span;
    hone_error e = { 0 };
    assert_int_equal(hn_vocab_locate(v, s, len, flags, &o, &span, &e), HONE_OK);
    if (o.n * 2 != n) fail_msg("\"%s\": %zu tokens, expected %zu", HN_ESC(s, len), o.n, n / 2);
    for (size_t i = 0; i < o.n; i++)
        if (span[i].begin != want[2 * i] || span[i].end != want[2 * i + 1])
            fail_msg("\"%s\": token %zu (%d) at %zu to %zu, expected %zu to %zu", HN_ESC(s, len), i, o.data[i],
                     span[i].begin, span[i].end, want[2 * i], want[2 * i + 1]);
    free(o.data);
    free(span);
}
#define AT(v, s, flags, ...) \
    spans_are(v, s, sizeof(s) - 1, flags, (size_t[]){ __VA_ARGS__ }, COUNT(size_t, __VA_ARGS__))

static void by_hand(void **state)
{
    bb f = bb_head(3, 0, 0); /* no byte tokens: unknown ones have one byte each */
    bb_kv_str(&f, MODEL, "llama");
    STRS(&f, TOKENS, "<unk>", "<s>", "</s>", SP "a", "a", SP, "<t>");
    I32S(&f, TYPES, 2, 3, 3, 1, 1, 1, 4);
    hn_vocab *v = must(&f, 3);
    AT(v, "a", HONE_TOK_ADD, 0, 0, 0, 1);
    AT(v, " a", 0, 0, 0, 0, 2); /* the prefix, and the space with its word */
    AT(v,
       "a\xFF"
       "a<t> a",
       0, 0, 1, 1, 2, 2, 3, 3, 6, 6, 6, 6, 8); /* one more prefix behind <t> */
    AT(v, "</s>a", HONE_TOK_SPECIAL, 0, 4, 4, 5);
    hn_vocab_free(v);

    f = bb_head(3, 0, 0); /* U+FFFD is three bytes, ill-formed text any number */
    bb_kv_str(&f, MODEL, "gpt2");
    STRS(&f, TOKENS, "a", "\xC3\xAF", "\xC2\xBF", "\xC2\xBD", "\xC3\xAF\xC2\xBF\xC2\xBD");
    bb_kv_array(&f, "tokenizer.ggml.merges", 8, 0);
    v = must(&f, 3);
    AT(v,
       "a\xFF"
       "a\xE2\x82"
       "a",
       0, 0, 1, 1, 2, 1, 2, 1, 2, 2, 3, 3, 5, 3, 5, 3, 5, 5, 6);
    AT(v, "ba\xEF\xBF\xBD", 0, 1, 2, 2, 3, 3, 4, 4, 5); /* no token for b; a real U+FFFD byte by byte */
    hn_vocab_free(v);

    f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL, "bert");
    STRS(&f, TOKENS, "[UNK]", SP "a", "b", SP "i", "[CLS]", "[SEP]");
    I32S(&f, TYPES, 3, 1, 1, 1, 3, 3);
    v = must(&f, 3);
    AT(v,
       "ab [SEP]\xC3\x81"
       "b",
       HONE_TOK_SPECIAL | HONE_TOK_ADD, 0, 0, 0, 1, 1, 2, 3, 8, 8, 10, 10, 11, 11, 11);
    AT(v,
       "\xFF"
       "a\xFF"
       "b\xCC\x81 zz",
       0, 1, 2, 3, 4, 7, 9); /* what is dropped belongs to nobody */
    hn_vocab_free(v);
}

/* A file that calls its bytes words divides texts as any other, and its tokens come from where theirs do. (Such spans
 * were as long as the word, six bytes, and reached beyond the text.) */
static void bytes_called_words(void **state)
{
    hn_vocab *v = load("vocab_gemma4.txt"), *other = load_as("vocab_gemma4.txt", false);
    for (int round = 0; round < 2000; round++) {
        char s[60];
        size_t len = 1 + below(sizeof s);
        for (size_t i = 0; i < len; i++) s[i] = below(3) ? (char)below(256) : "ab \n"[below(4)];
        hn_ids a = { 0 }, b = { 0 };
        hone_span *x, *y;
        hone_error e = { 0 };
        assert_int_equal(hn_vocab_locate(v, s, len, 0, &a, &x, &e), HONE_OK);
        assert_int_equal(hn_vocab_locate(other, s, len, 0, &b, &y, &e), HONE_OK);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.data, b.data, a.n * sizeof *a.data);
        assert_memory_equal(x, y, a.n * sizeof *x);
        free(a.data), free(b.data), free(x), free(y);
    }
    hn_vocab_free(v), hn_vocab_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(golden_spans), cmocka_unit_test(any_bytes),
                                        cmocka_unit_test(bytes_called_words), cmocka_unit_test(by_hand) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
