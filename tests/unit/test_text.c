/* Small vocabularies built in memory: ids against sentencepiece and tokenizers (golden
 * files), special tokens, defaults, decoding, streaming, and broken files. */
#include "text/text.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* ---- GGUF files byte by byte --------------------------------------------------------- */

typedef struct file { /* metadata only */
    unsigned char *p;
    size_t n, cap;
    uint64_t n_kv;
} file;

static void raw(file *f, const void *p, size_t n)
{
    if (f->n + n > f->cap) assert_non_null(f->p = realloc(f->p, f->cap = 2 * (f->n + n)));
    if (n) memcpy(f->p + f->n, p, n);
    f->n += n;
}
static void u32(file *f, uint32_t v) { raw(f, &(uint32_t){ v }, 4); }
static void u64(file *f, uint64_t v) { raw(f, &(uint64_t){ v }, 8); }
static void strn(file *f, const char *s, size_t n) { u64(f, n), raw(f, s, n); }
static void key(file *f, const char *k, uint32_t type)
{
    if (!f->n) raw(f, "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    strn(f, k, strlen(k));
    u32(f, type);
    f->n_kv++;
    memcpy(f->p + 16, &f->n_kv, 8);
}
static void array(file *f, const char *k, uint32_t type, uint64_t n)
{
    key(f, k, HONE_KV_ARRAY), u32(f, type), u64(f, n);
}
static void kv_str(file *f, const char *k, const char *s) { key(f, k, HONE_KV_STRING), strn(f, s, strlen(s)); }
static void kv_u32(file *f, const char *k, uint32_t v) { key(f, k, HONE_KV_U32), u32(f, v); }
static void kv_bool(file *f, const char *k, bool v) { key(f, k, HONE_KV_BOOL), raw(f, &(char){ v }, 1); }
static void kv_strs(file *f, const char *k, const char *const *s, size_t n)
{
    array(f, k, HONE_KV_STRING, n);
    for (size_t i = 0; i < n; i++) strn(f, s[i], strlen(s[i]));
}
#define STRS(f, k, ...) \
    kv_strs(f, k, (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))
#define I32S(f, k, ...)                                                \
    (array(f, k, HONE_KV_I32, sizeof((int32_t[]){ __VA_ARGS__ }) / 4), \
     raw(f, (int32_t[]){ __VA_ARGS__ }, sizeof((int32_t[]){ __VA_ARGS__ })))
#define F32S(f, k, ...)                                              \
    (array(f, k, HONE_KV_F32, sizeof((float[]){ __VA_ARGS__ }) / 4), \
     raw(f, (float[]){ __VA_ARGS__ }, sizeof((float[]){ __VA_ARGS__ })))

static hone_status make(hn_vocab **v, file *f, const char *pre, hone_error *e)
{
    hn_gguf *g;
    hone_status st = hn_gguf_parse(&g, f->p, f->n, "test.gguf", e);
    if (st != HONE_OK) fail_msg("not even a GGUF file: %s", e->message);
    st = hn_vocab_new(v, g, pre, e);
    if (st != HONE_OK) assert_null(*v);
    hn_gguf_close(g);
    memset(f->p, 0xAA, f->n); /* a vocabulary must not lean on the file */
    free(f->p);
    *f = (file){ 0 };
    return st;
}
static hn_vocab *must(file *f, const char *pre)
{
    hn_vocab *v;
    hone_error e = { 0 };
    if (make(&v, f, pre, &e) != HONE_OK) fail_msg("%s", e.message);
    return v;
}
/* The file is refused with this status, and the message has these parts. */
static void refused(file *f, const char *pre, hone_status want, const char *a, const char *b)
{
    hn_vocab *v;
    hone_error e = { 0 };
    hone_status st = make(&v, f, pre, &e);
    if (st != want || !strstr(e.message, a) || !strstr(e.message, b))
        fail_msg("status %s, message \"%s\"; expected %s with \"%s\" and \"%s\"", hone_status_name(st), e.message,
                 hone_status_name(want), a, b);
}

static void ids_are(const hn_vocab *v, const char *s, size_t len, int flags, const int32_t *want, size_t n)
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
#define IDS(v, s, flags, ...) \
    ids_are(v, s, strlen(s), flags, (int32_t[]){ __VA_ARGS__ }, sizeof((int32_t[]){ __VA_ARGS__ }) / 4)
#define NO_IDS(v, s, flags) ids_are(v, s, strlen(s), flags, NULL, 0)

static void text_is(const hn_vocab *v, bool special, const char *want, const int32_t *ids, size_t n)
{
    char *s;
    size_t len;
    hone_error e = { 0 };
    assert_int_equal(hn_vocab_decode(v, ids, n, special, &s, &len, &e), HONE_OK);
    assert_string_equal(s, want);
    assert_int_equal(len, strlen(want));
    free(s);
}
#define TEXT(v, special, want, ...) \
    text_is(v, special, want, (int32_t[]){ __VA_ARGS__ }, sizeof((int32_t[]){ __VA_ARGS__ }) / 4)

/* ---- golden vocabularies ----------------------------------------------------------------- */

static size_t unhex(char *dst, const char *hex)
{
    size_t n = 0;
    unsigned b;
    for (; sscanf(hex, "%2x", &b) == 1 && *hex != '-' && *hex != ' ' && *hex; hex += 2) dst[n++] = (char)b;
    return n;
}

/* Builds the vocabulary of a golden file and runs its cases. */
static void golden(const char *path, const char *model)
{
    FILE *in = fopen(path, "r");
    if (!in) fail_msg("%s is not there", path);
    file tokens = { 0 }, types = { 0 }, scores = { 0 }, merges = { 0 }, f = { 0 };
    uint64_t n_token = 0, n_merge = 0, n_case = 0;
    hn_vocab *v = NULL;
    char *line = NULL, buf[4096];
    size_t cap = 0;
    while (getline(&line, &cap, in) > 0) {
        char hex[4096];
        int32_t type;
        float score;
        int at;
        if (sscanf(line, "token %4095s %d %f", hex, &type, &score) == 3) {
            strn(&tokens, buf, unhex(buf, hex));
            raw(&types, &type, 4);
            raw(&scores, &score, 4);
            n_token++;
        } else if (sscanf(line, "merge %4095s", hex) == 1) {
            strn(&merges, buf, unhex(buf, hex));
            n_merge++;
        } else if (sscanf(line, "case %4095s%n", hex, &at) == 1 || sscanf(line, "oneway %4095s%n", hex, &at) == 1) {
            if (!v) {
                kv_str(&f, "tokenizer.ggml.model", model);
                kv_str(&f, "tokenizer.ggml.pre", "gpt-2");
                array(&f, "tokenizer.ggml.tokens", HONE_KV_STRING, n_token), raw(&f, tokens.p, tokens.n);
                array(&f, "tokenizer.ggml.token_type", HONE_KV_I32, n_token), raw(&f, types.p, types.n);
                array(&f, "tokenizer.ggml.scores", HONE_KV_F32, n_token), raw(&f, scores.p, scores.n);
                if (n_merge) array(&f, "tokenizer.ggml.merges", HONE_KV_STRING, n_merge), raw(&f, merges.p, merges.n);
                v = must(&f, NULL);
            }
            int32_t want[1024];
            size_t n = 0, len = unhex(buf, hex);
            for (char *p = line + at, *e; want[n] = (int32_t)strtol(p, &e, 10), e != p; p = e) n++;
            ids_are(v, buf, len, 0, want, n);
            char *back;
            size_t n_back;
            hone_error e = { 0 };
            assert_int_equal(hn_vocab_decode(v, want, n, true, &back, &n_back, &e), HONE_OK);
            if (*line == 'c') { /* else several texts have these ids */
                assert_int_equal(n_back, len);
                assert_memory_equal(back, buf, len);
            }
            free(back);
            n_case++;
        }
    }
    assert_true(n_case >= 100 && n_token >= 400);
    free(tokens.p), free(types.p), free(scores.p), free(merges.p), free(line);
    hn_vocab_free(v);
    fclose(in);
}
static void golden_spm(void **state) { golden("tests/golden/vocab_spm.txt", "llama"); }
static void golden_bpe(void **state) { golden("tests/golden/vocab_bpe.txt", "gpt2"); }
static void golden_gemma4(void **state) { golden("tests/golden/vocab_gemma4.txt", "gemma4"); }

/* ---- SentencePiece by hand ------------------------------------------------------------------ */

#define SP "\xE2\x96\x81"
/* 0 <unk> 1 <s> 2 </s> 3 _ 4 a 5 b 6 _a 7 ab 8 <0x41> 9 <0xC3> 10 <tool> 11 __ */
static file spm_file(void)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "llama");
    STRS(&f, "tokenizer.ggml.tokens", "<unk>", "<s>", "</s>", SP, "a", "b", SP "a", "ab", "<0x41>", "<0xC3>", "<tool>",
         SP SP);
    F32S(&f, "tokenizer.ggml.scores", 0, 0, 0, -9, -9, -9, -2, -1, 0, 0, 0, -3);
    I32S(&f, "tokenizer.ggml.token_type", 2, 3, 3, 1, 1, 1, 1, 1, 6, 6, 4, 1);
    return f;
}

