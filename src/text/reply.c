/* reply: one answer, read token by token; see reply.h. A machine of five states, whose arrows are the marks of a
 * format. Text goes through a stream (whole characters, stop strings), then past the marks that are text, which are
 * held back while they may still be completed. So the parts do not depend on how an answer was cut into tokens. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "text/reply_state.h"

#include <stdlib.h>

enum { UNIT_SEPARATOR = 31 };

enum { TEXT_OF_TRIGGER = sizeof((hn_reply_mark *)0)->text };

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* ---- text that knows its tokens ---------------------------------------------------------------------------- */

/* of: of each byte; NULL: all of them came from no token. */
static hone_status put(hn_traced *t, const char *s, const int32_t *of, size_t n, hone_error *err)
{
    if (n > t->cap - t->n || !t->p) { /* also for nothing: whoever reads may add 0 to it */
        size_t cap = (t->n + n) * 2 + 64;
        char *p = realloc(t->p, cap);
        if (p) t->p = p;
        int32_t *q = p ? realloc(t->of, cap * sizeof *q) : NULL;
        if (!q) return HN_FAIL(err, HONE_E_NOMEM, "an answer's text of %zu bytes", cap);
        t->of = q;
        t->cap = cap;
    }
    if (n) memcpy(t->p + t->n, s, n);
    if (n && of) memcpy(t->of + t->n, of, n * sizeof *of);
    for (size_t i = 0; i < n && !of; i++) t->of[t->n + i] = -1;
    t->n += n;
    return HONE_OK;
}

/* All of one token. */
static hone_status put_one(hn_traced *t, const char *s, int32_t of, size_t n, hone_error *err)
{
    hone_status st = put(t, s, NULL, n, err);
    for (size_t i = 0; i < n && st == HONE_OK; i++) t->of[t->n - n + i] = of;
    return st;
}

static void drop_front(hn_traced *b, size_t n)
{
    b->n -= n;
    if (!n || !b->n) return;
    memmove(b->p, b->p + n, b->n);
    memmove(b->of, b->of + n, b->n * sizeof *b->of);
}

static void free_traced(hn_traced *t)
{
    free(t->p);
    free(t->of);
}

/* ---- parts ----------------------------------------------------------------------------------------------- */

static bool is_text(hone_part part)
{
    return part == HONE_PART_TEXT || part == HONE_PART_COMMENTARY || part == HONE_PART_CALL;
}

static hone_part part_of(const hn_reply *r)
{
    switch (r->state) {
    case HN_REPLY_REASONING: return r->raw ? HONE_PART_TEXT : HONE_PART_REASONING;
    case HN_REPLY_COMMENTARY: return HONE_PART_COMMENTARY;
    case HN_REPLY_CALL: return HONE_PART_CALL;
    default: return HONE_PART_TEXT;
    }
}

/* Text of a part, as it is; call: which, or -1. */
static hone_status put_part(hn_reply *r, hone_part part, const char *s, const int32_t *of, size_t n, int32_t call,
                            hone_error *err)
{
    bool own = part == HONE_PART_CALL_NAME || part == HONE_PART_CALL_END;
    if (!n && !own) return HONE_OK;
    if (own || !r->n_piece || r->piece[r->n_piece - 1].part != part || r->piece[r->n_piece - 1].call != call) {
        if (r->n_piece == r->cap_piece) {
            size_t cap = r->cap_piece * 2 + 4;
            hn_reply_piece *p = realloc(r->piece, cap * sizeof *p);
            if (p) r->piece = p;
            hone_reply_part *q = p ? realloc(r->part, cap * sizeof *q) : NULL;
            if (!q) return HN_FAIL(err, HONE_E_NOMEM, "%zu parts of an answer", cap);
            r->part = q;
            r->cap_piece = cap;
        }
        r->piece[r->n_piece++] = (hn_reply_piece){ .part = part, .begin = r->out.n, .call = call, .id = SIZE_MAX };
    }
    return put(&r->out, s, of, n, err);
}

/* What was held is no stop string. */
static hone_status release(hn_reply *r, hone_error *err)
{
    hone_status st = put_part(r, r->held_of, r->held.p, r->held.of, r->held.n, -1, err);
    r->held.n = 0;
    hn_stops_reset(&r->stops);
    return st;
}

/* Text that ends at a stop string, the first that is complete. */
static hone_status put_watched(hn_reply *r, hone_part part, const char *s, const int32_t *of, size_t n, hone_error *err)
{
    hone_status st = part == r->held_of ? HONE_OK : release(r, err);
    size_t longest = 0, i = 0;
    r->held_of = part;
    while (i < n && !longest) longest = hn_stops_byte(&r->stops, s[i++], &r->stop);
    if (st == HONE_OK) st = put(&r->held, s, of, i, err);
    if (st != HONE_OK) return st;
    size_t keep = longest ? longest : hn_stops_held(&r->stops);
    st = put_part(r, part, r->held.p, r->held.of, r->held.n - keep, -1, err);
    drop_front(&r->held, r->held.n - keep);
    if (!longest) return st;
    r->held.n = 0;
    r->end = HONE_REPLY_STOP;
    return st;
}

static hone_status emit_of(hn_reply *r, hone_part part, const char *s, const int32_t *of, size_t n, int32_t call,
                           hone_error *err)
{
    bool text = is_text(part);
    if (r->prompting || r->end == HONE_REPLY_STOP) return HONE_OK;
    if (text && r->stops.n) return n ? put_watched(r, part, s, of, n, err) : HONE_OK;
    hone_status st = r->held.n ? release(r, err) : HONE_OK;
    if (!text) hn_stops_reset(&r->stops);
    return st == HONE_OK ? put_part(r, part, s, of, n, call, err) : st;
}

