/* cache_list: what lies here, as models; see cache.h. Owns how the files of a snapshot, of a manifest and of a folder
 * make models, and what they are called; what is in them nobody looks at here, but for lists of what there is. */
#include "hub/cache.h"
#include "hub/cache_dir.h"
#include "hub/store.h"

#include "base/file.h"
#include "base/os.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { DEEP_SNAPSHOT = 8, DEEP_FOLDER = 3, MOST_MODELS = 100000 };

typedef struct listing {
    hn_locals *out;
    size_t cap;
    hone_error *err;
} listing;

static hone_status no_memory(const listing *l) { return HN_FAIL(l->err, HONE_E_NOMEM, "the list of models here"); }

static hone_status add(listing *l, const hn_local *m)
{
    hn_locals *o = l->out;
    if (!m->name || !m->path || !m->trouble) return no_memory(l);
    if (o->n == MOST_MODELS) return HN_FAIL(l->err, HONE_E_IO, "more than %d models here", MOST_MODELS);
    if (o->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 32;
        hn_local *list = hn_arena_alloc(o->arena, cap * sizeof *list);
        if (!list) return no_memory(l);
        if (o->n) memcpy(list, o->list, o->n * sizeof *list);
        o->list = list;
        l->cap = cap;
    }
    o->list[o->n++] = *m;
    return HONE_OK;
}

static const char *keep(listing *l, const char *s) { return hn_arena_strndup(l->out->arena, s, strlen(s)); }

/* ---- models of one folder of files --------------------------------------------------------------------- */

static const char *trouble_text(listing *l, const char *path, const char *what)
{
    char text[400];
    snprintf(text, sizeof text, "%s: %s", HN_ESC(path, strlen(path)), what);
    return keep(l, text);
}

/* What is wrong with a set, its files and its age. False: no memory. */
static bool describe_set(listing *l, hn_local *m, const hn_gguf_set *s, const hn_cache_dir *d)
{
    const char **file = hn_arena_alloc(l->out->arena, (s->n_file + 1) * sizeof *file);
    char text[120];
    if (!file) return false;
    m->file = file;
    m->trouble = "";
    m->bytes = s->bytes;
    for (size_t i = 0; i < s->n_file; i++) {
        size_t f = s->file[i];
        if (f == SIZE_MAX) {
            snprintf(text, sizeof text, "part %zu of %zu is missing", i + 1, s->n_file);
            m->trouble = keep(l, text);
            if (!m->trouble) return false;
            continue;
        }
        if (!m->n_file) m->path = hn_cache_join(l->out->arena, d->path, d->file[f].path);
        file[m->n_file++] = d->file[f].path;
        if (d->about[f].when > m->when) m->when = d->about[f].when;
        if (!*m->trouble && *d->about[f].trouble) m->trouble = trouble_text(l, d->file[f].path, d->about[f].trouble);
        if (!m->trouble) return false;
    }
    m->tag = keep(l, s->tag);
    return m->path && m->tag;
}

/* Of how many sets is this the tag? */
static size_t n_tagged(const hn_gguf_sets *sets, const char *tag)
{
    size_t n = 0;
    for (size_t i = 0; i < sets->n; i++) n += strcasecmp(sets->set[i].tag, tag) == 0;
    return n;
}

/* ---- checkpoints ------------------------------------------------------------------------------------------ */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && strcmp(s + n - k, end) == 0;
}

/* A model as PyTorch has it, or an adapter: a configuration and weights beside it. Done: there is one. */
static bool describe_checkpoint(listing *l, hn_local *m, const hn_cache_dir *d, bool *lost)
{
    if (!hn_checkpoint_config(d) || !hn_checkpoint_weights(d)) return false;
    const char **file = hn_arena_alloc(l->out->arena, (d->n + 1) * sizeof *file);
    for (size_t i = 0; file && i < d->n; i++) {
        if (hn_ends_with_gguf(d->file[i].path)) continue;
        file[m->n_file++] = d->file[i].path;
        m->bytes += d->file[i].size;
        if (d->about[i].when > m->when) m->when = d->about[i].when;
    }
    m->trouble = hn_checkpoint_trouble(d);
    m->file = file;
    m->path = d->path;
    m->tag = "";
    m->checkpoint = true;
    *lost = !file || !m->trouble;
    return true;
}

