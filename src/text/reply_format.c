/* reply_format: how a template marks the parts of an answer; see reply.h. Asks the template by rendering conversations
 * of words that no template holds, and looks at what stands around them. Owns the table of what rendering does not
 * show: models that were trained to think in tags that their template never writes, and formats with headers. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "text/reply.h"
#include "text/text_priv.h"

#include <stdlib.h>

#define THOUGHT "hone-probe-thought-5b1d"
#define ANSWER "hone-probe-answer-9c24"

enum {
    FROM_TEXT = 1 << HN_REPLY_TEXT,
    FROM_REASONING = 1 << HN_REPLY_REASONING,
    FROM_HEADER = 1 << HN_REPLY_HEADER,
    FROM_ANY = 31
};

static bool contains(hone_str s, const char *what) { return memmem(s.ptr, s.len, what, strlen(what)) != NULL; }

/* ---- marks ----------------------------------------------------------------------------------------------- */

/* The special token that is this text, -1: none. */
static int32_t special_token(const hn_vocab *v, const char *text)
{
    return v ? hn_lex_find(v, &v->special, text, strlen(text)) : -1;
}

static hn_reply_mark *add(hn_reply_format *f, const hn_vocab *v, const char *text, hn_reply_act act, unsigned from)
{
    size_t n = strlen(text);
    if (f->n == HN_REPLY_MARKS || !n || n >= sizeof f->mark[0].text) return NULL;
    hn_reply_mark *m = &f->mark[f->n++];
    *m = (hn_reply_mark){ .id = special_token(v, text), .act = (uint8_t)act, .from = (uint8_t)from };
    memcpy(m->text, text, n + 1);
    return m;
}

/* A pair of tags around reasoning. A token that has no other meaning may open it anywhere; a tag that could be a part
 * of an answer, about tags for instance, only where the answer would begin. */
static void add_pair(hn_reply_format *f, const hn_vocab *v, const char *open, const char *close)
{
    uint8_t group = 1;
    for (int i = 0; i < f->n; i++) {
        if (f->mark[i].act == HN_REPLY_OPEN && strcmp(f->mark[i].text, open) == 0) return; /* it is there */
        if (f->mark[i].group >= group) group = (uint8_t)(f->mark[i].group + 1);
    }
    if (f->n + 2 > HN_REPLY_MARKS) return;
    hn_reply_mark *m = add(f, v, open, HN_REPLY_OPEN, FROM_TEXT);
    if (!m) return;
    m->group = group;
    m->first = m->id < 0 || !hn_vocab_is_control(v, m->id);
    m = add(f, v, close, HN_REPLY_CLOSE, FROM_REASONING);
    if (m) m->group = group;
    else f->n--;
}

static void add_wrapper(hn_reply_format *f, const hn_vocab *v, const char *open, const char *close)
{
    bool again = f->n > 1 && strcmp(f->mark[f->n - 2].text, open) == 0; /* it has two ends */
    hn_reply_mark *m = again ? NULL : add(f, v, open, HN_REPLY_SAY, FROM_TEXT);
    if (m) m->first = m->id < 0 || !hn_vocab_is_control(v, m->id);
    add(f, v, close, HN_REPLY_UNSAY, FROM_TEXT);
}

/* ---- the table ------------------------------------------------------------------------------------------- */

/* Tags of published models, for templates that do not write them, or not around an answer's reasoning. Used where the
 * source of the template or the vocabulary has them. */
