/* Tokenizer vectors of ../shared/data/tokenizers: token ids computed by other
 * implementations, expected emissions of streaming, properties of every vocabulary. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "growth.h"
#include "text/text.h"
#include "slowed.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define DATA "../shared/data/tokenizers/"

static const char *const names[] = {
    "llama-spm", "phi-3", "gpt-2", "starcoder", "deepseek-coder", "qwen2", "rwkv-world"
};
enum { N_NAMES = sizeof names / sizeof *names };

static char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *len = (size_t)ftell(f);
    rewind(f);
    char *s = malloc(*len + 1);
    assert_non_null(s);
    assert_int_equal(fread(s, 1, *len, f), *len);
    s[*len] = 0;
    fclose(f);
    return s;
}

typedef struct loaded {
    hn_gguf *g;
    hn_vocab *v;
} loaded;

static loaded load(const char *name)
{
    loaded l;
    hone_error e = { 0 };
    char path[256];
    snprintf(path, sizeof path, DATA "ggml-vocab-%s.gguf", name);
    if (hn_gguf_open(&l.g, path, &e) != HONE_OK) fail_msg("%s", e.message);
    if (hn_vocab_new(&l.v, l.g, NULL, &e) != HONE_OK) fail_msg("%s", e.message);
    assert_non_null(l.v);
    hn_gguf_close(l.g); /* a vocabulary must not lean on the file */
    return l;
}

static void check_ids(const char *what, size_t at, const char *text, size_t len, const hn_ids *got, const int32_t *want,
                      size_t n_want)
{
    bool same = got->n == n_want && (n_want == 0 || memcmp(got->data, want, n_want * sizeof *want) == 0);
    if (same) return;
    fprintf(stderr, "%s case %zu \"%s\"\n got:", what, at, HN_ESC(text, len));
    for (size_t i = 0; i < got->n; i++) fprintf(stderr, " %d", got->data[i]);
    fprintf(stderr, "\nwant:");
    for (size_t i = 0; i < n_want; i++) fprintf(stderr, " %d", want[i]);
    fprintf(stderr, "\n");
    fail_msg("%s case %zu: wrong ids", what, at);
}

/* decode(encode(text)) = text, from pieces and as a whole. */
static void check_round_trip(const hn_vocab *v, const char *name, const char *text, size_t len, const hn_ids *ids)
{
    if (memmem(text, len, "\xE2\x96\x81", 3)) return;
    hone_error e = { 0 };
    char *back;
    size_t n;
    assert_int_equal(hn_vocab_decode(v, ids->data, ids->n, true, &back, &n, &e), HONE_OK);
    if (n != len || memcmp(back, text, len) != 0)
        fail_msg("%s: \"%s\" came back as \"%s\"", name, HN_ESC(text, len), HN_ESC(back, n));
    free(back);
}

static void inp_out(void **state)
{
    static const char sep[] = "\n__ggml_vocab_test__\n";
    for (int k = 0; k < N_NAMES; k++) {
        loaded l = load(names[k]);
        char path[256];
        size_t n_inp, n_out, n_case = 0;
        snprintf(path, sizeof path, DATA "ggml-vocab-%s.gguf.inp", names[k]);
        char *inp = read_file(path, &n_inp);
        snprintf(path, sizeof path, DATA "ggml-vocab-%s.gguf.out", names[k]);
        char *out = read_file(path, &n_out);
        assert_non_null(inp);
        assert_non_null(out);
        char *line = out;
        hone_error e = { 0 };
        for (char *p = inp, *q; (q = memmem(p, (size_t)(inp + n_inp - p), sep, 21)); p = q + 21) {
            hn_ids ids = { 0 };
            int32_t want[512];
            size_t n = 0;
            char *eol = strchr(line, '\n');
            assert_non_null(eol);
            for (*eol = 0; *line; n++) want[n] = (int32_t)strtol(line, &line, 10);
            line = eol + 1;
            assert_int_equal(hn_vocab_encode(l.v, p, (size_t)(q - p), 0, &ids, &e), HONE_OK);
            check_ids(names[k], n_case++, p, (size_t)(q - p), &ids, want, n);
            check_round_trip(l.v, names[k], p, (size_t)(q - p), &ids);
            free(ids.data);
        }
        assert_int_equal(n_case, 46);
        free(inp);
        free(out);
        hn_vocab_free(l.v);
    }
}

