/* What names of models mean, part by part; which files of a repository are one model; which of the models is taken. */
#define _GNU_SOURCE
#include "hub/names.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];

/* ---- forms ------------------------------------------------------------------------------------------ */

typedef struct form {
    const char *text;
    hn_name_kind kind;
    const char *repo, *rev, *tag, *path, *host; /* NULL: "" */
    bool folder;
    const char *again; /* hn_name_text; NULL: as text */
} form;

static const form forms[] = {
    { "org/repo", HN_NAME_HUB, .repo = "org/repo" },
    { "org/repo:Q4_K_M", HN_NAME_HUB, .repo = "org/repo", .tag = "Q4_K_M" },
    { "org/repo@v1.2:q8_0", HN_NAME_HUB, .repo = "org/repo", .rev = "v1.2", .tag = "q8_0" },
    { "org/repo@refs/pr/12:Q6_K", HN_NAME_HUB, .repo = "org/repo", .rev = "refs/pr/12", .tag = "Q6_K" },
    { "org/repo@0123456789012345678901234567890123456789", HN_NAME_HUB, .repo = "org/repo",
      .rev = "0123456789012345678901234567890123456789" },
    { "org/repo/x.gguf", HN_NAME_HUB, .repo = "org/repo", .path = "x.gguf" },
    { "https://huggingface.co/org/x.gguf", HN_NAME_HUB, .repo = "org/x.gguf", .again = "hf.co/org/x.gguf" },
    { "hf.co/org/x.gguf@a.gguf", HN_NAME_HUB, .repo = "org/x.gguf", .rev = "a.gguf" },
    { "hf.co/org/x.gguf:Q8_0", HN_NAME_HUB, .repo = "org/x.gguf", .tag = "Q8_0", .again = "org/x.gguf:Q8_0" },
    { "org/repo@main/sub/x-00001-of-00002.gguf", HN_NAME_HUB, .repo = "org/repo", .rev = "main",
      .path = "sub/x-00001-of-00002.gguf" },
    { "org/repo@refs/pr/1/x.gguf", HN_NAME_HUB, .repo = "org/repo", .rev = "refs/pr/1", .path = "x.gguf" },
    { "hf.co/org/repo:Q4_K_M", HN_NAME_HUB, .repo = "org/repo", .tag = "Q4_K_M", .again = "org/repo:Q4_K_M" },
    { "huggingface.co/org/repo/", HN_NAME_HUB, .repo = "org/repo", .again = "org/repo" },
    { "hf://org/repo@dev/config.json", HN_NAME_HUB, .repo = "org/repo", .rev = "dev", .path = "config.json",
      .again = "hf.co/org/repo@dev/config.json" },
    { "https://huggingface.co/org/repo", HN_NAME_HUB, .repo = "org/repo", .again = "org/repo" },
    { "HTTPS://HuggingFace.co/org/repo", HN_NAME_HUB, .repo = "org/repo", .again = "org/repo" },
    { "https://huggingface.co/org/repo.git", HN_NAME_HUB, .repo = "org/repo", .again = "org/repo" },
    { "https://huggingface.co/org/repo/resolve/main/a%20b/x.gguf?download=true", HN_NAME_HUB, .repo = "org/repo",
      .rev = "main", .path = "a b/x.gguf", .again = "org/repo@main/a b/x.gguf" },
    { "https://huggingface.co/org/repo/blob/refs%2Fpr%2F3/x.gguf#L1", HN_NAME_HUB, .repo = "org/repo",
      .rev = "refs/pr/3", .path = "x.gguf", .again = "org/repo@refs/pr/3/x.gguf" },
    { "https://hf.co/org/repo/tree/main", HN_NAME_HUB, .repo = "org/repo", .rev = "main", .again = "org/repo@main" },
    { "https://hf.co/org/repo/tree/main/BF16", HN_NAME_HUB, .repo = "org/repo", .rev = "main", .path = "BF16",
      .folder = true, .again = "hf.co/org/repo/tree/main/BF16" },
    { "https://huggingface.co/org/repo/blob/a%2Fb/x.gguf", HN_NAME_HUB, .repo = "org/repo", .rev = "a/b",
      .path = "x.gguf", .again = "org/repo@a%2Fb/x.gguf" },
    { "org/repo@a%2Fb:Q6_K", HN_NAME_HUB, .repo = "org/repo", .rev = "a/b", .tag = "Q6_K" },
    { "https://hf.co/org/repo/tree/refs%2Fpr%2F1/a%3Fb", HN_NAME_HUB, .repo = "org/repo", .rev = "refs/pr/1",
      .path = "a?b", .folder = true, .again = "hf.co/org/repo/tree/refs%2Fpr%2F1/a%3Fb" },
    { "hf.co/org/repo/raw/a%2525/b%23c", HN_NAME_HUB, .repo = "org/repo", .rev = "a%25", .path = "b#c",
      .again = "hf.co/org/repo/blob/a%2525/b%23c" },
    { "hf.co/hf.co/repo", HN_NAME_HUB, .repo = "hf.co/repo" },
    { "http://127.0.0.1:4711/org/repo/resolve/main/x.gguf", HN_NAME_HUB, .repo = "org/repo", .rev = "main",
      .path = "x.gguf", .again = "org/repo@main/x.gguf" }, /* HF_ENDPOINT */
    { "https://example.org/m/x.gguf?token=1", HN_NAME_URL, .repo = NULL },
    { "https://example.org/x.gguf#part", HN_NAME_URL, .again = "https://example.org/x.gguf" },
    { "ollama:llama3.2", HN_NAME_OLLAMA, .repo = "library/llama3.2", .tag = "latest", .host = "registry.ollama.ai" },
    { "ollama:llama3.2:1b-instruct-q8_0", HN_NAME_OLLAMA, .repo = "library/llama3.2", .tag = "1b-instruct-q8_0",
      .host = "registry.ollama.ai" },
    { "ollama:me/mine:v1", HN_NAME_OLLAMA, .repo = "me/mine", .tag = "v1", .host = "registry.ollama.ai" },
    { "ollama:localhost:5000/me/mine", HN_NAME_OLLAMA, .repo = "me/mine", .tag = "latest", .host = "localhost:5000" },
    { "https://ollama.com/library/qwen3:4b", HN_NAME_OLLAMA, .repo = "library/qwen3", .tag = "4b",
      .host = "registry.ollama.ai", .again = "ollama:qwen3:4b" },
    { "llama3.2", HN_NAME_BARE, .repo = "llama3.2" },
    { "llama3.2:1b", HN_NAME_BARE, .repo = "llama3.2", .tag = "1b" },
    /* paths, whether anything is there or not */
    { "", HN_NAME_NONE, .repo = NULL },
    { "model.gguf", HN_NAME_NONE, .repo = NULL },
    { "dir/model.gguf", HN_NAME_NONE, .repo = NULL },
    { "./org/repo", HN_NAME_NONE, .repo = NULL },
    { "../org/repo", HN_NAME_NONE, .repo = NULL },
    { "/org/repo", HN_NAME_NONE, .repo = NULL },
    { "~/org/repo", HN_NAME_NONE, .repo = NULL },
    { "-", HN_NAME_NONE, .repo = NULL },
    { "a b", HN_NAME_NONE, .repo = NULL },
    { "org/re--po", HN_NAME_NONE, .repo = NULL },
    { "org/re..po/x.gguf", HN_NAME_NONE, .repo = NULL },
    { "org/.repo", HN_NAME_NONE, .repo = NULL },
    { "org/repo/sub/folder", HN_NAME_NONE, .repo = NULL },
    { "org/repo/../../x.gguf", HN_NAME_NONE, .repo = NULL },
    { "org/repo/a//x.gguf", HN_NAME_NONE, .repo = NULL },
    { "a\\b", HN_NAME_NONE, .repo = NULL },
};

