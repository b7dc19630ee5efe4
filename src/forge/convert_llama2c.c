/* convert_llama2c: writes a llama2.c checkpoint (karpathy/llama2.c:export.py, the
 * unversioned form) and its tokenizer file as a GGUF of architecture llama. Every size in
 * the header is checked against the file before anything is allocated or read. */
#include "forge/convert.h"

#include "forge/recipe.h"

#include <math.h>
#include <stdlib.h>

enum { HEADER_BYTES = 28 };
#define VERSIONED_MAGIC 0x616b3432u /* "ak42" */

static uint32_t u32_at(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* ---- llama2.c header ------------------------------------------------------------------ */

typedef struct config {
    uint64_t dim, n_ff, n_layer, n_head, n_head_kv, n_vocab, n_ctx, head_dim, kv_dim;
    bool tied;
} config;

static hone_status read_header(config *c, const hn_source *s, const unsigned char *h, hone_error *err)
{
    static const struct {
        const char *name;
        int32_t max;
    } fields[7] = {
        { "dim", 1 << 17 },        { "hidden_dim", 1 << 20 }, { "n_layers", 1 << 10 }, { "n_heads", 1 << 12 },
        { "n_kv_heads", 1 << 12 }, { "vocab_size", 1 << 23 }, { "seq_len", 1 << 24 },
    };
    int64_t v[7];
    for (int i = 0; i < 7; i++) v[i] = (int32_t)u32_at(h + 4 * i);
    c->tied = v[5] > 0;
    if (v[5] < 0) v[5] = -v[5]; /* a separate classifier follows */
    for (int i = 0; i < 7; i++)
        if (v[i] < 1 || v[i] > fields[i].max)
            return HN_FAIL(
                err, HONE_E_FORMAT,
                "%s: not a checkpoint that hone knows: read as a llama2.c header, %s is %d, expected %s1 to %d",
                s->path, fields[i].name, (int)(int32_t)u32_at(h + 4 * i), i == 5 ? "a magnitude of " : "",
                fields[i].max);
    c->dim = (uint64_t)v[0], c->n_ff = (uint64_t)v[1], c->n_layer = (uint64_t)v[2], c->n_head = (uint64_t)v[3];
    c->n_head_kv = (uint64_t)v[4], c->n_vocab = (uint64_t)v[5], c->n_ctx = (uint64_t)v[6];
    if (c->dim % c->n_head || c->dim / c->n_head % 2)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: llama2.c header: dim is %d, expected an even multiple of n_heads = %d",
                       s->path, (int)v[0], (int)v[3]);
    if (c->n_head % c->n_head_kv)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: llama2.c header: n_heads is %d, expected a multiple of n_kv_heads = %d",
                       s->path, (int)v[3], (int)v[4]);
    c->head_dim = c->dim / c->n_head;
    c->kv_dim = c->head_dim * c->n_head_kv;
    return HONE_OK;
}

/* ---- tensors ---------------------------------------------------------------------------- */

typedef struct tensor {
    char name[64];
    hn_type type;
    int32_t n_dim;
    uint64_t ne[2];
    uint64_t off;
} tensor; /* off: in the source */
typedef struct tensors {
    tensor *t;
    size_t n;
} tensors;

/* The arrays of the checkpoint in file order: one tensor a layer, unless layer is false. */
typedef struct array {
    const char *name;
    bool layer;
    uint64_t ne0, ne1, off;
} array;
enum { N_ARRAYS = 12 };

