/* vocab: builds a tokenizer from GGUF metadata and answers questions about single tokens.
 * Everything is copied out of the file once and checked here; afterwards a vocabulary is
 * constant. Refuses to know how text is divided (encode.c, split.c). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "base/os.h"
#include "text/text_priv.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_TOKEN_BYTES = 65535 };

#define SPACE_MARK "\xE2\x96\x81" /* U+2581, SentencePiece's space */

/* ---- tokens of raw text ---------------------------------------------------------------- */

/* May raw text become this token by merging? Otherwise only the partition by special tokens
 * or the fallback to bytes finds it. */
static bool is_plain(const hn_vocab *v, int32_t id)
{
    if (v->flags[id] & HN_FLAG_UNREACHABLE) return false;
    switch (v->type[id]) {
    case HN_TOK_CONTROL:
    case HN_TOK_UNKNOWN:
    case HN_TOK_BYTE: return false;
    case HN_TOK_USER: return v->kind == HN_VOCAB_SPM;
    default: return true;
    }
}

/* ---- sorted lists of tokens --------------------------------------------------------------- */

static int compare_text(const void *a, const void *b, void *arg)
{
    const hn_vocab *v = arg;
    size_t na, nb;
    const char *ta = hn_vocab_text(v, *(const int32_t *)a, &na), *tb = hn_vocab_text(v, *(const int32_t *)b, &nb);
    int c = memcmp(ta, tb, na < nb ? na : nb);
    if (c) return c;
    if (na != nb) return na < nb ? -1 : 1;
    return *(const int32_t *)a < *(const int32_t *)b ? -1 : 1;
}

static unsigned first_two(const hn_vocab *v, int32_t id)
{
    size_t n;
    const unsigned char *t = (const unsigned char *)hn_vocab_text(v, id, &n);
    return (unsigned)t[0] << 8 | (n > 1 ? t[1] : 0u);
}

/* Does the list of types have the token? Added tokens of any length are found before text is normalised; those a
 * normalised text may still become must not make the search for the best path long. */
static bool listed(const hn_vocab *v, unsigned types, int32_t id)
{
    enum { LATTICE_USER = 256 };
    uint32_t n = v->off[id + 1] - v->off[id];
    return types >> v->type[id] & 1 && n &&
           !(v->type[id] == HN_TOK_USER && types >> HN_TOK_NORMAL & 1 && n > LATTICE_USER);
}

/* l: the ids with bit `type` in types and some text, sorted: counted by their first byte or, in long lists, two, then
 * compared. */
static hone_status make_lex(const hn_vocab *v, hn_lex *l, unsigned types, hone_error *err)
{
    for (int32_t i = 0; i < v->n; i++) l->n += listed(v, types, i);
    unsigned shift = l->n > 4096 ? 0 : 8;
    uint32_t n_bucket = 65536u >> shift;
    uint32_t *at = calloc(n_bucket + 1, sizeof *at);
    l->ids = malloc(((size_t)l->n + 1) * sizeof *l->ids);
    if (!at || !l->ids) {
        free(at);
        return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: list of %u tokens", l->n);
    }
    for (int32_t i = 0; i < v->n; i++)
        if (listed(v, types, i)) at[(first_two(v, i) >> shift) + 1]++;
    for (uint32_t b = 0; b < n_bucket; b++) at[b + 1] += at[b];
    for (uint32_t b = 0; b <= 256; b++) l->first[b] = at[b << 8 >> shift];
    for (int32_t i = 0; i < v->n; i++)
        if (listed(v, types, i)) l->ids[at[first_two(v, i) >> shift]++] = i;
    for (uint32_t b = 0, a = 0; b < n_bucket; a = at[b++]) /* at[b] is now the end of bucket b */
        if (at[b] - a > 1) hn_os_sort(l->ids + a, at[b] - a, sizeof *l->ids, compare_text, (void *)(uintptr_t)v);
    free(at);
    return HONE_OK;
}

int32_t hn_lex_find(const hn_vocab *v, const hn_lex *l, const char *s, size_t n)
{
    if (!n) return -1;
    uint32_t lo = l->first[(unsigned char)s[0]], end = l->first[(unsigned char)s[0] + 1], hi = end;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        size_t k;
        const char *t = hn_vocab_text(v, l->ids[mid], &k);
        int c = memcmp(t, s, k < n ? k : n);
        if (c < 0 || (c == 0 && k < n)) lo = mid + 1;
        else hi = mid;
    }
    return lo < end && hn_vocab_same(v, l->ids[lo], s, n) ? l->ids[lo] : -1;
}

static int compare_ends(const void *a, const void *b, void *arg)
{
    const hn_vocab *v = arg;
    size_t na, nb;
    const char *ta = hn_vocab_text(v, *(const int32_t *)a, &na), *tb = hn_vocab_text(v, *(const int32_t *)b, &nb);
    for (size_t i = 1; i <= na && i <= nb; i++)
        if (ta[na - i] != tb[nb - i]) return (unsigned char)ta[na - i] < (unsigned char)tb[nb - i] ? -1 : 1;
    return (na > nb) - (na < nb);
}

/* Greedy longest match walks a trie from every token's beginning, as deep as the longest token: harmless for
 * the vocabularies there are (RWKV World: 128 bytes). Others get an automaton. */
static hone_status make_ends(hn_vocab *v, hone_error *err)
{
    enum { WALK = 128 };
    uint32_t longest = 0;
    for (uint32_t i = 0; i < v->all.n; i++) {
        uint32_t n = v->off[v->all.ids[i] + 1] - v->off[v->all.ids[i]];
        if (n > longest) longest = n;
    }
    if (longest <= WALK) return HONE_OK;
    int32_t *ids = malloc(v->all.n * sizeof *ids);
    if (!ids) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: list of %u tokens", v->all.n);
    memcpy(ids, v->all.ids, v->all.n * sizeof *ids);
    hn_os_sort(ids, v->all.n, sizeof *ids, compare_ends, v);
    hone_status st = hn_match_make(&v->ends, v, ids, NULL, v->all.n, 1, true, err);
    free(ids);
    return st;
}

