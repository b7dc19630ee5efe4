/* Peaks as JSON, and where they are kept: one file per machine and level. What is read
 * back is checked as if a stranger had written it. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "base/known.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"
#include "base/file.h"

#include <math.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const kind_keys[HN_PEAK_KINDS] = { "read", "int8", "f32", "bf16", "dispatch", "barrier" };
static const char *const kind_units[HN_PEAK_KINDS] = { "GB/s", "GOPS", "GFLOP/s", "GFLOP/s", "ns", "ns" };

/* ---- out --------------------------------------------------------------------------------- */

static json_t *point_json(hn_peak_kind k, const hn_peak_point *at)
{
    json_t *o = json_object();
    json_object_set_new(o, "threads", json_integer(at->threads));
    json_object_set_new(o, "best", hn_lab_num(at->best));
    json_object_set_new(o, "most", hn_lab_num(at->most));
    json_object_set_new(o, "median", hn_lab_num(at->median));
    json_object_set_new(o, "spread", hn_lab_num(at->spread));
    json_object_set_new(o, "cpu_use", hn_lab_num(at->cpu_use));
    if (k == HN_PEAK_READ_BW) {
        json_object_set_new(o, "streams", json_integer(at->streams));
        json_object_set_new(o, "ahead", json_integer(at->ahead));
    }
    return o;
}

static json_t *kind_json(const hn_peaks *p, hn_peak_kind k)
{
    json_t *o = json_object(), *points = json_array();
    for (int32_t i = 0; i < p->n[k]; i++) json_array_append_new(points, point_json(k, &p->at[k][i]));
    json_object_set_new(o, "how", hn_lab_str(p->how[k]));
    json_object_set_new(o, "unit", json_string(kind_units[k]));
    json_object_set_new(o, "points", points);
    return o;
}

json_t *hn_peaks_json(const hn_peaks *p)
{
    json_t *o = json_object();
    json_object_set_new(o, "schema", json_string(HN_PEAKS_SCHEMA));
    json_object_set_new(o, "ts", json_string(p->ts));
    json_object_set_new(o, "machine",
                        json_pack("{s:s, s:s, s:o, s:o, s:i}", "hash", p->hash, "level", p->level, "cpu_model",
                                  hn_lab_str(p->cpu_model), "kernel", hn_lab_str(p->kernel), "cores", (int)p->cores));
    for (int k = 0; k < HN_PEAK_KINDS; k++) json_object_set_new(o, kind_keys[k], kind_json(p, (hn_peak_kind)k));
    json_object_set_new(o, "clock_ghz", json_pack("[o, o]", hn_lab_num(p->clock_ghz[0]), hn_lab_num(p->clock_ghz[1])));
    json_object_set_new(o, "cache_mb", hn_lab_num((double)p->cache_bytes / 1e6));
    json_object_set_new(o, "buffer_mb", hn_lab_num((double)p->buffer_bytes / 1e6));
    json_object_set_new(o, "huge_pages", hn_lab_num(p->huge_pages));
    json_object_set_new(o, "cpus", hn_lab_str(p->cpus));
    json_object_set_new(o, "load", hn_lab_num(p->load));
    json_object_set_new(o, "steal_pct", hn_lab_num(p->steal_pct));
    json_object_set_new(o, "bound", json_boolean(p->bound));
    json_object_set_new(o, "quick", json_boolean(p->quick));
    json_object_set_new(o, "doubts", p->doubts[0] ? hn_lab_str(p->doubts) : json_null());
    return o;
}

/* ---- in ------------------------------------------------------------------------------------ */

typedef struct reader {
    hone_error *err;
    hone_status st;
} reader;

/* v, which is the field `key`, when ok; else the fault. */
static json_t *need(reader *r, json_t *v, const char *key, bool ok, const char *expected)
{
    char text[60], seen[80];
    if (r->st == HONE_OK && !ok) {
        const char *s = json_string_value(v);
        if (s) snprintf(seen, sizeof seen, "\"%s\"", hn_escape(text, sizeof text, s, json_string_length(v)));
        else if (json_is_number(v)) snprintf(seen, sizeof seen, "%.17g", json_number_value(v));
        else snprintf(seen, sizeof seen, "%s", v ? hn_json_kind(v) : "missing");
        r->st = HN_FAIL(r->err, HONE_E_FORMAT, "field %s is %s, expected %s", key, seen, expected);
    }
    return r->st == HONE_OK ? v : NULL;
}

static json_t *get(reader *r, json_t *o, const char *key, bool ok, const char *expected)
{
    return need(r, json_object_get(o, key), key, ok, expected);
}

