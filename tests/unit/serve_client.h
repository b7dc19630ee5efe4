/* A client of hone serve for tests: one request on one connection, whole answers and events of streams. Knows sockets
 * and jansson; knows nothing of hone. */
#ifndef HN_SERVE_CLIENT_H
#define HN_SERVE_CLIENT_H

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct client_answer {
    int status; /* 0: no answer */
    char *head; /* [n_head] with its last empty line, NUL behind it */
    char *body; /* [n_body] without chunks, NUL behind it */
    size_t n_body;
    bool whole; /* the last chunk, or all of the length, was there */
} client_answer;

static int client_connect(int port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool client_send(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

static bool client_request(int fd, const char *method, const char *path, const char *headers, const char *body)
{
    char head[2048];
    size_t n = body ? strlen(body) : 0;
    int k = snprintf(head, sizeof head,
                     "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%sContent-Length: %zu\r\n\r\n",
                     method, path, body ? "Content-Type: application/json\r\n" : "", headers ? headers : "", n);
    return client_send(fd, head, (size_t)k) && (!n || client_send(fd, body, n));
}

/* Everything until the other side closes; malloc'ed, NUL behind it. */
static char *client_read_all(int fd, size_t *n)
{
    size_t cap = 4096;
    char *p = malloc(cap);
    *n = 0;
    for (;;) {
        if (*n + 1 == cap) p = realloc(p, cap *= 2);
        ssize_t k = recv(fd, p + *n, cap - *n - 1, 0);
        if (k <= 0) break;
        *n += (size_t)k;
    }
    p[*n] = 0;
    return p;
}

static const char *client_header(const client_answer *a, const char *name)
{
    static __thread char value[512];
    size_t n = strlen(name);
    for (const char *p = a->head; p && *p; p = strstr(p, "\r\n") ? strstr(p, "\r\n") + 2 : NULL) {
        if (strncasecmp(p, name, n) != 0 || p[n] != ':') continue;
        const char *v = p + n + 1, *end = strstr(v, "\r\n");
        while (*v == ' ') v++;
        snprintf(value, sizeof value, "%.*s", (int)(end - v), v);
        return value;
    }
    return NULL;
}

/* As strstr, which sanitizers let read to the end of all there is: of a stream, once for each event in it. */
static const char *client_find(const char *p, const char *what)
{
    while ((p = strchr(p, *what)) && strncmp(p, what, strlen(what)) != 0) p++;
    return p;
}

/* Joins chunks in place; false: the last one is missing. */
static bool client_unchunk(char *p, size_t n, size_t *out)
{
    char *to = p, *end = p + n;
    for (char *from = p;;) {
        const char *data = client_find(from, "\r\n");
        if (!data) break;
        size_t k = strtoul(from, NULL, 16);
        data += 2;
        if (k == 0) {
            *out = (size_t)(to - p);
            *to = 0;
            return true;
        }
        if (k + 2 > (size_t)(end - data)) break;
        memmove(to, data, k);
        to += k;
        from = p + (data - p) + k + 2;
    }
    *out = (size_t)(to - p);
    *to = 0;
    return false;
}

static client_answer client_receive(int fd)
{
    client_answer a = { 0 };
    size_t n;
    char *all = client_read_all(fd, &n), *body = strstr(all, "\r\n\r\n");
    close(fd);
    if (!body) {
        free(all);
        return a;
    }
    a.status = atoi(all + 9);
    a.head = strndup(all, (size_t)(body - all) + 4);
    a.n_body = n - (size_t)(body + 4 - all);
    a.body = malloc(a.n_body + 1);
    memcpy(a.body, body + 4, a.n_body + 1);
    free(all);
    const char *encoding = client_header(&a, "transfer-encoding");
    if (encoding && strcmp(encoding, "chunked") == 0) {
        a.whole = client_unchunk(a.body, a.n_body, &a.n_body);
    } else {
        const char *length = client_header(&a, "content-length");
        a.whole = length && strtoul(length, NULL, 10) == a.n_body;
    }
    return a;
}

static client_answer client_ask(int port, const char *method, const char *path, const char *headers, const char *body)
{
    int fd = client_connect(port);
    if (fd < 0) return (client_answer){ 0 };
    if (!client_request(fd, method, path, headers, body)) { /* it may have answered before it read all */
    }
    return client_receive(fd);
}

static void client_free(client_answer *a)
{
    free(a->head);
    free(a->body);
    *a = (client_answer){ 0 };
}

/* The next "data:" of a stream's body from *at on, as JSON (new reference); NULL: none. [DONE] is passed over, *done
 * says that it was there. */
static __attribute__((unused)) json_t *client_event(const char **at, bool *done)
{
    for (const char *p = *at; (p = client_find(p, "data: "));) {
        const char *end = client_find(p, "\n\n");
        p += 6;
        if (!end) return NULL;
        *at = end + 2;
        if (strncmp(p, "[DONE]", 6) == 0) {
            *done = true;
            continue;
        }
        return json_loadb(p, (size_t)(end - p), 0, NULL);
    }
    return NULL;
}

#endif
