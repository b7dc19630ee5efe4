/* hub_api: the hub's API, as far as pulling needs it (huggingface_hub: hf_api.py, file_download.py). */
#include "hub/hub_api.h"
#include "hub/cache.h"
#include "hub/url.h"

#include "base/json.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PAGES = 2000, MAX_FILES = 200000, MAX_NAMES = 64 << 20, MAX_ANSWER = 16 << 20 };

static const hn_json_rules rules = {
    .max_bytes = MAX_ANSWER, .max_depth = 32, .flags = HN_JSON_BIG, .fault = HONE_E_NETWORK
};

const char *hn_hub_endpoint(char *dst, size_t cap)
{
    const char *e = getenv("HF_ENDPOINT");
    snprintf(dst, cap, "%s", e && *e ? e : "https://huggingface.co");
    for (size_t n = strlen(dst); n && dst[n - 1] == '/'; n--) dst[n - 1] = 0;
    return dst;
}

/* ---- the token ------------------------------------------------------------------------------------ */

static hone_status taken(char **token, const char *text, const char *from, hone_error *err)
{
    const char *begin = text + strspn(text, " \t\r\n"), *end = begin + strcspn(begin, " \t\r\n");
    if (end == begin) return HONE_OK;
    for (const char *p = begin; p < end; p++)
        if (*p < '!' || *p > '~')
            return HN_FAIL(err, HONE_E_ARG, "%s: byte %zu is none of a token; expected letters and digits, as hf_…",
                           from, (size_t)(p - begin) + 1);
    *token = strndup(begin, (size_t)(end - begin));
    return *token ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "the token");
}

hone_status hn_hub_token(char **token, char *from, size_t cap, hone_error *err)
{
    static const char *const vars[] = { "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN" };
    char path[HN_CACHE_PATH], text[4096];
    *token = NULL;
    for (size_t i = 0; i < 2 && !*token; i++) {
        const char *v = getenv(vars[i]);
        hone_status st = v ? taken(token, v, vars[i], err) : HONE_OK;
        snprintf(from, cap, "%s", vars[i]);
        if (st != HONE_OK || *token) return st;
    }
    if (hn_cache_token_path(path, NULL) != HONE_OK) return HONE_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return HONE_OK;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    snprintf(from, cap, "%s", path);
    return taken(token, text, path, err);
}

/* ---- refusals --------------------------------------------------------------------------------------- */

/* Is it the token that is refused, whatever is asked for? Only words say so: it has no code, and the status of what is
 * private and not told. */
static bool knows_no_token(const hn_fetch_head *a)
{
    return a->status == 401 && (strstr(a->message, "Invalid credentials") || strstr(a->message, "is expired"));
}

hone_status hn_hub_refusal(const hn_fetch *h, const hn_fetch_head *a, const char *repo, const char *rev,
                           const char *path, hone_error *err)
{
    const hn_fetch_rules *r = hn_fetch_rules_of(h);
    char said[300] = "";
    const char *ep = r->endpoint ? r->endpoint : "the hub";
    bool token = r->token != NULL;
    if (*a->message) snprintf(said, sizeof said, " (it says: %s)", HN_ESC(a->message, strlen(a->message)));
    if (token && knows_no_token(a))
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: the hub refuses the token of %s (status 401), for whatever there is: expected one that it "
                       "knows, or none, which does for what is public%s",
                       repo, r->token_from ? HN_ESC(r->token_from, strlen(r->token_from)) : "HF_TOKEN", said);
    if (strcmp(a->code, "GatedRepo") == 0)
        return HN_FAIL(err, HONE_E_NETWORK, "%s is gated: accept its licence at %s/%s, then %s%s", repo, ep, repo,
                       token ? "pull again with a token of that account (HF_TOKEN)"
                             : "set HF_TOKEN to a token of your account",
                       said);
    if (strcmp(a->code, "RevisionNotFound") == 0)
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s has no revision '%s'; expected a branch, tag or commit that %s/%s/tree/main "
                       "shows",
                       repo, *rev ? rev : "main", ep, repo);
    if (strcmp(a->code, "EntryNotFound") == 0 || (a->status == 404 && path && strcmp(a->code, "RepoNotFound") != 0))
        return HN_FAIL(err, HONE_E_NETWORK, "%s has no file '%s'; hone pull --list %s shows what it has", repo,
                       path ? HN_ESC(path, strlen(path)) : "", repo);
    if (strcmp(a->code, "RepoNotFound") == 0 || (a->status == 401 && !path) || (a->status == 404 && !path && !a->html))
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: there is no such repository at %s, or it is private, or gated: look at "
                       "the spelling; %s%s",
                       repo, ep,
                       token ? "or the token lacks the right to read it" : "where it is private, set HF_TOKEN", said);
    if (a->status == 401)
        return HN_FAIL(err, HONE_E_NETWORK, "%s: the hub wants a %s (status 401): set HF_TOKEN%s", repo,
                       token ? "valid token; this one it does not know" : "token", said);
    if (a->status == 403)
        return HN_FAIL(err, HONE_E_NETWORK, "%s: the hub forbids it (status 403): %s%s", repo,
                       token ? "the token lacks the right to read it" : "set HF_TOKEN if it is private", said);
    if (a->wait_s > HN_FETCH_MOST_WAIT_S)
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: the hub answers with status %d and asks to be left alone for %.0f s; hone waits up to %d: "
                       "pull again then%s",
                       repo, a->status, a->wait_s, HN_FETCH_MOST_WAIT_S,
                       token ? "" : ", or set HF_TOKEN: who is known may ask more often");
    if (a->status == 429)
        return HN_FAIL(err, HONE_E_NETWORK, "%s: too many requests (status 429), also after waiting; try again later%s",
                       repo, token ? "" : ", or set HF_TOKEN: who is known may ask more often");
    if (a->html || (a->status >= 200 && a->status < 300))
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: what answers at %s is no hub (status %d%s); expected the API of a hub "
                       "(HF_ENDPOINT), or a network without a page of its own in between",
                       repo, ep, a->status, a->html ? ", a web page" : "");
    return HN_FAIL(err, HONE_E_NETWORK, "%s: the hub answers with status %d%s; expected 200: try again later", repo,
                   a->status, said);
}

