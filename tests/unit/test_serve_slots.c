/* Slot files of hone serve: what one server saved another finds, and answers the same; names lead nowhere but into the
 * folder; what is damaged, missing or in use is told. */
#define _GNU_SOURCE
#include "serve_site.h"

#include <sys/stat.h>

static char dir[] = "/tmp/hone-test-XXXXXX";

static const char *in(const char *name)
{
    static char path[4][200];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

static int make_folder(void **state) { return mkdtemp(dir) ? 0 : -1; }
static int drop_folder(void **state)
{
    static const char *const names[] = { "talk.bin", "link", "text", "m.gguf" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in(names[i]));
    return rmdir(dir);
}

static void begin(running *r)
{
    r->p.slot_dir = dir;
    r->p.shelf.strict = true;
    start(r, 1);
}

/* The text of an answer to a prompt of a hundred tokens and more; malloc'ed. */
static char *ask_long(int port, json_int_t *cached)
{
    char body[3000],
        *at = body + sprintf(body, "{\"temperature\":0,\"max_tokens\":12,\"ignore_eos\":true,\"prompt\":\"");
    for (int i = 0; i < 40; i++) at += sprintf(at, "The cat sat on mat %d. ", i % 7);
    strcpy(at, "\"}");
    json_t *j = ask_json(port, "POST", "/v1/completions", body, 200);
    const json_t *usage = json_object_get(j, "usage");
    *cached = json_integer_value(json_object_get(json_object_get(usage, "prompt_tokens_details"), "cached_tokens"));
    char *text = strdup(json_string_value(json_object_get(json_array_get(json_object_get(j, "choices"), 0), "text")));
    json_decref(j);
    return text;
}

static json_int_t number(int port, const char *path, const char *body, const char *name)
{
    json_t *j = ask_json(port, "POST", path, body, 200);
    if (!json_is_integer(json_object_get(j, name))) fail_msg("%s: no %s in the answer", path, name);
    json_int_t n = json_integer_value(json_object_get(j, name));
    json_decref(j);
    return n;
}

#define TALK "{\"filename\":\"talk.bin\"}"

static void another_server_goes_on(void **state)
{
    running one = { 0 }, two = { 0 };
    json_int_t cached;
    struct stat sb;
    begin(&one);
    char *first = ask_long(one.port, &cached);
    assert_int_equal(cached, 0);
    json_int_t n = number(one.port, "/slots/0?action=save", TALK, "n_saved");
    assert_true(n > 100);
    assert_int_equal(number(one.port, "/slots/0?action=save", TALK, "n_saved"), n); /* over itself */
    assert_int_equal(number(one.port, "/slots/0?action=erase", NULL, "n_erased"), n);
    assert_int_equal(number(one.port, "/slots/0?action=erase", NULL, "n_erased"), 0);
    json_decref(ask_json(one.port, "POST", "/slots/0?action=save", TALK, 400)); /* there is nothing to save */
    stop(&one);
    assert_int_equal(stat(in("talk.bin"), &sb), 0);
    assert_int_equal(sb.st_mode & 0777, 0600);

    begin(&two);
    json_t *j = ask_json(two.port, "POST", "/slots/0?action=restore", TALK, 200);
    assert_int_equal(json_integer_value(json_object_get(j, "n_restored")), n);
    assert_int_equal(json_integer_value(json_object_get(j, "n_read")), sb.st_size);
    assert_string_equal(json_string_value(json_object_get(j, "filename")), "talk.bin");
    assert_true(json_real_value(json_object_get(json_object_get(j, "timings"), "restore_ms")) >= 0);
    json_decref(j);
    char *again = ask_long(two.port, &cached);
    assert_true(cached > 100);
    assert_string_equal(again, first);
    stop(&two);
    free(first);
    free(again);
}

/* A request gets the slot that it names, where that is idle, and is told which it had; what it says does not depend on
 * it. */
static void a_slot_is_named(void **state)
{
    static const int order[] = { 2, 0, 1, 2 };
    running r = { .p.slot_dir = dir };
    char body[200], path[40], *first = NULL;
    start(&r, 3);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        snprintf(
            body, sizeof body,
            "{\"prompt\":\"The cat sat\",\"n_predict\":8,\"temperature\":0,\"ignore_eos\":true,\"cache_prompt\":true,"
            "\"id_slot\":%d}",
            order[i]);
        json_t *o = ask_json(r.port, "POST", "/completion", body, 200);
        const char *said = json_string_value(json_object_get(o, "content"));
        assert_int_equal(json_integer_value(json_object_get(o, "id_slot")), order[i]);
        if (first) assert_string_equal(said, first);
        else first = strdup(said);
        json_decref(o);
        snprintf(path, sizeof path, "/slots/%d?action=save", order[i]);
        assert_true(number(r.port, path, TALK, "n_saved") > 8);
    }
    assert_true(number(r.port, "/slots/1?action=erase", NULL, "n_erased") > 8);
    assert_true(number(r.port, "/slots/1?action=restore", TALK, "n_restored") > 8);
    for (int i = -1; i < 100; i += 100) { /* any; one that is not there */
        snprintf(body, sizeof body, "{\"prompt\":\"The dog\",\"n_predict\":2,\"id_slot\":%d}", i);
        json_int_t slot = number(r.port, "/completion", body, "id_slot");
        assert_true(slot >= 0 && slot < 3);
    }
    stop(&r);
    free(first);
}

