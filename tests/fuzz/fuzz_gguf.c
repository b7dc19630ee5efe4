/* Fuzz target: the GGUF reader, and the writer fed with whatever the reader accepted.
 * covers: src/gguf/gguf_read.c src/gguf/gguf_index.c src/gguf/gguf_check.c src/gguf/gguf_values.c */
#include "walk_gguf.h"

#include <stddef.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The entries of an accepted file can be written again. */
static void rewrite(const uint8_t *data, size_t size)
{
    hn_gguf *g;
    hn_gguf_writer *w;
    if (hn_gguf_parse(&g, data, size, "fuzz", NULL) != HONE_OK) return;
    hone_error e = { 0 };
    FF_MUST(hn_gguf_check_data(g, &e) == HONE_OK || (e.message[0] && strstr(e.message, "fuzz")));
    if (hn_gguf_writer_new(&w, NULL) == HONE_OK) {
        uint64_t n = 24;
        FF_MUST(hn_gguf_put_all(w, g, NULL, NULL) == HONE_OK);
        for (uint64_t i = 0; i < hn_gguf_n_kv(g); i++) {
            hone_str raw = hn_gguf_kv_raw(g, i);
            hone_kv kv;
            hn_gguf_kv(g, i, &kv);
            if (kv.key.len < 6 || memcmp(kv.key.ptr, "split.", 6) != 0) n += raw.len;
        }
        FF_MUST(hn_gguf_write_size(w) == n);
        hn_gguf_writer_free(w);
    }
    hn_gguf_close(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (walk_gguf(data, size)) rewrite(data, size);
    return 0;
}
