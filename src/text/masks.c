/* masks: which tokens may come next. The tree of the vocabulary is walked with each lexeme in progress, and where a
 * lexeme may end inside a token, with what its stack goes on with. Three things keep that cheap:
 *   - what a lexeme alone allows is kept where the walk was long: bits of the tokens that stay inside it, and a tree of
 *     what the others have behind its end, which is all that must be walked with the stack of the moment;
 *   - that of a free JSON string is made once per vocabulary;
 *   - a string that is free but for a few beginnings (a key that must not be one of those declared) is that mask with
 *     these beginnings walked anew. */
#include "text/machine.h"

#include <stdlib.h>

enum { LONG_WALK = 1500, KEPT_BYTES = 16 << 20, NEARLY_FREE = 64, WALK_MAX = 1 << 26 };

typedef struct hn_token_mask {
    uint64_t serial; /* of the vocabulary */
    hn_lexeme key;
    uint64_t *bits; /* [n_word] tokens that end inside the lexeme, or with it */
    size_t n_word;
    hn_token_tree tail; /* what tokens have behind its end */
} hn_token_mask;

typedef struct walk {
    hn_machine *m; /* NULL: stacks are not asked */
    hn_langs *l;
    const hn_token_tree *t;
    hn_lexeme *path; /* [max_depth + 1] by depth */
    uint64_t *bits;
    size_t n_word;
    bool failed;      /* out of memory */
    uint32_t visited; /* nodes */
    bool collect;     /* tokens and ends are listed: */
    hn_numbers ids, ends;
} walk;

static bool put(walk *w, hn_numbers *v, uint32_t x)
{
    if (v->n == v->cap) {
        size_t cap = v->cap * 2 + 256;
        uint32_t *p = realloc(v->data, cap * sizeof *p);
        if (!p) {
            w->failed = true;
            return false;
        }
        v->data = p;
        v->cap = cap;
    }
    v->data[v->n++] = x;
    return true;
}

static inline void set_bit(walk *w, int32_t id)
{
    size_t word = (size_t)id / 64;
    if (word < w->n_word) w->bits[word] |= (uint64_t)1 << (id & 63);
}

static inline void clear_bit(walk *w, int32_t id)
{
    size_t word = (size_t)id / 64;
    if (word < w->n_word) w->bits[word] &= ~((uint64_t)1 << (id & 63));
}

static void follow(walk *w, uint32_t node, uint32_t cell);

/* The nodes below `node` with lexeme x before the first byte; behind its end comes cell. */
static void walk_below(walk *w, uint32_t node, hn_lexeme x, uint32_t cell)
{
    const hn_token_tree *t = w->t;
    uint32_t i = node + 1, end = t->end[node], base = t->depth[node];
    hn_lexeme kept = w->path[base];
    w->path[base] = x;
    while (i < end && !w->failed) {
        uint32_t d = t->depth[i];
        hn_lexeme y = w->path[d - 1];
        const hn_lang_state *s = hn_lang_open(w->l, y.term);
        if (!s || !hn_lexeme_step(w->l, s, &y, t->byte[i])) {
            i = t->end[i];
            continue;
        }
        if (++w->visited > WALK_MAX) w->failed = true;
        w->path[d] = y;
        for (uint32_t k = t->first[i]; k < t->first[i + 1]; k++) {
            if (w->collect) put(w, &w->ids, (uint32_t)t->ids[k]);
            else set_bit(w, t->ids[k]);
        }
        if (t->end[i] == i + 1) {
            i++;
            continue;
        }
        if (hn_lexeme_ends(w->l, y)) {
            if (w->collect) put(w, &w->ends, i);
            else follow(w, i, cell);
        }
        i = hn_lexeme_closed(y) ? t->end[i] : i + 1;
    }
    w->path[base] = kept;
}

/* The nodes below `node` with what a stack goes on with. */
static void follow(walk *w, uint32_t node, uint32_t cell)
{
    const hn_opened *o = w->m ? hn_machine_open(w->m, cell) : NULL;
    for (uint32_t i = 0; o && i < o->n && !w->failed; i++) walk_below(w, node, o->item[i].at, o->item[i].cell);
}

