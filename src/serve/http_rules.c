/* Who may ask, judged by the head of a request before a byte of its body is read: Host and Origin (a page of somebody
 * else's must not use the server of this machine), keys, methods, content types; preflights. Refuses to know what is
 * asked. */
#include "serve/http_priv.h"

static bool refuse(hn_exchange *x, int status, const char *code, const char *message)
{
    hn_http_tell(x, status);
    hn_exchange_refuse(x, status, code, message);
    return false;
}

/* ---- Host ---------------------------------------------------------------------------------- */

/* By a name of its own an attacker's page reaches 127.0.0.1 as "same origin" (DNS rebinding): the name tells. */
static bool host_ok(const hn_http *h, const char *host)
{
    static const char *const mine[] = { "localhost", "127.0.0.1", "[::1]" };
    size_t n;
    int port;
    if (h->is_unix || (!h->loopback && h->p.n_allow_host == 0)) return true;
    if (!hn_http_host(host, &n, &port)) return false;
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++)
        if (hn_http_same(host, n, mine[i])) return true;
    for (size_t i = 0; i < h->p.n_allow_host; i++) /* with its port, or any port of that name */
        if (hn_http_same(host, n, h->p.allow_host[i]) || hn_http_same(host, strlen(host), h->p.allow_host[i]))
            return true;
    return false;
}

/* ---- Origin -------------------------------------------------------------------------------- */

/* The host in "http://host:port"; NULL: not of that shape. *usual: the port where none is named. */
static const char *origin_host(const char *origin, int *usual)
{
    *usual = 80;
    if (strncmp(origin, "http://", 7) == 0) return origin + 7;
    *usual = 443;
    return strncmp(origin, "https://", 8) == 0 ? origin + 8 : NULL;
}

