/* Answers taken apart (text/reply.h): what templates mark is found, in any cutting into tokens the parts are the same,
 * a mark spelt in other tokens is text, and what a template writes for an answer is read back as that answer.
 *
 * A script is an answer as a model samples it: names of special tokens stand for these tokens, but for one behind \2,
 * which is spelt. Parts are written {R}reasoning{T}answer{C}commentary{F}call, and a dot where the turn ended. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "byte_vocab.h"
#include "text/reply.h"

#include <dirent.h>

static uint32_t seed;
static uint32_t pick(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* ---- vocabularies: all bytes, pieces that cut marks and characters anywhere, and special tokens ------------ */

static const char *const pieces[] = { "<t",        "th",    "hin",       "ink>",  "<think", "</",       "think>",
                                      "/think>\n", "\n\n",  ">\n",       "an",    "ly",     " a",       "e ",
                                      "[TH",       "INK]",  "<|",        "|>",    "a\xC3",  "\xA9\x78", "\xF0\x9F",
                                      "\x98\x80 ", "<r",    "response>", "wer",   "ans",    "<seed",    ":th",
                                      "use",       "User:", "<<",        "x\n\n", NULL };
enum { N_BYTES = 256, N_PIECES = sizeof pieces / sizeof *pieces - 1 };

static hn_vocab *vocabulary(const char *const *control, const char *const *user)
{
    return byte_vocab(pieces, control, user);
}
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- formats ----------------------------------------------------------------------------------------------- */

typedef struct format {
    hn_reply_format f;
    hn_jinja *t;
    hn_chat c;
    json_t *variables;
} format;

static format make_format(const char *source, const char *variables, const hn_vocab *v)
{
    static const hn_jinja_time now = { 2026, 2, 3, 4, 5, 6 };
    format m = { 0 };
    hone_error e = { 0 };
    if (hn_jinja_parse(&m.t, source, strlen(source), "t", NULL, &e) != HONE_OK) fail_msg("%s", e.message);
    m.variables = variables ? json_loads(variables, 0, NULL) : NULL;
    assert_true(!variables || m.variables);
    m.c = (hn_chat){ .bos = "<s>", .eos = "</s>", .now = &now, .variables = m.variables };
    assert_int_equal(hn_reply_format_make(&m.f, m.t, (hone_str){ source, strlen(source) }, &m.c, v, &e), HONE_OK);
    return m;
}

static void free_format(format *m)
{
    hn_jinja_free(m->t);
    json_decref(m->variables);
}

/* ---- reading a script -------------------------------------------------------------------------------------- */

static void say(char *out, const char **last, const hone_reply_part *p, size_t n)
{
    static const char *const names[] = { "{T}", "{R}", "{C}", "{F}" };
    for (size_t i = 0; i < n; i++) {
        assert_true(p[i].len > 0);
        if (*last != names[p[i].part]) strcat(out, *last = names[p[i].part]);
        strncat(out, p[i].text, p[i].len);
    }
}

static int32_t special_at(const hn_vocab *v, const char *s, size_t *len)
{
    int32_t best = -1;
    *len = 0;
    for (int32_t id = 1 + N_BYTES + N_PIECES; id < hn_vocab_size(v); id++) {
        size_t n;
        const char *t = hn_vocab_piece(v, id, true, &n);
        if (n > *len && strncmp(s, t, n) == 0) best = id, *len = n;
    }
    return best;
}

/* Next token of a script; cut: 0 single bytes, else anything that fits, by chance. */
static int32_t next_token(const hn_vocab *v, const char **s, const char **spelt, bool cut)
{
    size_t n;
    int32_t id;
    if (**s == 2) {
        ++*s;
        special_at(v, *s, &n);
        *spelt = *s + n;
    }
    if (*s >= *spelt && (id = special_at(v, *s, &n)) >= 0) {
        *s += n;
        return id;
    }
    id = 1 + (unsigned char)**s;
    n = 1;
    for (size_t i = 0; cut && i < N_PIECES; i++) {
        size_t k = strlen(pieces[i]), other;
        bool into = false; /* a special token that is not spelt begins in the middle of the piece */
        if (strncmp(*s, pieces[i], k) != 0) continue;
        for (size_t j = 1; j < k; j++) into |= *s + j >= *spelt && special_at(v, *s + j, &other) >= 0;
        if (into || pick(3)) continue;
        id = 1 + N_BYTES + (int32_t)i;
        n = k;
    }
    *s += n;
    return id;
}

/* The parts of a script; out has room for them. */
static void read_script(char *out, const hn_vocab *v, const hn_reply_format *f, const char *prompt,
                        const hone_span *input, const char *const *stops, size_t n_stops, const char *s, bool cut)
{
    hn_reply *r;
    hone_error e = { 0 };
    const hone_reply_part *p;
    const char *last = NULL, *spelt = s;
    size_t n;
    hone_reply_end end = HONE_REPLY_GOES_ON;
    *out = 0;
    if (hn_reply_new(&r, v, f, prompt, strlen(prompt), input, input != NULL, stops, n_stops, &e) != HONE_OK)
        fail_msg("%s", e.message);
    while (*s && !end) {
        assert_int_equal(hn_reply_push(r, next_token(v, &s, &spelt, cut), &p, &n, &end, &e), HONE_OK);
        say(out, &last, p, n);
    }
    assert_int_equal(hn_reply_flush(r, &p, &n, &e), HONE_OK);
    say(out, &last, p, n);
    if (end) strcat(out, end == HONE_REPLY_STOP ? "!" : ".");
    hn_reply_free(r);
}

