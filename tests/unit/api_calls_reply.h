/* The calls of formats of answers and of answers taken apart: a part of api_calls.h, which has what they work on. */
#ifndef HN_API_CALLS_REPLY_H
#define HN_API_CALLS_REPLY_H

static hone_chat_params format_params(void)
{
    return (hone_chat_params){ .messages = MAY("p->messages", messages),
                               .tools = MAY("p->tools", "[]"),
                               .variables = MAY("p->variables", "{}"),
                               .chat_template = MAY("p->chat_template", THINKS),
                               .now = MAY("p->now", "2026-02-03T04:05:06") };
}
static void c_chat_format_new(void)
{
    hone_chat_format *out = (hone_chat_format *)1;
    hone_chat_params p = format_params();
    STATUS(hone_chat_format_new(NEED("out", &out), MAY("m", model), NEED("p", &p), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_chat_format_free(out);
}
static void c_chat_format_free(void)
{
    hone_chat_format *f = new_format();
    hone_chat_format_free(MAY("f", f));
    NEUTRAL(false);
    if (aw_is("f")) hone_chat_format_free(f);
}
static void c_chat_format_json(void)
{
    const char *json = hone_chat_format_json(NEED("f", format));
    NEUTRAL(!json);
}
static void c_chat_think(void)
{
    char *variables = (char *)1;
    const char *template = MAY("p->chat_template", THINKS);
    hone_chat_params p = { .messages = MAY("p->messages", messages),
                           .tools = MAY("p->tools", "[]"),
                           .variables = MAY("p->variables", "{}"),
                           .chat_template = template ? template : THINKS, /* the model's own has no switch */
                           .now = MAY("p->now", "2026-02-03T04:05:06") };
    STATUS(hone_chat_think(MAY("m", model), NEED("p", &p), NEED("how", "off"), NEED("variables", &variables), aw->err));
    EMPTY("variables", !variables);
    if (!aw->failed) hone_free(variables);
}
static void c_reply_new(void)
{
    hone_reply *out = (hone_reply *)1;
    hone_chat_text prompt = { .text = "x", .len = 1 };
    const char *stops[] = { "ab", NEED("stops[1]", "cd") };
    STATUS(hone_reply_new(NEED("out", &out), NEED("f", format), MAY("prompt", &prompt), NEED("stops", stops),
                          RANGE("n_stops", (size_t)2), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_reply_free(out);
}
static void c_reply_open(void)
{
    hone_reply *out = (hone_reply *)1;
    hone_chat_text prompt = { .text = "x", .len = 1 };
    const char *stops[] = { "ab", NEED("p->stops[1]", "cd") }, *names[] = { "a", NEED("p->names[1]", "b") };
    hone_reply_params p = { .format = NEED("p->format", format),
                            .prompt = MAY("p->prompt", &prompt),
                            .stops = NEED("p->stops", stops),
                            .n_stops = RANGE("p->n_stops", (size_t)2),
                            .tools = MAY("p->tools", "[{\"name\": \"a\"}, {\"name\": \"b\"}]"),
                            .tool_choice = RANGE("p->tool_choice", (int32_t)HONE_TOOLS_AUTO),
                            .names = NEED("p->names", names),
                            .n_names = RANGE("p->n_names", (size_t)2),
                            .one_call = TRUST("p->one_call", true),
                            .marks_as_text = TRUST("p->marks_as_text", true),
                            .form = MAY("p->form", grammar),
                            .reasoning_budget = ANY("p->reasoning_budget", 3),
                            .id_seed = ANY("p->id_seed", (uint64_t)3) };
    STATUS(hone_reply_open(NEED("out", &out), NEED("p", &p), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_reply_free(out);
}
static void c_reply_mask(void)
{
    uint64_t bits[5];
    bool all = true;
    STATUS(hone_reply_mask(NEED("r", reply), NEED("allowed", bits), TRUST("n_words", (size_t)5), NEED("all", &all),
                           aw->err));
    EMPTY("all", !all);
}
static void c_reply_mask_within(void)
{
    uint64_t bits[5];
    bool all = true;
    STATUS(hone_reply_mask_within(NEED("r", reply), TRUST("left", 9), NEED("allowed", bits),
                                  TRUST("n_words", (size_t)5), NEED("all", &all), aw->err));
    EMPTY("all", !all);
}
static void c_reply_stop(void)
{
    const char *stop = hone_reply_stop(MAY("r", reply));
    NEUTRAL(stop != NULL);
}
static void c_reply_settled(void)
{
    int32_t n = hone_reply_settled(MAY("r", reply));
    NEUTRAL(n < 0);
}
static void c_reply_notes(void)
{
    const char *notes = hone_reply_notes(NEED("r", reply));
    NEUTRAL(!notes);
}
static void c_reply_free(void)
{
    hone_reply *r;
    assert_int_equal(hone_reply_new(&r, format, NULL, NULL, 0, NULL), HONE_OK);
    hone_reply_free(MAY("r", r));
    NEUTRAL(false);
    if (aw_is("r")) hone_reply_free(r);
}
static void c_reply_push(void)
{
    const hone_reply_part *parts = (const hone_reply_part *)1;
    size_t n = 77;
    hone_reply_end end = HONE_REPLY_STOP;
    STATUS(hone_reply_push(NEED("r", reply), RANGE("id", 70), NEED("parts", &parts), NEED("n", &n), NEED("end", &end),
                           aw->err));
    EMPTY("parts", !parts);
    EMPTY("n", n == 0);
    EMPTY("end", end == HONE_REPLY_GOES_ON);
}
static void c_reply_flush(void)
{
    const hone_reply_part *parts = (const hone_reply_part *)1;
    size_t n = 77;
    STATUS(hone_reply_flush(NEED("r", reply), NEED("parts", &parts), NEED("n", &n), aw->err));
    EMPTY("parts", !parts);
    EMPTY("n", n == 0);
}

#endif
