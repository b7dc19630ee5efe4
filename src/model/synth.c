/* synth: writes a GGUF of a real model's exact shape with random weights. Owns the
 * tensor list, its storage types and spreads, the metadata, an invented vocabulary
 * and the pipeline that fills and writes; values are synth_fill.c's. Memory stays
 * bounded whatever the model's size. */
#include "base/file.h"
#include "model/synth.h"

#include "base/options.h"
#include "gguf/gguf.h"

#include <math.h>
#include <stdlib.h>

/* ---- plan --------------------------------------------------------------------------- */

struct hn_synth_planner {
    hn_synth_plan *p;
    size_t cap;
    const char *type;
    hn_type base;
    hn_mix_model mix;
    hn_mix_state state;
    float unit[HN_TYPE_COUNT]; /* 0: not measured yet */
    hone_error *err;
};

static hn_type type_of(hn_synth_planner *b, const hn_synth_tensor *t, hn_synth_kind kind)
{
    bool whole = b->base == HN_F32 || b->base == HN_F16 || b->base == HN_BF16;
    switch (kind) {
    case HN_SYNTH_F32: return HN_F32;
    case HN_SYNTH_LOWRANK: return whole ? b->base : HN_F16;
    default: return hn_mix_type(b->type, &b->mix, &b->state, t->name, t->ne, t->n_dim);
    }
}

hone_status hn_synth_add(hn_synth_planner *b, const char *name, int32_t layer, hn_synth_kind kind, const uint64_t ne[4], float mean, float std)
{
    hn_synth_plan *p = b->p;
    if (p->n == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 256;
        hn_synth_tensor *t = realloc(p->t, cap * sizeof *t);
        if (!t) return HN_FAIL(b->err, HONE_E_NOMEM, "list of %zu tensors", cap);
        p->t = t;
        b->cap = cap;
    }
    hn_synth_tensor *t = &p->t[p->n];
    *t = (hn_synth_tensor){.ne = {1, 1, 1, 1}, .mean = mean, .std = std};
    for (; t->n_dim < 4 && ne[t->n_dim]; t->n_dim++) t->ne[t->n_dim] = ne[t->n_dim];
    if (layer < 0) snprintf(t->name, sizeof t->name, "%s", name);
    else snprintf(t->name, sizeof t->name, "blk.%d.%s", layer, name);
    t->type = type_of(b, t, kind);
    const hn_type_info *ti = hn_type_get(t->type);
    if (!ti || !hn_tensor_nbytes(ti, t->ne, t->n_dim, &t->n_bytes))
        return HN_FAIL(b->err, HONE_E_ARG, "%s: rows of %llu elements do not fit %s, found while planning %s", t->name,
                       (unsigned long long)ne[0], ti ? ti->name : "an unknown type", b->type);
    float *unit = &b->unit[t->type];
    if (*unit == 0) *unit = hn_synth_unit(t->type);
    if (*unit < 0) return HN_FAIL(b->err, HONE_E_NOMEM, "measuring %s blocks", ti->name);
    if (*unit == 0) return HN_FAIL(b->err, HONE_E_UNSUPPORTED, "%s: synth cannot fill %s, which %s asks for", t->name, ti->name, b->type);
    t->unit = *unit;
    p->n++;
    return HONE_OK;
}

void hn_synth_mark_copy(hn_synth_planner *b, const char *of)
{
    if (b->p->n) snprintf(b->p->t[b->p->n - 1].values_of, sizeof b->p->t->values_of, "%s", of);
}

static hone_status add(hn_synth_planner *b, const char *name, int32_t layer, uint64_t ne0, uint64_t ne1, float mean, float std)
{
    return hn_synth_add(b, name, layer, ne1 ? HN_SYNTH_MATRIX : HN_SYNTH_F32, (const uint64_t[4]){ne0, ne1}, mean, std);
}

