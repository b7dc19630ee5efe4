/* pull: what of a repository is wanted, fetched file by file into the cache that Hugging Face's own tools use; a
 * snapshot names a file only once all of it is there, and the branch moves last. */
#include "hub/pull.h"
#include "hub/hub_api.h"
#include "hub/url.h"

#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { SPARE = 256 << 20 }; /* bytes of disk that stay free */

/* ---- what both kinds share ---------------------------------------------------------------------------- */

hn_pulled_file *hn_pull_add(hn_puller *p, const char *path, const char *local, uint64_t size, hone_error *err)
{
    hn_pulled *out = p->out;
    if (out->n == out->cap) {
        size_t cap = out->cap ? out->cap * 2 : 16;
        hn_pulled_file *more = realloc(out->file, cap * sizeof *more);
        if (more) out->file = more, out->cap = cap;
    }
    char *a = hn_arena_strndup(out->arena, path, strlen(path)), *b = hn_arena_strndup(out->arena, local, strlen(local));
    if (out->n == out->cap || !a || !b) {
        HN_FAIL(err, HONE_E_NOMEM, "a list of files");
        return NULL;
    }
    out->file[out->n] = (hn_pulled_file){ .path = a, .local = b, .size = size };
    out->bytes += size;
    return &out->file[out->n++];
}

/* The first folder of path that is there. */
static bool room_at(const char *path, uint64_t *room)
{
    char at[HN_CACHE_PATH];
    struct statvfs v;
    snprintf(at, sizeof at, "%s", path);
    while (statvfs(at, &v) != 0) {
        char *slash = strrchr(at, '/');
        if (!slash) snprintf(at, sizeof at, ".");
        else if (slash == at) at[1] = 0;
        else *slash = 0;
        if (errno != ENOENT && errno != ENOTDIR) return false;
    }
    *room = (uint64_t)v.f_bavail * (v.f_frsize ? v.f_frsize : v.f_bsize);
    return v.f_blocks != 0; /* some network file systems do not say */
}

hone_status hn_pull_room(const char *folder, uint64_t bytes, hone_error *err)
{
    uint64_t room;
    if (!bytes || !room_at(folder, &room) || (bytes <= room && room - bytes >= SPARE)) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO,
                   "%s: the disk has %.2f GB free; %.2f GB are to come, and 0.27 GB should stay free: "
                   "make room (hone list, hone rm), or put the cache elsewhere (HF_HUB_CACHE)",
                   HN_ESC(folder, strlen(folder)), (double)room / 1e9, (double)bytes / 1e9);
}

static void on_progress(void *arg, uint64_t done, uint64_t size)
{
    hn_puller *p = arg;
    if (p->want->progress) p->want->progress(p->want->arg, p->now, p->before + done, p->total > size ? p->total : size);
}

static void on_waiting(void *arg)
{
    hn_puller *p = arg;
    char line[300];
    snprintf(line, sizeof line, "%.200s: another program downloads it; waiting for that", p->now);
    if (p->want->say) p->want->say(p->want->arg, line);
}

hone_status hn_pull_one(hn_puller *p, hn_pulled_file *f, hn_download *d, hn_fetch_head *head, hone_error *err)
{
    hn_downloaded got;
    p->now = f->path;
    d->piece = p->want->piece;
    d->n_conn = p->want->n_conn;
    d->progress = on_progress;
    d->waiting = on_waiting;
    d->arg = p;
    d->names.what = f->path;
    d->names.size = d->size;
    hone_status st = hn_download_file(p->http, d, &got, head, err);
    if (st != HONE_OK) return st;
    f->cached = got.cached;
    if (d->size == UINT64_MAX && got.size != UINT64_MAX) p->out->bytes += got.size - f->size, f->size = got.size;
    if (*got.sha256) memcpy(f->sha256, got.sha256, sizeof f->sha256);
    p->out->fetched += got.fetched;
    if (!got.cached) p->before += f->size;
    return HONE_OK;
}

