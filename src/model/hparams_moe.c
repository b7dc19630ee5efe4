/* hparams_moe: the numbers of mixtures of experts from a model's metadata, each within policy. A width that a file does
 * not name is what its tensors have. */
#include "model/hparams.h"

/* A dimension of a matrix of that name in some layer; 0: no layer has it. */
static int32_t dimension_of(const hone_model *m, const char *name, int i)
{
    char full[96];
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        snprintf(full, sizeof full, "blk.%d.%s.weight", (int)il, name);
        const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, full);
        if (t) return t->ne[i] <= HN_MAX_FF ? (int32_t)t->ne[i] : 0;
    }
    return 0;
}
static int32_t width_of(const hone_model *m, const char *name) { return dimension_of(m, name, 0); }
static int32_t rows_of(const hone_model *m, const char *name) { return dimension_of(m, name, 1); }

/* A number of each layer of experts: its key, or `absent` (0: it must be there). *of: where it has one for each layer,
 * in which layers without experts have none; *most of them. */
static hone_status of_layers(hone_model *m, const char *suffix, int32_t hi, int32_t absent, int32_t *most,
                             const int32_t **of, hone_error *err)
{
    char key[128];
    hn_gguf_array a;
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, suffix));
    if (at < 0 || !hn_gguf_kv_array(m->file, (uint64_t)at, &a))
        return hn_get_int(m, suffix, absent ? 0 : 1, hi, absent ? absent : -1, most, err);
    int32_t *n = hn_arena_alloc(m->arena, (size_t)m->hp.n_layer * sizeof *n);
    if (!n) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of layers", m->path);
    hone_status st = hn_get_layers(m, suffix, 0, hi, -1, n, err);
    *of = n;
    *most = 0;
    for (int32_t il = 0; st == HONE_OK && il < m->hp.n_layer; il++) *most = n[il] > *most ? n[il] : *most;
    return st != HONE_OK || *most
               ? st
               : HN_FAIL(err, HONE_E_FORMAT, "%s: %s is 0 in all layers, expected more in some", m->path, key);
}

hone_status hn_moe_check_layer(const hone_model *m, int32_t il, hone_error *err)
{
    const hn_layer_plan *p = &m->plan[il];
    if (!(HN_PLAN_BIT(p->ffn) & HN_WITH_EXPERTS) || (p->n_used && p->n_ff_exp)) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s.%s[%d] = 0, but the layer has experts", m->path, m->arch->name,
                   p->n_used ? "expert_feed_forward_length" : "expert_used_count", (int)il);
}

/* Of an expert: its key, or what its last matrix takes. */
static hone_status widths(hone_model *m, hone_error *err)
{
    hn_moe_numbers *n = &m->hp.moe;
    int32_t own = width_of(m, "ffn_down_exps");
    if (!own) own = width_of(m, "ffn_down.0");
    if (!own) own = rows_of(m, "ffn_up_exps");
    if (!own && m->hp.is->moe->every_other) own = m->hp.n_ff; /* of one layer, which has none */
    hone_status st = of_layers(m, "expert_feed_forward_length", HN_MAX_FF, own, &n->n_ff, &n->ff_of, err);
    if (st != HONE_OK) return st;
    if (!n->n_ff) n->n_ff = own; /* how llama.cpp writes that it was not said */
    int32_t shared = width_of(m, "ffn_down_shexp");
    int32_t count = 1;
    if (!shared) shared = rows_of(m, "ffn_up_shexp");
    st = hn_get_int(m, "expert_shared_feed_forward_length", 0, HN_MAX_FF, shared, &n->n_ff_shared, err);
    if (st == HONE_OK) st = hn_get_int(m, "expert_shared_count", 0, HN_MAX_EXPERT, 1, &count, err);
    /* some files have the width of each of several, which are one matrix; or, saved by llama.cpp, 0 */
    if (!n->n_ff_shared || (int64_t)n->n_ff_shared * count == shared) n->n_ff_shared = shared;
    return st;
}

