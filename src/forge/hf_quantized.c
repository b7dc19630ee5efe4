/* hf_quantized: folders whose matrices are stored otherwise. Finds them by their tensors (a code and its scales, zeros,
 * shape), asks the config what the tensors do not say, and puts a matrix of the plain name and shape into the list, as
 * if it had been there. What hone does not read is refused by name. Owns names and configs of quantizers; refuses to
 * know how a number is made (hf_dequant.c). */
#include "forge/hf_packed.h"

#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* What the config says. */
typedef struct said {
    const json_t *o; /* NULL: nothing */
    json_t *own;     /* of a file of its own */
    const char *method;
    int64_t bits, group; /* 0: not said; group −1: all columns */
    int64_t block[2];
    int64_t widths; /* of compressed-tensors' words: a bit for each that a group has; 0: not said */
    bool one_less;
    bool divides, master; /* BitNet: the scale; three values are still to be made of the numbers */
} said;

#define INSTEAD "convert the unquantized checkpoint"

/* ---- the config -------------------------------------------------------------------------------------------- */

static int64_t whole(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) ? json_integer_value(v) : 0;
}

/* Files that quantizers write beside config.json. */
static hone_status load_beside(const hn_hf *f, said *q, hone_error *err)
{
    static const char *const files[] = { "hf_quant_config.json", "quantize_config.json", "quant_config.json" };
    const hn_json_rules rules = { .max_bytes = 16 << 20, .max_depth = 40, .flags = HN_JSON_UNIQUE | HN_JSON_PYTHON };
    for (size_t i = 0; i < sizeof files / sizeof *files && !q->own; i++) {
        char path[4352];
        bool there;
        hone_status st;
        TRY(hn_hf_beside(&there, f->c->path, files[i], path, err));
        if (!there) continue;
        TRY(hn_json_tree_file(&q->own, path, &rules, err));
        q->o = i == 0 ? json_object_get(q->own, "quantization") : q->own;
        q->method = i == 0 ? "modelopt" : hn_json_text_of(q->o, "quant_method");
        bool awq = json_object_get(q->o, "w_bit") || json_object_get(q->o, "q_group_size");
        if (!*q->method && i == 2 && !awq) q->o = NULL; /* another program's file of that name */
        if (!*q->method) q->method = awq ? "awq" : "gptq";
    }
    return HONE_OK;
}

static hone_status refuse(const hn_hf *f, const char *key, const char *value, const char *expected, hone_error *err)
{
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: quantization_config: %s = \"%s\", expected %s: " INSTEAD, f->path, key,
                   HN_ESC(value, strlen(value)), expected);
}

static hone_status check_word(const hn_hf *f, const said *q, const char *key, const char *words, hone_error *err)
{
    const char *w = hn_json_text_of(q->o, key);
    return !*w || hn_hf_is_word(words, w, strlen(w)) ? HONE_OK : refuse(f, key, w, words, err);
}

static const char *first_said(const said *q, const char *key, const char *other)
{
    return *hn_json_text_of(q->o, key) ? key : other;
}

static hone_status check_bits(const hn_hf *f, const said *q, const char *words, hone_error *err)
{
    char b[24];
    snprintf(b, sizeof b, "%lld", (long long)q->bits);
    return hn_hf_is_word(words, b, strlen(b)) ? HONE_OK : refuse(f, "bits", b, words, err);
}

/* "128x128", or [128, 128] */
static bool read_block(const json_t *v, int64_t block[2])
{
    long long a = 0, b = 0;
    char rest;
    const char *s = json_string_value(v);
    if (s && sscanf(s, "%9lldx%9lld%c", &a, &b, &rest) != 2) return false;
    if (!s && json_array_size(v) == 2) {
        a = json_integer_value(json_array_get(v, 0));
        b = json_integer_value(json_array_get(v, 1));
    }
    block[0] = a;
    block[1] = b;
    return a > 0 && b > 0;
}

/* Of matrices that go together: how wide a code is, and what shares a scale. fours: codes are floats of four bits. */
static hone_status read_group(const hn_hf *f, said *q, const json_t *w, bool fours, hone_error *err)
{
    char shown[64];
    int64_t block[2], bits = json_object_get(w, "num_bits") ? whole(w, "num_bits") : 8;
    const char *type = hn_json_text_of(w, "type");
    bool floats = !strcmp(type, "float");
    snprintf(shown, sizeof shown, "%lld", (long long)bits);
    if (!hn_hf_is_word(!floats ? "2|4|8" : fours ? "4" : "8", shown, strlen(shown)))
        return refuse(f, "num_bits of config_groups", shown,
                      !floats ? "2, 4 or 8"
                      : fours ? "4 of type float"
                              : "8 of type float",
                      err);
    if (*type && !floats && strcmp(type, "int")) return refuse(f, "type of config_groups", type, "int or float", err);
    if (!floats) q->widths |= (int64_t)1 << bits;
    if (strcmp(hn_json_text_of(w, "strategy"), "block")) return HONE_OK;
    if (!read_block(json_object_get(w, "block_structure"), block))
        return refuse(f, "block_structure of config_groups", hn_json_text_of(w, "block_structure"), "[rows, columns]",
                      err);
    if (q->block[0] && (q->block[0] != block[0] || q->block[1] != block[1])) {
        snprintf(shown, sizeof shown, "%lldx%lld", (long long)block[0], (long long)block[1]);
        return refuse(f, "block_structure of config_groups", shown, "one for all groups", err);
    }
    q->block[0] = block[0];
    q->block[1] = block[1];
    return HONE_OK;
}

