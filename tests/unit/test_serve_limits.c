/* What one client may cost the others: bodies, orders, embeddings and formats have their bounds; and streams that have
 * nothing to say for a while are heard all the same. */
#define _GNU_SOURCE
#include "serve_site.h"

#include "model/model.h"
#include "slowed.h"

#include "serve/job.h"

#include <poll.h>
#include <time.h>

static const char *text_of(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

static void nap(void) { nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); }

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

/* ---- embeddings ------------------------------------------------------------------------------------------------- */

typedef struct rounds {
    hn_server s;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool opens;
    int n_done, n_round;
    uint64_t round[64]; /* [n_round] when each ended; the desk's */
} rounds;

static void note_round(void *arg)
{
    rounds *d = arg;
    if (d->n_round < 64) d->round[d->n_round++] = hn_serve_ns();
}

static void stand(void *arg)
{
    rounds *d = arg;
    pthread_mutex_lock(&d->lock);
    while (!d->opens) pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

static void note_done(void *arg)
{
    rounds *d = (rounds *)(void *)((hn_job *)arg)->server;
    pthread_mutex_lock(&d->lock);
    d->n_done++;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* Jobs that came at once: each has a round of its own, behind the answers' step; more than may wait are sent away. */
static void embeddings_take_turns(void **state)
{
    enum { MOST = 5 };
    rounds d = { .s.p.shelf.scheduler.max_queue = MOST, .lock = PTHREAD_MUTEX_INITIALIZER };
    hn_job *j = calloc(MOST + 2, sizeof *j);
    hone_error e;
    hn_refusal why;
    pthread_cond_init(&d.changed, NULL);
    d.s.tally = hn_tally_new();
    must(hn_crew_new(&d.s.crew, 1, &e), &e);
    must(hn_desk_new(&d.s.desk, note_round, NULL, &d, &e), &e);
    hn_task gate = { .fn = stand, .arg = &d };
    hn_desk_do(d.s.desk, &gate);
    for (int i = 0; i < MOST + 2; i++) {
        j[i] = (hn_job){ .server = &d.s, .quits = true };
        j[i].task = (hn_task){ .fn = note_done, .arg = &j[i] };
        j[i].desk_task = (hn_task){ .arg = &j[i] };
        assert_int_equal(hn_job_submit_embed(&j[i], &why), i <= MOST);
    }
    assert_int_equal(why.status, 429);
    assert_string_equal(why.code, "queue_full");
    pthread_mutex_lock(&d.lock);
    d.opens = true;
    pthread_cond_broadcast(&d.changed);
    while (d.n_done < MOST + 1) pthread_cond_wait(&d.changed, &d.lock);
    pthread_mutex_unlock(&d.lock);
    assert_true(hn_job_submit_embed(&j[MOST + 1], &why)); /* there is room again */
    hn_desk_free(d.s.desk);
    hn_crew_free(d.s.crew);
    assert_int_equal(d.n_done, MOST + 2);
    for (int i = 0; i + 1 < MOST + 2; i++) {
        int between = 0;
        for (int k = 0; k < d.n_round; k++) between += d.round[k] >= j[i].t_prompt && d.round[k] <= j[i + 1].t_prompt;
        assert_true(between > 0);
    }
    hn_tally_free(d.s.tally);
    pthread_cond_destroy(&d.changed);
    free(j);
}

static void nothing(void *arg) {}

/* Who lets weights come from disk has texts become vectors, too. */
static void texts_may_page(void **state)
{
    static int32_t ids[] = { 10, 11, 12 };
    static float vector[512];
    rounds d = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct hn_shelf_model model = { .name = "a", .path = site_model };
    hone_context *c;
    hone_error e;
    hn_refusal why;
    pthread_cond_init(&d.changed, NULL);
    d.s.tally = hn_tally_new();
    must(hone_context_new(&c, &(hone_context_params){ .n_threads = 1 }, &e), &e);
    must(hn_crew_new(&d.s.crew, 1, &e), &e);
    must(hn_desk_new(&d.s.desk, nothing, NULL, NULL, &e), &e);
    hn_shelf_params p = { .models = &model, .n_models = 1, .ctx = c, .desk = d.s.desk, .model.packed = "off" };
    p.scheduler.session = (hone_session_params){ .n_ctx = 64, .n_seq = 1, .allow_paging = true };
    must(hn_shelf_new(&d.s.shelf, &p, &e), &e);
    hn_book *b = hn_shelf_at(d.s.shelf, 0);
    if (!hn_shelf_take(b, NULL, true, &why)) fail_msg("%s", why.message);
    const uint64_t was = b->model->bytes_per_token;
    b->model->bytes_per_token = hn_memory_total() + 1;

    hn_run run = { .ids = ids, .n = 3 };
    hn_job j = { .server = &d.s, .book = b, .run = &run, .n_run = 1, .pooling = HONE_POOL_MEAN, .vectors = vector };
    j.n_dim = hone_embed_width(b->model, HONE_POOL_MEAN, NULL);
    assert_in_range(j.n_dim, 1, 512);
    j.task = (hn_task){ .fn = note_done, .arg = &j };
    j.desk_task = (hn_task){ .arg = &j };
    assert_true(hn_job_submit_embed(&j, &why));
    pthread_mutex_lock(&d.lock);
    while (!d.n_done) pthread_cond_wait(&d.changed, &d.lock);
    pthread_mutex_unlock(&d.lock);
    if (j.failed) fail_msg("%s", j.failure.message);
    b->model->bytes_per_token = was;
    hn_shelf_give(b);
    hn_desk_free(d.s.desk);
    hn_shelf_free(d.s.shelf);
    hn_crew_free(d.s.crew);
    hn_tally_free(d.s.tally);
    hone_context_free(c);
    pthread_cond_destroy(&d.changed);
}

/* ---- several models --------------------------------------------------------------------------------------------- */

typedef struct two {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    hone_scheduler *s[2];
    hn_desk_model desk[2];
    hn_desk *of;
    char said[64]; /* A, B: a token of either; a dot: it was handed on */
    int n, n_ended;
} two;

static two pair;

static void note_handed_on(void *arg)
{
    if (pair.n < 60) pair.said[pair.n++] = '.';
}

static bool note_token(void *arg, const hone_event *e)
{
    if (e->kind == HONE_EVENT_TOKEN && pair.n < 60) pair.said[pair.n++] = *(const char *)arg;
    if (e->kind != HONE_EVENT_END) return true;
    pthread_mutex_lock(&pair.lock);
    pair.n_ended++;
    pthread_cond_signal(&pair.changed);
    pthread_mutex_unlock(&pair.lock);
    return true;
}

static void ask_both(void *arg)
{
    static const int32_t ids[] = { 5, 6, 7 };
    uint64_t id;
    hone_error e;
    for (int i = 0; i < 2; i++) {
        hone_request r = {
            .prompt = ids, .n_prompt = 3, .max_tokens = 4, .ignore_eog = true, .n_logprobs = -1, .event = note_token
        };
        r.arg = (void *)(uintptr_t)(i ? "B" : "A");
        hone_sampler_defaults(&r.sampling);
        hn_desk_add(pair.of, &pair.desk[i]);
        must(hone_scheduler_submit(pair.s[i], &r, &id, &e), &e);
    }
}

/* What a model said is not held back while another computes. */
static void steps_are_handed_on(void **state)
{
    hone_context *c;
    hone_model *m;
    hone_error e;
    pair = (two){ .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_cond_init(&pair.changed, NULL);
    must(hone_model_open(&m, site_model, &(hone_model_params){ .packed = "off" }, &e), &e);
    must(hone_context_new(&c, &(hone_context_params){ .n_threads = 1 }, &e), &e);
    for (int i = 0; i < 2; i++) {
        const hone_scheduler_params p = { .session = { .n_ctx = 64, .n_seq = 1 } };
        must(hone_scheduler_new(&pair.s[i], c, m, &p, &e), &e);
        pair.desk[i].scheduler = pair.s[i];
    }
    hn_task ask = { .fn = ask_both };
    must(hn_desk_new(&pair.of, note_handed_on, NULL, NULL, &e), &e);
    hn_desk_do(pair.of, &ask);
    pthread_mutex_lock(&pair.lock);
    while (pair.n_ended < 2) pthread_cond_wait(&pair.changed, &pair.lock);
    pthread_mutex_unlock(&pair.lock);
    hn_desk_free(pair.of);
    if (strncmp(pair.said, "A.B.A.B.A.B.A.B.", 16) != 0) fail_msg("%s", pair.said);
    for (int i = 0; i < 2; i++) hone_scheduler_free(pair.s[i]);
    hone_context_free(c);
    hone_model_close(m);
    pthread_cond_destroy(&pair.changed);
}

/* An answer, and beside it a text of many rows that becomes a vector. */
typedef struct beside {
    hone_scheduler *s;
    hone_session *texts;
    hn_desk_model desk;
    hn_desk *of;
    hn_desk_pace pace;
    hn_task slice;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_token, last_token, n_part, n_ended; /* tokens of the answer; at the part before; parts of the text */
    int32_t fixed, n_rows;                    /* rows of a part at most; of all */
    bool broken;                              /* a part was longer, or the answer stood still between two */
    float vector[512];
} beside;

static int32_t count_part(void *arg, int32_t n_last)
{
    beside *b = arg;
    int32_t n = hn_desk_rows(b->of, &b->pace, n_last, 512);
    b->broken = b->broken || n_last > b->fixed || n > b->fixed || (n_last && b->n_token != b->last_token + 1);
    b->last_token = b->n_token;
    b->n_part++;
    b->n_rows += n_last;
    return n;
}

enum { TEXT_ROWS = 300, PART_ROWS = 8 };

static void embed_slice(void *arg)
{
    static int32_t ids[TEXT_ROWS];
    beside *b = arg;
    hone_error e;
    for (int i = 0; i < TEXT_ROWS; i++) ids[i] = 10 + i % 80;
    const hone_text_ids text = { ids, TEXT_ROWS };
    const hone_embed_params p = { .pooling = HONE_POOL_MEAN, .rows = count_part, .rows_arg = b };
    must(hone_embed(b->texts, &text, 1, &p, b->vector, &e), &e);
    pthread_mutex_lock(&b->lock);
    b->n_ended++;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static bool count_token(void *arg, const hone_event *e)
{
    beside *b = arg;
    b->n_token += e->kind == HONE_EVENT_TOKEN;
    if (e->kind == HONE_EVENT_TOKEN && b->n_token == 2) hn_desk_slice(b->of, &b->slice); /* of a row of the answer */
    if (e->kind != HONE_EVENT_END) return true;
    pthread_mutex_lock(&b->lock);
    b->n_ended++;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return true;
}

static void ask_beside(void *arg)
{
    static const int32_t ids[] = { 5, 6, 7 };
    beside *b = arg;
    uint64_t id;
    hone_error e;
    hone_request r = { .prompt = ids, .n_prompt = 3, .ignore_eog = true, .n_logprobs = -1, .event = count_token };
    r.max_tokens = TEXT_ROWS / PART_ROWS + 10;
    r.arg = b;
    hone_sampler_defaults(&r.sampling);
    hn_desk_add(b->of, &b->desk);
    must(hone_scheduler_submit(b->s, &r, &id, &e), &e);
}

/* A text of 300 rows beside an answer: parts of 8 rows, and a token of the answer between any two of them. */
static void texts_have_the_budget_of_prompts(void **state)
{
    hone_context *c;
    hone_model *m;
    hone_error e;
    beside b = { .fixed = PART_ROWS, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_cond_init(&b.changed, NULL);
    b.pace.fixed = b.fixed;
    must(hone_model_open(&m, site_model, &(hone_model_params){ .packed = "off" }, &e), &e);
    must(hone_context_new(&c, &(hone_context_params){ .n_threads = 1 }, &e), &e);
    must(hone_scheduler_new(&b.s, c, m, &(hone_scheduler_params){ .session = { .n_ctx = 128, .n_seq = 1 } }, &e), &e);
    must(hone_session_new(&b.texts, c, m, &(hone_session_params){ .n_ctx = 512 }, &e), &e);
    assert_true(hone_embed_width(m, HONE_POOL_MEAN, NULL) <= 512);
    b.desk.scheduler = b.s;
    must(hn_desk_new(&b.of, nothing, NULL, NULL, &e), &e);
    hn_task begin = { .fn = ask_beside, .arg = &b };
    b.slice = (hn_task){ .fn = embed_slice, .arg = &b };
    hn_desk_do(b.of, &begin);
    pthread_mutex_lock(&b.lock);
    while (b.n_ended < 2) pthread_cond_wait(&b.changed, &b.lock);
    pthread_mutex_unlock(&b.lock);
    hn_desk_free(b.of);
    if (b.broken || b.n_part != (TEXT_ROWS + PART_ROWS - 1) / PART_ROWS)
        fail_msg("%d parts of %d rows, %d tokens", b.n_part, b.n_rows, b.n_token);
    hone_scheduler_free(b.s);
    hone_session_free(b.texts);
    hone_context_free(c);
    hone_model_close(m);
    pthread_cond_destroy(&b.changed);
}

/* ---- the time of texts beside answers, on a clock of its own ---- */

enum { PARTS = 7, MOST_ROWS = 512 };
typedef struct pace_case {
    const char *what;
    uint64_t step_ns, row_ns; /* of a step of the answer; of a row of the text … */
    int slower_from, slower;  /* … from this part on so many times */
    int late_part;            /* one that something disturbs: it takes a second more; 0: none */
    int late_round;           /* one that takes so much more, behind this part; 0: none … */
    uint64_t late_ns;
    bool stays;         /* … and those behind it, too */
    int32_t takes;      /* rows at most of those that it may have: whole texts; 0: all */
    uint64_t budget_ns; /* between two tokens, where nothing is slower or disturbed; 0: least rows take more */
    int32_t rows[PARTS];
} pace_case;

typedef struct paced {
    const pace_case *c;
    hone_scheduler *s;
    hn_desk_model desk;
    hn_desk *of;
    hn_desk_pace pace;
    hn_task slice;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_token, n_ended, part; /* part: the one that is next */
    uint64_t other_ns;          /* of all that is no step */
    uint64_t said_at, longest;  /* of the answer's last token; between two of them, while the text is there */
    int32_t rows[PARTS];
} paced;

static uint64_t paced_ns(void *arg)
{
    const paced *p = arg;
    hone_scheduler_stats st;
    hone_scheduler_get_stats(p->s, &st);
    return st.n_steps * p->c->step_ns + p->other_ns;
}

static void paced_ends(paced *p)
{
    pthread_mutex_lock(&p->lock);
    p->n_ended++;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* The parts of a text: their rows are not computed, they only take their time. */
static void paced_text(void *arg)
{
    paced *p = arg;
    const pace_case *c = p->c;
    int32_t n = 0;
    for (p->part = 0; p->part < PARTS; p->part++) {
        p->rows[p->part] = n = hn_desk_rows(p->of, &p->pace, n, MOST_ROWS);
        const uint64_t row_ns = c->slower && p->part >= c->slower_from ? c->row_ns * (uint64_t)c->slower : c->row_ns;
        if (c->takes && n > c->takes) n = c->takes;
        p->other_ns += (uint64_t)n * row_ns;
        if (c->late_part && p->part == c->late_part) p->other_ns += 1000000000;
    }
    paced_ends(p);
}

static bool paced_token(void *arg, const hone_event *e)
{
    paced *p = arg;
    if (e->kind == HONE_EVENT_END) paced_ends(p);
    if (e->kind != HONE_EVENT_TOKEN) return true;
    if (++p->n_token == 4) hn_desk_slice(p->of, &p->slice);
    const bool within = p->part && p->part < PARTS, late = p->c->late_round && p->part >= p->c->late_round;
    if (within && late && (p->c->stays || p->part == p->c->late_round)) p->other_ns += p->c->late_ns;
    const uint64_t now = paced_ns(p);
    if (within && now - p->said_at > p->longest) p->longest = now - p->said_at;
    p->said_at = now;
    return true;
}

static void paced_ask(void *arg)
{
    static const int32_t ids[] = { 5, 6, 7 };
    paced *p = arg;
    uint64_t id;
    hone_error e;
    hone_request r = { .prompt = ids, .n_prompt = 3, .ignore_eog = true, .n_logprobs = -1, .event = paced_token };
    r.max_tokens = PARTS + 20;
    r.arg = p;
    hone_sampler_defaults(&r.sampling);
    hn_desk_add(p->of, &p->desk);
    must(hone_scheduler_submit(p->s, &r, &id, &e), &e);
}

/* A step with rows of a text beside it takes 100 ms, or twice what its answers do, as with rows of prompts: what a row
 * costs is learned, what something disturbed is not believed at once. */
static void texts_keep_to_their_time(void **state)
{
    enum { MS = 1000000 };
    static const pace_case cases[] = {
        { "rows for 90 ms", 10 * MS, MS, .budget_ns = 100 * MS, .rows = { 32, 90, 90, 90, 90, 90, 90 } },
        { "slow answers", 80 * MS, MS, .budget_ns = 160 * MS, .rows = { 32, 80, 80, 80, 80, 80, 80 } },
        { "cheap rows", 10 * MS, MS / 10, .budget_ns = 100 * MS, .rows = { 32, 512, 512, 512, 512, 512, 512 } },
        { "short texts", 10 * MS, MS, .takes = 20, .budget_ns = 100 * MS, .rows = { 32, 90, 90, 90, 90, 90, 90 } },
        { "dear rows", 10 * MS, 10 * MS, .rows = { 32, 32, 32, 32, 32, 32, 32 } },
        { "a part disturbed", 10 * MS, MS, .late_part = 2, .rows = { 32, 90, 90, 90, 90, 90, 90 } },
        { "a round disturbed", 10 * MS, MS, .late_round = 3, .late_ns = 1000 * MS,
          .rows = { 32, 90, 90, 90, 90, 90, 90 } },
        { "more answers", 10 * MS, MS, .late_round = 3, .late_ns = 50 * MS, .stays = true,
          .rows = { 32, 90, 90, 60, 60, 60, 60 } },
        { "rows become slower", 10 * MS, MS, .slower_from = 2, .slower = 4, .rows = { 32, 90, 90, 90, 45, 32, 32 } },
    };
    hone_context *c;
    hone_model *m;
    hone_error e;
    must(hone_model_open(&m, site_model, &(hone_model_params){ .packed = "off" }, &e), &e);
    must(hone_context_new(&c, &(hone_context_params){ .n_threads = 1 }, &e), &e);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        paced p = { .c = &cases[i], .lock = PTHREAD_MUTEX_INITIALIZER };
        const hone_scheduler_params sp = { .session = { .n_ctx = 64, .n_seq = 1 }, .now = paced_ns, .now_arg = &p };
        pthread_cond_init(&p.changed, NULL);
        must(hone_scheduler_new(&p.s, c, m, &sp, &e), &e);
        p.desk.scheduler = p.s;
        must(hn_desk_new(&p.of, nothing, paced_ns, &p, &e), &e);
        hn_task ask = { .fn = paced_ask, .arg = &p };
        p.slice = (hn_task){ .fn = paced_text, .arg = &p };
        hn_desk_do(p.of, &ask);
        pthread_mutex_lock(&p.lock);
        while (p.n_ended < 2) pthread_cond_wait(&p.changed, &p.lock);
        pthread_mutex_unlock(&p.lock);
        hn_desk_free(p.of);
        for (int k = 0; k < PARTS; k++)
            if (p.rows[k] != p.c->rows[k]) fail_msg("%s: part %d of %d rows", p.c->what, k, p.rows[k]);
        if (p.c->budget_ns && p.longest > p.c->budget_ns)
            fail_msg("%s: %llu ns", p.c->what, (unsigned long long)p.longest);
        if (!p.longest) fail_msg("%s: no token beside the text", p.c->what);
        hone_scheduler_free(p.s);
        pthread_cond_destroy(&p.changed);
    }
    hone_context_free(c);
    hone_model_close(m);
}

typedef struct wish {
    int port;
    const char *body;
    json_t *got;
} wish;

static void *embed(void *arg)
{
    wish *w = arg;
    w->got = ask_json(w->port, "POST", "/v1/embeddings", w->body, 200);
    return NULL;
}

static void *complete(void *arg)
{
    wish *w = arg;
    w->got = ask_json(w->port, "POST", "/completion", w->body, 200);
    return NULL;
}

/* The same of a server: while a text of 1,000 tokens becomes a vector an answer goes on, a token for any 4 of these. */
static void answers_go_on_within_a_text(void **state)
{
    enum { TEXT = 1000, PART = 4, TRIES = 50 };
    running r = { .p.shelf = { .pooling = HONE_POOL_MEAN,
                               .scheduler = { .fixed_prefill = PART, .session.n_ctx = 2048 } } };
    char text[TEXT * 4 + 20], *at = text + sprintf(text, "{\"input\":[7");
    for (int k = 1; k < TEXT; k++) at += sprintf(at, ",%d", 10 + k % 80);
    sprintf(at, "]}");
    bool there = false; /* the answer was there from before the text to behind it */
    start(&r, 2);
    for (int i = 0; i < TRIES && !there; i++) {
        wish w = { r.port, "{\"prompt\":\"The cat\",\"n_predict\":1900,\"ignore_eos\":true}", NULL };
        pthread_t t;
        const double all = metric(r.port, "hone_generated_tokens_total");
        double before = all, behind;
        assert_int_equal(pthread_create(&t, NULL, complete, &w), 0);
        while (before == all) before = metric(r.port, "hone_generated_tokens_total");
        json_decref(ask_json(r.port, "POST", "/v1/embeddings", text, 200));
        behind = metric(r.port, "hone_generated_tokens_total");
        pthread_join(t, NULL);
        there = behind < metric(r.port, "hone_generated_tokens_total");
        if (there && behind - before < TEXT / PART - 2) fail_msg("%g tokens", behind - before);
        json_decref(w.got);
    }
    assert_true(there);
    stop(&r);
}

/* Whose slices come between others' has the vectors that it would have alone. */
static void vectors_of_many_slices(void **state)
{
    enum { CLIENTS = 4, INPUTS = SLOWED ? 9 : 20 };
    running r = { .p.shelf.pooling = HONE_POOL_MEAN };
    wish w[CLIENTS];
    pthread_t t[CLIENTS];
    char *body[CLIENTS], one[2000];
    start(&r, 2);
    for (int c = 0; c < CLIENTS; c++) {
        char *at = body[c] = malloc(INPUTS * 1000);
        at += sprintf(at, "{\"input\":[");
        for (int i = 0; i < INPUTS; i++) {
            at += sprintf(at, "%s[%d", i ? "," : "", 7 + c);
            for (int k = 0; k < 10 + (SLOWED ? 27 : 13) * i; k++) at += sprintf(at, ",%d", 10 + (k * (c + 1) + i) % 80);
            at += sprintf(at, "]");
        }
        sprintf(at, "]}");
        w[c] = (wish){ r.port, body[c], NULL };
        assert_int_equal(pthread_create(&t[c], NULL, embed, &w[c]), 0);
    }
    for (int c = 0; c < CLIENTS; c++) pthread_join(t[c], NULL);
    for (int c = 0; c < CLIENTS; c++) {
        const json_t *all = json_object_get(w[c].got, "data");
        assert_int_equal(json_array_size(all), INPUTS);
        const char *at = strchr(body[c], ':') + 2;
        for (size_t i = 0; i < INPUTS; i++, at = strchr(at, ']') + 2) {
            snprintf(one, sizeof one, "{\"input\":%.*s}", (int)(strchr(at, ']') + 1 - at), at);
            json_t *o = ask_json(r.port, "POST", "/v1/embeddings", one, 200);
            const json_t *alone = json_array_get(json_object_get(o, "data"), 0);
            assert_true(
                json_equal(json_object_get(json_array_get(all, i), "embedding"), json_object_get(alone, "embedding")));
            json_decref(o);
        }
        json_decref(w[c].got);
        free(body[c]);
    }
    stop(&r);
}

/* ---- formats ---------------------------------------------------------------------------------------------------- */

static const hn_book_format *kept(const hn_book *b, const char *variables)
{
    const hn_book_format *f = b->formats;
    while (f && strcmp(f->variables, variables) != 0) f = f->next;
    return f;
}

/* However many variables clients think of: the last ones, those in use, and none at all are known. */
static void formats_used_last_stay(void **state)
{
    enum { MANY = 40, MOST = 16, LARGE = 5000 };
    hone_error e;
    hn_refusal why;
    hone_context *ctx;
    hn_desk *desk;
    hn_shelf *shelf;
    const struct hn_shelf_model m = { .name = "chat", .path = site_model };
    char key[LARGE + 20];
    must(hone_context_new(&ctx, &(hone_context_params){ .n_threads = 1 }, &e), &e);
    must(hn_desk_new(&desk, nothing, NULL, NULL, &e), &e);
    hn_shelf_params p = { .models = &m, .n_models = 1, .ctx = ctx, .desk = desk, .model.packed = "off" };
    p.scheduler.session = (hone_session_params){ .n_ctx = SITE_CTX, .n_seq = 1 };
    must(hn_shelf_new(&shelf, &p, &e), &e);
    hn_book *b = hn_shelf_at(shelf, 0);
    if (!hn_shelf_take(b, NULL, true, &why)) fail_msg("%s", why.message);

    assert_non_null(kept(b, "")); /* what /props tells is known as soon as the model is there */
    hn_book_format *plain, *used, *again, *f;
    must(hn_book_format_take(b, NULL, NULL, &plain, &e), &e);
    hn_book_format_give(plain);
    must(hn_book_format_take(b, "{\"used\":1}", NULL, &used, &e), &e);
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "{\"a\":%d}", i);
        must(hn_book_format_take(b, key, NULL, &f, &e), &e);
        must(hn_book_format_take(b, key, NULL, &again, &e), &e);
        assert_ptr_equal(again, f);
        hn_book_format_give(f);
        hn_book_format_give(again);
        assert_non_null(kept(b, key));
    }
    assert_ptr_equal(kept(b, ""), plain);
    assert_ptr_equal(kept(b, "{\"used\":1}"), used);
    assert_null(kept(b, "{\"a\":0}"));
    assert_non_null(kept(b, "{\"a\":30}"));
    memset(key, ' ', LARGE);
    strcpy(key + LARGE, "{\"large\":1}");
    must(hn_book_format_take(b, key, NULL, &f, &e), &e);
    assert_non_null(kept(b, key));
    hn_book_format_give(f);
    assert_null(kept(b, key));
    hn_book_format_give(used);
    int n = 0;
    for (const hn_book_format *x = b->formats; x; x = x->next) n++;
    assert_true(n <= MOST + 1);

    hn_shelf_give(b);
    hn_desk_free(desk);
    hn_shelf_free(shelf);
    hone_context_free(ctx);
}

/* ---- signs of life ---------------------------------------------------------------------------------------------- */

/* ollama's streams have calls whole: while one is written there are lines of nothing. This call takes longer than that,
 * mostly; those who look for silence look now and then. */
static void a_call_that_gathers_is_heard(void **state)
{
    enum { TRIES = 60 };
    static const char asked[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"What is the weather in Paris?\"}],\"options\":{"
        "\"temperature\":0},\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":{"
        "\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\",\"minLength\":1400}},\"required\":["
        "\"city\"],\"additionalProperties\":false}}}]}";
    running r = { .p.ollama = true, .p.silent_ms = 1 };
    int n_nothing = 0;
    start(&r, 1);
    for (int i = 0; i < TRIES && !n_nothing; i++) {
        client_answer a = client_ask(r.port, "POST", "/api/chat", NULL, asked);
        assert_int_equal(a.status, 200);
        for (const char *p = a.body; *p; p += strcspn(p, "\n") + 1) {
            json_t *o = json_loadb(p, strcspn(p, "\n"), 0, NULL), *m = json_object_get(o, "message");
            if (!o || *text_of(m, "content")) fail_msg("no line of nothing: %s", p);
            n_nothing += !json_is_true(json_object_get(o, "done")) && !json_object_get(m, "tool_calls");
            json_decref(o);
        }
        client_free(&a);
    }
    assert_true(n_nothing > 0);
    stop(&r);
}

/* An answer that nobody takes, and larger than what systems buffer: it keeps its model in use. Where the machine is
 * busy the model is ahead of what is sent: its context must not be full before it is told to wait. */
enum { HELD_CTX = 16384 };

static int hold(int port, const char *model)
{
    int small = 4096, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    char body[200], c;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    snprintf(body, sizeof body,
             "{\"model\":\"%s\",\"prompt\":\"The cat\",\"n_probs\":64,\"n\":4,\"ignore_eos\":true,\"stream\":true}",
             model);
    assert_true(client_request(fd, "POST", "/completion", NULL, body));
    assert_int_equal(recv(fd, &c, 1, 0), 1);
    return fd;
}

/* The rest of a stream: what it begins with, up to n bytes with mark in it, was read already. */
static void read_until(int fd, const char *mark, char *got, size_t cap)
{
    size_t n = 0;
    got[0] = 0;
    while (!strstr(got, mark)) {
        ssize_t k = recv(fd, got + n, cap - 1 - n, 0);
        if (k <= 0) fail_msg("no %s in %s", mark, got);
        got[n += (size_t)k] = 0;
    }
}

static const char *joined(const char *body, char *to)
{
    bool done = false;
    json_t *e;
    *to = 0;
    for (const char *p = body; (e = client_event(&p, &done)); json_decref(e)) {
        const json_t *choice = json_array_get(json_object_get(e, "choices"), 0);
        const char *text = text_of(json_object_get(choice, "delta"), "content");
        if (text) strcat(to, text);
    }
    return done ? to : "no end";
}

/* A stream whose model has no room yet begins all the same, and is silent in its own way: comments, or lines of nothing
 * where there are none. Then comes what would have come at once; or what failed. */
static void who_waits_is_heard(void **state)
{
#define TALK "\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]"
    static const char chat[] = "{\"model\":\"other\"," TALK ",\"seed\":3,\"max_tokens\":20,\"stream\":true}";
    static const char late[] = "{\"model\":\"chat\"," TALK ",\"max_tokens\":3,\"stream\":true}";
    running r = { .p.ollama = true,
                  .p.silent_ms = 1,
                  .p.shelf = { .n_models = 2, .max_loaded = 1, .scheduler.session.n_ctx = HELD_CTX } };
    char got[8192], text[2][4096];
    start(&r, 4);
    int held = hold(r.port, "chat"), fd = client_connect(r.port), other = client_connect(r.port);
    assert_true(client_request(fd, "POST", "/v1/chat/completions", NULL, chat));
    assert_true(client_request(other, "POST", "/api/chat", NULL, "{\"model\":\"other\"," TALK "}"));
    read_until(fd, "\n:", got, sizeof got);
    assert_true(strncmp(got, "HTTP/1.1 200", 12) == 0 && !strstr(got, "data:"));
    read_until(other, "\"done\":false", got, sizeof got);
    assert_non_null(strstr(got, "\"model\":\"other\""));
    close(held);
    size_t n;
    char *rest = client_read_all(fd, &n);
    close(fd);
    assert_true(n > 7 && memcmp(rest + n - 7, "\r\n0\r\n\r\n", 7) == 0);
    joined(rest, text[0]);
    free(rest);
    rest = client_read_all(other, &n);
    close(other);
    assert_non_null(strstr(rest, "\"done\":true"));
    free(rest);
    client_answer a = client_ask(r.port, "POST", "/v1/chat/completions", NULL, chat);
    assert_string_equal(text[0], joined(a.body, text[1]));
    assert_true(strlen(text[0]) > 0);
    client_free(&a);

    held = hold(r.port, "other");
    a = client_ask(r.port, "POST", "/v1/chat/completions", "X-Hone-Timeout-Ms: 600\r\n", late);
    assert_int_equal(a.status, 200);
    assert_true(a.whole);
    if (!strstr(a.body, "\"code\":\"timeout\"")) fail_msg("it had time: %s", a.body);
    client_free(&a);
    a = client_ask(r.port, "POST", "/v1/messages", "X-Hone-Timeout-Ms: 600\r\n", late);
    if (!a.whole || !strstr(a.body, "event: error")) fail_msg("whole %d, status %d: %s", a.whole, a.status, a.body);
    client_free(&a);
    /* no stream, no early head */
    a = client_ask(r.port, "POST", "/v1/chat/completions", "X-Hone-Timeout-Ms: 600\r\n",
                   "{\"model\":\"chat\"," TALK ",\"max_tokens\":3}");
    assert_int_equal(a.status, 504);
    client_free(&a);
    fd = client_connect(r.port); /* who leaves meanwhile is forgotten */
    assert_true(client_request(fd, "POST", "/v1/chat/completions", NULL, late));
    read_until(fd, "\n:", got, sizeof got);
    close(fd);
    while (metric(r.port, "hone_cancelled_total") < 2) nap();
    /* what is wrong with a request is told in its stream where that was found late */
    fd = client_connect(r.port);
    assert_true(client_request(fd, "POST", "/v1/chat/completions", NULL,
                               "{\"model\":\"chat\"," TALK ",\"logit_bias\":{\"999999\":1},\"stream\":true}"));
    read_until(fd, "\n:", got, sizeof got);
    close(held);
    rest = client_read_all(fd, &n);
    close(fd);
    assert_non_null(strstr(rest, "out_of_range"));
    assert_true(n > 7 && memcmp(rest + n - 7, "\r\n0\r\n\r\n", 7) == 0);
    free(rest);
    stop(&r);
}

/* A whole answer within some seconds; fails where none comes. */
static client_answer ask_soon(int port, const char *path, const char *body)
{
    int fd = client_connect(port);
    struct timeval most = { .tv_sec = 20 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    assert_true(client_request(fd, "POST", path, NULL, body));
    client_answer a = client_receive(fd);
    if (!a.status) fail_msg("%s: no answer", path);
    return a;
}

/* What needs no room for a model is done while another waits for room. */
static void orders_overtake(void **state)
{
    static const struct {
        const char *path, *body;
        int status;
    } rows[] = { { "/models/unload", "{\"model\":\"chat\"}", 409 },
                 { "/models/load", "{\"model\":\"chat\"}", 200 },
                 { "/api/generate", "{\"model\":\"chat\",\"keep_alive\":0}", 409 },
                 { "/v1/load_lora_adapter", "{\"lora_name\":\"a\",\"lora_path\":\"nowhere.gguf\"}", 404 },
                 { "/v1/unload_lora_adapter", "{\"lora_name\":\"a\"}", 404 } };
    running r = { .p.ollama = true,
                  .p.silent_ms = 1,
                  .p.shelf = { .n_models = 2,
                               .max_loaded = 1,
                               .lora_folder = "models",
                               .scheduler = { .session.n_ctx = HELD_CTX, .max_queue = 2 } } };
    char got[8192];
    start(&r, 4);
    int held = hold(r.port, "chat"), fd = client_connect(r.port);
    assert_true(client_request(fd, "POST", "/v1/chat/completions", NULL,
                               "{\"model\":\"other\"," TALK ",\"max_tokens\":3,\"stream\":true}"));
    read_until(fd, "\n:", got, sizeof got); /* it waits */
    for (int i = 0; i < 3; i++) {           /* those that wait behind it and leave make room in the queue */
        int gone = client_connect(r.port);
        assert_true(client_request(gone, "POST", "/v1/chat/completions", NULL,
                                   "{\"model\":\"other\"," TALK ",\"max_tokens\":3,\"stream\":true}"));
        assert_int_equal(recv(gone, got, 12, MSG_WAITALL), 12);
        if (memcmp(got, "HTTP/1.1 200", 12) != 0) fail_msg("%d left: %.12s", i, got);
        close(gone);
        while (metric(r.port, "hone_cancelled_total") <= i) nap();
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        client_answer a = ask_soon(r.port, rows[i].path, rows[i].body);
        if (a.status != rows[i].status) fail_msg("%s: status %d: %s", rows[i].path, a.status, a.body);
        client_free(&a);
    }
    /* those that are told to load it and wait behind that are told at once that it was unloaded; requests wait on */
    static const char *const ways[][4] = {
        { "/models/load", "{\"model\":\"other\"}", "/models/unload", "{\"model\":\"other\"}" },
        { "/models/load", "{\"model\":\"other\"}", "/api/generate", "{\"model\":\"other\",\"keep_alive\":0}" },
        { "/api/generate", "{\"model\":\"other\"}", "/models/unload", "{\"model\":\"other\"}" },
        { "/api/generate", "{\"model\":\"other\"}", "/api/chat", "{\"model\":\"other\",\"keep_alive\":0}" },
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int told = client_connect(r.port), tries = 200;
        struct pollfd said = { .fd = told, .events = POLLIN };
        client_answer a;
        /* and behind it, heard with its answer, what takes it back */
        char both[800];
        int k = snprintf(both, sizeof both,
                         "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu"
                         "\r\n\r\n%sPOST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                         ways[i][0], strlen(ways[i][1]), ways[i][1], ways[i][2], strlen(ways[i][3]), ways[i][3]);
        assert_true(client_send(told, both, (size_t)k));
        do { /* once more where it had not come by then */
            a = ask_soon(r.port, ways[i][2], ways[i][3]);
            assert_int_equal(a.status, 200);
            client_free(&a);
        } while (poll(&said, 1, 50) == 0 && --tries);
        if (!tries) fail_msg("%zu: it waits on", i);
        a = client_receive(told);
        if (a.status != 409 || !strstr(a.body, "told to be unloaded"))
            fail_msg("%zu: status %d: %s", i, a.status, a.body);
        client_free(&a);
        close(told);
    }
    close(held);
    size_t n;
    char *rest = client_read_all(fd, &n);
    assert_non_null(strstr(rest, "[DONE]"));
    free(rest);
    close(fd);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(orders_are_short),
                                        cmocka_unit_test(streams_drop_their_bodies),
                                        cmocka_unit_test(embeddings_take_turns),
                                        cmocka_unit_test(texts_may_page),
                                        cmocka_unit_test(steps_are_handed_on),
                                        cmocka_unit_test(texts_have_the_budget_of_prompts),
                                        cmocka_unit_test(texts_keep_to_their_time),
                                        cmocka_unit_test(answers_go_on_within_a_text),
                                        cmocka_unit_test(vectors_of_many_slices),
                                        cmocka_unit_test(formats_used_last_stay),
                                        cmocka_unit_test(a_call_that_gathers_is_heard),
                                        cmocka_unit_test(who_waits_is_heard),
                                        cmocka_unit_test(orders_overtake) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
