/* What hone chat puts on a terminal: no control characters from a model, reasoning
 * dimmed wherever the pieces of its tags were cut; and a pipe's bytes untouched. */
#include "cli/chat/chat_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* cli.c names the commands, main.c is not linked */
const hn_command *const hn_commands[] = { NULL };
const hn_opt_group *const hn_common_groups[] = { NULL };

static char shown[4096];

/* Shows text in pieces of `size` bytes (never inside a character); what came out is in shown. */
static const char *show(chat_screen s, const char *prompt, const char *text, size_t size)
{
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    FILE *f = tmpfile();
    assert_non_null(f);
    dup2(fileno(f), STDOUT_FILENO);
    hn_screen_begin(&s, prompt, strlen(prompt));
    for (size_t i = 0, n = strlen(text), k; i < n; i += k) {
        k = n - i < size ? n - i : size;
        while (i + k < n && ((unsigned char)text[i + k] & 0xC0) == 0x80) k++;
        assert_true(hn_screen_show(&s, text + i, k));
    }
    assert_true(hn_screen_end(&s));
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(f);
    shown[fread(shown, 1, sizeof shown - 1, f)] = 0;
    fclose(f);
    return shown;
}

static const chat_screen terminal = { .tty = true, .dim = true, .newline = true },
                         plain = { .tty = true, .newline = true }, pipe_end = { .newline = true };

#define ESC_ON "\033[2m"
#define ESC_OFF "\033[0m"

