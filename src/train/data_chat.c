/* data_chat: conversations as the model's template writes them, and which of their tokens
 * are answers. Owns the boundaries; refuses to know files and lines.
 *
 * An answer begins where the conversation goes on behind what stands before it with the template's opening of an
 * answer. Many templates write what stands before otherwise when more follows (Mistral's the system text, Qwen3's
 * thoughts), and tokens may merge across the boundary: then it is looked for in the conversation itself, between the
 * words before it and its own, which are where the tokens change when the message is another. It ends with the token
 * that ends a generation, or, in formats where that is plain text or missing, where the tokens part from those of the
 * conversation up to and with the answer. */
#include "base/utf8.h"
#include "text/chat.h"
#include "train/data_parts.h"

struct hn_data_chat {
    hn_jinja *t[2]; /* without, with tools; NULL: not parsed yet */
    char *bos, *eos;
};

/* What templates print as today: data must be the same tomorrow. */
static const hn_jinja_time day = { 2024, 7, 26, 0, 0, 0 };

void hn_data_chat_free(hn_data_chat *c)
{
    if (!c) return;
    hn_jinja_free(c->t[0]);
    hn_jinja_free(c->t[1]);
    free(c->bos);
    free(c->eos);
    free(c);
}

/* Text of a token, "" where there is none or it is not UTF-8, which no template could print. */
static char *token_text(const hn_vocab *v, int32_t id)
{
    size_t n = 0, used;
    const char *s = id >= 0 ? hn_vocab_piece(v, id, true, &n) : NULL;
    for (size_t i = 0; i < n; i += used)
        if (hn_utf8_next((const unsigned char *)s + i, n - i, &used) < 0 || s[i] == 0) return calloc(1, 1);
    char *copy = calloc(n + 1, 1);
    if (copy && n) memcpy(copy, s, n);
    return copy;
}

static hone_status prepare(hn_data_reader *r)
{
    if (r->chat) return HONE_OK;
    hn_data_chat *c = calloc(1, sizeof *c);
    if (c) {
        c->bos = token_text(r->v, hn_vocab_bos(r->v));
        c->eos = token_text(r->v, hn_vocab_eos(r->v));
    }
    if (!c || !c->bos || !c->eos) {
        hn_data_chat_free(c);
        return HN_FAIL(r->err, HONE_E_NOMEM, "%s: chat template", r->path);
    }
    r->chat = c;
    return HONE_OK;
}

/* Whether there is a template may take memory to find out, and where that is short the answer is no: it is asked again.
 */
static hone_status find_source(hone_str *out, const hn_data_reader *r, bool tools, hone_error *err)
{
    hone_status st = hn_chat_source(out, r->m->file, r->v, r->p->chat_template, tools, err);
    return st == HONE_OK ? st : hn_chat_source(out, r->m->file, r->v, r->p->chat_template, tools, err);
}

bool hn_data_has_template(hn_data_reader *r)
{
    hone_str source;
    return find_source(&source, r, false, NULL) == HONE_OK;
}

/* A template that is missing or broken fails the whole file, not a line of it. */
static hone_status get_template(hn_data_reader *r, bool tools)
{
    hone_str source;
    hone_status st = prepare(r);
    if (st != HONE_OK || r->chat->t[tools]) return st;
    if ((st = find_source(&source, r, tools, r->err)) != HONE_OK) return st;
    return hn_jinja_parse(&r->chat->t[tools], source.ptr, source.len, "chat template", NULL, r->err);
}

/* Ids of a rendering; *why is filled where the messages are at fault. */
static hone_status encode(hn_data_reader *r, const json_t *messages, const json_t *tools, bool open, hn_ids *out,
                          hone_error *why)
{
    hn_jinja_text text = { 0 };
    const hn_data_chat *c = r->chat;
    hn_chat chat = {
        .messages = messages, .tools = tools, .bos = c->bos, .eos = c->eos, .now = &day, .add_generation_prompt = open
    };
    out->n = 0;
    hone_status st = hn_chat_render(c->t[tools != NULL], &chat, &text, why);
    if (st == HONE_OK) st = hn_chat_encode(r->v, text.text, text.len, text.input, text.n_input, false, out, why);
    hn_jinja_text_free(&text);
    return st;
}

