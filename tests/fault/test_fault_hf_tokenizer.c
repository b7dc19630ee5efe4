/* Out of memory at every possible place of a vocabulary's way from a folder into a GGUF and back: the k-th allocation
 * fails, for k = 1, 2, … until it succeeds. Each failure is HONE_E_NOMEM with a message. */
#define _GNU_SOURCE
#include "forge/hf_tokenizer.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fail_each.h"

static char dir[64], in[80], back[80], out[80];

static void clear(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
}

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-fault-words-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(in, sizeof in, "%s/in", dir);
    snprintf(back, sizeof back, "%s/back", dir);
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    return mkdir(in, 0700) || mkdir(back, 0700);
}
static int remove_dir(void **state)
{
    clear(in);
    clear(back);
    return rmdir(in) || rmdir(back) || unlink(out) || rmdir(dir);
}

static void file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", in, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static const char *from;
static hone_status put(hone_error *err)
{
    hn_hf_tokenizer t = { .folder = from, .pre = from == in ? "qwen2" : NULL, .n_vocab = 12 };
    hn_gguf_writer *w = NULL;
    void *p = NULL;
    size_t n;
    hone_status st = hn_gguf_writer_new(&w, err);
    if (st == HONE_OK) st = hn_hf_tokenizer_put(w, &t, err);
    if (st == HONE_OK) st = hn_gguf_write_keys(w, &p, &n, err);
    if (st == HONE_OK) {
        FILE *f = fopen(out, "w");
        if (!f || fwrite(p, 1, n, f) != n || fclose(f)) fail_msg("%s", out);
    }
    free(p);
    hn_gguf_writer_free(w);
    return st;
}

static hone_status go_back(hone_error *err)
{
    hn_gguf *g = NULL;
    hone_status st = hn_gguf_open(&g, out, err);
    if (st == HONE_OK) st = hn_hf_tokenizer_write(back, g, NULL, NULL, err);
    hn_gguf_close(g);
    return st;
}

static void bytes(void **state)
{
    file("tokenizer_config.json", "{\"eos_token\":\"<e>\",\"chat_template\":\"T\",\"added_tokens_decoder\":{\"6\":{"
                                  "\"content\":\"<e>\",\"special\":true}}}");
    file("vocab.json", "{\"a\":0,\"b\":1,\"ab\":2}");
    file("merges.txt", "a b\n");
    from = in;
    fail_each(put);
    fail_each(go_back);
    clear(in);
    from = back;
    fail_each(put); /* tokenizer.json has no qwen2 but its expression */
    clear(back);
    file("x.tiktoken", "YQ== 0\nYg== 1\nYWI= 2\n");
    from = in;
    fail_each(put);
    clear(in);
}

static void characters(void **state)
{
    file(
        "tokenizer.json",
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},{\"id\":4,\"content\":\"\u2581\u2581\"}],"
        "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" "
        "\"},\"content\":\"\u2581\"},\"model\":{\"type\":"
        "\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"\u2581\":1,\"a\":2,"
        "\"\u2581a\":3},"
        "\"merges\":[\"\u2581 a\"]}}");
    char named[96];
    snprintf(named, sizeof named, "%s/.", in); /* no split is chosen */
    from = named;
    fail_each(put);
    fail_each(go_back);
    from = back; /* with tokenizer.model */
    fail_each(put);
    clear(in);
    clear(back);
}

static void pieces(void **state)
{
    char named[96];
    snprintf(named, sizeof named, "%s/.", in);
    from = named;
    file("tokenizer.json",
         "{\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"model\":{"
         "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"a\":1,\"##b\":2}}}");
    fail_each(put);
    fail_each(go_back);
    clear(back);
    file("tokenizer.json",
         "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"},\"pre_tokenizer\":{\"type\":"
         "\"Metaspace\"},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\u2581a\",-1]]}}");
    fail_each(put);
    fail_each(go_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(bytes), cmocka_unit_test(characters),
                                        cmocka_unit_test(pieces) };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
