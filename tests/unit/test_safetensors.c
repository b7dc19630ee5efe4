/* safetensors: headers that lie, one check after the other; truncation at every byte of a header;
 * random damage. Nothing may be written, and every message names the file. */
#include "model/ckpt.h"
#include "rwkv_files.h"

static void refused(hone_status want, const char *says)
{
    hone_error err = { 0 };
    const char *src = in_dir("bad.safetensors"), *dst = in_dir("never.gguf");
    hone_status st = hone_convert(src, NULL, NULL, dst, NULL, &err);
    if (st != want || !strstr(err.message, says) || !strstr(err.message, src))
        fail_msg("status %d, message: %s; expected %d and: %s", st, err.message, want, says);
    assert_int_equal(access(dst, F_OK), -1);
    assert_int_equal(n_files(dir), 1);
}

/* A file of this header, its true length, and n bytes of data. */
static void write_raw(const char *json, size_t n)
{
    buffer f = { 0 };
    put(&f, &(uint64_t){ strlen(json) }, 8);
    put(&f, json, strlen(json));
    for (size_t i = 0; i < n; i++) put(&f, "", 1);
    write_bytes(in_dir("bad.safetensors"), f.p, f.n);
    free(f.p);
}

#define T(name, dtype, shape, a, b) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #a "," #b "]}"

static void test_headers(void **state)
{
    static const struct {
        const char *json;
        size_t n;
        const char *says;
    } bad[] = {
        { "{" T("a", "F32", "[2]", 0, 4) "}", 4, "a has 4 bytes of data, expected 8 for F32 of shape [2]" },
        { "{" T("a", "F32", "[]", 0, 8) "}", 8, "expected 4 for F32 of shape []" },
        { "{" T("a", "F32", "[1]", 0, 4) "," T("b", "F32", "[1]", 0, 4) "}", 4, "tensors overlap" },
        { "{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[1]", 4, 8) "}", 8, "tensors overlap" },
        { "{" T("a", "F32", "[1]", 0, 4) "," T("b", "F32", "[1]", 8, 12) "}", 12, "leave a hole" },
        { "{" T("a", "F32", "[1]", 4, 8) "}", 8, "leave a hole" },
        { "{" T("a", "F32", "[1]", 0, 4) "}", 5, "1 bytes follow the data" },
        { "{" T("a", "F32", "[1]", 0, 4) "}", 3, "expected ascending ones up to 3" },
        { "{" T("a", "F32", "[1]", 4, 0) "}", 4, "data_offsets [4, 0]" },
        { "{" T("a", "F32", "[1]", 18446744073709551612, 0) "}", 4, "data_offsets [18446744073709551612" },
        { "{" T("a", "F32", "[1]", 0, 18446744073709551616) "}", 4, "a number below 2^64" },
        { "{" T("a", "F32", "[1]", -1, 3) "}", 4, "a whole number" },
        { "{" T("a", "F32", "[1.0]", 0, 4) "}", 4, "a whole number" },
        { "{" T("a", "F32", "[1e0]", 0, 4) "}", 4, "a whole number" },
        { "{" T("a", "F32", "[01]", 0, 4) "}", 4, "a whole number" },
        { "{" T("a", "F32", "[4294967296,4294967296]", 0, 4) "}", 4, "too large" },
        { "{" T("a", "F32", "[4611686018427387905]", 0, 4) "}", 4, "too large" },
        { "{" T("a", "F32", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, "at most 8 dimensions" },
        { "{" T("a", "F33", "[1]", 0, 4) "}", 4, "a has dtype \"F33\"" },
        { "{" T("a", "F32", "[1]", 0, 4) "," T("a", "F32", "[1]", 4, 8) "}", 8, "tensor a is there twice" },
        { "{" T("", "F32", "[1]", 0, 4) "}", 4, "tensor name \"\" is empty" },
        { "{" T("a\\u0001b", "F32", "[1]", 0, 4) "}", 4, "contains a control byte" },
        { "{" T("a\\u0000b", "F32", "[1]", 0, 4) "}", 4, "no NUL" },
        { "{" T("a\\ud800", "F32", "[1]", 0, 4) "}", 4, "a pair of surrogates" },
        { "{" T("a\\q", "F32", "[1]", 0, 4) "}", 4, "an escape of JSON" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "a has no data_offsets" },
        { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "a has no dtype" },
        { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "a has no shape" },
        { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
          "a has \"dtype\" twice" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, "a has \"x\"" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, "two offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "two offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[]}}", 4, "two offsets" },
        { "{\"a\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "expected a string" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[0,4]}}", 4, "expected '['" },
        { "{\"a\":[]}", 0, "expected '{'" },
        { "{\"a\":{", 0, "ends at byte" },
        { "{\"a\"", 0, "ends at byte" },
        { "{\"a", 0, "the end of a string" },
        { "{\"a\nb\":{}}", 0, "no control byte" },
        { "{} x", 0, "expected the end" },
        { "{}}", 0, "expected the end" },
        { "{,}", 0, "expected a string" },
        { "{\"__metadata__\":{\"a\":1}}", 0, "expected a string" },
        { "{\"__metadata__\":{\"a\":\"b\",\"a\":\"b\"}}", 0, "__metadata__ has \"a\" twice" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ is there twice" },
        { "{\"\xFF\":{}}", 0, "is not valid UTF-8" },
    };
    static const char *const dtypes[] = { "BOOL",    "U8",      "I8",      "I16",     "U16",         "I32",
                                          "U32",     "I64",     "U64",     "C64",     "F4",          "F6_E2M3",
                                          "F6_E3M2", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ" };
    empty_folder(dir);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_raw(bad[i].json, bad[i].n);
        refused(HONE_E_FORMAT, bad[i].says);
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        char json[160], says[64];
        snprintf(json, sizeof json, "{\"a\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[0,4]}}", dtypes[i]);
        snprintf(says, sizeof says, "a has dtype %s;", dtypes[i]);
        write_raw(json, 4);
        refused(HONE_E_UNSUPPORTED, says);
    }
    /* well-formed, but no RWKV: empty dimensions, scalars and escapes are legal */
    write_raw("{\"__metadata__\":{\"x\":\"\\u00e9\\ud83d\\ude00\"} ," T("a", "F32", "[]", 0, 4) "," T(
                  "e", "F64", "[0,3]", 4, 4) "," T("b\\/\\u00fc", "BF16", "[1,1]", 4, 6) "}   ",
              6);
    refused(HONE_E_UNSUPPORTED, "of its 3 tensors none is blocks.0.att.r_k");
}

