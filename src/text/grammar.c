/* The builder and its checks: nodes, rules, what can match at all, and where a rule begins with itself. */
#include "text/grammar.h"

#include "text/matcher.h"

#include <stdlib.h>

struct hone_grammar {
    atomic_int owners;
    hn_langs *lang;
    hn_gnode_data *node;
    uint32_t n_node, cap_node;
    uint32_t *kids;
    uint32_t n_kids, cap_kids;
    hn_grule *rule;
    uint32_t n_rule, cap_rule;
    hn_gnode root;
    hone_status failed;
    const char *why;
    char *notes;
    hn_machine *machine; /* what matchers share; made by the first */
};

/* ---- memory ------------------------------------------------------------------------------------- */

static void give_up(hn_grammar *g, hone_status st, const char *why)
{
    if (g->failed) return;
    g->failed = st;
    g->why = why;
}

/* Room for one more in an array of *n. */
static bool room(hn_grammar *g, void **p, uint32_t n, uint32_t *cap, size_t size, uint32_t most)
{
    if (g->failed) return false;
    if (n < *cap) return true;
    if (n >= most) {
        give_up(g, HONE_E_UNSUPPORTED, "it has more symbols than a grammar may have");
        return false;
    }
    uint32_t more = *cap * 2 + 32;
    void *q = realloc(*p, more * size);
    if (!q) {
        give_up(g, HONE_E_NOMEM, "out of memory");
        return false;
    }
    *p = q;
    *cap = more;
    return true;
}

hone_status hn_grammar_new(hn_grammar **out, hone_error *err)
{
    *out = NULL;
    hn_grammar *g = calloc(1, sizeof *g);
    if (!g) return HN_FAIL(err, HONE_E_NOMEM, "grammar");
    atomic_init(&g->owners, 1);
    hone_status st = HONE_OK;
    g->lang = hn_langs_new(HN_GRAMMAR_BYTES);
    void *node = NULL;
    if (!g->lang || !room(g, &node, 0, &g->cap_node, sizeof *g->node, HN_GRAMMAR_NODES)) {
        st = HN_FAIL(err, HONE_E_NOMEM, "grammar");
    } else {
        g->node = node;
        g->node[0] = (hn_gnode_data){ .kind = HN_G_IS_FAIL };
        g->node[1] = (hn_gnode_data){ .kind = HN_G_IS_EMPTY, .empty_ok = true, .alive = true };
        g->n_node = 2;
        hn_langs_allow(g->lang, HN_GRAMMAR_STEPS);
    }
    if (st != HONE_OK) hn_grammar_drop(g);
    else *out = g;
    return st;
}

void hn_grammar_hold(hn_grammar *g) { atomic_fetch_add(&g->owners, 1); }

void hn_grammar_drop(hn_grammar *g)
{
    if (!g || atomic_fetch_sub(&g->owners, 1) > 1) return;
    hn_machine_free(g->machine);
    hn_langs_free(g->lang);
    for (uint32_t i = 0; i < g->n_rule; i++) free(g->rule[i].name);
    free(g->rule);
    free(g->node);
    free(g->kids);
    free(g->notes);
    free(g);
}

hn_langs *hn_grammar_lang(hn_grammar *g) { return g->lang; }

hn_grammar_view hn_grammar_look(const hn_grammar *g)
{
    return (hn_grammar_view){
        .lang = g->lang, .node = g->node, .n_node = g->n_node, .kids = g->kids, .rule = g->rule, .root = g->root
    };
}

hn_machine *hn_grammar_machine(const hn_grammar *g) { return g->machine; }

hone_status hn_grammar_check(const hn_grammar *g, hone_error *err)
{
    hone_status st = hn_langs_check(g->lang, err);
    if (st != HONE_OK || !g->failed) return st;
    return HN_FAIL(err, g->failed, "grammar: %s", g->why);
}

