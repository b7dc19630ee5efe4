/* The HTTP server over real sockets: who may ask, how many may, where it listens and how it ends; what other threads
 * and signals tell it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http_site.h"
#include "slowed.h"

#include "serve/http_keys.h"

#include <ifaddrs.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- who may ask ------------------------------------------------------------------------------ */

static int status_of(const char *at, const char *fmt, const char *value)
{
    char text[1024];
    snprintf(text, sizeof text, fmt, value);
    return ask_once(at, text)->status;
}

static bool reloaded;
static _Atomic int n_reloads;

static void reload_keys(void *arg)
{
    hone_error err = { 0 };
    reloaded = hn_http_reload_keys(now.h, &err);
    assert(reloaded || strstr(err.message, "0600"));
    n_reloads++;
}

static void reload(void)
{
    int before = n_reloads;
    assert_true(hn_http_post(now.h, reload_keys, NULL));
    await(&n_reloads, before + 1);
}

static void test_keys(void **state)
{
    char file[] = "/tmp/hone-http-keys-XXXXXX";
    int fd = mkstemp(file);
    hone_error err;
    put(fd, "# keys\nfirst-key\n\nsecond-key\n");
    const char *at = start((hn_http_params){ .api_key = "given", .api_key_file = file });
    static const struct {
        const char *header;
        int status;
    } rows[] = {
        { "", 401 },
        { "Authorization: Bearer given\r\n", 200 },
        { "Authorization: bearer first-key\r\n", 200 },
        { "Authorization: Bearer   second-key \r\n", 200 },
        { "X-Api-Key: second-key\r\n", 200 },
        { "Authorization: given\r\n", 401 }, /* without Bearer */
        { "Authorization: Basic given\r\n", 401 },
        { "Authorization: Bearer\r\n", 401 },
        { "Authorization: Bearer Given\r\n", 401 },
        { "Authorization: Bearer give\r\n", 401 },
        { "Authorization: Bearer given2\r\n", 401 },
        { "Authorization: Bearer given first-key\r\n", 401 },
        { "X-Api-Key: # keys\r\n", 401 },
        { "X-Api-Key:\r\n", 401 },
        { "Authorization: Bearer wrong\r\nX-Api-Key: given\r\n", 200 },
        { "Authorization: Bearer given\r\nAuthorization: Bearer wrong\r\n", 400 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int got = status_of(at, "GET /who HTTP/1.1\r\n" H "%s\r\n", rows[i].header);
        if (got != rows[i].status) fail_msg("%s is %d, want %d", rows[i].header, got, rows[i].status);
    }
    const answer *a = ask_once(at, "GET /who HTTP/1.1\r\n" H "\r\n");
    assert_string_equal(header(a, "www-authenticate"), "Bearer");
    assert_non_null(strstr(a->body, "authentication_error"));
    /* what is not there is not told without a key; what is public is open */
    assert_int_equal(status_of(at, "GET /nowhere%s HTTP/1.1\r\n" H "\r\n", ""), 401);
    assert_int_equal(status_of(at, "GET /health%s HTTP/1.1\r\n" H "\r\n", ""), 200);
    assert_int_equal(status_of(at, "OPTIONS /who HTTP/1.1\r\n" H "%s\r\n", ""), 204);
    /* another key, another client */
    char one[32], two[32];
    sscanf(ask_once(at, "GET /who HTTP/1.1\r\n" H "X-Api-Key: given\r\n\r\n")->body, "%*s %*s %31s", one);
    sscanf(ask_once(at, "GET /who HTTP/1.1\r\n" H "X-Api-Key: first-key\r\n\r\n")->body, "%*s %*s %31s", two);
    assert_string_not_equal(one, two);
    stop();
    static const char key[] = "GET /who HTTP/1.1\r\n" H "X-Api-Key: %s\r\n\r\n";
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_true(pwrite(fd, "third-key\n", 10, 0) == 10);
    /* read again by a running server: what is taken out is out; a file that cannot be used changes nothing */
    at = start((hn_http_params){ .api_key_file = file });
    assert_true(pwrite(fd, "fourth-key\n", 11, 0) == 11);
    reload();
    assert_true(reloaded);
    assert_int_equal(status_of(at, key, "fourth-key"), 200);
    assert_int_equal(status_of(at, key, "third-key"), 401);
    assert_int_equal(fchmod(fd, 0640), 0);
    reload();
    assert_false(reloaded);
    assert_int_equal(status_of(at, key, "fourth-key"), 200);
    assert_int_equal(status_of(at, key, "third-key"), 401);
    stop();
    hn_http *h;
    hn_http_params p = { .api_key_file = file, .handler = handle };
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG);
    assert_null(h);
    assert_int_equal(fchmod(fd, 0600), 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG); /* no key in it: that is not "no key needed" */
    assert_true(pwrite(fd, "two words\n", 10, 0) == 10);
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_IO);
    close(fd);
}

