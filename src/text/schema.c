/* JSON Schema 2020-12 as a grammar. A value is described by several schemas at once: those that references, allOf and
 * choices bring together are flattened into molds, lists of objects whose words all hold. What is not enforced is
 * refused, naming the word and its place. */
#include "text/schema.h"

#include <stdlib.h>
#include <strings.h>

enum { DEPTH_MAX = 64, PROPERTIES_MAX = 10000, ENUM_MAX = 10000 };

/* ---- failures --------------------------------------------------------------------------------- */

void hn_schema_refuse(hn_schema *s, const hn_jnode *at, const char *why)
{
    if (s->st != HONE_OK) return;
    const char *p = HN_JPOINTER(at);
    s->st = HN_FAIL(s->err, HONE_E_UNSUPPORTED, "JSON schema: %s: %s", *p ? p : "the schema itself", why);
}

void hn_schema_tell(hn_schema *s, const hn_jnode *at, const char *what)
{
    enum { ENOUGH = 1000 };
    if (s->told.n == ENOUGH) return;
    for (uint32_t i = 0; i < s->told.n; i++)
        if (s->told.v[i] == at) return;
    hn_schema_put(s, &s->told, at);
    hn_grammar_note(s->g, "%s %s", HN_JPOINTER(at), what);
}

void hn_schema_cannot(hn_schema *s, const hn_jnode *at, const char *why)
{
    char what[200];
    if (!s->rules->lenient) {
        hn_schema_refuse(s, at, why ? why : "hone does not enforce this word");
    } else if (s->st == HONE_OK) {
        s->n_lost++;
        snprintf(what, sizeof what, "is not enforced%s%s", why ? ": " : "", why ? why : "");
        hn_schema_tell(s, at, what);
    }
}

void hn_schema_wrong(hn_schema *s, const hn_jnode *at, const char *expected)
{
    if (s->st != HONE_OK) return;
    const char *p = HN_JPOINTER(at);
    s->st = HN_FAIL(s->err, HONE_E_ARG, "JSON schema: %s: expected %s", *p ? p : "the schema itself", expected);
}

void hn_schema_no_memory(hn_schema *s)
{
    if (s->st == HONE_OK) s->st = HN_FAIL(s->err, HONE_E_NOMEM, "JSON schema");
}

bool hn_schema_number(hn_schema *s, hn_dec *d, hone_str text)
{
    bool read = hn_dec_read(d, s->arena, text);
    if (!read && !d->digit) hn_schema_no_memory(s);
    return read;
}

void hn_schema_put(hn_schema *s, hn_nodes *v, const hn_jnode *x)
{
    if (v->n == v->cap) {
        uint32_t cap = v->cap * 2 + 4;
        const hn_jnode **p = hn_arena_alloc(s->arena, cap * sizeof *p);
        if (!p) {
            hn_schema_no_memory(s);
            return;
        }
        if (v->n) memcpy(p, v->v, v->n * sizeof *p);
        v->v = p;
        v->cap = cap;
    }
    v->v[v->n++] = x;
}

static bool holds(const hn_nodes *v, const hn_jnode *x)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->v[i] == x) return true;
    return false;
}

bool hn_schema_work(hn_schema *s, uint32_t n)
{
    s->work += n;
    if (s->work > HN_SCHEMA_WORK && s->st == HONE_OK)
        s->st = HN_FAIL(s->err, HONE_E_UNSUPPORTED, "JSON schema: it takes more work than a schema may");
    return s->st == HONE_OK;
}

/* ---- words --------------------------------------------------------------------------------------- */

typedef enum word_use { USED, IGNORED, REFUSED, REFUSED_UNLESS_TRUE, REFUSED_UNLESS_FALSE } word_use;

/* What stands behind a word where it can be read. */
typedef enum value_is {
    IS_ANY,
    IS_SCHEMA,
    IS_SCHEMAS, /* by names */
    IS_CHOICES, /* a list of them */
    IS_ITEMS,   /* one, or a list */
    IS_LIST,
    IS_TYPE,
    IS_NAMES, /* or, of draft 3, a flag */
    IS_TEXT,
    IS_COUNT,
    IS_NUMBER,
    IS_BOUND, /* or, of draft 4, a flag */
    IS_STEP
} value_is;