/* Spreads. Inputs of every matrix are normalised to rms 1, so 1/sqrt(n_in) keeps it; the
 * two matrices that write to the residual stream share a fixed total over all layers
 * (Radford et al. 2019, section 2.3). Two measures keep greedy text from repeating one
 * token. The stream ends at rms 1.5 to 2, mostly from the feed-forward parts, far above a
 * tied embedding's, so that the last token's own logit does not stand out. And attention
 * adds little against the last token's share: its average over the past changes slowly,
 * and with 4 here too every model tried fell into repetition. Logits have a spread of 1.5. */
static hone_status add_all(hn_synth_planner *b)
{
    const hn_synth_shape *s = &b->p->shape;
    uint64_t e = (uint64_t)s->n_embd, ff = (uint64_t)s->n_ff, d = (uint64_t)s->head_dim, v = (uint64_t)s->n_vocab;
    uint64_t q = (uint64_t)s->n_head * d, kv = (uint64_t)s->n_head_kv * d;
    bool bias = !strcmp(s->arch, "qwen2"), qk_norm = !strcmp(s->arch, "qwen3");
    float in = 1 / sqrtf((float)e), share = 1 / sqrtf(2 * (float)s->n_layer);
    float head = 1.5f * in, norm = 0.05f, small = 0.1f;
    hone_status st;
#define ADD(...) do { if ((st = add(b, __VA_ARGS__)) != HONE_OK) return st; } while (0)
    /* Order: outside layers, then layers ascending, by name within each. */
    if (!s->tied) ADD("output.weight", -1, e, v, 0, head);
    ADD("output_norm.weight", -1, e, 0, 1, norm);
    if (s->rope_factor != 1) {
        ADD("rope_freqs.weight", -1, d / 2, 0, 0, 0);
        b->p->t[b->p->n - 1].rope_freqs = true;
    }
    ADD("token_embd.weight", -1, e, v, 0, s->tied ? head : 1);
    for (int32_t il = 0; il < s->n_layer; il++) {
        if (bias) ADD("attn_k.bias", il, kv, 0, 0, small);
        ADD("attn_k.weight", il, e, kv, 0, in);
        if (qk_norm) ADD("attn_k_norm.weight", il, d, 0, 1, norm);
        ADD("attn_norm.weight", il, e, 0, 1, norm);
        ADD("attn_output.weight", il, q, e, 0, share / sqrtf((float)q));
        if (bias) ADD("attn_q.bias", il, q, 0, 0, small);
        ADD("attn_q.weight", il, e, q, 0, in);
        if (qk_norm) ADD("attn_q_norm.weight", il, d, 0, 1, norm);
        if (bias) ADD("attn_v.bias", il, kv, 0, 0, small);
        ADD("attn_v.weight", il, e, kv, 0, in);
        ADD("ffn_down.weight", il, ff, e, 0, 4 * share / sqrtf((float)ff));
        ADD("ffn_gate.weight", il, e, ff, 0, in);
        ADD("ffn_norm.weight", il, e, 0, 1, norm);
        ADD("ffn_up.weight", il, e, ff, 0, in);
    }
#undef ADD
    return HONE_OK;
}

hone_status hn_synth_plan_new(hn_synth_plan **out, const hn_synth_shape *s, const char *type, hone_error *err)
{
    *out = NULL;
    hn_synth_plan *p = calloc(1, sizeof *p);
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "synth plan");
    p->shape = *s;
    hn_synth_planner b = {.p = p, .type = type, .err = err,
                          .mix = {.arch = s->arch, .n_layer = s->n_layer, .n_head = s->n_head, .n_head_kv = s->n_head_kv, .tied = s->tied}};
    hone_status st;
    if (!hn_mix_find(type, &b.base, &p->file_type))
        st = HN_FAIL(err, HONE_E_ARG, "unknown type \"%s\"; expected F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0 or another mixture name", HN_ESC(type, strlen(type)));
    else
        st = hn_synth_is_rwkv(s) ? hn_synth_add_rwkv(&b, s) : add_all(&b);
    p->n_fallback = b.state.n_fallback;
    if (st != HONE_OK) { hn_synth_plan_free(p); return st; }
    *out = p;
    return HONE_OK;
}

