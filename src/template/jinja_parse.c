/* jinja_parse: tokens into a tree. The grammar and its precedences are those of Jinja2's
 * parser. Owns hn_jinja; refuses to know what anything means. */
#include "template/jinja_priv.h"

#include "base/guard.h"

#include <stdlib.h>

enum { MAX_SOURCE = 16 << 20, MAX_NESTING = 200 };

typedef struct parser {
    hn_jcore c; /* first */
    hn_jinja *t;
    hn_jtok *tok;
    size_t n_tok, i;
    size_t cap_sym, n_hash;
    uint32_t *hash;  /* name -> sym + 1 */
    uint32_t loops;  /* enclosing for statements within this macro */
    hn_jnode *macro; /* innermost */
} parser;

#define FAIL(p, ...) hn_jj_fail(&(p)->c, HONE_E_FORMAT, (p)->tok[(p)->i].pos, __VA_ARGS__)

static const hn_jtok *cur(const parser *p) { return &p->tok[p->i]; }
static const hn_jtok *peek(const parser *p) { return &p->tok[p->i + 1 < p->n_tok ? p->i + 1 : p->i]; }
static void next(parser *p)
{
    if (p->i + 1 < p->n_tok) p->i++;
}
static bool is_op(const hn_jtok *t, int op) { return t->kind == HN_JT_OP && t->op == op; }
static bool is_name(const hn_jtok *t, const char *name) { return t->kind == HN_JT_NAME && hn_js_is(t->v.u.s, name); }
static bool take_op(parser *p, int op)
{
    bool y = is_op(cur(p), op);
    if (y) next(p);
    return y;
}
static bool take_name(parser *p, const char *name)
{
    bool y = is_name(cur(p), name);
    if (y) next(p);
    return y;
}

/* The current token for a message. */
static const char *seen(const parser *p)
{
    static _Thread_local char buf[200];
    const hn_jtok *t = cur(p);
    switch (t->kind) {
    case HN_JT_EOF: return "end of template";
    case HN_JT_BLOCK_END: return "end of statement block";
    case HN_JT_VAR_END: return "end of print statement";
    case HN_JT_TEXT: return "template data";
    default: snprintf(buf, sizeof buf, "'%s'", HN_ESC(p->c.src + t->pos, t->len)); return buf;
    }
}

static void expect_op(parser *p, int op)
{
    if (!take_op(p, op)) FAIL(p, "expected token '%c', got %s", op, seen(p));
}

static void end_block(parser *p)
{
    if (cur(p)->kind != HN_JT_BLOCK_END) FAIL(p, "expected end of statement block, got %s", seen(p));
    next(p);
}

static void enter(parser *p)
{
    hn_jj_enter(&p->c, cur(p)->pos);
    if (p->c.depth > MAX_NESTING) FAIL(p, "nested deeper than %d levels", MAX_NESTING);
}
static void leave(parser *p) { p->c.depth--; }

static hn_jnode *node(parser *p, hn_jnode_kind kind, uint32_t pos)
{
    hn_jnode *n = hn_jj_alloc(&p->c, sizeof *n);
    n->kind = (uint8_t)kind;
    n->pos = pos;
    return n;
}

static void add(parser *p, hn_jnode *to, size_t *cap, hn_jnode *x)
{
    to->list = hn_jj_grow(&p->c, to->list, to->n, cap, sizeof *to->list);
    to->list[to->n++] = x;
}

static uint32_t symbol(parser *p, const hn_jstr *name)
{
    hn_jinja *t = p->t;
    if ((size_t)t->n_sym * 2 >= p->n_hash) {
        size_t n = p->n_hash ? p->n_hash * 2 : 64;
        p->hash = hn_jj_array(&p->c, n, sizeof *p->hash);
        p->n_hash = n;
        for (uint32_t s = 0; s < t->n_sym; s++) {
            size_t h = hn_mix64(hn_fnv1a(HN_FNV_INIT, t->syms[s]->p, t->syms[s]->len)) & (n - 1);
            while (p->hash[h]) h = (h + 1) & (n - 1);
            p->hash[h] = s + 1;
        }
    }
    size_t h = hn_mix64(hn_fnv1a(HN_FNV_INIT, name->p, name->len)) & (p->n_hash - 1);
    for (; p->hash[h]; h = (h + 1) & (p->n_hash - 1))
        if (hn_js_eq(t->syms[p->hash[h] - 1], name)) return p->hash[h] - 1;
    t->syms = hn_jj_grow(&p->c, t->syms, t->n_sym, &p->cap_sym, sizeof *t->syms);
    t->syms[t->n_sym] = name;
    p->hash[h] = t->n_sym + 1;
    return t->n_sym++;
}

