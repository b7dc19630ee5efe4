/* pack_file: the packed side file of a model as a container. Bytes from disk are checked
 * here against the file's size and against what their types need; knows entries and their
 * places, refuses to know which model they belong to and what is done with them.
 *
 * Little-endian. Header, 4096 bytes:
 *   0    "HONEPACK"
 *   8    u32 version of this container; u32 HN_PACK_VERSION
 *   16   u64 bytes of the file; u64 entries; u64 bytes of the directory, which begins at 4096
 *   40   u64 zero
 *   48   SHA-256 of names, types and shapes of all tensors of the model (all dimensions)
 *   80   SHA-256 of the tensor data of the model, all of it: hn_identity.data (gguf/identity.h)
 *   112  SHA-256 of bytes [0, 112) and of the directory
 *   144  zeros
 * Directory, one after the other: u32 type, u32 kind, u64 n_in, u64 n_out, u64 offset,
 * u64 bytes, SHA-256 of the entry's data in this file, u32 bytes of the name, the name, zeros
 * to a multiple of 8. Then the data, the first on a multiple of 4096, the others of 64, in
 * ascending order: groups of quant/pack.h for a matrix, f32 for a vector. The hash of an entry is that
 * of the SHA-256 of its pieces: as many groups as fit into 1 MiB, at least one; a vector is one piece.
 *
 * A packed file is never changed once it has its name, so that its proof can be kept: what has been hashed once and
 * found right is right for as long as the file is that file (base/known.h). */
#ifndef HN_PACK_FILE_H
#define HN_PACK_FILE_H

#include "gguf/identity.h"
#include "quant/pack.h"

enum { HN_PACKED_CONTAINER = 2, HN_PACKED_HEADER = 4096, HN_PACKED_HASH = 32 };
typedef enum hn_packed_kind { HN_PACKED_MATRIX = 0, HN_PACKED_VECTOR = 1 } hn_packed_kind;

typedef struct hn_packed_entry {
    hone_str name; /* in the mapping; of a file to be written: borrowed */
    hn_type type;  /* in the model */
    hn_packed_kind kind;
    uint64_t n_in, n_out; /* vector: n, 1 */
    uint64_t offset, n_bytes;
    unsigned char hash[HN_PACKED_HASH]; /* of its data here */
    const void *data;
} hn_packed_entry;

typedef struct hn_packed {
    char *path;
    hn_packed_entry *e;
    uint64_t n, size;
    unsigned char shapes[HN_PACKED_HASH], data[HN_PACKED_HASH];
    hn_file_stamp stamp; /* as it was when it was mapped */
    const unsigned char *map;
    unsigned char *dir; /* a copy of the directory; the entries' names are in it */
    bool mapped;
} hn_packed;

/* Maps a packed file and checks all of it but the packed numbers: hn_packed_check does that.
 * HONE_E_IO: cannot be opened or mapped (err->message has errno's text; *missing, may be NULL, is
 * set when there is none). HONE_E_FORMAT: not a packed file, or damaged. HONE_E_UNSUPPORTED:
 * of another version. */
hone_status hn_packed_open(hn_packed **out, const char *path, bool *missing, hone_error *err);
/* The same on bytes in memory (borrowed). */
hone_status hn_packed_parse(hn_packed **out, const void *bytes, size_t len, const char *name, hone_error *err);
void hn_packed_close(hn_packed *p);
/* Whether a file begins as a packed file does. */
bool hn_packed_is(const char *path);

/* ---- the proof of the packed numbers ------------------------------------------------------ */

/* Piece k of an entry, 0 ≤ k < hn_packed_pieces. */
typedef struct hn_packed_piece {
    uint64_t row; /* the first; n_rows of the model */
    int64_t n_rows;
    uint64_t at; /* in the entry's data; n_bytes of it */
    size_t n_bytes;
} hn_packed_piece;
uint64_t hn_packed_pieces(const hn_packed_entry *e);
hn_packed_piece hn_packed_piece_at(const hn_packed_entry *e, uint64_t k);

/* Whether the numbers of this very file have been proven right before; a sample of it is read. False with errno:
 * it cannot be told. */
bool hn_packed_proven(const hn_packed *p);
/* Reads all of them. HONE_OK: each entry has its hash; *kept (may be NULL): hn_packed_proven knows it from now on.
 * HONE_E_FORMAT: damaged; names the first entry that is. HONE_E_IO: changed while it was read. HONE_E_INTERRUPTED. */
hone_status hn_packed_check(const hn_packed *p, hn_pool *pool, const hone_progress *pr, bool *kept, hone_error *err);

/* ---- writing ---------------------------------------------------------------------------- */

/* By base/file.h: the file appears under its name, whole and on disk, at the end.
 * On failure or free before it nothing is left. Data may come from several threads. */
typedef struct hn_packed_writer hn_packed_writer;
/* Sets offset and n_bytes of the entries (borrowed until the end). HONE_E_IO: cannot be created, or
 * no room for it. */
hone_status hn_packed_begin(hn_packed_writer **out, const char *path, hn_packed_entry *e, uint64_t n, hone_error *err);
uint64_t hn_packed_size(const hn_packed_writer *w);
/* From now on writes are gathered, all within `most` bytes behind the end of the last flush (the first data), and reach
 * the file in whole huge pages: read back, it lies in memory in huge pages. */
void hn_packed_gather(hn_packed_writer *w, size_t most);
/* 0, or errno. */
int hn_packed_write(hn_packed_writer *w, uint64_t offset, const void *p, size_t n);
/* Everything before `end` has been handed over. 0, or errno. Not beside hn_packed_write. */
int hn_packed_flush(hn_packed_writer *w, uint64_t end);
/* A failure of hn_packed_write in words. */
hone_status hn_packed_failed(hn_packed_writer *w, int error, hone_error *err);
/* With the entries' hashes: header, directory, fsync, rename. */
hone_status hn_packed_end(hn_packed_writer *w, const unsigned char shapes[HN_PACKED_HASH],
                          const unsigned char data[HN_PACKED_HASH], hone_error *err);
void hn_packed_writer_free(hn_packed_writer *w);

#endif
