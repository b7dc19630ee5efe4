/* chat: see chat.h. Owns the built-in formats and the differences between what callers
 * send and what templates take. Refuses to know sockets and terminals. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "base/json_tree.h"
#include "text/call_values.h"
#include "text/chat.h"

#include <stdlib.h>
#include <time.h>

/* ---- formats by name ------------------------------------------------------------------------------ */

#define EACH "{% for m in messages %}"
#define DONE "{% endfor %}"
#define GEN(text) "{% if add_generation_prompt %}{{ '" text "' }}{% endif %}"
#define ROLE(name) "m.role == '" name "'"
/* The system text in front of the first user text, where a format has no place of its own for it. */
#define SYSTEM_FIRST "{% set ns = namespace(sys='') %}"
#define TAKE_SYSTEM "{% if " ROLE("system") " %}{% set ns.sys = m.content + '\\n\\n' %}"
#define MISTRAL(open, close, before_answer)                                                                            \
    SYSTEM_FIRST "{{ bos_token }}" EACH TAKE_SYSTEM                                                                    \
                 "{% elif " ROLE("user") " %}{{ '" open "' + ns.sys + m.content + '" close "' }}{% set ns.sys = '' %}" \
                                         "{% elif " ROLE("assistant") " %}{{ '" before_answer                          \
                                                                      "' + m.content + eos_token }}{% endif %}" DONE

static const struct {
    const char *name, *source;
} formats[] = {
    { "chatml",
      EACH "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}" DONE GEN("<|im_start|>assistant\\n") },
    { "llama2",
      SYSTEM_FIRST EACH "{% if " ROLE(
          "system") " %}{% set ns.sys = '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' %}"
                    "{% elif " ROLE(
                        "user") " %}{{ bos_token + '[INST] ' + ns.sys + m.content + ' [/INST]' }}{% set ns.sys = '' %}"
                                "{% elif " ROLE(
                                    "assistant") " %}{{ ' ' + m.content + ' ' + eos_token }}{% endif %}" DONE },
    { "llama3",
      "{{ bos_token }}" EACH
      "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}" DONE GEN(
          "<|start_header_id|>assistant<|end_header_id|>\\n\\n") },
    { "mistral", MISTRAL("[INST] ", "[/INST]", " ") },
    { "mistral-v1", MISTRAL(" [INST] ", " [/INST]", " ") },
    { "mistral-v3", MISTRAL("[INST] ", "[/INST]", " ") },
    { "mistral-v3-tekken", MISTRAL("[INST]", "[/INST]", "") },
    { "mistral-v7",
      "{{ bos_token }}" EACH "{% if " ROLE(
          "system") " %}{{ '[SYSTEM_PROMPT] ' + m.content + '[/SYSTEM_PROMPT]' }}"
                    "{% elif " ROLE("user") " %}{{ '[INST] ' + m.content + '[/INST]' }}"
                                            "{% elif " ROLE(
                                                "assistant") " %}{{ ' ' + m.content + eos_token }}{% endif %}" DONE },
    { "gemma",
      SYSTEM_FIRST "{{ bos_token }}" EACH TAKE_SYSTEM "{% else %}"
                   "{{ '<start_of_turn>' + ('model' if " ROLE(
                       "assistant") " else m.role) + '\\n' + (ns.sys + m.content) | trim + '<end_of_turn>\\n' }}"
                                    "{% set ns.sys = '' %}{% endif %}" DONE GEN("<start_of_turn>model\\n") },
    { "phi3", EACH "{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}" DONE GEN("<|assistant|>\\n") },
    { "phi4", EACH "{{ '<|im_start|>' + m.role + '<|im_sep|>' + m.content + '<|im_end|>' }}" DONE GEN(
                  "<|im_start|>assistant<|im_sep|>") },
    { "zephyr", EACH "{{ '<|' + m.role + '|>\\n' + m.content + '<|endoftext|>\\n' }}" DONE GEN("<|assistant|>\\n") },
    { "vicuna",
      EACH "{% if " ROLE("system") " %}{{ m.content + '\\n\\n' }}{% elif " ROLE(
          "user") " %}{{ 'USER: ' + m.content + '\\n' }}"
                  "{% elif " ROLE("assistant") " %}{{ 'ASSISTANT: ' + m.content + '</s>\\n' }}{% endif %}" DONE GEN(
                      "ASSISTANT:") },
    { "deepseek",
      "{{ bos_token }}" EACH "{% if " ROLE("system") " %}{{ m.content }}{% elif " ROLE(
          "user") " %}{{ '<｜User｜>' + m.content }}"
                  "{% elif " ROLE(
                      "assistant") " %}{{ '<｜Assistant｜>' + m.content + '<｜end▁of▁sentence｜>' }}{% endif %}" DONE
                      GEN("<｜Assistant｜>") },
    { "deepseek2",
      "{{ bos_token }}" EACH "{% if " ROLE("system") " %}{{ m.content + '\\n\\n' }}{% elif " ROLE(
          "user") " %}{{ 'User: ' + m.content + '\\n\\n' }}"
                  "{% elif " ROLE(
                      "assistant") " %}{{ 'Assistant: ' + m.content + '<｜end▁of▁sentence｜>' }}{% endif %}" DONE
                      GEN("Assistant:") },
    { "glm4", "[gMASK]<sop>" EACH "{{ '<|' + m.role + '|>\\n' + m.content }}" DONE GEN("<|assistant|>") },
    { "command-r",
      "{{ bos_token }}" EACH "{{ '<|START_OF_TURN_TOKEN|><|' + ('CHATBOT' if " ROLE(
          "assistant") " else m.role | upper) + '_TOKEN|>' + m.content"
                       " + '<|END_OF_TURN_TOKEN|>' }}" DONE GEN("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>") },
    { "gpt-oss",
      "{% set ns = namespace(f='') %}" EACH "{% if m.tool_calls %}{% if m.content %}"
      "{{ '<|start|>assistant<|channel|>commentary<|message|>' + m.content + '<|end|>' }}{% endif %}"
      "{% for c in m.tool_calls %}{% set ns.f = c.function.name %}{{ '<|start|>assistant to=functions.' + ns.f"
      " + '<|channel|>commentary json<|message|>' + c.function.arguments | tojson + '<|call|>' }}{% endfor %}"
      "{% elif " ROLE(
          "tool") " %}{{ '<|start|>functions.' + ns.f + ' to=assistant<|channel|>commentary<|message|>'"
                  " + m.content | tojson + '<|end|>' }}{% else %}{{ '<|start|>' + m.role + ('<|channel|>final' "
                  "if " ROLE("assistant") " else '') + '<|message|>' + m.content + '<|end|>' }}{% endif %}" DONE GEN(
                      "<|start|>assistant") },
    { "rwkv-world",
      "{{ bos_token }}" EACH
      "{{ {'system': 'System', 'user': 'User', 'assistant': 'Assistant'}.get(m.role, m.role | capitalize) + ': '"
      " + m.content | trim + '\\n\\n' }}" DONE GEN("Assistant:") },
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

const char *hn_chat_format(const char *name)
{
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(formats[i].name, name) == 0) return formats[i].source;
    return NULL;
}

