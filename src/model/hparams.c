/* hparams: the numbers of a model from its metadata, each within policy. Owns the keys of each family; refuses to know
 * tensors but where a number is missing and a shape has it. */
#include "kernels/kernels.h"
#include "model/hparams.h"

#include <math.h>

const char *hn_arch_key(const hone_model *m, char key[128], const char *suffix)
{
    snprintf(key, 128, "%s.%s", m->arch->name, suffix);
    return key;
}

/* ---- values ------------------------------------------------------------------------ */

hone_status hn_get_int(const hone_model *m, const char *suffix, int64_t lo, int64_t hi, int64_t def, int32_t *out,
                       hone_error *err)
{
    char key[128];
    uint32_t v = 0;
    bool found = false;
    hone_status st = hn_gguf_get_u32(m->file, hn_arch_key(m, key, suffix), &v, &found, err);
    if (st != HONE_OK) return st;
    if (!found) {
        if (def < 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing; architecture %s needs it", m->path, key,
                           m->arch->name);
        *out = (int32_t)def;
        return HONE_OK;
    }
    if ((int64_t)v < lo || (int64_t)v > hi)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %u, expected %lld to %lld", m->path, key, v, (long long)lo,
                       (long long)hi);
    *out = (int32_t)v;
    return HONE_OK;
}

hone_status hn_first_context(const hone_model *m, int32_t *n, hone_error *err)
{
    hone_status st = hn_get_int(m, "context_length", 1, HN_MAX_CTX, -1, n, err);
    if (st != HONE_OK) return st;
    return hn_get_int(m, "rope.scaling.original_context_length", 1, HN_MAX_CTX, *n, n, err);
}

/* An array of integers, one for each layer, into out. */
static hone_status layers_of(const hone_model *m, const char *key, const hn_gguf_array *array, int64_t lo, int64_t hi,
                             int32_t *out, hone_error *err)
{
    const hn_gguf_array a = *array;
    uint32_t size = hn_gguf_type_size(a.elem_type);
    bool is_signed = a.elem_type == HONE_KV_I8 || a.elem_type == HONE_KV_I16 || a.elem_type == HONE_KV_I32 ||
                     a.elem_type == HONE_KV_I64;
    if (!size || a.elem_type == HONE_KV_F32 || a.elem_type == HONE_KV_F64 || a.elem_type == HONE_KV_BOOL)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is an array of %s, expected an integer or one per layer", m->path,
                       key, hn_gguf_type_name(a.elem_type));
    if (!hn_for_each_layer(&m->hp, a.count))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has %llu values, expected one for each of %d layers", m->path, key,
                       (unsigned long long)a.count, m->hp.n_layer);
    for (uint64_t i = 0; i < (uint64_t)m->hp.n_layer; i++) {
        uint64_t v = 0;
        for (uint32_t b = 0; b < size; b++) v |= (uint64_t)a.data[i * size + b] << (8 * b);
        if (is_signed && size < 8 && v >> (8 * size - 1)) v |= ~(uint64_t)0 << (8 * size);
        if (is_signed ? (int64_t)v < lo || (int64_t)v > hi : v > (uint64_t)hi || (int64_t)v < lo)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%llu] = %lld, expected %lld to %lld", m->path, key,
                           (unsigned long long)i, (long long)v, (long long)lo, (long long)hi);
        out[i] = (int32_t)v;
    }
    return HONE_OK;
}

hone_status hn_get_layers(const hone_model *m, const char *suffix, int64_t lo, int64_t hi, int64_t def, int32_t *out,
                          hone_error *err)
{
    char key[128];
    hn_gguf_array a;
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, suffix)), n_layer = m->hp.n_layer;
    if (at >= 0 && hn_gguf_kv_array(m->file, (uint64_t)at, &a)) return layers_of(m, key, &a, lo, hi, out, err);
    hone_status st = hn_get_int(m, suffix, lo, hi, def, out, err);
    for (int64_t i = 1; i < n_layer; i++) out[i] = out[0];
    return st;
}

/* Like hn_get_int for a key that may be an array with a value per layer: fine when all layers agree. */
static hone_status get_per_layer(const hone_model *m, const char *suffix, int64_t lo, int64_t hi, int64_t def,
                                 int32_t *out, hone_error *err)
{
    char key[128];
    int32_t all[HN_MAX_LAYER];
    hone_status st = hn_get_layers(m, suffix, lo, hi, def, all, err);
    if (st != HONE_OK) return st;
    for (int32_t i = 1; i < m->hp.n_layer; i++)
        if (all[i] != all[0])
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: %s differs between layers 0 and %d; %s models here have one value for all layers",
                           m->path, hn_arch_key(m, key, suffix), (int)i, m->arch->name);
    *out = all[0];
    return HONE_OK;
}

