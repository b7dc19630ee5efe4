/* Fuzz target: adapter files, for a small model that is made once. The bytes are a GGUF
 * file; an adapter that is accepted has finite numbers that fit the model.
 * covers: src/model/lora.c src/model/lora_gguf.c src/gguf/gguf_values.c src/forge/lora_gguf_write.c
 * covers: src/forge/lora_halves.c */
#include "fuzz_file.h"
#include "lora_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Written as a file of hone and read from the disk, it is the same. */
static void there_and_back(const hone_model *m, const hn_lora *l, const char *arch)
{
    hn_lora_about about = { .name = "fuzz", .arch = arch, .type = HN_F32, .base_name = "base" };
    hone_error err = { 0 };
    hn_lora *again;
    const char *path = ff_path("out.gguf");
    if (hn_lora_write_gguf(path, l->pair, l->n_pair, &about, &err) !=
        HONE_OK) { /* an alpha that is no number any more */
        PROMISE(err.message[0]);
        return;
    }
    PROMISE(hn_lora_open(&again, m, path, &err) == HONE_OK && again->n_pair == l->n_pair);
    for (int32_t i = 0; i < l->n_pair; i++) {
        const hn_lora_pair *p = &l->pair[i], *q = &again->pair[i];
        PROMISE(!strcmp(p->name, q->name) && p->rank == q->rank &&
                !memcmp(p->a, q->a, (size_t)(p->rank * p->n_in) * sizeof(float)));
    }
    hn_lora_close(again);
    /* as somebody may name it who has not seen that it is no safetensors file */
    const char *cut = ff_put("cut.safetensors", "GGUF", 4);
    PROMISE(hn_lora_open(&again, m, cut, &err) == HONE_E_FORMAT && strstr(err.message, "folder"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hone_model *m;
    hone_error err = { 0 };
    hn_gguf *g;
    hn_lora *l;
    if (!m) {
        ff_begin();
        m = make_model();
    }
    if (hn_gguf_parse(&g, data, size, "fuzz", &err) != HONE_OK) return 0;
    hone_status st = hn_lora_from_gguf(&l, m, g, &err);
    PROMISE((st == HONE_OK) == (l != NULL) && (l || err.message[0]));
    if (l) {
        check_lora(m, l);
        there_and_back(m, l, "llama");
    }
    hn_lora_close(l);
    hn_gguf_close(g);
    return 0;
}
