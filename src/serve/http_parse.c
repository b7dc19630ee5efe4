/* HTTP/1.x framing as RFC 9112 has it, without what RFC 9112 lets a lenient reader forgive: a bare LF, a blank before a
 * colon, a folded line, two lengths. Goes over each byte once and keeps what it needs, so that bytes cut anywhere give
 * the same request. Refuses to know sockets, time, and what is asked. */
#include "serve/http_parse.h"

#include "base/utf8.h"

#include <stdlib.h>

enum {        /* states of a parser */
       START, /* the request line, or one empty line before it */
       FIELDS,
       JUDGED, /* the head is whole and was told */
       BODY,
       CHUNK_SIZE,
       CHUNK_EXTENSION,
       CHUNK_SIZE_LF,
       CHUNK_DATA,
       CHUNK_CR,
       CHUNK_LF,
       TRAILER,
       WHOLE,
       BAD
};

/* Must be there once at most: two readers that pick different ones disagree about the request. */
static const char *const single[] = { "host",         "content-length", "transfer-encoding",
                                      "content-type", "authorization",  "origin",
                                      "x-api-key",    "expect",         "x-request-id" };
enum { N_FRAMING = 3 }; /* of them, the first */

/* ---- characters ---------------------------------------------------------------------------- */

static bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
static bool is_alpha(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static unsigned char small(unsigned char c) { return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 'a' - 'A') : c; }

static int hex_value(unsigned char c)
{
    if (is_digit(c)) return c - '0';
    c = small(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* tchar of RFC 9110, 5.6.2 */
static bool is_token(unsigned char c) { return is_alpha(c) || is_digit(c) || (c && strchr("!#$%&'*+-.^_`|~", c)); }

bool hn_http_same(const char *a, size_t n, const char *b)
{
    for (size_t i = 0; i < n; i++)
        if (!b[i] || small((unsigned char)a[i]) != small((unsigned char)b[i])) return false;
    return !b[n];
}

bool hn_http_host(const char *text, size_t *n_name, int *port)
{
    const char *s = text;
    *port = -1;
    if (*s == '[') {
        size_t n = strspn(s + 1, "0123456789abcdefABCDEF:.");
        if (n < 2 || s[1 + n] != ']') return false;
        s += n + 2;
    } else
        while (is_alpha((unsigned char)*s) || is_digit((unsigned char)*s) || (*s && strchr("-._~", *s))) s++;
    *n_name = (size_t)(s - text);
    if (!*n_name) return false;
    if (*s == ':') {
        size_t n = strspn(s + 1, "0123456789");
        if (n < 1 || n > 5) return false;
        *port = 0;
        for (size_t i = 1; i <= n; i++) *port = *port * 10 + (s[i] - '0');
        if (*port > 65535) return false;
        s += n + 1;
    }
    return !*s;
}

/* ---- requests ------------------------------------------------------------------------------ */

const char *hn_http_field(const hn_http_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_field; i++)
        if (strcmp(r->head + r->field[i].name, name) == 0) return r->head + r->field[i].value;
    return NULL;
}

const char *hn_http_query(const hn_http_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_query; i++)
        if (strcmp(r->head + r->query[i].name, name) == 0) return r->head + r->query[i].value;
    return NULL;
}

bool hn_http_has_token(const hn_http_request *r, const char *field, const char *token)
{
    for (size_t i = 0; i < r->n_field; i++) {
        if (strcmp(r->head + r->field[i].name, field) != 0) continue;
        for (const char *s = r->head + r->field[i].value; *s;) {
            s += strspn(s, " \t,");
            size_t n = strcspn(s, " \t,");
            if (n && hn_http_same(s, n, token)) return true;
            s += n;
        }
    }
    return false;
}

void hn_http_request_free(hn_http_request *r)
{
    if (!r) return;
    free(r->head);
    free(r->body);
    free(r);
}

