/* The caches of models: paths that no server can lead astray, publishing, what is found of it, and what is removed. */
#define _GNU_SOURCE
#include "hub/cache.h"
#include "hub/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64], root[100];

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define OTHER "fedcba9876543210fedcba9876543210fedcba98"
#define OID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define OID_C "cccccccccccccccccccccccccccccccccccccccc"

/* A path below the test's folder; eight at a time. */
static const char *at(const char *name)
{
    static char path[8][700];
    static int k;
    k = (k + 1) % 8;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

static void put(const char *name, const char *text)
{
    char path[700];
    snprintf(path, sizeof path, "%s", at(name));
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static bool there(const char *name)
{
    struct stat sb;
    return lstat(at(name), &sb) == 0;
}

static int drop(const char *path, const struct stat *sb, int kind, struct FTW *f) { return remove(path); }

static int fresh(void **state)
{
    if (*dir) nftw(dir, drop, 16, FTW_DEPTH | FTW_PHYS);
    snprintf(dir, sizeof dir, "/tmp/hone-cache-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(root, sizeof root, "%s/hub", dir);
    setenv("HOME", dir, 1);
    setenv("HF_HUB_CACHE", root, 1);
    setenv("OLLAMA_MODELS", at("ollama"), 1);
    setenv("XDG_DATA_HOME", at("data"), 1);
    setenv("XDG_CONFIG_HOME", at("config"), 1);
    unsetenv("HONE_MODELS");
    return chdir(dir);
}

static int end(void **state) { return chdir("/") == 0 ? nftw(dir, drop, 16, FTW_DEPTH | FTW_PHYS) : -1; }

/* ---- where ------------------------------------------------------------------------------------------ */

static void roots(void **state)
{
    static const char *const vars[] = { "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME" };
    static const char *const tokens[] = { "/home/x/.cache/huggingface/token", "/var/c/huggingface/token",
                                          "/home/x/hf/token" };
    static const struct {
        const char *var, *value, *root;
    } rows[] = { /* from the last that counts to the first, each on top of those before */
                 { "HOME", "/home/x", "/home/x/.cache/huggingface/hub" },
                 { "XDG_CACHE_HOME", "/var/c/", "/var/c/huggingface/hub" },
                 { "HF_HOME", "~/hf", "/home/x/hf/hub" },
                 { "HUGGINGFACE_HUB_CACHE", "/old", "/old" },
                 { "HF_HUB_CACHE", "/new///", "/new" }
    };
    char path[HN_CACHE_PATH];
    hone_error err;
    for (size_t i = 0; i < 5; i++) unsetenv(vars[i]);
    assert_int_equal(hn_cache_root(path, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "HF_HUB_CACHE"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv(rows[i].var, rows[i].value, 1);
        assert_int_equal(hn_cache_root(path, &err), HONE_OK);
        assert_string_equal(path, rows[i].root);
        assert_int_equal(hn_cache_token_path(path, &err), HONE_OK);
        assert_string_equal(path, tokens[i < 2 ? i : 2]);
    }
    setenv("HF_TOKEN_PATH", "~/t", 1);
    assert_int_equal(hn_cache_token_path(path, &err), HONE_OK);
    assert_string_equal(path, "/home/x/t");
    unsetenv("HF_TOKEN_PATH");
    setenv("HF_HUB_CACHE", "", 1); /* empty is not set */
    assert_int_equal(hn_cache_root(path, &err), HONE_OK);
    assert_string_equal(path, "/old");
    char *huge = malloc(9000);
    assert_non_null(huge);
    memset(huge, 'a', 8999);
    huge[8999] = 0;
    setenv("HF_HUB_CACHE", huge, 1);
    assert_int_equal(hn_cache_root(path, &err), HONE_E_ARG);
    free(huge);
    for (size_t i = 0; i < 4; i++) unsetenv(vars[i]);
    unsetenv("OLLAMA_MODELS");
    assert_int_equal(hn_ollama_root(path, &err), HONE_OK);
    assert_string_equal(path, "/home/x/.ollama/models");
}

static void paths(void **state)
{
    static const struct {
        hn_cache_place place;
        const char *repo, *a, *b, *path; /* NULL: refused */
    } rows[] = {
        { HN_CACHE_REPO, "o/n", NULL, NULL, "/r/models--o--n" },
        { HN_CACHE_BLOB, "o/n", OID_B, NULL, "/r/models--o--n/blobs/" OID_B },
        { HN_CACHE_PART, "o/n", OID_A, NULL, "/r/models--o--n/blobs/" OID_A ".hone-part" },
        { HN_CACHE_JOURNAL, "o/n", OID_A, NULL, "/r/models--o--n/blobs/" OID_A ".hone-part.json" },
        { HN_CACHE_LOCK, "o/n", OID_A, NULL, "/r/.locks/models--o--n/" OID_A ".lock" },
        { HN_CACHE_REF, "o/n", "refs/pr/1", NULL, "/r/models--o--n/refs/refs/pr/1" },
        { HN_CACHE_SNAPSHOT, "o/n", COMMIT, "a/b.gguf", "/r/models--o--n/snapshots/" COMMIT "/a/b.gguf" },
        { HN_CACHE_SNAPSHOT, "o/n", COMMIT, NULL, "/r/models--o--n/snapshots/" COMMIT },
        { HN_CACHE_REPO, "../n", NULL, NULL, NULL },
        { HN_CACHE_REPO, "o", NULL, NULL, NULL },
        { HN_CACHE_BLOB, "o/n", "../x", NULL, NULL },
        { HN_CACHE_BLOB, "o/n", "", NULL, NULL },
        { HN_CACHE_BLOB, "o/n", NULL, NULL, NULL },
        { HN_CACHE_REF, "o/n", "../../x", NULL, NULL },
        { HN_CACHE_SNAPSHOT, "o/n", "main", NULL, NULL },
        { HN_CACHE_SNAPSHOT, "o/n", COMMIT, "../x", NULL },
        { HN_CACHE_SNAPSHOT, "o/n", COMMIT, "/etc/x", NULL },
        { HN_CACHE_SNAPSHOT, "o/n", COMMIT, "a/..", NULL },
        { HN_CACHE_SNAPSHOT, "o/n", COMMIT, "a\\b", NULL },
        { HN_CACHE_SNAPSHOT, "o/n", COMMIT, "", NULL },
    };
    char path[HN_CACHE_PATH];
    hone_error err;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hone_status st = hn_cache_path(path, rows[i].place, "/r", rows[i].repo, rows[i].a, rows[i].b, &err);
        assert_int_equal(st, rows[i].path ? HONE_OK : HONE_E_ARG);
        assert_string_equal(path, rows[i].path ? rows[i].path : "");
    }
    assert_int_equal(hn_ollama_blob(path, "/o", "sha256:" OID_B, &err), HONE_OK);
    assert_string_equal(path, "/o/blobs/sha256-" OID_B);
    assert_int_equal(hn_ollama_blob(path, "/o", "sha256:" OID_A, &err), HONE_E_ARG);
    assert_int_equal(
        hn_ollama_blob(path, "/o", "sha256:../../../../../../../../../../../../../../../../../../etc/passwdxxx", &err),
        HONE_E_ARG);
}

/* ---- publishing, and what is found of it --------------------------------------------------------------- */

/* A blob, under its name in a snapshot. */
static void publish(const char *repo, const char *commit, const char *path, const char *oid, const char *text)
{
    char blob[HN_CACHE_PATH];
    hone_error err = { 0 };
    assert_int_equal(hn_cache_path(blob, HN_CACHE_BLOB, root, repo, oid, NULL, &err), HONE_OK);
    if (text) put(blob + strlen(dir) + 1, text);
    if (hn_cache_link(root, repo, commit, path, oid, &err) != HONE_OK) fail_msg("%s", err.message);
}

static hone_status find(const char *text, char *path, hone_error *err)
{
    hn_name n;
    *path = 0;
    hone_status st = hn_name_parse(&n, text, err);
    return st == HONE_OK ? hn_cache_find(path, &n, err) : st;
}

static void finds(const char *text, const char *name)
{
    char path[HN_CACHE_PATH];
    hone_error err = { 0 };
    if (find(text, path, &err) != HONE_OK) fail_msg("%s: %s", text, err.message);
    assert_string_equal(path, *name == '/' || !strncmp(name, "models/", 7) ? name : at(name));
}

static void lacks(const char *text, hone_status st, const char *word)
{
    char path[HN_CACHE_PATH];
    hone_error err = { 0 };
    hone_status got = find(text, path, &err);
    if (got != st || !strstr(err.message, word))
        fail_msg("%s: %d \"%s\", expected %d \"%s\"", text, (int)got, err.message, (int)st, word);
    assert_string_equal(path, "");
}

#define SNAPSHOT "hub/models--o--n/snapshots/" COMMIT

static void published(void **state)
{
    char link[300], commit[41];
    hone_error err;
    publish("o/n", COMMIT, "m-Q4_K_M.gguf", OID_A, "one");
    publish("o/n", COMMIT, "deep/er/m-Q8_0.gguf", OID_B, "eight");
    struct stat before, after;
    assert_int_equal(lstat(at(SNAPSHOT "/m-Q4_K_M.gguf"), &before), 0);
    publish("o/n", COMMIT, "m-Q4_K_M.gguf", OID_A, NULL); /* again: the very link stays */
    assert_int_equal(lstat(at(SNAPSHOT "/m-Q4_K_M.gguf"), &after), 0);
    assert_true(before.st_ino == after.st_ino);
    ssize_t n = readlink(at(SNAPSHOT "/m-Q4_K_M.gguf"), link, sizeof link);
    assert_true(n == (ssize_t)strlen("../../blobs/" OID_A) && memcmp(link, "../../blobs/" OID_A, (size_t)n) == 0);
    n = readlink(at(SNAPSHOT "/deep/er/m-Q8_0.gguf"), link, sizeof link);
    assert_true(n == (ssize_t)strlen("../../../../blobs/" OID_B) &&
                memcmp(link, "../../../../blobs/" OID_B, (size_t)n) == 0);
    assert_true(access(at(SNAPSHOT "/deep/er/m-Q8_0.gguf"), R_OK) == 0);

    /* without a ref the only commit is meant; another one makes it two */
    finds("o/n:Q4_K_M", SNAPSHOT "/m-Q4_K_M.gguf");
    assert_int_equal(hn_cache_ref(commit, root, "o/n", "", &err), HONE_E_IO);
    publish("o/n", OTHER, "m-Q4_K_M.gguf", OID_A, NULL);
    lacks("o/n", HONE_E_IO, "several commits");
    assert_int_equal(hn_cache_set_ref(root, "o/n", "", COMMIT, &err), HONE_OK);
    assert_int_equal(hn_cache_ref(commit, root, "o/n", "main", &err), HONE_OK);
    assert_string_equal(commit, COMMIT);
    assert_int_equal(hn_cache_set_ref(root, "o/n", "refs/pr/7", OTHER, &err), HONE_OK);
    assert_int_equal(hn_cache_set_ref(root, "o/n", OTHER, OTHER, &err), HONE_OK);
    assert_false(there("hub/models--o--n/refs/" OTHER)); /* a commit is its own name */
    assert_int_equal(hn_cache_set_ref(root, "o/n", "x/../y", OTHER, &err), HONE_E_ARG);
    assert_int_equal(hn_cache_set_ref(root, "o/n", "main", "../x", &err), HONE_E_ARG);

    finds("o/n", SNAPSHOT "/deep/er/m-Q8_0.gguf"); /* small: Q8_0 */
    finds("o/n:q8_0", SNAPSHOT "/deep/er/m-Q8_0.gguf");
    finds("hf.co/o/n/m-Q4_K_M.gguf", SNAPSHOT "/m-Q4_K_M.gguf");
    finds("o/n@" OTHER, "hub/models--o--n/snapshots/" OTHER "/m-Q4_K_M.gguf");
    finds("o/n@refs/pr/7", "hub/models--o--n/snapshots/" OTHER "/m-Q4_K_M.gguf");
    lacks("o/n:Q6_K", HONE_E_IO, "of this repository there are");
    lacks("o/n:Q6_K", HONE_E_IO, "`hone pull o/n:Q6_K` gets it");
    lacks("o/n@dev", HONE_E_IO, "this revision of it");
    lacks("o/none", HONE_E_IO, "`hone pull o/none` gets it");

    /* refs that say nothing good */
    put("hub/models--o--n/refs/main", "../../../etc");
    assert_int_equal(hn_cache_ref(commit, root, "o/n", "main", &err), HONE_E_FORMAT);
    put("hub/models--o--n/refs/main", COMMIT "\n");
    assert_int_equal(hn_cache_ref(commit, root, "o/n", "main", &err), HONE_OK);
    /* a blob that was never there */
    assert_int_equal(hn_cache_link(root, "o/n", COMMIT, "x.gguf", OID_C, &err), HONE_E_IO);
    assert_int_equal(hn_cache_link(root, "o/n", COMMIT, "../x.gguf", OID_A, &err), HONE_E_ARG);
    assert_false(there(SNAPSHOT "/x.gguf"));
    /* the longest name that a folder takes; and what a killed process left of it */
    char longest[300], left[600], hex[17];
    unsigned char sum[32];
    hn_sha256 sha;
    memset(longest, 'l', 255);
    longest[255] = 0;
    hn_sha256_init(&sha);
    hn_sha256_add(&sha, longest, 255);
    hn_sha256_end(&sha, sum);
    snprintf(left, sizeof left, "%s/.hone-tmp-%s", at(SNAPSHOT), hn_hex(hex, sum, 8));
    assert_int_equal(symlink("../../blobs/" OID_B, left), 0);
    publish("o/n", COMMIT, longest, OID_A, NULL);
    assert_true(lstat(left, &before) != 0);
    snprintf(left, sizeof left, "%s/%s", at(SNAPSHOT), longest);
    n = readlink(left, link, sizeof link);
    assert_true(n == (ssize_t)strlen("../../blobs/" OID_A) && memcmp(link, "../../blobs/" OID_A, (size_t)n) == 0);
    unlink(left);
    /* links that somebody put where hone writes: nothing goes to where they lead */
    put("mine", "mine");
    assert_int_equal(mkdir(at("outside"), 0700), 0);
    unlink(at("hub/models--o--n/refs/dev"));
    assert_int_equal(symlink(at("mine"), at("hub/models--o--n/refs/dev")), 0);
    assert_int_equal(hn_cache_set_ref(root, "o/n", "dev", COMMIT, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "refs/dev is a link"));
    assert_true(stat(at("mine"), &before) == 0 && before.st_size == 4);
    unlink(at("hub/models--o--n/refs/dev"));
    assert_int_equal(symlink(at("outside"), at(SNAPSHOT "/away")), 0);
    assert_int_equal(hn_cache_link(root, "o/n", COMMIT, "away/x.gguf", OID_A, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "leads out of the cache"));
    assert_false(there("outside/x.gguf"));
    unlink(at(SNAPSHOT "/away"));
    /* copies instead of links, as systems without links have them */
    put("hub/models--o--copy/snapshots/" COMMIT "/c-Q4_0.gguf", "copy");
    put("hub/models--o--copy/refs/main", COMMIT);
    finds("o/copy", "hub/models--o--copy/snapshots/" COMMIT "/c-Q4_0.gguf");
    assert_int_equal(hn_cache_link(root, "o/copy", COMMIT, "c-Q4_0.gguf", OID_C, &err), HONE_OK);
}

static const hn_local *named(const hn_locals *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->list[i].name, name) == 0) return &l->list[i];
    return NULL;
}

static void list_all(hn_locals *l)
{
    hone_error err = { 0 };
    if (hn_cache_list(l, HN_FIND_ALL, &err) != HONE_OK) fail_msg("%s", err.message);
}

/* ---- what is not whole, and what is not what it seems ------------------------------------------------------ */

static void holes(void **state)
{
    hn_locals l;
    publish("o/n", COMMIT, "s-Q6_K-00001-of-00003.gguf", OID_A, "one");
    publish("o/n", COMMIT, "s-Q6_K-00003-of-00003.gguf", OID_B, "three");
    publish("o/n", COMMIT, "gone-Q4_0.gguf", OID_C, "x");
    unlink(at("hub/models--o--n/blobs/" OID_C));
    put("hub/models--o--n/refs/main", COMMIT);
    put("secret.gguf", "mine");
    assert_int_equal(symlink(at("secret.gguf"), at(SNAPSHOT "/out-Q8_0.gguf")), 0);
    assert_int_equal(symlink("../../../../secret.gguf", at(SNAPSHOT "/out-Q5_0.gguf")), 0);
    put(SNAPSHOT "/empty-Q2_K.gguf", "");
    put("hub/models--o--n/blobs/" OID_B ".hone-part", "12345");
    put("hub/models--o--part/blobs/" OID_B ".incomplete", "123");
    put("hub/models--bad/snapshots/" COMMIT "/x.gguf", "x");
    put("hub/models--a--../snapshots/" COMMIT "/x.gguf", "x");
    put("hub/models--o--odd/snapshots/nocommit/x.gguf", "x");
    put("hub/datasets--o--n/snapshots/" COMMIT "/x.gguf", "x");
    put("hub/version.txt", "1");
    list_all(&l);
    static const char *const rows[][2] = {
        { "o/n:Q6_K", "part 2 of 3 is missing" },
        { "o/n:Q4_0", "gone-Q4_0.gguf: what its link leads to is gone" },
        { "o/n:Q8_0", "its link leads out of the cache" },
        { "o/n:Q5_0", "its link leads out of the cache" },
        { "o/n:Q2_K", "it is empty" },
        { "o/n", "a download that has not ended" },
        { "o/part", "a download that has not ended" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const hn_local *m = named(&l, rows[i][0]);
        if (!m || !strstr(m->trouble, rows[i][1])) fail_msg("%s: %s", rows[i][0], m ? m->trouble : "not listed");
    }
    assert_int_equal(l.n, sizeof rows / sizeof *rows);
    assert_int_equal(named(&l, "o/n:Q6_K")->bytes, 8);
    assert_int_equal(named(&l, "o/part")->bytes, 3);
    assert_true(named(&l, "o/n")->unfinished);
    hn_locals_free(&l);
    lacks("o/n:Q6_K", HONE_E_IO, "not whole");
    lacks("o/n:Q4_0", HONE_E_IO, "is gone");
    lacks("o/n:Q8_0", HONE_E_IO, "leads out of the cache");
    lacks("o/part", HONE_E_IO, "`hone pull o/part`");
}

/* What models are called: by main where it names the commit, by their file where a type is there twice. */
static void called(void **state)
{
    hn_locals l;
    publish("o/n", COMMIT, "a-Q4_0.gguf", OID_A, "a");
    publish("o/n", COMMIT, "b-Q4_0.gguf", OID_C, "b");
    publish("o/n", COMMIT, "c.gguf", OID_C, NULL);
    publish("o/n", COMMIT, "d-Q8_0.gguf", OID_C, NULL);
    publish("o/n", OTHER, "d-Q8_0.gguf", OID_C, NULL);
    put("hub/models--o--n/refs/zoo", COMMIT);
    put("hub/models--o--n/refs/main", COMMIT);
    put("hub/models--o--n/refs/art", COMMIT);
    list_all(&l);
    assert_int_equal(l.n, 5);
    static const char *const names[] = { "o/n/a-Q4_0.gguf", "o/n/b-Q4_0.gguf", "o/n/c.gguf", "o/n:Q8_0",
                                         "o/n@" OTHER ":Q8_0" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[HN_CACHE_PATH];
        hone_error err;
        const hn_local *m = named(&l, names[i]);
        if (!m) fail_msg("%s: not listed", names[i]);
        assert_int_equal(find(names[i], path, &err), HONE_OK); /* each is found by the name it is listed under */
        assert_string_equal(path, m->path);
    }
    hn_locals_free(&l);
    lacks("o/n:Q4_0", HONE_E_ARG, "means several models");
    lacks("o/n@zoo:Q4_0", HONE_E_ARG, "as in o/n@zoo/a-Q4_0.gguf"); /* at the same revision */
}

/* A model that is here whole and in parts, too: by its type it is the file, and the list names both by their paths. */
static void whole_and_split(void **state)
{
    hn_locals l;
    put("hub/models--o--n/refs/main", COMMIT);
    publish("o/n", COMMIT, "m-Q4_0-00001-of-00002.gguf", OID_A, "one");
    publish("o/n", COMMIT, "m-Q4_0-00002-of-00002.gguf", OID_B, "two");
    finds("o/n:Q4_0", SNAPSHOT "/m-Q4_0-00001-of-00002.gguf");
    publish("o/n", COMMIT, "m-Q4_0.gguf", OID_C, "onetwo");
    finds("o/n:Q4_0", SNAPSHOT "/m-Q4_0.gguf");
    finds("o/n", SNAPSHOT "/m-Q4_0.gguf");
    finds("o/n/m-Q4_0-00002-of-00002.gguf", SNAPSHOT "/m-Q4_0-00001-of-00002.gguf");
    publish("o/n", COMMIT, "imatrix.gguf", OID_C, NULL); /* no model, but a file that was asked for */
    finds("o/n/imatrix.gguf", SNAPSHOT "/imatrix.gguf");
    lacks("o/n/mmproj.gguf", HONE_E_IO, "no model of this name on this machine");
    list_all(&l);
    assert_true(l.n == 2 && named(&l, "o/n/m-Q4_0.gguf") && named(&l, "o/n/m-Q4_0-00001-of-00002.gguf"));
    hn_locals_free(&l);
}

static void checkpoints(void **state)
{
    hn_locals l;
    publish("o/n", COMMIT, "config.json", OID_A, "{}");
    put("hub/models--o--n/refs/main", COMMIT);
    lacks("o/n", HONE_E_IO, "its weights are missing");
    publish("o/n", COMMIT, "model-00001-of-00002.safetensors", OID_B, "one");
    list_all(&l);
    const hn_local *m = named(&l, "o/n");
    assert_true(m && m->checkpoint);
    assert_string_equal(m->trouble, "part 2 of 2 is missing");
    hn_locals_free(&l);
    lacks("o/n", HONE_E_IO, "part 2 of 2 is missing");
    publish("o/n", COMMIT, "model-00002-of-00002.safetensors", OID_C, "two");
    list_all(&l);
    m = named(&l, "o/n");
    assert_true(m && m->checkpoint && !*m->trouble && m->n_file == 3 && m->bytes == 8);
    hn_locals_free(&l);
    publish("o/n", COMMIT, ".gitattributes", OID_A, NULL); /* the same content as config.json */
    list_all(&l);
    assert_int_equal(named(&l, "o/n")->n_file, 4);
    hn_locals_free(&l);
    finds("o/n", SNAPSHOT);
    char path[HN_CACHE_PATH];
    hn_name n;
    hone_error err;
    publish("o/n", COMMIT, "m-Q4_0.gguf", OID_A, NULL); /* beside a GGUF it is what is asked for by that word */
    finds("o/n", SNAPSHOT "/m-Q4_0.gguf");
    assert_int_equal(hn_name_parse(&n, "o/n", &err), HONE_OK);
    n.checkpoint = true;
    assert_int_equal(hn_cache_find(path, &n, &err), HONE_OK);
    assert_string_equal(path, at(SNAPSHOT));
    assert_int_equal(unlink(at(SNAPSHOT "/model-00002-of-00002.safetensors")), 0);
    assert_int_equal(hn_cache_find(path, &n, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "`hone pull --checkpoint o/n` gets the rest"));
    assert_int_equal(hn_name_parse(&n, "o/n", &err), HONE_OK);
    n.checkpoint_first = true; /* half of it is no GGUF; a configuration alone is none of it */
    assert_int_equal(hn_cache_find(path, &n, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "part 2 of 2 is missing; `hone pull --checkpoint o/n` gets the rest"));
    assert_int_equal(unlink(at(SNAPSHOT "/model-00001-of-00002.safetensors")), 0);
    assert_int_equal(hn_cache_find(path, &n, &err), HONE_OK);
    assert_string_equal(path, at(SNAPSHOT "/m-Q4_0.gguf"));
    publish("o/n", COMMIT, "model-00001-of-00002.safetensors", OID_B, NULL);
    publish("o/n", COMMIT, "model-00002-of-00002.safetensors", OID_C, NULL);
    assert_int_equal(unlink(at(SNAPSHOT "/m-Q4_0.gguf")), 0);
    assert_int_equal(hn_name_parse(&n, "o/n", &err), HONE_OK);
    assert_int_equal(hn_cache_find_folder(path, &n, &err), HONE_OK);
    assert_string_equal(path, at(SNAPSHOT));
    static const char *const indexes[][2] = {
        /* what it names and what of that is not there */
        { "{\"weight_map\":{\"a\":\"x.safetensors\"}}", "x.safetensors, which" },
        { "{\"m\":{},\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
          "\"b\":\"model-00001-of-00002.safetensors\",\"c\":\"../x\"}}",
          "../x, which" },
        { "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\",\"b\":[1]}}", NULL },
        { "{\"weight_map\":[]}", NULL },
        { "not JSON", NULL }
    };
    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
        put(SNAPSHOT "/model.safetensors.index.json", indexes[i][0]);
        if (indexes[i][1]) lacks("o/n", HONE_E_IO, indexes[i][1]);
        else finds("o/n", SNAPSHOT);
    }
    publish("o/n", COMMIT, "sub/config.json", OID_A, NULL); /* one in a folder of the repository */
    lacks("hf.co/o/n/tree/main/sub", HONE_E_IO, "its weights are missing");
    publish("o/n", COMMIT, "sub/model.safetensors", OID_B, NULL);
    finds("hf.co/o/n/tree/main/sub", SNAPSHOT "/sub");
    lacks("hf.co/o/n/tree/main/none", HONE_E_IO, "without such a file");
}

/* ---- ollama's store, folders ---------------------------------------------------------------------------------- */

#define DIGEST(c) "sha256:" c c c c c c c c c c c c c c c c
#define MANIFEST "ollama/manifests/registry.ollama.ai/library/"

/* A manifest of one model layer and a licence that all share. */
static void put_manifest(const char *name, const char *digest, const char *size)
{
    char path[300], text[900];
    snprintf(path, sizeof path, MANIFEST "%s", name);
    snprintf(
        text, sizeof text,
        "{\"schemaVersion\":2,\"layers\":[{\"mediaType\":\"application/"
        "vnd.ollama.image.model\",\"digest\":\"%s\",\"size\":"
        "%s},{\"mediaType\":\"application/vnd.ollama.image.license\",\"digest\":\"" DIGEST("ffff") "\",\"size\":3}]}",
        digest, size);
    put(path, text);
}

static void put_blob(const char *digest, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "ollama/blobs/sha256-%s", digest + 7);
    put(path, text);
}

