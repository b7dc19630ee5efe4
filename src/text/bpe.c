/* bpe: trains a byte-level BPE vocabulary (Sennrich, Haddow, Birch 2016, on bytes). The text
 * becomes words with counts; of every pair of neighbours the count is kept up to date and
 * the words it may be in are known, so that a step costs what it changes. Owns words, pairs
 * and their order; refuses to know what is trained with the vocabulary. */
#include "text/bpe.h"

#include "text/text.h"

enum { MAX_WORD = 512 /* bytes; longer ones are divided, so that no step is slow */, MAX_TOKENS = 1 << 20 };

typedef struct word {
    uint64_t off;
    uint32_t len;
    int64_t count;
} word; /* of bytes and, while pairs are joined, of sym */
typedef struct pair {
    uint64_t key;
    int64_t count;
    uint32_t list, stamp;
} pair; /* key: left << 32 | right; list: 1 + link, 0: none */
typedef struct link {
    uint32_t word, next;
} link;
typedef struct entry {
    int64_t count;
    uint64_t key;
} entry;

typedef struct hn_bpe_maker {
    hn_bpe_rules p;
    hn_bpe *b;
    char *bytes; /* of all words, one after the other */
    size_t n_bytes, cap_bytes;
    word *words;
    size_t n_word, cap_word;
    uint32_t *slot; /* 1 + word, 0: empty */
    size_t n_slot;
    const char **next_special; /* [n_special] where each is found next in the piece of text */
    int32_t *sym;              /* [n_bytes] the words as tokens */
    pair *pairs;               /* a table, half of it used at most; count of empty places is -1 */
    size_t n_pair, n_place;
    link *links;
    size_t n_link, cap_link;
    entry *heap;
    size_t n_heap, cap_heap;
    uint64_t *fresh; /* keys of pairs that have become more in this step */
    size_t n_fresh, cap_fresh;
    uint32_t step;
    hn_index names; /* of b->token, for what two ways of joining make */
    bool oom;
} hn_bpe_maker;

static bool grow(hn_bpe_maker *t, void **p, size_t *cap, size_t n, size_t elem)
{
    if (n <= *cap) return true;
    size_t c = *cap * 2 > n ? *cap * 2 : n + 1024;
    void *q = c > SIZE_MAX / elem ? NULL : realloc(*p, c * elem);
    if (q) {
        *p = q;
        *cap = c;
    }
    t->oom |= !q;
    return q != NULL;
}

/* Bytes whose character in a vocabulary is their own; the others take U+0100 and so on. */
static bool stands_for_itself(int c) { return (c > 0x20 && c < 0x7F) || (c > 0xA0 && c != 0xAD); }

/* ---- words --------------------------------------------------------------------------------------- */

static size_t word_place(const hn_bpe_maker *t, const char *s, size_t n)
{
    size_t at = hn_mix64(hn_fnv1a(HN_FNV_INIT, s, n)) & (t->n_slot - 1);
    for (; t->slot[at]; at = (at + 1) & (t->n_slot - 1)) {
        const word *w = &t->words[t->slot[at] - 1];
        if (w->len == n && memcmp(t->bytes + w->off, s, n) == 0) break;
    }
    return at;
}

static bool grow_slots(hn_bpe_maker *t)
{
    uint32_t *old = t->slot;
    size_t n = t->n_slot ? 2 * t->n_slot : 1 << 16;
    uint32_t *s = calloc(n, sizeof *s);
    t->oom |= !s;
    if (!s) return false;
    t->slot = s;
    t->n_slot = n;
    for (size_t i = 0; i < t->n_word; i++)
        t->slot[word_place(t, t->bytes + t->words[i].off, t->words[i].len)] = (uint32_t)i + 1;
    free(old);
    return true;
}

static bool count_word(void *arg, const char *s, size_t n)
{
    hn_bpe_maker *t = arg;
    for (; n > MAX_WORD; s += MAX_WORD, n -= MAX_WORD)
        if (!count_word(t, s, MAX_WORD)) return false;
    if (2 * t->n_word >= t->n_slot && !grow_slots(t)) return false;
    size_t at = word_place(t, s, n);
    if (t->slot[at]) {
        t->words[t->slot[at] - 1].count++;
        return true;
    }
    t->oom |= t->n_word == UINT32_MAX / 2;
    if (t->oom || !grow(t, (void **)&t->words, &t->cap_word, t->n_word + 1, sizeof *t->words) ||
        !grow(t, (void **)&t->bytes, &t->cap_bytes, t->n_bytes + n, 1))
        return false;
    memcpy(t->bytes + t->n_bytes, s, n);
    t->words[t->n_word++] = (word){ t->n_bytes, (uint32_t)n, 1 };
    t->n_bytes += n;
    t->slot[at] = (uint32_t)t->n_word;
    return true;
}

