/* families_hybrid: models with layers whose memory does not grow: convolutions, Mamba, Mamba-2, the gated delta rule,
 * alone or between layers of attention. A row is its tensors, its switches and which layer does what.
 *   mamba, mamba2                Mamba or Mamba-2 alone; no attention, no feed-forward parts
 *   jamba                        Mamba, and attention that does not turn where a layer has heads of keys; experts in
 *                                some layers
 *   lfm2, lfm2moe                gated convolutions; attention where a layer has heads of keys
 *   falcon-h1                    attention and Mamba-2 side by side in every layer
 *   nemotron_h, nemotron_h_moe   each layer is one half: Mamba-2, attention that does not turn, or relu²
 *   granitehybrid                granite, most of whose layers are Mamba-2; experts or none
 *   qwen35, qwen35moe, qwen3next the gated delta rule, every fourth layer gated attention; 35: heads of values in
 *                                tiles of heads of keys
 *   qwen4exp                     qwen35moe, whose stream has several parts and whose attention chooses blocks of
 *                                positions by an index; one layer takes n-grams of ids
 *   deci                         llama, some of whose layers lack one half, or both, or have a matrix in place of
 *                                attention
 *   kimi-linear                  Kimi's delta rule; latent attention that does not turn where a layer has a head of
 *                                keys; sigmoid with a bias of the choice */
#include "kernels/kernels.h"
#include "model/family_rows.h"

/* ---- numbers -------------------------------------------------------------------------------------------- */

/* Sizes that every recurrent mixer has, */
static hone_status state_numbers(hone_model *m, hone_error *err)
{
    enum { MAX_STATE = 4096 };
    hn_hparams *hp = &m->hp;
    hone_status st;
    if ((st = hn_get_int(m, "ssm.conv_kernel", 1, HN_MAX_TAPS, -1, &hp->taps, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "ssm.inner_size", 1, HN_MAX_EMBD, -1, &hp->ssm_inner, err)) != HONE_OK) return st;
    return hn_get_int(m, "ssm.state_size", 1, MAX_STATE, -1, &hp->ssm_state, err);
}

/* and those of one with heads, which files must have. */
static hone_status ssm_numbers(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    char key[128];
    if ((st = state_numbers(m, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "ssm.time_step_rank", 1, HN_MAX_HEAD, -1, &hp->ssm_head, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "ssm.group_count", 1, HN_MAX_HEAD, -1, &hp->ssm_group, err)) != HONE_OK) return st;
    if (hp->ssm_head % hp->ssm_group)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected a divisor of ssm.time_step_rank = %d", m->path,
                       hn_arch_key(m, key, "ssm.group_count"), hp->ssm_group, hp->ssm_head);
    if (hp->ssm_inner % hp->ssm_head || hp->ssm_inner / hp->ssm_head > HN_MAX_WKV)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected ssm.time_step_rank = %d heads of at most %d", m->path,
                       hn_arch_key(m, key, "ssm.inner_size"), hp->ssm_inner, hp->ssm_head, HN_MAX_WKV);
    return HONE_OK;
}

/* Each channel is a head. */
static hone_status mamba_numbers(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st = state_numbers(m, err);
    if (st == HONE_OK) st = hn_get_int(m, "ssm.time_step_rank", 1, HN_MAX_EMBD, -1, &hp->ssm_rank, err);
    hp->ssm_head = hp->ssm_inner;
    hp->ssm_group = 1;
    return st;
}

/* ---- which layer is what ---------------------------------------------------------------------------------- */

static const hn_gguf_tensor *in_layer(const hone_model *m, int32_t il, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "blk.%d.%.64s", (int)il, name);
    return hn_gguf_find_tensor(m->file, full);
}

/* What layers of a family may be, where tensors tell it; 0: all are alike. */
static uint32_t kinds_of(const hn_family *f)
{
    static const struct {
        hn_family_set families;
        uint32_t kinds;
    } list[] = {
        { HN_LFM2 | HN_LFM2MOE, HN_PLAN_BIT(HN_MIXER_ATTN) | HN_PLAN_BIT(HN_MIXER_CONV) },
        { HN_GRANITEHYBRID, HN_PLAN_BIT(HN_MIXER_ATTN) | HN_PLAN_BIT(HN_MIXER_MAMBA2) },
        { HN_JAMBA, HN_PLAN_BIT(HN_MIXER_ATTN) | HN_PLAN_BIT(HN_MIXER_MAMBA) },
        { HN_NEMOTRON_H | HN_NEMOTRON_H_MOE,
          HN_PLAN_BIT(HN_MIXER_ATTN) | HN_PLAN_BIT(HN_MIXER_MAMBA2) | HN_PLAN_BIT(HN_MIXER_NONE) },
        { HN_QWEN35 | HN_QWEN35MOE | HN_QWEN3NEXT | HN_QWEN4EXP,
          HN_PLAN_BIT(HN_MIXER_ATTN) | HN_PLAN_BIT(HN_MIXER_GDN) },
        { HN_KIMI_LINEAR, HN_PLAN_BIT(HN_MIXER_MLA) | HN_PLAN_BIT(HN_MIXER_KDA) },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].families & f->bit) return list[i].kinds;
    return 0;
}

/* Those of the kinds that have all the tensors which the layer has; several, or none: its tensors do not tell. */
static uint32_t kinds_by_tensors(const hone_model *m, int32_t il, uint32_t kinds)
{
    const hn_slot *all = m->arch->layer;
    bool halves = kinds & HN_PLAN_BIT(HN_MIXER_NONE);
    for (const hn_slot *s = all; s->name; s++) {
        uint32_t has = s->mixers;
        if (!has || !in_layer(m, il, s->name)) continue;
        for (const hn_slot *t = all; t->name; t++)
            if (!strcmp(t->name, s->name)) has |= t->mixers;
        kinds &= has;
    }
    if (halves && (in_layer(m, il, "ffn_up.weight") || in_layer(m, il, "ffn_gate_inp.weight")))
        kinds &= HN_PLAN_BIT(HN_MIXER_NONE);
    return kinds;
}

/* Heads of keys by what makes them; 0: it cannot be. */
static int32_t heads_of_keys(const hone_model *m, int32_t il)
{
    const hn_hparams *hp = &m->hp;
    const hn_gguf_tensor *k = in_layer(m, il, "attn_k.weight"), *all = in_layer(m, il, FUSED);
    if (hp->is->latent) return 1;
    if (!hp->head_dim) return 0;
    uint64_t d = (uint64_t)hp->head_dim, n = k ? k->ne[1] / d : 0;
    bool gated = kinds_of(m->arch) & HN_PLAN_BIT(HN_MIXER_GDN);
    uint64_t queries = (uint64_t)hp->n_head * (gated ? 2 : 1);
    if (!k && all && all->ne[1] / d > queries) n = (all->ne[1] / d - queries) / 2;
    return n <= HN_MAX_HEAD ? (int32_t)n : 0;
}

