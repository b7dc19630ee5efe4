/* What one client may cost the others: bodies, orders, embeddings and formats have their bounds; and streams that have
 * nothing to say for a while are heard all the same. */
#define _GNU_SOURCE
#include "serve_site.h"

#include "serve/job.h"

/* ---- orders ----------------------------------------------------------------------------------------------------- */

/* What the event thread reads itself is small: more is refused before it is read. */
static void orders_are_short(void **state)
{
    enum { MOST = 64 << 10 };
    static const struct {
        const char *path, *body;
        int status; /* with as many bytes as there may be */
    } rows[] = { { "/lora-adapters", "[]", 200 },
                 { "/models/load", "{\"model\":\"chat\"}", 200 },
                 { "/models/unload", "{\"model\":\"chat\"}", 200 },
                 { "/v1/load_lora_adapter", "{\"lora_name\":\"a\",\"lora_path\":\"a.gguf\"}", 404 },
                 { "/v1/unload_lora_adapter", "{\"lora_name\":\"a\"}", 404 },
                 { "/api/show", "{\"model\":\"chat\"}", 200 } };
    running r = { .p.ollama = true, .p.shelf.lora_folder = "models" };
    char *body = malloc(MOST + 2);
    start(&r, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int more = 0; more < 2; more++) {
            memset(body, ' ', MOST + 1);
            memcpy(body, rows[i].body, strlen(rows[i].body));
            body[MOST + more] = 0;
            client_answer a = client_ask(r.port, "POST", rows[i].path, NULL, body);
            if (a.status != (more ? 413 : rows[i].status))
                fail_msg("%s, %d: status %d: %s", rows[i].path, more, a.status, a.body);
            client_free(&a);
        }
    free(body);
    stop(&r);
}

/* ---- bodies ----------------------------------------------------------------------------------------------------- */

/* A stream that lasts does not keep the bytes of its request, which count for all. */
static void streams_drop_their_bodies(void **state)
{
    enum { BODY = 16 << 10, MANY = 40 };
    running r = { .p.http.max_body = BODY };
    char *body = malloc(BODY + 1), head[16];
    int fd[MANY];
    memset(body, ' ', BODY);
    body[BODY] = 0;
    static const char asked[] = "{\"prompt\":\"The cat\",\"ignore_eos\":true,\"stream\":true}";
    memcpy(body, asked, strlen(asked));
    start(&r, 1);
    for (int i = 0; i < MANY; i++) {
        fd[i] = client_connect(r.port);
        assert_true(client_request(fd[i], "POST", "/v1/completions", NULL, body));
        assert_int_equal(recv(fd[i], head, 12, MSG_WAITALL), 12);
        if (memcmp(head, "HTTP/1.1 200", 12) != 0) fail_msg("request %d: %.12s", i, head);
    }
    for (int i = 0; i < MANY; i++) close(fd[i]);
    free(body);
    await_rest(r.port, MANY);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(orders_are_short),
                                        cmocka_unit_test(streams_drop_their_bodies) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
