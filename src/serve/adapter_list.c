/* Adapters of adapter_list.h, in the order of their ids. A place is empty, as are all behind it, or listed, or leaving:
 * still used, and found no more. */
#include "serve/adapter_list.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct place {
    char *name; /* NULL: empty */
    int32_t id; /* no other ever had it */
    char *path;
    hone_adapter *adapter; /* NULL: the model is not loaded */
    float scale;
    int32_t users;
    bool by_client; /* loaded while the server runs */
    bool leaving;
    void (*done)(void *arg); /* of who unloads it */
    void *arg;
} place;

enum { NAMES_GONE = 1024 };

struct hn_adapter_list {
    pthread_mutex_t lock;
    char *folder; /* as realpath gives it, "" where that is "/"; NULL: none */
    int32_t next_id;
    place place[HN_ADAPTERS_MOST];
    uint64_t gone[NAMES_GONE]; /* hashes of the last names that were here once */
    size_t n_gone;
};

/* ---- life ------------------------------------------------------------------------------------------------------- */

/* The file's name without folders and ending; malloc'ed. */
static char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : path;
    size_t n = strlen(name), k = strlen(".gguf");
    return strndup(name, n > k && strcmp(name + n - k, ".gguf") == 0 ? n - k : n);
}

static void empty(place *p)
{
    hone_adapter_close(p->adapter);
    free(p->name);
    free(p->path);
    *p = (place){ 0 };
}

static uint64_t hash_of(const char *name) { return hn_fnv1a(HN_FNV_INIT, name, strlen(name)); }

static bool is_gone(const hn_adapter_list *a, const char *name)
{
    uint64_t h = hash_of(name);
    for (size_t i = 0; i < a->n_gone && i < NAMES_GONE; i++)
        if (a->gone[i] == h) return true;
    return false;
}

/* Under the lock: nobody finds it any more. */
static void note_gone(hn_adapter_list *a, const char *name)
{
    if (!is_gone(a, name)) a->gone[a->n_gone++ % NAMES_GONE] = hash_of(name);
}

/* Under the lock: takes out of the list what nobody uses any more. The rest keep their order. */
static place take_out(hn_adapter_list *a, place *p)
{
    place gone = *p;
    size_t at = (size_t)(p - a->place);
    memmove(p, p + 1, (HN_ADAPTERS_MOST - at - 1) * sizeof *p);
    a->place[HN_ADAPTERS_MOST - 1] = (place){ 0 };
    return gone;
}

hone_status hn_adapter_list_new(hn_adapter_list **out, const hn_adapter_file *files, size_t n, const char *folder,
                                hone_error *err)
{
    *out = NULL;
    if (n > HN_ADAPTERS_MOST)
        return HN_FAIL(err, HONE_E_ARG, "%zu adapters; expected at most %d", n, (int)HN_ADAPTERS_MOST);
    hn_adapter_list *a = calloc(1, sizeof *a);
    if (!a) return HN_FAIL(err, HONE_E_NOMEM, "no memory for the list of adapters");
    pthread_mutex_init(&a->lock, NULL);

    hone_status st = HONE_OK;
    if (folder && !(a->folder = realpath(folder, NULL)))
        st = HN_FAIL(err, HONE_E_IO, "--lora-dir %s: %s; expected a folder", folder, strerror(errno));
    if (a->folder && strcmp(a->folder, "/") == 0) *a->folder = 0;
    for (size_t i = 0; st == HONE_OK && i < n; i++) {
        place *p = &a->place[i];
        p->id = a->next_id++;
        p->scale = files[i].scale;
        p->name = stem_of(files[i].path);
        p->path = strdup(files[i].path);
        if (!p->name || !p->path) st = HN_FAIL(err, HONE_E_NOMEM, "no memory for an adapter's name");
    }
    if (st != HONE_OK) {
        hn_adapter_list_free(a);
        return st;
    }
    *out = a;
    return HONE_OK;
}

