/* hf_tokenizer: small folders written here, of every format; what GGUF then holds, by values worked out by hand; the
 * way back; every refusal, by the words a user needs; each allocation that fails. */
#define _GNU_SOURCE
#include "forge/hf_tokenizer.h"
#include "text/text.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64], folder[96], back[96], out[96], notes[4096];

static void clear(const char *path)
{
    DIR *d = opendir(path);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));) {
        char sub[512];
        if (e->d_name[0] == '.' && (!e->d_name[1] || e->d_name[1] == '.')) continue;
        snprintf(sub, sizeof sub, "%s/%s", path, e->d_name);
        if (unlink(sub) != 0) clear(sub), rmdir(sub);
    }
    closedir(d);
}

static int setup(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-hf-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(folder, sizeof folder, "%s/in", dir);
    snprintf(back, sizeof back, "%s/back", dir);
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    return mkdir(folder, 0700) || mkdir(back, 0700);
}
static int teardown(void **state)
{
    clear(dir);
    return rmdir(dir);
}

static void file_bytes(const char *name, const void *p, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}
static void file(const char *name, const char *text) { file_bytes(name, text, strlen(text)); }

static void note(void *arg, const char *text)
{
    snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s|", text);
}

static hone_status put_from(const char *from, const char *pre, const char *arch, uint64_t n_vocab, const char *config,
                            hone_error *err)
{
    json_t *c = config ? json_loads(config, 0, NULL) : NULL;
    hn_hf_tokenizer t = { from, c, arch, pre, n_vocab, note, NULL };
    hn_gguf_writer *w = NULL;
    *notes = 0;
    unlink(out);
    hone_status st = hn_gguf_writer_new(&w, err);
    if (st == HONE_OK) st = hn_gguf_put_str(w, "general.architecture", "llama", 5, err);
    if (st == HONE_OK) st = hn_hf_tokenizer_put(w, &t, err);
    if (st == HONE_OK) st = hn_gguf_write_begin(w, out, err);
    if (st == HONE_OK) st = hn_gguf_write_end(w, err);
    hn_gguf_writer_free(w);
    json_decref(c);
    return st;
}

static hn_gguf *made_from(const char *from, const char *pre, const char *arch, uint64_t n_vocab, const char *config)
{
    hone_error err = { 0 };
    hn_gguf *g = NULL;
    if (put_from(from, pre, arch, n_vocab, config, &err) != HONE_OK || hn_gguf_open(&g, out, &err) != HONE_OK)
        fail_msg("%s", err.message);
    return g;
}
static hn_gguf *made(uint64_t n_vocab, const char *config) { return made_from(folder, NULL, NULL, n_vocab, config); }

static void refused(hone_status code, const char *pre, uint64_t n_vocab, const char *words)
{
    hone_error err = { 0 };
    hone_status st = put_from(folder, pre, NULL, n_vocab, NULL, &err);
    if (st != code) fail_msg("status %d: %s; expected \"%s\"", st, err.message, words);
    if (!strstr(err.message, words)) fail_msg("\"%s\", expected \"%s\"", err.message, words);
}

/* "text/type text/type …" of all tokens; _ is a space */
static void has_tokens(const hn_gguf *g, const char *expected)
{
    char have[4096] = "";
    hn_gguf_array a, types;
    uint64_t pos = 0;
    hone_str s;
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.tokens", &a, NULL, NULL), HONE_OK);
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.token_type", &types, NULL, NULL), HONE_OK);
    assert_int_equal(types.count, a.count);
    for (uint64_t i = 0; hn_gguf_next_str(&a, &pos, &s); i++) {
        int32_t t;
        size_t n = strlen(have);
        memcpy(&t, types.data + 4 * i, 4);
        snprintf(have + n, sizeof have - n, "%s%.*s/%d", n ? " " : "", (int)s.len, s.ptr, t);
        for (size_t k = n + 1; have[k]; k++)
            if (have[k] == ' ') have[k] = '_';
    }
    assert_string_equal(have, expected);
}

static void has_text(const hn_gguf *g, const char *key, const char *expected)
{
    hone_str s = { "(none)", 6 };
    assert_int_equal(hn_gguf_get_str(g, key, &s, NULL, NULL), HONE_OK);
    if (s.len != strlen(expected) || memcmp(s.ptr, expected, s.len))
        fail_msg("%s is \"%.*s\", expected \"%s\"", key, (int)s.len, s.ptr, expected);
}
static void has_number(const hn_gguf *g, const char *key, uint32_t expected)
{
    uint32_t v = 99999;
    assert_int_equal(hn_gguf_get_u32(g, key, &v, NULL, NULL), HONE_OK);
    if (v != expected) fail_msg("%s is %u, expected %u", key, v, expected);
}
static void has_flag(const hn_gguf *g, const char *key, bool expected)
{
    bool v = !expected, found = false;
    assert_int_equal(hn_gguf_get_bool(g, key, &v, &found, NULL), HONE_OK);
    if (!found || v != expected) fail_msg("%s is %s, expected %d", key, found ? "other" : "missing", expected);
}
static void has_list(const hn_gguf *g, const char *key, const char *expected) /* of strings, f32 or i32 */
{
    char have[1024] = "";
    hn_gguf_array a = { 0 };
    hone_str s;
    uint64_t pos = 0;
    assert_int_equal(hn_gguf_get_array(g, key, &a, NULL, NULL), HONE_OK);
    for (uint64_t i = 0; i < a.count; i++) {
        size_t n = strlen(have);
        float x = 0;
        int32_t v = 0;
        if (a.elem_type == HONE_KV_STRING) assert_true(hn_gguf_next_str(&a, &pos, &s));
        else memcpy(&x, a.data + 4 * i, 4), memcpy(&v, a.data + 4 * i, 4);
        if (a.elem_type == HONE_KV_STRING)
            snprintf(have + n, sizeof have - n, "%s%.*s", n ? "|" : "", (int)s.len, s.ptr);
        else if (a.elem_type == HONE_KV_F32) snprintf(have + n, sizeof have - n, "%s%g", n ? "|" : "", (double)x);
        else snprintf(have + n, sizeof have - n, "%s%d", n ? "|" : "", v);
    }
    assert_string_equal(have, expected);
}

