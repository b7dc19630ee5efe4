/* Texts through a grammar: stacks as cells, sets of items, and the history of each text. */
#include "text/matcher.h"
#include "text/machine.h"

#include <stdlib.h>

enum { BOTTOM = 0, SET_SLOTS = 4 * HN_GRAMMAR_STACKS };

/* ---- memory: failures stay until hn_machine_check asks ---------------------------------------------- */

static void give_up(hn_machine *m, hone_status st, const char *why)
{
    if (m->failed) return;
    m->failed = st;
    m->why = why;
}

hone_status hn_machine_check(hn_machine *m, hone_error *err)
{
    hone_status st = hn_langs_check(m->g.lang, err);
    if (st == HONE_OK && m->failed) st = HN_FAIL(err, m->failed, "grammar: %s", m->why);
    m->failed = HONE_OK;
    m->full = false;
    return st;
}

static bool put_u32(hn_machine *m, hn_numbers *v, uint32_t x)
{
    if (v->n == v->cap) {
        size_t cap = v->cap * 2 + 64;
        uint32_t *p = realloc(v->data, cap * sizeof *p);
        if (!p) {
            give_up(m, HONE_E_NOMEM, "out of memory");
            return false;
        }
        v->data = p;
        v->cap = cap;
    }
    v->data[v->n++] = x;
    return true;
}

/* ---- cells ------------------------------------------------------------------------------------------------ */

static uint32_t cell_slot(const hn_machine *m, const hn_cell *c)
{
    uint64_t h = hn_mix64((uint64_t)c->node << 32 | c->parent);
    return (uint32_t)hn_mix64(h ^ ((uint64_t)c->min << 32 | c->max)) & (m->n_slot - 1);
}

static bool more_cells(hn_machine *m)
{
    uint32_t cap = m->cap_cell * 2 + 256;
    hn_cell *c = realloc(m->cell, cap * sizeof *c);
    if (c) m->cell = c;
    uint32_t *s = c ? calloc(cap * 2, sizeof *s) : NULL;
    if (!s) {
        give_up(m, HONE_E_NOMEM, "out of memory");
        return false;
    }
    uint32_t n_slot = 1;
    while (n_slot < cap) n_slot *= 2;
    free(m->slot);
    m->slot = s;
    m->n_slot = n_slot; /* between cap and 2 cap */
    m->cap_cell = cap;
    for (uint32_t i = 0; i < m->n_cell; i++) {
        uint32_t at = cell_slot(m, &m->cell[i]);
        while (m->slot[at]) at = (at + 1) & (n_slot - 1);
        m->slot[at] = i + 1;
    }
    return true;
}

static uint32_t intern_cell(hn_machine *m, hn_cell c)
{
    if (m->failed) return BOTTOM;
    if (m->n_cell == HN_CELLS_MAX) {
        give_up(m, HONE_E_UNSUPPORTED, "the text is nested too deeply, or counts too far");
        m->full = true;
        return BOTTOM;
    }
    if ((uint64_t)m->n_cell * 4 >= (uint64_t)m->n_slot * 3 || m->n_cell == m->cap_cell)
        if (!more_cells(m)) return BOTTOM;
    uint32_t at = cell_slot(m, &c);
    for (; m->slot[at]; at = (at + 1) & (m->n_slot - 1)) {
        const hn_cell *x = &m->cell[m->slot[at] - 1];
        if (x->node == c.node && x->parent == c.parent && x->min == c.min && x->max == c.max) return m->slot[at] - 1;
    }
    m->cell[m->n_cell] = c;
    m->slot[at] = m->n_cell + 1;
    return m->n_cell++;
}

/* First node, then what parent stands for. */
static uint32_t cell_of(hn_machine *m, hn_gnode node, uint32_t parent)
{
    const hn_gnode_data *d = &m->g.node[node];
    bool counts = d->kind == HN_G_IS_REP;
    return intern_cell(m,
                       (hn_cell){ .node = node, .parent = parent, .min = counts ? d->b : 0, .max = counts ? d->c : 0 });
}