hone_status hn_get_real(const hone_model *m, const char *suffix, double lo, double hi, double def, float *out,
                        hone_error *err)
{
    char key[128];
    float v = 0;
    bool found = false;
    hone_status st = hn_gguf_get_f32(m->file, hn_arch_key(m, key, suffix), &v, &found, err);
    if (st != HONE_OK) return st;
    if (!found) {
        if (isnan(def))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing; architecture %s needs it", m->path, key,
                           m->arch->name);
        *out = (float)def;
        return HONE_OK;
    }
    if (!(v > lo && v <= hi))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %g, expected more than %g and at most %g", m->path, key, (double)v,
                       lo, hi);
    *out = v;
    return HONE_OK;
}

/* A truth value, which must be there. */
hone_status hn_get_bool(const hone_model *m, const char *suffix, bool *out, hone_error *err)
{
    char key[128];
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, suffix));
    hone_kv kv;
    if (at < 0)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing; architecture %s needs it", m->path, key,
                       m->arch->name);
    hn_gguf_kv(m->file, (uint64_t)at, &kv);
    if (kv.type != HONE_KV_BOOL)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is of type %s, expected bool", m->path, key,
                       hn_gguf_type_name(kv.type));
    *out = kv.v.b;
    return HONE_OK;
}

hone_status hn_get_truths(hone_model *m, const char *suffix, const bool **out, hone_error *err)
{
    char key[128];
    hn_gguf_array a;
    double x = 0;
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, suffix));
    *out = NULL;
    if (at < 0 || !hn_gguf_kv_array(m->file, (uint64_t)at, &a)) return HONE_OK;
    bool *v = hn_arena_alloc(m->arena, (size_t)m->hp.n_layer), good = hn_for_each_layer(&m->hp, a.count);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of layers", m->path);
    for (int32_t il = 0; good && il < m->hp.n_layer; il++) {
        good = hn_array_number(&a, (uint64_t)il, &x) && (x == 0 || x == 1);
        v[il] = x != 0;
    }
    if (!good)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is an array of %llu %s, expected a bool for each of %d layers",
                       m->path, key, (unsigned long long)a.count, hn_gguf_type_name(a.elem_type), m->hp.n_layer);
    *out = v;
    return HONE_OK;
}

/* ---- transformers ------------------------------------------------------------------------------------ */

static hone_status heads_of_all(hone_model *m, hone_error *err)
{
    return get_per_layer(m, "attention.head_count", 0, HN_MAX_HEAD, -1, &m->hp.n_head, err);
}

/* Of layers without heads of queries there are none of keys either; layers with those alone are linear. */
static hone_status heads_or_none(hone_model *m, hone_error *err)
{
    static const char queries[] = "attention.head_count", keys[] = "attention.head_count_kv";
    hn_hparams *hp = &m->hp;
    char key[128];
    int32_t n[HN_MAX_LAYER], kv[HN_MAX_LAYER];
    bool *linear = hn_arena_alloc(m->arena, (size_t)hp->n_layer);
    if (!linear) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of layers", m->path);
    hone_status st = hn_get_layers(m, queries, 0, HN_MAX_HEAD, -1, n, err);
    for (int32_t il = 0; st == HONE_OK && il < hp->n_layer; il++) {
        if (n[il] && hp->n_head && n[il] != hp->n_head)
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s[%d] = %d, expected 0, or %d as in another layer", m->path,
                           hn_arch_key(m, key, queries), (int)il, (int)n[il], (int)hp->n_head);
        if (n[il]) hp->n_head = n[il];
    }
    if (st == HONE_OK) st = hn_get_layers(m, keys, 0, HN_MAX_HEAD, hp->n_head, kv, err);
    for (int32_t il = 0; st == HONE_OK && il < hp->n_layer; il++) {
        linear[il] = n[il] && !kv[il];
        if (!n[il] && kv[il])
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: layer %d has no heads of queries and %d of keys (%s, %s), expected none of both",
                           m->path, (int)il, (int)kv[il], hn_arch_key(m, key, queries), keys);
    }
    hp->linear = linear;
    return st;
}