#define CAT1                                                                          \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| " \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define SPLIT(x)                                                                                                  \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" x \
    "\"},\"behavior\":\"Isolated\",\"invert\":false}," LEVEL "]}"
#define ADDED(id, text, special) "{\"id\":" #id ",\"content\":\"" text "\",\"special\":" #special "}"
#define WORDS "\"vocab\":{\"a\":0,\"b\":1,\"\\u0120\":2,\"ab\":3,\"\\u0120ab\":4}"
#define MERGES "\"merges\":[\"a b\",[\"\\u0120\",\"ab\"]]"
#define BPE(added, split, vocab, merges)                                           \
    "{\"version\":\"1.0\",\"added_tokens\":[" added "],\"normalizer\":null," split \
    ",\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\"," vocab "," merges "}}"
#define TWO_ADDED ADDED(5, "<|im_end|>", true) "," ADDED(6, "<think>", false)

static void test_bytes(void **state)
{
    clear(folder);
    bool there = true;
    assert_int_equal(hn_hf_tokenizer_there(&there, folder, NULL), HONE_OK);
    assert_false(there);
    file("tokenizer.json", BPE(TWO_ADDED, SPLIT(CAT1), WORDS, MERGES));
    assert_int_equal(hn_hf_tokenizer_there(&there, folder, NULL), HONE_OK);
    assert_true(there);
    file("tokenizer_config.json",
         "{\"eos_token\":{\"content\":\"<|im_end|>\"},\"pad_token\":null,\"add_bos_token\":false,"
         "\"chat_template\":[{\"name\":\"default\",\"template\":\"D\"},"
         "{\"name\":\"tool use\",\"template\":\"T\"}]}");
    file("chat_template.jinja", "\r\n{{ x }}\n");
    file("generation_config.json", "{\"eos_token_id\":[5,4],\"suppress_tokens\":[3,6,99]}");
    hn_gguf *g = made(8, "{\"bos_token_id\":3}");
    has_text(g, "tokenizer.ggml.model", "gpt2");
    has_text(g, "tokenizer.ggml.pre", "qwen2");
    has_tokens(g, "a/1 b/1 \u0120/1 ab/1 \u0120ab/1 <|im_end|>/3 <think>/4 [PAD7]/5");
    has_list(g, "tokenizer.ggml.merges", "a b|\u0120 ab");
    has_number(g, "tokenizer.ggml.eos_token_id", 5);
    has_number(g, "tokenizer.ggml.bos_token_id", 3);
    has_number(g, "tokenizer.ggml.eot_token_id", 4);
    has_list(g, "tokenizer.ggml.eos_token_ids", "5|4");
    has_list(g, "tokenizer.ggml.suppress_tokens", "3|6");
    has_flag(g, "tokenizer.ggml.add_bos_token", false);
    has_flag(g, "tokenizer.ggml.add_eos_token", false);
    has_text(g, "tokenizer.chat_template", "\r\n{{ x }}\n");
    has_text(g, "tokenizer.chat_template.tool_use", "T");
    has_list(g, "tokenizer.chat_templates", "tool_use");
    /* and back: the same arrays, templates, ends */
    hone_error err = { 0 };
    clear(back);
    if (hn_hf_tokenizer_write(back, g, NULL, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    hn_gguf_close(g);
    g = made_from(back, NULL, NULL, 8, NULL);
    has_text(g, "tokenizer.ggml.pre", "qwen2");
    has_tokens(g, "a/1 b/1 \u0120/1 ab/1 \u0120ab/1 <|im_end|>/3 <think>/4 [PAD7]/5");
    has_list(g, "tokenizer.ggml.merges", "a b|\u0120 ab");
    has_list(g, "tokenizer.ggml.eos_token_ids", "5|4");
    has_list(g, "tokenizer.ggml.suppress_tokens", "3|6");
    has_text(g, "tokenizer.chat_template", "\r\n{{ x }}\n");
    has_text(g, "tokenizer.chat_template.tool_use", "T");
    hn_gguf_close(g);
}

static void test_merges_file(void **state)
{
    clear(folder);
    file("vocab.json", "{\"a\":0,\"b\":1,\"#\":2,\"ab\":3,\"##\":4}");
    file("merges.txt", "#version: 0.2\r\na b\r\n# #\n");
    refused(HONE_E_UNSUPPORTED, NULL, 0, "nothing says how text is divided");
    file("tokenizer_config.json",
         "{\"tokenizer_class\":\"Qwen2TokenizerFast\",\"added_tokens_decoder\":{\"5\":{\"content\":"
         "\"<|endoftext|>\",\"special\":true}}}");
    file("added_tokens.json", "{\"<|endoftext|>\":5,\"more\":6}");
    hn_gguf *g = made(0, NULL);
    has_text(g, "tokenizer.ggml.pre", "qwen2");
    has_tokens(g, "a/1 b/1 #/1 ab/1 ##/1 <|endoftext|>/3 more/4");
    has_list(g, "tokenizer.ggml.merges", "a b|# #");
    hn_gguf_close(g);
    g = made_from(folder, "gpt-2", NULL, 0, NULL);
    has_text(g, "tokenizer.ggml.pre", "gpt-2");
    hn_gguf_close(g);
    refused(HONE_E_ARG, "no-such", 0, "no-such");
    file("merges.txt", "a c\n");
    refused(HONE_E_FORMAT, NULL, 0, "merge 0 is \"a c\", but its result is not among the tokens");
    file("merges.txt", "a b c\n");
    refused(HONE_E_FORMAT, NULL, 0, "expected two parts with one space between");
}

#define CHARS(normalizer, pre)                                                                                         \
    "{\"added_tokens\":[" ADDED(0, "<unk>", true) "," ADDED(1, "<s>", true) "," ADDED(                                 \
        7, "\u2581\u2581",                                                                                             \
        false) "],\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre                                                \
               ",\"post_processor\":{\"type\":\"TemplateProcessing\","                                                 \
               "\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_"     \
               "id\":0}}]},"                                                                                           \
               "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"<" \
               "s>\":1,"                                                                                               \
               "\"<0x0A>\":2,\"\u2581\":3,\"a\":4,\"\u2581a\":5,\"aa\":6},\"merges\":[\"a a\",\"\u2581 a\"]}}"
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"}"

static void test_characters(void **state)
{
    clear(folder);
    file("tokenizer.json",
         CHARS("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\u2581\"}," REPLACE "]}",
               "null"));
    hn_gguf *g = made(9, NULL);
    has_text(g, "tokenizer.ggml.model", "llama");
    has_tokens(g, "<unk>/2 <s>/3 <0x0A>/6 \u2581/1 a/1 \u2581a/1 aa/1 __/4 [PAD8]/5");
    has_list(g, "tokenizer.ggml.scores", "0|-1000|0|0|0|-2|-1|-1000|-1000");
    has_flag(g, "tokenizer.ggml.add_space_prefix", true);
    has_flag(g, "tokenizer.ggml.add_bos_token", true);
    has_number(g, "tokenizer.ggml.unknown_token_id", 0);
    hone_error err = { 0 };
    clear(back);
    if (hn_hf_tokenizer_write(back, g, NULL, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    hn_gguf_close(g);
    g = made_from(back, NULL, NULL, 9, NULL);
    has_list(g, "tokenizer.ggml.scores", "0|-1000|0|0|0|-2|-1|-1000|-1000");
    has_flag(g, "tokenizer.ggml.add_space_prefix", true);
    hn_gguf_close(g);
    file("tokenizer.json", CHARS(REPLACE, "null"));
    g = made(0, NULL);
    has_flag(g, "tokenizer.ggml.add_space_prefix", false);
    hn_gguf_close(g);
    g = made_from(folder, NULL, "gemma4", 0, NULL);
    has_text(g, "tokenizer.ggml.model", "gemma4");
    has_list(g, "tokenizer.ggml.merges", "a a|\u2581 a");
    hn_gguf_close(g);
    file("tokenizer.json", CHARS("null", "{\"type\":\"Metaspace\",\"prepend_scheme\":\"first\"}"));
    g = made(0, NULL);
    has_flag(g, "tokenizer.ggml.add_space_prefix", true);
    assert_non_null(strstr(notes, "not behind special tokens"));
    hn_gguf_close(g);
    file("tokenizer.json", CHARS("{\"type\":\"NFKC\"}", "null"));
    refused(HONE_E_UNSUPPORTED, NULL, 0, "NFKC");
    file("tokenizer.json", CHARS(REPLACE, "null"));
    refused(HONE_E_ARG, "qwen2", 0, "no byte-level BPE");
}

/* pieces of SentencePiece: score and type, then trainer_spec and normalizer_spec */
static size_t piece(unsigned char *p, const char *text, float score, int type)
{
    size_t n = strlen(text), k = 0;
    p[k++] = 0x0A;
    p[k++] = (unsigned char)(n + 9);
    p[k++] = 0x0A;
    p[k++] = (unsigned char)n;
    memcpy(p + k, text, n);
    k += n;
    p[k++] = 0x15;
    memcpy(p + k, &score, 4);
    k += 4;
    p[k++] = 0x18;
    p[k++] = (unsigned char)type;
    return k;
}
static size_t sentencepiece(unsigned char *p, const char *trainer, size_t n_trainer, const char *normalizer, size_t n)
{
    size_t k = piece(p, "<unk>", 0, 2);
    k += piece(p + k, "<s>", 0, 3);
    k += piece(p + k, "</s>", 0, 3);
    k += piece(p + k, "<0x0A>", 0, 6);
    k += piece(p + k, "\u2581a", -1.5f, 1);
    k += piece(p + k, "\u2581\u2581", 0, 4);
    p[k++] = 0x12;
    p[k++] = (unsigned char)n_trainer;
    memcpy(p + k, trainer, n_trainer);
    k += n_trainer;
    p[k++] = 0x1A;
    p[k++] = (unsigned char)n;
    memcpy(p + k, normalizer, n);
    return k + n;
}

static void test_sentencepiece(void **state)
{
    unsigned char p[512];
    clear(folder);
    size_t n = sentencepiece(p, "\x18\x02\x98\x02\x01", 5, "\x18\x01\x20\x00", 4); /* BPE, byte_fallback */
    file_bytes("tokenizer.model", p, n);
    hn_gguf *g = made(0, NULL);
    has_text(g, "tokenizer.ggml.model", "llama");
    has_tokens(g, "<unk>/2 <s>/3 </s>/3 <0x0A>/6 \u2581a/1 __/4");
    has_list(g, "tokenizer.ggml.scores", "0|0|0|0|-1.5|0");
    has_number(g, "tokenizer.ggml.bos_token_id", 1);
    has_number(g, "tokenizer.ggml.eos_token_id", 2);
    has_number(g, "tokenizer.ggml.unknown_token_id", 0);
    has_flag(g, "tokenizer.ggml.add_bos_token", true);
    has_flag(g, "tokenizer.ggml.add_space_prefix", true);
    hn_gguf_close(g);
    for (size_t cut = 1; cut < n; cut++) { /* a beginning that is a whole file lacks what follows, no more */
        hone_error err = { 0 };
        file_bytes("tokenizer.model", p, cut);
        hone_status st = put_from(folder, NULL, NULL, 0, NULL, &err);
        if (st != HONE_OK) assert_true(*err.message);
    }
    file_bytes("tokenizer.model", p, 10);
    refused(HONE_E_FORMAT, NULL, 0, "not a protobuf of SentencePiece, or cut off");
    refused(HONE_E_FORMAT, NULL, 3, "not a protobuf");
    file_bytes("tokenizer.model", p, n);
    refused(HONE_E_FORMAT, NULL, 3, "has id 3, but the embedding has 3 rows");
    n = sentencepiece(p, "\x18\x02\x98\x02\x01", 5, "\x18\x01\x20\x01", 4);
    file_bytes("tokenizer.model", p, n);
    refused(HONE_E_UNSUPPORTED, NULL, 0, "BPE with remove_extra_whitespaces");
    n = sentencepiece(p, "\x18\x03", 2, "\x18\x01", 2);
    file_bytes("tokenizer.model", p, n);
    refused(HONE_E_UNSUPPORTED, NULL, 0, "model_type is 3");
    n = sentencepiece(p, "\x18\x02\xC0\x01\x01", 5, "\x20\x00", 2);
    file_bytes("tokenizer.model", p, n);
    refused(HONE_E_UNSUPPORTED, NULL, 0, "treat_whitespace_as_suffix");
    n = sentencepiece(p, "\x18\x01", 2, "\x12\x03xyz", 5);
    file_bytes("tokenizer.model", p, n);
    g = made(0, NULL);
    has_text(g, "tokenizer.ggml.model", "t5");
    has_flag(g, "tokenizer.ggml.remove_extra_whitespaces", true);
    has_flag(g, "tokenizer.ggml.add_eos_token", true);
    hn_gguf_array a;
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.precompiled_charsmap", &a, NULL, NULL), HONE_OK);
    assert_int_equal(a.count, 3);
    assert_memory_equal(a.data, "xyz", 3);
    hn_gguf_close(g);
}

/* By this name it is XLM-RoBERTa's, whose ids are others than the file's. */
static void test_fairseq(void **state)
{
    unsigned char p[512];
    clear(folder);
    size_t n = sentencepiece(p, "\x18\x01", 2, "", 0);
    file_bytes("sentencepiece.bpe.model", p, n);
    for (int masked = 0; masked < 2; masked++) { /* where it has a row */
        hn_gguf *g = made(7 + (uint64_t)masked, NULL);
        has_tokens(g, masked ? "<s>/3 <pad>/3 </s>/3 <unk>/2 <0x0A>/6 \u2581a/1 \u2581\u2581/4 <mask>/3"
                             : "<s>/3 <pad>/3 </s>/3 <unk>/2 <0x0A>/6 \u2581a/1 \u2581\u2581/4");
        has_number(g, "tokenizer.ggml.bos_token_id", 0);
        has_number(g, "tokenizer.ggml.padding_token_id", 1);
        has_number(g, "tokenizer.ggml.eos_token_id", 2);
        has_number(g, "tokenizer.ggml.unknown_token_id", 3);
        has_flag(g, "tokenizer.ggml.add_bos_token", true);
        has_flag(g, "tokenizer.ggml.add_eos_token", true);
        hn_gguf_close(g);
    }
    file("tokenizer_config.json", "{\"mask_token\":\"<mask>\",\"added_tokens_decoder\":{\"0\":{\"content\":\"<s>\","
                                  "\"special\":true},\"7\":{\"content\":\"<mask>\",\"special\":true}}}");
    hn_gguf *g = made(8, NULL);
    has_number(g, "tokenizer.ggml.mask_token_id", 7);
    hn_gguf_close(g);
    n = piece(p, "a", 0, 1); /* nobody's first piece */
    file_bytes("sentencepiece.bpe.model", p, n);
    refused(HONE_E_UNSUPPORTED, NULL, 0, "piece 0 is \"a\", expected <unk>, <s> and </s> first");
    clear(folder);
}

/* Made from the folder, written back, made again. */
static hn_gguf *there_and_back(void)
{
    hone_error err = { 0 };
    hn_gguf *g = made(0, NULL);
    clear(back);
    if (hn_hf_tokenizer_write(back, g, NULL, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    hn_gguf_close(g);
    return made_from(back, NULL, NULL, 0, NULL);
}

static json_t *back_json(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", back, name);
    json_t *o = json_load_file(path, 0, NULL);
    assert_non_null(o);
    return o;
}

/* "<s> A </s> …" of the pair, and whether a part is of another kind than 0 */
static void has_pair(const char *expected, bool kinds)
{
    char have[256] = "";
    bool others = false;
    json_t *all = back_json("tokenizer.json"), *x;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(all, "post_processor"), "pair"), i, x)
    {
        const json_t *part = json_object_get(x, "Sequence");
        if (!part) part = json_object_get(x, "SpecialToken");
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i ? " " : "",
                 json_string_value(json_object_get(part, "id")));
        others |= json_integer_value(json_object_get(part, "type_id")) != 0;
    }
    json_decref(all);
    assert_string_equal(have, expected);
    assert_int_equal(others, kinds);
}

static void has_inputs(const char *expected)
{
    json_t *all = back_json("tokenizer_config.json");
    char *have = json_dumps(json_object_get(all, "model_input_names"), JSON_COMPACT);
    assert_non_null(have);
    assert_string_equal(have, expected);
    free(have);
    json_decref(all);
}

#define PART(x) "{\"SpecialToken\":{\"id\":\"" x "\",\"type_id\":0}}"
#define TEXT_A "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define TEXT_B "{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}"
#define AROUND(single, pair) \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"pair\":[" pair "]},"
#define ROBERTA                                     \
    AROUND(PART("<s>") "," TEXT_A "," PART("</s>"), \
           PART("<s>") "," TEXT_A "," PART("</s>") "," PART("</s>") "," TEXT_B "," PART("</s>"))
#define UNIGRAM(post, words)                                                                                           \
    "{\"added_tokens\":[" ADDED(0, "<s>", true) "," ADDED(                                                             \
        1, "</s>", true) "],"                                                                                          \
                         "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Metaspace\"}," post                        \
                         "\"model\":{\"type\":\"Unigram\",\"unk_id\":2,\"byte_fallback\":true,\"vocab\":[[\"<s>\",0]," \
                         "[\"</s>\",0],"                                                                               \
                         "[\"<unk>\",0],[\"\u2581a\",-2.5]" words "]}}"
#define BYTE_LEVEL(post)                                                                                             \
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true},{\"id\":1,\"content\":\"</s>\",\"special\":" \
    "true}],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}," post          \
    "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"<s>\":0,\"</"                     \
    "s>\":1,\"a\":2,\"b\":3},"                                                                                       \
    "\"merges\":[]}}"

/* Two texts stand between the separators of their model. */
static void test_pairs(void **state)
{
    clear(folder);
    file("tokenizer.json", UNIGRAM(ROBERTA, ""));
    hn_gguf *g = there_and_back();
    assert_int_equal(hn_gguf_find(g, "tokenizer.ggml.add_sep_token"), -1); /* as is taken for granted */
    assert_true(hn_vocab_parts_twice(g, HN_VOCAB_UGM));
    hn_gguf_close(g);
    has_pair("<s> A </s> </s> B </s>", false);
    has_inputs("[\"input_ids\",\"attention_mask\"]");

    file("tokenizer.json",
         UNIGRAM(AROUND(TEXT_A "," PART("</s>"), TEXT_A "," PART("</s>") "," TEXT_B "," PART("</s>")), "")); /* T5 */
    g = there_and_back();
    has_flag(g, "tokenizer.ggml.add_sep_token", false);
    hn_gguf_close(g);
    has_pair("A </s> B </s>", false);

    file("tokenizer.json", BYTE_LEVEL(ROBERTA));
    g = there_and_back();
    has_flag(g, "tokenizer.ggml.add_sep_token", true);
    hn_gguf_close(g);
    has_pair("<s> A </s> </s> B </s>", false);
    file("tokenizer.json",
         BYTE_LEVEL("\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",1],\"cls\":[\"<s>\",0]},"));
    file("tokenizer_config.json", "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}");
    g = there_and_back();
    has_flag(g, "tokenizer.ggml.add_sep_token", true);
    hn_gguf_close(g);
    has_pair("<s> A </s> </s> B </s>", false);
    file("tokenizer.json",
         BYTE_LEVEL(AROUND(PART("<s>") "," TEXT_A, PART("<s>") "," TEXT_A "," PART("<s>") "," TEXT_B)));
    g = there_and_back(); /* Llama 3 */
    assert_int_equal(hn_gguf_find(g, "tokenizer.ggml.add_sep_token"), -1);
    hn_gguf_close(g);
    has_pair("<s> A <s> B", false);
    clear(folder);
}

/* Tokens of bytes come back as such. */
static void test_unigram_bytes(void **state)
{
    clear(folder);
    file("tokenizer.json", UNIGRAM("", ",[\"<0x0A>\",0]"));
    hn_gguf *g = there_and_back();
    has_tokens(g, "<s>/3 </s>/3 <unk>/2 \u2581a/1 <0x0A>/6");
    hn_gguf_close(g);
    json_t *all = back_json("tokenizer.json");
    assert_true(json_is_true(json_object_get(json_object_get(all, "model"), "byte_fallback")));
    const json_t *list = json_object_get(json_object_get(all, "decoder"), "decoders");
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "type")), "ByteFallback");
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "prepend_scheme")), "always");
    json_decref(all);
    clear(folder);
}