static hone_status emit(hn_reply *r, hone_part part, const char *s, const int32_t *of, size_t n, hone_error *err)
{
    return emit_of(r, part, s, of, n, -1, err);
}

static hone_status emit_blank(hn_reply *r, hone_part part, hone_error *err)
{
    return emit(r, part, r->blank.p, r->blank.of, r->blank.n, err);
}

/* What of a header the model wrote. */
static hone_status emit_header(hn_reply *r, hone_error *err)
{
    size_t at = r->n_given;
    return emit(r, HONE_PART_TEXT, r->header + at, r->header_of + at, r->n_header - at, err);
}

/* What the reader of calls found. */
static hone_status emit_call(void *arg, hone_part part, const char *s, size_t n, int32_t call, const char *id,
                             hone_error *err)
{
    hn_reply *r = arg;
    hone_status st = emit_of(r, part, s, NULL, n, call, err);
    if (st == HONE_OK && id) {
        r->piece[r->n_piece - 1].id = r->ids.n;
        st = hn_grown_put(&r->ids, id, strlen(id) + 1, err);
    }
    return st;
}

static void enter(hn_reply *r, hn_reply_state state, bool skip)
{
    r->state = state;
    r->first = true;
    r->skip = skip && !r->raw;
    r->blank.n = 0;
    if (state == HN_REPLY_REASONING) r->closing.n = r->n_closed = 0; /* its end is its own */
}

/* What stands between marks. Blanks are held where they may be the edge of a part: in front of an answer, and at both
 * ends of reasoning, whose template has its own there. */
static hone_status say(hn_reply *r, const char *s, const int32_t *of, size_t n, hone_error *err)
{
    hone_status st = HONE_OK;
    if (!n) return st;
    if (r->state == HN_REPLY_HEADER) {
        size_t room = HN_REPLY_HEADER_MAX - r->n_header, k = n < room ? n : room;
        memcpy(r->header + r->n_header, s, k);
        memcpy(r->header_of + r->n_header, of, k * sizeof *of);
        r->n_header += k;
        if (n < room) return HONE_OK;
        /* no header is that long: it was text, behind a mark that never came */
        enter(r, HN_REPLY_TEXT, false);
        st = emit_header(r, err);
        r->first = false;
        s += k, of += k, n -= k;
    }
    while (n && st == HONE_OK) {
        bool holds = r->first || (r->state == HN_REPLY_REASONING && !r->raw);
        size_t k = 0;
        while (k < n && is_blank(s[k]) && holds) k++;
        if (k) {
            st = put(&r->blank, s, of, k, err);
        } else {
            if (!(r->first && r->skip)) st = emit_blank(r, part_of(r), err);
            r->blank.n = 0;
            r->first = false;
            holds = r->state == HN_REPLY_REASONING && !r->raw;
            while (k < n && !(holds && is_blank(s[k]))) k++;
            if (st == HONE_OK) st = emit(r, part_of(r), s, of, k, err);
        }
        s += k, of += k, n -= k;
    }
    return st;
}

/* ---- headers --------------------------------------------------------------------------------------------- */

static bool begins(const char *s, size_t n, const char *word)
{
    return n >= strlen(word) && memcmp(s, word, strlen(word)) == 0;
}

/* "… to=functions.NAME …": the text behind the header is the arguments, where NAME is offered; else it is text. */
static hone_status header_call(hn_reply *r, hone_error *err)
{
    static const char to[] = "to=functions.";
    size_t n = r->n_header, k = 0;
    const char *at = n ? memmem(r->header, n, to, sizeof to - 1) : NULL;
    if (at) {
        at += sizeof to - 1;
        while (at + k < r->header + n && !is_blank(at[k]) && at[k] != UNIT_SEPARATOR) k++;
    }
    r->group = 0;
    if (!at || !r->kit || !hn_call_kit_find(r->kit, at, k)) {
        enter(r, HN_REPLY_TEXT, false);
        return HONE_OK;
    }
    enter(r, HN_REPLY_CALL, false);
    r->calling = true;
    r->fed.n = 0;
    hone_status st = hn_call_begin_named(r->reader, at, k, err);
    hn_call_mark body;
    hn_call_encode(&body, r->v, "<|message|>", false);
    hn_grown begun = { 0 };
    if (st == HONE_OK) st = hn_grown_put(&begun, at, k, err);
    if (st == HONE_OK) st = hn_grown_put(&begun, body.p, body.n, err);
    if (st == HONE_OK) st = hn_reply_arm(r, NULL, begun.p, begun.n, err);
    free(begun.p);
    return st;
}

/* The first field of a header that says more than that the model speaks to itself; NULL: there is none. */
static const char *first_field(const hn_reply *r, size_t *n)
{
    static const char to_itself[] = "to=assistant"; /* no tool has that name: functions.… do */
    const char *end = r->header + r->n_header, *sep = memchr(r->header, UNIT_SEPARATOR, r->n_header);
    for (; sep; sep = memchr(sep, UNIT_SEPARATOR, (size_t)(end - sep))) {
        while (++sep < end && is_blank(*sep)) {}
        const char *self = memmem(sep, (size_t)(end - sep), to_itself, sizeof to_itself - 1);
        if (self && memchr(self, UNIT_SEPARATOR, (size_t)(end - self))) continue; /* what it says next counts */
        *n = (size_t)(end - sep);
        return sep;
    }
    *n = 0;
    return NULL;
}

