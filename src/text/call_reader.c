/* call_reader: sections of calls, taken apart while they come; see calls.h. What has come of a call is held until its
 * name is known and is that of a tool that is offered; else it was text. From there on nothing is taken back: what is
 * not as the format says ends the call. Marks are found with any white space where they have some. */
#include "text/call_values.h"
#include "text/calls.h"
#include "text/text_priv.h"

#include <stdlib.h>

typedef enum state {
    AT_SECTION, /* its first mark comes */
    AT_NEXT,    /* a call, or the end of the section */
    AT_ID,      /* NAMED: the id, up to id_end */
    AT_NAME,
    AT_MEMBER, /* JSON: the next member of the object, or its end */
    AT_TEXT,   /* … a value that is read whole */
    AT_VALUE,  /* … arguments */
    AT_OTHER,  /* … a value that is passed over */
    AT_ARGS,   /* NAMED: arguments */
    AT_KEY,    /* TAGGED: the next argument, or the end */
    AT_SPELT,  /* … its name */
    AT_PAD,    /* … white space in front of its value */
    AT_TAGGED, /* … its value */
    AT_OWN,    /* arguments in a syntax of their own */
    AT_END,    /* the mark behind the arguments */
    AT_NOTHING /* no section has begun */
} state;

enum {
    KEY_MAX = 256,
    ID_MAX = 72,
    AROUND_NAME = 32, /* what an id has beside the name that is part of it: "functions." and ":0" */
    WORD_MAX = HN_CALL_NAME_MAX + AROUND_NAME
};

struct hn_call_reader {
    const hn_call_kit *k;
    hn_call_part_fn *part;
    void *arg;
    uint64_t seed;
    int32_t calls, in_section;
    state state;
    hn_grown buf;
    size_t at, mark;                                             /* read so far; what becomes text if this is no call */
    char name[WORD_MAX + 1], id[WORD_MAX + 1], key[KEY_MAX + 1]; /* name: with the rest of its id, where it has one */
    size_t n_name, n_key;
    bool named, loose; /* the name is out; arguments come until the end, whatever they are */
    const hn_call_tool *tool;
    hn_json_scan scan;
    hn_own_scan own;
    size_t seen; /* bytes behind `at` in which the end that this state looks for does not begin */
    uint64_t looked;
    hn_grown args;  /* arguments that wait for the name or the id, or to be converted */
    bool whole;     /* they do */
    hn_grown text;  /* of a token */
    bool string;    /* TAGGED: the value is a string, shown as it comes */
    bool cdata;     /* TAGGED: it stands in <![CDATA[ ]]> */
    uint32_t kinds; /* TAGGED: what it may be (HN_VALUE_*) */
    int n_args;
};

hone_status hn_call_reader_new(hn_call_reader **out, const hn_call_kit *k, uint64_t id_seed, hn_call_part_fn *part,
                               void *arg, hone_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return HN_FAIL(err, HONE_E_NOMEM, "calls of tools");
    **out = (hn_call_reader){ .k = k, .part = part, .arg = arg, .seed = id_seed, .state = AT_NOTHING };
    hone_status st = hn_grown_put(&(*out)->buf, "", 0, err);
    if (st != HONE_OK) {
        hn_call_reader_free(*out);
        *out = NULL;
    }
    return st;
}

void hn_call_reader_free(hn_call_reader *r)
{
    if (!r) return;
    free(r->buf.p);
    free(r->args.p);
    free(r->text.p);
    free(r);
}

static void begin_call(hn_call_reader *r)
{
    r->named = r->whole = false;
    r->tool = NULL;
    r->name[0] = r->id[0] = 0;
    r->n_name = r->args.n = 0;
    r->n_args = 0;
}

void hn_call_begin(hn_call_reader *r)
{
    begin_call(r);
    r->state = AT_SECTION;
    r->buf.n = r->at = r->mark = r->seen = 0;
    r->own = (hn_own_scan){ 0 };
    r->in_section = 0;
    r->loose = false;
}

