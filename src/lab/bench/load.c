/* Clients of load.h: a thread each, blocking sockets, one connection for each request. */
#include "lab/bench/load.h"

#include "lab/machine/clock.h"
#include "base/json_tree.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CLIENTS = 1024, LINE = 1 << 16, MOST_GAPS = 1 << 16 };

typedef struct load_state {
    const hn_load_params *p;
    struct addrinfo *address;
    char host[256];
    _Atomic int32_t next; /* place of the next request */
    uint64_t t0;
    uint64_t *due; /* [n_requests] when each is to come, ns behind t0; NULL: as soon as a client is free */
    hn_load_run *run;
    pthread_mutex_t lock; /* of gaps */
    size_t cap_gap;
    _Atomic bool lost; /* memory */
} load_state;

/* ---- prompts ---------------------------------------------------------------------------------------------------- */

static const char *const words[] = { "time",  "house", "water",  "people", "small",  "green",  "under",  "found",
                                     "river", "music", "table",  "seven",  "light",  "stone",  "paper",  "north",
                                     "bread", "early", "cloud",  "plant",  "horse",  "ready",  "night",  "train",
                                     "round", "chair", "market", "winter", "garden", "letter", "window", "mountain" };

char *hn_load_prompt(const hn_load_params *p, int32_t place)
{
    size_t cap = (size_t)p->n_words * 10 + 32, n = 0;
    char *s = malloc(cap);
    uint64_t key = hn_rand64(p->seed, (uint64_t)place);
    if (!s) return NULL;
    n += (size_t)snprintf(s, cap, "%d", place);
    for (int32_t i = 1; i < p->n_words; i++)
        n += (size_t)snprintf(s + n, cap - n, " %s",
                              words[hn_rand64(key, (uint64_t)i) % (sizeof words / sizeof *words)]);
    return s;
}

/* ---- a connection ----------------------------------------------------------------------------------------------- */

typedef struct wire {
    int fd;
    char *buf; /* [cap] what came and was not read yet: [at, n) */
    size_t at, n, cap;
    bool chunked;
    size_t chunk; /* bytes left of the running one */
    bool over;
} wire;

static bool send_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n); /* SIGPIPE is ignored in this program */
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* More of what comes; false: the end, or too long a line. */
static bool fill(wire *w)
{
    if (w->at) {
        memmove(w->buf, w->buf + w->at, w->n - w->at);
        w->n -= w->at;
        w->at = 0;
    }
    if (w->n == w->cap) return false;
    ssize_t k = recv(w->fd, w->buf + w->n, w->cap - w->n, 0);
    if (k <= 0) return false;
    w->n += (size_t)k;
    return true;
}

/* A raw line without its end, valid until the next call; NULL: the end. */
static char *raw_line(wire *w, size_t *len)
{
    for (size_t seen = w->at;;) {
        char *end = memchr(w->buf + seen, '\n', w->n - seen);
        if (end) {
            char *line = w->buf + w->at;
            *len = (size_t)(end - line);
            w->at += *len + 1;
            if (*len && line[*len - 1] == '\r') (*len)--;
            line[*len] = 0;
            return line;
        }
        size_t had = w->n - w->at;
        if (!fill(w)) return NULL;
        seen = w->at + had;
    }
}

/* The next byte of the body; -1: its end. */
static int body_byte(wire *w)
{
    if (w->over) return -1;
    if (w->chunked && !w->chunk) {
        size_t n;
        char *line = raw_line(w, &n);
        if (line && !n) line = raw_line(w, &n); /* the end of the chunk before */
        if (!line || !(w->chunk = strtoul(line, NULL, 16))) {
            w->over = true;
            return -1;
        }
    }
    if (w->at == w->n && !fill(w)) {
        w->over = true;
        return -1;
    }
    if (w->chunked) w->chunk--;
    return (unsigned char)w->buf[w->at++];
}

/* A line of the body in dst; false: nothing more. */
static bool body_line(wire *w, char *dst, size_t cap)
{
    size_t n = 0;
    int c = body_byte(w);
    if (c < 0) return false;
    for (; c >= 0 && c != '\n'; c = body_byte(w))
        if (n + 1 < cap && c != '\r') dst[n++] = (char)c;
    dst[n] = 0;
    return true;
}

