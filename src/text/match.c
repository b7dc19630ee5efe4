/* match: tokens as an automaton that finds them in a text in time linear in the text, whatever
 * the tokens are (Aho, Corasick 1975). At every place it knows the longest token that ends
 * there, and from each token the next shorter one that ends at the same place. Refuses to
 * know what tokens mean beyond the class its maker gives them. */
#include "text/text_priv.h"

#include <stdlib.h>

typedef struct range {
    uint32_t lo, hi;
} range; /* the tokens below a state, ids[lo, hi) */

typedef struct maker {
    hn_match *m;
    const hn_vocab *v;
    const int32_t *ids;
    const uint8_t *cls;
    bool backwards;
    size_t cap; /* states */
    range *below;
} maker;

static uint32_t len_of(const maker *k, uint32_t i) { return k->v->off[k->ids[i] + 1] - k->v->off[k->ids[i]]; }
static uint8_t byte_of(const maker *k, uint32_t i, uint32_t d)
{
    return (uint8_t)k->v->text[k->backwards ? k->v->off[k->ids[i] + 1] - 1 - d : k->v->off[k->ids[i]] + d];
}

static bool grow(maker *k)
{
    hn_match *m = k->m;
    if (m->n < k->cap) return true;
    size_t cap = k->cap * 2 + 256;
    if (cap >= INT32_MAX) return false;
    void *p;
#define GROW(what, n) ((p = realloc(what, (n) * sizeof *(what))) != NULL && ((what) = p, true))
    if (!GROW(m->byte, cap) || !GROW(m->child, cap + 2) || !GROW(m->fail, cap) || !GROW(m->last, cap * m->n_class) ||
        !GROW(k->below, cap))
        return false;
#undef GROW
    k->cap = cap;
    return true;
}

/* State s is the end of token ids[i]: it joins the chains. Its links skip ahead in the manner of
 * Myers's random-access lists (1983), so that a search by length takes logarithmic time. */
static void add_token(maker *k, uint32_t s, uint32_t i)
{
    hn_match *m = k->m;
    uint32_t t = ++m->n_token;
    m->token[t] = (hn_match_token){ k->ids[i], len_of(k, i), k->cls ? k->cls[i] : 0 };
    for (unsigned c = 0; c < m->n_class; c++) {
        hn_match_link *l = &m->link[(size_t)t * m->n_class + c];
        uint32_t up = l->up = s ? m->last[(size_t)m->fail[s] * m->n_class + c] : 0;
        if (c > m->token[t].cls) continue; /* not of this class: the chain passes by */
        const hn_match_link *a = &m->link[(size_t)up * m->n_class + c], *b = &m->link[(size_t)a->jump * m->n_class + c];
        l->depth = a->depth + 1;
        l->jump = a->depth - b->depth == b->depth - m->link[(size_t)b->jump * m->n_class + c].depth ? b->jump : up;
        m->last[(size_t)s * m->n_class + c] = t;
    }
}

static bool add_state(maker *k, uint32_t parent, uint8_t c, range below)
{
    hn_match *m = k->m;
    if (!grow(k)) return false;
    uint32_t s = m->n++, f = parent ? m->fail[parent] : 0;
    m->byte[s] = c;
    k->below[s] = below;
    m->fail[s] = parent ? hn_match_step(m, f, c) : 0;
    if (!parent) m->root[c] = s;
    return true;
}

/* Breadth first: a state's failure is nearer to the root, so it is complete. */
static bool make_states(maker *k, uint32_t n)
{
    hn_match *m = k->m;
    if (!grow(k)) return false;
    m->n = 1;
    m->byte[0] = 0;
    m->fail[0] = 0;
    memset(m->last, 0, m->n_class * sizeof *m->last);
    k->below[0] = (range){ 0, n };
    uint32_t level_end = 1, d = 0;
    for (uint32_t s = 0; s < m->n; s++) {
        if (s == level_end) level_end = m->n, d++;
        range r = k->below[s];
        m->child[s] = m->n;
        for (unsigned c = 0; s && c < m->n_class; c++)
            m->last[(size_t)s * m->n_class + c] = m->last[(size_t)m->fail[s] * m->n_class + c];
        if (r.lo < r.hi && len_of(k, r.lo) == d)
            add_token(k, s, r.lo++); /* only the first one can end here: no two are equal */
        for (uint32_t i = r.lo, e; i < r.hi; i = e) {
            uint8_t c = byte_of(k, i, d);
            for (e = i + 1; e < r.hi && byte_of(k, e, d) == c;) e++;
            m->child[s + 1] = m->n; /* complete so far, for failures that lead here */
            if (!add_state(k, s, c, (range){ i, e })) return false;
        }
        m->child[s + 1] = m->n;
    }
    return true;
}

hone_status hn_match_make(hn_match *m, const hn_vocab *v, const int32_t *ids, const uint8_t *cls, uint32_t n,
                          unsigned n_class, bool backwards, hone_error *err)
{
    maker k = { .m = m, .v = v, .ids = ids, .cls = cls, .backwards = backwards };
    m->n_class = n_class;
    m->token = calloc((size_t)n + 1, sizeof *m->token);
    m->link = calloc(((size_t)n + 1) * n_class, sizeof *m->link);
    bool ok = m->token && m->link && make_states(&k, n);
    free(k.below);
    if (!ok) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: automaton of %u tokens", n);
    for (unsigned b = 0; b < 256; b++)
        if (m->root[b]) m->n_first++, m->first = (uint8_t)b;
    return HONE_OK;
}

void hn_match_free(hn_match *m)
{
    free(m->byte);
    free(m->child);
    free(m->fail);
    free(m->last);
    free(m->token);
    free(m->link);
}
