/* chat_prompt: the conversation as tokens. Owns the choice of template, what ends a turn,
 * and how much of a prompt the session holds already. */
#include "cli/chat/chat_state.h"

#include <stdlib.h>
#include <time.h>

typedef struct chat_format {
    char *source;         /* of --chat-template; NULL: the model's own */
    char *end;            /* text that ends an answer; NULL: the end tokens do */
    const char *stops[1]; /* end, as an array */
    int32_t end_id;       /* token that does, beside the model's own; -1: none */
    char now[24];         /* when the conversation began: a prompt that told each turn's time would never be reused */
} chat_format;

/* ---- messages for the template ------------------------------------------------------------------ */

static char *messages_json(const chat_talk *t)
{
    json_t *a = json_array();
    bool ok = a != NULL;
    for (size_t i = 0; ok && i < t->n; i++)
        ok = json_array_append_new(a, json_pack("{s:s,s:o}", "role", hn_chat_roles[t->msg[i].role], "content",
                                                hn_json_str(t->msg[i].text, t->msg[i].len))) == 0;
    char *s = ok ? hn_json_text(a, JSON_COMPACT) : NULL;
    json_decref(a);
    return s;
}

static hone_chat_params render_params(const chat *c, const char *messages, bool generation)
{
    return (hone_chat_params){ .messages = messages,
                               .chat_template = c->format->source,
                               .variables = hn_opts_str(c->cli->opts, "chat-vars"),
                               .now = *c->format->now ? c->format->now : NULL,
                               .add_generation_prompt = generation,
                               .trust_input = hn_opts_flag(c->cli->opts, "trust-input") };
}

/* ---- what ends a turn --------------------------------------------------------------------------- */

/* The template is asked: what stands behind an answer, and before the next message, ends it. */
#define MARK "hone-mark-1c7e"
enum { MAX_END = 48 };

static bool blank(char b) { return b == ' ' || b == '\n' || b == '\t' || b == '\r'; }

/* Text behind the mark in a conversation of n messages, up to the next mark; of lines that are not
 * blank the first. malloc'ed; NULL: none. */
static char *behind_mark(const chat *c, size_t n)
{
    static const char *const messages[] = {
        NULL, NULL, "[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":\"" MARK "\"}]",
        "[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":\"" MARK
        "\"},{\"role\":\"user\",\"content\":\"" MARK "\"}]"
    };
    hone_chat_text t;
    hone_chat_params p = render_params(c, messages[n], false);
    if (hone_chat_render(c->model, &p, &t, NULL) != HONE_OK) return NULL;
    char *at = strstr(t.text, MARK), *next = at ? strstr(at + 1, MARK) : NULL, *s = NULL;
    /* gpt-oss ends each part of an answer with what ends a message; the answer ends with a token of its own */
    if (at && !strstr(t.text, "<|channel|>")) {
        at += strlen(MARK);
        size_t len = next ? (size_t)(next - at) : strlen(at), begin = 0;
        while (begin < len && blank(at[begin])) begin++;
        const char *line = memchr(at + begin, '\n', len - begin);
        if (line) len = (size_t)(line - at);
        while (len && blank(at[len - 1])) len--;
        s = strndup(at, len);
    }
    hone_chat_text_free(&t);
    return s;
}

/* The first token of text, if it is one that has no text of its own in an answer; else -1. */
static int32_t control_token(const hone_model *m, const char *text)
{
    int32_t *ids, id = -1;
    size_t n, len, shown;
    if (hone_tokenize(m, text, strlen(text), HONE_TOK_SPECIAL, &ids, &n, NULL) != HONE_OK) return -1;
    for (size_t i = 0; i < n && i < 2 && id < 0; i++) { /* SentencePiece may put a space first */
        const char *piece = hone_token_piece(m, ids[i], true, &len);
        hone_token_piece(m, ids[i], false, &shown);
        if (piece && len && !shown && strncmp(text, piece, len) == 0) id = ids[i];
    }
    hone_free(ids);
    return id;
}

static void find_end(chat *c)
{
    chat_format *f = c->format;
    char *s = behind_mark(c, 2);
    size_t skip = 0;
    while (s && blank(s[skip])) skip++;
    if (!s || !s[skip]) { /* only blanks: how the next message begins tells more */
        free(s);
        s = behind_mark(c, 3);
        skip = 0;
        if (s && !s[strspn(s, " \n\t\r")]) *s = 0;
    }
    if (s && s[skip]) f->end_id = control_token(c->model, s + skip);
    if (s && s[skip] && f->end_id < 0 && strlen(s + skip) <= MAX_END) f->stops[0] = f->end = strdup(s + skip);
    free(s);
}

size_t hn_format_stops(const chat *c, const char *const **stops)
{
    *stops = c->format->stops;
    return c->format->end ? 1 : 0;
}

bool hn_format_is_end(const chat *c, int32_t id) { return id == c->format->end_id || hone_token_is_eog(c->model, id); }

