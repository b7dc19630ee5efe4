/* chat_answer: one answer, from the conversation to its text. Prefills what the session
 * lacks, then picks, shows and decodes until the turn ends, is stopped, or the context is full. */
#include "cli/chat/chat_state.h"

#include <stdlib.h>

typedef struct answer {
    chat *c;
    hone_sampler *sampler;
    hone_reply *reply;
    hn_said text, reasoning;
    const char *stop; /* why it ended: "end" "length" "context" "interrupted" */
    chat_stats stats;
    double t_start;
} answer;

static hone_status show(answer *a, const hone_reply_part *parts, size_t n, hone_error *err)
{
    hone_status st = HONE_OK;
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        if (parts[i].part == HONE_PART_TEXT) st = hn_said_add(&a->text, parts[i].text, parts[i].len, err);
        if (parts[i].part == HONE_PART_REASONING) st = hn_said_add(&a->reasoning, parts[i].text, parts[i].len, err);
    }
    hn_screen_show(&a->c->screen, parts, n);
    return st;
}

static hone_status prepare(answer *a, const chat_prompt *p, hone_error *err)
{
    chat *c = a->c;
    hone_sampler_params sp = c->params.sampling;
    sp.seed += c->attempt; /* numbers depend on seed and position only: the same place again needs another seed */
    hone_status st = hone_sampler_new(&a->sampler, c->info.n_vocab, &sp, err);
    if (st == HONE_OK) st = hone_sampler_suppress(a->sampler, c->model, err);
    if (st != HONE_OK || (st = hone_reply_new(&a->reply, hn_format_reply(c), &p->rendered, NULL, 0, err)) != HONE_OK)
        return st;
    for (int32_t i = 0; i < p->n; i++) hone_sampler_accept(a->sampler, p->ids[i]);
    return HONE_OK;
}

/* Runs what the session does not hold of the prompt. In the next turn something else may stand behind the messages, as
 * thoughts are left out of what was said: who cannot go back anywhere remembers the place. */
static hone_status run_prompt(const chat *c, const chat_prompt *p, const float **logits, hone_error *err)
{
    int32_t at = p->reused;
    hone_status st = HONE_OK;
    if (p->mark > at && p->mark < p->n) {
        st = hn_cli_append(c->cli, c->session, p->ids + at, p->mark - at, logits, err);
        if (st == HONE_OK) st = hone_seq_checkpoint(c->session, 0, err);
        at = p->mark;
    }
    if (st == HONE_OK) st = hn_cli_append(c->cli, c->session, p->ids + at, p->n - at, logits, err);
    if (st == HONE_OK) st = hone_seq_checkpoint(c->session, 0, err); /* another answer begins here */
    return st;
}

/* Brings the session from its own tokens to those of the prompt. */
static hone_status prefill(answer *a, chat_prompt *p, const float **logits, hone_error *err)
{
    chat *c = a->c;
    double t = hn_now_ms();
    memcpy(c->ids, p->ids, (size_t)p->n * sizeof *p->ids);
    memcpy(c->own, p->own, (size_t)p->n * sizeof *p->own);
    hone_status st = hone_seq_match(c->session, 0, p->ids, p->n, &p->reused, err);
    if (st == HONE_OK) st = run_prompt(c, p, logits, err);
    c->n_ids = hone_seq_length(c->session, 0);
    a->stats.reused = p->reused;
    a->stats.prefilled = c->n_ids > p->reused ? c->n_ids - p->reused : 0;
    a->stats.prefill_ms = hn_now_ms() - t;
    return st;
}