static hone_status check_unique(const hn_vocab *v, const hn_lex *l, const char *path, hone_error *err)
{
    for (uint32_t i = 1; i < l->n; i++) {
        size_t n;
        const char *t = hn_vocab_text(v, l->ids[i - 1], &n);
        if (hn_vocab_same(v, l->ids[i], t, n))
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: tokenizer.ggml.tokens: tokens %d and %d are both \"%s\"; expected distinct texts", path,
                           l->ids[i - 1], l->ids[i], HN_ESC(t, n));
    }
    return HONE_OK;
}

/* ---- stored text -> bytes ------------------------------------------------------------------- */

/* GPT-2's byte alphabet: printable bytes of Latin-1 stand for themselves, the other 68 are
 * U+0100, U+0101, ... in increasing order (openai/gpt-2:src/encoder.py). map[cp] = byte or -1. */
static void byte_alphabet(int16_t map[0x144])
{
    memset(map, 0xFF, 0x144 * sizeof *map);
    int other = 0x100;
    for (int b = 0; b < 256; b++) {
        bool self = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        map[self ? b : other++] = (int16_t)b;
    }
}

/* dst gets at most n bytes; false: a character outside the alphabet. */
static bool unmap_bytes(const int16_t *map, char *dst, size_t *n_dst, const char *s, size_t n)
{
    size_t o = 0;
    for (size_t i = 0; i < n; o++) {
        unsigned c = (unsigned char)s[i];
        if (c < 0x80) {
            i++;
        } else if (c >= 0xC2 && c <= 0xC5 && i + 1 < n && ((unsigned char)s[i + 1] & 0xC0) == 0x80) {
            c = (c & 31) << 6 | ((unsigned char)s[i + 1] & 63);
            i += 2;
        } else {
            return false;
        }
        if (c >= 0x144 || map[c] < 0) return false;
        dst[o] = (char)map[c];
    }
    *n_dst = o;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* RWKV stores the inside of a Python bytes literal. */
static bool unescape(char *dst, size_t *n_dst, const char *s, size_t n)
{
    size_t o = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '\\') {
            dst[o++] = s[i];
            continue;
        }
        if (++i == n) return false;
        if (s[i] == 'x') {
            int hi = i + 1 < n ? hex_digit(s[i + 1]) : -1, lo = i + 2 < n ? hex_digit(s[i + 2]) : -1;
            if (hi < 0 || lo < 0) return false;
            dst[o++] = (char)(hi << 4 | lo);
            i += 2;
        } else {
            dst[o++] = s[i] == 't' ? '\t' : s[i] == 'n' ? '\n' : s[i] == 'r' ? '\r' : s[i];
        }
    }
    *n_dst = o;
    return true;
}

/* Raw BPE's spaces: U+2581 becomes ' ', in place. dst has n bytes. False: there was a ' ' before. */
static bool unmark_spaces(char *dst, size_t *n_dst, const char *s, size_t n)
{
    size_t o = 0;
    if (memchr(s, ' ', n)) return false;
    for (size_t i = 0; i < n; o++) {
        bool mark = n - i >= 3 && memcmp(s + i, SPACE_MARK, 3) == 0;
        dst[o] = mark ? ' ' : s[i];
        i += mark ? 3 : 1;
    }
    *n_dst = o;
    return true;
}

/* The byte of "<0xHH>", -1 if s is something else. */
static int byte_token(const char *s, size_t n)
{
    if (n != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>') return -1;
    int hi = hex_digit(s[3]), lo = hex_digit(s[4]);
    return hi < 0 || lo < 0 ? -1 : hi << 4 | lo;
}

/* ---- loading ---------------------------------------------------------------------------------- */

typedef struct source { /* what one file gives */
    const hn_gguf *g;
    const char *path;
    hn_gguf_array tokens, merges;
    bool have_merges;
} source;

static hone_status get_array(const source *f, const char *key, hone_kv_type type, const char *type_name,
                             hn_gguf_array *out, bool *found, hone_error *err)
{
    hone_status st = hn_gguf_get_array(f->g, key, out, found, err);
    if (st != HONE_OK || !*found) return st;
    if (out->elem_type != type)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s: elements of type %d, expected %s (type %d)", f->path, key,
                       (int)out->elem_type, type_name, (int)type);
    return HONE_OK;
}

/* An array with one fixed-size element for every token. */
static hone_status get_per_token(const source *f, const hn_vocab *v, const char *key, hone_kv_type type,
                                 const char *type_name, hn_gguf_array *out, bool *found, hone_error *err)
{
    hone_status st = get_array(f, key, type, type_name, out, found, err);
    if (st == HONE_OK && *found && out->count != (uint64_t)v->n)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has %llu elements, expected one for each of the %d tokens", f->path,
                       key, (unsigned long long)out->count, v->n);
    return st;
}

static hone_status read_types(hn_vocab *v, const source *f, hone_error *err)
{
    hn_gguf_array a;
    bool found = false;
    hone_status st = get_per_token(f, v, "tokenizer.ggml.token_type", HONE_KV_I32, "i32", &a, &found, err);
    if (st != HONE_OK) return st;
    if (!(v->type = malloc((size_t)v->n)) || !(v->flags = calloc((size_t)v->n, 1)))
        return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: types of %d tokens", v->n);
    memset(v->type, HN_TOK_NORMAL, (size_t)v->n);
    for (int32_t i = 0; found && i < v->n; i++) {
        int32_t t;
        memcpy(&t, a.data + 4 * (size_t)i, 4);
        if (t < 0 || t > HN_TOK_BYTE)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: tokenizer.ggml.token_type[%d] is %d, expected 0 to 6", f->path, i,
                           t);
        v->type[i] = (uint8_t)t;
    }
    return HONE_OK;
}

static hone_status read_scores(hn_vocab *v, const source *f, hone_error *err)
{
    hn_gguf_array a;
    bool found = false;
    hone_status st = get_per_token(f, v, "tokenizer.ggml.scores", HONE_KV_F32, "f32", &a, &found, err);
    if (st != HONE_OK || !found) return st;
    if (!(v->score = malloc((size_t)v->n * sizeof *v->score)))
        return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: scores of %d tokens", v->n);
    memcpy(v->score, a.data, (size_t)v->n * sizeof *v->score);
    for (int32_t i = 0; i < v->n; i++)
        if (isnan(v->score[i]))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: tokenizer.ggml.scores[%d] is not a number; expected a score",
                           f->path, i);
    return HONE_OK;
}

