/* The voice of /v1/completions: prompts of text or ids, their log-probabilities, gaps to fill. Owns the shapes of
 * OpenAI's older API, and vLLM's prompt_logprobs; refuses to know models. */
#include "base/utf8.h"
#include "serve/ask_fields.h"
#include "serve/voice_parts.h"

#include <math.h>
#include <stdlib.h>

/* What the answer says beside the text. */
typedef struct text_own {
    bool echo, prompt_logprobs;
} text_own;

/* ---- body to ask ------------------------------------------------------------------------- */

static bool read_logprobs(hn_fields *f, const json_t *v, const char *path)
{
    int64_t n;
    if (json_is_boolean(v)) { /* as some clients of chat send it */
        if (json_is_true(v) && f->ask->top_logprobs < 0) f->ask->top_logprobs = 0;
        return true;
    }
    if (!hn_field_int(f, v, path, 0, HN_ASK_TOP, &n)) return false;
    if (f->ask->top_logprobs < n) f->ask->top_logprobs = (int32_t)n;
    return true;
}

static bool read_prompt_logprobs(hn_fields *f, const json_t *v, const char *path)
{
    int64_t n = 0;
    if (json_is_boolean(v)) {
        f->ask->prompt_logprobs = json_is_true(v);
    } else {
        if (!hn_field_int(f, v, path, 0, HN_ASK_TOP, &n)) return false;
        f->ask->prompt_logprobs = true;
    }
    if (f->ask->prompt_logprobs && f->ask->top_logprobs < n) f->ask->top_logprobs = (int32_t)n;
    return true;
}

static const hn_field text_fields[] = {
    { .name = "prompt", .kind = HN_FIELD_LATER },
    { .name = "suffix", .kind = HN_FIELD_LATER },
    { .name = "echo", .kind = HN_FIELD_BOOL, HN_AT(echo) },
    { .name = "logprobs", .kind = HN_FIELD_CALL, .fn = read_logprobs },
    { .name = "prompt_logprobs", .kind = HN_FIELD_CALL, .fn = read_prompt_logprobs },
    { .name = "max_tokens", .kind = HN_FIELD_CALL, .fn = hn_field_max_tokens },
    { .name = "max_completion_tokens", .kind = HN_FIELD_CALL, .fn = hn_field_max_tokens },
    { .name = "n_predict", .kind = HN_FIELD_CALL, .fn = hn_field_max_tokens },
    { .name = "add_special_tokens", .kind = HN_FIELD_BOOL, HN_AT(add_special) },
    { 0 },
};

/* A gap: what stands before it is the prompt. */
static bool read_gap(hn_fields *f, const json_t *suffix)
{
    hn_ask *a = f->ask;
    if (a->n_prompt != 1 || !a->prompt->text || a->prompt->more)
        return hn_field_wrong(f, "prompt", hn_field_get(f->root, "prompt"), "one string, as suffix is there");
    if (a->echo) return hn_field_refused(f, "echo", "with suffix there is no prompt to repeat");
    if (strlen(a->prompt->text) != a->prompt->len)
        return hn_field_wrong(f, "prompt", hn_field_get(f->root, "prompt"), "a string without NUL");
    a->kind = HN_ASK_INFILL;
    a->prefix = a->prompt->text;
    a->prompt = NULL;
    a->n_prompt = 0;
    return hn_field_text(f, suffix, "suffix", &a->suffix);
}

static bool read_body(hn_fields *f)
{
    static const hn_field *const tables[] = { text_fields,     hn_fields_usual, hn_fields_sampling,
                                              hn_fields_forms, hn_fields_own,   NULL };
    hn_ask *a = f->ask;
    const json_t *prompt, *suffix;
    a->add_special = true;
    if (!hn_fields_read(f, f->root, "", tables) || !hn_fields_agree(f)) return false;
    if (!(prompt = hn_field_get(f->root, "prompt"))) return hn_field_missing(f, "prompt", "a string, or token ids");
    if (!hn_field_prompts(f, prompt, "prompt", HN_ASK_PROMPTS)) return false;

    suffix = hn_field_get(f->root, "suffix");
    if (suffix && json_is_string(suffix) && json_string_length(suffix) == 0) suffix = NULL;
    if (suffix && !read_gap(f, suffix)) return false;
    text_own *own = hn_arena_alloc(a->arena, sizeof *own);
    if (!own) return hn_field_lost(f);
    *own = (text_own){ .echo = a->echo, .prompt_logprobs = a->prompt_logprobs };
    a->prompt_logprobs |= a->echo && a->top_logprobs >= 0;
    if (a->prompt_logprobs && a->top_logprobs < 0) a->top_logprobs = 0;
    if (a->prompt_logprobs && a->kind == HN_ASK_INFILL)
        return hn_field_refused(f, "prompt_logprobs", "with suffix there is no prompt to repeat");
    a->own = own;
    return true;
}