void hn_adapter_list_free(hn_adapter_list *a)
{
    if (!a) return;
    for (size_t i = 0; i < HN_ADAPTERS_MOST; i++) empty(&a->place[i]);
    free(a->folder);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

const char *hn_adapter_list_folder(const hn_adapter_list *a) { return a->folder; }

/* ---- files below the folder ------------------------------------------------------------------------------------- */

/* What is read of an adapter: itself, and of a PEFT folder these. */
static const char *const parts[] = { "", "/adapter_config.json", "/adapter_model.safetensors", "/adapter_model.bin",
                                     "/chat_template.jinja" };
enum { PARTS = sizeof parts / sizeof *parts };

/* Which files they are; zeros: not there. */
typedef struct sight {
    struct {
        dev_t dev;
        ino_t ino;
    } part[PARTS];
} sight;

static bool is_below(const hn_adapter_list *a, const char *real)
{
    size_t n = strlen(a->folder);
    return strncmp(real, a->folder, n) == 0 && real[n] == '/' && real[n + 1];
}

/* Looks at all parts of path, a real one; false: a link leads one of them out of the folder, or it is neither file nor
 * folder (a pipe would be waited for). */
static bool look(const hn_adapter_list *a, const char *path, sight *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < PARTS; i++) {
        char name[4096 + 32];
        struct stat sb;
        snprintf(name, sizeof name, "%s%s", path, parts[i]);
        char *real = realpath(name, NULL);
        bool below = !real || (is_below(a, real) && (i || strcmp(real, path) == 0));
        if (real && below && stat(real, &sb) == 0 && (S_ISREG(sb.st_mode) || (!i && S_ISDIR(sb.st_mode)))) {
            out->part[i].dev = sb.st_dev;
            out->part[i].ino = sb.st_ino;
        }
        free(real);
        if (!below) return false;
    }
    return out->part[0].ino != 0;
}

/* Opens what lies below the folder, and nothing that was put in its place meanwhile. */
static hone_status open_below(const hn_adapter_list *a, hone_adapter **out, const hone_model *m, const char *path,
                              hone_error *err)
{
    sight before, after;
    *out = NULL;
    if (!look(a, path, &before)) return HN_FAIL(err, HONE_E_ARG, "%s: is nothing below the folder of --lora-dir", path);
    hone_status st = hone_adapter_open(out, m, path, err);
    if (st != HONE_OK || (look(a, path, &after) && memcmp(&before, &after, sizeof before) == 0)) return st;
    hone_adapter_close(*out);
    *out = NULL;
    return HN_FAIL(err, HONE_E_ARG, "%s: was replaced while it was read; try again", path);
}

/* May it be had again later? Then it is there, and memory or open files are wanting. */
static bool passes(hone_status st, const char *path)
{
    struct stat sb;
    return st == HONE_E_NOMEM || (st == HONE_E_IO && (stat(path, &sb) == 0 || (errno != ENOENT && errno != ENOTDIR)));
}

/* ---- with the model --------------------------------------------------------------------------------------------- */

hone_status hn_adapter_list_open(hn_adapter_list *a, const hone_model *m, hone_error *err)
{
    for (place *p = a->place; p < a->place + HN_ADAPTERS_MOST && p->name;) {
        hone_adapter *opened;
        hone_error why;
        hone_status st =
            p->by_client ? open_below(a, &opened, m, p->path, &why) : hone_adapter_open(&opened, m, p->path, &why);
        if (st != HONE_OK && (!p->by_client || passes(st, p->path))) {
            if (err) *err = why;
            return st;
        }
        if (st != HONE_OK) hn_log("serve: adapter %s is dropped: %s", p->name, why.message);

        place gone = { 0 };
        pthread_mutex_lock(&a->lock);
        if (st == HONE_OK) {
            p++->adapter = opened;
        } else {
            note_gone(a, p->name);
            gone = take_out(a, p);
        }
        pthread_mutex_unlock(&a->lock);
        empty(&gone);
    }
    return HONE_OK;
}

void hn_adapter_list_close(hn_adapter_list *a)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < HN_ADAPTERS_MOST; i++) {
        hone_adapter_close(a->place[i].adapter);
        a->place[i].adapter = NULL;
    }
    pthread_mutex_unlock(&a->lock);
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

