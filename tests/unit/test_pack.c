/* The packed layout: where the header says each byte stands, its inverse, its sizes. */
#include "quant/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const hn_type all[] = { HN_F32,    HN_F16,  HN_BF16, HN_Q8_0, HN_Q4_0,  HN_Q5_0,
                               HN_IQ4_NL, HN_Q4_K, HN_Q5_K, HN_Q6_K, HN_IQ4_XS };

static void every_byte_has_its_place(void **state)
{
    (void)state;
    enum { N_IN = 512, NB = 2 };
    static hn_q4_K k4[16][NB];
    static hn_q6_K k6[16][NB];
    static hn_q5_0 q5[16][16];
    static hn_q8_0 q8[16][16];
    static uint8_t g[65536];
    for (int i = 0; i < 16; i++)
        for (int b = 0; b < NB; b++) {
            for (size_t j = 0; j < sizeof(hn_q4_K); j++)
                ((uint8_t *)&k4[i][b])[j] = (uint8_t)hn_rand64(1, (uint64_t)((i * NB + b) * 144) + j);
            for (size_t j = 0; j < sizeof(hn_q6_K); j++)
                ((uint8_t *)&k6[i][b])[j] = (uint8_t)hn_rand64(2, (uint64_t)((i * NB + b) * 210) + j);
        }
    hn_pack_group(HN_Q4_K, g, k4, sizeof k4[0], 16, N_IN);
    for (int i = 0; i < 16; i++)
        for (int b = 0; b < NB; b++) {
            const uint8_t *p = g + 2304 * b;
            assert_memory_equal(p + 2 * i, &k4[i][b].d, 2);
            assert_memory_equal(p + 32 + 2 * i, &k4[i][b].dmin, 2);
            for (int j = 0; j < 3; j++) assert_memory_equal(p + 64 + 64 * j + 4 * i, k4[i][b].s + 4 * j, 4);
            for (int j = 0; j < 32; j++) assert_memory_equal(p + 256 + 64 * j + 4 * i, k4[i][b].q + 4 * j, 4);
        }
    hn_pack_group(HN_Q6_K, g, k6, sizeof k6[0], 16, N_IN);
    for (int i = 0; i < 16; i++)
        for (int b = 0; b < NB; b++) {
            const uint8_t *p = g + 64 + 3328 * b; /* 52 lines, as the header orders them */
            for (int n = 0; n < 2; n++, p += 26 * 64) {
                for (int j = 0; j < 2; j++) assert_memory_equal(p + 64 * j + 4 * i, k6[i][b].s + 4 * (2 * n + j), 4);
                for (int j = 0; j < 8; j++) {
                    assert_memory_equal(p + 128 + 192 * j + 4 * i, k6[i][b].h + 4 * (8 * n + j), 4);
                    assert_memory_equal(p + 192 + 192 * j + 4 * i, k6[i][b].l + 4 * (16 * n + j), 4);
                    assert_memory_equal(p + 256 + 192 * j + 4 * i, k6[i][b].l + 4 * (16 * n + 8 + j), 4);
                }
            }
            assert_memory_equal(g + 32 * b + 2 * i, &k6[i][b].d, 2);
        }
    for (int i = 0; i < 16; i++)
        for (int b = 0; b < 16; b++) {
            uint32_t h = (uint32_t)hn_rand64(3, (uint64_t)(i * 16 + b));
            memcpy(q5[i][b].h, &h, 4);
            for (int j = 0; j < 32; j++) q8[i][b].q[j] = (int8_t)hn_rand64(4, (uint64_t)((i * 16 + b) * 32 + j));
        }
    hn_pack_group(HN_Q5_0, g, q5, sizeof q5[0], 16, N_IN);
    for (int i = 0; i < 16; i++)
        for (int b = 0; b < 16; b++)
            for (int w = 0; w < 8; w++)
                for (int j = 0; j < 4; j++) {
                    uint32_t h;
                    memcpy(&h, q5[i][b].h, 4);
                    assert_int_equal(g[64 * (b / 2 + 1) + 320 * b + 4 * i + j] >> w & 1, h >> (4 * w + j) & 1);
                }
    hn_pack_group(HN_Q8_0, g, q8, sizeof q8[0], 16, N_IN);
    for (int i = 0; i < 16; i++)
        for (int b = 0; b < 16; b++)
            for (int j = 0; j < 32; j++)
                assert_int_equal(g[64 * (b / 2 + 1) + 512 * b + 64 * (j / 4) + 4 * i + j % 4], q8[i][b].q[j] + 128);
}

/* Every byte of every row comes back; nothing is written beyond the group; rows that are missing are zero. */
static void rows_come_back(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (int n_rows = 1; n_rows <= 16; n_rows += 5) {
            hn_type t = all[k];
            const hn_type_info *ti = hn_type_get(t);
            int64_t n_in = ti->block_elems * 3;
            size_t row = (size_t)hn_row_bytes(ti, (uint64_t)n_in), group = hn_packed_group_bytes(t, n_in);
            uint8_t *rows = malloc(row * 16), *g = malloc(group + 64), *back = malloc(row);
            for (size_t i = 0; i < row * 16; i++) rows[i] = (uint8_t)hn_rand64(k, i);
            memset(g, 0x5A, group + 64);
            hn_pack_group(t, g, rows, row, n_rows, n_in);
            for (int i = 0; i < 64; i++) assert_int_equal(g[group + (size_t)i], 0x5A);
            for (int i = 0; i < n_rows; i++) {
                hn_unpack_blocks(t, back, g, n_in, i, 0, 3);
                assert_memory_equal(back, rows + (size_t)i * row, row);
                hn_unpack_blocks(t, back, g, n_in, i, 1, 2);
                assert_memory_equal(back, rows + (size_t)i * row + ti->block_bytes, ti->block_bytes);
            }
            assert_true(group % 64 == 0 && group >= 16 * row && group < 16 * row + 64);
            assert_int_equal(hn_packed_bytes(t, n_in, 17), 2 * group);
            free(rows);
            free(g);
            free(back);
        }
    assert_false(hn_can_pack(HN_Q2_K));
    assert_true(hn_can_pack(HN_Q4_K));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_byte_has_its_place), cmocka_unit_test(rows_come_back) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