static void what_is_wrong_is_told(void **state)
{
    char long_name[200];
    snprintf(long_name, sizeof long_name, "{\"filename\":\"%0129d\"}", 1);
    const struct {
        const char *path, *body;
        int status;
    } rows[] = {
        { "/slots/0?action=restore", "{\"filename\":\"none\"}", 404 },
        { "/slots/0?action=restore", "{\"filename\":\"link\"}", 404 },
        { "/slots/0?action=save", "{\"filename\":\"link\"}", 400 },
        { "/slots/0?action=restore", "{\"filename\":\"text\"}", 400 },
        { "/slots/0?action=save", "{\"filename\":\"text\"}", 400 },
        { "/slots/0?action=restore", "{\"filename\":\"../talk.bin\"}", 400 },
        { "/slots/0?action=save", "{\"filename\":\"/tmp/talk.bin\"}", 400 },
        { "/slots/0?action=save", "{\"filename\":\".talk\"}", 400 },
        { "/slots/0?action=save", "{\"filename\":\"..\"}", 400 },
        { "/slots/0?action=save", "{\"filename\":\"a.hone-tmp-0123456789abcdef\"}", 400 },
        { "/slots/0?action=save", "{\"filename\":5}", 400 },
        { "/slots/0?action=save", "[]", 400 },
        { "/slots/0?action=erase", "[", 400 },
        { "/slots/0?action=restore&model=none", TALK, 404 },
        { "/slots/0?action=restore&model=chat:none", TALK, 404 },
        { "/slots/0?action=save", "{\"filename\":\"a\\u0000b\"}", 400 },
        { "/slots/0?action=save", "{\"filename\":\"\"}", 400 },
        { "/slots/0?action=save", long_name, 400 },
        { "/slots/0?action=save", "{}", 400 },
        { "/slots/0?action=save", "[", 400 },
        { "/slots/0?action=copy", TALK, 400 },
        { "/slots/0", TALK, 400 },
        { "/slots/1?action=save", TALK, 404 },
        { "/slots/-1?action=save", TALK, 404 },
        { "/slots/99999999999?action=save", TALK, 404 },
        { "/slots/?action=save", TALK, 404 },
    };
    running r = { 0 };
    json_int_t cached;
    FILE *f = fopen(in("text"), "w");
    assert_true(f && fputs("a diary\n", f) >= 0 && fclose(f) == 0);
    assert_int_equal(symlink("text", in("link")), 0);
    begin(&r);
    free(ask_long(r.port, &cached));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        json_decref(ask_json(r.port, "POST", rows[i].path, rows[i].body, rows[i].status));
    char said[20] = "";
    f = fopen(in("text"), "r");
    assert_true(f && fgets(said, sizeof said, f));
    fclose(f);
    assert_string_equal(said, "a diary\n");

    /* cut short */
    number(r.port, "/slots/0?action=save", TALK, "n_saved");
    assert_int_equal(truncate(in("talk.bin"), 500), 0);
    json_t *j = ask_json(r.port, "POST", "/slots/0?action=restore", TALK, 400);
    const char *words = json_string_value(json_object_get(json_object_get(j, "error"), "message"));
    assert_true(strncmp(words, "talk.bin: ", 10) == 0 && !strstr(words, dir)); /* where it lies is not told */
    json_decref(j);

    /* in use */
    static const char busy[] = "{\"prompt\":\"Once\",\"max_tokens\":450,\"ignore_eos\":true,\"stream\":true}";
    char first;
    int fd = client_connect(r.port);
    assert_true(fd >= 0 && client_request(fd, "POST", "/v1/completions", NULL, busy));
    assert_int_equal(recv(fd, &first, 1, 0), 1);
    client_answer a = client_ask(r.port, "POST", "/slots/0?action=erase", NULL, NULL);
    if (metric(r.port, "hone_requests_running") > 0) assert_int_equal(a.status, 409);
    client_free(&a);
    close(fd);
    stop(&r);

    running closed = { 0 };
    start(&closed, 1);
    json_decref(ask_json(closed.port, "POST", "/slots/0?action=save", TALK, 501));
    stop(&closed);
}