static uint64_t client_of(const char *at, const char *key)
{
    char text[200];
    unsigned long long n = 0;
    snprintf(text, sizeof text, "GET /who HTTP/1.1\r\n" H "X-Api-Key: %s\r\n\r\n", key);
    assert_int_equal(sscanf(ask_once(at, text)->body, "%*s %*s %llx", &n), 1);
    return n;
}

static void write_keys(int fd, const char *keys)
{
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_true(pwrite(fd, keys, strlen(keys), 0) == (ssize_t)strlen(keys));
}

/* ---- what the comparison of keys takes ---------------------------------------------------------------- */

enum { NO_STEPS = -1, MOST_STEPS = 2000000 };

/* In the child: traced, looks for text between two stops. */
static void look_traced(const hn_http_keys *k, const char *text)
{
    uint64_t who;
    bool found = hn_http_keys_has(k, text, strlen(text), &who); /* what is bound late is bound */
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(2);
    kill(getpid(), SIGSTOP);
    found &= hn_http_keys_has(k, text, strlen(text), &who);
    kill(getpid(), SIGSTOP);
    _exit(found);
}

/* Instructions that looking for text takes, counted one by one; NO_STEPS: this machine has no way to. */
static long steps_of(const hn_http_keys *k, const char *text, bool has)
{
    int status = 0;
    long n = 0;
    pid_t child = fork();
    if (child == 0) look_traced(k, text);
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    if (!WIFSTOPPED(status)) return NO_STEPS;
    for (; n < MOST_STEPS; n++) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0) break;
        assert_true(waitpid(child, &status, 0) == child);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) break;
    }
    bool ended = WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
    if (!ended || ptrace(PTRACE_CONT, child, NULL, NULL) != 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return NO_STEPS;
    }
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), has);
    return n;
}

/* A key that is none, the first one, the last one, or one but for its last byte: the same instructions, so that no
 * clock tells which. */
static void test_key_work(void **state)
{
    static const struct {
        const char *text;
        bool has;
    } rows[] = { { "no-key-1", false }, { "key-aaa1", true },  { "key-bbb1", true },
                 { "key-ccc1", true },  { "key-ccc2", false }, { "key-aaa2", false } };
    char file[] = "/tmp/hone-http-keys-XXXXXX";
    hone_error err;
    hn_http_keys k;
    if (SLOWED) skip(); /* what a sanitizer does between the instructions depends on what it has seen */
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    write_keys(fd, "key-aaa1\nkey-bbb1\nkey-ccc1\n");
    if (hn_http_keys_read(&k, NULL, file, &err) != HONE_OK) fail_msg("%s", err.message);
    close(fd);
    unlink(file);
    long want = steps_of(&k, rows[0].text, false);
    for (size_t i = 1; i < sizeof rows / sizeof *rows && want != NO_STEPS; i++) {
        long n = steps_of(&k, rows[i].text, rows[i].has);
        if (n != want) fail_msg("%s takes %ld instructions, %s %ld", rows[i].text, n, rows[0].text, want);
    }
    hn_http_keys_free(&k);
    if (want == NO_STEPS) skip(); /* no ptrace here */
    assert_true(want > 500);
}

