/* encode: text to token ids. Partition by special tokens, then SentencePiece merging by
 * score, byte-level BPE by rank, or RWKV's greedy longest match; WordPiece and Unigram have
 * files of their own. Every path is near linear in the text, whatever it is made of.
 * Refuses to know files. */
#include "text/text_priv.h"

#include <stdlib.h>

enum {
    SHORT_WORD = 48,  /* symbols; up to here a scan for the best pair beats a heap */
    CACHE_MAX = 8192, /* words remembered within one fragment: at most, a power of two, … */
    CACHE_SHARE = 16, /* … and one for that many bytes, so that zeroing costs little */
    CACHE_MIN = 512   /* bytes of a fragment that make a memory worth having */
};

/* One call's working memory; grows, never shrinks. */
typedef struct entry {
    uint64_t key, len;
} entry; /* of a heap: larger key first; len see spm_long */
typedef struct sym {
    uint32_t off, len;
    int32_t prev, next;
} sym;
typedef struct cached {
    uint32_t off, len, out, n_out;
} cached; /* word in the fragment -> ids already in the output */
typedef struct work {
    const hn_vocab *v;
    hn_ids *out;
    hone_error *err;
    sym *syms;
    size_t cap_syms;
    entry *heap;
    size_t n_heap, cap_heap;
    uint32_t *cps;
    size_t cap_cps;
    char *buf;
    size_t cap_buf;
    cached *cache; /* NULL: not in use */
    size_t cap_cache, cache_mask;
    size_t out_base;  /* cached.out counts from here */
    hn_spans *spans;  /* NULL: nobody asks for them … */
    const char *from; /* … else they count from here until the fragment is done */
} work;

#define NOMEM(w) HN_FAIL((w)->err, HONE_E_NOMEM, "tokenizer: working memory")

/* Room for n elements; what was there may be lost unless keep. */
static bool reserve(void **p, size_t *cap, size_t n, size_t elem, bool keep)
{
    if (n <= *cap) return true;
    size_t c = *cap * 2 > n ? *cap * 2 : n + 64;
    if (c > SIZE_MAX / elem) return false;
    void *q = keep ? realloc(*p, c * elem) : malloc(c * elem);
    if (!q) return false;
    if (!keep) free(*p);
    *p = q;
    *cap = c;
    return true;
}
#define RESERVE(w, what, n, keep) reserve((void **)&(w)->what, &(w)->cap_##what, (n), sizeof *(w)->what, keep)

static __attribute__((noinline)) hone_status grow_out(work *w)
{
    hn_ids *o = w->out;
    return reserve((void **)&o->data, &o->cap, o->n + 1, sizeof *o->data, true) ? HONE_OK : NOMEM(w);
}
static inline hone_status put(work *w, int32_t id)
{
    hn_ids *o = w->out;
    if (o->n == o->cap) {
        hone_status st = grow_out(w);
        if (st != HONE_OK) return st;
    }
    o->data[o->n++] = id;
    return HONE_OK;
}

/* The same for a token that stands for len bytes at s. */
static inline hone_status put_at(work *w, int32_t id, const char *s, size_t len)
{
    hone_status st = put(w, id);
    if (__builtin_expect(w->spans != NULL, 0) && st == HONE_OK)
        st = hn_spans_put(w->spans, (size_t)(s - w->from), (size_t)(s - w->from) + len, w->err);
    return st;
}

/* ---- heap --------------------------------------------------------------------------------- */

static bool heap_push(work *w, entry e)
{
    if (!RESERVE(w, heap, w->n_heap + 1, true)) return false;
    entry *h = w->heap;
    size_t i = w->n_heap++;
    for (; i && h[(i - 1) / 2].key < e.key; i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
    h[i] = e;
    return true;
}

static entry heap_pop(work *w)
{
    entry *h = w->heap, top = h[0], e = h[--w->n_heap];
    size_t n = w->n_heap, i = 0;
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && h[c + 1].key > h[c].key) c++;
        if (h[c].key <= e.key) break;
        h[i] = h[c];
    }
    h[i] = e;
    return top;
}

/* ---- words met before ------------------------------------------------------------------------ */

static hone_status start_cache(work *w, size_t fragment_bytes)
{
    size_t n = 32;
    w->cache_mask = 0;
    w->out_base = w->out->n;
    if (fragment_bytes < CACHE_MIN || w->spans) return HONE_OK;
    while (n < CACHE_MAX && n * CACHE_SHARE < fragment_bytes) n *= 2;
    if (!RESERVE(w, cache, n, false)) return NOMEM(w);
    memset(w->cache, 0, n * sizeof *w->cache);
    w->cache_mask = n - 1;
    return HONE_OK;
}

