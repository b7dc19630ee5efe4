/* Baselines: files, and the four questions of a gate. Owns the format; refuses to run
 * anything, to print, and to know exit codes. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "base/mapped.h"
#include "lab/judge/baseline.h"
#include "lab/judge/outside.h"
#include "lab/quality/paths.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/machine/clock.h"
#include "lab/record/record.h"
#include "lab/stats/changes.h"
#include "lab/stats/compare.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"
#include "base/file.h"

#include <math.h>
#include <stdarg.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ------------------------------------------------------------------------------- */

hone_status hn_baseline_name(const char *name, hone_error *err)
{
    size_t n = strlen(name);
    bool ok = n > 0 && n <= HN_BASELINE_NAME && isalnum((unsigned char)name[0]);
    for (size_t i = 0; i < n && ok; i++)
        ok = (unsigned char)name[i] < 0x80 && (isalnum((unsigned char)name[i]) || strchr("._-", name[i]));
    if (ok) return HONE_OK;
    return HN_FAIL(err, HONE_E_ARG,
                   "baseline name '%s': expected 1 to %d of a-z A-Z 0-9 . _ -, beginning with a letter or digit",
                   HN_ESC(name, n < 200 ? n : 200), HN_BASELINE_NAME);
}

hone_status hn_baseline_path(char *dst, size_t cap, const char *dir, const char *name, hone_error *err)
{
    hone_status st = hn_baseline_name(name, err);
    if (st != HONE_OK) return st;
    if (!dir || !*dir) dir = HN_BASELINE_DIR;
    int n = snprintf(dst, cap, "%s/%s.json", dir, name);
    if (n < 0 || (size_t)n >= cap)
        return HN_FAIL(err, HONE_E_ARG, "folder of %zu bytes, expected at most %zu", strlen(dir),
                       cap - HN_BASELINE_NAME - 10);
    return HONE_OK;
}

/* ---- the model, as bytes --------------------------------------------------------------------- */

static void hex_of(char hex[65], hn_sha256 *s)
{
    unsigned char d[32];
    hn_sha256_end(s, d);
    hn_hex(hex, d, sizeof d);
}

/* A member of a split set ends in -00002-of-00005.gguf: how many there are; 0: no such name. */
static int split_count(const char *path)
{
    size_t n = strlen(path);
    int at, of, used = 0;
    const size_t tail = sizeof "-00001-of-00005.gguf" - 1;
    if (n <= tail || sscanf(path + n - tail, "-%5d-of-%5d.gguf%n", &at, &of, &used) != 2 || (size_t)used != tail)
        return 0;
    return at >= 1 && at <= of ? of : 0;
}

/* Mapped as the engine maps it: what is hashed is what will be read. */
static hone_status map_file(const unsigned char **data, size_t *size, const char *path, hone_error *err)
{
    struct stat sb;
    *data = NULL;
    *size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
    hone_status st = HONE_OK;
    if (fstat(fd, &sb) != 0) st = HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
    else if (!S_ISREG(sb.st_mode)) st = HN_FAIL(err, HONE_E_IO, "%s: not a regular file", HN_ESC(path, strlen(path)));
    else if (sb.st_size > 0) {
        void *m = hn_mapped_open(fd, (size_t)sb.st_size, path);
        if (!m) st = HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(path, strlen(path)), strerror(errno));
        else {
            *data = m;
            *size = (size_t)sb.st_size;
        }
    }
    close(fd);
    return st;
}

static hone_status one_file(json_t *files, hn_sha256 *all, uint64_t *bytes, uint64_t total, const char *path,
                            const hn_watch *w, hone_error *err)
{
    enum { BLOCK = 1 << 20 };
    const unsigned char *data;
    size_t size;
    hn_sha256 s;
    hone_status st = map_file(&data, &size, path, err);
    hn_sha256_init(&s);
    for (size_t at = 0; st == HONE_OK && at < size; at += BLOCK) {
        size_t k = size - at < BLOCK ? size - at : BLOCK;
        uint64_t done = *bytes + at + k;
        hn_sha256_add(&s, data + at, k);
        hn_sha256_add(all, data + at, k);
        if (w && w->progress) w->progress(w->arg, done, total > done ? total : done);
        if (w && w->stop && w->stop(NULL)) st = HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    }
    hn_mapped_close(data, size);
    char hex[65];
    hex_of(hex, &s);
    const char *slash = strrchr(path, '/');
    *bytes += size;
    if (st == HONE_OK)
        json_array_append_new(files, json_pack("{s:o, s:I, s:s}", "name", hn_lab_str(slash ? slash + 1 : path), "bytes",
                                               (json_int_t)size, "sha256", hex));
    return st;
}

