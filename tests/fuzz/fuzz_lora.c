/* Fuzz target: adapter files, for a small model that is made once. The bytes are a GGUF
 * file; an adapter that is accepted has finite numbers that fit the model.
 * covers: src/model/lora.c src/model/lora_gguf.c */
#include "lora_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hone_model *m;
    hone_error err = { 0 };
    hn_gguf *g;
    hn_lora *l;
    if (!m) m = make_model();
    if (hn_gguf_parse(&g, data, size, "fuzz", &err) != HONE_OK) return 0;
    hone_status st = hn_lora_from_gguf(&l, m, g, &err);
    PROMISE((st == HONE_OK) == (l != NULL) && (l || err.message[0]));
    if (l) check_lora(m, l);
    hn_lora_close(l);
    hn_gguf_close(g);
    return 0;
}
