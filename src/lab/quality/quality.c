/* The quality hash and what makes an output degenerate. Owns the eight prompts and the
 * meaning of q1; refuses to know speeds. Anything here that changes the bytes hashed
 * needs a new prefix, here and in paths.c. */
#include "lab/quality/quality.h"
#include "lab/quality/sketch.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "L hashes logits as they lie in memory");

/* Fixed for ever: prose, a question, C, Python, JSON, numbers, other scripts, a list. */
const char *const hn_q_texts[HN_Q_PROMPTS] = {
    "Once upon a time there was a little boat that was afraid of deep water. One morning",
    "Question: Why does a kettle begin to sing a while before it boils?\nAnswer:",
    "/* Length of the longest run of equal bytes. */\nsize_t longest_run(const unsigned char *p, size_t n)\n{\n",
    "def moving_average(values, width):\n    \"\"\"Mean of the last `width` values, for each place.\"\"\"\n",
    "{\"order\": 1047, \"items\": [{\"name\": \"lamp\", \"price\": 39.5}, {\"name\": \"chair\",",
    "2 3 5 7 11 13 17 19 23 29 31 37 41 43 47 53 59 61 67",
    "Der Zug fährt um acht Uhr ab. Le train part à huit heures. 火车八点出发。Поезд отправляется",
    "Things to check before a measurement:\n1. nothing else is running\n2. the file is in memory\n3.",
};

static const int kept_steps[] = { 0, 1, 16, 63 }; /* steps whose logits L covers */
enum { N_KEPT = sizeof kept_steps / sizeof *kept_steps };

/* The fixed ids for a model without tokenizer: 16 per prompt, of one stream. */
void hn_q_prompts_random(hn_q_prompts *out, int32_t n_vocab)
{
    enum { LENGTH = 16 };
    *out = (hn_q_prompts){ .from_text = false };
    for (int p = 0; p < HN_Q_PROMPTS; p++) {
        out->n[p] = LENGTH;
        for (int i = 0; i < LENGTH; i++)
            out->ids[p][i] = (int32_t)(hn_rand64(0x71317131u, (uint64_t)(p * LENGTH + i)) % (uint64_t)n_vocab);
    }
}

hone_status hn_q_prompts_make(hn_q_prompts *out, const hone_model *m, hone_error *err)
{
    hone_model_info info;
    hone_model_get_info(m, &info);
    *out = (hn_q_prompts){ .from_text = info.has_tokenizer };
    for (int p = 0; p < HN_Q_PROMPTS && out->from_text; p++) {
        int32_t *ids;
        size_t n;
        hone_status st = hone_tokenize(m, hn_q_texts[p], strlen(hn_q_texts[p]), HONE_TOK_ADD, &ids, &n, err);
        if (st != HONE_OK) return st;
        if (n > HN_Q_MAX_PROMPT) n = HN_Q_MAX_PROMPT;
        if (n) memcpy(out->ids[p], ids, n * sizeof *ids);
        out->n[p] = (int32_t)n;
        out->from_text = n > 0;
        hone_free(ids);
    }
    if (!out->from_text) hn_q_prompts_random(out, info.n_vocab);
    return HONE_OK;
}

/* Maxima per lane, so that the compiler may use vectors and the loop costs little
 * beside the model: it is part of the measured decode step. */
hn_logit_scan hn_scan_logits(const float *x, int32_t n)
{
    enum { LANES = 16 };
    hn_logit_scan r = { .best = -1 };
    if (n < 1) return r;
    float hi[LANES], lo[LANES], bad[LANES]; /* v * 0 is NaN exactly for a NaN or an infinity */
    for (int l = 0; l < LANES; l++) hi[l] = lo[l] = x[0], bad[l] = 0;
    int32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            float v = x[i + l];
            hi[l] = v > hi[l] ? v : hi[l];
            lo[l] = v < lo[l] ? v : lo[l];
            bad[l] += v * 0.0f;
        }
    for (; i < n; i++) {
        hi[0] = x[i] > hi[0] ? x[i] : hi[0];
        lo[0] = x[i] < lo[0] ? x[i] : lo[0];
        bad[0] += x[i] * 0.0f;
    }
    for (int l = 1; l < LANES; l++) {
        hi[0] = hi[l] > hi[0] ? hi[l] : hi[0];
        lo[0] = lo[l] < lo[0] ? lo[l] : lo[0];
        bad[0] += bad[l];
    }
    r.finite = bad[0] == 0;
    if (!r.finite) return r;
    r.all_equal = n > 1 && hi[0] == lo[0];
    for (i = 0; x[i] != hi[0];) i++;
    r.best = i;
    return r;
}

/* ---- the run ------------------------------------------------------------------------------ */

typedef struct run {
    hn_quality *q;
    const hn_logits_source *src;
    const hn_q_prompts *p;
    float *logits; /* [prompts of this call, n_vocab] */
    float *kept;   /* [HN_Q_PROMPTS, N_KEPT, n_vocab] */
    int32_t n_steps;
} run;