/* Who somebody is depends on their key, not on where it is listed or how often: else the next in the file becomes the
 * client that was taken out, and one whose key stands there twice becomes a third. */
static void test_clients_of_keys(void **state)
{
    char file[] = "/tmp/hone-http-keys-XXXXXX";
    int fd = mkstemp(file);
    uint64_t id[3];
    write_keys(fd, "first\nfirst\nthird\n");
    const char *at = start((hn_http_params){ .api_key_file = file });
    id[0] = client_of(at, "first");
    id[2] = client_of(at, "third");
    assert_true(id[0] && id[2] && id[0] != id[2]);
    write_keys(fd, "second\nthird\nfirst\n");
    reload();
    id[1] = client_of(at, "second");
    assert_true(id[1] != id[0] && id[1] != id[2]);
    assert_true(client_of(at, "first") == id[0] && client_of(at, "third") == id[2]);
    stop();
    assert_int_equal(unlink(file), 0);
    close(fd);
}

static void test_host_and_origin(void **state)
{
    static const char *const hosts[] = { "model.home" };
    static const char *const origins[] = { "https://app.example", "http://tool.example:3000", "tauri://localhost",
                                           "chrome-extension://jfgf_iigp-k" };
    static const struct {
        const char *headers;
        int status;
    } rows[] = {
        { "Host: localhost\r\n", 200 },
        { "Host: LOCALHOST:1\r\n", 200 },
        { "Host: 127.0.0.1:8080\r\n", 200 },
        { "Host: [::1]:8080\r\n", 200 },
        { "Host: model.home:99\r\n", 200 },
        { "Host: attacker.example\r\n", 403 },
        { "Host: 127.0.0.1.attacker.example\r\n", 403 },
        { "Host: localhost.attacker.example\r\n", 403 },
        { "Host: 127.0.0.2\r\n", 403 },
        { "Host: 2130706433\r\n", 403 },
        { "Host: localhost\r\nOrigin: http://localhost\r\n", 200 },
        { "Host: localhost:80\r\nOrigin: http://localhost\r\n", 200 },
        { "Host: localhost:8080\r\nOrigin: http://localhost:8080\r\n", 200 },
        { "Host: localhost:8080\r\nOrigin: http://localhost\r\n", 403 },
        { "Host: localhost:8080\r\nOrigin: http://localhost:8081\r\n", 403 },
        { "Host: localhost\r\nOrigin: https://localhost\r\n", 200 }, /* a proxy speaks TLS for it */
        { "Host: localhost:80\r\nOrigin: https://localhost\r\n", 403 },
        { "Host: localhost\r\nOrigin: http://localhost.attacker.example\r\n", 403 },
        { "Host: localhost\r\nOrigin: http://localhost@attacker.example\r\n", 403 },
        { "Host: localhost\r\nOrigin: null\r\n", 403 },
        { "Host: localhost\r\nOrigin: \r\n", 403 },
        { "Host: localhost\r\nOrigin: file://\r\n", 403 },
        { "Host: localhost\r\nOrigin: https://app.example\r\n", 200 },
        { "Host: localhost\r\nOrigin: https://app.example:444\r\n", 403 },
        { "Host: localhost\r\nOrigin: http://app.example\r\n", 403 },
        { "Host: localhost\r\nOrigin: https://app.example.attacker.example\r\n", 403 },
        { "Host: localhost\r\nOrigin: https://app.example\r\nOrigin: null\r\n", 400 },
        { "Host: localhost\r\nOrigin: http://tool.example:3000\r\n", 200 },
        { "Host: localhost\r\nOrigin: tauri://localhost\r\n", 200 },
        { "Host: localhost\r\nOrigin: chrome-extension://jfgf_iigp-k\r\n", 200 },
        { "Host: localhost\r\nOrigin: app://localhost\r\n", 403 },
        { "Host: localhost\r\nOrigin: chrome-extension://another\r\n", 403 },
    };
    const char *at =
        start((hn_http_params){ .allow_host = hosts, .n_allow_host = 1, .cors_origin = origins, .n_cors_origin = 4 });
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int got = status_of(at, "GET /health HTTP/1.1\r\n%s\r\n", rows[i].headers);
        if (got != rows[i].status) fail_msg("%s is %d, want %d", rows[i].headers, got, rows[i].status);
    }
    const answer *a = ask_once(at, "GET /health HTTP/1.1\r\n" H "Origin: https://app.example\r\n\r\n");
    assert_string_equal(header(a, "access-control-allow-origin"), "https://app.example");
    assert_null(header(a, "access-control-allow-credentials"));
    assert_string_equal(header(a, "vary"), "origin");
    a = ask_once(at, "GET /health HTTP/1.1\r\n" H "\r\n");
    assert_null(header(a, "access-control-allow-origin"));
    /* a trailer moves what was read before it */
    char trailer[12001];
    for (size_t i = 0; i < 6; i++) {
        size_t n = (size_t)2000 * (i + 1);
        memset(trailer, 'a', n);
        trailer[n] = 0;
        int fd = dial(at);
        put(fd, "POST /echo HTTP/1.1\r\n" H JSON "Transfer-Encoding: chunked\r\nOrigin: https://app.example\r\n\r\n");
        put(fd, "2\r\n{}\r\n0\r\nt: ");
        put(fd, trailer);
        a = ask(fd, "\r\n\r\n");
        assert_string_equal(a->body, "{}");
        assert_string_equal(header(a, "access-control-allow-origin"), "https://app.example");
        close(fd);
    }
    /* preflights: of listed origins only */
    a = ask_once(at,
                 "OPTIONS /echo HTTP/1.1\r\n" H "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n"
                 "Access-Control-Request-Headers: authorization, x-stainless-os\r\n\r\n");
    assert_int_equal(a->status, 204);
    assert_string_equal(header(a, "access-control-allow-methods"), "POST, OPTIONS");
    assert_string_equal(header(a, "access-control-allow-headers"), "authorization, x-stainless-os");
    assert_null(header(a, "content-length"));
    a = ask_once(at, "OPTIONS /echo HTTP/1.1\r\n" H "Origin: https://evil.example\r\n"
                     "Access-Control-Request-Method: POST\r\n\r\n");
    assert_int_equal(a->status, 403);
    assert_null(header(a, "access-control-allow-origin"));
    stop();
    /* every origin: with a key only, and never with credentials */
    static const char *const all[] = { "*" };
    hn_http *h;
    hone_error err;
    hn_http_params p = { .cors_origin = all, .n_cors_origin = 1, .handler = handle };
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG);
    p.api_key = "k";
    at = start(p);
    a = ask_once(at, "GET /who HTTP/1.1\r\n" H "Origin: https://any.example\r\nX-Api-Key: k\r\n\r\n");
    assert_int_equal(a->status, 200);
    assert_string_equal(header(a, "access-control-allow-origin"), "*");
    assert_null(header(a, "access-control-allow-credentials"));
    assert_int_equal(status_of(at, "GET /who HTTP/1.1\r\n" H "X-Api-Key: k\r\nOrigin: %s\r\n\r\n", "null"), 403);
    stop();
    static const char *const bad[] = { "app.example", "https://a/b", "ftp://x", "https://",  "app://",
                                       "app://a/b",   "://a",        "app:a",   "app://a b", "file://a" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p = (hn_http_params){ .cors_origin = &bad[i], .n_cors_origin = 1, .handler = handle };
        assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG);
    }
}

