/* Models of shelf.h: names, loading and giving up. One lock for states and counts; nothing is loaded under it. */
#include "serve/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_LOADED = 4, MOST_FORMATS = 16, MOST_VARIABLES = 4096, MOST_CTX = 131072, LEAST_CTX = 256 };

struct hn_shelf {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    hn_shelf_params p;
    hn_book **book;
    size_t n, cap;
    hn_adapter_list *adapters;
    uint64_t clock;
    int n_waiting; /* for room, which only the end of others' requests makes */
    _Atomic bool stopped;
    uint64_t n_preempted; /* of schedulers that are no more; the desk's */
};

/* ---- names ------------------------------------------------------------------------------------------------------ */

static bool has_name(const hn_book *b, const char *name, size_t n)
{
    if (strlen(b->name) == n && memcmp(b->name, name, n) == 0) return true;
    for (size_t i = 0; b->of && i < b->of->n_aliases; i++)
        if (strlen(b->of->aliases[i]) == n && memcmp(b->of->aliases[i], name, n) == 0) return true;
    return false;
}

static hone_status check_name(const hn_shelf *s, const char *name, size_t n_name, const char *path, hone_error *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (has_name(s->book[i], name, n_name))
            return HN_FAIL(err, HONE_E_ARG,
                           "two models are named %.*s: %s and %s; expected another name for one of them", (int)n_name,
                           name, s->book[i]->path, path);
    return HONE_OK;
}

static hone_status add_book(hn_shelf *s, const char *name, size_t n_name, const char *path, hone_error *err)
{
    hone_status st = check_name(s, name, n_name, path, err);
    if (st != HONE_OK) return st;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 8;
        hn_book **more = realloc(s->book, cap * sizeof *more);
        if (!more) return HN_FAIL(err, HONE_E_NOMEM, "no memory for %zu models", cap);
        s->book = more;
        s->cap = cap;
    }

    hn_book *b = calloc(1, sizeof *b);
    if (!b) return HN_FAIL(err, HONE_E_NOMEM, "no memory for a model's name");
    s->book[s->n++] = b;
    b->shelf = s;
    b->name = strndup(name, n_name);
    b->path = strdup(path);
    if (!b->name || !b->path) return HN_FAIL(err, HONE_E_NOMEM, "no memory for a model's name");

    struct stat sb;
    if (stat(path, &sb) == 0) {
        b->created = (int64_t)sb.st_mtime;
        b->file_size = (uint64_t)sb.st_size;
    }
    return HONE_OK;
}

/* The same with its aliases. */
static hone_status add_listed(hn_shelf *s, const struct hn_shelf_model *m, hone_error *err)
{
    hone_status st = add_book(s, m->name, strlen(m->name), m->path, err);
    for (size_t i = 0; st == HONE_OK && i < m->n_aliases; i++)
        st = check_name(s, m->aliases[i], strlen(m->aliases[i]), m->path, err);
    if (st == HONE_OK) s->book[s->n - 1]->of = m;
    return st;
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && memcmp(s + n - k, end, k) == 0;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

const char *hn_shelf_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The GGUF files of a folder in the order of their names; of a split set the first. */
static hone_status read_folder(hn_shelf *s, const char *folder, hone_error *err)
{
    hone_status st = HONE_OK;
    char **names = NULL;
    size_t n = 0;
    DIR *d = opendir(folder);
    if (!d) return HN_FAIL(err, HONE_E_IO, "%s: %s; expected a folder of GGUF files", folder, strerror(errno));

    for (struct dirent *e; st == HONE_OK && (e = readdir(d));) {
        const char *split = strstr(e->d_name, "-of-");
        if (e->d_name[0] == '.' || !ends_in(e->d_name, ".gguf")) continue;
        if (split && split - e->d_name >= 6 && memcmp(split - 6, "-00001", 6) != 0) continue;
        char **more = realloc(names, (n + 1) * sizeof *more);
        if (more) names = more;
        if (!more || !(names[n] = strdup(e->d_name))) st = HN_FAIL(err, HONE_E_NOMEM, "no memory for names of files");
        else n++;
    }
    closedir(d);

    if (n) qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; st == HONE_OK && i < n; i++) {
        char path[4096];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= sizeof path) continue;
        st = add_book(s, names[i], strlen(names[i]) - strlen(".gguf"), path, err);
    }
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
    return st;
}

