/* The voices of /tokenize, /detokenize and /apply-template, which generate nothing. Owns their shapes; refuses to know
 * tokenizers. */
#include "base/utf8.h"
#include "serve/ask_fields.h"
#include "serve/voice_parts.h"

/* ---- /tokenize --------------------------------------------------------------------------- */

static const hn_field tokenize_fields[] = {
    { .name = "content", .kind = HN_FIELD_LATER },
    { .name = "prompt", .kind = HN_FIELD_LATER },
    { .name = "add_special", .kind = HN_FIELD_BOOL, HN_AT(add_special) },
    { .name = "add_special_tokens", .kind = HN_FIELD_BOOL, HN_AT(add_special) },
    { .name = "parse_special", .kind = HN_FIELD_BOOL, HN_AT(parse_special) },
    { .name = "with_pieces", .kind = HN_FIELD_BOOL, HN_AT(with_pieces) },
    { .name = "model", .kind = HN_FIELD_TEXT, HN_AT(model) },
    { 0 },
};

/* vLLM calls the text prompt, and begins it as the model's texts begin unless that is refused. */
static bool read_tokenize(hn_fields *f)
{
    const json_t *content = hn_field_get(f->root, "content"), *prompt = hn_field_get(f->root, "prompt");
    bool other = !content && prompt;
    const json_t *v = other ? prompt : content;
    if (other) f->ask->add_special = true;
    if (!hn_fields_read(f, f->root, "", (const hn_field *const[]){ tokenize_fields, NULL })) return false;
    if (!v) return hn_field_missing(f, "content", "a string");
    hn_ask_prompt *p = hn_arena_alloc(f->ask->arena, sizeof *p);
    if (!p) return hn_field_lost(f);
    f->ask->prompt = p;
    f->ask->n_prompt = 1;
    return hn_field_prompt(f, v, other ? "prompt" : "content", p);
}

static bool parse_tokenize(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = HN_ASK_TOKENIZE;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_tokenize(&f));
}

/* A string, or its bytes where it is no UTF-8. */
static void piece(hn_bytes *o, const char *s, size_t n)
{
    size_t used = 0;
    bool text = true;
    for (size_t i = 0; text && i < n; i += used) text = hn_utf8_next((const unsigned char *)s + i, n - i, &used) >= 0;
    if (text) {
        hn_bytes_json(o, s ? s : "", n);
        return;
    }
    hn_bytes_text(o, "[");
    for (size_t i = 0; i < n; i++) hn_bytes_printf(o, i ? ",%u" : "%u", (unsigned char)s[i]);
    hn_bytes_text(o, "]");
}

static bool found_tokens(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    hn_bytes_text(o, "{\"tokens\":");
    if (a->with_pieces && f->pieces) {
        hn_bytes_text(o, "[");
        for (size_t i = 0; i < f->n_ids; i++) {
            hn_bytes_printf(o, "%s{\"id\":%d,\"piece\":", i ? "," : "", f->ids[i]);
            piece(o, f->pieces[i].ptr, f->pieces[i].len);
            hn_bytes_text(o, "}");
        }
        hn_bytes_text(o, "]");
    } else {
        hn_part_ids(o, f->ids, f->n_ids);
    }
    hn_bytes_text(o, "}");
    return hn_bytes_ok(o);
}

/* ---- /detokenize ------------------------------------------------------------------------- */

static const hn_field detokenize_fields[] = {
    { .name = "tokens", .kind = HN_FIELD_LATER },
    { .name = "model", .kind = HN_FIELD_TEXT, HN_AT(model) },
    { 0 },
};

static bool read_detokenize(hn_fields *f)
{
    const json_t *v = hn_field_get(f->root, "tokens");
    if (!hn_fields_read(f, f->root, "", (const hn_field *const[]){ detokenize_fields, NULL })) return false;
    if (!v) return hn_field_missing(f, "tokens", "an array of token ids");
    hn_ask_prompt *p = hn_arena_alloc(f->ask->arena, sizeof *p);
    if (!p) return hn_field_lost(f);
    f->ask->prompt = p;
    f->ask->n_prompt = 1;
    return hn_field_ids(f, v, "tokens", &p->ids, &p->n);
}

static bool parse_detokenize(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = HN_ASK_DETOKENIZE;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_detokenize(&f));
}

static bool found_text(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    hn_bytes_text(o, "{\"content\":");
    hn_bytes_json(o, f->text ? f->text : "", f->len);
    hn_bytes_text(o, "}");
    return hn_bytes_ok(o);
}

/* ---- /apply-template --------------------------------------------------------------------- */

static bool read_template(hn_fields *f)
{
    static const hn_field *const tables[] = { hn_fields_chat,  hn_fields_usual, hn_fields_sampling,
                                              hn_fields_forms, hn_fields_own,   NULL };
    return hn_fields_read(f, f->root, "", tables) && hn_chat_read(f);
}

static bool parse_template(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = HN_ASK_RENDER;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_template(&f));
}

static bool found_prompt(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    hn_bytes_text(o, "{\"prompt\":");
    hn_bytes_json(o, f->text ? f->text : "", f->len);
    hn_bytes_text(o, ",\"input_spans\":[");
    for (size_t i = 0; i < f->n_input; i++)
        hn_bytes_printf(o, "%s[%zu,%zu]", i ? "," : "", f->input[i].begin, f->input[i].end);
    hn_bytes_text(o, "]}");
    return hn_bytes_ok(o);
}

const hn_voice hn_voice_tokenize = { .name = "llama.tokenize", .parse = parse_tokenize, .found = found_tokens };
const hn_voice hn_voice_detokenize = { .name = "llama.detokenize", .parse = parse_detokenize, .found = found_text };
const hn_voice hn_voice_template = { .name = "llama.template", .parse = parse_template, .found = found_prompt };
