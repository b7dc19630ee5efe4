/* RWKV-7 and RWKV-6 files of any size with the weights of the published check vectors:
 * what tiny_model.h is for transformers. */
#ifndef HN_TEST_TINY_RWKV_H
#define HN_TEST_TINY_RWKV_H

#include "tiny_model.h"

typedef struct rw_shape {
    const char *arch;
    int E, N, F, V, L;
    int w, a, v, g; /* rwkv7: ranks */
    int X, D;       /* rwkv6 */
    double eps;     /* 0: 1e-5 */
    int rescale;    /* rwkv6: halve after every this many layers */
    bool separate;  /* rwkv6: five lerps */
    bool no_v0;     /* rwkv7: layer 0 without its unused v */
} rw_shape;
#define R7(e, n, f, v_, l, rw, ra, rv, rg, ...)                                                                   \
    {                                                                                                             \
        .arch = "rwkv7", .E = e, .N = n, .F = f, .V = v_, .L = l, .w = rw, .a = ra, .v = rv, .g = rg, __VA_ARGS__ \
    }
#define R6(e, n, f, v_, l, x, d, ...)                                                         \
    {                                                                                         \
        .arch = "rwkv6", .E = e, .N = n, .F = f, .V = v_, .L = l, .X = x, .D = d, __VA_ARGS__ \
    }

static const rw_shape rw_vec7 = R7(16, 8, 32, 16, 2, 4, 4, 4, 4), rw_vec6 = R6(16, 8, 32, 16, 2, 4, 4);

static inline bool rw_is7(const rw_shape *s) { return !strcmp(s->arch, "rwkv7"); }
static inline double rw_eps(const rw_shape *s) { return s->eps > 0 ? s->eps : 1e-5; }
static inline size_t rw_state_floats(const rw_shape *s)
{
    return (size_t)s->L * (2 * (size_t)s->E + (size_t)s->E * (size_t)s->N);
}

/* ---- the files --------------------------------------------------------------------------------- */

/* Value = o + s·u, by the published rule. */
static inline void rw_scale(const char *name, double *s, double *o)
{
    static const struct {
        const char *name;
        double s, o;
    } list7[] = {
        { "w1", 0.5, 0 }, { "a1", 0.5, 0 }, { "v1", 0.5, 0 }, { "g1", 0.5, 0 },  { "w2", 1, 0 },
        { "a2", 1, 0 },   { "v2", 1, 0 },   { "g2", 1, 0 },   { "w0", 2, 0 },    { "a0", 1, 0 },
        { "v0", 1, 0 },   { "k_k", 0.5, 1 }, { "k_a", 0.5, 1 }, { "r_k", 0.5, 0 },
    }, list6[] = {
        { "w1", 0.5, 0 },       { "w2", 0.5, 0 },    { "decay_w1", 0.5, 0 },
        { "decay_w2", 1, 0 },   { "first", 0.5, 0 }, { "decay", 2, -2 },
    };
    const char *p = strstr(name, "time_mix_");
    bool v6 = name[0] == '6';
    *s = 0.25, *o = 0;
    if (strstr(name, ".token_embd.weight")) *s = 1;
    else if (strstr(name, "lerp")) *s = 0.5, *o = 0.5;
    else if ((strstr(name, "norm") || strstr(name, "time_mix_ln")) && strstr(name, ".weight")) *o = 1;
    else if (p)
        for (size_t i = 0; i < (v6 ? sizeof list6 / sizeof *list6 : sizeof list7 / sizeof *list7); i++) {
            const char *want = v6 ? list6[i].name : list7[i].name;
            size_t n = strlen(want);
            if (!strncmp(p + 9, want, n) && p[9 + n] == '.')
                *s = v6 ? list6[i].s : list7[i].s, *o = v6 ? list6[i].o : list7[i].o;
        }
}

static inline tm_tensor *rw_add(tiny *m, const char *name, int n_dim, int a, int b, int c, int d)
{
    char full[80];
    double s, o;
    assert_true(m->n_t < 128);
    tm_tensor *t = &m->t[m->n_t++];
    *t = (tm_tensor){ .n_dim = n_dim, .ne = { (uint64_t)a, (uint64_t)b, (uint64_t)c, (uint64_t)d } };
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(full, sizeof full, "%c.%s", m->s.arch[4], name);
    rw_scale(full, &s, &o);
    t->f = malloc(tm_elems(t) * sizeof(float));
    assert_non_null(t->f);
    uint64_t n = tm_elems(t), seed = tm_fnv(name);
    for (uint64_t k = 0; k < n; k++) t->f[k] = (float)(o + s * tm_u_of(seed, k));
    tm_encode(t, HN_F32);
    return t;
}
static inline void rw_in_layer(tiny *m, int il, const char *what, int n_dim, int a, int b, int c, int d)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", il, what);
    rw_add(m, name, n_dim, a, b, c, d);
}
static inline void rw_vec(tiny *m, int il, const char *what, int n) { rw_in_layer(m, il, what, 1, n, 1, 1, 1); }
static inline void rw_mat(tiny *m, int il, const char *what, int n_in, int n_out)
{
    rw_in_layer(m, il, what, 2, n_in, n_out, 1, 1);
}
static inline void rw_norm(tiny *m, int il, const char *what, int n)
{
    char name[32];
    snprintf(name, sizeof name, "%s.weight", what);
    rw_vec(m, il, name, n);
    snprintf(name, sizeof name, "%s.bias", what);
    rw_vec(m, il, name, n);
}