hone_status hn_shelf_new(hn_shelf **out, const hn_shelf_params *p, hone_error *err)
{
    *out = NULL;
    hone_status st = HONE_OK;
    hn_shelf *s = calloc(1, sizeof *s);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "no memory for the list of models");
    s->p = *p;
    if (s->p.max_loaded <= 0) s->p.max_loaded = MOST_LOADED;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);

    for (size_t i = 0; st == HONE_OK && i < p->n_models; i++) st = add_listed(s, &p->models[i], err);
    if (st == HONE_OK) st = hn_adapter_list_new(&s->adapters, p->loras, p->n_loras, p->lora_folder, err);
    if (st == HONE_OK && p->folder) st = read_folder(s, p->folder, err);
    if (st == HONE_OK && s->n == 0)
        st =
            HN_FAIL(err, HONE_E_ARG, "%s has no file that ends in .gguf", p->folder ? p->folder : "the list of models");
    if (st != HONE_OK) {
        hn_shelf_free(s);
        return st;
    }
    *out = s;
    return HONE_OK;
}

size_t hn_shelf_count(const hn_shelf *s) { return s->n; }
hn_book *hn_shelf_at(const hn_shelf *s, size_t i) { return s->book[i]; }
hn_adapter_list *hn_shelf_adapters(const hn_shelf *s) { return s->adapters; }
hn_adapter_list *hn_book_adapters(const hn_book *b) { return b == b->shelf->book[0] ? b->shelf->adapters : NULL; }

static bool refuse_name(const char *name, hn_refusal *r)
{
    *r = (hn_refusal){ .status = 404, .type = "not_found_error", .code = "model_not_found" };
    snprintf(r->param, sizeof r->param, "model");
    snprintf(r->message, sizeof r->message, "model '%s' is not here; GET /v1/models lists those that are",
             HN_ESC(name, strlen(name)));
    return false;
}

const hn_book *hn_shelf_named(const hn_shelf *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (has_name(s->book[i], name, strlen(name))) return s->book[i];
    return NULL;
}

bool hn_shelf_find(hn_shelf *s, const char *name, hn_book **out, const char **adapter, hn_refusal *r)
{
    *adapter = NULL;
    *out = s->book[0];
    if (!name || !*name) return true;
    for (size_t i = 0; i < s->n; i++)
        if (has_name(s->book[i], name, strlen(name))) {
            *out = s->book[i];
            return true;
        }

    *adapter = name;
    if (hn_adapter_list_has(s->adapters, name)) return true;
    const char *colon = strrchr(name, ':');
    bool was = hn_adapter_list_had(s->adapters, name);
    bool latest = colon && strcmp(colon, ":latest") == 0; /* as ollama's clients write it */
    for (size_t i = 0; colon && i < s->n; i++) {
        size_t n = (size_t)(colon - name);
        if (!has_name(s->book[i], name, n)) continue;
        *out = s->book[i];
        *adapter = latest ? NULL : colon + 1;
        if (latest || (i == 0 && hn_adapter_list_has(s->adapters, colon + 1))) return true;
        was |= i == 0 && hn_adapter_list_had(s->adapters, colon + 1);
    }
    *adapter = NULL;

    /* where there is one model, clients may call it as they like, but by no name of an adapter that went */
    *out = s->book[0];
    return s->n == 1 && !s->p.strict && !was ? true : refuse_name(name, r);
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static void free_formats(hn_book_format *f);

/* Everything but the desk's list; not under the lock. */
static void close_book(hn_book *b)
{
    free_formats(b->formats);
    b->formats = NULL;
    for (int i = 0; i < 2; i++) {
        hone_free(b->quiet[i]);
        b->quiet[i] = NULL;
    }
    hone_session_free(b->embed);
    b->embed = NULL;
    hone_scheduler_free(b->desk.scheduler);
    b->desk = (hn_desk_model){ 0 };
    if (hn_book_adapters(b)) hn_adapter_list_close(hn_book_adapters(b));
    hone_model_close(b->model);
    b->model = NULL;
}

/* What runs on the desk's thread while this one waits. */
typedef enum errand_kind { ADD, REMOVE, COUNT } errand_kind;
typedef struct errand {
    hn_task task;
    hn_book *book;
    errand_kind kind;
    uint64_t used; /* COUNT: bytes of cache that are held, of all models */
    bool done;
} errand;

static void run_errand(void *arg)
{
    errand *e = arg;
    hn_book *b = e->book;
    hn_desk *desk = b->shelf->p.desk;
    hone_scheduler_stats stats;
    if (e->kind == ADD) hn_desk_add(desk, &b->desk);
    if (e->kind == REMOVE) { /* what is counted of it goes from there to here in one step of this thread */
        hn_desk_remove(desk, &b->desk);
        hone_scheduler_get_stats(b->desk.scheduler, &stats);
        b->shelf->n_preempted += stats.n_preempted;
    }
    for (const hn_desk_model *m = e->kind == COUNT ? hn_desk_first(desk) : NULL; m; m = m->next) {
        hone_scheduler_get_stats(m->scheduler, &stats);
        e->used += stats.cache_used;
    }

    pthread_mutex_lock(&b->shelf->lock);
    e->done = true;
    pthread_cond_broadcast(&b->shelf->changed);
    pthread_mutex_unlock(&b->shelf->lock);
}

/* Adds the model's scheduler to the desk, takes it from there, or counts what all of them hold, which it returns. */
static uint64_t at_desk(hn_book *b, errand_kind kind)
{
    errand e = { .book = b, .kind = kind };
    e.task = (hn_task){ .fn = run_errand, .arg = &e };
    hn_desk_do(b->shelf->p.desk, &e.task);
    pthread_mutex_lock(&b->shelf->lock);
    while (!e.done) pthread_cond_wait(&b->shelf->changed, &b->shelf->lock);
    pthread_mutex_unlock(&b->shelf->lock);
    return e.used;
}

/* ---- one account of caches ---- */

uint64_t hn_shelf_cache_room(uint64_t available, uint64_t weights)
{
    uint64_t room = available > weights ? (available - weights) / 2 : 0;
    return room > available / 8 ? room : available / 8;
}

/* Under the lock: bytes of weights that those beside it read for their tokens. */
static uint64_t read_beside(const hn_book *b)
{
    const hn_shelf *s = b->shelf;
    uint64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->book[i] != b && (s->book[i]->state == HN_BOOK_LOADED || s->book[i]->state == HN_BOOK_LOADING))
            n += s->book[i]->weights;
    return n;
}