/* Takes the logits of step `step` of prompt ip. False: not finite, the run is over. */
static bool take(run *r, int ip, int step, const float *row)
{
    int32_t nv = r->src->n_vocab;
    hn_logit_scan s = hn_scan_logits(row, nv);
    if (!s.finite) {
        hn_invalid(&r->q->verdict, "quality prompt %d, step %d: the logits hold a NaN or an infinity", ip, step);
        return false;
    }
    if (s.all_equal)
        hn_invalid(&r->q->verdict, "quality prompt %d, step %d: all %d logits are equal (%g)", ip, step, nv, row[0]);
    r->q->ids[ip][step] = s.best;
    for (int k = 0; k < N_KEPT; k++)
        if (kept_steps[k] == step)
            memcpy(r->kept + ((size_t)ip * N_KEPT + (size_t)k) * (size_t)nv, row, (size_t)nv * sizeof *row);
    return true;
}

/* Prompts [p0, p1) in one batch per step. */
static hone_status run_prompts(run *r, int p0, int p1, hone_token *batch, bool *finite, hone_error *err)
{
    int32_t n = 0;
    for (int p = p0; p < p1; p++)
        for (int32_t i = 0; i < r->p->n[p]; i++)
            batch[n++] = (hone_token){ r->p->ids[p][i], i, p, i + 1 == r->p->n[p] };
    *finite = true;
    for (int step = 0;; step++) {
        hone_status st = r->src->run(r->src->arg, batch, n, r->logits, err);
        if (st != HONE_OK) return st;
        for (int p = p0; p < p1; p++)
            if (!take(r, p, step, r->logits + (size_t)(p - p0) * (size_t)r->src->n_vocab)) *finite = false;
        if (!*finite) return HONE_OK;
        r->q->n_steps = step + 1;
        if (step + 1 == r->n_steps) return HONE_OK;
        n = 0;
        for (int p = p0; p < p1; p++) batch[n++] = (hone_token){ r->q->ids[p][step], r->p->n[p] + step, p, true };
    }
}

static void hash_run(run *r)
{
    unsigned char *t = r->q->answers, *l = r->q->logits;
    hn_sha256 s;
    hn_sha256_init(&s);
    for (int p = 0; p < HN_Q_PROMPTS; p++)
        for (int i = 0; i < r->n_steps; i++) {
            uint32_t id = (uint32_t)r->q->ids[p][i];
            unsigned char b[4] = { (unsigned char)id, (unsigned char)(id >> 8), (unsigned char)(id >> 16),
                                   (unsigned char)(id >> 24) };
            hn_sha256_add(&s, b, 4);
        }
    hn_sha256_end(&s, t);
    hn_sha256_init(&s); /* steps that were not done are zeros */
    hn_sha256_add(&s, r->kept, (size_t)HN_Q_PROMPTS * N_KEPT * (size_t)r->src->n_vocab * sizeof *r->kept);
    hn_sha256_end(&s, l);
    if (r->n_steps == HN_Q_STEPS)
        snprintf(r->q->hash, sizeof r->q->hash, "q1-%02x%02x%02x%02x-%02x%02x%02x%02x", t[0], t[1], t[2], t[3], l[0],
                 l[1], l[2], l[3]);
}

static bool same_first_logits(const run *r)
{
    size_t nv = (size_t)r->src->n_vocab;
    for (int p = 1; p < HN_Q_PROMPTS; p++)
        if (memcmp(r->kept, r->kept + (size_t)p * N_KEPT * nv, nv * sizeof *r->kept) != 0) return false;
    return true;
}

/* A single continuation of one repeated token happens to sound models; most of eight
 * different prompts ending so does not. */
static void judge(run *r)
{
    hn_quality *q = r->q;
    int32_t seen[HN_Q_PROMPTS * HN_Q_STEPS];
    for (int p = 0; p < HN_Q_PROMPTS; p++) {
        bool constant = true;
        for (int i = 0; i < r->n_steps; i++) {
            int32_t id = q->ids[p][i], k = 0;
            constant = constant && id == q->ids[p][0];
            while (k < q->n_distinct && seen[k] != id) k++;
            if (k == q->n_distinct) seen[q->n_distinct++] = id;
        }
        q->n_constant += constant;
    }
    if (same_first_logits(r))
        hn_invalid(&q->verdict, "the logits do not depend on the prompt: equal for all %d quality prompts",
                   HN_Q_PROMPTS);
    bool few = r->n_steps < HN_Q_STEPS; /* a few equal ids are a sign only if all continuations are so */
    if (q->n_constant > (few ? HN_Q_PROMPTS - 1 : HN_Q_PROMPTS / 2))
        hn_invalid(
            &q->verdict,
            "degenerate output: one token repeated through %d of %d quality continuations (token %d in the first)",
            q->n_constant, HN_Q_PROMPTS, q->ids[0][0]);
    if (q->n_distinct <= 2 && r->src->n_vocab > 2)
        hn_invalid(&q->verdict, "degenerate output: only %d different tokens in %d", q->n_distinct,
                   HN_Q_PROMPTS * HN_Q_STEPS);
    if (q->verdict.state != HN_INVALID) q->verdict.state = HN_VALID;
}

