/* mixture: which type each tensor gets in "Q4_K_M" and its kind. The rules are those of
 * ggml-org/llama.cpp:src/llama-quant.cpp of 2026, restated as tables and small functions;
 * a file made with them has the published sizes (tests/unit/test_quant_mixture.c).
 * Knows names and shapes; refuses to know data. */
#include "quant/quant.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

typedef enum mix { /* the value of general.file_type (llama.cpp's numbering) */
                   M_F32 = 0,
                   M_F16 = 1,
                   M_Q4_0 = 2,
                   M_Q4_1 = 3,
                   M_Q8_0 = 7,
                   M_Q5_0 = 8,
                   M_Q5_1 = 9,
                   M_Q2_K = 10,
                   M_Q3_K_S = 11,
                   M_Q3_K_M = 12,
                   M_Q3_K_L = 13,
                   M_Q4_K_S = 14,
                   M_Q4_K_M = 15,
                   M_Q5_K_S = 16,
                   M_Q5_K_M = 17,
                   M_Q6_K = 18,
                   M_IQ2_XXS = 19,
                   M_IQ2_XS = 20,
                   M_Q2_K_S = 21,
                   M_IQ3_XS = 22,
                   M_IQ3_XXS = 23,
                   M_IQ1_S = 24,
                   M_IQ4_NL = 25,
                   M_IQ3_S = 26,
                   M_IQ3_M = 27,
                   M_IQ2_S = 28,
                   M_IQ2_M = 29,
                   M_IQ4_XS = 30,
                   M_IQ1_M = 31,
                   M_BF16 = 32,
                   M_TQ1_0 = 36,
                   M_TQ2_0 = 37,
                   M_MXFP4_MOE = 38,
                   M_NVFP4 = 39,
                   M_Q1_0 = 40,
                   M_Q2_0 = 41
} mix;

static const struct {
    const char *name;
    mix m;
    hn_type base;
} mixtures[] = {
    { "F32", M_F32, HN_F32 },
    { "F16", M_F16, HN_F16 },
    { "BF16", M_BF16, HN_BF16 },
    { "Q4_0", M_Q4_0, HN_Q4_0 },
    { "Q4_1", M_Q4_1, HN_Q4_1 },
    { "Q5_0", M_Q5_0, HN_Q5_0 },
    { "Q5_1", M_Q5_1, HN_Q5_1 },
    { "Q8_0", M_Q8_0, HN_Q8_0 },
    { "Q2_K", M_Q2_K, HN_Q2_K },
    { "Q2_K_S", M_Q2_K_S, HN_Q2_K },
    { "Q3_K_S", M_Q3_K_S, HN_Q3_K },
    { "Q3_K_M", M_Q3_K_M, HN_Q3_K },
    { "Q3_K_L", M_Q3_K_L, HN_Q3_K },
    { "Q4_K_S", M_Q4_K_S, HN_Q4_K },
    { "Q4_K_M", M_Q4_K_M, HN_Q4_K },
    { "Q5_K_S", M_Q5_K_S, HN_Q5_K },
    { "Q5_K_M", M_Q5_K_M, HN_Q5_K },
    { "Q6_K", M_Q6_K, HN_Q6_K },
    { "Q3_K", M_Q3_K_M, HN_Q3_K },
    { "Q4_K", M_Q4_K_M, HN_Q4_K },
    { "Q5_K", M_Q5_K_M, HN_Q5_K }, /* usual short names */
    { "IQ1_S", M_IQ1_S, HN_IQ1_S },
    { "IQ1_M", M_IQ1_M, HN_IQ1_M },
    { "IQ2_XXS", M_IQ2_XXS, HN_IQ2_XXS },
    { "IQ2_XS", M_IQ2_XS, HN_IQ2_XS },
    { "IQ2_S", M_IQ2_S, HN_IQ2_XS },
    { "IQ2_M", M_IQ2_M, HN_IQ2_S },
    { "IQ3_XXS", M_IQ3_XXS, HN_IQ3_XXS },
    { "IQ3_XS", M_IQ3_XS, HN_IQ3_S },
    { "IQ3_S", M_IQ3_S, HN_IQ3_S },
    { "IQ3_M", M_IQ3_M, HN_IQ3_S },
    { "IQ4_NL", M_IQ4_NL, HN_IQ4_NL },
    { "IQ4_XS", M_IQ4_XS, HN_IQ4_XS },
    { "TQ1_0", M_TQ1_0, HN_TQ1_0 },
    { "TQ2_0", M_TQ2_0, HN_TQ2_0 },
    { "MXFP4_MOE", M_MXFP4_MOE, HN_MXFP4 },
    { "NVFP4", M_NVFP4, HN_NVFP4 },
    { "Q1_0", M_Q1_0, HN_Q1_0 },
    { "Q2_0", M_Q2_0, HN_Q2_0 },
};