/* Bytes of cache for the model that is being loaded: of what there is for all, and not promised, an equal part for each
 * that may still come. False: nothing is known, and nothing was said. */
static bool share_of(hn_book *b, uint64_t *share)
{
    hn_shelf *s = b->shelf;
    uint64_t all = s->p.scheduler.session.cache_budget, promised = 0;
    uint64_t places = s->n < (size_t)s->p.max_loaded ? s->n : (uint64_t)s->p.max_loaded;
    bool asked = !all && (all = hn_memory_available());
    if (asked && s->n > 1) all += at_desk(b, COUNT);
    pthread_mutex_lock(&s->lock);
    if (asked) all = hn_shelf_cache_room(all, b->weights + read_beside(b));
    for (size_t i = 0; i < s->n; i++) {
        promised += s->book[i]->promised;
        places -= places > 1 && s->book[i]->promised;
    }
    pthread_mutex_unlock(&s->lock);
    *share = all > promised ? (all - promised) / places : 0;
    return all != 0;
}

/* Bytes of one sequence of n positions; UINT64_MAX: there can be none. */
static uint64_t sequence_room(const hn_book *b, int32_t n)
{
    hone_sequence_cost cost;
    return hone_model_sequence_cost(b->model, n, b->shelf_cache, &cost, NULL) == HONE_OK ? cost.bytes : UINT64_MAX;
}

/* What texts that become vectors hold at most: the longest, of n positions, or as many as there are at once, each of
 * pages of 64 positions; and copies of states, to which a text that is given up goes back. */
static uint64_t texts_room(const hn_book *b, int32_t n)
{
    enum { FEW = HN_BOOK_TEXT_TOKENS / HN_BOOK_TEXTS + 64 };
    uint64_t one = sequence_room(b, n), few = sequence_room(b, n < FEW ? n : FEW);
    if (one == UINT64_MAX || few == UINT64_MAX) return UINT64_MAX;
    return (one > HN_BOOK_TEXTS * few ? one : HN_BOOK_TEXTS * few) + HN_BOOK_TEXTS * b->info.state_bytes;
}

/* The most positions, halved from n, that take not more than room. */
static int32_t fitting(const hn_book *b, int32_t n, uint64_t room, uint64_t (*of)(const hn_book *, int32_t))
{
    while (n > LEAST_CTX && of(b, n) > room) n /= 2;
    return n;
}

