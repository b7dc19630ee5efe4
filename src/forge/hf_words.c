/* hf_words: tokens by id and by text while a folder's vocabulary is read. Ids are bounded before anything is allocated
 * by them: by the embedding, or by the bytes of the file that names them. Refuses to know formats. */
#define _GNU_SOURCE
#include "forge/hf_words.h"

#include "base/source.h"
#include "text/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

hone_status hn_hf_words_begin(hn_hf_words *w, const hn_hf_tokenizer *t, hone_error *err)
{
    *w = (hn_hf_words){ .t = t, .path = t->folder, .most = t->n_vocab };
    w->lowercase = w->strip_accents = w->add_bos = w->add_eos = w->add_sep = -1;
    w->bos = w->eos = w->unk = w->pad = w->first = w->last = -1;
    w->space_prefix = true;
    w->arena = hn_arena_new();
    return w->arena ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: tokenizer", t->folder);
}

void hn_hf_words_spaces(hn_hf_words *w, bool prefix, bool merges)
{
    w->space_prefix = prefix;
    w->merge_spaces = merges;
    if (merges && !prefix)
        hn_hf_words_note(w, "%s: no space goes before the text; where spaces are merged, one does here as in llama.cpp",
                         w->path);
}

void hn_hf_words_free(hn_hf_words *w)
{
    free(w->tok);
    free(w->score);
    free(w->type);
    free(w->merge);
    free(w->scratch);
    hn_index_free(&w->ix);
    hn_arena_free(w->arena);
}

void hn_hf_words_note(const hn_hf_words *w, const char *format, ...)
{
    char text[1024];
    va_list ap;
    if (!w->t->note) return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    w->t->note(w->t->note_arg, text);
}

/* ---- files ----------------------------------------------------------------------------------- */

static hone_status path_of(const char **out, const hn_hf_words *w, const char *name, hone_error *err)
{
    size_t n = strlen(w->t->folder) + strlen(name) + 2;
    char *path = hn_arena_alloc(w->arena, n);
    if (!path) return HN_FAIL(err, HONE_E_NOMEM, "%s: path of %s", w->t->folder, name);
    snprintf(path, n, "%s/%s", w->t->folder, name);
    *out = path;
    return HONE_OK;
}

hone_status hn_hf_words_file(char **text, size_t *n, hn_hf_words *w, const char *name, hone_error *err)
{
    const char *path = NULL;
    hn_source s;
    *text = NULL;
    *n = 0;
    hone_status st = path_of(&path, w, name, err);
    if (st != HONE_OK) return st;
    if (access(path, F_OK) != 0) {
        struct stat sb;
        if (lstat(path, &sb) != 0) return HONE_OK;
        return HN_FAIL(err, HONE_E_IO, "%s: a link to a file that is not there; fetch it, or remove the link",
                       HN_ESC(path, strlen(path)));
    }
    w->path = path;
    if ((st = hn_source_open(&s, path, err)) != HONE_OK) return st;
    if (s.size > HN_HF_FILE)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes, expected at most %d", path, (unsigned long long)s.size,
                     HN_HF_FILE);
    char *p = st == HONE_OK ? hn_arena_alloc(w->arena, s.size + 1) : NULL;
    if (st == HONE_OK && !p) st = HN_FAIL(err, HONE_E_NOMEM, "%s: %llu bytes", path, (unsigned long long)s.size);
    if (st == HONE_OK) st = hn_source_read(&s, 0, p, s.size, err);
    if (st == HONE_OK) *text = p, *n = s.size;
    hn_source_close(&s);
    return st;
}

