/* torch_pickle: see torch_pickle.h. Instructions: CPython's Lib/pickletools.py; what torch writes:
 * pytorch/pytorch:torch/_utils.py, torch/serialization.py. A name of Python's is a word here, never something that is
 * imported; REDUCE looks the word up among three, and anything else ends the reading. */
#include "model/torch_pickle.h"

#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* Python's own pickler stays far below all of them. */
enum { MAX_STACK = 1 << 16, MAX_PARTS = 1 << 23, MAX_ITEMS = 1 << 21, MAX_NESTED = 64 };

typedef enum kind { NOTHING, TRUTH, WHOLE, REAL, TEXT, NAME, TUPLE, LIST, DICT, STORAGE, TENSOR, MARK } kind;
static const char *const kind_name[] = { "None",    "a truth", "a whole number", "a number",  "a text",   "a name",
                                         "a tuple", "a list",  "a dictionary",   "a storage", "a tensor", "a mark" };

typedef struct value {
    uint8_t kind, nested; /* tuples within each other */
    uint32_t n;           /* TEXT: bytes; TUPLE: parts */
    union {
        int64_t i; /* TRUTH, WHOLE */
        const char *text;
        size_t at; /* NAME: in names; TUPLE: its first part; DICT: its number; STORAGE, TENSOR: their place */
    };
} value;

typedef struct storage {
    hone_str key;
    hn_type type;
    hn_ckpt_raw raw;
    uint64_t n;
} storage;

typedef struct item {
    size_t dict;
    value key, v;
} item;

/* An array that grows. */
typedef struct many {
    void *p;
    size_t n, cap;
} many;

typedef struct machine {
    const unsigned char *p;
    size_t n, at, began; /* the instruction that is carried out */
    const char *file;
    hone_error *err;
    many stack, memo, parts, items, storages, tensors;
    size_t n_dict;
    bool stopped;
} machine;

#define FAULT(m, code, ...) fault((m), (code), __VA_ARGS__)
static hone_status __attribute__((format(printf, 3, 4))) fault(const machine *m, hone_status code, const char *fmt, ...)
{
    char say[400];
    va_list list;
    va_start(list, fmt);
    vsnprintf(say, sizeof say, fmt, list);
    va_end(list);
    return HN_FAIL(m->err, code, "%s: its pickle, byte %zu: %s", m->file, m->began, say);
}

/* Room for one more; NULL: told. */
static void *more(machine *m, many *a, size_t each, size_t most, const char *of, hone_status *st)
{
    if (a->n == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 64;
        void *p = a->n < most ? realloc(a->p, cap * each) : NULL;
        if (!p) {
            *st = a->n < most ? HN_FAIL(m->err, HONE_E_NOMEM, "%s: %zu %s of its pickle", m->file, cap, of)
                              : FAULT(m, HONE_E_FORMAT, "more than %zu %s", most, of);
            return NULL;
        }
        a->p = p;
        a->cap = cap;
    }
    *st = HONE_OK;
    return (char *)a->p + each * a->n++;
}

/* ---- the stack --------------------------------------------------------------------------------------- */

static value *stack(const machine *m) { return m->stack.p; }

static hone_status push(machine *m, value v)
{
    hone_status st;
    value *to = more(m, &m->stack, sizeof v, MAX_STACK, "values on the stack", &st);
    if (to) *to = v;
    return st;
}

static hone_status pop(machine *m, value *v)
{
    if (!m->stack.n || stack(m)[m->stack.n - 1].kind == MARK)
        return FAULT(m, HONE_E_FORMAT, "a value is missing on the stack");
    *v = stack(m)[--m->stack.n];
    return HONE_OK;
}

/* The place behind the last mark, which is taken away with all behind it by whoever asks. */
static hone_status to_mark(const machine *m, size_t *begin)
{
    for (size_t i = m->stack.n; i-- > 0;)
        if (stack(m)[i].kind == MARK) {
            *begin = i + 1;
            return HONE_OK;
        }
    return FAULT(m, HONE_E_FORMAT, "no mark on the stack");
}

/* ---- bytes ------------------------------------------------------------------------------------------- */

static hone_status take(machine *m, size_t n, const unsigned char **p)
{
    if (n > m->n - m->at) return FAULT(m, HONE_E_FORMAT, "%zu bytes follow, expected %zu: truncated?", m->n - m->at, n);
    *p = m->p + m->at;
    m->at += n;
    return HONE_OK;
}

