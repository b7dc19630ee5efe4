/* names: see names.h. Owns the forms of names and what their parts may be made of. */
#include "hub/names.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#define OLLAMA_HOST "registry.ollama.ai"

/* ---- parts ------------------------------------------------------------------------------------- */

static bool is_hex(const char *s, size_t n) { return strlen(s) == n && strspn(s, "0123456789abcdef") == n; }

bool hn_hub_commit_ok(const char *commit) { return is_hex(commit, 40); }
bool hn_hub_oid_ok(const char *oid) { return is_hex(oid, 40) || is_hex(oid, 64); }

static bool word_char(unsigned char c) { return isalnum(c) || c == '.' || c == '_' || c == '-'; }

/* Owner or name of a repository, by the hub's own rule. */
static bool repo_part_ok(const char *s, size_t n)
{
    if (n < 1 || n > 96 || strchr("-.", s[0]) || strchr("-.", s[n - 1])) return false;
    for (size_t i = 0; i < n; i++) {
        if (!word_char((unsigned char)s[i])) return false;
        if (i && s[i] == s[i - 1] && (s[i] == '-' || s[i] == '.')) return false;
    }
    return n < 4 || strncmp(s + n - 4, ".git", 4) != 0;
}

bool hn_hub_repo_ok(const char *repo)
{
    const char *slash = strchr(repo, '/');
    return slash && repo_part_ok(repo, (size_t)(slash - repo)) && repo_part_ok(slash + 1, strlen(slash + 1));
}

/* What git takes as the name of a ref, of ASCII. */
bool hn_hub_rev_ok(const char *rev)
{
    size_t n = strlen(rev);
    if (n < 1 || n >= HN_NAME_PART || rev[0] == '-' || rev[n - 1] == '.' || rev[n - 1] == '/') return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)rev[i], before = i ? (unsigned char)rev[i - 1] : '/';
        if (c <= ' ' || c >= 0x7F || strchr("~^:?*[\\@", c)) return false;
        if (before == '/' && (c == '/' || c == '.')) return false;
        if (before == '.' && c == '.') return false;
    }
    return true;
}

bool hn_hub_path_ok(const char *path)
{
    size_t n = strlen(path), begin = 0, k;
    if (n < 1 || n >= HN_NAME_PATH_MAX) return false;
    for (size_t i = 0; i < n; i += k)
        if (hn_utf8_next((const unsigned char *)path + i, n - i, &k) < 0) return false;
    for (size_t i = 0; i <= n; i++) {
        unsigned char c = (unsigned char)path[i];
        if (c == '\\' || c == 0x7F || (c < 0x20 && i < n)) return false;
        if (c != '/' && i < n) continue;
        size_t len = i - begin;
        if (len < 1 || len > 255 || (len <= 2 && strncmp(path + begin, "..", len) == 0)) return false;
        begin = i + 1;
    }
    return true;
}

bool hn_ollama_part_ok(const char *part)
{
    size_t n = strlen(part);
    if (n < 1 || n > 80 || !(isalnum((unsigned char)part[0]) || part[0] == '_')) return false;
    for (size_t i = 1; i < n; i++)
        if (!word_char((unsigned char)part[i])) return false;
    return true;
}

/* host or host:port; no user, no brackets. */
static bool host_ok(const char *host)
{
    size_t n = strcspn(host, ":");
    if (n < 1 || !isalnum((unsigned char)host[0]) || host[n - 1] == '.') return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)host[i]) && host[i] != '-' && host[i] != '_' &&
            !(host[i] == '.' && host[i - 1] != '.'))
            return false;
    const char *port = host + n + 1;
    return !host[n] || (strlen(port) >= 1 && strlen(port) <= 5 && strspn(port, "0123456789") == strlen(port));
}

/* ---- one form after the other ------------------------------------------------------------------------ */

static hone_status wrong(hone_error *err, const char *text, const char *what, const char *seen, const char *expected)
{
    return HN_FAIL(err, HONE_E_ARG, "%s: %s is \"%s\"; expected %s", HN_ESC(text, strlen(text)), what,
                   HN_ESC(seen, strlen(seen)), expected);
}

/* dst = s[0..n); false: it does not fit. */
static bool take(char *dst, size_t cap, const char *s, size_t n)
{
    if (n >= cap) return false;
    memcpy(dst, s, n);
    dst[n] = 0;
    return true;
}

/* %41 becomes A; false: a % without two digits, or too long. */
static bool unquote(char *dst, size_t cap, const char *s, size_t n)
{
    size_t o = 0;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '%') {
            if (i + 2 >= n || !isxdigit((unsigned char)s[i + 1]) || !isxdigit((unsigned char)s[i + 2])) return false;
            c = (char)strtol((char[3]){ s[i + 1], s[i + 2], 0 }, NULL, 16);
            i += 2;
        }
        if (o + 1 >= cap || !c) return false;
        dst[o++] = c;
    }
    dst[o] = 0;
    return true;
}

