/* synth_slots: which tensors a random file of a shape has, in which order, and how their values spread. Names, order
 * and shapes are those of the family's slots (model/family.h), as converters write them; owns the spreads. Knows no
 * arithmetic. */
#include "forge/synth.h"
#include "model/family.h"

#include <math.h>
#include <stdlib.h>

/* ---- spreads ------------------------------------------------------------------------------------------ */

/* Inputs of every matrix are normalised to rms 1, so 1/sqrt(n_in) keeps it; the
 * two matrices that write to the residual stream share a fixed total over all layers
 * (Radford et al. 2019, section 2.3). Two measures keep greedy text from repeating one
 * token. The stream ends at rms 1.5 to 2, mostly from the feed-forward parts, far above a
 * tied embedding's, so that the last token's own logit does not stand out. And attention
 * adds little against the last token's share: its average over the past changes slowly,
 * and with 4 here too every model tried fell into repetition. Logits have a spread of 1.5.
 * gemma3's stream begins √n_embd times a tied embedding, and its norms say what a half adds: as much more.
 * RWKV: decays carry the state's life: w0 spread over channels as in trained models gives memories from one
 * token to several thousand, so S neither fades nor grows (rms 2.2, constant from 1,000 to 20,000 random tokens in
 * float64); learning rates a stay around 1/2, which keeps every step of the delta rule a contraction. */
typedef enum per {
    ALONE = 0, /* the spread itself */
    PER_IN,    /* spread / √n_in */
    TIMES_IN,  /* spread · (1 / √n_in) */
    SHARE,     /* spread · (share / √n_in), share = 1 / √(2 layers) */
    STREAM     /* mean and spread · share · √n_embd */
} per;

#define RWKV (HN_RWKV6 | HN_RWKV7)
#define OTHERS (~RWKV)
#define NORMED_AFTER                                                                                            \
    (HN_GEMMA2 | HN_GEMMA3 | HN_GLM4 | HN_OLMO2 | HN_EXAONE4 | HN_GEMMA4 | HN_GEMMA3N | /* what a half gives */ \
     HN_GEMMA_EMBEDDING)
#define LOWRANK HN_SYNTH_LOWRANK
#define MATRIX HN_SYNTH_MATRIX
#define VALUES HN_SYNTH_F32

