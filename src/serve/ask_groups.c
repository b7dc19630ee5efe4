/* Fields that several APIs have: sampling, forms of the answer, what llama-server and hone add, and what OpenAI's
 * routes share. Owns their limits; refuses to know which API has which. */
#include "serve/ask_fields.h"

#include <limits.h>
#include <math.h>

/* ---- sampling ---------------------------------------------------------------------------- */

static bool read_seed(hn_fields *f, const json_t *v, const char *path)
{
    int64_t i;
    uint64_t u;
    if (json_is_real(v) && json_real_value(v) >= 0x1p63) { /* a tree has no whole numbers above 2^63 - 1 */
        const char *digits;
        size_t n;
        hn_jread j;
        if (!hn_json_raw(f->body, f->len, path, '.', &digits, &n) ||
            hn_jread_begin(&j, digits, n, NULL, "seed", NULL, NULL) != HONE_OK || hn_jread_u64(&j, &u) != HONE_OK)
            return hn_field_range(f, path, v, "a whole number from -2^63 to 2^64 - 1");
    } else {
        if (!hn_field_int(f, v, path, INT64_MIN, INT64_MAX, &i)) return false;
        if (i == -1) return true; /* any */
        u = (uint64_t)i;
    }
    f->ask->sampling.seed = u;
    f->ask->has_seed = true;
    return true;
}

/* An empty one, as programs send of a field that nobody filled in, stops nothing. */
static bool add_stop(hn_fields *f, const json_t *v, const char *path, const char **list)
{
    hn_ask *a = f->ask;
    const char *s;
    if (!hn_field_text(f, v, path, &s)) return false;
    size_t n = strlen(s);
    if (n > HN_ASK_STOP_BYTES) return hn_field_range(f, path, v, "at most 256 bytes");
    if (n > a->longest_stop) a->longest_stop = n;
    if (n) list[a->n_stops++] = s;
    return true;
}

bool hn_field_stop(hn_fields *f, const json_t *v, const char *path)
{
    char at[HN_ASK_PATH];
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (!json_is_array(v) && !json_is_string(v)) return hn_field_wrong(f, path, v, "a string or an array of strings");
    if (n > HN_ASK_STOPS)
        return hn_refuse(f->refusal, 400, "out_of_range", path, "%s has %zu strings; expected at most %d", path, n,
                         HN_ASK_STOPS);
    const char **list = hn_arena_alloc(f->ask->arena, n * sizeof *list);
    if (!list) return hn_field_lost(f);
    f->ask->stops = list;
    f->ask->n_stops = 0;
    if (json_is_string(v)) return add_stop(f, v, path, list);
    for (size_t i = 0; i < n; i++)
        if (!add_stop(f, json_array_get(v, i), hn_field_element(at, path, i), list)) return false;
    return true;
}

static bool max_tokens(hn_fields *f, const json_t *v, const char *path, int64_t least)
{
    int64_t n;
    if (!hn_field_int(f, v, path, least, INT64_MAX, &n)) return false;
    if (n < 0) return true; /* what the context holds: no wish */
    if (f->max_by && n != f->ask->max_tokens)
        return hn_refuse(f->refusal, 400, "out_of_range", path,
                         "%s is %lld and %s is %lld; expected one of them, or the same", path, (long long)n, f->max_by,
                         (long long)f->ask->max_tokens);
    f->max_by = hn_arena_strndup(f->ask->arena, path, strlen(path));
    f->ask->max_tokens = n;
    return f->max_by || hn_field_lost(f);
}

/* -1: what the context holds, as clients of llama-server and LM Studio also say it on OpenAI's routes. */
bool hn_field_max_tokens(hn_fields *f, const json_t *v, const char *path) { return max_tokens(f, v, path, -1); }

/* llama-server also has -2, until the context is full: the same here. */
bool hn_field_max_native(hn_fields *f, const json_t *v, const char *path) { return max_tokens(f, v, path, -2); }

static bool one_bias(hn_fields *f, const json_t *v, const char *path, hn_ask_bias *b)
{
    b->bias = -INFINITY;
    if (json_is_false(v)) return true;
    double d = json_number_value(v);
    if (!json_is_number(v)) return hn_field_wrong(f, path, v, "a number, or false for never");
    if (!(d >= -100 && d <= 100)) return hn_field_range(f, path, v, "-100 to 100");
    b->bias = (float)d;
    return true;
}

