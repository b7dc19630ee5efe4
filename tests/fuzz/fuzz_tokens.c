/* Fuzzes encoding with vocabulary and text both hostile, against the rules as one would
 * write them down first: quadratic, without tables, memory, words or tries. The input is a
 * small vocabulary (so that nearly every input is one, which mutated GGUF files are not)
 * and then the text.
 * covers: src/text/encode.c src/text/ugm.c src/text/wpm.c src/text/trie.c src/text/match.c src/text/vocab.c */
#include "../unit/gguf_bytes.h"
#include "text/text_priv.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TOKENS = 600, MAX_MERGES = 128, MAX_BYTES = 40, MAX_TEXT = 1000 };

typedef struct tok {
    uint8_t b[MAX_BYTES];
    uint8_t n, type;
    float score;
} tok;
typedef struct input {
    const uint8_t *p;
    size_t n;
} input;
static tok toks[MAX_TOKENS];
static int n_toks, merges[MAX_MERGES][3], n_merges; /* left, right, result */

static void must(bool ok)
{
    if (!ok) abort();
}

static unsigned byte(input *in) { return in->n ? in->n--, *in->p++ : 0; }

static int find(const uint8_t *b, size_t n)
{
    for (int i = 0; i < n_toks; i++)
        if (toks[i].n == n && memcmp(toks[i].b, b, n) == 0) return i;
    return -1;
}

static int add(const uint8_t *b, size_t n, unsigned type, float score)
{
    int at = n <= MAX_BYTES ? find(b, n) : -1;
    if (at >= 0 || n == 0 || n > MAX_BYTES || n_toks == MAX_TOKENS) return at;
    tok *t = &toks[n_toks];
    memcpy(t->b, b, n);
    t->n = (uint8_t)n;
    t->type = (uint8_t)type;
    t->score = score;
    return n_toks++;
}

/* ---- the file ------------------------------------------------------------------------------ */

static size_t mapped(char *dst, const uint8_t *b, size_t n) /* GPT-2's alphabet */
{
    size_t o = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned c = b[i], other = c < 0x21 ? c : c < 0xA1 ? c - 0x7F + 33 : 67;
        bool self = (c > 0x20 && c < 0x7F) || (c > 0xA0 && c != 0xAD);
        o += hn_utf8_put(dst + o, self ? c : 0x100 + other);
    }
    return o;
}

static size_t stored(char *dst, const tok *t, unsigned kind)
{
    if (kind == HN_VOCAB_BPE && t->type == HN_TOK_NORMAL) return mapped(dst, t->b, t->n);
    size_t o = 0;
    for (size_t i = 0; i < t->n; i++)
        if (kind == HN_VOCAB_RWKV) o += (size_t)sprintf(dst + o, "\\x%02x", t->b[i]);
        else dst[o++] = (char)t->b[i];
    return o;
}