hone_status hn_model_bytes(json_t **out, const char *path, const hn_watch *w, hone_error *err)
{
    *out = NULL;
    int count = split_count(path);
    size_t n = strlen(path);
    struct stat sb;
    uint64_t bytes = 0, total = stat(path, &sb) == 0 ? (uint64_t)sb.st_size * (uint64_t)(count ? count : 1) : 0;
    char *real = realpath(path, NULL), *member = NULL, hex[65];
    json_t *files = json_array();
    hn_sha256 all;
    hn_sha256_init(&all);
    hone_status st = files ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "files of %s", HN_ESC(path, n));
    if (count == 0 && st == HONE_OK) st = one_file(files, &all, &bytes, total, path, w, err);
    for (int i = 1; i <= count && st == HONE_OK; i++) {
        int stem = (int)(n - strlen("00001-of-00005.gguf"));
        if (asprintf(&member, "%.*s%05d-of-%05d.gguf", stem, path, i, count) < 0) member = NULL;
        st = member ? one_file(files, &all, &bytes, total, member, w, err)
                    : HN_FAIL(err, HONE_E_NOMEM, "files of %s", HN_ESC(path, n));
        free(member);
    }
    if (st == HONE_OK) {
        hex_of(hex, &all);
        *out = json_pack("{s:o, s:I, s:s, s:O}", "path", hn_lab_str(real ? real : path), "bytes", (json_int_t)bytes,
                         "sha256", hex, "files", files);
        if (!*out) st = HN_FAIL(err, HONE_E_NOMEM, "files of %s", HN_ESC(path, n));
    }
    json_decref(files);
    free(real);
    return st;
}

void hn_model_bytes_differ(char *dst, size_t cap, json_t *was, json_t *is)
{
    json_t *a = json_object_get(was, "files"), *b = json_object_get(is, "files");
    dst[0] = 0;
    if (strcmp(hn_record_text(was, "sha256"), hn_record_text(is, "sha256")) == 0 && hn_record_text(is, "sha256")[0])
        return;
    if (json_array_size(a) != json_array_size(b)) {
        snprintf(dst, cap, "%zu files, the baseline has %zu", json_array_size(b), json_array_size(a));
        return;
    }
    for (size_t i = 0; i < json_array_size(a); i++) {
        json_t *x = json_array_get(a, i), *y = json_array_get(b, i);
        long long nx = (long long)json_integer_value(json_object_get(x, "bytes")),
                  ny = (long long)json_integer_value(json_object_get(y, "bytes"));
        if (strcmp(hn_record_text(x, "sha256"), hn_record_text(y, "sha256")) == 0) continue;
        if (nx != ny)
            snprintf(dst, cap, "%s has %lld bytes, the baseline's had %lld", hn_record_text(y, "name"), ny, nx);
        else
            snprintf(dst, cap, "%s has SHA-256 %.16s…, the baseline's %.16s…: same size, other bytes",
                     hn_record_text(y, "name"), hn_record_text(y, "sha256"), hn_record_text(x, "sha256"));
        return;
    }
    snprintf(dst, cap, "no SHA-256 to compare with");
}

/* ---- making ------------------------------------------------------------------------------------- */

static hone_status check_record(json_t *r, hone_error *err)
{
    const char *id = hn_record_id(r), *why = hn_record_text(r, "invalid_reason");
    char odd[400];
    const char *schema = hn_record_text(r, "schema");
    if (strcmp(schema, HN_BENCH_SCHEMA) != 0 || !*id)
        return HN_FAIL(err, HONE_E_ARG, "no record of a measurement: schema '%s' and id '%s', expected '%s' and an id",
                       HN_ESC(schema, strlen(schema)), HN_ESC(id, strlen(id)), HN_BENCH_SCHEMA);
    if (!hn_record_fits(r, odd, sizeof odd)) return HN_FAIL(err, HONE_E_ARG, "%s: %s", HN_ESC(id, strlen(id)), odd);
    if (!hn_settings_id(id))
        return HN_FAIL(err, HONE_E_ARG,
                       "a record of '%s', expected the id of a measurement, as hone lab list shows them",
                       HN_ESC(id, strlen(id)));
    if (json_is_false(json_object_get(r, "valid"))) return HN_FAIL(err, HONE_E_ARG, "%s is invalid: %s", id, why);
    if (json_array_size(json_object_get(r, "samples")) == 0)
        return HN_FAIL(err, HONE_E_ARG, "%s has no samples, expected some", id);
    if (!hn_record_text(json_object_get(r, "env"), "hash")[0])
        return HN_FAIL(err, HONE_E_ARG, "%s does not say on which machine it was measured, expected env.hash", id);
    return HONE_OK;
}

