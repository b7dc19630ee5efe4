/* A vocabulary of all bytes, pieces that cut marks and characters anywhere, and special tokens. Id 0 is <s>, 1 + b the
 * byte b; then pieces, control tokens, tokens that users added. */
#ifndef HN_BYTE_VOCAB_H
#define HN_BYTE_VOCAB_H

#include "golden_vocab.h"

enum { BV_BYTES = 1, BV_PIECES = 257 };

static void bv_token(bb *texts, bb *types, const char *s, size_t n, int32_t type)
{
    char esc[256];
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += (size_t)sprintf(esc + k, "\\x%02x", (unsigned char)s[i]);
    bb_strn(texts, esc, k);
    bb_raw(types, &type, 4);
}

/* Lists are NULL-ended, or NULL. */
static __attribute__((unused)) hn_vocab *byte_vocab(const char *const *pieces, const char *const *control,
                                                    const char *const *user)
{
    bb texts = { 0 }, types = { 0 }, f = bb_head(3, 0, 0);
    uint64_t n = BV_PIECES;
    bv_token(&texts, &types, "<s>", 3, 3);
    for (int b = 0; b < 256; b++) bv_token(&texts, &types, &(char){ (char)b }, 1, 1);
    const char *const *const lists[] = { pieces, control, user };
    static const int32_t kinds[] = { 1, 3, 4 };
    for (int l = 0; l < 3; l++)
        for (const char *const *s = lists[l]; s && *s; s++, n++) bv_token(&texts, &types, *s, strlen(*s), kinds[l]);
    bb_kv_str(&f, "tokenizer.ggml.model", "rwkv");
    bb_kv_array(&f, "tokenizer.ggml.tokens", 8, n), bb_raw(&f, texts.p, texts.n);
    bb_kv_array(&f, "tokenizer.ggml.token_type", 5, n), bb_raw(&f, types.p, types.n);
    bb_free(&texts), bb_free(&types);
    return must(&f, 3);
}

#endif