/* ---- sets of items ----------------------------------------------------------------------------------------- */

static void set_clear(hn_machine *m, hn_items *s)
{
    s->n = 0;
    s->end = false;
    m->stamp++;
}

/* Adds x unless it is there. The table behind it is of one set at a time: the one cleared last. */
static void set_put(hn_machine *m, hn_items *s, hn_item x)
{
    uint64_t h = hn_mix64((uint64_t)x.at.term << 32 | x.cell);
    uint32_t at = (uint32_t)hn_mix64(h ^ x.at.part) & (SET_SLOTS - 1);
    for (; m->set_stamp[at] == m->stamp; at = (at + 1) & (SET_SLOTS - 1)) {
        const hn_item *y = &s->item[m->set_slot[at]];
        if (y->at.term == x.at.term && y->at.part == x.at.part && y->cell == x.cell) return;
    }
    if (s->n == HN_GRAMMAR_STACKS) {
        give_up(m, HONE_E_UNSUPPORTED, "it can be read in too many ways at the same time");
        return;
    }
    if (s->n == s->cap) {
        uint32_t cap = s->cap * 2 + 16;
        hn_item *p = realloc(s->item, cap * sizeof *p);
        if (!p) {
            give_up(m, HONE_E_NOMEM, "out of memory");
            return;
        }
        s->item = p;
        s->cap = cap;
    }
    m->set_stamp[at] = m->stamp;
    m->set_slot[at] = s->n;
    s->item[s->n++] = x;
}

static void push(hn_machine *m, uint32_t cell)
{
    if (m->failed || (m->seen.n > cell && m->seen.data[cell] == m->epoch)) return;
    while (m->seen.n <= cell)
        if (!put_u32(m, &m->seen, 0)) return;
    m->seen.data[cell] = m->epoch;
    put_u32(m, &m->todo, cell);
}

/* Opens one cell of the work list: lexemes become items, anything else further cells. */
static void open_cell(hn_machine *m, uint32_t id, hn_items *out)
{
    hn_cell c = m->cell[id];
    const hn_gnode_data d = m->g.node[c.node];
    if (id == BOTTOM) {
        out->end = true;
        return;
    }
    if (!d.alive) return;
    switch ((hn_gkind)d.kind) {
    case HN_G_IS_FAIL: return;
    case HN_G_IS_EMPTY: push(m, c.parent); return;
    case HN_G_IS_LEX:
        set_put(m, out, (hn_item){ hn_lexeme_begin(d.a, d.quoted), c.parent });
        if (d.empty_ok) push(m, c.parent);
        return;
    case HN_G_IS_TOKEN: set_put(m, out, (hn_item){ { d.a, (uint32_t)HN_ITEM_TOKEN }, c.parent }); return;
    case HN_G_IS_SEQ: push(m, cell_of(m, d.a, cell_of(m, d.b, c.parent))); return;
    case HN_G_IS_ALT:
        for (uint32_t i = 0; i < d.b; i++)
            if (m->g.node[m->g.kids[d.a + i]].alive) push(m, cell_of(m, m->g.kids[d.a + i], c.parent));
        return;
    case HN_G_IS_REP: {
        if (c.min == 0) push(m, c.parent);
        if (c.max == 0 || !m->g.node[d.a].alive) return;
        hn_cell rest = { c.node, c.parent, c.min ? c.min - 1 : 0, c.max == HN_LANG_ENDLESS ? c.max : c.max - 1, NULL };
        push(m, cell_of(m, d.a, rest.max == 0 ? c.parent : intern_cell(m, rest)));
        return;
    }
    case HN_G_IS_RULE: push(m, cell_of(m, m->g.rule[d.a].body, c.parent)); return;
    }
}

