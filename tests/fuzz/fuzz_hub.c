/* Fuzzes what hubs, registries and caches say. The first byte chooses: the hub's answer about a revision; its list of
 * files, of which models are made and one is chosen, as --list and pull do; a manifest of ollama's, pulled or found
 * in its store; the head of an answer; a Location; the journal of a part; the index of a checkpoint; the user's own
 * short names. With 8: the user's side of the same: a name that somebody types, and what it is short for; the cache's
 * folders, refs and links, and what the environment says of them; the bytes of a part as they come; what a hub
 * refuses, in words; a manifest whose blob is there; whole pulls, whose server says on each
 * request what the next piece of the input is. Whatever is let through is fit for a path below a folder and
 * names only what is there; whatever is refused says why, in words that no terminal minds.
 * covers: src/hub/hub_api.c src/hub/gguf_choice.c src/hub/ollama.c src/hub/store.c src/hub/head.c src/hub/url.c
 * covers: src/hub/part.c src/hub/cache_checkpoint.c src/hub/short_names.c src/hub/names.c src/hub/cache.c
 * covers: src/base/json_tree.c */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "base/file.h"
#include "base/source.h"
#include "hub/cache_dir.h"
#include "hub/hub_api.h"
#include "hub/part.h"
#include "hub/pull.h"
#include "hub/store.h"
#include "hub/url.h"
#include "must.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static void refused(hone_status st, const hone_error *err)
{
    FF_MUST(st != HONE_OK && *err->message);
    for (const unsigned char *p = (const unsigned char *)err->message; *p; p++) FF_MUST(*p >= 0x20 && *p != 0x7F);
}

static bool is_path(const char *path, const char *root)
{
    size_t n = strlen(root);
    if (strncmp(path, root, n) != 0 || path[n] != '/') return false;
    for (const char *p = path + n; p; p = strchr(p + 1, '/'))
        if (!strncmp(p, "/../", 4) || !strcmp(p, "/..") || !strncmp(p, "/./", 3)) return false;
    return true;
}

/* ---- the hub --------------------------------------------------------------------------------------- */

static void a_commit(const char *text, size_t n)
{
    static const char *const revs[] = { "main", COMMIT };
    for (int i = 0; i < 2; i++) {
        char commit[41];
        hone_error err = { 0 };
        hone_status st = hn_hub_commit_of(commit, text, n, "o/r", revs[i], &err);
        if (st != HONE_OK) refused(st, &err);
        FF_MUST((st == HONE_OK) == hn_hub_commit_ok(commit) && (st == HONE_OK || !*commit));
        FF_MUST(st != HONE_OK || !i || strcmp(commit, COMMIT) == 0);
    }
}

/* What a name may be made of it; it means the same again. */
static void a_name(const char *tag, const char *path)
{
    hn_name n = { .kind = HN_NAME_HUB, .repo = "o/r" }, again;
    char text[HN_NAME_URL_MAX];
    hone_error err = { 0 };
    snprintf(n.tag, sizeof n.tag, "%s", tag);
    if (!*tag) snprintf(n.path, sizeof n.path, "%s", path);
    hn_name_text(text, sizeof text, &n);
    hone_status st = hn_name_parse(&again, text, &err);
    if (st != HONE_OK) fprintf(stderr, "%s: %s\n", text, err.message);
    FF_MUST(st == HONE_OK && memcmp(&n, &again, sizeof n) == 0);
}