/* Rows of the matrix upwards; 1 where there are experts, whose width is another number. */
static int32_t width_of_up(const hone_model *m, int32_t il)
{
    const hn_gguf_tensor *up = in_layer(m, il, "ffn_up.weight");
    return up && up->ne[1] <= HN_MAX_FF ? (int32_t)up->ne[1] : 1;
}

/* Layers recur unless they have heads of keys (said NULL), or as said; but a layer is what its tensors make it:
 * converters wrote one number, or 0, for all. */
static hone_status recurs_by_tensors(hone_model *m, const bool *said, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    const uint32_t kinds = kinds_of(m->arch), reads = HN_WITH_POSITIONS & kinds, none = HN_PLAN_BIT(HN_MIXER_NONE);
    size_t n = (size_t)hp->n_layer;
    bool *recurs = hn_arena_alloc(m->arena, n);
    int32_t *kv = hn_arena_alloc(m->arena, n * sizeof *kv), *ff = hn_arena_alloc(m->arena, n * sizeof *ff);
    if (!recurs || !kv || !ff) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", m->path);
    hp->n_head_kv = hp->is->latent ? 1 : 0;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        uint32_t is = kinds ? kinds_by_tensors(m, il, kinds) : 0;
        bool told = is && !(is & (is - 1)), attends = told && is == reads;
        kv[il] = told && !attends ? 0 : hp->kv_of[il];
        ff[il] = told && kinds & none && is != none ? 0 : hp->ff_of[il];
        if (attends && !kv[il]) kv[il] = heads_of_keys(m, il);
        if (told && is == none && !ff[il]) ff[il] = width_of_up(m, il);
        hp->n_ff = ff[il] > hp->n_ff ? ff[il] : hp->n_ff;
        recurs[il] = told ? !attends : said ? said[il] : kv[il] == 0;
        if (!recurs[il] && !hp->is->latent && (hp->n_head < 1 || kv[il] < 1))
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: layer %d attends, with %d heads and %d of keys; expected at least one of each "
                           "(%s.attention.head_count, attention.head_count_kv)",
                           m->path, (int)il, hp->n_head, (int)kv[il], m->arch->name);
        if (kv[il] && hp->n_head % kv[il])
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: blk.%d.attn_k.weight makes %d heads of keys, expected a divisor of "
                           "%s.attention.head_count = %d",
                           m->path, (int)il, (int)kv[il], m->arch->name, hp->n_head);
        if (!hp->is->latent) hp->n_head_kv = kv[il] > hp->n_head_kv ? kv[il] : hp->n_head_kv;
    }
    hp->kv_of = kv;
    hp->ff_of = ff;
    hp->recurs = recurs;
    return HONE_OK;
}

static hone_status mamba2_hparams(hone_model *m, hone_error *err)
{
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK || (st = ssm_numbers(m, err)) != HONE_OK) return st;
    return recurs_by_tensors(m, NULL, err);
}

/* Steps and what goes in and out of the state are normed where the file says so, or has weights for it. */
static hone_status mamba_hparams(hone_model *m, hone_error *err)
{
    static const char normed[] = "ssm.dt_b_c_rms";
    char key[128];
    hone_status st = hn_attn_hparams(m, err);
    if (st == HONE_OK) st = mamba_numbers(m, err);
    if (st == HONE_OK && hn_gguf_find(m->file, hn_arch_key(m, key, normed)) >= 0)
        st = hn_get_bool(m, normed, &m->hp.ssm_normed, err);
    return st == HONE_OK ? recurs_by_tensors(m, NULL, err) : st;
}

/* Where experts take less than the stream, each layer of them has both ways. */
static hone_status nemotron_moe_hparams(hone_model *m, hone_error *err)
{
    static const char *const ways[] = { "ffn_latent_down.weight", "ffn_latent_up.weight" };
    hone_status st = mamba2_hparams(m, err);
    if (st == HONE_OK) st = hn_get_int(m, "moe_latent_size", 0, HN_MAX_EMBD, 0, &m->hp.moe.n_latent, err);
    for (int32_t il = 0; st == HONE_OK && m->hp.moe.n_latent && il < m->hp.n_layer; il++)
        for (int i = 0; i < 2 && in_layer(m, il, "ffn_gate_inp.weight"); i++)
            if (!in_layer(m, il, ways[i]))
                return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor blk.%d.%s is missing, though %s.moe_latent_size = %d",
                               m->path, (int)il, ways[i], m->arch->name, m->hp.moe.n_latent);
    return st;
}

static hone_status lfm2_hparams(hone_model *m, hone_error *err)
{
    char key[128];
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK) return st;
    if ((st = hn_get_int(m, "shortconv.l_cache", 1, HN_MAX_TAPS, -1, &m->hp.taps, err)) != HONE_OK) return st;
    if (m->hp.both && m->hp.window)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d, expected none: it looks both ways", m->path,
                       hn_arch_key(m, key, "attention.sliding_window"), m->hp.window);
    if (m->hp.both && m->hp.taps % 2 == 0)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d, expected an odd number: it looks both ways", m->path,
                       hn_arch_key(m, key, "shortconv.l_cache"), m->hp.taps);
    return recurs_by_tensors(m, NULL, err);
}

/* Which layers recur: a truth value for each, or all but the last of so many. */
static hone_status gdn_layers(hone_model *m, hone_error *err)
{
    static const char key[] = "attention.recurrent_layers";
    hn_hparams *hp = &m->hp;
    const bool *listed;
    int32_t period, all;
    bool *recurs = hn_arena_alloc(m->arena, (size_t)hp->n_layer);
    if (!recurs) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of layers", m->path);
    hone_status st = hn_get_int(m, "full_attention_interval", 1, HN_MAX_LAYER, 4, &period, err);
    if (st != HONE_OK || (st = hn_get_truths(m, key, &listed, err)) != HONE_OK) return st;
    if (listed) return recurs_by_tensors(m, listed, err);
    if ((st = hn_get_int(m, key, 0, 1, 2, &all, err)) != HONE_OK) return st; /* 2: absent */
    for (int32_t il = 0; il < hp->n_layer; il++) recurs[il] = all < 2 ? all : (il + 1) % period != 0;
    return recurs_by_tensors(m, recurs, err);
}

static hone_status gdn_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    char key[128];
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK || (st = ssm_numbers(m, err)) != HONE_OK) return st;
    if (hp->ssm_inner != (int64_t)hp->ssm_head * hp->ssm_state)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected ssm.time_step_rank = %d heads of ssm.state_size = %d",
                       m->path, hn_arch_key(m, key, "ssm.inner_size"), hp->ssm_inner, hp->ssm_head, hp->ssm_state);
    return gdn_layers(m, err);
}

