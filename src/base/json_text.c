/* JSON as text, whole or not at all. jansson's builders (json_object_set_new and their kin) leave
 * out what they have no memory for and go on; so the program lets jansson allocate through
 * functions of this file, which remember that one failed, and nothing becomes text after that.
 * Refuses to know what is built. */
#include "base/json_text.h"

#undef json_object_set_new
#undef json_array_append_new

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

static _Atomic bool lost;

/* jansson's reader asserts, or frees what it does not own, where an allocation fails in a string; so
 * it never sees one fail: it gets a piece of this, nothing that is made of it becomes text, and the
 * program ends with the right code. Pages of it that nobody touches cost nothing. */
enum { RESERVE = 4 << 20, ALIGN = 16 };
static _Alignas(ALIGN) char reserve[RESERVE];
static _Atomic size_t reserved;

static void *watched_malloc(size_t n)
{
    void *p = malloc(n);
    if (p) return p;
    hn_json_lose();
    if (n > RESERVE - ALIGN) return NULL;
    size_t size = (n + ALIGN - 1) / ALIGN * ALIGN, at = atomic_fetch_add(&reserved, size);
    return at <= RESERVE - size ? reserve + at : NULL; /* given once: there is no second time */
}

static void watched_free(void *p)
{
    uintptr_t at = (uintptr_t)p, from = (uintptr_t)reserve;
    if (at < from || at >= from + RESERVE) free(p);
}

/* Before any JSON: what was allocated otherwise would be freed here. */
void hn_json_watch(void) { json_set_alloc_funcs(watched_malloc, watched_free); }

void hn_json_lose(void) { atomic_store(&lost, true); }

bool hn_json_lost(void) { return atomic_load(&lost); }

int hn_json_set_new(json_t *o, const char *key, json_t *v)
{
    int rc = json_object_set_new(o, key, v);
    if (rc != 0) hn_json_lose();
    return rc;
}

int hn_json_append_new(json_t *a, json_t *v)
{
    int rc = json_array_append_new(a, v);
    if (rc != 0) hn_json_lose();
    return rc;
}

char *hn_json_text(const json_t *j, size_t flags)
{
    char *text = j && !hn_json_lost() ? json_dumps(j, flags) : NULL;
    if (!hn_json_lost()) return text;
    watched_free(text);
    return NULL;
}
