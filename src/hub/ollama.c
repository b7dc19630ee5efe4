/* ollama: models of ollama's registry, by its manifests, into the store that ollama itself uses. */
#include "hub/pull.h"
#include "hub/url.h"

#include "base/file.h"
#include "base/json_tree.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { MAX_MANIFEST = 1 << 20 };
#define LAYER "application/vnd.ollama.image."

static const char accepted[] = "application/vnd.docker.distribution.manifest.v2+json";

static hone_status refusal(const hn_name *n, const hn_fetch_head *a, hone_error *err)
{
    if (a->status == 404)
        return HN_FAIL(err, HONE_E_NETWORK, "%s: no such model or tag (status 404); expected one that %s shows",
                       n->repo, strcmp(n->host, "registry.ollama.ai") == 0 ? "ollama.com/library" : n->host);
    if (a->status == 401 || a->status == 403)
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: the registry wants to know who asks (status %d), by a key of ollama's that "
                       "hone does not have; 'ollama pull' gets it, and hone runs it from there",
                       n->repo, a->status);
    return HN_FAIL(err, HONE_E_NETWORK, "%s: status %d of %s; expected 200: try again later", n->repo, a->status,
                   n->host);
}

/* One layer, checked. */
static hone_status read_layer(hn_ollama_layer *l, const hn_name *n, const json_t *o, hone_error *err)
{
    char path[HN_CACHE_PATH];
    const json_t *size = json_object_get(o, "size");
    l->digest = hn_json_text_of(o, "digest");
    l->type = hn_json_text_of(o, "mediaType");
    l->size = (uint64_t)json_integer_value(size);
    if (hn_ollama_blob(path, "x", l->digest, NULL) != HONE_OK)
        return HN_FAIL(err, HONE_E_NETWORK,
                       "%s: its manifest has '%s' as a digest; expected sha256: and 64 hexadecimal digits", n->repo,
                       HN_ESC(l->digest, strlen(l->digest)));
    if (!json_is_integer(size) || json_integer_value(size) < 0 || l->size > (uint64_t)1 << 50)
        return HN_FAIL(err, HONE_E_NETWORK, "%s: its manifest says no size of %.19s… that could be", n->repo,
                       l->digest);
    if (strcmp(l->type, LAYER "tensor") == 0)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: a model in ollama's own tensors, not GGUF; expected another tag of it, "
                       "or the same model from the hub",
                       n->repo);
    return HONE_OK;
}

hone_status hn_ollama_layers(hn_ollama_layer *l, size_t *n_layer, size_t *model, const hn_name *n, const json_t *o,
                             hone_error *err)
{
    const json_t *list = json_object_get(o, "layers"), *config = json_object_get(o, "config");
    size_t many = json_array_size(list);
    *n_layer = 0;
    *model = SIZE_MAX;
    if (!json_is_array(list) || many >= HN_LAYERS)
        return HN_FAIL(err, HONE_E_NETWORK, "%s: its manifest has %zu layers; expected 1 to %d", n->repo, many,
                       HN_LAYERS);
    for (size_t i = 0; i < many; i++) {
        hone_status st = read_layer(&l[i], n, json_array_get(list, i), err);
        if (st != HONE_OK) return st;
        if (*model == SIZE_MAX && strcmp(l[i].type, LAYER "model") == 0) *model = i;
    }
    *n_layer = many;
    if (*model == SIZE_MAX)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: its manifest has no layer " LAYER "model; expected a GGUF",
                       n->repo);
    if (!json_is_object(config)) return HONE_OK;
    return read_layer(&l[(*n_layer)++], n, config, err);
}

static bool here(const char *path, uint64_t size)
{
    struct stat sb;
    return stat(path, &sb) == 0 && S_ISREG(sb.st_mode) && (uint64_t)sb.st_size == size;
}

static hone_status pull_layer(hn_puller *p, const char *base, const char *root, const hn_ollama_layer *l,
                              hone_error *err)
{
    char whole[HN_CACHE_PATH], part[HN_CACHE_PATH + 16], journal[HN_CACHE_PATH + 24], url[1024];
    hn_fetch_head head = { .status = 0 };
    hone_status st = hn_ollama_blob(whole, root, l->digest, err);
    if (st != HONE_OK) return st;
    hn_pulled_file *f = hn_pull_add(p, l->digest, whole, l->size, err);
    if (!f) return HONE_E_NOMEM;
    snprintf(f->sha256, sizeof f->sha256, "%s", l->digest + 7);
    f->cached = here(whole, l->size);
    if (f->cached) return HONE_OK;
    snprintf(part, sizeof part, "%s.hone-part", whole);
    snprintf(journal, sizeof journal, "%s.json", part);
    snprintf(url, sizeof url, "%s/blobs/%s", base, l->digest);
    hn_download d = {
        .url = url, .size = l->size, .oid = l->digest + 7, .names = { .whole = whole, .part = part, .journal = journal }
    };
    st = hn_pull_one(p, f, &d, &head, err);
    return st == HONE_E_NETWORK && head.status ? refusal(&p->out->name, &head, err) : st;
}