static hone_status lay_out(array a[N_ARRAYS], const config *c, const hn_source *s, hone_error *err)
{
    const array list[N_ARRAYS] = {
        /* gate = w1, down = w2, up = w3; no row order to change */
        { "token_embd.weight", false, c->dim, c->n_vocab, 0 },
        { "attn_norm.weight", true, c->dim, 0, 0 },
        { "attn_q.weight", true, c->dim, c->dim, 0 },
        { "attn_k.weight", true, c->dim, c->kv_dim, 0 },
        { "attn_v.weight", true, c->dim, c->kv_dim, 0 },
        { "attn_output.weight", true, c->dim, c->dim, 0 },
        { "ffn_norm.weight", true, c->dim, 0, 0 },
        { "ffn_gate.weight", true, c->dim, c->n_ff, 0 },
        { "ffn_down.weight", true, c->n_ff, c->dim, 0 },
        { "ffn_up.weight", true, c->dim, c->n_ff, 0 },
        { "output_norm.weight", false, c->dim, 0, 0 },
        { "output.weight", false, c->dim, c->n_vocab, 0 },
    };
    uint64_t pos = HEADER_BYTES;
    for (int i = 0; i < N_ARRAYS; i++) {
        a[i] = list[i];
        uint64_t n = (a[i].ne1 ? a[i].ne1 : 1) * (a[i].layer ? c->n_layer : 1), bytes; /* at most 2^30 */
        if (i == N_ARRAYS - 1) {
            if (!hn_mul_u64(c->n_ctx, c->head_dim * 4, &bytes) || !hn_add_u64(pos, bytes, &pos))
                goto too_large; /* unused RoPE tables */
            if (c->tied) {
                a[i].name = NULL;
                break;
            }
        }
        a[i].off = pos;
        if (!hn_mul_u64(n, a[i].ne0, &bytes) || !hn_mul_u64(bytes, 4, &bytes) || !hn_add_u64(pos, bytes, &pos))
            goto too_large;
    }
    if (pos != s->size)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %llu bytes, but its llama2.c header (dim %llu, hidden_dim %llu, n_layers %llu, n_heads "
                       "%llu, n_kv_heads %llu, "
                       "vocab_size %s%llu, seq_len %llu) needs %llu: %s",
                       s->path, (unsigned long long)s->size, (unsigned long long)c->dim, (unsigned long long)c->n_ff,
                       (unsigned long long)c->n_layer, (unsigned long long)c->n_head, (unsigned long long)c->n_head_kv,
                       c->tied ? "" : "-", (unsigned long long)c->n_vocab, (unsigned long long)c->n_ctx,
                       (unsigned long long)pos,
                       s->size < pos ? "truncated, or not such a checkpoint" : "longer than such a checkpoint");
    return HONE_OK;
too_large:
    return HN_FAIL(err, HONE_E_FORMAT, "%s: the sizes in its llama2.c header exceed any file", s->path);
}

static void add(tensors *ts, const array *a, int64_t layer, uint64_t layer_bytes)
{
    tensor *t = &ts->t[ts->n++];
    *t = (tensor){ .n_dim = a->ne1 ? 2 : 1,
                   .ne = { a->ne0, a->ne1 ? a->ne1 : 1 },
                   .off = a->off + (layer < 0 ? 0 : (uint64_t)layer * layer_bytes) };
    if (layer < 0) snprintf(t->name, sizeof t->name, "%s", a->name);
    else snprintf(t->name, sizeof t->name, "blk.%d.%s", (int)layer, a->name);
}

/* Output order: outside layers by name, then layers ascending, by name within each. */
static hone_status list_tensors(tensors *ts, const array *a, const config *c, hone_error *err)
{
    static const int global[] = { 11, 10, 0 }, in_layer[] = { 3, 1, 5, 2, 4, 8, 7, 6, 9 };
    ts->t = calloc(3 + 9 * c->n_layer, sizeof *ts->t);
    if (!ts->t) return HN_FAIL(err, HONE_E_NOMEM, "list of tensors");
    for (int i = 0; i < 3; i++)
        if (a[global[i]].name) add(ts, &a[global[i]], -1, 0);
    for (uint64_t il = 0; il < c->n_layer; il++)
        for (int i = 0; i < 9; i++) {
            const array *x = &a[in_layer[i]];
            add(ts, x, (int64_t)il, 4 * x->ne0 * (x->ne1 ? x->ne1 : 1));
        }
    return HONE_OK;
}