/* The same over another tree with the same ids. */
static void follow_tail(walk *w, const hn_token_tree *tail, uint32_t cell)
{
    const hn_token_tree *t = w->t;
    if (tail->n == 0) return;
    w->t = tail;
    follow(w, 0, cell);
    w->t = t;
}

static hn_lexeme *path_for(const hn_token_tree *t) { return calloc(t->max_depth + 2u, sizeof(hn_lexeme)); }

static size_t mask_bytes(const hn_token_mask *k)
{
    return k->n_word * 8 + k->tail.n * 11 + (k->tail.n ? k->tail.first[k->tail.n] * 4u : 0) + sizeof *k;
}

static void mask_free(hn_token_mask *k)
{
    if (!k) return;
    free(k->bits);
    hn_token_tree_free(&k->tail);
    free(k);
}

void hn_token_mask_free(hn_token_mask *k) { mask_free(k); }

/* What w collected, to keep. NULL: out of memory. */
static hn_token_mask *mask_of(const walk *w, const hn_token_tree *t, hn_lexeme key)
{
    hn_token_mask *k = calloc(1, sizeof *k);
    size_t n = 0;
    for (size_t i = 0; i < w->ends.n; i++) {
        uint32_t at = w->ends.data[i];
        n += t->first[t->end[at]] - t->first[at + 1];
    }
    hn_token_text *list = malloc((n + 1) * sizeof *list);
    if (k) {
        k->serial = t->serial;
        k->key = key;
        k->n_word = ((size_t)t->n_vocab + 63) / 64;
        k->bits = calloc(k->n_word + 1, 8);
    }
    if (!k || !k->bits || !list) {
        free(list);
        mask_free(k);
        return NULL;
    }
    for (size_t i = 0; i < w->ids.n; i++) k->bits[w->ids.data[i] / 64] |= (uint64_t)1 << w->ids.data[i] % 64;
    n = 0;
    for (size_t i = 0; i < w->ends.n; i++) {
        uint32_t at = w->ends.data[i], d = t->depth[at];
        for (uint32_t j = t->first[at + 1]; j < t->first[t->end[at]]; j++) {
            hone_str p = t->piece[t->ids[j]];
            list[n++] = (hn_token_text){ p.ptr + d, (uint32_t)(p.len - d), t->ids[j] };
        }
    }
    hone_status st = n ? hn_token_tree_make(&k->tail, list, n, NULL) : HONE_OK;
    free(list);
    if (st != HONE_OK) {
        mask_free(k);
        return NULL;
    }
    return k;
}

/* ---- of a vocabulary: a free JSON string --------------------------------------------------------- */

static const hn_lexeme free_string = { HN_LANG_ALL, HN_QUOTED };

hone_status hn_token_tree_plain(hn_token_tree *t, hone_error *err)
{
    walk w = { .t = t, .l = hn_langs_new(1 << 20), .path = path_for(t), .collect = true };
    if (w.l && w.path) {
        walk_below(&w, 0, free_string, 0);
        if (!w.failed) t->plain = mask_of(&w, t, free_string);
    }
    hn_langs_free(w.l);
    free(w.path);
    free(w.ids.data);
    free(w.ends.data);
    return t->plain ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "mask of a vocabulary");
}

/* ---- of a state -------------------------------------------------------------------------------------- */

static bool same(hn_lexeme a, hn_lexeme b) { return a.term == b.term && a.part == b.part; }

static void use(walk *w, const hn_token_mask *k, uint32_t cell)
{
    size_t n = k->n_word < w->n_word ? k->n_word : w->n_word;
    for (size_t i = 0; i < n; i++) w->bits[i] |= k->bits[i];
    follow_tail(w, &k->tail, cell);
}

/* Do so many characters lead to the free string that its mask is nearly the answer? */
static bool nearly_free(walk *w, hn_lexeme x)
{
    const hn_lang_state *s = x.part == HN_QUOTED && w->t->plain ? hn_lang_open(w->l, x.term) : NULL;
    int n = 0;
    for (int c = 0; s && c < 128; c++) n += s->ascii[c] == HN_LANG_ALL;
    return n >= NEARLY_FREE;
}

static void clear_below(walk *w, uint32_t node, bool self)
{
    const hn_token_tree *t = w->t;
    for (uint32_t k = t->first[self ? node : node + 1]; k < t->first[t->end[node]]; k++) clear_bit(w, t->ids[k]);
}