/* What may come next where everything above `cell` is done. NULL after a failure. */
const hn_opened *hn_machine_open(hn_machine *m, uint32_t cell)
{
    if (m->failed) return NULL;
    if (m->cell[cell].opened) return m->cell[cell].opened;
    hn_items set = { 0 };
    set_clear(m, &set);
    m->epoch++;
    m->todo.n = 0;
    push(m, cell);
    while (m->todo.n && !m->failed) open_cell(m, m->todo.data[--m->todo.n], &set);
    hn_opened *o = NULL;
    if (!m->failed && !(o = malloc(sizeof *o + set.n * sizeof *o->item))) give_up(m, HONE_E_NOMEM, "out of memory");
    if (o) {
        o->n = set.n;
        o->end = set.end;
        if (set.n) memcpy(o->item, set.item, set.n * sizeof *o->item);
        m->cell[cell].opened = o;
    }
    free(set.item);
    return o;
}

/* All items of `from`, one byte on. */
static void step(hn_machine *m, const hn_item *from, uint32_t n, uint8_t byte, hn_items *out)
{
    hn_langs *l = m->g.lang;
    for (uint32_t i = 0; i < n && !m->failed; i++) { /* opening uses the table of the set: all of it first */
        hn_item x = from[i];
        if (hn_item_is_token(&x)) continue;
        const hn_lang_state *s = hn_lang_open(l, x.at.term);
        if (s && hn_lexeme_step(l, s, &x.at, byte) && hn_lexeme_ends(l, x.at)) hn_machine_open(m, x.cell);
    }
    set_clear(m, out);
    for (uint32_t i = 0; i < n && !m->failed; i++) {
        hn_item x = from[i];
        if (hn_item_is_token(&x)) continue;
        const hn_lang_state *s = hn_lang_open(l, x.at.term);
        if (!s || !hn_lexeme_step(l, s, &x.at, byte)) continue;
        const hn_lang_state *to = hn_lexeme_closed(x.at) ? NULL : hn_lang_open(l, x.at.term);
        if (to && (to->n || x.at.part)) set_put(m, out, x);
        if (!hn_lexeme_ends(l, x.at)) continue;
        const hn_opened *o = hn_machine_open(m, x.cell);
        if (!o) break;
        out->end = out->end || o->end;
        for (uint32_t k = 0; k < o->n; k++) set_put(m, out, o->item[k]);
    }
}

/* ---- the machine --------------------------------------------------------------------------------------------- */

/* Where to look for what nobody holds: half way between what there is now and all that may be. */
static void look_out(hn_machine *m)
{
    m->low = hn_langs_left(m->g.lang) / 2;
    m->high = m->n_cell + (HN_CELLS_MAX - m->n_cell) / 2;
}

hone_status hn_machine_new(hn_machine **out, const hn_grammar *g, hone_error *err)
{
    *out = NULL;
    hn_machine *m = calloc(1, sizeof *m);
    if (!m) return HN_FAIL(err, HONE_E_NOMEM, "grammar");
    m->g = hn_grammar_look(g);
    pthread_mutex_init(&m->mu, NULL);
    m->set_stamp = calloc(SET_SLOTS, sizeof *m->set_stamp);
    m->set_slot = malloc(SET_SLOTS * sizeof *m->set_slot);
    if (!m->set_stamp || !m->set_slot) give_up(m, HONE_E_NOMEM, "out of memory");
    intern_cell(m, (hn_cell){ .node = HN_G_EMPTY });
    m->start = cell_of(m, m->g.root, BOTTOM);
    if (!m->failed) hn_machine_open(m, m->start);
    hn_langs_settle(m->g.lang);
    look_out(m);
    hone_status st = hn_machine_check(m, err);
    if (st != HONE_OK) hn_machine_free(m);
    else *out = m;
    return st;
}

void hn_machine_free(hn_machine *m)
{
    if (!m) return;
    hn_masks_free(m);
    hn_needs_free(m->needs);
    for (uint32_t i = 0; i < m->n_cell; i++) free(m->cell[i].opened);
    free(m->cell);
    free(m->slot);
    free(m->set_stamp);
    free(m->set_slot);
    free(m->todo.data);
    free(m->seen.data);
    free(m->a.item);
    free(m->b.item);
    pthread_mutex_destroy(&m->mu);
    free(m);
}

/* ---- what nobody holds any more -------------------------------------------------------------------------------- */

