/* init: see init.h. Owns the values a training begins with and the files of what it ends
 * with; refuses to know gradients. */
#include "base/file.h"
#include "train/init.h"

#include "model/convert.h"
#include "model/synth.h"

#include <math.h>

#define TRY(x) do { if ((st = (x)) != HONE_OK) return st; } while (0)

/* ---- before ------------------------------------------------------------------------------------- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

static void set_values(hn_synth_plan *plan)
{
    float std = 0.02f, out = std / sqrtf(2 * (float)plan->shape.n_layer);
    for (size_t i = 0; i < plan->n; i++) {
        hn_synth_tensor *t = &plan->t[i];
        bool norm = ends_with(t->name, "_norm.weight"), residual = ends_with(t->name, "attn_output.weight") || ends_with(t->name, "ffn_down.weight");
        t->mean = norm;
        t->std = t->n_dim < 2 ? 0 : residual ? out : std;
    }
}

/* The tokenizer.* entries of a file. */
static hone_status put_tokenizer(hn_gguf_writer *w, const hn_gguf *g, hone_error *err)
{
    uint64_t n = hn_gguf_n_kv(g), k = 0;
    char **except = calloc((size_t)n + 1, sizeof *except);
    hone_status st = except ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: metadata", hn_gguf_path(g));
    for (uint64_t i = 0; i < n && st == HONE_OK; i++) {
        hone_kv kv;
        hn_gguf_kv(g, i, &kv);
        if (kv.key.len > 10 && memcmp(kv.key.ptr, "tokenizer.", 10) == 0) continue;
        if (!(except[k++] = strndup(kv.key.ptr, kv.key.len))) st = HN_FAIL(err, HONE_E_NOMEM, "%s: metadata", hn_gguf_path(g));
    }
    if (st == HONE_OK) st = hn_gguf_put_all(w, g, (const char *const *)except, err);
    for (uint64_t i = 0; except && i < k; i++) free(except[i]);
    free(except);
    return st;
}

static hone_status put_init_meta(hn_gguf_writer *w, const hn_init *p, const hn_synth_shape *s, const char *dst, hone_error *err)
{
    hone_status st;
    TRY(hn_gguf_put_str(w, "general.architecture", s->arch, strlen(s->arch), err));
    TRY(hn_gguf_put_str(w, "general.type", "model", 5, err));
    TRY(p->name ? hn_gguf_put_str(w, "general.name", p->name, strlen(p->name), err) : hn_put_name(w, dst, err));
    TRY(hn_gguf_put_u32(w, "general.file_type", 0, err));
    TRY(hn_gguf_put_u32(w, "general.quantization_version", 2, err));
    TRY(hn_synth_put_shape(w, s, err));
    return p->bpe ? hn_bpe_put(w, p->bpe, p->bos, p->eos, p->add_bos, err) : put_tokenizer(w, p->tokenizer->file, err);
}

enum { CHUNK = 1 << 18 }; /* elements; bytes are then a multiple of what hn_synth_fill wants */

static hone_status write_init(hn_gguf_writer *w, const hn_synth_plan *plan, uint64_t seed, const char *dst, hone_error *err)
{
    hone_status st = hn_gguf_write_begin(w, dst, err);
    float *x = malloc(CHUNK * sizeof *x);
    if (!x && st == HONE_OK) st = HN_FAIL(err, HONE_E_NOMEM, "%s: buffer of %d values", dst, CHUNK);
    for (size_t i = 0; i < plan->n && st == HONE_OK; i++) {
        const hn_synth_tensor *t = &plan->t[i];
        for (uint64_t at = 0, n; at < t->n_bytes && st == HONE_OK; at += n) {
            n = t->n_bytes - at < CHUNK * sizeof *x ? t->n_bytes - at : CHUNK * sizeof *x;
            if (t->rope_freqs) hn_synth_rope_freqs(x, plan->shape.head_dim, plan->shape.rope_base, plan->shape.rope_factor);
            else hn_synth_fill(t, hn_synth_key(seed, t->name), at, n, x);
            st = hn_gguf_write_data(w, x, n, err);
        }
    }
    free(x);
    return st == HONE_OK ? hn_gguf_write_end(w, err) : st;
}