static hone_status no_room(const hn_book *b, int32_t n, uint64_t need, uint64_t room, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NOMEM,
                   "%s: of the memory for conversations and texts %.1f MiB are left, and %d positions take %.1f MiB; "
                   "expected a larger --kv-memory, or fewer models at once (--models-max)",
                   b->path, (double)room / 0x1p20, n, (double)need / 0x1p20);
}

/* How long its conversations and texts may get, and what they may hold: that is promised. Texts of a model that also
 * answers have half of it at most; where nothing says that it makes vectors (but scores it may), what one text holds is
 * beside it. */
static hone_status plan_cache(hn_book *b, hone_session_params *p, hone_error *err)
{
    uint64_t share;
    const hone_model_info *info = &b->info;
    bool known = share_of(b, &share), embeds = hone_embed_width(b->model, b->shelf_pooling, NULL) > 0;
    uint64_t room = !known ? UINT64_MAX : embeds && info->causal ? share / 2 : share;
    int32_t n_train = info->recurrent ? MOST_CTX : info->n_ctx_train < MOST_CTX ? info->n_ctx_train : MOST_CTX;
    if (b->of && b->of->n_ctx) p->n_ctx = b->of->n_ctx;
    if (!p->n_ctx) p->n_ctx = fitting(b, n_train, room, sequence_room);
    b->n_embed = embeds ? fitting(b, p->n_ctx, room, texts_room) : p->n_ctx;
    b->n_ctx = info->causal ? p->n_ctx : b->n_embed;
    b->embed_room = known ? texts_room(b, b->n_embed) : 0;
    if (!known) return HONE_OK;

    int32_t n = p->n_ctx < LEAST_CTX ? p->n_ctx : LEAST_CTX;
    uint64_t least = embeds ? texts_room(b, n) : sequence_room(b, n), texts = embeds ? b->embed_room : 0;
    if (least > room) return no_room(b, n, least, room, err);
    p->cache_budget = info->causal ? share - texts : texts;
    pthread_mutex_lock(&b->shelf->lock);
    b->promised = info->causal ? share : texts;
    pthread_mutex_unlock(&b->shelf->lock);
    return HONE_OK;
}

/* ---- loading, the whole of it ---- */

/* Whether loading is to go on is asked while it looks at the model's bytes. */
typedef struct watch {
    const hn_shelf *shelf;
    const hone_progress *told; /* may be NULL */
} watch;

static void note_progress(void *arg, uint64_t done, uint64_t total)
{
    const watch *w = arg;
    if (w->told && w->told->fn) w->told->fn(w->told->arg, done, total);
}

static bool is_over(void *arg)
{
    const watch *w = arg;
    return atomic_load(&w->shelf->stopped) || (w->told && w->told->abort_fn && w->told->abort_fn(w->told->arg));
}

/* One that waited for room is open. */
static hone_status open_model(hn_book *b, hone_error *err)
{
    hone_model_params p = b->shelf->p.model;
    watch w = { b->shelf, p.progress };
    p.progress = &(hone_progress){ .fn = note_progress, .arg = &w, .abort_fn = is_over };
    hone_status st = b->model ? HONE_OK : hone_model_open(&b->model, b->path, &p, err);
    if (st != HONE_OK) return st;
    hone_model_get_info(b->model, &b->info);
    if (b->info.has_tokenizer) return HONE_OK;
    return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s has no tokenizer, so it cannot be served", b->path);
}

/* What most of Anthropic's requests ask of the template, found out once. */
static void find_quiet(hn_book *b)
{
    static const char *const tools[2] = {
        NULL, "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":"
              "\"object\","
              "\"properties\":{\"a\":{\"type\":\"string\",\"description\":\"d\"}},\"required\":[\"a\"]}}}]"
    };
    for (int i = 0; i < 2; i++) {
        hone_chat_params p = { .tools = tools[i], .chat_template = b->chat_template, .add_generation_prompt = true };
        if (hone_chat_think(b->model, &p, "off", &b->quiet[i], NULL) != HONE_OK) b->quiet[i] = NULL;
    }
}

/* The format that most answers have, and that /props tells: it is found out here, where nobody waits but for this. */
static void find_format_once(hn_book *b)
{
    hn_book_format *f;
    if (b->info.causal && hn_book_format_take(b, NULL, NULL, &f, NULL) == HONE_OK) hn_book_format_give(f);
}

bool hn_book_template_names(const hn_book *b, const char *word)
{
    hone_str source = { 0 };
    size_t n = strlen(word);
    if (b->chat_template) return strstr(b->chat_template, word) != NULL;
    if (hone_chat_template(b->model, false, &source, NULL) != HONE_OK) return false;
    for (size_t i = 0; i + n <= source.len; i++)
        if (memcmp(source.ptr + i, word, n) == 0) return true;
    return false;
}