static const struct {
    hn_family_set families;
    const char *names; /* between spaces */
    float mean, std;
    per per;
    hn_synth_kind kind;
} spreads[] = {
    { OTHERS, " output.weight ", 0, 1.5f, TIMES_IN, MATRIX },
    { RWKV, " output.weight ", 0, 1.5f, PER_IN, MATRIX },
    { ~(hn_family_set)0, " token_embd.weight ", 0, 1, ALONE, MATRIX },
    { HN_QWEN2, " attn_q.bias attn_k.bias attn_v.bias ", 0, 0.1f, ALONE, VALUES },
    { OTHERS, " attn_output.weight ", 0, 1, SHARE, MATRIX },
    { OTHERS & ~NORMED_AFTER, " ffn_down.weight ", 0, 4, SHARE, MATRIX },
    { NORMED_AFTER, " post_attention_norm.weight ", 0.25f, 0.0125f, STREAM, VALUES },
    { NORMED_AFTER, " post_ffw_norm.weight ", 1, 0.05f, STREAM, VALUES },
    { OTHERS, " ffn_gate_inp.weight ffn_gate_inp_shexp.weight ", 0, 1, PER_IN, VALUES },
    { OTHERS & ~HN_GPT_OSS, " ffn_down_exps.weight ", 0, 8, SHARE, MATRIX }, /* weights add up to 1, squares to less */
    { OTHERS, " ffn_down_shexp.weight ssm_out.weight shortconv.out_proj.weight ", 0, 4, SHARE, MATRIX },
    { HN_GPT_OSS, " ffn_down_exps.weight ", 0, 8, SHARE, HN_SYNTH_MXFP4 },
    { HN_GPT_OSS, " ffn_gate_exps.weight ffn_up_exps.weight ", 0, 1, PER_IN, HN_SYNTH_MXFP4 },
    { HN_GPT_OSS, " attn_q.bias attn_k.bias attn_v.bias attn_output.bias ffn_gate_inp.bias ", 0, 0.1f, ALONE, VALUES },
    { HN_GPT_OSS, " ffn_gate_exps.bias ffn_up_exps.bias ffn_down_exps.bias attn_sinks.weight ", 0, 0.1f, ALONE,
      VALUES },
    { HN_PHI3, " rope_factors_short.weight ", 1.2f, 0.05f, ALONE, VALUES },
    { HN_PHI3, " rope_factors_long.weight ", 8, 2, ALONE, VALUES },
    /* steps of about 0.05 and rates of 1 to 8: memories of a few tokens to a hundred */
    { OTHERS, " ssm_a ", -4, 1, ALONE, VALUES },
    { HN_MAMBA | HN_JAMBA, " ssm_d ", 1, 0.25f, ALONE, VALUES },
    { OTHERS, " ssm_dt.bias ", -3, 0.5f, ALONE, VALUES },
    { OTHERS, " ssm_conv1d.weight shortconv.conv.weight ", 0, 0.5f, ALONE, VALUES },
    { HN_BERT | HN_NOMIC_BERT | HN_NOMIC_BERT_MOE | HN_JINA_BERT_V3, " position_embd.weight token_types.weight ", 0,
      0.3f, ALONE, VALUES },
    { RWKV, " token_embd_norm.weight ", 1, 0.05f, ALONE, VALUES },
    { RWKV, " time_mix_output.weight ", 0, 1, SHARE, MATRIX },
    { RWKV, " channel_mix_lerp_k.weight channel_mix_lerp_r.weight ", 0.5f, 0.2f, ALONE, VALUES },
    { RWKV, " time_mix_lerp_fused.weight time_mix_lerp_x.weight ", 0.5f, 0.2f, ALONE, VALUES },
    { HN_RWKV7, " channel_mix_value.weight ", 0, 4, SHARE, MATRIX },
    { HN_RWKV6, " channel_mix_value.weight ", 0, 8, SHARE, MATRIX }, /* the gate halves it */
    { HN_RWKV7, " time_mix_a0.weight ", 0, 0.5f, ALONE, VALUES },
    { HN_RWKV7, " time_mix_a1.weight time_mix_v1.weight time_mix_g1.weight ", 0, 1, PER_IN, LOWRANK },
    { HN_RWKV7, " time_mix_a2.weight time_mix_v2.weight ", 0, 0.5f, PER_IN, LOWRANK },
    { HN_RWKV7, " time_mix_g2.weight ", 0, 2, PER_IN, LOWRANK },
    { HN_RWKV7, " time_mix_k_a.weight ", 1, 0.05f, ALONE, VALUES },
    { HN_RWKV7, " time_mix_k_k.weight ", 0.85f, 0.1f, ALONE, VALUES },
    { HN_RWKV7, " time_mix_r_k.weight ", 0, 0.1f, ALONE, VALUES },
    { HN_RWKV7, " time_mix_v0.weight ", 0.5f, 0.5f, ALONE, VALUES },
    { HN_RWKV7, " time_mix_w0.weight ", -3, 1.5f, ALONE, VALUES },
    { HN_RWKV7, " time_mix_w1.weight ", 0, 1, PER_IN, VALUES },
    { HN_RWKV7, " time_mix_w2.weight ", 0, 0.5f, PER_IN, VALUES },
    { HN_RWKV6, " time_mix_decay.weight ", -3, 1.2f, ALONE, VALUES },
    { HN_RWKV6, " time_mix_decay_w1.weight time_mix_w1.weight ", 0, 1, PER_IN, VALUES },
    { HN_RWKV6, " time_mix_decay_w2.weight time_mix_w2.weight ", 0, 0.3f, PER_IN, VALUES },
    { HN_RWKV6, " time_mix_first.weight ", 0.3f, 0.3f, ALONE, VALUES },
    { HN_RWKV6, " time_mix_gate.weight ", 0, 2, PER_IN, MATRIX },
};
enum { N_SPREADS = sizeof spreads / sizeof *spreads };

/* Of that family and tensor; −1: the usual. */
static int spread_of(const hn_family *f, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    for (int i = 0; i < N_SPREADS; i++)
        if (spreads[i].families & f->bit && strstr(spreads[i].names, word)) return i;
    return -1;
}

/* ---- tensors --------------------------------------------------------------------------------------------- */

typedef struct lister {
    hn_synth_planner *planner; /* NULL: only count */
    const hn_synth_shape *s;
    const hone_model *m; /* its numbers */
    const hn_layer_plan *plan;
    uint64_t n_params;
} lister;