/* Heads of queries: as many in all layers, or, in families that read it so, in each any number. */
static hone_status queries_shape(hone_model *m, hone_error *err)
{
    static const char suffix[] = "attention.head_count";
    hn_hparams *hp = &m->hp;
    if (!(hp->is->reads & HN_READS_QUERIES)) return get_per_layer(m, suffix, 1, HN_MAX_HEAD, -1, &hp->n_head, err);
    int32_t *n = hn_arena_alloc(m->arena, (size_t)hp->n_layer * sizeof *n);
    if (!n) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", m->path);
    hone_status st = hn_get_layers(m, suffix, 1, HN_MAX_HEAD, -1, n, err);
    for (int32_t il = 0; st == HONE_OK && il < hp->n_layer; il++) hp->n_head = n[il] > hp->n_head ? n[il] : hp->n_head;
    hp->heads_of = n;
    return st;
}

/* The same of layers that are not all alike: some may have no heads of keys, no feed-forward part. no_ff: the width
 * where no key says it; -1: one must. */
static hone_status layers_shape(hone_model *m, int32_t no_ff, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    char key[128];
    size_t n = (size_t)hp->n_layer * sizeof(int32_t);
    int32_t *kv = hn_arena_alloc(m->arena, n), *ff = hn_arena_alloc(m->arena, n);
    if (!kv || !ff) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", m->path);
    if ((st = hn_get_layers(m, "feed_forward_length", 0, HN_MAX_FF, no_ff, ff, err)) != HONE_OK) return st;
    if ((st = (hp->is->reads & HN_READS_QUERIES ? queries_shape
               : hp->is->reads & HN_READS_HEADS ? heads_or_none
                                                : heads_of_all)(m, err)) != HONE_OK)
        return st;
    if ((st = hn_get_layers(m, "attention.head_count_kv", 0, HN_MAX_HEAD, hp->n_head, kv, err)) != HONE_OK) return st;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        hp->n_head_kv = kv[il] > hp->n_head_kv ? kv[il] : hp->n_head_kv;
        hp->n_ff = ff[il] > hp->n_ff ? ff[il] : hp->n_ff;
        if (kv[il] && !hp->heads_of && (hp->n_head == 0 || hp->n_head % kv[il]))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d is not a multiple of head_count_kv[%d] = %d", m->path,
                           hn_arch_key(m, key, "attention.head_count"), hp->n_head, (int)il, (int)kv[il]);
    }
    hp->kv_of = kv;
    hp->ff_of = ff;
    return HONE_OK;
}

/* The last blocks of a file may draft further tokens (block_count has them too): no layers of the model. Each has the
 * matrix that joins a token and a state; a last block without it would be a layer, which must not be left out. */
static hone_status nextn_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    char name[64];
    if (!(hp->is->reads & HN_READS_NEXTN)) return HONE_OK;
    hone_status st = hn_get_int(m, "nextn_predict_layers", 0, hp->n_layer - 1, 0, &hp->n_nextn, err);
    if (st != HONE_OK) return st;
    hp->n_layer -= hp->n_nextn;
    for (int32_t il = hp->n_layer; il < hp->n_layer + hp->n_nextn; il++) {
        snprintf(name, sizeof name, "blk.%d.attn_norm.weight", (int)il);
        bool is_there = hn_gguf_find_tensor(m->file, name);
        snprintf(name, sizeof name, "blk.%d.nextn.eh_proj.weight", (int)il);
        if (is_there && !hn_gguf_find_tensor(m->file, name))
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: %s.nextn_predict_layers = %d, but tensor %s is missing: expected the last %d of "
                           "block_count = %d blocks to draft",
                           m->path, m->arch->name, hp->n_nextn, name, hp->n_nextn, hp->n_layer + hp->n_nextn);
    }
    return HONE_OK;
}

