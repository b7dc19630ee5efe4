/* pull_address: one file from any address. Owns where it goes, and whether a file that has its name already is the one
 * that is meant; how bytes come is download's. */
#include "hub/pull.h"

#include "base/file.h"
#include "base/known.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- where from: kept beside what else is known of a file ------------------------------------------------- */

static const char kind[] = "url";

static bool key_of(hn_known_key *key, const char *path)
{
    struct stat sb;
    hn_known_file f = { .path = path };
    if (stat(path, &sb) != 0) return false;
    hn_stamp_of(&f.stamp, &sb);
    return hn_known_key_of(key, &f, 1);
}

/* Without what is behind '?': that may be a signature, another each time. */
static void sum_of(unsigned char sum[32], const char *url)
{
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, url, strcspn(url, "?#"));
    hn_sha256_end(&s, sum);
}

static void remember(const char *path, const char *url)
{
    hn_known_key key;
    unsigned char sum[32];
    sum_of(sum, url);
    if (key_of(&key, path)) hn_known_put(&key, kind, path, sum, sizeof sum); /* else it is asked for its size */
}

/* Is the file known to be of this address, or of another? */
static bool recall(const char *path, const char *url, bool *same)
{
    hn_known_key key;
    unsigned char sum[32], was[32];
    sum_of(sum, url);
    if (!key_of(&key, path) || !hn_known_get(&key, kind, was, sizeof was)) return false;
    *same = memcmp(sum, was, sizeof was) == 0;
    return true;
}

/* ---- the file that is there ------------------------------------------------------------ */

static hone_status another(const char *path, const char *why, hone_error *err)
{
    return HN_FAIL(err, HONE_E_ARG,
                   "%s is there already, and %s; expected that file, or none: remove it, or give another name "
                   "(--output FILE)",
                   HN_ESC(path, strlen(path)), why);
}

/* Is what has the name the file of this address? By what is known of it, else by its size, for which the address is
 * asked; where nobody answers it is taken. */
static hone_status is_this(hn_puller *p, const hn_download *d, uint64_t have, hone_error *err)
{
    char words[200];
    const char *path = d->names.whole;
    bool same;
    uint64_t size;
    if (recall(path, d->url, &same)) return same ? HONE_OK : another(path, "came from another address", err);
    hone_status st = hn_download_size(p->http, d, &size, err);
    if (st == HONE_E_NETWORK && !hn_fetch_answered(p->http)) {
        char line[600];
        snprintf(line, sizeof line, "%.400s; what is here is taken, the same or not", err->message);
        if (p->want->say) p->want->say(p->want->arg, line);
        return HONE_OK;
    }
    if (st != HONE_OK) return st;
    snprintf(words, sizeof words, "has %" PRIu64 " bytes, where the address has %" PRIu64, have, size);
    if (have != size) return another(path, words, err);
    remember(path, d->url);
    return HONE_OK;
}

/* ---- all of it ------------------------------------------------------------ */

/* whole: where it goes. */
static hone_status place(char whole[HN_CACHE_PATH], const hn_puller *p, hone_error *err)
{
    char folder[HN_CACHE_PATH], base[HN_NAME_FILE];
    const char *url = p->out->name.url, *output = p->want->output;
    int len = 0;
    hone_status st = HONE_OK;
    if (output) {
        len = snprintf(whole, HN_CACHE_PATH, "%s", output);
    } else if (!hn_name_url_file(base, url)) {
        st = HN_FAIL(err, HONE_E_ARG,
                     "%s: its last part is no name for a file; expected one of up to %d bytes, or --output FILE",
                     HN_ESC(url, strlen(url)), HN_NAME_FILE - 1);
    } else if ((st = hn_models_home(folder, err)) == HONE_OK) {
        len = snprintf(whole, HN_CACHE_PATH, "%s/%s", folder, base);
    }
    if (st == HONE_OK && len >= HN_CACHE_PATH - 32) st = HN_FAIL(err, HONE_E_ARG, "the path of the file is too long");
    return st == HONE_OK ? hn_file_check(whole, err) : st;
}

hone_status hn_pull_address(hn_puller *p, hone_error *err)
{
    const hn_pull_want *w = p->want;
    char whole[HN_CACHE_PATH], part[HN_CACHE_PATH + 16], journal[HN_CACHE_PATH + 24];
    struct stat sb;
    const hn_fetch_rules rules = { .insecure = w->insecure,
                                   .silence_s = w->silence_s,
                                   .tries = w->tries,
                                   .wait_s = w->wait_s,
                                   .stop = w->stop,
                                   .say = w->say,
                                   .arg = w->arg };
    hone_status st = place(whole, p, err);
    if (st != HONE_OK) return st;
    snprintf(part, sizeof part, "%s.hone-part", whole);
    snprintf(journal, sizeof journal, "%s.json", part);
    const char *slash = strrchr(whole, '/');
    st = hn_fetch_new(&p->http, &rules, err);
    hn_pulled_file *f = st == HONE_OK ? hn_pull_add(p, slash ? slash + 1 : whole, whole, 0, err) : NULL;
    if (st == HONE_OK && !f) st = HONE_E_NOMEM;
    hn_download d = { .url = p->out->name.url,
                      .size = UINT64_MAX,
                      .names = { .whole = whole, .part = part, .journal = journal, .what = f ? f->path : "" } };
    if (st == HONE_OK && stat(whole, &sb) == 0) st = is_this(p, &d, (uint64_t)sb.st_size, err);
    if (st == HONE_OK) st = hn_pull_one(p, f, &d, NULL, err);
    hn_fetch_free(p->http);
    p->http = NULL;
    if (st == HONE_OK && !f->cached) remember(whole, d.url);
    if (st == HONE_OK && f->cached && stat(whole, &sb) == 0) p->out->bytes = f->size = (uint64_t)sb.st_size;
    snprintf(p->out->path, sizeof p->out->path, "%s", whole);
    snprintf(p->out->why, sizeof p->out->why, "the file that was named");
    return st;
}
