/* Sessions for the ways of the quality hash: the model of the command, once more with another
 * chunk, number of threads, level or layout. Owns what it opens. */
#include "cli/lab/quality_paths.h"

#include "lab/inside/numbers.h"
#include "lab/machine/clock.h"

#include <string.h>

enum { MOST_THREADS = 1024 }; /* of a context */

typedef struct opener {
    const hn_cli *cli;
    const hone_model *m;
    hone_context *asked, *other; /* as the options say; for a way that differs */
    hone_model *plain;
    hone_session *s, *before; /* the second: of the way before, which stays */
} opener;

static void close_other(opener *o)
{
    hone_session_free(o->s);
    hone_session_free(o->before);
    hone_context_free(o->other);
    o->s = o->before = NULL;
    o->other = NULL;
}

static hone_status open_plain(opener *o, hone_error *err)
{
    const hone_model_params p = { .tokenizer_pre = hn_opts_str(o->cli->opts, "pre"), .packed = "off" };
    return hone_model_open(&o->plain, hn_opts_str(o->cli->opts, "model"), &p, err);
}

static hone_session_params session_of(const opener *o, const hn_q_way *w)
{
    const hn_opts *opts = o->cli->opts;
    return (hone_session_params){ .n_ctx = w->n_ctx,
                                  .n_seq = w->n_seq,
                                  .n_chunk = w->chunk ? w->chunk : hn_opts_i32(opts, "chunk"),
                                  .cache = w->cache ? (hone_kv_cache_type)(w->cache - 1)
                                                    : hn_cache_of(hn_opts_str(opts, "kv")),
                                  .cache_budget = w->budget,
                                  .allow_paging = hn_opts_flag(opts, "allow-paging") };
}

static hone_status open_way(void *arg, const hn_q_way *w, hone_session **out, hone_error *err)
{
    opener *o = arg;
    *out = NULL;
    if (w->beside) hone_session_free(o->before), o->before = o->s, o->s = NULL;
    else close_other(o);
    hone_status st = w->plain && !o->plain ? open_plain(o, err) : HONE_OK; /* there, where a try had no room */
    if (st == HONE_OK && (w->threads || w->cpu)) {
        const hone_context_params p = { .n_threads = w->threads ? w->threads : hone_context_threads(o->asked),
                                        .cpu = w->cpu ? w->cpu : hone_context_cpu(o->asked) };
        st = hone_context_new(&o->other, &p, err);
    }
    if (st != HONE_OK) return st;
    const hone_session_params p = session_of(o, w);
    const hone_model *m = w->plain ? o->plain : o->m;
    st = hone_session_new(&o->s, o->other ? o->other : o->asked, m, &p, err);
    if (st != HONE_OK) return st;
    hone_session_set_abort(o->s, hn_abort_fn, NULL);
    if (hn_cli_set_adapters(o->cli, m, o->s) != 0) return HN_FAIL(err, HONE_E_ARG, "the adapters do not fit the model");
    *out = o->s;
    return HONE_OK;
}

static hone_status scale_adapters(void *arg, hone_session *s, int32_t seq, uint64_t draw, hone_error *err)
{
    const opener *o = arg;
    return hn_cli_scale_adapters(o->cli, o->m, s, seq, draw, err);
}

static hone_status open_scheduler(void *arg, const hn_q_way *w, hone_scheduler **out, hone_error *err)
{
    const opener *o = arg;
    const hone_scheduler_params p = { .session = session_of(o, w) };
    *out = NULL;
    return hone_scheduler_new(out, o->asked, o->m, &p, err);
}

/* Levels below the one in use, the nearest first. */
static void levels_below(const char **out, size_t cap, const char *level)
{
    size_t n = 0;
    int at = HN_CPU_LEVELS;
    while (at-- > 0 && strcmp(hn_cpu_level_name((hn_cpu_level)at), level) != 0) {}
    while (at-- > 0 && n + 1 < cap)
        if (hn_cpu_has((hn_cpu_level)at)) out[n++] = hn_cpu_level_name((hn_cpu_level)at);
    out[n] = NULL;
}

