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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_mark), cmocka_unit_test(test_fence) };
    return cmocka_run_group_tests(tests, df_begin, df_end);
}
