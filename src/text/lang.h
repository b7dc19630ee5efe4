/* lang: regular languages over code points, as terms of which no two are equal. A term is a state of its own
 * automaton: what may follow a character is again a term (Brzozowski 1964; classes of characters at once after Owens,
 * Reppy and Turon 2009), made when it is asked for. Intersection, complement and counted repetition therefore cost
 * nothing until somebody walks there. Owns terms and their transitions; refuses to know bytes, JSON and tokens. */
#ifndef HN_LANG_H
#define HN_LANG_H

#include "base/base.h"

typedef uint32_t hn_lang; /* a term; equal terms are one number */
enum {
    HN_LANG_NONE = 0,  /* no text */
    HN_LANG_EMPTY = 1, /* the empty text */
    HN_LANG_ANY = 2,   /* one character: any Unicode scalar value */
    HN_LANG_ALL = 3    /* any text */
};
#define HN_LANG_ENDLESS UINT32_MAX /* as max of a repetition */

typedef struct hn_range {
    uint32_t lo, hi;
} hn_range; /* code points lo … hi */

typedef struct hn_langs hn_langs;

/* max_bytes: of terms and transitions. NULL: out of memory. */
hn_langs *hn_langs_new(size_t max_bytes);
void hn_langs_free(hn_langs *l);
size_t hn_langs_bytes(const hn_langs *l);
void hn_langs_limit(hn_langs *l, size_t max_bytes);
size_t hn_langs_left(const hn_langs *l); /* bytes up to max_bytes */
/* Another piece of work begins: steps that may be done in it, where what is larger than a grammar may be ends, the same
 * on every machine. What has failed before has failed for the work before. */
void hn_langs_allow(hn_langs *l, uint64_t steps);
bool hn_langs_failed(const hn_langs *l);
bool hn_langs_full(const hn_langs *l); /* it has failed for max_bytes: sweeping may help */
/* After a failure every term made is HN_LANG_NONE; ask once behind a piece of work. HONE_E_NOMEM: out of memory.
 * HONE_E_UNSUPPORTED: larger than max_bytes, more steps than allowed, or too deep. */
hone_status hn_langs_check(const hn_langs *l, hone_error *err);

void hn_langs_lose(hn_langs *l); /* out of memory elsewhere */

/* The terms that there are now stay, with their numbers. */
void hn_langs_settle(hn_langs *l);
/* Terms beyond those go unless keep[t] is not 0, or one that stays is made of them. keep [hn_langs_count]: becomes the
 * new number of each that stays, HN_LANG_NONE of those that went. States are gone, too. */
void hn_langs_sweep(hn_langs *l, uint32_t *keep);
uint32_t hn_langs_count(const hn_langs *l);

/* ---- making terms: in any order of calls the same language may get another term, never another meaning -- */

hn_lang hn_lang_set(hn_langs *l, const hn_range *r, size_t n); /* any order, may overlap; surrogates are left out */
hn_lang hn_lang_others(hn_langs *l, hn_lang set); /* one character that is not of the set, or of HN_LANG_NONE */
hn_lang hn_lang_char(hn_langs *l, uint32_t cp);
hn_lang hn_lang_text(hn_langs *l, const char *utf8, size_t len); /* well-formed */
hn_lang hn_lang_cat(hn_langs *l, hn_lang a, hn_lang b);
hn_lang hn_lang_or(hn_langs *l, hn_lang a, hn_lang b);
hn_lang hn_lang_or_all(hn_langs *l, const hn_lang *t, size_t n);
hn_lang hn_lang_and(hn_langs *l, hn_lang a, hn_lang b);
hn_lang hn_lang_not(hn_langs *l, hn_lang a);
hn_lang hn_lang_repeat(hn_langs *l, hn_lang a, uint32_t min, uint32_t max);
/* Decimal digits, with a point somewhere among them or none, whose number without it is a multiple of m > 0. */
hn_lang hn_lang_multiple(hn_langs *l, uint32_t m);
/* One of the texts [n], of which the order does not matter: a tree of their beginnings. */
hn_lang hn_lang_words(hn_langs *l, const hone_str *words, size_t n);

/* ---- walking --------------------------------------------------------------------------------- */

bool hn_lang_accepts(const hn_langs *l, hn_lang t); /* the empty text */
bool hn_lang_live(hn_langs *l, hn_lang t);          /* at least one text */
bool hn_lang_matches(hn_langs *l, hn_lang t, const char *utf8, size_t len);

typedef struct hn_lang_state {
    uint32_t n; /* ranges, ascending; what is in none leads nowhere */
    bool pure;  /* every character leads back here */
    hn_lang ascii[128];
    const hn_range *range; /* [n] */
    const hn_lang *to;     /* [n], each with at least one text */
} hn_lang_state;
/* Lives until l is swept; NULL after a failure. */
const hn_lang_state *hn_lang_open(hn_langs *l, hn_lang t);

/* Index of the range that holds cp, or of the next one. */
static inline uint32_t hn_lang_find(const hn_lang_state *s, uint32_t cp)
{
    uint32_t lo = 0, hi = s->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->range[mid].hi < cp) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}
static inline hn_lang hn_lang_step(const hn_lang_state *s, uint32_t cp)
{
    if (cp < 128) return s->ascii[cp];
    uint32_t i = hn_lang_find(s, cp);
    return i < s->n && s->range[i].lo <= cp ? s->to[i] : HN_LANG_NONE;
}
/* Does any character of lo … hi lead on? */
static inline bool hn_lang_any(const hn_lang_state *s, uint32_t lo, uint32_t hi)
{
    uint32_t i = hn_lang_find(s, lo);
    return i < s->n && s->range[i].lo <= hi;
}

/* How many characters may follow whatever they are: HN_LANG_ENDLESS, any number; *exact: and no more than that. A lower
 * bound where finding out would take long. */
uint32_t hn_lang_room(hn_langs *l, hn_lang t, bool *exact);

/* A term that texts of at most k characters cannot tell from t: long counters cut short, and a length that all texts
 * must have left out where nothing that may come needs so many characters to its end. */
hn_lang hn_lang_near(hn_langs *l, hn_lang t, uint32_t k);

#endif
