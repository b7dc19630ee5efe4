/* What training gives: adapters as GGUF or as a PEFT folder, or the whole model as GGUF.
 * Layouts are others' (model/lora.h, gguf/gguf.h). */
#include "train/trainer.h"

#include <stdlib.h>

/* The arrays come in pairs, "NAME.lora_a" before "NAME.lora_b". */
static hone_status make_pairs(hone_trainer *t, hn_lora_pair **out, hone_error *err)
{
    hn_lora_pair *pair = calloc((size_t)t->n_array / 2 + 1, sizeof *pair);
    *out = pair;
    if (!pair) return HN_FAIL(err, HONE_E_NOMEM, "list of adapters");
    for (int32_t i = 0; i + 1 < t->n_array; i += 2, pair++) {
        hn_param *a = hn_grad_param(t->grad, i), *b = hn_grad_param(t->grad, i + 1);
        size_t n = strlen(a->name);
        *pair = (hn_lora_pair){ .n_in = a->cols, .n_out = b->rows, .rank = a->rows, .a = a->p, .b = b->p, .scale = (float)t->info.scale };
        pair->name = malloc(n + 1);
        if (!pair->name) return HN_FAIL(err, HONE_E_NOMEM, "%s", a->name);
        memcpy(pair->name, a->name, n - strlen(".lora_a"));
        pair->name[n - strlen(".lora_a")] = 0;
    }
    return HONE_OK;
}

static hone_status write_adapter(hone_trainer *t, const char *path, bool peft, hone_error *err)
{
    int32_t n = t->n_array / 2;
    hn_lora_pair *pair = NULL;
    hn_lora_about about = { .name = "", .arch = t->m->arch->name, .base_name = t->m->name, .alpha = (float)(t->info.scale * t->p.rank), .dropout = (float)t->p.dropout,
                            .steps = t->has_best ? t->st.best_step : t->st.step, .rslora = t->p.rslora, .type = HN_F32 };
    hone_status st = make_pairs(t, &pair, err);
    if (st == HONE_OK) st = peft ? HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: PEFT folders cannot be written", path) : hn_lora_write_gguf(path, pair, n, &about, err);
    for (int32_t i = 0; pair && i < n; i++) free(pair[i].name);
    free(pair);
    return st;
}

/* ---- whole models --------------------------------------------------------------------------------- */

static const hn_param *trained(hone_trainer *t, const hn_gguf_tensor *g)
{
    for (int32_t i = 0; i < t->n_array; i++) {
        const hn_param *a = hn_grad_param(t->grad, i);
        if (strlen(a->name) == g->name.len && memcmp(a->name, g->name.ptr, g->name.len) == 0) return a;
    }
    return NULL;
}

/* Floats stay what they were; what was quantized becomes F16. */
static hn_type type_for(const hn_gguf_tensor *g) { return g->type == HN_F32 || g->type == HN_F16 || g->type == HN_BF16 ? g->type : HN_F16; }

static hone_status write_tensor(hn_gguf_writer *w, const hn_gguf_tensor *g, const hn_param *a, hone_error *err)
{
    enum { N = 4096 };
    uint16_t half[N];
    if (!a) return hn_gguf_write_data(w, g->data, g->n_bytes, err);
    int64_t n = a->rows * a->cols;
    hn_type type = type_for(g);
    if (type == HN_F32) return hn_gguf_write_data(w, a->p, (uint64_t)n * sizeof(float), err);
    hone_status st = HONE_OK;
    for (int64_t i = 0; i < n && st == HONE_OK; i += N) {
        int64_t k = n - i < N ? n - i : N;
        for (int64_t j = 0; j < k; j++) half[j] = type == HN_F16 ? hn_f32_to_f16(a->p[i + j]) : hn_f32_to_bf16(a->p[i + j]);
        st = hn_gguf_write_data(w, half, (uint64_t)k * 2, err);
    }
    return st;
}

static hone_status write_model(hone_trainer *t, const char *path, hone_error *err)
{
    hn_gguf_writer *w = NULL;
    const hn_gguf *f = t->m->file;
    char name[HN_GGUF_MAX_NAME + 1];
    hone_status st = hn_gguf_writer_new(&w, err);
    if (st == HONE_OK) st = hn_gguf_put_all(w, f, NULL, err);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(f) && st == HONE_OK; i++) {
        const hn_gguf_tensor *g = hn_gguf_tensor_at(f, i);
        memcpy(name, g->name.ptr, g->name.len);
        name[g->name.len] = 0;
        st = hn_gguf_put_tensor(w, name, trained(t, g) ? type_for(g) : g->type, g->ne, g->n_dim, err);
    }
    if (st == HONE_OK) st = hn_gguf_write_begin(w, path, err);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(f) && st == HONE_OK; i++) {
        const hn_gguf_tensor *g = hn_gguf_tensor_at(f, i);
        st = write_tensor(w, g, trained(t, g), err);
    }
    if (st == HONE_OK) st = hn_gguf_write_end(w, err);
    hn_gguf_writer_free(w);
    return st;
}

hone_status hone_trainer_write(hone_trainer *t, const char *path, hone_error *err)
{
    if (!t->grad) return HN_FAIL(err, HONE_E_ARG, "this trainer is a plan");
    hn_trainer_swap_best(t);
    hone_status st = t->p.full ? write_model(t, path, err) : write_adapter(t, path, false, err);
    hn_trainer_swap_best(t);
    return st;
}

hone_status hone_trainer_write_peft(hone_trainer *t, const char *folder, hone_error *err)
{
    if (!t->grad || t->p.full) return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: only adapters can be a PEFT folder", folder);
    hn_trainer_swap_best(t);
    hone_status st = write_adapter(t, folder, true, err);
    hn_trainer_swap_best(t);
    return st;
}