/* A state: items[begin … begin + n) of the matcher. */
typedef struct state {
    size_t begin;
    uint32_t n;
    bool end, over; /* a whole text; one that an end token has ended */
} state;

struct hone_matcher {
    hn_grammar *grammar;
    hn_machine *machine;
    const hn_token_tree *tree;
    hn_item *item;
    size_t n_item, cap_item;
    state *history; /* [n_state]; the last is the present one */
    size_t n_state, cap_state;
    hn_matcher *next;     /* of the machine's */
    struct hn_ways *ways; /* finish.c: ways to its end that were found; NULL: none yet */
};

/* Cells in use keep their order; opened ones are opened again. keep [n_cell]: not 0 for those in use, then their new
 * numbers. */
static void sweep_cells(hn_machine *k, uint32_t *keep)
{
    uint32_t n = 0;
    keep[BOTTOM] = keep[k->start] = 1;
    for (uint32_t i = k->n_cell; i-- > 1;)
        if (keep[i]) keep[k->cell[i].parent] = 1;
    for (uint32_t i = 0; i < k->n_cell; i++) {
        hn_cell c = k->cell[i];
        free(c.opened);
        if (!keep[i]) continue;
        c.opened = NULL;
        c.parent = keep[c.parent]; /* made before it; the bottom is its own */
        k->cell[n] = c;
        keep[i] = n++;
    }
    k->cell[BOTTOM].parent = BOTTOM;
    k->start = keep[k->start];
    k->n_cell = n;
    k->seen.n = 0;
    free(k->slot);
    k->slot = NULL;
    k->n_slot = 0;
    k->cap_cell = n / 2;
    more_cells(k);
}

/* Stacks and terms that matching made, and that no text which somebody may go on with needs. */
static void sweep(hn_machine *k)
{
    uint32_t *cell = calloc(k->n_cell, sizeof *cell), *term = calloc(hn_langs_count(k->g.lang), sizeof *term);
    for (hn_matcher *m = k->first; m && cell && term; m = m->next)
        for (size_t i = 0; i < m->n_item; i++) {
            cell[m->item[i].cell] = 1;
            if (!hn_item_is_token(&m->item[i])) term[m->item[i].at.term] = 1;
        }
    for (hn_matcher *m = k->first; m && term; m = m->next) hn_ways_hold(m->ways, term);
    if (cell && term) {
        sweep_cells(k, cell);
        hn_langs_sweep(k->g.lang, term);
        hn_masks_sweep(k, term);
        hn_needs_free(k->needs);
        k->needs = NULL;
    }
    for (hn_matcher *m = k->first; m && cell && term; m = m->next)
        for (size_t i = 0; i < m->n_item; i++) {
            hn_item *x = &m->item[i];
            x->cell = cell[x->cell];
            if (!hn_item_is_token(x)) x->at.term = term[x->at.term];
        }
    for (hn_matcher *m = k->first; m && cell && term; m = m->next) hn_ways_move(m->ways, term);
    free(cell);
    free(term);
    look_out(k);
    k->swept = true;
}

/* Work of one matcher begins: what failed before it is no matter of its own. */
static void begin_work(hn_machine *k)
{
    pthread_mutex_lock(&k->mu);
    k->swept = false;
    if (hn_langs_left(k->g.lang) < k->low || k->n_cell > k->high) sweep(k);
    hn_langs_allow(k->g.lang, HN_GRAMMAR_AT_WORK);
}

/* Has it failed for lack of room, and is there more now? Then it is to be done anew. */
static bool once_more(hn_machine *k)
{
    if (k->swept || !(k->full || hn_langs_full(k->g.lang))) return false;
    k->failed = HONE_OK;
    k->full = false;
    hn_langs_allow(k->g.lang, HN_GRAMMAR_AT_WORK);
    sweep(k);
    return true;
}

static hone_status end_work(hn_machine *k, hone_error *err)
{
    hone_status st = hn_machine_check(k, err);
    k->ways = NULL;
    pthread_mutex_unlock(&k->mu);
    return st;
}