void hn_http_parser_init(hn_http_parser *p, uint64_t max_body) { *p = (hn_http_parser){ .max_body = max_body }; }

void hn_http_parser_clear(hn_http_parser *p)
{
    hn_http_request_free(p->r);
    p->r = NULL;
}

hn_http_request *hn_http_parser_take(hn_http_parser *p)
{
    hn_http_request *r = p->r;
    hn_http_parser_init(p, p->max_body);
    return r;
}

bool hn_http_parser_busy(const hn_http_parser *p) { return p->r && (p->state != START || p->r->n_head > 0); }
bool hn_http_parser_in_body(const hn_http_parser *p) { return p->state >= JUDGED && p->state < WHOLE; }

/* Ends the reading. Returns false, for callers to hand on. */
static bool __attribute__((format(printf, 4, 5)))
bad(hn_http_parser *p, int status, const char *code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->message, sizeof p->message, fmt, ap);
    va_end(ap);
    p->status = status;
    p->code = code;
    p->state = BAD;
    return false;
}

static bool no_memory(hn_http_parser *p) { return bad(p, 503, "out_of_memory", "no memory for this request now"); }

/* ---- the request line ---------------------------------------------------------------------- */

/* Decodes s[n) in place and puts a NUL behind it: %XX once, '+' as a blank where it is a query. */
static bool decode(hn_http_parser *p, char *s, size_t n, bool query, const char *what)
{
    size_t o = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '%') {
            int hi = n - i > 2 ? hex_value((unsigned char)s[i + 1]) : -1;
            int lo = hi >= 0 ? hex_value((unsigned char)s[i + 2]) : -1;
            if (lo < 0) return bad(p, 400, "bad_target", "the %s has a %% without two hexadecimal digits", what);
            c = (unsigned char)(hi * 16 + lo);
            i += 2;
        } else if (c == '+' && query) c = ' ';
        if (c < 0x20 || c == 0x7F) return bad(p, 400, "bad_target", "the %s has a control byte (0x%02x)", what, c);
        s[o++] = (char)c;
    }
    s[o] = 0;
    for (size_t i = 0, used; i < o; i += used)
        if (hn_utf8_next((unsigned char *)s + i, o - i, &used) < 0)
            return bad(p, 400, "bad_target", "the %s is not UTF-8", what);
    return true;
}

