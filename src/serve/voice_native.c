/* The voices of llama-server's own routes: /completion, /infill, /tokenize, /detokenize, /apply-template. Owns their
 * shapes; refuses to know models. */
#include "serve/ask_fields.h"
#include "serve/voice_parts.h"

#include <stdlib.h>

/* What the answer says beside the text. */
typedef struct native_own {
    const char *const *fields; /* [n_fields] of response_fields; 0: all */
    size_t n_fields;
    const char *grammar;
    bool probs; /* n_probs */
    bool one;   /* one answer: no array */
} native_own;

/* ---- body to ask ------------------------------------------------------------------------- */

static bool read_probs(hn_fields *f, const json_t *v, const char *path)
{
    int64_t n;
    if (!hn_field_int(f, v, path, 0, HN_ASK_PROBS, &n)) return false;
    if (n > 0 && f->ask->top_logprobs < n) f->ask->top_logprobs = (int32_t)n;
    return true;
}

static const hn_field native_fields[] = {
    { .name = "prompt", .kind = HN_FIELD_LATER },
    { .name = "input_prefix", .kind = HN_FIELD_LATER },
    { .name = "input_suffix", .kind = HN_FIELD_LATER },
    { .name = "input_extra", .kind = HN_FIELD_LATER },
    { .name = "response_fields", .kind = HN_FIELD_LATER },
    { .name = "n_predict", .kind = HN_FIELD_CALL, .fn = hn_field_max_native },
    { .name = "max_tokens", .kind = HN_FIELD_CALL, .fn = hn_field_max_native },
    { .name = "n_probs", .kind = HN_FIELD_CALL, .fn = read_probs },
    { .name = "logprobs", .kind = HN_FIELD_CALL, .fn = read_probs },
    { .name = "post_sampling_probs", .kind = HN_FIELD_BOOL, HN_AT(post_sampling_probs) },
    { .name = "echo", .kind = HN_FIELD_NEUTRAL, .why = "expected /v1/completions" },
    { 0 },
};

/* A wish that hone does not fulfil, of which editors that ask for infills say it with each: it is named. */
static bool read_wish(hn_fields *f, const json_t *v, const char *path)
{
    int64_t n;
    if (!hn_field_int(f, v, path, -1, INT64_MAX, &n)) return false;
    if (n > 0 && f->limits->strict_fields) return hn_field_refused(f, path, NULL);
    if (n > 0) hn_field_ignored(f, path);
    return true;
}

static const hn_field infill_fields[] = {
    { .name = "t_max_predict_ms", .kind = HN_FIELD_CALL, .fn = read_wish },
    { .name = "n_indent", .kind = HN_FIELD_CALL, .fn = read_wish },
    { 0 },
};

static bool read_response_fields(hn_fields *f, native_own *own)
{
    char at[HN_ASK_PATH];
    const json_t *v = hn_field_get(f->root, "response_fields");
    size_t n = json_array_size(v);
    if (!v) return true;
    if (!json_is_array(v)) return hn_field_wrong(f, "response_fields", v, "an array of strings");
    if (n > HN_ASK_PROBS)
        return hn_refuse(f->refusal, 400, "out_of_range", "response_fields",
                         "response_fields has %zu entries; expected at most %d", n, HN_ASK_PROBS);
    const char **list = hn_arena_alloc(f->ask->arena, n * sizeof *list);
    if (!list) return hn_field_lost(f);
    for (size_t i = 0; i < n; i++)
        if (!hn_field_text(f, json_array_get(v, i), hn_field_element(at, "response_fields", i), list + i)) return false;
    own->fields = list;
    own->n_fields = n;
    return true;
}

