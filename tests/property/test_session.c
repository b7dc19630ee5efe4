/* One answer, through the public API: logits do not depend on threads, chunk, company
 * in the batch, the way a sequence came about (run, copied, truncated and run again,
 * saved and restored), on every CPU level. Small random files of three families. */
#include "hone.h"
#include "../unit/slowed.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { THOROUGH = !SLOWED };

enum { N_TOK = 41, N_VOCAB = 300, N_CTX = 96 };

static const struct {
    const char *config, *type, *path;
} files[] = {
    { "tests/cross/llama.json", "Q4_K_M", "build/test-session-llama.gguf" },
    { "tests/cross/qwen2.json", "Q8_0", "build/test-session-qwen2.gguf" },
    { "tests/cross/qwen3.json", "F16", "build/test-session-qwen3.gguf" },
};
enum { N_FILES = sizeof files / sizeof *files };

static int32_t token(int seq, int pos) { return (int32_t)((unsigned)(seq * 7919 + pos * 104729 + 13) % N_VOCAB); }

typedef struct rig {
    hone_context *ctx;
    hone_model *m;
    hone_session *s;
} rig;

static void rig_up(rig *r, int file, const char *cpu, int n_threads, int n_chunk, hone_kv_cache_type cache)
{
    hone_error err = { 0 };
    hone_session_params sp = { .n_ctx = N_CTX, .n_seq = 3, .n_chunk = n_chunk, .cache = cache };
    if (hone_context_new(&r->ctx, &(hone_context_params){ .n_threads = n_threads, .cpu = cpu }, &err) ||
        hone_model_open(&r->m, files[file].path, NULL, &err) || hone_session_new(&r->s, r->ctx, r->m, &sp, &err))
        fail_msg("%s: %s", files[file].path, err.message);
}
static void rig_down(rig *r)
{
    hone_session_free(r->s);
    hone_model_close(r->m);
    hone_context_free(r->ctx);
}

/* Runs tokens [from, to) of sequence `text` as sequence `seq`; all their logits. */
static void feed(rig *r, int seq, int text, int from, int to, float *logits)
{
    hone_token batch[N_TOK];
    hone_error err = { 0 };
    for (int i = from; i < to; i++) batch[i - from] = (hone_token){ token(text, i), i, seq, true };
    if (hone_decode(r->s, batch, to - from, logits, &err)) fail_msg("%s", err.message);
}

static float want[N_FILES][3][N_TOK * N_VOCAB]; /* scalar, one thread, one token at a time */
static float got[N_TOK * N_VOCAB];