/* Rotations (vllm-project/compressed-tensors:transform/transform_args.py). What acts on weights is in the weights that
 * are stored; what acts on activations, queries or keys is done while a model runs, and hone has no such step. */
static hone_status check_transforms(const hn_hf *f, const said *q, hone_error *err)
{
    const json_t *config = json_object_get(q->o, "transform_config");
    const char *k;
    json_t *v;
    json_object_foreach(json_object_get(config, "config_groups"), k, v)
    {
        const json_t *apply = json_object_get(v, "apply");
        for (size_t i = 0; i < json_array_size(apply); i++) {
            const char *where = hn_json_text_of(json_array_get(apply, i), "location");
            if (hn_hf_is_word("weight_input|weight_output", where, strlen(where))) continue;
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: quantization_config: transform_config: config_groups.%s.apply[%zu].location = \"%s\", "
                           "expected weight_input or weight_output: hone does not rotate activations while a model "
                           "runs: " INSTEAD,
                           f->path, HN_ESC(k, strlen(k)), i, HN_ESC(where, strlen(where)));
        }
    }
    return HONE_OK;
}

static hone_status read_groups(const hn_hf *f, said *q, hone_error *err)
{
    const char *k;
    json_t *v;
    hone_status st;
    TRY(check_transforms(f, q, err));
    json_object_foreach(json_object_get(q->o, "config_groups"), k, v)
    {
        const json_t *w = json_object_get(v, "weights");
        bool own = json_is_string(json_object_get(v, "format"));
        const char *format = hn_json_text_of(own ? v : q->o, "format");
        bool fours = hn_hf_is_word("nvfp4-pack-quantized|mxfp4-pack-quantized", format, strlen(format));
        if (json_is_object(w)) TRY(read_group(f, q, w, fours, err));
    }
    return check_word(
        f, q, "format",
        "pack-quantized|float-quantized|int-quantized|naive-quantized|nvfp4-pack-quantized|mxfp4-pack-quantized|dense|"
        "mixed-precision",
        err);
}

/* AutoRound lays matrices out as GPTQ or AWQ does, and says as which; else as GPTQ, unless its older word `backend`
 * names a layout of its own. */
static hone_status read_packing(const hn_hf *f, said *q, hone_error *err)
{
    static const char gptq[] = "auto_round:auto_gptq|auto_round:gptq|auto",
                      awq[] = "auto_round:auto_awq|auto_round:awq";
    const char *key = first_said(q, "packing_format", "backend"), *w = hn_json_text_of(q->o, key);
    bool is_awq = hn_hf_is_word(awq, w, strlen(w));
    if (*w && !is_awq && !hn_hf_is_word(gptq, w, strlen(w)))
        return refuse(f, key, w, "auto_round:auto_gptq or auto_round:auto_awq", err);
    q->method = is_awq ? "awq" : "gptq";
    return check_word(f, q, "data_type", "int", err);
}

/* Two ways of transformers: scales divide what its own kind of layers gives, and multiply what the other gives. */
static hone_status read_bitnet(const hn_hf *f, said *q, hone_error *err)
{
    hone_status st;
    TRY(check_word(f, q, "linear_class", "bitlinear|autobitlinear", err));
    TRY(check_word(f, q, "quantization_mode", "offline|online", err));
    if (json_is_true(json_object_get(q->o, "use_rms_norm"))) return refuse(f, "use_rms_norm", "true", "false", err);
    q->divides = strcmp(hn_json_text_of(q->o, "linear_class"), "autobitlinear") != 0;
    q->master = !q->divides && !strcmp(hn_json_text_of(q->o, "quantization_mode"), "online");
    return HONE_OK;
}

