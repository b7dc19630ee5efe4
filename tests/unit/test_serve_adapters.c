/* Adapters of hone serve that clients load and unload while it runs: answers with them are those of the library alone;
 * what lies elsewhere is not found; who is being answered keeps what is used. */
#define _GNU_SOURCE
#include "serve_site.h"

#include <sys/resource.h>
#include <sys/stat.h>

static const char tiny_path[] = "models/hone-tiny.gguf", rhyme_path[] = "models/hone-tiny-rhyme.lora.gguf";
static char dir[] = "/tmp/hone-test-XXXXXX", inner[64], outside[64];

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;) assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static const char *in(const char *folder, const char *name)
{
    static char path[4][200];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

/* DIR/lora is the folder of --lora-dir, with an adapter, a file that is none, and a link that leads out of it. */
static int make_files(void **state)
{
    if (!mkdtemp(dir)) return -1;
    snprintf(inner, sizeof inner, "%s/lora", dir);
    snprintf(outside, sizeof outside, "%s/outside.gguf", dir);
    if (mkdir(inner, 0700)) return -1;
    copy_file(rhyme_path, in(inner, "rhyme.gguf"));
    copy_file(rhyme_path, outside);
    copy_file("tests/map.txt", in(inner, "text.gguf"));
    hone_error e;
    hone_model *m;
    must(hone_model_open(&m, tiny_path, &(hone_model_params){ .packed = "off" }, &e), &e);
    must(hone_adapter_convert(m, rhyme_path, in(inner, "peft"), false, &e), &e);
    must(hone_adapter_convert(m, rhyme_path, in(inner, "linked"), false, &e), &e);
    hone_model_close(m);
    char weights[200]; /* of a folder whose weights lie outside */
    snprintf(weights, sizeof weights, "%s", in(inner, "linked/adapter_model.safetensors"));
    if (rename(weights, in(dir, "weights")) || symlink("../../weights", weights)) return -1;
    if (mkdir(in(inner, "torch"), 0700) || symlink("../../weights", in(inner, "torch/adapter_model.bin"))) return -1;
    copy_file(in(inner, "linked/adapter_config.json"), in(inner, "torch/adapter_config.json"));
    if (mkfifo(in(inner, "pipe.gguf"), 0600)) return -1;
    return symlink(outside, in(inner, "link.gguf"));
}

static int drop_files(void **state)
{
    static const char *const names[] = { "rhyme.gguf",
                                         "text.gguf",
                                         "link.gguf",
                                         "pipe.gguf",
                                         "peft/adapter_config.json",
                                         "peft/adapter_model.safetensors",
                                         "peft/chat_template.jinja",
                                         "linked/adapter_config.json",
                                         "linked/adapter_model.safetensors",
                                         "linked/chat_template.jinja",
                                         "torch/adapter_config.json",
                                         "torch/adapter_model.bin" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in(inner, names[i]));
    rmdir(in(inner, "peft"));
    rmdir(in(inner, "linked"));
    rmdir(in(inner, "torch"));
    rmdir(inner);
    unlink(in(dir, "weights"));
    unlink(outside);
    return rmdir(dir);
}

/* What the model says greedily behind "Once", with an adapter or without; malloc'ed by the library. */
static char *say_alone(bool with)
{
    enum { N = 16 };
    hone_error e;
    hone_context *ctx;
    hone_model *m;
    hone_session *s;
    hone_adapter *a = NULL;
    int32_t *ids, said[N];
    size_t n, len;
    char *text;
    const float *logits;
    must(hone_context_new(&ctx, &(hone_context_params){ .n_threads = 1 }, &e), &e);
    must(hone_model_open(&m, tiny_path, &(hone_model_params){ .packed = "off" }, &e), &e);
    must(hone_session_new(&s, ctx, m, NULL, &e), &e);
    if (with) must(hone_adapter_open(&a, m, rhyme_path, &e), &e);
    must(hone_session_set_adapters(s, &a, NULL, with, &e), &e);
    must(hone_tokenize(m, "Once", 4, HONE_TOK_SPECIAL | HONE_TOK_ADD, &ids, &n, &e), &e);
    must(hone_append(s, 0, ids, (int32_t)n, &logits, &e), &e);
    hone_model_info info;
    hone_model_get_info(m, &info);
    for (int i = 0; i < N; i++) {
        said[i] = 0;
        for (int32_t id = 1; id < info.n_vocab; id++)
            if (logits[id] > logits[said[i]]) said[i] = id;
        must(hone_append(s, 0, &said[i], 1, &logits, &e), &e);
    }
    must(hone_detokenize(m, said, N, false, &text, &len, &e), &e);
    hone_free(ids);
    hone_session_free(s);
    hone_adapter_close(a);
    hone_model_close(m);
    hone_context_free(ctx);
    return text;
}

static void says(int port, const char *model, const char *more, const char *want)
{
    char body[300];
    snprintf(body, sizeof body,
             "{\"model\":\"%s\",\"prompt\":\"Once\",\"max_tokens\":16,\"ignore_eos\":true,\"temperature\":0%s}", model,
             more);
    json_t *j = ask_json(port, "POST", "/v1/completions", body, 200);
    assert_string_equal(json_string_value(json_object_get(j, "model")), model);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(j, "choices"), 0), "text")),
                        want);
    json_decref(j);
}