/* ---- one request ------------------------------------------------------------------------------------------------ */

/* The number behind "name": in a line of JSON; -1: it is not there. */
static int32_t number_of(const char *line, const char *name)
{
    char key[40];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(line, key);
    if (!at) return -1;
    return (int32_t)strtol(at + strlen(key), NULL, 10);
}

/* Four hexadecimal digits; -1: there are none. */
static int32_t hex4(const char *s)
{
    int32_t c = 0;
    for (int i = 0; i < 4; i++) {
        char lower = (char)(s[i] | 0x20);
        bool digit = s[i] >= '0' && s[i] <= '9';
        if (!digit && !(lower >= 'a' && lower <= 'f')) return -1;
        c = 16 * c + (digit ? s[i] - '0' : lower - 'a' + 10);
    }
    return c;
}

/* The character behind \u, as UTF-8; *at moves past it. A half that stands alone stays one. */
static size_t unicode(char out[4], const char **at)
{
    int32_t c = hex4(*at);
    if (c < 0) return 0;
    *at += 4;
    if (c >= 0xD800 && c < 0xDC00 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        int32_t low = hex4(*at + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            *at += 6;
        }
    }
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (size_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 63));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Adds the text of a piece to the answer: its bytes, however its writer escapes them in JSON. Returns how many. */
static size_t take_text(hn_load_one *one, const char *line)
{
    static const char escapes[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *at = strstr(line, "\"text\":");
    size_t n = 0;
    if (!at) return 0;
    at += 7;
    while (*at == ' ') at++;
    if (*at++ != '"') return 0;
    while (*at && *at != '"') {
        char c[4] = { *at++ };
        size_t k = 1;
        if (c[0] == '\\' && *at) {
            const char *e = strchr(escapes, *at++);
            if (e) c[0] = means[e - escapes];
            else if (at[-1] == 'u') k = unicode(c, &at);
        }
        one->hash = hn_fnv1a(one->hash, c, k);
        n += k;
    }
    one->n_byte += (int64_t)n;
    return n;
}

static void add_gap(load_state *s, uint64_t ns)
{
    pthread_mutex_lock(&s->lock);
    if (s->run->n_gap == s->cap_gap) {
        size_t cap = s->cap_gap ? 2 * s->cap_gap : MOST_GAPS;
        uint64_t *more = realloc(s->run->gap, cap * sizeof *more);
        if (more) {
            s->run->gap = more;
            s->cap_gap = cap;
        } else {
            atomic_store(&s->lost, true);
        }
    }
    if (s->run->n_gap < s->cap_gap) s->run->gap[s->run->n_gap++] = ns;
    pthread_mutex_unlock(&s->lock);
}

static void fail(hn_load_one *one, const char *why)
{
    if (!one->problem[0]) snprintf(one->problem, sizeof one->problem, "%s", why);
}

/* named: the answer comes in one piece, with each of its tokens. */
static bool begin_request(load_state *s, int fd, int32_t place, bool named)
{
    const hn_load_params *p = s->p;
    char *prompt = hn_load_prompt(p, p->place ? p->place[place] : place);
    const char *more = p->more ? p->more : "";
    size_t cap = prompt ? strlen(prompt) + strlen(more) + 1024 : 0;
    char *body = prompt ? malloc(cap) : NULL, head[1024];
    bool ok = false;
    if (body) {
        char temperature[80] = "0";
        if (p->temp > 0) /* words that not every server knows */
            snprintf(temperature, sizeof temperature, "%g,\"top_k\":0,\"top_p\":1,\"min_p\":0", (double)p->temp);
        int n = snprintf(body, cap,
                         "{%s%s%s\"prompt\":\"%s\",\"max_tokens\":%d,\"temperature\":%s,\"seed\":1,\"ignore_eos\":true,"
                         "\"stream\":%s%s}",
                         p->model ? "\"model\":\"" : "", p->model ? p->model : "", p->model ? "\"," : "", prompt,
                         p->n_gen, temperature,
                         named      ? "false,\"logprobs\":1"
                         : p->whole ? "false"
                                    : "true,\"stream_options\":{\"include_usage\":true}",
                         more);
        int k = snprintf(head, sizeof head,
                         "POST /v1/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s%s%s"
                         "Connection: close\r\nContent-Length: %d\r\n\r\n",
                         s->host, p->api_key ? "Authorization: Bearer " : "", p->api_key ? p->api_key : "",
                         p->api_key ? "\r\n" : "", n);
        ok = k < (int)sizeof head && send_all(fd, head, (size_t)k) && send_all(fd, body, (size_t)n);
    } else {
        atomic_store(&s->lost, true);
    }
    free(prompt);
    free(body);
    return ok;
}

/* Status and headers. */
static bool read_head(wire *w, hn_load_one *one)
{
    size_t n;
    char *line = raw_line(w, &n);
    if (!line || n < 12) return false;
    one->status = (int)strtol(line + 9, NULL, 10);
    while ((line = raw_line(w, &n)) && n)
        if (strncasecmp(line, "transfer-encoding:", 18) == 0) w->chunked = strstr(line, "chunked") != NULL;
    return line != NULL;
}

static void read_usage(hn_load_one *one, const char *line)
{
    int32_t k = number_of(line, "completion_tokens");
    if (k >= 0) one->n_token = k;
    if ((k = number_of(line, "prompt_tokens")) >= 0) one->n_prompt = k;
}

/* What a server counts is its own word: it must fit what was asked for and what can be seen. A token is a byte of text
 * at least; of a character that the end divides, up to three are not shown. Not so behind the end of a turn, where ids
 * without text may follow: who wants exactly so many computes an answer himself. */
enum { UNSHOWN = 3 };
static void check_answer(const hn_load_params *p, hn_load_one *one)
{
    char why[sizeof one->problem];
    if (!one->n_byte) {
        fail(one, "an answer without text");
        one->thin = one->n_token > 0 && (p->exact ? one->n_token == p->n_gen : one->n_token <= p->n_gen);
    } else if (one->n_token <= 0) fail(one, "an answer without its number of tokens (usage.completion_tokens)");
    else if (one->n_token > p->n_gen) {
        snprintf(why, sizeof why, "%d tokens are counted where %d were asked for", one->n_token, p->n_gen);
        fail(one, why);
    } else if (p->exact && one->n_token != p->n_gen) {
        snprintf(why, sizeof why, "%d tokens of %d, though nothing is to end it", one->n_token, p->n_gen);
        fail(one, why);
    } else if (!p->exact && one->n_token > one->n_byte + UNSHOWN) {
        snprintf(why, sizeof why, "%d tokens are counted in a text of %lld bytes", one->n_token,
                 (long long)one->n_byte);
        fail(one, why);
        one->thin = true;
    }
}

enum { MOST_WHOLE = 64 << 20 }; /* bytes of an answer in one piece */

/* All of the body, malloc'ed, and 0 behind it; NULL: no memory, or too much of it. */
static char *read_all(wire *w, size_t *n)
{
    size_t cap = LINE;
    char *s = malloc(cap);
    int c;
    for (*n = 0; s && (c = body_byte(w)) >= 0; s[(*n)++] = (char)c) {
        if (*n + 1 < cap) continue;
        char *more = cap < MOST_WHOLE ? realloc(s, cap *= 2) : NULL;
        if (!more) free(s);
        s = more;
        if (!s) break;
    }
    if (s) s[*n] = 0;
    return s;
}

/* An answer in one piece. */
static void read_whole(wire *w, hn_load_one *one)
{
    size_t n;
    char *body = read_all(w, &n);
    if (body) {
        take_text(one, body);
        read_usage(one, body);
    } else fail(one, "an answer that does not fit the memory");
    free(body);
}

static void read_stream(load_state *s, wire *w, hn_load_one *one, uint64_t t0, char *line)
{
    uint64_t last = 0;
    bool done = false;
    while (!done && body_line(w, line, LINE)) {
        uint64_t now = hn_clock_ns();
        if (strncmp(line, "data: ", 6) != 0) continue;
        done = strncmp(line + 6, "[DONE]", 6) == 0;
        if (strstr(line, "\"error\"")) fail(one, "the server sent an error in the stream");
        if (take_text(one, line)) {
            one->n_event++;
            if (!one->first) one->first = now - t0;
            else if (now - last > one->longest_gap) one->longest_gap = now - last;
            if (last) add_gap(s, now - last);
            last = now;
        }
        read_usage(one, line);
    }
    if (!done) fail(one, "the stream ended without [DONE]");
}

/* A connection with whoever sits at s->address; false: one has a problem. */
static bool open_wire(const load_state *s, wire *w, hn_load_one *one)
{
    struct timeval limit = { .tv_sec = s->p->timeout_s };
    int yes = 1;
    w->fd = socket(s->address->ai_family, SOCK_STREAM, 0);
    if (w->fd < 0) {
        fail(one, strerror(errno));
        return false;
    }
    setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(w->fd, s->address->ai_addr, s->address->ai_addrlen) == 0) return true;
    fail(one, strerror(errno));
    close(w->fd);
    return false;
}

