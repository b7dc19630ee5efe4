/* What include/hone.h declares, read from its own text, and a record of one call with one of its arguments
 * spoilt. Knows C's declarations as far as that header uses them; nothing of what the functions do. */
#ifndef HN_API_WALK_H
#define HN_API_WALK_H

#include "hone.h"

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the header ------------------------------------------------------------------------------------ */

enum { AW_NAME = 64, AW_ARGS = 80, AW_FUNCS = 200, AW_STRUCTS = 40 };

typedef struct aw_arg {
    char name[AW_NAME]; /* "m", of structs of parameters also "p->n_ctx", of arrays of pointers also "stops[1]" */
    bool pointer;
} aw_arg;
typedef struct aw_func {
    char name[AW_NAME];
    bool status; /* it returns a hone_status */
    int n;
    aw_arg arg[AW_ARGS]; /* all but err and flags */
} aw_func;
typedef struct aw_struct {
    char name[AW_NAME];
    int n;
    aw_arg member[AW_ARGS];
} aw_struct;
typedef struct aw_header {
    int n_func, n_struct;
    aw_func func[AW_FUNCS];
    aw_struct structs[AW_STRUCTS];
} aw_header;

/* Blanks comments and preprocessor lines, in place. */
static void aw_bare(char *s)
{
    bool comment = false, directive = false;
    for (size_t i = 0; s[i]; i++) {
        bool begins = i == 0 || s[i - 1] == '\n';
        if (!comment && s[i] == '/' && s[i + 1] == '*') comment = true;
        if (begins && !comment) directive = s[i] == '#';
        if (comment && s[i] == '*' && s[i + 1] == '/') {
            s[i] = s[i + 1] = ' ';
            comment = false;
        }
        if ((comment || directive) && s[i] != '\n') s[i] = ' ';
    }
}

/* The identifier that a declarator declares: of "(*fn)(void *)" the one behind the star, else the last one. */
static void aw_declared(char name[AW_NAME], const char *s, size_t n)
{
    size_t end = n, begin;
    for (size_t i = 0; i + 1 < n; i++)
        if (s[i] == '(' && s[i + 1] == '*') {
            for (end = i + 2; end < n && (isalnum((unsigned char)s[end]) || s[end] == '_'); end++) {}
            break;
        }
    while (end > 0 && !(isalnum((unsigned char)s[end - 1]) || s[end - 1] == '_')) end--;
    for (begin = end; begin > 0 && (isalnum((unsigned char)s[begin - 1]) || s[begin - 1] == '_');) begin--;
    assert_true(end - begin < AW_NAME);
    snprintf(name, AW_NAME, "%.*s", (int)(end - begin), s + begin);
}

static bool aw_has(const char *s, size_t n, const char *word)
{
    size_t k = strlen(word);
    for (size_t i = 0; i + k <= n; i++)
        if (!memcmp(s + i, word, k)) return true;
    return false;
}

/* Length of the piece at s up to a comma outside brackets, or to n. */
static size_t aw_piece(const char *s, size_t n)
{
    int depth = 0;
    size_t i = 0;
    for (; i < n && (depth || s[i] != ','); i++) depth += (s[i] == '(') - (s[i] == ')');
    return i;
}

static void aw_add(aw_arg *list, int *n, const char *name, const char *suffix, bool pointer)
{
    size_t k = strlen(name), more = strlen(suffix);
    assert_true(*n < AW_ARGS && k + more < AW_NAME);
    memmove(list[*n].name, name, k);
    memmove(list[*n].name + k, suffix, more + 1);
    list[(*n)++].pointer = pointer;
}

/* One declarator; type: the text that its type is in. */
static void aw_declare(aw_arg *list, int *n, const char *type, size_t n_type, const char *s, size_t len)
{
    char name[AW_NAME];
    bool pointer = aw_has(s, len, "*");
    aw_declared(name, s, len);
    if (!name[0] || (!pointer && (aw_has(type, n_type, "bool ") || !strcmp(name, "void")))) return;
    aw_add(list, n, name, "", pointer);
    if (aw_has(s, len, "*const *")) aw_add(list, n, name, "[1]", true); /* what each entry points to */
}

static void aw_read_struct(aw_header *h, const char *name, const char *body, size_t n)
{
    aw_struct *t = &h->structs[h->n_struct++];
    assert_true(h->n_struct <= AW_STRUCTS);
    snprintf(t->name, sizeof t->name, "%s", name);
    for (const char *at = body, *end = body + n, *semi; (semi = memchr(at, ';', (size_t)(end - at))); at = semi + 1)
        for (const char *p = at; p < semi;) {
            size_t k = aw_piece(p, (size_t)(semi - p));
            aw_declare(t->member, &t->n, at, (size_t)(semi - at), p, k);
            p += k + 1;
        }
}

