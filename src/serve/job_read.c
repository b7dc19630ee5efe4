/* The worker's part of a job: the body becomes an ask, conversations and texts become tokens, answers get what reads
 * them. Whatever is wrong with a request is found here, before anything is queued. */
#include "base/os.h"
#include "serve/job.h"

#include <math.h>
#include <stdlib.h>

static bool no_memory(hn_refusal *r) { return hn_refuse(r, 500, "out_of_memory", NULL, "no memory for this request"); }

/* A failure of the library as a client's: 400 where its request is to blame. code, param: of those. */
static bool refuse_error(const hone_error *err, const char *code, const char *param, hn_refusal *r)
{
    switch (err->code) {
    case HONE_E_ARG:
    case HONE_E_CTX:
    case HONE_E_FORMAT: return hn_refuse(r, 400, code, param, "%s", err->message);
    case HONE_E_UNSUPPORTED: return hn_refuse(r, 400, code, param, "%s", err->message);
    case HONE_E_NOMEM: return no_memory(r);
    default: return hn_refuse(r, 500, NULL, NULL, "%s", err->message);
    }
}

/* ---- tokens ----------------------------------------------------------------------------------------------------- */

static bool add_ids(hn_run *run, const int32_t *ids, size_t n, hn_refusal *r)
{
    if (!n) return true;
    int32_t *more = realloc(run->ids, (run->n + n) * sizeof *more);
    if (!more) return no_memory(r);
    memcpy(more + run->n, ids, n * sizeof *ids);
    run->ids = more;
    run->n += n;
    return true;
}

static bool add_text(hn_run *run, const char *text, size_t len, int flags, hn_refusal *r)
{
    int32_t *ids;
    size_t n;
    hone_error err;
    if (hone_tokenize(run->job->book->model, text, len, flags, &ids, &n, &err) != HONE_OK)
        return refuse_error(&err, "invalid_type", "prompt", r);
    bool ok = add_ids(run, ids, n, r);
    hone_free(ids);
    return ok;
}

bool hn_run_add_pieces(hn_run *run, const hn_ask_prompt *p, int flags, hn_refusal *r)
{
    for (; p; p = p->more) {
        if (p->text ? !add_text(run, p->text, p->len, flags, r) : !add_ids(run, p->ids, p->n, r)) return false;
        flags &= ~(HONE_TOK_ADD | HONE_TOK_ADD_BOS);
    }
    return true;
}

/* A prompt of texts and ids; what is added at the beginning of a text is added at the prompt's alone. */
static bool read_prompt(hn_run *run, const hn_ask_prompt *p, hn_refusal *r)
{
    const hn_ask *a = &run->job->ask;
    int begin = a->kind == HN_ASK_TOKENIZE ? HONE_TOK_ADD : HONE_TOK_ADD_BOS, /* what is answered goes on */
        flags = (a->parse_special ? HONE_TOK_SPECIAL : 0) | (a->add_special && !a->n_context ? begin : 0);
    run->text = p->more ? NULL : p->text; /* NULL: echoed as its tokens' text */
    run->len = p->len;
    return add_ids(run, a->context, a->n_context, r) && hn_run_add_pieces(run, p, flags, r);
}

/* A token that fills gaps; false: the model has none. */
static bool add_fim(hn_run *run, hone_fim which, hn_refusal *r)
{
    int32_t id = hone_token_fim(run->job->book->model, which);
    return id < 0 || add_ids(run, &id, 1, r);
}

/* What the context leaves to prefix and suffix: three quarters to the end of the prefix, a quarter to the beginning of
 * the suffix. Files are left out before. What stands in front of the gap may come in two parts, input_prefix and prompt
 * (llama.vim sends whole lines and the line before the cursor): the prompt's tokens end the prefix, as llama-server has
 * it. */
enum { INFILL_ROOM = 256 /* positions left for the answer, at least */ };

static bool tokens_of(hn_job *j, const char *text, int32_t **ids, size_t *n, hn_refusal *r)
{
    hone_error err;
    return hone_tokenize(j->book->model, text, strlen(text), 0, ids, n, &err) == HONE_OK
               ? true
               : refuse_error(&err, "invalid_type", "input_prefix", r);
}

