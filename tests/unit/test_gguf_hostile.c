/* What a hostile or damaged file can do, number by number (the list is at the end of
 * this file), and that the reader refuses it by name. */
#include "gguf/gguf.h"
#include "gguf_bytes.h"
#include "growth.h"

#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/hone-test-gguf-XXXXXX";
static char *tmp_path(const char *name)
{
    static char buf[4][256];
    static int k;
    char *p = buf[k++ & 3];
    snprintf(p, 256, "%s/%s", dir, name);
    return p;
}

/* Parses an exact copy (so that sanitizers see every step beyond), frees b, and wants
 * status st and each of the given texts in the message. */
static void refuse_(int line, bb *b, hone_status want, const char *const *text)
{
    hn_gguf *g = (hn_gguf *)1;
    hone_error err = { 0 };
    unsigned char *p = malloc(b->n ? b->n : 1);
    memcpy(p, b->p ? b->p : (unsigned char *)"", b->n);
    hone_status st = hn_gguf_parse(&g, p, b->n, "bad.gguf", &err);
    if (st != want)
        fail_msg("line %d: status %s, expected %s; message: %s", line, hone_status_name(st), hone_status_name(want),
                 err.message);
    assert_null(g);
    assert_int_equal(err.code, st);
    if (!strstr(err.message, "bad.gguf")) fail_msg("line %d: file not named: %s", line, err.message);
    for (; *text; text++)
        if (!strstr(err.message, *text)) fail_msg("line %d: '%s' not in: %s", line, *text, err.message);
    assert_int_equal(hn_gguf_parse(&g, p, b->n, "bad.gguf", NULL), want); /* no error object: same */
    free(p);
    bb_free(b);
}
#define REFUSE(b, st, ...) refuse_(__LINE__, &(b), st, (const char *const[]){ __VA_ARGS__, NULL })

static void accept_(int line, bb *b)
{
    hn_gguf *g;
    hone_error err = { 0 };
    unsigned char *p = malloc(b->n ? b->n : 1);
    memcpy(p, b->p, b->n);
    if (hn_gguf_parse(&g, p, b->n, "good.gguf", &err) != HONE_OK) fail_msg("line %d: refused: %s", line, err.message);
    hn_gguf_close(g);
    free(p);
    bb_free(b);
}
#define ACCEPT(b) accept_(__LINE__, &(b))

static void refuse_file(const char *path, hone_status want, const char *a, const char *b)
{
    hn_gguf *g;
    hone_error err = { 0 };
    hone_status st = hn_gguf_open(&g, path, &err);
    if (st != want)
        fail_msg("%s: status %s, expected %s; message: %s", path, hone_status_name(st), hone_status_name(want),
                 err.message);
    assert_null(g);
    if (!strstr(err.message, a) || !strstr(err.message, b)) fail_msg("'%s' or '%s' not in: %s", a, b, err.message);
}

static bb text(const char *s, size_t n)
{
    bb b = { 0 };
    bb_raw(&b, s, n);
    return b;
}
#define TEXT(s) text(s, sizeof(s) - 1)

/* One F32 tensor "w" of 8 elements with 32 bytes of data. */
static bb with_tensor(const char *name, uint32_t n_dim, const uint64_t *ne, uint32_t type, uint64_t off, size_t data)
{
    bb b = bb_head(3, 1, 0);
    bb_tensor(&b, name, n_dim, ne, type, off);
    bb_pad(&b, 32);
    bb_raw(&b, NULL, data);
    return b;
}

/* ---- header ----------------------------------------------------------------------------- */

static void check_1(void **state)
{
    bb b = { 0 };
    REFUSE(b, HONE_E_FORMAT, "empty");
    for (size_t n = 4; n < 24; n++) {
        b = bb_head(3, 0, 0);
        b.n = n;
        REFUSE(b, HONE_E_FORMAT, "header", "24");
    }
    b = bb_head(3, 0, 0);
    ACCEPT(b);
    bb_save(&b, tmp_path("empty.gguf"));
    refuse_file(tmp_path("empty.gguf"), HONE_E_FORMAT, "empty.gguf", "is empty");
    refuse_file(dir, HONE_E_IO, "directory", dir);
    refuse_file("/dev/null", HONE_E_IO, "/dev/null", "device");
    refuse_file(tmp_path("absent.gguf"), HONE_E_IO, "absent.gguf", "No such file");
    refuse_file("", HONE_E_ARG, "file name", "");
    assert_int_equal(mkfifo(tmp_path("pipe.gguf"), 0600), 0);
    alarm(120); /* opening a pipe without a writer must not wait: for ever, not long */
    refuse_file(tmp_path("pipe.gguf"), HONE_E_IO, "pipe.gguf", "is a pipe");
    alarm(0);
    if (geteuid() != 0) {
        b = bb_head(3, 0, 0);
        bb_save(&b, tmp_path("secret.gguf"));
        bb_free(&b);
        chmod(tmp_path("secret.gguf"), 0);
        refuse_file(tmp_path("secret.gguf"), HONE_E_IO, "secret.gguf", "Permission denied");
    }
    b = TEXT("x");
    bb_save(&b, tmp_path("bad\x1b[31m\n.gguf"));
    bb_free(&b);
    refuse_file(tmp_path("bad\x1b[31m\n.gguf"), HONE_E_FORMAT, "bad\\x1b[31m\\x0a.gguf", "not a GGUF file");
}