/* What chooses positions. The key has a number for each layer, 0 where it recurs. */
static hone_status index_numbers(hone_model *m, hone_error *err)
{
    static const char ratios[] = "attention.compress_ratios";
    hn_hparams *hp = &m->hp;
    hn_index_numbers *n = &hp->index;
    char key[128];
    int32_t budget;
    hone_status st;
    int32_t *block = hn_arena_alloc(m->arena, (size_t)hp->n_layer * sizeof *block);
    if (!block) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", m->path);
    if ((st = hn_get_int(m, "attention.indexer.head_count", 1, HN_MAX_HEAD, -1, &n->n_head, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "attention.indexer.key_length", 2, HN_MAX_INDEX, -1, &n->d, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "attention.indexer.top_k", 1, HN_MAX_CTX, -1, &budget, err)) != HONE_OK) return st;
    if ((st = hn_get_layers(m, ratios, 0, HN_MAX_CTX, -1, block, err)) != HONE_OK) return st;
    int32_t n_rot;
    if ((st = hn_get_int(m, "rope.dimension_count", 0, 65536, hp->head_dim, &n_rot, err)) != HONE_OK) return st;
    if (n_rot > n->d)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected at least rope.dimension_count = %d", m->path,
                       hn_arch_key(m, key, "attention.indexer.key_length"), n->d, n_rot);
    hn_arch_key(m, key, ratios);
    for (int32_t il = 0; il < hp->n_layer; il++) {
        if (hp->recurs[il]) continue;
        if (!n->block) n->block = block[il];
        if (!block[il] || block[il] != n->block)
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: %s[%d] = %d, expected one number above 0 in all layers that attend", m->path, key,
                           (int)il, (int)block[il]);
    }
    n->n_best = n->block ? budget / n->block : 0;
    if (!n->block || n->n_best * n->block == budget) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s.attention.indexer.top_k = %d, expected a multiple of %s = %d", m->path,
                   m->arch->name, budget, key, n->block);
}

/* Whole numbers from 0 to most, as many of a key at least. */
static hone_status whole_numbers(const hone_model *m, const char *suffix, int64_t count, uint64_t most,
                                 const uint64_t **out, hone_error *err)
{
    char key[128];
    hn_gguf_array a;
    const int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, suffix));
    uint64_t *v = hn_arena_alloc(m->arena, (size_t)count * sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: %s", m->path, key);
    const bool list = at >= 0 && hn_gguf_kv_array(m->file, (uint64_t)at, &a);
    const uint32_t size = list ? hn_gguf_type_size(a.elem_type) : 0;
    const bool whole = list && a.elem_type != HONE_KV_F32 && a.elem_type != HONE_KV_F64 && size;
    if (!whole || a.count < (uint64_t)count)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is missing or no array of at least %lld whole numbers", m->path, key,
                       (long long)count);
    for (int64_t i = 0; i < count; i++) {
        v[i] = 0;
        for (uint32_t b = 0; b < size; b++) v[i] |= (uint64_t)a.data[(uint64_t)i * size + b] << (8 * b);
        if (v[i] > most)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%lld] = %llu, expected at most %llu", m->path, key, (long long)i,
                           (unsigned long long)v[i], (unsigned long long)most);
    }
    *out = v;
    return HONE_OK;
}

/* The one layer that takes n-grams, which must recur. */
static hone_status ngram_layer(hone_model *m, hone_error *err)
{
    static const char suffix[] = "ple.layers";
    hn_hparams *hp = &m->hp;
    char key[128];
    hn_gguf_array a;
    double x = -1;
    const int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, suffix));
    if (at < 0) return HONE_OK;
    const bool list = hn_gguf_kv_array(m->file, (uint64_t)at, &a);
    if (list && !a.count) return HONE_OK;
    if (list && a.count > 1)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s names %llu layers, expected one at most", m->path, key,
                       (unsigned long long)a.count);
    if (!list || !hn_array_number(&a, 0, &x) || !(x >= 0 && x < hp->n_layer) || x != (double)(int32_t)x)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s, expected a list of one number below %d", m->path, key, hp->n_layer);
    hp->ngram.layer = (int32_t)x;
    if (!hp->recurs[hp->ngram.layer])
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected a layer of the delta rule", m->path, key,
                       hp->ngram.layer);
    hp->ngram.n_gram = 1; /* there are some */
    return HONE_OK;
}

/* n-grams of ids: how ids become rows of the table, whose number it says itself. */
static hone_status ngram_numbers(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hn_ngram_numbers *n = &hp->ngram;
    const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, "per_layer_token_embd.weight");
    char key[128];
    hone_status st = ngram_layer(m, err);
    if (st != HONE_OK || !n->n_gram) return st;
    if ((st = hn_get_int(m, "ple.ngram_size", 2, HN_MAX_NGRAM, -1, &n->n_gram, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "ple.heads_per_ngram", 1, HN_MAX_NGRAM_HEADS, -1, &n->per_gram, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "ple.conv_kernel", 1, HN_MAX_TAPS, -1, &n->taps, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "ple.eos_token_id", 0, HN_MAX_VOCAB - 1, -1, &n->eos, err)) != HONE_OK) return st;
    st = hn_get_int(m, "embedding_length_per_layer_input", 1, HN_MAX_EMBD, -1, &n->d, err);
    if (st != HONE_OK) return st;
    const int64_t heads = hn_ngram_heads(n);
    if (heads > HN_MAX_NGRAM_HEADS || heads * n->d > HN_MAX_EMBD || (n->taps - 1) * n->n_gram > HN_MAX_REACH)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %s = %d, heads_per_ngram = %d, conv_kernel = %d, embedding_length_per_layer_input = %d: "
                       "beyond the limits of %d heads, %d numbers, %d positions",
                       m->path, hn_arch_key(m, key, "ple.ngram_size"), n->n_gram, n->per_gram, n->taps, n->d,
                       HN_MAX_NGRAM_HEADS, HN_MAX_EMBD, HN_MAX_REACH);
    const hn_gguf_tensor *ids = hn_gguf_find_tensor(m->file, "token_embd.weight");
    const uint64_t n_id = ids && ids->ne[1] ? ids->ne[1] : 1; /* products are below 2^63, as where they were trained */
    if ((st = whole_numbers(m, "ple.layer_multipliers", n->n_gram, INT64_MAX / n_id, &n->mul, err)) != HONE_OK)
        return st;
    if (ids && (uint64_t)n->eos >= n_id)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected an id below %llu", m->path,
                       hn_arch_key(m, key, "ple.eos_token_id"), n->eos, (unsigned long long)n_id);
    if ((st = whole_numbers(m, "ple.head_vocab_sizes", heads, INT32_MAX, &n->size, err)) != HONE_OK) return st;
    if ((st = whole_numbers(m, "ple.head_offsets", heads, INT32_MAX, &n->at, err)) != HONE_OK) return st;
    n->n_row = t && t->ne[1] <= INT32_MAX ? (int64_t)t->ne[1] : 1;
    for (int64_t h = 0; h < heads; h++)
        if (!n->size[h] || (t && n->at[h] + n->size[h] > (uint64_t)n->n_row))
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: %s[%lld] = %llu from row %llu on, expected 1 at least and no row behind the %lld of "
                           "per_layer_token_embd.weight",
                           m->path, hn_arch_key(m, key, "ple.head_vocab_sizes"), (long long)h,
                           (unsigned long long)n->size[h], (unsigned long long)n->at[h], (long long)n->n_row);
    return HONE_OK;
}