static const char *const pairs[][2] = {
    { "<think>", "</think>" }, /* in any: models are trained to it whatever their template says */
    { "<thinking>", "</thinking>" },
    { "<thought>", "</thought>" },
    { "<reasoning>", "</reasoning>" },
    { "<seed:think>", "</seed:think>" },
    { "<mm:think>", "</mm:think>" },
    { "[THINK]", "[/THINK]" },
    { "<|START_THINKING|>", "<|END_THINKING|>" },                 /* Command */
    { "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]" }, /* Apriel */
    { "Here is my thought process:", "Here is my response:" },    /* Granite 3.2 */
};
/* Around the answer; the last two: what the source must have, as other templates use the words otherwise. */
static const char *const wrappers[][4] = {
    { "<response>", "</response>", "<response>", "<|start_of_role|>" }, /* Granite 3 */
    { "<answer>", "\n</answer>", "<|extra_0|>", "<|extra_4|>" },
    { "<answer>", "</answer>", "<|extra_0|>", "<|extra_4|>" }, /* Hunyuan A13B */
    { "<answer>", "\n</answer>", "hy_Assistant", "<answer>" },
    { "<answer>", "</answer>", "hy_Assistant", "<answer>" }, /* … and the dense ones */
    { "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_RESPONSE|>", "" },
    { "<|START_TEXT|>", "<|END_TEXT|>", "<|START_TEXT|>", "" },
    { "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]", "[BEGIN FINAL RESPONSE]", "" },
};

static void add_known(hn_reply_format *f, hone_str source, const hn_vocab *v)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (i == 0 || contains(source, pairs[i][1]) || special_token(v, pairs[i][0]) >= 0)
            add_pair(f, v, pairs[i][0], pairs[i][1]);
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if ((contains(source, wrappers[i][2]) && contains(source, wrappers[i][3])) ||
            (strcmp(wrappers[i][0], wrappers[i][2]) == 0 && special_token(v, wrappers[i][0]) >= 0))
            add_wrapper(f, v, wrappers[i][0], wrappers[i][1]);
    hn_reply_mark *all = contains(source, ">>>all") ? add(f, v, "all\n", HN_REPLY_SAY, FROM_TEXT) : NULL;
    if (all) all->first = true; /* Functionary 3.2, whose prompt ends in >>>: to whom the answer is */
}

/* gpt-oss: <|start|>assistant<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>… */
static void make_harmony(hn_reply_format *f, const hn_vocab *v)
{
    f->kind = "harmony";
    add(f, v, "<|start|>", HN_REPLY_START, FROM_ANY);
    add(f, v, "<|channel|>", HN_REPLY_FIELD, FROM_ANY);
    add(f, v, "<|constrain|>", HN_REPLY_FIELD, FROM_HEADER);
    add(f, v, "<|message|>", HN_REPLY_BODY, FROM_HEADER);
    add(f, v, "<|end|>", HN_REPLY_FINISH, FROM_ANY);
}

/* Muse Glimmer: <|start|>assistant to=self<|message|>…<|eom|><|start|>assistant to=user<|message|>…<|eot|> */
static void make_recipient(hn_reply_format *f, const hn_vocab *v)
{
    f->kind = "recipient";
    add(f, v, "<|start|>", HN_REPLY_START, FROM_ANY);
    add(f, v, "<|message|>", HN_REPLY_BODY, FROM_HEADER);
    add(f, v, "<|eom|>", HN_REPLY_START, FROM_ANY); /* another message follows */
    add(f, v, "<|eot|>", HN_REPLY_FINISH, FROM_ANY);
}

/* Gemma 4: <|channel>thought\n…<channel|>answer */
static void make_channel(hn_reply_format *f, const hn_vocab *v)
{
    f->kind = "channel";
    add(f, v, "<|channel>", HN_REPLY_FIELD, FROM_ANY & ~FROM_HEADER);
    add(f, v, "\n", HN_REPLY_BODY, FROM_HEADER)->id = -1;
    add(f, v, "<channel|>", HN_REPLY_CLOSE, FROM_REASONING | FROM_HEADER | FROM_TEXT);
    add(f, v, "<|tool_call>", HN_REPLY_TOOLS, FROM_TEXT | FROM_REASONING);
    add(f, v, "<tool_call|>", HN_REPLY_SAY, 1 << HN_REPLY_CALL);
}

