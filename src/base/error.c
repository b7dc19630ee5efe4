/* Errors and text for them. Owns HN_FAIL's back end, status names, escaping and
 * the log. Refuses to know what failed. */
#include "base/base.h"

#include <stdlib.h>

hone_status hn_fail(hone_error *err, hone_status code, const char *file, int line, const char *fmt, ...)
{
    if (!err) return code;
    err->code = code;
    err->file = file;
    err->line = line;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    for (char *p = err->message; *p; p++) /* one line, whatever the caller passed */
        if (*p == '\n' || *p == '\r') *p = ' ';
    return code;
}

const char *hone_status_name(hone_status s)
{
    static const char *const names[] = {
        [HONE_OK] = "HONE_OK", [HONE_E_ARG] = "HONE_E_ARG", [HONE_E_IO] = "HONE_E_IO",
        [HONE_E_FORMAT] = "HONE_E_FORMAT", [HONE_E_UNSUPPORTED] = "HONE_E_UNSUPPORTED",
        [HONE_E_NOMEM] = "HONE_E_NOMEM", [HONE_E_CTX] = "HONE_E_CTX", [HONE_E_NUMERIC] = "HONE_E_NUMERIC",
        [HONE_E_INTERRUPTED] = "HONE_E_INTERRUPTED", [HONE_E_NETWORK] = "HONE_E_NETWORK",
    };
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "HONE_E_?";
}

void hone_free(void *p) { free(p); }

/* Length of the well-formed UTF-8 sequence at s (at most n bytes), 0 if none. */
static size_t utf8_len(const unsigned char *s, size_t n)
{
    if (s[0] < 0x80) return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    size_t k = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (k > n) return 0;
    unsigned lo = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    unsigned hi = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    if (s[1] < lo || s[1] > hi) return 0;
    for (size_t i = 2; i < k; i++)
        if (s[i] < 0x80 || s[i] > 0xBF) return 0;
    return k;
}

char *hn_escape(char *dst, size_t cap, const char *s, size_t len)
{
    static const char hex[] = "0123456789abcdef", more[] = "…";
    const unsigned char *u = (const unsigned char *)s;
    size_t o = 0, room = cap - sizeof more; /* always leaves space for "…" and NUL */
    for (size_t i = 0; i < len;) {
        size_t k = utf8_len(u + i, len - i);
        /* C0, DEL, C1 (encoded c2 80 … c2 9f) and the backslash itself are escaped */
        bool plain = k && !(k == 1 && (u[i] < 0x20 || u[i] == 0x7F || u[i] == '\\')) &&
                     !(k == 2 && u[i] == 0xC2 && u[i + 1] < 0xA0);
        size_t need = plain ? k : 4;
        if (o + need > room) {
            memcpy(dst + o, more, sizeof more - 1);
            o += sizeof more - 1;
            break;
        }
        if (plain) {
            memcpy(dst + o, u + i, k);
            o += k;
            i += k;
        } else {
            dst[o++] = '\\';
            dst[o++] = 'x';
            dst[o++] = hex[u[i] >> 4];
            dst[o++] = hex[u[i] & 15];
            i++;
        }
    }
    dst[o] = 0;
    return dst;
}

void hn_log(const char *fmt, ...)
{
    const char *on = getenv("HONE_LOG");
    if (!on || !*on || strcmp(on, "0") == 0) return;
    va_list ap;
    va_start(ap, fmt);
    fputs("hone: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

const hn_env_switch hn_env_switches[] = {
    { "HONE_CPU", "force a kernel level: scalar, avx2, avx512; neon, neon_dotprod, neon_i8mm on Arm" },
    { "HONE_THREADS", "number of threads when -t is not given" },
    { "HONE_PACKED", "packed weights when --packed is not given: auto, off or a file" },
    { "HONE_IGNORE_KEYS", "metadata keys, a,b,c, to run a model without that is refused for them; answers change" },
    { "HONE_LOG", "1: log what the library does to stderr" },
    { NULL, NULL },
};