/* Fills text/off, and for SPM piece/piece_off, from the file's strings. */
static hone_status read_texts(hn_vocab *v, const source *f, hone_error *err)
{
    int16_t map[0x144];
    byte_alphabet(map);
    size_t n = (size_t)v->n, cap = f->tokens.n_bytes - 8 * n; /* no token grows */
    if (cap > UINT32_MAX / 2)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: tokenizer.ggml.tokens holds %zu bytes of text, expected at most 2 GiB", f->path, cap);
    bool spm = v->kind != HN_VOCAB_BPE && v->kind != HN_VOCAB_RWKV; /* U+2581 stands for a space */
    v->text = malloc(cap + 1);
    v->off = malloc((n + 1) * sizeof *v->off);
    if (spm) {
        v->piece = malloc(cap + 1);
        v->piece_off = malloc((n + 1) * sizeof *v->piece_off);
    }
    if (!v->text || !v->off || (spm && (!v->piece || !v->piece_off)))
        return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: texts of %d tokens", v->n);
    uint32_t o = 0, po = 0;
    uint64_t pos = 0;
    hone_str s;
    for (size_t i = 0; i < n; i++) {
        if (!hn_gguf_next_str(&f->tokens, &pos, &s) || s.len > cap - o)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: tokenizer.ggml.tokens ends at token %zu, expected %zu", f->path, i,
                           n);
        if (s.len > MAX_TOKEN_BYTES)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: tokenizer.ggml.tokens[%zu] has %zu bytes, expected at most %d",
                           f->path, i, s.len, MAX_TOKEN_BYTES);
        v->off[i] = o;
        char *dst = v->text + o;
        size_t len = s.len;
        bool literal_text = v->type[i] == HN_TOK_CONTROL || v->type[i] == HN_TOK_USER || v->type[i] == HN_TOK_UNKNOWN;
        if (v->kind == HN_VOCAB_RWKV) {
            if (!unescape(dst, &len, s.ptr, s.len))
                return HN_FAIL(err, HONE_E_FORMAT,
                               "%s: tokenizer.ggml.tokens[%zu] \"%s\": expected escapes \\xHH, \\t, \\n, \\r or \\ and "
                               "a character",
                               f->path, i, HN_ESC(s.ptr, s.len));
        } else if (v->kind == HN_VOCAB_BPE && !literal_text) {
            int b = v->type[i] == HN_TOK_BYTE ? byte_token(s.ptr, s.len) : -1;
            if (b >= 0) {
                dst[0] = (char)b;
                len = 1;
                if (v->byte_id[b] < 0) v->byte_id[b] = (int32_t)i;
            } else if (!(v->raw ? unmark_spaces(dst, &len, s.ptr, s.len) : unmap_bytes(map, dst, &len, s.ptr, s.len))) {
                memcpy(dst, s.ptr, len = s.len);
                v->flags[i] = HN_FLAG_UNREACHABLE;
            }
        } else {
            memcpy(dst, s.ptr, len);
        }
        if (spm) {
            int b = v->type[i] == HN_TOK_BYTE ? byte_token(s.ptr, s.len) : -1;
            v->piece_off[i] = po;
            if (b >= 0) {
                v->piece[po++] = (char)b;
                if (v->byte_id[b] < 0) v->byte_id[b] = (int32_t)i;
            } else {
                bool user = v->type[i] != HN_TOK_NORMAL && v->type[i] != HN_TOK_BYTE, other = false;
                for (size_t k = 0; k < len;) {
                    bool mark = len - k >= 3 && memcmp(dst + k, SPACE_MARK, 3) == 0;
                    if (mark && other && is_plain(v, (int32_t)i)) v->joined[(unsigned char)dst[k - 1]] = true;
                    other = !mark;
                    if (mark && !user) {
                        v->piece[po++] = ' ';
                        k += 3;
                    } else {
                        v->piece[po++] = dst[k++];
                    }
                }
            }
        }
        o += (uint32_t)len;
    }
    v->off[n] = o;
    if (spm) v->piece_off[n] = po;
    return HONE_OK;
}

static uint32_t table_size(uint64_t n) /* power of two, at most three quarters full */
{
    uint32_t size = 64;
    while (size < n + n / 3 + 1) size *= 2;
    return size;
}

/* The hash table of everything raw text may become. */
static hone_status make_table(hn_vocab *v, const source *f, hone_error *err)
{
    uint32_t size = table_size((uint64_t)v->n);
    if (!(v->slot = calloc(size, sizeof *v->slot)))
        return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: table of %d tokens", v->n);
    if (!(v->whole = calloc((size_t)v->n, 1))) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: table of %d tokens", v->n);
    v->slot_mask = size - 1;
    for (int32_t id = 0; id < v->n; id++) {
        size_t n;
        const char *t = hn_vocab_text(v, id, &n);
        if (!n || !is_plain(v, id)) continue;
        if (n > v->max_len) v->max_len = (uint32_t)n;
        uint64_t h = hn_vocab_hash(v, t, n);
        uint32_t i = (uint32_t)h & v->slot_mask;
        for (; v->slot[i].id1; i = (i + 1) & v->slot_mask)
            if (v->slot[i].tag == (uint32_t)(h >> 32) && hn_vocab_same(v, (int32_t)v->slot[i].id1 - 1, t, n))
                return HN_FAIL(err, HONE_E_FORMAT,
                               "%s: tokenizer.ggml.tokens: tokens %d and %d are both \"%s\"; expected distinct texts",
                               f->path, (int32_t)v->slot[i].id1 - 1, id, HN_ESC(t, n));
        v->slot[i] = (hn_hash_slot){ (uint32_t)id + 1, (uint32_t)(h >> 32) };
    }
    return HONE_OK;
}

/* A part of a merge: an ordinary token, or an added one whose text happens to be these bytes. */
static int32_t find_part(const hn_vocab *v, const char *s, size_t n)
{
    int32_t id = hn_vocab_find(v, s, n);
    return id >= 0 ? id : hn_lex_find(v, &v->special, s, n);
}

static bool part_bytes(const hn_vocab *v, const int16_t *map, char *dst, size_t *n_dst, const char *s, size_t n)
{
    return v->raw ? unmark_spaces(dst, n_dst, s, n) : unmap_bytes(map, dst, n_dst, s, n);
}

