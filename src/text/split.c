/* split: pre-tokenizers of byte-level BPE. A kind is an ordered list of rules; each rule
 * divides every piece left by the rules before it into its matches and the gaps between
 * them. The rules are regular expressions in the tokenizers that models were trained
 * with; each is written out here as a matcher that gives the same leftmost, first
 * alternative, greedy match in time linear in the text. Above each stands its expression.
 * Knows classes of characters; refuses to know vocabularies. */
#include "text/text_priv.h"

typedef struct seg {
    uint32_t *x;
    size_t n;
    size_t ws_i, ws_end, ws_nl, ws_e; /* the white-space run last measured, see space_run */
    size_t han_i, han_at, han_e;      /* the Han character last looked for, see next_han */
} seg;

typedef size_t matcher(seg *s, size_t i, size_t e); /* length of the match at i in piece [.., e), 0 none */

#define BIT(c) (1u << (c))
enum {
    L = BIT(HN_CLASS_UPPER) | BIT(HN_CLASS_LOWER) | BIT(HN_CLASS_LETTER),
    M = BIT(HN_CLASS_MARK),
    N = BIT(HN_CLASS_NUMBER),
    P = BIT(HN_CLASS_PUNCT),
    S = BIT(HN_CLASS_SYMBOL),
    W = BIT(HN_CLASS_SPACE),
    UP = BIT(HN_CLASS_UPPER) | BIT(HN_CLASS_LETTER) | M,  /* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] */
    LOW = BIT(HN_CLASS_LOWER) | BIT(HN_CLASS_LETTER) | M, /* [\p{Ll}\p{Lm}\p{Lo}\p{M}] */
    ANY = 0x1FF
};

static inline bool in(uint32_t x, unsigned mask) { return mask >> HN_CLS(x) & 1; }
static inline bool is_crlf(uint32_t x) { return HN_CP(x) == '\r' || HN_CP(x) == '\n'; }
static inline bool between(uint32_t x, uint32_t lo, uint32_t hi) { return HN_CP(x) - lo <= hi - lo; }

static inline size_t run(const seg *s, size_t i, size_t e, unsigned mask) /* end of the run */
{
    while (i < e && in(s->x[i], mask)) i++;
    return i;
}

/* End of the white space at i; *nl: index behind its last CR or LF, 0 none. Remembered, as
 * rules that bite pieces off a run would otherwise measure it again and again. */
static size_t space_run(seg *s, size_t i, size_t e, size_t *nl)
{
    if (!(s->ws_e == e && i >= s->ws_i && i < s->ws_end)) {
        s->ws_i = i;
        s->ws_e = e;
        s->ws_nl = 0;
        size_t j = i;
        for (; j < e && in(s->x[j], W); j++)
            if (is_crlf(s->x[j])) s->ws_nl = j + 1;
        s->ws_end = j;
    }
    *nl = s->ws_nl > i ? s->ws_nl : 0;
    return s->ws_end;
}

/* ---- building blocks -------------------------------------------------------------------- */

/* 's|'t|'re|'ve|'m|'ll|'d; fold: (?i:…) of it (below: Ci), by Unicode's simple folding as in the originals (tiktoken,
 * Hugging Face): of these letters that is ASCII's other case and ſ (U+017F) for s. llama.cpp has [sS] instead. */
static size_t contraction(const seg *s, size_t i, size_t e, bool fold)
{
    if (HN_CP(s->x[i]) != '\'' || i + 1 >= e) return 0;
    uint32_t a = HN_CP(s->x[i + 1]), b = i + 2 < e ? HN_CP(s->x[i + 2]) : 0;
    if (fold) {
        if (a - 'A' < 26) a |= 32;
        if (b - 'A' < 26) b |= 32;
        if (a == 0x17F) a = 's';
    }
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if ((a == 'r' || a == 'v') && b == 'e') return 3;
    return a == 'l' && b == 'l' ? 3 : 0;
}

/* [^\r\n BAR]?WORD+ ; a character of both optional prefix and word serves as prefix if a word follows */
static size_t prefixed(const seg *s, size_t i, size_t e, unsigned bar, unsigned word)
{
    if (!is_crlf(s->x[i]) && !in(s->x[i], bar) && i + 1 < e && in(s->x[i + 1], word)) return run(s, i + 1, e, word) - i;
    return run(s, i, e, word) - i;
}

/* " ?"MASK+ and \s?MASK+ */
static size_t spaced(const seg *s, size_t i, size_t e, unsigned mask)
{
    size_t k = i + (HN_CP(s->x[i]) == ' ');
    size_t end = run(s, k, e, mask);
    return end > k ? end - i : 0;
}
static size_t white_spaced(const seg *s, size_t i, size_t e, unsigned mask)
{
    size_t k = i + in(s->x[i], W);
    size_t end = run(s, k, e, mask);
    return end > k ? end - i : 0;
}