bool hn_name_url_file(char dst[HN_NAME_FILE], const char *url)
{
    const char *scheme = strstr(url, "://");
    size_t n = strcspn(url, "?#"), from = n, path = scheme ? (size_t)(scheme - url) + 3 : 0;
    while (from && url[from - 1] != '/') from--;
    return from > path && unquote(dst, HN_NAME_FILE, url + from, n - from) && !strchr(dst, '/') && hn_hub_path_ok(dst);
}

/* [host/][namespace/]name[:tag] */
static hone_status parse_ollama(hn_name *out, const char *text, const char *s, hone_error *err)
{
    char rest[3 * HN_NAME_PART], *part[3];
    size_t n = 0;
    if (!take(rest, sizeof rest, s, strlen(s))) return wrong(err, text, "the name", s, "a shorter one");
    char *last = strrchr(rest, '/'), *colon = strchr(last ? last : rest, ':');
    const char *tag = colon ? colon + 1 : "latest";
    if (colon) *colon = 0;
    for (char *p = rest; p && n < 3; n++) {
        char *slash = strchr(p, '/');
        part[n] = p;
        if (slash) *slash++ = 0;
        p = slash;
        if (n == 2 && p) return wrong(err, text, "the name", s, "[host/][namespace/]name[:tag]");
    }
    const char *host = n == 3 ? part[0] : OLLAMA_HOST, *space = n >= 2 ? part[n - 2] : "library";
    if (!host_ok(host)) return wrong(err, text, "the host", host, "one as in registry.ollama.ai");
    if (!hn_ollama_part_ok(space) || strchr(space, '.'))
        return wrong(err, text, "the namespace", space, "letters, digits, - and _");
    if (!hn_ollama_part_ok(part[n - 1]))
        return wrong(err, text, "the name", part[n - 1], "up to 80 letters, digits, - . and _");
    if (!hn_ollama_part_ok(tag)) return wrong(err, text, "the tag", tag, "up to 80 letters, digits, - . and _");
    out->kind = HN_NAME_OLLAMA;
    if (!take(out->host, sizeof out->host, host, strlen(host)))
        return wrong(err, text, "the host", host, "a shorter one");
    snprintf(out->repo, sizeof out->repo, "%s/%s", space, part[n - 1]);
    snprintf(out->tag, sizeof out->tag, "%s", tag);
    return HONE_OK;
}

/* The length of a revision behind '@': one part, but refs/pr/1 and refs/convert/x, which have three. */
static size_t rev_length(const char *s)
{
    size_t n = strncmp(s, "refs/pr/", 8) == 0 ? 8 : strncmp(s, "refs/convert/", 13) == 0 ? 13 : 0;
    return n + strcspn(s + n, "/:");
}

/* "resolve/REV/path" and its like, of a page's address. False: s is none of these. */
static bool parse_page(hn_name *out, const char *s, bool *good)
{
    static const char *const kinds[] = { "resolve/", "blob/", "raw/", "tree/" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t k = strlen(kinds[i]);
        if (strncmp(s, kinds[i], k) != 0) continue;
        const char *rev = s + k, *slash = strchr(rev, '/'), *path = slash ? slash + 1 : "";
        size_t n = slash ? (size_t)(slash - rev) : strlen(rev);
        out->folder = i == 3 && *path;
        *good = unquote(out->rev, sizeof out->rev, rev, n) && hn_hub_rev_ok(out->rev) &&
                unquote(out->path, sizeof out->path, path, strlen(path)) && (*path || i == 3) &&
                (!*path || hn_hub_path_ok(out->path));
        return true;
    }
    return false;
}

/* owner/repo[@rev][:TAG | /path]. sure: it was said to be of the hub; else it may as well be a path, which it is
 * where it cannot be a name. s is its own copy, of which a final '/' is gone. */