/* Little-endian. */
static hone_status number(machine *m, size_t n, uint64_t *v)
{
    const unsigned char *p = NULL;
    hone_status st;
    TRY(take(m, n, &p));
    *v = 0;
    for (size_t i = 0; i < n; i++) *v |= (uint64_t)p[i] << 8 * i;
    return HONE_OK;
}

static hone_status text(machine *m, size_t n_size)
{
    const unsigned char *p = NULL;
    uint64_t n;
    hone_status st;
    TRY(number(m, n_size, &n));
    TRY(take(m, n, &p));
    return push(m, (value){ .kind = TEXT, .n = (uint32_t)n, .text = (const char *)p });
}

/* A whole number of n bytes, the last with the sign. */
static hone_status whole(machine *m, size_t n)
{
    uint64_t v;
    hone_status st;
    if (n > 8) return FAULT(m, HONE_E_FORMAT, "a whole number of %zu bytes, expected at most 8", n);
    TRY(number(m, n, &v));
    if (n && n < 8 && v >> (8 * n - 1)) v |= UINT64_MAX << 8 * n;
    return push(m, (value){ .kind = WHOLE, .i = (int64_t)v });
}

/* ---- names ------------------------------------------------------------------------------------------- */

typedef enum meaning { REBUILD_TENSOR, REBUILD_PARAMETER, DICTIONARY, A_STORAGE } meaning;
static const struct {
    const char *module, *name;
    meaning is;
    hn_type type;
    hn_ckpt_raw raw;
} names[] = {
    { "torch._utils", "_rebuild_tensor_v2", REBUILD_TENSOR, HN_F32, HN_RAW_NOT },
    { "torch._utils", "_rebuild_parameter", REBUILD_PARAMETER, HN_F32, HN_RAW_NOT },
    { "collections", "OrderedDict", DICTIONARY, HN_F32, HN_RAW_NOT },
    { "torch", "FloatStorage", A_STORAGE, HN_F32, HN_RAW_NOT },
    { "torch", "HalfStorage", A_STORAGE, HN_F16, HN_RAW_NOT },
    { "torch", "BFloat16Storage", A_STORAGE, HN_BF16, HN_RAW_NOT },
    { "torch", "DoubleStorage", A_STORAGE, HN_F64, HN_RAW_NOT },
    /* masks and places, which conversions leave out by name */
    { "torch", "BoolStorage", A_STORAGE, HN_I8, HN_RAW_BOOL },
    { "torch", "ByteStorage", A_STORAGE, HN_I8, HN_RAW_U8 },
    { "torch", "CharStorage", A_STORAGE, HN_I8, HN_RAW_I8 },
    { "torch", "ShortStorage", A_STORAGE, HN_I16, HN_RAW_I16 },
    { "torch", "IntStorage", A_STORAGE, HN_I32, HN_RAW_I32 },
    { "torch", "LongStorage", A_STORAGE, HN_I64, HN_RAW_I64 },
};

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && !memcmp(s.ptr, t, s.len); }

static hone_status named(machine *m, hone_str module, hone_str what)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is(module, names[i].module) && is(what, names[i].name)) return push(m, (value){ .kind = NAME, .at = i });
    return FAULT(m, HONE_E_UNSUPPORTED,
                 "names %s.%s, expected only tensors in a dictionary; hone runs nothing of a pickle: load the file "
                 "where you trust it and save its tensors as safetensors",
                 HN_ESC(module.ptr, module.len), HN_ESC(what.ptr, what.len));
}

static hone_status line(machine *m, hone_str *s)
{
    const unsigned char *p = m->p + m->at, *end = memchr(p, '\n', m->n - m->at);
    if (!end) return FAULT(m, HONE_E_FORMAT, "a name without an end: truncated?");
    *s = (hone_str){ (const char *)p, (size_t)(end - p) };
    m->at += s->len + 1;
    return HONE_OK;
}

static hone_status global(machine *m)
{
    hone_str module, what;
    hone_status st;
    TRY(line(m, &module));
    TRY(line(m, &what));
    return named(m, module, what);
}