/* ---- the hub's cache ---------------------------------------------------------------------------------------- */

typedef struct repo_refs {
    const char **rev;
    char (*commit)[41];
    size_t n;
} repo_refs;

static hone_status read_refs(listing *l, repo_refs *r, const char *root, const char *repo)
{
    char folder[HN_CACHE_PATH];
    hn_cache_dir d;
    *r = (repo_refs){ 0 };
    hone_status st = hn_cache_path(folder, HN_CACHE_REPO, root, repo, NULL, NULL, l->err);
    const char *path = hn_cache_join(l->out->arena, folder, "refs");
    if (st != HONE_OK || !path) return st != HONE_OK ? st : no_memory(l);
    st = hn_cache_walk(&d, l->out->arena, path, folder, 4, false, l->err);
    if (st != HONE_OK) return st;
    r->rev = hn_arena_alloc(l->out->arena, (d.n + 1) * sizeof *r->rev);
    r->commit = hn_arena_alloc(l->out->arena, (d.n + 1) * sizeof *r->commit);
    if (!r->rev || !r->commit) return no_memory(l);
    for (size_t i = 0; i < d.n; i++) {
        if (!hn_hub_rev_ok(d.file[i].path)) continue;
        st = hn_cache_ref(r->commit[r->n], root, repo, d.file[i].path, l->err);
        if (st == HONE_E_NOMEM || st == HONE_E_IO) return st;
        if (st == HONE_OK) r->rev[r->n++] = d.file[i].path; /* a ref that is none names no snapshot */
    }
    return HONE_OK;
}

/* "main" if it names the commit, else any that does, else "". */
static const char *rev_of(const repo_refs *r, const char *commit)
{
    const char *found = "";
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->commit[i], commit) != 0) continue;
        if (!*found || strcmp(r->rev[i], "main") == 0) found = r->rev[i];
    }
    return found;
}

static const char *hub_name(listing *l, const hn_local *m, const char *tag, const char *path)
{
    hn_name n = { .kind = HN_NAME_HUB };
    char text[3 * HN_NAME_PART + HN_NAME_PATH_MAX];
    snprintf(n.repo, sizeof n.repo, "%s", m->repo);
    if (strcmp(m->rev, "main") != 0) snprintf(n.rev, sizeof n.rev, "%s", *m->rev ? m->rev : m->commit);
    if (*tag) snprintf(n.tag, sizeof n.tag, "%s", tag);
    else snprintf(n.path, sizeof n.path, "%s", path);
    return keep(l, hn_name_text(text, sizeof text, &n));
}

/* Everything below snapshots/COMMIT. */
static hone_status list_snapshot(listing *l, const hn_local *like, const char *folder, const char *home)
{
    hn_cache_dir d;
    hn_gguf_sets sets;
    bool lost = false;
    hone_status st = hn_cache_walk(&d, l->out->arena, folder, home, DEEP_SNAPSHOT, false, l->err);
    if (st == HONE_OK) st = hn_gguf_sets_of(&sets, d.file, d.n, l->err);
    if (st != HONE_OK) return st;
    for (size_t i = 0; st == HONE_OK && i < sets.n; i++) {
        hn_local m = *like;
        if (!describe_set(l, &m, &sets.set[i], &d)) st = no_memory(l);
        else {
            bool alone = *m.tag && n_tagged(&sets, m.tag) == 1;
            m.name = hub_name(l, &m, alone ? m.tag : "", m.file[0]);
            st = add(l, &m);
        }
    }
    hn_gguf_sets_free(&sets);
    hn_local m = *like;
    if (st != HONE_OK || !describe_checkpoint(l, &m, &d, &lost)) return st;
    m.name = hub_name(l, &m, "", "");
    return lost ? no_memory(l) : add(l, &m);
}