static const hn_jstr *take_ident(parser *p)
{
    if (cur(p)->kind != HN_JT_NAME) FAIL(p, "expected a name, got %s", seen(p));
    const hn_jstr *s = cur(p)->v.u.s;
    next(p);
    return s;
}

/* ---- expressions ------------------------------------------------------------------------------------- */

static hn_jnode *expression(parser *p);
static hn_jnode *or_(parser *p);
static hn_jnode *unary(parser *p, bool with_filter);
static hn_jnode *postfix(parser *p, hn_jnode *a);

static hn_jnode *name_node(parser *p, const hn_jstr *s, uint32_t pos)
{
    hn_jnode *n = node(p, HN_JN_NAME, pos);
    n->sym = symbol(p, s);
    if (p->macro) {
        if (hn_js_is(s, "varargs")) p->macro->flag |= 1;
        if (hn_js_is(s, "kwargs")) p->macro->flag |= 2;
        if (hn_js_is(s, "caller")) p->macro->flag |= 4;
    }
    return n;
}

static hn_jnode *constant(parser *p, hn_jval v, uint32_t pos)
{
    hn_jnode *n = node(p, HN_JN_CONST, pos);
    n->v = v;
    return n;
}

/* Expressions up to the closing bracket, which is taken. */
static hn_jnode *sequence(parser *p, hn_jnode_kind kind, int close, uint32_t pos)
{
    hn_jnode *n = node(p, kind, pos);
    size_t cap = 0;
    while (!take_op(p, close)) {
        if (n->n && !take_op(p, ',')) FAIL(p, "expected token ',', got %s", seen(p));
        if (take_op(p, close)) break;
        add(p, n, &cap, expression(p));
    }
    return n;
}

static hn_jnode *parenthesis(parser *p)
{
    uint32_t pos = cur(p)->pos;
    next(p);
    if (take_op(p, ')')) return node(p, HN_JN_TUPLE, pos);
    hn_jnode *first = expression(p);
    if (take_op(p, ')')) return first;
    if (!is_op(cur(p), ',')) FAIL(p, "expected token ')', got %s", seen(p));
    hn_jnode *n = node(p, HN_JN_TUPLE, pos);
    size_t cap = 0;
    add(p, n, &cap, first);
    while (!take_op(p, ')')) {
        expect_op(p, ',');
        if (take_op(p, ')')) break;
        add(p, n, &cap, expression(p));
    }
    return n;
}

static hn_jnode *dict(parser *p)
{
    hn_jnode *n = node(p, HN_JN_DICT, cur(p)->pos);
    size_t cap = 0;
    next(p);
    while (!take_op(p, '}')) {
        if (n->n) {
            expect_op(p, ',');
            if (take_op(p, '}')) break;
        }
        add(p, n, &cap, expression(p));
        expect_op(p, ':');
        add(p, n, &cap, expression(p));
    }
    return n;
}