static void check_2(void **state)
{
    bb b;
    b = TEXT("GGML\1\0\0\0 and much more than that here");
    REFUSE(b, HONE_E_FORMAT, "GGML");
    b = TEXT("lmgg\1\0\0\0 and much more than that here");
    REFUSE(b, HONE_E_FORMAT, "GGML");
    b = TEXT("tjgg\3\0\0\0 and much more than that here");
    REFUSE(b, HONE_E_FORMAT, "ggjt");
    b = TEXT("ggjt\3\0\0\0 and much more than that here");
    REFUSE(b, HONE_E_FORMAT, "ggjt");
    b = TEXT("ggla\1\0\0\0 and much more than that here");
    REFUSE(b, HONE_E_FORMAT, "ggla");
    b = TEXT("algg\1\0\0\0 and much more than that here");
    REFUSE(b, HONE_E_FORMAT, "ggla");
    b = TEXT("FUGG\0\0\0\3 and much more than that here");
    REFUSE(b, HONE_E_FORMAT, "reversed");
    b = TEXT("\x10\0\0\0\0\0\0\0{\"a\":{}}        and data");
    REFUSE(b, HONE_E_FORMAT, "safetensors");
    b = TEXT("PK\3\4\24\0\0\0\10\0 zip archive bytes");
    REFUSE(b, HONE_E_FORMAT, "zip");
    b = TEXT("<!DOCTYPE html><html><body>404</body></html>");
    REFUSE(b, HONE_E_FORMAT, "HTML");
    b = TEXT("\n  <html><body>404</body></html>");
    REFUSE(b, HONE_E_FORMAT, "HTML");
    b = TEXT("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n");
    REFUSE(b, HONE_E_FORMAT, "git-LFS");
    b = TEXT("{\"error\": \"no such file\"}");
    REFUSE(b, HONE_E_FORMAT, "JSON");
    b = TEXT("\x1f\x8b\x08 gzip and so on, more");
    REFUSE(b, HONE_E_FORMAT, "gzip");
    b = TEXT("\x80\x02}q\0 pickle and so on");
    REFUSE(b, HONE_E_FORMAT, "pickle");
    b = (bb){ 0 };
    bb_raw(&b, NULL, 4096);
    REFUSE(b, HONE_E_FORMAT, "zero bytes");
    b = TEXT("once upon a time there was a file");
    REFUSE(b, HONE_E_FORMAT, "not a GGUF file", "'once upo'");
    b = TEXT("GGU");
    REFUSE(b, HONE_E_FORMAT, "not a GGUF file");
}

static void check_3(void **state)
{
    bb b;
    b = bb_head(0, 0, 0);
    REFUSE(b, HONE_E_FORMAT, "version 0", "2 or 3");
    b = bb_head(1, 0, 0);
    REFUSE(b, HONE_E_UNSUPPORTED, "version 1", "2 or 3");
    b = bb_head(4, 0, 0);
    REFUSE(b, HONE_E_UNSUPPORTED, "version 4", "2 or 3");
    b = bb_head(0x03000000, 0, 0);
    REFUSE(b, HONE_E_UNSUPPORTED, "big-endian", "version 3");
    b = bb_head(0xFFFFFFFF, 0, 0);
    REFUSE(b, HONE_E_UNSUPPORTED, "4294967295");
    b = bb_head(2, 0, 0);
    ACCEPT(b);
    b = bb_head(3, 0, 0);
    ACCEPT(b);
}

static void check_4(void **state)
{
    bb b;
    b = bb_head(3, UINT64_MAX, 0);
    REFUSE(b, HONE_E_FORMAT, "18446744073709551615 tensors", "byte 8");
    b = bb_head(3, 0, UINT64_MAX);
    REFUSE(b, HONE_E_FORMAT, "18446744073709551615 metadata", "byte 16");
    b = bb_head(3, 1, 0);
    REFUSE(b, HONE_E_FORMAT, "1 tensors", "at most 0 fit");
    b = bb_head(3, 0, 1);
    bb_raw(&b, NULL, 13);
    REFUSE(b, HONE_E_FORMAT, "1 metadata", "at most 0 fit");
    b = bb_head(3, 0, 65537);
    bb_raw(&b, NULL, 14 * 65537);
    REFUSE(b, HONE_E_FORMAT, "65537", "at most 65536");
    b = bb_head(3, 65537, 0);
    bb_raw(&b, NULL, 25 * 65537);
    REFUSE(b, HONE_E_FORMAT, "65537", "at most 65536");
}

/* ---- strings and keys ------------------------------------------------------------------------ */

static bb with_key(const char *key, size_t n)
{
    bb b = bb_head(3, 0, 1);
    bb_strn(&b, key, n);
    bb_u32(&b, 4);
    bb_u32(&b, 1);
    return b;
}