static void test_dim(void **unused)
{
    static const struct {
        const char *prompt, *text, *want;
    } cases[] = {
        { "", "hello", "hello\n" },
        { "", "hello\n", "hello\n" },
        { "", "<think>so</think>yes", ESC_ON "<think>so</think>" ESC_OFF "yes\n" },
        { "", "a <think>b</think> c <think>d</think>",
          "a " ESC_ON "<think>b</think>" ESC_OFF " c " ESC_ON "<think>d</think>" ESC_OFF "\n" },
        { "…<think>\n", "so</think>yes", ESC_ON "so</think>" ESC_OFF "yes\n" },
        { "<think>\n\n</think>\n\n", "yes", "yes\n" },
        { "", "[THINK]x[/THINK]y", ESC_ON "[THINK]x[/THINK]" ESC_OFF "y\n" },
        { "", "<|START_THINKING|>x<|END_THINKING|>y", ESC_ON "<|START_THINKING|>x<|END_THINKING|>" ESC_OFF "y\n" },
        { "", "<|channel|>analysis<|message|>x<|end|>y",
          ESC_ON "<|channel|>analysis<|message|>x<|end|>" ESC_OFF "y\n" },
        { "", "<thinking>x</thinking>y", ESC_ON "<thinking>x</thinking>" ESC_OFF "y\n" },
        { "", "if a<b and <th and <think", "if a<b and <th and <think\n" },
        { "", "<<think>x</think>", "<" ESC_ON "<think>x</think>" ESC_OFF "\n" },
        { "", "<think>a</thin</think>b", ESC_ON "<think>a</thin</think>" ESC_OFF "b\n" },
        { "", "<think>never closed", ESC_ON "<think>never closed" ESC_OFF "\n" },
        { "", "</think>", "</think>\n" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t size = 1; size < 40; size++)
            assert_string_equal(show(terminal, cases[i].prompt, cases[i].text, size), cases[i].want);
}

static void test_control(void **unused)
{
    const char *text = "a\x1b[31mb\x07"
                       "c\rd\te\x7f\xC2\x9Bm \xC3\xA9 \xE2\x82\xAC\n",
               *want = "a\\x1B[31mb\\x07"
                       "c\\x0Dd\te\\x7F\\x9Bm \xC3\xA9 \xE2\x82\xAC\n";
    for (size_t size = 1; size < 30; size++) {
        assert_string_equal(show(terminal, "", text, size), want);
        assert_string_equal(show(plain, "", text, size), want);
    }
    /* between a tag's pieces too */
    assert_string_equal(show(terminal, "", "<th\x1bink>", 2), "<th\\x1Bink>\n");
}

static void test_plain(void **unused)
{
    assert_string_equal(show(plain, "", "<think>so</think>yes", 3), "<think>so</think>yes\n");
    assert_string_equal(show(pipe_end, "<think>", "<think>\x1b[2m</think>\xC2\x9B\n", 3),
                        "<think>\x1b[2m</think>\xC2\x9B\n\n");
}

static void test_talk(void **unused)
{
    chat_talk t = { 0 };
    assert_true(hn_talk_push(&t, CHAT_USER, "a", 1));
    assert_true(hn_talk_set_system(&t, "s", 1));
    assert_int_equal(t.n, 2);
    assert_int_equal(t.msg[0].role, CHAT_SYSTEM);
    assert_true(hn_talk_set_system(&t, "longer", 6));
    assert_int_equal(t.n, 2);
    assert_string_equal(t.msg[0].text, "longer");
    assert_string_equal(t.msg[1].text, "a");
    assert_true(hn_talk_set_system(&t, NULL, 0));
    assert_true(hn_talk_set_system(&t, NULL, 0));
    assert_int_equal(t.n, 1);
    assert_int_equal(hn_talk_last(&t)->role, CHAT_USER);
    hn_talk_free(&t);
    assert_null(hn_talk_last(&t));
}

/* What is saved comes back: NUL, every control character, quotes, parameters that binary cannot hold exactly. */
static void test_file(void **unused)
{
    char name[] = "/tmp/hone-chat-XXXXXX", *model, bytes[128];
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    for (int i = 0; i < 128; i++) bytes[i] = (char)i;
    chat_talk t = { 0 }, u = { 0 };
    chat_params p = { .limit = -1 }, q = { .limit = 3 };
    hone_error err;
    hone_sampler_defaults(&p.sampling);
    hone_sampler_defaults(&q.sampling);
    p.sampling.temp = 0.1f;
    p.sampling.min_p = 1e-7f;
    p.sampling.seed = INT64_MAX;
    assert_true(hn_talk_push(&t, CHAT_SYSTEM, "be \"brief\"", 10) && hn_talk_push(&t, CHAT_USER, bytes, sizeof bytes) &&
                hn_talk_push(&t, CHAT_ASSISTANT, "\xE2\x82\xAC", 3));
    for (int twice = 0; twice < 2; twice++) { /* over an empty file, then over its own */
        assert_int_equal(hn_chat_save(name, &t, &p, "m", &err), HONE_OK);
        assert_int_equal(hn_chat_load(name, &u, &q, &model, &err), HONE_OK);
        assert_string_equal(model, "m");
        free(model);
    }
    assert_int_equal(u.n, 3);
    for (size_t i = 0; i < u.n; i++) {
        assert_int_equal(u.msg[i].role, t.msg[i].role);
        assert_int_equal(u.msg[i].len, t.msg[i].len);
        assert_memory_equal(u.msg[i].text, t.msg[i].text, t.msg[i].len);
    }
    assert_true(q.sampling.temp == p.sampling.temp && q.sampling.min_p == p.sampling.min_p &&
                q.sampling.seed == p.sampling.seed && q.limit == -1);
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{\"schema\":\"hone.chat/2\",\"messages\":[]}",
        "{\"schema\":\"hone.chat/1\"}",
        "{\"schema\":\"hone.chat/1\",\"messages\":{}}",
        "{\"schema\":\"hone.chat/1\",\"messages\":[1]}",
        "{\"schema\":\"hone.chat/1\",\"messages\":[{\"role\":\"user\"}]}",
        "{\"schema\":\"hone.chat/1\",\"messages\":[{\"role\":\"user\",\"content\":null}]}",
        ("{\"schema\":\"hone.chat/1\",\"messages\":"
         "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"system\",\"content\":\"b\"}]}"),
        "{\"schema\":\"hone.chat/1\",\"messages\":[],\"params\":[]}",
        "{\"schema\":\"hone.chat/1\",\"messages\":[],\"params\":{\"temp\":\"1\"}}",
        "{\"schema\":\"hone.chat/1\",\"messages\":[],\"params\":{\"temp\":1e300}}",
        "{\"schema\":\"hone.chat/1\",\"messages\":[],\"params\":{\"heat\":1}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FILE *f = fopen(name, "w");
        assert_non_null(f);
        fputs(bad[i], f);
        fclose(f);
        assert_int_equal(hn_chat_load(name, &u, &q, &model, &err), HONE_E_FORMAT);
        assert_non_null(strstr(err.message, name));
        assert_int_equal(u.n, 3);
    }
    unlink(name);
    hn_talk_free(&t);
    hn_talk_free(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dim),  cmocka_unit_test(test_control), cmocka_unit_test(test_plain),
        cmocka_unit_test(test_talk), cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