static void the_sets(const hn_repo_file *file, size_t n)
{
    hn_gguf_sets sets;
    hone_error err = { 0 };
    unsigned char *in = calloc(n + 1, 1);
    FF_MUST(in && hn_gguf_sets_of(&sets, file, n, &err) == HONE_OK);
    for (size_t i = 0; i < sets.n; i++) {
        const hn_gguf_set *s = &sets.set[i];
        size_t missing = 0;
        const char *first = NULL;
        for (size_t k = 0; k < s->n_file; k++) {
            missing += s->file[k] == SIZE_MAX;
            if (s->file[k] == SIZE_MAX) continue;
            FF_MUST(s->file[k] < n && !in[s->file[k]]++);
            if (!first) first = file[s->file[k]].path;
        }
        FF_MUST(first && missing == s->n_missing && (!i || sets.set[i - 1].bytes <= s->bytes));
        FF_MUST(!*s->tag || hn_ollama_part_ok(s->tag));
        a_name(s->tag, first);
    }
    for (size_t i = 0; i < sets.n_cut; i++) {
        const hn_gguf_cut *c = &sets.cut[i];
        FF_MUST(c->n_file && (!c->total || c->n_file <= c->total) && (!i || sets.cut[i - 1].bytes <= c->bytes));
        for (size_t k = 0; k < c->n_file; k++) {
            FF_MUST(c->file[k] < n && !in[c->file[k]]++);
            const char *path = file[c->file[k]].path;
            FF_MUST(strlen(path) > c->stem && !strncmp(path, file[c->file[0]].path, c->stem));
        }
    }
    static const uint64_t memory[] = { 0, 1, (uint64_t)8 << 30 };
    static const char *const tags[] = { "", "Q4_K_M" };
    for (int i = 0; i < 6; i++) {
        hn_name name = { .kind = HN_NAME_HUB, .repo = "o/r" };
        size_t which;
        char why[300];
        snprintf(name.tag, sizeof name.tag, "%s", tags[i % 2]);
        hone_status st = hn_gguf_choose(&which, why, sizeof why, &sets, file, &name, memory[i / 2], &err);
        if (st != HONE_OK) refused(st, &err);
        else FF_MUST(which < sets.n && !sets.set[which].n_missing && !sets.set[which].again && *why);
    }
    hn_gguf_sets_free(&sets);
    free(in);
}

static void a_page(const char *text, size_t n)
{
    hn_hub_repo r = { .arena = hn_arena_new() };
    hone_error err = { 0 };
    hone_status st = hn_hub_add_page(&r, text, n, "o/r", &err);
    if (st != HONE_OK) refused(st, &err);
    FF_MUST(r.n <= n / 64); /* the hash alone has 40 */
    for (size_t i = 0; i < r.n; i++) {
        char path[HN_CACHE_PATH], blob[HN_CACHE_PATH];
        FF_MUST(hn_hub_path_ok(r.file[i].path) && hn_hub_oid_ok(r.oid[i]) && r.file[i].size <= (uint64_t)1 << 50);
        FF_MUST(hn_cache_path(path, HN_CACHE_SNAPSHOT, "/c", "o/r", COMMIT, r.file[i].path, &err) == HONE_OK);
        FF_MUST(hn_cache_path(blob, HN_CACHE_BLOB, "/c", "o/r", r.oid[i], NULL, &err) == HONE_OK);
        FF_MUST(is_path(path, "/c/models--o--r/snapshots/" COMMIT) && is_path(blob, "/c/models--o--r/blobs"));
        char *url = hn_hub_address("https://h", "o/r", COMMIT, r.file[i].path);
        FF_MUST(url && hn_url_allowed(url, NULL, false, &err) == HONE_OK && hn_url_same_origin(url, "https://h/"));
        free(url);
    }
    if (st == HONE_OK) the_sets(r.file, r.n);
    hn_hub_repo_free(&r);
}

/* ---- heads and addresses ------------------------------------------------------------------------------- */

static void a_head(const char *text, size_t n)
{
    hn_fetch_head a;
    char content[HN_HEAD_NAME];
    hn_head_clear(&a);
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at + 1 : n - at;
        if (len > 9 && memcmp(text + at, "HTTP/", 5) == 0) hn_head_begin(&a, text + at, len);
        else hn_head_line(&a, text + at, len, n & 1);
        char *next = hn_head_next(text + at, len);
        free(next);
        at += len;
    }
    FF_MUST(a.status >= 0 && a.status < 1000 && isfinite(a.wait_s) && (a.wait_s >= 0 || a.wait_s == -1));
    FF_MUST(memchr(a.etag, 0, sizeof a.etag) && memchr(a.commit, 0, sizeof a.commit) &&
            memchr(a.code, 0, sizeof a.code));
    FF_MUST(memchr(a.message, 0, sizeof a.message) && memchr(a.modified, 0, sizeof a.modified));
    FF_MUST((n & 1) || (!*a.commit && !*a.linked_etag && !*a.code && !a.has_linked_size));
    hn_head_content(content, &a);
}

