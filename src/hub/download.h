/* download: one file from an address to a name on this disk, whole and right or not at all. Owns pieces, connections,
 * what is believed of an answer, hashes as the bytes come, and trying again; refuses to know hubs, repositories and
 * registries beyond what the caller expects of the first answer. */
#ifndef HN_DOWNLOAD_H
#define HN_DOWNLOAD_H

#include "hub/fetch.h"
#include "hub/part.h"

typedef struct hn_download {
    const char *url;
    hn_part_names names;
    uint64_t size;      /* UINT64_MAX: the server says */
    const char *oid;    /* 64 hex: SHA-256; 40 hex: git's SHA-1 of a blob; NULL: nobody knows */
    const char *commit; /* the endpoint must say this one (X-Repo-Commit); NULL: it is not asked */
    uint64_t piece;     /* bytes of one request */
    int n_conn;         /* requests at a time */
    /* done: bytes of this file that are here */
    void (*progress)(void *arg, uint64_t done, uint64_t size);
    void (*waiting)(void *arg); /* for another program that downloads it */
    void *arg;
} hn_download;

enum { HN_DOWNLOAD_CONNS = 8 };

typedef struct hn_downloaded {
    bool cached;     /* it was here already */
    char sha256[65]; /* "" of a cached one */
    uint64_t size, fetched;
} hn_downloaded;

/* HONE_E_NETWORK: why, in words; the part stays for the next time, unless it was wrong. HONE_E_IO: the disk.
 * HONE_E_INTERRUPTED: rules.stop; part and journal stay. status (may be NULL): the answer's head where a status was the
 * reason (hub_api.h has words for it), else zeroed. */
hone_status hn_download_file(hn_fetch *h, const hn_download *want, hn_downloaded *got, hn_fetch_head *status,
                             hone_error *err);

/* How many bytes an address has, by one request for its first one. HONE_E_NETWORK: it does not say, or does not
 * answer. */
hone_status hn_download_size(hn_fetch *h, const hn_download *want, uint64_t *size, hone_error *err);

#endif