/* What programs with a page inside call it: tauri://localhost, app://obsidian.md, chrome-extension://ID … */
static bool is_app(const char *origin)
{
    static const char *const never[] = { "http", "https", "ftp", "file", "ws", "wss", "data", "blob" };
    size_t scheme = strspn(origin, "abcdefghijklmnopqrstuvwxyz0123456789+.-"), n;
    if (!scheme || *origin < 'a' || strncmp(origin + scheme, "://", 3) != 0) return false;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (hn_http_same(origin, scheme, never[i])) return false;
    n = strspn(origin + scheme + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return n && origin[scheme + 3 + n] == 0;
}

bool hn_http_origin_ok(const char *origin)
{
    int usual, port;
    size_t n;
    const char *host = origin_host(origin, &usual);
    return strcmp(origin, "*") == 0 || is_app(origin) || (host && hn_http_host(host, &n, &port));
}

/* Is it where this request itself went to? */
static bool same_origin(const char *origin, const char *host)
{
    int usual, of_origin, of_host;
    size_t n, m;
    const char *o = origin_host(origin, &usual);
    if (!o || !host || !hn_http_host(o, &n, &of_origin) || !hn_http_host(host, &m, &of_host)) return false;
    if (n != m || (of_origin < 0 ? usual : of_origin) != (of_host < 0 ? usual : of_host)) return false;
    for (size_t i = 0; i < n; i++) {
        char a[2] = { o[i] };
        if (!hn_http_same(host + i, 1, a)) return false;
    }
    return true;
}

/* Is this origin on the list? *all: as every one is. */
static bool listed(const hn_http *h, const char *origin, bool *all)
{
    for (size_t i = 0; i < h->p.n_cors_origin; i++) {
        *all = strcmp(h->p.cors_origin[i], "*") == 0 && strcmp(origin, "null") != 0;
        if (*all || hn_http_same(origin, strlen(origin), h->p.cors_origin[i])) return true;
    }
    return false;
}

/* ---- keys ---------------------------------------------------------------------------------- */

static bool key_ok(hn_exchange *x)
{
    const char *bearer = hn_http_field(x->r, "authorization"), *key = hn_http_field(x->r, "x-api-key");
    uint64_t who = 0;
    bool ok = false;
    if (bearer) {
        size_t scheme = strcspn(bearer, " ");
        const char *token = bearer + scheme + strspn(bearer + scheme, " ");
        ok = hn_http_same(bearer, scheme, "bearer") && hn_http_keys_has(&x->h->keys, token, strlen(token), &who);
    }
    if (!ok && key) ok = hn_http_keys_has(&x->h->keys, key, strlen(key), &who);
    if (ok) x->client = hn_mix64(who) | 1;
    return ok;
}

/* ---- bodies -------------------------------------------------------------------------------- */

static bool is_json(const char *type)
{
    size_t n = strcspn(type, "; \t");
    return hn_http_same(type, n, "application/json");
}

/* What curl and wget say of a body that they were told nothing of; nobody's forms come here. */
static bool is_untold(const char *type)
{
    return !type || hn_http_same(type, strcspn(type, "; \t"), "application/x-www-form-urlencoded");
}

/* A form of a foreign page can post without asking, but not as JSON. What is no browser need not say JSON. */
static const char *body_fault(const hn_http_request *r)
{
    const char *type = hn_http_field(r, "content-type"), *coding = hn_http_field(r, "content-encoding");
    bool browser =
        hn_http_field(r, "origin") || hn_http_field(r, "sec-fetch-site") || hn_http_field(r, "sec-fetch-mode");
    if (!r->chunked && r->length == 0) return NULL;
    if (coding && !hn_http_same(coding, strlen(coding), "identity"))
        return "the body has a Content-Encoding; expected plain JSON";
    if (is_untold(type) ? browser : !is_json(type))
        return "the body's type is not JSON; expected the header Content-Type: application/json";
    return NULL;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* 204, with what a page must know before it may ask. */
static void preflight(hn_exchange *x, const char *allow)
{
    const char *want = hn_http_field(x->r, "access-control-request-headers");
    if (x->cors && hn_http_field(x->r, "access-control-request-method")) {
        hn_exchange_set_header(x, "access-control-allow-methods", allow);
        if (want && want[strspn(want, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_, ")] == 0)
            hn_exchange_set_header(x, "access-control-allow-headers", want);
        hn_exchange_set_header(x, "access-control-max-age", "600");
    }
    hn_exchange_set_header(x, "allow", allow);
    hn_http_tell(x, 204);
    hn_exchange_reply(x, 204, NULL, NULL, 0);
}

/* The methods of a path as Allow says them: HEAD with GET, OPTIONS everywhere. */
static void allow_of(char *dst, size_t cap, const char *methods)
{
    bool get = false;
    for (const char *s = methods; *s;) {
        s += strspn(s, " ,");
        size_t n = strcspn(s, " ,");
        get = get || (n == 3 && memcmp(s, "GET", 3) == 0);
        s += n;
    }
    snprintf(dst, cap, "%s%s%sOPTIONS", methods, *methods ? ", " : "", get ? "HEAD, " : "");
}

static bool has_method(const char *methods, const char *method)
{
    size_t len = strlen(method);
    for (const char *s = methods; *s;) {
        s += strspn(s, " ,");
        size_t n = strcspn(s, " ,");
        if (n == len && memcmp(s, method, n) == 0) return true;
        s += n;
    }
    return false;
}

bool hn_http_judge(hn_exchange *x)
{
    const hn_http *h = x->h;
    const hn_http_request *r = x->r;
    const char *host = hn_http_field(r, "host"), *origin = hn_http_field(r, "origin");
    const char *method = hn_exchange_method(x), *path = hn_http_path(r);
    if (host && !host_ok(h, host))
        return refuse(x, 403, "bad_host", "this Host is not served here; expected localhost or a name of --allow-host");
    if (origin) {
        x->cors = listed(h, origin, &x->cors_all);
        if (!x->cors && !same_origin(origin, host))
            return refuse(x, 403, "bad_origin",
                          "pages of this Origin may not ask here (--cors-origin lists those that may)");
    }
    bool options = strcmp(method, "OPTIONS") == 0, all = strcmp(path, "*") == 0;
    bool open = options || h->keys.n == 0 || (h->p.is_public && h->p.is_public(method, path));
    if (h->keys.n && !key_ok(x) && !open) {
        hn_exchange_set_header(x, "www-authenticate", "Bearer");
        return refuse(x, 401, "invalid_api_key",
                      "no key, or a wrong one; expected the header Authorization: Bearer KEY");
    }
    const char *methods = all ? "GET, POST" : h->p.methods ? h->p.methods(h->p.arg, path) : NULL;
    char allow[128];
    if (methods) allow_of(allow, sizeof allow, methods);
    if (!methods && h->p.methods) return refuse(x, 404, "unknown_path", "nothing is at this path");
    if (methods && options) {
        preflight(x, allow);
        return false;
    }
    if (methods && !has_method(methods, method)) {
        hn_exchange_set_header(x, "allow", allow);
        char why[192];
        snprintf(why, sizeof why, "the method %s is not for this path; expected %s", method, allow);
        return refuse(x, 405, "method_not_allowed", why);
    }
    const char *fault = strcmp(method, "POST") == 0 ? body_fault(r) : NULL;
    return fault ? refuse(x, 415, "unsupported_media_type", fault) : true;
}