bool hn_mix_find(const char *name, hn_type *base, uint32_t *file_type)
{
    for (size_t i = 0; name && i < sizeof mixtures / sizeof *mixtures; i++)
        if (!strcasecmp(mixtures[i].name, name)) {
            if (base) *base = mixtures[i].base;
            if (file_type) *file_type = (uint32_t)mixtures[i].m;
            return true;
        }
    return false;
}

const char *hn_mix_name(size_t i) { return i < sizeof mixtures / sizeof *mixtures ? mixtures[i].name : NULL; }

static bool has(const char *s, const char *part) { return strstr(s, part) != NULL; }

/* Whether a tensor is quantized at all. */
static bool eligible(const char *name, const uint64_t *ne, int n_dim)
{
    static const char *const never[] = {
        "_norm.weight",
        "ffn_gate_inp.weight",
        "ssm_conv1d",
        "shortconv.conv.weight",
        "attn_rel_b.weight",
        "altup",
        "laurel",
        "per_layer_model_proj",
        "indexer.k_proj.weight",
        "indexer.q_proj.weight",
        "ffn_gate_tid2eid.weight",
        "time_mix_first.weight",
        "time_mix_w0.weight",
        "time_mix_w1.weight",
        "time_mix_w2.weight",
        "time_mix_v0.weight",
        "time_mix_v1.weight",
        "time_mix_v2.weight",
        "time_mix_a0.weight",
        "time_mix_a1.weight",
        "time_mix_a2.weight",
        "time_mix_g1.weight",
        "time_mix_g2.weight",
        "time_mix_decay_w1.weight",
        "time_mix_decay_w2.weight",
        "time_mix_lerp_fused.weight",
        ".position_embd",
        "sam.pos_embd",
        "sam.neck.",
        "sam.net_",
        ".rel_pos",
        ".patch_embd",
        ".patch_merger",
        "a.rvq.codebook",
        "mm.a.code_embd",
    };
    size_t len = strlen(name);
    if (len < 6 || strcmp(name + len - 6, "weight")) return false;
    if (!strcmp(name, "position_embd.weight") || !strcmp(name, "token_types.weight")) return false;
    while (n_dim > 0 && ne[n_dim - 1] == 1) n_dim--; /* trailing dimensions of 1 do not count */
    if (n_dim < 2) return false;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (has(name, never[i])) return false;
    return true;
}

typedef enum category { C_OUTPUT, C_EMBD, C_V, C_K, C_Q, C_ATTN_OUT, C_UP, C_GATE, C_DOWN, C_OTHER } category;

static category category_of(const char *name)
{
    if (!strcmp(name, "output.weight")) return C_OUTPUT;
    if (!strcmp(name, "token_embd.weight") || !strcmp(name, "per_layer_token_embd.weight")) return C_EMBD;
    if (has(name, "attn_qkv.weight") || has(name, "attn_kv_b.weight") || has(name, "attn_v.weight")) return C_V;
    if (has(name, "attn_k.weight")) return C_K;
    if (has(name, "attn_q.weight")) return C_Q;
    if (has(name, "attn_output.weight")) return C_ATTN_OUT;
    if (has(name, "ffn_up")) return C_UP;
    if (has(name, "ffn_gate")) return C_GATE;
    if (has(name, "ffn_down")) return C_DOWN;
    return C_OTHER;
}

bool hn_mix_is_v(const char *name) { return category_of(name) == C_V; }