static void ext_jsonl(void **state)
{
    for (int k = 0; k < N_NAMES; k++) {
        loaded l = load(names[k]);
        char path[256];
        size_t len, n_case = 0, n_special = 0;
        snprintf(path, sizeof path, DATA "ggml-vocab-%s.ext.jsonl", names[k]);
        char *text = read_file(path, &len);
        assert_non_null(text);
        hone_error e = { 0 };
        for (char *p = text, *q; p < text + len; p = q + 1) {
            if (!(q = memchr(p, '\n', (size_t)(text + len - p)))) q = text + len;
            if (q == p) continue;
            json_error_t je;
            json_t *o = json_loadb(p, (size_t)(q - p), JSON_ALLOW_NUL, &je);
            if (!o) fail_msg("%s: %s", path, je.text);
            json_t *t = json_object_get(o, "text"), *w = json_object_get(o, "ids");
            bool special = json_is_true(json_object_get(o, "parse_special"));
            size_t n = json_array_size(w);
            int32_t *want = malloc((n + 1) * sizeof *want);
            for (size_t i = 0; i < n; i++) want[i] = (int32_t)json_integer_value(json_array_get(w, i));
            hn_ids ids = { 0 };
            assert_int_equal(hn_vocab_encode(l.v, json_string_value(t), json_string_length(t),
                                             special ? HONE_TOK_SPECIAL : 0, &ids, &e),
                             HONE_OK);
            check_ids(names[k], n_case++, json_string_value(t), json_string_length(t), &ids, want, n);
            if (!special) check_round_trip(l.v, names[k], json_string_value(t), json_string_length(t), &ids);
            n_special += special;
            free(want);
            free(ids.data);
            json_decref(o);
        }
        if (n_case < 440 || n_special < 9)
            fail_msg("%s: only %zu cases, %zu with special tokens", path, n_case, n_special);
        free(text);
        hn_vocab_free(l.v);
    }
}

static void meta(void **state)
{
    json_error_t je;
    json_t *all = json_load_file(DATA "meta.json", 0, &je);
    if (!all) fail_msg("%s", je.text);
    for (int k = 0; k < N_NAMES; k++) {
        loaded l = load(names[k]);
        json_t *m = json_object_get(all, names[k]);
#define INT(key) json_integer_value(json_object_get(m, key))
        assert_int_equal(hn_vocab_size(l.v), INT("n_tokens"));
        assert_int_equal(hn_vocab_bos(l.v), INT("bos_id"));
        assert_int_equal(hn_vocab_eos(l.v), INT("eos_id"));
        assert_int_equal(hn_vocab_eot(l.v), INT("eot_id"));
        assert_int_equal(hn_vocab_add_bos(l.v), json_is_true(json_object_get(m, "add_bos")));
        assert_int_equal(hn_vocab_add_eos(l.v), json_is_true(json_object_get(m, "add_eos")));
        hn_ids ids = { 0 };
        hone_error e = { 0 };
        assert_int_equal(hn_vocab_encode(l.v, "Hello", 5, HONE_TOK_ADD, &ids, &e), HONE_OK);
        json_t *w = json_object_get(m, "encode_Hello_add_special"),
               *eog = json_object_get(m, "end_of_generation_ids_llama_cpp");
        assert_int_equal(ids.n, json_array_size(w));
        for (size_t i = 0; i < ids.n; i++) assert_int_equal(ids.data[i], json_integer_value(json_array_get(w, i)));
        ids.n = 0;
        assert_int_equal(hn_vocab_encode(l.v, "\n", 1, 0, &ids, &e), HONE_OK);
        assert_int_equal(ids.data[ids.n - 1], INT("newline_id"));
        free(ids.data);
        /* the same set, except Qwen2's "</s>", which is ordinary text there */
        size_t n_eog = 0, at;
        json_t *id;
        for (int32_t i = 0; i < hn_vocab_size(l.v); i++) n_eog += hn_vocab_is_eog(l.v, i);
        bool qwen = strcmp(names[k], "qwen2") == 0;
        json_array_foreach(eog, at, id) assert_int_equal(hn_vocab_is_eog(l.v, (int32_t)json_integer_value(id)),
                                                         !(qwen && json_integer_value(id) == 128247));
        assert_int_equal(n_eog, json_array_size(eog) - qwen);
        hn_vocab_free(l.v);
    }
    json_decref(all);
}

