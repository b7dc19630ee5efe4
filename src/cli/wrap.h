/* wrap: an answer in lines of a terminal, broken between words. Owns where lines end; refuses to know what the text is.
 * Bytes are only added where a line would otherwise be broken within a word: there blanks become a line end. */
#ifndef HN_WRAP_H
#define HN_WRAP_H

#include "base/base.h"

enum { HN_WRAP_WORD = 200 };
/* Begins as {0}; width 0: lines are left as they are. */
typedef struct hn_wrap {
    int width, col;          /* columns of the terminal; those in use */
    int blanks;              /* held back: blanks before the word, … */
    char word[HN_WRAP_WORD]; /* … and a word that may go on */
    int n, cells;            /* its bytes, its columns */
    int ticks;               /* ` at the beginning of a line; 3 open and close code, whose lines are left as they are */
    bool begun, code;        /* something but ` was on this line */
    int left;                /* bytes of a character that are to come; it takes … */
    bool wide;               /* … two columns, and a line may end before and behind it */
} hn_wrap;

typedef bool hn_wrap_sink(void *arg, const char *p, size_t n);
/* False: the sink said so. Text that is well-formed UTF-8, in pieces cut anywhere. */
bool hn_wrap_put(hn_wrap *w, const char *p, size_t n, hn_wrap_sink *sink, void *arg);
bool hn_wrap_end(hn_wrap *w, hn_wrap_sink *sink, void *arg); /* what was held back */

#endif
