/* ugm: Unigram, the tokenizer of T5 and XLM-RoBERTa. Normalises text with SentencePiece's
 * precompiled map, then finds the segmentation of the highest total score (Kudo 2018,
 * arXiv:1804.10959; Viterbi). Refuses to know files beyond its own keys. */
#include "text/text_priv.h"

#include <math.h>
#include <stdlib.h>

enum {
    MAX_REPLACEMENT = 256, /* bytes; a map must not blow texts up. NFKC's longest has 33 */
    MAX_STEPS = 160,
    FREE_STEPS = 1 << 20 /* of the trie: for every byte of text, and for any text. SentencePiece's tokens have at most
                          * 16 characters, 48 steps for a byte that begins one; other vocabularies must not hang */
};

/* ---- precompiled map ---------------------------------------------------------------------- */

/* A double array compressed by XOR (s-yata/darts-clone), one unit of 32 bits a node:
 *   bits 0..7 and 31  label: the byte that leads here; bit 31 marks a value
 *   bit 8             the node has a value, at (node ^ base)
 *   bit 9, 10..30     base = bits 10..30, times 256 if bit 9
 *   value             bits 0..30: where its replacement begins */
#define LABEL(u) ((u)&0x800000FFu)
#define HAS_VALUE(u) ((u) >> 8 & 1)
#define BASE(u) ((u) >> 10 << (((u)&512) >> 6))
#define VALUE(u) ((u)&0x7FFFFFFFu)

/* Replacement of the longest beginning of s[0..n) that the map has; 0: none. Else the bytes consumed. */
static size_t find_prefix(const hn_vocab *v, const unsigned char *s, size_t n, const char **to)
{
    size_t best = 0;
    if (!v->n_map) return 0;
    uint32_t node = BASE(v->map[0]);
    for (size_t i = 0; i < n && s[i]; i++) {
        node ^= s[i];
        if (node >= v->n_map) break; /* load_map checked values, not every path a byte could take */
        uint32_t u = v->map[node];
        if (LABEL(u) != s[i]) break;
        node ^= BASE(u);
        if (HAS_VALUE(u)) {
            best = i + 1;
            *to = v->map_text + VALUE(v->map[node]);
        }
    }
    return best;
}

/* blob: u32 bytes of units, units, replacements; little endian. Copied, so that units are aligned. */
static hone_status load_map(hn_vocab *v, const hn_gguf *g, hone_error *err)
{
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    const char *path = hn_gguf_path(g);
    hn_gguf_array a;
    bool found = false;
    hone_status st = hn_gguf_get_array(g, key, &a, &found, err);
    if (st != HONE_OK || !found) return st;
    if (a.elem_type != HONE_KV_U8 && a.elem_type != HONE_KV_I8)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s: elements of type %d, expected u8 (type %d) or i8 (type %d)", path,
                       key, (int)a.elem_type, HONE_KV_U8, HONE_KV_I8);
    if (a.count == 0) return HONE_OK;
    uint32_t size = 0;
    if (a.count >= 4) memcpy(&size, a.data, 4);
    if (size < 4 || size % 4 || a.count > UINT32_MAX || size > a.count - 4)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %s: %llu bytes, of which %u are said to be units; expected a multiple of 4 in 4 to %llu",
                       path, key, (unsigned long long)a.count, size,
                       (unsigned long long)(a.count > 4 ? a.count - 4 : 0));
    uint32_t n_text = (uint32_t)a.count - 4 - size;
    if (!(v->map = malloc(size)) || !(v->map_text = malloc((size_t)n_text + 1)))
        return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: normalisation map of %llu bytes", (unsigned long long)a.count);
    memcpy(v->map, a.data + 4, size);
    memcpy(v->map_text, a.data + 4 + size, n_text);
    v->n_map = size / 4;
    v->n_map_text = n_text;
    for (uint32_t i = 0, run = 0; i < n_text; i++) {
        run = v->map_text[i] ? run + 1 : 0;
        if (run > MAX_REPLACEMENT || (run && i + 1 == n_text))
            return HN_FAIL(
                err, HONE_E_FORMAT,
                "%s: %s: the replacement at byte %u does not end, expected a NUL within %d bytes and the map", path,
                key, i + 1 - run, MAX_REPLACEMENT);
    }
    for (uint32_t i = 0; i < v->n_map; i++) {
        uint32_t u = v->map[i], at = i ^ BASE(u);
        if (u >> 31 || !HAS_VALUE(u)) continue;
        if (at >= v->n_map)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s: unit %u has its value in unit %u, expected one of %u units",
                           path, key, i, at, v->n_map);
        if (VALUE(v->map[at]) >= n_text)
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: %s: unit %u puts its replacement at byte %u, expected one of %u bytes", path, key, i,
                           VALUE(v->map[at]), n_text);
    }
    return HONE_OK;
}