/* ---- matchers -------------------------------------------------------------------------------------------------- */

static hone_status remember(hn_matcher *m, const hn_item *item, uint32_t n, bool end, bool over, hone_error *err)
{
    if (m->n_item + n > m->cap_item) {
        size_t cap = m->cap_item * 2 + n + 64;
        hn_item *p = realloc(m->item, cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "history of a text");
        m->item = p;
        m->cap_item = cap;
    }
    if (m->n_state == m->cap_state) {
        size_t cap = m->cap_state * 2 + 64;
        state *p = realloc(m->history, cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "history of a text");
        m->history = p;
        m->cap_state = cap;
    }
    if (n) memcpy(m->item + m->n_item, item, n * sizeof *item);
    m->history[m->n_state++] = (state){ .begin = m->n_item, .n = n, .end = end, .over = over };
    m->n_item += n;
    return HONE_OK;
}

static const state *now(const hn_matcher *m) { return &m->history[m->n_state - 1]; }

/* A matcher whose states all have none has no memory for any. */
static const hn_item *items_of(const hn_matcher *m, const state *s) { return s->n ? m->item + s->begin : NULL; }

hone_status hn_matcher_new(hn_matcher **out, hn_grammar *g, const hn_token_tree *tree, hone_error *err)
{
    *out = NULL;
    hn_matcher *m = calloc(1, sizeof *m);
    if (!m) return HN_FAIL(err, HONE_E_NOMEM, "matcher");
    m->grammar = g;
    m->machine = hn_grammar_machine(g);
    m->tree = tree;
    hn_grammar_hold(g);
    hn_machine *k = m->machine;
    begin_work(k);
    m->next = k->first;
    k->first = m;
    const hn_opened *o;
    do o = hn_machine_open(k, k->start);
    while (once_more(k));
    hone_status st = o ? remember(m, o->item, o->n, o->end, false, err) : HONE_OK, failed = end_work(k, err);
    if (failed != HONE_OK) st = failed;
    if (st != HONE_OK) hn_matcher_free(m);
    else *out = m;
    return st;
}

void hn_matcher_free(hn_matcher *m)
{
    if (!m) return;
    pthread_mutex_lock(&m->machine->mu);
    hn_matcher **at = &m->machine->first;
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    pthread_mutex_unlock(&m->machine->mu);
    hn_ways_free(m->ways);
    hn_grammar_drop(m->grammar);
    free(m->item);
    free(m->history);
    free(m);
}

hone_status hn_matcher_copy(hn_matcher **out, hn_matcher *from, hone_error *err)
{
    hone_status st = hn_matcher_new(out, from->grammar, from->tree, err);
    if (st != HONE_OK) return st;
    hn_matcher *m = *out;
    pthread_mutex_lock(&m->machine->mu);
    m->n_state = m->n_item = 0;
    for (size_t i = 0; i < from->n_state && st == HONE_OK; i++) {
        const state *s = &from->history[i];
        st = remember(m, items_of(from, s), s->n, s->end, s->over, err);
    }
    pthread_mutex_unlock(&m->machine->mu);
    if (st != HONE_OK) {
        hn_matcher_free(m);
        *out = NULL;
    }
    return st;
}

/* What comes behind token items of this id: opened in advance, as opening needs the table of the set. */
static void open_token(hn_machine *k, const hn_item *item, uint32_t n, int32_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (hn_item_is_token(&item[i]) && item[i].at.term == (uint32_t)id) hn_machine_open(k, item[i].cell);
}

/* Adds it to the set that was made last. */
static void take_token(hn_machine *k, const hn_item *item, uint32_t n, int32_t id, hn_items *out)
{
    for (uint32_t i = 0; i < n && !k->failed; i++) {
        if (!hn_item_is_token(&item[i]) || item[i].at.term != (uint32_t)id) continue;
        const hn_opened *o = hn_machine_open(k, item[i].cell);
        if (!o) break;
        out->end = out->end || o->end;
        for (uint32_t j = 0; j < o->n; j++) set_put(k, out, o->item[j]);
    }
}

