/* WordPiece: ids against Hugging Face tokenizers (golden file), every character's folding
 * against utf8proc, defaults, special tokens, hostile vocabularies and texts. */
#include "golden_vocab.h"

#include <utf8proc.h>

#define MODEL "tokenizer.ggml.model"
#define TOKENS "tokenizer.ggml.tokens"
#define TYPES "tokenizer.ggml.token_type"

static void golden_wpm(void **state)
{
    golden t = golden_run("tests/golden/vocab_wpm.txt", "bert", false, true);
    golden_free(&t);
}

/* 0 [PAD] 1 [UNK] 2 [CLS] 3 [SEP] 4 _a 5 b 6 _un 7 able 8 aff 9 _. 10 _[ 11 [unused1] 12 cls 13 _] 14 _i */
static bb small_file(void)
{
    bb f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL, "bert");
    STRS(&f, TOKENS, "[PAD]", "[UNK]", "[CLS]", "[SEP]", SP "a", "b", SP "un", "able", "aff", SP ".", SP "[",
         "[unused1]", "cls", SP "]", SP "i");
    I32S(&f, TYPES, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    return f;
}

static void rules(void **state)
{
    bb f = small_file();
    hn_vocab *v = must(&f, 3);
    assert_int_equal(hn_vocab_get_kind(v), HN_VOCAB_WPM);
    assert_true(hn_vocab_add_bos(v) && hn_vocab_add_eos(v));
    NO_IDS(v, "", 0);
    IDS(v, "", HONE_TOK_ADD, 2, 3);
    IDS(v, "unaffable", 0, 6, 8, 7);
    IDS(v,
        "UN\xC3\x81"
        "ffable",
        HONE_TOK_ADD, 2, 6, 8, 7, 3);
    IDS(v, "abbb a.a \t\n i", 0, 4, 5, 5, 5, 4, 9, 4, 14);
    IDS(v, "bc", 0, 1);                    /* b is no beginning */
    IDS(v, "a ac a", 0, 4, 1, 4);          /* the whole word is unknown */
    IDS(v, "a[CLS]a", 0, 4, 10, 1, 13, 4); /* "cls" only continues */
    IDS(v, "a[CLS]a", HONE_TOK_SPECIAL, 4, 2, 4);
    IDS(v,
        "a\x01\xE2\x80\x8B\xEF\xBF\xBD\xFF"
        "b",
        0, 4, 5); /* controls, format characters, ill-formed bytes */
    /* tables of Unicode 8: an accent (U+1734) and punctuation (U+166D, U+111C9) that are neither in newer ones */
    IDS(v, "a\xE1\x9C\xB4\x62", 0, 4, 5);
    IDS(v, "a\xE1\x99\xAD\x61\xF0\x91\x87\x89\x61", 0, 4, 1, 4, 1, 4);
    IDS(v, "\xC4\xB0", 0, 14); /* I with dot: its decomposition loses the dot */
    TEXT(v, false, "unaffable a .", 6, 8, 7, 4, 9);
    hn_vocab_free(v);
}

static void long_words(void **state)
{
    bb f = small_file();
    hn_vocab *v = must(&f, 3);
    char s[101];
    int32_t want[100];
    memset(s, 'b', sizeof s);
    s[0] = 'a';
    want[0] = 4;
    for (int i = 1; i < 100; i++) want[i] = 5;
    ids_are(v, s, 100, 0, want, 100);
    ids_are(v, s, 101, 0, &(int32_t){ 1 }, 1);
    hn_vocab_free(v);
}

static void special_ids(void **state)
{
    bb f = small_file(); /* keys win over names */
    bb_kv_u32(&f, "tokenizer.ggml.cls_token_id", 4), bb_kv_u32(&f, "tokenizer.ggml.seperator_token_id", 5);
    bb_kv_u32(&f, "tokenizer.ggml.unknown_token_id", 0);
    hn_vocab *v = must(&f, 6);
    IDS(v, "x", HONE_TOK_ADD, 4, 0, 5);
    hn_vocab_free(v);
    f = small_file(); /* bos_token_id is cls, too; an id out of range is ignored */
    bb_kv_u32(&f, "tokenizer.ggml.bos_token_id", 8), bb_kv_u32(&f, "tokenizer.ggml.seperator_token_id", 15);
    kv_bool(&f, "tokenizer.ggml.add_bos_token", false);
    v = must(&f, 6);
    IDS(v, "x", HONE_TOK_ADD, 8, 1, 3);
    hn_vocab_free(v);
    f = bb_head(3, 0, 0); /* nothing special at all */
    bb_kv_str(&f, MODEL, "bert");
    STRS(&f, TOKENS, SP "a", "b");
    v = must(&f, 2);
    IDS(v, "ab x ab", HONE_TOK_ADD, 0, 1, 0, 1);
    hn_vocab_free(v);
    f = bb_head(3, 0, 0); /* BERT's numbers */
    bb_kv_str(&f, MODEL, "bert");
    bb_kv_array(&f, TOKENS, 8, 200);
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, SP "%c%d", 'g' + i % 7, i);
        bb_str(&f, name);
    }
    v = must(&f, 2);
    IDS(v, "x", HONE_TOK_ADD, 101, 100, 102);
    hn_vocab_free(v);
}