/* ---- many ------------------------------------------------------------------------------------- */

static void test_connections(void **state)
{
    enum { MOST = 20 };
    const char *at = start((hn_http_params){ .max_connections = MOST, .max_per_address = 2 });
    int fd[MOST];
    for (int i = 0; i < MOST; i++) { /* this machine's own have no limit per address */
        fd[i] = dial(at);
        assert_int_equal(ask(fd[i], "GET /health HTTP/1.1\r\n" H "\r\n")->status, 200);
    }
    for (int i = 0; i < 100; i++) { /* beyond: an answer while there are few, then closed at once */
        int over = dial(at);
        const answer *a = ask(over, "");
        assert_true(a->status == 503 || a->status == 0);
        if (i == 0) {
            assert_int_equal(a->status, 503);
            assert_string_equal(header(a, "retry-after"), "1");
            assert_non_null(strstr(a->body, "too_many_connections"));
        }
        close(over);
    }
    assert_int_equal(ask(fd[3], "GET /health HTTP/1.1\r\n" H "\r\n")->status, 200);
    for (int i = 0; i < MOST; i++) close(fd[i]);
    int64_t end = ms_now() + PATIENCE_MS;
    while (hn_http_connections(now.h) && ms_now() < end) nap();
    assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\n" H "\r\n")->status, 200);
    stop();
}