static void ollama(void **state)
{
    hn_locals l;
    put_blob(DIGEST("1111"), "model");
    put_blob(DIGEST("ffff"), "MIT");
    put_manifest("tiny/latest", DIGEST("1111"), "5");
    put_manifest("tiny/short", DIGEST("1111"), "6");
    put_manifest("gone/latest", DIGEST("2222"), "5");
    put_manifest("evil/latest", "sha256:../../../../../../secret", "5");
    put(MANIFEST "junk/latest", "not JSON");
    put(MANIFEST "none/latest", "{\"layers\":[]}");
    put("ollama/manifests/example.org/me/own/v1", "{\"layers\":[]}");
    put(MANIFEST "..bad/latest", "{}");
    list_all(&l);
    static const char *const rows[][2] = {
        { "ollama:tiny", "" },
        { "ollama:tiny:short", "has 5 bytes, the manifest says 6" },
        { "ollama:gone", "is gone" },
        { "ollama:evil", "as a digest" },
        { "ollama:junk", "not JSON" },
        { "ollama:none", "no GGUF among its layers" },
        { "ollama:example.org/me/own:v1", "no GGUF" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const hn_local *m = named(&l, rows[i][0]);
        if (!m || !strstr(m->trouble, rows[i][1]) || (!*rows[i][1] && *m->trouble))
            fail_msg("%s: %s", rows[i][0], m ? m->trouble : "not listed");
    }
    assert_int_equal(l.n, sizeof rows / sizeof *rows);
    hn_locals_free(&l);
    char blob[300];
    snprintf(blob, sizeof blob, "ollama/blobs/sha256-%s", &DIGEST("1111")[7]);
    finds("ollama:tiny", blob);
    finds("tiny", blob); /* a bare name, where nothing else has it */
    finds("tiny:latest", blob);
    lacks("ollama:tiny:1b", HONE_E_IO, "`hone pull ollama:tiny:1b`");
    lacks("ollama:gone", HONE_E_IO, "is gone");
    lacks("tinny", HONE_E_IO, "did you mean");
}

static void folders(void **state)
{
    hn_locals l;
    put("models/tiny-Q4_K_M.gguf", "x");
    put("models/sub/deep.gguf", "x");
    put("models/mmproj-tiny.gguf", "x");
    put("models/big-00001-of-00002.gguf", "x");
    put("shelf/tiny-Q4_K_M.gguf", "y");
    put("shelf/a b.gguf", "y");
    put("data/hone/models/web.gguf", "z");
    put("llama.gguf", "here");
    char list[300];
    snprintf(list, sizeof list, "%s:%s:%s", at("shelf"), at("none"), at("models"));
    setenv("HONE_MODELS", list, 1);
    list_all(&l);
    char shelf[200], other[200], blank[200];
    snprintf(shelf, sizeof shelf, "%s", at("shelf/tiny-Q4_K_M.gguf"));
    snprintf(other, sizeof other, "%s", at("models/tiny-Q4_K_M.gguf"));
    snprintf(blank, sizeof blank, "%s", at("shelf/a b.gguf"));
    assert_int_equal(l.n, 6); /* ./models is the third of the list */
    assert_string_equal(named(&l, "tiny-Q4_K_M")->path, shelf);
    assert_non_null(named(&l, other));
    assert_non_null(named(&l, blank));
    assert_string_equal(named(&l, "big")->trouble, "part 2 of 2 is missing");
    hn_locals_free(&l);
    finds("tiny-Q4_K_M", "shelf/tiny-Q4_K_M.gguf");
    finds("tiny:q4_k_m", "shelf/tiny-Q4_K_M.gguf");
    finds("tiny", "shelf/tiny-Q4_K_M.gguf");
    put("shelf/tiny.gguf", "y");
    finds("tiny", "shelf/tiny.gguf"); /* the very name comes first */
    lacks("tin", HONE_E_IO, "no model of this name");
    put("shelf/flat_Q4_K_M.gguf", "y");
    finds("flat:q4_k_m", "shelf/flat_Q4_K_M.gguf");
    finds("flat", "shelf/flat_Q4_K_M.gguf");
    finds("deep", at("models/sub/deep.gguf"));
    finds("https://example.org/x/web.gguf?a=b", "data/hone/models/web.gguf");
    lacks("big", HONE_E_IO, "not whole");
    lacks("https://example.org/none.gguf", HONE_E_IO, "`hone pull https://example.org/none.gguf`");
    lacks("llama3.2", HONE_E_IO, "llama3.2 stands for bartowski/");
    put("config/hone/names", "mine o/n:Q4_0\n");
    publish("o/n", COMMIT, "m-Q4_0.gguf", OID_A, "one");
    put("hub/models--o--n/refs/main", COMMIT);
    finds("mine", SNAPSHOT "/m-Q4_0.gguf");
}

/* ---- removal --------------------------------------------------------------------------------------------------- */

static hone_status take_off(const char *name, hn_removal *plan, hone_error *err)
{
    hn_locals l;
    *plan = (hn_removal){ 0 };
    list_all(&l);
    bool *going = calloc(l.n + 1, sizeof *going);
    assert_non_null(going);
    hone_status st = HONE_E_ARG;
    for (size_t i = 0; i < l.n; i++)
        if (strcmp(l.list[i].name, name) == 0) {
            going[i] = true;
            st = hn_removal_add(plan, &l, i, going, err);
        }
    free(going);
    hn_locals_free(&l);
    if (st == HONE_OK) st = hn_removal_check(plan, err);
    return st == HONE_OK ? hn_removal_do(plan, err) : st;
}

static void removed(void **state)
{
    hn_removal plan;
    hone_error err = { 0 };
    publish("o/n", COMMIT, "m-Q4_0.gguf", OID_A, "four");
    publish("o/n", COMMIT, "m-Q8_0.gguf", OID_B, "eight");
    publish("o/n", OTHER, "m-Q4_0.gguf", OID_A, NULL); /* the same in an older revision */
    put("hub/models--o--n/refs/main", COMMIT);
    put("hub/models--o--n/refs/old", OTHER);
    put(SNAPSHOT "/m-Q4_0.gguf.hpack", "packed");
    put("secret.gguf", "mine");
    assert_int_equal(symlink(at("secret.gguf"), at(SNAPSHOT "/out-Q5_0.gguf")), 0);

    assert_int_equal(take_off("o/n:Q4_0", &plan, &err), HONE_OK);
    assert_int_equal(plan.bytes, 6); /* the packed file alone */
    assert_int_equal(plan.shared, 4);
    hn_removal_free(&plan);
    assert_false(there(SNAPSHOT "/m-Q4_0.gguf"));
    assert_false(there(SNAPSHOT "/m-Q4_0.gguf.hpack"));
    assert_true(there("hub/models--o--n/blobs/" OID_A)); /* another snapshot links to it */
    assert_true(there("hub/models--o--n/snapshots/" OTHER "/m-Q4_0.gguf"));

    assert_int_equal(take_off("o/n@old:Q4_0", &plan, &err), HONE_OK);
    assert_int_equal(plan.bytes, 4);
    hn_removal_free(&plan);
    assert_false(there("hub/models--o--n/blobs/" OID_A));
    assert_false(there("hub/models--o--n/snapshots/" OTHER));
    assert_false(there("hub/models--o--n/refs/old")); /* names nothing any more */
    assert_true(there("hub/models--o--n/refs/main"));

    assert_int_equal(take_off("o/n:Q5_0", &plan, &err), HONE_OK); /* the link goes, not what it leads to */
    assert_int_equal(plan.bytes, 0);
    hn_removal_free(&plan);
    assert_false(there(SNAPSHOT "/out-Q5_0.gguf"));
    assert_true(there("secret.gguf"));

    /* a hidden file has the same content */
    publish("o/n", COMMIT, ".hidden", OID_B, NULL);
    publish("o/n", COMMIT, "m-Q6_K.gguf", OID_B, NULL);
    put("hub/models--o--n/trees/" COMMIT ".json", "{}");
    assert_int_equal(take_off("o/n:Q8_0", &plan, &err), HONE_OK);
    hn_removal_free(&plan);
    assert_int_equal(take_off("o/n:Q6_K", &plan, &err), HONE_OK);
    hn_removal_free(&plan);
    assert_true(access(at(SNAPSHOT "/.hidden"), R_OK) == 0);
    unlink(at(SNAPSHOT "/.hidden"));
    unlink(at("hub/models--o--n/blobs/" OID_B));
    publish("o/n", COMMIT, "m-Q6_K.gguf", OID_B, "six");
    assert_int_equal(take_off("o/n:Q6_K", &plan, &err), HONE_OK);
    hn_removal_free(&plan);
    assert_false(there("hub/models--o--n"));
    assert_true(there("hub"));
}

/* Folders that are links: what lies behind them is listed, and never removed. */
static void removed_behind_links(void **state)
{
    static const char *const links[] = { "hub/models--o--n", "hub/models--o--n/snapshots", SNAPSHOT,
                                         "hub/models--o--n/blobs" };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        hn_removal plan;
        hone_error err = { 0 };
        assert_int_equal(fresh(state), 0);
        publish("o/n", COMMIT, "m-Q4_0.gguf", OID_A, "four");
        put(SNAPSHOT "/own-Q8_0.gguf", "eight");
        put("hub/models--o--n/refs/main", COMMIT);
        assert_int_equal(rename(at(links[i]), at("elsewhere")), 0);
        assert_int_equal(symlink(at("elsewhere"), at(links[i])), 0);
        assert_int_equal(take_off("o/n:Q8_0", &plan, &err), HONE_E_ARG);
        assert_non_null(strstr(err.message, "is a link"));
        hn_removal_free(&plan);
        assert_true(there(SNAPSHOT "/own-Q8_0.gguf"));
    }
}

