/* head: see head.h. */
#include "hub/head.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

void hn_head_clear(hn_fetch_head *a)
{
    memset(a, 0, sizeof *a);
    a->wait_s = -1;
}

bool hn_head_is(const char *line, size_t len, const char *name, const char **value, size_t *n)
{
    size_t k = strlen(name);
    if (len <= k || line[k] != ':' || strncasecmp(line, name, k) != 0) return false;
    const char *p = line + k + 1, *end = line + len;
    while (p < end && isspace((unsigned char)*p)) p++;
    while (end > p && isspace((unsigned char)end[-1])) end--;
    *value = p;
    *n = (size_t)(end - p);
    return true;
}

static void keep(char *dst, size_t cap, const char *v, size_t n)
{
    if (n >= cap) n = cap - 1;
    memcpy(dst, v, n);
    dst[n] = 0;
}

/* W/"x" and "x" are x. */
static void keep_etag(char *dst, size_t cap, const char *v, size_t n, bool *weak)
{
    *weak = n >= 2 && (v[0] == 'W' || v[0] == 'w') && v[1] == '/';
    if (*weak) v += 2, n -= 2;
    if (n >= 2 && v[0] == '"' && v[n - 1] == '"') v++, n -= 2;
    keep(dst, cap, v, n);
}

/* Digits at p; how many bytes they are, 0: no number. */
static size_t number_at(uint64_t *out, const char *p, size_t n)
{
    uint64_t x = 0;
    size_t i = 0;
    for (; i < n && isdigit((unsigned char)p[i]); i++)
        if (!hn_mul_u64(x, 10, &x) || !hn_add_u64(x, (uint64_t)(p[i] - '0'), &x)) return 0;
    *out = x;
    return i;
}

static bool number(uint64_t *out, const char *p, size_t n) { return n && number_at(out, p, n) == n; }

/* "bytes 0-99/1000"; an asterisk for a size that the server does not know. Of a 416, an asterisk for the range. */
static void read_range(hn_fetch_head *a, const char *v, size_t n)
{
    size_t k;
    a->has_range = false;
    if (n < 6 || strncasecmp(v, "bytes ", 6) != 0) return;
    v += 6, n -= 6;
    if (n > 2 && v[0] == '*' && v[1] == '/') {
        if (!number(&a->size, v + 2, n - 2)) a->size = 0;
        return;
    }
    if (!(k = number_at(&a->first, v, n)) || k >= n || v[k] != '-') return;
    v += k + 1, n -= k + 1;
    if (!(k = number_at(&a->last, v, n)) || k >= n || v[k] != '/') return;
    v += k + 1, n -= k + 1;
    a->size = UINT64_MAX;
    a->has_range = (n == 1 && *v == '*') || number(&a->size, v, n);
}

/* ---- times ----------------------------------------------------------------------------------------- */

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days_to(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400, of_era = year % 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* "Wed, 21 Oct 2015 07:28:00 GMT" (RFC 9110 5.6.7, the form that is to be sent); 0: another. */
static int64_t time_of(const char *v, size_t n)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char text[40], month[4];
    unsigned day, year, h, m, s;
    int end = 0;
    if (n >= sizeof text) return 0;
    keep(text, sizeof text, v, n);
    if (sscanf(text, "%*3[A-Za-z], %2u %3[A-Za-z] %4u %2u:%2u:%2u GMT%n", &day, month, &year, &h, &m, &s, &end) != 6 ||
        !end || text[end])
        return 0;
    const char *at = strlen(month) == 3 ? strstr(months, month) : NULL;
    if (!at || (at - months) % 3 || day < 1 || day > 31 || year < 1970 || h > 23 || m > 59 || s > 60) return 0;
    return days_to(year, (at - months) / 3 + 1, day) * 86400 + (int64_t)h * 3600 + m * 60 + s;
}

/* A time to wait for is one by the server's clock, where it says what that shows. */
static void wait_until(hn_fetch_head *a)
{
    if (!a->until_s) return;
    int64_t now = a->date_s ? a->date_s : (int64_t)time(NULL);
    a->wait_s = a->until_s > now ? (double)(a->until_s - now) : 0;
}

/* Retry-After: 30   Retry-After: Wed, 21 Oct 2015 07:28:00 GMT */
static void read_wait(hn_fetch_head *a, const char *v, size_t n)
{
    uint64_t s = 0;
    if (a->wait_s >= 0) return;
    if (number(&s, v, n)) a->wait_s = (double)s;
    else a->until_s = time_of(v, n);
    wait_until(a);
}

/* The number in ";r=0" of a limit. */
static bool limit_says(uint64_t *out, char name, const char *v, size_t n)
{
    for (size_t i = 0; i + 3 < n; i++)
        if (v[i] == ';' && v[i + 1] == name && v[i + 2] == '=') return number_at(out, v + i + 3, n - i - 3) > 0;
    return false;
}

