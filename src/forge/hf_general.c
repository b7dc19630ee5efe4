/* hf_general: what a file says of itself: its kind, name, size, and how its authors sample from it
 * (generation_config.json). Owns general.*; refuses to know what is computed. */
#define _GNU_SOURCE
#include "forge/hf.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* As ggml-org/llama.cpp's converter has them; what is absent has no key, nor what do_sample = false turns off. */
static const struct {
    const char *config, *key;
    bool whole;
    bool draws; /* is of no use where the likeliest token is taken */
} sampling[] = {
    { "top_k", "general.sampling.top_k", true, true },
    { "top_p", "general.sampling.top_p", false, true },
    { "min_p", "general.sampling.min_p", false, true },
    { "xtc_probability", "general.sampling.xtc_probability", false, true },
    { "xtc_threshold", "general.sampling.xtc_threshold", false, true },
    { "temperature", "general.sampling.temp", false, true },
    { "penalty_last_n", "general.sampling.penalty_last_n", true, false },
    { "repetition_penalty", "general.sampling.penalty_repeat", false, false },
};

static hone_status put_sampling(hn_hf *f, const json_t *o, const char *path, hone_error *err)
{
    hone_status st;
    for (size_t i = 0; i < sizeof sampling / sizeof *sampling; i++) {
        const json_t *v = json_object_get(o, sampling[i].config);
        double x = json_number_value(v);
        if (!v || json_is_null(v) || (sampling[i].draws && json_is_false(json_object_get(o, "do_sample")))) continue;
        if (!json_is_number(v) || !isfinite(x) || fabs(x) > 1e9)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is %s, expected a number", path, sampling[i].config,
                           json_is_number(v) ? "beyond sense" : hn_json_kind(v));
        if (sampling[i].whole) TRY(hn_gguf_put_i32(f->w, sampling[i].key, (int32_t)x, err));
        else TRY(hn_gguf_put_f32(f->w, sampling[i].key, (float)x, err));
    }
    return HONE_OK;
}

hone_status hn_hf_beside(bool *there, const char *folder, const char *file, char path[4352], hone_error *err)
{
    struct stat sb;
    int n = snprintf(path, 4352, "%s/%s", folder, file);
    if (n < 0 || n >= 4352) return HN_FAIL(err, HONE_E_ARG, "%s: the path is too long", folder);
    int rc = stat(path, &sb);
    *there = rc == 0 && S_ISREG(sb.st_mode);
    if (rc != 0 && errno == ENOENT && lstat(path, &sb) == 0)
        return HN_FAIL(err, HONE_E_IO, "%s: a link to a file that is not there; fetch it, or remove the link",
                       HN_ESC(path, strlen(path)));
    if (rc == 0 || errno == ENOENT || errno == ENOTDIR) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
}

static hone_status read_generation(hn_hf *f, hone_error *err)
{
    const hn_json_rules rules = { .max_bytes = 16 << 20, .max_depth = 40, .flags = HN_JSON_PYTHON | HN_JSON_BIG };
    char path[4352];
    json_t *o = NULL;
    bool there;
    hone_status st = hn_hf_beside(&there, f->c->path, "generation_config.json", path, err);
    if (st == HONE_OK && there) st = hn_json_tree_file(&o, path, &rules, err);
    if (!o) return st;
    if (st == HONE_OK && !json_is_object(o))
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: is %s, expected an object", path, hn_json_kind(o));
    if (st == HONE_OK) st = put_sampling(f, o, path, err);
    json_decref(o);
    return st;
}

/* "8.0B": two digits at least. */
static hone_status put_size(hn_hf *f, hone_error *err)
{
    static const struct {
        double over, by;
        char unit;
    } units[] = { { 1e12, 1e-12, 'T' }, { 1e9, 1e-9, 'B' }, { 1e6, 1e-6, 'M' }, { 0, 1e-3, 'K' } };
    double n = 0;
    char label[64];
    int i = 0;
    for (size_t k = 0; k < f->n; k++) {
        const uint64_t *ne = f->t[k].ne;
        n += (double)ne[0] * (double)ne[1] * (double)ne[2] * (double)ne[3];
    }
    while (!(n > units[i].over)) {
        if (i == 3) return HONE_OK;
        i++;
    }
    double x = n * units[i].by;
    int used = f->m->hp.moe.n_expert;
    char times[16] = "";
    if (used) snprintf(times, sizeof times, "%dx", used);
    snprintf(label, sizeof label, "%s%.*f%c", times, x < 9.5 ? x < 0.5 ? 2 : 1 : 0, x, units[i].unit);
    return hn_gguf_put_str(f->w, "general.size_label", label, strlen(label), err);
}

/* A cache of the hub has the commit as the folder's name, and the model's above it: models--ORG--NAME/snapshots/COMMIT.
 */
static hone_status put_name(hn_hf *f, hone_error *err)
{
    static const char above[] = "/snapshots/";
    const char *p = f->c->path, *at = strstr(p, above), *name = at;
    while (name && name > p && name[-1] != '/') name--;
    if (!at || strncmp(name, "models--", 8)) return hn_put_name(f->w, p, err);
    for (const char *q = name; q + 2 < at; q++)
        if (q[0] == '-' && q[1] == '-') name = q + 2;
    char title[160];
    hn_escape(title, sizeof title, name, (size_t)(at - name));
    return hn_gguf_put_str(f->w, "general.name", title, strlen(title), err);
}

hone_status hn_hf_put_general(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(hn_gguf_put_str(f->w, "general.architecture", f->of->arch, strlen(f->of->arch), err));
    TRY(hn_gguf_put_str(f->w, "general.type", "model", 5, err));
    TRY(read_generation(f, err));
    return put_name(f, err);
}

hone_status hn_hf_put_file(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(put_size(f, err));
    TRY(hn_gguf_put_u32(f->w, "general.file_type", f->file_type, err));
    return hn_gguf_put_u32(f->w, "general.quantization_version", 2, err);
}