static bool is_answer(const json_t *message) { return hn_json_is(json_object_get(message, "role"), "assistant"); }

/* OpenAI's "weight": 0, and Axolotl's "train": false, is an answer that is read, not learnt, where not all is. */
static bool is_learnt(const hn_data_reader *r, const json_t *message)
{
    const json_t *w = json_object_get(message, "weight");
    bool left = (json_is_number(w) && json_number_value(w) == 0) || json_is_false(json_object_get(message, "train"));
    return is_answer(message) && (r->p->mask == HN_MASK_NONE || !left);
}

/* Where the tokens of the conversation part from those of its first n messages. *whole: it begins with all of them. */
static hone_status part(hn_data_reader *r, const json_t *messages, const json_t *tools, size_t n, bool open, size_t *at,
                        bool *whole, hone_error *why)
{
    json_t *head = json_array();
    bool ok = head != NULL;
    for (size_t i = 0; i < n && ok; i++) ok = json_array_append(head, json_array_get(messages, i)) == 0;
    hone_status st = ok ? encode(r, head, tools, open, &r->other, why)
                        : HN_FAIL(why, HONE_E_NOMEM, "%s:%lld: messages", r->path, (long long)r->line);
    json_decref(head);
    *at = 0;
    *whole = false;
    if (st == HONE_OK) *at = hn_data_common(&r->ids, &r->other), *whole = *at == r->other.n;
    else if (n == 0 && st != HONE_E_NOMEM) st = HONE_OK; /* many templates want a first message */
    return st;
}

/* ---- where a message's words are ---------------------------------------------------------------------------- */

/* What a message says in place of its own words; two, as neither may begin nor end as these do. */
static const char *const marks[] = { "Zq7Z", "#0k#" };

static char edge_of(const json_t *m, bool last)
{
    const json_t *content = json_object_get(m, "content");
    if (json_is_array(content)) content = json_object_get(json_array_get(content, 0), "text");
    const char *s = json_string_value(content);
    size_t n = json_string_length(content);
    return n ? s[last ? n - 1 : 0] : 0;
}

/* Tokens [from, end) of the conversation, a, are those that change when message i says something else: its words, what
 * it thinks and its calls. *shown: there are any, and the template takes such a message. */
static hone_status words_of(hn_data_reader *r, const hn_ids *a, const json_t *messages, const json_t *tools, size_t i,
                            size_t *from, size_t *end, bool *shown, hone_error *why)
{
    const json_t *m = json_array_get(messages, i);
    const char *mark = marks[edge_of(m, false) == marks[0][0] || edge_of(m, true) == marks[0][0]];
    json_t *other = json_copy((json_t *)messages),
           *says =
               is_answer(m) ? json_pack("{s:s, s:s}", "role", "assistant", "content", mark) : json_copy((json_t *)m);
    bool ok = other && says && json_object_set_new(says, "content", json_string(mark)) == 0;
    ok = json_array_set_new(other, i, says) == 0 && ok; /* takes it in any case */
    hone_error no;
    hone_status st = ok ? encode(r, other, tools, false, &r->other, &no) : HONE_E_NOMEM;
    json_decref(other);
    *shown = false;
    if (st == HONE_E_NOMEM) return HN_FAIL(why, st, "%s:%lld: messages", r->path, (long long)r->line);
    if (st != HONE_OK) return HONE_OK;

    const hn_ids *b = &r->other;
    size_t least = a->n < b->n ? a->n : b->n, behind = 0;
    *from = hn_data_common(a, b);
    while (behind < least - *from && a->data[a->n - 1 - behind] == b->data[b->n - 1 - behind]) behind++;
    *end = a->n - behind;
    *shown = *end > *from;
    return HONE_OK;
}