/* " ?"MASK+ and then: nothing, [\r\n]*, [\r\n/]*, [\r\n/]? */
enum trail { TRAIL_NONE, TRAIL_NL, TRAIL_NL_SLASH, TRAIL_ONE };
static size_t marks(const seg *s, size_t i, size_t e, unsigned mask, enum trail t)
{
    size_t len = spaced(s, i, e, mask);
    if (!len || t == TRAIL_NONE) return len;
    size_t k = i + len;
    while (k < e && (is_crlf(s->x[k]) || (t != TRAIL_NL && HN_CP(s->x[k]) == '/'))) {
        k++;
        if (t == TRAIL_ONE) break;
    }
    return k - i;
}

/* newline: \s*[\r\n]+ ; then \s+(?!\S)|\s+ */
static size_t white(seg *s, size_t i, size_t e, bool newline)
{
    if (!in(s->x[i], W)) return 0;
    size_t nl, end = space_run(s, i, e, &nl);
    if (newline && nl) return nl - i;
    return end < e && end - i > 1 ? end - i - 1 : end - i;
}

static size_t digits(const seg *s, size_t i, size_t e, size_t max)
{
    size_t k = i;
    while (k < e && k - i < max && in(s->x[k], N)) k++;
    return k - i;
}

/* one character of the mask */
static size_t one(const seg *s, size_t i, unsigned mask) { return in(s->x[i], mask); }

/* UP*LOW+ at j (first) or UP+LOW* (second). UP* gives back until LOW+ has a character;
 * what it gives back is followed by nothing lower, so LOW+ then takes exactly one. */
static size_t cased_at(const seg *s, size_t j, size_t e, bool first)
{
    size_t p = run(s, j, e, UP);
    if (!first) return p > j ? run(s, p, e, LOW) - j : 0;
    if (p < e && in(s->x[p], LOW)) return run(s, p, e, LOW) - j;
    while (p > j)
        if (in(s->x[--p], LOW)) return p + 1 - j;
    return 0;
}

/* [^\r\n\p{L}\p{N}]?UP*LOW+(?:Ci)?|[^\r\n\p{L}\p{N}]?UP+LOW*(?:Ci)? */
static size_t cased(const seg *s, size_t i, size_t e, bool suffix)
{
    bool may_prefix = !is_crlf(s->x[i]) && !in(s->x[i], L | N) && i + 1 < e;
    size_t len = 0;
    for (int alt = 0; alt < 2 && !len; alt++) {
        if (may_prefix && (len = cased_at(s, i + 1, e, alt == 0))) len++;
        if (!len) len = cased_at(s, i, e, alt == 0);
    }
    if (len && suffix && i + len < e) len += contraction(s, i + len, e, true);
    return len;
}

/* ---- rules ------------------------------------------------------------------------------- */

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t m_gpt2(seg *s, size_t i, size_t e)
{
    size_t k;
    if ((k = contraction(s, i, e, false))) return k;
    if ((k = spaced(s, i, e, L))) return k;
    if ((k = spaced(s, i, e, N))) return k;
    if ((k = spaced(s, i, e, ANY & ~(W | L | N)))) return k;
    return white(s, i, e, false);
}

/* (?:Ci)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static inline size_t cat(seg *s, size_t i, size_t e, size_t max_digits, enum trail t)
{
    size_t k;
    if ((k = contraction(s, i, e, true))) return k;
    if ((k = prefixed(s, i, e, L | N, L))) return k;
    if ((k = digits(s, i, e, max_digits))) return k;
    if ((k = marks(s, i, e, ANY & ~(W | L | N), t))) return k;
    return white(s, i, e, true);
}
static size_t m_cat1(seg *s, size_t i, size_t e) { return cat(s, i, e, 1, TRAIL_NL); }
static size_t m_cat3(seg *s, size_t i, size_t e) { return cat(s, i, e, 3, TRAIL_NL); }
/* ... ?[^\s\p{L}\p{N}\r\n]+|... */
static size_t m_seed_coder(seg *s, size_t i, size_t e) { return cat(s, i, e, 1, TRAIL_NONE); }