static void spm_rules(void **state)
{
    file f = spm_file();
    hn_vocab *v = must(&f, NULL);
    assert_int_equal(hn_vocab_get_kind(v), HN_VOCAB_SPM);
    assert_int_equal(hn_vocab_bos(v), 1);
    assert_int_equal(hn_vocab_eos(v), 2);
    assert_true(hn_vocab_add_bos(v) && !hn_vocab_add_eos(v));
    assert_true(hn_vocab_is_eog(v, 2) && !hn_vocab_is_eog(v, 1) && !hn_vocab_is_eog(v, -1) && !hn_vocab_is_eog(v, 99));
    assert_true(hn_vocab_is_control(v, 1) && !hn_vocab_is_control(v, 0));
    IDS(v, "a", 0, 6);
    IDS(v, "ab", 0, 3, 7); /* ab (-1) before _a (-2) */
    IDS(v, "aab", 0, 6, 7);
    IDS(v, "  a", 0, 11, 6);            /* _ _ _a: _a scores higher than __ */
    IDS(v, "A\xC3\xA9", 0, 3, 8, 9, 0); /* bytes; one that has no token is unknown */
    NO_IDS(v, "", 0);
    IDS(v, "", HONE_TOK_ADD, 1);
    IDS(v, "a", HONE_TOK_ADD, 1, 6);
    IDS(v, "a<s>a", HONE_TOK_SPECIAL, 6, 1, 6); /* a space again behind a special token */
    IDS(v, "a<tool>a", 0, 6, 10, 6);
    IDS(v, "<tool><tool>", 0, 10, 10);
    TEXT(v, false, "a", 1, 6);
    TEXT(v, true, "<s>a", 1, 6);
    TEXT(v, false, "aab", 6, 7);
    TEXT(v, true, "<s> a", 1, 11, 4);
    TEXT(v, false, "a a", 6, 6);
    TEXT(v, false, "A<tool>", 8, 10);
    size_t len;
    assert_null(hn_vocab_piece(v, 12, true, &len));
    assert_null(hn_vocab_piece(v, -1, true, &len));
    assert_non_null(hn_vocab_piece(v, 1, false, &len));
    assert_int_equal(len, 0);
    char *s;
    hone_error e = { 0 };
    assert_int_equal(hn_vocab_decode(v, (int32_t[]){ 4, 12 }, 2, false, &s, &len, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "12"));
    hn_vocab_free(v);

    f = spm_file();
    kv_bool(&f, "tokenizer.ggml.add_space_prefix", false);
    kv_bool(&f, "tokenizer.ggml.add_bos_token", false);
    kv_bool(&f, "tokenizer.ggml.add_eos_token", true);
    v = must(&f, NULL);
    IDS(v, "a", HONE_TOK_ADD, 4, 2);
    IDS(v, " a", 0, 6);
    TEXT(v, false, " a", 6);
    hn_vocab_free(v);

    f = spm_file(); /* ids beyond the end are ignored, 0xFFFFFFFF is none */
    kv_u32(&f, "tokenizer.ggml.bos_token_id", 0xFFFFFFFF);
    kv_u32(&f, "tokenizer.ggml.eos_token_id", 12);
    v = must(&f, NULL);
    assert_int_equal(hn_vocab_bos(v), -1);
    assert_int_equal(hn_vocab_eos(v), 2);
    IDS(v, "a", HONE_TOK_ADD, 6);
    hn_vocab_free(v);

    f = spm_file(); /* phi-3 swallows white space behind its special tokens, not behind <s> */
    kv_str(&f, "general.name", "My Phi-3 mini");
    v = must(&f, NULL);
    IDS(v, "a<tool> \n\t a", 0, 6, 10, 6);
    IDS(v, "<s> a", HONE_TOK_SPECIAL, 1, 3, 6);
    IDS(v, "</s> a", HONE_TOK_SPECIAL, 2, 6);
    hn_vocab_free(v);
}