/* Digits, behind a minus or not, or nothing: meant as an id. Every other key is a text, as llama-server has it. */
static bool number_of(const char *s)
{
    s += *s == '-';
    return s[strspn(s, "0123456789")] == 0;
}

/* Decimal digits alone. */
static bool id_of(const char *s, int64_t *id)
{
    *id = 0;
    for (const char *p = s; *p; p++) {
        if (*p < '0' || *p > '9' || *id > INT32_MAX) return false;
        *id = *id * 10 + (*p - '0');
    }
    return *s != 0;
}

static bool read_bias(hn_fields *f, const json_t *v, const char *path)
{
    const char *key;
    char at[HN_ASK_PATH], sub[HN_ASK_PATH];
    size_t n = json_is_object(v) ? json_object_size(v) : json_array_size(v), i = 0;
    int64_t id;
    json_t *m;
    if (!json_is_object(v) && !json_is_array(v))
        return hn_field_wrong(f, path, v, "an object of tokens, or an array of [token, bias]");
    if (n > HN_ASK_BIASES)
        return hn_refuse(f->refusal, 400, "out_of_range", path, "%s has %zu entries; expected at most %d", path, n,
                         HN_ASK_BIASES);
    hn_ask_bias *list = hn_arena_alloc(f->ask->arena, n * sizeof *list);
    if (!list) return hn_field_lost(f);

    json_object_foreach((json_t *)v, key, m) /* of an array: none */
    {
        hn_field_path(at, path, key);
        if (number_of(key)) {
            if (!id_of(key, &id) || id >= f->limits->n_vocab)
                return hn_refuse(f->refusal, 400, "out_of_range", at, "%s: expected a token id from 0 to %d, or a text",
                                 at, f->limits->n_vocab - 1);
            list[i].id = (int32_t)id;
        } else if (!(list[i].text = hn_arena_strndup(f->ask->arena, key, strlen(key)))) {
            return hn_field_lost(f);
        }
        if (!one_bias(f, m, at, list + i++)) return false;
    }
    for (; i < n; i++) {
        const json_t *pair = json_array_get(v, i), *token = json_array_get(pair, 0);
        hn_field_element(at, path, i);
        if (json_array_size(pair) != 2) return hn_field_wrong(f, at, pair, "an array of a token and its bias");
        if (!one_bias(f, json_array_get(pair, 1), hn_field_element(sub, at, 1), list + i)) return false;
        hn_field_element(sub, at, 0);
        if (json_is_string(token)) {
            if (!hn_field_text(f, token, sub, &list[i].text)) return false;
        } else {
            if (!hn_field_int(f, token, sub, 0, f->limits->n_vocab - 1, &id)) return false;
            list[i].id = (int32_t)id;
        }
    }
    f->ask->bias = list;
    f->ask->n_bias = n;
    return true;
}

static bool read_top_k(hn_fields *f, const json_t *v, const char *path)
{
    int64_t k;
    if (!hn_field_int(f, v, path, -1, INT32_MAX, &k)) return false;
    f->ask->sampling.top_k = k < 0 ? 0 : (int32_t)k; /* -1 is off elsewhere */
    return true;
}

static bool read_n(hn_fields *f, const json_t *v, const char *path)
{
    int64_t n;
    if (!hn_field_int(f, v, path, 1, f->limits->n_slots, &n)) return false;
    f->ask->n = (int32_t)n;
    return true;
}

/* ---- the chain --------------------------------------------------------------------------- */

#define CHAIN "hone samples by penalties, top_k, top_p, min_p and temperature, in this order"

typedef enum stage { PENALTIES, TOP_K, TOP_P, MIN_P, TEMPERATURE, ANOTHER } stage;

/* llama-server's names and letters of samplers. Another: hone lacks it, and its own field says whether it is wanted. */
static const struct {
    const char *name;
    char letter;
    stage stage;
} samplers[] = { { "penalties", 'e', PENALTIES }, { "top_k", 'k', TOP_K },       { "top-k", 0, TOP_K },
                 { "top_p", 'p', TOP_P },         { "top-p", 0, TOP_P },         { "nucleus", 0, TOP_P },
                 { "min_p", 'm', MIN_P },         { "min-p", 0, MIN_P },         { "temperature", 't', TEMPERATURE },
                 { "temp", 0, TEMPERATURE },      { "dry", 'd', ANOTHER },       { "typ_p", 'y', ANOTHER },
                 { "typical_p", 0, ANOTHER },     { "typical", 0, ANOTHER },     { "typical-p", 0, ANOTHER },
                 { "typ", 0, ANOTHER },           { "typ-p", 0, ANOTHER },       { "xtc", 'x', ANOTHER },
                 { "top_n_sigma", 's', ANOTHER }, { "top-n-sigma", 0, ANOTHER }, { "adaptive_p", 'a', ANOTHER },
                 { "adaptive-p", 0, ANOTHER } };