/* ---- commit and files --------------------------------------------------------------------------------- */

char *hn_hub_address(const char *endpoint, const char *repo, const char *commit, const char *path)
{
    char *p = hn_url_quote(path, true), *url = NULL;
    size_t n = strlen(endpoint) + strlen(repo) + strlen(commit) + strlen(p ? p : "") + 16;
    if (p && (url = malloc(n))) snprintf(url, n, "%s/%s/resolve/%s/%s", endpoint, repo, commit, p);
    free(p);
    return url;
}

/* The string that stands here; "" for anything else, and for one that does not fit, whose length *n is all the same. */
static hone_status text_at(hn_jread *j, char *dst, size_t cap, size_t *n)
{
    hn_jread_item it;
    hone_status st = hn_jread_scalar(j, &it);
    *dst = 0;
    *n = 0;
    if (st != HONE_OK) return st;
    if (it.kind == HN_JSON_ARRAY || it.kind == HN_JSON_OBJECT) return hn_jread_skip(j);
    if (it.kind != HN_JSON_STRING) return HONE_OK;
    *n = it.str.n;
    if (it.str.n >= cap) return HONE_OK;
    hn_jread_unescape(dst, &it.str);
    dst[it.str.n] = 0;
    return HONE_OK;
}

/* A number of bytes that a file may have; -1: what stands here is none. */
static hone_status size_at(hn_jread *j, int64_t *size)
{
    hn_jread_item it;
    hone_status st = hn_jread_scalar(j, &it);
    *size = -1;
    if (st != HONE_OK) return st;
    if (it.kind == HN_JSON_ARRAY || it.kind == HN_JSON_OBJECT) return hn_jread_skip(j);
    if (it.kind == HN_JSON_NUMBER && it.num.kind == HN_JSON_INT && it.num.i >= 0 && it.num.i <= (int64_t)1 << 50)
        *size = it.num.i;
    return HONE_OK;
}

typedef hone_status member(hn_jread *j, const char *key, void *arg);

/* Every member of the object that begins here, which fn reads or passes over. */
static hone_status each_member(hn_jread *j, member *fn, void *arg)
{
    char key[32];
    bool more;
    hone_status st;
    for (st = hn_jread_open(j, '{', &more); st == HONE_OK && more;) {
        hn_jread_text t;
        if ((st = hn_jread_key(j, &t)) != HONE_OK) break;
        *key = 0;
        if (t.n < sizeof key) {
            hn_jread_unescape(key, &t);
            key[t.n] = 0;
        }
        st = fn(j, key, arg);
        if (st == HONE_OK) st = hn_jread_next(j, '{', &more);
    }
    return st;
}

static hone_status read_sha(hn_jread *j, const char *key, void *arg)
{
    size_t n;
    return strcmp(key, "sha") == 0 ? text_at(j, arg, 128, &n) : hn_jread_skip(j);
}