/* A space that nobody put before the text is not taken away. */
static void test_unigram_spaces(void **state)
{
    char text[2048], merged[2048];
    clear(folder);
    snprintf(text, sizeof text, "%s", UNIGRAM("", ""));
    char *end = strstr(text, "\"Metaspace\"}");
    assert_non_null(end);
    snprintf(merged, sizeof merged, "%.*s\"Metaspace\",\"prepend_scheme\":\"never\"%s", (int)(end - text), text,
             end + strlen("\"Metaspace\""));
    file("tokenizer.json", merged);
    hn_gguf *g = there_and_back();
    has_flag(g, "tokenizer.ggml.add_space_prefix", false);
    hn_gguf_close(g);
    assert_string_equal(notes, "");
    json_t *all = back_json("tokenizer.json");
    const json_t *decoder = json_object_get(all, "decoder");
    assert_string_equal(json_string_value(json_object_get(decoder, "prepend_scheme")), "never");
    json_decref(all);
    end = strstr(merged, "\"normalizer\":null");
    assert_non_null(end);
    snprintf(text, sizeof text,
             "%.*s\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}%s",
             (int)(end - merged), merged, end + strlen("\"normalizer\":null"));
    file("tokenizer.json", text);
    hn_gguf_close(made(0, NULL));
    assert_non_null(strstr(notes, "no space goes before the text"));
    clear(folder);
}