static void get_text(reader *r, char *dst, size_t cap, json_t *o, const char *key, bool required)
{
    char expected[60];
    json_t *v = json_object_get(o, key);
    bool null = !required && (!v || json_is_null(v));
    bool fits =
        json_is_string(v) && json_string_length(v) < cap && strlen(json_string_value(v)) == json_string_length(v);
    snprintf(expected, sizeof expected, "a string of at most %zu bytes", cap - 1);
    get(r, o, key, null || fits, expected);
    dst[0] = 0;
    if (!null && r->st == HONE_OK) snprintf(dst, cap, "%s", json_string_value(v));
}

static double get_number(reader *r, json_t *o, const char *key, double most, bool required)
{
    char expected[60];
    json_t *v = json_object_get(o, key);
    if (!required && (!v || json_is_null(v))) return NAN;
    double x = json_is_number(v) ? json_number_value(v) : NAN;
    snprintf(expected, sizeof expected, "a number of 0 to %g", most);
    return get(r, o, key, x >= 0 && x <= most, expected) ? x : 0;
}

static int32_t get_int(reader *r, json_t *o, const char *key, int32_t most)
{
    char expected[60];
    json_t *v = json_object_get(o, key);
    bool fits = json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= most;
    snprintf(expected, sizeof expected, "a whole number of 0 to %d", most);
    return get(r, o, key, fits, expected) ? (int32_t)json_integer_value(v) : 0;
}

static bool get_bool(reader *r, json_t *o, const char *key)
{
    return json_is_true(get(r, o, key, json_is_boolean(json_object_get(o, key)), "true or false"));
}

static void get_kind(reader *r, hn_peaks *p, hn_peak_kind k, json_t *root)
{
    const double most = 1e9;
    json_t *o = get(r, root, kind_keys[k], json_is_object(json_object_get(root, kind_keys[k])), "an object");
    json_t *points = json_object_get(o, "points"), *v;
    get_text(r, p->how[k], sizeof p->how[k], o, "how", true);
    char expected[60];
    snprintf(expected, sizeof expected, "an array of at most %d elements", HN_PEAK_POINTS);
    if (!get(r, o, "points", json_is_array(points) && json_array_size(points) <= HN_PEAK_POINTS, expected)) return;
    size_t i;
    json_array_foreach(points, i, v)
    {
        p->at[k][i] = (hn_peak_point){ .threads = get_int(r, v, "threads", 1 << 20),
                                       .best = get_number(r, v, "best", most, true),
                                       .most = get_number(r, v, "most", most, true),
                                       .median = get_number(r, v, "median", most, true),
                                       .spread = get_number(r, v, "spread", most, true),
                                       .cpu_use = get_number(r, v, "cpu_use", most, false) };
        if (k != HN_PEAK_READ_BW) continue;
        p->at[k][i].streams = get_int(r, v, "streams", 1 << 20);
        p->at[k][i].ahead = get_int(r, v, "ahead", 1 << 30);
    }
    p->n[k] = (int32_t)json_array_size(points);
}

hone_status hn_peaks_parse(hn_peaks *p, json_t *o, hone_error *err)
{
    *p = (hn_peaks){ 0 };
    reader r = { .err = err };
    const double large = 1e12;
    const char *schema = json_string_value(json_object_get(o, "schema"));
    if (!schema || strcmp(schema, HN_PEAKS_SCHEMA) != 0)
        return HN_FAIL(err, HONE_E_FORMAT, "schema is %s, expected " HN_PEAKS_SCHEMA,
                       schema ? HN_ESC(schema, strlen(schema)) : "missing");
    json_t *m = get(&r, o, "machine", json_is_object(json_object_get(o, "machine")), "an object"),
           *c = json_object_get(o, "clock_ghz");
    get_text(&r, p->ts, sizeof p->ts, o, "ts", true);
    get_text(&r, p->hash, sizeof p->hash, m, "hash", true);
    get_text(&r, p->level, sizeof p->level, m, "level", true);
    get_text(&r, p->cpu_model, sizeof p->cpu_model, m, "cpu_model", true);
    get_text(&r, p->kernel, sizeof p->kernel, m, "kernel", true);
    p->cores = get_int(&r, m, "cores", 1 << 20);
    for (int k = 0; k < HN_PEAK_KINDS; k++) get_kind(&r, p, (hn_peak_kind)k, o);
    get(&r, o, "clock_ghz",
        json_array_size(c) == 2 && json_is_number(json_array_get(c, 0)) && json_is_number(json_array_get(c, 1)),
        "an array of two numbers");
    for (size_t i = 0; i < 2; i++) p->clock_ghz[i] = json_number_value(json_array_get(c, i));
    p->cache_bytes = (uint64_t)(get_number(&r, o, "cache_mb", large, true) * 1e6 + 0.5);
    p->buffer_bytes = (uint64_t)(get_number(&r, o, "buffer_mb", large, true) * 1e6 + 0.5);
    p->huge_pages = get_number(&r, o, "huge_pages", 1, true);
    p->load = get_number(&r, o, "load", large, false);
    p->steal_pct = get_number(&r, o, "steal_pct", 100, true);
    get_text(&r, p->cpus, sizeof p->cpus, o, "cpus", false);
    get_text(&r, p->doubts, sizeof p->doubts, o, "doubts", false);
    p->bound = get_bool(&r, o, "bound");
    p->quick = get_bool(&r, o, "quick");
    if (r.st != HONE_OK) return r.st;
    r.st = hn_peaks_check(p, err);
    return r.st == HONE_E_NUMERIC ? HONE_E_FORMAT : r.st;
}

