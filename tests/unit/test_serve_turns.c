/* What turns and answers are made of, in a whole hone serve: earlier turns as ids, roles that a template does not have,
 * the tokens that a text came from, the stop string that cut it. */
#define _GNU_SOURCE
#include "serve_site.h"

/* ---- numbers and texts of answers ------------------------------------------------------------------------------- */

/* Asks, with a body of a format. */
__attribute__((format(printf, 4, 5))) static json_t *ask(int port, const char *path, int status, const char *body, ...)
{
    va_list ap;
    char *text;
    va_start(ap, body);
    if (vasprintf(&text, body, ap) < 0) fail();
    va_end(ap);
    json_t *j = ask_json(port, "POST", path, text, status);
    free(text);
    return j;
}

static const char *text_of(const json_t *j, const char *name)
{
    const char *s = json_string_value(json_object_get(j, name));
    if (!s) fail_msg("%s is no text", name);
    return s;
}

static char *json_text(const json_t *j) { return json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY); }

/* ---- roles ------------------------------------------------------------------------------------------------------ */

#define TURNS "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"

static void sees(int port, const char *model, const char *want)
{
    json_t *j = ask(port, "/apply-template", 200,
                    "{\"model\":\"%s\",\"messages\":[{\"role\":\"developer\",\"content\":\"a\"},{\"role\":\"user\","
                    "\"content\":\"b\"}]}",
                    model);
    assert_string_equal(text_of(j, "prompt"), want);
    json_decref(j);
}

/* The prompt depends on the model that is asked for: not on how many there are, nor on which is loaded. */
static void developers_are_the_models(void **state)
{
    for (int n = 1; n <= 2; n++)
        for (int knows = 0; knows < 2; knows++) {
            running r = { 0 };
            r.p.shelf.n_models = (size_t)n;
            r.p.shelf.chat_template = knows ? TURNS "{# developer #}{{ 'developer' if false }}" : TURNS;
            start(&r, 2);
            const char *want = knows ? "[developer]a[user]b" : "[system]a[user]b";
            sees(r.port, "chat", want);
            sees(r.port, "chat", want);
            if (n == 2) sees(r.port, "other", want);
            stop(&r);
        }
}

/* ---- stop strings ----------------------------------------------------------------------------------------------- */

/* Of stop strings that end at one place the longest is the one that cut the text. */
static void the_longest_stops(void **state)
{
    static const char ask_more[] = "{\"prompt\":\"The dog\",\"n_predict\":30,\"temperature\":0";
    running r = { 0 };
    start(&r, 2);
    json_t *j = ask(r.port, "/completion", 200, "%s}", ask_more);
    char *all = strdup(text_of(j, "content")), one[2] = "", two[3] = "";
    size_t at = 2;
    while (all[at] && memchr(all, all[at], at)) at++; /* a character that was not there before */
    assert_true(all[at] && !((all[at] | all[at - 1]) & 0x80));
    one[0] = two[1] = all[at];
    two[0] = all[at - 1];
    json_decref(j);
    for (int turn = 0; turn < 2; turn++) {
        json_t *stops = json_pack("[s,s]", turn ? one : two, turn ? two : one);
        char *list = json_text(stops);
        j = ask(r.port, "/completion", 200, "%s,\"stop\":%s}", ask_more, list);
        assert_string_equal(text_of(j, "stop_type"), "word");
        assert_string_equal(text_of(j, "stopping_word"), two);
        assert_int_equal(strlen(text_of(j, "content")), at - 1);
        assert_memory_equal(text_of(j, "content"), all, at - 1);
        json_decref(j);
        json_decref(stops);
        free(list);
    }
    free(all);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(developers_are_the_models),
        cmocka_unit_test(the_longest_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