/* SHA-256 of everything but itself. */
static bool sum_of(char hex[65], json_t *b)
{
    json_t *copy = json_copy(b);
    json_object_del(copy, "sum");
    char *s = hn_json_text(copy, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(copy);
    if (!s) return false;
    hn_sha256 h;
    hn_sha256_init(&h);
    hn_sha256_add(&h, s, strlen(s));
    free(s);
    hex_of(hex, &h);
    return true;
}

/* Whether args are options that a later reader of the file will take. */
static hone_status check_settings(json_t *args, hone_error *err)
{
    json_t *again;
    hone_status st = hn_settings_read(&again, args, "given", err);
    json_decref(again);
    return st;
}

hone_status hn_baseline_make(json_t **out, const char *name, json_t *records, json_t *bytes, json_t *quality,
                             json_t *args, hone_error *err)
{
    char ts[40], hex[65];
    hone_status st = hn_baseline_name(name, err);
    *out = NULL;
    if (st == HONE_OK) st = check_settings(args, err);
    json_t *ids = json_array(), *first = json_array_get(records, 0), *r, *b = NULL;
    size_t i;
    if (st == HONE_OK && !first) st = HN_FAIL(err, HONE_E_ARG, "nothing was measured");
    json_array_foreach(records, i, r)
    {
        if (st == HONE_OK) st = check_record(r, err);
        if (st != HONE_OK) break;
        const char *env = hn_record_text(json_object_get(r, "env"), "hash"),
                   *other = hn_record_text(json_object_get(first, "env"), "hash");
        if (strcmp(env, other) != 0)
            st = HN_FAIL(err, HONE_E_ARG, "records of two machines: env %s and %s", other, env);
        json_array_append_new(ids, json_string(hn_record_id(r)));
    }
    bool proved = json_is_true(json_object_get(quality, "valid")) && json_is_string(json_object_get(quality, "hash"));
    if (st == HONE_OK && bytes && !proved)
        st = HN_FAIL(err, HONE_E_ARG, "the quality of this model was not proved: %s",
                     quality ? hn_record_text(quality, "reason") : "there is no quality hash");
    if (st == HONE_OK) {
        hn_utc_now(ts, sizeof ts);
        b = json_object();
        json_object_set_new(b, "schema", json_string(HN_BASELINE_SCHEMA));
        json_object_set_new(b, "name", json_string(name));
        json_object_set_new(b, "ts", json_string(ts));
        for (const char *const *k = (const char *const[]){ "env", "git", "build", "engine", NULL }; *k; k++) {
            json_t *v = json_object_get(first, *k);
            json_object_set_new(b, *k, v ? json_incref(v) : json_null());
        }
        json_object_set_new(b, "model", bytes ? json_incref(bytes) : json_null());
        json_object_set_new(b, "quality", bytes ? json_incref(json_object_get(quality, "hash")) : json_null());
        json_object_set_new(b, "quality_detail", bytes ? json_incref(quality) : json_null());
        json_object_set(b, "ids", ids);
        json_object_set_new(b, "args", args ? json_incref(args) : json_array());
        json_object_set(b, "records", records);
        if (!sum_of(hex, b) || json_object_set_new(b, "sum", json_string(hex)) != 0)
            st = HN_FAIL(err, HONE_E_NOMEM, "baseline %s", name);
    }
    json_decref(ids);
    if (st == HONE_OK) *out = b;
    else json_decref(b);
    return st;
}

/* ---- keeping --------------------------------------------------------------------------------------- */

hone_status hn_baseline_store(json_t *b, const char *path, hone_error *err)
{
    char *s = hn_json_text(b, JSON_INDENT(1) | JSON_REAL_PRECISION(12)), *whole = NULL;
    int n = s ? asprintf(&whole, "%s\n", s) : -1;
    free(s);
    if (n < 0) return HN_FAIL(err, HONE_E_NOMEM, "baseline %s", HN_ESC(path, strlen(path)));
    hone_status st = hn_file_replace(path, whole, (size_t)n, err);
    free(whole);
    return st;
}

/* The checksum proves that a file is whole, not who wrote it: what it asks for is what hone would have asked for. */
static hone_status check_content(json_t *b, const char *shown, hone_error *err)
{
    size_t i;
    json_t *v;
    hone_error why;
    hone_status st = HONE_OK;
    json_array_foreach(json_object_get(b, "records"), i, v)
    {
        if (st == HONE_OK && check_record(v, &why) != HONE_OK)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: records[%zu]: %.400s", shown, i, why.message);
    }
    if (st == HONE_OK && (st = check_settings(json_object_get(b, "args"), &why)) != HONE_OK)
        st = HN_FAIL(err, st == HONE_E_NOMEM ? st : HONE_E_FORMAT, "%s: %.400s", shown, why.message);
    return st;
}

hone_status hn_baseline_load(json_t **out, const char *path, hone_error *err)
{
    char hex[65];
    json_t *b;
    *out = NULL;
    hone_status st = hn_json_tree_file(&b, path, &(hn_json_rules){ .flags = HN_JSON_UNIQUE }, err);
    if (st != HONE_OK) return st;
    char why[500], shown[160];
    hn_escape(shown, sizeof shown, path, strlen(path));
    if (strcmp(hn_record_text(b, "schema"), HN_BASELINE_SCHEMA) != 0)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: no baseline: schema '%s', expected '%s'", shown,
                     HN_ESC(hn_record_text(b, "schema"), strlen(hn_record_text(b, "schema"))), HN_BASELINE_SCHEMA);
    else if (!hn_shape_fits(b, hn_shape_baseline, why, sizeof why))
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: %s", shown, why);
    else if (!sum_of(hex, b)) st = HN_FAIL(err, HONE_E_NOMEM, "%s: its checksum", shown);
    else if (strcmp(hex, hn_record_text(b, "sum")) != 0)
        st = HN_FAIL(err, HONE_E_FORMAT,
                     "%s: damaged or changed by hand: its content does not have the checksum it states", shown);
    if (st == HONE_OK) st = check_content(b, shown, err);
    if (st == HONE_OK) *out = b;
    else json_decref(b);
    return st;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

hone_status hn_baseline_list(char ***names, size_t *n, const char *dir, hone_error *err)
{
    if (!dir || !*dir) dir = HN_BASELINE_DIR;
    size_t cap = 16;
    *n = 0;
    *names = calloc(cap + 1, sizeof **names);
    DIR *d = *names ? opendir(dir) : NULL;
    struct dirent *e;
    bool ok = *names != NULL;
    if (!d && ok && errno != ENOENT) {
        hone_status st = HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(dir, strlen(dir)), strerror(errno));
        hn_baseline_list_free(*names, 0);
        *names = NULL;
        return st;
    }
    for (errno = 0; ok && d && (e = readdir(d)); errno = 0) {
        size_t len = strlen(e->d_name);
        if (len <= 5 || strcmp(e->d_name + len - 5, ".json") != 0) continue;
        char *name = strndup(e->d_name, len - 5);
        ok = name != NULL;
        if (!ok || hn_baseline_name(name, NULL) != HONE_OK) {
            free(name);
            continue;
        }
        if (*n == cap) {
            char **more = realloc(*names, (2 * cap + 1) * sizeof *more);
            if (!more) {
                free(name);
                ok = false;
                break;
            }
            *names = more;
            cap *= 2;
        }
        (*names)[(*n)++] = name;
        (*names)[*n] = NULL;
    }
    int unread = ok ? errno : 0; /* the end of a folder leaves it 0 */
    if (d) closedir(d);
    if (!ok || (d && unread)) {
        hn_baseline_list_free(*names, *n);
        *names = NULL;
        if (ok)
            return HN_FAIL(err, HONE_E_IO, "%s: the folder cannot be read: %s", HN_ESC(dir, strlen(dir)),
                           strerror(unread));
        return HN_FAIL(err, HONE_E_NOMEM, "baselines of %s", HN_ESC(dir, strlen(dir)));
    }
    qsort(*names, *n, sizeof **names, by_name);
    return HONE_OK;
}

