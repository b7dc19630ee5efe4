/* Forms that requests ask for, compiled once (serve/forms.h): the same is shared, another is another, what is in use
 * stays, and what is none says why. */
#include "serve/forms.h"

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MANY = 12 };

static hone_grammar_params schema(const char *text)
{
    return (hone_grammar_params){ .kind = HONE_GRAMMAR_JSON_SCHEMA, .text = text, .len = strlen(text) };
}

static hone_grammar *take(hn_forms *f, hone_grammar_params p)
{
    hone_grammar *g = NULL;
    hone_error err;
    if (hn_forms_take(f, &p, &g, &err) != HONE_OK) fail_msg("%s", err.message);
    return g;
}

static void test_shared(void **state)
{
    static const hone_str words[] = { { "ab", 2 }, { "c", 1 } }, other[] = { { "a", 1 }, { "bc", 2 } };
    hn_forms *f = hn_forms_new();
    assert_non_null(f);
    hone_grammar_params one = schema("{\"type\":\"integer\"}"), compact = one, strict = one,
                        choice = { .kind = HONE_GRAMMAR_CHOICE, .choices = words, .n_choices = 2 }, less = choice;
    compact.compact = strict.strict = true;
    less.choices = other;
    hone_grammar *g[] = { take(f, one), take(f, compact), take(f, strict), take(f, choice), take(f, less) };
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++) assert_ptr_not_equal(g[i], g[k]);
    assert_ptr_equal(take(f, one), g[0]); /* twice in use now */
    assert_ptr_equal(take(f, choice), g[3]);
    for (int i = 0; i < 5; i++) hn_forms_give(f, g[i]);
    hn_forms_give(f, g[0]), hn_forms_give(f, g[3]);
    hn_forms_give(f, NULL);
    hn_forms_free(f);
}

/* One in use is not given up, however many come behind it; of the others the last ones are there still. */
static void test_kept(void **state)
{
    char text[MANY][40];
    hn_forms *f = hn_forms_new();
    hone_grammar *used = take(f, schema("{\"const\":\"used\"}")), *last = NULL;
    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof text[i], "{\"const\":%d}", i);
        last = take(f, schema(text[i]));
        hn_forms_give(f, last);
    }
    assert_ptr_equal(take(f, schema(text[MANY - 1])), last);
    assert_ptr_equal(take(f, schema("{\"const\":\"used\"}")), used);
    assert_string_equal(hone_grammar_notes(used), "");
    hn_forms_give(f, used), hn_forms_give(f, used), hn_forms_give(f, last);
    hn_forms_free(f);
}

static void test_refused(void **state)
{
    hn_forms *f = hn_forms_new();
    hone_grammar *g = (hone_grammar *)1;
    hone_error err;
    hone_grammar_params p = schema("{\"contains\":{}}");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hn_forms_take(f, &p, &g, &err), HONE_E_UNSUPPORTED);
        assert_null(g);
        assert_non_null(strstr(err.message, "/contains"));
    }
    hn_forms_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_shared), cmocka_unit_test(test_kept),
                                        cmocka_unit_test(test_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