/* Solar Open: <|begin|>assistant<|think|>…<|end|><|begin|>assistant<|content|>… */
static void make_begin(hn_reply_format *f, const hn_vocab *v)
{
    f->kind = "begin";
    add(f, v, "<|begin|>", HN_REPLY_START, FROM_ANY);
    add(f, v, "<|think|>", HN_REPLY_OPEN, FROM_HEADER | FROM_TEXT);
    add(f, v, "<|content|>", HN_REPLY_SAY, FROM_HEADER | FROM_TEXT);
    add(f, v, "<|tool_calls|>", HN_REPLY_TOOLS, FROM_HEADER | FROM_TEXT);
    add(f, v, "<|end|>", HN_REPLY_FINISH, FROM_ANY);
}

/* ---- what renderings show -------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

enum { TAG_MAX = 40 };

/* The tag, <…> or […], that ends text[0..n) but for blanks. False: none. */
static bool tag_before(char tag[TAG_MAX], const char *text, size_t n)
{
    while (n && is_blank(text[n - 1])) n--;
    if (!n || (text[n - 1] != '>' && text[n - 1] != ']')) return false;
    char open = text[n - 1] == '>' ? '<' : '[';
    for (size_t len = 2; len <= n && len < TAG_MAX; len++)
        if (text[n - len] == open) {
            memcpy(tag, text + n - len, len);
            tag[len] = 0;
            return true;
        }
    return false;
}

/* The tag that begins text[0..n) but for blanks. */
static bool tag_after(char tag[TAG_MAX], const char *text, size_t n)
{
    while (n && is_blank(*text)) text++, n--;
    if (!n || (*text != '<' && *text != '[')) return false;
    const char *end = memchr(text, *text == '<' ? '>' : ']', n);
    size_t len = end ? (size_t)(end - text) + 1 : 0;
    if (len < 2 || len >= TAG_MAX) return false;
    memcpy(tag, text, len);
    tag[len] = 0;
    return true;
}

/* What a tag is about: its letters, without a word that says which end it is. */
static void core(char out[TAG_MAX], const char *tag)
{
    static const char *const ends[] = { "start", "begin", "open", "end", "close" };
    size_t n = 0;
    for (; *tag; tag++) {
        char c = (char)(*tag >= 'A' && *tag <= 'Z' ? *tag + 32 : *tag);
        if (c >= 'a' && c <= 'z') out[n++] = c;
    }
    out[n] = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t k = strlen(ends[i]);
        if (n > k && memcmp(out, ends[i], k) == 0) {
            memmove(out, out + k, n - k + 1);
            return;
        }
    }
}

/* Whether open and close are the two ends of one thing, and not what happens to stand there. */
static bool is_pair(const char *open, const char *close)
{
    char a[TAG_MAX], b[TAG_MAX];
    core(a, open);
    core(b, close);
    return *a && strcmp(a, b) == 0 && strcmp(open, close) != 0;
}

/* c with reasoning switched on, whatever the template calls it. */
static json_t *reasoning_variables(const hn_chat *c)
{
    json_t *o = c->variables ? json_copy((json_t *)c->variables) : json_object();
    if (o && json_object_set_new(o, "enable_thinking", json_true()) == 0 &&
        json_object_set_new(o, "thinking", json_true()) == 0)
        return o;
    json_decref(o);
    return NULL;
}

/* An answer with reasoning: the tags that the template puts around it. */
static hone_status derive_pair(hn_reply_format *f, const hn_jinja *t, const hn_chat *c, const hn_vocab *v,
                               hone_error *err)
{
    json_t *variables = reasoning_variables(c);
    hn_chat on = *c;
    on.variables = variables;
    hone_status st = variables ? HONE_OK : HONE_E_NOMEM;
    for (int shape = HN_CHAT_REASONING_CONTENT; shape < HN_CHAT_N_REASONING && st == HONE_OK && !f->derived; shape++) {
        hn_jinja_text out = { 0 };
        char open[TAG_MAX], close[TAG_MAX];
        json_t *m = hn_chat_reasoning_probe((hn_chat_reasoning)shape, THOUGHT, ANSWER);
        st = m ? hn_chat_render_as_is(t, &on, m, false, false, &out, NULL) : HONE_E_NOMEM;
        const char *at = st == HONE_OK ? memmem(out.text, out.len, THOUGHT, strlen(THOUGHT)) : NULL,
                   *end = at ? at + strlen(THOUGHT) : NULL,
                   *answer = end ? memmem(end, out.len - (size_t)(end - out.text), ANSWER, strlen(ANSWER)) : NULL;
        if (answer && tag_before(open, out.text, (size_t)(at - out.text)) &&
            tag_after(close, end, (size_t)(answer - end)) && is_pair(open, close)) {
            add_pair(f, v, open, close);
            f->derived = true;
        }
        if (st != HONE_E_NOMEM) st = HONE_OK; /* a template that refuses shows nothing */
        hn_jinja_text_free(&out);
        json_decref(m);
    }
    json_decref(variables);
    return st == HONE_OK ? st : HN_FAIL(err, st, "no memory to look at the chat template");
}