/* (?:Ci)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t m_qwen35(seg *s, size_t i, size_t e)
{
    size_t k;
    if ((k = contraction(s, i, e, true))) return k;
    if ((k = prefixed(s, i, e, L | N, L | M))) return k;
    if ((k = one(s, i, N))) return k;
    if ((k = marks(s, i, e, ANY & ~(W | L | M | N), TRAIL_NL))) return k;
    return white(s, i, e, true);
}

/* PU*W+|PU+W*|\p{N}{1,D} with or without (?:Ci)?, then | ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static inline size_t cased_cat(seg *s, size_t i, size_t e, bool suffix, size_t max_digits)
{
    size_t k;
    if ((k = cased(s, i, e, suffix))) return k;
    if ((k = digits(s, i, e, max_digits))) return k;
    if ((k = marks(s, i, e, ANY & ~(W | L | N), TRAIL_NL_SLASH))) return k;
    return white(s, i, e, true);
}
static size_t m_tekken(seg *s, size_t i, size_t e) { return cased_cat(s, i, e, false, 1); }
static size_t m_gpt4o(seg *s, size_t i, size_t e) { return cased_cat(s, i, e, true, 3); }
static size_t m_youtu(seg *s, size_t i, size_t e) { return cased_cat(s, i, e, true, 1); }

static size_t m_number(seg *s, size_t i, size_t e) { return one(s, i, N); }                 /* \p{N} */
static size_t m_numbers(seg *s, size_t i, size_t e) { return run(s, i, e, N) - i; }         /* \p{N}+ */
static size_t m_numbers3(seg *s, size_t i, size_t e) { return digits(s, i, e, 3); }         /* \p{N}{1,3} */
static size_t m_crlf(seg *s, size_t i, size_t e) { return is_crlf(s->x[i]); }               /* [\r\n] */
static size_t m_ws_letters(seg *s, size_t i, size_t e) { return white_spaced(s, i, e, L); } /* \s?\p{L}+ */
static size_t m_ws_punct(seg *s, size_t i, size_t e) { return white_spaced(s, i, e, P); }   /* \s?\p{P}+ */

/* [0-9][0-9][0-9] */
static size_t m_ascii3(seg *s, size_t i, size_t e)
{
    if (e - i < 3) return 0;
    for (size_t k = i; k < i + 3; k++)
        if (!between(s->x[k], '0', '9')) return 0;
    return 3;
}

/* [\p{P}$+<=>^~|]+ and [\p{P}$+<=>^~|`]+ */
static size_t punct_run(const seg *s, size_t i, size_t e, const char *more)
{
    size_t k = i;
    while (k < e && (in(s->x[k], P) || (HN_CP(s->x[k]) - 1 < 0x7F && strchr(more, (int)HN_CP(s->x[k]))))) k++;
    return k - i;
}
static size_t m_punct_default(seg *s, size_t i, size_t e) { return punct_run(s, i, e, "$+<=>^~|"); }
static size_t m_punct_falcon(seg *s, size_t i, size_t e) { return punct_run(s, i, e, "$+<=>^~|`"); }

/* [\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+ */
static size_t m_cjk_a(seg *s, size_t i, size_t e)
{
    size_t k = i;
    while (k < e && (between(s->x[k], 0x800, 0x9FA5) || between(s->x[k], 0xAC00, 0xD7FF))) k++;
    return k - i;
}
/* [\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+ */
static size_t m_cjk_b(seg *s, size_t i, size_t e)
{
    size_t k = i;
    while (k < e && (between(s->x[k], 0x4E00, 0x9FA5) || between(s->x[k], 0x3040, 0x30FF))) k++;
    return k - i;
}

