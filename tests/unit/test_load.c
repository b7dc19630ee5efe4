/* Clients of a server (lab/bench/load.c) against one that is made here: it answers as it is told to, and notes what it
 * was asked. */
#define _GNU_SOURCE
#include "lab/bench/load.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum how {
    HONEST,
    COUNTS,
    TIRES,
    FAILS,
    SLOW,
    SILENT,
    UNCOUNTED,
    BOASTS,
    THIN,
    ESCAPES,
    LONG,
    NAMES,
    NAMES_FEWER,
    NAMES_OTHERS,
    NAMES_SILENT
};
enum { MOST = 64, SLOW_US = 40000, LONG_BYTES = 200000 };

typedef struct fake {
    int fd, port;
    pthread_t thread;
    enum how how;
    int n, n_left;          /* so many answers, where it tires */
    char prompt[MOST][512]; /* of the requests, as they came */
} fake;

/* A request's head and body; false: nobody wants anything. */
static bool read_request(int fd, char *text, size_t cap)
{
    size_t n = 0, want = 0;
    while (n + 1 < cap) {
        ssize_t k = read(fd, text + n, cap - 1 - n);
        if (k <= 0) return false;
        text[n += (size_t)k] = 0;
        char *end = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
        if (!end || !length) continue;
        want = (size_t)(end + 4 - text) + strtoul(length + 16, NULL, 10);
        if (n >= want) return true;
    }
    return false;
}

static void say(int fd, const char *text)
{
    for (size_t n = strlen(text); n;) {
        ssize_t k = write(fd, text, n);
        if (k <= 0) return;
        text += k;
        n -= (size_t)k;
    }
}