void hn_synth_plan_free(hn_synth_plan *p)
{
    if (!p) return;
    free(p->t);
    free(p);
}

/* ---- vocabulary ------------------------------------------------------------------------ */

/* Byte-level BPE of the family's size with its special tokens at their ids: the 256 byte
 * symbols, then words of consonant-vowel syllables with and without a leading space, so
 * that random ids read as words. Only single syllables have merges: enough for any text
 * to encode, little to load. */
typedef struct special { int32_t id; const char *text; int32_t type; } special;
enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 };

static const special llama_special[] = {
    {128000, "<|begin_of_text|>", CONTROL}, {128001, "<|end_of_text|>", CONTROL}, {128006, "<|start_header_id|>", CONTROL},
    {128007, "<|end_header_id|>", CONTROL}, {128009, "<|eot_id|>", CONTROL},
};
static const special qwen_special[] = {
    {151643, "<|endoftext|>", CONTROL}, {151644, "<|im_start|>", CONTROL}, {151645, "<|im_end|>", CONTROL},
    {151646, "<|object_ref_start|>", CONTROL}, {151647, "<|object_ref_end|>", CONTROL}, {151648, "<|box_start|>", CONTROL},
    {151649, "<|box_end|>", CONTROL}, {151650, "<|quad_start|>", CONTROL}, {151651, "<|quad_end|>", CONTROL},
    {151652, "<|vision_start|>", CONTROL}, {151653, "<|vision_end|>", CONTROL}, {151654, "<|vision_pad|>", CONTROL},
    {151655, "<|image_pad|>", CONTROL}, {151656, "<|video_pad|>", CONTROL}, {151657, "<tool_call>", USER_DEFINED},
    {151658, "</tool_call>", USER_DEFINED}, {151659, "<|fim_prefix|>", CONTROL}, {151660, "<|fim_middle|>", CONTROL},
    {151661, "<|fim_suffix|>", CONTROL}, {151662, "<|fim_pad|>", CONTROL}, {151663, "<|repo_name|>", CONTROL},
    {151664, "<|file_sep|>", CONTROL},
};

enum { SLOT = 40, N_BYTE = 256, N_SYLLABLE = 100 };

typedef struct vocab {
    int32_t n, n_merge, n_word_end; /* ids [N_BYTE, n_word_end) are words */
    char (*text)[SLOT];
    hone_str *token, *merge;
    int32_t *type;
    char (*merge_text)[SLOT];
} vocab;

static void vocab_free(vocab *v)
{
    free(v->text);
    free(v->token);
    free(v->merge);
    free(v->type);
    free(v->merge_text);
}

static void set_token(vocab *v, int32_t id, int32_t type) { v->type[id] = type; v->token[id] = (hone_str){v->text[id], strlen(v->text[id])}; }

/* UTF-8 of the character that stands for byte b in byte-level BPE. */
static void byte_symbol(char dst[4], int b)
{
    int c = b;
    if (b <= 0x20) c = 0x100 + b;
    else if (b >= 0x7F && b <= 0xA0) c = 0x121 + b - 0x7F;
    else if (b == 0xAD) c = 0x143;
    if (c < 0x80) { dst[0] = (char)c; dst[1] = 0; return; }
    dst[0] = (char)(0xC0 | c >> 6);
    dst[1] = (char)(0x80 | (c & 63));
    dst[2] = 0;
}

static void byte_tokens(vocab *v)
{
    int32_t id = 0;
    for (int pass = 0; pass < 2; pass++) /* first the bytes that stand for themselves */
        for (int b = 0; b < 256; b++) {
            bool same = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
            if (same == (pass == 1)) continue;
            byte_symbol(v->text[id], b);
            set_token(v, id++, NORMAL);
        }
}