static void cased(void **state)
{
    for (int lower = 0; lower < 2; lower++)
        for (int strip = 0; strip < 3; strip++) { /* 2: the default, as lower */
            bb f = bb_head(3, 0, 0);
            bb_kv_str(&f, MODEL, "bert");
            STRS(&f, TOKENS, SP "[UNK]", SP "\xC3\x89", SP "\xC3\xA9", SP "E", SP "e", SP "i", SP "i\xCC\x87",
                 SP "\xC4\xB0", SP "I");
            kv_bool(&f, "tokenizer.ggml.normalizer.lowercase", lower);
            if (strip < 2) kv_bool(&f, "tokenizer.ggml.normalizer.strip_accents", strip);
            hn_vocab *v = must(&f, strip < 2 ? 4 : 3);
            bool s = strip == 2 ? lower : strip;
            IDS(v, "\xC3\x89 \xC4\xB0", 0, lower ? s ? 4 : 2 : s ? 3 : 1, lower ? s ? 5 : 6 : s ? 8 : 7);
            hn_vocab_free(v);
        }
}

/* Characters that are no punctuation, mark or format character to Hugging Face's tokenizers, which was asked about each
 * (src/text/gen/wpm_later.py --golden). */
static uint32_t later[256][2];
static size_t n_later;

static void read_later(void)
{
    char line[128];
    FILE *f = fopen("tests/golden/wpm_later.txt", "r");
    assert_non_null(f);
    n_later = 0;
    while (fgets(line, sizeof line, f)) {
        if (*line == '#') continue;
        assert_in_range(n_later, 0, 255);
        assert_int_equal(sscanf(line, "%x %x", &later[n_later][0], &later[n_later][1]), 2);
        n_later++;
    }
    fclose(f);
    assert_true(n_later > 100);
}

static bool is_later(uint32_t cp)
{
    for (size_t i = 0; i < n_later; i++)
        if (cp >= later[i][0] && cp <= later[i][1]) return true;
    return false;
}

/* Between two letters: punctuation is a word of its own, a mark is nothing, and what is later is a letter. */
static void later_characters(void **state)
{
    (void)state;
    read_later();
    bb f = small_file();
    hn_vocab *v = must(&f, 3);
    for (size_t i = 0; i < n_later; i++)
        for (uint32_t c = later[i][0]; c <= later[i][1]; c++) {
            char text[8] = "a";
            utf8proc_ssize_t n = utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)text + 1);
            text[1 + n] = 'a';
            bool punct = c == 0x111C9; /* a mark by now, and no accent to those tables */
            ids_are(v, text, (size_t)n + 2, 0, punct ? (int32_t[]){ 4, 1, 4 } : (int32_t[]){ 1 }, punct ? 3 : 1);
        }
    IDS(v,
        "a\xE2\xB9\x82"
        "a",
        0, 4, 1, 4); /* U+2E42, of Unicode 7 */
    IDS(v,
        "a\xE1\xB7\xB5"
        "b",
        0, 4, 5); /* U+1DF5, a mark of Unicode 8 */
    hn_vocab_free(v);
}

static bool vanishes(utf8proc_category_t c, uint32_t cp)
{
    if (is_later(cp)) return false;
    if (cp == '\t' || cp == '\n' || cp == '\r') return false;
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO || cp == 0xFFFD;
}

/* U+1734 was an accent up to Unicode 13. */
static bool is_accent(utf8proc_int32_t c)
{
    return (utf8proc_category(c) == UTF8PROC_CATEGORY_MN && !is_later((uint32_t)c)) || c == 0x1734;
}

/* Every character as a word, with a vocabulary that has all of them. Characters newer than the
 * library's Unicode are skipped. */