static bool read_files(hn_run *run, size_t room, hn_refusal *r)
{
    hn_job *j = run->job;
    bool repository =
        hone_token_fim(j->book->model, HONE_FIM_REPOSITORY) >= 0 && hone_token_fim(j->book->model, HONE_FIM_FILE) >= 0;
    if (j->ask.n_files && repository && (!add_fim(run, HONE_FIM_REPOSITORY, r) || !add_text(run, "project\n", 8, 0, r)))
        return false;

    for (size_t i = 0; i < j->ask.n_files; i++) {
        const hn_ask_file *f = &j->ask.files[i];
        size_t before = run->n;
        if (repository && (!add_fim(run, HONE_FIM_FILE, r) || !add_text(run, f->name, strlen(f->name), 0, r) ||
                           !add_text(run, "\n", 1, 0, r)))
            return false;
        if (!add_text(run, f->text, strlen(f->text), 0, r)) return false;
        if (run->n > room) { /* it does not fit: the ones that follow may */
            run->n = before;
            run->truncated = true;
        }
    }
    if (j->ask.n_files && repository && (!add_fim(run, HONE_FIM_FILE, r) || !add_text(run, "filename\n", 9, 0, r)))
        return false;
    return true;
}

static bool read_infill(hn_run *run, hn_refusal *r)
{
    hn_job *j = run->job;
    const hone_model *m = j->book->model;
    if (hone_token_fim(m, HONE_FIM_PREFIX) < 0 || hone_token_fim(m, HONE_FIM_SUFFIX) < 0 ||
        hone_token_fim(m, HONE_FIM_MIDDLE) < 0)
        return hn_refuse(r, 501, "not_supported_error", NULL,
                         "model '%s' was not taught to fill gaps: its vocabulary has no such tokens", j->book->name);

    hn_run prefix = { .job = j };
    int32_t *suffix = NULL, bos = hone_token_bos(m);
    size_t n_suffix = 0, n_ctx = (size_t)j->book->n_ctx,
           room = n_ctx > INFILL_ROOM + 64 ? n_ctx - INFILL_ROOM : n_ctx / 2;
    bool ok = tokens_of(j, j->ask.prefix, &prefix.ids, &prefix.n, r) &&
              tokens_of(j, j->ask.suffix, &suffix, &n_suffix, r) &&
              (!j->ask.n_prompt || hn_run_add_pieces(&prefix, j->ask.prompt, 0, r));
    if (ok && bos >= 0) ok = add_ids(run, &bos, 1, r);

    size_t skipped = 0, gap = prefix.n + n_suffix + 8;
    if (ok && gap > room) { /* both too long: each keeps its part next to the gap */
        size_t most_suffix = room / 4, most_prefix;
        if (n_suffix > most_suffix) n_suffix = most_suffix;
        most_prefix = room - n_suffix > 8 ? room - n_suffix - 8 : 0;
        if (prefix.n > most_prefix) skipped = prefix.n - most_prefix;
        run->truncated = true;
        gap = room;
    }
    ok = ok && read_files(run, room - gap, r) && add_fim(run, HONE_FIM_PREFIX, r) &&
         add_ids(run, prefix.ids + skipped, prefix.n - skipped, r) && add_fim(run, HONE_FIM_SUFFIX, r) &&
         add_ids(run, suffix, n_suffix, r) && add_fim(run, HONE_FIM_MIDDLE, r);
    hone_free(prefix.ids);
    hone_free(suffix);
    return ok;
}

/* ---- conversations ---------------------------------------------------------------------------------------------- */

/* The template's variables with the effort that was asked for. A template that knows no effort does what it does; the
 * field is named among those that were passed over. *out: malloc'ed by the library, or NULL. */
static bool think(hn_job *j, const hone_chat_params *p, char **out, hn_refusal *r)
{
    hone_error err;
    *out = NULL;
    if (!j->ask.effort) return true;
    const char *how = j->ask.effort;
    hone_status st = hone_chat_think(j->book->model, p, how, out, &err);
    if (st == HONE_E_ARG && strcmp(how, "off") != 0) st = hone_chat_think(j->book->model, p, "on", out, &err);
    if (st == HONE_OK) return true;
    if (st == HONE_E_NOMEM) return no_memory(r);
    j->effort_ignored = true;
    return true;
}

