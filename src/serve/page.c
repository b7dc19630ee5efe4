/* page: see page.h. The build joins src/serve/page to one file and makes hn_page_bytes of it. */
#include "serve/page.h"

#include <pthread.h>
#include <string.h>

extern const char hn_page_bytes[];
extern const size_t hn_page_len;
extern const char hn_page_gzip_bytes[];
extern const size_t hn_page_gzip_len;

static hn_page page;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* dst [45]: 32 bytes in base64. */
static void base64(char *dst, const unsigned char *p)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 33; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | (i + 2 < 32 ? p[i + 2] : 0u);
        for (int k = 18; k >= 0; k -= 6) *dst++ = digits[v >> k & 63];
    }
    dst[-1] = '=';
    *dst = 0;
}

/* dst [45]: SHA-256 in base64 of what stands between the first `open` and the last `close` of the page. The build's
 * page has each of them once (tests/unit/test_page.c). */
static void hash_between(char *dst, const char *open, const char *close)
{
    const char *from = strstr(hn_page_bytes, open), *to = from ? strstr(from, close) : NULL;
    unsigned char sum[32];
    hn_sha256 s;
    hn_sha256_init(&s);
    if (to) hn_sha256_add(&s, from + strlen(open), (size_t)(to - from) - strlen(open));
    hn_sha256_end(&s, sum);
    base64(dst, sum);
}

static void prepare(void)
{
    unsigned char sum[32];
    char style[45], script[45], *e = page.etag;
    page.bytes = hn_page_bytes;
    page.len = hn_page_len;
    page.gzip = hn_page_gzip_bytes;
    page.gzip_len = hn_page_gzip_len;

    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, page.bytes, page.len);
    hn_sha256_end(&s, sum);
    *e++ = '"';
    hn_hex(e, sum, sizeof sum);
    e += 2 * sizeof sum;
    *e++ = '"';
    *e = 0;

    hash_between(style, "<style>", "</style>");
    hash_between(script, "<script>", "</script>");
    snprintf(page.csp, sizeof page.csp,
             "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; img-src data:; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             script, style);
}

const hn_page *hn_page_get(void)
{
    pthread_once(&once, prepare);
    return &page;
}
