/* JSON as text, whole or not at all. jansson's builders (json_object_set_new and their kin) leave
 * out what they have no memory for and go on; so the program lets jansson allocate through
 * functions of this file, which remember that one failed, and nothing becomes text after that.
 * Refuses to know what is built. */
#include "lab/lab.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic bool lost;

static void *watched_malloc(size_t n)
{
    void *p = malloc(n);
    if (!p) hn_json_lose();
    return p;
}

/* Before any JSON: what was allocated otherwise would be freed here. */
void hn_json_watch(void) { json_set_alloc_funcs(watched_malloc, free); }

void hn_json_lose(void) { atomic_store(&lost, true); }

bool hn_json_lost(void) { return atomic_load(&lost); }

char *hn_json_text(const json_t *j, size_t flags)
{
    char *text = j && !hn_json_lost() ? json_dumps(j, flags) : NULL;
    if (!text) hn_json_lose(); /* whoever leaves it out says less */
    if (!hn_json_lost()) return text;
    free(text);
    return NULL;
}