static hn_vocab *make(unsigned kind, const char *pre, bool prefix)
{
    static const char *const model[] = { "llama", "gpt2", "rwkv", "bert", "t5" };
    char s[8 * MAX_BYTES];
    bb b = bb_head(3, 0, kind > HN_VOCAB_RWKV ? 9 : 8);
    bb_kv_str(&b, "general.architecture", "llama");
    bb_kv_str(&b, "tokenizer.ggml.model", model[kind]);
    bb_kv_str(&b, "tokenizer.ggml.pre", pre);
    bb_kv(&b, "tokenizer.ggml.add_space_prefix", 7, prefix, 1);
    if (kind > HN_VOCAB_RWKV) bb_kv_u32(&b, "tokenizer.ggml.unknown_token_id", 0);
    bb_kv_array(&b, "tokenizer.ggml.tokens", 8, (uint64_t)n_toks);
    for (int i = 0; i < n_toks; i++) bb_strn(&b, s, stored(s, &toks[i], kind));
    bb_kv_array(&b, "tokenizer.ggml.token_type", 5, (uint64_t)n_toks);
    for (int i = 0; i < n_toks; i++) bb_u32(&b, toks[i].type);
    bb_kv_array(&b, "tokenizer.ggml.scores", 6, (uint64_t)n_toks);
    for (int i = 0; i < n_toks; i++) bb_raw(&b, &toks[i].score, 4);
    bb_kv_array(&b, "tokenizer.ggml.merges", 8, (uint64_t)n_merges);
    for (int i = 0; i < n_merges; i++) {
        const tok *l = &toks[merges[i][0]], *r = &toks[merges[i][1]];
        size_t n = mapped(s, l->b, l->n);
        s[n++] = ' ';
        bb_strn(&b, s, n + mapped(s + n, r->b, r->n));
    }
    bb_pad(&b, 32);
    hn_gguf *g;
    hn_vocab *v = NULL;
    hone_error e = { 0 };
    must(hn_gguf_parse(&g, b.p, b.n, "fuzz", &e) == HONE_OK);
    hone_status st = hn_vocab_new(&v, g, NULL, &e);
    must(st == HONE_OK ? v != NULL : !v && *e.message);
    hn_gguf_close(g);
    bb_free(&b);
    return v;
}

/* ---- the rules ------------------------------------------------------------------------------ */

static int32_t want[4 * MAX_TEXT + 8];
static size_t n_want;
static struct {
    uint32_t off, len;
    int id, pair;
} sym[3 * MAX_TEXT + 8]; /* pair: what it becomes with its right neighbour */

/* Merges until nothing merges: the smallest order first, then the leftmost. */
static size_t merge(const uint8_t *s, size_t n, int (*result)(const uint8_t *s, size_t i),
                    double (*order)(size_t i, int r))
{
    for (size_t i = 0; i + 1 < n; i++) sym[i].pair = result(s, i);
    for (;;) {
        size_t best = n;
        double best_order = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            if (sym[i].pair < 0) continue;
            double o = order(i, sym[i].pair);
            if (best == n || o < best_order) best = i, best_order = o;
        }
        if (best == n) return n;
        sym[best].len += sym[best + 1].len;
        sym[best].id = sym[best].pair;
        n--;
        for (size_t i = best + 1; i < n; i++) sym[i] = sym[i + 1];
        if (best) sym[best - 1].pair = result(s, best - 1);
        if (best + 1 < n) sym[best].pair = result(s, best);
    }
}

static int spm_result(const uint8_t *s, size_t i) { return find(s + sym[i].off, sym[i].len + sym[i + 1].len); }
static double spm_order(size_t i, int r) { return -(double)toks[r].score; }
static double bpe_order(size_t i, int r)
{
    for (int k = 0; k < n_merges; k++)
        if (merges[k][0] == sym[i].id && merges[k][1] == sym[i + 1].id) return k;
    abort();
}
static int bpe_result(const uint8_t *s, size_t i)
{
    for (int k = 0; k < n_merges; k++)
        if (merges[k][0] == sym[i].id && merges[k][1] == sym[i + 1].id) return merges[k][2];
    return -1;
}

static void spm_rule(const uint8_t *text, size_t len, bool prefix)
{
    static uint8_t s[3 * MAX_TEXT + 8];
    size_t n = 0, k = 0;
    for (size_t i = 0; i < len + prefix; i++) {
        uint8_t c = i < prefix ? ' ' : text[i - prefix];
        if (c == ' ') memcpy(s + n, "\xE2\x96\x81", 3), n += 3;
        else s[n++] = c;
    }
    for (size_t i = 0; i < n; k++) {
        size_t m = 1, most = s[i] < 0xC0 ? 1 : s[i] < 0xE0 ? 2 : s[i] < 0xF0 ? 3 : 4;
        while (m < most && i + m < n && (s[i + m] & 0xC0) == 0x80) m++;
        sym[k].off = (uint32_t)i;
        sym[k].len = (uint32_t)m;
        i += m;
    }
    k = merge(s, k, spm_result, spm_order);
    for (size_t i = 0; i < k; i++) {
        int id = find(s + sym[i].off, sym[i].len);
        if (id >= 0) want[n_want++] = id;
        /* a byte without token is the unknown token, id 0 */
        for (size_t j = 0; id < 0 && j < sym[i].len; j++) {
            int one = find(s + sym[i].off + j, 1);
            want[n_want++] = one >= 0 ? one : 0;
        }
    }
}

