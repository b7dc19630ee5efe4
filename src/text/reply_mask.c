/* reply_mask: what an answer may say next. Reasoning is free until its budget is spent, then its end mark is all that
 * may come. The answer keeps the form that was asked for, from where reasoning ends, or is calls where these are
 * required; a mark that begins reasoning may come in front of it. A call that a model begins by itself is held to its
 * tool from the mark on with which it begins. See reply_state.h. */
#include "text/reply_state.h"

#include <stdlib.h>

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static bool blank_text(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_blank(s[i])) return false;
    return n > 0;
}

static bool has_begun(const hn_matcher *m) { return m && hn_matcher_steps(m) > 0; }

/* Nothing of what the answer must be has come. */
static bool is_before(const hn_reply *r) { return r->first && !has_begun(r->must[0]) && !has_begun(r->must[1]); }

/* Blanks that models put between their reasoning and the answer are no part of the form: one token of them. */
static bool may_pad(const hn_reply *r)
{
    return r->state == HN_REPLY_TEXT && is_before(r) && r->skip && !r->padded && r->reasoned;
}

static bool is_padding(const hn_reply *r, int32_t id)
{
    size_t n;
    const char *s = hn_vocab_piece(r->v, id, false, &n);
    return s && may_pad(r) && blank_text(s, n);
}

static bool is_end(const hn_reply *r, int32_t id) { return id == r->f->end_id || hn_vocab_is_eog(r->v, id); }

bool hn_reply_may_call(const hn_reply *r) { return r->of_calls >= 0 ? r->must[r->of_calls] != NULL : !r->must[0]; }

bool hn_reply_undecided(const hn_reply *r) { return r->of_calls == 1 && r->must[0] && r->must[1]; }

/* The answer must be something, and this is where that holds. */
static bool held(const hn_reply *r)
{
    if (!r->must[0] && !r->must[1]) return false;
    if (r->calling) return r->of_calls >= 0; /* else the call is a message beside the answer: see take_call */
    return r->state == (r->headers ? HN_REPLY_HEADER : HN_REPLY_TEXT);
}

static bool may_end(const hn_reply *r)
{
    if (r->headers && !r->calling) return false; /* a header of reasoning is whole, and no answer */
    return (r->must[0] && hn_matcher_ends(r->must[0])) || (r->must[1] && hn_matcher_ends(r->must[1]));
}

/* ---- the end of reasoning -------------------------------------------------------------------------------- */

static bool spent(const hn_reply *r)
{
    return r->state == HN_REPLY_REASONING && r->budget >= 0 && r->n_thought >= r->budget;
}

/* The mark that would end the reasoning that is open; NULL: the format has none. */
static const hn_reply_mark *end_mark(const hn_reply *r)
{
    for (int i = 0; i < r->f->n; i++) {
        const hn_reply_mark *m = &r->f->mark[i];
        if ((m->act == HN_REPLY_CLOSE || m->act == HN_REPLY_FINISH) && hn_reply_counts(r, m, r->first)) return m;
    }
    return NULL;
}

/* The token that must come where the budget is spent; -1: none that is known. */
static hone_status next_closing(hn_reply *r, int32_t *id, hone_error *err)
{
    *id = -1;
    if (!r->closing.n) {
        const hn_reply_mark *m = end_mark(r);
        hone_status st = HONE_OK;
        if (!m) return HONE_OK;
        if (m->id >= 0) st = hn_ids_put(&r->closing, m->id, err);
        else st = hn_vocab_encode(r->v, m->text, strlen(m->text), 0, &r->closing, err);
        if (st != HONE_OK) return st;
        r->n_closed = 0;
    }
    if (r->n_closed < r->closing.n) *id = r->closing.data[r->n_closed];
    return HONE_OK;
}

/* What begins reasoning. */
static bool opens(const hn_reply *r, const hn_reply_mark *m)
{
    return m->act == HN_REPLY_OPEN || (m->act == HN_REPLY_FIELD && strcmp(r->f->kind, "channel") == 0);
}

/* The budget is spent on reasoning that is over: no more of it may begin, as it would have to end at once, for ever. */
static bool no_more(const hn_reply *r)
{
    return r->reasoned && r->budget >= 0 && r->n_thought >= r->budget && r->state != HN_REPLY_REASONING;
}

/* gpt-oss: the channels that are no reasoning. */
static const char *const said_aloud[] = { "final", "commentary" };

