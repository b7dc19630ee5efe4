/* synth: writes a GGUF of a real model's exact shape with random weights. Owns the
 * tensor list, its storage types and spreads, the metadata and an invented vocabulary;
 * values are synth_fill.c's, the file is the recipe's. */
#include "base/file.h"
#include "base/floats.h"
#include "forge/synth.h"

#include "base/options.h"
#include "forge/recipe.h"

#include <stdlib.h>

/* ---- plan --------------------------------------------------------------------------- */

struct hn_synth_planner {
    hn_synth_plan *p;
    size_t cap;
    hone_error *err;
};

hone_status hn_synth_add(hn_synth_planner *b, const char *name, int32_t layer, hn_synth_kind kind, const uint64_t ne[4],
                         float mean, float std)
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
    *t = (hn_synth_tensor){ .kind = kind, .ne = { 1, 1, 1, 1 }, .mean = mean, .std = std };
    for (; t->n_dim < 4 && ne[t->n_dim]; t->n_dim++) t->ne[t->n_dim] = ne[t->n_dim];
    if (layer < 0) snprintf(t->name, sizeof t->name, "%s", name);
    else snprintf(t->name, sizeof t->name, "blk.%d.%s", layer, name);
    p->n++;
    return HONE_OK;
}

void hn_synth_mark_copy(hn_synth_planner *b, const char *of)
{
    if (b->p->n) snprintf(b->p->t[b->p->n - 1].values_of, sizeof b->p->t->values_of, "%s", of);
}

hone_status hn_synth_add_rope_freqs(hn_synth_planner *b, const uint64_t ne[4], float base, float factor)
{
    hone_status st = hn_synth_add(b, "rope_freqs.weight", -1, HN_SYNTH_F32, ne, 0, 0);
    if (st == HONE_OK) b->p->t[b->p->n - 1].base = base, b->p->t[b->p->n - 1].factor = factor;
    return st;
}

static hn_type type_of(const hn_synth_tensor *t, hn_type base, hn_type mixed)
{
    switch (t->kind) {
    case HN_SYNTH_F32: return HN_F32;
    case HN_SYNTH_MXFP4: return HN_MXFP4;
    case HN_SYNTH_LOWRANK: return hn_is_float(base) ? base : HN_F16;
    default: return mixed;
    }
}

/* Can such a tensor be filled? unit: what was measured of each type, 0: not yet. */
static hone_status fits(hn_synth_tensor *t, const char *type, float unit[HN_TYPE_COUNT], hone_error *err)
{
    const hn_type_info *ti = hn_type_get(t->type);
    if (!ti || !hn_tensor_nbytes(ti, t->ne, t->n_dim, &t->n_bytes))
        return HN_FAIL(err, HONE_E_ARG, "%s: rows of %llu elements do not fit %s, found while planning %s", t->name,
                       (unsigned long long)t->ne[0], ti ? ti->name : "an unknown type", type);
    if (unit[t->type] == 0) unit[t->type] = hn_synth_unit(t->type);
    if (unit[t->type] < 0) return HN_FAIL(err, HONE_E_NOMEM, "measuring %s blocks", ti->name);
    if (unit[t->type] == 0)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: synth cannot fill %s, which %s asks for", t->name, ti->name, type);
    t->unit = unit[t->type];
    return HONE_OK;
}

static hone_status choose_types(hn_synth_plan *p, hn_typing *y, const hone_model *m, hone_error *err)
{
    const hn_mix_model mix = hn_typing_model(m);
    float unit[HN_TYPE_COUNT] = { 0 };
    hn_typed *list = calloc(p->n + 1, sizeof *list);
    if (!list) return HN_FAIL(err, HONE_E_NOMEM, "list of %zu tensors", p->n);
    for (size_t i = 0; i < p->n; i++)
        list[i] = (hn_typed){ { p->t[i].name, strlen(p->t[i].name) }, p->t[i].ne, p->t[i].n_dim, HN_F32 };
    hone_status st = hn_typing_of(y, &mix, list, p->n, err);
    for (size_t i = 0; i < p->n && st == HONE_OK; i++) {
        p->t[i].type = type_of(&p->t[i], y->base, list[i].type);
        st = fits(&p->t[i], y->name, unit, err);
    }
    free(list);
    p->file_type = y->file_type;
    return st;
}

