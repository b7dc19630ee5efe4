/* download: one file in pieces over several connections. One thread receives and writes; another follows what is there
 * from the beginning on, hashes it and keeps the journal. */
#include "hub/download.h"
#include "hub/cache.h"
#include "hub/pull.h"
#include "hub/sha1.h"
#include "hub/url.h"

#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCK = 1 << 20, ALONE = 64 << 10, MAX_REFRESH = 5 };

typedef struct flow flow;

typedef struct slot {
    flow *f;
    hn_fetch_call call;
    bool busy, direct; /* direct: asked where the endpoint had sent us before */
    unsigned turn;     /* of the flow, when it was asked */
    uint64_t at, end;  /* the next byte, the one behind the last */
    bool extra;        /* more came than was said */
    bool idle;         /* another connection has all of it now */
} slot;

struct flow {
    hn_fetch *h;
    const hn_download *w;
    hn_part part;
    slot slots[HN_DOWNLOAD_CONNS];
    unsigned turn;              /* how often an address was forgotten */
    char *direct;               /* the address that serves the bytes; NULL: ask w->url */
    char content[HN_HEAD_NAME]; /* what that address calls its content: it must not change */
    bool
        nameless; /* nothing names it, and no hash is known: two answers may be of two contents, so one has all of it */
    bool known;   /* an answer has come that fits: more may be asked at a time */
    bool stream;  /* the server knows no ranges */
    bool bad;     /* what is here is wrong: nothing of it stays */
    bool changed; /* the content is another: from zero again */
    int fails, refreshes, restarts;
    uint64_t seen;  /* part.total when fails was 0 last */
    double next;    /* when to ask again */
    hone_status st; /* what callbacks found */
    hone_error err;
    hn_fetch_head head; /* of the answer that was the reason */
    uint64_t fetched;
    /* the thread beside */
    pthread_t thread;
    bool threaded;
    atomic_bool ended, quit, done;
    bool stopped; /* asked to, while the hash was made */
    hn_sha256 sha256;
    hn_sha1 sha1;
    uint64_t hashed;
    atomic_int io; /* errno of reading back */
    unsigned char *block;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *what(const flow *f) { return f->w->names.what; }
#define WHAT(f) HN_ESC(what(f), strlen(what(f)))

/* ---- hashes and journal ------------------------------------------------------------------------------ */

static void begin_hash(flow *f)
{
    char head[40];
    hn_sha256_init(&f->sha256);
    hn_sha1_init(&f->sha1);
    snprintf(head, sizeof head, "blob %" PRIu64, f->part.size);
    hn_sha1_add(&f->sha1, head, strlen(head) + 1);
    f->hashed = 0;
    f->io = 0;
}

/* What of the beginning is there and not hashed, up to most bytes. False: nothing to do. */
static bool hash_on(flow *f, uint64_t most)
{
    uint64_t to = hn_part_prefix(&f->part);
    bool git = f->w->oid && strlen(f->w->oid) == 40, some = false;
    if (to - f->hashed > most) to = f->hashed + most;
    while (f->hashed < to && !f->io) {
        size_t n = to - f->hashed < BLOCK ? (size_t)(to - f->hashed) : BLOCK;
        f->io = hn_part_get(&f->part, f->hashed, f->block, n);
        if (f->io) return false;
        hn_sha256_add(&f->sha256, f->block, n);
        if (git) hn_sha1_add(&f->sha1, f->block, n);
        f->hashed += n;
        some = true;
    }
    return some;
}

static void *keep_up(void *arg)
{
    flow *f = arg;
    const struct timespec nap = { 0, 5 * 1000 * 1000 };
    double noted = now_s();
    uint64_t pieces = 0;
    while (!f->quit) {
        bool ended = f->ended, some = hash_on(f, 16 * BLOCK);
        if (!some && ended) break;
        uint64_t now = hn_part_prefix(&f->part) / f->part.piece;
        if (!ended && (now != pieces || now_s() - noted > 2)) {
            hn_part_note(&f->part, NULL); /* what cannot be noted is fetched again */
            pieces = now;
            noted = now_s();
        }
        if (!some) nanosleep(&nap, NULL);
    }
    f->done = true;
    return NULL;
}

/* Of tens of gigabytes the end may be far: asked to stop, it is left, and f->stopped. */
static void wait_for_hash(flow *f)
{
    const hn_fetch_rules *rules = hn_fetch_rules_of(f->h);
    const struct timespec nap = { 0, 5 * 1000 * 1000 };
    while (f->threaded && !f->done && !f->stopped) {
        f->stopped = rules->stop && rules->stop(rules->arg);
        nanosleep(&nap, NULL);
    }
    if (f->stopped) f->quit = true;
}

static void stop_thread(flow *f, bool finish)
{
    f->ended = true;
    if (finish) wait_for_hash(f);
    else f->quit = true;
    if (f->threaded) pthread_join(f->thread, NULL);
    f->threaded = false;
    if (finish && !f->stopped)
        while (hash_on(f, UINT64_MAX)) {}
}

static void start_thread(flow *f)
{
    f->ended = f->quit = f->done = false;
    begin_hash(f);
    if (f->part.size > ALONE) f->threaded = pthread_create(&f->thread, NULL, keep_up, f) == 0;
}

/* ---- what is believed of an answer ------------------------------------------------------------------------ */

static bool refuse(flow *f, hone_status st) /* f->err is filled */
{
    f->st = st;
    return false;
}

/* The endpoint's own words about the file, on whichever answer of the way they stood. */
static bool endpoint_agrees(flow *f, const hn_fetch_call *c)
{
    const hn_download *w = f->w;
    const hn_fetch_head *a = &c->head;
    if (!*a->commit)
        return refuse(f, HN_FAIL(&f->err, HONE_E_NETWORK,
                                 "%s: the answer has no X-Repo-Commit, so this is no hub that answers%s; expected one "
                                 "at HF_ENDPOINT, or a network without a page of its own in between",
                                 WHAT(f), a->html ? " but somebody's web page" : ""));
    if (strcmp(a->commit, w->commit) != 0)
        return refuse(f, HN_FAIL(&f->err, HONE_E_NETWORK, "%s: the hub answers with commit %s; expected %s", WHAT(f),
                                 HN_ESC(a->commit, strlen(a->commit)), w->commit));
    const char *etag = *a->linked_etag ? a->linked_etag : hn_url_same_origin(c->at, w->url) ? a->etag : "";
    if (*etag && w->oid && strcmp(etag, w->oid) != 0)
        return refuse(f, HN_FAIL(&f->err, HONE_E_NETWORK,
                                 "%s: the hub now says its content is %s, its list of files "
                                 "says %s; pull again",
                                 WHAT(f), HN_ESC(etag, strlen(etag)), w->oid));
    if (a->has_linked_size && w->size != UINT64_MAX && a->linked_size != w->size)
        return refuse(f, HN_FAIL(&f->err, HONE_E_NETWORK,
                                 "%s: the hub now says %" PRIu64 " bytes, its list of files "
                                 "says %" PRIu64 "; pull again",
                                 WHAT(f), a->linked_size, w->size));
    return true;
}

/* One address serves one content: what it calls it stays. Where a hash tells in the end, an answer may be silent, and
 * when it was changed is only each server's word. */
static bool same_content(flow *f, const hn_fetch_head *a)
{
    char now[HN_HEAD_NAME];
    if (f->w->oid) snprintf(now, sizeof now, "%s", a->etag);
    else hn_head_content(now, a);
    if (*f->content && (*now || !f->w->oid) && strcmp(f->content, now) != 0) {
        f->changed = true;
        return false;
    }
    if (!*f->content) memcpy(f->content, now, sizeof f->content);
    return true;
}

static bool range_fits(flow *f, slot *s, const hn_fetch_head *a)
{
    const hn_fetch_call *c = &s->call;
    if (a->has_range && a->first == c->first && a->last == c->last && a->size == f->part.size &&
        (!a->has_length || a->length == a->last - a->first + 1))
        return true;
    char range[100] = "nothing";
    if (a->has_range)
        snprintf(range, sizeof range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, a->first, a->last, a->size);
    return refuse(f, HN_FAIL(&f->err, HONE_E_NETWORK,
                             "%s: the server answers with Content-Range %s%s; expected bytes "
                             "%" PRIu64 "-%" PRIu64 "/%" PRIu64,
                             WHAT(f), range,
                             a->has_range && a->has_length && a->length != a->last - a->first + 1
                                 ? " and another Content-Length"
                                 : "",
                             c->first, c->last, f->part.size));
}

/* The whole file on this connection, from zero. */
static bool begin_stream(flow *f, slot *s, const hn_fetch_head *a)
{
    if (a->has_length && a->length != f->part.size)
        return refuse(f, HN_FAIL(&f->err, HONE_E_NETWORK, "%s: the server sends %" PRIu64 " bytes; expected %" PRIu64,
                                 WHAT(f), a->length, f->part.size));
    f->stream = true;
    s->at = 0;
    s->end = f->part.size;
    for (int i = 0; i < HN_DOWNLOAD_CONNS; i++)
        if (&f->slots[i] != s && f->slots[i].busy) f->slots[i].idle = true; /* dropped when it next says something */
    return true;
}

static bool on_head(hn_fetch_call *c)
{
    slot *s = c->arg;
    flow *f = s->f;
    const hn_fetch_head *a = &c->head;
    if (a->status != 200 && a->status != 206) return false; /* its body is for nobody */
    if (*a->encoding)
        return refuse(f, HN_FAIL(&f->err, HONE_E_NETWORK,
                                 "%s: the server packs the content (Content-Encoding %s), "
                                 "which nobody asked for; expected it as it is",
                                 WHAT(f), HN_ESC(a->encoding, strlen(a->encoding))));
    if (f->w->commit && !s->direct && !endpoint_agrees(f, c)) return false;
    bool late = s->direct && s->turn != f->turn; /* of an address that is forgotten: its name says nothing now */
    if (!late && !same_content(f, a)) return false;
    if (s->idle) return false;
    if (a->status == 200 ? !begin_stream(f, s, a) : !range_fits(f, s, a)) return false;
    if (!f->known && !hn_url_same_origin(c->at, f->w->url)) f->direct = strdup(c->at); /* NULL: it is asked again */
    f->known = true;
    return true;
}

/* What is there stays as it is: it may be hashed already, and a server that knows no ranges sends all of it again. */
static int put_new(flow *f, uint64_t at, const char *p, size_t n)
{
    int e = 0;
    while (n && !e) {
        uint64_t there = hn_part_covers(&f->part, at);
        size_t k = there < n ? (size_t)there : n;
        if (!k) {
            uint64_t left = f->part.piece - at % f->part.piece;
            k = left < n ? (size_t)left : n;
            e = hn_part_put(&f->part, at, p, k);
        }
        at += k;
        p += k;
        n -= k;
    }
    return e;
}

static bool on_body(hn_fetch_call *c, const void *p, size_t n)
{
    slot *s = c->arg;
    flow *f = s->f;
    if (s->idle) return false;
    if (s->extra || n > s->end - s->at) {
        s->extra = true;
        return false;
    }
    int e = put_new(f, s->at, p, n);
    if (e)
        return refuse(f, HN_FAIL(&f->err, HONE_E_IO,
                                 "%s: cannot write to %s: %s; make room, then the same command goes "
                                 "on",
                                 WHAT(f), HN_ESC(f->w->names.part, strlen(f->w->names.part)), strerror(e)));
    s->at += n;
    f->fetched += n;
    return true;
}

/* ---- asking -------------------------------------------------------------------------------------------------- */

static bool taken(const flow *f, uint64_t first, uint64_t end)
{
    for (int i = 0; i < HN_DOWNLOAD_CONNS; i++)
        if (f->slots[i].busy && f->slots[i].at < end && f->slots[i].end > first) return true;
    return false;
}

/* What of the file is missing and nobody has been asked for; false: nothing. */
static bool next_range(flow *f, uint64_t *first, uint64_t *end)
{
    hn_part *p = &f->part;
    for (size_t i = 0; i < p->n_piece; i++) {
        uint64_t begin = hn_part_first(p, i), len = hn_part_len(p, i);
        pthread_mutex_lock(&p->mu);
        uint64_t have = p->have[i];
        pthread_mutex_unlock(&p->mu);
        if (have == len || taken(f, begin, begin + len)) continue;
        *first = begin + have;
        *end = begin + len;
        return true;
    }
    return false;
}

static hone_status ask(flow *f, hone_error *err)
{
    int most = f->known && !f->stream && !f->nameless ? f->w->n_conn : 1, busy = 0;
    if (now_s() < f->next) return HONE_OK;
    for (int i = 0; i < HN_DOWNLOAD_CONNS; i++) busy += f->slots[i].busy;
    for (int i = 0; i < HN_DOWNLOAD_CONNS && busy < most; i++) {
        slot *s = &f->slots[i];
        uint64_t first, end;
        if (s->busy) continue;
        if (!next_range(f, &first, &end)) break;
        if (f->nameless) end = f->part.size;
        memset(&s->call, 0, sizeof s->call);
        s->call = (hn_fetch_call){
            .ranged = !f->nameless, .first = first, .last = end - 1, .on_head = on_head, .on_body = on_body, .arg = s
        };
        s->f = f;
        s->at = first;
        s->end = end;
        s->extra = s->idle = false;
        s->direct = f->direct != NULL;
        s->turn = f->turn;
        hone_status st = hn_fetch_begin(f->h, &s->call, f->direct ? f->direct : f->w->url, err);
        if (st != HONE_OK) {
            hn_fetch_drop(f->h, &s->call);
            return st;
        }
        s->busy = true;
        busy++;
    }
    return HONE_OK;
}

static void drop_all(flow *f)
{
    for (int i = 0; i < HN_DOWNLOAD_CONNS; i++) {
        if (f->slots[i].busy) hn_fetch_drop(f->h, &f->slots[i].call);
        f->slots[i].busy = false;
    }
}

/* Where the bytes are served has to be asked for anew. Another address may call the same content another name, but
 * where no hash tells, its name is all there is. */
static void forget_direct(flow *f)
{
    free(f->direct);
    f->direct = NULL;
    f->turn++;
    if (f->w->oid) f->content[0] = 0;
    f->known = false;
}

/* Nothing of it is here any more; etag: what it is known by from now on. */
static hone_status from_zero(flow *f, const char *etag, hone_error *err)
{
    stop_thread(f, false);
    hone_status st = hn_part_forget(&f->part, etag, err);
    f->seen = 0;
    if (st == HONE_OK) start_thread(f);
    return st;
}

static hone_status try_later(flow *f, const hn_fetch_call *c, const char *why, hone_error *err)
{
    static const int times[] = { 1, 2, 4, 8 };
    const hn_fetch_rules *rules = hn_fetch_rules_of(f->h);
    char line[400];
    if (now_s() < f->next) return HONE_OK; /* several connections went at once: that is one failure */
    if (f->part.total > f->seen && !f->nameless) f->fails = 0; /* bytes came since */
    f->seen = f->part.total;
    if (++f->fails >= rules->tries && f->nameless)
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: %s, %d times; its server gives neither ETag nor Last-Modified, so nothing tells that what "
                       "would follow belongs to what is here: the same command begins again",
                       WHAT(f), why, f->fails);
    if (f->fails >= rules->tries)
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: %s, %d times in a row; %" PRIu64 " of %" PRIu64 " bytes are here, and "
                       "the same command goes on from there",
                       WHAT(f), why, f->fails, f->part.total, f->part.size);
    double s = c->head.wait_s >= 0 && c->end != HN_FETCH_LOST ? c->head.wait_s + rules->wait_s
                                                              : rules->wait_s * times[f->fails <= 4 ? f->fails - 1 : 3];
    f->next = now_s() + s;
    snprintf(line, sizeof line, "%.200s: %.120s: trying again in %.3g s", what(f), why, s);
    if (rules->say) rules->say(rules->arg, line);
    return f->nameless ? from_zero(f, "", err) : HONE_OK;
}

