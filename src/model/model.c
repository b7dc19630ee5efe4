/* Opening a model: which architecture, its hyper-parameters within policy, tensors
 * found by name and compared with the exact expected shape, leftovers refused. */
#include "model/model.h"

#include <math.h>
#include <stdlib.h>

static const hn_arch *const archs[] = { &hn_arch_llama, &hn_arch_qwen2, &hn_arch_qwen3, &hn_arch_rwkv6, &hn_arch_rwkv7 };

const char *hn_arch_key(const hone_model *m, char key[128], const char *suffix)
{
    snprintf(key, 128, "%s.%s", m->arch->name, suffix);
    return key;
}

/* ---- tensors ------------------------------------------------------------------------------ */

/* kind: of the field. any: rows in any dimensions. *packed: what the side file has of it, or NULL. */
static hone_status find(hone_model *m, const hn_gguf_tensor **out, const hn_packed_entry **packed, const char *name, uint8_t kind, int64_t ne0, int64_t ne1,
                        bool any, bool optional, hone_error *err)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, name);
    *out = NULL;
    *packed = NULL;
    if (!t) {
        if (optional) return HONE_OK;
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s is missing; architecture %s needs it, shape {%lld, %lld}", m->path, name,
                       m->arch->name, (long long)ne0, (long long)ne1);
    }
    bool rows = any && t->ne[1] <= (uint64_t)ne1 && t->ne[2] <= (uint64_t)ne1 && t->ne[3] <= (uint64_t)ne1 && t->ne[1] * t->ne[2] <= (uint64_t)ne1 &&
                t->ne[1] * t->ne[2] * t->ne[3] == (uint64_t)ne1;
    if (t->ne[0] != (uint64_t)ne0 || (!rows && (t->ne[1] != (uint64_t)ne1 || t->ne[2] != 1 || t->ne[3] != 1)))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s has shape {%llu, %llu, %llu, %llu}, expected {%lld, %lld}", m->path, name,
                       (unsigned long long)t->ne[0], (unsigned long long)t->ne[1], (unsigned long long)t->ne[2],
                       (unsigned long long)t->ne[3], (long long)ne0, (long long)ne1);
    ptrdiff_t i = t - hn_gguf_tensor_at(m->file, 0);
    m->bound[i] = kind;
    if (m->packed_of && m->packed_of[i] && m->packed_of[i]->kind == (kind == HN_BOUND_MATRIX ? HN_PACKED_MATRIX : HN_PACKED_VECTOR)) *packed = m->packed_of[i];
    *out = t;
    return HONE_OK;
}

static hone_status bind_matrix(hone_model *m, hn_weight *out, const char *name, int64_t n_in, int64_t n_out, bool any, bool optional, hone_error *err)
{
    const hn_gguf_tensor *t;
    const hn_packed_entry *e;
    hone_status st = find(m, &t, &e, name, HN_BOUND_MATRIX, n_in, n_out, any, optional, err);
    if (st != HONE_OK || !t) return st;
    const hn_type_info *ti = hn_type_get(t->type);
    if (!ti->weight)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: tensor %s has type %s, which cannot be a weight", m->path, name, ti->name);
    const float *bias = out->bias;
    *out = (hn_weight){ .data = t->data, .bias = bias, .type = t->type, .n_in = n_in, .n_out = n_out, .row_bytes = (size_t)hn_row_bytes(ti, (uint64_t)n_in) };
    if (e) {
        out->packed = e->data;
        out->group_bytes = hn_packed_group_bytes(t->type, n_in);
    }
    return HONE_OK;
}

hone_status hn_bind_matrix(hone_model *m, hn_weight *out, const char *name, int64_t n_in, int64_t n_out, bool optional, hone_error *err)
{
    return bind_matrix(m, out, name, n_in, n_out, false, optional, err);
}

hone_status hn_bind_rows(hone_model *m, hn_weight *out, const char *name, int64_t n_in, int64_t n_out, hone_error *err)
{
    return bind_matrix(m, out, name, n_in, n_out, true, false, err);
}

