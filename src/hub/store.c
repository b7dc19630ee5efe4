/* store: ollama's manifests and blobs, as they lie; see store.h. Owns what a manifest says; what is asked of a registry
 * is another's. */
#include "hub/store.h"

#include "base/json_tree.h"
#include "hub/cache_dir.h"

#include <errno.h>

#include <sys/stat.h>
#include <unistd.h>

enum { MANIFEST_BYTES = 4 << 20, MOST_LAYERS = 4096 };

#define MODEL_LAYER "application/vnd.ollama.image.model"

static hone_status no_memory(hone_error *err, const hn_local *m)
{
    return HN_FAIL(err, HONE_E_NOMEM, "%s: its manifest", m->name);
}

static hone_status trouble(hn_local *m, hn_arena *arena, const char *text, hone_error *err)
{
    m->trouble = hn_arena_strndup(arena, text, strlen(text));
    return m->trouble ? HONE_OK : no_memory(err, m);
}

/* One layer, or the config: its blob joins the files of m. */
static hone_status add_layer(hn_local *m, const char **file, hn_arena *arena, const char *root, const json_t *layer,
                             hone_error *err)
{
    char path[HN_CACHE_PATH], text[240];
    hone_error why;
    struct stat sb;
    const char *digest = hn_json_text_of(layer, "digest"), *type = hn_json_text_of(layer, "mediaType");
    json_int_t said = json_integer_value(json_object_get(layer, "size"));
    if (hn_ollama_blob(path, root, digest, &why) != HONE_OK) return trouble(m, arena, why.message, err);
    const char *kept = hn_arena_strndup(arena, path, strlen(path));
    if (!kept) return no_memory(err, m);
    file[m->n_file++] = kept;
    bool model = strcmp(type, MODEL_LAYER) == 0;
    if (model && !*m->path) m->path = kept;
    if (stat(path, &sb) != 0) {
        if (!hn_is_absent(errno) && !hn_is_closed(errno)) return hn_cannot_look(path, errno, err);
        snprintf(text, sizeof text, "its blob %.19s… is gone", digest);
        return *m->trouble ? HONE_OK : trouble(m, arena, text, err);
    }
    m->bytes += (uint64_t)sb.st_size;
    if (said == (json_int_t)sb.st_size || *m->trouble) return HONE_OK;
    snprintf(text, sizeof text, "its blob %.19s… has %lld bytes, the manifest says %lld", digest, (long long)sb.st_size,
             (long long)said);
    return trouble(m, arena, text, err);
}

hone_status hn_store_read(hn_local *m, hn_arena *arena, const char *root, const hn_name *n, hone_error *err)
{
    const hn_json_rules rules = { .max_bytes = MANIFEST_BYTES, .max_depth = 16 };
    char path[HN_CACHE_PATH];
    hone_error why;
    json_t *o = NULL;
    struct stat sb;
    m->path = m->trouble = "";
    hone_status st = hn_ollama_manifest(path, root, n, err);
    if (st != HONE_OK) return st;
    if (stat(path, &sb) == 0) m->when = (int64_t)sb.st_mtime;
    else if (!hn_is_absent(errno) && !hn_is_closed(errno)) return hn_cannot_look(path, errno, err);
    st = hn_json_tree_file(&o, path, &rules, &why);
    if (st == HONE_E_NOMEM) return no_memory(err, m);
    if (st == HONE_E_IO && access(path, R_OK) == 0) return HN_FAIL(err, st, "%s", why.message);
    if (st != HONE_OK) return trouble(m, arena, why.message, err);
    const json_t *layers = json_object_get(o, "layers"), *config = json_object_get(o, "config");
    size_t n_layer = json_array_size(layers);
    const char **file = hn_arena_alloc(arena, (n_layer <= MOST_LAYERS ? n_layer + 2 : 1) * sizeof *file);
    if (!file) st = no_memory(err, m);
    else if (!json_is_array(layers) || n_layer > MOST_LAYERS) st = trouble(m, arena, "its manifest has no layers", err);
    else st = HONE_OK;
    m->file = file;
    for (size_t i = 0; st == HONE_OK && file && n_layer <= MOST_LAYERS && i < n_layer; i++)
        st = add_layer(m, file, arena, root, json_array_get(layers, i), err);
    if (st == HONE_OK && json_is_object(config)) st = add_layer(m, file, arena, root, config, err);
    if (st == HONE_OK && !*m->path && !*m->trouble) st = trouble(m, arena, "it has no GGUF among its layers", err);
    json_decref(o);
    return st;
}