#define LOAD "/v1/load_lora_adapter"
#define UNLOAD "/v1/unload_lora_adapter"

static void begin(running *r)
{
    r->path = tiny_path;
    r->p.shelf.strict = true;
    r->p.shelf.lora_folder = inner;
    start(r, 4);
}

static void they_come_and_go(void **state)
{
    running r = { 0 };
    char *base = say_alone(false), *rhyme = say_alone(true);
    assert_string_not_equal(base, rhyme);
    begin(&r);
    says(r.port, "chat", "", base);
    json_decref(ask_json(r.port, "POST", "/v1/completions", "{\"model\":\"poet\",\"prompt\":\"Once\"}", 404));

    json_t *j = ask_json(r.port, "POST", LOAD, "{\"lora_name\":\"poet\",\"lora_path\":\"rhyme.gguf\"}", 200);
    assert_int_equal(json_integer_value(json_object_get(j, "id")), 0);
    json_decref(j);
    says(r.port, "poet", "", rhyme);
    says(r.port, "chat", "", base); /* it is off but for those who name it */
    says(r.port, "chat", ",\"lora\":[{\"id\":0,\"scale\":1}]", rhyme);
    says(r.port, "poet", ",\"lora\":[]", base);
    json_decref(ask_json(r.port, "GET", "/v1/models/poet", NULL, 200));
    json_decref(ask_json(r.port, "POST", LOAD, "{\"lora_name\":\"poet\",\"lora_path\":\"rhyme.gguf\"}", 409));

    /* scales are told by ids; those that are not there change nothing */
    json_t *set = ask_json(r.port, "POST", "/lora-adapters", "[{\"id\":0,\"scale\":1}]", 200);
    assert_true(json_is_true(json_object_get(set, "success"))); /* as llama-server says it */
    json_decref(set);
    says(r.port, "chat", "", rhyme);
    json_decref(ask_json(r.port, "POST", "/lora-adapters", "[{\"id\":1,\"scale\":1}]", 400));
    says(r.port, "chat", "", rhyme);

    /* it outlives its model, with its scale, which can be set all the same */
    json_decref(ask_json(r.port, "POST", "/models/unload", "{\"model\":\"chat\"}", 200));
    json_decref(ask_json(r.port, "POST", "/lora-adapters", "[{\"id\":0,\"scale\":0}]", 200));
    says(r.port, "chat", "", base);
    json_decref(ask_json(r.port, "POST", "/models/unload", "{\"model\":\"chat\"}", 200));
    json_decref(ask_json(r.port, "POST", "/lora-adapters", "[{\"id\":0,\"scale\":1}]", 200));
    says(r.port, "chat", "", rhyme);

    json_decref(ask_json(r.port, "POST", UNLOAD, "{\"lora_name\":\"poet\"}", 200));
    says(r.port, "chat", "", base);
    json_decref(ask_json(r.port, "POST", "/v1/completions", "{\"model\":\"poet\",\"prompt\":\"Once\"}", 404));
    json_decref(ask_json(r.port, "POST", UNLOAD, "{\"lora_name\":\"poet\"}", 404));
    j = ask_json(r.port, "GET", "/lora-adapters", NULL, 200);
    assert_int_equal(json_array_size(j), 0);
    json_decref(j);

    char body[200]; /* and an absolute path, and its name again */
    snprintf(body, sizeof body, "{\"lora_name\":\"poet\",\"lora_path\":\"%s/rhyme.gguf\"}", inner);
    j = ask_json(r.port, "POST", LOAD, body, 200);
    assert_int_equal(json_integer_value(json_object_get(j, "id")), 1); /* 0 was another's, whoever still says it */
    json_decref(j);
    says(r.port, "poet", "", rhyme);
    says(r.port, "chat", ",\"lora\":[{\"id\":1,\"scale\":1}]", rhyme);
    json_decref(ask_json(r.port, "POST", "/lora-adapters", "[{\"id\":0,\"scale\":1}]", 400));
    json_decref(ask_json(r.port, "POST", "/v1/completions",
                         "{\"model\":\"chat\",\"prompt\":\"Once\",\"lora\":[{\"id\":0,\"scale\":1}]}", 400));
    json_decref(ask_json(r.port, "POST", LOAD, "{\"lora_name\":\"folder\",\"lora_path\":\"peft\"}", 200));
    says(r.port, "folder", "", rhyme);
    stop(&r);
    hone_free(base);
    hone_free(rhyme);
}

