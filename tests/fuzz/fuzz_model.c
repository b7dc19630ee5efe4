/* Fuzz target: GGUF bytes as a model: opened, its text taken apart and put together, run for a few tokens. As a file,
 * too: its identity is the same however often it is asked for. The input is the file, or says which vector of a family
 * it is (vector_file.h), and what is changed of it; then its keys alone are read as well, which may not ask for more.
 * covers: src/model/keys.c src/gguf/identity.c src/gguf/gguf_values.c
 * covers: src/model/model.c src/model/bind.c src/model/families.c src/model/hparams.c src/model/rope.c
 * covers: src/model/hparams_moe.c src/model/hparams_pool.c src/model/recut.c src/model/dialect.c
 * covers: src/gguf/gguf_amend.c */
#include "run_model.h"
#include "vector_file.h"

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

/* What the file's keys alone say. */
static void as_keys(const uint8_t *data, size_t size, bool is_model)
{
    hone_error e = { 0 };
    hone_model *m = NULL;
    hn_gguf *g;
    if (hn_gguf_parse(&g, data, size, "keys", &e) != HONE_OK) {
        ff_say(e.message);
        return;
    }
    if (hn_dialect(g, &e) != HONE_OK) {
        FF_MUST(!is_model);
        hn_gguf_close(g);
        return;
    }
    const hn_gguf_tensor *embd = hn_gguf_find_tensor(g, "token_embd.weight");
    hone_status st = hn_model_from_keys(&m, g, embd && embd->ne[1] < 1 << 20 ? (int32_t)embd->ne[1] : 16, &e);
    FF_MUST((st == HONE_OK) == (m != NULL) && (m || !strncmp(e.message, "keys: ", 6)) && (m || !is_model));
    hone_model_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*ff_dir) ff_begin();
    ff_in in = { data, size };
    bb file = { 0 };
    if (!vf_is_asked(&in)) {
        if (run_model(data, size)) as_file(data, size);
        return 0;
    }
    if (!vf_asked(&file, &in)) return 0;
    size_t n = file.n;
    uint8_t *exact = ff_edited(file.p, &n, &in);
    bool ran = run_model(exact, n);
    as_keys(exact, n, ran);
    if (ran && size < 32) as_file(exact, n); /* one of each */
    free(exact);
    bb_free(&file);
    return 0;
}
