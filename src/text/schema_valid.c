/* One value against a schema, as the standard reads it: for const, enum and not. And the proof that what hone makes of
 * one branch of oneOf is not allowed by another. Both see only words that are enforced; others were refused before. */
#include "text/schema.h"

enum { APART_DEEPEST = 6, VALID_DEEPEST = 256 };

uint32_t hn_schema_type_of(hn_schema *s, const hn_jnode *v)
{
    hn_dec d;
    switch (v->kind) {
    case HN_J_NULL: return HN_T_NULL;
    case HN_J_FALSE: return HN_T_FALSE;
    case HN_J_TRUE: return HN_T_TRUE;
    case HN_J_STRING: return HN_T_STRING;
    case HN_J_ARRAY: return HN_T_ARRAY;
    case HN_J_OBJECT: return HN_T_OBJECT;
    case HN_J_NUMBER: break;
    }
    return !hn_schema_number(s, &d, v->str) || !hn_dec_whole(&d) ? HN_T_FRAC : HN_T_INT;
}

static uint32_t characters(hone_str t)
{
    uint32_t n = 0;
    for (size_t i = 0; i < t.len; i++) n += ((unsigned char)t.ptr[i] & 0xC0) != 0x80;
    return n;
}

static bool number_valid(hn_schema *s, const hn_mold *m, const hn_jnode *v)
{
    hn_bounds b = hn_mold_bounds(s, m);
    hn_dec d, by;
    if (!hn_schema_number(s, &d, v->str)) {
        hn_schema_cannot(s, v, "a number of more than 1000 digits");
        return s->st == HONE_OK;
    }
    int lo = b.has_lo ? hn_dec_compare(&d, &b.lo) : 1, hi = b.has_hi ? hn_dec_compare(&d, &b.hi) : -1;
    if (lo < 0 || hi > 0 || (lo == 0 && b.lo_strict) || (hi == 0 && b.hi_strict)) return false;
    for (uint32_t i = 0; i < m->members.n && s->st == HONE_OK; i++) {
        const hn_jnode *x = hn_jget(m->members.v[i], "multipleOf");
        if (!x) continue;
        if (x->kind != HN_J_NUMBER || !hn_schema_number(s, &by, x->str) || by.n == 0 || by.n > 9) {
            hn_schema_cannot(s, x, "hone enforces multiples of decimals whose digits make at most 10000");
            continue;
        }
        /* both times the power of ten that makes `by` whole */
        int32_t shift = (int32_t)by.n - by.point;
        uint32_t step = 0;
        for (uint32_t k = 0; k < by.n; k++) step = step * 10 + (uint32_t)(by.digit[k] - '0');
        hn_dec up = d;
        up.point += shift;
        if (d.n && (!hn_dec_whole(&up) || hn_dec_rest(&up, step) != 0)) return false;
    }
    return s->st == HONE_OK;
}

static bool string_valid(hn_schema *s, const hn_mold *m, const hn_jnode *v)
{
    uint32_t n = characters(v->str);
    if (n < hn_mold_count(s, m, "minLength", true, 0)) return false;
    if (n > hn_mold_count(s, m, "maxLength", false, UINT32_MAX)) return false;
    return hn_lang_matches(s->l, hn_mold_string(s, m), v->str.ptr, v->str.len);
}

static bool all_valid(hn_schema *s, const hn_nodes *schemas, const hn_jnode *v)
{
    for (uint32_t i = 0; i < schemas->n; i++)
        if (!hn_schema_valid(s, schemas->v[i], v)) return false;
    return s->st == HONE_OK;
}

static bool array_valid(hn_schema *s, const hn_mold *m, const hn_jnode *v)
{
    if (v->n < hn_mold_count(s, m, "minItems", true, 0)) return false;
    if (v->n > hn_mold_count(s, m, "maxItems", false, UINT32_MAX)) return false;
    for (const hn_jnode *x = v->first; x; x = x->next) {
        hn_nodes item = hn_mold_item(s, m, x->index);
        if (!all_valid(s, &item, x)) return false;
    }
    return true;
}

