/* synth_rwkv: what a random RWKV-7 or RWKV-6 file has that others have not: its tensors and
 * their spreads, its keys, a vocabulary of the World kind. Names, order, shapes and types are
 * those of files made by ggml-org/llama.cpp:conversion/rwkv.py. Knows no arithmetic. */
#include "gguf/gguf.h"
#include "model/synth.h"

#include <math.h>
#include <stdlib.h>

/* ---- tensors ----------------------------------------------------------------------------- */

typedef struct builder {
    hn_synth_planner *planner;
    hone_status st; /* the first failure; nothing is added after it */
} builder;

static void put(builder *b, const char *name, int32_t il, hn_synth_kind kind, const uint64_t ne[4], float mean, float std)
{
    if (b->st == HONE_OK) b->st = hn_synth_add(b->planner, name, il, kind, ne, mean, std);
}

#define NE(...) ((const uint64_t[4]){__VA_ARGS__})

static void vec(builder *b, const char *name, int32_t il, uint64_t n, float mean, float std) { put(b, name, il, HN_SYNTH_F32, NE(n), mean, std); }
static void mat(builder *b, const char *name, int32_t il, uint64_t n_in, uint64_t n_out, float std) { put(b, name, il, HN_SYNTH_MATRIX, NE(n_in, n_out), 0, std); }
static void low(builder *b, const char *name, int32_t il, uint64_t n_in, uint64_t n_out, float std) { put(b, name, il, HN_SYNTH_LOWRANK, NE(n_in, n_out), 0, std); }

static void norm(builder *b, const char *name, int32_t il, uint64_t n)
{
    char full[64];
    snprintf(full, sizeof full, "%s.bias", name);
    vec(b, full, il, n, 0, 0.02f);
    snprintf(full, sizeof full, "%s.weight", name);
    vec(b, full, il, n, 1, 0.05f);
}

static float per(float std, uint64_t n) { return std / sqrtf((float)n); }

/* Spreads, after those of synth.c: a normalised input times 1/sqrt(n_in) stays near rms 1, the
 * two parts of a layer share a fixed total. The decays carry the state's life: w0 spread over
 * channels as in trained models gives memories from one token to several thousand, so S neither
 * fades nor grows (rms 2.2, constant from 1,000 to 20,000 random tokens in float64); learning rates
 * a stay around 1/2, which keeps every step of the delta rule a contraction. */
static void layer7(builder *b, const hn_synth_shape *s, int32_t il)
{
    uint64_t e = (uint64_t)s->n_embd, ff = (uint64_t)s->n_ff;
    uint64_t rd = (uint64_t)s->rank_decay, ra = (uint64_t)s->rank_iclr, rv = (uint64_t)s->rank_value, rg = (uint64_t)s->rank_gate;
    float in = per(1, e), share = 1 / sqrtf(2 * (float)s->n_layer);
    norm(b, "attn_norm", il, e);
    norm(b, "attn_norm_2", il, e);
    mat(b, "channel_mix_key.weight", il, e, ff, in);
    vec(b, "channel_mix_lerp_k.weight", il, e, 0.5f, 0.2f);
    mat(b, "channel_mix_value.weight", il, ff, e, 4 * per(share, ff));
    vec(b, "time_mix_a0.weight", il, e, 0, 0.5f);
    low(b, "time_mix_a1.weight", il, e, ra, in);
    low(b, "time_mix_a2.weight", il, ra, e, per(0.5f, ra));
    low(b, "time_mix_g1.weight", il, e, rg, in);
    low(b, "time_mix_g2.weight", il, rg, e, per(2, rg));
    vec(b, "time_mix_k_a.weight", il, e, 1, 0.05f);
    vec(b, "time_mix_k_k.weight", il, e, 0.85f, 0.1f);
    mat(b, "time_mix_key.weight", il, e, e, in);
    put(b, "time_mix_lerp_fused.weight", il, HN_SYNTH_F32, NE(e, 1, 1, 6), 0.5f, 0.2f);
    norm(b, "time_mix_ln", il, e);
    mat(b, "time_mix_output.weight", il, e, e, per(share, e));
    vec(b, "time_mix_r_k.weight", il, e, 0, 0.1f);
    mat(b, "time_mix_receptance.weight", il, e, e, in);
    if (il == 0) { /* copies of a0, a1, a2, as in converted files: no model reads them */
        vec(b, "time_mix_v0.weight", il, e, 0, 0.5f);
        hn_synth_mark_copy(b->planner, "blk.0.time_mix_a0.weight");
        low(b, "time_mix_v1.weight", il, e, ra, in);
        hn_synth_mark_copy(b->planner, "blk.0.time_mix_a1.weight");
        low(b, "time_mix_v2.weight", il, ra, e, per(0.5f, ra));
        hn_synth_mark_copy(b->planner, "blk.0.time_mix_a2.weight");
    } else {
        vec(b, "time_mix_v0.weight", il, e, 0.5f, 0.5f);
        low(b, "time_mix_v1.weight", il, e, rv, in);
        low(b, "time_mix_v2.weight", il, rv, e, per(0.5f, rv));
    }
    mat(b, "time_mix_value.weight", il, e, e, in);
    vec(b, "time_mix_w0.weight", il, e, -3, 1.5f);
    put(b, "time_mix_w1.weight", il, HN_SYNTH_F32, NE(e, rd), 0, in);
    put(b, "time_mix_w2.weight", il, HN_SYNTH_F32, NE(rd, e), 0, per(0.5f, rd));
}