/* Encodes word s[off..off+len) with fn, or knows the answer: most words are one token, which
 * the vocabulary remembers; others may have come before in this fragment. */
typedef hone_status word_fn(work *w, const char *s, size_t len);
static inline hone_status known_word(work *w, const char *s, size_t off, size_t len, word_fn *fn)
{
    const hn_vocab *v = w->v;
    if (len < 2) return fn(w, s + off, len);
    uint64_t h = hn_vocab_hash(v, s + off, len);
    int32_t id = hn_vocab_find_hashed(v, s + off, len, h);
    size_t at = w->out->n;
    if (id >= 0) {
        uint8_t whole = __atomic_load_n(&v->whole[id], __ATOMIC_RELAXED);
        if (whole == HN_WHOLE_YES || v->ignore_merges) return put_at(w, id, s + off, len);
        if (whole == HN_WHOLE_UNKNOWN) {
            hone_status st = fn(w, s + off, len);
            bool yes = w->out->n == at + 1 && w->out->data[at] == id;
            if (st == HONE_OK) __atomic_store_n(&v->whole[id], yes ? HN_WHOLE_YES : HN_WHOLE_NO, __ATOMIC_RELAXED);
            return st;
        }
    }
    if (!w->cache_mask || len > 64) return fn(w, s + off, len);
    cached *c = &w->cache[(h >> 40) & w->cache_mask];
    if (c->len == len && hn_same_bytes(s + c->off, s + off, len)) {
        for (uint32_t i = 0; i < c->n_out; i++) {
            hone_status st = put(w, w->out->data[w->out_base + c->out + i]);
            if (st != HONE_OK) return st;
        }
        return HONE_OK;
    }
    hone_status st = fn(w, s + off, len);
    if (st == HONE_OK)
        *c = (cached){ (uint32_t)off, (uint32_t)len, (uint32_t)(at - w->out_base), (uint32_t)(w->out->n - at) };
    return st;
}

/* ---- SentencePiece -------------------------------------------------------------------------- */

/* Order of floats as unsigned integers: a < b iff order(a) < order(b); -0 equals 0. */
static uint32_t score_order(float f)
{
    uint32_t u;
    f += 0.0f;
    memcpy(&u, &f, 4);
    return u >> 31 ? ~u : u | 0x80000000u;
}
static uint32_t order_of(const hn_vocab *v, int32_t id) { return score_order(v->score ? v->score[id] : 0.0f); }

/* Bytes of the symbol at s, n > 0: as many as the first byte asks for, but never beyond a
 * byte that begins something else, so that ill-formed text cannot swallow half a U+2581. */
static size_t spm_char_len(const char *s, size_t n)
{
    unsigned c = (unsigned char)s[0];
    size_t k = 1, max = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    while (k < max && k < n && ((unsigned char)s[k] & 0xC0) == 0x80) k++;
    return k;
}

static hone_status spm_put(work *w, const char *s, size_t len)
{
    const hn_vocab *v = w->v;
    int32_t id = hn_vocab_find(v, s, len);
    if (id >= 0) return put_at(w, id, s, len);
    for (size_t i = 0; i < len; i++) {
        id = v->byte_id[(unsigned char)s[i]];
        if (id < 0) id = v->unk; /* a vocabulary without byte tokens */
        hone_status st = id >= 0 ? put_at(w, id, s + i, 1) : HONE_OK;
        if (st != HONE_OK) return st;
    }
    return HONE_OK;
}

/* Few symbols: look for the best pair each time. */
static hone_status spm_short(work *w, const char *s, const uint8_t *lens, size_t n)
{
    uint32_t off[SHORT_WORD], len[SHORT_WORD], order[SHORT_WORD]; /* order of pair (i, i+1); 0: none */
    uint32_t at = 0;
    for (size_t i = 0; i < n; at += lens[i++]) off[i] = at, len[i] = lens[i];
    size_t first = 0, last = n - 1; /* pairs to look up: all, then the two that changed */
    for (;;) {
        for (size_t i = first; i < last && i + 1 < n; i++) {
            int32_t id = hn_vocab_find(w->v, s + off[i], len[i] + len[i + 1]);
            order[i] = id < 0 ? 0 : order_of(w->v, id);
        }
        size_t best = n;
        for (size_t i = 0; i + 1 < n; i++)
            if (order[i] && (best == n || order[i] > order[best])) best = i;
        if (best == n) break;
        len[best] += len[best + 1];
        n--;
        for (size_t i = best + 1; i < n; i++) off[i] = off[i + 1], len[i] = len[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++) order[i] = order[i + 1];
        first = best ? best - 1 : 0;
        last = best + 1;
    }
    for (size_t i = 0; i < n; i++) {
        hone_status st = spm_put(w, s + off[i], len[i]);
        if (st != HONE_OK) return st;
    }
    return HONE_OK;
}

