/* The server of http: its listening sockets, limits, event loop, and what other threads and signals tell it. Refuses to
 * know what a connection carries. */
#include "serve/http_priv.h"

#include "base/os.h"

#include <errno.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OVER = 64, SPARE_FILES = 64, STOP_MS = 1000, TICK_MS = 250, RELISTEN_MS = 100, MAX_WAITING = 4096 };

int64_t hn_http_ms(void)
{
    struct timespec t = { 0 };
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- addresses ----------------------------------------------------------------------------- */

/* 16 bytes to count by: IPv4 as ::ffff:a.b.c.d, of IPv6 the network that one client usually has, /64. */
static bool address_of(unsigned char out[16], const struct sockaddr *sa)
{
    static const unsigned char v4[12] = { [10] = 0xFF, [11] = 0xFF };
    memset(out, 0, 16);
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;
        memcpy(out, v4, 12);
        memcpy(out + 12, &in->sin_addr, 4);
        return out[12] == 127;
    }
    if (sa->sa_family != AF_INET6) return true; /* a UNIX socket */
    const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)sa;
    memcpy(out, &in->sin6_addr, 16);
    if (memcmp(out, v4, 12) == 0) return out[12] == 127;
    bool loopback = IN6_IS_ADDR_LOOPBACK(&in->sin6_addr);
    memset(out + 8, 0, 8);
    return loopback;
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int n, void *arg)
{
    hn_http *h = arg;
    unsigned char address[16];
    bool local = address_of(address, sa);
    size_t same = 0;
    for (const hn_conn *c = h->conns; c && !local; c = c->next)
        same += !c->over && memcmp(c->address, address, sizeof address) == 0;
    bool over = h->n_conn >= (size_t)h->p.max_connections || same >= (size_t)h->p.max_per_address;
    if (over && h->n_over >= MAX_OVER) close(fd);
    else hn_conn_open(h, fd, address, local, over);
}

static const struct timeval later = { 0, RELISTEN_MS * 1000 };

/* Mostly no file descriptors: trying again at once would only burn time. */
static void on_accept_error(struct evconnlistener *l, void *arg)
{
    hn_http *h = arg;
    hn_log("http: accept: %s", strerror(errno));
    if (event_add(h->relisten, &later) == 0)
        for (size_t i = 0; i < h->n_listener; i++) evconnlistener_disable(h->listener[i]);
}

static void on_relisten(evutil_socket_t fd, short what, void *arg)
{
    hn_http *h = arg;
    for (size_t i = 0; i < h->n_listener; i++)
        if (evconnlistener_enable(h->listener[i]) != 0) event_add(h->relisten, &later);
}

/* ---- listening ----------------------------------------------------------------------------- */

/* Takes a bound socket. */
static hone_status listen_on(hn_http *h, int fd, hone_error *err)
{
    struct evconnlistener *l = NULL;
    if (evutil_make_socket_nonblocking(fd) == 0 && evutil_make_socket_closeonexec(fd) == 0 &&
        listen(fd, SOMAXCONN) == 0)
        l = evconnlistener_new(h->base, on_accept, h, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED,
                               0, fd);
    else HN_FAIL(err, HONE_E_IO, "%s: cannot listen: %s", h->address, strerror(errno));
    if (!l) {
        if (err && err->code == HONE_OK) HN_FAIL(err, HONE_E_NOMEM, "a listening socket");
        close(fd);
        return err ? err->code : HONE_E_IO;
    }
    evconnlistener_set_error_cb(l, on_accept_error);
    h->listener[h->n_listener++] = l;
    return evconnlistener_enable(l) == 0 ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "a listening socket");
}

/* A socket at one address, bound. -1: *why. A later one of a host takes the port of the first. */
static int bind_to(const struct addrinfo *a, int port, bool alone, int *why)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = { 0 };
    int yes = 1, only = !alone, fd = socket(a->ai_family, SOCK_STREAM, 0);
    memcpy(&at, a->ai_addr, a->ai_addrlen < sizeof at ? a->ai_addrlen : sizeof at);
    if (a->ai_family == AF_INET) at.v4.sin_port = htons((uint16_t)port);
    else at.v6.sin6_port = htons((uint16_t)port);
    *why = errno;
    if (fd < 0) return -1;
    if (a->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 && bind(fd, &at.any, a->ai_addrlen) == 0)
        return fd;
    *why = errno;
    close(fd);
    return -1;
}

