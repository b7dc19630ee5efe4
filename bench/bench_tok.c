/* bench_tok: how fast text becomes token ids and ids become text, one thread.
 *
 *   build/release/bench/bench_tok VOCAB.gguf TEXT [ROUNDS]     (made by `make tests`)
 *
 * Prints one line per measure: name, unit, median, least, most over ROUNDS (default 7).
 *   tok.encode        MB/s over the whole text in one call (text bytes / 1e6)
 *   tok.encode.docs   MB/s over the same text in calls of about 4 KB, as a server would
 *   tok.encode.short  us for one short prompt
 *   tok.decode        ns per token, whole sequence; .stream: one token at a time
 *   tok.hostile.KIND  s for one megabyte of one thing
 * Times are of the room's functions, without the file read before. */
#include "lab/lab.h"
#include "text/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ROUNDS = 101, DOC_BYTES = 4096, HOSTILE_BYTES = 1000000 };

static double times[MAX_ROUNDS];
static int n_rounds = 7;

static void die(const char *what, const hone_error *e)
{
    fprintf(stderr, "bench_tok: %s: %s\n", what, e ? e->message : "failed");
    exit(1);
}

static void report(const char *name, const char *unit)
{
    hn_stats s;
    hone_error e;
    if (hn_stats_of(&s, times, (size_t)n_rounds, &e) != HONE_OK) die(name, &e);
    printf("%-24s %-9s %10.4g %10.4g %10.4g\n", name, unit, s.median, s.min, s.max);
    fflush(stdout);
}

static double seconds_since(uint64_t t) { return (double)(hn_clock_ns() - t) * 1e-9; }

static void encode(const hn_vocab *v, const char *s, size_t n, hn_ids *ids)
{
    hone_error e;
    ids->n = 0;
    if (hn_vocab_encode(v, s, n, 0, ids, &e) != HONE_OK) die("encode", &e);
}

/* The end of a document that begins at a: a newline near DOC_BYTES, else a character boundary. */
static size_t doc_end(const char *s, size_t n, size_t a)
{
    size_t b = a + DOC_BYTES;
    if (b >= n) return n;
    const char *nl = memchr(s + b, '\n', n - b < DOC_BYTES ? n - b : DOC_BYTES);
    if (nl) return (size_t)(nl - s) + 1;
    while (b < n && ((unsigned char)s[b] & 0xC0) == 0x80) b++;
    return b;
}

static void bench_encode(const hn_vocab *v, const char *s, size_t n, hn_ids *ids)
{
    for (int r = -1; r < n_rounds; r++) {
        uint64_t t = hn_clock_ns();
        encode(v, s, n, ids);
        if (r >= 0) times[r] = (double)n * 1e-6 / seconds_since(t);
    }
    report("tok.encode", "MB/s");
    hn_ids doc = { 0 };
    for (int r = -1; r < n_rounds; r++) {
        uint64_t t = hn_clock_ns();
        for (size_t a = 0, b; a < n; a = b) {
            b = doc_end(s, n, a);
            doc = (hn_ids){ 0 }; /* a fresh list, as hone_tokenize has */
            encode(v, s + a, b - a, &doc);
            free(doc.data);
        }
        if (r >= 0) times[r] = (double)n * 1e-6 / seconds_since(t);
    }
    report("tok.encode.docs", "MB/s");
}

static void bench_short(const hn_vocab *v)
{
    static const char prompt[] = "Write a short poem about the sea, please. It's for my friend's 40th birthday!";
    enum { CALLS = 2000 };
    hn_ids ids = { 0 };
    for (int r = -1; r < n_rounds; r++) {
        uint64_t t = hn_clock_ns();
        for (int i = 0; i < CALLS; i++) {
            ids = (hn_ids){ 0 };
            encode(v, prompt, sizeof prompt - 1, &ids);
            free(ids.data);
        }
        if (r >= 0) times[r] = seconds_since(t) * 1e6 / CALLS;
    }
    report("tok.encode.short", "us");
}

