/* steers: does what a program wrote steer a terminal? Usage: steers FILE [SEQUENCE]…
 * Prints the first offence and exits 1: control characters (but for \n, \r before \n or after it, \t), DEL, C1 in
 * UTF-8 or as a byte, ill-formed UTF-8, marks of direction, line separators, annotations, tags outside a flag.
 * SEQUENCEs, with \e for ESC and \r, are the program's own and allowed. Shares no code with hone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char text[1 << 22];
static size_t n_text;

static size_t own_sequence(const unsigned char *p, size_t n, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        unsigned char s[64];
        size_t k = 0;
        for (const char *c = argv[i]; *c && k < sizeof s; c++) {
            if (*c == '\\') c++, s[k++] = *c == 'e' ? 27 : *c == 'r' ? '\r' : (unsigned char)*c;
            else s[k++] = (unsigned char)*c;
        }
        if (k <= n && memcmp(p, s, k) == 0) return k;
    }
    return 0;
}

/* Bytes of the character at p and its code; 0: ill-formed. */
static size_t decode(const unsigned char *p, size_t n, unsigned long *c)
{
    static const unsigned long least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t k = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    if (!k || k > n) return 0;
    *c = k == 1 ? p[0] : p[0] & (0x7Fu >> k);
    for (size_t i = 1; i < k; i++) {
        if (p[i] >> 6 != 2) return 0;
        *c = *c << 6 | (p[i] & 63u);
    }
    return *c < least[k] || *c > 0x10FFFF || (*c >= 0xD800 && *c < 0xE000) ? 0 : k;
}

static int forbidden(unsigned long c, int in_flag)
{
    if (c < 0x20) return c != '\n' && c != '\t';
    if (c >= 0xE0000 && c < 0xE0080) return !in_flag;
    return (c >= 0x7F && c < 0xA0) || c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069) || (c >= 0xFFF9 && c <= 0xFFFB);
}

int main(int argc, char **argv)
{
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!f) return fprintf(stderr, "usage: steers FILE [SEQUENCE]...\n"), 2;
    n_text = fread(text, 1, sizeof text, f);
    fclose(f);
    int in_flag = 0;
    for (size_t i = 0, k; i < n_text; i += k) {
        unsigned long c = 0;
        if ((k = own_sequence(text + i, n_text - i, argc, argv)) > 0) continue;
        int after = i + 1 < n_text ? text[i + 1] : 0, before = i ? text[i - 1] : 0;
        if (text[i] == '\r' && (after == '\n' || after == '\r' || before == '\n')) {
            k = 1;
            continue;
        }
        k = decode(text + i, n_text - i, &c);
        if (!k || forbidden(c, in_flag)) {
            printf("byte %zu: %s U+%04lX, byte 0x%02X\n", i, k ? "forbidden" : "ill-formed", c, text[i]);
            return 1;
        }
        if (c == 0x1F3F4 || c < 0xE0000 || c >= 0xE0080) in_flag = c == 0x1F3F4;
    }
    return 0;
}