static void check_5(void **state)
{
    static const uint64_t lens[] = { 100, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 31 };
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        char num[32];
        snprintf(num, sizeof num, "%llu bytes", (unsigned long long)lens[i]);
        bb b = bb_head(3, 0, 1); /* a key */
        bb_u64(&b, lens[i]);
        bb_raw(&b, "abcdefgh", 8);
        REFUSE(b, HONE_E_FORMAT, "key", num, "byte 24", "entry 0");
        b = bb_head(3, 0, 1); /* a value */
        bb_str(&b, "some.key");
        bb_u32(&b, 8);
        bb_u64(&b, lens[i]);
        REFUSE(b, HONE_E_FORMAT, "'some.key'", num, "byte 44");
        b = bb_head(3, 0, 1); /* a string in an array */
        bb_kv_array(&b, "some.list", 8, 2);
        bb_str(&b, "fine");
        bb_u64(&b, lens[i]);
        REFUSE(b, HONE_E_FORMAT, "'some.list'", num, "element 1 of 2");
        b = bb_head(3, 1, 0); /* a tensor name */
        bb_u64(&b, lens[i]);
        bb_raw(&b, NULL, 24);
        REFUSE(b, HONE_E_FORMAT, "tensor 0", "name", num);
    }
    bb b = bb_head(3, 0, 1);
    bb_str(&b, "k");
    bb_u32(&b, 8);
    bb_u64(&b, 65 << 20);
    bb_raw(&b, NULL, 65 << 20);
    REFUSE(b, HONE_E_FORMAT, "'k'", "68157440 bytes", "at most 67108864");
}

static void check_6(void **state)
{
    bb b = with_key("", 0);
    bb_u8(&b, 0); /* room for the smallest entry */
    REFUSE(b, HONE_E_FORMAT, "key", "is empty", "entry 0");
    b = with_tensor("", 1, NE(8), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "tensor 0", "is empty");
}

static void check_7(void **state)
{
    bb b = with_key("ab\0cd", 5);
    REFUSE(b, HONE_E_FORMAT, "'ab\\x00cd'", "NUL");
    b = bb_head(3, 1, 0);
    bb_strn(&b, "w\0", 2);
    bb_u32(&b, 0);
    bb_u32(&b, 0);
    bb_u64(&b, 0);
    REFUSE(b, HONE_E_FORMAT, "'w\\x00'", "NUL");
    b = bb_head(3, 0, 1);
    bb_str(&b, "general.architecture");
    bb_u32(&b, 8);
    bb_strn(&b, "llama\0x", 7);
    REFUSE(b, HONE_E_FORMAT, "general.architecture", "llama\\x00x", "NUL");
}

static void check_8(void **state)
{
    bb b;
    b = with_key("caf\xe9", 4);
    REFUSE(b, HONE_E_FORMAT, "caf\\xe9", "UTF-8");
    b = with_key("a\xc0\x80", 3);
    REFUSE(b, HONE_E_FORMAT, "UTF-8");
    b = with_key("a\xed\xa0\x80", 4);
    REFUSE(b, HONE_E_FORMAT, "UTF-8");
    b = with_key("a\xf4\x90\x80\x80", 5);
    REFUSE(b, HONE_E_FORMAT, "UTF-8");
    b = with_key("a\xe2\x96", 3);
    REFUSE(b, HONE_E_FORMAT, "UTF-8");
    b = with_key("a\xe2\x96\x81", 4);
    ACCEPT(b);
    b = with_key("Odd Key-With.9 all/sorts", 24);
    ACCEPT(b);
    b = with_tensor("w\xff", 1, NE(8), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "w\\xff", "UTF-8");
    b = bb_head(3, 0, 2); /* values keep their bytes */
    bb_kv_str(&b, "general.name", "caf\xe9");
    bb_kv_array(&b, "tokens", 8, 1);
    bb_str(&b, "\xff\xfe");
    ACCEPT(b);
}

static void check_9(void **state)
{
    bb b = with_key("a\x1b[2Jb", 6);
    REFUSE(b, HONE_E_FORMAT, "a\\x1b[2Jb", "control");
    b = with_key("a\x7f", 2);
    REFUSE(b, HONE_E_FORMAT, "a\\x7f", "control");
    b = with_tensor("w\x1b[31m\n", 1, NE(7), 2, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "'w\\x1b[31m\\x0a'");
    char key[65536];
    memset(key, 'k', sizeof key);
    b = with_key(key, 65536);
    REFUSE(b, HONE_E_FORMAT, "65535");
    b = with_key(key, 65535);
    ACCEPT(b);
    key[256] = 0;
    b = with_tensor(key, 1, NE(8), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "255");
    key[255] = 0;
    b = with_tensor(key, 1, NE(8), 0, 0, 32);
    ACCEPT(b);
}

static void check_10(void **state)
{
    bb b = bb_head(3, 0, 3);
    bb_kv_u32(&b, "x.one", 1);
    bb_kv_u32(&b, "x.two", 1);
    bb_kv_str(&b, "x.one", "again");
    REFUSE(b, HONE_E_FORMAT, "duplicate", "'x.one'", "entry 2", "entry 0");
    b = bb_head(3, 0, 2);
    bb_kv_u32(&b, "general.alignment", 32);
    bb_kv_u32(&b, "general.alignment", 64);
    REFUSE(b, HONE_E_FORMAT, "duplicate", "'general.alignment'");
}

static void check_11(void **state)
{
    bb b = bb_head(3, 2, 0);
    bb_tensor(&b, "blk.0.w", 1, NE(8), 0, 0);
    bb_tensor(&b, "blk.0.w", 1, NE(8), 0, 32);
    bb_pad(&b, 32);
    bb_raw(&b, NULL, 64);
    REFUSE(b, HONE_E_FORMAT, "duplicate", "'blk.0.w'", "tensor 1");
}

