/* What sequences of a model take, for hone inspect: before anything is loaded. */
#include "cli/inspect_memory.h"

#include <inttypes.h>
#include <stdlib.h>

enum { USUAL = 4096 };

hone_status hn_inspect_memory(hn_inspect_costs *out, const char *path, int32_t n_ctx, const char *cache,
                              hone_error *err)
{
    hone_model *m;
    hone_model_info info;
    *out = (hn_inspect_costs){ .cache = cache };
    const hone_model_params plain = { .packed = "off" }; /* which changes nothing of this, and takes time to prove */
    hone_status st = hone_model_open(&m, path, &plain, err);
    if (st != HONE_OK) return st;
    hone_model_get_info(m, &info);
    if (n_ctx) out->n_pos[out->n++] = n_ctx;
    else if (info.n_ctx_train > USUAL) out->n_pos[out->n++] = USUAL;
    if (!n_ctx) out->n_pos[out->n++] = info.n_ctx_train;
    for (size_t i = 0; i < out->n && st == HONE_OK; i++)
        st = hone_model_sequence_cost(m, out->n_pos[i], hn_cache_of(cache), &out->cost[i], err);
    hone_model_close(m);
    return st;
}

static void print_size(uint64_t bytes)
{
    double x = (double)bytes;
    if (bytes < 1 << 20) hn_out_printf("%.1f KiB", x / 0x1p10);
    else if (bytes < (uint64_t)1 << 30) hn_out_printf("%.1f MiB", x / 0x1p20);
    else hn_out_printf("%.2f GiB", x / 0x1p30);
}

/* "12 layers that see all, 24576 bytes a position": those that there are. */
static void print_layers(const hone_sequence_cost *c, const char *cache)
{
    const char *gap = "";
    hn_out_printf("%-16s ", "");
    if (c->n_full) {
        hn_out_printf("%" PRId32 " layer%s see%s all%s, %" PRIu64 " bytes a position (%s)", c->n_full,
                      c->n_full == 1 ? "" : "s", c->n_full == 1 ? "s" : "",
                      c->n_latent == c->n_full ? " by latent rows" : "", c->position_bytes, cache);
        gap = "; ";
    }
    if (c->n_window) {
        hn_out_printf("%s%" PRId32 " with a window, ", gap, c->n_window);
        print_size(c->window_bytes);
        gap = "; ";
    }
    if (c->n_state) {
        hn_out_printf("%s%" PRId32 " recur%s, ", gap, c->n_state, c->n_state == 1 ? "s" : "");
        print_size(c->state_bytes);
    }
    hn_out_printf("\n");
}

void hn_inspect_print_memory(const hn_inspect_costs *c)
{
    for (size_t i = 0; i < c->n; i++) {
        hn_out_printf("%-16s ", i ? "" : "a sequence takes");
        print_size(c->cost[i].bytes);
        hn_out_printf(" at %" PRId32 " position%s\n", c->n_pos[i], c->n_pos[i] == 1 ? "" : "s");
    }
    if (c->n) print_layers(&c->cost[c->n - 1], c->cache);
}

json_t *hn_inspect_json_memory(const hn_inspect_costs *c)
{
    json_t *a = json_array();
    for (size_t i = 0; i < c->n; i++) {
        const hone_sequence_cost *k = &c->cost[i];
        json_array_append_new(a, json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i}", "positions",
                                           (int)c->n_pos[i], "cache", c->cache, "bytes", (json_int_t)k->bytes,
                                           "window_bytes", (json_int_t)k->window_bytes, "state_bytes",
                                           (json_int_t)k->state_bytes, "position_bytes", (json_int_t)k->position_bytes,
                                           "layers_full", (int)k->n_full, "layers_latent", (int)k->n_latent,
                                           "layers_window", (int)k->n_window, "layers_state", (int)k->n_state));
    }
    return a;
}