static void bpe_rule(const hn_pre *pre, const uint8_t *text, size_t len)
{
    static uint32_t x[MAX_TEXT];
    static uint8_t s[3 * MAX_TEXT + 8];
    size_t n = 0, used;
    for (size_t i = 0; i < len; i += used) {
        int32_t cp = hn_utf8_next(text + i, len - i, &used);
        uint32_t c = cp < 0 ? 0xFFFDu : (uint32_t)cp;
        x[n++] = c | (uint32_t)hn_class_of(hn_class_table_get(), c) << 21;
    }
    hn_pre_split(pre, x, n);
    for (size_t i = 0; i < n;) {
        size_t b = 0, k = 0;
        do b += hn_utf8_put((char *)s + b, HN_CP(x[i]));
        while (++i < n && !(x[i] & HN_CUT));
        int id = hn_pre_ignore_merges(pre) ? find(s, b) : -1;
        if (id >= 0) {
            want[n_want++] = id;
            continue;
        }
        for (size_t j = 0; j < b; j++, k++) {
            sym[k].off = (uint32_t)j;
            sym[k].len = 1;
            sym[k].id = find(s + j, 1);
        }
        k = merge(s, k, bpe_result, bpe_order);
        for (size_t j = 0; j < k; j++)
            if (sym[j].id >= 0) want[n_want++] = sym[j].id;
    }
}

static bool rwkv_rule(const uint8_t *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        int best = -1;
        for (int t = 0; t < n_toks; t++)
            if (toks[t].n <= len - i && memcmp(toks[t].b, s + i, toks[t].n) == 0 &&
                (best < 0 || toks[t].n > toks[best].n))
                best = t;
        if (best < 0) return false;
        want[n_want++] = best;
        i += toks[best].n;
    }
    return true;
}

/* Only for texts of ASCII: what WordPiece folds has a test of its own. */
static bool wpm_rule(const uint8_t *s, size_t len)
{
    uint8_t w[3 + MAX_TEXT];
    for (size_t i = 0; i < len; i++)
        if (s[i] >= 0x7F || (s[i] < ' ' && s[i] != '\n' && s[i] != '\t')) return false;
#define ALNUM(c) (((c) >= '0' && (c) <= '9') || ((c) >= 'A' && (c) <= 'Z') || ((c) >= 'a' && (c) <= 'z'))
    for (size_t i = 0; i < len;) {
        size_t n = 3, first = n_want;
        if (s[i] <= ' ') {
            i++;
            continue;
        }
        memcpy(w, "\xE2\x96\x81", 3);
        do w[n++] = s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i];
        while (++i < len && ALNUM(s[i]) && ALNUM(s[i - 1]));
        bool known = n - 3 <= 100;
        for (size_t k = 0; known && k < n;) {
            int best = -1;
            for (int t = 1; t < n_toks; t++)
                if (toks[t].n <= n - k && memcmp(toks[t].b, w + k, toks[t].n) == 0 && k + toks[t].n > 3 &&
                    (best < 0 || toks[t].n > toks[best].n))
                    best = t;
            known = best >= 0;
            if (known) want[n_want++] = best, k += toks[best].n;
        }
        if (!known) n_want = first, want[n_want++] = 0;
    }
    return true;
}