static bool object_valid(hn_schema *s, const hn_mold *m, const hn_jnode *v)
{
    if (v->n < hn_mold_count(s, m, "minProperties", true, 0)) return false;
    if (v->n > hn_mold_count(s, m, "maxProperties", false, UINT32_MAX)) return false;
    for (uint32_t k = 0; k < m->members.n; k++) {
        const hn_jnode *r = hn_jget(m->members.v[k], "required");
        for (const hn_jnode *x = r ? r->first : NULL; x; x = x->next)
            if (x->kind == HN_J_STRING && !hn_jget_str(v, x->str)) return false;
    }
    for (uint32_t k = 0; k < m->absent.n; k++)
        if (hn_jget_str(v, m->absent.v[k]->str)) return false;
    for (const hn_jnode *x = v->first; x; x = x->next) {
        bool declared;
        hn_nodes property = hn_mold_property(s, m, x->key, &declared);
        if (!hn_mold_names(s, m, x->key)) return false;
        if (!all_valid(s, &property, x)) return false;
    }
    return true;
}

static bool in_finite(const hn_mold *m, const hn_jnode *v)
{
    for (uint32_t i = 0; i < m->members.n; i++) {
        const hn_jnode *list = hn_jget(m->members.v[i], "enum"), *one = hn_jget(m->members.v[i], "const");
        bool found = !list || v->parent == list;
        for (const hn_jnode *x = list ? list->first : NULL; x && !found; x = x->next) found = hn_jequal(x, v);
        if (!found || (one && !hn_jequal(one, v))) return false;
    }
    return true;
}

bool hn_mold_valid(hn_schema *s, const hn_mold *m, const hn_jnode *v)
{
    uint32_t t = hn_schema_type_of(s, v), types = hn_mold_types(m);
    if (t == HN_T_FRAC && (types & HN_T_NUMBER) == HN_T_INT) return false;
    /* a mold that is read as the standard does has HN_T_FRAC beside HN_T_INT for 1.0, which is HN_T_INT here */
    if (t == HN_T_FRAC && m->typed && !(m->types & HN_T_FRAC)) return false;
    if (!(types & t) || !in_finite(m, v)) return false;
    for (uint32_t i = 0; i < m->forbidden.n; i++)
        if (hn_jequal(m->forbidden.v[i], v)) return false;
    switch (v->kind) {
    case HN_J_NUMBER: return number_valid(s, m, v);
    case HN_J_STRING: return string_valid(s, m, v);
    case HN_J_ARRAY: return array_valid(s, m, v);
    case HN_J_OBJECT: return object_valid(s, m, v);
    default: return true;
    }
}

bool hn_mold_allows(hn_schema *s, const hn_mold *m, const hn_jnode *v)
{
    hn_mold real = *m;
    real.real = true;
    return hn_mold_types(m) && hn_mold_valid(s, &real, v);
}

typedef struct valid_job {
    const hn_jnode *value;
    bool n; /* some choice allows it */
} valid_job;

static void count_valid(hn_schema *s, hn_mold *m, void *arg)
{
    valid_job *j = arg;
    if (!j->n) j->n = hn_mold_valid(s, m, j->value);
}

/* Branches of a oneOf that allow the value must be one. */
static bool one_of_valid(hn_schema *s, const hn_jnode *list, const hn_jnode *v)
{
    uint32_t n = 0;
    for (const hn_jnode *x = list->first; x; x = x->next) n += hn_schema_valid(s, x, v);
    return n == 1;
}

