/* Mixtures: the published sizes of Llama-3-8B files, the tensor counts of a real
 * Qwen2.5-0.5B file, and single rules. */
#include "quant/quant.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct shape { /* of a llama or qwen2 model */
    const char *arch;
    int n_layer, n_head, n_head_kv, n_expert;
    uint64_t n_embd, n_ff, n_kv, n_vocab;
    bool tied, bias;
} shape;

typedef struct tally {
    double bytes;
    double elems;
    int count[HN_TYPE_COUNT];
    int n_fallback;
} tally;

static void add(tally *t, const char *mix, const hn_mix_model *m, hn_mix_state *st, const char *name, uint64_t a,
                uint64_t b)
{
    uint64_t ne[2] = { a, b }, n_bytes;
    int n_dim = b ? 2 : 1;
    hn_type ty = hn_mix_type(mix, m, st, name, ne, n_dim);
    assert_true(hn_tensor_nbytes(hn_type_get(ty), ne, n_dim, &n_bytes)); /* the shape always fits the type */
    if (n_dim == 2) {
        t->bytes += (double)n_bytes;
        t->elems += (double)a * (double)b;
    } else {
        assert_int_equal(ty, HN_F32);
    }
    t->count[ty]++;
}

static tally lay_out(const shape *s, const char *mix)
{
    hn_mix_model m = { .arch = s->arch,
                       .n_layer = s->n_layer,
                       .n_head = s->n_head,
                       .n_head_kv = s->n_head_kv,
                       .n_expert = s->n_expert,
                       .tied = s->tied };
    hn_mix_state st = { 0 };
    tally t = { 0 };
    char name[64];
#define ADD(suffix, a, b) (snprintf(name, sizeof name, "blk.%d." suffix, il), add(&t, mix, &m, &st, name, (a), (b)))
    if (!s->tied) add(&t, mix, &m, &st, "output.weight", s->n_embd, s->n_vocab);
    add(&t, mix, &m, &st, "output_norm.weight", s->n_embd, 0);
    add(&t, mix, &m, &st, "token_embd.weight", s->n_embd, s->n_vocab);
    for (int il = 0; il < s->n_layer; il++) {
        ADD("attn_k.weight", s->n_embd, s->n_kv);
        ADD("attn_norm.weight", s->n_embd, 0);
        ADD("attn_output.weight", s->n_embd, s->n_embd);
        ADD("attn_q.weight", s->n_embd, s->n_embd);
        ADD("attn_v.weight", s->n_embd, s->n_kv);
        if (s->bias) {
            ADD("attn_q.bias", s->n_embd, 0);
            ADD("attn_k.bias", s->n_kv, 0);
            ADD("attn_v.bias", s->n_kv, 0);
        }
        ADD("ffn_down.weight", s->n_ff, s->n_embd);
        ADD("ffn_gate.weight", s->n_embd, s->n_ff);
        ADD("ffn_norm.weight", s->n_embd, 0);
        ADD("ffn_up.weight", s->n_embd, s->n_ff);
    }
    t.n_fallback = st.n_fallback;
    return t;
}

static const shape llama3_8b = { "llama", 32, 32, 8, 0, 4096, 14336, 1024, 128256, false, false };

static void llama3_sizes(void **state)
{
    static const struct {
        const char *mix;
        double gib, bpw;
    } want[] = {
        { "Q2_K", 2.95, 3.16 },   { "Q3_K_S", 3.41, 3.64 }, { "Q3_K_M", 3.74, 4.00 }, { "Q3_K_L", 4.02, 4.30 },
        { "Q4_0", 4.33, 4.64 },   { "Q4_K_S", 4.36, 4.67 }, { "Q4_K_M", 4.58, 4.89 }, { "Q5_K_S", 5.21, 5.57 },
        { "Q5_K_M", 5.33, 5.70 }, { "Q6_K", 6.14, 6.56 },   { "Q8_0", 7.95, 8.50 },   { "IQ4_XS", 4.17, 4.46 },
        { "IQ4_NL", 4.38, 4.68 }, { "IQ3_M", 3.52, 0 },     { "IQ3_S", 3.42, 0 },     { "IQ3_XS", 3.27, 0 },
        { "IQ2_M", 2.74, 0 },     { "IQ2_S", 2.56, 0 },     { "IQ2_XS", 2.42, 0 },    { "IQ2_XXS", 2.23, 0 },
        { "IQ1_M", 2.01, 0 },     { "IQ1_S", 1.87, 0 },
    };
    int bad = 0;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        tally t = lay_out(&llama3_8b, want[i].mix);
        double gib = t.bytes / 0x1p30, bpw = t.bytes * 8 / t.elems;
        bool ok = fabs(gib - want[i].gib) <= 0.01 && (want[i].bpw == 0 || fabs(bpw - want[i].bpw) <= 0.01);
        if (!ok)
            printf("%s: %.3f GiB, %.3f bpw; expected %.2f, %.2f\n", want[i].mix, gib, bpw, want[i].gib, want[i].bpw);
        bad += !ok;
        assert_int_equal(t.n_fallback, 0);
    }
    assert_int_equal(bad, 0);
}

