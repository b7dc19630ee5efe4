/* torch_pickle: what a state dict saved by torch says of its tensors, read from its pickle as data. A pickle is a
 * program: of its instructions those that torch writes for tensors in dictionaries are known, and none of them calls
 * anything. Owns the machine and its limits; refuses to know files. */
#ifndef HN_TORCH_PICKLE_H
#define HN_TORCH_PICKLE_H

#include "model/ckpt.h"

typedef struct hn_torch_tensor {
    hone_str name, key; /* of the tensor, of the member with its storage; in the pickle */
    hn_type type;
    hn_ckpt_raw raw;
    uint64_t n_stored, first; /* elements of the storage, and where the tensor begins in it */
    int32_t n_dim;
    uint64_t ne[HN_CKPT_MAX_DIM], stride[HN_CKPT_MAX_DIM]; /* fastest first, as hn_ckpt_tensor has them */
} hn_torch_tensor;

/* The tensors of the dictionary that the pickle p[n] makes, in its order; name as in messages. *out: free() it. */
hone_status hn_torch_pickle(hn_torch_tensor **out, size_t *n_out, const unsigned char *p, size_t n, const char *name,
                            hone_error *err);

#endif