static void means(void **state)
{
    setenv("HF_ENDPOINT", "http://127.0.0.1:4711/", 1);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const form *f = &forms[i];
        hn_name n, again;
        hone_error err = { 0 };
        char text[HN_NAME_URL_MAX];
        if (hn_name_parse(&n, f->text, &err) != HONE_OK) fail_msg("%s: %s", f->text, err.message);
        if (n.kind != f->kind) fail_msg("%s: kind %d, expected %d", f->text, (int)n.kind, (int)f->kind);
        assert_string_equal(n.repo, f->repo ? f->repo : "");
        assert_string_equal(n.rev, f->rev ? f->rev : "");
        assert_string_equal(n.tag, f->tag ? f->tag : "");
        assert_string_equal(n.path, f->path ? f->path : "");
        assert_string_equal(n.host, f->host ? f->host : "");
        assert_int_equal(n.folder, f->folder);
        if (n.kind == HN_NAME_NONE) continue;
        assert_string_equal(hn_name_text(text, sizeof text, &n), f->again ? f->again : f->text);
        assert_int_equal(hn_name_parse(&again, text, &err), HONE_OK);
        assert_memory_equal(&n, &again, sizeof n);
    }
    unsetenv("HF_ENDPOINT");
}

static void refused(void **state)
{
    static const char *const bad[][2] = {
        { "hf.co/org", "owner/repo" },
        { "hf.co/../repo", "owner/repo" },
        { "hf.co/org/-repo", "owner/repo" },
        { "hf.co/org/repo/../x", "what follows" },
        { "hf.co/org/repo@", "what follows" },
        { "hf.co/org/repo@a..b", "what follows" },
        { "org/repo@bad..rev:Q4_0", "what follows" },
        { "org/repo:", "quantization" },
        { "org/repo:Q4 K", "quantization" },
        { "https://huggingface.co/datasets/org/x", "a model" },
        { "https://huggingface.co/org/repo/resolve/main", "what follows" },
        { "https://huggingface.co/org/repo/resolve/main/%2e%2e/%2e%2e/x", "what follows" },
        { "https://huggingface.co/org/repo/resolve/main/a%00b", "what follows" },
        { "https://huggingface.co/org/repo/blob/main/x%zz", "what follows" },
        { "ftp://example.org/x.gguf", "the beginning" },
        { "https:///x.gguf", "the host" },
        { "https://example.org/a b.gguf", "a character" },
        { "ollama:", "the name" },
        { "ollama:../../etc", "the host" },
        { "ollama:a/b/c/d", "the name" },
        { "ollama:x:../y", "namespace" },
        { "ollama:a/../b", "namespace" },
        { "ollama:me/..", "the name" },
        { "ollama:me/x:a:b", "the tag" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hn_name n;
        hone_error err = { 0 };
        if (hn_name_parse(&n, bad[i][0], &err) != HONE_E_ARG) fail_msg("%s: taken", bad[i][0]);
        assert_int_equal(n.kind, HN_NAME_NONE);
        if (!strstr(err.message, bad[i][1]) || !strstr(err.message, "expected"))
            fail_msg("%s: \"%s\" does not say \"%s\"", bad[i][0], err.message, bad[i][1]);
    }
}

static void of_urls(void **state)
{
    static const char *const rows[][2] = { { "https://h/a/x.gguf?y=/z", "x.gguf" },
                                           { "https://h/a%20b%C3%A9.gguf#z", "a b\xC3\xA9.gguf" },
                                           { "https://h/", NULL },
                                           { "https://h", NULL },
                                           { "https://h?a/b", NULL },
                                           { "https://h/a%2Fb", NULL },
                                           { "https://h/%2e%2e", NULL },
                                           { "https://h/a%00b", NULL },
                                           { "https://h/a%0ab", NULL },
                                           { "https://h/a%ffb", NULL },
                                           { "https://h/a%5cb", NULL },
                                           { "https://h/a%zz", NULL } };
    char file[HN_NAME_FILE], longest[300] = "https://h/";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool good = hn_name_url_file(file, rows[i][0]);
        if (good != (rows[i][1] != NULL)) fail_msg("%s", rows[i][0]);
        if (good) assert_string_equal(file, rows[i][1]);
    }
    memset(longest + 10, 'a', HN_NAME_FILE - 1);
    assert_true(hn_name_url_file(file, longest));
    longest[10 + HN_NAME_FILE - 1] = 'a';
    assert_false(hn_name_url_file(file, longest)); /* never cut */
}

