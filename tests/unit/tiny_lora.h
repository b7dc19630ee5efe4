/* Adapters of the matrices of a tiny model, written to GGUF files. */
#ifndef HN_TINY_LORA_H
#define HN_TINY_LORA_H

#include "model/lora.h"
#include "tiny_model.h"

typedef struct lora {
    hn_lora_pair pair[48];
    int n;
    char path[160];
} lora;

/* RWKV: time_mix_first is no product, and layer 0 of RWKV-7 has no use for v1 and v2. */
static inline bool is_matrix(const tm_tensor *t)
{
    static const char *const none[] = { "token_embd.weight", "blk.0.time_mix_v1.weight", "blk.0.time_mix_v2.weight" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (!strcmp(t->name, none[i])) return false;
    return t->n_dim == 2 && !strstr(t->name, "time_mix_first");
}

/* Pairs for the matrices of m whose names hold `what`; numbers by key; written to a file. */
static inline void lora_make(lora *l, const tiny *m, const char *what, const char *key, int64_t rank, float scale,
                             float size)
{
    static int k;
    hone_error err = { 0 };
    *l = (lora){ 0 };
    for (int i = 0; i < m->n_t; i++) {
        const tm_tensor *t = &m->t[i];
        char name[96];
        if (!is_matrix(t) || !strstr(t->name, what)) continue;
        assert_true(l->n < 48);
        hn_lora_pair *p = &l->pair[l->n++];
        *p = (hn_lora_pair){
            .name = strdup(t->name), .n_in = (int64_t)t->ne[0], .n_out = (int64_t)t->ne[1], .rank = rank, .scale = scale
        };
        p->a = malloc((size_t)(p->n_in * rank) * sizeof(float));
        p->b = malloc((size_t)(p->n_out * rank) * sizeof(float));
        assert_true(p->name && p->a && p->b);
        snprintf(name, sizeof name, "%s %s a", key, t->name);
        for (int64_t j = 0; j < p->n_in * rank; j++) p->a[j] = (float)(0.3 * tm_u(name, (uint64_t)j));
        snprintf(name, sizeof name, "%s %s b", key, t->name);
        for (int64_t j = 0; j < p->n_out * rank; j++) p->b[j] = (float)(size * tm_u(name, (uint64_t)j));
    }
    if (!l->n) return; /* a file without any is refused */
    char file[32];
    snprintf(file, sizeof file, "lora%d.gguf", k++);
    snprintf(l->path, sizeof l->path, "%s", tm_path(file));
    hn_lora_about about = { .arch = m->s.arch, .alpha = scale * (float)rank, .type = HN_F32 };
    if (hn_lora_write_gguf(l->path, l->pair, l->n, &about, &err)) fail_msg("%s", err.message);
}
static inline void lora_free(lora *l)
{
    for (int i = 0; i < l->n; i++) free(l->pair[i].name), free(l->pair[i].a), free(l->pair[i].b);
}

static inline hone_adapter *open_adapter(const hone_model *m, const char *path)
{
    hone_error err = { 0 };
    hone_adapter *a;
    if (hone_adapter_open(&a, m, path, &err)) fail_msg("%s", err.message);
    return a;
}

#endif