static hone_status check_method(const hn_hf *f, said *q, hone_error *err)
{
    static const char methods[] = "fp8|fbgemm_fp8|compressed-tensors|gptq|awq|auto-round|mxfp4|modelopt|bitnet";
    hone_status st;
    if (!strcmp(q->method, "auto-round") || !strcmp(q->method, "intel/auto-round")) TRY(read_packing(f, q, err));
    if (!*q->method)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: quantization_config: quant_method is missing, as in MLX's, expected %s: " INSTEAD, f->path,
                       methods);
    if (!hn_hf_is_word(methods, q->method, strlen(q->method)))
        return refuse(f, "quant_method", q->method, methods, err);
    if (!strcmp(q->method, "modelopt")) {
        const char *algo = hn_json_text_of(q->o, "quant_algo");
        if (!strncmp(algo, "FP8", 3)) return HONE_OK;
        return check_word(f, q, "quant_algo", "FP8|NVFP4|W4A16_NVFP4|MIXED_PRECISION", err);
    }
    if (!strcmp(q->method, "compressed-tensors")) return read_groups(f, q, err);
    if (!strcmp(q->method, "bitnet")) return read_bitnet(f, q, err);
    if (!strcmp(q->method, "gptq")) {
        const char *key = first_said(q, "checkpoint_format", "format");
        TRY(check_word(f, q, key, "gptq|gptq_v2", err));
        q->one_less = strcmp(hn_json_text_of(q->o, key), "gptq_v2");
        return check_bits(f, q, "2|3|4|8", err);
    }
    if (!strcmp(q->method, "awq")) {
        TRY(check_word(f, q, first_said(q, "version", "format"), "gemm|GEMM", err));
        return check_bits(f, q, "4", err);
    }
    return HONE_OK;
}

static hone_status ask(hn_hf *f, said *q, hone_error *err)
{
    hone_status st;
    *q = (said){ .o = json_object_get(f->root, "quantization_config") };
    if (!q->o) q->o = json_object_get(f->config, "quantization_config");
    if (!q->o) q->o = json_object_get(f->root, "compression_config");
    hn_hf_get(f, "quantization_config|compression_config"); /* known */
    if (json_is_object(q->o)) {
        q->method = hn_json_text_of(q->o, "quant_method");
        if (!*q->method && json_object_get(f->root, "compression_config")) q->method = "compressed-tensors";
    } else TRY(load_beside(f, q, err));
    if (!json_is_object(q->o)) {
        q->o = NULL;
        q->method = "";
        return HONE_OK;
    }
    const json_t *block = json_object_get(q->o, "weight_block_size");
    bool by_blocks = !block && hn_hf_is_word("fp8|modelopt", q->method, strlen(q->method));
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = json_array_get(block, i);
        q->block[i] = json_is_integer(v) && json_integer_value(v) > 0 ? json_integer_value(v) : by_blocks ? 128 : 0;
    }
    q->bits = whole(q->o, json_object_get(q->o, "bits") ? "bits" : "w_bit");
    q->group = whole(q->o, json_object_get(q->o, "group_size") ? "group_size" : "q_group_size");
    return check_method(f, q, err);
}

/* ---- finding tensors ---------------------------------------------------------------------------------------- */

static bool ends(hone_str s, const char *tail)
{
    size_t n = strlen(tail);
    return s.len > n && !memcmp(s.ptr + s.len - n, tail, n);
}

/* The tensor named as the first `stem` bytes of a name, and tail. */
static int64_t beside(const hn_hf *f, hone_str name, size_t stem, const char *tail)
{
    char full[320];
    int n = snprintf(full, sizeof full, "%.*s%s", (int)stem, name.ptr, tail);
    const hn_ckpt_tensor *t = n > 0 && (size_t)n < sizeof full ? hn_ckpt_find(f->c, full, (size_t)n) : NULL;
    return t ? t - f->c->t : -1;
}

static bool is_scale(const hn_ckpt_tensor *t)
{
    return t->raw == HN_RAW_F8_E8M0 || (!t->raw && (hn_is_float(t->type) || t->type == HN_F64));
}

static hone_status bad(const hn_hf *f, int64_t i, const char *expected, hone_error *err)
{
    const hn_ckpt_tensor *t = &f->c->t[i];
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s is %s of shape %s, expected %s: " INSTEAD, f->c->part[t->part].path,
                   HN_ESC(t->name.ptr, t->name.len), t->raw ? hn_ckpt_raw_name(t->raw) : hn_type_get(t->type)->name,
                   HN_SHAPE(t), expected);
}

static hone_status missing(const hn_hf *f, int64_t i, const char *what, hone_error *err)
{
    const hn_ckpt_tensor *t = &f->c->t[i];
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s has dtype %s, and there is no %s beside it: " INSTEAD,
                   f->c->part[t->part].path, HN_ESC(t->name.ptr, t->name.len), hn_ckpt_raw_name(t->raw), what);
}

static void use(hn_hf *f, int64_t i)
{
    if (i < 0) return;
    uint64_t n = 1;
    for (int k = 0; k < HN_CKPT_MAX_DIM; k++) n *= f->c->t[i].ne[k];
    f->used[i] = n;
}

/* What a conversion that rounds nothing more than its users' own programs makes of the numbers: the scales' type. */
static hn_type as_of(const hn_hf *f, int64_t scale)
{
    return f->c->t[scale].type == HN_F16 && !f->c->t[scale].raw ? HN_F16 : HN_BF16;
}