static void removed_whole(void **state)
{
    hn_removal plan = { 0 };
    hone_error err = { 0 };
    publish("o/n", COMMIT, "a/m-Q4_0.gguf", OID_A, "four");
    publish("o/nn", COMMIT, "m-Q4_0.gguf", OID_A, "four");
    put("hub/models--o--n/blobs/" OID_B ".hone-part", "12345");
    put("hub/models--o--n/.no_exist/" COMMIT "/x", "");
    put("elsewhere/kept", "kept");
    assert_int_equal(symlink(at("elsewhere"), at("hub/models--o--n/link")), 0);
    assert_int_equal(hn_removal_add_repo(&plan, "o/n", &err), HONE_OK);
    assert_int_equal(plan.bytes, 9);
    assert_int_equal(hn_removal_check(&plan, &err), HONE_OK);
    assert_int_equal(hn_removal_do(&plan, &err), HONE_OK);
    hn_removal_free(&plan);
    assert_false(there("hub/models--o--n"));
    assert_true(there("hub/models--o--nn/blobs/" OID_A));
    assert_true(there("elsewhere/kept"));
    assert_int_equal(hn_removal_add_repo(&plan, "o/n", &err), HONE_E_IO);
    hn_removal_free(&plan);
    /* the repository itself is a link: not followed */
    assert_int_equal(symlink(at("elsewhere"), at("hub/models--o--l")), 0);
    assert_int_equal(hn_removal_add_repo(&plan, "o/l", &err), HONE_E_IO);
    hn_removal_free(&plan);
    assert_true(there("elsewhere/kept"));
}