static const char *find(const char *s, const char *end, const char *what, size_t n)
{
    while ((size_t)(end - s) >= n && (s = memchr(s, what[0], (size_t)(end - s) - n + 1))) {
        if (memcmp(s, what, n) == 0) return s;
        s++;
    }
    return end;
}

hone_status hn_bpe_text(hn_bpe_maker *t, const char *s, size_t n, hone_error *err)
{
    const char *end = s + n;
    for (int32_t i = 0; i < t->p.n_special; i++) t->next_special[i] = NULL;
    while (s < end) {
        const char *stop = end;
        size_t skip = 0;
        for (int32_t i = 0; i < t->p.n_special; i++) { /* the first; of several that begin there the longest */
            size_t k = strlen(t->p.special[i]);
            const char **at = &t->next_special[i];
            if (!*at || *at < s) *at = find(s, end, t->p.special[i], k);
            if (*at < stop || (*at == stop && stop < end && k > skip)) stop = *at, skip = k;
        }
        hone_status st = hn_pre_words(t->b->pre, s, (size_t)(stop - s), count_word, t, err);
        if (st == HONE_OK && t->oom) st = HN_FAIL(err, HONE_E_NOMEM, "%zu different words so far", t->n_word);
        if (st != HONE_OK) return st;
        s = stop + skip;
    }
    return HONE_OK;
}

size_t hn_bpe_words(const hn_bpe_maker *t) { return t->n_word; }

/* ---- pairs ------------------------------------------------------------------------------------------ */

static uint64_t key_of(int32_t left, int32_t right) { return (uint64_t)(uint32_t)left << 32 | (uint32_t)right; }

static pair *pair_at(const hn_bpe_maker *t, uint64_t key)
{
    size_t i = hn_mix64(key) & (t->n_place - 1);
    while (t->pairs[i].count >= 0 && t->pairs[i].key != key) i = (i + 1) & (t->n_place - 1);
    return &t->pairs[i];
}

static bool grow_pairs(hn_bpe_maker *t)
{
    pair *old = t->pairs;
    size_t n_old = t->n_place, n = n_old ? 2 * n_old : 1 << 16;
    pair *p = malloc(n * sizeof *p);
    t->oom |= !p;
    if (!p) return false;
    for (size_t i = 0; i < n; i++) p[i].count = -1;
    t->pairs = p;
    t->n_place = n;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].count >= 0) *pair_at(t, old[i].key) = old[i];
    free(old);
    return true;
}

/* The pair is at n more places of a word. */
static bool add_pair(hn_bpe_maker *t, int32_t left, int32_t right, uint32_t w, int64_t n)
{
    if (2 * t->n_pair >= t->n_place && !grow_pairs(t)) return false;
    uint64_t key = key_of(left, right);
    pair *p = pair_at(t, key);
    if (p->count < 0) {
        *p = (pair){ .key = key, .stamp = UINT32_MAX };
        t->n_pair++;
    }
    p->count += n;
    if (p->stamp != t->step) {
        if (!grow(t, (void **)&t->fresh, &t->cap_fresh, t->n_fresh + 1, sizeof *t->fresh)) return false;
        t->fresh[t->n_fresh++] = key;
        p->stamp = t->step;
    }
    if (p->list && t->links[p->list - 1].word == w) return true;
    if (t->n_link >= UINT32_MAX - 1 || !grow(t, (void **)&t->links, &t->cap_link, t->n_link + 1, sizeof *t->links)) {
        t->oom = true;
        return false;
    }
    t->links[t->n_link++] = (link){ w, p->list };
    p->list = (uint32_t)t->n_link;
    return true;
}

static void remove_pair(hn_bpe_maker *t, int32_t left, int32_t right, int64_t n)
{
    pair_at(t, key_of(left, right))->count -= n;
}

/* ---- the most frequent pair ---------------------------------------------------------------------------- */