/* ollama/ollama#9031 lists the tensors of this file */
static void qwen_counts(void **state)
{
    static const shape q = { "qwen2", 24, 14, 2, 0, 896, 4864, 128, 151936, true, true };
    tally t = lay_out(&q, "Q4_K_M");
    assert_int_equal(t.count[HN_Q5_0], 132);
    assert_int_equal(t.count[HN_Q8_0], 13);
    assert_int_equal(t.count[HN_Q4_K], 12);
    assert_int_equal(t.count[HN_Q6_K], 12);
    assert_int_equal(t.count[HN_F32], 121);
    assert_int_equal(t.n_fallback, 144); /* 120 + 12 to Q5_0, 12 attn_v to Q8_0; the embedding is Q8_0 by rule */
}

static void names(void **state)
{
    hn_type base;
    uint32_t ft;
    assert_true(hn_mix_find("q4_k_m", &base, &ft) && base == HN_Q4_K && ft == 15);
    assert_true(hn_mix_find("Q4_K", &base, &ft) && base == HN_Q4_K && ft == 15);
    assert_true(hn_mix_find("f32", &base, &ft) && base == HN_F32 && ft == 0);
    assert_true(hn_mix_find("F16", &base, &ft) && base == HN_F16 && ft == 1);
    assert_true(hn_mix_find("BF16", &base, &ft) && base == HN_BF16 && ft == 32);
    assert_true(hn_mix_find("Q8_0", &base, &ft) && base == HN_Q8_0 && ft == 7);
    assert_true(hn_mix_find("Q5_1", &base, &ft) && base == HN_Q5_1 && ft == 9);
    assert_true(hn_mix_find("Q2_K_S", &base, &ft) && base == HN_Q2_K && ft == 21);
    assert_true(hn_mix_find("Q3_K_L", &base, &ft) && base == HN_Q3_K && ft == 13);
    assert_true(hn_mix_find("IQ2_S", &base, &ft) && base == HN_IQ2_XS && ft == 28);
    assert_true(hn_mix_find("IQ4_XS", NULL, NULL));
    assert_false(hn_mix_find("Q4_K_L", &base, &ft));
    assert_false(hn_mix_find("Q8_K", &base, &ft));
    assert_false(hn_mix_find("", &base, &ft));
    assert_false(hn_mix_find(NULL, &base, &ft));
}

static hn_type one(const char *mix, const char *name, uint64_t a, uint64_t b, uint64_t c)
{
    hn_mix_model m = { .arch = "llama", .n_layer = 32, .n_head = 32, .n_head_kv = 8 };
    hn_mix_state st = { 0 };
    return hn_mix_type(mix, &m, &st, name, (uint64_t[]){ a, b, c }, c ? 3 : b ? 2 : 1);
}