hn_weight hn_rows_of(const hn_weight *w, int64_t first, int64_t n_out)
{
    hn_weight v = *w;
    v.data = (const char *)w->data + (size_t)first * w->row_bytes;
    v.bias = w->bias ? w->bias + first : NULL;
    v.n_out = n_out;
    if (v.packed) v.packed = first % HN_PACK_ROWS ? NULL : (const char *)w->packed + (size_t)(first / HN_PACK_ROWS) * w->group_bytes; /* views begin with a group */
    return v;
}

hone_status hn_bind_vector(hone_model *m, const float **out, const char *name, int64_t n, bool optional, hone_error *err)
{
    return hn_bind_values(m, out, name, n, n, optional, err);
}

void hn_bind_unused(hone_model *m, const char *name)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, name);
    if (t) m->bound[t - hn_gguf_tensor_at(m->file, 0)] = HN_BOUND_UNUSED;
}

hone_status hn_bind_values(hone_model *m, const float **out, const char *name, int64_t ne0, int64_t n, bool optional, hone_error *err)
{
    const hn_gguf_tensor *t;
    const hn_packed_entry *e;
    *out = NULL;
    hone_status st = find(m, &t, &e, name, HN_BOUND_VECTOR, ne0, n / ne0, true, optional, err);
    if (st != HONE_OK || !t) return st;
    if (t->type != HN_F32 && t->type != HN_F16 && t->type != HN_BF16)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: tensor %s has type %s, expected F32, F16 or BF16 for a vector", m->path, name, hn_type_get(t->type)->name);
    if (e) {
        *out = e->data;
        return HONE_OK;
    }
    if (t->type == HN_F32 && (uintptr_t)t->data % _Alignof(float) == 0) {
        *out = t->data;
        return HONE_OK;
    }
    float *f = hn_arena_alloc(m->arena, (size_t)n * sizeof(float));
    if (!f) return HN_FAIL(err, HONE_E_NOMEM, "%s: tensor %s", m->path, name);
    hn_type_get(t->type)->dequantize(f, t->data, n);
    *out = f;
    return HONE_OK;
}

/* ---- hyper-parameters ------------------------------------------------------------------------ */

hone_status hn_get_int(const hone_model *m, const char *suffix, int64_t lo, int64_t hi, int64_t def, int32_t *out, hone_error *err)
{
    char key[128];
    uint32_t v = 0;
    bool found = false;
    hone_status st = hn_gguf_get_u32(m->file, hn_arch_key(m, key, suffix), &v, &found, err);
    if (st != HONE_OK) return st;
    if (!found) {
        if (def < 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing; architecture %s needs it", m->path, key, m->arch->name);
        *out = (int32_t)def;
        return HONE_OK;
    }
    if ((int64_t)v < lo || (int64_t)v > hi)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %u, expected %lld to %lld", m->path, key, v, (long long)lo, (long long)hi);
    *out = (int32_t)v;
    return HONE_OK;
}

/* Like hn_get_int for a key that may be an array with a value per layer: fine when all layers agree. */
static hone_status get_per_layer(const hone_model *m, const char *suffix, int64_t lo, int64_t hi, int64_t def, int32_t *out, hone_error *err)
{
    char key[128];
    hn_gguf_array a;
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, suffix)), n_layer = m->hp.n_layer;
    if (at < 0 || !hn_gguf_kv_array(m->file, (uint64_t)at, &a)) return hn_get_int(m, suffix, lo, hi, def, out, err);
    uint32_t size = hn_gguf_type_size(a.elem_type);
    bool is_signed = a.elem_type == HONE_KV_I8 || a.elem_type == HONE_KV_I16 || a.elem_type == HONE_KV_I32 || a.elem_type == HONE_KV_I64;
    if (!size || a.elem_type == HONE_KV_F32 || a.elem_type == HONE_KV_F64 || a.elem_type == HONE_KV_BOOL)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is an array of %s, expected an integer or one per layer", m->path, key, hn_gguf_type_name(a.elem_type));
    if (a.count != (uint64_t)n_layer)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has %llu values, expected one for each of %lld layers", m->path, key, (unsigned long long)a.count, (long long)n_layer);
    uint64_t v = 0;
    for (uint32_t i = 0; i < size; i++) v |= (uint64_t)a.data[i] << (8 * i);
    if (is_signed && size < 8 && v >> (8 * size - 1)) v |= ~(uint64_t)0 << (8 * size);
    for (uint64_t i = 1; i < a.count; i++)
        if (memcmp(a.data + i * size, a.data, size))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s differs between layers 0 and %llu; %s models here have one value for all layers", m->path, key, (unsigned long long)i, m->arch->name);
    if (is_signed ? (int64_t)v < lo || (int64_t)v > hi : v > (uint64_t)hi || (int64_t)v < lo)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[0] = %lld, expected %lld to %lld", m->path, key, (long long)v, (long long)lo, (long long)hi);
    *out = (int32_t)v;
    return HONE_OK;
}

