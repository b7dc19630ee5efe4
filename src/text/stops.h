/* stops: strings at which a text ends, looked for byte by byte. Refuses to know where the text comes from. */
#ifndef HN_STOPS_H
#define HN_STOPS_H

#include "text/text.h"

typedef struct hn_stop_text {
    char *s;
    uint32_t len, matched; /* matched: longest prefix of s that ends the text so far */
    uint32_t *fail;        /* [len + 1], Knuth, Morris, Pratt (1977): where to go on after a mismatch */
} hn_stop_text;

typedef struct hn_stops {
    hn_stop_text *one;
    size_t n;
} hn_stops;

/* list [n] is copied. HONE_E_ARG: one is empty or no UTF-8. On failure *s is empty. */
hone_status hn_stops_new(hn_stops *s, const char *const *list, size_t n, hone_error *err);
void hn_stops_free(hn_stops *s);
/* The text's next byte: bytes of the longest string that ends with it, 0: none does. *which: that string. */
size_t hn_stops_byte(hn_stops *s, char byte, size_t *which);
size_t hn_stops_held(const hn_stops *s); /* bytes at the text's end that may become one */
void hn_stops_reset(hn_stops *s);        /* what has come is no part of one */

#endif
