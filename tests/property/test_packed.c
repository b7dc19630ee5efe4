/* One answer, packed or plain: the logits of a model with a packed file are those of the
 * model alone, bit for bit, on every level, with any threads and chunks; with tied embeddings,
 * fused q, k and v, and rows that fill no group. And the model's own weights stay unread. */
#define _GNU_SOURCE
#include "../unit/tiny_model.h"

#include "model/model.h"
#include "../unit/slowed.h"

#include <sys/mman.h>

enum { N_TOK = 70, V = 83 };
static int32_t ids[N_TOK];

typedef struct variant {
    const char *what;
    hn_type type;
    bool tied, fused, bias;
    int n_plain_views; /* matrices of a layer that stay plain though their tensor is packed */
} variant;

static hone_model *open_with(const char *path, const char *packed)
{
    hone_error err = { 0 };
    hone_model *m;
    if (hone_model_open(&m, path, &(hone_model_params){ .packed = packed }, &err)) fail_msg("%s", err.message);
    return m;
}

static void logits(const hone_model *m, const char *cpu, int threads, int chunk, float *y)
{
    hone_context *c = tm_context(cpu, threads);
    hone_session *s = tm_session(c, m, 96, 1, chunk, HONE_CACHE_F16);
    tm_run(s, 0, ids, N_TOK, y);
    hone_session_free(s);
    hone_context_free(c);
}

/* Heads of 24 make q and k end within a group; 72 is no multiple of 32, so blocks need other shapes. */
static tiny *make(const variant *v)
{
    bool blocks = hn_type_get((uint32_t)v->type)->block_elems > 1,
         super = hn_type_get((uint32_t)v->type)->block_elems == 256;
    tm_shape s = !blocks
                     ? (tm_shape)TM("llama", 40, 3, 1, 24, 56, V, 2, 1e4, 1e-5, .tied = v->tied, .qkv_bias = v->bias)
                 : super ? (tm_shape)TM("qwen2", 256, 8, 2, 32, 256, V, 2, 1e6, 1e-6, .tied = v->tied, .qkv_bias = true)
                         : (tm_shape)TM("qwen2", 64, 4, 1, 8, 96, V, 2, 1e6, 1e-6, .tied = v->tied, .qkv_bias = true);
    tiny *m = tm_new(s);
    for (int i = 0; i < m->n_t; i++)
        if (m->t[i].n_dim == 2) tm_encode(&m->t[i], v->type);
    if (v->fused) tm_fuse_qkv(m);
    return m;
}

static const variant variants[] = {
    { "F32, fused", HN_F32, false, true, true, 1 },
    { "F16, tied, fused", HN_F16, true, true, false, 1 },
    { "BF16", HN_BF16, false, false, true, 0 },
    { "Q8_0, tied", HN_Q8_0, true, false, true, 0 },
    { "Q4_0, fused", HN_Q4_0, false, true, true, 1 },
    { "Q5_0, tied, fused", HN_Q5_0, true, true, true, 1 },
    { "IQ4_NL", HN_IQ4_NL, false, false, true, 0 },
    { "Q4_K, tied", HN_Q4_K, true, false, true, 0 },
    { "Q5_K, fused", HN_Q5_K, false, true, true, 0 },
    { "Q6_K", HN_Q6_K, false, false, true, 0 },
    { "IQ4_XS, tied, fused", HN_IQ4_XS, true, true, true, 0 },
};

static void same_bits(void **state)
{
    float *want = malloc(N_TOK * V * sizeof *want), *got = malloc(N_TOK * V * sizeof *got);
    assert_true(want && got);
    for (int i = 0; i < N_TOK; i++) ids[i] = (int32_t)(hn_rand64(9, (uint64_t)i) % V);
    for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
        const variant *v = &variants[k];
        const char *path = tm_path("m.gguf");
        hone_error err;
        hone_packed_info info;
        tiny *t = make(v);
        tm_save(t, path);
        tm_free(t);
        hone_model *plain = open_with(path, "off");
        if (hone_pack(path, &(hone_pack_params){ .force = true }, &info, NULL, &err))
            fail_msg("%s: %s", v->what, err.message);
        hone_model *packed = open_with(path, NULL);
        assert_non_null(packed->packed);
        int n_plain = 0;
        for (int il = 0; il < 2; il++) {
            const hn_layer *l = &packed->layers[il];
            const hn_weight *w[] = { &l->attn_q,   &l->attn_k, &l->attn_v,  &l->attn_output,
                                     &l->ffn_gate, &l->ffn_up, &l->ffn_down };
            for (int i = 0; i < 7; i++) n_plain += !w[i]->packed;
        }
        assert_true(packed->token_embd.packed && packed->output.packed);
        assert_int_equal(n_plain, 2 * v->n_plain_views);
        logits(plain, "scalar", 1, 64, want);
        for (const char *const *cpu = tm_levels(); *cpu; cpu++)
            for (int threads = 1; threads <= 3; threads++)
                for (int chunk = 1; chunk <= 64; chunk = chunk == 1 ? 7 : chunk == 7 ? 64 : 65) {
                    /* scalar is slow: the corners (tests/e2e/pack.sh goes all the way) */
                    if ((SLOWED || !strcmp(*cpu, "scalar")) && !(threads == 1 && chunk == 7) &&
                        !(threads == 2 && chunk == 1) && !(threads == 3 && chunk == 64))
                        continue;
                    logits(packed, *cpu, threads, chunk, got);
                    if (memcmp(want, got, N_TOK * V * sizeof *want))
                        fail_msg("%s: %s, %d threads, chunk %d: packed differs from plain", v->what, *cpu, threads,
                                 chunk);
                }
        hone_model_close(packed);
        hone_model_close(plain);
    }
    free(want);
    free(got);
}

/* All whole pages of the model's tensor data become unreadable. */
static size_t forbid(const hone_model *m)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t lo = UINTPTR_MAX, hi = 0;
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        uintptr_t a = (uintptr_t)hn_gguf_tensor_at(m->file, i)->data, b = a + hn_gguf_tensor_at(m->file, i)->n_bytes;
        lo = a < lo ? a : lo;
        hi = b > hi ? b : hi;
    }
    lo = (lo + page - 1) / page * page; /* the first page may hold the end of the directory */
    hi = hi / page * page;
    assert_true(hi > lo);
    assert_int_equal(mprotect((void *)lo, hi - lo, PROT_NONE), 0);
    return (hi - lo) / page;
}

/* A read of them would end this program. */
static void original_stays_unread(void **state)
{
    static float want[N_TOK * V], got[N_TOK * V];
    static const variant v = { "", HN_Q4_K, false, false, true, 0 };
    const char *path = tm_path("unread.gguf");
    hone_error err;
    hone_packed_info info;
    for (int i = 0; i < N_TOK; i++) ids[i] = i; /* many rows of the embedding table */
    tiny *t = make(&v);
    tm_retype(t, "blk.1.ffn_norm.weight", HN_F16);
    tm_save(t, path);
    tm_free(t);
    hone_model *plain = open_with(path, "off");
    logits(plain, NULL, 2, 16, want);
    hone_model_close(plain);
    if (hone_pack(path, NULL, &info, NULL, &err)) fail_msg("%s", err.message);
    hone_model *m = open_with(path, NULL);
    size_t n = forbid(m);
    print_message("  %zu pages of the model's weights forbidden\n", n);
    assert_true(n > 100);
    logits(m, NULL, 2, 16, got);
    assert_memory_equal(got, want, sizeof want);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bits), cmocka_unit_test(original_stays_unread) };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