/* Symbols that no word boundary divides: merges reach over U+2581 here. */
/* An embedding table with more rows than there are tokens: their ids mean nothing, but a model may pick them. */
static void padded_table(void **state)
{
    file f = spm_file();
    hn_vocab *v = must(&f, NULL);
    int32_t n = hn_vocab_size(v), rows = n + 5;
    hn_vocab_free(v);

    f = spm_file();
    memcpy(f.p + 8, &(uint64_t){ 1 }, 8); /* one tensor {1, rows} of F32 */
    strn(&f, "token_embd.weight", 17), u32(&f, 2), u64(&f, 1), u64(&f, (uint64_t)rows), u32(&f, 0), u64(&f, 0);
    while (f.n % 32) raw(&f, "", 1);
    for (int32_t i = 0; i < rows; i++) u32(&f, 0);
    while (f.n % 32) raw(&f, "", 1);
    v = must(&f, NULL);
    assert_int_equal(hn_vocab_size(v), rows);
    size_t len = 1;
    for (int32_t id = n; id < rows; id++) {
        assert_string_equal(hn_vocab_piece(v, id, true, &len), "");
        assert_int_equal(len, 0);
        assert_false(hn_vocab_is_eog(v, id) || hn_vocab_is_control(v, id));
    }
    assert_null(hn_vocab_piece(v, rows, true, &len));
    assert_null(hn_vocab_piece(v, -1, true, &len));
    hn_stream *s;
    const char *text;
    bool stopped;
    hone_error e = { 0 };
    assert_int_equal(hn_stream_new(&s, v, NULL, 0, &e), HONE_OK);
    assert_int_equal(hn_stream_push(s, rows - 1, &text, &len, &stopped, &e), HONE_OK);
    assert_int_equal(len, 0);
    assert_int_equal(hn_stream_push(s, rows, &text, &len, &stopped, &e), HONE_E_ARG);
    hn_stream_free(s);
    char *all;
    assert_int_equal(hn_vocab_decode(v, (int32_t[]){ rows - 1, n }, 2, true, &all, &len, &e), HONE_OK);
    assert_int_equal(len, 0);
    free(all);
    hn_vocab_free(v);
}

static void spm_across_words(void **state)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "llama");
    STRS(&f, "tokenizer.ggml.tokens", "<unk>", "<s>", "</s>", SP, "a", "a" SP, "a" SP "a");
    F32S(&f, "tokenizer.ggml.scores", 0, 0, 0, -9, -9, -1, -2);
    hn_vocab *v = must(&f, NULL);
    IDS(v, "a a a", 0, 3, 5, 6); /* a_ twice, from the left, then a_a */
    char s[401];                 /* long enough for the heap, same result */
    for (int i = 0; i < 400; i++) s[i] = i % 2 ? ' ' : 'a';
    s[399] = 0;
    int32_t want[400] = { 3 };
    size_t n = 1;
    while (n < 199) want[n++] = 5;
    want[n++] = 6;
    ids_are(v, s, 399, 0, want, n);
    hn_vocab_free(v);
}

/* ---- byte-level BPE by hand -------------------------------------------------------------------- */

