/* fetch: requests for files and short texts, several at a time, on one thread, over libcurl. */
#include "hub/fetch.h"
#include "hub/curl_load.h"
#include "hub/url.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_HOPS = 5 };

bool hn_fetch_again(const hn_fetch_call *c)
{
    static const int soon[] = { 408, 429, 500, 502, 503, 504 };
    if (c->end == HN_FETCH_LOST) return true;
    if (c->head.wait_s > HN_FETCH_MOST_WAIT_S) return false;
    for (size_t i = 0; c->end == HN_FETCH_WHOLE && i < sizeof soon / sizeof *soon; i++)
        if (c->head.status == soon[i]) return true;
    return false;
}

void hn_fetch_text_free(hn_fetch_text *t)
{
    free(t->p);
    free(t->at);
    free(t->next);
    memset(t, 0, sizeof *t);
}

#ifndef HN_WITH_CURL

static const char missing[] = "this hone was built without libcurl, so it downloads nothing: install "
                              "libcurl4-openssl-dev (Debian 12 name) and build it again; or download with another "
                              "program: hone reads any GGUF file, and the cache of Hugging Face's tools";

bool hn_fetch_there(const char **what)
{
    *what = missing;
    return false;
}
hone_status hn_fetch_new(hn_fetch **out, const hn_fetch_rules *rules, hone_error *err)
{
    *out = NULL;
    return HN_FAIL(err, HONE_E_NETWORK, "%s", missing);
}
void hn_fetch_free(hn_fetch *h) {}
hone_status hn_fetch_begin(hn_fetch *h, hn_fetch_call *c, const char *url, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NETWORK, "%s", missing);
}
void hn_fetch_drop(hn_fetch *h, hn_fetch_call *c) {}
hone_status hn_fetch_turn(hn_fetch *h, int ms, hone_error *err) { return HN_FAIL(err, HONE_E_NETWORK, "%s", missing); }
hone_status hn_fetch_pause(hn_fetch *h, int n, double wait_s, const char *why, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NETWORK, "%s", missing);
}
hone_status hn_fetch_get(hn_fetch *h, hn_fetch_text *out, const char *url, const char *accept, size_t max_bytes,
                         hone_error *err)
{
    return HN_FAIL(err, HONE_E_NETWORK, "%s", missing);
}
const hn_fetch_rules *hn_fetch_rules_of(const hn_fetch *h) { return NULL; }
bool hn_fetch_answered(const hn_fetch *h) { return false; }
void hn_fetch_hasty(hn_fetch *h, bool hasty) {}

#else

struct hn_fetch {
    const hn_curl *curl;
    CURLM *multi;
    hn_fetch_rules rules;
    bool answered, hasty;
    struct hn_fetch_wire *wires;
};

/* A request on its way: one hop of a call. */
enum { MOST_IDLE_BYTES = 1 << 20 }; /* of a call: it ends beyond, as it would without an end */

struct hn_fetch_wire {
    hn_fetch *h;
    hn_fetch_call *call;
    CURL *easy;
    struct curl_slist *headers;
    char *to; /* Location */
    int hops;
    bool at_endpoint, told; /* told: on_head has been called */
    double heard;           /* when something came last, in s */
    size_t idle_bytes;      /* of headers, and of bodies that nobody reads */
    struct hn_fetch_wire *next;
    char words[CURL_ERROR_SIZE];
};
typedef struct hn_fetch_wire wire;

const hn_fetch_rules *hn_fetch_rules_of(const hn_fetch *h) { return &h->rules; }
bool hn_fetch_answered(const hn_fetch *h) { return h->answered; }
void hn_fetch_hasty(hn_fetch *h, bool hasty) { h->hasty = hasty; }

bool hn_fetch_there(const char **what)
{
    const hn_curl *curl = hn_curl_load(what);
    if (curl) *what = curl->version_info(CURLVERSION_NOW)->version;
    return curl != NULL;
}