/* Cased letters as the deepseek-llm tokenizer lists them: fewer than Lu, Ll and Lt hold. */
static const uint32_t cased_ranges[][2] = {
    { 0x41, 0x5A },       { 0x61, 0x7A },       { 0xB5, 0xB5 },       { 0xC0, 0xD6 },       { 0xD8, 0xF6 },
    { 0xF8, 0x1BA },      { 0x1BC, 0x1BF },     { 0x1C4, 0x293 },     { 0x295, 0x2AF },     { 0x370, 0x373 },
    { 0x376, 0x377 },     { 0x37B, 0x37D },     { 0x37F, 0x37F },     { 0x386, 0x386 },     { 0x388, 0x38A },
    { 0x38C, 0x38C },     { 0x38E, 0x3A1 },     { 0x3A3, 0x3F5 },     { 0x3F7, 0x481 },     { 0x48A, 0x52F },
    { 0x531, 0x556 },     { 0x10A0, 0x10C5 },   { 0x13A0, 0x13F5 },   { 0x13F8, 0x13FD },   { 0x1C90, 0x1CBA },
    { 0x1CBD, 0x1CBF },   { 0x1D00, 0x1D2B },   { 0x1D6B, 0x1D77 },   { 0x1D79, 0x1D9A },   { 0x1E00, 0x1F15 },
    { 0x1F18, 0x1F1D },   { 0x1F20, 0x1F45 },   { 0x1F48, 0x1F4D },   { 0x1F50, 0x1F57 },   { 0x1F59, 0x1F59 },
    { 0x1F5B, 0x1F5B },   { 0x1F5D, 0x1F5D },   { 0x1F5F, 0x1F7D },   { 0x1F80, 0x1FB4 },   { 0x1FB6, 0x1FBC },
    { 0x1FBE, 0x1FBE },   { 0x1FC2, 0x1FC4 },   { 0x1FC6, 0x1FCC },   { 0x1FD0, 0x1FD3 },   { 0x1FD6, 0x1FDB },
    { 0x1FE0, 0x1FEC },   { 0x1FF2, 0x1FF4 },   { 0x1FF6, 0x1FFC },   { 0x2102, 0x2102 },   { 0x2107, 0x2107 },
    { 0x210A, 0x2113 },   { 0x2115, 0x2115 },   { 0x2119, 0x211D },   { 0x2124, 0x2124 },   { 0x2126, 0x2126 },
    { 0x2128, 0x2128 },   { 0x212A, 0x212D },   { 0x212F, 0x2134 },   { 0x2139, 0x2139 },   { 0x213C, 0x213F },
    { 0x2145, 0x2149 },   { 0x214E, 0x214E },   { 0x2183, 0x2184 },   { 0x2C00, 0x2C7B },   { 0x2C7E, 0x2CE4 },
    { 0x2CEB, 0x2CEE },   { 0x2CF2, 0x2CF3 },   { 0xA640, 0xA66D },   { 0xA680, 0xA69B },   { 0xA722, 0xA76F },
    { 0xA771, 0xA787 },   { 0xA78B, 0xA78E },   { 0xAB70, 0xABBF },   { 0xFB00, 0xFB06 },   { 0xFB13, 0xFB17 },
    { 0xFF21, 0xFF3A },   { 0xFF41, 0xFF5A },   { 0x10400, 0x1044F }, { 0x104B0, 0x104D3 }, { 0x104D8, 0x104FB },
    { 0x10C80, 0x10CB2 }, { 0x10CC0, 0x10CF2 }, { 0x118A0, 0x118DF }, { 0x1E900, 0x1E943 },
};
static bool is_cased(uint32_t x)
{
    uint32_t cp = HN_CP(x);
    if (cp < 0x80) return (cp | 32) - 'a' < 26;
    size_t lo = 0, hi = sizeof cased_ranges / sizeof *cased_ranges;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (cp > cased_ranges[mid][1]) lo = mid + 1;
        else hi = mid;
    }
    return lo < sizeof cased_ranges / sizeof *cased_ranges && cp >= cased_ranges[lo][0];
}
/* \s?[CASED]+ */
static size_t m_ws_cased(seg *s, size_t i, size_t e)
{
    size_t k = i + in(s->x[i], W), end = k;
    while (end < e && is_cased(s->x[end])) end++;
    return end > k ? end - i : 0;
}
/* [!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}] */
static bool is_llm_punct(uint32_t x)
{
    return between(x, '!', '/') || between(x, ':', '~') || between(x, 0xFF01, 0xFF0F) || between(x, 0xFF1A, 0xFF5E) ||
           between(x, 0x2018, 0x201F) || between(x, 0x3000, 0x3002);
}
/* \s?[...]+ ; U+3000 is in both, so the \s may have to be given back */
static size_t m_ws_llm_punct(seg *s, size_t i, size_t e)
{
    size_t k = i;
    if (in(s->x[i], W) && i + 1 < e && is_llm_punct(s->x[i + 1])) k = i + 1;
    while (k < e && is_llm_punct(s->x[k])) k++;
    return k - i;
}
/* \s+$ */
static size_t m_ws_end(seg *s, size_t i, size_t e)
{
    size_t nl;
    if (!in(s->x[i], W)) return 0;
    return space_run(s, i, e, &nl) == e ? e - i : 0;
}

static bool is_ascii_punct(uint32_t x)
{
    return between(x, '!', '/') || between(x, ':', '@') || between(x, '[', '`') || between(x, '{', '~');
}
/* [ASCII punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t m_deepseek_v3(seg *s, size_t i, size_t e)
{
    size_t k = i + 1;
    if (is_ascii_punct(s->x[i])) {
        while (k < e && (HN_CP(s->x[k]) | 32) - 'a' < 26) k++;
        if (k > i + 1) return k - i;
    }
    if ((k = prefixed(s, i, e, L | P | S, L | M))) return k;
    if ((k = marks(s, i, e, P | S, TRAIL_NL))) return k;
    return white(s, i, e, true);
}

/* four alternatives of one class each, the last one CJKB */
static int youtu_class(uint32_t x)
{
    if (between(x, 0xAC00, 0xD7A3) || between(x, 0x3131, 0x318E)) return 1;
    switch (HN_CP(x)) {
    case 0xFF01:
    case 0x2026:
    case 0x201C:
    case 0x201D:
    case 0x2018:
    case 0x2019:
    case 0x2014:
    case 0xFF1A:
    case 0xFF1B:
    case 0xFF0C: return 2;
    default: break;
    }
    if (between(x, 0x3001, 0x303F) || between(x, 0xFE30, 0xFE4F)) return 2;
    if (between(x, 0x3105, 0x312F)) return 3;
    return between(x, 0x4E00, 0x9FA5) || between(x, 0x3040, 0x30FF) ? 4 : 0;
}
static size_t m_youtu_cjk(seg *s, size_t i, size_t e)
{
    int c = youtu_class(s->x[i]);
    size_t k = i;
    while (c && k < e && youtu_class(s->x[k]) == c) k++;
    return k - i;
}