static hone_status parse_hub(hn_name *out, const char *text, const char *s, bool sure, hone_error *err)
{
    size_t n = strcspn(s, "/"), all = s[n] ? n + 1 + strcspn(s + n + 1, "@:/") : n;
    const char *rest = s + all;
    bool good = true;
    size_t git = sure && all > 4 && strncmp(s + all - 4, ".git", 4) == 0 ? 4 : 0;
    if (!take(out->repo, sizeof out->repo, s, all - git) || !hn_hub_repo_ok(out->repo))
        return sure ? wrong(err, text, "the repository", s, "owner/repo, of letters, digits, - . and _") : HONE_OK;
    if (*rest == '@') {
        n = rev_length(++rest);
        good = unquote(out->rev, sizeof out->rev, rest, n) && hn_hub_rev_ok(out->rev);
        rest += n;
    }
    if (good && *rest == ':') {
        n = strlen(++rest);
        good = take(out->tag, sizeof out->tag, rest, n) && hn_ollama_part_ok(out->tag);
        if (!good) return wrong(err, text, "the quantization", rest, "one as in Q4_K_M");
    } else if (good && *rest == '/' && !(sure && !*out->rev && parse_page(out, rest + 1, &good))) {
        n = strlen(++rest);
        good = take(out->path, sizeof out->path, rest, n) && hn_hub_path_ok(out->path) &&
               (sure || hn_ends_with_gguf(out->path));
    }
    if (!good)
        return sure || *out->rev
                   ? wrong(err, text, "what follows the repository", rest, "@revision, :TAG, or the path of a file")
                   : HONE_OK;
    out->kind = HN_NAME_HUB;
    return HONE_OK;
}

/* The rest of text behind the first of these that it begins with; NULL: none. */
static const char *behind(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncasecmp(text, list[i], strlen(list[i])) == 0) return text + strlen(list[i]);
    return NULL;
}

/* Behind HF_ENDPOINT, as pages of that hub are pasted. */
static const char *behind_endpoint(const char *text)
{
    const char *ep = getenv("HF_ENDPOINT");
    size_t n = ep ? strlen(ep) : 0;
    while (n && ep[n - 1] == '/') n--;
    return n && strstr(ep, "://") && strncasecmp(text, ep, n) == 0 && text[n] == '/' ? text + n + 1 : NULL;
}

static hone_status parse_url(hn_name *out, const char *text, hone_error *err)
{
    static const char *const web[] = { "https://", "http://" };
    const char *rest = behind(text, web, 2);
    size_t n = strcspn(text, "#");
    if (!rest) return wrong(err, text, "the beginning", text, "https://, hf:// or ollama:");
    if (!isalnum((unsigned char)*rest) && *rest != '[') return wrong(err, text, "the host", rest, "https://host/file");
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7F || strchr("\"<>\\^`{|}", *p))
            return wrong(err, text, "a character", (char[2]){ *p, 0 }, "an address with others as %XX");
    if (!take(out->url, sizeof out->url, text, n)) return wrong(err, text, "the address", text, "a shorter one");
    out->kind = HN_NAME_URL;
    return HONE_OK;
}

/* name[:tag] */
static hone_status parse_bare(hn_name *out, const char *s)
{
    size_t n = strcspn(s, ":");
    if (hn_ends_with_gguf(s) || !take(out->repo, sizeof out->repo, s, n) || !hn_ollama_part_ok(out->repo))
        return HONE_OK;
    if (s[n] && (!take(out->tag, sizeof out->tag, s + n + 1, strlen(s + n + 1)) || !hn_ollama_part_ok(out->tag)))
        return HONE_OK;
    out->kind = HN_NAME_BARE;
    return HONE_OK;
}

static hone_status parse(hn_name *out, const char *text, hone_error *err)
{
    static const char *const hub[] = { "https://huggingface.co/",
                                       "https://hf.co/",
                                       "http://huggingface.co/",
                                       "http://hf.co/",
                                       "huggingface.co/",
                                       "hf.co/",
                                       "hf://" };
    static const char *const ollama[] = { "ollama://", "ollama:", "https://ollama.com/" };
    static const char *const others[] = { "datasets/", "spaces/" };
    char copy[HN_NAME_URL_MAX];
    const char *rest = behind(text, ollama, 3);
    if (rest) return parse_ollama(out, text, rest, err);
    if (!*text || strchr("/.~-", *text) || strlen(text) >= sizeof copy) return HONE_OK;
    rest = behind(text, hub, sizeof hub / sizeof *hub);
    if (!rest) rest = behind_endpoint(text);
    bool sure = rest;
    if (!sure && strstr(text, "://")) return parse_url(out, text, err);
    if (!sure && !strchr(text, '/')) return parse_bare(out, text);

    if (!sure) rest = text;
    take(copy, sizeof copy, rest, sure ? strcspn(rest, "?#") : strlen(rest));
    for (size_t n = strlen(copy); sure && n && copy[n - 1] == '/'; n--) copy[n - 1] = 0;
    if (sure && behind(copy, others, 2)) return wrong(err, text, "what it names", copy, "a repository of a model");
    /* two parts that end in .gguf are a file in a folder */
    const char *slash = strchr(copy, '/');
    if (!sure && hn_ends_with_gguf(copy) && !strchr(slash + 1, '/')) return HONE_OK;
    return parse_hub(out, text, copy, sure, err);
}