enum { CUTS = 40 };

static void check(const hn_vocab *v, const hn_reply_format *f, const char *prompt, const char *script, const char *want)
{
    static char got[16384];
    for (seed = 0; seed < CUTS; seed++) {
        uint32_t s = seed;
        read_script(got, v, f, prompt, NULL, NULL, 0, script, s > 0);
        seed = s;
        if (strcmp(got, want) != 0)
            fail_msg("behind \"%s\", script \"%s\", cut %u:\n got %s\nwant %s", prompt, script, s, got, want);
    }
}

/* ---- templates as models have them, shortened -------------------------------------------------------------- */

#define EACH "{% for m in messages %}"
#define DONE "{% endfor %}{% if add_generation_prompt %}"

static const char qwen[] = EACH
    "<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}<|im_end|>\n" DONE "<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}";
static const char chatml[] =
    EACH "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n" DONE "<|im_start|>assistant\n{% endif %}";
static const char musing[] =
    EACH "<|{{ m.role }}|>{% if m.thinking %}<|begin_of_musing|>{{ m.thinking }}<|end_of_musing|>{% endif %}"
         "{{ m.content }}</s>" DONE "<|assistant|>{% endif %}";
static const char harmony[] = EACH
    "<|start|>{{ m.role }}{% if m.role == 'assistant' %}{% if m.thinking %}<|channel|>analysis<|message|>"
    "{{ m.thinking }}<|end|><|start|>assistant{% endif %}<|channel|>final{% endif %}<|message|>{{ m.content }}"
    "{{ '<|return|>' if loop.last and m.role == 'assistant' else '<|end|>' }}" DONE "<|start|>assistant{% endif %}";
static const char muse[] = EACH
    "{% if m.role == 'assistant' %}{% if m.reasoning_content %}<|start|>assistant to=self<|message|>"
    "{{ m.reasoning_content }}<|eom|>{% endif %}<|start|>assistant to=user<|message|>{{ m.content }}<|eot|>{% else %}"
    "<|start|>{{ m.role }}<|message|>{{ m.content }}<|eot|>{% endif %}" DONE "<|start|>assistant{% endif %}";
static const char gemma[] =
    EACH "<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n" DONE
         "<|turn>model\n{% if not enable_thinking %}<|channel>thought\n<channel|>{% endif %}{% endif %}";
static const char ministral[] = EACH
    "{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for b in m.content %}{% if b.type == 'text' %}{{ b.text }}{% else %}[THINK]{{ b.thinking }}[/THINK]"
    "{% endif %}{% endfor %}{% endif %}</s>{% endif %}{% endfor %}";
static const char granite[] = "{{ 'Write <think></think>, then <response></response>.' }}" EACH
                              "<|start_of_role|>{{ m.role }}<|end_of_role|>{{ m.content }}<|end_of_text|>\n" DONE
                              "<|start_of_role|>assistant<|end_of_role|>{% endif %}";
static const char solar[] =
    EACH "<|begin|>{{ m.role }}<|content|>{{ m.content }}<|end|>" DONE "<|begin|>assistant{% endif %}{# <|think|> #}";
static const char rwkv[] = EACH "{{ m.role | capitalize }}: {{ m.content }}\n\n" DONE "Assistant: <think>{% endif %}";

static const char functionary[] = EACH "<|{{ m.role }}|>{% if m.role == 'assistant' %}>>>all\n{% endif %}"
                                       "{{ m.content }}<|end|>" DONE "<|assistant|>>>>{% endif %}";

static void test_tags(void **state)
{
    hn_vocab *none = vocabulary(NULL, NULL),
             *user = vocabulary(LIST("<|im_start|>", "<|im_end|>"), LIST("<think>", "</think>")),
             *ctrl = vocabulary(LIST("<|im_start|>", "<|im_end|>", "<think>", "</think>"), NULL);
    const hn_vocab *const all[] = { none, user, ctrl };
    for (size_t k = 0; k < 3; k++) {
        format m = make_format(qwen, NULL, all[k]);
        assert_true(m.f.derived);
        check(all[k], &m.f, "", "hello", "{T}hello");
        check(all[k], &m.f, "", "<think>\nso\n so\n</think>\n\nyes\n<|im_end|>more",
              k ? "{R}so\n so{T}yes\n." : "{R}so\n so{T}yes\n.");
        check(all[k], &m.f, "", " \n<think>\xC3\xA9</think>\xF0\x9F\x98\x80 x", "{R}\xC3\xA9{T}\xF0\x9F\x98\x80 x");
        check(all[k], &m.f, "", "<think>\n\n</think>\n\nyes<|im_end|>", "{T}yes.");
        check(all[k], &m.f, "a<|im_start|>assistant\n<think>\n", "so\n</think>yes", "{R}so{T}yes");
        check(all[k], &m.f, "<think>\n\n</think>\n\n", "yes", "{T}yes");
        check(all[k], &m.f, "", "<think>never closed \n", "{R}never closed");
        check(all[k], &m.f, "", "  indented", "{T}  indented");
        check(all[k], &m.f, "", "\n\n", "{T}\n\n");
        check(all[k], &m.f, "", "", "");
        check(all[k], &m.f, "", "<think>a</think><think>b</think>c", "{R}ab{T}c");
        check(all[k], &m.f, "", "<think>a</thin</think>b", "{R}a</thin{T}b");
        check(all[k], &m.f, "", "<<think>x</think>", k == 2 ? "{T}<{R}x" : "{T}<<think>x</think>");
        /* in the middle of an answer a tag is what it is about, unless it has no text */
        check(all[k], &m.f, "", "the <think> tag", k == 2 ? "{T}the {R}tag" : "{T}the <think> tag");
        check(all[k], &m.f, "", "the </think> tag", k == 2 ? "{T}the  tag" : "{T}the </think> tag");
        check(all[k], &m.f, "", "if a<b and <th and <think", "{T}if a<b and <th and <think");
        check(all[k], &m.f, "", "<thin", "{T}<thin");
        /* spelt in other tokens it is text where the vocabulary has the token */
        check(all[k], &m.f, "", "\2<think>a", k ? "{T}<think>a" : "{R}a");
        check(all[k], &m.f, "", "<think>a\2</think>b</think>c", k ? "{R}a</think>b{T}c" : "{R}a{T}b</think>c");
        free_format(&m);
    }
    format m = make_format(chatml, NULL, none);
    assert_false(m.f.derived);
    check(none, &m.f, "", "<think>so</think>yes", "{R}so{T}yes");
    check(none, &m.f, "", "<thinking>so</thinking>yes", "{T}<thinking>so</thinking>yes");
    check(none, &m.f, "", "yes<|im_e", "{T}yes<|im_e");
    check(none, &m.f, "", "yes<|im_end|>no", "{T}yes.");
    free_format(&m);
    hn_vocab_free(none), hn_vocab_free(user), hn_vocab_free(ctrl);
}

