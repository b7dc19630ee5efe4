/* lines: the lines of a small file of the system, /proc and its kin, read without a byte of the heap: what they say
 * (which machine this is) must not depend on whether memory was short just then, as with fopen. Refuses to know what
 * stands in them. */
#ifndef HN_LINES_H
#define HN_LINES_H

#include "base/base.h"

typedef struct hn_lines {
    int fd;
    size_t at, n; /* of buf: what is not handed out yet */
    char buf[2048];
} hn_lines;

bool hn_lines_open(hn_lines *r, const char *path); /* false and errno; then the others do nothing */
/* The next line without its end, NUL-terminated; what of it does not fit is dropped. False: there is none. */
bool hn_lines_next(hn_lines *r, char *line, size_t cap);
void hn_lines_close(hn_lines *r);
/* The first line of a file; false and "" where it is empty or cannot be read. */
bool hn_lines_first(char *line, size_t cap, const char *path);

#endif
