/* find: the file that a name means on this machine. Owns where a name is looked for, in which order, and what is said
 * where nothing is; the networks are another's. Declared in cache.h. */
#include "hub/cache.h"
#include "hub/cache_dir.h"
#include "hub/store.h"

#include "base/options.h"

#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct finding {
    const hn_name *name;
    char *path; /* [HN_CACHE_PATH] */
    char text[HN_NAME_URL_MAX];
    hone_error *err;
} finding;

static hone_status found(const finding *f, const char *path)
{
    if (strlen(path) >= HN_CACHE_PATH) return HN_FAIL(f->err, HONE_E_ARG, "%.80s…: the path is too long", path);
    memcpy(f->path, path, strlen(path) + 1);
    return HONE_OK;
}

/* The name nearest to one that is nowhere: of the models here, and of the short names. "" where none is near. */
static void nearest(char *dst, size_t cap, const char *text)
{
    hn_locals here;
    hn_short_names names;
    hone_error ignored;
    *dst = 0;
    if (hn_cache_list(&here, HN_FIND_ALL, &ignored) != HONE_OK) return;
    if (hn_short_names_read(&names, &ignored) == HONE_OK) {
        size_t n = 2 * here.n + names.n, at = 0;
        const char **list = calloc(n + 1, sizeof *list);
        for (size_t i = 0; list && i < here.n; i++)
            list[at++] = here.list[i].name + (strncmp(here.list[i].name, "ollama:", 7) == 0 ? 7 : 0);
        for (size_t i = 0; list && i < here.n; i++) /* and without the type */
            if (here.list[i].where == HN_LOCAL_HUB) list[at++] = here.list[i].repo;
        for (size_t i = 0; list && i < names.n; i++) list[at++] = names.list[i].name;
        const char *near = list ? hn_nearest(text, list, at) : NULL;
        snprintf(dst, cap, "%s", near && strcmp(near, text) != 0 ? near : "");
        free(list);
        hn_short_names_free(&names);
    }
    hn_locals_free(&here);
}

static const char *option(const finding *f) { return f->name->checkpoint ? "--checkpoint " : ""; }

static hone_status not_here(const finding *f, const char *why)
{
    char near[300] = "";
    const char *name = HN_ESC(f->text, strlen(f->text));
    if (!*why && f->err) nearest(near, sizeof near, f->text);
    return HN_FAIL(f->err, HONE_E_IO,
                   "%s: no such file, and no %s of this name on this machine%s%s%s%s%s; `hone pull %s%s` gets it", name,
                   f->name->checkpoint ? "checkpoint" : "model", *why ? ": " : "", why, *near ? " (did you mean " : "",
                   *near ? HN_ESC(near, strlen(near)) : "", *near ? "?)" : "", option(f), name);
}

static hone_status not_whole(const finding *f, const char *trouble)
{
    const char *name = HN_ESC(f->text, strlen(f->text));
    return HN_FAIL(f->err, HONE_E_IO, "%s: not whole on this machine: %s; `hone pull %s%s` gets the rest", name,
                   trouble, option(f), name);
}

/* ---- the hub -------------------------------------------------------------------------------------- */

/* The commit of the name's revision. Where that is main by default and no ref says what that is, the only one there. */
static hone_status commit_of(const finding *f, char commit[41], const char *root, hn_arena *arena)
{
    char folder[HN_CACHE_PATH], sub[HN_CACHE_PATH + 16];
    const char **names;
    size_t n, n_commit = 0;
    hone_error why;
    hone_status st = hn_cache_ref(commit, root, f->name->repo, f->name->rev, &why);
    if (st == HONE_OK || *f->name->rev)
        return st == HONE_OK ? st : not_here(f, "this revision of it is not known here");
    st = hn_cache_path(folder, HN_CACHE_REPO, root, f->name->repo, NULL, NULL, f->err);
    if (st != HONE_OK) return st;
    snprintf(sub, sizeof sub, "%s/snapshots", folder);
    if ((st = hn_cache_names(&names, &n, arena, sub, false, f->err)) != HONE_OK) return st;
    for (size_t i = 0; i < n; i++) {
        if (!hn_hub_commit_ok(names[i])) continue;
        if (!n_commit++) memcpy(commit, names[i], 41);
    }
    return n_commit == 1 ? HONE_OK : not_here(f, n_commit ? "several commits of it are, and no ref to one" : "");
}

static bool has_file(const hn_cache_dir *d, const char *path, size_t *at)
{
    for (size_t i = 0; i < d->n; i++) {
        if (strcmp(d->file[i].path, path) != 0) continue;
        *at = i;
        return true;
    }
    return false;
}

