/* trie: tokens as a trie in two arrays, made from their sorted list, for the longest match
 * over bytes. Refuses to know what tokens mean. */
#include "text/text_priv.h"

#include <stdlib.h>

enum {
    BLOCK = 256,     /* children of one node never leave an aligned block of this size */
    NEAR = 2 * BLOCK /* slots at the end where a family of children is tried first */
};

typedef struct range {
    uint32_t node, lo, hi;
} range; /* a node and the tokens below it, l->ids[lo, hi) */

typedef struct maker {
    const hn_vocab *v;
    const hn_lex *l;
    hn_trie *t;
    size_t cap;
    uint32_t first_free; /* no slot below is free */
} maker;

static bool is_free(const hn_trie *t, uint32_t slot) { return t->node[slot].check == UINT32_MAX; }

static bool add_block(maker *k)
{
    hn_trie *t = k->t;
    if ((size_t)t->n + BLOCK > k->cap) {
        size_t cap = k->cap * 2 + 4 * BLOCK;
        if (cap > HN_TRIE_END) return false;
        void *p = realloc(t->node, cap * sizeof *t->node);
        if (!p) return false;
        t->node = p;
        if (!(p = realloc(t->id, cap * sizeof *t->id))) return false;
        t->id = p;
        k->cap = cap;
    }
    memset(t->node + t->n, 0xFF, BLOCK * sizeof *t->node);
    memset(t->id + t->n, 0xFF, BLOCK * sizeof *t->id);
    t->n += BLOCK;
    return true;
}

static bool fits(const hn_trie *t, uint32_t base, const uint8_t *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_free(t, base ^ c[i])) return false;
    return true;
}

/* A base where the n children c fit. One child takes the first free slot. A family is tried
 * near the end, then everywhere in the last block: it fails there only if that block has at
 * least BLOCK / n slots taken, so the arrays stay in proportion to the nodes. */
static bool find_base(maker *k, const uint8_t *c, uint32_t n, uint32_t *base)
{
    hn_trie *t = k->t;
    while (k->first_free < t->n && !is_free(t, k->first_free)) k->first_free++;
    uint32_t from = n > 1 && t->n > NEAR && k->first_free < t->n - NEAR ? t->n - NEAR : k->first_free;
    for (uint32_t f = from, tries = 8; f < t->n && tries; f++)
        if (is_free(t, f)) {
            if (fits(t, *base = f ^ c[0], c, n)) return true;
            tries--;
        }
    for (*base = t->n - BLOCK; *base < t->n; ++*base)
        if (fits(t, *base, c, n)) return true;
    *base = t->n;
    return add_block(k);
}

/* Places the children of r, whose texts share d bytes, and appends them to next. */
static bool place(maker *k, range r, size_t d, range *next, size_t *n_next)
{
    uint32_t end[256], n = 0;
    uint8_t c[256];
    const hn_vocab *v = k->v;
    const int32_t *ids = k->l->ids;
    uint32_t lo = r.lo;
    if (d && v->off[ids[lo] + 1] - v->off[ids[lo]] == d) { /* only the first one can end here: no two are equal */
        k->t->id[r.node] = ids[lo++];
        k->t->node[r.node].base |= HN_TRIE_END;
    }
    for (uint32_t i = lo; i < r.hi; i++) {
        uint8_t b = (uint8_t)v->text[v->off[ids[i]] + d];
        if (n == 0 || c[n - 1] != b) c[n++] = b;
        end[n - 1] = i + 1;
    }
    if (n == 0) return true;
    uint32_t base;
    if (!find_base(k, c, n, &base)) return false;
    k->t->node[r.node].base |= base;
    for (uint32_t i = 0; i < n; lo = end[i++]) {
        k->t->node[base ^ c[i]] = (hn_trie_node){ 0, r.node };
        next[(*n_next)++] = (range){ base ^ c[i], lo, end[i] };
    }
    return true;
}

hone_status hn_trie_make(hn_trie *t, const hn_vocab *v, const hn_lex *l, hone_error *err)
{
    maker k = { .v = v, .l = l, .t = t };
    range *now = malloc((l->n + 1) * sizeof *now), *next = malloc((l->n + 1) * sizeof *next);
    bool ok = now && next && add_block(&k);
    size_t n_now = 0;
    if (ok) {
        t->node[0] = (hn_trie_node){ 0, HN_TRIE_END }; /* nobody's child */
        if (l->n) now[n_now++] = (range){ 0, 0, l->n };
    }
    /* breadth first, so that what every text walks through lies together */
    for (size_t d = 0; ok && n_now; d++) {
        size_t n_next = 0;
        for (size_t i = 0; ok && i < n_now; i++) ok = place(&k, now[i], d, next, &n_next);
        range *swap = now;
        now = next;
        next = swap;
        n_now = n_next;
    }
    free(now);
    free(next);
    return ok ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "tokenizer: trie of %u tokens", l->n);
}