/* The decoded path names nothing but what it seems to name. */
static bool plain_path(hn_http_parser *p, const char *path)
{
    if (strchr(path, '\\')) return bad(p, 400, "bad_target", "the path has a backslash");
    for (const char *s = path; *s;) {
        s += strspn(s, "/");
        size_t n = strcspn(s, "/");
        if ((n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return bad(p, 400, "bad_target", "the path has a segment \".\" or \"..\"");
        s += n;
    }
    return true;
}

/* s[n), NUL-terminated, is cut into pairs and decoded in place. */
static bool read_query(hn_http_parser *p, char *s, size_t n)
{
    hn_http_request *r = p->r;
    char *end = s + n;
    while (s < end) {
        size_t all = strcspn(s, "&"), name = strcspn(s, "=&");
        char *next = s + all + 1;
        if (all) {
            if (r->n_query == HN_HTTP_MAX_QUERY)
                return bad(p, 400, "bad_target", "the query has more than %d values", HN_HTTP_MAX_QUERY);
            char *value = name < all ? s + name + 1 : s + all; /* without '=': an empty one */
            size_t n_value = name < all ? all - name - 1 : 0;
            s[all] = 0; /* the '&', or the end */
            if (!decode(p, value, n_value, true, "query")) return false;
            if (name < all) s[name] = 0;
            if (!decode(p, s, name, true, "query")) return false;
            r->query[r->n_query++] = (hn_http_span){ (uint32_t)(s - r->head), (uint32_t)(value - r->head) };
        }
        s = next;
    }
    return true;
}

/* s[n) is the target, NUL-terminated; at: its offset in the head. */
static bool read_target(hn_http_parser *p, char *s, size_t n)
{
    hn_http_request *r = p->r;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7F || s[i] == '#')
            return bad(p, 400, "bad_target", "the target has the byte 0x%02x; expected it percent-encoded",
                       (unsigned char)s[i]);
    if (n == 1 && *s == '*' && strcmp(hn_http_method(r), "OPTIONS") == 0) {
        r->path = (uint32_t)(s - r->head);
        return true;
    }
    if (n > 7 && (hn_http_same(s, 7, "http://") || (n > 8 && hn_http_same(s, 8, "https://")))) {
        size_t scheme = s[4] == ':' ? 7 : 8, host = strcspn(s + scheme, "/?");
        int port;
        size_t n_name;
        memmove(s, s + scheme, host); /* leaves room for its NUL */
        s[host] = 0;
        if (!hn_http_host(s, &n_name, &port)) return bad(p, 400, "bad_target", "the target names no host");
        r->authority = (uint32_t)(s - r->head);
        s += scheme + host;
        n -= scheme + host;
        if (!n || *s == '?') { /* http://host: its root */
            *--s = '/';
            n++;
        }
    }
    if (!n || *s != '/') return bad(p, 400, "bad_target", "the target is no path; expected it to begin with '/'");
    size_t n_path = strcspn(s, "?");
    char *query = s + n_path;
    size_t n_query = n_path < n ? n - n_path - 1 : 0;
    *query = 0;
    if (!decode(p, s, n_path, false, "path") || !plain_path(p, s)) return false;
    r->path = (uint32_t)(s - r->head);
    return n_query == 0 || read_query(p, query + 1, n_query);
}

static bool read_request_line(hn_http_parser *p, char *s, size_t n)
{
    hn_http_request *r = p->r;
    size_t method = 0;
    while (method < n && is_token((unsigned char)s[method])) method++;
    if (!method || method > 32 || method == n || s[method] != ' ')
        return bad(p, 400, "bad_request_line", "no request of HTTP/1.1; expected METHOD TARGET HTTP/1.1");
    char *target = s + method + 1, *blank = memchr(target, ' ', n - method - 1);
    if (!blank || blank == target)
        return bad(p, 400, "bad_request_line", "the request line has no version; expected METHOD TARGET HTTP/1.1");
    const char *version = blank + 1;
    size_t n_version = n - (size_t)(version - s);
    if (n_version != 8 || memcmp(version, "HTTP/", 5) != 0 || !is_digit((unsigned char)version[5]) ||
        version[6] != '.' || !is_digit((unsigned char)version[7]))
        return bad(p, 400, "bad_request_line", "the request line ends in no version; expected HTTP/1.1");
    if (version[5] != '1' || version[7] > '1')
        return bad(p, 505, "bad_version", "HTTP/%c.%c is not spoken here; expected HTTP/1.1", version[5], version[7]);
    r->minor = version[7] - '0';
    r->method = (uint32_t)(s - r->head);
    s[method] = 0;
    *blank = 0;
    return read_target(p, target, (size_t)(blank - target));
}

/* ---- fields -------------------------------------------------------------------------------- */

/* s[n) is a line of the head or of the trailer, NUL-terminated; *out: where its name and value are. */
static bool read_field(hn_http_parser *p, char *s, size_t n, hn_http_span *out)
{
    size_t name = 0;
    if (*s == ' ' || *s == '\t') return bad(p, 400, "bad_header", "a folded header line (it begins with a blank)");
    while (name < n && is_token((unsigned char)s[name])) {
        s[name] = (char)small((unsigned char)s[name]);
        name++;
    }
    if (!name || name == n || s[name] != ':')
        return bad(p, 400, "bad_header", "a header line is not NAME: VALUE (%s)", HN_ESC(s, n < 40 ? n : 40));
    s[name] = 0;
    char *value = s + name + 1, *end = s + n;
    while (value < end && (*value == ' ' || *value == '\t')) value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t')) end--;
    *end = 0;
    out->name = (uint32_t)(s - p->r->head);
    out->value = (uint32_t)(value - p->r->head);
    return true;
}

static bool read_length(hn_http_parser *p, const char *s)
{
    hn_http_request *r = p->r;
    if (!*s || s[strspn(s, "0123456789")])
        return bad(p, 400, "bad_length", "Content-Length is \"%s\"; expected digits", HN_ESC(s, strlen(s)));
    r->has_length = true;
    for (; *s; s++)
        if (!hn_mul_u64(r->length, 10, &r->length) || !hn_add_u64(r->length, (uint64_t)(*s - '0'), &r->length))
            r->length = UINT64_MAX; /* and then larger than any body may be */
    return true;
}

static bool too_large(hn_http_parser *p)
{
    return bad(p, 413, "body_too_large", "the body is larger than %llu bytes (--max-body)",
               (unsigned long long)p->max_body);
}

/* All fields are there: what they say of the framing. */
static bool read_framing(hn_http_parser *p)
{
    hn_http_request *r = p->r;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        size_t n = 0;
        for (size_t k = 0; k < r->n_field; k++) n += strcmp(r->head + r->field[k].name, single[i]) == 0;
        if (n > 1) return bad(p, 400, "bad_header", "the header %s is there %zu times; expected it once", single[i], n);
    }
    const char *host = hn_http_field(r, "host"), *length = hn_http_field(r, "content-length");
    const char *coding = hn_http_field(r, "transfer-encoding"), *expect = hn_http_field(r, "expect");
    size_t n_name;
    int port;
    if (!host && r->minor == 1) return bad(p, 400, "bad_host", "no Host header; HTTP/1.1 wants one");
    if (host && !hn_http_host(host, &n_name, &port))
        return bad(p, 400, "bad_host", "Host is \"%s\"; expected NAME or NAME:PORT", HN_ESC(host, strlen(host)));
    const char *authority = r->head + r->authority;
    if (r->authority && (!host || !hn_http_same(host, strlen(host), authority)))
        return bad(p, 400, "bad_host", "the target names another host than the Host header");
    if (length && coding) return bad(p, 400, "bad_length", "both Content-Length and Transfer-Encoding; expected one");
    if (coding && strcmp(coding, "chunked") != 0)
        return bad(p, 400, "bad_length", "Transfer-Encoding is \"%s\"; expected chunked",
                   HN_ESC(coding, strlen(coding)));
    if (coding && r->minor == 0) return bad(p, 400, "bad_length", "Transfer-Encoding in HTTP/1.0");
    r->chunked = coding != NULL;
    if (length && !read_length(p, length)) return false;
    if (expect && r->minor == 1 && !hn_http_same(expect, strlen(expect), "100-continue"))
        return bad(p, 417, "bad_expect", "Expect is \"%s\"; expected 100-continue", HN_ESC(expect, strlen(expect)));
    r->expects = expect && r->minor == 1 && (r->chunked || r->length > 0);
    r->keep =
        r->minor == 1 ? !hn_http_has_token(r, "connection", "close") : hn_http_has_token(r, "connection", "keep-alive");
    if (r->length > p->max_body) return too_large(p);
    return true;
}