static hone_status read_merges(hn_vocab *v, const source *f, hone_error *err)
{
    static const char key[] = "tokenizer.ggml.merges";
    const hn_gguf_array *a = &f->merges;
    if (a->count > UINT32_MAX / 4)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s has %llu entries, expected at most %u", f->path, key,
                       (unsigned long long)a->count, UINT32_MAX / 4);
    uint32_t size = table_size(a->count);
    if (!(v->merge = malloc(size * sizeof *v->merge)))
        return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: table of %llu merges", (unsigned long long)a->count);
    memset(v->merge, 0xFF, size * sizeof *v->merge);
    v->merge_mask = size - 1;
    int16_t map[0x144];
    byte_alphabet(map);
    uint64_t pos = 0;
    hone_str s;
    for (uint64_t i = 0; i < a->count; i++) {
        if (!hn_gguf_next_str(a, &pos, &s))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s ends at entry %llu, expected %llu", f->path, key,
                           (unsigned long long)i, (unsigned long long)a->count);
        const char *sp = s.len > 1 ? memchr(s.ptr + 1, ' ', s.len - 1) : NULL;
        size_t n_left = sp ? (size_t)(sp - s.ptr) : 0, n_right = sp ? s.len - n_left - 1 : 0;
        if (!n_right)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%llu] is \"%s\", expected two parts with one space between",
                           f->path, key, (unsigned long long)i, HN_ESC(s.ptr, s.len));
        char buf[2 * MAX_TOKEN_BYTES];
        size_t nl = 0, nr = 0;
        bool fits = n_left <= 2 * MAX_TOKEN_BYTES && n_right <= 2 * MAX_TOKEN_BYTES - n_left;
        int32_t left = fits && part_bytes(v, map, buf, &nl, s.ptr, n_left) ? find_part(v, buf, nl) : -1;
        int32_t right = fits && part_bytes(v, map, buf + nl, &nr, sp + 1, n_right) ? find_part(v, buf + nl, nr) : -1;
        int32_t id = left >= 0 && right >= 0 ? find_part(v, buf, nl + nr) : -1;
        if (left < 0 || right < 0 || id < 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%llu] is \"%s\", but its %s is not among the tokens", f->path,
                           key, (unsigned long long)i, HN_ESC(s.ptr, s.len),
                           left < 0    ? "left part"
                           : right < 0 ? "right part"
                                       : "result");
        if (buf[nl] == ' ' && buf[nl - 1] != ' ') v->joined[(unsigned char)buf[nl - 1]] = true;
        uint64_t k = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
        uint32_t j = (uint32_t)hn_mix64(k ^ v->seed) & v->merge_mask;
        while (v->merge[j].id != UINT32_MAX && v->merge[j].key != k) j = (j + 1) & v->merge_mask;
        if (v->merge[j].id == UINT32_MAX)
            v->merge[j] = (hn_merge){ k, (uint32_t)i, (uint32_t)id }; /* a repeated pair keeps its first rank */
    }
    return HONE_OK;
}

/* BPE: the symbols that words start from. SPM and raw BPE: byte tokens that no type marks. */
static void find_bytes(hn_vocab *v)
{
    for (int b = 0; b < 256; b++) {
        char one = (char)b, name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)b);
        int32_t plain = hn_vocab_find(v, &one, 1);
        if (v->byte_id[b] < 0 && (v->kind == HN_VOCAB_SPM || v->raw)) v->byte_id[b] = hn_vocab_find(v, name, 6);
        if (plain >= 0 && (v->byte_id[b] < 0 || (v->kind == HN_VOCAB_BPE && !v->raw))) v->byte_id[b] = plain;
    }
}

/* ---- special ids -------------------------------------------------------------------------------- */

static hone_status get_id(const hn_vocab *v, const source *f, const char *key, int32_t *id, hone_error *err)
{
    uint32_t u = 0;
    bool found = false;
    hone_status st = hn_gguf_get_u32(f->g, key, &u, &found, err);
    if (st != HONE_OK || !found) return st;
    if (u < (uint32_t)v->n) *id = (int32_t)u;
    else if (u == UINT32_MAX) *id = -1; /* "none" in converted tiny models */
    else hn_log("%s: %s is %u but there are only %d tokens; ignored", f->path, key, u, v->n);
    return HONE_OK;
}

/* First token of these names, among those that someone marked as special: in Qwen2's
 * vocabulary "</s>" is ordinary text. */
static int32_t find_special(const hn_vocab *v, const char *const *names)
{
    for (; *names; names++) {
        int32_t id = hn_lex_find(v, &v->special, *names, strlen(*names));
        if (id >= 0 && v->type[id] != HN_TOK_UNKNOWN) return id;
    }
    return -1;
}
static int32_t find_one(const hn_vocab *v, const char *name)
{
    return find_special(v, (const char *const[]){ name, NULL });
}

#define DS_EOS      \
    "<\xEF\xBD\x9C" \
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"

static const char *const eot_names[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",      "<|end_of_text|>",
    "<EOT>",      "_<EOT>",     "[EOT]",   DS_EOS,          "<end_of_utterance>", NULL
};
static const char *const eom_names[] = { "<|eom_id|>", NULL };
#define DS_FIM(what) \
    "<\xEF\xBD\x9C"  \
    "fim\xE2\x96\x81" what "\xEF\xBD\x9C>"
static const char *const fim_pre_names[] = { "<|fim_prefix|>",  "<fim-prefix>", "<fim_prefix>",
                                             DS_FIM("begin"),   "<PRE>",        "\xE2\x96\x81<PRE>",
                                             "<|code_prefix|>", "<|prefix|>",   NULL };
static const char *const fim_suf_names[] = { "<|fim_suffix|>",  "<fim-suffix>", "<fim_suffix>",
                                             DS_FIM("hole"),    "<SUF>",        "\xE2\x96\x81<SUF>",
                                             "<|code_suffix|>", "<|suffix|>",   NULL };
static const char *const fim_mid_names[] = { "<|fim_middle|>",  "<fim-middle>", "<fim_middle>",
                                             DS_FIM("end"),     "<MID>",        "\xE2\x96\x81<MID>",
                                             "<|code_middle|>", "<|middle|>",   NULL };