static void test_pieces(void **state)
{
    clear(folder);
    file("tokenizer.json",
         "{\"added_tokens\":[" ADDED(0, "[UNK]", true) "," ADDED(1, "[CLS]", true) "," ADDED(
             2, "[SEP]",
             true) "],\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":false},\"pre_tokenizer\":{\"type\":"
                   "\"BertPreTokenizer\"},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]"
                   "\":0,"
                   "\"[CLS]\":1,\"[SEP]\":2,\"a\":3,\"##b\":4}}}");
    file("special_tokens_map.json", "{\"cls_token\":\"[CLS]\",\"sep_token\":\"[SEP]\"}");
    hn_gguf *g = made(0, "{\"type_vocab_size\":2}");
    has_text(g, "tokenizer.ggml.model", "bert");
    has_tokens(g, "[UNK]/3 [CLS]/3 [SEP]/3 \u2581a/1 b/1");
    has_number(g, "tokenizer.ggml.cls_token_id", 1);
    has_number(g, "tokenizer.ggml.seperator_token_id", 2);
    has_number(g, "tokenizer.ggml.unknown_token_id", 0);
    has_number(g, "tokenizer.ggml.token_type_count", 2);
    has_flag(g, "tokenizer.ggml.normalizer.lowercase", false);
    hone_error err = { 0 };
    clear(back);
    if (hn_hf_tokenizer_write(back, g, NULL, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    hn_gguf_close(g);
    g = made_from(back, NULL, NULL, 0, NULL);
    has_tokens(g, "[UNK]/3 [CLS]/3 [SEP]/3 \u2581a/1 b/1");
    has_flag(g, "tokenizer.ggml.normalizer.lowercase", false);
    hn_gguf_close(g);
    has_pair("[CLS] A [SEP] B [SEP]", true);
    has_inputs("[\"input_ids\",\"token_type_ids\",\"attention_mask\"]");
    clear(folder);
    file("tokenizer.json",
         "{\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\","
         "\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},{\"type\":\"Metaspace\"}]},\"model\":{"
         "\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"</s>\",0],[\"<unk>\",0.0],[\"\u2581a\",-2.5]]}}");
    g = made(0, NULL);
    has_tokens(g, "</s>/1 <unk>/2 \u2581a/1");
    has_list(g, "tokenizer.ggml.scores", "0|0|-2.5");
    has_flag(g, "tokenizer.ggml.remove_extra_whitespaces", true);
    has_flag(g, "tokenizer.ggml.add_space_prefix", true);
    hn_gguf_close(g);
}

static void test_ranks(void **state)
{
    clear(folder);
    file("x.tiktoken", "YQ== 0\nYg== 1\nIA== 2\nYWI= 3\nIGFi 4\n"); /* a, b, space, ab, " ab" */
    file("tokenizer_config.json", "{\"tokenizer_class\":\"QWenTokenizer\"}");
    hn_gguf *g = made(0, NULL);
    has_tokens(g, "a/1 b/1 \u0120/1 ab/1 \u0120ab/1");
    has_list(g, "tokenizer.ggml.merges", "a b|\u0120 ab");
    has_text(g, "tokenizer.ggml.pre", "qwen2");
    hn_gguf_close(g);
    file("x.tiktoken", "YQ== 0\nY!== 1\n");
    refused(HONE_E_FORMAT, NULL, 0, "line 2: \"Y!==\" is no base64");
    file("x.tiktoken", "YQ== 0\nYg== x\n");
    refused(HONE_E_FORMAT, NULL, 0, "line 2: \"Yg== x\", expected base64, a space and a rank");
    file("x.tiktoken", "YQ== 0\nYg== 0\n");
    refused(HONE_E_FORMAT, NULL, 0, "id 0 is \"a\" and \"b\"");
    file("x.tiktoken", "YQ== 0\nYQ== 1\n");
    refused(HONE_E_FORMAT, NULL, 0, "\"a\" has the ids 0 and 1");
    static char many[64 * 1024]; /* every part of "aaa…" is a token: nearly all of it would be merges */
    size_t n = 0;
    for (int i = 1; i <= 257; i++) {
        for (int b = 0; b < i / 3; b++) n += (size_t)snprintf(many + n, sizeof many - n, "YWFh");
        n += (size_t)snprintf(many + n, sizeof many - n, "%s %d\n", i % 3 == 1 ? "YQ==" : i % 3 ? "YWE=" : "", i - 1);
    }
    assert_true(n + 1 < sizeof many);
    file("x.tiktoken", many);
    refused(HONE_E_FORMAT, "gpt-2", 0, "is no base64 of 1 to 256 bytes"); /* 257 */
    *strrchr(many, 'Y') = 0;
    many[strlen(many) - strlen(strrchr(many, '\n') + 1)] = 0;
    file("x.tiktoken", many);
    refused(HONE_E_FORMAT, "gpt-2", 0, "its merges are more than 64 times its tokens");
    file("x.tiktoken", "YQ== 999999999\n");
    refused(HONE_E_FORMAT, NULL, 0, "expected ids without large gaps");
    clear(folder);
    file("tekken.json",
         "{\"config\":{\"pattern\":\"" CAT1 "\",\"default_vocab_size\":5,\"default_num_special_tokens\":3},\"vocab\":[{"
         "\"rank\":0,\"token_bytes\":\"YQ==\"},{\"rank\":1,\"token_bytes\":\"Yg==\"},{\"rank\":2,\"token_bytes\":\"YWI="
         "\"}"
         "],\"special_tokens\":[{\"rank\":0,\"token_str\":\"<unk>\"},{\"rank\":1,\"token_str\":\"<s>\"}]}");
    g = made(0, NULL);
    has_tokens(g, "<unk>/3 <s>/3 <SPECIAL_2>/3 a/1 b/1");
    has_number(g, "tokenizer.ggml.bos_token_id", 1);
    hn_gguf_close(g);
#define TEKKEN(version, n, n_special, list)                                      \
    "{\"config\":{\"pattern\":\"" CAT1 "\"," version "\"default_vocab_size\":" n \
    ",\"default_num_special_tokens\":" n_special "},\"vocab\":[{\"rank\":0,\"token_bytes\":\"YQ==\"}]" list "}"
    file("tekken.json", TEKKEN("\"version\":\"v7\",", "22", "21", ""));
    g = made(0, NULL);
    has_tokens(g, "<unk>/3 <s>/3 </s>/3 [INST]/3 [/INST]/3 [AVAILABLE_TOOLS]/3 [/AVAILABLE_TOOLS]/3 [TOOL_RESULTS]/3 "
                  "[/TOOL_RESULTS]/3 [TOOL_CALLS]/3 [IMG]/3 <pad>/3 [IMG_BREAK]/3 [IMG_END]/3 [PREFIX]/3 [MIDDLE]/3 "
                  "[SUFFIX]/3 [SYSTEM_PROMPT]/3 [/SYSTEM_PROMPT]/3 [TOOL_CONTENT]/3 <SPECIAL_20>/3 a/1");
    has_number(g, "tokenizer.ggml.bos_token_id", 1);
    has_number(g, "tokenizer.ggml.eos_token_id", 2);
    hn_gguf_close(g);
    file("tekken.json", TEKKEN("\"version\":\"v3\",", "22", "21", ",\"special_tokens\":null"));
    hn_gguf_close(made(0, NULL));
    file("tekken.json", TEKKEN("\"version\":\"v11\",", "22", "21", ""));
    refused(HONE_E_FORMAT, NULL, 0, "version \"v11\" without special_tokens");
    file("tekken.json", TEKKEN("", "22", "21", ""));
    refused(HONE_E_FORMAT, NULL, 0, "version \"\" without special_tokens");
    file("tekken.json", TEKKEN("\"version\":\"v7\",", "20", "19", ""));
    refused(HONE_E_FORMAT, NULL, 0, "19 special tokens and no list");
    file("tekken.json", TEKKEN("\"version\":\"v7\",", "22", "21", ",\"special_tokens\":{}"));
    refused(HONE_E_FORMAT, NULL, 0, "special_tokens is an object");
}

static void test_refused(void **state)
{
    clear(folder);
    file("x.tiktoken", "YQ== 0\nYg== 1\n");
    file("generation_config.json", "{\"eos_token_id\":[1,\"0\"]}");
    refused(HONE_E_FORMAT, "gpt-2", 0, "eos_token_id has a string, expected whole numbers");
    file("generation_config.json", "{\"suppress_tokens\":[1,null]}");
    refused(HONE_E_FORMAT, "gpt-2", 0, "suppress_tokens has null, expected whole numbers");
    clear(folder);
    refused(HONE_E_IO, NULL, 0, "no vocabulary; expected tokenizer.json");
    static const struct {
        const char *json, *words;
        hone_status code;
        uint64_t n_vocab;
    } all[] = {
        { "{", "not JSON", HONE_E_FORMAT, 0 },
        { "[]", "expected", HONE_E_FORMAT, 0 },
        { "{\"model\":null}", "no \"model\"", HONE_E_FORMAT, 0 },
        { "{\"model\":{\"type\":\"BPE\"}}", "has no \"vocab\"", HONE_E_FORMAT, 0 },
        { "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{}}}", "type WordLevel", HONE_E_UNSUPPORTED, 0 },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{}}}", "without ByteLevel and without byte_fallback",
          HONE_E_UNSUPPORTED, 0 },
        { BPE("", SPLIT("[a-z]+"), WORDS, MERGES), "regex [a-z]+", HONE_E_UNSUPPORTED, 0 },
        { BPE("", "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", WORDS, MERGES),
          "prefix-space", HONE_E_UNSUPPORTED, 0 },
        { BPE("", SPLIT(CAT1), WORDS, "\"x\":0"), "no \"merges\"", HONE_E_FORMAT, 0 },
        { BPE("", SPLIT(CAT1), WORDS, "\"merges\":[\"a c\"]"), "merge 0 is \"a c\"", HONE_E_FORMAT, 0 },
        { BPE("", SPLIT(CAT1), WORDS, "\"merges\":[[\"a\"]]"), "two parts", HONE_E_FORMAT, 0 },
        { BPE("", SPLIT(CAT1), WORDS, "\"merges\":[[\"a\",\"b\",\"a\"]]"), "no more than two parts", HONE_E_FORMAT, 0 },
        { BPE("", SPLIT(CAT1), WORDS, MERGES), "has id 4, but the embedding has 4 rows", HONE_E_FORMAT, 4 },
        { BPE("", SPLIT(CAT1), "\"vocab\":{\"a\":0,\"b\":0}", MERGES), "id 0 is \"a\" and \"b\"", HONE_E_FORMAT, 0 },
        { BPE("", SPLIT(CAT1), "\"vocab\":{\"a\":0,\"a\":1}", MERGES), "\"a\" has the ids 0 and 1", HONE_E_FORMAT, 0 },
        { BPE("", SPLIT(CAT1), "\"vocab\":{\"a\":-1}", MERGES), "expected", HONE_E_FORMAT, 0 },
        { BPE("", SPLIT(CAT1), "\"vocab\":{\"a\":4000000000}", MERGES), "without large gaps", HONE_E_FORMAT, 0 },
        { BPE(ADDED(0, "x", true), SPLIT(CAT1), WORDS, MERGES), "added token 0 is \"x\", but the vocabulary has \"a\"",
          HONE_E_FORMAT, 0 },
        { BPE("{\"id\":1}", SPLIT(CAT1), WORDS, MERGES), "\"id\" and \"content\"", HONE_E_FORMAT, 0 },
        { BPE(ADDED(5, "", true), SPLIT(CAT1), WORDS, MERGES), "added token 5 is empty", HONE_E_FORMAT, 0 },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        file("tokenizer.json", all[i].json);
        refused(all[i].code, NULL, all[i].n_vocab, all[i].words);
    }
    file("tokenizer.json", BPE("", SPLIT("[a-z]+"), WORDS, MERGES));
    hn_gguf_close(made_from(folder, "qwen2", NULL, 0, NULL)); /* what --pre is for */
    file("tokenizer_config.json", "{\"added_tokens_decoder\":{\"x\":{\"content\":\"y\"}}}");
    refused(HONE_E_FORMAT, "qwen2", 0, "added_tokens_decoder[\"x\"]");
    file("tokenizer_config.json", "{\"chat_template\":[{\"name\":\"x\"}]}");
    refused(HONE_E_FORMAT, "qwen2", 0, "chat_template[0]");
    file("tokenizer_config.json", "[]");
    refused(HONE_E_FORMAT, "qwen2", 0, "expected an object");
}

