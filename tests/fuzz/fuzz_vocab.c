/* Fuzzes tokenizers: the input is a GGUF file, and its last bytes are also text. Whatever
 * the vocabulary, encoding gives ids of it, and decoding and streaming agree with the
 * pieces of single tokens.
 * covers: src/text/vocab.c src/text/encode.c src/text/ugm.c src/text/wpm.c src/text/trie.c src/text/match.c */
#include "text/text.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) abort();
}

static void check_text(const hn_vocab *v, const char *s, size_t len, int flags)
{
    hn_ids ids = { 0 };
    hone_error e = { 0 };
    hone_status st = hn_vocab_encode(v, s, len, flags, &ids, &e);
    if (st != HONE_OK) { /* only RWKV vocabularies without all 256 bytes refuse a text */
        must(hn_vocab_get_kind(v) == HN_VOCAB_RWKV && st == HONE_E_FORMAT && *e.message && ids.n == 0);
        free(ids.data);
        return;
    }
    hn_ids same = { 0 };
    hone_span *span = NULL;
    must(hn_vocab_locate(v, s, len, flags, &same, &span, &e) == HONE_OK && same.n == ids.n);
    for (size_t i = 0; i < ids.n; i++) {
        must(same.data[i] == ids.data[i] && span[i].begin <= span[i].end && span[i].end <= len);
        must(!i || span[i - 1].begin <= span[i].begin);
    }
    free(same.data), free(span);
    char *text;
    size_t n, k, total = 0;
    volatile char sink; /* every byte shown is read */
    must(hn_vocab_decode(v, ids.data, ids.n, true, &text, &n, &e) == HONE_OK);
    for (size_t i = 0; i < ids.n; i++) {
        const char *p = hn_vocab_piece(v, ids.data[i], true, &k);
        must(p != NULL);
        total += k;
    }
    must(total == n || total == n + 1); /* SPM's one leading space */
    free(text);
    static const char *const stops[] = { "ab", "\xE2\x82\xAC", "b\n" };
    hn_stream *stream;
    const char *t;
    bool stopped = false;
    must(hn_stream_new(&stream, v, stops, 3, &e) == HONE_OK);
    for (size_t i = 0; i < ids.n; i++) {
        must(hn_stream_push(stream, ids.data[i], &t, &k, &stopped, &e) == HONE_OK);
        for (size_t c = 0; c < k; c++) sink = t[c];
    }
    must(hn_stream_flush(stream, &t, &k, &e) == HONE_OK);
    must(!stopped || k == 0);
    (void)sink;
    hn_stream_free(stream);
    free(ids.data);
}

/* What is asked of a vocabulary besides texts. */
static void check_answers(const hn_vocab *v)
{
    int32_t n = hn_vocab_size(v);
    const int32_t ids[] = { hn_vocab_bos(v),
                            hn_vocab_eos(v),
                            hn_vocab_eot(v),
                            hn_vocab_fim(v, HONE_FIM_PREFIX),
                            hn_vocab_fim(v, HONE_FIM_SUFFIX),
                            hn_vocab_fim(v, HONE_FIM_MIDDLE) };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) must(ids[i] >= -1 && ids[i] < n);
    for (int32_t i = -2; i < n + 2; i++) {
        size_t k;
        hone_token_class type = hn_vocab_class(v, i);
        bool control = hn_vocab_is_control(v, i), ends = hn_vocab_is_eog(v, i);
        must((i >= 0 && i < n) || (!control && !ends && !hn_vocab_piece(v, i, true, &k)));
        must(!control || type == HONE_TOKEN_CONTROL);
    }
    must(!hn_vocab_add_bos(v) || hn_vocab_bos(v) >= -1);
    must(!hn_vocab_add_eos(v) || hn_vocab_eos(v) >= -1);
    const int32_t wrong = n;
    char *text;
    size_t len;
    hone_error e = { 0 };
    must(hn_vocab_decode(v, &wrong, 1, true, &text, &len, &e) == HONE_E_ARG && *e.message);
}

/* Another split of texts than the file's: of BPE alone. A file without words has no vocabulary, whatever is asked. */
static void split_otherwise(const hn_gguf *g)
{
    static const char *const pre[] = { "llama-bpe", "gemma4", "none" };
    for (size_t i = 0; i < sizeof pre / sizeof *pre; i++) {
        hn_vocab *v;
        hone_error e = { 0 };
        hone_status st = hn_vocab_new(&v, g, pre[i], &e);
        must(st == HONE_OK ? !v || (hn_vocab_get_kind(v) == HN_VOCAB_BPE && i < 2) : !v && *e.message);
        hn_vocab_free(v);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char fixed[] = "Hello <s> </s>  a\nb\xE2\x82\xAC\xF0\x9F\x98\x80 12345 don't <|end|>\xFF\xC3 "
                                "\xED\xA0\x80 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    hn_gguf *g;
    hone_error e = { 0 };
    if (hn_gguf_parse(&g, data, size, "fuzz", &e) != HONE_OK) return 0;
    hn_vocab *v;
    hone_status st = hn_vocab_new(&v, g, NULL, &e);
    must(st == HONE_OK || (!v && *e.message));
    if (size % 4 == 0) split_otherwise(g);
    hn_gguf_close(g);
    if (!v) return 0;
    check_answers(v);
    size_t tail = size < 300 ? size : 300;
    for (int flags = 0; flags < 4; flags++) {
        check_text(v, fixed, sizeof fixed, flags); /* with its NUL */
        check_text(v, (const char *)data + size - tail, tail, flags);
    }
    for (int32_t i = 0; i < hn_vocab_size(v); i++) {
        size_t k;
        must(hn_vocab_piece(v, i, i & 1, &k) != NULL);
    }
    hn_vocab_free(v);
    return 0;
}