static bool read_extra(hn_fields *f)
{
    char at[HN_ASK_PATH], sub[HN_ASK_PATH];
    const json_t *v = hn_field_get(f->root, "input_extra"), *m;
    size_t n = json_array_size(v);
    if (!v) return true;
    if (!json_is_array(v)) return hn_field_wrong(f, "input_extra", v, "an array of {\"filename\", \"text\"}");
    hn_ask_file *list = hn_arena_alloc(f->ask->arena, n * sizeof *list);
    if (!list) return hn_field_lost(f);
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(v, i);
        if (!hn_field_object(f, o, hn_field_element(at, "input_extra", i))) return false;
        if (!(m = hn_field_get(o, "text"))) return hn_field_missing(f, hn_field_path(sub, at, "text"), "a string");
        if (!hn_field_text(f, m, hn_field_path(sub, at, "text"), &list[i].text)) return false;
        list[i].name = "tmp"; /* as llama-server calls it */
        if (!(m = hn_field_get(o, "filename"))) continue;
        if (!hn_field_text(f, m, hn_field_path(sub, at, "filename"), &list[i].name)) return false;
    }
    f->ask->files = list;
    f->ask->n_files = n;
    return true;
}

static bool read_gap(hn_fields *f)
{
    static const char *const names[] = { "input_prefix", "input_suffix" };
    const char **to[] = { &f->ask->prefix, &f->ask->suffix };
    const json_t *prompt = hn_field_get(f->root, "prompt");
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = hn_field_get(f->root, names[i]);
        if (!v) return hn_field_missing(f, names[i], "a string");
        if (!hn_field_text(f, v, names[i], to[i])) return false;
    }
    if (!read_extra(f)) return false;
    if (!prompt || (json_is_string(prompt) && json_string_length(prompt) == 0)) return true;
    if (!json_is_string(prompt)) return hn_field_wrong(f, "prompt", prompt, "a string");
    return hn_field_prompts(f, prompt, "prompt", 1);
}

static bool read_body(hn_fields *f)
{
    static const hn_field *const infill[] = {
        infill_fields, native_fields, hn_fields_usual, hn_fields_sampling, hn_fields_forms, hn_fields_own, NULL
    };
    hn_ask *a = f->ask;
    const hn_field *const *tables =
        a->kind == HN_ASK_INFILL ? infill : infill + 1; /* the first that knows a field has it */
    const json_t *prompt = hn_field_get(f->root, "prompt");
    native_own *own = hn_arena_alloc(a->arena, sizeof *own);
    if (!own) return hn_field_lost(f);
    a->own = own;
    a->add_special = true;
    if (!hn_fields_read(f, f->root, "", tables) || !hn_fields_agree(f) || !read_response_fields(f, own)) return false;
    if (a->kind == HN_ASK_INFILL) {
        if (!read_gap(f)) return false;
    } else {
        if (!prompt) return hn_field_missing(f, "prompt", "a string, or token ids");
        if (!hn_field_prompts(f, prompt, "prompt", HN_ASK_PROMPTS)) return false;
    }
    a->return_tokens |= a->stream; /* in a stream they are always there, as llama-server has it */
    own->probs = a->top_logprobs >= 0;
    own->one = a->n == 1 && a->n_prompt <= 1;
    own->grammar = a->has_form && a->form.kind == HONE_GRAMMAR_GBNF ? a->form.text : "";
    a->return_prompt = true;
    return true;
}

static bool parse_as(hn_ask *a, hn_ask_kind kind, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = kind;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_body(&f));
}

static bool parse_text(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return parse_as(a, HN_ASK_TEXT, body, len, l, r);
}

static bool parse_infill(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return parse_as(a, HN_ASK_INFILL, body, len, l, r);
}

/* ---- settings ---------------------------------------------------------------------------- */

static void real(hn_bytes *o, const char *name, float v)
{
    hn_bytes_printf(o, ",\"%s\":", name);
    hn_bytes_f32(o, v);
}

static const char *truth(bool b) { return b ? "true" : "false"; }

