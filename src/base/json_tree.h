/* json_tree: texts and files of JSON as jansson's values. jansson is a type of value and a writer
 * here, never a reader: its own reader drops bytes of strings where memory runs out, and then
 * reads past their end. */
#ifndef HN_JSON_TREE_H
#define HN_JSON_TREE_H

#include "base/json.h"

#include <jansson.h>

enum { HN_JSON_FILE_BYTES = 1 << 30 }; /* most that is read of a file, unless a rule says less */

/* One value and nothing behind it. name: of messages. On failure *out is NULL: rules->fault with the
 * place, or HONE_E_NOMEM. */
hone_status hn_json_tree(json_t **out, const char *text, size_t len, const hn_json_rules *rules, const char *name,
                         hone_error *err);
/* The same of a text whose reader has begun; where it failed is then in j. */
hone_status hn_json_build(json_t **out, hn_jread *j);
/* What HN_JSON_DIGITS keeps of a number; NULL: v is no such number. Such a tree cannot be dumped. */
const char *hn_json_digits(const json_t *v);
/* The file at path, whole. HONE_E_IO too; errno is ENOENT then where there is none. */
hone_status hn_json_tree_file(json_t **out, const char *path, const hn_json_rules *rules, hone_error *err);

/* ---- and back ---------------------------------------------------------------------------------- */

enum { HN_JSON_REAL_TEXT = 40 };
/* A finite number in as few digits as read back as it, with a point or an exponent, whatever the locale. */
void hn_json_real(char text[HN_JSON_REAL_TEXT], double v);
/* v as text, malloc'ed and freed with free(); as json_dumps, which loses bytes unnoticed where memory is short, whose
 * text is freed as jansson's own, and whose numbers have more digits than they were read from. NULL: out of memory. */
char *hn_json_dump(const json_t *v, size_t flags);

/* ---- fields: what a file says, checked before it is used -------------------------------------- */

/* "an object", "a string", "a number", …, "nothing" */
const char *hn_json_kind(const json_t *v);
/* The string at o.key: "" where it is missing, of another type, or o is no object. Borrowed. */
const char *hn_json_text_of(const json_t *o, const char *key);
double hn_json_number_of(const json_t *o, const char *key); /* NAN: there is none */

#endif
