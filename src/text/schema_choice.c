/* What is chosen of anyOf and oneOf, and what no two branches of a oneOf may have in common: proof that they are apart,
 * by a property, by values they list, else pair by pair; and values that several of them list, which are left out. */
#include "text/schema.h"
#include "base/utf8.h"

#include <stdlib.h>

typedef struct apart_job {
    hn_mold *gen;
    int depth;
    bool apart;
} apart_job;

static void apart_from_real(hn_schema *s, hn_mold *real, void *arg)
{
    apart_job *j = arg;
    if (j->apart) j->apart = hn_mold_apart(s, j->gen, real, j->depth);
}

typedef struct gen_job {
    const hn_jnode *other;
    bool apart;
} gen_job;

static void gen_apart(hn_schema *s, hn_mold *gen, void *arg)
{
    gen_job *g = arg;
    apart_job j = { .gen = gen, .depth = 0, .apart = true };
    hn_mold real = hn_mold_new(true);
    if (!g->apart) return;
    hn_mold_add(s, &real, g->other);
    hn_mold_choose(s, &real, apart_from_real, &j);
    g->apart = j.apart;
}

/* Branch x of the choice, beside what m says. A discriminator says which property tells the branches from each other:
 * who reads the value asks for it, also where the schema lets it be left out, as one that has a default. */
static void add_branch(hn_schema *s, hn_mold *m, const hn_choice_of *c, const hn_jnode *x)
{
    const hn_jnode *tag = hn_jget(hn_jget(c->list->parent, "discriminator"), "propertyName");
    if (tag && tag->kind == HN_J_STRING && !m->real) hn_schema_put(s, &m->tags, tag);
    hn_mold_add(s, m, x);
}

/* The const or the enum of the first member that has one. */
static const hn_jnode *list_of(const hn_mold *m)
{
    for (uint32_t i = 0; i < m->members.n; i++) {
        const hn_jnode *one = hn_jget(m->members.v[i], "const"), *list = hn_jget(m->members.v[i], "enum");
        if (one || list) return one ? one : list;
    }
    return NULL;
}

/* The values of it, one by one; NULL: that was all. */
static const hn_jnode *next_listed(const hn_jnode *list, const hn_jnode *last)
{
    bool one = hn_str_is(list->key, "const");
    return last ? (one ? NULL : last->next) : one ? list : list->first;
}

/* The value or the list of values that property `key` of what m allows must be of; NULL: there is none. */
static const hn_jnode *listed(hn_schema *s, const hn_mold *m, hone_str key)
{
    bool declared;
    hn_nodes conj = hn_mold_property(s, m, key, &declared), trail = s->trail;
    hn_mold v = hn_mold_new(true);
    s->trail = (hn_nodes){ 0 }; /* of another instance */
    for (uint32_t i = 0; i < conj.n; i++) hn_mold_add(s, &v, conj.v[i]);
    s->trail = trail;
    return list_of(&v);
}

static int by_text(const void *a, const void *b)
{
    return hn_str_compare((*(const hn_jnode *const *)a)->str, (*(const hn_jnode *const *)b)->str);
}

/* m with branch x, without the other choices of m. What these say narrows it, but for one thing: where nobody names
 * types, words of them let in values of more types. */
static hn_mold beside_branch(hn_schema *s, const hn_mold *m, const hn_choice_of *c, const hn_jnode *x)
{
    hn_mold gen = hn_mold_copy(*m);
    gen.n_choice = 0;
    add_branch(s, &gen, c, x);
    if (gen.typed || !m->n_choice) return gen;
    if (!gen.implied) gen.implied = HN_T_ALL;
    for (uint32_t i = 0; i < m->n_choice; i++)
        for (const hn_jnode *y = m->choice[i].list->first; y && hn_schema_work(s, 1); y = y->next) {
            hn_mold other = hn_mold_new(false);
            hn_mold_add(s, &other, y);
            gen.implied |= other.n_choice ? HN_T_ALL : other.typed ? other.types : other.implied;
        }
    return gen;
}

/* Is branch x beside m an object, whatever is chosen within it, that always has `key`? */
static bool always_has(hn_schema *s, const hn_mold *m, const hn_choice_of *c, const hn_jnode *x, hone_str key)
{
    hn_mold gen = beside_branch(s, m, c, x);
    return !(hn_mold_types(&gen) & ~(uint32_t)HN_T_OBJECT) && (gen.typed || !gen.n_choice) &&
           (hn_mold_required(&gen, key) || hn_mold_tagged(&gen, key));
}

/* Are the branches objects that always have `key`, a text of which no two lists have the same? Then they are apart,
 * which is known here without looking at each pair of them. */