/* Without brackets. */
static void sampling(hn_bytes *o, const hone_sampler_params *p, uint64_t seed)
{
    hn_bytes_printf(o, "\"seed\":%llu", (unsigned long long)seed);
    real(o, "temperature", p->temp);
    hn_part_int(o, "top_k", p->top_k);
    real(o, "top_p", p->top_p);
    real(o, "min_p", p->min_p);
    hn_part_int(o, "repeat_last_n", p->penalty_last_n);
    real(o, "repeat_penalty", p->repeat_penalty);
    real(o, "presence_penalty", p->presence_penalty);
    real(o, "frequency_penalty", p->frequency_penalty);
    hn_bytes_text(o, ",\"samplers\":[\"penalties\",\"top_k\",\"top_p\",\"min_p\",\"temperature\"],");
    hn_part_absent(o);
}

static void settings(hn_bytes *o, const hn_ask *a, const hn_usage *u)
{
    const native_own *own = a->own;
    hn_bytes_text(o, "{");
    sampling(o, &a->sampling, u->seed);
    hn_bytes_text(o, ",\"stop\":[");
    for (size_t i = 0; i < a->n_stops; i++) {
        hn_bytes_comma(o);
        hn_bytes_json_text(o, a->stops[i]);
    }
    hn_bytes_text(o, "]");
    hn_part_int(o, "max_tokens", a->max_tokens);
    hn_part_int(o, "n_predict", a->max_tokens);
    hn_bytes_printf(o, ",\"ignore_eos\":%s,\"stream\":%s,\"n_probs\":%d,\"post_sampling_probs\":%s",
                    truth(a->ignore_eos), truth(a->stream), own->probs ? a->top_logprobs : 0,
                    truth(a->post_sampling_probs));
    hn_bytes_printf(o, ",\"timings_per_token\":%s", truth(a->timings_per_token));
    hn_bytes_text(o, ",\"logit_bias\":[");
    for (size_t i = 0; i < a->n_bias; i++) {
        hn_bytes_text(o, i ? ",{\"bias\":" : "{\"bias\":");
        hn_bytes_f32(o, a->bias[i].bias); /* never: no finite number, null */
        hn_bytes_text(o, ",\"token\":");
        if (a->bias[i].text) hn_bytes_json_text(o, a->bias[i].text);
        else hn_bytes_int(o, a->bias[i].id);
        hn_bytes_text(o, "}");
    }
    hn_bytes_text(o, "]");
    hn_part_text(o, "grammar", own->grammar);
    hn_bytes_text(o, ",\"lora\":[");
    for (size_t i = 0; i < a->n_lora; i++) {
        hn_bytes_text(o, i ? ",{\"id\":" : "{\"id\":");
        if (a->lora[i].name) hn_bytes_json_text(o, a->lora[i].name);
        else hn_bytes_int(o, a->lora[i].id);
        real(o, "scale", a->lora[i].scale);
        hn_bytes_text(o, "}");
    }
    hn_bytes_text(o, "]}");
}

/* ---- pieces ------------------------------------------------------------------------------ */

/* "completion_probabilities":[…] of what a choice says in s [n]. */
static void probabilities(hn_bytes *o, const hn_ask *a, const hn_say *s, size_t n, int32_t p, int32_t c)
{
    const native_own *own = a->own;
    if (!own->probs) return;
    hn_bytes_text(o, ",\"completion_probabilities\":");
    hn_part_all_tokens(o, s, n, p, c, true, a->post_sampling_probs);
}

static void tokens(hn_bytes *o, const hn_ask *a, const hn_say *s, size_t n, int32_t p, int32_t c)
{
    hn_bytes_text(o, ",\"tokens\":[");
    for (size_t i = 0; a->return_tokens && i < n; i++) {
        if (s[i].kind != HN_SAY_TEXT || !hn_say_of(s + i, p, c)) continue;
        for (size_t k = 0; k < s[i].n_token; k++) {
            hn_bytes_comma(o);
            hn_bytes_int(o, s[i].token[k].id);
        }
    }
    hn_bytes_text(o, "]");
}

