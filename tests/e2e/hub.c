/* hub FOLDER: a hub of models on this machine, for tests/e2e/pull.sh and tests/dev/check_pull.sh, with all that can go
 * wrong between one and its users. Two ports: the hub itself and the store it redirects to ("CDN"); also a registry of
 * ollama's, and plain files. Prints "HUB_PORT CDN_PORT" and serves until it is killed.
 *
 * FOLDER/repos/OWNER/NAME/...  a repository; files of 1 KiB and more are LFS (SHA-256, redirected)
 * FOLDER/plain/...             files at http://CDN/plain/...
 * FOLDER/ollama/NS/NAME/TAG    a manifest; FOLDER/ollama/blobs/sha256-...
 * FOLDER/rules                 what goes wrong, read at each request: lines "PORT:WHERE ACTION [WORD [TIMES]]"; of
 *                              those whose WHERE is in the address at that port (hub, cdn) the first that has TIMES
 *                              left acts
 * FOLDER/log                   a line for each request: PORT METHOD TARGET range=… auth=… did=…
 *
 * Actions, several joined by '+' for the same word: status N, code WORD (X-Error-Code of a 404), gated, private, cut
 * N (the connection ends after N bytes of the body), drop (at once), stall N (silence after N bytes), slow N (N bytes
 * a tenth of a second), flip N (byte N of the file is wrong), norange (200 for 206), badrange, short (Content-Length
 * too large), long (more bytes than said), gzip, etag WORD, newetag (another each time), expired (403 as of a signed
 * address), relative, absolute WORD (redirect there), loop, html, nocommit, sha WORD (the commit), retry N (429,
 * Retry-After), rate N (429, RateLimit), busy N (502, RateLimit of a limit that is not used up), unknown (401: a token
 * that nobody knows), page N (entries a page), path WORD (an entry of that name), size N (the list
 * lies by so much), linked WORD (X-Linked-Etag lies), nolength, noetag, weak (the ETag is one of W/), modified WORD
 * (instead of an ETag, that day of October 2015), until N (429, Retry-After as a date N seconds hence by a clock of
 * 2015), garble N (up to N bytes of head and text are others), self (a page whose next is itself), many N (the list
 * has N MB of empty objects), deep N (the list is N arrays in each other). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 8192, MAX_RULES = 64, MAX_FILES = 4096, LFS = 1024 };
static const char *folder;
static int ports[2];
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static unsigned used[MAX_RULES]; /* how often each line of rules has acted; begins anew when the text changes */
static char rules_were[LINE * 2];
static unsigned etags;
#define COMMIT "0123456789abcdef0123456789abcdef01234567"

typedef struct request {
    FILE *out;
    int fd, port; /* port: 0 hub, 1 CDN */
    char method[16], target[LINE], path[LINE], range[128], auth[512];
    bool ranged, closed;
    unsigned long long first, last;
    char action[32], word[512]; /* what goes wrong with it */
    long long n;
} request;

/* ---- rules and log ---------------------------------------------------------------------------------- */

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *text = NULL;
    size_t size = 0;
    for (char part[65536];;) {
        size_t k = fread(part, 1, sizeof part, f);
        if (!k) break;
        text = realloc(text, size + k + 1);
        memcpy(text + size, part, k);
        size += k;
    }
    fclose(f);
    if (!text) text = calloc(1, 1);
    text[size] = 0;
    if (n) *n = size;
    return text;
}