static void every_character(void **state)
{
    enum { END = 0x30000 };
    read_later();
    bb f = bb_head(3, 0, 0), list = { 0 };
    uint64_t n_token = 0;
    for (uint32_t c = 1; c < END; c++) {
        utf8proc_uint8_t u[8] = SP;
        if ((c >= 0xD800 && c < 0xE000) || c == 0x2581) continue;
        size_t n = (size_t)utf8proc_encode_char((utf8proc_int32_t)c, u + 3);
        bb_strn(&list, (char *)u, 3 + n), bb_strn(&list, (char *)u + 3, n);
        n_token += 2;
    }
    bb_kv_str(&f, MODEL, "bert");
    bb_kv_array(&f, TOKENS, 8, n_token), bb_raw(&f, list.p, list.n);
    bb_free(&list);
    hn_vocab *v = must(&f, 2);
    int checked = 0, wrong = 0;
    for (uint32_t c = 1; c < END; c++) {
        if ((c >= 0xD800 && c < 0xE000) || c == 0x2581) continue;
        utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
        if (cat == UTF8PROC_CATEGORY_CN) continue;
        utf8proc_uint8_t u[4];
        utf8proc_ssize_t n = utf8proc_encode_char((utf8proc_int32_t)c, u);
        char want[64];
        size_t n_want = 0;
        bool space = cat == UTF8PROC_CATEGORY_ZS || cat == UTF8PROC_CATEGORY_ZL || cat == UTF8PROC_CATEGORY_ZP ||
                     c == '\t' || c == '\n' || c == '\r';
        utf8proc_int32_t base[32];
        int last;
        utf8proc_ssize_t k = space || vanishes(cat, c)
                                 ? 0
                                 : utf8proc_decompose_char((utf8proc_int32_t)c, base, 32, UTF8PROC_DECOMPOSE, &last);
        bool newer = false;
        for (utf8proc_ssize_t i = 0; i < k; i++) {
            newer |= utf8proc_category(base[i]) == UTF8PROC_CATEGORY_CN;
            if (is_accent(base[i])) continue;
            n_want += (size_t)utf8proc_encode_char(utf8proc_tolower(base[i]), (utf8proc_uint8_t *)want + n_want);
        }
        if (newer) continue;
        hn_ids o = { 0 };
        hone_error e = { 0 };
        assert_int_equal(hn_vocab_encode(v, (char *)u, (size_t)n, 0, &o, &e), HONE_OK);
        char got[64];
        size_t n_got = 0;
        for (size_t i = 0; i < o.n && i < 4; i++) {
            size_t m;
            const char *p = hn_vocab_piece(v, o.data[i], false, &m);
            if (*p == ' ') p++, m--;
            memcpy(got + n_got, p, m);
            n_got += m;
        }
        if (n_got != n_want || memcmp(got, want, n_got) != 0) {
            if (wrong++ < 10)
                fprintf(stderr, "U+%04X: got \"%s\", want \"%s\"\n", c, HN_ESC(got, n_got), HN_ESC(want, n_want));
        }
        free(o.data);
        checked++;
    }
    printf("    %d characters of Unicode %s\n", checked, utf8proc_unicode_version());
    assert_int_equal(wrong, 0);
    assert_true(checked > 100000);
    hn_vocab_free(v);
}

static void hostile(void **state)
{
    bb f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL, "bert");
    STRS(&f, TOKENS, SP "a", "b", SP "a");
    refused(&f, 2, TOKENS, "tokens 0 and 2");
    f = bb_head(3, 0, 0);
    bb_kv_str(&f, MODEL, "bert");
    STRS(&f, TOKENS, "a", "b");
    I32S(&f, TYPES, 1);
    refused(&f, 3, TYPES, "2 tokens");
    f = bb_head(3, 0, 0); /* the mark itself, half characters, nothing */
    bb_kv_str(&f, MODEL, "bert");
    STRS(&f, TOKENS, SP, "a", "", "\xE2", "\x81", SP "\xE4", "\xB8\xAD", "[UNK]");
    bb_kv_u32(&f, "tokenizer.ggml.unknown_token_id", 7);
    hn_vocab *v = must(&f, 3);
    IDS(v, "a", 0, 7); /* the mark alone begins no word */
    IDS(v, "\xE4\xB8\xAD", 0, 5, 6);
    TEXT(v, true, "a ", 1, 0);
    hn_vocab_free(v);
}

static void one_letter(void **state)
{
    bool good;
    golden t = golden_run("tests/golden/vocab_wpm.txt", "bert", false, false);
    good = long_runs_of_units(t.v);
    golden_free(&t);
    assert_true(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_wpm),       cmocka_unit_test(rules),   cmocka_unit_test(long_words),
        cmocka_unit_test(special_ids),      cmocka_unit_test(cased),   cmocka_unit_test(every_character),
        cmocka_unit_test(later_characters), cmocka_unit_test(hostile), cmocka_unit_test(one_letter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