hone_status hn_hf_words_tree(json_t **out, hn_hf_words *w, const char *name, hone_error *err)
{
    static const hn_json_rules rules = { .flags = HN_JSON_PYTHON | HN_JSON_BIG | HN_JSON_ALLOW_NUL };
    char *text;
    size_t n;
    *out = NULL;
    hone_status st = hn_hf_words_file(&text, &n, w, name, err);
    if (st != HONE_OK || !text) return st;
    st = hn_json_tree(out, text, n, &rules, w->path, err);
    if (st == HONE_OK && !json_is_object(*out)) {
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: %s, expected an object", w->path, hn_json_kind(*out));
        json_decref(*out);
        *out = NULL;
    }
    return st;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

void hn_hf_words_room(hn_hf_words *w, size_t n_bytes)
{
    if (!w->t->n_vocab && n_bytes > w->most) w->most = n_bytes < INT32_MAX / 4 ? n_bytes : INT32_MAX / 4;
}

static hone_status grow(hn_hf_words *w, uint64_t id, hone_error *err)
{
    if (id < w->cap) return HONE_OK;
    uint64_t cap = w->cap ? w->cap : 256;
    while (cap <= id) cap *= 2;
    void *p;
    bool ok = true;
    if ((p = realloc(w->tok, cap * sizeof *w->tok))) w->tok = p;
    else ok = false;
    if (ok && (p = realloc(w->score, cap * sizeof *w->score))) w->score = p;
    else ok = false;
    if (ok && (p = realloc(w->type, cap * sizeof *w->type))) w->type = p;
    else ok = false;
    if (!ok) return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu tokens", w->path, (unsigned long long)cap);
    memset(w->tok + w->cap, 0, (cap - w->cap) * sizeof *w->tok);
    memset(w->score + w->cap, 0, (cap - w->cap) * sizeof *w->score);
    memset(w->type + w->cap, 0, (cap - w->cap) * sizeof *w->type);
    w->cap = cap;
    return HONE_OK;
}

static hone_status beyond(const hn_hf_words *w, uint64_t id, hone_str s, hone_error *err)
{
    if (w->t->n_vocab)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: token \"%s\" has id %llu, but the embedding has %llu rows; expected ids below that: the "
                       "tokenizer and the weights do not belong together",
                       w->path, HN_ESC(s.ptr, s.len), (unsigned long long)id, (unsigned long long)w->most);
    return HN_FAIL(err, HONE_E_FORMAT, "%s: token \"%s\" has id %llu, expected ids without large gaps, below %llu",
                   w->path, HN_ESC(s.ptr, s.len), (unsigned long long)id, (unsigned long long)w->most);
}

hone_status hn_hf_words_set(hn_hf_words *w, uint64_t id, hone_str text, int32_t type, float score, hone_error *err)
{
    if (id >= w->most) return beyond(w, id, text, err);
    hone_status st = grow(w, id, err);
    if (st != HONE_OK) return st;
    if (w->tok[id].ptr)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: id %llu is \"%s\" and \"%s\"; expected one text for an id", w->path,
                       (unsigned long long)id, HN_ESC(w->tok[id].ptr, w->tok[id].len), HN_ESC(text.ptr, text.len));
    int64_t dup;
    w->tok[id] = text;
    if (!hn_index_add(&w->ix, w->tok, sizeof *w->tok, (uint32_t)id, &dup))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: index of tokens", w->path);
    if (dup >= 0) {
        w->tok[id] = (hone_str){ NULL, 0 };
        return HN_FAIL(err, HONE_E_FORMAT, "%s: \"%s\" has the ids %lld and %llu; expected one id for a text", w->path,
                       HN_ESC(text.ptr, text.len), (long long)dup, (unsigned long long)id);
    }
    w->type[id] = type;
    w->score[id] = score;
    if (id >= w->n) w->n = id + 1;
    return HONE_OK;
}

static bool begins(hone_str s, const char *t) { return s.len >= strlen(t) && memcmp(s.ptr, t, strlen(t)) == 0; }
static bool ends(hone_str s, const char *t)
{
    size_t n = strlen(t);
    return s.len >= n && memcmp(s.ptr + s.len - n, t, n) == 0;
}
static bool same(hone_str s, const char *t) { return s.len == strlen(t) && memcmp(s.ptr, t, s.len) == 0; }

/* Texts that structure a prompt whatever the folder says of them (ggml-org/llama.cpp:convert_hf_to_gguf.py). */
static bool looks_special(hone_str s)
{
    return same(s, "<pad>") || same(s, "<mask>") || same(s, "<2mass>") || same(s, "[@BOS@]") ||
           (begins(s, "<|") && ends(s, "|>")) || (begins(s, "<\xEF\xBD\x9C") && ends(s, "\xEF\xBD\x9C>")) ||
           (begins(s, "<unused") && ends(s, ">"));
}

hone_status hn_hf_words_add(hn_hf_words *w, uint64_t id, hone_str text, bool special, hone_error *err)
{
    int32_t type = special || looks_special(text) ? HN_HF_CONTROL : HN_HF_USER;
    if (!text.len) return HN_FAIL(err, HONE_E_FORMAT, "%s: added token %llu is empty", w->path, (unsigned long long)id);
    if (w->t->n_vocab && id >= w->most) {
        if (!w->beyond.ptr) w->beyond = text, w->beyond_id = id;
        return HONE_OK;
    }
    if (id < w->n && w->tok[id].ptr) {
        hone_str old = w->tok[id];
        if (old.len != text.len || memcmp(old.ptr, text.ptr, text.len) != 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: added token %llu is \"%s\", but the vocabulary has \"%s\" there",
                           w->path, (unsigned long long)id, HN_ESC(text.ptr, text.len), HN_ESC(old.ptr, old.len));
        if (w->type[id] != HN_HF_UNKNOWN && w->type[id] != HN_HF_BYTE) w->type[id] = type;
        if (w->form == HN_HF_SPM && !w->scored && w->type[id] == type && w->score[id] == 0.0f) w->score[id] = -1000.0f;
        return HONE_OK;
    }
    return hn_hf_words_set(w, id, text, type, w->form == HN_HF_SPM ? -1000.0f : 0.0f, err);
}

