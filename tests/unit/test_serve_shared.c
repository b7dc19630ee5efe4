/* What models and clients of one server share: memory for caches, the queue, the computing thread; and what is told of
 * it: to boards, to ollama's programs, to who asks for no thoughts. */
#define _GNU_SOURCE
#include "serve_site.h"
#include "slowed.h"

#include "serve/ask_fields.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#ifdef __linux__
#include <sys/inotify.h>
#endif

static void nap(void) { nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); }

static const char *text_of(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

/* n inputs of k ids; malloc'ed. */
static char *inputs(int n, int k)
{
    char *body = malloc((size_t)n * (size_t)k * 3 + (size_t)n * 3 + 100), *at = body + sprintf(body, "{\"input\":[");
    for (int i = 0; i < n; i++) {
        at += sprintf(at, "%s[%d", i ? "," : "", 10 + i % 80);
        for (int t = 1; t < k; t++) at += sprintf(at, ",%d", 10 + (t + i) % 80);
        at += sprintf(at, "]");
    }
    sprintf(at, "]}");
    return body;
}

/* ---- one account of caches -------------------------------------------------------------------------------------- */

static void greet(int port, const char *model)
{
    char body[200];
    snprintf(body, sizeof body, "{\"model\":\"%s\",\"prompt\":\"The cat\",\"max_tokens\":3}", model);
    json_decref(ask_json(port, "POST", "/v1/completions", body, 200));
}

/* However many models are loaded, and however often: together they have what was said, in equal parts. */
static void models_share_a_budget(void **state)
{
    const uint64_t all = 8 << 20;
    running r = { .p.shelf = { .n_models = 2, .scheduler.session.cache_budget = all } };
    start(&r, 2);
    double one = metric(r.port, "hone_kv_bytes_total");
    assert_true(one == (double)all / 2);
    for (int i = 0; i < 3; i++) {
        greet(r.port, "chat");
        greet(r.port, "other");
        assert_true(metric(r.port, "hone_kv_bytes_total") == (double)all);
        json_decref(
            ask_json(r.port, "POST", "/models/unload", i % 2 ? "{\"model\":\"chat\"}" : "{\"model\":\"other\"}", 200));
        assert_true(metric(r.port, "hone_kv_bytes_total") == one);
    }
    stop(&r);
}

static void nothing(void *arg) {}

typedef struct shop {
    hone_context *ctx;
    hn_desk *desk;
    hn_shelf *shelf;
    hn_shelf_params p;
    struct hn_shelf_model model[2];
} shop;

/* A shelf without a server. p: what is not usual. */
static void open_shop_of(shop *s, const char *path, const hn_shelf_params *p)
{
    hone_error e;
    *s = (shop){ .p = *p, .model = { { .name = "a", .path = path }, { .name = "b", .path = path } } };
    must(hone_context_new(&s->ctx, &(hone_context_params){ .n_threads = 1 }, &e), &e);
    must(hn_desk_new(&s->desk, nothing, NULL, NULL, &e), &e);
    s->p.models = s->model;
    s->p.ctx = s->ctx;
    s->p.desk = s->desk;
    if (!s->p.model.packed) s->p.model.packed = "off";
    s->p.scheduler.session.n_seq = 1;
    must(hn_shelf_new(&s->shelf, &s->p, &e), &e);
}

static void open_shop(shop *s, const hn_shelf_params *p) { open_shop_of(s, site_model, p); }

static void close_shop(shop *s)
{
    hn_desk_free(s->desk);
    hn_shelf_free(s->shelf);
    hone_context_free(s->ctx);
}

static uint64_t cost_of(const hone_model *m, int32_t n)
{
    hone_sequence_cost cost;
    hone_error e;
    must(hone_model_sequence_cost(m, n, HONE_CACHE_F16, &cost, &e), &e);
    return cost.bytes;
}

/* What a part does not hold makes contexts shorter, and a model that has no room for a short one says what to do; texts
 * that become vectors have their half of the part. */
static void parts_have_bounds(void **state)
{
    hone_model *m;
    hone_error e;
    hn_refusal why;
    shop s;
    must(hone_model_open(&m, site_model, &(hone_model_params){ .packed = "off" }, &e), &e);
    uint64_t texts = cost_of(m, 1024), half = cost_of(m, 256);
    hone_model_close(m);

    open_shop(&s, &(hn_shelf_params){ .n_models = 2, .scheduler.session.cache_budget = 2 * half });
    hn_book *a = hn_shelf_at(s.shelf, 0), *b = hn_shelf_at(s.shelf, 1);
    if (!hn_shelf_take(a, NULL, true, &why) || !hn_shelf_take(b, NULL, true, &why)) fail_msg("%s", why.message);
    assert_true(a->n_ctx == 256 && b->n_ctx == 256 && a->promised + b->promised == 2 * half);
    hn_shelf_give(a);
    hn_shelf_give(b);
    close_shop(&s);

    open_shop(&s, &(hn_shelf_params){ .n_models = 2, .scheduler.session.cache_budget = 2 * half - 2 });
    a = hn_shelf_at(s.shelf, 0);
    assert_false(hn_shelf_take(a, NULL, true, &why));
    assert_true(strstr(why.message, "--kv-memory") && strstr(why.message, "--models-max") && !a->promised);
    close_shop(&s);

    open_shop(&s, &(hn_shelf_params){ .n_models = 1,
                                      .pooling = HONE_POOL_MEAN,
                                      .scheduler.session = { .cache_budget = 2 * texts, .n_ctx = 2048 } });
    a = hn_shelf_at(s.shelf, 0);
    if (!hn_shelf_take(a, NULL, true, &why)) fail_msg("%s", why.message);
    hn_shelf_give(a);
    hn_desk_free(s.desk); /* its thread's are the figures */
    s.desk = NULL;
    hone_scheduler_stats stats;
    hone_scheduler_get_stats(a->desk.scheduler, &stats);
    assert_true(a->n_ctx == 2048 && a->n_embed == 1024);
    assert_true(stats.cache_total == texts && a->embed_room == texts && a->promised == 2 * texts);
    close_shop(&s);

    open_shop(&s, &(hn_shelf_params){ .n_models = 1,
                                      .pooling = HONE_POOL_MEAN,
                                      .scheduler.session = { .cache_budget = 2 * texts - 2, .n_ctx = 2048 } });
    assert_false(hn_shelf_take(hn_shelf_at(s.shelf, 0), NULL, true, &why));
    assert_non_null(strstr(why.message, "--kv-memory"));
    close_shop(&s);
}

/* ---- one account of weights ------------------------------------------------------------------------------------- */

typedef struct taking {
    pthread_t thread;
    hn_book *book;
    const _Atomic bool *wanted;
    bool ok;
} taking;

static void *take(void *arg)
{
    taking *t = arg;
    hn_refusal why;
    t->ok = hn_shelf_take(t->book, t->wanted, true, &why);
    return NULL;
}

static void must_take(hn_book *b)
{
    taking t = { .book = b };
    take(&t);
    assert_true(t.ok);
}

/* Where the weights of two are more than memory holds the one not used for longest goes, and never one in use. */
static void weights_have_bounds(void **state)
{
    hone_model *m;
    hone_model_info info;
    hone_error e;
    shop s;
    must(hone_model_open(&m, site_model, &(hone_model_params){ .packed = "off" }, &e), &e);
    hone_model_get_info(m, &info);
    hone_model_close(m);
    for (uint64_t most = 2 * info.bytes_per_token; most >= info.bytes_per_token / 2; most = most * 3 / 4) {
        bool both = most >= 2 * info.bytes_per_token;
        open_shop(&s, &(hn_shelf_params){ .n_models = 2, .weights_budget = most, .scheduler.session.n_ctx = 64 });
        hn_book *a = hn_shelf_at(s.shelf, 0), *b = hn_shelf_at(s.shelf, 1);
        must_take(a); /* alone it may be as large as it likes, here */
        hn_shelf_give(a);
        must_take(b);
        assert_true((hn_book_look(a, NULL) == HN_BOOK_LOADED) == both);

        taking t = { .book = a };
        assert_int_equal(pthread_create(&t.thread, NULL, take, &t), 0);
        for (int i = 0; i < 20; i++) nap();
        assert_true((hn_book_look(a, NULL) == HN_BOOK_LOADED) == both && hn_book_look(b, NULL) == HN_BOOK_LOADED);
        hn_shelf_give(b);
        pthread_join(t.thread, NULL);
        assert_true(t.ok && hn_book_look(a, NULL) == HN_BOOK_LOADED);
        assert_true((hn_book_look(b, NULL) == HN_BOOK_LOADED) == both);
        hn_shelf_give(a);
        close_shop(&s);
    }
}

#ifdef __linux__
/* How often files that are watched were opened since it was asked last. */
static int n_opened(int watcher)
{
    char events[4096];
    int n = 0;
    for (ssize_t k; (k = read(watcher, events, sizeof events)) > 0;) n += (int)k / (int)sizeof(struct inotify_event);
    return n; /* of a file alone events have no name behind them */
}

static void copy_file(const char *from, const char *to)
{
    static char part[1 << 16];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    for (size_t n; (n = fread(part, 1, sizeof part, in));) assert_true(fwrite(part, 1, n, out) == n);
    assert_true(!ferror(in) && !fclose(out));
    fclose(in);
}

/* A model is opened to see what its weights are; where others have to go before it waits as it is, open once. */
static void waits_open(void **state)
{
    hone_error e;
    hone_model *m;
    hone_model_info info;
    shop s;
    _Atomic bool wanted = true, also = true;
    char dir[] = "/tmp/hone-test-XXXXXX", path[64]; /* other programs open the one that all tests have */
    int watcher = inotify_init1(IN_NONBLOCK);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/model.gguf", dir);
    copy_file(site_model, path);
    must(hone_model_open(&m, path, &(hone_model_params){ .packed = "off" }, &e), &e);
    hone_model_get_info(m, &info);
    hone_model_close(m);
    assert_true(watcher >= 0 && inotify_add_watch(watcher, path, IN_OPEN) >= 0);
    open_shop_of(
        &s, path,
        &(hn_shelf_params){ .n_models = 2, .weights_budget = info.bytes_per_token, .scheduler.session.n_ctx = 64 });
    hn_book *a = hn_shelf_at(s.shelf, 0), *b = hn_shelf_at(s.shelf, 1);
    must_take(a);
    int once = n_opened(watcher), opened = 0;
    assert_true(once > 0);

    taking t = { .book = b, .wanted = &wanted };
    assert_int_equal(pthread_create(&t.thread, NULL, take, &t), 0);
    while (opened < once) nap(), opened += n_opened(watcher);
    atomic_store(&wanted, false);
    hn_shelf_stir(s.shelf);
    pthread_join(t.thread, NULL);
    assert_true(!t.ok && !b->model && b->weights == info.bytes_per_token); /* nobody waits: it is not kept open */
    b->weights = 0;

    atomic_store(&wanted, true);
    assert_int_equal(pthread_create(&t.thread, NULL, take, &t), 0);
    for (opened = 0; opened < once;) nap(), opened += n_opened(watcher);
    for (int i = 0; i < 20; i++) nap();
    taking leaves = { .book = b, .wanted = &also };
    assert_int_equal(pthread_create(&leaves.thread, NULL, take, &leaves), 0);
    atomic_store(&also, false);
    hn_shelf_stir(s.shelf);
    pthread_join(leaves.thread, NULL);
    assert_true(!leaves.ok && b->model); /* the other one still waits */
    hn_shelf_give(a);
    pthread_join(t.thread, NULL);
    assert_true(t.ok && hn_book_look(a, NULL) == HN_BOOK_UNLOADED);
    assert_int_equal(opened + n_opened(watcher), once);
    hn_shelf_give(b);
    close_shop(&s);
    close(watcher);
    unlink(path);
    rmdir(dir);
}
#else
static void waits_open(void **state) { skip(); }
#endif

/* Weights are files: they count as available, and caches have half of what is left beside them. */
static void caches_leave_room_for_weights(void **state)
{
    assert_true(hn_shelf_cache_room(64, 0) == 32);
    assert_true(hn_shelf_cache_room(64, 40) == 12);
    assert_true(hn_shelf_cache_room(64, 56) == 8 && hn_shelf_cache_room(64, 80) == 8);
}

/* ---- unloading behind an answer --------------------------------------------------------------------------------- */

static void *unload(void *arg)
{
    taking *t = arg;
    hn_refusal why;
    t->ok = hn_shelf_unload(t->book, NULL, &why);
    return NULL;
}

/* Who was answered uses the model no longer: it is waited for, and nobody is told that it is in use. */
static void who_leaves_is_waited_for(void **state)
{
    shop s;
    open_shop(&s, &(hn_shelf_params){ .n_models = 1, .scheduler.session.n_ctx = 64 });
    taking t = { .book = hn_shelf_at(s.shelf, 0) };
    must_take(t.book);
    unload(&t);
    assert_false(t.ok);
    hn_shelf_leave(t.book);
    assert_int_equal(pthread_create(&t.thread, NULL, unload, &t), 0);
    for (int i = 0; i < 20; i++) nap();
    assert_int_equal(hn_book_look(t.book, NULL), HN_BOOK_LOADED);
    hn_shelf_looked(t.book);
    pthread_join(t.thread, NULL);
    assert_true(t.ok && hn_book_look(t.book, NULL) == HN_BOOK_UNLOADED);
    close_shop(&s);
}

#define UNLOADS "{\"model\":\"chat\"}"

/* Two requests on one connection, the second sent with the first. */
static int send_and_unload(int port, const char *path, const char *body)
{
    char text[2000];
    int fd = client_connect(port);
    int k = snprintf(text, sizeof text,
                     "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s"
                     "POST /models/unload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n" UNLOADS,
                     path, strlen(body), body, strlen(UNLOADS));
    assert_true(fd >= 0 && client_send(fd, text, (size_t)k));
    return fd;
}

/* The second was done, as the first was answered. */
static void must_have_unloaded(int fd)
{
    size_t n;
    char *all = client_read_all(fd, &n), *at = all, *last = all;
    close(fd);
    while ((at = strstr(at + 1, "HTTP/1.1 "))) last = at;
    if (strncmp(last, "HTTP/1.1 200", 12) != 0 || !strstr(last, "\"success\":true")) fail_msg("%s", all);
    free(all);
}

/* Requests of many prompts, of which much is to be freed; files of slots; and what was cancelled, which the computing
 * thread frees, when it is done with another model's step. */
static void an_answer_ends_its_use(void **state)
{
    enum { MANY = 64, EACH = 3 };
    char dir[] = "/tmp/hone-test-XXXXXX", file[64], body[1500], path[120], first[4000];
    running r = { .p.slot_dir = mkdtemp(dir), .p.shelf = { .n_models = 2, .scheduler.session.n_ctx = 20000 } };
    assert_non_null(r.p.slot_dir);
    start(&r, 1);
    size_t n = (size_t)snprintf(body, sizeof body, "{\"model\":\"chat\",\"max_tokens\":0,\"prompt\":[");
    for (int i = 0; i < MANY; i++)
        n += (size_t)snprintf(body + n, sizeof body - n, "%s[%d]", i ? "," : "", 10 + i % 80);
    snprintf(body + n, sizeof body - n, "]}");
    for (int i = 0; i < EACH; i++) {
        must_have_unloaded(send_and_unload(r.port, "/v1/completions", body));
        greet(r.port, "chat");
        must_have_unloaded(send_and_unload(r.port, "/slots/0?action=save&model=chat", "{\"filename\":\"cat\"}"));
    }

    int busy = client_connect(r.port);
    char *text = inputs(1, 15000), *long_prompt = malloc(strlen(text) + 100);
    sprintf(long_prompt, "{\"model\":\"other\",\"max_tokens\":1,\"prompt\":%s", strchr(text, '['));
    assert_true(client_request(busy, "POST", "/v1/completions", NULL, long_prompt));
    int fd = send_and_unload(r.port, "/v1/responses",
                             "{\"model\":\"chat\",\"input\":\"Hi\",\"stream\":true,\"ignore_eos\":true}");
    ssize_t k = recv(fd, first, sizeof first - 1, 0);
    for (char *id = NULL; !id;) {
        assert_true(k > 0 && (size_t)k < sizeof first);
        first[k] = 0;
        if (!(id = strstr(first, "\"resp_")) || !strchr(id + 1, '"')) {
            id = NULL;
            ssize_t more = recv(fd, first + k, sizeof first - 1 - (size_t)k, 0);
            k = more > 0 ? k + more : 0;
            continue;
        }
        snprintf(path, sizeof path, "/v1/responses/%.*s/cancel", (int)strcspn(id + 1, "\""), id + 1);
    }
    json_decref(ask_json(r.port, "POST", path, "", 200));
    must_have_unloaded(fd);
    close(busy);
    free(text);
    free(long_prompt);
    stop(&r);
    snprintf(file, sizeof file, "%s/cat", dir);
    unlink(file);
    rmdir(dir);
}

/* ---- loading that nobody waits for ------------------------------------------------------------------------------ */

static void stop_shelf(void *arg, uint64_t done, uint64_t total)
{
    shop *s = arg;
    hn_shelf_stop(s->shelf);
}

/* A server that ends while a model is looked at does not wait for the rest of it. */
static void loading_ends_with_the_server(void **state)
{
    char dir[] = "/tmp/hone-test-XXXXXX", packed[64];
    hone_error e;
    hn_refusal why;
    shop s;
    assert_non_null(mkdtemp(dir));
    snprintf(packed, sizeof packed, "%s/model.hpack", dir);
    must(hone_pack(site_model, &(hone_pack_params){ .file = packed }, NULL, NULL, &e), &e);
    assert_int_equal(utimensat(AT_FDCWD, packed, (struct timespec[2]){ { 1, 0 }, { 1, 0 } }, 0), 0); /* to be read */
    hone_progress told = { .fn = stop_shelf, .arg = &s };
    open_shop(&s, &(hn_shelf_params){ .n_models = 1, .model = { .packed = packed, .progress = &told } });
    hn_book *a = hn_shelf_at(s.shelf, 0);
    assert_false(hn_shelf_take(a, NULL, true, &why));
    assert_string_equal(why.code, "draining");
    assert_int_equal(a->why_code, HONE_E_INTERRUPTED);
    close_shop(&s);
    unlink(packed);
    rmdir(dir);
}

/* ---- the queue -------------------------------------------------------------------------------------------------- */

static int ask_much(int port)
{
    enum { MANY = 64 };
    static char body[4000];
    size_t n = (size_t)snprintf(body, sizeof body, "{\"max_tokens\":100,\"ignore_eos\":true,\"prompt\":[");
    for (int i = 0; i < MANY; i++)
        n += (size_t)snprintf(body + n, sizeof body - n, "%s\"The cat %d\"", i ? "," : "", i);
    snprintf(body + n, sizeof body - n, "]}");
    int fd = client_connect(port);
    assert_true(client_request(fd, "POST", "/v1/completions", NULL, body));
    return fd;
}

/* Requests of many prompts leave room in the queue to who comes with one. */
static void many_prompts_leave_room(void **state)
{
    running r = { 0 };
    start(&r, 2);
    int fd[2] = { ask_much(r.port), ask_much(r.port) };
    while (metric(r.port, "hone_requests_waiting") < 4) nap(); /* both are there */
    for (int i = 0; i < 5; i++)
        json_decref(ask_json(r.port, "POST", "/v1/chat/completions",
                             "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":2}", 200));
    assert_true(metric(r.port, "hone_requests_waiting") >= 2); /* and still are */
    for (int i = 0; i < 2; i++) close(fd[i]);
    stop(&r);
}

/* ---- the computing thread --------------------------------------------------------------------------------------- */

/* One long text is given up in its midst where its time is over. */
static void a_long_text_is_given_up(void **state)
{
    enum { LONG = 20000 };
    running r = { .p.shelf = { .pooling = HONE_POOL_MEAN, .scheduler.session.n_ctx = LONG } };
    start(&r, 1);
    char *body = inputs(1, LONG - 1);
    client_answer a = client_ask(r.port, "POST", "/v1/embeddings", "X-Hone-Timeout-Ms: 100\r\n", body);
    if (a.status != 504) fail_msg("status %d: %.200s", a.status, a.body);
    client_free(&a);
    free(body);
    body = inputs(2, 5); /* and the session is as it was */
    json_t *two = ask_json(r.port, "POST", "/v1/embeddings", body, 200);
    assert_int_equal(json_array_size(json_object_get(two, "data")), 2);
    json_decref(two);
    free(body);
    stop(&r);
}

/* What came while the desk computed a text goes on behind it, if nothing else comes. */
static void an_answer_outlasts_a_text(void **state)
{
    enum { LONG = SLOWED ? 6000 : 20000, WAIT_MS = 30000 };
    running r = { .p.shelf = { .pooling = HONE_POOL_MEAN,
                               .scheduler = { .session.n_ctx = LONG, .fixed_prefill = 1024 } } };
    start(&r, 1);
    char *body = inputs(1, LONG - 1), c;
    int text = client_connect(r.port), answer = client_connect(r.port);
    assert_true(client_request(text, "POST", "/v1/embeddings", NULL, body));
    while (metric(r.port, "hone_requests_running") < 1) nap();
    assert_true(recv(text, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0); /* it goes on */
    assert_true(client_request(answer, "POST", "/completion", NULL,
                               "{\"prompt\":\"The cat\",\"n_predict\":200,\"ignore_eos\":true}"));
    if (poll(&(struct pollfd){ .fd = answer, .events = POLLIN }, 1, WAIT_MS) != 1) fail_msg("the answer stopped");
    close(text);
    close(answer);
    free(body);
    stop(&r);
}

/* Those that become vectors are counted among what runs and waits, and their waiting is measured. */
static void vectors_are_work(void **state)
{
    running r = { .p.shelf.pooling = HONE_POOL_MEAN };
    int fd[2];
    bool both = false;
    char c, *body = inputs(1500, 500); /* more than anybody has time for here */
    start(&r, 1);
    for (int i = 0; i < 2; i++) {
        fd[i] = client_connect(r.port);
        assert_true(client_request(fd[i], "POST", "/v1/embeddings", NULL, body));
    }
    while (!both) {
        both = metric(r.port, "hone_requests_running") == 1 && metric(r.port, "hone_requests_waiting") == 1;
        for (int i = 0; i < 2; i++) assert_true(recv(fd[i], &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0);
    }
    client_answer a = client_ask(r.port, "GET", "/health", NULL, NULL);
    assert_int_equal(strncmp(client_header(&a, "x-hone-load"), "1;1;", 4), 0);
    client_free(&a);
    assert_true(metric(r.port, "hone_queue_seconds_count") >= 1); /* they take turns: perhaps both have begun */
    for (int i = 0; i < 2; i++) close(fd[i]);
    await_rest(r.port, 2);
    free(body);
    stop(&r);
}

/* How long answers take is not said of what has none. */
static void answers_have_their_time(void **state)
{
    running r = { 0 };
    start(&r, 1);
    for (int i = 0; i < 5; i++) json_decref(ask_json(r.port, "POST", "/tokenize", "{\"content\":\"The cat\"}", 200));
    json_decref(ask_json(r.port, "POST", "/v1/completions",
                         "{\"prompt\":[\"The cat\",\"A dog\"],\"max_tokens\":3,\"ignore_eos\":true}", 200));
    await_rest(r.port, 6);
    assert_true(metric(r.port, "hone_answer_seconds_count") == 2); /* of each prompt */
    double all = metric(r.port, "hone_request_seconds_sum"), answers = metric(r.port, "hone_answer_seconds_sum");
    assert_true(answers > 0 && answers <= all);
    stop(&r);
}

/* ---- what is told ----------------------------------------------------------------------------------------------- */

/* ollama's programs cut prompts to the context that is told, and see when a model goes. */
static void ollama_is_told_what_is(void **state)
{
    enum { TTL = 5000 };
    running r = { .p.ollama = true,
                  .p.shelf = { .n_models = 2, .ttl_s = TTL, .scheduler.session.n_ctx = SITE_CTX / 2 } };
    start(&r, 1);
    for (int i = 0; i < 2; i++) { /* loaded, and not */
        json_t *o = ask_json(r.port, "POST", "/api/show", i ? "{\"model\":\"other\"}" : "{\"model\":\"chat\"}", 200);
        const json_t *n = json_object_get(json_object_get(o, "model_info"), "llama.context_length");
        assert_int_equal(json_integer_value(n), SITE_CTX / 2);
        json_decref(o);
    }
    json_t *o = ask_json(r.port, "GET", "/api/ps", NULL, 200), *list = json_object_get(o, "models");
    struct tm tm = { 0 };
    assert_int_equal(json_array_size(list), 1);
    assert_non_null(strptime(text_of(json_array_get(list, 0), "expires_at"), "%Y-%m-%dT%H:%M:%SZ", &tm));
    double left = difftime(timegm(&tm), time(NULL));
    assert_true(left > TTL - 600 && left <= TTL + 1);
    json_decref(o);
    stop(&r);
}

static int64_t count_tokens(int port, const char *more, const char *tools)
{
    char body[400];
    snprintf(body, sizeof body, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]%s%s}", more, tools);
    json_t *o = ask_json(port, "POST", "/v1/messages/count_tokens", body, 200);
    int64_t n = json_integer_value(json_object_get(o, "input_tokens"));
    json_decref(o);
    return n;
}

/* Where a template can switch thoughts, Anthropic's programs have them if they ask; where it cannot, nobody is told. */
static void thoughts_are_asked_for(void **state)
{
    static const char template[] =
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>"
        "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}";
    running r = { .p.shelf.chat_template = template };
    start(&r, 1);
    static const char *const tools[] = { "",
                                         ",\"tools\":[{\"name\":\"look\",\"input_schema\":{\"type\":\"object\"}}]" };
    for (int i = 0; i < 2; i++) {
        int64_t off = count_tokens(r.port, "", tools[i]),
                on = count_tokens(r.port, ",\"thinking\":{\"type\":\"adaptive\"}", tools[i]);
        assert_true(off > on && off == count_tokens(r.port, ",\"thinking\":{\"type\":\"disabled\"}", tools[i]));
        assert_true(on == count_tokens(r.port, ",\"thinking\":{\"type\":\"enabled\"}", tools[i]));
    }
    stop(&r);

    running plain = { 0 };
    start(&plain, 1);
    for (int i = 0; i < 2; i++) {
        client_answer a = client_ask(plain.port, "POST", "/v1/messages", NULL,
                                     i ? "{\"max_tokens\":2,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
                                         "\"thinking\":{\"type\":\"disabled\"}}"
                                       : "{\"max_tokens\":2,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}");
        assert_int_equal(a.status, 200);
        assert_int_equal(client_header(&a, "x-hone-ignored") != NULL, i);
        client_free(&a);
    }
    stop(&plain);
}

/* ---- small things of requests ----------------------------------------------------------------------------------- */

static void says(int port, const char *more, char *to, size_t cap)
{
    char body[300];
    snprintf(body, sizeof body, "{\"prompt\":\"The cat\",\"max_tokens\":24,\"ignore_eos\":true%s}", more);
    json_t *o = ask_json(port, "POST", "/v1/completions", body, 200);
    snprintf(to, cap, "%s", text_of(json_array_get(json_object_get(o, "choices"), 0), "text"));
    json_decref(o);
}

/* The likeliest token alone, as OpenAI's programs may ask for it. */
static void top_p_0_is_greedy(void **state)
{
    char want[1000], got[1000];
    running r = { 0 };
    start(&r, 1);
    says(r.port, ",\"temperature\":0", want, sizeof want);
    for (int i = 0; i < 2; i++) {
        says(r.port,
             i ? ",\"top_p\":0,\"temperature\":2,\"seed\":5,\"top_k\":0,\"min_p\":0"
               : ",\"top_p\":0,\"temperature\":2,\"seed\":4",
             got, sizeof got);
        assert_string_equal(got, want);
    }
    stop(&r);
}

/* An adapter has one scale in a request, whether it is called by its number or its name. */
static void adapters_are_named_once(void **state)
{
    static const hn_adapter_file rhyme = { .path = "models/hone-tiny-rhyme.lora.gguf", .scale = 1 };
    static const struct {
        const char *lora, *param;
    } rows[] = { { "[{\"id\":0,\"scale\":1},{\"id\":0,\"scale\":0}]", "lora[1].id" },
                 { "[{\"id\":0},{\"id\":\"hone-tiny-rhyme.lora\"}]", "lora[1].id" },
                 { "[{\"id\":0}]", NULL } };
    running r = { .path = "models/hone-tiny.gguf", .p.shelf = { .loras = &rhyme, .n_loras = 1 } };
    start(&r, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"prompt\":\"Once\",\"max_tokens\":2,\"lora\":%s}", rows[i].lora);
        json_t *o = ask_json(r.port, "POST", "/v1/completions", body, rows[i].param ? 400 : 200);
        if (rows[i].param) assert_string_equal(text_of(json_object_get(o, "error"), "param"), rows[i].param);
        json_decref(o);
    }
    stop(&r);
}

/* What bodies may bring is what answers are read with: the limits of both are one. */
static void answers_know_many_tools(void **state)
{
    enum { MOST = HN_ASK_TOOLS };
    hone_model *m;
    hone_chat_format *f;
    hone_reply *reply;
    hone_error e;
    must(hone_model_open(&m, site_model, &(hone_model_params){ .packed = "off" }, &e), &e);
    for (int n = MOST; n <= MOST + 1; n++) {
        hn_bytes b = { 0 };
        for (int i = 0; i < n; i++)
            hn_bytes_printf(&b, "%s{\"type\":\"function\",\"function\":{\"name\":\"tool_%d\",\"parameters\":{}}}",
                            i ? "," : "[", i);
        hn_bytes_text(&b, "]");
        hn_bytes_add(&b, "", 1);
        must(hone_chat_format_new(&f, m, &(hone_chat_params){ .tools = b.p }, &e), &e);
        hone_reply_params p = { .format = f, .tools = b.p, .reasoning_budget = -1 };
        assert_int_equal(hone_reply_open(&reply, &p, &e), n == MOST ? HONE_OK : HONE_E_ARG);
        hone_reply_free(reply);
        hone_chat_format_free(f);
        hn_bytes_free(&b);
    }
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_share_a_budget),    cmocka_unit_test(parts_have_bounds),
        cmocka_unit_test(many_prompts_leave_room),  cmocka_unit_test(loading_ends_with_the_server),
        cmocka_unit_test(a_long_text_is_given_up),  cmocka_unit_test(an_answer_outlasts_a_text),
        cmocka_unit_test(vectors_are_work),         cmocka_unit_test(answers_have_their_time),
        cmocka_unit_test(ollama_is_told_what_is),   cmocka_unit_test(thoughts_are_asked_for),
        cmocka_unit_test(top_p_0_is_greedy),        cmocka_unit_test(adapters_are_named_once),
        cmocka_unit_test(answers_know_many_tools),  cmocka_unit_test(waits_open),
        cmocka_unit_test(weights_have_bounds),      cmocka_unit_test(caches_leave_room_for_weights),
        cmocka_unit_test(who_leaves_is_waited_for), cmocka_unit_test(an_answer_ends_its_use)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