static void never_quantized(void **state)
{
    assert_int_equal(one("Q4_K_M", "blk.0.attn_norm.weight", 4096, 0, 0), HN_F32);
    assert_int_equal(one("Q4_K_M", "blk.0.attn_norm.weight", 4096, 4096, 0), HN_F32); /* by name, though 2-D */
    assert_int_equal(one("Q4_K_M", "blk.0.ffn_gate_inp.weight", 4096, 64, 0), HN_F32);
    assert_int_equal(one("Q4_K_M", "blk.0.attn_q.bias", 4096, 2, 0), HN_F32);
    assert_int_equal(one("Q4_K_M", "rope_freqs.weight", 64, 0, 0), HN_F32);
    assert_int_equal(one("Q4_K_M", "blk.0.some.weight", 4096, 1, 0), HN_F32); /* 1-D in effect */
    assert_int_equal(one("F16", "blk.0.attn_norm.weight", 4096, 0, 0), HN_F32);
    assert_int_equal(one("Q4_K_M", "position_embd.weight", 768, 1024, 0), HN_F32);
    assert_int_equal(one("Q4_K_M", "blk.3.time_mix_w1.weight", 2048, 64, 0), HN_F32);
    assert_int_equal(one("Q4_K_M", "blk.3.time_mix_key.weight", 2048, 2048, 0), HN_Q4_K);
    assert_int_equal(one("Q4_K_M", "v.sam.neck.0.weight", 2048, 64, 0), HN_F32);
    assert_int_equal(one("Q4_K_M", "mm.a.code_embd.weight", 2048, 64, 0), HN_F32);
    assert_int_equal(one("nonsense", "blk.3.attn_q.weight", 2048, 2048, 0), HN_F32);
}

static void single_rules(void **state)
{
    assert_int_equal(one("Q4_K_M", "output.weight", 4096, 1000, 0), HN_Q6_K);
    assert_int_equal(one("Q8_0", "output.weight", 4096, 1000, 0), HN_Q8_0);
    assert_int_equal(one("Q4_0", "output.weight", 4096, 1000, 0), HN_Q6_K);
    assert_int_equal(one("Q4_0", "output.weight", 96, 1000, 0), HN_Q8_0); /* Q6_K does not fit 96: falls back */
    assert_int_equal(one("Q4_K_M", "output.weight", 96, 1000, 0), HN_Q8_0);
    assert_int_equal(one("Q4_K_M", "token_embd.weight", 4096, 1000, 0), HN_Q4_K);
    assert_int_equal(one("Q4_K_M", "blk.0.attn_v.weight", 4096, 1024, 0), HN_Q6_K);
    assert_int_equal(one("Q4_K_M", "blk.0.attn_v_b.weight", 4096, 1024, 0), HN_Q4_K);
    assert_int_equal(one("Q4_K_M", "blk.0.ffn_down_exps.weight", 1024, 1024, 64), HN_Q6_K);
    assert_int_equal(one("F16", "blk.0.attn_v.weight", 4096, 1024, 0), HN_F16);
    assert_int_equal(one("BF16", "output.weight", 4096, 1024, 0), HN_BF16);
    assert_int_equal(one("F32", "output.weight", 4096, 1024, 0), HN_F32);
    assert_int_equal(one("MXFP4_MOE", "blk.0.ffn_up_exps.weight", 1024, 1024, 64), HN_MXFP4);
    assert_int_equal(one("MXFP4_MOE", "blk.0.attn_q.weight", 1024, 1024, 0), HN_Q8_0);
    assert_int_equal(one("MXFP4_MOE", "token_embd.weight", 1024, 1024, 0), HN_Q8_0);
    assert_int_equal(one("IQ2_M", "per_layer_token_embd.weight", 1024, 1024, 0), HN_IQ3_S);
    /* shape fallback */
    static const struct {
        const char *mix;
        hn_type at32, at8;
    } fb[] = {
        { "Q2_K_S", HN_Q4_0, HN_F16 },  { "Q3_K_S", HN_Q4_0, HN_F16 }, { "Q4_K_S", HN_Q5_0, HN_F16 },
        { "Q5_K_S", HN_Q5_1, HN_F16 },  { "Q6_K", HN_Q8_0, HN_F16 },   { "IQ4_XS", HN_IQ4_NL, HN_F16 },
        { "IQ3_S", HN_IQ4_NL, HN_F16 }, { "TQ1_0", HN_Q4_0, HN_F16 },  { "Q4_0", HN_Q4_0, HN_F16 },
        { "Q8_0", HN_Q8_0, HN_F16 },
    };
    for (size_t i = 0; i < sizeof fb / sizeof *fb; i++) {
        assert_int_equal(one(fb[i].mix, "blk.0.attn_q.weight", 96, 8, 0), fb[i].at32);
        assert_int_equal(one(fb[i].mix, "blk.0.attn_q.weight", 172, 8, 0), fb[i].at8);
    }
}