static bool is_valid(hn_schema *s, const hn_jnode *schema, const hn_jnode *v)
{
    hn_mold m = hn_mold_new(true);
    valid_job j = { .value = v };
    hn_nodes trail = s->trail; /* of another instance */
    s->trail = (hn_nodes){ 0 };
    hn_mold_add(s, &m, schema);
    s->trail = trail;
    for (uint32_t i = 0; i < m.n_choice && s->st == HONE_OK; i++)
        if (hn_str_is(m.choice[i].list->key, "oneOf") && !one_of_valid(s, m.choice[i].list, v)) return false;
    hn_mold_choose(s, &m, count_valid, &j);
    return j.n > 0 && s->st == HONE_OK;
}

/* What is forbidden may be asked for by way of itself ({"not": {"$ref": "#", "const": 1}}): no trail shows that, as a
 * value is looked at by its own. */
bool hn_schema_valid(hn_schema *s, const hn_jnode *schema, const hn_jnode *v)
{
    if (!hn_schema_work(s, 1)) return false;
    if (s->deep == VALID_DEEPEST) {
        hn_schema_cannot(s, schema, "it leads back to itself, or is too deep");
        return false;
    }
    s->deep++;
    bool valid = is_valid(s, schema, v);
    s->deep--;
    return valid;
}

/* ---- apart ------------------------------------------------------------------------------------------ */

typedef struct pair_job {
    const hn_nodes *other;
    hn_mold *gen;
    int depth;
    bool apart;
} pair_job;

static void pair_real(hn_schema *s, hn_mold *real, void *arg)
{
    pair_job *j = arg;
    if (j->apart) j->apart = hn_mold_apart(s, j->gen, real, j->depth);
}

static void pair_gen(hn_schema *s, hn_mold *gen, void *arg)
{
    pair_job *j = arg;
    hn_mold real = hn_mold_new(true);
    if (!j->apart) return;
    j->gen = gen;
    for (uint32_t i = 0; i < j->other->n; i++) hn_mold_add(s, &real, j->other->v[i]);
    hn_mold_choose(s, &real, pair_real, j);
}

/* The same of what stands in arrays and objects. Choices within gen are not asked whether they are sure themselves. */
static bool conj_apart(hn_schema *s, const hn_nodes *gen, const hn_nodes *real, int depth)
{
    pair_job j = { .other = real, .depth = depth, .apart = true };
    hn_mold m = hn_mold_new(false);
    hn_nodes trail = s->trail;
    if (depth > APART_DEEPEST || !hn_schema_work(s, 16)) return false;
    s->trail = (hn_nodes){ 0 };
    for (uint32_t i = 0; i < gen->n; i++) hn_mold_add(s, &m, gen->v[i]);
    hn_mold_choose(s, &m, pair_gen, &j);
    s->trail = trail;
    return j.apart;
}

static bool numbers_apart(hn_schema *s, const hn_mold *gen, const hn_mold *real)
{
    hn_bounds a = hn_mold_bounds(s, gen), b = hn_mold_bounds(s, real);
    int c;
    if (a.has_hi && b.has_lo && ((c = hn_dec_compare(&a.hi, &b.lo)) < 0 || (c == 0 && (a.hi_strict || b.lo_strict))))
        return true;
    return a.has_lo && b.has_hi && ((c = hn_dec_compare(&a.lo, &b.hi)) > 0 || (c == 0 && (a.lo_strict || b.hi_strict)));
}

static bool arrays_apart(hn_schema *s, const hn_mold *gen, const hn_mold *real, int depth)
{
    uint32_t lo_a = hn_mold_count(s, gen, "minItems", true, 0), lo_b = hn_mold_count(s, real, "minItems", true, 0);
    uint32_t hi_a = hn_mold_count(s, gen, "maxItems", false, UINT32_MAX);
    uint32_t hi_b = hn_mold_count(s, real, "maxItems", false, UINT32_MAX);
    if (lo_a > hi_b || lo_b > hi_a) return true;
    uint32_t n = lo_a < 16 ? lo_a : 16; /* these are there in all that gen makes */
    for (uint32_t i = 0; i < n; i++) {
        hn_nodes a = hn_mold_item(s, gen, i), b = hn_mold_item(s, real, i);
        if (conj_apart(s, &a, &b, depth + 1)) return true;
    }
    return false;
}

