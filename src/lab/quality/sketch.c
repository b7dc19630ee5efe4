/* Answers kept with a sketch of their logits: two of them can be compared later, without the
 * models. Owns the file and what may be said from 64 logits of each step. */
#include "lab/record/record_read.h"
#include "base/json_tree.h"
#include "lab/quality/sketch.h"
#include "lab/quality/paths.h"
#include "lab/quality/perplexity.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"
#include "base/file.h"

#include <math.h>
#include <errno.h>
#include <stdlib.h>

#define ANSWERS_SCHEMA "hone.answers/1"

/* ---- making ---------------------------------------------------------------------------------- */

typedef struct watching {
    const hn_logits_source *src;
    hn_answers *out;
    int32_t step[HN_Q_PROMPTS];
} watching;

/* The n greatest of x, ties to the lowest id, in descending order. */
static void greatest(int32_t *ids, float *logits, int32_t n, const float *x, int32_t n_vocab)
{
    int32_t have = 0;
    for (int32_t i = 0; i < n_vocab; i++) {
        if (have == n && !(x[i] > logits[n - 1])) continue;
        int32_t k = have < n ? have++ : n - 1;
        for (; k > 0 && x[i] > logits[k - 1]; k--) {
            ids[k] = ids[k - 1];
            logits[k] = logits[k - 1];
        }
        ids[k] = i;
        logits[k] = x[i];
    }
}

static hone_status watch(void *arg, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err)
{
    watching *w = arg;
    hone_status st = w->src->run(w->src->arg, tokens, n_tok, logits, err);
    int32_t row = 0;
    for (int32_t i = 0; i < n_tok && st == HONE_OK; i++) {
        if (!tokens[i].want_logits) continue;
        int32_t p = tokens[i].seq, k = w->step[p]++;
        const float *x = logits + (size_t)row++ * (size_t)w->src->n_vocab;
        if (k >= HN_Q_STEPS) continue;
        hn_sketch_step *s = &w->out->step[p][k];
        s->lse = hn_log_sum_exp(x, w->src->n_vocab);
        if (isfinite(s->lse)) greatest(s->ids, s->logits, w->out->n_top, x, w->src->n_vocab);
    }
    return st;
}

hone_status hn_answers_run(hn_answers *out, const hn_logits_source *src, const hn_q_prompts *p, hone_error *err)
{
    memset(out, 0, sizeof *out);
    out->from_text = p->from_text;
    out->n_vocab = src->n_vocab;
    out->n_top = src->n_vocab < HN_SKETCH_TOP ? src->n_vocab : HN_SKETCH_TOP;
    watching w = { .src = src, .out = out };
    hn_logits_source watched = { .n_vocab = src->n_vocab, .run = watch, .arg = &w };
    return hn_quality_run(&out->q, &watched, p, true, HN_Q_STEPS, err);
}

/* ---- file ---------------------------------------------------------------------------------------- */

static json_t *sketch_json(const hn_answers *a)
{
    json_t *steps = json_array();
    for (int p = 0; p < HN_Q_PROMPTS; p++)
        for (int k = 0; k < HN_Q_STEPS; k++) {
            const hn_sketch_step *s = &a->step[p][k];
            json_t *ids = json_array(), *logits = json_array();
            for (int i = 0; i < a->n_top; i++) {
                json_array_append_new(ids, json_integer(s->ids[i]));
                json_array_append_new(logits, json_real((double)s->logits[i]));
            }
            json_array_append_new(steps, json_pack("{s:f, s:o, s:o}", "lse", s->lse, "ids", ids, "logits", logits));
        }
    return steps;
}

void hn_answers_free(hn_answers *a)
{
    json_decref(a->model);
    json_decref(a->config);
    json_decref(a->covers);
    a->model = a->config = a->covers = NULL;
}