#define ENDS(last)                                                                                                 \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}," \
    "{\"SpecialToken\":{\"id\":\"" last "\",\"type_id\":0}}]}"

/* What ends a text is the template's, as in Qwen3-Embedding; what ended turns does it still. */
static void test_template_ends(void **state)
{
    clear(folder);
    file("tokenizer.json", BPE(ADDED(5, "<|endoftext|>", true) "," ADDED(6, "<|im_end|>", true),
                               SPLIT(CAT1) "," ENDS("<|endoftext|>"), WORDS, MERGES));
    file("tokenizer_config.json", "{\"eos_token\":\"<|im_end|>\"}");
    hn_gguf *g = made(0, NULL);
    hn_gguf_array a;
    int32_t ends[2];
    has_flag(g, "tokenizer.ggml.add_eos_token", true);
    has_number(g, "tokenizer.ggml.eos_token_id", 5);
    has_number(g, "tokenizer.ggml.eot_token_id", 6);
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.eos_token_ids", &a, NULL, NULL), HONE_OK);
    assert_int_equal(a.count, 2);
    memcpy(ends, a.data, sizeof ends);
    assert_int_equal(ends[0], 5);
    assert_int_equal(ends[1], 6);
    assert_non_null(strstr(notes, "texts end with token 5"));
    hn_gguf_close(g);
    file("tokenizer_config.json", "{\"eos_token\":\"<|im_end|>\",\"add_eos_token\":false}"); /* nothing is added */
    g = made(0, NULL);
    has_number(g, "tokenizer.ggml.eos_token_id", 6);
    hn_gguf_close(g);
}