void hn_baseline_list_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

/* ---- the machine ------------------------------------------------------------------------------------ */

static void say(char *dst, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(char *dst, size_t cap, const char *fmt, ...)
{
    size_t n = strlen(dst);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(dst + n, cap - n, fmt, ap);
    va_end(ap);
}

static void value_text(char *dst, size_t cap, json_t *v)
{
    if (json_is_string(v)) snprintf(dst, cap, "%s", json_string_value(v));
    else if (json_is_number(v)) snprintf(dst, cap, "%.10g", json_number_value(v));
    else snprintf(dst, cap, "unknown");
}

void hn_environ_differ(char *dst, size_t cap, json_t *was, json_t *is)
{
    /* what env.hash covers; memory in whole GiB there */
    static const char *const fields[] = { "machine",        "cpu_model",    "microcode", "kernel", "cores",
                                          "cores_online",   "mem_total_mb", "governor",  "boost",  "thp",
                                          "cgroup_cpu_max", "cgroup_cpus",  "nice",      NULL };
    dst[0] = 0;
    if (strcmp(hn_record_text(was, "hash"), hn_record_text(is, "hash")) == 0 && hn_record_text(is, "hash")[0]) return;
    for (const char *const *f = fields; *f; f++) {
        char a[200], b[200];
        if (!json_object_get(was, *f)) continue; /* what an old record does not say is no difference */
        value_text(a, sizeof a, json_object_get(was, *f));
        value_text(b, sizeof b, json_object_get(is, *f));
        if (strcmp(a, b) != 0) say(dst, cap, "%s: %s → %s\n", *f, a, b);
    }
    say(dst, cap, "hash: %s → %s\n", hn_record_text(was, "hash"), hn_record_text(is, "hash"));
}

/* ---- the answers -------------------------------------------------------------------------------------- */

void hn_quality_differ(char *dst, size_t cap, json_t *was, json_t *is)
{
    const char *a = hn_record_text(was, "hash"), *b = hn_record_text(is, "hash");
    json_t *ids_a = json_object_get(was, "ids"), *ids_b = json_object_get(is, "ids");
    dst[0] = 0;
    if (a[0] && b[0] && !hn_q_same_kind(a, b) && hn_q_same_kind(a, hn_record_text(is, "q1")))
        b = hn_record_text(is, "q1"); /* what both kinds know */
    const char *outer = hn_outer_differ(json_object_get(was, "outer"), json_object_get(is, "outer"));
    if (a[0] && strcmp(a, b) == 0) {
        if (outer)
            snprintf(dst, cap, "the quality hash is the same, and around the engine something is not: %s", outer);
        return;
    }
    if (a[0] && b[0] && !hn_q_same_kind(a, b)) {
        snprintf(
            dst, cap,
            "quality hash %s, the baseline's is %s: of two kinds, which nothing can compare; measure with the same "
            "--quality, or save the baseline again",
            b, a);
        return;
    }
    snprintf(dst, cap, "quality hash %s, the baseline's is %s: ", b[0] ? b : "none", a[0] ? a : "none");
    if (hn_q_same_answers(a, b)) {
        say(dst, cap, "the same answers from other logits");
        return;
    }
    for (size_t p = 0; p < json_array_size(ids_a); p++)
        for (size_t i = 0; i < json_array_size(json_array_get(ids_a, p)); i++) {
            json_t *x = json_array_get(json_array_get(ids_a, p), i), *y = json_array_get(json_array_get(ids_b, p), i);
            if (json_equal(x, y)) continue;
            say(dst, cap, "other answers, first at prompt %zu, token %zu: %lld, was %lld", p + 1, i + 1,
                (long long)json_integer_value(y), (long long)json_integer_value(x));
            return;
        }
    say(dst, cap, json_array_size(ids_a) ? "other answers to the long prompt" : "other answers");
}

static bool holds(json_t *list, json_t *word)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) if (json_equal(v, word)) return true;
    return false;
}

