/* finish: how a text may be ended soon. What a state still needs is counted in bytes, of some short way to the end: of
 * each lexeme in progress a way is searched and kept, and of the rest of its stack what each node needs at least. A
 * count that was given stays, and every count has a next byte that leaves one less: who goes down by one at each byte
 * is at the end after so many. */
#include "text/machine.h"

#include <stdlib.h>

enum {
    FAR = 1 << 30,      /* bytes; as good as never */
    SEARCHED = 1 << 17, /* states of one search … */
    BEYOND = 8,         /* … and bytes that it goes on where it has found a way: a shorter one may be near */
    LONGEST = 1024,     /* bytes of a token on the way: longer ones are left out */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    WORK = 1 << 13, /* libFuzzer's build tries many inputs rather than one for long */
#else
    WORK = 1 << 23, /* bytes that are tried for one mask: behind them there is no short way, and the text is cut */
#endif
    MOST_AHEAD = 1024, /* bytes that one token may make necessary, as far as is looked after */
    RECENT = 512,
    TRIED = 64, /* tokens that are tried one by one, where there are no more */
    SLACK = 8   /* tokens left beyond those that are needed, where the end begins */
};

typedef struct hn_need {
    hn_lexeme at;
    uint32_t bytes, next; /* next: of the same slot, + 1 */
} hn_need;

struct hn_ways {   /* found for one text, as what is found depends on what was known */
    hn_need *kept; /* [n] of lexemes */
    uint32_t n, cap, *slot, n_slot;
    hn_need recent[RECENT]; /* the last of those that were asked for, by the hash */
};

struct hn_needs {
    uint32_t *node;      /* [n_node] bytes that a node needs at least on its way */
    struct hn_ways ways; /* found for them */
    uint32_t ahead;      /* hn_machine_ahead */
    uint32_t work;       /* done for this mask */
    bool hopeless;       /* knowing the nodes takes more */
};

static void free_ways(struct hn_ways *w)
{
    free(w->kept);
    free(w->slot);
}

struct hn_ways *hn_ways_new(void) { return calloc(1, sizeof(struct hn_ways)); }

void hn_ways_free(struct hn_ways *w)
{
    if (w) free_ways(w);
    free(w);
}

void hn_needs_free(struct hn_needs *s)
{
    if (!s) return;
    free(s->node);
    free_ways(&s->ways);
    free(s);
}

static void no_memory(hn_machine *m)
{
    if (m->failed) return;
    m->failed = HONE_E_NOMEM;
    m->why = "out of memory";
}

static uint32_t sum(uint32_t a, uint32_t b) { return a >= FAR - b ? FAR : a + b; }
static uint32_t times(uint32_t n, uint32_t a) { return (uint64_t)n * a >= FAR ? FAR : n * a; }
static bool same(hn_lexeme a, hn_lexeme b) { return a.term == b.term && a.part == b.part; }
static uint64_t hash_of(hn_lexeme x) { return hn_mix64((uint64_t)x.term << 32 | x.part); }

static bool tired(const hn_machine *m) { return m->needs->work > WORK; }

/* ---- lexemes ---------------------------------------------------------------------------------------------------- */

static const hn_need *find_in(const struct hn_ways *w, hn_lexeme x)
{
    uint32_t at = w && w->n_slot ? w->slot[hash_of(x) & (w->n_slot - 1)] : 0;
    for (; at; at = w->kept[at - 1].next)
        if (same(w->kept[at - 1].at, x)) return &w->kept[at - 1];
    return NULL;
}

static const hn_need *find(const hn_machine *m, hn_lexeme x)
{
    const hn_need *known = find_in(&m->needs->ways, x);
    return known ? known : find_in(m->ways, x);
}

static struct hn_ways *ways_of(hn_machine *m) { return m->ways ? m->ways : &m->needs->ways; }