/* ---- lines --------------------------------------------------------------------------------- */

static bool grow_head(hn_http_parser *p)
{
    hn_http_request *r = p->r;
    size_t cap = r->cap_head ? 2 * r->cap_head : 1024;
    char *more = realloc(r->head, cap);
    if (!more) return no_memory(p);
    r->head = more;
    r->cap_head = cap;
    return true;
}

/* A line of the head or the trailer, [line, n_head) of the head, its end left out. *over: it was the last one. */
static bool end_line(hn_http_parser *p, bool *over)
{
    hn_http_request *r = p->r;
    char *s = r->head + p->line;
    size_t n = r->n_head - p->line;
    *over = false;
    s[n] = 0; /* where the CR would be */
    if (p->state == START) {
        if (n == 0) {
            if (p->blank) return bad(p, 400, "bad_request_line", "empty lines; expected a request");
            p->blank = true;
            return true;
        }
        if (!read_request_line(p, s, n)) return false;
        p->state = FIELDS;
    } else if (n == 0) {
        *over = true;
        return true;
    } else {
        hn_http_span f;
        if (r->n_field + p->n_trailer >= HN_HTTP_MAX_FIELDS)
            return bad(p, 431, "too_many_headers", "more than %d headers", HN_HTTP_MAX_FIELDS);
        if (!read_field(p, s, n, &f)) return false;
        if (p->state == TRAILER) { /* read and dropped, but what would frame the message */
            for (size_t i = 0; i < N_FRAMING; i++)
                if (strcmp(r->head + f.name, single[i]) == 0)
                    return bad(p, 400, "bad_header", "%s in a trailer", single[i]);
            p->n_trailer++;
            r->n_head = p->line;
            return true;
        }
        r->field[r->n_field++] = f;
    }
    r->n_head++; /* keeps the NUL */
    p->line = r->n_head;
    return true;
}

