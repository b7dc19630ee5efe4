/* shown: text that nobody has checked, made fit for a terminal. Owns which characters may
 * steer a terminal or deceive its reader, and how they are written instead. Refuses to know
 * where the text comes from and whether it goes to a terminal: for a pipe, use the bytes. */
#ifndef HN_SHOWN_H
#define HN_SHOWN_H

#include "base/base.h"

/* ---- characters --------------------------------------------------------------------------- */

/* A terminal would obey it or turn the text around it: C0 (but for \n and \t), DEL, C1, marks of
 * direction, line and paragraph separators, annotations, tags. Joiners, variation selectors and
 * combining marks are no part of it: emoji and scripts need them. */
bool hn_steers_terminal(uint32_t code);
/* The same, and characters without any width: two names that look alike must be equal. */
bool hn_hides_in_name(uint32_t code);

/* ---- streams ---------------------------------------------------------------------------------- */

/* Begins as {0}. The text may come in pieces, cut anywhere. */
typedef struct hn_shown {
    bool json;             /* the text is JSON: \u202e instead of \u202E or \x1B, and U+FFFD for what is ill-formed */
    unsigned char held[4]; /* a character that has begun, or \r */
    uint8_t n_held;
    uint8_t tags; /* of a flag: how many more tags may follow */
} hn_shown;

/* False: no more. */
typedef bool hn_shown_sink(void *arg, const char *p, size_t n);

/* Gives the sink what a terminal may have of p[0..n): steering characters become \xHH (one byte, or C1)
 * or \uHHHH, ill-formed bytes \xHH, "\r\n" becomes "\n". Up to 4 bytes are held back until the next call. */
bool hn_shown_put(hn_shown *s, const char *p, size_t n, hn_shown_sink *sink, void *arg);
/* The text ends here: what was held back. */
bool hn_shown_end(hn_shown *s, hn_shown_sink *sink, void *arg);

#endif