/* Tags nobody has heard of. */
static void test_derived(void **state)
{
    hn_vocab *none = vocabulary(NULL, NULL),
             *ctrl = vocabulary(LIST("<|begin_of_musing|>", "<|end_of_musing|>", "</s>"), NULL);
    const hn_vocab *const all[] = { none, ctrl };
    for (size_t k = 0; k < 2; k++) {
        format m = make_format(musing, NULL, all[k]);
        assert_true(m.f.derived);
        assert_int_equal(m.f.end_id >= 0, k == 1);
        check(all[k], &m.f, "", "<|begin_of_musing|>a b<|end_of_musing|>c</s>", "{R}a b{T}c.");
        free_format(&m);
    }
    /* what stands in front of reasoning that is printed bare is no tag of it */
    format m = make_format(EACH "<|{{ m.role }}|>{{ m.reasoning_content }}<sep>{{ m.content }}</s>" DONE
                                "<|assistant|>{% endif %}",
                           NULL, none);
    assert_false(m.f.derived);
    check(none, &m.f, "<|assistant|>", "a<sep>b", "{T}a<sep>b");
    free_format(&m);
    hn_vocab_free(none), hn_vocab_free(ctrl);
}

static void test_harmony(void **state)
{
    hn_vocab *v = vocabulary(
        LIST("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>"), NULL);
    format m = make_format(harmony, NULL, v);
    assert_string_equal(m.f.kind, "harmony");
    const char *p = "<|start|>user<|message|>hi<|end|><|start|>assistant";
    check(v, &m.f, p,
          "<|channel|>analysis<|message|>We think.\n<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
          "{R}We think.{T}Yes..");
    check(v, &m.f, p, "<|channel|>final<|message|> Yes<|end|>rest", "{T} Yes.");
    check(v, &m.f, p, "<|message|>bare<|return|>", "{T}bare.");
    check(v, &m.f, p,
          "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.f "
          "<|constrain|>json<|message|>{\"a\": 1}<|call|>",
          "{C}I look.{F}{\"a\": 1}.");
    check(v, &m.f, p,
          "<|channel|>analysis<|message|>a<|end|><|start|>assistant to=functions.f<|channel|>commentary "
          "json<|message|>{}<|call|>",
          "{R}a{F}{}.");
    /* what it says to itself is no call; the channel behind that counts */
    check(v, &m.f, p,
          "<|channel|>commentary to=assistant<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>"
          "commentary to=assistant<|channel|>final<|message|>yes<|end|>",
          "{R}so{T}yes.");
    check(v, &m.f, p, "<|channel|>commentary to=assistant<|message|>I look.<|end|>", "{C}I look.");
    check(v, &m.f, p, "<|channel|>analysis<|message|>cut", "{R}cut");
    check(v, &m.f, p, "<|channel|>analysis<|message|>a<|end|><|start|>assis", "{R}a");
    check(v, &m.f, p, "<|channel|>ana", "");
    check(v, &m.f, p, "<|channel|>final<|message|>a<|end|><|start|>user<|message|>me", "{T}a.");
    check(v, &m.f, p, "<|channel|>analysis<|message|>a<|end|><|start|>user<|message|>me", "{R}a.");
    check(v, &m.f, p, "no marks at all", "{T}no marks at all");
    check(v, &m.f, p, "<|channel|>final<|message|>the \2<|end|> token", "{T}the <|end|> token");
    check(v, &m.f, "<|start|>assistant<|channel|>analysis<|message|>", "a<|end|>", "{R}a");
    char plain[1200], want[1300];
    memset(plain, 'x', sizeof plain - 1);
    plain[sizeof plain - 1] = 0;
    snprintf(want, sizeof want, "{T}%s", plain);
    check(v, &m.f, p, plain, want); /* longer than any header */
    free_format(&m);
    hn_vocab_free(v);
}

