/* jinja_priv: what the files of the template interpreter share.
 *
 * All memory of a parse or a rendering comes from one arena with a limit and is freed
 * with it. Failure is a jump to the trap set at the entry (hn_jj_fail does not return):
 * nothing between there and here owns anything else, so nothing can leak. */
#ifndef HN_JINJA_PRIV_H
#define HN_JINJA_PRIV_H

#include "template/jinja.h"

#include <setjmp.h>

/* ---- memory, limits, failure ---------------------------------------------------------- */

typedef struct hn_jcore {
    hn_arena *arena;
    unsigned char *cur; /* free part of the current block */
    size_t left;
    uint64_t memory; /* bytes taken */
    hn_jinja_limits lim;
    uint32_t depth;
    uint32_t pos; /* byte of src where an error without a better place is reported */
    const char *name, *src;
    size_t src_len;
    hone_error *err;
    hone_status st;
    jmp_buf trap;
} hn_jcore;

_Noreturn void hn_jj_fail(hn_jcore *c, hone_status code, uint32_t pos, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void *hn_jj_alloc(hn_jcore *c, size_t n); /* zeroed, 16-byte aligned */
void *hn_jj_array(hn_jcore *c, size_t n, size_t elem);
/* Room for one more element: array p of n elements and *cap places, doubled when full. */
void *hn_jj_grow(hn_jcore *c, void *p, size_t n, size_t *cap, size_t elem);
void hn_jj_enter(hn_jcore *c, uint32_t pos); /* one level deeper; c->depth-- undoes it */
void hn_jj_limits(hn_jinja_limits *out, const hn_jinja_limits *in);

/* ---- values ------------------------------------------------------------------------------ */

typedef enum hn_jkind {
    HN_J_NIL, /* no value: an argument not given */
    HN_J_UNDEF,
    HN_J_NONE,
    HN_J_BOOL,
    HN_J_INT,
    HN_J_FLOAT,
    HN_J_STR,
    HN_J_LIST,
    HN_J_TUPLE,
    HN_J_DICT,
    HN_J_NS,
    HN_J_MACRO,
    HN_J_FUNC,
    HN_J_METHOD,
    HN_J_LOOP,
    HN_J_CYCLER,
    HN_J_JOINER
} hn_jkind;

/* Bytes with their origin. Immutable; parts share bytes with the whole. */
typedef struct hn_jstr {
    const char *p;
    size_t len;
    size_t n_char;     /* SIZE_MAX: not counted yet */
    const uint8_t *fl; /* [len] 1: from input; NULL: all as `input` says */
    bool input;
    bool markup; /* of the filters safe and escape: what is added to it is escaped */
} hn_jstr;

typedef struct hn_jval hn_jval;
typedef struct hn_jlist hn_jlist;
typedef struct hn_jdict hn_jdict;
typedef struct hn_jundef hn_jundef;
typedef struct hn_jmacro hn_jmacro;
typedef struct hn_jbound hn_jbound;
typedef struct hn_jloop hn_jloop;
typedef struct hn_jcycle hn_jcycle;
typedef struct hn_jfunc hn_jfunc;
typedef struct hn_jnode hn_jnode;
typedef struct hn_jrun hn_jrun;
typedef struct hn_jscope hn_jscope;

struct hn_jval {
    hn_jkind kind;
    bool input;      /* INT, FLOAT: came from input, and so do its digits */
    uint16_t digits; /* FLOAT: as it was written is hn_jrun.digits[digits - 1]; 0: as a double is */
    union {
        bool b;
        int64_t i;
        double f;
        hn_jstr *s;
        hn_jlist *l; /* LIST, TUPLE */
        hn_jdict *d; /* DICT, NS */
        hn_jundef *u;
        hn_jmacro *m;
        hn_jbound *bound;
        hn_jloop *loop;
        hn_jcycle *cycle; /* CYCLER, JOINER */
        const hn_jfunc *fn;
    } u;
};

struct hn_jlist {
    hn_jval *v;
    size_t n, cap;
    const char *view; /* "dict_keys" …: how it prints, or NULL */
    bool lazy, spent; /* a generator, which can be walked once; view is "generator" */
    bool group;       /* of groupby: has attributes grouper and list */
    bool range;       /* of range(): a list to all but printing, tojson, + and == */
};
typedef struct hn_jentry {
    hn_jval k, v;
    uint64_t hash;
} hn_jentry;
struct hn_jdict {
    hn_jentry *e;
    size_t n, cap;
    uint32_t *slot;
    size_t n_slot; /* 0: few entries, searched one by one */
};
struct hn_jundef {
    const hn_jstr *name;
    hn_jkind of;
    hn_jval key;
}; /* name: a variable; else key of a value of kind `of` */
struct hn_jcycle {
    hn_jlist *l;
    hn_jstr *sep;
    size_t at;
};

typedef struct hn_jkw {
    const hn_jstr *name;
    hn_jval v;
} hn_jkw;
typedef struct hn_jargs {
    hn_jval *v;
    size_t n;
    hn_jkw *kw;
    size_t n_kw;
} hn_jargs;

/* A function, filter or method of hone. params: "a,b?c,d": names, those after ? optional; "*": the
 * function looks at the arguments itself. */
enum { HN_J_MAX_PARAM = 8 };
typedef hn_jval hn_jfn(hn_jrun *r, hn_jval self, hn_jval *a, const hn_jargs *raw);
struct hn_jfunc {
    const char *name, *params;
    hn_jfn *fn;
};
struct hn_jbound {
    const hn_jfunc *fn;
    hn_jval self;
};
typedef bool hn_jtest_fn(hn_jrun *r, hn_jval self, hn_jval *a);
typedef struct hn_jtest {
    const char *name, *params;
    hn_jtest_fn *fn;
} hn_jtest;

struct hn_jmacro {
    const hn_jnode *def;
    hn_jscope *scope;
    const hn_jstr *name;
};
struct hn_jloop {
    const hn_jnode *node;
    hn_jscope *scope;
    hn_jval *v;
    size_t n, i;
    uint32_t depth;
    hn_jval changed; /* of loop.changed */
};

/* Names are numbers (hn_jinja.syms). A scope holds few, so it is searched one by one. */
typedef struct hn_jslot {
    uint32_t sym;
    hn_jval v;
} hn_jslot;
struct hn_jscope {
    hn_jscope *up;
    hn_jslot *slot;
    size_t n, cap;
};

/* Text being written. */
typedef struct hn_jbuf {
    char *p;
    uint8_t *fl; /* NULL while all bytes so far have the same origin */
    bool input;  /* that origin */
    size_t len, cap;
} hn_jbuf;

struct hn_jinja {
    hn_arena *arena;
    const char *name, *src; /* newlines are \n */
    size_t src_len;
    const hn_jnode *root;
    const hn_jstr **syms;
    uint32_t n_sym;
    uint32_t sym_loop, sym_caller, sym_varargs, sym_kwargs;
};

struct hn_jrun {
    hn_jcore c; /* first */
    const hn_jinja *t;
    hn_jscope *root;
    hn_jbuf *out;
    uint64_t steps, out_bytes;
    hn_jinja_time now;
    bool raised;
    bool json_input;  /* strings made from JSON count as input */
    json_t *tree;     /* of from_json while it works */
    hn_jstr **digits; /* [n_digits] of numbers of JSON that neither 64 bits nor a double hold */
    size_t n_digits, cap_digits;
};
#define HN_JC(r) (&(r)->c)
#define HN_JFAIL(r, ...) hn_jj_fail(HN_JC(r), HONE_E_FORMAT, (r)->c.pos, __VA_ARGS__)
#define HN_JUNSUPPORTED(r, ...) hn_jj_fail(HN_JC(r), HONE_E_UNSUPPORTED, (r)->c.pos, __VA_ARGS__)

void hn_jj_charge(hn_jrun *r, uint64_t steps);
static inline void hn_jj_bytes(hn_jrun *r, size_t n) { hn_jj_charge(r, 1 + n / 32); } /* work over n bytes */

/* ---- making values (jinja_value.c) ----------------------------------------------------------- */

#define HN_JV(k, field, x) ((hn_jval){ .kind = (k), .u.field = (x) })
#define HN_JNONE ((hn_jval){ .kind = HN_J_NONE })
#define HN_JNIL ((hn_jval){ .kind = HN_J_NIL })
#define HN_JBOOL(x) HN_JV(HN_J_BOOL, b, (x))
#define HN_JINT(x) HN_JV(HN_J_INT, i, (x))
#define HN_JFLOAT(x) HN_JV(HN_J_FLOAT, f, (x))
#define HN_JSTR(x) HN_JV(HN_J_STR, s, (x))
#define HN_JLIST(x) HN_JV(HN_J_LIST, l, (x))
#define HN_JTUPLE(x) HN_JV(HN_J_TUPLE, l, (x))
#define HN_JDICT(x) HN_JV(HN_J_DICT, d, (x))

/* Whether c is one of the characters of set. Strings may hold NUL, which strchr finds in every set. */
static inline bool hn_jj_one_of(char c, const char *set) { return c && strchr(set, c); }
hn_jstr *hn_js_view(hn_jcore *c, const char *p, size_t len, bool input); /* p outlives the run */
hn_jstr *hn_js_copy(hn_jcore *c, const char *p, size_t len, bool input);
hn_jstr *hn_js_lit(hn_jcore *c, const char *literal);                      /* static text */
hn_jstr *hn_js_part(hn_jrun *r, const hn_jstr *s, size_t off, size_t len); /* bytes [off, off+len) */
hn_jstr *hn_js_concat(hn_jrun *r, const hn_jstr *a, const hn_jstr *b);
hn_jstr *hn_js_mark(hn_jrun *r, const hn_jstr *s, bool markup); /* s itself where it is so already */
hn_jstr *hn_js_escape(hn_jrun *r, const hn_jstr *s);            /* for HTML, once */
size_t hn_js_chars(hn_jrun *r, const hn_jstr *s);               /* code points */
size_t hn_js_offset(const hn_jstr *s, size_t chars);            /* byte of code point number `chars`, at most len */
bool hn_js_any_input(const hn_jstr *s);
bool hn_js_is(const hn_jstr *s, const char *text);
static inline bool hn_js_eq(const hn_jstr *a, const hn_jstr *b)
{
    return a->len == b->len && memcmp(a->p, b->p, a->len) == 0;
}
/* Python's white space. */
bool hn_jj_is_space(uint32_t cp);
/* Code point at p (n > 0 bytes left); ill-formed bytes count one each. */
uint32_t hn_jj_cp(const char *p, size_t n, size_t *used);
size_t hn_jj_utf8_fault(const char *p, size_t n); /* offset of the first ill-formed byte, n if none */

void hn_jb_put(hn_jrun *r, hn_jbuf *b, const char *p, size_t n, bool input);
void hn_jb_str(hn_jrun *r, hn_jbuf *b, const hn_jstr *s);
void hn_jb_lit(hn_jrun *r, hn_jbuf *b, const char *literal);
void hn_jb_cp(hn_jrun *r, hn_jbuf *b, uint32_t cp, bool input);
hn_jstr *hn_jb_done(hn_jrun *r, hn_jbuf *b);

hn_jlist *hn_jl_new(hn_jrun *r, size_t cap);
hn_jval
hn_jl_lazy(hn_jlist *l); /* l as what Jinja2 makes a generator of: true though empty, walked once, without a length */
void hn_jl_push(hn_jrun *r, hn_jlist *l, hn_jval v);
hn_jdict *hn_jd_new(hn_jrun *r);
hn_jval *hn_jd_get(hn_jrun *r, const hn_jdict *d, hn_jval key); /* NULL: absent */
hn_jval *hn_jd_find(hn_jrun *r, const hn_jdict *d, const char *key);
void hn_jd_set(hn_jrun *r, hn_jdict *d, hn_jval key, hn_jval v);
bool hn_jd_pop(hn_jrun *r, hn_jdict *d, hn_jval key, hn_jval *out);

hn_jval hn_jv_undef_name(hn_jrun *r, const hn_jstr *name);
hn_jval hn_jv_undef_key(hn_jrun *r, hn_jval of, hn_jval key);
_Noreturn void hn_jv_fail_undef(hn_jrun *r, hn_jval v);

const char *hn_jv_type(hn_jval v); /* "str", "NoneType" … */
bool hn_jv_truth(hn_jval v);
bool hn_jv_is_num(hn_jval v); /* bool, int, float */
double hn_jv_num(hn_jval v);
int64_t hn_jv_int(hn_jval v); /* of bool or int */
bool hn_jv_equal(hn_jrun *r, hn_jval a, hn_jval b);
int hn_jv_compare(hn_jrun *r, hn_jval a, hn_jval b, const char *op); /* <0, 0, >0; 2: unordered (NaN) */
hn_jstr *hn_jv_text(hn_jrun *r, hn_jval v);                          /* as printed */
void hn_jv_repr(hn_jrun *r, hn_jbuf *b, hn_jval v);
void hn_jj_float_text(char dst[40], double x);  /* Python's repr */
double hn_jj_strtod(const char *s, char **end); /* decimal point '.', whatever the locale */
/* Elements of anything that can be walked; the array may be shared. */
hn_jval *hn_jv_items(hn_jrun *r, hn_jval v, size_t *n);
hn_jlist *hn_jv_list(hn_jrun *r, hn_jval v);                                   /* the same as a new list */
void hn_jj_sort(hn_jrun *r, hn_jval *key, hn_jval *v, size_t n, bool reverse); /* stable, by key */

/* ---- JSON (jinja_json.c) ---------------------------------------------------------------------- */

hn_jval hn_jv_from_json(hn_jrun *r, const json_t *j);
hn_jval hn_jj_parse_json(hn_jrun *r, const hn_jstr *s);
typedef struct hn_json_style {
    hn_jstr *indent, *item_sep, *key_sep;
    bool ascii, sort;
} hn_json_style; /* indent NULL: one line */
hn_jstr *hn_jj_dump_json(hn_jrun *r, hn_jval v, const hn_json_style *style);

/* ---- lexing and parsing ------------------------------------------------------------------------ */

typedef enum hn_jtok_kind {
    HN_JT_TEXT,
    HN_JT_VAR,
    HN_JT_VAR_END,
    HN_JT_BLOCK,
    HN_JT_BLOCK_END,
    HN_JT_NAME,
    HN_JT_STR,
    HN_JT_INT,
    HN_JT_FLOAT,
    HN_JT_OP,
    HN_JT_EOF
} hn_jtok_kind;
enum {
    HN_JOP_FLOORDIV = 128,
    HN_JOP_POW,
    HN_JOP_EQ,
    HN_JOP_NE,
    HN_JOP_LE,
    HN_JOP_GE,
    HN_JOP_IN,
    HN_JOP_NOTIN
}; /* else the character */

typedef struct hn_jtok {
    hn_jtok_kind kind;
    int op;
    uint32_t pos, len; /* in src */
    hn_jval v;         /* TEXT, STR, NAME: string; INT, FLOAT */
} hn_jtok;

/* Tokens of src, ending with HN_JT_EOF. */
hn_jtok *hn_jj_lex(hn_jcore *c, size_t *n);

typedef enum hn_jnode_kind {
    HN_JN_BODY,
    HN_JN_TEXT,
    HN_JN_OUTPUT,
    HN_JN_IF,
    HN_JN_FOR,
    HN_JN_SET,
    HN_JN_SETBLOCK,
    HN_JN_MACRO,
    HN_JN_CALLBLOCK,
    HN_JN_FILTERBLOCK,
    HN_JN_WITH,
    HN_JN_SCOPE,
    HN_JN_BREAK,
    HN_JN_CONTINUE,
    HN_JN_DO,
    HN_JN_CONST,
    HN_JN_NAME,
    HN_JN_LIST,
    HN_JN_TUPLE,
    HN_JN_DICT,
    HN_JN_COND,
    HN_JN_OR,
    HN_JN_AND,
    HN_JN_NOT,
    HN_JN_CMP,
    HN_JN_BIN,
    HN_JN_CONCAT,
    HN_JN_NEG,
    HN_JN_POS,
    HN_JN_ATTR,
    HN_JN_INDEX,
    HN_JN_SLICE,
    HN_JN_CALL,
    HN_JN_FILTER,
    HN_JN_TEST,
    HN_JN_ARG,
    HN_JN_NSREF
} hn_jnode_kind;

/* Fields by kind:
 *   BODY list; TEXT v; OUTPUT a; IF list = cond, body, cond, body …, b = else; FOR a = target, b = items, c = body,
 *   d = else, e = condition, flag = recursive; SET a = target, b; SETBLOCK a = target, b = filter chain (innermost
 *   input NULL) or NULL, c = body; MACRO sym, list = parameters (NAME with a = default), c = body, flag = 1 uses
 *   varargs | 2 kwargs | 4 caller; CALLBLOCK a = call, b = its MACRO; FILTERBLOCK b = filter chain, c = body;
 *   WITH list = target, value …, c = body; SCOPE c = body; DO a
 *   CONST v; NAME sym; LIST, TUPLE, CONCAT list; DICT list = key, value …; COND a = test, b, c = else or NULL;
 *   OR, AND, BIN (op) a, b; NOT, NEG, POS a; CMP a, list = ARG (op, a); ATTR a, s; INDEX a, b; SLICE a, b, c, d;
 *   CALL a, list = ARG; FILTER a, s, list; TEST a, s, list, flag = negated; ARG op = 0 | 'k' (s) | '*' | 'd', a;
 *   NSREF sym, s */
struct hn_jnode {
    uint8_t kind, flag;
    int op;
    uint32_t pos, sym, n;
    hn_jnode *a, *b, *c, *d, *e;
    hn_jnode **list;
    const hn_jstr *s;
    hn_jval v;
};

/* ---- evaluation -------------------------------------------------------------------------------- */

hn_jval hn_jj_call(hn_jrun *r, hn_jval fn, const hn_jargs *args); /* (jinja_eval.c) */
hn_jval hn_jj_loop_call(hn_jrun *r, hn_jloop *outer, hn_jval items);
hn_jval hn_jj_func(hn_jrun *r, const hn_jfunc *f, hn_jval self, const hn_jargs *args, const char *what);
void hn_jj_bind(hn_jrun *r, const char *what, const char *name, const char *params, const hn_jargs *args, hn_jval *out);

/* jinja_ops.c */
hn_jval hn_jj_binary(hn_jrun *r, int op, hn_jval a, hn_jval b);
bool hn_jj_contains(hn_jrun *r, hn_jval in, hn_jval x);
hn_jval hn_jj_attr(hn_jrun *r, hn_jval v, const hn_jstr *name); /* v.name */
hn_jval hn_jj_index(hn_jrun *r, hn_jval v, hn_jval key);        /* v[key] */
hn_jval hn_jj_slice(hn_jrun *r, hn_jval v, hn_jval from, hn_jval to, hn_jval step);
hn_jval hn_jj_path(hn_jrun *r, hn_jval v, hn_jval path); /* "a.b.0" of filters, or an index */
hn_jval hn_jj_path_or(hn_jrun *r, hn_jval v, hn_jval path,
                      hn_jval absent); /* absent: for what is undefined on the way; NIL, NONE: nothing */
hn_jval hn_jj_getattr(hn_jrun *r, hn_jval v, const hn_jstr *name); /* HN_JNIL: no such attribute */

/* jinja_filters.c, jinja_tests.c, jinja_methods.c, jinja_format.c */
hn_jval hn_jj_filter(hn_jrun *r, const hn_jstr *name, hn_jval self, const hn_jargs *args);
bool hn_jj_has_filter(const hn_jstr *name);
bool hn_jj_test(hn_jrun *r, const hn_jstr *name, hn_jval self, const hn_jargs *args);
const hn_jfunc *hn_jj_method(hn_jrun *r, hn_jval v, const hn_jstr *name); /* NULL: none */
const hn_jfunc *hn_jj_global(const hn_jstr *name);
hn_jval hn_jj_percent(hn_jrun *r, const hn_jstr *fmt, hn_jval args);     /* fmt % args */
hn_jval hn_jj_format(hn_jrun *r, const hn_jstr *fmt, const hn_jargs *a); /* fmt.format(…) */
hn_jstr *hn_jj_strftime(hn_jrun *r, const hn_jstr *fmt);

/* strings, shared by filters and methods (jinja_strings.c) */
typedef enum hn_jcase { HN_J_UPPER, HN_J_LOWER, HN_J_TITLE, HN_J_CAPITALIZE, HN_J_SWAP, HN_J_TITLE_FILTER } hn_jcase;
hn_jstr *hn_js_case(hn_jrun *r, const hn_jstr *s, hn_jcase how);
enum { HN_J_LEFT = 1, HN_J_RIGHT = 2 };
hn_jstr *hn_js_strip(hn_jrun *r, const hn_jstr *s, const hn_jstr *chars, int sides); /* chars NULL: white space */
hn_jstr *hn_js_replace(hn_jrun *r, const hn_jstr *s, const hn_jstr *old, const hn_jstr *new_,
                       int64_t count); /* count < 0: all */
hn_jlist *hn_js_split(hn_jrun *r, const hn_jstr *s, const hn_jstr *sep, int64_t max,
                      bool from_right);                                             /* sep NULL: white space */
hn_jlist *hn_js_lines(hn_jrun *r, const hn_jstr *s, bool keep);                     /* keep: with their line breaks */
size_t hn_js_find(const hn_jstr *s, size_t from, size_t end, const hn_jstr *what);  /* SIZE_MAX: not there */
size_t hn_js_rfind(const hn_jstr *s, size_t from, size_t end, const hn_jstr *what); /* after: */
void hn_js_charge_find(hn_jrun *r, const hn_jstr *s, const hn_jstr *what);          /* before searches in s */
void hn_js_charge_rfind(hn_jrun *r, const hn_jstr *s, const hn_jstr *what);
hn_jstr *hn_js_pad(hn_jrun *r, const hn_jstr *s, int64_t width, uint32_t fill, bool fill_input,
                   int side); /* side: where the text goes; 0: middle */
hn_jstr *hn_js_repeat(hn_jrun *r, const hn_jstr *s, int64_t times);

#endif
