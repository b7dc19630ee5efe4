/* What an answer puts on a terminal: no control characters from a model, reasoning dimmed and apart; a pipe gets the
 * answer alone, its bytes untouched. And conversations and their files. */
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

typedef struct part {
    hone_part part;
    const char *text;
} part;

/* Shows parts (text NULL ends them) in pieces of `size` bytes, never inside a character; what came out is in shown. */
static const char *show(hn_screen s, const part *parts, size_t size)
{
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    FILE *f = tmpfile();
    assert_non_null(f);
    dup2(fileno(f), STDOUT_FILENO);
    hn_screen_begin(&s);
    for (; parts->text; parts++)
        for (size_t i = 0, n = strlen(parts->text), k; i < n; i += k) {
            k = n - i < size ? n - i : size;
            while (i + k < n && ((unsigned char)parts->text[i + k] & 0xC0) == 0x80) k++;
            assert_true(
                hn_screen_show(&s, &(hone_reply_part){ .part = parts->part, .text = parts->text + i, .len = k }, 1));
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
#define PARTS(...) ((const part[]){ __VA_ARGS__, { HONE_PART_TEXT, NULL } })
#define T(s)              \
    {                     \
        HONE_PART_TEXT, s \
    }
#define R(s)                   \
    {                          \
        HONE_PART_REASONING, s \
    }
#define C(s)                    \
    {                           \
        HONE_PART_COMMENTARY, s \
    }
#define F(s)              \
    {                     \
        HONE_PART_CALL, s \
    }

static const hn_screen terminal = { .tty = true, .dim = true, .reasoning = true },
                       plain = { .tty = true, .reasoning = true }, quiet = { .tty = true, .dim = true },
                       pipe_end = { 0 }, mute = { .mute = true };

#define ESC_ON "\033[2m"
#define ESC_OFF "\033[0m"

static void test_parts(void **unused)
{
    for (size_t size = 1; size < 20; size++) {
        assert_string_equal(show(terminal, PARTS(T("hello")), size), "hello\n");
        assert_string_equal(show(terminal, PARTS(T("hello\n")), size), "hello\n");
        assert_string_equal(show(terminal, PARTS(R("so\nso"), T("yes")), size), ESC_ON "so\nso" ESC_OFF "\n\nyes\n");
        assert_string_equal(show(terminal, PARTS(R("so")), size), ESC_ON "so" ESC_OFF "\n");
        assert_string_equal(show(terminal, PARTS(T("a\n"), R("b"), T("c")), size),
                            "a\n\n" ESC_ON "b" ESC_OFF "\n\nc\n");
        assert_string_equal(show(terminal, PARTS(R("a"), C("b"), F("{}")), size),
                            ESC_ON "a" ESC_OFF "\n\nb\n\n[call]\n{}\n");
        assert_string_equal(show(plain, PARTS(T("yes")), size), "yes\n");
        assert_string_equal(show(plain, PARTS(R("so"), T("yes")), size), "[reasoning]\nso\n\n[answer]\nyes\n");
        assert_string_equal(show(quiet, PARTS(R("so"), T("yes")), size), "yes\n");
        assert_string_equal(show(quiet, PARTS(R("so")), size), "");
        assert_string_equal(show(pipe_end, PARTS(R("so"), C("b"), T("yes\n")), size), "yes\n\n");
        assert_string_equal(show(mute, PARTS(R("so"), T("yes")), size), "");
    }
}

static void test_control(void **unused)
{
    const char *text = "a\x1b[31mb\x07"
                       "c\rd\te\x7f\xC2\x9Bm \xC3\xA9 \xE2\x82\xAC\n",
               *want = "a\\x1B[31mb\\x07"
                       "c\\x0Dd\te\\x7F\\x9Bm \xC3\xA9 \xE2\x82\xAC\n";
    for (size_t size = 1; size < 30; size++) {
        assert_string_equal(show(terminal, PARTS(T(text)), size), want);
        assert_string_equal(show(plain, PARTS(T(text)), size), want);
        assert_string_equal(show(pipe_end, PARTS(T("\x1b[2m\xC2\x9B\n")), size), "\x1b[2m\xC2\x9B\n\n");
    }
    assert_string_equal(show(terminal, PARTS(R("\x1b[0m"), T("x")), 1), ESC_ON "\\x1B[0m" ESC_OFF "\n\nx\n");
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
                hn_talk_push(&t, CHAT_ASSISTANT, "\xE2\x82\xAC", 3) && hn_talk_reason(&t, "so\n", 3));
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
    assert_string_equal(u.msg[2].reasoning, "so\n");
    assert_null(u.msg[1].reasoning);
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
        ("{\"schema\":\"hone.chat/1\",\"messages\":"
         "[{\"role\":\"user\",\"content\":\"a\",\"reasoning_content\":\"b\"}]}"),
        ("{\"schema\":\"hone.chat/1\",\"messages\":"
         "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":1}]}"),
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
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_talk),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