hone_status hn_synth_plan_new(hn_synth_plan **out, const hn_synth_shape *s, const char *type, hone_error *err)
{
    static const char expected[] =
        "; expected F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0 or another mixture name";
    *out = NULL;
    hn_synth_plan *p = calloc(1, sizeof *p);
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "synth plan");
    p->shape = *s;
    hn_synth_numbers n;
    hn_typing y;
    hn_synth_planner b = { .p = p, .err = err };
    hone_status st = hn_synth_numbers_of(&n, s, err);
    if (st != HONE_OK) {
        hn_synth_plan_free(p);
        return st;
    }
    st = hn_typing_begin(&y, type, expected, err);
    if (st == HONE_OK) st = hn_synth_add_all(&b, s, &n);
    if (st == HONE_OK) st = choose_types(p, &y, n.model, err);
    hn_synth_numbers_free(&n);
    if (st != HONE_OK) {
        hn_synth_plan_free(p);
        return st;
    }
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
typedef struct special {
    int32_t id;
    const char *text;
    int32_t type;
} special;
enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 };

static const special llama_special[] = {
    { 128000, "<|begin_of_text|>", CONTROL },   { 128001, "<|end_of_text|>", CONTROL },
    { 128006, "<|start_header_id|>", CONTROL }, { 128007, "<|end_header_id|>", CONTROL },
    { 128009, "<|eot_id|>", CONTROL },
};
static const special qwen_special[] = {
    { 151643, "<|endoftext|>", CONTROL },      { 151644, "<|im_start|>", CONTROL },
    { 151645, "<|im_end|>", CONTROL },         { 151646, "<|object_ref_start|>", CONTROL },
    { 151647, "<|object_ref_end|>", CONTROL }, { 151648, "<|box_start|>", CONTROL },
    { 151649, "<|box_end|>", CONTROL },        { 151650, "<|quad_start|>", CONTROL },
    { 151651, "<|quad_end|>", CONTROL },       { 151652, "<|vision_start|>", CONTROL },
    { 151653, "<|vision_end|>", CONTROL },     { 151654, "<|vision_pad|>", CONTROL },
    { 151655, "<|image_pad|>", CONTROL },      { 151656, "<|video_pad|>", CONTROL },
    { 151657, "<tool_call>", USER_DEFINED },   { 151658, "</tool_call>", USER_DEFINED },
    { 151659, "<|fim_prefix|>", CONTROL },     { 151660, "<|fim_middle|>", CONTROL },
    { 151661, "<|fim_suffix|>", CONTROL },     { 151662, "<|fim_pad|>", CONTROL },
    { 151663, "<|repo_name|>", CONTROL },      { 151664, "<|file_sep|>", CONTROL },
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

static void set_token(vocab *v, int32_t id, int32_t type)
{
    v->type[id] = type;
    v->token[id] = (hone_str){ v->text[id], strlen(v->text[id]) };
}

/* UTF-8 of the character that stands for byte b in byte-level BPE. */
static void byte_symbol(char dst[4], int b)
{
    int c = b;
    if (b <= 0x20) c = 0x100 + b;
    else if (b >= 0x7F && b <= 0xA0) c = 0x121 + b - 0x7F;
    else if (b == 0xAD) c = 0x143;
    if (c < 0x80) {
        dst[0] = (char)c;
        dst[1] = 0;
        return;
    }
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
        if (w >= count) {
            w -= count;
            continue;
        }
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
        v->merge[v->n_merge++] = (hone_str){ m, strlen(m) };
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
    if (!strcmp(s->arch, "gemma3") || !strcmp(s->arch, "gemma-embedding"))
        return hn_synth_put_pieces(w, s->n_vocab, hn_synth_key_of(s, "pooling_type", 0) > 0, err);
    if (hn_synth_has("bert nomic-bert nomic-bert-moe jina-bert-v3 modern-bert", s->arch))
        return hn_synth_put_wordpieces(w, s->n_vocab, err);
    bool llama = hn_synth_has("llama llama-embed eurobert", s->arch);
    const special *sp = llama ? llama_special : qwen_special;
    int n_sp = llama ? (int)(sizeof llama_special / sizeof *sp) : (int)(sizeof qwen_special / sizeof *sp);
    int32_t real_end = sp[n_sp - 1].id + 1;
    if (s->n_vocab < N_BYTE + 2 + real_end - sp[0].id) return HONE_OK;  /* too small for the bytes: no tokenizer */
    int32_t shift = s->n_vocab >= real_end ? 0 : real_end - s->n_vocab; /* a smaller vocabulary ends with them */
    vocab v = { .n = s->n_vocab, .n_word_end = sp[0].id - shift };
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
        (st = v.n_merge ? hn_gguf_put_str_array(w, "tokenizer.ggml.merges", v.merge, (uint64_t)v.n_merge, err)
                        : HONE_OK) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)bos, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)eos, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.eot_token_id", (uint32_t)eot, err)) == HONE_OK)
        st = hn_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", llama, err);
    if (st == HONE_OK &&
        hn_synth_key_of(s, "pooling_type", 0) == HN_POOL_LAST) /* which is then the same for all texts */
        st = hn_gguf_put_bool(w, "tokenizer.ggml.add_eos_token", true, err);
    vocab_free(&v);
    return st;
}