static bool parse(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = HN_ASK_TEXT;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_body(&f));
}

/* ---- pieces ------------------------------------------------------------------------------ */

static void head(hn_bytes *o, const hn_head *h)
{
    hn_bytes_text(o, "{\"id\":\"cmpl-");
    hn_bytes_escaped(o, h->id, strlen(h->id));
    hn_bytes_text(o, "\",\"object\":\"text_completion\"");
    hn_part_int(o, "created", h->created);
    hn_part_text(o, "model", h->model);
    hn_part_text(o, "system_fingerprint", h->fingerprint);
    hn_bytes_text(o, ",\"choices\":[");
}

static size_t code_points(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += ((unsigned char)s[i] & 0xC0) != 0x80;
    return k;
}

/* A token as this API spells it: what is no UTF-8 as "bytes:\xHH…". */
static void spell(hn_bytes *o, const char *s, size_t n)
{
    size_t used = 0;
    bool text = true;
    for (size_t i = 0; text && i < n; i += used) text = hn_utf8_next((const unsigned char *)s + i, n - i, &used) >= 0;
    if (text) {
        hn_bytes_json(o, s ? s : "", n);
        return;
    }
    hn_bytes_text(o, "\"bytes:");
    for (size_t i = 0; i < n; i++) hn_bytes_printf(o, "\\\\x%02x", (unsigned char)s[i]);
    hn_bytes_text(o, "\"");
}

static bool same_text(const char *a, size_t n, const char *b, size_t m) { return n == m && memcmp(a, b, n) == 0; }

/* {"token": logprob, …}: the likely ones, and the one that was picked; each name once. */
static void top_of(hn_bytes *o, const hn_said_token *t)
{
    bool seen = false;
    hn_bytes_text(o, "{");
    for (int32_t k = 0; k <= t->n_top; k++) {
        bool own = k == t->n_top, again = false;
        const char *s = own ? t->text : t->top[k].text;
        size_t n = own ? t->len : t->top[k].len;
        if (own && seen) break;
        for (int32_t i = 0; i < k && !again; i++) again = same_text(s, n, t->top[i].text, t->top[i].len);
        if (again) continue;
        seen |= same_text(s, n, t->text, t->len);
        hn_bytes_comma(o);
        spell(o, s, n);
        hn_bytes_text(o, ":");
        hn_part_logprob(o, own ? t->logprob : t->top[k].logprob);
    }
    hn_bytes_text(o, "}");
}

/* Is this say part of the text that the choice shows? */
static bool is_shown(const hn_ask *a, const hn_say *s)
{
    const text_own *own = a->own;
    return s->kind == HN_SAY_TEXT || (s->kind == HN_SAY_ECHO && own->echo);
}

/* Calls fn for each token that is shown of one choice. */
typedef void token_fn(hn_bytes *o, const hn_said_token *t);
static void each_token(hn_bytes *o, const hn_ask *a, const hn_say *s, size_t n, int32_t p, int32_t c, token_fn *fn)
{
    for (size_t i = 0; i < n; i++) {
        if (!hn_say_of(s + i, p, c) || !is_shown(a, s + i)) continue;
        for (size_t k = 0; k < s[i].n_token; k++) {
            hn_bytes_comma(o);
            fn(o, s[i].token + k);
        }
    }
}

static void put_token(hn_bytes *o, const hn_said_token *t) { spell(o, t->text, t->len); }

static void put_logprob(hn_bytes *o, const hn_said_token *t)
{
    if (isnan(t->logprob)) hn_bytes_text(o, "null");
    else hn_part_logprob(o, t->logprob);
}

static void put_top(hn_bytes *o, const hn_said_token *t)
{
    if (isnan(t->logprob)) hn_bytes_text(o, "null");
    else top_of(o, t);
}

/* What a token adds to the text of its say, of which [at, n) is left: of a prompt, nothing where it is no text (a mark
 * of the beginning), and less where the text has not the blank that a tokenizer put in front. */
