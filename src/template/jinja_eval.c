/* jinja_eval: runs the tree: statements, scopes, calls, and the entry hn_jinja_render.
 * Refuses to know what operators, filters and methods do. */
#include "template/jinja_priv.h"

#include <stdlib.h>
#include <time.h>

typedef enum flow { NEXT, BREAK, CONTINUE } flow;

static hn_jval eval(hn_jrun *r, hn_jscope *s, const hn_jnode *n);
static flow exec(hn_jrun *r, hn_jscope *s, const hn_jnode *n);

/* ---- scopes ------------------------------------------------------------------------------------ */

static hn_jscope *scope_new(hn_jrun *r, hn_jscope *up)
{
    hn_jscope *s = hn_jj_alloc(HN_JC(r), sizeof *s);
    s->up = up;
    return s;
}

static void scope_set(hn_jrun *r, hn_jscope *s, uint32_t sym, hn_jval v)
{
    hn_jj_charge(r, s->n / 16);
    for (size_t i = 0; i < s->n; i++)
        if (s->slot[i].sym == sym) {
            s->slot[i].v = v;
            return;
        }
    s->slot = hn_jj_grow(HN_JC(r), s->slot, s->n, &s->cap, sizeof *s->slot);
    s->slot[s->n++] = (hn_jslot){ sym, v };
}

static const hn_jval *scope_find(hn_jrun *r, const hn_jscope *s, uint32_t sym)
{
    uint64_t looked = 0;
    for (; s; s = s->up) {
        looked += s->n;
        for (size_t i = 0; i < s->n; i++)
            if (s->slot[i].sym == sym) {
                hn_jj_charge(r, looked / 16);
                return &s->slot[i].v;
            }
    }
    hn_jj_charge(r, looked / 16);
    return NULL;
}

static hn_jval lookup(hn_jrun *r, const hn_jscope *s, uint32_t sym)
{
    const hn_jval *v = scope_find(r, s, sym);
    const hn_jstr *name = r->t->syms[sym];
    if (v && v->kind == HN_J_NIL) return hn_jv_undef_name(r, name); /* an argument asked by its own default */
    if (v) return *v;
    const hn_jfunc *f = hn_jj_global(name);
    if (!f && hn_js_is(name, "self")) HN_JUNSUPPORTED(r, "the variable 'self' is not supported in chat templates");
    return f ? HN_JV(HN_J_FUNC, fn, f) : hn_jv_undef_name(r, name);
}

static void assign(hn_jrun *r, hn_jscope *s, const hn_jnode *to, hn_jval v)
{
    r->c.pos = to->pos;
    if (to->kind == HN_JN_NAME) {
        scope_set(r, s, to->sym, v);
    } else if (to->kind == HN_JN_NSREF) {
        hn_jval ns = lookup(r, s, to->sym);
        if (ns.kind == HN_J_UNDEF) hn_jv_fail_undef(r, ns);
        if (ns.kind != HN_J_NS)
            HN_JFAIL(r, "cannot assign attribute on non-namespace object of type %s", hn_jv_type(ns));
        hn_jd_set(r, ns.u.d, HN_JSTR((hn_jstr *)to->s), v);
    } else {
        size_t n;
        hn_jval *e = hn_jv_items(r, v, &n);
        if (n != to->n) HN_JFAIL(r, "cannot unpack %zu values into %u names", n, to->n);
        hn_jj_enter(HN_JC(r), to->pos);
        for (size_t i = 0; i < n; i++) assign(r, s, to->list[i], e[i]);
        r->c.depth--;
    }
}

/* Runs body with its output kept in *text. What is not NEXT leaves a loop around body, and the text with it. */
static flow capture(hn_jrun *r, hn_jscope *s, const hn_jnode *body, hn_jstr **text)
{
    hn_jbuf buf = { 0 }, *before = r->out;
    r->out = &buf;
    flow f = exec(r, s, body);
    r->out = before;
    *text = hn_jb_done(r, &buf);
    return f;
}