static int port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = { 0 };
    socklen_t n = sizeof at;
    if (getsockname(fd, &at.any, &n) != 0) return 0;
    return ntohs(at.any.sa_family == AF_INET ? at.v4.sin_port : at.v6.sin6_port);
}

/* Every address of the host, at one port. */
static hone_status listen_tcp(hn_http *h, hone_error *err)
{
    const struct addrinfo want = { .ai_flags = AI_PASSIVE, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *all = NULL;
    const char *host = h->p.host;
    int port = h->p.port, why = 0;
    hone_status st = HONE_OK;
    int rc = getaddrinfo(host, NULL, &want, &all);
    if (rc != 0)
        return HN_FAIL(err, rc == EAI_MEMORY ? HONE_E_NOMEM : HONE_E_IO,
                       "--host %s: %s; expected an address of this machine", HN_ESC(host, strlen(host)),
                       gai_strerror(rc));
    h->loopback = true;
    for (const struct addrinfo *a = all; a; a = a->ai_next) {
        unsigned char address[16];
        h->loopback = h->loopback && address_of(address, a->ai_addr);
    }
    if (!h->loopback && h->keys.n == 0 && !h->p.insecure_no_key)
        st = HN_FAIL(
            err, HONE_E_ARG,
            "--host %s: other machines could ask without a key; expected --api-key-file FILE, or --insecure-no-key",
            HN_ESC(host, strlen(host)));
    for (const struct addrinfo *a = all; a && st == HONE_OK && h->n_listener < HN_HTTP_MAX_LISTENERS; a = a->ai_next) {
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
        int fd = bind_to(a, port, !all->ai_next, &why);
        if (fd < 0) continue; /* as ::1 where there is no IPv6 */
        port = port_of(fd);
        st = listen_on(h, fd, err);
    }
    freeaddrinfo(all);
    if (st == HONE_OK && h->n_listener == 0)
        st = HN_FAIL(err, HONE_E_IO, "cannot listen at %s port %d: %s; expected a free port (--port)",
                     HN_ESC(host, strlen(host)), h->p.port, strerror(why));
    bool v6 = strchr(host, ':') != NULL;
    snprintf(h->address, sizeof h->address, "http://%s%.*s%s:%d", v6 ? "[" : "", 100, host, v6 ? "]" : "", port);
    return st;
}

/* Does somebody answer there? */
static bool answers(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool yes = fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) == 0;
    if (fd >= 0) close(fd);
    return yes;
}

static hone_status listen_unix(hn_http *h, hone_error *err)
{
    const char *path = h->p.unix_path;
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct stat sb;
    size_t n = strlen(path);
    h->is_unix = h->loopback = true;
    snprintf(h->address, sizeof h->address, "unix:%s", path);
    if (n == 0 || n >= sizeof at.sun_path)
        return HN_FAIL(err, HONE_E_ARG, "--uds %s: a name of %zu bytes; expected 1 to %zu", HN_ESC(path, n), n,
                       sizeof at.sun_path - 1);
    memcpy(at.sun_path, path, n + 1);
    if (lstat(path, &sb) == 0) {
        if (!S_ISSOCK(sb.st_mode)) return HN_FAIL(err, HONE_E_ARG, "--uds %s: is there and is no socket", path);
        if (answers(&at)) return HN_FAIL(err, HONE_E_IO, "--uds %s: another server answers there", path);
        unlink(path); /* left by one that was killed */
    }
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    /* nobody can connect before listen, so that the mode holds from the beginning */
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) != 0 || chmod(path, 0600) != 0 ||
        stat(path, &sb) != 0) {
        hone_status st = HN_FAIL(err, HONE_E_IO, "--uds %s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return st;
    }
    h->unix_dev = (uint64_t)sb.st_dev;
    h->unix_ino = (uint64_t)sb.st_ino;
    return listen_on(h, fd, err);
}

/* Only what is still ours. */
static void unlink_unix(const hn_http *h)
{
    struct stat sb;
    if (h->is_unix && h->n_listener && lstat(h->p.unix_path, &sb) == 0 && (uint64_t)sb.st_dev == h->unix_dev &&
        (uint64_t)sb.st_ino == h->unix_ino)
        unlink(h->p.unix_path);
}