/* Can gen make a property of this name at all? */
static bool may_have(hn_schema *s, const hn_mold *gen, hone_str key)
{
    bool declared;
    hn_nodes v = hn_mold_property(s, gen, key, &declared);
    for (uint32_t i = 0; i < v.n; i++)
        if (v.v[i]->kind == HN_J_FALSE) return false;
    return declared || v.n || hn_mold_required(gen, key) || !hn_mold_closed(gen);
}

/* Is no value that gen makes of a property which it always has one that real allows? */
static bool property_apart(hn_schema *s, const hn_mold *gen, const hn_mold *real, hone_str key, int depth)
{
    bool declared;
    hn_nodes a = hn_mold_property(s, gen, key, &declared), b = hn_mold_property(s, real, key, &declared);
    return conj_apart(s, &a, &b, depth + 1);
}

static bool objects_apart(hn_schema *s, const hn_mold *gen, const hn_mold *real, int depth)
{
    for (uint32_t k = 0; k < real->members.n; k++) {
        const hn_jnode *r = hn_jget(real->members.v[k], "required");
        for (const hn_jnode *x = r ? r->first : NULL; x; x = x->next)
            if (x->kind == HN_J_STRING && !may_have(s, gen, x->str)) return true;
    }
    for (uint32_t k = 0; k < gen->members.n; k++) {
        const hn_jnode *r = hn_jget(gen->members.v[k], "required");
        for (const hn_jnode *x = r ? r->first : NULL; x && s->st == HONE_OK; x = x->next)
            if (x->kind == HN_J_STRING && property_apart(s, gen, real, x->str, depth)) return true;
    }
    for (uint32_t k = 0; k < gen->tags.n && s->st == HONE_OK; k++) {
        hone_str key = gen->tags.v[k]->str;
        if (hn_mold_tagged(gen, key) && property_apart(s, gen, real, key, depth)) return true;
    }
    return false;
}

static bool finite_apart(hn_schema *s, const hn_mold *finite, const hn_mold *other)
{
    for (uint32_t i = 0; i < finite->members.n; i++) {
        const hn_jnode *list = hn_jget(finite->members.v[i], "enum"), *one = hn_jget(finite->members.v[i], "const");
        if (!list && !one) continue;
        for (const hn_jnode *x = one ? one : list->first; x; x = one ? NULL : x->next) {
            bool ok = hn_mold_valid(s, finite, x);
            if (ok && hn_mold_allows(s, other, x)) return false;
        }
        return true;
    }
    return false;
}

bool hn_mold_apart(hn_schema *s, hn_mold *gen, hn_mold *real, int depth)
{
    uint32_t a = hn_mold_types(gen), b = hn_mold_types(real), both = a & b;
    if ((a & HN_T_NUMBER) && (b & HN_T_NUMBER)) both |= HN_T_NUMBER; /* 1.0 is an integer */
    if (!(a & b & HN_T_INT) && !(a & HN_T_FRAC && b & HN_T_FRAC)) both &= ~(uint32_t)HN_T_NUMBER;
    if (both == 0) return true;
    if (gen->finite) return finite_apart(s, gen, real);
    if (real->finite) return finite_apart(s, real, gen);
    if (both & (HN_T_NULL | HN_T_FALSE | HN_T_TRUE)) return false;
    if (both & HN_T_NUMBER && !numbers_apart(s, gen, real)) return false;
    if (both & HN_T_STRING) {
        hn_lang t = hn_lang_and(s->l, hn_mold_string(s, gen), hn_mold_string(s, real));
        if (hn_lang_live(s->l, t)) return false;
    }
    if (both & HN_T_ARRAY && !arrays_apart(s, gen, real, depth)) return false;
    return !(both & HN_T_OBJECT) || objects_apart(s, gen, real, depth);
}