/* t0: when the request was to come. Where no client was free then, it waits from there on, as one who asks does. */
static void ask(load_state *s, int32_t place, uint64_t t0, char *line)
{
    hn_load_one *one = &s->run->one[place];
    wire w = { .cap = LINE, .buf = line + LINE };
    one->begun = t0 - s->t0;
    one->hash = HN_FNV_INIT;
    if (!open_wire(s, &w, one)) return;
    if (!begin_request(s, w.fd, place, false)) fail(one, "the request could not be sent");
    else if (!read_head(&w, one)) fail(one, "no answer");
    else if (one->status != 200) fail(one, "another status than 200");
    else if (s->p->whole) read_whole(&w, one);
    else read_stream(s, &w, one, t0, line);
    if (!one->problem[0]) check_answer(s->p, one);
    one->end = hn_clock_ns() - t0;
    close(w.fd);
}

/* ---- tokens without text ---------------------------------------------------------------------------------------- */

/* Behind the end of a turn a model goes on with tokens of control, which have no text: a server that counts more tokens
 * than its text has bytes, or has no text, need not lie. It is asked again to name them. */

/* How many tokens an answer names, which must be the same text and as many as it counts; -1: none, or another. */
static int32_t count_named(const json_t *o, const hn_load_one *was, bool greedy)
{
    json_t *choice = json_array_get(json_object_get(o, "choices"), 0), *text = json_object_get(choice, "text"), *each;
    json_t *tokens = json_object_get(json_object_get(choice, "logprobs"), "tokens");
    size_t i;
    if (!json_is_array(tokens) || !json_is_string(text)) return -1;
    json_array_foreach(tokens, i, each)
    {
        if (!json_is_string(each)) return -1;
    }
    if (greedy && hn_fnv1a(HN_FNV_INIT, json_string_value(text), json_string_length(text)) != was->hash) return -1;
    const double said = hn_json_number_of(json_object_get(o, "usage"), "completion_tokens");
    return said == (double)json_array_size(tokens) ? (int32_t)json_array_size(tokens) : -1;
}