static hn_jnode *primary(parser *p)
{
    const hn_jtok *t = cur(p);
    uint32_t pos = t->pos;
    if (t->kind == HN_JT_NAME) {
        next(p);
        if (is_name(t, "true") || is_name(t, "True")) return constant(p, HN_JBOOL(true), pos);
        if (is_name(t, "false") || is_name(t, "False")) return constant(p, HN_JBOOL(false), pos);
        if (is_name(t, "none") || is_name(t, "None")) return constant(p, HN_JNONE, pos);
        return name_node(p, t->v.u.s, pos);
    }
    if (t->kind == HN_JT_STR) { /* adjacent ones are one */
        size_t n = 0, k = p->i;
        for (; p->tok[k].kind == HN_JT_STR; k++) n += p->tok[k].v.u.s->len;
        if (k == p->i + 1) {
            next(p);
            return constant(p, t->v, pos);
        }
        char *s = hn_jj_alloc(&p->c, n);
        size_t at = 0, chars = 0;
        for (; p->i < k; next(p)) {
            const hn_jstr *x = cur(p)->v.u.s;
            memcpy(s + at, x->p, x->len);
            at += x->len;
            chars += x->n_char;
        }
        hn_jstr *all = hn_js_view(&p->c, s, n, false);
        all->n_char = chars;
        return constant(p, HN_JSTR(all), pos);
    }
    if (t->kind == HN_JT_INT || t->kind == HN_JT_FLOAT) {
        next(p);
        return constant(p, t->v, pos);
    }
    if (is_op(t, '(')) return parenthesis(p);
    if (is_op(t, '[')) {
        next(p);
        return sequence(p, HN_JN_LIST, ']', pos);
    }
    if (is_op(t, '{')) return dict(p);
    FAIL(p, "Expected an expression, got %s", seen(p));
}

/* Arguments behind '(', which is taken with its ')'. */
static void call_args(parser *p, hn_jnode *n)
{
    size_t cap = n->n;
    bool keyword = false;
    expect_op(p, '(');
    for (bool first = true; !take_op(p, ')'); first = false) {
        if (!first) {
            expect_op(p, ',');
            if (take_op(p, ')')) break;
        }
        hn_jnode *a = node(p, HN_JN_ARG, cur(p)->pos);
        if (take_op(p, '*')) {
            a->op = '*';
        } else if (take_op(p, HN_JOP_POW)) {
            a->op = 'd';
        } else if (cur(p)->kind == HN_JT_NAME && is_op(peek(p), '=')) {
            a->op = 'k';
            a->s = take_ident(p);
            next(p);
        } else if (keyword) {
            FAIL(p, "a positional argument after keyword arguments");
        }
        keyword |= a->op == 'k' || a->op == 'd';
        a->a = expression(p);
        add(p, n, &cap, a);
    }
}

static hn_jnode *filter(parser *p, hn_jnode *a)
{
    hn_jnode *n = node(p, HN_JN_FILTER, cur(p)->pos);
    n->a = a;
    n->s = take_ident(p);
    if (is_op(cur(p), '.')) FAIL(p, "filters with a dot in their name are not supported");
    if (is_op(cur(p), '(')) call_args(p, n);
    return n;
}

static hn_jnode *test(parser *p, hn_jnode *a)
{
    hn_jnode *n = node(p, HN_JN_TEST, cur(p)->pos);
    n->a = a;
    n->flag = take_name(p, "not");
    n->s = take_ident(p);
    const hn_jtok *t = cur(p);
    if (is_op(t, '(')) {
        call_args(p, n);
        return n;
    }
    bool word = t->kind == HN_JT_NAME && !is_name(t, "else") && !is_name(t, "or") && !is_name(t, "and");
    if (is_name(t, "is")) FAIL(p, "You cannot chain multiple tests with is");
    if (!word && t->kind != HN_JT_STR && t->kind != HN_JT_INT && t->kind != HN_JT_FLOAT && !is_op(t, '[') &&
        !is_op(t, '{'))
        return n;
    hn_jnode *arg = node(p, HN_JN_ARG, t->pos);
    size_t cap = 0;
    arg->a = postfix(p, primary(p));
    add(p, n, &cap, arg);
    return n;
}

static hn_jnode *subscript(parser *p, hn_jnode *a)
{
    hn_jnode *n = node(p, HN_JN_INDEX, cur(p)->pos);
    n->a = a;
    next(p);
    if (is_op(cur(p), ']')) n->b = node(p, HN_JN_TUPLE, cur(p)->pos); /* a[] is a[()] */
    else if (!is_op(cur(p), ':')) n->b = expression(p);
    if (is_op(cur(p), ':')) {
        n->kind = HN_JN_SLICE;
        next(p);
        if (!is_op(cur(p), ':') && !is_op(cur(p), ']')) n->c = expression(p);
        if (take_op(p, ':') && !is_op(cur(p), ']')) n->d = expression(p);
    } else if (is_op(cur(p), ',')) {
        hn_jnode *key = node(p, HN_JN_TUPLE, n->b->pos);
        size_t cap = 0;
        add(p, key, &cap, n->b);
        while (take_op(p, ','))
            if (!is_op(cur(p), ']')) add(p, key, &cap, expression(p));
        n->b = key;
    }
    expect_op(p, ']');
    return n;
}