hone_status hn_hub_commit_of(char commit[41], const char *text, size_t n, const char *repo, const char *rev,
                             hone_error *err)
{
    hn_jread j;
    char sha[128] = "";
    *commit = 0;
    hone_status st = hn_jread_begin(&j, text, n, &rules, "the hub's answer about the revision", NULL, err);
    if (st == HONE_OK) st = each_member(&j, read_sha, sha);
    if (st == HONE_OK) st = hn_jread_end(&j);
    if (st != HONE_OK) return st;
    if (!hn_hub_commit_ok(sha))
        return HN_FAIL(err, HONE_E_NETWORK, "%s: the hub says its commit is '%s'; expected 40 hexadecimal digits", repo,
                       HN_ESC(sha, strlen(sha)));
    if (hn_hub_commit_ok(rev) && strcmp(rev, sha) != 0)
        return HN_FAIL(err, HONE_E_NETWORK, "%s: asked for commit %s, the hub answers with %s; expected the same", repo,
                       rev, sha);
    memcpy(commit, sha, 41);
    return HONE_OK;
}

typedef struct listed {
    char type[16], path[HN_NAME_PATH_MAX], oid[80], lfs_oid[80];
    size_t n_path;
    int64_t size, lfs_size;
    bool lfs;
} listed;

static hone_status read_lfs(hn_jread *j, const char *key, void *arg)
{
    listed *e = arg;
    size_t n;
    if (strcmp(key, "oid") == 0) return text_at(j, e->lfs_oid, sizeof e->lfs_oid, &n);
    if (strcmp(key, "size") == 0) return size_at(j, &e->lfs_size);
    return hn_jread_skip(j);
}

static hone_status read_listed(hn_jread *j, const char *key, void *arg)
{
    listed *e = arg;
    size_t n;
    if (strcmp(key, "type") == 0) return text_at(j, e->type, sizeof e->type, &n);
    if (strcmp(key, "path") == 0) return text_at(j, e->path, sizeof e->path, &e->n_path);
    if (strcmp(key, "oid") == 0) return text_at(j, e->oid, sizeof e->oid, &n);
    if (strcmp(key, "size") == 0) return size_at(j, &e->size);
    if (strcmp(key, "lfs") != 0 || hn_jread_peek(j) != '{') return hn_jread_skip(j);
    e->lfs = true;
    return each_member(j, read_lfs, e);
}

static hone_status grow(hn_hub_repo *r, hone_error *err)
{
    if (r->n < r->cap) return HONE_OK;
    if (r->n >= MAX_FILES)
        return HN_FAIL(err, HONE_E_NETWORK, "the hub lists more than %d files; expected less", MAX_FILES);
    size_t cap = r->cap ? 2 * r->cap : 64;
    hn_repo_file *file = realloc(r->file, cap * sizeof *file);
    if (file) r->file = file;
    char(*oid)[65] = realloc(r->oid, cap * sizeof *oid);
    if (oid) r->oid = oid;
    if (!file || !oid) return HN_FAIL(err, HONE_E_NOMEM, "a list of %zu files", cap);
    r->cap = cap;
    return HONE_OK;
}

static hone_status add_listed(hn_hub_repo *r, const listed *e, const char *repo, hone_error *err)
{
    const char *oid = e->lfs ? e->lfs_oid : e->oid;
    int64_t size = e->lfs && e->lfs_size >= 0 ? e->lfs_size : e->size;
    if (strncmp(oid, "sha256:", 7) == 0) oid += 7;
    if (e->n_path >= sizeof e->path)
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: the hub lists a file whose name has %zu bytes; expected fewer than %zu. Nothing was pulled",
                       repo, e->n_path, sizeof e->path);
    if (!hn_hub_path_ok(e->path))
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: the hub lists a file '%s', which cannot be: expected a path below the "
                       "repository. Nothing was pulled",
                       repo, HN_ESC(e->path, strlen(e->path)));
    if (!hn_hub_oid_ok(oid))
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: the hub says the content of '%s' is '%s'; expected 40 or 64 hexadecimal "
                       "digits",
                       repo, HN_ESC(e->path, strlen(e->path)), HN_ESC(oid, strlen(oid)));
    if (size < 0)
        return HN_FAIL(err, HONE_E_NETWORK, "%s: the hub says no size of '%s' that could be", repo,
                       HN_ESC(e->path, strlen(e->path)));
    hone_status st = grow(r, err);
    if (st != HONE_OK) return st;
    if ((r->n_text += e->n_path + 1) > MAX_NAMES)
        return HN_FAIL(err, HONE_E_NETWORK, "the hub lists names of more than %d bytes; expected less", MAX_NAMES);
    char *mine = hn_arena_strndup(r->arena, e->path, e->n_path);
    if (!mine) return HN_FAIL(err, HONE_E_NOMEM, "the name of a file");
    r->file[r->n] = (hn_repo_file){ mine, (uint64_t)size };
    memcpy(r->oid[r->n++], oid, strlen(oid) + 1); /* 40 or 64, as hn_hub_oid_ok says */
    return HONE_OK;
}