/* ---- which files --------------------------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* What hone convert reads of a checkpoint, besides its weights. */
static bool is_beside(const char *base)
{
    static const char *const names[] = { "config.json",
                                         "generation_config.json",
                                         "hf_quant_config.json",
                                         "quantize_config.json",
                                         "quant_config.json",
                                         "adapter_config.json",
                                         "modules.json",
                                         "tokenizer.json",
                                         "tokenizer.model",
                                         "spiece.model",
                                         "sentencepiece.bpe.model",
                                         "tiktoken.model",
                                         "tekken.json",
                                         "tokenizer_config.json",
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "vocab.json",
                                         "merges.txt",
                                         "vocab.txt",
                                         "chat_template.json",
                                         "model.safetensors.index.json" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(base, names[i]) == 0) return true;
    return ends_with(base, ".jinja") || ends_with(base, ".tiktoken") || strncmp(base, "rwkv_vocab", 10) == 0;
}

/* The folder that the name means: its files are `folder/…`; "" is the repository itself. */
static const char *in_folder(const hn_name *name, const char *path)
{
    size_t n = name->folder ? strlen(name->path) : 0;
    if (!n) return path;
    return strncmp(path, name->path, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static bool is_weights(const char *rest)
{
    return ends_with(rest, ".safetensors") && !strchr(rest, '/') && strncmp(rest, "consolidated", 12) != 0;
}

/* PyTorch's, in the same folder and of transformers' or PEFT's names; what else ends so may be an optimizer's. */
static bool is_torch(const char *rest)
{
    bool model = strncmp(rest, "pytorch_model", 13) == 0 && !strchr(rest, '/') && ends_with(rest, ".bin");
    return model || strcmp(rest, "adapter_model.bin") == 0;
}

/* What sentence-transformers puts behind a model, as its modules.json names it: 1_Pooling/config.json,
 * 2_Dense/model.safetensors. */
static bool is_module(const char *rest)
{
    const char *slash = strchr(rest, '/');
    size_t digits = strspn(rest, "0123456789");
    return digits && rest[digits] == '_' && slash &&
           (strcmp(slash, "/config.json") == 0 || strcmp(slash, "/model.safetensors") == 0);
}

/* The files of a checkpoint. pick [n]. */
static hone_status pick_checkpoint(bool *pick, const hn_hub_repo *r, const hn_name *name, hone_error *err)
{
    size_t weights = 0, torch = 0, pth = 0, config = 0, lone = 0;
    for (size_t i = 0; i < r->n; i++) {
        const char *rest = in_folder(name, r->file[i].path);
        if (!rest) continue;
        bool top = !strchr(rest, '/');
        if (is_weights(rest)) weights++, pick[i] = true;
        if (is_torch(rest)) torch++;
        if (top && ends_with(rest, ".pth")) pth++, lone = i;
        if (strcmp(rest, "config.json") == 0 || strcmp(rest, "adapter_config.json") == 0) config++;
        if ((top && is_beside(rest)) || is_module(rest) ||
            (strncmp(rest, "additional_chat_templates/", 26) == 0 && is_beside(base_of(rest))))
            pick[i] = true;
    }
    for (size_t i = 0; i < r->n && !weights; i++) {
        const char *rest = in_folder(name, r->file[i].path);
        if (rest && (is_torch(rest) || strcmp(rest, "pytorch_model.bin.index.json") == 0)) pick[i] = true;
    }
    if (!weights && !torch && pth == 1) pick[lone] = true;
    if (weights || torch || pth == 1) return HONE_OK;
    return HN_FAIL(
        err, HONE_E_UNSUPPORTED, "%s%s%s: nothing there that hone %s, %s; hone pull --list %s shows what it has",
        name->repo, name->folder ? "/" : "", name->folder ? name->path : "",
        name->checkpoint ? "converts" : "runs or converts: no GGUF",
        pth > 1  ? "and several .pth files: name one of them"
        : config ? "and a checkpoint whose weights are neither .safetensors nor pytorch_model*.bin or adapter_model.bin"
                 : "and no checkpoint (config.json and .safetensors)",
        name->repo);
}

/* One file by its path, which is no part of a model. */
static bool pick_file(bool *pick, const hn_hub_repo *r, const hn_name *name)
{
    if (!*name->path || name->folder || (hn_ends_with_gguf(name->path) && !hn_gguf_is_side(name->path))) return false;
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->file[i].path, name->path) == 0) return pick[i] = true;
    return false;
}

