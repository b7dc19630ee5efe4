/* Archives by torch.save: what is read of them, in each layout of the archive and of tensors in their storages; and
 * what is refused, by what word. All files are made here. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fuzz/torch_bytes.h"
#include "model/ckpt.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[96];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/hone-torch-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/m.bin", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void put(const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* NULL: it was refused, and the reason is in err. */
static hn_ckpt *opened(const void *p, size_t n, bool takes_raw, hone_error *err)
{
    hn_ckpt *c;
    int32_t part;
    put(p, n);
    assert_int_equal(hn_ckpt_new(&c, path, err), HONE_OK);
    c->takes_raw = takes_raw;
    assert_int_equal(hn_ckpt_add_part(c, path, &part, err), HONE_OK);
    if (hn_torch_read(c, part, err) == HONE_OK) return c;
    hn_ckpt_free(c);
    return NULL;
}

static hn_ckpt *read_pickle(const void *pickle, size_t n, unsigned how)
{
    hone_error err = { 0 };
    tb_bytes b = tb_dict(pickle, n, how);
    hn_ckpt *c = opened(b.p, b.n, false, &err);
    free(b.p);
    if (!c) fail_msg("%s", err.message);
    return c;
}

/* Storages count up byte by byte: the first bytes of the tensor's elements tell where they lie. */
static void assert_tensor(const hn_ckpt *c, const char *name, const char *shape, hn_type type, const char *first)
{
    unsigned char data[64];
    hone_error err = { 0 };
    const hn_ckpt_tensor *t = hn_ckpt_find(c, name, strlen(name));
    uint64_t each = hn_type_get(type)->block_bytes;
    assert_non_null(t);
    assert_string_equal(HN_SHAPE(t), shape);
    assert_int_equal(t->type, type);
    assert_int_equal(t->n_bytes, each * strlen(first));
    assert_int_equal(hn_source_read(&c->part[t->part], t->off, data, t->n_bytes, &err), HONE_OK);
    for (size_t i = 0; first[i]; i++) {
        assert_int_equal(data[each * i], each * (uint64_t)(first[i] - 'a'));
        for (size_t k = 1; k < each; k++) assert_int_equal(data[each * i + k], data[each * i] + k);
    }
}

#define READ(pickle, how) read_pickle(TB_BYTES(pickle), how)
#define DICT(items) "\x80\2}" items "."
/* "name": tensor; first, shape, strides as they are pushed */
#define ITEM(n, name, storage, first, shape, strides) \
    TB_TEXT(n, name) TB_TENSOR "(" storage first shape strides TB_HOOKS "tRs"
#define F32(key) TB_STORAGE("FloatStorage", key, "K\x10")

static void test_layouts(void **state)
{
    (void)state;
    for (unsigned how = 0; how <= TB_WIDE; how++) {
        hn_ckpt *c = READ(TB_GOOD, how);
        assert_int_equal(c->n, 1);
        assert_tensor(c, "w", "[2, 3]", HN_F32, "bcdefg");
        hn_ckpt_free(c);
    }
}

static void test_tensors(void **state)
{
    (void)state;
    hn_ckpt *c = READ(
        DICT(ITEM("\1", "a", F32("0"), "K\0", "K\2K\3\x86", "K\1K\2\x86")      /* turned */
             ITEM("\1", "b", F32("0"), "K\0", "K\2K\3\x86", "K\3K\1\x86")      /* the same storage */
             ITEM("\1", "c", F32("1"), "K\1", "K\3K\1K\2\x87", "K\4KcK\2\x87") /* every second, steps of one */
             ITEM("\1", "d", F32("2"), "K\5", ")", ")")                        /* a scalar */
             ITEM("\1", "e", F32("2"), "K\0", "K\0K\3\x86", "K\3K\1\x86")      /* nothing */
             ITEM("\1", "f", TB_STORAGE("HalfStorage", "2", "K\x20"), "K\3", "K\4\x85",
                  "K\1\x85") ITEM("\1", "g", TB_STORAGE("BFloat16Storage", "2", "M\x10\0"), "K\0", "K\2\x85", "K\1\x85")
                 ITEM("\1", "h", TB_STORAGE("DoubleStorage", "1", "J\x08\0\0\0"), "\x8a\1\1", "K\2\x85", "K\1\x85")),
        0);
    assert_int_equal(c->n, 8);
    assert_tensor(c, "a", "[2, 3]", HN_F32, "acebdf");
    assert_tensor(c, "b", "[2, 3]", HN_F32, "abcdef");
    assert_tensor(c, "c", "[3, 1, 2]", HN_F32, "bdfhjl");
    assert_tensor(c, "d", "[]", HN_F32, "f");
    assert_tensor(c, "e", "[0, 3]", HN_F32, "");
    assert_tensor(c, "f", "[4]", HN_F16, "defg");
    assert_tensor(c, "g", "[2]", HN_BF16, "ab");
    assert_tensor(c, "h", "[2]", HN_F64, "bc");
    hn_ckpt_free(c);
}

