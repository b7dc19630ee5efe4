/* What hone's parser of HTTP makes of bytes, for check_http.py to compare with another parser's reading.
 *     cc -std=gnu11 -Iinclude -Isrc -o http_trace tests/dev/http_trace.c build/release/libapp.a \
 *         build/release/libhone.a -ljansson -lm -lpthread
 * Standard input: u32 length, bytes, again and again. Out: a line an input: REQUEST … "|" then "more", "end" or a
 * status; a request is METHOD PATH BODY MINOR NAME=VALUE… in hexadecimal. */
#include "serve/http_parse.h"

#include <stdlib.h>

static void hex(const char *p, size_t n, char after)
{
    for (size_t i = 0; i < n; i++) printf("%02x", (unsigned char)p[i]);
    putchar(after);
}

static void show(const hn_http_request *r)
{
    hex(hn_http_method(r), strlen(hn_http_method(r)), ' ');
    hex(hn_http_path(r), strlen(hn_http_path(r)), ' ');
    hex(r->body ? r->body : "", r->n_body, ' ');
    printf("%d", r->minor);
    for (size_t i = 0; i < r->n_field; i++) {
        const char *name = r->head + r->field[i].name, *value = r->head + r->field[i].value;
        putchar(' ');
        hex(name, strlen(name), '=');
        for (const char *s = value; *s; s++) printf("%02x", (unsigned char)*s);
    }
    putchar('|');
}

int main(void)
{
    static char bytes[1 << 20];
    uint32_t n;
    while (fread(&n, sizeof n, 1, stdin) == 1 && n <= sizeof bytes && fread(bytes, 1, n, stdin) == n) {
        hn_http_parser p;
        hn_http_event e = HN_HTTP_MORE;
        size_t at = 0;
        hn_http_parser_init(&p, 1 << 20);
        do {
            at += hn_http_parse(&p, bytes + at, n - at, &e);
            if (e != HN_HTTP_WHOLE) continue;
            hn_http_request *r = hn_http_parser_take(&p);
            show(r);
            hn_http_request_free(r);
        } while (e == HN_HTTP_HEAD || (e == HN_HTTP_WHOLE && at < n));
        if (e == HN_HTTP_BAD) printf("%d\n", p.status);
        else puts(hn_http_parser_busy(&p) ? "more" : "end");
        hn_http_parser_clear(&p);
    }
    return 0;
}