/* A file of n keys and as many tensors, from back to front. */
static bb many_names(size_t n)
{
    bb b = bb_head(3, n, n);
    char name[32];
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "key.%zu", i);
        bb_kv_u32(&b, name, 1);
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "blk.%zu.w", i);
        bb_tensor(&b, name, 1, NE(8), 0, (uint64_t)(n - 1 - i) * 32);
    }
    bb_pad(&b, 32);
    bb_raw(&b, NULL, n * 32);
    return b;
}

/* Parses many names and finds each of them. */
static void find_every_name(void *arg, size_t n)
{
    bb b = many_names(n);
    hn_gguf *g;
    hone_error err;
    char name[32];
    bool *good = arg;
    if (hn_gguf_parse(&g, b.p, b.n, "many", &err) != HONE_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "blk.%zu.w", i);
        *good = *good && hn_gguf_find_tensor(g, name) == hn_gguf_tensor_at(g, (uint64_t)i);
        snprintf(name, sizeof name, "key.%zu", i);
        *good = *good && hn_gguf_find(g, name) == (int64_t)i;
    }
    snprintf(name, sizeof name, "blk.%zu.w", n);
    *good = *good && !hn_gguf_find_tensor(g, name) && hn_gguf_find(g, "key.") == -1;
    hn_gguf_close(g);
    bb_free(&b);
}

static void check_12(void **state)
{
    /* the work of 65,000 keys and as many tensor names grows as their number; and the hash is SipHash-2-4,
     * whose reference vector (key 00..0f, bytes 00..0e) says a129ca6149be45e5 */
    const uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
    unsigned char m[15];
    for (int i = 0; i < 15; i++) m[i] = (unsigned char)i;
    assert_true(hn_siphash(key, m, 15) == 0xa129ca6149be45e5);
    assert_true(hn_siphash(key, m, 0) == 0x726fdb47dd0e0e31);
    assert_true(hn_siphash(key, m, 8) == 0x93f5f5799a932462);
    bool good = true;
    assert_true(grows_as_input("names of keys and tensors", find_every_name, &good, 1000, 65000));
    assert_true(good);
}

/* ---- values ----------------------------------------------------------------------------------- */

static void check_13(void **state)
{
    static const uint32_t bad[] = { 13, 14, 255, 256, 0x80000000, 0xFFFFFFFF };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char num[32];
        snprintf(num, sizeof num, "type %u,", bad[i]);
        bb b = bb_head(3, 0, 1);
        bb_kv(&b, "odd.key", bad[i], 0, 8);
        REFUSE(b, HONE_E_FORMAT, "'odd.key'", "value", num, "0 to 12");
        b = bb_head(3, 0, 1);
        bb_kv_array(&b, "odd.array", bad[i], 0);
        REFUSE(b, HONE_E_FORMAT, "'odd.array'", "element", num, "0 to 12");
    }
}