static void test_recipient(void **state)
{
    hn_vocab *v = vocabulary(LIST("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"), NULL);
    format m = make_format(muse, NULL, v);
    assert_string_equal(m.f.kind, "recipient");
    const char *p = "<|start|>user<|message|>hi<|eot|><|start|>assistant";
    check(v, &m.f, p, " to=self<|message|>We think.\n<|eom|><|start|>assistant to=user<|message|>Yes.<|eot|>",
          "{R}We think.{T}Yes..");
    check(v, &m.f, p, " to=user<|message|> Yes<|eot|>rest", "{T} Yes.");
    check(v, &m.f, p, "<|message|>bare<|eot|>", "{T}bare.");
    /* more than one message of an answer */
    check(v, &m.f, p,
          " to=user<|message|>I look.<|eom|><|start|>assistant to=self<|message|>so<|eom|><|start|>assistant "
          "to=user<|message|>yes<|eot|>",
          "{T}I look.{R}so{T}yes.");
    check(v, &m.f, p, " to=self<|message|>cut", "{R}cut");
    check(v, &m.f, p, " to=self<|message|>a<|eom|><|start|>assis", "{R}a");
    check(v, &m.f, p, " to=se", "{T} to=se"); /* no mark came */
    check(v, &m.f, p, " to=user<|message|>a<|eom|><|start|>user<|message|>me", "{T}a.");
    check(v, &m.f, p, " to=user<|message|>the \2<|eot|> token", "{T}the <|eot|> token");
    check(v, &m.f, "<|start|>assistant to=self<|message|>", "a<|eom|>", "{R}a");
    free_format(&m);
    hn_vocab_free(v);
}

static void test_gemma4(void **state)
{
    hn_vocab *v = vocabulary(
        LIST("<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>"),
        NULL);
    format m = make_format(gemma, NULL, v);
    assert_string_equal(m.f.kind, "channel");
    check(v, &m.f, "<|turn>model\n", "<|channel>thought\nso\nso\n<channel|>yes<turn|>", "{R}so\nso{T}yes.");
    check(v, &m.f, "<|turn>model\n", "<|channel>thought\n<channel|>yes<turn|>", "{T}yes.");
    check(v, &m.f, "<|turn>model\n", "<|channel>thought<channel|>yes", "{T}yes");
    check(v, &m.f, "<|turn>model\n", "<|channel>so <channel|><|channel> thoughtful<channel|>yes",
          "{R}sothoughtful{T}yes");
    check(v, &m.f, "<|turn>model\n<|channel>thought\n<channel|>", "yes<turn|>", "{T}yes.");
    check(v, &m.f, "<|turn>model\n", "yes", "{T}yes");
    check(v, &m.f, "<|turn>model\n",
          "<|channel>thought\ncall it<channel|><|tool_call>call:f{a:1}<tool_call|><|tool_response>",
          "{R}call it{F}call:f{a:1}.");
    check(v, &m.f, "<|turn>model\n", "<|channel>thought\na \2<channel|> b", "{R}a <channel|> b");
    free_format(&m);
    hn_vocab_free(v);
}

static void test_others(void **state)
{
    hn_vocab *none = vocabulary(NULL, NULL), *v;
    format m = make_format(ministral, NULL, none);
    assert_true(m.f.derived);
    check(none, &m.f, "[INST]x[/INST]", "[THINK]a[/THINK]b</s>c", "{R}a{T}b.");
    free_format(&m);
    m = make_format(granite, NULL, none);
    check(none, &m.f, "", "<think>a</think><response>b</response>", "{R}a{T}b");
    check(none, &m.f, "", "plain </response> tag", "{T}plain </response> tag");
    check(none, &m.f, "", "<answer>b</answer>", "{T}<answer>b</answer>");
    free_format(&m);
    m = make_format("{{ 'thoughts after Here is my thought process: and Here is my response: then' }}" EACH
                    "{{ m.content }}" DONE "{% endif %}",
                    NULL, none);
    check(none, &m.f, "", "Here is my thought process: a\n\nHere is my response: b", "{R}a{T}b");
    check(none, &m.f, "", "b. Here is my response: c", "{T}b. Here is my response: c");
    free_format(&m);
    m = make_format(EACH "{{ m.content }}<|extra_{{ 4 if m.role == 'system' else 0 }}|>" DONE "{% endif %}"
                         "{# <|extra_0|> <|extra_4|> #}",
                    NULL, none);
    check(none, &m.f, "", "<think>\na\n</think>\n<answer>\nb </answers> c\n</answer>", "{R}a{T}b </answers> c");
    check(none, &m.f, "", "the <answer> tag", "{T}the <answer> tag");
    free_format(&m);
    v = vocabulary(LIST("<|begin|>", "<|think|>", "<|content|>", "<|end|>", "<|tool_calls|>", "<|calls|>", "<|flush|>"),
                   NULL);
    m = make_format(solar, NULL, v);
    check(v, &m.f, "<|begin|>user<|content|>hi<|end|><|begin|>assistant",
          "<|think|>a<|end|><|begin|>assistant<|content|>b<|end|>", "{R}a{T}b.");
    check(v, &m.f, "<|begin|>assistant", "<|tool_calls|>f<|calls|>", "{F}f.");
    free_format(&m);
    hn_vocab_free(v);
    m = make_format(functionary, NULL, none); /* to whom an answer is, stands in front of it */
    check(none, &m.f, "<|user|>hi<|assistant|>>>>", "all\nyes, all\nof it", "{T}yes, all\nof it");
    check(none, &m.f, "<|user|>hi<|assistant|>>>>all\n", "yes", "{T}yes");
    check(none, &m.f, "<|user|>hi<|assistant|>>>>", "alloy", "{T}alloy");
    free_format(&m);
    m = make_format(rwkv, NULL, none);
    check(none, &m.f, "User: hi\n\nAssistant: <think>", "a</think>b c\n\nUser: d", "{R}a{T}b c.");
    check(none, &m.f, "User: hi\n\nAssistant: <think>", "a</think>b\n\nUs", "{R}a{T}b\n\nUs");
    free_format(&m);
    v = vocabulary(LIST("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>",
                        "<|END_OF_TURN_TOKEN|>"),
                   NULL);
    m = make_format(
        EACH "{% if m.role == 'user' %}{{ m.content }}{% else %}<|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>"
             "<|END_OF_TURN_TOKEN|>{% endif %}{% endfor %}",
        NULL, v);
    check(v, &m.f, "", "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|><|END_OF_TURN_TOKEN|>",
          "{R}a{T}b.");
    free_format(&m);
    hn_vocab_free(v), hn_vocab_free(none);
}