/* Where the next turn may leave this prompt; a model that can go back anywhere needs no such place. */
static hone_status find_mark(hn_run *run, const hone_chat_params *p, hone_error *err)
{
    const hn_book *b = run->job->book;
    if (!p->add_generation_prompt || (!b->info.state_bytes && !b->info.n_window)) return HONE_OK;
    hone_status st = hone_chat_mark(b->model, p, run->ids, run->n, &run->mark, err);
    return st == HONE_E_NOMEM ? st : HONE_OK; /* a template that cannot end there has no such place */
}

/* Earlier turns, as an answer told their ids, go before the conversation; what begins a text stands in front of them
 * already. */
static bool put_context(hn_run *run, hn_refusal *r)
{
    const hn_ask *a = &run->job->ask;
    int32_t *own = run->ids, bos = hone_token_bos(run->job->book->model);
    size_t n = run->n, begun = n && bos >= 0 && own[0] == bos;
    if (!a->n_context) return true;
    run->ids = NULL;
    run->n = 0;
    bool ok = add_ids(run, a->context, a->n_context, r) && add_ids(run, own + begun, n - begun, r);
    hone_free(own);
    if (run->mark) run->mark += a->n_context - begun;
    return ok;
}

static bool read_chat(hn_run *run, hn_refusal *r)
{
    hn_job *j = run->job;
    hone_error err;
    hone_chat_params p = { .messages = j->ask.messages,
                           .tools = j->ask.tool_choice == HN_TOOLS_NONE ? NULL : j->ask.tools,
                           .variables = j->ask.variables,
                           .chat_template = j->book->chat_template,
                           .add_generation_prompt = j->ask.generation_prompt,
                           .continue_final = j->ask.continue_final };
    char *variables = NULL;
    if (j->ask.effort_unsaid) p.variables = j->book->quiet[p.tools != NULL];
    else if (!think(j, &p, &variables, r)) return false;
    if (variables) p.variables = variables;

    hone_status st = hone_chat_render(j->book->model, &p, &run->rendered, &err);
    if (st == HONE_OK) st = hone_chat_tokenize(j->book->model, &p, &run->ids, &run->n, &err);
    if (st == HONE_OK) st = find_mark(run, &p, &err);
    if (st == HONE_OK && j->ask.kind == HN_ASK_CHAT)
        st = hn_book_format_take(j->book, p.variables, p.tools, &j->format, &err);
    hone_free(variables);
    if (st == HONE_OK) return put_context(run, r);
    return refuse_error(&err, st == HONE_E_UNSUPPORTED ? "unsupported_parameter" : "invalid_type", "messages", r);
}

/* ---- what reads an answer --------------------------------------------------------------------------------------- */

static bool compile_form(hn_job *j, hn_refusal *r)
{
    hone_error err;
    const hn_ask *a = &j->ask;
    if (!a->has_form || hn_forms_take(j->server->forms, &a->form, &j->grammar, &err) == HONE_OK) return true;
    bool schema = a->form.kind == HONE_GRAMMAR_JSON_SCHEMA || a->form.kind == HONE_GRAMMAR_JSON_OBJECT;
    return refuse_error(&err, schema ? "schema_error" : "grammar_error", a->form_param, r);
}

/* Ids of calls are the same for the same request, and others in each turn of a conversation. */
static uint64_t id_seed(const hn_strand *s)
{
    uint64_t prompt = hn_fnv1a(HN_FNV_INIT, s->run->ids, s->run->n * sizeof *s->run->ids);
    return hn_rand64(prompt ^ s->run->job->ask.sampling.seed, (uint64_t)s->choice);
}