static hone_status stack_global(machine *m)
{
    value module, what;
    hone_status st;
    TRY(pop(m, &what));
    TRY(pop(m, &module));
    if (module.kind != TEXT || what.kind != TEXT)
        return FAULT(m, HONE_E_FORMAT, "a name of %s and %s, expected texts", kind_name[module.kind],
                     kind_name[what.kind]);
    return named(m, (hone_str){ module.text, module.n }, (hone_str){ what.text, what.n });
}

/* ---- containers -------------------------------------------------------------------------------------- */

/* The last n values become one. */
static hone_status tuple(machine *m, size_t n)
{
    value v = { .kind = TUPLE, .n = (uint32_t)n, .at = m->parts.n };
    hone_status st;
    if (n > m->stack.n) return FAULT(m, HONE_E_FORMAT, "%zu values on the stack, expected %zu", m->stack.n, n);
    for (size_t i = m->stack.n - n; i < m->stack.n; i++) {
        const value part = stack(m)[i];
        if (part.kind == MARK) return FAULT(m, HONE_E_FORMAT, "a value is missing on the stack");
        if (part.nested >= v.nested) v.nested = (uint8_t)(part.nested + 1);
        value *to = more(m, &m->parts, sizeof *to, MAX_PARTS, "parts of tuples", &st);
        if (!to) return st;
        *to = part;
    }
    if (v.nested > MAX_NESTED) return FAULT(m, HONE_E_FORMAT, "more than %d tuples within each other", MAX_NESTED);
    m->stack.n -= n;
    return push(m, v);
}

static hone_status tuple_to_mark(machine *m)
{
    size_t begin = 0;
    hone_status st;
    TRY(to_mark(m, &begin));
    size_t n = m->stack.n - begin;
    memmove(stack(m) + begin - 1, stack(m) + begin, n * sizeof(value)); /* the mark goes */
    m->stack.n--;
    return tuple(m, n);
}

/* What is in lists is never asked for. */
static hone_status append(machine *m, size_t begin, size_t end)
{
    if (begin == 0 || stack(m)[begin - 1].kind != LIST)
        return FAULT(m, HONE_E_FORMAT, "appends to %s, expected a list",
                     begin ? kind_name[stack(m)[begin - 1].kind] : "nothing");
    m->stack.n = end;
    return HONE_OK;
}

/* Pairs [begin, n) of the stack go into what stands before `end`. */
static hone_status set_items(machine *m, size_t begin, size_t end)
{
    hone_status st;
    if (end == 0 || stack(m)[end - 1].kind != DICT)
        return FAULT(m, HONE_E_FORMAT, "sets a member of %s, expected a dictionary",
                     end ? kind_name[stack(m)[end - 1].kind] : "nothing");
    if ((m->stack.n - begin) % 2) return FAULT(m, HONE_E_FORMAT, "a key without a value");
    for (size_t i = begin; i < m->stack.n; i += 2) {
        const value *pair = &stack(m)[i];
        if (pair[0].kind == MARK || pair[1].kind == MARK)
            return FAULT(m, HONE_E_FORMAT, "a value is missing on the stack");
        item *to = more(m, &m->items, sizeof *to, MAX_ITEMS, "members of dictionaries", &st);
        if (!to) return st;
        *to = (item){ stack(m)[end - 1].at, pair[0], pair[1] };
    }
    m->stack.n = end;
    return HONE_OK;
}

static hone_status set_one(machine *m)
{
    if (m->stack.n < 3) return FAULT(m, HONE_E_FORMAT, "%zu values on the stack, expected 3", m->stack.n);
    return set_items(m, m->stack.n - 2, m->stack.n - 2);
}

static hone_status append_one(machine *m)
{
    if (m->stack.n < 2) return FAULT(m, HONE_E_FORMAT, "%zu values on the stack, expected 2", m->stack.n);
    return append(m, m->stack.n - 1, m->stack.n - 1);
}

static hone_status to_container(machine *m, bool list)
{
    size_t begin = 0;
    hone_status st;
    TRY(to_mark(m, &begin));
    return list ? append(m, begin - 1, begin - 1) : set_items(m, begin, begin - 1);
}

/* ---- the memo ---------------------------------------------------------------------------------------- */

static hone_status keep(machine *m, uint64_t at)
{
    hone_status st;
    if (!m->stack.n || stack(m)[m->stack.n - 1].kind == MARK)
        return FAULT(m, HONE_E_FORMAT, "a value is missing on the stack");
    if (at > m->memo.n)
        return FAULT(m, HONE_E_FORMAT, "keeps value %llu, expected the next one, %zu", (unsigned long long)at,
                     m->memo.n);
    if (at == m->memo.n && !more(m, &m->memo, sizeof(value), MAX_PARTS, "values kept", &st)) return st;
    ((value *)m->memo.p)[at] = stack(m)[m->stack.n - 1];
    return HONE_OK;
}

