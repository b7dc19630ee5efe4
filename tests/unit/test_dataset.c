/* What hone train reads: every form of data into the ids and targets that a plain vocabulary
 * of bytes makes obvious; bad lines by number; statistics; two sets. */
#include "data_seen.h"
#include "growth.h"
#include "slowed.h"

static const char chatml[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

static hone_model *plain, *with_bos, *chat;

static int begin(void **state)
{
    if (df_begin(state) != 0) return -1;
    plain = df_model("plain.gguf", NULL, false);
    with_bos = df_model("bos.gguf", NULL, true);
    chat = df_model("chat.gguf", chatml, false);
    return 0;
}

static int end(void **state)
{
    hone_model_close(plain);
    hone_model_close(with_bos);
    hone_model_close(chat);
    return df_end(state);
}

/* ---- texts ------------------------------------------------------------------------------------ */

static void test_txt(void **state)
{
    hn_dataset *d = READ(with_bos, DF_FILE("a.txt", "\xEF\xBB\xBFone\r\ntwo\n\xC3\xA4 <s>\r"));
    IS(d, "<s>[one\ntwo\n\xC3\xA4 <s>\r</s>]"); /* a token's name in a text is text */
    assert_int_equal(d->sample[0].n, 1 + 8 + 2 + 1 + 3 + 1 + 1);
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("b.txt", "0123456789"), .seq = 4); /* eleven tokens */
    IS(d, "0[123]", "3[456]", "6[789]", "9[</s>]");
    assert_int_equal(d->stats.n_tok, 14);
    assert_int_equal(d->stats.n_target, 10); /* every token but the first, once */
    assert_int_equal(d->stats.n_split, 1);
    assert_int_equal(d->stats.n_cut, 0);
    assert_int_equal(d->stats.min_len, 2);
    assert_int_equal(d->stats.median_len, 4);
    assert_int_equal(d->stats.max_len, 4);
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("c.txt", "012345678"), .seq = 4); /* ten: no rest */
    IS(d, "0[123]", "3[456]", "6[78</s>]");
    hn_dataset_free(d);
    REFUSED(plain, DF_FILE("d.txt", ""), "d.txt:1: the file is empty");
    REFUSED(plain, DF_FILE("e.txt", "ok\nfine\nno \xFF\n"), "e.txt:3: not UTF-8: byte 0xff in column 4");
    d = READ(plain, DF_FILE("f.txt", "ok\nno \xFF\nfine"), .max_bad = 1);
    IS(d, "o[k\nfine</s>]");
    assert_int_equal(d->stats.n_bad, 1);
    assert_non_null(strstr(d->stats.first_bad, "f.txt:2: not UTF-8"));
    hn_dataset_free(d);
    d = READ(chat, DF_FILE("g.txt", "a<|im_end|>"), .special = true);
    IS(d, "a[<|im_end|></s>]");
    hn_dataset_free(d);
}

static bool is_blank_line(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && s[i] == ' ') i++;
    return i < n && s[i] == '\n';
}

/* Longer than one piece of the reader: nothing is lost or doubled at the seams. */
static void test_long_txt(void **state)
{
    size_t n = ((SLOWED ? 17 : 33) << 20) + 12345; /* two pieces of 16 MiB or three */
    char *s = malloc(n);
    uint64_t r = 7;
    for (size_t i = 0; i < n; i++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        s[i] = "dehilnorstu wxyz\n!"[(r >> 33) % 18];
    }
    hn_dataset *d = READ(plain, df_write("long.txt", s, n), .seq = 777, .split = HN_SPLIT_NONE);
    size_t at = 0;
    for (int64_t k = 0; k < d->n; k++)
        for (int32_t i = k > 0; i < d->sample[k].n; i++, at++) {
            int32_t want = at < n ? DF_BYTE + (unsigned char)s[at] : DF_EOS;
            if (d->sample[k].ids[i] != want) fail_msg("byte %zu: token %d, expected %d", at, d->sample[k].ids[i], want);
        }
    assert_int_equal(at, n + 1);
    assert_int_equal(d->stats.n_target, n);
    assert_int_equal(d->stats.n_split, 1);
    hn_dataset_free(d);
    d = READ(plain, df_path("long.txt"), .seq = 1 << 20); /* at blank lines: what is left of them is the text */
    int64_t k = 0;
    for (size_t a = 0, b; a < n; a = b) {
        while (a < n && (s[a] == '\n' || is_blank_line(s + a, n - a))) a++;
        for (b = a; b < n && !(s[b] == '\n' && is_blank_line(s + b + 1, n - b - 1)); b++) {}
        if (a == n) break;
        size_t len = b == n && s[n - 1] == '\n' ? b - a - 1 : b - a;
        assert_true(k < d->n);
        assert_int_equal(d->sample[k].n, len + 1);
        for (size_t i = 0; i < len; i++)
            if (d->sample[k].ids[i] != DF_BYTE + (unsigned char)s[a + i]) fail_msg("byte %zu differs", a + i);
        k++;
    }
    assert_int_equal(k, d->n);
    assert_int_equal(d->stats.n_line, k);
    hn_dataset_free(d);
    memset(s, 'e', n); /* no line end to cut at, and a bad byte far behind the first piece */
    s[n - 5] = '\n';
    s[n - 2] = '\xC3';
    REFUSED(plain, df_write("line.txt", s, n), "line.txt:2: not UTF-8: byte 0xc3 in column 3");
    free(s);
}

/* A file of many texts: each begins with BOS and ends with EOS. */
static void test_divided(void **state)
{
    const char *path = DF_FILE("tales.txt", "\n \nA b\nc.\n\n \t\r\n\nD.\n<|endoftext>\n\n\n");
    hn_dataset *d = READ(with_bos, path);
    IS(d, "<s>[A b\nc.</s>]", "<s>[D.\n<|endoftext></s>]");
    assert_int_equal(d->stats.n_line, 2);
    assert_int_equal(d->stats.n_file, 1);
    assert_int_equal(d->stats.n_mid, 0);
    hn_dataset_free(d);
    d = READ(with_bos, path, .split = HN_SPLIT_LINE);
    IS(d, "<s>[A b</s>]", "<s>[c.</s>]", "<s>[D.</s>]", "<s>[<|endoftext></s>]");
    hn_dataset_free(d);
    d = READ(with_bos, DF_FILE("none.txt", "a\n\nb\n"), .split = HN_SPLIT_NONE);
    IS(d, "<s>[a\n\nb\n</s>]");
    hn_dataset_free(d);
    /* the mark divides where it is, and is not text; blank lines are then */
    d = READ(with_bos, DF_FILE("mark.txt", "<|endoftext|>a\n\nb\n<|endoftext|>\n\n  c<|endoftext|>d"));
    IS(d, "<s>[a\n\nb</s>]", "<s>[  c</s>]", "<s>[d</s>]");
    hn_dataset_free(d);
    d = READ(with_bos, df_path("mark.txt"), .split = HN_SPLIT_BLANK);
    assert_int_equal(d->n, 3);
    hn_dataset_free(d);
    path = DF_FILE("notes.md", "Intro\n\n# One\n## Sub\n\nText.\n\n```\n# no heading\n```\n#hash\n# Two\nEnd\n");
    d = READ(with_bos, path);
    IS(d, "<s>[Intro</s>]", "<s>[# One\n## Sub\n\nText.\n\n```\n# no heading\n```\n#hash</s>]", "<s>[# Two\nEnd</s>]");
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("e.txt", "one\n\ntwo\n\nno \xFF\n\nthree"), .max_bad = 1); /* a bad line, and its number */
    IS(d, "o[ne</s>]", "t[wo</s>]", "t[hree</s>]");
    assert_non_null(strstr(d->stats.first_bad, "e.txt:5: "));
    hn_dataset_free(d);
    REFUSED(plain, DF_FILE("blank.txt", "\n \n"), "blank.txt:3: the file is empty");
}