/* Somebody who types a mark opens nothing; a stop string is told from the end of a turn. */
static void test_input(void **state)
{
    hn_vocab *none = vocabulary(NULL, NULL);
    format m = make_format(chatml, NULL, none);
    const char *prompt = "user: say <think>", *stop = "STOP", *line = "\n\n";
    char got[256];
    read_script(got, none, &m.f, prompt, &(hone_span){ 6, strlen(prompt) }, NULL, 0, "yes", false);
    assert_string_equal(got, "{T}yes");
    for (seed = 0; seed < CUTS;) {
        uint32_t s = seed;
        read_script(got, none, &m.f, "", NULL, &stop, 1, "<think>a</think>b STOP c", true);
        assert_string_equal(got, "{R}a{T}b !");
        read_script(got, none, &m.f, "", NULL, &stop, 1, "<think>a STOP b ST</think>OP c STSTOP d", true);
        assert_string_equal(got, "{R}a STOP b ST{T}OP c ST!"); /* reasoning does not end an answer */
        read_script(got, none, &m.f, "", NULL, &line, 1, "<think>a\n\nb</think>\n\nc\n\nd", true);
        assert_string_equal(got, "{R}a\n\nb{T}c!"); /* nor what stands between it and the answer */
        read_script(got, none, &m.f, "", NULL, &stop, 1, "b STO", true);
        assert_string_equal(got, "{T}b STO");
        read_script(got, none, &m.f, "", NULL, &stop, 1, "b<|im_end|>", true);
        assert_string_equal(got, "{T}b.");
        seed = s + 1;
    }
    free_format(&m);
    hn_vocab_free(none);
}

/* ---- which tokens a text came from -------------------------------------------------------------------------- */

enum { MOST_TOKENS = 2048 };

typedef struct traced {
    size_t end[MOST_TOKENS]; /* of each token: where it ends in the script */
    bool named[MOST_TOKENS]; /* a part of the answer's text named it */
    int32_t n, next;
    char text[MOST_TOKENS], joined[MOST_TOKENS]; /* the answer; what the tokens spell that were named for it */
} traced;

static void name(traced *t, const hn_vocab *v, const int32_t *id, const hone_reply_part *p, size_t n, int32_t settled)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i].part == HONE_PART_REASONING || p[i].part > HONE_PART_CALL) {
            assert_int_equal(p[i].n_tokens, 0);
            continue;
        }
        strncat(t->text, p[i].text, p[i].len);
        for (size_t k = 0; k < p[i].n_tokens; k++) {
            size_t len;
            int32_t at = p[i].tokens[k];
            if (at < settled || at >= t->n) fail_msg("token %d is named, %d were settled, %d came", at, settled, t->n);
            assert_true(at >= t->next); /* each once, in order */
            t->next = at + 1;
            t->named[at] = true;
            const char *piece = hn_vocab_piece(v, id[at], true, &len);
            strncat(t->joined, piece, len);
        }
    }
}

static void trace(traced *t, const hn_vocab *v, const hn_reply_setup *setup, const char *script, bool cut)
{
    hn_reply *r;
    hone_error e = { 0 };
    const hone_reply_part *p;
    const char *s = script, *spelt = s;
    size_t n;
    int32_t id[MOST_TOKENS], settled = 0;
    hone_reply_end end = HONE_REPLY_GOES_ON;
    *t = (traced){ .n = 0 };
    if (hn_reply_open(&r, setup, &e) != HONE_OK) fail_msg("%s", e.message);
    while (*s && !end) {
        id[t->n] = next_token(v, &s, &spelt, cut);
        t->end[t->n] = (size_t)(s - script);
        assert_int_equal(hn_reply_push(r, id[t->n++], &p, &n, &end, &e), HONE_OK);
        name(t, v, id, p, n, settled);
        int32_t now = hn_reply_settled(r);
        assert_true(now >= settled && now <= t->n);
        settled = now;
    }
    assert_int_equal(hn_reply_flush(r, &p, &n, &e), HONE_OK);
    name(t, v, id, p, n, settled);
    assert_int_equal(hn_reply_settled(r), t->n);
    hn_reply_free(r);
}

/* Cut into bytes, the tokens that are named spell the text (exact); and whatever the cutting, those are named that hold
 * such a byte. */