void hn_synth_word(char *dst, int64_t i, bool *space)
{
    int64_t w = i / 2, count = N_SYLLABLE;
    *space = i % 2;
    for (int n = 1;; n++, count *= N_SYLLABLE) {
        if (w >= count) { w -= count; continue; }
        for (int k = 0; k < n; k++, w /= N_SYLLABLE) {
            *dst++ = "bcdfghjklmnprstvwxyz"[w % N_SYLLABLE / 5];
            *dst++ = "aeiou"[w % 5];
        }
        *dst = 0;
        return;
    }
}

static void word_tokens(vocab *v)
{
    for (int32_t id = N_BYTE; id < v->n_word_end; id++) {
        char word[24];
        bool space;
        hn_synth_word(word, id - N_BYTE, &space);
        snprintf(v->text[id], SLOT, "%s%s", space ? "\xC4\xA0" : "", word);
        set_token(v, id, NORMAL);
        if (id - N_BYTE >= 2 * N_SYLLABLE) continue;
        char *m = v->merge_text[v->n_merge];
        if (space) snprintf(m, SLOT, "\xC4\xA0 %s", word);
        else snprintf(m, SLOT, "%c %c", word[0], word[1]);
        v->merge[v->n_merge++] = (hone_str){m, strlen(m)};
    }
}

static void special_tokens(vocab *v, const special *sp, int n_sp, int32_t shift, bool reserved)
{
    int32_t n_reserved = 0;
    for (int32_t id = v->n_word_end; id < v->n; id++) {
        int k = 0;
        while (k < n_sp && sp[k].id - shift != id) k++;
        if (k < n_sp) snprintf(v->text[id], SLOT, "%s", sp[k].text);
        else if (reserved) snprintf(v->text[id], SLOT, "<|reserved_special_token_%d|>", n_reserved++);
        else snprintf(v->text[id], SLOT, "[PAD%d]", id);
        set_token(v, id, k < n_sp ? sp[k].type : reserved ? CONTROL : UNUSED);
    }
}

static hone_status put_vocab(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err)
{
    bool llama = !strcmp(s->arch, "llama");
    const special *sp = llama ? llama_special : qwen_special;
    int n_sp = llama ? (int)(sizeof llama_special / sizeof *sp) : (int)(sizeof qwen_special / sizeof *sp);
    int32_t real_end = sp[n_sp - 1].id + 1;
    if (s->n_vocab < N_BYTE + 2 + real_end - sp[0].id) return HONE_OK; /* too small for the bytes: no tokenizer */
    int32_t shift = s->n_vocab >= real_end ? 0 : real_end - s->n_vocab; /* a smaller vocabulary ends with them */
    vocab v = {.n = s->n_vocab, .n_word_end = sp[0].id - shift};
    hone_status st;
    v.text = calloc((size_t)v.n, sizeof *v.text);
    v.token = calloc((size_t)v.n, sizeof *v.token);
    v.type = calloc((size_t)v.n, sizeof *v.type);
    v.merge = calloc(2 * N_SYLLABLE, sizeof *v.merge);
    v.merge_text = calloc(2 * N_SYLLABLE, sizeof *v.merge_text);
    if (!v.text || !v.token || !v.type || !v.merge || !v.merge_text) {
        vocab_free(&v);
        return HN_FAIL(err, HONE_E_NOMEM, "vocabulary of %d tokens", v.n);
    }
    byte_tokens(&v);
    word_tokens(&v);
    special_tokens(&v, sp, n_sp, shift, llama);
    int32_t bos = sp[0].id - shift, eos = (llama ? 128001 : 151645) - shift, eot = (llama ? 128009 : 151645) - shift;
    const char *pre = llama ? "llama-bpe" : "qwen2";
    if ((st = hn_gguf_put_str(w, "tokenizer.ggml.model", "gpt2", 4, err)) == HONE_OK &&
        (st = hn_gguf_put_str(w, "tokenizer.ggml.pre", pre, strlen(pre), err)) == HONE_OK &&
        (st = hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", v.token, (uint64_t)v.n, err)) == HONE_OK &&
        (st = hn_gguf_put_array(w, "tokenizer.ggml.token_type", HONE_KV_I32, v.type, (uint64_t)v.n, err)) == HONE_OK &&
        (st = v.n_merge ? hn_gguf_put_str_array(w, "tokenizer.ggml.merges", v.merge, (uint64_t)v.n_merge, err) : HONE_OK) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)bos, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)eos, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.eot_token_id", (uint32_t)eot, err)) == HONE_OK)
        st = hn_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", llama, err);
    vocab_free(&v);
    return st;
}