/* With rescale_every = n the stream is halved after every n layers; what layer il writes to it
 * is divided by as much, so that the model is the same but for rounding. */
static void layer6(builder *b, const hn_synth_shape *s, int32_t il)
{
    uint64_t e = (uint64_t)s->n_embd, ff = (uint64_t)s->n_ff, n = (uint64_t)s->head_dim;
    uint64_t x = (uint64_t)s->rank_mix, d = (uint64_t)s->rank_decay;
    float in = per(1, e), share = 1 / sqrtf(2 * (float)s->n_layer);
    if (s->rescale_every) share = ldexpf(share, -(il / s->rescale_every));
    norm(b, "attn_norm", il, e);
    norm(b, "attn_norm_2", il, e);
    mat(b, "channel_mix_key.weight", il, e, ff, in);
    vec(b, "channel_mix_lerp_k.weight", il, e, 0.5f, 0.2f);
    vec(b, "channel_mix_lerp_r.weight", il, e, 0.5f, 0.2f);
    mat(b, "channel_mix_receptance.weight", il, e, e, in);
    mat(b, "channel_mix_value.weight", il, ff, e, 8 * per(share, ff)); /* the gate halves it */
    vec(b, "time_mix_decay.weight", il, e, -3, 1.2f);
    put(b, "time_mix_decay_w1.weight", il, HN_SYNTH_F32, NE(e, d), 0, in);
    put(b, "time_mix_decay_w2.weight", il, HN_SYNTH_F32, NE(d, e), 0, per(0.3f, d));
    put(b, "time_mix_first.weight", il, HN_SYNTH_F32, NE(n, e / n), 0.3f, 0.3f);
    mat(b, "time_mix_gate.weight", il, e, e, 2 * in);
    mat(b, "time_mix_key.weight", il, e, e, in);
    put(b, "time_mix_lerp_fused.weight", il, HN_SYNTH_F32, NE(e, 1, 1, 5), 0.5f, 0.2f);
    vec(b, "time_mix_lerp_x.weight", il, e, 0.5f, 0.2f);
    norm(b, "time_mix_ln", il, e);
    mat(b, "time_mix_output.weight", il, e, e, per(share, e));
    mat(b, "time_mix_receptance.weight", il, e, e, in);
    mat(b, "time_mix_value.weight", il, e, e, in);
    put(b, "time_mix_w1.weight", il, HN_SYNTH_F32, NE(e, 5 * x), 0, in);
    put(b, "time_mix_w2.weight", il, HN_SYNTH_F32, NE(x, e, 5), 0, per(0.3f, x));
}