static hone_status get(machine *m, uint64_t at)
{
    if (at >= m->memo.n)
        return FAULT(m, HONE_E_FORMAT, "wants value %llu, expected one of the %zu kept", (unsigned long long)at,
                     m->memo.n);
    return push(m, ((value *)m->memo.p)[at]);
}

/* ---- tensors ----------------------------------------------------------------------------------------- */

static const value *part_of(const machine *m, value v, size_t i, kind want)
{
    if (v.kind != TUPLE || i >= v.n) return NULL; /* and then there are parts */
    const value *p = (const value *)m->parts.p + v.at + i;
    return p->kind == want && (want != WHOLE || p->i >= 0) ? p : NULL;
}

/* ("storage", type, key, where it was, elements) */
static hone_status persistent(machine *m)
{
    value id;
    hone_status st;
    TRY(pop(m, &id));
    const value *word = part_of(m, id, 0, TEXT), *type = part_of(m, id, 1, NAME), *key = part_of(m, id, 2, TEXT);
    const value *n = part_of(m, id, 4, WHOLE);
    if (id.kind != TUPLE || id.n != 5 || !word || !is((hone_str){ word->text, word->n }, "storage") || !type || !key ||
        !n || names[type->at].is != A_STORAGE)
        return FAULT(m, HONE_E_FORMAT, "refers to %s, expected (\"storage\", type, key, place, elements)",
                     kind_name[id.kind]);
    storage *s = more(m, &m->storages, sizeof *s, HN_CKPT_MAX_TENSORS, "storages", &st);
    if (!s) return st;
    *s = (storage){ { key->text, key->n }, names[type->at].type, names[type->at].raw, (uint64_t)n->i };
    return push(m, (value){ .kind = STORAGE, .at = m->storages.n - 1 });
}

/* (storage, first, shape, strides, requires_grad, hooks[, metadata]) */
static hone_status rebuild(machine *m, value args)
{
    const value *of = part_of(m, args, 0, STORAGE), *first = part_of(m, args, 1, WHOLE);
    const value *shape = part_of(m, args, 2, TUPLE), *strides = part_of(m, args, 3, TUPLE);
    hone_status st;
    if (args.n < 6 || args.n > 7 || !of || !first || !shape || !strides || shape->n != strides->n)
        return FAULT(m, HONE_E_FORMAT,
                     "a tensor of other parts than (storage, first, shape, strides, gradient, hooks)");
    if (shape->n > HN_CKPT_MAX_DIM)
        return FAULT(m, HONE_E_FORMAT, "a tensor of %u dimensions, expected at most %d", shape->n, HN_CKPT_MAX_DIM);
    hn_torch_tensor *t = more(m, &m->tensors, sizeof *t, HN_CKPT_MAX_TENSORS, "tensors", &st);
    if (!t) return st;
    const storage *s = (const storage *)m->storages.p + of->at;
    *t = (hn_torch_tensor){ .key = s->key,
                            .type = s->type,
                            .raw = s->raw,
                            .n_stored = s->n,
                            .first = (uint64_t)first->i,
                            .n_dim = (int32_t)shape->n,
                            .ne = { 1, 1, 1, 1, 1, 1, 1, 1 } };
    for (uint32_t i = 0; i < shape->n; i++) {
        const value *n = part_of(m, *shape, shape->n - 1 - i, WHOLE),
                    *step = part_of(m, *strides, shape->n - 1 - i, WHOLE);
        if (!n || !step) return FAULT(m, HONE_E_FORMAT, "a tensor whose shape or strides are no whole numbers from 0");
        t->ne[i] = (uint64_t)n->i;
        t->stride[i] = (uint64_t)step->i;
    }
    return push(m, (value){ .kind = TENSOR, .at = m->tensors.n - 1 });
}