/* ---- metadata ------------------------------------------------------------------------------ */

#define TRY(x) do { if ((st = (x)) != HONE_OK) return st; } while (0)

hone_status hn_synth_put_shape(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err)
{
    bool llama = !strcmp(s->arch, "llama"), qwen3 = !strcmp(s->arch, "qwen3");
    bool head_keys = qwen3 || (llama && (s->rope_factor != 1 || (int64_t)s->head_dim * s->n_head != s->n_embd));
    char key[96];
    hone_status st;
#define KEY(k) (snprintf(key, sizeof key, "%s." k, s->arch), key)
    TRY(hn_gguf_put_u32(w, KEY("block_count"), (uint32_t)s->n_layer, err));
    TRY(hn_gguf_put_u32(w, KEY("context_length"), (uint32_t)s->n_ctx_train, err));
    TRY(hn_gguf_put_u32(w, KEY("embedding_length"), (uint32_t)s->n_embd, err));
    TRY(hn_gguf_put_u32(w, KEY("feed_forward_length"), (uint32_t)s->n_ff, err));
    TRY(hn_gguf_put_u32(w, KEY("attention.head_count"), (uint32_t)s->n_head, err));
    TRY(hn_gguf_put_u32(w, KEY("attention.head_count_kv"), (uint32_t)s->n_head_kv, err));
    if (head_keys) {
        TRY(hn_gguf_put_u32(w, KEY("attention.key_length"), (uint32_t)s->head_dim, err));
        TRY(hn_gguf_put_u32(w, KEY("attention.value_length"), (uint32_t)s->head_dim, err));
    }
    TRY(hn_gguf_put_f32(w, KEY("attention.layer_norm_rms_epsilon"), s->rms_eps, err));
    TRY(hn_gguf_put_f32(w, KEY("rope.freq_base"), s->rope_base, err));
    if (llama) {
        TRY(hn_gguf_put_u32(w, KEY("rope.dimension_count"), (uint32_t)s->head_dim, err));
        TRY(hn_gguf_put_u32(w, KEY("vocab_size"), (uint32_t)s->n_vocab, err));
    }
#undef KEY
    return HONE_OK;
}

static hone_status put_shape(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err)
{
    hone_status st = hn_synth_put_shape(w, s, err);
    return st == HONE_OK ? put_vocab(w, s, err) : st;
}

static hone_status put_meta(hn_gguf_writer *w, const hn_synth_plan *p, const char *name, const char *type, uint64_t seed, hone_error *err)
{
    const hn_synth_shape *s = &p->shape;
    char title[128];
    hone_status st;
    snprintf(title, sizeof title, "%s (random weights)", name);
    TRY(hn_gguf_put_str(w, "general.architecture", s->arch, strlen(s->arch), err));
    TRY(hn_gguf_put_str(w, "general.type", "model", 5, err));
    TRY(hn_gguf_put_str(w, "general.name", title, strlen(title), err));
    TRY(hn_gguf_put_u32(w, "general.file_type", p->file_type, err));
    TRY(hn_gguf_put_u32(w, "general.quantization_version", 2, err));
    TRY(hn_synth_is_rwkv(s) ? hn_synth_put_rwkv(w, s, err) : put_shape(w, s, err));
    TRY(hn_gguf_put_str(w, "hone.synth.shape", name, strlen(name), err));
    TRY(hn_gguf_put_str(w, "hone.synth.type", type, strlen(type), err));
    return hn_gguf_put_u64(w, "hone.synth.seed", seed, err);
}