/* Gemma 3's <image_soft_token> has no row in the models that see nothing. */
static void test_beyond(void **state)
{
    clear(folder);
    file("tokenizer.json", BPE(ADDED(5, "<x>", true) "," ADDED(6, "<y>", true), SPLIT(CAT1), WORDS, MERGES));
    file("added_tokens.json", "{\"<y>\":6}");
    hn_gguf *g = made(6, NULL);
    hn_gguf_array a;
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.tokens", &a, NULL, NULL), HONE_OK);
    assert_int_equal(a.count, 6);
    assert_non_null(strstr(notes, "behind the 6 rows of the embedding are left out; the first is \"<y>\", id 6"));
    hn_gguf_close(g);
}

static void test_gaps(void **state)
{
    clear(folder);
    file("tokenizer.json", BPE(ADDED(9, "<x>", true), SPLIT(CAT1), WORDS, MERGES));
    hn_gguf *g = made(0, NULL);
    has_tokens(g, "a/1 b/1 \u0120/1 ab/1 \u0120ab/1 [PAD5]/5 [PAD6]/5 [PAD7]/5 [PAD8]/5 <x>/3");
    assert_non_null(strstr(notes, "4 ids have no token"));
    assert_non_null(strstr(notes, "\"<x>\" has id 9 behind ids without a token; transformers would move it to 5"));
    hn_gguf_close(g);
}