/* ---- calls ---------------------------------------------------------------------------------------- */

static void push_arg(hn_jrun *r, hn_jargs *a, size_t *cap, hn_jval v)
{
    a->v = hn_jj_grow(HN_JC(r), a->v, a->n, cap, sizeof *a->v);
    a->v[a->n++] = v;
}

static void push_kw(hn_jrun *r, hn_jargs *a, size_t *cap, const hn_jstr *name, hn_jval v)
{
    for (size_t i = 0; i < a->n_kw; i++)
        if (hn_js_eq(a->kw[i].name, name))
            HN_JFAIL(r, "got multiple values for keyword argument '%s'", HN_ESC(name->p, name->len));
    hn_jj_charge(r, a->n_kw);
    a->kw = hn_jj_grow(HN_JC(r), a->kw, a->n_kw, cap, sizeof *a->kw);
    a->kw[a->n_kw++] = (hn_jkw){ name, v };
}

static hn_jargs eval_args(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    hn_jargs a = { 0 };
    size_t cap = 0, cap_kw = 0;
    for (uint32_t i = 0; i < n->n; i++) {
        const hn_jnode *x = n->list[i];
        hn_jval v = eval(r, s, x->a);
        r->c.pos = x->pos;
        if (x->op == '*') {
            size_t k;
            hn_jval *e = hn_jv_items(r, v, &k);
            for (size_t j = 0; j < k; j++) push_arg(r, &a, &cap, e[j]);
        } else if (x->op == 'd') {
            if (v.kind != HN_J_DICT) HN_JFAIL(r, "argument after ** must be a mapping, not %s", hn_jv_type(v));
            for (size_t j = 0; j < v.u.d->n; j++) {
                hn_jval k = v.u.d->e[j].k;
                if (k.kind != HN_J_STR) HN_JFAIL(r, "keywords must be strings");
                push_kw(r, &a, &cap_kw, k.u.s, v.u.d->e[j].v);
            }
        } else if (x->op == 'k') {
            push_kw(r, &a, &cap_kw, x->s, v);
        } else {
            push_arg(r, &a, &cap, v);
        }
    }
    r->c.pos = n->pos;
    return a;
}

static hn_jval call_macro(hn_jrun *r, const hn_jmacro *m, const hn_jargs *args)
{
    const hn_jnode *d = m->def;
    const char *name = m->name ? HN_ESC(m->name->p, m->name->len) : "caller";
    uint32_t pos = r->c.pos;
    hn_jscope *s = scope_new(r, m->scope);
    hn_jlist *rest = NULL;
    hn_jdict *kwrest = NULL;
    hn_jval caller = HN_JNIL;
    for (uint32_t i = 0; i < d->n; i++) scope_set(r, s, d->list[i]->sym, i < args->n ? args->v[i] : HN_JNIL);
    if (args->n > d->n) {
        if (!(d->flag & 1)) HN_JFAIL(r, "macro '%s' takes not more than %u argument(s)", name, d->n);
        rest = hn_jl_new(r, 0);
        for (size_t i = d->n; i < args->n; i++) hn_jl_push(r, rest, args->v[i]);
    }
    for (size_t k = 0; k < args->n_kw; k++) {
        const hn_jkw *kw = &args->kw[k];
        uint32_t i = 0;
        hn_jj_charge(r, d->n);
        while (i < d->n && !hn_js_eq(r->t->syms[d->list[i]->sym], kw->name)) i++;
        if (i < d->n) {
            if (i < args->n)
                HN_JFAIL(r, "macro '%s' got multiple values for argument '%s'", name,
                         HN_ESC(kw->name->p, kw->name->len));
            scope_set(r, s, d->list[i]->sym, kw->v);
        } else if (d->flag & 4 && hn_js_is(kw->name, "caller")) {
            caller = kw->v;
        } else if (d->flag & 2) {
            if (!kwrest) kwrest = hn_jd_new(r);
            hn_jd_set(r, kwrest, HN_JSTR((hn_jstr *)kw->name), kw->v);
        } else {
            HN_JFAIL(r, "macro '%s' takes no keyword argument '%s'", name, HN_ESC(kw->name->p, kw->name->len));
        }
    }
    if (d->flag & 1) scope_set(r, s, r->t->sym_varargs, HN_JTUPLE(rest ? rest : hn_jl_new(r, 0)));
    if (d->flag & 2) scope_set(r, s, r->t->sym_kwargs, HN_JDICT(kwrest ? kwrest : hn_jd_new(r)));
    if (d->flag & 4)
        scope_set(r, s, r->t->sym_caller,
                  caller.kind == HN_J_NIL ? hn_jv_undef_name(r, r->t->syms[r->t->sym_caller]) : caller);
    for (uint32_t i = 0; i < d->n; i++) { /* defaults see the arguments before them */
        if (s->slot[i].v.kind != HN_J_NIL) continue;
        hn_jval v = d->list[i]->a ? eval(r, s, d->list[i]->a) : hn_jv_undef_name(r, r->t->syms[d->list[i]->sym]);
        scope_set(r, s, d->list[i]->sym, v);
    }
    hn_jstr *text;
    capture(r, s, d->c, &text); /* a macro's body has no loop around it: the parser refuses jumps out of it */
    r->c.pos = pos;
    return HN_JSTR(text);
}

