/* Fuzzes the reading of answers: whatever tokens come, the parts are whole characters, hold no more than was said, and
 * are the same where each piece of several bytes comes byte by byte. Input: the format, what the prompt left open, then
 * one token a byte: special ones, pieces of marks and characters, single bytes.
 * With calls of tools: nothing is called that is not offered, and what is called ends with its turn. What a mask does
 * not allow is refused, and changes nothing; what it allows is taken.
 * covers: src/text/reply.c src/text/reply_format.c src/text/call_reader.c src/text/call_values.c src/text/stops.c
 * covers: src/text/reply_mask.c */
#include "../unit/gguf_bytes.h"
#include "must.h"
#include "text/reply.h"
#include "text/text_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pieces[] = { "{\"tool_calls\":",
                                      " [{\"name\": \"f\", \"arguments\": {",
                                      "}}]}",
                                      "<th",
                                      "ink>",
                                      "</",
                                      "think>\n",
                                      "\n\n",
                                      "[THI",
                                      "NK]",
                                      "a\xC3",
                                      "\xA9z",
                                      "\xF0\x9F",
                                      "\x98\x80",
                                      "<|",
                                      "channel|>",
                                      "analysis",
                                      "final",
                                      "to=f",
                                      "<resp",
                                      "onse>",
                                      "{\"name\": \"",
                                      "f\"",
                                      ", \"arguments\": ",
                                      "{\"k\": ",
                                      "}}",
                                      "<parameter=",
                                      "</parameter>",
                                      "<function=f>",
                                      "k>",
                                      "f(k=",
                                      "call:f{k:",
                                      "\\\"",
                                      "functions.f:0",
                                      "f(" };
static const char *const special[] = { "<|start|>",    "<|channel|>",   "<|message|>", "<|end|>",    "<|return|>",
                                       "<|call|>",     "<|constrain|>", "<|channel>",  "<channel|>", "<|tool_call>",
                                       "<tool_call|>", "</s>",          "<|begin|>",   "<|think|>",  "<|content|>",
                                       "[ARGS]",       "<|\"|>",        "<tcs>",       "<tce>",      "<think>",
                                       "</think>",     "<tool_call>",   "</tool_call>" };
enum {
    N_PIECES = sizeof pieces / sizeof *pieces,
    N_SPECIAL = sizeof special / sizeof *special,
    N_USER = 4,
    MAX_TOKENS = 300,
    PIECES = 256,
    SPECIAL = PIECES + N_PIECES
};

#define EACH "{% for m in messages %}"
static const char *const templates[] = {
    EACH "{{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}<think>{% endif %}",
    EACH "<|start|>{{ m.role }}<|channel|>final<|message|>{{ m.content }}<|end|>{% endfor %}",
    EACH "{{ m.content }}<|channel>thought\n<channel|>{% endfor %}",
    EACH "<|begin|>{{ m.role }}<|content|>{{ m.content }}<|end|>{% endfor %}{# <|think|> #}",
    EACH "[THINK]{{ m.reasoning_content }}[/THINK]{{ m.content }}\n\nUser: {% endfor %}",
    "<|start_of_role|> <think></think><response></response>" EACH "{{ m.content }}{% endfor %}",
#define CALLS(before, call, after)                                                                                \
    EACH "{{ m.content }}{% if m.tool_calls %}" before "{% for c in m.tool_calls %}{% set f = c.function %}" call \
         "{% endfor %}" after "{% endif %}</s>{% endfor %}"
    CALLS("", "<tool_call>{\"name\": {{ f.name | tojson }}, \"arguments\": {{ f.arguments | tojson }}}</tool_call>",
          ""),
    CALLS("", "[ARGS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}", ""),
    CALLS(
        "",
        "<tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}<parameter={{ k }}>\n{{ v if v is "
        "string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n</tool_call>",
        ""),
    CALLS(
        "",
        "<|tool_call>call:{{ f.name }}{{ '{' }}{% for k, v in f.arguments.items() %}{{ k }}:{% if v is string "
        "%}<|\"|>{{ v "
        "}}<|\"|>{% else %}{{ v | tojson }}{% endif %}{{ '' if loop.last else ',' }}{% endfor %}{{ '}' }}<tool_call|>",
        ""),
    CALLS("<tcs>[",
          "{{ '' if loop.first else ', ' }}{{ f.name }}({% for k, v in f.arguments.items() %}{{ k }}={{ v | tojson "
          "}}{{ '' "
          "if loop.last else ', ' }}{% endfor %})",
          "]<tce>"),
    CALLS("", "{\"name\": {{ f.name | tojson }}, \"parameters\": {{ f.arguments | tojson }}}", ""),
};
enum { N_TEMPLATES = sizeof templates / sizeof *templates };
static const char *const prompts[] = { "",
                                       "<think>\n",
                                       "<|start|>assistant",
                                       "<|channel>thought\n",
                                       "[THINK]",
                                       "<|start|>assistant<|channel|>analysis<|message|>" };