static void a_location(const char *text)
{
    static const char *const bases[] = { "https://h/a/b?c", "http://127.0.0.1:9/x" };
    for (int i = 0; i < 2; i++) {
        char *to;
        hn_url u;
        hone_error err = { 0 };
        hone_status st = hn_url_join(&to, bases[i], text, &err);
        FF_MUST((st == HONE_OK) == (to != NULL));
        if (st != HONE_OK) {
            refused(st, &err);
            continue;
        }
        FF_MUST(hn_url_parse(&u, to, NULL));
        st = hn_url_allowed(to, bases[i], false, &err);
        if (st != HONE_OK) refused(st, &err);
        FF_MUST((st == HONE_OK) == (u.https || (i == 1 && u.loopback)));
        char name[HN_NAME_FILE];
        if (hn_name_url_file(name, to))
            FF_MUST(hn_hub_path_ok(name) && !strchr(name, '/') && strlen(name) < sizeof name);
        free(to);
    }
}

/* What a hub refuses, and what the user may do about it. */
static hn_fetch *client;

static void leave(void) { hn_fetch_free(client); }

static void a_refusal(const char *text, size_t n)
{
    static bool tried;
    static const char *const revs[] = { "", "dev" }, *const paths[] = { NULL, "a.gguf" };
    const hn_fetch_rules rules = { .endpoint = "https://h", .tries = 1 };
    hone_error err = { 0 };
    hn_fetch_head a;
    if (!tried && hn_fetch_new(&client, &rules, &err) == HONE_OK) atexit(leave);
    tried = true;
    hn_head_clear(&a);
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at + 1 : n - at;
        if (len > 9 && memcmp(text + at, "HTTP/", 5) == 0) hn_head_begin(&a, text + at, len);
        else hn_head_line(&a, text + at, len, true);
        at += len;
    }
    for (int i = 0; client && i < 4; i++)
        refused(hn_hub_refusal(client, &a, "o/r", revs[i % 2], paths[i / 2], &err), &err);
}

/* ---- files: in a folder that is made once ---------------------------------------------------------------- */

static char dir[] = "/tmp/hone-fuzz-hub-XXXXXX";
static const char *const folders[] = { "",
                                       "/ollama",
                                       "/ollama/manifests",
                                       "/ollama/manifests/registry.ollama.ai",
                                       "/ollama/manifests/registry.ollama.ai/library",
                                       "/ollama/manifests/registry.ollama.ai/library/m",
                                       "/ollama/blobs",
                                       "/hone",
                                       "/ck" };
#define BLOB "/ollama/blobs/sha256-abababababababababababababababababababababababababababababababab"
static const char *const files[] = { "/f",
                                     "/f.hone-part",
                                     "/f.hone-part.json",
                                     "/ollama/manifests/registry.ollama.ai/library/m/latest",
                                     "/hone/names",
                                     "/ck/config.json",
                                     "/ck/model-00001-of-00002.safetensors",
                                     "/ck/model-00002-of-00002.safetensors",
                                     "/ck/model.safetensors.index.json",
                                     BLOB,
                                     "/token" };

static const char *at(const char *leaf)
{
    static char path[4][160];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof path[i], "%s%s", dir, leaf);
    return path[i];
}

static void clean(void)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(at(files[i]));
    for (size_t i = sizeof folders / sizeof *folders; i-- > 0;) rmdir(at(folders[i]));
}

static void put(const char *leaf, const char *text, size_t n)
{
    FILE *f = fopen(at(leaf), "wb");
    FF_MUST(f && (!n || fwrite(text, 1, n, f) == n) && fclose(f) == 0);
}

static void prepare(void)
{
    FF_MUST(mkdtemp(dir) != NULL);
    for (size_t i = 1; i < sizeof folders / sizeof *folders; i++) FF_MUST(mkdir(at(folders[i]), 0700) == 0);
    for (size_t i = 5; i < 8; i++) put(files[i], "{}", 2);
    setenv("XDG_CONFIG_HOME", dir, 1);
    setenv("HOME", dir, 1);
    atexit(clean);
}

#define OWN "pet org/tiny-GGUF:F16\ntalk-1b ollama:llama3.2:1b\n"