const char *hn_chat_format_name(size_t i) { return i < N_FORMATS ? formats[i].name : NULL; }

const char *hn_chat_format_list(void)
{
    return "chatml, llama2, llama3, mistral (-v1, -v3, -v3-tekken, -v7), gemma, phi3, phi4, zephyr, vicuna, deepseek, "
           "deepseek2, glm4, command-r, "
           "gpt-oss, rwkv-world";
}

/* ---- whose template ---------------------------------------------------------------------------------- */

static bool is_source(const char *s, size_t n)
{
    return memmem(s, n, "{{", 2) || memmem(s, n, "{%", 2) || memmem(s, n, "{#", 2) || memchr(s, '\n', n);
}

static bool has_token(const hn_vocab *v, const char *text)
{
    hn_ids ids = { 0 };
    bool one = v && hn_vocab_encode(v, text, strlen(text), HONE_TOK_SPECIAL, &ids, NULL) == HONE_OK && ids.n == 1;
    free(ids.data);
    return one;
}

bool hn_json_is(const json_t *v, const char *text)
{
    size_t n = strlen(text);
    return json_is_string(v) && json_string_length(v) == n && memcmp(json_string_value(v), text, n) == 0;
}

static hone_str view(const char *s) { return (hone_str){ s, strlen(s) }; }

hone_status hn_chat_source(hone_str *out, const hn_gguf *g, const hn_vocab *v, const char *choice, bool tools,
                           hone_error *err)
{
    *out = (hone_str){ 0 };
    const char *file = g ? hn_gguf_path(g) : "the model";
    if (choice) {
        const char *s = hn_chat_format(choice);
        if (!s && !is_source(choice, strlen(choice)))
            return HN_FAIL(err, HONE_E_ARG,
                           "chat template '%s' is neither a known format nor Jinja source; expected one of %s",
                           HN_ESC(choice, strlen(choice)), hn_chat_format_list());
        *out = view(s ? s : choice);
        return HONE_OK;
    }
    static const char *const keys[] = { "tokenizer.chat_template.tool_use", "tokenizer.chat_template" };
    for (int k = tools ? 0 : 1; g && k < 2; k++) {
        bool found = false;
        hone_str s;
        hone_status st = hn_gguf_get_str(g, keys[k], &s, &found, err);
        if (st != HONE_OK) return st;
        if (!found || !s.len) continue;
        if (!is_source(s.ptr, s.len)) {
            char name[64] = "";
            memcpy(name, s.ptr, s.len < sizeof name ? s.len : sizeof name - 1);
            const char *known = s.len < sizeof name && strlen(name) == s.len ? hn_chat_format(name) : NULL;
            if (!known)
                return HN_FAIL(err, HONE_E_FORMAT,
                               "%s: %s is '%s', which is neither Jinja source nor a known format; expected one of %s",
                               HN_ESC(file, strlen(file)), keys[k], HN_ESC(s.ptr, s.len), hn_chat_format_list());
            s = view(known);
        }
        *out = s;
        return HONE_OK;
    }
    if (has_token(v, "<|im_start|>") && has_token(v, "<|im_end|>")) {
        *out = view(hn_chat_format("chatml"));
        return HONE_OK;
    }
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s has no chat template (tokenizer.chat_template); choose a format: %s",
                   HN_ESC(file, strlen(file)), hn_chat_format_list());
}

/* ---- what a template takes ------------------------------------------------------------------------------ */

static const char marker[] = "hone-probe-7f3a";
static const char *const trusted[] = { "bos_token", "eos_token", NULL };

static bool set(json_t *o, const char *key, json_t *v) { return json_object_set_new(o, key, v) == 0; }

/* The time as firefunction wants it in its variable `datetime`. t NULL: the clock. east: minutes that t is before
 * GMT. */
