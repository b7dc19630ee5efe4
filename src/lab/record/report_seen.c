/* Which records a report has already: files overlap, and are given twice. A hash of the whole value
 * leads to what may be equal to it, so that a record costs the same however many there are and
 * whatever they have in common. Refuses to know what a record is. */
#include "lab/record/report_data.h"
#include "lab/machine/clock.h"
#include "base/json_text.h"

#include <stdlib.h>

static uint64_t mix(uint64_t h, uint64_t v) { return hn_mix64(h ^ hn_mix64(v + 0x9E3779B97F4A7C15u)); }

static uint64_t hash_text(const char *s, size_t n, uint64_t key)
{
    return hn_mix64(hn_fnv1a(HN_FNV_INIT ^ key, s, n) ^ key);
}

/* Equal values (json_equal) have equal hashes: members in any order, 0.0 as -0.0. */
static uint64_t hash_of(json_t *v, uint64_t key)
{
    uint64_t h = mix(key, (uint64_t)json_typeof(v));
    const char *name;
    json_t *one;
    size_t i;
    double x;
    switch (json_typeof(v)) {
    case JSON_OBJECT: {
        uint64_t sum = 0;
        json_object_foreach(v, name, one) sum += mix(hash_text(name, strlen(name), key), hash_of(one, key));
        return mix(h, sum);
    }
    case JSON_ARRAY: json_array_foreach(v, i, one) h = mix(h, hash_of(one, key)); return h;
    case JSON_STRING: return mix(h, hash_text(json_string_value(v), json_string_length(v), key));
    case JSON_INTEGER: return mix(h, (uint64_t)json_integer_value(v));
    case JSON_REAL: {
        uint64_t bits;
        x = json_real_value(v) + 0.0; /* -0.0 becomes 0.0 */
        memcpy(&bits, &x, sizeof bits);
        return mix(h, bits);
    }
    default: return h;
    }
}

static bool grow(hn_rep_seen *s)
{
    size_t cap = s->cap ? 2 * s->cap : 256;
    struct hn_rep_value *slot = calloc(cap, sizeof *slot);
    if (!slot) return false;
    if (!s->cap) s->key = hn_rand64(hn_clock_ns(), 0);
    for (size_t i = 0; i < s->cap; i++) {
        if (!s->slot[i].v) continue;
        size_t k = s->slot[i].hash & (cap - 1);
        while (slot[k].v) k = (k + 1) & (cap - 1);
        slot[k] = s->slot[i];
    }
    free(s->slot);
    s->slot = slot;
    s->cap = cap;
    return true;
}

bool hn_rep_seen_add(hn_rep_seen *s, json_t *v, bool *again)
{
    *again = false;
    if (2 * s->n >= s->cap && !grow(s)) return false;
    uint64_t h = hash_of(v, s->key);
    size_t k = h & (s->cap - 1);
    for (; s->slot[k].v; k = (k + 1) & (s->cap - 1))
        if (s->slot[k].hash == h && json_equal(s->slot[k].v, v)) {
            *again = true;
            return true;
        }
    s->slot[k] = (struct hn_rep_value){ h, v };
    s->n++;
    return true;
}

void hn_rep_seen_free(hn_rep_seen *s)
{
    free(s->slot);
    *s = (hn_rep_seen){ 0 };
}
