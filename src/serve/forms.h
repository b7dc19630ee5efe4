/* forms: schemas and grammars that requests ask for, compiled. Agents send the same ones again and again: the last few
 * are kept, with the masks that were computed for them. Any thread. Refuses to know requests. */
#ifndef HN_FORMS_H
#define HN_FORMS_H

#include "hone.h"

typedef struct hn_forms hn_forms;
hn_forms *hn_forms_new(void);    /* NULL: out of memory */
void hn_forms_free(hn_forms *f); /* when all are given back; NULL allowed */

/* As hone_grammar_compile says; *out is another's too, and goes back by hn_forms_give. */
hone_status hn_forms_take(hn_forms *f, const hone_grammar_params *p, hone_grammar **out, hone_error *err);
void hn_forms_give(hn_forms *f, hone_grammar *g); /* NULL allowed */

#endif
