/* argv: the words of a command line that is being made, of which later options overrule earlier ones. Owns the memory
 * of the words; refuses to know what they mean and who runs them. */
#ifndef HN_ARGV_H
#define HN_ARGV_H

#include "base/base.h"

typedef struct hn_argv {
    char **word; /* [n], NULL behind the last; NULL while there is none */
    size_t n, cap;
    bool lost; /* memory ran out: words are missing */
} hn_argv;     /* zero it */

void hn_argv_add(hn_argv *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "--NAME=VALUE", in the place of all earlier "--NAME=…". */
void hn_argv_set(hn_argv *a, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* All words behind those of a; options that a has already are replaced. What stands several times among the words, as
 * --lora may, does so in a. */
void hn_argv_extend(hn_argv *a, const char *const *words);
/* Is this word "--NAME" or "--NAME=…"? */
bool hn_argv_is(const char *word, const char *name);
/* HONE_E_NOMEM: words were lost; `what` says of which command line. */
hone_status hn_argv_check(const hn_argv *a, const char *what, hone_error *err);
void hn_argv_free(hn_argv *a);

static inline const char *const *hn_argv_words(const hn_argv *a) { return (const char *const *)a->word; }

#endif