/* Of those that a file may lack, what shapes without keys have. */
static const char *usual(const hn_family *f)
{
    if (f->bit == HN_QWEN2) return "attn_q.bias attn_k.bias attn_v.bias";
    if (f->bit & RWKV) return "token_embd_norm.weight";
    if (f->bit != HN_GPT_OSS) return "";
    return "attn_q.bias attn_k.bias attn_v.bias attn_output.bias ffn_gate_inp.bias ffn_gate_exps.bias "
           "ffn_up_exps.bias ffn_down_exps.bias";
}

/* Does a file of the shape have the slot's tensor? */
static bool has_slot(const lister *l, const hn_slot *s, int32_t il)
{
    const char *has = l->s->has ? l->s->has : usual(l->m->arch);
    if (il >= 0 && (!hn_slot_in(s, l->plan) || (il < s->from_layer && l->m->arch->is))) return false;
    for (int i = 0; i < 4 && s->ne[i]; i++) /* of a width that the shape has not */
        if (hn_dim_value(&l->m->hp, l->plan, s->ne[i]) == 0) return false;
    if (!l->s->keys && !strcmp(s->name, "rope_freqs.weight")) return l->s->rope_factor != 1; /* of llama alone */
    if (s->when == HN_TIED) return !l->s->tied;
    const hn_slot_rare *rare = hn_slot_rarely(s);
    const char *needs = s->when == HN_OPTIONAL ? s->name : rare->with;
    if (needs && !hn_synth_has(has, needs)) return false;
    return !rare->without || !hn_synth_has(has, rare->without);
}

static hone_status add(lister *l, const hn_slot *s, const char *name, int32_t il, const uint64_t ne[4])
{
    const hn_hparams *hp = &l->m->hp;
    int k = spread_of(l->m->arch, s->name);
    float n_in = (float)ne[0], share = 1 / sqrtf(2 * (float)hp->n_layer), mean = 0, std = 1;
    per how = k >= 0 ? spreads[k].per : PER_IN;
    hn_synth_kind kind = k >= 0 ? spreads[k].kind : hn_slot_is_matrix(s) ? MATRIX : VALUES;
    /* With rescale_every = n RWKV-6 halves the stream after every n layers; what layer il writes to it
     * is divided by as much, so that the model is the same but for rounding. */
    if (hp->rescale_every) share = ldexpf(share, -(il / hp->rescale_every));
    if (hp->res_mul != 0) share /= hp->res_mul;
    if (k >= 0) mean = spreads[k].mean, std = spreads[k].std;
    else if (!hn_slot_is_matrix(s)) { /* norms */ size_t n = strlen(s->name);
        bool bias = n > 5 && !strcmp(s->name + n - 5, ".bias");
        mean = bias ? 0 : 1, std = bias ? 0.02f : 0.05f, how = ALONE;
    }
    if (s->role == HN_ROLE_EMBD && l->s->tied) std = 1.5f, how = TIMES_IN; /* it is the head too */
    if (s->role == HN_ROLE_EMBD && l->s->keys && !hp->is->sqrt_embd)
        std /= hp->emb_scale; /* and the stream begins so */
    switch (how) {
    case PER_IN: std = std / sqrtf(n_in); break;
    case TIMES_IN: std = std * (1 / sqrtf(n_in)); break;
    case SHARE: std = std * (share / sqrtf(n_in)); break;
    case STREAM: mean *= share * sqrtf((float)hp->n_embd), std *= share * sqrtf((float)hp->n_embd); break;
    default: break;
    }
    if (hp->logit_mul != 0 && s->role == HN_ROLE_OUTPUT) std /= hp->logit_mul;
    return hn_synth_add(l->planner, name, il, kind, ne, mean, std);
}

/* What the first layer has of a slot that begins later: as in converted RWKV-7 files a copy of a's of that number,
 * which no model reads. */
static hone_status add_copy(lister *l, const hn_slot *s, const uint64_t ne[4])
{
    char name[56], of[64];
    snprintf(name, sizeof name, "%s", s->name);
    char *letter = strstr(name, "_v") + 1;
    *letter = 'a';
    snprintf(of, sizeof of, "blk.0.%s", name);
    for (const hn_slot *k = l->m->arch->layer; k->name; k++) {
        if (strcmp(k->name, name)) continue;
        hone_status st = add(l, k, s->name, 0, ne);
        if (st == HONE_OK) hn_synth_mark_copy(l->planner, of);
        return st;
    }
    return HONE_OK;
}