/* ---- metadata ------------------------------------------------------------------------------ */

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

hone_status hn_synth_put_shape(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err)
{
    if (s->keys) return hn_synth_put_keys(w, s, err);
    bool llama = !strcmp(s->arch, "llama"), qwen3 = !strcmp(s->arch, "qwen3"), gemma3 = !strcmp(s->arch, "gemma3");
    bool gpt_oss = !strcmp(s->arch, "gpt-oss");
    bool head_keys = qwen3 || gemma3 || s->n_expert ||
                     (llama && (s->rope_factor != 1 || (int64_t)s->head_dim * s->n_head != s->n_embd));
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
    if (s->n_expert) {
        TRY(hn_gguf_put_u32(w, KEY("expert_count"), (uint32_t)s->n_expert, err));
        TRY(hn_gguf_put_u32(w, KEY("expert_used_count"), (uint32_t)s->n_used, err));
        TRY(hn_gguf_put_u32(w, KEY("expert_feed_forward_length"), (uint32_t)s->n_ff_exp, err));
    }
    if (gpt_oss) {
        TRY(hn_gguf_put_str(w, KEY("rope.scaling.type"), "yarn", 4, err));
        TRY(hn_gguf_put_f32(w, KEY("rope.scaling.factor"), s->rope_factor, err));
        TRY(hn_gguf_put_u32(w, KEY("rope.scaling.original_context_length"),
                            (uint32_t)((float)s->n_ctx_train / s->rope_factor), err));
    }
    if (gemma3 || gpt_oss) TRY(hn_gguf_put_u32(w, KEY("attention.sliding_window"), (uint32_t)s->window, err));
    if (gemma3 && s->rope_factor != 1) {
        TRY(hn_gguf_put_str(w, KEY("rope.scaling.type"), "linear", 6, err));
        TRY(hn_gguf_put_f32(w, KEY("rope.scaling.factor"), s->rope_factor, err));
    }
#undef KEY
    return HONE_OK;
}

static hone_status put_shape(hn_gguf_writer *w, const hn_synth_shape *s, hone_error *err)
{
    bool rwkv = hn_synth_is_rwkv(s);
    hone_status st = rwkv ? hn_synth_put_rwkv(w, s, err) : hn_synth_put_shape(w, s, err);
    if (st != HONE_OK) return st;
    return rwkv ? hn_synth_put_world(w, s->n_vocab, err) : put_vocab(w, s, err);
}

static hone_status put_meta(hn_gguf_writer *w, const hn_synth_plan *p, const char *name, const char *type,
                            uint64_t seed, hone_error *err)
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
    TRY(put_shape(w, s, err));
    TRY(hn_gguf_put_str(w, "hone.synth.shape", name, strlen(name), err));
    TRY(hn_gguf_put_str(w, "hone.synth.type", type, strlen(type), err));
    return hn_gguf_put_u64(w, "hone.synth.seed", seed, err);
}

