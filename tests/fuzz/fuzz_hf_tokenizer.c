/* Fuzz target: the vocabularies of folders. The input: two bytes of flags, then a vocabulary (which file it is, the
 * flags say), a byte FF, tokenizer_config.json, a byte FF, merges.txt, and further files of the folder, each a name, a
 * line's end and what stands in it. Whatever they are, a failure has a message; what is put is a GGUF whose vocabulary
 * opens or is refused in words, and goes back into a folder.
 * covers: src/forge/hf_tokenizer.c src/forge/hf_words.c src/forge/hf_words_json.c src/forge/hf_words_other.c
 * covers: src/forge/hf_words_split.c src/forge/hf_words_back.c src/base/source.c src/base/json_tree.c */
#include "fuzz_file.h"

#include "forge/hf_tokenizer.h"
#include "text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void note(void *arg, const char *text)
{
    (void)arg;
    FF_MUST(*text && !strchr(text, '\n'));
}

static void go_back(const hn_gguf *g)
{
    char path[100];
    hone_error e = { 0 };
    snprintf(path, sizeof path, "%s/back", ff_dir);
    mkdir(path, 0700);
    ff_empty(path);
    if (hn_hf_tokenizer_write(path, g, NULL, NULL, &e) != HONE_OK) FF_MUST(*e.message);
}

static void read_again(const void *p, size_t n)
{
    hone_error e = { 0 };
    hn_gguf *g;
    hn_vocab *v;
    ff_put("out.gguf", p, n);
    FF_MUST(hn_gguf_open(&g, ff_path("out.gguf"), &e) == HONE_OK);
    if (hn_vocab_new(&v, g, NULL, &e) != HONE_OK) FF_MUST(*e.message);
    else hn_vocab_free(v);
    go_back(g);
    hn_gguf_close(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "tokenizer.json", "tokenizer.model", "x.tiktoken",     "vocab.json",
                                         "tekken.json",    "spiece.model",    "tokenizer.json", "tokenizer.json" };
    ff_in in = { data, size };
    char folder[100], path[120], name[32];
    if (!*ff_dir) ff_begin();
    snprintf(folder, sizeof folder, "%s/in", ff_dir);
    mkdir(folder, 0700);
    ff_empty(folder);
    unsigned which = ff_u8(&in), how = ff_u8(&in);
    bool binary = names[which % 8][0] != 'v' && strstr(names[which % 8], "model");
    ff_in words = binary ? in : ff_until(&in, 0xFF), about = { 0 }, merges = { 0 };
    if (!binary) about = ff_until(&in, 0xFF), merges = ff_until(&in, 0xFF);
    snprintf(name, sizeof name, "in/%s", names[which % 8]);
    ff_put(name, words.p, words.n);
    if (about.n) ff_put("in/tokenizer_config.json", about.p, about.n);
    if (merges.n) ff_put("in/merges.txt", merges.p, merges.n);
    while (!binary && in.n) ff_put_named(folder, ff_until(&in, 0xFF));
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *config = json_load_file(path, 0, NULL);
    hn_hf_tokenizer t = { .folder = folder, .n_vocab = how & 1 ? how : 0 };
    if (how & 2) t.pre = "qwen2";
    if (how & 4) t.arch = "gemma4";
    if (json_is_object(config)) t.config = config;
    t.note = note;
    hone_error e = { 0 };
    bool there;
    FF_MUST(hn_hf_tokenizer_there(&there, folder, &e) == HONE_OK || *e.message);
    hn_gguf_writer *w = NULL;
    void *p = NULL;
    size_t n;
    FF_MUST(hn_gguf_writer_new(&w, &e) == HONE_OK);
    if (hn_hf_tokenizer_put(w, &t, &e) != HONE_OK) {
        FF_MUST(*e.message);
        ff_say(e.message);
    } else if (hn_gguf_write_keys(w, &p, &n, &e) == HONE_OK) read_again(p, n);
    free(p);
    json_decref(config);
    hn_gguf_writer_free(w);
    return 0;
}
