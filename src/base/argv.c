/* Command lines that are being made. A failed allocation is remembered, so that a line is
 * checked once, when it is whole. */
#define _GNU_SOURCE
#include "base/argv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Takes word (NULL: there was no memory for it). */
static void put(hn_argv *a, size_t at, char *word)
{
    if (at == a->n && a->n + 2 > a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 16;
        char **w = word ? realloc(a->word, cap * sizeof *w) : NULL;
        if (w) {
            a->word = w;
            a->cap = cap;
        } else {
            free(word);
            word = NULL;
        }
    }
    if (!word) {
        a->lost = true;
        return;
    }
    if (at < a->n) free(a->word[at]);
    else a->word[++a->n] = NULL;
    a->word[at] = word;
}

void hn_argv_add(hn_argv *a, const char *fmt, ...)
{
    char *word = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&word, fmt, ap) < 0) word = NULL;
    va_end(ap);
    put(a, a->n, word);
}

bool hn_argv_is(const char *word, const char *name)
{
    size_t n = strlen(name);
    return strncmp(word, "--", 2) == 0 && strncmp(word + 2, name, n) == 0 && (word[2 + n] == '=' || word[2 + n] == 0);
}

/* Where the option that `word` spells stands; a->n: nowhere, or word is no option. */
static size_t place_of(const hn_argv *a, const char *word)
{
    size_t i = a->n, n = strcspn(word, "=");
    if (strncmp(word, "--", 2) == 0 && n > 2)
        for (i = 0; i < a->n && !(strcspn(a->word[i], "=") == n && strncmp(a->word[i], word, n) == 0);) i++;
    return i;
}

void hn_argv_set(hn_argv *a, const char *name, const char *fmt, ...)
{
    char *value = NULL, *word = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&value, fmt, ap) < 0) value = NULL;
    va_end(ap);
    if (value && asprintf(&word, "--%s=%s", name, value) < 0) word = NULL;
    free(value);
    put(a, word ? place_of(a, word) : a->n, word);
}

void hn_argv_extend(hn_argv *a, const char *const *words)
{
    for (; words && *words; words++) put(a, place_of(a, *words), strdup(*words));
}

hone_status hn_argv_check(const hn_argv *a, const char *what, hone_error *err)
{
    return a->lost ? HN_FAIL(err, HONE_E_NOMEM, "no memory for the arguments of %s", what) : HONE_OK;
}

void hn_argv_free(hn_argv *a)
{
    for (size_t i = 0; i < a->n; i++) free(a->word[i]);
    free(a->word);
    *a = (hn_argv){ 0 };
}