/* One byte of a line. */
static bool line_byte(hn_http_parser *p, unsigned char c, bool *over)
{
    *over = false;
    if (!p->r && !(p->r = calloc(1, sizeof *p->r))) return no_memory(p);
    hn_http_request *r = p->r;
    if (p->state != START && ++p->n_fields_bytes > HN_HTTP_MAX_HEAD)
        return bad(p, 431, "headers_too_large", "the headers are larger than %d bytes", HN_HTTP_MAX_HEAD);
    if (p->cr) {
        if (c != '\n') return bad(p, 400, "bad_line", "a CR without LF");
        p->cr = false;
        return end_line(p, over);
    }
    if (r->n_head + 1 >= r->cap_head && !grow_head(p)) return false;
    if (c == '\r') {
        p->cr = true;
        return true;
    }
    if (c == '\n') return bad(p, 400, "bad_line", "a LF without CR");
    if ((c < 0x20 && c != '\t') || c == 0x7F)
        return bad(p, 400, "bad_line", "the control byte 0x%02x in the %s%s", c,
                   p->state == START ? "request line" : "headers",
                   p->state == START && r->n_head == 0 && c == 0x16 ? ": this is TLS; expected http://" : "");
    if (p->state == START && r->n_head - p->line >= HN_HTTP_MAX_LINE)
        return bad(p, 414, "target_too_long", "the request line is longer than %d bytes", HN_HTTP_MAX_LINE);
    r->head[r->n_head++] = (char)c;
    return true;
}

/* ---- the body ------------------------------------------------------------------------------ */

static bool keep_body(hn_http_parser *p, const char *s, size_t n)
{
    hn_http_request *r = p->r;
    if (n > p->max_body - r->n_body) return too_large(p);
    if (n >= r->cap_body - r->n_body) { /* and a NUL */
        size_t cap = r->cap_body < 2048 ? 4096 : 2 * r->cap_body;
        if (cap < r->n_body + n + 1) cap = r->n_body + n + 1;
        if (r->has_length && cap > r->length + 1) cap = (size_t)r->length + 1;
        char *more = realloc(r->body, cap);
        if (!more) return no_memory(p);
        r->body = more;
        r->cap_body = cap;
    }
    memcpy(r->body + r->n_body, s, n);
    r->n_body += n;
    r->body[r->n_body] = 0;
    return true;
}

/* Bytes of the body, up to `left` of them; how many. */
static size_t body_bytes(hn_http_parser *p, const char *s, size_t n)
{
    if (n > p->left) n = (size_t)p->left;
    if (!keep_body(p, s, n)) return 0;
    p->left -= n;
    return n;
}

