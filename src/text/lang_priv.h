/* lang_priv: the inside of a store of terms, which lang.c (terms and their transitions), lang_near.c (what short texts
 * tell of them) and lang_sweep.c (which of them stay) share. */
#ifndef HN_LANG_PRIV_H
#define HN_LANG_PRIV_H

#include "text/lang.h"

enum { HN_SURROGATE_LO = 0xD800, HN_SURROGATE_HI = 0xDFFF, HN_CP_MAX = 0x10FFFF };

typedef enum hn_term_kind { K_NONE, K_EMPTY, K_SET, K_CAT, K_OR, K_AND, K_NOT, K_REP, K_MOD } hn_term_kind;

typedef struct hn_term {
    uint8_t kind;
    bool accepts; /* the empty text */
    bool boolean; /* has K_AND or K_NOT in it: may hold no text although it is not HN_LANG_NONE */
    int8_t life;  /* 1: has a text, -1: has none, 0: not asked yet */
    bool room_known, room_exact;
    bool lasts;       /* whatever follows a text of it gives another */
    bool counts;      /* hn_lang_near may find a counter in it */
    uint32_t room;    /* hn_lang_room */
    uint32_t least;   /* characters of its shortest text, at most; HN_LANG_ENDLESS: not known */
    uint32_t need;    /* the same of whatever may be left of it where some characters have come */
    uint16_t height;  /* of what cuts() and derive() walk */
    uint32_t a, b, c; /* CAT: both; OR, AND: place and number in kids; NOT: one; REP: one, min, max; MOD: modulus, rest;
                         SET: place and number in ranges */
} hn_term;

/* Transitions before those that lead nowhere were left out. */
typedef struct hn_fan {
    uint32_t n;
    hn_range *range;
    hn_lang *to;
} hn_fan;

typedef struct hn_list {
    uint32_t *data;
    size_t n, cap;
} hn_list;

struct hn_langs {
    size_t max_bytes, bytes;
    uint64_t steps;
    hone_status failed;
    bool full; /* it has failed for lack of room */
    const char *why;
    hn_term *t;
    uint32_t n, cap;
    uint32_t *slot; /* term + 1 by hash */
    uint32_t n_slot;
    hn_list kids;
    hn_range *range;
    size_t n_range, cap_range;
    hn_fan **fan;          /* [cap] */
    hn_lang_state **state; /* [cap] */
    uint32_t *mark;        /* [cap] of the search for life */
    uint32_t epoch;
    uint32_t settled; /* terms that stay … */
    size_t settled_kids, settled_ranges;
};

bool hn_list_put(hn_langs *l, hn_list *v, uint32_t x);
void hn_list_drop(hn_langs *l, hn_list *v);
void hn_langs_hash(hn_langs *l); /* all terms anew into the slots that there are */

#endif