/* The first and last eighth of the layers and every third between get more bits. */
static bool more(int i, int n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

/* Layer number of an ffn tensor: from its name in models with experts, else counted. */
static int layer_of(const char *name, const hn_mix_model *m, int32_t *counter)
{
    int counted = (*counter)++;
    if (m->n_expert > 1 && !strncmp(name, "blk.", 4) && isdigit((unsigned char)name[4])) {
        long il = strtol(name + 4, NULL, 10);
        if (il >= 0 && il < m->n_layer) return (int)il;
    }
    return counted;
}

/* Models that the rules count as "70B": 80 layers with grouped queries. */
static bool is_70b(const hn_mix_model *m)
{
    if (m->n_layer != 80 || !m->arch) return false;
    if (!strcmp(m->arch, "llama")) return m->n_head != m->n_head_kv;
    return !strcmp(m->arch, "qwen2") || !strcmp(m->arch, "deci");
}

static bool tiny_mix(mix x)
{
    return x == M_IQ1_S || x == M_IQ1_M || x == M_IQ2_XXS || x == M_IQ2_XS || x == M_IQ2_S || x == M_IQ2_M;
}

/* i_down: ffn_down tensors seen before, in these mixtures also in models with experts. */
static hn_type rule_tiny(mix x, hn_type base, category c, const hn_mix_model *m, int gqa, int i_down)
{
    bool hi = x == M_IQ2_S || x == M_IQ2_M;
    int n = m->n_layer, e = m->n_expert;
    switch (c) {
    case C_V: return gqa >= 4 || e >= 4 ? HN_Q4_K : hi ? HN_IQ3_S : HN_Q2_K;
    case C_K: return e == 8 ? HN_Q4_K : base;
    case C_DOWN: return i_down < n / 8 ? (hi ? HN_IQ3_S : HN_Q2_K) : base;
    case C_ATTN_OUT:
        if (e == 8) return HN_Q5_K;
        return x == M_IQ1_S || x == M_IQ1_M ? HN_IQ2_XXS : hi ? HN_IQ3_S : base;
    default: return base;
    }
}

static hn_type rule_v(mix x, hn_type base, const hn_mix_model *m, int gqa, int iv, int nv)
{
    hn_type t = base;
    switch (x) {
    case M_Q2_K: t = gqa >= 4 ? HN_Q4_K : HN_Q3_K; break;
    case M_Q2_K_S:
    case M_IQ3_XS:
    case M_IQ3_S:
        if (gqa >= 4) t = HN_Q4_K;
        break;
    case M_IQ3_XXS: t = gqa >= 4 ? HN_Q4_K : m->importance ? HN_IQ3_XXS : HN_IQ3_S; break;
    case M_IQ3_M: t = HN_Q4_K; break;
    case M_Q3_K_M: t = iv < 2 ? HN_Q5_K : HN_Q4_K; break;
    case M_Q3_K_L: t = HN_Q5_K; break;
    case M_IQ4_NL:
    case M_IQ4_XS:
        if (gqa >= 4) t = HN_Q5_K;
        break;
    case M_Q4_K_M:
    case M_Q5_K_M:
        if (more(iv, nv)) t = HN_Q6_K;
        break;
    case M_Q4_K_S:
        if (iv < 4) t = HN_Q5_K;
        break;
    default: break;
    }
    if (is_70b(m) && (t == HN_Q3_K || t == HN_Q4_K)) t = HN_Q5_K;
    return m->n_expert == 8 ? HN_Q8_0 : t;
}

static hn_type rule_down(mix x, hn_type base, const hn_mix_model *m, int i)
{
    int n = m->n_layer;
    bool early = i < n / 8, imp = m->importance;
    switch (x) {
    case M_Q2_K: return HN_Q3_K;
    case M_Q2_K_S: return early ? HN_Q4_K : base;
    case M_IQ3_XXS: return imp ? base : early ? HN_Q4_K : HN_Q3_K;
    case M_Q3_K_M: return i < n / 16 ? HN_Q5_K : HN_Q4_K;
    case M_IQ3_M: return early || (m->n_expert == 8 && more(i, n)) ? HN_Q4_K : base;
    case M_Q3_K_L: return HN_Q5_K;
    case M_Q4_K_M:
    case M_Q5_K_M: return more(i, n) ? HN_Q6_K : base;
    case M_IQ4_NL:
    case M_IQ4_XS: return early && !imp ? HN_Q5_K : base;
    case M_Q4_K_S: return early ? HN_Q5_K : base;
    case M_Q4_0: return early && imp ? HN_Q4_1 : base;
    case M_Q5_0: return early && imp ? HN_Q5_1 : base;
    default: return base;
    }
}

static hn_type rule_attn_out(mix x, hn_type base, const hn_mix_model *m)
{
    if (m->n_expert == 8) {
        switch (x) {
        case M_Q2_K:
        case M_IQ3_XS:
        case M_IQ3_XXS:
        case M_Q3_K_S:
        case M_Q3_K_M:
        case M_IQ4_NL:
        case M_Q4_K_S:
        case M_Q4_K_M:
        case M_IQ3_S:
        case M_IQ3_M:
        case M_IQ4_XS: return HN_Q5_K;
        default: return base;
        }
    }
    switch (x) {
    case M_Q2_K: return HN_Q3_K;
    case M_IQ3_XXS: return HN_IQ3_S;
    case M_Q3_K_M:
    case M_IQ3_M: return HN_Q4_K;
    case M_Q3_K_L: return HN_Q5_K;
    default: return base;
    }
}

static hn_type rule_output(mix x, hn_type base, uint64_t ne0)
{
    if (x == M_MXFP4_MOE || ne0 % hn_type_get(base)->block_elems) return HN_Q8_0;
    if (tiny_mix(x) || x == M_IQ3_XXS) return HN_Q5_K;
    return base == HN_Q8_0 ? HN_Q8_0 : HN_Q6_K;
}

static hn_type rule_embd(mix x, hn_type base)
{
    switch (x) {
    case M_IQ1_S:
    case M_IQ1_M:
    case M_IQ2_XXS:
    case M_IQ2_XS: return HN_Q2_K;
    case M_IQ2_S:
    case M_IQ2_M:
    case M_IQ3_XXS: return HN_IQ3_S;
    case M_TQ1_0:
    case M_TQ2_0:
    case M_Q2_0: return HN_Q4_K;
    default: return base;
    }
}

/* The type for rows that the chosen one's block does not divide. */
static hn_type fallback(hn_type t, uint64_t ne0, int32_t *n_fallback)
{
    if (ne0 % hn_type_get(t)->block_elems == 0) return t;
    ++*n_fallback;
    switch (t) {
    case HN_IQ1_S:
    case HN_IQ1_M:
    case HN_IQ2_XXS:
    case HN_IQ2_XS:
    case HN_IQ2_S:
    case HN_IQ3_XXS:
    case HN_IQ3_S:
    case HN_IQ4_XS: t = HN_IQ4_NL; break;
    case HN_Q2_K:
    case HN_Q3_K:
    case HN_TQ1_0:
    case HN_TQ2_0:
    case HN_Q1_0:
    case HN_Q2_0: t = HN_Q4_0; break;
    case HN_Q4_K: t = HN_Q5_0; break;
    case HN_Q5_K: t = HN_Q5_1; break;
    case HN_Q6_K: t = HN_Q8_0; break;
    default: break;
    }
    return ne0 % hn_type_get(t)->block_elems ? HN_F16 : t;
}

hn_type hn_mix_type(const char *mixture, const hn_mix_model *m, hn_mix_state *state, const char *name,
                    const uint64_t *ne, int n_dim)
{
    hn_type base, t;
    uint32_t ft;
    if (!hn_mix_find(mixture, &base, &ft) || !eligible(name, ne, n_dim)) return HN_F32;
    if (base == HN_F32 || base == HN_F16 || base == HN_BF16) return base;

    mix x = (mix)ft;
    category c = category_of(name);
    int gqa = m->n_head_kv > 0 ? m->n_head / m->n_head_kv : 1, n = m->n_layer, i = 0, iv = 0;
    switch (c) { /* counters run over every tensor, whatever rule follows */
    case C_V: iv = state->i_v++; break;
    case C_UP: i = layer_of(name, m, &state->i_up); break;
    case C_GATE: i = layer_of(name, m, &state->i_gate); break;
    case C_DOWN: i = layer_of(name, m, &state->i_down); break;
    default: break;
    }

    if (c == C_OUTPUT || (c == C_EMBD && m->tied)) {
        t = rule_output(x, base, ne[0]);
    } else if (x == M_MXFP4_MOE) {
        t = n_dim > 2 && ne[2] > 1 ? HN_MXFP4 : HN_Q8_0;
    } else if (c == C_EMBD) {
        t = rule_embd(x, base);
    } else if (tiny_mix(x)) {
        t = rule_tiny(x, base, c, m, gqa, state->i_down - 1);
    } else {
        t = base;
        switch (c) {
        case C_V: t = rule_v(x, base, m, gqa, iv, m->n_v > 0 ? m->n_v : n); break;
        case C_K:
            if (m->n_expert == 8) {
                t = HN_Q8_0;
                break;
            } /* fall through */
        case C_Q: t = x == M_IQ3_XS ? HN_IQ3_XXS : x == M_IQ3_XXS ? HN_IQ2_S : base; break;
        case C_DOWN: t = rule_down(x, base, m, i); break;
        case C_ATTN_OUT: t = rule_attn_out(x, base, m); break;
        case C_UP:
        case C_GATE:
            if (x == M_IQ3_XS && i >= n / 8 && i < 7 * n / 8) t = HN_IQ3_XXS;
            break;
        default: break;
        }
    }
    return fallback(t, ne[0], &state->n_fallback);
}