static hn_jnode *call(parser *p, hn_jnode *a)
{
    hn_jnode *n = node(p, HN_JN_CALL, a->pos);
    n->a = a;
    call_args(p, n);
    return n;
}

static hn_jnode *postfix(parser *p, hn_jnode *a)
{
    for (;;) {
        if (is_op(cur(p), '.')) {
            hn_jnode *n = node(p, HN_JN_ATTR, cur(p)->pos);
            next(p);
            n->a = a;
            if (cur(p)->kind == HN_JT_INT) { /* x.0 */
                n->kind = HN_JN_INDEX;
                n->b = constant(p, cur(p)->v, cur(p)->pos);
                next(p);
            } else {
                n->s = take_ident(p);
            }
            a = n;
        } else if (is_op(cur(p), '[')) {
            a = subscript(p, a);
        } else if (is_op(cur(p), '(')) {
            a = call(p, a);
        } else {
            return a;
        }
    }
}

static hn_jnode *unary(parser *p, bool with_filter)
{
    hn_jnode *a;
    const hn_jtok *t = cur(p);
    if (is_op(t, '-') || is_op(t, '+')) {
        enter(p);
        next(p);
        a = node(p, is_op(t, '-') ? HN_JN_NEG : HN_JN_POS, t->pos);
        a->a = unary(p, false);
        leave(p);
    } else {
        a = primary(p);
    }
    a = postfix(p, a);
    while (with_filter) {
        if (take_op(p, '|')) a = filter(p, a);
        else if (take_name(p, "is")) a = test(p, a);
        else if (is_op(cur(p), '(')) a = call(p, a);
        else break;
    }
    return a;
}

static hn_jnode *binary(parser *p, hn_jnode_kind kind, int op, uint32_t pos, hn_jnode *a, hn_jnode *b)
{
    hn_jnode *n = node(p, kind, pos);
    n->op = op;
    n->a = a;
    n->b = b;
    return n;
}

static hn_jnode *power(parser *p)
{
    hn_jnode *a = unary(p, true);
    while (is_op(cur(p), HN_JOP_POW)) {
        uint32_t pos = cur(p)->pos;
        next(p);
        a = binary(p, HN_JN_BIN, HN_JOP_POW, pos, a, unary(p, true));
    }
    return a;
}

static hn_jnode *product(parser *p)
{
    hn_jnode *a = power(p);
    for (const hn_jtok *t = cur(p); is_op(t, '*') || is_op(t, '/') || is_op(t, '%') || is_op(t, HN_JOP_FLOORDIV);
         t = cur(p)) {
        next(p);
        a = binary(p, HN_JN_BIN, t->op, t->pos, a, power(p));
    }
    return a;
}

static hn_jnode *concat(parser *p)
{
    hn_jnode *a = product(p);
    if (!is_op(cur(p), '~')) return a;
    hn_jnode *n = node(p, HN_JN_CONCAT, cur(p)->pos);
    size_t cap = 0;
    add(p, n, &cap, a);
    while (take_op(p, '~')) add(p, n, &cap, product(p));
    return n;
}

static hn_jnode *sum(parser *p)
{
    hn_jnode *a = concat(p);
    for (const hn_jtok *t = cur(p); is_op(t, '+') || is_op(t, '-'); t = cur(p)) {
        next(p);
        a = binary(p, HN_JN_BIN, t->op, t->pos, a, concat(p));
    }
    return a;
}

static hn_jnode *comparison(parser *p)
{
    hn_jnode *a = sum(p), *n = NULL;
    size_t cap = 0;
    for (;;) {
        const hn_jtok *t = cur(p);
        int op = 0;
        if (t->kind == HN_JT_OP && (t->op == HN_JOP_EQ || t->op == HN_JOP_NE || t->op == HN_JOP_LE ||
                                    t->op == HN_JOP_GE || t->op == '<' || t->op == '>')) {
            op = t->op;
        } else if (is_name(t, "in")) {
            op = HN_JOP_IN;
        } else if (is_name(t, "not") && is_name(peek(p), "in")) {
            op = HN_JOP_NOTIN;
            next(p);
        } else {
            return n ? n : a;
        }
        next(p);
        if (!n) {
            n = node(p, HN_JN_CMP, t->pos);
            n->a = a;
        }
        hn_jnode *arg = node(p, HN_JN_ARG, t->pos);
        arg->op = op;
        arg->a = sum(p);
        add(p, n, &cap, arg);
    }
}