/* w->bits holds the mask of the free string: what x does not allow goes, what ends x is walked. */
static void differ(walk *w, hn_lexeme x, uint32_t cell)
{
    const hn_token_tree *t = w->t;
    w->path[0] = x;
    for (uint32_t i = 1; i < t->n && !w->failed;) {
        hn_lexeme y = w->path[t->depth[i] - 1];
        const hn_lang_state *s = hn_lang_open(w->l, y.term);
        if (!s || !hn_lexeme_step(w->l, s, &y, t->byte[i])) {
            clear_below(w, i, true);
            i = t->end[i];
        } else if (same(y, free_string)) {
            i = t->end[i];
        } else if (hn_lexeme_closed(y)) {
            clear_below(w, i, false);
            follow(w, i, cell);
            i = t->end[i];
        } else {
            w->visited++;
            w->path[t->depth[i]] = y;
            i++;
        }
    }
}

static void keep(hn_machine *m, hn_token_mask *k)
{
    if (m->n_mask == m->cap_mask) {
        size_t cap = m->cap_mask * 2 + 16;
        hn_token_mask **p = realloc(m->mask, cap * sizeof *p);
        if (!p) {
            mask_free(k);
            return;
        }
        m->mask = p;
        m->cap_mask = cap;
    }
    m->mask[m->n_mask++] = k;
    m->mask_bytes += mask_bytes(k);
}

static void mask_item(walk *w, hn_item x)
{
    hn_machine *m = w->m;
    x.at.term = hn_lang_near(w->l, x.at.term, w->t->max_depth);
    if (same(x.at, free_string) && w->t->plain) {
        use(w, w->t->plain, x.cell);
        return;
    }
    for (size_t i = 0; i < m->n_mask; i++)
        if (m->mask[i]->serial == w->t->serial && same(m->mask[i]->key, x.at)) {
            use(w, m->mask[i], x.cell);
            return;
        }
    if (nearly_free(w, x.at)) {
        uint64_t *all = w->bits, *own = calloc(w->n_word + 1, 8);
        if (!own) {
            w->failed = true;
            return;
        }
        w->bits = own;
        use(w, w->t->plain, x.cell);
        differ(w, x.at, x.cell);
        for (size_t i = 0; i < w->n_word; i++) all[i] |= own[i];
        w->bits = all;
        free(own);
        return;
    }
    w->collect = true;
    w->ids.n = w->ends.n = 0;
    w->visited = 0;
    walk_below(w, 0, x.at, x.cell);
    w->collect = false;
    for (size_t i = 0; i < w->ids.n; i++) set_bit(w, (int32_t)w->ids.data[i]);
    hn_token_mask *k = w->visited > LONG_WALK && !w->failed ? mask_of(w, w->t, x.at) : NULL;
    if (k) {
        follow_tail(w, &k->tail, x.cell);
        keep(m, k);
        return;
    }
    for (size_t i = 0; i < w->ends.n; i++) follow(w, w->ends.data[i], x.cell);
}

void hn_masks_free(hn_machine *m)
{
    for (size_t i = 0; i < m->n_mask; i++) mask_free(m->mask[i]);
    free(m->mask);
    m->mask = NULL;
    m->n_mask = m->cap_mask = m->mask_bytes = 0;
}

void hn_masks_of(hn_machine *m, const hn_token_tree *t, const hn_item *item, uint32_t n, uint64_t *bits, size_t n_word)
{
    if (m->mask_bytes > KEPT_BYTES) hn_masks_free(m);
    walk w = { .m = m, .l = m->g.lang, .t = t, .path = path_for(t), .bits = bits, .n_word = n_word };
    w.failed = !w.path;
    for (uint32_t i = 0; i < n && !w.failed; i++) mask_item(&w, item[i]);
    if (w.failed && !m->failed) {
        m->failed = w.visited > WALK_MAX ? HONE_E_UNSUPPORTED : HONE_E_NOMEM;
        m->why = w.visited > WALK_MAX ? "a mask takes more work than it may" : "out of memory";
    }
    free(w.path);
    free(w.ids.data);
    free(w.ends.data);
}
