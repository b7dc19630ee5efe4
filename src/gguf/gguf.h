/* gguf: reading and writing GGUF files. Untrusted bytes stop here: whatever the
 * reader hands out has been checked against the file's size. Knows containers;
 * refuses to know what a model is. */
#ifndef HN_GGUF_H
#define HN_GGUF_H

#include "base/known.h"
#include "quant/quant.h"

/* Policy limits of the reader; the writer keeps to them too. Chosen well above any
 * file in use and well below what could hurt. */
enum {
    HN_GGUF_MAX_KEY = 65535,
    HN_GGUF_MAX_NAME = 255,      /* reading a tensor name */
    HN_GGUF_MAX_NAME_WRITE = 63, /* what every other reader takes */
    HN_GGUF_MAX_STRING = 64 << 20,
    HN_GGUF_MAX_ARRAY = 1 << 24, /* elements */
    HN_GGUF_MAX_KV = 1 << 16,
    HN_GGUF_MAX_TENSORS = 1 << 16,
    HN_GGUF_MAX_DEPTH = 4, /* arrays within arrays */
    HN_GGUF_MIN_ALIGN = 8,
    HN_GGUF_MAX_ALIGN = 65536,
    HN_GGUF_DEFAULT_ALIGN = 32,
    HN_GGUF_MAX_METADATA = 512 << 20, /* bytes before the tensor descriptors */
    HN_GGUF_MAX_PARTS = 1024
};
#define HN_GGUF_MAX_DIM_SIZE ((uint64_t)1 << 40)
#define HN_GGUF_MAX_ELEMS ((uint64_t)1 << 48)

typedef struct hn_gguf hn_gguf; /* one file, or a whole split set */

/* Maps path (and its siblings when it is part of a split set) read-only and private,
 * parses and checks the directory; touches no tensor data. On failure *out is NULL.
 *
 * Strings and tensor data are views into the mapping, so *out must outlive them. Every
 * number of the directory is read once and kept; strings keep the place and length
 * they had when checked. String arrays are walked on demand within the checked bounds,
 * so a file changed behind our back can alter text, never reach outside the array.
 * What no reader by mmap can survive: a file *shortened* by somebody else while it is
 * mapped gives SIGBUS on touch; hone_mapped_file_at tells a handler which file it was.
 * Replace model files by rename, as the writer does.
 *
 * HONE_E_IO: cannot be opened or mapped, not a regular file. HONE_E_FORMAT: malformed
 * or not GGUF. HONE_E_UNSUPPORTED: GGUF, but a version, byte order or tensor type that
 * hone does not read. */
hone_status hn_gguf_open(hn_gguf **out, const char *path, hone_error *err);
/* The same on bytes in memory (borrowed; must outlive *out); `name` for messages. Splits refused. */
hone_status hn_gguf_parse(hn_gguf **out, const void *bytes, size_t len, const char *name, hone_error *err);
void hn_gguf_close(hn_gguf *g); /* accepts NULL and half-built handles */

const char *hn_gguf_path(const hn_gguf *g);
uint32_t hn_gguf_version(const hn_gguf *g);
uint64_t hn_gguf_size(const hn_gguf *g); /* bytes of all parts */
int32_t hn_gguf_n_parts(const hn_gguf *g);
uint64_t hn_gguf_alignment(const hn_gguf *g);
/* g's files as they were when they were mapped: out[n_parts], names borrowed from g. False: bytes in memory. */
bool hn_gguf_files(const hn_gguf *g, hn_known_file *out);

/* ---- metadata -------------------------------------------------------------------- */

/* Of a split set: the entries of its first file. */
uint64_t hn_gguf_n_kv(const hn_gguf *g);
void hn_gguf_kv(const hn_gguf *g, uint64_t i, hone_kv *out);
int64_t hn_gguf_find(const hn_gguf *g, const char *key); /* -1: absent */

/* Typed getters. Absent: HONE_OK with *out untouched and *found (may be NULL) false.
 * Present but of the wrong kind or out of range: HONE_E_FORMAT naming file, key,
 * type seen and type wanted. Any integer type serves for an integer, f64 for f32. */
hone_status hn_gguf_get_u32(const hn_gguf *g, const char *key, uint32_t *out, bool *found, hone_error *err);
hone_status hn_gguf_get_f32(const hn_gguf *g, const char *key, float *out, bool *found, hone_error *err); /* finite */
hone_status hn_gguf_get_bool(const hn_gguf *g, const char *key, bool *out, bool *found, hone_error *err);
hone_status hn_gguf_get_str(const hn_gguf *g, const char *key, hone_str *out, bool *found, hone_error *err);

