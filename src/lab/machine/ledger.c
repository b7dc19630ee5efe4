/* The memory ledger. Sources, none of them the one it is held against:
 *   mapped files, program, main stack    /proc/self/smaps
 *   cache, scratch, logits, stacks       the session, page by page
 *   metadata, vocabulary, other heap     what malloc has given out, before and after
 *   kept heap                            the heap's pages beyond what is given out
 * and the peak: VmHWM of /proc/self/status. What is in no part is the difference, shown. */
#include "lab/machine/ledger.h"

#include "base/os.h"
#include "lab/machine/memory.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <sys/stat.h>

enum {
    PART_WEIGHTS = 0,
    PART_PACKED,
    PART_CACHE,
    PART_STATE,
    PART_SCRATCH,
    PART_LOGITS,
    PART_METADATA,
    PART_VOCABULARY,
    PART_HEAP,
    PART_KEPT,
    PART_STACKS,
    PART_PROGRAM,
    PARTS
};
_Static_assert((int)PARTS <= (int)HN_LEDGER_PARTS, "ledger");

static const struct {
    const char *name, *how;
} parts[PARTS] = {
    [PART_WEIGHTS] = { "weights", "pages of the model file mapped here" },
    [PART_PACKED] = { "packed_weights", "pages of the packed file mapped here" },
    [PART_CACHE] = { "kv_cache", "its pages in memory" },
    [PART_STATE] = { "state", "recurrent states and the copies to go back to, their pages in memory" },
    [PART_SCRATCH] = { "scratch", "activations and working memory, their pages in memory" },
    [PART_LOGITS] = { "logits", "the session's, their pages in memory" },
    [PART_METADATA] = { "metadata", "what malloc gave out while the model was opened" },
    [PART_VOCABULARY] = { "vocabulary", "what malloc gave out while the tokenizer was built" },
    [PART_HEAP] = { "other_heap", "all else that malloc has given out" },
    [PART_KEPT] = { "kept_heap", "pages of the heap beyond what is given out" },
    [PART_STACKS] = { "stacks", "of the program and of its threads, their pages in memory" },
    [PART_PROGRAM] = { "program", "pages of the program and its libraries" },
};

static void look(hn_ledger *l, int i)
{
    hn_os_heap h;
    l->have_heap = hn_os_heap_read(&h);
    l->heap[i] = h.in_use;
}
void hn_ledger_start(hn_ledger *l)
{
    *l = (hn_ledger){ 0 };
    look(l, 0);
}
void hn_ledger_model(hn_ledger *l) { look(l, 1); }
void hn_ledger_vocabulary(hn_ledger *l) { look(l, 2); }

/* ---- mappings ------------------------------------------------------------------------------- */

typedef struct pages {
    uint64_t resident, mapped;
} pages;
typedef struct maps {
    pages model, packed, program, heap, stack;
} maps;