typedef struct wanted {
    bool *pick;
    size_t first; /* what to open */
    bool checkpoint;
} wanted;

static hone_status choose(wanted *w, hn_puller *p, const hn_hub_repo *r, hone_error *err)
{
    hn_gguf_sets sets;
    hn_pulled *out = p->out;
    size_t which;
    w->pick = calloc(r->n + 1, sizeof *w->pick);
    if (!w->pick) return HN_FAIL(err, HONE_E_NOMEM, "a choice of %zu files", r->n);
    if (pick_file(w->pick, r, &out->name)) {
        snprintf(out->why, sizeof out->why, "the file that was named");
        while (!w->pick[w->first]) w->first++;
        return HONE_OK;
    }
    if (out->name.checkpoint) {
        w->checkpoint = true;
        snprintf(out->why, sizeof out->why, "the checkpoint");
        return pick_checkpoint(w->pick, r, &out->name, err);
    }
    hone_status st = hn_gguf_sets_of(&sets, r->file, r->n, err);
    if (st != HONE_OK) return st;
    st = hn_gguf_choose(&which, out->why, sizeof out->why, &sets, r->file, &out->name, hn_memory_for_models(), err);
    if (st == HONE_OK) {
        const hn_gguf_set *s = &sets.set[which];
        for (size_t i = 0; i < s->n_file; i++) w->pick[s->file[i]] = true;
        w->first = s->file[0];
        if (*s->tag) snprintf(out->name.tag, sizeof out->name.tag, "%s", s->tag);
    } else if (st == HONE_E_UNSUPPORTED && !*out->name.tag) {
        hone_error of_checkpoint, *why = sets.n_cut ? &of_checkpoint : err; /* what is cut is told rather */
        w->checkpoint = true;
        hone_status has = pick_checkpoint(w->pick, r, &out->name, why);
        if (!sets.n_cut || has == HONE_OK) st = has;
        snprintf(out->why, sizeof out->why, "no GGUF there%s: the checkpoint itself",
                 sets.n_cut ? " in one piece" : "");
    }
    hn_gguf_sets_free(&sets);
    return st;
}

/* ---- the hub ------------------------------------------------------------------------------------------------ */

typedef struct hub_pull {
    char root[HN_CACHE_PATH], endpoint[1024];
    char *token, token_from[HN_CACHE_PATH];
    hn_hub_repo repo;
    wanted want;
} hub_pull;

static bool size_is(const char *path, uint64_t size)
{
    struct stat sb;
    return lstat(path, &sb) == 0 && S_ISREG(sb.st_mode) && (uint64_t)sb.st_size == size;
}

static hone_status connect_hub(hn_puller *p, hub_pull *h, hone_error *err)
{
    const hn_pull_want *w = p->want;
    const char *ep = getenv("HF_ENDPOINT");
    if (ep && strlen(ep) >= sizeof h->endpoint)
        return HN_FAIL(err, HONE_E_ARG, "HF_ENDPOINT has %zu bytes; expected an address of fewer than %zu", strlen(ep),
                       sizeof h->endpoint);
    hn_url u;
    const char *why;
    if (!hn_url_parse(&u, hn_hub_endpoint(h->endpoint, sizeof h->endpoint), &why))
        return HN_FAIL(err, HONE_E_ARG, "HF_ENDPOINT '%s': %s; expected an address, as https://huggingface.co",
                       HN_ESC(ep, strlen(ep)), why);
    hone_status st = hn_hub_token(&h->token, h->token_from, sizeof h->token_from, err);
    if (st != HONE_OK) return st;
    const hn_fetch_rules rules = { .endpoint = h->endpoint,
                                   .token = h->token,
                                   .token_from = h->token_from,
                                   .insecure = w->insecure,
                                   .silence_s = w->silence_s,
                                   .tries = w->tries,
                                   .wait_s = w->wait_s,
                                   .stop = w->stop,
                                   .say = w->say,
                                   .arg = w->arg };
    return hn_fetch_new(&p->http, &rules, err);
}