static void datetime(char out[64], const hn_jinja_time *t, int east)
{
    static const char *const names[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    struct tm tm = { .tm_year = 70, .tm_mday = 1 };
    if (t)
        tm = (struct tm){ .tm_sec = t->second,
                          .tm_min = t->minute,
                          .tm_hour = t->hour,
                          .tm_mday = t->day,
                          .tm_mon = t->month - 1,
                          .tm_year = t->year - 1900 };
    if (!t || east) {
        time_t s = t ? timegm(&tm) - 60 * (time_t)east : time(NULL);
        gmtime_r(&s, &tm);
    }
    snprintf(out, 64, "%s %02d %d %02d:%02d:%02d GMT", names[tm.tm_mon], tm.tm_mday, tm.tm_year + 1900, tm.tm_hour,
             tm.tm_min, tm.tm_sec);
}

/* What transformers says is none where nobody gave it. */
static const char *const none_if_absent[] = { "tools", "documents" };

/* Sets these of o that the template mentions. False: out of memory. *n: how many. */
static bool set_absent(json_t *o, const hn_jinja *t, int *n)
{
    *n = 0;
    for (size_t i = 0; i < sizeof none_if_absent / sizeof *none_if_absent; i++) {
        const char *name = none_if_absent[i];
        if (json_object_get(o, name) || !hn_jinja_mentions(t, name)) continue;
        if (!set(o, name, json_null())) return false;
        ++*n;
    }
    return true;
}

/* The variables of a rendering, or NULL: out of memory. */
static json_t *make_context(const hn_jinja *t, const hn_chat *c, const json_t *messages, bool tools, bool gen)
{
    json_t *o = json_object();
    bool ok = o && set(o, "messages", json_incref((json_t *)messages)) &&
              set(o, "bos_token", json_string(c->bos ? c->bos : "")) &&
              set(o, "eos_token", json_string(c->eos ? c->eos : "")) &&
              set(o, "add_generation_prompt", json_boolean(gen));
    tools = tools && json_array_size(c->tools) > 0;
    if (ok && tools) ok = set(o, "tools", json_incref((json_t *)c->tools));
    if (ok && hn_jinja_mentions(t, "functions") && !json_object_get(c->variables, "functions")) {
        char *s = tools ? hn_json_dump(c->tools, JSON_INDENT(2)) : strdup("");
        ok = s && set(o, "functions", json_string(s));
        free(s);
    }
    if (ok && hn_jinja_mentions(t, "datetime") && !json_object_get(c->variables, "datetime")) {
        char s[64];
        datetime(s, c->now, c->now_east);
        ok = set(o, "datetime", json_string(s));
    }
    const char *name;
    json_t *value; /* what is set above is not up to the caller; json_object_update_missing would lose some unnoticed */
    json_object_foreach((json_t *)c->variables, name, value)
    {
        if (ok && !json_object_get(o, name)) ok = json_object_set(o, name, value) == 0;
    }
    if (ok) return o;
    json_decref(o);
    return NULL;
}

/* Some published templates go through their tools without a look whether there are any (Hermes 2 Pro, Command R+): in
 * transformers that fails, as it did here with status st and err; what is undefined has no elements. */
static hone_status render_without_none(hn_jinja_vars *vars, const hn_jinja *t, hone_status st, hn_jinja_text *out,
                                       hone_error *err)
{
    hone_error other;
    json_t *context = (json_t *)vars->context;
    for (size_t i = 0; i < sizeof none_if_absent / sizeof *none_if_absent; i++)
        if (json_is_null(json_object_get(context, none_if_absent[i]))) json_object_del(context, none_if_absent[i]);
    hone_status got = hn_jinja_render(t, vars, out, &other);
    if (got != HONE_OK && got != HONE_E_NOMEM && !out->raised) return st; /* it was something else */
    if (got != HONE_OK && err) *err = other;
    return got;
}

hone_status hn_chat_render_as_is(const hn_jinja *t, const hn_chat *c, const json_t *messages, bool tools, bool gen,
                                 hn_jinja_text *out, hone_error *err)
{
    *out = (hn_jinja_text){ 0 };
    int n_none;
    json_t *context = make_context(t, c, messages, tools, gen);
    if (!context || !set_absent(context, t, &n_none)) {
        json_decref(context);
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for the variables of the chat template");
    }
    hn_jinja_vars vars = {
        .context = context, .trusted = trusted, .trust_roles = true, .now = c->now, .limits = c->limits
    };
    hone_status st = hn_jinja_render(t, &vars, out, err);
    if (n_none && st != HONE_OK && st != HONE_E_NOMEM && !out->raised) st = render_without_none(&vars, t, st, out, err);
    json_decref(context);
    return st;
}

/* Messages in the shape that t takes. Some templates take a system message in one shape alone, whatever they do with
 * others: the first ones of Gemma 3 want parts, Cogito's a string, and what is neither is a fault. messages are on the
 * way changed, and back. */
static hone_status render(const hn_jinja *t, const hn_chat *c, json_t *messages, bool tools, hn_jinja_text *out,
                          hone_error *err)
{
    hone_status st = hn_chat_render_as_is(t, c, messages, tools, c->add_generation_prompt, out, err);
    json_t *system = json_array_get(messages, 0), *said = json_object_get(system, "content");
    if (st == HONE_OK || st == HONE_E_NOMEM || out->raised) return st;
    if (!hn_json_is(json_object_get(system, "role"), "system") || !said || json_is_null(said)) return st;
    hone_error other;
    hn_jinja_text again = { 0 };
    json_t *in_other =
        json_is_array(said) ? hn_chat_said(said, false) : json_pack("[{s:s, s:O}]", "type", "text", "text", said);
    json_incref(said);
    hone_status got = in_other && set(system, "content", in_other) ? HONE_OK : HONE_E_NOMEM;
    if (got == HONE_OK) got = hn_chat_render_as_is(t, c, messages, tools, c->add_generation_prompt, &again, &other);
    if (!set(system, "content", said)) got = HONE_E_NOMEM;
    if (got == HONE_E_NOMEM) {
        hn_jinja_text_free(&again);
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for the messages");
    }
    if (got != HONE_OK && !again.raised) return st; /* it was something else */
    *out = again;
    if (got != HONE_OK && err) *err = other;
    return got;
}

/* Whether these messages (taken) render to a text that has want in it and none of the NULL-ended avoid.
 * *oom becomes true where memory was too short to find out. */
static bool probe(const hn_jinja *t, const hn_chat *c, json_t *messages, const char *want, const char *const *avoid,
                  bool *oom)
{
    hn_jinja_text out = { 0 };
    hone_status st = messages ? render(t, c, messages, false, &out, NULL) : HONE_E_NOMEM;
    bool ok = st == HONE_OK && memmem(out.text, out.len, want, strlen(want));
    *oom |= st == HONE_E_NOMEM;
    for (; ok && *avoid; avoid++) ok = !memmem(out.text, out.len, *avoid, strlen(*avoid));
    hn_jinja_text_free(&out);
    json_decref(messages);
    return ok;
}

/* said: beside the call; NULL: null. answered: the conversation goes on behind it; some templates look at all answers
 * but the last otherwise. */
static json_t *call_messages(bool object, const char *said, bool answered)
{
    json_t *args =
        object ? json_pack("{s:s}", "probe_key", marker) : json_string("{\"probe_key\": \"hone-probe-7f3a\"}");
    json_t *m = json_pack("[{s:s, s:s}, {s:s, s:s?, s:[{s:s, s:s, s:{s:s, s:o}}]}]", "role", "user", "content", "x",
                          "role", "assistant", "content", said, "tool_calls", "id", "call00001", "type", "function",
                          "function", "name", "probe_fn", "arguments", args);
    json_t *more = m && answered ? json_pack("[{s:s, s:s, s:s}, {s:s, s:s}]", "role", "tool", "tool_call_id",
                                             "call00001", "content", "y", "role", "assistant", "content", "z")
                                 : NULL;
    bool ok = !answered || (m && more && json_array_extend(m, more) == 0);
    json_decref(more);
    if (ok) return m;
    json_decref(m);
    return NULL;
}

const char *const hn_chat_reasoning_names[HN_CHAT_N_REASONING] = { NULL, "reasoning_content", "thinking", "reasoning",
                                                                   NULL };

/* The content of an answer whose reasoning is a part of it, before what else it says: a text, of which an empty one is
 * none, or parts. Takes reasoning. */
static json_t *thinking_parts(json_t *reasoning, json_t *content)
{
    json_t *parts = json_pack("[{s:s, s:o}]", "type", "thinking", "thinking", reasoning);
    bool ok = parts != NULL;
    if (ok && json_is_array(content)) ok = json_array_extend(parts, content) == 0;
    else if (ok && json_string_length(content))
        ok = json_array_append_new(parts, json_pack("{s:s, s:O}", "type", "text", "text", content)) == 0;
    if (ok) return parts;
    json_decref(parts);
    return NULL;
}

json_t *hn_chat_reasoning_probe(hn_chat_reasoning shape, const char *reasoning, const char *content)
{
    json_t *m = json_pack("[{s:s, s:s}, {s:s, s:s}]", "role", "user", "content", "x", "role", "assistant", "content",
                          content),
           *last = json_array_get(m, 1);
    bool ok = m != NULL;
    if (ok && hn_chat_reasoning_names[shape]) ok = set(last, hn_chat_reasoning_names[shape], json_string(reasoning));
    if (ok && shape == HN_CHAT_REASONING_PARTS)
        ok = set(last, "content", thinking_parts(json_string(reasoning), json_object_get(last, "content")));
    if (ok) return m;
    json_decref(m);
    return NULL;
}

/* The first shape in which a template prints the reasoning of the answer it ends with. */
static hn_chat_reasoning find_reasoning(const hn_jinja *t, const hn_chat *c, bool *oom)
{
    for (int shape = HN_CHAT_REASONING_CONTENT; shape < HN_CHAT_N_REASONING; shape++) {
        hn_jinja_text out = { 0 };
        json_t *m = hn_chat_reasoning_probe((hn_chat_reasoning)shape, marker, "y");
        hone_status st = m ? hn_chat_render_as_is(t, c, m, false, false, &out, NULL) : HONE_E_NOMEM;
        bool found = st == HONE_OK && memmem(out.text, out.len, marker, strlen(marker)),
             as_list = found &&
                       (memmem(out.text, out.len, "'thinking'", 10) || memmem(out.text, out.len, "\"thinking\"", 10));
        found = found && !(as_list && shape == HN_CHAT_REASONING_PARTS); /* the list was printed, and not its parts */
        *oom |= st == HONE_E_NOMEM;
        hn_jinja_text_free(&out);
        json_decref(m);
        if (found) return (hn_chat_reasoning)shape;
    }
    return HN_CHAT_REASONING_NONE;
}

typedef struct taste {
    bool text, parts, args_object, args_text, null_content, calls_alone, developer;
    hn_chat_reasoning reasoning;
} taste;

/* What the messages have in them that templates take in different shapes; thoughts: reasoning in parts. */
typedef struct has {
    bool parts, calls, text_and_calls, results, reasoning, thoughts, developer;
} has;

/* text: the content is a string. */
static json_t *developer_messages(bool text)
{
    json_t *said = text ? json_string(marker) : json_pack("[{s:s, s:s}]", "type", "text", "text", marker),
           *asked = text ? json_string("x") : json_pack("[{s:s, s:s}]", "type", "text", "text", "x");
    return json_pack("[{s:s, s:o}, {s:s, s:o}]", "role", "developer", "content", said, "role", "user", "content",
                     asked);
}

static taste find_taste(const hn_jinja *t, const hn_chat *c, has given, bool *oom)
{
    bool parts = given.parts, calls = given.calls;
    static const char *const no_repr[] = { "'type'", "\"type\"", NULL }, *const no_py[] = { "'probe_key'", NULL },
                             *const none[] = { "None", NULL }, *const any[] = { NULL };
    taste x = { .text = true };
    x.text = probe(t, c, json_pack("[{s:s, s:s}]", "role", "user", "content", marker), marker, any, oom);
    if (parts || !x.text)
        x.parts =
            probe(t, c, json_pack("[{s:s, s:[{s:s, s:s}]}]", "role", "user", "content", "type", "text", "text", marker),
                  marker, no_repr, oom);
    for (int k = 0; calls && k < 2 && !x.args_object && !x.args_text; k++) { /* DeepSeek R1: only beside null */
        const char *said = k ? NULL : "";
        x.args_object = probe(t, c, call_messages(true, said, false), marker, no_py, oom);
        x.args_text = probe(t, c, call_messages(false, said, false), marker, any, oom);
    }
    bool object = x.args_object;
    if (calls)
        x.null_content = probe(t, c, call_messages(object, NULL, false), marker, none, oom) &&
                         (probe(t, c, call_messages(object, NULL, true), marker, none, oom) ||
                          !probe(t, c, call_messages(object, "", true), marker, none, oom));
    if (given.text_and_calls && x.null_content)
        x.calls_alone = !probe(t, c, call_messages(object, "y", false), marker, any, oom);
    if (given.reasoning) x.reasoning = find_reasoning(t, c, oom);
    if (given.developer && hn_jinja_says(t, "developer")) /* Command R7B's prose says it, and knows no such role */
        x.developer = probe(t, c, developer_messages(x.text), marker, any, oom);
    return x;
}

/* ---- what callers send ----------------------------------------------------------------------------------- */

/* The reasoning of an answer, under whichever of its names; NULL: it has none. */
static json_t *reasoning_of(const json_t *m)
{
    json_t *said = NULL;
    for (int k = 0; k < HN_CHAT_N_REASONING && !json_string_length(said); k++)
        if (hn_chat_reasoning_names[k]) said = json_object_get(m, hn_chat_reasoning_names[k]);
    return said;
}

/* What the model said itself. */
static bool is_own(const json_t *message) { return hn_json_is(json_object_get(message, "role"), "assistant"); }

/* Reasoning as a part of the content, as Mistral's programs send it: a text, or parts of text. */
static bool is_thought(const json_t *part)
{
    const json_t *said = json_object_get(part, "thinking");
    size_t i;
    json_t *p;
    bool texts = json_is_array(said);
    json_array_foreach(said, i, p) texts &= json_is_string(json_object_get(p, "text"));
    return hn_json_is(json_object_get(part, "type"), "thinking") && (texts || json_is_string(said));
}

/* The thoughts in a content are the message's reasoning, where it has no other. False: out of memory. */
static bool lift_thoughts(json_t *m)
{
    size_t i;
    json_t *p, *thoughts = json_array(), *rest = json_array(), *all = NULL;
    bool ok = thoughts && rest;
    json_array_foreach(json_object_get(m, "content"), i, p)
    {
        json_t *said = is_thought(p) ? json_object_get(p, "thinking") : NULL;
        if (!said) {
            ok = ok && json_array_append(rest, p) == 0;
            continue;
        }
        json_t *one = hn_chat_said(said, true); /* pieces of one thought, as they were cut */
        bool empty = one && !json_string_length(one);
        ok = ok && one && (empty || json_array_append_new(thoughts, json_pack("{s:O}", "text", one)) == 0);
        json_decref(one);
    }
    ok = ok && (all = hn_chat_joined(thoughts, "\n\n")); /* as the server has them that come in several */
    if (ok && json_string_length(all) && !json_string_length(reasoning_of(m)))
        ok = json_object_set(m, "reasoning_content", all) == 0;
    if (ok) ok = set(m, "content", json_array_size(rest) ? json_incref(rest) : json_string(""));
    json_decref(thoughts);
    json_decref(rest);
    json_decref(all);
    return ok;
}

/* Messages without thoughts among their parts; new, NULL: out of memory. */
static json_t *without_thoughts(const json_t *messages)
{
    size_t i;
    json_t *m, *all = json_deep_copy(messages);
    bool ok = all != NULL;
    json_array_foreach(all, i, m)
    {
        if (is_own(m) && json_is_array(json_object_get(m, "content"))) ok = ok && lift_thoughts(m);
    }
    if (ok) return all;
    json_decref(all);
    return NULL;
}

static hone_status check_messages(const json_t *messages, has *given, hone_error *err)
{
    size_t i, k;
    json_t *m, *p;
    if (!json_is_array(messages))
        return HN_FAIL(err, HONE_E_ARG, "messages: expected a JSON array of objects with role and content");
    json_array_foreach(messages, i, m)
    {
        if (!json_is_object(m))
            return HN_FAIL(err, HONE_E_ARG, "messages[%zu]: expected an object with role and content", i);
        if (!json_is_string(json_object_get(m, "role")))
            return HN_FAIL(err, HONE_E_ARG, "messages[%zu].role: expected a string", i);
        const json_t *content = json_object_get(m, "content");
        if (content && !json_is_string(content) && !json_is_null(content) && !json_is_array(content))
            return HN_FAIL(err, HONE_E_ARG, "messages[%zu].content: expected a string, an array of parts or null", i);
        json_array_foreach(content, k, p)
        {
            const json_t *type = json_object_get(p, "type");
            bool thought = is_own(m) && is_thought(p);
            given->thoughts |= thought;
            if (!thought && !json_is_string(json_object_get(p, "text")))
                return HN_FAIL(
                    err, json_is_string(type) && !hn_json_is(type, "text") ? HONE_E_UNSUPPORTED : HONE_E_ARG,
                    "messages[%zu].content[%zu]: a part of type '%s'; expected {\"type\": \"text\", \"text\": \"…\"}",
                    i, k, json_is_string(type) ? HN_ESC(json_string_value(type), json_string_length(type)) : "?");
        }
        given->parts |= json_is_array(content);
        const json_t *list = json_object_get(m, "tool_calls");
        if (list && !json_is_array(list) && !json_is_null(list))
            return HN_FAIL(err, HONE_E_ARG, "messages[%zu].tool_calls: expected an array", i);
        given->calls |= json_array_size(list) > 0;
        given->text_and_calls |= json_array_size(list) && (json_string_length(content) || json_array_size(content));
        given->results |= hn_json_is(json_object_get(m, "role"), "tool");
        given->developer |= hn_json_is(json_object_get(m, "role"), "developer");
        given->reasoning |= json_string_length(reasoning_of(m)) > 0;
    }
    return HONE_OK;
}

json_t *hn_chat_said(const json_t *content, bool own)
{
    if (json_is_string(content)) return json_stringn(json_string_value(content), json_string_length(content));
    return hn_chat_joined(content, own ? "" : "\n");
}

/* Arguments of a call as the template takes them. False: out of memory. */
static bool fix_arguments(json_t *call, const taste *x)
{
    json_t *f = json_object_get(call, "function"), *owner = json_is_object(f) ? f : call,
           *args = json_object_get(owner, "arguments");
    bool none = !args || json_is_null(args) || hn_json_is(args, ""); /* as programs send them of calls without any */
    if (none && x->args_object) return set(owner, "arguments", json_object());
    if (none && x->args_text) return set(owner, "arguments", json_string("{}"));
    if (json_is_string(args) && x->args_object) {
        const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_DIGITS };
        const char *said = json_string_value(args);
        size_t n = json_string_length(args);
        json_t *o;
        hone_status st = hn_json_tree(&o, said, n, &rules, "arguments", NULL);
        if (st != HONE_E_NOMEM && !json_is_object(o)) { /* not what it should be, as an answer that was cut has it */
            json_decref(o);
            if (x->args_text) return true; /* shown as it came */
            st = hn_call_object(&o, said, n, NULL);
        }
        if (st == HONE_E_NOMEM) return false;
        return set(owner, "arguments", o);
    }
    if (json_is_object(args) && !x->args_object && x->args_text) {
        char *s = hn_json_dump(args, JSON_PRESERVE_ORDER);
        bool ok = s && set(owner, "arguments", json_string(s));
        free(s);
        return ok;
    }
    return true;
}