static hone_status qwen4_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st = gdn_hparams(m, err);
    if (st != HONE_OK) return st;
    if ((st = hn_get_int(m, "hyper_connection.count", 2, HN_MAX_HYPER, -1, &hp->n_hyper, err)) != HONE_OK) return st;
    st = hn_get_int(m, "hyper_connection.low_rank", 1, HN_MAX_EMBD, -1, &hp->rank_hyper, err);
    if (st == HONE_OK && (int64_t)hp->n_hyper * hp->n_embd > HN_MAX_EMBD)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s.hyper_connection.count = %d parts of %d are beyond the limit %d",
                       m->path, m->arch->name, hp->n_hyper, hp->n_embd, HN_MAX_EMBD);
    if (st == HONE_OK) st = index_numbers(m, err);
    return st == HONE_OK ? ngram_numbers(m, err) : st;
}

/* Heads of keys, values and queries are as wide; each of these has a convolution of its own. */
static hone_status kimi_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK) return st;
    if ((st = hn_get_int(m, "ssm.conv_kernel", 1, HN_MAX_TAPS, -1, &hp->taps, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "kda.head_dim", 1, HN_MAX_WKV, -1, &hp->ssm_state, err)) != HONE_OK) return st;
    hp->ssm_head = hp->ssm_group = hp->n_head;
    hp->ssm_inner = hp->n_head * hp->ssm_state;
    return recurs_by_tensors(m, NULL, err);
}

/* ---- plans ------------------------------------------------------------------------------------------------ */

static void recur(hn_layer_plan *out, hn_mixer recurrent)
{
    out->mixer = recurrent;
    out->rope = -1;
    out->window = 0;
    out->out_gate = HN_OUT_GATE_NONE;
}

/* As a transformer's, but where the layer recurs. */
static void hybrid_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il, hn_mixer recurrent)
{
    hn_attn_plan(out, hp, il);
    if (hp->kv_of) {
        out->n_head_kv = hp->kv_of[il];
        out->n_ff = hp->ff_of[il];
    }
    if (hp->recurs && hp->recurs[il]) recur(out, recurrent);
}

static void mamba2_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hybrid_plan(out, hp, il, HN_MIXER_MAMBA2);
}
/* There are no others, whatever head counts the file has. */
static void mamba2_alone_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    mamba2_plan(out, hp, il);
    recur(out, HN_MIXER_MAMBA2);
}
static void mamba_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hybrid_plan(out, hp, il, HN_MIXER_MAMBA);
}
static void mamba_alone_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    mamba_plan(out, hp, il);
    recur(out, HN_MIXER_MAMBA);
}
static void lfm2_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il) { hybrid_plan(out, hp, il, HN_MIXER_CONV); }
static void falcon_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hybrid_plan(out, hp, il, HN_MIXER_MAMBA2);
    if (out->mixer == HN_MIXER_ATTN) out->mixer = HN_MIXER_ATTN_MAMBA2;
}

/* One half each: recurrent without either number, attention without a width, else feed forward. */
static void nemotron_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hybrid_plan(out, hp, il, HN_MIXER_MAMBA2);
    if (out->n_ff) out->mixer = HN_MIXER_NONE;
    else out->ffn = HN_FFN_NONE;
}

static void gdn_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hybrid_plan(out, hp, il, HN_MIXER_GDN);
    if (out->mixer == HN_MIXER_ATTN) out->out_gate = HN_OUT_GATE_OF_Q;
}
static void gdn_tiled_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    gdn_plan(out, hp, il);
    out->tiled = true;
}

static void qwen4_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    gdn_tiled_plan(out, hp, il);
    out->sigmoid = true;
    out->index = out->mixer == HN_MIXER_ATTN;
    out->ngram = hp->ngram.n_gram && il == hp->ngram.layer;
}

static void kimi_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hybrid_plan(out, hp, il, HN_MIXER_KDA);
    bool recurs = out->mixer == HN_MIXER_KDA;
    out->n_head_kv = recurs ? out->n_head : 1; /* latent rows serve all heads */
    if (recurs) out->d_k = out->d_v = hp->ssm_state;
}

/* Layers without heads, or without those of keys, and layers without a width. */
static void deci_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hn_attn_plan(out, hp, il);
    out->n_head_kv = hp->kv_of[il];
    out->n_ff = hp->ff_of[il];
    if (!out->n_head_kv) recur(out, hp->linear[il] ? HN_MIXER_LINEAR : HN_MIXER_NONE);
    if (!out->n_ff) out->ffn = HN_FFN_NONE;
}

/* ---- slots ------------------------------------------------------------------------------------------------- */

#define IN(kind) .mixers = HN_PLAN_BIT(HN_MIXER_##kind)
#define IN_ATTN .mixers = HN_WITH_ATTN
#define IN_MAMBA2 .mixers = HN_WITH_MAMBA2
#define ROWS_OF(gguf, to, ne0, ne1, ...)                                                       \
    {                                                                                          \
        .name = gguf, .field = OF(to), .kind = HN_SLOT_VALUES, .ne = { ne0, ne1 }, __VA_ARGS__ \
    }
#define TAPS(gguf, n, ...)                                                                             \
    {                                                                                                  \
        .name = gguf, .field = OF(conv_w), .kind = HN_SLOT_TAPS, .ne = { HN_DIM_TAPS, n }, __VA_ARGS__ \
    }