/* Any text: no crash, and what is let through is fit for a path. */
static void anything(void **state)
{
    static const char *const pieces[] = { "org",      "/",      "repo",     "@",      ":",       "..",
                                          ".",        "hf.co/", "https://", "hf://",  "ollama:", "huggingface.co/",
                                          "resolve/", "tree/",  "blob/",    "main",   "%2F",     "%2e",
                                          "%",        "#",      "?",        "x.gguf", "-",       "--",
                                          "\\",       "\n",     "\xff",     "é",      " ",       "refs/pr/1",
                                          "Q4_K_M" };
    for (uint64_t k = 0; k < 200000; k++) {
        char text[200] = "";
        size_t n_piece = hn_rand64(1, k) % 9, n = 0;
        for (size_t i = 0; i < n_piece; i++) {
            const char *p = pieces[hn_rand64(2, 10 * k + i) % (sizeof pieces / sizeof *pieces)];
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", p);
        }
        hn_name a;
        if (hn_name_parse(&a, text, NULL) != HONE_OK || a.kind == HN_NAME_NONE) continue;
        if (a.kind == HN_NAME_HUB) assert_true(hn_hub_repo_ok(a.repo));
        if (*a.rev) assert_true(hn_hub_rev_ok(a.rev));
        if (*a.path) assert_true(hn_hub_path_ok(a.path));
        if (*a.tag) assert_true(hn_ollama_part_ok(a.tag));
        if (a.kind == HN_NAME_HUB) assert_null(strstr(a.repo, ".."));
        assert_null(strchr(a.tag, '/'));
    }
    char *huge = malloc(100000);
    assert_non_null(huge);
    static const char *const starts[] = { "",        "org/",        "hf.co/org/", "https://x/",
                                          "ollama:", "ollama:h/n/", "org/r@",     "org/r:" };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        hn_name n;
        memset(huge, 'a', 99999);
        huge[99999] = 0;
        memcpy(huge, starts[i], strlen(starts[i]));
        hn_name_parse(&n, huge, NULL);
    }
    free(huge);
}

static void parts(void **state)
{
    assert_true(hn_hub_oid_ok("0123456789012345678901234567890123456789"));
    assert_false(hn_hub_oid_ok("012345678901234567890123456789012345678"));
    assert_false(hn_hub_oid_ok("0123456789012345678901234567890123456789/"));
    assert_false(hn_hub_oid_ok("ABCDEF6789012345678901234567890123456789"));
    assert_true(hn_hub_path_ok("a/b c/é.gguf"));
    assert_false(hn_hub_path_ok("a/\xff"));
    assert_false(hn_hub_path_ok("a\x01"
                                "b"));
    assert_false(hn_hub_path_ok("a/./b"));
    assert_false(hn_hub_path_ok("a/"));
    assert_true(hn_hub_path_ok("..."));
    char name[300];
    memset(name, 'a', sizeof name);
    name[255] = 0;
    assert_true(hn_hub_path_ok(name));
    name[255] = 'a';
    name[256] = 0;
    assert_false(hn_hub_path_ok(name));
    assert_true(hn_hub_rev_ok("refs/pr/1"));
    assert_false(hn_hub_rev_ok("a//b"));
    assert_false(hn_hub_rev_ok("/a"));
    assert_false(hn_hub_rev_ok("a/.b"));
}

/* ---- short names ------------------------------------------------------------------------------------------ */