static const char *stop_type(const hn_say *end)
{
    switch (end->why) {
    case HN_WHY_EOG:
    case HN_WHY_CALLS: return "eos";
    case HN_WHY_WORD: return "word";
    case HN_WHY_LENGTH:
    case HN_WHY_CONTEXT: return "limit";
    }
    return "none";
}

/* The part of an answer's end that is no text, without brackets. */
static void last_fields(hn_bytes *o, const hn_ask *a, const hn_head *h, const hn_say *end, bool has_new_line)
{
    const hn_usage *u = hn_say_usage(end);
    hn_bytes_printf(o, ",\"id_slot\":%d,\"stop\":true", end->slot);
    hn_part_text(o, "model", h->model);
    hn_part_int(o, "tokens_predicted", u->completion);
    hn_part_int(o, "tokens_evaluated", u->prompt);
    hn_bytes_text(o, ",\"generation_settings\":");
    settings(o, a, u);
    hn_bytes_text(o, ",\"prompt\":");
    hn_bytes_json(o, end->text ? end->text : "", end->len);
    hn_bytes_printf(o, ",\"has_new_line\":%s,\"truncated\":%s", truth(has_new_line),
                    truth(end->truncated || end->why == HN_WHY_CONTEXT));
    hn_part_text(o, "stop_type", stop_type(end));
    hn_part_text(o, "stopping_word", end->why == HN_WHY_WORD && end->stop_word ? end->stop_word : "");
    hn_part_int(o, "tokens_cached", u->cached);
    hn_bytes_text(o, ",");
    hn_part_timings(o, u);
    hn_bytes_text(o, ",");
    hn_part_hone(o, u);
}

/* text [n], an object, or what response_fields want of it: "a/b" is the member b of a, under that name. */
static void selected(hn_bytes *o, const hn_ask *a, const hn_bytes *text)
{
    const native_own *own = a->own;
    o->lost |= text->lost;
    if (text->lost || own->n_fields == 0) {
        hn_bytes_add(o, text->p, text->lost ? 0 : text->n);
        return;
    }
    hn_bytes_text(o, "{");
    for (size_t i = 0; i < own->n_fields; i++) {
        const char *v;
        size_t n;
        if (!hn_json_raw(text->p, text->n, own->fields[i], '/', &v, &n)) continue;
        hn_bytes_comma(o);
        hn_bytes_json_text(o, own->fields[i]);
        hn_bytes_text(o, ":");
        hn_bytes_add(o, v, n);
    }
    hn_bytes_text(o, "}");
}

static int32_t index_of(const hn_ask *a, const hn_say *s) { return s->prompt * a->n + s->choice; }
static int32_t n_prompts(const hn_ask *a) { return a->n_prompt ? (int32_t)a->n_prompt : 1; }

static bool has_line(const hn_say *s, size_t n, int32_t p, int32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (s[i].kind == HN_SAY_TEXT && s[i].len && hn_say_of(s + i, p, c) && memchr(s[i].text, '\n', s[i].len))
            return true;
    return false;
}

/* ---- a stream ---------------------------------------------------------------------------- */

typedef struct native_state {
    int32_t n;
    struct {
        bool new_line;
        int32_t n_tok;
    } choice[];
} native_state;

static bool begin(const hn_ask *a, const hn_head *h, hn_bytes *o, void **state)
{
    size_t n = (size_t)n_prompts(a) * (size_t)a->n;
    native_state *st = calloc(1, sizeof *st + n * sizeof *st->choice);
    *state = st;
    if (!st) return false;
    st->n = (int32_t)n;
    return true;
}