hn_jval hn_jj_call(hn_jrun *r, hn_jval fn, const hn_jargs *args)
{
    hn_jval v;
    hn_jj_enter(HN_JC(r), r->c.pos);
    switch (fn.kind) {
    case HN_J_MACRO: v = call_macro(r, fn.u.m, args); break;
    case HN_J_FUNC: v = hn_jj_func(r, fn.u.fn, HN_JNIL, args, "function"); break;
    case HN_J_METHOD: v = hn_jj_func(r, fn.u.bound->fn, fn.u.bound->self, args, "method"); break;
    case HN_J_LOOP:
        if (args->n != 1 || args->n_kw) HN_JFAIL(r, "loop() takes what to iterate over");
        v = hn_jj_loop_call(r, fn.u.loop, args->v[0]);
        break;
    case HN_J_JOINER: {
        hn_jcycle *c = fn.u.cycle;
        v = HN_JSTR(c->at++ ? c->sep : hn_js_lit(HN_JC(r), ""));
        break;
    }
    case HN_J_UNDEF: hn_jv_fail_undef(r, fn);
    default: HN_JFAIL(r, "'%s' object is not callable", hn_jv_type(fn));
    }
    r->c.depth--;
    return v;
}

/* Distributes arguments over the parameters "a,b?c": out[i] is HN_JNIL where not given. */
void hn_jj_bind(hn_jrun *r, const char *what, const char *name, const char *params, const hn_jargs *args, hn_jval *out)
{
    struct {
        const char *p;
        size_t n;
    } par[HN_J_MAX_PARAM];
    size_t n = 0, required = 0;
    bool optional = *params == '?';
    for (const char *p = params + optional; *p;) {
        size_t k = strcspn(p, ",?");
        par[n].p = p;
        par[n].n = k;
        out[n++] = HN_JNIL;
        if (!optional) required = n;
        optional |= p[k] == '?';
        p += k + (p[k] != 0);
    }
    if (args->n > n) HN_JFAIL(r, "%s '%s' takes at most %zu argument(s), %zu given", what, name, n, args->n);
    for (size_t i = 0; i < args->n; i++) out[i] = args->v[i];
    for (size_t k = 0; k < args->n_kw; k++) {
        const hn_jstr *key = args->kw[k].name;
        size_t i = 0;
        while (i < n && !(par[i].n == key->len && memcmp(par[i].p, key->p, key->len) == 0)) i++;
        if (i == n) HN_JFAIL(r, "%s '%s' has no argument '%s'", what, name, HN_ESC(key->p, key->len));
        if (out[i].kind != HN_J_NIL)
            HN_JFAIL(r, "%s '%s' got multiple values for argument '%s'", what, name, HN_ESC(key->p, key->len));
        out[i] = args->kw[k].v;
    }
    for (size_t i = 0; i < required; i++)
        if (out[i].kind == HN_J_NIL)
            HN_JFAIL(r, "%s '%s' is missing its argument '%.*s'", what, name, (int)par[i].n, par[i].p);
}