/* Is it to somebody, and not to itself? */
static bool is_call(const hn_reply *r)
{
    bool call = false;
    const char *end = r->header + r->n_header;
    for (const char *at = r->header; (at = memmem(at, (size_t)(end - at), "to=", 3)); at += 3)
        call |= !begins(at, (size_t)(end - at), "to=assistant");
    return call;
}

const char *hn_reply_channel(const hn_reply *r, size_t *n)
{
    bool header = r->state == HN_REPLY_HEADER && !r->pend.n && strcmp(r->f->kind, "harmony") == 0;
    return header && !is_call(r) ? first_field(r, n) : NULL;
}

/* The header is "assistant to=functions.f", a separator, "analysis" … Which part its text is, and whether it is the
 * model's at all. */
static hone_status read_header(hn_reply *r, hone_error *err)
{
    const char *h = r->header, *sep = memchr(h, UNIT_SEPARATOR, r->n_header);
    size_t n_role = sep ? (size_t)(sep - h) : r->n_header, n_channel;
    const char *channel = first_field(r, &n_channel);
    while (n_role && is_blank(*h)) h++, n_role--;
    bool call = is_call(r);
    if (n_role && !begins(h, n_role, "assistant") && !r->prompting) r->end = HONE_REPLY_TURN; /* another speaks */
    else if (strcmp(r->f->kind, "recipient") == 0) { /* to itself, to the user, or to a tool, which the text calls */
        static const char to_self[] = "to=self";
        const bool thought = memmem(r->header, r->n_header, to_self, sizeof to_self - 1);
        enter(r, thought ? HN_REPLY_REASONING : HN_REPLY_TEXT, thought);
    } else if (call && !r->prompting && (r->kit || r->silent)) return header_call(r, err);
    else if (call) enter(r, HN_REPLY_CALL, false);
    else if (!n_channel || begins(channel, n_channel, "final")) enter(r, HN_REPLY_TEXT, false);
    else if (begins(channel, n_channel, "commentary")) enter(r, HN_REPLY_COMMENTARY, false);
    else enter(r, HN_REPLY_REASONING, true); /* analysis, thought, or one that is not known */
    r->group = 0;
    return HONE_OK;
}

/* Gemma 4: a part that ends before the line of its channel does was thought, if it is more than that name. */
static hone_status thought_in_header(hn_reply *r, hone_error *err)
{
    static const char name[] = "thought";
    const char *s = r->header, *end = s + r->n_header;
    for (const char *at = s; at < end; at++)
        if (*at == UNIT_SEPARATOR) s = at + 1;
    while (s < end && is_blank(*s)) s++;
    while (end > s && is_blank(end[-1])) end--;
    if (begins(s, (size_t)(end - s), name) && (size_t)(end - s) == strlen(name)) return HONE_OK;
    return emit(r, HONE_PART_REASONING, s, r->header_of + (s - r->header), (size_t)(end - s), err);
}

static void begin_header(hn_reply *r, bool field)
{
    if (!field || r->state != HN_REPLY_HEADER) {
        enter(r, HN_REPLY_HEADER, false);
        r->n_header = 0;
    }
    if (field && r->n_header < HN_REPLY_HEADER_MAX) {
        r->header_of[r->n_header] = -1;
        r->header[r->n_header++] = UNIT_SEPARATOR;
    }
    r->n_given = r->n_header;
    r->announced = true;
}

/* Does it begin calls that the reader takes apart? */
static bool begins_calls(const hn_reply *r, const hn_reply_mark *m) { return m == &r->trigger || m == &r->bare_call; }

/* The reader's turn, behind what the model left out. */
static hone_status begin_reading(hn_reply *r, bool bare, hone_error *err)
{
    hn_call_outcome what;
    r->calling = true;
    r->state = HN_REPLY_CALL;
    r->given = bare ? r->before_bare.n : 0;
    r->fed.n = 0;
    hn_call_begin(r->reader);
    return bare ? hn_call_feed(r->reader, r->before_bare.p, r->before_bare.n, false, &what, err) : HONE_OK;
}

/* Does the mark begin what wraps the answer? */
static void note_wrapper(hn_reply *r, const hn_reply_mark *m)
{
    for (int i = 0; i < r->f->n; i++)
        r->wrapped |= r->f->mark[i].act == HN_REPLY_SAY && strcmp(r->f->mark[i].text, m->text) == 0;
}

