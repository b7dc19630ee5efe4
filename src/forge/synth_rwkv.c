/* synth_rwkv: what a random RWKV-7 or RWKV-6 file has that others have not: its keys, a vocabulary of the World kind,
 * as in files made by ggml-org/llama.cpp:conversion/rwkv.py. Knows no arithmetic. */
#include "gguf/gguf.h"
#include "forge/synth.h"

#include <stdlib.h>

/* ---- keys ---------------------------------------------------------------------------------- */

hone_status hn_synth_put_rwkv(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err)
{
    bool v7 = !strcmp(s->arch, "rwkv7");
    const struct {
        const char *key;
        int32_t value;
        bool in7, in6;
    } keys[] = {
        { "context_length", s->n_ctx_train, true, true },
        { "embedding_length", s->n_embd, true, true },
        { "block_count", s->n_layer, true, true },
        { "rescale_every_n_layers", s->rescale_every, false, true },
        { "wkv.head_size", s->head_dim, true, true },
        { "time_mix_extra_dim", s->rank_mix, false, true },
        { "time_decay_extra_dim", s->rank_decay, false, true },
        { "attention.decay_lora_rank", s->rank_decay, true, false },
        { "attention.iclr_lora_rank", s->rank_iclr, true, false },
        { "attention.value_residual_mix_lora_rank", s->rank_value, true, false },
        { "attention.gate_lora_rank", s->rank_gate, true, false },
        { "feed_forward_length", s->n_ff, true, true },
        { "attention.head_count", 0, true, true }, /* 0: unused, but expected */
    };
    char key[96];
    hone_status st;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!(v7 ? keys[i].in7 : keys[i].in6)) continue;
        snprintf(key, sizeof key, "%s.%s", s->arch, keys[i].key);
        if ((st = hn_gguf_put_u32(w, key, (uint32_t)keys[i].value, err)) != HONE_OK) return st;
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_epsilon", s->arch);
    return hn_gguf_put_f32(w, key, s->rms_eps, err);
}

/* ---- vocabulary ------------------------------------------------------------------------------ */

/* The World layout: 0 ends a text, 1…256 are the single bytes, then a few pairs of white space
 * (261 is two line ends, which end a turn), words, and past 65529 padding. Stored as the inside
 * of a Python bytes literal. */
enum { FIRST_PAIR = 257, END_OF_TURN = 261, FIRST_WORD = 264, REAL_END = 65530, SLOT = 32 };
static const char *const pairs[FIRST_WORD - FIRST_PAIR] = { "\\t\\t", "\\t\\n", "\\t ",  "\\n\\t",
                                                            "\\n\\n", "\\n ",   "\\r\\n" };

static void byte_text(char *dst, int b)
{
    if (b == '\t' || b == '\n' || b == '\r') snprintf(dst, SLOT, "\\%c", b == '\t' ? 't' : b == '\n' ? 'n' : 'r');
    else if (b == '\\') snprintf(dst, SLOT, "\\\\");
    else if (b >= 0x20 && b < 0x7F) snprintf(dst, SLOT, "%c", b);
    else snprintf(dst, SLOT, "\\x%02x", (unsigned)b);
}

static int32_t world_token(char *dst, int32_t id)
{
    enum { NORMAL = 1, CONTROL = 3, UNUSED = 5 };
    char word[24];
    bool space;
    if (id == 0) {
        snprintf(dst, SLOT, "<s>");
        return CONTROL;
    }
    if (id >= REAL_END) {
        snprintf(dst, SLOT, "[PAD%d]", id);
        return UNUSED;
    }
    if (id < FIRST_PAIR) {
        byte_text(dst, id - 1);
    } else if (id < FIRST_WORD) {
        snprintf(dst, SLOT, "%s", pairs[id - FIRST_PAIR]);
    } else {
        hn_synth_word(word, id - FIRST_WORD, &space);
        snprintf(dst, SLOT, "%s%s", space ? " " : "", word);
    }
    return NORMAL;
}

hone_status hn_synth_put_world(hn_gguf_writer *w, int32_t n_vocab, hone_error *err)
{
    hone_status st;
    if (n_vocab <= END_OF_TURN) return HONE_OK; /* too small for it: no tokenizer */
    char(*text)[SLOT] = calloc((size_t)n_vocab, sizeof *text);
    hone_str *token = calloc((size_t)n_vocab, sizeof *token);
    int32_t *type = calloc((size_t)n_vocab, sizeof *type);
    if (!text || !token || !type) {
        st = HN_FAIL(err, HONE_E_NOMEM, "vocabulary of %d tokens", n_vocab);
        goto end;
    }
    for (int32_t id = 0; id < n_vocab; id++) {
        type[id] = world_token(text[id], id);
        token[id] = (hone_str){ text[id], strlen(text[id]) };
    }
    if ((st = hn_gguf_put_str(w, "tokenizer.ggml.model", "rwkv", 4, err)) == HONE_OK &&
        (st = hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", token, (uint64_t)n_vocab, err)) == HONE_OK &&
        (st = hn_gguf_put_array(w, "tokenizer.ggml.token_type", HONE_KV_I32, type, (uint64_t)n_vocab, err)) ==
            HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 0, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 0, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.eot_token_id", END_OF_TURN, err)) == HONE_OK)
        st = hn_gguf_put_str(w, "tokenizer.chat_template", "rwkv-world", 10, err);
end:
    free(text);
    free(token);
    free(type);
    return st;
}