/* An adapter that went is not answered by its model, which others may call as they like. */
static void what_went_is_not_the_model(void **state)
{
    running r = { 0 };
    r.path = tiny_path;
    r.p.shelf.lora_folder = inner;
    start(&r, 4);
#define COMPLETE(model) "{\"model\":\"" model "\",\"prompt\":\"Once\",\"max_tokens\":1}"
    json_decref(ask_json(r.port, "POST", "/v1/completions", COMPLETE("poet"), 200)); /* it never was one */
    json_decref(ask_json(r.port, "POST", LOAD, "{\"lora_name\":\"poet\",\"lora_path\":\"rhyme.gguf\"}", 200));
    json_decref(ask_json(r.port, "POST", "/v1/completions", COMPLETE("chat:poet"), 200));
    json_decref(ask_json(r.port, "POST", UNLOAD, "{\"lora_name\":\"poet\"}", 200));
    json_decref(ask_json(r.port, "POST", "/v1/completions", COMPLETE("poet"), 404));
    json_decref(ask_json(r.port, "POST", "/v1/completions", COMPLETE("chat:poet"), 404));
    json_decref(ask_json(r.port, "POST", "/v1/completions", COMPLETE("gpt-4"), 200));
    json_decref(ask_json(r.port, "POST", LOAD, "{\"lora_name\":\"poet\",\"lora_path\":\"rhyme.gguf\"}", 200));
    json_decref(ask_json(r.port, "POST", "/v1/completions", COMPLETE("poet"), 200));
    stop(&r);
}

/* A vector of "Once" with the adapter, or without; by the library alone. */
static float *vector_alone(bool with, int32_t *n_dim)
{
    hone_error e;
    hone_context *ctx;
    hone_model *m;
    hone_session *s;
    hone_adapter *a = NULL;
    int32_t *ids;
    size_t n;
    must(hone_context_new(&ctx, &(hone_context_params){ .n_threads = 1 }, &e), &e);
    must(hone_model_open(&m, tiny_path, &(hone_model_params){ .packed = "off" }, &e), &e);
    must(hone_session_new(&s, ctx, m, NULL, &e), &e);
    if (with) must(hone_adapter_open(&a, m, rhyme_path, &e), &e);
    must(hone_session_set_adapters(s, &a, NULL, with, &e), &e);
    must(hone_tokenize(m, "Once", 4, HONE_TOK_ADD, &ids, &n, &e), &e);
    *n_dim = hone_embed_width(m, HONE_POOL_MEAN, NULL);
    float *x = calloc((size_t)*n_dim, sizeof *x);
    hone_embed_params p = { .pooling = HONE_POOL_MEAN };
    must(hone_embed(s, &(hone_text_ids){ ids, (int32_t)n }, 1, &p, x, &e), &e);
    hone_free(ids);
    hone_session_free(s);
    hone_adapter_close(a);
    hone_model_close(m);
    hone_context_free(ctx);
    return x;
}