static bool spm_push(work *w, const char *s, int32_t left)
{
    if (left < 0 || w->syms[left].next < 0) return true;
    const sym *a = &w->syms[left], *b = &w->syms[a->next];
    int32_t id = hn_vocab_find(w->v, s + a->off, (size_t)a->len + b->len);
    /* highest score first, then smallest left index */
    return id < 0 ||
           heap_push(w, (entry){ (uint64_t)order_of(w->v, id) << 32 | ~(uint32_t)left, (uint64_t)a->len + b->len });
}

static hone_status spm_word(work *w, const char *s, size_t len)
{
    uint8_t lens[SHORT_WORD];
    size_t n = 0;
    for (size_t i = 0; i < len; n++) {
        size_t k = spm_char_len(s + i, len - i);
        if (n < SHORT_WORD) lens[n] = (uint8_t)k;
        i += k;
    }
    if (n == 0) return HONE_OK;
    if (n <= SHORT_WORD) return spm_short(w, s, lens, n);

    if (!RESERVE(w, syms, n, false)) return NOMEM(w);
    sym *y = w->syms;
    n = 0;
    for (size_t i = 0, k; i < len; i += k, n++) {
        k = spm_char_len(s + i, len - i);
        y[n] = (sym){ (uint32_t)i, (uint32_t)k, (int32_t)n - 1, i + k < len ? (int32_t)n + 1 : -1 };
    }
    w->n_heap = 0;
    for (size_t i = 0; i < n; i++)
        if (!spm_push(w, s, (int32_t)i)) return NOMEM(w);
    while (w->n_heap) {
        entry e = heap_pop(w);
        int32_t left = (int32_t) ~(uint32_t)e.key;
        sym *a = &y[left];
        /* absorbed symbols have length 0; a pair that has grown since was pushed again */
        if (!a->len || a->next < 0 || (uint64_t)a->len + y[a->next].len != e.len) continue;
        sym *b = &y[a->next];
        a->len += b->len;
        b->len = 0;
        a->next = b->next;
        if (a->next >= 0) y[a->next].prev = left;
        if (!spm_push(w, s, a->prev) || !spm_push(w, s, left)) return NOMEM(w);
    }
    for (int32_t i = 0; i >= 0; i = y[i].next) {
        hone_status st = spm_put(w, s + y[i].off, y[i].len);
        if (st != HONE_OK) return st;
    }
    return HONE_OK;
}

static inline bool is_mark(const char *s, size_t i, size_t n) /* U+2581 at s[i] */
{
    return i < n && s[i] == '\xE2' && n - i >= 3 && s[i + 1] == '\x96' && s[i + 2] == '\x81';
}

/* No merge crosses from a character to U+2581 unless some token has the two side by side,
 * so the text may be divided there. i < n */
static size_t spm_word_end(const hn_vocab *v, const char *s, size_t i, size_t n)
{
    for (;;) {
        while (is_mark(s, i, n)) i += 3;
        do {
            if (i >= n) return n;
            i++;
        } while (!is_mark(s, i, n));
        if (!v->joined[(unsigned char)s[i - 1]]) return i;
    }
}

static hone_status spm_fragment(work *w, const char *s, size_t len)
{
    size_t n = 0, spaces = w->v->space_prefix;
    for (size_t i = 0; i < len; i++) spaces += s[i] == ' ';
    if (!RESERVE(w, buf, len + 3 * spaces, false)) return NOMEM(w);
    char *b = w->buf;
    if (w->v->space_prefix) memcpy(b, "\xE2\x96\x81", 3), n = 3;
    for (size_t i = 0; i < len; i++) {
        if (s[i] == ' ') {
            memcpy(b + n, "\xE2\x96\x81", 3);
            n += 3;
        } else {
            b[n++] = s[i];
        }
    }
    if (n > INT32_MAX)
        return HN_FAIL(w->err, HONE_E_ARG,
                       "text of %zu bytes, expected at most 2 GiB without spaces or 700 MB of spaces", len);
    w->from = b;
    hone_status st = start_cache(w, n);
    for (size_t a = 0, i; st == HONE_OK && a < n; a = i) {
        i = spm_word_end(w->v, b, a, n);
        st = known_word(w, b, a, i - a, spm_word);
    }
    return st;
}

/* ---- byte-level BPE, and BPE on characters ------------------------------------------------------ */

static uint32_t pair_rank(const hn_vocab *v, int32_t left, int32_t right, int32_t *id)
{
    const hn_merge *m = left < 0 || right < 0 ? NULL : hn_vocab_merge(v, left, right);
    if (!m) return UINT32_MAX;
    *id = (int32_t)m->id;
    return m->rank;
}