/* The reasoning of an answer where the template looks for it; where no rendering showed such a place, as it came. */
static bool fix_reasoning(json_t *m, const taste *x)
{
    json_t *said = json_object_get(m, "reasoning_content");
    const char *name = hn_chat_reasoning_names[x->reasoning];
    if (!json_string_length(said) || x->reasoning == HN_CHAT_REASONING_NONE ||
        x->reasoning == HN_CHAT_REASONING_CONTENT)
        return true;
    bool ok = true;
    if (x->reasoning == HN_CHAT_REASONING_PARTS)
        ok = set(m, "content", thinking_parts(json_incref(said), json_object_get(m, "content")));
    else if (!json_string_length(json_object_get(m, name))) ok = json_object_set(m, name, said) == 0;
    return ok && json_object_del(m, "reasoning_content") == 0;
}

/* A message with what m says; m says nothing then, and has its calls. NULL: out of memory. */
static json_t *said_before(json_t *m)
{
    static const char *const moved[] = { "role", "content", "reasoning_content" };
    json_t *before = json_object();
    bool ok = before != NULL;
    for (size_t k = 0; ok && k < sizeof moved / sizeof *moved; k++) {
        json_t *value = json_object_get(m, moved[k]);
        ok = !value || json_object_set(before, moved[k], value) == 0;
    }
    for (int k = 0; k < HN_CHAT_N_REASONING; k++)
        if (hn_chat_reasoning_names[k]) json_object_del(m, hn_chat_reasoning_names[k]);
    if (ok && set(m, "content", json_null())) return before;
    json_decref(before);
    return NULL;
}