static hone_status open_file(const finding *f, hn_arena *arena, const hn_cache_dir *d, size_t at)
{
    char text[300];
    const char *path = hn_cache_join(arena, d->path, d->file[at].path);
    if (!path) return HN_FAIL(f->err, HONE_E_NOMEM, "the path of a model");
    if (!*d->about[at].trouble) return found(f, path);
    snprintf(text, sizeof text, "%s: %s", HN_ESC(d->file[at].path, strlen(d->file[at].path)), d->about[at].trouble);
    return not_whole(f, text);
}

/* Sets that have the tag. */
static size_t n_meant(const hn_gguf_sets *sets, const hn_name *n)
{
    size_t k = 0;
    for (size_t i = 0; *n->tag && i < sets->n; i++) k += strcasecmp(sets->set[i].tag, n->tag) == 0;
    return k;
}

/* One of the GGUF models of a snapshot. */
static hone_status choose(const finding *f, hn_arena *arena, const hn_cache_dir *d, const hn_gguf_sets *sets)
{
    size_t which;
    char why[300], said[600];
    hone_error e;
    hone_status st = hn_gguf_choose(&which, why, sizeof why, sets, d->file, f->name, hn_memory_for_models(), &e);
    if (st == HONE_E_NOMEM)
        st = hn_gguf_choose(&which, why, sizeof why, sets, d->file, f->name, 0, &e); /* it is here */
    if (st == HONE_E_FORMAT) return not_whole(f, "parts of its set are missing");
    if (st == HONE_E_ARG && n_meant(sets, f->name) > 1) return HN_FAIL(f->err, st, "%s", e.message);
    if (st != HONE_OK && (*f->name->tag || *f->name->path)) {
        char words[400];
        snprintf(said, sizeof said, "of this repository there are %s", hn_gguf_sets_words(words, sizeof words, sets));
        return not_here(f, said);
    }
    if (st != HONE_OK) return HN_FAIL(f->err, st == HONE_E_NOMEM ? HONE_E_NOMEM : HONE_E_ARG, "%s", e.message);
    const hn_gguf_set *s = &sets->set[which];
    for (size_t i = s->n_file; i-- > 0;)
        if (i == 0 || *d->about[s->file[i]].trouble) return open_file(f, arena, d, s->file[i]);
    return HONE_OK;
}

/* Where a checkpoint would be: the snapshot, or the folder of it that the name says; *folder: which. */
static hone_status walk_checkpoint(const finding *f, hn_cache_dir *d, const char **folder, hn_arena *arena,
                                   const char *snapshot, const char *home)
{
    *folder = f->name->folder ? hn_cache_join(arena, snapshot, f->name->path) : snapshot;
    if (!*folder) return HN_FAIL(f->err, HONE_E_NOMEM, "looking for a model");
    return hn_cache_walk(d, arena, *folder, home, 2, false, f->err);
}

/* The checkpoint there: whole, else it is no use to anybody. */
static hone_status checkpoint_at(const finding *f, const hn_cache_dir *d, const char *folder)
{
    if (!hn_checkpoint_config(d)) return not_here(f, "its folder is, without such a file");
    const char *trouble = hn_checkpoint_trouble(d);
    if (!trouble) return HN_FAIL(f->err, HONE_E_NOMEM, "looking for a model");
    return *trouble ? not_whole(f, trouble) : found(f, folder);
}

static hone_status checkpoint_in(const finding *f, hn_arena *arena, const char *snapshot, const char *home)
{
    hn_cache_dir d;
    const char *folder;
    hone_status st = walk_checkpoint(f, &d, &folder, arena, snapshot, home);
    return st == HONE_OK ? checkpoint_at(f, &d, folder) : st;
}

/* The checkpoint beside GGUF files, where some of it is there: *begun. */
static hone_status checkpoint_beside(const finding *f, hn_arena *arena, const char *snapshot, const char *home,
                                     bool *begun)
{
    hn_cache_dir d;
    hn_name name = *f->name;
    finding it = *f;
    const char *folder;
    hone_status st = walk_checkpoint(f, &d, &folder, arena, snapshot, home);
    if (st != HONE_OK) return st;
    *begun = hn_checkpoint_begun(&d);
    name.checkpoint = true; /* what is said of it */
    it.name = &name;
    return *begun ? checkpoint_at(&it, &d, folder) : HONE_OK;
}