/* 0 a 1 b 2 c 3 G(space) 4 ab 5 Ga 6 abc 7 <|x|> 8 <|x|>y 9 <t> 10 ca 11 "a b" not in the alphabet */
static file bpe_file(const char *pre, bool with_merges)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "gpt2");
    if (pre) kv_str(&f, "tokenizer.ggml.pre", pre);
    STRS(&f, "tokenizer.ggml.tokens", "a", "b", "c", "\xC4\xA0", "ab",
         "\xC4\xA0"
         "a",
         "abc", "<|x|>", "<|x|>y", "<t>", "ca", "a b");
    I32S(&f, "tokenizer.ggml.token_type", 1, 1, 1, 1, 1, 1, 1, 3, 3, 4, 1, 1);
    if (with_merges) STRS(&f, "tokenizer.ggml.merges", "c a", "a b", "\xC4\xA0 a", "a b");
    return f;
}

static void bpe_rules(void **state)
{
    file f = bpe_file(NULL, true);
    hn_vocab *v = must(&f, NULL);
    assert_int_equal(hn_vocab_get_kind(v), HN_VOCAB_BPE);
    assert_int_equal(hn_vocab_bos(v), -1);
    assert_int_equal(hn_vocab_eos(v), -1);
    IDS(v, "ab", 0, 4);
    IDS(v, "abc", 0, 4, 2);    /* no merge makes abc */
    IDS(v, "cab", 0, 10, 1);   /* c a ranks before a b */
    IDS(v, "a b", 0, 0, 3, 1); /* the token "a b" is not in the byte alphabet: unreachable */
    IDS(v, " ab", 0, 3, 4);
    IDS(v, " a", 0, 5);
    IDS(v, "axb", 0, 0, 1);                        /* bytes without a token vanish */
    IDS(v, "a<|x|>yb", HONE_TOK_SPECIAL, 0, 8, 1); /* the longest special text wins */
    IDS(v, "<t>ab", 0, 9, 4);
    IDS(v, "ab<|x|>", HONE_TOK_ADD | HONE_TOK_SPECIAL, 4, 7);
    TEXT(v, true, " aab<|x|>a b", 5, 4, 7, 11);
    TEXT(v, false, " aab", 5, 4, 7);
    hn_vocab_free(v);

    f = bpe_file("llama-bpe", true); /* whole words first */
    v = must(&f, NULL);
    IDS(v, "abc ab", 0, 6, 3, 4);
    hn_vocab_free(v);
    f = bpe_file("no-such-kind", true);
    v = must(&f, "llama3");
    IDS(v, "abc", 0, 6);
    hn_vocab_free(v);

    f = bpe_file("no-such-kind", true);
    refused(&f, NULL, HONE_E_UNSUPPORTED, "no-such-kind", "--pre");
    f = bpe_file(NULL, true);
    refused(&f, "nonsense", HONE_E_ARG, "nonsense", "qwen2");
    f = spm_file();
    refused(&f, "qwen2", HONE_E_ARG, "qwen2", "gpt2 or gemma4");
}

/* Fewer bytes than a real one; ids as the Python package `tokenizers` gives them. */
static file gemma_file(const char *model, const char *pre)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", model);
    if (pre) kv_str(&f, "tokenizer.ggml.pre", pre);
    STRS(&f, "tokenizer.ggml.tokens", "<unk>", "a", "b", SP, "<0xC3>", "<0xA9>", "ab", "a" SP, "b" SP "a", "\n", "\n\n",
         "\n\n\n", " ", "<bos>", "\n\n\n\n", "<|c>", "<c|>", "<c>", "<", "|", "c", ">");
    I32S(&f, "tokenizer.ggml.token_type", 2, 1, 1, 1, 6, 6, 1, 1, 1, 1, 1, 1, 1, 3, 1, 4, 4, 4, 1, 1, 1, 1);
    STRS(&f, "tokenizer.ggml.merges", "a b", "a " SP, "\n \n");
    kv_u32(&f, "tokenizer.ggml.unknown_token_id", 0);
    return f;
}

static void gemma_rules(void **state)
{
    file f = gemma_file("gemma4", "anything");
    hn_vocab *v = must(&f, NULL);
    assert_int_equal(hn_vocab_get_kind(v), HN_VOCAB_BPE);
    IDS(v,
        "a\xC3\xA9\xC3\xB1"
        "b \xE4\xB8\xAD",
        0, 1, 4, 5, 0, 2, 3, 0); /* of the second letter one byte is missing */
    IDS(v,
        "\xE4\xB8\xAD\xE6\x96\x87"
        "a\xE8\xAA\x9E",
        0, 0, 1, 0); /* unknown characters side by side */
    IDS(v, "a b", 0, 7, 2);
    IDS(v, "a" SP "b", 0, 7, 2); /* the mark is a space, however the text writes it */
    IDS(v, "ab a", 0, 6, 3, 1);
    IDS(v, "\xFF\xFE", 0, 0);
    IDS(v, "\n", 0, 9);
    IDS(v, "a\n\n\na", 0, 1, 11, 1); /* without merges */
    IDS(v, "\n\n\n\n\n", 0, 10, 10, 9);
    TEXT(v, true, "a b\n\n\xC3\xA9 a", 7, 2, 10, 4, 5, 3, 1);
    char many[600] = "";
    for (int i = 0; i < 100; i++) strcat(many, "\xE4\xB8\xAD");
    IDS(v, many, 0, 0); /* through the heap */
    IDS(v, "<|c><c|><c>", 0, 15, 16, 17);
    hn_ids o = { 0 };
    hone_error e = { 0 };
    hone_span all = { 0, 11 }; /* from outside, what structures a prompt is text */
    assert_int_equal(hn_vocab_encode_spans(v, "<|c><c|><c>", 11, HONE_TOK_SPECIAL, &all, 1, &o, &e), HONE_OK);
    assert_int_equal(o.n, 9);
    assert_memory_equal(o.data, ((int32_t[]){ 18, 19, 20, 21, 18, 20, 19, 21, 17 }), 36);
    free(o.data);
    hn_vocab_free(v);

    f = gemma_file("gpt2", "sarvam-moe"); /* the merges only */
    v = must(&f, NULL);
    IDS(v, "a b", 0, 7, 2);
    IDS(v, "\n\n\n", 0, 10, 9);
    hn_vocab_free(v);
    f = gemma_file("gpt2", "granite-embed-multi-311m");
    v = must(&f, NULL);
    IDS(v, "\n\n\n", 0, 11);
    assert_true(hn_vocab_add_bos(v));
    hn_vocab_free(v);
    f = gemma_file("gemma4", NULL); /* files that deny the bos token are wrong */
    kv_bool(&f, "tokenizer.ggml.add_bos_token", false);
    kv_u32(&f, "tokenizer.ggml.bos_token_id", 13);
    v = must(&f, NULL);
    IDS(v, "a", HONE_TOK_ADD, 13, 1);
    hn_vocab_free(v);
    f = gemma_file("gemma4", NULL);
    refused(&f, "gpt-2", HONE_E_ARG, "gpt-2", "not byte-level");
}