static bool is_bloom_word(uint32_t x)
{
    if (in(x, W)) return false;
    switch (HN_CP(x)) {
    case '(':
    case '|':
    case '.':
    case ',':
    case '!':
    case '?':
    case ')':
    case 0x2026:
    case 0x3002:
    case 0xFF0C:
    case 0x3001:
    case 0x0964:
    case 0x06D4:
    case 0x060C: return false;
    default: return true;
    }
}
/* " ?"[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+ */
static size_t m_bloom(seg *s, size_t i, size_t e)
{
    size_t k = i + (HN_CP(s->x[i]) == ' '), end = k;
    while (end < e && is_bloom_word(s->x[end])) end++;
    return end > k ? end - i : 0;
}

static bool literal(const seg *s, size_t i, size_t e, const char *t)
{
    for (; *t; t++, i++)
        if (i >= e || HN_CP(s->x[i]) != (unsigned char)*t) return false;
    return true;
}
/* <sentinel:[0-9]+> */
static size_t m_sentinel(seg *s, size_t i, size_t e)
{
    if (!literal(s, i, e, "<sentinel:")) return 0;
    size_t k = i + 10;
    while (k < e && between(s->x[k], '0', '9')) k++;
    return k > i + 10 && k < e && HN_CP(s->x[k]) == '>' ? k + 1 - i : 0;
}
/* (IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z */
static size_t m_image(seg *s, size_t i, size_t e)
{
    if (!literal(s, i, e, "IMGIMG")) return 0;
    size_t k = i + 6;
    while (k < e && k < i + 10 && between(s->x[k], 'A', 'I')) k++;
    return k > i + 6 && k < e && HN_CP(s->x[k]) == 'Z' ? k + 1 - i : 0;
}
/* ([\t\n]|    |  ) */
static size_t m_indent(seg *s, size_t i, size_t e)
{
    if (HN_CP(s->x[i]) == '\t' || HN_CP(s->x[i]) == '\n') return 1;
    return literal(s, i, e, "    ") ? 4 : literal(s, i, e, "  ") ? 2 : 0;
}
/* [\p{P}!-/:-@\[-`{-~] */
static size_t m_punct_one(seg *s, size_t i, size_t e) { return in(s->x[i], P) || is_ascii_punct(s->x[i]); }

/* (?:Ci)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+
 */
static size_t m_exaone_moe(seg *s, size_t i, size_t e)
{
    size_t k = contraction(s, i, e, true);
    if (k) return k;
    k = i;
    if (!is_crlf(s->x[i]) && !in(s->x[i], L | N)) k++;
    if (k < e && in(s->x[k], L)) {
        for (;;) {
            k = run(s, k + 1, e, M);
            if (k < e && in(s->x[k], L)) continue;
            if (k + 1 < e && HN_CP(s->x[k]) == ' ' && in(s->x[k + 1], L)) k++;
            else return k - i;
        }
    }
    if ((k = one(s, i, N))) return k;
    if ((k = marks(s, i, e, ANY & ~(W | L | N), TRAIL_ONE))) return k;
    return white(s, i, e, true);
}

/* CAT3 whose end is \s{512}(?!\S)|\s{256}(?!\S)| ... |\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1} */
static size_t m_jais2(seg *s, size_t i, size_t e)
{
    if (!in(s->x[i], W)) return cat(s, i, e, 3, TRAIL_NL);
    size_t k, nl, end = space_run(s, i, e, &nl), r = end - i;
    if ((k = prefixed(s, i, e, L | N, L))) return k;
    if ((k = marks(s, i, e, ANY & ~(W | L | N), TRAIL_NL))) return k;
    if (nl) return nl - i;
    for (k = 512; k >= 1; k /= 2)
        if (r > k || (r == k && end == e)) return k;
    return 1;
}

/* First of each ten decimal digits (Nd of Unicode 15.1), of which the classes know no more than N. */
static const uint32_t zeros[] = {
    0x30,    0x660,   0x6F0,   0x7C0,   0x966,   0x9E6,   0xA66,   0xAE6,   0xB66,   0xBE6,   0xC66,   0xCE6,
    0xD66,   0xDE6,   0xE50,   0xED0,   0xF20,   0x1040,  0x1090,  0x17E0,  0x1810,  0x1946,  0x19D0,  0x1A80,
    0x1A90,  0x1B50,  0x1BB0,  0x1C40,  0x1C50,  0xA620,  0xA8D0,  0xA900,  0xA9D0,  0xA9F0,  0xAA50,  0xABF0,
    0xFF10,  0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0,
    0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x11F50, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8,
    0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E4F0, 0x1E950, 0x1FBF0,
};
static bool is_decimal(uint32_t x)
{
    uint32_t cp = HN_CP(x);
    if (cp < 0x80) return cp - '0' < 10;
    if (!in(x, N)) return false;
    size_t lo = 0, hi = sizeof zeros / sizeof *zeros;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (zeros[mid] <= cp) lo = mid + 1;
        else hi = mid;
    }
    return cp - zeros[lo - 1] < 10; /* U+0030 is below all */
}

