/* Measurements for baselines and gates: command lines of fresh processes, and what comes
 * back. Refuses to judge. */
#define _GNU_SOURCE
#include "lab/gate.h"
#include "lab/history.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MAX_ARGS = 256 };

typedef struct command { const char *argv[MAX_ARGS + 1]; char *made[8]; int n, n_made; bool ok; } command;

static void add(command *c, const char *arg)
{
    if (c->n < MAX_ARGS) c->argv[c->n++] = arg;
    else c->ok = false;
}

static void add_made(command *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_made(command *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = NULL;
    bool ok = c->n_made < 8 && vasprintf(&s, fmt, ap) >= 0;
    va_end(ap);
    if (ok) add(c, c->made[c->n_made++] = s);
    else c->ok = false;
}

static void add_args(command *c, json_t *args)
{
    size_t i;
    json_t *a;
    json_array_foreach(args, i, a)
        if (json_is_string(a)) add(c, json_string_value(a));
}

static hone_status run(hn_child *out, command *c, bool (*stop)(void *), hone_error *err)
{
    c->argv[c->n] = NULL;
    hone_status st = c->ok ? hn_child_run(out, c->argv, stop, err) : HN_FAIL(err, HONE_E_ARG, "more than %d arguments for a measured process", MAX_ARGS);
    for (int i = 0; i < c->n_made; i++) free(c->made[i]);
    return st;
}

hone_status hn_gate_quality(json_t **out, const hn_gate_run *g, char *why, size_t cap, hone_error *err)
{
    command c = { .argv = { "hone", "bench", "_quality" }, .n = 3, .ok = true };
    hn_child child;
    *out = NULL;
    why[0] = 0;
    add_made(&c, "--model=%s", g->model);
    add_args(&c, g->args);
    add_made(&c, "%" PRIu64, hn_clock_ns());
    hone_status st = run(&child, &c, g->stop, err);
    if (st != HONE_OK) return st;
    json_t *r = child.result;
    if (r && child.exit_code == 0 && json_object_get(r, "hash")) *out = json_incref(r);
    else hn_child_why(&child, why, cap);
    hn_child_free(&child);
    return HONE_OK;
}

/* One record of what a process printed. */
static void take(json_t *records, json_t *r, char *why, size_t cap)
{
    const char *reason = json_string_value(json_object_get(r, "invalid_reason"));
    if (json_is_false(json_object_get(r, "valid")) && !why[0]) snprintf(why, cap, "%s: %s", hn_record_id(r), reason ? reason : "invalid");
    json_array_append(records, r);
}

static hone_status measure(json_t *records, const hn_gate_run *g, bool plain, int32_t samples, bool quality, char *why, size_t cap, int *exit_code,
                           hone_error *err)
{
    command c = { .argv = { "hone", "bench" }, .n = 2, .ok = true };
    hn_child child;
    size_t i, before = json_array_size(records);
    json_t *id, *r;
    json_array_foreach(g->ids, i, id)
        if (!plain && strcmp(json_string_value(id), "e2e") != 0) add(&c, json_string_value(id));
    add_args(&c, g->args);
    if (g->model) add_made(&c, "--model=%s", g->model);
    add_made(&c, "--samples=%d", (int)samples);
    if (!quality) add(&c, "--no-quality");
    add(&c, "--json");
    hone_status st = run(&child, &c, g->stop, err);
    if (st != HONE_OK) return st;
    json_t *suite = json_object_get(child.result, "records");
    if (json_is_array(suite)) json_array_foreach(suite, i, r) take(records, r, why, cap);
    else if (child.result) take(records, child.result, why, cap);
    if (json_array_size(records) == before) {
        if (!why[0]) hn_child_why(&child, why, cap);
        *exit_code = child.exit_code > 0 ? child.exit_code : 1;
    }
    hn_child_free(&child);
    return HONE_OK;
}

hone_status hn_gate_measure(json_t *records, const hn_gate_run *g, int32_t samples, bool quality, char *why, size_t cap, int *exit_code, hone_error *err)
{
    size_t i;
    json_t *id;
    bool plain = false, others = false;
    hone_status st = HONE_OK;
    why[0] = 0;
    *exit_code = 0;
    json_array_foreach(g->ids, i, id) {
        bool e2e = strcmp(json_string_value(id), "e2e") == 0;
        plain = plain || e2e;
        others = others || !e2e;
    }
    if (plain) st = measure(records, g, true, samples, quality, why, cap, exit_code, err);
    if (others && st == HONE_OK && *exit_code == 0) st = measure(records, g, false, samples, quality, why, cap, exit_code, err);
    return st;
}

void hn_gate_ids_differ(char *dst, size_t cap, json_t *was, json_t *is)
{
    json_t *a = json_object_get(json_array_get(json_object_get(was, "samples"), 0), "ids");
    json_t *b = json_object_get(json_array_get(json_object_get(is, "samples"), 0), "ids");
    dst[0] = 0;
    if (!json_is_array(a) || !json_is_array(b) || json_equal(a, b)) return;
    size_t i = 0;
    while (i < json_array_size(a) && json_equal(json_array_get(a, i), json_array_get(b, i))) i++;
    snprintf(dst, cap, "the timed processes generated other tokens than the baseline's, from token %zu on", i + 1);
}