static const struct word {
    const char *name;
    uint8_t use;   /* word_use */
    uint8_t about; /* types */
    uint8_t is;    /* value_is */
} words[] = {
    { "type", USED, 0, IS_TYPE },
    { "enum", USED, 0, IS_LIST },
    { "const", USED, 0, IS_ANY },
    { "$ref", USED, 0, IS_TEXT },
    { "anyOf", USED, 0, IS_CHOICES },
    { "oneOf", USED, 0, IS_CHOICES },
    { "allOf", USED, 0, IS_CHOICES },
    { "not", USED, 0, IS_SCHEMA },
    { "nullable", USED, 0, IS_ANY },
    { "$defs", USED, 0, IS_SCHEMAS },
    { "definitions", USED, 0, IS_SCHEMAS },
    { "$anchor", USED, 0, IS_ANY },
    { "$id", USED, 0, IS_ANY },
    { "id", USED, 0, IS_ANY },
    { "properties", USED, HN_T_OBJECT, IS_SCHEMAS },
    { "required", USED, HN_T_OBJECT, IS_NAMES },
    { "additionalProperties", USED, HN_T_OBJECT, IS_SCHEMA },
    { "patternProperties", USED, HN_T_OBJECT, IS_SCHEMAS },
    { "minProperties", USED, HN_T_OBJECT, IS_COUNT },
    { "maxProperties", USED, HN_T_OBJECT, IS_COUNT },
    { "items", USED, HN_T_ARRAY, IS_ITEMS },
    { "prefixItems", USED, HN_T_ARRAY, IS_CHOICES },
    { "additionalItems", USED, HN_T_ARRAY, IS_SCHEMA },
    { "minItems", USED, HN_T_ARRAY, IS_COUNT },
    { "maxItems", USED, HN_T_ARRAY, IS_COUNT },
    { "minLength", USED, HN_T_STRING, IS_COUNT },
    { "maxLength", USED, HN_T_STRING, IS_COUNT },
    { "pattern", USED, HN_T_STRING, IS_TEXT },
    { "format", USED, 0, IS_TEXT },
    { "minimum", USED, HN_T_NUMBER, IS_NUMBER },
    { "maximum", USED, HN_T_NUMBER, IS_NUMBER },
    { "exclusiveMinimum", USED, HN_T_NUMBER, IS_BOUND },
    { "exclusiveMaximum", USED, HN_T_NUMBER, IS_BOUND },
    { "multipleOf", USED, HN_T_NUMBER, IS_STEP },
    { "title", IGNORED, 0, IS_ANY },
    { "description", IGNORED, 0, IS_ANY },
    { "default", IGNORED, 0, IS_ANY },
    { "example", IGNORED, 0, IS_ANY },
    { "examples", IGNORED, 0, IS_ANY },
    { "$comment", IGNORED, 0, IS_ANY },
    { "$schema", IGNORED, 0, IS_ANY },
    { "deprecated", IGNORED, 0, IS_ANY },
    { "readOnly", IGNORED, 0, IS_ANY },
    { "writeOnly", IGNORED, 0, IS_ANY },
    { "contentEncoding", IGNORED, 0, IS_ANY },
    { "contentMediaType", IGNORED, 0, IS_ANY },
    { "contentSchema", IGNORED, 0, IS_ANY },
    { "discriminator", IGNORED, 0, IS_ANY },
    { "$vocabulary", IGNORED, 0, IS_ANY },
    { "if", REFUSED, 0, IS_ANY },
    { "then", REFUSED, 0, IS_ANY },
    { "else", REFUSED, 0, IS_ANY },
    { "dependentRequired", REFUSED, 0, IS_ANY },
    { "dependentSchemas", REFUSED, 0, IS_ANY },
    { "dependencies", REFUSED, 0, IS_ANY },
    { "contains", REFUSED, 0, IS_ANY },
    { "minContains", REFUSED, 0, IS_ANY },
    { "maxContains", REFUSED, 0, IS_ANY },
    { "$dynamicRef", REFUSED, 0, IS_ANY },
    { "$dynamicAnchor", REFUSED, 0, IS_ANY },
    { "$recursiveRef", REFUSED, 0, IS_ANY },
    { "$recursiveAnchor", REFUSED, 0, IS_ANY },
    { "uniqueItems", REFUSED_UNLESS_FALSE, HN_T_ARRAY, IS_ANY },
    { "propertyNames", REFUSED_UNLESS_TRUE, HN_T_OBJECT, IS_ANY },
    { "unevaluatedItems", REFUSED_UNLESS_TRUE, HN_T_ARRAY, IS_ANY },
    { "unevaluatedProperties", REFUSED_UNLESS_TRUE, HN_T_OBJECT, IS_ANY },
};

static const struct word *word_of(hone_str key)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (hn_str_is(key, words[i].name)) return &words[i];
    return NULL;
}

