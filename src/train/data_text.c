/* data_text: files of plain text and Markdown. Owns the pieces they are read in, lines that are not UTF-8, and where a
 * file is divided into texts. Refuses to know samples. */
#include "base/guard.h"
#include "base/utf8.h"
#include "train/data_parts.h"

/* A text is tokenized in pieces of so many bytes at most, each cut before a line end, so that memory is bounded:
 * where the cut is, tokens may differ from those of the whole. */
enum { PIECE = HN_LIMIT(16 << 20, 1 << 10) };

static const char mark[] = "<|endoftext|>";
enum { N_MARK = sizeof mark - 1 };

typedef struct reader {
    hn_data_reader *r;
    hn_data_split split;
    bool markdown;
    bool begun;  /* pieces of the text at hand are handed over */
    bool fenced; /* and they end within a block of code */
    bool any;    /* there was something to read */
    bool late;   /* without a mark so far, where one would have divided the file */
} reader;

/* ---- bytes ------------------------------------------------------------------------------------------ */

size_t hn_data_well_formed(const char *s, size_t n)
{
    size_t i = 0, used;
    while (i < n) {
        if ((unsigned char)s[i] < 0x80) {
            i++;
            continue;
        }
        if (hn_utf8_next((const unsigned char *)s + i, n - i, &used) < 0) break;
        i += used;
    }
    return i;
}

/* Where to cut text[n], of which more follows: behind its last line end that a letter or digit precedes, if possible
 * before that line end, else behind a whole line, else where no character is divided. */
static size_t cut_at(const char *s, size_t n)
{
    size_t line = 0, i;
    for (i = n; i > n / 2; i--)
        if (s[i - 1] == '\n') {
            char c = s[i - 2 - (s[i - 2] == '\r')]; /* i > 3: n is large */
            if (!line) line = i;
            if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
                return i - 1 - (s[i - 2] == '\r');
        }
    if (line) return line;
    for (i = n; i > n - 4 && ((unsigned char)s[i - 1] & 0xC0) == 0x80; i--) {}
    return i - 1;
}

/* Takes CR before LF out of s[n] and lines that are not UTF-8; *n becomes less. r->line moves on. */
static hone_status clean(hn_data_reader *r, char *s, size_t *n)
{
    size_t out = 0, a = 0;
    for (size_t b; a < *n; a = b) {
        const char *nl = memchr(s + a, '\n', *n - a);
        b = nl ? (size_t)(nl - s) + 1 : *n;
        size_t len = b - a, good = hn_data_well_formed(s + a, len);
        if (good < len) {
            hone_status st = hn_data_bad(r, HN_DATA_NOT_UTF8 HN_DATA_TRY_UTF8, (unsigned char)s[a + good], good + 1);
            if (st != HONE_OK) return st;
        } else {
            memmove(s + out, s + a, len);
            out += len;
            if (nl && len > 1 && s[out - 2] == '\r') s[out-- - 2] = '\n';
        }
        r->line += nl != NULL;
    }
    *n = out;
    return HONE_OK;
}

static bool is_bom(const char *s, size_t n) { return n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0; }

/* ---- where texts end ---------------------------------------------------------------------------------- */

static const char *find_mark(const char *s, size_t n)
{
    for (const char *p = s, *end = s + n; (p = memchr(p, mark[0], (size_t)(end - p))); p++) {
        if ((size_t)(end - p) < N_MARK) return NULL;
        if (memcmp(p, mark, N_MARK) == 0) return p;
    }
    return NULL;
}

static bool is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\n' && s[i] != '\r' && s[i] != '\f') return false;
    return true;
}

/* Bytes of s[n]'s first line with its end; n where there is none. */
static size_t line_of(const char *s, size_t n)
{
    const char *nl = memchr(s, '\n', n);
    return nl ? (size_t)(nl - s) + 1 : n;
}

/* "# Title" up to six deep, as CommonMark has it. */
static bool is_heading(const char *s, size_t n)
{
    size_t k = 0;
    while (k < n && s[k] == '#') k++;
    return k >= 1 && k <= 6 && (k == n || s[k] == ' ' || s[k] == '\t' || s[k] == '\n');
}

static bool is_fence(const char *s, size_t n)
{
    size_t k = 0;
    while (k < n && k < 3 && s[k] == ' ') k++;
    return n - k >= 3 && (memcmp(s + k, "```", 3) == 0 || memcmp(s + k, "~~~", 3) == 0);
}

/* Bytes that s[n] ends with, of a mark that what follows may make whole. */
static size_t mark_begun(const char *s, size_t n)
{
    size_t k = n < N_MARK ? n : N_MARK - 1;
    while (k && memcmp(s + n - k, mark, k) != 0) k--;
    return k;
}

/* Bytes of the text that s[n] begins with, or goes on with: up to the line that begins another one. n: it may go on,
 * *inside: within a block of code. */
static size_t end_of(const reader *t, const char *s, size_t n, bool *inside)
{
    bool fenced = t->begun && t->fenced, said = t->begun; /* there was more than headings */
    *inside = false;
    if (t->split == HN_SPLIT_MARK) {
        const char *p = find_mark(s, n);
        return p ? (size_t)(p - s) : n;
    }
    for (size_t i = 0, len; i < n; i += len) {
        len = line_of(s + i, n - i);
        if (t->split == HN_SPLIT_LINE && i + len < n) return i + len;
        bool blank = is_blank(s + i, len);
        if (t->split == HN_SPLIT_BLANK && blank && (i || t->begun)) return i;
        if (t->split != HN_SPLIT_HEADING) continue;
        if (is_fence(s + i, len)) fenced = !fenced;
        bool heading = !fenced && is_heading(s + i, len);
        if (heading && said) return i;
        said |= !heading && !blank;
    }
    *inside = fenced;
    return n;
}