hn_jval hn_jj_func(hn_jrun *r, const hn_jfunc *f, hn_jval self, const hn_jargs *args, const char *what)
{
    hn_jval a[HN_J_MAX_PARAM + 1] = { { 0 } };
    if (*f->params != '*') hn_jj_bind(r, what, f->name, f->params, args, a);
    uint32_t pos = r->c.pos;
    hn_jval v = f->fn(r, self, a, args);
    r->c.pos = pos;
    return v;
}

/* ---- expressions ----------------------------------------------------------------------------------- */

static hn_jval compare_chain(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    static const struct {
        int op;
        const char *text;
    } names[] = { { '<', "<" }, { '>', ">" }, { HN_JOP_LE, "<=" }, { HN_JOP_GE, ">=" } };
    hn_jval a = eval(r, s, n->a);
    for (uint32_t i = 0; i < n->n; i++) {
        const hn_jnode *x = n->list[i];
        hn_jval b = eval(r, s, x->a);
        bool yes = false;
        r->c.pos = x->pos;
        switch (x->op) {
        case HN_JOP_EQ: yes = hn_jv_equal(r, a, b); break;
        case HN_JOP_NE: yes = !hn_jv_equal(r, a, b); break;
        case HN_JOP_IN: yes = hn_jj_contains(r, b, a); break;
        case HN_JOP_NOTIN: yes = !hn_jj_contains(r, b, a); break;
        default:
            for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                if (names[k].op == x->op) {
                    int c = hn_jv_compare(r, a, b, names[k].text);
                    yes = x->op == '<'         ? c == -1
                          : x->op == '>'       ? c == 1
                          : x->op == HN_JOP_LE ? c == -1 || c == 0
                                               : c == 1 || c == 0;
                }
        }
        if (!yes) return HN_JBOOL(false);
        a = b;
    }
    return HN_JBOOL(true);
}

static hn_jval negate(hn_jrun *r, hn_jval v, bool minus)
{
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (!hn_jv_is_num(v)) HN_JFAIL(r, "bad operand type for unary %c: '%s'", minus ? '-' : '+', hn_jv_type(v));
    if (v.kind == HN_J_FLOAT) {
        v.u.f = minus ? -v.u.f : v.u.f;
        v.digits = 0; /* it was reckoned with */
        return v;
    }
    int64_t i = hn_jv_int(v), neg = i;
    if (minus && __builtin_sub_overflow((int64_t)0, i, &neg)) HN_JFAIL(r, "integer beyond 64 bits");
    return (hn_jval){ .kind = HN_J_INT, .input = v.input, .u.i = neg };
}

static hn_jval eval_list(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    hn_jlist *l = hn_jl_new(r, n->n);
    for (uint32_t i = 0; i < n->n; i++) hn_jl_push(r, l, eval(r, s, n->list[i]));
    return n->kind == HN_JN_LIST ? HN_JLIST(l) : HN_JTUPLE(l);
}

static hn_jval eval_dict(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    hn_jdict *d = hn_jd_new(r);
    for (uint32_t i = 0; i < n->n; i += 2) {
        hn_jval k = eval(r, s, n->list[i]), v = eval(r, s, n->list[i + 1]);
        r->c.pos = n->list[i]->pos;
        hn_jd_set(r, d, k, v);
    }
    return HN_JDICT(d);
}