/* Is this, the beginning of a channel's name, still that of one of them; *whole: it is one. */
static bool aloud(const char *s, size_t n, bool *whole)
{
    bool may = false;
    *whole = false;
    for (size_t i = 0; i < sizeof said_aloud / sizeof *said_aloud; i++) {
        size_t k = strlen(said_aloud[i]);
        if (memcmp(s, said_aloud[i], n < k ? n : k) != 0) continue;
        may = true;
        *whole |= n >= k;
    }
    return may;
}

/* A token that begins reasoning, or names its channel. */
static bool begins_thought(const hn_reply *r, int32_t id)
{
    enum { LONGEST = 32 };
    char name[LONGEST];
    bool whole;
    size_t n = 0, k = 0;
    const hn_reply_mark *m = hn_reply_mark_of(r, id);
    if (m && opens(r, m)) return true;
    const char *channel = hn_reply_channel(r, &n), *s = hn_vocab_piece(r->v, id, false, &k);
    if (!channel || !aloud(channel, n, &whole) || whole) return false; /* one of the prompt's stays */
    if (m && m->act == HN_REPLY_BODY) return n > 0;
    if (m) return m->act == HN_REPLY_FIELD;
    while (s && !n && k && is_blank(*s)) s++, k--;
    if (!s || !k) return false;
    memcpy(name, channel, n); /* shorter than any of them */
    if (k > LONGEST - n) k = LONGEST - n;
    memcpy(name + n, s, k);
    return !aloud(name, n + k, &whole);
}

/* ---- tokens that come ------------------------------------------------------------------------------------ */

static hone_status refuse(int32_t id, const char *why, hone_error *err)
{
    return HN_FAIL(err, HONE_E_ARG, "token id %d may not come here: %s (hone_reply_mask tells which may)", id, why);
}

static void drop(hn_matcher **m)
{
    hn_matcher_free(*m);
    *m = NULL;
}

static hone_status take_must(hn_reply *r, int32_t id, hone_error *err)
{
    bool ok[2] = { false, false };
    if (is_padding(r, id)) {
        r->padded = true;
        return HONE_OK;
    }
    if (is_end(r, id)) return may_end(r) ? HONE_OK : refuse(id, "the answer is not complete in its form", err);
    for (int i = 0; i < 2; i++) {
        hone_status st = r->must[i] ? hn_matcher_token(r->must[i], id, &ok[i], err) : HONE_OK;
        if (st != HONE_OK) return st;
    }
    if (!ok[0] && !ok[1]) return refuse(id, "it does not match the form of the answer", err);
    for (int i = 0; i < 2; i++)
        if (!ok[i]) drop(&r->must[i]);
    return HONE_OK;
}

/* The call that the model began. */
static hone_status take_call(hn_reply *r, int32_t id, hone_error *err)
{
    bool ok = true;
    hone_status st = HONE_OK;
    if (r->call) {
        if (is_end(r, id)) ok = hn_matcher_ends(r->call);
        else st = hn_matcher_token(r->call, id, &ok, err);
        if (st == HONE_OK && !ok) st = refuse(id, "the call does not go on so", err);
    } else if (r->collect) {
        char token[HN_CALL_TOKEN];
        size_t n;
        const char *s = hn_vocab_piece(r->v, id, false, &n);
        hn_call_put_token(token, id);
        bool mark = hn_call_kit_marks(r->kit, id);
        st = hn_grown_put(&r->since, mark ? token : s, mark ? sizeof token : n, err);
    }
    return st;
}

/* A header begins again, behind reasoning. */
static void rewind_header(hn_reply *r)
{
    if (r->headers && r->state == HN_REPLY_HEADER && !r->n_header && !r->announced && r->must[0])
        hn_matcher_back(r->must[0], hn_matcher_steps(r->must[0]), NULL);
}

/* Is there a token that ends the turn? */
static bool can_end(const hn_reply *r) { return r->tree->n_end > 0 || r->f->end_id >= 0; }

typedef enum mark_may { MAY, MAY_NOT, AS_FORM } mark_may;

/* A mark where the answer must be something: it may come whatever that is, it may not, or the form tells. */
static mark_may may_mark(const hn_reply *r, const hn_reply_mark *m, bool before, bool ends)
{
    if ((opens(r, m) && before && !r->reasoned) || (m->act == HN_REPLY_SAY && before) ||
        ((m->act == HN_REPLY_UNSAY || m->act == HN_REPLY_FINISH) && ends))
        return MAY;
    return opens(r, m) || m->act == HN_REPLY_UNSAY ? MAY_NOT : AS_FORM;
}

