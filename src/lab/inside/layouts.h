/* layouts: how fast packed rows are beside plain ones on this machine, which decides what is read of a packed file. */
#ifndef HN_LAYOUTS_H
#define HN_LAYOUTS_H

#include "base/base.h"
#include "base/json_text.h"

/* Three looks at every type and width, in seconds; keep: for every start of this build from now on. *out: [{"type",
 * "n_in": a row's elements, "speed": packed over plain at
 * [1 column on one thread, 4 on one, 1 on all, 4 on all], "read": "packed|plain"}]. *kept: all. */
hone_status hn_layouts_measure(json_t **out, const char *cpu, bool keep, bool *kept, hone_error *err);

#endif