static hn_jval eval_concat(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    hn_jbuf b = { 0 };
    for (uint32_t i = 0; i < n->n; i++) {
        hn_jval v = eval(r, s, n->list[i]);
        r->c.pos = n->pos;
        hn_jb_str(r, &b, hn_jv_text(r, v));
    }
    return HN_JSTR(hn_jb_done(r, &b));
}

static hn_jval eval_slice(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    hn_jval v = eval(r, s, n->a), from = n->b ? eval(r, s, n->b) : HN_JNONE, to = n->c ? eval(r, s, n->c) : HN_JNONE,
            step = n->d ? eval(r, s, n->d) : HN_JNONE;
    r->c.pos = n->pos;
    return hn_jj_slice(r, v, from, to, step);
}

static hn_jval eval_filter(hn_jrun *r, hn_jscope *s, const hn_jnode *n, const hn_jstr *input)
{
    hn_jj_enter(HN_JC(r), n->pos);
    hn_jval v = n->a ? (n->a->kind == HN_JN_FILTER ? eval_filter(r, s, n->a, input) : eval(r, s, n->a))
                     : HN_JSTR((hn_jstr *)input);
    hn_jargs a = eval_args(r, s, n);
    r->c.pos = n->pos;
    v = hn_jj_filter(r, n->s, v, &a);
    r->c.depth--;
    return v;
}

static hn_jval eval_inner(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    hn_jval a, b;
    switch ((hn_jnode_kind)n->kind) {
    case HN_JN_CONST: return n->v;
    case HN_JN_NAME: return lookup(r, s, n->sym);
    case HN_JN_LIST:
    case HN_JN_TUPLE: return eval_list(r, s, n);
    case HN_JN_DICT: return eval_dict(r, s, n);
    case HN_JN_COND:
        if (hn_jv_truth(eval(r, s, n->a))) return eval(r, s, n->b);
        if (n->c) return eval(r, s, n->c);
        return hn_jv_undef_key(r, HN_JNIL, HN_JNIL);
    case HN_JN_OR: a = eval(r, s, n->a); return hn_jv_truth(a) ? a : eval(r, s, n->b);
    case HN_JN_AND: a = eval(r, s, n->a); return hn_jv_truth(a) ? eval(r, s, n->b) : a;
    case HN_JN_NOT: return HN_JBOOL(!hn_jv_truth(eval(r, s, n->a)));
    case HN_JN_CMP: return compare_chain(r, s, n);
    case HN_JN_BIN:
        a = eval(r, s, n->a);
        b = eval(r, s, n->b);
        r->c.pos = n->pos;
        return hn_jj_binary(r, n->op, a, b);
    case HN_JN_CONCAT: return eval_concat(r, s, n);
    case HN_JN_NEG:
    case HN_JN_POS:
        a = eval(r, s, n->a);
        r->c.pos = n->pos;
        return negate(r, a, n->kind == HN_JN_NEG);
    case HN_JN_ATTR:
        a = eval(r, s, n->a);
        r->c.pos = n->pos;
        return hn_jj_attr(r, a, n->s);
    case HN_JN_INDEX:
        a = eval(r, s, n->a);
        b = eval(r, s, n->b);
        r->c.pos = n->pos;
        return hn_jj_index(r, a, b);
    case HN_JN_SLICE: return eval_slice(r, s, n);
    case HN_JN_CALL: {
        a = eval(r, s, n->a);
        hn_jargs args = eval_args(r, s, n);
        r->c.pos = n->pos;
        return hn_jj_call(r, a, &args);
    }
    case HN_JN_FILTER: return eval_filter(r, s, n, NULL);
    case HN_JN_TEST: {
        a = eval(r, s, n->a);
        hn_jargs args = eval_args(r, s, n);
        r->c.pos = n->pos;
        return HN_JBOOL(hn_jj_test(r, n->s, a, &args) != (bool)n->flag);
    }
    default: HN_JFAIL(r, "not an expression");
    }
}

static hn_jval eval(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    r->c.pos = n->pos;
    hn_jj_charge(r, 1);
    hn_jj_enter(HN_JC(r), n->pos);
    hn_jval v = eval_inner(r, s, n);
    r->c.depth--;
    return v;
}

