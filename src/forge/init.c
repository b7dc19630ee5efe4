/* init: see init.h. Owns the values a training begins with; refuses to know gradients. */
#include "forge/init.h"

#include "forge/convert.h"
#include "forge/synth.h"

#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

static void set_values(hn_synth_plan *plan)
{
    float std = 0.02f, out = std / sqrtf(2 * (float)plan->shape.n_layer);
    for (size_t i = 0; i < plan->n; i++) {
        hn_synth_tensor *t = &plan->t[i];
        bool norm = ends_with(t->name, "_norm.weight"),
             residual = ends_with(t->name, "attn_output.weight") || ends_with(t->name, "ffn_down.weight");
        t->mean = norm;
        t->std = t->n_dim < 2 ? 0 : residual ? out : std;
    }
}

/* The tokenizer.* entries of a file. */
static hone_status put_tokenizer(hn_gguf_writer *w, const hn_gguf *g, hone_error *err)
{
    uint64_t n = hn_gguf_n_kv(g), k = 0;
    char **except = calloc((size_t)n + 1, sizeof *except);
    hone_status st = except ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: metadata", hn_gguf_path(g));
    for (uint64_t i = 0; i < n && st == HONE_OK; i++) {
        hone_kv kv;
        hn_gguf_kv(g, i, &kv);
        if (kv.key.len > 10 && memcmp(kv.key.ptr, "tokenizer.", 10) == 0) continue;
        if (!(except[k++] = strndup(kv.key.ptr, kv.key.len)))
            st = HN_FAIL(err, HONE_E_NOMEM, "%s: metadata", hn_gguf_path(g));
    }
    if (st == HONE_OK) st = hn_gguf_put_all(w, g, (const char *const *)except, err);
    for (uint64_t i = 0; except && i < k; i++) free(except[i]);
    free(except);
    return st;
}

static hone_status put_init_meta(hn_gguf_writer *w, const hn_init *p, const hn_synth_shape *s, const char *dst,
                                 hone_error *err)
{
    hone_status st;
    TRY(hn_gguf_put_str(w, "general.architecture", s->arch, strlen(s->arch), err));
    TRY(hn_gguf_put_str(w, "general.type", "model", 5, err));
    TRY(p->name ? hn_gguf_put_str(w, "general.name", p->name, strlen(p->name), err) : hn_put_name(w, dst, err));
    TRY(hn_gguf_put_u32(w, "general.file_type", 0, err));
    TRY(hn_gguf_put_u32(w, "general.quantization_version", 2, err));
    TRY(hn_synth_put_shape(w, s, err));
    return p->bpe ? hn_bpe_put(w, p->bpe, p->bos, p->eos, p->add_bos, err) : put_tokenizer(w, p->tokenizer->file, err);
}

hone_status hn_init_model(const char *dst, const hn_init *p, hone_error *err)
{
    const hn_vocab *v = NULL;
    hn_synth_shape shape = { 0 };
    hn_synth_plan *plan = NULL;
    hn_gguf_writer *w = NULL;
    hone_status st;
    if (!p->bpe == !p->tokenizer)
        return HN_FAIL(err, HONE_E_ARG, "%s: expected one tokenizer, a new one or a model's", dst);
    if (p->tokenizer) TRY(hn_model_vocab(p->tokenizer, &v, err));
    TRY(hn_synth_config_for(&shape, p->config, p->bpe ? p->bpe->n : hn_vocab_size(v), err));
    if (!hn_family_find(shape.arch, strlen(shape.arch))->trains)
        st = HN_FAIL(err, HONE_E_UNSUPPORTED,
                     "%s: arch is %s, which hone does not train; docs/TRAIN.md lists those that it does", p->config,
                     shape.arch);
    if (st == HONE_OK) st = hn_synth_plan_new(&plan, &shape, "F32", err);
    if (st == HONE_OK) st = hn_gguf_writer_new(&w, err);
    if (st == HONE_OK) st = put_init_meta(w, p, &shape, dst, err);
    if (st == HONE_OK) set_values(plan);
    if (st == HONE_OK) st = hn_synth_write(plan, w, p->seed, 0, dst, NULL, err);
    hn_gguf_writer_free(w);
    hn_synth_plan_free(plan);
    hn_synth_shape_free(&shape);
    return st;
}