/* rows of all: queries, maybe with gates, keys, values; with biases where the file has them */
#define QKV_ONLY(q_turn, k_turn, q_rows, all_rows)                                                                    \
    LINEAR("attn_qkv", attn_q, ATTN_Q, HEADS, E, all_rows, MAY, RARE(.part = { q_rows, K, V }), IN_ATTN),             \
        LINEAR("attn_q", attn_q, ATTN_Q, HEADS, E, q_rows, APART, .hf = "self_attn.q_proj", .turn = q_turn, IN_ATTN), \
        LINEAR("attn_k", attn_k, ATTN_K, KV_HEADS, E, K, APART, .hf = "self_attn.k_proj", .turn = k_turn, IN_ATTN),   \
        LINEAR("attn_v", attn_v, ATTN_V, KV_HEADS, E, V, APART, .hf = "self_attn.v_proj", IN_ATTN),                   \
        BIAS("attn_qkv", attn_q, all_rows, MAY,                                                                       \
             RARE(.with = FUSED, .part = { q_rows, K, V }, .stride = sizeof(hn_weight)), IN_ATTN),                    \
        BIAS("attn_q", attn_q, q_rows, APART, MAY, IN_ATTN), BIAS("attn_k", attn_k, K, APART, MAY, IN_ATTN),          \
        BIAS("attn_v", attn_v, V, APART, MAY, IN_ATTN),                                                               \
        LINEAR("attn_output", attn_output, ATTN_OUTPUT, ROWS, HN_DIM_O, E, .hf = "self_attn.o_proj", IN_ATTN),        \
        BIAS("attn_output", attn_output, E, MAY, IN_ATTN)
#define QK_NORMS                                                  \
    NORM("attn_q_norm", attn_q_norm, HN_DIM_HEAD, NULL, IN_ATTN), \
        NORM("attn_k_norm", attn_k_norm, HN_DIM_HEAD, NULL, IN_ATTN)
#define MAMBA2(norm_presence)                                                                                  \
    LINEAR("ssm_in", ssm_in, SSM_IN, WHOLE, E, HN_DIM_SSM_IN, IN_MAMBA2,                                       \
           RARE(.part = { HN_DIM_SSM_INNER, HN_DIM_SSM_CONV, HN_DIM_SSM_HEADS })),                             \
        VECTOR("ssm_dt.bias", OF(ssm_in[2].bias), HN_DIM_SSM_HEADS, IN_MAMBA2),                                \
        TAPS("ssm_conv1d.weight", HN_DIM_SSM_CONV, IN_MAMBA2),                                                 \
        VECTOR("ssm_conv1d.bias", OF(conv_b), HN_DIM_SSM_CONV, MAY, IN_MAMBA2),                                \
        ROWS_OF("ssm_a", ssm_a, 1, HN_DIM_SSM_HEADS, IN_MAMBA2),                                               \
        ROWS_OF("ssm_d", ssm_d, 1, HN_DIM_SSM_HEADS, IN_MAMBA2),                                               \
        ROWS_OF("ssm_norm.weight", ssm_norm, HN_DIM_SSM_GROUP_WIDTH, HN_DIM_SSM_GROUPS, .when = norm_presence, \
                IN_MAMBA2),                                                                                    \
        LINEAR("ssm_out", ssm_out, SSM_OUT, ROWS, HN_DIM_SSM_INNER, E, IN_MAMBA2)
/* Of Mamba: decays {states, channels}, turned round as taps are. Norms of what comes from ssm_x, in Jamba. */
#define MAMBA                                                                                  \
    LINEAR("ssm_in", ssm_in, SSM_IN, WHOLE, E, HN_DIM_SSM_INNER2, IN(MAMBA),                   \
           RARE(.part = { HN_DIM_SSM_INNER, HN_DIM_SSM_INNER })),                              \
        TAPS("ssm_conv1d.weight", HN_DIM_SSM_INNER, IN(MAMBA)),                                \
        VECTOR("ssm_conv1d.bias", OF(conv_b), HN_DIM_SSM_INNER, MAY, IN(MAMBA)),               \
        LINEAR("ssm_x", ssm_x, SSM_X, WHOLE, HN_DIM_SSM_INNER, HN_DIM_SSM_X, IN(MAMBA),        \
               RARE(.part = { HN_DIM_SSM_RANK, HN_DIM_SSM_STATE, HN_DIM_SSM_STATE })),         \
        LINEAR("ssm_dt", ssm_dt, SSM_DT, WHOLE, HN_DIM_SSM_RANK, HN_DIM_SSM_INNER, IN(MAMBA)), \
        BIAS("ssm_dt", ssm_dt, HN_DIM_SSM_INNER, IN(MAMBA)),                                   \
        { .name = "ssm_a",                                                                     \
          .field = OF(ssm_a),                                                                  \
          .kind = HN_SLOT_TAPS,                                                                \
          .ne = { HN_DIM_SSM_STATE, HN_DIM_SSM_INNER },                                        \
          IN(MAMBA) },                                                                         \
        VECTOR("ssm_d", OF(ssm_d), HN_DIM_SSM_INNER, IN(MAMBA)),                               \
        LINEAR("ssm_out", ssm_out, SSM_OUT, ROWS, HN_DIM_SSM_INNER, E, IN(MAMBA))
#define MAMBA_NORMS                                                        \
    NORM("ssm_dt_norm", ssm_dt_norm, HN_DIM_SSM_RANK, NULL, IN(MAMBA)),    \
        NORM("ssm_b_norm", ssm_b_norm, HN_DIM_SSM_STATE, NULL, IN(MAMBA)), \
        NORM("ssm_c_norm", ssm_c_norm, HN_DIM_SSM_STATE, NULL, IN(MAMBA))
#define SHORTCONV                                                                                          \
    LINEAR("shortconv.in_proj", ssm_in, SSM_IN, WHOLE, E, HN_DIM_E3, IN(CONV), RARE(.part = { E, E, E })), \
        TAPS("shortconv.conv.weight", E, IN(CONV)),                                                        \
        LINEAR("shortconv.out_proj", ssm_out, SSM_OUT, ROWS, E, E, IN(CONV))

#define HYBRID(arch, the_bit, numbers, how, outside, inside, ...)                                         \
    {                                                                                                     \
        .name = arch, .bit = the_bit, .hparams = numbers, .plan = how, .outer = outside, .layer = inside, \
        .is = &(const hn_switches)                                                                        \
        {                                                                                                 \
            __VA_ARGS__                                                                                   \
        }                                                                                                 \
    }

/* ---- Mamba-2 ------------------------------------------------------------------------------------------------- */

static const hn_slot mamba2_layer[] = { ATTN_NORM, MAMBA2(HN_NEEDED), { 0 } };
const hn_family hn_family_mamba2 = HYBRID("mamba2", HN_MAMBA2, mamba2_hparams, mamba2_alone_plan, hn_plain_outer,
                                          mamba2_layer, .neox = true, .reads = HN_READS_LAYERS, .ffn = HN_FFN_NONE);

/* ---- Mamba --------------------------------------------------------------------------------------------------- */

static const hn_slot mamba_layer[] = { ATTN_NORM, MAMBA, { 0 } };
const hn_family hn_family_mamba = HYBRID("mamba", HN_MAMBA, mamba_hparams, mamba_alone_plan, hn_plain_outer,
                                         mamba_layer, .neox = true, .reads = HN_READS_LAYERS, .ffn = HN_FFN_NONE);