static hone_status in_snapshot(const finding *f, hn_arena *arena, const char *snapshot, const char *home)
{
    hn_cache_dir d;
    hn_gguf_sets sets;
    size_t at;
    hone_status st = hn_cache_walk(&d, arena, snapshot, home, 8, false, f->err);
    if (st != HONE_OK) return st;
    if (!d.n) return not_here(f, "");
    bool part = hn_ends_with_gguf(f->name->path) && !hn_gguf_is_side(f->name->path); /* of a set, maybe */
    if (*f->name->path && !f->name->folder && !part && has_file(&d, f->name->path, &at))
        return open_file(f, arena, &d, at);
    if ((st = hn_gguf_sets_of(&sets, d.file, d.n, f->err)) != HONE_OK) return st;
    bool plain = !*f->name->tag && (!*f->name->path || f->name->folder);
    bool begun = false;
    if (plain && sets.n && f->name->checkpoint_first) st = checkpoint_beside(f, arena, snapshot, home, &begun);
    if (st == HONE_OK && !begun) {
        if ((!sets.n || f->name->checkpoint) && plain) st = checkpoint_in(f, arena, snapshot, home);
        else if (!sets.n) st = not_here(f, "its folder is, without such a file");
        else st = choose(f, arena, &d, &sets);
    }
    hn_gguf_sets_free(&sets);
    return st;
}

/* The folder of the snapshot, and that of its repository. */
static hone_status snapshot_of(const finding *f, hn_arena *arena, char snapshot[HN_CACHE_PATH],
                               char home[HN_CACHE_PATH])
{
    char root[HN_CACHE_PATH], commit[41];
    hone_status st = hn_cache_root(root, f->err);
    if (st == HONE_OK) st = hn_cache_path(home, HN_CACHE_REPO, root, f->name->repo, NULL, NULL, f->err);
    if (st == HONE_OK && access(home, F_OK) != 0) st = not_here(f, "");
    if (st == HONE_OK) st = commit_of(f, commit, root, arena);
    if (st == HONE_OK) st = hn_cache_path(snapshot, HN_CACHE_SNAPSHOT, root, f->name->repo, commit, NULL, f->err);
    return st == HONE_OK && access(snapshot, F_OK) != 0 ? not_here(f, "") : st;
}

static hone_status in_hub(const finding *f, bool folder)
{
    char home[HN_CACHE_PATH], snapshot[HN_CACHE_PATH];
    hn_arena *arena = hn_arena_new();
    hone_status st = arena ? HONE_OK : HN_FAIL(f->err, HONE_E_NOMEM, "looking for a model");
    if (st == HONE_OK) st = snapshot_of(f, arena, snapshot, home);
    if (st == HONE_OK) st = folder ? found(f, snapshot) : in_snapshot(f, arena, snapshot, home);
    hn_arena_free(arena);
    return st;
}

/* ---- ollama's store, addresses ------------------------------------------------------------------------ */

static hone_status in_store(const finding *f)
{
    char root[HN_CACHE_PATH], manifest[HN_CACHE_PATH];
    hn_local m = { .name = f->text };
    hn_arena *arena = hn_arena_new();
    hone_status st = arena ? hn_ollama_root(root, f->err) : HN_FAIL(f->err, HONE_E_NOMEM, "looking for a model");
    if (st == HONE_OK) st = hn_ollama_manifest(manifest, root, f->name, f->err);
    if (st == HONE_OK && access(manifest, F_OK) != 0) st = not_here(f, "");
    if (st == HONE_OK) st = hn_store_read(&m, arena, root, f->name, f->err);
    if (st == HONE_OK) st = *m.trouble ? not_whole(f, m.trouble) : found(f, m.path);
    hn_arena_free(arena);
    return st;
}

/* What was pulled from an address lies in hone's own folder under the last part of it. */
static hone_status at_home(const finding *f)
{
    char home[HN_CACHE_PATH], base[HN_NAME_FILE], path[HN_CACHE_PATH + HN_NAME_FILE];
    bool good = hn_name_url_file(base, f->name->url);
    hone_status st = hn_models_home(home, f->err);
    if (st != HONE_OK) return st;
    snprintf(path, sizeof path, "%s/%s", home, good ? base : "");
    return good && access(path, F_OK) == 0 ? found(f, path) : not_here(f, "");
}

/* ---- bare names ----------------------------------------------------------------------------------------- */

/* Is stem what a bare name means? "tiny", or "tiny:q4_k_m" for tiny-Q4_K_M; with `loose` also "tiny" for that. */
static bool stem_is(const char *stem, const hn_name *n, bool loose)
{
    size_t k = strlen(n->repo);
    char tag[48];
    if (strncmp(stem, n->repo, k) != 0) return false;
    if (!*n->tag && !loose) return !stem[k];
    if (stem[k] != '-' && stem[k] != '.' && stem[k] != '_') return false;
    hn_gguf_tag(tag, stem);
    return strcasecmp(stem + k + 1, *n->tag ? n->tag : *tag ? tag : "/") == 0;
}