int32_t hn_hf_words_find(const hn_hf_words *w, const char *s, size_t n)
{
    return w->ix.n ? (int32_t)hn_index_find(&w->ix, w->tok, sizeof *w->tok, s, n) : -1;
}

/* ---- merges ---------------------------------------------------------------------------------- */

hone_status hn_hf_words_merge(hn_hf_words *w, hone_str pair, hone_error *err)
{
    if (w->n_merge == w->cap_merge) {
        uint64_t cap = w->cap_merge ? 2 * w->cap_merge : 1024;
        hone_str *p = realloc(w->merge, cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu merges", w->path, (unsigned long long)cap);
        w->merge = p;
        w->cap_merge = cap;
    }
    w->merge[w->n_merge++] = pair;
    return HONE_OK;
}

static hone_status bad_merge(const hn_hf_words *w, uint64_t i, const char *what, hone_error *err)
{
    return HN_FAIL(err, HONE_E_FORMAT, "%s: merge %llu is \"%s\", %s", w->path, (unsigned long long)i,
                   HN_ESC(w->merge[i].ptr, w->merge[i].len), what);
}

hone_status hn_hf_words_merged(hn_hf_words *w, bool scores, hone_error *err)
{
    for (uint64_t i = 0; i < w->n_merge; i++) {
        hone_str m = w->merge[i];
        const char *sp = m.len > 1 ? memchr(m.ptr + 1, ' ', m.len - 1) : NULL;
        size_t left = sp ? (size_t)(sp - m.ptr) : 0, right = sp ? m.len - left - 1 : 0;
        if (!right || memchr(sp + 1, ' ', right))
            return bad_merge(w, i, "expected two parts with one space between", err);
        if (m.len > w->n_scratch) {
            char *p = realloc(w->scratch, 2 * m.len);
            if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: merge %llu", w->path, (unsigned long long)i);
            w->scratch = p;
            w->n_scratch = 2 * m.len;
        }
        memcpy(w->scratch, m.ptr, left);
        memcpy(w->scratch + left, sp + 1, right);
        int32_t id = hn_hf_words_find(w, w->scratch, left + right);
        if (id < 0) return bad_merge(w, i, "but its result is not among the tokens", err);
        if (hn_hf_words_find(w, m.ptr, left) < 0)
            return bad_merge(w, i, "but its left part is not among the tokens", err);
        if (hn_hf_words_find(w, sp + 1, right) < 0)
            return bad_merge(w, i, "but its right part is not among the tokens", err);
        if (scores && w->score[id] == 0.0f) w->score[id] = -(float)(1 + i);
    }
    return HONE_OK;
}

/* ---- alphabets ------------------------------------------------------------------------------- */

int64_t hn_hf_base64(char *dst, const char *s, size_t n)
{
    uint32_t bits = 0;
    int64_t out = 0;
    size_t i = 0, held = 0;
    for (; i < n && s[i] != '='; i++) {
        char c = s[i];
        int v = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '+'             ? 62
                : c == '/'             ? 63
                                       : -1;
        if (v < 0) return -1;
        bits = bits << 6 | (uint32_t)v;
        if (++held % 4 == 0) {
            dst[out++] = (char)(bits >> 16);
            dst[out++] = (char)(bits >> 8);
            dst[out++] = (char)bits;
        }
    }
    size_t rest = held % 4, pads = n - i;
    if (rest == 1 || (pads && pads != (4 - rest) % 4)) return -1;
    for (; i < n; i++)
        if (s[i] != '=') return -1;
    if (rest == 2) dst[out++] = (char)(bits >> 4);
    if (rest == 3) dst[out++] = (char)(bits >> 10), dst[out++] = (char)(bits >> 2);
    return out;
}

size_t hn_hf_byte_text(char *dst, const char *s, size_t n)
{
    size_t o = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned b = (unsigned char)s[i];
        bool self = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        unsigned cp = self ? b : b <= 0x20 ? 0x100 + b : b <= 0xA0 ? 0x121 + (b - 0x7F) : 0x143;
        if (cp < 0x80) dst[o++] = (char)cp;
        else dst[o++] = (char)(0xC0 | cp >> 6), dst[o++] = (char)(0x80 | (cp & 63));
    }
    return o;
}
