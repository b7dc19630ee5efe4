/* Vocabularies from text: the merges of Hugging Face's trainer on a committed text, those of a
 * plain loop that counts anew for each step, and that hone encodes with what it has written. */
#include "data_files.h"
#include "train/begin.h"
#include "slowed.h"

typedef struct golden_case {
    unsigned char text[512];
    size_t len;
    int32_t id[256];
    size_t n;
} golden_case;
static char merge[1024][64];
static golden_case cases[64];
static int n_merge, n_case, n_token;

static int read_golden(void **state)
{
    FILE *f = fopen("tests/golden/bpe_merges.txt", "r");
    char line[4096];
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "tokens ", 7) == 0) n_token = atoi(line + 7);
        else if (strncmp(line, "merge ", 6) == 0) snprintf(merge[n_merge++], 64, "%.63s", line + 6);
        else if (strncmp(line, "case ", 5) == 0) {
            golden_case *c = &cases[n_case++];
            char *p = line + 5, *e;
            for (unsigned b; sscanf(p, "%2x", &b) == 1 && *p != ' '; p += 2) c->text[c->len++] = (unsigned char)b;
            for (; c->id[c->n] = (int32_t)strtol(p, &e, 10), e != p; p = e) c->n++;
        }
    }
    fclose(f);
    assert_true(n_merge > 200 && n_case > 40);
    return df_begin(state);
}

static const char *const special[] = { "<|bos|>", "<|endoftext|>" };

static hn_bpe *train(const char *path, int32_t n_vocab)
{
    hn_bpe *b;
    hone_error e = { 0 };
    if (hn_bpe_train(&b,
                     &(hn_bpe_params){ .path = &path,
                                       .n_path = 1,
                                       .rules = { .n_vocab = n_vocab, .special = special, .n_special = 2 } },
                     &e) != HONE_OK)
        fail_msg("%s", e.message);
    return b;
}

static void same_merges(const hn_bpe *b)
{
    assert_int_equal(b->n_pair, n_merge);
    for (int i = 0; i < n_merge; i++) {
        char s[64];
        hone_str l = b->token[b->pair[i].left], r = b->token[b->pair[i].right];
        snprintf(s, sizeof s, "%.*s %.*s", (int)l.len, l.ptr, (int)r.len, r.ptr);
        if (strcmp(s, merge[i]) != 0)
            fail_msg("merge %d: \"%s\" (%lld times), expected \"%s\"", i, s, (long long)b->pair[i].count, merge[i]);
    }
}

static void test_merges_of_others(void **state)
{
    hn_bpe *b = train("tests/golden/bpe_text.txt", n_token);
    assert_int_equal(b->n, n_token);
    same_merges(b);
    hn_bpe_free(b);
}

/* A vocabulary in a file, and a model that is only that. */
static hone_model *open_vocab(const hn_bpe *b, bool add_bos)
{
    hn_gguf_writer *w;
    hone_model *m = NULL;
    hone_error e = { 0 };
    const char *path = df_path("vocab.gguf");
    if (hn_gguf_writer_new(&w, &e) || hn_gguf_put_str(w, "general.architecture", "llama", 5, &e) ||
        hn_bpe_put(w, b, 0, 1, add_bos, &e) || hn_gguf_write_begin(w, path, &e) || hn_gguf_write_end(w, &e) ||
        hone_model_open(&m, path, &(hone_model_params){ .vocab_only = true }, &e))
        fail_msg("%s", e.message);
    hn_gguf_writer_free(w);
    return m;
}

static void test_encoding_of_others(void **state)
{
    hn_bpe *b = train("tests/golden/bpe_text.txt", n_token);
    hone_model *m = open_vocab(b, false);
    const hn_vocab *v;
    assert_int_equal(hn_model_vocab(m, &v, NULL), HONE_OK);
    assert_int_equal(hn_vocab_bos(v), 0);
    assert_int_equal(hn_vocab_eos(v), 1);
    for (int i = 0; i < n_case; i++) {
        hn_ids ids = { 0 };
        assert_int_equal(hn_vocab_encode(v, (char *)cases[i].text, cases[i].len, 0, &ids, NULL), HONE_OK);
        if (ids.n != cases[i].n || memcmp(ids.data, cases[i].id, 4 * ids.n) != 0)
            fail_msg("case %d: \"%.*s\"", i, (int)cases[i].len, cases[i].text);
        free(ids.data);
    }
    hone_model_close(m);
    hn_bpe_free(b);
}