static bool told_by(hn_schema *s, const hn_mold *m, const hn_choice_of *c, hone_str key)
{
    hn_nodes texts = { 0 };
    for (const hn_jnode *x = c->list->first; x; x = x->next) {
        hn_mold real = hn_mold_new(true);
        if (!hn_schema_work(s, 16) || !always_has(s, m, c, x, key)) return false;
        hn_mold_add(s, &real, x);
        const hn_jnode *v = listed(s, &real, key);
        if (!v) return false;
        for (const hn_jnode *t = next_listed(v, NULL); t; t = next_listed(v, t)) {
            if (t->kind != HN_J_STRING) return false;
            hn_schema_put(s, &texts, t);
        }
    }
    if (s->st != HONE_OK || !texts.n) return false;
    qsort(texts.v, texts.n, sizeof *texts.v, by_text);
    for (uint32_t i = 1; i < texts.n; i++)
        if (by_text(&texts.v[i - 1], &texts.v[i]) == 0) return false;
    return true;
}

/* Is there a property that tells all branches apart: the discriminator's, or one that the first branch requires? */
static bool told_apart(hn_schema *s, const hn_mold *m, const hn_choice_of *c)
{
    const hn_jnode *tag = hn_jget(hn_jget(c->list->parent, "discriminator"), "propertyName");
    if (tag && tag->kind == HN_J_STRING && told_by(s, m, c, tag->str)) return true;
    enum { MOST = 8 };
    int n_tried = 0;
    hn_mold first = hn_mold_new(true);
    hn_mold_add(s, &first, c->list->first);
    for (uint32_t k = 0; k < first.members.n; k++) {
        const hn_jnode *r = hn_jget(first.members.v[k], "required");
        for (const hn_jnode *x = r && r->kind == HN_J_ARRAY ? r->first : NULL; x && s->st == HONE_OK; x = x->next)
            if (x->kind == HN_J_STRING && hn_schema_work(s, 1) && listed(s, &first, x->str)) {
                if (told_by(s, m, c, x->str)) return true;
                if (++n_tried == MOST) return false;
            }
    }
    return false;
}

typedef struct one_value {
    const hn_jnode *v, *branch;
    hn_dec number;
} one_value;

static int by_value(const void *a, const void *b)
{
    const one_value *x = a, *y = b;
    if (x->v->kind != y->v->kind) return (x->v->kind > y->v->kind) - (x->v->kind < y->v->kind);
    if (x->v->kind == HN_J_NUMBER) return hn_dec_compare(&x->number, &y->number);
    return x->v->kind == HN_J_STRING ? by_text(&x->v, &y->v) : 0;
}

static int by_value_and_branch(const void *a, const void *b)
{
    const one_value *x = a, *y = b;
    int c = by_value(a, b);
    return c ? c : (x->branch->index > y->branch->index) - (x->branch->index < y->branch->index);
}

/* How many values a branch lists, all of them scalars; they are put to out unless that is NULL. 0: none, or others. */
static uint32_t values_of(hn_schema *s, const hn_jnode *branch, one_value *out)
{
    hn_mold real = hn_mold_new(true);
    uint32_t n = 0;
    hn_mold_add(s, &real, branch);
    const hn_jnode *list = list_of(&real);
    for (const hn_jnode *x = list ? next_listed(list, NULL) : NULL; x && hn_schema_work(s, 1);
         x = next_listed(list, x)) {
        one_value v = { .v = x, .branch = branch };
        if (x->kind == HN_J_ARRAY || x->kind == HN_J_OBJECT) return 0;
        if (x->kind == HN_J_NUMBER && !hn_schema_number(s, &v.number, x->str)) return 0;
        if (out) out[n] = v;
        n++;
    }
    return n;
}

/* What the branches list: values in order, those of one value by their branches. */
typedef struct listing {
    one_value *v;
    size_t n;
    hn_nodes without; /* branches that list nothing, or more than scalars */
} listing;

static bool list_all(hn_schema *s, const hn_jnode *list, listing *out)
{
    size_t n = 0;
    *out = (listing){ 0 };
    for (const hn_jnode *x = list->first; x; x = x->next) n += values_of(s, x, NULL);
    if (!(out->v = hn_arena_alloc(s->arena, (n + 1) * sizeof *out->v))) hn_schema_no_memory(s);
    for (const hn_jnode *x = list->first; x && s->st == HONE_OK; x = x->next) {
        uint32_t some = values_of(s, x, NULL);
        if (some) values_of(s, x, out->v + out->n);
        else hn_schema_put(s, &out->without, x);
        out->n += some;
    }
    if (s->st == HONE_OK) qsort(out->v, out->n, sizeof *out->v, by_value_and_branch);
    return s->st == HONE_OK;
}

/* Is nothing that m and one of `these` branches allow also allowed by one of the others? Other choices of m are left
 * out: then it allows more, and what is proved of that holds of less. */
static bool pairs_apart(hn_schema *s, const hn_mold *m, const hn_choice_of *c, const hn_nodes *these,
                        const hn_nodes *others)
{
    bool apart = true;
    s->proving = true; /* what leads back to this choice would have it proved for ever */
    for (uint32_t i = 0; i < these->n && apart; i++)
        for (uint32_t k = 0; k < others->n && apart && s->st == HONE_OK; k++) {
            if (these->v[i] == others->v[k]) continue;
            hn_mold gen = beside_branch(s, m, c, these->v[i]);
            gen_job j = { .other = others->v[k], .apart = true };
            hn_mold_choose(s, &gen, gen_apart, &j);
            apart = j.apart;
        }
    s->proving = false;
    return apart && s->st == HONE_OK;
}