/* Room for one more tensor, and what goes with it. */
hone_status hn_hf_grow(hn_hf *f, hone_error *err)
{
    size_t n = f->c->n;
    uint64_t *used = realloc(f->used, (n + 1) * sizeof *used);
    if (used) f->used = used;
    hn_hf_stored **stored = used ? realloc(f->stored, (n + 1) * sizeof *stored) : NULL;
    if (stored) f->stored = stored;
    if (!stored) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu tensors", f->c->path, n);
    for (size_t i = f->n_stored; i <= n; i++) stored[i] = NULL;
    for (size_t i = f->n_used; i <= n; i++) used[i] = 0;
    f->n_stored = f->n_used = n + 1;
    return HONE_OK;
}

/* p, found beside `like`, becomes the matrix `name` [n_row / n_out, n_out, n_in]; `at` ≥ 0: it is there already. */
static hone_status put(hn_hf *f, const hn_hf_packed *p, hone_str name, int64_t like, int32_t n_dim, const uint64_t *ne,
                       hn_type as, hone_error *err)
{
    hn_hf_packed *own = hn_arena_alloc(f->arena, sizeof *own);
    int64_t at = like;
    hone_status st;
    if (!own) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu tensors", f->c->path, f->c->n);
    *own = *p;
    hn_hf_packed_reader(own, as);
    if (ne) {
        hn_ckpt_tensor t = f->c->t[like];
        t.name = name;
        t.raw = HN_RAW_NOT;
        t.type = HN_F32; /* as its numbers come; no byte of it is read */
        t.n_dim = n_dim;
        for (int32_t i = 0; i < HN_CKPT_MAX_DIM; i++) t.ne[i] = i < n_dim ? ne[i] : 1;
        TRY(hn_ckpt_add(f->c, &t, err));
        TRY(hn_hf_grow(f, err));
        at = (int64_t)f->c->n - 1;
        use(f, p->codes);
    }
    f->stored[at] = &own->s;
    use(f, p->scale);
    use(f, p->zero);
    use(f, p->order);
    return HONE_OK;
}

/* ---- eight bits ------------------------------------------------------------------------------------------------ */

/* How many rows or columns share a scale: as the config says, or all, or one. */
static bool shared(uint64_t n, uint64_t n_scale, int64_t block, uint64_t *out)
{
    uint64_t b = block > 0 ? (uint64_t)block : 0;
    *out = n_scale == 1 ? n : n_scale == n ? 1 : b;
    if (b && (n + b - 1) / b == n_scale) *out = b;
    return *out && (n + *out - 1) / *out == n_scale;
}

