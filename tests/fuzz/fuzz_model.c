/* Fuzz target: GGUF bytes as a model: opened, its text taken apart and put together, run for a few tokens.
 * covers: src/model/model.c src/model/arch_llama.c src/model/arch_rwkv6.c src/model/arch_rwkv7.c src/model/rwkv.c */
#include "run_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_model(data, size);
    return 0;
}