static void embeds(int port, const char *body, const float *want, int32_t n_dim)
{
    json_t *j = ask_json(port, "POST", "/v1/embeddings", body, 200);
    const json_t *x = json_object_get(json_array_get(json_object_get(j, "data"), 0), "embedding");
    assert_int_equal(json_array_size(x), n_dim);
    for (int32_t i = 0; i < n_dim; i++)
        if ((float)json_real_value(json_array_get(x, (size_t)i)) != want[i]) fail_msg("%s: number %d", body, i);
    json_decref(j);
}

/* Vectors with an adapter are those of the library with it; the next request's are without. */
static void vectors_have_them(void **state)
{
    running r = { 0 };
    int32_t n;
    float *base = vector_alone(false, &n), *rhyme = vector_alone(true, &n);
    assert_memory_not_equal(base, rhyme, (size_t)n * sizeof *base);
    r.p.shelf.pooling = HONE_POOL_MEAN;
    begin(&r);
    json_decref(ask_json(r.port, "POST", LOAD, "{\"lora_name\":\"poet\",\"lora_path\":\"rhyme.gguf\"}", 200));
    embeds(r.port, "{\"model\":\"poet\",\"input\":\"Once\"}", rhyme, n);
    embeds(r.port, "{\"model\":\"chat\",\"input\":\"Once\"}", base, n);
    embeds(r.port, "{\"model\":\"chat\",\"input\":\"Once\",\"lora\":[{\"id\":0}]}", rhyme, n);
    embeds(r.port, "{\"model\":\"poet\",\"input\":\"Once\",\"lora\":[]}", base, n);
    json_decref(ask_json(r.port, "POST", "/v1/embeddings", "{\"input\":\"Once\",\"lora\":[{\"id\":7}]}", 400));
    stop(&r);
    free(base);
    free(rhyme);
}

/* What a slot holds with an adapter comes back for requests with it: ?model= names it, as theirs do. */
static void slots_have_them(void **state)
{
    static const char file[] = "{\"filename\":\"poem\"}";
    running r = { 0 };
    char path[80];
    size_t slot, k;
    json_t *j;
    r.p.slot_dir = dir;
    begin(&r);
    json_decref(ask_json(r.port, "POST", LOAD, "{\"lora_name\":\"poet\",\"lora_path\":\"rhyme.gguf\"}", 200));
    char *rhyme = say_alone(true);
    says(r.port, "poet", "", rhyme);
    json_t *slots = ask_json(r.port, "GET", "/slots", NULL, 200);
    json_array_foreach(slots, slot, j) if (json_integer_value(json_object_get(j, "n_past"))) break;
    assert_true(slot < json_array_size(slots));
    json_decref(slots);
    snprintf(path, sizeof path, "/slots/%zu?action=save&model=chat:poet", slot);
    client_answer a = client_ask(r.port, "POST", path, NULL, file);
    assert_int_equal(a.status, 200);
    assert_string_equal(client_header(&a, "x-hone-ignored"), "model's adapter"); /* the slot says what is in it */
    client_free(&a);

    static const struct {
        const char *model;
        int status;
    } rows[] = { { "", 400 }, { "&model=chat", 400 }, { "&model=chat:poet", 200 }, { "&model=poet", 200 } };
    for (k = 0; k < sizeof rows / sizeof *rows; k++) {
        snprintf(path, sizeof path, "/slots/%zu?action=restore%s", slot, rows[k].model);
        json_decref(ask_json(r.port, "POST", path, file, rows[k].status));
    }
    says(r.port, "poet", "", rhyme);
    stop(&r);
    hone_free(rhyme);
    unlink(in(dir, "poem"));
}

/* Positions that slots hold. */
static int64_t held(int port)
{
    size_t i;
    int64_t n = 0;
    json_t *j, *slots = ask_json(port, "GET", "/slots", NULL, 200);
    json_array_foreach(slots, i, j) n += json_integer_value(json_object_get(j, "n_past"));
    json_decref(slots);
    return n;
}