typedef struct in_folders {
    const finding *f;
    hn_arena *arena;
    bool loose, found;
} in_folders;

static hone_status in_folder(void *arg, const char *folder)
{
    in_folders *w = arg;
    hn_cache_dir d;
    hn_gguf_sets sets;
    char stem[300];
    if (w->found) return HONE_OK;
    hone_status st = hn_cache_walk(&d, w->arena, folder, NULL, 3, true, w->f->err);
    if (st == HONE_OK) st = hn_gguf_sets_of(&sets, d.file, d.n, w->f->err);
    if (st != HONE_OK) return st;
    for (size_t i = 0; i < sets.n && !w->found && st == HONE_OK; i++) {
        const hn_gguf_set *s = &sets.set[i];
        size_t first = 0;
        while (s->file[first] == SIZE_MAX) first++;
        hn_model_stem(stem, sizeof stem, d.file[s->file[first]].path);
        if (!stem_is(stem, w->f->name, w->loose)) continue;
        w->found = true;
        const char *path = hn_cache_join(w->arena, folder, d.file[s->file[first]].path);
        if (!path) st = HN_FAIL(w->f->err, HONE_E_NOMEM, "looking for a model");
        else st = s->n_missing ? not_whole(w->f, "parts of its set are missing") : found(w->f, path);
    }
    hn_gguf_sets_free(&sets);
    return st;
}

static hone_status by_bare_name(const finding *f)
{
    in_folders w = { .f = f, .arena = hn_arena_new() };
    hn_name other = *f->name;
    char near[300];
    hone_status st =
        w.arena ? hn_each_models_folder(in_folder, &w, f->err) : HN_FAIL(f->err, HONE_E_NOMEM, "looking for a model");
    w.loose = true; /* where none has just this name, the smallest of it and a type */
    if (st == HONE_OK && !w.found && !*f->name->tag) st = hn_each_models_folder(in_folder, &w, f->err);
    hn_arena_free(w.arena);
    if (st != HONE_OK || w.found) return st;
    if ((st = hn_name_expand(&other, f->err)) != HONE_OK) return st;
    bool listed = other.kind != HN_NAME_BARE;
    hone_error why;
    st = listed ? hn_cache_find(f->path, &other, &why) : HONE_E_IO;
    if (st == HONE_OK) return st;

    finding store = *f;
    hn_name ollama = { .kind = HN_NAME_OLLAMA, .host = "registry.ollama.ai" };
    snprintf(ollama.repo, sizeof ollama.repo, "library/%.180s", f->name->repo);
    snprintf(ollama.tag, sizeof ollama.tag, "%s", *f->name->tag ? f->name->tag : "latest");
    store.name = &ollama;
    store.err = NULL;
    if (in_store(&store) == HONE_OK) return HONE_OK;
    if (listed) return HN_FAIL(f->err, st, "%s stands for %s", HN_ESC(f->text, strlen(f->text)), why.message);
    nearest(near, sizeof near, f->text);
    const char *name = HN_ESC(f->text, strlen(f->text));
    return HN_FAIL(
        f->err, HONE_E_IO,
        "%s: no such file, and no model of this name on this machine%s%s%s; expected a file, a name that `hone "
        "list` shows, owner/repo[:TYPE] of the hub or ollama:%s",
        name, *near ? " (did you mean " : "", *near ? HN_ESC(near, strlen(near)) : "", *near ? "?)" : "", name);
}

hone_status hn_cache_find(char path[HN_CACHE_PATH], const hn_name *name, hone_error *err)
{
    finding f = { .name = name, .path = path, .err = err };
    *path = 0;
    hn_name_text(f.text, sizeof f.text, name);
    switch (name->kind) {
    case HN_NAME_HUB: return in_hub(&f, false);
    case HN_NAME_OLLAMA: return in_store(&f);
    case HN_NAME_URL: return at_home(&f);
    case HN_NAME_BARE: return by_bare_name(&f);
    case HN_NAME_NONE: break;
    }
    return HN_FAIL(err, HONE_E_ARG, "no name of a model");
}

hone_status hn_cache_find_folder(char path[HN_CACHE_PATH], const hn_name *name, hone_error *err)
{
    finding f = { .name = name, .path = path, .err = err };
    *path = 0;
    hn_name_text(f.text, sizeof f.text, name);
    if (name->kind != HN_NAME_HUB) return HN_FAIL(err, HONE_E_ARG, "no name of a repository");
    return in_hub(&f, true);
}