/* What is longer than a sample goes on in the next, which begins as prompts do: with BOS. */
static void test_begins_with_bos(void **state)
{
    hn_dataset *d = READ(with_bos, DF_FILE("b.txt", "0123456789\n\nxy"), .seq = 4);
    IS(d, "<s>[012]", "<s>[345]", "<s>[678]", "<s>[9</s>]", "<s>[xy</s>]");
    assert_int_equal(d->stats.n_mid, 3);
    assert_int_equal(d->stats.n_split, 1);
    assert_int_equal(d->stats.n_target, 14); /* every token, once */
    hn_dataset_free(d);
    d = READ(with_bos, DF_FILE("b.jsonl", "{\"text\": \"01234\"}\n"), .seq = 4);
    IS(d, "<s>[012]", "<s>[34</s>]");
    hn_dataset_free(d);
}

static void test_json(void **state)
{
    hn_dataset *d = READ(
        with_bos, DF_FILE("a.json", "\xEF\xBB\xBF[\n {\"text\": \"one\",\n  \"n\": [1]},\n {\"text\": \"two\"}\n]\n"));
    IS(d, "<s>[one</s>]", "<s>[two</s>]");
    assert_int_equal(d->stats.n_line, 2);
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("alpaca.json", "[{\"instruction\": \"Add\", \"input\": \"1 2\", \"output\": \"3\"}]"),
             .mask = HN_MASK_PROMPT);
    IS(d, "### Instruction:\nAdd\n\n### Input:\n1 2\n\n### Response:\n[3</s>]");
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("one.json",
                            "{\"prompt\": \"a\",\n\"completion\": \"x\"}\n{\"prompt\": \"a\", \"completion\": \"y\"}"));
    IS(d, "a[x</s>]", "a[y</s>]");
    hn_dataset_free(d);
    REFUSED(plain, DF_FILE("b.json", "[{\"text\": \"a\"},\n\n {\"txt\": \"b\"}]"), "b.json:3: \"text\" is missing");
    d = READ(plain, df_path("b.json"), .max_bad = 1);
    IS(d, "a[</s>]");
    hn_dataset_free(d);
    REFUSED(plain, DF_FILE("c.json", "[{\"text\": \"a\"}\n {\"text\": \"b\"}]"),
            "c.json:2: not JSON: column 2: expected ',' or ']', seen {\"text\"", .max_bad = 9);
    REFUSED(plain, DF_FILE("d.json", "[{\"text\": \"a\"}"), "d.json:1: not JSON: column 15: expected", .max_bad = 9);
    REFUSED(plain, DF_FILE("e.json", "[{\"text\": \"a\"}] x"), "e.json:1: not JSON: column 17");
    REFUSED(plain, DF_FILE("f.json", "5"), "f.json:1: a number, expected an object");
    REFUSED(plain, DF_FILE("g.json", "[]"), "nothing to train on: 0 records");
}

static void test_table(void **state)
{
    hn_dataset *d = READ(plain, DF_FILE("a.csv", "id,prompt,completion\r\n1,a,\"x, \"\"c\"\"\nd\"\r\n\n2,,e\r\n"),
                         .mask = HN_MASK_PROMPT);
    IS(d, "a[x, \"c\"\nd</s>]", "e[</s>]");
    assert_int_equal(d->stats.n_line, 2);
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("b.csv", "text;n\n\"a;b\";1\nc,d;2"));
    IS(d, "a[;b</s>]", "c[,d</s>]");
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("c.tsv", "\xEF\xBB\xBFtext\nx,y;z\nw\n"));
    IS(d, "x[,y;z</s>]", "w[</s>]");
    hn_dataset_free(d);
    REFUSED(plain, DF_FILE("d.csv", "text,n\na,1\n\"b\nb\",2,3\n"), "d.csv:3: 3 cells, expected 2 as in the header");
    REFUSED(plain, DF_FILE("e.csv", "text,n\na,1\nb\n"), "e.csv:3: 1 cells, expected 2");
    REFUSED(plain, DF_FILE("f.csv", "text\n\"a"), "f.csv:2: a quote that nothing closes");
    REFUSED(plain, DF_FILE("g.csv", "text\n\"a\"b\nc"), "g.csv:2: text behind a closing quote");
    REFUSED(plain, DF_FILE("h.csv", "text\n\xFF\n"), "h.csv:2: not UTF-8");
    REFUSED(plain, DF_FILE("i.csv", "a,b\n1,2\n"), "i.csv:2: no record that hone trains on");
    REFUSED(plain, DF_FILE("j.csv", "text\n"), "nothing to train on: 0 records");
    d = READ(plain, DF_FILE("k.csv", "text,n\na,1\nb\nc,3\n"), .max_bad = 1);
    IS(d, "a[</s>]", "c[</s>]");
    hn_dataset_free(d);
}

/* Every file of a known kind, in the order of names, whatever lies beside them. */
static void test_folder(void **state)
{
    mkdir(df_path("in"), 0700);
    mkdir(df_path("in/b"), 0700);
    mkdir(df_path("none"), 0700);
    DF_FILE("in/c.txt", "third");
    DF_FILE("in/a.md", "first");
    DF_FILE("in/b/x.JSONL", "{\"text\": \"second\"}");
    DF_FILE("in/model.gguf", "GGUF");
    DF_FILE("in/.hidden.txt", "no");
    hn_dataset *d = READ(plain, df_path("in"));
    IS(d, "f[irst</s>]", "s[econd</s>]", "t[hird</s>]");
    assert_int_equal(d->stats.n_file, 3);
    hn_dataset_free(d);
    refused(plain, df_path("none"), (hn_data_params){ 0 }, HONE_E_ARG, "none: a folder without files to learn from");
    REFUSED(plain, (DF_FILE("in/d.json", "["), df_path("in")), "in/d.json:1: not JSON");
    unlink(df_path("in/d.json"));
}

static void test_text_records(void **state)
{
    hn_dataset *d = READ(with_bos, DF_FILE("a.jsonl", "\xEF\xBB\xBF{\"text\": \"one\", \"id\": 5}\r\n\n  "
                                                      "\t\r\n{\"text\": \"t\\u0000\\r\\nwo\"}\n{\"text\":\"end\"}"));
    assert_int_equal(d->n, 3);
    assert_int_equal(d->stats.n_line, 3);
    assert_string_equal(df_show(&d->sample[0]), "<s>[one</s>]");
    assert_int_equal(d->sample[1].n, 8); /* <s> t NUL CR LF w o </s> */
    assert_int_equal(d->sample[1].ids[2], DF_BYTE);
    assert_string_equal(df_show(&d->sample[2]), "<s>[end</s>]");
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("b.jsonl", "{\"text\": \"012345\"}\n{\"text\": \"x\"}\n"), .seq = 4);
    IS(d, "0[123]", "3[45</s>]", "x[</s>]");
    assert_int_equal(d->stats.n_split, 1);
    assert_int_equal(d->stats.median_len, 4);
    assert_int_equal(d->stats.min_len, 2);
    hn_dataset_free(d);
}

/* ---- what is wrong, and where -------------------------------------------------------------------- */