static void put(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/hone", dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/hone/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static hone_status expand(const char *text, char *out, hone_error *err)
{
    hn_name n;
    hone_status st = hn_name_parse(&n, text, err);
    if (st == HONE_OK) st = hn_name_expand(&n, err);
    hn_name_text(out, HN_NAME_URL_MAX, &n);
    return st;
}

static void short_names(void **state)
{
    hn_short_names s;
    char out[HN_NAME_URL_MAX];
    hone_error err = { 0 };
    assert_int_equal(hn_short_names_read(&s, &err), HONE_OK);
    assert_true(s.n >= 30);
    for (size_t i = 0; i < s.n; i++) { /* each stands for a repository, and no two are one */
        hn_name n;
        assert_int_equal(hn_name_parse(&n, s.list[i].means, &err), HONE_OK);
        assert_int_equal(n.kind, HN_NAME_HUB);
        assert_true(hn_ollama_part_ok(s.list[i].name));
        if (i) assert_true(strcasecmp(s.list[i - 1].name, s.list[i].name) < 0);
    }
    hn_short_names_free(&s);
    assert_int_equal(expand("llama3.2:1b", out, &err), HONE_OK);
    assert_string_equal(out, "bartowski/Llama-3.2-1B-Instruct-GGUF");
    assert_int_equal(expand("LLAMA3.2:Q8_0", out, &err), HONE_OK);
    assert_string_equal(out, "bartowski/Llama-3.2-3B-Instruct-GGUF:Q8_0");
    assert_int_equal(expand("nobody", out, &err), HONE_OK);
    assert_string_equal(out, "nobody");

    put("names", "# mine\nmine me/mine-GGUF:Q6_K # the best\nllama3.2 me/other\r\nits ollama:x:1b\n\n");
    assert_int_equal(expand("mine", out, &err), HONE_OK);
    assert_string_equal(out, "me/mine-GGUF:Q6_K");
    hn_name wanted = { .kind = HN_NAME_BARE, .repo = "mine", .checkpoint = true }; /* what is wanted of it stays */
    assert_int_equal(hn_name_expand(&wanted, &err), HONE_OK);
    assert_true(wanted.kind == HN_NAME_HUB && wanted.checkpoint);
    assert_int_equal(expand("mine:Q8_0", out, &err), HONE_OK);
    assert_string_equal(out, "me/mine-GGUF:Q8_0");
    assert_int_equal(expand("llama3.2", out, &err), HONE_OK);
    assert_string_equal(out, "me/other");
    assert_int_equal(expand("its", out, &err), HONE_OK);
    assert_string_equal(out, "ollama:x:1b");

    static const char *const bad[][2] = { { "x\n", ":1" },         { "\nx/y a/b\n", ":2" }, { "x ../../y\n", ":1" },
                                          { "x a/b c/d\n", ":1" }, { "x hf.co/a\n", ":1" }, { "x y\n", ":1" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("names", bad[i][0]);
        assert_int_equal(expand("mine", out, &err), HONE_E_ARG);
        assert_non_null(strstr(err.message, bad[i][1]));
        assert_non_null(strstr(err.message, "hone/names"));
    }
    put("names", "");
    unlink("names");
}

/* ---- sets and the choice --------------------------------------------------------------------------------- */

static void tags(void **state)
{
    static const char *const rows[][2] = {
        { "Llama-3.2-3B-Instruct-Q4_K_M.gguf", "Q4_K_M" },
        { "qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf", "q4_k_m" },
        { "mistral-7b.Q5_0.gguf", "Q5_0" },
        { "a/b/Model-UD-Q2_K_XL.gguf", "UD-Q2_K_XL" },
        { "x-IQ3_XXS.GGUF", "IQ3_XXS" },
        { "gpt-oss-20b-mxfp4.gguf", "mxfp4" },
        { "x-BF16.gguf", "BF16" },
        { "x-TQ1_0.gguf", "TQ1_0" },
        { "gemma-3-1b-it.gguf", "" },
        { "Qwen2-7B.gguf", "" },
        { "Phi-3-mini-4k-instruct-q4.gguf", "q4" },
        { "x-Q9.gguf", "" },
        { "x-Q4x.gguf", "" },
        { "Qwen3.6-27B-MTP-Q4_K_M.gguf", "Q4_K_M" },
        { "x-UD-IQ4_NL_XL.gguf", "UD-IQ4_NL_XL" },
        { "Q4_K_M.gguf", "Q4_K_M" },
        { "x-Q4_K_M-imat.gguf", "Q4_K_M" },
        { "ggml-model-q4_k_m_imatrix.gguf", "q4_k_m" },
        { "x-Q4_K_M-imatrix.gguf", "Q4_K_M" },
        { "x_imatrix.gguf", "" },
        { "gemma_2_2b_it_Q4_K_M.gguf", "Q4_K_M" },
        { "x_UD-Q2_K_XL.gguf", "UD-Q2_K_XL" },
        { "x_f16.gguf", "f16" },
        { "x_q4.gguf", "q4" },
        { "x_3_8B.gguf", "" },
        { "sub.Q8_0/x.gguf", "" },
        { "Q4_K_M/model-00001-of-00003.gguf", "Q4_K_M" },
        { "a/UD-Q2_K_XL/model.gguf", "UD-Q2_K_XL" },
        { "Q8_0/x-F16.gguf", "F16" },
        { "Q8_0/sub/x.gguf", "" },
        { "UD-/x.gguf", "" },
        { "Thundercloud-Q4_K_M.gguf", "Q4_K_M" },
        { "UD-Q4_K_M.gguf", "UD-Q4_K_M" },
        { "x-Q4_K M.gguf", "" }, /* no name that could be typed */
        { "x-Q4_\xC2\x9B"
          "31m.gguf",
          "" },
        { "x-MXFP4_\x1b[m.gguf", "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char tag[48];
        hn_gguf_tag(tag, rows[i][0]);
        assert_string_equal(tag, rows[i][1]);
    }
}

#define GIB ((uint64_t)1 << 30)

static const hn_repo_file repo[] = {
    { "README.md", 100 },
    { "mmproj-model-f16.gguf", GIB },
    { "m.imatrix.gguf", GIB },
    { "m-Q8_0.gguf", 8 * GIB },
    { "m-Q4_K_M.gguf", 5 * GIB },
    { "m-Q2_K.gguf", 3 * GIB },
    { "m-Q6_K-00002-of-00002.gguf", 3 * GIB },
    { "m-Q6_K-00001-of-00002.gguf", 3 * GIB },
    { "BF16/m-BF16-00001-of-00003.gguf", 5 * GIB },
    { "BF16/m-BF16-00003-of-00003.gguf", 5 * GIB },
};
enum { N_REPO = sizeof repo / sizeof *repo };

static hone_status choose(const hn_repo_file *files, size_t n, const char *name, uint64_t memory, char *first,
                          size_t *n_file, hone_error *err)
{
    hn_gguf_sets sets;
    hn_name as;
    size_t which;
    char why[300];
    *first = 0;
    assert_int_equal(hn_name_parse(&as, name, err), HONE_OK);
    assert_int_equal(hn_gguf_sets_of(&sets, files, n, err), HONE_OK);
    hone_status st = hn_gguf_choose(&which, why, sizeof why, &sets, files, &as, memory, err);
    if (st == HONE_OK) {
        snprintf(first, 200, "%s", files[sets.set[which].file[0]].path);
        *n_file = sets.set[which].n_file;
        assert_true(strlen(why) > 10);
    }
    hn_gguf_sets_free(&sets);
    return st;
}

static void chosen(void **state)
{
    static const struct {
        const char *name;
        uint64_t memory;
        const char *first; /* NULL: refused with st and a word of it */
        hone_status st;
        const char *word;
    } rows[] = {
        { "o/m", 0, "m-Q4_K_M.gguf", HONE_OK, NULL },
        { "o/m", 64 * GIB, "m-Q4_K_M.gguf", HONE_OK, NULL },
        { "o/m", 5 * GIB, "m-Q2_K.gguf", HONE_OK, NULL }, /* 5 GiB of weights need more than that */
        { "o/m", 2 * GIB, NULL, HONE_E_NOMEM, "o/m:Q2_K takes it all the same" },
        { "o/m:q2_k", GIB, "m-Q2_K.gguf", HONE_OK, NULL },
        { "o/m:Q6_K", 0, "m-Q6_K-00001-of-00002.gguf", HONE_OK, NULL },
        { "o/m:BF16", 0, NULL, HONE_E_FORMAT, "part 2 of 3" },
        { "o/m:Q5_K_M", 0, NULL, HONE_E_ARG, "Q4_K_M 5.00 GiB" },
        { "o/m/m-Q6_K-00002-of-00002.gguf", 0, "m-Q6_K-00001-of-00002.gguf", HONE_OK, NULL },
        { "o/m/none.gguf", 0, NULL, HONE_E_ARG, "no such model" },
        { "hf.co/o/m/tree/main/BF16", 0, NULL, HONE_E_FORMAT, "part 2 of 3" },
        { "hf.co/o/m/tree/main/Q9", 0, NULL, HONE_E_ARG, "folder" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char first[200];
        size_t n_file = 0;
        hone_error err = { 0 };
        hone_status st = choose(repo, N_REPO, rows[i].name, rows[i].memory, first, &n_file, &err);
        if (st != rows[i].st) fail_msg("%s: %d, expected %d: %s", rows[i].name, (int)st, (int)rows[i].st, err.message);
        if (rows[i].first) assert_string_equal(first, rows[i].first);
        if (rows[i].word && !strstr(err.message, rows[i].word)) fail_msg("%s: %s", rows[i].name, err.message);
        if (strstr(rows[i].name, "Q6_K")) assert_int_equal(n_file, 2);
    }
}

static void chosen_elsewhere(void **state)
{
    char first[200];
    size_t n;
    hone_error err = { 0 };
    /* small: Q8_0 */
    const hn_repo_file small[] = { { "s-Q4_K_M.gguf", GIB / 2 }, { "s-Q8_0.gguf", GIB }, { "s-F16.gguf", 2 * GIB } };
    assert_int_equal(choose(small, 3, "o/s", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "s-Q8_0.gguf");
    /* the only one, of no type */
    const hn_repo_file one[] = { { "x.gguf", 9 * GIB }, { "x.md", 1 } };
    assert_int_equal(choose(one, 2, "o/x", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "x.gguf");
    assert_int_equal(choose(one, 2, "o/x@v1", GIB, first, &n, &err), HONE_E_NOMEM);
    assert_non_null(strstr(err.message, " o/x@v1/x.gguf takes it all the same"));
    assert_int_equal(choose(one, 2, "o/x@v1/x.gguf", GIB, first, &n, &err), HONE_OK);
    const hn_repo_file apart[] = { { "x-Q8_0.gguf", 9 * GIB }, { "deep/x-Q8_0.gguf", 8 * GIB } };
    assert_int_equal(choose(apart, 2, "hf.co/o/x/tree/main/deep", GIB, first, &n, &err), HONE_E_NOMEM);
    assert_non_null(strstr(err.message, " o/x@main/deep/x-Q8_0.gguf takes it all the same"));
    /* upwards before downwards */
    const hn_repo_file gap[] = { { "x-Q3_K_M.gguf", 3 * GIB },
                                 { "x-Q5_K_M.gguf", 5 * GIB },
                                 { "x-Q8_0.gguf", 8 * GIB } };
    assert_int_equal(choose(gap, 3, "o/x", 64 * GIB, first, &n, &err), HONE_OK);
    assert_string_equal(first, "x-Q5_K_M.gguf");
    assert_int_equal(choose(gap, 3, "o/x", 4 * GIB, first, &n, &err), HONE_OK);
    assert_string_equal(first, "x-Q3_K_M.gguf");
    /* two models of one type */
    const hn_repo_file two[] = { { "a-Q4_K_M.gguf", GIB }, { "b-Q4_K_M.gguf", GIB } };
    assert_int_equal(choose(two, 2, "o/x:Q4_K_M", 0, first, &n, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "a-Q4_K_M.gguf and b-Q4_K_M.gguf"));
    assert_int_equal(choose(two, 2, "o/x", 0, first, &n, &err), HONE_E_ARG);
    /* none, none of a type, sizes beyond numbers */
    assert_int_equal(choose(one + 1, 1, "o/x", 0, first, &n, &err), HONE_E_UNSUPPORTED);
    const hn_repo_file odd[] = { { "a.gguf", GIB }, { "b.gguf", GIB } };
    assert_int_equal(choose(odd, 2, "o/x", 0, first, &n, &err), HONE_E_ARG);
    const hn_repo_file vast[] = { { "x-Q4_0-00001-of-00002.gguf", UINT64_MAX }, { "x-Q4_0-00002-of-00002.gguf", 2 } };
    assert_int_equal(choose(vast, 2, "o/x", 64 * GIB, first, &n, &err), HONE_E_NOMEM);
    /* a file that a listing has twice */
    const hn_repo_file twice[] = { { "x-Q4_0.gguf", 5 }, { "x-Q4_0.gguf", 5 } };
    hn_gguf_sets same;
    assert_int_equal(hn_gguf_sets_of(&same, twice, 2, &err), HONE_OK);
    assert_true(same.n == 1 && same.set[0].bytes == 5 && same.set[0].n_missing == 0);
    hn_gguf_sets_free(&same);
    /* numbers of parts that are none */
    const hn_repo_file parts_off[] = { { "x-00003-of-00002.gguf", 1 },
                                       { "y-00000-of-00002.gguf", 1 },
                                       { "z-00001-of-99999.gguf", 1 } };
    hn_gguf_sets sets;
    assert_int_equal(hn_gguf_sets_of(&sets, parts_off, 3, &err), HONE_OK);
    assert_int_equal(sets.n, 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(sets.set[i].n_file, 1);
    hn_gguf_sets_free(&sets);
}

/* A model that a repository holds whole and in parts, too, is one: Qwen/Qwen2.5-Coder-7B-Instruct-GGUF. */
static void chosen_once(void **state)
{
    const hn_repo_file both[] = { { "m-q4_k_m-00001-of-00002.gguf", 4 * GIB },
                                  { "m-q4_k_m-00002-of-00002.gguf", GIB + 900 },
                                  { "m-q4_k_m.gguf", 5 * GIB },
                                  { "m-q6_k-00001-of-00002.gguf", 3 * GIB }, /* the other part is not there */
                                  { "m-q6_k.gguf", 6 * GIB },
                                  { "m-q8_0-00001-of-00002.gguf", 4 * GIB }, /* of another size: another model */
                                  { "m-q8_0-00002-of-00002.gguf", 6 * GIB },
                                  { "m-q8_0.gguf", 8 * GIB } };
    enum { N = sizeof both / sizeof *both };
    static const struct {
        const char *name, *first;
        size_t n_file;
    } rows[] = {
        { "o/m", "m-q4_k_m.gguf", 1 },
        { "o/m:Q4_K_M", "m-q4_k_m.gguf", 1 },
        { "o/m/m-q4_k_m.gguf", "m-q4_k_m.gguf", 1 },
        { "o/m/m-q4_k_m-00002-of-00002.gguf", "m-q4_k_m-00001-of-00002.gguf", 2 },
        { "o/m:Q6_K", "m-q6_k.gguf", 1 },
    };
    char first[200], why[300];
    size_t n, which;
    hone_error err = { 0 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (choose(both, N, rows[i].name, 0, first, &n, &err) != HONE_OK) fail_msg("%s: %s", rows[i].name, err.message);
        assert_string_equal(first, rows[i].first);
        assert_int_equal(n, rows[i].n_file);
    }
    assert_int_equal(choose(both, N, "o/m:Q8_0", 0, first, &n, &err), HONE_E_ARG);
    assert_int_equal(choose(both, 2, "o/m:q4_k_m", 0, first, &n, &err), HONE_OK); /* in parts alone */
    assert_int_equal(n, 2);
    hn_gguf_sets sets; /* that it is there twice makes no choice of it */
    hn_name name;
    assert_int_equal(hn_name_parse(&name, "o/m", &err), HONE_OK);
    assert_int_equal(hn_gguf_sets_of(&sets, both, 3, &err), HONE_OK);
    assert_int_equal(hn_gguf_choose(&which, why, sizeof why, &sets, both, &name, 0, &err), HONE_OK);
    assert_non_null(strstr(why, "the only one there"));
    hn_gguf_sets_free(&sets);
}

/* Two of a type that does not fit are no question: one that fits is taken. */
static void chosen_of_what_fits(void **state)
{
    const hn_repo_file files[] = { { "a-Q4_K_M.gguf", 9 * GIB },
                                   { "b-Q4_K_M.gguf", 9 * GIB },
                                   { "a-Q2_K.gguf", 3 * GIB } };
    char first[200];
    size_t n;
    hone_error err = { 0 };
    assert_int_equal(choose(files, 3, "o/m", 5 * GIB, first, &n, &err), HONE_OK);
    assert_string_equal(first, "a-Q2_K.gguf");
    assert_int_equal(choose(files, 3, "o/m", 64 * GIB, first, &n, &err), HONE_E_ARG);
    assert_int_equal(choose(files, 3, "o/m:Q4_K_M", 5 * GIB, first, &n, &err), HONE_E_ARG);
    assert_int_equal(choose(files, 2, "o/m", 5 * GIB, first, &n, &err), HONE_E_NOMEM);
    assert_non_null(strstr(err.message, " o/m/a-Q4_K_M.gguf takes it all the same"));
}

/* Plain cuts of a file are no models, and no nothing: they are named with what makes one of them. */
static void cut_up(void **state)
{
    const hn_repo_file files[] = { { "m.Q8_0.gguf-split-b", GIB },
                                   { "m.Q8_0.gguf-split-a", 5 * GIB },
                                   { "sub/m.Q6_K.gguf.part2of2", GIB },
                                   { "sub/m.Q6_K.gguf.part1of2", 4 * GIB },
                                   { "sub/m.Q6_K.gguf.part1of2", 4 * GIB }, /* a listing has it twice */
                                   { "m-BF16.gguf.part-10of12", 9 * GIB },
                                   { "m-BF16.gguf.part-2of12", 9 * GIB },
                                   { "m.mmproj-F16.gguf.part1of2", GIB },
                                   { "m.Q4_0.gguf.parts", GIB },
                                   { "m.Q4_0.gguf.part3of2", GIB },
                                   { "m.Q4_0.gguf.sha256", 64 },
                                   { "m.Q4_K_M.gguf", 3 * GIB } };
    enum { N = sizeof files / sizeof *files };
    static const struct {
        const char *name;
        hone_status st;
        const char *says[3];
    } rows[] = {
        { "o/m",
          HONE_E_UNSUPPORTED,
          { "sub/m.Q6_K.gguf is cut into 2 parts that must be joined", "hone pull hf.co/o/m/sub/m.Q6_K.gguf.part1of2 ",
            "cat m.Q6_K.gguf.part1of2 m.Q6_K.gguf.part2of2 > m.Q6_K.gguf" } },
        { "o/m:q8_0",
          HONE_E_ARG,
          { "m.Q8_0.gguf is cut into 2 parts", "cat m.Q8_0.gguf-split-a m.Q8_0.gguf-split-b > m.Q8_0.gguf", "" } },
        { "o/m/m.Q8_0.gguf", HONE_E_ARG, { "m.Q8_0.gguf is cut into 2 parts", "", "" } },
        { "o/m:BF16", HONE_E_ARG, { "is cut into 12 parts, of which 2 are there", "", "" } },
        { "o/m:Q2_K",
          HONE_E_ARG,
          { "no model of type Q2_K", "Q6_K 5.00 GiB (cut into 2 parts)", "Q8_0 6.00 GiB (cut" } },
        { "o/m/m.Q2_K.gguf", HONE_E_ARG, { "no such model", "Q6_K 5.00 GiB (cut into 2 parts)", "" } },
    };
    char first[200];
    size_t n;
    hone_error err = { 0 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t whole = 0; whole < 2; whole++) { /* the last file, which is one */
            if (whole && i == 0) continue;
            hone_status st = choose(files, N - 1 + whole, rows[i].name, 0, first, &n, &err);
            if (st != rows[i].st) fail_msg("%s: %d: %s", rows[i].name, st, err.message);
            for (int k = 0; k < 3; k++)
                if (!strstr(err.message, rows[i].says[k]))
                    fail_msg("%s: \"%s\" lacks \"%s\"", rows[i].name, err.message, rows[i].says[k]);
        }
    assert_int_equal(choose(files, N, "o/m", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "m.Q4_K_M.gguf");
    /* many parts are not all written out, and their order is that of numbers; no command is made of such a name */
    hn_repo_file many[12], odd = { "a;b.Q6_K.gguf.part1of1", GIB };
    char names[12][40];
    for (int i = 0; i < 12; i++) {
        snprintf(names[i], sizeof names[i], "m.Q6_K.gguf.part%dof12", 12 - i);
        many[i] = (hn_repo_file){ names[i], GIB };
    }
    assert_int_equal(choose(many, 12, "o/m", 0, first, &n, &err), HONE_E_UNSUPPORTED);
    assert_non_null(
        strstr(err.message, "cat m.Q6_K.gguf.part1of12 m.Q6_K.gguf.part2of12 … m.Q6_K.gguf.part12of12 > m"));
    assert_int_equal(choose(&odd, 1, "o/m", 0, first, &n, &err), HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "joined in their order"));
    assert_null(strstr(err.message, "cat "));
}

static size_t n_sets(const char *path)
{
    hn_repo_file file = { path, GIB };
    hn_gguf_sets sets;
    hone_error err;
    assert_int_equal(hn_gguf_sets_of(&sets, &file, 1, &err), HONE_OK);
    size_t n = sets.n;
    hn_gguf_sets_free(&sets);
    return n;
}

/* What drafts for a model is no model; what drafts for itself is one. */
static void drafts(void **state)
{
    static const char *const whole[] = { "Qwen3.6-27B-MTP-Q4_K_M.gguf",
                                         "hy3-1M-MTP-Q4_K_M.gguf",
                                         "x-mtp-Q8_0.gguf",
                                         "mtp.gguf",
                                         "Q8_0/Qwen3.5-35B-A3B-MTP-Q4_K_M.gguf",
                                         "ggml-model-q4_k_m_imatrix.gguf",
                                         "x-Q4_K_M-imatrix.gguf",
                                         "x-imatrix-IQ2_XXS.gguf" };
    static const char *const side[] = {
        "mtp-x-Q8_0.gguf",    "MTP-x-Q8_0.gguf",   "a/eagle3-x-BF16.gguf", "dflash-draft-3.6-q8_0.gguf",
        "DSpark-x.gguf",      "mmproj-x-F16.gguf", "x-MMPROJ-f16.gguf",    "x.imatrix.gguf",
        "x-imatrix.gguf",     "imatrix_x.gguf",    "imatrix-x-Q8_0.gguf",  "a/x-BF16-imatrix.gguf",
        "Q8_0/x-imatrix.gguf"
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (n_sets(whole[i]) != 1) fail_msg("%s is no model", whole[i]);
    for (size_t i = 0; i < sizeof side / sizeof *side; i++)
        if (n_sets(side[i]) != 0) fail_msg("%s is a model", side[i]);

    char first[200];
    size_t n;
    hone_error err = { 0 };
    const hn_repo_file beside[] = { { "m-Q4_K_M.gguf", 16 * GIB },
                                    { "m-Q8_0.gguf", 28 * GIB },
                                    { "m-assistant-MTP-Q8_0.gguf", GIB / 4 } };
    assert_int_equal(choose(beside, 3, "o/m", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "m-Q4_K_M.gguf");
    assert_int_equal(choose(beside, 3, "o/m:Q8_0", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "m-Q8_0.gguf");
    assert_int_equal(choose(beside, 3, "o/m/m-assistant-MTP-Q8_0.gguf", 0, first, &n, &err), HONE_OK);
    assert_int_equal(choose(beside, 3, "o/m", 8 * GIB, first, &n, &err), HONE_E_NOMEM); /* the draft fits */
    assert_non_null(strstr(err.message, "16.00 GiB"));
    assert_int_equal(choose(beside + 2, 1, "o/m", 8 * GIB, first, &n, &err), HONE_OK); /* it alone */
    /* small, of no such name */
    const hn_repo_file helper[] = { { "m-Q4_K_M.gguf", 16 * GIB }, { "m-helper-Q8_0.gguf", GIB } };
    assert_int_equal(choose(helper, 2, "o/m", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "m-Q4_K_M.gguf");
    assert_int_equal(choose(helper, 2, "o/m", 8 * GIB, first, &n, &err), HONE_OK);
    assert_string_equal(first, "m-helper-Q8_0.gguf");
    /* whole ones, the smallest beside the largest */
    const hn_repo_file self[] = { { "m-MTP-UD-IQ1_M.gguf", 7 * GIB }, { "m-MTP-BF16.gguf", 54 * GIB } };
    assert_int_equal(choose(self, 2, "o/m", 16 * GIB, first, &n, &err), HONE_OK);
    assert_string_equal(first, "m-MTP-UD-IQ1_M.gguf");
}

/* Sizes of a model of 1B weights: its file of one bit and more has four for each. */
static void large_embeddings(void **state)
{
    const hn_repo_file files[] = { { "m-UD-IQ1_S.gguf", 536u << 20 },
                                   { "m-Q8_0.gguf", 1020u << 20 },
                                   { "m-BF16.gguf", 1912u << 20 } };
    char first[200];
    size_t n;
    hone_error err = { 0 };
    assert_int_equal(choose(files, 3, "o/m", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "m-Q8_0.gguf");
}

/* Models that were made with an imatrix, beside those made without; and the imatrix itself. */
static void imatrices(void **state)
{
    char first[200];
    size_t n;
    hone_error err = { 0 };
    const hn_repo_file alone[] = { { "ggml-model-q4_k_m_imatrix.gguf", 21 * GIB },
                                   { "ggml-model-q2_k_imatrix.gguf", 12 * GIB },
                                   { "imatrix.gguf", GIB / 64 } };
    assert_int_equal(choose(alone, 3, "o/m", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "ggml-model-q4_k_m_imatrix.gguf");
    assert_int_equal(choose(alone, 3, "o/m:q2_k", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "ggml-model-q2_k_imatrix.gguf");
    assert_int_equal(choose(alone, 3, "o/m", 8 * GIB, first, &n, &err), HONE_E_NOMEM);
    assert_non_null(strstr(err.message, "o/m:q2_k takes it all the same"));
    const hn_repo_file both[] = { { "m-Q4_K_M-imatrix.gguf", 5 * GIB - 4096 }, { "m-Q4_K_M.gguf", 5 * GIB } };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(choose(both, 2, i ? "o/m:Q4_K_M" : "o/m", 0, first, &n, &err), HONE_OK);
        assert_string_equal(first, "m-Q4_K_M.gguf");
    }
    assert_int_equal(choose(both, 2, "o/m/m-Q4_K_M-imatrix.gguf", 0, first, &n, &err), HONE_OK);
    assert_string_equal(first, "m-Q4_K_M-imatrix.gguf");
    assert_int_equal(choose(both, 2, "o/m", GIB, first, &n, &err), HONE_E_NOMEM); /* the smaller one by its path */
    assert_non_null(strstr(err.message, " o/m/m-Q4_K_M-imatrix.gguf takes it all the same"));
    /* shards of the plain one that are not all there */
    const hn_repo_file half[] = { { "m-Q4_K_M-00001-of-00002.gguf", 3 * GIB }, { "m-Q4_K_M-imatrix.gguf", 5 * GIB } };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(choose(half, 2, i ? "o/m:Q4_K_M" : "o/m", 0, first, &n, &err), HONE_OK);
        assert_string_equal(first, "m-Q4_K_M-imatrix.gguf");
    }
    assert_int_equal(choose(half, 1, "o/m:Q4_K_M", 0, first, &n, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "part 2 of 2 is missing"));
    const hn_repo_file imatrix[] = { half[0], { "m-Q4_K_M-imatrix.gguf", GIB / 64 } },
                       other[] = { half[0], { "x-Q4_K_M.gguf", GIB } };
    assert_int_equal(choose(imatrix, 2, "o/m:Q4_K_M", 0, first, &n, &err), HONE_E_FORMAT);
    assert_int_equal(choose(other, 2, "o/m:Q4_K_M", 0, first, &n, &err), HONE_E_ARG); /* another model is not meant */
    /* as small as an imatrix is, whatever its name says */
    const hn_repo_file measured[] = { { "m-Q4_K_M-imatrix.gguf", GIB / 64 }, { "m-Q4_K_M.gguf", 5 * GIB } };
    assert_int_equal(choose(measured, 2, "o/m:q4_k_m", GIB, first, &n, &err), HONE_OK);
    assert_string_equal(first, "m-Q4_K_M.gguf");
    assert_int_equal(choose(measured, 2, "o/m", 2 * GIB, first, &n, &err), HONE_E_NOMEM);
}

/* Types by the names that repositories have today. */
static void orders(void **state)
{
    static const struct {
        const char *name;
        uint64_t memory;
        hn_repo_file file[4];
        const char *first; /* NULL: refused */
    } rows[] = {
        { "o/m",
          21 * GIB,
          { { "m-UD-Q4_K_XL.gguf", 22360000000 },
            { "m-UD-IQ4_XS.gguf", 17700000000 },
            { "m-UD-Q2_K_XL.gguf", 12290000000 } },
          "m-UD-IQ4_XS.gguf" },
        { "o/m", 0, { { "m-UD-Q4_K_M.gguf", 9 * GIB }, { "m-Q4_K_M.gguf", 9 * GIB } }, "m-UD-Q4_K_M.gguf" },
        { "o/m", 0, { { "m-UD-Q5_K_XL.gguf", 9 * GIB }, { "m-UD-Q3_K_XL.gguf", 5 * GIB } }, "m-UD-Q5_K_XL.gguf" },
        { "o/m", 0, { { "m-UD-IQ2_M.gguf", 9 * GIB }, { "m-UD-IQ3_XXS.gguf", 11 * GIB } }, "m-UD-IQ3_XXS.gguf" },
        { "o/m", 0, { { "m-MXFP4_MOE.gguf", 9 * GIB }, { "m-Q8_0.gguf", 17 * GIB } }, "m-MXFP4_MOE.gguf" },
        { "o/m", 0, { { "m-q4.gguf", 3 * GIB }, { "m-fp16.gguf", 8 * GIB } }, "m-q4.gguf" },
        { "o/m", 0, { { "m-FP32.gguf", 3 * GIB }, { "m-FP16.gguf", 2 * GIB } }, "m-FP16.gguf" },
        { "o/m", 0, { { "m-UD-Q8_K_XL.gguf", 9 * GIB }, { "m-BF16.gguf", 14 * GIB } }, "m-UD-Q8_K_XL.gguf" },
        { "o/m:q4", 0, { { "m-q4.gguf", 3 * GIB }, { "m-fp16.gguf", 8 * GIB } }, "m-q4.gguf" },
        { "o/m:q4_k_m", 0, { { "m-UD-Q4_K_M.gguf", 9 * GIB }, { "m-UD-Q4_K_S.gguf", 8 * GIB } }, "m-UD-Q4_K_M.gguf" },
        { "o/m:UD-Q4_K_M", 0, { { "m-Q4_K_M.gguf", 9 * GIB }, { "m-Q8_0.gguf", 8 * GIB } }, NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char first[200];
        size_t n = 0, n_file;
        hone_error err = { 0 };
        while (n < 4 && rows[i].file[n].path) n++;
        hone_status st = choose(rows[i].file, n, rows[i].name, rows[i].memory, first, &n_file, &err);
        assert_int_equal(st, rows[i].first ? HONE_OK : HONE_E_ARG);
        if (rows[i].first) assert_string_equal(first, rows[i].first);
    }
}

static int begin(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-names-XXXXXX");
    return mkdtemp(dir) && setenv("XDG_CONFIG_HOME", dir, 1) == 0 ? 0 : -1;
}

static int end(void **state)
{
    char path[200];
    snprintf(path, sizeof path, "%s/hone/names", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/hone", dir);
    rmdir(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means),
        cmocka_unit_test(refused),
        cmocka_unit_test(anything),
        cmocka_unit_test(of_urls),
        cmocka_unit_test(parts),
        cmocka_unit_test(short_names),
        cmocka_unit_test(tags),
        cmocka_unit_test(chosen),
        cmocka_unit_test(chosen_elsewhere),
        cmocka_unit_test(imatrices),
        cmocka_unit_test(drafts),
        cmocka_unit_test(large_embeddings),
        cmocka_unit_test(orders),
        cmocka_unit_test(chosen_once),
        cmocka_unit_test(cut_up),
        cmocka_unit_test(chosen_of_what_fits),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
