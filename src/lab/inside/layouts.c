/* Layouts as a list. Refuses to know how they are measured and what is done with them (model/packed_choice.c). */
#include "lab/inside/layouts.h"
#include "lab/stats/stats.h"
#include "model/packed.h"

/* Rows of n_in elements. */
static hone_status add_width(json_t *out, int32_t n_in, hn_cpu_level level, bool keep, bool *kept, hone_error *err)
{
    hn_packed_speed v[HN_TYPE_COUNT];
    bool there[HN_TYPE_COUNT];
    hone_status st = hn_packed_measure_all(v, there, n_in, level, err);
    for (int t = 0; t < HN_TYPE_COUNT && st == HONE_OK; t++) {
        if (!there[t]) continue;
        json_t *speed = json_array();
        for (int i = 0; i < HN_PACKED_POINTS; i++)
            json_array_append_new(speed, hn_lab_num(0.001 * (double)(int)(1000 * v[t].of[i] + 0.5f)));
        const char *read = hn_packed_of_one(&v[t]) < HN_PACKED_AS_FAST ? "plain" : "packed";
        json_array_append_new(out, json_pack("{s:s, s:i, s:o, s:s}", "type", hn_type_get((uint32_t)t)->name, "n_in",
                                             (int)n_in, "speed", speed, "read", read));
        if (keep) *kept = hn_packed_keep(&v[t], (hn_type)t, n_in, level) && *kept;
    }
    return st;
}

hone_status hn_layouts_measure(json_t **out, const char *cpu, bool keep, bool *kept, hone_error *err)
{
    hn_cpu_level level;
    json_t *list = json_array();
    *out = NULL;
    *kept = keep;
    hone_status st = hn_cpu_choose(&level, cpu, err);
    for (int w = 0; w < HN_PACKED_WIDTHS && st == HONE_OK; w++)
        st = add_width(list, hn_packed_widths[w], level, keep, kept, err);
    if (st == HONE_OK) *out = list;
    else json_decref(list);
    return st;
}