static hn_vocab *vocab;
static hn_reply_format formats[N_TEMPLATES];
static hn_call_kit *kits[N_TEMPLATES], *held[N_TEMPLATES]; /* held to their grammars */

static void make_vocab(void)
{
    bb b = bb_head(3, 0, 3);
    char s[128];
    uint64_t n = SPECIAL + N_SPECIAL;
    hn_gguf *g;
    hone_error e;
    bb_kv_str(&b, "tokenizer.ggml.model", "rwkv");
    bb_kv_array(&b, "tokenizer.ggml.tokens", 8, n);
    for (uint64_t i = 0; i < n; i++) {
        const char byte[2] = { (char)i, 0 }, *t = i < PIECES    ? byte
                                                  : i < SPECIAL ? pieces[i - PIECES]
                                                                : special[i - SPECIAL];
        size_t o = 0, len = i < PIECES ? 1 : strlen(t);
        for (size_t k = 0; k < len; k++) o += (size_t)sprintf(s + o, "\\x%02x", (unsigned)(unsigned char)t[k]);
        bb_strn(&b, s, o);
    }
    bb_kv_array(&b, "tokenizer.ggml.token_type", 5, n);
    for (uint64_t i = 0; i < n; i++) bb_raw(&b, &(int32_t){ i < SPECIAL ? 1 : i < n - N_USER ? 3 : 4 }, 4);
    FF_MUST(hn_gguf_parse(&g, b.p, b.n, "fuzz", &e) == HONE_OK && hn_vocab_new(&vocab, g, NULL, &e) == HONE_OK);
    hn_gguf_close(g);
    bb_free(&b);
    for (size_t i = 0; i < N_TEMPLATES; i++) {
        hn_jinja *t;
        hn_chat c = { .bos = "", .eos = "</s>" };
        hone_str source = { templates[i], strlen(templates[i]) };
        FF_MUST(hn_jinja_parse(&t, source.ptr, source.len, "fuzz", NULL, &e) == HONE_OK);
        FF_MUST(hn_reply_format_make(&formats[i], t, source, &c, vocab, &e) == HONE_OK);
        hn_call_format calls;
        json_t *tools = json_loads(
            "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"k\": {\"type\": \"string\"}}}}]", 0, NULL);
        hn_call_ask ask = { .tools = tools, .bare = true };
        FF_MUST(hn_call_format_make(&calls, t, source, &c, &e) == HONE_OK);
        FF_MUST(calls.shape != HN_CALLS_NONE && calls.own == (i != 1 && i < 6));
        FF_MUST(hn_call_kit_new(&kits[i], &calls, vocab, &ask, &e) == HONE_OK);
        ask.bare = false;
        FF_MUST(hn_call_kit_new(&held[i], &calls, vocab, &ask, &e) == HONE_OK);
        json_decref(tools);
        hn_jinja_free(t);
    }
}

typedef struct heard {
    char text[64 * MAX_TOKENS];
    size_t n;
    int last;
    bool calling;
    hone_reply_end end;
} heard;

static void hear(heard *h, const hone_reply_part *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t used;
        bool name = p[i].part == HONE_PART_CALL_NAME, end = p[i].part == HONE_PART_CALL_END;
        FF_MUST((p[i].len > 0) != end && h->n + p[i].len + 1 < sizeof h->text);
        FF_MUST(name == (p[i].id != NULL) && (!name || (p[i].len == 1 && *p[i].text == 'f')));
        FF_MUST(h->calling || !(end || p[i].part == HONE_PART_ARGUMENTS));
        if (name || end) h->calling = name;
        if (name || h->last != (int)p[i].part) h->text[h->n++] = (char)(1 + p[i].part);
        h->last = (int)p[i].part;
        for (size_t k = 0; k < p[i].len; k += used)
            FF_MUST(hn_utf8_next((const unsigned char *)p[i].text + k, p[i].len - k, &used) >= 0);
        memcpy(h->text + h->n, p[i].text, p[i].len);
        h->n += p[i].len;
    }
}

