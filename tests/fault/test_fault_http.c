/* Out of memory in the HTTP server: the k-th allocation of its thread fails, for k = 0, 1, … until none is left,
 * libevent's included. A client may then be told so (503) or find its connection closed; never may it get a whole
 * answer that is not the right one, nobody may wait for ever, and the server goes on. */
#include "serve/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HN_FAILING_ALONE
#include "fail_each.h"

#include "../unit/http_client.h"

#include <event2/event.h>
#include <pthread.h>

enum { BODY = 9000, LONG = 300000 };

static char body[LONG + 1];
static hn_http *server;
static const char *address;
static _Atomic int n_wrong, n_lost, n_posted;

static void handle(void *arg, hn_exchange *x)
{
    hone_str b = hn_exchange_body(x);
    hn_exchange_set_header(x, "x-mine", "yes");
    if (strcmp(hn_exchange_path(x), "/long") == 0) {
        hn_exchange_begin(x, 200, "text/plain");
        for (size_t o = 0; o < LONG; o += LONG / 10) hn_exchange_send(x, body + o, LONG / 10);
        hn_exchange_end(x, true);
    } else hn_exchange_reply(x, 200, "text/plain", b.ptr, b.len);
}

static const char *methods(void *arg, const char *path) { return strcmp(path, "/none") == 0 ? NULL : "GET, POST"; }
static void posted(void *arg) { n_posted++; }

/* One request: the right answer, or none. */
static void expect(const char *bytes, int status, const char *want, size_t n)
{
    static answer a;
    int fd = dial_room(address, 0);
    put(fd, bytes);
    read_answer(fd, &a, false);
    close(fd);
    if (a.status == status && a.whole) {
        n_wrong += want && (a.n_body != n || memcmp(a.body, want, n) != 0 || !header(&a, "x-mine"));
        n_wrong += status == 401 && !header(&a, "www-authenticate");
    } else {
        n_lost++;
        n_wrong += !(a.status == 0 || a.status == 503 || (a.status == status && !a.whole));
    }
}

static void *client(void *arg)
{
    static char text[BODY + 1000];
    size_t n = (size_t)sprintf(
        text, "POST /echo HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: key\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < BODY / 1000; i++) n += (size_t)sprintf(text + n, "3e8\r\n%.1000s\r\n", body + 1000 * i);
    sprintf(text + n, "0\r\n\r\n");
    expect(text, 200, body, BODY);
    expect("GET /long HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: key\r\n\r\n", 200, body, LONG);
    expect("GET /none HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: key\r\n\r\n", 404, NULL, 0);
    expect("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n", 401, NULL, 0);
    expect("nonsense\r\n\r\n", 400, NULL, 0);
    hn_http_stop(server);
    return NULL;
}

static hone_status serve(hone_error *err)
{
    static const char *const origins[] = { "https://app.example" };
    const hn_http_params p = { .handler = handle,
                               .methods = methods,
                               .api_key = "key",
                               .cors_origin = origins,
                               .n_cors_origin = 1,
                               .write_ms = 400 };
    n_wrong = n_lost = n_posted = 0;
    hone_status st = hn_http_open(&server, &p, err);
    if (st != HONE_OK) {
        assert_null(server);
        return st;
    }
    address = hn_http_address(server);
    pthread_t t;
    if (!hn_http_post(server, posted, NULL) || !hn_http_every(server, 1000, posted, NULL)) {
        hn_http_free(server);
        return HN_FAIL(err, HONE_E_NOMEM, "a task or a timer");
    }
    assert_int_equal(pthread_create(&t, NULL, client, NULL), 0);
    st = hn_http_run(server, err);
    pthread_join(t, NULL);
    hn_http_free(server);
    assert_int_equal(n_wrong, 0);
    assert_true(n_posted >= 1);
    if (st == HONE_OK && n_lost) st = HN_FAIL(err, HONE_E_NOMEM, "%d answers were lost", n_lost);
    return st;
}

static void test_serve(void **state) { fail_each(serve); }

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_serve) };
    event_set_mem_functions(malloc, realloc, free);
    for (size_t i = 0; i < LONG; i++) body[i] = (char)('a' + i % 23);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
