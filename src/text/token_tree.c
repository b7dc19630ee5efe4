/* The tree is made from the sorted texts: what two neighbours have in common is the way down to both. */
#include "text/token_tree.h"

#include <stdlib.h>

static int by_text(const void *a, const void *b)
{
    const hn_token_text *x = a, *y = b;
    int c = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    if (c) return c;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static size_t common(const hn_token_text *x, const hn_token_text *y)
{
    size_t n = 0, most = x->len < y->len ? x->len : y->len;
    while (n < most && x->text[n] == y->text[n]) n++;
    return n;
}

static size_t count_nodes(const hn_token_text *list, size_t n)
{
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) nodes += list[i].len - (i ? common(&list[i - 1], &list[i]) : 0);
    return nodes;
}

hone_status hn_token_tree_make(hn_token_tree *t, hn_token_text *list, size_t n, hone_error *err)
{
    static atomic_uint_fast64_t serial;
    *t = (hn_token_tree){ .serial = atomic_fetch_add(&serial, 1) + 1 };
    if (n) qsort(list, n, sizeof *list, by_text);
    size_t nodes = count_nodes(list, n);
    for (size_t i = 0; i < n; i++)
        if (list[i].len > t->max_depth) t->max_depth = list[i].len;
    if (nodes > UINT32_MAX / 2 || t->max_depth >= UINT16_MAX)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "vocabulary: its tokens have %zu bytes, one of them %u", nodes,
                       t->max_depth);
    t->byte = malloc(nodes);
    t->depth = malloc(nodes * sizeof *t->depth);
    t->end = malloc(nodes * sizeof *t->end);
    t->first = malloc((nodes + 1) * sizeof *t->first);
    t->ids = malloc((n + 1) * sizeof *t->ids);
    uint32_t *open = malloc((t->max_depth + 1u) * sizeof *open); /* the node at each depth of the way down */
    if (!t->byte || !t->depth || !t->end || !t->first || !t->ids || !open) {
        free(open);
        hn_token_tree_free(t);
        return HN_FAIL(err, HONE_E_NOMEM, "vocabulary of %zu tokens as a tree", n);
    }
    t->byte[0] = 0;
    t->depth[0] = 0;
    t->first[0] = 0;
    open[0] = 0;
    uint32_t at = 1, deep = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t keep = i ? (uint32_t)common(&list[i - 1], &list[i]) : 0;
        while (deep > keep) t->end[open[deep--]] = at;
        while (deep < list[i].len) {
            t->byte[at] = (uint8_t)list[i].text[deep];
            t->first[at] = (uint32_t)i;
            t->depth[at] = (uint16_t)++deep;
            open[deep] = at++;
        }
        t->ids[i] = list[i].id;
    }
    while (deep > 0) t->end[open[deep--]] = at;
    t->end[0] = at;
    t->first[at] = (uint32_t)n;
    t->n = at;
    free(open);
    return HONE_OK;
}

void hn_token_tree_free(hn_token_tree *t)
{
    if (!t) return;
    free(t->byte);
    free(t->depth);
    free(t->end);
    free(t->first);
    free(t->ids);
    hn_token_plain_free(t->plain);
    free(t->piece);
    free(t->end_ids);
    *t = (hn_token_tree){ 0 };
}