static void frame(const hn_ask *a, const hn_head *h, native_state *st, const hn_say *s, size_t n, hn_bytes *o)
{
    int32_t at = index_of(a, s);
    bool last = s->kind == HN_SAY_END;
    hn_bytes all = { 0 };
    if (at < 0 || at >= st->n || (s->kind != HN_SAY_TEXT && !last && s->kind != HN_SAY_PROGRESS)) return;
    st->choice[at].new_line |= has_line(s, n, s->prompt, s->choice);
    hn_bytes_printf(&all, "{\"index\":%d,\"content\":", at);
    hn_say_joined(&all, s, n, s->prompt, s->choice, HN_SAY_TEXT, -1);
    tokens(&all, a, s, n, s->prompt, s->choice);
    if (last) {
        last_fields(&all, a, h, s, st->choice[at].new_line);
    } else {
        const hn_usage *u = s[n - 1].usage;
        for (size_t i = 0; i < n; i++) st->choice[at].n_tok += (int32_t)s[i].n_token;
        hn_bytes_printf(&all, ",\"id_slot\":%d,\"stop\":false", s->slot);
        hn_part_int(&all, "tokens_predicted", u ? u->completion : st->choice[at].n_tok);
        hn_part_int(&all, "tokens_evaluated", s->kind == HN_SAY_PROGRESS || !u ? s->total : u->prompt);
        if (s->kind == HN_SAY_TEXT) probabilities(&all, a, s, n, s->prompt, s->choice);
        if (u && a->timings_per_token) {
            hn_bytes_text(&all, ",");
            hn_part_timings(&all, u);
        }
        if (s->kind == HN_SAY_PROGRESS) {
            hn_bytes_text(&all, ",");
            hn_part_progress(&all, s);
        }
    }
    hn_bytes_text(&all, "}");
    hn_bytes_text(o, "data: ");
    if (last) {
        selected(o, a, &all);
    } else {
        o->lost |= all.lost;
        hn_bytes_add(o, all.p, all.lost ? 0 : all.n);
    }
    hn_bytes_text(o, "\n\n");
    hn_bytes_free(&all);
}

static bool say(const hn_ask *a, const hn_head *h, void *state, const hn_say *s, size_t n, hn_bytes *o)
{
    for (size_t i = 0, k; i < n; i += k) {
        k = hn_say_run(s + i, n - i);
        if (s[i].kind == HN_SAY_ALIVE) hn_part_alive(o);
        else frame(a, h, state, s + i, k, o);
    }
    return hn_bytes_ok(o);
}

/* The last frame of each choice was its end. */
static bool end(const hn_ask *a, const hn_head *h, void *state, const hn_usage *u, hn_bytes *o)
{
    return hn_bytes_ok(o);
}

/* ---- no stream --------------------------------------------------------------------------- */

static bool whole(const hn_ask *a, const hn_head *h, const hn_say *s, size_t n, const hn_usage *u, hn_bytes *o)
{
    const native_own *own = a->own;
    hn_sorted sorted;
    if (!hn_sorted_new(&sorted, s, n, n_prompts(a), a->n)) return false;
    if (!own->one) hn_bytes_text(o, "[");
    for (int32_t p = 0; p < n_prompts(a); p++) {
        for (int32_t c = 0; c < a->n; c++) {
            hn_bytes all = { 0 };
            s = hn_sorted_of(&sorted, p, c, &n);
            hn_bytes_printf(&all, "{\"index\":%d,\"content\":", p * a->n + c);
            hn_say_joined(&all, s, n, p, c, HN_SAY_TEXT, -1);
            tokens(&all, a, s, n, p, c);
            last_fields(&all, a, h, hn_say_last(s, n, p, c), has_line(s, n, p, c));
            probabilities(&all, a, s, n, p, c);
            hn_bytes_text(&all, "}");
            if (p || c) hn_bytes_text(o, ",");
            selected(o, a, &all);
            hn_bytes_free(&all);
        }
    }
    if (!own->one) hn_bytes_text(o, "]");
    hn_sorted_free(&sorted);
    return hn_bytes_ok(o);
}

#define GENERATES \
    .stream_type = hn_sse, .begin = begin, .say = say, .end = end, .fail = hn_part_fail, .drop = free, .whole = whole

const hn_voice hn_voice_native = { .name = "llama.completion", .parse = parse_text, GENERATES };
const hn_voice hn_voice_infill = { .name = "llama.infill", .parse = parse_infill, GENERATES };
