/* model_card: see model_card.h. */
#include "cli/model_card.h"

/* general.file_type, by its numbers (ggml-org/llama.cpp: include/llama.h, llama_ftype). */
static const char *const file_types[] = {
    "F32",    "F16",    "Q4_0",   "Q4_1",    NULL,     NULL,     NULL,     "Q8_0",   "Q5_0",  "Q5_1",
    "Q2_K",   "Q3_K_S", "Q3_K_M", "Q3_K_L",  "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K",  "IQ2_XXS",
    "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S",  "IQ4_NL", "IQ3_S",  "IQ3_M",  "IQ2_S", "IQ2_M",
    "IQ4_XS", "IQ1_M",  "BF16",   NULL,      NULL,     NULL,     "TQ1_0",  "TQ2_0",  "MXFP4",
};

static bool key_is(const hone_kv *kv, const char *key)
{
    return kv->key.len == strlen(key) && memcmp(kv->key.ptr, key, kv->key.len) == 0;
}

static bool key_ends(const hone_kv *kv, const char *end)
{
    size_t n = strlen(end);
    return kv->key.len > n && memcmp(kv->key.ptr + kv->key.len - n, end, n) == 0;
}

static bool is_count(const hone_kv *kv) { return kv->type == HONE_KV_U32 || kv->type == HONE_KV_U64; }

static void read_keys(hn_model_card *c, const hone_file *f, uint64_t *file_type)
{
    const struct {
        const char *key;
        hone_str *to;
    } texts[] = { { "general.architecture", &c->family },
                  { "general.name", &c->name },
                  { "general.type", &c->kind },
                  { "general.size_label", &c->size },
                  { "general.license", &c->licence },
                  { "general.license.name", &c->licence_name },
                  { "general.license.link", &c->licence_link },
                  { "tokenizer.chat_template", &c->template },
                  { "tokenizer.ggml.model", &c->tokenizer } };
    for (uint64_t i = 0; i < hone_file_n_kv(f); i++) {
        hone_kv kv;
        hone_file_kv(f, i, &kv);
        if (is_count(&kv) && key_is(&kv, "general.file_type")) *file_type = kv.v.u;
        if (is_count(&kv) && key_ends(&kv, ".context_length")) c->n_ctx = kv.v.u;
        for (size_t k = 0; kv.type == HONE_KV_STRING && k < sizeof texts / sizeof *texts; k++)
            if (key_is(&kv, texts[k].key)) *texts[k].to = kv.v.s;
    }
}

/* Elements and bytes of all tensors, and the type that most of the bytes are of. */
static const char *read_tensors(hn_model_card *c, const hone_file *f)
{
    struct {
        const char *name;
        uint64_t bytes;
    } type[64] = { { NULL, 0 } };
    size_t n = 0, most = 0;
    for (uint64_t i = 0; i < hone_file_n_tensors(f); i++) {
        hone_tensor_info t;
        size_t k = 0;
        hone_file_tensor(f, i, &t);
        c->n_params += t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3];
        c->n_bytes += t.n_bytes;
        while (k < n && strcmp(type[k].name, t.type_name) != 0) k++;
        if (k == sizeof type / sizeof *type) continue;
        if (k == n) type[n++].name = t.type_name;
        type[k].bytes += t.n_bytes;
        if (type[k].bytes > type[most].bytes) most = k;
    }
    return n ? type[most].name : "";
}

void hn_model_card_of(hn_model_card *c, const hone_file *f)
{
    uint64_t file_type = UINT64_MAX;
    *c = (hn_model_card){ .n_parts = hone_file_n_parts(f) };
    read_keys(c, f, &file_type);
    const char *most = read_tensors(c, f), *said = NULL;
    if (file_type < sizeof file_types / sizeof *file_types) said = file_types[file_type];
    snprintf(c->type, sizeof c->type, "%s", said ? said : most);
}

char *hn_count_words(char dst[24], uint64_t n)
{
    double x = (double)n;
    if (n < 1000000) snprintf(dst, 24, "%.0f K", x / 1e3);
    else if (n < 1000000000) snprintf(dst, 24, "%.*f M", n < 10000000, x / 1e6);
    else snprintf(dst, 24, "%.*f B", n < 100000000000 ? 1 : 0, x / 1e9);
    return dst;
}

char *hn_size_words(char dst[24], uint64_t bytes)
{
    double x = (double)bytes;
    if (bytes < 1 << 20) snprintf(dst, 24, "%.1f KiB", x / 0x1p10);
    else if (bytes < (uint64_t)1 << 30) snprintf(dst, 24, "%.1f MiB", x / 0x1p20);
    else snprintf(dst, 24, "%.2f GiB", x / 0x1p30);
    return dst;
}