void hn_grammar_note(hn_grammar *g, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    size_t old = g->notes ? strlen(g->notes) : 0, n = strlen(line);
    if (old > 1 << 16) return; /* enough was said */
    char *p = realloc(g->notes, old + n + 3);
    if (!p) {
        give_up(g, HONE_E_NOMEM, "out of memory");
        return;
    }
    if (old) memcpy(p + old, "; ", 2);
    memcpy(p + old + (old ? 2 : 0), line, n + 1);
    g->notes = p;
}

const char *hn_grammar_notes(const hn_grammar *g) { return g->notes ? g->notes : ""; }

/* ---- nodes ---------------------------------------------------------------------------------------- */

static hn_gnode add(hn_grammar *g, hn_gnode_data d)
{
    void *p = g->node;
    if (!room(g, &p, g->n_node, &g->cap_node, sizeof *g->node, HN_GRAMMAR_NODES)) return HN_G_FAIL;
    g->node = p;
    g->node[g->n_node] = d;
    return g->n_node++;
}

bool hn_g_is_lex(const hn_grammar *g, hn_gnode n, hn_lang *t)
{
    const hn_gnode_data *d = &g->node[n];
    *t = d->kind == HN_G_IS_EMPTY ? HN_LANG_EMPTY : d->a;
    return d->kind == HN_G_IS_EMPTY || (d->kind == HN_G_IS_LEX && !d->quoted);
}

hn_gnode hn_g_lex(hn_grammar *g, hn_lang t)
{
    if (t == HN_LANG_NONE) return HN_G_FAIL;
    return t == HN_LANG_EMPTY ? HN_G_EMPTY : add(g, (hn_gnode_data){ .kind = HN_G_IS_LEX, .a = t });
}

hn_gnode hn_g_string(hn_grammar *g, hn_lang t)
{
    return t == HN_LANG_NONE ? HN_G_FAIL : add(g, (hn_gnode_data){ .kind = HN_G_IS_LEX, .quoted = true, .a = t });
}

hn_gnode hn_g_text(hn_grammar *g, const char *utf8) { return hn_g_lex(g, hn_lang_text(g->lang, utf8, strlen(utf8))); }

hn_gnode hn_g_token(hn_grammar *g, int32_t id)
{
    return add(g, (hn_gnode_data){ .kind = HN_G_IS_TOKEN, .a = (uint32_t)id, .alive = true });
}

hn_gnode hn_g_seq(hn_grammar *g, hn_gnode a, hn_gnode b)
{
    hn_lang x, y;
    if (a == HN_G_FAIL || b == HN_G_FAIL) return HN_G_FAIL;
    if (a == HN_G_EMPTY) return b;
    if (b == HN_G_EMPTY) return a;
    if (hn_g_is_lex(g, a, &x)) {
        if (hn_g_is_lex(g, b, &y)) return hn_g_lex(g, hn_lang_cat(g->lang, x, y));
        const hn_gnode_data *d = &g->node[b];
        hn_gnode rest = d->b;
        if (d->kind == HN_G_IS_SEQ && hn_g_is_lex(g, d->a, &y)) /* two lexemes in a row are one */
            return hn_g_seq(g, hn_g_lex(g, hn_lang_cat(g->lang, x, y)), rest);
    }
    return add(g, (hn_gnode_data){ .kind = HN_G_IS_SEQ, .a = a, .b = b });
}