/* An answer has to come before the end, and reasoning ends before another header begins. */
static bool too_early(const hn_reply *r, int32_t id)
{
    if ((!r->must[0] && !r->must[1]) || r->end) return false;
    if (is_end(r, id) && !hn_reply_mark_of(r, id)) return true;
    for (int i = 0; i < r->f->n && r->headers; i++) {
        const hn_reply_mark *m = &r->f->mark[i];
        bool header = m->act == HN_REPLY_START || m->act == HN_REPLY_FIELD || m->act == HN_REPLY_BODY;
        if (header && m->id == id) return true;
    }
    return false;
}

static hone_status take_held(hn_reply *r, int32_t id, hone_error *err)
{
    const hn_reply_mark *m = r->calling || r->headers ? NULL : hn_reply_mark_of(r, id);
    mark_may may = m ? may_mark(r, m, is_before(r), may_end(r)) : AS_FORM;
    if (may == MAY_NOT) return refuse(id, "this mark is no part of the answer's form", err);
    return may == MAY ? HONE_OK : take_must(r, id, err);
}

/* What hn_reply_mask allows, and nothing else. */
hone_status hn_reply_take(hn_reply *r, int32_t id, hone_error *err)
{
    int32_t next = -1;
    hone_status st = HONE_OK;
    if (r->only_end && can_end(r) && !is_end(r, id)) return refuse(id, "one call was asked for, and it has come", err);
    rewind_header(r);
    if (no_more(r) && begins_thought(r, id)) return refuse(id, "the budget of reasoning is spent", err);
    if (held(r)) return take_held(r, id, err);
    if (r->calling) return take_call(r, id, err);
    bool over = spent(r);
    if (over) st = next_closing(r, &next, err);
    if (st != HONE_OK) return st;
    if (next >= 0 && next != id) return refuse(id, "the budget of reasoning is spent", err);
    if (next < 0 && too_early(r, id)) return refuse(id, "what the answer must be has not come yet", err);
    if (next >= 0) r->n_closed++;
    else if (r->state == HN_REPLY_REASONING && r->budget >= 0 && !over) r->n_thought += !hn_reply_mark_of(r, id);
    return HONE_OK;
}

/* Text with tokens in it. */
static hone_status match_text(hn_matcher *m, const char *s, size_t n, bool *ok, hone_error *err)
{
    hone_status st = HONE_OK;
    *ok = true;
    for (size_t i = 0, k; i < n && *ok && st == HONE_OK; i += k) {
        const char *esc = memchr(s + i, HN_CALL_ESCAPE, n - i);
        k = esc ? (size_t)(esc - (s + i)) : n - i;
        if (k) st = hn_matcher_bytes(m, s + i, k, ok, err);
        if (!esc || !*ok || st != HONE_OK) continue;
        st = hn_matcher_token(m, hn_call_get_token(esc + 1), ok, err);
        k += HN_CALL_TOKEN;
    }
    return st;
}

static hone_status arm(hn_reply *r, hone_error *err)
{
    bool ok;
    r->collect = false;
    hone_status st = hn_matcher_new(&r->call, r->kit->section, r->tree, err);
    if (st == HONE_OK) st = match_text(r->call, r->since.p, r->since.n, &ok, err);
    if (st != HONE_OK || !ok) drop(&r->call); /* what came is no call: the reader finds out, too */
    return st;
}

hone_status hn_reply_arm(hn_reply *r, const hn_grown *left_out, const char *s, size_t n, hone_error *err)
{
    if (!r->kit->section || r->of_calls >= 0) return HONE_OK;
    bool token = n && (unsigned char)*s == HN_CALL_ESCAPE;
    hn_stream_rest rest = hn_stream_held(r->stream);
    r->since.n = 0;
    hone_status st = left_out ? hn_grown_put(&r->since, left_out->p, left_out->n, err) : HONE_OK;
    if (st == HONE_OK) st = hn_grown_put(&r->since, s, n, err);
    if (st == HONE_OK && !token) st = hn_grown_put(&r->since, rest.text.ptr, rest.text.len, err);
    if (st == HONE_OK && !token) st = hn_grown_put(&r->since, rest.raw.ptr, rest.raw.len, err);
    r->collect = true;
    bool sure = !left_out && (!r->kit->f.bare || r->kit->f.shape == HN_CALLS_HARMONY); /* else it may be an answer */
    return st == HONE_OK && sure ? arm(r, err) : st;
}

