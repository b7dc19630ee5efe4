/* The calls of grammars and their matchers: a part of api_calls.h, which has what they work on. */
#ifndef HN_API_CALLS_GRAMMAR_H
#define HN_API_CALLS_GRAMMAR_H

static void c_grammar_compile(void)
{
    hone_grammar *out = (hone_grammar *)1;
    hone_str choices[] = { { "a", 1 }, { NEED("p->choices[1].ptr", "b"), 1 } };
    hone_grammar_params p = { .kind = RANGE("p->kind", (int32_t)HONE_GRAMMAR_CHOICE),
                              .text = MAY("p->text", "x"),
                              .len = TRUST("p->len", 1),
                              .choices = NEED("p->choices", choices),
                              .n_choices = TRUST("p->n_choices", 2),
                              .strict = TRUST("p->strict", true),
                              .compact = TRUST("p->compact", true) };
    STATUS(hone_grammar_compile(NEED("out", &out), NEED("p", &p), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_grammar_free(out);
}
static void c_grammar_free(void)
{
    hone_grammar *g;
    assert_int_equal(
        hone_grammar_compile(&g, &(hone_grammar_params){ HONE_GRAMMAR_REGEX, "a", 1, .strict = true }, NULL), HONE_OK);
    hone_grammar_free(MAY("g", g));
    NEUTRAL(false);
    if (aw_is("g")) hone_grammar_free(g);
}
static void c_grammar_notes(void) { NEUTRAL(!hone_grammar_notes(NEED("g", grammar))); }
static void c_matcher_new(void)
{
    hone_matcher *out = (hone_matcher *)1;
    STATUS(hone_matcher_new(NEED("out", &out), NEED("g", grammar), NEED("m", model), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_matcher_free(out);
}
static void c_matcher_clone(void)
{
    hone_matcher *out = (hone_matcher *)1;
    STATUS(hone_matcher_clone(NEED("out", &out), NEED("m", matcher), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_matcher_free(out);
}
static void c_matcher_free(void)
{
    hone_matcher *m;
    assert_int_equal(hone_matcher_new(&m, grammar, model, NULL), HONE_OK);
    hone_matcher_free(MAY("m", m));
    NEUTRAL(false);
    if (aw_is("m")) hone_matcher_free(m);
}
static void c_matcher_accept(void)
{
    int32_t ids[] = { letter, RANGE("ids[1]", letter) };
    STATUS(hone_matcher_accept(NEED("m", matcher), NEED("ids", ids), TRUST("n", 2), aw->err));
    if (!aw->failed) assert_int_equal(hone_matcher_rollback(matcher, 2, NULL), HONE_OK);
}
static void c_matcher_accept_text(void)
{
    STATUS(hone_matcher_accept_text(NEED("m", matcher), NEED("text", "ab"), TRUST("len", 2), aw->err));
    if (!aw->failed) assert_int_equal(hone_matcher_rollback(matcher, 1, NULL), HONE_OK);
}
static void c_matcher_can_end(void) { NEUTRAL(!hone_matcher_can_end(NEED("m", matcher))); }
static void c_matcher_rollback(void) { STATUS(hone_matcher_rollback(NEED("m", matcher), TRUST("n", 0), aw->err)); }
static void c_matcher_mask(void)
{
    uint64_t allowed[64];
    int64_t n = 77;
    STATUS(
        hone_matcher_mask(NEED("m", matcher), NEED("allowed", allowed), TRUST("n_words", 64), NEED("n", &n), aw->err));
    EMPTY("n", n == 0);
}
static void c_matcher_mask_within(void)
{
    uint64_t allowed[64];
    int64_t n = 77;
    STATUS(hone_matcher_mask_within(NEED("m", matcher), TRUST("left", 9), NEED("allowed", allowed),
                                    TRUST("n_words", 64), NEED("n", &n), aw->err));
    EMPTY("n", n == 0);
}

#endif
