/* Errors and text for them. Owns HN_FAIL's back end, status names, escaping and
 * the log. Refuses to know what failed. */
#include "base/shown.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <unistd.h>

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
        [HONE_OK] = "HONE_OK",
        [HONE_E_ARG] = "HONE_E_ARG",
        [HONE_E_IO] = "HONE_E_IO",
        [HONE_E_FORMAT] = "HONE_E_FORMAT",
        [HONE_E_UNSUPPORTED] = "HONE_E_UNSUPPORTED",
        [HONE_E_NOMEM] = "HONE_E_NOMEM",
        [HONE_E_CTX] = "HONE_E_CTX",
        [HONE_E_NUMERIC] = "HONE_E_NUMERIC",
        [HONE_E_INTERRUPTED] = "HONE_E_INTERRUPTED",
        [HONE_E_NETWORK] = "HONE_E_NETWORK",
        [HONE_E_BUSY] = "HONE_E_BUSY",
    };
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "HONE_E_?";
}

void hone_free(void *p) { free(p); }

char *hn_escape(char *dst, size_t cap, const char *s, size_t len)
{
    static const char hex[] = "0123456789abcdef", more[] = "…";
    const unsigned char *u = (const unsigned char *)s;
    size_t o = 0, room = cap - sizeof more; /* always leaves space for "…" and NUL */
    for (size_t i = 0; i < len;) {
        size_t k;
        int32_t c = hn_utf8_next(u + i, len - i, &k);
        /* the backslash too, so that what stands there says which bytes were meant */
        bool plain = c >= 0 && c != '\\' && !hn_hides_in_name((uint32_t)c);
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

char *hn_hex(char *dst, const void *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++) {
        dst[2 * i] = digits[b[i] >> 4];
        dst[2 * i + 1] = digits[b[i] & 15];
    }
    dst[2 * n] = 0;
    return dst;
}

static bool log_text(void *unused, const char *p, size_t n) { return fwrite(p, 1, n, stderr) == n; }

void hn_log(const char *fmt, ...)
{
    const char *on = getenv("HONE_LOG");
    if (!on || !*on || strcmp(on, "0") == 0) return;
    va_list ap;
    va_start(ap, fmt);
    fputs("hone: ", stderr);
    if (isatty(STDERR_FILENO) == 1) {
        char line[4096];
        hn_shown shown = { 0 };
        vsnprintf(line, sizeof line, fmt, ap);
        hn_shown_put(&shown, line, strlen(line), log_text, NULL);
        hn_shown_end(&shown, log_text, NULL);
    } else {
        vfprintf(stderr, fmt, ap);
    }
    va_end(ap);
    fputc('\n', stderr);
}

const hn_env_switch hn_env_switches[] = {
    { "HONE_CPU", "force a kernel level: scalar, avx2, avx_vnni, avx512; neon, neon_dotprod, neon_i8mm on Arm", false },
    { "HONE_THREADS", "number of threads when -t is not given", false },
    { "HONE_PACKED", "packed weights when --packed is not given: auto, off or a file", false },
    { "HONE_IGNORE_KEYS", "metadata keys, a,b,c, to run a model without that is refused for them; answers change",
      false },
    { "HONE_MODELS", "folders of models, a:b:c, whose files have names there (hone list)", false },
    { "HONE_LOG", "1: log what the library does to stderr", false },
    { "HONE_API_KEY", "the key that hone serve asks for when --api-key is not given", true },
    { "HF_TOKEN", "the token that the hub is asked with, for models that are not for everybody", true },
    { "HF_ENDPOINT", "the hub that hone pull asks, in place of https://huggingface.co", false },
    { "HF_HUB_OFFLINE", "1: hone pull asks no network", false },
    { "HF_HUB_CACHE", "where models of the hub are kept; else HF_HOME/hub, else ~/.cache/huggingface/hub", false },
    { "OLLAMA_MODELS", "where ollama keeps its models, in place of ~/.ollama/models", false },
    { NULL, NULL, false },
};