/* An address of this machine that is not loopback; false: there is none. */
static bool other_address(struct in_addr *out)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) != 0) return false;
    for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET) continue;
        *out = ((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr;
        found = ntohl(out->s_addr) >> 24 != 127;
    }
    freeifaddrs(all);
    return found;
}

/* Of any other address only so many. */
static void test_per_address(void **state)
{
    struct sockaddr_in to = { .sin_family = AF_INET };
    if (!other_address(&to.sin_addr)) {
        print_message("SKIP: this machine has no address but loopback\n");
        skip();
    }
    const char *at = start((hn_http_params){ .host = "0.0.0.0", .insecure_no_key = true, .max_per_address = 2 });
    to.sin_port = htons((uint16_t)strtol(strrchr(at, ':') + 1, NULL, 10));
    int fd[3];
    for (int i = 0; i < 3; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fd[i], (struct sockaddr *)&to, sizeof to), 0);
        assert_int_equal(ask(fd[i], "GET /health HTTP/1.1\r\n" H "\r\n")->status, i < 2 ? 200 : 503);
    }
    assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\n" H "\r\n")->status, 200); /* others are not touched */
    for (int i = 0; i < 3; i++) close(fd[i]);
    stop();
}

/* 500 that asked once and are quiet since cost 16 KiB each at most; they leave nothing behind. */
static void test_quiet_ones(void **state)
{
    enum { QUIET = 500, EACH = 16 << 10 };
    const char *at = start((hn_http_params){ 0 });
    static int fd[QUIET];
    hn_os_heap before, with;
    assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\n" H "\r\n")->status, 200);
    bool told = hn_os_heap_read(&before);
    for (int i = 0; i < QUIET; i++) {
        fd[i] = dial(at);
        ask(fd[i], "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: 5\r\n\r\nhello");
    }
    assert_int_equal(hn_http_connections(now.h), QUIET);
    if (told && hn_os_heap_read(&with)) {
        size_t each = (size_t)(with.in_use - before.in_use) / QUIET;
        print_message("%zu bytes of a quiet connection\n", each);
        assert_true(each > 100 && each <= EACH);
    }
    for (int i = 0; i < QUIET; i++) close(fd[i]);
    stop();
}

static void drop_bodies(void *arg)
{
    for (int i = 0; i < MAX_HELD; i++)
        if (now.held[i]) hn_exchange_drop_body(now.held[i]);
}