/* A long word goes through the heap, a short one does not: same merges. */
static void bpe_long(void **state)
{
    file f = bpe_file("gpt-2", true);
    hn_vocab *v = must(&f, NULL);
    char s[3000];
    hn_ids whole = { 0 }, parts = { 0 };
    hone_error e = { 0 };
    for (int round = 0; round < 50; round++) {
        size_t n = 0;
        for (size_t i = 0; n < 2000; i++) { /* nothing merges with what follows a b */
            size_t len = 1 + hn_rand64(9, (uint64_t)round << 32 | i) % 30;
            for (size_t k = 0; k < len; k++) s[n++] = "abcac"[hn_rand64(7, (uint64_t)round << 32 | i << 8 | k) % 5];
            s[n++] = 'b';
        }
        whole.n = parts.n = 0;
        assert_int_equal(hn_vocab_encode(v, s, n, 0, &whole, &e), HONE_OK);
        for (size_t a = 0, i = 0; i < n; i++)
            if (s[i] == 'b') {
                assert_int_equal(hn_vocab_encode(v, s + a, i + 1 - a, 0, &parts, &e), HONE_OK);
                a = i + 1;
            }
        assert_int_equal(whole.n, parts.n);
        assert_memory_equal(whole.data, parts.data, 4 * whole.n);
    }
    free(whole.data), free(parts.data);
    hn_vocab_free(v);
}

static void invalid_utf8(void **state)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "gpt2");
    /* EF BF BD is what U+FFFD becomes; the alphabet writes it as three letters */
    STRS(&f, "tokenizer.ggml.tokens", "\xC3\xAF", "\xC2\xBF", "\xC2\xBD", "a", "\xC3\xBF");
    STRS(&f, "tokenizer.ggml.merges", "a a");
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.merges[0]", "result");
    f = (file){ 0 };
    kv_str(&f, "tokenizer.ggml.model", "gpt2");
    STRS(&f, "tokenizer.ggml.tokens", "\xC3\xAF", "\xC2\xBF", "\xC2\xBD", "a", "\xC3\xBF");
    array(&f, "tokenizer.ggml.merges", HONE_KV_STRING, 0);
    hn_vocab *v = must(&f, NULL);
    IDS(v,
        "a\xFF"
        "a",
        0, 3, 0, 1, 2, 3);
    IDS(v, "\xF0\x9F\x98", 0, 0, 1, 2); /* one maximal subpart */
    IDS(v,
        "\xE2\x82"
        "a",
        0, 0, 1, 2, 3);
    IDS(v, "\xC0\x80", 0, 0, 1, 2, 0, 1, 2); /* two */
    hn_vocab_free(v);
}

/* ---- RWKV ----------------------------------------------------------------------------------------- */

static void rwkv_rules(void **state)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "rwkv");
    kv_u32(&f, "tokenizer.ggml.bos_token_id", 0);
    kv_u32(&f, "tokenizer.ggml.eos_token_id", 0);
    STRS(&f, "tokenizer.ggml.tokens", "<s>", "a", "b", "\\n", "\\x00", "ab", "abab", "\\\\", "\\'\"", "\\xe2\\x82\\xac",
         "\\n\\n", "[PAD11]", "s", "<", ">");
    I32S(&f, "tokenizer.ggml.token_type", 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 1, 1, 1);
    hn_vocab *v = must(&f, NULL);
    IDS(v, "ababab", 0, 6, 5);
    IDS(v, "abaa", 0, 5, 1, 1);
    IDS(v, "\n\n\n", 0, 10, 3);
    IDS(v, "\\'\"\xE2\x82\xAC", 0, 7, 8, 9);
    IDS(v, "<s>", 0, 13, 12, 14); /* text stays text */
    IDS(v, "<s>a", HONE_TOK_SPECIAL, 0, 1);
    IDS(v, "a", HONE_TOK_ADD, 1);
    ids_are(v, "a\0b", 3, 0, (int32_t[]){ 1, 4, 2 }, 3);
    TEXT(v, true, "<s>ab\n\xE2\x82\xAC", 0, 5, 3, 9);
    assert_true(hn_vocab_is_eog(v, 0));
    hn_ids o = { 0 };
    hone_error e = { 0 };
    assert_int_equal(hn_vocab_encode(v, "az", 2, 0, &o, &e), HONE_E_FORMAT);
    assert_non_null(strstr(e.message, "0x7a"));
    assert_int_equal(o.n, 0);
    free(o.data);
    hn_vocab_free(v);

    f = (file){ 0 };
    kv_str(&f, "tokenizer.ggml.model", "rwkv");
    STRS(&f, "tokenizer.ggml.tokens", "a", "\\x4");
    refused(&f, NULL, HONE_E_FORMAT, "tokens[1]", "\\xHH");
}