static const char *const fim_pad_names[] = { "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", NULL };
static const char *const fim_rep_names[] = {
    "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", NULL
};
static const char *const fim_sep_names[] = { "<|file_sep|>", NULL };
static const char *const eog_names[] = { "<|eot_id|>",
                                         "<|im_end|>",
                                         "<|end|>",
                                         "<|return|>",
                                         "<|call|>",
                                         "<|flush|>",
                                         "<|calls|>",
                                         "<end_of_turn>",
                                         "<|endoftext|>",
                                         "</s>",
                                         "<|eom_id|>",
                                         "<EOT>",
                                         "_<EOT>",
                                         "[EOT]",
                                         "[EOS]",
                                         "<|end_of_text|>",
                                         "<end_of_utterance>",
                                         "<eos>",
                                         "<turn|>",
                                         "<|tool_response>",
                                         DS_EOS,
                                         "[e~[",
                                         NULL };

static void set_flag(hn_vocab *v, int32_t id, unsigned flag, bool on)
{
    if (id >= 0) v->flags[id] = (uint8_t)(on ? v->flags[id] | flag : v->flags[id] & ~flag);
}

/* A file may say which tokens end generation: then no name counts, only these and the ids it has keys for. */
static hone_status read_eos_ids(hn_vocab *v, const source *f, const int32_t *by_key, size_t n_key, bool *found,
                                hone_error *err)
{
    static const char key[] = "tokenizer.ggml.eos_token_ids";
    hn_gguf_array a;
    hone_status st = hn_gguf_get_array(f->g, key, &a, found, err);
    if (st != HONE_OK || !*found) return st;
    if (a.elem_type != HONE_KV_U32 && a.elem_type != HONE_KV_I32)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s: elements of type %d, expected u32 or i32 (type %d or %d)", f->path,
                       key, (int)a.elem_type, (int)HONE_KV_U32, (int)HONE_KV_I32);
    for (int32_t i = 0; i < v->n; i++) set_flag(v, i, HN_FLAG_EOG, false);
    for (uint64_t i = 0; i < a.count; i++) {
        int32_t id;
        memcpy(&id, a.data + 4 * i, 4);
        if (id >= 0 && id < v->n) set_flag(v, id, HN_FLAG_EOG, true);
        else
            hn_log("%s: %s[%llu] is %d but there are only %d tokens; ignored", f->path, key, (unsigned long long)i, id,
                   v->n);
    }
    for (size_t i = 0; i < n_key; i++) set_flag(v, by_key[i], HN_FLAG_EOG, true);
    return HONE_OK;
}

/* Tokens around a gap that is to be filled, by key, older key or name; in the order of hone_fim. Behind a file's own
 * end, the next file's name or padding nothing is to be generated. */
static hone_status read_fim_ids(hn_vocab *v, const source *f, hone_error *err)
{
    static const struct {
        const char *key, *old_key;
        const char *const *names;
        bool ends;
    } fim[HONE_N_FIM] = {
        [HONE_FIM_PREFIX] = { "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id", fim_pre_names,
                              false },
        [HONE_FIM_SUFFIX] = { "tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id", fim_suf_names,
                              false },
        [HONE_FIM_MIDDLE] = { "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id", fim_mid_names,
                              false },
        [HONE_FIM_PAD] = { "tokenizer.ggml.fim_pad_token_id", NULL, fim_pad_names, true },
        [HONE_FIM_REPOSITORY] = { "tokenizer.ggml.fim_rep_token_id", NULL, fim_rep_names, true },
        [HONE_FIM_FILE] = { "tokenizer.ggml.fim_sep_token_id", NULL, fim_sep_names, true },
    };
    for (size_t i = 0; i < HONE_N_FIM; i++) {
        int32_t *id = &v->fim[i];
        hone_status st = HONE_OK;
        *id = -1;
        if (fim[i].old_key) st = get_id(v, f, fim[i].old_key, id, err);
        if (st == HONE_OK) st = get_id(v, f, fim[i].key, id, err);
        if (st != HONE_OK) return st;
        if (*id < 0) *id = find_special(v, fim[i].names);
        if (fim[i].ends) set_flag(v, *id, HN_FLAG_EOG, true);
    }
    return HONE_OK;
}

static hone_status read_special_ids(hn_vocab *v, const source *f, hone_error *err)
{
    v->bos = v->eos = v->eot = v->eom = v->unk = -1;
    if (v->kind == HN_VOCAB_SPM) { /* SentencePiece's own defaults */
        if (v->n > 0) v->unk = 0;
        if (v->n > 1) v->bos = 1;
        if (v->n > 2) v->eos = 2;
    } else if (v->kind == HN_VOCAB_UGM) { /* T5's */
        if (v->n > 1) v->eos = 1;
        if (v->n > 2) v->unk = 2;
    }
    hone_status st;
    if ((st = get_id(v, f, "tokenizer.ggml.bos_token_id", &v->bos, err)) != HONE_OK ||
        (st = get_id(v, f, "tokenizer.ggml.eos_token_id", &v->eos, err)) != HONE_OK ||
        (st = get_id(v, f, "tokenizer.ggml.eot_token_id", &v->eot, err)) != HONE_OK ||
        (st = get_id(v, f, "tokenizer.ggml.eom_token_id", &v->eom, err)) != HONE_OK ||
        (st = get_id(v, f, "tokenizer.ggml.unknown_token_id", &v->unk, err)) != HONE_OK)
        return st;
    const int32_t by_key[] = { v->eos, v->eot, v->eom };
    bool listed_ids = false;
    if (v->eot < 0) v->eot = find_special(v, eot_names);
    if (v->eom < 0) v->eom = find_special(v, eom_names);
    for (const char *const *p = eog_names; *p; p++) set_flag(v, find_one(v, *p), HN_FLAG_EOG, true);
    /* harmony-like formats end a part of a turn with <|end|>, and only some turns with </s> */
    bool call = find_one(v, "<|call|>") >= 0, calls = find_one(v, "<|calls|>") >= 0;
    bool harmony = (find_one(v, "<|return|>") >= 0 && call) || ((call || calls) && find_one(v, "<|flush|>") >= 0);
    if (harmony) {
        int32_t end = find_one(v, "<|end|>");
        set_flag(v, end, HN_FLAG_EOG, false);
        if (v->eot == end) v->eot = -1;
    }
    if (find_one(v, "<|tool_response>") >= 0 || find_one(v, "<|plamo:eos|>") >= 0)
        set_flag(v, find_one(v, "</s>"), HN_FLAG_EOG, false);
    set_flag(v, v->eos, HN_FLAG_EOG, true);
    set_flag(v, v->eot, HN_FLAG_EOG, true);
    set_flag(v, v->eom, HN_FLAG_EOG, true);
    if ((st = read_fim_ids(v, f, err)) != HONE_OK) return st;
    return read_eos_ids(v, f, by_key, sizeof by_key / sizeof *by_key, &listed_ids, err);
}

