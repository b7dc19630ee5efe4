/* http_client: a client of HTTP in plain sockets for tests: it sends the bytes it is told and reads answers by rules of
 * its own, so that it can be as wrong as a test wants. Everything waits for events, ten seconds at most. Wants cmocka
 * before it. */
#ifndef HN_TEST_HTTP_CLIENT_H
#define HN_TEST_HTTP_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, ANSWER = 1 << 20 };

typedef struct answer {
    int status; /* 0: none, the connection was closed */
    char head[8192];
    size_t n_body;
    char body[ANSWER];
    bool whole; /* false: cut off */
} answer;

/* "http://127.0.0.1:PORT" or "unix:PATH"; room: of the receiving buffer, 0: the usual. */
static int dial_room(const char *address, int room)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un un;
    } at = { 0 };
    socklen_t n;
    if (strncmp(address, "unix:", 5) == 0) {
        at.un.sun_family = AF_UNIX;
        snprintf(at.un.sun_path, sizeof at.un.sun_path, "%s", address + 5);
        n = sizeof at.un;
    } else if (strncmp(address, "http://[", 8) == 0) {
        at.v6.sin6_family = AF_INET6;
        at.v6.sin6_addr = in6addr_loopback;
        at.v6.sin6_port = htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10));
        n = sizeof at.v6;
    } else {
        at.v4.sin_family = AF_INET;
        at.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.v4.sin_port = htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10));
        n = sizeof at.v4;
    }
    int fd = socket(at.any.sa_family, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    if (room) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (connect(fd, &at.any, n) == 0) return fd;
    close(fd);
    return -1;
}

static int dial(const char *address)
{
    int fd = dial_room(address, 0);
    assert_true(fd >= 0);
    return fd;
}

/* Bytes to a server that may have closed already: not all may arrive. */
static void put_n(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k <= 0) return;
        p += k;
        n -= (size_t)k;
    }
}
static void put(int fd, const char *text) { put_n(fd, text, strlen(text)); }

/* 1: a byte; 0: the end; -1: neither within ms. A reset counts as the end. */
static int get_byte(int fd, char *c, int ms)
{
    struct pollfd p = { fd, POLLIN, 0 };
    if (poll(&p, 1, ms) <= 0) return -1;
    return read(fd, c, 1) == 1;
}

static bool get_line(int fd, char *line, size_t cap)
{
    size_t n = 0;
    char c;
    while (n + 1 < cap && get_byte(fd, &c, PATIENCE_MS) == 1) {
        if (c == '\n' && n && line[n - 1] == '\r') {
            line[n - 1] = 0;
            return true;
        }
        line[n++] = c;
    }
    line[n] = 0;
    return false;
}

static bool get_n(int fd, char *p, size_t n)
{
    while (n) {
        struct pollfd w = { fd, POLLIN, 0 };
        if (poll(&w, 1, PATIENCE_MS) <= 0) return false;
        ssize_t k = read(fd, p, n);
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* The value of a header, or NULL. Static. */
static const char *header(const answer *a, const char *name)
{
    static char value[1024];
    size_t n = strlen(name);
    for (const char *s = a->head; *s; s += strcspn(s, "\n") + 1) {
        if (strncasecmp(s, name, n) == 0 && s[n] == ':') {
            snprintf(value, sizeof value, "%.*s", (int)strcspn(s + n + 2, "\n"), s + n + 2);
            return value;
        }
        if (!s[strcspn(s, "\n")]) break;
    }
    return NULL;
}

/* One answer. no_body: it is to a HEAD. */
static void read_answer(int fd, answer *a, bool no_body)
{
    char line[4096];
    size_t n = 0;
    a->status = 0;
    a->n_body = 0;
    a->whole = false;
    a->head[0] = a->body[0] = 0;
    if (!get_line(fd, line, sizeof line)) return;
    assert_int_equal(sscanf(line, "HTTP/1.1 %d ", &a->status), 1);
    while (get_line(fd, line, sizeof line) && *line)
        n += (size_t)snprintf(a->head + n, sizeof a->head - n, "%s\n", line);
    const char *v;
    a->whole = no_body || a->status == 204 || a->status == 304 || a->status / 100 == 1;
    if (a->whole) return;
    if ((v = header(a, "content-length"))) {
        a->n_body = strtoul(v, NULL, 10);
        assert_true(a->n_body < ANSWER);
        a->whole = get_n(fd, a->body, a->n_body);
    } else if ((v = header(a, "transfer-encoding"))) {
        assert_string_equal(v, "chunked");
        for (;;) {
            if (!get_line(fd, line, sizeof line)) break;
            size_t k = strtoul(line, NULL, 16);
            assert_true(a->n_body + k < ANSWER);
            if (!get_n(fd, a->body + a->n_body, k) || !get_line(fd, line, sizeof line)) break;
            a->n_body += k;
            if ((a->whole = k == 0)) break;
        }
    } else {
        assert_string_equal(header(a, "connection"), "close");
        char c;
        int rc;
        while ((rc = get_byte(fd, &c, PATIENCE_MS)) == 1 && a->n_body < ANSWER - 1) a->body[a->n_body++] = c;
        a->whole = rc == 0;
    }
    a->body[a->n_body] = 0;
}

/* Sends and reads one answer. */
static const answer *ask(int fd, const char *bytes)
{
    static answer a;
    put(fd, bytes);
    read_answer(fd, &a, strncmp(bytes, "HEAD ", 5) == 0);
    return &a;
}

/* On a connection of its own. */
static inline const answer *ask_once(const char *address, const char *bytes)
{
    int fd = dial(address);
    const answer *a = ask(fd, bytes);
    close(fd);
    return a;
}

/* Does the server close, within ms, after whatever it still sends? */
static inline bool is_closed(int fd, int ms)
{
    char c;
    int rc;
    while ((rc = get_byte(fd, &c, ms)) == 1) {}
    return rc == 0;
}

#endif
