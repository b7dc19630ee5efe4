/* call_values: values of arguments, from what a format writes to JSON. Knows tokens in text (calls.h); refuses to know
 * where a call begins and ends. */
#ifndef HN_CALL_VALUES_H
#define HN_CALL_VALUES_H

#include "text/calls.h"

typedef struct hn_grown { /* grows; free p */
    char *p;
    size_t n, cap;
} hn_grown;
hone_status hn_grown_put(hn_grown *t, const char *s, size_t n, hone_error *err);

/* One JSON value, byte by byte, as far as brackets and quotes tell: what is not JSON is not noticed. */
typedef struct hn_json_scan {
    int depth;
    bool string, escape, begun, scalar, done;
} hn_json_scan;
/* False: the byte is behind the value, which is done. */
bool hn_json_scan_byte(hn_json_scan *s, char c);

/* Kinds of values. */
enum {
    HN_VALUE_NULL = 1,
    HN_VALUE_BOOL = 2,
    HN_VALUE_NUMBER = 4,
    HN_VALUE_STRING = 8,
    HN_VALUE_ARRAY = 16,
    HN_VALUE_OBJECT = 32,
    HN_VALUE_ANY = 63
};
/* The kinds that the schema of the tool allows this argument, as its grammar has them (hn_call_kit_kinds); HN_VALUE_ANY
 * where it says nothing. */
uint32_t hn_call_kinds(const hn_call_tool *t, const char *key, size_t n);

/* Appends text as JSON has it between quotes; tokens are their text. v may be NULL where there are none. */
hone_status hn_call_escape(hn_grown *out, const char *s, size_t n, const hn_vocab *v, hone_error *err);
/* Appends what a JSON string, with its quotes, holds. */
hone_status hn_call_unescape(hn_grown *out, const char *s, size_t n, hone_error *err);
/* The object that s begins with; where it is cut, as far as it goes; where it is none, one without members. New.
 * HONE_E_NOMEM only. */
hone_status hn_call_object(json_t **out, const char *s, size_t n, hone_error *err);
/* Appends s as it is where it is JSON, else as a string. */
hone_status hn_call_json_or_string(hn_grown *out, const char *s, size_t n, hone_error *err);
/* The same of the value of a tagged argument: True, False and None are what they are in Python. Where it may be a
 * string and is JSON of a kind that it may not be, it is a string. */
hone_status hn_call_value(hn_grown *out, const char *s, size_t n, uint32_t kinds, const hn_vocab *v, hone_error *err);

/* The beginning of a tagged argument, which is cut: a value as far as it goes. Where it may be a string, and can be
 * no beginning of JSON or of Python's lists, it is one that is open. */
hone_status hn_call_value_cut(hn_grown *out, const char *s, size_t n, uint32_t kinds, const hn_vocab *v,
                              hone_error *err);

/* Arguments in Python's syntax, K=V, … up to ), or Gemma's, K:V, … up to }, as far as they have come. */
typedef struct hn_own_scan {
    size_t i;  /* bytes looked at */
    int depth; /* open brackets */
    char open; /* the quote of the string it is in; HN_CALL_ESCAPE: Gemma's mark; 0: in none */
    bool escape;
} hn_own_scan;
/* True: the bracket is there, o->i bytes with it. s [n]: all of them so far. */
bool hn_call_own_end(hn_own_scan *o, const char *s, size_t n, bool python, const hn_call_mark *quote);
/* Appends them as an object; open: as the beginning of one, where the bracket has not come. */
hone_status hn_call_own(hn_grown *out, const char *s, size_t n, bool python, const hn_call_mark *quote,
                        const hn_vocab *v, bool open, hone_error *err);

#endif