static bool is_listed(const place *p) { return p->name && !p->leaving; }

/* Under the lock. NULL: not here. */
static place *find(hn_adapter_list *a, const char *name, int64_t id)
{
    for (size_t i = 0; i < HN_ADAPTERS_MOST; i++) {
        place *p = &a->place[i];
        if (is_listed(p) && (name ? strcmp(p->name, name) == 0 : p->id == id)) return p;
    }
    return NULL;
}

bool hn_adapter_list_has(hn_adapter_list *a, const char *name)
{
    pthread_mutex_lock(&a->lock);
    bool here = find(a, name, -1) != NULL;
    pthread_mutex_unlock(&a->lock);
    return here;
}

bool hn_adapter_list_had(hn_adapter_list *a, const char *name)
{
    pthread_mutex_lock(&a->lock);
    bool gone = !find(a, name, -1) && is_gone(a, name);
    pthread_mutex_unlock(&a->lock);
    return gone;
}

void hn_adapter_list_each(hn_adapter_list *a, void (*fn)(void *arg, const hn_adapter_view *v), void *arg)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < HN_ADAPTERS_MOST; i++) {
        const place *p = &a->place[i];
        if (is_listed(p))
            fn(arg, &(hn_adapter_view){ .id = p->id, .name = p->name, .path = p->path, .scale = p->scale });
    }
    pthread_mutex_unlock(&a->lock);
}

bool hn_adapter_list_set_scales(hn_adapter_list *a, const hn_adapter_scale *v, size_t n, size_t *unknown)
{
    size_t known = 0;
    pthread_mutex_lock(&a->lock);
    while (known < n && find(a, NULL, v[known].id)) known++;
    for (size_t i = 0; known == n && i < HN_ADAPTERS_MOST; i++) a->place[i].scale = 0;
    for (size_t i = 0; known == n && i < n; i++) find(a, NULL, v[i].id)->scale = v[i].scale;
    pthread_mutex_unlock(&a->lock);
    *unknown = known;
    return known == n;
}

/* ---- use -------------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void use_place(place *p, hn_adapter_use *use)
{
    p->users++;
    *use = (hn_adapter_use){ .id = p->id, .adapter = p->adapter, .scale = p->scale };
}

bool hn_adapter_list_take(hn_adapter_list *a, const char *name, int64_t id, hn_adapter_use *use)
{
    pthread_mutex_lock(&a->lock);
    place *p = find(a, name, id);
    if (p) use_place(p, use);
    pthread_mutex_unlock(&a->lock);
    return p != NULL;
}

size_t hn_adapter_list_take_on(hn_adapter_list *a, hn_adapter_use *use)
{
    size_t n = 0;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < HN_ADAPTERS_MOST; i++)
        if (is_listed(&a->place[i]) && a->place[i].scale != 0) use_place(&a->place[i], &use[n++]);
    pthread_mutex_unlock(&a->lock);
    return n;
}

/* Not under the lock, which the one that is told may want. */
static void drop(place *gone)
{
    void (*done)(void *arg) = gone->done;
    void *arg = gone->arg;
    empty(gone);
    if (done) done(arg);
}

void hn_adapter_list_give(hn_adapter_list *a, int32_t id)
{
    place gone = { 0 };
    pthread_mutex_lock(&a->lock);
    for (place *p = a->place; p < a->place + HN_ADAPTERS_MOST; p++) {
        if (!p->name || p->id != id) continue;
        if (--p->users == 0 && p->leaving) gone = take_out(a, p);
        break;
    }
    pthread_mutex_unlock(&a->lock);
    if (gone.name) drop(&gone);
}

/* ---- at run time ------------------------------------------------------------------------------------------------ */

static bool check_name(hn_adapter_list *a, const char *name, hn_refusal *r)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(name);
    if (!n || n > HN_ADAPTER_NAME || strspn(name, letters) != n)
        return hn_refuse(r, 400, "out_of_range", "lora_name",
                         "lora_name is '%s'; expected 1 to %d of A-Z a-z 0-9 . _ -", HN_ESC(name, n),
                         (int)HN_ADAPTER_NAME);
    return !hn_adapter_list_has(a, name) ||
           hn_refuse(r, 409, "adapter_exists", "lora_name",
                     "adapter '%s' is loaded already; expected another name, or /v1/unload_lora_adapter first", name);
}