static const hn_slot jamba_layer[] = {
    ATTN_NORM, QKV_ONLY(HN_TURN_NONE, HN_TURN_NONE, Q, HN_DIM_QKV),
    MAMBA,     MAMBA_NORMS,
    FFN_NORM,  DENSE_GLU,
    ROUTER,    EXPERTS,
    { 0 },
};
const hn_family hn_family_jamba = HYBRID(
    "jamba", HN_JAMBA, mamba_hparams, mamba_plan, hn_plain_outer, jamba_layer, .neox = true, .reads = HN_READS_LAYERS,
    .nope_period = -1, .ffn = HN_FFN_MOE,
    MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_NEVER, .maybe = true, .by_router = true, .reads_lead = true));

/* ---- both side by side ------------------------------------------------------------------------------------------- */

/* the norm's name has no suffix */
static const hn_slot falcon_layer[] = {
    ATTN_NORM,
    QKV_ONLY(HN_TURN_NONE, HN_TURN_NONE, Q, HN_DIM_QKV),
    MAMBA2(HN_OPTIONAL),
    VECTOR("ffn_norm", OF(ffn_norm), E, RARE(.without = "ffn_norm.weight")),
    VECTOR("ffn_norm.weight", OF(ffn_norm), E, RARE(.with = "ffn_norm.weight")),
    DENSE_GLU,
    DENSE_BIASES,
    { 0 },
};
const hn_family hn_family_falcon_h1 = HYBRID("falcon-h1", HN_FALCON_H1, mamba2_hparams, falcon_plan, hn_plain_outer,
                                             falcon_layer, .neox = true, .reads = HN_READS_LAYERS);

#define NEMOTRON_HALVES                                                                                             \
    NORM("attn_norm", attn_norm, E, NULL, .mixers = HN_WITH_MIXER), NORM("attn_norm", ffn_norm, E, NULL, IN(NONE)), \
        QKV_ONLY(HN_TURN_NONE, HN_TURN_NONE, Q, HN_DIM_QKV), MAMBA2(HN_NEEDED)
static const hn_slot nemotron_layer[] = {
    NEMOTRON_HALVES,
    LINEAR("ffn_up", ffn_up, FFN_UP, KEEP, E, FF, IN(NONE)),
    BIAS("ffn_up", ffn_up, FF, MAY, IN(NONE)),
    LINEAR("ffn_down", ffn_down, FFN_DOWN, ROWS, FF, E, IN(NONE)),
    BIAS("ffn_down", ffn_down, E, MAY, IN(NONE)),
    { 0 },
};
const hn_family hn_family_nemotron_h =
    HYBRID("nemotron_h", HN_NEMOTRON_H, mamba2_hparams, nemotron_plan, hn_plain_outer, nemotron_layer, .neox = true,
           .reads = HN_READS_LAYERS | HN_READS_EITHER_EPS, .nope_period = -1, .ffn = HN_FFN_MLP, .map = HN_MAP_SQRELU);

static const hn_slot nemotron_moe_layer[] = {
    NEMOTRON_HALVES,
    ROUTER,
    CHOICE_BIAS,
    LINEAR("ffn_latent_down", ffn_latent_down, EXPERT_IN, WHOLE, E, HN_DIM_MOE_LATENT, MAY, IN_MOE),
    EXPERT("ffn_up", ffn_up_exps, EXPERT_UP, KEEP, HN_DIM_MOE_IN, HN_DIM_FF_EXP),
    EXPERT("ffn_down", ffn_down_exps, EXPERT_DOWN, ROWS, HN_DIM_FF_EXP, HN_DIM_MOE_IN),
    LINEAR("ffn_latent_up", ffn_latent_up, EXPERT_OUT, ROWS, HN_DIM_MOE_LATENT, E, MAY, IN_MOE),
    LINEAR("ffn_up_shexp", ffn_up_shexp, SHARED_UP, KEEP, E, HN_DIM_FF_SHARED, MAY, SHARED_EXPERT),
    LINEAR("ffn_down_shexp", ffn_down_shexp, SHARED_DOWN, ROWS, HN_DIM_FF_SHARED, E, MAY, SHARED_EXPERT),
    { 0 },
};
const hn_family hn_family_nemotron_h_moe =
    HYBRID("nemotron_h_moe", HN_NEMOTRON_H_MOE, nemotron_moe_hparams, nemotron_plan, hn_plain_outer, nemotron_moe_layer,
           .neox = true, .reads = HN_READS_LAYERS | HN_READS_EITHER_EPS | HN_READS_NEXTN, .nope_period = -1,
           .ffn = HN_FFN_MOE, .map = HN_MAP_SQRELU, MOE(.gating_absent = HN_GATING_SIGMOID));

static const hn_slot granite_layer[] = {
    ATTN_NORM,
    QKV_ONLY(HN_TURN_Q, HN_TURN_K, Q, HN_DIM_QKV),
    MAMBA2(HN_NEEDED),
    FFN_NORM,
    DENSE_GLU,
    ROUTER,
    EXPERTS,
    SHARED(HN_OPTIONAL),
    { 0 },
};
const hn_family hn_family_granitehybrid =
    HYBRID("granitehybrid", HN_GRANITEHYBRID, mamba2_hparams, mamba2_plan, hn_factors_outer, granite_layer,
           .reads = HN_READS_LAYERS | HN_READS_SCALES | HN_READS_TURNS, .ffn = HN_FFN_MOE,
           MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS, .maybe = true));

/* ---- LFM2 ----------------------------------------------------------------------------------------------------- */

/* the norm at the end bears the name of one at the beginning */
static const hn_slot lfm2_outer[] = {
    EMBD,
    VECTOR("token_embd_norm.weight", OUTSIDE(output_norm), E),
    MATRIX("output", OUTSIDE(output), OUTPUT, ROWS, E, HN_DIM_VOCAB, .when = HN_TIED),
    MATRIX("dense_2", OUTSIDE(dense[0]), NONE, WHOLE, E, HN_DIM_DENSE, MAY), /* of ColBERT: of rows */
    VECTOR("dense_2.bias", OUTSIDE(dense[0].bias), HN_DIM_DENSE, RARE(.with = "dense_2.weight"), MAY),
    { 0 },
};
static const hn_slot lfm2_layer[] = {
    ATTN_NORM, QKV_ONLY(HN_TURN_NONE, HN_TURN_NONE, Q, HN_DIM_QKV), QK_NORMS, SHORTCONV, FFN_NORM, DENSE_GLU, { 0 },
};
const hn_family hn_family_lfm2 =
    HYBRID("lfm2", HN_LFM2, lfm2_hparams, lfm2_plan, lfm2_outer, lfm2_layer, .neox = true,
           .reads = HN_READS_LAYERS | HN_READS_WINDOW | HN_READS_CAUSAL, .qk_norm = HN_HEAD_NORM_EACH);