static void a_typed_name(const char *text)
{
    static hn_name n, again; /* their strings are compared whole: what is behind the ends too */
    char back[HN_NAME_URL_MAX];
    hone_error err = { 0 };
    put(files[4], OWN, sizeof OWN - 1);
    hone_status st = hn_name_parse(&n, text, &err);
    if (st != HONE_OK) {
        refused(st, &err);
        return;
    }
    if (n.kind == HN_NAME_NONE) return;
    hn_name_text(back, sizeof back, &n);
    FF_MUST(hn_name_parse(&again, back, &err) == HONE_OK && again.kind == n.kind && again.folder == n.folder);
    FF_MUST(!strcmp(again.repo, n.repo) && !strcmp(again.tag, n.tag) && !strcmp(again.path, n.path));
    FF_MUST(!strcmp(again.host, n.host) && !strcmp(again.url, n.url) && !strcmp(again.rev, n.rev));
    FF_MUST(n.kind != HN_NAME_HUB || (hn_hub_repo_ok(n.repo) && (!*n.path || hn_hub_path_ok(n.path))));
    st = hn_name_expand(&n, &err);
    if (st != HONE_OK) refused(st, &err);
    FF_MUST(st != HONE_OK || n.kind == again.kind || again.kind == HN_NAME_BARE);
}

enum { SIZE = 10000 };

static void st_is_io(hone_status st, const hone_error *err)
{
    refused(st, err);
    FF_MUST(st == HONE_E_IO);
}

/* What a journal says is believed only as far as it can be; then all of the part is as it says. */
static void a_journal(const char *text, size_t n)
{
    char whole[128], part[128], journal[128], etag[HN_HEAD_NAME];
    snprintf(whole, sizeof whole, "%s", at(files[0]));
    snprintf(part, sizeof part, "%s", at(files[1]));
    snprintf(journal, sizeof journal, "%s", at(files[2]));
    const hn_part_names names = { .whole = whole, .part = part, .journal = journal, .what = "f", .size = 10000 };
    hn_part p;
    bool is_whole;
    hone_error err = { 0 };
    uint64_t size, sum = 0;
    put(files[2], text, n);
    FF_MUST(hn_part_lock(&p, &names, &is_whole, NULL, NULL, NULL, &err) == HONE_OK && !is_whole);
    FF_MUST(truncate(part, 10000) == 0);
    hn_part_known(&p, etag, &size);
    FF_MUST(hn_part_open(&p, 10000, "e", 4096, &err) == HONE_OK && p.n_piece > 0);
    for (size_t i = 0; i < p.n_piece; i++) {
        FF_MUST(p.have[i] <= hn_part_len(&p, i));
        sum += hn_part_len(&p, i);
    }
    FF_MUST(sum == 10000 && p.total <= 10000 && hn_part_prefix(&p) <= p.total);
    uint64_t was = p.total;
    p.journalled = UINT64_MAX; /* write it again: it must say the same */
    FF_MUST(hn_part_note(&p, &err) == HONE_OK);
    hn_part_close(&p, false);
    FF_MUST(hn_part_lock(&p, &names, &is_whole, NULL, NULL, NULL, &err) == HONE_OK);
    FF_MUST(hn_part_open(&p, 10000, "e", 8192, &err) == HONE_OK && p.total == was);
    hn_part_close(&p, true);
    FF_MUST(access(part, F_OK) != 0 && access(journal, F_OK) != 0);
}

static bool at_once(void *arg) { return (void)arg, true; }

