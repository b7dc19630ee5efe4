/* utf8: characters of UTF-8 and their classes in Unicode 15.1. The table is ours, so that token ids do not depend on
 * the Unicode version a machine has installed. Knows code points; refuses to know tokens and terminals. */
#ifndef HN_UTF8_H
#define HN_UTF8_H

#include "base/base.h"

/* ---- UTF-8 ---------------------------------------------------------------------------- */

/* One step of a strict decoder: *used bytes of s[0..n), n > 0, are consumed. Returns the
 * code point, or HN_UTF8_BAD for a maximal ill-formed subpart (Unicode 15, 3.9, U+FFFD
 * substitution), or HN_UTF8_CUT when s ends inside a sequence that is well-formed so far. */
enum { HN_UTF8_BAD = -1, HN_UTF8_CUT = -2 };
int32_t hn_utf8_next(const unsigned char *s, size_t n, size_t *used);

static inline size_t hn_utf8_width(uint32_t cp) { return cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4; }
size_t hn_utf8_put(char *dst, uint32_t cp); /* cp a scalar value; 1..4 bytes */
int hn_str_compare(hone_str a, hone_str b); /* < 0, 0, > 0 in the order of bytes, which is that of code points */

/* ---- Unicode 15.1 ------------------------------------------------------------------- */

typedef enum hn_class { /* every code point is in exactly one */
                        HN_CLASS_OTHER,
                        HN_CLASS_UPPER /* Lu, Lt */,
                        HN_CLASS_LOWER,
                        HN_CLASS_LETTER /* Lm, Lo */,
                        HN_CLASS_MARK,
                        HN_CLASS_NUMBER,
                        HN_CLASS_PUNCT,
                        HN_CLASS_SYMBOL,
                        HN_CLASS_SPACE /* White_Space */
} hn_class;

/* Two levels, 256 code points a block; made once per process. */
typedef struct hn_class_table {
    uint8_t block[0x1100];
    uint8_t cls[256][256];
} hn_class_table;
const hn_class_table *hn_class_table_get(void); /* thread-safe, never fails */
static inline hn_class hn_class_of(const hn_class_table *t, uint32_t cp)
{
    return (hn_class)t->cls[t->block[cp >> 8]][cp & 255];
}

#endif