/* With an adapter goes what slots hold of it, and nothing else. */
static void nothing_stays_of_what_went(void **state)
{
    running r = { 0 };
    begin(&r);
    char *base = say_alone(false), *rhyme = say_alone(true);
    says(r.port, "chat", "", base);
    int64_t before = held(r.port);
    double pages = metric(r.port, "hone_kv_bytes");
    json_decref(ask_json(r.port, "POST", LOAD, "{\"lora_name\":\"poet\",\"lora_path\":\"rhyme.gguf\"}", 200));
    says(r.port, "poet", "", rhyme);
    assert_true(before > 0 && held(r.port) > before && metric(r.port, "hone_kv_bytes") > pages);
    json_decref(ask_json(r.port, "POST", UNLOAD, "{\"lora_name\":\"poet\"}", 200));
    for (int i = 0; i < 1000 && held(r.port) != before; i++) sched_yield();
    assert_int_equal(held(r.port), before);
    assert_true(metric(r.port, "hone_kv_bytes") == pages);
    stop(&r);
    hone_free(base);
    hone_free(rhyme);
}

/* One who is being answered keeps the adapter: who is to unload it is told so, or waits. */
static void who_uses_one_keeps_it(void **state)
{
    static const char poem[] = "{\"model\":\"poet\",\"prompt\":\"Once\",\"max_tokens\":400,\"ignore_eos\":true,"
                               "\"stream\":true,\"temperature\":0}";
    running r = { 0 };
    char first;
    begin(&r);
    json_decref(ask_json(r.port, "POST", LOAD, "{\"lora_name\":\"poet\",\"lora_path\":\"rhyme.gguf\"}", 200));
    int fd = client_connect(r.port);
    assert_true(fd >= 0 && client_request(fd, "POST", "/v1/completions", NULL, poem));
    assert_int_equal(recv(fd, &first, 1, 0), 1); /* it has begun */
    json_decref(ask_json(r.port, "POST", UNLOAD, "{\"lora_name\":\"poet\",\"force\":false}", 409));

    int waiting = client_connect(r.port);
    assert_true(waiting >= 0 && client_request(waiting, "POST", UNLOAD, NULL, "{\"lora_name\":\"poet\"}"));
    for (bool gone = false; !gone; sched_yield()) { /* it is found no more, while it is used */
        json_t *j = ask_json(r.port, "GET", "/lora-adapters", NULL, 200);
        gone = json_array_size(j) == 0;
        json_decref(j);
    }
    char peek;
    bool early = recv(waiting, &peek, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    if (metric(r.port, "hone_requests_running") > 0) assert_false(early);
    close(fd); /* its request ends, and with it the wait */
    client_answer a = client_receive(waiting);
    assert_int_equal(a.status, 200);
    client_free(&a);
    stop(&r);
}

static void what_lies_elsewhere_is_not_found(void **state)
{
    char absolute[200];
    snprintf(absolute, sizeof absolute, "{\"lora_name\":\"x\",\"lora_path\":\"%s\"}", outside);
    const struct {
        const char *path, *body;
        int status;
    } rows[] = {
        { LOAD, "{\"lora_name\":\"x\",\"lora_path\":\"../outside.gguf\"}", 404 },
        { LOAD, absolute, 404 },
        { LOAD, "{\"lora_name\":\"x\",\"lora_path\":\"link.gguf\"}", 404 },
        { LOAD, "{\"lora_name\":\"x\",\"lora_path\":\".\"}", 404 },
        { LOAD, "{\"lora_name\":\"x\",\"lora_path\":\"linked\"}", 404 },
        { LOAD, "{\"lora_name\":\"x\",\"lora_path\":\"torch\"}", 404 }, /* 400: it was read */
        { LOAD, "{\"lora_name\":\"x\",\"lora_path\":\"pipe.gguf\"}", 404 },
        { LOAD, "{\"lora_name\":\"chat\",\"lora_path\":\"rhyme.gguf\"}", 409 },
        { LOAD, "{\"lora_name\":5,\"lora_path\":\"rhyme.gguf\"}", 400 },
        { LOAD, "{\"lora_name\":\"x\",\"lora_path\":\"none.gguf\"}", 404 },
        { LOAD, "{\"lora_name\":\"x\",\"lora_path\":\"text.gguf\"}", 400 },
        { LOAD, "{\"lora_name\":\"x\"}", 400 },
        { LOAD, "{\"lora_path\":\"rhyme.gguf\"}", 400 },
        { LOAD, "{\"lora_name\":\"a/b\",\"lora_path\":\"rhyme.gguf\"}", 400 },
        { LOAD, "{\"lora_name\":\"x\",\"lora_path\":\"rhyme.gguf\",\"force\":true}", 400 },
        { UNLOAD, "{\"lora_name\":\"x\",\"force\":1}", 400 },
        { UNLOAD, "{\"lora_name\":\"x\"}", 404 },
        { UNLOAD, "[]", 400 },
    };
    running r = { 0 };
    begin(&r);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *told = ask_json(r.port, "POST", rows[i].path, rows[i].body, rows[i].status);
        const char *words = json_string_value(json_object_get(json_object_get(told, "error"), "message"));
        if (!strstr(rows[i].body, dir)) assert_null(strstr(words, dir)); /* where it lies is not told */
        json_decref(told);
    }
    json_t *j = ask_json(r.port, "GET", "/lora-adapters", NULL, 200);
    assert_int_equal(json_array_size(j), 0);
    json_decref(j);
    stop(&r);

    running closed = { .path = tiny_path };
    start(&closed, 2);
    j = ask_json(closed.port, "POST", LOAD, "{\"lora_name\":\"x\",\"lora_path\":\"rhyme.gguf\"}", 501);
    assert_non_null(strstr(json_string_value(json_object_get(json_object_get(j, "error"), "message")), "--lora-dir"));
    json_decref(j);
    stop(&closed);
}