static size_t shown_bytes(const hn_say *s, const hn_said_token *t, size_t at)
{
    size_t left = s->len - at;
    if (s->kind != HN_SAY_ECHO) return t->len;
    if (t->len <= left && memcmp(s->text + at, t->text, t->len) == 0) return t->len;
    bool blank = t->len && *t->text == ' ' && t->len - 1 <= left && !memcmp(s->text + at, t->text + 1, t->len - 1);
    return blank ? t->len - 1 : 0;
}

/* text_offset of each token that is shown of one choice. */
static void put_offsets(hn_bytes *o, const hn_ask *a, const hn_say *s, size_t n, int32_t p, int32_t c, size_t *offset)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        if (!hn_say_of(s + i, p, c) || !is_shown(a, s + i)) continue;
        for (size_t k = 0; k < s[i].n_token; k++) {
            const hn_said_token *t = s[i].token + k;
            size_t bytes = shown_bytes(s + i, t, at);
            hn_bytes_comma(o);
            hn_bytes_printf(o, "%zu", *offset);
            *offset += code_points(t->text + (t->len - bytes), bytes);
            at += s[i].kind == HN_SAY_ECHO ? bytes : 0;
        }
    }
}

/* *offset: code points of the choice's text until here. */
static void logprobs(hn_bytes *o, const hn_ask *a, const hn_say *s, size_t n, int32_t p, int32_t c, size_t *offset)
{
    static const struct {
        const char *name;
        token_fn *fn;
    } lists[] = {
        { "tokens", put_token }, { "token_logprobs", put_logprob }, { "top_logprobs", put_top }, { "text_offset", NULL }
    };
    hn_bytes_text(o, ",\"logprobs\":");
    if (a->top_logprobs < 0) {
        hn_bytes_text(o, "null");
        return;
    }
    hn_bytes_text(o, "{");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        hn_bytes_comma(o);
        hn_bytes_printf(o, "\"%s\":", lists[i].name);
        if (lists[i].fn == put_top && a->top_logprobs == 0) {
            hn_bytes_text(o, "null");
            continue;
        }
        hn_bytes_text(o, "[");
        if (lists[i].fn) each_token(o, a, s, n, p, c, lists[i].fn);
        else put_offsets(o, a, s, n, p, c, offset);
        hn_bytes_text(o, "]");
    }
    hn_bytes_text(o, "}");
}

/* ,"prompt_logprobs":[null,{"ID":{"logprob","decoded_token"}},…], where the field of that name asked for it. */
static void prompt_logprobs(hn_bytes *o, const hn_ask *a, const hn_say *s, size_t n, int32_t p, int32_t c)
{
    const text_own *own = a->own;
    if (!own->prompt_logprobs) return;
    hn_bytes_text(o, ",\"prompt_logprobs\":[");
    for (size_t i = 0; i < n; i++) {
        if (s[i].kind != HN_SAY_ECHO || !hn_say_of(s + i, p, c)) continue;
        for (size_t k = 0; k < s[i].n_token; k++) {
            const hn_said_token *t = s[i].token + k;
            bool seen = false;
            hn_bytes_comma(o);
            if (isnan(t->logprob)) {
                hn_bytes_text(o, "null");
                continue;
            }
            hn_bytes_text(o, "{");
            for (int32_t e = 0; e <= t->n_top; e++) {
                bool self = e == t->n_top;
                if (self && seen) break;
                int32_t id = self ? t->id : t->top[e].id;
                seen |= id == t->id;
                hn_bytes_comma(o);
                hn_bytes_printf(o, "\"%d\":{\"logprob\":", id);
                hn_part_logprob(o, self ? t->logprob : t->top[e].logprob);
                hn_bytes_text(o, ",\"decoded_token\":");
                spell(o, self ? t->text : t->top[e].text, self ? t->len : t->top[e].len);
                hn_bytes_text(o, "}");
            }
            hn_bytes_text(o, "}");
        }
    }
    hn_bytes_text(o, "]");
}

static void text_of(hn_bytes *o, const hn_ask *a, const hn_say *s, size_t n, int32_t p, int32_t c)
{
    hn_bytes_text(o, "\"");
    for (size_t i = 0; i < n; i++)
        if (hn_say_of(s + i, p, c) && is_shown(a, s + i)) hn_bytes_escaped(o, s[i].text, s[i].len);
    hn_bytes_text(o, "\"");
}

static int32_t index_of(const hn_ask *a, const hn_say *s) { return s->prompt * a->n + s->choice; }
static int32_t n_prompts(const hn_ask *a) { return a->n_prompt ? (int32_t)a->n_prompt : 1; }

