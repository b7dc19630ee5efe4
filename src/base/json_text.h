/* json_text: jansson for lab/ and cli/, whose files include it from here: what is built becomes text whole or not at
 * all (json_text.c). Knows nothing of what is built. */
#ifndef HN_JSON_TEXT_H
#define HN_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>

/* The program calls hn_json_watch once, before any JSON is built or read: from then on an allocation
 * of jansson that fails is remembered for good, because what is built may lack a part without a word. */
void hn_json_watch(void);
void hn_json_lose(void); /* a part could not be built elsewhere */
bool hn_json_lost(void);
/* What lab/ and cli/ build goes through these two: a value that is not there, because whoever made it had no memory,
 * is a part that is lost, too. What is left out on purpose is not set. 0, or -1 as jansson. */
int hn_json_set_new(json_t *o, const char *key, json_t *v);
int hn_json_append_new(json_t *a, json_t *v);
#define json_object_set_new hn_json_set_new
#define json_array_append_new hn_json_append_new
/* As json_dumps, to be freed; NULL also where a part has been lost. Without JSON_ENCODE_ANY NULL of what is no object
 * and no array, as there. */
char *hn_json_text(const json_t *j, size_t flags);

#endif
