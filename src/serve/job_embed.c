/* Embeddings and scores of a job: texts become tokens on a worker, vectors on the desk, a few texts between two
 * steps of answers, and JSON on a worker again. */
#include "serve/job.h"

#include <math.h>
#include <stdlib.h>

enum {
    AT_ONCE = HN_BOOK_TEXTS,
    STEP_TOKENS = HN_BOOK_TEXT_TOKENS,
    MOST_NUMBERS = 1 << 22 /* of rows of tokens: a body names more than anybody wants */
};

static bool no_memory(hn_refusal *r) { return hn_refuse(r, 500, "out_of_memory", NULL, "no memory for this request"); }

static bool refuse_error(const hone_error *err, hn_refusal *r)
{
    if (err->code == HONE_E_NOMEM) return no_memory(r);
    if (err->code == HONE_E_UNSUPPORTED) return hn_refuse(r, 501, "not_supported_error", NULL, "%s", err->message);
    if (err->code == HONE_E_ARG || err->code == HONE_E_CTX)
        return hn_refuse(r, 400, "out_of_range", "input", "%s", err->message);
    return hn_refuse(r, 500, NULL, NULL, "%s", err->message);
}

/* ---- on a worker: tokens ---------------------------------------------------------------------------------------- */

/* What is asked for, as the file or the command line says. */
static bool choose_pooling(hn_job *j, hn_refusal *r)
{
    const hn_book *b = j->book;
    hone_pooling want = j->ask.kind == HN_ASK_RERANK ? HONE_POOL_RANK : b->shelf_pooling;
    j->n_dim = hone_embed_width(b->model, want, &j->pooling);
    if (j->n_dim) return true;
    if (j->ask.kind == HN_ASK_RERANK)
        return hn_refuse(r, 501, "not_supported_error", NULL, "model '%s' has nothing to score documents with",
                         b->name);
    return hn_refuse(r, 400, "unsupported_parameter", "model",
                     "model '%s' does not say how its rows become one vector; start hone serve with --pooling mean or "
                     "last, or use a model of embeddings",
                     b->name);
}

static bool check_length(hn_run *run, hn_refusal *r)
{
    hn_job *j = run->job;
    size_t most = (size_t)j->book->n_embed;
    if (!run->n) return hn_refuse(r, 400, "out_of_range", "input", "input %d has no tokens", run->index);
    if (run->n <= most) return true;
    if (!j->ask.truncate) return hn_refuse_context(r, run->n > INT32_MAX ? INT32_MAX : (int32_t)run->n, (int32_t)most);
    run->n = most;
    return true;
}

/* An input: a text, ids, or both in turns. */
static bool read_input(hn_run *run, const hn_ask_prompt *p, hn_refusal *r)
{
    const int32_t n_vocab = run->job->book->info.n_vocab;
    if (!hn_run_add_pieces(run, p, HONE_TOK_ADD | (run->job->ask.parse_special ? HONE_TOK_SPECIAL : 0), r))
        return false;
    for (size_t i = 0; i < run->n; i++)
        if (run->ids[i] < 0 || run->ids[i] >= n_vocab)
            return hn_refuse(r, 400, "out_of_range", "input", "token id %d, expected 0 to %d", run->ids[i],
                             n_vocab - 1);
    return true;
}

/* A document, with the query that all of them are held against. */
static bool read_document(hn_run *run, const hn_ask_prompt *query, const hn_ask_prompt *p, hn_refusal *r)
{
    hone_error err;
    if (!p->text || !query->text)
        return hn_refuse(r, 400, "invalid_type", "documents", "expected texts, and a text as the query");
    if (hone_rank_tokenize(run->job->book->model, NULL, query->text, query->len, p->text, p->len, &run->ids, &run->n,
                           &err) != HONE_OK)
        return refuse_error(&err, r);
    return true;
}