static void removed_elsewhere(void **state)
{
    hn_removal plan;
    hone_error err = { 0 };
    put_blob(DIGEST("1111"), "model");
    put_blob(DIGEST("ffff"), "MIT");
    put_manifest("a/latest", DIGEST("1111"), "5");
    put_manifest("b/latest", DIGEST("1111"), "5");
    assert_int_equal(take_off("ollama:a", &plan, &err), HONE_OK);
    assert_int_equal(plan.shared, 8);
    hn_removal_free(&plan);
    assert_false(there(MANIFEST "a/latest"));
    char blob[300];
    snprintf(blob, sizeof blob, "ollama/blobs/sha256-%s", &DIGEST("1111")[7]);
    assert_true(there(blob));
    assert_int_equal(take_off("ollama:b", &plan, &err), HONE_OK);
    hn_removal_free(&plan);
    assert_false(there(blob));
    /* folders of the user's own: never by a name, by a path all parts of a set */
    put("models/s-00001-of-00002.gguf", "1");
    put("models/s-00002-of-00002.gguf", "2");
    put("models/other.gguf", "3");
    assert_int_equal(take_off("s", &plan, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "folder of your own"));
    hn_removal_free(&plan);
    plan = (hn_removal){ 0 };
    assert_int_equal(hn_removal_add_path(&plan, "models/s-00002-of-00002.gguf", &err), HONE_OK);
    assert_int_equal(plan.bytes, 2);
    assert_int_equal(hn_removal_do(&plan, &err), HONE_OK);
    hn_removal_free(&plan);
    assert_false(there("models/s-00001-of-00002.gguf"));
    assert_true(there("models/other.gguf"));
    assert_int_equal(hn_removal_add_path(&plan, "models", &err), HONE_E_ARG);
    assert_int_equal(hn_removal_add_path(&plan, "models/none.gguf", &err), HONE_E_IO);
    hn_removal_free(&plan);
}