/* ---- statements ------------------------------------------------------------------------------------- */

/* v in tuples of to's shape: what a loop with a condition goes through, and loop.nextitem shows. */
static hn_jval unpacked(hn_jrun *r, const hn_jnode *to, hn_jval v)
{
    if (to->kind == HN_JN_NAME || to->kind == HN_JN_NSREF) return v;
    size_t n;
    r->c.pos = to->pos;
    hn_jval *e = hn_jv_items(r, v, &n);
    if (n != to->n) HN_JFAIL(r, "cannot unpack %zu values into %u names", n, to->n);
    hn_jj_enter(HN_JC(r), to->pos);
    hn_jlist *l = hn_jl_new(r, n);
    for (size_t i = 0; i < n; i++) hn_jl_push(r, l, unpacked(r, to->list[i], e[i]));
    r->c.depth--;
    return HN_JTUPLE(l);
}

/* Keeps those elements for which the loop's condition holds. */
static void keep_filtered(hn_jrun *r, hn_jscope *s, const hn_jnode *n, hn_jval **v, size_t *count)
{
    hn_jval *kept = hn_jj_array(HN_JC(r), *count + 1, sizeof *kept);
    size_t k = 0;
    for (size_t i = 0; i < *count; i++) {
        hn_jscope *in = scope_new(r, s);
        hn_jval x = unpacked(r, n->a, (*v)[i]);
        assign(r, in, n->a, x);
        if (hn_jv_truth(eval(r, in, n->e))) kept[k++] = x;
    }
    *v = kept;
    *count = k;
}

static flow run_loop(hn_jrun *r, hn_jscope *s, const hn_jnode *n, hn_jval items, uint32_t depth)
{
    hn_jloop *loop = hn_jj_alloc(HN_JC(r), sizeof *loop);
    size_t count;
    r->c.pos = n->b->pos;
    hn_jval *v = hn_jv_items(r, items, &count);
    if (n->e) keep_filtered(r, s, n, &v, &count);
    *loop = (hn_jloop){ .node = n, .scope = s, .v = v, .n = count, .depth = depth };
    bool complete = false; /* an iteration reached its end: Jinja2 asks this, not whether there was one */
    for (size_t i = 0; i < count; i++) {
        hn_jj_charge(r, 1);
        loop->i = i;
        hn_jscope *in = scope_new(r, s);
        scope_set(r, in, r->t->sym_loop, HN_JV(HN_J_LOOP, loop, loop));
        assign(r, in, n->a, v[i]);
        flow f = exec(r, in, n->c);
        if (f == BREAK) break;
        complete |= f == NEXT;
    }
    if (!complete && n->d) return exec(r, scope_new(r, s), n->d);
    return NEXT;
}

hn_jval hn_jj_loop_call(hn_jrun *r, hn_jloop *outer, hn_jval items)
{
    if (!outer->node->flag) HN_JFAIL(r, "The loop must have the 'recursive' marker to be called recursively.");
    hn_jbuf buf = { 0 }, *before = r->out;
    r->out = &buf;
    run_loop(r, outer->scope, outer->node, items, outer->depth + 1);
    r->out = before;
    return HN_JSTR(hn_jb_done(r, &buf));
}

static hn_jval new_macro(hn_jrun *r, hn_jscope *s, const hn_jnode *def)
{
    hn_jmacro *m = hn_jj_alloc(HN_JC(r), sizeof *m);
    *m = (hn_jmacro){ def, s, def->s };
    return HN_JV(HN_J_MACRO, m, m);
}

static void exec_call_block(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    hn_jval fn = eval(r, s, n->a->a);
    hn_jargs a = eval_args(r, s, n->a);
    size_t cap = a.n_kw;
    push_kw(r, &a, &cap, r->t->syms[r->t->sym_caller], new_macro(r, s, n->b));
    r->c.pos = n->pos;
    hn_jb_str(r, r->out, hn_jv_text(r, hn_jj_call(r, fn, &a)));
}