/* What was said beside calls becomes a message before them. False: out of memory. */
static bool part_calls(json_t *messages)
{
    size_t i;
    json_t *m, *all = json_array();
    bool ok = all != NULL;
    json_array_foreach(messages, i, m)
    {
        const json_t *content = json_object_get(m, "content");
        bool speaks = json_string_length(content) || json_array_size(content);
        if (ok && speaks && json_array_size(json_object_get(m, "tool_calls")))
            ok = json_array_append_new(all, said_before(m)) == 0;
        ok = ok && json_array_append(all, m) == 0;
    }
    ok = ok && json_array_clear(messages) == 0 && json_array_extend(messages, all) == 0;
    json_decref(all);
    return ok;
}

/* What is null is not there, and reasoning has the name that callers know: as transformers has it. Records of data sets
 * name every member that one of them has, and gpt-oss' call reasoning `thinking`. False: out of memory. */
static bool plain(json_t *m)
{
    const char *key;
    json_t *value, *said = reasoning_of(m);
    void *next;
    bool ok = !json_string_length(said) || json_object_set(m, "reasoning_content", said) == 0;
    json_object_foreach_safe(m, next, key, value)
    {
        if (json_is_null(value) && strcmp(key, "content") != 0) json_object_del(m, key);
    }
    return ok;
}