/* Text behind an answer, up to the next message (next) or the end; of lines that are not blank the first. malloc'ed;
 * NULL: none, or *st is not HONE_OK. */
static char *behind_answer(const hn_jinja *t, const hn_chat *c, bool next, hone_status *st)
{
    hn_jinja_text out = { 0 };
    char *s = NULL;
    json_t *m =
        json_pack("[{s:s, s:s}, {s:s, s:s}]", "role", "user", "content", "x", "role", "assistant", "content", ANSWER);
    if (m && next && json_array_append_new(m, json_pack("{s:s, s:s}", "role", "user", "content", ANSWER)) != 0)
        *st = HONE_E_NOMEM;
    if (m && *st == HONE_OK) {
        hn_chat asked = *c;
        asked.messages = m;
        asked.add_generation_prompt = false;
        hone_status got = hn_chat_render(t, &asked, &out, NULL);
        const char *at = got == HONE_OK ? strstr(out.text, ANSWER) : NULL, *stop = at ? strstr(at + 1, ANSWER) : NULL;
        if (got == HONE_E_NOMEM) *st = got;
        if (at) {
            at += strlen(ANSWER);
            size_t len = stop ? (size_t)(stop - at) : strlen(at), begin = 0;
            while (begin < len && is_blank(at[begin])) begin++;
            const char *line = memchr(at + begin, '\n', len - begin);
            if (line) len = (size_t)(line - at);
            while (len && is_blank(at[len - 1])) len--;
            if (!(s = strndup(at, len))) *st = HONE_E_NOMEM;
        }
    } else {
        *st = HONE_E_NOMEM;
    }
    hn_jinja_text_free(&out);
    json_decref(m);
    return s;
}

/* The control token that begins text, the longest; -1: it begins with something that an answer may hold. */
static int32_t control_token(const hn_vocab *v, const char *text)
{
    int32_t best = -1;
    size_t longest = 0;
    for (uint32_t i = 0; v && i < v->special.n; i++) {
        int32_t id = v->special.ids[i];
        size_t n;
        const char *s = hn_vocab_text(v, id, &n);
        if (n <= longest || v->type[id] == HN_TOK_USER || strncmp(text, s, n) != 0) continue;
        best = id;
        longest = n;
    }
    return best;
}

/* What stands behind an answer, and before the next message, ends it. */
static hone_status find_end(hn_reply_format *f, const hn_jinja *t, const hn_chat *c, const hn_vocab *v, hone_error *err)
{
    hone_status st = HONE_OK;
    for (int i = 0; i < f->n; i++)
        if (f->mark[i].act == HN_REPLY_FINISH) return st; /* which ends each part of an answer */
    char *s = behind_answer(t, c, false, &st);
    size_t skip = s ? strspn(s, " \n\t\r") : 0;
    if (st == HONE_OK && (!s || !s[skip])) { /* only blanks: how the next message begins tells more */
        free(s);
        s = behind_answer(t, c, true, &st);
        skip = 0;
        if (s && !s[strspn(s, " \n\t\r")]) *s = 0;
    }
    if (s && s[skip]) f->end_id = control_token(v, s + skip);
    if (s && s[skip] && f->end_id < 0 && strlen(s + skip) < HN_REPLY_END)
        memcpy(f->end, s + skip, strlen(s + skip) + 1);
    free(s);
    return st == HONE_OK ? st : HN_FAIL(err, st, "no memory to look at the chat template");
}