/* name NULL: by its letter. */
static bool add_stage(hn_fields *f, const char *name, char letter, const char *path, const json_t *v)
{
    size_t i = 0, n = sizeof samplers / sizeof *samplers;
    if (name ? strcmp(name, "infill") == 0 : letter == 'i') {
        if (f->ask->kind != HN_ASK_INFILL) return hn_field_refused(f, path, "infill is for /infill; " CHAIN);
        f->infill = true;
        return true;
    }
    while (i < n && (name ? strcmp(name, samplers[i].name) != 0 : !letter || letter != samplers[i].letter)) i++;
    if (i == n) { /* passed over, as llama-server does: what is wanted of it stands in a field of its own */
        if (f->limits->strict_fields)
            return hn_field_range(f, path, v, "penalties, top_k, top_p, min_p, temperature, or others that are off");
        hn_field_ignored(f, path);
        return true;
    }
    if (samplers[i].stage != ANOTHER) {
        if (f->n_chain == sizeof f->chain) return hn_field_refused(f, path, CHAIN);
        f->chain[f->n_chain++] = (uint8_t)samplers[i].stage;
    }
    return true;
}

/* Names, or a string of letters. What is not among them does nothing. */
static bool read_samplers(hn_fields *f, const json_t *v, const char *path)
{
    char at[HN_ASK_PATH];
    f->has_chain = true;
    if (json_is_string(v)) {
        for (const char *p = json_string_value(v); *p; p++)
            if (!add_stage(f, NULL, *p, path, v)) return false;
        return true;
    }
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "an array of samplers' names");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *name = json_array_get(v, i);
        hn_field_element(at, path, i);
        if (!json_is_string(name)) return hn_field_wrong(f, at, name, "a sampler's name");
        if (!add_stage(f, json_string_value(name), 0, at, name)) return false;
    }
    return true;
}

/* Whether it changes what is drawn. */
static bool has_effect(const hone_sampler_params *p, stage s)
{
    switch (s) {
    case PENALTIES: return p->repeat_penalty != 1 || p->presence_penalty != 0 || p->frequency_penalty != 0;
    case TOP_K: return p->top_k > 0 && p->temp > 0;
    case TOP_P: return p->top_p < 1 && p->temp > 0;
    case MIN_P: return p->min_p > 0 && p->temp > 0;
    case TEMPERATURE: return p->temp != 1;
    case ANOTHER: break;
    }
    return false;
}

/* Another's sampler; below 0 it is off. */
static bool read_adaptive_target(hn_fields *f, const json_t *v, const char *path)
{
    return (json_is_number(v) && json_number_value(v) < 0) || hn_field_refused(f, path, CHAIN);
}

bool hn_fields_chain(hn_fields *f)
{
    hone_sampler_params *p = &f->ask->sampling, asked = *p;
    int last = -1;
    if (!f->has_chain) return true;
    p->repeat_penalty = 1;
    p->presence_penalty = p->frequency_penalty = 0;
    p->top_k = 0;
    p->top_p = 1;
    p->min_p = 0;
    p->temp = 1;
    if (f->infill) { /* it leaves a few likely tokens: in its place the likeliest */
        p->temp = 0;
        hn_field_ignored(f, "samplers[infill]");
    }
    for (size_t i = 0; i < f->n_chain; i++)
        if (f->chain[i] == TEMPERATURE) p->temp = asked.temp; /* 0: the others but penalties are without effect */
    for (size_t i = 0; i < f->n_chain; i++) {
        stage s = f->chain[i];
        if (s == PENALTIES) {
            p->repeat_penalty = asked.repeat_penalty;
            p->presence_penalty = asked.presence_penalty;
            p->frequency_penalty = asked.frequency_penalty;
        }
        if (s == TOP_K) p->top_k = asked.top_k;
        if (s == TOP_P) p->top_p = asked.top_p;
        if (s == MIN_P) p->min_p = asked.min_p;
        if (!has_effect(p, s)) continue;
        if ((int)s <= last)
            return hn_refuse(f->refusal, 400, "unsupported_parameter", "samplers",
                             "samplers stand in another order, or twice; " CHAIN);
        last = (int)s;
    }
    return true;
}