static bool is_part(const char *name)
{
    return ends_with(name, ".hone-part") || ends_with(name, ".incomplete") || ends_with(name, ".downloadInProgress");
}

/* What lies in blobs/ and is not whole yet: of all of them one line. */
static hone_status list_parts(listing *l, const hn_local *like, const char *home)
{
    hn_local m = *like;
    hn_cache_dir d;
    const char *folder = hn_cache_join(l->out->arena, home, "blobs"), **file;
    if (!folder) return no_memory(l);
    hone_status st = hn_cache_walk(&d, l->out->arena, folder, home, 0, false, l->err);
    if (st != HONE_OK) return st == HONE_E_ARG ? HONE_OK : st;
    if (!(file = hn_arena_alloc(l->out->arena, (d.n + 1) * sizeof *file))) return no_memory(l);
    for (size_t i = 0; i < d.n; i++) {
        if (!is_part(d.file[i].path)) continue;
        file[m.n_file++] = d.file[i].path;
        m.bytes += d.file[i].size;
        if (d.about[i].when > m.when) m.when = d.about[i].when;
    }
    if (!m.n_file) return HONE_OK;
    m.file = file;
    m.path = folder;
    m.tag = m.commit = m.rev = "";
    m.unfinished = true;
    m.name = m.repo;
    m.trouble = "a download that has not ended";
    return add(l, &m);
}

static hone_status list_repo(listing *l, const char *root, const char *repo)
{
    char home[HN_CACHE_PATH];
    const char **commits;
    size_t n;
    repo_refs refs = { 0 };
    hone_status st = hn_cache_path(home, HN_CACHE_REPO, root, repo, NULL, NULL, l->err);
    const char *folder = hn_cache_join(l->out->arena, home, "snapshots"), *top = keep(l, home);
    if (st == HONE_OK && (!folder || !top)) st = no_memory(l);
    if (st == HONE_OK) st = read_refs(l, &refs, root, repo);
    if (st == HONE_OK) st = hn_cache_names(&commits, &n, l->out->arena, folder, false, l->err);
    hn_local like = { .where = HN_LOCAL_HUB, .repo = keep(l, repo), .commit = "", .rev = "" };
    if (st == HONE_E_ARG && like.repo && top) { /* one that cannot be looked into is no reason to name no other */
        like.name = like.repo;
        like.path = top;
        like.tag = "";
        like.trouble = "its folder cannot be read";
        return add(l, &like);
    }
    for (size_t i = 0; st == HONE_OK && i < n; i++) {
        if (!hn_hub_commit_ok(commits[i])) continue;
        like.commit = commits[i];
        like.rev = rev_of(&refs, commits[i]);
        const char *snapshot = hn_cache_join(l->out->arena, folder, commits[i]);
        st = snapshot && like.repo ? list_snapshot(l, &like, snapshot, top) : no_memory(l);
    }
    return st == HONE_OK ? list_parts(l, &like, top) : st;
}

static hone_status list_hub(listing *l)
{
    char root[HN_CACHE_PATH], repo[HN_NAME_PART];
    const char **names;
    size_t n;
    hone_error why;
    hone_status st = hn_cache_root(root, &why);
    if (st != HONE_OK) return HONE_OK; /* no home: nothing is there */
    st = hn_cache_names(&names, &n, l->out->arena, root, false, l->err);
    for (size_t i = 0; st == HONE_OK && i < n; i++) {
        const char *owner = strncmp(names[i], "models--", 8) == 0 ? names[i] + 8 : NULL;
        const char *gap = owner ? strstr(owner, "--") : NULL;
        if (!gap || (size_t)snprintf(repo, sizeof repo, "%.*s/%s", (int)(gap - owner), owner, gap + 2) >= sizeof repo)
            continue;
        if (hn_hub_repo_ok(repo)) st = list_repo(l, root, repo);
    }
    return st;
}