hone_status hn_synth_add_rwkv(hn_synth_planner *p, const hn_synth_shape *s)
{
    builder b = {p, HONE_OK};
    uint64_t e = (uint64_t)s->n_embd, v = (uint64_t)s->n_vocab;
    /* Order: outside layers, then layers ascending, by name within each. */
    mat(&b, "output.weight", -1, e, v, per(1.5f, e));
    norm(&b, "output_norm", -1, e);
    mat(&b, "token_embd.weight", -1, e, v, 1);
    norm(&b, "token_embd_norm", -1, e);
    for (int32_t il = 0; il < s->n_layer; il++) {
        if (!strcmp(s->arch, "rwkv7")) layer7(&b, s, il);
        else layer6(&b, s, il);
    }
    return b.st;
}

uint64_t hn_synth_n_params_rwkv(const hn_synth_shape *s)
{
    uint64_t e = (uint64_t)s->n_embd, l = (uint64_t)s->n_layer, ff = (uint64_t)s->n_ff, all = 2 * e * (uint64_t)s->n_vocab + 4 * e;
    uint64_t rd = (uint64_t)s->rank_decay, x = (uint64_t)s->rank_mix;
    if (!strcmp(s->arch, "rwkv7")) {
        uint64_t value = e * (1 + 2 * (uint64_t)s->rank_value); /* layer 0 has none of its own */
        uint64_t layer = 4 * e * e + 2 * e * ff + 2 * e * (rd + (uint64_t)s->rank_iclr + (uint64_t)s->rank_gate) + 18 * e;
        return all + l * layer + (l - 1) * value;
    }
    return all + l * (6 * e * e + 2 * e * ff + e * (5 * x + 5 * x + 2 * rd) + 16 * e);
}

/* ---- keys ---------------------------------------------------------------------------------- */

hone_status hn_synth_put_rwkv(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err)
{
    bool v7 = !strcmp(s->arch, "rwkv7");
    const struct { const char *key; int32_t value; bool in7, in6; } keys[] = {
        {"context_length", s->n_ctx_train, true, true}, {"embedding_length", s->n_embd, true, true}, {"block_count", s->n_layer, true, true},
        {"rescale_every_n_layers", s->rescale_every, false, true}, {"wkv.head_size", s->head_dim, true, true},
        {"time_mix_extra_dim", s->rank_mix, false, true}, {"time_decay_extra_dim", s->rank_decay, false, true},
        {"attention.decay_lora_rank", s->rank_decay, true, false}, {"attention.iclr_lora_rank", s->rank_iclr, true, false},
        {"attention.value_residual_mix_lora_rank", s->rank_value, true, false}, {"attention.gate_lora_rank", s->rank_gate, true, false},
        {"feed_forward_length", s->n_ff, true, true}, {"attention.head_count", 0, true, true}, /* 0: unused, but expected */
    };
    char key[96];
    hone_status st;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!(v7 ? keys[i].in7 : keys[i].in6)) continue;
        snprintf(key, sizeof key, "%s.%s", s->arch, keys[i].key);
        if ((st = hn_gguf_put_u32(w, key, (uint32_t)keys[i].value, err)) != HONE_OK) return st;
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_epsilon", s->arch);
    if ((st = hn_gguf_put_f32(w, key, s->rms_eps, err)) != HONE_OK) return st;
    return hn_synth_put_world(w, s->n_vocab, err);
}

/* ---- vocabulary ------------------------------------------------------------------------------ */

/* The World layout: 0 ends a text, 1…256 are the single bytes, then a few pairs of white space
 * (261 is two line ends, which end a turn), words, and past 65529 padding. Stored as the inside
 * of a Python bytes literal. */
enum { FIRST_PAIR = 257, END_OF_TURN = 261, FIRST_WORD = 264, REAL_END = 65530, SLOT = 32 };
static const char *const pairs[FIRST_WORD - FIRST_PAIR] = {"\\t\\t", "\\t\\n", "\\t ", "\\n\\t", "\\n\\n", "\\n ", "\\r\\n"};

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
        token[id] = (hone_str){text[id], strlen(text[id])};
    }
    if ((st = hn_gguf_put_str(w, "tokenizer.ggml.model", "rwkv", 4, err)) == HONE_OK &&
        (st = hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", token, (uint64_t)n_vocab, err)) == HONE_OK &&
        (st = hn_gguf_put_array(w, "tokenizer.ggml.token_type", HONE_KV_I32, type, (uint64_t)n_vocab, err)) == HONE_OK &&
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