static flow exec_inner(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    hn_jval v;
    switch ((hn_jnode_kind)n->kind) {
    case HN_JN_BODY:
        for (uint32_t i = 0; i < n->n; i++) {
            flow f = exec(r, s, n->list[i]);
            if (f != NEXT) return f;
        }
        return NEXT;
    case HN_JN_TEXT: hn_jb_str(r, r->out, n->v.u.s); return NEXT;
    case HN_JN_OUTPUT:
        v = eval(r, s, n->a);
        r->c.pos = n->pos;
        hn_jb_str(r, r->out, hn_jv_text(r, v));
        return NEXT;
    case HN_JN_IF:
        for (uint32_t i = 0; i < n->n; i += 2)
            if (hn_jv_truth(eval(r, s, n->list[i]))) return exec(r, s, n->list[i + 1]);
        return n->b ? exec(r, s, n->b) : NEXT;
    case HN_JN_FOR: v = eval(r, s, n->b); return run_loop(r, s, n, v, 1);
    case HN_JN_SET:
        v = eval(r, s, n->b);
        assign(r, s, n->a, v);
        return NEXT;
    case HN_JN_SETBLOCK:
    case HN_JN_FILTERBLOCK: {
        hn_jstr *text;
        flow f = capture(r, scope_new(r, s), n->c, &text);
        if (f != NEXT) return f;
        v = n->b ? eval_filter(r, s, n->b, text) : HN_JSTR(text);
        r->c.pos = n->pos;
        if (n->kind == HN_JN_FILTERBLOCK && v.kind != HN_J_STR)
            HN_JFAIL(r, "a filter block makes text; this one made a %s", hn_jv_type(v));
        if (n->kind == HN_JN_SETBLOCK) assign(r, s, n->a, v);
        else hn_jb_str(r, r->out, hn_jv_text(r, v));
        return NEXT;
    }
    case HN_JN_MACRO: scope_set(r, s, n->sym, new_macro(r, s, n)); return NEXT;
    case HN_JN_CALLBLOCK: exec_call_block(r, s, n); return NEXT;
    case HN_JN_WITH: {
        hn_jscope *in = scope_new(r, s);
        for (uint32_t i = 0; i < n->n; i += 2) {
            v = eval(r, s, n->list[i + 1]);
            assign(r, in, n->list[i], v);
        }
        return exec(r, in, n->c);
    }
    case HN_JN_SCOPE: return exec(r, scope_new(r, s), n->c);
    case HN_JN_BREAK: return BREAK;
    case HN_JN_CONTINUE: return CONTINUE;
    case HN_JN_DO: eval(r, s, n->a); return NEXT;
    default: HN_JFAIL(r, "not a statement");
    }
}

static flow exec(hn_jrun *r, hn_jscope *s, const hn_jnode *n)
{
    r->c.pos = n->pos;
    hn_jj_charge(r, 1);
    hn_jj_enter(HN_JC(r), n->pos);
    flow f = exec_inner(r, s, n);
    r->c.depth--;
    return f;
}

/* ---- rendering ---------------------------------------------------------------------------------------- */

/* Roles are structure, not text that somebody typed: templates build tokens such as <|user|> from them. */
static bool known_role(const hn_jval v)
{
    static const char *const roles[] = { "system",   "user",    "assistant",   "tool",  "developer",
                                         "function", "ipython", "observation", "model", NULL };
    for (const char *const *k = roles; v.kind == HN_J_STR && *k; k++)
        if (hn_js_is(v.u.s, *k)) return true;
    return false;
}

static void trust_roles(hn_jrun *r, hn_jval messages)
{
    if (messages.kind != HN_J_LIST) return;
    for (size_t i = 0; i < messages.u.l->n; i++) {
        hn_jval m = messages.u.l->v[i];
        hn_jval *role = m.kind == HN_J_DICT ? hn_jd_find(r, m.u.d, "role") : NULL;
        if (role && known_role(*role)) role->u.s->input = false;
    }
}