/* ---- beside others ---------------------------------------------------------------------------------------------- */

/* A request that is being answered: its connection, of which the first byte was read. */
static int begin_long(int port, const char *model)
{
    char body[200], first;
    snprintf(body, sizeof body,
             "{\"model\":\"%s\",\"prompt\":\"Once\",\"max_tokens\":450,\"ignore_eos\":true,\"stream\":true}", model);
    int fd = client_connect(port);
    assert_true(fd >= 0 && client_request(fd, "POST", "/v1/completions", NULL, body));
    assert_int_equal(recv(fd, &first, 1, 0), 1);
    return fd;
}

static bool runs(int port) { return metric(port, "hone_requests_running") > 0; }

/* Another model waits until this one's request ends: a slot's file does not come between, which waited for the same
 * thread while it kept the model; and whoever goes away waits no longer, so that others can be loaded. */
static void nobody_waits_for_ever(void **state)
{
    bool told = false, free_again = false;
    running r = { .p.shelf = { .n_models = 2, .max_loaded = 1 } };
    begin(&r);
    for (int i = 0; i < 20 && !(told && free_again); i++) {
        int one = begin_long(r.port, "chat"), two = client_connect(r.port);
        assert_true(client_request(two, "POST", "/models/load", NULL, "{\"model\":\"other\"}"));
        for (int k = 0; k < 100 && !told && runs(r.port); k++) {
            client_answer a = client_ask(r.port, "POST", "/slots/0?action=erase", NULL, NULL);
            told = a.status == 503 && strstr(a.body, "another model");
            client_free(&a);
        }
        close(two); /* nobody wants the other model any more */
        json_decref(ask_json(r.port, "POST", "/models/load", "{\"model\":\"chat\"}", 200));
        free_again = free_again || runs(r.port);
        close(one);
        while (runs(r.port)) sched_yield();
    }
    assert_true(told && free_again);

    for (int status = 409; status != 200;) { /* 409: what is left of the last request is still on its way */
        client_answer a = client_ask(r.port, "POST", "/models/unload", NULL, "{\"model\":\"chat\"}");
        status = a.status;
        client_free(&a);
        assert_true(status == 200 || status == 409);
    }
    json_t *j = ask_json(r.port, "POST", "/slots/0?action=save", TALK, 503);
    assert_non_null(strstr(json_string_value(json_object_get(json_object_get(j, "error"), "message")), "/models/load"));
    json_decref(j);
    stop(&r);
}