hone_status hn_init_model(const char *dst, const hn_init *p, hone_error *err)
{
    const hn_vocab *v = NULL;
    hn_synth_shape shape;
    hn_synth_plan *plan = NULL;
    hn_gguf_writer *w = NULL;
    hone_status st;
    if (!p->bpe == !p->tokenizer) return HN_FAIL(err, HONE_E_ARG, "%s: expected one tokenizer, a new one or a model's", dst);
    if (p->tokenizer) TRY(hn_model_vocab(p->tokenizer, &v, err));
    TRY(hn_synth_config_for(&shape, p->config, p->bpe ? p->bpe->n : hn_vocab_size(v), err));
    if (hn_synth_is_rwkv(&shape)) return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: arch is %s; hone trains llama, qwen2 and qwen3", p->config, shape.arch);
    st = hn_synth_plan_new(&plan, &shape, "F32", err);
    if (st == HONE_OK) st = hn_gguf_writer_new(&w, err);
    if (st == HONE_OK) st = put_init_meta(w, p, &shape, dst, err);
    if (st == HONE_OK) set_values(plan);
    for (size_t i = 0; st == HONE_OK && i < plan->n; i++) st = hn_gguf_put_tensor(w, plan->t[i].name, HN_F32, plan->t[i].ne, plan->t[i].n_dim, err);
    if (st == HONE_OK) st = write_init(w, plan, p->seed, dst, err);
    hn_gguf_writer_free(w);
    hn_synth_plan_free(plan);
    return st;
}

/* ---- after ---------------------------------------------------------------------------------------- */

typedef struct tensor {
    const hn_gguf_tensor *src;
    const hn_param *param; /* NULL: not trained */
    hn_type type;
    int64_t layer;         /* -1: outside */
} tensor;

/* N of "blk.N.…"; what follows a name in the file is no part of it. */
static int64_t layer_of(hone_str name)
{
    int64_t il = 0;
    if (name.len <= 4 || memcmp(name.ptr, "blk.", 4) != 0) return -1;
    for (size_t i = 4; i < name.len && name.ptr[i] >= '0' && name.ptr[i] <= '9' && il < 1 << 24; i++)
        il = 10 * il + (name.ptr[i] - '0');
    return il;
}

static int by_layer(const void *a, const void *b)
{
    const tensor *x = *(const tensor *const *)a, *y = *(const tensor *const *)b;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    size_t n = x->src->name.len < y->src->name.len ? x->src->name.len : y->src->name.len;
    int c = memcmp(x->src->name.ptr, y->src->name.ptr, n);
    return c ? c : (x->src->name.len > y->src->name.len) - (x->src->name.len < y->src->name.len);
}

static uint64_t elements(const hn_gguf_tensor *t) { return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; }

static hone_status find_params(tensor *t, uint64_t n, const hone_model *base, const hn_trained *p, hone_error *err)
{
    for (int32_t i = 0; i < p->n_param; i++) {
        const hn_param *x = p->param[i];
        tensor *found = NULL;
        for (uint64_t k = 0; k < n && !found; k++)
            if (t[k].src->name.len == strlen(x->name) && memcmp(t[k].src->name.ptr, x->name, t[k].src->name.len) == 0) found = &t[k];
        if (!found) return HN_FAIL(err, HONE_E_ARG, "%s: no tensor \"%s\", which was trained", base->path, x->name);
        if (found->param) return HN_FAIL(err, HONE_E_ARG, "%s: tensor \"%s\" is given twice", base->path, x->name);
        if (x->rows < 1 || x->cols < 1 || (uint64_t)x->rows * (uint64_t)x->cols != elements(found->src) ||
            (found->src->n_dim > 1 && (uint64_t)x->cols != found->src->ne[0]))
            return HN_FAIL(err, HONE_E_ARG, "%s: tensor \"%s\" has rows of %llu and %llu elements, trained were %lld rows of %lld", base->path, x->name,
                           (unsigned long long)found->src->ne[0], (unsigned long long)elements(found->src), (long long)x->rows, (long long)x->cols);
        found->param = x;
    }
    return HONE_OK;
}

