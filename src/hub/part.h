/* part: a file while it comes: its bytes in any order, which of them are there, and the lock that keeps a second
 * download of it waiting. Owns the part file, its journal and how the whole one gets its name; refuses to know where
 * the bytes come from.
 *
 *     NAME.hone-part        the bytes, at their places; room for all of them is taken first
 *     NAME.hone-part.json   {"schema":"hone.part/1","etag":…,"size":…,"piece":…,"have":[bytes of each piece]}
 *
 * The journal never says more than the disk has: the part is synced before each. It is written when pieces are whole,
 * at times in between, and when a download stops. What it says is believed only if etag and size still fit. */
#ifndef HN_PART_H
#define HN_PART_H

#include "base/base.h"

#include <pthread.h>

typedef struct hn_part_names {
    const char *whole, *part, *journal;
    const char *lock; /* a file that stays; NULL: the part itself is locked */
    const char *what; /* in messages: "model.gguf" */
    uint64_t size;    /* of the whole one; UINT64_MAX: whatever it has */
} hn_part_names;

typedef struct hn_part {
    hn_part_names names; /* borrowed */
    int fd, lock_fd;
    uint64_t size, piece;
    size_t n_piece;
    pthread_mutex_t mu;
    uint64_t *have;      /* [n_piece]; guarded by mu */
    uint64_t total;      /* their sum; guarded by mu */
    uint64_t journalled; /* of total, in the journal */
    int unsynced;        /* errno of the first fsync that failed: the system tells it once, and bytes are lost */
    char etag[132];      /* what the content is known by; in the journal */
} hn_part;

/* Waits for the lock (calls `waiting` once if it must, `stop` now and then). *whole: the file itself is there, then
 * nothing else is to be done. Folders are made. On failure p is as if closed. */
hone_status hn_part_lock(hn_part *p, const hn_part_names *names, bool *whole, bool (*stop)(void *),
                         void (*waiting)(void *), void *arg, hone_error *err);
/* Of so many bytes, in pieces of about `piece`: those of the journal, if its etag and size are these, else none. Takes
 * the room. HONE_E_IO: no room, with both numbers. */
hone_status hn_part_open(hn_part *p, uint64_t size, const char *etag, uint64_t piece, hone_error *err);
/* What an earlier download knew, for where nobody else says it: false: there is no journal. */
bool hn_part_known(const hn_part *p, char etag[132], uint64_t *size);
uint64_t hn_part_first(const hn_part *p, size_t i); /* where piece i begins */
uint64_t hn_part_len(const hn_part *p, size_t i);
uint64_t hn_part_prefix(hn_part *p); /* bytes from the beginning on that are there */
/* n bytes at `at`, within one piece or over several, which follow on what these have. 0, or errno. */
int hn_part_put(hn_part *p, uint64_t at, const void *bytes, size_t n);
/* Bytes of its piece that are there from `at` on. */
uint64_t hn_part_covers(hn_part *p, uint64_t at);
int hn_part_get(const hn_part *p, uint64_t at, void *bytes, size_t n);
/* Synced, and the journal written, if there is more than it says. */
hone_status hn_part_note(hn_part *p, hone_error *err);
/* Nothing of it is there any more: it begins from zero, known by another etag. */
hone_status hn_part_forget(hn_part *p, const char *etag, hone_error *err);
/* Synced, and under its name. */
hone_status hn_part_publish(hn_part *p, hone_error *err);
/* Unlocks; part and journal stay unless `remove`. A closed one ({0} with fds -1) is accepted. */
void hn_part_close(hn_part *p, bool remove);
/* Bytes that a download of `size` still takes on disk, as far as a part of it is there. */
uint64_t hn_part_missing(const char *part, uint64_t size);

#endif