/* The shape: what all transformers have. */
static hone_status shape_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    char key[128];
    int32_t n_expert;
    if ((st = hn_get_int(m, "block_count", 1, HN_MAX_LAYER, -1, &hp->n_layer, err)) != HONE_OK) return st;
    if ((st = nextn_hparams(m, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "context_length", 1, HN_MAX_CTX, -1, &hp->n_ctx_train, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "embedding_length", 1, HN_MAX_EMBD, -1, &hp->n_embd, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "expert_count", 0, 1024, 0, &n_expert, err)) != HONE_OK) return st;
    /* mixtures whose layers have experts alone may leave it out, as files of Qwen 3.5 do; a dense layer among them
     * would then have matrices of another width than 0 */
    const int32_t no_ff = n_expert && hp->is->moe ? 0 : -1;
    if (hp->is->reads & HN_READS_LAYERS) {
        if ((st = layers_shape(m, no_ff, err)) != HONE_OK) return st;
    } else {
        st = get_per_layer(m, "feed_forward_length", no_ff < 0 ? 1 : 0, HN_MAX_FF, no_ff, &hp->n_ff, err);
        if (st != HONE_OK) return st;
        if ((st = queries_shape(m, err)) != HONE_OK) return st;
        st = get_per_layer(m, "attention.head_count_kv", 1, HN_MAX_HEAD, hp->n_head, &hp->n_head_kv, err);
        if (st != HONE_OK) return st;
    }
    const bool of_one = n_expert == 1 && hp->is->reads & HN_READS_ONE_EXPERT;
    if (n_expert && !hp->is->moe && !of_one)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d: mixtures of experts are not supported", m->path,
                       hn_arch_key(m, key, "expert_count"), n_expert);
    for (int32_t il = 0; hp->heads_of && il < hp->n_layer; il++) {
        const int32_t kv = hp->kv_of ? hp->kv_of[il] : hp->n_head_kv;
        if (kv && hp->heads_of[il] % kv)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%d] = %d is not a multiple of head_count_kv = %d", m->path,
                           hn_arch_key(m, key, "attention.head_count"), (int)il, (int)hp->heads_of[il], (int)kv);
    }
    if (!hp->kv_of && !hp->heads_of && hp->n_head % hp->n_head_kv)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d is not a multiple of head_count_kv = %d", m->path,
                       hn_arch_key(m, key, "attention.head_count"), hp->n_head, hp->n_head_kv);
    return HONE_OK;
}

/* The width of a head: its key, or an even share of the stream. */
static hone_status head_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    char key[128];
    int32_t key_len = 0, value_len = 0;
    if (hp->n_head == 0) return HONE_OK;
    if ((st = hn_get_int(m, "attention.key_length", 1, 65536, 0, &key_len, err)) != HONE_OK) return st;
    if (!key_len) {
        if (hp->n_embd % hp->n_head)
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: %s = %d is not a multiple of head_count = %d, and key_length is absent", m->path,
                           hn_arch_key(m, key, "embedding_length"), hp->n_embd, hp->n_head);
        key_len = hp->n_embd / hp->n_head;
    }
    hp->head_dim = key_len;
    if ((st = hn_get_int(m, "attention.value_length", 1, 65536, key_len, &value_len, err)) != HONE_OK) return st;
    if (hp->is->reads & HN_READS_VALUES && value_len < key_len) hp->head_dim_v = value_len;
    if (value_len != key_len && !hp->head_dim_v)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s = %d differs from key_length = %d; architecture %s here needs them equal", m->path,
                       hn_arch_key(m, key, "attention.value_length"), value_len, key_len, m->arch->name);
    if ((int64_t)hp->n_head * hp->head_dim > HN_MAX_EMBD * 4)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: head_count %d × key_length %d is beyond the limit %d", m->path,
                       hp->n_head, hp->head_dim, HN_MAX_EMBD * 4);
    return HONE_OK;
}

/* Which layers have the window: a truth value for each, or the length of a period; 0 or 1: all or none. */
static hone_status window_pattern(hone_model *m, int32_t period, hone_error *err)
{
    static const char key[] = "attention.sliding_window_pattern";
    hn_hparams *hp = &m->hp;
    hone_status st = hn_get_truths(m, key, &hp->windowed, err);
    if (st != HONE_OK || hp->windowed) return st;
    st = hn_get_int(m, key, 0, HN_MAX_LAYER, period, &hp->window_period, err);
    if (hp->window_period == 0) hp->window_period = HN_ALL_WINDOWED;
    return st;
}

/* Where positions come in runs, the last of four layers has none; files say no other. */
static hone_status runs_hparams(hone_model *m, hone_error *err)
{
    static const char suffix[] = "attention.sliding_window_pattern";
    enum { PERIOD = 4 };
    char key[128];
    const bool *windowed;
    int32_t period = PERIOD;
    hone_status st = hn_get_truths(m, suffix, &windowed, err);
    if (st == HONE_OK && !windowed) st = hn_get_int(m, suffix, 0, HN_MAX_LAYER, PERIOD, &period, err);
    bool good = !period || period == PERIOD;
    for (int32_t il = 0; st == HONE_OK && windowed && il < m->hp.n_layer; il++)
        good = good && windowed[il] == ((il + 1) % PERIOD != 0);
    return st != HONE_OK || good ? st
                                 : HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s, expected all but each fourth layer",
                                           m->path, hn_arch_key(m, key, suffix));
}

/* The window of a family that has one on some of its layers; of another, whose layers see everything, it is a limit:
 * beyond it that is another model than was trained. */
