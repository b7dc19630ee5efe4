/* Attention alone: how fast a tile of queries (prefill) and one token (decode) go
 * through a cold cache of keys and values.
 *   bench_attn [d group n_kv [level]] */
#include "kernels/kernels.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct job {
    const hn_kernels *k;
    hn_cache_type type;
    int64_t d, group, n_kv, n_tok, n_head;
    char *kp, *vp;
    size_t plane;
    float *q, *out, *scratch;
    size_t rows_floats, scratch_floats;
} job;

static void one_head(void *arg, int64_t head, int32_t thread)
{
    job *j = arg;
    hn_attn a = { .q = j->q + (size_t)thread * j->rows_floats, .out = j->out + (size_t)thread * j->rows_floats, .q_stride = j->group * j->d, .out_stride = j->group * j->d,
                  .k = j->kp + (size_t)head * j->plane, .v = j->vp + (size_t)head * j->plane, .split_bytes = hn_cache_block_bytes(j->type, j->d) * HN_SPLIT / 16,
                  .scratch = j->scratch + (size_t)thread * j->scratch_floats,
                  .n_tok = j->n_tok, .n_q = j->group, .n_kv = j->n_kv, .d = j->d, .scale = 0.125f };
    j->k->attn[j->type](&a);
}

int main(int argc, char **argv)
{
    int64_t d = argc > 1 ? atoi(argv[1]) : 64, group = argc > 2 ? atoi(argv[2]) : 4, n_kv = argc > 3 ? atoi(argv[3]) : 4096;
    hn_cpu_level level = hn_cpu_best();
    for (int l = 0; argc > 4 && l < HN_CPU_LEVELS; l++)
        if (strcmp(argv[4], hn_cpu_level_name((hn_cpu_level)l)) == 0) level = (hn_cpu_level)l;
    static const char *const names[] = { "f16", "f32", "q8_0" };
    printf("%s: d %d, group %d, %d keys\n", hn_cpu_level_name(level), (int)d, (int)group, (int)n_kv);
    for (int threads = 1; threads <= 2; threads++) {
        hn_pool *pool;
        hone_error err;
        if (hn_pool_new(&pool, threads, &err) != HONE_OK) return 1;
        for (int type = 0; type < HN_CACHE_TYPES; type++) {
            job j = { .k = hn_kernels_get(level), .type = (hn_cache_type)type, .d = d, .group = group };
            int64_t n_pos = (n_kv + 63) / 64 * 64 + 64;
            j.plane = hn_cache_block_bytes(j.type, d) * (size_t)(n_pos / 16);
            j.n_head = (int64_t)((size_t)200 << 20) / (int64_t)(2 * j.plane) + 1; /* beyond the last-level cache */
            j.kp = hn_pages_alloc_huge(j.plane * (size_t)j.n_head);
            j.vp = hn_pages_alloc_huge(j.plane * (size_t)j.n_head);
            int64_t tile = 96 / group < 1 ? 1 : 96 / group, rows = tile * group;
            j.rows_floats = (size_t)(rows * d);
            j.scratch_floats = ((size_t)hn_attn_floats(rows, d) + 15) & ~(size_t)15;
            j.q = hn_pages_alloc(j.rows_floats * 2 * 4);
            j.out = hn_pages_alloc(j.rows_floats * 2 * 4);
            j.scratch = hn_pages_alloc(j.scratch_floats * 2 * 4);
            float x[512];
            uint32_t r = 1;
            for (int64_t t = 0; t < n_pos * j.n_head; t++) {
                for (int64_t i = 0; i < d; i++) x[i] = (float)((r = r * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1.0f;
                j.k->store_k[type](j.kp + (size_t)(t / n_pos) * j.plane, x, d, t % n_pos);
                j.k->store_v[type](j.vp + (size_t)(t / n_pos) * j.plane, x, d, t % n_pos);
            }
            for (size_t i = 0; i < j.rows_floats * 2; i++) j.q[i] = x[i % (size_t)d] * 2.0f;
            for (int way = 0; way < 2; way++) {
                j.n_tok = way ? tile : 1;
                j.n_kv = way ? n_kv - tile : n_kv;
                int64_t heads = way ? (j.n_head + 7) / 8 : j.n_head;
                double best = 1e9;
                for (int round = 0; round < 5; round++) {
                    double t = now();
                    hn_pool_run(pool, one_head, &j, heads);
                    t = now() - t;
                    best = t < best ? t : best;
                }
                double bytes = 2.0 * (double)hn_cache_block_bytes(j.type, d) / 16 * (double)n_kv * (double)heads;
                double flop = 4.0 * (double)(j.n_tok * group * d) * (double)n_kv * (double)heads;
                printf("  %d thread%s %-5s %-8s %8.1f GB/s %8.1f GFLOP/s\n", threads, threads > 1 ? "s" : " ", names[type], way ? "prefill" : "decode", bytes / best / 1e9, flop / best / 1e9);
            }
            hn_pages_free(j.kp, j.plane * (size_t)j.n_head);
            hn_pages_free(j.vp, j.plane * (size_t)j.n_head);
            hn_pages_free(j.q, j.rows_floats * 2 * 4);
            hn_pages_free(j.out, j.rows_floats * 2 * 4);
            hn_pages_free(j.scratch, j.scratch_floats * 2 * 4);
        }
        hn_pool_free(pool);
    }
    return 0;
}