hone_status hn_ugm_load(hn_vocab *v, const hn_gguf *g, hone_error *err)
{
    float min = INFINITY;
    for (int32_t i = 0; v->score && i < v->n; i++) {
        if (!isfinite(v->score[i]))
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: tokenizer.ggml.scores[%d] is infinite; expected a logarithm of a probability",
                           hn_gguf_path(g), i);
        if (v->type[i] == HN_TOK_NORMAL && v->score[i] < min) min = v->score[i];
    }
    v->unk_score = (isfinite(min) ? min : 0.0f) - 10.0f;
    hone_status st = hn_gguf_get_bool(g, "tokenizer.ggml.remove_extra_whitespaces", &v->merge_spaces, NULL, err);
    return st == HONE_OK ? load_map(v, g, err) : st;
}

/* ---- normalisation -------------------------------------------------------------------------- */

typedef struct place {
    uint32_t begin, end;
} place; /* bytes of the text as given */
typedef struct text {
    char *s;
    place *at; /* [cap] where each byte of s came from; NULL: nobody asks */
    size_t n, cap;
    bool in_word, prefixed;
    place spaces; /* dropped since the last word */
} text;

static bool make_room(text *t, size_t more)
{
    if (more <= t->cap - t->n) return true;
    size_t cap = t->cap * 2 > t->n + more ? t->cap * 2 : t->n + more;
    void *p = realloc(t->s, cap);
    if (!p) return false;
    t->s = p;
    if (t->at) {
        if (!(p = realloc(t->at, cap * sizeof *t->at))) return false;
        t->at = p;
    }
    t->cap = cap;
    return true;
}

static void put_space(text *t, place at)
{
    memcpy(t->s + t->n, "\xE2\x96\x81", 3);
    for (size_t i = 0; t->at && i < 3; i++) t->at[t->n + i] = at;
    t->n += 3;
}

/* Appends n bytes, spaces as U+2581 or dropped. There is room for 3 n + 3. */
static void put_bytes(const hn_vocab *v, text *t, const char *s, size_t n, place at)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ' ') {
            if (t->in_word) t->spaces.begin = at.begin;
            t->spaces.end = at.end;
            t->in_word = false;
            if (!v->merge_spaces) put_space(t, at);
            continue;
        }
        if (!t->in_word) {
            t->in_word = true;
            /* the mark stands for the spaces dropped between two words, or for nothing */
            place mark = v->merge_spaces && t->n ? t->spaces : (place){ at.begin, at.begin };
            if (v->merge_spaces || (v->space_prefix && !t->prefixed)) {
                put_space(t, mark);
                if (t->at && !v->merge_spaces) { /* of the marks in front it is the first one */
                    memmove(t->at + 3, t->at, (t->n - 3) * sizeof *t->at);
                    t->at[0] = t->at[1] = t->at[2] = (place){ 0, 0 };
                }
                t->prefixed = true;
            }
        }
        if (t->at) t->at[t->n] = at;
        t->s[t->n++] = s[i];
    }
}