/* The bytes of a file come in an order that the text says: what is there is what came, then the whole is what came. */
static void a_part(const uint8_t *order, size_t n)
{
    char whole[160], part[160], journal[160];
    snprintf(whole, sizeof whole, "%s", at(files[0]));
    snprintf(part, sizeof part, "%s", at(files[1]));
    snprintf(journal, sizeof journal, "%s", at(files[2]));
    const hn_part_names names = { .whole = whole, .part = part, .journal = journal, .what = "f", .size = SIZE };
    hn_part p;
    bool is_whole;
    hone_error err = { 0 };
    char all[SIZE], some[SIZE];
    struct stat sb;
    uint64_t sum = 0;
    for (int i = 0; i < SIZE; i++) all[i] = (char)(i * 7 + i / 256);
    FF_MUST(hn_part_lock(&p, &names, &is_whole, NULL, NULL, NULL, &err) == HONE_OK && !is_whole);
    hn_part other; /* somebody else waits, and does not any more */
    FF_MUST(hn_part_lock(&other, &names, &is_whole, at_once, NULL, NULL, &err) == HONE_E_INTERRUPTED);
    FF_MUST(hn_part_open(&p, SIZE, "e", 4096, &err) == HONE_OK && p.total == 0);
    for (size_t i = 0; i < n && i < 256; i++) {
        uint64_t k = order[i] & 15, from;
        if (k >= p.n_piece) {
            FF_MUST(hn_part_note(&p, &err) == HONE_OK && p.journalled == p.total);
            if (order[i] == 0xFF) FF_MUST(hn_part_forget(&p, "f", &err) == HONE_OK && !(sum = p.total));
            continue;
        }
        from = hn_part_first(&p, k) + p.have[k];
        size_t m = (size_t)(order[i] >> 4) * 300 + 1;
        if (m > SIZE - from) m = (size_t)(SIZE - from);
        uint64_t was = p.total;
        FF_MUST(hn_part_put(&p, from, all + from, m) == 0 && p.total >= was && p.total <= SIZE);
        uint64_t first = hn_part_first(&p, k), there = hn_part_covers(&p, first);
        FF_MUST(there == p.have[k] && there <= hn_part_len(&p, k));
        FF_MUST(hn_part_get(&p, first, some, (size_t)there) == 0 && !memcmp(some, all + first, (size_t)there));
    }
    for (size_t i = 0; i < p.n_piece; i++) sum += p.have[i];
    FF_MUST(sum == p.total && hn_part_covers(&p, SIZE) == 0 && hn_part_missing(part, SIZE) <= SIZE);
    if (p.total == SIZE) {
        FF_MUST(hn_part_publish(&p, &err) == HONE_OK);
        hn_part_close(&p, false);
        FF_MUST(stat(whole, &sb) == 0 && sb.st_size == SIZE && hn_part_missing(part, SIZE) == SIZE);
        put(n && order[0] & 16 ? files[1] : files[2], "", 0); /* as of a process that was killed */
        FF_MUST(hn_part_lock(&p, &names, &is_whole, NULL, NULL, NULL, &err) == HONE_OK && is_whole);
        FF_MUST(access(part, F_OK) != 0 && access(journal, F_OK) != 0);
    } else if (n && order[0] & 16) {
        unlink(part); /* somebody takes it away */
        st_is_io(hn_part_publish(&p, &err), &err);
    }
    hn_part_close(&p, true);
    for (int i = 0; i < 3; i++) unlink(at(files[i]));
}

/* ---- the cache: lines: a revision, what its ref holds, a path, an oid, a folder, a token, an endpoint ----------- */

static int remove_it(const char *path, const struct stat *sb, int type, struct FTW *w)
{
    return (void)sb, (void)type, (void)w, remove(path);
}

static void some_links(const char *root, const char *rev, const char *held, const char *path, const char *oid)
{
    char where[HN_CACHE_PATH], commit[41], *text;
    hone_error err = { 0 };
    size_t n;
    hone_status st = hn_cache_set_ref(root, "o/r", rev, COMMIT, &err);
    if (st != HONE_OK) refused(st, &err);
    else FF_MUST(hn_cache_ref(commit, root, "o/r", rev, &err) == HONE_OK);
    if (st == HONE_OK && !hn_hub_commit_ok(rev)) {
        FF_MUST(!strcmp(commit, COMMIT));
        FF_MUST(hn_cache_path(where, HN_CACHE_REF, root, "o/r", *rev ? rev : "main", NULL, &err) == HONE_OK);
        FF_MUST(is_path(where, root) && hn_file_replace(where, held, strlen(held), &err) == HONE_OK);
        st = hn_cache_ref(commit, root, "o/r", rev, &err);
        if (st != HONE_OK) refused(st, &err);
        FF_MUST((st == HONE_OK) == hn_hub_commit_ok(commit));
    }
    st = hn_cache_ref(commit, root, "o/r", "nowhere", &err);
    FF_MUST(st == HONE_OK || (st == HONE_E_IO && !*commit));

    st = hn_cache_link(root, "o/r", COMMIT, path, oid, &err);
    refused(st, &err); /* the blob is not there */
    if (hn_cache_path(where, HN_CACHE_BLOB, root, "o/r", oid, NULL, &err) != HONE_OK) return;
    FF_MUST(hn_file_make_folders(where, &err) == HONE_OK && hn_file_replace(where, "blob", 4, &err) == HONE_OK);
    for (int i = 0; i < 2; i++) {
        st = hn_cache_link(root, "o/r", COMMIT, path, oid, &err);
        if (st != HONE_OK) {
            refused(st, &err);
            return;
        }
        FF_MUST(hn_cache_path(where, HN_CACHE_SNAPSHOT, root, "o/r", COMMIT, path, &err) == HONE_OK);
        FF_MUST(is_path(where, root) && hn_source_text(&text, &n, where, 100, &err) == HONE_OK);
        FF_MUST(n == 4 && !memcmp(text, "blob", 4));
        free(text);
    }
    refused(hn_cache_no_link(where, &err), &err);
}