hn_gnode hn_g_alt(hn_grammar *g, const hn_gnode *n, size_t count)
{
    uint32_t at = g->n_kids;
    hn_lang *lex = malloc((count + 1) * sizeof *lex), t;
    size_t n_lex = 0;
    if (!lex) give_up(g, HONE_E_NOMEM, "out of memory");
    for (size_t i = 0; i < count && !g->failed; i++) {
        if (n[i] == HN_G_FAIL) continue;
        if (hn_g_is_lex(g, n[i], &t)) {
            lex[n_lex++] = t;
            continue;
        }
        void *p = g->kids;
        if (!room(g, &p, g->n_kids, &g->cap_kids, sizeof *g->kids, 4 * HN_GRAMMAR_NODES)) break;
        g->kids = p;
        g->kids[g->n_kids++] = n[i];
    }
    hn_gnode one = n_lex && !g->failed ? hn_g_lex(g, hn_lang_or_all(g->lang, lex, n_lex)) : HN_G_FAIL;
    free(lex);
    if (g->failed) return HN_G_FAIL;
    if (g->n_kids == at) return one;
    if (one != HN_G_FAIL) {
        void *p = g->kids;
        if (!room(g, &p, g->n_kids, &g->cap_kids, sizeof *g->kids, 4 * HN_GRAMMAR_NODES)) return HN_G_FAIL;
        g->kids = p;
        g->kids[g->n_kids++] = one;
    } else if (g->n_kids == at + 1) {
        return g->kids[--g->n_kids];
    }
    return add(g, (hn_gnode_data){ .kind = HN_G_IS_ALT, .a = at, .b = g->n_kids - at });
}

hn_gnode hn_g_rep(hn_grammar *g, hn_gnode a, uint32_t min, uint32_t max)
{
    hn_lang t;
    if (min > max) return HN_G_FAIL;
    if (max == 0 || a == HN_G_EMPTY) return HN_G_EMPTY;
    if (a == HN_G_FAIL) return min ? HN_G_FAIL : HN_G_EMPTY;
    if (min == 1 && max == 1) return a;
    if (hn_g_is_lex(g, a, &t)) return hn_g_lex(g, hn_lang_repeat(g->lang, t, min, max));
    return add(g, (hn_gnode_data){ .kind = HN_G_IS_REP, .a = a, .b = min, .c = max });
}

hn_gnode hn_g_rule(hn_grammar *g, uint32_t rule) { return add(g, (hn_gnode_data){ .kind = HN_G_IS_RULE, .a = rule }); }

uint32_t hn_g_new_rule(hn_grammar *g, const char *name, size_t len)
{
    void *p = g->rule;
    if (!room(g, &p, g->n_rule, &g->cap_rule, sizeof *g->rule, HN_GRAMMAR_NODES)) return 0;
    g->rule = p;
    char *copy = name ? strndup(name, len) : NULL;
    if (name && !copy) give_up(g, HONE_E_NOMEM, "out of memory");
    g->rule[g->n_rule] = (hn_grule){ .name = copy };
    return g->n_rule++;
}

void hn_g_set_rule(hn_grammar *g, uint32_t rule, hn_gnode body)
{
    if (rule < g->n_rule) g->rule[rule].body = body;
}

/* ---- checks: which nodes match something, and which the empty text ---------------------------------- */

/* One look at a node, from what is known of others so far. True: something was learnt. */
static bool learn(hn_grammar *g, hn_gnode_data *d)
{
    bool alive = d->alive, empty = d->empty_ok;
    const hn_gnode_data *n = g->node;
    switch ((hn_gkind)d->kind) {
    case HN_G_IS_FAIL:
    case HN_G_IS_EMPTY:
    case HN_G_IS_TOKEN: break;
    case HN_G_IS_LEX:
        if (!alive) d->alive = hn_lang_live(g->lang, d->a);
        d->empty_ok = !d->quoted && hn_lang_accepts(g->lang, d->a);
        break;
    case HN_G_IS_SEQ:
        d->alive = n[d->a].alive && n[d->b].alive;
        d->empty_ok = n[d->a].empty_ok && n[d->b].empty_ok;
        break;
    case HN_G_IS_ALT:
        for (uint32_t i = 0; i < d->b; i++) {
            d->alive = d->alive || n[g->kids[d->a + i]].alive;
            d->empty_ok = d->empty_ok || n[g->kids[d->a + i]].empty_ok;
        }
        break;
    case HN_G_IS_REP:
        d->alive = d->b == 0 || n[d->a].alive;
        d->empty_ok = d->b == 0 || n[d->a].empty_ok;
        break;
    case HN_G_IS_RULE:
        d->alive = n[g->rule[d->a].body].alive;
        d->empty_ok = n[g->rule[d->a].body].empty_ok;
        break;
    }
    return alive != d->alive || empty != d->empty_ok;
}

