/* Builds that lie to who asks them (lab/bench/asked.h), in what they say and when. */
#include "mutants.h"
#include "others.h"

#include "lab/bench/asked.h"
#include "lab/quality/proof.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(int out, const char *word, int32_t id)
{
    char line[40];
    int n = snprintf(line, sizeof line, "%s %d\n", word, (int)id);
    if (write(out, line, (size_t)n) != n) abort();
}

static void hear(int in, void *dst, size_t n)
{
    for (char *p = dst; n;) {
        ssize_t k = read(in, p, n);
        if (k <= 0) abort();
        p += k;
        n -= (size_t)k;
    }
}

/* asked-first-late: the first token is told with the last. asked-first-early: one is told before there is any.
 * asked-half: half of the tokens are generated, and the others told. asked-tells-half: half of them are told. */
static json_t *lie(hone_session *s, int in, int out)
{
    hn_asked_head head;
    const float *logits;
    hn_proof proof;
    say(out, "ready", mt_n_vocab);
    hear(in, &head, sizeof head);
    int32_t *prompt = calloc((size_t)head.n, sizeof *prompt), n = 0, id = 1,
            made = mt_is("asked-half") || mt_is("asked-tells-half") ? head.n_gen / 2 : head.n_gen;
    if (!prompt) abort();
    hear(in, prompt, (size_t)head.n * sizeof *prompt);
    json_t *ids = json_array(), *o = json_object();
    if (mt_is("asked-first-early")) say(out, "first", prompt[0]);
    hn_proof_begin(&proof, head.n_gen);
    for (; n < made; n++) {
        if (hone_append(s, 0, n ? &id : prompt, n ? 1 : head.n, &logits, NULL) != HONE_OK) abort();
        id = hn_scan_logits(logits, mt_n_vocab).best;
        if (n == 0 && !mt_is("asked-first-late") && !mt_is("asked-first-early")) say(out, "first", id);
        json_array_append_new(ids, json_integer(id));
        hn_proof_step(&proof, logits, mt_n_vocab, id);
    }
    for (; mt_is("asked-half") && n < head.n_gen; n++) json_array_append(ids, json_array_get(ids, (size_t)n / 2));
    if (mt_is("asked-half")) proof.n_steps = head.n_gen;
    if (mt_is("asked-first-late")) say(out, "first", (int32_t)json_integer_value(json_array_get(ids, 0)));
    say(out, "last", (int32_t)json_integer_value(json_array_get(ids, json_array_size(ids) - 1)));
    json_object_set_new(o, "ids", ids);
    json_object_set_new(o, "positions", json_integer(head.n + head.n_gen - 1));
    json_object_set_new(o, "proof", hn_proof_json(&proof));
    free(prompt);
    return o;
}

/* packed-untold: weights are plain, it says. */
void __real_hone_model_get_info(const hone_model *m, hone_model_info *out);
void __wrap_hone_model_get_info(const hone_model *m, hone_model_info *out);
void __wrap_hone_model_get_info(const hone_model *m, hone_model_info *out)
{
    __real_hone_model_get_info(m, out);
    if (mt_is("packed-untold") && mo_argv_is(2, "_asked")) out->packed_path = NULL;
}

hone_status __real_hn_asked_answer(json_t **result, hone_session *s, const hone_model *m, int in, int out,
                                   hone_error *err);
hone_status __wrap_hn_asked_answer(json_t **result, hone_session *s, const hone_model *m, int in, int out,
                                   hone_error *err);
hone_status __wrap_hn_asked_answer(json_t **result, hone_session *s, const hone_model *m, int in, int out,
                                   hone_error *err)
{
    hone_status st = HONE_OK;
    mt_at.sample = true;
    ml_begin();
    if (mt_is("asked-first-late") || mt_is("asked-first-early") || mt_is("asked-half") || mt_is("asked-tells-half"))
        *result = lie(s, in, out);
    else st = __real_hn_asked_answer(result, s, m, in, out, err);
    if (st == HONE_OK && (mt_is("no-proof") || mt_is("asked-silent"))) json_object_del(*result, "proof");
    json_t *proof = st == HONE_OK ? json_object_get(*result, "proof") : NULL;
    if (mt_is("proof-part")) json_object_del(proof, "ids"), json_object_del(proof, "last");
    if (mt_is("asked-silent")) json_object_del(*result, "ids");
    ml_end();
    return st;
}