static void a_cache(char *text)
{
    static const char *const vars[] = { "HF_HUB_CACHE", "OLLAMA_MODELS", "HF_TOKEN_PATH", "XDG_DATA_HOME" };
    char *line[7], root[HN_CACHE_PATH], *token = NULL;
    hone_error err = { 0 };
    for (int i = 0; i < 7; i++) {
        line[i] = text;
        text += strcspn(text, "\n");
        if (*text) *text++ = 0;
    }
    some_links(at("/hub"), line[0], line[1], line[2], line[3]);
    nftw(at("/hub"), remove_it, 8, FTW_DEPTH | FTW_PHYS);

    for (size_t i = 0; i < 4; i++)
        if (*line[4]) setenv(vars[i], line[4], 1);
    for (int i = 0; i < 4; i++) {
        hone_status st = i == 0   ? hn_cache_root(root, &err)
                         : i == 1 ? hn_ollama_root(root, &err)
                         : i == 2 ? hn_cache_token_path(root, &err)
                                  : hn_models_home(root, &err);
        if (st != HONE_OK) refused(st, &err);
        FF_MUST((st == HONE_OK) == (*root != 0) && memchr(root, 0, sizeof root));
    }
    if (*line[5]) setenv("HF_TOKEN", line[5], 1);
    if (*line[6]) setenv("HF_ENDPOINT", line[6], 1);
    put("/token", line[1], strlen(line[1])); /* where it is not in the environment */
    setenv("HF_TOKEN_PATH", at("/token"), 1);
    hone_status st = hn_hub_token(&token, root, sizeof root, &err);
    if (st != HONE_OK) refused(st, &err);
    FF_MUST(st == HONE_OK || !token);
    for (const unsigned char *p = (unsigned char *)token; p && *p; p++) FF_MUST(*p > ' ' && *p < 0x7F);
    free(token);
    hn_hub_endpoint(root, sizeof root);
    FF_MUST(!*root || root[strlen(root) - 1] != '/');
    for (size_t i = 0; i < 4; i++) unsetenv(vars[i]);
    unsetenv("HF_TOKEN");
    unsetenv("HF_ENDPOINT");
}

/* ---- whole pulls, of a server on this machine ------------------------------------------------------------------ */

static struct {
    int fd;
    char at[32];
    pthread_mutex_t mu;
    const char *next, *end; /* guarded by mu */
} server = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void say_next(const char *from, const char *end)
{
    pthread_mutex_lock(&server.mu);
    server.next = from;
    server.end = end;
    pthread_mutex_unlock(&server.mu);
}

/* A request is answered by the next piece: as it is where it begins with HTTP/, else as the body of a good answer. */
static void answer(int fd)
{
    char asked[8192], head[128];
    size_t n = 0;
    ssize_t k;
    while (n + 1 < sizeof asked && (k = recv(fd, asked + n, sizeof asked - 1 - n, 0)) > 0) {
        asked[n += (size_t)k] = 0;
        if (strstr(asked, "\r\n\r\n")) break;
    }
    pthread_mutex_lock(&server.mu);
    const char *next = server.next, *end = next < server.end ? memchr(next, 0xFF, (size_t)(server.end - next)) : NULL;
    if (!end) end = server.end;
    size_t len = (size_t)(end - next);
    bool any = next < server.end;
    char *s = malloc(len + 1); /* who asked may be gone before it is sent, and the input with him */
    FF_MUST(s);
    if (len) memcpy(s, next, len);
    server.next = end < server.end ? end + 1 : end;
    pthread_mutex_unlock(&server.mu);
    snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", any ? 200 : 404,
             len);
    bool raw = len >= 5 && !memcmp(s, "HTTP/", 5);
    if (raw || send(fd, head, strlen(head), MSG_NOSIGNAL) >= 0)
        for (size_t sent = 0; sent < len && (k = send(fd, s + sent, len - sent, MSG_NOSIGNAL)) > 0;) sent += (size_t)k;
    free(s);
    shutdown(fd, SHUT_WR);
}