static void test_no_form(void **state)
{
    hn_gguf_writer *w = NULL;
    hn_gguf *g = NULL;
    hone_error err = { 0 };
    hone_str t[2] = { { "a", 1 }, { "\xFF", 1 } };
    static const char *const models[] = { "rwkv", "llama", "none" };
    static const char *const words[] = { "for which transformers has no form", "is no UTF-8", "" };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hn_gguf_writer_new(&w, &err), HONE_OK);
        hn_gguf_put_str(w, "tokenizer.ggml.model", models[i], strlen(models[i]), &err);
        hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", t, 2, &err);
        assert_int_equal(hn_gguf_write_begin(w, out, &err), HONE_OK);
        assert_int_equal(hn_gguf_write_end(w, &err), HONE_OK);
        hn_gguf_writer_free(w);
        assert_int_equal(hn_gguf_open(&g, out, &err), HONE_OK);
        clear(back);
        hone_status st = hn_hf_tokenizer_write(back, g, NULL, NULL, &err);
        assert_int_equal(st, *words[i] ? HONE_E_UNSUPPORTED : HONE_OK);
        if (*words[i] && !strstr(err.message, words[i])) fail_msg("%s", err.message);
        assert_int_equal(rmdir(back), 0); /* nothing is left */
        assert_int_equal(mkdir(back, 0700), 0);
        hn_gguf_close(g);
    }
}

