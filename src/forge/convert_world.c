/* convert_world: the RWKV World vocabulary from its published text file into GGUF's form, and back.
 * A line is an id, a literal of Python (str or bytes) and the number of bytes it stands for. GGUF
 * holds the inside of Python's repr of those bytes, token 0 is end of text, and what the embedding
 * has more of is padded. Knows the literals; refuses to know how text is encoded. */
#include "forge/convert.h"

#include <stdlib.h>

enum { MAX_FILE = 64 << 20, MAX_TOKEN = 4096, CONTROL = 3, NORMAL = 1, UNUSED = 5, EOT = 261 };

static const unsigned char published[32] = {
    /* of rwkv_vocab_v20230424.txt */
    0xe6, 0xde, 0xe3, 0xd4, 0xe3, 0x1b, 0x4d, 0x5c, 0x40, 0xac, 0x99, 0x50, 0x8a, 0xc6, 0xc7, 0x01,
    0xce, 0xef, 0x4b, 0xed, 0x68, 0x1b, 0xf2, 0x16, 0x7c, 0xe9, 0xa9, 0x08, 0x55, 0x2b, 0xca, 0x89,
};

/* ---- literals ---------------------------------------------------------------------------- */

static int hex(const char *p, const char *end, int n)
{
    int v = 0;
    if (end - p < n) return -1;
    for (int i = 0; i < n; i++) {
        char c = p[i];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0) return -1;
        v = v << 4 | d;
    }
    return v;
}

static bool put(char *dst, size_t *n, uint32_t c, bool bytes)
{
    if (*n > MAX_TOKEN - 4) return false;
    char *w = dst + *n;
    if (bytes || c < 0x80) *w++ = (char)c;
    else if (c < 0x800) *w++ = (char)(0xC0 | c >> 6), *w++ = (char)(0x80 | (c & 63));
    else {
        if (c < 0x10000) *w++ = (char)(0xE0 | c >> 12);
        else *w++ = (char)(0xF0 | c >> 18), *w++ = (char)(0x80 | (c >> 12 & 63));
        *w++ = (char)(0x80 | (c >> 6 & 63));
        *w++ = (char)(0x80 | (c & 63));
    }
    *n = (size_t)(w - dst);
    return true;
}

/* The escape behind a backslash, of docs.python.org/3/reference/lexical_analysis.html; -1: none. */
static int32_t escape(const char **p, const char *end, bool bytes)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    if (*p == end) return -1;
    char c = *(*p)++;
    const char *k = c ? strchr(from, c) : NULL;
    int32_t v = -1;
    if (k) return to[k - from];
    if (c >= '0' && c <= '7') { /* one to three octal digits */
        v = c - '0';
        for (int i = 0; i < 2 && *p < end && **p >= '0' && **p <= '7'; i++) v = v << 3 | (*(*p)++ - '0');
        return bytes ? v & 255 : v;
    }
    int n = c == 'x' ? 2 : bytes ? 0 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!n) return -1;
    if (n == 8 && (end - *p < 2 || (*p)[0] != '0' || (*p)[1] != '0')) return -1; /* beyond Unicode, and fits an int */
    v = hex(*p, end, n);
    *p += n;
    return v > 0x10FFFF || (v >= 0xD800 && v < 0xE000) ? -1 : v;
}

/* The bytes of a literal; NULL, or what is wrong. */
static const char *literal(char dst[MAX_TOKEN], size_t *n, const char *p, const char *end)
{
    bool bytes = p < end && *p == 'b';
    *n = 0;
    p += bytes;
    if (end - p < 2 || (*p != '\'' && *p != '"') || end[-1] != *p) return "expected '…', \"…\", b'…' or b\"…\"";
    char quote = *p++;
    for (end--; p < end;) {
        unsigned char c = (unsigned char)*p++;
        int32_t v = c;
        if (c == (unsigned char)quote) return "a quote within the literal";
        if (c == '\\' && (v = escape(&p, end, bytes)) < 0) return "an escape that Python does not know";
        if (bytes && c >= 0x80) return "bytes beyond ASCII in a b'' literal";
        if (!put(dst, n, (uint32_t)v, bytes || (c != '\\' && c >= 0x80))) return "a token of more than 4092 bytes";
    }
    return *n ? NULL : "an empty token";
}

