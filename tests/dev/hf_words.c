/* Tokenizers of transformers' folders without a model: what tests/dev/check_convert_tokenizers.py drives.
 *     cc -O2 -std=gnu11 -Isrc -Iinclude tests/dev/hf_words.c build/release/libhone.a -ljansson -lutf8proc -lm \
 *        -lpthread -o build/hf_words
 *     build/hf_words put FOLDER N_VOCAB ARCH PRE OUT.gguf    ("-": not given); notes on stderr
 *     build/hf_words back FILE.gguf FOLDER
 *     build/hf_words encode FILE.gguf PRE TEXTS              TEXTS: each u32 bytes, text; ids of each on a line, with
 *                                                            bos and eos, special tokens found */
#include "base/json_tree.h"
#include "forge/hf_tokenizer.h"
#include "text/text.h"

#include <stdlib.h>

static const char *given(const char *s) { return strcmp(s, "-") ? s : NULL; }
static void note(void *arg, const char *text) { fprintf(stderr, "note: %s\n", text); }

static hone_status put(char **a, hone_error *err)
{
    char path[4096];
    json_t *config = NULL;
    hn_gguf_writer *w = NULL;
    hone_error none = { 0 };
    snprintf(path, sizeof path, "%s/config.json", a[0]);
    hn_json_tree_file(&config, path, NULL, &none);
    hn_hf_tokenizer t = { a[0], config, given(a[2]), given(a[3]), strtoull(a[1], NULL, 10), note, NULL };
    hone_status st = hn_gguf_writer_new(&w, err);
    if (st == HONE_OK) st = hn_gguf_put_str(w, "general.architecture", "llama", 5, err);
    if (st == HONE_OK) st = hn_hf_tokenizer_put(w, &t, err);
    if (st == HONE_OK) st = hn_gguf_write_begin(w, a[4], err);
    if (st == HONE_OK) st = hn_gguf_write_end(w, err);
    hn_gguf_writer_free(w);
    json_decref(config);
    return st;
}

static hone_status encode(const hn_gguf *g, char **a, hone_error *err)
{
    hn_vocab *v = NULL;
    hone_status st = hn_vocab_new(&v, g, given(a[1]), err);
    FILE *f = st == HONE_OK ? fopen(a[2], "rb") : NULL;
    uint32_t n;
    while (f && st == HONE_OK && fread(&n, 4, 1, f) == 1) {
        char *text = malloc(n + 1);
        hn_ids ids = { 0 };
        if (!text || fread(text, 1, n, f) != n) exit(1);
        st = hn_vocab_encode(v, text, n, HONE_TOK_ADD | HONE_TOK_SPECIAL, &ids, err);
        for (size_t i = 0; i < ids.n; i++) printf("%d ", ids.data[i]);
        printf("\n");
        free(ids.data);
        free(text);
    }
    if (f) fclose(f);
    hn_vocab_free(v);
    return st;
}

int main(int argc, char **argv)
{
    hone_error err = { 0 };
    hone_status st = HONE_E_ARG;
    hn_gguf *g = NULL;
    if (argc == 7 && !strcmp(argv[1], "put")) st = put(argv + 2, &err);
    else if (argc >= 4) {
        st = hn_gguf_open(&g, argv[2], &err);
        if (st == HONE_OK && !strcmp(argv[1], "back")) st = hn_hf_tokenizer_write(argv[3], g, NULL, NULL, &err);
        if (st == HONE_OK && !strcmp(argv[1], "encode")) st = encode(g, argv + 2, &err);
    }
    hn_gguf_close(g);
    if (st != HONE_OK) fprintf(stderr, "%s\n", err.message);
    return st != HONE_OK;
}
