/* text_priv: what the files of this room share. Neighbours include text.h only. */
#ifndef HN_TEXT_PRIV_H
#define HN_TEXT_PRIV_H

#include "base/utf8.h"
#include "text/text.h"

/* ---- pre-tokenizers ------------------------------------------------------------------ */

typedef struct hn_pre hn_pre; /* a row of the table of kinds: static, immutable */

const hn_pre *hn_pre_find(const char *name, size_t len); /* NULL: unknown */
bool hn_pre_add_bos(const hn_pre *p);
bool hn_pre_ignore_merges(const hn_pre *p);
/* Kinds that have no rules and whose vocabulary is not byte-level: BPE on characters, with U+2581 for the space, bytes
 * only for characters without a token. Lines are divided from the newlines between them, which in kinds of
 * RAW_LINES are one token wherever the vocabulary has one of that many. */
typedef enum hn_pre_raw { HN_PRE_BYTES, HN_PRE_RAW, HN_PRE_RAW_LINES } hn_pre_raw;
hn_pre_raw hn_pre_is_raw(const hn_pre *p);
const char *hn_pre_list(void); /* one name per behaviour, for messages */

/* Text under division: code point | class << 21 | HN_CUT where a piece begins. */
#define HN_CUT (1u << 31)
#define HN_CP(x) ((x)&0x1FFFFFu)
#define HN_CLS(x) ((x) >> 21 & 15u)
void hn_pre_split(const hn_pre *p, uint32_t *x, size_t n);

/* ---- the vocabulary ------------------------------------------------------------------- */

enum { HN_TOK_UNDEFINED, HN_TOK_NORMAL, HN_TOK_UNKNOWN, HN_TOK_CONTROL, HN_TOK_USER, HN_TOK_UNUSED, HN_TOK_BYTE };

/* Tokens in byte order of their text: a trie without nodes. */
typedef struct hn_lex {
    int32_t *ids;
    uint32_t n;
    uint32_t first[257]; /* ids[first[b]..first[b+1]) begin with byte b */
} hn_lex;

/* The same tokens as a trie in two arrays: the child of node s by byte c is t = base ^ c,
 * and it exists iff its check is s. Node 0 is the root. */
#define HN_TRIE_END (1u << 31)
typedef struct hn_trie_node {
    uint32_t base, check;
} hn_trie_node; /* base | HN_TRIE_END where a token ends; check UINT32_MAX: no node */
typedef struct hn_trie {
    hn_trie_node *node;
    int32_t *id; /* token that ends at the node, -1 none */
    uint32_t n;
} hn_trie;

/* Tokens as an automaton; see match.c. Tokens have classes 0 .. n_class - 1; one of class c is also of those below. */
typedef struct hn_match_token {
    int32_t id;
    uint32_t len;
    uint8_t cls;
} hn_match_token;
typedef struct hn_match_link {
    uint32_t up, jump, depth;
} hn_match_link; /* in the chain of one class: next shorter token; one farther up */
typedef struct hn_match {
    uint32_t n, n_token; /* states, 0 is the root; tokens, 0 is none */
    unsigned n_class, n_first;
    uint32_t root[256];    /* children of the root by byte */
    uint8_t *byte;         /* [n] leads to the state */
    uint32_t *child;       /* [n + 1] children of s are the states [child[s], child[s + 1]), their bytes ascending */
    uint32_t *fail;        /* [n] the longest other state whose string ends that of s */
    uint32_t *last;        /* [n][n_class] longest token that ends the string of s */
    hn_match_token *token; /* [n_token + 1] */
    hn_match_link *link;   /* [n_token + 1][n_class] */
    uint8_t first;         /* a byte that leaves the root, the only one if n_first is 1 */
} hn_match;

typedef struct hn_hash_slot {
    uint32_t id1, tag;
} hn_hash_slot; /* id + 1, 0: empty; upper hash bits */
typedef struct hn_merge {
    uint64_t key;
    uint32_t rank, id;
} hn_merge; /* key: left << 32 | right; id -1u: empty */