/* Large bodies are bounded together, too. */
static void test_bodies(void **state)
{
    enum { BODY = 1 << 20, MANY = 24 };
    const char *at = start((hn_http_params){ .max_body = BODY });
    static char half[BODY - 1];
    int fd[MANY], refused = 0;
    memset(half, 'a', sizeof half);
    for (int i = 0; i < MANY; i++) {
        char head[200];
        fd[i] = dial(at);
        sprintf(head, "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: %d\r\n\r\n", BODY);
        put(fd[i], head);
        put_n(fd[i], half, sizeof half);
    }
    struct pollfd p[MANY];
    for (int i = 0; i < MANY; i++) p[i] = (struct pollfd){ fd[i], POLLIN, 0 };
    assert_true(poll(p, MANY, PATIENCE_MS) > 0);
    for (int i = 0; i < MANY; i++) {
        if (p[i].revents) {
            assert_int_equal(ask(fd[i], "")->status, 503);
            refused++;
        }
        close(fd[i]);
    }
    assert_true(refused > 0 && refused < MANY);
    assert_int_equal(now.n_seen, 0);
    /* and afterwards there is room again */
    int64_t end = ms_now() + PATIENCE_MS;
    while (hn_http_connections(now.h) && ms_now() < end) nap();
    assert_int_equal(ask_once(at, "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: 1\r\n\r\na")->status, 200);
    /* those that were read and are worked on are there, too, until they are answered or dropped */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 16; i++) {
            char head[200];
            fd[i] = dial(at);
            sprintf(head, "POST /slow HTTP/1.1\r\n" H JSON "Content-Length: %zu\r\n\r\n", sizeof half);
            put(fd[i], head);
            put_n(fd[i], half, sizeof half);
            await(&now.n_held, i + 1);
        }
        static const char one[] = "POST /echo HTTP/1.1\r\n" H JSON "Content-Length: 1\r\n\r\na";
        assert_int_equal(ask_once(at, one)->status, 503);
        assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\n" H "\r\n")->status, 200);
        if (round) {
            assert_true(hn_http_post(now.h, drop_bodies, NULL));
            assert_int_equal(ask_once(at, one)->status, 200);
        }
        assert_true(hn_http_post(now.h, release_all, NULL));
        for (int i = 0; i < 16; i++) {
            assert_string_equal(ask(fd[i], "")->body, "slow");
            close(fd[i]);
        }
        assert_int_equal(ask_once(at, one)->status, 200);
    }
    stop();
}

/* ---- life ------------------------------------------------------------------------------------- */

static void drain_now(void *arg) { hn_http_drain(now.h); }

typedef struct gate { /* at which the event thread stands */
    _Atomic int stands, opens;
} gate;

static void drain_behind(void *arg)
{
    gate *g = arg;
    g->stands = 1;
    while (!g->opens) nap();
    hn_http_drain(now.h);
}

/* What had come before the server knew of its end is answered: to a connection that was quiet, to one that was not
 * accepted yet, and to one that says what it wants only now. One that never does is closed. */
static void test_drain_behind(void **state)
{
    static const char ask_health[] = "GET /health HTTP/1.1\r\n" H "\r\n";
    enum { KEPT, WAITS, LATE, NEVER, MANY };
    const char *at = start((hn_http_params){ 0 });
    gate g = { 0 };
    int fd[MANY];
    fd[KEPT] = dial(at);
    assert_int_equal(ask(fd[KEPT], ask_health)->status, 200);
    assert_true(hn_http_post(now.h, drain_behind, &g));
    await(&g.stands, 1);
    for (int i = WAITS; i < MANY; i++) fd[i] = dial(at);
    put(fd[KEPT], ask_health);
    put(fd[WAITS], ask_health);
    g.opens = 1;
    for (int i = 0; i < NEVER; i++) {
        if (i == LATE) nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
        const answer *a = ask(fd[i], i == LATE ? ask_health : "");
        assert_int_equal(a->status, 503);
        assert_true(a->whole);
        assert_string_equal(header(a, "connection"), "close");
        assert_true(is_closed(fd[i], PATIENCE_MS));
    }
    assert_true(is_closed(fd[NEVER], PATIENCE_MS));
    for (int i = 0; i < MANY; i++) close(fd[i]);
    stop();
}

