/* The calls of what stays when sequences go, and of adapters of one sequence: a part of api_calls.h, which has what
 * they work on. */
#ifndef HN_API_CALLS_KEEP_H
#define HN_API_CALLS_KEEP_H

static void c_seq_keep(void)
{
    prefill(2);
    STATUS(hone_seq_keep(NEED("s", session), RANGE("seq", 0), aw->err));
}
static void c_seq_set_scope(void)
{
    prefill(0);
    STATUS(hone_seq_set_scope(NEED("s", session), RANGE("seq", 1), ANY("scope", (uint64_t)7), aw->err));
    assert_int_equal(hone_seq_set_scope(session, 1, 0, NULL), HONE_OK);
}
static void c_session_prefix_info(void)
{
    hone_prefix_info out;
    memset(&out, 1, sizeof out);
    hone_session_prefix_info(NEED("s", session), NEED("out", &out));
    NEUTRAL(aw_is("s") || aw_is("out"));
    EMPTY("out", ZERO(out));
}
static void c_session_drop_prefixes(void)
{
    hone_session_drop_prefixes(NEED("s", session));
    NEUTRAL(aw_is("s"));
}
static void c_seq_set_adapters(void)
{
    hone_adapter *list[] = { adapter, NEED("adapters[1]", adapter) };
    float scales[] = { 1, RANGE("scales[1]", 2.0f) };
    prefill(0);
    STATUS(hone_seq_set_adapters(NEED("s", session), RANGE("seq", 0), NEED("adapters", list), MAY("scales", scales),
                                 COUNT("n", 2), aw->err));
    assert_int_equal(hone_seq_adapters_hash(session, 0) != 0, !aw->failed);
    assert_int_equal(hone_seq_adapters_hash(session, 1), 0);
    assert_int_equal(hone_session_set_adapters(session, NULL, NULL, 0, NULL), HONE_OK);
}
static void c_seq_adapters_hash(void)
{
    prefill(0);
    assert_int_equal(hone_seq_set_adapters(session, 0, &adapter, NULL, 1, NULL), HONE_OK);
    NEUTRAL(!hone_seq_adapters_hash(NEED("s", session), RANGE("seq", 0)));
    assert_int_equal(hone_session_set_adapters(session, NULL, NULL, 0, NULL), HONE_OK);
}

#endif