static hone_status choose_types(tensors *ts, const config *c, hn_typing *y, hone_error *err)
{
    const hn_mix_model mix = { .arch = "llama",
                               .n_layer = (int32_t)c->n_layer,
                               .n_head = (int32_t)c->n_head,
                               .n_head_kv = (int32_t)c->n_head_kv };
    hn_typed *list = calloc(ts->n + 1, sizeof *list);
    if (!list) return HN_FAIL(err, HONE_E_NOMEM, "list of tensors");
    for (size_t i = 0; i < ts->n; i++)
        list[i] = (hn_typed){ { ts->t[i].name, strlen(ts->t[i].name) }, ts->t[i].ne, ts->t[i].n_dim, HN_F32 };
    hone_status st = hn_typing_of(y, &mix, list, ts->n, err);
    for (size_t i = 0; i < ts->n && st == HONE_OK; i++) {
        tensor *t = &ts->t[i];
        t->type = t->n_dim == 1 ? HN_F32 : list[i].type;
        st = hn_typing_check(y, t->name, t->type, t->ne[0], err);
    }
    free(list);
    return st;
}

/* ---- tokenizer file -------------------------------------------------------------------------- */

/* i32 longest token, then for each token f32 score, i32 length, bytes. Spaces stand for
 * U+2581, which GGUF wants; ids 1 and 2 are "\n<s>\n" and "\n</s>\n", stored as <s>, </s>. */
typedef struct pieces {
    char *file, *text;
    hone_str *token;
    float *score;
    int32_t *type;
} pieces;

static void free_pieces(pieces *p)
{
    free(p->file);
    free(p->text);
    free(p->token);
    free(p->score);
    free(p->type);
}

static bool is_byte_token(const char *s, size_t n)
{
    if (n != 6 || memcmp(s, "<0x", 3) || s[5] != '>') return false;
    for (int i = 3; i < 5; i++)
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'A' && s[i] <= 'F'))) return false;
    return true;
}

static hone_status load_pieces(pieces *p, const hn_source *s, uint64_t n_vocab, const char *ckpt, hone_error *err)
{
    enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 };
    hone_status st;
    if (s->size < 4 + 9 * n_vocab || s->size > (uint64_t)1 << 28) /* at least score, length and one byte each */
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %llu bytes, expected a llama2.c tokenizer of the %llu tokens of %s (%llu bytes and more)",
                       s->path, (unsigned long long)s->size, (unsigned long long)n_vocab, ckpt,
                       (unsigned long long)(4 + 9 * n_vocab));
    p->file = malloc(s->size);
    p->text = malloc(3 * s->size); /* a space grows to three bytes */
    p->token = calloc(n_vocab, sizeof *p->token);
    p->score = calloc(n_vocab, sizeof *p->score);
    p->type = calloc(n_vocab, sizeof *p->type);
    if (!p->file || !p->text || !p->token || !p->score || !p->type)
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu tokens", s->path, (unsigned long long)n_vocab);
    if ((st = hn_source_read(s, 0, p->file, s->size, err)) != HONE_OK) return st;
    uint64_t pos = 4;
    char *w = p->text;
    for (uint64_t id = 0; id < n_vocab; id++) {
        if (s->size - pos < 8)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: ends after %llu tokens, expected the %llu of %s", s->path,
                           (unsigned long long)id, (unsigned long long)n_vocab, ckpt);
        float score;
        int32_t len;
        memcpy(&score, p->file + pos, 4);
        memcpy(&len, p->file + pos + 4, 4);
        pos += 8;
        if (len < 1 || (uint64_t)len > s->size - pos)
            return HN_FAIL(
                err, HONE_E_FORMAT,
                "%s: token %llu: length is %d, expected 1 to the %llu bytes left; not a llama2.c tokenizer, or damaged",
                s->path, (unsigned long long)id, len, (unsigned long long)(s->size - pos));
        if (!isfinite(score))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: token %llu: its score is not a number", s->path,
                           (unsigned long long)id);
        const char *t = p->file + pos;
        size_t n = (size_t)len;
        pos += n;
        if ((id == 1 || id == 2) && n > 2 && t[0] == '\n' && t[n - 1] == '\n') t++, n -= 2;
        char *start = w;
        for (size_t i = 0; i < n; i++) {
            if (t[i] != ' ') {
                *w++ = t[i];
                continue;
            }
            memcpy(w, "\xE2\x96\x81", 3);
            w += 3;
        }
        p->token[id] = (hone_str){ start, (size_t)(w - start) };
        p->score[id] = score;
        p->type[id] = id == 0 ? UNKNOWN : id <= 2 ? CONTROL : is_byte_token(t, n) ? BYTE : NORMAL;
    }
    if (pos != s->size)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %llu bytes follow the %llu tokens that %s has, expected none: they do not belong together",
                       s->path, (unsigned long long)(s->size - pos), (unsigned long long)n_vocab, ckpt);
    return HONE_OK;
}