static void test_bad_lines(void **state)
{
    REFUSED(plain, DF_FILE("1.jsonl", "{\"text\": \"a\"}\n\n{\"text\": 5}\n"),
            "1.jsonl:3: \"text\" is a number, expected a string");
    REFUSED(plain, DF_FILE("2.jsonl", "{\"text\": \"a\"}\n{\"txt\": \"b\"}\n"), "2.jsonl:2: \"text\" is missing");
    REFUSED(plain, DF_FILE("3.jsonl", "{\"text\": \"\"}\n"), "3.jsonl:1: \"text\" is empty");
    REFUSED(plain, DF_FILE("4.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\n"), "4.jsonl:2: not JSON: column");
    REFUSED(plain, DF_FILE("5.jsonl", "{\"text\": \"a\xFF\"}\n"), "5.jsonl:1: not JSON: column");
    REFUSED(plain, DF_FILE("6.jsonl", "[1, 2]\n"), "6.jsonl:1: an array, expected an object");
    REFUSED(plain, DF_FILE("7.jsonl", "{\"words\": \"a\"}\n"), "7.jsonl:1: no record that hone trains on");
    REFUSED(plain, DF_FILE("8.jsonl", "{\"prompt\": \"a\", \"completion\": \"\"}\n"),
            "8.jsonl:1: \"completion\" is empty");
    REFUSED(plain, DF_FILE("9.jsonl", "{\"text\": \"a\"} {\"text\": \"b\"}\n"), "9.jsonl:1: not JSON");
    REFUSED(plain, DF_FILE("10.jsonl", "\n\n"), "nothing to train on: 0 records");
    REFUSED(plain, DF_FILE("11.jsonl", "x\n{\"text\": \"a\"}\ny\nz\n"),
            "11.jsonl:4: not JSON: column 1: ", .max_bad = 2);
    REFUSED(plain, DF_FILE("11.jsonl", "x\n{\"text\": \"a\"}\ny\nz\n"),
            "bad line 3 where 2 are allowed, the first: ", .max_bad = 2);
    hn_dataset *d = READ(plain, DF_FILE("12.jsonl", "x\n{\"text\": \"a\"}\ny\n{\"text\": \"b\"}\n"), .max_bad = 2);
    IS(d, "a[</s>]", "b[</s>]");
    assert_int_equal(d->stats.n_bad, 2);
    assert_int_equal(d->stats.n_line, 4);
    assert_non_null(strstr(d->stats.first_bad, "12.jsonl:1: not JSON"));
    hn_dataset_free(d);
    refused(plain, df_path("none.jsonl"), (hn_data_params){ 0 }, HONE_E_IO, "none.jsonl: cannot open");
    refused(plain, DF_FILE("x.pdf", "a"), (hn_data_params){ 0 }, HONE_E_ARG,
            "x.pdf: what it is cannot be told from its name; expected .txt, .md, .jsonl, .json, .csv or .tsv");
    refused(plain, DF_FILE("y.txt", "a"), (hn_data_params){ .seq = 1 }, HONE_E_ARG, "sequences of 1 tokens");
}

/* One bad line in a million. */
static void test_one_in_a_million(void **state)
{
    enum { N = SLOWED ? 100000 : 1000000, BAD = SLOWED ? 76543 : 765432 };
    const char *path = df_path("million.jsonl");
    FILE *f = fopen(path, "w");
    for (int i = 1; i <= N; i++) fprintf(f, i == BAD ? "{\"text\": \"%d}\n" : "{\"text\": \"%d\"}\n", i);
    fclose(f);
    REFUSED(plain, path, SLOWED ? "million.jsonl:76543: not JSON: column " : "million.jsonl:765432: not JSON: column ");
    hn_dataset *d = READ(plain, path, .max_bad = 1);
    assert_int_equal(d->n, N - 1);
    assert_int_equal(d->stats.n_bad, 1);
    assert_string_equal(df_show(&d->sample[N - 2]), SLOWED ? "1[00000</s>]" : "1[000000</s>]");
    assert_string_equal(df_show(&d->sample[BAD - 1]), SLOWED ? "7[6544</s>]" : "7[65433</s>]");
    assert_int_equal(d->stats.median_len, SLOWED ? 6 : 7);
    hn_dataset_free(d);
}

/* A line too long to be read is one bad line. */
static void test_long_line(void **state)
{
    size_t n = 66 << 20, at = 0;
    char *s = malloc(2 * n + 256);
    for (int i = 0; i < 2; i++) { /* the second of white space only */
        at += (size_t)sprintf(s + at, "{\"text\": \"a\"}\n");
        memset(s + at, i ? ' ' : 'x', n);
        at += n;
        s[at++] = '\n';
    }
    at += (size_t)sprintf(s + at, "{\"text\": \"b\"}");
    const char *path = df_write("longline.jsonl", s, at);
    free(s);
    REFUSED(plain, path, "longline.jsonl:2: a line of more than 67108864 bytes");
    REFUSED(plain, path, "longline.jsonl:4: a line of more than 67108864 bytes", .max_bad = 1);
    hn_dataset *d = READ(plain, path, .max_bad = 2);
    IS(d, "a[</s>]", "a[</s>]", "b[</s>]");
    assert_int_equal(d->stats.n_line, 5);
    hn_dataset_free(d);
}

/* ---- answers ---------------------------------------------------------------------------------------- */

static void test_completions(void **state)
{
    const char *path = DF_FILE(
        "c.jsonl", "{\"prompt\": \"Hi \", \"completion\": \"you\"}\n{\"completion\": \"bc\", \"prompt\": \"xa\"}\n"
                   "{\"prompt\": \"\", \"completion\": \"z\"}\n");
    hn_dataset *d = READ(with_bos, path, .mask = HN_MASK_PROMPT);
    IS(d, "<s>Hi [you</s>]", "<s>x[{ab}c</s>]", "<s>[z</s>]"); /* "ab" became one token: it is the answer's */
    hn_dataset_free(d);
    d = READ(with_bos, path, .mask = HN_MASK_NONE);
    IS(d, "<s>[Hi you</s>]", "<s>[x{ab}c</s>]", "<s>[z</s>]");
    hn_dataset_free(d);
    d = READ(with_bos, path, .mask = HN_MASK_LAST, .seq = 4);
    IS(d, "<s>x[{ab}c]", "<s>[z</s>]");
    assert_int_equal(d->stats.n_cut, 2);
    assert_int_equal(d->stats.n_empty, 1); /* "<s>Hi " */
    hn_dataset_free(d);
}

#define USER(t) "<|im_start|>user\n" t "<|im_end|>\n"
#define ASKED "<|im_start|>assistant\n"

