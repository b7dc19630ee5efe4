/* sealed: files that hold what hone needs as it was, bit for bit: sessions, training's checkpoints. A file
 * is there whole or not at all (base/file.h). Its last 8 bytes are the FNV-1a
 * of all before, in this machine's order. Knows nothing of what it holds; the caller names what went wrong. */
#ifndef HN_SEALED_H
#define HN_SEALED_H

#include "base/file.h"

/* ---- writing ---- */
typedef struct hn_sealing {
    hn_file *file;
    uint64_t hash;
} hn_sealing;

/* n_bytes: of the finished file, its seal of 8 bytes included; 0: not known. Fails as hn_file_begin does; then nothing
 * else is to be called, else hn_seal_end, which frees what o holds. */
hone_status hn_seal_begin(hn_sealing *o, const char *path, uint64_t n_bytes, hone_error *err);
void hn_seal_put(hn_sealing *o, const void *p, size_t n);
/* Fails as hn_file_end does, also for what could not be put: what was at path is untouched. */
hone_status hn_seal_end(hn_sealing *o, hone_error *err);

/* How files of sessions begin, of whatever version: their writer and who asks before long work agree by it. */
#define HN_SEALED_SESSION "HONESES"

/* Whether a file that begins with magic may have the name: HONE_OK where nothing is there, or one that does.
 * HONE_E_ARG: something else is, an empty file too; it is no `kind` ("snapshot"). HONE_E_IO: nobody can tell. */
hone_status hn_sealed_check_place(const char *path, const char *magic, size_t n_magic, const char *kind,
                                  hone_error *err);

/* ---- reading ---- */
/* In this process's own memory: what was checked is what is used, whatever becomes of the file. */
typedef struct hn_sealed {
    const unsigned char *p;
    uint64_t size;
} hn_sealed;

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