static void *serve(void *arg)
{
    for (int fd; (fd = accept(server.fd, NULL, NULL)) >= 0; close(fd)) answer(fd);
    return arg;
}

static void begin_server(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof a;
    pthread_t t;
    server.fd = socket(AF_INET, SOCK_STREAM, 0);
    FF_MUST(server.fd >= 0 && bind(server.fd, (struct sockaddr *)&a, n) == 0 && listen(server.fd, 16) == 0);
    FF_MUST(getsockname(server.fd, (struct sockaddr *)&a, &n) == 0);
    snprintf(server.at, sizeof server.at, "127.0.0.1:%d", ntohs(a.sin_port));
    FF_MUST(pthread_create(&t, NULL, serve, NULL) == 0 && pthread_detach(t) == 0);
}

static bool often(void *arg) { return ++*(int *)arg > 400; }

/* What is said to be here is here, and as large as it says. */
static void pulled(const hn_pulled *p)
{
    struct stat sb;
    FF_MUST(is_path(p->path, at("/pulled")) && stat(p->path, &sb) == 0);
    FF_MUST(p->name.kind != HN_NAME_HUB || hn_hub_commit_ok(p->commit));
    for (size_t i = 0; i < p->n; i++)
        FF_MUST(is_path(p->file[i].local, at("/pulled")) && stat(p->file[i].local, &sb) == 0 &&
                (uint64_t)sb.st_size == p->file[i].size);
}

static void a_pull(const char *text, size_t n)
{
    char name[64], endpoint[64];
    int turns = 0;
    hone_error err = { 0 };
    const hn_pull_want want = { .silence_s = 5, .tries = 1, .n_conn = 1, .piece = 4096, .stop = often, .arg = &turns };
    const struct rlimit small = { 1 << 20, RLIM_INFINITY };
    struct rlimit was;
    if (!n) return;
    if (!*server.at) begin_server();
    say_next(text + 1, text + n);
    snprintf(endpoint, sizeof endpoint, "http://%s", server.at);
    const char *port = strchr(server.at, ':');
    if (*text & 1) snprintf(name, sizeof name, "ollama:%s/o/m", server.at);
    else if (*text & 2)
        snprintf(name, sizeof name, "http://localhost%s/x.gguf", port); /* the endpoint's are the hub's */
    else snprintf(name, sizeof name, "o/r%s", *text & 4 ? ":Q8_0" : "");
    setenv("HF_ENDPOINT", endpoint, 1);
    setenv("HF_HUB_CACHE", at("/pulled"), 1);
    setenv("OLLAMA_MODELS", at("/pulled"), 1);
    setenv("XDG_DATA_HOME", at("/pulled"), 1);
    signal(SIGXFSZ, SIG_IGN); /* nobody takes a gigabyte of this disk for what a list says */
    FF_MUST(getrlimit(RLIMIT_FSIZE, &was) == 0 && setrlimit(RLIMIT_FSIZE, &small) == 0);
    if (*text & 8) {
        hn_pull_list l;
        hone_status st = hn_pull_look(&l, name, &want, &err);
        if (st != HONE_OK) refused(st, &err);
        else FF_MUST(hn_hub_commit_ok(l.commit) && (l.chosen == SIZE_MAX ? *l.why != 0 : l.chosen < l.sets.n));
        hn_pull_list_free(&l);
    } else {
        hn_pulled p;
        hone_status st = hn_pull(&p, name, &want, &err);
        if (st != HONE_OK) refused(st, &err);
        else pulled(&p);
        hn_pulled_free(&p);
    }
    say_next(NULL, NULL);
    setrlimit(RLIMIT_FSIZE, &was);
    nftw(at("/pulled"), remove_it, 8, FTW_DEPTH | FTW_PHYS);
    unsetenv("HF_ENDPOINT");
    unsetenv("HF_HUB_CACHE");
    unsetenv("OLLAMA_MODELS");
    unsetenv("XDG_DATA_HOME");
}