void hn_book_settings(hn_book *b, const hn_shelf_params *p)
{
    b->shelf_pooling = b->of && b->of->pooling != HONE_POOL_FILE ? b->of->pooling : p->pooling;
    b->chat_template = b->of && b->of->chat_template ? b->of->chat_template : p->chat_template;
}

void hn_book_assume(hn_book *b)
{
    hone_str source;
    b->assumed =
        !b->chat_template && b->info.causal && hone_chat_template(b->model, false, &source, NULL) == HONE_E_UNSUPPORTED;
    if (b->assumed) b->chat_template = strncmp(b->info.arch, "rwkv", 4) == 0 ? "rwkv-world" : "chatml";
}

static bool takes_system(const hn_book *b)
{
    hone_chat_params p = { .messages =
                               "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"}]",
                           .chat_template = b->chat_template,
                           .add_generation_prompt = true };
    hone_chat_text text = { 0 };
    bool ok = hone_chat_render(b->model, &p, &text, NULL) == HONE_OK;
    hone_chat_text_free(&text);
    return ok;
}

/* Under the lock: are the weights of those that are loaded, and its own as far as they are known, more than memory
 * holds? Then every token of all would come from disk. Alone it is let in or refused as anywhere. */
static bool is_crowded(const hn_book *b)
{
    const hn_shelf_params *p = &b->shelf->p;
    uint64_t others = read_beside(b);
    const uint64_t memory = hn_memory_total();
    if (!others || p->scheduler.session.allow_paging) return false;
    if (memory && b->weights > memory) return false; /* it will be refused: nobody has to go for that */
    uint64_t most = p->weights_budget ? p->weights_budget : memory;
    return most && others + b->weights > most;
}

/* All that is made beside the model that is open. */
static hone_status furnish(hn_book *b, hone_error *err)
{
    const hn_shelf_params *p = &b->shelf->p;
    hone_scheduler_params sp = p->scheduler;
    hone_status st;
    b->shelf_ctx = p->ctx;
    b->shelf_cache = sp.session.cache;
    b->shelf_paging = sp.session.allow_paging;
    b->embed_pace = (hn_desk_pace){ .fixed = sp.fixed_prefill };
    hn_book_settings(b, p);
    if ((st = plan_cache(b, &sp.session, err)) != HONE_OK) return st;
    if (hn_book_adapters(b) && (st = hn_adapter_list_open(hn_book_adapters(b), b->model, err)) != HONE_OK) return st;
    if (b->info.causal && (st = hone_scheduler_new(&b->desk.scheduler, p->ctx, b->model, &sp, err)) != HONE_OK)
        return st;
    hn_book_assume(b);
    if (b->assumed) hn_log("serve: %s has no chat template: its conversations are %s", b->name, b->chat_template);

    b->system = takes_system(b);
    find_quiet(b);
    uint64_t build = hn_fnv1a(HN_FNV_INIT, hone_build_info(), strlen(hone_build_info()));
    snprintf(b->fingerprint, sizeof b->fingerprint, "b%08x-%s-%016llx", (unsigned)(build & 0xFFFFFFFF),
             hone_context_cpu(p->ctx), (unsigned long long)b->info.fingerprint);
    find_format_once(b);
    if (b->desk.scheduler) at_desk(b, ADD);
    return HONE_OK;
}

/* Under the lock: the one not used for longest of those that are loaded and not in use; NULL: none. */
static hn_book *idle_book(hn_shelf *s)
{
    hn_book *best = NULL;
    for (size_t i = 0; i < s->n; i++) {
        hn_book *b = s->book[i];
        if (b->state == HN_BOOK_LOADED && !b->users && (!best || b->used < best->used)) best = b;
    }
    return best;
}

static int32_t n_loaded(const hn_shelf *s)
{
    int32_t n = 0;
    for (size_t i = 0; i < s->n; i++) n += s->book[i]->state == HN_BOOK_LOADED || s->book[i]->state == HN_BOOK_LOADING;
    return n;
}

/* Under the lock, which is let go meanwhile. Nobody uses the model. */
static void give_up(hn_book *b)
{
    hn_shelf *s = b->shelf;
    b->state = HN_BOOK_LOADING;
    pthread_mutex_unlock(&s->lock);
    if (b->desk.scheduler) at_desk(b, REMOVE);
    close_book(b);
    pthread_mutex_lock(&s->lock);
    b->promised = 0;
    b->state = HN_BOOK_UNLOADED;
    pthread_cond_broadcast(&s->changed);
}