hone_status hn_name_parse(hn_name *out, const char *text, hone_error *err)
{
    memset(out, 0, sizeof *out);
    hone_status st = parse(out, text, err);
    if (st != HONE_OK || out->kind == HN_NAME_NONE) memset(out, 0, sizeof *out);
    return st;
}

/* ---- and back -------------------------------------------------------------------------------------------- */

static char *ollama_text(char *dst, size_t cap, const hn_name *n)
{
    bool home = strcmp(n->host, OLLAMA_HOST) == 0, library = home && strncmp(n->repo, "library/", 8) == 0;
    bool latest = strcmp(n->tag, "latest") == 0;
    snprintf(dst, cap, "ollama:%s%s%s%s%s", home ? "" : n->host, home ? "" : "/", n->repo + (library ? 8 : 0),
             latest ? "" : ":", latest ? "" : n->tag);
    return dst;
}

/* `chars` of s as %XX. */
static const char *quoted(char *dst, size_t cap, const char *s, const char *chars)
{
    size_t o = 0;
    for (; *s && o + 4 < cap; s++) {
        if (strchr(chars, *s)) o += (size_t)snprintf(dst + o, cap - o, "%%%02X", (unsigned char)*s);
        else dst[o++] = *s;
    }
    dst[o] = 0;
    return dst;
}

/* A file that is no GGUF, or a folder, says that it is the hub's; so does what reads as a page of it otherwise, or as a
 * file of a folder here. */
static char *hub_text(char *dst, size_t cap, const hn_name *n)
{
    static const char *const web[] = { "hf.co/", "huggingface.co/" };
    char rev[3 * HN_NAME_PART], path[3 * HN_NAME_PATH_MAX];
    size_t plain = n->folder ? 0 : strncmp(n->rev, "refs/", 5) == 0 ? rev_length(n->rev) : 0;
    quoted(rev, sizeof rev, n->rev, plain == strlen(n->rev) ? "%#" : "%#/");
    quoted(path, sizeof path, n->path, "%?#");
    const char *at = *rev ? "@" : "", *tag = *n->tag ? ":" : "";
    const char *last = *n->path ? n->path : *n->tag ? n->tag : *rev ? rev : n->repo;
    bool gguf = hn_ends_with_gguf(last), sure = behind(n->repo, web, 2) || (*n->path ? !gguf : gguf);
    if (n->folder || (sure && strpbrk(n->path, "?#")))
        snprintf(dst, cap, "hf.co/%s/%s/%s/%s", n->repo, n->folder ? "tree" : "blob", *rev ? rev : "main", path);
    else if (*n->path) snprintf(dst, cap, "%s%s%s%s/%s", sure ? "hf.co/" : "", n->repo, at, rev, n->path);
    else snprintf(dst, cap, "%s%s%s%s%s%s", sure ? "hf.co/" : "", n->repo, at, rev, tag, n->tag);
    return dst;
}

char *hn_name_text(char *dst, size_t cap, const hn_name *n)
{
    const char *tag = *n->tag ? ":" : "";
    if (cap) *dst = 0;
    switch (n->kind) {
    case HN_NAME_NONE: break;
    case HN_NAME_BARE: snprintf(dst, cap, "%s%s%s", n->repo, tag, n->tag); break;
    case HN_NAME_OLLAMA: ollama_text(dst, cap, n); break;
    case HN_NAME_URL: snprintf(dst, cap, "%s", n->url); break;
    case HN_NAME_HUB: hub_text(dst, cap, n); break;
    }
    return dst;
}

hone_status hn_name_expand(hn_name *n, hone_error *err)
{
    hn_short_names names;
    char joined[2 * HN_NAME_PART];
    if (n->kind != HN_NAME_BARE) return HONE_OK;
    hone_status st = hn_short_names_read(&names, err);
    if (st != HONE_OK) return st;
    const char *plain = NULL, *sized = NULL;
    snprintf(joined, sizeof joined, "%s-%s", n->repo, n->tag); /* llama3.2:1b is llama3.2-1b */
    for (size_t i = 0; i < names.n; i++) {
        if (strcasecmp(names.list[i].name, n->repo) == 0) plain = names.list[i].means;
        if (*n->tag && strcasecmp(names.list[i].name, joined) == 0) sized = names.list[i].means;
    }
    hn_name found;
    if ((sized || plain) && (st = hn_name_parse(&found, sized ? sized : plain, err)) == HONE_OK) {
        if (!sized && *n->tag && !*found.path) snprintf(found.tag, sizeof found.tag, "%s", n->tag);
        found.checkpoint = n->checkpoint;
        found.checkpoint_first = n->checkpoint_first;
        *n = found;
    }
    hn_short_names_free(&names);
    return st;
}