/* Those that wait to be accepted are accepted: closing would throw them out without a word. */
static void stop_listening(hn_http *h)
{
    unlink_unix(h);
    for (size_t i = 0; i < h->n_listener; i++) {
        union {
            struct sockaddr any;
            struct sockaddr_in6 v6;
            struct sockaddr_un un;
        } at;
        for (int k = 0; k < MAX_WAITING; k++) {
            socklen_t n = sizeof at;
            memset(&at, 0, sizeof at);
            int fd = accept(evconnlistener_get_fd(h->listener[i]), &at.any, &n);
            if (fd < 0) break;
            evutil_make_socket_closeonexec(fd);
            if (evutil_make_socket_nonblocking(fd) == 0) on_accept(h->listener[i], fd, &at.any, (int)n, h);
            else close(fd);
        }
        evconnlistener_free(h->listener[i]);
    }
    h->n_listener = 0;
}

/* ---- what other threads and signals say ---------------------------------------------------- */

static void wake(hn_http *h)
{
    ssize_t n = write(h->wake_fd[1], "", 1);
    (void)n; /* full: it is awake */
}

bool hn_http_post(hn_http *h, void (*fn)(void *), void *arg)
{
    hn_http_task *t = malloc(sizeof *t);
    if (!t) return false;
    *t = (hn_http_task){ NULL, fn, arg };
    pthread_mutex_lock(&h->mu);
    bool first = h->tasks == NULL;
    *h->last_task = t;
    h->last_task = &t->next;
    pthread_mutex_unlock(&h->mu);
    if (first) wake(h);
    return true;
}

/* What was posted until now, in order, without the lock. */
static void run_tasks(hn_http *h)
{
    pthread_mutex_lock(&h->mu);
    hn_http_task *t = h->tasks;
    h->tasks = NULL;
    h->last_task = &h->tasks;
    pthread_mutex_unlock(&h->mu);
    while (t) {
        hn_http_task *next = t->next;
        t->fn(t->arg);
        free(t);
        t = next;
    }
}

void hn_http_stop(hn_http *h)
{
    int e = errno;
    atomic_store(&h->stop, true);
    wake(h);
    errno = e;
}

static void give_up(hn_conn *c)
{
    hn_exchange *x = c->x;
    if (x && x->handed) {
        c->x = NULL;
        hn_exchange_lose(x);
    } else if (x) {
        hn_conn_lose(c);
        return;
    }
    c->unread = false;
    hn_conn_finish(c);
}

static void begin_stop(hn_http *h)
{
    h->stopping = true;
    h->stop_limit = hn_http_ms() + STOP_MS;
    hn_http_drain(h);
    hn_conn_each(h, give_up);
    if (!h->conns || !hn_http_ticks(h)) event_base_loopbreak(h->base);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    hn_http *h = arg;
    char some[64];
    while (read(fd, some, sizeof some) > 0) {}
    run_tasks(h);
    if (atomic_load(&h->stop) && !h->stopping) begin_stop(h);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    hn_http *h = arg;
    hn_conn_each(h, hn_conn_tick);
    if (!h->conns) event_del(h->tick);
    if (h->stopping && (!h->conns || hn_http_ms() > h->stop_limit)) event_base_loopbreak(h->base);
}

bool hn_http_ticks(hn_http *h)
{
    int64_t ms = TICK_MS;
    const int64_t deadline[] = { h->p.header_ms, h->p.body_ms, h->p.idle_ms, h->p.write_ms };
    for (size_t i = 0; i < sizeof deadline / sizeof *deadline; i++)
        if (deadline[i] / 4 < ms) ms = deadline[i] / 4;
    if (ms < 5) ms = 5;
    return event_pending(h->tick, EV_TIMEOUT, NULL) ||
           event_add(h->tick, &(struct timeval){ 0, (suseconds_t)(ms * 1000) }) == 0;
}

static void on_hook(evutil_socket_t fd, short what, void *arg)
{
    hn_http_hook *k = arg;
    if (k->tick) k->tick(k->arg);
    else k->signal(k->arg, (int)fd);
}

/* Takes *k's values; fd: the signal, or -1. */
static bool add_hook(hn_http *h, hn_http_hook want, int fd, short what, const struct timeval *every)
{
    hn_http_hook *k = malloc(sizeof *k);
    if (!k) return false;
    *k = want;
    k->ev = event_new(h->base, fd, (short)(what | EV_PERSIST), on_hook, k);
    if (!k->ev || event_add(k->ev, every) != 0) {
        if (k->ev) event_free(k->ev);
        free(k);
        return false;
    }
    k->next = h->hooks;
    h->hooks = k;
    return true;
}