static void proved_less(char *dst, size_t cap, json_t *was, json_t *is)
{
    json_t *before = json_object_get(was, "left_here"), *now = json_object_get(is, "left_here"), *word;
    double rows = hn_json_number_of(was, "rows_compared"), left = hn_json_number_of(is, "rows_compared");
    size_t i;
    dst[0] = 0;
    if (!json_is_array(before) || !json_is_array(now)) return; /* of a program from before it was said */
    json_array_foreach(now, i, word) if (!dst[0] && !holds(before, word))
        snprintf(dst, cap, "left out: %.300s", json_string_value(word) ? json_string_value(word) : "?");
    if (!dst[0] && strcmp(hn_record_text(was, "asked"), hn_record_text(is, "asked")) == 0 && !(left >= rows))
        snprintf(dst, cap, "%.0f rows of logits were compared on all ways, not %.0f", left, rows);
}

static void told_by_one(char *dst, size_t cap, json_t *was, json_t *is)
{
    char parts[120];
    const bool ways =
        json_is_array(json_object_get(was, "left_here")) != json_is_array(json_object_get(is, "left_here"));
    hn_outer_untold(parts, sizeof parts, json_object_get(was, "outer"), json_object_get(is, "outer"));
    dst[0] = 0;
    if (parts[0] || ways)
        snprintf(dst, cap, "not compared, as only one side tells it: %s%s%s", parts, parts[0] && ways ? ", " : "",
                 ways ? "which ways were left out" : "");
}

