/* target: what a guide wishes of an entry, or somebody requires of a result, held against what was measured. */
#ifndef HN_TARGET_H
#define HN_TARGET_H

#include "base/base.h"
#include "base/json_text.h"

typedef enum hn_wish { HN_WISH_NONE = 0, HN_WISH_MET, HN_WISH_NOT_MET, HN_WISH_OPEN } hn_wish;
const char *hn_wish_word(hn_wish w); /* "" "met" "not met" "open" */

/* The target of a record ("< 5 us a word", "anon < 2 MB, metadata < 1 MB, tensors 0") against its statistics: met or
 * not when the interval of its median lies on one side, or, of fewer than six samples, all of them do; else open. NONE:
 * no target, or one with conditions ("at width 5120"), which a program cannot judge. */
hn_wish hn_target_judge(json_t *record);

/* "decode_tok_s>=44": a name, one of >= <= > < and a number. */
typedef struct hn_requirement {
    char name[80], op[3];
    double limit;
} hn_requirement;
hone_status hn_requirement_parse(hn_requirement *out, const char *text, hone_error *err);
/* NaN is never met. */
bool hn_requirement_met(const hn_requirement *r, double value);

#endif
