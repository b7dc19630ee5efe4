/* inspect_memory: what sequences of a model take; of hone inspect alone. */
#ifndef HN_INSPECT_MEMORY_H
#define HN_INSPECT_MEMORY_H

#include "cli/cli.h"

typedef struct hn_inspect_costs {
    const char *cache;
    size_t n;
    int32_t n_pos[2];
    hone_sequence_cost cost[2];
} hn_inspect_costs;

/* Of n_ctx positions; 0: of 4096, if it was trained on more, and of as many as it was trained on. Fails where the file
 * is no model that hone runs. */
hone_status hn_inspect_memory(hn_inspect_costs *out, const char *path, int32_t n_ctx, const char *cache,
                              hone_error *err);
void hn_inspect_print_memory(const hn_inspect_costs *c);
json_t *hn_inspect_json_memory(const hn_inspect_costs *c);

#endif