#define REAL(text, member, least, most) .name = text, .kind = HN_FIELD_REAL, HN_AT(member), .lo = least, .hi = most
#define INT(text, member, least, most) .name = text, .kind = HN_FIELD_INT, HN_AT(member), .lo = least, .hi = most
#define BOOL(text, member) .name = text, .kind = HN_FIELD_BOOL, HN_AT(member)
#define CALL(text, function) .name = text, .kind = HN_FIELD_CALL, .fn = function
#define PASSED(text) .name = text, .kind = HN_FIELD_PASSED
#define LATER(text) .name = text, .kind = HN_FIELD_LATER
#define NEUTRAL(text, value, other, reason) \
    .name = text, .kind = HN_FIELD_NEUTRAL, .lo = value, .hi = other, .why = reason
#define REFUSED(text, reason) .name = text, .kind = HN_FIELD_REFUSED, .why = reason

const hn_field hn_fields_sampling[] = {
    { REAL("temperature", sampling.temp, 0, 5) },
    { REAL("top_p", sampling.top_p, 0, 1) },
    { CALL("top_k", read_top_k) },
    { REAL("min_p", sampling.min_p, 0, 1) },
    { REAL("repeat_penalty", sampling.repeat_penalty, 0.01, 10) },
    { REAL("repetition_penalty", sampling.repeat_penalty, 0.01, 10) },
    { INT("repeat_last_n", sampling.penalty_last_n, -1, 1 << 20) },
    { REAL("presence_penalty", sampling.presence_penalty, -2, 2) },
    { REAL("frequency_penalty", sampling.frequency_penalty, -2, 2) },
    { CALL("seed", read_seed) },
    { CALL("stop", hn_field_stop) },
    { CALL("logit_bias", read_bias) },
    { CALL("n", read_n) },
    { CALL("n_cmpl", read_n) }, /* llama-server's name of it */

    /* samplers of others: what asks for nothing passes, and then so do their details */
    { NEUTRAL("mirostat", 0, 0, CHAIN) },
    { NEUTRAL("xtc_probability", 0, 0, CHAIN) },
    { NEUTRAL("dry_multiplier", 0, 0, CHAIN) },
    { NEUTRAL("typical_p", 1, 0, CHAIN) },
    { NEUTRAL("typ_p", 1, 0, CHAIN) },
    { NEUTRAL("tfs_z", 1, 0, CHAIN) },
    { NEUTRAL("top_a", 0, 0, CHAIN) },
    { NEUTRAL("top_n_sigma", -1, 0, CHAIN) },
    { NEUTRAL("dynatemp_range", 0, 0, CHAIN) },
    { CALL("adaptive_target", read_adaptive_target) },
    { NEUTRAL("min_keep", 0, 1, CHAIN) },
    { CALL("samplers", read_samplers) },
    { NEUTRAL("length_penalty", 1, 1, CHAIN) },
    { NEUTRAL("early_stopping", 0, 0, CHAIN) },
    { NEUTRAL("logits_processors", 0, 0, CHAIN) },
    { NEUTRAL("min_tokens", 0, 0, "ignore_eos goes on to max_tokens") },
    { NEUTRAL("min_new_tokens", 0, 0, "ignore_eos goes on to max_tokens") },
    { NEUTRAL("stop_token_ids", 0, 0, "expected stop") },
    { NEUTRAL("bad_words", 0, 0, "expected logit_bias") },
    { NEUTRAL("allowed_token_ids", 0, 0, "expected structured_outputs or logit_bias") },
    { NEUTRAL("include_stop_str_in_output", 0, 0, "the text ends before a stop string") },
    { NEUTRAL("truncate_prompt_tokens", 0, -1, "nothing is cut silently") },
    { PASSED("mirostat_tau") },
    { PASSED("mirostat_eta") },
    { PASSED("xtc_threshold") },
    { PASSED("dry_base") },
    { PASSED("dry_allowed_length") },
    { PASSED("dry_penalty_last_n") },
    { PASSED("dry_sequence_breakers") },
    { PASSED("dynatemp_exponent") },
    { PASSED("adaptive_decay") },
    { 0 },
};

/* ---- forms of the answer ----------------------------------------------------------------- */

bool hn_field_form(hn_fields *f, const char *path, hone_grammar_kind kind, const char *text)
{
    hn_ask *a = f->ask;
    if (a->has_form)
        return hn_refuse(f->refusal, 400, "unsupported_parameter", path,
                         "%s and %s both say what form the answer has; expected one of them", a->form_param, path);
    a->has_form = true;
    a->form.kind = kind;
    a->form.text = text;
    a->form.len = text ? strlen(text) : 0;
    a->form_param = hn_arena_strndup(a->arena, path, strlen(path));
    return a->form_param || hn_field_lost(f);
}