hone_status hn_get_real(const hone_model *m, const char *suffix, double lo, double hi, double def, float *out, hone_error *err)
{
    char key[128];
    float v = 0;
    bool found = false;
    hone_status st = hn_gguf_get_f32(m->file, hn_arch_key(m, key, suffix), &v, &found, err);
    if (st != HONE_OK) return st;
    if (!found) {
        if (isnan(def)) return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing; architecture %s needs it", m->path, key, m->arch->name);
        *out = (float)def;
        return HONE_OK;
    }
    if (!(v > lo && v <= hi)) return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %g, expected more than %g and at most %g", m->path, key, (double)v, lo, hi);
    *out = v;
    return HONE_OK;
}

/* Angles of sane files are at most 1 a position; hn_sincos must not see what is beyond its range. */
enum { MAX_ANGLE = 16 };
_Static_assert((int64_t)HN_MAX_CTX * MAX_ANGLE <= (int64_t)1 << 30, "positions times angles stay in the range of hn_sincos");

static hone_status check_angles(const hone_model *m, hone_error *err)
{
    for (int32_t i = 0; i < m->hp.n_rot / 2; i++)
        if (!(fabs(m->hp.rope_freq[i]) <= MAX_ANGLE))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: the keys %s.rope.* turn pair %d by %g a position, expected at most %d", m->path, m->arch->name, i, m->hp.rope_freq[i], MAX_ANGLE);
    return HONE_OK;
}

/* cos and sin are multiplied by attn_factor alone, times 1 + 0.1·ln(factor) where that is more than 1, as
 * ggml-org/llama.cpp does (src/llama-context.cpp, ggml/src/ggml-cpu/ops.cpp rope_yarn; it never reads yarn_attn_factor
 * for these families). Its converter copies Hugging Face's attention_factor, which is the *whole* magnitude there, into
 * yarn_attn_factor: where that is another number, answers differ from transformers', and a note says so. */
static hone_status yarn_magnitude(hone_model *m, float attn_factor, float factor, bool extrapolates, hone_error *err)
{
    enum { NOTE_BYTES = 480 };
    char key[128], *note;
    float said = 1.0f;
    double grown = 1.0;
    if (extrapolates && factor > 1.0f) grown += 0.1 * hn_log2_f64((double)factor) * 0.693147180559945309417;
    hone_status st = hn_get_real(m, "rope.scaling.yarn_attn_factor", 0, 1e6, 1.0, &said, err);
    if (st != HONE_OK) return st;
    m->hp.rope_mscale = (float)((double)attn_factor * grown);
    if (said == 1.0f || fabsf(said - m->hp.rope_mscale) <= 1e-4f * m->hp.rope_mscale) return HONE_OK;
    if (!(note = hn_arena_alloc(m->arena, NOTE_BYTES))) return HN_FAIL(err, HONE_E_NOMEM, "%s: metadata", m->path);
    hn_arch_key(m, key, "rope.scaling.yarn_attn_factor");
    snprintf(note, NOTE_BYTES, "%s = %g is not used: rotations are scaled by %g, which is attn_factor times "
             "1 + 0.1 ln(factor), as in llama.cpp; a model that transformers scales by %g answers differently here",
             key, (double)said, (double)m->hp.rope_mscale, (double)said);
    m->formula_note = note;
    return HONE_OK;
}

