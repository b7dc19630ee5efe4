/* Proofs of what was measured. Owns the hash of bits and the words for a difference; refuses
 * to judge what a difference means. */
#include "lab/quality/proof.h"
#include "base/json_text.h"

#include <inttypes.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u; /* odd: the golden ratio of 2^64 */
    return h ^ (h >> 29);
}

/* Eight independent chains, so that a multiplication need not wait for the one before. */
uint64_t hn_bits_hash(const float *x, int64_t n)
{
    enum { LANES = 8, STEP = 2 * LANES };
    uint64_t h[LANES], all = mix(0x70726F6F66u, (uint64_t)n);
    int64_t i = 0;
    for (int l = 0; l < LANES; l++) h[l] = (uint64_t)l + 1;
    for (; i + STEP <= n; i += STEP)
        for (int l = 0; l < LANES; l++) {
            uint64_t two;
            memcpy(&two, x + i + 2 * l, sizeof two);
            h[l] = mix(h[l], two);
        }
    for (; i < n; i++) {
        uint32_t one;
        memcpy(&one, x + i, sizeof one);
        h[0] = mix(h[0], one);
    }
    for (int l = 0; l < LANES; l++) all = mix(all, h[l]);
    return all;
}

void hn_proof_begin(hn_proof *p, int32_t n_wanted)
{
    *p = (hn_proof){ .ids = 1, .all = 1, .n_wanted = n_wanted > 0 ? n_wanted : 1 };
}

void hn_proof_step(hn_proof *p, const float *logits, int64_t n, int32_t id)
{
    uint64_t h = hn_bits_hash(logits, n);
    if (p->n_steps == 0) p->first = h;
    if (p->n_steps == p->n_wanted / 2) p->middle = h;
    p->last = h;
    p->all = mix(p->all, h);
    if (id >= 0) p->ids = mix(p->ids, (uint64_t)id);
    p->n_steps++;
}

static json_t *hex(uint64_t h)
{
    char s[24];
    snprintf(s, sizeof s, "%016" PRIx64, h);
    return json_string(s);
}

json_t *hn_proof_json(const hn_proof *p)
{
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "steps", (int)p->n_steps, "ids", hex(p->ids), "first",
                     hex(p->first), "middle", hex(p->middle), "last", hex(p->last), "all", hex(p->all));
}

json_t *hn_proof_of(const char *name, uint64_t hash) { return json_pack("{s:o}", name, hex(hash)); }

/* Of lists, what both have: the shorter run is no other one. */
static bool equal(const json_t *x, const json_t *y)
{
    size_t n = json_array_size(x) < json_array_size(y) ? json_array_size(x) : json_array_size(y);
    if (!json_is_array(x) || !json_is_array(y)) return json_equal(x, y);
    for (size_t i = 0; i < n; i++)
        if (!json_equal(json_array_get(x, i), json_array_get(y, i))) return false;
    return true;
}

bool hn_proof_differ(char *what, size_t cap, const json_t *a, const json_t *b)
{
    static const struct {
        const char *key, *words;
    } parts[] = { { "steps", "the number of steps" },
                  { "first", "the logits of the first step, after the prompt," },
                  { "ids", "the generated ids" },
                  { "middle", "the logits of the middle step" },
                  { "last", "the logits of the last step" },
                  { "all", "the logits of a step between first, middle and last" },
                  { "company", "the logits of the other sequences" },
                  { "output", "the output" },
                  { "rounds", "the output of a later round" },
                  { "loss", "the losses of the steps" },
                  { "gradient", "the gradient" },
                  { "weights", "the weights behind the first steps" },
                  { "trained", "the weights behind one of the steps" },
                  { "late", "what was drawn at late positions" } };
    what[0] = 0;
    if (!json_is_object(a) || !json_is_object(b)) return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        json_t *x = json_object_get(a, parts[i].key), *y = json_object_get(b, parts[i].key);
        if (!x || !y || equal(x, y)) continue; /* what one of them does not have proves nothing */
        long long at = json_integer_value(json_object_get(a, "steps"));
        if (strcmp(parts[i].key, "middle") == 0) snprintf(what, cap, "%s (%lld)", parts[i].words, at / 2);
        else if (strcmp(parts[i].key, "last") == 0) snprintf(what, cap, "%s (%lld)", parts[i].words, at - 1);
        else snprintf(what, cap, "%s", parts[i].words);
        return true;
    }
    return false;
}

bool hn_proof_less(const json_t *b, const json_t *a, bool as_many_rounds)
{
    const char *key;
    json_t *was;
    json_object_foreach((json_t *)(uintptr_t)a, key, was)
    {
        json_t *is = json_object_get(b, key);
        size_t n = json_array_size(was), least = as_many_rounds || n < 1 ? n : 1;
        if (!is || json_is_null(is) || json_array_size(is) < least) return true;
    }
    return false;
}