hone_status hn_reply_calls_on(hn_reply *r, hone_error *err)
{
    if (!r->calling) {
        drop(&r->call);
        r->collect = false;
        r->only_end = (r->one_call || (r->kit->f.single && r->kit->section)) && hn_call_count(r->reader) > 0 &&
                      !r->must[0] && !r->must[1];
        return HONE_OK;
    }
    return r->collect && hn_call_named(r->reader) ? arm(r, err) : HONE_OK;
}

hone_status hn_reply_begin_text(hn_reply *r, size_t from, hone_error *err)
{
    if ((!r->must[0] && !r->must[1]) || r->headers) return HONE_OK;
    hn_stream_rest rest = hn_stream_held(r->stream);
    while (from < r->pend.n && is_blank(r->pend.p[from])) from++;
    hone_str part[] = { { r->pend.p + from, r->pend.n - from }, rest.text, rest.raw };
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3 && r->must[i]; k++) {
            bool ok;
            hone_status st = hn_matcher_bytes(r->must[i], part[k].ptr, part[k].len, &ok, err);
            if (st != HONE_OK) return st;
            if (!ok) drop(&r->must[i]);
        }
    if (r->must[0] || r->must[1]) return HONE_OK;
    return HN_FAIL(err, HONE_E_ARG, "the token that ended the reasoning goes on with %s, not as the answer's form does",
                   HN_ESC(part[0].ptr, part[0].len));
}

/* ---- masks ----------------------------------------------------------------------------------------------- */

typedef struct bitset {
    uint64_t *word;
    size_t n;
} bitset;

static void allow(bitset b, int32_t id)
{
    if (id >= 0 && (size_t)id / 64 < b.n) b.word[id / 64] |= (uint64_t)1 << id % 64;
}

static void forbid(bitset b, int32_t id)
{
    if (id >= 0 && (size_t)id / 64 < b.n) b.word[id / 64] &= ~((uint64_t)1 << id % 64);
}

static void allow_all(bitset b, int32_t n_vocab)
{
    for (size_t i = 0; i < b.n; i++) {
        int64_t left = (int64_t)n_vocab - (int64_t)i * 64;
        b.word[i] = left >= 64 ? UINT64_MAX : left > 0 ? ((uint64_t)1 << left) - 1 : 0;
    }
}

/* Tokens of blanks alone: the walk leaves out what begins with anything else. */
static void allow_blanks(bitset b, const hn_token_tree *t)
{
    for (uint32_t i = 1; i < t->n;) {
        if (!is_blank((char)t->byte[i])) {
            i = t->end[i];
            continue;
        }
        for (uint32_t k = t->first[i]; k < t->first[i + 1]; k++) allow(b, t->ids[k]);
        i++;
    }
}

/* Bits of what one of the two allows. */
static hone_status mask_either(hn_reply *r, bitset b, hone_error *err)
{
    int64_t n;
    hn_matcher *one = r->must[0] ? r->must[0] : r->must[1];
    hone_status st = hn_matcher_mask_within(one, r->left, b.word, b.n, &n, err);
    if (st != HONE_OK || one == r->must[1] || !r->must[1]) return st;
    uint64_t *more = malloc((b.n + 1) * sizeof *more);
    if (!more) return HN_FAIL(err, HONE_E_NOMEM, "a mask of %zu words", b.n);
    st = hn_matcher_mask_within(r->must[1], r->left, more, b.n, &n, err);
    for (size_t i = 0; i < b.n && st == HONE_OK; i++) b.word[i] |= more[i];
    free(more);
    return st;
}

/* What the answer must be, and marks that may come in front of it. */
static hone_status mask_must(hn_reply *r, bitset b, hone_error *err)
{
    hone_status st = mask_either(r, b, err);
    if (st != HONE_OK) return st;
    bool ends = may_end(r), before = is_before(r);
    if (ends) allow(b, r->f->end_id);
    if (r->calling || r->headers) return HONE_OK;
    if (may_pad(r)) allow_blanks(b, r->tree);
    for (int i = 0; i < r->f->n; i++) {
        const hn_reply_mark *m = &r->f->mark[i];
        if (m->id < 0 || m != hn_reply_mark_of(r, m->id)) continue;
        mark_may may = may_mark(r, m, before, ends);
        if (may == MAY) allow(b, m->id);
        if (may == MAY_NOT) forbid(b, m->id);
    }
    return HONE_OK;
}