static void begin_body(hn_http_parser *p)
{
    p->left = p->r->length;
    p->state = p->r->chunked ? CHUNK_SIZE : p->left ? BODY : WHOLE;
}

/* One byte around the chunks. */
static void chunk_byte(hn_http_parser *p, unsigned char c)
{
    int digit;
    switch (p->state) {
    case CHUNK_SIZE:
        digit = hex_value(c);
        if (digit >= 0) {
            if (++p->n_digits > HN_HTTP_MAX_CHUNK_DIGITS)
                bad(p, 400, "bad_chunk", "a chunk's size has more than %d digits", HN_HTTP_MAX_CHUNK_DIGITS);
            p->left = p->left * 16 + (uint64_t)digit;
        } else if (p->n_digits && c == ';') {
            p->n_extension = 0;
            p->state = CHUNK_EXTENSION;
        } else if (p->n_digits && c == '\r') p->state = CHUNK_SIZE_LF;
        else bad(p, 400, "bad_chunk", "a chunk's size has the byte 0x%02x; expected hexadecimal digits and CR LF", c);
        break;
    case CHUNK_EXTENSION:
        if (c == '\r') p->state = CHUNK_SIZE_LF;
        else if ((c < 0x20 && c != '\t') || c == 0x7F)
            bad(p, 400, "bad_chunk", "a chunk's extension has the control byte 0x%02x", c);
        else if (++p->n_extension > HN_HTTP_MAX_EXTENSION || ++p->n_extensions > HN_HTTP_MAX_EXTENSIONS)
            bad(p, 400, "bad_chunk", "a chunk's extension is longer than %d bytes, or all of them than %d",
                HN_HTTP_MAX_EXTENSION, HN_HTTP_MAX_EXTENSIONS);
        break;
    case CHUNK_SIZE_LF:
        if (c != '\n') bad(p, 400, "bad_chunk", "a CR without LF after a chunk's size");
        else if (p->left > p->max_body - p->r->n_body) too_large(p);
        else p->state = p->left ? CHUNK_DATA : TRAILER;
        break;
    case CHUNK_CR:
        if (c != '\r') bad(p, 400, "bad_chunk", "a chunk is longer than its size");
        else p->state = CHUNK_LF;
        break;
    default: /* CHUNK_LF */
        if (c != '\n') bad(p, 400, "bad_chunk", "a CR without LF after a chunk");
        else {
            p->state = CHUNK_SIZE;
            p->n_digits = 0;
        }
    }
}

size_t hn_http_parse(hn_http_parser *p, const char *bytes, size_t n, hn_http_event *event)
{
    size_t i = 0;
    bool over;
    *event = HN_HTTP_MORE;
    if (p->state == JUDGED) begin_body(p);
    while (i < n && p->state != WHOLE && p->state != BAD) {
        switch (p->state) {
        case START:
        case FIELDS:
            if (!line_byte(p, (unsigned char)bytes[i++], &over) || !over) break;
            if (!read_framing(p)) break;
            p->state = JUDGED;
            *event = HN_HTTP_HEAD;
            return i;
        case TRAILER:
            if (line_byte(p, (unsigned char)bytes[i++], &over) && over) p->state = WHOLE;
            break;
        case BODY:
            i += body_bytes(p, bytes + i, n - i);
            if (!p->left && p->state == BODY) p->state = WHOLE;
            break;
        case CHUNK_DATA:
            i += body_bytes(p, bytes + i, n - i);
            if (!p->left && p->state == CHUNK_DATA) p->state = CHUNK_CR;
            break;
        default: chunk_byte(p, (unsigned char)bytes[i++]);
        }
    }
    if (p->state == WHOLE) *event = HN_HTTP_WHOLE;
    if (p->state == BAD) *event = HN_HTTP_BAD;
    return i;
}