/* YaRN (Peng et al. 2023): interpolate slow dimensions, keep fast ones, a ramp between. A
 * negative ext_factor means 1; 0 leaves plain interpolation, without the correction of
 * magnitude (ggml-org/llama.cpp:ggml/src/ggml-cpu/ops.cpp rope_yarn). */
static hone_status apply_yarn(hone_model *m, float base, float factor, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    int32_t n = hp->n_rot, n_orig;
    float fast, slow, ext;
    if ((st = hn_get_int(m, "rope.scaling.original_context_length", 1, HN_MAX_CTX, hp->n_ctx_train, &n_orig, err)) != HONE_OK) return st;
    if ((st = hn_get_real(m, "rope.scaling.yarn_beta_fast", 0, 1e6, 32.0, &fast, err)) != HONE_OK) return st;
    if ((st = hn_get_real(m, "rope.scaling.yarn_beta_slow", 0, 1e6, 1.0, &slow, err)) != HONE_OK) return st;
    if ((st = hn_get_real(m, "rope.scaling.yarn_ext_factor", -1e6, 1e6, 1.0, &ext, err)) != HONE_OK) return st;
    if (ext < 0) ext = 1.0f;
    const double two_pi = 6.283185307179586477, l2 = hn_log2_f64(base);
    double lo = floor(n * hn_log2_f64(n_orig / (two_pi * (double)fast)) / (2.0 * l2));
    double hi = ceil(n * hn_log2_f64(n_orig / (two_pi * (double)slow)) / (2.0 * l2));
    lo = lo < 0 ? 0 : lo;
    hi = hi > n - 1 ? n - 1 : hi;
    for (int32_t i = 0; i < n / 2; i++) {
        double ramp = (i - lo) / (hi - lo > 0.001 ? hi - lo : 0.001);
        double mix = (double)ext * (1.0 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp));
        hp->rope_freq[i] *= (1.0 - mix) / (double)factor + mix;
    }
    st = yarn_magnitude(m, hp->rope_mscale, factor, ext > 0, err);
    return st == HONE_OK ? check_angles(m, err) : st;
}

/* Angles per position, with Llama-3 factors, linear or YaRN scaling applied. */
hone_status hn_bind_rope(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    char key[128];
    float base, factor, factor_old;
    int32_t n = hp->head_dim;
    if ((st = hn_get_int(m, "rope.dimension_count", 2, hp->head_dim, hp->head_dim, &n, err)) != HONE_OK) return st;
    if (n % 2) return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d is odd", m->path, hn_arch_key(m, key, "rope.dimension_count"), n);
    if (!hp->rope_neox && n != hp->head_dim)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d, expected the head width %d for architecture %s", m->path,
                       hn_arch_key(m, key, "rope.dimension_count"), n, hp->head_dim, m->arch->name);
    hp->n_rot = n;
    if ((st = hn_get_real(m, "rope.freq_base", 0, 1e12, 10000.0, &base, err)) != HONE_OK) return st;
    if (base < 1.0f) return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %g, expected at least 1", m->path, hn_arch_key(m, key, "rope.freq_base"), (double)base);
    float zero_ok = 0;
    bool found = false;
    if ((st = hn_gguf_get_f32(m->file, hn_arch_key(m, key, "rope.scaling.factor"), &zero_ok, &found, err)) != HONE_OK) return st;
    if (found && zero_ok == 0) factor = 1.0f; /* 0 means none */
    else {
        if ((st = hn_get_real(m, "rope.scale_linear", 0, 1e6, 1.0, &factor_old, err)) != HONE_OK) return st;
        if ((st = hn_get_real(m, "rope.scaling.factor", 0, 1e6, factor_old, &factor, err)) != HONE_OK) return st;
    }
    hone_str type = { "linear", 6 };
    if ((st = hn_gguf_get_str(m->file, hn_arch_key(m, key, "rope.scaling.type"), &type, NULL, err)) != HONE_OK) return st;
    bool none = type.len == 4 && !memcmp(type.ptr, "none", 4), linear = type.len == 6 && !memcmp(type.ptr, "linear", 6);
    bool yarn = type.len == 4 && !memcmp(type.ptr, "yarn", 4);
    if (!none && !linear && !yarn)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = \"%s\", expected none, linear or yarn", m->path, key, HN_ESC(type.ptr, type.len));
    if (none) factor = 1.0f;

    const float *factors = NULL;
    if (!hp->rope_neox && (st = hn_bind_vector(m, &factors, "rope_freqs.weight", n / 2, true, err)) != HONE_OK) return st;
    for (int32_t i = 0; factors && i < n / 2; i++)
        if (!(factors[i] >= 1.0f / MAX_ANGLE) || isinf(factors[i]))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor rope_freqs.weight[%d] = %g, expected a number of at least %g", m->path, i, (double)factors[i], 1.0 / MAX_ANGLE);
    hp->rope_freq = hn_arena_alloc(m->arena, (size_t)(n / 2) * sizeof(double));
    if (!hp->rope_freq) return HN_FAIL(err, HONE_E_NOMEM, "%s: rope table", m->path);
    hn_rope_freqs(hp->rope_freq, n, base, factors, yarn ? 1.0 : 1.0 / (double)factor);
    float attn;
    if ((st = hn_get_real(m, "rope.scaling.attn_factor", 0, 1e6, 1.0, &attn, err)) != HONE_OK) return st;
    hp->rope_mscale = attn;
    return yarn ? apply_yarn(m, base, factor, err) : check_angles(m, err);
}

