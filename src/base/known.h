/* known: what was once computed of a file's whole content, kept for as long as the file is that very file. Owns
 * the question "is this still the file it was?", asked of device, inode, size, both times of change and a sample
 * of the bytes, and the small records in $XDG_STATE_HOME/hone/known (else ~/.local/state/hone/known) that
 * answer it. Refuses to know what was computed. Losing a record, or the folder, costs computing again. */
#ifndef HN_KNOWN_H
#define HN_KNOWN_H

#include "base/base.h"

/* A file as it was when it was opened. */
typedef struct hn_file_stamp {
    uint64_t dev, ino, size;
    int64_t mtime_ns, ctime_ns; /* of the content, of the content or the entry; since 1970 */
} hn_file_stamp;

struct stat;
void hn_stamp_of(hn_file_stamp *out, const struct stat *sb);
/* Still the same file with the same stamp under this name? */
bool hn_stamp_holds(const hn_file_stamp *stamp, const char *path);
/* Two changes within one tick of a file system's clock look like one. Fresh: the last change is so young that another
 * one now might not show in the stamp. Settle waits until it would (20 ms at most; 2 s where times are whole seconds),
 * to be called before the content is read. */
bool hn_stamp_fresh(const hn_file_stamp *stamp);
void hn_stamp_settle(const hn_file_stamp *stamp);

typedef struct hn_known_file {
    const char *path;
    hn_file_stamp stamp;
} hn_known_file;

typedef struct hn_known_key {
    unsigned char sum[32]; /* SHA-256 of the stamps and of 64 KiB out of the files */
    uint64_t dev, ino;     /* of the first: its record's name */
} hn_known_key;

enum { HN_KNOWN_FACT = 64, HN_KNOWN_MAX = 1024 /* records, of at most 2 KiB each; the oldest go */ };

/* The key of a file, or of several that are one thing. False: one of them is gone, or not what its stamp says (errno
 * 0), or cannot be read (errno). */
bool hn_known_key_of(hn_known_key *key, const hn_known_file *f, int32_t n);
/* What was kept under kind (a short word) for this key: fact[n], n ≤ HN_KNOWN_FACT. False: nothing (errno 0), or
 * it cannot be read (errno). */
bool hn_known_get(const hn_known_key *key, const char *kind, void *fact, size_t n);
/* Keeps it, in place of what was kept of an earlier state of that file. path is for people who look into the
 * record. False: there is nowhere to keep it. */
bool hn_known_put(const hn_known_key *key, const char *kind, const char *path, const void *fact, size_t n);

/* A name in hone's folder of state: dst = "$XDG_STATE_HOME/hone/leaf", else "~/.local/state/hone/leaf". False: neither
 * variable is set (a relative XDG_STATE_HOME does not count, says its specification), or cap is too small. */
bool hn_state_path(char *dst, size_t cap, const char *leaf);

#endif