/* ---- ollama's store ----------------------------------------------------------------------------------------- */

static hone_status list_manifest(listing *l, const char *root, const hn_name *n)
{
    char text[HN_CACHE_PATH];
    hn_local m = { .where = HN_LOCAL_OLLAMA, .tag = "", .commit = "", .rev = "" };
    m.name = keep(l, hn_name_text(text, sizeof text, n));
    snprintf(text, sizeof text, "%s/%s", n->host, n->repo);
    m.repo = keep(l, text);
    if (!m.name || !m.repo) return no_memory(l);
    hone_status st = hn_store_read(&m, l->out->arena, root, n, l->err);
    return st == HONE_OK ? add(l, &m) : st;
}

/* manifests/HOST/NAMESPACE/NAME/TAG: the i-th part of the path is at level i. */
static hone_status list_store_level(listing *l, const char *root, const char *folder, const char *const *above,
                                    size_t level)
{
    const char **names, *part[4];
    size_t n;
    hone_status st = hn_cache_names(&names, &n, l->out->arena, folder, false, l->err);
    for (size_t i = 0; i < level; i++) part[i] = above[i];
    for (size_t i = 0; st == HONE_OK && i < n; i++) {
        part[level] = names[i];
        if (level < 3) {
            const char *below = hn_cache_join(l->out->arena, folder, names[i]);
            st = below ? list_store_level(l, root, below, part, level + 1) : no_memory(l);
            continue;
        }
        char text[1024];
        hn_name name;
        hone_error ignored; /* a file that is no manifest by its name */
        if ((size_t)snprintf(text, sizeof text, "ollama:%s/%s/%s:%s", part[0], part[1], part[2], part[3]) <
                sizeof text &&
            hn_name_parse(&name, text, &ignored) == HONE_OK)
            st = list_manifest(l, root, &name);
    }
    return st;
}

static hone_status list_ollama(listing *l)
{
    char root[HN_CACHE_PATH];
    hone_error why;
    if (hn_ollama_root(root, &why) != HONE_OK) return HONE_OK;
    const char *folder = hn_cache_join(l->out->arena, root, "manifests");
    return folder ? list_store_level(l, root, folder, NULL, 0) : no_memory(l);
}

/* ---- plain folders ------------------------------------------------------------------------------------------- */

void hn_model_stem(char *dst, size_t cap, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int part, total, used = 0;
    size_t n = strlen(name);
    if (hn_ends_with_gguf(name)) n -= 5;
    if (n > 15 && sscanf(name + n - 15, "-%5d-of-%5d%n", &part, &total, &used) == 2 && used == 15) n -= 15;
    snprintf(dst, cap, "%.*s", (int)n, name);
}

static hone_status list_folder(listing *l, const char *path)
{
    hn_cache_dir d;
    hn_gguf_sets sets;
    char stem[300];
    const char *folder = keep(l, path);
    if (!folder) return no_memory(l);
    hone_status st = hn_cache_walk(&d, l->out->arena, folder, NULL, DEEP_FOLDER, true, l->err);
    if (st == HONE_OK) st = hn_gguf_sets_of(&sets, d.file, d.n, l->err);
    if (st != HONE_OK) return st;
    for (size_t i = 0; st == HONE_OK && i < sets.n; i++) {
        hn_local m = { .where = HN_LOCAL_FOLDER, .repo = folder, .commit = "", .rev = "" };
        if (!describe_set(l, &m, &sets.set[i], &d)) {
            st = no_memory(l);
            continue;
        }
        hn_model_stem(stem, sizeof stem, m.file[0]);
        m.name = hn_ollama_part_ok(stem) ? keep(l, stem) : m.path;
        for (size_t k = 0; k < l->out->n; k++) /* the first of a name has it, as when it is looked for */
            if (l->out->list[k].where == HN_LOCAL_FOLDER && strcmp(l->out->list[k].name, stem) == 0) m.name = m.path;
        st = add(l, &m);
    }
    hn_gguf_sets_free(&sets);
    return st;
}