json_t *hn_answers_json(const hn_answers *a, bool with_sketch)
{
    char vocab[65];
    hn_hex(vocab, a->vocab, 32);
    json_t *o = json_pack("{s:s}", "schema", ANSWERS_SCHEMA), *q = hn_quality_json(&a->q, a->from_text);
    json_object_update(o, q);
    json_decref(q);
    json_object_set_new(o, "full", a->full[0] ? hn_lab_str(a->full) : json_null());
    json_object_set_new(o, "outer", hn_outer_json(&a->outer));
    json_object_set_new(o, "covers", a->covers ? json_incref(a->covers) : json_null());
    json_object_set_new(o, "label", hn_lab_str(a->label));
    json_object_set_new(o, "n_vocab", json_integer(a->n_vocab));
    json_object_set_new(o, "vocab_sha256", json_string(vocab));
    if (!with_sketch) return o;
    json_object_set_new(o, "model", a->model ? json_incref(a->model) : json_null());
    json_object_set_new(o, "config", a->config ? json_incref(a->config) : json_null());
    json_object_set_new(o, "sketch", a->q.hash[0] ? sketch_json(a) : json_null());
    return o;
}

hone_status hn_answers_save(const hn_answers *a, const char *path, hone_error *err)
{
    json_t *o = hn_answers_json(a, true);
    /* 17 digits: every float and double comes back as it was */
    char *text = o ? hn_json_text(o, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(o);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "the answers as text");
    hone_status st = hn_file_replace(path, text, strlen(text), err);
    free(text);
    return st;
}

bool hn_answers_is_file(const char *path)
{
    char b[4] = "";
    FILE *f = fopen(path, "rbe");
    bool is = f && fread(b, 1, 1, f) == 1 && b[0] == '{'; /* a model begins with GGUF */
    if (f) fclose(f);
    return is;
}

#define BAD(...) HN_FAIL(err, HONE_E_FORMAT, __VA_ARGS__)

static bool read_id(int32_t *out, json_t *v, int32_t n_vocab)
{
    json_int_t x = json_integer_value(v);
    *out = (int32_t)x;
    return json_is_integer(v) && x >= 0 && x < n_vocab;
}

enum { MAX_ANSWERS = 256 << 20 }; /* bytes; 512 steps of HN_SKETCH_TOP logits are a hundredth of it */

static hone_status read_steps(hn_answers *a, json_t *o, const char *name, hone_error *err)
{
    json_t *prompts = json_object_get(o, "ids"), *steps = json_object_get(o, "sketch");
    if (json_array_size(prompts) != HN_Q_PROMPTS || json_array_size(steps) != (size_t)HN_Q_PROMPTS * HN_Q_STEPS)
        return BAD("%s: %zu prompts and %zu steps, expected %d and %d", name, json_array_size(prompts),
                   json_array_size(steps), HN_Q_PROMPTS, HN_Q_PROMPTS * HN_Q_STEPS);
    for (size_t p = 0; p < HN_Q_PROMPTS; p++)
        for (size_t k = 0; k < HN_Q_STEPS; k++) {
            json_t *s = json_array_get(steps, p * HN_Q_STEPS + k), *ids = json_object_get(s, "ids"),
                   *logits = json_object_get(s, "logits");
            hn_sketch_step *to = &a->step[p][k];
            to->lse = json_number_value(json_object_get(s, "lse"));
            bool ok = read_id(&a->q.ids[p][k], json_array_get(json_array_get(prompts, p), k), a->n_vocab) &&
                      json_is_number(json_object_get(s, "lse")) && json_array_size(ids) == (size_t)a->n_top &&
                      json_array_size(logits) == (size_t)a->n_top;
            for (size_t i = 0; i < (size_t)a->n_top && ok; i++) {
                ok = read_id(&to->ids[i], json_array_get(ids, i), a->n_vocab) &&
                     json_is_number(json_array_get(logits, i));
                to->logits[i] = (float)json_number_value(json_array_get(logits, i));
            }
            if (!ok || to->ids[0] != a->q.ids[p][k])
                return BAD("%s: prompt %zu, step %zu contradicts itself", name, p, k);
        }
    return HONE_OK;
}