static void test_drain(void **state)
{
    const char *at = start((hn_http_params){ 0 });
    char address[160];
    snprintf(address, sizeof address, "%s", at);
    int quiet = dial(at), works = dial(at), begun = dial(at);
    ask(quiet, "GET /health HTTP/1.1\r\n" H "\r\n");
    ask(begun, "GET /health HTTP/1.1\r\n" H "\r\n");
    put(begun, "GET /health HTTP/1.1\r\n");
    put(works, "POST /slow HTTP/1.1\r\n" H "\r\n");
    await(&now.n_held, 1); /* what was sent before it was read, too */
    assert_true(hn_http_post(now.h, drain_now, NULL));
    assert_true(is_closed(quiet, PATIENCE_MS));
    assert_true(dial_room(address, 0) < 0);
    const answer *a = ask(begun, H "\r\n");
    assert_int_equal(a->status, 503); /* what was begun is answered, and then closed */
    assert_string_equal(header(a, "connection"), "close");
    assert_true(is_closed(begun, PATIENCE_MS));
    assert_true(hn_http_post(now.h, release_all, NULL));
    a = ask(works, "");
    assert_string_equal(a->body, "slow");
    assert_string_equal(header(a, "connection"), "close");
    close(quiet), close(works), close(begun);
    stop();
    /* stop with a request at work: it is told, and what was written arrives */
    at = start((hn_http_params){ 0 });
    works = dial(at);
    put(works, "POST /slow HTTP/1.1\r\n" H "\r\n");
    await(&now.n_held, 1);
    stop();
    assert_int_equal(now.n_gone, 1);
    assert_true(is_closed(works, PATIENCE_MS));
    close(works);
}

static void test_unix(void **state)
{
    char dir[] = "/tmp/hone-http-XXXXXX", path[64], text[80];
    struct stat sb;
    hone_error err;
    hn_http *h;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    hn_http_params p = { .unix_path = path, .handler = handle };
    const char *at = start(p);
    snprintf(text, sizeof text, "unix:%s", path);
    assert_string_equal(at, text);
    assert_int_equal(stat(path, &sb), 0);
    assert_int_equal(sb.st_mode & 07777, 0600);
    assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\nHost: anything\r\n\r\n")->status, 200);
    /* where somebody answers it is not taken away */
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_IO);
    assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\nHost: anything\r\n\r\n")->status, 200);
    stop();
    assert_int_not_equal(lstat(path, &sb), 0);
    /* left by one that was killed */
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
    close(fd);
    at = start(p);
    assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\nHost: anything\r\n\r\n")->status, 200);
    /* one that is not ours any more stays */
    assert_int_equal(unlink(path), 0);
    FILE *f = fopen(path, "w");
    fclose(f);
    stop();
    assert_int_equal(lstat(path, &sb), 0);
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG); /* no socket */
    assert_int_equal(unlink(path), 0);
    char long_path[200];
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = 0;
    p.unix_path = long_path;
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG);
    rmdir(dir);
}

static void test_open(void **state)
{
    hone_error err;
    hn_http *h, *two;
    hn_http_params p = { .host = "0.0.0.0", .handler = handle };
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG); /* beyond this machine without a key */
    assert_non_null(strstr(err.message, "--insecure-no-key"));
    p.insecure_no_key = true;
    const char *at = start(p);
    assert_int_equal(status_of(at, "GET /health HTTP/1.1\r\nHost: %s\r\n\r\n", "any.name"), 200);
    stop();
    p = (hn_http_params){ .host = "::", .handler = handle };
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG);
    p = (hn_http_params){ .host = "no such host", .handler = handle };
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_IO);
    p = (hn_http_params){ .port = 70000, .handler = handle };
    assert_int_equal(hn_http_open(&h, &p, &err), HONE_E_ARG);
    /* a port that is taken; and it is free again at once, with a connection left behind (SO_REUSEADDR) */
    p = (hn_http_params){ 0 };
    at = start(p);
    p.port = (int)strtol(strrchr(at, ':') + 1, NULL, 10);
    p.handler = handle;
    assert_int_equal(hn_http_open(&two, &p, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "--port"));
    int fd = dial(at);
    ask(fd, "GET /health HTTP/1.1\r\n" H "Connection: close\r\n\r\n"); /* the server closes first: its side waits */
    assert_true(is_closed(fd, PATIENCE_MS));
    stop();
    at = start(p);
    assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\n" H "\r\n")->status, 200);
    stop();
    close(fd);
    /* IPv6, where there is any */
    p = (hn_http_params){ .host = "::1", .handler = handle };
    if (hn_http_open(&h, &p, &err) == HONE_OK) {
        hn_http_free(h);
        at = start(p);
        assert_int_equal(strncmp(at, "http://[::1]:", 13), 0);
        assert_int_equal(ask_once(at, "GET /health HTTP/1.1\r\nHost: [::1]\r\n\r\n")->status, 200);
        stop();
    }
}