/* How many tokens the answer of a place names; -1: it does not say so. */
static int32_t tokens_named(load_state *s, int32_t place, char *line)
{
    hn_load_one one = { 0 };
    wire w = { .cap = LINE, .buf = line + LINE };
    char *body = NULL;
    size_t n = 0;
    json_t *o = NULL;
    int32_t k = -1;
    if (!open_wire(s, &w, &one)) return k;
    if (begin_request(s, w.fd, place, true) && read_head(&w, &one) && one.status == 200) body = read_all(&w, &n);
    close(w.fd);
    if (body && hn_json_tree(&o, body, n, NULL, "answer", NULL) == HONE_OK)
        k = count_named(o, &s->run->one[place], s->p->temp <= 0);
    json_decref(o);
    free(body);
    return k;
}

/* A few of the answers with more tokens than bytes, one of each part: if each names as many as were counted, all of
 * them are believed. */
static void count_again(load_state *s)
{
    hn_load_run *r = s->run;
    int32_t n = 0, tried = 0, seen = 0;
    for (int32_t i = 0; i < r->n; i++) n += r->one[i].thin;
    if (n == 0) return;
    char *line = malloc(2 * LINE);
    bool believed = line != NULL;
    if (!line) atomic_store(&s->lost, true);
    for (int32_t i = 0; i < r->n && believed; i++) {
        if (!r->one[i].thin || (int64_t)seen++ * HN_LOAD_AGAIN < (int64_t)tried * n) continue;
        tried++;
        if (s->p->stop && s->p->stop(NULL)) believed = false;
        else believed = tokens_named(s, i, line) == r->one[i].n_token;
    }
    for (int32_t i = 0; i < r->n && believed; i++)
        if (r->one[i].thin) r->one[i].problem[0] = 0;
    free(line);
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

/* When the requests of open arrivals come: sums of exponential times, ns. */
static bool plan_arrivals(load_state *s)
{
    const hn_load_params *p = s->p;
    double t = 0;
    if (!(s->due = malloc((size_t)p->n_requests * sizeof *s->due))) return false;
    for (int32_t i = 0; i < p->n_requests; i++) {
        double u = ((double)(hn_rand64(p->seed ^ 0x5eed, (uint64_t)i) >> 11) + 1) * 0x1p-53;
        t -= log(u) / p->rate;
        s->due[i] = (uint64_t)(t * 1e9);
    }
    return true;
}

/* False: nobody waits any more. */
static bool wait_until(const load_state *s, uint64_t ns)
{
    enum { SLICE = 100000000 }; /* until the wish to stop is heard */
    for (uint64_t now; (now = hn_clock_ns()) < ns;) {
        uint64_t left = ns - now < SLICE ? ns - now : SLICE;
        if (s->p->stop && s->p->stop(NULL)) return false;
        struct timespec t = { .tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000) };
        nanosleep(&t, NULL);
    }
    return true;
}

