/* wpm: WordPiece, the tokenizer of BERT. Cleans and folds characters, divides text into
 * words, and takes the longest token again and again. Follows Hugging Face `tokenizers`
 * (BertNormalizer, BertPreTokenizer, WordPiece), whose ids the models were trained with.
 * Refuses to know files beyond its own keys. */
#include "text/text_priv.h"
#include "text/wpm_fold.h"
#include "text/wpm_later.h"

#include <stdlib.h>

/* A longer word is unknown as a whole, whatever it is made of: max_input_chars_per_word of
 * every published BERT. The key does not exist in GGUF files. */
enum { MAX_WORD_CHARS = 100 };

#define ROWS(t, width) (sizeof(t) / sizeof *(t) / (width))

/* ---- characters ------------------------------------------------------------------------- */

/* Index of the last row whose first column is <= x, rows of `width` columns; SIZE_MAX: none. */
static size_t last_row(const uint32_t *t, size_t n, size_t width, uint32_t x)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t[mid * width] <= x) lo = mid + 1;
        else hi = mid;
    }
    return lo - 1;
}

enum { KEEP, DROP, ACCENT };
static unsigned action_of(uint32_t cp)
{
    return drop_runs[last_row(drop_runs, ROWS(drop_runs, 1), 1, cp << 2 | 3)] & 3;
}

/* Is what cp is only known since Unicode 9? Hugging Face's tokenizers, whose tables are older, take it for a letter. */
static bool is_later(uint32_t cp)
{
    size_t lo = 0, hi = ROWS(later_runs, 1);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (later_runs[mid][1] < cp) lo = mid + 1;
        else hi = mid;
    }
    return lo < ROWS(later_runs, 1) && later_runs[lo][0] <= cp;
}

/* What Unicode says otherwise by now: to the tables of tokenizers the one is an accent, the others are punctuation. */
enum { WAS_ACCENT = 0x1734 };
static bool was_punct(uint32_t cp) { return cp == 0x166D || cp == 0x111C9; }

/* cp's canonical decomposition without accents: 1 to 3 characters. */
static int decompose(uint32_t cp, uint32_t to[3])
{
    to[0] = cp;
    if (cp < 0xC0 || (cp >= 0x3400 && cp < 0xAC00)) return 1;
    if (cp >= 0xAC00 && cp < 0xD7A4) { /* Hangul: Unicode 15, 3.12 */
        uint32_t s = cp - 0xAC00;
        to[0] = 0x1100 + s / 588;
        to[1] = 0x1161 + s % 588 / 28;
        to[2] = 0x11A7 + s % 28;
        return s % 28 ? 3 : 2;
    }
    size_t i = last_row(nfd_one, ROWS(nfd_one, 2), 2, cp);
    if (i != SIZE_MAX && nfd_one[2 * i] == cp) return to[0] = nfd_one[2 * i + 1], 1;
    i = last_row(nfd_more, ROWS(nfd_more, 4), 4, cp);
    if (i == SIZE_MAX || nfd_more[4 * i] != cp) return 1;
    memcpy(to, nfd_more + 4 * i + 1, 3 * sizeof *to);
    return to[2] ? 3 : 2;
}

static uint32_t lower(uint32_t cp)
{
    if (cp < 0x80) return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    size_t lo = 0, hi = ROWS(lower_runs, 1);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (lower_runs[mid].last < cp) lo = mid + 1;
        else hi = mid;
    }
    if (lo == ROWS(lower_runs, 1) || lower_runs[lo].first > cp ||
        (cp - lower_runs[lo].first) % (uint32_t)lower_runs[lo].step)
        return cp;
    return cp + (uint32_t)lower_runs[lo].delta;
}

/* The blocks that BERT divides into single characters; 2B920 where Unicode has 2B820, as
 * the models were trained. */
static bool is_cjk(uint32_t cp)
{
    if (cp < 0x3400) return false;
    return (cp >= 0x4E00 && cp <= 0x9FFF) || cp <= 0x4DBF || (cp >= 0x20000 && cp <= 0x2A6DF) ||
           (cp >= 0x2A700 && cp <= 0x2B73F) || (cp >= 0x2B740 && cp <= 0x2B81F) || (cp >= 0x2B920 && cp <= 0x2CEAF) ||
           (cp >= 0xF900 && cp <= 0xFAFF) || (cp >= 0x2F800 && cp <= 0x2FA1F);
}

/* ---- words ------------------------------------------------------------------------------ */

typedef struct word {
    const hn_vocab *v;
    hn_ids *out;
    hn_spans *spans;
    hone_error *err;
    hone_span now;                /* the character being added, in the text */
    size_t begin, end;            /* of the whole word */
    hone_span at[MAX_WORD_CHARS]; /* of its characters … */
    uint16_t
        char_at[4 * MAX_WORD_CHARS + 3]; /* … and which one a byte of text belongs to; both only if spans is not NULL */
    size_t n_chars, len;
    char text[3 + 4 * MAX_WORD_CHARS]; /* U+2581 and the characters */
} word;