static hone_status add_slot(lister *l, const hn_slot *s, int32_t il)
{
    uint64_t ne[4] = { 0 }, n = 1;
    bool copy = il >= 0 && il < s->from_layer, rope = !strcmp(s->name, "rope_freqs.weight");
    for (int i = 0; i < 4 && s->ne[i]; i++) {
        hn_dim d = copy && s->ne[i] == HN_DIM_VALUE ? HN_DIM_ICLR : s->ne[i];
        n *= ne[i] = (uint64_t)hn_dim_value(&l->m->hp, l->plan, d);
    }
    if (!copy && !rope) l->n_params += n;
    if (!l->planner) return HONE_OK;
    if (rope) {
        double base = l->s->keys ? hn_synth_key_of(l->s, "rope.freq_base", 1e4) : (double)l->s->rope_base;
        return hn_synth_add_rope_freqs(l->planner, ne, (float)base, l->s->rope_factor != 0 ? l->s->rope_factor : 1);
    }
    return copy ? add_copy(l, s, ne) : add(l, s, s->name, il, ne);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const hn_slot *const *)a)->name, (*(const hn_slot *const *)b)->name);
}

/* Order in a file: outside layers, then layers ascending, by name within each. */
static hone_status add_sorted(lister *l, const hn_slot *slots, int32_t il)
{
    enum { MAX = 256 }; /* no family has half as many */
    const hn_slot *list[MAX];
    size_t n = 0;
    hone_status st = HONE_OK;
    for (const hn_slot *s = slots; s->name && n < MAX; s++)
        if (has_slot(l, s, il)) list[n++] = s;
    qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; i < n && st == HONE_OK; i++) st = add_slot(l, list[i], il);
    return st;
}

static hone_status list_all(lister *l)
{
    l->plan = l->m->plan; /* which no slot outside layers asks for */
    hone_status st = add_sorted(l, l->m->arch->outer, -1);
    for (int32_t il = 0; il < l->m->hp.n_layer && st == HONE_OK; il++) {
        l->plan = &l->m->plan[il];
        st = add_sorted(l, l->m->arch->layer, il);
    }
    return st;
}

/* As the model asks of a file (bind.c): of slots that go together all or none, and what its numbers say is there. */
static hone_status check_together(const lister *l, const char *where, int32_t il, hone_error *err)
{
    static const char compresses[] = "attn_q_a.weight";
    const hn_hparams *hp = &l->m->hp;
    const char *const list = l->s->has;
    if (l->plan->mixer == HN_MIXER_MLA && hp->rank_q && !hn_synth_has(list, compresses))
        return HN_FAIL(
            err, HONE_E_ARG,
            "%s: tensors lacks %s, which attention.q_lora_rank = %d needs; expected it there, or no such key", where,
            compresses, (int)hp->rank_q);
    for (int8_t g = HN_TOGETHER_NOT + 1; g < HN_TOGETHER_END; g++) {
        const hn_slot *there = NULL, *missing = NULL;
        for (const hn_slot *s = l->m->arch->layer; s->name; s++) {
            if (s->together != g || !hn_slot_in(s, l->plan)) continue;
            if (has_slot(l, s, il)) there = s;
            else if (!missing) missing = s;
        }
        if (missing && there)
            return HN_FAIL(err, HONE_E_ARG, "%s: tensors lacks %s, which goes with %s; expected both, or neither",
                           where, missing->name, there->name);
        if (missing && g == HN_TOGETHER_SHARED && hp->moe.n_ff_shared > 0)
            return HN_FAIL(err, HONE_E_ARG,
                           "%s: tensors lacks %s, which expert_shared_feed_forward_length = %d needs; expected it "
                           "there, or no such key",
                           where, missing->name, (int)hp->moe.n_ff_shared);
    }
    return HONE_OK;
}

hone_status hn_synth_check_tensors(const hn_synth_shape *s, const hn_synth_numbers *n, const char *where,
                                   hone_error *err)
{
    lister l = { .s = s, .m = n->model };
    hone_status st = HONE_OK;
    for (int32_t il = 0; il < l.m->hp.n_layer && st == HONE_OK; il++) {
        l.plan = &l.m->plan[il];
        st = check_together(&l, where, il, err);
    }
    return st;
}

hone_status hn_synth_add_all(hn_synth_planner *b, const hn_synth_shape *s, const hn_synth_numbers *n)
{
    lister l = { .planner = b, .s = s, .m = n->model };
    return list_all(&l);
}

uint64_t hn_synth_n_params(const hn_synth_shape *s)
{
    hn_synth_numbers n;
    lister l = { .s = s };
    if (hn_synth_numbers_of(&n, s, NULL) != HONE_OK) return 0;
    l.m = n.model;
    list_all(&l);
    hn_synth_numbers_free(&n);
    return l.n_params;
}