static void put_slot(struct hn_ways *w, uint32_t i)
{
    uint32_t *to = &w->slot[hash_of(w->kept[i].at) & (w->n_slot - 1)];
    w->kept[i].next = *to;
    *to = i + 1;
}

static void keep(hn_machine *m, hn_lexeme x, uint32_t bytes)
{
    struct hn_ways *w = ways_of(m);
    if (find(m, x)) return;
    if (w->n == w->cap) {
        uint32_t cap = w->cap ? 2 * w->cap : 256;
        hn_need *kept = realloc(w->kept, cap * sizeof *kept);
        if (kept) w->kept = kept;
        uint32_t *slot = kept ? calloc(cap, sizeof *slot) : NULL;
        if (!slot) {
            no_memory(m);
            return;
        }
        free(w->slot);
        w->slot = slot;
        w->n_slot = w->cap = cap; /* a power of two */
        for (uint32_t i = 0; i < w->n; i++) put_slot(w, i);
    }
    w->kept[w->n] = (hn_need){ x, bytes, 0 };
    put_slot(w, w->n++);
}

void hn_ways_hold(const struct hn_ways *w, uint32_t *term)
{
    for (uint32_t i = 0; w && i < w->n; i++) term[w->kept[i].at.term] = 1;
}

void hn_ways_move(struct hn_ways *w, const uint32_t *term)
{
    if (!w || !w->n) return;
    memset(w->recent, 0, sizeof w->recent);
    memset(w->slot, 0, w->n_slot * sizeof *w->slot);
    for (uint32_t i = 0; i < w->n; i++) {
        w->kept[i].at.term = term[w->kept[i].at.term];
        put_slot(w, i);
    }
}

typedef struct seen { /* a state of a search */
    hn_lexeme at;
    uint32_t from, depth, next;
} seen;

typedef struct search {
    seen *state; /* [n], in the order of their depths */
    uint32_t n, cap, *slot, n_slot;
    uint32_t best, last; /* bytes of the shortest way so far; its last state that the search made */
    bool lost;
} search;

static void put_seen(search *s, uint32_t i)
{
    uint32_t *to = &s->slot[hash_of(s->state[i].at) & (s->n_slot - 1)];
    s->state[i].next = *to;
    *to = i + 1;
}

/* Room for twice as many states, and as many slots. */
static bool grow(search *s)
{
    seen *state = realloc(s->state, 2 * s->cap * sizeof *state);
    if (!state) return false;
    s->state = state;
    s->cap *= 2;
    uint32_t *slot = calloc(s->cap, sizeof *slot);
    if (!slot) return false;
    free(s->slot);
    s->slot = slot;
    s->n_slot = s->cap;
    for (uint32_t i = 0; i < s->n; i++) put_seen(s, i);
    return true;
}

static void visit(hn_machine *m, search *s, hn_lexeme x, uint32_t from, uint32_t depth)
{
    for (uint32_t at = s->slot[hash_of(x) & (s->n_slot - 1)]; at; at = s->state[at - 1].next)
        if (same(s->state[at - 1].at, x)) return;
    if (s->n == s->cap) {
        s->lost = s->cap == SEARCHED || !grow(s);
        if (s->lost && s->n < SEARCHED) no_memory(m);
        if (s->lost) return;
    }
    uint32_t i = s->n++;
    s->state[i] = (seen){ x, from, depth, 0 };
    put_seen(s, i);
    const hn_need *known = find(m, x);
    uint32_t rest = known ? known->bytes : hn_lexeme_ends(m->g.lang, x) ? 0 : FAR;
    if (sum(depth, rest) < s->best) s->best = depth + rest, s->last = i;
}

/* Bytes that are nothing but themselves. Where one of them leads on the others are not tried at first. */
static bool is_plain(unsigned b) { return b >= 0x20 && b < 0x7f && b != '\\'; }

