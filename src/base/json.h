/* json: the only reader of JSON (RFC 8259) that others wrote. A pull reader: it goes over bytes
 * once, builds nothing and allocates nothing; what is built from it is in base/json_tree.h.
 * Owns syntax, limits and where something is wrong; refuses to know what members mean. */
#ifndef HN_JSON_H
#define HN_JSON_H

#include "base/base.h"

enum { HN_JSON_DEPTH = 256 }; /* arrays and objects within each other, unless a rule says less */

enum {
    HN_JSON_UNIQUE = 1, /* a key that is there twice is a fault (trees; readers in passing see each key themselves) */
    HN_JSON_ALLOW_NUL = 2, /* \u0000 in strings, which then have a length; in keys of trees never */
    HN_JSON_PYTHON = 4,    /* NaN, Infinity and -Infinity, as Python writes them, are null */
    HN_JSON_BIG = 8,       /* whole numbers beyond 64 bits become the nearest double */
    HN_JSON_DIGITS = 16,   /* in trees they, and what no double is near, are hn_json_digits: as they are written */
};

typedef struct hn_json_rules { /* NULL, or 0 in a member: the usual */
    size_t max_bytes;          /* of the text; usually no limit, of files HN_JSON_FILE_BYTES */
    size_t max_string;         /* of one string or key, unescaped, in bytes; usually no limit */
    int max_depth;             /* at most HN_JSON_DEPTH */
    unsigned flags;
    const char *as_text; /* trees: an object at this key that is read with HN_JSON_DIGITS alone is a string, its text */
    hone_status fault;   /* what bad text is called; usually HONE_E_FORMAT */
} hn_json_rules;

typedef struct hn_jread {
    const char *begin, *p, *end;
    char *room; /* the same text where it may be changed: strings are unescaped in place; else NULL */
    hn_json_rules rules;
    int depth;
    const char *name, *what; /* of messages: the file, and which part of it (NULL: all); borrowed */
    hone_error *err;
    const char *at; /* after a failure: where; and what was expected there, a constant */
    const char *expected;
} hn_jread;

/* text [len] stays where it is for as long as j and what came out of it are used. what: as above.
 * All that follow return HONE_OK, or rules->fault with "NAME: not JSON: line L column C: expected …, seen …". */
hone_status hn_jread_begin(hn_jread *j, const char *text, size_t len, const hn_json_rules *rules, const char *name,
                           const char *what, hone_error *err);
/* The fault is at j->p, of the reader's user: a value of the wrong kind. */
hone_status hn_jread_fail(hn_jread *j, const char *expected);
/* Where it failed: from 1; columns in characters, as editors count them. */
void hn_jread_where(const hn_jread *j, size_t *line, size_t *column);
/* The next byte that is no white space; 0 at the end. */
char hn_jread_peek(hn_jread *j);

/* Enters '{' or '['; *more: it is not empty. */
hone_status hn_jread_open(hn_jread *j, char bracket, bool *more);
/* After each element: a comma (*more), or the end of what began with bracket. */
hone_status hn_jread_next(hn_jread *j, char bracket, bool *more);

/* What stands between quotes, checked: well-formed UTF-8, whole escapes, pairs of surrogates. */
typedef struct hn_jread_text {
    const char *raw; /* in the text, with its escapes */
    size_t n_raw;
    size_t n;          /* bytes once unescaped, never more than n_raw */
    bool escaped, nul; /* has an escape; has \u0000 */
} hn_jread_text;
hone_status hn_jread_string(hn_jread *j, hn_jread_text *t);
hone_status hn_jread_key(hn_jread *j, hn_jread_text *t); /* and the colon */
/* Writes t->n bytes; dst may be t->raw itself. No NUL is added. */
void hn_jread_unescape(char *dst, const hn_jread_text *t);
/* The same two, unescaped in place; for readers with room. */
hone_status hn_jread_str(hn_jread *j, hone_str *s);
hone_status hn_jread_key_str(hn_jread *j, hone_str *s);

typedef struct hn_jread_num {
    enum { HN_JSON_INT, HN_JSON_UINT, HN_JSON_REAL } kind; /* UINT: above INT64_MAX */
    int64_t i;
    uint64_t u; /* also of an INT that is not negative */
    double d;   /* always: the nearest double, whatever the locale */
} hn_jread_num;
hone_status hn_jread_number(hn_jread *j, hn_jread_num *v);
hone_status hn_jread_u64(hn_jread *j, uint64_t *v); /* nothing but a whole number in [0, 2^64) */

typedef struct hn_jread_item {
    enum { HN_JSON_NULL, HN_JSON_BOOL, HN_JSON_NUMBER, HN_JSON_STRING, HN_JSON_ARRAY, HN_JSON_OBJECT } kind;
    bool truth;
    hn_jread_num num;
    hn_jread_text str;
} hn_jread_item;
/* The scalar that stands here; before an array or object it only says so. */
hone_status hn_jread_scalar(hn_jread *j, hn_jread_item *it);
/* Past any value; the text stays as it is. */
hone_status hn_jread_skip(hn_jread *j);
hone_status hn_jread_end(hn_jread *j);

#endif