/* What follows from n items, text by text and over the token id (-1: none), whose bytes it is. */
static const hn_items *read_on(hn_machine *k, const hn_item *first, uint32_t n_first, const char *text, size_t len,
                               int32_t id)
{
    const hn_item *from = first;
    uint32_t n = n_first;
    hn_items *a = &k->a, *b = &k->b;
    if (id >= 0) open_token(k, first, n_first, id);
    set_clear(k, b);
    for (size_t i = 0; i < len && !k->failed; i++) {
        step(k, from, n, (uint8_t)text[i], a);
        from = a->item;
        n = a->n;
        hn_items *swap = a;
        a = b;
        b = swap;
        if (n == 0 && (!b->end || i + 1 < len)) { /* a dead end, or too long */
            set_clear(k, b);
            break;
        }
    }
    if (id >= 0) take_token(k, first, n_first, id, b);
    return b;
}

/* One step of the history: text, or the token id (-1: none) whose bytes it is. */
static hone_status advance(hn_matcher *m, const char *text, size_t len, int32_t id, bool *ok, hone_error *err)
{
    hn_machine *k = m->machine;
    const state *s = now(m);
    *ok = false;
    if (s->over) return HONE_OK;
    if (len == 0 && id < 0) {
        *ok = true;
        return HONE_OK;
    }
    const hn_items *b;
    begin_work(k);
    do b = read_on(k, items_of(m, s), s->n, text, len, id);
    while (once_more(k));
    hone_status st = hn_machine_check(k, err);
    *ok = st == HONE_OK && (b->n || b->end);
    if (*ok) st = remember(m, b->item, b->n, b->end, false, err);
    if (st != HONE_OK) *ok = false;
    pthread_mutex_unlock(&k->mu);
    return st;
}

hone_status hn_matcher_bytes(hn_matcher *m, const char *text, size_t len, bool *ok, hone_error *err)
{
    return advance(m, text, len, -1, ok, err);
}

static bool is_end(const hn_token_tree *t, int32_t id)
{
    for (int32_t i = 0; i < t->n_end; i++)
        if (t->end_ids[i] == id) return true;
    return false;
}

hone_status hn_matcher_token(hn_matcher *m, int32_t id, bool *ok, hone_error *err)
{
    *ok = false;
    if (!m->tree || id < 0 || id >= m->tree->n_vocab)
        return HN_FAIL(err, HONE_E_ARG, "token id %d; expected 0 to %d", id, m->tree ? m->tree->n_vocab - 1 : -1);
    const state *s = now(m);
    if (is_end(m->tree, id)) {
        *ok = s->end && !s->over;
        pthread_mutex_lock(&m->machine->mu); /* who sweeps looks at all matchers */
        hone_status st = *ok ? remember(m, NULL, 0, true, true, err) : HONE_OK;
        pthread_mutex_unlock(&m->machine->mu);
        return st;
    }
    hone_str p = m->tree->piece[id];
    return advance(m, p.ptr, p.len, id, ok, err);
}

bool hn_matcher_ends(const hn_matcher *m) { return now(m)->end; }

size_t hn_matcher_steps(const hn_matcher *m) { return m->n_state - 1; }

hone_status hn_matcher_back(hn_matcher *m, size_t n, hone_error *err)
{
    if (n >= m->n_state) return HN_FAIL(err, HONE_E_ARG, "%zu steps back; %zu were made", n, m->n_state - 1);
    pthread_mutex_lock(&m->machine->mu);
    m->n_state -= n;
    const state *s = now(m);
    m->n_item = s->begin + s->n;
    pthread_mutex_unlock(&m->machine->mu);
    return HONE_OK;
}

/* Tokens that end a text may come, or may not. */
static void put_ends(const hn_matcher *m, bool may, uint64_t *bits, size_t n_word)
{
    for (int32_t i = 0; i < m->tree->n_end; i++) {
        uint32_t id = (uint32_t)m->tree->end_ids[i];
        if (id / 64 >= n_word) continue;
        uint64_t one = (uint64_t)1 << id % 64;
        bits[id / 64] = may ? bits[id / 64] | one : bits[id / 64] & ~one;
    }
}

