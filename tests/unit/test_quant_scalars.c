/* binary16 and bfloat16 against definitions written in double arithmetic, for every half
 * and for millions of floats; and against the compiler's own type where it has one. */
#include "quant/quant.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static double half_value(uint32_t h)
{
    int e = (int)(h >> 10 & 31), m = (int)(h & 1023);
    double v = e == 31 ? INFINITY : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}

static void every_half(void **state)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float f = hn_f16_to_f32((uint16_t)h), g;
        uint16_t u = (uint16_t)h;
        hn_type_get(HN_F16)->dequantize(&g, &u, 1);
        assert_int_equal(hn_f32_bits(f), hn_f32_bits(g));
        if ((h & 0x7C00) == 0x7C00 && h & 1023) {
            assert_true(isnan(f));
            assert_int_equal(hn_f32_to_f16(f), h | 0x200); /* quiet, payload kept */
        } else {
            assert_true((double)f == half_value(h) && !!signbit(f) == (h >> 15));
            assert_int_equal(hn_f32_to_f16(f), h);
        }
    }
}

/* Nearest half, ties to even, by scaling to an integer in double, where all is exact. */
static uint16_t half_reference(float f)
{
    uint16_t s = signbit(f) ? 0x8000 : 0;
    double a = fabs((double)f);
    if (a >= 65520) return s | 0x7C00;
    int e = a < 0x1p-14 ? -14 : ilogb(a);
    double q = nearbyint(ldexp(a, 10 - e)); /* 1024..2048, or below for subnormals */
    if (q >= 2048) {
        q = 1024;
        e++;
    }
    return (uint16_t)(s | (q < 1024 ? (unsigned)q : (unsigned)(e + 15) << 10 | ((unsigned)q - 1024)));
}

static uint16_t bf16_reference(float f)
{
    uint32_t u = hn_f32_bits(f), low = u & 0xFFFF, high = u >> 16;
    if (low > 0x8000 || (low == 0x8000 && high & 1)) high++;
    return (uint16_t)high;
}

static void check_float(uint32_t u)
{
    float f = hn_bits_f32(u);
    if (isnan(f)) {
        assert_true(isnan(hn_f16_to_f32(hn_f32_to_f16(f))) && isnan(hn_bf16_to_f32(hn_f32_to_bf16(f))));
        return;
    }
    uint16_t h = hn_f32_to_f16(f), want = half_reference(f);
    if (h != want) fail_msg("f32 %08x to f16: %04x, expected %04x", u, h, want);
    uint16_t b = hn_f32_to_bf16(f), wb = bf16_reference(f);
    if (b != wb) fail_msg("f32 %08x to bf16: %04x, expected %04x", u, b, wb);
#ifdef __FLT16_MANT_DIG__
    _Float16 c = (_Float16)f;
    uint16_t cb;
    memcpy(&cb, &c, 2);
    if (h != cb) fail_msg("f32 %08x to f16: %04x, the compiler says %04x", u, h, cb);
#endif
}

static void many_floats(void **state)
{
    for (uint64_t k = 0; k < 2000000; k++) check_float((uint32_t)hn_rand64(11, k));
    for (uint32_t h = 0; h < 0x7C00; h++) /* every tie between halves, and its neighbours */
        for (int d = -1; d <= 1; d++) {
            float mid = (float)((half_value(h) + (h == 0x7BFF ? 65536. : half_value(h + 1))) / 2);
            check_float(hn_f32_bits(mid) + (uint32_t)d);
            check_float((hn_f32_bits(mid) + (uint32_t)d) | 0x80000000u);
        }
    for (uint32_t hi = 0; hi < 65536; hi++) /* bf16 ties */
        for (uint32_t lo = 0x7FFF; lo <= 0x8001; lo++) check_float(hi << 16 | lo);
    for (uint32_t u = 0; u < 100; u++) check_float(u);
}

static void nan_is_quiet(void **state)
{
    assert_int_equal(hn_f32_to_bf16(hn_bits_f32(0x7F800001)), 0x7FC0);
    assert_int_equal(hn_f32_to_bf16(hn_bits_f32(0xFFFFFFFF)), 0xFFFF);
    assert_int_equal(hn_f32_to_f16(hn_bits_f32(0x7F800001)), 0x7E00);
    assert_int_equal(hn_f32_to_f16(hn_bits_f32(0xFFFFFFFF)), 0xFFFF);
    assert_int_equal(hn_f32_to_f16(65504.f), 0x7BFF);
    assert_int_equal(hn_f32_to_f16(65519.996f), 0x7BFF);
    assert_int_equal(hn_f32_to_f16(65520.f), 0x7C00);
    assert_int_equal(hn_f32_to_f16(-INFINITY), 0xFC00);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_half), cmocka_unit_test(many_floats),
                                        cmocka_unit_test(nan_is_quiet) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