/* Branches that list scalars of which no other such branch has one are apart from each other; so it is about the
 * others: each of them beside all, and all beside each. */
static bool branches_apart(hn_schema *s, const hn_mold *m, const hn_choice_of *c, const listing *all)
{
    bool *shares = hn_arena_alloc(s->arena, c->list->n * sizeof *shares);
    hn_nodes told = { 0 }, untold = { 0 };
    if (!shares) hn_schema_no_memory(s);
    if (!shares) return false;
    for (uint32_t i = 0; i < all->without.n; i++) shares[all->without.v[i]->index] = true;
    for (size_t i = 1; i < all->n; i++)
        if (all->v[i].branch != all->v[i - 1].branch && by_value(&all->v[i], &all->v[i - 1]) == 0)
            shares[all->v[i].branch->index] = shares[all->v[i - 1].branch->index] = true;
    for (const hn_jnode *x = c->list->first; x; x = x->next) hn_schema_put(s, shares[x->index] ? &untold : &told, x);
    return pairs_apart(s, m, c, &untold, &untold) && pairs_apart(s, m, c, &told, &untold) &&
           pairs_apart(s, m, c, &untold, &told);
}

/* Does a branch allow a value? *sure false: of words that it has lost another might have refused it. */
static bool allows(hn_schema *s, const hn_jnode *branch, const hn_jnode *v, bool *sure)
{
    const uint32_t lost = s->n_lost;
    bool valid = hn_schema_valid(s, branch, v);
    *sure = *sure && !(valid && s->n_lost > lost);
    return valid;
}

/* Values that branches list, and that two of them allow, are not allowed at all. *more: some value is left. False: they
 * are too many to be looked at, or it is not sure of one, which might be the only right one. */
static bool shared_values(hn_schema *s, const listing *all, hn_nodes *shared, bool *more)
{
    enum { MOST = 1024, CHECK = 8 };
    *more = all->without.n > 0;
    if (all->n * (all->without.n + 1) > MOST) return false;
    for (size_t i = 0, end; i < all->n && hn_schema_work(s, CHECK + CHECK * all->without.n); i = end) {
        uint32_t n = 0;
        bool sure = true;
        for (end = i; end < all->n && by_value(&all->v[end], &all->v[i]) == 0; end++) /* a branch may list one twice */
            if (end == i || all->v[end].branch != all->v[end - 1].branch)
                n += allows(s, all->v[end].branch, all->v[end].v, &sure);
        for (uint32_t k = 0; k < all->without.n && n < 2; k++) n += allows(s, all->without.v[k], all->v[i].v, &sure);
        if (n > 1 && !sure) return false;
        if (n > 1) hn_schema_put(s, shared, all->v[i].v);
        *more = *more || n == 1;
    }
    return s->st == HONE_OK;
}

/* Is it sure that no value of what m allows fits two branches? Values that do, and are listed, are forbidden in m. */
static bool one_fits(hn_schema *s, hn_mold *m, const hn_choice_of *c)
{
    listing all;
    hn_nodes shared = { 0 };
    bool more;
    if (told_apart(s, m, c)) return true;
    if (!list_all(s, c->list, &all)) return false;
    if (branches_apart(s, m, c, &all)) return true;
    if (!shared_values(s, &all, &shared, &more) || !more) return false;
    for (uint32_t i = 0; i < shared.n; i++) hn_schema_put(s, &m->forbidden, shared.v[i]);
    /* no listed value is left that fits another branch */
    bool apart = pairs_apart(s, m, c, &all.without, &all.without);
    if (apart && shared.n) hn_schema_tell(s, c->list, "leaves out values that several branches allow");
    return apart;
}

void hn_mold_choose(hn_schema *s, hn_mold *m, hn_mold_fn *take, void *arg)
{
    if (s->st != HONE_OK || m->none) return;
    if (m->n_choice == 0) {
        if (hn_schema_work(s, 1)) take(s, m, arg);
        return;
    }
    hn_choice_of c = m->choice[0];
    hn_mold rest = hn_mold_copy(*m);
    rest.n_choice--;
    rest.choice++;
    hn_nodes trail = s->trail;
    bool asked = hn_str_is(c.list->key, "oneOf") && !m->real && !s->types_only && !s->proving;
    if (asked && !one_fits(s, &rest, &c)) {
        if (!s->rules->lenient) {
            hn_schema_refuse(s, c.list, "it is not sure that no value fits two branches; anyOf allows that");
            return;
        }
        hn_schema_tell(s, c.list, "is held as anyOf: it is not sure that no value fits two branches");
    }
    for (const hn_jnode *x = c.list->first; x && hn_schema_work(s, 64); x = x->next) {
        hn_mold one = hn_mold_copy(rest);
        s->trail = c.trail;
        s->trail.cap = s->trail.n;
        add_branch(s, &one, &c, x);
        s->trail = trail;
        hn_mold_choose(s, &one, take, arg);
    }
    s->trail = trail;
}