hone_status hn_fetch_new(hn_fetch **out, const hn_fetch_rules *rules, hone_error *err)
{
    const char *why;
    *out = NULL;
    const hn_curl *curl = hn_curl_load(&why);
    if (!curl) return HN_FAIL(err, HONE_E_NETWORK, "%s", why);
    hn_fetch *h = calloc(1, sizeof *h);
    CURLM *multi = h ? curl->multi_init() : NULL;
    if (!multi) {
        free(h);
        return HN_FAIL(err, HONE_E_NOMEM, "a client for http");
    }
    h->curl = curl;
    h->multi = multi;
    h->rules = *rules;
    *out = h;
    return HONE_OK;
}

void hn_fetch_free(hn_fetch *h)
{
    if (!h) return;
    h->curl->multi_cleanup(h->multi);
    free(h);
}

/* ---- what an answer says ------------------------------------------------------------------------ */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Link: <address>; rel="next" */
static void read_link(hn_fetch_call *c, const char *v, size_t n)
{
    char *to = hn_head_next(v, n);
    if (!to) return;
    free(c->next);
    hn_url_join(&c->next, c->at, to, NULL);
    free(to);
}

static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
    wire *w = arg;
    hn_fetch_call *c = w->call;
    hn_fetch_head *a = &c->head;
    size_t len = size * count, n;
    const char *v;
    w->heard = now_s();
    w->idle_bytes += len;
    if (w->idle_bytes > MOST_IDLE_BYTES) return 0; /* headers without an end */
    if (len > 9 && strncasecmp(line, "HTTP/", 5) == 0) {
        hn_head_begin(a, line, len);
        free(w->to);
        free(c->next);
        w->to = c->next = NULL;
        w->h->answered = true;
    } else if (hn_head_is(line, len, "Link", &v, &n)) {
        read_link(c, v, n);
    } else if (hn_head_is(line, len, "Location", &v, &n)) {
        free(w->to);
        w->to = strndup(v, n);
        if (!w->to) return 0;
    } else {
        hn_head_line(a, line, len, w->at_endpoint);
    }
    return len;
}

static bool redirects(const hn_fetch_head *a)
{
    return a->status == 301 || a->status == 302 || a->status == 303 || a->status == 307 || a->status == 308;
}

static bool tell(wire *w)
{
    if (w->told) return true;
    w->told = true;
    return !w->call->on_head || w->call->on_head(w->call);
}

static size_t on_bytes(char *p, size_t size, size_t count, void *arg)
{
    wire *w = arg;
    size_t n = size * count;
    w->heard = now_s();
    if (redirects(&w->call->head)) {
        w->idle_bytes += n;
        return w->idle_bytes > MOST_IDLE_BYTES ? 0 : n; /* nobody reads these bodies */
    }
    return tell(w) && w->call->on_body(w->call, p, n) ? n : 0;
}

/* ---- a call ------------------------------------------------------------------------------------------ */

static void end_wire(wire *w)
{
    const hn_curl *curl = w->h->curl;
    for (wire **p = &w->h->wires; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            break;
        }
    if (w->easy) {
        curl->multi_remove_handle(w->h->multi, w->easy);
        curl->easy_cleanup(w->easy);
    }
    if (w->headers) curl->slist_free_all(w->headers);
    free(w->to);
    free(w);
}

static bool add_header(wire *w, const char *name, const char *value)
{
    char line[4200];
    if ((size_t)snprintf(line, sizeof line, "%s: %s", name, value) >= sizeof line) return false;
    struct curl_slist *l = w->h->curl->slist_append(w->headers, line);
    if (l) w->headers = l;
    return l != NULL;
}

