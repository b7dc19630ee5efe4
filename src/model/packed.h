/* packed: a model's side file of packed weights, within this room: found and proven (packed_find.c), made and
 * compared (pack_model.c), and where it is faster than the model itself (packed_choice.c). */
#ifndef HN_PACKED_H
#define HN_PACKED_H

#include "model/model.h"

typedef struct hn_packed_found {
    hn_packed *file;          /* READY and TOUCHED */
    const hn_gguf_tensor **t; /* [file->n] the tensor of each entry */
    hone_packed_state state;
    char why[600]; /* UNUSABLE; TOUCHED: "", or why it cannot be told whether it is more */
} hn_packed_found;

/* MODEL.hpack; of a split set, that of its first file. Malloc'ed; NULL: no memory. */
char *hn_packed_default_path(const hn_gguf *g);
/* SHA-256 of names, types and shapes of all tensors. */
void hn_packed_shapes(const hn_gguf *g, unsigned char out[HN_PACKED_HASH]);
/* Opens the file and says whether it is of this model, as far as that is known without reading weights: READY is
 * proven, TOUCHED is to be proven. Fails only for want of memory. */
hone_status hn_packed_look(hn_packed_found *f, const hn_gguf *g, const char *path, hone_error *err);
/* TOUCHED becomes READY, or UNUSABLE with the reason: all of the model is hashed and all of the packed file, each only
 * if nothing is kept of it. *kept: the next start need not do it again. Fails for want of memory, when a file
 * is changed meanwhile, or when interrupted. */
hone_status hn_packed_prove(hn_packed_found *f, const hn_gguf *g, const hone_progress *pr, bool *kept, hone_error *err);
void hn_packed_drop(hn_packed_found *f);

/* ---- what is read of it ------------------------------------------------------------------------ */

/* Speed of packed over plain rows, cold: 1 column and 4 on one thread, then on all. */
enum { HN_PACKED_POINTS = 4 };
typedef struct hn_packed_speed {
    float of[HN_PACKED_POINTS];
} hn_packed_speed;

/* Which is faster depends on how long rows are: of these, that which most bytes of a type are nearest to. */
enum { HN_PACKED_WIDTHS = 3 };
extern const int32_t hn_packed_widths[HN_PACKED_WIDTHS];

/* Of the types (with hn_can_pack) whose n_in is not 0, by rows of so many elements and a level's products, plain and
 * packed in turn, in about 0.1 s a type on all cores and 128 MiB at most; nothing is kept. HONE_E_NOMEM;
 * HONE_E_NUMERIC: no times. */
hone_status hn_packed_measure(hn_packed_speed out[HN_TYPE_COUNT], const int32_t n_in[HN_TYPE_COUNT], hn_cpu_level level,
                              hone_error *err);

/* Three looks at all types that the level has packed products for, their medians. there [type] is filled in. */
hone_status hn_packed_measure_all(hn_packed_speed out[HN_TYPE_COUNT], bool there[HN_TYPE_COUNT], int32_t n_in,
                                  hn_cpu_level level, hone_error *err);
/* Plain over packed time, of each what a quarter of the n products stay below: what else runs here only adds to them.
 * Both are sorted. */
float hn_packed_ratio(float *plain_us, float *packed_us, int n);
/* Keeps it for every start on this machine with this build. False: there is nowhere to keep it. */
bool hn_packed_keep(const hn_packed_speed *v, hn_type t, int32_t n_in, hn_cpu_level level);
/* Of one answer at a time: the least of both numbers of threads, of a column alone and of a column with the few columns
 * that a prompt ends in. */
float hn_packed_of_one(const hn_packed_speed *v);
/* On all threads, of one column and of several alike. */
float hn_packed_of_several(const hn_packed_speed *v);
/* Slower by less cannot be told from noise in so short a look: packed is read from here on. */
#define HN_PACKED_AS_FAST 0.97f

/* Types of a file's matrices. A type is plain where packed is slower, for one answer at a time or for several, by
 * more than the noise. */
typedef struct hn_packed_choice {
    bool there[HN_TYPE_COUNT], plain[HN_TYPE_COUNT];
    float speed[HN_TYPE_COUNT]; /* of the points; 0: not measured */
    bool several;               /* speed is hn_packed_of_several, else hn_packed_of_one */
    int n_plain, n_packed, n_measured;
    const char *level; /* of contexts that name none: HONE_CPU, else the best */
} hn_packed_choice;

/* From what is kept; measure: what is not is measured and kept, where the file is large enough to be worth it. A small
 * file is packed without one, a large one whose measurement cannot be kept only at AVX-512. */
void hn_packed_choose(hn_packed_choice *out, const hn_packed *file, bool several, bool measure);
/* "speed packed / plain here at avx2, …: Q4_K 1.10 Q6_K 1.31"; where both are, "mixed: Q4_K packed, Q5_0 plain; "
 * stands before it. "": there is nothing to say. */
void hn_packed_choice_words(char *dst, size_t cap, const hn_packed_choice *c);

#endif