/* Changes messages to what the template takes. False: out of memory. */
static bool adapt(json_t *messages, const taste *x)
{
    size_t i, k;
    json_t *m, *call;
    bool ok = true;
    json_array_foreach(messages, i, m) ok &= plain(m);
    if (x->calls_alone) ok = ok && part_calls(messages);
    json_array_foreach(messages, i, m)
    {
        json_t *content = json_object_get(m, "content"), *calls = json_object_get(m, "tool_calls");
        if (!x->developer && hn_json_is(json_object_get(m, "role"), "developer"))
            ok &= set(m, "role", json_string("system"));
        if (json_is_array(content) && !x->parts) ok &= set(m, "content", hn_chat_said(content, is_own(m)));
        else if (json_is_string(content) && !x->text && x->parts)
            ok &= set(m, "content", json_pack("[{s:s, s:O}]", "type", "text", "text", content));
        else if (!content || json_is_null(content) || (json_array_size(calls) && hn_json_is(content, ""))) {
            bool keep = json_array_size(calls) && x->null_content;
            ok &= set(m, "content", keep ? json_null() : json_string(""));
        }
        json_array_foreach(calls, k, call) ok &= fix_arguments(call, x);
        ok &= fix_reasoning(m, x);
    }
    return ok;
}

/* The messages without what the template has no place for: it writes no calls, or shows no tools. *said NULL: it has
 * for all. *listed: the template lists the tools. */