static void expand(hn_machine *m, search *s, uint32_t i, bool all)
{
    const seen from = s->state[i];
    const hn_lang_state *state = hn_lexeme_closed(from.at) ? NULL : hn_lang_open(m->g.lang, from.at.term);
    bool some = false;
    for (int plain = 1; state && plain >= 0; plain--) {
        m->needs->work += 256;
        hn_lexeme last = from.at; /* many bytes lead to one state: it is looked up once */
        bool first = true;
        for (unsigned b = 0; b < 256; b++) {
            if (is_plain(b) != (plain == 1)) continue;
            hn_lexeme x = { .term = from.at.term, .part = from.at.part };
            if (!hn_lexeme_step(m->g.lang, state, &x, (uint8_t)b) || (!first && same(x, last))) continue;
            visit(m, s, x, i, from.depth + 1);
            last = x;
            first = false;
            some = true;
        }
        if (some && !all) return;
    }
}

/* Breadth first, by plain bytes where there are any or by all: the way that was found is kept. */
static bool search_from(hn_machine *m, hn_lexeme x, bool all)
{
    search s = { .cap = 64, .n_slot = 64, .best = FAR };
    s.state = calloc(s.cap, sizeof *s.state);
    s.slot = calloc(s.n_slot, sizeof *s.slot);
    if (s.state && s.slot) visit(m, &s, x, 0, 0);
    else no_memory(m);
    for (uint32_t i = 0, until = FAR; i < s.n && !s.lost && s.state[i].depth + 1 < s.best; i++) {
        if (s.state[i].depth > until || tired(m)) break;
        if (find(m, s.state[i].at)) continue; /* its way is its way: a shorter one would leave two counts */
        expand(m, &s, i, all);
        if (s.best < FAR && until == FAR) until = s.state[i].depth + BEYOND;
    }
    bool found = s.n && s.best < FAR;
    bool whole = !m->failed && !hn_langs_failed(m->g.lang); /* else the search is made again, with room */
    for (uint32_t i = s.last; found && whole; i = s.state[i].from) {
        keep(m, s.state[i].at, s.best - s.state[i].depth);
        if (i == 0) break;
    }
    free(s.state);
    free(s.slot);
    return found;
}

/* Bytes to the end of a lexeme; FAR: no way was found. */
static uint32_t lexeme_need(hn_machine *m, hn_lexeme x)
{
    hn_need *recent = &ways_of(m)->recent[hash_of(x) % RECENT];
    if (recent->next && same(recent->at, x)) return recent->bytes;
    const hn_need *known = find(m, x);
    if (!known && !tired(m) && !search_from(m, x, false) && !search_from(m, x, true) && !tired(m) &&
        !hn_langs_failed(m->g.lang))
        keep(m, x, FAR);
    known = find(m, x);
    if (known) *recent = (hn_need){ x, known->bytes, 1 };
    return known ? known->bytes : FAR;
}

/* ---- nodes and stacks ------------------------------------------------------------------------------------------- */

static uint32_t node_need(const hn_machine *m, const hn_gnode_data *d, const uint32_t *lex)
{
    const uint32_t *need = m->needs->node;
    uint32_t least = FAR;
    switch ((hn_gkind)d->kind) {
    case HN_G_IS_FAIL: return FAR;
    case HN_G_IS_EMPTY: return 0;
    case HN_G_IS_LEX: return *lex;
    case HN_G_IS_TOKEN: return 1;
    case HN_G_IS_SEQ: return sum(need[d->a], need[d->b]);
    case HN_G_IS_ALT:
        for (uint32_t i = 0; i < d->b; i++)
            if (need[m->g.kids[d->a + i]] < least) least = need[m->g.kids[d->a + i]];
        return least;
    case HN_G_IS_REP: return times(d->b, need[d->a]);
    case HN_G_IS_RULE: return need[m->g.rule[d->a].body];
    }
    return FAR;
}

/* What one token may make necessary: what a repetition goes on with, the dearest way where there are several, each
 * twice as a token may open two of them, and an escape in a string. */
