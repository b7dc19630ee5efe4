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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(orders_are_short) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