bool hn_field_schema(hn_fields *f, const json_t *v, const char *path)
{
    const char *text;
    if (!json_is_object(v) && !json_is_boolean(v)) return hn_field_wrong(f, path, v, "a JSON schema (an object)");
    return hn_field_json(f, v, &text) && hn_field_form(f, path, HONE_GRAMMAR_JSON_SCHEMA, text);
}

/* {"name", "schema", "strict", "compact"} */
static bool read_named_schema(hn_fields *f, const json_t *o, const char *path)
{
    char at[HN_ASK_PATH];
    const json_t *v;
    hone_grammar_params *form = &f->ask->form;
    if (!o) return hn_field_missing(f, path, "an object with a schema");
    if (!hn_field_object(f, o, path)) return false;
    if (!(v = hn_field_get(o, "schema")))
        return hn_field_missing(f, hn_field_path(at, path, "schema"), "a JSON schema");
    if (!hn_field_schema(f, v, hn_field_path(at, path, "schema"))) return false;
    if ((v = hn_field_get(o, "strict")) && !hn_field_bool(f, v, hn_field_path(at, path, "strict"), &form->strict))
        return false;
    return !(v = hn_field_get(o, "compact")) || hn_field_bool(f, v, hn_field_path(at, path, "compact"), &form->compact);
}

static bool read_response_format(hn_fields *f, const json_t *o, const char *path)
{
    static const char *const types[] = { "text", "json_object", "json_schema", NULL };
    char at[HN_ASK_PATH];
    const char *type;
    if (!hn_field_type(f, o, path, &type)) return false;
    if (!hn_field_one_of(f, hn_field_get(o, "type"), hn_field_path(at, path, "type"), types, &type)) return false;
    if (type == types[0]) return true;
    const json_t *schema = hn_field_get(o, "schema"), *named = hn_field_get(o, "json_schema");
    if (type == types[2] && (named || !schema)) return read_named_schema(f, named, hn_field_path(at, path, type));
    return schema ? /* as llama-server takes it, by either type */
               hn_field_schema(f, schema, hn_field_path(at, path, "schema"))
                  : hn_field_form(f, path, HONE_GRAMMAR_JSON_OBJECT, NULL);
}

static bool read_text_form(hn_fields *f, const json_t *v, const char *path, hone_grammar_kind kind)
{
    const char *text;
    if (!hn_field_text(f, v, path, &text)) return false;
    return *text == 0 || hn_field_form(f, path, kind, text); /* "": no wish */
}

static bool read_grammar(hn_fields *f, const json_t *v, const char *path)
{
    return read_text_form(f, v, path, HONE_GRAMMAR_GBNF);
}

static bool read_regex(hn_fields *f, const json_t *v, const char *path)
{
    return read_text_form(f, v, path, HONE_GRAMMAR_REGEX);
}

/* A schema, also as text. */
static bool read_json_schema(hn_fields *f, const json_t *v, const char *path)
{
    const char *text;
    if (!json_is_string(v)) return hn_field_schema(f, v, path);
    return hn_field_text(f, v, path, &text) && hn_field_form(f, path, HONE_GRAMMAR_JSON_SCHEMA, text);
}

static bool read_choice(hn_fields *f, const json_t *v, const char *path)
{
    char at[HN_ASK_PATH];
    size_t n = json_array_size(v);
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "an array of strings");
    if (n == 0) return hn_field_range(f, path, v, "at least one string");
    hone_str *list = hn_arena_alloc(f->ask->arena, n * sizeof *list);
    if (!list) return hn_field_lost(f);
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_array_get(v, i);
        if (!hn_field_content(f, s, hn_field_element(at, path, i), list + i)) return false;
        if (list[i].len == 0) return hn_field_range(f, at, s, "a string that is not empty");
    }
    if (!hn_field_form(f, path, HONE_GRAMMAR_CHOICE, NULL)) return false;
    f->ask->form.choices = list;
    f->ask->form.n_choices = n;
    return true;
}

static bool read_json_object(hn_fields *f, const json_t *v, const char *path)
{
    bool wanted;
    if (!hn_field_bool(f, v, path, &wanted)) return false;
    return !wanted || hn_field_form(f, path, HONE_GRAMMAR_JSON_OBJECT, NULL);
}