enum { LOST = -1, LOST_TOO = -2 }; /* symbols of a byte that no token stands for; the second kind follows another one */

/* A symbol that begins at *s, which is moved behind it, in a word that ends at `end`. Lost bytes are dropped or, all
 * that stand side by side, become the unknown token. */
static inline hone_status put_symbol(work *w, int32_t id, const char **s, const char *end)
{
    bool lost = id < 0;
    if (lost) id = id == LOST && w->v->raw ? w->v->unk : -1;
    if (__builtin_expect(!w->spans, 1))
        return id >= 0 ? put(w, id) : HONE_OK; /* nobody asks where, and the length is far away */
    size_t len = *s < end;
    hone_status st = HONE_OK;
    /* as long as its text; but "<0x41>" of a file that does not call it a byte stands for one byte all the same */
    if (!lost && len && id != w->v->byte_id[(unsigned char)**s]) hn_vocab_text(w->v, id, &len);
    if (len > (size_t)(end - *s)) len = (size_t)(end - *s);
    if (id >= 0) st = put_at(w, id, *s, len);
    *s += len;
    return st;
}

/* The symbols that the character or, in byte-level BPE, the byte at s[*i] stands for: one, or up to four bytes. */
static inline size_t bpe_start(const hn_vocab *v, const char *s, size_t len, size_t *i, int32_t id[4], int32_t last)
{
    if (!v->raw) {
        id[0] = v->byte_id[(unsigned char)s[(*i)++]];
        return 1;
    }
    size_t k = spm_char_len(s + *i, len - *i), n_known = 0;
    id[0] = hn_vocab_find(v, s + *i, k);
    if (id[0] >= 0) {
        *i += k;
        return 1;
    }
    for (size_t j = 0; j < k; j++) n_known += (id[j] = v->byte_id[(unsigned char)s[*i + j]]) >= 0;
    for (size_t j = 0; n_known < k && j < k; j++) id[j] = j || last < 0 ? LOST_TOO : LOST;
    *i += k;
    return k;
}

static hone_status bpe_short(work *w, const char *s, size_t len)
{
    const hn_vocab *v = w->v;
    int32_t id[SHORT_WORD], to[SHORT_WORD]; /* pair (i, i+1): rank and what it becomes */
    uint32_t rank[SHORT_WORD];
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        int32_t ids[4];
        size_t k = bpe_start(v, s, len, &i, ids, n ? id[n - 1] : 0);
        for (size_t j = 0; j < k; j++) id[n++] = ids[j];
    }
    for (size_t i = 0; i + 1 < n; i++) rank[i] = pair_rank(v, id[i], id[i + 1], &to[i]);
    for (;;) {
        size_t best = 0;
        uint32_t r = UINT32_MAX;
        for (size_t i = 0; i + 1 < n; i++)
            if (rank[i] < r) r = rank[best = i];
        if (r == UINT32_MAX) break;
        id[best] = to[best];
        n--;
        for (size_t i = best + 1; i < n; i++) id[i] = id[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++) rank[i] = rank[i + 1], to[i] = to[i + 1];
        if (best) rank[best - 1] = pair_rank(v, id[best - 1], id[best], &to[best - 1]);
        if (best + 1 < n) rank[best] = pair_rank(v, id[best], id[best + 1], &to[best]);
    }
    const char *end = s + len;
    for (size_t i = 0; i < n; i++) {
        hone_status st = put_symbol(w, id[i], &s, end);
        if (st != HONE_OK) return st;
    }
    return HONE_OK;
}

/* In syms, off is the id (negative: LOST, LOST_TOO) and len the rank of the pair with the right neighbour (-1u: none,
 * or absorbed). */
static bool bpe_push(work *w, int32_t left)
{
    if (left < 0) return true;
    sym *a = &w->syms[left];
    int32_t to = -1;
    uint32_t r = a->next < 0 ? UINT32_MAX : pair_rank(w->v, (int32_t)a->off, (int32_t)w->syms[a->next].off, &to);
    a->len = r;
    /* lowest rank first, then smallest left index */
    return r == UINT32_MAX || heap_push(w, (entry){ (uint64_t)~r << 32 | ~(uint32_t)left, (uint32_t)to });
}