/* Nodes are made before those that hold them, but for rules; so few rounds are enough. */
static void learn_all(hn_grammar *g)
{
    bool more = true;
    for (int round = 0; more && !g->failed; round++) {
        more = false;
        for (uint32_t i = 0; i < g->n_node; i++) more = learn(g, &g->node[i]) || more;
        if (round == 1000) give_up(g, HONE_E_UNSUPPORTED, "its rules are nested too deeply");
    }
}

/* ---- left recursion: from a rule to itself by what stands first ---------------------------------------- */

typedef struct walk {
    hn_grammar *g;
    uint8_t *seen;  /* [rules] 1: on the way, 2: done */
    uint32_t found; /* a rule that begins with itself */
    bool bad;
    int depth;
} walk;

static void go_left(walk *w, hn_gnode at)
{
    enum { DEEPEST = 20000 };
    const hn_gnode_data *d = &w->g->node[at];
    if (w->bad || w->g->failed) return;
    if (++w->depth > DEEPEST) give_up(w->g, HONE_E_UNSUPPORTED, "its rules are nested too deeply");
    switch ((hn_gkind)d->kind) {
    case HN_G_IS_FAIL:
    case HN_G_IS_EMPTY:
    case HN_G_IS_TOKEN:
    case HN_G_IS_LEX: break;
    case HN_G_IS_SEQ:
        go_left(w, d->a);
        if (w->g->node[d->a].empty_ok) go_left(w, d->b);
        break;
    case HN_G_IS_ALT:
        for (uint32_t i = 0; i < d->b; i++) go_left(w, w->g->kids[d->a + i]);
        break;
    case HN_G_IS_REP: go_left(w, d->a); break;
    case HN_G_IS_RULE:
        if (w->seen[d->a] == 1) {
            w->bad = true;
            w->found = d->a;
        }
        if (w->seen[d->a] == 0) {
            w->seen[d->a] = 1;
            go_left(w, w->g->rule[d->a].body);
            w->seen[d->a] = 2;
        }
        break;
    }
    w->depth--;
}

static hone_status refuse_left_recursion(hn_grammar *g, hone_error *err)
{
    enum { EMPTY_ROUNDS = 64 };
    walk w = { .g = g, .seen = calloc(g->n_rule + 1u, 1) };
    if (!w.seen) return HN_FAIL(err, HONE_E_NOMEM, "grammar");
    go_left(&w, g->root);
    free(w.seen);
    if (w.bad) {
        const char *name = g->rule[w.found].name;
        return HN_FAIL(err, HONE_E_ARG,
                       "grammar: rule %s begins with itself (left recursion); put what it repeats behind: "
                       "list ::= item list | item, or item+",
                       name ? HN_ESC(name, strlen(name)) : "?");
    }
    for (uint32_t i = 0; i < g->n_node; i++) {
        const hn_gnode_data *d = &g->node[i];
        if (d->kind == HN_G_IS_REP && g->node[d->a].empty_ok && d->c != HN_LANG_ENDLESS && d->c > EMPTY_ROUNDS)
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "grammar: {%u,%u} repeats something that may be empty; expected at most %d times", d->b,
                           d->c, EMPTY_ROUNDS);
    }
    return hn_grammar_check(g, err);
}

hone_status hn_grammar_finish(hn_grammar *g, hn_gnode root, hone_error *err)
{
    g->root = root;
    hone_status st = hn_grammar_check(g, err);
    if (st != HONE_OK) return st;
    learn_all(g);
    if ((st = hn_grammar_check(g, err)) != HONE_OK) return st;
    if (!g->node[root].alive) return HN_FAIL(err, HONE_E_ARG, "grammar: no text matches it (it is unsatisfiable)");
    if ((st = refuse_left_recursion(g, err)) != HONE_OK) return st;
    st = hn_machine_new(&g->machine, g, err);
    return st;
}