static hone_status window_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    const hn_switches *is = hp->is;
    if (is->runs) return runs_hparams(m, err);
    const int32_t least = is->needs_window ? 1 : 0, absent = is->needs_window ? -1 : is->window;
    hone_status st = hn_get_int(m, "attention.sliding_window", least, HN_MAX_CTX, absent, &hp->window, err);
    if (st != HONE_OK) return st;
    if (is->window_layers && hp->n_layer != is->window_layers) hp->window = 0;
    if (is->reads & HN_READS_WINDOW) {
        st = hp->window > 0 && is->window_rope != HN_WINDOW_ROPE_PLAIN
                 ? hn_get_real(m, "rope.freq_base_swa", 0, 1e12, 0, &hp->window_base, err)
                 : HONE_OK;
        return st == HONE_OK ? window_pattern(m, is->window_period, err) : st;
    }
    if (hp->window > 0 && hp->window < hp->n_ctx_train) hp->n_ctx_train = hp->n_window = hp->window;
    hp->window = 0;
    return HONE_OK;
}

/* 0 and what is not there say none. */
static hone_status get_cap(const hone_model *m, const char *suffix, float def, float *out, hone_error *err)
{
    const double tiny = -1e-30; /* 0 is allowed */
    return hn_get_real(m, suffix, tiny, 1e6, (double)def, out, err);
}

/* Factors of what flows through the model. */
static hone_status scale_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    const hn_switches *is = hp->is;
    const double most = 1e6, tiny = 1e-30; /* 0 is allowed */
    hone_status st;
    if (hp->n_layer == is->wide_scale_at) hp->attn_scale = 1.0f / sqrtf((float)hp->n_embd / (float)hp->n_head);
    if (is->sqrt_embd) hp->emb_scale = sqrtf((float)hp->n_embd);
    if (is->reads & HN_READS_SCALES) {
        if ((st = hn_get_real(m, "embedding_scale", 0, most, 1, &hp->emb_scale, err)) != HONE_OK) return st;
        if ((st = hn_get_real(m, "residual_scale", 0, most, 1, &hp->res_mul, err)) != HONE_OK) return st;
        if (!is->latent && (st = hn_get_real(m, "attention.scale", 0, most, 0, &hp->attn_scale, err)) != HONE_OK)
            return st;
        if ((st = hn_get_real(m, "logit_scale", 0, most, 1, &hp->logit_mul, err)) != HONE_OK) return st;
        hp->logit_mul = 1.0f / hp->logit_mul;
    }
    if (is->reads & HN_READS_LOGIT_SCALE &&
        (st = hn_get_real(m, "logit_scale", 0, most, 1, &hp->logit_mul, err)) != HONE_OK)
        return st;
    if (is->reads & HN_READS_VALUES &&
        (st = hn_get_real(m, "attention.value_scale", tiny, most, 0, &hp->value_mul, err)) != HONE_OK)
        return st;
    if (hp->value_mul == 1) hp->value_mul = 0;
    if (is->reads & HN_READS_CLIP &&
        (st = hn_get_real(m, "attention.clamp_kqv", -tiny, most, 0, &hp->qkv_clip, err)) != HONE_OK)
        return st;
    if (is->reads & HN_READS_ATTN_CAP &&
        (st = get_cap(m, "attn_logit_softcapping", is->attn_cap, &hp->attn_cap, err)) != HONE_OK)
        return st;
    if (is->reads & HN_READS_LOGIT_CAP)
        return get_cap(m, "final_logit_softcapping", is->logit_cap, &hp->logit_cap, err);
    return HONE_OK;
}

/* ALiBi (Press et al. 2022): of n heads, n the power of two that there are at least, head i loses 2^(−b·(i + 1)/n) of a
 * score with every position; heads beyond n lie between the first of those. */
static hone_status fade_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    const double most = 64;
    float bias = 0;
    int32_t n = 1;
    if (hp->is->fade == 0) return HONE_OK;
    hone_status st = hn_get_real(m, "attention.max_alibi_bias", 0, most, (double)hp->is->fade, &bias, err);
    if (st != HONE_OK) return st;
    float *fade = hn_arena_alloc(m->arena, (size_t)hp->n_head * sizeof *fade);
    if (!fade) return HN_FAIL(err, HONE_E_NOMEM, "%s: what scores of each head lose", m->path);
    while (2 * n <= hp->n_head) n *= 2;
    for (int32_t i = 0; i < hp->n_head; i++) {
        const double step = i < n ? i + 1 : i - n + 0.5;
        fade[i] = (float)hn_exp2_f64(-(double)bias * step / n);
    }
    hp->fade = fade;
    return HONE_OK;
}