static void find_rule(request *r)
{
    char path[LINE], key[LINE * 2];
    snprintf(path, sizeof path, "%s/rules", folder);
    snprintf(key, sizeof key, "%s:%s %s", r->port ? "cdn" : "hub", r->target, r->method);
    pthread_mutex_lock(&mu);
    char *text = slurp(path, NULL);
    if (!text || strcmp(text, rules_were) != 0) {
        memset(used, 0, sizeof used);
        snprintf(rules_were, sizeof rules_were, "%s", text ? text : "");
    }
    int i = 0;
    char *at = NULL;
    for (char *line = text ? strtok_r(text, "\n", &at) : NULL; line && i < MAX_RULES;
         line = strtok_r(NULL, "\n", &at), i++) {
        char where[LINE], action[32], word[512] = "";
        int times = 1 << 30;
        if (sscanf(line, "%8000s %31s %511s %d", where, action, word, &times) < 2 || *where == '#') continue;
        if (strncmp(key, where, 4) != 0 || !strstr(key, where + 4) || used[i] >= (unsigned)times) continue;
        used[i]++;
        snprintf(r->action, sizeof r->action, "%s", action);
        snprintf(r->word, sizeof r->word, "%s", word);
        r->n = atoll(word);
        break;
    }
    free(text);
    snprintf(path, sizeof path, "%s/log", folder);
    FILE *log = fopen(path, "a");
    if (log) {
        fprintf(log, "%s %s %s range=%s auth=%s did=%s\n", r->port ? "cdn" : "hub", r->method, r->target, r->range,
                *r->auth ? r->auth : "-", *r->action ? r->action : "-");
        fclose(log);
    }
    pthread_mutex_unlock(&mu);
}

/* Is it, or one of those joined by '+'? */
static bool does(const request *r, const char *action)
{
    size_t n = strlen(action);
    for (const char *p = r->action; p; p = strchr(p, '+') ? strchr(p, '+') + 1 : NULL)
        if (strncmp(p, action, n) == 0 && (!p[n] || p[n] == '+')) return true;
    return false;
}

/* ---- files --------------------------------------------------------------------------------------------- */

/* What a program of the system says of a file: sha256sum, sha1sum. Kept beside the file's time and size. */
typedef struct sum {
    char path[LINE], hex[65];
    long long size, when;
} sum;
static sum sums[MAX_FILES];
static int n_sums;

static void digest(char hex[65], const char *path, bool sha256, long long size)
{
    char command[LINE * 2];
    struct stat sb;
    stat(path, &sb);
    pthread_mutex_lock(&mu);
    for (int i = 0; i < n_sums; i++)
        if (strcmp(sums[i].path, path) == 0 && sums[i].size == size &&
            sums[i].when == sb.st_mtim.tv_sec * 1000000000ll + sb.st_mtim.tv_nsec) {
            memcpy(hex, sums[i].hex, 65);
            pthread_mutex_unlock(&mu);
            return;
        }
    if (sha256) snprintf(command, sizeof command, "sha256sum '%s'", path);
    else snprintf(command, sizeof command, "{ printf 'blob %lld\\0'; cat '%s'; } | sha1sum", size, path);
    FILE *p = popen(command, "r");
    if (!p || fscanf(p, "%64s", hex) != 1) snprintf(hex, 65, "none");
    if (p) pclose(p);
    if (n_sums < MAX_FILES) {
        snprintf(sums[n_sums].path, LINE, "%s", path);
        memcpy(sums[n_sums].hex, hex, 65);
        sums[n_sums].size = size;
        sums[n_sums++].when = sb.st_mtim.tv_sec * 1000000000ll + sb.st_mtim.tv_nsec;
    }
    pthread_mutex_unlock(&mu);
}

/* ---- answers -------------------------------------------------------------------------------------------- */

/* Other bytes in p[0..n), at random: those of texts mostly, which break less. */
static void garble(const request *r, char *p, size_t n)
{
    static const char likely[] = "0019af{}[]\",:/.%\\-= \r\n\t\x1b\x80\xff";
    for (long k = n && does(r, "garble") ? random() % (r->n + 1) : 0; k > 0; k--)
        p[(size_t)random() % n] = random() % 4 ? likely[(size_t)random() % (sizeof likely - 1)] : (char)random();
}

static void head(request *r, int status, const char *fmt, ...)
{
    va_list ap;
    char lines[LINE];
    size_t n = (size_t)snprintf(lines, sizeof lines, "HTTP/1.1 %d %s\r\n", status,
                                status < 300   ? "OK"
                                : status < 400 ? "Moved"
                                               : "No");
    va_start(ap, fmt);
    n += (size_t)vsnprintf(lines + n, sizeof lines - n, fmt, ap);
    va_end(ap);
    if (n >= sizeof lines) n = sizeof lines - 1;
    garble(r, lines, n);
    fwrite(lines, 1, n, r->out);
}

