/* Decoders against golden blocks (tests/golden/quant_blocks.txt, from the gguf package and
 * ggml) and, where present, the shared vectors. Sources aligned and not; nothing is
 * written beyond the row. */
#include "quant/codecs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define VECTORS "../shared/data/quants/"

/* Index of the first value that differs, bit for bit but -0 = +0; -1 if none. */
static int64_t first_difference(const float *y, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (hn_f32_bits(y[i]) != hn_f32_bits(want[i]) && !(y[i] == 0 && want[i] == 0)) return i;
    return -1;
}

/* Decodes n elements of raw, at several alignments, and compares. */
static void check(const hn_type_info *ti, const uint8_t *raw, const float *want, int64_t n)
{
    size_t n_bytes = (size_t)hn_row_bytes(ti, (uint64_t)n);
    float *y = malloc(((size_t)n + 2) * 4);
    for (int shift = 0; shift < 4; shift++) {
        uint8_t *buf = malloc(n_bytes + 4); /* exact: a read past the end shows under ASan */
        uint8_t *src = shift < 3 ? buf + shift : buf + 4;
        memcpy(src, raw, n_bytes);
        for (int64_t i = 0; i < n + 2; i++) y[i] = -12345.5f;
        ti->dequantize(y + 1, src, n);
        assert_true(y[0] == -12345.5f && y[n + 1] == -12345.5f);
        int64_t at = first_difference(y + 1, want, n);
        if (at >= 0)
            fail_msg("%s: element %lld of %lld is %.9g, expected %.9g", ti->name, (long long)at, (long long)n,
                     (double)y[1 + at], (double)want[at]);
        free(buf);
    }
    free(y);
}