void hn_quality_proved(hn_proved *out, json_t *was, json_t *is)
{
    *out = (hn_proved){ .less = "" };
    if (!was || !is) return;
    proved_less(out->less, sizeof out->less, was, is);
    told_by_one(out->untold, sizeof out->untold, was, is);
}

/* ---- the speed ------------------------------------------------------------------------------------------ */

static bool in_list(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == 0)) return true;
    return false;
}

/* Is it one of those that decide? Speeds and memory of whole runs, and what a bench of one number measures. Load
 * times are of milliseconds and the first token's is that of the prompt: shown, not gated. */
static bool gated(const char *list, const char *metric)
{
    if (list && strcmp(list, "all") == 0) return true;
    if (!*metric) return true;
    return in_list(list ? list : "prefill_tok_s,decode_tok_s,peak_anon_mb", metric);
}

/* Which kernels and which form of the weights serve it is the engine's affair, and may be the very change that is
 * judged. */
static const char *const free_keys[] = { "samples", "weights_note", "weights", "cpu", NULL };

void hn_measurement_differs(char *dst, size_t cap, json_t *a, json_t *b)
{
    const char *key;
    json_t *x = json_object_get(a, "config"), *y = json_object_get(b, "config"), *v;
    json_object_foreach(x, key, v)
    {
        json_t *w = json_object_get(y, key);
        bool asked = true;
        for (const char *const *k = free_keys; *k; k++) asked = asked && strcmp(key, *k) != 0;
        if (!asked || json_equal(v, w)) continue;
        char *s = hn_json_dump(v, JSON_ENCODE_ANY | JSON_COMPACT),
             *t = w ? hn_json_dump(w, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        snprintf(dst, cap, "%s is %.60s, there %.60s", key, s ? s : "?", t ? t : "missing");
        free(s);
        free(t);
        return;
    }
    snprintf(dst, cap, "another configuration there");
}

bool hn_same_measurement(json_t *a, json_t *b)
{
    if (strcmp(hn_record_id(a), hn_record_id(b)) != 0) return false;
    json_t *x = json_copy(json_object_get(a, "config")), *y = json_copy(json_object_get(b, "config"));
    for (const char *const *k = free_keys; *k; k++) {
        json_object_del(x, *k);
        json_object_del(y, *k);
    }
    bool same = x && y ? json_equal(x, y) : x == y;
    json_decref(x);
    json_decref(y);
    return same;
}

/* The kernel keeps counters of memory per thread, up to 64 pages behind: differences below that are none. */
static double memory_slack(json_t *record, const char *metric, double median)
{
    json_t *t = json_object_get(json_object_get(record, "config"), "threads");
    double threads = json_is_number(t) ? json_number_value(t) : 1;
    return strstr(metric, "anon") && median > 0 ? (threads + 1) * 64 * 4096 / 1e6 / median : 0;
}

static double half_width(json_t *stats)
{
    json_t *ci = json_object_get(stats, "ci95");
    return json_array_size(ci) == 2
               ? 0.5 * (json_number_value(json_array_get(ci, 1)) - json_number_value(json_array_get(ci, 0)))
               : NAN;
}

/* All samples of one metric in all records of now that are the same measurement; *near: of the same id, another one. */
static hone_status samples_now(double **x, size_t *n, json_t **record, json_t **near, json_t *before, json_t *now,
                               const char *metric, hone_error *err)
{
    size_t i;
    json_t *r;
    *x = NULL;
    *n = 0;
    *record = NULL;
    json_array_foreach(now, i, r)
    {
        double *part, *all;
        size_t k;
        if (!hn_same_measurement(before, r)) {
            if (strcmp(hn_record_id(before), hn_record_id(r)) == 0) *near = r;
            continue;
        }
        hone_status st = hn_record_samples(&part, &k, r, metric, err);
        if (st != HONE_OK) return st;
        all = realloc(*x, (*n + k + 1) * sizeof *all);
        if (!all) {
            free(part);
            return HN_FAIL(err, HONE_E_NOMEM, "%zu samples", *n + k);
        }
        *x = all;
        memcpy(*x + *n, part, k * sizeof *part);
        free(part);
        *n += k;
        *record = r;
    }
    return HONE_OK;
}

static hone_status compare_one(hn_baseline_row *row, json_t *now, const hn_baseline_rule *rule, hone_error *err)
{
    double *a = NULL, *b = NULL;
    size_t na, nb;
    hn_stats s;
    hone_status st = hn_record_samples(&a, &na, row->before, row->metric, err);
    if (st == HONE_OK) st = samples_now(&b, &nb, &row->after, &row->near, row->before, now, row->metric, err);
    if (st == HONE_OK) {
        json_t *stats = hn_record_stats(row->before, row->metric), *m = json_object_get(stats, "median");
        row->median_before = json_is_number(m) ? json_number_value(m) : NAN;
        row->half_before = half_width(stats);
        st = hn_stats_of(&s, b, nb, err);
    }
    if (st == HONE_OK) {
        row->median_after = s.median;
        row->half_after = hn_stats_half_width(&s);
        row->margin = fmax(rule->margin > 0 ? rule->margin : HN_BASELINE_MARGIN,
                           memory_slack(row->before, row->metric, row->median_before));
        st = hn_unpaired_test(&row->test, a, na, b, nb, row->higher, row->margin, 1 - rule->alpha, err);
        if (st == HONE_E_ARG) st = HONE_OK; /* numbers that have no ratio: shown, never judged */
    }
    free(a);
    free(b);
    return st;
}

/* Regressions and improvements share α by Holm's steps, so that the chance of a false one among all stays below it.
 * SAME needs no sharing: each row must earn it by itself. */
static double moved(const hn_baseline_row *r) { return fmin(r->test.p_regressed, r->test.p_improved); }

static int by_p(const void *a, const void *b)
{
    double x = moved(*(hn_baseline_row *const *)a), y = moved(*(hn_baseline_row *const *)b);
    return (x > y) - (x < y);
}

static hn_ab_verdict direction(const hn_baseline_row *r)
{
    return r->test.p_regressed < r->test.p_improved ? HN_AB_REGRESSED : HN_AB_IMPROVED;
}

static hone_status judge(hn_baseline_row *rows, size_t n, double alpha, hone_error *err)
{
    hn_baseline_row **order = malloc((n + 1) * sizeof *order);
    if (!order) return HN_FAIL(err, HONE_E_NOMEM, "judging %zu metrics", n);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        hn_baseline_row *r = &rows[i];
        r->verdict = r->test.p_within <= alpha ? HN_AB_SAME : HN_AB_INCONCLUSIVE;
        if (r->gated) order[m++] = r;
        else if (moved(r) <= alpha / 2) r->verdict = direction(r);
    }
    qsort(order, m, sizeof *order, by_p);
    for (size_t i = 0; i < m && moved(order[i]) <= alpha / 2 / (double)(m - i); i++)
        order[i]->verdict = direction(order[i]); /* half for each direction */
    free(order);
    return HONE_OK;
}

