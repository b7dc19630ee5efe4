/* Templates as shipped with models, rendered as Jinja2 renders them: every vector of
 * ../shared/data/templates, and the micro cases. */
#include "template/jinja.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define DATA "../shared/data/templates"

static const char *const trusted[] = { "bos_token", "eos_token", NULL };

static bool same(const char *what, const hn_jinja_text *t, const json_t *want)
{
    const char *w = json_string_value(want);
    size_t n = json_string_length(want), i = 0;
    if (t->len == n && memcmp(t->text, w, n) == 0) return true;
    while (i < n && i < t->len && w[i] == t->text[i]) i++;
    print_message("%s: differs at byte %zu of %zu (got %zu)\n  want …%.60s\n  got  …%.60s\n", what, i, n, t->len,
                  w + (i > 20 ? i - 20 : 0), t->text + (i > 20 ? i - 20 : 0));
    return false;
}

/* Spans are ascending, not empty, not adjacent, and hold whole characters. */
static bool spans_ok(const hn_jinja_text *t)
{
    for (size_t i = 0; i < t->n_input; i++) {
        if (t->input[i].begin >= t->input[i].end || t->input[i].end > t->len) return false;
        if (i && t->input[i].begin <= t->input[i - 1].end) return false;
        if (((unsigned char)t->text[t->input[i].begin] & 0xC0) == 0x80) return false;
    }
    return true;
}

static bool check(const char *what, const char *source, const json_t *context, const char *now, const json_t *c,
                  size_t *repr, size_t *mutates)
{
    hn_jinja *t;
    hn_jinja_text out = { 0 };
    hone_error e = { 0 };
    hn_jinja_time clock;
    assert_true(hn_jinja_parse_time(&clock, NULL, now));
    hn_jinja_vars vars = { .context = context, .trusted = trusted, .trust_roles = true, .now = &clock };
    hone_status st = hn_jinja_parse(&t, source, strlen(source), what, NULL, &e);
    if (st == HONE_OK) st = hn_jinja_render(t, &vars, &out, &e);
    bool ok;
    const json_t *error = json_object_get(c, "error");
    if (error) {
        const char *kind = json_string_value(json_object_get(error, "kind")),
                   *message = json_string_value(json_object_get(error, "message"));
        bool raise = strcmp(kind, "raise_exception") == 0;
        size_t n = strlen(e.message), m = strlen(message);
        ok = st != HONE_OK && out.raised == raise &&
             (!raise || (st == HONE_E_ARG && n >= m && strcmp(e.message + n - m, message) == 0));
        if (ok && !raise) ok = strncmp(e.message, what, strlen(what)) == 0 && e.message[strlen(what)] == ':';
        if (!ok)
            print_message("%s: wanted %s \"%s\", got %s %s\n", what, kind, message, hone_status_name(st),
                          st == HONE_OK ? out.text : e.message);
    } else {
        if (st != HONE_OK) print_message("%s: %s\n", what, e.message);
        ok = st == HONE_OK && same(what, &out, json_object_get(c, "expected"));
        if (ok && !spans_ok(&out)) {
            print_message("%s: bad spans\n", what);
            ok = false;
        }
    }
    *repr += ok && json_is_true(json_object_get(c, "contains_python_repr"));
    *mutates += ok && json_is_true(json_object_get(c, "mutates_list"));
    hn_jinja_text_free(&out);
    hn_jinja_free(t);
    return ok;
}

/* with_tools_and_documents_null and its like: the same context with one thing changed. */
static bool check_variant(const char *what, const char *source, const json_t *c, const char *now, size_t *n)
{
    bool ok = true;
    size_t none = 0;
    const json_t *nulls = json_object_get(c, "with_tools_and_documents_null"),
                 *undef = json_object_get(c, "with_add_generation_prompt_undefined");
    if (nulls) {
        json_t *ctx = json_copy(json_object_get(c, "context"));
        if (!json_object_get(ctx, "tools")) json_object_set_new(ctx, "tools", json_null());
        if (!json_object_get(ctx, "documents")) json_object_set_new(ctx, "documents", json_null());
        ok &= check(what, source, ctx, now, nulls, &none, &none);
        json_decref(ctx);
        ++*n;
    }
    if (undef) {
        json_t *ctx = json_copy(json_object_get(c, "context"));
        json_object_del(ctx, "add_generation_prompt");
        ok &= check(what, source, ctx, now, undef, &none, &none);
        json_decref(ctx);
        ++*n;
    }
    return ok;
}

static void shipped(void **state)
{
    DIR *d = opendir(DATA);
    if (!d) {
        print_message("SKIP: no %s\n", DATA);
        skip();
    }
    size_t templates = 0, cases = 0, good = 0, errors = 0, variants = 0, repr = 0, mutates = 0;
    bool ok = true;
    for (struct dirent *f; (f = readdir(d));) {
        size_t n = strlen(f->d_name);
        if (n < 6 || strcmp(f->d_name + n - 5, ".json") != 0 || f->d_name[0] == '_') continue;
        char path[600], label[400];
        snprintf(path, sizeof path, DATA "/%s", f->d_name);
        json_error_t je;
        json_t *all = json_load_file(path, JSON_ALLOW_NUL, &je), *c;
        assert_non_null(all);
        /* the .jinja file itself, not the copy in the JSON file */
        snprintf(path, sizeof path, DATA "/%.*s.jinja", (int)n - 5, f->d_name);
        FILE *in = fopen(path, "rb");
        assert_non_null(in);
        char *source = calloc(1, 1 << 17);
        assert_true(fread(source, 1, (1 << 17) - 1, in) > 0);
        fclose(in);
        const char *now = json_string_value(json_object_get(all, "now"));
        size_t i;
        templates++;
        json_array_foreach(json_object_get(all, "cases"), i, c)
        {
            snprintf(label, sizeof label, "%.*s %s", (int)n - 5, f->d_name,
                     json_string_value(json_object_get(c, "name")));
            bool y = check(label, source, json_object_get(c, "context"), now, c, &repr, &mutates);
            ok &= y;
            good += y;
            cases++;
            errors += y && json_object_get(c, "error");
            ok &= check_variant(label, source, c, now, &variants);
        }
        free(source);
        json_decref(all);
    }
    closedir(d);
    print_message(
        "%zu templates, %zu of %zu cases (%zu of them errors, %zu Python reprs, %zu that change lists), %zu variants\n",
        templates, good, cases, errors, repr, mutates, variants);
    assert_true(ok);
    assert_true(templates >= 20);
}

static void micro(void **state)
{
    json_error_t je;
    json_t *all = json_load_file(DATA "/_jinja_micro.json", JSON_ALLOW_NUL, &je), *c;
    if (!all) {
        print_message("SKIP: no %s/_jinja_micro.json\n", DATA);
        skip();
    }
    size_t i, good = 0, none = 0;
    json_array_foreach(json_object_get(all, "cases"), i, c)
    {
        char label[40];
        snprintf(label, sizeof label, "micro %zu", i);
        bool y = check(label, json_string_value(json_object_get(c, "template")), json_object_get(all, "context"),
                       json_string_value(json_object_get(all, "now")), c, &none, &none);
        if (!y) print_message("  in %s\n", json_string_value(json_object_get(c, "template")));
        good += y;
    }
    print_message("%zu of %zu micro cases\n", good, i);
    assert_int_equal(good, i);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(shipped), cmocka_unit_test(micro) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
