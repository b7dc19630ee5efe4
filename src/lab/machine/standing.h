/* standing: what the system lets this process do: on which CPUs, how soon, how much. Whom it starts has the same to
 * begin with, and may change it for those that are started next. Refuses to know who did. */
#ifndef HN_STANDING_H
#define HN_STANDING_H

#include "base/base.h"

enum { HN_STANDING_CPUS = 1024, HN_STANDING_FILES = 8 };
typedef struct hn_standing {
    int32_t cpu[HN_STANDING_CPUS], n_cpu, priority;
    uint64_t file[HN_STANDING_FILES]; /* of what the system's files say */
} hn_standing;
void hn_standing_look(hn_standing *out);
/* What of it is another now than it was then, in words ("the CPUs that its parent may run on"); NULL: nothing. */
const char *hn_standing_changed(const hn_standing *then);

#endif
