/* schema_tree: a JSON schema as it was written: order of members, text of numbers and places are kept, which values of
 * jansson do not do. And decimal numbers, exactly. Refuses to know what words mean. */
#ifndef HN_SCHEMA_TREE_H
#define HN_SCHEMA_TREE_H

#include "base/json.h"

typedef enum hn_jtype { HN_J_NULL, HN_J_FALSE, HN_J_TRUE, HN_J_NUMBER, HN_J_STRING, HN_J_ARRAY, HN_J_OBJECT } hn_jtype;

typedef struct hn_jnode hn_jnode;
struct hn_jnode {
    hn_jtype kind;
    uint32_t number; /* in the order of the text: of the tree, from 0 */
    hone_str key;    /* of a member */
    hone_str str;    /* STRING: its value; NUMBER: its text */
    uint32_t n;      /* elements or members … */
    hn_jnode *first; /* … from here on by next */
    hn_jnode *next, *parent;
    uint32_t index;    /* within parent */
    bool tidy;         /* it is a schema, and has lost the words that cannot be read … */
    bool less, lost;   /* … of which there were some; not only nulls, so that it says less than was written */
    hn_jnode **by_key; /* of an object with many members: these [n], by their keys */
};

/* The whole tree lies in arena. HONE_E_ARG: no JSON, a key twice, deeper than max_depth. */
hone_status hn_jtree(hn_jnode **out, hn_arena *arena, const char *text, size_t len, int max_depth, const char *name,
                     hone_error *err);
const hn_jnode *hn_jget(const hn_jnode *o, const char *key); /* NULL: no object, or no such member */
const hn_jnode *hn_jget_str(const hn_jnode *o, hone_str key);
void hn_jdrop(hn_jnode *o, hn_jnode **at); /* takes out of o its child *at, a link of its list */
bool hn_jequal(const hn_jnode *a,
               const hn_jnode *b); /* as JSON Schema means it: 1 is 1.0, order of members is nothing */
bool hn_str_same(hone_str a, hone_str b);
bool hn_str_is(hone_str a, const char *b);
/* "/properties/a": the place of x, cut to cap. Returns dst. */
char *hn_jpointer(char *dst, size_t cap, const hn_jnode *x);
#define HN_JPOINTER(x) hn_jpointer((char[256]){ 0 }, 256, (x))
/* The node that a pointer (of a fragment, percent-decoded) leads to from root; NULL: none. */
const hn_jnode *hn_jfollow(const hn_jnode *root, hone_str pointer);

/* 0.DIGITS · 10^point, without zeros at either end; zero has no digits. */
typedef struct hn_dec {
    bool negative;
    const char *digit;
    uint32_t n;
    int32_t point;
} hn_dec;
enum { HN_DEC_MAX = 1000 }; /* digits, before and behind the point */
/* False: too many digits, or, with d->digit NULL, no memory. text is a number of JSON; digits go to arena. */
bool hn_dec_read(hn_dec *d, hn_arena *arena, hone_str text);
int hn_dec_compare(const hn_dec *a, const hn_dec *b);
bool hn_dec_whole(const hn_dec *d);
/* a mod m of a whole |a| < 10^1000, m ≤ 2^31. */
uint32_t hn_dec_rest(const hn_dec *a, uint32_t m);

/* A set of keys, in the order in which they came. All 0: empty. */
typedef struct hn_keyset {
    hone_str *v; /* [n] */
    uint32_t n, cap;
    uint32_t *slot; /* place + 1 by hash */
    uint32_t n_slot;
} hn_keyset;
/* *at: the place of key, which is added where it is not there. False: out of memory. */
bool hn_keyset_put(hn_keyset *k, hn_arena *arena, hone_str key, uint32_t *at);

#endif
