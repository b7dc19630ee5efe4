/* url: addresses of http and https, taken apart and joined. Owns what counts as one origin and which hosts are this
 * machine; refuses to know what is behind an address, and to open any. */
#ifndef HN_URL_H
#define HN_URL_H

#include "base/base.h"

enum { HN_URL_BYTES = 16384 }; /* longest address that is taken; signed ones have 2 KB */

typedef struct hn_url {
    bool https, loopback; /* loopback: localhost, 127.x.y.z, [::1] */
    char origin[300];     /* "https://host:443": small letters, the port always */
    char host[256];       /* without port and brackets */
    const char *rest;     /* of the text that was parsed: from the '/' or '?' behind the host on, or "" */
} hn_url;

/* False: no address of http or https, one with a user, or with bytes that none has; *why (may be NULL) says it. */
bool hn_url_parse(hn_url *u, const char *text, const char **why);
/* What `to`, as a Location or a Link says it, means at `base`: *out malloc'ed, without its #fragment. HONE_E_NETWORK:
 * it is no address; HONE_E_NOMEM. */
hone_status hn_url_join(char **out, const char *base, const char *to, hone_error *err);
/* May it be opened? from: the address that sent us there, NULL: nobody did. https always; http on this machine, and
 * there only if nobody or this machine itself sent us: else a server elsewhere would reach what listens here for its
 * own people. With insecure http everywhere. HONE_E_NETWORK: no, and why. */
hone_status hn_url_allowed(const char *url, const char *from, bool insecure, hone_error *err);
bool hn_url_same_origin(const char *a, const char *b);
/* s as a part of an address: all but letters, digits and -._~ becomes %HH; with `path` '/' stays too. Malloc'ed. */
char *hn_url_quote(const char *s, bool path);

#endif