static uint32_t hex(const char *s, int n)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++) {
        int c = s[i];
        assert_true((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
        v = v << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return v;
}

static void golden_blocks(void **state)
{
    FILE *f = fopen("tests/golden/quant_blocks.txt", "r");
    assert_non_null(f);
    static char line[65536];
    int n_blocks = 0;
    uint64_t seen = 0;
    while (fgets(line, sizeof line, f)) {
        if (line[0] != 'D') continue;
        strtok(line, " \n");
        int32_t id = hn_type_by_name(strtok(NULL, " \n"));
        strtok(NULL, " \n");
        const char *block = strtok(NULL, " \n"), *values = strtok(NULL, " \n");
        assert_true(id >= 0 && values);
        const hn_type_info *ti = hn_type_get((uint32_t)id);
        assert_int_equal(strlen(block), 2 * ti->block_bytes);
        assert_int_equal(strlen(values), 8 * ti->block_elems);
        uint8_t raw[512];
        float want[256];
        for (uint32_t i = 0; i < ti->block_bytes; i++) raw[i] = (uint8_t)hex(block + 2 * i, 2);
        for (uint32_t i = 0; i < ti->block_elems; i++) want[i] = hn_bits_f32(hex(values + 8 * i, 8));
        check(ti, raw, want, ti->block_elems);
        /* two blocks in a row: the second starts where the first ends */
        uint8_t raw2[1024];
        float want2[512];
        memcpy(raw2, raw, ti->block_bytes);
        memcpy(raw2 + ti->block_bytes, raw, ti->block_bytes);
        memcpy(want2, want, ti->block_elems * 4);
        memcpy(want2 + ti->block_elems, want, ti->block_elems * 4);
        check(ti, raw2, want2, 2 * ti->block_elems);
        seen |= 1ull << id;
        n_blocks++;
    }
    fclose(f);
    assert_true(n_blocks >= 60);
    for (uint32_t id = 0; id < HN_TYPE_COUNT; id++) {
        const hn_type_info *ti = hn_type_get(id);
        if (ti && ti->block_elems > 1 && id != HN_Q8_1 && !(seen >> id & 1))
            fail_msg("no golden block for %s", ti->name);
    }
}

static void shared_vectors(void **state)
{
    int n_files = 0;
    for (uint32_t id = 0; id < HN_TYPE_COUNT; id++) {
        const hn_type_info *ti = hn_type_get(id);
        if (!ti) continue;
        char path[256];
        snprintf(path, sizeof path, VECTORS "%s.bin", ti->name);
        FILE *f = fopen(path, "rb");
        if (!f) continue;
        uint32_t head[6];
        assert_int_equal(fread(head, 4, 6, f), 6);
        assert_memory_equal(head, "QVEC", 4);
        assert_int_equal(head[2], id);
        assert_int_equal(head[3], ti->block_elems);
        assert_int_equal(head[4], ti->block_bytes);
        size_t n = (size_t)head[5] * head[3], n_bytes = (size_t)head[5] * head[4];
        uint8_t *raw = malloc(n_bytes);
        float *want = malloc(n * 4);
        assert_int_equal(fread(raw, 1, n_bytes, f), n_bytes);
        assert_int_equal(fread(want, 4, n, f), n);
        fclose(f);
        check(ti, raw, want, (int64_t)n);
        free(raw);
        free(want);
        n_files++;
    }
    if (!n_files) {
        printf("SKIP: no vectors under " VECTORS "\n");
        return;
    }
    printf("%d vector files\n", n_files);
    assert_true(n_files >= 29);
}

/* Plain types convert as C does. */
static void integers_and_doubles(void **state)
{
    int8_t a[3] = { -128, 0, 127 };
    int16_t b[3] = { -32768, 1, 32767 };
    int32_t c[3] = { INT32_MIN, 16777217, 7 };
    int64_t d[3] = { INT64_MIN, (1ll << 40) + 1, -3 };
    double e[4] = { 1.0 / 3, -0x1p-140, 1e300, 2 };
    float y[4];
    hn_type_get(HN_I8)->dequantize(y, a, 3);
    assert_true(y[0] == -128 && y[1] == 0 && y[2] == 127);
    hn_type_get(HN_I16)->dequantize(y, b, 3);
    assert_true(y[0] == -32768 && y[1] == 1 && y[2] == 32767);
    hn_type_get(HN_I32)->dequantize(y, c, 3);
    assert_true(y[0] == -2147483648.f && y[1] == 16777216 && y[2] == 7);
    hn_type_get(HN_I64)->dequantize(y, d, 3);
    assert_true(y[0] == -0x1p63f && y[1] == 0x1p40f && y[2] == -3);
    hn_type_get(HN_F64)->dequantize(y, e, 4);
    assert_true(y[0] == 1.f / 3 && y[1] == -0x1p-140f && y[2] > 3e38f && y[3] == 2);
    char raw[17];
    memcpy(raw + 1, e, 16);
    hn_type_get(HN_F64)->dequantize(y, raw + 1, 2);
    assert_true(y[0] == 1.f / 3 && y[1] == -0x1p-140f);
    float x[2] = { 1.5f, -0.f };
    hn_type_get(HN_F32)->dequantize(y, x, 2);
    assert_memory_equal(x, y, 8);
}

/* Special scale bytes: formulas of docs/formats.md computed by ldexp-free constants. */
static void scale_bytes(void **state)
{
    uint8_t b[36] = { 0 };
    float y[64];
    const struct {
        uint8_t e;
        float d;
    } mx[] = { { 0, 0x1p-128f }, { 1, 0x1p-127f }, { 2, 0x1p-126f }, { 127, 0.5f }, { 128, 1 }, { 252, 0x1p124f } };
    for (size_t i = 0; i < sizeof mx / sizeof *mx; i++) {
        memset(b + 1, 0x72, 16); /* codes 2 (1.0) and 7 (6.0), doubled 2 and 12 */
        b[0] = mx[i].e;
        hn_type_get(HN_MXFP4)->dequantize(y, b, 32);
        assert_true(y[0] == 2 * mx[i].d && y[31] == 12 * mx[i].d);
    }
    const struct {
        uint8_t e;
        float d;
    } nv[] = { { 0, 0 },       { 127, 0 }, { 126, 448 }, { 1, 0x1p-9f }, { 7, 7 * 0x1p-9f },
               { 8, 0x1p-6f }, { 128, 0 }, { 255, 480 }, { 56, 1 } };
    for (size_t i = 0; i < sizeof nv / sizeof *nv; i++) {
        memset(b, 0, 36);
        b[3] = nv[i].e;
        b[4 + 24] = 0xA2; /* element 48: 1.0, element 56: -1.0 */
        hn_type_get(HN_NVFP4)->dequantize(y, b, 64);
        assert_true(y[48] == nv[i].d && y[56] == -nv[i].d && y[0] == 0);
    }
}

/* Sorted rows, the right levels, and a hash: a changed digit in grids.c shows. */
static void grids(void **state)
{
    const struct {
        const void *p;
        size_t n;
        bool wide;
        uint64_t hash;
        const char *file;
    } g[] = {
        { hn_grid_iq2xxs, 256, true, 0xbb4ee025b5ac6e8eu, "iq2xxs" },
        { hn_grid_iq2xs, 512, true, 0xc9b1ee61e79909bdu, "iq2xs" },
        { hn_grid_iq2s, 1024, true, 0x123edd38a3b62b90u, "iq2s" },
        { hn_grid_iq1s, 2048, true, 0x6703ed863501ae2eu, "iq1s" },
        { hn_grid_iq3xxs, 256, false, 0xdfa5dc83d6a155d5u, "iq3xxs" },
        { hn_grid_iq3s, 512, false, 0xfa37020c25b44829u, "iq3s" },
    };
    bool skipped = false;
    for (size_t i = 0; i < sizeof g / sizeof *g; i++) {
        size_t width = g[i].wide ? 8 : 4;
        uint8_t *rows = malloc(g[i].n * width), *file = malloc(g[i].n * width);
        for (size_t r = 0; r < g[i].n; r++) {
            uint64_t v = g[i].wide ? ((const uint64_t *)g[i].p)[r] : ((const uint32_t *)g[i].p)[r];
            for (size_t k = 0; k < width; k++) rows[r * width + k] = (uint8_t)(v >> 8 * k);
        }
        uint64_t h = hn_fnv1a(HN_FNV_INIT, rows, g[i].n * width);
        if (h != g[i].hash)
            fail_msg("grid %s: hash %016llx, expected %016llx", g[i].file, (unsigned long long)h,
                     (unsigned long long)g[i].hash);
        char path[256];
        snprintf(path, sizeof path, VECTORS "grids/%s.bin", g[i].file);
        FILE *f = fopen(path, "rb");
        if (f) {
            assert_int_equal(fread(file, 1, g[i].n * width, f), g[i].n * width);
            assert_memory_equal(file, rows, g[i].n * width);
            fclose(f);
        } else {
            skipped = true;
        }
        free(rows);
        free(file);
    }
    if (skipped) printf("SKIP: no grids under " VECTORS "grids\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_blocks), cmocka_unit_test(shared_vectors), cmocka_unit_test(integers_and_doubles),
        cmocka_unit_test(scale_bytes),   cmocka_unit_test(grids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
