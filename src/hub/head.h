/* head: what the head of an answer says, line by line. Owns which headers count and how their values are read; refuses
 * to know of connections, and what is done about it. */
#ifndef HN_HEAD_H
#define HN_HEAD_H

#include "base/base.h"

enum { HN_HEAD_NAME = 132 }; /* bytes of what a content is known by */

/* "" and 0 where the answer does not say it. */
typedef struct hn_fetch_head {
    int status;
    bool has_length, has_range, html;
    uint64_t length, first, last, size; /* Content-Length; Content-Range, size UINT64_MAX for "*" */
    double wait_s;                      /* how long to wait, after a 429 or 503; negative: not said */
    bool weak;                          /* the ETag is one of W/: it stays when bytes change that nobody minds */
    char etag[HN_HEAD_NAME];            /* without W/ and quotes */
    char modified[40];                  /* Last-Modified, as it is said */
    char encoding[16];                  /* Content-Encoding, when it is not identity */
    int64_t date_s, until_s;            /* Date; Retry-After where it is a time; since 1970, 0: not said */
    /* of the endpoint only, whichever answer on the way said so */
    bool has_linked_size;
    uint64_t linked_size;
    char linked_etag[HN_HEAD_NAME], commit[64], code[64], message[256];
} hn_fetch_head;

/* Nothing is said yet. */
void hn_head_clear(hn_fetch_head *a);
/* A head begins, by its first line "HTTP/1.1 200 OK": what one before it said is forgotten, but for what an endpoint
 * said of a file. */
void hn_head_begin(hn_fetch_head *a, const char *line, size_t len);
/* A line "name: value" of it. at_endpoint: its own words of files and refusals count. */
void hn_head_line(hn_fetch_head *a, const char *line, size_t len, bool at_endpoint);
/* The value of a header line of this name, without blanks around it; false: another header. */
bool hn_head_is(const char *line, size_t len, const char *name, const char **value, size_t *n);
/* The address in a value of Link that is "next"; malloc'ed, NULL: none. */
char *hn_head_next(const char *value, size_t n);
/* What the content behind an address is known by, where no hash is: its ETag, else when it was changed. "": by nothing,
 * two answers may be of two contents. */
void hn_head_content(char dst[HN_HEAD_NAME], const hn_fetch_head *a);

#endif