/* ---- a plain loop ------------------------------------------------------------------------------ */

enum { MAX = 4096 };
typedef struct plain {
    int32_t word[MAX][24];
    int n[MAX], n_word, left[MAX], right[MAX], count[MAX], id[MAX], n_pair, n_token;
    char text[MAX][32];
} plain;

static int count_of(const plain *p, int a, int b)
{
    int c = 0;
    for (int w = 0; w < p->n_word; w++)
        for (int i = 1; i < p->n[w]; i++) c += p->word[w][i - 1] == a && p->word[w][i] == b;
    return c;
}

static void plain_train(plain *p, int n_vocab)
{
    while (p->n_token < n_vocab) {
        int best = 1, a = -1, b = -1;
        for (int w = 0; w < p->n_word; w++)
            for (int i = 1; i < p->n[w]; i++) {
                int x = p->word[w][i - 1], y = p->word[w][i], c = count_of(p, x, y);
                if (c > best || (c == best && c > 1 && (x < a || (x == a && y < b)))) best = c, a = x, b = y;
            }
        if (a < 0) return;
        int id = p->n_token;
        char t[64];
        snprintf(t, sizeof t, "%s%s", p->text[a], p->text[b]);
        for (int k = 0; k < p->n_token; k++)
            if (strcmp(p->text[k], t) == 0) id = k;
        if (id == p->n_token) snprintf(p->text[p->n_token++], 32, "%.31s", t);
        p->left[p->n_pair] = a, p->right[p->n_pair] = b, p->id[p->n_pair] = id, p->count[p->n_pair++] = best;
        for (int w = 0; w < p->n_word; w++) {
            int out = 0;
            for (int i = 0; i < p->n[w]; i++) {
                bool hit = i + 1 < p->n[w] && p->word[w][i] == a && p->word[w][i + 1] == b;
                p->word[w][out++] = hit ? id : p->word[w][i];
                i += hit;
            }
            p->n[w] = out;
        }
    }
}

/* Random words of few letters: many ties, and runs of one letter. */
static void test_plain_loop(void **state)
{
    plain *p = malloc(sizeof *p);
    uint64_t r = 1;
    for (int round = 0; round < (SLOWED ? 6 : 12); round++) {
        char text[8192];
        size_t n = 0;
        memset(p, 0, sizeof *p);
        p->n_token = 258;
        for (int i = 0; i < 94; i++)
            snprintf(p->text[2 + i], 32, "%c", '!' + i); /* bytes that stand for themselves come first */
        for (int i = 96; i < 258; i++) snprintf(p->text[i], 32, "?%d", i);
        for (int w = 0; w < 200; w++) {
            int len = 1 + (int)(hn_rand64(9, r++) % 14), letters = 2 + round % 3;
            if (w) text[n++] = '\n'; /* a word of its own: an end of line, which is never merged as all are single */
            for (int i = 0; i < len; i++) {
                char c = (char)('a' + hn_rand64(9, r++) % (uint64_t)letters);
                text[n++] = c;
                p->word[w][i] = 2 + c - '!';
            }
            p->n[w] = len;
        }
        p->n_word = 200;
        hn_bpe *b = train(df_write("plain.txt", text, n), 258 + 160);
        plain_train(p, 258 + 160);
        assert_int_equal(b->n_pair, p->n_pair);
        for (int i = 0; i < p->n_pair; i++) {
            const hn_bpe_pair *x = &b->pair[i];
            if (x->left != p->left[i] || x->right != p->right[i] || x->id != p->id[i] || x->count != p->count[i])
                fail_msg("round %d, step %d: %d %d -> %d, %lld times; expected %d %d -> %d, %d times", round, i,
                         x->left, x->right, x->id, (long long)x->count, p->left[i], p->right[i], p->id[i], p->count[i]);
        }
        hn_bpe_free(b);
    }
    free(p);
}

/* ---- what it reads, and what it refuses ------------------------------------------------------------ */