/* What Python would call; here a word tells what comes of it. */
static hone_status reduce(machine *m)
{
    value args = { 0 }, what = { 0 };
    hone_status st;
    TRY(pop(m, &args));
    TRY(pop(m, &what));
    if (what.kind != NAME || args.kind != TUPLE)
        return FAULT(m, HONE_E_UNSUPPORTED, "calls %s with %s; hone calls nothing", kind_name[what.kind],
                     kind_name[args.kind]);
    switch (names[what.at].is) {
    case REBUILD_TENSOR: return rebuild(m, args);
    case REBUILD_PARAMETER: {
        const value *t = part_of(m, args, 0, TENSOR);
        return t ? push(m, *t) : FAULT(m, HONE_E_FORMAT, "a parameter that is no tensor");
    }
    case DICTIONARY:
        if (args.n) return FAULT(m, HONE_E_FORMAT, "a dictionary made of %u values, expected none", args.n);
        return push(m, (value){ .kind = DICT, .at = m->n_dict++ });
    case A_STORAGE: break;
    }
    return FAULT(m, HONE_E_UNSUPPORTED, "calls %s.%s; hone calls nothing", names[what.at].module, names[what.at].name);
}

/* The state of a dictionary (versions of modules) is dropped. */
static hone_status build(machine *m)
{
    value state;
    hone_status st;
    TRY(pop(m, &state));
    if (m->stack.n && stack(m)[m->stack.n - 1].kind == DICT) return HONE_OK;
    return FAULT(m, HONE_E_UNSUPPORTED, "sets the state of %s, expected a dictionary",
                 m->stack.n ? kind_name[stack(m)[m->stack.n - 1].kind] : "nothing");
}

/* ---- instructions ------------------------------------------------------------------------------------ */

static const struct {
    unsigned char op;
    const char *name;
} refused[] = {
    { '0', "POP" },
    { '1', "POP_MARK" },
    { '2', "DUP" },
    { 'F', "FLOAT" },
    { 'I', "INT" },
    { 'L', "LONG" },
    { 'P', "PERSID" },
    { 'S', "STRING" },
    { 'T', "BINSTRING" },
    { 'U', "SHORT_BINSTRING" },
    { 'V', "UNICODE" },
    { 'd', "DICT" },
    { 'g', "GET" },
    { 'i', "INST" },
    { 'l', "LIST" },
    { 'o', "OBJ" },
    { 'p', "PUT" },
    { 'B', "BINBYTES" },
    { 'C', "SHORT_BINBYTES" },
    { 0x81, "NEWOBJ" },
    { 0x82, "EXT1" },
    { 0x83, "EXT2" },
    { 0x84, "EXT4" },
    { 0x8b, "LONG4" },
    { 0x8d, "BINUNICODE8" },
    { 0x8e, "BINBYTES8" },
    { 0x8f, "EMPTY_SET" },
    { 0x90, "ADDITEMS" },
    { 0x91, "FROZENSET" },
    { 0x92, "NEWOBJ_EX" },
    { 0x96, "BYTEARRAY8" },
    { 0x97, "NEXT_BUFFER" },
    { 0x98, "READONLY_BUFFER" },
};

static hone_status refuse(const machine *m, unsigned char op)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].op == op)
            return FAULT(
                m, HONE_E_UNSUPPORTED,
                "instruction %s, which a dictionary of tensors does not need: load the file where you trust it "
                "and save its tensors as safetensors",
                refused[i].name);
    return FAULT(m, HONE_E_FORMAT, "no instruction 0x%02x", op);
}

static hone_status protocol(machine *m)
{
    uint64_t v;
    hone_status st;
    TRY(number(m, 1, &v));
    return v >= 2 && v <= 5 ? HONE_OK : FAULT(m, HONE_E_UNSUPPORTED, "protocol %d, expected 2 to 5", (int)v);
}

static hone_status frame(machine *m)
{
    uint64_t n;
    hone_status st;
    TRY(number(m, 8, &n));
    if (n <= m->n - m->at) return HONE_OK;
    return FAULT(m, HONE_E_FORMAT, "a frame of %llu bytes, of which %zu follow: truncated?", (unsigned long long)n,
                 m->n - m->at);
}