hone_str hn_call_rest(const hn_call_reader *r) { return (hone_str){ r->buf.p + r->mark, r->buf.n - r->mark }; }
int32_t hn_call_count(const hn_call_reader *r) { return r->calls; }
uint64_t hn_call_looked(const hn_call_reader *r) { return r->looked; }
bool hn_call_named(const hn_call_reader *r) { return r->named || r->tool; }

/* ---- parts ----------------------------------------------------------------------------------------------- */

static hone_status say(hn_call_reader *r, hone_part part, const char *s, size_t n, const char *id, hone_error *err)
{
    return r->part(r->arg, part, s, n, r->calls, id, err);
}

/* Text of arguments: shown, or kept until it may be. */
static hone_status say_args(hn_call_reader *r, const char *s, size_t n, hone_error *err)
{
    if (!n) return HONE_OK;
    return r->whole ? hn_grown_put(&r->args, s, n, err) : say(r, HONE_PART_ARGUMENTS, s, n, NULL, err);
}

static void make_id(hn_call_reader *r)
{
    uint64_t h = hn_mix64(r->seed ^ hn_mix64((uint64_t)r->calls + 0x63616C6Cu));
    size_t own = r->k->f.id_length, n = own ? 0 : (size_t)snprintf(r->id, sizeof r->id, "call_");
    hn_call_letters(r->id + n, own ? own : HN_CALL_LETTERS, h);
}

/* The name is known: the call is one. */
static hone_status accept(hn_call_reader *r, hone_error *err)
{
    if (!r->id[0]) make_id(r);
    r->named = true;
    r->mark = r->at;
    return say(r, HONE_PART_CALL_NAME, r->name, r->n_name, r->id, err);
}

/* ---- marks ----------------------------------------------------------------------------------------------- */

typedef enum found { NO, PARTLY, YES } found;

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* Does the mark stand at s? White space of the mark may be any, or none. *used: bytes of it. */
static found mark_at(const char *s, size_t n, const hn_call_mark *m, size_t *used)
{
    size_t i = 0, j = 0;
    while (j < m->n) {
        if (is_blank(m->p[j])) {
            while (j < m->n && is_blank(m->p[j])) j++;
            while (i < n && is_blank(s[i])) i++;
        } else {
            if (i == n) return PARTLY;
            if (s[i++] != m->p[j++]) return NO;
        }
    }
    *used = i;
    return YES;
}

static void skip_blanks(hn_call_reader *r)
{
    while (r->at < r->buf.n && is_blank(r->buf.p[r->at])) r->at++;
}

/* The mark behind white space: it is passed, if it is there. */
static found pass(hn_call_reader *r, const hn_call_mark *m)
{
    size_t used, from = r->at;
    skip_blanks(r);
    found f = mark_at(r->buf.p + r->at, r->buf.n - r->at, m, &used);
    r->at = f == YES ? r->at + used : from;
    return f;
}

/* Bytes of one character, or of a token. */
static size_t unit(const char *s, size_t n)
{
    return (unsigned char)*s == HN_CALL_ESCAPE && n >= HN_CALL_TOKEN ? HN_CALL_TOKEN : 1;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
}

/* ---- steps: MORE needs more text, GO has made a step ----------------------------------------------------- */

typedef enum step { GO, MORE, IS_TEXT, IS_DONE } step;

static step no_call(const hn_call_reader *r) { return r->in_section ? IS_DONE : IS_TEXT; }

static step at_section(hn_call_reader *r)
{
    found f = pass(r, &r->k->section_begin);
    if (f != YES) return f == NO ? IS_TEXT : MORE;
    r->state = AT_NEXT;
    return GO;
}