/* Layers in which Q4_K_M gives ffn_down and attn_v more bits. */
static void more_layers(void **state)
{
    static const struct {
        int n;
        const char *layers;
    } want[] = {
        { 32, " 0 1 2 3 6 9 12 15 18 21 24 27 28 29 30 31" },
        { 28, " 0 1 2 5 8 11 14 17 20 23 24 25 26 27" },
        { 24, " 0 1 2 5 8 11 14 17 20 21 22 23" },
        { 47, " 0 1 2 3 4 7 10 13 16 19 22 25 28 31 34 37 40 41 42 43 44 45 46" },
    };
    for (size_t w = 0; w < sizeof want / sizeof *want; w++)
        for (int part = 0; part < 3; part++) {
            /* part 2: a model with experts, whose first layer is missing: the number in the name counts */
            hn_mix_model m = {
                .arch = "llama", .n_layer = want[w].n, .n_head = 8, .n_head_kv = 8, .n_expert = part == 2 ? 64 : 0
            };
            hn_mix_state st = { 0 };
            char got[256] = "", name[64];
            for (int il = part == 2; il < want[w].n; il++) {
                snprintf(name, sizeof name, "blk.%d.%s.weight", il,
                         part == 0   ? "attn_v"
                         : part == 1 ? "ffn_down"
                                     : "ffn_down_exps");
                if (hn_mix_type("Q4_K_M", &m, &st, name, (uint64_t[]){ 256, 256, 64 }, part == 2 ? 3 : 2) == HN_Q6_K)
                    snprintf(got + strlen(got), sizeof got - strlen(got), " %d", il);
            }
            assert_string_equal(got, want[w].layers + (part == 2 ? 2 : 0));
        }
}

/* The types of one tensor kind over the layers of a 32-layer model, run-length coded. */
static void by_layer(void **state)
{
    static const struct {
        const char *mix, *tensor;
        int gqa;
        const char *want;
    } t[] = {
        { "Q3_K_M", "attn_v", 4, "2Q5_K 30Q4_K" },
        { "Q3_K_M", "ffn_down", 4, "2Q5_K 30Q4_K" },
        { "Q3_K_M", "attn_output", 4, "32Q4_K" },
        { "Q3_K_M", "ffn_up", 4, "32Q3_K" },
        { "Q3_K_L", "attn_v", 1, "32Q5_K" },
        { "Q3_K_L", "ffn_down", 1, "32Q5_K" },
        { "Q3_K_L", "attn_output", 1, "32Q5_K" },
        { "Q3_K_S", "attn_v", 4, "32Q3_K" },
        { "Q4_K_S", "attn_v", 4, "4Q5_K 28Q4_K" },
        { "Q4_K_S", "ffn_down", 4, "4Q5_K 28Q4_K" },
        { "Q4_K_S", "attn_output", 4, "32Q4_K" },
        { "Q5_K_S", "attn_v", 4, "32Q5_K" },
        { "Q5_K_S", "ffn_down", 4, "32Q5_K" },
        { "Q2_K", "attn_v", 4, "32Q4_K" },
        { "Q2_K", "attn_v", 2, "32Q3_K" },
        { "Q2_K", "ffn_down", 4, "32Q3_K" },
        { "Q2_K", "attn_output", 4, "32Q3_K" },
        { "Q2_K_S", "attn_v", 4, "32Q4_K" },
        { "Q2_K_S", "attn_v", 1, "32Q2_K" },
        { "Q2_K_S", "ffn_down", 4, "4Q4_K 28Q2_K" },
        { "IQ4_XS", "attn_v", 4, "32Q5_K" },
        { "IQ4_XS", "attn_v", 2, "32IQ4_XS" },
        { "IQ4_NL", "ffn_down", 4, "4Q5_K 28IQ4_NL" },
        { "IQ3_XS", "ffn_gate", 4, "4IQ3_S 24IQ3_XXS 4IQ3_S" },
        { "IQ3_XS", "attn_q", 4, "32IQ3_XXS" },
        { "IQ3_XXS", "attn_k", 4, "32IQ2_S" },
        { "IQ3_XXS", "ffn_down", 4, "4Q4_K 28Q3_K" },
        { "IQ3_M", "attn_v", 1, "32Q4_K" },
        { "IQ2_M", "ffn_down", 4, "4IQ3_S 28IQ2_S" },
        { "IQ2_M", "attn_v", 1, "32IQ3_S" },
        { "IQ1_S", "attn_output", 1, "32IQ2_XXS" },
        { "Q4_0", "attn_v", 4, "32Q4_0" },
        { "Q6_K", "attn_v", 4, "32Q6_K" },
        { "Q4_K_M", "attn_qkv", 4,
          "4Q6_K 2Q4_K 1Q6_K 2Q4_K 1Q6_K 2Q4_K 1Q6_K 2Q4_K 1Q6_K 2Q4_K 1Q6_K 2Q4_K 1Q6_K 2Q4_K 1Q6_K 2Q4_K 5Q6_K" },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        hn_mix_model m = { .arch = "llama", .n_layer = 32, .n_head = 32, .n_head_kv = 32 / t[i].gqa };
        hn_mix_state st = { 0 };
        char got[512] = "", name[64];
        int run = 0;
        hn_type last = HN_F32;
        for (int il = 0; il <= 32; il++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", il, t[i].tensor);
            hn_type ty = il < 32 ? hn_mix_type(t[i].mix, &m, &st, name, (uint64_t[]){ 4096, 4096 }, 2) : HN_F32;
            if (ty != last && run) {
                snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d%s", *got ? " " : "", run,
                         hn_type_get(last)->name);
                run = 0;
            }
            last = ty;
            run++;
        }
        if (strcmp(got, t[i].want)) fail_msg("%s %s: %s, expected %s", t[i].mix, t[i].tensor, got, t[i].want);
    }
}

