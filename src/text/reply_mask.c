/* reply_mask: what an answer may say next. Reasoning is free until its budget is spent, then its end mark is all that
 * may come. The answer's text keeps the form that was asked for, from where reasoning ends; a mark that begins
 * reasoning may come in front of it. See reply_state.h. */
#include "text/reply_state.h"

#include <stdlib.h>

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static bool blank_text(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_blank(s[i])) return false;
    return n > 0;
}

/* Blanks that models put between their reasoning and the answer are no part of the form: one token of them. */
static bool may_pad(const hn_reply *r)
{
    return r->state == HN_REPLY_TEXT && r->first && r->skip && !r->padded && r->reasoned;
}

static bool is_padding(const hn_reply *r, int32_t id)
{
    size_t n;
    const char *s = hn_vocab_piece(r->v, id, false, &n);
    return s && may_pad(r) && blank_text(s, n);
}

static bool is_end(const hn_reply *r, int32_t id) { return id == r->f->end_id || hn_vocab_is_eog(r->v, id); }

/* The answer has a form, and this is where it holds. */
static bool formed(const hn_reply *r) { return r->form && r->state == HN_REPLY_TEXT; }

/* ---- the end of reasoning ------------------------------------------------------------------------------------- */

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

/* ---- tokens that come ------------------------------------------------------------------------------------------- */

static hone_status refuse(int32_t id, const char *why, hone_error *err)
{
    return HN_FAIL(err, HONE_E_ARG, "token id %d may not come here: %s (hone_reply_mask tells which may)", id, why);
}

static hone_status take_form(hn_reply *r, int32_t id, hone_error *err)
{
    bool ok = false;
    if (is_padding(r, id)) {
        r->padded = true;
        return HONE_OK;
    }
    if (is_end(r, id)) return hn_matcher_ends(r->form) ? HONE_OK : refuse(id, "the form is not complete", err);
    hone_status st = hn_matcher_token(r->form, id, &ok, err);
    if (st == HONE_OK && !ok) st = refuse(id, "it does not match the form of the answer", err);
    return st;
}

hone_status hn_reply_take(hn_reply *r, int32_t id, hone_error *err)
{
    hone_status st = HONE_OK;
    if (r->state == HN_REPLY_REASONING) {
        if (r->budget >= 0 && r->n_thought < r->budget) {
            r->n_thought++;
        } else if (spent(r)) {
            int32_t next;
            st = next_closing(r, &next, err);
            if (st == HONE_OK && next >= 0 && next != id) st = refuse(id, "the budget of reasoning is spent", err);
            if (st == HONE_OK && next >= 0) r->n_closed++;
        }
    } else if (formed(r) && !hn_reply_mark_of(r, id)) {
        st = take_form(r, id, err);
    }
    return st;
}

hone_status hn_reply_begin_text(hn_reply *r, size_t from, hone_error *err)
{
    if (!r->form) return HONE_OK;
    hn_stream_rest held = hn_stream_held(r->stream);
    while (from < r->pend.n && is_blank(r->pend.p[from])) from++;
    hone_str rest[] = { { r->pend.p + from, r->pend.n - from }, held.text, held.raw };
    for (int i = 0; i < 3; i++) {
        bool ok;
        hone_status st = hn_matcher_bytes(r->form, rest[i].ptr, rest[i].len, &ok, err);
        if (st == HONE_OK && !ok)
            st = HN_FAIL(err, HONE_E_ARG, "the token that ended the reasoning goes on with %s, not as the form does",
                         HN_ESC(rest[i].ptr, rest[i].len));
        if (st != HONE_OK) return st;
    }
    return HONE_OK;
}

/* ---- masks --------------------------------------------------------------------------------------------------------- */

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

/* What the form of the answer's text allows, and marks that may come in front of it. */
static hone_status mask_form(hn_reply *r, bitset b, hone_error *err)
{
    int64_t n;
    hone_status st = hn_matcher_mask(r->form, b.word, b.n, &n, err);
    if (st != HONE_OK) return st;
    if (hn_matcher_ends(r->form)) allow(b, r->f->end_id);
    if (may_pad(r)) allow_blanks(b, r->tree);
    for (int i = 0; i < r->f->n; i++) {
        const hn_reply_mark *m = &r->f->mark[i];
        if (m->id < 0 || !hn_reply_counts(r, m, r->first)) continue;
        bool before = r->first && hn_matcher_steps(r->form) == 0;
        if ((m->act == HN_REPLY_OPEN && before && !r->reasoned) || (m->act == HN_REPLY_SAY && before) ||
            (m->act == HN_REPLY_UNSAY && hn_matcher_ends(r->form)) ||
            (m->act == HN_REPLY_FINISH && hn_matcher_ends(r->form)))
            allow(b, m->id);
        else forbid(b, m->id);
    }
    return HONE_OK;
}

hone_status hn_reply_mask(hn_reply *r, uint64_t *bits, size_t n_word, bool *all, hone_error *err)
{
    bitset b = { bits, n_word };
    *all = false;
    if (formed(r)) return mask_form(r, b, err);
    if (spent(r)) {
        int32_t id;
        hone_status st = next_closing(r, &id, err);
        if (st != HONE_OK) return st;
        if (id >= 0) {
            memset(bits, 0, n_word * sizeof *bits);
            allow(b, id);
            return HONE_OK;
        }
    }
    if (!r->form || r->end) {
        *all = true;
        return HONE_OK;
    }
    allow_all(b, hn_vocab_size(r->v)); /* an answer has to come before the end */
    for (int32_t i = 0; i < r->tree->n_end; i++)
        if (!hn_reply_mark_of(r, r->tree->end_ids[i])) forbid(b, r->tree->end_ids[i]);
    if (r->f->end_id >= 0 && !hn_reply_mark_of(r, r->f->end_id)) forbid(b, r->f->end_id);
    return HONE_OK;
}

const char *hn_reply_stop(const hn_reply *r)
{
    return r->end == HONE_REPLY_STOP ? hn_stream_stop_text(r->stream) : NULL;
}

const char *hn_reply_notes(const hn_reply *r) { return r->kit ? r->kit->notes : ""; }

void hn_reply_mask_free(hn_reply *r)
{
    hn_matcher_free(r->form);
    free(r->closing.data);
}