/* Protocol 4 with frames and a memo; an OrderedDict with state; a parameter; lists, numbers and nothing on the way. */
static void test_instructions(void **state)
{
    (void)state;
    hn_ckpt *c =
        READ("\x80\4\x95\x07\0\0\0\0\0\0\0\x8c\x0b"
             "collections\x94\x8c\x0b"
             "OrderedDict\x93)Rq\1(" TB_TEXT("\1", "w") "ctorch._utils\n_rebuild_parameter\n(" TB_TENSOR "(" F32(
                 "0") "K\2(K\1tr\2\0\0\0j\2\0\0\0\x89)tR"
                      "\x88](NG\0\0\0\0\0\0\0\0eKaatRu}" TB_TEXT("\1", "v") "h\2sb.",
             0);
    assert_int_equal(c->n, 1);
    assert_tensor(c, "w", "[1]", HN_F32, "c");
    hn_ckpt_free(c);
}

static void test_raw(void **state)
{
    hone_error err = { 0 };
    (void)state;
    static const char pickle[] =
        DICT(ITEM("\1", "w", TB_STORAGE("ByteStorage", "0", "K\x40"), "K\0", "K\4\x85", "K\1\x85"));
    tb_bytes b = tb_dict(TB_BYTES(pickle), 0);
    assert_null(opened(b.p, b.n, false, &err));
    assert_non_null(strstr(err.message, "U8"));
    hn_ckpt *c = opened(b.p, b.n, true, &err);
    assert_non_null(c);
    assert_int_equal(c->t[0].raw, HN_RAW_U8);
    hn_ckpt_free(c);
    free(b.p);
}

/* ---- what is refused --------------------------------------------------------------------------------- */

typedef struct bad_case {
    const char *pickle;
    size_t n;
    const char *word;
} bad_case;

static void assert_refused(const void *p, size_t n, const char *word)
{
    hone_error err = { 0 };
    hn_ckpt *c = opened(p, n, false, &err);
    if (c) fail_msg("read, expected \"%s\"", word);
    if (!strstr(err.message, word) || !strstr(err.message, path)) fail_msg("%s: expected \"%s\"", err.message, word);
}