static hone_status in_words(const hn_jinja *t, const hn_chat *c, has *given, json_t **said, bool *listed,
                            hone_error *err)
{
    hn_call_habit habit;
    bool tools = json_array_size(c->tools) > 0,
         shown = !tools || hn_jinja_mentions(t, "tools") || hn_jinja_mentions(t, "functions");
    *said = NULL;
    *listed = true;
    if (!tools && !given->calls && !given->results) return HONE_OK;
    hone_status st = hn_call_written(t, c, &habit, err);
    bool written = habit == HN_CALLS_WRITTEN;
    if (st != HONE_OK || (written && shown)) return st;
    *listed = habit == HN_CALLS_BRACKETED;
    *said = *listed ? hn_chat_bracketed_calls(c->messages) : hn_chat_own_calls(c->messages, c->tools, !written);
    if (!*said) return HN_FAIL(err, HONE_E_NOMEM, "no memory for the messages");
    given->calls = given->calls && written;
    return HONE_OK;
}

/* Messages that the template refused, with status st and err, in the first order in which it takes them; changes them.
 * Where it takes none, its first words stand. */
static hone_status render_arranged(const hn_jinja *t, const hn_chat *c, json_t *messages, bool tools, hone_status st,
                                   hn_jinja_text *out, hone_error *err)
{
    for (int order = 0; order < HN_CHAT_N_ORDER; order++) {
        bool changed;
        hn_jinja_text again = { 0 };
        bool ok = hn_chat_arrange(messages, (hn_chat_order)order, &changed);
        hone_status got = !ok ? HONE_E_NOMEM : changed ? render(t, c, messages, tools, &again, NULL) : st;
        if (got == HONE_E_NOMEM) return HN_FAIL(err, HONE_E_NOMEM, "no memory for the messages");
        if (got != HONE_OK) continue;
        *out = again;
        return HONE_OK;
    }
    return st;
}

/* A rendering, *out, lacks something that a system message says: some templates write none, or the first or last alone,
 * and lose the others without a word. Then one in the first order in which that does not happen. Whether it does is
 * asked with words that no template changes, as *out may lack it only as it stood. */
static hone_status render_rules(const hn_jinja *t, const hn_chat *c, json_t *messages, bool tools, hn_jinja_text *out,
                                hone_error *err)
{
    static const hn_chat_order orders[] = { HN_CHAT_SYSTEM_FIRST, HN_CHAT_IN_TURN, HN_CHAT_NO_SYSTEM, HN_CHAT_IN_TURN };
    enum { N = sizeof orders / sizeof *orders };
    json_t *asked = json_deep_copy(messages), *marks = NULL;
    bool ok = asked && hn_chat_mark_rules(asked) && (marks = json_deep_copy(asked)), raised = false, changed = true,
         all = false, used[N] = { false };
    for (int n = -1; ok && !all && n < N; n++) { /* -1: as they are */
        hn_jinja_text text = { 0 };
        if (n >= 0 && orders[n] == HN_CHAT_IN_TURN && !raised) continue; /* no need to */
        if (n >= 0) used[n] = ok = hn_chat_arrange(asked, orders[n], &changed);
        if (!ok || !changed) continue;
        hone_status st = render(t, c, asked, tools, &text, NULL);
        ok = st != HONE_E_NOMEM;
        all = st == HONE_OK && hn_chat_instructs(&text, marks);
        raised = text.raised;
        hn_jinja_text_free(&text);
    }
    json_decref(asked);
    json_decref(marks);
    bool other = false;
    for (int n = 0; ok && all && n < N; n++) {
        if (!used[n]) continue;
        ok = hn_chat_arrange(messages, orders[n], &changed);
        other |= changed;
    }
    hn_jinja_text text = { 0 };
    hone_status st = !ok ? HONE_E_NOMEM : other ? render(t, c, messages, tools, &text, NULL) : HONE_E_ARG;
    if (st != HONE_OK && st != HONE_E_NOMEM) return HONE_OK; /* *out, then */
    hn_jinja_text_free(out);
    *out = text;
    return st == HONE_OK ? st : HN_FAIL(err, st, "no memory for the messages");
}

/* Whether a template that lacks the system message at the head of a conversation writes it in others: then it is left
 * out as its authors want it, as Mistral Nemo's is behind a tool's result. */
static bool leaves_out(const hn_jinja *t, const hn_chat *c, const json_t *messages, bool *oom)
{
    static const char *const any[] = { NULL };
    return hn_chat_rule_first(messages) && probe(t, c,
                                                 json_pack("[{s:s, s:s}, {s:s, s:s}]", "role", "system", "content",
                                                           marker, "role", "user", "content", "x"),
                                                 marker, any, oom);
}