static hone_status put_tokenizer(hn_gguf_writer *w, const char *path, uint64_t n_vocab, const char *ckpt,
                                 hone_error *err)
{
    hn_source s;
    pieces p = { 0 };
    hone_status st;
    if ((st = hn_source_open(&s, path, err)) != HONE_OK) return st;
    if ((st = load_pieces(&p, &s, n_vocab, ckpt, err)) == HONE_OK &&
        (st = hn_gguf_put_str(w, "tokenizer.ggml.model", "llama", 5, err)) == HONE_OK &&
        (st = hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", p.token, n_vocab, err)) == HONE_OK &&
        (st = hn_gguf_put_array(w, "tokenizer.ggml.scores", HONE_KV_F32, p.score, n_vocab, err)) == HONE_OK &&
        (st = hn_gguf_put_array(w, "tokenizer.ggml.token_type", HONE_KV_I32, p.type, n_vocab, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 1, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 2, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", 0, err)) == HONE_OK &&
        (st = hn_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true, err)) == HONE_OK &&
        (st = hn_gguf_put_bool(w, "tokenizer.ggml.add_eos_token", false, err)) == HONE_OK)
        st = hn_gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", true, err);
    free_pieces(&p);
    hn_source_close(&s);
    return st;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static hone_status put_meta(hn_gguf_writer *w, const config *c, uint32_t file_type, const char *path, hone_error *err)
{
    hone_status st;
#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)
    TRY(hn_gguf_put_str(w, "general.architecture", "llama", 5, err));
    TRY(hn_gguf_put_str(w, "general.type", "model", 5, err));
    TRY(hn_put_name(w, path, err));
    TRY(hn_gguf_put_u32(w, "general.file_type", file_type, err));
    TRY(hn_gguf_put_u32(w, "general.quantization_version", 2, err));
    TRY(hn_gguf_put_u32(w, "llama.block_count", (uint32_t)c->n_layer, err));
    TRY(hn_gguf_put_u32(w, "llama.context_length", (uint32_t)c->n_ctx, err));
    TRY(hn_gguf_put_u32(w, "llama.embedding_length", (uint32_t)c->dim, err));
    TRY(hn_gguf_put_u32(w, "llama.feed_forward_length", (uint32_t)c->n_ff, err));
    TRY(hn_gguf_put_u32(w, "llama.attention.head_count", (uint32_t)c->n_head, err));
    TRY(hn_gguf_put_u32(w, "llama.attention.head_count_kv", (uint32_t)c->n_head_kv, err));
    TRY(hn_gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f, err));
    TRY(hn_gguf_put_u32(w, "llama.rope.dimension_count", (uint32_t)c->head_dim, err));
    TRY(hn_gguf_put_f32(w, "llama.rope.freq_base", 10000, err));
    TRY(hn_gguf_put_u32(w, "llama.vocab_size", (uint32_t)c->n_vocab, err));
#undef TRY
    return HONE_OK;
}

static hone_status read_values(void *arg, const hn_recipe_piece *p, float *x, void *scratch, hone_error *err)
{
    const tensor *t = p->t->what;
    uint64_t row = 4 * t->ne[0];
    return hn_source_read(arg, t->off + p->row * row, x, p->n_row * row, err);
}

static hone_status fault(void *arg, const hn_recipe_tensor *t, uint64_t i, hn_recipe_fault what, hone_error *err)
{
    const hn_source *s = arg;
    const tensor *o = t->what;
    if (what == HN_FAULT_NAN || what == HN_FAULT_INFINITE)
        return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: element %llu is %s, expected a finite number", s->path, o->name,
                       (unsigned long long)i, what == HN_FAULT_NAN ? "NaN" : "infinite");
    return HN_FAIL(err, HONE_E_NUMERIC,
                   "%s: %s: element %llu is, or stands beside, a number too large for %s; --type F32 holds it", s->path,
                   o->name, (unsigned long long)i, hn_type_get(o->type)->name);
}

static hone_status write_tensors(hn_gguf_writer *w, const hn_convert *a, const hn_source *s, const tensors *ts,
                                 hone_error *err)
{
    static const hn_recipe_source in_rows = { .values = read_values, .fault = fault };
    hn_recipe_tensor *t = calloc(ts->n + 1, sizeof *t);
    hn_recipe r = { .dst = a->dst, .t = t, .n = ts->n, .arg = (void *)(uintptr_t)s, .pr = a->pr };
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %zu tensors", a->dst, ts->n);
    for (size_t i = 0; i < ts->n; i++) {
        const tensor *o = &ts->t[i];
        t[i] = (hn_recipe_tensor){ .name = { o->name, strlen(o->name) },
                                   .type = o->type,
                                   .n_dim = o->n_dim,
                                   .ne = { o->ne[0], o->ne[1], 1, 1 },
                                   .source = &in_rows,
                                   .what = o };
    }
    hone_status st = hn_recipe_write(&r, w, err);
    free(t);
    return st;
}

hone_status hn_convert_llama2c(const hn_convert *a, const hn_source *s, hone_error *err)
{
    unsigned char h[HEADER_BYTES];
    size_t n = s->size < sizeof h ? (size_t)s->size : sizeof h;
    config c = { 0 };
    array arrays[N_ARRAYS];
    tensors ts = { 0 };
    hn_gguf_writer *w = NULL;
    hn_typing y;
    hone_status st;
    if ((st = hn_source_read(s, 0, h, n, err)) != HONE_OK) return st;
    if (n >= 8 && u32_at(h) == VERSIONED_MAGIC)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: a versioned llama2.c export (magic 0x616b3432, version %u); expected the unversioned form: "
                       "export.py --version 0",
                       s->path, u32_at(h + 4));
    if (n < HEADER_BYTES)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes, expected a llama2.c checkpoint, whose header alone has %d",
                       s->path, (unsigned long long)s->size, HEADER_BYTES);
    if ((st = read_header(&c, s, h, err)) != HONE_OK || (st = lay_out(arrays, &c, s, err)) != HONE_OK) return st;
    if ((st = hn_typing_begin(&y, a->type ? a->type : "F32", "", err)) != HONE_OK) return st;
    if ((st = list_tensors(&ts, arrays, &c, err)) == HONE_OK && (st = choose_types(&ts, &c, &y, err)) == HONE_OK &&
        (st = hn_gguf_writer_new(&w, err)) == HONE_OK && (st = put_meta(w, &c, y.file_type, s->path, err)) == HONE_OK &&
        (!a->tokenizer || (st = put_tokenizer(w, a->tokenizer, c.n_vocab, s->path, err)) == HONE_OK))
        st = write_tensors(w, a, s, &ts, err);
    hn_gguf_writer_free(w);
    free(ts.t);
    return st;
}