hone_status hn_reply_format_make(hn_reply_format *out, const hn_jinja *t, hone_str source, const hn_chat *c,
                                 const hn_vocab *v, hone_error *err)
{
    hn_chat plain = *c;
    plain.messages = plain.tools = NULL;
    *out = (hn_reply_format){ .kind = "tags", .end_id = -1 };
    hone_status st = HONE_OK;
    if (contains(source, "<|channel|>") && contains(source, "<|message|>")) make_harmony(out, v);
    else if (contains(source, "to=self<|message|>") && contains(source, "<|eom|>")) make_recipient(out, v);
    else if (contains(source, "<|channel>") && contains(source, "<channel|>")) make_channel(out, v);
    else if (contains(source, "<|begin|>") && contains(source, "<|think|>") && contains(source, "<|content|>"))
        make_begin(out, v);
    else {
        st = derive_pair(out, t, &plain, v, err);
        add_known(out, source, v);
    }
    return st == HONE_OK ? find_end(out, t, &plain, v, err) : st;
}

/* ---- for people ------------------------------------------------------------------------------------------ */

json_t *hn_reply_format_json(const hn_reply_format *f, const hn_vocab *v)
{
    static const char *const acts[] = { "reasoning", "answer",        "message", "field",         "text",
                                        "answer",    "end of answer", "calls",   "end of message" };
    json_t *marks = json_array(), *o = NULL;
    size_t n;
    bool ok = marks != NULL;
    for (int i = 0; ok && i < f->n; i++) {
        const hn_reply_mark *m = &f->mark[i];
        json_t *id = m->id >= 0 ? json_integer(m->id) : json_null();
        ok = json_array_append_new(
                 marks, json_pack("{s:s, s:s, s:o}", "mark", m->text, "begins", acts[m->act], "token", id)) == 0;
    }
    const char *end = f->end_id >= 0 ? hn_vocab_piece(v, f->end_id, true, &n) : f->end;
    if (f->end_id < 0) n = strlen(f->end);
    if (ok)
        o = json_pack("{s:s, s:b, s:O, s:o}", "kind", f->kind, "derived", f->derived, "marks", marks, "end",
                      n ? json_stringn(end, n) : json_null());
    json_decref(marks);
    return o;
}

/* ---- switches -------------------------------------------------------------------------------------------- */

/* Variables that published templates ask for whether to reason: true or false where no words stand here. */
static const struct {
    const char *name, *on, *off;
} switches[] = {
    { "enable_thinking", NULL, NULL },          { "thinking", NULL, NULL },         { "reasoning", NULL, NULL },
    { "thinking_mode", "enabled", "disabled" }, { "thinking_option", "on", "off" },
};
static const char *const efforts[] = { "reasoning_effort", "thinking_effort", "reasoning_strength" };
static const char *const effort_words[] = { "none", "no_think", "minimal", "low", "medium", "high", "xhigh", "max" };

/* c's variables and the switches of t that are set to how. NULL: out of memory. */
static json_t *switched(const hn_jinja *t, const hn_chat *c, const char *how)
{
    json_t *o = c->variables ? json_copy((json_t *)c->variables) : json_object();
    bool off = strcmp(how, "off") == 0, effort = !off && strcmp(how, "on") != 0, ok = o != NULL;
    for (size_t i = 0; ok && i < sizeof switches / sizeof *switches; i++) {
        const char *word = off ? switches[i].off : switches[i].on;
        if (hn_jinja_mentions(t, switches[i].name))
            ok = json_object_set_new(o, switches[i].name, word ? json_string(word) : json_boolean(!off)) == 0;
    }
    if (ok && off && hn_jinja_mentions(t, "thinking_budget")) /* Seed-OSS; without it there is no limit */
        ok = json_object_set_new(o, "thinking_budget", json_integer(0)) == 0;
    for (size_t i = 0; ok && effort && i < sizeof efforts / sizeof *efforts; i++)
        if (hn_jinja_mentions(t, efforts[i])) ok = json_object_set_new(o, efforts[i], json_string(how)) == 0;
    if (ok) return o;
    json_decref(o);
    return NULL;
}