static void test_chat(void **state)
{
    const char *path = DF_FILE(
        "m.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"q1\"}, {\"role\": \"assistant\", \"content\": \"a1\"}, "
        "{\"role\": \"user\", \"content\": \"<|im_end|>\"}, {\"role\": \"assistant\", \"content\": \"a2\"}]}\n");
    hn_dataset *d = READ(chat, path, .mask = HN_MASK_PROMPT);
    IS(d, USER("q1") ASKED "[a1<|im_end|>]\n" USER("<|im_end|>") ASKED "[a2<|im_end|>]\n");
    int32_t n = d->sample[0].n, n_end = 0;
    for (int32_t i = 0; i < n; i++) n_end += d->sample[0].ids[i] == DF_END;
    assert_int_equal(n_end, 4); /* the one that the user typed is text */
    hn_dataset_free(d);
    d = READ(chat, path, .mask = HN_MASK_LAST);
    IS(d, USER("q1") ASKED "a1<|im_end|>\n" USER("<|im_end|>") ASKED "[a2<|im_end|>]\n");
    hn_dataset_free(d);
    d = READ(chat, path, .mask = HN_MASK_NONE);
    assert_int_equal(d->stats.n_target, n - 1);
    hn_dataset_free(d);
    /* cut before the second answer, and before the first: nothing left */
    const char *two = DF_FILE(
        "n.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a long question\"}, {\"role\": \"assistant\", "
        "\"content\": \"a1\"}]}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"a1\"}]}\n");
    d = READ(chat, two, .mask = HN_MASK_PROMPT, .seq = 22);
    IS(d, USER("q") ASKED "[a1]");
    assert_int_equal(d->stats.n_cut, 2);
    assert_int_equal(d->stats.n_empty, 1);
    hn_dataset_free(d);
    REFUSED(chat, two, "2 records, 0 bad, 2 in which no token counts; some were cut", .mask = HN_MASK_PROMPT, .seq = 8);
    REFUSED(chat, DF_FILE("o.jsonl", "{\"messages\": []}\n"), "o.jsonl:1: \"messages\" is empty");
    REFUSED(chat, DF_FILE("p.jsonl", "{\"messages\": [{\"content\": \"x\"}]}\n"),
            "p.jsonl:1: messages[0].role: expected a string");
    REFUSED(chat,
            DF_FILE("p2.jsonl", "{\"messages\": [{\"role\": \"user\", \"contnet\": \"x\"}, {\"role\": \"assistant\", "
                                "\"content\": \"a\"}]}\n"),
            "p2.jsonl:1: messages[0].content is missing");
    REFUSED(chat,
            DF_FILE("p3.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", "
                                "\"content\": null}]}\n"),
            "p3.jsonl:1: messages[1].content is null");
    /* tools, of a template that has no place for them, stand in the system message, as when such a model is asked */
    d = READ(chat,
             DF_FILE("q.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", "
                                "\"content\": \"a\"}], \"tools\": [{\"type\": \"function\", \"function\": {\"name\": "
                                "\"look\", \"parameters\": {\"type\": \"object\"}}}]}\n"),
             .mask = HN_MASK_PROMPT);
    assert_int_equal(d->n, 1);
    const char *shown = df_show(&d->sample[0]);
    if (strncmp(shown, "<|im_start|>system\nYou can call functions.", 42) != 0 || !strstr(shown, "look") ||
        !strstr(shown, USER("x") ASKED "[a<|im_end|>]\n"))
        fail_msg("%s", shown);
    hn_dataset_free(d);
    REFUSED(chat, DF_FILE("r.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\n"),
            "1 in which no token counts", .mask = HN_MASK_PROMPT);
    path = df_path("m.jsonl");
    d = READ(plain, path, .mask = HN_MASK_LAST,
             .chat_template = "{% for m in messages %}{{ m.content }}{{ '|' }}{% endfor %}");
    IS(d, "q1|a1|<|im_end|>|[a2|</s>]");
    hn_dataset_free(d);
    refused(plain, path, (hn_data_params){ .chat_template = "none" }, HONE_E_ARG, "chat template 'none' is neither");
    refused(plain, path, (hn_data_params){ .max_bad = 9 }, HONE_E_UNSUPPORTED, "has no chat template");
}

/* Other words for the same conversation give the same samples. */
static void test_chat_forms(void **state)
{
    hn_dataset *d = READ(
        chat,
        DF_FILE(
            "s.jsonl",
            "{\"conversations\": [{\"from\": \"system\", \"value\": \"be\"}, {\"from\": \"human\", \"value\": \"q\"}, "
            "{\"from\": \"gpt\", \"value\": \"a\"}]}\n"),
        .mask = HN_MASK_PROMPT);
    IS(d, "<|im_start|>system\nbe<|im_end|>\n" USER("q") ASKED "[a<|im_end|>]\n");
    hn_dataset_free(d);
    REFUSED(chat, DF_FILE("t.jsonl", "{\"conversations\": [{\"from\": \"cat\", \"value\": \"be\"}]}\n"),
            "t.jsonl:1: conversations[0].from is 'cat'");
    REFUSED(chat,
            DF_FILE("t0.jsonl", "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": "
                                "\"gpt\\u0000x\", \"value\": \"a\"}]}\n"),
            "t0.jsonl:1: conversations[1].from is 'gpt\\x00x'"); /* a NUL does not end a word */
    REFUSED(chat, DF_FILE("u.jsonl", "{\"conversations\": [{\"from\": \"gpt\"}]}\n"),
            "u.jsonl:1: conversations[0]: expected an object with strings");
    const char *alpaca = DF_FILE("v.jsonl", "{\"instruction\": \"do\", \"input\": \"this\", \"output\": \"done\"}\n"
                                            "{\"instruction\": \"do\", \"input\": \"\", \"output\": "
                                            "\"done\"}\n{\"instruction\": \"do\", \"output\": \"done\"}\n");
    d = READ(chat, alpaca, .mask = HN_MASK_PROMPT);
    IS(d, USER("do\n\nthis") ASKED "[done<|im_end|>]\n", USER("do") ASKED "[done<|im_end|>]\n",
       USER("do") ASKED "[done<|im_end|>]\n");
    hn_dataset_free(d);
    d = READ(plain, alpaca, .mask = HN_MASK_PROMPT);
    IS(d, "### Instruction:\ndo\n\n### Input:\nthis\n\n### Response:\n[done</s>]",
       "### Instruction:\ndo\n\n### Response:\n[done</s>]", "### Instruction:\ndo\n\n### Response:\n[done</s>]");
    hn_dataset_free(d);
    REFUSED(chat, DF_FILE("w.jsonl", "{\"instruction\": \"do\", \"input\": 3, \"output\": \"done\"}\n"),
            "w.jsonl:1: \"input\" is a number");
}

/* Conversations of a table are text in its cells, as those of JSON are in arrays; text that begins so is text. */
static void test_chat_cells(void **state)
{
    hn_dataset *d =
        READ(chat,
             DF_FILE("x.csv", "prompt,completion\n\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"q\"\"}]\","
                              "\"[{\"\"role\"\": \"\"assistant\"\", \"\"content\"\": \"\"a\"\"}]\"\n"),
             .mask = HN_MASK_PROMPT);
    IS(d, USER("q") ASKED "[a<|im_end|>]\n");
    hn_dataset_free(d);
    REFUSED(chat,
            DF_FILE("x1.csv", "prompt,completion\n\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"q\"\"}]\",a\n"),
            "x1.csv:2: \"completion\" is a string, and there is no array in it");
    d = READ(plain, DF_FILE("x2.csv", "prompt;completion\n[1, 2];c\n[x;c\n[{},{}];c\n"), .mask = HN_MASK_PROMPT);
    IS(d, "[1, 2][c</s>]", "[x[c</s>]", "[{},{}][c</s>]");
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("x3.jsonl", "{\"prompt\": \"[{\\\"role\\\": \\\"user\\\"}]\", \"completion\": \"c\"}\n"),
             .mask = HN_MASK_PROMPT);
    IS(d, "[{\"role\": \"user\"}][c</s>]"); /* of JSON a string is text */
    hn_dataset_free(d);
}

/* Both files give the same samples, ids and targets. */
static void same_data(const hone_model *m, const char *a, const char *b, hn_mask mask)
{
    hn_dataset *x = READ(m, a, .mask = mask), *y = READ(m, b, .mask = mask);
    if (x->hash != y->hash || x->n != y->n)
        fail_msg("%s: %s", a, x->n && y->n ? df_show(&x->sample[0]) : "another number of samples");
    hn_dataset_free(x);
    hn_dataset_free(y);
}