static step at_next(hn_call_reader *r)
{
    const hn_call_kit *k = r->k;
    size_t from = r->at;
    found f;
    if (k->section_end.n && (f = pass(r, &k->section_end)) != NO) {
        if (f == YES) r->mark = r->at;
        return f == YES ? IS_DONE : MORE;
    }
    if (r->in_section && k->separator.n) {
        f = pass(r, &k->separator);
        if (f == PARTLY) return MORE;
    }
    skip_blanks(r);
    if (r->at == r->buf.n && !k->begin.n) {
        r->at = from;
        return MORE;
    }
    f = pass(r, &k->begin);
    if (f != YES) {
        r->at = from;
        return f == NO ? no_call(r) : MORE;
    }
    begin_call(r);
    if (k->f.shape == HN_CALLS_JSON) {
        skip_blanks(r);
        if (r->at == r->buf.n || r->buf.p[r->at] != '{') {
            step s = r->at == r->buf.n ? MORE : no_call(r);
            r->at = from;
            return s;
        }
        r->at++;
        r->state = AT_MEMBER;
        r->whole = true;
    } else {
        r->state = k->f.id == HN_CALL_ID_BEFORE ? AT_ID : AT_NAME;
    }
    return GO;
}

/* What stands up to the mark, of at most max bytes. */
static step read_up_to(hn_call_reader *r, const hn_call_mark *m, char *out, size_t max, size_t *len)
{
    for (size_t i = r->at; i < r->buf.n; i += unit(r->buf.p + i, r->buf.n - i)) {
        size_t used;
        found f = mark_at(r->buf.p + i, r->buf.n - i, m, &used);
        if (f == PARTLY) return MORE;
        if (f == YES) {
            memcpy(out, r->buf.p + r->at, *len = i - r->at);
            out[*len] = 0;
            r->at = i + used;
            return GO;
        }
        if (i - r->at >= max || (unsigned char)r->buf.p[i] == HN_CALL_ESCAPE) return no_call(r);
    }
    return MORE;
}

static step at_id(hn_call_reader *r, hone_error *err, hone_status *st)
{
    size_t n;
    step s = read_up_to(r, &r->k->id_end, r->id, ID_MAX, &n);
    if (s != GO) return s;
    for (size_t i = 0; i < n; i++)
        if (!is_name_char(r->id[i]) && r->id[i] != ':') return no_call(r);
    if (r->k->f.id == HN_CALL_ID_BEHIND) {
        *st = accept(r, err);
        r->state = AT_ARGS;
        r->scan = (hn_json_scan){ 0 };
    } else {
        r->state = AT_NAME;
    }
    return GO;
}

/* functions.NAME:0; what NAME may be the tools tell. */
static bool split_id(hn_call_reader *r)
{
    const char *dot = strchr(r->name, '.'), *colon = strrchr(r->name, ':');
    const char *begin = dot ? dot + 1 : r->name, *end = colon ? colon : r->name + r->n_name;
    if (begin > end) return false;
    _Static_assert(sizeof r->id >= sizeof r->name, "the word is the id");
    memcpy(r->id, r->name, r->n_name + 1);
    r->n_name = (size_t)(end - begin);
    memmove(r->name, begin, r->n_name);
    r->name[r->n_name] = 0;
    return true;
}