hone_status hn_matcher_mask(hn_matcher *m, uint64_t *bits, size_t n_word, int64_t *n, hone_error *err)
{
    *n = 0;
    if (!m->tree) return HN_FAIL(err, HONE_E_ARG, "a matcher without a vocabulary has no masks");
    const state *s = now(m);
    memset(bits, 0, n_word * sizeof *bits);
    if (s->over) return HONE_OK;
    begin_work(m->machine);
    do hn_masks_of(m->machine, m->tree, items_of(m, s), s->n, bits, n_word);
    while (once_more(m->machine));
    hone_status st = end_work(m->machine, err);
    if (st != HONE_OK) return st;
    put_ends(m, s->end, bits, n_word);
    for (size_t i = 0; i < n_word; i++) *n += __builtin_popcountll(bits[i]);
    return HONE_OK;
}

/* Work that looks for the end. Not kept for all texts: what is known makes what is found. */
static bool begin_end(hn_matcher *m, hone_error *err)
{
    begin_work(m->machine); /* a sweep for another text looks at these ways */
    if (!m->ways) m->ways = hn_ways_new();
    m->machine->ways = m->ways;
    if (m->ways) return true;
    end_work(m->machine, NULL);
    HN_FAIL(err, HONE_E_NOMEM, "ways to the end of a text");
    return false;
}

/* ---- for finish.c ------------------------------------------------------------------------------------------------ */

hone_status hn_matcher_need(hn_matcher *m, uint32_t *bytes, uint32_t *ahead, hone_error *err)
{
    const state *s = now(m);
    if (!begin_end(m, err)) return HONE_E_NOMEM;
    hn_machine_rest(m->machine);
    do *bytes = hn_machine_need(m->machine, items_of(m, s), s->n);
    while (once_more(m->machine));
    if (s->end || s->over) *bytes = 0;
    *ahead = hn_machine_ahead(m->machine);
    return end_work(m->machine, err);
}

/* The longest tokens of short ways, or all tokens that leave no more than so many bytes to come. */
static hone_status mask_of_way(hn_matcher *m, const uint32_t *bytes, uint64_t *bits, size_t n_word, hone_error *err)
{
    const state *s = now(m);
    memset(bits, 0, n_word * sizeof *bits);
    if (!m->tree) return HN_FAIL(err, HONE_E_ARG, "a matcher without a vocabulary has no masks");
    bool only_ends = s->end && !bytes;
    hone_status st = HONE_OK;
    if (!s->over && !only_ends) {
        if (!begin_end(m, err)) return HONE_E_NOMEM;
        do {
            if (bytes) hn_machine_within(m->machine, m->tree, items_of(m, s), s->n, *bytes, bits, n_word);
            else hn_machine_finish(m->machine, m->tree, items_of(m, s), s->n, bits, n_word);
        } while (once_more(m->machine));
        st = end_work(m->machine, err);
    }
    put_ends(m, s->end && !s->over, bits, n_word);
    return st;
}

hone_status hn_matcher_near(hn_matcher *m, uint32_t bytes, uint64_t *bits, size_t n_word, hone_error *err)
{
    return mask_of_way(m, &bytes, bits, n_word, err);
}

hone_status hn_matcher_last(hn_matcher *m, uint64_t *bits, size_t n_word, hone_error *err)
{
    return mask_of_way(m, NULL, bits, n_word, err);
}

hone_status hn_matcher_by(hn_matcher *m, int32_t *id, hone_error *err)
{
    const state *s = now(m);
    *id = -1;
    if (!m->tree) return HN_FAIL(err, HONE_E_ARG, "a matcher without a vocabulary has no tokens");
    if (!begin_end(m, err)) return HONE_E_NOMEM;
    do *id = hn_machine_finish_by(m->machine, m->tree, items_of(m, s), s->n);
    while (once_more(m->machine));
    return end_work(m->machine, err);
}