/* of: as of emit, of the mark's text. */
static hone_status act(hn_reply *r, const hn_reply_mark *m, const int32_t *of, hone_error *err)
{
    bool thought = r->state == HN_REPLY_REASONING, shown = r->raw && (m->act == HN_REPLY_OPEN || thought);
    if (shown && m->act <= HN_REPLY_CLOSE) { /* the tags are text, too */
        hone_status st = emit_blank(r, HONE_PART_TEXT, err);
        if (st == HONE_OK) st = emit(r, HONE_PART_TEXT, m->text, of, strlen(m->text), err);
        if (st != HONE_OK) return st;
    }
    switch ((hn_reply_act)m->act) {
    case HN_REPLY_OPEN:
        enter(r, HN_REPLY_REASONING, true);
        r->group = m->group;
        break;
    case HN_REPLY_CLOSE: /* which may be what wraps the answer, too */
        if (r->state == HN_REPLY_HEADER) {
            hone_status st = thought_in_header(r, err);
            if (st != HONE_OK) return st;
            r->reasoned = true;
        }
        enter(r, HN_REPLY_TEXT, true);
        note_wrapper(r, m);
        break;
    case HN_REPLY_SAY:
        enter(r, HN_REPLY_TEXT, true);
        note_wrapper(r, m);
        break;
    case HN_REPLY_UNSAY: r->wrapped = false; break;
    case HN_REPLY_TOOLS:
        if (begins_calls(r, m)) { /* blanks in front of it are no text */
            hone_status st = begin_reading(r, m == &r->bare_call, err);
            if (st != HONE_OK) return st;
        } else {
            enter(r, HN_REPLY_CALL, false);
        }
        break;
    case HN_REPLY_START: begin_header(r, false); break;
    case HN_REPLY_FIELD: begin_header(r, true); break;
    case HN_REPLY_BODY: {
        hone_status st = read_header(r, err);
        if (st != HONE_OK) return st;
        break;
    }
    case HN_REPLY_FINISH:
        if (r->state == HN_REPLY_TEXT && !r->prompting) {
            r->end = HONE_REPLY_TURN;
        } else {
            enter(r, HN_REPLY_HEADER, false);
            r->n_header = r->n_given = 0;
            r->announced = false;
        }
        break;
    }
    r->reasoned |= thought && r->state != HN_REPLY_REASONING;
    return HONE_OK;
}

/* ---- marks ----------------------------------------------------------------------------------------------- */

bool hn_reply_counts(const hn_reply *r, const hn_reply_mark *m, bool first)
{
    return m->from >> r->state & 1 && (m->act != HN_REPLY_TOOLS || (!r->silent && hn_reply_may_call(r))) &&
           (!m->first || first || r->prompting) &&
           (m->act != HN_REPLY_CLOSE || m->group == r->group || r->state != HN_REPLY_REASONING) &&
           (m->act != HN_REPLY_UNSAY || r->wrapped);
}

/* The mark that is spelt at s; *partial: s[0..n) may become one. Of several that begin the same the shortest: a longer
 * one would depend on how much of the text has come. */
static const hn_reply_mark *mark_at(const hn_reply *r, const char *s, size_t n, bool first, bool barred, bool *partial)
{
    const hn_reply_mark *best = NULL;
    *partial = false;
    bool bare = r->bare_call.text[0] && !r->must[0] && !r->must[1]; /* in a form it is text */
    for (int i = !r->kit || barred ? 0 : bare ? -2 : -1; i < r->f->n; i++) {
        const hn_reply_mark *m = i == -2 ? &r->bare_call : i < 0 ? &r->trigger : &r->f->mark[i];
        size_t len = strlen(m->text);
        if ((m->id >= 0 && !r->prompting) || m->text[0] != s[0] || !hn_reply_counts(r, m, first)) continue;
        if (n < len && memcmp(s, m->text, n) == 0) *partial = true;
        if (n >= len && memcmp(s, m->text, len) == 0 && (!best || len < strlen(best->text))) best = m;
    }
    return best;
}

/* The number of the token that byte i of what the reader left came from. */
static int32_t rest_of(const hn_reply *r, size_t len, size_t i)
{
    return len - i > r->fed.n ? -1 : r->fed.of[r->fed.n - (len - i)];
}

/* What the reader left was no call: it is pending again, tokens in it as their text. */
static hone_status put_plain(hn_reply *r, hone_str s, hone_error *err)
{
    hone_status st = HONE_OK;
    for (size_t i = 0, n; i < s.len && st == HONE_OK; i += n) {
        const char *esc = memchr(s.ptr + i, HN_CALL_ESCAPE, s.len - i);
        n = esc ? (size_t)(esc - (s.ptr + i)) : s.len - i;
        for (size_t k = 0; k < n && st == HONE_OK; k++)
            st = put_one(&r->pend, s.ptr + i + k, rest_of(r, s.len, i + k), 1, err);
        if (!esc || st != HONE_OK) continue;
        size_t len;
        const char *piece = hn_vocab_piece(r->v, hn_call_get_token(esc + 1), true, &len);
        st = put_one(&r->pend, piece, rest_of(r, s.len, i + n), len, err);
        n += HN_CALL_TOKEN;
    }
    return st;
}

/* What began as a call may or must be of the form: nothing of it has been read, and it is pending as text again. */
static hone_status put_formed(hn_reply *r, hone_error *err)
{
    hone_status st = put(&r->fed, r->pend.p, r->pend.of, r->pend.n, err);
    r->pend.n = 0;
    r->calling = false;
    r->barred = true;
    r->state = HN_REPLY_TEXT;
    if (st == HONE_OK) st = put_plain(r, (hone_str){ r->fed.p, r->fed.n }, err);
    r->fed.n = 0;
    return st;
}