static hn_jnode *not_(parser *p)
{
    if (!is_name(cur(p), "not")) return comparison(p);
    enter(p);
    hn_jnode *n = node(p, HN_JN_NOT, cur(p)->pos);
    next(p);
    n->a = not_(p);
    leave(p);
    return n;
}

static hn_jnode *and_(parser *p)
{
    hn_jnode *a = not_(p);
    while (is_name(cur(p), "and")) {
        uint32_t pos = cur(p)->pos;
        next(p);
        a = binary(p, HN_JN_AND, 0, pos, a, not_(p));
    }
    return a;
}

static hn_jnode *or_(parser *p)
{
    enter(p);
    hn_jnode *a = and_(p);
    while (is_name(cur(p), "or")) {
        uint32_t pos = cur(p)->pos;
        next(p);
        a = binary(p, HN_JN_OR, 0, pos, a, and_(p));
    }
    leave(p);
    return a;
}

static hn_jnode *expression(parser *p)
{
    enter(p);
    hn_jnode *a = or_(p);
    while (is_name(cur(p), "if")) {
        hn_jnode *n = node(p, HN_JN_COND, cur(p)->pos);
        next(p);
        n->b = a;
        n->a = or_(p);
        if (take_name(p, "else")) n->c = expression(p);
        a = n;
    }
    leave(p);
    return a;
}

/* One expression, or a tuple without parentheses. */
static hn_jnode *tuple(parser *p, bool with_cond)
{
    uint32_t pos = cur(p)->pos;
    hn_jnode *a = with_cond ? expression(p) : or_(p), *n = NULL;
    size_t cap = 0;
    while (is_op(cur(p), ',')) {
        next(p);
        if (!n) {
            n = node(p, HN_JN_TUPLE, pos);
            add(p, n, &cap, a);
        }
        hn_jtok_kind k = cur(p)->kind;
        if (k == HN_JT_VAR_END || k == HN_JT_BLOCK_END || is_op(cur(p), ')')) break;
        add(p, n, &cap, with_cond ? expression(p) : or_(p));
    }
    return n ? n : a;
}

/* ---- statements ------------------------------------------------------------------------------------------ */

static hn_jnode *body(parser *p, const char *const *ends);

/* The name of the tag at hand, one of ends, which body() has stopped at; takes "{%" and it. */
static const char *take_end(parser *p, const char *const *ends)
{
    next(p);
    for (; *ends; ends++)
        if (take_name(p, *ends)) return *ends;
    FAIL(p, "unexpected %s", seen(p)); /* body() stops nowhere else */
}

/* A body and its closing tag. */
static hn_jnode *body_until(parser *p, const char *end)
{
    const char *const ends[] = { end, NULL };
    hn_jnode *b = body(p, ends);
    take_end(p, ends);
    end_block(p);
    return b;
}

static void check_assignable(parser *p, const hn_jstr *s)
{
    static const char *const words[] = { "true", "false", "none", "True", "False", "None", NULL };
    for (const char *const *w = words; *w; w++)
        if (hn_js_is(s, *w)) FAIL(p, "can't assign to '%s'", *w);
}

/* name, ns.name (where allowed), or a tuple of targets. */
static hn_jnode *target(parser *p, bool with_ns)
{
    uint32_t pos = cur(p)->pos;
    hn_jnode *first = NULL, *n = NULL;
    size_t cap = 0;
    enter(p);
    for (;;) {
        hn_jnode *x;
        if (take_op(p, '(')) {
            x = target(p, with_ns);
            expect_op(p, ')');
        } else {
            uint32_t at = cur(p)->pos;
            const hn_jstr *s = take_ident(p);
            check_assignable(p, s);
            x = node(p, HN_JN_NAME, at);
            x->sym = symbol(p, s);
            if (with_ns && take_op(p, '.')) {
                x->kind = HN_JN_NSREF;
                x->s = take_ident(p);
            }
        }
        if (!first) first = x;
        if (n) add(p, n, &cap, x);
        if (!is_op(cur(p), ',')) break;
        next(p);
        if (!n) {
            n = node(p, HN_JN_TUPLE, pos);
            add(p, n, &cap, first);
        }
        if (cur(p)->kind == HN_JT_BLOCK_END || is_name(cur(p), "in") || is_op(cur(p), '=') || is_op(cur(p), ')')) break;
    }
    leave(p);
    return n ? n : first;
}

