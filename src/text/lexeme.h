/* lexeme: how a language over code points is written in bytes, one byte at a time: as UTF-8, or as the string of a
 * JSON text, between quotes and with its escapes. Knows what of a character has been read; whether any character that
 * the language goes on with can still come of it is asked at every byte, so that no dead end is entered.
 * Refuses to know what stands around a lexeme. */
#ifndef HN_LEXEME_H
#define HN_LEXEME_H

#include "text/lang.h"

typedef struct hn_lexeme {
    hn_lang term;  /* what may follow the characters read */
    uint32_t part; /* of the next one; 0: nothing yet. See lexeme.c */
} hn_lexeme;

enum { HN_QUOTED = (int)0x40000000 }; /* in part: a JSON string */

/* Before its first byte. */
static inline hn_lexeme hn_lexeme_begin(hn_lang term, bool quoted)
{
    return (hn_lexeme){ term, quoted ? HN_QUOTED | 0x01000000u : 0 };
}

/* One byte: false if it cannot come here. s is the state of x->term. */
bool hn_lexeme_byte(const hn_langs *l, const hn_lang_state *s, hn_lexeme *x, uint8_t byte);
static inline bool hn_lexeme_step(const hn_langs *l, const hn_lang_state *s, hn_lexeme *x, uint8_t byte)
{
    if (byte < 0x80 && (x->part == 0 || (x->part == HN_QUOTED && byte >= 0x20 && byte != '"' && byte != '\\'))) {
        x->term = s->ascii[byte];
        return x->term != HN_LANG_NONE;
    }
    return hn_lexeme_byte(l, s, x, byte);
}

/* A string behind its closing quote: nothing more can come. */
bool hn_lexeme_closed(hn_lexeme x);
/* May it be over here? */
static inline bool hn_lexeme_ends(const hn_langs *l, hn_lexeme x)
{
    return x.part == 0 ? hn_lang_accepts(l, x.term) : hn_lexeme_closed(x);
}

#endif