/* What is pending is the reader's; what it leaves is pending again. */
static hone_status scan_calls(hn_reply *r, bool ends, hone_error *err)
{
    hn_call_outcome what;
    bool both = hn_reply_undecided(r), form = r->of_calls == 1 && !hn_reply_may_call(r);
    if (both && !ends) return HONE_OK;
    if (form || (both && !hn_matcher_ends(r->must[1]))) return put_formed(r, err);
    bool held = !both && (r->must[0] || r->must[1] || r->call); /* the beginning of a call, whatever is missing */
    hone_status st = put(&r->fed, r->pend.p, r->pend.of, r->pend.n, err);
    if (st == HONE_OK) st = hn_call_feed(r->reader, r->pend.p, r->pend.n, ends, &what, err);
    r->pend.n = 0;
    size_t left = st == HONE_OK ? hn_call_rest(r->reader).len : 0;
    if (left < r->fed.n) drop_front(&r->fed, r->fed.n - left);
    if (st == HONE_OK && what == HN_CALLS_MORE) st = hn_reply_calls_on(r, err);
    if (st != HONE_OK || what == HN_CALLS_MORE) return st;
    r->calling = false;
    if ((st = hn_reply_calls_on(r, err)) != HONE_OK) return st;
    r->barred = what == HN_CALLS_TEXT;
    hone_str rest = hn_call_rest(r->reader);
    if (what == HN_CALLS_TEXT) r->state = HN_REPLY_TEXT, rest.ptr += r->given, rest.len -= r->given;
    else enter(r, HN_REPLY_TEXT, true);
    r->given = 0;
    st = ends && held ? HONE_OK : put_plain(r, rest, err);
    r->fed.n = 0;
    return st;
}

/* Reads the text that is pending, up to what may become a mark; where nothing can complete it (all) all of it. */
static hone_status scan_text(hn_reply *r, bool all, hone_error *err)
{
    hone_status st = HONE_OK;
    size_t from = 0, i = 0;
    bool first = r->first;
    while (i < r->pend.n && st == HONE_OK && !r->end && !r->calling) {
        bool partial, barred = r->barred && i == 0;
        const hn_reply_mark *m = mark_at(r, r->pend.p + i, r->pend.n - i, first, barred, &partial);
        if (m) {
            st = say(r, r->pend.p + from, r->pend.of + from, i - from, err);
            if (st == HONE_OK && !r->end) st = act(r, m, r->pend.of + i, err);
            if (r->end) break;
            const hn_grown *left_out = m == &r->bare_call ? &r->before_bare : NULL;
            if (st == HONE_OK && begins_calls(r, m)) st = hn_reply_arm(r, left_out, r->pend.p + i, r->pend.n - i, err);
            from = i += begins_calls(r, m) ? 0 : strlen(m->text);
            first = r->first;
            if (st == HONE_OK && r->state == HN_REPLY_TEXT && !r->prompting) st = hn_reply_begin_text(r, i, err);
        } else if (partial && !all) {
            break;
        } else {
            first = first && is_blank(r->pend.p[i]);
            i++;
        }
    }
    if (st == HONE_OK && !r->end && i > from) st = say(r, r->pend.p + from, r->pend.of + from, i - from, err);
    drop_front(&r->pend, i);
    if (i) r->barred = false;
    if (r->end) r->pend.n = 0;
    return st;
}

/* ends: and so does the answer. */
static hone_status scan(hn_reply *r, bool all, bool ends, hone_error *err)
{
    for (;;) {
        hone_status st;
        if (r->calling) {
            if (!r->pend.n && !ends) return HONE_OK;
            st = scan_calls(r, ends, err);
            if (st != HONE_OK || r->calling) return st;
        }
        st = scan_text(r, all, err);
        if (st != HONE_OK || r->end || !r->calling) return st;
    }
}

static hone_status feed(hn_reply *r, const char *s, const int32_t *of, size_t n, hone_error *err)
{
    hone_status st = put(&r->pend, s, of, n, err);
    return st == HONE_OK ? scan(r, false, false, err) : st;
}

/* A mark of calls, which is the token that was pushed. */
static hone_status feed_token(hn_reply *r, const char *s, size_t n, hone_error *err)
{
    hone_status st = put_one(&r->pend, s, r->n_pushed - 1, n, err);
    return st == HONE_OK ? scan(r, false, false, err) : st;
}

/* A mark that is the token that was pushed. */
static hone_status act_token(hn_reply *r, const hn_reply_mark *m, hone_error *err)
{
    int32_t of[sizeof m->text];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) of[i] = r->n_pushed - 1;
    return act(r, m, of, err);
}

/* What waits for more text gets none: a mark that is a token comes, or the end. */
static hone_status settle(hn_reply *r, bool ends, hone_error *err)
{
    const char *text;
    size_t n;
    hone_status st = hn_stream_flush(r->stream, &text, &n, err);
    if (st == HONE_OK) st = put(&r->pend, text, hn_stream_sources(r->stream), n, err);
    return st == HONE_OK ? scan(r, true, ends, err) : st;
}

const hn_reply_mark *hn_reply_mark_of(const hn_reply *r, int32_t id)
{
    if (r->kit && id == r->trigger.id && hn_reply_counts(r, &r->trigger, r->first)) return &r->trigger;
    if (r->kit && id == r->bare_call.id && hn_reply_counts(r, &r->bare_call, r->first)) return &r->bare_call;
    for (int i = 0; i < r->f->n; i++)
        if (r->f->mark[i].id == id && hn_reply_counts(r, &r->f->mark[i], r->first)) return &r->f->mark[i];
    return NULL;
}

/* ---- the interface --------------------------------------------------------------------------------------- */

/* Where the prompt leaves off. A mark counts there only if the template wrote it: somebody who types "<think>" at the
 * end of a message has opened nothing. */