/* RateLimit: "api";r=0;t=55, "pages";r=99;t=200: requests that are left, and seconds until there are more. Servers say
 * it with every answer: it is a wait only where a limit is used up, and the answer for that reason no other. */
static void read_limits(hn_fetch_head *a, const char *v, size_t n)
{
    double longest = -1; /* of those that are used up */
    for (size_t k; a->status == 429 && n; v += k, n -= k) {
        uint64_t left, s;
        const char *comma = memchr(v, ',', n);
        k = comma ? (size_t)(comma + 1 - v) : n;
        if ((limit_says(&left, 'r', v, k) && left) || !limit_says(&s, 't', v, k)) continue;
        if ((double)s > longest) longest = (double)s;
    }
    if (longest < 0) return;
    a->wait_s = longest;
    a->until_s = 0;
}

/* ---- lines ------------------------------------------------------------------------------------------- */

void hn_head_begin(hn_fetch_head *a, const char *line, size_t len)
{
    hn_fetch_head was = *a;
    const char *space = memchr(line, ' ', len);
    uint64_t status = 0;
    hn_head_clear(a);
    a->has_linked_size = was.has_linked_size;
    a->linked_size = was.linked_size;
    memcpy(a->linked_etag, was.linked_etag, sizeof a->linked_etag);
    memcpy(a->commit, was.commit, sizeof a->commit);
    if (space) number_at(&status, space + 1, len - (size_t)(space + 1 - line));
    a->status = (int)(status % 1000);
}

static void endpoint_line(hn_fetch_head *a, const char *line, size_t len)
{
    const char *v;
    size_t n;
    bool weak;
    if (hn_head_is(line, len, "X-Repo-Commit", &v, &n)) keep(a->commit, sizeof a->commit, v, n);
    else if (hn_head_is(line, len, "X-Linked-Etag", &v, &n)) keep_etag(a->linked_etag, HN_HEAD_NAME, v, n, &weak);
    else if (hn_head_is(line, len, "X-Linked-Size", &v, &n)) a->has_linked_size = number(&a->linked_size, v, n);
    else if (hn_head_is(line, len, "X-Error-Code", &v, &n)) keep(a->code, sizeof a->code, v, n);
    else if (hn_head_is(line, len, "X-Error-Message", &v, &n)) keep(a->message, sizeof a->message, v, n);
}

void hn_head_line(hn_fetch_head *a, const char *line, size_t len, bool at_endpoint)
{
    const char *v;
    size_t n;
    if (hn_head_is(line, len, "Content-Length", &v, &n)) a->has_length = number(&a->length, v, n);
    else if (hn_head_is(line, len, "Content-Range", &v, &n)) read_range(a, v, n);
    else if (hn_head_is(line, len, "Content-Type", &v, &n)) a->html = n >= 9 && strncasecmp(v, "text/html", 9) == 0;
    else if (hn_head_is(line, len, "ETag", &v, &n)) keep_etag(a->etag, HN_HEAD_NAME, v, n, &a->weak);
    else if (hn_head_is(line, len, "Last-Modified", &v, &n)) keep(a->modified, sizeof a->modified, v, n);
    else if (hn_head_is(line, len, "RateLimit", &v, &n)) read_limits(a, v, n);
    else if (hn_head_is(line, len, "Retry-After", &v, &n)) read_wait(a, v, n);
    else if (hn_head_is(line, len, "Date", &v, &n)) {
        a->date_s = time_of(v, n);
        wait_until(a);
    } else if (hn_head_is(line, len, "Content-Encoding", &v, &n)) {
        keep(a->encoding, sizeof a->encoding, v, n);
        if (strcasecmp(a->encoding, "identity") == 0) a->encoding[0] = 0;
    } else if (at_endpoint) {
        endpoint_line(a, line, len);
    }
}

char *hn_head_next(const char *value, size_t n)
{
    const char *end = n && *value == '<' ? memchr(value, '>', n) : NULL;
    char *rest = end ? strndup(end, (size_t)(value + n - end)) : NULL;
    bool is = rest && strstr(rest, "rel=\"next\"");
    free(rest);
    return is ? strndup(value + 1, (size_t)(end - value - 1)) : NULL;
}

void hn_head_content(char dst[HN_HEAD_NAME], const hn_fetch_head *a)
{
    if (*a->etag && !a->weak) snprintf(dst, HN_HEAD_NAME, "%s", a->etag);
    else if (*a->modified) snprintf(dst, HN_HEAD_NAME, "%s %.80s", a->modified, a->etag);
    else *dst = 0;
}
