/* What training gives: adapters as GGUF or as a PEFT folder, or the whole model as GGUF.
 * Layouts are others' (model/lora.h, gguf/gguf.h). */
#include "forge/trained.h"
#include "base/floats.h"
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
        *pair = (hn_lora_pair){
            .n_in = a->cols, .n_out = b->rows, .rank = a->rows, .a = a->p, .b = b->p, .scale = (float)t->info.scale
        };
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
    hn_lora_about about = { .name = "",
                            .arch = t->m->filed_arch,
                            .base = t->m->file,
                            .base_name = t->m->name,
                            .base_identity = t->info.base_identity,
                            .chat_template = t->chat_template,
                            .alpha = (float)(t->info.scale * t->p.rank),
                            .dropout = (float)t->p.dropout,
                            .steps = t->has_best ? t->st.best_step : t->st.step,
                            .rslora = t->p.rslora,
                            .type = HN_F32 };
    hone_status st = make_pairs(t, &pair, err);
    if (st == HONE_OK)
        st = peft ? hn_lora_write_peft(path, t->m, pair, n, &about, err)
                  : hn_lora_write_gguf(path, pair, n, &about, err);
    for (int32_t i = 0; pair && i < n; i++) free(pair[i].name);
    free(pair);
    return st;
}

/* ---- whole models --------------------------------------------------------------------------------- */

/* path NULL: writes nothing, but says whether it could be. */
static hone_status write_model(hone_trainer *t, const char *path, hone_error *err)
{
    hn_trained_tensor *list = calloc((size_t)t->n_array + 1, sizeof *list);
    if (!list) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %d tensors", t->m->path, t->n_array);
    for (int32_t i = 0; i < t->n_array; i++) {
        const hn_param *x = hn_grad_param(t->grad, i);
        list[i] = (hn_trained_tensor){ x->name, x->p, x->rows, x->cols };
    }
    const hn_trained p = { .tensor = list,
                           .n_tensor = t->n_array,
                           .type = t->p.output_type,
                           .name = t->p.name,
                           .chat_template = t->chat_template,
                           .n_threads = t->ctx->n_threads_batch };
    hone_status st = path ? hn_write_trained(path, t->m, &p, err) : hn_check_trained(t->m, &p, err);
    free(list);
    return st;
}

hone_status hn_trainer_check_type(hone_trainer *t, hone_error *err) { return write_model(t, NULL, err); }

hone_status hone_trainer_write(hone_trainer *t, const char *path, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, t, "a trainer");
    HN_NEED(err, path, "the path of the file to write");
    if (!t->grad) return HN_FAIL(err, HONE_E_ARG, "this trainer is a plan");
    hone_status st = hn_trainer_apart(t, path, false, err);
    if (st != HONE_OK) return st;
    hn_trainer_swap_best(t);
    st = t->p.full ? write_model(t, path, err) : write_adapter(t, path, false, err);
    hn_trainer_swap_best(t);
    return st;
}

hone_status hone_trainer_write_peft(hone_trainer *t, const char *folder, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, t, "a trainer");
    HN_NEED(err, folder, "the path of the folder to write");
    if (!t->grad) return HN_FAIL(err, HONE_E_ARG, "this trainer is a plan");
    if (t->p.full) return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: only adapters can be a PEFT folder", folder);
    hone_status st = hn_trainer_apart(t, folder, true, err);
    if (st != HONE_OK) return st;
    hn_trainer_swap_best(t);
    st = write_adapter(t, folder, true, err);
    hn_trainer_swap_best(t);
    return st;
}