static hone_status pull_layers(hn_puller *p, const char *base, const char *root, const hn_ollama_layer *l, size_t n,
                               size_t model, hone_error *err)
{
    uint64_t missing = 0;
    char path[HN_CACHE_PATH];
    for (size_t i = 0; i < n; i++) {
        hone_status st = hn_ollama_blob(path, root, l[i].digest, err);
        if (st != HONE_OK) return st;
        char part[HN_CACHE_PATH + 16];
        snprintf(part, sizeof part, "%s.hone-part", path);
        if (here(path, l[i].size)) continue;
        missing += hn_part_missing(part, l[i].size);
        p->total += l[i].size;
    }
    snprintf(path, sizeof path, "%.*s/blobs", HN_CACHE_PATH - 8, root);
    hone_status st = hn_pull_room(path, missing, err);
    for (size_t i = 0; st == HONE_OK && i < n; i++) st = pull_layer(p, base, root, &l[i], err);
    return st == HONE_OK ? hn_ollama_blob(p->out->path, root, l[model].digest, err) : st;
}

/* The manifest last: it names what is there. */
static hone_status publish(const hn_name *n, const char *root, const hn_fetch_text *t, hone_error *err)
{
    char path[HN_CACHE_PATH];
    hone_status st = hn_ollama_manifest(path, root, n, err);
    if (st == HONE_OK) st = hn_cache_no_link(path, err);
    return st == HONE_OK ? hn_file_replace(path, t->p, t->n, err) : st;
}

static hone_status pull_manifest(hn_puller *p, const char *root, hone_error *err)
{
    static const hn_json_rules rules = { .max_bytes = MAX_MANIFEST, .max_depth = 16, .fault = HONE_E_NETWORK };
    const hn_name *n = &p->out->name;
    char base[600], url[900];
    hn_url u;
    hn_fetch_text t = { .p = NULL };
    json_t *o = NULL;
    size_t n_layer, model;
    hn_ollama_layer *l = calloc(HN_LAYERS + 1, sizeof *l);
    if (!l) return HN_FAIL(err, HONE_E_NOMEM, "a manifest");
    snprintf(base, sizeof base, "http://%s/v2/%s", n->host, n->repo);
    bool plain = hn_url_parse(&u, base, NULL) && u.loopback; /* a registry on this machine */
    snprintf(base, sizeof base, "http%s://%s/v2/%s", plain ? "" : "s", n->host, n->repo);
    snprintf(url, sizeof url, "%s/manifests/%s", base, n->tag);
    hone_status st = hn_fetch_get(p->http, &t, url, accepted, MAX_MANIFEST, err);
    if (st == HONE_OK && t.head.status != 200) st = refusal(n, &t.head, err);
    if (st == HONE_OK) st = hn_json_tree(&o, t.p, t.n, &rules, "the registry's manifest", err);
    if (st == HONE_OK) st = hn_ollama_layers(l, &n_layer, &model, n, o, err);
    if (st == HONE_OK) st = pull_layers(p, base, root, l, n_layer, model, err);
    if (st == HONE_OK) st = publish(n, root, &t, err);
    json_decref(o);
    hn_fetch_text_free(&t);
    free(l);
    return st;
}

hone_status hn_pull_ollama(hn_puller *p, hone_error *err)
{
    const hn_pull_want *w = p->want;
    char root[HN_CACHE_PATH];
    const hn_fetch_rules rules = { .insecure = w->insecure,
                                   .silence_s = w->silence_s,
                                   .tries = w->tries,
                                   .wait_s = w->wait_s,
                                   .stop = w->stop,
                                   .say = w->say,
                                   .arg = w->arg };
    hone_error why;
    char at[HN_CACHE_PATH];
    bool here = hn_cache_find(at, &p->out->name, &why) == HONE_OK, silent = false;
    hone_status st = hn_ollama_root(root, err);
    if (st == HONE_OK) st = hn_fetch_new(&p->http, &rules, err);
    if (st == HONE_OK) {
        hn_fetch_hasty(p->http, here);
        st = pull_manifest(p, root, err);
        silent = st == HONE_E_NETWORK && !hn_fetch_answered(p->http);
    }
    hn_fetch_free(p->http);
    p->http = NULL;
    snprintf(p->out->why, sizeof p->out->why, "what the manifest names");
    if (!silent || !here) return st;
    snprintf(at, sizeof at, "%s", err->message);
    return hn_pull_local(p, at, err);
}