hone_status hn_answers_load(hn_answers *a, const char *path, hone_error *err)
{
    json_t *o;
    const char *name = HN_ESC(path, strlen(path));
    memset(a, 0, sizeof *a);
    hone_status st =
        hn_json_tree_file(&o, path, &(hn_json_rules){ .max_bytes = MAX_ANSWERS, .flags = HN_JSON_UNIQUE }, err);
    if (st != HONE_OK) return st;
    char why[500];
    const char *schema = json_string_value(json_object_get(o, "schema")),
               *hash = json_string_value(json_object_get(o, "hash"));
    const char *vocab = json_string_value(json_object_get(o, "vocab_sha256")),
               *label = json_string_value(json_object_get(o, "label"));
    const char *prompts = json_string_value(json_object_get(o, "prompts")),
               *reason = json_string_value(json_object_get(o, "reason"));
    json_int_t n_vocab = json_integer_value(json_object_get(o, "n_vocab"));
    if (!schema || strcmp(schema, ANSWERS_SCHEMA) != 0)
        st = BAD("%s: not answers saved by hone lab quality hash (schema %s)", name, schema ? schema : "missing");
    else if (!hn_shape_fits(o, hn_shape_answers, why, sizeof why)) st = BAD("%s: %s", name, why);
    else if (!hash || strlen(hash) >= sizeof a->q.hash || strncmp(hash, "q1-", 3) != 0)
        st = BAD("%s: no hash of the kind q1: %s", name, reason ? reason : "it is missing");
    if (st == HONE_OK) {
        for (int i = 0; i < 32; i++) {
            unsigned v = 0;
            if (sscanf(vocab + 2 * i, "%2x", &v) != 1) st = BAD("%s: vocab_sha256 is no hexadecimal number", name);
            a->vocab[i] = (unsigned char)v;
        }
        a->n_vocab = (int32_t)n_vocab;
        a->n_top = a->n_vocab < HN_SKETCH_TOP ? a->n_vocab : HN_SKETCH_TOP;
        a->from_text = strcmp(prompts, "text") == 0;
        a->q.n_steps = HN_Q_STEPS;
        a->q.n_distinct = (int32_t)json_integer_value(json_object_get(o, "distinct"));
        a->q.verdict.state = json_is_true(json_object_get(o, "valid")) ? HN_VALID : HN_INVALID;
        snprintf(a->q.verdict.reason, sizeof a->q.verdict.reason, "%s", reason ? reason : "");
        snprintf(a->q.hash, sizeof a->q.hash, "%s", hash);
        snprintf(a->full, sizeof a->full, "%.23s", hn_json_text_of(o, "full"));
        hn_outer_read(&a->outer, json_object_get(o, "outer"));
        snprintf(a->label, sizeof a->label, "%s", label ? label : "");
    }
    if (st == HONE_OK) st = read_steps(a, o, name, err);
    if (st == HONE_OK) {
        json_t *model = json_object_get(o, "model"), *config = json_object_get(o, "config"),
               *covers = json_object_get(o, "covers");
        if (json_is_object(covers)) a->covers = json_incref(covers);
        if (json_is_object(model)) a->model = json_incref(model);
        if (json_is_object(config)) a->config = json_incref(config);
    }
    json_decref(o);
    return st;
}

/* ---- comparing --------------------------------------------------------------------------------------- */

static int32_t place_of(const hn_sketch_step *s, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (s->ids[i] == id) return i;
    return -1;
}

static void compare_step(hn_answers_diff *d, const hn_sketch_step *a, const hn_sketch_step *b, int32_t n,
                         int32_t prompt, int32_t step)
{
    double kl = 0, left_a = 1, left_b = 1;
    for (int32_t i = 0; i < n; i++) {
        int32_t k = place_of(b, n, a->ids[i]);
        if (k < 0) continue;
        double la = a->logits[i], lb = b->logits[k], pa = exp(la - a->lse), pb = exp(lb - b->lse),
               dlogp = fabs(la - a->lse - (lb - b->lse));
        d->max_dlogit = fmax(d->max_dlogit, fabs(la - lb));
        d->max_dp = fmax(d->max_dp, fabs(pa - pb));
        if (dlogp > d->max_dlogp) d->max_dlogp = dlogp, d->at_prompt = prompt, d->at_step = step;
        kl += pa * (la - a->lse - (lb - b->lse));
        left_a -= pa;
        left_b -= pb;
    }
    /* the ids that are not in both, taken together, can only hide divergence */
    const double rounding = 1e-9;
    if (left_a > rounding) kl += left_a * log(left_a / fmax(left_b, rounding));
    kl = fmax(kl, 0);
    d->kl_mean += kl;
    d->kl_max = fmax(d->kl_max, kl);
    d->n_steps++;
}