/* Who is vouched for, as curl and huggingface_hub have it: a file, or a folder of files that OpenSSL finds by hash. */
static bool set_trusted(const hn_curl *curl, CURL *e)
{
    static const char *const bundles[] = { "CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE" };
    for (size_t i = 0; i < sizeof bundles / sizeof *bundles; i++) {
        const char *bundle = getenv(bundles[i]);
        struct stat sb;
        if (!bundle || !*bundle) continue;
        bool folder = stat(bundle, &sb) == 0 && S_ISDIR(sb.st_mode);
        if (!folder) return curl->easy_setopt(e, CURLOPT_CAINFO, bundle) == CURLE_OK;
        return curl->easy_setopt(e, CURLOPT_CAINFO, NULL) == CURLE_OK &&
               curl->easy_setopt(e, CURLOPT_CAPATH, bundle) == CURLE_OK;
    }
    return true;
}

static bool set_up(wire *w, const char *url)
{
    const hn_fetch *h = w->h;
    const hn_fetch_call *c = w->call;
    const hn_curl *curl = h->curl;
    CURL *e = w->easy;
    hn_url u;
    char range[64], bearer[4150];
    bool ok = hn_url_parse(&u, url, NULL);
#define SET(option, value) ok = ok && curl->easy_setopt(e, CURLOPT_##option, value) == CURLE_OK
    SET(URL, url);
    SET(NOSIGNAL, 1L);
    SET(SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's own answers are not the hub's */
    SET(FOLLOWLOCATION, 0L);
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1); /* as many connections as there are calls */
    SET(USERAGENT, "hone/" HONE_VERSION);
    SET(BUFFERSIZE, 512L << 10);
    SET(CONNECTTIMEOUT, (long)(h->rules.silence_s < 15 ? h->rules.silence_s : 15));
    SET(ERRORBUFFER, w->words);
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, (void *)w);
    SET(WRITEFUNCTION, on_bytes);
    SET(WRITEDATA, (void *)w);
    SET(PRIVATE, (void *)w);
    if (u.loopback) SET(PROXY, "");
    ok = ok && set_trusted(curl, e);
    if (c->ranged) {
        snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)c->first, (unsigned long long)c->last);
        SET(RANGE, range);
    }
    ok = ok && add_header(w, "Accept-Encoding", "identity") && add_header(w, "Accept", c->accept ? c->accept : "*/*");
    w->at_endpoint = h->rules.endpoint && hn_url_same_origin(url, h->rules.endpoint);
    if (ok && w->at_endpoint && h->rules.token) {
        ok = (size_t)snprintf(bearer, sizeof bearer, "Bearer %s", h->rules.token) < sizeof bearer &&
             add_header(w, "Authorization", bearer);
        memset(bearer, 0, sizeof bearer);
    }
    SET(HTTPHEADER, w->headers);
#undef SET
    return ok;
}

/* The next hop of c goes to url. */
static hone_status begin_hop(hn_fetch *h, hn_fetch_call *c, const char *url, int hops, hone_error *err)
{
    wire *w = calloc(1, sizeof *w);
    char *at = strdup(url);
    if (!w || !at || !(w->easy = h->curl->easy_init())) {
        free(w);
        free(at);
        return HN_FAIL(err, HONE_E_NOMEM, "a request");
    }
    w->h = h;
    w->call = c;
    w->hops = hops;
    free(c->at);
    c->at = at;
    if (!set_up(w, at) || h->curl->multi_add_handle(h->multi, w->easy) != CURLM_OK) {
        end_wire(w);
        return HN_FAIL(err, HONE_E_NETWORK, "%s: libcurl does not take this request", HN_ESC(url, strlen(url)));
    }
    w->heard = now_s();
    w->next = h->wires;
    h->wires = w;
    c->wire = w;
    c->end = HN_FETCH_RUNNING;
    return HONE_OK;
}

hone_status hn_fetch_begin(hn_fetch *h, hn_fetch_call *c, const char *url, hone_error *err)
{
    hn_head_clear(&c->head);
    c->at = c->next = NULL;
    c->wire = NULL;
    c->why[0] = 0;
    c->end = HN_FETCH_FAILED;
    hone_status st = hn_url_allowed(url, NULL, h->rules.insecure, err);
    return st == HONE_OK ? begin_hop(h, c, url, 0, err) : st;
}