struct hn_vocab {
    hn_vocab_kind kind;
    int32_t n, n_id;   /* tokens; ids: n, or the rows of a padded embedding table */
    const hn_pre *pre; /* BPE … */
    bool raw;          /* … on characters: the space is stored as one, whether written ' ' or U+2581 */
    bool add_bos, add_eos, space_prefix, ignore_merges;
    uint8_t *whole;   /* [n] SPM, BPE: does the token's text become this one token? HN_WHOLE_x, learnt while
                       * encoding: the answer is a function of the vocabulary, so threads may store it twice.
                       * Only __atomic loads and stores */
    bool joined[256]; /* SPM, raw BPE: some token has U+2581 right behind this byte, so a word may go on there */
    int32_t bos, eos, eot, eom, unk;
    int32_t fim[HONE_N_FIM];
    uint8_t *type;  /* [n] HN_TOK_x */
    uint8_t *flags; /* [n] HN_FLAG_x */
    char *text;     /* what encoding compares: BPE and RWKV raw bytes, else as stored */
    uint32_t *off;  /* [n + 1] into text */
    char *piece;    /* SPM, WPM, UGM: U+2581 as space, bytes for byte tokens; else NULL, = text */
    uint32_t *piece_off;
    float *score;       /* SPM, UGM; NULL: all 0 */
    uint32_t max_len;   /* longest text that the table holds */
    hn_hash_slot *slot; /* SPM, BPE: text -> id of what raw text may become */
    uint32_t slot_mask;
    uint64_t seed;
    hn_merge *merge; /* BPE */
    uint32_t merge_mask;
    int32_t byte_id[256];          /* SPM, BPE: token of a byte, -1 none; raw BPE, UGM: where a character has none */
    hn_lex special;                /* CONTROL, UNKNOWN, USER_DEFINED */
    bool has_user;                 /* some are USER_DEFINED */
    hn_match marks;                /* of special: class HN_MARK_x */
    hn_match ends;                 /* RWKV with long tokens: of all, from their last byte to their first */
    hn_lex all;                    /* RWKV, WPM, UGM: what raw text may become */
    hn_trie trie;                  /* of all */
    int32_t sep;                   /* WPM: what add_eos adds; bos is cls */
    bool lowercase, strip_accents; /* WPM */
    bool merge_spaces;             /* UGM: remove_extra_whitespaces */
    float unk_score;               /* UGM */
    uint32_t *map;                 /* UGM: units of the precompiled charsmap, NULL: none … */
    uint32_t n_map, n_map_text;
    char *map_text;                       /* … and its replacements, each with its NUL */
    struct hn_token_tree *_Atomic tokens; /* of masks; made at first use */
};

/* Classes of special tokens: any; USER_DEFINED, recognised in plain text; of those the ones that do
 * not structure a prompt, recognised in text from outside. */
enum { HN_MARK_ANY, HN_MARK_USER, HN_MARK_PLAIN, HN_N_MARK };

enum { HN_WHOLE_UNKNOWN, HN_WHOLE_YES, HN_WHOLE_NO };

enum {
    HN_FLAG_EOG = 1,
    HN_FLAG_LSTRIP = 2,
    HN_FLAG_RSTRIP = 4,
    HN_FLAG_UNREACHABLE =
        8 /* BPE: stored with a character outside the byte alphabet, or with a space that raw BPE writes U+2581 */
};

static inline const char *hn_vocab_text(const hn_vocab *v, int32_t id, size_t *len)
{
    *len = v->off[id + 1] - v->off[id];
    return v->text + v->off[id];
}

static inline uint64_t hn_load64(const char *s)
{
    uint64_t w;
    memcpy(&w, s, 8);
    return w;
}
static inline uint32_t hn_load32(const char *s)
{
    uint32_t w;
    memcpy(&w, s, 4);
    return w;
}

static inline uint64_t hn_vocab_hash(const hn_vocab *v, const char *s, size_t n) /* n > 0 */
{
    uint64_t h = v->seed ^ n;
    if (n >= 8) {
        for (const char *last = s + n - 8; s < last; s += 8) {
            h = (h ^ hn_load64(s)) * 0x9E3779B97F4A7C15u;
            h ^= h >> 29;
            if (last - s < 8) return hn_mix64(h ^ hn_load64(last));
        }
        return hn_mix64(h ^ hn_load64(s));
    }
    if (n >= 4) return hn_mix64(h ^ (hn_load32(s) | (uint64_t)hn_load32(s + n - 4) << 32));
    const unsigned char *u = (const unsigned char *)s;
    return hn_mix64(h ^ (u[0] | (uint64_t)u[n / 2] << 8 | (uint64_t)u[n - 1] << 16));
}

/* memcmp(a, b, n) == 0; words are too short for a call. */
static inline bool hn_same_bytes(const char *a, const char *b, size_t n)
{
    if (n > 16) return memcmp(a, b, n) == 0;
    if (n >= 8) return ((hn_load64(a) ^ hn_load64(b)) | (hn_load64(a + n - 8) ^ hn_load64(b + n - 8))) == 0;
    if (n >= 4) return ((hn_load32(a) ^ hn_load32(b)) | (hn_load32(a + n - 4) ^ hn_load32(b + n - 4))) == 0;
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i]) return false;
    return true;
}