bool hn_job_read_embed(hn_job *j, hn_refusal *r)
{
    const hn_ask *a = &j->ask;
    bool rank = a->kind == HN_ASK_RERANK;
    size_t n = a->n_prompt - (rank ? 1 : 0);
    if (!choose_pooling(j, r)) return false;
    if (a->dimensions > j->n_dim)
        return hn_refuse(r, 400, "out_of_range", "dimensions", "%d dimensions, the model has %d", a->dimensions,
                         j->n_dim);
    bool each = j->pooling == HONE_POOL_NONE;
    if (each && !a->token_rows)
        return hn_refuse(r, 400, "unsupported_parameter", "model",
                         "model '%s' gives a vector for each token; expected /embeddings, or hone serve with --pooling",
                         j->book->name);
    if (each && a->dimensions)
        return hn_refuse(r, 400, "unsupported_parameter", "dimensions", "rows of tokens are as they are");

    if (!(j->run = calloc(n ? n : 1, sizeof *j->run))) return no_memory(r);
    if (each && !(j->row_count = hn_arena_alloc(a->arena, n * sizeof *j->row_count))) return no_memory(r);
    j->n_run = n;
    for (size_t i = 0; i < n; i++) {
        hn_run *run = &j->run[i];
        run->job = j;
        run->index = (int32_t)i;
        if (rank ? !read_document(run, &a->prompt[0], &a->prompt[i + 1], r) : !read_input(run, &a->prompt[i], r))
            return false;
        if (!check_length(run, r)) return false;
        j->n_rows += each ? run->n : 1;
        if (each) j->row_count[i] = (int32_t)run->n;
    }
    if (each && j->n_rows > MOST_NUMBERS / (size_t)j->n_dim)
        return hn_refuse(r, 400, "out_of_range", "input",
                         "%zu tokens are rows of %d numbers each; expected %d tokens at most", j->n_rows, j->n_dim,
                         MOST_NUMBERS / j->n_dim);
    j->vectors = calloc((j->n_rows ? j->n_rows : 1) * (size_t)j->n_dim, sizeof *j->vectors);
    return j->vectors || no_memory(r);
}

/* ---- on the desk: vectors --------------------------------------------------------------------------------------- */

static hone_status open_session(hn_book *b, hone_error *err)
{
    if (b->embed) return HONE_OK;
    hone_session_params p = { .n_ctx = b->n_embed,
                              .n_seq = AT_ONCE,
                              .n_chunk = b->info.causal ? 0 : b->n_embed, /* others read a text at once */
                              .cache = b->shelf_cache,
                              .allow_paging = b->shelf_paging,
                              .cache_budget = b->embed_room };
    return hone_session_new(&b->embed, b->shelf_ctx, b->model, &p, err);
}

/* Asked while texts are computed: is there nobody left who waits for them? */
static bool gives_up(void *arg)
{
    const hn_job *j = arg;
    return atomic_load(&j->quits) || (j->deadline && hn_serve_ns() > j->deadline);
}

static int32_t rows_beside_answers(void *arg, int32_t n_last)
{
    const hn_job *j = arg;
    return hn_desk_rows(j->server->desk, &j->book->embed_pace, n_last, STEP_TOKENS);
}

/* With the adapters of the request, which others' texts do not have. */
static hone_status embed_with(hn_job *j, const hone_text_ids *text, int32_t n, hone_error *err)
{
    hone_session *s = j->book->embed;
    hone_embed_params p = {
        .pooling = j->pooling, .plain = j->ask.norm != 2, .rows = rows_beside_answers, .rows_arg = j
    };
    hone_status st = hone_session_set_adapters(s, j->adapters, j->scales, (int32_t)j->n_adapters, err);
    if (st != HONE_OK) return st;
    hone_session_set_abort(s, gives_up, j);
    st = hone_embed(s, text, n, &p, j->vectors + j->rows_embedded * (size_t)j->n_dim, err);
    hone_session_set_abort(s, NULL, NULL);
    hone_session_set_adapters(s, NULL, NULL, 0, NULL);
    return st;
}

/* The next few texts, of not more than STEP_TOKENS but for one that is longer: other texts wait meanwhile, answers go
 * on between its parts. *done: those were the last. */
static hone_status embed_some(hn_job *j, bool *done, hone_error *err)
{
    hone_text_ids text[AT_ONCE];
    int32_t n = 0;
    size_t n_tok = 0;
    hone_status st = open_session(j->book, err);
    for (; n < AT_ONCE && j->n_embedded + (size_t)n < j->n_run; n++) {
        const hn_run *run = &j->run[j->n_embedded + (size_t)n];
        if (n && (n_tok += run->n) > STEP_TOKENS) break;
        if (!n) n_tok = run->n;
        text[n] = (hone_text_ids){ run->ids, (int32_t)run->n };
    }
    if (st == HONE_OK && n) st = embed_with(j, text, n, err);
    for (int32_t i = 0; i < n; i++) j->rows_embedded += j->row_count ? (size_t)text[i].n : 1;
    j->n_embedded += (size_t)n;
    *done = st != HONE_OK || j->n_embedded == j->n_run;
    return st;
}

