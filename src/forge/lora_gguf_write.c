/* lora_gguf_write: an adapter as a GGUF file as llama.cpp reads it (docs/LORA.md): general.type "adapter", adapter.type
 * "lora", adapter.lora.alpha, and for each adapted tensor T the tensors T.lora_a, ne {n_in, rank}, and T.lora_b, ne
 * {rank, n_out}. Facts of the training that nobody needs to run it stand in hone.lora.*. Reading: model/lora_gguf.c. */
#include "forge/lora_halves.h"

#include <math.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static hone_status put_keys(hn_gguf_writer *w, const hn_lora_pair *pair, int32_t n_pair, const hn_lora_about *about,
                            hone_error *err)
{
    hone_status st;
    int64_t rank = 0;
    for (int32_t i = 0; i < n_pair; i++) rank = pair[i].rank > rank ? pair[i].rank : rank;
    TRY(hn_gguf_put_str(w, "general.architecture", about->arch, strlen(about->arch), err));
    TRY(hn_gguf_put_str(w, "general.type", "adapter", 7, err));
    if (about->name && *about->name) TRY(hn_gguf_put_str(w, "general.name", about->name, strlen(about->name), err));
    TRY(hn_gguf_put_u32(w, "general.file_type", about->type == HN_F16 ? 1 : 0, err));
    if (about->base_name && *about->base_name) {
        TRY(hn_gguf_put_u32(w, "general.base_model.count", 1, err));
        TRY(hn_gguf_put_str(w, "general.base_model.0.name", about->base_name, strlen(about->base_name), err));
    }
    if (about->base_identity && *about->base_identity)
        TRY(hn_gguf_put_str(w, "hone.lora.base_identity", about->base_identity, strlen(about->base_identity), err));
    if (about->chat_template && *about->chat_template)
        TRY(hn_gguf_put_str(w, "tokenizer.chat_template", about->chat_template, strlen(about->chat_template), err));
    TRY(hn_gguf_put_str(w, "adapter.type", "lora", 4, err));
    TRY(hn_gguf_put_f32(w, "adapter.lora.alpha", about->alpha, err));
    TRY(hn_gguf_put_u32(w, "hone.lora.rank", (uint32_t)rank, err));
    TRY(hn_gguf_put_f32(w, "hone.lora.dropout", about->dropout, err));
    TRY(hn_gguf_put_bool(w, "hone.lora.rslora", about->rslora, err));
    return about->steps > 0 ? hn_gguf_put_u64(w, "hone.lora.steps", (uint64_t)about->steps, err) : HONE_OK;
}

/* What B is multiplied by, so that alpha/rank is right for this pair. */
static float fold(const hn_lora_pair *p, const hn_lora_about *about)
{
    float said = about->alpha != 0 ? about->alpha / (float)p->rank : 1.0f;
    return fabsf(p->scale - said) <= 1e-6f * fabsf(said) ? 1.0f : p->scale / said;
}

/* The names that the base's file has, whatever its reader calls them. */
static hone_status call_as_filed(hn_lora_halves *h, const hn_lora_pair *pair, const hn_gguf *base, hone_error *err)
{
    for (size_t i = 0; i < h->n; i++) {
        const hn_gguf_tensor *t = hn_gguf_find_tensor(base, pair[i / 2].name);
        if (!t) return HN_FAIL(err, HONE_E_ARG, "%s: not of %s", pair[i / 2].name, hn_gguf_path(base));
        const hone_str name = hn_gguf_tensor_in_file(base, (uint64_t)(t - hn_gguf_tensor_at(base, 0)))->name;
        int n = snprintf(h->half[i].name, sizeof h->half[i].name, "%.*s.lora_%c", (int)name.len, name.ptr, "ab"[i % 2]);
        h->t[i].name.len = n < (int)sizeof h->half[i].name ? (size_t)n : sizeof h->half[i].name - 1;
    }
    return HONE_OK;
}

hone_status hn_lora_write_gguf(const char *path, const hn_lora_pair *pair, int32_t n_pair, const hn_lora_about *about,
                               hone_error *err)
{
    hn_lora_halves h;
    hn_gguf_writer *w = NULL;
    hone_status st = hn_lora_halves_make(&h, path, pair, n_pair, about->type, err);
    if (st == HONE_OK && about->base) st = call_as_filed(&h, pair, about->base, err);
    for (size_t i = 0; st == HONE_OK && i < h.n; i++)
        if (h.t[i].name.len > HN_GGUF_MAX_NAME_WRITE)
            st = HN_FAIL(err, HONE_E_ARG, "%s: longer than the %d bytes that readers take", h.half[i].name,
                         HN_GGUF_MAX_NAME_WRITE);
    for (int32_t i = 0; st == HONE_OK && i < n_pair; i++) h.half[2 * i + 1].factor = fold(&pair[i], about);
    if (st == HONE_OK) st = hn_gguf_writer_new(&w, err);
    if (st == HONE_OK) st = put_keys(w, pair, n_pair, about, err);
    if (st == HONE_OK) {
        hn_recipe r = { .dst = path, .t = h.t, .n = h.n, .piece_bytes = HN_LORA_PIECE_BYTES };
        st = hn_recipe_write(&r, w, err);
    }
    hn_gguf_writer_free(w);
    hn_lora_halves_free(&h);
    return st;
}
