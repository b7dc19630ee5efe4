/* Small models for fuzz targets that use one: made by hone synth in the target's folder. */
#ifndef HN_FUZZ_MODELS_H
#define HN_FUZZ_MODELS_H

#include "fuzz_file.h"
#include "hone.h"

/* Path of the file; arch: "llama" or "rwkv7". */
static __attribute__((unused)) const char *fm_path(const char *arch, const char *type)
{
    bool rwkv = !strcmp(arch, "rwkv7");
    char text[300], name[64];
    hone_error e = { 0 };
    int n = snprintf(text, sizeof text,
                     "{\"arch\": \"%s\", \"n_layer\": 2, \"n_embd\": 64, \"n_vocab\": %d, %s\"tied\": %s}", arch,
                     rwkv ? 320 : 320,
                     rwkv ? "\"rank_decay\": 16, \"rank_iclr\": 16, \"rank_value\": 16, \"rank_gate\": 16, "
                          : "\"n_head\": 4, \"n_head_kv\": 2, \"n_ff\": 96, ",
                     rwkv ? "false" : "true");
    const char *config = ff_put("shape.json", text, (size_t)n);
    snprintf(name, sizeof name, "%s-%s.gguf", arch, type);
    const char *path = ff_path(name);
    hone_status st = hone_synth(&(hone_synth_params){ .config_path = config, .type = type, .seed = 1, .n_threads = 1 },
                                path, NULL, &e);
    if (st != HONE_OK) fprintf(stderr, "%s\n", e.message);
    FF_MUST(st == HONE_OK);
    return path;
}

static __attribute__((unused)) hone_model *fm_open(const char *arch)
{
    hone_error e = { 0 };
    hone_model *m;
    FF_MUST(hone_model_open(&m, fm_path(arch, "F32"), NULL, &e) == HONE_OK);
    return m;
}

#endif