hone_status hn_get_layer_truths(hone_model *m, const char *suffix, const bool **out, hone_error *err)
{
    char key[128];
    hone_kv kv;
    const int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, suffix));
    hone_status st = hn_get_truths(m, suffix, out, err);
    if (st != HONE_OK || at < 0 || *out) return st;
    hn_gguf_kv(m->file, (uint64_t)at, &kv);
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is of type %s, expected a bool for each of %d layers", m->path, key,
                   hn_gguf_type_name(kv.type), m->hp.n_layer);
}

/* Does anything turn? */
static hone_status turns_hparams(hone_model *m, hone_error *err)
{
    static const char key[] = "rope.scaling.finetuned";
    char full[128];
    bool turns = true;
    hone_status st = HONE_OK;
    if (m->hp.is->reads & HN_READS_TURNS && hn_gguf_find(m->file, hn_arch_key(m, full, key)) >= 0)
        st = hn_get_bool(m, key, &turns, err);
    m->hp.nope = !turns;
    if (st != HONE_OK || !(m->hp.is->reads & HN_READS_TURNING)) return st;
    return hn_get_layer_truths(m, "attention.rope_pattern", &m->hp.turns, err); /* without the key all do */
}

/* A converter that writes sections of time and height has put the pairs of each head into halves. */
static void sections_hparams(hone_model *m)
{
    char key[128];
    hn_gguf_array a;
    double x[2];
    if (!(m->hp.is->reads & HN_READS_SECTIONS)) return;
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, "rope.dimension_sections"));
    if (at < 0 || !hn_gguf_kv_array(m->file, (uint64_t)at, &a) || a.count < 2) return;
    if (hn_array_number(&a, 0, &x[0]) && hn_array_number(&a, 1, &x[1])) m->hp.rope_neox = x[0] > 0 && x[1] > 0;
}

/* Queries that grow with their positions, by the context that the model was trained on at first; in latent attention
 * the key of that length may say another. */
static hone_status temperature_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    float scale = 0;
    int32_t length;
    hone_status st;
    if (!(hp->is->reads & HN_READS_TEMPERATURE)) return HONE_OK;
    if ((st = hn_get_real(m, "attention.temperature_scale", -1e-30, 1e6, 0, &scale, err)) != HONE_OK) return st;
    if (scale == 0) return HONE_OK;
    st = hn_first_context(m, &length, err);
    if (st == HONE_OK && hp->is->latent)
        st = hn_get_int(m, "attention.temperature_length", 1, HN_MAX_CTX, length, &length, err);
    hp->temperature = (hn_temperature){ (double)scale, length, 0 };
    return st;
}

static bool has_kv_b(const hone_model *m)
{
    char name[64];
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        snprintf(name, sizeof name, "blk.%d.attn_kv_b.weight", (int)il);
        if (hn_gguf_find_tensor(m->file, name)) return true;
    }
    return false;
}

/* Latent attention's numbers. Its scores are scaled by the width of the heads that were compressed, and, where YaRN
 * stretches positions, by the square of a magnitude: the file has a tenth of mscale_all_dim (DeepSeek-V2, 2024). */
static hone_status latent_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    char key[128];
    int32_t d;
    float factor, multiplier;
    bool yarn;
    hone_status st;
    if ((st = hn_get_int(m, "attention.q_lora_rank", 0, HN_MAX_EMBD, 0, &hp->rank_q, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "attention.kv_lora_rank", 1, 65536, -1, &hp->rank_kv, err)) != HONE_OK) return st;
    /* the first converters, and MiniCPM 3's, wrote no others: keys and values as their one matrix makes them */
    bool first = hn_gguf_find(m->file, hn_arch_key(m, key, "attention.key_length_mla")) < 0 &&
                 (has_kv_b(m) || m->arch->bit == HN_MINICPM3);
    st = hn_get_int(m, first ? "attention.key_length" : "attention.key_length_mla", 1, 65536, -1, &d, err);
    if (st != HONE_OK) return st;
    st =
        hn_get_int(m, first ? "attention.value_length" : "attention.value_length_mla", 1, 65536, -1, &hp->d_value, err);
    if (st != HONE_OK) return st;
    if ((st = hn_get_int(m, "rope.dimension_count", 2, 65536, -1, &hp->d_rope, err)) != HONE_OK) return st;
    if (hp->d_rope >= d)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected less than attention.key_length%s = %d", m->path,
                       hn_arch_key(m, key, "rope.dimension_count"), hp->d_rope, first ? "" : "_mla", d);
    hp->d_nope = d - hp->d_rope;
    hp->n_head_kv = 1;
    hp->head_dim = hp->rank_kv + hp->d_rope;
    if ((st = hn_rope_scaling(m, &factor, &yarn, err)) != HONE_OK) return st;
    if ((st = hn_get_real(m, "rope.scaling.yarn_log_multiplier", -1e-30, 1e6, 0, &multiplier, err)) != HONE_OK)
        return st;
    double grown = 1.0;
    if (yarn && factor > 1.0f && hp->is->nope_period >= 0)
        grown += (double)multiplier * (hn_log2_f64((double)factor) * 0.693147180559945309417);
    hp->attn_scale = (float)(grown * grown / sqrt((double)d));
    return HONE_OK;
}