/* \w of Oniguruma, which Hugging Face's tokenizers run (0.23): letters, marks, numbers, connectors, letters in circles
 * and squares. Other engines have joiners, and of the numbers the decimal digits alone. */
static bool is_word(uint32_t x)
{
    bool framed = between(x, 0x24B6, 0x24E9) || between(x, 0x1F130, 0x1F149) || between(x, 0x1F150, 0x1F169) ||
                  between(x, 0x1F170, 0x1F189);
    return framed || in(x, L | M | N) || HN_CP(x) == '_' || between(x, 0x203F, 0x2040) || HN_CP(x) == 0x2054 ||
           between(x, 0xFE33, 0xFE34) || between(x, 0xFE4D, 0xFE4F) || HN_CP(x) == 0xFF3F;
}

/* End of the digits at i, remembered as space_run is. */
static size_t digit_run(seg *s, size_t i, size_t e, bool decimal)
{
    if (!(s->ws_e == e && i >= s->ws_i && i < s->ws_end)) {
        s->ws_i = s->ws_end = i;
        s->ws_e = e;
        while (s->ws_end < e && (decimal ? is_decimal(s->x[s->ws_end]) : in(s->x[s->ws_end], N))) s->ws_end++;
    }
    return s->ws_end > i ? s->ws_end : i;
}
/* Of digits [i, end) in groups of three from the right: the first group. */
static size_t group3(size_t i, size_t end) { return (end - i) % 3 ? (end - i) % 3 : end > i ? 3 : 0; }

/* \p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})) */
static size_t m_groups3(seg *s, size_t i, size_t e)
{
    return in(s->x[i], N) ? group3(i, digit_run(s, i, e, false)) : 0;
}

/* (?=(\d{3})+(?!\d)): a place to divide at, no piece of its own */
static size_t m_places3(seg *s, size_t i, size_t e)
{
    if (is_decimal(s->x[i]) && (digit_run(s, i, e, true) - i) % 3 == 0) s->x[i] |= HN_CUT;
    return 0;
}

/* \d{1,3}(?=(?:\d{3})*\b) */
static size_t m_aya_digits(seg *s, size_t i, size_t e)
{
    if (!is_decimal(s->x[i])) return 0;
    size_t end = digit_run(s, i, e, true);
    return end == e || !is_word(s->x[end]) ? group3(i, end) : 0;
}

/* [\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}
 *  \x{0E40}-\x{0EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}
 *  \x{1100}-\x{11FF}]+ */
static bool is_afmoe_asian(uint32_t x)
{
    static const uint32_t r[][2] = {
        { 0x4E00, 0x9FFF }, { 0x3400, 0x4DBF }, { 0x3040, 0x30FF }, { 0xAC00, 0xD7AF }, { 0xE40, 0xEFF },
        { 0x1000, 0x109F }, { 0x1100, 0x11FF }, { 0x1780, 0x17FF }, { 0x2F00, 0x2FDF }, { 0xA9E0, 0xA9FF },
        { 0xAA60, 0xAA7F }, { 0xF900, 0xFAFF }, { 0xFF65, 0xFF9F },
    };
    if (HN_CP(x) < 0xE40) return false;
    for (size_t i = 0; i < sizeof r / sizeof *r; i++)
        if (between(x, r[i][0], r[i][1])) return true;
    return false;
}
static size_t m_afmoe_asian(seg *s, size_t i, size_t e)
{
    size_t k = i;
    while (k < e && is_afmoe_asian(s->x[k])) k++;
    return k - i;
}

/* As deepseek-v3, but ... ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+ */
static size_t m_spark(seg *s, size_t i, size_t e)
{
    size_t k = i + 1;
    if (is_ascii_punct(s->x[i])) {
        while (k < e && (HN_CP(s->x[k]) | 32) - 'a' < 26) k++;
        if (k > i + 1) return k - i;
    }
    if ((k = prefixed(s, i, e, L | P | S, L | M))) return k;
    if ((k = marks(s, i, e, P | S, TRAIL_NONE))) return k;
    return is_crlf(s->x[i]) ? 1 : white(s, i, e, false);
}

/* CAT1 without contractions */
static size_t m_ufakzeka(seg *s, size_t i, size_t e)
{
    size_t k;
    if ((k = prefixed(s, i, e, L | N, L))) return k;
    if ((k = one(s, i, N))) return k;
    if ((k = marks(s, i, e, ANY & ~(W | L | N), TRAIL_NL))) return k;
    return white(s, i, e, true);
}