/* ---- special tokens ----------------------------------------------------------------------------------- */

static void end_of_generation(void **state)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "gpt2");
    STRS(&f, "tokenizer.ggml.tokens", "</s>", "<|im_end|>", "<|endoftext|>", "<|end|>", "<|return|>", "<|call|>",
         "<|fim_pad|>", "<|eom_id|>");
    I32S(&f, "tokenizer.ggml.token_type", 1, 3, 3, 3, 3, 3, 3, 4);
    array(&f, "tokenizer.ggml.merges", HONE_KV_STRING, 0);
    kv_u32(&f, "tokenizer.ggml.eos_token_id", 2);
    hn_vocab *v = must(&f, NULL);
    static const bool eog[] = {
        false /* ordinary text here */, true, true, false /* harmony */, true, true, true, true
    };
    for (int i = 0; i < 8; i++) assert_int_equal(hn_vocab_is_eog(v, i), eog[i]);
    assert_int_equal(hn_vocab_eot(v), 1);
    hn_vocab_free(v);
}

/* What ends generation in published vocabularies: names, their exceptions, and a list of the file's own. */
static void ends(const char *const *tokens, size_t n, const char *want, const int32_t *list, size_t n_list)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "gpt2");
    kv_strs(&f, "tokenizer.ggml.tokens", tokens, n);
    array(&f, "tokenizer.ggml.token_type", HONE_KV_I32, n);
    for (size_t i = 0; i < n; i++) raw(&f, &(int32_t){ 3 }, 4);
    kv_strs(&f, "tokenizer.ggml.merges", NULL, 0);
    kv_u32(&f, "tokenizer.ggml.eos_token_id", 0);
    if (list) array(&f, "tokenizer.ggml.eos_token_ids", HONE_KV_U32, n_list), raw(&f, list, 4 * n_list);
    hn_vocab *v = must(&f, NULL);
    for (size_t i = 0; i < n; i++)
        if (hn_vocab_is_eog(v, (int32_t)i) != (want[i] == '1'))
            fail_msg("%s, token %zu of %s: %d", want, i, tokens[i], want[i] != '1');
    hn_vocab_free(v);
}
#define ENDS(want, list, ...)                                                                                       \
    ends((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), want, \
         list, sizeof(list) / 4)

static void eog_sets(void **state)
{
    static const int32_t two[] = { 2, 1000000 };
#define NO_LIST ((const int32_t *)NULL)
    /* gpt-oss, Solar: <|end|> ends a message; Phi: the turn */
    ENDS("111001", NO_LIST, "<|return|>", "<|call|>", "<|endoftext|>", "<|end|>", "<|start|>", "</s>");
    ENDS("1110", NO_LIST, "<|flush|>", "<|calls|>", "<|endoftext|>", "<|end|>");
    ENDS("110", NO_LIST, "<|endoftext|>", "<|end|>", "<|user|>");
    /* Gemma 4, PLaMo: </s> is text */
    ENDS("11100", NO_LIST, "<eos>", "<turn|>", "<|tool_response>", "</s>", "<|tool_call>");
    ENDS("10", NO_LIST, "<|plamo:eos|>", "</s>");
    ENDS("11", NO_LIST, "<x>", "[e~["); /* MiniMax */
    ENDS("1110", NO_LIST, "<|end_of_text|>", "<|im_end|>", "[EOS]", "<|start_of_role|>");
    ENDS("1111", NO_LIST, "<x>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>");
    /* a list of the file's wins over all names; the eos of its key stays */
    ENDS("1010", two, "<x>", "<|im_end|>", "<y>", "<|endoftext|>");
}

/* Gaps: keys win over older keys, these over names; and a name counts only for a token that someone marked. */
static void fim_ids(void **state)
{
    static const char *const tokens[] = { "<|endoftext|>",
                                          "<|fim_prefix|>",
                                          "<fim_suffix>",
                                          "<\xEF\xBD\x9C"
                                          "fim\xE2\x96\x81"
                                          "end\xEF\xBD\x9C>",
                                          "<|fim_pad|>",
                                          "<x>",
                                          "<|file_sep|>",
                                          "<MID>" };
    static const int32_t want[HONE_N_FIM] = { 1, 5, 3, 4, -1, 6 };
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "gpt2");
    kv_strs(&f, "tokenizer.ggml.tokens", tokens, 8);
    I32S(&f, "tokenizer.ggml.token_type", 3, 3, 3, 4, 3, 3, 4, 1);
    kv_strs(&f, "tokenizer.ggml.merges", NULL, 0);
    kv_u32(&f, "tokenizer.ggml.suffix_token_id", 2);
    kv_u32(&f, "tokenizer.ggml.fim_suf_token_id", 5);
    hn_vocab *v = must(&f, NULL);
    for (int i = 0; i < HONE_N_FIM; i++) assert_int_equal(hn_vocab_fim(v, (hone_fim)i), want[i]);
    for (int i = 0; i < 8; i++) assert_int_equal(hn_vocab_is_eog(v, i), i == 0 || i == 4 || i == 6);
    hn_vocab_free(v);
}