/* Those that push what the bytes say. */
static hone_status scalar(machine *m, unsigned char op)
{
    const unsigned char *p = NULL;
    uint64_t n;
    hone_status st;
    switch (op) {
    case 'N': return push(m, (value){ .kind = NOTHING });
    case 0x88:
    case 0x89: return push(m, (value){ .kind = TRUTH, .i = op == 0x88 });
    case 'J': return whole(m, 4);
    case 'K':
    case 'M': TRY(number(m, op == 'K' ? 1 : 2, &n)); return push(m, (value){ .kind = WHOLE, .i = (int64_t)n });
    case 0x8a: TRY(number(m, 1, &n)); return whole(m, n);
    case 'G': TRY(take(m, 8, &p)); return push(m, (value){ .kind = REAL });
    case 'X': return text(m, 4);
    case 0x8c: return text(m, 1);
    default: return refuse(m, op);
    }
}

static hone_status step(machine *m)
{
    uint64_t n;
    hone_status st;
    m->began = m->at;
    TRY(number(m, 1, &n));
    unsigned char op = (unsigned char)n;
    switch (op) {
    case 0x80: return protocol(m);
    case 0x95: return frame(m);
    case '.': m->stopped = true; return HONE_OK;
    case '(': return push(m, (value){ .kind = MARK });
    case 'c': return global(m);
    case 0x93: return stack_global(m);
    case 't': return tuple_to_mark(m);
    case ')': return tuple(m, 0);
    case 0x85:
    case 0x86:
    case 0x87: return tuple(m, op - 0x84u);
    case ']': return push(m, (value){ .kind = LIST });
    case 'a': return append_one(m);
    case 'e': return to_container(m, true);
    case '}': return push(m, (value){ .kind = DICT, .at = m->n_dict++ });
    case 's': return set_one(m);
    case 'u': return to_container(m, false);
    case 'q':
    case 'r': TRY(number(m, op == 'q' ? 1 : 4, &n)); return keep(m, n);
    case 'h':
    case 'j': TRY(number(m, op == 'h' ? 1 : 4, &n)); return get(m, n);
    case 0x94: return keep(m, m->memo.n);
    case 'Q': return persistent(m);
    case 'R': return reduce(m);
    case 'b': return build(m);
    default: return scalar(m, op);
    }
}

/* The dictionary that is left, member by member. */
static hone_status collect(machine *m, hn_torch_tensor **out, size_t *n_out)
{
    const item *it = m->items.p;
    size_t n = 0;
    if (m->stack.n != 1 || stack(m)[0].kind != DICT)
        return FAULT(m, HONE_E_FORMAT, "ends with %s, expected a dictionary of tensors",
                     m->stack.n == 1 ? kind_name[stack(m)[0].kind] : "another stack than one value");
    size_t root = stack(m)[0].at;
    for (size_t i = 0; i < m->items.n; i++) n += it[i].dict == root;
    hn_torch_tensor *t = *out = malloc((n + 1) * sizeof *t);
    if (!t) return HN_FAIL(m->err, HONE_E_NOMEM, "%s: %zu tensors", m->file, n);
    for (size_t i = 0; i < m->items.n; i++) {
        if (it[i].dict != root) continue;
        if (it[i].key.kind != TEXT)
            return FAULT(m, HONE_E_FORMAT, "a member whose key is %s, expected a name", kind_name[it[i].key.kind]);
        if (it[i].v.kind != TENSOR)
            return FAULT(
                m, HONE_E_UNSUPPORTED,
                "its member \"%s\" is %s, expected a tensor: a checkpoint of training? save its state_dict alone",
                HN_ESC(it[i].key.text, it[i].key.n), kind_name[it[i].v.kind]);
        *t = ((hn_torch_tensor *)m->tensors.p)[it[i].v.at];
        t->name = (hone_str){ it[i].key.text, it[i].key.n };
        t++;
    }
    *n_out = n;
    return HONE_OK;
}

hone_status hn_torch_pickle(hn_torch_tensor **out, size_t *n_out, const unsigned char *p, size_t n, const char *name,
                            hone_error *err)
{
    machine m = { .p = p, .n = n, .file = name, .err = err };
    hone_status st = HONE_OK;
    *out = NULL;
    *n_out = 0;
    while (st == HONE_OK && !m.stopped) st = step(&m);
    if (st == HONE_OK && m.at != n) st = FAULT(&m, HONE_E_FORMAT, "%zu bytes follow its end, expected none", n - m.at);
    if (st == HONE_OK) st = collect(&m, out, n_out);
    if (st != HONE_OK) {
        free(*out);
        *out = NULL;
    }
    many *all[] = { &m.stack, &m.memo, &m.parts, &m.items, &m.storages, &m.tensors };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->p);
    return st;
}