#undef TRY

/* ---- filling and writing -------------------------------------------------------------------- */

/* Two buffers: while the pool fills one, chunk 0 of the same job writes the other. */
enum { BATCH_BYTES = 24 << 20, PIECE_BYTES = 2 << 20, MAX_PIECES = 512 };

typedef struct piece { const hn_synth_tensor *t; uint64_t off, n; unsigned char *dst; } piece;
typedef struct batch { unsigned char *buf; int32_t n; uint64_t n_bytes; piece piece[MAX_PIECES]; } batch;

typedef struct job {
    const hn_synth_plan *plan;
    uint64_t seed;
    hn_gguf_writer *w;
    batch *fill, *write; /* n = 0: nothing */
    size_t tensor;       /* where the next batch begins */
    uint64_t off;
    hone_status st;      /* of writing */
    hone_error *err;
} job;

static void next_batch(job *j, batch *b)
{
    uint64_t used = 0;
    b->n = 0;
    b->n_bytes = 0;
    while (j->tensor < j->plan->n && b->n < MAX_PIECES) {
        const hn_synth_tensor *t = &j->plan->t[j->tensor];
        uint64_t n = t->n_bytes - j->off, grain = hn_synth_grain(t->type);
        if (n > PIECE_BYTES) n = PIECE_BYTES / grain * grain;
        if (n > BATCH_BYTES - used) break;
        b->piece[b->n++] = (piece){t, j->off, n, b->buf + used};
        b->n_bytes += n;
        used = (used + n + 63) & ~(uint64_t)63;
        if (used > BATCH_BYTES) used = BATCH_BYTES;
        j->off += n;
        if (j->off == t->n_bytes) { j->off = 0; j->tensor++; }
    }
}

static void write_batch(job *j)
{
    for (int32_t i = 0; i < j->write->n && j->st == HONE_OK; i++)
        j->st = hn_gguf_write_data(j->w, j->write->piece[i].dst, j->write->piece[i].n, j->err);
}

static void run_chunk(void *arg, int64_t chunk, int32_t thread)
{
    job *j = arg;
    if (chunk == 0) { write_batch(j); return; }
    const piece *p = &j->fill->piece[chunk - 1];
    if (p->t->rope_freqs) /* at most a few KiB: always one piece */
        hn_synth_rope_freqs((float *)(void *)p->dst, j->plan->shape.head_dim, j->plan->shape.rope_base, j->plan->shape.rope_factor);
    else
        hn_synth_fill(p->t, hn_synth_key(j->seed, *p->t->values_of ? p->t->values_of : p->t->name), p->off, p->n, p->dst);
}

static hone_status write_tensors(job *j, hn_pool *pool, const char *dst, const hone_progress *pr)
{
    uint64_t total = 0, done = 0;
    for (size_t i = 0; i < j->plan->n; i++) total += j->plan->t[i].n_bytes;
    for (;;) {
        next_batch(j, j->fill);
        if (!j->fill->n && !j->write->n) return HONE_OK;
        hn_pool_run(pool, run_chunk, j, 1 + j->fill->n);
        if (j->st != HONE_OK) return j->st;
        done += j->write->n_bytes;
        batch *t = j->fill;
        j->fill = j->write;
        j->write = t;
        if (pr && pr->fn) pr->fn(pr->arg, done, total);
        if (pr && pr->abort_fn && pr->abort_fn(pr->arg))
            return HN_FAIL(j->err, HONE_E_INTERRUPTED, "%s: interrupted after %llu of %llu bytes; nothing is left on disk", dst,
                           (unsigned long long)done, (unsigned long long)total);
    }
}