/* Under the lock: it was used now, for eviction and for its idle time. */
static void stamp(hn_book *b)
{
    b->used = ++b->shelf->clock;
    b->used_ns = hn_serve_ns();
}

/* Under the lock, which is let go meanwhile: the model is loaded, or it cannot be, or it is open, which tells its
 * weights, and others have to go before. */
static void load_locked(hn_book *b)
{
    hn_shelf *s = b->shelf;
    hone_error err;
    b->state = HN_BOOK_LOADING;
    pthread_mutex_unlock(&s->lock);
    hone_status st = open_model(b, &err);
    pthread_mutex_lock(&s->lock);
    if (st == HONE_OK) { /* of layers that run several times, once */
        const uint64_t read = b->info.bytes_per_token, all = b->info.n_bytes;
        b->weights = read < all ? read : all;
    }
    bool waits = st == HONE_OK && is_crowded(b);
    pthread_mutex_unlock(&s->lock);
    if (st == HONE_OK && !waits) st = furnish(b, &err);
    if (st != HONE_OK) close_book(b);
    pthread_mutex_lock(&s->lock);

    b->state = waits ? HN_BOOK_UNLOADED : st == HONE_OK ? HN_BOOK_LOADED : HN_BOOK_FAILED;
    if (st != HONE_OK) b->promised = 0;
    b->why_code = st;
    snprintf(b->why, sizeof b->why, "%s", st == HONE_OK ? "" : err.message);
    if (st != HONE_OK && s->clock) hn_log("serve: %s", err.message); /* clients see no folders; the first one ends it */
    pthread_cond_broadcast(&s->changed);
}

void hn_book_hide_folders(const hn_book *b, char *words)
{
    const hn_shelf_params *p = &b->shelf->p;
    hn_hide_folder_of(words, b->path);
    for (size_t i = 0; i < p->n_loras; i++) hn_hide_folder_of(words, p->loras[i].path);
}

static bool refuse_load(const hn_book *b, hn_refusal *r)
{
    char why[sizeof b->why];
    snprintf(why, sizeof why, "%s", b->why);
    hn_book_hide_folders(b, why);
    hn_hide_folders(why);
    *r = (hn_refusal){ .status = 500, .type = "server_error", .code = "model_failed" };
    snprintf(r->message, sizeof r->message, "model '%.100s' could not be loaded: %.800s", b->name, why);
    return false;
}

static bool try_book(hn_book *b, bool fair)
{
    hn_shelf *s = b->shelf;
    pthread_mutex_lock(&s->lock);
    bool ok = b->state == HN_BOOK_LOADED && !(fair && s->n_waiting);
    if (ok) b->users++;
    if (ok && !fair) b->lookers++;
    pthread_mutex_unlock(&s->lock);
    return ok;
}

bool hn_shelf_try(hn_book *b) { return try_book(b, false); }
bool hn_shelf_try_fair(hn_book *b) { return try_book(b, true); }

bool hn_shelf_refuse(hn_book *b, hn_refusal *r)
{
    static const struct {
        const char *code, *words;
        int retry_after;
    } rows[] = { [HN_BOOK_UNLOADED] = { "unloaded", "is not loaded; expected POST /models/load before", 0 },
                 [HN_BOOK_LOADING] = { "loading", "is being loaded or unloaded; try again", 1 },
                 [HN_BOOK_LOADED] = { "loading", "is about to make room for another model; try again", 1 },
                 [HN_BOOK_FAILED] = { "unloaded", "could not be loaded; POST /models/load tells why", 0 } };
    hn_book_state state = hn_book_look(b, NULL);
    hn_refuse(r, 503, rows[state].code, "model", "model '%s' %s", b->name, rows[state].words);
    r->retry_after = rows[state].retry_after;
    return false;
}

bool hn_shelf_refuse_unloaded(const hn_book *b, hn_refusal *r)
{
    return hn_refuse(r, 404, "model_not_loaded", "model",
                     "model '%s' is not loaded; expected POST /models/load before (--no-autoload)", b->name);
}