static void overlapping_specials(void **state)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "rwkv");
    STRS(&f, "tokenizer.ggml.tokens", "a", "b", "c", "d", "ab", "bcd", "aa");
    I32S(&f, "tokenizer.ggml.token_type", 1, 1, 1, 1, 4, 4, 4);
    hn_vocab *v = must(&f, NULL);
    IDS(v, "abcd", 0, 0, 5); /* the longest token wins, not the leftmost */
    IDS(v, "abc", 0, 4, 2);
    IDS(v, "aaab", 0, 6, 4);
    IDS(v, "aaa", 0, 6, 0); /* one token's own occurrences: from the left */
    hn_vocab_free(v);
}

/* ---- streaming --------------------------------------------------------------------------------------------- */

static void expect_push(hn_stream *s, int32_t id, const char *want, bool stop)
{
    const char *t;
    size_t n;
    bool stopped;
    hone_error e = { 0 };
    assert_int_equal(hn_stream_push(s, id, &t, &n, &stopped, &e), HONE_OK);
    if (n != strlen(want) || memcmp(t, want, n) != 0 || stopped != stop)
        fail_msg("token %d gave \"%s\"%s, expected \"%s\"%s", id, HN_ESC(t, n), stopped ? " and stopped" : "", want,
                 stop ? " and stop" : "");
}
static void expect_flush(hn_stream *s, const char *want)
{
    const char *t;
    size_t n;
    hone_error e = { 0 };
    assert_int_equal(hn_stream_flush(s, &t, &n, &e), HONE_OK);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(t, want, n);
}

static void streaming(void **state)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "rwkv");
    kv_u32(&f, "tokenizer.ggml.eos_token_id", 0);
    STRS(&f, "tokenizer.ggml.tokens", "<s>", "a", "b", "ab", "\\xe2", "\\x82", "\\xac", "User:", "\\n\\nUs", "er:x",
         "\\n");
    I32S(&f, "tokenizer.ggml.token_type", 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    hn_vocab *v = must(&f, NULL);
    hn_stream *s;
    hone_error e = { 0 };
    static const char *const stops[] = { "\n\nUser:", "aab" };
    assert_int_equal(hn_stream_new(&s, v, stops, 2, &e), HONE_OK);
    expect_push(s, 10, "", false); /* \n may begin a stop string */
    expect_push(s, 10, "", false);
    expect_push(s, 10, "\n", false); /* one newline too many: the first one is free */
    expect_push(s, 1, "\n\n", false);
    expect_push(s, 1, "", false);
    expect_push(s, 1, "a", false); /* aaa: aa may go on to aab */
    expect_push(s, 4, "", false);  /* an unfinished character is not text yet */
    expect_flush(s, "aa\xEF\xBF\xBD");
    hn_stream_free(s);
    hn_vocab_free(v);
}

