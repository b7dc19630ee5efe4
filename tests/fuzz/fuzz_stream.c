/* Fuzzes streaming decode: whatever tokens bring whatever bytes, what is shown so far is
 * always the beginning of the repaired whole, made of whole characters, without a stop
 * string or any part of one that comes true. Input: stop strings, then one token a byte.
 * covers: src/text/stream.c */
#include "../unit/gguf_bytes.h"
#include "text/text_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* parts of characters, as tokens beyond the 256 single bytes */
static const char *const parts[] = { "\xE4\xB8",     "\xAD\xE6",     "\x96\x87", "\xF0\x9F", "\x98\x80",
                                     "\xF0\x9F\x98", "\x80\xF0",     "\xED\xA0", "\xC3\xC3", "ab",
                                     "aab",          "\n\n",         "User:",    "\n\nUs",   "<|im",
                                     "_end|>",       "\xEF\xBF\xBD", "\xE2\x82", "\xAC\x61", "\xF4\x90" };
enum { N_PARTS = sizeof parts / sizeof *parts, MAX_TOKENS = 400, MAX_TEXT = 16 * MAX_TOKENS };

static hn_vocab *vocab;

static void must(bool ok)
{
    if (!ok) abort();
}

static void make_vocab(void)
{
    char s[64];
    bb b = bb_head(3, 0, 3);
    bb_kv_str(&b, "general.architecture", "llama");
    bb_kv_str(&b, "tokenizer.ggml.model", "rwkv");
    bb_kv_array(&b, "tokenizer.ggml.tokens", 8, 256 + N_PARTS);
    for (unsigned i = 0; i < 256 + N_PARTS; i++) {
        size_t o = 0;
        if (i < 256) o = (size_t)sprintf(s, "\\x%02x", i);
        else
            for (const char *p = parts[i - 256]; *p; p++)
                o += (size_t)sprintf(s + o, "\\x%02x", (unsigned)(unsigned char)*p);
        bb_strn(&b, s, o);
    }
    bb_pad(&b, 32);
    hn_gguf *g;
    hone_error e;
    must(hn_gguf_parse(&g, b.p, b.n, "fuzz", &e) == HONE_OK);

    must(hn_vocab_new(&vocab, g, NULL, &e) == HONE_OK);
    hn_gguf_close(g);
    bb_free(&b);
}

/* Length of the well-formed character at s, or minus that of the maximal ill-formed part:
 * the rows of Unicode's table 3-7. */
static int character(const uint8_t *s, size_t n)
{
    static const struct {
        uint8_t lo, hi, n, lo2, hi2;
    } row[] = {
        { 0x00, 0x7F, 1, 0, 0 },       { 0xC2, 0xDF, 2, 0x80, 0xBF }, { 0xE0, 0xE0, 3, 0xA0, 0xBF },
        { 0xE1, 0xEC, 3, 0x80, 0xBF }, { 0xED, 0xED, 3, 0x80, 0x9F }, { 0xEE, 0xEF, 3, 0x80, 0xBF },
        { 0xF0, 0xF0, 4, 0x90, 0xBF }, { 0xF1, 0xF3, 4, 0x80, 0xBF }, { 0xF4, 0xF4, 4, 0x80, 0x8F },
    };
    for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
        if (s[0] < row[r].lo || s[0] > row[r].hi) continue;
        for (int k = 1; k < row[r].n; k++)
            if ((size_t)k == n || s[k] < (k == 1 ? row[r].lo2 : 0x80) || s[k] > (k == 1 ? row[r].hi2 : 0xBF)) return -k;
        return row[r].n;
    }
    return -1;
}

static size_t repair(uint8_t *dst, const uint8_t *s, size_t n)
{
    size_t o = 0;
    for (size_t i = 0; i < n;) {
        int k = character(s + i, n - i);
        memcpy(dst + o, k > 0 ? s + i : (const uint8_t *)"\xEF\xBF\xBD", k > 0 ? (size_t)k : 3);
        o += k > 0 ? (size_t)k : 3;
        i += (size_t)abs(k);
    }
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char stop_text[4][16];
    static uint8_t raw[MAX_TEXT], whole[3 * MAX_TEXT], shown[3 * MAX_TEXT];
    const char *stops[4];
    size_t n_stops = 0, i = 0, n_raw = 0, n_shown = 0, len;
    if (!vocab) make_vocab();
    if (size) n_stops = data[i++] % 5;
    for (size_t k = 0; k < n_stops; k++) {
        size_t n = i < size ? data[i++] % 8 : 0, o = 0;
        for (; o < n && i < size; i++)
            if (data[i]) stop_text[k][o++] = (char)data[i]; /* a stop string is a C string */
        stop_text[k][o] = 0;
        stops[k] = stop_text[k];
    }
    hn_stream *st;
    hone_error e = { 0 };
    hone_status made = hn_stream_new(&st, vocab, stops, n_stops, &e);
    for (size_t k = 0; k < n_stops; k++) {
        size_t n = strlen(stops[k]);
        uint8_t fixed[64];
        bool good = n && repair(fixed, (const uint8_t *)stops[k], n) == n && memcmp(fixed, stops[k], n) == 0;
        if (!good) {
            must(made == HONE_E_ARG && !st && *e.message);
            return 0;
        }
    }
    must(made == HONE_OK);
    size_t first = i, n_tokens = size - first > MAX_TOKENS ? MAX_TOKENS : size - first;
#define ID(k)                                                                                         \
    (data[first + (k)] < 0x20 + N_PARTS && data[first + (k)] >= 0x20 ? 256 + data[first + (k)] - 0x20 \
                                                                     : data[first + (k)])
    for (size_t k = 0; k < n_tokens; k++) {
        const char *p = hn_vocab_piece(vocab, ID(k), false, &len);
        memcpy(raw + n_raw, p, len);
        n_raw += len;
    }
    size_t n_whole = repair(whole, raw, n_raw), end = n_whole;
    for (size_t at = 1; at <= n_whole && end == n_whole;
         at++) /* the first stop string completed, the longest of those */
        for (size_t k = 0; k < n_stops; k++) {
            size_t n = strlen(stops[k]);
            if (n <= at && memcmp(whole + at - n, stops[k], n) == 0 && at - n < end) end = at - n;
        }
    bool stopped = false;
    const char *t;
    for (size_t k = 0; k <= n_tokens; k++) {
        must((k < n_tokens ? hn_stream_push(st, ID(k), &t, &len, &stopped, &e) : hn_stream_flush(st, &t, &len, &e)) ==
             HONE_OK);
        must(n_shown + len <= end && memcmp(whole + n_shown, t, len) == 0);
        memcpy(shown + n_shown, t, len);
        n_shown += len;
        for (size_t c = n_shown - len; c < n_shown;) {
            int n = character(shown + c, n_shown - c);
            must(n > 0);
            c += (size_t)n;
        }
    }
    must(n_shown == end);
    hn_stream_free(st);
    return 0;
}
