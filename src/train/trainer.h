/* trainer: the loop's state, shared by the loop (trainer.c), its checkpoints and what it
 * writes. Knows gradients, data and the optimizer; refuses to know formulas. */
#ifndef HN_TRAINER_H
#define HN_TRAINER_H

#include "engine/engine.h"
#include "model/lora.h"
#include "train/data.h"
#include "train/schedule.h"

/* All that changes from step to step besides the arrays. 8-byte fields: checkpoints hold it as it is. */
typedef struct hn_train_state {
    int64_t step, n_applied, n_skipped, n_bad_row; /* n_applied: the optimizer's t; n_bad_row: skipped ones in a row */
    int64_t n_micro;                               /* micro-batches so far; the next one's dropout key */
    hn_cursor cursor;
    int64_t n_tok, n_target;
    int64_t best_step, n_since_best;
    double best_val, val_loss;
    double first_loss, last_loss, smooth_loss;
    int64_t done, stopped_early; /* 0 or 1; in files `done` has a second bit, eval_due */
} hn_train_state;
_Static_assert(sizeof(hn_train_state) == 18 * 8, "files hold it");

typedef struct hn_train_range {
    int32_t array;
    int64_t begin, end;
} hn_train_range;

struct hone_trainer {
    hone_context *ctx;
    const hone_model *m;
    hone_train_params p; /* texts in it are not ours: not used after hone_trainer_new */
    uint32_t targets;
    char *chat_template;     /* Jinja source that was asked for; NULL: the model has its own */
    hn_dataset *train, *val; /* val NULL: none */
    hn_loader *loader, *val_loader;
    hn_grad *grad; /* NULL: plan only */
    hn_adam adam;
    hn_schedule schedule;
    int64_t micro_total; /* with epochs; 0: by steps */
    uint64_t n_float;    /* of all arrays */
    int32_t n_array;
    float **mom, **var, **best; /* [n_array]; best NULL: not kept */
    float *pages;               /* behind them */
    uint64_t n_pages;           /* bytes */
    hn_train_range *range;      /* the arrays in pieces, for the pool */
    int64_t n_range;
    bool has_best;
    bool eval_due; /* the validation behind the last step was interrupted */
    hn_train_state st;
    hone_train_info info;
    hn_step_look look; /* at what is done outside of gradients */
    char *settings;
    char **file; /* [n_file] what was read: the data, that to validate with */
    int32_t n_file;
};

/* HN_TGT_… of "qv", "attn,down" and their kin; HONE_E_ARG: a word that is none. */
hone_status hn_targets_parse(uint32_t *bits, const char *s, hone_error *err);
const char *hn_targets_word(size_t i); /* the words for it, those of one kind first; NULL behind the last */
/* Whether the model could be written as its type says, before anything is trained. */
hone_status hn_trainer_check_type(hone_trainer *t, hone_error *err);
/* HONE_E_ARG where `path` (peft: a folder) is one of the files that the trainer was made from. */
hone_status hn_trainer_apart(const hone_trainer *t, const char *path, bool peft, hone_error *err);
/* fn is told of each operation of the steps to come, when it is done; NULL: off. The results are the same. t is no
 * plan. */
void hn_trainer_set_look(hone_trainer *t, hn_look_fn *fn, void *arg);
/* The best validation's weights in place of the present ones while something is written, and back. */
void hn_trainer_swap_best(hone_trainer *t);

#endif