static void bench_decode(const hn_vocab *v, const hn_ids *ids)
{
    hone_error e;
    char *text;
    size_t len;
    for (int r = -1; r < n_rounds; r++) {
        uint64_t t = hn_clock_ns();
        if (hn_vocab_decode(v, ids->data, ids->n, true, &text, &len, &e) != HONE_OK) die("decode", &e);
        if (r >= 0) times[r] = seconds_since(t) * 1e9 / (double)ids->n;
        free(text);
    }
    report("tok.decode", "ns/token");
    for (int r = -1; r < n_rounds; r++) {
        static const char *const stops[] = { "\n\nUser:" };
        hn_stream *st;
        const char *out;
        bool stopped;
        uint64_t t = hn_clock_ns();
        if (hn_stream_new(&st, v, stops, 1, &e) != HONE_OK) die("stream", &e);
        for (size_t i = 0; i < ids->n; i++)
            if (hn_stream_push(st, ids->data[i], &out, &len, &stopped, &e) != HONE_OK) die("stream", &e);
        if (r >= 0) times[r] = seconds_since(t) * 1e9 / (double)ids->n;
        hn_stream_free(st);
    }
    report("tok.decode.stream", "ns/token");
}

static void bench_hostile(const hn_vocab *v, hn_ids *ids)
{
    static const struct { const char *name, *unit; } kinds[] = {
        { "letter", "a" }, { "space", " " }, { "cjk", "\xE4\xB8\xAD" }, { "mark", "\xCC\x81" }, { "digit", "7" },
        { "emoji", "\xF0\x9F\x98\x80" }, { "newline", "\n" }, { "space-newline", " \n" }, { "bad-ff", "\xFF" }, { "bad-cut", "\xE4\xB8" },
        { "apostrophe", "'" }, { "quote-s", "'s" }, { "punct", "!" }, { "upper", "A" }, { "camel", "aB" }, { "lt", "<" },
        { "special", "<|" }, { "special2", "<|endoftext|>" }, { "upper-mark", "A\xCC\x81" }, { "tab", "\t" }, { "nul", NULL },
    };
    char *buf = malloc(HOSTILE_BYTES + 16), name[64];
    if (!buf) die("hostile", NULL);
    int rounds = n_rounds;
    n_rounds = 1;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const char *u = kinds[k].unit ? kinds[k].unit : "\0";
        size_t nu = kinds[k].unit ? strlen(u) : 1, n = 0;
        while (n < HOSTILE_BYTES) memcpy(buf + n, u, nu), n += nu;
        uint64_t t = hn_clock_ns();
        encode(v, buf, n, ids);
        times[0] = seconds_since(t);
        snprintf(name, sizeof name, "tok.hostile.%s", kinds[k].name);
        report(name, "s");
    }
    n_rounds = rounds;
    free(buf);
}

int main(int argc, char **argv)
{
    hone_error e;
    if (argc < 3) return fprintf(stderr, "usage: bench_tok VOCAB.gguf TEXT [ROUNDS]\n"), 2;
    if (argc > 3) n_rounds = atoi(argv[3]);
    if (n_rounds < 1 || n_rounds > MAX_ROUNDS) return fprintf(stderr, "bench_tok: ROUNDS: expected 1 to %d\n", MAX_ROUNDS), 2;
    FILE *f = fopen(argv[2], "rb");
    if (!f || fseek(f, 0, SEEK_END)) return perror(argv[2]), 1;
    long size = ftell(f);
    char *text = size > 0 ? malloc((size_t)size) : NULL;
    rewind(f);
    if (!text || fread(text, 1, (size_t)size, f) != (size_t)size) return fprintf(stderr, "bench_tok: %s: cannot be read, or is empty\n", argv[2]), 1;
    fclose(f);
    hn_gguf *g;
    hn_vocab *v;
    if (hn_gguf_open(&g, argv[1], &e) != HONE_OK) die(argv[1], &e);
    uint64_t t = hn_clock_ns();
    if (hn_vocab_new(&v, g, NULL, &e) != HONE_OK) die(argv[1], &e);
    times[0] = seconds_since(t) * 1e3;
    if (!v) die(argv[1], NULL);
    hn_gguf_close(g);
    int rounds = n_rounds;
    n_rounds = 1;
    report("tok.load", "ms");
    n_rounds = rounds;
    hn_ids ids = { 0 };
    bench_encode(v, text, (size_t)size, &ids);
    bench_short(v);
    bench_decode(v, &ids);
    bench_hostile(v, &ids);
    free(ids.data);
    free(text);
    hn_vocab_free(v);
    return 0;
}