/* Experts in equal groups, some of which take part. */
static hone_status groups(hone_model *m, hone_error *err)
{
    hn_moe_numbers *n = &m->hp.moe;
    char key[128];
    hone_status st = hn_get_int(m, "expert_group_count", 0, HN_MAX_GROUPS, 0, &n->n_group, err);
    if (st != HONE_OK) return st;
    if ((st = hn_get_int(m, "expert_group_used_count", 0, HN_MAX_GROUPS, 0, &n->n_group_used, err)) != HONE_OK)
        return st;
    if (n->n_group < 2) return HONE_OK;
    if (n->n_expert % n->n_group)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected a divisor of expert_count = %d", m->path,
                       hn_arch_key(m, key, "expert_group_count"), n->n_group, n->n_expert);
    if (n->n_group_used < 1 || n->n_group_used > n->n_group || n->n_group_used * (n->n_expert / n->n_group) < n->n_used)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %s = %d, expected 1 to expert_group_count = %d, with expert_used_count = %d experts",
                       m->path, hn_arch_key(m, key, "expert_group_used_count"), n->n_group_used, n->n_group, n->n_used);
    return HONE_OK;
}

/* How scores are made where a bias of the choice says it: all layers of experts have one, or none. */
static hone_status gating_by_bias(const hone_model *m, int32_t *func, hone_error *err)
{
    char bias[64], router[64], without[64] = "";
    bool is_there = false;
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        snprintf(bias, sizeof bias, "blk.%d.exp_probs_b.bias", (int)il);
        snprintf(router, sizeof router, "blk.%d.ffn_gate_inp.weight", (int)il);
        if (hn_gguf_find_tensor(m->file, bias)) is_there = true;
        else if (hn_gguf_find_tensor(m->file, router)) memcpy(without, bias, sizeof without);
    }
    *func = is_there ? HN_GATING_SIGMOID : HN_GATING_SOFTMAX;
    if (!is_there || !without[0]) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT,
                   "%s: tensor %s is missing, though another layer has one: without %s.expert_gating_func it says how "
                   "experts are chosen, expected in all layers or in none",
                   m->path, without, m->arch->name);
}

static bool has_choice_bias(const hone_model *m)
{
    char name[64];
    bool found = false;
    for (int32_t il = 0; il < m->hp.n_layer && !found; il++) {
        snprintf(name, sizeof name, "blk.%d.exp_probs_b.bias", (int)il);
        found = hn_gguf_find_tensor(m->file, name);
    }
    return found;
}

/* How scores are made and weights end. */
static hone_status choice(hone_model *m, hone_error *err)
{
    hn_moe_numbers *n = &m->hp.moe;
    const hn_moe_switches *is = m->hp.is->moe;
    char key[128];
    int32_t func, absent = is->gating ? (int32_t)is->gating : (int32_t)is->gating_absent;
    bool norm = false;
    hone_status st = hn_get_int(m, "expert_gating_func", 0, INT32_MAX, 0, &func, err);
    if (st != HONE_OK) return st;
    if (func == 0 && is->gating_by_bias && (st = gating_by_bias(m, &absent, err)) != HONE_OK) return st;
    /* files number as ggml-org/llama.cpp:src/llama-hparams.h does: 4 is √softplus there, which hone has not */
    const int32_t want = absent == HN_GATING_INPUT    ? HN_GATING_SIGMOID
                         : absent == HN_GATING_SPARSE ? HN_GATING_SOFTMAX
                                                      : absent;
    if (func < 0 || func > (int32_t)HN_GATING_CHOSEN || (is->gating && func && func != want))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d, expected %s%d: architecture %s has no such formula here",
                       m->path, hn_arch_key(m, key, "expert_gating_func"), func,
                       is->gating ? "" : "1 for softmax, 2 for sigmoid, or nothing for ", want, m->arch->name);
    if (func == 0 || is->gating) func = absent; /* 0: how files write that they do not say */
    n->gating = (hn_gating)func;
    if (hn_gguf_find(m->file, hn_arch_key(m, key, "expert_weights_norm")) >= 0 &&
        (st = hn_get_bool(m, "expert_weights_norm", &norm, err)) != HONE_OK)
        return st;
    if (is->norm == HN_MOE_NORM_NEVER && norm && func != HN_GATING_CHOSEN) /* those of the chosen add up to 1 */
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s = true, expected false: the weights of %s models stay as they are", m->path, key,
                       m->arch->name);
    /* llama.cpp saves false for families whose key it does not read: their weights add up to 1 all the same */
    if (is->norm == HN_MOE_NORM_ALWAYS && !norm && hn_gguf_find(m->file, key) >= 0 && !hn_saved_by_llama(m))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = false, expected true: the weights of %s models add up to 1",
                       m->path, key, m->arch->name);
    /* groups of a softmax without a bias are DeepSeek V2's, those of a sigmoid V3's */
    n->best_alone =
        n->n_group > 1 && m->arch->bit == HN_DEEPSEEK2 && n->gating == HN_GATING_SOFTMAX && !has_choice_bias(m);
    n->average = is->average;
    n->norm = is->norm == HN_MOE_NORM_NEVER ? false : norm || is->norm == HN_MOE_NORM_ALWAYS;
    st = hn_get_real(m, "expert_weights_scale", -1e-30, 1e6, 0, &n->scale, err);
    if (n->scale == 1) n->scale = 0;
    return st;
}

