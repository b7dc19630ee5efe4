/* page: the page that the server shows at /, and the headers it is sent with. Owns its bytes; refuses to know HTTP. */
#ifndef HN_PAGE_H
#define HN_PAGE_H

#include "base/base.h"

typedef struct hn_page {
    const char *bytes; /* [len] HTML, UTF-8 */
    size_t len;
    const char *gzip; /* [gzip_len] the same, compressed when hone was built; none: there was no gzip */
    size_t gzip_len;
    char etag[67]; /* SHA-256 of the bytes in hex, between quotes */
    char csp
        [400]; /* value of Content-Security-Policy: its own script and style by hash, requests to its origin, no more */
} hn_page;

/* The same page every time; never NULL. Any thread. */
const hn_page *hn_page_get(void);

#endif