static step at_name(hn_call_reader *r, hone_error *err, hone_status *st)
{
    const hn_call_kit *k = r->k;
    size_t i = r->at, used;
    bool id = k->f.id == HN_CALL_ID_NAME;
    while (i < r->buf.n && is_blank(r->buf.p[i])) i++;
    size_t begin = i;
    while (i < r->buf.n && (is_name_char(r->buf.p[i]) || (id && r->buf.p[i] == ':'))) i++;
    if (i - begin > (size_t)(id ? WORD_MAX : HN_CALL_NAME_MAX)) return no_call(r);
    if (i == r->buf.n) return MORE;
    found f = mark_at(r->buf.p + i, r->buf.n - i, &k->name_end, &used);
    if (f != YES) return f == NO ? no_call(r) : MORE;
    memcpy(r->name, r->buf.p + begin, r->n_name = i - begin);
    r->name[r->n_name] = 0;
    if (id && !split_id(r)) return no_call(r);
    if (k->f.bare && strcmp(r->name, "all") == 0) { /* Functionary 3.2: text for everybody */
        r->mark = r->at = i + used;
        return IS_DONE;
    }
    if (!(r->tool = hn_call_kit_find(k, r->name, r->n_name))) return no_call(r);
    r->at = i + used;
    r->scan = (hn_json_scan){ 0 };
    if (k->f.id == HN_CALL_ID_BEHIND) {
        r->state = AT_ID;
        return GO;
    }
    *st = accept(r, err);
    r->state = k->f.shape == HN_CALLS_NAMED ? AT_ARGS : k->f.shape == HN_CALLS_TAGGED ? AT_KEY : AT_OWN;
    if (r->state == AT_KEY && *st == HONE_OK) *st = say_args(r, "{", 1, err);
    return GO;
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

/* Passes on what of a JSON value is there. A token inside a string is its text. */
static step pass_value(hn_call_reader *r, bool show, hone_error *err, hone_status *st)
{
    if (!r->scan.begun) skip_blanks(r);
    while (r->at < r->buf.n && *st == HONE_OK) {
        const char *s = r->buf.p + r->at;
        size_t n = r->buf.n - r->at, i = 0;
        if ((unsigned char)*s == HN_CALL_ESCAPE) {
            if (!r->scan.string) return GO; /* the value breaks off here */
            if (n < HN_CALL_TOKEN) return MORE;
            if (show) {
                r->text.n = 0;
                *st = hn_call_escape(&r->text, s, HN_CALL_TOKEN, r->k->v, err);
                if (*st == HONE_OK) *st = say_args(r, r->text.p, r->text.n, err);
            }
            r->at += HN_CALL_TOKEN;
            continue;
        }
        while (i < n && (unsigned char)s[i] != HN_CALL_ESCAPE && !r->scan.done) {
            if (!hn_json_scan_byte(&r->scan, s[i])) break;
            i++;
        }
        if (show) *st = say_args(r, s, i, err);
        r->at += i;
        if (r->scan.done) return GO;
    }
    return MORE;
}

/* A key or value in quotes, from r->at on; GO: it is in out, unescaped where it has no \u. */
static step read_string(hn_call_reader *r, char *out, size_t max, size_t *len)
{
    size_t n = 0, i = r->at + 1;
    if (r->at == r->buf.n) return MORE;
    if (r->buf.p[r->at] != '"') return no_call(r);
    for (; i < r->buf.n && r->buf.p[i] != '"'; i++) {
        if ((unsigned char)r->buf.p[i] == HN_CALL_ESCAPE || n >= max) return no_call(r);
        if (r->buf.p[i] == '\\' && ++i == r->buf.n) return MORE;
        out[n++] = r->buf.p[i];
    }
    if (i == r->buf.n) return MORE;
    out[n] = 0;
    *len = n;
    r->at = i + 1;
    return GO;
}

/* Behind an object: its name must have come, and its id where the format has one behind the arguments. */
static step end_object(hn_call_reader *r, hone_error *err, hone_status *st)
{
    if (!r->tool) return no_call(r);
    if (!r->named) *st = accept(r, err);
    r->whole = false;
    if (*st == HONE_OK) *st = r->args.n ? say_args(r, r->args.p, r->args.n, err) : HONE_OK;
    r->args.n = 0;
    r->mark = r->at;
    r->state = AT_END;
    return GO;
}

static step at_member(hn_call_reader *r, hone_error *err, hone_status *st)
{
    const hn_call_format *f = &r->k->f;
    size_t from = r->at, n = 0;
    skip_blanks(r);
    if (r->at < r->buf.n && r->buf.p[r->at] == ',') r->at++;
    skip_blanks(r);
    if (r->at < r->buf.n && r->buf.p[r->at] == '}') {
        r->at++;
        return end_object(r, err, st);
    }
    step s = read_string(r, r->key, KEY_MAX, &n);
    r->n_key = n;
    skip_blanks(r);
    if (s == GO && r->at == r->buf.n) s = MORE;
    if (s == GO && r->buf.p[r->at++] != ':') s = no_call(r);
    skip_blanks(r);
    if (s == GO && r->at == r->buf.n) s = MORE;
    if (s != GO) {
        r->at = from;
        if (s == MORE || !r->named) return s;
        r->state = AT_END; /* broken: the call ends here */
        return GO;
    }
    bool is_name = strcmp(r->key, f->name_key) == 0, is_args = strcmp(r->key, f->args_key) == 0;
    r->scan = (hn_json_scan){ 0 };
    if (f->name_is_key && !r->tool && n <= HN_CALL_NAME_MAX) {
        memcpy(r->name, r->key, (r->n_name = n) + 1);
        if (!(r->tool = hn_call_kit_find(r->k, r->name, n))) return no_call(r);
        r->whole = false;
        *st = accept(r, err);
        r->state = AT_VALUE;
    } else if (f->name_is_key) {
        r->state = AT_OTHER;
    } else if (is_name || (f->id == HN_CALL_ID_KEY && strcmp(r->key, f->id_key) == 0)) {
        r->state = AT_TEXT;
    } else if (!r->tool && f->bare && strcmp(r->key, "type") != 0) {
        return no_call(r); /* an answer that is JSON, about something else */
    } else {
        r->state = is_args ? (r->buf.p[r->at] == '"' ? AT_TEXT : AT_VALUE) : AT_OTHER;
    }
    return GO;
}

/* What is in front of place i has been looked at. */
static void see(hn_call_reader *r, size_t i)
{
    r->looked += i - r->at - r->seen;
    r->seen = i - r->at;
}

/* Arguments that are the text of JSON in a string. */
static step args_in_text(hn_call_reader *r, hone_error *err, hone_status *st)
{
    size_t i = r->at + r->seen;
    while (i < r->buf.n && !r->scan.done) {
        if ((unsigned char)r->buf.p[i] == HN_CALL_ESCAPE || !hn_json_scan_byte(&r->scan, r->buf.p[i]))
            return no_call(r);
        i++;
    }
    see(r, i);
    if (!r->scan.done) return MORE;
    hn_grown text = { 0 };
    *st = hn_call_unescape(&text, r->buf.p + r->at, i - r->at, err);
    if (*st == HONE_OK) *st = hn_call_json_or_string(&r->args, text.p, text.n, err);
    free(text.p);
    if (*st == HONE_OK && !r->whole) {
        *st = say(r, HONE_PART_ARGUMENTS, r->args.p, r->args.n, NULL, err);
        r->args.n = 0;
    }
    r->at = i;
    r->state = AT_MEMBER;
    return GO;
}

static step at_text(hn_call_reader *r, hone_error *err, hone_status *st)
{
    const hn_call_format *f = &r->k->f;
    bool is_name = strcmp(r->key, f->name_key) == 0;
    if (!is_name && strcmp(r->key, f->args_key) == 0) return args_in_text(r, err, st);
    char id[ID_MAX + 1]; /* a part of one is none */
    size_t n;
    step s = read_string(r, is_name ? r->name : id, is_name ? HN_CALL_NAME_MAX : ID_MAX, &n);
    if (s != GO) {
        if (s == MORE || !r->named) return s;
        r->state = AT_END;
        return GO;
    }
    r->state = AT_MEMBER;
    if (!is_name) {
        memcpy(r->id, id, n + 1);
        return GO;
    }
    r->n_name = n;
    if (!(r->tool = hn_call_kit_find(r->k, r->name, n))) return no_call(r);
    if (f->id == HN_CALL_ID_KEY && !f->id_first) return GO; /* the id is to come */
    *st = accept(r, err);
    r->whole = false;
    if (*st == HONE_OK && r->args.n) *st = say_args(r, r->args.p, r->args.n, err);
    r->args.n = 0;
    return GO;
}

/* ---- tagged arguments ------------------------------------------------------------------------------------ */

static step at_key(hn_call_reader *r, hone_error *err, hone_status *st)
{
    found f = pass(r, &r->k->key_begin);
    if (f == PARTLY) return MORE;
    if (f == NO) {
        size_t from = r->at;
        if (r->k->end.n && pass(r, &r->k->end) == PARTLY) return MORE;
        r->at = from;
        if (r->at == r->buf.n) return MORE;
        *st = say_args(r, "}", 1, err);
        r->state = AT_END;
        return GO;
    }
    r->state = AT_SPELT;
    return GO;
}

static step at_spelt(hn_call_reader *r, hone_error *err, hone_status *st)
{
    const hn_call_kit *k = r->k;
    size_t used = 0, i = r->at + r->seen;
    found f = NO;
    const hn_call_mark *ends[] = { &k->key_end, k->key_end_other.n ? &k->key_end_other : NULL };
    for (; i < r->buf.n && f == NO; i += f == NO ? unit(r->buf.p + i, r->buf.n - i) : 0) {
        bool partly = false;
        for (int e = 0; e < 2 && f != YES; e++) {
            f = ends[e] ? mark_at(r->buf.p + i, r->buf.n - i, ends[e], &used) : NO;
            partly |= f == PARTLY;
            if (f == YES) r->string = e == 0 && k->key_end_other.n > 0; /* the mark says that it is a string */
        }
        if (f != YES) f = partly ? PARTLY : NO;
    }
    see(r, i);
    if (f != YES) return MORE;
    r->n_key = i - r->at;
    if (r->n_key > KEY_MAX) { /* no name is that long: whole characters and tokens of it */
        const unsigned char *key = (const unsigned char *)r->buf.p + r->at;
        r->n_key = KEY_MAX;
        while (r->n_key && (key[r->n_key] & 0xC0) == 0x80) r->n_key--;
    }
    memcpy(r->key, r->buf.p + r->at, r->n_key);
    r->key[r->n_key] = 0;
    r->at = i + used;
    r->kinds = hn_call_kinds(r->tool, r->key, r->n_key);
    if (!k->key_end_other.n) r->string = !k->f.quoted && r->kinds == HN_VALUE_STRING;
    if (r->n_args++) *st = say_args(r, ", ", 2, err);
    if (*st == HONE_OK) *st = say_args(r, "\"", 1, err);
    r->args.n = 0;
    if (*st == HONE_OK) *st = hn_call_escape(&r->args, r->key, r->n_key, k->v, err);
    if (*st == HONE_OK) *st = say(r, HONE_PART_ARGUMENTS, r->args.p, r->args.n, NULL, err);
    r->args.n = 0;
    if (*st == HONE_OK) *st = say_args(r, r->string ? "\": \"" : "\": ", r->string ? 4 : 3, err);
    r->state = AT_PAD;
    r->mark = r->at;
    return GO;
}

/* White space of the marks around a value is no part of it. */
static size_t blanks_behind(const char *mark)
{
    size_t n = strlen(mark), i = n;
    while (i && is_blank(mark[i - 1])) i--;
    return n - i;
}

static step at_pad(hn_call_reader *r)
{
    const char *mark = r->k->f.key_end;
    size_t n = blanks_behind(mark), have = r->buf.n - r->at, k = n < have ? n : have;
    if (memcmp(r->buf.p + r->at, mark + strlen(mark) - n, k) == 0) {
        if (have < n) return MORE;
        r->at += n;
    }
    have = r->buf.n - r->at, n = strlen(HN_CALL_CDATA), k = n < have ? n : have;
    r->cdata = r->k->f.cdata && memcmp(r->buf.p + r->at, HN_CALL_CDATA, k) == 0;
    if (r->cdata) {
        if (have < n) return MORE;
        r->at += n;
    }
    r->state = AT_TAGGED;
    return GO;
}

static step at_tagged(hn_call_reader *r, bool all, hone_error *err, hone_status *st)
{
    const hn_call_mark *m = r->cdata ? &r->k->cdata_end : &r->k->value_end;
    const char *spelt = r->cdata ? "" : r->k->f.value_end;
    size_t pad = strspn(spelt, " \n\t\r"), i = r->at + r->seen, used = 0;
    found f = NO;
    for (; i < r->buf.n; i += unit(r->buf.p + i, r->buf.n - i))
        if ((f = mark_at(r->buf.p + i, r->buf.n - i, m, &used)) != NO) break;
    if (all && f == NO) i = r->buf.n, pad = 0; /* else the beginning of the mark is no part of it */
    see(r, i);
    size_t end = i;
    if (end - r->at >= pad && memcmp(r->buf.p + end - pad, spelt, pad) == 0) end -= pad;
    else if (f != YES) { /* what is there may be the beginning of the white space */
        size_t held = pad < end - r->at ? pad : end - r->at;
        while (held && memcmp(r->buf.p + end - held, spelt, held) != 0) held--;
        end -= held;
    }
    if (r->string && end > r->at) {
        r->args.n = 0;
        *st = hn_call_escape(&r->args, r->buf.p + r->at, end - r->at, r->k->v, err);
        if (*st == HONE_OK) *st = say(r, HONE_PART_ARGUMENTS, r->args.p, r->args.n, NULL, err);
        r->args.n = 0;
        r->seen -= end - r->at;
        r->mark = r->at = end;
    }
    if (f != YES && (!all || r->string)) return MORE;
    if (r->string) {
        if (*st == HONE_OK) *st = say_args(r, "\"", 1, err);
    } else {
        r->args.n = 0;
        const char *s = r->buf.p + r->at;
        bool told = r->k->key_end_other.n; /* by the mark, that it is no string */
        uint32_t kinds = told ? HN_VALUE_ANY : r->kinds, cut = told ? HN_VALUE_ANY & ~HN_VALUE_STRING : kinds;
        if (f == YES) *st = hn_call_value(&r->args, s, end - r->at, kinds, r->k->v, err);
        else *st = hn_call_value_cut(&r->args, s, end - r->at, cut, r->k->v, err);
        if (*st == HONE_OK) *st = say_args(r, r->args.p, r->args.n, err);
        r->args.n = 0;
    }
    if (f != YES) return MORE;
    r->mark = r->at = i + used;
    r->state = AT_KEY;
    return GO;
}

/* ---- arguments in a syntax of their own ------------------------------------------------------------------ */

static step at_own(hn_call_reader *r, bool all, hone_error *err, hone_status *st)
{
    size_t used;
    bool python = r->k->f.shape == HN_CALLS_PYTHON,
         whole = hn_call_own_end(&r->own, r->buf.p + r->at, r->buf.n - r->at, python, &r->k->quote);
    used = r->own.i;
    see(r, r->at + used);
    if (!whole && !all) return MORE;
    r->args.n = 0;
    *st = hn_call_own(&r->args, r->buf.p + r->at, used, python, &r->k->quote, r->k->v, !whole, err);
    if (*st == HONE_OK) *st = say(r, HONE_PART_ARGUMENTS, r->args.p, r->args.n, NULL, err);
    r->args.n = 0;
    if (!whole) return MORE;
    r->mark = r->at += used;
    r->state = AT_END;
    return GO;
}

/* ---- the end of a call ----------------------------------------------------------------------------------- */

static step at_end(hn_call_reader *r, bool all, hone_error *err, hone_status *st)
{
    const hn_call_kit *k = r->k;
    if (k->end.n && pass(r, &k->end) == PARTLY && !all) return MORE;
    *st = say(r, HONE_PART_CALL_END, "", 0, NULL, err);
    r->calls++;
    r->in_section++;
    r->mark = r->at;
    begin_call(r);
    r->state = AT_NEXT;
    bool section = k->section_begin.n || k->section_end.n;
    if (section) return GO;
    r->state = AT_NOTHING;
    return IS_DONE;
}

static step go(hn_call_reader *r, bool all, hone_error *err, hone_status *st)
{
    step s;
    switch (r->state) {
    case AT_SECTION: return at_section(r);
    case AT_NEXT: return at_next(r);
    case AT_ID: return at_id(r, err, st);
    case AT_NAME: return at_name(r, err, st);
    case AT_MEMBER: return at_member(r, err, st);
    case AT_TEXT: return at_text(r, err, st);
    case AT_VALUE:
    case AT_OTHER:
        s = pass_value(r, r->state == AT_VALUE, err, st);
        if (s == GO) r->state = AT_MEMBER;
        return s;
    case AT_ARGS:
        s = pass_value(r, true, err, st);
        if (s == GO && !r->loose) r->state = AT_END;
        if (s == GO && r->loose) { /* what comes behind is no part of it */
            r->at = r->buf.n;
            s = MORE;
        }
        r->mark = r->at;
        return s;
    case AT_KEY: return at_key(r, err, st);
    case AT_SPELT: return at_spelt(r, err, st);
    case AT_PAD: return at_pad(r);
    case AT_TAGGED: return at_tagged(r, all, err, st);
    case AT_OWN: return at_own(r, all, err, st);
    case AT_END: return at_end(r, all, err, st);
    case AT_NOTHING: break;
    }
    return IS_DONE;
}

hone_status hn_call_begin_named(hn_call_reader *r, const char *name, size_t n, hone_error *err)
{
    hn_call_begin(r);
    r->tool = hn_call_kit_find(r->k, name, n);
    memcpy(r->name, name, r->n_name = n < HN_CALL_NAME_MAX ? n : HN_CALL_NAME_MAX);
    r->name[r->n_name] = 0;
    r->loose = true;
    r->state = AT_ARGS;
    r->scan = (hn_json_scan){ 0 };
    return accept(r, err);
}

hone_status hn_call_feed(hn_call_reader *r, const char *s, size_t n, bool all, hn_call_outcome *what, hone_error *err)
{
    *what = HN_CALLS_MORE;
    if (r->mark) { /* what is settled goes */
        memmove(r->buf.p, r->buf.p + r->mark, r->buf.n - r->mark);
        r->buf.n -= r->mark;
        r->at -= r->mark;
        r->mark = 0;
    }
    hone_status st = hn_grown_put(&r->buf, s, n, err);
    step x = GO;
    while (st == HONE_OK && x == GO) {
        state before = r->state;
        x = go(r, all, err, &st);
        if (r->state == before) continue;
        r->seen = 0;
        r->own = (hn_own_scan){ 0 };
    }
    if (st != HONE_OK) return st;
    if (x == MORE && all) {
        if (r->tool && !r->named && !r->k->f.bare) st = accept(r, err); /* cut before its id, it has one of ours */
        if (st != HONE_OK) return st;
        bool open = r->named;
        if (r->loose && r->scan.done) { /* the message ended, and so does the call */
            st = say(r, HONE_PART_CALL_END, "", 0, NULL, err);
            r->calls++;
        } else if (open && r->whole && r->args.n) {
            st = say(r, HONE_PART_ARGUMENTS, r->args.p, r->args.n, NULL, err);
        }
        if (open) r->mark = r->buf.n;
        x = open || r->in_section ? IS_DONE : IS_TEXT;
    }
    if (x == IS_TEXT || x == IS_DONE) r->state = AT_NOTHING;
    if (x == IS_TEXT) *what = HN_CALLS_TEXT;
    if (x == IS_DONE) *what = HN_CALLS_DONE;
    return st;
}
