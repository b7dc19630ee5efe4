/* sha1: SHA-1 (FIPS 180-4), because git names its files by it: SHA1("blob SIZE\0" content). Nothing of hone's own is
 * named by SHA-1. */
#ifndef HN_SHA1_H
#define HN_SHA1_H

#include "base/base.h"

typedef struct hn_sha1 {
    uint32_t h[5];
    uint64_t n;
    unsigned char buf[64];
} hn_sha1;
void hn_sha1_init(hn_sha1 *s);
void hn_sha1_add(hn_sha1 *s, const void *p, size_t n);
void hn_sha1_end(hn_sha1 *s, unsigned char out[20]);

#endif