static int make(void **state)
{
    for (int f = 0; f < N_FILES; f++) {
        hone_error err = { 0 };
        hone_synth_params p = { .config_path = files[f].config, .type = files[f].type, .seed = 11, .n_threads = 2 };
        if (hone_synth(&p, files[f].path, NULL, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return -1;
        }
        rig r = { 0 };
        rig_up(&r, f, "scalar", 1, 1, HONE_CACHE_F16);
        for (int seq = 0; seq < 3; seq++)
            for (int i = 0; i < N_TOK; i++) feed(&r, seq, seq, i, i + 1, want[f][seq] + (size_t)i * N_VOCAB);
        rig_down(&r);
    }
    return 0;
}
static int discard(void **state)
{
    for (int f = 0; f < N_FILES; f++) unlink(files[f].path);
    return 0;
}

static void same(const float *a, const float *b, int n_row, const char *what, int file)
{
    for (int i = 0; i < n_row; i++)
        if (memcmp(a + (size_t)i * N_VOCAB, b + (size_t)i * N_VOCAB, N_VOCAB * sizeof *a))
            fail_msg("%s: %s: logits of row %d differ", files[file].path, what, i);
}

static bool level_missing(const char *cpu)
{
    hone_context *ctx;
    hone_error err;
    hone_status st = hone_context_new(&ctx, &(hone_context_params){ .n_threads = 1, .cpu = cpu }, &err);
    hone_context_free(ctx);
    return st == HONE_E_UNSUPPORTED;
}

static void the_oracle_says_something(void **state)
{
    for (int f = 0; f < N_FILES; f++) {
        float lo = want[f][0][0], hi = lo;
        for (size_t i = 0; i < N_TOK * N_VOCAB; i++) {
            assert_true(want[f][0][i] - want[f][0][i] == 0); /* finite */
            if (want[f][0][i] < lo) lo = want[f][0][i];
            if (want[f][0][i] > hi) hi = want[f][0][i];
        }
        assert_true(hi - lo > 0.1f);
        assert_true(memcmp(want[f][0], want[f][1], sizeof want[f][0]) != 0);
    }
}

static void level_threads_and_chunk_do_not_matter(void **state)
{
#if defined(__aarch64__)
    const char *const cpus[] = { "scalar", "neon", "neon_dotprod", "neon_i8mm" };
#else
    const char *const cpus[] = { "scalar", "avx2", "avx_vnni", "avx512" };
#endif
    const int threads[] = { 1, 2, 3, 8 }, chunks[] = { 1, 7, 64, 512 };
    for (int c = 0; c < (int)(sizeof cpus / sizeof *cpus); c++) {
        if (level_missing(cpus[c])) continue;
        for (int f = 0; f < N_FILES; f++)
            for (int k = 0; k < 4; k++) {               /* each number of threads, each chunk, on each level */
                if (!THOROUGH && (k + f) % 2) continue; /* under sanitizers half of them with each file */
                rig r = { 0 };
                char what[64];
                snprintf(what, sizeof what, "%s, %d threads, chunk %d", cpus[c], threads[(k + c) % 4], chunks[k]);
                rig_up(&r, f, cpus[c], threads[(k + c) % 4], chunks[k], HONE_CACHE_F16);
                feed(&r, 0, 0, 0, N_TOK, got);
                same(got, want[f][0], N_TOK, what, f);
                rig_down(&r);
            }
    }
}

/* Three sequences in one batch, taking turns unevenly. */
static void company_does_not_matter(void **state)
{
    static float all[3 * N_TOK * N_VOCAB];
    for (int f = 0; f < N_FILES; f++) {
        hone_token batch[3 * N_TOK];
        int at[3] = { 0 }, n = 0;
        while (n < 3 * N_TOK)
            for (int seq = 0; seq < 3; seq++)
                for (int k = 0; k <= seq && at[seq] < N_TOK; k++, n++)
                    batch[n] = (hone_token){ token(seq, at[seq]), at[seq], seq, true }, at[seq]++;
        rig r = { 0 };
        hone_error err = { 0 };
        rig_up(&r, f, NULL, 3, 16, HONE_CACHE_F16);
        if (hone_decode(r.s, batch, n, all, &err)) fail_msg("%s", err.message);
        for (int i = 0; i < n; i++)
            same(all + (size_t)i * N_VOCAB, want[f][batch[i].seq] + (size_t)batch[i].pos * N_VOCAB, 1, "three together",
                 f);
        rig_down(&r);
    }
}

static void fork_and_truncate_are_exact(void **state)
{
    for (int f = 0; f < N_FILES; f++) {
        rig r = { 0 };
        hone_error err = { 0 };
        rig_up(&r, f, NULL, 2, 512, HONE_CACHE_F16);
        feed(&r, 0, 0, 0, 20, got);
        assert_int_equal(hone_seq_copy(r.s, 2, 0, &err), HONE_OK);
        assert_int_equal(hone_seq_length(r.s, 2), 20);
        feed(&r, 0, 1, 20, 30, got);    /* the original goes elsewhere … */
        feed(&r, 2, 0, 20, N_TOK, got); /* … the copy goes on */
        same(got, want[f][0] + 20 * N_VOCAB, N_TOK - 20, "a copy", f);
        assert_int_equal(hone_seq_truncate(r.s, 0, 20, &err), HONE_OK);
        assert_int_equal(hone_seq_length(r.s, 0), 20);
        feed(&r, 0, 0, 20, N_TOK, got); /* the detour is forgotten */
        same(got, want[f][0] + 20 * N_VOCAB, N_TOK - 20, "truncated", f);
        assert_int_equal(hone_seq_truncate(r.s, 0, 0, &err), HONE_OK);
        feed(&r, 0, 2, 0, N_TOK, got);
        same(got, want[f][2], N_TOK, "emptied and used again", f);
        rig_down(&r);
    }
}

static void save_and_restore_are_exact(void **state)
{
    static float whole[N_TOK * N_VOCAB];
    const char *path = "build/test-session.state";
    for (int f = 0; f < N_FILES; f++)
        for (int cache = HONE_CACHE_F16; cache <= HONE_CACHE_Q8_0; cache++) {
            rig r = { 0 }, s = { 0 };
            hone_error err = { 0 };
            rig_up(&r, f, NULL, 2, 64, (hone_kv_cache_type)cache);
            feed(&r, 1, 1, 0, N_TOK, whole);
            if (cache == HONE_CACHE_F16) same(whole, want[f][1], N_TOK, "another sequence number", f);
            assert_int_equal(hone_seq_truncate(r.s, 1, 25, &err), HONE_OK);
            if (hone_session_save(r.s, path, &err)) fail_msg("%s", err.message);
            rig_down(&r);
            rig_up(&s, f, "scalar", 1, 7, (hone_kv_cache_type)cache);
            if (hone_session_load(s.s, path, &err)) fail_msg("%s", err.message);
            assert_int_equal(hone_seq_length(s.s, 0), 0);
            assert_int_equal(hone_seq_length(s.s, 1), 25);
            feed(&s, 1, 1, 25, N_TOK, got);
            same(got, whole + 25 * N_VOCAB, N_TOK - 25, "restored", f);
            rig_down(&s);
            for (int other = HONE_CACHE_F16; other <= HONE_CACHE_Q8_0; other++) {
                if (other == cache) continue;
                rig_up(&s, f, NULL, 1, 7, (hone_kv_cache_type)other);
                assert_int_equal(hone_session_load(s.s, path, &err), HONE_E_ARG); /* another kind of cache */
                static const char *const names[] = { "f16", "f32", "q8_0" };
                assert_non_null(strstr(err.message, names[cache]));
                assert_non_null(strstr(err.message, names[other]));
                rig_down(&s);
            }
        }
    unlink(path);
}

/* Beyond several splits of 512 positions: decode is divided over the keys, by threads. */
static void depth_does_not_matter(void **state)
{
    enum { DEEP = THOROUGH ? 1301 : 1061, LAST = 7 };
    static float whole[LAST * N_VOCAB], other[LAST * N_VOCAB];
    static hone_token batch[DEEP];
    const char *path = "build/test-session.state";
    for (int cache = HONE_CACHE_F16; cache <= HONE_CACHE_Q8_0; cache++)
        for (int way = 0; way < 4; way++) {
            const struct {
                const char *cpu;
                int n_threads, n_chunk, step;
            } ways[] = { { THOROUGH ? "scalar" : NULL, 1, 64, LAST },
                         { NULL, 3, 512, 1 },
                         { "avx2", 2, 100, 2 },
                         { NULL, 8, 7, 3 } };
            if (ways[way].cpu && level_missing(ways[way].cpu)) continue;
            /* under sanitizers each kind of cache with one of the ways: they look for bad accesses and races */
            if (!THOROUGH && way && way != 1 + cache) continue;
            hone_error err = { 0 };
            rig r = { 0 };
            hone_session_params sp = {
                .n_ctx = DEEP, .n_seq = 2, .n_chunk = ways[way].n_chunk, .cache = (hone_kv_cache_type)cache
            };
            if (hone_context_new(
                    &r.ctx, &(hone_context_params){ .n_threads = ways[way].n_threads, .cpu = ways[way].cpu }, &err) ||
                hone_model_open(&r.m, files[0].path, NULL, &err) || hone_session_new(&r.s, r.ctx, r.m, &sp, &err))
                fail_msg("%s", err.message);
            for (int i = 0; i < DEEP - LAST; i++) batch[i] = (hone_token){ token(0, i), i, 0, false };
            if (hone_decode(r.s, batch, DEEP - LAST, NULL, &err)) fail_msg("%s", err.message);
            int seq = way & 1;
            if (way == 1 && hone_seq_copy(r.s, 1, 0, &err)) fail_msg("%s", err.message);
            if (way == 2 && (hone_session_save(r.s, path, &err) || hone_session_load(r.s, path, &err)))
                fail_msg("%s", err.message);
            if (way == 3 && (hone_seq_copy(r.s, 1, 0, &err) || hone_seq_truncate(r.s, 0, 600, &err)))
                fail_msg("%s", err.message);
            for (int i = DEEP - LAST; i < DEEP; i += ways[way].step) {
                int n = DEEP - i < ways[way].step ? DEEP - i : ways[way].step;
                for (int k = 0; k < n; k++) batch[k] = (hone_token){ token(0, i + k), i + k, seq, true };
                if (hone_decode(r.s, batch, n, (way ? other : whole) + (i - (DEEP - LAST)) * N_VOCAB, &err))
                    fail_msg("%s", err.message);
            }
            if (way) same(other, whole, LAST, "deep", 0);
            rig_down(&r);
        }
    unlink(path);
}

/* Half of f16's memory, or nearly. */
static void q8_0_is_small(void **state)
{
    hone_session_memory mem[3];
    for (int cache = HONE_CACHE_F16; cache <= HONE_CACHE_Q8_0; cache++) {
        rig r = { 0 };
        rig_up(&r, 0, NULL, 1, 8, (hone_kv_cache_type)cache);
        hone_session_get_memory(r.s, &mem[cache]);
        rig_down(&r);
    }
    assert_int_equal(mem[HONE_CACHE_F32].cache_bytes, 2 * mem[HONE_CACHE_F16].cache_bytes);
    assert_true(mem[HONE_CACHE_Q8_0].cache_bytes * 100 <= mem[HONE_CACHE_F16].cache_bytes * 57);
}

static void bad_batches_change_nothing(void **state)
{
    rig r = { 0 };
    rig_up(&r, 0, NULL, 2, 8, HONE_CACHE_F16);
    feed(&r, 0, 0, 0, 10, got);
    const struct {
        hone_token t[2];
        int n;
        hone_status st;
    } bad[] = {
        { { { -1, 10, 0, true } }, 1, HONE_E_ARG },
        { { { N_VOCAB, 10, 0, true } }, 1, HONE_E_ARG },
        { { { 1, 11, 0, true } }, 1, HONE_E_ARG }, /* a gap */
        { { { 1, 9, 0, true } }, 1, HONE_E_ARG },  /* again */
        { { { 1, -1, 0, true } }, 1, HONE_E_ARG },
        { { { 1, 0, 3, true } }, 1, HONE_E_ARG }, /* no such sequence */
        { { { 1, 0, -1, true } }, 1, HONE_E_ARG },
        { { { 1, 10, 0, true }, { N_VOCAB, 11, 0, true } }, 2, HONE_E_ARG }, /* the second is bad: nor the first */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hone_error err = { 0 };
        assert_int_equal(hone_decode(r.s, bad[i].t, bad[i].n, got, &err), bad[i].st);
        assert_true(err.message[0] != 0);
        assert_int_equal(hone_seq_length(r.s, 0), 10);
    }
    hone_token many[N_CTX];
    for (int i = 0; i < N_CTX; i++) many[i] = (hone_token){ 1, 10 + i, 0, false };
    hone_error err = { 0 };
    assert_int_equal(hone_decode(r.s, many, N_CTX, NULL, &err), HONE_E_CTX);
    assert_non_null(strstr(err.message, "96")); /* the capacity is named */
    assert_int_equal(hone_seq_length(r.s, 0), 10);
    feed(&r, 0, 0, 10, N_TOK, got);
    same(got, want[0][0] + 10 * N_VOCAB, N_TOK - 10, "after bad batches", 0);
    rig_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oracle_says_something),
        cmocka_unit_test(level_threads_and_chunk_do_not_matter),
        cmocka_unit_test(company_does_not_matter),
        cmocka_unit_test(fork_and_truncate_are_exact),
        cmocka_unit_test(save_and_restore_are_exact),
        cmocka_unit_test(depth_does_not_matter),
        cmocka_unit_test(q8_0_is_small),
        cmocka_unit_test(bad_batches_change_nothing),
    };
    return cmocka_run_group_tests(tests, make, discard);
}
