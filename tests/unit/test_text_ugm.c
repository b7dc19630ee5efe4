/* Unigram: ids against sentencepiece (golden files), rules by hand, precompiled maps right
 * and hostile. */
#include "golden_vocab.h"

#define MODEL "tokenizer.ggml.model"
#define TOKENS "tokenizer.ggml.tokens"
#define SCORES "tokenizer.ggml.scores"
#define TYPES "tokenizer.ggml.token_type"
#define MAP "tokenizer.ggml.precompiled_charsmap"

static void golden_ugm(void **state)
{
    golden t = golden_run("tests/golden/vocab_ugm.txt", "t5", true, true);
    golden_free(&t);
}
static void golden_spaces(void **state)
{
    golden t = golden_run("tests/golden/vocab_ugm_spaces.txt", "t5", false, true);
    golden_free(&t);
}

static void golden_bytes(void **state)
{
    golden t = golden_run("tests/golden/vocab_ugm_bytes.txt", "t5", false, true);
    golden_free(&t);
}

/* 0 <pad> 1 </s> 2 <unk> 3 _ 4 a 5 b 6 _a 7 ab 8 aba 9 <tool> 10 x (unused) 11 _ab 12 aa */
static bb small_file(void)
{
    bb f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL, "t5");
    STRS(&f, TOKENS, "<pad>", "</s>", "<unk>", SP, "a", "b", SP "a", "ab", "aba", "<tool>", "x", SP "ab", "aa");
    F32S(&f, SCORES, 0, 0, 0, -2, -3, -3, -4, -5, -7.5f, -1, -1, -9, -6);
    I32S(&f, TYPES, 3, 3, 2, 1, 1, 1, 1, 1, 1, 4, 5, 1, 1);
    return f;
}

static void rules(void **state)
{
    bb f = small_file();
    hn_vocab *v = must(&f, 4);
    assert_int_equal(hn_vocab_get_kind(v), HN_VOCAB_UGM);
    assert_true(!hn_vocab_add_bos(v) && hn_vocab_add_eos(v) && hn_vocab_eos(v) == 1);
    NO_IDS(v, "", 0);
    IDS(v, "", HONE_TOK_ADD, 1);
    IDS(v, "ab", HONE_TOK_ADD, 7, 1);      /* -5 against -6 */
    IDS(v, "aba", 0, 8);                   /* -7.5 against -8 */
    IDS(v, "aa", 0, 12);                   /* a tie: what begins earlier in the text stays */
    IDS(v, " ", 0, 3);                     /* no prefix unless the file asks for one */
    IDS(v, "a  a", 0, 4, 3, 6);            /* _ + _a; _a beats _, a */
    IDS(v, "cd a\xC3\xA9x", 0, 2, 6, 2);   /* unknown ones in a row are one; "x" is unused */
    IDS(v, "a<tool>b</s>", 0, 4, 9, 5, 2); /* the added token always, the control token never */
    IDS(v, "a<tool>b</s>", HONE_TOK_SPECIAL, 4, 9, 5, 1);
    IDS(v,
        "\xFF\xE4\xB8"
        "b",
        0, 2, 5); /* U+FFFD, three times */
    TEXT(v, false, "ab a", 7, 6);
    hn_vocab_free(v);

    f = small_file();
    kv_bool(&f, "tokenizer.ggml.add_space_prefix", true);
    kv_bool(&f, "tokenizer.ggml.add_eos_token", false), kv_bool(&f, "tokenizer.ggml.add_bos_token", true);
    bb_kv_u32(&f, "tokenizer.ggml.bos_token_id", 0);
    v = must(&f, 8);
    IDS(v, "a", HONE_TOK_ADD, 0, 6);
    IDS(v, "  a a", 0, 3, 3, 6, 6); /* one more before the first letter */
    IDS(v, "  ", 0, 3, 3);
    IDS(v, "a<tool>a", 0, 6, 9, 6); /* every fragment has its own */
    TEXT(v, false, "a a", 6, 6);
    hn_vocab_free(v);

    f = small_file();
    kv_bool(&f, "tokenizer.ggml.remove_extra_whitespaces", true);
    v = must(&f, 5);
    IDS(v, "  a   a  ", 0, 6, 6);
    NO_IDS(v, "   ", 0);
    IDS(v, "ab", 0, 3, 7); /* _ab: -9; _ ab: -7; _a b: -7, too late */
    hn_vocab_free(v);
}