bool hn_shelf_take(hn_book *b, const _Atomic bool *wanted, bool may_load, hn_refusal *r)
{
    hn_shelf *s = b->shelf;
    bool tried = false, ok = true;
    pthread_mutex_lock(&s->lock);
    b->takers++;
    while (ok && b->state != HN_BOOK_LOADED) {
        if (atomic_load(&s->stopped) || (wanted && !atomic_load(wanted))) {
            ok = hn_refuse(r, 503, "draining", NULL, "the server is shutting down; ask another, or this one later");
        } else if (tried && b->state == HN_BOOK_FAILED) {
            ok = refuse_load(b, r);
        } else if (b->state == HN_BOOK_LOADING) {
            tried = true;
            pthread_cond_wait(&s->changed, &s->lock);
        } else if (!may_load) { /* it was there, or on its way, when it was looked for */
            ok = hn_shelf_refuse_unloaded(b, r);
        } else if (n_loaded(s) >= s->p.max_loaded || is_crowded(b)) { /* another must go; all are used: wait for one */
            hn_book *idle = idle_book(s);
            s->n_waiting++;
            if (idle) give_up(idle);
            else pthread_cond_wait(&s->changed, &s->lock);
            s->n_waiting--;
        } else {
            load_locked(b);
            tried = b->state == HN_BOOK_FAILED;
        }
    }
    b->takers--;
    if (ok) {
        b->users++;
        stamp(b);
    } else if (b->state == HN_BOOK_UNLOADED && b->model && !b->takers) { /* it waited for room, for nobody now */
        give_up(b);
    }
    pthread_mutex_unlock(&s->lock);
    return ok;
}

void hn_shelf_touch(hn_book *b)
{
    pthread_mutex_lock(&b->shelf->lock);
    stamp(b);
    pthread_mutex_unlock(&b->shelf->lock);
}

void hn_shelf_leave(hn_book *b)
{
    pthread_mutex_lock(&b->shelf->lock);
    stamp(b);
    b->lookers++;
    pthread_mutex_unlock(&b->shelf->lock);
}

/* Under the lock: seconds until it is to go; -1: it stays. Those who look do not use it. */
static int64_t idle_left(const hn_book *b, uint64_t now)
{
    int64_t ttl = b->of && b->of->ttl_s ? b->of->ttl_s : b->shelf->p.ttl_s;
    if (ttl <= 0) return -1;
    bool used = b->users > b->lookers || now <= b->used_ns;
    int64_t idle = used ? 0 : (int64_t)((now - b->used_ns) / 1000000000);
    return idle < ttl ? ttl - idle : 0;
}

int64_t hn_book_idle_left(hn_book *b, uint64_t now)
{
    pthread_mutex_lock(&b->shelf->lock);
    int64_t left = idle_left(b, now);
    pthread_mutex_unlock(&b->shelf->lock);
    return left;
}

/* Under the lock: a model that is to go; NULL: none is. */
static hn_book *overdue(const hn_shelf *s, uint64_t now)
{
    for (size_t i = 0; i < s->n; i++) {
        hn_book *b = s->book[i];
        if (b->state == HN_BOOK_LOADED && !b->users && idle_left(b, now) == 0) return b;
    }
    return NULL;
}

bool hn_shelf_has_idle(hn_shelf *s, uint64_t now)
{
    pthread_mutex_lock(&s->lock);
    bool any = overdue(s, now) != NULL;
    pthread_mutex_unlock(&s->lock);
    return any;
}

void hn_shelf_unload_idle(hn_shelf *s, uint64_t now)
{
    pthread_mutex_lock(&s->lock);
    for (hn_book *b; (b = overdue(s, now));) give_up(b);
    pthread_mutex_unlock(&s->lock);
}

