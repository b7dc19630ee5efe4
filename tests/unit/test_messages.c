/* What becomes of the blocks of Anthropic's messages that are text by other names, of system prompts that say nothing,
 * and of a prompt that does not fit, by the words that its clients look for. */
#include "serve/ask.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ask_cases.h"

/* The turns that a body becomes, and what was passed over. */
static void becomes(const char *path, const char *body, const char *messages, const char *ignored)
{
    hn_ask a;
    hn_refusal r;
    if (!ask_of(&a, path, body, NULL, &r)) fail_msg("%s: %s", body, r.message);
    if (strcmp(a.messages, messages) != 0) fail_msg("%s\n became %s\n expected %s", body, a.messages, messages);
    assert_string_equal(a.ignored, ignored);
    hn_ask_free(&a);
}

static void is_refused(const char *body, const char *code, const char *param, const char *says)
{
    hn_ask a;
    hn_refusal r;
    if (ask_of(&a, "/v1/messages", body, NULL, &r)) fail_msg("%s: taken", body);
    if (strcmp(r.code, code) != 0 || strcmp(r.param, param) != 0 || !strstr(r.message, says))
        fail_msg("%s\n %s '%s': %s\n expected %s '%s': …%s…", body, r.code, r.param, r.message, code, param, says);
}

#define MESSAGES(more) "{\"max_tokens\":5,\"messages\":[" more "]}"
#define USER(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"
#define DOCUMENT(source, more) "{\"type\":\"document\",\"source\":{" source "}" more "}"
#define PLAIN "\"type\":\"text\",\"media_type\":\"text/plain\",\"data\":\"one\\ntwo\""
#define FOUND                                                                                    \
    "{\"type\":\"search_result\",\"source\":\"https://a.example\",\"title\":\"T\",\"content\":[" \
    "{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"text\",\"text\":\"y\"}]"
#define SAID(text) "{\"type\":\"text\",\"text\":\"" text "\"}"

static void test_documents(void **state)
{
    becomes("/v1/messages", MESSAGES(USER(DOCUMENT(PLAIN, ""))), "[{\"role\":\"user\",\"content\":\"one\\ntwo\"}]", "");
    becomes("/v1/messages", MESSAGES(USER(DOCUMENT(PLAIN, ",\"title\":\"T\",\"context\":\"C\"") "," SAID("Well?"))),
            "[{\"role\":\"user\",\"content\":[" SAID("T\\nC\\none\\ntwo") "," SAID("Well?") "]}]", "");
    becomes("/v1/messages",
            MESSAGES(USER(DOCUMENT(PLAIN, ",\"title\":null,\"citations\":{\"enabled\":true},"
                                          "\"cache_control\":{\"type\":\"ephemeral\"}"))),
            "[{\"role\":\"user\",\"content\":\"one\\ntwo\"}]", "messages[0].content[0].citations");
    becomes("/v1/messages", MESSAGES(USER(DOCUMENT("\"type\":\"content\",\"content\":\"one\"", ",\"title\":\"T\""))),
            "[{\"role\":\"user\",\"content\":\"T\\none\"}]", "");
    becomes("/v1/messages",
            MESSAGES(USER(DOCUMENT("\"type\":\"content\",\"content\":[" SAID("one") "," SAID("two") "]", ""))),
            "[{\"role\":\"user\",\"content\":\"one\\ntwo\"}]", "");
    becomes("/v1/messages", MESSAGES(USER(FOUND ",\"citations\":{\"enabled\":false}}")),
            "[{\"role\":\"user\",\"content\":\"T\\nhttps://a.example\\nx\\ny\"}]", "");
    becomes(
        "/v1/messages",
        MESSAGES("{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\","
                 "\"input\":{}}]}," USER("{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":[" SAID(
                     "r") "," DOCUMENT(PLAIN, ",\"title\":\"T\"") "," FOUND "}]}")),
        "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":"
        "{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":[" SAID(
            "r") "," SAID("T\\none\\ntwo") "," SAID("T\\nhttps://a.example\\nx\\ny") "]}]",
        "");
}

static void test_refused(void **state)
{
    is_refused(MESSAGES(USER("{\"type\":\"image\",\"source\":{}}")), NOT, "messages[0].content[0].type",
               "this is 'image'; expected text, document, search_result or tool_result");
    is_refused(MESSAGES(USER(DOCUMENT("\"type\":\"base64\",\"media_type\":\"application/pdf\",\"data\":\"\"", ""))),
               NOT, "messages[0].content[0].source.type",
               "this is 'base64'; expected a source of type text or content");
    is_refused(MESSAGES(USER(DOCUMENT("\"type\":\"content\",\"content\":[{\"type\":\"image\"}]", ""))), NOT,
               "messages[0].content[0].source.content[0].type", "this is 'image'");
    is_refused(MESSAGES(USER(DOCUMENT("\"type\":\"text\",\"media_type\":\"text/html\",\"data\":\"\"", ""))), RANGE,
               "messages[0].content[0].source.media_type", "expected text/plain");
    is_refused(MESSAGES(USER(DOCUMENT("\"type\":\"text\"", ""))), MISSING, "messages[0].content[0].source.data", "");
    is_refused(MESSAGES(USER(DOCUMENT("\"type\":\"content\"", ""))), MISSING, "messages[0].content[0].source.content",
               "");
    is_refused(MESSAGES(USER("{\"type\":\"document\"}")), MISSING, "messages[0].content[0].source", "");
    is_refused(MESSAGES(USER("{\"type\":\"document\",\"source\":5}")), TYPE, "messages[0].content[0].source", "");
    is_refused(MESSAGES(USER(DOCUMENT(PLAIN, ",\"title\":5"))), TYPE, "messages[0].content[0].title", "a string");
    is_refused(MESSAGES(USER("{\"type\":\"search_result\",\"title\":\"T\"}")), MISSING,
               "messages[0].content[0].content", "");
    is_refused("{\"max_tokens\":5,\"system\":[" DOCUMENT(PLAIN, "") "],\"messages\":[" U "]}", NOT, "system[0].type",
               "this is 'document'; expected blocks of type text");
    is_refused(MESSAGES("{\"role\":\"assistant\",\"content\":[" DOCUMENT(PLAIN, "") "]}"), NOT,
               "messages[0].content[0].type", "this is 'document'; expected text, thinking or tool_use");
}