static void check_tokens(const hn_vocab *v, hn_reply_setup setup, const char *script, bool exact)
{
    static traced bytes, cut;
    setup.v = v;
    setup.len = strlen(setup.prompt);
    setup.reasoning_budget = -1;
    trace(&bytes, v, &setup, script, false);
    if (exact && strcmp(bytes.text, bytes.joined) != 0)
        fail_msg("script \"%s\": the text is\n%s\nand its tokens spell\n%s", script, bytes.text, bytes.joined);
    for (uint32_t s = 1; s < 12; s++) {
        uint32_t own = seed;
        seed = s;
        trace(&cut, v, &setup, script, true);
        seed = own;
        assert_string_equal(cut.text, bytes.text);
        for (int32_t i = 0, k = 0; i < cut.n; i++) {
            bool has = false;
            for (; k < bytes.n && bytes.end[k] <= cut.end[i]; k++) has |= bytes.named[k];
            if (cut.named[i] != has)
                fail_msg("script \"%s\", cut %u: token %d, up to byte %zu, %s", script, s, i, cut.end[i],
                         has ? "has text and is not named" : "has none and is named");
        }
    }
}

static const char offered[] = "[{\"name\":\"look\",\"parameters\":{\"type\":\"object\"}}]";

static void test_tokens(void **state)
{
    static const char hermes[] = EACH
        "<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": \"{{ "
        "c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}"
        "<|im_end|>\n" DONE "<|im_start|>assistant\n{% endif %}{% if tools %}{% endif %}";
    hn_vocab *none = vocabulary(NULL, NULL),
             *ctrl = vocabulary(
                 LIST("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"), NULL),
             *gpt = vocabulary(
                 LIST("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>"),
                 NULL);
    const char *const stops[] = { "STOP", "ly x" };
    format m;
    for (int k = 0; k < 2; k++) {
        const hn_vocab *v = k ? ctrl : none;
        m = make_format(qwen, NULL, v);
        hn_reply_setup x = { .f = &m.f, .prompt = "" }, stopped = x, raw = x, begun = x;
        stopped.stops = stops, stopped.n_stops = 2;
        raw.marks_as_text = true;
        begun.prompt = "a<|im_start|>assistant\n<think>\n";
        check_tokens(v, x, "<think>\nso\n so\n</think>\n\nyes\n\nan\n<|im_end|>more", true);
        check_tokens(v, x, "<think>\xC3\xA9</think>\xF0\x9F\x98\x80 x \xC3\xA9", true);
        check_tokens(v, x, "if a<b and <th and <think", true);
        check_tokens(v, x, "\n\n and </thin", true);
        check_tokens(v, begun, "so\n</think>\n\nyes", true);
        check_tokens(v, stopped, "<think>a STOP</think>\n\nonly y, ST or an STOP b", true);
        check_tokens(v, raw, "\n<think>\nso\n</think>\n\nyes", true);
        free_format(&m);
    }
    m = make_format(harmony, NULL, gpt);
    hn_reply_setup h = { .f = &m.f, .prompt = "<|start|>user<|message|>hi<|end|><|start|>assistant" };
    check_tokens(gpt, h,
                 "<|channel|>analysis<|message|>We think.\n<|end|><|start|>assistant<|channel|>commentary<|message|>I "
                 "look.<|end|><|start|>assistant<|channel|>final<|message|> Yes.<|return|>",
                 true);
    check_tokens(gpt, h, "no marks at all", true);
    check_tokens(gpt, h, "<|channel|>commentary to=functions.f<|message|>{\"a\": 1}<|call|>", true);
    free_format(&m);

    /* what looked like a call, and a call with text around it */
    for (int k = 0; k < 2; k++) {
        const hn_vocab *v = k ? ctrl : none;
        hn_call_format calls;
        hn_call_kit *kit;
        hone_error e = { 0 };
        json_t *tools = json_loads(offered, 0, NULL);
        m = make_format(hermes, NULL, v);
        assert_int_equal(hn_call_format_make(&calls, m.t, (hone_str){ hermes, strlen(hermes) }, &m.c, &e), HONE_OK);
        assert_int_equal(calls.shape, HN_CALLS_JSON);
        if (hn_call_kit_new(&kit, &calls, v, &(hn_call_ask){ .tools = tools, .bare = true }, &e) != HONE_OK)
            fail_msg("%s", e.message);
        hn_reply_setup x = { .f = &m.f, .prompt = "", .kit = kit };
        check_tokens(v, x, "an <tool_call>\n{\"name\": \"nobody\", \"arguments\": {}}\n</tool_call> x", true);
        check_tokens(v, x, "an<tool_call>\n{\"name\": \"look\", \"arguments\": {\"a\": 1}}\n</tool_call>\nx y", true);
        check_tokens(v, x, "an<tool_call>\n{\"name\": \"look\", \"argum", true);
        hn_call_kit_drop(kit);
        json_decref(tools);
        free_format(&m);
    }
    hn_vocab_free(none), hn_vocab_free(ctrl), hn_vocab_free(gpt);
}