void hn_shelf_stir(hn_shelf *s)
{
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void hn_shelf_stop(hn_shelf *s)
{
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stopped, true);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

uint64_t hn_shelf_preempted(const hn_shelf *s) { return s->n_preempted; }

static void give_book(hn_book *b, int lookers)
{
    pthread_mutex_lock(&b->shelf->lock);
    b->users--;
    b->lookers -= lookers;
    pthread_cond_broadcast(&b->shelf->changed);
    pthread_mutex_unlock(&b->shelf->lock);
}

void hn_shelf_give(hn_book *b) { give_book(b, 0); }
void hn_shelf_looked(hn_book *b) { give_book(b, 1); }

bool hn_shelf_unload(hn_book *b, bool *loading, hn_refusal *r)
{
    hn_shelf *s = b->shelf;
    bool ok = true;
    pthread_mutex_lock(&s->lock);
    if (loading && (*loading = b->state == HN_BOOK_LOADING)) {
        pthread_mutex_unlock(&s->lock);
        return false;
    }
    while (b->state == HN_BOOK_LOADING || (b->state == HN_BOOK_LOADED && b->users && b->users == b->lookers))
        pthread_cond_wait(&s->changed, &s->lock); /* who only looks is done at once */
    if (b->state == HN_BOOK_LOADED && b->users) {
        *r = (hn_refusal){ .status = 409, .type = "invalid_request_error", .code = "model_in_use" };
        snprintf(r->message, sizeof r->message, "model '%s' answers %d requests; expected none", b->name,
                 b->users - b->lookers);
        ok = false;
    } else if (b->state == HN_BOOK_LOADED) {
        give_up(b);
    }
    pthread_mutex_unlock(&s->lock);
    return ok;
}

hn_book_state hn_book_look(hn_book *b, char *why)
{
    pthread_mutex_lock(&b->shelf->lock);
    hn_book_state state = b->state;
    if (why) memcpy(why, b->why, sizeof b->why);
    pthread_mutex_unlock(&b->shelf->lock);
    return state;
}

void hn_shelf_free(hn_shelf *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++) {
        close_book(s->book[i]);
        free(s->book[i]->name);
        free(s->book[i]->path);
        free(s->book[i]);
    }
    hn_adapter_list_free(s->adapters);
    free(s->book);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- formats of answers ----------------------------------------------------------------------------------------- */

/* The one of this key, at the head from now on, with a user more; under the lock. NULL: there is none. */
static hn_book_format *find_format(hn_book *b, const char *variables, bool tools)
{
    hn_book_format **at = &b->formats;
    while (*at && ((*at)->tools != tools || strcmp((*at)->variables, variables) != 0)) at = &(*at)->next;
    hn_book_format *f = *at;
    if (!f) return NULL;
    *at = f->next;
    f->next = b->formats;
    b->formats = f;
    f->users++;
    return f;
}

static void free_format(hn_book_format *f)
{
    if (!f) return;
    hone_chat_format_free(f->format);
    free(f->variables);
    free(f);
}

/* What is beyond the last few and used by nobody, taken out, under the lock. Variables are clients' words: those
 * without any, which most requests and GET /props want, stay whatever others send. */
static hn_book_format *take_old_formats(hn_book *b)
{
    hn_book_format *old = NULL;
    int n = 0;
    for (hn_book_format **at = &b->formats; *at; n++) {
        hn_book_format *f = *at;
        if (f->users || !*f->variables || (n < MOST_FORMATS && !f->large)) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        f->next = old;
        old = f;
    }
    return old;
}

static void free_formats(hn_book_format *f)
{
    while (f) {
        hn_book_format *next = f->next;
        free_format(f);
        f = next;
    }
}

hone_status hn_book_format_take(hn_book *b, const char *variables, const char *tools, hn_book_format **out,
                                hone_error *err)
{
    hn_shelf *s = b->shelf;
    const char *key = variables ? variables : "";
    pthread_mutex_lock(&s->lock);
    *out = find_format(b, key, tools != NULL);
    pthread_mutex_unlock(&s->lock);
    if (*out) return HONE_OK;

    /* rendered outside of the lock */
    hone_chat_params p = { .variables = variables, .tools = tools, .chat_template = b->chat_template };
    hn_book_format *f = calloc(1, sizeof *f);
    if (!f || !(f->variables = strdup(key))) {
        free_format(f);
        return HN_FAIL(err, HONE_E_NOMEM, "no memory for a format of answers");
    }
    f->tools = tools != NULL;
    f->large = strlen(key) > MOST_VARIABLES;
    f->book = b;
    hone_status st = hone_chat_format_new(&f->format, b->model, &p, err);
    if (st != HONE_OK) {
        free_format(f);
        return st;
    }

    pthread_mutex_lock(&s->lock);
    if (!(*out = find_format(b, key, tools != NULL))) { /* nobody else was faster */
        f->next = b->formats;
        f->users = 1;
        b->formats = *out = f;
        f = NULL;
    }
    hn_book_format *old = take_old_formats(b);
    pthread_mutex_unlock(&s->lock);
    free_format(f);
    free_formats(old);
    return HONE_OK;
}

void hn_book_format_give(hn_book_format *f)
{
    if (!f) return;
    hn_book *b = f->book;
    pthread_mutex_lock(&b->shelf->lock);
    f->users--;
    hn_book_format *old = take_old_formats(b);
    pthread_mutex_unlock(&b->shelf->lock);
    free_formats(old);
}
