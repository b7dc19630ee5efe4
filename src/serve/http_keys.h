/* http_keys: which keys open the door. Owns their file and the comparison, whose time tells nothing of them. Refuses to
 * know where a key came from. */
#ifndef HN_HTTP_KEYS_H
#define HN_HTTP_KEYS_H

#include "base/base.h"

typedef struct hn_http_keys {
    size_t n;
    unsigned char (*digest)[32]; /* [n] SHA-256 of each; the keys themselves are not kept */
} hn_http_keys;

/* key and path may be NULL. HONE_E_ARG: a key that is none, a file others may read, or without a key. On failure *out
 * is empty. */
hone_status hn_http_keys_read(hn_http_keys *out, const char *key, const char *path, hone_error *err);
void hn_http_keys_free(hn_http_keys *k);
/* Is text [n) one of them? *who: which, a number of the key itself, wherever and however often it is listed; 0: none.
 * The same work for every text of that length. */
bool hn_http_keys_has(const hn_http_keys *k, const char *text, size_t n, uint64_t *who);

#endif