static bool open_reply(hn_strand *s, hn_refusal *r)
{
    hn_job *j = s->run->job;
    const hn_ask *a = &j->ask;
    hone_error err;
    static const hone_tool_choice choices[] = { [HN_TOOLS_AUTO] = HONE_TOOLS_AUTO,
                                                [HN_TOOLS_NONE] = HONE_TOOLS_NONE,
                                                [HN_TOOLS_REQUIRED] = HONE_TOOLS_REQUIRED,
                                                [HN_TOOLS_NAMED] = HONE_TOOLS_REQUIRED };
    hone_reply_params p = { .format = j->format->format,
                            .prompt = &s->run->rendered,
                            .stops = a->stops,
                            .n_stops = a->n_stops,
                            .tools = a->tool_choice == HN_TOOLS_NONE ? NULL : a->tools,
                            .tool_choice = choices[a->tool_choice],
                            .names = a->tool_names,
                            .n_names = a->n_tool_names,
                            .one_call = !a->parallel_calls,
                            .marks_as_text = a->reasoning_in_text,
                            .form = j->grammar,
                            .reasoning_budget = a->reasoning_budget > INT32_MAX ? -1 : (int32_t)a->reasoning_budget,
                            .id_seed = id_seed(s) };
    return hone_reply_open(&s->reply, &p, &err) == HONE_OK || refuse_error(&err, "schema_error", "tools", r);
}

static bool open_stream(hn_strand *s, hn_refusal *r)
{
    hn_job *j = s->run->job;
    hone_error err;
    hone_status st = hone_stream_new(&s->stream, j->book->model, j->ask.stops, j->ask.n_stops, &err);
    if (st == HONE_OK && j->grammar) st = hone_matcher_new(&s->matcher, j->grammar, j->book->model, &err);
    return st == HONE_OK || refuse_error(&err, "invalid_type", "stop", r);
}

/* What is not enforced of a field, named among those that were passed over: "tools (…)". */
static bool note_unenforced(hn_job *j, const char *field, const char *notes, hn_refusal *r)
{
    enum { MOST = 300 }; /* bytes: it is a header's */
    hn_bytes o = { 0 };
    if (!notes || !*notes) return true;
    hn_bytes_printf(&o, "%s%s%s (%.*s)", j->ask.ignored, *j->ask.ignored ? ", " : "", field, (int)MOST, notes);
    char *all = hn_bytes_ok(&o) ? hn_arena_strndup(j->ask.arena, o.p, o.n) : NULL;
    hn_bytes_free(&o);
    if (!all) return no_memory(r);
    for (char *p = all; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7F) *p = '?';
    j->ask.ignored = all;
    return true;
}

static bool make_strands(hn_job *j, hn_refusal *r)
{
    j->n_strand = j->n_run * (size_t)j->ask.n;
    if (!(j->strand = calloc(j->n_strand, sizeof *j->strand))) {
        j->n_strand = 0;
        return no_memory(r);
    }
    for (size_t i = 0; i < j->n_strand; i++) {
        hn_strand *s = &j->strand[i];
        s->run = &j->run[i / (size_t)j->ask.n];
        s->choice = (int32_t)(i % (size_t)j->ask.n);
        bool chat = j->ask.kind == HN_ASK_CHAT, free_form = !j->ask.tools && !j->grammar;
        if (chat && !open_reply(s, r)) return false;
        if ((!chat || (j->ask.ignore_eos && free_form)) && !open_stream(s, r)) return false;
    }
    const hn_strand *first = j->strand;
    return (!j->grammar || note_unenforced(j, j->ask.form_param, hone_grammar_notes(j->grammar), r)) &&
           (!first->reply || note_unenforced(j, "tools", hone_reply_notes(first->reply), r));
}

/* ---- adapters and bias ------------------------------------------------------------------------------------------ */

static void use_adapter(hn_job *j, const hn_adapter_use *use, float scale)
{
    j->adapter_ids[j->n_adapter_ids++] = use->id;
    if (scale == 0) return;
    j->adapters[j->n_adapters] = use->adapter;
    j->scales[j->n_adapters++] = scale;
}

static bool no_adapter(const hn_ask_lora *l, hn_refusal *r)
{
    char name[24];
    snprintf(name, sizeof name, "%d", l->id);
    return hn_refuse(r, 400, "out_of_range", "lora", "adapter %s is not here; GET /lora-adapters lists them",
                     l->name ? HN_ESC(l->name, strlen(l->name)) : name);
}

static bool is_used(const hn_job *j, int32_t id)
{
    for (size_t i = 0; i < j->n_adapter_ids; i++)
        if (j->adapter_ids[i] == id) return true;
    return false;
}