/* The length in front. */
static void test_length(void **state)
{
    static const struct {
        uint64_t n;
        const char *says;
    } bad[] = {
        { 0, "claims 0 bytes" },         { 1, "claims 1 bytes" },
        { 200000000, "truncated?" },     { UINT64_MAX, "claims 18446744073709551615 bytes" },
        { (uint64_t)1 << 63, "claims" }, { 10, "safetensors header" },
        { 3, "safetensors header" },
    };
    empty_folder(dir);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        buffer f = { 0 };
        put(&f, &bad[i].n, 8);
        put(&f, "{\"a\":{\"dtype\":\"F32\"}}", 21);
        write_bytes(in_dir("bad.safetensors"), f.p, f.n);
        free(f.p);
        refused(HONE_E_FORMAT, bad[i].says);
    }
    FILE *f = fopen(in_dir("bad.safetensors"), "wb"); /* 150 MB that take no room */
    assert_non_null(f);
    assert_int_equal(fwrite(&(uint64_t){ 150000000 }, 8, 1, f), 1);
    assert_int_equal(fwrite("{\"", 2, 1, f), 1);
    assert_int_equal(fflush(f) | ftruncate(fileno(f), 160000000), 0);
    fclose(f);
    refused(HONE_E_FORMAT, "expected at most 100000000");
    /* nesting and repetition cost nothing */
    size_t n = 400000;
    char *bomb = malloc(n + 1);
    assert_non_null(bomb);
    memset(bomb, '[', n);
    memcpy(bomb, "{\"a\":", 5);
    bomb[n] = 0;
    write_raw(bomb, 0);
    refused(HONE_E_FORMAT, "expected '{'");
    memcpy(bomb, "{\"a\":{\"shape\":", 14);
    write_raw(bomb, 0);
    refused(HONE_E_FORMAT, "a whole number");
    free(bomb);
}