static bool read_structured(hn_fields *f, const json_t *o, const char *path)
{
    static const hn_field forms[] = {
        { CALL("json", read_json_schema) },        { CALL("regex", read_regex) },
        { CALL("choice", read_choice) },           { CALL("grammar", read_grammar) },
        { CALL("json_object", read_json_object) }, { REFUSED("structural_tag", NULL) },
        { PASSED("disable_any_whitespace") },      { 0 },
    };
    return hn_fields_read(f, o, path, (const hn_field *const[]){ forms, NULL });
}

const hn_field hn_fields_forms[] = {
    { CALL("response_format", read_response_format) },
    { CALL("json_schema", read_json_schema) },
    { CALL("grammar", read_grammar) },
    { CALL("structured_outputs", read_structured) },
    { BOOL("finish_json", finish_json) },
    { CALL("guided_json", read_json_schema) }, /* vLLM's names before structured_outputs */
    { CALL("guided_regex", read_regex) },
    { CALL("guided_choice", read_choice) },
    { CALL("guided_grammar", read_grammar) },
    { 0 },
};

/* ---- llama-server's and ours --------------------------------------------------------------- */

static bool read_salt(hn_fields *f, const json_t *v, const char *path)
{
    hone_str s;
    if (!hn_field_content(f, v, path, &s)) return false;
    uint64_t h = hn_fnv1a(HN_FNV_INIT, s.ptr, s.len);
    f->ask->salt = h ? h : 1;
    return true;
}

bool hn_field_lora(hn_fields *f, const json_t *v, const char *path)
{
    char at[HN_ASK_PATH], sub[HN_ASK_PATH];
    size_t n = json_array_size(v);
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "an array of {\"id\", \"scale\"}");
    if (n > HN_ASK_LORAS)
        return hn_refuse(f->refusal, 400, "out_of_range", path, "%s has %zu entries; expected at most %d", path, n,
                         HN_ASK_LORAS);
    hn_ask_lora *list = hn_arena_alloc(f->ask->arena, n * sizeof *list);
    if (!list) return hn_field_lost(f);
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(v, i), *id, *scale;
        int64_t number = 0;
        hn_field_element(at, path, i);
        if (!hn_field_object(f, o, at)) return false;
        if (!(id = hn_field_get(o, "id")))
            return hn_field_missing(f, hn_field_path(sub, at, "id"), "an adapter's number or name");
        if (json_is_string(id) ? !hn_field_text(f, id, hn_field_path(sub, at, "id"), &list[i].name)
                               : !hn_field_int(f, id, hn_field_path(sub, at, "id"), 0, INT32_MAX, &number))
            return false;
        list[i].id = (int32_t)number;
        list[i].scale = 1;
        if (!(scale = hn_field_get(o, "scale"))) continue;
        double d = json_number_value(scale);
        if (!json_is_number(scale)) return hn_field_wrong(f, hn_field_path(sub, at, "scale"), scale, "a number");
        if (!(d >= -100 && d <= 100)) return hn_field_range(f, hn_field_path(sub, at, "scale"), scale, "-100 to 100");
        list[i].scale = (float)d;
    }
    f->ask->lora = list;
    f->ask->n_lora = n;
    f->ask->has_lora = true;
    return true;
}

static bool read_timeout(hn_fields *f, const json_t *v, const char *path)
{
    return hn_field_int(f, v, path, 0, INT64_MAX, &f->ask->timeout_ms);
}

const hn_field hn_fields_own[] = {
    { BOOL("ignore_eos", ignore_eos) },
    { BOOL("cache_prompt", cache) },
    { CALL("cache_salt", read_salt) },
    { INT("id_slot", slot, -1, INT_MAX) },
    { CALL("lora", hn_field_lora) },
    { BOOL("timings_per_token", timings_per_token) },
    { BOOL("return_tokens", return_tokens) },
    { BOOL("return_progress", include_progress) },
    { CALL("timeout_ms", read_timeout) },
    { PASSED("n_keep") }, /* of context shifts, which hone does not do */
    { PASSED("n_discard") },
    { PASSED("n_cache_reuse") },
    { PASSED("t_max_prompt_ms") },
    { NEUTRAL("t_max_predict_ms", 0, -1, "an answer is not cut by time; timeout_ms ends with an error") },
    { NEUTRAL("n_indent", 0, 0, NULL) },
    { NEUTRAL("image_data", 0, 0, NULL) },
    { NEUTRAL("multimodal_data", 0, 0, NULL) },
    { NEUTRAL("grammar_lazy", 0, 0, "how calls are parsed is the server's") },
    { NEUTRAL("grammar_triggers", 0, 0, "how calls are parsed is the server's") },
    { NEUTRAL("preserved_tokens", 0, 0, "how calls are parsed is the server's") },
    { REFUSED("chat_parser", "how calls are parsed is the server's") },
    { REFUSED("chat_format", "how calls are parsed is the server's") },
    { 0 },
};

