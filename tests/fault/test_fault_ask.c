/* Out of memory in the server's voices: the k-th allocation fails while a body is read, and while it is answered,
 * streamed and not. A body is then refused with status 500, never as wrong and never with a part missing; an answer is
 * given up, never sent with a part missing; and nothing leaks. */
#include "base/json_tree.h"
#include "serve/ask.h"

#include <setjmp.h>

#include <cmocka.h>

#include "failing.h"

#include "../unit/ask_cases.h"
#include "../unit/voice_says.h"

static const struct {
    const char *path, *body;
} bodies[] = {
    { "/v1/chat/completions",
      "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":"
      "\"b\"}]},{"
      "\"role\":\"assistant\",\"reasoning\":\"hm\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"function\":{"
      "\"name\":\"f\","
      "\"arguments\":{\"a\":1}}}]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"}],\"tools\":[{\"type\":"
      "\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],\"tool_choice\":{\"type\":\"function\","
      "\"function\":{"
      "\"name\":\"f\"}},\"stop\":[\"x\"],\"logit_bias\":{\"1\":2},\"lora\":[{\"id\":\"l\"}],\"max_tokens\":5,\"foo\":1,"
      "\"chat_template_kwargs\":{},\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{}}},"
      "\"logprobs\":true,\"model\":\"m\"}" },
    { "/v1/completions",
      "{\"prompt\":[\"a\",[1,\"b\"]],\"echo\":true,\"logprobs\":1,\"structured_outputs\":{\"choice\":["
      "\"a\"]},\"logit_bias\":[[\"x\",1]]}" },
    { "/v1/completions", "{\"prompt\":\"a\",\"suffix\":\"b\"}" },
    { "/completion", "{\"prompt\":\"a\",\"response_fields\":[\"content\",\"timings/prompt_n\"],\"n_probs\":1,"
                     "\"grammar\":\"root ::= x\"}" },
    { "/infill",
      "{\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"input_extra\":[{\"filename\":\"f\",\"text\":\"t\"}]}" },
    { "/v1/messages", "{\"max_tokens\":9,\"system\":\"x-anthropic-billing-header: "
                      "cch=abcde;\",\"messages\":[{\"role\":\"user\",\"content\":"
                      "\"hi\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\","
                      "\"input\":{}}]},{\"role\":"
                      "\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"r\"}]}],"
                      "\"tools\":[{\"name\":\"f\"}]}" },
    { "/v1/responses",
      "{\"input\":[{\"role\":\"user\",\"content\":\"hi\"},{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":"
      "\"f\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"r\"}],"
      "\"instructions\":\"s\",\"tools\":[{\"type\":\"function\",\"name\":\"f\"}],\"top_logprobs\":1,"
      "\"metadata\":{\"a\":\"b\"}}" },
    { "/api/chat",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{"
      "\"name\":\"f\",\"arguments\":{}}}]},{\"role\":\"tool\",\"content\":\"r\"}],\"format\":{},\"options\":{"
      "\"stop\":\"a\"}}" },
    { "/api/generate", "{\"prompt\":\"a\",\"context\":[1,2],\"raw\":true}" },
    { "/v1/embeddings", "{\"input\":[\"a\",[1]]}" },
    { "/rerank", "{\"query\":\"q\",\"documents\":[\"a\",{\"text\":\"b\"}]}" },
};
enum { N_BODIES = sizeof bodies / sizeof *bodies };

/* What an ask hands on, in one text. */
static void told(hn_bytes *o, const hn_ask *a)
{
    const char *texts[] = { a->messages, a->tools,  a->variables, a->form.text,
                            a->model,    a->prefix, a->suffix,    a->ignored };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) hn_bytes_json_text(o, texts[i]);
    for (size_t i = 0; i < a->n_prompt; i++)
        for (const hn_ask_prompt *p = a->prompt + i; p; p = p->more)
            hn_bytes_printf(o, "[%s %zu]", p->text ? p->text : "", p->n);
    for (size_t i = 0; i < a->n_stops; i++) hn_bytes_json_text(o, a->stops[i]);
    hn_bytes_printf(o, "%zu %zu %zu %zu", a->n_bias, a->n_lora, a->n_tool_names, a->n_files);
}

/* All of an answer: whole, then streamed; empty where memory ran out. */
static void answer(hn_bytes *o, const hn_ask *a, const said *s)
{
    void *state = NULL;
    hn_bytes more = { 0 };
    bool ok = voice_whole(a, s, o);
    assert_int_equal(ok, !o->lost && ok);
    ok = voice_stream(a, s, true, &more, &state) && ok;
    a->voice->drop(state);
    hn_bytes_add(o, more.p, more.n);
    if (!ok || o->lost) hn_bytes_free(o);
    hn_bytes_free(&more);
}

static bool same_bytes(const hn_bytes *a, const hn_bytes *b) { return a->n == b->n && !memcmp(a->p, b->p, a->n); }

static void one_body(const char *path, const char *body)
{
    hn_ask a;
    hn_refusal r;
    hn_bytes want = { 0 };
    hn_limits l = ask_limits();
    const hn_voice *v = hn_voice_find("POST", path, true);
    if (!hn_ask_read(&a, v, body, strlen(body), &l, &r)) fail_msg("%s: %s", body, r.message);
    told(&want, &a);
    long k = 0;
    for (;; k++) {
        hn_ask b;
        hn_bytes got = { 0 };
        countdown = k;
        n_failed = 0;
        bool ok = hn_ask_read(&b, v, body, strlen(body), &l, &r);
        countdown = -1;
        if (!ok) {
            assert_int_equal(n_failed, 1);
            if (r.status != 500) fail_msg("%s, allocation %ld: status %d: %s", body, k, r.status, r.message);
            continue;
        }
        told(&got, &b);
        if (!same_bytes(&got, &want)) fail_msg("%s, allocation %ld: %.*s", body, k, (int)got.n, got.p);
        hn_bytes_free(&got);
        hn_ask_free(&b);
        if (!n_failed) break;
    }
    assert_true(k > 3);

    for (size_t i = 0; v->whole && i < N_ANSWERS; i += 3) {
        hn_bytes all = { 0 };
        if (answers[i].n_choices > a.n) continue;
        answer(&all, &a, answers + i);
        assert_true(all.n > 0);
        for (k = 0;; k++) {
            hn_bytes got = { 0 };
            countdown = k;
            n_failed = 0;
            answer(&got, &a, answers + i);
            countdown = -1;
            if (got.n || !n_failed) assert_true(same_bytes(&got, &all));
            hn_bytes_free(&got);
            if (!n_failed) break;
        }
        hn_bytes_free(&all);
    }
    hn_bytes_free(&want);
    hn_ask_free(&a);
}

static void test_bodies(void **state)
{
    for (size_t i = 0; i < N_BODIES; i++) one_body(bodies[i].path, bodies[i].body);
}

static void *counted_malloc(size_t n) { return malloc(n); } /* jansson's own, in a library of its own, is not wrapped */

int main(void)
{
    json_set_alloc_funcs(counted_malloc, free);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bodies) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