bool hn_http_every(hn_http *h, int ms, void (*fn)(void *), void *arg)
{
    struct timeval t = { ms / 1000, (suseconds_t)(ms % 1000) * 1000 };
    return add_hook(h, (hn_http_hook){ .h = h, .tick = fn, .arg = arg }, -1, 0, &t);
}

bool hn_http_on_signal(hn_http *h, int sig, void (*fn)(void *, int), void *arg)
{
    return add_hook(h, (hn_http_hook){ .h = h, .signal = fn, .arg = arg }, sig, EV_SIGNAL, NULL);
}

/* ---- beginning and end --------------------------------------------------------------------- */

static hone_status raise_files(int connections, hone_error *err)
{
    struct rlimit r;
    rlim_t need = (rlim_t)connections + SPARE_FILES;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0) return HN_FAIL(err, HONE_E_IO, "limit of open files: %s", strerror(errno));
    if (r.rlim_cur == RLIM_INFINITY || r.rlim_cur >= need) return HONE_OK;
    rlim_t seen = r.rlim_max;
    r.rlim_cur = need;
    if (r.rlim_max != RLIM_INFINITY && r.rlim_max < need)
        return HN_FAIL(err, HONE_E_IO, "%d connections need %llu open files; the system allows %llu (ulimit -Hn)",
                       connections, (unsigned long long)need, (unsigned long long)seen);
    if (setrlimit(RLIMIT_NOFILE, &r) != 0)
        return HN_FAIL(err, HONE_E_IO, "limit of open files to %llu: %s", (unsigned long long)need, strerror(errno));
    return HONE_OK;
}

static bool copy_text(hn_arena *a, const char **text)
{
    return !*text || (*text = hn_arena_strndup(a, *text, strlen(*text))) != NULL;
}

static bool copy_list(hn_arena *a, const char *const **list, size_t n)
{
    const char **copy = hn_arena_alloc(a, (n + 1) * sizeof *copy);
    if (!copy) return false;
    for (size_t i = 0; i < n; i++) {
        copy[i] = (*list)[i];
        if (!copy_text(a, &copy[i])) return false;
    }
    *list = copy;
    return true;
}

static hone_status take_params(hn_http *h, const hn_http_params *p, hone_error *err)
{
    hn_http_params *o = &h->p;
    *o = *p;
    if (!o->host) o->host = "127.0.0.1";
    if (!o->max_body) o->max_body = 16 << 20;
    if (!o->max_connections) o->max_connections = 1024;
    if (!o->max_per_address) o->max_per_address = 128;
    if (!o->header_ms) o->header_ms = 10000;
    if (!o->body_ms) o->body_ms = 30000;
    if (!o->idle_ms) o->idle_ms = 60000;
    if (!o->write_ms) o->write_ms = 30000;
    if (o->port < 0 || o->port > 65535) return HN_FAIL(err, HONE_E_ARG, "port %d; expected 0 to 65535", o->port);
    if (o->max_connections < 1 || o->max_connections > 1 << 20 || o->max_per_address < 1 || o->max_body > UINT32_MAX)
        return HN_FAIL(err, HONE_E_ARG,
                       "limits of connections or bodies out of range; expected 1 to %d connections, 1 or more "
                       "of an address, bodies up to 4 GiB",
                       1 << 20);
    for (size_t i = 0; i < o->n_cors_origin; i++) {
        if (!hn_http_origin_ok(o->cors_origin[i]))
            return HN_FAIL(err, HONE_E_ARG,
                           "--cors-origin %s; expected https://HOST, https://HOST:PORT or an app's, as app://NAME",
                           HN_ESC(o->cors_origin[i], strlen(o->cors_origin[i])));
        if (strcmp(o->cors_origin[i], "*") == 0 && !o->api_key && !o->api_key_file && !o->insecure_no_key)
            return HN_FAIL(err, HONE_E_ARG,
                           "--cors-origin '*': every page could ask without a key; expected "
                           "--api-key-file FILE, or --insecure-no-key");
    }
    h->own = hn_arena_new();
    if (!h->own || !copy_text(h->own, &o->host) || !copy_text(h->own, &o->unix_path) ||
        !copy_text(h->own, &o->api_key) || !copy_text(h->own, &o->api_key_file) ||
        !copy_list(h->own, &o->allow_host, o->n_allow_host) || !copy_list(h->own, &o->cors_origin, o->n_cors_origin))
        return HN_FAIL(err, HONE_E_NOMEM, "settings of the server");
    return hn_http_keys_read(&h->keys, o->api_key, o->api_key_file, err);
}

