/* lora: adapters in memory. Owns the rules that every file must keep: each half belongs
 * to a matrix of the model and fits it, no half is alone, all numbers are finite. Refuses
 * to know the files (lora_gguf.c, lora_peft.c) and how products are made. */
#include "model/lora.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

hone_status hn_lora_open(hn_lora **out, const hone_model *m, const char *path, hone_error *err)
{
    struct stat sb;
    hn_gguf *file;
    *out = NULL;
    if (!m->arch) return HN_FAIL(err, HONE_E_ARG, "%s: opened for its vocabulary only", m->path);
    if (stat(path, &sb) == 0 && S_ISDIR(sb.st_mode)) return hn_lora_read_peft(out, m, path, err);
    hone_status st = hn_gguf_open(&file, path, err);
    size_t n = strlen(path);
    if (st == HONE_E_FORMAT && n > 12 && !strcmp(path + n - 12, ".safetensors"))
        return HN_FAIL(err, st,
                       "%s: not a GGUF file; of a PEFT adapter give the folder, which has adapter_config.json too",
                       HN_ESC(path, n));
    if (st != HONE_OK) return st;
    st = hn_lora_from_gguf(out, m, file, err);
    hn_gguf_close(file);
    return st;
}

void hn_lora_close(hn_lora *l)
{
    if (!l) return;
    for (int32_t i = 0; i < l->n_pair; i++) {
        free(l->pair[i].name);
        free(l->pair[i].a);
        free(l->pair[i].b);
    }
    free(l->pair);
    free(l->path);
    free(l->arch);
    free(l->name);
    free(l->chat_template);
    free(l);
}

/* ---- building ------------------------------------------------------------------------------- */

hone_status hn_lora_begin(hn_lora_build *b, const hone_model *m, const char *path, hone_error *err)
{
    *b = (hn_lora_build){ .m = m };
    b->l = calloc(1, sizeof *b->l);
    b->slot = calloc((size_t)hn_gguf_n_tensors(m->file) + 1, sizeof *b->slot);
    if (!b->l || !b->slot || !(b->l->path = strdup(path)) || !(b->l->arch = strdup(m->filed_arch)) ||
        !(b->l->name = strdup("")) || !(b->l->chat_template = strdup("")))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: adapter", path);
    return HONE_OK;
}

/* Does some product of the model take the rows of t as they lie in the file, one chain each? */
typedef struct finding {
    const hn_gguf_tensor *t;
    bool found;
} finding;
static void find_weight(void *arg, const hn_weight *w, int32_t il)
{
    finding *f = arg;
    int64_t first;
    bool by_head = w->role == HN_ROLE_ATTN_K_B || w->role == HN_ROLE_ATTN_V_B;
    f->found = f->found || (!by_head && hn_weight_is_of(w, f->t, &first));
}

/* The matrix of the model that `base` names. */
static hone_status find_base(const hone_model *m, int64_t *out, hone_str base, const char *file, hone_error *err)
{
    char name[HN_GGUF_MAX_NAME + 1];
    const hn_gguf_tensor *t = NULL;
    if (base.len < sizeof name && !memchr(base.ptr, 0, base.len)) {
        memcpy(name, base.ptr, base.len);
        name[base.len] = 0;
        t = hn_gguf_find_tensor(m->file, name);
        if (!t && !strcmp(name, "output.weight"))
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: adapts output.weight, but the head of %s is its token embedding, which adapters cannot "
                           "change here",
                           file, m->path);
        if (t && !strcmp(name, "token_embd.weight"))
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: adapts token_embd.weight; hone has adapters of matrices, not of embeddings", file);
    }
    if (!t)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: adapts tensor %s, which %s does not have: wrong base model?", file,
                       HN_ESC(base.ptr, base.len), m->path);
    *out = t - hn_gguf_tensor_at(m->file, 0);
    if (m->bound[*out] == HN_BOUND_COPIED)
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: adapts tensor %s, whose rows %s models take in another order; hone has no adapters of these", file,
            name, m->arch->name);
    finding f = { .t = t };
    hn_each_weight(m, find_weight, &f);
    if (m->bound[*out] != HN_BOUND_MATRIX || t->ne[2] != 1 || t->ne[3] != 1 || !f.found)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: adapts tensor %s, which is not a matrix that %s models multiply with", file, name,
                       m->arch->name);
    return HONE_OK;
}