static bool before(const entry *a, const entry *b)
{
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static bool heap_push(hn_bpe_maker *t, entry e)
{
    if (!grow(t, (void **)&t->heap, &t->cap_heap, t->n_heap + 1, sizeof *t->heap)) return false;
    size_t i = t->n_heap++;
    for (; i && before(&e, &t->heap[(i - 1) / 2]); i = (i - 1) / 2) t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = e;
    return true;
}

static entry heap_pop(hn_bpe_maker *t)
{
    entry *h = t->heap, top = h[0], e = h[--t->n_heap];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < t->n_heap; i = c) {
        if (c + 1 < t->n_heap && before(&h[c + 1], &h[c])) c++;
        if (!before(&h[c], &e)) break;
        h[i] = h[c];
    }
    h[i] = e;
    return top;
}

static bool push_fresh(hn_bpe_maker *t)
{
    for (size_t i = 0; i < t->n_fresh; i++)
        if (!heap_push(t, (entry){ pair_at(t, t->fresh[i])->count, t->fresh[i] })) return false;
    t->n_fresh = 0;
    t->step++;
    return true;
}

/* False: no pair is there twice. An entry whose pair has become fewer goes back; if more, there is another. */
static bool best_pair(hn_bpe_maker *t, entry *best)
{
    while (t->n_heap) {
        *best = heap_pop(t);
        int64_t now = pair_at(t, best->key)->count;
        if (now < best->count && now > 1) heap_push(t, (entry){ now, best->key }); /* there is room */
        else if (now == best->count) return now > 1;
    }
    return false;
}

/* ---- joining --------------------------------------------------------------------------------------------- */

/* Joins left and right wherever they are side by side in word i. Counts change by what leaves and what comes. */
static bool join(hn_bpe_maker *t, uint32_t i, int32_t left, int32_t right, int32_t id)
{
    word *w = &t->words[i];
    int32_t *s = t->sym + w->off;
    uint32_t n = w->len, out = 0;
    bool joined = false; /* s[out - 1] is new */
    for (uint32_t k = 0; k < n; k++) {
        if (k + 1 < n && s[k] == left && s[k + 1] == right) {
            /* where the token before was joined too, its pair with this one left with that */
            if (out && !joined) remove_pair(t, s[out - 1], left, w->count);
            remove_pair(t, left, right, w->count);
            if (k + 2 < n) remove_pair(t, right, s[k + 2], w->count);
            if (out && !add_pair(t, s[out - 1], id, i, w->count)) return false;
            s[out++] = id;
            k++;
            joined = true;
        } else {
            if (joined && !add_pair(t, id, s[k], i, w->count)) return false;
            s[out++] = s[k];
            joined = false;
        }
    }
    w->len = out;
    return true;
}

/* The token that left and right become: a new one, unless there is one of that text. Negative: out of memory. */
static int32_t token_of(hn_bpe_maker *t, int32_t left, int32_t right)
{
    hn_bpe *b = t->b;
    hone_str l = b->token[left], r = b->token[right];
    char *s = hn_arena_alloc(b->arena, l.len + r.len + 1);
    int64_t dup;
    if (!s) return -1;
    memcpy(s, l.ptr, l.len);
    memcpy(s + l.len, r.ptr, r.len);
    b->token[b->n] = (hone_str){ s, l.len + r.len };
    if (!hn_index_add(&t->names, b->token, sizeof *b->token, (uint32_t)b->n, &dup)) return -1;
    return dup >= 0 ? (int32_t)dup : b->n++;
}

static hone_status join_all(hn_bpe_maker *t, hone_error *err)
{
    hn_bpe *b = t->b;
    entry best;
    while (b->n < t->p.n_vocab && b->n_pair < 2 * t->p.n_vocab && best_pair(t, &best)) {
        int32_t left = (int32_t)(best.key >> 32), right = (int32_t)(uint32_t)best.key, id = token_of(t, left, right);
        if (id >= 0 && id < b->n_special) continue; /* text must not become a special token */
        if (id >= 0) b->pair[b->n_pair++] = (hn_bpe_pair){ left, right, id, best.count };
        bool ok = id >= 0;
        for (uint32_t l = pair_at(t, best.key)->list; l && ok; l = t->links[l - 1].next)
            ok = join(t, t->links[l - 1].word, left, right, id);
        if (!ok || !push_fresh(t))
            return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: step %d, %zu pairs", b->n_pair, t->n_pair);
    }
    return HONE_OK;
}