static void test_inputs(void **state)
{
    hn_bpe *a = train(DF_FILE("a.txt", "\xEF\xBB\xBFone two\r\none two<|endoftext|>one two"), 300);
    /* what samples would be made of: of a conversation its messages, not what else stands there */
    hn_bpe *b = train(DF_FILE("b.jsonl", "{\"messages\": [{\"role\": \"one two\", \"content\": \"one "
                                         "two\\n\"}, {\"content\": [{\"type\": \"text\", \"text\": \"one two\"}]}], "
                                         "\"text\": \"zzzz zzzz\", \"output\": \"yyyy yyyy\"}\n"
                                         "{\"messages\": null, \"text\": \"zzzz\"}\n"
                                         "{\"messages\": \"[{\\\"content\\\": \\\"one two\\\"}]\", \"x\": \"zzzz\"}\n"),
                      300);
    assert_int_equal(a->n_pair, b->n_pair);
    assert_true(a->n_pair > 4);
    for (int i = 0; i < a->n_pair; i++) assert_memory_equal(&a->pair[i], &b->pair[i], sizeof *a->pair);
    assert_true(a->n < 300); /* nothing more to join */
    assert_int_equal(a->pair[0].count, 3);
    hn_bpe_free(a);
    hn_bpe_free(b);
    /* a word of a million letters takes no longer than a million words */
    enum { N = 1 << 20 };
    char *s = malloc(N);
    for (int i = 0; i < N; i++) s[i] = (char)('a' + hn_rand64(3, (uint64_t)i) % 26);
    a = train(df_write("long.txt", s, N), 2000);
    assert_int_equal(a->n, 2000);
    hn_bpe_free(a);
    free(s);
}

static void refused(hn_bpe_params p, hone_status want, const char *says)
{
    hn_bpe *b = (hn_bpe *)1;
    hone_error e = { 0 };
    hone_status st = hn_bpe_train(&b, &p, &e);
    if (st != want || !strstr(e.message, says))
        fail_msg("%s \"%s\", expected \"%s\"", hone_status_name(st), e.message, says);
    assert_null(b);
}

static void test_refused(void **state)
{
    const char *ok = DF_FILE("ok.txt", "one two one two"), *bad = DF_FILE("bad.txt", "fine\nnot \xFF fine"),
               *empty = DF_FILE("e.jsonl", "{\"text\": \"\"}\n");
    const char *none = df_path("none.txt"), *twice[] = { "<a>", "<a>" }, *byte[] = { "a" }, *void_[] = { "" },
               *ill[] = { "\xFF" };
    refused((hn_bpe_params){ .path = &ok, .n_path = 1, .rules = { .n_vocab = 255 } }, HONE_E_ARG,
            "a vocabulary of 255 tokens, expected 256");
    refused((hn_bpe_params){ .path = &bad, .n_path = 1, .rules = { .n_vocab = 300 } }, HONE_E_FORMAT,
            "bad.txt:2: not UTF-8: byte 0xff in column 5");
    refused((hn_bpe_params){ .path = &empty, .n_path = 1, .rules = { .n_vocab = 300 } }, HONE_E_FORMAT,
            "no text for a tokenizer");
    refused((hn_bpe_params){ .path = &none, .n_path = 1, .rules = { .n_vocab = 300 } }, HONE_E_IO,
            "none.txt: cannot open");
    refused((hn_bpe_params){ .path = &ok, .n_path = 1, .rules = { .n_vocab = 300, .pre = "no such" } }, HONE_E_ARG,
            "pre-tokenizer \"no such\"");
    refused((hn_bpe_params){ .path = &ok, .n_path = 1, .rules = { .n_vocab = 300, .special = twice, .n_special = 2 } },
            HONE_E_ARG, "special token \"<a>\"");
    refused((hn_bpe_params){ .path = &ok, .n_path = 1, .rules = { .n_vocab = 300, .special = byte, .n_special = 1 } },
            HONE_E_ARG, "special token \"a\"");
    refused((hn_bpe_params){ .path = &ok, .n_path = 1, .rules = { .n_vocab = 300, .special = void_, .n_special = 1 } },
            HONE_E_ARG, "is empty");
    refused((hn_bpe_params){ .path = &ok, .n_path = 1, .rules = { .n_vocab = 300, .special = ill, .n_special = 1 } },
            HONE_E_ARG, "special token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges_of_others), cmocka_unit_test(test_encoding_of_others),
        cmocka_unit_test(test_plain_loop),       cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, read_golden, df_end);
}