static void *client(void *arg)
{
    load_state *s = arg;
    char *line = malloc(2 * LINE);
    bool opening = !s->due;
    if (!line) atomic_store(&s->lost, true);
    for (int32_t place; line && (place = atomic_fetch_add(&s->next, 1)) < s->p->n_requests; opening = false) {
        if (s->p->stop && s->p->stop(NULL)) break;
        if (s->due && !wait_until(s, s->t0 + s->due[place])) break;
        s->run->one[place].opening = opening;
        ask(s, place, s->due ? s->t0 + s->due[place] : hn_clock_ns(), line);
    }
    free(line);
    return NULL;
}

/* "http://HOST[:PORT]" */
static hone_status resolve(load_state *s, hone_error *err)
{
    const char *url = s->p->url, *at = url + 7;
    char name[200], port[8] = "80";
    if (strncmp(url, "http://", 7) != 0 || strlen(at) >= sizeof name)
        return HN_FAIL(err, HONE_E_ARG, "%s: expected http://HOST:PORT", HN_ESC(url, strlen(url)));
    snprintf(name, sizeof name, "%s", at);
    name[strcspn(name, "/")] = 0;
    snprintf(s->host, sizeof s->host, "%s", name);
    char *colon = strrchr(name, ':'), *bracket = strrchr(name, ']');
    if (colon && (!bracket || colon > bracket)) {
        snprintf(port, sizeof port, "%s", colon + 1);
        *colon = 0;
    }
    const char *host = name;
    if (*name == '[' && bracket) {
        *bracket = 0;
        host = name + 1;
    }
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    int failed = getaddrinfo(host, port, &hints, &s->address);
    return failed ? HN_FAIL(err, HONE_E_NETWORK, "%s: %s", HN_ESC(url, strlen(url)), gai_strerror(failed)) : HONE_OK;
}