/* The real path of what lies below the folder; malloc'ed. What is elsewhere is told like what is not there. */
static char *resolve(const hn_adapter_list *a, const char *path, hn_refusal *r)
{
    char joined[4096];
    sight seen;
    int k = *path == '/' ? snprintf(joined, sizeof joined, "%s", path)
                         : snprintf(joined, sizeof joined, "%s/%s", a->folder, path);
    char *real = k >= 0 && (size_t)k < sizeof joined ? realpath(joined, NULL) : NULL;
    if (real && is_below(a, real) && look(a, real, &seen)) return real;
    free(real);
    hn_refuse(r, 404, "adapter_not_found", "lora_path", "lora_path '%s' is nothing below the folder of --lora-dir",
              HN_ESC(path, strlen(path)));
    return NULL;
}

static bool refuse_open(const hone_error *err, const char *path, const char *real, hn_refusal *r)
{
    int status = passes(err->code, real) ? 500 : err->code == HONE_E_IO ? 404 : 400;
    char words[sizeof err->message];
    hn_log("serve: %s", err->message);
    snprintf(words, sizeof words, "%s", err->message);
    hn_hide_folder_of(words, real); /* whatever letters it has */
    hn_hide_folders(words);
    return hn_refuse(r, status, status == 400 ? "adapter_refused" : NULL, "lora_path",
                     "lora_path '%s' cannot be loaded: %s", HN_ESC(path, strlen(path)), words);
}

/* Under the lock. Behind the last that is there, as ids go; NULL: all are taken. */
static place *free_place(hn_adapter_list *a)
{
    for (size_t i = 0; i < HN_ADAPTERS_MOST; i++)
        if (!a->place[i].name) return &a->place[i];
    return NULL;
}

bool hn_adapter_list_load(hn_adapter_list *a, const hone_model *m, const char *name, const char *path, int32_t *id,
                          hn_refusal *r)
{
    hone_error err;
    place made = { .by_client = true };
    *id = -1;
    if (!check_name(a, name, r) || !(made.path = resolve(a, path, r))) return false;
    made.name = strdup(name);
    bool ok = made.name || hn_refuse(r, 500, "out_of_memory", NULL, "no memory for an adapter's name");
    if (ok && open_below(a, &made.adapter, m, made.path, &err) != HONE_OK) ok = refuse_open(&err, path, made.path, r);

    pthread_mutex_lock(&a->lock);
    place *p = ok && a->next_id < INT32_MAX ? free_place(a) : NULL;
    if (p) {
        *id = made.id = a->next_id++;
        *p = made;
    }
    pthread_mutex_unlock(&a->lock);
    if (p) return true;
    empty(&made);
    return ok ? hn_refuse(r, 409, "too_many_adapters", NULL, "%d adapters are loaded; unload one before",
                          (int)HN_ADAPTERS_MOST)
              : false;
}

bool hn_adapter_list_unload(hn_adapter_list *a, const char *name, bool force, void (*done)(void *arg), void *arg,
                            hn_refusal *r)
{
    place gone = { 0 };
    pthread_mutex_lock(&a->lock);
    place *p = find(a, name, -1);
    int32_t users = p ? p->users : 0;
    if (p && (force || !users)) {
        p->leaving = true;
        note_gone(a, p->name);
        p->done = done;
        p->arg = arg;
        if (!users) gone = take_out(a, p);
    }
    pthread_mutex_unlock(&a->lock);

    if (!p)
        return hn_refuse(r, 404, "adapter_not_found", "lora_name",
                         "adapter '%s' is not here; GET /lora-adapters lists them", HN_ESC(name, strlen(name)));
    if (gone.name) drop(&gone);
    else if (!force)
        return hn_refuse(r, 409, "adapter_in_use", "lora_name",
                         "adapter '%s' is used by %d requests; expected none, or no \"force\": false", name, users);
    return true;
}