static hone_status find_bytes(hn_hf *f, const said *q, int64_t i, hone_error *err)
{
    hn_ckpt_tensor t = f->c->t[i];
    hn_hf_packed p = { .codes = i, .zero = -1, .order = -1 };
    p.how = t.raw == HN_RAW_I8 ? HN_PACKED_I8 : t.raw == HN_RAW_F8_E4M3 ? HN_PACKED_F8_E4M3 : HN_PACKED_F8_E5M2;
    p.scale = beside(f, t.name, t.name.len, "_scale_inv");
    if (p.scale < 0) p.scale = beside(f, t.name, t.name.len, "_scale");
    if (p.scale < 0) return HONE_OK; /* told if it is a weight */
    if (p.how == HN_PACKED_I8) p.zero = beside(f, t.name, t.name.len, "_zero_point");
    const hn_ckpt_tensor *s = &f->c->t[p.scale], *z = p.zero < 0 ? NULL : &f->c->t[p.zero];
    uint64_t n_mat = 1, n_scale_mat = 1;
    for (int k = 2; k < HN_CKPT_MAX_DIM; k++) n_mat *= t.ne[k];
    if (!is_scale(s) || t.n_dim < 2) return bad(f, p.scale, "scales of a matrix", err);
    uint64_t ne[3] = { s->ne[0], s->ne[1], s->ne[2] }; /* a list is of rows, or of whole matrices */
    if (s->n_dim == 1 && t.n_dim == 2) ne[1] = s->ne[0], ne[0] = 1;
    if (s->n_dim == 1 && t.n_dim > 2 && s->ne[0] > 1) ne[2] = s->ne[0], ne[0] = 1;
    bool apart = s->n_dim == 4 && t.n_dim == 2 && ne[0] == 1 && ne[2] == 1; /* FP8_PB_WO: [rows, 1, columns, 1] */
    if (apart) ne[0] = s->ne[1], ne[1] = s->ne[3];
    n_scale_mat = ne[2];
    for (int k = 3; k < HN_CKPT_MAX_DIM && !apart; k++) n_scale_mat *= s->ne[k];
    p.n_in = t.ne[0];
    p.n_out = t.ne[1];
    p.n_row = n_mat * p.n_out;
    p.n_scale_in = ne[0];
    p.n_scale_out = ne[1];
    if (n_scale_mat == 1 && ne[0] == 1 && ne[1] == 1) p.n_out = p.n_row; /* one for all */
    else if (n_scale_mat != n_mat) return bad(f, p.scale, "scales for each matrix", err);
    bool groups = !q->block[1] && ne[1] == p.n_out && ne[0] && p.n_in % ne[0] == 0; /* of columns of each row */
    if (!shared(p.n_in, ne[0], groups ? (int64_t)(p.n_in / ne[0]) : q->block[1], &p.block_in) ||
        !shared(p.n_out, ne[1], q->block[0], &p.block_out))
        return bad(f, p.scale, "one scale, one for each row, or for blocks as weight_block_size says", err);
    if (z && (z->raw != HN_RAW_I8 || z->n_dim != s->n_dim || memcmp(z->ne, s->ne, sizeof z->ne) != 0))
        return bad(f, p.zero, "I8, a zero for each scale", err);
    return put(f, &p, t.name, i, 0, NULL, as_of(f, p.scale), err);
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

/* compressed-tensors, format pack-quantized: "X.weight_packed". */
static hone_status find_words(hn_hf *f, const said *q, int64_t i, hone_error *err)
{
    char name[320];
    const hone_str own = f->c->t[i].name;
    const size_t stem = own.len - strlen("_packed");
    hn_hf_packed p = { .how = HN_PACKED_WORDS, .codes = i };
    int64_t shape = beside(f, own, stem, "_shape"), n[2];
    int32_t half[2];
    hone_status st;
    p.scale = beside(f, own, stem, "_scale");
    p.zero = beside(f, own, stem, "_zero_point");
    p.order = beside(f, own, stem, "_g_idx");
    if (f->c->t[i].raw != HN_RAW_I32) return bad(f, i, "I32: words of 4 or 8 bits", err);
    if (p.scale < 0) return missing(f, i, "weight_scale", err);
    if (shape < 0) return missing(f, i, "weight_shape", err);
    bool narrow = f->c->t[shape].raw == HN_RAW_I32; /* Kimi's */
    if ((!narrow && f->c->t[shape].raw != HN_RAW_I64) || f->c->t[shape].ne[0] != 2 || f->c->t[shape].n_dim != 1)
        return bad(f, shape, "two I64 or I32", err);
    const hn_ckpt_tensor *t = &f->c->t[i], *s = &f->c->t[p.scale], *z = p.zero < 0 ? NULL : &f->c->t[p.zero];
    TRY(hn_source_read(&f->c->part[f->c->t[shape].part], f->c->t[shape].off, narrow ? (void *)half : n,
                       narrow ? sizeof half : sizeof n, err));
    for (int k = 0; k < 2 && narrow; k++) n[k] = half[k];
    uint64_t n_word = t->ne[0], per = n_word ? (n[1] > 0 ? ((uint64_t)n[1] + n_word - 1) / n_word : 0) : 0;
    per = per > 8 ? 16 : per > 4 ? 8 : per > 2 ? 4 : 0; /* the last word may not be full */
    if (n[0] < 1 || n[1] < 1 || !per || t->n_dim != 2 || t->ne[1] != (uint64_t)n[0] ||
        ((uint64_t)n[1] + per - 1) / per != n_word)
        return bad(f, i, "words of 2, 4 or 8 bits of the shape that weight_shape says", err);
    p.bits = (int32_t)(32 / per);
    if (q->widths && !(q->widths >> p.bits & 1))
        return bad(f, i, "words of as many bits as num_bits of config_groups says", err);
    p.n_in = (uint64_t)n[1];
    p.n_out = p.n_row = (uint64_t)n[0];
    p.n_scale_in = s->n_dim > 1 ? s->ne[0] : 1;
    p.n_scale_out = s->n_dim > 1 ? s->ne[1] : s->ne[0];
    p.block_out = p.n_scale_out == p.n_out ? 1 : p.n_out;
    p.block_in = p.n_in / (p.n_scale_in ? p.n_scale_in : 1);
    if (!is_scale(s) || s->n_dim > 2 || (p.n_scale_out != p.n_out && p.n_scale_out != 1) || p.n_scale_in == 0 ||
        p.n_in % p.n_scale_in)
        return bad(f, p.scale, "scales of rows and of groups of columns", err);
    if (z &&
        (z->raw != HN_RAW_I32 || z->n_dim != 2 || z->ne[0] != p.n_scale_in || z->ne[1] != (p.n_out + per - 1) / per))
        return bad(f, p.zero, "I32, words of zeros of rows", err);
    if (p.order >= 0 && (f->c->t[p.order].raw != HN_RAW_I32 || f->c->t[p.order].ne[0] != p.n_in))
        return bad(f, p.order, "an I32 for each column", err);
    use(f, shape);
    int len = snprintf(name, sizeof name, "%.*s", (int)stem, own.ptr);
    return put(f, &p, (hone_str){ name, (size_t)len }, i, 2, (uint64_t[]){ p.n_in, p.n_out }, as_of(f, p.scale), err);
}

/* How wide the codes of one of GPTQ's matrices are: as wide as the zeros, of which each row has one. What the config
 * says is of most matrices: GPTQModel's `dynamic` and AutoRound's `extra_config` give some another width. 0: none that
 * hone reads. */
static int32_t width_of(const hn_ckpt_tensor *t, const hn_ckpt_tensor *z)
{
    uint64_t n_out = t->ne[0], all = z->ne[0] * 32, bits = all % n_out ? 0 : all / n_out;
    return bits == 2 || bits == 3 || bits == 4 || bits == 8 ? (int32_t)bits : 0;
}

static hone_status bad_width(const hn_hf *f, int64_t zero, uint64_t n_out, hone_error *err)
{
    char expected[120];
    snprintf(expected, sizeof expected, "I32, zeros of 2, 3, 4 or 8 bits for each of the %llu rows that qweight has",
             (unsigned long long)n_out);
    return bad(f, zero, expected, err);
}

static hone_status bad_scales(const hn_hf *f, const hn_hf_packed *p, hone_error *err)
{
    char expected[160];
    snprintf(expected, sizeof expected,
             "a scale for each of %llu rows, of groups as group_size says or that divide the %llu columns",
             (unsigned long long)p->n_out, (unsigned long long)p->n_in);
    return bad(f, p->scale, expected, err);
}

/* Columns that share a scale: as the config says, where that makes as many scales as there are; else as many as these
 * say. 0: they do not divide the columns. */
static uint64_t group_in(uint64_t n_in, uint64_t n_scale, int64_t size)
{
    uint64_t group = size > 0 && (uint64_t)size < n_in ? (uint64_t)size : n_in;
    if ((n_in + group - 1) / group == n_scale) return group;
    return n_in % n_scale ? 0 : n_in / n_scale;
}

/* GPTQ and AWQ: "X.qweight" [n_in of words, n_out], or [n_in, n_out of words]. */
static hone_status find_columns(hn_hf *f, const said *q, int64_t i, hone_error *err)
{
    char name[320];
    const hone_str own = f->c->t[i].name;
    const size_t stem = own.len - strlen("qweight");
    bool awq = !strcmp(q->method, "awq");
    hn_hf_packed p = { .how = awq ? HN_PACKED_AWQ : HN_PACKED_GPTQ, .codes = i, .bits = 4 };
    if (!awq && strcmp(q->method, "gptq")) return bad(f, i, "quantization_config with quant_method gptq or awq", err);
    p.one_less = q->one_less;
    p.scale = beside(f, own, stem, "scales");
    p.zero = beside(f, own, stem, "qzeros");
    p.order = awq ? -1 : beside(f, own, stem, "g_idx");
    if (p.scale < 0) return missing(f, i, "scales", err);
    if (p.zero < 0) return missing(f, i, "qzeros", err);
    const hn_ckpt_tensor *t = &f->c->t[i], *s = &f->c->t[p.scale], *z = &f->c->t[p.zero];
    if (t->raw != HN_RAW_I32 || t->n_dim != 2 || t->ne[0] == 0 || t->ne[1] == 0)
        return bad(f, i, "I32, a matrix of words", err);
    if (z->raw != HN_RAW_I32 || z->n_dim != 2 || z->ne[0] == 0)
        return bad(f, p.zero, "I32, words of zeros of columns", err);
    if (!awq && !(p.bits = width_of(t, z))) return bad_width(f, p.zero, t->ne[0], err);
    uint64_t bits = (uint64_t)p.bits;
    if (!awq && t->ne[1] * 32 % bits) return bad(f, i, "I32, words full of codes as wide as qzeros says", err);
    p.n_in = awq ? t->ne[1] : t->ne[1] * 32 / bits;
    p.n_out = p.n_row = awq ? t->ne[0] * 8 : t->ne[0];
    p.n_scale_in = s->n_dim > 1 ? s->ne[1] : 0;
    p.n_scale_out = p.n_out;
    p.block_out = 1;
    if (awq && s->n_dim == 2 && s->ne[0] != p.n_out) return bad(f, i, "I32, 4 bits for each row that scales has", err);
    if (!is_scale(s) || s->n_dim != 2 || s->ne[0] != p.n_out || p.n_scale_in == 0) return bad_scales(f, &p, err);
    p.block_in = p.order < 0 ? group_in(p.n_in, p.n_scale_in, q->group) : p.n_in;
    if (p.block_in == 0) return bad_scales(f, &p, err);
    if (z->ne[1] != p.n_scale_in || z->ne[0] * 32 != p.n_out * bits)
        return bad(f, p.zero, "I32, words of zeros of columns", err);
    if (p.order >= 0 && (f->c->t[p.order].raw != HN_RAW_I32 || f->c->t[p.order].ne[0] != p.n_in))
        return bad(f, p.order, "an I32 for each column", err);
    int len = snprintf(name, sizeof name, "%.*sweight", (int)stem, own.ptr);
    return put(f, &p, (hone_str){ name, (size_t)len }, i, 2, (uint64_t[]){ p.n_in, p.n_out }, as_of(f, p.scale), err);
}

/* ---- MXFP4 ------------------------------------------------------------------------------------------------------ */

/* "X_blocks" [.., rows, n, 16] and "X_scales" [.., rows, n]: X [.., rows, 32n]. */
static hone_status find_mxfp4(hn_hf *f, int64_t i, hone_error *err)
{
    char name[320];
    const hone_str own = f->c->t[i].name;
    const size_t stem = own.len - strlen("_blocks");
    hn_hf_packed p = { .how = HN_PACKED_MXFP4, .codes = i, .zero = -1, .order = -1 };
    p.scale = beside(f, own, stem, "_scales");
    if (p.scale < 0) return missing(f, i, "tensor of scales (_scales)", err);
    const hn_ckpt_tensor *t = &f->c->t[i], *s = &f->c->t[p.scale];
    uint64_t ne[4] = { 0 };
    if (t->raw != HN_RAW_U8 || t->n_dim < 3 || t->n_dim > 5 || t->ne[0] != 16)
        return bad(f, i, "U8, blocks of 16 bytes", err);
    bool same = s->n_dim == t->n_dim - 1 && (s->raw == HN_RAW_U8 || s->raw == HN_RAW_F8_E8M0);
    for (int32_t k = 0; k < t->n_dim - 1; k++) {
        ne[k] = t->ne[k + 1];
        same &= s->ne[k] == ne[k];
    }
    if (!same) return bad(f, p.scale, "U8, a scale for each block", err);
    if (ne[0] > UINT64_MAX / 32) return bad(f, i, "rows of fewer blocks", err);
    ne[0] *= 32;
    p.n_in = ne[0];
    int len = snprintf(name, sizeof name, "%.*s", (int)stem, own.ptr);
    return put(f, &p, (hone_str){ name, (size_t)len }, i, t->n_dim - 1, ne, HN_MXFP4, err);
}

/* ---- two codes in a byte ----------------------------------------------------------------------------------------- */

/* A factor of ModelOpt's (`tail`), or one of compressed-tensors', which divides (`other`). 0: there is none. */
static hone_status read_factor(hn_hf *f, hone_str own, size_t stem, const char *tail, const char *other, float *out,
                               hone_error *err)
{
    int64_t i = beside(f, own, stem, tail);
    bool divides = i < 0;
    hone_status st;
    *out = 0;
    if (divides && (i = beside(f, own, stem, other)) < 0) return HONE_OK;
    const hn_ckpt_tensor *t = &f->c->t[i];
    if (t->raw || t->type != HN_F32 || t->n_bytes != sizeof *out) return bad(f, i, "F32, one number", err);
    TRY(hn_source_read(&f->c->part[t->part], t->off, out, sizeof *out, err));
    float x = divides ? 1 / *out : *out;
    if (!(x > 0 && isfinite(x)))
        return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s is %g, expected a factor above 0", f->c->part[t->part].path,
                       HN_ESC(t->name.ptr, t->name.len), (double)*out);
    *out = x;
    use(f, i);
    return HONE_OK;
}

