/* ledger: what the memory of a process that runs a model is for. Each part is measured on
 * its own; their sum is held against the peak that the kernel counted. */
#ifndef HN_LEDGER_H
#define HN_LEDGER_H

#include "base/base.h"
#include "lab/machine/memory.h"
#include "base/json_text.h"

#define HN_MEMORY_SCHEMA "hone.memory/1"
#define HN_LEDGER_MAX_REST 0.03   /* of the peak may be in no part */
#define HN_LEDGER_LEAST_REST 0.75 /* MB: so much may be, of a process however small, as what others load into it */
enum { HN_LEDGER_PARTS = 12 };

typedef struct hn_ledger_part {
    const char *name, *how; /* "weights"; "pages of the model file mapped here" */
    uint64_t reserved;      /* 0: not meant */
    double resident;        /* bytes; NaN: unknown */
} hn_ledger_part;

typedef struct hn_ledger {
    uint64_t heap[3]; /* in use: before the model, with it, with its vocabulary */
    bool have_heap;
    int n;
    hn_ledger_part part[HN_LEDGER_PARTS];
    double sum; /* of those known */
    int n_unknown;
    hn_memory seen; /* at the end; hwm is the peak */
} hn_ledger;

/* The three looks at the heap, to be taken in this order. */
void hn_ledger_start(hn_ledger *l);
void hn_ledger_model(hn_ledger *l);
void hn_ledger_vocabulary(hn_ledger *l);
/* After the work. info, path: of the model. HONE_E_UNSUPPORTED: this system has no /proc. */
hone_status hn_ledger_end(hn_ledger *l, const hone_session *s, const hone_model_info *info, const char *path,
                          hone_error *err);
double hn_ledger_rest(const hn_ledger *l); /* (peak - sum) / peak */
json_t *hn_ledger_json(const hn_ledger *l);

#endif
