/* Fuzz target: GGUF bytes as a model: opened, its text taken apart and put together, run for a few tokens. As a file,
 * too: its identity is the same however often it is asked for.
 * covers: src/model/keys.c src/gguf/identity.c src/gguf/gguf_values.c
 * covers: src/model/model.c src/model/bind.c src/model/families.c src/model/hparams.c src/model/rope.c */
#include "fuzz_file.h"
#include "run_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_file(const uint8_t *data, size_t size)
{
    hone_model *m, *again;
    hone_error e = { 0 };
    char id[65], other[65];
    const char *path = ff_put("m.gguf", data, size);
    FF_MUST(hone_model_open(&m, path, NULL, &e) == HONE_OK && hone_model_open(&again, path, NULL, &e) == HONE_OK);
    FF_MUST(hone_model_identity(m, id, NULL, &e) == HONE_OK && strlen(id) == 64);
    FF_MUST(hone_model_identity(m, other, NULL, &e) == HONE_OK && !strcmp(id, other));
    FF_MUST(hone_model_identity(again, other, NULL, &e) == HONE_OK && !strcmp(id, other));
    hone_model_close(again);
    hone_model_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*ff_dir) ff_begin();
    if (run_model(data, size)) as_file(data, size);
    return 0;
}