/* Arrays: type and count first, then elements in O(1) for fixed-size types. */
typedef struct hn_gguf_array {
    hone_kv_type elem_type;
    uint64_t count;
    const unsigned char *data; /* fixed-size elements: count of them, unaligned; strings: see the iterator */
    uint64_t n_bytes;          /* bytes of the elements */
} hn_gguf_array;
hone_status hn_gguf_get_array(const hn_gguf *g, const char *key, hn_gguf_array *out, bool *found, hone_error *err);
/* The array of entry i; false: not an array. */
bool hn_gguf_kv_array(const hn_gguf *g, uint64_t i, hn_gguf_array *out);
/* Walks a string array: *pos starts at 0; false at the end, after exactly a->count strings. */
bool hn_gguf_next_str(const hn_gguf_array *a, uint64_t *pos, hone_str *out);
/* The same for an array of arrays. */
bool hn_gguf_next_array(const hn_gguf_array *a, uint64_t *pos, hn_gguf_array *out);
/* Entry i as it stands in the file: key, type, value. */
hone_str hn_gguf_kv_raw(const hn_gguf *g, uint64_t i);
/* Bytes of one value of a type, 0 for strings, arrays and unknown types. */
uint32_t hn_gguf_type_size(uint32_t type);
const char *hn_gguf_type_name(uint32_t type); /* "u32" …, "?" if unknown */

/* ---- tensors ------------------------------------------------------------------------ */

typedef struct hn_gguf_tensor {
    hone_str name;
    hn_type type;
    int32_t n_dim;  /* 1 … 4; a file's 0-d scalar counts as 1-d */
    uint64_t ne[4]; /* fastest first, padded with 1; never 0 */
    uint64_t n_bytes;
    uint64_t offset;  /* in its part's data section */
    const void *data; /* into the mapping; aligned as the file says */
    int32_t part;
} hn_gguf_tensor;

uint64_t hn_gguf_n_tensors(const hn_gguf *g);
const hn_gguf_tensor *hn_gguf_tensor_at(const hn_gguf *g, uint64_t i);
const hn_gguf_tensor *hn_gguf_find_tensor(const hn_gguf *g, const char *name); /* NULL: absent */
/* FNV-1a over metadata and tensor directory of all parts (not the data). */
uint64_t hn_gguf_fingerprint(const hn_gguf *g);
/* Bytes of part i before its tensor data: header, metadata, descriptors. */
const void *hn_gguf_directory(const hn_gguf *g, int32_t i, uint64_t *n_bytes);

/* Reads all tensor data and looks for what no sane file holds: NaN or infinity in any
 * decoded element, a block scale that is not finite, MXFP4's exponent byte 255.
 * HONE_E_NUMERIC naming the first tensor and element. */
hone_status hn_gguf_check_data(const hn_gguf *g, hone_error *err);

/* ---- said otherwise (gguf_amend.c) ----------------------------------------------------------- */

/* What the handle says of its file changes, not the file; fingerprint, identity and directory stay those of the file.
 * For whoever has just opened it: no view of an entry or tensor taken before may be used after.
 * HONE_E_FORMAT: a name is then there twice. HONE_E_NOMEM. */
hone_status hn_gguf_set_u32(hn_gguf *g, const char *key, uint32_t v, hone_error *err);
hone_status hn_gguf_set_f32(hn_gguf *g, const char *key, float v, hone_error *err);
hone_status hn_gguf_set_bool(hn_gguf *g, const char *key, bool v, hone_error *err);
hone_status hn_gguf_set_str(hn_gguf *g, const char *key, const char *s, hone_error *err);
hone_status hn_gguf_set_array(hn_gguf *g, const char *key, hone_kv_type elem, const void *data, uint64_t count,
                              hone_error *err);                             /* fixed-size elements */
hone_status hn_gguf_drop_key(hn_gguf *g, const char *key, hone_error *err); /* absent: nothing */
/* Nothing happens where `from` is absent or `to` is there. */
hone_status hn_gguf_rename_key(hn_gguf *g, const char *from, const char *to, hone_error *err);
/* Every key that begins with `from` begins with `to`. */
hone_status hn_gguf_rename_keys(hn_gguf *g, const char *from, const char *to, hone_error *err);
/* The first count elements of an array, where it has more. */
hone_status hn_gguf_cut_array(hn_gguf *g, const char *key, uint64_t count, hone_error *err);
/* Every tensor called `from`, or so in any block ("blk.7.from"). */
hone_status hn_gguf_rename_tensors(hn_gguf *g, const char *from, const char *to, hone_error *err);
/* The first rows of a matrix, where it has more. */
hone_status hn_gguf_cut_rows(hn_gguf *g, const char *name, uint64_t rows, hone_error *err);
/* Tensor i as the file has it, whatever is said of it. */
const hn_gguf_tensor *hn_gguf_tensor_in_file(const hn_gguf *g, uint64_t i);
/* Likewise entries, in their own number and order: how entry i stands there, as hn_gguf_kv_raw; and the string of a
 * key, "" where it is absent or no string. */