static hone_status check_names(const char *list, json_t *records, hone_error *err)
{
    char word[80];
    for (const char *p = list; p && *p && strcmp(list, "all") != 0;) {
        size_t n = strcspn(p, ","), i;
        bool known = false;
        json_t *r;
        snprintf(word, sizeof word, "%.*s", (int)(n < 79 ? n : 79), p);
        json_array_foreach(records, i, r) if (hn_record_stats(r, word)) known = true;
        if (!known || !*word)
            return HN_FAIL(err, HONE_E_ARG, "metric '%s': no record of the baseline has it",
                           HN_ESC(word, strlen(word)));
        p += n + (p[n] == ',');
    }
    return HONE_OK;
}

hone_status hn_baseline_compare(hn_baseline_row **rows, size_t *n, json_t *baseline, json_t *now,
                                const hn_baseline_rule *rule, hone_error *err)
{
    json_t *records = json_object_get(baseline, "records"), *r;
    size_t i, room = 0;
    const char *metric, *unit;
    bool higher;
    *n = 0;
    *rows = NULL;
    hone_status st = check_names(rule->metrics, records, err);
    if (st != HONE_OK) return st;
    json_array_foreach(records, i, r) for (void *at = NULL; hn_record_next(r, &at, &metric, &unit, &higher);) room++;
    *rows = calloc(room + 1, sizeof **rows);
    if (!*rows) return HN_FAIL(err, HONE_E_NOMEM, "comparing with a baseline");
    json_array_foreach(records, i, r) for (void *at = NULL;
                                           st == HONE_OK && hn_record_next(r, &at, &metric, &unit, &higher);)
    {
        double *x;
        size_t nx;
        st = hn_record_samples(&x, &nx, r, metric, err);
        if (st == HONE_OK) free(x);
        if (st != HONE_OK || nx == 0) continue; /* was not measured then */
        hn_baseline_row *row = &(*rows)[(*n)++];
        *row = (hn_baseline_row){ .id = hn_record_id(r),
                                  .metric = metric,
                                  .unit = unit,
                                  .higher = higher,
                                  .before = r,
                                  .gated = gated(rule->metrics, metric) };
        st = compare_one(row, now, rule, err);
    }
    if (st == HONE_OK) st = judge(*rows, *n, rule->alpha, err);
    if (st == HONE_OK) st = hn_outside_look(*rows, *n, now, err);
    if (st == HONE_OK) return HONE_OK;
    free(*rows);
    *rows = NULL;
    *n = 0;
    return st;
}