static bool named_twice(size_t i, int32_t id, hn_refusal *r)
{
    char path[40];
    snprintf(path, sizeof path, "lora[%zu].id", i);
    return hn_refuse(r, 400, "out_of_range", path, "%s is adapter %d once more; expected each once", path, id);
}

/* Those that the request lists, or the one that it names as its model, or those that are on for all. */
static bool read_adapters(hn_job *j, hn_refusal *r)
{
    const hn_ask *a = &j->ask;
    hn_adapter_list *list = hn_book_adapters(j->book);
    hn_adapter_use use[HN_ADAPTERS_MOST];
    size_t most = HN_ADAPTERS_MOST + a->n_lora;
    if (!list) return a->n_lora == 0 || no_adapter(&a->lora[0], r);
    if (!(j->adapters = calloc(most, sizeof *j->adapters)) || !(j->scales = calloc(most, sizeof *j->scales)) ||
        !(j->adapter_ids = calloc(most, sizeof *j->adapter_ids)))
        return no_memory(r);

    for (size_t i = 0; i < a->n_lora; i++) {
        const hn_ask_lora *l = &a->lora[i];
        if (!hn_adapter_list_take(list, l->name, l->id, use)) return no_adapter(l, r);
        bool again = is_used(j, use->id);
        use_adapter(j, use, l->scale);
        if (again) return named_twice(i, use->id, r);
    }
    if (a->has_lora) return true;
    if (j->adapter) { /* it may have gone since its name was found */
        if (!hn_adapter_list_take(list, j->adapter, -1, use))
            return hn_refuse(r, 404, "model_not_found", "model", "adapter '%s' is not here any more",
                             HN_ESC(j->adapter, strlen(j->adapter)));
        use_adapter(j, use, use->scale == 0 ? 1 : use->scale);
        return true;
    }
    size_t n = hn_adapter_list_take_on(list, use);
    for (size_t i = 0; i < n; i++) use_adapter(j, &use[i], use[i].scale);
    return true;
}

static bool add_bias(hn_job *j, int32_t id, float bias, hn_refusal *r)
{
    hone_bias *more = realloc(j->bias, (j->n_bias + 1) * sizeof *more);
    if (!more) return no_memory(r);
    j->bias = more;
    j->bias[j->n_bias++] = (hone_bias){ .id = id, .bias = bias };
    return true;
}

