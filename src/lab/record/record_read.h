/* record_read: what files of the laboratory say, checked before anything of it is used: every field
 * that hone reads has a kind, numbers a range. One table per kind of file; whoever reads takes values
 * only out of what fits. Also the settings of a measurement that may come out of a file. */
#ifndef HN_RECORD_READ_H
#define HN_RECORD_READ_H

#include "base/base.h"
#include "base/json_text.h"

enum {
    HN_IS_STRING = 1,
    HN_IS_WHOLE = 2,
    HN_IS_NUMBER = 4,
    HN_IS_BOOL = 8,
    HN_IS_ARRAY = 16,
    HN_IS_OBJECT = 32,
    HN_IS_NULL = 64,
    HN_IS_REQUIRED = 128, /* else it may be missing */
    HN_IS_NAME = 256      /* a string of letters, digits and . _ - + only, beginning with a letter or digit */
};

/* path: names with dots; "[]" behind a name: of each element; "*": of each member. Below what is of another
 * kind, or missing, nothing is looked at: the line of that itself says whether it may be. */
typedef struct hn_shape {
    const char *path;
    unsigned is;
    double least, most; /* of numbers; both 0: any. Of arrays and strings: how many elements, bytes */
} hn_shape;             /* ends with path NULL */

/* False: *why says which field is what, and what was expected. */
bool hn_shape_fits(json_t *o, const hn_shape *shape, char *why, size_t cap);
/* By its schema; what has a schema of which hone reads nothing in particular fits. */
bool hn_record_fits(json_t *record, char *why, size_t cap);
extern const hn_shape hn_shape_baseline[], hn_shape_answers[];

/* What stands there in a record, or in any object; "" or NaN: nothing of the kind. */
const char *hn_record_text(const json_t *o, const char *key);
double hn_record_number(const json_t *o, const char *key);

/* ---- settings ------------------------------------------------------------------------------- */

/* The options for `hone bench` that args, an array of texts, ask for, built anew from typed values: lengths,
 * threads, kinds, names; *out is NULL on failure. Nothing that names a file, except "--packed=given": the
 * packed file is named by whoever runs it, by `packed` (NULL: not named). HONE_E_ARG names what is refused. */
hone_status hn_settings_read(json_t **out, json_t *args, const char *packed, hone_error *err);
/* The name of an entry or a pattern of names: what `hone bench` takes as one. */
bool hn_settings_id(const char *id);

#endif
