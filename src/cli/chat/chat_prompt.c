/* chat_prompt: the conversation as tokens. Owns the choice of template and its variables,
 * and how much of a prompt the session holds already. */
#include "cli/chat/chat_state.h"

#include <stdlib.h>
#include <time.h>

typedef struct chat_format {
    char *source;            /* of --chat-template; NULL: the model's own */
    char *variables;         /* of the template; NULL: none */
    hone_chat_format *reply; /* how it marks an answer */
    char now[28]; /* when the conversation began: a prompt that told each turn's time would never be reused */
} chat_format;

/* ---- messages for the template ------------------------------------------------------------------ */

static char *messages_json(const chat_talk *t)
{
    json_t *a = json_array();
    bool ok = a != NULL;
    for (size_t i = 0; ok && i < t->n; i++) {
        const chat_message *c = &t->msg[i];
        json_t *m = json_pack("{s:s,s:o}", "role", hn_chat_roles[c->role], "content", hn_json_str(c->text, c->len));
        ok = !c->reasoning ||
             json_object_set_new(m, "reasoning_content", hn_json_str(c->reasoning, c->n_reasoning)) == 0;
        ok = json_array_append_new(a, m) == 0 && ok;
    }
    char *s = ok ? hn_json_text(a, JSON_COMPACT) : NULL;
    json_decref(a);
    return s;
}

static hone_chat_params render_params(const chat *c, const char *messages, bool generation)
{
    return (hone_chat_params){ .messages = messages,
                               .chat_template = c->format->source,
                               .variables = c->format->variables,
                               .now = *c->format->now ? c->format->now : NULL,
                               .add_generation_prompt = generation,
                               .trust_input = hn_opts_flag(c->cli->opts, "trust-input") };
}

/* ---- the template ------------------------------------------------------------------------------- */

const hone_chat_format *hn_format_reply(const chat *c) { return c->format->reply; }

hone_status hn_format_think(chat *c, const char *how, hone_error *err)
{
    hone_chat_params p = render_params(c, NULL, true);
    char *variables;
    hone_status st = hn_cli_chat_variables(c->cli, c->model, &p, how, &variables, err);
    if (st != HONE_OK) return st;
    hone_free(c->format->variables);
    c->format->variables = variables;
    return HONE_OK;
}

int hn_format_open(chat *c)
{
    hone_error err;
    hone_chat_text t;
    const char *choice = hn_opts_str(c->cli->opts, "chat-template"), *adapters = NULL;
    chat_format *f = c->format = calloc(1, sizeof *f);
    int rc = 0;
    if (!f) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the chat template");
    time_t t_now = time(NULL);
    struct tm tm;
    if (localtime_r(&t_now, &tm)) strftime(f->now, sizeof f->now, "%Y-%m-%dT%H:%M:%S%z", &tm);
    if (choice && choice[0] == '@') {
        size_t n;
        if (hn_read_all(choice + 1, &f->source, &n, &err) != HONE_OK)
            return hn_cli_fail_input(c->cli, "--chat-template @", choice + 1, &err);
    } else if (choice || (rc = hn_cli_adapters_template(c->cli, c->model, &adapters)) || adapters) {
        if (rc) return rc;
        if (!(f->source = strdup(choice ? choice : adapters)))
            return hn_cli_error(HN_EXIT_NOMEM, "no memory for the chat template");
    }
    /* now, not after the first question: is there a template, can it be rendered, and does it know of reasoning? */
    bool known = hn_format_think(c, NULL, &err) == HONE_OK;
    hone_chat_params p = render_params(c, "[{\"role\":\"user\",\"content\":\"x\"}]", true);
    if (known) known = hone_chat_render(c->model, &p, &t, &err) == HONE_OK;
    if (!known) {
        int code = hn_cli_fail(&err);
        if (err.code == HONE_E_UNSUPPORTED && !choice)
            hn_err_printf("hone: try: --chat-template chatml, or hone run for models that only continue text\n");
        return choice && err.code == HONE_E_UNSUPPORTED ? HN_EXIT_FAILURE : code;
    }
    hone_chat_text_free(&t);
    const char *how = hn_opts_str(c->cli->opts, "think");
    if (how && hn_format_think(c, how, &err) != HONE_OK) return hn_cli_fail(&err);
    p = render_params(c, NULL, true);
    return hone_chat_format_new(&f->reply, c->model, &p, &err) == HONE_OK ? 0 : hn_cli_fail(&err);
}

void hn_format_close(chat *c)
{
    if (!c->format) return;
    free(c->format->source);
    hone_free(c->format->variables);
    hone_chat_format_free(c->format->reply);
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
    hone_chat_text_free(&p->rendered);
    free(p->ids);
    free(p->own);
    *p = (chat_prompt){ 0 };
}

/* The prompt's ids, and of a model that cannot go back anywhere where the messages end in them. */
static hone_status tokenize(const chat *c, const hone_chat_params *p, int32_t **ids, size_t *n, size_t *mark,
                            hone_error *err)
{
    *mark = 0;
    hone_status st = hone_chat_tokenize(c->model, p, ids, n, err);
    if (st != HONE_OK || (!c->info.state_bytes && !c->info.n_window)) return st;
    st = hone_chat_mark(c->model, p, *ids, *n, mark, err);
    if (st != HONE_E_NOMEM) return HONE_OK; /* a template that cannot end there has no such place */
    hone_free(*ids);
    return st;
}

hone_status hn_prompt_make(chat *c, chat_prompt *out, hone_error *err)
{
    int32_t *ids, held = 0;
    size_t n, mark;
    *out = (chat_prompt){ 0 };
    char *messages = messages_json(&c->talk);
    if (!messages) return HN_FAIL(err, HONE_E_NOMEM, "no memory for %zu messages", c->talk.n);
    hone_chat_params p = render_params(c, messages, true);
    hone_status st = hone_chat_render(c->model, &p, &out->rendered, err);
    if (st == HONE_OK) st = tokenize(c, &p, &ids, &n, &mark, err);
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
    out->mark = (int32_t)mark > same ? held + (int32_t)mark - same : 0;
    out->ids = malloc((size_t)out->n * sizeof *out->ids);
    out->own = calloc((size_t)out->n, sizeof *out->own);
    if (out->ids && out->own) {
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