/* The prompt of a small conversation with the switches set to how; text NULL where the template refuses. */
static hone_status prompt_with(const hn_jinja *t, const hn_chat *c, const char *how, hn_jinja_text *out,
                               hone_error *err)
{
    hn_chat x = *c;
    json_t *m = json_pack("[{s:s, s:s}]", "role", "user", "content", "x"), *variables = switched(t, c, how);
    x.variables = variables;
    *out = (hn_jinja_text){ 0 };
    hone_status st = m && variables ? hn_chat_render_as_is(t, &x, m, false, true, out, err)
                                    : HN_FAIL(err, HONE_E_NOMEM, "no memory to look at the chat template");
    json_decref(m);
    json_decref(variables);
    return st;
}

/* ---- efforts: which words a template takes, and what they do, found out by asking it ------------------- */

enum { N_EFFORT = sizeof effort_words / sizeof *effort_words, NONE = 2 /* of them say that there is to be none */ };

typedef struct effort_kinds {
    bool known[N_EFFORT]; /* the prompt is made */
    bool off[N_EFFORT];   /* … and has no reasoning */
    bool picky;           /* other words are refused */
    bool graded;          /* the words do not all make the same prompt */
    bool closes;          /* some word ends reasoning in the prompt */
} effort_kinds;

/* Has the prompt reasoning that ended before it began? Two tags with nothing between them at its end, or Solar's. */
static bool is_closed(const hn_jinja_text *prompt)
{
    char open[TAG_MAX], close[TAG_MAX];
    size_t n = prompt->len;
    if (!n) return false;
    if (contains((hone_str){ prompt->text, n }, "<|think|><|end|>")) return true;
    if (!tag_before(close, prompt->text, n)) return false;
    while (is_blank(prompt->text[n - 1])) n--;
    n -= strlen(close);
    return tag_before(open, prompt->text, n) && is_pair(open, close);
}

static hone_status ask_efforts(effort_kinds *k, const hn_jinja *t, const hn_chat *c)
{
    hn_jinja_text first = { 0 };
    bool any = false;
    hone_status st = HONE_OK;
    *k = (effort_kinds){ 0 };
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) any = any || hn_jinja_mentions(t, efforts[i]);
    for (size_t i = 0; any && st != HONE_E_NOMEM && i <= N_EFFORT; i++) {
        hn_jinja_text out = { 0 };
        st = prompt_with(t, c, i < N_EFFORT ? effort_words[i] : THOUGHT, &out, NULL);
        if (i == N_EFFORT) {
            k->picky = st != HONE_OK;
        } else if (st == HONE_OK) {
            k->known[i] = true;
            k->off[i] = is_closed(&out);
            k->closes = k->closes || k->off[i];
            k->graded =
                k->graded || (first.text && (first.len != out.len || memcmp(first.text, out.text, out.len) != 0));
            if (!first.text) {
                first = out;
                continue;
            }
        }
        hn_jinja_text_free(&out);
    }
    hn_jinja_text_free(&first);
    bool some = false;
    for (size_t i = 0; i < N_EFFORT; i++) {
        k->off[i] = k->off[i] || (i < NONE && k->picky && k->known[i]);
        some = some || k->known[i];
    }
    k->picky = k->picky && some;
    k->graded = k->graded || k->picky;
    return st == HONE_E_NOMEM ? st : HONE_OK;
}