static bool read_bias(hn_job *j, hn_refusal *r)
{
    for (size_t i = 0; i < j->ask.n_bias; i++) {
        const hn_ask_bias *b = &j->ask.bias[i];
        if (!b->text) {
            if (b->id < 0 || b->id >= j->book->info.n_vocab)
                return hn_refuse(r, 400, "out_of_range", "logit_bias", "token id %d, expected 0 to %d", b->id,
                                 j->book->info.n_vocab - 1);
            if (!add_bias(j, b->id, b->bias, r)) return false;
            continue;
        }
        int32_t *ids;
        size_t n;
        hone_error err;
        if (hone_tokenize(j->book->model, b->text, strlen(b->text), 0, &ids, &n, &err) != HONE_OK)
            return refuse_error(&err, "invalid_type", "logit_bias", r);
        bool ok = true;
        for (size_t k = 0; ok && k < n; k++) ok = add_bias(j, ids[k], b->bias, r);
        hone_free(ids);
        if (!ok) return false;
    }
    return true;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static bool generates(hn_ask_kind kind) { return kind == HN_ASK_CHAT || kind == HN_ASK_TEXT || kind == HN_ASK_INFILL; }

/* Prompts that do not fit, or hold what the model does not know. */
static bool check_run(hn_run *run, hn_refusal *r)
{
    hn_job *j = run->job;
    for (size_t i = 0; i < run->n; i++)
        if (run->ids[i] < 0 || run->ids[i] >= j->book->info.n_vocab)
            return hn_refuse(r, 400, "out_of_range", "prompt", "token %zu of the prompt has id %d, expected 0 to %d", i,
                             run->ids[i], j->book->info.n_vocab - 1);
    if (!run->n)
        return hn_refuse(r, 400, "out_of_range", "prompt",
                         "the prompt has no tokens, and this model begins no text by itself; expected some text");
    if (run->n >= (size_t)j->book->n_ctx)
        return hn_refuse_context(r, run->n > INT32_MAX ? INT32_MAX : (int32_t)run->n, j->book->n_ctx);
    return true;
}

static bool make_runs(hn_job *j, hn_refusal *r)
{
    const hn_ask *a = &j->ask;
    bool texts = a->kind == HN_ASK_TEXT || a->kind == HN_ASK_TOKENIZE || a->kind == HN_ASK_DETOKENIZE;
    size_t n = texts ? a->n_prompt : 1;
    if (!(j->run = calloc(n ? n : 1, sizeof *j->run))) return no_memory(r);
    j->n_run = n;

    for (size_t i = 0; i < n; i++) {
        hn_run *run = &j->run[i];
        run->job = j;
        run->index = (int32_t)i;
        if (texts                      ? !read_prompt(run, &a->prompt[i], r)
            : a->kind == HN_ASK_INFILL ? !read_infill(run, r)
                                       : !read_chat(run, r))
            return false;
        if (generates(a->kind) && !check_run(run, r)) return false;
        j->ask.n_prompt_tokens += (int32_t)run->n;
    }
    return true;
}

bool hn_job_prepare(hn_job *j, hn_refusal *r)
{
    const hn_ask *a = &j->ask;
    if (a->kind == HN_ASK_LOAD) return true;
    if (hn_job_embeds(j)) return read_adapters(j, r) && hn_job_read_embed(j, r);
    if (generates(a->kind) && !j->book->desk.scheduler)
        return hn_refuse(r, 400, "unsupported_parameter", "model",
                         "model '%s' reads whole texts and writes none; ask /v1/embeddings", j->book->name);
    if (a->finish_json && (!a->has_form || a->max_tokens < 0))
        return hn_refuse(r, 400, "unsupported_parameter", "finish_json",
                         "finish_json ends an answer's form within its tokens; expected %s beside it",
                         a->has_form ? "max_tokens" : "a form, as response_format");
    if (!make_runs(j, r)) return false;
    if (!generates(a->kind)) return true;
    return read_adapters(j, r) && read_bias(j, r) && compile_form(j, r) && make_strands(j, r);
}

/* Milliseconds that the client allows, of its header or its body; 0: it says nothing. */
static bool client_timeout(const hn_job *j, int64_t *ms, hn_refusal *r)
{
    const char *s = hn_exchange_header(j->x, "x-hone-timeout-ms");
    size_t n = s ? strspn(s, "0123456789") : 0;
    *ms = j->ask.timeout_ms;
    if (!s) return true;
    if (!n || s[n])
        return hn_refuse(r, 400, "invalid_type", "x-hone-timeout-ms",
                         "x-hone-timeout-ms is '%s'; expected a number of "
                         "milliseconds",
                         HN_ESC(s, strlen(s)));
    *ms = strtoll(s, NULL, 10); /* too many: the most there are */
    return true;
}

/* What was asked for and has no effect here: how long ollama would keep a model. */
static bool note_ignored(hn_job *j, hn_refusal *r)
{
    hn_bytes o = { 0 };
    if (j->ask.keep_alive_ms < 0 || j->ask.kind == HN_ASK_LOAD) return true;
    hn_bytes_printf(&o, "%s%skeep_alive", j->ask.ignored, *j->ask.ignored ? ", " : "");
    const char *all = hn_bytes_ok(&o) ? hn_arena_strndup(j->ask.arena, o.p, o.n) : NULL;
    hn_bytes_free(&o);
    if (!all) return no_memory(r);
    j->ask.ignored = all;
    return true;
}

bool hn_job_read(hn_job *j, hn_refusal *r)
{
    hn_server *s = j->server;
    hone_str body = hn_exchange_body(j->x);
    hn_limits limits = s->p.limits;
    hn_book *first = hn_shelf_at(s->shelf, 0);
    bool one = hn_shelf_count(s->shelf) == 1 && hn_shelf_try(first);

    /* what several models may be asked is checked again when it is known which one is meant */
    limits.n_vocab = one ? first->info.n_vocab : INT32_MAX;
    limits.n_ctx = one ? first->n_ctx : INT32_MAX;
    if (one) hn_shelf_looked(first);
    if (!hn_ask_read(&j->ask, j->voice, body.ptr, body.len, &limits, r)) return false;

    int64_t ms, most = (int64_t)s->p.timeout_s * 1000;
    if (!client_timeout(j, &ms, r) || !note_ignored(j, r)) return false;
    if (ms <= 0 || ms > most) ms = most;
    j->deadline = j->t_begin + (uint64_t)ms * 1000000;
    if (!j->ask.has_seed && !hn_os_random(&j->ask.sampling.seed, sizeof j->ask.sampling.seed))
        return hn_refuse(r, 500, NULL, NULL, "the system gives no random seed; try again, or send a seed");
    if (!j->ask.has_seed) j->ask.sampling.seed &= 0x7FFFFFFF; /* every client's numbers hold it exactly */
    return hn_shelf_find(s->shelf, j->ask.model, &j->book_wanted, &j->adapter, r);
}

/* ---- asks that generate nothing --------------------------------------------------------------------------------- */

static bool find_pieces(hn_job *j, hn_found *f, hn_refusal *r)
{
    hone_str *pieces = hn_arena_alloc(j->ask.arena, (f->n_ids ? f->n_ids : 1) * sizeof *pieces);
    if (!pieces) return no_memory(r);
    for (size_t i = 0; i < f->n_ids; i++) {
        size_t n = 0;
        const char *p = hone_token_piece(j->book->model, f->ids[i], true, &n);
        pieces[i] = (hone_str){ p ? p : "", p ? n : 0 };
    }
    f->pieces = pieces;
    return true;
}

/* Takes the token that begins every text from a rendering that begins with it: who sends the prompt to /completion gets
 * it there, once. */
static bool drop_bos(hn_run *run, hn_refusal *r)
{
    const hone_model *m = run->job->book->model;
    hone_chat_text *t = &run->rendered;
    int32_t *ids;
    size_t n = 0, n_bos = 0;
    hone_error err;
    if (hone_tokenize(m, "", 0, HONE_TOK_ADD, &ids, &n, &err) != HONE_OK)
        return refuse_error(&err, "invalid_type", "messages", r);
    bool added = n && ids[0] == hone_token_bos(m);
    hone_free(ids);
    const char *bos = added ? hone_token_piece(m, hone_token_bos(m), true, &n_bos) : NULL;
    if (!bos || !n_bos || n_bos > t->len || memcmp(t->text, bos, n_bos) != 0) return true;
    if (t->n_input && t->input[0].begin < n_bos) return true; /* somebody wrote it */
    t->len -= n_bos;
    memmove(t->text, t->text + n_bos, t->len + 1);
    for (size_t i = 0; i < t->n_input; i++) {
        t->input[i].begin -= n_bos;
        t->input[i].end -= n_bos;
    }
    return true;
}

bool hn_job_find(hn_job *j, hn_bytes *o, hn_refusal *r)
{
    hn_run *run = j->n_run ? &j->run[0] : NULL;
    hn_found f = { .total_ms = (double)(hn_serve_ns() - j->t_begin) * 1e-6 };
    hone_error err;
    char *text = NULL;

    if (hn_job_embeds(j)) {
        if (!hn_job_find_embed(j, &f, r)) return false;
    } else if (run) {
        f.n_tokens = run->n > INT32_MAX ? INT32_MAX : (int32_t)run->n;
        f.ids = run->ids;
        f.n_ids = run->n;
        if (j->ask.kind == HN_ASK_RENDER && !drop_bos(run, r)) return false;
        f.text = run->rendered.text;
        f.len = run->rendered.len;
        f.input = run->rendered.input;
        f.n_input = run->rendered.n_input;
    }
    if (j->ask.kind == HN_ASK_TOKENIZE && j->ask.with_pieces && !find_pieces(j, &f, r)) return false;
    if (j->ask.kind == HN_ASK_DETOKENIZE) {
        if (hone_detokenize(j->book->model, run->ids, run->n, true, &text, &f.len, &err) != HONE_OK)
            return refuse_error(&err, "out_of_range", "tokens", r);
        f.text = text;
    }
    bool ok = j->voice->found(&j->ask, &j->head, &f, o) && hn_bytes_ok(o);
    hone_free(text);
    return ok || no_memory(r);
}