hone_status hn_attention_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    char key[128];
    int32_t n_expert, kv_dim, key_len;
    if ((st = hn_get_int(m, "block_count", 1, HN_MAX_LAYER, -1, &hp->n_layer, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "context_length", 1, HN_MAX_CTX, -1, &hp->n_ctx_train, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "embedding_length", 1, HN_MAX_EMBD, -1, &hp->n_embd, err)) != HONE_OK) return st;
    if ((st = get_per_layer(m, "feed_forward_length", 1, HN_MAX_FF, -1, &hp->n_ff, err)) != HONE_OK) return st;
    if ((st = get_per_layer(m, "attention.head_count", 1, HN_MAX_HEAD, -1, &hp->n_head, err)) != HONE_OK) return st;
    if ((st = get_per_layer(m, "attention.head_count_kv", 1, HN_MAX_HEAD, hp->n_head, &hp->n_head_kv, err)) != HONE_OK) return st;
    /* attention here sees everything before it: beyond a trained window that is another model */
    int32_t window;
    if ((st = hn_get_int(m, "attention.sliding_window", 0, HN_MAX_CTX, 0, &window, err)) != HONE_OK) return st;
    if (window > 0 && window < hp->n_ctx_train) hp->n_ctx_train = hp->n_window = window;
    if ((st = hn_get_int(m, "expert_count", 0, 1024, 0, &n_expert, err)) != HONE_OK) return st;
    if (n_expert) return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d: mixtures of experts are not supported", m->path, hn_arch_key(m, key, "expert_count"), n_expert);
    if (hp->n_head % hp->n_head_kv)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d is not a multiple of head_count_kv = %d", m->path, hn_arch_key(m, key, "attention.head_count"), hp->n_head, hp->n_head_kv);
    if ((st = hn_get_int(m, "attention.key_length", 1, 65536, 0, &key_len, err)) != HONE_OK) return st;
    if (!key_len) {
        if (hp->n_embd % hp->n_head)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d is not a multiple of head_count = %d, and key_length is absent", m->path, hn_arch_key(m, key, "embedding_length"), hp->n_embd, hp->n_head);
        key_len = hp->n_embd / hp->n_head;
    }
    hp->head_dim = key_len;
    if ((st = hn_get_int(m, "attention.value_length", 1, 65536, key_len, &kv_dim, err)) != HONE_OK) return st;
    if (kv_dim != key_len)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d differs from key_length = %d; architecture %s here needs them equal", m->path,
                       hn_arch_key(m, key, "attention.value_length"), kv_dim, key_len, m->arch->name);
    if ((int64_t)hp->n_head * hp->head_dim > HN_MAX_EMBD * 4)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: head_count %d × key_length %d is beyond the limit %d", m->path, hp->n_head, hp->head_dim, HN_MAX_EMBD * 4);
    return hn_get_real(m, "attention.layer_norm_rms_epsilon", 0, 1.0, NAN, &hp->rms_eps, err);
}