/* User-defined tokens need no care: the partition has taken them out of s. */
static hone_status normalise(const hn_vocab *v, text *t, const char *s, size_t len, hone_error *err)
{
    for (size_t i = 0, used; i < len; i += used) {
        const unsigned char *u = (const unsigned char *)s + i;
        const char *to = s + i;
        size_t n = find_prefix(v, u, len - i, &to);
        if (n) {
            used = n;
            n = strlen(to);
        } else if (hn_utf8_next(u, len - i, &used) >= 0) {
            n = used;
        } else {
            to = "\xEF\xBF\xBD";
            n = 3;
            used = 1; /* SentencePiece: one for every byte */
        }
        if (t->n > INT32_MAX - 3 * n - 3)
            return HN_FAIL(err, HONE_E_ARG,
                           "text of %zu bytes becomes more than 2 GiB when normalised; expected a shorter one", len);
        if (!make_room(t, 3 * n + 3))
            return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: normalised text of %zu bytes", t->n);
        put_bytes(v, t, to, n, (place){ (uint32_t)i, (uint32_t)(i + used) });
    }
    return HONE_OK;
}

/* ---- Viterbi ----------------------------------------------------------------------------------- */

enum { UNKNOWN = -1 };

typedef struct best {
    double score;
    uint32_t from;
    int32_t id; /* UNKNOWN: a character that is no token */
} best;         /* of the paths that end here */

static size_t char_len(const char *s, size_t n) /* a replacement need not be UTF-8 */
{
    unsigned c = (unsigned char)s[0];
    size_t k = 1, max = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    while (k < max && k < n && ((unsigned char)s[k] & 0xC0) == 0x80) k++;
    return k;
}

/* The window: b[k] is for position at + k, and every path goes through position at. */
typedef struct window {
    best *b;
    size_t cap, at, reach;
} window; /* reach: last position any path has reached */

static bool offer(window *w, size_t end, size_t from, double score, int32_t id)
{
    size_t k = end - w->at;
    if (k >= w->cap) {
        size_t cap = 2 * k + 64;
        best *p = realloc(w->b, cap * sizeof *p);
        if (!p) return false;
        w->b = p;
        w->cap = cap;
    }
    for (; w->reach < end; w->reach++) w->b[w->reach + 1 - w->at].score = -INFINITY;
    if (score > w->b[k].score) w->b[k] = (best){ score, (uint32_t)(from - w->at), id };
    return true;
}

/* Has the vocabulary a token for each byte of an unknown character? All of them or none (byte_fallback). */
static bool has_bytes(const hn_vocab *v, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v->byte_id[(unsigned char)s[i]] < 0) return false;
    return true;
}

static hone_status put_token(int32_t id, size_t begin, size_t end, hn_ids *out, hn_spans *spans, hone_error *err)
{
    hone_status st = hn_ids_put(out, id, err);
    return st == HONE_OK && spans ? hn_spans_put(spans, begin, end, err) : st;
}

/* The tokens from w->at to end, in order; several unknown ones are one. *unk: the last one was. */
static hone_status put_path(const hn_vocab *v, const char *s, const window *w, size_t end, bool *unk, hn_ids *out,
                            hn_spans *spans, hone_error *err)
{
    size_t first = out->n, n;
    bool later = false, is_unk = false, last_unk = false;
    for (size_t k = end - w->at; k; k = w->b[k].from, later = is_unk) {
        int32_t id = w->b[k].id;
        size_t from = w->at + w->b[k].from, to = w->at + k;
        bool bytes = id == UNKNOWN && has_bytes(v, s + from, to - from);
        hone_status st = HONE_OK;
        is_unk = !bytes && (id == UNKNOWN || id == v->unk);
        if (to == end) last_unk = is_unk && v->unk >= 0;
        if (is_unk && (later || v->unk < 0)) { /* one with the unknown one behind it, or nothing stands for it */
            if (spans && v->unk >= 0) spans->data[spans->n - 1].begin = from;
            continue;
        }
        for (size_t i = to; bytes && st == HONE_OK && i-- > from;)
            st = put_token(v->byte_id[(unsigned char)s[i]], i, i + 1, out, spans, err);
        if (!bytes) st = put_token(is_unk ? v->unk : id, from, to, out, spans, err);
        if (st != HONE_OK) return st;
    }
    n = out->n - first;
    for (size_t i = first, k = out->n; i + 1 < k; i++) {
        int32_t t = out->data[i];
        out->data[i] = out->data[--k];
        out->data[k] = t;
    }
    hone_span *p = spans && n ? spans->data + spans->n - n : NULL;
    for (size_t i = 0, k = n; p && i + 1 < k; i++) {
        hone_span t = p[i];
        p[i] = p[--k];
        p[k] = t;
    }
    if (*unk && is_unk && n) { /* the first one joins the last one of the path before */
        memmove(out->data + first, out->data + first + 1, (n - 1) * sizeof *out->data);
        out->n--;
        if (spans) {
            p[-1].end = p->end;
            memmove(p, p + 1, (n - 1) * sizeof *p);
            spans->n--;
        }
    }
    *unk = last_unk;
    return HONE_OK;
}