static void test_bad_pickles(void **state)
{
    (void)state;
    static const bad_case all[] = {
        { TB_BYTES("\x80\2cos\nsystem\n" TB_TEXT("\4", "true") "\x85R."), "names os.system" },
        { TB_BYTES("\x80\4\x8c\2os\x8c\6system\x93."), "names os.system" },
        { TB_BYTES("\x80\2cbuiltins\neval\n."), "names builtins.eval" },
        { TB_BYTES("\x80\2ctorch\nload\n."), "names torch.load" },
        { TB_BYTES("\x80\2ctorch\nFloatStorage\n)R."), "hone calls nothing" },
        { TB_BYTES("\x80\2K\1)R."), "calls a whole number" },
        { TB_BYTES("\x80\2}}b}R."), "calls a dictionary" },
        { TB_BYTES("\x80\2]}b."), "state of a list" },
        { TB_BYTES("\x80\2."), "ends with another stack" },
        { TB_BYTES("\x80\2}}."), "ends with another stack" },
        { TB_BYTES("\x80\2]."), "ends with a list" },
        { TB_BYTES("\x80\2}"), "expected 1: truncated?" },
        { TB_BYTES("\x80\2}.x"), "1 bytes follow" },
        { TB_BYTES("\x80\2}."), "no tensor" },
        { TB_BYTES("\x80\1}."), "protocol 1" },
        { TB_BYTES("\x80\4\x95\xff\xff\xff\xff\xff\xff\xff\xff}."), "a frame of" },
        { TB_BYTES("\x80\2Xaaaa}."), "truncated" },
        { TB_BYTES("\x80\2r\1\0\0\0."), "missing on the stack" },
        { TB_BYTES("\x80\2}r\xff\xff\xff\xff."), "expected the next one, 0" },
        { TB_BYTES("\x80\2h\0."), "expected one of the 0 kept" },
        { TB_BYTES("\x80\2t."), "no mark" },
        { TB_BYTES("\x80\2(\x85."), "missing on the stack" },
        { TB_BYTES("\x80\2K\1K\2K\3s."), "sets a member of a whole number" },
        { TB_BYTES("\x80\2}(K\1u."), "a key without a value" },
        { TB_BYTES("\x80\2}K\1a."), "appends to a dictionary" },
        { TB_BYTES("\x80\2}K\1K\2s."), "key is a whole number" },
        { TB_BYTES("\x80\2}" TB_TEXT("\1", "w") "K\2s."), "\"w\" is a whole number" },
        { TB_BYTES("\x80\2}" TB_TEXT("\1", "w") "}s."), "state_dict" },
        { TB_BYTES("\x80\2\x8a\x09"
                   "aaaaaaaaa."),
          "at most 8" },
        { TB_BYTES("\x80\2)Q."), "refers to a tuple" },
        { TB_BYTES("\x80\2(" TB_TEXT("\7", "storagE") "ctorch\nFloatStorage\n" TB_TEXT("\1", "0") "NK\1tQ."),
          "refers to" },
        { TB_BYTES(TB_TENSOR ")R."), "a tensor of other parts" },
        { TB_BYTES("\x80\2ccollections\nOrderedDict\nK\1\x85R."), "made of 1 values" },
        { TB_BYTES(DICT(ITEM("\1", "w", F32("3"), "K\0", "K\1\x85", "K\1\x85"))), "data/3, is missing" },
        { TB_BYTES(DICT(ITEM("\1", "w", TB_STORAGE("FloatStorage", "0", "K\x11"), "K\0", "K\1\x85", "K\1\x85"))),
          "has 64 bytes" },
        { TB_BYTES(DICT(ITEM("\1", "w", TB_STORAGE("FloatStorage", "0", "\x8a\x08\1\0\0\0\0\0\0\x40"), "K\0", "K\1\x85",
                             "K\1\x85"))),
          "has 64 bytes" },
        { TB_BYTES(DICT(ITEM("\1", "w", F32("0"), "K\0", "K\x11\x85", "K\1\x85"))), "beyond its storage" },
        { TB_BYTES(DICT(ITEM("\1", "w", F32("0"), "K\x0e", "K\3\x85", "K\1\x85"))), "beyond its storage" },
        { TB_BYTES(
              DICT(ITEM("\1", "w", F32("0"), "K\0", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\4\x86", "K\4K\1\x86"))),
          "beyond its storage" },
        { TB_BYTES(DICT(ITEM("\1", "w", F32("0"), "K\0", "\x8a\x04\0\0\0\x40K\4\x86", "K\0K\1\x86"))), "contiguous" },
        { TB_BYTES(DICT(ITEM("\1", "w", F32("0"), "J\xff\xff\xff\xff", "K\1\x85", "K\1\x85"))), "other parts" },
        { TB_BYTES(DICT(ITEM("\1", "w", F32("0"), "K\0", "J\xff\xff\xff\xff\x85", "K\1\x85"))), "no whole numbers" },
        { TB_BYTES(DICT(ITEM("\1", "w", F32("0"), "K\0", "K\1\x85", ")"))), "other parts" },
        { TB_BYTES(
              DICT(ITEM("\1", "w", F32("0"), "K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t"))),
          "9 dimensions" },
        { TB_BYTES(DICT(ITEM("\1", "w", F32("0"), "K\0", "K\1\x85", "K\1\x85")
                            ITEM("\1", "w", F32("0"), "K\0", "K\1\x85", "K\1\x85"))),
          "there twice" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tb_bytes b = tb_dict(all[i].pickle, all[i].n, 0);
        assert_refused(b.p, b.n, all[i].word);
        free(b.p);
    }
}

/* Every byte as an instruction: those of the list do something else, all others are refused by their name. */
static void test_every_instruction(void **state)
{
    (void)state;
    static const char known[] = "\x80\x95.(Nc\x93XKMJG\x8a\x8c\x88\x89t)\x85\x86\x87]aeb}suqrhjQR\x94";
    for (int op = 0; op < 256; op++) {
        unsigned char pickle[] = { 0x80, 2, (unsigned char)op, '}', '.' };
        if (memchr(known, op, sizeof known - 1)) continue;
        tb_bytes b = tb_dict(pickle, sizeof pickle, 0);
        assert_refused(b.p, b.n, "byte 2");
        assert_refused(b.p, b.n, "instruction");
        free(b.p);
    }
}

static void test_nesting(void **state)
{
    (void)state;
    char pickle[220] = "\x80\2)";
    memset(pickle + 3, (char)0x85, 200);
    tb_bytes b = tb_dict(pickle, 203, 0);
    assert_refused(b.p, b.n, "more than 64 tuples");
    free(b.p);
    size_t n = 1 << 17;
    char *deep = malloc(n);
    assert_non_null(deep);
    memset(deep, 'N', n);
    b = tb_dict(deep, n, 0);
    assert_refused(b.p, b.n, "more than 65536 values");
    free(b.p);
    free(deep);
}

static size_t place_of(const tb_bytes *b, const char *what, size_t n)
{
    unsigned char *p = memmem(b->p, b->n, what, n);
    assert_non_null(p);
    return (size_t)(p - b->p);
}

static void test_bad_archives(void **state)
{
    (void)state;
    static const struct {
        const char *at; /* four bytes, the first of their kind */
        int off, value;
        const char *word;
    } all[] = {
        { "PK\1\2", 8, 1, "encrypted" },
        { "PK\1\2", 10, 8, "compressed" },
        { "PK\1\2", 20, 1, "compressed" },
        { "PK\1\2", 24, 200, "compressed" },
        { "PK\1\2", 0, 0, "is none" },
        { "PK\1\2", 29, 4, "cut short" },
        { "PK\1\2", 42, 1, "another header" },
        { "PK\1\2", 46, '/', "leads elsewhere" },
        { "PK\1\2", 47, '\\', "no file has" },
        { "PK\1\2", 46, 'Y', "another header" },
        { "PK\3\4", 8, 8, "another header" },
        { "PK\3\4", 29, 255, "beyond the file" },
        { "PK\5\6", 4, 1, "several files" },
        { "PK\5\6", 10, 255, "members in a list" },
        { "PK\5\6", 15, 255, "list of members is said" },
        { "PK\5\6", 19, 255, "list of members is said" },
        { "PK\5\6", 20, 1, "truncated" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tb_bytes b = tb_dict(TB_BYTES(TB_GOOD), 0);
        b.p[place_of(&b, all[i].at, 4) + (size_t)all[i].off] = (unsigned char)all[i].value;
        assert_refused(b.p, b.n, all[i].word);
        free(b.p);
    }
    tb_bytes b = tb_dict(TB_BYTES(TB_GOOD), 0);
    for (size_t n = 0; n < b.n; n += 7) assert_refused(b.p, n, "");
    /* the second member where the first is */
    size_t first = place_of(&b, "PK\1\2", 4), second = first + 46 + strlen("X/data.pkl");
    memcpy(b.p + second + 42, b.p + first + 42, 4);
    memcpy(b.p + second + 46, b.p + first + 46, 10);
    assert_refused(b.p, b.n, "");
    free(b.p);
}

static void test_kinds(void **state)
{
    (void)state;
    static const unsigned char legacy[] = { 0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46,
                                            0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.' };
    assert_refused(legacy, sizeof legacy, "before 1.6");
    assert_refused("hello there", 11, "68656c6c");
    const tb_member script[] = { { "X/data.pkl", TB_BYTES("\x80\2}.") },
                                 { "X/constants.pkl", "", 0 },
                                 { "X/version", "3\n", 2 } };
    const tb_member code[] = { { "X/data.pkl", TB_BYTES("\x80\2}.") },
                               { "X/code/m.py", "", 0 },
                               { "X/version", "3\n", 2 } };
    const tb_member two[] = { { "X/data.pkl", TB_BYTES("\x80\2}.") }, { "Y/data.pkl", TB_BYTES("\x80\2}.") } };
    const tb_member twice[] = { { "X/data.pkl", TB_BYTES("\x80\2}.") }, { "X/data.pkl", TB_BYTES("\x80\2}.") } };
    const tb_member none[] = { { "X/data/0", "", 0 } };
    const tb_member bare[] = { { "X/data.pkl", TB_BYTES("\x80\2}.") } };
    const tb_member big[] = { { "X/data.pkl", TB_BYTES("\x80\2}.") },
                              { "X/version", "3\n", 2 },
                              { "X/byteorder", "big", 3 } };
    const struct {
        const tb_member *m;
        size_t n;
        const char *word;
    } all[] = { { script, 3, "TorchScript" }, { code, 3, "TorchScript" },      { two, 2, "the second of its kind" },
                { twice, 2, "there twice" },  { none, 1, "without data.pkl" }, { bare, 1, "no version" },
                { big, 3, "little-endian" } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tb_bytes b = tb_archive(all[i].m, all[i].n, 0);
        assert_refused(b.p, b.n, all[i].word);
        free(b.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_tensors),      cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_raw),     cmocka_unit_test(test_bad_pickles),  cmocka_unit_test(test_every_instruction),
        cmocka_unit_test(test_nesting), cmocka_unit_test(test_bad_archives), cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