static void quiet_log(int severity, const char *msg) { hn_log("libevent: %s", msg); }

static hone_status make_loop(hn_http *h, hone_error *err)
{
    struct sigaction sa;
    event_set_log_callback(quiet_log); /* else it prints */
    if (sigaction(SIGPIPE, NULL, &sa) == 0 && sa.sa_handler == SIG_DFL) {
        sa.sa_handler = SIG_IGN;
        sigaction(SIGPIPE, &sa, NULL);
    }
    if (hn_os_pipe(h->wake_fd, true) != 0) {
        h->wake_fd[0] = h->wake_fd[1] = -1;
        return HN_FAIL(err, HONE_E_IO, "a pipe: %s", strerror(errno));
    }
    if ((h->base = event_base_new())) {
        h->wake = event_new(h->base, h->wake_fd[0], EV_READ | EV_PERSIST, on_wake, h);
        h->tick = event_new(h->base, -1, EV_PERSIST, on_tick, h);
        h->relisten = event_new(h->base, -1, 0, on_relisten, h);
    }
    if (!h->wake || !h->tick || !h->relisten || event_add(h->wake, NULL) != 0)
        return HN_FAIL(err, HONE_E_NOMEM, "the event loop");
    return HONE_OK;
}

hone_status hn_http_open(hn_http **out, const hn_http_params *p, hone_error *err)
{
    *out = NULL;
    hone_error own = { 0 };
    if (!err) err = &own;
    *err = (hone_error){ 0 };
    hn_http *h = calloc(1, sizeof *h);
    if (!h) return HN_FAIL(err, HONE_E_NOMEM, "the HTTP server");
    h->wake_fd[0] = h->wake_fd[1] = -1;
    h->last_task = &h->tasks;
    pthread_mutex_init(&h->mu, NULL);
    hone_status st = take_params(h, p, err);
    if (st == HONE_OK) st = raise_files(h->p.max_connections, err);
    if (st == HONE_OK && !hn_os_random(h->secret, sizeof h->secret))
        st = HN_FAIL(err, HONE_E_IO, "the system has no random numbers yet");
    if (st == HONE_OK) st = make_loop(h, err);
    if (st == HONE_OK) st = h->p.unix_path ? listen_unix(h, err) : listen_tcp(h, err);
    if (st == HONE_OK) *out = h;
    else hn_http_free(h);
    return st;
}

const char *hn_http_address(const hn_http *h) { return h->address; }
bool hn_http_draining(const hn_http *h) { return h->draining; }
size_t hn_http_connections(const hn_http *h) { return h->n_conn + h->n_over; }

bool hn_http_is_local(const hn_http *h) { return h->loopback; }

hone_status hn_http_run(hn_http *h, hone_error *err)
{
    int rc = event_base_loop(h->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return rc < 0 ? HN_FAIL(err, HONE_E_IO, "waiting for events: %s", strerror(errno)) : HONE_OK;
}

void hn_http_drain(hn_http *h)
{
    h->draining = true;
    stop_listening(h);
    hn_conn_each(h, hn_conn_drain);
}

bool hn_http_reload_keys(hn_http *h, hone_error *err)
{
    hn_http_keys fresh;
    if (hn_http_keys_read(&fresh, h->p.api_key, h->p.api_key_file, err) != HONE_OK) return false;
    hn_http_keys_free(&h->keys);
    h->keys = fresh;
    return true;
}

void hn_http_free(hn_http *h)
{
    if (!h) return;
    if (h->base) {
        run_tasks(h);
        hn_conn_each(h, hn_conn_lose);
        run_tasks(h);
    }
    while (h->exchanges) hn_exchange_free(h->exchanges);
    unlink_unix(h);
    for (size_t i = 0; i < h->n_listener; i++) evconnlistener_free(h->listener[i]);
    for (hn_http_hook *k = h->hooks, *next; k; k = next) {
        next = k->next;
        event_free(k->ev);
        free(k);
    }
    struct event *ev[] = { h->wake, h->tick, h->relisten };
    for (size_t i = 0; i < sizeof ev / sizeof *ev; i++)
        if (ev[i]) event_free(ev[i]);
    if (h->base) event_base_free(h->base);
    for (int i = 0; i < 2; i++)
        if (h->wake_fd[i] >= 0) close(h->wake_fd[i]);
    hn_http_keys_free(&h->keys);
    hn_arena_free(h->own);
    pthread_mutex_destroy(&h->mu);
    free(h);
}
