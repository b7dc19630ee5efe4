/* The public functions of grammars and matchers: which notation, which vocabulary. */
#include "engine/engine.h"
#include "base/floats.h"
#include "base/utf8.h"
#include "text/matcher.h"

#include <stdlib.h>

static hone_status compile_choices(hn_grammar *g, const hone_grammar_params *p, hn_gnode *root, hone_error *err)
{
    size_t total = 0;
    for (size_t i = 0; i < p->n_choices; i++) {
        size_t used = 1;
        const hone_str *c = &p->choices[i];
        if (c->len == 0) return HN_FAIL(err, HONE_E_ARG, "choice %zu is empty; expected some text", i);
        for (size_t at = 0; at < c->len; at += used)
            if (hn_utf8_next((const unsigned char *)c->ptr + at, c->len - at, &used) < 0)
                return HN_FAIL(err, HONE_E_ARG, "choice %zu is not UTF-8", i);
        total += c->len;
    }
    if (total > HN_GRAMMAR_TEXT)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "choices of %zu bytes; expected at most %d", total, HN_GRAMMAR_TEXT);
    *root = hn_g_lex(g, hn_lang_words(hn_grammar_lang(g), p->choices, p->n_choices));
    return hn_grammar_check(g, err);
}

static hone_status compile(hn_grammar *g, const hone_grammar_params *p, hn_gnode *root, hone_error *err)
{
    static const char object[] = "{\"type\":\"object\"}";
    hn_schema_rules rules = { .strict = p->strict, .compact = p->compact };
    hn_lang t;
    hone_status st;
    switch (p->kind) {
    case HONE_GRAMMAR_JSON_SCHEMA: return hn_schema_compile(g, p->text, p->len, &rules, root, err);
    case HONE_GRAMMAR_JSON_OBJECT: return hn_schema_compile(g, object, sizeof object - 1, &rules, root, err);
    case HONE_GRAMMAR_GBNF: return hn_gbnf_compile(g, p->text, p->len, root, err);
    case HONE_GRAMMAR_REGEX:
        st = hn_pattern_compile(hn_grammar_lang(g), p->text, p->len, true, "regular expression", &t, err);
        if (st == HONE_OK) *root = hn_g_lex(g, t);
        return st == HONE_OK ? hn_grammar_check(g, err) : st;
    case HONE_GRAMMAR_CHOICE: return compile_choices(g, p, root, err);
    }
    return HN_FAIL(err, HONE_E_ARG, "kind of grammar %d; expected a HONE_GRAMMAR_…", (int)p->kind);
}

hone_status hone_grammar_compile(hone_grammar **out, const hone_grammar_params *p, hone_error *err)
{
    HN_FLOATS;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the grammar");
    HN_NEED(err, p, "the parameters");
    bool has_text = p->kind != HONE_GRAMMAR_JSON_OBJECT && p->kind != HONE_GRAMMAR_CHOICE;
    if (has_text) HN_NEED(err, p->text, "a pointer to len bytes");
    if (p->kind == HONE_GRAMMAR_CHOICE && p->n_choices) HN_NEED(err, p->choices, "a pointer to n_choices texts");
    for (size_t i = 0; p->kind == HONE_GRAMMAR_CHOICE && i < p->n_choices; i++)
        if (!p->choices[i].ptr)
            return HN_FAIL(err, HONE_E_ARG, "%s: p->choices[%zu].ptr is NULL; expected some text", __func__, i);
    hn_grammar *g;
    hn_gnode root = HN_G_FAIL;
    hone_status st = hn_grammar_new(&g, err);
    if (st != HONE_OK) return st;
    st = compile(g, p, &root, err);
    if (st == HONE_OK) st = hn_grammar_finish(g, root, err);
    if (st != HONE_OK) hn_grammar_drop(g);
    else *out = g;
    return st;
}

void hone_grammar_free(hone_grammar *g) { hn_grammar_drop(g); }

const char *hone_grammar_notes(const hone_grammar *g) { return g ? hn_grammar_notes(g) : NULL; }

hone_status hone_matcher_new(hone_matcher **out, hone_grammar *g, const hone_model *m, hone_error *err)
{
    HN_FLOATS;
    const hn_vocab *v;
    const hn_token_tree *tree;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the matcher");
    HN_NEED(err, g, "a grammar");
    HN_NEED(err, m, "an open model");
    hone_status st = hn_model_vocab(m, &v, err);
    if (st == HONE_OK) st = hn_vocab_tokens(v, &tree, err);
    return st == HONE_OK ? hn_matcher_new(out, g, tree, err) : st;
}

hone_status hone_matcher_clone(hone_matcher **out, hone_matcher *m, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the matcher");
    HN_NEED(err, m, "a matcher");
    return hn_matcher_copy(out, m, err);
}

void hone_matcher_free(hone_matcher *m) { hn_matcher_free(m); }

hone_status hone_matcher_accept(hone_matcher *m, const int32_t *ids, size_t n, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, m, "a matcher");
    if (n) HN_NEED(err, ids, "a pointer to n ids");
    hone_status st = HONE_OK;
    size_t done = 0;
    for (; done < n && st == HONE_OK; done++) {
        bool ok;
        st = hn_matcher_token(m, ids[done], &ok, err);
        if (st == HONE_OK && !ok)
            st = HN_FAIL(err, HONE_E_ARG, "token id %d does not match the grammar here", ids[done]);
        if (st != HONE_OK) break;
    }
    if (st != HONE_OK) hn_matcher_back(m, done, NULL);
    return st;
}

hone_status hone_matcher_accept_text(hone_matcher *m, const char *text, size_t len, hone_error *err)
{
    HN_FLOATS;
    bool ok;
    HN_NEED(err, m, "a matcher");
    if (len) HN_NEED(err, text, "a pointer to len bytes");
    hone_status st = hn_matcher_bytes(m, text, len, &ok, err);
    if (st == HONE_OK && !ok)
        st = HN_FAIL(err, HONE_E_ARG, "the text %s does not match the grammar here", HN_ESC(text, len > 40 ? 40 : len));
    return st;
}

bool hone_matcher_can_end(const hone_matcher *m) { return m && hn_matcher_ends(m); }

hone_status hone_matcher_rollback(hone_matcher *m, size_t n, hone_error *err)
{
    HN_NEED(err, m, "a matcher");
    return hn_matcher_back(m, n, err);
}

hone_status hone_matcher_mask_within(hone_matcher *m, int64_t left, uint64_t *allowed, size_t n_words, int64_t *n,
                                     hone_error *err)
{
    HN_FLOATS;
    if (n) *n = 0;
    HN_NEED(err, m, "a matcher");
    if (n_words) HN_NEED(err, allowed, "a pointer to n_words words");
    HN_NEED(err, n, "a place for the number of tokens");
    return hn_matcher_mask_within(m, left, allowed, n_words, n, err);
}

hone_status hone_matcher_mask(hone_matcher *m, uint64_t *allowed, size_t n_words, int64_t *n, hone_error *err)
{
    HN_FLOATS;
    if (n) *n = 0;
    HN_NEED(err, m, "a matcher");
    if (n_words) HN_NEED(err, allowed, "a pointer to n_words words");
    HN_NEED(err, n, "a place for the number of tokens");
    return hn_matcher_mask(m, allowed, n_words, n, err);
}
