/* The list of everything that can be measured, and how ids are named. Owns the order
 * and the rows of what this build lacks; refuses to measure. */
#define _GNU_SOURCE
#include "lab/bench/bench.h"

#include <fnmatch.h>

#define MOE \
    "rows of its own (a whole model with experts is measured by hone bench -m FILE, its parts by hone lab profile)"
#define TRELLIS "trellis (codebook) weights, which hone does not read yet"
#define RANKS "running one model on several processes"
#define GLM "a row of its own (hone bench e2e.gen and hone lab quality kl take any model: -m GLM-4.7-Flash.gguf)"
#define ADAPTERS "adapters to other engines"

#define ABSENT(id_, what_, unit_, method_, needs_)                                                \
    {                                                                                             \
        .id = id_, .what = what_, .unit = unit_, .method = method_, .suites = "", .needs = needs_ \
    }
const hn_bench_entry hn_bench_absent[] = {
    ABSENT("kern.trellis", "products and decoding of codebook types", "TOPS", 'K', TRELLIS),
    ABSENT("kern.fp4", "products of MXFP4 and NVFP4 in their own arithmetic", "GB/s", 'K',
           "a row of its own (hone bench kern.gemv.MXFP4.4096x4096 measures such products)"),
    ABSENT("moe.kernel", "one layer of experts", "us", 'O', MOE),
    ABSENT("moe.dispatch", "experts x tokens", "us", 'O', MOE),
    ABSENT("moe.multicase", "experts x tokens, many cases", "tok/s", 'O', MOE),
    ABSENT("moe.mixed.slow_path", "experts of mixed precision, one by one", "ms", 'O', MOE),
    ABSENT("moe.mixed.fast_uniform", "experts of one precision", "ms", 'O', MOE),
    ABSENT("moe.mixed.fast_mixed", "experts of mixed precision, grouped", "ms", 'O', MOE),
    ABSENT("moe.mixed.hybrid", "experts of mixed precision, some grouped", "ms", 'O', MOE),
    ABSENT("moe.mixed.max_bits_padded", "experts padded to the widest precision", "ms", 'O', MOE),
    ABSENT("e2e.scale.shard", "1, 2, 4 shards", "tok/s", 'P', RANKS),
    ABSENT("e2e.glm47.throughput", "GLM-4.7: tokens a second", "tok/s", 'P', GLM),
    ABSENT("e2e.glm47.trellis", "GLM-4.7 in codebook types", "tok/s", 'P', TRELLIS),
    ABSENT("e2e.glm47.quality", "GLM-4.7: divergence from the original", "nats", 'P', GLM),
    ABSENT("cmp.ENGINE", "the same model in llama.cpp, PyTorch, tinygrad, MLX", "tok/s", 'P', ADAPTERS),
    { 0 },
};

static const hn_bench_entry *const tables[] = {
    hn_bench_process, hn_bench_text,  hn_bench_tensor,   hn_bench_kernels,  hn_bench_attn,
    hn_bench_machine, hn_bench_layer, hn_bench_sampling, hn_bench_training, hn_bench_absent,
};
enum { N_TABLES = sizeof tables / sizeof *tables };

/* The order of the list; what belongs to no group comes last. */
static const char *const groups[] = { "load",   "tok", "tensor", "kern",    "disp",  "moe",   "mem", "layer",
                                      "sample", "e2e", "memory", "quality", "train", "serve", "cmp" };
enum { N_GROUPS = sizeof groups / sizeof *groups };

static size_t group_of(const char *id)
{
    size_t n = strcspn(id, ".");
    for (size_t g = 0; g < N_GROUPS; g++)
        if (strlen(groups[g]) == n && memcmp(groups[g], id, n) == 0) return g;
    return N_GROUPS;
}

const hn_bench_entry *hn_bench_at(size_t i)
{
    for (size_t g = 0; g <= N_GROUPS; g++)
        for (size_t t = 0; t < N_TABLES; t++)
            for (const hn_bench_entry *e = tables[t]; e->id; e++)
                if (group_of(e->id) == g && i-- == 0) return e;
    return NULL;
}

const hn_bench_entry *hn_bench_find(const char *id)
{
    const hn_bench_entry *e;
    for (size_t i = 0; (e = hn_bench_at(i)); i++)
        if (strcmp(e->id, id) == 0) return e;
    return NULL;
}

/* Is `word` one of the space separated words of `list` (NULL: none)? */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *w = list; w && *w; w += strspn(w, " ")) {
        size_t len = strcspn(w, " ");
        if (len == n && memcmp(w, word, n) == 0) return true;
        w += len;
    }
    return false;
}

const hn_bench_entry *hn_bench_plain(void)
{
    const hn_bench_entry *e;
    for (size_t i = 0; (e = hn_bench_at(i)) && !e->plain;) i++;
    return e;
}

bool hn_bench_uses(const hn_bench_entry *e, const char *option)
{
    if (listed(e->sets, option)) return false;
    return listed("threads cpu", option) || listed(e->uses, option) ||
           (e->model && listed("model pre packed", option)) || (e->method == 'P' && listed(HN_BENCH_SESSION, option));
}

/* Single kernels of any shape are no rows: they take these. */
static bool kernel_uses(const char *option) { return listed("threads cpu columns layout preset", option); }

bool hn_bench_id_uses(const char *id, const char *option)
{
    const hn_bench_entry *e = hn_bench_find(id);
    if (e) return hn_bench_uses(e, option);
    for (size_t i = 0; (e = hn_bench_at(i)); i++)
        if (!e->needs && hn_bench_matches(id, e->id) && hn_bench_uses(e, option)) return true;
    return (strncmp(id, "kern", 4) == 0 || strpbrk(id, "*?[")) && kernel_uses(option);
}

bool hn_bench_is_particular(const char *option)
{
    const hn_bench_entry *e;
    for (size_t i = 0; (e = hn_bench_at(i)); i++)
        if (hn_bench_uses(e, option)) return true;
    return kernel_uses(option);
}

bool hn_bench_takes(const char *id, const char *word)
{
    char name[64];
    if (strncmp(word, "--", 2) != 0) return true;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    return !hn_bench_is_particular(name) || hn_bench_id_uses(id, name);
}

bool hn_bench_in_suite(const hn_bench_entry *e, const char *suite) { return listed(e->suites, suite); }

bool hn_bench_matches(const char *pattern, const char *id)
{
    size_t n = strlen(pattern);
    if (strpbrk(pattern, "*?[")) return fnmatch(pattern, id, 0) == 0;
    return strncmp(id, pattern, n) == 0 && (id[n] == 0 || id[n] == '.');
}