static const hn_slot lfm2moe_layer[] = {
    ATTN_NORM, QKV_ONLY(HN_TURN_NONE, HN_TURN_NONE, Q, HN_DIM_QKV),
    QK_NORMS,  SHORTCONV,
    FFN_NORM,  DENSE_GLU,
    ROUTER,    CHOICE_BIAS,
    EXPERTS,   { 0 },
};
const hn_family hn_family_lfm2moe =
    HYBRID("lfm2moe", HN_LFM2MOE, lfm2_hparams, lfm2_plan, lfm2_outer, lfm2moe_layer, .neox = true,
           .reads = HN_READS_LAYERS, .ffn = HN_FFN_MOE, .qk_norm = HN_HEAD_NORM_EACH,
           MOE(.gating_absent = HN_GATING_SIGMOID, .norm = HN_MOE_NORM_ALWAYS, .reads_lead = true));

/* ---- the gated delta rule --------------------------------------------------------------------------------------- */

/* in the first layout, of qwen3next: queries, keys, values and gates of each head of keys */
#define FIRST_IN "ssm_in.weight"
#define GDN_MIXERS                                                                                                  \
    QKV_ONLY(HN_TURN_NONE, HN_TURN_NONE, HN_DIM_Q_GATE, HN_DIM_Q_GATE_KV), QK_NORMS,                                \
        LINEAR("ssm_in", gdn_qkv, GDN_QKV, WHOLE, E, HN_DIM_GDN_IN, IN(GDN),                                        \
               RARE(.with = FIRST_IN, .part = { HN_DIM_GDN_CONV, HN_DIM_SSM_INNER }, .dealt = HN_DIM_SSM_GROUPS,    \
                    .deal = { HN_DIM_GDN_KEYS, HN_DIM_GDN_KEYS, HN_DIM_SSM_INNER, HN_DIM_SSM_INNER })),             \
        LINEAR("attn_qkv", gdn_qkv, GDN_QKV, WHOLE, E, HN_DIM_GDN_CONV, IN(GDN), RARE(.without = FIRST_IN)),        \
        LINEAR("attn_gate", gdn_gate, GDN_GATE, WHOLE, E, HN_DIM_SSM_INNER, IN(GDN), RARE(.without = FIRST_IN)),    \
        TAPS("ssm_conv1d.weight", HN_DIM_GDN_CONV, IN(GDN)), VECTOR("ssm_a", OF(ssm_a), HN_DIM_SSM_HEADS, IN(GDN)), \
        VECTOR("ssm_norm.weight", OF(ssm_norm), HN_DIM_SSM_STATE, IN(GDN)),                                         \
        LINEAR("ssm_out", ssm_out, SSM_OUT, ROWS, HN_DIM_SSM_INNER, E, IN(GDN))
#define GDN_BOTH ATTN_NORM, GDN_MIXERS, NORM("post_attention_norm", ffn_norm, E, "post_attention_layernorm")
#define BETA_ALPHA                                                                      \
    LINEAR("ssm_beta", gdn_beta, GDN_BETA, WHOLE, E, HN_DIM_SSM_HEADS, IN(GDN)),        \
        LINEAR("ssm_alpha", gdn_alpha, GDN_ALPHA, WHOLE, E, HN_DIM_SSM_HEADS, IN(GDN)), \
        VECTOR("ssm_dt.bias", OF(gdn_alpha.bias), HN_DIM_SSM_HEADS, IN(GDN))
#define GATED_SHARED \
    SHARED(HN_NEEDED), LINEAR("ffn_gate_inp_shexp", ffn_gate_inp_shexp, SHARED_ROUTER, WHOLE, E, 1, IN_MOE)

static const hn_slot qwen35_layer[] = { GDN_BOTH, BETA_ALPHA, DENSE_GLU, { 0 } };
const hn_family hn_family_qwen35 =
    HYBRID("qwen35", HN_QWEN35, gdn_hparams, gdn_tiled_plan, hn_plain_outer, qwen35_layer, .neox = true,
           .reads = HN_READS_LAYERS | HN_READS_NEXTN, .qk_norm = HN_HEAD_NORM_EACH);

static const hn_slot qwen35moe_layer[] = { GDN_BOTH, BETA_ALPHA, ROUTER, EXPERTS, GATED_SHARED, { 0 } };
const hn_family hn_family_qwen35moe =
    HYBRID("qwen35moe", HN_QWEN35MOE, gdn_hparams, gdn_tiled_plan, hn_plain_outer, qwen35moe_layer, .neox = true,
           .reads = HN_READS_LAYERS | HN_READS_NEXTN, .qk_norm = HN_HEAD_NORM_EACH, .ffn = HN_FFN_MOE,
           MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS));

/* b and a of the heads of each head of keys, and so on */
static const hn_slot qwen3next_layer[] = {
    GDN_BOTH,
    LINEAR("ssm_ba", gdn_beta, GDN_BETA, WHOLE, E, HN_DIM_SSM_HEADS2, IN(GDN),
           RARE(.part = { HN_DIM_SSM_HEADS, HN_DIM_SSM_HEADS }, .dealt = HN_DIM_SSM_GROUPS)),
    VECTOR("ssm_dt.bias", OF(gdn_alpha.bias), HN_DIM_SSM_HEADS, IN(GDN)),
    ROUTER,
    EXPERTS,
    GATED_SHARED,
    { 0 },
};
const hn_family hn_family_qwen3next =
    HYBRID("qwen3next", HN_QWEN3NEXT, gdn_hparams, gdn_plan, hn_plain_outer, qwen3next_layer, .neox = true,
           .reads = HN_READS_LAYERS | HN_READS_NEXTN, .qk_norm = HN_HEAD_NORM_EACH, .ffn = HN_FFN_MOE,
           MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS));

/* ---- a wide stream, an index, n-grams ---------------------------------------------------------------------------- */

#define HYPER(gguf, at, to)                                                                   \
    VECTOR(gguf "_norm.weight", at(to.norm), HN_DIM_WIDE),                                    \
        MATRIX(gguf "_down", at(to.down), HYPER_DOWN, WHOLE, HN_DIM_WIDE, HN_DIM_HYPER_RANK), \
        MATRIX(gguf "_up", at(to.up), HYPER_UP, WHOLE, HN_DIM_HYPER_RANK, HN_DIM_WIDE)
#define HYPER_IN(gguf, to) \
    HYPER(gguf, OF, to), LINEAR(gguf "_inject", to.inject, HYPER_INJECT, WHOLE, HN_DIM_WIDE, HN_DIM_HYPER)