static hone_status bpe_word(work *w, const char *s, size_t len)
{
    if (len <= SHORT_WORD) return bpe_short(w, s, len);
    if (!RESERVE(w, syms, len, false)) return NOMEM(w);
    sym *y = w->syms;
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        int32_t ids[4];
        size_t k = bpe_start(w->v, s, len, &i, ids, n ? (int32_t)y[n - 1].off : 0);
        for (size_t j = 0; j < k; j++, n++)
            y[n] = (sym){ (uint32_t)ids[j], UINT32_MAX, (int32_t)n - 1, (int32_t)n + 1 };
    }
    y[n - 1].next = -1;
    w->n_heap = 0;
    for (size_t i = 0; i + 1 < n; i++)
        if (!bpe_push(w, (int32_t)i)) return NOMEM(w);
    while (w->n_heap) {
        entry e = heap_pop(w);
        int32_t left = (int32_t) ~(uint32_t)e.key;
        sym *a = &y[left];
        if (a->len != ~(uint32_t)(e.key >> 32)) continue; /* the pair has changed since */
        sym *b = &y[a->next];
        a->off = (uint32_t)e.len;
        a->next = b->next;
        b->len = UINT32_MAX;
        if (a->next >= 0) y[a->next].prev = left;
        if (!bpe_push(w, a->prev) || !bpe_push(w, left)) return NOMEM(w);
    }
    const char *end = s + len;
    for (int32_t i = 0; i >= 0; i = y[i].next) {
        hone_status st = put_symbol(w, (int32_t)y[i].off, &s, end);
        if (st != HONE_OK) return st;
    }
    return HONE_OK;
}

static hone_status bpe_fragment(work *w, const char *s, size_t len)
{
    const hn_class_table *t = hn_class_table_get();
    const unsigned char *u = (const unsigned char *)s;
    if (!RESERVE(w, cps, len, false)) return NOMEM(w);
    uint32_t *x = w->cps;
    size_t n = 0, bad = 0, used;
    for (size_t i = 0; i < len; i += used) {
        int32_t cp = hn_utf8_next(u + i, len - i, &used);
        if (cp < 0) cp = 0xFFFD, bad++;
        x[n++] = (uint32_t)cp | (uint32_t)hn_class_of(t, (uint32_t)cp) << 21;
    }
    if (bad) { /* words are taken from the repaired text */
        if (!RESERVE(w, buf, len + 3 * bad, false)) return NOMEM(w);
        len = 0;
        for (size_t i = 0; i < n; i++) len += hn_utf8_put(w->buf + len, HN_CP(x[i]));
        s = w->buf;
    }
    w->from = s;
    hn_pre_split(w->v->pre, x, n);
    hone_status st = start_cache(w, len);
    size_t a = 0, b = 0; /* bytes of the word */
    for (size_t i = 0; st == HONE_OK && i < n;) {
        do b += hn_utf8_width(HN_CP(x[i]));
        while (++i < n && !(x[i] & HN_CUT));
        st = known_word(w, s, a, b - a, bpe_word);
        a = b;
    }
    return st;
}

/* Text as raw BPE's vocabulary has it: ill-formed bytes repaired, U+2581 a space. Most text is so already. */
static hone_status raw_text(work *w, const char **s, size_t *len)
{
    const unsigned char *u = (const unsigned char *)*s;
    size_t n = 0, bad = 0, mark = 0, used;
    for (size_t i = 0; i < *len; i += used) {
        used = 1;
        if (u[i] < 0x80) continue;
        bad += hn_utf8_next(u + i, *len - i, &used) < 0;
        mark += is_mark(*s, i, *len);
    }
    if (!bad && !mark) return HONE_OK;
    if (!RESERVE(w, buf, *len + 3 * bad, false)) return NOMEM(w);
    for (size_t i = 0; i < *len; i += used) {
        int32_t cp = hn_utf8_next(u + i, *len - i, &used);
        n += hn_utf8_put(w->buf + n, cp < 0 ? 0xFFFD : cp == 0x2581 ? ' ' : (uint32_t)cp);
    }
    *s = w->buf;
    *len = n;
    return HONE_OK;
}

/* Behind the newlines at i, or the end of what no merge goes beyond: a line, or the text before a space. i < n */
static size_t raw_word_end(const hn_vocab *v, const char *s, size_t i, size_t n)
{
    if (s[i] == '\n') {
        while (i < n && s[i] == '\n') i++;
        return i;
    }
    for (;;) {
        while (i < n && s[i] == ' ') i++;
        while (i < n && s[i] != ' ' && s[i] != '\n') i++;
        if (i == n || s[i] == '\n' || !v->joined[(unsigned char)s[i - 1]]) return i;
    }
}

static hone_status raw_bpe_fragment(work *w, const char *s, size_t len)
{
    const hn_vocab *v = w->v;
    hone_status st = raw_text(w, &s, &len);
    if (st != HONE_OK) return st;
    bool lines = hn_pre_is_raw(v->pre) == HN_PRE_RAW_LINES;
    w->from = s;
    st = start_cache(w, len);
    for (size_t a = 0, b; st == HONE_OK && a < len; a = b) {
        b = raw_word_end(v, s, a, len);
        int32_t id = lines && s[a] == '\n' ? hn_vocab_find(v, s + a, b - a) : -1;
        st = id >= 0 ? put_at(w, id, s + a, b - a) : known_word(w, s, a, b - a, bpe_word);
    }
    return st;
}