static hone_status read_flags(hn_vocab *v, const source *f, hone_error *err)
{
    v->space_prefix = v->kind == HN_VOCAB_SPM;
    v->add_bos = v->kind == HN_VOCAB_SPM || (v->pre && hn_pre_add_bos(v->pre));
    v->add_eos = v->kind == HN_VOCAB_UGM;
    v->ignore_merges = v->pre && hn_pre_ignore_merges(v->pre);
    hone_status st;
    if ((st = hn_gguf_get_bool(f->g, "tokenizer.ggml.add_bos_token", &v->add_bos, NULL, err)) != HONE_OK ||
        (st = hn_gguf_get_bool(f->g, "tokenizer.ggml.add_eos_token", &v->add_eos, NULL, err)) != HONE_OK)
        return st;
    if (v->pre && hn_pre_is_raw(v->pre) == HN_PRE_RAW_LINES &&
        !v->add_bos) { /* its models need one; files were made that deny it */
        hn_log(
            "%s: tokenizer.ggml.add_bos_token is false, but this pre-tokenizer's models begin with bos; taken as true",
            f->path);
        v->add_bos = true;
    }
    bool space = v->space_prefix;
    if ((st = hn_gguf_get_bool(f->g, "tokenizer.ggml.add_space_prefix", &space, NULL, err)) != HONE_OK) return st;
    if (v->kind == HN_VOCAB_SPM || v->kind == HN_VOCAB_UGM) v->space_prefix = space;

    /* Strip attributes are not in the file; models that need them are known by name. */
    hone_str name = { "", 0 }, arch = { "", 0 }, pre = { "", 0 };
    if ((st = hn_gguf_get_str(f->g, "general.name", &name, NULL, err)) != HONE_OK ||
        (st = hn_gguf_get_str(f->g, "general.architecture", &arch, NULL, err)) != HONE_OK ||
        (st = hn_gguf_get_str(f->g, "tokenizer.ggml.pre", &pre, NULL, err)) != HONE_OK)
        return st;
    char low[256];
    size_t n = name.len < sizeof low - 1 ? name.len : sizeof low - 1;
    for (size_t i = 0; i < n; i++) {
        char c = name.ptr[i];
        low[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c ? c : ' ');
    }
    low[n] = 0;
    if (strstr(low, "phi-3") || strstr(low, "phi3")) {
        for (uint32_t i = 0; i < v->special.n; i++) set_flag(v, v->special.ids[i], HN_FLAG_RSTRIP, true);
        set_flag(v, find_one(v, "</s>"), HN_FLAG_RSTRIP, true);
        static const char *const not_these[] = { "<unk>", "<s>", "<|endoftext|>" };
        for (size_t i = 0; i < 3; i++)
            set_flag(v, hn_lex_find(v, &v->special, not_these[i], strlen(not_these[i])), HN_FLAG_RSTRIP, false);
    }
    static const char *const jina[] = { "jina-v2-de", "jina-v2-es", "jina-v2-code" };
    bool mask = (arch.len == 14 && memcmp(arch.ptr, "nomic-bert-moe", 14) == 0) ||
                (arch.len == 12 && memcmp(arch.ptr, "jina-bert-v3", 12) == 0);
    for (size_t i = 0; i < 3; i++) mask |= pre.len && memmem(pre.ptr, pre.len, jina[i], strlen(jina[i])) != NULL;
    if (mask) set_flag(v, find_one(v, "<mask>"), HN_FLAG_LSTRIP, true);
    if (strstr(low, "modern-bert")) set_flag(v, find_one(v, "[MASK]"), HN_FLAG_LSTRIP, true);
    return HONE_OK;
}

/* Tokens that structure a prompt. Of the added tokens, which plain text may contain, those
 * that end a turn and those that look like <|this|>, <|this> or <this|>: not every file types
 * them CONTROL. */
static bool is_structure(const hn_vocab *v, int32_t id)
{
    size_t n;
    const char *s = hn_vocab_text(v, id, &n);
    if (v->type[id] != HN_TOK_USER || v->flags[id] & HN_FLAG_EOG) return true;
    return (n > 3 && s[0] == '<' && s[n - 1] == '>' && (s[1] == '|' || s[n - 2] == '|')) ||
           (n > 8 && memcmp(s, "<\xEF\xBD\x9C", 4) == 0 && memcmp(s + n - 4, "\xEF\xBD\x9C>", 4) == 0);
}

/* Called when the flags of tokens are known. */
static hone_status make_marks(hn_vocab *v, hone_error *err)
{
    uint8_t *cls = malloc((size_t)v->special.n + 1);
    if (!cls) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: list of %u tokens", v->special.n);
    for (uint32_t i = 0; i < v->special.n; i++) {
        int32_t id = v->special.ids[i];
        cls[i] = v->type[id] != HN_TOK_USER ? HN_MARK_ANY : is_structure(v, id) ? HN_MARK_USER : HN_MARK_PLAIN;
        v->has_user |= cls[i] > HN_MARK_ANY;
    }
    hone_status st = hn_match_make(&v->marks, v, v->special.ids, cls, v->special.n, HN_N_MARK, false, err);
    free(cls);
    return st;
}

/* ---- making a vocabulary ---------------------------------------------------------------------------- */

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && memcmp(s.ptr, t, s.len) == 0; }