/* ModelOpt's "X.weight", compressed-tensors' "X.weight_packed": [rows, columns / 2]; "X.weight_scale" [rows, columns /
 * 16] of NVFP4, / 32 of MXFP4. X.weight is of the first n_stem bytes of the name. */
static hone_status find_halves(hn_hf *f, int64_t i, size_t n_stem, hone_error *err)
{
    char name[320];
    const hone_str own = f->c->t[i].name;
    size_t module = n_stem - strlen("weight"), n_in = 2 * (size_t)f->c->t[i].ne[0];
    hn_hf_packed p = { .how = HN_PACKED_NVFP4, .codes = i, .zero = -1, .order = -1, .n_in = n_in };
    hone_status st;
    p.scale = beside(f, own, n_stem, "_scale");
    if (p.scale < 0) return own.len == n_stem ? HONE_OK : missing(f, i, "weight_scale", err);
    const hn_ckpt_tensor *t = &f->c->t[i], *s = &f->c->t[p.scale];
    bool mx = s->raw == HN_RAW_U8 || s->raw == HN_RAW_F8_E8M0;
    uint64_t group = mx ? 16 : 8; /* bytes that share a scale */
    hn_type as = mx ? HN_MXFP4 : HN_NVFP4;
    if (mx) p.how = HN_PACKED_MXFP4;
    if (t->n_dim != 2 || t->ne[0] == 0 || t->ne[0] % group)
        return bad(f, i, "U8, rows of 8 bytes for 16 columns (MXFP4: 16 for 32)", err);
    if ((!mx && s->raw != HN_RAW_F8_E4M3) || s->n_dim != 2 || s->ne[1] != t->ne[1] || s->ne[0] != t->ne[0] / group)
        return bad(f, p.scale, "F8_E4M3, a scale for 16 columns of each row (MXFP4: U8, for 32)", err);
    if (!mx) TRY(read_factor(f, own, n_stem, "_scale_2", "_global_scale", &p.beside[0], err));
    if (!mx) TRY(read_factor(f, own, module, "input_scale", "input_global_scale", &p.beside[1], err));
    int len = snprintf(name, sizeof name, "%.*s", (int)n_stem, own.ptr);
    if (own.len > n_stem)
        return put(f, &p, (hone_str){ name, (size_t)len }, i, 2, (uint64_t[]){ n_in, t->ne[1] }, as, err);
    TRY(put(f, &p, own, i, 0, NULL, as, err));
    f->c->t[i].ne[0] = n_in; /* in columns from now on */
    return HONE_OK;
}

