/* Loading a model step by step, and what each step takes of memory. Looks into model/ and
 * engine/, whose steps these are; refuses to know what asks. */
#define _GNU_SOURCE
#include "base/os.h"
#include "engine/engine.h"
#include "lab/bench/sample.h"
#include "lab/inside/bench_stages.h"
#include "lab/machine/clock.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

hone_status hn_stages_open(hone_model **out, hn_stages *t, const char *path, const hone_model_params *p,
                           void (*look)(void *, const char *), void *arg, hone_error *err)
{
    hn_gguf *file;
    *out = NULL;
    *t = (hn_stages){ .parse_ms = NAN, .config_ms = NAN, .begun_ns = hn_clock_ns() };
    hone_status st = hn_model_file_open(&file, path, err);
    if (st != HONE_OK) return st;
    uint64_t parsed = hn_clock_ns();
    t->parse_ms = (double)(parsed - t->begun_ns) * 1e-6;
    if (look) {
        look(arg, "parse");
        parsed = hn_clock_ns();
    }
    if ((st = hn_model_from_gguf(out, file, p, err)) != HONE_OK) return st;
    t->done_ns = hn_clock_ns();
    t->config_ms = (double)(t->done_ns - parsed) * 1e-6;
    if (look) look(arg, "config");
    return HONE_OK;
}

/* Bytes of the pages that begin in p[n] and are in this process's page tables; −1: unknown. */
static int64_t mapped_pages(int pagemap, const void *p, uint64_t n)
{
    enum { CHUNK = 512 };
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)p + page - 1) / page,
             last = ((uintptr_t)p + n + page - 1) / page, entry[CHUNK];
    int64_t there = 0;
    while (first < last) {
        uint64_t k = last - first < CHUNK ? last - first : CHUNK;
        if (pread(pagemap, entry, k * sizeof *entry, (off_t)(first * sizeof *entry)) != (ssize_t)(k * sizeof *entry))
            return -1;
        for (uint64_t i = 0; i < k; i++) there += (int64_t)(entry[i] >> 63);
        first += k;
    }
    return there * (int64_t)page;
}

/* Bytes of weights that this process has touched, or the kernel mapped around what it touched. */
static int64_t tensors_mapped(const hone_model *m)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int64_t sum = 0;
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file) && sum >= 0; i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        const hn_packed_entry *e = m->packed_of ? m->packed_of[i] : NULL;
        int64_t a = mapped_pages(fd, t->data, t->n_bytes), b = e ? mapped_pages(fd, e->data, e->n_bytes) : 0;
        sum = a < 0 || b < 0 ? -1 : sum + a + b;
    }
    close(fd);
    return sum;
}

void hn_look_at(hn_look *out, const hone_model *m, const hone_session *s)
{
    *out = (hn_look){ .tensors = -1, .cache = -1, .state = -1 };
    FILE *f = fopen("/proc/self/smaps_rollup", "re"); /* walks the page tables: exact, unlike the counters of status */
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long kib;
        if (sscanf(line, "Rss: %llu kB", &kib) == 1) out->rss = (int64_t)kib * 1024;
        else if (sscanf(line, "Pss: %llu kB", &kib) == 1) out->pss = (int64_t)kib * 1024;
        else if (sscanf(line, "Anonymous: %llu kB", &kib) == 1) out->anon = (int64_t)kib * 1024;
    }
    if (f) fclose(f);
    if (m) out->tensors = tensors_mapped(m);
    if (!s) return;
    hone_memory u;
    hone_session_memory_use(s, &u);
    *(hn_is_recurrent(s) ? &out->state : &out->cache) = u.cache.resident;
}

json_t *hn_look_json(const char *stage, const hn_look *l)
{
    const struct {
        const char *key;
        int64_t v;
    } all[] = { { "anon_mb", l->anon ? l->anon : -1 },
                { "rss_mb", l->rss ? l->rss : -1 },
                { "pss_mb", l->pss ? l->pss : -1 },
                { "tensors_mb", l->tensors },
                { "kv_mb", l->cache },
                { "state_mb", l->state } };
    json_t *o = json_object();
    json_object_set_new(o, "stage", json_string(stage));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        json_object_set_new(o, all[i].key, all[i].v >= 0 ? hn_lab_num((double)all[i].v / 1e6) : json_null());
    return o;
}