static void streaming_stops(void **state)
{
    file f = { 0 };
    kv_str(&f, "tokenizer.ggml.model", "rwkv");
    kv_u32(&f, "tokenizer.ggml.eos_token_id", 0);
    STRS(&f, "tokenizer.ggml.tokens", "<s>", "a", "b", "ab", "\\xe2", "\\x82", "\\xac", "User:", "x\\n\\nUs", "er:x",
         "\\n");
    I32S(&f, "tokenizer.ggml.token_type", 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    hn_vocab *v = must(&f, NULL);
    hn_stream *s;
    hone_error e = { 0 };
    static const char *const stops[] = { "\n\nUser:", "\xE2\x82\xAC" };
    assert_int_equal(hn_stream_new(&s, v, stops, 2, &e), HONE_OK);
    expect_push(s, 3, "ab", false);
    expect_push(s, 8, "x", false);
    expect_push(s, 9, "", true);
    expect_push(s, 1, "", true); /* nothing more */
    expect_flush(s, "");
    hn_stream_free(s);

    assert_int_equal(hn_stream_new(&s, v, stops, 2, &e), HONE_OK);
    expect_push(s, 8, "x", false);
    expect_push(s, 0, "", false); /* end of generation shows nothing */
    expect_flush(s, "\n\nUs");
    hn_stream_free(s);

    assert_int_equal(hn_stream_new(&s, v, stops, 2, &e), HONE_OK);
    expect_push(s, 1, "a", false);
    expect_push(s, 4, "", false);
    expect_push(s, 5, "", false);
    expect_push(s, 6, "", true);
    hn_stream_free(s);

    assert_int_equal(hn_stream_new(&s, v, NULL, 0, &e), HONE_OK);
    expect_push(s, 4, "", false);
    expect_push(s, 1,
                "\xEF\xBF\xBD"
                "a",
                false);
    expect_push(s, 5, "\xEF\xBF\xBD", false);
    expect_push(s, 4, "", false);
    expect_push(s, 5, "", false);
    expect_push(s, 6, "\xE2\x82\xAC", false);
    const char *t;
    size_t n;
    bool stopped;
    assert_int_equal(hn_stream_push(s, 11, &t, &n, &stopped, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "11"));
    hn_stream_free(s);

    assert_int_equal(hn_stream_new(&s, v, (const char *const[]){ "a", "" }, 2, &e), HONE_E_ARG);
    assert_null(s);
    assert_int_equal(hn_stream_new(&s, v, (const char *const[]){ "a\xFF" }, 1, &e), HONE_E_ARG);
    hn_vocab_free(v);
}

/* ---- broken files ---------------------------------------------------------------------------------------------- */

static void hostile(void **state)
{
    file f;
    hone_error e = { 0 };
    hn_vocab *v;

    f = (file){ 0 };
    kv_str(&f, "general.architecture", "llama");
    assert_int_equal(make(&v, &f, NULL, &e), HONE_OK);
    assert_null(v);
    kv_str(&f, "tokenizer.ggml.model", "no_vocab");
    assert_int_equal(make(&v, &f, NULL, &e), HONE_OK);
    assert_null(v);
    kv_str(&f, "tokenizer.ggml.model", "plamo2");
    refused(&f, NULL, HONE_E_UNSUPPORTED, "plamo2", "test.gguf");
    kv_u32(&f, "tokenizer.ggml.model", 3);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.model", "test.gguf");
    kv_str(&f, "tokenizer.ggml.model", "llama");
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.tokens", "missing");
    kv_str(&f, "tokenizer.ggml.model", "llama");
    array(&f, "tokenizer.ggml.tokens", HONE_KV_STRING, 0);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.tokens", "empty");
    kv_str(&f, "tokenizer.ggml.model", "llama");
    I32S(&f, "tokenizer.ggml.tokens", 1, 2);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.tokens", "string");

#define SPM3(f) (kv_str(f, "tokenizer.ggml.model", "llama"), STRS(f, "tokenizer.ggml.tokens", "a", "b", "c"))
    SPM3(&f), F32S(&f, "tokenizer.ggml.scores", 1, 2);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.scores", "2 elements");
    SPM3(&f), F32S(&f, "tokenizer.ggml.scores", 1, 2, 3, 4);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.scores", "4 elements");
    SPM3(&f), I32S(&f, "tokenizer.ggml.scores", 1, 2, 3);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.scores", "f32");
    SPM3(&f), F32S(&f, "tokenizer.ggml.scores", 1, 2, (float)(0.0 / 0.0 + *(volatile float *)&(float){ 0 }));
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.scores[2]", "not a number");
    SPM3(&f), I32S(&f, "tokenizer.ggml.token_type", 1, 1);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.token_type", "2 elements");
    SPM3(&f), F32S(&f, "tokenizer.ggml.token_type", 1, 1, 1);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.token_type", "i32");
    SPM3(&f), I32S(&f, "tokenizer.ggml.token_type", 1, 7, 1);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.token_type[1]", "7");
    SPM3(&f), I32S(&f, "tokenizer.ggml.token_type", 1, -1, 1);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.token_type[1]", "-1");
    SPM3(&f), kv_str(&f, "tokenizer.ggml.bos_token_id", "x");
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.bos_token_id", "test.gguf");

    kv_str(&f, "tokenizer.ggml.model", "llama"), STRS(&f, "tokenizer.ggml.tokens", "a", "b", "a");
    refused(&f, NULL, HONE_E_FORMAT, "tokens 0 and 2", "\"a\"");
    kv_str(&f, "tokenizer.ggml.model", "llama"), STRS(&f, "tokenizer.ggml.tokens", "a", "<s>", "<s>");
    I32S(&f, "tokenizer.ggml.token_type", 1, 3, 3);
    refused(&f, NULL, HONE_E_FORMAT, "tokens 1 and 2", "<s>");

    kv_str(&f, "tokenizer.ggml.model", "llama"), array(&f, "tokenizer.ggml.tokens", HONE_KV_STRING, 1);
    char *big = calloc(1, 1 << 20);
    strn(&f, memset(big, 'x', 1 << 20), 1 << 20);
    refused(&f, NULL, HONE_E_FORMAT, "tokens[0] has 1048576 bytes", "65535");
    kv_str(&f, "tokenizer.ggml.model", "llama"), array(&f, "tokenizer.ggml.tokens", HONE_KV_STRING, 2),
        strn(&f, big, 65535), strn(&f, "", 0);
    v = must(&f, NULL);         /* the longest allowed, and an empty one */
    IDS(v, "x", 0, 0, 0, 0, 0); /* three bytes of U+2581 and x, all unknown */
    hn_vocab_free(v);

    static const struct {
        const char *merge, *what;
    } bad[] = {
        { "ab", "one space" },    { "", "one space" },       { " ", "one space" },       { "a ", "one space" },
        { " b", "one space" },    { "z b", "left part" },    { "a z", "right part" },    { "b a", "result" },
        { "a  b", "right part" }, { "a b c", "right part" }, { "a \xFF", "right part" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        f = bpe_file(NULL, false);
        kv_strs(&f, "tokenizer.ggml.merges", (const char *const[]){ "a b", bad[i].merge }, 2);
        refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.merges[1]", bad[i].what);
    }
    f = bpe_file(NULL, false);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.merges", "missing");
    f = bpe_file(NULL, false);
    I32S(&f, "tokenizer.ggml.merges", 1);
    refused(&f, NULL, HONE_E_FORMAT, "tokenizer.ggml.merges", "string");
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_spm),
        cmocka_unit_test(golden_bpe),
        cmocka_unit_test(spm_rules),
        cmocka_unit_test(padded_table),
        cmocka_unit_test(spm_across_words),
        cmocka_unit_test(bpe_rules),
        cmocka_unit_test(gemma_rules),
        cmocka_unit_test(golden_gemma4),
        cmocka_unit_test(bpe_long),
        cmocka_unit_test(invalid_utf8),
        cmocka_unit_test(rwkv_rules),
        cmocka_unit_test(end_of_generation),
        cmocka_unit_test(overlapping_specials),
        cmocka_unit_test(eog_sets),
        cmocka_unit_test(fim_ids),
        cmocka_unit_test(streaming),
        cmocka_unit_test(streaming_stops),
        cmocka_unit_test(hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