/* Bytes still to come, as far as the disk tells; the total of all files that are not here is p's. */
static hone_status measure(hn_puller *p, const hub_pull *h, uint64_t *missing, hone_error *err)
{
    *missing = 0;
    for (size_t i = 0; i < h->repo.n; i++) {
        char blob[HN_CACHE_PATH], part[HN_CACHE_PATH], link[HN_CACHE_PATH];
        const hn_repo_file *f = &h->repo.file[i];
        const char *repo = p->out->name.repo;
        if (!h->want.pick[i]) continue;
        hone_status st = hn_cache_path(blob, HN_CACHE_BLOB, h->root, repo, h->repo.oid[i], NULL, err);
        if (st == HONE_OK) st = hn_cache_path(part, HN_CACHE_PART, h->root, repo, h->repo.oid[i], NULL, err);
        if (st == HONE_OK) st = hn_cache_path(link, HN_CACHE_SNAPSHOT, h->root, repo, h->repo.commit, f->path, err);
        if (st != HONE_OK) return st;
        if (size_is(blob, f->size) || size_is(link, f->size)) continue;
        p->total += f->size;
        *missing += hn_part_missing(part, f->size);
    }
    return HONE_OK;
}

static hone_status pull_file(hn_puller *p, hub_pull *h, size_t i, hone_error *err)
{
    char whole[HN_CACHE_PATH], part[HN_CACHE_PATH], journal[HN_CACHE_PATH], lock[HN_CACHE_PATH], link[HN_CACHE_PATH];
    const char *repo = p->out->name.repo, *oid = h->repo.oid[i], *commit = h->repo.commit;
    const hn_repo_file *f = &h->repo.file[i];
    hn_fetch_head head = { .status = 0 };
    hone_status st = hn_cache_path(whole, HN_CACHE_BLOB, h->root, repo, oid, NULL, err);
    if (st == HONE_OK) st = hn_cache_path(part, HN_CACHE_PART, h->root, repo, oid, NULL, err);
    if (st == HONE_OK) st = hn_cache_path(journal, HN_CACHE_JOURNAL, h->root, repo, oid, NULL, err);
    if (st == HONE_OK) st = hn_cache_path(lock, HN_CACHE_LOCK, h->root, repo, oid, NULL, err);
    if (st == HONE_OK) st = hn_cache_path(link, HN_CACHE_SNAPSHOT, h->root, repo, commit, f->path, err);
    if (st != HONE_OK) return st;
    hn_pulled_file *to = hn_pull_add(p, f->path, link, f->size, err);
    if (!to) return HONE_E_NOMEM;
    if (strlen(oid) == 64) snprintf(to->sha256, sizeof to->sha256, "%s", oid);
    if (size_is(link, f->size)) { /* as it is where links cannot be */
        to->cached = true;
        return HONE_OK;
    }
    char *url = hn_hub_address(h->endpoint, repo, commit, f->path);
    if (!url) return HN_FAIL(err, HONE_E_NOMEM, "an address");
    hn_download d = { .url = url,
                      .size = f->size,
                      .oid = oid,
                      .commit = commit,
                      .names = { .whole = whole, .part = part, .journal = journal, .lock = lock } };
    st = hn_pull_one(p, to, &d, &head, err);
    free(url);
    if (st == HONE_E_NETWORK && head.status) return hn_hub_refusal(p->http, &head, repo, commit, f->path, err);
    return st == HONE_OK ? hn_cache_link(h->root, repo, commit, f->path, oid, err) : st;
}

static hone_status set_ref(const hn_puller *p, const hub_pull *h, hone_error *err)
{
    char now[41];
    const hn_name *n = &p->out->name;
    if (hn_cache_ref(now, h->root, n->repo, n->rev, NULL) == HONE_OK && strcmp(now, h->repo.commit) == 0)
        return HONE_OK;
    return hn_cache_set_ref(h->root, n->repo, n->rev, h->repo.commit, err);
}