/* Past the lines of white space that s[n] begins with. */
static size_t skip_blank(const char *s, size_t n)
{
    size_t at = 0;
    for (size_t len; at < n && is_blank(s + at, len = line_of(s + at, n - at));) at += len;
    return at;
}

/* ---- handing over --------------------------------------------------------------------------------------- */

/* A piece of a text; `last`: it ends here. */
static hone_status put_piece(reader *t, const char *s, size_t n, bool last)
{
    hn_data_reader *r = t->r;
    hone_status st = HONE_OK;
    if (r->take) return n ? r->take(r, s, n) : HONE_OK;
    if (!t->begun) {
        r->d->stats.n_line++;
        r->d->stats.n_part++;
        r->d->stats.n_text++;
        r->ids.n = 0;
        st = hn_data_put_bos(r, &r->ids);
    }
    t->begun = !last;
    if (st == HONE_OK) st = hn_data_encode(r, s, n, &r->ids);
    if (st == HONE_OK && last) st = hn_data_put_eos(r, &r->ids);
    return st == HONE_OK ? hn_data_put_text(r, last) : st;
}

/* The whole texts of s[n], of which more follows or not. *used: bytes that are done with. */
static hone_status put_texts(reader *t, const char *s, size_t n, bool more, size_t *used)
{
    size_t at = 0;
    hone_status st = HONE_OK;
    while (st == HONE_OK && (at += t->begun ? 0 : skip_blank(s + at, n - at)) < n) {
        bool inside;
        size_t len = end_of(t, s + at, n - at, &inside), keep = len;
        if (at + len == n && more) { /* it may go on; what fills the room does not wait for that */
            if (len < PIECE / 2) break;
            if (t->split == HN_SPLIT_MARK) len -= mark_begun(s + at, len);
            st = put_piece(t, s + at, len, false);
            t->fenced = inside;
            at += len;
            break;
        }
        while (keep && s[at + keep - 1] == '\n') keep--;
        if (keep || t->begun) st = put_piece(t, s + at, keep, true);
        at += len;
        if (t->split == HN_SPLIT_MARK && at < n) at += N_MARK;
    }
    *used = at;
    return st;
}

/* buf: `have` bytes that are clean, then what is read now; *have and *raw, what lies behind them uncleaned, change. */
static hone_status fill(reader *t, const hn_source *f, uint64_t *at, char *buf, size_t *have, size_t *raw)
{
    size_t room = PIECE - *have - *raw, want = f->size - *at < room ? (size_t)(f->size - *at) : room;
    hone_status st = hn_source_read(f, *at, buf + *have + *raw, want, t->r->err);
    if (st != HONE_OK) return st;
    bool first = *at == 0 && is_bom(buf, want);
    if (first) memmove(buf, buf + 3, want - 3);
    *at += want;
    *raw += want - (first ? 3 : 0);
    size_t n = *at<f->size && * raw> 3 ? cut_at(buf + *have, *raw) : *raw, kept = n;
    st = clean(t->r, buf + *have, &kept);
    memmove(buf + *have + kept, buf + *have + n, *raw - n);
    t->any |= kept > 0;
    *have += kept;
    *raw -= n;
    return st;
}

static hone_status read_pieces(reader *t, const hn_source *f)
{
    uint64_t at = 0;
    size_t have = 0, raw = 0, used;
    hn_data_reader *r = t->r;
    hone_status st = HONE_OK;
    char *s = malloc((f->size < PIECE ? (size_t)f->size : PIECE) + 1);
    if (!s) return HN_FAIL(r->err, HONE_E_NOMEM, "%s: %llu bytes", r->path, (unsigned long long)f->size);
    while (st == HONE_OK && (at < f->size || raw)) {
        size_t was = have;
        if ((st = hn_data_go_on(r)) != HONE_OK || (st = fill(t, f, &at, s, &have, &raw)) != HONE_OK) break;
        bool more = at < f->size || raw;
        size_t seen = was > N_MARK ? was - N_MARK : 0; /* that a mark may begin in */
        if (t->late && find_mark(s + seen, have - seen)) {
            t->late = false;
            r->d->stats.n_marked++;
        }
        if (t->split == HN_SPLIT_AUTO) { /* the first piece decides */
            t->split = find_mark(s, have) ? HN_SPLIT_MARK : t->markdown ? HN_SPLIT_HEADING : HN_SPLIT_BLANK;
            t->late = t->split != HN_SPLIT_MARK;
        }
        if (t->split == HN_SPLIT_NONE) {
            st = put_piece(t, s, have, !more);
            used = have;
        } else {
            st = put_texts(t, s, have, more, &used);
        }
        memmove(s, s + used, have - used + raw);
        have -= used;
    }
    free(s);
    return st;
}

hone_status hn_data_text(hn_data_reader *r, bool markdown)
{
    hn_source f;
    reader t = { .r = r, .split = r->take ? HN_SPLIT_NONE : r->p->split, .markdown = markdown };
    hone_status st = hn_source_open(&f, r->path, r->err);
    if (st != HONE_OK) return st;
    int64_t before = r->d->stats.n_line;
    st = read_pieces(&t, &f);
    if (st == HONE_OK && (!t.any || (!r->take && r->d->stats.n_line == before))) {
        r->d->stats.n_line++;
        st = hn_data_bad(r, "the file is empty");
    }
    hn_source_close(&f);
    return st;
}
