/* Records of quality: the same shape as every measurement. Owns nothing but the shape;
 * refuses to know how a figure came about. */
#include "lab/quality.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

json_t *hn_q_model_json(const char *path, const hone_model_info *info)
{
    enum { HASH_UP_TO = 64 << 20 }; /* larger files are told apart by the fingerprint */
    char hex[65] = "", fingerprint[17];
    struct stat sb;
    const char *slash = strrchr(path, '/');
    if (stat(path, &sb) == 0 && sb.st_size <= HASH_UP_TO) hn_file_sha256(hex, path, NULL);
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, info->fingerprint);
    json_t *o = json_object();
    json_object_set_new(o, "path_name", hn_lab_str(slash ? slash + 1 : path));
    json_object_set_new(o, "sha256", hex[0] ? json_string(hex) : json_null());
    json_object_set_new(o, "fingerprint", json_string(fingerprint));
    json_object_set_new(o, "name", hn_lab_str(info->name));
    json_object_set_new(o, "arch", hn_lab_str(info->arch));
    json_object_set_new(o, "type", hn_lab_str(info->type));
    json_object_set_new(o, "params", json_integer((json_int_t)info->n_params));
    json_object_set_new(o, "bytes", json_integer((json_int_t)info->n_bytes));
    return o;
}

static json_t *identity(const char *ts)
{
    unsigned char d[32];
    char id[20], text[96];
    hn_sha256 s;
    int n = snprintf(text, sizeof text, "%s %" PRIu64 " %ld", ts, hn_clock_ns(), (long)getpid());
    hn_sha256_init(&s);
    hn_sha256_add(&s, text, (size_t)n);
    hn_sha256_end(&s, d);
    snprintf(id, sizeof id, "%02x%02x%02x%02x%02x%02x", d[0], d[1], d[2], d[3], d[4], d[5]);
    return json_string(id);
}

static json_t *git_json(const hn_environ *e)
{
    char commit[sizeof e->commit];
    snprintf(commit, sizeof commit, "%s", e->commit);
    char *dirty = strstr(commit, "+dirty");
    if (dirty) *dirty = 0;
    bool known = commit[0] && strcmp(commit, "unknown") != 0;
    return json_pack("{s:o, s:o}", "commit", known ? hn_lab_str(commit) : json_null(), "dirty", known ? json_boolean(dirty) : json_null());
}

json_t *hn_q_record(const hn_q_result *q)
{
    hn_environ env;
    hn_stats stats;
    char ts[40];
    hn_environ_read(&env);
    hn_utc_now(ts, sizeof ts);
    bool some = isfinite(q->value), valid = q->verdict->state == HN_VALID;
    json_t *r = json_pack("{s:s, s:s}", "schema", HN_BENCH_SCHEMA, "id", q->id), *samples = json_array(), *notes = json_array();
    if (some) json_array_append_new(samples, json_real(q->value));
    if (q->partial) json_array_append_new(notes, json_string("interrupted: what was done until then"));
    json_object_set_new(r, "record", identity(ts));
    json_object_set_new(r, "ts", json_string(ts));
    json_object_set_new(r, "title", hn_lab_str(q->title));
    json_object_set_new(r, "change", hn_lab_str(q->change));
    json_object_set_new(r, "git", git_json(&env));
    json_object_set_new(r, "build", json_pack("{s:o, s:o, s:o}", "cc", hn_lab_str(env.compiler), "flags", hn_lab_str(env.flags), "isa",
                                              json_incref(json_object_get(q->config, "cpu"))));
    json_object_set_new(r, "env", hn_environ_json(&env));
    json_object_set(r, "model", q->model);
    json_object_set(r, "config", q->config);
    json_object_set_new(r, "engine", json_pack("{s:s, s:s}", "name", "hone", "version", hone_version()));
    json_object_set_new(r, "unit", json_string(q->unit));
    json_object_set_new(r, "better", json_string(q->higher ? "higher" : "lower"));
    json_object_set_new(r, "warmups", json_integer(0));
    json_object_set_new(r, "samples", samples);
    json_object_set_new(r, "stats", some && hn_stats_of(&stats, &q->value, 1, NULL) == HONE_OK ? hn_stats_json(&stats) : json_null());
    json_object_set_new(r, "value", some ? json_real(q->value) : json_null());
    json_object_set_new(r, "error", isfinite(q->error) ? json_real(q->error) : json_null());
    for (const char *const *k = (const char *const[]){ "energy", "roofline", "target", NULL }; *k; k++) json_object_set_new(r, *k, json_null());
    json_object_set_new(r, "memory", json_object());
    json_object_set_new(r, "quality", q->quality ? json_string(q->quality) : json_null());
    json_object_set_new(r, "valid", q->verdict->state == HN_UNCHECKED ? json_null() : json_boolean(valid));
    json_object_set_new(r, "invalid_reason", valid ? json_null() : hn_lab_str(q->verdict->reason));
    json_object_set_new(r, "voided", json_integer(0));
    json_object_set_new(r, "notes", notes);
    json_object_set(r, "extra", q->extra);
    return r;
}
