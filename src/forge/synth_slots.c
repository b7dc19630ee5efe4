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

#define EXPERTS (HN_QWEN3MOE | HN_GPT_OSS)
#define TRANSFORMER (HN_LLAMA | HN_QWEN2 | HN_QWEN3 | HN_GEMMA3 | EXPERTS)
#define RWKV (HN_RWKV6 | HN_RWKV7)
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
    { TRANSFORMER, " output.weight ", 0, 1.5f, TIMES_IN, MATRIX },
    { RWKV, " output.weight ", 0, 1.5f, PER_IN, MATRIX },
    { TRANSFORMER | RWKV, " token_embd.weight ", 0, 1, ALONE, MATRIX },
    { HN_QWEN2, " attn_q.bias attn_k.bias attn_v.bias ", 0, 0.1f, ALONE, VALUES },
    { TRANSFORMER, " attn_output.weight ", 0, 1, SHARE, MATRIX },
    { TRANSFORMER & ~HN_GEMMA3, " ffn_down.weight ", 0, 4, SHARE, MATRIX },
    { HN_GEMMA3, " post_attention_norm.weight ", 0.25f, 0.0125f, STREAM, VALUES },
    { HN_GEMMA3, " post_ffw_norm.weight ", 1, 0.05f, STREAM, VALUES },
    { EXPERTS, " ffn_gate_inp.weight ", 0, 1, PER_IN, VALUES },
    { HN_QWEN3MOE, " ffn_down_exps.weight ", 0, 8, SHARE, MATRIX }, /* weights add up to 1, squares to less */
    { HN_GPT_OSS, " ffn_down_exps.weight ", 0, 8, SHARE, HN_SYNTH_MXFP4 },
    { HN_GPT_OSS, " ffn_gate_exps.weight ffn_up_exps.weight ", 0, 1, PER_IN, HN_SYNTH_MXFP4 },
    { HN_GPT_OSS, " attn_q.bias attn_k.bias attn_v.bias attn_output.bias ffn_gate_inp.bias ", 0, 0.1f, ALONE, VALUES },
    { HN_GPT_OSS, " ffn_gate_exps.bias ffn_up_exps.bias ffn_down_exps.bias attn_sinks.weight ", 0, 0.1f, ALONE,
      VALUES },
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
    const hn_family *family;
    hn_hparams hp;
    hn_layer_plan plan;
    uint64_t n_params;
} lister;

static hn_hparams numbers_of(const hn_synth_shape *s, const hn_family *f)
{
    return (hn_hparams){ .is = f->is,
                         .n_vocab = s->n_vocab,
                         .n_embd = s->n_embd,
                         .n_layer = s->n_layer,
                         .n_head = s->n_head,
                         .n_head_kv = s->n_head_kv,
                         .head_dim = s->head_dim,
                         .n_ff = s->n_ff,
                         .n_rot = s->head_dim,
                         .window_period = 1,
                         .moe = { .n_expert = s->n_expert, .n_used = s->n_used, .n_ff = s->n_ff_exp },
                         .rank_decay = s->rank_decay,
                         .rank_iclr = s->rank_iclr,
                         .rank_value = s->rank_value,
                         .rank_gate = s->rank_gate,
                         .rank_mix = s->rank_mix };
}

/* Does a file of the shape have the slot's tensor? Optional ones where they have a spread, parts that a whole tensor
 * stands for never. */
static bool has_slot(const lister *l, const hn_slot *s, int32_t il)
{
    if (il >= 0 && !hn_in_layer(s->layers, &l->plan)) return false;
    if (s->kind == HN_SLOT_EXPERTS && s->part[0]) return false;               /* each in its own */
    if (!strcmp(s->name, "rope_freqs.weight")) return l->s->rope_factor != 1; /* of llama alone */
    if (s->when == HN_TIED) return !l->s->tied;
    if (s->when == HN_OPTIONAL) return spread_of(l->family, s->name) >= 0;
    return !s->with || s->when == HN_GOES_WITH;
}

static hone_status add(lister *l, const hn_slot *s, const char *name, int32_t il, const uint64_t ne[4])
{
    int k = spread_of(l->family, s->name);
    float n_in = (float)ne[0], share = 1 / sqrtf(2 * (float)l->s->n_layer), mean = 0, std = 1;
    per how = k >= 0 ? spreads[k].per : PER_IN;
    hn_synth_kind kind = k >= 0 ? spreads[k].kind : hn_slot_is_matrix(s) ? MATRIX : VALUES;
    /* With rescale_every = n RWKV-6 halves the stream after every n layers; what layer il writes to it
     * is divided by as much, so that the model is the same but for rounding. */
    if (l->s->rescale_every) share = ldexpf(share, -(il / l->s->rescale_every));
    if (k >= 0) mean = spreads[k].mean, std = spreads[k].std;
    else if (!hn_slot_is_matrix(s)) { /* norms */ size_t n = strlen(s->name);
        bool bias = n > 5 && !strcmp(s->name + n - 5, ".bias");
        mean = bias ? 0 : 1, std = bias ? 0.02f : 0.05f, how = ALONE;
    }
    if (s->role == HN_ROLE_EMBD && l->s->tied) std = 1.5f, how = TIMES_IN; /* it is the head too */
    switch (how) {
    case PER_IN: std = std / sqrtf(n_in); break;
    case TIMES_IN: std = std * (1 / sqrtf(n_in)); break;
    case SHARE: std = std * (share / sqrtf(n_in)); break;
    case STREAM: mean *= share * sqrtf((float)l->s->n_embd), std *= share * sqrtf((float)l->s->n_embd); break;
    default: break;
    }
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
    for (const hn_slot *k = l->family->layer; k->name; k++) {
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
        n *= ne[i] = (uint64_t)hn_dim_value(&l->hp, &l->plan, d);
    }
    if (!copy && !rope) l->n_params += n;
    if (!l->planner) return HONE_OK;
    if (rope) return hn_synth_add_rope_freqs(l->planner, ne);
    return copy ? add_copy(l, s, ne) : add(l, s, s->name, il, ne);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const hn_slot *const *)a)->name, (*(const hn_slot *const *)b)->name);
}

/* Order in a file: outside layers, then layers ascending, by name within each. */
static hone_status add_sorted(lister *l, const hn_slot *slots, int32_t il)
{
    enum { MAX = 64 };
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
    hone_status st = add_sorted(l, l->family->outer, -1);
    for (int32_t il = 0; il < l->s->n_layer && st == HONE_OK; il++) {
        l->family->plan(&l->plan, &l->hp, il);
        st = add_sorted(l, l->family->layer, il);
    }
    return st;
}

hone_status hn_synth_add_all(hn_synth_planner *b, const hn_synth_shape *s)
{
    const hn_family *f = hn_family_find(s->arch, strlen(s->arch));
    lister l = { .planner = b, .s = s, .family = f, .hp = numbers_of(s, f) };
    return list_all(&l);
}

uint64_t hn_synth_n_params(const hn_synth_shape *s)
{
    const hn_family *f = hn_family_find(s->arch, strlen(s->arch));
    lister l = { .s = s, .family = f, .hp = numbers_of(s, f) };
    list_all(&l);
    return l.n_params;
}