/* Words as bytes, and all pairs of them. */
static hone_status begin(hn_bpe_maker *t, hone_error *err)
{
    int32_t byte_id[256], n = t->b->n_special;
    t->sym = malloc(t->n_bytes * sizeof *t->sym);
    if (!t->sym || !grow_pairs(t)) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: words of %zu bytes", t->n_bytes);
    for (int pass = 0; pass < 2; pass++)
        for (int c = 0; c < 256; c++)
            if (stands_for_itself(c) == (pass == 0)) byte_id[c] = n++;
    for (size_t i = 0; i < t->n_bytes; i++) t->sym[i] = byte_id[(unsigned char)t->bytes[i]];
    free(t->bytes);
    t->bytes = NULL;
    for (size_t i = 0; i < t->n_word; i++)
        for (uint32_t k = 1; k < t->words[i].len; k++) {
            const int32_t *s = t->sym + t->words[i].off;
            if (!add_pair(t, s[k - 1], s[k], (uint32_t)i, t->words[i].count))
                return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: %zu pairs", t->n_pair);
        }
    return push_fresh(t) ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "tokenizer: %zu pairs", t->n_pair);
}

/* ---- the vocabulary ------------------------------------------------------------------------------------------- */

static hone_status add_token(hn_bpe_maker *t, const char *s, size_t n, hone_error *err)
{
    hn_bpe *b = t->b;
    int64_t dup;
    char *copy = hn_arena_strndup(b->arena, s, n);
    if (!copy) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: tokens");
    b->token[b->n] = (hone_str){ copy, n };
    if (!hn_index_add(&t->names, b->token, sizeof *b->token, (uint32_t)b->n, &dup))
        return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: tokens");
    if (dup >= 0)
        return HN_FAIL(err, HONE_E_ARG, "special token \"%s\": expected distinct ones that are no single bytes",
                       HN_ESC(b->token[dup].ptr, b->token[dup].len));
    b->n++;
    return HONE_OK;
}

static hone_status first_tokens(hn_bpe_maker *t, hone_error *err)
{
    hn_bpe *b = t->b;
    hone_status st = HONE_OK;
    for (int32_t i = 0; i < t->p.n_special && st == HONE_OK; i++) {
        const char *s = t->p.special[i];
        const char *fault = *s ? hn_gguf_name_fault(s, strlen(s), 255) : "is empty";
        st = fault ? HN_FAIL(err, HONE_E_ARG, "special token \"%s\" %s", HN_ESC(s, strlen(s)), fault)
                   : add_token(t, s, strlen(s), err);
    }
    b->n_special = t->p.n_special;
    for (int pass = 0, next = 0x100; pass < 2; pass++)
        for (int c = 0; c < 256 && st == HONE_OK; c++) {
            if (stands_for_itself(c) != (pass == 0)) continue;
            int cp = pass ? next++ : c;
            char s[2] = { (char)(cp < 0x80 ? cp : 0xC0 | cp >> 6), (char)(0x80 | (cp & 63)) };
            st = add_token(t, s, cp < 0x80 ? 1 : 2, err);
        }
    return st;
}

static hone_status new_bpe(hn_bpe_maker *t, hone_error *err)
{
    const hn_bpe_rules *p = &t->p;
    const char *pre = p->pre ? p->pre : "gpt-2";
    if (p->n_special < 0 || p->n_vocab < p->n_special + 256 || p->n_vocab > MAX_TOKENS)
        return HN_FAIL(err, HONE_E_ARG, "a vocabulary of %d tokens, expected %d (256 bytes and special tokens) to %d",
                       p->n_vocab, p->n_special + 256, MAX_TOKENS);
    hn_bpe *b = t->b = calloc(1, sizeof *b);
    if (!b || !(b->arena = hn_arena_new()) || !(b->pre = hn_arena_strndup(b->arena, pre, strlen(pre))) ||
        !(b->token = calloc((size_t)p->n_vocab + 1, sizeof *b->token)) ||
        !(b->pair = calloc((size_t)p->n_vocab, 2 * sizeof *b->pair)) ||
        !(t->next_special = calloc((size_t)p->n_special + 1, sizeof *t->next_special)))
        return HN_FAIL(err, HONE_E_NOMEM, "tokenizer of %d tokens", p->n_vocab);
    return first_tokens(t, err);
}