/* Lists of a file that lie: what is written is JSON, and sorted by numbers. */
static void test_odd_lists(void **state)
{
    static const struct {
        const char *model;
        float score;
        int32_t type;
        const char *words;
    } rows[] = { { "llama", NAN, 1, "tokenizer.ggml.scores[1] is nan" },
                 { "t5", -INFINITY, 1, "tokenizer.ggml.scores[1] is -inf" },
                 { "llama", 0, 200, "tokenizer.ggml.token_type[1] is 200; expected 0 to 6" },
                 { "llama", -INFINITY, 1, NULL } };
    hone_str t[2] = { { "a", 1 }, { "b", 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const float score[2] = { 0, rows[i].score };
        const int32_t type[2] = { 1, rows[i].type };
        hn_gguf_writer *w = NULL;
        hn_gguf *g = NULL;
        hone_error err = { 0 };
        assert_int_equal(hn_gguf_writer_new(&w, &err), HONE_OK);
        hn_gguf_put_str(w, "tokenizer.ggml.model", rows[i].model, strlen(rows[i].model), &err);
        hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", t, 2, &err);
        hn_gguf_put_array(w, "tokenizer.ggml.scores", HONE_KV_F32, score, 2, &err);
        hn_gguf_put_array(w, "tokenizer.ggml.token_type", HONE_KV_I32, type, 2, &err);
        assert_int_equal(hn_gguf_write_begin(w, out, &err), HONE_OK);
        assert_int_equal(hn_gguf_write_end(w, &err), HONE_OK);
        hn_gguf_writer_free(w);
        assert_int_equal(hn_gguf_open(&g, out, &err), HONE_OK);
        clear(back);
        hone_status st = hn_hf_tokenizer_write(back, g, NULL, NULL, &err);
        assert_int_equal(st, rows[i].words ? HONE_E_FORMAT : HONE_OK);
        if (rows[i].words && !strstr(err.message, rows[i].words)) fail_msg("%s", err.message);
        hn_gguf_close(g);
    }
}

/* Templates by their files' names: all of a folder, or none. */
static void test_folder_of_templates(void **state)
{
    char sub[128], name[64], key[64];
    hone_str text;
    clear(folder);
    file("tokenizer.json", BPE("", SPLIT(CAT1), WORDS, MERGES));
    snprintf(sub, sizeof sub, "%s/additional_chat_templates", folder);
    assert_int_equal(mkdir(sub, 0700), 0);
    file("additional_chat_templates/t.txt", "no template");
    for (int i = 32; i > 0; i--) {
        snprintf(name, sizeof name, "additional_chat_templates/t%02d.jinja", i);
        snprintf(key, sizeof key, "of %02d", i);
        file(name, key);
    }
    hn_gguf *g = made(0, NULL);
    for (int i = 1; i <= 32; i++) {
        snprintf(key, sizeof key, "tokenizer.chat_template.t%02d", i);
        assert_int_equal(hn_gguf_get_str(g, key, &text, NULL, NULL), HONE_OK);
        snprintf(name, sizeof name, "of %02d", i);
        assert_true(text.len == 5 && !memcmp(text.ptr, name, 5));
    }
    hn_gguf_close(g);
    file("additional_chat_templates/t33.jinja", "one more");
    refused(HONE_E_FORMAT, NULL, 0, "additional_chat_templates: more than 32 chat templates");
    clear(sub);
    assert_int_equal(rmdir(sub), 0);
    assert_int_equal(symlink("additional_chat_templates", sub), 0); /* no folder can be read by that name */
    refused(HONE_E_IO, NULL, 0, "additional_chat_templates: the folder cannot be read");
    assert_int_equal(unlink(sub), 0);
    hn_gguf_close(made(0, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),          cmocka_unit_test(test_merges_file),
        cmocka_unit_test(test_characters),     cmocka_unit_test(test_sentencepiece),
        cmocka_unit_test(test_pieces),         cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_pairs),          cmocka_unit_test(test_unigram_bytes),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_template_ends),
        cmocka_unit_test(test_beyond),         cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_no_form),        cmocka_unit_test(test_folder_of_templates),
        cmocka_unit_test(test_odd_lists),      cmocka_unit_test(test_fairseq),
        cmocka_unit_test(test_unigram_spaces),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