static hone_status choose_pre(hn_vocab *v, const source *f, hone_str model, const char *pre, hone_error *err)
{
    bool gemma = is(model, "gemma4"); /* implies its own */
    if (pre) {
        if (v->kind != HN_VOCAB_BPE)
            return HN_FAIL(err, HONE_E_ARG,
                           "%s: pre-tokenizer \"%s\" asked for, but only BPE vocabularies (tokenizer.ggml.model gpt2 "
                           "or gemma4) have one",
                           f->path, HN_ESC(pre, strlen(pre)));
        if (!(v->pre = hn_pre_find(pre, strlen(pre))))
            return HN_FAIL(err, HONE_E_ARG, "unknown pre-tokenizer \"%s\", expected one of: %s",
                           HN_ESC(pre, strlen(pre)), hn_pre_list());
        if (gemma && !hn_pre_is_raw(v->pre))
            return HN_FAIL(err, HONE_E_ARG,
                           "%s: pre-tokenizer \"%s\" asked for, but tokenizer.ggml.model is gemma4, which is not "
                           "byte-level; expected gemma4 or sarvam-moe",
                           f->path, HN_ESC(pre, strlen(pre)));
        return HONE_OK;
    }
    if (v->kind != HN_VOCAB_BPE) return HONE_OK;
    hone_str s = { "default", 7 };
    hone_status st = gemma ? HONE_OK : hn_gguf_get_str(f->g, "tokenizer.ggml.pre", &s, NULL, err);
    if (st != HONE_OK) return st;
    if (gemma) s = (hone_str){ "gemma4", 6 };
    if (!(v->pre = hn_pre_find(s.ptr, s.len)))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: tokenizer.ggml.pre is \"%s\", a pre-tokenizer hone does not know; choose the one that fits "
                       "with --pre KIND, one of: %s",
                       f->path, HN_ESC(s.ptr, s.len), hn_pre_list());
    return HONE_OK;
}

static hone_status load(hn_vocab *v, source *f, hone_str model, const char *pre, hone_error *err)
{
    hone_status st;
    bool found = false;
    if ((st = choose_pre(v, f, model, pre, err)) != HONE_OK) return st;
    v->raw = v->pre && hn_pre_is_raw(v->pre);
    if ((st = get_array(f, "tokenizer.ggml.tokens", HONE_KV_STRING, "string", &f->tokens, &found, err)) != HONE_OK)
        return st;
    if (!found || f->tokens.count == 0)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tokenizer.ggml.tokens is %s, expected the list of tokens", f->path,
                       found ? "empty" : "missing");
    if (f->tokens.count > INT32_MAX / 4 || f->tokens.n_bytes / 8 < f->tokens.count)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: tokenizer.ggml.tokens: %llu tokens in %llu bytes, expected at least 8 bytes each and at "
                       "most %d tokens",
                       f->path, (unsigned long long)f->tokens.count, (unsigned long long)f->tokens.n_bytes,
                       INT32_MAX / 4);
    v->n = v->n_id = (int32_t)f->tokens.count;
    const hn_gguf_tensor *rows = hn_gguf_find_tensor(f->g, "token_embd.weight");
    if (rows && rows->ne[1] > f->tokens.count && rows->ne[1] <= INT32_MAX) v->n_id = (int32_t)rows->ne[1];
    if (v->kind == HN_VOCAB_BPE) {
        if ((st = get_array(f, "tokenizer.ggml.merges", HONE_KV_STRING, "string", &f->merges, &found, err)) != HONE_OK)
            return st;
        if (!found)
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: tokenizer.ggml.merges is missing, which tokenizer.ggml.model %s needs", f->path,
                           HN_ESC(model.ptr, model.len));
    }
    if ((st = read_types(v, f, err)) != HONE_OK) return st;
    if ((v->kind == HN_VOCAB_SPM || v->kind == HN_VOCAB_UGM) && (st = read_scores(v, f, err)) != HONE_OK) return st;
    memset(v->byte_id, 0xFF, sizeof v->byte_id);
    if ((st = read_texts(v, f, err)) != HONE_OK) return st;
    bool trie = v->kind != HN_VOCAB_SPM && v->kind != HN_VOCAB_BPE;
    if (!trie && (st = make_table(v, f, err)) != HONE_OK) return st;
    enum { USER = 1 << HN_TOK_USER, SPECIAL = USER | 1 << HN_TOK_CONTROL | 1 << HN_TOK_UNKNOWN };
    if ((st = make_lex(v, &v->special, SPECIAL, err)) != HONE_OK ||
        (st = check_unique(v, &v->special, f->path, err)) != HONE_OK)
        return st;
    if (trie) {
        /* Unigram models know added tokens; WordPiece has [unused7]; SentencePiece never makes a token UNUSED */
        unsigned types = 1 << HN_TOK_NORMAL | (v->kind == HN_VOCAB_UGM   ? USER
                                               : v->kind == HN_VOCAB_WPM ? 1 << HN_TOK_UNUSED | 1 << HN_TOK_UNDEFINED
                                                                         : 0);
        if ((st = make_lex(v, &v->all, types, err)) != HONE_OK ||
            (st = check_unique(v, &v->all, f->path, err)) != HONE_OK)
            return st;
        if ((st = hn_trie_make(&v->trie, v, &v->all, err)) != HONE_OK) return st;
        if (v->kind == HN_VOCAB_RWKV && (st = make_ends(v, err)) != HONE_OK) return st;
    } else {
        find_bytes(v);
    }
    if (v->kind == HN_VOCAB_BPE && (st = read_merges(v, f, err)) != HONE_OK) return st;
    if ((st = read_special_ids(v, f, err)) != HONE_OK || (st = read_flags(v, f, err)) != HONE_OK ||
        (st = make_marks(v, err)) != HONE_OK)
        return st;
    if (v->kind == HN_VOCAB_WPM) return hn_wpm_load(v, f->g, err);
    return v->kind == HN_VOCAB_UGM ? hn_ugm_load(v, f->g, err) : HONE_OK;
}