hone_status hn_lora_half(hn_lora_build *b, float **dst, hn_lora_pair **pair, hone_str base, bool is_b, uint64_t rows,
                         uint64_t cols, const char *file, hone_str tensor, hone_error *err)
{
    int64_t at = -1;
    hone_status st = find_base(b->m, &at, base, file, err);
    if (st != HONE_OK) return st;
    const hn_gguf_tensor *t = hn_gguf_tensor_at(b->m->file, (uint64_t)at);
    const char *name = HN_ESC(tensor.ptr, tensor.len);
    uint64_t rank = is_b ? cols : rows;
    if ((is_b ? rows : cols) != t->ne[is_b])
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %s has shape [%llu, %llu], expected %s for %s [%llu, %llu]: wrong base model?", file, name,
                       (unsigned long long)rows, (unsigned long long)cols, is_b ? "[n_out, rank]" : "[rank, n_in]",
                       HN_ESC(base.ptr, base.len), (unsigned long long)t->ne[1], (unsigned long long)t->ne[0]);
    if (rank < 1 || rank > HN_LORA_MAX_RANK)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has rank %llu, expected 1 to %d", file, name,
                       (unsigned long long)rank, HN_LORA_MAX_RANK);
    if (!b->slot[at]) {
        if (b->l->n_pair == b->cap) {
            int32_t cap = b->cap ? 2 * b->cap : 64;
            hn_lora_pair *p = realloc(b->l->pair, (size_t)cap * sizeof *p);
            if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: %d pairs", file, cap);
            b->l->pair = p;
            b->cap = cap;
        }
        char *copy = strndup(base.ptr, base.len);
        if (!copy) return HN_FAIL(err, HONE_E_NOMEM, "%s: %s", file, name);
        b->l->pair[b->l->n_pair] = (hn_lora_pair){
            .name = copy, .n_in = (int64_t)t->ne[0], .n_out = (int64_t)t->ne[1], .rank = (int64_t)rank, .scale = 1.0f
        };
        b->slot[at] = ++b->l->n_pair;
    }
    hn_lora_pair *p = &b->l->pair[b->slot[at] - 1];
    float **half = is_b ? &p->b : &p->a;
    if (*half) return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is there twice", file, name);
    if (p->rank != (int64_t)rank)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: the halves for %s have ranks %lld and %llu, expected the same", file,
                       p->name, (long long)p->rank, (unsigned long long)rank);
    if (!(*half = malloc((size_t)rows * (size_t)cols * sizeof **half)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %s of %llu × %llu numbers", file, name, (unsigned long long)rows,
                       (unsigned long long)cols);
    *dst = *half;
    *pair = p;
    return HONE_OK;
}

hone_status hn_lora_check(const float *x, uint64_t n, const char *file, hone_str tensor, hone_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: element %llu is %s, expected a finite number", file,
                           HN_ESC(tensor.ptr, tensor.len), (unsigned long long)i, isnan(x[i]) ? "NaN" : "infinite");
    return HONE_OK;
}

static uint64_t hash_of(const hn_lora *l)
{
    uint64_t h = HN_FNV_INIT;
    for (int32_t i = 0; i < l->n_pair; i++) {
        const hn_lora_pair *p = &l->pair[i];
        const int64_t shape[3] = { p->n_in, p->n_out, p->rank };
        h = hn_fnv1a(h, p->name, strlen(p->name) + 1);
        h = hn_fnv1a(h, shape, sizeof shape);
        h = hn_fnv1a(h, &p->scale, sizeof p->scale);
        h = hn_fnv1a(h, p->a, (size_t)(p->rank * p->n_in) * sizeof(float));
        h = hn_fnv1a(h, p->b, (size_t)(p->rank * p->n_out) * sizeof(float));
    }
    return h;
}

static hone_status finish(hn_lora_build *b, hone_error *err)
{
    hn_lora *l = b->l;
    if (!l->n_pair) return HN_FAIL(err, HONE_E_FORMAT, "%s: has no tensors of an adapter", l->path);
    for (int32_t i = 0; i < l->n_pair; i++) {
        const hn_lora_pair *p = &l->pair[i];
        if (!p->a || !p->b)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: has only half %c of the pair for %s", l->path, p->a ? 'A' : 'B',
                           p->name);
        if (!isfinite(p->scale))
            return HN_FAIL(err, HONE_E_NUMERIC, "%s: the pair for %s is scaled by %g", l->path, p->name,
                           (double)p->scale);
    }
    hn_lora_pair *sorted = malloc((size_t)l->n_pair * sizeof *sorted);
    if (!sorted) return HN_FAIL(err, HONE_E_NOMEM, "%s: %d pairs", l->path, l->n_pair);
    int32_t n = 0;
    for (uint64_t i = 0; i < hn_gguf_n_tensors(b->m->file); i++)
        if (b->slot[i]) sorted[n++] = l->pair[b->slot[i] - 1];
    free(l->pair);
    l->pair = sorted;
    l->hash = hash_of(l);
    return HONE_OK;
}

hone_status hn_lora_end(hn_lora_build *b, hone_status st, hn_lora **out, hone_error *err)
{
    if (st == HONE_OK) st = finish(b, err);
    free(b->slot);
    *out = st == HONE_OK ? b->l : NULL;
    if (st != HONE_OK) hn_lora_close(b->l);
    return st;
}