static hone_status sum_up(load_state *s, hone_error *err)
{
    hn_load_run *r = s->run;
    uint64_t from = UINT64_MAX, to = 0;
    bool answered = false; /* one of them at least, if not as it was asked */
    for (int32_t i = 0; i < r->n; i++) {
        const hn_load_one *one = &r->one[i];
        answered |= one->status == 200;
        if (one->problem[0] || !one->end) {
            r->n_failed++;
            continue;
        }
        if (one->begun < from) from = one->begun;
        if (one->begun + one->end > to) to = one->begun + one->end;
        r->n_token += one->n_token;
        r->n_prompt += one->n_prompt;
    }
    r->seconds = to > from ? (double)(to - from) * 1e-9 : 0;
    if (s->p->stop && s->p->stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    if (atomic_load(&s->lost)) return HN_FAIL(err, HONE_E_NOMEM, "no memory for %d clients", s->p->n_clients);
    if (r->n_failed == r->n)
        return HN_FAIL(err, answered ? HONE_E_FORMAT : HONE_E_NETWORK, "%s: none of %d requests was answered%s: %s",
                       s->p->url, r->n, answered ? " so that it can be measured" : "", r->one[0].problem);
    return HONE_OK;
}

hone_status hn_load(hn_load_run *out, const hn_load_params *p, hone_error *err)
{
    *out = (hn_load_run){ 0 };
    load_state s = { .p = p, .run = out };
    int32_t n = p->n_clients < p->n_requests ? p->n_clients : p->n_requests, begun = 0;
    if (n < 1 || n > MOST_CLIENTS || p->n_words < 1)
        return HN_FAIL(err, HONE_E_ARG, "%d clients of %d requests, expected 1 to %d", p->n_clients, p->n_requests,
                       (int)MOST_CLIENTS);
    hone_status st = resolve(&s, err);
    if (st != HONE_OK) return st;

    pthread_t *thread = malloc((size_t)n * sizeof *thread);
    out->one = calloc((size_t)p->n_requests, sizeof *out->one);
    out->n = p->n_requests;
    pthread_mutex_init(&s.lock, NULL);
    if (!thread || !out->one || (p->rate > 0 && !plan_arrivals(&s))) atomic_store(&s.lost, true);
    const hn_clocks both = hn_clocks_begin();
    hn_stretches all = { 0 };
    s.t0 = both.from;
    while (!atomic_load(&s.lost) && begun < n && pthread_create(&thread[begun], NULL, client, &s) == 0) begun++;
    for (int32_t i = 0; i < begun; i++) pthread_join(thread[i], NULL);
    if (begun < n) atomic_store(&s.lost, true);
    const double told = hn_stretches_add(&all, &both), seen = 1e-9 * (double)all.seen;
    if (hn_clock_lies(told, seen))
        snprintf(out->lie, sizeof out->lie, "the clock ran %.3f s while the kernel's ran %.3f s", told, seen);

    if (out->one && !atomic_load(&s.lost)) count_again(&s);
    st = out->one ? sum_up(&s, err) : HN_FAIL(err, HONE_E_NOMEM, "no memory for %d requests", p->n_requests);
    pthread_mutex_destroy(&s.lock);
    free(thread);
    free(s.due);
    freeaddrinfo(s.address);
    if (st != HONE_OK) hn_load_free(out);
    return st;
}

void hn_load_free(hn_load_run *r)
{
    free(r->one);
    free(r->gap);
    *r = (hn_load_run){ 0 };
}

/* ---- the same again, alone -------------------------------------------------------------------------------------- */

uint64_t hn_load_hash(const hn_load_run *r)
{
    uint64_t h = HN_FNV_INIT;
    for (int32_t i = 0; i < r->n; i++) h = hn_fnv1a(h, &r->one[i].hash, sizeof r->one[i].hash);
    return h;
}

void hn_load_keep(hn_load_proof *proof, const hn_load_run *r, uint64_t seed)
{
    *proof = (hn_load_proof){ .seed = seed, .n = r->n < HN_LOAD_AGAIN ? r->n : HN_LOAD_AGAIN };
    for (int32_t i = 0; i < proof->n; i++) {
        int32_t from = (int32_t)((int64_t)r->n * i / proof->n), to = (int32_t)((int64_t)r->n * (i + 1) / proof->n);
        int32_t place = from + (int32_t)(hn_rand64(seed ^ 0xa6a1, (uint64_t)i) % (uint64_t)(to - from));
        proof->place[i] = place;
        proof->n_prompt[i] = r->one[place].n_prompt;
        if (!r->one[place].problem[0]) proof->hash[i] = r->one[place].hash | 1;
    }
}

hone_status hn_load_prove(const hn_load_proof *proof, const hn_load_params *p, int32_t *n_changed, int32_t *n_failed,
                          hone_error *err)
{
    hn_load_params alone = *p;
    hn_load_run r;
    if (!proof->n) return HONE_OK;
    alone.seed = proof->seed;
    alone.rate = 0;
    alone.n_clients = 1;
    alone.n_requests = proof->n;
    alone.place = proof->place;
    hone_status st = hn_load(&r, &alone, err);
    for (int32_t i = 0; st == HONE_OK && i < r.n; i++)
        *n_changed += proof->hash[i] && !r.one[i].problem[0] && proof->hash[i] != (r.one[i].hash | 1);
    *n_failed += st == HONE_OK ? r.n_failed : 0;
    hn_load_free(&r);
    return st;
}

/* ---- a server of ours ----------------------------------------------------------------------------------------- */

bool hn_load_address(char *url, size_t cap, const hn_beside *b)
{
    static const char before[] = "listening on ";
    char *said = hn_beside_said(b), *at = said ? strstr(said, before) : NULL;
    size_t n = at ? strcspn(at += sizeof before - 1, " \r\n") : 0;
    bool whole = n && n < cap && at[n] == '\n';
    if (whole) snprintf(url, cap, "%.*s", (int)n, at);
    free(said);
    return whole;
}

/* ---- any request ---------------------------------------------------------------------------------------------- */

/* Its head and its body. */
static bool post(const load_state *s, int fd, const char *path, const char *json)
{
    char head[600];
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nConnection: close\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     path, s->host, strlen(json));
    return n < (int)sizeof head && send_all(fd, head, (size_t)n) && send_all(fd, json, strlen(json));
}