static hone_status render_given(const hn_jinja *t, const hn_chat *c, has given, hn_jinja_text *out, hone_error *err)
{
    bool oom = false;
    json_t *said; /* in words, where the template has no place for calls and tools */
    bool tools;
    hone_status st = in_words(t, c, &given, &said, &tools, err);
    if (st != HONE_OK) return st;
    taste x = find_taste(t, c, given, &oom);
    json_t *messages = oom ? NULL : json_deep_copy(said ? said : c->messages);
    bool ours = said; /* so the system message says what must not be left out */
    json_decref(said);
    if (!messages || !adapt(messages, &x) || ((given.calls || given.results) && !hn_chat_fit_ids(t, messages))) {
        json_decref(messages);
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for the messages");
    }
    st = render(t, c, messages, tools, out, err);
    if (out->raised) st = render_arranged(t, c, messages, tools, st, out, err);
    if (st == HONE_OK && !hn_chat_instructs(out, messages) && (ours || !leaves_out(t, c, messages, &oom)))
        st = render_rules(t, c, messages, tools, out, err);
    json_decref(messages);
    if (oom) {
        hn_jinja_text_free(out);
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for the messages");
    }
    return st;
}

static hone_status render_thought(const hn_jinja *t, const hn_chat *c, hn_jinja_text *out, hone_error *err)
{
    has given = { 0 };
    hone_status st = check_messages(c->messages, &given, err);
    if (st != HONE_OK) return st;
    if (!given.thoughts) return render_given(t, c, given, out, err);
    hn_chat with = *c;
    json_t *messages = without_thoughts(c->messages);
    if (!messages) return HN_FAIL(err, HONE_E_NOMEM, "no memory for the messages");
    with.messages = messages;
    given = (has){ 0 }; /* a content of thoughts alone is an empty text now */
    st = check_messages(messages, &given, err);
    if (st == HONE_OK) st = render_given(t, &with, given, out, err);
    json_decref(messages);
    return st;
}

/* Tools with all that they may leave unsaid: descriptions, an object without members as their parameters. New; NULL:
 * out of memory, or nothing is left unsaid (*whole). */
static json_t *told_whole(const json_t *tools, bool *whole)
{
    size_t i;
    const char *name;
    json_t *tool, *member, *all = json_deep_copy(tools);
    bool ok = all != NULL;
    *whole = true;
    json_array_foreach(all, i, tool)
    {
        json_t *f = json_object_get(tool, "function"), *owner = json_is_object(f) ? f : tool;
        json_t *about = json_object_get(owner, "description"), *of = json_object_get(owner, "parameters");
        if (!about || json_is_null(about)) *whole = false, ok = ok && set(owner, "description", json_string(""));
        if (!of || json_is_null(of)) ok = ok && (*whole = false, set(owner, "parameters", of = json_object()));
        if (!json_is_object(of)) continue;
        if (!json_object_get(of, "type")) *whole = false, ok = ok && set(of, "type", json_string("object"));
        if (!json_object_get(of, "properties")) *whole = false, ok = ok && set(of, "properties", json_object());
        json_object_foreach(json_object_get(of, "properties"), name, member)
        {
            if (!json_is_object(member) || json_object_get(member, "description")) continue;
            *whole = false;
            ok = ok && set(member, "description", json_string(""));
        }
    }
    if (ok && !*whole) return all;
    *whole = *whole && ok;
    json_decref(all);
    return NULL;
}

hone_status hn_chat_render(const hn_jinja *t, const hn_chat *c, hn_jinja_text *out, hone_error *err)
{
    *out = (hn_jinja_text){ 0 };
    if (c->tools && !json_is_array(c->tools)) return HN_FAIL(err, HONE_E_ARG, "tools: expected a JSON array");
    if (c->variables && !json_is_object(c->variables))
        return HN_FAIL(err, HONE_E_ARG, "variables: expected a JSON object");
    hone_status st = render_thought(t, c, out, err);
    if (st == HONE_OK || st == HONE_E_NOMEM || !json_array_size(c->tools)) return st;

    /* gpt-oss' template goes wrong where a tool has no description, Seed-OSS' where it has no parameters */
    bool whole;
    hn_chat with = *c;
    hn_jinja_text again = { 0 };
    json_t *tools = told_whole(c->tools, &whole);
    if (!tools && !whole) return HN_FAIL(err, HONE_E_NOMEM, "no memory for the tools");
    if (!tools) return st;
    with.tools = tools;
    hone_status got = render_thought(t, &with, &again, NULL);
    json_decref(tools);
    if (got == HONE_E_NOMEM) return HN_FAIL(err, HONE_E_NOMEM, "no memory for the messages");
    if (got != HONE_OK) return st; /* it was something else */
    *out = again;
    return HONE_OK;
}

/* ---- ids ---------------------------------------------------------------------------------------------------- */

/* The length of BOS at the beginning of text, where the template wrote it; else 0. */
static size_t printed_bos(const hn_vocab *v, const char *text, size_t len, const hone_span *input, size_t n_input)
{
    size_t n;
    const char *s = hn_vocab_bos(v) < 0 ? NULL : hn_vocab_piece(v, hn_vocab_bos(v), true, &n);
    bool there = s && n && n <= len && memcmp(text, s, n) == 0;
    return there && (!n_input || input[0].begin >= n) ? n : 0;
}

hone_status hn_chat_encode(const hn_vocab *v, const char *text, size_t len, const hone_span *input, size_t n_input,
                           bool trust_input, hn_ids *out, hone_error *err)
{
    size_t head = hn_vocab_add_bos(v) ? printed_bos(v, text, len, input, n_input) : 0;
    if (trust_input) n_input = 0;
    hone_span *moved = malloc((n_input + 1) * sizeof *moved);
    if (!moved) return HN_FAIL(err, HONE_E_NOMEM, "no memory for %zu spans", n_input);
    for (size_t i = 0; i < n_input; i++) moved[i] = (hone_span){ input[i].begin - head, input[i].end - head };
    hone_status st = hn_vocab_encode_spans(v, text + head, len - head, HONE_TOK_SPECIAL | HONE_TOK_ADD_BOS, moved,
                                           n_input, out, err);
    free(moved);
    return st;
}
