/* http_trace: what the parser of HTTP makes of bytes that come in pieces, as text: one line a request, or why not. */
#ifndef HN_TEST_HTTP_TRACE_H
#define HN_TEST_HTTP_TRACE_H

#include "serve/http_parse.h"

#include <stdlib.h>

/* Appends to out [cap], cut. */
static void __attribute__((format(printf, 3, 4))) say(char *out, size_t cap, const char *fmt, ...)
{
    size_t n = strlen(out);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out + n, cap - n, fmt, ap);
    va_end(ap);
}

/* GET /p a=b host=x HTTP/1.1 keep <body> */
static void say_request(char *out, size_t cap, const hn_http_request *r)
{
    say(out, cap, "%s %s", hn_http_method(r), hn_http_path(r));
    for (size_t i = 0; i < r->n_query; i++)
        say(out, cap, " ?%s=%s", r->head + r->query[i].name, r->head + r->query[i].value);
    for (size_t i = 0; i < r->n_field; i++)
        if (strcmp(r->head + r->field[i].name, "host") != 0)
            say(out, cap, " %s:%s", r->head + r->field[i].name, r->head + r->field[i].value);
    say(out, cap, " 1.%d%s%s", r->minor, r->keep ? " keep" : "", r->expects ? " expects" : "");
    if (r->n_body) say(out, cap, " <%.*s>", (int)r->n_body, r->body);
    say(out, cap, "\n");
}

/* Feeds bytes[n) in pieces that end at cut[0..n_cut), ascending, and at n. What is not taken of a piece comes again
 * with the next, as it would from a socket. The trace ends with "more" where a request is incomplete. */
static void trace(char *out, size_t cap, const char *bytes, size_t n, const size_t *cut, size_t n_cut,
                  uint64_t max_body)
{
    hn_http_parser p;
    hn_http_event e = HN_HTTP_MORE;
    hn_http_parser_init(&p, max_body);
    *out = 0;
    size_t at = 0;
    for (size_t k = 0; k <= n_cut && e != HN_HTTP_BAD; k++) {
        size_t end = k < n_cut ? cut[k] : n, len = end - at;
        char *piece = malloc(len ? len : 1); /* its own block, so that a sanitizer sees its end */
        if (!piece) abort();
        memcpy(piece, bytes + at, len);
        size_t used = 0;
        do {
            used += hn_http_parse(&p, piece + used, len - used, &e);
            if (e != HN_HTTP_WHOLE) continue;
            hn_http_request *r = hn_http_parser_take(&p);
            say_request(out, cap, r);
            hn_http_request_free(r);
        } while (e == HN_HTTP_HEAD || (e == HN_HTTP_WHOLE && used < len));
        at += used;
        free(piece);
    }
    if (e == HN_HTTP_BAD) say(out, cap, "%d %s\n", p.status, p.code);
    else if (hn_http_parser_busy(&p)) say(out, cap, "more\n");
    hn_http_parser_clear(&p);
}

#endif