static void look_ahead(hn_machine *m)
{
    const uint32_t *need = m->needs->node;
    uint32_t most = 0;
    for (uint32_t i = 0; i < m->g.n_node; i++) {
        const hn_gnode_data *d = &m->g.node[i];
        if (d->kind == HN_G_IS_REP && d->c > d->b && need[d->a] < FAR && need[d->a] > most) most = need[d->a];
        for (uint32_t k = 0; d->kind == HN_G_IS_ALT && k < d->b; k++) {
            uint32_t kid = need[m->g.kids[d->a + k]];
            if (kid < FAR && kid - need[i] > most) most = kid - need[i];
        }
    }
    m->needs->ahead = most < MOST_AHEAD / 2 ? 2 * most + 16 : MOST_AHEAD;
}

/* Of every node, once: from above until nothing gets less. */
static bool know_nodes(hn_machine *m)
{
    uint32_t n = m->g.n_node;
    struct hn_ways *own = m->ways;
    if (m->needs) return true;
    m->ways = NULL; /* these are of the grammar, the same whoever asks first */
    m->needs = calloc(1, sizeof *m->needs);
    uint32_t *lex = calloc(n ? n : 1, sizeof *lex);
    if (m->needs) m->needs->node = malloc((n ? n : 1) * sizeof *m->needs->node);
    if (!lex || !m->needs || !m->needs->node) {
        no_memory(m);
        free(lex);
        hn_needs_free(m->needs);
        m->needs = NULL;
        m->ways = own;
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const hn_gnode_data *d = &m->g.node[i];
        m->needs->node[i] = FAR;
        if (d->kind == HN_G_IS_LEX) lex[i] = d->empty_ok ? 0 : lexeme_need(m, hn_lexeme_begin(d->a, d->quoted));
    }
    for (bool less = true; less;) {
        less = false;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t now = node_need(m, &m->g.node[i], &lex[i]);
            if (now < m->needs->node[i]) m->needs->node[i] = now, less = true;
        }
    }
    look_ahead(m);
    m->needs->hopeless = tired(m);
    m->needs->work = 0;
    m->ways = own;
    free(lex);
    if (!hn_langs_failed(m->g.lang)) return true;
    hn_needs_free(m->needs);
    m->needs = NULL;
    return false;
}

/* Of a whole stack. */
static uint32_t stack_need(const hn_machine *m, uint32_t cell)
{
    uint32_t need = 0;
    for (; cell && need < FAR; cell = m->cell[cell].parent) {
        const hn_cell *c = &m->cell[cell];
        const hn_gnode_data *d = &m->g.node[c->node];
        need = sum(need, d->kind == HN_G_IS_REP ? times(c->min, m->needs->node[d->a]) : m->needs->node[c->node]);
    }
    return need;
}

static uint32_t item_need(hn_machine *m, hn_item x)
{
    return sum(hn_item_is_token(&x) ? 1 : lexeme_need(m, x.at), stack_need(m, x.cell));
}

uint32_t hn_machine_need(hn_machine *m, const hn_item *item, uint32_t n)
{
    uint32_t least = FAR;
    if (!know_nodes(m) || m->needs->hopeless) return FAR;
    for (uint32_t i = 0; i < n && !m->failed; i++) {
        uint32_t need = item_need(m, item[i]);
        if (need < least) least = need;
    }
    return least;
}

/* ---- tokens on the way ------------------------------------------------------------------------------------------ */

typedef struct way {
    hn_machine *m;
    const hn_token_tree *t;
    uint64_t *bits;
    size_t n_word;
    uint32_t need, longest; /* bytes to the end, and of the longest token so far, whose kin alone are in bits */
    bool near;              /* all tokens behind which no more than `need` is needed, of any length */
    bool one;               /* one long token will do: the first that is found on its way */
    int32_t found;          /* that one; -1: none yet */
} way;