hone_status hn_each_models_folder(hone_status (*fn)(void *arg, const char *folder), void *arg, hone_error *err)
{
    char folder[HN_CACHE_PATH], home[HN_CACHE_PATH];
    const char *list = getenv("HONE_MODELS");
    hn_file_id seen[16], id;
    size_t n_seen = 0;
    hone_status st = HONE_OK;
    if (hn_models_home(home, NULL) != HONE_OK) *home = 0;
    for (int round = 0; round < 3 && st == HONE_OK; round++) {
        const char *p = round == 0 ? (list ? list : "") : round == 1 ? "models" : home;
        while (*p && st == HONE_OK) {
            size_t n = round ? strlen(p) : strcspn(p, ":");
            if (n >= sizeof folder)
                return HN_FAIL(err, HONE_E_ARG, "HONE_MODELS: a path is longer than %zu bytes", sizeof folder - 1);
            snprintf(folder, sizeof folder, "%.*s", (int)n, p);
            p += n + (p[n] == ':');
            struct stat sb;
            bool again = stat(folder, &sb) != 0;
            if (again && !hn_is_absent(errno) && !hn_is_closed(errno)) return hn_cannot_look(folder, errno, err);
            if (!again) id = (hn_file_id){ (uint64_t)sb.st_dev, (uint64_t)sb.st_ino };
            for (size_t i = 0; i < n_seen && !again; i++) again = hn_file_id_same(seen[i], id);
            if (again || !n) continue;
            if (n_seen < sizeof seen / sizeof *seen) seen[n_seen++] = id;
            st = fn(arg, folder);
        }
    }
    return st;
}

static hone_status folder_of_list(void *arg, const char *folder) { return list_folder(arg, folder); }

/* ---- all ---------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b, void *unused)
{
    const hn_local *x = a, *y = b;
    int k = strcmp(x->name, y->name);
    (void)unused;
    return k ? k : (int)x->where - (int)y->where;
}

static hone_status finish(listing *l, hone_status st)
{
    if (st == HONE_OK && l->out->n) hn_os_sort(l->out->list, l->out->n, sizeof *l->out->list, by_name, NULL);
    if (st != HONE_OK) hn_locals_free(l->out);
    return st;
}

hone_status hn_cache_list(hn_locals *out, unsigned where, hone_error *err)
{
    listing l = { .out = out, .err = err };
    *out = (hn_locals){ .arena = hn_arena_new() };
    hone_status st = out->arena ? HONE_OK : no_memory(&l);
    if (st == HONE_OK && where & HN_FIND_FOLDERS) st = hn_each_models_folder(folder_of_list, &l, err);
    if (st == HONE_OK && where & HN_FIND_HUB) st = list_hub(&l);
    if (st == HONE_OK && where & HN_FIND_OLLAMA) st = list_ollama(&l);
    return finish(&l, st);
}

hone_status hn_cache_list_repo(hn_locals *out, const char *repo, hone_error *err)
{
    char root[HN_CACHE_PATH];
    listing l = { .out = out, .err = err };
    *out = (hn_locals){ .arena = hn_arena_new() };
    hone_status st = out->arena ? hn_cache_root(root, err) : no_memory(&l);
    return finish(&l, st == HONE_OK ? list_repo(&l, root, repo) : st);
}

void hn_locals_free(hn_locals *l)
{
    hn_arena_free(l->arena);
    *l = (hn_locals){ 0 };
}