uint64_t hn_gguf_n_kv_in_file(const hn_gguf *g);
hone_str hn_gguf_kv_in_file(const hn_gguf *g, uint64_t i, hone_kv *out);
hone_str hn_gguf_str_in_file(const hn_gguf *g, const char *key);

/* ---- writing ------------------------------------------------------------------------- */

/* Metadata and tensor descriptions first, then the data in the same order. The file
 * appears under its name whole or not at all (base/file.h); on any failure or free
 * before the end, PATH is untouched. After a failure of write_* the
 * writer can only be freed. Data is padded to general.alignment where that key is put
 * (as u32), else to 32. */
typedef struct hn_gguf_writer hn_gguf_writer;
hone_status hn_gguf_writer_new(hn_gguf_writer **out, hone_error *err);
void hn_gguf_writer_free(hn_gguf_writer *w);
/* HONE_E_ARG: bad or duplicate key or name, value beyond the limits above, called
 * after write_begin. Keys are written in the order added. */
hone_status hn_gguf_put_u32(hn_gguf_writer *w, const char *key, uint32_t v, hone_error *err);
hone_status hn_gguf_put_i32(hn_gguf_writer *w, const char *key, int32_t v, hone_error *err);
hone_status hn_gguf_put_u64(hn_gguf_writer *w, const char *key, uint64_t v, hone_error *err);
hone_status hn_gguf_put_f32(hn_gguf_writer *w, const char *key, float v, hone_error *err);
hone_status hn_gguf_put_bool(hn_gguf_writer *w, const char *key, bool v, hone_error *err);
hone_status hn_gguf_put_str(hn_gguf_writer *w, const char *key, const char *s, size_t len, hone_error *err);
hone_status hn_gguf_put_array(hn_gguf_writer *w, const char *key, hone_kv_type elem, const void *data, uint64_t count,
                              hone_error *err); /* fixed-size elements */
hone_status hn_gguf_put_str_array(hn_gguf_writer *w, const char *key, const hone_str *s, uint64_t count,
                                  hone_error *err);
hone_status hn_gguf_put_tensor(hn_gguf_writer *w, const char *name, hn_type type, const uint64_t *ne, int n_dim,
                               hone_error *err);
/* Copies every entry of g, as it is said, byte for byte, except split.* and those whose key is in
 * `except` (NULL-ended, may be NULL). A key put before is a duplicate: name it in `except`. */
hone_status hn_gguf_put_all(hn_gguf_writer *w, const hn_gguf *g, const char *const *except, hone_error *err);
/* The same of what the file has, whatever is said of it, except for keys that begin so, too (NULL: none). */
hone_status hn_gguf_put_filed(hn_gguf_writer *w, const hn_gguf *g, const char *const *except, const char *beginning,
                              hone_error *err);
/* The metadata put so far as a file of no tensors, in memory: *out is the caller's to free. */
hone_status hn_gguf_write_keys(const hn_gguf_writer *w, void **out, size_t *n, hone_error *err);
/* Opens the temporary file and writes header, metadata, descriptors. Fails early
 * (HONE_E_IO) when the file system has less room than the whole file needs. */
hone_status hn_gguf_write_begin(hn_gguf_writer *w, const char *path, hone_error *err);
/* Appends data of the current tensor; padding between tensors is the writer's business. */
hone_status hn_gguf_write_data(hn_gguf_writer *w, const void *data, uint64_t n_bytes, hone_error *err);
hone_status hn_gguf_write_end(hn_gguf_writer *w, hone_error *err); /* all data given? pad, fsync, rename */
uint64_t hn_gguf_write_size(const hn_gguf_writer *w);              /* bytes of the finished file */

/* ---- within this room ------------------------------------------------------------------ */

/* NULL if fit to be a metadata key, else what is wrong with it. */
const char *hn_gguf_key_fault(const char *s, size_t len);
/* The same for tensor names of at most max bytes. */
const char *hn_gguf_name_fault(const char *s, size_t len, size_t max);
/* SipHash-2-4 (Aumasson and Bernstein 2012). */
uint64_t hn_siphash(const uint64_t key[2], const void *p, size_t n);

/* A set of records found by name. Records are an array of structs that begin with
 * their hone_str; the index stores positions only. Seeded, so that a file cannot be
 * built to make its names collide. Zero-initialize; free with hn_index_free. */
typedef struct hn_index {
    uint32_t *slot; /* 1 + position; 0: empty */
    uint64_t n_slot, n;
    uint64_t key[2];
} hn_index;
/* Adds record i. *dup: an earlier record of the same name (then nothing is added), or
 * -1. False: out of memory. */
bool hn_index_add(hn_index *ix, const void *base, size_t stride, uint32_t i, int64_t *dup);
int64_t hn_index_find(const hn_index *ix, const void *base, size_t stride, const char *s, size_t len);
void hn_index_free(hn_index *ix);

#endif