#undef TRY

/* ---- filling and writing -------------------------------------------------------------------- */

typedef struct work {
    const hn_synth_plan *plan;
    uint64_t seed;
} work;

static hone_status fill(void *arg, hn_recipe_piece *p, void *scratch, hone_error *err)
{
    const work *k = arg;
    const hn_synth_tensor *t = p->t->what;
    if (t->base != 0) /* at most a few KiB: always one piece */
        hn_synth_rope_freqs(p->out, 2 * (int32_t)t->ne[0], t->base, t->factor);
    else hn_synth_fill(t, hn_synth_key(k->seed, *t->values_of ? t->values_of : t->name), p->at, p->n_bytes, p->out);
    return HONE_OK;
}

hone_status hn_synth_write(const hn_synth_plan *plan, hn_gguf_writer *w, uint64_t seed, int32_t n_threads,
                           const char *dst, const hone_progress *pr, hone_error *err)
{
    static const hn_recipe_source random = { .bytes = fill };
    work k = { plan, seed };
    hn_recipe_tensor *t = calloc(plan->n + 1, sizeof *t);
    hn_recipe r = { .dst = dst, .t = t, .n = plan->n, .arg = &k, .n_threads = n_threads, .pr = pr };
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %zu tensors", dst, plan->n);
    for (size_t i = 0; i < plan->n; i++) {
        const hn_synth_tensor *o = &plan->t[i];
        t[i] = (hn_recipe_tensor){ .name = { o->name, strlen(o->name) },
                                   .type = o->type,
                                   .n_dim = o->n_dim,
                                   .ne = { o->ne[0], o->ne[1], o->ne[2], o->ne[3] },
                                   .source = &random,
                                   .what = o,
                                   .unit_bytes = hn_synth_grain(o->type) };
    }
    hone_status st = hn_recipe_write(&r, w, err);
    if (st == HONE_E_INTERRUPTED)
        st = HN_FAIL(err, st, "%s: interrupted after %llu of %llu bytes; nothing is left on disk", dst,
                     (unsigned long long)r.done, (unsigned long long)r.total);
    free(t);
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
    return HN_FAIL(err, HONE_E_ARG, "unknown preset \"%s\"; %s%s%shone synth --list shows them",
                   HN_ESC(name, strlen(name)), near ? "did you mean " : "", near ? near : "", near ? "? " : "");
}

hone_status hone_synth(const hone_synth_params *p, const char *dst, const hone_progress *pr, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, p, "parameters");
    HN_NEED(err, dst, "the path of the file to write");
    hn_synth_shape from_file = { 0 };
    const hn_synth_shape *shape = &from_file;
    char part[96];
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
    if (p->n_layer < 0 || p->n_layer > shape->n_layer) {
        st = HN_FAIL(err, HONE_E_ARG, "synth: n_layer is %d, expected 1 to the %d of %s, or 0 for all", p->n_layer,
                     shape->n_layer, name);
        hn_synth_shape_free(&from_file);
        return st;
    }
    if (p->n_layer) {
        from_file = *shape;
        from_file.n_cut = shape->n_layer - p->n_layer;
        from_file.n_layer = p->n_layer;
        shape = &from_file;
        snprintf(part, sizeof part, "%s, %d layers", name, p->n_layer);
        name = part;
    }
    hn_synth_plan *plan = NULL;
    hn_gguf_writer *w = NULL;
    st = hn_synth_plan_new(&plan, shape, type, err);
    if (st == HONE_OK && (st = hn_gguf_writer_new(&w, err)) == HONE_OK &&
        (st = put_meta(w, plan, name, type, p->seed, err)) == HONE_OK)
        st = hn_synth_write(plan, w, p->seed, p->n_threads, dst, pr, err);
    hn_gguf_writer_free(w);
    hn_synth_plan_free(plan);
    hn_synth_shape_free(&from_file);
    return st;
}