static void ugm_rule(const uint8_t *text, size_t len, bool prefix)
{
    static uint8_t s[3 * MAX_TEXT + 8];
    static double best[3 * MAX_TEXT + 9];
    static int from[3 * MAX_TEXT + 9], id[3 * MAX_TEXT + 9];
    size_t n = 0, used;
    bool any = false;
    float min = INFINITY;
    for (size_t i = 0; i < len; i += used) {
        int32_t cp = hn_utf8_next(text + i, len - i, &used);
        if (cp < 0) used = 1;
        if (cp != ' ' && !any && prefix) memcpy(s + n, "\xE2\x96\x81", 3), n += 3;
        any |= cp != ' ';
        n += hn_utf8_put((char *)s + n, cp < 0 ? 0xFFFDu : cp == ' ' ? 0x2581u : (uint32_t)cp);
    }
    for (int t = 1; t < n_toks; t++)
        if (toks[t].score < min) min = toks[t].score;
    for (size_t i = 0; i <= n; i++) best[i] = -INFINITY;
    best[0] = 0;
    for (size_t i = 0; i < n; i += used) {
        bool single = false;
        (void)hn_utf8_next(s + i, n - i, &used);
        for (int t = 1; t < n_toks; t++) {
            size_t m = toks[t].n;
            if (m > n - i || memcmp(s + i, toks[t].b, m) != 0) continue;
            single |= m == used;
            double o = best[i] + (double)toks[t].score;
            if (o > best[i + m]) best[i + m] = o, from[i + m] = (int)i, id[i + m] = t;
        }
        double o = best[i] + (double)((isfinite(min) ? min : 0) - 10);
        if (!single && o > best[i + used]) best[i + used] = o, from[i + used] = (int)i, id[i + used] = 0;
    }
    size_t k = 0;
    for (size_t i = n; i; i = (size_t)from[i]) {
        want[k] = id[i];
        if (id[i] || !k || want[k - 1]) k++;
    }
    for (size_t i = 0; i < k / 2; i++) {
        int32_t t = want[i];
        want[i] = want[k - 1 - i];
        want[k - 1 - i] = t;
    }
    n_want = k;
}

/* ---- one input ------------------------------------------------------------------------------- */

static void encode(const hn_vocab *v, const uint8_t *s, size_t n, int flags, bool compare, bool possible)
{
    hn_ids ids = { 0 };
    hone_error e = { 0 };
    hone_status st = hn_vocab_encode(v, (const char *)s, n, flags, &ids, &e);
    if (compare) must(possible == (st == HONE_OK));
    if (compare && possible) must(ids.n == n_want && (!n_want || memcmp(ids.data, want, n_want * sizeof *want) == 0));
    for (size_t i = 0; i < ids.n; i++) must(ids.data[i] >= 0 && ids.data[i] < n_toks);
    free(ids.data);
}