/* Asked of the folder that gets them: it, or the repository's, may be on another disk than the cache. */
static hone_status room_for(const hub_pull *h, const char *repo, uint64_t missing, hone_error *err)
{
    char folder[HN_CACHE_PATH], blobs[HN_CACHE_PATH + 16];
    hone_status st = hn_cache_path(folder, HN_CACHE_REPO, h->root, repo, NULL, NULL, err);
    snprintf(blobs, sizeof blobs, "%s/blobs", folder);
    return st == HONE_OK ? hn_pull_room(blobs, missing, err) : st;
}

static hone_status pull_files(hn_puller *p, hub_pull *h, hone_error *err)
{
    hn_pulled *out = p->out;
    uint64_t missing;
    memcpy(out->commit, h->repo.commit, sizeof out->commit);
    hone_status st = choose(&h->want, p, &h->repo, err);
    if (st == HONE_OK) st = measure(p, h, &missing, err);
    if (st == HONE_OK) st = room_for(h, out->name.repo, missing, err);
    for (size_t i = 0; st == HONE_OK && i < h->repo.n; i++)
        if (h->want.pick[i]) st = pull_file(p, h, i, err);
    if (st == HONE_OK) st = set_ref(p, h, err);
    if (st != HONE_OK) return st;
    out->checkpoint = h->want.checkpoint;
    if (!out->checkpoint)
        return hn_cache_path(out->path, HN_CACHE_SNAPSHOT, h->root, out->name.repo, out->commit,
                             h->repo.file[h->want.first].path, err);
    st = hn_cache_path(out->path, HN_CACHE_SNAPSHOT, h->root, out->name.repo, out->commit, NULL, err);
    size_t n = strlen(out->path);
    if (st == HONE_OK && out->name.folder) snprintf(out->path + n, sizeof out->path - n, "/%s", out->name.path);
    return st;
}

/* The files of what was found at path. */
static hone_status add_local(hn_puller *p, const hn_local *m, hone_error *err)
{
    char local[2 * HN_CACHE_PATH], root[HN_CACHE_PATH], folder[HN_CACHE_PATH];
    struct stat sb;
    hn_pulled *out = p->out;
    hone_status st = hn_cache_root(root, err);
    if (st == HONE_OK) st = hn_cache_path(folder, HN_CACHE_SNAPSHOT, root, out->name.repo, m->commit, NULL, err);
    memcpy(out->commit, m->commit, strlen(m->commit) + 1);
    for (size_t i = 0; st == HONE_OK && i < m->n_file; i++) {
        snprintf(local, sizeof local, "%s/%s", folder, m->file[i]);
        if (stat(local, &sb) != 0)
            return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(local, strlen(local)), strerror(errno));
        hn_pulled_file *f = hn_pull_add(p, m->file[i], local, (uint64_t)sb.st_size, err);
        if (!f) return HONE_E_NOMEM;
        f->cached = true;
    }
    return st;
}

/* Of the hub's cache: all files of the model or the checkpoint at out->path. */
static hone_status local_files(hn_puller *p, hone_error *err)
{
    hn_locals here;
    const hn_local *m = NULL;
    hone_status st = hn_cache_list_repo(&here, p->out->name.repo, err);
    if (st != HONE_OK) return st;
    for (size_t i = 0; i < here.n && !m; i++)
        if (strcmp(here.list[i].path, p->out->path) == 0) m = &here.list[i];
    if (m) p->out->checkpoint = m->checkpoint;
    if (m) st = add_local(p, m, err);
    hn_locals_free(&here);
    return st;
}