static void unknown(void **state)
{
    bb f = small_file();
    bb_kv_u32(&f, "tokenizer.ggml.unknown_token_id", 0);
    hn_vocab *v = must(&f, 5);
    IDS(v, "cc", 0, 0);
    hn_vocab_free(v);
    f = small_file(); /* nothing stands for the unknown */
    bb_kv_u32(&f, "tokenizer.ggml.unknown_token_id", UINT32_MAX);
    v = must(&f, 5);
    IDS(v, "acab", 0, 4, 7);
    hn_vocab_free(v);
    f = bb_head(3, 0, 0); /* no scores: all 0, so that the fewest unknown ones win and the first path stays */
    bb_kv_str(&f, MODEL, "t5");
    STRS(&f, TOKENS, "a", "aa", "<unk>");
    v = must(&f, 2);
    IDS(v, "aab", 0, 1, 2);
    hn_vocab_free(v);
    f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL, "t5");
    STRS(&f, TOKENS, "a", "b");
    F32S(&f, SCORES, 0, -1.0f / 0.0f);
    refused(&f, 3, SCORES "[1]", "infinite");
    f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL, "t5");
    STRS(&f, TOKENS, "a", "b");
    F32S(&f, SCORES, 0);
    refused(&f, 3, SCORES, "2 tokens");
}

/* 0 <unk> 1 a 2 to 5: the bytes of U+1F600 6 b, but byte 7 is U+0000's */
static void bytes(void **state)
{
    bb f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL, "t5");
    STRS(&f, TOKENS, "<unk>", "a", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "b", "<0x00>");
    F32S(&f, SCORES, 0, -1, 0, 0, 0, 0, -2, 0);
    I32S(&f, TYPES, 2, 1, 6, 6, 6, 6, 1, 6);
    bb_kv_u32(&f, "tokenizer.ggml.unknown_token_id", 0);
    hn_vocab *v = must(&f, 5);
    IDS(v, "a\U0001F600", 0, 1, 2, 3, 4, 5);
    IDS(v, "\U0001F600\U0001F600", 0, 2, 3, 4, 5, 2, 3, 4, 5);
    IDS(v, "cd\U0001F600c", 0, 0, 2, 3, 4, 5, 0); /* unknown ones join only each other */
    IDS(v, "\U0001F601", 0, 0);                   /* all of its bytes, or none */
    ids_are(v, "a\0b", 3, 0, (int32_t[]){ 1, 7, 6 }, 3);
    IDS(v, "<0x80>", 0, 0); /* a byte token is not its name */
    TEXT(v, false, "a\U0001F600", 1, 2, 3, 4, 5);
    hn_ids o = { 0 };
    hone_span *at;
    assert_int_equal(hn_vocab_locate(v, "c\U0001F600a", 6, 0, &o, &at, NULL), HONE_OK);
    assert_int_equal(o.n, 6);
    for (size_t i = 1; i < 5; i++) assert_true(at[i].begin == 1 && at[i].end == 5);
    assert_true(at[0].begin == 0 && at[0].end == 1 && at[5].begin == 5 && at[5].end == 6);
    free(o.data);
    free(at);
    hn_vocab_free(v);
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* A map of 512 units by hand: "A" -> "b", "AB" -> "a a", "C" -> "". Root's base is 256. */
typedef struct map {
    uint32_t unit[512];
    char text[8];
} map;
static map good_map(void)
{
    map m = { .text = "b\0a a\0" };
#define BASE_OF(x) ((uint32_t)(x) << 10)
#define LEADS(from, to) BASE_OF((from) ^ (to))
    m.unit[0] = BASE_OF(256);
    m.unit[256 ^ 'A'] = 'A' | 1u << 8 | LEADS(256 ^ 'A', 4);
    m.unit[4] = 1u << 31 | 0; /* value: "b" */
    m.unit[4 ^ 'B'] = 'B' | 1u << 8 | LEADS(4 ^ 'B', 8);
    m.unit[8] = 1u << 31 | 2;
    m.unit[256 ^ 'C'] = 'C' | 1u << 8 | LEADS(256 ^ 'C', 12);
    m.unit[12] = 1u << 31 | 6; /* value: empty */
    return m;
}
static bb map_file(const void *blob, size_t n, uint32_t type)
{
    bb f = small_file();
    bb_kv_array(&f, MAP, type, n);
    bb_raw(&f, blob, n);
    return f;
}
static bb map_blob(const map *m, uint32_t size, size_t n_text)
{
    bb b = { 0 };
    bb_u32(&b, size);
    bb_raw(&b, m->unit, sizeof m->unit);
    bb_raw(&b, m->text, n_text);
    return b;
}

static void maps(void **state)
{
    for (uint32_t type = 0; type < 2; type++) {
        map m = good_map();
        bb b = map_blob(&m, sizeof m.unit, 7), f = map_file(b.p, b.n, type);
        hn_vocab *v = must(&f, 5);
        IDS(v, "A", 0, 5);
        IDS(v, "ABA", 0, 4, 3, 7); /* "a ab" */
        IDS(v, "aCb", 0, 7);
        ids_are(v, "A\0B", 3, 0, (int32_t[]){ 5, 2 }, 2);
        hn_vocab_free(v);
        bb_free(&b);
    }
    bb f = map_file("", 0, 0); /* none */
    hn_vocab *v = must(&f, 5);
    IDS(v, "ab", 0, 7);
    hn_vocab_free(v);
}