static bool is_float(hn_type t) { return t == HN_F32 || t == HN_F16 || t == HN_BF16; }

static hone_status choose_types(tensor *t, uint64_t n, const hone_model *base, const hn_trained *p, hone_error *err)
{
    hn_type whole;
    hn_mix_state state = { 0 };
    hn_mix_model mix = { .arch = base->arch->name, .n_layer = base->hp.n_layer, .n_head = base->hp.n_head, .n_head_kv = base->hp.n_head_kv,
                         .tied = !hn_gguf_find_tensor(base->file, "output.weight") };
    tensor **order = calloc((size_t)n + 1, sizeof *order);
    if (!order) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %llu tensors", base->path, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) order[i] = &t[i];
    if (n) qsort(order, (size_t)n, sizeof *order, by_layer); /* as mixtures want them */
    bool mixed = p->type && hn_mix_find(p->type, &whole, NULL) && !is_float(whole);
    hone_status st = HONE_OK;
    for (uint64_t i = 0; i < n && st == HONE_OK; i++) {
        tensor *x = order[i];
        const hn_type_info *ti;
        x->type = x->src->type;
        if (!x->param) continue;
        if (x->src->n_dim < 2) x->type = HN_F32;
        else if (mixed) x->type = hn_mix_type(p->type, &mix, &state, x->param->name, x->src->ne, x->src->n_dim);
        else if (p->type) x->type = whole;
        else if (!is_float(x->type)) x->type = HN_F32;
        ti = hn_type_get(x->type);
        if (ti && !ti->quantize) st = HN_FAIL(err, HONE_E_ARG, "%s: hone does not write %s, which %s asks for; expected another type", x->param->name, ti->name, p->type);
        else if (!ti || x->src->ne[0] % ti->block_elems)
            st = HN_FAIL(err, HONE_E_ARG, "%s: rows of %llu cannot be %s, which %s asks for", x->param->name, (unsigned long long)x->src->ne[0], ti ? ti->name : "?", p->type);
    }
    free(order);
    return st;
}

static hone_status not_finite(const hn_param *x, int64_t i, const char *what, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: element %lld is %g, %s; nothing was written", x->name, (long long)i, (double)x->p[i], what);
}

static hone_status write_param(hn_gguf_writer *w, const tensor *t, char *row, float *back, hone_error *err)
{
    const hn_param *x = t->param;
    const hn_type_info *ti = hn_type_get(t->type);
    int64_t cols = (int64_t)t->src->ne[0], rows = (int64_t)(elements(t->src) / t->src->ne[0]);
    hone_status st;
    for (int64_t r = 0; r < rows; r++) {
        const float *v = x->p + r * cols;
        for (int64_t i = 0; i < cols; i++)
            if (!isfinite(v[i])) return not_finite(x, r * cols + i, "expected a finite number", err);
        ti->quantize(row, v, cols, NULL);
        ti->dequantize(back, row, cols);
        for (int64_t i = 0; i < cols; i++)
            if (!isfinite(back[i])) return not_finite(x, r * cols + i, ti->block_elems > 1 ? "in a block with numbers too large for its type" : "beyond its type", err);
        TRY(hn_gguf_write_data(w, row, hn_row_bytes(ti, (uint64_t)cols), err));
    }
    return HONE_OK;
}