/* Where files of the family may say it: the function of gates. */
static hone_status act_hparams(hone_model *m, hone_error *err)
{
    static const struct {
        const char *word;
        hn_glu act;
    } words[] = {
        { "gelu", HN_GLU_GELU_ERF }, { "gelu_pytorch_tanh", HN_GLU_GELU },
        { "gelu_new", HN_GLU_GELU }, { "silu", HN_GLU_SILU },
        { "swish", HN_GLU_SILU },
    };
    char key[128];
    hone_str v;
    bool found = false;
    if (!(m->hp.is->reads & HN_READS_ACT)) return HONE_OK;
    hone_status st = hn_gguf_get_str(m->file, hn_arch_key(m, key, "hidden_activation"), &v, &found, err);
    if (st != HONE_OK || !found) return st;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].word) != v.len || memcmp(words[i].word, v.ptr, v.len) != 0) continue;
        m->hp.act = words[i].act;
        return HONE_OK;
    }
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s: %s = \"%s\", expected gelu, gelu_pytorch_tanh, gelu_new, silu or swish", m->path, key,
                   HN_ESC(v.ptr, v.len));
}

/* Where a file of the family may say it: does the model look both ways? */
static hone_status causal_hparams(hone_model *m, hone_error *err)
{
    static const char suffix[] = "attention.causal";
    char key[128];
    bool causal = true;
    if (!(m->hp.is->reads & HN_READS_CAUSAL) || hn_gguf_find(m->file, hn_arch_key(m, key, suffix)) < 0) return HONE_OK;
    hone_status st = hn_get_bool(m, suffix, &causal, err);
    if (!causal) m->hp.both = true;
    return st;
}

/* What norms add before the root: below the name of the family's norm; where files may have it below either, RMSNorm's
 * comes first. */
static hone_status eps_hparams(hone_model *m, hone_error *err)
{
    static const char layer[] = "attention.layer_norm_epsilon", rms[] = "attention.layer_norm_rms_epsilon";
    hn_hparams *hp = &m->hp;
    char layer_key[128], rms_key[128];
    float other = 0;
    hp->post_eps = hp->is->post_eps;
    if (!(hp->is->reads & HN_READS_EITHER_EPS))
        return hp->is->layer_norm ? hn_get_real(m, layer, 0, 1.0, NAN, &hp->ln_eps, err)
                                  : hn_get_real(m, rms, 0, 1.0, NAN, &hp->rms_eps, err);
    if (hn_gguf_find(m->file, hn_arch_key(m, layer_key, layer)) < 0 &&
        hn_gguf_find(m->file, hn_arch_key(m, rms_key, rms)) < 0)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata keys %s and %s are missing; architecture %s needs one of them",
                       m->path, layer_key, rms_key, m->arch->name);
    hone_status st = hn_get_real(m, layer, 0, 1.0, 0, &other, err);
    if (st == HONE_OK) st = hn_get_real(m, rms, 0, 1.0, (double)other, &hp->rms_eps, err);
    hp->ln_eps = hp->rms_eps;
    return st;
}