static void take(way *w, int32_t id, uint32_t len)
{
    if (id >= w->t->n_vocab) return; /* another vocabulary was meant */
    if (w->one) {
        if (len > w->longest || w->found < 0) w->found = id, w->longest = len;
        return;
    }
    if ((size_t)id / 64 >= w->n_word || (!w->near && len < w->longest)) return;
    if (!w->near && len > w->longest) memset(w->bits, 0, w->n_word * sizeof *w->bits);
    w->longest = len;
    w->bits[id / 64] |= (uint64_t)1 << (id & 63);
}

/* Tokens below a node of the tree, of lexeme x: each byte leaves one less, or, near, at most w->need are left behind
 * the token. One: along the first branch with any. */
static void go(way *w, uint32_t node, hn_item x)
{
    const hn_token_tree *t = w->t;
    hn_langs *l = w->m->g.lang;
    uint32_t behind = stack_need(w->m, x.cell);
    const hn_lang_state *s = hn_lexeme_closed(x.at) ? NULL : hn_lang_open(l, x.at.term);
    for (uint32_t i = node + 1; s && i < t->end[node] && !w->m->failed && !tired(w->m); i = t->end[i]) {
        hn_item y = x;
        uint32_t depth = t->depth[i], rest = 0;
        bool ends_token = t->first[i] < t->first[i + 1];
        w->m->needs->work++;
        if (depth > LONGEST || (!w->near && depth > w->need) || !hn_lexeme_step(l, s, &y.at, t->byte[i])) continue;
        if (!w->near || ends_token) rest = sum(lexeme_need(w->m, y.at), behind);
        if (!w->near && rest != w->need - depth) continue;
        for (uint32_t k = t->first[i]; k < t->first[i + 1] && rest <= w->need; k++) take(w, t->ids[k], depth);
        if (t->end[i] != i + 1) {
            go(w, i, y);
            const hn_opened *o = hn_lexeme_ends(l, y.at) ? hn_machine_open(w->m, y.cell) : NULL;
            for (uint32_t k = 0; o && k < o->n; k++)
                if (!hn_item_is_token(&o->item[k]) && (w->near || item_need(w->m, o->item[k]) == w->need - depth))
                    go(w, i, o->item[k]);
        }
        if (w->one && w->found >= 0) return;
    }
}

static void go_from(way *w, const hn_item *item, uint32_t n)
{
    w->need = hn_machine_need(w->m, item, n);
    for (uint32_t i = 0; i < n && !w->m->failed && w->need < FAR; i++) {
        if (item_need(w->m, item[i]) != w->need) continue;
        if (hn_item_is_token(&item[i])) take(w, (int32_t)item[i].at.term, 1);
        else go(w, 0, item[i]);
    }
}

void hn_machine_finish(hn_machine *m, const hn_token_tree *t, const hn_item *item, uint32_t n, uint64_t *bits,
                       size_t n_word)
{
    way w = { .m = m, .t = t, .bits = bits, .n_word = n_word };
    memset(bits, 0, n_word * sizeof *bits);
    go_from(&w, item, n);
}

int32_t hn_machine_finish_by(hn_machine *m, const hn_token_tree *t, const hn_item *item, uint32_t n)
{
    way w = { .m = m, .t = t, .one = true, .found = -1 };
    go_from(&w, item, n);
    return w.found;
}

void hn_machine_within(hn_machine *m, const hn_token_tree *t, const hn_item *item, uint32_t n, uint32_t need,
                       uint64_t *bits, size_t n_word)
{
    way w = { .m = m, .t = t, .bits = bits, .n_word = n_word, .need = need, .near = true };
    memset(bits, 0, n_word * sizeof *bits);
    if (!know_nodes(m)) return;
    for (uint32_t i = 0; i < n && !m->failed; i++) {
        if (!hn_item_is_token(&item[i])) go(&w, 0, item[i]);
        else if (stack_need(m, item[i].cell) <= need) take(&w, (int32_t)item[i].at.term, 1);
    }
}

