/* identity: what a model file is, whatever it is called and wherever it lies: hashes of its content. Computed once
 * for a file by reading all of it, then kept (base/known.h) for as long as the file is that file. Knows containers
 * and tensors; refuses to know what a model is.
 *
 * A piece is 1 MiB of a tensor's data, the last one shorter.
 *   tensor   SHA-256 of the SHA-256 of its pieces
 *   data     SHA-256, for each tensor in the order of the directory, of "NAME\nTYPE NE0 NE1 NE2 NE3\n" and its hash
 *   content  SHA-256 of "hone content 1\n", the SHA-256 of what stands before the data in each file, and data
 * so that threads share the work. Padding between tensors counts for nothing. */
#ifndef HN_IDENTITY_H
#define HN_IDENTITY_H

#include "gguf/gguf.h"

enum { HN_HASH_BYTES = 32 };

typedef struct hn_identity {
    unsigned char content[HN_HASH_BYTES]; /* metadata, directory and data: the model */
    unsigned char data[HN_HASH_BYTES];    /* tensors alone: the same for files that differ in their metadata */
} hn_identity;

typedef enum hn_identity_from {
    HN_IDENTITY_KEPT = 0, /* nothing of the data was read but a sample */
    HN_IDENTITY_COMPUTED, /* all was read, and the result is kept */
    HN_IDENTITY_FORGOTTEN /* all was read, and there is nowhere to keep the result */
} hn_identity_from;

/* What is kept of g. False: nothing (errno 0), or it cannot be told (errno); *out is untouched. */
bool hn_identity_known(const hn_gguf *g, hn_identity *out);
/* What is kept, else computed with all cores. pr and from may be NULL. HONE_E_IO: a file was changed while it was
 * read, or since it was opened. HONE_E_INTERRUPTED: pr asked to stop. */
hone_status hn_identity_of(const hn_gguf *g, hn_identity *out, hn_identity_from *from, const hone_progress *pr,
                           hone_error *err);
/* Waits until changes of g's files from now on would show in their stamps (hn_stamp_settle). */
void hn_gguf_settle(const hn_gguf *g);
/* Whether all files of g still are what was opened, else HONE_E_IO naming the one that is not. */
hone_status hn_gguf_unchanged(const hn_gguf *g, hone_error *err);

#endif
