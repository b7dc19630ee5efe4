/* convert, World vocabulary: what GGUF holds of each kind of literal, padding, special ids, and
 * files that are none; the whole published vocabulary where its GGUF is at hand. */
#include "rwkv_files.h"
#include "text/text.h"

static const char *src;

static int setup(void **state)
{
    model m;
    if (make_dir(state) != 0) return -1;
    make_model(&m, 7);
    src = in_dir("m.bin");
    write_bin(src, &m);
    return 0;
}

static hone_str token(const hn_gguf *g, uint32_t id)
{
    hn_gguf_array a;
    uint64_t pos = 0;
    hone_str s = { 0 };
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.tokens", &a, NULL, NULL), HONE_OK);
    for (uint32_t i = 0; i <= id; i++) assert_true(hn_gguf_next_str(&a, &pos, &s));
    return s;
}

static void assert_token(const hn_gguf *g, uint32_t id, const char *text, int32_t type)
{
    hn_gguf_array a;
    int32_t t;
    hone_str s = token(g, id);
    if (s.len != strlen(text) || memcmp(s.ptr, text, s.len))
        fail_msg("token %u is %.*s, expected %s", id, (int)s.len, s.ptr, text);
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.token_type", &a, NULL, NULL), HONE_OK);
    assert_int_equal(a.count, V);
    memcpy(&t, a.data + 4 * id, 4);
    assert_int_equal(t, type);
}