hone_status hn_answers_compare(hn_answers_diff *d, const hn_answers *a, const hn_answers *b, hone_error *err)
{
    static const unsigned char none[32];
    *d = (hn_answers_diff){ .prompt = -1, .step = -1, .id_a = -1, .id_b = -1 };
    if (a->n_vocab != b->n_vocab)
        return HN_FAIL(err, HONE_E_ARG, "different vocabularies, of %d and %d tokens: nothing to compare", a->n_vocab,
                       b->n_vocab);
    if (a->from_text != b->from_text)
        return HN_FAIL(err, HONE_E_ARG, "one was asked texts, the other pseudo-random ids: nothing to compare");
    if (memcmp(a->vocab, b->vocab, 32) != 0 && memcmp(a->vocab, none, 32) != 0 && memcmp(b->vocab, none, 32) != 0)
        return HN_FAIL(err, HONE_E_ARG, "different vocabularies of %d tokens: ids do not mean the same", a->n_vocab);
    if (!a->q.hash[0] || !b->q.hash[0])
        return HN_FAIL(err, HONE_E_NUMERIC, "%s", !a->q.hash[0] ? a->q.verdict.reason : b->q.verdict.reason);
    for (int p = 0; p < HN_Q_PROMPTS; p++) {
        int k = 0;
        while (k < HN_Q_STEPS && a->q.ids[p][k] == b->q.ids[p][k]) k++;
        if (k < HN_Q_STEPS && d->n_diverged++ == 0)
            d->prompt = p, d->step = k, d->id_a = a->q.ids[p][k], d->id_b = b->q.ids[p][k];
        for (int s = 0; s < HN_Q_STEPS && s <= k; s++) compare_step(d, &a->step[p][s], &b->step[p][s], a->n_top, p, s);
    }
    d->kl_mean /= d->n_steps;
    d->what = d->n_diverged ? HN_DIFFERENT : strcmp(a->q.hash, b->q.hash) != 0 ? HN_NUMERICS : HN_SAME;
    bool moved = hn_q_same_kind(a->full, b->full) && strcmp(a->full, b->full) != 0,
         alike = !moved || hn_q_same_answers(a->full, b->full);
    d->beyond = moved && d->what != HN_DIFFERENT && (d->what == HN_SAME || !alike);
    if (d->beyond) d->what = alike ? HN_NUMERICS : HN_DIFFERENT;
    d->outer = d->what == HN_SAME ? hn_outer_name(hn_outer_of(&a->outer, &b->outer)) : NULL;
    if (d->outer) d->what = HN_DIFFERENT;
    return HONE_OK;
}

json_t *hn_answers_diff_json(const hn_answers_diff *d)
{
    static const char *const words[] = { "same", "numerics", "different" };
    json_t *first = d->n_diverged ? json_pack("{s:i, s:i, s:i, s:i}", "prompt", (int)d->prompt, "step", (int)d->step,
                                              "id_reference", (int)d->id_a, "id_new", (int)d->id_b)
                                  : json_null();
    return json_pack("{s:s, s:i, s:o, s:i, s:o, s:o, s:o, s:i, s:i, s:o, s:o}", "verdict", words[d->what],
                     "prompts_diverged", (int)d->n_diverged, "first_divergence", first, "steps_compared",
                     (int)d->n_steps, "max_dlogit", hn_lab_num(d->max_dlogit), "max_dlogp", hn_lab_num(d->max_dlogp),
                     "max_dp", hn_lab_num(d->max_dp), "at_prompt", (int)d->at_prompt, "at_step", (int)d->at_step,
                     "kl_at_least_mean", hn_lab_num(d->kl_mean), "kl_at_least_max", hn_lab_num(d->kl_max));
}

double hn_id_similarity(const int32_t *a, int32_t n_a, const int32_t *b, int32_t n_b)
{
    int32_t longest = n_a > n_b ? n_a : n_b;
    int32_t *row = malloc(((size_t)n_b + 1) * sizeof *row);
    if (!row) return NAN;
    for (int32_t j = 0; j <= n_b; j++) row[j] = j;
    for (int32_t i = 1; i <= n_a; i++) {
        int32_t diagonal = row[0];
        row[0] = i;
        for (int32_t j = 1; j <= n_b; j++) {
            int32_t least = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < least) least = row[j] + 1;
            if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = least;
        }
    }
    double d = row[n_b];
    free(row);
    return longest ? 1 - d / longest : 1;
}