static void stream(void **state)
{
    static const char *const with[] = { "llama-spm", "gpt-2", "qwen2", "rwkv-world" };
    for (int k = 0; k < 4; k++) {
        loaded l = load(with[k]);
        char path[256];
        json_error_t je;
        snprintf(path, sizeof path, DATA "ggml-vocab-%s.stream.json", with[k]);
        json_t *all = json_load_file(path, JSON_ALLOW_NUL, &je), *c, *id;
        if (!all) fail_msg("%s: %s", path, je.text);
        size_t at, i;
        assert_true(json_array_size(all) >= 20);
        json_array_foreach(all, at, c)
        {
            hn_stream *s;
            hone_error e = { 0 };
            const char *text;
            size_t len;
            bool stopped;
            assert_int_equal(hn_stream_new(&s, l.v, NULL, 0, &e), HONE_OK);
            json_array_foreach(json_object_get(c, "ids"), i, id)
            {
                int32_t t = (int32_t)json_integer_value(id);
                const char *hex = json_string_value(json_array_get(json_object_get(c, "pieces_hex"), i));
                const char *piece = hn_vocab_piece(l.v, t, true, &len);
                assert_int_equal(2 * len, strlen(hex));
                for (size_t b = 0; b < len; b++) {
                    unsigned x;
                    assert_int_equal(sscanf(hex + 2 * b, "%2x", &x), 1);
                    assert_int_equal((unsigned char)piece[b], x);
                }
                json_t *want = json_array_get(json_object_get(c, "emit"), i);
                assert_int_equal(hn_stream_push(s, t, &text, &len, &stopped, &e), HONE_OK);
                assert_false(stopped);
                if (len != json_string_length(want) || memcmp(text, json_string_value(want), len) != 0)
                    fail_msg("%s case %zu token %zu: emitted \"%s\", expected \"%s\"", with[k], at, i,
                             HN_ESC(text, len), json_string_value(want));
            }
            json_t *want = json_object_get(c, "flush");
            assert_int_equal(hn_stream_flush(s, &text, &len, &e), HONE_OK);
            assert_int_equal(len, json_string_length(want));
            assert_memory_equal(text, json_string_value(want), len);
            hn_stream_free(s);
        }
        json_decref(all);
        hn_vocab_free(l.v);
    }
}

typedef struct monotony {
    const hn_vocab *v;
    const char *text;
    hn_ids ids;
    hone_status st;
} monotony;

static void encode_start(void *arg, size_t n)
{
    monotony *c = arg;
    free(c->ids.data);
    c->ids = (hn_ids){ 0 };
    c->st = hn_vocab_encode(c->v, c->text, n, HONE_TOK_SPECIAL, &c->ids, NULL);
}