static void push(heard *h, hn_reply *r, int32_t id)
{
    const hone_reply_part *p;
    size_t n;
    hone_reply_end before = h->end;
    FF_MUST(hn_reply_push(r, id, &p, &n, &h->end, NULL) == HONE_OK);
    FF_MUST(!before || (n == 0 && h->end == before));
    hear(h, p, n);
}

static int32_t token_of(uint8_t byte)
{
    int32_t id = byte < 0x80 ? byte : 0x80 + byte % (SPECIAL + N_SPECIAL - 0x80);
    return byte >= 0x90 ? PIECES + (byte - 0x90) % (N_PIECES + N_SPECIAL) : id;
}

/* All of the tokens; bytes: pieces as their bytes. */
static void read_all(heard *h, const uint8_t *data, size_t size, bool bytes)
{
    hn_reply *r;
    const hone_reply_part *p;
    size_t n;
    const char *prompt = prompts[data[1] % (sizeof prompts / sizeof *prompts)];
    static const char *const stops[] = { "STOP", "\n\n", "\xC3\xA9z", "<th", "\n\n\n" };
    *h = (heard){ .last = -1 };
    size_t which = data[0] % N_TEMPLATES;
    hn_reply_setup x = { .v = vocab,
                         .f = &formats[which],
                         .prompt = prompt,
                         .len = strlen(prompt),
                         .stops = data[1] & 64 ? stops : &stops[0],
                         .n_stops = data[1] & 64 ? sizeof stops / sizeof *stops : 1,
                         .kit = data[1] & 128 && which < 6 ? NULL : kits[which],
                         .reasoning_budget = -1 };
    FF_MUST(hn_reply_open(&r, &x, NULL) == HONE_OK);
    for (size_t i = 2; i < size; i++) {
        int32_t id = token_of(data[i]);
        const char *s = id >= PIECES && id < SPECIAL ? pieces[id - PIECES] : NULL;
        for (; bytes && s && *s && !h->end; s++) push(h, r, (unsigned char)*s);
        if (!bytes || !s) push(h, r, id);
    }
    FF_MUST(hn_reply_flush(r, &p, &n, NULL) == HONE_OK);
    hear(h, p, n);
    hn_reply_free(r);
}

/* The same tokens, each of which may come or may not. */
static void masked(const uint8_t *data, size_t size)
{
    enum { WORDS = 8 };
    hn_reply *r;
    const hone_reply_part *p;
    hone_reply_end end = HONE_REPLY_GOES_ON;
    size_t n, which = data[0] % N_TEMPLATES;
    const char *prompt = prompts[data[1] % (sizeof prompts / sizeof *prompts)];
    hn_reply_setup x = { .v = vocab,
                         .f = &formats[which],
                         .prompt = prompt,
                         .len = strlen(prompt),
                         .kit = held[which],
                         .required = data[1] & 16,
                         .one_call = data[1] & 64,
                         .reasoning_budget = data[1] & 128 ? 3 : -1 };
    hone_error why = { 0 };
    FF_MUST(hn_vocab_size(vocab) <= 64 * WORDS);
    if (hn_reply_open(&r, &x, &why) != HONE_OK) {
        FF_MUST(x.required && *why.message); /* a template without calls */
        return;
    }
    for (size_t i = 2; i < size && !end; i++) {
        uint64_t mask[WORDS] = { 0 };
        bool all;
        int32_t id = token_of(data[i]);
        hone_error e = { 0 };
        if (hn_reply_mask(r, -1, mask, WORDS, &all, &e) != HONE_OK) break;
        bool allowed = all || mask[id / 64] >> id % 64 & 1;
        hone_status st = hn_reply_push(r, id, &p, &n, &end, &e);
        FF_MUST((st == HONE_OK) == allowed && (allowed || (st == HONE_E_ARG && *e.message)));
        for (int32_t k = 0; !allowed && k < 64 * WORDS; k++) /* another one, so that it goes on */
            if (mask[k / 64] >> k % 64 & 1) {
                FF_MUST(hn_reply_push(r, k, &p, &n, &end, &e) == HONE_OK);
                break;
            }
    }
    FF_MUST(hn_reply_flush(r, &p, &n, NULL) == HONE_OK);
    hn_reply_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static heard a, b;
    if (!vocab) make_vocab();
    if (size < 2) return 0;
    if (size > MAX_TOKENS) size = MAX_TOKENS;
    read_all(&a, data, size, false);
    read_all(&b, data, size, true);
    FF_MUST(a.n == b.n && memcmp(a.text, b.text, a.n) == 0 && a.end == b.end);
    if (data[1] & 32) masked(data, size);
    return 0;
}