/* What the template opens an answer with, in r->other from *at on; none where it does not say. */
static hone_status opening(hn_data_reader *r, const json_t *tools, size_t *at, hone_error *why)
{
    hn_ids bare = { 0 };
    json_t *asks = json_pack("[{s:s, s:s}]", "role", "user", "content", marks[0]);
    hone_error no;
    hone_status st = asks ? encode(r, asks, tools, false, &r->other, &no) : HONE_E_NOMEM;
    if (st == HONE_OK) {
        bare = r->other;
        r->other = (hn_ids){ 0 };
        st = encode(r, asks, tools, true, &r->other, &no);
    }
    *at = st == HONE_OK ? hn_data_common(&bare, &r->other) : 0;
    if (st != HONE_OK) r->other.n = 0;
    free(bare.data);
    json_decref(asks);
    return st == HONE_E_NOMEM ? HN_FAIL(why, st, "%s:%lld: messages", r->path, (long long)r->line) : HONE_OK;
}

/* The end of the words in front of message i; 0: none are shown. */
static hone_status end_before(hn_data_reader *r, const hn_ids *a, const json_t *messages, const json_t *tools, size_t i,
                              size_t *before, hone_error *why)
{
    size_t from;
    bool shown = false;
    hone_status st = HONE_OK;
    while (i-- > 0 && !shown && st == HONE_OK) st = words_of(r, a, messages, tools, i, &from, before, &shown, why);
    if (!shown) *before = 0;
    return st;
}

/* Where the words of answer i begin, by the conversation that ends with it, of which more may be changed: what stands
 * there between the words before the answer and its own stands in the whole one, too; all of it, if *there. */
static hone_status words_at_end(hn_data_reader *r, const json_t *messages, const json_t *tools, size_t i, size_t before,
                                size_t *words, bool *there, hone_error *why)
{
    hn_ids a = { 0 };
    size_t from = 0, end, last = 0;
    json_t *head = json_array();
    bool ok = head != NULL;
    hone_error no;
    *words = before;
    *there = false;
    for (size_t k = 0; k <= i && ok; k++) ok = json_array_append(head, json_array_get(messages, k)) == 0;
    hone_status st = ok ? encode(r, head, tools, false, &r->other, &no) : HONE_E_NOMEM;
    if (st == HONE_E_NOMEM) st = HN_FAIL(why, st, "%s:%lld: messages", r->path, (long long)r->line);
    else if (st == HONE_OK) {
        a = r->other;
        r->other = (hn_ids){ 0 };
        st = words_of(r, &a, head, tools, i, &from, &end, there, why);
        if (st == HONE_OK && *there) st = end_before(r, &a, head, tools, i, &last, why);
        if (st == HONE_OK && *there && last <= from) {
            const hn_ids gap = { .data = a.data + last, .n = from - last },
                         here = { .data = r->ids.data + before, .n = r->ids.n - before };
            *words += hn_data_common(&gap, &here);
        }
        *there = *there && *words - before == from - last;
    } else st = HONE_OK;
    json_decref(head);
    free(a.data);
    return st;
}

/* Where answer i begins: behind the template's opening, if that stands between the words before the answer and its own;
 * else at `at`, if that lies there (a token may have merged), else with its words. *there: the template writes them. */
static hone_status look_for(hn_data_reader *r, const json_t *messages, const json_t *tools, size_t i, size_t *at,
                            bool *there, hone_error *why)
{
    size_t words = 0, end, before = 0, open = 0;
    hone_status st = end_before(r, &r->ids, messages, tools, i, &before, why);
    if (st == HONE_OK) st = words_of(r, &r->ids, messages, tools, i, &words, &end, there, why);
    if (st == HONE_OK && !*there) st = words_at_end(r, messages, tools, i, before, &words, there, why);
    if (before > words) before = words;
    if (st == HONE_OK && words > before) st = opening(r, tools, &open, why);
    if (st != HONE_OK || words == before) return st;
    const size_t n = r->other.n - open;
    for (size_t k = words; n && k >= before + n; k--) {
        if (memcmp(r->ids.data + k - n, r->other.data + open, n * sizeof *r->ids.data) != 0) continue;
        *at = k;
        *there = true;
        return HONE_OK;
    }
    if (!n || *at < before || *at > words) *at = words;
    return HONE_OK;
}