static void check_14(void **state)
{
    static const uint32_t types[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    static const uint64_t counts[] = { UINT64_MAX,        (uint64_t)1 << 63, (uint64_t)1 << 62,
                                       (uint64_t)1 << 61, (uint64_t)1 << 32, 1000 };
    for (size_t i = 0; i < 13; i++)
        for (size_t j = 0; j < 6; j++) {
            char num[48];
            snprintf(num, sizeof num, "array of %llu %s", (unsigned long long)counts[j], hn_gguf_type_name(types[i]));
            bb b = bb_head(3, 0, 1);
            bb_kv_array(&b, "big.array", types[i], counts[j]);
            bb_raw(&b, NULL, 64);
            REFUSE(b, HONE_E_FORMAT, "'big.array'", num);
        }
    bb b = bb_head(3, 0, 1);
    bb_kv_array(&b, "big.array", 0, (1 << 24) + 1);
    bb_raw(&b, NULL, (1 << 24) + 1);
    REFUSE(b, HONE_E_FORMAT, "'big.array'", "16777217", "at most 16777216");
    b = bb_head(3, 0, 1);
    bb_kv_array(&b, "big.array", 0, 1 << 24);
    bb_raw(&b, NULL, 1 << 24);
    ACCEPT(b);
    b = bb_head(3, 0, 1);
    bb_kv_array(&b, "no.array", 8, 0);
    ACCEPT(b);
}

static bb nested(int depth)
{
    bb b = bb_head(3, 0, 1);
    bb_kv_array(&b, "deep", depth > 1 ? 9 : 4, 1);
    for (int i = 2; i <= depth; i++) {
        bb_u32(&b, i < depth ? 9 : 4);
        bb_u64(&b, 1);
    }
    bb_u32(&b, 7);
    return b;
}

static void check_15(void **state)
{
    bb b;
    for (int d = 1; d <= 4; d++) {
        b = nested(d);
        ACCEPT(b);
    }
    b = nested(5);
    REFUSE(b, HONE_E_FORMAT, "'deep'", "nested more than 4");
    b = nested(100000);
    REFUSE(b, HONE_E_FORMAT, "'deep'", "nested more than 4");
}

static void check_16(void **state)
{
    bb b = bb_head(3, 0, 1);
    bb_kv(&b, "is.it", 7, 2, 1);
    REFUSE(b, HONE_E_FORMAT, "'is.it'", "bool byte is 2", "0 or 1");
    b = bb_head(3, 0, 1);
    bb_kv_array(&b, "are.they", 7, 3);
    bb_raw(&b, "\0\1\377", 3);
    REFUSE(b, HONE_E_FORMAT, "'are.they'", "bool byte is 255");
}

static hn_gguf *parse_kept(bb *b)
{
    hn_gguf *g;
    hone_error err = { 0 };
    if (hn_gguf_parse(&g, b->p, b->n, "conf.gguf", &err) != HONE_OK) fail_msg("refused: %s", err.message);
    return g;
}
#define WANT(call, ...)                                                                                  \
    do {                                                                                                 \
        hone_error err = { 0 };                                                                          \
        assert_int_equal((call), HONE_E_FORMAT);                                                         \
        for (const char *const *t_ = (const char *const[]){ "conf.gguf", __VA_ARGS__, NULL }; *t_; t_++) \
            if (!strstr(err.message, *t_)) fail_msg("'%s' not in: %s", *t_, err.message);                \
    } while (0)

static void check_17(void **state)
{
    bb b = bb_head(3, 0, 5);
    bb_kv_str(&b, "a.str", "x\x1b");
    bb_kv_array(&b, "a.arr", 4, 2);
    bb_u32(&b, 1), bb_u32(&b, 2);
    bb_kv_u32(&b, "a.int", 7);
    bb_kv(&b, "a.f32", 6, 0x3f800000, 4);
    bb_kv(&b, "a.bool", 7, 1, 1);
    hn_gguf *g = parse_kept(&b);
    uint32_t u = 99;
    float f = 99;
    bool t = false, found = true;
    hone_str s;
    hn_gguf_array a;
    WANT(hn_gguf_get_u32(g, "a.str", &u, NULL, &err), "'a.str'", "string 'x\\x1b'", "integer");
    WANT(hn_gguf_get_u32(g, "a.arr", &u, NULL, &err), "'a.arr'", "array of 2 u32", "integer");
    WANT(hn_gguf_get_u32(g, "a.f32", &u, NULL, &err), "'a.f32'", "f32 1", "integer");
    WANT(hn_gguf_get_u32(g, "a.bool", &u, NULL, &err), "'a.bool'", "bool true", "integer");
    WANT(hn_gguf_get_f32(g, "a.str", &f, NULL, &err), "'a.str'", "f32");
    WANT(hn_gguf_get_f32(g, "a.int", &f, NULL, &err), "'a.int'", "u32 7", "f32");
    WANT(hn_gguf_get_bool(g, "a.int", &t, NULL, &err), "'a.int'", "u32 7", "bool");
    WANT(hn_gguf_get_str(g, "a.int", &s, NULL, &err), "'a.int'", "u32 7", "string");
    WANT(hn_gguf_get_array(g, "a.int", &a, NULL, &err), "'a.int'", "u32 7", "array");
    assert_int_equal(hn_gguf_get_u32(g, "a.none", &u, &found, NULL), HONE_OK);
    assert_true(!found && u == 99 && f == 99);
    hn_gguf_close(g);
    bb_free(&b);
}

static void check_18(void **state)
{
    static const struct {
        const char *key;
        uint32_t type;
        uint64_t v;
        int size;
    } ints[] = {
        { "n.i8", 1, 0xFF, 1 },
        { "n.i16", 3, 0xFFFF, 2 },
        { "n.i32", 5, 0xFFFFFFFF, 4 },
        { "n.i64", 11, UINT64_MAX, 8 },
        { "n.u64", 10, (uint64_t)1 << 63, 8 },
        { "n.2^32", 10, (uint64_t)1 << 32, 8 },
        { "n.max", 11, INT64_MAX, 8 },
    };
    bb b = bb_head(3, 0, 7 + 4);
    for (int i = 0; i < 7; i++) bb_kv(&b, ints[i].key, ints[i].type, ints[i].v, ints[i].size);
    bb_kv(&b, "f.nan", 6, 0x7FC00000, 4);
    bb_kv(&b, "f.inf", 6, 0x7F800000, 4);
    bb_kv(&b, "f.ninf", 12, 0xFFF0000000000000, 8);
    bb_kv(&b, "f.huge", 12, 0x7FE0000000000000, 8); /* finite, but not as f32 */
    hn_gguf *g = parse_kept(&b);
    uint32_t u;
    float f;
    for (int i = 0; i < 7; i++)
        WANT(hn_gguf_get_u32(g, ints[i].key, &u, NULL, &err), ints[i].key, "from 0 to 4294967295");
    WANT(hn_gguf_get_u32(g, "n.i32", &u, NULL, &err), "i32 -1");
    WANT(hn_gguf_get_u32(g, "n.u64", &u, NULL, &err), "u64 9223372036854775808");
    WANT(hn_gguf_get_f32(g, "f.nan", &f, NULL, &err), "'f.nan'", "nan", "finite");
    WANT(hn_gguf_get_f32(g, "f.inf", &f, NULL, &err), "'f.inf'", "inf", "finite");
    WANT(hn_gguf_get_f32(g, "f.ninf", &f, NULL, &err), "'f.ninf'", "-inf", "finite");
    WANT(hn_gguf_get_f32(g, "f.huge", &f, NULL, &err), "'f.huge'", "finite");
    hn_gguf_close(g);
    bb_free(&b);
}

static void check_19(void **state)
{
    /* per-layer arrays: the reader's part is that type and count can be asked before use; the
     * comparison with block_count belongs to the model */
    bb b = bb_head(3, 0, 1);
    bb_kv_array(&b, "llama.attention.head_count", 5, 3);
    bb_u32(&b, 8), bb_u32(&b, 4), bb_u32(&b, 2);
    hn_gguf *g = parse_kept(&b);
    hn_gguf_array a;
    bool found;
    assert_int_equal(hn_gguf_get_array(g, "llama.attention.head_count", &a, &found, NULL), HONE_OK);
    assert_true(found && a.count == 3 && a.elem_type == HONE_KV_I32 && a.n_bytes == 12);
    hn_gguf_close(g);
    bb_free(&b);
}

static void check_20(void **state)
{
    static const uint32_t bad[] = { 0, 1, 4, 7, 33, 48, 131072, 0x80000000, 0xFFFFFFFF };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char num[32];
        snprintf(num, sizeof num, "u32 %u,", bad[i]);
        bb b = bb_head(3, 0, 1);
        bb_kv_u32(&b, "general.alignment", bad[i]);
        REFUSE(b, HONE_E_FORMAT, "general.alignment", num, "power of two");
    }
    bb b = bb_head(3, 0, 1);
    bb_kv(&b, "general.alignment", 10, 32, 8);
    REFUSE(b, HONE_E_FORMAT, "general.alignment", "u64 32", "u32");
    b = bb_head(3, 0, 1);
    bb_kv_str(&b, "general.alignment", "32");
    REFUSE(b, HONE_E_FORMAT, "general.alignment", "string '32'", "u32");
    b = bb_head(3, 0, 1);
    bb_kv_array(&b, "general.alignment", 4, 1);
    bb_u32(&b, 32);
    REFUSE(b, HONE_E_FORMAT, "general.alignment", "array");
    for (uint32_t a = 8; a <= 65536; a *= 2) {
        b = bb_head(3, 0, 1);
        bb_kv_u32(&b, "general.alignment", a);
        ACCEPT(b);
    }
}