/* Fewer open files than connections need: raised where the system lets us, else refused. In a child, as limits stay. */
static void test_files(void **state)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        hone_error err;
        hn_http *h = NULL;
        struct rlimit r = { 100, 400 };
        hn_http_params p = { .max_connections = 300, .handler = handle };
        bool ok = setrlimit(RLIMIT_NOFILE, &r) == 0 && hn_http_open(&h, &p, &err) == HONE_OK &&
                  getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur >= 364;
        hn_http_free(h);
        p.max_connections = 337; /* and 64: one more than there are */
        ok = ok && hn_http_open(&h, &p, &err) == HONE_E_IO && !h && strstr(err.message, "401") != NULL;
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* No file descriptor is left for a client: it waits and is served when there is one again. In a child. */
static void test_no_files(void **state)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        enum { MOST = 400 };
        static int fd[MOST];
        struct rlimit r = { 200, 200 };
        char c = 0;
        if (setrlimit(RLIMIT_NOFILE, &r) != 0) _exit(2);
        const char *at = start((hn_http_params){ .max_connections = 100 });
        int client = socket(AF_INET, SOCK_STREAM, 0), n = 0;
        while (n < MOST && (fd[n] = dup(0)) >= 0) n++;
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        to.sin_port = htons((uint16_t)strtol(strrchr(at, ':') + 1, NULL, 10));
        if (connect(client, (struct sockaddr *)&to, sizeof to) != 0) _exit(3); /* the system has it, nobody accepts */
        put(client, "GET /health HTTP/1.1\r\n" H "\r\n");
        if (get_byte(client, &c, 50) != -1) _exit(4);
        while (n) close(fd[--n]);
        _exit(get_byte(client, &c, PATIENCE_MS) == 1 && c == 'H' ? 0 : 5);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("the child ended with %d", status);
}

/* ---- other threads, time, signals ---------------------------------------------------------------- */

enum { POSTS = 1000 };
static int order[2];
static _Atomic int n_posted, n_ticks, n_signals;

static void posted(void *arg)
{
    int k = (int)(intptr_t)arg, who = k / POSTS;
    assert(order[who] == k % POSTS); /* in order, of each thread */
    order[who]++;
    n_posted++;
}

static void *post_many(void *arg)
{
    for (int i = 0; i < POSTS; i++)
        if (!hn_http_post(now.h, posted, (void *)((intptr_t)arg * POSTS + i))) return NULL;
    return NULL;
}

static void ticked(void *arg) { n_ticks++; }
static void signalled(void *arg, int sig) { n_signals += sig == SIGUSR1; }
static void arm(void *arg)
{
    assert(hn_http_every(now.h, 2, ticked, NULL) && hn_http_on_signal(now.h, SIGUSR1, signalled, NULL));
    n_posted++;
}

static void test_threads(void **state)
{
    start((hn_http_params){ 0 });
    pthread_t t[2];
    for (intptr_t i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, post_many, (void *)i), 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    await(&n_posted, 2 * POSTS);
    assert_true(hn_http_post(now.h, arm, NULL));
    await(&n_posted, 2 * POSTS + 1);
    int64_t end = ms_now() + PATIENCE_MS;
    while (n_ticks < 3 && ms_now() < end) nap();
    assert_true(n_ticks >= 3);
    kill(getpid(), SIGUSR1);
    await(&n_signals, 1);
    /* what is posted when nobody runs any more is run at the end: nobody's argument is lost */
    hn_http_stop(now.h);
    pthread_join(now.thread, NULL);
    assert_true(hn_http_post(now.h, (void (*)(void *))ticked, NULL));
    int before = n_ticks;
    hn_http_free(now.h);
    assert_int_equal(n_ticks, before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_key_work),
        cmocka_unit_test(test_clients_of_keys),
        cmocka_unit_test(test_host_and_origin),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_per_address),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_quiet_ones),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_unix),
        cmocka_unit_test(test_drain_behind),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