/* A count of threads between 1 and n, drawn; 0: there is none. */
static int32_t some_threads(int32_t n, uint64_t draw)
{
    return n < 3 ? 0 : 2 + (int32_t)(hn_rand64(draw, UINT64_MAX) % (uint64_t)(n - 2));
}

/* What is drawn is another thing each time, and the same again when its number is given. */
static uint64_t draw_of(const hn_opts *o)
{
    if (hn_opts_has(o, "draw") && hn_opts_given(o, "draw")) return hn_opts_u64(o, "draw");
    return hn_rand64(hn_clock_ns(), 0) >> 16; /* a JSON number holds it */
}

int hn_cli_paths(const hn_cli *cli, const hone_model *m, const hn_q_prompts *prompts, const hn_quality *eight,
                 bool quick, hn_paths *out)
{
    opener o = { .cli = cli, .m = m };
    const char *levels[HN_CPU_LEVELS + 1];
    hone_model_info info;
    hone_error err;
    int rc = hn_cli_new_context(cli, &o.asked);
    if (rc) return rc;
    hone_model_get_info(m, &info);
    levels_below(levels, HN_CPU_LEVELS + 1, hone_context_cpu(o.asked));
    const int32_t n = hone_context_threads(o.asked);
    const uint64_t draw = draw_of(cli->opts);
    const hn_paths_params p = { .m = m,
                                .quick = quick,
                                .draw = draw,
                                .shared = hn_opts_has(cli->opts, "draw") && hn_opts_given(cli->opts, "draw"),
                                .open = open_way,
                                .open_scheduler = open_scheduler,
                                .numbers = hn_numbers_hash,
                                .arg = &o,
                                .abort_fn = hn_abort_fn,
                                .cache = hn_cache_of(hn_opts_str(cli->opts, "kv")),
                                .threads = some_threads(n, draw),
                                .threads_more = n < MOST_THREADS ? n + 1 : 0,
                                .levels = levels,
                                .packed = info.packed_path != NULL,
                                .scale_adapters = scale_adapters,
                                .adapted = hn_opts_has(cli->opts, "lora") && hn_opts_count(cli->opts, "lora") > 0 };
    if (hn_paths_run(out, &p, prompts, eight, &err) != HONE_OK) rc = hn_cli_fail(&err);
    snprintf(out->asked, sizeof out->asked, "%s, %d threads%s", hone_context_cpu(o.asked), (int)n,
             p.packed ? ", packed" : "");
    close_other(&o);
    hone_model_close(o.plain);
    hone_context_free(o.asked);
    return rc;
}

json_t *hn_cli_covers_json(const hn_paths *p)
{
    json_t *here = json_array();
    for (int32_t i = p->n_never; i < p->n_left; i++) json_array_append_new(here, json_string(p->left[i]));
    return json_pack("{s:s, s:i, s:I, s:i, s:o}", "asked", p->asked, "rows_compared", (int)p->n_compared, "draw",
                     (json_int_t)p->draw, "widest", (int)p->widest, "left_here", here);
}

json_t *hn_cli_paths_json(json_t *o, const hn_paths *p, const hn_quality *eight)
{
    json_t *left = json_array(), *covers = hn_cli_covers_json(p);
    bool valid = p->verdict.state == HN_VALID;
    for (int32_t i = 0; i < p->n_left; i++) json_array_append_new(left, json_string(p->left[i]));
    json_object_update(o, covers);
    json_decref(covers);
    json_object_set_new(o, "hash", p->hash[0] ? json_string(p->hash) : json_null());
    json_object_set_new(o, "q1", eight->hash[0] ? json_string(eight->hash) : json_null());
    json_object_set_new(o, "valid", json_boolean(valid));
    json_object_set_new(o, "reason", valid ? json_null() : json_string(p->verdict.reason));
    json_object_set_new(o, "long_ids", json_integer(p->n_long));
    json_object_set_new(o, "ways", json_integer(p->n_ways));
    json_object_set_new(o, "left_out", left);
    json_object_set_new(o, "outer", hn_outer_json(&p->outer));
    return o;
}
