/* recipe: a file of tensors from a list that says of each where its numbers come from. One loop makes the pieces in
 * parallel, encodes and checks them, and writes them in order; which thread does what changes nothing. Owns the loop,
 * its progress and its end when asked to stop; refuses to know what the tensors are for, and why they have their types
 * (typing.h). */
#ifndef HN_RECIPE_H
#define HN_RECIPE_H

#include "forge/typing.h"
#include "gguf/gguf.h"

/* ---- sources ------------------------------------------------------------------------------------ */

typedef struct hn_recipe_tensor hn_recipe_tensor;

/* Bytes [at, at + n_bytes) of a tensor as they will be in the file; whole units of it. */
typedef struct hn_recipe_piece {
    const hn_recipe_tensor *t;
    uint64_t at, n_bytes;
    uint64_t row, n_row; /* the same in units: rows of ne[0], where nothing else is said */
    void *out;           /* room for the bytes, 64-byte aligned */
    const void *data;    /* where the bytes are: `out`, unless `bytes` points it to memory that stays */
} hn_recipe_piece;

/* What is wrong with a number. */
typedef enum hn_recipe_fault {
    HN_FAULT_NAN,
    HN_FAULT_INFINITE,
    HN_FAULT_BEYOND, /* its type does not reach so far */
    HN_FAULT_BLOCK   /* it is in a block with numbers that its type does not hold */
} hn_recipe_fault;

/* How the numbers of a tensor come to be. `values` or `bytes` is set, the rest may be NULL; scratch: as much memory as
 * the recipe asks for, each thread's own. */
typedef struct hn_recipe_source {
    /* The numbers: x [n_row, ne0], which the recipe checks and encodes. Any thread. */
    hone_status (*values)(void *arg, const hn_recipe_piece *p, float *x, void *scratch, hone_error *err);
    /* The bytes, ready. Any thread. */
    hone_status (*bytes)(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err);
    /* Element i, which `values` gave, cannot be written: says so. Any thread. */
    hone_status (*fault)(void *arg, const hn_recipe_tensor *t, uint64_t i, hn_recipe_fault what, hone_error *err);
    /* Before the first and after the last piece, on the caller's thread. Nothing else is made between them, so memory
     * for one such tensor is enough. After a failure `close` is not called. */
    hone_status (*open)(void *arg, const hn_recipe_tensor *t, hone_error *err);
    void (*close)(void *arg, const hn_recipe_tensor *t);
} hn_recipe_source;

struct hn_recipe_tensor {
    hone_str name; /* borrowed */
    hn_type type;
    int32_t n_dim;
    uint64_t ne[4]; /* padded with 1 */
    const hn_recipe_source *source;
    const void *what;    /* for the source */
    uint64_t unit_bytes; /* pieces are cut between units; 0: a row */
    uint64_t n_bytes;    /* in the file; 0: as type and shape say */
};

/* ---- files -------------------------------------------------------------------------------------- */

typedef struct hn_recipe {
    const char *dst;
    const hn_recipe_tensor *t; /* [n] in the order of the file */
    size_t n;
    void *arg;               /* of all sources */
    size_t scratch_bytes;    /* for each thread */
    size_t piece_bytes;      /* about; 0: what is fast for whole models */
    int32_t n_threads;       /* 0: all cores */
    const hone_progress *pr; /* told in bytes of tensors; may be NULL */
    uint64_t done, total;    /* set: bytes of tensors written, and to be written */
} hn_recipe;

/* Where the pieces go: on one thread at a time, in the order of the file. */
typedef struct hn_recipe_sink {
    hone_status (*begin)(void *to, hone_error *err); /* once all is checked; NULL: nothing to do */
    /* The bytes p->data; NULL: nothing is kept, the sources looked at them. */
    hone_status (*put)(void *to, const hn_recipe_piece *p, hone_error *err);
    hone_status (*end)(void *to, hone_error *err); /* NULL: nothing to do */
} hn_recipe_sink;

/* Elements of the largest piece of a tensor of `values`, for the sources' scratch. */
uint64_t hn_recipe_piece_elems(const hn_recipe_tensor *t);
/* Makes all pieces and hands them to the sink. HONE_E_INTERRUPTED: asked to stop. Of several failures the first in the
 * order of the file is told. `end` is called after success only. */
hone_status hn_recipe_run(hn_recipe *r, const hn_recipe_sink *sink, void *to, hone_error *err);
/* The same into a GGUF file: announces the tensors to w, which has the metadata, and writes r->dst. Nothing is left
 * after a failure. */
hone_status hn_recipe_write(hn_recipe *r, hn_gguf_writer *w, hone_error *err);

/* Keys of a file's templates begin so: the usual one, others by name, their list. Who brings one replaces all. */
#define HN_TEMPLATE_KEYS "tokenizer.chat_template"

static inline bool hn_interrupted(const hone_progress *pr) { return pr && pr->abort_fn && pr->abort_fn(pr->arg); }

#endif