/* ---- tensor descriptors --------------------------------------------------------------------------- */

static void check_21(void **state)
{
    bb b = with_tensor("w", 5, NE(1, 1, 1, 1, 1), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "'w'", "5 dimensions", "at most 4");
    b = bb_head(3, 1, 0);
    bb_str(&b, "w");
    bb_u32(&b, 0xFFFFFFFF);
    bb_raw(&b, NULL, 64);
    REFUSE(b, HONE_E_FORMAT, "'w'", "4294967295 dimensions");
    b = with_tensor("w", 0, NULL, 0, 0, 4); /* a scalar: one element */
    hn_gguf *g = parse_kept(&b);
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "w");
    assert_true(t && t->n_dim == 1 && t->ne[0] == 1 && t->ne[3] == 1 && t->n_bytes == 4);
    hn_gguf_close(g);
    bb_free(&b);
}

static void check_22(void **state)
{
    bb b;
    b = with_tensor("w", 2, NE(8, 0), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "'w'", "dimension 1 is 0");
    b = with_tensor("w", 1, NE((uint64_t)1 << 63), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "'w'", "dimension 0 is 9223372036854775808");
    b = with_tensor("w", 1, NE(UINT64_MAX), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "'w'", "18446744073709551615");
    b = with_tensor("w", 1, NE(((uint64_t)1 << 40) + 8), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "'w'", "at most 1099511627776");
    b = with_tensor("w", 2, NE((uint64_t)1 << 32, (uint64_t)1 << 32), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "'w'", "[4294967296, 4294967296]", "too many elements");
    b = with_tensor("w", 4, NE((uint64_t)1 << 40, (uint64_t)1 << 40, (uint64_t)1 << 40, (uint64_t)1 << 40), 0, 0, 32);
    REFUSE(b, HONE_E_FORMAT, "'w'", "too many elements");
    b = with_tensor("w", 4, NE((uint64_t)1 << 16, (uint64_t)1 << 16, (uint64_t)1 << 16, (uint64_t)1 << 16), 0, 0,
                    32); /* product is 2^64: wraps to 0 */
    REFUSE(b, HONE_E_FORMAT, "'w'", "too many elements");
    b = with_tensor("w", 2, NE((uint64_t)1 << 40, 256), 0, 0, 32); /* as large as allowed: only the file is too short */
    REFUSE(b, HONE_E_FORMAT, "'w'", "1125899906842624 bytes", "missing");
}

static void check_23(void **state)
{
    static const uint32_t bad[] = { 4,  5,   31,  32,  33,  36,  37,  38,    43,         44,         90,
                                    97, 133, 137, 144, 202, 399, 400, 65535, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char num[32];
        snprintf(num, sizeof num, "type %u (", bad[i]);
        bb b = with_tensor("blk.0.w", 1, NE(256), bad[i], 0, 2048);
        REFUSE(b, HONE_E_UNSUPPORTED, "'blk.0.w'", num);
    }
    /* every id that is not refused has a row whose numbers can be used */
    for (uint32_t id = 0; id < 512; id++) {
        const hn_type_info *ti = hn_type_get(id);
        if (ti) assert_true(ti->block_elems > 0 && ti->block_bytes > 0 && ti->dequantize);
        else assert_non_null(hn_type_why_not(id));
    }
}

static void check_24(void **state)
{
    bb b;
    b = with_tensor("w", 1, NE(31), 2, 0, 64);
    REFUSE(b, HONE_E_FORMAT, "'w'", "rows of 31", "Q4_0", "32");
    b = with_tensor("w", 2, NE(128, 2), 12, 0, 512);
    REFUSE(b, HONE_E_FORMAT, "'w'", "rows of 128", "Q4_K", "256");
    b = with_tensor("w", 0, NULL, 8, 0, 64);
    REFUSE(b, HONE_E_FORMAT, "'w'", "rows of 1 ", "Q8_0");
}