void hn_fetch_drop(hn_fetch *h, hn_fetch_call *c)
{
    if (c->wire) end_wire(c->wire);
    free(c->at);
    free(c->next);
    c->wire = NULL;
    c->at = c->next = NULL;
}

static void ends(hn_fetch_call *c, hn_fetch_end end, const char *why)
{
    c->end = end;
    snprintf(c->why, sizeof c->why, "%s", why);
    end_wire(c->wire);
    c->wire = NULL;
}

static void follow(hn_fetch *h, wire *w)
{
    hn_fetch_call *c = w->call;
    hone_error err;
    char *to = NULL, *was = c->at;
    hone_status st;
    if (!w->to) return ends(c, HN_FETCH_FAILED, "a redirect without a Location");
    if (w->hops == MAX_HOPS) return ends(c, HN_FETCH_FAILED, "more than 5 redirects, one behind the other");
    if ((st = hn_url_join(&to, was, w->to, &err)) == HONE_OK) st = hn_url_allowed(to, was, h->rules.insecure, &err);
    int hops = w->hops + 1;
    if (st == HONE_OK) {
        end_wire(w);
        c->wire = NULL;
        st = begin_hop(h, c, to, hops, &err);
    }
    if (st != HONE_OK) {
        if (c->wire) ends(c, HN_FETCH_FAILED, err.message);
        c->end = HN_FETCH_FAILED;
        snprintf(c->why, sizeof c->why, "%.*s", (int)sizeof c->why - 1, err.message);
    }
    free(to);
}

static bool for_good(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_ISSUER_ERROR || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
           code == CURLE_SSL_ENGINE_NOTFOUND || code == CURLE_NOT_BUILT_IN;
}

static void finish(hn_fetch *h, wire *w, CURLcode code)
{
    hn_fetch_call *c = w->call;
    char words[CURL_ERROR_SIZE];
    if (code == CURLE_OK) {
        if (redirects(&c->head)) return follow(h, w);
        return ends(c, tell(w) ? HN_FETCH_WHOLE : HN_FETCH_REFUSED, "");
    }
    if (code == CURLE_WRITE_ERROR) return ends(c, HN_FETCH_REFUSED, "");
    snprintf(words, sizeof words, "%s", *w->words ? w->words : h->curl->easy_strerror(code));
    ends(c, for_good(code) ? HN_FETCH_FAILED : HN_FETCH_LOST, words);
}

