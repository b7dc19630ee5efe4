/* Models of published vectors (tests/golden/families) for fuzz targets: the bytes of a GGUF file with the keys and
 * tensors of one, changed as an object says. So a few words are a seed, and what is drawn of them is still a model of
 * its family:
 *     {"kv": {".expert_count": ["UINT32", 4], ".vocab_size": null},
 *      "tensors": {"blk.*.attn_q.weight": [[32, 32], 1], "output.weight": null}}
 * A key that begins with a point has the architecture before it; "*" is each layer in turn; null takes away. Behind
 * the sizes of a tensor may stand its type's number (F32). Written byte by byte, by nothing of hone; knows nothing of
 * what a family means. */
#ifndef HN_FUZZ_VECTOR_FILE_H
#define HN_FUZZ_VECTOR_FILE_H

#include "../unit/gguf_bytes.h"
#include "fuzz_file.h"
#include "quant/quant.h"

#include <jansson.h>
#include <math.h>

enum { VF_MODELS = 80, VF_MAX_DATA = 1 << 22 };

/* The vector of that name, kept for the next time. NULL: there is none. */
static const json_t *vf_vector(const char *name, size_t len)
{
    static struct {
        char name[32];
        json_t *j;
    } known[VF_MODELS];
    char path[96];
    size_t i = 0;
    if (!len || len >= sizeof known[0].name || memchr(name, '/', len) || memchr(name, 0, len)) return NULL;
    while (i < VF_MODELS && known[i].j && (strlen(known[i].name) != len || memcmp(known[i].name, name, len))) i++;
    if (i == VF_MODELS) return NULL;
    if (!known[i].j) {
        snprintf(path, sizeof path, "tests/golden/families/%.*s.json", (int)len, name);
        if (!(known[i].j = json_load_file(path, 0, NULL))) return NULL;
        memcpy(known[i].name, name, len);
    }
    return known[i].j;
}

/* ---- keys -------------------------------------------------------------------------------------- */

static uint32_t vf_type(const char *type)
{
    static const char *const names[] = { "UINT8", "INT8",   "UINT16", "INT16",  "UINT32", "INT32",  "FLOAT32",
                                         "BOOL",  "STRING", "ARRAY",  "UINT64", "INT64",  "FLOAT64" };
    for (uint32_t i = 0; type && i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], type)) return i;
    return 6;
}

static void vf_number(bb *b, uint32_t type, const json_t *v)
{
    static const int width[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    const char *word = json_string_value(v);
    double d = word ? strtod(word, NULL) : json_number_value(v); /* "-inf" */
    float f = d > 3e38 || d < -3e38 ? (float)(d > 0 ? HUGE_VALF : -HUGE_VALF) : (float)d;
    if (type == 8) bb_strn(b, word ? word : "", word ? json_string_length(v) : 0);
    else if (type == 6) bb_raw(b, &f, sizeof f);
    else if (type == 12) bb_raw(b, &d, sizeof d);
    else bb_le(b, json_is_true(v) ? 1 : (uint64_t)json_integer_value(v), width[type]);
}

static void vf_key(bb *b, const char *arch, const char *key, const char *type, const json_t *v)
{
    char name[160];
    snprintf(name, sizeof name, "%s%s", *key == '.' ? arch : "", key);
    bb_str(b, name);
    bool list = type && !strncmp(type, "ARRAY:", 6);
    uint32_t t = vf_type(list ? type + 6 : type);
    if (t == 9) t = 4;
    if (list) bb_u32(b, 9), bb_u32(b, t), bb_u64(b, json_array_size(v));
    else bb_u32(b, t);
    if (!list) vf_number(b, t, v);
    for (size_t i = 0; list && i < json_array_size(v); i++) vf_number(b, t, json_array_get(v, i));
}

/* ---- names of changes ------------------------------------------------------------------------------ */

/* Is `name` the one that a change is about? */
static bool vf_is(const char *change, const char *arch, const char *name)
{
    size_t n = strlen(arch);
    const char *star;
    if (*change == '.') return !strncmp(name, arch, n) && !strcmp(name + n, change);
    if (!(star = strchr(change, '*'))) return !strcmp(name, change);
    size_t head = (size_t)(star - change);
    if (strncmp(name, change, head)) return false;
    for (name += head; *name >= '0' && *name <= '9'; name++) continue;
    return !strcmp(name, star + 1);
}

/* What the changes say of it; NULL: nothing. */
static const json_t *vf_change(const json_t *changes, const char *arch, const char *name)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)changes, key, v) if (vf_is(key, arch, name)) return v;
    return NULL;
}

/* Has the vector's list such a name? */
static bool vf_has(const json_t *list, const char *arch, const char *change)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)(uintptr_t)list, i,
                       v) if (vf_is(change, arch, json_string_value(json_array_get(v, 0)))) return true;
    return false;
}

/* ---- tensors ----------------------------------------------------------------------------------------- */