/* The inside of repr(bytes); at most four times as long. */
static char *write_repr(char *w, const char *s, size_t n)
{
    bool escape_quote = memchr(s, '\'', n) && memchr(s, '"', n);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        const char *k = c ? strchr("\tt\nn\rr", c) : NULL;
        if (c == '\\' || (c == '\'' && escape_quote)) *w++ = '\\', *w++ = (char)c;
        else if (k && c < 0x20) *w++ = '\\', *w++ = k[1];
        else if (c >= 0x20 && c < 0x7F) *w++ = (char)c;
        else {
            *w++ = '\\', *w++ = 'x';
            *w++ = "0123456789abcdef"[c >> 4];
            *w++ = "0123456789abcdef"[c & 15];
        }
    }
    return w;
}

/* ---- the file -------------------------------------------------------------------------------- */

typedef struct words {
    char *text, *store;
    size_t len;
    hone_str *token;
    int32_t *type;
    hn_index ix;
    uint64_t n;
} words;

static hone_status bad_line(const char *path, uint64_t line, const char *why, const char *s, size_t n, hone_error *err)
{
    return HN_FAIL(
        err, HONE_E_FORMAT,
        "%s: line %llu: %s, seen %s; expected lines of a World vocabulary: id, literal of Python, number of bytes",
        path, (unsigned long long)line, why, HN_ESC(s, n < 100 ? n : 100));
}

static bool decimal(const char *p, const char *end, uint64_t *v)
{
    *v = 0;
    if (p == end || end - p > 9) return false;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9') return false;
        *v = 10 * *v + (uint64_t)(*p - '0');
    }
    return true;
}

/* Line number v->n, which is also the id. */
static hone_status read_line(words *v, const char *p, const char *end, char **w, const char *path, hone_error *err)
{
    char token[MAX_TOKEN];
    size_t n, len = (size_t)(end - p);
    uint64_t id, want;
    int64_t dup;
    const char *first = memchr(p, ' ', len), *last = end, *fault;
    while (last > p && *last != ' ') last--;
    if (!first || last <= first) return bad_line(path, v->n, "fewer than three fields", p, len, err);
    if (!decimal(p, first, &id) || id != v->n)
        return bad_line(path, v->n, "an id that is not the line's number", p, len, err);
    if (!decimal(last + 1, end, &want)) return bad_line(path, v->n, "no number of bytes", p, len, err);
    if ((fault = literal(token, &n, first + 1, last))) return bad_line(path, v->n, fault, p, len, err);
    if (n != want) return bad_line(path, v->n, "another number of bytes than the literal has", p, len, err);
    char *start = *w;
    *w = write_repr(*w, token, n);
    v->token[v->n] = (hone_str){ start, (size_t)(*w - start) };
    v->type[v->n] = NORMAL;
    if (!hn_index_add(&v->ix, v->token, sizeof *v->token, (uint32_t)v->n, &dup))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu tokens", path, (unsigned long long)v->n);
    if (dup >= 0) return bad_line(path, v->n, "a token that was there before", p, len, err);
    v->n++;
    return HONE_OK;
}