/* A copy of a slot takes memory: of many that come at once one is made. */
static void one_at_a_time(void **state)
{
    running r = { 0 };
    json_int_t cached;
    int n_busy = 0;
    begin(&r);
    free(ask_long(r.port, &cached));
    for (int i = 0; i < 100 && !n_busy; i++) {
        int fd[8];
        for (int k = 0; k < 8; k++) fd[k] = client_connect(r.port);
        for (int k = 0; k < 8; k++) assert_true(client_request(fd[k], "POST", "/slots/0?action=save", NULL, TALK));
        for (int k = 0; k < 8; k++) {
            client_answer a = client_receive(fd[k]);
            if (a.status == 429) {
                assert_string_equal(client_header(&a, "retry-after"), "1");
                n_busy++;
            } else {
                assert_int_equal(a.status, 200);
            }
            client_free(&a);
        }
    }
    assert_true(n_busy > 0);
    stop(&r);
}

/* Who asked has gone, and the server is told to end, while a slot is being saved: it ends behind it. */
static void it_ends_behind_a_file(void **state)
{
    for (int i = 0; i < 6; i++) {
        running r = { 0 };
        json_int_t cached;
        begin(&r);
        free(ask_long(r.port, &cached));
        unlink(in("talk.bin"));
        int fd = client_connect(r.port);
        assert_true(client_request(fd, "POST", i % 2 ? "/slots/0?action=restore" : "/slots/0?action=save", NULL, TALK));
        for (int k = 0; k < i * 20; k++) sched_yield();
        close(fd);
        stop(&r);
    }
    unlink(in("talk.bin"));
}

/* ---- what clients need not know --------------------------------------------------------------------------------- */

static void folders_are_not_told(void **state)
{
    running r = { 0 };
    json_int_t cached;
    char bytes[65536];
    char path[200];
    snprintf(path, sizeof path, "%s", in("m.gguf"));
    FILE *from = fopen(site_model, "rb"), *to = fopen(path, "wb");
    assert_true(from && to);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, from)) > 0;) assert_int_equal(fwrite(bytes, 1, n, to), n);
    fclose(from);
    assert_int_equal(fclose(to), 0);
    r.path = path;
    r.p.shelf.n_models = 2;
    begin(&r);
    free(ask_long(r.port, &cached));
    client_answer a = client_ask(r.port, "POST", "/slots/0?action=save", NULL, "{\"filename\":\"m.gguf\"}");
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(a.body, "m.gguf"));
    assert_null(strstr(a.body, dir));
    client_free(&a);

    /* a model that cannot be read, wherever that is told */
    unlink(path);
    const struct {
        const char *method, *path, *body;
    } rows[] = { { "POST", "/models/load", "{\"model\":\"other\"}" },
                 { "POST", "/v1/completions", "{\"model\":\"other\",\"prompt\":\"Once\"}" },
                 { "GET", "/v1/models", NULL },
                 { "GET", "/v1/models/other", NULL } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        a = client_ask(r.port, rows[i].method, rows[i].path, NULL, rows[i].body);
        assert_int_equal(a.status, rows[i].body ? 500 : 200);
        assert_non_null(strstr(a.body, "m.gguf"));
        assert_null(strstr(a.body, dir));
        client_free(&a);
    }
    stop(&r);
}

