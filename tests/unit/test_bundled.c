/* The bundled model's conversations: what models/hone-chat.gguf answers, greedily, to the questions of
 * tests/golden/chat_answers.jsonl, word by word. A line there is a conversation: {"system": …, "tools": […],
 * "turns": [[role, what is said, answer], …]}, role "user" or "tool". The answers were read by a person.
 *
 *     test_bundled --show >FILE    writes the same conversations with the answers of today
 */
#define _GNU_SOURCE
#include "hone.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka's header wants those above */
#include <cmocka.h>

static const char model_path[] = "models/hone-chat.gguf", golden[] = "tests/golden/chat_answers.jsonl";
enum { N_CTX = 512, MAX_ANSWER = 256, AT_LEAST = 40 };

typedef struct talker {
    hone_context *ctx;
    hone_model *m;
    hone_session *s;
} talker;

static void must(hone_status st, const hone_error *e)
{
    if (st != HONE_OK) fail_msg("%s", e->message);
}

static void open_talker(talker *t, const char *cpu, int32_t n_threads)
{
    hone_error e;
    must(hone_context_new(&t->ctx, &(hone_context_params){ .cpu = cpu, .n_threads = n_threads }, &e), &e);
    must(hone_model_open(&t->m, model_path, &(hone_model_params){ .packed = "off" }, &e), &e);
    must(hone_session_new(&t->s, t->ctx, t->m, &(hone_session_params){ .n_ctx = N_CTX }, &e), &e);
}

static void close_talker(talker *t)
{
    hone_session_free(t->s);
    hone_model_close(t->m);
    hone_context_free(t->ctx);
}

/* The most probable answer to messages; malloc'ed. */
static char *answer(talker *t, const json_t *messages, const json_t *tools)
{
    hone_error e;
    char *m = json_dumps(messages, JSON_COMPACT), *d = tools ? json_dumps(tools, 0) : NULL, *text;
    hone_chat_params p = { .messages = m, .tools = d, .add_generation_prompt = true };
    int32_t *ids, out[MAX_ANSWER], kept, n = 0;
    size_t n_ids, len;
    const float *logits;
    hone_model_info info;
    hone_sampler *sampler;
    hone_model_get_info(t->m, &info);
    hone_sampler_params greedy;
    hone_sampler_defaults(&greedy);
    greedy.temp = 0;
    must(hone_sampler_new(&sampler, info.n_vocab, &greedy, &e), &e);
    must(hone_chat_tokenize(t->m, &p, &ids, &n_ids, &e), &e);
    must(hone_seq_sync(t->s, 0, ids, (int32_t)n_ids, &kept, &logits, &e), &e);
    for (; n < MAX_ANSWER; n++) {
        must(hone_sampler_pick(sampler, logits, 0, hone_seq_length(t->s, 0), &out[n], &e), &e);
        if (hone_token_is_eog(t->m, out[n])) break;
        must(hone_append(t->s, 0, &out[n], 1, &logits, &e), &e);
    }
    must(hone_detokenize(t->m, out, (size_t)n, true, &text, &len, &e), &e);
    char *copy = strdup(n == MAX_ANSWER ? "(no end)" : text);
    hone_sampler_free(sampler);
    hone_free(ids);
    hone_free(text);
    free(m);
    free(d);
    return copy;
}

static void add(json_t *messages, const char *role, const char *content)
{
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", role, "content", content));
}

/* Holds a conversation; with `show` its answers become those of today. Returns the answers that differ. */
static int converse(talker *t, json_t *line, bool show, bool tell)
{
    json_t *messages = json_array(), *turn;
    const char *system = json_string_value(json_object_get(line, "system"));
    int differ = 0;
    size_t i;
    if (system) add(messages, "system", system);
    json_array_foreach(json_object_get(line, "turns"), i, turn)
    {
        const char *role, *said, *want;
        if (json_unpack(turn, "[sss]", &role, &said, &want) != 0) fail_msg("%s: no turn", golden);
        add(messages, role, said);
        char *is = answer(t, messages, json_object_get(line, "tools"));
        if (strcmp(is, want) != 0) {
            differ++;
            if (tell && !show) print_error("%s: \"%s\"\n  said \"%s\"\n  was  \"%s\"\n", role, said, is, want);
        }
        add(messages, "assistant", is);
        if (show) json_array_set_new(turn, 2, json_string(is));
        free(is);
    }
    json_decref(messages);
    return differ;
}

static json_t *read_line(FILE *f)
{
    json_error_t e;
    json_t *line = json_loadf(f, JSON_DISABLE_EOF_CHECK, &e);
    if (!line && !feof(f)) fail_msg("%s: %s", golden, e.text);
    return line;
}

static void test_answers(void **state)
{
    talker t;
    int differ = 0, n = 0, turns = 0;
    FILE *f = fopen(golden, "r");
    assert_non_null(f);
    open_talker(&t, NULL, 0);
    for (json_t *line; (line = read_line(f)); n++) {
        differ += converse(&t, line, false, true);
        turns += (int)json_array_size(json_object_get(line, "turns"));
        json_decref(line);
    }
    fclose(f);
    close_talker(&t);
    assert_true(n >= AT_LEAST);
    if (differ) fail_msg("%d of %d answers changed", differ, turns);
}

/* The plainest kernels, one thread: the same answers. A letter of an answer is a difference. */
static void test_scalar(void **state)
{
    talker t;
    FILE *f = fopen(golden, "r");
    assert_non_null(f);
    open_talker(&t, "scalar", 1);
    for (int n = 0; n < 4; n++) {
        json_t *line = read_line(f);
        assert_int_equal(converse(&t, line, false, true), 0);
        json_t *turn = json_array_get(json_object_get(line, "turns"), 0);
        char *s = strdup(json_string_value(json_array_get(turn, 2)));
        s[strlen(s) / 2] ^= 1;
        json_array_set_new(turn, 2, json_string(s));
        assert_int_equal(converse(&t, line, false, false), 1);
        free(s);
        json_decref(line);
    }
    fclose(f);
    close_talker(&t);
}

static int show(void)
{
    talker t;
    FILE *f = fopen(golden, "r");
    if (!f) return 1;
    open_talker(&t, NULL, 0);
    for (json_t *line; (line = read_line(f)); json_decref(line)) {
        converse(&t, line, true, false);
        char *s = json_dumps(line, 0);
        puts(s);
        free(s);
    }
    fclose(f);
    close_talker(&t);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--show") == 0) return show();
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_answers), cmocka_unit_test(test_scalar) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
