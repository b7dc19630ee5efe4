/* Fuzz target: checkpoint folders as Hugging Face has them. The input is pieces with a byte FF behind each: flags,
 * config.json, model.safetensors.index.json, where the flags say so a World vocabulary, a chat template and
 * tokenizer_config.json, then the JSON header of one safetensors file after another, which get zeros for data.
 * Whatever the folder is, a failure names it and leaves no file; what is written can be read.
 * covers: src/model/safetensors.c src/forge/convert.c src/forge/convert_rwkv.c src/model/ckpt.c
 * covers: src/forge/convert_write.c src/forge/recipe.c src/base/json.c src/model/ckpt_folder.c src/forge/hf.c
 * covers: src/forge/hf_keys.c src/forge/hf_plan.c src/forge/hf_rope.c src/forge/hf_write.c src/forge/hf_make.c
 * covers: src/forge/hf_dense.c src/forge/hf_moe.c src/forge/hf_hybrid.c src/forge/hf_general.c src/forge/hf_back.c
 * covers: src/forge/hf_back_config.c src/forge/hf_back_write.c src/forge/hf_quantized.c src/forge/hf_dequant.c
 * covers: src/forge/hf_gemma.c src/forge/hf_delta.c src/forge/hf_latent.c */
#define _GNU_SOURCE
#include "converted.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FILES = 4, DATA_ROOM = 1 << 20 };

static char folder[100];

/* Bytes of data that the header asks for: the largest number after a comma and before a bracket, as data_offsets
 * has them. Wrong guesses are fine. */
static size_t data_bytes(ff_in h)
{
    size_t most = 0, v = 0;
    for (size_t i = 0; i < h.n; i++) {
        uint8_t c = h.p[i];
        if (c >= '0' && c <= '9') v = v < DATA_ROOM ? 10 * v + (c - '0') : DATA_ROOM;
        else if (c == ']' && v > most && v < DATA_ROOM) most = v, v = 0;
        else v = 0;
    }
    return most;
}

/* Shapes of packed matrices are data: 8 by 8. */
static void put_shapes(uint8_t *data, size_t n, ff_in h)
{
    static const char name[] = "weight_shape", offsets[] = "data_offsets\":[";
    const uint64_t eights[2] = { 8, 8 };
    const uint8_t *p = h.p, *end = h.p + h.n;
    while (p && (p = memmem(p, (size_t)(end - p), name, sizeof name - 1)) != NULL) {
        size_t at = 0;
        if (!(p = memmem(p, (size_t)(end - p), offsets, sizeof offsets - 1))) return;
        for (p += sizeof offsets - 1; p < end && *p >= '0' && *p <= '9' && at < n; p++) at = 10 * at + (*p - '0');
        if (at <= n && n - at >= sizeof eights) memcpy(data + at, eights, sizeof eights);
    }
}

/* kind: what stands in one place among the data: 1 NaN, 2 infinite, 3 beyond F16. */
static void put_tensors(const char *name, ff_in h, unsigned how, unsigned kind)
{
    static const char odd[3][8] = { { 0, 0, (char)0xC0, 0x7F, 0, 0, (char)0xF8, 0x7F },
                                    { 0, 0, (char)0x80, 0x7F, 0, 0, (char)0xF0, 0x7F },
                                    { 0, 0, 0, 0x7F, 0, 0, (char)0xE0, 0x47 } };
    size_t extra = data_bytes(h) + (how & 1), n = 8 + h.n + extra;
    uint64_t len = h.n + (how & 2 ? 1 : 0);
    uint8_t *p = calloc(n, 1);
    char path[160];
    FF_MUST(p);
    memcpy(p, &len, 8);
    memcpy(p + 8, h.p, h.n);
    if (how & 4) /* small numbers that are no zeros: 0.5 as F32, and something as F16 and BF16 */
        for (size_t i = 8 + h.n; i + 4 <= n; i += 4) memcpy(p + i, "\0\0\0\x3F", 4);
    put_shapes(p + 8 + h.n, extra, h);
    if (kind && extra >= 40) memcpy(p + 8 + h.n + 32, odd[kind - 1], 8); /* of F32 and BF16 the one, of F64 the other */
    snprintf(path, sizeof path, "in/%s", name);
    ff_put(path, p, n);
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ff_in in = { data, size };
    if (!*ff_dir) ff_begin();
    snprintf(folder, sizeof folder, "%s/in", ff_dir);
    mkdir(folder, 0700);
    ff_empty(folder);
    ff_in flags = ff_until(&in, 0xFF), config = ff_until(&in, 0xFF), index = ff_until(&in, 0xFF);
    unsigned how = ff_u8(&flags), shape = ff_u8(&flags);
    if (config.n) ff_put("in/config.json", config.p, config.n);
    if (index.n) ff_put("in/model.safetensors.index.json", index.p, index.n);
    static const char *const others[] = { "in/rwkv_vocab_v20230424.txt", "in/chat_template.jinja",
                                          "in/tokenizer_config.json" };
    for (unsigned i = 0; i < 3; i++)
        if (shape >> (4 + i) & 1) {
            ff_in other = ff_until(&in, 0xFF);
            ff_put(others[i], other.p, other.n);
        }
    int n_file = 0;
    for (; n_file < MAX_FILES && in.n; n_file++) {
        char name[48];
        ff_in h = ff_until(&in, 0xFF);
        if (how & 8) snprintf(name, sizeof name, "model-%05d-of-%05u.safetensors", n_file + 1, 1 + (shape & 3));
        else snprintf(name, sizeof name, n_file ? "more-%d.safetensors" : "model.safetensors", n_file);
        put_tensors(name, h, how, shape >> 2 & 3);
    }
    if (how & 16) ff_put("in/params.json", "{}", 2);
    if (how & 32) ff_put("in/adapter_config.json", "{}", 2);
    ff_convert(folder, NULL, shape & 128 ? "BF16" : how & 64 ? "Q8_0" : how & 128 ? "F16" : NULL);
    return 0;
}