static hone_status begin_of(hn_data_reader *r, const json_t *messages, const json_t *tools, size_t i, size_t *at,
                            bool *there, hone_error *why)
{
    *there = true;
    hone_status st = part(r, messages, tools, i, true, at, there, why);
    return st != HONE_OK || *there ? st : look_for(r, messages, tools, i, at, there, why);
}

/* Whether a token ends a generation and cannot stand in an answer's text (as the empty line that RWKV World ends with
 * can). */
static hone_status is_end(hn_data_reader *r, int32_t id, bool *yes)
{
    size_t n;
    *yes = hn_vocab_is_eog(r->v, id);
    if (!*yes) return HONE_OK;
    const char *s = hn_vocab_piece(r->v, id, true, &n);
    hn_ids ids = { 0 };
    hone_status st = hn_vocab_encode_spans(r->v, s, n, 0, &(hone_span){ 0, n }, n > 0, &ids, r->err);
    *yes = ids.n != 1 || ids.data[0] != id;
    free(ids.data);
    return st;
}

/* Counts the tokens of answer i, which begins at token `from`; those of the next one begin at `to`. *ended: it has a
 * token that ends a generation. */
static hone_status count_answer(hn_data_reader *r, const json_t *messages, const json_t *tools, size_t i, size_t from,
                                size_t to, bool *ended, hone_error *why)
{
    size_t end = from;
    hone_status st = HONE_OK;
    *ended = false;
    while (end < to && !*ended)
        if ((st = is_end(r, r->ids.data[end++], ended)) != HONE_OK) return st;
    bool whole = true, shown = false;
    size_t first, words = 0;
    if (!*ended && i + 1 < json_array_size(messages)) {
        st = part(r, messages, tools, i + 1, false, &end, &whole, why);
        if (st == HONE_OK && !whole) st = words_of(r, &r->ids, messages, tools, i, &first, &words, &shown, why);
        if (shown && end < words) end = words;
        if (st == HONE_OK && !whole) st = words_of(r, &r->ids, messages, tools, i + 1, &first, &words, &shown, why);
        if (!whole && shown && end > first) end = first; /* numbers of calls may have changed what follows, too */
        if (end > to) end = to;
    }
    if (st == HONE_OK && end > from) memset(r->target + from, 1, end - from);
    return st;
}

/* An answer whose beginning is known, before that of the next one is. */
typedef struct begun {
    size_t i, from;
    bool any;
} begun;

/* Forward, as each costs what stands before it: behind the tokens that a sample keeps nobody asks where answers are.
 * *open: the conversation ends with an answer that nothing ends. */
static hone_status count_answers(hn_data_reader *r, const json_t *messages, const json_t *tools, bool *open,
                                 hone_error *why)
{
    size_t n = json_array_size(messages), first = 0, from = 0;
    bool ended = true;
    begun last = { 0 };
    hone_status st = HONE_OK;
    *open = false;
    for (size_t i = n; r->p->mask != HN_MASK_PROMPT && i-- > 0 && !first;)
        if (is_learnt(r, json_array_get(messages, i))) first = i;
    for (size_t i = first; i < n && st == HONE_OK && from <= (size_t)r->p->seq; i++) {
        if (!is_answer(json_array_get(messages, i))) continue;
        bool there;
        size_t at;
        st = begin_of(r, messages, tools, i, &at, &there, why);
        if (st != HONE_OK || !there) continue; /* what the template does not write nobody learns */
        from = at;
        if (last.any) st = count_answer(r, messages, tools, last.i, last.from, from, &ended, why);
        last = (begun){ i, from, is_learnt(r, json_array_get(messages, i)) };
    }
    if (st == HONE_OK && last.any && last.from <= (size_t)r->p->seq) {
        size_t to = r->ids.n, end;
        bool shown = false;
        for (size_t k = last.i + 1; k < n && !shown && st == HONE_OK; k++) {
            st = words_of(r, &r->ids, messages, tools, k, &to, &end, &shown, why);
            if (!shown) to = r->ids.n;
        }
        if (st == HONE_OK) st = count_answer(r, messages, tools, last.i, last.from, to, &ended, why);
        *open = last.i + 1 == n && !ended;
    }
    return st;
}