static void text(request *r, int status, const char *more, const char *body)
{
    char *copy = strdup(body);
    size_t n = strlen(body);
    garble(r, copy, n);
    head(r, status, "%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", more,
         *body == '<' ? "text/html" : "application/json", n + does(r, "short"));
    r->closed |= does(r, "short");
    if (strcmp(r->method, "HEAD") != 0) fwrite(copy, 1, n, r->out);
    free(copy);
}

static void pause_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

/* Silence until the other side goes away. */
static void stall(request *r)
{
    fflush(r->out);
    struct pollfd p = { .fd = r->fd, .events = POLLIN };
    char c;
    for (int i = 0; i < 600; i++)
        if (poll(&p, 1, 100) > 0 && recv(r->fd, &c, 1, MSG_PEEK) <= 0) break;
    r->closed = true;
}

/* The bytes [from, to) of a file, with what goes wrong with them. */
static void body(request *r, const char *data, unsigned long long from, unsigned long long to)
{
    unsigned long long sent = 0, n = to - from, step = does(r, "slow") ? (unsigned long long)r->n : 65536;
    if (strcmp(r->method, "HEAD") == 0) return;
    while (sent < n) {
        unsigned long long k = n - sent < step ? n - sent : step;
        if ((does(r, "cut") || does(r, "stall")) && sent + k > (unsigned long long)r->n)
            k = (unsigned long long)r->n - sent;
        for (unsigned long long i = 0; does(r, "flip") && i < k; i++)
            if (from + sent + i == (unsigned long long)r->n) {
                fwrite(data + from + sent, 1, i, r->out);
                fputc(data[from + sent + i] ^ 1, r->out);
                sent += i + 1, k -= i + 1;
                break;
            }
        if (fwrite(data + from + sent, 1, k, r->out) != k || (does(r, "slow") && fflush(r->out))) {
            r->closed = true;
            return;
        }
        sent += k;
        if (does(r, "slow")) pause_ms(100);
        if (sent == (unsigned long long)r->n && sent < n) {
            if (does(r, "stall")) stall(r);
            if (does(r, "cut") || does(r, "stall")) {
                r->closed = true;
                return;
            }
        }
    }
    if (does(r, "short")) r->closed = true;
}

/* A file, whole or a range, with an ETag. more: headers before. */
static void file(request *r, const char *path, const char *etag, const char *more)
{
    size_t size;
    char *data = slurp(path, &size), tag[600];
    struct stat sb;
    if (!data || stat(path, &sb) != 0 || !S_ISREG(sb.st_mode)) {
        free(data);
        return text(r, 404, "X-Error-Code: EntryNotFound\r\n", "{\"error\":\"Entry not found\"}");
    }
    snprintf(tag, sizeof tag, "%s", does(r, "etag") ? r->word : etag);
    if (does(r, "newetag")) snprintf(tag, sizeof tag, "e%u", ++etags);
    unsigned long long from = 0, to = size, shift = does(r, "badrange") ? 1 : 0, lie = does(r, "short") ? 100 : 0;
    bool ranged = r->ranged && !does(r, "norange");
    if (ranged && r->first >= size) {
        free(data);
        head(r, 416, "Content-Range: bytes */%zu\r\nContent-Length: 0\r\n\r\n", size);
        return;
    }
    if (ranged) from = r->first, to = r->last + 1 < size ? r->last + 1 : size;
    const char *gzip = does(r, "gzip") ? "Content-Encoding: gzip\r\n" : "";
    char length[64] = "", part[128] = "";
    if (does(r, "long")) snprintf(length, sizeof length, "Transfer-Encoding: chunked\r\n");
    else if (!does(r, "nolength")) snprintf(length, sizeof length, "Content-Length: %llu\r\n", to - from + lie);
    if (ranged)
        snprintf(part, sizeof part, "Content-Range: bytes %llu-%llu/%zu\r\n", from + shift, to - 1 + shift, size);
    char named[700];
    if (does(r, "modified"))
        snprintf(named, sizeof named, "Last-Modified: Wed, %.8s Oct 2015 07:28:00 GMT\r\n", r->word);
    else if (does(r, "noetag")) *named = 0;
    else snprintf(named, sizeof named, "ETag: %s\"%s\"\r\n", does(r, "weak") ? "W/" : "", tag);
    head(r, ranged ? 206 : 200, "%s%s%s%sAccept-Ranges: bytes\r\n%s\r\n", more, gzip, length, part, named);
    if (does(r, "long")) {
        fprintf(r->out, "%llx\r\n", to - from + 10);
        fwrite(data + from, 1, to - from, r->out);
        fprintf(r->out, "0123456789\r\n0\r\n\r\n");
    } else {
        body(r, data, from, to);
    }
    if (does(r, "nolength")) r->closed = true;
    free(data);
}