/* ---- the file --------------------------------------------------------------------------------- */

hone_status hn_peaks_path(char *dst, size_t cap, const hn_environ *e, const char *level, hone_error *err)
{
    char leaf[160];
    snprintf(leaf, sizeof leaf, "peaks-%s-%s.json", e->hash, level);
    if (hn_state_path(dst, cap, leaf)) return HONE_OK;
    return HN_FAIL(err, HONE_E_IO,
                   "no place for measured peaks: neither XDG_STATE_HOME nor HOME is set, or the path has "
                   "more than %zu bytes",
                   cap - 1);
}

hone_status hn_peaks_store(const hn_peaks *p, const char *path, hone_error *err)
{
    if (p->quick) return HN_FAIL(err, HONE_E_ARG, "quick peaks are not kept: they say nothing about the machine");
    json_t *o = hn_peaks_json(p);
    char *text = hn_json_text(o, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    json_decref(o);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "peaks as text");
    hone_status st = hn_file_replace(path, text, strlen(text), err);
    free(text);
    return st;
}

#define HOW_TO "measure them: hone lab peaks"

enum { MAX_PEAKS = 1 << 20 }; /* bytes */

/* How programs before 2026-11-30 told of their int8 loop of AVX2, which a compiler had made one of a product for twelve
 * sums in memory: it did two thirds of what the instructions can. */
static const char no_roof[] = "vpmaddubsw + vpaddw, 256 bits";

hone_status hn_peaks_load(hn_peaks *out, const char *path, const hn_environ *e, const char *level, hone_error *err)
{
    *out = (hn_peaks){ 0 };
    hone_error why;
    const hn_json_rules rules = { .max_bytes = MAX_PEAKS, .flags = HN_JSON_UNIQUE };
    json_t *o;
    const char *name = HN_ESC(path, strlen(path));
    hn_peaks p;
    hone_status st = hn_json_tree_file(&o, path, &rules, &why);
    if (st == HONE_E_IO && errno == ENOENT)
        return HN_FAIL(err, HONE_E_IO, "the peaks of this machine at level %s are not measured; " HOW_TO, level);
    if (st != HONE_OK) return HN_FAIL(err, st, "%.500s; " HOW_TO " --force", why.message);
    st = hn_peaks_parse(&p, o, &why);
    json_decref(o);
    if (st != HONE_OK) return HN_FAIL(err, HONE_E_FORMAT, "%s: %.500s; " HOW_TO " --force", name, why.message);
    if (strcmp(p.hash, e->hash) != 0 || strcmp(p.level, level) != 0)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: of machine %s at level %s, but this is %s at %s; " HOW_TO " --force", name,
                       HN_ESC(p.hash, strlen(p.hash)), HN_ESC(p.level, strlen(p.level)), e->hash, level);
    if (strcmp(p.how[HN_PEAK_INT8], no_roof) == 0)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: its int8 peak is of a loop that does not reach the machine's roof, as a program of before "
                       "2026-11-30 measured it; " HOW_TO " --force",
                       name);
    if (p.quick)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: holds a quick trial, which says nothing; " HOW_TO " --force", name);
    if (p.at[HN_PEAK_READ_BW][p.n[HN_PEAK_READ_BW] - 1].threads < p.cores)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: measured up to %d of %d threads; " HOW_TO " --force", name,
                       p.at[HN_PEAK_READ_BW][p.n[HN_PEAK_READ_BW] - 1].threads, p.cores);
    *out = p;
    return HONE_OK;
}

int32_t hn_peaks_decode_threads(const hn_peaks *p)
{
    const hn_peak_point *at = p->at[HN_PEAK_READ_BW];
    double best = 0;
    for (int32_t i = 0; i < p->n[HN_PEAK_READ_BW]; i++) best = at[i].best > best ? at[i].best : best;
    for (int32_t i = 0; i < p->n[HN_PEAK_READ_BW]; i++)
        if (best > 0 && at[i].best >= 0.97 * best) return at[i].threads;
    return 0;
}

void hn_peaks_say(const hn_peaks *p, char *dst, size_t cap)
{
    snprintf(dst, cap, "measured %.10s at level %s%s%s", p->ts, p->level, p->doubts[0] ? "; noisy: " : "", p->doubts);
}
