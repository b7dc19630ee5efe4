/* Out of memory in hone serve: the k-th allocation of a request fails, on whichever thread it falls, for k = 0, 1, …
 * until none is left. The client gets the right answer, an error in words, or a broken one; never a whole answer that
 * is not the right one, and never none at all for long; the server goes on, and nothing of the request stays. */
#define _GNU_SOURCE
#include "serve/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing.h"

#include "../unit/http_client.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>

enum { PATIENCE_S = 5, TEXT = 20000 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const char *address; /* the server's */
    hone_status st;
    hone_error err;
} it = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void on_ready(void *arg, const char *address)
{
    pthread_mutex_lock(&it.lock);
    it.address = address;
    pthread_cond_broadcast(&it.changed);
    pthread_mutex_unlock(&it.lock);
}

static void *serve(void *arg)
{
    int code;
    it.st = hn_serve(arg, &code, &it.err);
    if (it.st != HONE_OK) on_ready(NULL, "none");
    return NULL;
}

/* All values of "text", "content" and "embedding" of a body, one behind the other. */
static void take_texts(const char *body, char *dst)
{
    static const char *const names[] = { "\"text\":\"", "\"content\":\"", "\"embedding\":[" };
    size_t n = 0;
    for (const char *p = body; *p; p++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            size_t k = strlen(names[i]), len = 0;
            if (strncmp(p, names[i], k) != 0) continue;
            len = strcspn(p + k, i == 2 ? "]" : "\"");
            assert_true(n + len + 1 < TEXT);
            memcpy(dst + n, p + k, len);
            n += len;
        }
    dst[n] = 0;
}

/* One request; false: it was not answered with 200, or not wholly. */
static bool ask_texts(const char *path, const char *body, bool stream, char *texts)
{
    static answer a;
    static char bytes[2000];
    snprintf(bytes, sizeof bytes,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             path, strlen(body), body);
    uint64_t begin = hn_serve_ns();
    int fd = dial_room(it.address, 0);
    assert_true(fd >= 0);
    put(fd, bytes);
    read_answer(fd, &a, false);
    close(fd);
    if (hn_serve_ns() - begin > (uint64_t)PATIENCE_S * 1000000000) fail_msg("no answer of %s", path);
    if (a.status != 200) {
        if (a.status != 0 && a.status != 500 && a.status != 503) fail_msg("status %d: %s", a.status, a.body);
        if (a.status == 500 && a.whole && a.n_body && !strstr(a.body, "memory")) fail_msg("%s", a.body);
        return false;
    }
    take_texts(a.body, texts);
    return a.whole && !(stream && strstr(a.body, "\"error\""));
}

static void each(const char *path, const char *body, bool stream)
{
    static char want[TEXT], is[TEXT];
    long k = 0, lost = 0;
    assert_true(ask_texts(path, body, stream, want)); /* what is made once, and kept, is there then */
    assert_true(*want);
    for (;; k++) {
        n_failed = 0;
        countdown = k;
        bool ok = ask_texts(path, body, stream, is);
        countdown = -1;
        if (ok && strcmp(is, want) != 0) fail_msg("allocation %ld: \"%s\", expected \"%s\"", k, is, want);
        if (!ok && !n_failed) fail_msg("allocation %ld did not fail, and there was no answer", k);
        lost += !ok;
        if (!n_failed) break;
        assert_true(k < 10000);
    }
    assert_true(lost > 0);
    print_message("%s: %ld allocations, %ld of them dispensable\n", path, k, k - lost);
    assert_true(ask_texts(path, body, stream, is));
    assert_string_equal(is, want);
}

static void test_serve(void **state)
{
    static const struct hn_shelf_model model = { .name = "chat", .path = "models/hone-chat.gguf" };
    static hn_serve_params p;
    hone_error err;
    pthread_t t;
    p.shelf = (hn_shelf_params){ .models = &model, .n_models = 1, .pooling = HONE_POOL_MEAN };
    p.shelf.model.packed = "off";
    p.shelf.scheduler.session = (hone_session_params){ .n_ctx = 256, .n_seq = 2, .n_chunk = 64 };
    p.limits.n_slots = 2;
    hone_sampler_defaults(&p.limits.defaults);
    p.http.write_ms = 200; /* libevent may have lost what tells it to write */
    p.timeout_s = 60;
    p.drain_s = 5;
    p.ready = on_ready;
    assert_int_equal(hone_context_new(&p.shelf.ctx, &(hone_context_params){ .n_threads = 1 }, &err), HONE_OK);
    assert_int_equal(pthread_create(&t, NULL, serve, &p), 0);
    pthread_mutex_lock(&it.lock);
    while (!it.address) pthread_cond_wait(&it.changed, &it.lock);
    pthread_mutex_unlock(&it.lock);
    if (it.st != HONE_OK) fail_msg("%s", it.err.message);

    each("/v1/completions", "{\"prompt\":\"The cat\",\"max_tokens\":3,\"seed\":1,\"n\":2,\"echo\":true,\"logprobs\":2}",
         false);
    each("/v1/messages",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"max_tokens\":3,\"stream\":true,"
         "\"temperature\":0}",
         true);
    each("/v1/chat/completions",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"max_tokens\":9,\"seed\":1,\"stop\":[\"zz\"],"
         "\"logprobs\":true,\"top_logprobs\":1,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":"
         "\"x\",\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[\"up\",\"down\"]}}}}}}",
         false);
    each("/v1/embeddings", "{\"input\":[\"The cat\",\"a ball\"]}", false);

    assert_int_equal(kill(getpid(), SIGTERM), 0);
    pthread_join(t, NULL);
    hone_context_free(p.shelf.ctx);
    if (it.st != HONE_OK) fail_msg("%s", it.err.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_serve) };
    event_set_mem_functions(malloc, realloc, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