static hone_status read_words(words *v, const char *path, uint64_t n_vocab, const char *ckpt, hone_error *err)
{
    hone_status st = hn_source_text(&v->text, &v->len, path, MAX_FILE, err);
    if (st != HONE_OK) return st;
    v->store = malloc(4 * v->len + 20 * n_vocab + 1); /* "\xHH" of each byte, and "[PADn]" */
    v->token = calloc(n_vocab, sizeof *v->token);
    v->type = calloc(n_vocab, sizeof *v->type);
    if (!v->store || !v->token || !v->type)
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu tokens", path, (unsigned long long)n_vocab);
    const char *wrong = hn_gguf_name_fault(v->text, v->len, SIZE_MAX);
    if (wrong) return HN_FAIL(err, HONE_E_FORMAT, "%s: %s, expected a World vocabulary", path, wrong);
    char *w = v->store, *end = v->text + v->len;
    v->token[0] = (hone_str){ "<s>", 3 };
    v->type[0] = CONTROL;
    v->n = 1;
    for (char *p = v->text; p < end;) {
        char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;
        if (v->n == n_vocab)
            return HN_FAIL(
                err, HONE_E_FORMAT,
                "%s: more than %llu tokens, but the embedding of %s has %llu rows: they do not belong together", path,
                (unsigned long long)(n_vocab - 1), ckpt, (unsigned long long)n_vocab);
        if ((st = read_line(v, p, stop > p && stop[-1] == '\r' ? stop - 1 : stop, &w, path, err)) != HONE_OK) return st;
        p = nl ? nl + 1 : end;
    }
    for (uint64_t id = v->n; id < n_vocab; id++) {
        v->token[id] = (hone_str){ w, (size_t)snprintf(w, 20, "[PAD%llu]", (unsigned long long)id) };
        v->type[id] = UNUSED;
        w += v->token[id].len;
    }
    return HONE_OK;
}

hone_status hn_world_put(hn_gguf_writer *w, const char *path, uint64_t n_vocab, hone_str chat_template,
                         const char *ckpt, hone_error *err)
{
    words v = { 0 };
    unsigned char sum[32];
    hn_sha256 sha;
    hone_status st;
#define TRY(x)                               \
    do {                                     \
        if ((st = (x)) != HONE_OK) goto end; \
    } while (0)
    TRY(read_words(&v, path, n_vocab, ckpt, err));
    hn_sha256_init(&sha);
    hn_sha256_add(&sha, v.text, v.len);
    hn_sha256_end(&sha, sum);
    hn_log("%s: %llu tokens, %s", path, (unsigned long long)v.n,
           memcmp(sum, published, sizeof sum) ? "not the published vocabulary" : "the published vocabulary");
    TRY(hn_gguf_put_str(w, "tokenizer.ggml.model", "rwkv", 4, err));
    TRY(hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", v.token, n_vocab, err));
    TRY(hn_gguf_put_array(w, "tokenizer.ggml.token_type", HONE_KV_I32, v.type, n_vocab, err));
    TRY(hn_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 0, err));
    TRY(hn_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 0, err));
    if (v.n > EOT) TRY(hn_gguf_put_u32(w, "tokenizer.ggml.eot_token_id", EOT, err)); /* "\n\n" */
    TRY(hn_gguf_put_str(w, "tokenizer.chat_template", chat_template.ptr, chat_template.len, err));
#undef TRY
end:
    free(v.text);
    free(v.store);
    free(v.token);
    free(v.type);
    hn_index_free(&v.ix);
    return st;
}

/* ---- and back ------------------------------------------------------------------------------------------------ */

/* The bytes of what stands inside a repr; false: no such. */
static bool read_repr(char dst[MAX_TOKEN], size_t *n, hone_str s)
{
    const char *p = s.ptr, *end = p + s.len;
    *n = 0;
    while (p < end) {
        int32_t v = (unsigned char)*p++;
        if (v == '\\' && (v = escape(&p, end, true)) < 0) return false;
        if (*n > MAX_TOKEN - 4) return false;
        dst[(*n)++] = (char)v;
    }
    return *n > 0;
}

