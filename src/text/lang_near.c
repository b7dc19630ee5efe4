/* What short texts can tell of a term: how far it goes on whatever comes, and which of its counters they cannot reach.
 * Where masks are kept by term, that makes terms equal which differ in counters alone. */
#include "text/lang_priv.h"

/* Does every character lead on from s? */
static bool total(const hn_lang_state *s)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->range[i].lo != at) return false;
        at = s->range[i].hi + 1;
        if (at == HN_SURROGATE_LO) at = HN_SURROGATE_HI + 1;
    }
    return at == HN_CP_MAX + 1;
}

static bool seen_before(const hn_list *seen, hn_lang t)
{
    for (size_t i = 0; i < seen->n; i++)
        if (seen->data[i] == t) return true;
    return false;
}

/* Level by level, the states after 0, 1, 2 … characters; those of an earlier level are known to lead on. */
static uint32_t find_room(hn_langs *l, hn_lang t, bool *exact)
{
    enum { LOOK_AT = 48 };
    hn_list seen = { 0 };
    size_t begin = 0;
    uint32_t room = 0;
    bool fresh = true; /* all of this level is new */
    hn_list_put(l, &seen, t);
    while (!l->failed) {
        size_t end = seen.n, dead = 0;
        bool open = true;
        for (size_t i = begin; i < end && !l->failed; i++) {
            const hn_lang_state *s = hn_lang_open(l, seen.data[i]);
            if (!s) break;
            open = open && total(s);
            dead += s->n == 0;
        }
        if (!open) {
            *exact = fresh && dead == end - begin;
            break;
        }
        room++;
        if (end > LOOK_AT) break;
        fresh = true;
        for (size_t i = begin; i < end && !l->failed; i++) {
            const hn_lang_state *s = hn_lang_open(l, seen.data[i]);
            for (uint32_t k = 0; s && k < s->n; k++) {
                if (!seen_before(&seen, s->to[k])) hn_list_put(l, &seen, s->to[k]);
                else if (k == 0 || s->to[k] != s->to[k - 1]) fresh = false;
            }
        }
        if (seen.n == end) { /* nothing new: so it goes on for ever */
            room = HN_LANG_ENDLESS;
            break;
        }
        begin = end;
    }
    hn_list_drop(l, &seen);
    return l->failed ? 0 : room;
}

uint32_t hn_lang_room(hn_langs *l, hn_lang t, bool *exact)
{
    *exact = false;
    if (l->failed) return 0;
    if (l->t[t].kind == K_REP && l->t[t].a == HN_LANG_ANY) { /* a length */
        *exact = l->t[t].c != HN_LANG_ENDLESS;
        return l->t[t].c;
    }
    if (!l->t[t].room_known) {
        uint32_t room = find_room(l, t, exact);
        l->t[t].room = room;
        l->t[t].room_exact = *exact;
        l->t[t].room_known = !l->failed;
    }
    *exact = l->t[t].room_exact;
    return l->t[t].room;
}

/* Is what is left of it whole wherever it may go on? */
static bool is_whole(const hn_langs *l, hn_lang t) { return l->t[t].least == 0 && l->t[t].need == 0; }

/* The parts of an AND but for lengths that texts must not exceed; *most: the least of these. */
static void without_lengths(hn_langs *l, const hn_term *t, hn_list *rest, uint32_t *most)
{
    *most = HN_LANG_ENDLESS;
    for (uint32_t i = 0; i < t->b; i++) {
        hn_lang kid = l->kids.data[t->a + i];
        const hn_term *x = &l->t[kid];
        bool length = x->kind == K_REP && x->a == HN_LANG_ANY && x->b == 0;
        if (!length) hn_list_put(l, rest, kid);
        else if (x->c < *most) *most = x->c;
    }
}

/* In an AND a counter may decide whether a text is left at all. A length does not, k characters on, where all other
 * parts are whole wherever they may go on, or where one part that always has a text needs no more than is left. */
static hn_lang near_both(hn_langs *l, hn_lang id, uint32_t k)
{
    hn_term t = l->t[id];
    hn_list rest = { 0 };
    hn_lang r = HN_LANG_ALL;
    uint32_t most, need = 0;
    bool whole = true;
    without_lengths(l, &t, &rest, &most);
    for (size_t i = 0; i < rest.n; i++) whole = whole && is_whole(l, rest.data[i]);
    if (!whole && rest.n == 1 && !l->t[rest.data[0]].boolean) {
        const hn_term *x = &l->t[rest.data[0]];
        need = x->least > x->need ? x->least : x->need;
    } else if (!whole) {
        need = HN_LANG_ENDLESS;
    }
    bool cut = most != HN_LANG_ENDLESS && (uint64_t)k + need <= most;
    for (size_t i = 0; i < rest.n && cut && !l->failed; i++) {
        hn_lang x = hn_lang_near(l, rest.data[i], k);
        r = hn_lang_and(l, r, !whole || is_whole(l, x) ? x : rest.data[i]);
    }
    hn_list_drop(l, &rest);
    return cut ? r : id;
}

static hn_lang near_any(hn_langs *l, hn_lang id, uint32_t k)
{
    hn_term t = l->t[id];
    hn_list v = { 0 };
    bool same = true;
    for (uint32_t i = 0; i < t.b && !l->failed; i++) {
        hn_lang kid = l->kids.data[t.a + i], x = hn_lang_near(l, kid, k);
        same = same && x == kid;
        hn_list_put(l, &v, x);
    }
    hn_lang r = same ? id : hn_lang_or_all(l, v.data, v.n);
    hn_list_drop(l, &v);
    return r;
}

hn_lang hn_lang_near(hn_langs *l, hn_lang id, uint32_t k)
{
    hn_term t = l->t[id];
    if (!t.counts) return id;
    if (t.kind == K_CAT) {
        hn_lang a = hn_lang_near(l, t.a, k);
        return a == t.a ? id : hn_lang_cat(l, a, t.b);
    }
    if (t.kind == K_OR) return near_any(l, id, k);
    if (t.kind == K_AND) return near_both(l, id, k);
    if (t.kind != K_REP || t.boolean || l->t[t.a].accepts) return id;
    uint32_t min = t.b > k ? k + 1 : t.b, max = t.c > k ? HN_LANG_ENDLESS : t.c;
    return min == t.b && max == t.c ? id : hn_lang_repeat(l, t.a, min, max);
}