static hn_jnode *for_statement(parser *p, uint32_t pos)
{
    static const char *const ends[] = { "else", "endfor", NULL };
    hn_jnode *n = node(p, HN_JN_FOR, pos);
    n->a = target(p, false);
    if (!take_name(p, "in")) FAIL(p, "expected 'in', got %s", seen(p));
    n->b = tuple(p, false);
    if (take_name(p, "if")) n->e = expression(p);
    n->flag = take_name(p, "recursive");
    end_block(p);
    p->loops++;
    n->c = body(p, ends);
    p->loops--;
    if (strcmp(take_end(p, ends), "else") == 0) {
        end_block(p);
        n->d = body_until(p, "endfor");
    } else {
        end_block(p);
    }
    return n;
}

static hn_jnode *if_statement(parser *p, uint32_t pos)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    hn_jnode *n = node(p, HN_JN_IF, pos);
    size_t cap = 0;
    for (;;) {
        add(p, n, &cap, tuple(p, false));
        end_block(p);
        add(p, n, &cap, body(p, ends));
        const char *end = take_end(p, ends);
        if (strcmp(end, "elif") == 0) continue;
        end_block(p);
        if (strcmp(end, "else") == 0) n->b = body_until(p, "endif");
        return n;
    }
}

/* Filters behind a block's opening word: a chain whose innermost input is NULL, or NULL. */
static hn_jnode *filter_chain(parser *p, bool first_bare)
{
    hn_jnode *f = first_bare ? filter(p, NULL) : NULL;
    while (take_op(p, '|')) f = filter(p, f);
    return f;
}

static hn_jnode *set_statement(parser *p, uint32_t pos)
{
    hn_jnode *n = node(p, HN_JN_SET, pos);
    n->a = target(p, true);
    if (take_op(p, '=')) {
        n->b = tuple(p, true);
        end_block(p);
        return n;
    }
    n->kind = HN_JN_SETBLOCK;
    n->b = filter_chain(p, false);
    if (n->a->kind == HN_JN_TUPLE) FAIL(p, "expected token '=', got %s", seen(p));
    end_block(p);
    n->c = body_until(p, "endset");
    return n;
}

/* Parameters in parentheses. */
static void signature(parser *p, hn_jnode *m)
{
    size_t cap = 0;
    bool defaults = false;
    expect_op(p, '(');
    while (!take_op(p, ')')) {
        if (m->n) expect_op(p, ',');
        hn_jnode *x = node(p, HN_JN_NAME, cur(p)->pos);
        const hn_jstr *s = take_ident(p);
        check_assignable(p, s);
        x->sym = symbol(p, s);
        if (take_op(p, '=')) {
            x->a = expression(p);
            defaults = true;
        } else if (defaults) {
            FAIL(p, "non-default argument follows default argument");
        }
        add(p, m, &cap, x);
    }
}

static void macro_body(parser *p, hn_jnode *m, const char *end)
{
    hn_jnode *outer = p->macro;
    uint32_t loops = p->loops;
    p->macro = m;
    p->loops = 0;
    m->c = body_until(p, end);
    p->macro = outer;
    for (uint32_t i = 0; i < m->n; i++) /* an argument of that name is no caller */
        if (hn_js_is(p->t->syms[m->list[i]->sym], "caller")) m->flag &= ~4;
    if (outer) outer->flag |= m->flag; /* what an inner one uses, the outer one takes too */
    p->loops = loops;
}

static hn_jnode *macro_statement(parser *p, uint32_t pos)
{
    hn_jnode *m = node(p, HN_JN_MACRO, pos);
    const hn_jstr *s = take_ident(p);
    check_assignable(p, s);
    m->s = s;
    m->sym = symbol(p, s);
    signature(p, m);
    end_block(p);
    macro_body(p, m, "endmacro");
    return m;
}