/* In use: another process has it mapped, or holds the lock of its download. */
static void in_use(void **state)
{
    hn_removal plan;
    hone_error err = { 0 };
    publish("o/n", COMMIT, "m-Q4_0.gguf", OID_A, "four");
    put("hub/models--o--n/refs/main", COMMIT);
    put("hub/.locks/models--o--n/" OID_A ".lock", "");
    int fd = open(at("hub/.locks/models--o--n/" OID_A ".lock"), O_RDWR);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    assert_int_equal(take_off("o/n:Q4_0", &plan, &err), HONE_E_BUSY);
    assert_non_null(strstr(err.message, "being downloaded"));
    hn_removal_free(&plan);
    close(fd);
    int begun[2];
    assert_int_equal(pipe(begun), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int model = open(at(SNAPSHOT "/m-Q4_0.gguf"), O_RDONLY);
        const void *p = model >= 0 ? mmap(NULL, 4, PROT_READ, MAP_SHARED, model, 0) : MAP_FAILED;
        if (write(begun[1], p == MAP_FAILED ? "n" : "y", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char word = 0;
    assert_true(read(begun[0], &word, 1) == 1 && word == 'y');
    hone_status st = take_off("o/n:Q4_0", &plan, &err);
    hn_removal_free(&plan);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(begun[0]);
    close(begun[1]);
    if (access("/proc/self/maps", R_OK) == 0) {
        assert_int_equal(st, HONE_E_BUSY);
        assert_non_null(strstr(err.message, "in use by process"));
        assert_true(there(SNAPSHOT "/m-Q4_0.gguf"));
    }
    assert_int_equal(take_off("o/n:Q4_0", &plan, &err), there(SNAPSHOT) ? HONE_OK : HONE_E_ARG);
    hn_removal_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(roots, fresh),
        cmocka_unit_test_setup(paths, fresh),
        cmocka_unit_test_setup(published, fresh),
        cmocka_unit_test_setup(holes, fresh),
        cmocka_unit_test_setup(called, fresh),
        cmocka_unit_test_setup(checkpoints, fresh),
        cmocka_unit_test_setup(whole_and_split, fresh),
        cmocka_unit_test_setup(ollama, fresh),
        cmocka_unit_test_setup(folders, fresh),
        cmocka_unit_test_setup(removed, fresh),
        cmocka_unit_test_setup(removed_whole, fresh),
        cmocka_unit_test_setup(removed_behind_links, fresh),
        cmocka_unit_test_setup(removed_elsewhere, fresh),
        cmocka_unit_test_setup(in_use, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