#define IN_NGRAM .layers = HN_IN_NGRAM
#define IN_INDEX .layers = HN_IN_INDEX
static const hn_slot qwen4_outer[] = {
    EMBD,
    HYPER("output_hc", OUTSIDE, hyper),
    MATRIX("output", OUTSIDE(output), OUTPUT, ROWS, E, HN_DIM_VOCAB, .hf = "lm_head", .when = HN_TIED),
    MATRIX("per_layer_token_embd", OUTSIDE(ngrams), EMBD, WHOLE, HN_DIM_NGRAM_ROW, HN_DIM_NGRAM_ROWS, IN_NGRAM),
    { 0 },
};
static const hn_slot qwen4_layer[] = {
    HYPER_IN("hc_attn", hyper_attn),
    HYPER_IN("hc_ffn", hyper_ffn),
    GDN_MIXERS,
    BETA_ALPHA,
    LINEAR("indexer.q_proj", index_q, INDEX_Q, WHOLE, E, HN_DIM_INDEX_Q, IN_INDEX),
    LINEAR("indexer.k_proj", index_k, INDEX_K, WHOLE, E, HN_DIM_INDEX, IN_INDEX),
    NORM("indexer.q_norm", index_q_norm, HN_DIM_INDEX, NULL, IN_INDEX),
    NORM("indexer.k_norm", index_k_norm, HN_DIM_INDEX, NULL, IN_INDEX),
    LINEAR("ple_key", ngram_key, NGRAM_KEY, WHOLE, HN_DIM_NGRAM, HN_DIM_WIDE, IN_NGRAM),
    LINEAR("ple_value", ngram_value, NGRAM_VALUE, WHOLE, HN_DIM_NGRAM, E, IN_NGRAM),
    NORM("ple_norm_key", ngram_key_norm, HN_DIM_WIDE, NULL, IN_NGRAM),
    NORM("ple_norm_query", ngram_query_norm, HN_DIM_WIDE, NULL, IN_NGRAM),
    NORM("ple_norm_conv", ngram_conv_norm, HN_DIM_WIDE, NULL, IN_NGRAM),
    { .name = "ple_conv1d.weight",
      .field = OF(ngram_conv),
      .kind = HN_SLOT_TAPS,
      .ne = { HN_DIM_NGRAM_TAPS, HN_DIM_WIDE },
      IN_NGRAM },
    ROUTER,
    EXPERTS,
    GATED_SHARED,
    { 0 },
};
const hn_family hn_family_qwen4exp =
    HYBRID("qwen4exp", HN_QWEN4EXP, qwen4_hparams, qwen4_plan, qwen4_outer, qwen4_layer, .neox = true,
           .reads = HN_READS_LAYERS, .qk_norm = HN_HEAD_NORM_EACH, .ffn = HN_FFN_MOE,
           MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS));

/* ---- Kimi's delta rule ------------------------------------------------------------------------------------------- */

#define KDA_CONV(letter, i)                                                                     \
    {                                                                                           \
        .name = "ssm_conv1d_" letter ".weight", .field = OF(kda_conv[i]), .kind = HN_SLOT_TAPS, \
        .ne = { HN_DIM_TAPS, HN_DIM_SSM_INNER }, IN(KDA)                                        \
    }
#define KDA_PAIR(letter, to)                                                         \
    LINEAR("ssm_" letter "_a", to[0], KDA_LOW, WHOLE, E, HN_DIM_SSM_STATE, IN(KDA)), \
        LINEAR("ssm_" letter "_b", to[1], KDA_HIGH, WHOLE, HN_DIM_SSM_STATE, HN_DIM_SSM_INNER, IN(KDA))
#define KDA                                                                                                    \
    LINEAR("attn_q", attn_q, ATTN_Q, WHOLE, E, Q, .hf = "self_attn.q_proj", IN(KDA)),                          \
        LINEAR("attn_k", attn_k, ATTN_K, WHOLE, E, K, .hf = "self_attn.k_proj", IN(KDA)),                      \
        LINEAR("attn_v", attn_v, ATTN_V, WHOLE, E, V, .hf = "self_attn.v_proj", IN(KDA)),                      \
        LINEAR("attn_output", attn_output, ATTN_OUTPUT, ROWS, HN_DIM_O, E, .hf = "self_attn.o_proj", IN(KDA)), \
        KDA_CONV("q", 0), KDA_CONV("k", 1), KDA_CONV("v", 2), KDA_PAIR("f", kda_f), KDA_PAIR("g", kda_g),      \
        VECTOR("ssm_dt.bias", OF(kda_f[1].bias), HN_DIM_SSM_INNER, IN(KDA)),                                   \
        ROWS_OF("ssm_a", ssm_a, 1, HN_DIM_SSM_HEADS, IN(KDA)),                                                 \
        LINEAR("ssm_beta", gdn_beta, GDN_BETA, WHOLE, E, HN_DIM_SSM_HEADS, IN(KDA)),                           \
        VECTOR("ssm_norm.weight", OF(ssm_norm), HN_DIM_SSM_STATE, IN(KDA))
static const hn_slot kimi_layer[] = {
    ATTN_NORM, MLA(IN(MLA)), KDA, FFN_NORM, DENSE_GLU, ROUTER, CHOICE_BIAS, EXPERTS, SHARED(HN_OPTIONAL), { 0 },
};
const hn_family hn_family_kimi_linear =
    HYBRID("kimi-linear", HN_KIMI_LINEAR, kimi_hparams, kimi_plan, hn_plain_outer, kimi_layer, .latent = true,
           .part_turns = true, .reads = HN_READS_LAYERS, .nope_period = -1, .ffn = HN_FFN_MOE,
           MOE(.gating_by_bias = true, .norm = HN_MOE_NORM_ALWAYS, .reads_lead = true));

/* ---- layers that lack a half ----------------------------------------------------------------------------------- */

#define IN_FFN .layers = HN_IN_FFN
static const hn_slot deci_layer[] = {
    NORM("attn_norm", attn_norm, E, "input_layernorm", .mixers = HN_WITH_ATTN | HN_PLAN_BIT(HN_MIXER_LINEAR)),
    QKV_ONLY(HN_TURN_Q, HN_TURN_K, Q, HN_DIM_QKV),
    LINEAR("attn_output", attn_output, ATTN_OUTPUT, ROWS, E, E, .hf = "self_attn.linear_attn", IN(LINEAR)),
    NORM("ffn_norm", ffn_norm, E, "post_attention_layernorm", IN_FFN),
    LINEAR("ffn_gate", ffn_gate, FFN_GATE, KEEP, E, FF, .hf = "mlp.gate_proj", IN_FFN),
    LINEAR("ffn_up", ffn_up, FFN_UP, KEEP, E, FF, .hf = "mlp.up_proj", IN_FFN),
    LINEAR("ffn_down", ffn_down, FFN_DOWN, ROWS, FF, E, .hf = "mlp.down_proj", IN_FFN),
    { 0 },
};
const hn_family hn_family_deci = HYBRID("deci", HN_DECI, hn_attn_hparams, deci_plan, hn_factors_outer, deci_layer,
                                        .reads = HN_READS_LAYERS | HN_READS_HEADS);