/* Does x hold for whatever stands there, or is it done? For true; of names for what says no more than that they are
 * strings, and lists them. Without the type the standard's vectors have such a list refused, where that can be. */
static bool says_nothing(const hn_schema *s, const hn_jnode *x)
{
    bool typed = s->rules->lenient, list = false;
    if (x->kind == HN_J_TRUE) return true;
    if (x->kind != HN_J_OBJECT || !hn_str_is(x->key, "propertyNames")) return false;
    for (const hn_jnode *c = x->first; c; c = c->next) {
        const struct word *w = word_of(c->key);
        bool string = hn_str_is(c->key, "type") && c->kind == HN_J_STRING && hn_str_is(c->str, "string");
        bool names = hn_str_is(c->key, "enum") && c->kind == HN_J_ARRAY;
        typed = typed || string;
        list = list || names;
        if (!string && !names && !(w && w->use == IGNORED)) return false;
    }
    return typed || !list;
}

const hn_jnode *hn_schema_names(const hn_schema *s, const hn_jnode *o)
{
    const hn_jnode *x = hn_jget(o, "propertyNames"), *list = hn_jget(x, "enum");
    return list && says_nothing(s, x) ? list : NULL;
}

static bool is_extension(hone_str key) { return key.len > 1 && key.ptr[0] == 'x' && key.ptr[1] == '-'; }

void hn_schema_words(hn_schema *s, const hn_jnode *schema)
{
    for (const hn_jnode *x = s->types_only ? NULL : schema->first; x && s->st == HONE_OK; x = x->next) {
        const struct word *w = word_of(x->key);
        if (!w) {
            if (is_extension(x->key)) continue;
            if (s->rules->strict) hn_schema_refuse(s, x, "a word that hone does not know");
            else hn_schema_tell(s, x, "is not known, and ignored");
        } else if (w->use == REFUSED || (w->use == REFUSED_UNLESS_TRUE && !says_nothing(s, x)) ||
                   (w->use == REFUSED_UNLESS_FALSE && x->kind != HN_J_FALSE)) {
            hn_schema_cannot(s, x, NULL);
        } else if (hn_str_is(x->key, "required") && (x->kind == HN_J_TRUE || x->kind == HN_J_FALSE)) {
            /* of draft 3: said of the property itself, not of the object that has it */
            if (s->rules->strict && x->kind == HN_J_TRUE)
                hn_schema_refuse(s, x, "of draft 3; expected the names in a list beside properties");
            else if (x->kind == HN_J_TRUE)
                hn_schema_tell(s, x, "is of draft 3, and ignored; name the property in a list beside properties");
        }
    }
}

