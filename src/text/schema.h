/* schema: the inside of hn_schema_compile, which five files share: schema.c (what several schemas ask for together),
 * schema_choice.c (anyOf and oneOf), schema_words.c (what they say of one type), schema_valid.c (whether one value is
 * allowed), schema_emit.c (nodes of the grammar). */
#ifndef HN_SCHEMA_H
#define HN_SCHEMA_H

#include "text/grammar.h"
#include "text/schema_tree.h"

enum { /* types of values; numbers in two, so that integer is one of them */
       HN_T_NULL = 1,
       HN_T_FALSE = 2,
       HN_T_TRUE = 4,
       HN_T_INT = 8,
       HN_T_FRAC = 16,
       HN_T_STRING = 32,
       HN_T_ARRAY = 64,
       HN_T_OBJECT = 128,
       HN_T_NUMBER = HN_T_INT | HN_T_FRAC,
       HN_T_ALL = 255
};

enum { HN_SCHEMA_WORK = 1 << 20 }; /* schemas looked at for one text */

typedef struct hn_nodes { /* in the arena; a copy of the struct is a copy of the list if cap is set to n */
    const hn_jnode **v;
    uint32_t n, cap;
} hn_nodes;

typedef struct hn_choice_of { /* anyOf or oneOf that is still to be chosen from */
    const hn_jnode *list;
    hn_nodes trail; /* references that led here */
} hn_choice_of;

/* What schemas ask for together, after all references and one choice of each anyOf. */
typedef struct hn_mold {
    hn_nodes members;   /* objects whose words all hold */
    hn_nodes forbidden; /* values that are not allowed, from not */
    hn_nodes absent;    /* strings: properties that must not be there, from not */
    hn_nodes tags;      /* strings: of discriminators; what hone makes has them where they are declared */
    hn_choice_of *choice;
    uint32_t n_choice;
    uint32_t types, implied, removed;
    bool typed;  /* types is what some member says */
    bool finite; /* some member has const or enum */
    bool none;   /* nothing is allowed */
    bool real;   /* as the standard reads it; else with what hone narrows */
} hn_mold;

typedef struct hn_schema_memo {
    hn_nodes conj;
    uint32_t rule;
} hn_schema_memo;

/* How values are written, where that is not JSON alone. All members 0: it is. */
typedef struct hn_schema_style {
    bool python;    /* also True, False, None and strings in single quotes */
    bool bare;      /* Gemma: names without quotes, strings in marks of their own */
    hn_gnode quote; /* … that mark */
    hn_lang inside; /* … texts that do not hold it */
} hn_schema_style;

typedef struct hn_schema {
    hn_grammar *g;
    hn_langs *l;
    hn_arena *arena;
    const hn_jnode *root;
    const hn_schema_rules *rules;
    hone_error *err;
    hone_status st;  /* the first failure */
    hn_nodes trail;  /* references that lead to where flattening is */
    hn_nodes told;   /* places with a note */
    uint32_t work;   /* schemas looked at */
    uint32_t deep;   /* hn_schema_valid within itself */
    bool proving;    /* that branches are apart: a oneOf within them is taken as anyOf, which allows more */
    bool types_only; /* what types values may have is asked alone: words that are not enforced are passed over */
    hn_lang space;   /* between tokens */
    hn_schema_style style;
    hn_schema_memo *memo;
    uint32_t n_memo, cap_memo, n_made;
    uint32_t *slot; /* memo + 1 by hash */
    uint32_t n_slot;
    uint32_t n_property, n_enum; /* of the whole */
    uint32_t n_less;             /* words that were taken out, as they could not be read */
    uint32_t n_lost;             /* lenient: how often a word was met that is not enforced, so that more is allowed */
} hn_schema;

/* ---- schema.c ---- */
/* hn_schema_compile of a schema whose root is written otherwise than as JSON: make gives its node. */
typedef hn_gnode hn_schema_root_fn(hn_schema *s, const hn_jnode *root, void *arg);
hone_status hn_schema_compile_as(hn_grammar *g, const char *text, size_t len, const hn_schema_rules *r,
                                 hn_schema_root_fn *make, void *arg, hn_gnode *root, hone_error *err);
void hn_schema_refuse(hn_schema *s, const hn_jnode *at, const char *why); /* unsupported, at a place */
void hn_schema_tell(hn_schema *s, const hn_jnode *at, const char *what);  /* a note of the place, once */
/* What hone cannot enforce: refused, or where rules are lenient told and left out, and the caller goes on without it.
 * why: NULL, the word itself. */