static hone_status write_all(hn_gguf_writer *w, const tensor *t, uint64_t n, const char *dst, hone_error *err)
{
    uint64_t longest = 1;
    hone_status st;
    for (uint64_t i = 0; i < n; i++)
        if (t[i].param && t[i].src->ne[0] > longest) longest = t[i].src->ne[0];
    char *row = malloc(4 * longest); /* no type takes more */
    float *back = malloc(4 * longest);
    st = row && back ? hn_gguf_write_begin(w, dst, err) : HN_FAIL(err, HONE_E_NOMEM, "%s: rows of %llu values", dst, (unsigned long long)longest);
    for (uint64_t i = 0; i < n && st == HONE_OK; i++)
        st = t[i].param ? write_param(w, &t[i], row, back, err) : hn_gguf_write_data(w, t[i].src->data, t[i].src->n_bytes, err);
    free(row);
    free(back);
    return st == HONE_OK ? hn_gguf_write_end(w, err) : st;
}

/* file_type of weights that keep their types: what most of them are. */
static uint32_t file_type_of(const tensor *t, uint64_t n)
{
    uint64_t count[HN_TYPE_COUNT] = { 0 };
    int most = HN_F32;
    uint32_t out = 0;
    for (uint64_t i = 0; i < n; i++)
        if (t[i].src->n_dim > 1) count[t[i].type] += elements(t[i].src);
    for (int i = 0; i < HN_TYPE_COUNT; i++)
        if (count[i] > count[most]) most = i;
    return hn_mix_find(hn_type_get((uint32_t)most)->name, NULL, &out) ? out : 0;
}

static hone_status put_trained(hn_gguf_writer *w, const tensor *t, uint64_t n, const hone_model *base, const hn_trained *p, hone_error *err)
{
    static const char *const except[] = { "general.file_type", "general.quantization_version", "hone.synth.shape", "hone.synth.type", "hone.synth.seed", NULL };
    static const char *const renamed[] = { "general.file_type", "general.quantization_version", "hone.synth.shape", "hone.synth.type", "hone.synth.seed", "general.name", NULL };
    uint32_t file_type = 0;
    hone_status st;
    if (!p->type || !hn_mix_find(p->type, NULL, &file_type)) file_type = file_type_of(t, n);
    TRY(hn_gguf_put_all(w, base->file, p->name ? renamed : except, err));
    if (p->name) TRY(hn_gguf_put_str(w, "general.name", p->name, strlen(p->name), err));
    TRY(hn_gguf_put_u32(w, "general.file_type", file_type, err));
    TRY(hn_gguf_put_u32(w, "general.quantization_version", 2, err));
    for (uint64_t i = 0; i < n; i++) {
        char name[HN_GGUF_MAX_NAME + 1];
        snprintf(name, sizeof name, "%.*s", (int)t[i].src->name.len, t[i].src->name.ptr);
        TRY(hn_gguf_put_tensor(w, name, t[i].type, t[i].src->ne, t[i].src->n_dim, err));
    }
    return HONE_OK;
}

/* Base's tensors with what becomes of them; *out is the caller's to free on success. */
static hone_status plan_trained(tensor **out, const hone_model *base, const hn_trained *p, hone_error *err)
{
    uint64_t n = hn_gguf_n_tensors(base->file);
    *out = NULL;
    if (p->type && !hn_mix_find(p->type, NULL, NULL)) return HN_FAIL(err, HONE_E_ARG, "unknown type \"%s\"; expected F32, F16, BF16, Q8_0, Q4_K_M or another mixture name",
                                                                     HN_ESC(p->type, strlen(p->type)));
    tensor *t = calloc((size_t)n + 1, sizeof *t);
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: list of %llu tensors", base->path, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        t[i].src = hn_gguf_tensor_at(base->file, i);
        t[i].layer = layer_of(t[i].src->name);
    }
    hone_status st = find_params(t, n, base, p, err);
    if (st == HONE_OK) st = choose_types(t, n, base, p, err);
    if (st == HONE_OK) *out = t;
    else free(t);
    return st;
}