/* Everything from the beginning, once. */
static hone_status restart(flow *f, const char *why, hone_error *err)
{
    char line[300];
    const hn_fetch_rules *rules = hn_fetch_rules_of(f->h);
    drop_all(f);
    forget_direct(f);
    f->content[0] = 0;
    f->changed = f->stream = false;
    if (f->restarts++) {
        f->bad = true;
        return HN_FAIL(err, HONE_E_NETWORK, "%s: %s, again after a second try from the beginning", WHAT(f), why);
    }
    snprintf(line, sizeof line, "%.160s: %.100s: from the beginning again", what(f), why);
    if (rules->say) rules->say(rules->arg, line);
    /* an address with another content now: what the old one was called does not name the new bytes */
    return from_zero(f, f->w->oid ? f->part.etag : "", err);
}

/* A call has ended. */
static hone_status ended(flow *f, slot *s, hone_error *err)
{
    hn_fetch_call *c = &s->call;
    char why[340];
    int status = c->head.status;
    bool partial = status == 200 || status == 206;
    if (f->st != HONE_OK) {
        *err = f->err;
        return f->st;
    }
    if (f->changed) return restart(f, "its content changed while it came", err);
    if (c->end == HN_FETCH_FAILED) return HN_FAIL(err, HONE_E_NETWORK, "%s: %s", WHAT(f), c->why);
    if (c->end == HN_FETCH_WHOLE && partial && s->at == s->end) return HONE_OK;
    if (s->idle) return HONE_OK;
    if (c->end == HN_FETCH_LOST || partial) {
        snprintf(why, sizeof why, "%s",
                 c->end == HN_FETCH_LOST ? c->why
                 : s->extra              ? "the server sent more than it had said"
                                         : "the server sent less than it had said");
        return try_later(f, c, why, err);
    }
    c->end = HN_FETCH_WHOLE; /* a status; its body was refused */
    if (hn_fetch_again(c)) {
        snprintf(why, sizeof why, "status %d", status);
        return try_later(f, c, why, err);
    }
    if (s->direct && s->turn != f->turn) return HONE_OK; /* asked with an address that is forgotten already */
    if (s->direct && (status == 400 || status == 401 || status == 403 || status == 404 || status == 410)) {
        if (f->part.total > f->seen) f->refreshes = 0;
        f->seen = f->part.total;
        forget_direct(f); /* a signed address that has run out */
        if (f->refreshes++ < MAX_REFRESH) return HONE_OK;
    }
    if (c->head.wait_s > HN_FETCH_MOST_WAIT_S && !hn_url_same_origin(c->at, f->w->url))
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: status %d, and the server asks to be left alone for %.0f s; hone waits up to %d: the same "
                       "command goes on then",
                       WHAT(f), status, c->head.wait_s, HN_FETCH_MOST_WAIT_S);
    if (status == 416) return restart(f, "the server does not have these bytes (416)", err);
    if (c->at && hn_url_same_origin(c->at, f->w->url)) f->head = c->head; /* who was asked says it, not its store */
    return HN_FAIL(err, HONE_E_NETWORK, "%s: status %d from %s; expected 200 or 206", WHAT(f), status,
                   HN_ESC(c->at ? c->at : "", c->at ? strcspn(c->at, "?") : 0));
}