int hn_format_open(chat *c)
{
    hone_error err;
    hone_chat_text t;
    const char *choice = hn_opts_str(c->cli->opts, "chat-template"), *adapters = NULL;
    chat_format *f = c->format = calloc(1, sizeof *f);
    int rc = 0;
    if (!f) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the chat template");
    f->end_id = -1;
    time_t t_now = time(NULL);
    struct tm tm;
    if (localtime_r(&t_now, &tm)) strftime(f->now, sizeof f->now, "%Y-%m-%dT%H:%M:%S", &tm);
    if (choice && choice[0] == '@') {
        size_t n;
        if (hn_read_all(choice + 1, &f->source, &n, &err) != HONE_OK) return hn_cli_fail(&err);
    } else if (choice || (rc = hn_cli_adapters_template(c->cli, c->model, &adapters)) || adapters) {
        if (rc) return rc;
        if (!(f->source = strdup(choice ? choice : adapters)))
            return hn_cli_error(HN_EXIT_NOMEM, "no memory for the chat template");
    }
    /* now, not after the first question: is there a template, and can it be rendered? */
    hone_chat_params p = render_params(c, "[{\"role\":\"user\",\"content\":\"x\"}]", true);
    if (hone_chat_render(c->model, &p, &t, &err) != HONE_OK) {
        int code = hn_cli_fail(&err);
        if (err.code == HONE_E_UNSUPPORTED && !choice)
            hn_err_printf("hone: try: --chat-template chatml, or hone run for models that only continue text\n");
        return choice && err.code == HONE_E_UNSUPPORTED ? HN_EXIT_FAILURE : code;
    }
    hone_chat_text_free(&t);
    find_end(c);
    return 0;
}

void hn_format_close(chat *c)
{
    if (!c->format) return;
    free(c->format->source);
    free(c->format->end);
    free(c->format);
}

/* ---- what the session holds already ---------------------------------------------------------------- */

/* The text of a token, for comparing; false: it has none that may be compared. */
static bool text_of(const chat *c, int32_t id, const char **piece, size_t *len)
{
    size_t shown;
    *piece = hone_token_piece(c->model, id, true, len);
    return *piece && *len && hone_token_piece(c->model, id, false, &shown) &&
           shown; /* a control token is more than its text */
}

/* How many ids of the session (*held) spell the same as how many of the prompt (returned).
 * Elsewhere they must be the same ids, but an answer counts by its text: the model may
 * have chosen other tokens for it than the tokenizer would. */
static int32_t common(const chat *c, const int32_t *ids, int32_t n, int32_t *held)
{
    int32_t i = 0, j = 0, same;
    for (;;) {
        *held = i;
        same = j; /* here both are between two tokens */
        if (i < c->n_ids && j < n && c->ids[i] == ids[j]) {
            i++;
            j++;
            continue;
        }
        const char *a = NULL, *b = NULL;
        size_t n_a = 0, n_b = 0; /* text not compared yet; of one of them at most */
        do {
            if (!n_a && (i == c->n_ids || !c->own[i] || !text_of(c, c->ids[i++], &a, &n_a))) return same;
            if (!n_b && (j == n || !text_of(c, ids[j++], &b, &n_b))) return same;
            size_t k = n_a < n_b ? n_a : n_b;
            if (memcmp(a, b, k) != 0) return same;
            a += k, b += k;
            n_a -= k, n_b -= k;
        } while (n_a || n_b);
    }
}

void hn_prompt_clear(chat_prompt *p)
{
    free(p->text);
    free(p->ids);
    free(p->own);
    *p = (chat_prompt){ 0 };
}

hone_status hn_prompt_make(chat *c, chat_prompt *out, hone_error *err)
{
    hone_chat_text t;
    int32_t *ids, held = 0;
    size_t n;
    *out = (chat_prompt){ 0 };
    char *messages = messages_json(&c->talk);
    if (!messages) return HN_FAIL(err, HONE_E_NOMEM, "no memory for %zu messages", c->talk.n);
    hone_chat_params p = render_params(c, messages, true);
    hone_status st = hone_chat_render(c->model, &p, &t, err);
    if (st != HONE_OK) {
        free(messages);
        return st;
    }
    out->len = t.len;
    out->text = malloc(t.len + 1);
    if (out->text) memcpy(out->text, t.text, t.len + 1);
    hone_chat_text_free(&t);
    st = hone_chat_tokenize(c->model, &p, &ids, &n, err);
    free(messages);
    if (st != HONE_OK) {
        hn_prompt_clear(out);
        return st;
    }
    if (n == 0 || n > INT32_MAX / 2) {
        hone_free(ids);
        hn_prompt_clear(out);
        return HN_FAIL(err, n ? HONE_E_CTX : HONE_E_ARG, "the conversation has %zu tokens; expected 1 to %d", n,
                       INT32_MAX / 2);
    }
    int32_t same = common(c, ids, (int32_t)n, &held), rest = (int32_t)n - same;
    out->n = held + rest;
    out->reused = rest ? held : held - 1; /* one token at least: its logits are wanted */
    out->ids = malloc((size_t)out->n * sizeof *out->ids);
    out->own = calloc((size_t)out->n, sizeof *out->own);
    if (out->text && out->ids && out->own) {
        memcpy(out->ids, c->ids, (size_t)held * sizeof *ids);
        memcpy(out->own, c->own, (size_t)held * sizeof *out->own);
        memcpy(out->ids + held, ids + same, (size_t)rest * sizeof *ids);
    } else {
        hn_prompt_clear(out);
        st = HN_FAIL(err, HONE_E_NOMEM, "no memory for %zu tokens", n);
    }
    hone_free(ids);
    return st;
}