static inline void rw_time_mix7(tiny *m, const rw_shape *s, int il)
{
    static const char kind[4] = { 'w', 'a', 'v', 'g' };
    for (int i = 0; i < 4; i++) {
        int rank = i == 0 ? s->w : i == 1 || (i == 2 && il == 0) ? s->a : i == 2 ? s->v : s->g;
        char name[32];
        if (kind[i] == 'v' && il == 0 && s->no_v0) continue;
        snprintf(name, sizeof name, "time_mix_%c0.weight", kind[i]);
        if (kind[i] != 'g') rw_vec(m, il, name, s->E);
        snprintf(name, sizeof name, "time_mix_%c1.weight", kind[i]);
        rw_mat(m, il, name, s->E, rank);
        snprintf(name, sizeof name, "time_mix_%c2.weight", kind[i]);
        rw_mat(m, il, name, rank, s->E);
    }
    rw_in_layer(m, il, "time_mix_lerp_fused.weight", 4, s->E, 1, 1, 6);
    rw_vec(m, il, "time_mix_k_k.weight", s->E);
    rw_vec(m, il, "time_mix_k_a.weight", s->E);
    rw_vec(m, il, "time_mix_r_k.weight", s->E);
}
static inline void rw_time_mix6(tiny *m, const rw_shape *s, int il)
{
    static const char lerp[5] = { 'w', 'k', 'v', 'r', 'g' };
    rw_mat(m, il, "time_mix_w1.weight", s->E, 5 * s->X);
    rw_in_layer(m, il, "time_mix_w2.weight", 3, s->X, s->E, 5, 1);
    rw_vec(m, il, "time_mix_lerp_x.weight", s->E);
    for (int i = 0; i < 5 && s->separate; i++) {
        char name[40];
        snprintf(name, sizeof name, "time_mix_lerp_%c.weight", lerp[i]);
        rw_in_layer(m, il, name, 3, s->E, 1, 1, 1);
    }
    if (!s->separate) rw_in_layer(m, il, "time_mix_lerp_fused.weight", 4, s->E, 1, 1, 5);
    rw_mat(m, il, "time_mix_first.weight", s->N, s->E / s->N);
    rw_vec(m, il, "time_mix_decay.weight", s->E);
    rw_mat(m, il, "time_mix_decay_w1.weight", s->E, s->D);
    rw_mat(m, il, "time_mix_decay_w2.weight", s->D, s->E);
    rw_mat(m, il, "time_mix_gate.weight", s->E, s->E);
    rw_vec(m, il, "channel_mix_lerp_r.weight", s->E);
    rw_mat(m, il, "channel_mix_receptance.weight", s->E, s->E);
}

static inline tiny *rw_new(const rw_shape *s)
{
    tiny *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->s.arch = s->arch;
    tm_put_str(m, "general.architecture", s->arch);
    tm_put_u32(m, tm_key(m, "context_length"), 1048576);
    tm_put_u32(m, tm_key(m, "embedding_length"), (uint32_t)s->E);
    tm_put_u32(m, tm_key(m, "block_count"), (uint32_t)s->L);
    tm_put_u32(m, tm_key(m, "feed_forward_length"), (uint32_t)s->F);
    tm_put_u32(m, tm_key(m, "attention.head_count"), 0);
    tm_put_u32(m, tm_key(m, "wkv.head_size"), (uint32_t)s->N);
    tm_put_f32(m, tm_key(m, "attention.layer_norm_epsilon"), (float)rw_eps(s));
    if (rw_is7(s)) {
        tm_put_u32(m, tm_key(m, "attention.decay_lora_rank"), (uint32_t)s->w);
        tm_put_u32(m, tm_key(m, "attention.iclr_lora_rank"), (uint32_t)s->a);
        tm_put_u32(m, tm_key(m, "attention.value_residual_mix_lora_rank"), (uint32_t)s->v);
        tm_put_u32(m, tm_key(m, "attention.gate_lora_rank"), (uint32_t)s->g);
    } else {
        tm_put_u32(m, tm_key(m, "time_mix_extra_dim"), (uint32_t)s->X);
        tm_put_u32(m, tm_key(m, "time_decay_extra_dim"), (uint32_t)s->D);
        if (s->rescale) tm_put_u32(m, tm_key(m, "rescale_every_n_layers"), (uint32_t)s->rescale);
    }
    rw_add(m, "token_embd.weight", 2, s->E, s->V, 1, 1);
    rw_add(m, "token_embd_norm.weight", 1, s->E, 1, 1, 1);
    rw_add(m, "token_embd_norm.bias", 1, s->E, 1, 1, 1);
    for (int il = 0; il < s->L; il++) {
        rw_norm(m, il, "attn_norm", s->E);
        rw_norm(m, il, "attn_norm_2", s->E);
        if (rw_is7(s)) rw_time_mix7(m, s, il);
        else rw_time_mix6(m, s, il);
        rw_mat(m, il, "time_mix_receptance.weight", s->E, s->E);
        rw_mat(m, il, "time_mix_key.weight", s->E, s->E);
        rw_mat(m, il, "time_mix_value.weight", s->E, s->E);
        rw_mat(m, il, "time_mix_output.weight", s->E, s->E);
        rw_norm(m, il, "time_mix_ln", s->E);
        rw_vec(m, il, "channel_mix_lerp_k.weight", s->E);
        rw_mat(m, il, "channel_mix_key.weight", s->E, s->F);
        rw_mat(m, il, "channel_mix_value.weight", s->F, s->E);
    }
    rw_add(m, "output_norm.weight", 1, s->E, 1, 1, 1);
    rw_add(m, "output_norm.bias", 1, s->E, 1, 1, 1);
    rw_add(m, "output.weight", 2, s->E, s->V, 1, 1);
    return m;
}

#endif