static hone_status read_prompt(hn_reply *r, const char *prompt, size_t len, const hone_span *input, size_t n_input,
                               hone_error *err)
{
    size_t from = n_input ? input[n_input - 1].end : 0;
    r->prompting = true;
    hone_status st = put(&r->pend, prompt + from, NULL, len - from, err);
    if (st == HONE_OK) st = scan(r, true, true, err);
    r->prompting = false;
    r->pend.n = r->blank.n = 0;
    r->first = true;
    r->skip = r->state == HN_REPLY_REASONING;
    r->n_given = r->n_header;
    r->announced = false;
    return st;
}

/* "TOKEN\n<function=": the text alone begins a call, too, where the model leaves out the token; and the token of a call
 * where it leaves out that of the section. */
static hone_status make_bare_call(hn_reply *r, hone_error *err)
{
    enum { SHORTEST = 4 };
    const hn_call_mark *m = &r->kit->begin, *section = &r->kit->section_begin;
    size_t i = HN_CALL_TOKEN;
    if (r->trigger.id >= 0 && section->n == HN_CALL_TOKEN && m->n && (unsigned char)*m->p == HN_CALL_ESCAPE) {
        int32_t id = hn_call_get_token(m->p + 1);
        if (id == r->trigger.id) return HONE_OK;
        r->bare_call = (hn_reply_mark){ .id = id, .act = HN_REPLY_TOOLS, .from = 1 << HN_REPLY_TEXT };
        return hn_grown_put(&r->before_bare, section->p, section->n, err);
    }
    if (r->kit->f.shape != HN_CALLS_TAGGED || r->trigger.id < 0 || r->kit->section_begin.n) return HONE_OK;
    while (i < m->n && is_blank(m->p[i])) i++;
    size_t n = i < m->n ? m->n - i : 0;
    if (n < SHORTEST || n >= sizeof r->bare_call.text || memchr(m->p + i, HN_CALL_ESCAPE, n)) return HONE_OK;
    r->bare_call = (hn_reply_mark){ .id = -1, .act = HN_REPLY_TOOLS, .from = 1 << HN_REPLY_TEXT };
    memcpy(r->bare_call.text, m->p + i, n);
    return hn_grown_put(&r->before_bare, m->p, i, err);
}

/* What may be called, and how calls begin. */
static hone_status take_kit(hn_reply *r, const hn_reply_setup *p, hone_error *err)
{
    const hn_call_format *f = &p->kit->f;
    const hn_call_mark *m = &p->kit->trigger;
    if (f->shape == HN_CALLS_NONE) return HONE_OK; /* the template has no calls */
    hn_call_kit_hold(p->kit);
    r->kit = p->kit;
    r->trigger = (hn_reply_mark){ .id = p->kit->trigger_id, .act = HN_REPLY_TOOLS };
    r->bare_call.id = -1;
    hone_status st = hn_call_reader_new(&r->reader, r->kit, p->id_seed, emit_call, r, err);
    if (st != HONE_OK) return st;
    if (r->trigger.id < 0) memcpy(r->trigger.text, m->p, m->n < TEXT_OF_TRIGGER ? m->n : TEXT_OF_TRIGGER - 1);
    if (f->bare && !m->n && f->shape == HN_CALLS_JSON) {
        r->trigger.text[0] = '{';
        r->trigger.first = true;
        r->trigger.from = 1 << HN_REPLY_TEXT;
    } else if (r->trigger.id >= 0 || r->trigger.text[0]) {
        r->trigger.from = 1 << HN_REPLY_TEXT;
    }
    if ((st = make_bare_call(r, err)) != HONE_OK) return st;
    if (f->bare && m->n && p->len >= m->n && memcmp(p->prompt + p->len - m->n, m->p, m->n) == 0) {
        hn_call_outcome what; /* the prompt has begun what may be a call */
        hn_call_begin(r->reader);
        r->calling = true;
        st = hn_call_feed(r->reader, m->p, m->n, false, &what, err);
    }
    return st;
}

hone_status hn_reply_open(hn_reply **out, const hn_reply_setup *p, hone_error *err)
{
    *out = NULL;
    hn_reply *r = calloc(1, sizeof *r);
    hone_status st = r ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "an answer with %zu stop strings", p->n_stops);
    if (st == HONE_OK) {
        *r = (hn_reply){ .v = p->v, .f = p->f, .first = true, .raw = p->marks_as_text, .told = -1, .of_calls = -1 };
        r->budget = p->reasoning_budget;
        r->silent = p->silent;
        st = hn_stops_new(&r->stops, p->stops, p->n_stops, err);
    }
    if (st == HONE_OK) st = hn_stream_new(&r->stream, p->v, &(const char *){ p->f->end }, p->f->end[0] != 0, err);
    if (st == HONE_OK && p->len) st = read_prompt(r, p->prompt, p->len, p->input, p->n_input, err);
    if (st == HONE_OK && p->kit) st = take_kit(r, p, err);
    if (st == HONE_OK) st = hn_reply_hold_new(r, p, err);
    if (st == HONE_OK) *out = r;
    else hn_reply_free(r);
    return st;
}

hone_status hn_reply_new(hn_reply **out, const hn_vocab *v, const hn_reply_format *f, const char *prompt, size_t len,
                         const hone_span *input, size_t n_input, const char *const *stops, size_t n_stops,
                         hone_error *err)
{
    return hn_reply_open(out,
                         &(hn_reply_setup){ .v = v,
                                            .f = f,
                                            .prompt = prompt,
                                            .len = len,
                                            .input = input,
                                            .n_input = n_input,
                                            .stops = stops,
                                            .n_stops = n_stops,
                                            .reasoning_budget = -1 },
                         err);
}

