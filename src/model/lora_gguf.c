/* lora_gguf: adapters as GGUF files, in the layout that llama.cpp reads (docs/LORA.md):
 * general.type "adapter", adapter.type "lora", adapter.lora.alpha, and for each adapted
 * tensor T the tensors T.lora_a, ne {n_in, rank}, and T.lora_b, ne {rank, n_out}. Facts
 * of the training that nobody needs to run it stand in hone.lora.*. */
#include "model/lora.h"

#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && !memcmp(s.ptr, t, s.len); }
static bool begins(hone_str s, const char *t) { return s.len >= strlen(t) && !memcmp(s.ptr, t, strlen(t)); }
static bool ends(hone_str s, const char *t)
{
    return s.len > strlen(t) && !memcmp(s.ptr + s.len - strlen(t), t, strlen(t));
}

/* arch: what the file calls the family of its base. */
static hone_status check_keys(const hone_model *m, const hn_gguf *g, float *alpha, hone_str *arch, hone_error *err)
{
    const char *path = hn_gguf_path(g);
    hone_str type = { "", 0 }, kind = { "", 0 };
    hone_status st;
    TRY(hn_gguf_get_str(g, "general.type", &type, NULL, err));
    TRY(hn_gguf_get_str(g, "adapter.type", &kind, NULL, err));
    TRY(hn_gguf_get_str(g, "general.architecture", arch, NULL, err));
    TRY(hn_gguf_get_f32(g, "adapter.lora.alpha", alpha, NULL, err));
    if (!is(type, "adapter"))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: not an adapter: general.type is \"%s\"", path,
                       HN_ESC(type.ptr, type.len));
    if (!is(kind, "lora"))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: adapter.type is \"%s\", expected \"lora\"", path,
                       HN_ESC(kind.ptr, kind.len));
    if (!is(*arch, m->filed_arch) && !hn_dialect_same_arch(*arch, m->arch->name))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: an adapter for architecture \"%s\", but %s is %s: wrong base model",
                       path, HN_ESC(arch->ptr, arch->len), m->path, m->filed_arch);
    for (uint64_t i = 0; i < hn_gguf_n_kv(g); i++) {
        hone_kv kv;
        hn_gguf_kv(g, i, &kv);
        if (begins(kv.key, "adapter.alora."))
            return HN_FAIL(
                err, HONE_E_UNSUPPORTED,
                "%s: an activated LoRA (%s), which changes the model from some token on; hone's adapters always do",
                path, HN_ESC(kv.key.ptr, kv.key.len));
    }
    return HONE_OK;
}

static hone_status read_tensor(hn_lora_build *b, const hn_gguf *g, const hn_gguf_tensor *t, float alpha, hone_str arch,
                               hone_error *err)
{
    char own[HN_DIALECT_NAME];
    const char *path = hn_gguf_path(g);
    const hn_type_info *ti = hn_type_get(t->type);
    bool is_a = ends(t->name, ".lora_a"), is_b = ends(t->name, ".lora_b");
    hn_lora_pair *pair;
    float *x;
    hone_status st;
    if (!is_a && !is_b)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: tensor %s is no half of an adapter (NAME.lora_a, NAME.lora_b); running without it would "
                       "give wrong answers",
                       path, HN_ESC(t->name.ptr, t->name.len));
    if (t->ne[2] != 1 || t->ne[3] != 1)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: tensor %s is no matrix; hone has no adapters of experts", path,
                       HN_ESC(t->name.ptr, t->name.len));
    if (!ti->weight)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: tensor %s has type %s, which cannot be a weight", path,
                       HN_ESC(t->name.ptr, t->name.len), ti->name);
    const hone_str base = hn_dialect_tensor(own, arch, (hone_str){ t->name.ptr, t->name.len - strlen(".lora_a") });
    TRY(hn_lora_half(b, &x, &pair, base, is_b, t->ne[1], t->ne[0], path, t->name, err));
    for (uint64_t r = 0; r < t->ne[1]; r++)
        ti->dequantize(x + r * t->ne[0], (const char *)t->data + r * hn_row_bytes(ti, t->ne[0]), (int64_t)t->ne[0]);
    if (alpha != 0) pair->scale = alpha / (float)pair->rank;
    return hn_lora_check(x, t->ne[0] * t->ne[1], path, t->name, err);
}

/* *dst, which is replaced: a copy of s. */
static hone_status keep(char **dst, hone_str s, const char *path, const char *what, hone_error *err)
{
    char *copy = strndup(s.ptr, s.len);
    if (!copy) return HN_FAIL(err, HONE_E_NOMEM, "%s: %s", path, what);
    free(*dst);
    *dst = copy;
    return HONE_OK;
}

hone_status hn_lora_from_gguf(hn_lora **out, const hone_model *m, const hn_gguf *g, hone_error *err)
{
    hn_lora_build b;
    float alpha = 0;
    hone_str name = { "", 0 }, base = { "", 0 }, chat = { "", 0 }, arch = { "", 0 };
    *out = NULL;
    hone_status st = check_keys(m, g, &alpha, &arch, err);
    if (st != HONE_OK || (st = hn_gguf_get_str(g, "general.name", &name, NULL, err)) != HONE_OK) return st;
    if ((st = hn_gguf_get_str(g, "hone.lora.base_identity", &base, NULL, err)) != HONE_OK) return st;
    if ((st = hn_gguf_get_str(g, "tokenizer.chat_template", &chat, NULL, err)) != HONE_OK) return st;
    st = hn_lora_begin(&b, m, hn_gguf_path(g), err);
    if (st == HONE_OK) {
        st = keep(&b.l->name, name, hn_gguf_path(g), "name", err);
        if (st == HONE_OK) st = keep(&b.l->chat_template, chat, hn_gguf_path(g), "chat template", err);
        if (base.len < sizeof b.l->base_identity)
            memcpy(b.l->base_identity, base.ptr, base.len); /* a note: longer is none */
    }
    for (uint64_t i = 0; st == HONE_OK && i < hn_gguf_n_tensors(g); i++)
        st = read_tensor(&b, g, hn_gguf_tensor_at(g, i), alpha, arch, err);
    return hn_lora_end(&b, st, out, err);
}
