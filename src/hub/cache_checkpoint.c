/* cache_checkpoint: a folder that may be a model as PyTorch has it, or an adapter. Owns what it needs to be whole, as
 * far as names and the index tell; declared in cache_dir.h. */
#include "hub/cache_dir.h"

#include "base/json.h"
#include "base/source.h"

#include <stdlib.h>

enum { MAX_INDEX = 256 << 20 };

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && strcmp(s + n - k, end) == 0;
}

static bool is_weights(const char *path)
{
    return !strchr(path, '/') &&
           (ends_with(path, ".safetensors") || ends_with(path, ".bin") || ends_with(path, ".pth"));
}

bool hn_checkpoint_config(const hn_cache_dir *d)
{
    bool config = false;
    for (size_t i = 0; i < d->n; i++)
        config |= strcmp(d->file[i].path, "config.json") == 0 || strcmp(d->file[i].path, "adapter_config.json") == 0;
    return config;
}

bool hn_checkpoint_weights(const hn_cache_dir *d)
{
    bool weights = false;
    for (size_t i = 0; i < d->n; i++) weights |= is_weights(d->file[i].path);
    return weights;
}

/* ---- shards -------------------------------------------------------------------------------------------- */

/* The first part of a sharded checkpoint that is not there, told by the names of those that are; 0: none;
 * -1: no memory. */
static int missing_shard(const hn_cache_dir *d, int *total)
{
    int part, all = 0;
    unsigned char *seen = NULL;
    for (size_t i = 0; i < d->n; i++) {
        const char *of = is_weights(d->file[i].path) ? strstr(d->file[i].path, "-of-") : NULL;
        if (!of || of - d->file[i].path < 6 || sscanf(of - 6, "-%5d-of-%5d.", &part, &all) != 2) continue;
        if (all < 1 || all > 99999 || part < 1 || part > all) continue;
        if (!seen) *total = all;
        if (!seen && !(seen = hn_arena_alloc(d->arena, (size_t)all + 1))) return -1;
        if (all == *total) seen[part] = 1;
    }
    for (part = 1; seen && part <= *total; part++)
        if (!seen[part]) return part;
    return 0;
}

static const char index_name[] = "model.safetensors.index.json";

static bool has(const hn_cache_dir *d, const char *path)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->file[i].path, path) == 0) return true;
    return false;
}

bool hn_checkpoint_begun(const hn_cache_dir *d)
{
    return hn_checkpoint_config(d) && (hn_checkpoint_weights(d) || has(d, index_name));
}

/* The first file that the map of the index names and the folder lacks; "": none. One after the other they are mostly
 * the same. */
static hone_status read_map(hn_jread *j, const hn_cache_dir *d, char lacks[256])
{
    char name[256] = "", was[256] = "";
    bool more;
    hone_status st;
    for (st = hn_jread_open(j, '{', &more); st == HONE_OK && more; st = hn_jread_next(j, '{', &more)) {
        hn_jread_text key;
        hn_jread_item it;
        if ((st = hn_jread_key(j, &key)) != HONE_OK || (st = hn_jread_scalar(j, &it)) != HONE_OK) return st;
        if (it.kind == HN_JSON_ARRAY || it.kind == HN_JSON_OBJECT) st = hn_jread_skip(j);
        if (st != HONE_OK) return st;
        if (it.kind != HN_JSON_STRING || it.str.n >= sizeof name || *lacks) continue;
        hn_jread_unescape(name, &it.str);
        name[it.str.n] = 0;
        if (strcmp(name, was) == 0) continue;
        snprintf(was, sizeof was, "%s", name);
        if (!has(d, name)) snprintf(lacks, 256, "%s", name);
    }
    return st;
}

/* An index that cannot be read says nothing here: who opens the checkpoint tells what is wrong with it. */
static hone_status read_index(const hn_cache_dir *d, char lacks[256])
{
    const char *path = has(d, index_name) ? hn_cache_join(d->arena, d->path, index_name) : "";
    char *text;
    size_t n;
    bool more;
    hn_jread j;
    *lacks = 0;
    if (!path) return HONE_E_NOMEM;
    if (!*path) return HONE_OK;
    hone_status st = hn_source_text(&text, &n, path, MAX_INDEX, NULL);
    if (st != HONE_OK) return st == HONE_E_NOMEM ? st : HONE_OK;
    st = hn_jread_begin(&j, text, n, NULL, index_name, NULL, NULL);
    if (st == HONE_OK) st = hn_jread_open(&j, '{', &more);
    while (st == HONE_OK && more) {
        hn_jread_text key;
        if ((st = hn_jread_key(&j, &key)) != HONE_OK) break;
        bool map = key.n == 10 && key.n_raw == 10 && memcmp(key.raw, "weight_map", 10) == 0;
        st = map && hn_jread_peek(&j) == '{' ? read_map(&j, d, lacks) : hn_jread_skip(&j);
        if (st == HONE_OK) st = hn_jread_next(&j, '{', &more);
    }
    free(text);
    return HONE_OK;
}

/* ---- all -------------------------------------------------------------------------------------------------- */

const char *hn_checkpoint_trouble(const hn_cache_dir *d)
{
    char text[400], lacks[256];
    int total = 0, part = missing_shard(d, &total);
    *text = 0;
    for (size_t i = 0; i < d->n && !*text; i++) {
        const char *path = d->file[i].path, *trouble = d->about[i].trouble;
        if (hn_ends_with_gguf(path) || !*trouble) continue;
        if (strcmp(trouble, "it is empty") != 0 || is_weights(path)) /* others are, rightly */
            snprintf(text, sizeof text, "%s: %s", HN_ESC(path, strlen(path)), trouble);
    }
    if (part < 0) return NULL;
    if (part) snprintf(text, sizeof text, "part %d of %d is missing", part, total);
    else if (!*text && read_index(d, lacks) != HONE_OK) return NULL;
    else if (!*text && *lacks)
        snprintf(text, sizeof text, "%s, which its index names, is missing", HN_ESC(lacks, strlen(lacks)));
    if (!*text && !hn_checkpoint_weights(d)) snprintf(text, sizeof text, "its weights are missing");
    return hn_arena_strndup(d->arena, text, strlen(text));
}