void hn_reply_free(hn_reply *r)
{
    if (!r) return;
    hn_stream_free(r->stream);
    hn_reply_mask_free(r);
    free_traced(&r->pend);
    free_traced(&r->blank);
    free_traced(&r->out);
    free_traced(&r->held);
    free_traced(&r->fed);
    free(r->token);
    hn_stops_free(&r->stops);
    free(r->ids.p);
    free(r->before_bare.p);
    free(r->thought.p);
    hn_call_reader_free(r->reader);
    hn_call_kit_drop(r->kit);
    free(r->piece);
    free(r->part);
    free(r);
}

static void begin_call(hn_reply *r, const hone_reply_part **parts, size_t *n)
{
    r->out.n = r->n_piece = r->ids.n = r->n_token = 0;
    *parts = NULL;
    *n = 0;
}

/* Names the tokens of a piece that no text part has named. */
static hone_status name_tokens(hn_reply *r, hn_reply_piece *p, size_t end, hone_error *err)
{
    p->token = r->n_token;
    for (size_t i = p->begin; i < end; i++) {
        if (r->out.of[i] <= r->told) continue;
        if (r->n_token == r->cap_token) {
            size_t cap = r->cap_token * 2 + 8;
            int32_t *more = realloc(r->token, cap * sizeof *more);
            if (!more) return HN_FAIL(err, HONE_E_NOMEM, "%zu tokens of an answer's parts", cap);
            r->token = more;
            r->cap_token = cap;
        }
        r->token[r->n_token++] = r->told = r->out.of[i];
    }
    p->n_token = r->n_token - p->token;
    return HONE_OK;
}

/* The text stands still now: parts can point to it. */
static hone_status show(hn_reply *r, const hone_reply_part **parts, size_t *n, hone_error *err)
{
    for (size_t i = 0; i < r->n_piece; i++) {
        hn_reply_piece *p = &r->piece[i];
        size_t end = i + 1 < r->n_piece ? p[1].begin : r->out.n;
        hone_status st = is_text(p->part) ? name_tokens(r, p, end, err) : HONE_OK;
        if (st != HONE_OK) return st;
        r->part[i] = (hone_reply_part){ .part = p->part,
                                        .text = r->out.p + p->begin,
                                        .len = end - p->begin,
                                        .call = p->call,
                                        .id = p->id == SIZE_MAX ? NULL : r->ids.p + p->id };
    }
    for (size_t i = 0; i < r->n_piece; i++) { /* the list stands still, too */
        r->part[i].n_tokens = r->piece[i].n_token;
        r->part[i].tokens = r->piece[i].n_token ? r->token + r->piece[i].token : NULL;
    }
    *parts = r->part;
    *n = r->n_piece;
    return HONE_OK;
}

/* The first token of a text, where it is older than `than`. */
static int32_t oldest_of(const int32_t *of, size_t n, int32_t than)
{
    size_t i = 0;
    while (i < n && of[i] < 0) i++;
    return i < n && of[i] < than ? of[i] : than;
}

int32_t hn_reply_settled(const hn_reply *r)
{
    if (r->end) return r->n_pushed;
    int32_t held = hn_stream_oldest(r->stream), oldest = held < 0 ? r->n_pushed : held;
    const hn_traced *const waits[] = { &r->pend, &r->blank, &r->held, &r->fed };
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) oldest = oldest_of(waits[i]->of, waits[i]->n, oldest);
    return r->state == HN_REPLY_HEADER ? oldest_of(r->header_of, r->n_header, oldest) : oldest;
}

/* ---- calls in reasoning --------------------------------------------------------------------------------- */

/* Keeps what is thought from a call's token on. */
static hone_status watch_thought(hn_reply *r, int32_t id, hone_error *err)
{
    enum { LONGEST = 1 << 20 };
    char token[HN_CALL_TOKEN];
    size_t n;
    if (!r->kit || r->raw || r->state != HN_REPLY_REASONING || r->trigger.id < 0 || r->thought.n > LONGEST) {
        r->thought.n = 0;
        return HONE_OK;
    }
    if (id != r->trigger.id && !r->thought.n) return HONE_OK;
    if (!hn_call_kit_marks(r->kit, id)) {
        const char *s = hn_vocab_piece(r->v, id, true, &n);
        return hn_grown_put(&r->thought, s, n, err);
    }
    hn_call_put_token(token, id);
    return hn_grown_put(&r->thought, token, sizeof token, err);
}

typedef struct tried {
    const hn_call_kit *kit;
    int names, ends;
    bool strict; /* a schema was to be kept to, and nothing has held the model to it */
} tried;

static hone_status try_part(void *arg, hone_part part, const char *s, size_t n, int32_t call, const char *id,
                            hone_error *err)
{
    (void)call, (void)id, (void)err;
    tried *t = arg;
    t->names += part == HONE_PART_CALL_NAME;
    t->ends += part == HONE_PART_CALL_END;
    if (part != HONE_PART_CALL_NAME) return HONE_OK;
    const hn_call_tool *tool = hn_call_kit_find(t->kit, s, n);
    t->strict |= tool && tool->strict;
    return HONE_OK;
}