static void check_25(void **state)
{
    bb b;
    b = with_tensor("w", 1, NE(8), 0, 1, 64);
    REFUSE(b, HONE_E_FORMAT, "'w'", "offset 1 ", "alignment 32");
    b = with_tensor("w", 1, NE(8), 0, 16, 64);
    REFUSE(b, HONE_E_FORMAT, "'w'", "offset 16", "alignment 32");
    b = bb_head(3, 1, 1);
    bb_kv_u32(&b, "general.alignment", 64);
    bb_tensor(&b, "w", 1, NE(8), 0, 32);
    bb_pad(&b, 64);
    bb_raw(&b, NULL, 128);
    REFUSE(b, HONE_E_FORMAT, "'w'", "offset 32", "alignment 64");
    b = with_tensor("w", 1, NE(8), 0, 32, 64); /* a gap is fine */
    ACCEPT(b);
}

static void check_26(void **state)
{
    bb b;
    b = with_tensor("w", 1, NE(8), 0, UINT64_MAX - 31, 64);
    REFUSE(b, HONE_E_FORMAT, "'w'", "18446744073709551584", "beyond any file");
    b = with_tensor("w", 1, NE(8), 0, (uint64_t)1 << 62, 64);
    REFUSE(b, HONE_E_FORMAT, "'w'", "32 of them missing");
    b = with_tensor("w", 1, NE(8), 0, 64, 64);
    REFUSE(b, HONE_E_FORMAT, "'w'", "32 of them missing");
    b = with_tensor("w", 1, NE(8), 0, 0, 31);
    REFUSE(b, HONE_E_FORMAT, "'w'", "1 of them missing", "cut short by 1,");
    b = with_tensor("w", 1, NE(8), 0, 0, 32);
    ACCEPT(b);
    b = bb_head(3, 2, 0); /* the later tensors are missing as well */
    bb_tensor(&b, "first", 1, NE(8), 0, 0);
    bb_tensor(&b, "second", 1, NE(100), 0, 32);
    bb_pad(&b, 32);
    bb_raw(&b, NULL, 20);
    REFUSE(b, HONE_E_FORMAT, "'first'", "12 of them missing", "cut short by 412");
}

static void check_27(void **state)
{
    bb b = bb_head(3, 3, 0);
    bb_tensor(&b, "late", 1, NE(8), 0, 64);
    bb_tensor(&b, "long", 1, NE(9), 0, 0);
    bb_tensor(&b, "struck", 1, NE(8), 0, 32);
    bb_pad(&b, 32);
    bb_raw(&b, NULL, 128);
    REFUSE(b, HONE_E_FORMAT, "'long'", "36 bytes", "overlap", "'struck'");
    b = bb_head(3, 2, 0);
    bb_tensor(&b, "a", 1, NE(8), 0, 0);
    bb_tensor(&b, "b", 1, NE(8), 0, 0);
    bb_pad(&b, 32);
    bb_raw(&b, NULL, 64);
    REFUSE(b, HONE_E_FORMAT, "'a'", "overlap", "'b'");
    b = bb_head(3, 3, 0); /* any order and gaps are fine */
    bb_tensor(&b, "c", 1, NE(8), 0, 128);
    bb_tensor(&b, "a", 1, NE(8), 0, 0);
    bb_tensor(&b, "b", 1, NE(9), 0, 32);
    bb_pad(&b, 32);
    bb_raw(&b, NULL, 160);
    ACCEPT(b);
    b = bb_head(3, 2, 0); /* type 42 as a fork wrote it: 34 bytes for 128 */
    bb_tensor(&b, "a", 1, NE(4096), 42, 0);
    bb_tensor(&b, "b", 1, NE(4096), 42, 1088);
    bb_pad(&b, 32);
    bb_raw(&b, NULL, 2176);
    REFUSE(b, HONE_E_UNSUPPORTED, "'a'", "type 42", "fork");
}

static void check_28(void **state)
{
    bb b = bb_head(3, 1, 0);
    bb_tensor(&b, "w", 1, NE(8), 0, 0); /* ends here: not even the padding */
    REFUSE(b, HONE_E_FORMAT, "'w'", "32 of them missing");
    b = bb_head(3, 1, 1);
    bb_kv_u32(&b, "general.alignment", 65536);
    bb_tensor(&b, "w", 1, NE(8), 0, 0);
    bb_raw(&b, NULL, 1000);
    REFUSE(b, HONE_E_FORMAT, "'w'", "32 of them missing", "at least 65568");
}

/* ---- tensor contents ------------------------------------------------------------------------------- */