hone_status hn_hub_add_page(hn_hub_repo *r, const char *text, size_t n, const char *repo, hone_error *err)
{
    hn_jread j;
    bool more;
    hone_status st = hn_jread_begin(&j, text, n, &rules, "the hub's list of files", NULL, err);
    if (st == HONE_OK) st = hn_jread_open(&j, '[', &more);
    while (st == HONE_OK && more) {
        listed e;
        e.type[0] = e.path[0] = e.oid[0] = e.lfs_oid[0] = 0;
        e.n_path = 0;
        e.size = e.lfs_size = -1;
        e.lfs = false;
        st = each_member(&j, read_listed, &e);
        if (st == HONE_OK && strcmp(e.type, "file") == 0) st = add_listed(r, &e, repo, err);
        if (st == HONE_OK) st = hn_jread_next(&j, '[', &more);
    }
    return st == HONE_OK ? hn_jread_end(&j) : st;
}

/* ---- asking --------------------------------------------------------------------------------------------- */

/* Is it the answer, or the refusal? */
static hone_status check_answer(const hn_fetch *h, const hn_fetch_text *t, const char *repo, const char *rev,
                                hone_error *err)
{
    if (t->head.status == 200 && !t->head.html) return HONE_OK;
    return hn_hub_refusal(h, &t->head, repo, rev, NULL, err);
}

static hone_status read_commit(hn_fetch *h, hn_hub_repo *out, const char *endpoint, const char *repo, const char *rev,
                               hone_error *err)
{
    char url[2048];
    char *q = hn_url_quote(*rev ? rev : "main", false);
    hn_fetch_text t = { .p = NULL };
    if (!q) return HN_FAIL(err, HONE_E_NOMEM, "an address");
    snprintf(url, sizeof url, "%s/api/models/%s/revision/%s", endpoint, repo, q);
    free(q);
    hone_status st = hn_fetch_get(h, &t, url, "application/json", MAX_ANSWER, err);
    if (st == HONE_OK) st = check_answer(h, &t, repo, rev, err);
    if (st == HONE_OK) st = hn_hub_commit_of(out->commit, t.p, t.n, repo, rev, err);
    hn_fetch_text_free(&t);
    return st;
}

static hone_status read_page(hn_fetch *h, hn_hub_repo *r, const char *url, char **next, const char *repo,
                             hone_error *err)
{
    hn_fetch_text t = { .p = NULL };
    *next = NULL;
    hone_status st = hn_fetch_get(h, &t, url, "application/json", MAX_ANSWER, err);
    if (st == HONE_OK) st = check_answer(h, &t, repo, r->commit, err);
    if (st == HONE_OK) st = hn_hub_add_page(r, t.p, t.n, repo, err);
    if (st == HONE_OK && t.next) {
        if (strcmp(t.next, url) == 0)
            st = HN_FAIL(err, HONE_E_NETWORK, "%s: a page of the hub's list of files is its own next one", repo);
        else if (!hn_url_same_origin(t.next, url))
            st = HN_FAIL(err, HONE_E_NETWORK, "%s: the hub's list of files goes on elsewhere", repo);
        else if (!(*next = strdup(t.next))) st = HN_FAIL(err, HONE_E_NOMEM, "an address");
    }
    hn_fetch_text_free(&t);
    return st;
}

hone_status hn_hub_read(hn_fetch *h, hn_hub_repo *out, const char *endpoint, const char *repo, const char *rev,
                        hone_error *err)
{
    memset(out, 0, sizeof *out);
    out->arena = hn_arena_new();
    if (!out->arena) return HN_FAIL(err, HONE_E_NOMEM, "a list of files");
    hone_status st = read_commit(h, out, endpoint, repo, rev, err);
    size_t n = strlen(endpoint) + strlen(repo) + 96;
    char *url = st == HONE_OK ? malloc(n) : NULL;
    if (st == HONE_OK && !url) st = HN_FAIL(err, HONE_E_NOMEM, "an address");
    if (url) snprintf(url, n, "%s/api/models/%s/tree/%s?recursive=true", endpoint, repo, out->commit);
    for (int page = 0; st == HONE_OK && url; page++) {
        char *next;
        if (page == MAX_PAGES) {
            st = HN_FAIL(err, HONE_E_NETWORK, "%s: the hub's list of files has more than %d pages", repo, MAX_PAGES);
            break;
        }
        st = read_page(h, out, url, &next, repo, err);
        free(url);
        url = next;
    }
    free(url);
    if (st != HONE_OK) hn_hub_repo_free(out);
    return st;
}

void hn_hub_repo_free(hn_hub_repo *r)
{
    free(r->file);
    free(r->oid);
    hn_arena_free(r->arena);
    memset(r, 0, sizeof *r);
}