/* ---- RWKV World --------------------------------------------------------------------------------- */

static hone_status no_byte(work *w, const char *s, size_t i)
{
    return HN_FAIL(w->err, HONE_E_FORMAT,
                   "tokenizer.ggml.tokens has no token for byte 0x%02x, found in the text at byte %zu; expected all "
                   "256 single bytes",
                   (unsigned char)s[i], i);
}

/* The same with very long tokens: first, from right to left, the longest token that begins at every byte. */
static hone_status rwkv_long(work *w, const char *s, size_t len)
{
    const hn_match *m = &w->v->ends;
    if (!RESERVE(w, cps, len, false)) return NOMEM(w);
    uint32_t at = 0;
    for (size_t i = len; i-- > 0;) {
        at = hn_match_step(m, at, (uint8_t)s[i]);
        w->cps[i] = m->last[at];
    }
    for (size_t i = 0; i < len;) {
        const hn_match_token *t = &m->token[w->cps[i]];
        if (!w->cps[i]) return no_byte(w, s, i);
        hone_status st = put_at(w, t->id, s + i, t->len);
        if (st != HONE_OK) return st;
        i += t->len;
    }
    return HONE_OK;
}

static hone_status rwkv_fragment(work *w, const char *s, size_t len)
{
    const hn_vocab *v = w->v;
    if (v->ends.n) return rwkv_long(w, s, len);
    const hn_trie_node *t = v->trie.node;
    for (size_t i = 0; i < len;) {
        uint32_t at = 0, best = 0;
        size_t best_end = i;
        for (size_t k = i; k < len;) {
            uint32_t child = (t[at].base & ~HN_TRIE_END) ^ (unsigned char)s[k++];
            if (t[child].check != at) break;
            at = child;
            if (t[at].base & HN_TRIE_END) best = at, best_end = k;
        }
        if (!best) return no_byte(w, s, i);
        hone_status st = put_at(w, v->trie.id[best], s + i, best_end - i);
        if (st != HONE_OK) return st;
        i = best_end;
    }
    return HONE_OK;
}

/* ---- partition by special tokens -------------------------------------------------------------------- */

/* Where a token of the list may stand; of those that end at one place one at a time, the longest that is still
 * possible. */
typedef struct hit {
    size_t end;
    uint32_t len, token, clean;
    int32_t id;
} hit; /* clean: bytes before end that are not input */
typedef struct hits {
    hit *data;
    size_t n, cap;
} hits;

/* Sets h to the longest token that ends there, of at most max bytes; shorter than the one it has. */
static bool next_hit(const hn_match *m, hit *h, unsigned cls, size_t max)
{
    uint32_t t = hn_match_at_most(m, h->token, cls, max < h->clean ? max : h->clean);
    if (h->clean < max) {
        uint32_t p = hn_match_at_most(m, h->token, HN_MARK_PLAIN, max);
        if (p && (!t || m->token[p].len > m->token[t].len)) t = p;
    }
    h->token = t;
    h->len = m->token[t].len;
    h->id = m->token[t].id;
    return t != 0;
}

/* For every place where tokens of class cls end: the longest. A token that structures a prompt is one only where
 * none of its bytes is input. */
static bool find_hits(const hn_vocab *v, unsigned cls, const char *s, size_t len, const hone_span *input,
                      size_t n_input, hits *h)
{
    const hn_match *m = &v->marks;
    size_t k = 0, dirty = 0; /* end of the last input that begins before here */
    uint32_t at = 0;
    if (!m->n_token || (cls == HN_MARK_USER && !v->has_user)) return true;
    for (size_t i = 0; i < len; i++) {
        if (!at && m->n_first == 1) { /* what all begin with, mostly '<' */
            const char *p = memchr(s + i, m->first, len - i);
            if (!p) break;
            i = (size_t)(p - s);
        }
        at = at ? hn_match_step(m, at, (uint8_t)s[i]) : m->root[(unsigned char)s[i]];
        if (!at || !m->last[(size_t)at * HN_N_MARK + cls]) continue;
        for (; k < n_input && input[k].begin <= i; k++) dirty = input[k].end;
        size_t end = i + 1, clean = dirty < end ? end - dirty : 0;
        hit t = { .end = end,
                  .token = m->last[(size_t)at * HN_N_MARK + cls],
                  .clean = clean < UINT32_MAX ? (uint32_t)clean : UINT32_MAX };
        if (!next_hit(m, &t, cls, UINT32_MAX)) continue;
        if (!reserve((void **)&h->data, &h->cap, h->n + 1, sizeof *h->data, true)) return false;
        h->data[h->n++] = t;
    }
    return true;
}

