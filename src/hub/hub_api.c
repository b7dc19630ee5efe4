/* hub_api: the hub's API, as far as pulling needs it (huggingface_hub: hf_api.py, file_download.py). */
#include "hub/hub_api.h"
#include "hub/url.h"

#include "base/json_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PAGES = 2000, MAX_FILES = 1 << 20, MAX_ANSWER = 16 << 20 };

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

hone_status hn_hub_token(char **token, hone_error *err)
{
    static const char *const vars[] = { "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN" };
    char path[4096] = "", text[4096];
    *token = NULL;
    for (size_t i = 0; i < 2 && !*token; i++) {
        const char *v = getenv(vars[i]);
        hone_status st = v ? taken(token, v, vars[i], err) : HONE_OK;
        if (st != HONE_OK || *token) return st;
    }
    const char *at = getenv("HF_TOKEN_PATH"), *home = getenv("HF_HOME"), *xdg = getenv("XDG_CACHE_HOME"),
               *user = getenv("HOME");
    if (at && *at) snprintf(path, sizeof path, "%s", at);
    else if (home && *home) snprintf(path, sizeof path, "%s/token", home);
    else if (xdg && *xdg) snprintf(path, sizeof path, "%s/huggingface/token", xdg);
    else if (user && *user) snprintf(path, sizeof path, "%s/.cache/huggingface/token", user);
    int fd = *path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0) return HONE_OK;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return taken(token, text, path, err);
}

/* ---- refusals --------------------------------------------------------------------------------------- */

hone_status hn_hub_refusal(const hn_fetch *h, const hn_fetch_head *a, const char *repo, const char *rev,
                           const char *path, hone_error *err)
{
    const hn_fetch_rules *r = hn_fetch_rules_of(h);
    char said[300] = "";
    const char *ep = r->endpoint ? r->endpoint : "the hub";
    bool token = r->token != NULL;
    if (*a->message) snprintf(said, sizeof said, " (it says: %s)", HN_ESC(a->message, strlen(a->message)));
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

/* The text as JSON, or the refusal. */
static hone_status read_answer(json_t **out, const hn_fetch *h, const hn_fetch_text *t, const char *repo,
                               const char *rev, const char *which, hone_error *err)
{
    *out = NULL;
    if (t->head.status != 200 || t->head.html) return hn_hub_refusal(h, &t->head, repo, rev, NULL, err);
    return hn_json_tree(out, t->p, t->n, &rules, which, err);
}

static hone_status read_commit(hn_fetch *h, hn_hub_repo *out, const char *endpoint, const char *repo, const char *rev,
                               hone_error *err)
{
    char url[2048];
    char *q = hn_url_quote(*rev ? rev : "main", false);
    hn_fetch_text t = { .p = NULL };
    json_t *o = NULL;
    if (!q) return HN_FAIL(err, HONE_E_NOMEM, "an address");
    snprintf(url, sizeof url, "%s/api/models/%s/revision/%s", endpoint, repo, q);
    free(q);
    hone_status st = hn_fetch_get(h, &t, url, "application/json", MAX_ANSWER, err);
    if (st == HONE_OK) st = read_answer(&o, h, &t, repo, rev, "the hub's answer about the revision", err);
    if (st == HONE_OK) {
        const char *sha = hn_json_text_of(o, "sha");
        if (hn_hub_commit_ok(sha)) snprintf(out->commit, sizeof out->commit, "%s", sha);
        else
            st = HN_FAIL(err, HONE_E_NETWORK, "%s: the hub says its commit is '%s'; expected 40 hexadecimal digits",
                         repo, HN_ESC(sha, strlen(sha)));
    }
    json_decref(o);
    hn_fetch_text_free(&t);
    return st;
}

static hone_status grow(hn_hub_repo *r, size_t more, hone_error *err)
{
    size_t n = r->n + more;
    if (n > MAX_FILES)
        return HN_FAIL(err, HONE_E_NETWORK, "the hub lists more than %d files; expected less", MAX_FILES);
    hn_repo_file *file = realloc(r->file, (n + 1) * sizeof *file);
    if (file) r->file = file;
    char(*oid)[65] = realloc(r->oid, (n + 1) * sizeof *oid);
    if (oid) r->oid = oid;
    return file && oid ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "a list of %zu files", n);
}

static hone_status add_entry(hn_hub_repo *r, const char *repo, const json_t *e, hone_error *err)
{
    const char *path = hn_json_text_of(e, "path"), *oid = hn_json_text_of(e, "oid");
    const json_t *lfs = json_object_get(e, "lfs"), *size = json_object_get(e, "size");
    if (json_is_object(lfs)) {
        oid = hn_json_text_of(lfs, "oid");
        if (strncmp(oid, "sha256:", 7) == 0) oid += 7;
        if (json_is_integer(json_object_get(lfs, "size"))) size = json_object_get(lfs, "size");
    }
    if (!hn_hub_path_ok(path))
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: the hub lists a file '%s', which cannot be: expected a path below the "
                       "repository. Nothing was pulled",
                       repo, HN_ESC(path, strlen(path)));
    if (!hn_hub_oid_ok(oid))
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: the hub says the content of '%s' is '%s'; expected 40 or 64 hexadecimal "
                       "digits",
                       repo, HN_ESC(path, strlen(path)), HN_ESC(oid, strlen(oid)));
    if (!json_is_integer(size) || json_integer_value(size) < 0 || json_integer_value(size) > (json_int_t)1 << 50)
        return HN_FAIL(err, HONE_E_NETWORK, "%s: the hub says no size of '%s' that could be", repo,
                       HN_ESC(path, strlen(path)));
    char *mine = hn_arena_strndup(r->arena, path, strlen(path));
    if (!mine) return HN_FAIL(err, HONE_E_NOMEM, "the name of a file");
    r->file[r->n] = (hn_repo_file){ mine, (uint64_t)json_integer_value(size) };
    snprintf(r->oid[r->n], sizeof r->oid[r->n], "%s", oid);
    r->n++;
    return HONE_OK;
}

static hone_status read_page(hn_fetch *h, hn_hub_repo *r, const char *url, char **next, const char *repo,
                             hone_error *err)
{
    hn_fetch_text t = { .p = NULL };
    json_t *list = NULL;
    *next = NULL;
    hone_status st = hn_fetch_get(h, &t, url, "application/json", MAX_ANSWER, err);
    if (st == HONE_OK) st = read_answer(&list, h, &t, repo, r->commit, "the hub's list of files", err);
    if (st == HONE_OK && !json_is_array(list))
        st = HN_FAIL(err, HONE_E_NETWORK, "%s: the hub's list of files is %s; expected a list", repo,
                     hn_json_kind(list));
    if (st == HONE_OK) st = grow(r, json_array_size(list), err);
    for (size_t i = 0; st == HONE_OK && i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);
        if (strcmp(hn_json_text_of(e, "type"), "file") == 0) st = add_entry(r, repo, e, err);
    }
    if (st == HONE_OK && t.next) {
        if (hn_url_same_origin(t.next, url)) *next = strdup(t.next);
        if (!*next) st = HN_FAIL(err, HONE_E_NETWORK, "%s: the hub's list of files goes on elsewhere", repo);
    }
    json_decref(list);
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