hone_status hn_quality_run(hn_quality *out, const hn_logits_source *src, const hn_q_prompts *p, bool together,
                           int32_t n_steps, hone_error *err)
{
    memset(out, 0, sizeof *out);
    hone_status st = HONE_OK;
    size_t n_batch = 0, nv = (size_t)src->n_vocab;
    for (int i = 0; i < HN_Q_PROMPTS; i++) n_batch += (size_t)p->n[i];
    if (n_batch < HN_Q_PROMPTS) n_batch = HN_Q_PROMPTS;
    run r = { .q = out, .src = src, .p = p, .n_steps = n_steps };
    hone_token *batch = calloc(n_batch, sizeof *batch);
    r.logits = calloc(HN_Q_PROMPTS * nv, sizeof *r.logits);
    r.kept = calloc((size_t)HN_Q_PROMPTS * N_KEPT * nv, sizeof *r.kept);
    bool finite = true;
    if (!batch || !r.logits || !r.kept) {
        st = HN_FAIL(err, HONE_E_NOMEM, "logits of the quality hash, %zu numbers",
                     (size_t)HN_Q_PROMPTS * (N_KEPT + 1) * nv);
    } else if (together) {
        st = run_prompts(&r, 0, HN_Q_PROMPTS, batch, &finite, err);
    } else {
        for (int i = 0; i < HN_Q_PROMPTS && st == HONE_OK && finite; i++)
            st = run_prompts(&r, i, i + 1, batch, &finite, err);
    }
    if (st == HONE_OK && finite) {
        hash_run(&r);
        judge(&r);
    } else if (st == HONE_E_NUMERIC) {
        hn_invalid(&out->verdict, "quality prompts: %s", err ? err->message : "not a number");
        st = HONE_OK;
    }
    free(batch);
    free(r.logits);
    free(r.kept);
    return st;
}

json_t *hn_quality_json(const hn_quality *q, bool from_text)
{
    json_t *o = json_object(), *all = json_array();
    for (int p = 0; p < HN_Q_PROMPTS && q->verdict.state != HN_UNCHECKED && q->n_distinct; p++) {
        json_t *ids = json_array();
        for (int i = 0; i < q->n_steps; i++) json_array_append_new(ids, json_integer(q->ids[p][i]));
        json_array_append_new(all, ids);
    }
    json_object_set_new(o, "hash", q->hash[0] ? hn_lab_str(q->hash) : json_null());
    json_object_set_new(o, "valid", json_boolean(q->verdict.state == HN_VALID));
    json_object_set_new(o, "reason", q->verdict.state == HN_VALID ? json_null() : hn_lab_str(q->verdict.reason));
    json_object_set_new(o, "prompts", json_string(from_text ? "text" : "ids"));
    json_object_set_new(o, "distinct", json_integer(q->n_distinct));
    json_object_set_new(o, "constant", json_integer(q->n_constant));
    json_object_set_new(o, "ids", all);
    return o;
}

/* ---- the fixed text; its bytes are corpus_t1.txt, made C by the build ------------------------------ */

const char hn_q_corpus_name[] = "t1";

void hn_q_corpus_random(int32_t *ids, int64_t n, int32_t n_vocab)
{
    for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)(hn_rand64(0x74317431u, (uint64_t)i) % (uint64_t)n_vocab);
}

hone_status hn_q_long_ids(int32_t *ids, int32_t *n, const hone_model *m, bool from_text, hone_error *err)
{
    enum { BYTES_EACH = 12, FEW = 112 };
    hone_model_info info;
    int32_t *own = NULL;
    size_t got = 0, len = strlen(hn_q_corpus), most = (size_t)*n * BYTES_EACH;
    hone_model_get_info(m, &info);
    if (from_text) {
        if (len > most) len = most;
        while (len > 0 && ((unsigned char)hn_q_corpus[len] & 0xC0) == 0x80) len--; /* whole characters */
        hone_status st = hone_tokenize(m, hn_q_corpus, len, HONE_TOK_ADD, &own, &got, err);
        if (st != HONE_OK) return st;
        if (got < (size_t)*n) *n = (int32_t)got;
        memcpy(ids, own, (size_t)*n * sizeof *ids);
        hone_free(own);
        if (*n >= 2) return HONE_OK;
        *n = FEW;
    }
    hn_q_corpus_random(ids, *n, info.n_vocab);
    return HONE_OK;
}

/* ---- hashes ------------------------------------------------------------------------------------------------ */

bool hn_q_same_kind(const char *a, const char *b)
{
    size_t n = strcspn(a, "-");
    return n > 0 && n == strcspn(b, "-") && strncmp(a, b, n) == 0;
}

bool hn_q_same_answers(const char *a, const char *b)
{
    size_t n = strcspn(a, "-");
    return hn_q_same_kind(a, b) && strlen(a) == strlen(b) && strlen(a) > n + 10 && strncmp(a, b, n + 9) == 0;
}
