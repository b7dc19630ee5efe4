/* Base in small: error messages, escaping of untrusted bytes, the arena and checked sizes, SHA-256
 * against the examples of FIPS 180-4. */
#include "base/base.h"
#include "base/guard.h"
#include "base/os.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static void failing_fills_the_error(void **state)
{
    hone_error err;
    memset(&err, 'x', sizeof err);
    assert_int_equal(HN_FAIL(&err, HONE_E_FORMAT, "key %s: %d\nof %d", "a.b", 3, 4), HONE_E_FORMAT);
    assert_int_equal(err.code, HONE_E_FORMAT);
    assert_string_equal(err.message, "key a.b: 3 of 4"); /* one line */
    assert_non_null(strstr(err.file, "test_base.c"));
    assert_int_equal(HN_FAIL(NULL, HONE_E_IO, "nobody listens"), HONE_E_IO);
    char long_text[4000];
    memset(long_text, 'y', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    HN_FAIL(&err, HONE_E_ARG, "%s", long_text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static void every_status_has_a_name(void **state)
{
    for (int s = HONE_OK; s <= HONE_E_BUSY; s++) {
        const char *name = hone_status_name((hone_status)s);
        assert_non_null(name);
        assert_true(strncmp(name, "HONE_", 5) == 0);
        for (int t = HONE_OK; t < s; t++) assert_string_not_equal(name, hone_status_name((hone_status)t));
    }
    assert_string_equal(hone_status_name((hone_status)99), "HONE_E_?");
    assert_string_equal(hone_status_name((hone_status)-1), "HONE_E_?");
}

static void untrusted_bytes_are_escaped(void **state)
{
    static const struct {
        const char *in;
        size_t len;
        const char *out;
    } t[] = {
        { "plain", 5, "plain" },
        { "", 0, "" },
        { "Zo\xC3\xAB \xE2\x82\xAC \xF0\x9F\x99\x82", 13, "Zo\xC3\xAB \xE2\x82\xAC \xF0\x9F\x99\x82" },
        { "a\x1B[31m", 6, "a\\x1b[31m" }, /* no colours from a file */
        { "a\nb\rc\x7F", 6, "a\\x0ab\\x0dc\\x7f" },
        { "a\0b", 3, "a\\x00b" },
        { "back\\slash", 10, "back\\x5cslash" }, /* so that \x1b cannot be forged */
        { "\xC2\x9B"
          "31m",
          5, "\\xc2\\x9b31m" },                                              /* C1 CSI */
        { "\xC0\xAF\xED\xA0\x80\xF5", 6, "\\xc0\\xaf\\xed\\xa0\\x80\\xf5" }, /* overlong, surrogate, beyond */
        { "cut \xE2\x82", 6, "cut \\xe2\\x82" },
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) assert_string_equal(HN_ESC(t[i].in, t[i].len), t[i].out);
    /* too long: cut with an ellipsis, never beyond the buffer, never inside an escape */
    char in[400], out[40];
    for (size_t cap = 8; cap <= sizeof out; cap++) {
        memset(in, cap & 1 ? 'a' : '\n', sizeof in);
        memset(out, 'Z', sizeof out);
        hn_escape(out, cap, in, sizeof in);
        size_t n = strlen(out);
        assert_true(n < cap);
        assert_string_equal(out + n - 3, "\xE2\x80\xA6");
        if (!(cap & 1)) assert_int_equal((n - 3) % 4, 0);
        for (size_t k = cap; k < sizeof out; k++) assert_int_equal(out[k], 'Z');
    }
}

static void sizes_are_checked(void **state)
{
    uint64_t x;
    assert_true(hn_mul_u64(1ull << 32, 1ull << 31, &x) && x == 1ull << 63);
    assert_false(hn_mul_u64(1ull << 32, 1ull << 32, &x));
    assert_false(hn_add_u64(UINT64_MAX, 1, &x));
    assert_true(hn_in_range(0, 0, 0) && hn_in_range(10, 0, 10) && hn_in_range(3, 7, 10));
    assert_false(hn_in_range(3, 8, 10) || hn_in_range(11, 0, 10) || hn_in_range(UINT64_MAX, 2, 10) ||
                 hn_in_range(2, UINT64_MAX, 10));
    assert_true(hn_round_up(0, 32, &x) && x == 0);
    assert_true(hn_round_up(33, 32, &x) && x == 64);
    assert_false(hn_round_up(UINT64_MAX - 3, 32, &x));
}

static void arena_gives_aligned_zeroed_blocks(void **state)
{
    hn_arena *a = hn_arena_new();
    assert_non_null(a);
    unsigned char *block[300];
    size_t size[300];
    for (int i = 0; i < 300; i++) {
        size[i] = (size_t)(hn_rand64(1, (uint64_t)i) % (i % 10 == 0 ? 200000 : 300));
        block[i] = hn_arena_alloc(a, size[i]);
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % 64, 0);
        for (size_t k = 0; k < size[i]; k++) assert_int_equal(block[i][k], 0);
        if (size[i]) memset(block[i], i & 255, size[i]);
    }
    for (int i = 0; i < 300; i++) /* nobody's bytes were given away twice */
        for (size_t k = 0; k < size[i]; k++) assert_int_equal(block[i][k], i & 255);
    assert_null(hn_arena_alloc(a, SIZE_MAX));
    assert_null(hn_arena_alloc(a, SIZE_MAX - 100));
    const char text[] = { 'a', 'b', 'c' };
    assert_string_equal(hn_arena_strndup(a, text, 3), "abc");
    assert_true(hn_arena_bytes(a) > 0);
    hn_arena_free(a);
    hn_arena_free(NULL);
}

#if HN_ASAN
int __asan_address_is_poisoned(const volatile void *p);

/* The last of n bytes may be read, the one behind may not. */
static void ends_at(const char *p, size_t n)
{
    if (n) assert_false(__asan_address_is_poisoned(p + n - 1));
    assert_true(__asan_address_is_poisoned(p + n));
}

/* Under a sanitizer not a byte beyond the end of a block, of pages or of a mapped file can be read in silence. */
static void memory_of_our_own_is_guarded(void **state)
{
    hn_arena *a = hn_arena_new();
    assert_non_null(a);
    for (size_t n = 0; n < 300; n++) {
        const char *p = hn_arena_alloc(a, n);
        assert_non_null(p);
        ends_at(p, n);
        assert_true(__asan_address_is_poisoned(p - 1));
    }
    ends_at(hn_arena_strndup(a, "abcdefg", 7), 8);
    hn_arena_free(a);
    static const size_t sizes[] = { 1, 100, 4095, 4096, 4097, 70000, (4 << 20) + 3 };
    for (int round = 0; round < 3; round++) /* what was unmapped may be mapped again */
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char *p = hn_pages_alloc_huge(sizes[i]);
            assert_non_null(p);
            ends_at(p, sizes[i]);
            hn_pages_free(p, sizes[i]);
            int fd = open("src/base/arena.c", O_RDONLY | O_CLOEXEC);
            size_t n = (size_t)lseek(fd, 0, SEEK_END);
            const char *m = hn_os_map_file(fd, n);
            assert_non_null(m);
            if (n % 4096) ends_at(m, n);
            hn_os_unmap_file(m, n);
            close(fd);
        }
}
#endif

/* clang tells of its sanitizer otherwise than gcc: a fuzzer that does not know is blind. */
static void the_sanitizer_is_known(void **state)
{
    bool asan = false;
#if defined(__SANITIZE_ADDRESS__)
    asan = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    asan = true;
#endif
#endif
    assert_int_equal(HN_ASAN, asan);
    assert_true(HN_ISOLATE || !asan);
}

static void sha256_of(const char *s, size_t n, size_t step, char hex[65])
{
    hn_sha256 h;
    unsigned char d[32];
    hn_sha256_init(&h);
    for (size_t i = 0; i < n; i += step) hn_sha256_add(&h, s + i, n - i < step ? n - i : step);
    hn_sha256_end(&h, d);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", d[i]);
}

/* Examples published by NIST for FIPS 180-4, and a million times "a". */
static void sha256_examples(void **state)
{
    static const struct {
        const char *in, *hex;
    } t[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    char hex[65];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (size_t step = 1; step < 70; step += 17) {
            sha256_of(t[i].in, strlen(t[i].in), step, hex);
            assert_string_equal(hex, t[i].hex);
        }
    char *m = malloc(1000000);
    assert_non_null(m);
    memset(m, 'a', 1000000);
    sha256_of(m, 1000000, 999, hex);
    free(m);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void unknown_cpu_levels_are_refused(void **state)
{
    hn_cpu_level l = HN_CPU_LEVELS;
    hone_error err;
    assert_int_equal(hn_cpu_choose(&l, "mmx", &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "mmx"));
    assert_non_null(strstr(err.message, "scalar"));
    assert_int_equal(hn_cpu_choose(&l, "scalar", &err), HONE_OK);
    assert_int_equal(l, HN_CPU_SCALAR);
    assert_true(hn_cpu_has(hn_cpu_best()));
    assert_true(hn_cpu_count() >= 1);
}

static void version_is_that_of_the_header(void **state)
{
    assert_string_equal(hone_version(), HONE_VERSION);
    assert_non_null(strstr(hone_build_info(), "commit"));
    assert_non_null(strstr(hone_build_info(), "-ffp-contract=off"));
    assert_null(strchr(hone_build_info(), '\n'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_fills_the_error),
        cmocka_unit_test(every_status_has_a_name),
        cmocka_unit_test(untrusted_bytes_are_escaped),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(arena_gives_aligned_zeroed_blocks),
        cmocka_unit_test(sha256_examples),
        cmocka_unit_test(the_sanitizer_is_known),
#if HN_ASAN
        cmocka_unit_test(memory_of_our_own_is_guarded),
#endif
        cmocka_unit_test(unknown_cpu_levels_are_refused),
        cmocka_unit_test(version_is_that_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