static hone_status transfer(flow *f, hone_error *err)
{
    hone_status st = HONE_OK;
    const hn_fetch_rules *rules = hn_fetch_rules_of(f->h);
    double shown = 0;
    while (st == HONE_OK && f->part.total < f->part.size) {
        if ((st = ask(f, err)) != HONE_OK) break;
        bool any = false;
        for (int i = 0; i < HN_DOWNLOAD_CONNS; i++) any |= f->slots[i].busy;
        if (any) {
            st = hn_fetch_turn(f->h, 100, err);
        } else {
            const struct timespec nap = { 0, 20 * 1000 * 1000 };
            nanosleep(&nap, NULL);
            if (rules->stop && rules->stop(rules->arg)) st = HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        }
        for (int i = 0; i < HN_DOWNLOAD_CONNS && st == HONE_OK; i++) {
            slot *s = &f->slots[i];
            if (!s->busy || s->call.end == HN_FETCH_RUNNING) continue;
            st = ended(f, s, err);
            if (!s->busy) continue; /* a restart */
            hn_fetch_drop(f->h, &s->call);
            s->busy = false;
        }
        if (f->w->progress && now_s() - shown > 0.1) {
            shown = now_s();
            f->w->progress(f->w->arg, f->part.total, f->part.size);
        }
    }
    drop_all(f);
    return st;
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

/* HONE_OK and *right false: it is not what it should be. */
static hone_status check(flow *f, hn_downloaded *got, bool *right, hone_error *err)
{
    unsigned char sum[32], git[20];
    char seen[65];
    const char *oid = f->w->oid;
    if (f->io)
        return HN_FAIL(err, HONE_E_IO, "%s: cannot read it back from %s: %s", WHAT(f),
                       HN_ESC(f->w->names.part, strlen(f->w->names.part)), strerror(f->io));
    hn_sha256_end(&f->sha256, sum);
    hn_sha1_end(&f->sha1, git);
    hn_hex(got->sha256, sum, 32);
    hn_hex(seen, strlen(oid ? oid : "") == 40 ? git : sum, strlen(oid ? oid : "") == 40 ? 20 : 32);
    *right = f->hashed == f->part.size && (!oid || strcmp(seen, oid) == 0);
    if (!*right)
        HN_FAIL(err, HONE_E_NETWORK, "%s: its hash is %s; expected %s: what came was not what the server promised",
                WHAT(f), seen, oid ? oid : "all of it");
    return HONE_OK;
}

static hone_status fetch(flow *f, hn_downloaded *got, hone_error *err)
{
    hone_status st;
    bool right = false;
    start_thread(f);
    for (;;) {
        st = transfer(f, err);
        stop_thread(f, st == HONE_OK);
        if (f->stopped) st = HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        if (st != HONE_OK || (st = check(f, got, &right, err)) != HONE_OK || right) break;
        if (f->restarts) {
            f->bad = true;
            return HONE_E_NETWORK; /* as check said it */
        }
        if ((st = restart(f, "its hash is wrong", err)) != HONE_OK) return st;
    }
    if (st == HONE_OK) st = hn_part_publish(&f->part, err);
    else hn_part_note(&f->part, NULL);
    return st;
}

/* Of an address that nobody knows more of: the server's own size and etag, by one request for its first byte. */
typedef struct probe {
    hn_fetch_head head;
    bool seen;
} probe;
static bool probe_head(hn_fetch_call *c)
{
    probe *p = c->arg;
    p->head = c->head;
    p->seen = true;
    return false;
}
static bool probe_body(hn_fetch_call *c, const void *p, size_t n) { return false; }

static hone_status ask_size(flow *f, uint64_t *size, char content[HN_HEAD_NAME], hone_error *err)
{
    hone_status st = HONE_OK;
    for (int n = 0; st == HONE_OK; n++) {
        probe p = { .seen = false };
        hn_fetch_call c = { .ranged = true, .on_head = probe_head, .on_body = probe_body, .arg = &p };
        st = hn_fetch_begin(f->h, &c, f->w->url, err);
        while (st == HONE_OK && c.end == HN_FETCH_RUNNING) st = hn_fetch_turn(f->h, 100, err);
        char why[280];
        if (p.seen && st == HONE_OK) c.end = HN_FETCH_WHOLE;
        snprintf(why, sizeof why, "%s", p.seen ? "the server is busy" : c.why);
        bool again = st == HONE_OK && hn_fetch_again(&c) && n + 1 < hn_fetch_rules_of(f->h)->tries, failed = !p.seen;
        double wait_s = p.head.wait_s;
        hn_fetch_drop(f->h, &c);
        if (st != HONE_OK) return st;
        if (again) {
            st = hn_fetch_pause(f->h, n, p.seen ? wait_s : -1, why, err);
            continue;
        }
        if (failed) return HN_FAIL(err, HONE_E_NETWORK, "%s: %s", WHAT(f), why);
        const hn_fetch_head *a = &p.head;
        f->head = *a;
        if (a->status == 416)
            return HN_FAIL(err, HONE_E_NETWORK, "%s: the server has not one byte of it (status 416); expected a file",
                           WHAT(f));
        if (a->status != 200 && a->status != 206)
            return HN_FAIL(err, HONE_E_NETWORK, "%s: status %d; expected 200 or 206", WHAT(f), a->status);
        memset(&f->head, 0, sizeof f->head);
        hn_head_content(content, a);
        *size = a->status == 206 && a->has_range ? a->size : a->status == 200 && a->has_length ? a->length : UINT64_MAX;
        if (*size == UINT64_MAX)
            return HN_FAIL(err, HONE_E_NETWORK,
                           "%s: the server does not say how long it is; expected a Content-Length "
                           "or Content-Range",
                           WHAT(f));
        if (a->html)
            return HN_FAIL(err, HONE_E_NETWORK, "%s: the server answers with a web page; expected a file", WHAT(f));
        return HONE_OK;
    }
    return st;
}

/* Of an address nobody knew how large it is before. */
static hone_status room_for(const char *part, uint64_t size, hone_error *err)
{
    char folder[HN_CACHE_PATH];
    size_t n = strlen(part);
    while (n && part[n - 1] != '/') n--;
    if (n >= sizeof folder) return HN_FAIL(err, HONE_E_ARG, "the path of the file is too long");
    snprintf(folder, sizeof folder, "%.*s", n ? (int)n : 1, n ? part : ".");
    return hn_pull_room(folder, hn_part_missing(part, size), err);
}

hone_status hn_download_size(hn_fetch *h, const hn_download *want, uint64_t *size, hone_error *err)
{
    char content[HN_HEAD_NAME];
    flow *f = calloc(1, sizeof *f);
    if (!f) return HN_FAIL(err, HONE_E_NOMEM, "a download");
    f->h = h;
    f->w = want;
    hone_status st = ask_size(f, size, content, err);
    free(f);
    return st;
}

hone_status hn_download_file(hn_fetch *h, const hn_download *want, hn_downloaded *got, hn_fetch_head *status,
                             hone_error *err)
{
    const hn_fetch_rules *rules = hn_fetch_rules_of(h);
    flow *f = calloc(1, sizeof *f);
    unsigned char *block = malloc(BLOCK);
    memset(got, 0, sizeof *got);
    if (status) memset(status, 0, sizeof *status);
    if (!f || !block) {
        free(f);
        free(block);
        return HN_FAIL(err, HONE_E_NOMEM, "a download");
    }
    f->h = h;
    f->w = want;
    f->block = block;
    char content[HN_HEAD_NAME] = "";
    uint64_t size = want->size;
    hone_status st = hn_part_lock(&f->part, &want->names, &got->cached, rules->stop, want->waiting, want->arg, err);
    if (st == HONE_OK && !got->cached) {
        if (want->oid) snprintf(content, sizeof content, "%s", want->oid);
        else if ((st = ask_size(f, &size, content, err)) == HONE_OK) st = room_for(want->names.part, size, err);
        if (st == HONE_OK) st = hn_part_open(&f->part, size, content, want->piece, err);
        if (st == HONE_OK) {
            snprintf(f->content, sizeof f->content, "%s", want->oid ? "" : content);
            f->nameless = f->bad = !*content; /* what is left of it is of no use to the next time */
            f->seen = f->part.total;
            st = fetch(f, got, err);
        }
    }
    got->size = size;
    got->fetched = f->fetched;
    if (status) *status = f->head;
    hn_part_close(&f->part, st != HONE_OK && (f->bad || f->part.total == 0));
    forget_direct(f);
    free(f->block);
    free(f);
    return st;
}
