/* begin: what a training from nothing begins with: a vocabulary made from files of data, and by hone_init_model a model
 * of random values with it. */
#ifndef HN_BEGIN_H
#define HN_BEGIN_H

#include "text/bpe.h"

typedef struct hn_bpe_params {
    const char *const *path; /* as hn_dataset_read takes them; of records all strings that would be trained on */
    int32_t n_path;
    hn_bpe_rules rules;
    int64_t max_bad;             /* as of hn_data_params, */
    bool (*abort_fn)(void *arg); /* and so this */
    void *abort_arg;
} hn_bpe_params;

hone_status hn_bpe_train(hn_bpe **out, const hn_bpe_params *p, hone_error *err);

#endif