static hone_status too_many(const hn_vocab *v, size_t n_source, hone_error *err)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < v->all.n; i++) {
        uint32_t n = v->off[v->all.ids[i] + 1] - v->off[v->all.ids[i]];
        if (n > longest) longest = n;
    }
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "text of %zu bytes: the vocabulary's tokens of up to %u bytes, and its normalisation map, need more "
                   "than %d steps for each of them; "
                   "expected tokens of a few characters",
                   n_source, longest, MAX_STEPS);
}

/* s: a normalised text that had n_source bytes. */
static hone_status segment(const hn_vocab *v, const char *s, size_t len, size_t n_source, window *w, hn_ids *out,
                           hn_spans *spans, hone_error *err)
{
    const hn_trie_node *t = v->trie.node;
    uint64_t steps = 0, most = (uint64_t)n_source * MAX_STEPS + FREE_STEPS;
    bool unk = false;
    double score = 0; /* of the best path to i */
    for (size_t i = 0; i < len;) {
        size_t n = char_len(s + i, len - i);
        bool single = false, ok = true;
        uint32_t at = 0;
        size_t k = i;
        while (ok && k < len) {
            uint32_t child = (t[at].base & ~HN_TRIE_END) ^ (unsigned char)s[k++];
            if (t[child].check != at) break;
            at = child;
            if (!(t[at].base & HN_TRIE_END)) continue;
            int32_t id = v->trie.id[at];
            single |= k - i == n;
            ok = offer(w, k, i, score + (v->score && v->type[id] != HN_TOK_USER ? (double)v->score[id] : 0.0), id);
        }
        if ((steps += k - i) > most) return too_many(v, n_source, err);
        if (ok && !single) ok = offer(w, i + n, i, score + (double)v->unk_score, UNKNOWN);
        if (!ok) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: %zu positions", len);
        i += n;
        score = w->b[i - w->at].score;
        if (w->reach > i) continue;
        /* no token crosses i: what lies before it is decided */
        hone_status st = put_path(v, s, w, i, &unk, out, spans, err);
        if (st != HONE_OK) return st;
        w->at = i;
    }
    return HONE_OK;
}

hone_status hn_ugm_encode(const hn_vocab *v, const char *s, size_t len, hn_ids *out, hn_spans *spans, hone_error *err)
{
    text t = { .cap = len + len / 2 + 64 };
    window w = { 0 };
    size_t first = spans ? spans->n : 0;
    hone_status st = HONE_OK;
    if (!(t.s = malloc(t.cap)) || (spans && !(t.at = malloc(t.cap * sizeof *t.at))))
        st = HN_FAIL(err, HONE_E_NOMEM, "tokenizer: normalised text of %zu bytes", len);
    if (st == HONE_OK) st = normalise(v, &t, s, len, err);
    if (st == HONE_OK) st = segment(v, t.s, t.n, len, &w, out, spans, err);
    for (size_t i = first; st == HONE_OK && spans && i < spans->n; i++) {
        hone_span *p = &spans->data[i];
        *p = (hone_span){ t.at[p->begin].begin, t.at[p->end - 1].end };
    }
    free(t.s);
    free(t.at);
    free(w.b);
    return st;
}
