/* families_gemma: those after gemma3, whose layers are of two widths and share what they remember.
 *   gemma4   as gemma3 without 1 + w; heads of windowed layers have a width of their own, values are normed too,
 *            scores are not scaled; the last layers read the keys and values of earlier ones; V may be K; rows of each
 *            token and layer; the stream is scaled after each layer; maybe experts beside the dense part
 *   gemma3n  likewise, all heads of one width; four streams of which one is computed, a low-rank pair beside attention,
 *            gates that keep their largest values alone in some layers */
#include "model/family_rows.h"

/* ---- numbers ---------------------------------------------------------------------------------------------- */

/* The layer whose keys and values layer il reads: the last of its kind that has some. −1: there is none. */
static int32_t source_of(const hn_hparams *hp, int32_t il)
{
    int32_t from = hp->n_own - 1;
    while (from >= 0 && hn_is_windowed(hp, from) != hn_is_windowed(hp, il)) from--;
    return from;
}

/* How many layers, the last, have no keys of their own. The first converters wrote it as a real number. */
static hone_status shared_layers(const hone_model *m, int32_t *n, hone_error *err)
{
    static const char suffix[] = "attention.shared_kv_layers";
    char key[128];
    const int32_t most = m->hp.n_layer - 1;
    float real = -1;
    bool found;
    if (hn_gguf_get_f32(m->file, hn_arch_key(m, key, suffix), &real, &found, NULL) != HONE_OK || !found)
        return hn_get_int(m, suffix, 0, most, 0, n, err);
    if (!(real >= 0 && real <= (float)most) || real != (float)(int32_t)real)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %g, expected a whole number of 0 to %d", m->path, key,
                       (double)real, most);
    *n = (int32_t)real;
    return HONE_OK;
}

/* Layers without keys of their own. */
static hone_status sharing_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    char key[128];
    int32_t n;
    hone_status st = shared_layers(m, &n, err);
    if (st != HONE_OK || !n) return st;
    hp->n_own = hp->n_layer - n;
    hn_arch_key(m, key, "attention.shared_kv_layers");
    for (int32_t il = hp->n_own; il < hp->n_layer; il++) {
        int32_t from = source_of(hp, il);
        if (from < 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d: no layer before %d is %s, whose keys layer %d could read",
                           m->path, key, n, hp->n_own, hn_is_windowed(hp, il) ? "windowed" : "without a window",
                           (int)il);
        if (hp->kv_of[from] != hp->kv_of[il])
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: attention.head_count_kv[%d] = %d, expected %d as of layer %d, whose keys it reads (%s "
                           "= %d)",
                           m->path, (int)il, (int)hp->kv_of[il], (int)hp->kv_of[from], (int)from, key, n);
    }
    return HONE_OK;
}

/* No layer may lack heads or a feed-forward part. */
static hone_status check_layers(const hone_model *m, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    char key[128];
    for (int32_t il = 0; il < hp->n_layer; il++)
        if (hp->n_head < 1 || hp->kv_of[il] < 1 || hp->ff_of[il] < 1)
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: layer %d: %s = %d, head_count_kv = %d, feed_forward_length = %d, expected at least 1",
                           m->path, (int)il, hn_arch_key(m, key, "attention.head_count"), hp->n_head,
                           (int)hp->kv_of[il], (int)hp->ff_of[il]);
    return HONE_OK;
}

/* The width of heads of windowed layers. */
static hone_status window_heads(hone_model *m, hone_error *err)
{
    char key[128];
    int32_t *k = &m->hp.head_dim_window, v;
    hone_status st = hn_get_int(m, "attention.key_length_swa", 1, 65536, -1, k, err);
    if (st != HONE_OK || (st = hn_get_int(m, "attention.value_length_swa", 1, 65536, -1, &v, err)) != HONE_OK)
        return st;
    if (v != *k)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d differs from key_length_swa = %d; here they must be equal",
                       m->path, hn_arch_key(m, key, "attention.value_length_swa"), v, *k);
    if ((int64_t)m->hp.n_head * *k > HN_MAX_EMBD * 4)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: head_count %d × key_length_swa %d is beyond the limit %d", m->path,
                       m->hp.n_head, *k, HN_MAX_EMBD * 4);
    return HONE_OK;
}