hone_status hn_pull_local(hn_puller *p, const char *why, hone_error *err)
{
    hn_pulled *out = p->out;
    char line[600];
    struct stat sb;
    out->offline = true;
    hone_status st = hn_cache_find(out->path, &out->name, err);
    if (st == HONE_OK && out->name.kind == HN_NAME_HUB) st = local_files(p, err);
    if (st != HONE_OK) return st;
    if (why) {
        snprintf(line, sizeof line, "%.400s; what is here is taken, new or not", why);
        if (p->want->say) p->want->say(p->want->arg, line);
    }
    snprintf(out->why, sizeof out->why, "what is here");
    if (out->n) return HONE_OK;
    if (stat(out->path, &sb) != 0)
        return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(out->path, strlen(out->path)), strerror(errno));
    out->checkpoint = S_ISDIR(sb.st_mode); /* in a folder of a repository */
    if (out->checkpoint) return HONE_OK;
    hn_pulled_file *f = hn_pull_add(p, base_of(out->path), out->path, (uint64_t)sb.st_size, err);
    if (f) f->cached = true;
    return f ? HONE_OK : HONE_E_NOMEM;
}

static hone_status pull_hub(hn_puller *p, hone_error *err)
{
    hn_pulled *out = p->out;
    hn_name name = out->name;
    hub_pull h = { .token = NULL };
    hone_error why;
    char at[HN_CACHE_PATH];
    hone_status st = hn_cache_root(h.root, err);
    if (st == HONE_OK) st = connect_hub(p, &h, err);
    bool here = st == HONE_OK && hn_cache_find(at, &name, &why) == HONE_OK;
    if (st == HONE_OK) {
        hn_fetch_hasty(p->http, here);
        st = hn_hub_read(p->http, &h.repo, h.endpoint, name.repo, name.rev, err);
        bool silent = st == HONE_E_NETWORK && !hn_fetch_answered(p->http);
        hn_fetch_hasty(p->http, false);
        if (st == HONE_OK) st = pull_files(p, &h, err);
        else if (silent && here) {
            snprintf(at, sizeof at, "%s", err->message);
            st = hn_pull_local(p, at, err);
        }
    }
    hn_hub_repo_free(&h.repo);
    free(h.want.pick);
    hn_fetch_free(p->http);
    p->http = NULL;
    if (h.token) memset(h.token, 0, strlen(h.token));
    free(h.token);
    return st;
}

/* ---- names ---------------------------------------------------------------------------------------------------- */

static hone_status name_with(hn_name *n, const char *text, const hn_pull_want *w, hone_error *err)
{
    hone_status st = hn_name_parse(n, text, err);
    if (st == HONE_OK && n->kind == HN_NAME_BARE) st = hn_name_expand(n, err);
    if (st != HONE_OK) return st;
    const char *shown = HN_ESC(text, strlen(text));
    if (n->kind == HN_NAME_NONE)
        return HN_FAIL(err, HONE_E_ARG, "%s: a path; expected a name as in owner/repo, ollama:NAME or https://…",
                       shown);
    if (n->kind == HN_NAME_BARE)
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: not on the list of short names (hone list --names); expected owner/repo of "
                       "the hub, or ollama:%s",
                       shown, shown);
    if (w->type || w->rev) {
        if (n->kind != HN_NAME_HUB)
            return HN_FAIL(err, HONE_E_ARG, "%s: --type and --rev belong to repositories of the hub", shown);
        if (w->type && ((*n->tag && strcasecmp(n->tag, w->type) != 0) || (*n->path && !n->folder)))
            return HN_FAIL(err, HONE_E_ARG, "%s and --type %s: expected one of them", shown, w->type);
        if (w->rev && *n->rev && strcmp(n->rev, w->rev) != 0)
            return HN_FAIL(err, HONE_E_ARG, "%s and --rev %s: expected one of them", shown, w->rev);
        if (w->rev && !hn_hub_rev_ok(w->rev))
            return HN_FAIL(err, HONE_E_ARG, "--rev %s: expected a branch, a tag or a commit",
                           HN_ESC(w->rev, strlen(w->rev)));
        if (w->type && (!hn_ollama_part_ok(w->type)))
            return HN_FAIL(err, HONE_E_ARG, "--type %s: expected one as in Q4_K_M", HN_ESC(w->type, strlen(w->type)));
        if (w->type) snprintf(n->tag, sizeof n->tag, "%s", w->type);
        if (w->rev) snprintf(n->rev, sizeof n->rev, "%s", w->rev);
    }
    n->checkpoint = w->checkpoint;
    if (w->checkpoint && (n->kind != HN_NAME_HUB || *n->tag || (*n->path && !n->folder)))
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: --checkpoint belongs to a repository of the hub, as owner/repo, or a folder of it", shown);
    if (w->output && n->kind != HN_NAME_URL)
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: --output belongs to addresses (https://…); this goes to the cache that other "
                       "tools share",
                       shown);
    return HONE_OK;
}