/* A literal of Python: of text where all of it is ASCII, else of bytes. At most four times as long, and 4 more. */
static char *write_literal(char *w, const char *s, size_t n)
{
    bool ascii = true;
    for (size_t i = 0; i < n; i++) ascii &= (unsigned char)s[i] < 0x80;
    char quote = memchr(s, '\'', n) && !memchr(s, '"', n) ? '"' : '\'';
    if (!ascii) *w++ = 'b';
    *w++ = quote;
    w = write_repr(w, s, n);
    *w++ = quote;
    return w;
}

/* Unused tokens at the end are the padding. */
static uint64_t count_words(const hn_gguf_array *types)
{
    uint64_t n = types->count;
    int32_t type = UNUSED;
    while (n > 0) {
        memcpy(&type, types->data + 4 * (n - 1), 4);
        if (type != UNUSED) break;
        n--;
    }
    return n;
}

static hone_status check_ids(const hn_gguf *g, uint64_t n, hone_error *err)
{
    static const struct {
        const char *key;
        uint32_t id;
    } ids[] = { { "tokenizer.ggml.bos_token_id", 0 },
                { "tokenizer.ggml.eos_token_id", 0 },
                { "tokenizer.ggml.eot_token_id", EOT } };
    hone_status st;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        uint32_t id = ids[i].id;
        if ((st = hn_gguf_get_u32(g, ids[i].key, &id, NULL, err)) != HONE_OK) return st;
        if (id != ids[i].id && n > EOT)
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %u, expected %u as every World vocabulary has it",
                           hn_gguf_path(g), ids[i].key, id, ids[i].id);
    }
    return HONE_OK;
}

static hone_status get_words(const hn_gguf *g, uint64_t n_vocab, hn_gguf_array *tokens, uint64_t *n, hone_error *err)
{
    hn_gguf_array types = { 0 };
    bool found = false, typed = false;
    hone_status st = hn_gguf_get_array(g, "tokenizer.ggml.tokens", tokens, &found, err);
    if (st == HONE_OK) st = hn_gguf_get_array(g, "tokenizer.ggml.token_type", &types, &typed, err);
    if (st != HONE_OK) return st;
    if (!found || !typed || tokens->elem_type != HONE_KV_STRING || types.elem_type != HONE_KV_I32 ||
        tokens->count != n_vocab || types.count != n_vocab)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: its tokenizer has %llu tokens and %llu types, expected %llu texts and numbers",
                       hn_gguf_path(g), (unsigned long long)tokens->count, (unsigned long long)types.count,
                       (unsigned long long)n_vocab);
    *n = count_words(&types);
    return check_ids(g, *n, err);
}

hone_status hn_world_write(const hn_gguf *g, uint64_t n_vocab, char **text, size_t *n, hone_error *err)
{
    enum { LINE = 48 };
    hn_gguf_array a = { 0 };
    uint64_t n_word = 0, pos = 0;
    char token[MAX_TOKEN];
    hone_str s;
    hone_status st = get_words(g, n_vocab, &a, &n_word, err);
    if (st != HONE_OK) return st;
    if (!(*text = malloc(4 * a.n_bytes + LINE * n_word + 1)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu tokens", hn_gguf_path(g), (unsigned long long)n_word);
    char *w = *text;
    for (uint64_t id = 0; id < n_word; id++) {
        size_t len;
        bool whole = hn_gguf_next_str(&a, &pos, &s);
        if (id == 0) continue; /* the end of a text */
        if (!whole || !read_repr(token, &len, s)) {
            free(*text);
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: tokenizer.ggml.tokens[%llu] is \"%s\", expected the inside of Python's repr of bytes",
                           hn_gguf_path(g), (unsigned long long)id, HN_ESC(s.ptr, whole ? s.len : 0));
        }
        w += snprintf(w, 24, "%llu ", (unsigned long long)id);
        w = write_literal(w, token, len);
        w += snprintf(w, 24, " %zu\n", len);
    }
    *n = (size_t)(w - *text);
    return HONE_OK;
}
