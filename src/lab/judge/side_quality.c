/* What a side answers: the hash of its model's answers, by its program's own walk of them. Owns which targets are one
 * question. */
#define _GNU_SOURCE
#include "lab/judge/front.h"
#include "lab/judge/side_priv.h"

#include "base/json_tree.h"
#include "lab/machine/clock.h"
#include "lab/record/record_read.h"
#include "lab/stats/stats.h"

#include <inttypes.h>
#include <string.h>

/* Of a target's options those that the answers depend on: not how many tokens, and where the rest is a matter of speed.
 */
static bool answers_alike(const hn_target *a, const hn_target *b)
{
    static const char *const names[] = { "kv", "lora", "chunk", "packed", "pre", "cpu", "quality" };
    if (strcmp(a->model, b->model) != 0) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int turn = 0; turn < 2; turn++) { /* each one's words are all the other's */
            const hn_target *x = turn ? b : a, *y = turn ? a : b;
            for (int k = 0; k < HN_SIDE_ARGS && x->args[k]; k++) {
                bool there = !hn_argv_is(x->args[k], names[i]);
                for (int j = 0; j < HN_SIDE_ARGS && y->args[j]; j++) there = there || !strcmp(x->args[k], y->args[j]);
                if (!there) return false;
            }
        }
    return true;
}

size_t hn_targets_answering(const hn_target **out, const hn_target *t, size_t n)
{
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        bool known = !t[i].model || !t[i].id || strncmp(t[i].id, "kern.", 5) == 0;
        for (size_t k = 0; k < n_out && !known; k++) known = answers_alike(out[k], &t[i]);
        if (!known) out[n_out++] = &t[i];
    }
    return n_out;
}

hone_status hn_side_quality(hn_side *s, const hn_target *t, char hash[24], char *why, size_t cap, hone_error *err)
{
    hone_status st = HONE_OK;
    if (s->asked != t) {
        hn_side_command c;
        hn_process r;
        s->hash[0] = s->why[0] = s->older[0] = 0;
        st = hn_side_bench(&c, s, t, HN_RUN_QUALITY, 0, 0, err);
        if (st == HONE_OK && s->draw) { /* both sides are asked what is drawn by it */
            hn_argv_set(&c.argv, "draw", "%" PRIu64, s->draw);
            st = hn_argv_check(&c.argv, s->program, err);
        }
        if (st == HONE_OK) st = hn_side_run(&r, s, hn_argv_words(&c.argv), c.env, t->stop, err);
        hn_argv_free(&c.argv);
        if (st != HONE_OK) return st;
        json_t *o = hn_side_printed(&r, r.exit_code == 0 || r.exit_code == 1);
        const char *q = json_string_value(json_object_get(o, "quality")),
                   *bad = json_string_value(json_object_get(o, "invalid_reason"));
        if (!json_is_object(o)) st = hn_side_failed(s, &r, err);
        else if (json_is_false(json_object_get(o, "valid")))
            snprintf(s->why, sizeof s->why, "%.500s", bad ? bad : "invalid");
        else if (!q) snprintf(s->why, sizeof s->why, "no quality hash");
        else if (s->can_walk && strncmp(q, "q1", 2) == 0)
            snprintf(s->why, sizeof s->why, "a hash of the older kind, although its program has the newer");
        if (q) snprintf(s->hash, sizeof s->hash, "%.23s", q);
        json_decref(s->detail);
        s->detail = json_incref(json_object_get(o, "quality_detail"));
        snprintf(s->older, sizeof s->older, "%.23s", hn_record_text(s->detail, "q1"));
        hn_outer_read(&s->outer, json_object_get(s->detail, "outer"));
        s->asked = st == HONE_OK ? t : NULL;
        json_decref(o);
        hn_process_free(&r);
    }
    snprintf(hash, 24, "%s", s->hash);
    snprintf(why, cap, "%s", s->why);
    return st;
}

hone_status hn_sides_quality(hn_side *const side[2], const hn_target *t, char hash[2][24], char why[2][512],
                             hone_error *err)
{
    const bool both = side[0]->can_talk && side[1]->can_talk;
    const uint64_t draw = hn_rand64(hn_clock_ns(), 2) >> 16;
    for (int i = 0; i < 2; i++)
        if (side[0]->asked != t || side[1]->asked != t) {
            side[i]->asked = NULL; /* of another draw, perhaps */
            side[i]->draw = both ? draw | 1 : 0;
        }
    for (int i = 0; i < 2; i++) {
        hone_status st = hn_side_quality(side[i], t, hash[i], why[i], 512, err);
        if (st != HONE_OK) return st;
    }
    for (int i = 0; i < 2; i++)
        if (hash[0][0] && hash[1][0] && !hn_q_same_kind(hash[0], hash[1]) && hn_q_same_kind(side[i]->older, hash[!i]))
            snprintf(hash[i], 24, "%s", side[i]->older);
    /* a difference that the model's answers do not show stands in their place */
    hn_outer_part part = strcmp(hash[0], hash[1]) == 0 ? hn_outer_of(&side[0]->outer, &side[1]->outer) : HN_OUTER_PARTS;
    for (int i = 0; i < 2 && part != HN_OUTER_PARTS; i++)
        snprintf(hash[i], 24, "%s-%s", hn_outer_name(part), side[i]->outer.hash[part]);
    hn_front front;
    if (strcmp(hash[0], hash[1]) != 0 || why[0][0] || why[1][0]) return HONE_OK;
    hone_status st = hn_front_texts(&front, side, t, hn_rand64(hn_clock_ns(), 0), err);
    if (st != HONE_OK || !front.name[0]) return st;
    snprintf(why[1], 512, "%s", front.why);
    for (int i = 0; i < 2; i++) snprintf(hash[i], 24, "%.14s-%.8s", front.name, front.hash[i]);
    return HONE_OK;
}

void hn_sides_proved(hn_proved *out, hn_side *const side[2])
{
    const bool both = side[0]->can_walk && side[1]->can_walk;
    hn_quality_proved(out, both ? side[0]->detail : NULL, both ? side[1]->detail : NULL);
}