static bool before(const hit *x, const hit *y) /* longest first, then by token, then from left to right */
{
    if (x->len != y->len) return x->len > y->len;
    if (x->id != y->id) return x->id < y->id;
    return x->end < y->end;
}

static void sift(hit *h, size_t n, size_t i) /* h[i] may belong farther down */
{
    hit e = h[i];
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && before(&h[c + 1], &h[c])) c++;
        if (!before(&h[c], &e)) break;
        h[i] = h[c];
    }
    h[i] = e;
}

static int by_place(const void *a, const void *b)
{
    const hit *x = a, *y = b;
    return x->end < y->end ? -1 : x->end > y->end;
}

static bool is_c_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Longest tokens first, each from left to right, as if the text were divided once per token.
 * Keeps the hits that hold, in text order; past[i] is set for bytes that belong to no raw
 * fragment (tokens and the white space they swallow), to a place behind them. A hit is no
 * longer than those before it, so its ends show whether it touches something taken; if only
 * its beginning does, a shorter token may fit behind. That happens to each end at most once
 * for every token taken, and for one of n bytes to fewer than n ends: linear. */
static void choose_hits(const hn_vocab *v, unsigned cls, const char *s, size_t len, hits *h, uint32_t *past)
{
    hit *d = h->data;
    size_t n = h->n, kept = h->n; /* a heap in d[0, n), the kept ones in d[kept, h->n) */
    for (size_t i = n / 2; i-- > 0;) sift(d, n, i);
    while (n) {
        hit t = d[0];
        size_t pos = t.end - t.len;
        if (!past[t.end - 1] && past[pos]) {
            while (past[pos]) pos = past[pos];
            if (next_hit(&v->marks, &t, cls, t.end - pos)) {
                d[0] = t;
                sift(d, n, 0);
                continue;
            }
        }
        d[0] = d[--n];
        if (n) sift(d, n, 0);
        if (past[t.end - 1] || !t.token) continue;
        for (size_t k = pos; k < t.end; k++) past[k] = (uint32_t)t.end;
        if (v->flags[t.id] & HN_FLAG_LSTRIP)
            for (size_t k = pos; k && !past[k - 1] && is_c_space(s[k - 1]); k--) past[k - 1] = (uint32_t)t.end;
        if (v->flags[t.id] & HN_FLAG_RSTRIP) {
            size_t e = t.end;
            while (e < len && !past[e] && is_c_space(s[e])) e++;
            for (size_t k = t.end; k < e; k++) past[k] = (uint32_t)e;
        }
        d[--kept] = t; /* kept >= n + 1: one has left the heap */
    }
    memmove(d, d + kept, (h->n - kept) * sizeof *d);
    h->n -= kept;
    if (h->n > 1) qsort(d, h->n, sizeof *d, by_place);
}

/* ---- where tokens come from ------------------------------------------------------------------------ */

/* Bytes [i, i + n) of the text are [at, at + used) of what SentencePiece or BPE divides; same: byte by byte. */
typedef struct unit {
    size_t i, n, at, used;
    bool same;
} unit;

static void next_unit(const hn_vocab *v, const char *s, size_t len, unit *u)
{
    u->i += u->n;
    u->at += u->used;
    if (v->kind == HN_VOCAB_SPM) {
        u->n = 1;
        u->same = s[u->i] != ' ';
        u->used = u->same ? 1 : 3;
    } else {
        u->same = hn_utf8_next((const unsigned char *)s + u->i, len - u->i, &u->n) >= 0;
        u->used = u->same ? u->n : 3; /* U+FFFD */
        if (v->raw && is_mark(s, u->i, len)) u->same = false, u->used = 1;
    }
}

/* Turns the spans that a raw fragment added, which count bytes of what was divided, into spans of the text. */
static void place_spans(work *w, size_t first, const char *s, size_t len, size_t base)
{
    hn_spans *p = w->spans;
    hn_vocab_kind kind = w->v->kind;
    if (kind == HN_VOCAB_SPM || (kind == HN_VOCAB_BPE && w->from != s)) {
        unit u = { .used = kind == HN_VOCAB_SPM && w->v->space_prefix ? 3 : 0 };
        for (size_t k = first; k < p->n; k++) {
            hone_span *t = &p->data[k];
            while (u.at + u.used <= t->begin && u.i + u.n < len) next_unit(w->v, s, len, &u);
            size_t begin = u.same ? u.i + t->begin - u.at : u.i;
            while (u.at + u.used < t->end && u.i + u.n < len) next_unit(w->v, s, len, &u);
            *t = (hone_span){ begin, u.same ? u.i + t->end - u.at : u.i + u.n };
        }
    }
    for (size_t k = first; k < p->n; k++) p->data[k].begin += base, p->data[k].end += base;
}