/* ---- opening ------------------------------------------------------------------------------------- */

static hone_status choose_arch(hone_model *m, hone_error *err)
{
    hone_str arch, type;
    bool found;
    hone_status st = hn_gguf_get_str(m->file, "general.type", &type, &found, err);
    if (st != HONE_OK) return st;
    if (found && !(type.len == 5 && !memcmp(type.ptr, "model", 5)))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: general.type = \"%s\" is not a model%s", m->path, HN_ESC(type.ptr, type.len),
                       type.len == 7 && !memcmp(type.ptr, "adapter", 7) ? "; open the model it was made for, with --lora and this file" : "");
    if ((st = hn_gguf_get_str(m->file, "general.architecture", &arch, &found, err)) != HONE_OK) return st;
    if (!found) return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key general.architecture is missing; this is not a model file", m->path);
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (strlen(archs[i]->name) == arch.len && !memcmp(archs[i]->name, arch.ptr, arch.len)) {
            m->arch = archs[i];
            return HONE_OK;
        }
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: architecture \"%s\" is not supported; hone runs llama, qwen2, qwen3, rwkv6 and rwkv7", m->path, HN_ESC(arch.ptr, arch.len));
}

static hone_status refuse_leftovers(const hone_model *m, hone_error *err)
{
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        if (!m->bound[i])
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: tensor %s is not part of architecture %s as hone knows it (%d layers); running without it would give wrong answers",
                           m->path, HN_ESC(t->name.ptr, t->name.len), m->arch->name, m->hp.n_layer);
    }
    return HONE_OK;
}

/* general.file_type's name, or the type that holds most bytes. */
static const char *type_name(const hone_model *m)
{
    static const char *const names[] = { "F32", "F16", "Q4_0", "Q4_1", 0, 0, 0, "Q8_0", "Q5_0", "Q5_1", "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L",
        "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ3_M",
        "IQ2_S", "IQ2_M", "IQ4_XS", "IQ1_M", "BF16", 0, 0, 0, "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0" };
    uint32_t ft = UINT32_MAX;
    if (hn_gguf_get_u32(m->file, "general.file_type", &ft, NULL, NULL) == HONE_OK && ft < sizeof names / sizeof *names && names[ft]) return names[ft];
    uint64_t bytes[HN_TYPE_COUNT] = { 0 };
    int best = 0;
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        bytes[t->type] += t->n_bytes;
        if (bytes[t->type] > bytes[best]) best = (int)t->type;
    }
    return hn_type_get((uint32_t)best)->name;
}

static hone_status bind_all(hone_model *m, const char *ignore_keys, hone_error *err)
{
    hone_status st;
    uint64_t n_tensor = hn_gguf_n_tensors(m->file);
    if (!(m->bound = hn_arena_alloc(m->arena, n_tensor + 1))) return HN_FAIL(err, HONE_E_NOMEM, "%s: tensor table", m->path);
    if ((st = m->arch->hparams(m, err)) != HONE_OK || (st = hn_check_keys(m, ignore_keys, err)) != HONE_OK) return st;
    const hn_gguf_tensor *e = hn_gguf_find_tensor(m->file, "token_embd.weight");
    if (!e) return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor token_embd.weight is missing; architecture %s needs it", m->path, m->arch->name);
    if (e->ne[1] < 1 || e->ne[1] > HN_MAX_VOCAB)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor token_embd.weight has %llu rows, expected a vocabulary of 1 to %d", m->path, (unsigned long long)e->ne[1], HN_MAX_VOCAB);
    m->hp.n_vocab = (int32_t)e->ne[1];
    int32_t declared;
    char key[128];
    if ((st = hn_get_int(m, "vocab_size", 1, HN_MAX_VOCAB, m->hp.n_vocab, &declared, err)) != HONE_OK) return st;
    if (declared != m->hp.n_vocab)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, but tensor token_embd.weight has %d rows", m->path, hn_arch_key(m, key, "vocab_size"), declared, m->hp.n_vocab);
    if ((st = m->arch->bind(m, err)) != HONE_OK) return st;
    if ((st = refuse_leftovers(m, err)) != HONE_OK) return st;
    for (uint64_t i = 0; i < n_tensor; i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        m->n_params += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
        const hn_packed_entry *packed = m->packed_of ? m->packed_of[i] : NULL;
        m->n_bytes += packed ? packed->n_bytes : t->n_bytes;
        m->packed_bytes += packed ? packed->n_bytes : 0;
    }
    /* every weight is read once a token; of an untied embedding table only one row */
    m->bytes_per_token = m->n_bytes;
    for (uint64_t i = 0; i < n_tensor; i++)
        if (m->bound[i] == HN_BOUND_UNUSED) m->bytes_per_token -= hn_gguf_tensor_at(m->file, i)->n_bytes;
    if (m->output.data != m->token_embd.data)
        m->bytes_per_token -= (m->token_embd.packed ? hn_packed_bytes(m->token_embd.type, m->hp.n_embd, m->hp.n_vocab) : (uint64_t)m->token_embd.row_bytes * (uint64_t)m->hp.n_vocab) -
                              m->token_embd.row_bytes;
    return HONE_OK;
}