/* Any text at all: no cutting changes the parts, and nothing but marks and the blanks at the edges of parts is lost. */
static void test_any_text(void **state)
{
    static const char *const bits[] = {
        "<think>", "</think>", "\2<think>", "\2</think>", "<|channel|>", "<|message|>", "<|end|>",  "<|start|>",
        "final",   "analysis", "assistant", "\n",         " ",           "a",           "\xC3\xA9", "\xF0\x9F\x98\x80",
        "\xC3",    "<",        "</",        "<|",         "<response>",  "</response>", "[THINK]",  "[/THINK]",
        "to=f",    "|>",       "ink>"
    };
    hn_vocab *v = vocabulary(LIST("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>"),
                             LIST("<think>", "</think>")),
             *none = vocabulary(NULL, NULL);
    format f[] = {
        make_format(qwen, NULL, v),    make_format(harmony, NULL, v),    make_format(granite, NULL, v),
        make_format(qwen, NULL, none), make_format(harmony, NULL, none), make_format(ministral, NULL, none)
    };
    for (uint32_t round = 0; round < 600; round++) {
        char script[400] = "", a[4096], b[4096];
        seed = round * 2654435761u;
        for (uint32_t k = pick(14); k > 0; k--) strcat(script, bits[pick(sizeof bits / sizeof *bits)]);
        for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
            const hn_vocab *w = i < 3 ? v : none;
            read_script(a, w, &f[i].f, "", NULL, NULL, 0, script, false);
            for (int k = 0; k < 3; k++) {
                read_script(b, w, &f[i].f, "", NULL, NULL, 0, script, true);
                if (strcmp(a, b) != 0) fail_msg("format %zu, \"%s\":\n%s\n%s", i, script, a, b);
            }
            check_tokens(w, (hn_reply_setup){ .f = &f[i].f, .prompt = "" }, script, false);
        }
    }
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) free_format(&f[i]);
    hn_vocab_free(v), hn_vocab_free(none);
}

/* ---- switches ---------------------------------------------------------------------------------------------- */

static void think(const char *source, const char *how, const char *want, const char *why)
{
    format m = make_format(source, "{\"x\": 1}", NULL);
    hone_error e = { 0 };
    json_t *o;
    hone_status st = hn_reply_think(&o, m.t, &m.c, how, &e);
    if (want) {
        if (st != HONE_OK) fail_msg("%s: %s", how, e.message);
        json_t *w = json_loads(want, 0, NULL);
        assert_true(json_equal(o, w));
        json_decref(w);
    } else if (st != HONE_E_ARG || o || !strstr(e.message, why)) {
        fail_msg("%s: %s, expected %s", how, e.message, why);
    }
    json_decref(o);
    free_format(&m);
}