static void answer(fake *f, int fd)
{
    char text[8192], word[64], all[1024];
    if (!read_request(fd, text, sizeof text) || f->n == MOST) return;
    char *prompt = strstr(text, "\"prompt\":\"") + 10;
    snprintf(f->prompt[f->n], sizeof f->prompt[0], "%.*s", (int)strcspn(prompt, "\""), prompt);
    uint64_t h = hn_fnv1a(HN_FNV_INIT, f->prompt[f->n], strlen(f->prompt[f->n]));
    f->n++;
    if (f->how == FAILS || (f->how == TIRES && f->n_left-- <= 0)) {
        say(fd, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    snprintf(word, sizeof word, "%016llx %d", (unsigned long long)h, f->how == COUNTS ? f->n : 0);
    if (f->how == SLOW) usleep(SLOW_US);
    const bool thin = f->how == THIN || f->how >= NAMES;
    if (f->how == SILENT) word[0] = word[4] = 0;
    if (thin) word[f->how != NAMES_SILENT] = word[4] = 0;
    /* the same text, written in other ways: U+00E4, U+1F600 in two halves, a slash */
    if (f->how != SILENT && !thin)
        snprintf(word + strlen(word), 32, "%s",
                 f->how == ESCAPES ? "\\u00e4\\uD83D\\ude00\\/" : "\xC3\xA4\xF0\x9F\x98\x80/");
    char usage[96] = "\"usage\":null";
    if (f->how != UNCOUNTED)
        snprintf(usage, sizeof usage, "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":%d}",
                 f->how == BOASTS ? 3
                 : thin           ? 5
                                  : 2);
    const char *named = "";
    const bool again = f->how >= NAMES && strstr(text, "\"logprobs\":1");
    if (again && f->how == NAMES_OTHERS) word[0] = 'x'; /* of another text */
    if (again)
        named = f->how != NAMES_FEWER ? ",\"logprobs\":{\"tokens\":[\"0\",\"\",\"\",\"\",\"\"]}"
                                      : ",\"logprobs\":{\"tokens\":[\"0\"]}";
    if (strstr(text, "\"stream\":true"))
        snprintf(all, sizeof all,
                 "data: {\"choices\":[{\"text\":\"%.4s\"}]}\n\ndata: {\"choices\":[{\"text\":\"%s\"}]}\n\n"
                 "data: {\"choices\":[],%s}\n\ndata: [DONE]\n\n",
                 word, word + 4, usage);
    else snprintf(all, sizeof all, "{\"choices\":[{\"text\":\"%s\"%s}],%s}\n", word, named, usage);
    char head[128];
    const size_t more = f->how == LONG ? LONG_BYTES : 0;
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", strlen(all) + more);
    say(fd, head);
    if (more) { /* more of the text, at its beginning */
        char *at = strstr(all, "\"text\":\"") + 8, began[64], *rest = calloc(1, more + 1);
        assert_non_null(rest);
        snprintf(began, sizeof began, "%.*s", (int)(at - all), all);
        memset(rest, 'a', more);
        say(fd, began);
        say(fd, rest);
        say(fd, at);
        free(rest);
    } else say(fd, all);
}

static void *serve(void *arg)
{
    fake *f = arg;
    for (int fd; (fd = accept(f->fd, NULL, NULL)) >= 0; close(fd)) answer(f, fd);
    return NULL;
}

static void start(fake *f)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    *f = (fake){ .fd = socket(AF_INET, SOCK_STREAM, 0) };
    assert_true(f->fd >= 0);
    assert_int_equal(bind(f->fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(f->fd, 64), 0);
    assert_int_equal(getsockname(f->fd, (struct sockaddr *)&at, &n), 0);
    f->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
}

static void stop(fake *f)
{
    shutdown(f->fd, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    close(f->fd);
}

static hn_load_params ask_of(const fake *f, char url[64])
{
    snprintf(url, 64, "http://127.0.0.1:%d", f->port);
    return (hn_load_params){
        .url = url, .n_clients = 4, .n_requests = 8, .n_words = 9, .n_gen = 2, .seed = 5, .timeout_s = 60
    };
}

static int times_asked(const fake *f, const char *prompt)
{
    int n = 0;
    for (int i = 0; i < f->n; i++) n += strcmp(f->prompt[i], prompt) == 0;
    return n;
}

/* A server that always says the same; one that says what depends on how often it was asked; one that fails
 * later. */
static void answers_are_asked_for_again(void **state)
{
    (void)state;
    for (enum how how = HONEST; how <= FAILS; how++) {
        static fake f;
        char url[64];
        hone_error err;
        hn_load_run r;
        hn_load_proof proof;
        int32_t changed = 0, failed = 0;
        start(&f);
        hn_load_params p = ask_of(&f, url);
        f.how = how == COUNTS ? how : HONEST;
        assert_int_equal(hn_load(&r, &p, &err), HONE_OK);
        assert_int_equal(r.n, 8);
        assert_int_equal(r.n_failed, 0);
        assert_int_equal(r.n_token, 16);
        assert_int_equal(r.n_prompt, 56);
        for (int i = 0; i < 8; i++) assert_int_equal(r.one[i].n_event, 2);
        hn_load_keep(&proof, &r, p.seed);
        f.how = how;
        p.rate = 1e-6; /* of no account where one asks alone */
        f.n_left = 3;
        hone_status st = hn_load_prove(&proof, &p, &changed, &failed, &err);
        assert_int_equal(st, how == FAILS ? HONE_E_NETWORK : HONE_OK);
        assert_int_equal(changed, how == COUNTS ? HN_LOAD_AGAIN : 0);
        assert_int_equal(failed, how == TIRES ? 1 : 0);
        assert_int_equal(f.n, 8 + HN_LOAD_AGAIN);
        for (int i = 8; i < f.n; i++) { /* in their order, one of each quarter, and each was asked before */
            assert_int_equal(strtol(f.prompt[i], NULL, 10) / 2, i - 8);
            assert_int_equal(times_asked(&f, f.prompt[i]), 2);
        }
        hn_load_free(&r);
        stop(&f);
    }
}

static void a_seed_is_a_series_of_prompts(void **state)
{
    (void)state;
    static fake f;
    char url[64];
    hone_error err;
    uint64_t hash[3][8];
    start(&f);
    hn_load_params p = ask_of(&f, url);
    for (int k = 0; k < 3; k++) { /* the same in one piece, then others */
        hn_load_run r;
        p.whole = k == 1;
        p.seed = k == 2 ? 6 : 5;
        assert_int_equal(hn_load(&r, &p, &err), HONE_OK);
        assert_int_equal(r.n_failed, 0);
        for (int i = 0; i < 8; i++) hash[k][i] = r.one[i].hash;
        hn_load_free(&r);
    }
    stop(&f);
    assert_memory_equal(hash[0], hash[1], sizeof hash[0]);
    for (int i = 0; i < 8; i++) assert_true(hash[0][i] != hash[2][i]);
    for (int i = 0; i < f.n; i++) assert_int_equal(times_asked(&f, f.prompt[i]), i < 16 ? 2 : 1);
}

/* What came cannot be what was asked for: such an answer has no speed, whatever the server says of it. */
static void answers_must_be_there(void **state)
{
    static const struct {
        enum how how;
        int n_gen;
        const char *says;
    } cases[] = {
        { SILENT, 2, "an answer without text" },
        { UNCOUNTED, 2, "an answer without its number of tokens (usage.completion_tokens)" },
        { BOASTS, 2, "3 tokens are counted where 2 were asked for" },
        { THIN, 9, "5 tokens are counted in a text of 1 bytes" },
        { NAMES_OTHERS, 9, "5 tokens are counted in a text of 1 bytes" },
        { NAMES_FEWER, 9, "5 tokens are counted in a text of 1 bytes" },
    };
    (void)state;
    for (int whole = 0; whole < 2; whole++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            static fake f;
            char url[64];
            hone_error err;
            hn_load_run r;
            start(&f);
            hn_load_params p = ask_of(&f, url);
            f.how = cases[i].how;
            p.whole = whole;
            p.n_gen = cases[i].n_gen;
            assert_int_equal(hn_load(&r, &p, &err), HONE_E_FORMAT);
            if (!strstr(err.message, cases[i].says)) fail_msg("%s, expected: %s", err.message, cases[i].says);
            hn_load_free(&r);
            stop(&f);
        }
}

/* An answer in one piece is as long as it is: how many tokens it has stands at its end. */
static void answers_may_be_long(void **state)
{
    (void)state;
    static fake f;
    char url[64];
    hone_error err;
    hn_load_run r;
    start(&f);
    hn_load_params p = ask_of(&f, url);
    f.how = LONG;
    p.whole = true;
    if (hn_load(&r, &p, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(r.n_failed, 0);
    assert_int_equal(r.n_token, 8 * 2);
    for (int i = 0; i < 8; i++) assert_true(r.one[i].n_byte > LONG_BYTES);
    hn_load_free(&r);
    stop(&f);
}

/* Tokens without text, which the server names when it is asked for them: of a few answers, as of none. */
static void tokens_may_have_no_text(void **state)
{
    (void)state;
    for (int way = 0; way < 5; way++) { /* the last: none of them has, and so many were to come */
        static fake f;
        const int whole = way % 2, silent = way / 2;
        char url[64];
        hone_error err;
        hn_load_run r;
        start(&f);
        hn_load_params p = ask_of(&f, url);
        f.how = silent ? NAMES_SILENT : NAMES;
        p.whole = whole;
        p.exact = way == 4;
        p.n_gen = p.exact ? 5 : 9;
        assert_int_equal(hn_load(&r, &p, &err), HONE_OK);
        for (int i = 0; i < 8; i++) assert_true((r.one[i].first == 0) == (silent || whole));
        assert_int_equal(r.n_failed, 0);
        assert_int_equal(r.n_token, 8 * 5);
        assert_int_equal(f.n, 8 + HN_LOAD_AGAIN);
        for (int i = 8; i < f.n; i++) /* one of each quarter, and each was asked before */
            assert_int_equal(strtol(f.prompt[i], NULL, 10) / 2, i - 8);
        hn_load_free(&r);
        stop(&f);
    }
}

/* Two servers may escape the same text in other ways. */
static void texts_are_compared_not_their_json(void **state)
{
    (void)state;
    uint64_t hash[2][8];
    for (int k = 0; k < 2; k++) {
        static fake f;
        char url[64];
        hone_error err;
        hn_load_run r;
        start(&f);
        hn_load_params p = ask_of(&f, url);
        f.how = k ? ESCAPES : HONEST;
        assert_int_equal(hn_load(&r, &p, &err), HONE_OK);
        assert_int_equal(r.n_failed, 0);
        for (int i = 0; i < 8; i++) hash[k][i] = r.one[i].hash;
        assert_int_equal(r.one[0].n_byte, 16 + 2 + 2 + 4 + 1);
        hn_load_free(&r);
        stop(&f);
    }
    assert_memory_equal(hash[0], hash[1], sizeof hash[0]);
}

/* One client for what comes all at once: who comes third has waited for two others. */
static void waiting_for_a_client_is_waiting(void **state)
{
    (void)state;
    static fake f;
    char url[64];
    hone_error err;
    hn_load_run r;
    start(&f);
    hn_load_params p = ask_of(&f, url);
    f.how = SLOW;
    p.rate = 1e6;
    p.n_clients = 1;
    p.n_requests = 3;
    assert_int_equal(hn_load(&r, &p, &err), HONE_OK);
    for (int i = 0; i < 3; i++) {
        uint64_t least = (uint64_t)(i + 1) * SLOW_US * 1000 - 1000000; /* they do not come quite at once */
        assert_true(r.one[i].begun < 1000000);
        assert_true(r.one[i].first > least && r.one[i].end > least);
    }
    hn_load_free(&r);
    stop(&f);
}

static void nobody_is_there(void **state)
{
    (void)state;
    static fake f;
    char url[64];
    hone_error err;
    hn_load_run r;
    start(&f);
    hn_load_params p = ask_of(&f, url);
    stop(&f);
    hone_status st = hn_load(&r, &p, &err);
    assert_int_equal(st, HONE_E_NETWORK);
    assert_non_null(strstr(err.message, url + 7));
    hn_load_free(&r);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = { cmocka_unit_test(answers_are_asked_for_again),
                                        cmocka_unit_test(a_seed_is_a_series_of_prompts),
                                        cmocka_unit_test(tokens_may_have_no_text),
                                        cmocka_unit_test(answers_must_be_there),
                                        cmocka_unit_test(answers_may_be_long),
                                        cmocka_unit_test(texts_are_compared_not_their_json),
                                        cmocka_unit_test(waiting_for_a_client_is_waiting),
                                        cmocka_unit_test(nobody_is_there) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