hone_status hn_model_from_gguf(hone_model **out, hn_gguf *file, const hone_model_params *params, hone_error *err)
{
    *out = NULL;
    hone_status st;
    const char *path = hn_gguf_path(file);
    hone_model *m = calloc(1, sizeof *m);
    if (!m) {
        hn_gguf_close(file);
        return HN_FAIL(err, HONE_E_NOMEM, "model handle");
    }
    pthread_mutex_init(&m->vocab_mu, NULL);
    pthread_mutex_init(&m->identity_mu, NULL);
    m->file = file;
    m->ignored_keys = m->formula_note = "";
    m->arena = hn_arena_new();
    if (!m->arena || !(m->path = hn_arena_strndup(m->arena, path, strlen(path))) ||
        (params && params->tokenizer_pre && !(m->pre = hn_arena_strndup(m->arena, params->tokenizer_pre, strlen(params->tokenizer_pre))))) {
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: model", path);
        goto fail;
    }
    m->has_tokenizer = hn_gguf_find(m->file, "tokenizer.ggml.model") >= 0;
    const char *ignore = params ? params->ignore_keys : NULL;
    if (m->has_tokenizer && (st = hn_check_tokenizer_keys(m, ignore, err)) != HONE_OK) goto fail;
    hone_str name = { "", 0 };
    if ((st = hn_gguf_get_str(m->file, "general.name", &name, NULL, err)) != HONE_OK) goto fail;
    if (params && params->vocab_only) {
        const hn_vocab *v;
        if ((st = hn_model_vocab(m, &v, err)) != HONE_OK) goto fail;
        m->hp.n_vocab = hn_vocab_size(v);
        m->type_name = "none";
    } else {
        if ((st = choose_arch(m, err)) != HONE_OK) goto fail;
        if ((st = hn_model_find_packed(m, params, err)) != HONE_OK) goto fail;
        if ((st = bind_all(m, ignore, err)) != HONE_OK) goto fail;
        m->type_name = type_name(m);
    }
    if (!(m->name = hn_arena_strndup(m->arena, name.ptr, name.len))) {
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: model", path);
        goto fail;
    }
    *out = m;
    return HONE_OK;
fail:
    hone_model_close(m);
    return st;
}

hone_status hone_model_open(hone_model **out, const char *path, const hone_model_params *params, hone_error *err)
{
    hn_gguf *file;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the model");
    HN_NEED(err, path, "the path of a GGUF file");
    hone_status st = hn_gguf_open(&file, path, err);
    if (st == HONE_E_FORMAT && hn_packed_is(path))
        return HN_FAIL(err, st, "%s: a packed file, which goes with a model; expected the model it was made from", HN_ESC(path, strlen(path)));
    return st == HONE_OK ? hn_model_from_gguf(out, file, params, err) : st;
}