/* As other routes do it. */
static void members_that_are_not_known(void **state)
{
    static const char *const more = "{\"filename\":\"talk.bin\",\"compress\":true,\"none\":null}";
    static const struct {
        const char *path, *body;
    } rows[] = { { "/slots/0?action=erase", "{\"filename\":\"talk.bin\"}" },
                 { "/models/load", "{\"model\":\"chat\",\"speed\":9}" },
                 { "/lora-adapters", "[{\"id\":0,\"scale\":0,\"colour\":1}]" } };
    running r = { 0 }, strict = { .p.limits.strict_fields = true };
    json_int_t cached;
    begin(&r);
    free(ask_long(r.port, &cached));
    client_answer a = client_ask(r.port, "POST", "/slots/0?action=save", NULL, more);
    assert_int_equal(a.status, 200);
    assert_string_equal(client_header(&a, "x-hone-ignored"), "compress");
    client_free(&a);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        a = client_ask(r.port, "POST", rows[i].path, NULL, rows[i].body);
        assert_non_null(client_header(&a, "x-hone-ignored"));
        client_free(&a);
    }
    stop(&r);

    begin(&strict);
    free(ask_long(strict.port, &cached));
    json_t *j = ask_json(strict.port, "POST", "/slots/0?action=save", more, 400);
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "error"), "param")), "compress");
    json_decref(j);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        json_decref(ask_json(strict.port, "POST", rows[i].path, rows[i].body, 400));
    stop(&strict);
}

static void words_lose_their_folders(void **state)
{
    static const char *const rows[][2] = {
        { "/srv/slots/talk.bin: not a snapshot", "talk.bin: not a snapshot" },
        { "/srv/my models/x.gguf: magic", "x.gguf: magic" },
        { "the snapshot is /a/b, and its model /c/d: two", "the snapshot is b, and its model d: two" },
        { "of '/a/b c/d' (/e/f)", "of 'd' (f)" },
        { "3 and/or 4 tokens/s of 1/2", "3 and/or 4 tokens/s of 1/2" },
        { "models/x.gguf: bad", "models/x.gguf: bad" },
        { "[/a/b] {/c/d", "[b] {d" },
        { "", "" },
        { "/", "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s", rows[i][0]);
        hn_hide_folders(text);
        assert_string_equal(text, rows[i][1]);
    }
    char text[] = "models/x.gguf is no models/y, but models/x.gguf";
    hn_hide_folder_of(text, "models/x.gguf");
    assert_string_equal(text, "x.gguf is no y, but x.gguf");
    char quoted[] = "/a'b (c/x.gguf: bad; (/a'b (c/y) and sub/a'b";
    hn_hide_folder_of(quoted, "/a'b (c/x.gguf");
    assert_string_equal(quoted, "x.gguf: bad; (y) and sub/a'b");
}

/* What balancers ask before they send: 503 where no slot is idle, as llama-server has it. */
static void none_is_idle(void **state)
{
    static const char much[] = "{\"prompt\":\"Once\",\"ignore_eos\":true,\"n_probs\":64,\"stream\":true}";
    running r = { .p.slots = true };
    char first;
    start(&r, 1);
    json_decref(ask_json(r.port, "GET", "/slots?fail_on_no_slot=1", NULL, 200));
    int fd = client_connect(r.port); /* what is not taken holds the slot */
    assert_true(fd >= 0 && client_request(fd, "POST", "/completion", NULL, much));
    assert_int_equal(recv(fd, &first, 1, 0), 1);
    client_answer a = client_ask(r.port, "GET", "/slots?fail_on_no_slot=1", NULL, NULL);
    assert_int_equal(a.status, 503);
    assert_non_null(strstr(a.body, "no slot available"));
    client_free(&a);
    json_decref(ask_json(r.port, "GET", "/slots", NULL, 200));
    json_decref(ask_json(r.port, "GET", "/slots?fail_on_no_slot=", NULL, 200));
    close(fd);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_server_goes_on),
        cmocka_unit_test(a_slot_is_named),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(none_is_idle),
        cmocka_unit_test(it_ends_behind_a_file),
        cmocka_unit_test(folders_are_not_told),
        cmocka_unit_test(members_that_are_not_known),
        cmocka_unit_test(words_lose_their_folders),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
