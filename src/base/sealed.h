/* sealed: files that hold what hone needs as it was, bit for bit: sessions, training's checkpoints. A file
 * is there whole or not at all: written under another name, synced, renamed. Its last 8 bytes are the FNV-1a
 * of all before, in this machine's order. Knows nothing of what it holds; the caller names what went wrong. */
#ifndef HN_SEALED_H
#define HN_SEALED_H

#include "base/base.h"

/* ---- writing ---- */
typedef struct hn_sealing {
    const char *path;
    char *tmp;
    uint64_t hash;
    int fd, error; /* errno of the first failure: nothing is written after it */
} hn_sealing;

/* 0, or errno. path is borrowed until hn_seal_end, which must follow, also after a failure. */
int hn_seal_begin(hn_sealing *o, const char *path);
void hn_seal_put(hn_sealing *o, const void *p, size_t n);
/* 0: the file is at path. Else errno, and what was at path is untouched. */
int hn_seal_end(hn_sealing *o);

/* ---- reading ---- */
/* In this process's own memory: what was checked is what is used, whatever becomes of the file. */
typedef struct hn_sealed { const unsigned char *p; uint64_t size; } hn_sealed;

enum {
    HN_SEALED_NO_FILE = -1, /* empty, or not a file */
    HN_SEALED_CHANGED = -2, /* written to while it was read */
    HN_SEALED_OTHER = -3    /* does not begin with the magic */
};
/* Reads a file of at least n_magic bytes that begins with magic, or a shorter one; nothing else is checked.
 * 0, errno (ENOMEM too when it is larger than the free memory), or one of the above. */
int hn_sealed_open(hn_sealed *f, const char *path, const char *magic, size_t n_magic);
void hn_sealed_close(hn_sealed *f); /* accepts {0} */
/* The last 8 bytes are those of the others. */
bool hn_sealed_fits(const hn_sealed *f);

#endif