static void test_truncated(void **state)
{
    model m;
    empty_folder(dir);
    make_model(&m, 6);
    m.n = 40;       /* short enough to cut everywhere */
    char path[192]; /* in_dir's is not kept that long */
    snprintf(path, sizeof path, "%s/bad.safetensors", dir);
    write_safetensors(path, &m, HF, "BF16");
    FILE *f = fopen(path, "rb");
    uint64_t n;
    assert_int_equal(fread(&n, 8, 1, f), 1);
    fclose(f);
    assert_true(n > 2000 && n < 8000);
    for (uint64_t cut = 8 + n + 100; cut-- > 0;) {
        assert_int_equal(truncate(path, (off_t)cut), 0);
        refused(HONE_E_FORMAT, cut >= 8 + n ? "expected ascending ones up to"
                               : cut >= 10  ? "claims"
                               : cut        ? "bytes"
                                            : "is empty");
    }
}

/* One byte of the header changed: never a crash, and what is written can be read. */
static void test_damaged(void **state)
{
    model m;
    empty_folder(dir);
    make_model(&m, 7);
    const char *path = in_dir("bad.safetensors"), *dst = in_dir("out.gguf");
    write_safetensors(path, &m, ORIGINAL, "BF16");
    FILE *f = fopen(path, "r+b");
    uint64_t n;
    int n_bad = 0;
    assert_int_equal(fread(&n, 8, 1, f), 1);
    for (uint64_t i = 0; i < 1500; i++) {
        uint64_t at = hn_rand64(1, i) % (8 + n);
        unsigned char was, now = (unsigned char)(hn_rand64(2, i) >> 56);
        hone_error err = { 0 };
        fseek(f, (long)at, SEEK_SET);
        assert_int_equal(fread(&was, 1, 1, f), 1);
        fseek(f, (long)at, SEEK_SET);
        fwrite(&now, 1, 1, f);
        fflush(f);
        hone_status st = hone_convert(path, NULL, NULL, dst, NULL, &err);
        if (st == HONE_OK) hn_gguf_close(open_gguf(dst));
        else if (!*err.message) fail_msg("no message");
        n_bad += st != HONE_OK;
        fseek(f, (long)at, SEEK_SET);
        fwrite(&was, 1, 1, f);
        fflush(f);
    }
    fclose(f);
    assert_true(n_bad > 1000);
}

/* Two series in one folder: which is the model nobody knows. */
static void test_two_series(void **state)
{
    static const char *const tails[] = { "00001-of-00002", "00002-of-00002", "00001-of-00004" };
    const char *sub = in_dir("two");
    char path[3][300];
    hone_error err = { 0 };
    hn_ckpt *c;
    assert_int_equal(mkdir(sub, 0700), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/model-%s.safetensors", sub, tails[i]);
        write_bytes(path[i], "\2\0\0\0\0\0\0\0{}", 10);
    }
    assert_int_equal(hn_ckpt_new(&c, sub, &err), HONE_OK);
    assert_int_equal(hn_ckpt_folder(c, sub, &err), HONE_E_FORMAT);
    hn_ckpt_free(c);
    assert_non_null(strstr(err.message, "model-00001-of-00002.safetensors and model-00001-of-00004.safetensors"));
    unlink(path[2]);
    assert_int_equal(hn_ckpt_new(&c, sub, &err), HONE_OK);
    if (hn_ckpt_folder(c, sub, &err) != HONE_OK) fail_msg("%s", err.message);
    hn_ckpt_free(c);
    unlink(path[0]), unlink(path[1]);
    assert_int_equal(rmdir(sub), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_headers), cmocka_unit_test(test_length),
                                        cmocka_unit_test(test_truncated), cmocka_unit_test(test_damaged),
                                        cmocka_unit_test(test_two_series) };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
