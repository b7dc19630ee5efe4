/* url: addresses of http and https, taken apart and joined (RFC 3986, as far as servers of files use it). */
#include "hub/url.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

static bool lost(const char **why, const char *text)
{
    if (why) *why = text;
    return false;
}

/* localhost, ::1, and 127.x.y.z in four decimal parts: what only looks like one is a name that anybody may own. */
static bool is_loopback(const char *host)
{
    if (strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0) return true;
    for (int i = 0; i < 4; i++) {
        int x = 0, n = 0;
        for (; n < 3 && isdigit((unsigned char)*host); n++) x = 10 * x + (*host++ - '0');
        if (!n || x > 255 || (!i && x != 127) || *host != (i < 3 ? '.' : 0)) return false;
        if (i < 3) host++;
    }
    return true;
}

/* ":8080" or nothing; 0: neither. */
static unsigned port_of(const char *s, size_t n, unsigned usual)
{
    unsigned port = 0;
    if (n == 0 || (n == 1 && *s == ':')) return usual;
    if (*s != ':' || n > 6) return 0;
    for (size_t i = 1; i < n; i++) {
        if (!isdigit((unsigned char)s[i])) return 0;
        port = port * 10 + (unsigned)(s[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

bool hn_url_parse(hn_url *u, const char *text, const char **why)
{
    memset(u, 0, sizeof *u);
    if (strlen(text) >= HN_URL_BYTES) return lost(why, "it is longer than 16383 bytes");
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p <= ' ' || *p >= 0x7F || *p == '\\' || *p == '"' || *p == '<' || *p == '>')
            return lost(why, "it has a byte that no address has");
    u->https = strncasecmp(text, "https://", 8) == 0;
    if (!u->https && strncasecmp(text, "http://", 7) != 0) return lost(why, "it is not of http or https");

    const char *host = text + (u->https ? 8 : 7);
    size_t n = strcspn(host, "/?#");
    u->rest = host + n;
    if (memchr(host, '@', n)) return lost(why, "it has a user in it");
    const char *end = host + n, *close = *host == '[' ? memchr(host, ']', n) : NULL, *colon;
    if (*host == '[' && !close) return lost(why, "its host has no end");
    colon = close ? close + 1 : memchr(host, ':', n);
    if (!colon) colon = end;
    unsigned port = port_of(colon, (size_t)(end - colon), u->https ? 443 : 80);
    size_t from = close ? 1 : 0, len = (size_t)((close ? close : colon) - host) - from;
    if (!port) return lost(why, "its port is none");
    if (len == 0 || len >= sizeof u->host) return lost(why, "it has no host, or one that is too long");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)host[from + i];
        if (!isalnum(c) && !strchr(close ? ":." : "-._", c)) return lost(why, "its host is none");
        u->host[i] = (char)tolower(c);
    }
    u->loopback = is_loopback(u->host);
    snprintf(u->origin, sizeof u->origin, "%s://%s%s%s:%u", u->https ? "https" : "http", close ? "[" : "", u->host,
             close ? "]" : "", port);
    return true;
}

hone_status hn_url_join(char **out, const char *base, const char *to, hone_error *err)
{
    hn_url b, whole;
    const char *why = "";
    size_t before = 0, n = strcspn(to, "#");
    *out = NULL;
    if (!hn_url_parse(&b, base, &why))
        return HN_FAIL(err, HONE_E_NETWORK, "%s: no address: %s", HN_ESC(base, strlen(base)), why);
    bool absolute = false;
    for (size_t i = 0; i < n && (isalnum((unsigned char)to[i]) || to[i] == ':'); i++)
        if (to[i] == ':') absolute = true;
    if (!absolute && n >= 2 && to[0] == '/' && to[1] == '/') before = b.https ? 6 : 5; /* "https:" */
    else if (!absolute && n && to[0] == '/') before = (size_t)(b.rest - base);
    else if (!absolute) {
        size_t path = strcspn(b.rest, "?#"), keep = path;
        if (n && to[0] != '?')
            while (keep && b.rest[keep - 1] != '/') keep--;
        before = (size_t)(b.rest - base) + keep;
    }
    bool slash = !absolute && before == (size_t)(b.rest - base) && *to != '/' && *to != '?';
    char *s = malloc(before + slash + n + 1);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "an address");
    memcpy(s, base, before);
    if (slash) s[before] = '/';
    memcpy(s + before + slash, to, n);
    s[before + slash + n] = 0;
    if (!hn_url_parse(&whole, s, &why)) {
        hone_status st =
            HN_FAIL(err, HONE_E_NETWORK, "%s leads to '%s', which is no address: %s", b.origin, HN_ESC(to, n), why);
        free(s);
        return st;
    }
    *out = s;
    return HONE_OK;
}

hone_status hn_url_allowed(const char *url, const char *from, bool insecure, hone_error *err)
{
    hn_url u, f;
    const char *why = "";
    if (!hn_url_parse(&u, url, &why))
        return HN_FAIL(err, HONE_E_NETWORK, "%s: no address: %s", HN_ESC(url, strlen(url)), why);
    if (insecure || u.https) return HONE_OK;
    bool known = from && hn_url_parse(&f, from, NULL);
    if (u.loopback && (!from || (known && f.loopback))) return HONE_OK;
    if (!from) /* what was asked for */
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: not encrypted; expected https (http of this machine alone, or with "
                       "--insecure)",
                       u.origin);
    return HN_FAIL(err, HONE_E_NETWORK,
                   "%s redirects to %s, which is not encrypted; expected https (--insecure "
                   "follows it all the same)",
                   known ? f.origin : "the server", u.origin);
}

bool hn_url_same_origin(const char *a, const char *b)
{
    hn_url x, y;
    return hn_url_parse(&x, a, NULL) && hn_url_parse(&y, b, NULL) && strcmp(x.origin, y.origin) == 0;
}

char *hn_url_quote(const char *s, bool path)
{
    static const char hex[] = "0123456789ABCDEF";
    char *q = malloc(strlen(s) * 3 + 1), *d = q;
    if (!q) return NULL;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if ((c < 0x80 && isalnum(c)) || strchr("-._~", c) || (path && c == '/')) {
            *d++ = (char)c;
        } else {
            *d++ = '%';
            *d++ = hex[c >> 4];
            *d++ = hex[c & 15];
        }
    }
    *d = 0;
    return q;
}