void hn_machine_rest(hn_machine *m)
{
    if (m->needs) m->needs->work = 0;
}

uint32_t hn_machine_ahead(const hn_machine *m) { return m->needs ? m->needs->ahead : 0; }

/* ---- texts ------------------------------------------------------------------------------------------------------ */

/* Tokens that end the text, each a long one on a short way; more than most: most + 1. FAR: there is no such way. */
static hone_status count_tokens(hn_matcher *m, uint32_t most, uint32_t *n, hone_error *err)
{
    hone_status st = HONE_OK;
    int32_t id;
    bool ok = true;
    *n = 0;
    while (ok && *n <= most && !hn_matcher_ends(m) && (st = hn_matcher_by(m, &id, err)) == HONE_OK) {
        ok = id >= 0;
        if (ok) st = hn_matcher_token(m, id, &ok, err);
        if (st != HONE_OK) break;
        *n += ok;
    }
    hone_status back = hn_matcher_back(m, *n, err);
    if (!ok) *n = FAR;
    return st == HONE_OK ? back : st;
}

static int64_t count_bits(const uint64_t *bits, size_t n_word)
{
    int64_t n = 0;
    for (size_t i = 0; i < n_word; i++) n += __builtin_popcountll(bits[i]);
    return n;
}

/* Leaves out tokens behind which more than `left` tokens are needed: a way as short in bytes may take more. */
static hone_status try_each(hn_matcher *m, int64_t left, uint64_t *bits, size_t n_word, hone_error *err)
{
    for (size_t i = 0; i < n_word; i++)
        for (uint64_t rest = bits[i]; rest; rest &= rest - 1) {
            uint32_t tokens = 0;
            bool ok;
            hone_status st = hn_matcher_token(m, (int32_t)(i * 64) + __builtin_ctzll(rest), &ok, err);
            if (st != HONE_OK) return st;
            if (ok) {
                st = count_tokens(m, (uint32_t)left, &tokens, err);
                hone_status back = hn_matcher_back(m, 1, err);
                if (st != HONE_OK || back != HONE_OK) return st != HONE_OK ? st : back;
            }
            if ((int64_t)tokens > left) bits[i] &= ~(rest & -rest);
        }
    return HONE_OK;
}

hone_status hn_matcher_mask_within(hn_matcher *m, int64_t left, uint64_t *bits, size_t n_word, int64_t *n,
                                   hone_error *err)
{
    uint32_t need, ahead, tokens;
    hone_status st = left < 0 ? HONE_OK : hn_matcher_need(m, &need, &ahead, err);
    if (st != HONE_OK) return st;
    if (left < 0 || need == FAR || left > (int64_t)need + SLACK + ahead)
        return hn_matcher_mask(m, bits, n_word, n, err);

    tokens = need; /* at most: a token has a byte at least */
    if (need && left <= (int64_t)need + SLACK) st = count_tokens(m, (uint32_t)left, &tokens, err);
    if (st != HONE_OK) return st;
    if (tokens == FAR) return hn_matcher_mask(m, bits, n_word, n, err);

    /* what is begun by the next token must fit, too */
    int64_t room = left - tokens - SLACK;
    st = room > 0 ? hn_matcher_near(m, (uint32_t)(need + room - 1), bits, n_word, err) : HONE_OK;
    int64_t most = need + room - 1, some = st == HONE_OK && room > 0 ? count_bits(bits, n_word) : 0;
    if (some && some <= TRIED && most >= left) st = try_each(m, left - 1, bits, n_word, err);
    if (st == HONE_OK && (room <= 0 || !count_bits(bits, n_word))) st = hn_matcher_last(m, bits, n_word, err);
    if (st == HONE_OK && !(*n = count_bits(bits, n_word))) return hn_matcher_mask(m, bits, n_word, n, err);
    return st;
}