hone_status hn_attn_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    const hn_switches *is = hp->is = m->arch->is;
    hone_status st;
    hp->emb_scale = 1;
    hp->rope_neox = is->neox;
    hp->layer_norm = is->layer_norm;
    hp->parallel = is->parallel;
    hp->both = is->both;
    hp->act = is->act;
    if ((st = causal_hparams(m, err)) != HONE_OK) return st;
    if (is->reads & HN_READS_PARALLEL && (st = hn_get_bool(m, "use_parallel_residual", &hp->parallel, err)) != HONE_OK)
        return st;
    if ((st = shape_hparams(m, err)) != HONE_OK) return st;
    if ((st = (is->latent ? latent_hparams : head_hparams)(m, err)) != HONE_OK) return st;
    int32_t n_expert = 1;
    if (is->moe && is->moe->maybe && (st = hn_get_int(m, "expert_count", 0, 1024, 0, &n_expert, err)) != HONE_OK)
        return st;
    if (is->moe && is->moe->by_router && !hn_moe_is_routed(m)) n_expert = 0;
    if (is->moe && n_expert && (st = hn_moe_hparams(m, err)) != HONE_OK) return st;
    if ((st = window_hparams(m, err)) != HONE_OK) return st;
    if ((st = turns_hparams(m, err)) != HONE_OK) return st;
    sections_hparams(m);
    if ((st = act_hparams(m, err)) != HONE_OK) return st;
    if ((st = scale_hparams(m, err)) != HONE_OK) return st;
    if ((st = fade_hparams(m, err)) != HONE_OK) return st;
    if ((st = temperature_hparams(m, err)) != HONE_OK) return st;
    return eps_hparams(m, err);
}

/* ---- RWKV ---------------------------------------------------------------------------------------------- */

static hone_status rwkv_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    char key[128];
    if ((st = hn_get_int(m, "block_count", 1, HN_MAX_LAYER, -1, &hp->n_layer, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "context_length", 1, HN_MAX_CTX, -1, &hp->n_ctx_train, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "embedding_length", 1, HN_MAX_EMBD, -1, &hp->n_embd, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "feed_forward_length", 1, HN_MAX_FF, -1, &hp->n_ff, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "wkv.head_size", 1, HN_MAX_WKV, -1, &hp->head_dim, err)) != HONE_OK) return st;
    if (hp->n_embd % hp->head_dim)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d is not a multiple of wkv.head_size = %d", m->path,
                       hn_arch_key(m, key, "embedding_length"), hp->n_embd, hp->head_dim);
    hp->n_head = hp->n_head_kv = hp->n_embd / hp->head_dim;
    int32_t shifts;
    if ((st = hn_get_int(m, "token_shift_count", 0, 1024, HN_RWKV_STATE_VECTORS, &shifts, err)) != HONE_OK) return st;
    if (shifts != HN_RWKV_STATE_VECTORS)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d, expected %d: time mix and channel mix", m->path,
                       hn_arch_key(m, key, "token_shift_count"), shifts, HN_RWKV_STATE_VECTORS);
    hp->emb_scale = 1;
    hp->layer_norm = true;
    return hn_get_real(m, "attention.layer_norm_epsilon", 0, 1.0, NAN, &hp->ln_eps, err);
}

hone_status hn_rwkv6_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    if ((st = rwkv_hparams(m, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "time_mix_extra_dim", 1, HN_MAX_EMBD / HN_RWKV_MIXES, -1, &hp->rank_mix, err)) != HONE_OK)
        return st;
    if ((st = hn_get_int(m, "time_decay_extra_dim", 1, HN_MAX_EMBD, -1, &hp->rank_decay, err)) != HONE_OK) return st;
    return hn_get_int(m, "rescale_every_n_layers", 0, HN_MAX_LAYER, 0, &hp->rescale_every, err);
}

/* The rank of a low-rank pair: its key, or what the first factor has. */
static hone_status rank_of(const hone_model *m, const char *key, const char *tensor, int32_t *rank, hone_error *err)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, tensor);
    int64_t def = t && t->ne[1] <= HN_MAX_EMBD ? (int64_t)t->ne[1] : -1;
    return hn_get_int(m, key, 1, HN_MAX_EMBD, def, rank, err);
}

hone_status hn_rwkv7_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    if ((st = rwkv_hparams(m, err)) != HONE_OK) return st;
    if ((st = rank_of(m, "attention.decay_lora_rank", "blk.0.time_mix_w1.weight", &hp->rank_decay, err)) != HONE_OK)
        return st;
    if ((st = rank_of(m, "attention.iclr_lora_rank", "blk.0.time_mix_a1.weight", &hp->rank_iclr, err)) != HONE_OK)
        return st;
    hp->rank_value = 1; /* one layer has no use for it */
    if (hp->n_layer > 1 && (st = rank_of(m, "attention.value_residual_mix_lora_rank", "blk.1.time_mix_v1.weight",
                                         &hp->rank_value, err)) != HONE_OK)
        return st;
    return rank_of(m, "attention.gate_lora_rank", "blk.0.time_mix_g1.weight", &hp->rank_gate, err);
}