enum { MAX_PLE = 65536 };

static hone_status gemma4_hparams(hone_model *m, hone_error *err)
{
    char key[128];
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK || (st = check_layers(m, err)) != HONE_OK || (st = window_heads(m, err)) != HONE_OK) return st;
    if (!m->hp.windowed)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing or no array; architecture %s needs it",
                       m->path, hn_arch_key(m, key, "attention.sliding_window_pattern"), m->arch->name);
    m->hp.attn_scale = 1;
    if ((st = sharing_hparams(m, err)) != HONE_OK) return st;
    return hn_get_int(m, "embedding_length_per_layer_input", 0, MAX_PLE, -1, &m->hp.n_ple, err);
}

/* How sparse each layer's gate is. Converters write −inf where it is not: what a normal distribution has below it is
 * nothing. */
static hone_status sparsity_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    char key[128];
    hn_gguf_array a;
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, "activation_sparsity_scale"));
    if (at < 0) return HONE_OK;
    if (!hn_gguf_kv_array(m->file, (uint64_t)at, &a) || a.elem_type != HONE_KV_F32 || a.count != (uint64_t)hp->n_layer)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is no array of a f32 for each of %d layers", m->path, key,
                       hp->n_layer);
    float *v = hn_arena_alloc(m->arena, (size_t)hp->n_layer * sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", m->path);
    memcpy(v, a.data, (size_t)hp->n_layer * sizeof *v);
    for (int32_t il = 0; il < hp->n_layer; il++)
        if (!(v[il] < INFINITY))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%d] = %g, expected a number, or -inf for none", m->path, key,
                           (int)il, (double)v[il]);
    hp->sparsity = v;
    return HONE_OK;
}

static hone_status gemma3n_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    const hn_gguf_tensor *left = hn_gguf_find_tensor(m->file, "blk.0.laurel_l.weight");
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK || (st = check_layers(m, err)) != HONE_OK) return st;
    hp->attn_scale = 1;
    if ((st = sharing_hparams(m, err)) != HONE_OK || (st = sparsity_hparams(m, err)) != HONE_OK) return st;
    /* four are all that there were, and that the names of tensors have */
    if ((st = hn_get_int(m, "altup.num_inputs", HN_MAX_STREAM, HN_MAX_STREAM, -1, &hp->n_stream, err)) != HONE_OK)
        return st;
    if ((st = hn_get_int(m, "altup.active_idx", 0, HN_MAX_STREAM - 1, -1, &hp->active, err)) != HONE_OK) return st;
    hp->rank_laurel = left && left->ne[1] <= HN_MAX_EMBD ? (int32_t)left->ne[1] : 1;
    return hn_get_int(m, "embedding_length_per_layer_input", 1, MAX_PLE, -1, &hp->n_ple, err);
}

/* ---- the plan ------------------------------------------------------------------------------------------------ */

/* What both have. */
static void gemma_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hn_attn_plan(out, hp, il);
    out->n_head_kv = hp->kv_of[il];
    out->n_ff = hp->ff_of[il];
    out->n_ple = hp->n_ple;
    out->v_normed = true;
    out->no_keys = hp->n_own && il >= hp->n_own;
    if (out->no_keys) out->kv_from = source_of(hp, il);
}

static void gemma4_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    gemma_plan(out, hp, il);
    if (hp->moe.n_expert) out->ffn = HN_FFN_GLU_MOE;
    if (out->window) out->d_k = out->d_v = hp->head_dim_window;
}

static void gemma3n_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    gemma_plan(out, hp, il);
    out->sparse = hp->sparsity && !isinf(hp->sparsity[il]);
    if (out->sparse) out->cut = hp->sparsity[il];
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

