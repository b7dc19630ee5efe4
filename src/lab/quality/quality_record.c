/* Records of quality: the same shape as every measurement. Owns nothing but the shape;
 * refuses to know how a figure came about. */
#include "lab/quality/sketch.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>

static json_t *config_json(json_t *config)
{
    json_t *o = json_object();
    for (const char *const *k = (const char *const[]){ "threads", "cpu", "n_prompt", "n_gen", "depth", "chunk", "kv",
                                                       "weights", "sampler", "seed", "variant", NULL };
         *k; k++)
        json_object_set_new(o, *k, json_null());
    if (config) json_object_update(o, config);
    return o;
}

json_t *hn_q_record(const hn_q_result *q)
{
    hn_environ env;
    hn_stats stats = { 0 };
    char ts[40];
    hn_environ_read(&env);
    hn_utc_now(ts, sizeof ts);
    bool some = isfinite(q->value), valid = q->verdict->state == HN_VALID;
    json_t *r = json_pack("{s:s, s:s}", "schema", HN_BENCH_SCHEMA, "id", q->id), *samples = json_array(),
           *notes = json_array();
    if (some) json_array_append_new(samples, json_real(q->value));
    if (q->partial) json_array_append_new(notes, json_string("interrupted: what was done until then"));
    hn_stats_of(&stats, &q->value, some, NULL);
    json_object_set_new(r, "record", hn_bench_identity());
    json_object_set_new(r, "ts", json_string(ts));
    json_object_set_new(r, "title", hn_lab_str(q->title));
    json_object_set_new(r, "change", hn_lab_str(q->change));
    json_object_set_new(r, "git", hn_bench_git_json(&env));
    json_object_set_new(r, "build", hn_bench_build_json(&env));
    json_object_set_new(r, "env", hn_environ_json(&env));
    json_object_set_new(r, "model", q->model ? json_incref(q->model) : json_null());
    json_object_set_new(r, "config", config_json(q->config));
    json_object_set_new(r, "engine", hn_bench_engine_json());
    json_object_set_new(r, "unit", json_string(q->unit));
    json_object_set_new(r, "better", json_string(q->higher ? "higher" : "lower"));
    json_object_set_new(r, "method", json_string("O"));
    json_object_set_new(r, "warmups", json_integer(0));
    json_object_set_new(r, "samples", samples);
    json_object_set_new(r, "stats", hn_stats_json(&stats));
    json_object_set_new(r, "memory", json_null());
    json_object_set_new(r, "energy", json_null());
    json_object_set_new(r, "roofline",
                        json_pack("{s:n, s:n, s:n, s:n, s:n, s:s}", "bytes", "ops", "roof", "roof_value", "pct",
                                  "missing", "no roof bounds this"));
    json_object_set_new(r, "quality", hn_lab_str(q->quality));
    json_object_set_new(r, "valid", q->verdict->state == HN_UNCHECKED ? json_null() : json_boolean(valid));
    json_object_set_new(r, "invalid_reason", valid ? json_null() : hn_lab_str(q->verdict->reason));
    json_object_set_new(r, "voided", json_integer(0));
    json_object_set_new(r, "target", json_null());
    json_object_set_new(r, "notes", notes);
    json_t *extra = json_pack("{s:o, s:o}", "value", some ? json_real(q->value) : json_null(), "error",
                              isfinite(q->error) ? json_real(q->error) : json_null());
    if (q->extra) json_object_update(extra, q->extra);
    json_object_set_new(r, "extra", extra);
    return r;
}
