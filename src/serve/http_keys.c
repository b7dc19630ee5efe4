/* Keys of clients: a file of mode 0600 or less, a key a line. Kept as SHA-256, which makes all of them equally long:
 * the comparison looks at every byte of every one. Refuses to know where a key came from. */
#include "serve/http_keys.h"

#include "base/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_KEYS = 4096, MAX_KEY = 512 };

static void digest_of(unsigned char out[32], const char *text, size_t n)
{
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, text, n);
    hn_sha256_end(&s, out);
}

static hone_status add(hn_http_keys *k, const char *key, const char *where, hone_error *err)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)key[i] <= ' ' || (unsigned char)key[i] >= 0x7F)
            return HN_FAIL(err, HONE_E_ARG, "%s: a key has the byte 0x%02x; expected visible ASCII", where,
                           (unsigned char)key[i]);
    if (n == 0 || n > MAX_KEY)
        return HN_FAIL(err, HONE_E_ARG, "%s: a key of %zu bytes; expected 1 to %d", where, n, MAX_KEY);
    if (k->n == MAX_KEYS) return HN_FAIL(err, HONE_E_ARG, "%s: more than %d keys", where, MAX_KEYS);
    unsigned char(*more)[32] = realloc(k->digest, (k->n + 1) * sizeof *more);
    if (!more) return HN_FAIL(err, HONE_E_NOMEM, "keys of clients");
    k->digest = more;
    digest_of(k->digest[k->n++], key, n);
    return HONE_OK;
}

/* The file is opened once: its mode and its lines are those of one file. */
static hone_status add_file(hn_http_keys *k, const char *path, hone_error *err)
{
    hn_lines r;
    struct stat sb;
    char line[MAX_KEY + 2]; /* a longer line is cut to more than a key may have */
    hone_status st = HONE_OK;
    if (!hn_lines_open(&r, path))
        return HN_FAIL(err, HONE_E_IO, "%s: %s; expected a file of keys, one a line", path, strerror(errno));
    if (fstat(r.fd, &sb) != 0) st = HN_FAIL(err, HONE_E_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(sb.st_mode)) st = HN_FAIL(err, HONE_E_ARG, "%s: not a file; expected one of keys", path);
    else if (sb.st_mode & 077)
        st = HN_FAIL(err, HONE_E_ARG, "%s: mode %04o lets others read or write the keys; expected 0600 (chmod 600 %s)",
                     path, (unsigned)(sb.st_mode & 07777), path);
    size_t before = k->n;
    while (st == HONE_OK && hn_lines_next(&r, line, sizeof line)) {
        size_t n = strlen(line);
        while (n && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t')) line[--n] = 0;
        if (n && line[0] != '#') st = add(k, line, path, err);
    }
    hn_lines_close(&r);
    if (st == HONE_OK && k->n == before) st = HN_FAIL(err, HONE_E_ARG, "%s: no key in it; expected one a line", path);
    return st;
}

hone_status hn_http_keys_read(hn_http_keys *out, const char *key, const char *path, hone_error *err)
{
    hone_status st = HONE_OK;
    *out = (hn_http_keys){ 0 };
    if (key) st = add(out, key, "the key", err);
    if (st == HONE_OK && path) st = add_file(out, path, err);
    if (st != HONE_OK) hn_http_keys_free(out);
    return st;
}

void hn_http_keys_free(hn_http_keys *k)
{
    free(k->digest);
    *k = (hn_http_keys){ 0 };
}

bool hn_http_keys_has(const hn_http_keys *k, const char *text, size_t n, uint64_t *who)
{
    unsigned char d[32];
    uint64_t found = 0;
    digest_of(d, text, n);
    for (size_t i = 0; i < k->n; i++) {
        uint64_t differ = 0;
        for (size_t b = 0; b < sizeof d; b++) differ |= (uint64_t)(d[b] ^ k->digest[i][b]);
        found |= (differ - 1) >> 63; /* the top bit is set where nothing differs; no branch */
    }
    *who = found * (hn_fnv1a(HN_FNV_INIT, d, sizeof d) | 1); /* of the key: places change when the file does */
    return found != 0;
}