static hn_jnode *call_statement(parser *p, uint32_t pos)
{
    hn_jnode *n = node(p, HN_JN_CALLBLOCK, pos), *m = node(p, HN_JN_MACRO, pos);
    if (is_op(cur(p), '(')) signature(p, m);
    n->a = expression(p);
    if (n->a->kind != HN_JN_CALL) FAIL(p, "expected call");
    end_block(p);
    macro_body(p, m, "endcall");
    n->b = m;
    return n;
}

static hn_jnode *with_statement(parser *p, uint32_t pos)
{
    hn_jnode *n = node(p, HN_JN_WITH, pos);
    size_t cap = 0;
    while (cur(p)->kind != HN_JT_BLOCK_END) {
        if (n->n) expect_op(p, ',');
        hn_jnode *t = node(p, HN_JN_NAME, cur(p)->pos);
        const hn_jstr *s = take_ident(p);
        check_assignable(p, s);
        t->sym = symbol(p, s);
        add(p, n, &cap, t);
        expect_op(p, '=');
        add(p, n, &cap, expression(p));
    }
    end_block(p);
    n->c = body_until(p, "endwith");
    return n;
}

static hn_jnode *scoped(parser *p, hn_jnode_kind kind, uint32_t pos, hn_jnode *filters, const char *end)
{
    hn_jnode *n = node(p, kind, pos);
    n->b = filters;
    end_block(p);
    n->c = body_until(p, end);
    return n;
}

static hn_jnode *jump(parser *p, hn_jnode_kind kind, uint32_t pos)
{
    if (!p->loops) {
        p->i--;
        FAIL(p, "'%s' outside of a loop", kind == HN_JN_BREAK ? "break" : "continue");
    }
    end_block(p);
    return node(p, kind, pos);
}

static hn_jnode *do_statement(parser *p, uint32_t pos)
{
    hn_jnode *n = node(p, HN_JN_DO, pos);
    n->a = tuple(p, true);
    end_block(p);
    return n;
}

static hn_jnode *statement(parser *p)
{
    static const char *const refused[] = { "include",    "import", "from",  "extends", "block",
                                           "autoescape", "trans",  "debug", NULL };
    uint32_t pos = cur(p)->pos;
    if (cur(p)->kind != HN_JT_NAME) FAIL(p, "tag name expected, got %s", seen(p));
    if (take_name(p, "for")) return for_statement(p, pos);
    if (take_name(p, "if")) return if_statement(p, pos);
    if (take_name(p, "set")) return set_statement(p, pos);
    if (take_name(p, "macro")) return macro_statement(p, pos);
    if (take_name(p, "call")) return call_statement(p, pos);
    if (take_name(p, "filter")) return scoped(p, HN_JN_FILTERBLOCK, pos, filter_chain(p, true), "endfilter");
    if (take_name(p, "with")) return with_statement(p, pos);
    if (take_name(p, "generation")) return scoped(p, HN_JN_SCOPE, pos, NULL, "endgeneration");
    if (take_name(p, "break")) return jump(p, HN_JN_BREAK, pos);
    if (take_name(p, "continue")) return jump(p, HN_JN_CONTINUE, pos);
    if (take_name(p, "do")) return do_statement(p, pos);
    if (take_name(p, "print")) {
        hn_jnode *n = do_statement(p, pos);
        n->kind = HN_JN_OUTPUT;
        return n;
    }
    for (const char *const *w = refused; *w; w++)
        if (is_name(cur(p), *w))
            hn_jj_fail(&p->c, HONE_E_UNSUPPORTED, pos, "the statement '%s' is not supported in chat templates", *w);
    FAIL(p, "Encountered unknown tag %s", seen(p));
}

static bool at_end(const parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (is_name(peek(p), *ends)) return true;
    return false;
}

