/* Terms that matching made and nobody holds any more go, and all transitions, which are made again when they are asked
 * for. What stays keeps its order, so that lists of terms stay sorted; numbers of terms that were settled stay. */
#include "text/lang_priv.h"

#include <stdlib.h>

void hn_langs_settle(hn_langs *l)
{
    l->settled = l->n;
    l->settled_kids = l->kids.n;
    l->settled_ranges = l->n_range;
}

static void drop_fans(hn_langs *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const hn_fan *f = l->fan[i];
        if (l->state[i]) l->bytes -= sizeof *l->state[i] + f->n * (sizeof *f->range + sizeof *f->to);
        if (f) l->bytes -= sizeof *f + f->n * (sizeof *f->range + sizeof *f->to);
        free(l->state[i]);
        free(l->fan[i]);
        l->state[i] = NULL;
        l->fan[i] = NULL;
        l->mark[i] = 0;
    }
    l->epoch = 0;
}

/* What terms in use are made of is in use: those were made before them. */
static void mark_parts(const hn_langs *l, uint32_t *keep)
{
    for (uint32_t i = l->n; i-- > l->settled;) {
        const hn_term *x = &l->t[i];
        if (!keep[i]) continue;
        switch ((hn_term_kind)x->kind) {
        case K_CAT: keep[x->b] = 1; /* fall through */
        case K_NOT:
        case K_REP: keep[x->a] = 1; break;
        case K_OR:
        case K_AND:
            for (uint32_t k = 0; k < x->b; k++) keep[l->kids.data[x->a + k]] = 1;
            break;
        default: break;
        }
    }
}

/* Moves term i to its new place. */
static void move_term(hn_langs *l, uint32_t i, uint32_t to, const uint32_t *keep)
{
    hn_term x = l->t[i];
    switch ((hn_term_kind)x.kind) {
    case K_CAT: x.b = keep[x.b]; /* fall through */
    case K_NOT:
    case K_REP: x.a = keep[x.a]; break;
    case K_OR:
    case K_AND:
        for (uint32_t k = 0; k < x.b; k++) l->kids.data[l->kids.n + k] = keep[l->kids.data[x.a + k]];
        x.a = (uint32_t)l->kids.n;
        l->kids.n += x.b;
        break;
    case K_SET:
        memmove(l->range + l->n_range, l->range + x.a, x.b * sizeof *l->range);
        x.a = (uint32_t)l->n_range;
        l->n_range += x.b;
        break;
    default: break;
    }
    l->t[to] = x;
}

/* p with room for n of *cap; where that cannot be had it stays as it is. */
static void *shrink(hn_langs *l, void *p, size_t n, size_t *cap, size_t size)
{
    void *q = n < *cap ? realloc(p, n * size) : NULL;
    if (!q) return p;
    l->bytes -= (*cap - n) * size;
    *cap = n;
    return q;
}

static void shrink_all(hn_langs *l)
{
    enum { SPARE = 64 };
    size_t n = l->n + SPARE, cap[4] = { l->cap, l->cap, l->cap, l->cap };
    l->t = shrink(l, l->t, n, &cap[0], sizeof *l->t);
    l->fan = shrink(l, l->fan, n, &cap[1], sizeof(hn_fan *));
    l->state = shrink(l, l->state, n, &cap[2], sizeof(hn_lang_state *));
    l->mark = shrink(l, l->mark, n, &cap[3], sizeof *l->mark);
    for (int i = 0; i < 4; i++)
        if (cap[i] < l->cap) l->cap = (uint32_t)cap[i];
    l->kids.data = shrink(l, l->kids.data, l->kids.n + SPARE, &l->kids.cap, sizeof *l->kids.data);
    l->range = shrink(l, l->range, l->n_range + SPARE, &l->cap_range, sizeof *l->range);
}

void hn_langs_sweep(hn_langs *l, uint32_t *keep)
{
    uint32_t n = l->settled;
    drop_fans(l);
    mark_parts(l, keep);
    l->kids.n = l->settled_kids;
    l->n_range = l->settled_ranges;
    for (uint32_t i = 0; i < n; i++) keep[i] = i;
    for (uint32_t i = n; i < l->n; i++) {
        if (!keep[i]) continue;
        move_term(l, i, n, keep);
        keep[i] = n++;
    }
    l->n = n;
    shrink_all(l);
    hn_langs_hash(l);
}