/* A router, or what lacks one, which is then told. */
static bool has_router(const hone_model *m, int32_t il)
{
    static const char *const any[] = { "ffn_gate_inp", "ffn_down_exps", "ffn_down.0" };
    char name[64];
    bool found = false;
    for (size_t i = 0; i < sizeof any / sizeof *any && !found; i++) {
        snprintf(name, sizeof name, "blk.%d.%s.weight", (int)il, any[i]);
        found = hn_gguf_find_tensor(m->file, name);
    }
    return found;
}

bool hn_moe_is_routed(const hone_model *m)
{
    bool found = hn_gguf_n_tensors(m->file) == 0; /* numbers alone: they say it */
    for (int32_t il = 0; il < m->hp.n_layer && !found; il++) found = has_router(m, il);
    return found;
}

static hone_status by_router(hone_model *m, hone_error *err)
{
    bool *routed = hn_arena_alloc(m->arena, (size_t)m->hp.n_layer * sizeof *routed);
    if (!routed) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of layers", m->path);
    for (int32_t il = 0; il < m->hp.n_layer; il++) routed[il] = hn_gguf_n_tensors(m->file) == 0 || has_router(m, il);
    m->hp.moe.routed = routed;
    return HONE_OK;
}

/* Which layers have experts. */
static hone_status layers(hone_model *m, hone_error *err)
{
    hn_moe_numbers *n = &m->hp.moe;
    const hn_moe_switches *is = m->hp.is->moe;
    char key[128];
    hone_status st = is->by_router ? by_router(m, err) : HONE_OK;
    if (st == HONE_OK) st = hn_get_int(m, "leading_dense_block_count", 0, HN_MAX_LAYER, 0, &n->n_lead, err);
    if (st != HONE_OK) return st;
    st = hn_get_int(m, "interleave_moe_layer_step", 0, HN_MAX_LAYER, is->needs_period ? -1 : 1, &n->period, err);
    const bool none_said = n->n_lead == 0 && n->period <= 1;
    if (st == HONE_OK && none_said && is->every_other)
        return hn_get_int(m, "moe_every_n_layers", 2, 2, -1, &n->period, err);
    if (st != HONE_OK || is->reads_lead || is->needs_period || none_said) return st;
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d, expected 0: all layers of %s models have experts here",
                   m->path, hn_arch_key(m, key, n->n_lead ? "leading_dense_block_count" : "interleave_moe_layer_step"),
                   n->n_lead ? n->n_lead : n->period, m->arch->name);
}

hone_status hn_moe_hparams(hone_model *m, hone_error *err)
{
    hn_moe_numbers *n = &m->hp.moe;
    hone_status st;
    if ((st = hn_get_int(m, "expert_count", 1, HN_MAX_EXPERT, -1, &n->n_expert, err)) != HONE_OK) return st;
    if ((st = of_layers(m, "expert_used_count", n->n_expert, 0, &n->n_used, &n->used_of, err)) != HONE_OK) return st;
    if ((st = widths(m, err)) != HONE_OK) return st;
    if ((st = groups(m, err)) != HONE_OK) return st;
    if ((st = choice(m, err)) != HONE_OK) return st;
    char key[128];
    for (int32_t il = 0; n->gating == HN_GATING_SPARSE && il < m->hp.n_layer; il++) {
        const int32_t used = n->used_of ? n->used_of[il] : n->n_used;
        if (used != 2)
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d, expected 2 in all layers: %s models choose two",
                           m->path, hn_arch_key(m, key, "expert_used_count"), used, m->arch->name);
    }
    return layers(m, err);
}