/* Nothing to read: "", or parts that are all so. */
static bool is_empty(const json_t *content)
{
    size_t i;
    json_t *part;
    if (json_is_string(content)) return !json_string_length(content);
    json_array_foreach(content, i, part)
    {
        const json_t *text = json_object_get(part, "text");
        if (!json_is_string(text) || json_string_length(text)) return false;
    }
    return json_is_array(content);
}

static bool reasons(const json_t *m)
{
    for (size_t i = 0; i < HN_CHAT_N_REASONING; i++)
        if (hn_chat_reasoning_names[i] && json_string_length(json_object_get(m, hn_chat_reasoning_names[i])))
            return true;
    return false;
}

/* A message that says nothing at all is a misspelt key, which a template would print as an empty one; of an answer
 * without words its end alone would be learnt. NULL: m is none, or why. */
static const char *silent(const hn_data_reader *r, const json_t *m)
{
    const json_t *content = json_object_get(m, "content");
    if (!json_is_object(m) || json_array_size(json_object_get(m, "tool_calls"))) return NULL;
    if (!content) return ".content is missing";
    if (json_is_null(content)) return ".content is null";
    return is_learnt(r, m) && is_empty(content) && !reasons(m) ? ": the answer is empty" : NULL;
}

char *hn_data_place(const hn_data_reader *r, size_t i, char dst[HN_DATA_PLACE])
{
    for (size_t k = 0; k < HN_DATA_FROM; k++) {
        const hn_data_from *f = &r->from[k];
        if (i >= f->n) {
            i -= f->n;
            continue;
        }
        if (f->how == HN_DATA_ONE) snprintf(dst, HN_DATA_PLACE, "%s", f->key);
        else if (f->how == HN_DATA_EACH) snprintf(dst, HN_DATA_PLACE, "%s[%zu]", f->key, i);
        else snprintf(dst, HN_DATA_PLACE, "%s[%zu][%zu]", f->key, i / 2, i % 2);
        return dst;
    }
    snprintf(dst, HN_DATA_PLACE, "messages[%zu]", i);
    return dst;
}

/* "messages[N]…" of a template's, by the place that message has in the record. */
static hone_status bad_message(hn_data_reader *r, const char *why)
{
    static const char first[] = "messages[";
    char place[HN_DATA_PLACE], *end;
    if (strncmp(why, first, sizeof first - 1) != 0) return hn_data_bad(r, "%s", why);
    size_t i = strtoul(why + sizeof first - 1, &end, 10);
    return *end == ']' ? hn_data_bad(r, "%s%s", hn_data_place(r, i, place), end + 1) : hn_data_bad(r, "%s", why);
}

hone_status hn_data_conversation(hn_data_reader *r, const json_t *messages, const json_t *tools)
{
    hone_error why = { 0 };
    bool open = false;
    char place[HN_DATA_PLACE];
    hone_status st = get_template(r, tools != NULL);
    if (st != HONE_OK) return st;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const char *no = silent(r, json_array_get(messages, i));
        if (no) return hn_data_bad(r, "%s%s, and there are no tool_calls", hn_data_place(r, i, place), no);
    }
    if ((st = encode(r, messages, tools, false, &r->ids, &why)) == HONE_OK &&
        (st = hn_data_targets(r, 0, 0)) == HONE_OK)
        st = count_answers(r, messages, tools, &open, &why);
    if (st == HONE_E_ARG || st == HONE_E_FORMAT || st == HONE_E_UNSUPPORTED) return bad_message(r, why.message);
    if (st != HONE_OK) {
        if (r->err && why.message[0]) *r->err = why;
        return st;
    }
    if (open && r->ids.n && !hn_vocab_is_eog(r->v, r->ids.data[r->ids.n - 1])) {
        size_t before = r->ids.n;
        if ((st = hn_data_put_eos(r, &r->ids)) != HONE_OK || (st = hn_data_targets(r, before, 1)) != HONE_OK) return st;
    }
    r->d->stats.n_chat++;
    return hn_data_put(r, r->p->mask == HN_MASK_NONE ? NULL : r->target);
}