/* A system prompt without a word is none: templates have one of their own where there is none. */
static void test_no_system(void **state)
{
    static const char user[] = "[{\"role\":\"user\",\"content\":\"hi\"}]";
    static const char *const none[] = { "[]", "\"\"", "[{\"type\":\"text\",\"text\":\"\"}]",
                                        "[{\"type\":\"text\",\"text\":\"\"},{\"type\":\"text\",\"text\":\"\"}]" };
    char body[300];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        snprintf(body, sizeof body, "{\"max_tokens\":5,\"system\":%s,\"messages\":[" U "]}", none[i]);
        becomes("/v1/messages", body, user, "");
    }
    becomes("/v1/responses", "{\"instructions\":\"\",\"input\":\"hi\"}", user, "");
    becomes("/v1/messages", "{\"max_tokens\":5,\"system\":\" \",\"messages\":[" U "]}",
            "[{\"role\":\"system\",\"content\":\" \"},{\"role\":\"user\",\"content\":\"hi\"}]", "");
    becomes("/v1/responses", "{\"instructions\":\"S\",\"input\":\"hi\"}",
            "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"hi\"}]", "");
}

/* The message of a refusal by route. */
static void says(const char *path, const hn_refusal *r, const char *begins, bool or_not)
{
    hn_bytes o = { 0 };
    assert_true(hn_refusal_body(path, r, "id1", &o));
    hn_bytes_add(&o, "", 1);
    if (!strstr(o.p, begins) != or_not) fail_msg("%s: %s\n '%s'", path, o.p, begins);
    hn_bytes_free(&o);
}

static void test_too_long(void **state)
{
    static const char words[] = "prompt is too long: 6009 tokens > 1024 maximum";
    static const char begins[] = "\"message\":\"prompt is too long: 6009 tokens > 1024 maximum; the request has 6009";
    hn_refusal r;
    assert_false(hn_refuse_context(&r, 6009, 1024));
    says("/v1/messages", &r, begins, false);
    says("/v1/messages/count_tokens", &r, begins, false);
    says("/v1/chat/completions", &r, words, true);
    says("/completion", &r, words, true);
    says("/api/chat", &r, words, true);
    hn_refuse(&r, 400, NULL, NULL, "else");
    says("/v1/messages", &r, "\"message\":\"else\"", false);
}

/* The field that said how much to think, as its sender knows it. */
static void test_effort_fields(void **state)
{
    static const struct {
        const char *path, *more, *effort, *field;
    } rows[] = {
        { "/v1/messages", "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":5}", "on", "thinking" },
        { "/v1/messages", "\"thinking\":{\"type\":\"disabled\"}", "off", "thinking" },
        { "/v1/messages", "\"output_config\":{\"effort\":\"low\"}", "low", "output_config.effort" },
        { "/v1/messages", "\"thinking\":{\"type\":\"enabled\"},\"output_config\":{\"effort\":\"low\"}", "low",
          "output_config.effort" },
        { "/v1/messages", "\"thinking\":{\"type\":\"disabled\"},\"output_config\":{\"effort\":\"low\"}", "off",
          "thinking" },
        { C_PATH, "\"reasoning_effort\":\"low\"", "low", "reasoning_effort" },
        { C_PATH, "\"enable_thinking\":false", "off", "enable_thinking" },
        { C_PATH, "\"reasoning\":{\"effort\":\"low\",\"enabled\":true}", "low", "reasoning.effort" },
        { "/api/chat", "\"think\":true", "on", "think" },
        { "/api/chat", "\"think\":\"low\"", "low", "think" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[300];
        hn_ask a;
        hn_refusal r;
        snprintf(body, sizeof body, "{\"max_tokens\":5,\"messages\":[" U "],%s}", rows[i].more);
        if (!ask_of(&a, rows[i].path, body, NULL, &r)) fail_msg("%s: %s", body, r.message);
        assert_string_equal(a.effort, rows[i].effort);
        assert_string_equal(a.effort_param, rows[i].field);
        hn_ask_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents), cmocka_unit_test(test_refused),       cmocka_unit_test(test_no_system),
        cmocka_unit_test(test_too_long),  cmocka_unit_test(test_effort_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