/* ---- the hub ----------------------------------------------------------------------------------------------- */

typedef struct entry {
    char path[1024];
    long long size;
} entry;

static int by_path(const void *a, const void *b) { return strcmp(((const entry *)a)->path, ((const entry *)b)->path); }

static int walk(const char *root, const char *rel, entry *list, int n)
{
    char path[LINE];
    snprintf(path, sizeof path, "%s/%s", root, rel);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d)) && n < MAX_FILES;) {
        struct stat sb;
        char one[1024];
        if (e->d_name[0] == '.') continue;
        snprintf(one, sizeof one, "%s%s%s", rel, *rel ? "/" : "", e->d_name);
        snprintf(path, sizeof path, "%s/%s", root, one);
        if (stat(path, &sb) != 0) continue;
        if (S_ISDIR(sb.st_mode)) n = walk(root, one, list, n);
        else {
            snprintf(list[n].path, sizeof list[n].path, "%s", one);
            list[n++].size = sb.st_size;
        }
    }
    if (d) closedir(d);
    return n;
}

static void tree(request *r, const char *repo, const char *root)
{
    static entry list[MAX_FILES];
    static char out[MAX_FILES * 400];
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    int n = walk(root, "", list, 0), from = 0, many = does(r, "page") ? (int)r->n : MAX_FILES;
    const char *cursor = strstr(r->target, "cursor=");
    if (cursor) from = atoi(cursor + 7);
    qsort(list, (size_t)n, sizeof *list, by_path);
    size_t at =
        (size_t)snprintf(out, sizeof out, "[{\"type\":\"directory\",\"path\":\"d\",\"size\":0,\"oid\":\"%s\"}", COMMIT);
    if (does(r, "path"))
        at += (size_t)snprintf(out + at, sizeof out - at,
                               ",{\"type\":\"file\",\"path\":\"%s\",\"size\":5,\"oid\":\"%s\"}", r->word, COMMIT);
    for (int i = from; i < n && i < from + many; i++) {
        char path[LINE], hex[65], git[65];
        long long size = list[i].size + (does(r, "size") ? r->n : 0);
        snprintf(path, sizeof path, "%s/%s", root, list[i].path);
        bool lfs = list[i].size >= LFS;
        digest(hex, path, lfs, list[i].size);
        memcpy(git, COMMIT, 41);
        at += (size_t)snprintf(out + at, sizeof out - at,
                               ",{\"type\":\"file\",\"path\":\"%s\",\"size\":%lld,\"oid\":\"%s\"", list[i].path, size,
                               lfs ? git : hex);
        if (lfs)
            at += (size_t)snprintf(out + at, sizeof out - at,
                                   ",\"lfs\":{\"oid\":\"%s\",\"size\":%lld,\"pointerSize\":134}", hex, size);
        at += (size_t)snprintf(out + at, sizeof out - at, "}");
    }
    snprintf(out + at, sizeof out - at, "]");
    char more[1024] = "";
    if (does(r, "self")) snprintf(more, sizeof more, "Link: <%s>; rel=\"next\"\r\n", r->target);
    else if (from + many < n)
        snprintf(more, sizeof more,
                 "Link: <http://127.0.0.1:%d/api/models/%s/tree/%s?recursive=true&cursor=%d>; rel=\"next\"\r\n",
                 ports[0], repo, COMMIT, from + many);
    text(r, 200, more, out);
    pthread_mutex_unlock(&one);
}