static void broken_maps(void **state)
{
    map m = good_map();
    bb f = map_file("\1\0\0\0", 4, 4);
    memcpy(f.p + f.n - 12, &(uint64_t){ 1 }, 8); /* one u32 */
    refused(&f, 5, MAP, "elements of type 4");
    for (size_t n = 1; n < 8; n++) {
        f = map_file("\4\0\0\0\0\0\0", n, 0);
        refused(&f, 5, MAP, "units");
    }
    static const uint32_t sizes[] = { 0, 3, 2047, 2049, 2056, 0x7FFFFFFF, 0xFFFFFFFC, 0xFFFFFFFF };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bb b = map_blob(&m, sizes[i], 7);
        f = map_file(b.p, b.n, 0);
        refused(&f, 5, MAP, "units");
        bb_free(&b);
    }
    struct {
        unsigned at;
        uint32_t unit;
        size_t n_text;
        const char *says;
    } bad[] = {
        { 4, 1u << 31 | 7, 7, "byte 7" },
        { 4, 0xFFFFFFFF, 7, "of 7 bytes" },
        { 0, BASE_OF(256), 0, "of 0 bytes" },
        { 256 ^ 'A', 'A' | 1u << 8 | BASE_OF(512), 7, "of 512 units" },
        { 256 ^ 'A', 'A' | 1u << 8 | 1u << 9 | BASE_OF(2), 7, "of 512 units" },
        { 0, BASE_OF(256), 6, "" },
        { 0, BASE_OF(256), 5, "does not end" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        map k = m;
        k.unit[bad[i].at] = bad[i].unit;
        bb b = map_blob(&k, sizeof k.unit, bad[i].n_text);
        f = map_file(b.p, b.n, 0);
        refused(&f, 5, MAP, bad[i].says);
        bb_free(&b);
    }
    bb b = map_blob(&m, sizeof m.unit, 7); /* a replacement of 257 bytes */
    for (int i = 0; i < 257; i++) bb_u8(&b, 'x');
    bb_u8(&b, 0);
    f = map_file(b.p, b.n, 0);
    refused(&f, 5, MAP, "256 bytes");
    bb_free(&b);
    map k = m; /* paths that leave the array are harmless */
    k.unit[0] = 1u << 9 | BASE_OF(0x1FFFFF);
    b = map_blob(&k, sizeof k.unit, 7);
    f = map_file(b.p, b.n, 0);
    hn_vocab *v = must(&f, 5);
    IDS(v, "Ab", 0, 2, 5);
    hn_vocab_free(v);
    bb_free(&b);
}

/* A real map with random damage: refused, or ids of the vocabulary. The sanitizers watch. */
static void damaged_maps(void **state)
{
    golden t = golden_run("tests/golden/vocab_ugm.txt", "t5", true, false);
    uint64_t x = 88172645463325252u;
    int accepted = 0;
    for (int round = 0; round < 400; round++) {
        bb b = { 0 };
        bb_raw(&b, t.map.p, t.map.n);
        for (int k = 0; k < 1 + round % 40; k++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            size_t at = round % 4 ? 4 + x % (b.n - 5) : x % b.n;
            b.p[at] = (unsigned char)(x >> 40);
        }
        bb f = map_file(b.p, b.n, 0);
        bb_free(&b);
        hn_vocab *v;
        hone_error e = { 0 };
        hone_status st = make(&v, &f, 5, &e);
        if (st != HONE_OK) {
            assert_int_equal(st, HONE_E_FORMAT);
            continue;
        }
        accepted++;
        char s[2048];
        for (size_t i = 0; i < sizeof s; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            s[i] = (char)(x >> 33);
        }
        hn_ids o = { 0 };
        assert_int_equal(hn_vocab_encode(v, s, sizeof s, 0, &o, &e), HONE_OK);
        for (size_t i = 0; i < o.n; i++) assert_true(o.data[i] >= 0 && o.data[i] < hn_vocab_size(v));
        free(o.data);
        hn_vocab_free(v);
    }
    printf("    %d of 400 damaged maps were accepted\n", accepted);
    assert_true(accepted > 20 && accepted < 400);
    golden_free(&t);
}

static void one_letter(void **state)
{
    bool good;
    golden t = golden_run("tests/golden/vocab_ugm.txt", "t5", true, false);
    good = long_runs_of_units(t.v);
    golden_free(&t);
    assert_true(good);
    t = golden_run("tests/golden/vocab_ugm_spaces.txt", "t5", false, false);
    good = long_runs_of_units(t.v);
    golden_free(&t);
    assert_true(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_ugm),   cmocka_unit_test(golden_spaces), cmocka_unit_test(rules),
        cmocka_unit_test(golden_bytes), cmocka_unit_test(bytes),         cmocka_unit_test(unknown),
        cmocka_unit_test(maps),         cmocka_unit_test(broken_maps),   cmocka_unit_test(damaged_maps),
        cmocka_unit_test(one_letter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