static uint32_t type_named(hone_str name, bool any_case)
{
    static const struct {
        const char *name;
        uint32_t types;
    } known[] = { { "null", HN_T_NULL },     { "boolean", HN_T_FALSE | HN_T_TRUE },
                  { "integer", HN_T_INT },   { "number", HN_T_NUMBER },
                  { "string", HN_T_STRING }, { "array", HN_T_ARRAY },
                  { "object", HN_T_OBJECT } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (hn_str_is(name, known[i].name) ||
            (any_case && name.len == strlen(known[i].name) && strncasecmp(name.ptr, known[i].name, name.len) == 0))
            return known[i].types;
    return 0;
}

uint32_t hn_schema_types(hn_schema *s, const hn_jnode *type)
{
    uint32_t t = 0, one;
    const hn_jnode *x = type->kind == HN_J_ARRAY ? type->first : type;
    for (; x; x = x == type ? NULL : x->next) {
        one = x->kind == HN_J_STRING ? type_named(x->str, s->rules->lenient) : 0;
        if (!one) hn_schema_wrong(s, x, "the name of a type: null boolean integer number string array object");
        t |= one;
    }
    return t;
}

/* ---- references ------------------------------------------------------------------------------------ */

/* The id of x under this word; NULL: it has none, or that is an anchor. */
static const hn_jnode *text_id(const hn_jnode *x, const char *word)
{
    const hn_jnode *id = hn_jget(x, word);
    return id && id->kind == HN_J_STRING && !(id->str.len && *id->str.ptr == '#') ? id : NULL;
}

/* The $id by which x is a resource of its own; NULL: it is none. One that begins with # is an anchor, as drafts 6 and 7
 * write them, and programs write such at every property. */
static const hn_jnode *resource_id(const hn_jnode *x) { return text_id(x, "$id"); }

/* The schema resource that x is part of: the nearest object above it that is one, or the root. */
static const hn_jnode *resource(const hn_jnode *x)
{
    while (x->parent && !resource_id(x)) x = x->parent;
    return x;
}

/* Is this word of x, $id or draft 4's id, the anchor #name? */
static bool is_anchor_id(const hn_jnode *x, const char *word, hone_str name)
{
    const hn_jnode *id = hn_jget(x, word);
    if (!id || id->kind != HN_J_STRING || !id->str.len || *id->str.ptr != '#') return false;
    return hn_str_same((hone_str){ id->str.ptr + 1, id->str.len - 1 }, name);
}

static bool is_anchor(const hn_jnode *x, hone_str name)
{
    const hn_jnode *anchor = hn_jget(x, "$anchor");
    if (anchor && anchor->kind == HN_J_STRING && hn_str_same(anchor->str, name)) return true;
    return is_anchor_id(x, "$id", name) || is_anchor_id(x, "id", name);
}

/* Words of a schema under which values stand, and schemas by names, which may be words too. */
static const char *const over_values[] = { "enum", "const", "default", "example", "examples", NULL };
static const char *const over_names[] = { "properties",       "patternProperties", "$defs", "definitions",
                                          "dependentSchemas", "dependencies",      NULL };

static bool is_among(hone_str word, const char *const *list)
{
    while (*list && !hn_str_is(word, *list)) list++;
    return *list;
}

static bool may_be_schema(const hn_jnode *x)
{
    return x->kind == HN_J_OBJECT || x->kind == HN_J_TRUE || x->kind == HN_J_FALSE;
}

/* Are these schemas by their names, as far as it can be seen? Of a schema most words have other values. */
static bool is_by_names(const hn_jnode *o)
{
    const hn_jnode *c = o->first;
    while (c && (may_be_schema(c) || is_extension(c->key))) c = c->next;
    return !c;
}

static bool is_value_word(const hn_jnode *x)
{
    return hn_str_is(x->key, "const") || (hn_str_is(x->key, "enum") && x->kind == HN_J_ARRAY);
}

/* ELSEWHERE: below a word that hone does not read, where there may be schemas, too. */
typedef enum place { A_SCHEMA, SCHEMAS, A_VALUE, ELSEWHERE } place;

static place place_of(const hn_jnode *x)
{
    const hn_jnode *up = x->parent;
    if (!up || x->tidy) return A_SCHEMA;
    place at = place_of(up);
    if (at == SCHEMAS) return A_SCHEMA;
    const struct word *w = at == A_VALUE || up->kind == HN_J_ARRAY ? NULL : word_of(x->key);
    if (!w || (at == ELSEWHERE && is_by_names(up))) return at == A_SCHEMA ? ELSEWHERE : at;
    switch (w->is) {
    case IS_SCHEMA: return A_SCHEMA;
    case IS_ITEMS: return x->kind == HN_J_ARRAY ? SCHEMAS : A_SCHEMA;
    case IS_SCHEMAS:
    case IS_CHOICES: return SCHEMAS;
    default: return is_value_word(x) ? A_VALUE : ELSEWHERE;
    }
}

/* schema: x is one, or a list of them; else it is schemas by names. */
static const hn_jnode *find_anchor(hn_schema *s, const hn_jnode *x, const hn_jnode *top, bool schema, hone_str name)
{
    if (x->kind != HN_J_OBJECT && x->kind != HN_J_ARRAY) return NULL;
    if (!hn_schema_work(s, 1)) return NULL;
    if (schema && x != top && resource_id(x)) return NULL;
    if (schema && is_anchor(x, name)) return x;
    for (const hn_jnode *c = x->first; c; c = c->next) {
        bool word = schema && x->kind == HN_J_OBJECT;
        if (word && is_among(c->key, over_values)) continue;
        const hn_jnode *found = find_anchor(s, c, top, !(word && is_among(c->key, over_names)), name);
        if (found) return found;
    }
    return NULL;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static void tidy(hn_schema *s, hn_jnode *x);
static bool are_names(hn_schema *s, const hn_jnode *x);

const hn_jnode *hn_schema_target(hn_schema *s, const hn_jnode *schema, const hn_jnode *ref)
{
    if (ref->kind != HN_J_STRING) {
        hn_schema_wrong(s, ref, "a string");
        return NULL;
    }
    const hn_jnode *top = resource(schema), *id = resource_id(top), *found = NULL;
    if (!id && !top->parent) id = text_id(top, "id"); /* draft 4 */
    size_t hash = 0, n = 0;
    while (hash < ref->str.len && ref->str.ptr[hash] != '#') hash++;
    hone_str base = { ref->str.ptr, hash }, own = id ? id->str : (hone_str){ "", 0 };
    if (own.len && own.ptr[own.len - 1] == '#') own.len--; /* the whole of it */
    if (hash && !(id && hn_str_same(own, base))) {
        hn_schema_cannot(s, ref, "a reference to another document; expected one that begins with #");
        return NULL;
    }
    char *fragment = hn_arena_alloc(s->arena, ref->str.len + 1);
    if (!fragment) {
        hn_schema_no_memory(s);
        return NULL;
    }
    for (size_t i = hash + 1; i < ref->str.len; i++) {
        const char *p = ref->str.ptr + i;
        if (*p == '%' && i + 2 < ref->str.len && hex(p[1]) >= 0 && hex(p[2]) >= 0) {
            fragment[n++] = (char)(hex(p[1]) * 16 + hex(p[2]));
            i += 2;
        } else {
            fragment[n++] = *p;
        }
    }
    hone_str f = { fragment, n };
    if (n == 0) found = top;
    else if (*fragment == '/') found = hn_jfollow(top, f);
    else found = find_anchor(s, top, top, true, f);
    if (!found) hn_schema_cannot(s, ref, "nothing is there that it refers to");
    if (!found || !s->rules->lenient) return found;
    place at = place_of(found);
    if (at == SCHEMAS || at == A_VALUE || !may_be_schema(found) || (at == ELSEWHERE && are_names(s, found))) {
        hn_schema_cannot(s, ref, "what it refers to is no schema"); /* but a word's value, which stays as it is */
        return NULL;
    }
    tidy(s, (hn_jnode *)found);
    return found;
}

/* ---- molds -------------------------------------------------------------------------------------------- */

hn_mold hn_mold_new(bool real) { return (hn_mold){ .types = HN_T_ALL, .real = real }; }

hn_mold hn_mold_copy(hn_mold m)
{
    m.members.cap = m.members.n;
    m.forbidden.cap = m.forbidden.n;
    m.absent.cap = m.absent.n;
    m.tags.cap = m.tags.n;
    return m;
}

static void flatten(hn_schema *s, hn_mold *m, const hn_jnode *x);

static void add_choice(hn_schema *s, hn_mold *m, const hn_jnode *list)
{
    if (list->kind != HN_J_ARRAY || list->n == 0) {
        hn_schema_wrong(s, list, "an array of schemas");
        return;
    }
    hn_choice_of *c = hn_arena_alloc(s->arena, (m->n_choice + 1) * sizeof *c);
    if (!c) {
        hn_schema_no_memory(s);
        return;
    }
    if (m->n_choice) memcpy(c, m->choice, m->n_choice * sizeof *c);
    c[m->n_choice] = (hn_choice_of){ .list = list };
    /* a list of its own: s->trail gets shorter from here, and what comes next would be written over this one */
    for (uint32_t i = 0; i < s->trail.n; i++) hn_schema_put(s, &c[m->n_choice].trail, s->trail.v[i]);
    m->choice = c;
    m->n_choice++;
}

/* Is `word` all that x says? */
static bool only(const hn_jnode *x, const char *word)
{
    bool there = false;
    for (const hn_jnode *c = x->first; c; c = c->next) {
        const struct word *w = word_of(c->key);
        if (hn_str_is(c->key, word)) there = true;
        else if (!(w && w->use == IGNORED) && !hn_str_is(c->key, "$defs")) return false;
    }
    return there;
}

/* What is left where x does not hold: types and finite sets are taken away; `at` is the word, for messages. */
static void forbid(hn_schema *s, hn_mold *m, const hn_jnode *x, const hn_jnode *at)
{
    const hn_jnode *type = hn_jget(x, "type"), *list = hn_jget(x, "enum"), *one = hn_jget(x, "const"), *w;
    const uint32_t lost = s->n_lost;
    if (!hn_schema_work(s, 1)) return;
    if (x->less) { /* met by a reference: with less said it would forbid more */
        hn_schema_cannot(s, at, "a word of what is forbidden cannot be read");
        return;
    }
    if (x->kind == HN_J_TRUE) m->none = true;
    if (x->kind == HN_J_FALSE || x->kind == HN_J_TRUE) return;
    if (x->kind != HN_J_OBJECT) {
        hn_schema_wrong(s, x, "a schema: an object, true or false");
        return;
    }
    hn_schema_words(s, x);
    bool empty = true;
    for (const hn_jnode *c = x->first; c; c = c->next) {
        const struct word *k = word_of(c->key);
        if (k && k->use != IGNORED) empty = false;
    }
    if (s->st != HONE_OK) return;
    if (empty) {
        m->none = true;
    } else if (list || one) {
        if (list && list->kind != HN_J_ARRAY) hn_schema_wrong(s, list, "an array");
        for (w = list ? list->first : one; w && s->st == HONE_OK; w = list ? w->next : NULL)
            if (hn_schema_valid(s, x, w)) {
                if (s->n_lost == lost) hn_schema_put(s, &m->forbidden, w);
                else hn_schema_cannot(s, at, "a word of what is forbidden is not enforced");
            }
    } else if (only(x, "type")) {
        m->removed |= hn_schema_types(s, type);
    } else if (only(x, "not")) {
        flatten(s, m, hn_jget(x, "not"));
    } else if (only(x, "anyOf")) {
        for (w = hn_jget(x, "anyOf")->first; w; w = w->next) forbid(s, m, w, at);
    } else if (only(x, "$ref")) {
        const hn_jnode *ref = hn_jget(x, "$ref"), *to = hn_schema_target(s, x, ref);
        bool back = to && holds(&s->trail, to);
        if (back) hn_schema_cannot(s, ref, "a reference that leads back to itself");
        if (s->st != HONE_OK || !to || back) return;
        uint32_t n = s->trail.n;
        hn_schema_put(s, &s->trail, to);
        forbid(s, m, to, at);
        s->trail.n = n;
    } else if (only(x, "required") && (w = hn_jget(x, "required"))->kind == HN_J_ARRAY && w->n == 1 &&
               w->first->kind == HN_J_STRING) {
        m->removed |= HN_T_ALL & ~HN_T_OBJECT; /* for all else required holds */
        hn_schema_put(s, &m->absent, w->first);
    } else if (!s->types_only) {
        hn_schema_cannot(s, at, "hone enforces not of types, of const and enum, and of one required property");
    }
}

static void flatten(hn_schema *s, hn_mold *m, const hn_jnode *x)
{
    s->n_lost += x->lost;
    if (x->kind == HN_J_FALSE) m->none = true;
    if (x->kind == HN_J_FALSE || x->kind == HN_J_TRUE || s->st != HONE_OK) return;
    if (x->kind != HN_J_OBJECT) {
        hn_schema_wrong(s, x, "a schema: an object, true or false");
        return;
    }
    if (holds(&m->members, x) || !hn_schema_work(s, 1)) return;
    hn_schema_words(s, x);
    hn_schema_put(s, &m->members, x);
    uint32_t implied = 0;
    bool says = false;
    for (const hn_jnode *c = x->first; c && s->st == HONE_OK; c = c->next) {
        const struct word *w = word_of(c->key);
        if (w && w->use == USED) implied |= w->about;
        if (hn_str_is(c->key, "type")) {
            const hn_jnode *nullable = hn_jget(x, "nullable");
            m->types &= hn_schema_types(s, c) | (nullable && nullable->kind == HN_J_TRUE ? HN_T_NULL : 0);
            m->typed = says = true;
        } else if (hn_str_is(c->key, "enum") || hn_str_is(c->key, "const")) {
            if (hn_str_is(c->key, "enum") && c->kind != HN_J_ARRAY) hn_schema_wrong(s, c, "an array");
            m->finite = m->typed = says = true;
        } else if (hn_str_is(c->key, "format") && c->kind == HN_J_STRING) {
            if (hn_schema_format(s, c) != HN_LANG_ALL) implied |= HN_T_STRING;
        } else if (hn_str_is(c->key, "$ref")) {
            const hn_jnode *to = hn_schema_target(s, x, c);
            bool back = to && (to == x || holds(&s->trail, to));
            if (back) hn_schema_cannot(s, c, "a reference that leads back to itself, through no array and no object");
            if (s->st != HONE_OK) return;
            if (!to || back) continue; /* what it says is left out */
            uint32_t n = s->trail.n;
            hn_schema_put(s, &s->trail, x);
            hn_schema_put(s, &s->trail, to);
            flatten(s, m, to);
            s->trail.n = n;
        } else if (hn_str_is(c->key, "allOf")) {
            if (c->kind != HN_J_ARRAY || c->n == 0) hn_schema_wrong(s, c, "an array of schemas");
            uint32_t n = s->trail.n;
            hn_schema_put(s, &s->trail, x);
            for (const hn_jnode *a = c->first; a && s->st == HONE_OK; a = a->next) flatten(s, m, a);
            s->trail.n = n;
        } else if (hn_str_is(c->key, "anyOf") || hn_str_is(c->key, "oneOf")) {
            uint32_t n = s->trail.n;
            hn_schema_put(s, &s->trail, x);
            add_choice(s, m, c);
            s->trail.n = n;
        } else if (hn_str_is(c->key, "not")) {
            forbid(s, m, c, c);
        }
    }
    if (!says) m->implied |= implied;
}

void hn_mold_add(hn_schema *s, hn_mold *m, const hn_jnode *schema) { flatten(s, m, schema); }

uint32_t hn_mold_types(const hn_mold *m)
{
    uint32_t t = m->typed ? m->types : m->real || !m->implied ? HN_T_ALL : m->implied;
    if (m->real && (t & HN_T_INT)) t |= HN_T_FRAC; /* 1.0 is an integer */
    return m->none ? 0 : t & ~m->removed;
}

/* ---- what cannot be read ------------------------------------------------------------------------------------ */

static bool are_types(const hn_jnode *type)
{
    const hn_jnode *x = type->kind == HN_J_ARRAY ? type->first : type;
    if (!x) return false; /* of no type is nothing */
    while (x && x->kind == HN_J_STRING && type_named(x->str, true)) x = x == type ? NULL : x->next;
    return !x;
}

static bool can_be_read(hn_schema *s, value_is is, const hn_jnode *x)
{
    hn_dec d;
    bool flag = x->kind == HN_J_TRUE || x->kind == HN_J_FALSE, list = x->kind == HN_J_ARRAY,
         number = x->kind == HN_J_NUMBER && hn_schema_number(s, &d, x->str);
    switch (is) {
    case IS_ANY: return true;
    case IS_SCHEMA: return may_be_schema(x);
    case IS_SCHEMAS: return x->kind == HN_J_OBJECT;
    case IS_ITEMS: return list || may_be_schema(x);
    case IS_CHOICES: return list && x->n;
    case IS_LIST: return list;
    case IS_TYPE: return are_types(x);
    case IS_NAMES: return list || flag;
    case IS_TEXT: return x->kind == HN_J_STRING;
    case IS_COUNT: return number && !d.negative && hn_dec_whole(&d);
    case IS_NUMBER: return number;
    case IS_BOUND: return number || flag;
    case IS_STEP: return number && !d.negative && d.n;
    }
    return true;
}

/* Are words of x, which may be no schema, names of schemas? Those are that cannot be read because they are objects. */
static bool are_names(hn_schema *s, const hn_jnode *x)
{
    bool names = false;
    for (const hn_jnode *c = x->first; c && !names; c = c->next) {
        const struct word *w = word_of(c->key);
        names = w && c->kind == HN_J_OBJECT && !can_be_read(s, w->is, c);
    }
    return names && is_by_names(x);
}

/* Was a part of this value taken out, as a schema that another reference leads to? */
static bool is_spoilt(const hn_jnode *x)
{
    bool spoilt = x->less;
    for (const hn_jnode *c = x->first; c && !spoilt; c = c->next) spoilt = is_spoilt(c);
    return spoilt;
}

static void tidy_children(hn_schema *s, hn_jnode *x, value_is of);

/* One child of x, and what stands below it. False: it is to go, which is told unless it is a null. */
static bool tidy_child(hn_schema *s, const hn_jnode *x, value_is of, hn_jnode *c)
{
    const struct word *w = of == IS_SCHEMA ? word_of(c->key) : NULL; /* else x is the value of a word */
    value_is is = w ? w->is : IS_ANY;
    if (of == IS_SCHEMAS || of == IS_CHOICES || (of == IS_ITEMS && x->kind == HN_J_ARRAY)) {
        tidy(s, c);
    } else if (of == IS_NAMES && c->kind != HN_J_STRING) {
        hn_schema_cannot(s, c, "no name");
        return false;
    } else if (!can_be_read(s, is, c) || (is == IS_SCHEMAS ? c->less : w && is_value_word(c) && is_spoilt(c))) {
        if (c->kind != HN_J_NULL) hn_schema_cannot(s, c, "no value that this word has");
        return false;
    } else if (is == IS_SCHEMA || (is == IS_ITEMS && c->kind != HN_J_ARRAY)) {
        const uint32_t less = s->n_less;
        tidy(s, c);
        if (hn_str_is(c->key, "not") && s->n_less > less) return false; /* with less said it would forbid more */
    } else if (is == IS_SCHEMAS || is == IS_CHOICES || is == IS_ITEMS || is == IS_NAMES) {
        tidy_children(s, c, is);
    }
    return true;
}

static void tidy_children(hn_schema *s, hn_jnode *x, value_is of)
{
    uint32_t n = 0;
    hn_jnode **at = &x->first;
    while (*at && s->st == HONE_OK) {
        if (tidy_child(s, x, of, *at)) {
            (*at)->index = n++;
            at = &(*at)->next;
        } else {
            x->less = true;
            x->lost = x->lost || (*at)->kind != HN_J_NULL;
            hn_jdrop(x, at);
            s->n_less++;
        }
    }
}

/* Programs write null for words that say nothing, and worse. Before anything reads them, words that cannot be read are
 * taken out of the schema and told, so that what the others say holds; what is no schema allows anything. That is the
 * root with all below it, and what references lead to besides, where components are kept elsewhere. */
static void tidy(hn_schema *s, hn_jnode *x)
{
    if (x->tidy) return;
    x->tidy = true;
    if (x->kind == HN_J_OBJECT) tidy_children(s, x, IS_SCHEMA);
    if (may_be_schema(x)) return;
    hn_schema_cannot(s, x, "no schema");
    s->n_less++;
    x->less = x->lost = true;
    x->kind = HN_J_TRUE;
    x->first = NULL;
    x->n = 0;
}

/* ---- the whole ----------------------------------------------------------------------------------------------- */

static void count_all(hn_schema *s, const hn_jnode *x)
{
    if (x->kind == HN_J_OBJECT && hn_str_is(x->key, "properties")) s->n_property += x->n;
    if (x->kind == HN_J_ARRAY && hn_str_is(x->key, "enum")) s->n_enum += x->n;
    for (const hn_jnode *c = x->first; c; c = c->next) count_all(s, c);
}

static void compile(hn_schema *s, const char *text, size_t len, hn_schema_root_fn *make, void *arg, hn_gnode *root)
{
    hn_jnode *tree;
    if ((s->st = hn_jtree(&tree, s->arena, text, len, DEPTH_MAX, "JSON schema", s->err)) != HONE_OK) return;
    s->root = tree;
    if (s->rules->lenient) tidy(s, tree);
    count_all(s, tree);
    if (s->n_property > PROPERTIES_MAX || s->n_enum > ENUM_MAX) {
        s->st = HN_FAIL(s->err, HONE_E_UNSUPPORTED,
                        "JSON schema: %u properties, %u values of enum; expected at most %d and %d", s->n_property,
                        s->n_enum, PROPERTIES_MAX, ENUM_MAX);
        return;
    }
    hn_lang blank = hn_lang_char(s->l, ' ');
    s->space =
        hn_lang_or_all(s->l,
                       (hn_lang[]){ HN_LANG_EMPTY, blank,
                                    hn_lang_cat(s->l, hn_lang_char(s->l, '\n'), hn_lang_repeat(s->l, blank, 0, 20)) },
                       3);
    if (s->rules->compact) s->space = HN_LANG_EMPTY;
    hn_nodes conj = { 0 };
    hn_schema_put(s, &conj, tree);
    hn_gnode all = make ? make(s, tree, arg) : hn_g_rule(s->g, hn_schema_rule(s, &conj));
    hn_schema_emit_all(s);
    if (s->st == HONE_OK) *root = all;
    if (s->st == HONE_OK) s->st = hn_grammar_check(s->g, s->err);
}

hone_status hn_schema_compile(hn_grammar *g, const char *text, size_t len, const hn_schema_rules *r, hn_gnode *root,
                              hone_error *err)
{
    return hn_schema_compile_as(g, text, len, r, NULL, NULL, root, err);
}

hone_status hn_schema_compile_as(hn_grammar *g, const char *text, size_t len, const hn_schema_rules *r,
                                 hn_schema_root_fn *make, void *arg, hn_gnode *root, hone_error *err)
{
    *root = HN_G_FAIL;
    if (len > HN_GRAMMAR_SCHEMA)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "JSON schema: %zu bytes; expected at most %d", len, HN_GRAMMAR_SCHEMA);
    hn_schema s = { .g = g, .l = hn_grammar_lang(g), .arena = hn_arena_new(), .rules = r, .err = err };
    if (!s.arena) return HN_FAIL(err, HONE_E_NOMEM, "JSON schema");
    compile(&s, text, len, make, arg, root);
    free(s.memo);
    free(s.slot);
    hn_arena_free(s.arena);
    return s.st;
}