/* Rows of each token and layer: a table, what is made of the stream as it begins, and its norm. */
#define PLE_OUTER                                                                                                      \
    MATRIX("per_layer_token_embd", OUTSIDE(ple_embd), EMBD, WHOLE, HN_DIM_PLE_ALL, HN_DIM_VOCAB, .layers = HN_IN_PLE), \
        MATRIX("per_layer_model_proj", OUTSIDE(ple_model_proj), PLE_MODEL, WHOLE, E, HN_DIM_PLE_ALL,                   \
               .layers = HN_IN_PLE),                                                                                   \
        VECTOR("per_layer_proj_norm.weight", OUTSIDE(ple_norm), HN_DIM_PLE, .layers = HN_IN_PLE)
#define PLE                                                                                                          \
    LINEAR("inp_gate", ple_gate, PLE_GATE, WHOLE, E, HN_DIM_PLE, .layers = HN_IN_PLE, .hf = "per_layer_input_gate"), \
        LINEAR("proj", ple_proj, PLE_PROJ, ROWS, HN_DIM_PLE, E, .layers = HN_IN_PLE, .hf = "per_layer_projection"),  \
        NORM("post_norm", ple_post_norm, E, "post_per_layer_input_norm", .layers = HN_IN_PLE)

static const hn_slot gemma4_outer[] = {
    ENDS(HN_TURN_NONE),
    VECTOR("rope_freqs.weight", OUTSIDE(rope_factors), HN_DIM_ROT_PAIRS, MAY),
    PLE_OUTER,
    { 0 },
};

/* without keys of their own layers have nothing but queries */
#define QUERIES_KEYS                                                                     \
    LINEAR("attn_qkv", attn_q, ATTN_Q, HEADS, E, HN_DIM_QKV, MAY, .rare = &hn_rare_qkv), \
        LINEAR("attn_q", attn_q, ATTN_Q, HEADS, E, Q, APART, .hf = "self_attn.q_proj"),  \
        LINEAR("attn_k", attn_k, ATTN_K, KV_HEADS, E, K, APART, .hf = "self_attn.k_proj", .layers = HN_IN_OWN)
#define KEY_NORMS                                                      \
    NORM("attn_q_norm", attn_q_norm, HN_DIM_HEAD, "self_attn.q_norm"), \
        NORM("attn_k_norm", attn_k_norm, HN_DIM_HEAD, "self_attn.k_norm", .layers = HN_IN_OWN)

/* without a window V may be K as it is projected */
static const hn_slot gemma4_layer[] = {
    ATTN_NORM,
    QUERIES_KEYS,
    LINEAR("attn_v", attn_v, ATTN_V, KV_HEADS, E, V, APART, .hf = "self_attn.v_proj", .layers = HN_IN_OWN_WINDOW),
    LINEAR("attn_v", attn_v, ATTN_V, KV_HEADS, E, V, MAY, APART, .hf = "self_attn.v_proj", .layers = HN_IN_OWN_GLOBAL),
    KEY_NORMS,
    ATTN_OUT,
    POST_NORMS(HN_TURN_NONE),
    NORM("ffn_norm", ffn_norm, E, "pre_feedforward_layernorm"),
    GATE,
    UP,
    DOWN,
    ROUTER,
    { .name = "ffn_gate_inp.scale", .field = OF(router_norm), .kind = HN_SLOT_OVER_ROOT, .ne = { E }, IN_MOE },
    EXPERTS,
    VECTOR("ffn_down_exps.scale", OF(expert_scale), HN_DIM_EXPERTS, IN_MOE),
    VECTOR("post_ffw_norm_1.weight", OF(ffn_post_norm_1), E, IN_MOE),
    VECTOR("pre_ffw_norm_2.weight", OF(ffn_norm_2), E, IN_MOE),
    VECTOR("post_ffw_norm_2.weight", OF(ffn_post_norm_2), E, IN_MOE),
    PLE,
    VECTOR("layer_output_scale.weight", OF(out_scale), 1, MAY),
    { 0 },
};

