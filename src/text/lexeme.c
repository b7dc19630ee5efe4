/* part is HN_QUOTED or not, the kind of what was begun in bits 24 to 27, and in the bits below what was read of it:
 *   PART_OPEN   nothing: the opening quote comes next
 *   PART_UTF8   bytes still to come (bits 20 to 21), length of the sequence (22 to 23, less one), value so far
 *   PART_ESC    the backslash
 *   PART_HEX    after \u: digits read (20 to 23), value so far
 *   PART_PAIR   after the first half of a pair: what comes next (20 to 23: backslash, u, digits), the ten bits of the
 *               first half (10 to 19), the low bits of the second half so far (0 to 9) */
#include "text/lexeme.h"

enum { PART_NONE, PART_OPEN, PART_UTF8, PART_ESC, PART_HEX, PART_PAIR, PART_CLOSED };

static uint32_t part_of(uint32_t kind, uint32_t bits) { return kind << 24 | bits; }

bool hn_lexeme_closed(hn_lexeme x) { return (x.part >> 24 & 15) == PART_CLOSED; }

static int hex(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The whole character. */
static bool take(const hn_lang_state *s, hn_lexeme *x, uint32_t cp, uint32_t quoted)
{
    x->term = hn_lang_step(s, cp);
    x->part = quoted;
    return x->term != HN_LANG_NONE;
}

static bool utf8_first(const hn_lang_state *s, hn_lexeme *x, uint8_t byte, uint32_t quoted)
{
    if (byte < 0xC2 || byte > 0xF4) return false;
    uint32_t more = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3, v = byte & (0x3Fu >> more);
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
    uint32_t lo = v << 6 * more, hi = lo | ((1u << 6 * more) - 1);
    if (lo < least[more]) lo = least[more];
    if (!hn_lang_any(s, lo, hi)) return false;
    x->part = quoted | part_of(PART_UTF8, more << 22 | more << 20 | v);
    return true;
}

static bool utf8_next(const hn_lang_state *s, hn_lexeme *x, uint8_t byte, uint32_t quoted)
{
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
    uint32_t len = x->part >> 22 & 3, more = (x->part >> 20 & 3) - 1, v = (x->part & 0xFFFFF) << 6 | (byte & 0x3F);
    if ((byte & 0xC0) != 0x80) return false;
    if (more == 0) return v >= least[len] && take(s, x, v, quoted);
    uint32_t lo = v << 6 * more, hi = lo | ((1u << 6 * more) - 1);
    if (lo < least[len]) lo = least[len];
    if (lo > hi || !hn_lang_any(s, lo, hi)) return false;
    x->part = quoted | part_of(PART_UTF8, len << 22 | more << 20 | v);
    return true;
}

/* Does any character above U+FFFF lead on whose first half is h0 … h1 (ten bits each)? */
static bool any_pair(const hn_lang_state *s, uint32_t h0, uint32_t h1)
{
    return hn_lang_any(s, 0x10000 + (h0 << 10), 0x10000 + (h1 << 10) + 0x3FF);
}

static bool hex_digit(const hn_lang_state *s, hn_lexeme *x, uint8_t byte)
{
    int d = hex(byte);
    if (d < 0) return false;
    uint32_t n = (x->part >> 20 & 15) + 1, v = (x->part & 0xFFFF) << 4 | (uint32_t)d, left = 4 * (4 - n);
    uint32_t lo = v << left, hi = lo | ((1u << left) - 1);
    if (n == 4 && (v < 0xD800 || v > 0xDFFF)) return take(s, x, v, HN_QUOTED);
    if (n == 4) {
        if (v > 0xDBFF || !any_pair(s, v - 0xD800, v - 0xD800)) return false;
        x->part = HN_QUOTED | part_of(PART_PAIR, (v - 0xD800) << 10);
        return true;
    }
    uint32_t h0 = lo > 0xD800 ? lo : 0xD800, h1 = hi < 0xDBFF ? hi : 0xDBFF;
    if (!hn_lang_any(s, lo, hi) && (h0 > h1 || !any_pair(s, h0 - 0xD800, h1 - 0xD800))) return false;
    x->part = HN_QUOTED | part_of(PART_HEX, n << 20 | v);
    return true;
}

static bool pair_next(const hn_lang_state *s, hn_lexeme *x, uint8_t byte)
{
    uint32_t at = x->part >> 20 & 15, high = x->part >> 10 & 0x3FF, low = x->part & 0x3FF;
    if (at < 2) {
        if (byte != (at ? 'u' : '\\')) return false;
    } else {
        int d = hex(byte);
        if (d < 0 || (at == 2 && d != 13) || (at == 3 && d < 12)) return false;
        if (at == 3) d &= 3; /* DC00 … DFFF: of the second digit two bits count */
        if (at > 2) low = low << 4 | (uint32_t)d;
    }
    uint32_t base = 0x10000 + (high << 10);
    if (at == 5) return take(s, x, base + low, HN_QUOTED);
    if (at > 2) {
        uint32_t left = 4 * (5 - at), lo = base + (low << left);
        if (!hn_lang_any(s, lo, lo | ((1u << left) - 1))) return false;
    }
    x->part = HN_QUOTED | part_of(PART_PAIR, (at + 1) << 20 | high << 10 | low);
    return true;
}

static bool escaped(const hn_lang_state *s, hn_lexeme *x, uint8_t byte)
{
    static const char name[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (byte == 'u') {
        x->part = HN_QUOTED | part_of(PART_HEX, 0);
        return true;
    }
    const char *at = byte ? strchr(name, byte) : NULL;
    return at && take(s, x, (uint32_t)means[at - name], HN_QUOTED);
}

bool hn_lexeme_byte(const hn_langs *l, const hn_lang_state *s, hn_lexeme *x, uint8_t byte)
{
    uint32_t quoted = x->part & HN_QUOTED;
    switch (x->part >> 24 & 15) {
    case PART_NONE:
        if (byte >= 0x80) return utf8_first(s, x, byte, quoted);
        if (!quoted) return take(s, x, byte, quoted);
        if (byte == '"') {
            x->part = quoted | part_of(PART_CLOSED, 0);
            return hn_lang_accepts(l, x->term);
        }
        if (byte == '\\') {
            x->part = quoted | part_of(PART_ESC, 0);
            return s->n > 0;
        }
        return byte >= 0x20 && take(s, x, byte, quoted);
    case PART_OPEN: x->part = quoted; return byte == '"';
    case PART_UTF8: return utf8_next(s, x, byte, quoted);
    case PART_ESC: return escaped(s, x, byte);
    case PART_HEX: return hex_digit(s, x, byte);
    case PART_PAIR: return pair_next(s, x, byte);
    default: return false;
    }
}