/* Longest tokens from left to right; none at some place: the whole word is unknown. */
static hone_status end_word(word *w)
{
    const hn_vocab *v = w->v;
    const hn_trie_node *t = v->trie.node;
    size_t n_chars = w->n_chars, before = w->out->n, len = w->len;
    w->n_chars = 0;
    w->len = 3;
    if (!n_chars) return HONE_OK;
    bool known = n_chars <= MAX_WORD_CHARS;
    for (size_t i = 0; known && i < len;) {
        uint32_t at = 0, best = 0;
        size_t best_end = i;
        for (size_t k = i; k < len;) {
            uint32_t child = (t[at].base & ~HN_TRIE_END) ^ (unsigned char)w->text[k++];
            if (t[child].check != at) break;
            at = child;
            /* U+2581 alone would be the continuation of something, not a beginning */
            if (t[at].base & HN_TRIE_END && k > 3) best = at, best_end = k;
        }
        if (!best) {
            known = false;
        } else {
            hone_status st = hn_ids_put(w->out, v->trie.id[best], w->err);
            if (st == HONE_OK && w->spans) /* the mark in front has no place of its own */
                st = hn_spans_put(w->spans, w->at[w->char_at[i < 3 ? 3 : i]].begin, w->at[w->char_at[best_end - 1]].end,
                                  w->err);
            if (st != HONE_OK) return st;
        }
        i = best_end;
    }
    if (known) return HONE_OK;
    if (w->spans) w->spans->n -= w->out->n - before;
    w->out->n = before;
    if (v->unk < 0) return HONE_OK;
    hone_status st = hn_ids_put(w->out, v->unk, w->err);
    return st == HONE_OK && w->spans ? hn_spans_put(w->spans, w->begin, w->end, w->err) : st;
}

static void add_char(word *w, uint32_t cp)
{
    size_t k = w->n_chars++, n;
    if (!k) w->begin = w->now.begin;
    w->end = w->now.end;
    if (k >= MAX_WORD_CHARS) return;
    n = hn_utf8_put(w->text + w->len, cp);
    if (w->spans) {
        w->at[k] = w->now;
        for (size_t i = 0; i < n; i++) w->char_at[w->len + i] = (uint16_t)k;
    }
    w->len += n;
}

hone_status hn_wpm_encode(const hn_vocab *v, const char *s, size_t len, hn_ids *out, hn_spans *spans, hone_error *err)
{
    const hn_class_table *t = hn_class_table_get();
    word w; /* large: what needs no beginning has none */
    w.v = v;
    w.out = out;
    w.spans = spans;
    w.err = err;
    w.n_chars = 0;
    w.len = 3;
    memcpy(w.text, "\xE2\x96\x81", 3);
    hone_status st = HONE_OK;
    size_t used;
    for (size_t i = 0; st == HONE_OK && i < len; i += used) {
        int32_t cp = hn_utf8_next((const unsigned char *)s + i, len - i, &used);
        if (cp < 0) continue; /* U+FFFD, which is dropped */
        uint32_t base[3];
        int n = 1;
        base[0] = (uint32_t)cp;
        w.now = (hone_span){ i, i + used };
        unsigned a = (cp >= ' ' && cp < 0x7F) || is_later((uint32_t)cp) ? KEEP : action_of((uint32_t)cp);
        if (a == DROP) continue;
        if (hn_class_of(t, (uint32_t)cp) == HN_CLASS_SPACE) {
            st = end_word(&w);
            continue;
        }
        if (v->strip_accents) {
            if (a == ACCENT || cp == WAS_ACCENT) continue;
            n = decompose((uint32_t)cp, base);
        }
        bool cjk = is_cjk((uint32_t)cp);
        if (cjk) st = end_word(&w);
        for (int k = 0; st == HONE_OK && k < n; k++) {
            uint32_t c = base[k];
            hn_class cls = hn_class_of(t, c);
            bool punct = cls == HN_CLASS_PUNCT ? !is_later(c) : (c < 0x7F && cls == HN_CLASS_SYMBOL) || was_punct(c);
            if (punct) st = end_word(&w);
            if (v->lowercase) {
                if (c == 0x130) add_char(&w, 'i'), c = 0x307; /* the one character whose lower case is two */
                else c = lower(c);
            }
            add_char(&w, c);
            if (punct && st == HONE_OK) st = end_word(&w);
        }
        if (cjk && st == HONE_OK) st = end_word(&w);
    }
    return st == HONE_OK ? end_word(&w) : st;
}

/* ---- loading ------------------------------------------------------------------------------- */

/* What the key says, else *id as given, else the special token of that name, else BERT's own id. */
static hone_status find_id(const hn_vocab *v, const hn_gguf *g, const char *key, const char *name, int32_t usual,
                           int32_t *id, hone_error *err)
{
    uint32_t u = 0;
    bool found = false;
    hone_status st = hn_gguf_get_u32(g, key, &u, &found, err);
    if (st != HONE_OK) return st;
    if (found && u < (uint32_t)v->n) *id = (int32_t)u;
    if (*id >= 0 || (found && u == UINT32_MAX)) return HONE_OK;
    *id = hn_lex_find(v, &v->special, name, strlen(name));
    if (*id < 0 && usual < v->n) *id = usual;
    return HONE_OK;
}

hone_status hn_wpm_load(hn_vocab *v, const hn_gguf *g, hone_error *err)
{
    hone_status st;
    v->sep = -1;
    /* cls stands in v->bos; some files call it so */
    if ((st = find_id(v, g, "tokenizer.ggml.cls_token_id", "[CLS]", 101, &v->bos, err)) != HONE_OK ||
        (st = find_id(v, g, "tokenizer.ggml.seperator_token_id", "[SEP]", 102, &v->sep, err)) != HONE_OK ||
        (st = find_id(v, g, "tokenizer.ggml.unknown_token_id", "[UNK]", 100, &v->unk, err)) != HONE_OK)
        return st;
    v->add_bos = v->add_eos = true; /* BERT knows no text without them: add_bos_token and add_eos_token are ignored */
    v->lowercase = true;
    if ((st = hn_gguf_get_bool(g, "tokenizer.ggml.normalizer.lowercase", &v->lowercase, NULL, err)) != HONE_OK)
        return st;
    v->strip_accents = v->lowercase;
    return hn_gguf_get_bool(g, "tokenizer.ggml.normalizer.strip_accents", &v->strip_accents, NULL, err);
}