/* smaps has whole paths without links; the caller's may be any. */
static bool same_file(const char *name, const char *path)
{
    struct stat a, b;
    return path && name[0] == '/' && stat(name, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Which sum a mapping belongs to; NULL: anonymous memory, asked for elsewhere. */
static pages *sum_of(maps *m, const char *name, const char *path, const char *packed)
{
    if (same_file(name, path)) return &m->model;
    if (same_file(name, packed)) return &m->packed;
    if (strcmp(name, "[heap]") == 0) return &m->heap;
    if (strcmp(name, "[stack]") == 0) return &m->stack;
    return name[0] == '/' ? &m->program : NULL;
}

static bool read_maps(maps *m, const char *path, const char *packed)
{
    *m = (maps){ 0 };
    FILE *f = fopen("/proc/self/smaps", "re");
    if (!f) return false;
    char line[4600];
    pages *sum = NULL;
    while (fgets(line, sizeof line, f)) {
        unsigned long long lo, hi, kib;
        int at = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %n", &lo, &hi, &at) == 2 && at > 0) {
            sum = sum_of(m, line + at, path, packed);
            if (sum) sum->mapped += hi - lo;
        } else if (sum && sscanf(line, "Rss: %llu kB", &kib) == 1) {
            sum->resident += kib * 1024;
        }
    }
    fclose(f);
    return true;
}

/* ---- the end --------------------------------------------------------------------------------------- */

static void put(hn_ledger *l, int i, uint64_t reserved, double resident)
{
    l->part[l->n++] = (hn_ledger_part){ parts[i].name, parts[i].how, reserved, resident };
    if (isnan(resident)) l->n_unknown++;
    else l->sum += resident;
}

static double there(hone_memory_use u) { return u.resident < 0 ? NAN : (double)u.resident; }

static double grown(const hn_ledger *l, uint64_t a, uint64_t b)
{
    return !l->have_heap ? NAN : b > a ? (double)(b - a) : 0;
}

hone_status hn_ledger_end(hn_ledger *l, const hone_session *s, const hone_model_info *info, const char *path,
                          hone_error *err)
{
    hn_os_heap h;
    hone_memory u;
    maps m;
    l->n = 0;
    hn_os_heap_read(&h);
    hone_session_memory_use(s, &u);
    if (!read_maps(&m, path, info->packed_path) || !hn_memory_read(&l->seen, 0))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "this system does not tell where the memory of a process is");
    put(l, PART_WEIGHTS, m.model.mapped, (double)m.model.resident);
    put(l, PART_PACKED, m.packed.mapped, (double)m.packed.resident);
    put(l, info->recurrent ? PART_STATE : PART_CACHE, u.cache.reserved, there(u.cache));
    put(l, PART_SCRATCH, u.scratch.reserved, there(u.scratch));
    put(l, PART_LOGITS, u.logits.reserved, there(u.logits));
    put(l, PART_METADATA, 0, grown(l, l->heap[0], l->heap[1]));
    put(l, PART_VOCABULARY, 0, grown(l, l->heap[1], l->heap[2]));
    uint64_t named = l->heap[2] > l->heap[0] ? l->heap[2] - l->heap[0] : 0, main_heap = h.in_use - h.mapped;
    put(l, PART_HEAP, 0, grown(l, named, h.in_use));
    put(l, PART_KEPT, 0, l->have_heap ? grown(l, main_heap, m.heap.resident) : NAN);
    put(l, PART_STACKS, u.stacks.reserved + m.stack.mapped, there(u.stacks) + (double)m.stack.resident);
    put(l, PART_PROGRAM, m.program.mapped, (double)m.program.resident);
    return HONE_OK;
}

double hn_ledger_rest(const hn_ledger *l)
{
    return l->seen.hwm ? ((double)l->seen.hwm - l->sum) / (double)l->seen.hwm : NAN;
}

json_t *hn_ledger_json(const hn_ledger *l)
{
    json_t *o = json_object(), *list = json_array();
    double rest = hn_ledger_rest(l);
    for (int i = 0; i < l->n; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:o, s:o}", "part", l->part[i].name, "how", l->part[i].how, "mb",
                            hn_lab_num(l->part[i].resident / 1e6), "reserved_mb",
                            l->part[i].reserved ? hn_lab_num((double)l->part[i].reserved / 1e6) : json_null(), "pct",
                            hn_lab_num(100 * l->part[i].resident / (double)l->seen.hwm)));
    json_object_set_new(o, "parts", list);
    json_object_set_new(o, "sum_mb", hn_lab_num(l->sum / 1e6));
    json_object_set_new(o, "peak_mb", hn_lab_num((double)l->seen.hwm / 1e6));
    json_object_set_new(o, "anon_mb", hn_lab_num((double)l->seen.anon / 1e6));
    json_object_set_new(o, "file_mb", hn_lab_num((double)l->seen.file / 1e6));
    json_object_set_new(o, "rest_mb", hn_lab_num(((double)l->seen.hwm - l->sum) / 1e6));
    json_object_set_new(o, "rest_pct", hn_lab_num(100 * rest));
    json_object_set_new(o, "unknown_parts", json_integer(l->n_unknown));
    json_object_set_new(o, "rest_ok", l->n_unknown ? json_null() : json_boolean(fabs(rest) <= HN_LEDGER_MAX_REST));
    return o;
}
