/* Command lines that are being made. A failed allocation is remembered, so that a line is
 * checked once, when it is whole. */
#define _GNU_SOURCE
#include "base/argv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Does `other` spell the same option as `word`, which is one? */
static bool same_option(const char *other, const char *word)
{
    size_t n = strcspn(word, "=");
    return strncmp(word, "--", 2) == 0 && n > 2 && strcspn(other, "=") == n && strncmp(other, word, n) == 0;
}

/* Puts word in the place of the first of n words that spells its option, and takes the others away; where there is
 * none, behind all. Returns how many of n are left. */
static size_t replace(hn_argv *a, size_t n, char *word)
{
    size_t at = 0;
    while (word && at < n && !same_option(a->word[at], word)) at++;
    for (size_t i = at + 1; word && i < n; i++) {
        if (!same_option(a->word[i], word)) continue;
        free(a->word[i]);
        memmove(a->word + i, a->word + i + 1, (a->n - i) * sizeof *a->word); /* with the NULL behind the last */
        a->n--;
        n--;
        i--;
    }
    put(a, at < n ? at : a->n, word);
    return n;
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
    replace(a, a->n, word);
}

void hn_argv_extend(hn_argv *a, const char *const *words)
{
    size_t had = a->n;
    for (size_t i = 0; words && words[i]; i++) {
        bool again = false; /* an option that may stand several times does */
        for (size_t k = 0; k < i; k++) again = again || same_option(words[k], words[i]);
        char *word = strdup(words[i]);
        if (again) put(a, a->n, word);
        else had = replace(a, had, word);
    }
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
