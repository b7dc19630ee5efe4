/* What a mutant may do beyond being read: open as a model, tokenize, run a few
 * tokens, sample, save. Any status is fine; a crash, a hang or a sanitizer report is
 * not. */
#ifndef HN_FUZZ_RUN_MODEL_H
#define HN_FUZZ_RUN_MODEL_H

#include "engine/engine.h"

#include <stdlib.h>

/* The rows of a text, and what the model makes of them. True if there were rows. */
static bool embed_text(hone_session *s, const hone_model *m, const int32_t *ids, int32_t n)
{
    static const hone_pooling how[] = { HONE_POOL_NONE, HONE_POOL_FILE, HONE_POOL_MEAN };
    bool ran = false;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        const int32_t width = hone_embed_width(m, how[i], NULL);
        float *out = width > 0 ? malloc((size_t)width * (size_t)n * sizeof *out) : NULL;
        hone_error err = { 0 };
        if (out)
            ran |= hone_embed(s, &(hone_text_ids){ ids, n }, 1, &(hone_embed_params){ .pooling = how[i] }, out, &err) ==
                   HONE_OK;
        free(out);
    }
    return ran;
}

/* True if the model ran to logits, or to rows. */
static bool run_model(const uint8_t *buf, size_t len)
{
    static hone_context *ctx;
    hone_error err = { 0 };
    hn_gguf *g = NULL;
    hone_model *m = NULL;
    hone_session *s = NULL;
    hone_sampler *sampler = NULL;
    bool ran = false;
    if (!ctx && hone_context_new(&ctx, &(hone_context_params){ .n_threads = 1 }, &err) != HONE_OK) abort();
    if (hn_gguf_parse(&g, buf, len, "fuzz", &err) != HONE_OK) return false;
    if (hn_dialect(g, &err) != HONE_OK) {
        hn_gguf_close(g);
        return false;
    }
    if (hn_model_from_gguf(&m, g, NULL, &err) != HONE_OK) {
        if (!err.message[0] || strncmp(err.message, "fuzz: ", 6) != 0) abort(); /* names the file */
        if (getenv("FUZZ_SAY")) fprintf(stderr, "%s\n", err.message);
        return false;
    }
    hone_model_info info;
    hone_model_get_info(m, &info);
    int32_t *ids = NULL, at[4] = { 0, 1 % info.n_vocab, info.n_vocab - 1, 0 };
    size_t n = 0;
    if (hone_tokenize(m, "Hello <|im_end|> \xF0\x9F\x98\x80 \xFF 12", 26, HONE_TOK_SPECIAL | HONE_TOK_ADD, &ids, &n,
                      &err) == HONE_OK) {
        char *text = NULL;
        size_t text_len;
        if (hone_detokenize(m, ids, n, true, &text, &text_len, &err) == HONE_OK) free(text);
        if (n && ids[0] < info.n_vocab) at[1] = ids[0];
        free(ids);
    }
    hone_session_params p = { .n_ctx = 16, .n_chunk = 3 };
    if (info.n_vocab > 1 << 20 || hone_session_new(&s, ctx, m, &p, &err) != HONE_OK) goto done;
    if (!info.causal) { /* no more tokens than it reads at once */
        ran = embed_text(s, m, at, p.n_chunk);
        goto done;
    }
    const float *logits;
    if (hone_prefill(s, at, 4, &logits, &err) == HONE_OK) {
        hone_sampler_params sp;
        int32_t id;
        hone_sampler_defaults(&sp);
        ran = true;
        if (hone_sampler_new(&sampler, info.n_vocab, &sp, &err) == HONE_OK &&
            hone_sampler_pick(sampler, logits, 0, 4, &id, &err) == HONE_OK) {
            if (id < 0 || id >= info.n_vocab) abort();
            hone_status st = hone_prefill(s, &id, 1, &logits, &err);
            if (st != HONE_OK && st != HONE_E_NUMERIC)
                abort(); /* weights of any kind: numbers may overflow here first */
        }
    }
done:
    hone_sampler_free(sampler);
    hone_session_free(s);
    hone_model_close(m);
    return ran;
}

#endif