/* "owner/name" of s, whose end is stored; false: there is none. */
static bool repo_of(char *repo, size_t cap, const char *s, const char **rest)
{
    const char *slash = strchr(s, '/'), *end = slash ? strchr(slash + 1, '/') : NULL;
    if (!slash) return false;
    if (!end) end = s + strlen(s);
    snprintf(repo, cap, "%.*s", (int)(end - s), s);
    *rest = *end ? end + 1 : end;
    return true;
}

static void unquote(char *s)
{
    char *d = s;
    for (; *s; s++, d++) {
        unsigned c;
        if (*s == '%' && sscanf(s + 1, "%2x", &c) == 1) *d = (char)c, s += 2;
        else *d = *s;
    }
    *d = 0;
}

static void siblings(char *out, size_t cap, const char *root)
{
    entry *list = calloc(MAX_FILES, sizeof *list);
    int n = walk(root, "", list, 0);
    size_t at = 0;
    *out = 0;
    qsort(list, (size_t)n, sizeof *list, by_path);
    for (int i = 0; i < n && at < cap; i++)
        at += (size_t)snprintf(out + at, cap - at, "%s{\"rfilename\":\"%s\"}", i ? "," : "", list[i].path);
    free(list);
}

static void api(request *r, const char *rest)
{
    char repo[256], root[LINE];
    const char *what;
    struct stat sb;
    if (!repo_of(repo, sizeof repo, rest, &what)) return text(r, 404, "", "{}");
    snprintf(root, sizeof root, "%s/repos/%s", folder, repo);
    if (does(r, "private") || stat(root, &sb) != 0)
        return text(r, 401, "X-Error-Code: RepoNotFound\r\nX-Error-Message: Repository not found\r\n",
                    "{\"error\":\"Repository not found\"}");
    if (strncmp(what, "tree/", 5) == 0) return tree(r, repo, root);
    const char *rev = strncmp(what, "revision/", 9) == 0 ? what + 9 : "main";
    if (strcmp(rev, "main") != 0 && strspn(rev, "0123456789abcdef") != 40 && strcmp(rev, COMMIT) != 0 &&
        strcmp(rev, "v1/x") != 0)
        return text(r, 404, "X-Error-Code: RevisionNotFound\r\n", "{\"error\":\"Invalid rev id\"}");
    static char out[1 << 18], list[1 << 17];
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    siblings(list, sizeof list, root);
    snprintf(out, sizeof out,
             "{\"id\":\"%s\",\"modelId\":\"%s\",\"sha\":\"%s\",\"gated\":false,\"private\":false,\"disabled\":false,"
             "\"downloads\":0,"
             "\"likes\":0,\"tags\":[],\"siblings\":[%s]}",
             repo, repo, does(r, "sha") ? r->word : COMMIT, list);
    text(r, 200, "", out);
    pthread_mutex_unlock(&one);
}

