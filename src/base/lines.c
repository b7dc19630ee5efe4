/* lines: see lines.h. */
#define _GNU_SOURCE
#include "base/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool hn_lines_open(hn_lines *r, const char *path)
{
    r->at = r->n = 0;
    do r->fd = open(path, O_RDONLY | O_CLOEXEC);
    while (r->fd < 0 && errno == EINTR);
    return r->fd >= 0;
}

static bool fill(hn_lines *r)
{
    ssize_t k;
    if (r->fd < 0) return false;
    do k = read(r->fd, r->buf, sizeof r->buf);
    while (k < 0 && errno == EINTR);
    r->at = 0;
    r->n = k > 0 ? (size_t)k : 0;
    return k > 0;
}

bool hn_lines_next(hn_lines *r, char *line, size_t cap)
{
    size_t have = 0;
    bool any = false;
    while (r->at < r->n || fill(r)) {
        const char *from = r->buf + r->at, *end = memchr(from, '\n', r->n - r->at);
        size_t k = end ? (size_t)(end - from) : r->n - r->at, room = cap - 1 - have, kept = k < room ? k : room;
        memcpy(line + have, from, kept);
        have += kept;
        r->at += k + (end != NULL);
        any = true;
        if (end) break;
    }
    line[have] = 0;
    return any;
}

void hn_lines_close(hn_lines *r)
{
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
}

bool hn_lines_first(char *line, size_t cap, const char *path)
{
    hn_lines r;
    line[0] = 0;
    if (hn_lines_open(&r, path)) hn_lines_next(&r, line, cap);
    hn_lines_close(&r);
    return line[0] != 0;
}
