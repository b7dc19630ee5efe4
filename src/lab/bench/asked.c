/* The process that is asked. Owns the order of what it says; refuses to look at a clock. */
#define _GNU_SOURCE
#include "lab/bench/asked.h"

#include "lab/quality/proof.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct answer {
    hone_session *s;
    int out;
    int32_t n_vocab, n_ids;
    int32_t *ids; /* generated */
    hn_proof proof;
    hn_verdict verdict;
} answer;

/* All of it, or false: it ended before. */
static bool read_all(int fd, void *dst, size_t n)
{
    char *p = dst;
    while (n) {
        ssize_t k = read(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

static hone_status read_ids(int32_t **ids, const hn_asked_head *head, int in, int32_t most, hone_error *err)
{
    *ids = NULL;
    if (head->n < 1 || head->n > most || head->n_gen < HN_ASKED_FILL || head->n_gen > most)
        return HN_FAIL(err, HONE_E_FORMAT, "asked for %d tokens behind %d ids; expected at most %d positions",
                       head->n_gen, head->n, most);
    *ids = calloc((size_t)head->n, sizeof **ids);
    if (!*ids) return HN_FAIL(err, HONE_E_NOMEM, "%d ids", head->n);
    if (read_all(in, *ids, (size_t)head->n * sizeof **ids)) return HONE_OK;
    free(*ids);
    *ids = NULL;
    return HN_FAIL(err, HONE_E_FORMAT, "a question of %d ids ends too soon", head->n);
}

static hone_status say(const answer *a, const char *word, int32_t id, hone_error *err)
{
    char line[40];
    int n = snprintf(line, sizeof line, "%s %d\n", word, (int)id);
    return write(a->out, line, (size_t)n) == n ? HONE_OK : HN_FAIL(err, HONE_E_IO, "nobody hears: %s", strerror(errno));
}

/* The id of the next step; −1 with a verdict. What the step proves is taken where the clock runs: it is little beside
 * the step, and the same on every side. */
static int32_t step(answer *a, const float *logits, bool wanted)
{
    hn_logit_scan r = hn_scan_logits(logits, a->n_vocab);
    if (!r.finite) hn_invalid(&a->verdict, "generated token %d: the logits hold a NaN or an infinity", a->n_ids);
    else if (r.all_equal)
        hn_invalid(&a->verdict, "generated token %d: all %d logits are equal (%g)", a->n_ids, a->n_vocab, logits[0]);
    if (r.best >= 0 && wanted) a->ids[a->n_ids++] = r.best;
    return r.best;
}

static hone_status answer_prompt(answer *a, const int32_t *prompt, const hn_asked_head *head, hone_error *err)
{
    const float *logits;
    hn_proof_begin(&a->proof, head->n_gen);
    hone_status st = hone_append(a->s, 0, prompt, head->n, &logits, err);
    if (st != HONE_OK) return st;
    int32_t id = step(a, logits, head->n_gen > 0);
    if ((st = say(a, "first", id, err)) != HONE_OK || id < 0) return st;
    hn_proof_step(&a->proof, logits, a->n_vocab, head->n_gen > 0 ? id : -1);
    if (head->n_gen <= 1) return HONE_OK;
    while (a->n_ids < head->n_gen && id >= 0) {
        if ((st = hone_append(a->s, 0, &id, 1, &logits, err)) != HONE_OK) return st;
        if ((id = step(a, logits, true)) >= 0) hn_proof_step(&a->proof, logits, a->n_vocab, id);
    }
    return say(a, "last", id, err);
}

static json_t *result_of(const answer *a)
{
    json_t *o = json_object(), *ids = json_array();
    for (int32_t i = 0; i < a->n_ids; i++) json_array_append_new(ids, json_integer(a->ids[i]));
    json_object_set_new(o, "ids", ids);
    json_object_set_new(o, "positions", json_integer(hone_seq_length(a->s, 0)));
    json_object_set_new(o, "proof", hn_proof_json(&a->proof));
    json_object_set_new(o, "invalid_reason",
                        a->verdict.state == HN_INVALID ? hn_lab_str(a->verdict.reason) : json_null());
    return o;
}

hone_status hn_asked_answer(json_t **result, hone_session *s, const hone_model *m, int in, int out, hone_error *err)
{
    const int32_t most = hone_session_n_ctx(s);
    hone_model_info info;
    hone_model_get_info(m, &info);
    answer a = { .s = s, .out = out, .n_vocab = info.n_vocab };
    hone_status st = say(&a, "ready", info.n_vocab, err);
    *result = NULL;
    for (bool done = false; st == HONE_OK && !done;) {
        hn_asked_head head;
        int32_t *ids;
        const float *unused;
        if (!read_all(in, &head, sizeof head)) st = HN_FAIL(err, HONE_E_FORMAT, "nobody asks");
        if (st == HONE_OK) st = read_ids(&ids, &head, in, most, err);
        if (st != HONE_OK) break;
        done = head.n_gen != HN_ASKED_FILL;
        if (done && !(a.ids = calloc((size_t)head.n_gen + 1, sizeof *a.ids)))
            st = HN_FAIL(err, HONE_E_NOMEM, "%d generated ids", head.n_gen);
        if (st == HONE_OK)
            st = done ? answer_prompt(&a, ids, &head, err) : hone_append(s, 0, ids, head.n, &unused, err);
        if (st == HONE_OK && !done) st = say(&a, "filled", head.n, err);
        free(ids);
    }
    if (st == HONE_E_NUMERIC) { /* a verdict, not a failure */
        hn_invalid(&a.verdict, "%s", err ? err->message : "not a number");
        st = HONE_OK;
    }
    if (st == HONE_OK) *result = result_of(&a);
    free(a.ids);
    return st;
}