static void resolve(request *r, const char *repo, const char *rest)
{
    char path[LINE], hex[65], more[2048], linked[700];
    const char *name = strchr(rest, '/');
    struct stat sb;
    snprintf(path, sizeof path, "%s/repos/%s/%s", folder, repo, name ? name + 1 : "");
    if (!name || stat(path, &sb) != 0 || !S_ISREG(sb.st_mode))
        return text(r, 404, "X-Error-Code: EntryNotFound\r\n", "{\"error\":\"Entry not found\"}");
    bool lfs = sb.st_size >= LFS;
    digest(hex, path, lfs, sb.st_size);
    snprintf(linked, sizeof linked, "X-Linked-Etag: \"%s\"\r\nX-Linked-Size: %lld\r\n",
             does(r, "linked") ? r->word : hex, (long long)sb.st_size);
    bool commit = name - rest == 40 &&
                  strspn(rest, "0123456789abcdef") == 40; /* any is one: the files are those that are there */
    snprintf(more, sizeof more, "%s%.40s%s%s", does(r, "nocommit") ? "" : "X-Repo-Commit: ",
             does(r, "nocommit") ? ""
             : commit            ? rest
                                 : COMMIT,
             does(r, "nocommit") ? "" : "\r\n", linked);
    if (does(r, "relative")) {
        head(r, 307, "%sLocation: /api/resolve-cache/models/%s/%s\r\nContent-Length: 0\r\n\r\n", more, repo, rest);
        return;
    }
    if (!lfs) return file(r, path, hex, more);
    head(r, 302, "%sLocation: http://127.0.0.1:%d/store/%s/%s?signature=%ld\r\nContent-Length: 0\r\n\r\n", more,
         ports[1], repo, name + 1, random());
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

/* What does not depend on what was asked for; false: go on. */
static bool misbehaves(request *r)
{
    char more[700];
    const char *code = "";
    if (does(r, "status")) text(r, (int)r->n, "", "{\"error\":\"so it is\"}");
    else if (does(r, "code")) {
        snprintf(more, sizeof more, "X-Error-Code: %s\r\n", r->word);
        text(r, 404, more, "{}");
    } else if (does(r, "gated")) {
        code = "X-Error-Code: GatedRepo\r\nX-Error-Message: Access is restricted\r\n";
        text(r, 403, code, "{\"error\":\"Access is restricted\"}");
    } else if (does(r, "expired")) {
        text(r, 403, "", "<Error><Code>ExpiredToken</Code></Error>");
    } else if (does(r, "until")) {
        snprintf(more, sizeof more,
                 "Retry-After: Wed, 21 Oct 2015 %02lld:%02lld:%02lld GMT\r\nDate: Wed, 21 Oct 2015 07:00:00 GMT\r\n",
                 7 + r->n / 3600, r->n / 60 % 60, r->n % 60);
        text(r, 429, more, "{\"error\":\"too many\"}");
    } else if (does(r, "many") || does(r, "deep")) {
        size_t n = (size_t)r->n * (does(r, "many") ? 1000000 : 1);
        char *big = malloc(2 * n + 3);
        for (size_t i = 0; i < n; i++) big[i] = does(r, "deep") ? '[' : ",{}"[i % 3];
        if (does(r, "many")) memcpy(big, "[{}", 3), snprintf(big + n - n % 3, 2, "]");
        else big[n] = 0;
        text(r, 200, "", big);
        free(big);
    } else if (does(r, "unknown")) {
        code = "X-Error-Message: Invalid credentials in Authorization header\r\n";
        text(r, 401, code, "{\"error\":\"Invalid credentials in Authorization header\"}");
    } else if (does(r, "busy")) {
        snprintf(more, sizeof more, "RateLimit: \"api\";r=2999;t=%lld\r\n", r->n);
        text(r, 502, more, "{\"error\":\"not now\"}");
    } else if (does(r, "retry") || does(r, "rate")) {
        if (does(r, "retry")) snprintf(more, sizeof more, "Retry-After: %lld\r\n", r->n);
        else snprintf(more, sizeof more, "RateLimit: \"api\";r=0;t=%lld\r\nRetry-After: 300\r\n", r->n);
        text(r, 429, more, "{\"error\":\"too many\"}");
    } else if (does(r, "html")) text(r, 200, "", "<html><body>please log in</body></html>");
    else if (does(r, "loop")) head(r, 302, "Location: %s\r\nContent-Length: 0\r\n\r\n", r->target);
    else if (does(r, "absolute"))
        head(r, 302, "X-Repo-Commit: " COMMIT "\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", r->word);
    else if (does(r, "drop")) r->closed = true;
    else return false;
    return true;
}

static void serve(request *r)
{
    char repo[256], path[LINE * 2];
    const char *rest, *p = r->path;
    find_rule(r);
    if (misbehaves(r)) return;
    if (r->port == 0 && strncmp(p, "/api/models/", 12) == 0) return api(r, p + 12);
    if (r->port == 0 && strncmp(p, "/api/resolve-cache/models/", 26) == 0 && repo_of(repo, sizeof repo, p + 26, &rest))
        return resolve(r, repo, rest);
    if (strncmp(p, "/v2/", 4) == 0) {
        const char *blob = strstr(p, "/blobs/"), *manifest = strstr(p, "/manifests/");
        if (blob && r->port == 0) {
            head(r, 307, "Location: http://127.0.0.1:%d/blobs/%s\r\nContent-Length: 0\r\n\r\n", ports[1], blob + 7);
            return;
        }
        if (!manifest) return text(r, 404, "", "{}");
        snprintf(path, sizeof path, "%s/ollama/%.*s/%s", folder, (int)(manifest - p - 4), p + 4, manifest + 11);
        return file(r, path, "m", "");
    }
    if (r->port == 1 && strncmp(p, "/store/", 7) == 0) {
        snprintf(path, sizeof path, "%s/repos/%s", folder, p + 7);
        return file(r, path, "of-the-store", "");
    }
    if (r->port == 1 && strncmp(p, "/blobs/sha256:", 14) == 0) {
        snprintf(path, sizeof path, "%s/ollama/blobs/sha256-%s", folder, p + 14);
        return file(r, path, "b", "");
    }
    if (r->port == 1 && strncmp(p, "/plain/", 7) == 0) {
        snprintf(path, sizeof path, "%s%s", folder, p);
        return file(r, path, "plain", "");
    }
    if (r->port == 0 && repo_of(repo, sizeof repo, p + 1, &rest) && strncmp(rest, "resolve/", 8) == 0)
        return resolve(r, repo, rest + 8);
    text(r, 404, "", "{\"error\":\"not found\"}");
}

static bool read_request(request *r, FILE *in)
{
    char line[LINE];
    if (!fgets(line, sizeof line, in) || sscanf(line, "%15s %8000s", r->method, r->target) != 2) return false;
    snprintf(r->path, sizeof r->path, "%.*s", (int)strcspn(r->target, "?"), r->target);
    unquote(r->path);
    snprintf(r->range, sizeof r->range, "-");
    while (fgets(line, sizeof line, in) && strcmp(line, "\r\n") != 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (strncasecmp(line, "Range: bytes=", 13) == 0) {
            snprintf(r->range, sizeof r->range, "%.100s", line + 13);
            r->last = ~0ull >> 1;
            r->ranged = sscanf(line + 13, "%llu-%llu", &r->first, &r->last) >= 1;
        }
        if (strncasecmp(line, "Authorization: ", 15) == 0) {
            snprintf(r->auth, sizeof r->auth, "%.500s", line + 15);
            for (char *c = r->auth; *c; c++)
                if (*c == ' ') *c = '_';
        }
    }
    return true;
}

static void *connection(void *arg)
{
    long packed = (long)(intptr_t)arg;
    int fd = (int)(packed >> 1), port = (int)(packed & 1);
    FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
    for (bool more = true; in && out && more;) {
        request *r = calloc(1, sizeof *r);
        r->fd = fd;
        r->out = out;
        r->port = port;
        more = read_request(r, in);
        if (more) serve(r);
        if (more && (fflush(out) != 0 || r->closed)) more = false;
        free(r);
    }
    if (out) fclose(out);
    if (in) fclose(in);
    return NULL;
}

static int listen_on(int *port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 64) != 0) return -1;
    getsockname(fd, (struct sockaddr *)&a, &n);
    *port = ntohs(a.sin_port);
    return fd;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    folder = argv[1];
    signal(SIGPIPE, SIG_IGN);
    struct pollfd p[2];
    for (int i = 0; i < 2; i++) p[i] = (struct pollfd){ .fd = listen_on(&ports[i]), .events = POLLIN };
    if (p[0].fd < 0 || p[1].fd < 0) return 2;
    printf("%d %d\n", ports[0], ports[1]);
    fflush(stdout);
    pid_t parent = getppid();
    for (;;) {
        if (poll(p, 2, 1000) < 0 && errno != EINTR) return 1;
        if (getppid() != parent) return 0; /* the script is gone */
        for (int i = 0; i < 2; i++) {
            if (!(p[i].revents & POLLIN)) continue;
            int fd = accept4(p[i].fd, NULL, NULL, SOCK_CLOEXEC);
            pthread_t t;
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
            if (pthread_create(&t, NULL, connection, (void *)(intptr_t)((long)fd << 1 | i)) == 0) pthread_detach(t);
            else close(fd);
        }
    }
}