hone_status hn_check_trained(const hone_model *base, const hn_trained *p, hone_error *err)
{
    tensor *t;
    hone_status st = plan_trained(&t, base, p, err);
    free(t);
    return st;
}

hone_status hn_write_trained(const char *dst, const hone_model *base, const hn_trained *p, hone_error *err)
{
    uint64_t n = hn_gguf_n_tensors(base->file);
    tensor *t;
    hn_gguf_writer *w = NULL;
    hone_status st = plan_trained(&t, base, p, err);
    if (st == HONE_OK && (st = hn_gguf_writer_new(&w, err)) == HONE_OK && (st = put_trained(w, t, n, base, p, err)) == HONE_OK) st = write_all(w, t, n, dst, err);
    hn_gguf_writer_free(w);
    free(t);
    return st;
}

/* ---- both, for the library's users ----------------------------------------------------------------- */

hone_status hone_init_model(const char *dst, const hone_init_params *p, hone_error *err)
{
    static const char *const special[] = { "<|bos|>", "<|endoftext|>" };
    HN_NEED(err, dst, "the path of the file to write");
    HN_NEED(err, p, "parameters");
    HN_NEED(err, p->config, "the path of a shape's JSON file");
    if (p->n_data < 0) return HN_FAIL(err, HONE_E_ARG, "%s: %d files of data, expected 0 or more", dst, p->n_data);
    if (p->n_data) HN_NEED(err, p->data, "a pointer to n_data paths");
    HN_NEED_EACH(err, p->data, p->n_data, "the path of a file");
    if (p->n_vocab < 0) return HN_FAIL(err, HONE_E_ARG, "%s: a vocabulary of %d tokens, expected 0 or more", dst, p->n_vocab);
    hn_init init = { .config = p->config, .bos = 0, .eos = 1, .add_bos = true, .name = p->name, .seed = p->seed };
    hone_model *m = NULL;
    hn_bpe *bpe = NULL;
    hone_status st = HONE_OK;
    if (!p->tokenizer == !p->n_data) return HN_FAIL(err, HONE_E_ARG, "%s: expected either a model whose tokenizer is taken or texts to make one of", dst);
    const hn_file_use use[] = { { dst, "the model to begin from", NULL, HN_FILE_WRITTEN },
                                { p->config, "the shape", NULL, HN_FILE_READ },
                                { p->tokenizer, "the model of the tokenizer", NULL, HN_FILE_READ } };
    st = hn_files_apart(use, sizeof use / sizeof *use, err);
    for (int32_t i = 0; i < p->n_data && st == HONE_OK; i++)
        st = hn_files_apart((const hn_file_use[]){ use[0], { p->data[i], "a text", NULL, HN_FILE_READ } }, 2, err);
    if (st != HONE_OK) return st;
    if (p->tokenizer) {
        st = hone_model_open(&m, p->tokenizer, &(hone_model_params){ .vocab_only = true }, err);
        init.tokenizer = m;
    } else {
        hn_synth_shape shape;
        hn_bpe_params b = { .path = p->data, .n_path = p->n_data, .n_vocab = p->n_vocab, .special = special, .n_special = 2, .abort_fn = p->abort_fn, .abort_arg = p->abort_arg };
        if (!b.n_vocab) st = hn_synth_config(&shape, p->config, err); /* which names what it misses */
        if (st == HONE_OK && !b.n_vocab) b.n_vocab = shape.n_vocab;
        if (st == HONE_OK) st = hn_bpe_train(&bpe, &b, err);
        init.bpe = bpe;
    }
    if (st == HONE_OK) st = hn_init_model(dst, &init, err);
    hn_bpe_free(bpe);
    hone_model_close(m);
    return st;
}
