/* Texts longer than a piece of the reader, which is small here: nothing of a cut is seen in what becomes of them. */
#define FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION /* PIECE is 1 KiB */
#include "train/data_text.c"

#include "data_files.h"

static char taken[2 * PIECE];
static size_t n_taken;

static hone_status take(hn_data_reader *r, const char *s, size_t n)
{
    df_must(n_taken + n <= sizeof taken, "too many bytes");
    memcpy(taken + n_taken, s, n);
    n_taken += n;
    return HONE_OK;
}

/* What fills the room is cut where no character is, and only what may be the beginning of a mark waits. */
static void test_mark(void **state)
{
    static const struct {
        const char *end;
        size_t waits;
    } of[] = { { "", 0 }, { "x", 0 }, { "<|", 2 }, { "<|end\xC3\xA9", 0 }, { "<|endoftext|", 12 }, { "<<", 1 } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char s[PIECE];
        size_t n = 0, used;
        hn_data_reader r = { .take = take };
        reader t = { .r = &r, .split = HN_SPLIT_MARK };
        for (; n + 40 < sizeof s; n += 2) memcpy(s + n, "\xC3\xA9", 2);
        memcpy(s + n, of[i].end, strlen(of[i].end));
        n += strlen(of[i].end);
        n_taken = 0;
        assert_int_equal(put_texts(&t, s, n, true, &used), HONE_OK);
        assert_int_equal(used, n - of[i].waits);
        assert_int_equal(n_taken, used);
        assert_memory_equal(taken, s, used);
    }
}

/* The first piece decides how a file is divided; a mark behind it is told. */
static void test_late_mark(void **state)
{
    hone_error e = { 0 };
    hone_model *m = df_model("plain.gguf", NULL, false);
    static const struct {
        size_t at;
        hn_data_split split;
        int want;
    } of[] = { { 10, HN_SPLIT_AUTO, 0 },
               { PIECE + 100, HN_SPLIT_AUTO, 1 },
               { PIECE + 100, HN_SPLIT_BLANK, 0 },
               { 3 * PIECE, HN_SPLIT_AUTO, 0 } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char s[3 * PIECE];
        hn_dataset *d;
        memset(s, 'x', sizeof s);
        if (of[i].at < sizeof s) memcpy(s + of[i].at, mark, N_MARK);
        const char *path = df_write("late.txt", s, sizeof s);
        hn_data_params p = { .path = &path, .n_path = 1, .seq = 4 * PIECE, .split = of[i].split };
        assert_int_equal(hn_dataset_read(&d, m, &p, &e), HONE_OK);
        if (d->stats.n_marked != of[i].want) fail_msg("at %zu: %d", of[i].at, (int)d->stats.n_marked);
        hn_dataset_free(d);
    }
    hone_model_close(m);
}

/* A block of code goes on in the next piece: what looks like a heading in it is none. */
static void test_fence(void **state)
{
    char s[3 * PIECE];
    size_t n = (size_t)sprintf(s, "# One\n```\n"), was;
    hone_error e = { 0 };
    hn_dataset *d;
    while (n < 2 * PIECE) n += (size_t)sprintf(s + n, "# note\nx = %zu\n", n);
    n += (size_t)sprintf(s + n, "```\n# Two\n");
    for (was = n; n < was + PIECE / 2;) n += (size_t)sprintf(s + n, "a line\n");
    const char *path = df_write("code.md", s, n);
    hone_model *m = df_model("plain.gguf", NULL, false);
    hn_data_params p = { .path = &path, .n_path = 1, .seq = 4 * PIECE, .split = HN_SPLIT_HEADING };
    assert_int_equal(hn_dataset_read(&d, m, &p, &e), HONE_OK);
    assert_int_equal(d->n, 2);
    assert_int_equal(d->sample[1].n, strlen("# Two\n") + n - was); /* EOS in place of the last line's end */
    hn_dataset_free(d);
    hone_model_close(m);
}

static hn_dataset *read_one(const hone_model *m, const char *path, bool special)
{
    hone_error e = { 0 };
    hn_dataset *d;
    hn_data_params p = { .path = &path, .n_path = 1, .seq = 100, .mask = HN_MASK_PROMPT, .special = special };
    if (hn_dataset_read(&d, m, &p, &e) != HONE_OK) fail_msg("%s", e.message);
    return d;
}

/* Names of special tokens: BOS stands once where texts bring it, and texts in which they are letters are counted. */
static void test_brought_bos(void **state)
{
    hone_model *m = df_model("bos.gguf", NULL, true);
    const char *const of[] = { DF_FILE("bos.txt", "<s>one<s>"), DF_FILE("bos.jsonl", "{\"text\": \"<s>one<s>\"}"),
                               DF_FILE("pair.jsonl", "{\"prompt\": \"<s>o\", \"completion\": \"ne<s>\"}") };
    for (size_t i = 0; i < 3; i++) {
        hn_dataset *d = read_one(m, of[i], true);
        assert_int_equal(d->n, 1);
        assert_string_equal(df_show(&d->sample[0]), i < 2 ? "<s>[one<s></s>]" : "<s>o[ne<s></s>]");
        assert_int_equal(d->stats.n_spelt, 0);
        hn_dataset_free(d);
        d = read_one(m, of[i], false);
        assert_int_equal(d->stats.n_spelt, 1);
        assert_string_equal(d->stats.first_spelt, "<s>");
        hn_dataset_free(d);
    }
    hn_dataset *d = read_one(m, DF_FILE("no.txt", "<one>\n\ntwo <s>\n\n<s"), false);
    assert_int_equal(d->stats.n_spelt, 0);
    hn_dataset_free(d);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_mark), cmocka_unit_test(test_fence),
                                        cmocka_unit_test(test_late_mark), cmocka_unit_test(test_brought_bos) };
    return cmocka_run_group_tests(tests, df_begin, df_end);
}