static inline bool hn_vocab_same(const hn_vocab *v, int32_t id, const char *s, size_t n)
{
    return v->off[id + 1] - v->off[id] == n && hn_same_bytes(v->text + v->off[id], s, n);
}

/* Raw text -> id, -1; h is its hash. */
static inline int32_t hn_vocab_find_hashed(const hn_vocab *v, const char *s, size_t n, uint64_t h)
{
    if (n > v->max_len) return -1;
    for (uint32_t i = (uint32_t)h & v->slot_mask; v->slot[i].id1; i = (i + 1) & v->slot_mask)
        if (v->slot[i].tag == (uint32_t)(h >> 32) && hn_vocab_same(v, (int32_t)v->slot[i].id1 - 1, s, n))
            return (int32_t)v->slot[i].id1 - 1;
    return -1;
}
static inline int32_t hn_vocab_find(const hn_vocab *v, const char *s, size_t n)
{
    return n > v->max_len || n == 0 ? -1 : hn_vocab_find_hashed(v, s, n, hn_vocab_hash(v, s, n));
}
/* ids: sorted by text, or by text from its end if backwards; no two equal, none empty. cls[i]: class of ids[i], NULL:
 * all 0. */
hone_status hn_match_make(hn_match *m, const hn_vocab *v, const int32_t *ids, const uint8_t *cls, uint32_t n,
                          unsigned n_class, bool backwards, hone_error *err);
void hn_match_free(hn_match *m);

static inline uint32_t hn_match_child(const hn_match *m, uint32_t s, uint8_t c) /* s > 0; 0: none */
{
    uint32_t lo = m->child[s], hi = m->child[s + 1], end = hi;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (m->byte[mid] < c) lo = mid + 1;
        else hi = mid;
    }
    return lo < end && m->byte[lo] == c ? lo : 0;
}
/* The state behind s and one more byte. */
static inline uint32_t hn_match_step(const hn_match *m, uint32_t s, uint8_t c)
{
    for (; s; s = m->fail[s]) {
        uint32_t t = hn_match_child(m, s, c);
        if (t) return t;
    }
    return m->root[c];
}
/* The longest token of class c, of at most max bytes, among t and those that end where it ends; 0: none. */
static inline uint32_t hn_match_at_most(const hn_match *m, uint32_t t, unsigned c, size_t max)
{
    if (t && m->token[t].cls < c) t = m->link[(size_t)t * m->n_class + c].up;
    while (t && m->token[t].len > max) {
        const hn_match_link *l = &m->link[(size_t)t * m->n_class + c];
        t = l->jump && m->token[l->jump].len > max ? l->jump : l->up;
    }
    return t;
}

hone_status hn_trie_make(hn_trie *t, const hn_vocab *v, const hn_lex *l,
                         hone_error *err); /* l: distinct texts, none empty */
int32_t hn_lex_find(const hn_vocab *v, const hn_lex *l, const char *s, size_t n);

/* Bytes that tokens came from. */
typedef struct hn_spans {
    hone_span *data;
    size_t n, cap;
} hn_spans;
static inline hone_status hn_spans_put(hn_spans *p, size_t begin, size_t end, hone_error *err)
{
    if (p->n == p->cap) {
        size_t cap = p->cap * 2 + 64;
        hone_span *q = cap > SIZE_MAX / sizeof *q ? NULL : realloc(p->data, cap * sizeof *q);
        if (!q) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: places of %zu tokens", cap);
        p->data = q;
        p->cap = cap;
    }
    p->data[p->n++] = (hone_span){ begin, end };
    return HONE_OK;
}

void hn_vocab_tokens_free(hn_vocab *v);

/* ---- WordPiece and Unigram -------------------------------------------------------------- */

/* Their own keys; called when tokens, types, scores, special lists and v->bos … v->unk are there. */
hone_status hn_wpm_load(hn_vocab *v, const hn_gguf *g, hone_error *err);
hone_status hn_ugm_load(hn_vocab *v, const hn_gguf *g, hone_error *err);
/* Appends the ids of one raw fragment and, if spans is not NULL, the bytes of s that each came from. */
hone_status hn_wpm_encode(const hn_vocab *v, const char *s, size_t len, hn_ids *out, hn_spans *spans, hone_error *err);
hone_status hn_ugm_encode(const hn_vocab *v, const char *s, size_t len, hn_ids *out, hn_spans *spans, hone_error *err);

static inline const hn_merge *hn_vocab_merge(const hn_vocab *v, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (uint32_t i = (uint32_t)hn_mix64(key ^ v->seed) & v->merge_mask;; i = (i + 1) & v->merge_mask) {
        const hn_merge *m = &v->merge[i];
        if (m->id == UINT32_MAX) return NULL;
        if (m->key == key) return m;
    }
}

#endif