/* ---- a stream ---------------------------------------------------------------------------- */

typedef struct text_state {
    int32_t n;
    size_t offset[]; /* of each choice: code points of its text so far */
} text_state;

static bool begin(const hn_ask *a, const hn_head *h, hn_bytes *o, void **state)
{
    size_t n = (size_t)n_prompts(a) * (size_t)a->n;
    text_state *st = calloc(1, sizeof *st + n * sizeof *st->offset);
    *state = st;
    if (!st) return false;
    st->n = (int32_t)n;
    return true;
}

static void frame(const hn_ask *a, const hn_head *h, text_state *st, const hn_say *s, size_t n, hn_bytes *o)
{
    const text_own *own = a->own;
    int32_t at = index_of(a, s);
    bool text = s->kind == HN_SAY_TEXT || s->kind == HN_SAY_ECHO, last = s->kind == HN_SAY_END;
    if (at < 0 || at >= st->n || (!text && !last && s->kind != HN_SAY_PROGRESS)) return;
    if (s->kind == HN_SAY_ECHO && !own->echo && !own->prompt_logprobs) return;
    hn_bytes_text(o, "data: ");
    head(o, h);
    hn_bytes_text(o, "{\"text\":");
    text_of(o, a, s, n, s->prompt, s->choice);
    hn_part_int(o, "index", at);
    if (text && is_shown(a, s)) logprobs(o, a, s, n, s->prompt, s->choice, st->offset + at);
    else hn_bytes_text(o, ",\"logprobs\":null");
    if (s->kind == HN_SAY_ECHO) prompt_logprobs(o, a, s, n, s->prompt, s->choice);
    hn_part_text(o, "finish_reason", last ? hn_finish_reason(s, 0) : NULL);
    hn_bytes_text(o, "}]");
    if (a->include_usage) hn_bytes_text(o, ",\"usage\":null");
    if (s->kind == HN_SAY_PROGRESS) {
        hn_bytes_text(o, ",");
        hn_part_progress(o, s);
    }
    hn_part_chunk_timings(o, a, s + n - 1);
    hn_bytes_text(o, "}\n\n");
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

/* usage, timings and hone's own, behind the choices; and the end of the object. */
static void tail(hn_bytes *o, const hn_usage *u)
{
    hn_bytes_text(o, "],");
    hn_part_usage(o, u);
    hn_bytes_text(o, ",");
    hn_part_timings(o, u);
    hn_bytes_text(o, ",");
    hn_part_hone(o, u);
    hn_bytes_text(o, "}");
}

static bool end(const hn_ask *a, const hn_head *h, void *state, const hn_usage *u, hn_bytes *o)
{
    if (a->include_usage) {
        hn_bytes_text(o, "data: ");
        head(o, h);
        tail(o, u);
        hn_bytes_text(o, "\n\n");
    }
    hn_bytes_text(o, "data: [DONE]\n\n");
    return hn_bytes_ok(o);
}

/* ---- no stream --------------------------------------------------------------------------- */

static bool whole(const hn_ask *a, const hn_head *h, const hn_say *s, size_t n, const hn_usage *u, hn_bytes *o)
{
    hn_sorted sorted;
    if (!hn_sorted_new(&sorted, s, n, n_prompts(a), a->n)) return false;
    head(o, h);
    for (int32_t p = 0; p < n_prompts(a); p++) {
        for (int32_t c = 0; c < a->n; c++) {
            size_t offset = 0;
            s = hn_sorted_of(&sorted, p, c, &n);
            hn_bytes_text(o, p || c ? ",{\"text\":" : "{\"text\":");
            text_of(o, a, s, n, p, c);
            hn_part_int(o, "index", p * a->n + c);
            logprobs(o, a, s, n, p, c, &offset);
            prompt_logprobs(o, a, s, n, p, c);
            hn_part_text(o, "finish_reason", hn_finish_reason(hn_say_last(s, n, p, c), 0));
            hn_bytes_text(o, "}");
        }
    }
    tail(o, u);
    hn_sorted_free(&sorted);
    return hn_bytes_ok(o);
}

const hn_voice hn_voice_text = {
    .name = "openai.text",
    .stream_type = hn_sse,
    .parse = parse,
    .begin = begin,
    .say = say,
    .end = end,
    .fail = hn_part_fail,
    .drop = free,
    .whole = whole,
};