void hn_schema_cannot(hn_schema *s, const hn_jnode *at, const char *why);
void hn_schema_wrong(hn_schema *s, const hn_jnode *at, const char *expected); /* no schema */
void hn_schema_no_memory(hn_schema *s);
/* hn_dec_read; without memory the schema has failed. */
bool hn_schema_number(hn_schema *s, hn_dec *d, hone_str text);
void hn_schema_put(hn_schema *s, hn_nodes *v, const hn_jnode *x);
bool hn_schema_work(hn_schema *s, uint32_t n);                /* false: enough */
uint32_t hn_schema_types(hn_schema *s, const hn_jnode *type); /* of the word type */
void hn_schema_words(hn_schema *s, const hn_jnode *schema);   /* refuses what must be */
/* The list of names that the object's propertyNames lets in; NULL: any. */
const hn_jnode *hn_schema_names(const hn_schema *s, const hn_jnode *o);
const hn_jnode *hn_schema_target(hn_schema *s, const hn_jnode *schema, const hn_jnode *ref);
hn_mold hn_mold_new(bool real);
hn_mold hn_mold_copy(hn_mold m); /* lists grow apart from here on */
void hn_mold_add(hn_schema *s, hn_mold *m, const hn_jnode *schema);
uint32_t hn_mold_types(const hn_mold *m);

/* ---- schema_choice.c ---- */
/* Calls take for each mold that comes of choosing. */
typedef void hn_mold_fn(hn_schema *s, hn_mold *m, void *arg);
void hn_mold_choose(hn_schema *s, hn_mold *m, hn_mold_fn *take, void *arg);

/* ---- schema_words.c: what members say of one type, put together ---- */
typedef struct hn_bounds { /* of numbers */
    bool has_lo, has_hi, lo_strict, hi_strict;
    hn_dec lo, hi;
} hn_bounds;
hn_bounds hn_mold_bounds(hn_schema *s, const hn_mold *m);
/* The least or the most that members say under a word which counts; without one: none. */
uint32_t hn_mold_count(hn_schema *s, const hn_mold *m, const char *word, bool least, uint32_t none);
hn_lang hn_mold_string(hn_schema *s, const hn_mold *m);
hn_lang hn_mold_number(hn_schema *s, const hn_mold *m, uint32_t types);
/* Schemas of element i, and of property key. *declared: some member names it. */
hn_nodes hn_mold_item(hn_schema *s, const hn_mold *m, uint32_t i);
uint32_t hn_mold_prefix(const hn_mold *m); /* elements with schemas of their own */
hn_nodes hn_mold_property(hn_schema *s, const hn_mold *m, hone_str key, bool *declared);
bool hn_mold_required(const hn_mold *m, hone_str key);
bool hn_mold_names(const hn_schema *s, const hn_mold *m, hone_str key); /* lists of names all have it */
bool hn_mold_tagged(const hn_mold *m, hone_str key);                    /* it is a tag that some member declares */
bool hn_mold_closed(const hn_mold *m); /* no properties but those named and those of patterns */
/* False: it is no expression that hone can enforce, which is told; *t is HN_LANG_ALL, as after a failure. */
bool hn_schema_pattern(hn_schema *s, const hn_jnode *at, hone_str text, hn_lang *t);
hn_lang hn_schema_format(hn_schema *s, const hn_jnode *format);

/* ---- schema_valid.c ---- */
uint32_t hn_schema_type_of(hn_schema *s, const hn_jnode *value);
bool hn_schema_valid(hn_schema *s, const hn_jnode *schema, const hn_jnode *value); /* as the standard reads it */
bool hn_mold_valid(hn_schema *s, const hn_mold *m, const hn_jnode *value);
/* … as the standard reads what m has brought together, with one choice of each anyOf: no other branch is asked. */
bool hn_mold_allows(hn_schema *s, const hn_mold *m, const hn_jnode *value);
/* Is it sure that nothing which hone makes of gen is allowed by real? */
bool hn_mold_apart(hn_schema *s, hn_mold *gen, hn_mold *real, int depth);

/* ---- schema_emit.c ---- */
uint32_t hn_schema_rule(hn_schema *s, const hn_nodes *conj); /* of values that all of them allow */
void hn_schema_emit_all(hn_schema *s);                       /* until no rule lacks its body */
hn_lang hn_schema_key(hn_schema *s, hone_str key);           /* a name as it is, or in quotes where it has signs */

#endif
