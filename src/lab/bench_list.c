/* The list of everything that can be measured, and how ids are named. Owns the order
 * and the rows of what this build lacks; refuses to measure. */
#define _GNU_SOURCE
#include "lab/bench.h"

#include <fnmatch.h>

const hn_bench_entry hn_bench_absent[] = {
    { 0 },
};

static const hn_bench_entry *const tables[] = { hn_bench_text, hn_bench_absent };

const hn_bench_entry *hn_bench_at(size_t i)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const hn_bench_entry *e = tables[t]; e->id; e++)
            if (i-- == 0) return e;
    return NULL;
}

const hn_bench_entry *hn_bench_find(const char *id)
{
    const hn_bench_entry *e;
    for (size_t i = 0; (e = hn_bench_at(i)); i++)
        if (strcmp(e->id, id) == 0) return e;
    return NULL;
}

bool hn_bench_in_suite(const hn_bench_entry *e, const char *suite)
{
    size_t n = strlen(suite);
    for (const char *w = e->suites; w && *w; w += strspn(w, " ")) {
        size_t len = strcspn(w, " ");
        if (len == n && memcmp(w, suite, n) == 0) return true;
        w += len;
    }
    return false;
}

bool hn_bench_matches(const char *pattern, const char *id)
{
    size_t n = strlen(pattern);
    if (strpbrk(pattern, "*?[")) return fnmatch(pattern, id, 0) == 0;
    return strncmp(id, pattern, n) == 0 && (id[n] == 0 || id[n] == '.');
}
