/* Fuzz target: GGUF bytes as a model: opened, its text taken apart and put together, run for a few tokens.
 * covers: src/model/model.c src/model/bind.c src/model/families.c src/model/hparams.c src/model/rope.c */
#include "run_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_model(data, size);
    return 0;
}
