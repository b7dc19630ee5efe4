/* jinja: the template language of chat templates. Text of a template and a JSON object
 * of variables in; text out, with the byte ranges that came from the variables. Knows
 * nothing of models, roles of messages or tokens.
 *
 * Behaves as Jinja2 with trim_blocks, lstrip_blocks, loop controls and no autoescape, as
 * chat templates expect it. What is not supported is an error, never silently different.
 * Every error names the template, line and column (1-based, in characters). */
#ifndef HN_JINJA_H
#define HN_JINJA_H

#include "base/base.h"

#include <jansson.h>

/* What one template may cost; a field of 0 means the default. */
typedef struct hn_jinja_limits {
    uint64_t steps;        /* expressions, statements and blocks of bytes worked on; 20 million */
    uint32_t depth;        /* nesting of source, of calls and of values; 800 */
    uint64_t output_bytes; /* 64 MiB */
    uint64_t memory_bytes; /* of one parse or rendering, output included; 256 MiB */
} hn_jinja_limits;

/* Wall-clock time as strftime_now reports it. */
typedef struct hn_jinja_time {
    int year, month, day, hour, minute, second;
} hn_jinja_time; /* month, day from 1 */

typedef struct hn_jinja hn_jinja; /* a parsed template: immutable, shared between threads */

/* src is copied. name: for messages. limits NULL: defaults.
 * HONE_E_FORMAT: not a template, or a limit reached. HONE_E_UNSUPPORTED: a statement that exists in Jinja2 and not
 * here. */
hone_status hn_jinja_parse(hn_jinja **out, const char *src, size_t len, const char *name, const hn_jinja_limits *limits,
                           hone_error *err);
void hn_jinja_free(hn_jinja *t);

typedef struct hn_jinja_vars {
    const json_t *context; /* object: name -> value */
    const char *const
        *trusted;     /* NULL-ended names of variables whose strings count as written by the template; may be NULL */
    bool trust_roles; /* messages[i].role, where it is a role every template knows, counts so too */
    const hn_jinja_time *now; /* NULL: local time */
    hn_jinja_limits limits;
} hn_jinja_vars;

typedef struct hn_jinja_text {
    char *text; /* NUL-terminated */
    size_t len;
    hone_span *input; /* ascending, disjoint, not adjacent */
    size_t n_input;
    bool raised; /* on failure: the template itself refused, by raise_exception */
} hn_jinja_text;

/* out receives malloc'ed members; free with hn_jinja_text_free.
 * HONE_E_ARG: raise_exception, whose text ends the message. HONE_E_FORMAT: a fault while rendering, or a limit
 * reached. HONE_E_UNSUPPORTED: something that Jinja2 has and hone has not. */
hone_status hn_jinja_render(const hn_jinja *t, const hn_jinja_vars *vars, hn_jinja_text *out, hone_error *err);
void hn_jinja_text_free(hn_jinja_text *out);

/* Whether source mentions a variable of that name. */
bool hn_jinja_mentions(const hn_jinja *t, const char *name);
/* Whether source has this text anywhere. */
bool hn_jinja_says(const hn_jinja *t, const char *text);

/* "2026-02-03T04:05:06", checked, alone or with its distance from GMT ("+01:00", "-0530"), which is *east (NULL: nobody
 * asks; 0 where it is not said). */
bool hn_jinja_parse_time(hn_jinja_time *out, int *east, const char *s);

#endif
