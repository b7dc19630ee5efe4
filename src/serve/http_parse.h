/* http_parse: bytes of HTTP/1.0 and HTTP/1.1 requests in, whole requests or refusals out. One meaning for any bytes,
 * however they are cut: what two readers could frame in two ways is refused (request smuggling). Owns framing, limits
 * and decoding of targets; refuses to know sockets, time, and what is asked. */
#ifndef HN_HTTP_PARSE_H
#define HN_HTTP_PARSE_H

#include "base/base.h"

enum {
    HN_HTTP_MAX_LINE = 8 << 10,        /* bytes of the request line, its end left out */
    HN_HTTP_MAX_HEAD = 16 << 10,       /* bytes of all fields with their line ends, trailers included */
    HN_HTTP_MAX_FIELDS = 64,           /* trailers included */
    HN_HTTP_MAX_QUERY = 32,            /* NAME=VALUE pairs */
    HN_HTTP_MAX_EXTENSION = 256,       /* bytes of one chunk's extension */
    HN_HTTP_MAX_EXTENSIONS = 16 << 10, /* of all of a body's */
    HN_HTTP_MAX_CHUNK_DIGITS = 8
};

typedef struct hn_http_span { /* two texts of the head, NUL-terminated, by offset */
    uint32_t name, value;
} hn_http_span;

/* One request. Texts lie in `head`, which grows: ask for them when the head is whole. */
typedef struct hn_http_request {
    char *head;
    size_t n_head, cap_head;
    uint32_t method, path, authority; /* authority: of an absolute target; 0: none */
    hn_http_span field[HN_HTTP_MAX_FIELDS], query[HN_HTTP_MAX_QUERY];
    size_t n_field, n_query;
    int minor; /* HTTP/1.minor */
    bool has_length, chunked;
    bool keep;       /* the connection may stay */
    bool expects;    /* 100-continue, and a body follows */
    uint64_t length; /* of the body, where has_length */
    char *body;      /* [n_body] and a NUL; NULL: none */
    size_t n_body, cap_body;
} hn_http_request;

static inline const char *hn_http_method(const hn_http_request *r) { return r->head + r->method; }
/* Percent-decoded once, UTF-8, no control bytes, no backslash, no segment . or ..; begins with '/', or is "*". */
static inline const char *hn_http_path(const hn_http_request *r) { return r->head + r->path; }
/* The first field of that name (small letters), blanks around it cut; NULL: none. */
const char *hn_http_field(const hn_http_request *r, const char *name);
/* The first value of that name in the query, decoded ('+' is a blank); NULL: none. */
const char *hn_http_query(const hn_http_request *r, const char *name);
/* Has a field of comma-separated tokens this one (small letters)? */
bool hn_http_has_token(const hn_http_request *r, const char *field, const char *token);
void hn_http_request_free(hn_http_request *r);

typedef enum hn_http_event {
    HN_HTTP_MORE,  /* all bytes were taken, more are wanted */
    HN_HTTP_HEAD,  /* the head is whole: judge it, then go on, with no bytes where none are left */
    HN_HTTP_WHOLE, /* so is the body: take the request. What follows was not taken */
    HN_HTTP_BAD    /* status, code and message say why; nothing more can be read from this connection */
} hn_http_event;

typedef struct hn_http_parser {
    uint64_t max_body;
    hn_http_request *r; /* NULL between requests: a quiet connection holds nothing */
    int state;
    bool cr, blank;        /* the last byte was CR; an empty line stood before the request line */
    size_t line;           /* where in the head this line begins */
    size_t n_fields_bytes; /* of fields so far */
    size_t n_trailer;      /* fields of the trailer */
    uint64_t left;         /* of the chunk or of the body */
    size_t n_digits, n_extension, n_extensions;
    int status;       /* of HN_HTTP_BAD: 400, 413, 414, 417, 431, 501, 503, 505 */
    const char *code; /* constant */
    char message[256];
} hn_http_parser;

/* max_body: of one request, in bytes. */
void hn_http_parser_init(hn_http_parser *p, uint64_t max_body);
void hn_http_parser_clear(hn_http_parser *p);
/* Takes bytes of p[n], as many as belong to what *event says; returns how many. */
size_t hn_http_parse(hn_http_parser *p, const char *bytes, size_t n, hn_http_event *event);
/* After HN_HTTP_WHOLE: the request, the caller's from now on. The next one may begin. */
hn_http_request *hn_http_parser_take(hn_http_parser *p);
/* Has a request begun that is not whole? (An empty line is none.) And is its body being read? */
bool hn_http_parser_busy(const hn_http_parser *p);
bool hn_http_parser_in_body(const hn_http_parser *p);

/* A host with or without port: NAME, NAME:PORT, [ADDRESS]:PORT. *n_name: bytes of the name, brackets included;
 * *port: -1 where there is none. False: nothing of the kind. */
bool hn_http_host(const char *text, size_t *n_name, int *port);
/* Are the first n bytes of a the name b, whatever the case of their ASCII letters? */
bool hn_http_same(const char *a, size_t n, const char *b);

#endif