static void check_42(void **state)
{
    static const struct {
        uint32_t type;
        uint64_t n;
        size_t bytes, at;
        const char *bad;
        size_t n_bad;
        const char *want;
    } c[] = {
        { 0, 8, 32, 12, "\0\0\300\177", 4, "element 3 is" }, /* F32 NaN */
        { 0, 8, 32, 28, "\0\0\200\377", 4, "element 7 is -inf" },
        { 1, 8, 16, 4, "\0\174", 2, "element 2 is inf" },    /* F16 */
        { 30, 8, 16, 4, "\200\177", 2, "element 2 is inf" }, /* BF16 */
        { 28, 4, 32, 8, "\0\0\0\0\0\0\360\177", 8, "element 1 is inf" },
        { 2, 64, 36, 18, "\0\174", 2, "element 32" },  /* Q4_0, scale of the second block */
        { 12, 256, 144, 2, "\1\176", 2, "element 0" }, /* Q4_K, dmin */
        { 39, 64, 34, 17, "\377", 1, "exponent byte of block 1 is 255" },
        { 15, 256, 292, 0, "\0\0\300\177", 4, "element 0" }, /* Q8_K */
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        for (int spoil = 0; spoil < 2; spoil++) {
            bb b = with_tensor("blk.0.w", 1, NE(c[i].n), c[i].type, 0, c[i].bytes);
            memset(b.p + b.n - c[i].bytes, 1, c[i].bytes);
            if (spoil) memcpy(b.p + b.n - c[i].bytes + c[i].at, c[i].bad, c[i].n_bad);
            hn_gguf *g = parse_kept(&b);
            hone_error err = { 0 };
            hone_status st = hn_gguf_check_data(g, &err);
            if (st != (spoil ? HONE_E_NUMERIC : HONE_OK))
                fail_msg("case %zu, spoilt %d: %s %s", i, spoil, hone_status_name(st), err.message);
            if (spoil && (!strstr(err.message, c[i].want) || !strstr(err.message, "'blk.0.w'")))
                fail_msg("case %zu: %s", i, err.message);
            hn_gguf_close(g);
            bb_free(&b);
        }
    }
}

#include "gguf_hostile_files.h"

/* ---- the list -------------------------------------------------------------------------------------------------- */

static const struct {
    int n;
    const char *what;
    CMUnitTestFunction fn;
    const char *room;
} list[] = {
    { 1, "short, empty, directory, pipe, device", check_1, NULL },
    { 2, "wrong magic, named", check_2, NULL },
    { 3, "version, byte order", check_3, NULL },
    { 4, "absurd counts", check_4, NULL },
    { 5, "string lengths", check_5, NULL },
    { 6, "empty key or name", check_6, NULL },
    { 7, "embedded NUL", check_7, NULL },
    { 8, "invalid UTF-8", check_8, NULL },
    { 9, "control bytes, escaped in messages; lengths of names", check_9, NULL },
    { 10, "duplicate keys", check_10, NULL },
    { 11, "duplicate tensor names", check_11, NULL },
    { 12, "quadratic work", check_12, NULL },
    { 13, "unknown value type", check_13, NULL },
    { 14, "array counts", check_14, NULL },
    { 15, "nesting", check_15, NULL },
    { 16, "bool bytes", check_16, NULL },
    { 17, "type confusion", check_17, NULL },
    { 18, "sign and range, non-finite floats", check_18, NULL },
    { 19, "per-layer arrays (length against block_count: model)", check_19, NULL },
    { 20, "general.alignment", check_20, NULL },
    { 21, "number of dimensions", check_21, NULL },
    { 22, "dimensions and their product", check_22, NULL },
    { 23, "type ids", check_23, NULL },
    { 24, "rows and blocks", check_24, NULL },
    { 25, "offset alignment", check_25, NULL },
    { 26, "offset range, missing bytes", check_26, NULL },
    { 27, "overlap; type 42 of a fork", check_27, NULL },
    { 28, "data section beyond the end", check_28, NULL },
    { 29, "unknown and missing tensor names", NULL, "model" },
    { 30, "shapes against hyper-parameters", NULL, "model" },
    { 31, "type against role", NULL, "model" },
    { 32, "hyper-parameter limits", NULL, "model" },
    { 33, "divisibility", NULL, "model" },
    { 34, "expert counts", NULL, "model" },
    { 35, "ranks and lengths", NULL, "model" },
    { 36, "rope scaling type", NULL, "model" },
    { 37, "scores and token types", NULL, "text" },
    { 38, "special ids", NULL, "text" },
    { 39, "tokens and merges", NULL, "text" },
    { 40, "token type values", NULL, "text" },
    { 41, "chat templates", NULL, "text" },
    { 42, "tensor contents", check_42, NULL },
    { 43, "changed while mapped (cut short: documented)", check_43_44, NULL },
    { 44, "read once", check_43_44, NULL },
    { 45, "sparse and huge files", check_45, NULL },
    { 46, "split sets", check_46, NULL },
    { 47, "amplification", check_47, NULL },
};
enum { N = sizeof list / sizeof *list };
_Static_assert(N == 47, "one row per check");

int main(void)
{
    if (!mkdtemp(dir)) return 1;
    struct CMUnitTest t[N];
    size_t n = 0;
    for (int i = 0; i < N; i++) {
        if (list[i].n != i + 1) return 1;
        char *name = malloc(100);
        snprintf(name, 100, "%d: %s", list[i].n, list[i].what);
        if (list[i].fn) t[n++] = (struct CMUnitTest){ .name = name, .test_func = list[i].fn };
        else {
            printf("check %s: tested by the %s room\n", name, list[i].room);
            free(name);
        }
    }
    int r = _cmocka_run_group_tests("gguf_hostile", t, n, NULL, NULL);
    for (size_t i = 0; i < n; i++) free((void *)(uintptr_t)t[i].name);
    char cmd[64];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    if (system(cmd) != 0) return 1;
    return r;
}