#define TOOL "{\"name\": \"look\", \"parameters\": {\"type\": \"object\"}}"
#define TOOL_IN_STRING "{\\\"name\\\": \\\"look\\\", \\\"parameters\\\": {\\\"type\\\": \\\"object\\\"}}"
#define TOOLS "\"tools\": [{\"type\": \"function\", \"function\": " TOOL "}]"

/* What stands beside the messages: a system message, tools, what was said before. In the words of messages it is the
 * same. */
static void test_chat_beside(void **state)
{
    static const char said[] = "{\"messages\": [{\"role\": \"system\", \"content\": \"be\"}, {\"role\": \"user\", "
                               "\"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"a\"}], " TOOLS "}\n";
    DF_FILE("b0.jsonl", said);
    const char *share[] = {
        "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", \"value\": \"a\"}], "
        "\"system\": \"be\", \"tools\": \"[" TOOL_IN_STRING "]\"}\n",
        "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", \"value\": \"a\"}], "
        "\"system\": \"be\", \"tools\": [" TOOL "]}\n",
        "{\"conversations\": [{\"from\": \"system\", \"value\": \"be\"}, {\"from\": \"human\", \"value\": \"q\"}, "
        "{\"from\": \"gpt\", \"value\": \"a\"}], \"system\": \"be\", " TOOLS "}\n",
        "{\"instruction\": \"q\", \"output\": \"a\", \"system\": \"be\", " TOOLS "}\n",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"a\"}], "
        "\"system\": \"be\", " TOOLS "}\n",
    };
    for (size_t i = 0; i < sizeof share / sizeof *share; i++)
        same_data(chat, df_write("b1.jsonl", share[i], strlen(share[i])), df_path("b0.jsonl"), HN_MASK_PROMPT);
    DF_FILE("b2.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"q1\"}, {\"role\": \"assistant\", "
                        "\"content\": \"a1\"}, {\"role\": \"user\", \"content\": \"q2\\n\\nin\"}, {\"role\": "
                        "\"assistant\", \"content\": \"a2\"}]}\n");
    same_data(chat,
              DF_FILE("b3.jsonl", "{\"instruction\": \"q2\", \"input\": \"in\", \"output\": \"a2\", \"system\": \"\", "
                                  "\"history\": [[\"q1\", \"a1\"]], \"tools\": \"\"}\n"),
              df_path("b2.jsonl"), HN_MASK_PROMPT);
    same_data(chat, DF_FILE("b4.csv", "instruction,input,output,history\nq2,in,a2,\"[[\"\"q1\"\", \"\"a1\"\"]]\"\n"),
              df_path("b2.jsonl"), HN_MASK_LAST);
    hn_dataset *d = READ(plain, df_path("b3.jsonl"), .mask = HN_MASK_PROMPT);
    IS(d, "### Instruction:\nq1\n\n### Response:\na1\n\n### Instruction:\nq2\n\n### Input:\nin\n\n### "
          "Response:\n[a2</s>]");
    hn_dataset_free(d);
    /* calls, and what they gave */
    same_data(chat,
              DF_FILE("b5.jsonl", "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": "
                                  "\"function_call\", \"value\": \"{\\\"name\\\": \\\"look\\\", \\\"arguments\\\": "
                                  "{\\\"x\\\": 1}}\"}, {\"from\": \"observation\", \"value\": \"r\"}, {\"from\": "
                                  "\"gpt\", \"value\": \"a\"}], \"tools\": [" TOOL "]}\n"),
              DF_FILE("b6.jsonl",
                      "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": "
                      "\"assistant\", \"content\": \"\", \"tool_calls\": [{\"type\": \"function\", "
                      "\"function\": {\"name\": \"look\", \"arguments\": {\"x\": 1}}}]}, {\"role\": "
                      "\"tool\", \"content\": \"r\"}, {\"role\": \"assistant\", \"content\": \"a\"}], " TOOLS "}\n"),
              HN_MASK_PROMPT);
    static const struct {
        const char *line, *says;
    } wrong[] = {
        { "{\"instruction\": \"q\", \"output\": \"a\", \"system\": 3}\n", ":1: \"system\" is a number" },
        { "{\"instruction\": \"q\", \"output\": \"a\", \"tools\": \"{}\"}\n",
          ":1: \"tools\" is a string, and there is no array in it" },
        { "{\"instruction\": \"q\", \"output\": \"a\", \"history\": [[\"q\"]]}\n", ":1: history[0]: expected" },
        { "{\"conversations\": [{\"from\": \"function_call\", \"value\": \"look\"}]}\n",
          ":1: conversations[0].value: expected JSON" },
        { "{\"conversations\": [{\"from\": \"system\", \"value\": \"x\"}], \"system\": \"y\"}\n",
          ":1: \"system\" stands beside another" },
        { "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"weight\": 0.5}]}\n",
          ":1: messages[0].weight: expected 0 or 1" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        REFUSED(chat, df_write("b7.jsonl", wrong[i].line, strlen(wrong[i].line)), wrong[i].says);
}

#define SAID(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"}"
#define CALLS \
    "\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"look\", \"arguments\": {\"x\": 1}}}]"

/* What else a turn of ShareGPT's has is what a message has; other words for lists of messages. */
static void test_chat_spelt(void **state)
{
    static const char *const same[][2] = {
        { "{\"conversations\": [{\"from\": \"system\", \"value\": \"be\", \"weight\": null}, {\"from\": \"human\", "
          "\"value\": \"q\", \"weight\": 0}, {\"from\": \"gpt\", \"value\": \"a\", \"weight\": 0}, {\"from\": "
          "\"human\", \"value\": \"q\"}, {\"from\": \"gpt\", \"value\": \"b\", \"weight\": 1}]}",
          "{\"messages\": [" SAID("system", "be") ", " SAID(
              "user", "q") ", {\"role\": \"assistant\", \"content\": "
                           "\"a\", \"weight\": 0}, " SAID("user", "q") ", " SAID("assistant", "b") "]}" },
        { "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", \"value\": \"\", " CALLS
          "}, {\"from\": \"tool\", \"value\": \"r\"}, {\"from\": \"gpt\", " CALLS "}], " TOOLS "}",
          "{\"messages\": [" SAID("user", "q") ", {\"role\": \"assistant\", \"content\": \"\", " CALLS "}, " SAID(
              "tool", "r") ", {\"role\": \"assistant\", \"content\": null, " CALLS "}], " TOOLS "}" },
        { "{\"conversations\": [" SAID("user", "q") ", " SAID("assistant", "a") "]}",
          "{\"messages\": [" SAID("user", "q") ", " SAID("assistant", "a") "]}" },
        { "{\"conversations\": [" SAID("human", "q") ", " SAID("gpt", "a") "]}",
          "{\"messages\": [" SAID("user", "q") ", " SAID("assistant", "a") "]}" },
        { "{\"prompt\": [" SAID("user", "q") ", " SAID("assistant", "a") ", " SAID(
              "user", "q") "], \"completion\": [" SAID("assistant", "b") "], \"system\": \"be\", " TOOLS "}",
          "{\"messages\": [" SAID("system", "be") ", " SAID(
              "user", "q") ", {\"role\": \"assistant\", \"content\": "
                           "\"a\", \"weight\": 0}, " SAID("user", "q") ", " SAID("assistant", "b") "], " TOOLS "}" },
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (hn_mask mask = HN_MASK_NONE; mask <= HN_MASK_LAST; mask++)
            same_data(chat, df_write("f0.jsonl", same[i][0], strlen(same[i][0])),
                      df_write("f1.jsonl", same[i][1], strlen(same[i][1])), mask);
    same_data(chat,
              DF_FILE("f2.csv", "messages\n\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"q\"\"}, "
                                "{\"\"role\"\": \"\"assistant\"\", \"\"content\"\": \"\"a\"\"}]\"\n"),
              DF_FILE("f3.jsonl", "{\"messages\": [" SAID("user", "q") ", " SAID("assistant", "a") "]}"),
              HN_MASK_PROMPT);
    REFUSED(chat, DF_FILE("f4.jsonl", "{\"conversations\": [{\"from\": \"gpt\", \"value\": \"a\", \"weight\": 2}]}"),
            ":1: conversations[0].weight: expected 0 or 1");
    REFUSED(chat, DF_FILE("f5.jsonl", "{\"prompt\": [" SAID("user", "q") "], \"completion\": \"a\"}"),
            ":1: \"completion\" is a string, and there is no array in it");
    REFUSED(chat, DF_FILE("f6.csv", "messages,n\n,1\n"), "f6.csv:2: \"messages\" is an empty string");
}

/* Answers that are there to be read. */
static void test_chat_weights(void **state)
{
    const char *path = DF_FILE(
        "w0.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"q1\"}, {\"role\": \"assistant\", \"content\": \"a1\", "
        "\"weight\": 1}, {\"role\": \"user\", \"content\": \"q2\"}, {\"role\": \"assistant\", \"content\": \"a2\", "
        "\"weight\": 0}]}\n");
    for (hn_mask mask = HN_MASK_PROMPT; mask <= HN_MASK_LAST; mask++) {
        hn_dataset *d = READ(chat, path, .mask = mask);
        IS(d, USER("q1") ASKED "[a1<|im_end|>]\n" USER("q2") ASKED "a2<|im_end|>\n");
        hn_dataset_free(d);
    }
    hn_dataset *d = READ(plain, path, .mask = HN_MASK_PROMPT,
                         .chat_template = "{% for m in messages %}{{ m.content }}{{ '|' }}{% endfor %}");
    IS(d, "q1|[a1|]q2|a2|");
    hn_dataset_free(d);
    d = READ(plain, path, .mask = HN_MASK_NONE,
             .chat_template = "{% for m in messages %}{{ m.content }}{{ '|' }}{% endfor %}");
    IS(d, "q[1|a1|q2|a2|</s>]");
    hn_dataset_free(d);
}

/* Turns of which a sample keeps the first few. */
static void read_turns(void *arg, size_t n)
{
    char *s = malloc(100 * n + 100);
    size_t k = (size_t)sprintf(s, "{\"messages\": [");
    for (size_t i = 0; i < n; i++)
        k += (size_t)sprintf(s + k, "%s{\"role\": \"%s\", \"content\": \"x\"}", i ? ", " : "",
                             i % 2 ? "assistant" : "user");
    k += (size_t)sprintf(s + k, "]}\n");
    hn_dataset *d = READ(chat, df_write("turns.jsonl", s, k), .mask = HN_MASK_PROMPT, .seq = 60);
    IS(d, USER("x") ASKED "[x<|im_end|>]\n" USER("x") ASKED "[x<|im_end|>]\n" USER("x") "<|im_start|>assi");
    assert_int_equal(d->stats.n_cut, 1);
    hn_dataset_free(d);
    free(s);
}

static void test_many_turns(void **state) { assert_true(grows_as_input("turns", read_turns, NULL, 40, 1600)); }

/* Templates that are no plain chain of messages: thoughts dropped from earlier answers, no token that
 * ends an answer, a first message that must be the user's. */
static void test_chat_templates(void **state)
{
    static const char thoughts[] = "{% for m in messages %}<|im_start|>{{ m.role }}\n"
                                   "{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('/t ')[-1] }}{% "
                                   "else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
                                   "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    static const char words[] = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if "
                                "add_generation_prompt %}assistant:{% endif %}";
    static const char strict[] = "{% if messages[0].role != 'user' %}{{ raise_exception('no') }}{% endif %}"
                                 "{% for m in messages %}{{ '(' + m.content + ')' }}{% if m.role == 'assistant' %}{{ "
                                 "eos_token }}{% endif %}{% endfor %}";
    const char *path = DF_FILE(
        "tt.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"q1\"}, {\"role\": \"assistant\", \"content\": \"/t a1\"}, "
        "{\"role\": \"user\", \"content\": \"q2\"}, {\"role\": \"assistant\", \"content\": \"/t a2\"}]}\n");
    hone_model *m = df_model("thoughts.gguf", thoughts, false);
    hn_dataset *d = READ(m, path, .mask = HN_MASK_PROMPT);
    IS(d, USER("q1") ASKED "[a1<|im_end|>]\n" USER("q2") ASKED "[/t a2<|im_end|>]\n");
    hn_dataset_free(d);
    hone_model_close(m);
    m = df_model("words.gguf", words, false);
    d = READ(m, path, .mask = HN_MASK_PROMPT);
    IS(d, "user: q1\nassistant:[ /t a1\n]user: q2\nassistant:[ /t a2\n</s>]");
    hn_dataset_free(d);
    hone_model_close(m);
    df_eot = DF_BYTE + '\n'; /* text that ends a generation may stand in an answer, and is enough as its end */
    m = df_model("lines.gguf", words, false);
    df_eot = -1;
    d = READ(
        m,
        DF_FILE("tl.jsonl",
                "{\"messages\": [{\"role\": \"user\", \"content\": \"q1\"}, {\"role\": \"assistant\", \"content\": "
                "\"a\\nb\"}, "
                "{\"role\": \"user\", \"content\": \"q2\"}, {\"role\": \"assistant\", \"content\": \"c\\nd\"}]}\n"),
        .mask = HN_MASK_PROMPT);
    IS(d, "user: q1\nassistant:[ a\nb\n]user: q2\nassistant:[ c\nd\n]");
    hn_dataset_free(d);
    hone_model_close(m);
    path = df_path("tt.jsonl");
    m = df_model("strict.gguf", strict, false);
    d = READ(m, path, .mask = HN_MASK_PROMPT);
    IS(d, "(q1)[(/t a1)</s>](q2)[(/t a2)</s>]");
    hn_dataset_free(d);
    REFUSED(m, DF_FILE("tu.jsonl", "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}]}\n"), "tu.jsonl:1: ");
    hone_model_close(m);
}

/* A quote that nothing closes, or that of another row, is its own line: what is behind it is read. */
static void test_open_quote(void **state)
{
    hn_dataset *d = READ(plain, DF_FILE("q.csv", "text,n\n\"aa,1\nb,2\nc,3\n"), .max_bad = 1);
    IS(d, "b[</s>]", "c[</s>]");
    assert_int_equal(d->stats.n_line, 3);
    assert_non_null(strstr(d->stats.first_bad, "q.csv:2: a quote that nothing closes, down to line 4, the last"));
    hn_dataset_free(d);
    REFUSED(plain, df_path("q.csv"), "q.csv:2: a quote that nothing closes");
    d = READ(plain, DF_FILE("q2.csv", "text,n\n\"aa,1\nb,2\n\"c \"\"\nc\",3\nd,4\n"), .max_bad = 1);
    IS(d, "b[</s>]", "c[ \"\nc</s>]", "d[</s>]");
    assert_non_null(strstr(d->stats.first_bad, "q2.csv:2: text behind a closing quote, in a row of 3 lines"));
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("q3.csv", "text\na\n\"b"), .max_bad = 1);
    IS(d, "a[</s>]");
    hn_dataset_free(d);
    REFUSED(plain, DF_FILE("q4.csv", "\"text\na\n"), "q4.csv:1: the header: a quote that nothing closes");
    REFUSED(plain, DF_FILE("q5.csv", "text,n\n\"a\nb\"\n"),
            "q5.csv:2: 1 cells, expected 2 as in the header, in a row of 2");
}

/* Files larger than the part of them that is in memory: the same records, wherever they are cut. */
static void test_windows(void **state)
{
    enum { N = SLOWED ? 3000 : 20000, SEQ = 1000 };
    char *s[3] = { malloc(N * 400), malloc(N * 400), malloc(N * 400) }, text[2][300];
    size_t n[3] = { 0 };
    n[1] += (size_t)sprintf(s[1], "[");
    n[2] += (size_t)sprintf(s[2], "n,text\r\n");
    for (int i = 0; i < N; i++) {
        size_t k = 0, len = hn_rand64(3, (uint64_t)i) % 100;
        for (size_t c = 0; c < len; c++) { /* letters, and what is written in other ways: quotes, line ends, ä */
            static const char *const json[] = { "a", "b,", "\\\"", "\\n", "\xC3\xA4", "]}" }, *const csv[] = {
                "a", "b,", "\"\"", "\n", "\xC3\xA4", "]}"
            };
            size_t x = hn_rand64(4, (uint64_t)(i * 100) + c) % 6;
            for (int f = 0; f < 2; f++) strcpy(text[f] + (f ? strlen(text[1]) * (c > 0) : k), (f ? csv : json)[x]);
            k += strlen(json[x]);
        }
        if (!len) text[0][0] = text[1][0] = 0;
        n[0] += (size_t)sprintf(s[0] + n[0], "{\"text\": \"x%s\"}\n", text[0]);
        n[1] += (size_t)sprintf(s[1] + n[1], "%s {\"n\": [%d, {}],\n\"text\": \"x%s\"}", i ? "," : "", i, text[0]);
        n[2] += (size_t)sprintf(s[2] + n[2], "%d,\"x%s\"\r\n", i, text[1]);
    }
    n[1] += (size_t)sprintf(s[1] + n[1], "]\n");
    static const char *const names[] = { "w.jsonl", "w.json", "w.csv" };
    for (int f = 0; f < 3; f++) df_write(names[f], s[f], n[f]);
    same_data(plain, df_path("w.json"), df_path("w.jsonl"), HN_MASK_PROMPT);
    same_data(plain, df_path("w.csv"), df_path("w.jsonl"), HN_MASK_PROMPT);
    sprintf(s[1] + n[1] - 2, "}\n"); /* a place behind all of them */
    df_write("w.json", s[1], n[1]);
    char says[80];
    size_t wide = 0;
    for (const char *c = text[0]; *c; c++) wide += ((unsigned char)*c & 0xC0) != 0x80;
    snprintf(says, sizeof says, "w.json:%d: not JSON: column %zu: expected ',' or ']', seen }", N + 1, wide + 13);
    REFUSED(plain, df_path("w.json"), says);
    for (int f = 0; f < 3; f++) free(s[f]);
}

/* Of a record that is too large nothing is kept but its place. */
static void test_large_records(void **state)
{
    size_t n = 66 << 20, at;
    char *s = malloc(n + 256);
    at = (size_t)sprintf(s, "[{\"text\": \"a\"},\n{\"text\": \"");
    memset(s + at, 'x', n);
    at += n + (size_t)sprintf(s + at + n, "}]\"},\n{\"text\": \"b\"}]");
    REFUSED(plain, df_write("large.json", s, at), "large.json:2: a record of more than 67108864 bytes");
    hn_dataset *d = READ(plain, df_path("large.json"), .max_bad = 1);
    IS(d, "a[</s>]", "b[</s>]");
    hn_dataset_free(d);
    REFUSED(plain, df_write("large.json", s, at - 24), "large.json:2: not JSON: column 69206", .max_bad = 9);
    at = (size_t)sprintf(s, "text\na\n");
    memset(s + at, 'x', n);
    at += n + (size_t)sprintf(s + at + n, "\nb\n");
    d = READ(plain, df_write("large.csv", s, at), .max_bad = 1);
    IS(d, "a[</s>]", "b[</s>]");
    assert_non_null(strstr(d->stats.first_bad, "large.csv:3: a row of more than 67108864 bytes"));
    hn_dataset_free(d);
    free(s);
}

/* ---- sets ---------------------------------------------------------------------------------------------- */

static void test_several_files(void **state)
{
    hn_dataset *d;
    hone_error e = { 0 };
    const char *paths[] = { DF_FILE("1.txt", "x"), DF_FILE("2.jsonl", "{\"text\": \"y\"}"),
                            DF_FILE("3.jsonl", "{\"prompt\": \"pq\", \"completion\": \"c\"}") };
    assert_int_equal(hn_dataset_read(&d, plain,
                                     &(hn_data_params){ .path = paths, .n_path = 3, .seq = 8, .mask = HN_MASK_PROMPT },
                                     &e),
                     HONE_OK);
    IS(d, "x[</s>]", "y[</s>]", "pq[c</s>]");
    assert_int_equal(d->stats.n_file, 3);
    assert_int_equal(d->stats.n_line, 3);
    uint64_t hash = d->hash;
    hn_dataset_free(d);
    assert_int_equal(
        hn_dataset_read(&d, plain, &(hn_data_params){ .path = paths, .n_path = 3, .seq = 8, .mask = HN_MASK_NONE }, &e),
        HONE_OK);
    assert_true(d->hash != hash); /* another target */
    hn_dataset_free(d);
}

static int by_first(const void *a, const void *b)
{
    return ((const hn_data_sample *)a)->ids[0] - ((const hn_data_sample *)b)->ids[0];
}

static void test_split(void **state)
{
    char s[4096];
    size_t n = 0;
    for (int i = 0; i < 100; i++) n += (size_t)sprintf(s + n, "{\"text\": \"%c%0*d\"}\n", 'a' + i % 26, 1 + i % 3, i);
    const char *path = df_write("split.jsonl", s, n);
    hone_error e = { 0 };
    int64_t seen_first = 0;
    for (int share = 0; share <= 99; share += 9) {
        hn_dataset *a = READ(plain, path), *b = NULL, *whole = READ(plain, path);
        assert_int_equal(hn_dataset_split(a, share / 100.0, 5, &b, &e), HONE_OK);
        if (!share) {
            assert_null(b);
            assert_int_equal(a->n, 100);
        } else {
            assert_int_equal(b->n, share);
            assert_int_equal(a->n + b->n, 100);
            assert_int_equal(a->stats.n_tok + b->stats.n_tok, whole->stats.n_tok);
            assert_int_equal(a->stats.n_target + b->stats.n_target, whole->stats.n_target);
            assert_true(a->hash != b->hash && a->hash != whole->hash);
            hn_data_sample all[100];
            memcpy(all, a->sample, (size_t)a->n * sizeof *all);
            memcpy(all + a->n, b->sample, (size_t)b->n * sizeof *all);
            qsort(all, 100, sizeof *all, by_first);
            for (int i = 0; i < 100; i++) assert_true(all[i].n >= 3); /* all there and readable */
            seen_first += b->sample[0].ids[0] == whole->sample[0].ids[0];
        }
        if (share % 2) hn_dataset_free(a), a = NULL; /* in either order */
        hn_dataset_free(b);
        hn_dataset_free(a);
        hn_dataset_free(whole);
    }
    assert_true(seen_first < 11);
    hn_dataset *a = READ(plain, path), *b, *c;
    assert_int_equal(hn_dataset_split(a, 0.5, 1, &b, &e), HONE_OK);
    hn_dataset *a2 = READ(plain, path);
    assert_int_equal(hn_dataset_split(a2, 0.5, 2, &c, &e), HONE_OK);
    assert_true(b->hash != c->hash); /* another seed, other samples */
    hn_dataset_free(a), hn_dataset_free(b), hn_dataset_free(a2), hn_dataset_free(c);
    a = READ(plain, DF_FILE("one.txt", "x"));
    assert_int_equal(hn_dataset_split(a, 0.5, 1, &b, &e), HONE_E_ARG);
    assert_int_equal(hn_dataset_split(a, 1.0, 1, &b, &e), HONE_E_ARG);
    assert_null(b);
    hn_dataset_free(a);
}

/* ---- what is told ------------------------------------------------------------------------------------ */

/* Of a folder as the hub has them nothing is learnt by mistake, and no data is passed over without a word. */
static void test_hub_folder(void **state)
{
    static const char *const folders[] = { "hub", "hub/data", "hub/x.parquet" };
    for (size_t i = 0; i < 3; i++) mkdir(df_path(folders[i]), 0700);
    DF_FILE("hub/README.md", "# A set");
    DF_FILE("hub/LICENSE.txt", "free");
    refused(plain, df_path("hub"), (hn_data_params){ 0 }, HONE_E_ARG, "but what tells about it");
    DF_FILE("hub/data/a.parquet", "PAR1....");
    DF_FILE("hub/data/b.jsonl.gz", "\x1F\x8B....");
    refused(plain, df_path("hub"), (hn_data_params){ 0 }, HONE_E_ARG, "2 in forms that are not read: ");
    refused(plain, df_path("hub"), (hn_data_params){ 0 }, HONE_E_ARG, "a.parquet is a Parquet table; try: python3");
    DF_FILE("hub/x.parquet/license_part.jsonl", "{\"text\": \"yes\"}");
    hn_dataset *d = READ(plain, df_path("hub/x.parquet")); /* which is no licence */
    hn_dataset_free(d);
    d = READ(plain, df_path("hub"));
    IS(d, "f[ree</s>]", "#[ A set</s>]", "y[es</s>]");
    assert_int_equal(d->stats.n_passed, 2);
    assert_non_null(strstr(d->stats.first_passed, "hub/data/a.parquet"));
    const char *names[] = { "hub/LICENSE.txt\n", "hub/README.md\n", "hub/x.parquet/license_part.jsonl\n" };
    for (size_t i = 0; i < 3; i++) assert_non_null(strstr(d->stats.files, names[i]));
    hn_dataset_free(d);
    d = READ(plain, df_path("hub/README.md")); /* named, it is meant */
    IS(d, "#[ A set</s>]");
    hn_dataset_free(d);
    refused(plain, df_path("hub/data/b.jsonl.gz"), (hn_data_params){ 0 }, HONE_E_ARG, "(gzip); try: gunzip -k FILE");
    REFUSED(plain, DF_FILE("gz.jsonl", "\x1F\x8B\x08"), "(gzip); try: gunzip");
    REFUSED(plain, DF_FILE("wide.csv", "\xFF\xFEt\0e\0"), "UTF-16, expected UTF-8; try: iconv -f UTF-16", .max_bad = 9);
    refused(plain, DF_FILE("x.bin", "a\0b"), (hn_data_params){ 0 }, HONE_E_ARG, ", and it is no text");
    d = READ(plain, DF_FILE("par.txt", "PAR1 it is")); /* a text may begin so */
    IS(d, "P[AR1 it is</s>]");
    hn_dataset_free(d);
}

#define TALK(more) \
    "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", \"value\": \"\"" more
static void test_named_places(void **state)
{
    static const char *const wrong[][2] = {
        { TALK("}]}"), ":1: conversations[1]: the answer is empty" },
        { TALK("}], \"system\": \"be\"}"), "conversations[1]: the answer is empty" },
        { "{\"system\": \"be\", \"messages\": [{\"role\": \"user\", \"content\": 5}]}",
          "1: messages[0].content: expected" },
        { "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": "
          "[{\"type\": "
          "\"text\", \"text\": \"\"}]}]}",
          "messages[1]: the answer is empty" },
        { "{\"prompt\": [{\"role\": \"user\", \"content\": \"q\"}], \"completion\": [{\"role\": \"assistant\"}]}",
          "1: completion[0].content is missing" },
        { "{\"instruction\": \"q\", \"output\": \"a\", \"history\": [[\"x\", \"y\"], [\"z\", \"\"]]}",
          "1: history[1][1]: the answer is empty" },
        { "{\"question\": \"q\", \"answer\": \"a\"}", "its keys are \"question\", \"answer\"; expected \"messages\"" },
        { "{\"text\": \"\"}", "\"text\" is empty (hone train --max-bad-lines N leaves such lines out)" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        REFUSED(chat, df_write("w.jsonl", wrong[i][0], strlen(wrong[i][0])), wrong[i][1], .mask = HN_MASK_PROMPT);
    REFUSED(plain, DF_FILE("two.csv", "text,n,text\na,1,b\n"), "columns 1 and 3 are both named 'text'");
    REFUSED(plain, DF_FILE("w.csv", "n,text\n1,caf\xE9\n"),
            "w.csv:2: not UTF-8: byte 0xe9 in column 4 of cell 2 (text); if it is Windows-1252: iconv");
    /* nothing is learnt of these, and they may be empty */
    hn_dataset *d = READ(chat, DF_FILE("ok.jsonl", TALK(", \"weight\": 0}, {\"from\": \"gpt\", \"value\": \"a\"}]}")),
                         .mask = HN_MASK_PROMPT);
    assert_int_equal(d->n, 1);
    hn_dataset_free(d);
}

/* What is empty or null decides nothing; what is labelled false is not learnt. */
static void test_kinds(void **state)
{
    hn_dataset *d =
        READ(plain, DF_FILE("null.jsonl", "{\"messages\": null, \"text\": \"hello\"}\n{\"text\": \"you\"}\n"));
    IS(d, "h[ello</s>]", "y[ou</s>]");
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("none.csv", "messages,conversations,text,n,\n,,hello,1,\n,,you,2,\n"));
    IS(d, "h[ello</s>]", "y[ou</s>]");
    hn_dataset_free(d);
    d = READ(plain,
             DF_FILE("late.jsonl", "{\"text\": \"\"}\n{\"prompt\": \"\", \"completion\": \"c\", \"text\": \"\"}\n"),
             .max_bad = 1);
    IS(d, "c[</s>]");
    hn_dataset_free(d);
    d = READ(plain, DF_FILE("kto.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": false}\n"
                                         "{\"prompt\": \"a\", \"completion\": \"c\", \"label\": true}\n"
                                         "{\"prompt\": \"a\", \"completion\": \"d\"}\n"));
    IS(d, "a[c</s>]", "a[d</s>]");
    assert_int_equal(d->stats.n_rejected, 1);
    hn_dataset_free(d);
    REFUSED(plain, DF_FILE("kto.csv", "prompt,completion,label\na,b,False\n"),
            "0 in which no token counts; others are labelled false");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_txt),
        cmocka_unit_test(test_divided),
        cmocka_unit_test(test_begins_with_bos),
        cmocka_unit_test(test_long_txt),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_open_quote),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_large_records),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_text_records),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_one_in_a_million),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_completions),
        cmocka_unit_test(test_chat),
        cmocka_unit_test(test_chat_forms),
        cmocka_unit_test(test_chat_cells),
        cmocka_unit_test(test_chat_beside),
        cmocka_unit_test(test_chat_spelt),
        cmocka_unit_test(test_chat_weights),
        cmocka_unit_test(test_many_turns),
        cmocka_unit_test(test_chat_templates),
        cmocka_unit_test(test_several_files),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_hub_folder),
        cmocka_unit_test(test_named_places),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