static hone_status generate(answer *a, const float *logits, hone_error *err)
{
    chat *c = a->c;
    int32_t n_ctx = hone_session_n_ctx(c->session);
    double t = hn_now_ms();
    hone_status st = HONE_OK;
    a->stop = "length";
    while (st == HONE_OK && (c->params.limit < 0 || a->stats.generated < c->params.limit)) {
        const hone_reply_part *parts;
        size_t n;
        hone_reply_end end;
        int32_t id, pos = hone_seq_length(c->session, 0);
        if (hn_line_stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        if ((st = hone_sampler_pick(a->sampler, logits, 0, pos, &id, err)) != HONE_OK) break;
        if ((st = hone_reply_push(a->reply, id, &parts, &n, &end, err)) != HONE_OK) break;
        if (!end && a->stats.generated++ == 0) a->stats.ttft_ms = hn_now_ms() - a->t_start;
        if ((st = show(a, parts, n, err)) != HONE_OK) break;
        if (hn_out_failed()) break; /* nobody reads any more */
        if (end) {
            a->stop = "end";
            break;
        }
        hone_sampler_accept(a->sampler, id);
        if (pos >= n_ctx) {
            a->stop = "context";
            break;
        }
        c->ids[pos] = id;
        c->own[pos] = true;
        if ((st = hone_append(c->session, 0, &id, 1, &logits, err)) != HONE_OK) break;
        a->stats.decoded++;
        a->stats.decode_ms = hn_now_ms() - t;
    }
    c->n_ids = hone_seq_length(c->session, 0);
    return st == HONE_OK ? hone_seq_checkpoint(c->session, 0, err) : st; /* and the next message here */
}

static void count(chat *c, const chat_stats *s)
{
    chat_stats *t = &c->total;
    c->last = *s;
    t->prefilled += s->prefilled;
    t->reused += s->reused;
    t->generated += s->generated;
    t->decoded += s->decoded;
    t->prefill_ms += s->prefill_ms;
    t->decode_ms += s->decode_ms;
    c->n_answers++;
}

static void print_json(const answer *a)
{
    json_t *o = hn_json_new("hone.chat.answer/1");
    json_object_set_new(o, "text", hn_json_str(a->text.p ? a->text.p : "", a->text.n));
    if (a->reasoning.n) json_object_set_new(o, "reasoning", hn_json_str(a->reasoning.p, a->reasoning.n));
    json_object_set_new(o, "stop", json_string(a->stop));
    json_object_set_new(o, "tokens",
                        json_pack("{s:I,s:I,s:I}", "prefilled", (json_int_t)a->stats.prefilled, "reused",
                                  (json_int_t)a->stats.reused, "generated", (json_int_t)a->stats.generated));
    json_object_set_new(o, "ttft_ms", a->stats.generated ? hn_json_num(a->stats.ttft_ms) : json_null());
    hn_json_print(o);
}

/* What there is to say about an answer that did not end by itself. */
static void explain(const answer *a, hone_status st, const hone_error *err)
{
    const chat *c = a->c;
    int32_t n_ctx = hone_session_n_ctx(c->session);
    bool tty = hn_line_interactive(c->line);
    if (st == HONE_E_INTERRUPTED) {
        if (tty)
            hn_chat_say("stopped; the answer so far is kept (/retry answers again, /undo takes the exchange back)");
    } else if (st != HONE_OK) {
        hn_chat_say("%s; the answer so far is kept", err->message);
    } else if (strcmp(a->stop, "context") == 0) {
        hn_chat_say(
            "the context is full: all %d positions of %d are used, and the answer ends here; the conversation is kept. "
            "/undo takes the last exchange back, /reset begins anew; for more room /save FILE, then hone chat -c N "
            "with N above %d, and /load FILE%s",
            hone_seq_length(c->session, 0), n_ctx, n_ctx,
            n_ctx >= c->info.n_ctx_train ? " (the model was not trained for more)" : "");
    } else if (strcmp(a->stop, "length") == 0 && tty) {
        hn_chat_say("the answer was cut after %d tokens (n-predict)", c->params.limit);
    }
}

static void say_full(const chat *c, int32_t need)
{
    int32_t n_ctx = hone_session_n_ctx(c->session);
    hn_chat_say(
        "the context is full: with this message the conversation has %d tokens, and the context holds %d, which must "
        "leave room for an answer. "
        "The message was not added; the conversation is kept. /undo takes the last exchange back, /reset begins anew; "
        "for more room /save FILE, then hone chat -c N with N above %d, and /load FILE%s",
        need, n_ctx, need, need >= c->info.n_ctx_train ? " (the model was not trained for so many)" : "");
}

static chat_outcome answer_prompt(answer *a, chat_prompt *p)
{
    chat *c = a->c;
    hone_error err;
    const float *logits;
    if (p->n >= hone_session_n_ctx(c->session)) {
        say_full(c, p->n);
        return CHAT_REFUSED;
    }
    hone_status st = prepare(a, p, &err);
    if (st != HONE_OK) {
        hn_chat_say("%s", err.message);
        return CHAT_REFUSED;
    }
    hn_screen_begin(&c->screen);
    a->stop = "interrupted";
    if ((st = prefill(a, p, &logits, &err)) == HONE_OK) st = generate(a, logits, &err);
    const hone_reply_part *parts;
    size_t n;
    hone_error flush_err;
    if (st == HONE_E_INTERRUPTED) a->stop = "interrupted";
    if (hone_reply_flush(a->reply, &parts, &n, &flush_err) == HONE_OK) show(a, parts, n, &flush_err);
    hn_screen_end(&c->screen);
    count(c, &a->stats);
    if (st != HONE_OK && !a->text.n && !a->reasoning.n) { /* nothing came of it: that is no answer */
        if (st != HONE_E_INTERRUPTED) {
            hn_chat_say("%s", err.message);
            return CHAT_REFUSED;
        }
        if (c->cli->json) print_json(a);
        if (hn_line_interactive(c->line))
            hn_chat_say("stopped before the answer began (/retry answers, /undo takes the message back)");
        return CHAT_PENDING;
    }
    size_t before = c->talk.n;
    if (!hn_talk_push(&c->talk, CHAT_ASSISTANT, a->text.p ? a->text.p : "", a->text.n) ||
        !hn_talk_reason(&c->talk, a->reasoning.p, a->reasoning.n)) {
        hn_talk_cut(&c->talk, before);
        hn_chat_say("no memory for an answer of %zu bytes", a->text.n + a->reasoning.n);
        return CHAT_REFUSED;
    }
    if (c->cli->json) print_json(a);
    explain(a, st, &err);
    if (c->cli->verbose) hn_chat_print_stats(c, &c->last, "answer");
    return CHAT_ANSWERED;
}

chat_outcome hn_chat_answer(chat *c)
{
    answer a = { .c = c, .t_start = hn_now_ms() };
    chat_prompt p;
    hone_error err;
    chat_outcome how = CHAT_REFUSED;
    hn_line_listen();
    if (hn_prompt_make(c, &p, &err) != HONE_OK) hn_chat_say("%s", err.message);
    else how = answer_prompt(&a, &p);
    hn_prompt_clear(&p);
    hone_reply_free(a.reply);
    hone_sampler_free(a.sampler);
    free(a.text.p);
    free(a.reasoning.p);
    return how;
}
