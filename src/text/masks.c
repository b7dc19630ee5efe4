/* masks: which tokens may come next. The tree of the vocabulary is walked with each lexeme in progress, and where a
 * lexeme may end inside a token, with what its stack goes on with. Two things keep that cheap:
 *   - what a lexeme alone allows is kept where the walk was long: bits of the tokens that stay inside it, and a tree of
 *     what the others have behind its end, which is all that must be walked with the stack of the moment;
 *   - tokens that stay inside a free JSON string are known per vocabulary, by the characters they need. Where a string
 *     goes on whatever comes (hn_lang_room), only tokens with a closing quote are walked, and very long ones. */
#include "text/machine.h"

#include <stdlib.h>

enum {
    LONG_WALK = 1500,      /* nodes; longer ones are kept */
    KEPT_BYTES = 16 << 20, /* of masks per grammar */
    WALK_MAX = 1 << 24,    /* nodes of one mask */
    SUMS = 16,             /* characters up to which sums of bits are kept */
    LONG_TOKEN = 16        /* characters; more of them have a tree of their own */
};

typedef struct hn_token_mask {
    uint64_t serial; /* of the vocabulary */
    hn_lexeme key;
    uint64_t *bits; /* [n_word] tokens that end inside the lexeme, or with it */
    size_t n_word;
    hn_token_tree tail; /* what tokens have behind its end */
} hn_token_mask;

/* What a free JSON string allows, of one vocabulary: t->plain. */
struct hn_token_plain {
    hn_token_mask *all;
    uint64_t *sum[SUMS + 1]; /* [c]: tokens that stay inside and need at most c characters; the last: any number */
    int32_t *by_count;       /* those of more than LONG_TOKEN characters, ascending … */
    uint32_t n_long;
    uint16_t *count_of;      /* … and how many each of them needs */
    hn_token_tree long_ones; /* the same */
    hn_token_tree closing;   /* tokens with the quote that ends the string */
};

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
    for (uint32_t i = 0; o && i < o->n && !w->failed; i++)
        if (!hn_item_is_token(&o->item[i])) walk_below(w, node, o->item[i].at, o->item[i].cell);
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

void hn_token_plain_free(struct hn_token_plain *p)
{
    if (!p) return;
    mask_free(p->all);
    for (int i = 0; i <= SUMS; i++) free(p->sum[i]);
    free(p->by_count);
    free(p->count_of);
    hn_token_tree_free(&p->long_ones);
    hn_token_tree_free(&p->closing);
    free(p);
}

/* Characters that a token needs inside a free string; UINT32_MAX: it holds the closing quote. */
static uint32_t characters(const walk *w, hone_str piece)
{
    hn_lexeme x = free_string;
    const hn_lang_state *s = hn_lang_open(w->l, HN_LANG_ALL);
    uint32_t n = 0;
    for (size_t i = 0; i < piece.len; i++) {
        hn_lexeme_step(w->l, s, &x, (uint8_t)piece.ptr[i]);
        if (hn_lexeme_closed(x)) return UINT32_MAX;
        n += x.part == HN_QUOTED;
    }
    return n + (x.part != HN_QUOTED);
}

typedef struct sorted {
    uint32_t count;
    int32_t id;
} sorted;

static int by_count(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? -1 : 1) : (x->id > y->id) - (x->id < y->id);
}

/* Tokens of the mask of the free string, sorted into what struct hn_token_plain has. */
static hone_status sort_plain(walk *w, struct hn_token_plain *p, const hn_token_tree *t, hone_error *err)
{
    size_t n = w->ids.n, n_close = 0, n_long = 0, n_word = p->all->n_word;
    size_t n_behind = 0; /* tokens that go on behind the quote */
    for (size_t i = 0; i < w->ends.n; i++)
        n_behind += t->first[t->end[w->ends.data[i]]] - t->first[w->ends.data[i] + 1];
    hn_token_text *close = malloc((n + n_behind + 1) * sizeof *close), *far = malloc((n + 1) * sizeof *far);
    sorted *order = malloc((n + 1) * sizeof *order);
    bool ok = close && far && order;
    for (int i = 0; i <= SUMS; i++) ok = (p->sum[i] = calloc(n_word + 1, 8)) && ok;
    for (size_t i = 0; i < n && ok; i++) {
        int32_t id = (int32_t)w->ids.data[i];
        hone_str piece = t->piece[id];
        uint32_t c = characters(w, piece);
        if (c == UINT32_MAX) {
            close[n_close++] = (hn_token_text){ piece.ptr, (uint32_t)piece.len, id };
            continue;
        }
        p->sum[c < SUMS ? c : SUMS][id / 64] |= (uint64_t)1 << id % 64;
        if (c <= LONG_TOKEN) continue;
        order[n_long] = (sorted){ c, id };
        far[n_long++] = (hn_token_text){ piece.ptr, (uint32_t)piece.len, id };
    }
    for (size_t i = 0; i < w->ends.n && ok; i++)
        for (uint32_t at = w->ends.data[i], k = t->first[at + 1]; k < t->first[t->end[at]]; k++) {
            hone_str piece = t->piece[t->ids[k]];
            close[n_close++] = (hn_token_text){ piece.ptr, (uint32_t)piece.len, t->ids[k] };
        }
    for (int i = 1; i <= SUMS && ok; i++)
        for (size_t k = 0; k < n_word; k++) p->sum[i][k] |= p->sum[i - 1][k];
    if (n_long && ok) qsort(order, n_long, sizeof *order, by_count);
    p->n_long = (uint32_t)n_long;
    ok = ok && (p->by_count = malloc((n_long + 1) * sizeof *p->by_count)) &&
         (p->count_of = malloc((n_long + 1) * sizeof *p->count_of));
    for (size_t i = 0; i < n_long && ok; i++) {
        p->by_count[i] = order[i].id;
        p->count_of[i] = (uint16_t)order[i].count;
    }
    hone_status st = ok ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "mask of a vocabulary");
    if (st == HONE_OK) st = hn_token_tree_make(&p->closing, close, n_close, err);
    if (st == HONE_OK) st = hn_token_tree_make(&p->long_ones, far, n_long, err);
    free(close);
    free(far);
    free(order);
    return st;
}