static void embed(void *arg)
{
    hn_job *j = arg;
    hone_error err;
    bool done = true;
    if (!j->t_prompt) {
        j->t_prompt = hn_serve_ns();
        hn_tally_take(j->server->tally, HN_TIME_QUEUE, (double)(j->t_prompt - j->t_begin) * 1e-9);
    }
    atomic_store(&j->runs, true);
    hone_status st = gives_up(j) ? HONE_E_INTERRUPTED : embed_some(j, &done, &err);
    j->failed = st != HONE_OK;
    if (st == HONE_E_INTERRUPTED && atomic_load(&j->quits)) hn_refuse_draining(&j->failure);
    else if (st == HONE_E_INTERRUPTED) hn_job_late(j, &j->failure);
    else if (st != HONE_OK) refuse_error(&err, &j->failure);
    if (!done) {
        hn_desk_slice(j->server->desk, &j->desk_task);
        return;
    }
    atomic_fetch_sub(&j->server->n_embeds, 1);
    hn_crew_do(j->server->crew, &j->task);
}

/* To the end of the queue. */
static void queue(void *arg)
{
    hn_job *j = arg;
    j->desk_task.fn = embed;
    hn_desk_slice(j->server->desk, &j->desk_task);
}

void hn_job_count_embeds(const hn_server *s, uint64_t *running, uint64_t *waiting)
{
    int n = atomic_load(&s->n_embeds);
    *running += n > 0;
    *waiting += n > 1 ? (uint64_t)n - 1 : 0;
}

bool hn_job_submit_embed(hn_job *j, hn_refusal *r)
{
    hn_server *s = j->server;
    int most = hn_job_most_waiting(s);
    if (atomic_fetch_add(&s->n_embeds, 1) > most) { /* one is computed, the others wait */
        atomic_fetch_sub(&s->n_embeds, 1);
        hn_refuse(r, 429, "queue_full", NULL, "%d requests of embeddings and scores wait; try again", most);
        r->retry_after = 1;
        hn_tally_add(s->tally, HN_COUNT_REJECTED_QUEUE, 1);
        return false;
    }
    j->desk_task.fn = queue;
    hn_desk_do(s->desk, &j->desk_task);
    return true;
}

/* ---- what was found --------------------------------------------------------------------------------------------- */

/* What x [n] is divided by, so that its norm is 1. */
static double norm_of(const float *x, int32_t n, int32_t norm)
{
    double most = 0, sum = 0;
    for (int32_t k = 0; k < n; k++) most = fmax(most, fabs((double)x[k]));
    for (int32_t k = 0; k < n && most > 0; k++) {
        double v = fabs((double)x[k]);
        sum += norm == 1 ? v : norm == 2 ? v * v : pow(v / most, norm); /* of shares: no power leaves the range */
    }
    switch (norm) {
    case -1: return 1;
    case 0: return most / 32760; /* llama-server's: they are to fit 16 bits */
    case 1: return sum;
    case 2: return sqrt(sum);
    default: return most * pow(sum, 1.0 / norm);
    }
}

/* Vectors that were cut to fewer dimensions are of length 1 again; those of another norm were left as they came. */
static void finish_vectors(hn_job *j)
{
    int32_t norm = j->ask.norm, n = j->ask.dimensions && j->ask.dimensions < j->n_dim ? j->ask.dimensions : j->n_dim;
    if (n == j->n_dim && norm == 2) return;
    for (size_t i = 0; i < j->n_run; i++) {
        const float *from = j->vectors + i * (size_t)j->n_dim;
        float *to = j->vectors + i * (size_t)n;
        double by = norm_of(from, n, norm), scale = by > 0 ? 1 / by : 0;
        for (int32_t k = 0; k < n; k++) to[k] = (float)((double)from[k] * scale);
    }
    j->n_dim = n;
}

bool hn_job_find_embed(hn_job *j, hn_found *f, hn_refusal *r)
{
    if (j->failed) {
        *r = j->failure;
        return false;
    }
    for (size_t i = 0; i < j->n_run; i++) f->n_tokens += (int32_t)j->run[i].n;
    hn_tally_add(j->server->tally, HN_COUNT_PROMPT, (uint64_t)f->n_tokens);
    if (j->ask.kind == HN_ASK_RERANK) {
        for (size_t i = 1; i < j->n_run; i++) j->vectors[i] = j->vectors[i * (size_t)j->n_dim]; /* the first class's */
        f->scores = j->vectors;
        return true;
    }
    if (!j->row_count) finish_vectors(j); /* rows of tokens are as they come */
    f->vectors = j->vectors;
    f->n_rows = j->row_count;
    f->n_dim = j->n_dim;
    return true;
}