static hn_gguf *with_vocabulary(const char *text, size_t n)
{
    hone_error err = { 0 };
    write_bytes(in_dir("v.txt"), text, n);
    if (hone_convert(src, in_dir("v.txt"), NULL, in_dir("m.gguf"), NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    return open_gguf(in_dir("m.gguf"));
}

static void test_literals(void **state)
{
    /* literal, bytes, and Python's repr of those bytes without b and quotes */
    static const struct {
        const char *literal;
        int n;
        const char *repr;
    } all[] = {
        { "b'\\x00'", 1, "\\x00" },
        { "' '", 1, " " },
        { "'\\t\\t'", 2, "\\t\\t" },
        { "'\\n\\n'", 2, "\\n\\n" },
        { "'\\r\\n'", 2, "\\r\\n" },
        { "'\\\\'", 1, "\\\\" },
        { "\"'\"", 1, "'" },
        { "'\"'", 1, "\"" },
        { "'\\'\"'", 2, "\\'\"" },
        { "'\\'\\''", 2, "''" },
        { "'\xC3\xA9'", 2, "\\xc3\\xa9" },
        { "'\\xe8'", 2, "\\xc3\\xa8" },
        { "b'\\xe9'", 1, "\\xe9" },
        { "'\\u4e2d'", 3, "\\xe4\\xb8\\xad" },
        { "'\\U0001F600'", 4, "\\xf0\\x9f\\x98\\x80" },
        { "' = \"'", 4, " = \"" },
        { "'\\x7f'", 1, "\\x7f" },
        { "'a b  c '", 7, "a b  c " },
        { "'\\a\\b\\f\\v'", 4, "\\x07\\x08\\x0c\\x0b" },
        { "'\\101\\60'", 2, "A0" },
        { "b\"\\xff'\"", 2, "\\xff'" },
        { "'<s>'", 3, "<s>" },
    };
    char text[4096];
    size_t n = 0, count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%zu %s %d\n", ++count, all[i].literal, all[i].n);
    }
    for (int last = 0; last < 3; last++) { /* also without the last line end, and with CR */
        hn_gguf *g = with_vocabulary(text, last == 1 ? n - 1 : n);
        assert_token(g, 0, "<s>", 3);
        for (size_t i = 0, id = 1; i < sizeof all / sizeof *all; i++) assert_token(g, (uint32_t)id++, all[i].repr, 1);
        for (uint32_t id = (uint32_t)count + 1; id < V; id++) {
            char pad[16];
            snprintf(pad, sizeof pad, "[PAD%u]", id);
            assert_token(g, id, pad, 5);
        }
        assert_int_equal(get_u32(g, "tokenizer.ggml.bos_token_id"), 0);
        assert_int_equal(get_u32(g, "tokenizer.ggml.eos_token_id"), 0);
        assert_int_equal(hn_gguf_find(g, "tokenizer.ggml.eot_token_id"), -1); /* there is no token 261 */
        assert_int_equal(hn_gguf_find(g, "rwkv7.vocab_size"), -1);
        hone_str s;
        assert_int_equal(hn_gguf_get_str(g, "tokenizer.ggml.model", &s, NULL, NULL), HONE_OK);
        assert_true(s.len == 4 && !memcmp(s.ptr, "rwkv", 4));
        assert_int_equal(hn_gguf_get_str(g, "tokenizer.chat_template", &s, NULL, NULL), HONE_OK);
        assert_true(s.len == 10 && !memcmp(s.ptr, "rwkv-world", 10));
        hn_gguf_close(g);
        if (last == 1) { /* line ends of another system */
            char crlf[8192];
            size_t k = 0;
            for (size_t i = 0; i < n; i++) {
                if (text[i] == '\n') crlf[k++] = '\r';
                crlf[k++] = text[i];
            }
            memcpy(text, crlf, n = k);
        }
    }
}

static void test_bad_lines(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "", "is empty" },
        { "\n", "line 1: fewer than three fields" },
        { "1 'a'\n", "fewer than three fields" },
        { "1\n", "fewer than three fields" },
        { "{\"model\": 1}\n", "line 1" },
        { "2 'a' 1\n", "an id that is not the line's number" },
        { "1 'a' 1\n1 'b' 1\n", "line 2: an id" },
        { "x 'a' 1\n", "an id" },
        { "-1 'a' 1\n", "an id" },
        { "1 'a' x\n", "no number of bytes" },
        { "1 'a' \n", "no number of bytes" },
        { "1 'a' 2\n", "another number of bytes" },
        { "1 '\xC3\xA9' 1\n", "another number of bytes" },
        { "1 a 1\n", "expected '…'" },
        { "1 'a\" 1\n", "expected '…'" },
        { "1 ' 1\n", "expected '…'" },
        { "1 r'a' 1\n", "expected '…'" },
        { "1 '' 0\n", "an empty token" },
        { "1 'a'b' 3\n", "a quote within" },
        { "1 '\\q' 1\n", "an escape that Python does not know" },
        { "1 '\\xg0' 1\n", "an escape" },
        { "1 '\\x1' 1\n", "an escape" },
        { "1 '\\' 1\n", "an escape" },
        { "1 '\\ud800' 3\n", "an escape" },
        { "1 '\\U00110000' 4\n", "an escape" },
        { "1 '\\UFFFFFFFF' 4\n", "an escape" },
        { "1 b'\\u0041' 1\n", "an escape" },
        { "1 b'\xC3\xA9' 2\n", "bytes beyond ASCII" },
        { "1 '\xC3' 1\n", "is not valid UTF-8" },
        { "1 'a' 1\n2 'a' 1\n", "line 2: a token that was there before" },
        { "1 '\xC3\xA9' 2\n2 b'\\xc3\\xa9' 2\n", "line 2: a token that was there before" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hone_error err = { 0 };
        write_text(in_dir("bad.txt"), bad[i].text);
        hone_status st = hone_convert(src, in_dir("bad.txt"), NULL, in_dir("never.gguf"), NULL, &err);
        if (st != HONE_E_FORMAT || !strstr(err.message, bad[i].says) || !strstr(err.message, "bad.txt"))
            fail_msg("status %d, message: %s; expected: %s", st, err.message, bad[i].says);
        assert_int_equal(access(in_dir("never.gguf"), F_OK), -1);
    }
    hone_error err = { 0 };
    char text[1024];
    size_t n = 0;
    for (int i = 1; i <= V; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d 't%d' %d\n", i, i, i < 10 ? 2 : 3);
    write_bytes(in_dir("bad.txt"), text, n);
    assert_int_equal(hone_convert(src, in_dir("bad.txt"), NULL, in_dir("never.gguf"), NULL, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "more than 39 tokens, but the embedding"));
    assert_int_equal(hone_convert(src, in_dir("absent.txt"), NULL, in_dir("never.gguf"), NULL, &err), HONE_E_IO);
    assert_int_equal(hone_convert(src, in_dir("v.txt"), NULL, in_dir("v.txt"), NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "would be the output and is the tokenizer"));
    char *deep = malloc(6000); /* longer than any token */
    memset(deep, 'a', 6000);
    memcpy(deep, "1 '", 3);
    memcpy(deep + 5990, "' 5987\n", 8);
    write_text(in_dir("bad.txt"), deep);
    assert_int_equal(hone_convert(src, in_dir("bad.txt"), NULL, in_dir("never.gguf"), NULL, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "a token of more than"));
    free(deep);
}

/* A folder's own vocabulary and chat template. */
static void test_folder(void **state)
{
    static const struct {
        const char *file, *text, *want;
    } templates[] = {
        { NULL, NULL, "rwkv-world" },
        { "tokenizer_config.json", "{\"chat_template\":null}", "rwkv-world" },
        { "tokenizer_config.json", "{\"chat_template\":\"{{ x }}\\n\"}", "{{ x }}\n" },
        { "chat_template.jinja", "{{ y }}", "{{ y }}" },
        { "chat_template.jinja", "", "rwkv-world" },
    };
    model m;
    char config[2048];
    make_model(&m, 7);
    mkdir(in_dir("hf"), 0700);
    snprintf(config, sizeof config, CONFIG7, "");
    write_text(in_dir("hf/config.json"), config);
    write_safetensors(in_dir("hf/model.safetensors"), &m, FLA, "BF16");
    write_text(in_dir("hf/rwkv_vocab_v20230424.txt"), "1 'a' 1\n2 'b' 1\n");
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        hone_error err = { 0 };
        char file[64];
        snprintf(file, sizeof file, "hf/%s", templates[i].file ? templates[i].file : "");
        if (templates[i].file) write_text(in_dir(file), templates[i].text);
        if (hone_convert(in_dir("hf"), NULL, NULL, in_dir("m.gguf"), NULL, &err) != HONE_OK)
            fail_msg("%s", err.message);
        hn_gguf *g = open_gguf(in_dir("m.gguf"));
        hone_str s;
        assert_token(g, 2, "b", 1);
        assert_int_equal(hn_gguf_get_str(g, "tokenizer.chat_template", &s, NULL, NULL), HONE_OK);
        assert_true(s.len == strlen(templates[i].want) && !memcmp(s.ptr, templates[i].want, s.len));
        expect_model(g, &m);
        hn_gguf_close(g);
    }
}