/* ---- the list by itself ----------------------------------------------------------------------------------------- */

static void find_view(void *arg, const hn_adapter_view *v)
{
    int32_t *ids = arg;
    ids[ids[0]++ + 1] = v->id;
}

/* Where open files are wanting an adapter stays, and is there when the model is loaded again; one whose file is gone
 * is dropped. The folder may be all there is. */
static void what_passes_drops_nothing(void **state)
{
    hone_error e;
    hone_model *m;
    hn_adapter_list *a;
    hn_refusal r;
    int32_t id, ids[HN_ADAPTERS_MOST + 1] = { 0 };
    struct rlimit was, none;
    char gone[200], whole[200];
    snprintf(gone, sizeof gone, "%s/gone.gguf", inner);
    copy_file(rhyme_path, gone);
    must(hone_model_open(&m, tiny_path, &(hone_model_params){ .packed = "off" }, &e), &e);
    must(hn_adapter_list_new(&a, NULL, 0, "/", &e), &e);
    snprintf(whole, sizeof whole, "%s/rhyme.gguf", inner);
    assert_true(hn_adapter_list_load(a, m, "gone", gone + 1, &id, &r)); /* as it is below / */
    assert_true(hn_adapter_list_load(a, m, "stays", whole, &id, &r));
    assert_int_equal(id, 1);
    hn_adapter_list_close(a);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    hone_status st = hn_adapter_list_open(a, m, &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(st, HONE_E_IO);
    assert_true(hn_adapter_list_has(a, "stays") && hn_adapter_list_has(a, "gone"));
    hn_adapter_list_close(a);

    unlink(gone);
    must(hn_adapter_list_open(a, m, &e), &e);
    assert_false(hn_adapter_list_has(a, "gone"));
    hn_adapter_list_each(a, find_view, ids);
    assert_true(ids[0] == 1 && ids[1] == 1);
    hn_adapter_list_free(a);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_come_and_go),          cmocka_unit_test(what_went_is_not_the_model),
        cmocka_unit_test(vectors_have_them),         cmocka_unit_test(slots_have_them),
        cmocka_unit_test(who_uses_one_keeps_it),     cmocka_unit_test(what_lies_elsewhere_is_not_found),
        cmocka_unit_test(what_passes_drops_nothing), cmocka_unit_test(nothing_stays_of_what_went),
    };
    return cmocka_run_group_tests(tests, make_files, drop_files);
}