hone_status hn_vocab_new(hn_vocab **out, const hn_gguf *g, const char *pre, hone_error *err)
{
    *out = NULL;
    source f = { .g = g, .path = hn_gguf_path(g) };
    hone_str model = { "", 0 };
    bool found = false;
    hone_status st = hn_gguf_get_str(g, "tokenizer.ggml.model", &model, &found, err);
    if (st != HONE_OK || !found || is(model, "none") || is(model, "no_vocab")) return st;
    hn_vocab_kind kind;
    if (is(model, "llama")) kind = HN_VOCAB_SPM;
    else if (is(model, "gpt2") || is(model, "gemma4")) kind = HN_VOCAB_BPE;
    else if (is(model, "rwkv")) kind = HN_VOCAB_RWKV;
    else if (is(model, "bert")) kind = HN_VOCAB_WPM;
    else if (is(model, "t5")) kind = HN_VOCAB_UGM;
    else
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: tokenizer.ggml.model is \"%s\", expected llama, gpt2, gemma4, rwkv, bert or t5", f.path,
                       HN_ESC(model.ptr, model.len));
    hn_vocab *v = calloc(1, sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer");
    v->kind = kind;
    v->seed = hn_mix64((uintptr_t)v); /* differs from run to run, so that no file can aim at collisions */
    if ((st = load(v, &f, model, pre, err)) != HONE_OK) {
        hn_vocab_free(v);
        return st;
    }
    *out = v;
    return HONE_OK;
}

void hn_vocab_free(hn_vocab *v)
{
    if (!v) return;
    free(v->type);
    free(v->flags);
    free(v->text);
    free(v->off);
    free(v->piece);
    free(v->piece_off);
    free(v->score);
    free(v->slot);
    free(v->whole);
    free(v->trie.node);
    free(v->trie.id);
    free(v->merge);
    free(v->special.ids);
    hn_match_free(&v->marks);
    hn_match_free(&v->ends);
    free(v->all.ids);
    free(v->map);
    free(v->map_text);
    hn_vocab_tokens_free(v);
    free(v);
}

/* ---- questions ------------------------------------------------------------------------------------- */

static bool valid(const hn_vocab *v, int32_t id) { return id >= 0 && id < v->n; }

hn_vocab_kind hn_vocab_get_kind(const hn_vocab *v) { return v->kind; }
int32_t hn_vocab_size(const hn_vocab *v) { return v->n_id; }
int32_t hn_vocab_bos(const hn_vocab *v) { return v->bos; }
int32_t hn_vocab_eos(const hn_vocab *v) { return v->eos; }
int32_t hn_vocab_eot(const hn_vocab *v) { return v->eot; }
int32_t hn_vocab_fim(const hn_vocab *v, hone_fim which) { return v->fim[which]; }
bool hn_vocab_add_bos(const hn_vocab *v) { return v->add_bos; }

bool hn_vocab_parts_twice(const hn_gguf *g, hn_vocab_kind kind)
{
    int64_t at = hn_gguf_find(g, "tokenizer.ggml.add_sep_token");
    hone_kv kv;
    if (at < 0 || kind == HN_VOCAB_WPM) return kind == HN_VOCAB_UGM; /* XLM-RoBERTa's */
    hn_gguf_kv(g, (uint64_t)at, &kv);
    return kv.type == HONE_KV_BOOL && kv.v.b;
}

bool hn_vocab_add_eos(const hn_vocab *v) { return v->add_eos; }
bool hn_vocab_is_eog(const hn_vocab *v, int32_t id) { return valid(v, id) && v->flags[id] & HN_FLAG_EOG; }
bool hn_vocab_is_control(const hn_vocab *v, int32_t id) { return valid(v, id) && v->type[id] == HN_TOK_CONTROL; }

hone_token_class hn_vocab_class(const hn_vocab *v, int32_t id)
{
    if (!valid(v, id)) return id >= v->n && id < v->n_id ? HONE_TOKEN_UNUSED : HONE_TOKEN_UNKNOWN;
    switch (v->type[id]) {
    case HN_TOK_NORMAL: return HONE_TOKEN_NORMAL;
    case HN_TOK_CONTROL: return HONE_TOKEN_CONTROL;
    case HN_TOK_USER: return HONE_TOKEN_USER;
    case HN_TOK_BYTE: return HONE_TOKEN_BYTE;
    case HN_TOK_UNUSED:
    case HN_TOK_UNDEFINED: return HONE_TOKEN_UNUSED;
    default: return HONE_TOKEN_UNKNOWN;
    }
}

const char *hn_vocab_piece(const hn_vocab *v, int32_t id, bool special, size_t *len)
{
    *len = 0;
    if (!valid(v, id)) return id >= v->n && id < v->n_id ? "" : NULL;
    switch (v->type[id]) {
    case HN_TOK_CONTROL:
    case HN_TOK_UNKNOWN:
        if (!special) return "";
        break;
    case HN_TOK_UNUSED:
    case HN_TOK_UNDEFINED:
        if (v->kind != HN_VOCAB_RWKV) return "";
        break;
    default: break;
    }
    const uint32_t *off = v->piece ? v->piece_off : v->off;
    *len = off[id + 1] - off[id];
    return (v->piece ? v->piece : v->text) + off[id];
}

hone_status hn_vocab_decode(const hn_vocab *v, const int32_t *ids, size_t n, bool special, char **text, size_t *len,
                            hone_error *err)
{
    *text = NULL;
    *len = 0;
    size_t total = 0, k;
    for (size_t i = 0; i < n; i++) {
        if (!hn_vocab_piece(v, ids[i], special, &k))
            return HN_FAIL(err, HONE_E_ARG, "token id %d at index %zu, expected 0 to %d", ids[i], i, v->n_id - 1);
        if (k > SIZE_MAX / 2 - total) return HN_FAIL(err, HONE_E_NOMEM, "text of %zu tokens", n);
        total += k;
    }
    char *dst = malloc(total + 1);
    if (!dst) return HN_FAIL(err, HONE_E_NOMEM, "text of %zu tokens, %zu bytes", n, total);
    /* the space that encoding put in front of the text: of the first token, or the one behind bos */
    size_t first = n && v->bos >= 0 && ids[0] == v->bos, o = 0;
    bool prefix = v->space_prefix || v->merge_spaces || v->kind == HN_VOCAB_WPM;
    for (size_t i = 0; i < n; i++) {
        const char *p = hn_vocab_piece(v, ids[i], special, &k);
        if (i == first && prefix && k && *p == ' ' && v->type[ids[i]] == HN_TOK_NORMAL) p++, k--;
        memcpy(dst + o, p, k);
        o += k;
    }
    dst[o] = 0;
    *text = dst;
    *len = o;
    return HONE_OK;
}