hone_status hn_load_leave(const char *url, const char *path, const char *json, int32_t n, double seconds,
                          hone_error *err)
{
    enum { MOST = 64, SHORT_S = 1 };
    const hn_load_params p = { .url = url, .timeout_s = SHORT_S };
    load_state s = { .p = &p };
    struct pollfd at[MOST];
    nfds_t k = 0;
    char unread[4096];
    hone_status st = resolve(&s, err);
    if (st != HONE_OK) return st;
    for (int32_t i = 0; i < n && i < MOST; i++) {
        hn_load_one one = { 0 };
        wire w = { .fd = -1 };
        if (!open_wire(&s, &w, &one)) continue;
        at[k++] = (struct pollfd){ .fd = w.fd, .events = POLLIN };
        (void)post(&s, w.fd, path, json); /* what is not sent is not answered: it goes away all the same */
    }
    for (const uint64_t until = hn_clock_ns() + (uint64_t)(seconds * 1e9); hn_clock_ns() < until;) {
        if (poll(at, k, 10) <= 0) continue;
        for (nfds_t i = 0; i < k; i++) {
            if (!at[i].revents || recv(at[i].fd, unread, sizeof unread, 0) > 0) continue;
            close(at[i].fd);
            at[i].fd = -1; /* poll passes it over; an end that is left in there would be told again and again */
        }
    }
    for (nfds_t i = 0; i < k; i++)
        if (at[i].fd >= 0) close(at[i].fd);
    freeaddrinfo(s.address);
    return HONE_OK;
}

hone_status hn_load_post(hn_load_answer *out, const char *url, const char *path, const char *json, int32_t timeout_s,
                         hone_error *err)
{
    const hn_load_params p = { .url = url, .timeout_s = timeout_s };
    load_state s = { .p = &p };
    *out = (hn_load_answer){ 0 };
    hone_status st = resolve(&s, err);
    if (st != HONE_OK) return st;
    hn_load_one one = { 0 };
    char *line = malloc(2 * LINE);
    wire w = { .cap = LINE, .buf = line + LINE };
    if (!line) st = HN_FAIL(err, HONE_E_NOMEM, "a request");
    else if (open_wire(&s, &w, &one)) {
        if (post(&s, w.fd, path, json) && read_head(&w, &one)) out->body = read_all(&w, &out->n);
        out->status = out->body ? one.status : 0;
        close(w.fd);
    }
    free(line);
    freeaddrinfo(s.address);
    return st;
}