/* text + base: s. */
static hone_status raw_fragment(work *w, const char *s, size_t len, size_t base)
{
    hone_status st;
    size_t first = w->spans ? w->spans->n : 0;
    w->from = s;
    switch (w->v->kind) {
    case HN_VOCAB_SPM: st = spm_fragment(w, s, len); break;
    case HN_VOCAB_BPE: st = w->v->raw ? raw_bpe_fragment(w, s, len) : bpe_fragment(w, s, len); break;
    case HN_VOCAB_WPM: st = hn_wpm_encode(w->v, s, len, w->out, w->spans, w->err); break;
    case HN_VOCAB_UGM: st = hn_ugm_encode(w->v, s, len, w->out, w->spans, w->err); break;
    default: st = rwkv_fragment(w, s, len);
    }
    if (w->spans && st == HONE_OK) place_spans(w, first, s, len, base);
    return st;
}

static hone_status all_fragments(work *w, const char *s, size_t len, bool special, const hone_span *input,
                                 size_t n_input)
{
    const hn_vocab *v = w->v;
    hits h = { 0 };
    uint32_t *past = NULL;
    hone_status st = HONE_OK;
    unsigned cls = special ? HN_MARK_ANY : HN_MARK_USER;
    if (!find_hits(v, cls, s, len, input, n_input, &h)) st = NOMEM(w);
    else if (!h.n) st = raw_fragment(w, s, len, 0);
    else if (!(past = calloc(len, sizeof *past))) st = NOMEM(w);
    else {
        choose_hits(v, cls, s, len, &h, past);
        size_t i = 0;
        for (size_t k = 0; st == HONE_OK && k <= h.n; k++) {
            size_t end = k < h.n ? h.data[k].end - h.data[k].len : len, b = i;
            while (b < end && past[b]) b++;        /* swallowed by the token on the left … */
            for (i = b; i < end && !past[i];) i++; /* … and by the one on the right */
            if (i > b) st = raw_fragment(w, s + b, i - b, b);
            w->from = s;
            if (st == HONE_OK && k < h.n)
                st = put_at(w, h.data[k].id, s + h.data[k].end - h.data[k].len, h.data[k].len);
            if (k < h.n) i = h.data[k].end;
        }
    }
    free(past);
    free(h.data);
    return st;
}

static hone_status encode(const hn_vocab *v, const char *text, size_t len, int flags, const hone_span *input,
                          size_t n_input, hn_ids *out, hn_spans *spans, hone_error *err)
{
    work w = { .v = v, .out = out, .err = err, .spans = spans, .from = text };
    size_t n_before = out->n;
    hone_status st = HONE_OK;
    if (len > INT32_MAX / 2)
        return HN_FAIL(err, HONE_E_ARG, "text of %zu bytes, expected at most %d", len, INT32_MAX / 2);
    if (flags & (HONE_TOK_ADD | HONE_TOK_ADD_BOS) && v->add_bos && v->bos >= 0) st = put_at(&w, v->bos, text, 0);
    if (st == HONE_OK && len) st = all_fragments(&w, text, len, flags & HONE_TOK_SPECIAL, input, n_input);
    int32_t last = v->kind == HN_VOCAB_WPM ? v->sep : v->eos;
    w.from = text;
    if (st == HONE_OK && flags & HONE_TOK_ADD && v->add_eos && last >= 0) st = put_at(&w, last, text + len, 0);
    free(w.syms);
    free(w.heap);
    free(w.cps);
    free(w.buf);
    free(w.cache);
    if (st != HONE_OK) out->n = n_before;
    return st;
}

hone_status hn_vocab_encode(const hn_vocab *v, const char *text, size_t len, int flags, hn_ids *out, hone_error *err)
{
    return encode(v, text, len, flags, NULL, 0, out, NULL, err);
}

hone_status hn_vocab_encode_spans(const hn_vocab *v, const char *text, size_t len, int flags, const hone_span *input,
                                  size_t n_input, hn_ids *out, hone_error *err)
{
    return encode(v, text, len, flags, input, n_input, out, NULL, err);
}

hone_status hn_vocab_locate(const hn_vocab *v, const char *text, size_t len, int flags, hn_ids *out, hone_span **spans,
                            hone_error *err)
{
    hn_spans list = { 0 };
    *spans = NULL;
    hone_status st = encode(v, text, len, flags, NULL, 0, out, &list, err);
    if (st != HONE_OK) free(list.data);
    else *spans = list.data;
    return st;
}