hone_status hn_bpe_begin(hn_bpe_maker **out, const hn_bpe_rules *rules, hone_error *err)
{
    hn_bpe_maker *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer of %d tokens", rules->n_vocab);
    t->p = *rules;
    hone_status st = new_bpe(t, err);
    if (st == HONE_OK) *out = t;
    else hn_bpe_drop(t);
    return st;
}

hone_status hn_bpe_end(hn_bpe **out, hn_bpe_maker *t, hone_error *err)
{
    *out = NULL;
    free(t->slot);
    t->slot = NULL;
    hone_status st = begin(t, err);
    if (st == HONE_OK) st = join_all(t, err);
    if (st != HONE_OK) return st;
    *out = t->b;
    t->b = NULL;
    return HONE_OK;
}

void hn_bpe_drop(hn_bpe_maker *t)
{
    if (!t) return;
    free(t->bytes);
    free(t->words);
    free(t->slot);
    free(t->next_special);
    free(t->sym);
    free(t->pairs);
    free(t->links);
    free(t->heap);
    free(t->fresh);
    hn_index_free(&t->names);
    hn_bpe_free(t->b);
    free(t);
}

void hn_bpe_free(hn_bpe *b)
{
    if (!b) return;
    free(b->token);
    free(b->pair);
    hn_arena_free(b->arena);
    free(b);
}

/* "left right" of every pair. */
static hone_status put_merges(hn_gguf_writer *w, const hn_bpe *b, hone_error *err)
{
    hone_str *m = calloc((size_t)b->n_pair + 1, sizeof *m);
    size_t n = 0;
    for (int32_t i = 0; i < b->n_pair; i++) n += b->token[b->pair[i].left].len + 1 + b->token[b->pair[i].right].len;
    char *s = malloc(n + 1), *at = s;
    hone_status st = m && s ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "tokenizer: %d merges", b->n_pair);
    for (int32_t i = 0; i < b->n_pair && st == HONE_OK; i++) {
        hone_str l = b->token[b->pair[i].left], r = b->token[b->pair[i].right];
        m[i] = (hone_str){ at, l.len + 1 + r.len };
        memcpy(at, l.ptr, l.len);
        at[l.len] = ' ';
        memcpy(at + l.len + 1, r.ptr, r.len);
        at += m[i].len;
    }
    if (st == HONE_OK) st = hn_gguf_put_str_array(w, "tokenizer.ggml.merges", m, (uint64_t)b->n_pair, err);
    free(m);
    free(s);
    return st;
}

hone_status hn_bpe_put(hn_gguf_writer *w, const hn_bpe *b, int32_t bos, int32_t eos, bool add_bos, hone_error *err)
{
    enum { NORMAL = 1, CONTROL = 3 };
    hone_status st;
    if (bos >= b->n_special || eos >= b->n_special)
        return HN_FAIL(err, HONE_E_ARG, "bos %d, eos %d: expected ids of the %d special tokens", bos, eos,
                       b->n_special);
    int32_t *type = malloc((size_t)b->n * sizeof *type);
    if (!type) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: %d tokens", b->n);
    for (int32_t i = 0; i < b->n; i++) type[i] = i < b->n_special ? CONTROL : NORMAL;
    if ((st = hn_gguf_put_str(w, "tokenizer.ggml.model", "gpt2", 4, err)) == HONE_OK &&
        (st = hn_gguf_put_str(w, "tokenizer.ggml.pre", b->pre, strlen(b->pre), err)) == HONE_OK &&
        (st = hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", b->token, (uint64_t)b->n, err)) == HONE_OK &&
        (st = hn_gguf_put_array(w, "tokenizer.ggml.token_type", HONE_KV_I32, type, (uint64_t)b->n, err)) == HONE_OK &&
        (st = put_merges(w, b, err)) == HONE_OK &&
        (bos < 0 || (st = hn_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)bos, err)) == HONE_OK) &&
        (eos < 0 || (st = hn_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)eos, err)) == HONE_OK) &&
        (st = hn_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", add_bos && bos >= 0, err)) == HONE_OK)
        st = hn_gguf_put_bool(w, "tokenizer.ggml.add_eos_token", false, err);
    free(type);
    return st;
}