hone_status hn_token_tree_plain(hn_token_tree *t, hone_error *err)
{
    walk w = { .t = t, .l = hn_langs_new(1 << 20), .path = path_for(t), .collect = true };
    struct hn_token_plain *p = calloc(1, sizeof *p);
    hone_status st = HONE_OK;
    if (w.l && w.path && p) walk_below(&w, 0, free_string, 0);
    if (!w.l || !w.path || !p || w.failed || !(p->all = mask_of(&w, t, free_string)))
        st = HN_FAIL(err, HONE_E_NOMEM, "mask of a vocabulary");
    if (st == HONE_OK) st = sort_plain(&w, p, t, err);
    if (st == HONE_OK) st = hn_langs_check(w.l, err); /* a walk without memory is a short one */
    if (st == HONE_OK) t->plain = p;
    else hn_token_plain_free(p);
    hn_langs_free(w.l);
    free(w.path);
    free(w.ids.data);
    free(w.ends.data);
    return st;
}

/* ---- of a state -------------------------------------------------------------------------------------- */

static bool same(hn_lexeme a, hn_lexeme b) { return a.term == b.term && a.part == b.part; }

static void use(walk *w, const hn_token_mask *k, uint32_t cell)
{
    size_t n = k->n_word < w->n_word ? k->n_word : w->n_word;
    for (size_t i = 0; i < n; i++) w->bits[i] |= k->bits[i];
    follow_tail(w, &k->tail, cell);
}

/* Walks part of the vocabulary. */
static void walk_part(walk *w, const hn_token_tree *part, hn_item x)
{
    const hn_token_tree *t = w->t;
    if (part->n == 0) return;
    w->t = part;
    walk_below(w, 0, x.at, x.cell);
    w->t = t;
}

/* A string that goes on for a while whatever comes. False: it is another. */
static bool roomy(walk *w, hn_item x)
{
    struct hn_token_plain *p = w->t->plain;
    bool exact;
    if (x.at.part != HN_QUOTED || !p) return false;
    uint32_t room = hn_lang_room(w->l, x.at.term, &exact);
    if (room < LONG_TOKEN && !exact) return false;
    const uint64_t *sum = p->sum[room < SUMS ? room : SUMS];
    size_t n = p->all->n_word < w->n_word ? p->all->n_word : w->n_word;
    if (room < SUMS || room == HN_LANG_ENDLESS) {
        for (size_t i = 0; i < n; i++) w->bits[i] |= sum[i];
    } else { /* all, and of the long ones those that fit */
        uint64_t *own = malloc((n + 1) * 8);
        if (!own) {
            w->failed = true;
            return true;
        }
        memcpy(own, sum, n * 8);
        for (uint32_t i = p->n_long; i-- > 0 && p->count_of[i] > room;) {
            size_t id = (size_t)p->by_count[i];
            if (id / 64 < n) own[id / 64] &= ~((uint64_t)1 << id % 64);
        }
        for (size_t i = 0; i < n; i++) w->bits[i] |= own[i];
        free(own);
        if (!exact) walk_part(w, &p->long_ones, x);
    }
    walk_part(w, &p->closing, x);
    return true;
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
    if (hn_item_is_token(&x)) {
        if (x.at.term < (uint32_t)w->t->n_vocab) set_bit(w, (int32_t)x.at.term); /* else another vocabulary was meant */
        return;
    }
    x.at.term = hn_lang_near(w->l, x.at.term, w->t->max_depth);
    if (same(x.at, free_string) && w->t->plain) {
        use(w, w->t->plain->all, x.cell);
        return;
    }
    for (size_t i = 0; i < m->n_mask; i++)
        if (m->mask[i]->serial == w->t->serial && same(m->mask[i]->key, x.at)) {
            use(w, m->mask[i], x.cell);
            return;
        }
    if (roomy(w, x)) return;
    w->collect = true;
    w->ids.n = w->ends.n = 0;
    w->visited = 0;
    walk_below(w, 0, x.at, x.cell);
    w->collect = false;
    for (size_t i = 0; i < w->ids.n; i++) set_bit(w, (int32_t)w->ids.data[i]);
    bool done = !w->failed && !hn_langs_failed(w->l);
    hn_token_mask *k = w->visited > LONG_WALK && done ? mask_of(w, w->t, x.at) : NULL;
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

void hn_masks_sweep(hn_machine *m, const uint32_t *term)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_mask; i++) {
        hn_token_mask *k = m->mask[i];
        k->key.term = term[k->key.term];
        if (k->key.term != HN_LANG_NONE) {
            m->mask[n++] = k;
            continue;
        }
        m->mask_bytes -= mask_bytes(k);
        mask_free(k);
    }
    m->n_mask = n;
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