static void set_variables(hn_jrun *r, const hn_jinja_vars *vars)
{
    for (uint32_t sym = 0; sym < r->t->n_sym; sym++) { /* only those the template mentions */
        const hn_jstr *name = r->t->syms[sym];
        char *key = hn_jj_alloc(HN_JC(r), name->len + 1);
        memcpy(key, name->p, name->len);
        const json_t *j = json_object_get(vars->context, key);
        if (!j) continue;
        r->json_input = true;
        for (const char *const *t = vars->trusted; t && *t; t++)
            if (hn_js_is(name, *t)) r->json_input = false;
        hn_jval v = hn_jv_from_json(r, j);
        if (vars->trust_roles && hn_js_is(name, "messages")) trust_roles(r, v);
        scope_set(r, r->root, sym, v);
    }
    r->json_input = true;
}

/* The output as malloc'ed text and spans. */
static hone_status deliver(const hn_jbuf *b, hn_jinja_text *out, const char *name, hone_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        bool here = b->fl ? b->fl[i] : b->input, before = i && (b->fl ? b->fl[i - 1] : b->input);
        n += here && !before;
    }
    out->text = malloc(b->len + 1);
    out->input = malloc((n + 1) * sizeof *out->input);
    if (!out->text || !out->input)
        return HN_FAIL(err, HONE_E_NOMEM, "%s: no memory for %zu bytes of text", name, b->len);
    if (b->len) memcpy(out->text, b->p, b->len);
    out->text[b->len] = 0;
    out->len = b->len;
    for (size_t i = 0; i < b->len; i++) {
        if (!(b->fl ? b->fl[i] : b->input)) continue;
        if (out->n_input && out->input[out->n_input - 1].end == i) out->input[out->n_input - 1].end++;
        else out->input[out->n_input++] = (hone_span){ i, i + 1 };
    }
    return HONE_OK;
}

static void local_time(hn_jinja_time *out)
{
    time_t t = time(NULL);
    struct tm tm = { .tm_year = 70, .tm_mday = 1 };
    localtime_r(&t, &tm);
    *out = (hn_jinja_time){ tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec };
}

hone_status hn_jinja_render(const hn_jinja *t, const hn_jinja_vars *vars, hn_jinja_text *out, hone_error *err)
{
    *out = (hn_jinja_text){ 0 };
    if (!json_is_object(vars->context))
        return HN_FAIL(err, HONE_E_ARG, "%s: the variables must be a JSON object", t->name);
    hn_jrun *r = calloc(1, sizeof *r);
    hn_jbuf buf = { 0 };
    if (r) r->c.arena = hn_arena_new();
    if (!r || !r->c.arena) {
        free(r);
        return HN_FAIL(err, HONE_E_NOMEM, "%s: out of memory", t->name);
    }
    r->t = t;
    r->c.name = t->name;
    r->c.src = t->src;
    r->c.src_len = t->src_len;
    r->c.err = err;
    r->out = &buf;
    if (vars->now) r->now = *vars->now;
    else local_time(&r->now);
    hn_jj_limits(&r->c.lim, &vars->limits);
    hone_status st;
    if (setjmp(r->c.trap) == 0) {
        r->root = scope_new(r, NULL);
        set_variables(r, vars);
        exec(r, r->root, t->root);
        st = deliver(&buf, out, t->name, err);
    } else {
        st = r->c.st;
        out->raised = r->raised;
    }
    if (st != HONE_OK) {
        bool raised = out->raised;
        hn_jinja_text_free(out);
        out->raised = raised;
    }
    json_decref(r->tree);
    hn_arena_free(r->c.arena);
    free(r);
    return st;
}

void hn_jinja_text_free(hn_jinja_text *out)
{
    free(out->text);
    free(out->input);
    *out = (hn_jinja_text){ 0 };
}