/* ---- three values ------------------------------------------------------------------------------------------------ */

/* "X.weight" [rows / 4, columns], "X.weight_scale" [1]. */
static hone_status find_ternary(hn_hf *f, const said *q, int64_t i, hone_error *err)
{
    const hn_ckpt_tensor *t = &f->c->t[i];
    hn_hf_packed p = { .how = HN_PACKED_TERNARY, .codes = i, .zero = -1, .order = -1, .divides = q->divides };
    hone_status st;
    p.scale = beside(f, t->name, t->name.len, "_scale");
    if (p.scale < 0) return missing(f, i, "weight_scale", err);
    if (t->n_dim != 2) return bad(f, i, "U8, a matrix of four rows in one", err);
    const hn_ckpt_tensor *s = &f->c->t[p.scale];
    if (!is_scale(s) || s->n_dim > 1 || s->ne[0] != 1) return bad(f, p.scale, "one scale", err);
    p.n_in = t->ne[0];
    p.n_out = p.n_row = 4 * t->ne[1];
    TRY(put(f, &p, t->name, i, 0, NULL, q->divides ? HN_F32 : as_of(f, p.scale), err));
    f->c->t[i].ne[1] *= 4; /* in rows from now on */
    return HONE_OK;
}

static hone_status find_master(hn_hf *f, int64_t i, hone_error *err)
{
    const hn_ckpt_tensor *t = &f->c->t[i];
    const hn_hf_packed p = { .how = HN_PACKED_MASTER, .codes = i, .scale = -1, .zero = -1, .order = -1 };
    if (t->raw || !hn_is_float(t->type) || t->n_dim != 2) return bad(f, i, "a matrix of F32, F16 or BF16", err);
    return put(f, &p, t->name, i, 0, NULL, t->type, err);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* Scales of activations and of caches: hone has its own ways there. */
static bool is_of_activations(hone_str name)
{
    static const char *const tails[] = {
        ".input_scale",      ".activation_scale", ".output_scale",     ".k_scale",         ".v_scale",
        ".q_scale",          ".prob_scale",       "_activation_scale", "proj_input_scale", ".input_global_scale",
        ".input_zero_point", ".kv_scale"
    };
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        if (ends(name, tails[i])) return true;
    return false;
}

static hone_status find_all(hn_hf *f, const said *q, hone_error *err)
{
    hone_status st;
    for (size_t i = 0, n = f->c->n; i < n; i++) {
        const hn_ckpt_tensor *t = &f->c->t[i];
        int64_t at = (int64_t)i;
        const bool bitnet = !strcmp(q->method, "bitnet");
        if ((q->master || f->of->ternary) && ends(t->name, "_proj.weight")) TRY(find_master(f, at, err));
        else if (bitnet && ends(t->name, ".weight") && t->raw == HN_RAW_U8) TRY(find_ternary(f, q, at, err));
        else if (ends(t->name, ".qweight")) TRY(find_columns(f, q, at, err));
        else if (ends(t->name, ".weight") && t->raw == HN_RAW_U8) TRY(find_halves(f, at, t->name.len, err));
        else if (ends(t->name, ".weight_packed") && t->raw == HN_RAW_U8)
            TRY(find_halves(f, at, t->name.len - strlen("_packed"), err));
        else if (ends(t->name, ".weight_packed")) TRY(find_words(f, q, at, err));
        else if (t->raw == HN_RAW_U32 && ends(t->name, ".weight") &&
                 beside(f, t->name, t->name.len - strlen("weight"), "scales") >= 0)
            return bad(f, at, "numbers, not MLX's words", err);
        else if (ends(t->name, "_blocks") && t->raw == HN_RAW_U8) TRY(find_mxfp4(f, at, err));
        else if (q->o && is_of_activations(t->name)) use(f, at);
        else if (t->raw == HN_RAW_F8_E4M3 || t->raw == HN_RAW_F8_E5M2 || t->raw == HN_RAW_I8)
            TRY(find_bytes(f, q, at, err));
    }
    return HONE_OK;
}

hone_status hn_hf_find_stored(hn_hf *f, hone_error *err)
{
    said q;
    hone_status st = ask(f, &q, err);
    if (st == HONE_OK) st = hn_hf_grow(f, err);
    if (st == HONE_OK) st = find_all(f, &q, err);
    json_decref(q.own);
    return st;
}