/* Up to "{% END", or the end of the template when ends is NULL. */
static hn_jnode *body(parser *p, const char *const *ends)
{
    hn_jnode *b = node(p, HN_JN_BODY, cur(p)->pos);
    size_t cap = 0;
    enter(p);
    for (;;) {
        const hn_jtok *t = cur(p);
        hn_jnode *n;
        switch (t->kind) {
        case HN_JT_TEXT:
            n = node(p, HN_JN_TEXT, t->pos);
            n->v = t->v;
            next(p);
            break;
        case HN_JT_VAR:
            n = node(p, HN_JN_OUTPUT, t->pos);
            next(p);
            n->a = tuple(p, true);
            if (cur(p)->kind != HN_JT_VAR_END) FAIL(p, "expected end of print statement, got %s", seen(p));
            next(p);
            break;
        case HN_JT_BLOCK:
            if (at_end(p, ends)) {
                leave(p);
                return b;
            }
            next(p);
            n = statement(p);
            break;
        default:
            if (!ends) {
                leave(p);
                return b;
            }
            FAIL(p, "Unexpected end of template; expected '{%% %s%s%s %%}'", ends[0], ends[1] ? " %} or {% " : "",
                 ends[1] ? ends[1] : "");
        }
        add(p, b, &cap, n);
    }
}

/* ---- the template ------------------------------------------------------------------------------------------- */

/* Newlines become \n and the last one goes. False: out of memory. */
static bool normalize(hn_jinja *t, const char *src, size_t len)
{
    char *s = hn_arena_alloc(t->arena, len);
    size_t n = 0;
    if (!s) return false;
    for (size_t i = 0; i < len; i++) {
        if (src[i] == '\r') {
            s[n++] = '\n';
            if (i + 1 < len && src[i + 1] == '\n') i++;
        } else {
            s[n++] = src[i];
        }
    }
    if (n && s[n - 1] == '\n') n--;
    hn_guard(s + n, len - n); /* no NUL ends the source */
    t->src = s;
    t->src_len = n;
    return true;
}

static void parse(parser *p)
{
    size_t bad = hn_jj_utf8_fault(p->c.src, p->c.src_len);
    if (bad < p->c.src_len)
        hn_jj_fail(&p->c, HONE_E_FORMAT, (uint32_t)bad, "not UTF-8: byte 0x%02x", (unsigned char)p->c.src[bad]);
    p->tok = hn_jj_lex(&p->c, &p->n_tok);
    p->t->sym_loop = symbol(p, hn_js_lit(&p->c, "loop"));
    p->t->sym_caller = symbol(p, hn_js_lit(&p->c, "caller"));
    p->t->sym_varargs = symbol(p, hn_js_lit(&p->c, "varargs"));
    p->t->sym_kwargs = symbol(p, hn_js_lit(&p->c, "kwargs"));
    p->t->root = body(p, NULL);
}

hone_status hn_jinja_parse(hn_jinja **out, const char *src, size_t len, const char *name, const hn_jinja_limits *limits,
                           hone_error *err)
{
    *out = NULL;
    if (len > MAX_SOURCE)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: a template of %zu bytes; expected at most %d", name, len, MAX_SOURCE);
    hn_jinja *t = calloc(1, sizeof *t);
    parser *p = calloc(1, sizeof *p);
    if (t) t->arena = hn_arena_new();
    if (!t || !p || !t->arena || !(t->name = hn_arena_strndup(t->arena, name, strlen(name))) ||
        !normalize(t, src, len)) {
        hn_jinja_free(t);
        free(p);
        return HN_FAIL(err, HONE_E_NOMEM, "%s: out of memory", name);
    }
    p->t = t;
    p->c.arena = t->arena;
    p->c.name = t->name;
    p->c.src = t->src;
    p->c.src_len = t->src_len;
    p->c.err = err;
    hn_jj_limits(&p->c.lim, limits);
    hone_status st = HONE_OK;
    if (setjmp(p->c.trap) == 0) parse(p);
    else st = p->c.st;
    free(p);
    if (st != HONE_OK) hn_jinja_free(t);
    else *out = t;
    return st;
}

void hn_jinja_free(hn_jinja *t)
{
    if (!t) return;
    hn_arena_free(t->arena);
    free(t);
}

bool hn_jinja_mentions(const hn_jinja *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_sym; i++)
        if (hn_js_is(t->syms[i], name)) return true;
    return false;
}

bool hn_jinja_says(const hn_jinja *t, const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i + n <= t->src_len; i++)
        if (memcmp(t->src + i, text, n) == 0) return true;
    return false;
}