/* The published vocabulary, as another converter stored it, written as the text file it came from. */
static void test_published(void **state)
{
    static const char path[] = "../shared/data/tokenizers/ggml-vocab-rwkv-world.gguf";
    if (access(path, R_OK) != 0) {
        printf("SKIP: %s is absent\n", path);
        skip();
    }
    hn_gguf *want = open_gguf(path), *g;
    hn_gguf_array tokens, types;
    hone_error err = { 0 };
    hone_str s;
    assert_int_equal(hn_gguf_get_array(want, "tokenizer.ggml.tokens", &tokens, NULL, NULL), HONE_OK);
    assert_int_equal(hn_gguf_get_array(want, "tokenizer.ggml.token_type", &types, NULL, NULL), HONE_OK);
    FILE *f = fopen(in_dir("world.txt"), "w");
    uint64_t pos = 0;
    for (uint64_t id = 0; hn_gguf_next_str(&tokens, &pos, &s); id++) {
        int32_t type;
        memcpy(&type, types.data + 4 * id, 4);
        if (type != 1) continue;
        size_t n = 0;
        bool plain = true; /* a quote not behind a backslash asks for the other kind around it */
        for (size_t i = 0; i < s.len; i++, n++) {
            if (s.ptr[i] == '\\') i += s.ptr[i + 1] == 'x' ? 3 : 1;
            else if (s.ptr[i] == '\'') plain = false;
        }
        fprintf(f, "%llu b%c%.*s%c %zu\n", (unsigned long long)id, plain ? '\'' : '"', (int)s.len, s.ptr,
                plain ? '\'' : '"', n);
    }
    fclose(f);
    model m; /* of so many tokens */
    buffer b = { 0 };
    make_model(&m, 7);
    find_spec(&m, "emb.weight")->shape[0] = find_spec(&m, "head.weight")->shape[0] = tokens.count;
    make_bin(&b, &m, NULL);
    memcpy(b.p + 8, &(uint32_t){ (uint32_t)tokens.count }, 4);
    write_bytes(in_dir("w.bin"), b.p, b.n);
    free(b.p);
    if (hone_convert(in_dir("w.bin"), in_dir("world.txt"), NULL, in_dir("w.gguf"), NULL, &err) != HONE_OK)
        fail_msg("%s", err.message);
    g = open_gguf(in_dir("w.gguf"));
    hn_gguf_array t2, y2;
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.tokens", &t2, NULL, NULL), HONE_OK);
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.token_type", &y2, NULL, NULL), HONE_OK);
    assert_int_equal(t2.count, tokens.count);
    assert_true(t2.n_bytes == tokens.n_bytes && !memcmp(t2.data, tokens.data, t2.n_bytes));
    assert_true(y2.n_bytes == types.n_bytes && !memcmp(y2.data, types.data, y2.n_bytes));
    assert_int_equal(get_u32(g, "tokenizer.ggml.eot_token_id"), 261);
    hn_vocab *v;
    hn_ids ids = { 0 };
    static const char text[] = "I'll 'd test \xD0\xB1\xD0\xBB\xD0\xB0\xD0\xB1\xD0\xBB\xD0\xB0 "
                               "\xE4\xBB\xA5\xE4\xB8\x8B\xE3\x81\xAF\xE3\x80\x81]) -> <|endoftext|><|padding|> int";
    static const int32_t id[] = {
        74,   5229, 274, 101, 32223, 5092, 27980, 2795, 27980, 33,  10399, 10258, 10139, 10079,
        1682, 3463, 295, 125, 25258, 7588, 2318,  125,  790,   125, 49520, 125,   63,    21888
    }; /* RWKV/rwkv.cpp:python/rwkv_cpp/rwkv_world_tokenizer.test.py */
    assert_int_equal(hn_vocab_new(&v, g, NULL, &err), HONE_OK);
    assert_int_equal(hn_vocab_encode(v, text, sizeof text - 1, 0, &ids, &err), HONE_OK);
    assert_int_equal(ids.n, sizeof id / sizeof *id);
    assert_memory_equal(ids.data, id, sizeof id);
    free(ids.data);
    hn_vocab_free(v);
    hn_gguf_close(g);
    hn_gguf_close(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_literals), cmocka_unit_test(test_bad_lines),
                                        cmocka_unit_test(test_folder), cmocka_unit_test(test_published) };
    return cmocka_run_group_tests(tests, setup, remove_dir);
}
