/* ask ADDRESS METHOD PATH [BODY]: one request to a server, "http://HOST:PORT" or "unix:PATH"; the body of the answer to
 * stdout. ASK_KEY is sent as a key. Exit code 0: 200; 1: another status; 2: no answer. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int to_unix(const char *path)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    return fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0 ? fd : -1;
}

static int to_host(const char *url)
{
    char host[256];
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    snprintf(host, sizeof host, "%s", url + strlen("http://"));
    char *colon = strrchr(host, ':');
    if (!colon) return -1;
    *colon = 0;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) return -1;
    int fd = socket(found->ai_family, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0) fd = -1;
    freeaddrinfo(found);
    return fd;
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    const char *body = argc > 4 ? argv[4] : "", *key = getenv("ASK_KEY");
    int fd = strncmp(argv[1], "unix:", 5) == 0 ? to_unix(argv[1] + 5) : to_host(argv[1]);
    if (fd < 0) {
        perror(argv[1]);
        return 2;
    }

    FILE *f = fdopen(fd, "r+");
    fprintf(f, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", argv[2], argv[3]);
    if (key) fprintf(f, "Authorization: Bearer %s\r\n", key);
    if (*body) fprintf(f, "Content-Type: application/json\r\n");
    fprintf(f, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    fflush(f);

    char line[8192];
    if (!fgets(line, sizeof line, f)) return 2;
    int status = atoi(line + 9);
    while (fgets(line, sizeof line, f) && strcmp(line, "\r\n") != 0) {}
    for (size_t n; (n = fread(line, 1, sizeof line, f)) > 0;) fwrite(line, 1, n, stdout);
    return status == 200 ? 0 : 1;
}