/* Only tokens that end the turn. False: there are none. */
static bool mask_ends(hn_reply *r, bitset b)
{
    memset(b.word, 0, b.n * sizeof *b.word);
    for (int32_t i = 0; i < r->tree->n_end; i++) allow(b, r->tree->end_ids[i]);
    allow(b, r->f->end_id);
    return can_end(r);
}

/* What is left of b, or of *all, where no more reasoning may begin. */
static void mask_no_more(const hn_reply *r, bitset b, bool *all)
{
    size_t n;
    bool named = hn_reply_channel(r, &n) != NULL, some = named;
    for (int i = 0; i < r->f->n; i++) some |= r->f->mark[i].id >= 0 && begins_thought(r, r->f->mark[i].id);
    if (!some) return;
    if (*all) allow_all(b, hn_vocab_size(r->v));
    *all = false;
    for (int i = 0; i < r->f->n; i++)
        if (r->f->mark[i].id >= 0 && begins_thought(r, r->f->mark[i].id)) forbid(b, r->f->mark[i].id);
    for (int32_t id = 0; id < hn_vocab_size(r->v) && named; id++)
        if (begins_thought(r, id)) forbid(b, id);
}

static hone_status mask_any(hn_reply *r, bitset b, bool *all, hone_error *err)
{
    int64_t n;
    if (r->only_end && mask_ends(r, b)) return HONE_OK;
    if (held(r)) return mask_must(r, b, err);
    if (r->calling && r->call) return hn_matcher_mask(r->call, b.word, b.n, &n, err);
    if (spent(r)) {
        int32_t id;
        hone_status st = next_closing(r, &id, err);
        if (st != HONE_OK) return st;
        if (id >= 0) {
            memset(b.word, 0, b.n * sizeof *b.word);
            allow(b, id);
            return HONE_OK;
        }
    }
    if ((!r->must[0] && !r->must[1]) || r->end || r->calling) {
        *all = true;
        return HONE_OK;
    }
    allow_all(b, hn_vocab_size(r->v));
    for (int32_t i = 0; i < r->tree->n_end; i++)
        if (too_early(r, r->tree->end_ids[i])) forbid(b, r->tree->end_ids[i]);
    if (too_early(r, r->f->end_id)) forbid(b, r->f->end_id);
    for (int i = 0; i < r->f->n; i++)
        if (too_early(r, r->f->mark[i].id)) forbid(b, r->f->mark[i].id);
    return HONE_OK;
}

hone_status hn_reply_mask(hn_reply *r, int64_t left, uint64_t *bits, size_t n_word, bool *all, hone_error *err)
{
    bitset b = { bits, n_word };
    *all = false;
    r->left = left;
    rewind_header(r);
    hone_status st = mask_any(r, b, all, err);
    if (st == HONE_OK && no_more(r)) mask_no_more(r, b, all);
    return st;
}

/* What the answer must be: calls that are required; else its form, or calls. */
hone_status hn_reply_hold_new(hn_reply *r, const hn_reply_setup *p, hone_error *err)
{
    hn_grammar *calls = r->kit ? r->kit->required : NULL, *must[2] = { p->form, NULL };
    bool harmony = r->kit && r->kit->f.shape == HN_CALLS_HARMONY;
    if (p->required && !calls)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "tool_choice: a call is required, and this chat template has no calls");
    if (p->required) must[0] = calls;
    else if (p->form && !harmony) must[1] = calls;
    if (calls && (p->required || must[1])) r->of_calls = p->required ? 0 : 1;
    r->headers = p->required && harmony;
    r->one_call = p->one_call;
    hone_status st = HONE_OK;
    if (must[0] || r->kit) st = hn_vocab_tokens(p->v, &r->tree, err);
    for (int i = 0; i < 2 && st == HONE_OK; i++)
        if (must[i]) st = hn_matcher_new(&r->must[i], must[i], r->tree, err);
    return st;
}

const char *hn_reply_stop(const hn_reply *r) { return r->end == HONE_REPLY_STOP ? r->stops.one[r->stop].s : NULL; }

const char *hn_reply_notes(const hn_reply *r) { return r->kit ? r->kit->notes : ""; }

void hn_reply_mask_free(hn_reply *r)
{
    hn_matcher_free(r->must[0]);
    hn_matcher_free(r->must[1]);
    hn_matcher_free(r->call);
    free(r->since.p);
    free(r->closing.data);
}