json_t *hn_baseline_row_json(const hn_baseline_row *r)
{
    json_t *o = json_object(), *ci = json_null();
    if (isfinite(r->test.ci[0])) {
        ci = json_array();
        json_array_append_new(ci, hn_lab_num(r->test.ci[0]));
        json_array_append_new(ci, hn_lab_num(r->test.ci[1]));
    }
    json_object_set_new(o, "id", hn_lab_str(r->id));
    json_object_set_new(o, "metric", hn_lab_str(r->metric));
    json_object_set_new(o, "unit", hn_lab_str(r->unit));
    json_object_set_new(o, "gated", json_boolean(r->gated));
    json_object_set_new(o, "better", json_string(r->higher ? "higher" : "lower"));
    json_object_set_new(o, "before", hn_lab_num(r->median_before));
    json_object_set_new(o, "after", r->after ? hn_lab_num(r->median_after) : json_null());
    json_object_set_new(o, "n_before", json_integer((json_int_t)r->test.n_old));
    json_object_set_new(o, "n_after", json_integer((json_int_t)r->test.n_new));
    json_object_set_new(o, "ratio", hn_lab_num(r->test.ratio));
    json_object_set_new(o, "ci", ci);
    json_object_set_new(o, "coverage", hn_lab_num(r->test.coverage));
    json_object_set_new(o, "margin", hn_lab_num(r->margin));
    json_object_set_new(o, "p_same", hn_lab_num(r->test.p_same));
    json_object_set_new(o, "p_regressed", hn_lab_num(r->test.p_regressed));
    json_object_set_new(o, "p_improved", hn_lab_num(r->test.p_improved));
    json_object_set_new(o, "p_within", hn_lab_num(r->test.p_within));
    json_object_set_new(o, "hidden_ms", r->hidden_ms > 0 ? hn_lab_num(r->hidden_ms) : json_null());
    json_object_set_new(o, "moved_ms", r->moved_ms > 0 ? hn_lab_num(r->moved_ms) : json_null());
    json_object_set_new(o, "verdict", json_string(hn_ab_verdict_name(r->verdict)));
    return o;
}

hn_ab_verdict hn_baseline_verdict(const hn_baseline_row *rows, size_t n)
{
    size_t counts[HN_AB_VERDICTS] = { 0 }, m = 0;
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].gated) continue;
        m++;
        counts[rows[i].after ? rows[i].verdict : HN_AB_INCONCLUSIVE]++;
    }
    if (counts[HN_AB_REGRESSED]) return HN_AB_REGRESSED;
    if (m == 0 || counts[HN_AB_INCONCLUSIVE]) return HN_AB_INCONCLUSIVE;
    return counts[HN_AB_IMPROVED] ? HN_AB_IMPROVED : HN_AB_SAME;
}
