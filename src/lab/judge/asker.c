/* Questions, and the times of answers. Owns the conversation; refuses to believe a clock that is not its own. */
#define _GNU_SOURCE
#include "lab/judge/asker.h"

#include "base/json_tree.h"
#include "base/os.h"
#include "lab/bench/asked.h"
#include "lab/bench/sample.h"
#include "lab/machine/clock.h"
#include "lab/machine/memory.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

struct hn_asker {
    int32_t n_vocab;
    bool *usable; /* [n_vocab] */
};

hone_status hn_asker_new(hn_asker **out, const char *model, const char *pre, hone_error *err)
{
    const hone_model_params p = { .tokenizer_pre = pre, .packed = "off" };
    hone_model *m;
    hone_model_info info;
    *out = NULL;
    hone_status st = hone_model_open(&m, model, &p, err);
    if (st != HONE_OK) return st;
    hone_model_get_info(m, &info);
    hn_asker *a = calloc(1, sizeof *a);
    if (a) *a = (hn_asker){ .n_vocab = info.n_vocab, .usable = calloc((size_t)info.n_vocab, sizeof *a->usable) };
    if (a && a->usable) hn_bench_usable(a->usable, m);
    else st = HN_FAIL(err, HONE_E_NOMEM, "%d tokens of a vocabulary", info.n_vocab);
    hone_model_close(m);
    if (st == HONE_OK) *out = a;
    else hn_asker_free(a);
    return st;
}

void hn_asker_free(hn_asker *a)
{
    if (a) free(a->usable);
    free(a);
}

void hn_heard_free(hn_heard *h)
{
    json_decref(h->told);
    hn_process_free(&h->process);
    h->told = NULL;
}

/* ---- a conversation ---------------------------------------------------------------------------- */