static hone_status write_file(const hn_synth_plan *plan, hn_gguf_writer *w, const hone_synth_params *p, const char *dst, const hone_progress *pr, hone_error *err)
{
    hone_status st;
    hn_pool *pool = NULL;
    batch *b = calloc(2, sizeof *b);
    unsigned char *buf = hn_pages_alloc(2 * (size_t)BATCH_BYTES);
    if (!b || !buf) { st = HN_FAIL(err, HONE_E_NOMEM, "%s: buffers of %d MiB", dst, 2 * BATCH_BYTES >> 20); goto end; }
    if ((st = hn_pool_new(&pool, p->n_threads > 0 ? p->n_threads : hn_cpu_count(), err)) != HONE_OK) goto end;
    b[0].buf = buf;
    b[1].buf = buf + BATCH_BYTES;
    job j = {.plan = plan, .seed = p->seed, .w = w, .fill = &b[0], .write = &b[1], .err = err};
    if ((st = hn_gguf_write_begin(w, dst, err)) == HONE_OK && (st = write_tensors(&j, pool, dst, pr)) == HONE_OK)
        st = hn_gguf_write_end(w, err);
end:
    hn_pool_free(pool);
    if (buf) hn_pages_free(buf, 2 * (size_t)BATCH_BYTES);
    free(b);
    return st;
}

static hone_status unknown_preset(const char *name, hone_error *err)
{
    const hone_synth_preset *list;
    const char *names[64];
    size_t n = hone_synth_presets(&list);
    if (n > 64) n = 64;
    for (size_t i = 0; i < n; i++) names[i] = list[i].name;
    const char *near = hn_nearest(name, names, n);
    return HN_FAIL(err, HONE_E_ARG, "unknown preset \"%s\"; %s%s%shone synth --list shows them", HN_ESC(name, strlen(name)),
                   near ? "did you mean " : "", near ? near : "", near ? "? " : "");
}

hone_status hone_synth(const hone_synth_params *p, const char *dst, const hone_progress *pr, hone_error *err)
{
    HN_NEED(err, p, "parameters");
    HN_NEED(err, dst, "the path of the file to write");
    hn_synth_shape from_file;
    const hn_synth_shape *shape = &from_file;
    const char *name = "custom", *type = p->type ? p->type : "Q4_K_M";
    hone_status st;
    if (!p->preset) HN_NEED(err, p->config_path, "a file, or a preset in p->preset: neither is given");
    if (p->preset && p->config_path)
        return HN_FAIL(err, HONE_E_ARG, "synth: both are given; expected either a preset or a configuration file");
    if (p->n_threads < 0) return HN_FAIL(err, HONE_E_ARG, "synth: n_threads is %d, expected 0 or more", p->n_threads);
    const hn_file_use use[] = { { dst, "the output", NULL, HN_FILE_WRITTEN },
                                { p->config_path, "the configuration", NULL, HN_FILE_READ } };
    if ((st = hn_files_apart(use, 2, err)) != HONE_OK) return st;
    if (p->config_path) {
        if ((st = hn_synth_config(&from_file, p->config_path, err)) != HONE_OK) return st;
    } else if (!(shape = hn_synth_preset(p->preset, &name))) {
        return unknown_preset(p->preset, err);
    }
    hn_synth_plan *plan = NULL;
    hn_gguf_writer *w = NULL;
    if ((st = hn_synth_plan_new(&plan, shape, type, err)) != HONE_OK) return st;
    if ((st = hn_gguf_writer_new(&w, err)) != HONE_OK) goto end;
    if ((st = put_meta(w, plan, name, type, p->seed, err)) != HONE_OK) goto end;
    for (size_t i = 0; i < plan->n; i++)
        if ((st = hn_gguf_put_tensor(w, plan->t[i].name, plan->t[i].type, plan->t[i].ne, plan->t[i].n_dim, err)) != HONE_OK) goto end;
    st = write_file(plan, w, p, dst, pr, err);
end:
    hn_gguf_writer_free(w);
    hn_synth_plan_free(plan);
    return st;
}