/* The same ids, and for each its bytes: ascending. */
static void locate(const hn_vocab *v, const uint8_t *s, size_t n, bool compare)
{
    hn_ids ids = { 0 };
    hone_span *span;
    hone_error e = { 0 };
    if (hn_vocab_locate(v, (const char *)s, n, 0, &ids, &span, &e) == HONE_OK) {
        if (compare) must(ids.n == n_want && (!n_want || memcmp(ids.data, want, n_want * sizeof *want) == 0));
        for (size_t i = 0; i < ids.n; i++)
            must(span[i].begin <= span[i].end && span[i].end <= n &&
                 (!i || (span[i].begin >= span[i - 1].begin && span[i].end >= span[i - 1].end)));
    }
    free(span);
    free(ids.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const pres[] = { "gpt-2",     "llama-bpe",    "qwen2",          "default",     "starcoder",
                                        "falcon",    "deepseek-llm", "deepseek-coder", "deepseek-v3", "tekken",
                                        "gpt-4o",    "youtu",        "seed-coder",     "bloom",       "viking",
                                        "chameleon", "exaone-moe",   "jais-2",         "qwen35" };
    static uint8_t text[MAX_TEXT];
    input in = { data, size };
    unsigned head = byte(&in), more = byte(&in), kind = more & 8 ? HN_VOCAB_WPM + head % 2 : head % 3;
    bool singles = more & 1, special = more & 2, prefix = more & 4, plain = !special;
    const char *pre = pres[byte(&in) % (sizeof pres / sizeof *pres)];
    n_toks = n_merges = 0;
    uint8_t b[256];
    if (kind != HN_VOCAB_BPE && kind != HN_VOCAB_RWKV) { /* id 0 is the unknown token, and no text */
        add((const uint8_t *)"<unknown>", 9, HN_TOK_UNKNOWN, 0);
        special = false;
    }
    for (unsigned i = 0; singles && i < 256; i++) add(&(uint8_t){ (uint8_t)i }, 1, HN_TOK_NORMAL, -100);
    for (unsigned n = byte(&in) % 64; n; n--) {
        unsigned how = byte(&in), len = how % 12 + 1;
        for (unsigned i = 0; i < len; i++) b[i] = (uint8_t)byte(&in);
        static const uint8_t types[] = { HN_TOK_CONTROL, HN_TOK_USER, HN_TOK_UNUSED, HN_TOK_UNKNOWN };
        if (kind > HN_VOCAB_RWKV && how & 64) { /* words begin so */
            memmove(b + 3, b, len);
            memcpy(b, "\xE2\x96\x81", 3);
            len += 3;
        }
        add(b, len, special && how & 128 ? types[how / 16 % 4] : HN_TOK_NORMAL, (float)(int8_t)byte(&in));
    }
    if (n_toks == 0) return 0;
    if (kind < HN_VOCAB_RWKV)
        for (unsigned n = byte(&in) % MAX_MERGES; n && in.n; n--) {
            int l = (int)((byte(&in) | byte(&in) << 8) % (unsigned)n_toks),
                r = (int)((byte(&in) | byte(&in) << 8) % (unsigned)n_toks);
            if (toks[l].type != HN_TOK_NORMAL || toks[r].type != HN_TOK_NORMAL) continue;
            memcpy(b, toks[l].b, toks[l].n);
            memcpy(b + toks[l].n, toks[r].b, toks[r].n);
            int to = add(b, (size_t)toks[l].n + toks[r].n, HN_TOK_NORMAL, (float)-n_merges);
            if (kind == HN_VOCAB_BPE && to >= 0 && toks[to].type == HN_TOK_NORMAL) {
                merges[n_merges][0] = l;
                merges[n_merges][1] = r;
                merges[n_merges++][2] = to;
            }
        }
    unsigned times = byte(&in) % 40 + 1;
    size_t len = 0, tail = in.n;
    for (; times && in.n; times--)
        for (size_t i = 0; i < tail && len < MAX_TEXT; i++) text[len++] = in.p[i];
    hn_vocab *v = make(kind, pre, prefix);
    if (!v) return 0;
    if (kind != HN_VOCAB_BPE && kind != HN_VOCAB_RWKV && find((const uint8_t *)"<unknown>", 9) != 0) abort();
    n_want = 0;
    bool possible = true;
    if (plain && len) {
        if (kind == HN_VOCAB_SPM) spm_rule(text, len, prefix);
        else if (kind == HN_VOCAB_BPE) bpe_rule(hn_pre_find(pre, strlen(pre)), text, len);
        else if (kind == HN_VOCAB_RWKV) possible = rwkv_rule(text, len);
        else if (kind == HN_VOCAB_WPM) plain = wpm_rule(text, len);
        else ugm_rule(text, len, prefix);
    }
    encode(v, text, len, 0, plain, possible);
    locate(v, text, len, plain && possible);
    encode(v, text, len, 0, plain, possible); /* with what the first call taught it */
    encode(v, text, len, HONE_TOK_SPECIAL, false, possible);
    encode(v, text, len, HONE_TOK_SPECIAL | HONE_TOK_ADD, false, possible);
    hn_vocab_free(v);
    return 0;
}