hone_status hn_fetch_turn(hn_fetch *h, int ms, hone_error *err)
{
    const hn_curl *curl = h->curl;
    int running, left;
    CURLMcode m = curl->multi_perform(h->multi, &running);
    if (m == CURLM_OK && running) m = curl->multi_poll(h->multi, NULL, 0, ms, NULL);
    if (m == CURLM_OK && running) m = curl->multi_perform(h->multi, &running);
    for (CURLMsg *msg; (msg = curl->multi_info_read(h->multi, &left));) {
        if (msg->msg != CURLMSG_DONE) continue;
        CURLcode code = msg->data.result;
        CURL *easy = msg->easy_handle;
        wire *w = NULL;
        if (curl->easy_getinfo(easy, CURLINFO_PRIVATE, &w) == CURLE_OK && w) finish(h, w, code);
    }
    double now = now_s();
    for (wire *w = h->wires, *next; w; w = next) { /* curl's own watch takes an average, and seconds more */
        char words[64];
        next = w->next;
        snprintf(words, sizeof words, "nothing came for %d s", h->rules.silence_s);
        if (now - w->heard > h->rules.silence_s) ends(w->call, HN_FETCH_LOST, words);
    }
    if (h->rules.stop && h->rules.stop(h->rules.arg)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    if (m != CURLM_OK) return HN_FAIL(err, HONE_E_NETWORK, "libcurl: %s", curl->multi_strerror(m));
    return HONE_OK;
}

/* ---- trying again --------------------------------------------------------------------------------------- */

hone_status hn_fetch_pause(hn_fetch *h, int n, double wait_s, const char *why, hone_error *err)
{
    static const int times[] = { 1, 2, 4, 8 };
    char line[400];
    double s = wait_s >= 0 ? wait_s + h->rules.wait_s : h->rules.wait_s * times[n < 3 ? n : 3];
    snprintf(line, sizeof line, "%s: trying again in %.3g s", why, s);
    if (h->rules.say) h->rules.say(h->rules.arg, line);
    for (double left = s; left > 0; left -= 0.05) {
        double now = fmin(left, 0.05);
        struct timespec nap = { 0, (long)(now * 1e9) };
        nanosleep(&nap, NULL);
        if (h->rules.stop && h->rules.stop(h->rules.arg)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    }
    return HONE_OK;
}

typedef struct gathered {
    hn_fetch_text *t;
    size_t max;
    bool too_long, no_memory;
} gathered;

static bool gather(hn_fetch_call *c, const void *p, size_t n)
{
    gathered *g = c->arg;
    hn_fetch_text *t = g->t;
    if (n > g->max - t->n) {
        g->too_long = true;
        return false;
    }
    char *more = realloc(t->p, t->n + n + 1);
    if (!more) {
        g->no_memory = true;
        return false;
    }
    memcpy(more + t->n, p, n);
    t->p = more;
    t->n += n;
    t->p[t->n] = 0;
    return true;
}

static hone_status get_once(hn_fetch *h, hn_fetch_call *c, const char *url, gathered *g, hone_error *err)
{
    hone_status st = hn_fetch_begin(h, c, url, err);
    while (st == HONE_OK && c->end == HN_FETCH_RUNNING) st = hn_fetch_turn(h, 100, err);
    if (st != HONE_OK) return st;
    if (g->no_memory) return HN_FAIL(err, HONE_E_NOMEM, "what %s says", HN_ESC(url, strlen(url)));
    if (g->too_long)
        return HN_FAIL(err, HONE_E_NETWORK, "%s says more than %zu bytes; expected less", HN_ESC(url, strlen(url)),
                       g->max);
    return HONE_OK;
}

hone_status hn_fetch_get(hn_fetch *h, hn_fetch_text *out, const char *url, const char *accept, size_t max_bytes,
                         hone_error *err)
{
    hone_status st = HONE_OK;
    for (int n = 0;; n++) {
        hn_fetch_text_free(out);
        gathered g = { out, max_bytes, false, false };
        hn_fetch_call c = { .accept = accept, .on_body = gather, .arg = &g };
        st = get_once(h, &c, url, &g, err);
        bool again = st == HONE_OK && hn_fetch_again(&c) && n + 1 < h->rules.tries && (h->answered || !h->hasty);
        if (st == HONE_OK && !again && c.end != HN_FETCH_WHOLE)
            st = HN_FAIL(err, HONE_E_NETWORK, "%s: %s", HN_ESC(url, strlen(url)), c.why);
        if (st == HONE_OK && !again && *c.head.encoding)
            st = HN_FAIL(err, HONE_E_NETWORK,
                         "%s: the answer is packed (Content-Encoding %s), which nobody asked for; "
                         "expected it as it is",
                         HN_ESC(url, strlen(url)), HN_ESC(c.head.encoding, strlen(c.head.encoding)));
        if (again) {
            char why[340];
            if (c.end == HN_FETCH_WHOLE) snprintf(why, sizeof why, "status %d", c.head.status);
            else snprintf(why, sizeof why, "%s", c.why);
            st = hn_fetch_pause(h, n, c.end == HN_FETCH_WHOLE ? c.head.wait_s : -1, why, err);
        }
        if (!again && st == HONE_OK) {
            out->head = c.head;
            out->at = c.at;
            out->next = c.next;
            c.at = c.next = NULL;
            if (!out->p) st = (out->p = calloc(1, 1)) ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "an answer");
        }
        hn_fetch_drop(h, &c);
        if (!again || st != HONE_OK) return st;
    }
}

#endif