static bool is_han(uint32_t x) /* \p{Han}: the script, whose characters are of five classes */
{
    static const uint32_t r[][2] = {
        { 0x4E00, 0x9FFF },   { 0x3400, 0x4DBF },   { 0x2E80, 0x2E99 },   { 0x2E9B, 0x2EF3 },   { 0x2F00, 0x2FD5 },
        { 0x3005, 0x3005 },   { 0x3007, 0x3007 },   { 0x3021, 0x3029 },   { 0x3038, 0x303B },   { 0xF900, 0xFA6D },
        { 0xFA70, 0xFAD9 },   { 0x16FE2, 0x16FE3 }, { 0x16FF0, 0x16FF1 }, { 0x20000, 0x2A6DF }, { 0x2A700, 0x2B739 },
        { 0x2B740, 0x2B81D }, { 0x2B820, 0x2CEA1 }, { 0x2CEB0, 0x2EBE0 }, { 0x2EBF0, 0x2EE5D }, { 0x2F800, 0x2FA1D },
        { 0x30000, 0x3134A }, { 0x31350, 0x323AF },
    };
    if (HN_CP(x) < 0x2E80) return false;
    for (size_t i = 0; i < sizeof r / sizeof *r; i++)
        if (between(x, r[i][0], r[i][1])) return true;
    return false;
}
/* The first Han character in [i, e), or e; remembered as space_run is. */
static size_t next_han(seg *s, size_t i, size_t e)
{
    if (!(s->han_e == e && i >= s->han_i && i <= s->han_at)) {
        s->han_i = s->han_at = i;
        s->han_e = e;
        while (s->han_at < e && !is_han(s->x[s->han_at])) s->han_at++;
    }
    return s->han_at;
}
/* \p{Han}+|[^\r\n\p{L}\p{N}]?[UP--\p{Han}]*[LOW--\p{Han}]+(?:Ci)?|[^\r\n\p{L}\p{N}]?[UP--\p{Han}]+[LOW--\p{Han}]*
 * (?:Ci)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 * ; letters end where the next Han character stands */
static size_t m_kimi(seg *s, size_t i, size_t e)
{
    size_t k = i;
    while (k < e && is_han(s->x[k])) k++;
    if (k > i || (k = i + cased(s, i, next_han(s, i, e), true)) > i) return k - i;
    if ((k = digits(s, i, e, 3))) return k;
    if ((k = marks(s, i, e, ANY & ~(W | L | N), TRAIL_NL))) return k;
    return white(s, i, e, true);
}

/* [^\n]+|[\n]+ */
static size_t m_lines(seg *s, size_t i, size_t e)
{
    bool newline = HN_CP(s->x[i]) == '\n';
    size_t k = i + 1;
    while (k < e && (HN_CP(s->x[k]) == '\n') == newline) k++;
    return k - i;
}

/* ---- kinds -------------------------------------------------------------------------------- */

enum {
    ADD_BOS = 1,
    WHOLE = 2 /* ignore_merges: a word that is a token is that token */,
    RAW = 4,
    LINES = 8 /* see hn_pre_raw */
};

struct hn_pre {
    const char *names; /* separated by spaces; the first one stands for all in messages */
    matcher *rule[7];  /* NULL-ended */
    unsigned flags;
};

static const hn_pre kinds[] = {
    { "default", { m_punct_default, m_gpt2, m_numbers, m_ascii3 }, 0 },
    { "gpt-2 phi-2 mpt olmo jais exaone4 gigachat a.x-4.0 mellum modern-bert jina-es jina-de jina-v1-en jina-v2-es "
      "jina-v2-de jina-v2-code roberta-bpe trillion granite-docling",
      { m_gpt2 },
      0 },
    { "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", { m_cat3 }, ADD_BOS | WHOLE },
    { "smaug-bpe dbrx", { m_cat3 }, 0 },
    { "glm4 glm5", { m_cat3 }, WHOLE }, /* its authors' tiktoken takes a word that is a token as that token */
    { "chatglm-bpe", { m_cat3 }, 0 },
    { "minicpm5", { m_numbers3, m_cat3 }, WHOLE }, /* the second rule has \p{N}+, but sees at most three */
    { "qwen2 deepseek-r1-qwen hunyuan solar-open grok-2 kormo openpangu f2llmv2", { m_cat1 }, 0 },
    { "stablelm2 megrez", { m_cat1 }, 0 },
    { "qwen35", { m_qwen35 }, 0 },
    { "starcoder refact codeshell exaone minerva-7b mellum2 smollm command-r cohere2_moe", { m_number, m_gpt2 }, 0 },
    { "falcon", { m_punct_falcon, m_gpt2, m_ascii3 }, 0 },
    { "deepseek-coder", { m_crlf, m_ws_letters, m_ws_punct, m_cjk_a, m_number }, 0 },
    { "deepseek-llm", { m_crlf, m_ws_cased, m_ws_llm_punct, m_ws_end, m_cjk_a, m_numbers }, 0 },
    { "deepseek-v3 hunyuan-dense joyai-llm hy_v4", { m_numbers3, m_cjk_b, m_deepseek_v3 }, 0 },
    { "tekken", { m_tekken }, ADD_BOS | WHOLE },
    { "gpt-4o llama4 kanana2 minimax-m2 talkie", { m_gpt4o }, 0 },
    { "granite-embed-multi-97m", { m_gpt4o }, WHOLE },
    { "tiny_aya cohere2moe", { m_aya_digits, m_gpt4o }, 0 },
    { "superbpe", { m_numbers, m_places3 }, 0 },
    { "afmoe", { m_groups3, m_afmoe_asian, m_deepseek_v3 }, 0 },
    { "spark2_5", { m_numbers3, m_cjk_b, m_spark, m_number }, 0 },
    { "ufakzeka", { m_ufakzeka }, 0 },
    { "laguna", { m_lines, m_cat1 }, 0 },
    { "youtu", { m_youtu_cjk, m_youtu }, WHOLE },
    { "seed-coder", { m_seed_coder }, 0 },
    { "bailingmoe bailingmoe2 llada-moe", { m_cat1 }, 0 }, /* its expression is CAT1 written differently */
    { "bloom gpt3-finnish poro-chat", { m_bloom }, 0 },
    { "viking", { m_bloom, m_number }, 0 },
    { "chameleon", { m_sentinel, m_image, m_indent, m_number, m_punct_one, m_gpt2 }, ADD_BOS },
    { "exaone-moe", { m_exaone_moe }, 0 },
    { "jais-2", { m_jais2 }, 0 },
    { "kimi-k2", { m_kimi }, WHOLE }, /* as glm4 */
    { "gemma4 granite-embed-multi-311m", { NULL }, ADD_BOS | RAW | LINES },
    { "sarvam-moe", { NULL }, RAW },
};