void hone_model_close(hone_model *m)
{
    if (!m) return;
    hn_vocab_free(m->vocab);
    hn_packed_close(m->packed);
    hn_gguf_close(m->file);
    hn_arena_free(m->arena);
    pthread_mutex_destroy(&m->vocab_mu);
    pthread_mutex_destroy(&m->identity_mu);
    free(m);
}

hone_status hn_model_vocab(const hone_model *cm, const hn_vocab **out, hone_error *err)
{
    hone_model *m = (hone_model *)cm; /* the tokenizer is a cache; the model stays what it is */
    hone_status st = HONE_OK;
    pthread_mutex_lock(&m->vocab_mu);
    if (!m->vocab_tried) {
        st = hn_vocab_new(&m->vocab, m->file, m->pre, &m->vocab_err);
        m->vocab_tried = st != HONE_E_NOMEM; /* memory may come back; a bad file stays bad */
        if (st == HONE_OK && !m->vocab)
            HN_FAIL(&m->vocab_err, HONE_E_UNSUPPORTED, "%s: the file has no tokenizer; expected metadata tokenizer.ggml.model and what belongs to it", m->path);
    }
    *out = m->vocab;
    if (!m->vocab) {
        st = m->vocab_err.code;
        if (err) *err = m->vocab_err;
    }
    pthread_mutex_unlock(&m->vocab_mu);
    return st;
}

/* Megabytes of metadata are hashed once, and not by those who only open a model. */
static uint64_t fingerprint(const hone_model *cm)
{
    hone_model *m = (hone_model *)cm;
    pthread_mutex_lock(&m->vocab_mu);
    if (!m->fingerprint) m->fingerprint = hn_gguf_fingerprint(m->file);
    uint64_t h = m->fingerprint;
    pthread_mutex_unlock(&m->vocab_mu);
    return h;
}

hone_status hn_model_identity(const hone_model *cm, hn_identity *out, const hone_progress *pr, hone_error *err)
{
    hone_model *m = (hone_model *)cm; /* a cache */
    hone_status st = HONE_OK;
    pthread_mutex_lock(&m->identity_mu);
    if (!m->has_identity) st = hn_identity_of(m->file, &m->identity, NULL, pr, err);
    m->has_identity = st == HONE_OK;
    if (m->has_identity) *out = m->identity;
    pthread_mutex_unlock(&m->identity_mu);
    return st;
}

hone_status hone_model_identity(const hone_model *m, char *hex, const hone_progress *pr, hone_error *err)
{
    hn_identity id;
    HN_NEED(err, hex, "room for 65 characters");
    hex[0] = 0;
    HN_NEED(err, m, "a model");
    hone_status st = hn_model_identity(m, &id, pr, err);
    if (st == HONE_OK) hn_hash_hex(hex, id.content);
    return st;
}

void hone_model_get_info(const hone_model *m, hone_model_info *out)
{
    if (!out) return;
    *out = (hone_model_info){ 0 };
    if (!m) return;
    const hn_hparams *hp = &m->hp;
    *out = (hone_model_info){
        .arch = m->arch ? m->arch->name : "", .name = m->name, .type = m->type_name, .n_vocab = hp->n_vocab, .n_embd = hp->n_embd,
        .n_layer = hp->n_layer, .n_head = hp->n_head, .n_head_kv = hp->n_head_kv, .head_dim = hp->head_dim, .n_ff = hp->n_ff,
        .n_ctx_train = hp->n_ctx_train, .n_params = m->n_params, .n_bytes = m->n_bytes, .bytes_per_token = m->bytes_per_token,
        .fingerprint = fingerprint(m), .has_tokenizer = m->has_tokenizer, .packed_path = m->packed ? m->packed->path : NULL,
        .packed_note = m->packed_note ? m->packed_note : "", .packed_bytes = m->packed_bytes, .packed_compared = m->packed_compared,
        .packed_ignored = m->packed_ignored,
        .ignored_keys = m->ignored_keys, .formula_note = m->formula_note, .n_window = hp->n_window,
        .state_bytes = hp->recurrent ? (uint64_t)hp->n_layer * (uint64_t)hn_state_floats(hp) * sizeof(float) : 0,
    };
}