/* ---- of all of OpenAI's routes --------------------------------------------------------------- */

static bool read_stream_options(hn_fields *f, const json_t *o, const char *path)
{
    static const hn_field options[] = {
        { BOOL("include_usage", include_usage) },
        { BOOL("include_progress", include_progress) },
        { PASSED("include_obfuscation") },
        { PASSED("continuous_usage_stats") },
        { 0 },
    };
    f->stream_options = true;
    return hn_fields_read(f, o, path, (const hn_field *const[]){ options, NULL });
}

static bool read_store(hn_fields *f, const json_t *v, const char *path)
{
    bool store;
    if (!hn_field_bool(f, v, path, &store)) return false;
    return !store || hn_field_refused(f, path, "nothing is stored; expected false");
}

/* The best of as many as are wanted are those. */
static bool read_best_of(hn_fields *f, const json_t *v, const char *path)
{
    const json_t *n = hn_field_get(f->root, "n");
    double wanted = n ? json_number_value(n) : 1;
    if (!json_is_number(v)) return hn_field_wrong(f, path, v, "a whole number");
    return json_number_value(v) == wanted || hn_field_refused(f, path, "expected n, or the same");
}

const hn_field hn_fields_usual[] = {
    { .name = "model", .kind = HN_FIELD_TEXT, HN_AT(model) },
    { BOOL("stream", stream) },
    { CALL("stream_options", read_stream_options) },
    { CALL("store", read_store) },
    { PASSED("user") },
    { PASSED("metadata") },
    { PASSED("service_tier") },
    { PASSED("safety_identifier") },
    { PASSED("prompt_cache_key") },
    { PASSED("prompt_cache_retention") },
    { PASSED("prompt_cache_options") },
    { PASSED("verbosity") },
    { NEUTRAL("priority", 0, 0, "requests take turns; expected 0") },
    { NEUTRAL("moderation", 0, 0, NULL) },
    { CALL("best_of", read_best_of) },
    { NEUTRAL("use_beam_search", 0, 0, NULL) },
    { 0 },
};

bool hn_fields_agree(hn_fields *f)
{
    hn_ask *a = f->ask;
    if (f->stream_options && !a->stream)
        return hn_refuse(f->refusal, 400, "unsupported_parameter", "stream_options",
                         "stream_options without stream; expected \"stream\": true");
    if (f->top > 0 && f->logprobs != 1) /* clients send 0 where nothing is wanted */
        return hn_refuse(f->refusal, 400, "unsupported_parameter", "top_logprobs",
                         "top_logprobs without logprobs; expected \"logprobs\": true");
    if (f->logprobs == 1) a->top_logprobs = f->top > 0 ? f->top : 0;
    return hn_fields_chain(f);
}

/* ---- prompts --------------------------------------------------------------------------------- */

/* Ids in [from, to) of a mixed prompt. */
static bool take_ids(hn_fields *f, const json_t *v, const char *path, size_t from, size_t to, hn_ask_prompt *p)
{
    char at[HN_ASK_PATH];
    int32_t *ids = hn_arena_alloc(f->ask->arena, (to - from) * sizeof *ids);
    if (!ids) return hn_field_lost(f);
    for (size_t i = from; i < to; i++) {
        int64_t id;
        if (!hn_field_int(f, json_array_get(v, i), hn_field_element(at, path, i), 0, f->limits->n_vocab - 1, &id))
            return false;
        ids[i - from] = (int32_t)id;
    }
    p->ids = ids;
    p->n = to - from;
    return true;
}