const hn_family hn_family_gemma4 = {
    .name = "gemma4",
    .bit = HN_GEMMA4,
    .hparams = gemma4_hparams,
    .plan = gemma4_plan,
    .outer = gemma4_outer,
    .layer = gemma4_layer,
    .is = &(const hn_switches){ .neox = true,
                                .qk_norm = HN_HEAD_NORM_EACH,
                                .act = HN_GLU_GELU,
                                .sqrt_embd = true,
                                .reads = HN_READS_WINDOW | HN_READS_LOGIT_CAP | HN_READS_LAYERS | HN_READS_GEMMA,
                                .needs_window = true,
                                .window_rope = HN_WINDOW_ROPE_PLAIN,
                                .window_base = 10000,
                                MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS, .maybe = true) },
};

/* ---- gemma3n --------------------------------------------------------------------------------------------------- */

static const hn_slot gemma3n_outer[] = {
    ENDS(HN_TURN_NONE),
    PLE_OUTER,
    { .name = "altup_proj.weight",
      .field = OUTSIDE(altup_proj),
      .kind = HN_SLOT_ROWS,
      .role = HN_ROLE_ALTUP_PROJ,
      .ne = { E, E, HN_MAX_STREAM - 1 },
      RARE(.part = { E, E, E }) },
    { .name = "altup_unembd_proj.weight",
      .field = OUTSIDE(altup_unembd),
      .kind = HN_SLOT_ROWS,
      .role = HN_ROLE_ALTUP_UNEMBD,
      .ne = { E, E, HN_MAX_STREAM - 1 },
      RARE(.part = { E, E, E }) },
    { 0 },
};
static const hn_slot gemma3n_layer[] = {
    ATTN_NORM,
    QUERIES_KEYS,
    LINEAR("attn_v", attn_v, ATTN_V, KV_HEADS, E, V, APART, .hf = "self_attn.v_proj", .layers = HN_IN_OWN),
    KEY_NORMS,
    ATTN_OUT,
    POST_NORMS(HN_TURN_NONE),
    NORM("ffn_norm", ffn_norm, E, "pre_feedforward_layernorm"),
    GATE,
    UP,
    DOWN,
    PLE,
    LINEAR("laurel_l", laurel_l, LAUREL_L, WHOLE, E, HN_DIM_LAUREL, .hf = "laurel.linear_left"),
    LINEAR("laurel_r", laurel_r, LAUREL_R, ROWS, HN_DIM_LAUREL, E, .hf = "laurel.linear_right"),
    NORM("laurel_post_norm", laurel_post_norm, E, "laurel.post_laurel_norm"),
    LINEAR("altup_router", altup_router, ALTUP_ROUTER, WHOLE, E, HN_DIM_STREAMS, .hf = "altup.modality_router"),
    { .name = "altup_router_norm.weight", .field = OF(altup_router_norm), .kind = HN_SLOT_OVER_N, .ne = { E } },
    LINEAR("altup_predict_coef", altup_predict, ALTUP_COEF, WHOLE, HN_DIM_STREAMS, HN_DIM_STREAMS2,
           .hf = "altup.prediction_coefs"),
    LINEAR("altup_correct_coef", altup_correct, ALTUP_COEF, WHOLE, HN_DIM_STREAMS, HN_DIM_STREAMS,
           .hf = "altup.correction_coefs"),
    VECTOR("altup_correct_scale.weight", OF(altup_correct_scale), E),
    { 0 },
};

const hn_family hn_family_gemma3n = {
    .name = "gemma3n",
    .bit = HN_GEMMA3N,
    .hparams = gemma3n_hparams,
    .plan = gemma3n_plan,
    .outer = gemma3n_outer,
    .layer = gemma3n_layer,
    .is = &(const hn_switches){ .neox = true,
                                .qk_norm = HN_HEAD_NORM_EACH,
                                .act = HN_GLU_GELU,
                                .sqrt_embd = true,
                                .reads = HN_READS_WINDOW | HN_READS_LOGIT_CAP | HN_READS_LAYERS,
                                .logit_cap = 30,
                                .needs_window = true,
                                .window_period = 5,
                                .window_rope = HN_WINDOW_ROPE_PLAIN,
                                .window_base = 10000 },
};