static void aw_read_function(aw_header *h, const char *s, const char *end)
{
    aw_func *f = &h->func[h->n_func++];
    const char *open = strchr(s, '('), *close = end;
    assert_true(h->n_func <= AW_FUNCS);
    while (*close != ')') close--;
    aw_declared(f->name, s, (size_t)(open - s));
    f->status = aw_has(s, (size_t)(open - s), "hone_status ");
    for (const char *p = open + 1; p < close;) {
        size_t k = aw_piece(p, (size_t)(close - p));
        int at = f->n;
        aw_declare(f->arg, &f->n, p, k, p, k);
        if (f->n > at && !strcmp(f->arg[at].name, "err")) f->n = at;
        for (int i = 0; f->n > at && i < h->n_struct; i++) {
            char word[AW_NAME + 2], member[AW_NAME];
            snprintf(word, sizeof word, "%s *", h->structs[i].name);
            if (!aw_has(p, k, word) || !aw_has(p, k, "const ")) continue;
            for (int m = 0; m < h->structs[i].n; m++) {
                snprintf(member, sizeof member, "->%.60s", h->structs[i].member[m].name);
                aw_add(f->arg, &f->n, f->arg[at].name, member, h->structs[i].member[m].pointer);
            }
        }
        p += k + 1;
    }
}

/* text is written to. Structs of parameters are those whose name ends so, and hone_progress. */
static void aw_read(aw_header *h, char *text)
{
    memset(h, 0, sizeof *h);
    aw_bare(text);
    for (char *p = text; (p = strstr(p, "typedef struct hone_")); p++) {
        char name[AW_NAME];
        size_t k = strcspn(p, "{;");
        aw_declared(name, p, k);
        bool wanted = strstr(name, "_params") || !strcmp(name, "hone_progress");
        if (p[k] == '{' && wanted) aw_read_struct(h, name, p + k + 1, strcspn(p + k + 1, "}"));
    }
    for (char *p = text; (p = strstr(p, "HONE_API ")); p++) aw_read_function(h, p + 9, strchr(p, ';'));
}

/* ---- one call ------------------------------------------------------------------------------------------ */

typedef enum aw_kind {
    AW_NEED,  /* NULL is refused */
    AW_MAY,   /* NULL is as good as what stands here */
    AW_RANGE, /* the least, -1 and the greatest number of its type are refused; NaN and both infinities */
    AW_LOW,   /* only those below zero, or NaN */
    AW_COUNT, /* the same, and the greatest is not tried: it counts what the caller has */
    AW_ANY,   /* no such number does harm */
    AW_TRUST  /* not tried */
} aw_kind;

typedef struct aw_call {
    const char *hit; /* what is spoilt; NULL: nothing */
    int k;           /* with which number */
    hone_error *err;
    int n_asked;
    struct {
        const char *name;
        aw_kind kind;
        bool pointer, real;
    } asked[AW_ARGS];
    bool has_status, failed;
    hone_status st;
    const char *left; /* an output that has not the value of a failure */
} aw_call;

static aw_call *aw; /* the running one */

static bool aw_is(const char *name) { return aw->hit && !strcmp(aw->hit, name); }

static bool aw_ask(const char *name, aw_kind kind, bool pointer, bool real)
{
    int i = 0;
    while (i < aw->n_asked && strcmp(aw->asked[i].name, name)) i++;
    assert_true(i < AW_ARGS);
    if (i == aw->n_asked) aw->n_asked++;
    aw->asked[i].name = name;
    aw->asked[i].kind = kind;
    aw->asked[i].pointer = pointer;
    aw->asked[i].real = real;
    return aw_is(name);
}

static int64_t aw_bad_int(size_t size)
{
    return aw->k == 1 ? -1 : size < 8 ? (aw->k ? INT32_MAX : INT32_MIN) : (aw->k ? INT64_MAX : INT64_MIN);
}
static double aw_bad_real(void) { return aw->k == 0 ? -INFINITY : aw->k == 1 ? NAN : INFINITY; }

/* An argument of the call under test, spoilt when it is its turn. */
#define AW_PTR(kind, name, p) ((__typeof__(true ? (p) : (p)))(aw_ask(name, kind, true, false) ? 0 : (uintptr_t)(p)))
#define NEED(name, p) AW_PTR(AW_NEED, name, p)
#define MAY(name, p) AW_PTR(AW_MAY, name, p)
#define AW_NUM(kind, name, x)                               \
    (aw_ask(name, kind, false,                              \
            _Generic((x), float                             \
                     : true, double                         \
                     : true, default                        \
                     : false))                              \
         ? (__typeof__(x))_Generic((x), float               \
                                   : aw_bad_real(), double  \
                                   : aw_bad_real(), default \
                                   : aw_bad_int(sizeof(x))) \
         : (x))
#define RANGE(name, x) AW_NUM(AW_RANGE, name, x)
#define LOW(name, x) AW_NUM(AW_LOW, name, x)
#define COUNT(name, x) AW_NUM(AW_COUNT, name, x)
#define ANY(name, x) AW_NUM(AW_ANY, name, x)
#define TRUST(name, x) (aw_ask(name, AW_TRUST, false, false) ? (x) : (x))
/* How it ended, and what must then stand in its outputs unless they were not there. */
#define STATUS(x) (aw->has_status = true, aw->st = (x), aw->failed = aw->st != HONE_OK)
#define NEUTRAL(x) (aw->failed = (x))
#define EMPTY(name, x)                                                   \
    do {                                                                 \
        if (aw->failed && !aw_is(name) && !(x)) aw->left = name ": " #x; \
    } while (0)

#endif