/* Reads sections of calls, one behind the other; *all: there is nothing else. */
static hone_status read_thought(hn_call_reader *reader, hone_str s, bool *all, hone_error *err)
{
    hn_call_outcome what = HN_CALLS_DONE;
    *all = false;
    for (size_t before = SIZE_MAX; s.len && s.len < before && what == HN_CALLS_DONE;) {
        hone_status st;
        before = s.len;
        hn_call_begin(reader);
        /* the rest lies in the reader, which forgets it where it begins again */
        hn_grown own = { 0 };
        if ((st = hn_grown_put(&own, s.ptr, s.len, err)) == HONE_OK)
            st = hn_call_feed(reader, own.p, own.n, true, &what, err);
        free(own.p);
        if (st != HONE_OK) return st;
        s = hn_call_rest(reader);
        while (s.len && is_blank(*s.ptr)) s.ptr++, s.len--;
    }
    *all = what == HN_CALLS_DONE && !s.len;
    return HONE_OK;
}

/* Some models forget to end their reasoning before they call. Where the turn ends in reasoning, and its end is whole
 * calls and nothing else, they are that, too; calls that are only thought of have an answer behind them. */
static hone_status calls_in_thought(hn_reply *r, hone_error *err)
{
    tried t = { .kit = r->kit };
    hn_call_reader *reader = NULL;
    const hone_str s = { r->thought.p, r->thought.n };
    bool all = false;
    hone_status st = hn_call_reader_new(&reader, r->kit, 0, try_part, &t, err);
    if (st == HONE_OK) st = read_thought(reader, s, &all, err);
    hn_call_reader_free(reader);
    bool good = all && t.names > 0 && t.names == t.ends && !t.strict && !(r->one_call && t.names > 1);
    r->thought.n = 0;
    return st == HONE_OK && good ? read_thought(r->reader, s, &all, err) : st;
}

/* The rest of an answer that ends: blanks behind it, and a header that was none. */
static hone_status finish(hn_reply *r, hone_error *err)
{
    hone_status st = HONE_OK;
    if (r->state == HN_REPLY_REASONING && r->thought.n && (st = calls_in_thought(r, err)) != HONE_OK) return st;
    if (r->state == HN_REPLY_HEADER && !r->announced && !r->end) st = emit_header(r, err);
    else if (r->state == HN_REPLY_TEXT && !r->skip) st = emit_blank(r, HONE_PART_TEXT, err);
    r->blank.n = r->n_header = r->n_given = 0;
    return st;
}

hone_status hn_reply_push(hn_reply *r, int32_t id, const hone_reply_part **parts, size_t *n, hone_reply_end *end,
                          hone_error *err)
{
    begin_call(r, parts, n);
    *end = r->end;
    if (id < 0 || id >= hn_vocab_size(r->v))
        return HN_FAIL(err, HONE_E_ARG, "token id %d, expected 0 to %d", id, hn_vocab_size(r->v) - 1);
    if (r->end) return HONE_OK;
    hone_status st = hn_reply_take(r, id, err);
    if (st != HONE_OK) return st;
    hn_stream_number(r->stream, r->n_pushed++);
    bool ends = id == r->f->end_id || hn_vocab_is_eog(r->v, id),
         known = r->kit && (id == r->trigger.id || id == r->bare_call.id);
    if (!ends && (st = watch_thought(r, id, err)) != HONE_OK) return st;
    for (int i = 0; i < r->f->n; i++) known |= r->f->mark[i].id == id;
    bool inside = r->calling && !ends && hn_call_kit_marks(r->kit, id); /* a mark of calls, in one */
    st = ends || known || inside ? settle(r, ends || (known && !inside), err) : HONE_OK;
    inside = inside && r->calling; /* what was held back may have shown that it is none */
    const hn_reply_mark *m = known && !inside ? hn_reply_mark_of(r, id) : NULL;
    if (st == HONE_OK && !r->end && (inside || (m && begins_calls(r, m)))) {
        char token[HN_CALL_TOKEN];
        hn_call_put_token(token, id);
        if (m) st = act(r, m, NULL, err);
        const hn_grown *left_out = m == &r->bare_call ? &r->before_bare : NULL;
        if (m && st == HONE_OK) st = hn_reply_arm(r, left_out, token, sizeof token, err);
        if (st == HONE_OK) st = feed_token(r, token, sizeof token, err);
    } else if (st == HONE_OK && !r->end && m && id != r->f->end_id) {
        st = act_token(r, m, err);
    } else if (st == HONE_OK && !r->end && ends) {
        st = finish(r, err);
        if (!r->end) r->end = HONE_REPLY_TURN;
    } else if (st == HONE_OK && !r->end) {
        const char *text;
        size_t len;
        bool stopped;
        st = hn_stream_push(r->stream, id, &text, &len, &stopped, err);
        if (st == HONE_OK) st = feed(r, text, hn_stream_sources(r->stream), len, err);
        if (st == HONE_OK && stopped && !r->end) {
            if ((st = scan(r, true, true, err)) == HONE_OK && !r->end) st = finish(r, err);
            if (!r->end) r->end = HONE_REPLY_TURN;
        }
    }
    if (st == HONE_OK && r->end == HONE_REPLY_TURN) st = release(r, err);
    if (st != HONE_OK) return st;
    *end = r->end;
    return show(r, parts, n, err);
}

hone_status hn_reply_flush(hn_reply *r, const hone_reply_part **parts, size_t *n, hone_error *err)
{
    begin_call(r, parts, n);
    hone_status st = r->end ? HONE_OK : settle(r, true, err);
    if (st == HONE_OK && !r->end) st = finish(r, err);
    if (st == HONE_OK && r->end != HONE_REPLY_STOP) st = release(r, err);
    return st == HONE_OK ? show(r, parts, n, err) : st;
}
