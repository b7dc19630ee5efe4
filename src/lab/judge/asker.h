/* asker: one plain run of a program that is asked from here, so that what a prompt and a generation took is what this
 * process's clock says, and a prompt is known to nobody before that clock runs. Knows processes and the words of
 * lab/bench/asked.h; refuses to know sides and rounds. */
#ifndef HN_ASKER_H
#define HN_ASKER_H

#include "base/base.h"
#include "base/json_text.h"
#include "lab/bench/process.h"

typedef struct hn_asker hn_asker; /* the tokens of a model that prompts are drawn from */
/* pre: as hone_model_params.tokenizer_pre; NULL allowed. The model is closed again. */
hone_status hn_asker_new(hn_asker **out, const char *model, const char *pre, hone_error *err);
void hn_asker_free(hn_asker *a);

typedef struct hn_ask_run {
    const char *const *argv, *const *env; /* as hn_process_params has them; argv ends with --n-prompt=… and the like */
    uint64_t question;                    /* which prompt: the same for everyone who is asked this one */
    bool (*stop)(void *);
} hn_ask_run;

typedef struct hn_heard {
    int32_t n_prompt, n_gen, depth; /* as its command line has them */
    double load_s, prompt_s, gen_s; /* until it was ready; to the first token; from there to the last. NaN: none */
    double prompt_cpu_s, all_cpu_s; /* CPU time of the prompt, and of both; NaN: unknown */
    double anon_mb;                 /* most memory of its own that was seen */
    int32_t n_children;             /* processes of its own that it was seen to have */
    json_t *told;                   /* its last line, or NULL */
    hn_process process;             /* how it ended */
    char invalid[400];              /* its words are no answer to what was asked; "" */
} hn_heard;
/* A process that fails is a result: HONE_OK, and no `told`. */
hone_status hn_asker_run(hn_heard *out, const hn_asker *a, const hn_ask_run *q, hone_error *err);
void hn_heard_free(hn_heard *h);

#endif