static void a_manifest(const char *text, size_t n, bool there)
{
    static const hn_json_rules rules = { .max_bytes = 1 << 20, .max_depth = 16, .fault = HONE_E_NETWORK };
    static const hn_name name = {
        .kind = HN_NAME_OLLAMA, .host = "registry.ollama.ai", .repo = "library/m", .tag = "latest"
    };
    static hn_ollama_layer l[HN_LAYERS + 1];
    size_t n_layer, model;
    json_t *o;
    hone_error err = { 0 };
    hone_status st = hn_json_tree(&o, text, n, &rules, "m", &err);
    bool pulled = st == HONE_OK && (st = hn_ollama_layers(l, &n_layer, &model, &name, o, &err)) == HONE_OK;
    if (st != HONE_OK) refused(st, &err);
    for (size_t i = 0; pulled && i < n_layer; i++) {
        char path[HN_CACHE_PATH];
        FF_MUST(hn_ollama_blob(path, "/s", l[i].digest, &err) == HONE_OK && is_path(path, "/s/blobs"));
        FF_MUST(l[i].size <= (uint64_t)1 << 50);
    }
    if (pulled) FF_MUST(model < n_layer && n_layer <= HN_LAYERS + 1);
    json_decref(o);

    hn_local m = { .name = "ollama:m" };
    hn_arena *arena = hn_arena_new();
    put(files[3], text, n);
    if (there) put(BLOB, "12345", 5);
    FF_MUST(arena && hn_store_read(&m, arena, at("/ollama"), &name, &err) == HONE_OK);
    FF_MUST(there || *m.trouble);
    for (size_t i = 0; i < m.n_file; i++) FF_MUST(is_path(m.file[i], at("/ollama/blobs")));
    unlink(at(BLOB));
    hn_arena_free(arena);
}

static void an_index(const char *text, size_t n)
{
    hn_cache_dir d;
    hn_arena *arena = hn_arena_new();
    hone_error err = { 0 };
    put(files[8], text, n);
    FF_MUST(arena && hn_cache_walk(&d, arena, at("/ck"), at("/ck"), 2, false, &err) == HONE_OK);
    const char *trouble = hn_checkpoint_trouble(&d);
    FF_MUST(trouble);
    for (const unsigned char *p = (const unsigned char *)trouble; *p; p++) FF_MUST(*p >= 0x20 && *p != 0x7F);
    hn_arena_free(arena);
}

static void the_names(const char *text, size_t n)
{
    hn_short_names s;
    hone_error err = { 0 };
    put(files[4], text, n);
    hone_status st = hn_short_names_read(&s, &err);
    if (st != HONE_OK) {
        refused(st, &err);
        return;
    }
    for (size_t i = 0; i < s.n; i++) {
        hn_name name;
        FF_MUST(hn_ollama_part_ok(s.list[i].name) && hn_name_parse(&name, s.list[i].means, &err) == HONE_OK);
        FF_MUST(name.kind == HN_NAME_HUB || name.kind == HN_NAME_OLLAMA || name.kind == HN_NAME_URL);
    }
    hn_short_names_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool prepared;
    if (!prepared) prepare();
    prepared = true;
    if (!size || size > 1 << 16) return 0;
    size_t n = size - 1;
    char *text = malloc(n + 1); /* what follows its end is nobody's: a location is a string, the others have a length */
    FF_MUST(text);
    memcpy(text, data + 1, n);
    text[n] = 0;
    switch (data[0] & 15) {
    case 0: a_commit((const char *)data + 1, n); break;
    case 1: a_page((const char *)data + 1, n); break;
    case 2:
    case 10: a_manifest((const char *)data + 1, n, data[0] & 8); break;
    case 3: a_head((const char *)data + 1, n); break;
    case 4: a_location(text); break;
    case 5: a_journal(text, n); break;
    case 6: an_index(text, n); break;
    case 7: the_names(text, n); break;
    case 8: a_cache(text); break;
    case 9: a_pull(text, n); break;
    case 11: a_refusal((const char *)data + 1, n); break;
    case 12: a_typed_name(text); break;
    case 13: a_part(data + 1, n); break;
    }
    free(text);
    return 0;
}