const hn_pre *hn_pre_find(const char *name, size_t len)
{
    if (!len || memchr(name, ' ', len)) return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (const char *p = kinds[i].names; *p;) {
            size_t n = strcspn(p, " ");
            if (n == len && memcmp(p, name, n) == 0) return &kinds[i];
            p += n + (p[n] == ' ');
        }
    return NULL;
}

bool hn_pre_add_bos(const hn_pre *p) { return p->flags & ADD_BOS; }
bool hn_pre_ignore_merges(const hn_pre *p) { return p->flags & WHOLE; }
hn_pre_raw hn_pre_is_raw(const hn_pre *p)
{
    return !(p->flags & RAW) ? HN_PRE_BYTES : p->flags & LINES ? HN_PRE_RAW_LINES : HN_PRE_RAW;
}

const char *hn_pre_list(void) /* checked against the table by a test */
{
    return "default, gpt-2, llama-bpe, smaug-bpe, glm4, qwen2, stablelm2, qwen35, starcoder, falcon, deepseek-coder, "
           "deepseek-llm, deepseek-v3, tekken, gpt-4o, youtu, seed-coder, bailingmoe, bloom, viking, chameleon, "
           "exaone-moe, jais-2, "
           "minicpm5, tiny_aya, superbpe, afmoe, spark2_5, ufakzeka, laguna, kimi-k2, gemma4, sarvam-moe";
}

static void split_rule(seg *s, matcher *m)
{
    uint32_t *x = s->x;
    for (size_t a = 0, b; a < s->n; a = b) {
        for (b = a + 1; b < s->n && !(x[b] & HN_CUT); b++)
            ;
        for (size_t i = a; i < b;) {
            size_t len = m(s, i, b);
            if (!len) {
                i++;
                continue;
            }
            x[i] |= HN_CUT;
            i += len;
            if (i < b) x[i] |= HN_CUT;
        }
        s->ws_e = s->han_e = 0; /* the memory of a run must not outlive its piece */
    }
}

void hn_pre_split(const hn_pre *p, uint32_t *x, size_t n)
{
    seg s = { .x = x, .n = n };
    for (int i = 0; p->rule[i]; i++) split_rule(&s, p->rule[i]);
    if (n) x[0] |= HN_CUT;
}

hone_status hn_pre_words(const char *pre, const char *text, size_t len, hn_word_fn *fn, void *arg, hone_error *err)
{
    const hn_pre *p = hn_pre_find(pre, strlen(pre));
    const hn_class_table *t = hn_class_table_get();
    size_t n = 0, a = 0, used;
    if (!p || hn_pre_is_raw(p))
        return HN_FAIL(err, HONE_E_ARG, "pre-tokenizer \"%s\", expected one of: %s", HN_ESC(pre, strlen(pre)),
                       hn_pre_list());
    uint32_t *x = len > SIZE_MAX / sizeof *x - 1 ? NULL : malloc((len + 1) * sizeof *x);
    if (!x) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: text of %zu bytes", len);
    for (size_t i = 0; i < len; i += used) {
        int32_t cp = hn_utf8_next((const unsigned char *)text + i, len - i, &used);
        x[n++] = (uint32_t)cp | (uint32_t)hn_class_of(t, (uint32_t)cp) << 21;
    }
    hn_pre_split(p, x, n);
    for (size_t i = 0, b = 0; i < n; a = b) {
        do b += hn_utf8_width(HN_CP(x[i]));
        while (++i < n && !(x[i] & HN_CUT));
        if (!fn(arg, text + a, b - a)) break;
    }
    free(x);
    return HONE_OK;
}