/* Much of one thing: near linear, whatever it is, and it comes back. */
static void monotonous(void **state)
{
    static const char *const unit[] = { "a", "A",         " ",  "\n", "\xE4\xB8\xAD", "\xCC\x81", "7",
                                        "'", "a\xCC\x81", " a", "<",  "\xFF",         "=",        "\xF0\x9F\x98\x80" };
    enum { SIZE = SLOWED ? 1 << 16 : 1 << 18 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (int k = 0; k < N_NAMES; k++) {
        loaded l = load(names[k]);
        for (size_t u = 0; u < sizeof unit / sizeof *unit; u++) {
            size_t w = strlen(unit[u]), n = SIZE / w * w;
            for (size_t i = 0; i < n; i++) text[i] = unit[u][i % w];
            monotony c = { .v = l.v, .text = text };
            char what[64];
            snprintf(what, sizeof what, "%s, \"%s\"", names[k], HN_ESC(unit[u], w));
            assert_true(grows_as_input(what, encode_start, &c, n / w / 64 * w, n));
            assert_int_equal(c.st, HONE_OK);
            if (*unit[u] != '\xFF') check_round_trip(l.v, names[k], text, n, &c.ids);
            free(c.ids.data);
        }
        hn_vocab_free(l.v);
    }
    free(text);
}

/* Random valid UTF-8 comes back, byte for byte. */
static void round_trip(void **state)
{
    for (int k = 0; k < N_NAMES; k++) {
        loaded l = load(names[k]);
        for (uint64_t c = 0, at = 0; c < 2000; c++) {
            char text[600];
            size_t n = 0, max = hn_rand64(1, at++) % 120;
            for (size_t i = 0; i < max; i++) {
                uint64_t r = hn_rand64(1, at++);
                uint32_t cp = (uint32_t)(r >> 16);
                switch (r % 6) {
                case 0: cp %= 0x110000; break;
                case 1: cp %= 0x800; break;
                case 2: cp = 0x20; break;
                case 3: cp = "\r\n\t '0"[cp % 6]; break;
                default: cp = 0x20 + cp % 95; break;
                }
                if (cp - 0xD800 < 0x800 || cp == 0x2581) continue;
                if (cp < 0x80) text[n++] = (char)cp;
                else if (cp < 0x800) text[n++] = (char)(0xC0 | cp >> 6), text[n++] = (char)(0x80 | (cp & 63));
                else if (cp < 0x10000)
                    text[n++] = (char)(0xE0 | cp >> 12), text[n++] = (char)(0x80 | (cp >> 6 & 63)),
                    text[n++] = (char)(0x80 | (cp & 63));
                else
                    text[n++] = (char)(0xF0 | cp >> 18), text[n++] = (char)(0x80 | (cp >> 12 & 63)),
                    text[n++] = (char)(0x80 | (cp >> 6 & 63)), text[n++] = (char)(0x80 | (cp & 63));
            }
            hn_ids ids = { 0 };
            hone_error e = { 0 };
            assert_int_equal(hn_vocab_encode(l.v, text, n, 0, &ids, &e), HONE_OK);
            /* starcoder lacks tokens for 14 byte values */
            if (strcmp(names[k], "starcoder") != 0) check_round_trip(l.v, names[k], text, n, &ids);
            free(ids.data);
        }
        hn_vocab_free(l.v);
    }
}

/* So do arbitrary bytes, where bytes are tokens and nothing is repaired on the way in. */
static void round_trip_bytes(void **state)
{
    static const char *const with[] = { "llama-spm", "phi-3", "rwkv-world" };
    for (int k = 0; k < 3; k++) {
        loaded l = load(with[k]);
        for (uint64_t c = 0, at = 0; c < 2000; c++) {
            char text[200];
            size_t n = hn_rand64(2, at++) % sizeof text;
            for (size_t i = 0; i < n; i++) {
                uint64_t r = hn_rand64(2, at++);
                text[i] = (char)(r % 4 ? r >> 8 : (uint64_t) " \xE2\x96\xF0\xC3\n<>"[(r >> 8) % 8]);
            }
            hn_ids ids = { 0 };
            hone_error e = { 0 };
            assert_int_equal(hn_vocab_encode(l.v, text, n, 0, &ids, &e), HONE_OK);
            check_round_trip(l.v, with[k], text, n, &ids);
            free(ids.data);
        }
        hn_vocab_free(l.v);
    }
}

/* A vocabulary is shared between threads: all get what one gets. */
typedef struct reader {
    const hn_vocab *v;
    const char *text;
    size_t len;
    hn_ids ids;
} reader;
static void *read_along(void *arg)
{
    reader *r = arg;
    for (int i = 0; i < 20; i++) {
        r->ids.n = 0;
        if (hn_vocab_encode(r->v, r->text, r->len, HONE_TOK_SPECIAL, &r->ids, NULL) != HONE_OK) return NULL;
    }
    return arg;
}
static void threads(void **state)
{
    size_t len;
    char *text = read_file(DATA "ggml-vocab-qwen2.ext.jsonl", &len);
    assert_non_null(text);
    if (len > 20000) len = 20000;
    for (int k = 0; k < N_NAMES; k++) {
        loaded l = load(names[k]);
        reader r[4];
        pthread_t t[4];
        for (int i = 0; i < 4; i++) {
            r[i] = (reader){ .v = l.v, .text = text, .len = len };
            assert_int_equal(pthread_create(&t[i], NULL, read_along, &r[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            void *done;
            assert_int_equal(pthread_join(t[i], &done), 0);
            assert_non_null(done);
            assert_int_equal(r[i].ids.n, r[0].ids.n);
            assert_memory_equal(r[i].ids.data, r[0].ids.data, 4 * r[0].ids.n);
        }
        for (int i = 0; i < 4; i++) free(r[i].ids.data);
        hn_vocab_free(l.v);
    }
    free(text);
}

int main(void)
{
    FILE *f = fopen(DATA "meta.json", "rb");
    if (!f) {
        printf("SKIP: %s is not there\n", DATA);
        return 77;
    }
    fclose(f);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inp_out),          cmocka_unit_test(ext_jsonl),  cmocka_unit_test(meta),
        cmocka_unit_test(stream),           cmocka_unit_test(monotonous), cmocka_unit_test(round_trip),
        cmocka_unit_test(round_trip_bytes), cmocka_unit_test(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