/* The texts of {"type": "text", "text": string} parts, in one. */
static bool take_parts(hn_fields *f, const json_t *v, const char *path, hn_ask_prompt *p)
{
    char at[HN_ASK_PATH], sub[HN_ASK_PATH];
    hn_bytes all = { 0 };
    bool ok = json_is_array(v) || hn_field_wrong(f, path, v, "an array of parts of type text");
    for (size_t i = 0; ok && i < json_array_size(v); i++) {
        const char *type;
        const json_t *part = json_array_get(v, i), *text;
        hone_str s;
        ok = hn_field_type(f, part, hn_field_element(at, path, i), &type);
        if (ok && strcmp(type, "text") != 0)
            ok = hn_field_refused(f, hn_field_path(sub, at, "type"), "hone reads text; expected parts of type text");
        if (!ok) break;
        text = hn_field_get(part, "text");
        hn_field_path(sub, at, "text");
        ok = text ? hn_field_content(f, text, sub, &s) : hn_field_missing(f, sub, "a string");
        if (ok) hn_bytes_add(&all, s.ptr, s.len);
    }
    p->len = all.n;
    if (ok) ok = (p->text = hn_bytes_keep(&all, f->ask->arena)) || hn_field_lost(f);
    hn_bytes_free(&all);
    return ok;
}

/* llama-server's prompts with a place for images, of which there may be none: {"prompt_string": text}, {"content":
 * parts}. */
static bool take_object(hn_fields *f, const json_t *v, const char *path, hn_ask_prompt *p)
{
    static const char *const media = "multimodal_data";
    char at[HN_ASK_PATH];
    const json_t *text = hn_field_get(v, "prompt_string"), *parts = hn_field_get(v, "content"),
                 *data = hn_field_get(v, media);
    hone_str s;
    if (!text == !parts) return hn_field_wrong(f, path, v, "a string, token ids, or {\"prompt_string\": a string}");
    if (data && json_array_size(data) + json_object_size(data) + json_string_length(data))
        return hn_field_refused(f, hn_field_path(at, path, media), "hone reads text");
    if (parts) return take_parts(f, parts, hn_field_path(at, path, "content"), p);
    if (!hn_field_content(f, text, hn_field_path(at, path, "prompt_string"), &s)) return false;
    p->text = s.ptr;
    p->len = s.len;
    return true;
}

bool hn_field_prompt(hn_fields *f, const json_t *v, const char *path, hn_ask_prompt *p)
{
    char at[HN_ASK_PATH];
    hone_str s;
    size_t n = json_array_size(v);
    *p = (hn_ask_prompt){ 0 };
    if (json_is_object(v)) return take_object(f, v, path, p);
    if (json_is_string(v)) {
        if (!hn_field_content(f, v, path, &s)) return false;
        p->text = s.ptr;
        p->len = s.len;
        return true;
    }
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "a string, or an array of token ids");
    for (size_t i = 0, pieces = 0; i < n; pieces++) { /* text and runs of ids in turn */
        if (pieces == HN_ASK_PIECES)
            return hn_refuse(f->refusal, 400, "out_of_range", path, "%s has more than %d texts; expected them joined",
                             path, HN_ASK_PIECES);
        size_t end = i;
        while (end < n && !json_is_string(json_array_get(v, end))) end++;
        if (i > 0) {
            hn_ask_prompt *next = hn_arena_alloc(f->ask->arena, sizeof *next);
            if (!next) return hn_field_lost(f);
            p->more = next;
            p = next;
        }
        if (end > i) {
            if (!take_ids(f, v, path, i, end, p)) return false;
            i = end;
        } else {
            if (!hn_field_content(f, json_array_get(v, i), hn_field_element(at, path, i), &s)) return false;
            p->text = s.ptr;
            p->len = s.len;
            i++;
        }
    }
    return true;
}

/* What an array of prompts holds: nothing but numbers is one prompt, and so is a mixture of numbers and texts. */
static bool one_prompt(const json_t *v)
{
    for (size_t i = 0; i < json_array_size(v); i++)
        if (json_is_number(json_array_get(v, i))) return true;
    return !json_is_array(v);
}

bool hn_field_prompts(hn_fields *f, const json_t *v, const char *path, size_t most)
{
    char at[HN_ASK_PATH];
    bool one = one_prompt(v);
    size_t n = one ? 1 : json_array_size(v);
    if (!one && (n == 0 || n > most))
        return hn_refuse(f->refusal, 400, "out_of_range", path, "%s has %zu entries; expected 1 to %zu", path, n, most);
    hn_ask_prompt *list = hn_arena_alloc(f->ask->arena, n * sizeof *list);
    if (!list) return hn_field_lost(f);
    if (one && !hn_field_prompt(f, v, path, list)) return false;
    for (size_t i = 0; !one && i < n; i++)
        if (!hn_field_prompt(f, json_array_get(v, i), hn_field_element(at, path, i), list + i)) return false;
    f->ask->prompt = list;
    f->ask->n_prompt = n;
    return true;
}