/* The word for how; NULL: none says that. */
static const char *effort_for(const effort_kinds *k, const char *how)
{
    enum { HIGH = 5, XHIGH }; /* what "on" is, rather than more */
    int want = -1, best = -1;
    for (int i = 0; i < N_EFFORT; i++)
        if (strcmp(how, effort_words[i]) == 0) want = i;
    if (want == XHIGH && !k->picky) want = HIGH; /* one client's word: no model was taught it */
    if (strcmp(how, "off") == 0 || (want >= 0 && want < NONE && (k->picky || k->closes))) {
        for (int i = 0; i < N_EFFORT; i++)
            if (k->off[i]) return effort_words[i];
        return NULL;
    }
    if (strcmp(how, "on") != 0) best = k->known[want] ? want : -1; /* it is asked for in its words */
    else if (!k->picky && !k->closes) return NULL;
    else want = HIGH;
    for (int d = 0; best < 0 && d < N_EFFORT; d++) { /* the nearest, of two the higher */
        if (want + d < N_EFFORT && k->known[want + d] && !k->off[want + d]) best = want + d;
        else if (want - d >= 0 && k->known[want - d] && !k->off[want - d]) best = want - d;
    }
    return best >= 0 ? effort_words[best] : NULL;
}

/* Whether the two make different prompts. */
static hone_status matters(const hn_jinja *t, const hn_chat *c, const char *a, const char *b, bool *differ)
{
    hn_jinja_text x, y = { 0 };
    hone_status st = prompt_with(t, c, a, &x, NULL), st2 = st == HONE_E_NOMEM ? st : prompt_with(t, c, b, &y, NULL);
    *differ = st == HONE_OK && st2 == HONE_OK && (x.len != y.len || memcmp(x.text, y.text, x.len) != 0);
    hn_jinja_text_free(&x);
    hn_jinja_text_free(&y);
    return st == HONE_E_NOMEM || st2 == HONE_E_NOMEM ? HONE_E_NOMEM : HONE_OK;
}

/* For messages: what a template takes instead. */
static const char *taken(char *out, size_t cap, const effort_kinds *k, bool toggles)
{
    if (!k->picky)
        return toggles     ? "it takes on and off"
               : k->graded ? "it takes low, medium and high"
                           : "it has no switch for reasoning (other variables: --chat-vars JSON)";
    size_t n = (size_t)snprintf(out, cap, "it takes %s", toggles ? "on, off" : "");
    for (size_t i = 0, some = toggles; i < N_EFFORT && n < cap; i++)
        if (k->known[i]) n += (size_t)snprintf(out + n, cap - n, "%s%s", some++ ? ", " : "", effort_words[i]);
    return out;
}

hone_status hn_reply_think(json_t **out, const hn_jinja *t, const hn_chat *c, const char *how, hone_error *err)
{
    bool toggles, effort = false, none = false;
    effort_kinds k = { 0 };
    char words[160];
    *out = NULL;
    for (size_t i = 0; i < N_EFFORT; i++) {
        effort = effort || strcmp(how, effort_words[i]) == 0;
        none = none || (i < NONE && strcmp(how, effort_words[i]) == 0);
    }
    if (!effort && strcmp(how, "on") != 0 && strcmp(how, "off") != 0)
        return HN_FAIL(err, HONE_E_ARG,
                       "think: '%s'; expected on, off, or an effort: none, minimal, low, medium, high, max",
                       HN_ESC(how, strlen(how)));
    hone_status st = matters(t, c, "on", "off", &toggles);
    const char *said = toggles && none ? "off" : how, *word = NULL;
    bool by_word = !toggles || (effort && !none); /* what a switch says, it says */
    hn_chat bare = *c;                            /* a dozen prompts, none of which needs the tools */
    bare.tools = NULL;
    if (st == HONE_OK && by_word) st = ask_efforts(&k, t, &bare);
    if (st != HONE_OK) return HN_FAIL(err, HONE_E_NOMEM, "no memory to look at the chat template");
    if (by_word && k.graded) word = effort_for(&k, how);
    if (by_word && !word)
        return HN_FAIL(err, HONE_E_ARG, "think %s: this chat template does not ask for it; %s", how,
                       taken(words, sizeof words, &k, toggles));
    if (!word) word = said;
    hn_jinja_text text;
    st = prompt_with(t, c, word, &text, err); /* with all that it will have: what is refused then is so in its words */
    hn_jinja_text_free(&text);
    if (st != HONE_OK) return st;
    if (!(*out = switched(t, c, word))) return HN_FAIL(err, HONE_E_NOMEM, "no memory for the variables");
    return HONE_OK;
}