/* The first reason stays. */
static void wrong(hn_heard *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void wrong(hn_heard *h, const char *fmt, ...)
{
    if (h->invalid[0]) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(h->invalid, sizeof h->invalid, fmt, ap);
    va_end(ap);
}

/* The value of --name=N that counts, the last; without one, def. */
static int32_t length_of(const char *const *argv, const char *name, int32_t def)
{
    const size_t n = strlen(name);
    for (; *argv; argv++)
        if (strncmp(*argv, name, n) == 0) def = (int32_t)strtol(*argv + n, NULL, 10);
    return def;
}

/* Its next line is "WORD ID": *id. False: it is another one, which is its last, or it has none more. */
static hone_status hear(bool *is, int32_t *id, uint64_t *at, hn_heard *h, hn_talk *t, const char *word, hone_error *err)
{
    char *line, *end;
    const size_t n = strlen(word);
    hone_status st = hn_talk_hear(t, &line, at, err);
    *is = false;
    if (st != HONE_OK || !line) return st;
    if (*line == '{') {
        if (!h->told) (void)hn_json_tree(&h->told, line, strlen(line), NULL, "the measured process", NULL);
        return HONE_OK;
    }
    const long v = strncmp(line, word, n) == 0 && line[n] == ' ' ? strtol(line + n + 1, &end, 10) : -2;
    *is = v >= -1 && v <= INT32_MAX && end != line + n + 1 && !*end;
    *id = (int32_t)v;
    if (!*is) wrong(h, "it said '%.40s', expected '%s' and a number", HN_ESC(line, strlen(line)), word);
    return HONE_OK;
}

static hone_status ask(hn_talk *t, const int32_t *ids, int32_t n, int32_t n_gen, hone_error *err)
{
    const hn_asked_head head = { n, n_gen };
    hone_status st = hn_talk_say(t, &head, sizeof head, err);
    return st == HONE_OK ? hn_talk_say(t, ids, (size_t)n * sizeof *ids, err) : st;
}

/* What it says last, unless it has said so already: JSON, and no word with a number. It waits for us then, and what it
 * holds is what it worked with. */
static hone_status hear_end(hn_heard *h, hn_talk *t, hone_error *err)
{
    bool is;
    int32_t id;
    uint64_t at;
    hone_status st = HONE_OK;
    if (!h->told && !h->invalid[0]) st = hear(&is, &id, &at, h, t, "{", err);
    hn_talk_look(t);
    const json_t *packed = json_object_get(json_object_get(h->told, "engine"), "packed");
    if (json_is_false(packed) && hn_memory_maps(t->pid, ".hpack"))
        wrong(h, "it says that it read plain weights, and has a packed file open");
    return st;
}

/* From its start to its last line. first, last: the ids that it said so, −2 where it said none. */
static hone_status converse(hn_heard *h, hn_talk *t, const int32_t *ids, int32_t *first, int32_t *last, hone_error *err)
{
    enum { SOON_MS = 12 };
    const int32_t n = h->n_prompt > 0 ? h->n_prompt : 1;
    uint64_t at, asked, first_at;
    bool is;
    int32_t unused;
    hone_status st = hear(&is, &unused, &at, h, t, "ready", err);
    if (st != HONE_OK || !is) return st;
    h->load_s = 1e-9 * (double)(at - t->from);
    hn_talk_look(t);
    if (h->depth > 0) {
        st = ask(t, ids, h->depth, HN_ASKED_FILL, err);
        if (st == HONE_OK) st = hear(&is, &unused, &at, h, t, "filled", err);
        if (st != HONE_OK || !is) return st;
    }
    asked = hn_clock_ns(); /* from here to its last token nothing is left out */
    const uint64_t cpu = hn_os_process_cpu_ns(t->pid);
    t->soon_ms = 1 + (int32_t)(hn_rand64(asked, 0) % SOON_MS);
    st = ask(t, ids + h->depth, n, h->n_gen, err);
    if (st == HONE_OK) st = hear(&is, first, &first_at, h, t, "first", err);
    if (st != HONE_OK || !is) return st;
    const uint64_t first_cpu = t->cpu_ns;
    if (h->n_prompt > 0) h->prompt_s = 1e-9 * (double)(first_at - asked);
    if (cpu && first_cpu >= cpu) h->prompt_cpu_s = 1e-9 * (double)(first_cpu - cpu);
    if (h->n_gen > 1) {
        st = hear(&is, last, &at, h, t, "last", err);
        if (st != HONE_OK || !is) return st;
        h->gen_s = 1e-9 * (double)(at - first_at);
        if (cpu && t->cpu_ns >= cpu) h->all_cpu_s = 1e-9 * (double)(t->cpu_ns - cpu);
    }
    return hear_end(h, t, err);
}

/* ---- what was said ------------------------------------------------------------------------------- */

/* Is its last line that of an answer to what was asked: ids, positions, steps, and the words before it? */
static void check(hn_heard *h, int32_t first, int32_t last)
{
    json_t *ids = json_object_get(h->told, "ids"), *proof = json_object_get(h->told, "proof");
    const char *why = json_string_value(json_object_get(h->told, "invalid_reason"));
    const int32_t n = (int32_t)json_array_size(ids);
    int64_t positions = json_integer_value(json_object_get(h->told, "positions")),
            steps = json_integer_value(json_object_get(proof, "steps")), least = h->n_gen > 0 ? h->n_gen : 1,
            expected = (int64_t)h->depth + (h->n_prompt > 0 ? h->n_prompt : 1) + (h->n_gen > 0 ? h->n_gen - 1 : 0);
    if (why) {
        wrong(h, "%.300s", why);
        return;
    }
    if (n != h->n_gen) wrong(h, "%d tokens were generated, %d were asked for", n, h->n_gen);
    if (steps != least) wrong(h, "logits of %" PRId64 " steps are proved, expected %" PRId64, steps, least);
    if (positions != expected)
        wrong(h, "the sequence holds %" PRId64 " positions at the end, expected %" PRId64, positions, expected);
    if (h->n_gen > 0 && first != json_integer_value(json_array_get(ids, 0)))
        wrong(h, "it said that token %d was the first, and then that it was %d", first,
              (int)json_integer_value(json_array_get(ids, 0)));
    if (h->n_gen > 1 && last != json_integer_value(json_array_get(ids, (size_t)n - 1)))
        wrong(h, "it said that token %d was the last, and then that it was %d", last,
              (int)json_integer_value(json_array_get(ids, (size_t)n - 1)));
    bool constant = n >= HN_Q_STEPS / 4;
    for (int32_t i = 1; i < n; i++)
        constant = constant && json_equal(json_array_get(ids, (size_t)i), json_array_get(ids, 0));
    if (constant) wrong(h, "degenerate output: one token repeated through the whole generation");
}

/* More CPU time than the threads that were asked for can have had: it has others. Where it begins the process waits, so
 * that all that it had before is booked, and where it ends CPU time is read before the clock: nothing but other threads
 * makes it more. */
static void few_threads(hn_heard *h, const char *what, double cpu_s, double wall_s, int32_t threads)
{
    const double share = 0.02, slack_s = 0.001;
    if (threads > 0 && cpu_s > (1 + share) * threads * wall_s + slack_s)
        wrong(h, "the %s took %.4f s of CPU time in %.4f s, more than the %d thread%s that it was asked to have", what,
              cpu_s, wall_s, threads, threads == 1 ? "" : "s");
}

hone_status hn_asker_run(hn_heard *out, const hn_asker *a, const hn_ask_run *q, hone_error *err)
{
    hn_talk t;
    int32_t first = -2, last = -2;
    const hn_process_params p = { .argv = q->argv, .env = q->env, .stop = q->stop };
    *out = (hn_heard){ .n_prompt = length_of(q->argv, "--n-prompt=", 512),
                       .n_gen = length_of(q->argv, "--n-gen=", 64),
                       .depth = length_of(q->argv, "--depth=", 0),
                       .load_s = NAN,
                       .prompt_s = NAN,
                       .prompt_cpu_s = NAN,
                       .all_cpu_s = NAN,
                       .gen_s = NAN };
    const int32_t n = out->depth + (out->n_prompt > 0 ? out->n_prompt : 1);
    int32_t *ids = calloc((size_t)n, sizeof *ids);
    if (!ids) return HN_FAIL(err, HONE_E_NOMEM, "a prompt of %d ids", n);
    hn_bench_ids_of(ids, n, 0, q->question, a->usable, a->n_vocab);
    hone_status st = hn_talk_start(&t, &p, err), ended = HONE_OK;
    if (st == HONE_OK) {
        st = converse(out, &t, ids, &first, &last, err);
        out->anon_mb = (double)t.anon / 1e6;
        out->n_children = t.n_children;
        ended = hn_talk_end(&t, &out->process, st == HONE_OK ? err : NULL);
    }
    free(ids);
    if (st == HONE_OK) st = ended;
    if (st == HONE_OK && out->process.exit_code == 0 && !out->told) wrong(out, "it did not say what it answered");
    if (st == HONE_OK && out->told) check(out, first, last);
    const int32_t t1 = length_of(q->argv, "--threads=", 0), t2 = length_of(q->argv, "--threads-batch=", t1),
                  threads = t1 > t2 ? t1 : t2; /* it goes on while the first token is on its way */
    few_threads(out, "prompt", out->prompt_cpu_s, out->prompt_s, t1 ? threads : 0);
    few_threads(out, "prompt and generation", out->all_cpu_s, out->prompt_s + out->gen_s, t1 ? threads : 0);
    if (st != HONE_OK) hn_heard_free(out);
    return st;
}