static void special_models(void **state)
{
    hn_mix_state st = { 0 };
    uint64_t ne[2] = { 8192, 1024 };
    hn_mix_model m70 = { .arch = "llama", .n_layer = 80, .n_head = 64, .n_head_kv = 8 };
    st.i_v = 20; /* not one of the `more` layers: Q4_K, raised for 70B */
    assert_int_equal(hn_mix_type("Q4_K_M", &m70, &st, "blk.20.attn_v.weight", ne, 2), HN_Q5_K);
    hn_mix_model m65 = { .arch = "llama", .n_layer = 80, .n_head = 64, .n_head_kv = 64 };
    st.i_v = 20;
    assert_int_equal(hn_mix_type("Q4_K_M", &m65, &st, "blk.20.attn_v.weight", ne, 2), HN_Q4_K);
    hn_mix_model mixtral = { .arch = "llama", .n_layer = 32, .n_head = 32, .n_head_kv = 8, .n_expert = 8 };
    assert_int_equal(hn_mix_type("Q4_K_M", &mixtral, &st, "blk.5.attn_v.weight", ne, 2), HN_Q8_0);
    assert_int_equal(hn_mix_type("Q4_K_M", &mixtral, &st, "blk.5.attn_k.weight", ne, 2), HN_Q8_0);
    assert_int_equal(hn_mix_type("Q4_K_M", &mixtral, &st, "blk.5.attn_output.weight", ne, 2), HN_Q5_K);
    hn_mix_model imp = { .arch = "llama", .n_layer = 32, .n_head = 32, .n_head_kv = 8, .importance = true };
    hn_mix_state a = { 0 }, b = { 0 };
    assert_int_equal(hn_mix_type("IQ4_XS", &imp, &a, "blk.0.ffn_down.weight", ne, 2), HN_IQ4_XS);
    imp.importance = false;
    assert_int_equal(hn_mix_type("IQ4_XS", &imp, &b, "blk.0.ffn_down.weight", ne, 2), HN_Q5_K);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama3_sizes),    cmocka_unit_test(qwen_counts),    cmocka_unit_test(names),
        cmocka_unit_test(never_quantized), cmocka_unit_test(single_rules),   cmocka_unit_test(more_layers),
        cmocka_unit_test(by_layer),        cmocka_unit_test(special_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