/* now: [sizes, type] of a change; NULL: as the vector has it. */
static uint64_t vf_tensor(bb *b, bb *data, const char *name, const json_t *was, const json_t *now)
{
    const json_t *dims = json_array_get(now ? now : was, now ? 0 : 1), *list = now ? NULL : json_array_get(was, 2);
    uint64_t ne[4] = { 1, 1, 1, 1 }, n = 1, n_bytes, seed = 0x9E3779B97F4A7C15u, off = data->n;
    uint32_t n_dim = (uint32_t)json_array_size(dims), type = 0;
    const json_t *own = json_array_get(now, 1);
    if (json_is_integer(own) && json_integer_value(own) >= 0 && json_integer_value(own) < 40)
        type = (uint32_t)json_integer_value(own);
    if (n_dim > 4) n_dim = 4;
    for (uint32_t i = 0; i < n_dim; i++) {
        ne[i] = (uint64_t)json_integer_value(json_array_get(dims, i));
        n *= ne[i] && ne[i] < 1 << 12 && n < 1 << 20 ? ne[i] : 1;
    }
    bb_tensor(b, name, n_dim, ne, type, off);
    if (!hn_type_get(type) || !hn_tensor_nbytes(hn_type_get(type), ne, (int)n_dim, &n_bytes)) n_bytes = 32;
    if (n_bytes > VF_MAX_DATA - data->n) n_bytes = VF_MAX_DATA - data->n; /* and so the file is cut */
    bb_raw(data, NULL, n_bytes);
    double o = now ? 0 : json_number_value(json_array_get(was, 3)), s = now ? 0.25 : json_number_value(list);
    for (uint64_t k = 0; !type && 4 * k + 4 <= n_bytes; k++) { /* any numbers of that size */
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double u = (double)(int32_t)(seed >> 32) * 0x1p-31;
        float f = json_is_array(list) ? (float)json_number_value(json_array_get(list, k)) : (float)(o + s * u);
        memcpy(data->p + off + 4 * k, &f, 4);
    }
    bb_pad(data, 32);
    return 1;
}

static uint64_t vf_tensors(bb *b, bb *data, const json_t *v, const json_t *changes, const char *arch, int64_t n_layer)
{
    const json_t *list = json_object_get(v, "tensors"), *now;
    const char *change;
    json_t *t;
    size_t i;
    uint64_t n = 0;
    json_array_foreach((json_t *)(uintptr_t)list, i, t)
    {
        const char *name = json_string_value(json_array_get(t, 0));
        now = vf_change(changes, arch, name);
        if (!json_is_null(now)) n += vf_tensor(b, data, name, t, now);
    }
    json_object_foreach((json_t *)(uintptr_t)changes, change, t)
    {
        const char *star = strchr(change, '*');
        char name[120];
        if (json_is_null(t) || vf_has(list, arch, change)) continue;
        for (int64_t il = 0; il < (star ? n_layer : 1); il++) {
            if (star) snprintf(name, sizeof name, "%.*s%d%s", (int)(star - change), change, (int)il, star + 1);
            else snprintf(name, sizeof name, "%s", change);
            n += vf_tensor(b, data, name, NULL, t);
        }
    }
    return n;
}

/* ---- the file ---------------------------------------------------------------------------------------- */

/* The file's bytes; false: there is no vector of that name. changes: an object, or NULL. */
static __attribute__((unused)) bool vf_make(bb *out, const char *name, size_t len, const json_t *changes)
{
    const json_t *v = vf_vector(name, len), *list = json_object_get(v, "kv"), *kv_now = json_object_get(changes, "kv");
    const char *arch = json_string_value(json_object_get(v, "arch")), *change;
    bb body = { 0 }, tensors = { 0 }, data = { 0 };
    uint64_t n_kv = 0;
    int64_t n_layer = 2;
    json_t *t;
    size_t i;
    if (!v) return false;
    json_array_foreach((json_t *)(uintptr_t)list, i, t)
    {
        const char *key = json_string_value(json_array_get(t, 0));
        const json_t *now = vf_change(kv_now, arch, key);
        if (vf_is(".block_count", arch, key)) n_layer = json_integer_value(json_array_get(t, 2));
        if (json_is_null(now)) continue;
        n_kv++;
        if (now) vf_key(&body, arch, key, json_string_value(json_array_get(now, 0)), json_array_get(now, 1));
        else vf_key(&body, arch, key, json_string_value(json_array_get(t, 1)), json_array_get(t, 2));
    }
    json_object_foreach((json_t *)(uintptr_t)kv_now, change, t)
    {
        if (json_is_null(t) || vf_has(list, arch, change)) continue;
        n_kv++;
        vf_key(&body, arch, change, json_string_value(json_array_get(t, 0)), json_array_get(t, 1));
    }
    uint64_t n = vf_tensors(&tensors, &data, v, json_object_get(changes, "tensors"), arch, n_layer);
    *out = bb_head(3, n, n_kv);
    bb_raw(out, body.p, body.n);
    bb_raw(out, tensors.p, tensors.n);
    bb_pad(out, 32);
    bb_raw(out, data.p, data.n);
    bb_free(&body), bb_free(&tensors), bb_free(&data);
    return true;
}

static const char vf_word[] = "vector ";
static __attribute__((unused)) bool vf_is_asked(const ff_in *in)
{
    return in->n >= sizeof vf_word && !memcmp(in->p, vf_word, sizeof vf_word - 1);
}

/* The file that an input asks for: "vector NAME", a line's end, changes. What follows a byte FF is left in `in`.
 * False: it asks for none, or for one that cannot be made. */
static __attribute__((unused)) bool vf_asked(bb *out, ff_in *in)
{
    if (!vf_is_asked(in)) return false;
    ff_take(in, sizeof vf_word - 1);
    ff_in text = ff_until(in, 0xFF), name = ff_until(&text, '\n');
    json_t *changes = text.n ? json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL, NULL) : NULL;
    bool made = (!text.n || changes) && vf_make(out, (const char *)name.p, name.n, changes);
    json_decref(changes);
    return made;
}

#endif