hone_status hn_pull(hn_pulled *out, const char *name, const hn_pull_want *want, hone_error *err)
{
    struct timespec a, b;
    hn_puller p = { .want = want, .out = out };
    memset(out, 0, sizeof *out);
    out->arena = hn_arena_new();
    if (!out->arena) return HN_FAIL(err, HONE_E_NOMEM, "a list of files");
    clock_gettime(CLOCK_MONOTONIC, &a);
    hone_status st = name_with(&out->name, name, want, err);
    if (st == HONE_OK && want->offline)
        st = want->output ? HN_FAIL(err, HONE_E_ARG, "%s: --output, and --offline", HN_ESC(name, strlen(name)))
                          : hn_pull_local(&p, NULL, err);
    else if (st == HONE_OK)
        st = out->name.kind == HN_NAME_HUB      ? pull_hub(&p, err)
             : out->name.kind == HN_NAME_OLLAMA ? hn_pull_ollama(&p, err)
                                                : hn_pull_address(&p, err);
    clock_gettime(CLOCK_MONOTONIC, &b);
    out->seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    return st;
}

void hn_pulled_free(hn_pulled *p)
{
    free(p->file);
    hn_arena_free(p->arena);
    memset(p, 0, sizeof *p);
}

/* ---- only to look --------------------------------------------------------------------------------------------- */

hone_status hn_pull_look(hn_pull_list *out, const char *name, const hn_pull_want *want, hone_error *err)
{
    hub_pull h = { .token = NULL };
    hn_puller p = { .want = want };
    memset(out, 0, sizeof *out);
    out->chosen = SIZE_MAX;
    if (want->offline)
        return HN_FAIL(err, HONE_E_ARG,
                       "--list asks the hub, and this is offline (--offline, HF_HUB_OFFLINE); "
                       "hone list shows what is here");
    hone_status st = name_with(&out->name, name, want, err);
    if (st == HONE_OK && out->name.kind != HN_NAME_HUB)
        st = HN_FAIL(err, HONE_E_ARG, "%s: --list is for repositories of the hub", HN_ESC(name, strlen(name)));
    if (st == HONE_OK) st = connect_hub(&p, &h, err);
    if (st == HONE_OK && !(out->repo = calloc(1, sizeof *out->repo)))
        st = HN_FAIL(err, HONE_E_NOMEM, "a list of files");
    if (st == HONE_OK) st = hn_hub_read(p.http, out->repo, h.endpoint, out->name.repo, out->name.rev, err);
    if (st == HONE_OK) {
        hone_error why;
        memcpy(out->commit, out->repo->commit, sizeof out->commit);
        out->file = out->repo->file;
        out->n = out->repo->n;
        st = hn_gguf_sets_of(&out->sets, out->file, out->n, err);
        if (st == HONE_OK && hn_gguf_choose(&out->chosen, out->why, sizeof out->why, &out->sets, out->file, &out->name,
                                            hn_memory_for_models(), &why) != HONE_OK) {
            out->chosen = SIZE_MAX;
            snprintf(out->why, sizeof out->why, "%s", why.message);
        }
    }
    hn_fetch_free(p.http);
    free(h.token);
    return st;
}

void hn_pull_list_free(hn_pull_list *l)
{
    hn_gguf_sets_free(&l->sets);
    if (l->repo) hn_hub_repo_free(l->repo);
    free(l->repo);
    memset(l, 0, sizeof *l);
}