static void test_think(void **state)
{
    static const char effort[] = "{% if reasoning_effort not in ['low', 'high'] %}{{ raise_exception('low or high') }}"
                                 "{% endif %}Reasoning: {{ reasoning_effort }}";
    think(qwen, "off", "{\"x\": 1, \"enable_thinking\": false}", NULL);
    think(qwen, "on", "{\"x\": 1, \"enable_thinking\": true}", NULL);
    think(qwen, "low", NULL, "it takes on and off");
    think(effort, "high", "{\"x\": 1, \"reasoning_effort\": \"high\"}", NULL);
    think(effort, "off", NULL, "it takes low, high");
    think(effort, "medium", "{\"x\": 1, \"reasoning_effort\": \"high\"}", NULL);
    think(effort, "minimal", "{\"x\": 1, \"reasoning_effort\": \"low\"}", NULL);
    think(effort, "on", "{\"x\": 1, \"reasoning_effort\": \"high\"}", NULL);
    /* efforts of which one ends reasoning before it begins: Hy3's, Solar's; Mistral's says so by its name */
    static const char hy[] = "{% if reasoning_effort not in ['low', 'high', 'no_think'] %}{{ raise_exception('no') }}"
                             "{% endif %}a<think:x>{% if reasoning_effort == 'no_think' %}</think:x>{% endif %}",
                      ends[] = "{% if reasoning_effort in ['low', 'minimal'] %}<|begin|>a<|think|><|end|>{% endif %}"
                               "<|begin|>a",
                      mistral[] =
                          "{% if reasoning_effort not in ['none', 'high'] %}{{ raise_exception('no') }}{% endif %}"
                          "{{ reasoning_effort }}[/INST]",
                      any[] = "Reasoning: {{ reasoning_effort }}";
    static const char *const rows[][3] = {
        { hy, "on", "high" },         { hy, "off", "no_think" },  { hy, "none", "no_think" },
        { hy, "max", "high" },        { hy, "medium", "high" },   { hy, "minimal", "low" },
        { ends, "on", "high" },       { ends, "off", "minimal" }, { ends, "low", "low" },
        { ends, "medium", "medium" }, { mistral, "on", "high" },  { mistral, "off", "none" },
        { mistral, "low", "high" },   { any, "none", "none" },    { any, "max", "max" },
        { any, "xhigh", "high" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[80];
        snprintf(want, sizeof want, "{\"x\": 1, \"reasoning_effort\": \"%s\"}", rows[i][2]);
        think(rows[i][0], rows[i][1], want, NULL);
    }
    think(any, "off", NULL, "it takes low, medium and high");
    think(any, "on", NULL, "it takes low, medium and high");
    think(chatml, "off", NULL, "no switch for reasoning");
    think(qwen, "maybe", NULL, "expected on, off");
    think("{{ 'budget' if thinking_budget is defined and thinking_budget == 0 }}", "off",
          "{\"x\": 1, \"thinking_budget\": 0}", NULL);
    think(harmony, "on", NULL, "no switch"); /* which says m.thinking, and means another thing */
}

/* ---- what a template writes is read back ------------------------------------------------------------------- */

static json_t *turns(hn_chat_reasoning shape, bool answered)
{
    json_t *m = hn_chat_reasoning_probe(shape, "We thought <b>.\n\nTwice.", "An answer, \xC3\xA9.");
    if (!answered) json_array_remove(m, 1);
    return m;
}

/* source's own rendering of an answer, as the model continues its prompt. False: it shows no reasoning. */
static bool reads_back(const char *name, const char *source, const char *variables, const hn_vocab *v)
{
    static const char want[] = "{R}We thought <b>.\n\nTwice.{T}An answer, \xC3\xA9.";
    format m = make_format(source, variables, v);
    bool shown = false;
    for (int shape = HN_CHAT_REASONING_CONTENT; shape < HN_CHAT_N_REASONING; shape++) {
        hn_jinja_text prompt = { 0 }, all = { 0 };
        json_t *asked = turns((hn_chat_reasoning)shape, false), *full = turns((hn_chat_reasoning)shape, true);
        if (hn_chat_render_as_is(m.t, &m.c, asked, false, true, &prompt, NULL) == HONE_OK &&
            hn_chat_render_as_is(m.t, &m.c, full, false, false, &all, NULL) == HONE_OK &&
            strstr(all.text, "We thought") && !strstr(all.text, "thinking'") && !strstr(all.text, "thinking\"") &&
            strncmp(prompt.text, all.text, prompt.len) == 0) {
            char got[4096];
            shown = true;
            for (seed = 0; seed < 4;) {
                uint32_t s = seed;
                read_script(got, v, &m.f, prompt.text, NULL, NULL, 0, all.text + prompt.len, s > 0);
                if (strncmp(got, want, strlen(want)) == 0) {
                    seed = s + 1;
                    continue;
                }
                if (getenv("HONE_TEMPLATES")) printf("    not read back: %s\n", name), seed = 4;
                else fail_msg("%s: \"%s\" is read as %s", name, all.text + prompt.len, got);
            }
        }
        hn_jinja_text_free(&prompt);
        hn_jinja_text_free(&all);
        json_decref(asked);
        json_decref(full);
    }
    free_format(&m);
    return shown;
}

static void test_read_back(void **state)
{
    hn_vocab *v = vocabulary(LIST("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>",
                                  "<|im_end|>", "</s>", "<|im_start|>"),
                             NULL);
    assert_true(reads_back("qwen", qwen, NULL, v));
    assert_true(reads_back("harmony", harmony, NULL, v));
    assert_true(reads_back("musing", musing, NULL, v));
    assert_true(reads_back("ministral", ministral, NULL, v));
    hn_vocab_free(v);
    v = vocabulary(LIST("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"), NULL);
    assert_true(reads_back("muse", muse, NULL, v));
    hn_vocab_free(v);
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *s = f ? calloc(1, 1 << 20) : NULL;
    assert_non_null(s);
    assert_true(fread(s, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return s;
}

/* Reasoning of an earlier answer reaches the template in the shape it takes; where it takes none, no harm is done. */
static void history(const char *source, const char *want)
{
    format m = make_format(source, NULL, NULL);
    hone_error e = { 0 };
    hn_jinja_text out;
    m.c.messages = hn_chat_reasoning_probe(HN_CHAT_REASONING_CONTENT, "so", "yes");
    if (hn_chat_render(m.t, &m.c, &out, &e) != HONE_OK) fail_msg("%s", e.message);
    if (!strstr(out.text, want)) fail_msg("'%s' is not in '%s'", want, out.text);
    hn_jinja_text_free(&out);
    json_decref((json_t *)m.c.messages);
    free_format(&m);
}

static void test_history(void **state)
{
    history(qwen, "<think>\nso\n</think>\n\nyes<|im_end|>");
    history(harmony,
            "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>yes<|return|>");
    history(musing, "<|begin_of_musing|>so<|end_of_musing|>yes");
    history(ministral, "[/INST][THINK]so[/THINK]yes</s>");
    history(chatml, "<|im_start|>assistant\nyes<|im_end|>");
    history(gemma, "<|turn>assistant\nyes<turn|>");
}

/* Every template that shows reasoning, of those that models ship with. */
static void test_shipped(void **state)
{
    static const char *const known[] = { "ByteDance-Seed-OSS",
                                         "GLM-4.7-Flash",
                                         "Qwen-Qwen3-0.6B",
                                         "Reka-Edge",
                                         "mistralai-Ministral-3-14B-Reasoning-2512",
                                         "openai-gpt-oss-120b" };
    const char *folder = getenv("HONE_TEMPLATES") ? getenv("HONE_TEMPLATES") : "../shared/data/templates";
    DIR *d = opendir(folder);
    if (!d) {
        printf("SKIP: %s is not there\n", folder);
        skip();
    }
    hn_vocab *v = vocabulary(LIST("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>",
                                  "<|im_end|>", "</s>", "<|im_start|>", "<|user|>"),
                             LIST("<think>", "</think>"));
    size_t n_known = 0;
    for (struct dirent *x; (x = readdir(d));) {
        char path[512], *source;
        size_t len = strlen(x->d_name);
        if (len < 7 || strcmp(x->d_name + len - 6, ".jinja") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, x->d_name);
        source = read_file(path);
        bool shown = reads_back(x->d_name, source, "{\"enable_thinking\": true, \"thinking\": true}", v);
        if (shown) printf("    %s\n", x->d_name);
        for (size_t i = 0; shown && i < sizeof known / sizeof *known; i++)
            n_known += strlen(known[i]) == len - 6 && strncmp(known[i], x->d_name, len - 6) == 0;
        free(source);
    }
    closedir(d);
    assert_true(n_known == sizeof known / sizeof *known || getenv("HONE_TEMPLATES"));
    hn_vocab_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags),      cmocka_unit_test(test_derived), cmocka_unit_test(test_harmony),
        cmocka_unit_test(test_recipient), cmocka_unit_test(test_gemma4),  cmocka_unit_test(test_others),
        cmocka_unit_test(test_input),     cmocka_unit_test(test_think),   cmocka_unit_test(test_any_text),
        cmocka_unit_test(test_read_back), cmocka_unit_test(test_history), cmocka_unit_test(test_shipped),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
