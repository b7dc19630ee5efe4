/* The tree of kept prefixes: prefix.h says what it is. Nodes are found by a hash chained over their ids, and their ids
 * are compared: what collides is not shared. */
#include "engine/prefix.h"

#include <stdlib.h>

enum { FIRST_BUCKETS = 16 };

hn_prefix_tree *hn_prefix_tree_new(int32_t most_states)
{
    hn_prefix_tree *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->most_states = most_states;
    t->n_bucket = FIRST_BUCKETS;
    if ((t->bucket = calloc(t->n_bucket, sizeof(hn_prefix *)))) return t;
    free(t);
    return NULL;
}

void hn_prefix_tree_free(hn_prefix_tree *t)
{
    if (!t) return;
    for (hn_prefix *p = t->oldest, *next; p; p = next) {
        next = p->newer;
        free(p);
    }
    free(t->bucket);
    free(t);
}

/* ---- finding ----------------------------------------------------------------------------------------- */

static uint64_t hash_of_key(hn_seq_key key) { return hn_mix64(hn_mix64(key.scope + 1) + key.adapters); }
static uint64_t hash_more(uint64_t h, int32_t id) { return hn_mix64(h + (uint32_t)id + 1); }
static uint64_t hash_ids(uint64_t h, const int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++) h = hash_more(h, ids[i]);
    return h;
}

/* The node after parent (NULL: at the start) of these ids, which all before and these hash to h. */
static hn_prefix *lookup(const hn_prefix_tree *t, const hn_prefix *parent, hn_seq_key key, uint64_t h,
                         const int32_t *ids, int32_t n)
{
    for (hn_prefix *p = t->bucket[h & (t->n_bucket - 1)]; p; p = p->next)
        if (p->hash == h && p->parent == parent && p->n == n && hn_same_key(p->key, key) &&
            !memcmp(p->ids, ids, (size_t)n * sizeof *ids))
            return p;
    return NULL;
}

/* Can a sequence go on from n_pos, which is within this node? */
static bool has_place(const hn_seq_memory *m, const hn_prefix *p, int32_t n_pos)
{
    if (n_pos <= p->end - p->n) return false;
    if (m->state_floats && (p->state == HN_NO_BLOCK || n_pos != p->end)) return false;
    for (int32_t g = 0; g < m->n_group; g++) {
        int64_t from = hn_memory_first(&m->group[g], n_pos), at = hn_pages_of(n_pos) - 1;
        if (!m->group[g].window) continue;
        for (const hn_prefix *q = p; at >= from; at--, q = q->parent)
            if (q->page[g] == HN_NO_BLOCK) return false;
    }
    return true;
}

/* Of the nodes that end within the page after `parent`, the longest that has a place and begins as ids [n] do. */
static hn_prefix *short_after(const hn_seq_memory *m, const hn_prefix *parent, hn_seq_key key, uint64_t h,
                              const int32_t *ids, int32_t n, int32_t most)
{
    hn_prefix *best = NULL;
    int32_t at = parent ? parent->end : 0;
    if (!(parent ? parent->n_short : m->tree->n_short)) return NULL;
    for (int32_t k = 1; k < HN_PAGE && k <= n; k++) {
        h = hash_more(h, ids[k - 1]);
        hn_prefix *p = lookup(m->tree, parent, key, h, ids, k);
        if (p && has_place(m, p, at + k < most ? at + k : most)) best = p;
    }
    return best;
}

int32_t hn_prefix_find(const hn_seq_memory *m, hn_seq_key key, const int32_t *ids, int32_t n, hn_prefix **node)
{
    hn_prefix *at = NULL, *p;
    uint64_t h = hash_of_key(key);
    *node = NULL;
    if (!m->tree->n_node) return 0;
    for (int32_t pos = 0; pos + HN_PAGE <= n; pos += HN_PAGE) {
        uint64_t more = hash_ids(h, ids + pos, HN_PAGE);
        if (!(p = lookup(m->tree, at, key, more, ids + pos, HN_PAGE))) break;
        at = p;
        h = more;
    }
    for (;; at = at->parent) { /* from the furthest back */
        int32_t pos = at ? at->end : 0;
        h = at ? at->hash : hash_of_key(key);
        p = short_after(m, at, key, h, ids + pos, n - pos, n - 1);
        if (!p && at && has_place(m, at, pos < n - 1 ? pos : n - 1)) p = at;
        if (p) {
            *node = p;
            return p->end < n - 1 ? p->end : n - 1;
        }
        if (!at) return 0;
    }
}

/* ---- order of use ------------------------------------------------------------------------------------ */

static void unlink_use(hn_prefix_tree *t, hn_prefix *p)
{
    *(p->older ? &p->older->newer : &t->oldest) = p->newer;
    *(p->newer ? &p->newer->older : &t->newest) = p->older;
}

static void link_newest(hn_prefix_tree *t, hn_prefix *p)
{
    p->newer = NULL;
    p->older = t->newest;
    *(t->newest ? &t->newest->newer : &t->oldest) = p;
    t->newest = p;
}

/* It and all before it are the newest, the first of them last: so the oldest of all has no children. */
static void touch(hn_prefix_tree *t, hn_prefix *p)
{
    for (; p; p = p->parent) {
        unlink_use(t, p);
        link_newest(t, p);
    }
}

void hn_prefix_attach(hn_seq_memory *m, int32_t seq, hn_prefix *node, const int32_t *ids, int32_t n_pos)
{
    hn_memory_empty(m, seq);
    for (int32_t g = 0; g < m->n_group; g++) {
        uint32_t *t = hn_memory_table(m, g, seq);
        int64_t at = hn_pages_of(n_pos) - 1;
        m->group[g].first[seq] = hn_memory_first(&m->group[g], n_pos);
        for (const hn_prefix *p = node; at >= m->group[g].first[seq]; at--, p = p->parent)
            m->group[g].pool.refs[t[at] = p->page[g]]++;
    }
    if (m->state_floats) hn_memory_set_state(m, seq, node->state);
    m->held[seq] = m->length[seq] = m->n_ids[seq] = n_pos;
    memmove(hn_memory_ids(m, seq), ids, (size_t)n_pos * sizeof *ids);
    touch(m->tree, node);
    m->tree->n_hit++;
    m->tree->n_hit_positions += (uint64_t)n_pos;
}

/* ---- forgetting -------------------------------------------------------------------------------------- */

/* A node more that holds it. */
static void hold(hn_page_pool *pool, uint32_t number)
{
    pool->refs[number]++;
    pool->kept[number]++;
}

static void let_go(hn_seq_memory *m, int32_t group, uint32_t number)
{
    hn_memory_pool(m, group)->kept[number]--;
    hn_memory_release(m, group, number);
}

static void drop_state(hn_seq_memory *m, hn_prefix *p)
{
    if (p->state == HN_NO_BLOCK) return;
    let_go(m, -1, p->state);
    p->state = HN_NO_BLOCK;
    m->tree->n_state--;
}

/* A node without children goes; returns its parent. */
static hn_prefix *forget(hn_seq_memory *m, hn_prefix *p)
{
    hn_prefix_tree *t = m->tree;
    hn_prefix **at = &t->bucket[p->hash & (t->n_bucket - 1)], *parent = p->parent;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    unlink_use(t, p);
    for (int32_t g = 0; g < m->n_group; g++) {
        if (p->page[g] == HN_NO_BLOCK) continue;
        let_go(m, g, p->page[g]);
        t->n_page--;
    }
    drop_state(m, p);
    if (parent) parent->n_child--;
    if (p->n < HN_PAGE) --*(parent ? &parent->n_short : &t->n_short);
    t->n_node--;
    free(p);
    return parent;
}

/* Where layers recur a node is of use as the way to a state only. */
static void prune(hn_seq_memory *m, hn_prefix *p)
{
    while (p && m->state_floats && !p->n_child && p->state == HN_NO_BLOCK) p = forget(m, p);
}

/* A node's part of the bytes of a page that the tree alone holds, by one node or by several; else 0. */
static uint64_t part_of(const hn_page_pool *pool, uint32_t number)
{
    return number == HN_NO_BLOCK || pool->refs[number] != pool->kept[number] ? 0 : pool->bytes / pool->kept[number];
}

/* Of what a node holds, its part of the bytes that nobody but the tree does. */
static uint64_t bytes_of(const hn_seq_memory *m, const hn_prefix *p)
{
    uint64_t n = part_of(&m->states, p->state);
    for (int32_t g = 0; g < m->n_group; g++) n += part_of(&m->group[g].pool, p->page[g]);
    return n;
}

static void add_kept(const hn_page_pool *pool, uint64_t *held, uint64_t *alone)
{
    for (uint32_t i = 0; i < pool->fresh; i++) {
        if (!pool->kept[i]) continue;
        *held += pool->bytes;
        *alone += pool->refs[i] == pool->kept[i] ? pool->bytes : 0;
    }
}

void hn_prefix_bytes(const hn_seq_memory *m, uint64_t *held, uint64_t *alone)
{
    *held = *alone = 0;
    add_kept(&m->states, held, alone);
    for (int32_t g = 0; g < m->n_group; g++) add_kept(&m->group[g].pool, held, alone);
}

bool hn_prefix_can_free(const hn_seq_memory *m, uint64_t bytes)
{
    uint64_t n = 0;
    for (const hn_prefix *p = m->tree->oldest; p && n < bytes; p = p->newer) n += bytes_of(m, p);
    if (n >= bytes) return true;
    uint64_t held, alone; /* parts are rounded down */
    hn_prefix_bytes(m, &held, &alone);
    return alone >= bytes;
}

bool hn_prefix_evict(hn_seq_memory *m)
{
    hn_prefix_tree *t = m->tree;
    for (const hn_prefix *first = NULL; t->oldest && t->oldest != first && !bytes_of(m, t->oldest);) {
        if (!first) first = t->oldest;
        touch(t, t->oldest); /* what a sequence holds too is in use now */
    }
    if (!t->oldest) return false;
    if (!hn_prefix_can_free(m, 1)) return false; /* no leaf, and no page before one that a sequence shares */
    t->n_evicted++;
    prune(m, forget(m, t->oldest));
    return true;
}

static bool holds(const hn_prefix *p, int32_t group, uint32_t number)
{
    return (group < 0 ? p->state : p->page[group]) == number;
}

bool hn_prefix_can_let_go(const hn_seq_memory *m, int32_t group, uint32_t number)
{
    const hn_prefix *p = m->tree->newest;
    while (p && !(group >= 0 && p->n_child && holds(p, group, number))) p = p->older;
    return !p;
}

void hn_prefix_let_go(hn_seq_memory *m, int32_t group, uint32_t number)
{
    for (hn_prefix *p = m->tree->newest, *older; p; p = older) { /* what goes with p is newer */
        older = p->older;
        if (!holds(p, group, number)) continue;
        if (group < 0) drop_state(m, p);
        prune(m, group < 0 ? p : forget(m, p));
        m->tree->n_evicted++;
    }
}

void hn_prefix_drop_all(hn_seq_memory *m)
{
    while (m->tree->oldest) forget(m, m->tree->oldest);
}

bool hn_prefix_has_adapters(const hn_seq_memory *m, uint64_t adapters)
{
    const hn_prefix *p = m->tree->oldest;
    while (p && p->key.adapters != adapters) p = p->newer;
    return p;
}

void hn_prefix_drop_adapters(hn_seq_memory *m, uint64_t adapters)
{
    for (hn_prefix *p = m->tree->oldest, *newer; p; p = newer) { /* children before their parents */
        newer = p->newer;
        if (p->key.adapters == adapters) forget(m, p);
    }
}

/* ---- keeping ----------------------------------------------------------------------------------------- */

/* Twice the buckets where there are as many nodes. False: no memory, and all is as before. */
static bool widen(hn_prefix_tree *t)
{
    if (t->n_node < t->n_bucket) return true;
    size_t n = 2 * t->n_bucket;
    hn_prefix **bucket = calloc(n, sizeof(hn_prefix *));
    if (!bucket) return false;
    for (hn_prefix *p = t->oldest; p; p = p->newer) {
        p->next = bucket[p->hash & (n - 1)];
        bucket[p->hash & (n - 1)] = p;
    }
    free(t->bucket);
    t->bucket = bucket;
    t->n_bucket = n;
    return true;
}

/* A node of n more ids, without pages; NULL: no memory. */
static hn_prefix *grow(hn_seq_memory *m, hn_prefix *parent, hn_seq_key key, uint64_t h, const int32_t *ids, int32_t n)
{
    hn_prefix_tree *t = m->tree;
    hn_prefix *p = widen(t) ? malloc(sizeof *p + (size_t)m->n_group * sizeof *p->page) : NULL;
    if (!p) return NULL;
    hn_prefix **at = &t->bucket[h & (t->n_bucket - 1)];
    *p = (hn_prefix){ .parent = parent,
                      .next = *at,
                      .key = key,
                      .hash = h,
                      .end = (parent ? parent->end : 0) + n,
                      .n = n,
                      .state = HN_NO_BLOCK };
    *at = p;
    memcpy(p->ids, ids, (size_t)n * sizeof *ids);
    for (int32_t g = 0; g < m->n_group; g++) p->page[g] = HN_NO_BLOCK;
    link_newest(t, p);
    if (parent) parent->n_child++;
    if (n < HN_PAGE) ++*(parent ? &parent->n_short : &t->n_short);
    t->n_node++;
    return p;
}

/* The node has the pages that the sequence has there; where both have one, the sequence takes the node's, which holds
 * the same. */
static void fill(hn_seq_memory *m, hn_prefix *p, int32_t seq)
{
    int64_t at = hn_pages_of(p->end) - 1;
    for (int32_t g = 0; g < m->n_group; g++) {
        hn_page_pool *pool = &m->group[g].pool;
        uint32_t *slot = &hn_memory_table(m, g, seq)[at];
        if (at < m->group[g].first[seq] || p->page[g] == *slot) continue;
        if (p->page[g] == HN_NO_BLOCK) {
            hold(pool, p->page[g] = *slot);
            m->tree->n_page++;
        } else if (p->n == HN_PAGE) {
            hn_memory_release(m, g, *slot);
            pool->refs[ *slot = p->page[g]]++;
        }
    }
}

/* The state that a sequence has now; where there are too many, the one not used for longest goes. */
static void give_state(hn_seq_memory *m, hn_prefix *p, int32_t seq)
{
    hn_prefix_tree *t = m->tree;
    if (p->state != HN_NO_BLOCK) return;
    hold(&m->states, p->state = m->state_block[seq]);
    t->n_state++;
    if (t->n_state <= (uint64_t)t->most_states) return;
    hn_prefix *old = t->oldest;
    while (old->state == HN_NO_BLOCK || old == p) old = old->newer;
    drop_state(m, old);
    t->n_evicted++;
    prune(m, old);
}

hone_status hn_prefix_keep(hn_seq_memory *m, int32_t seq, hone_error *err)
{
    const int32_t *ids = hn_memory_ids(m, seq), len = m->length[seq], known = m->n_ids[seq] < len ? m->n_ids[seq] : len;
    hn_seq_key key = m->key[seq];
    uint64_t h = hash_of_key(key);
    hn_prefix *at = NULL;
    if (m->state_floats && (known < len || !m->tree->most_states || m->state_block[seq] == HN_NO_BLOCK))
        return HONE_OK; /* nothing but a way to a state that is not there */
    for (int32_t pos = 0, n; pos < known; pos += n) {
        n = known - pos < HN_PAGE ? known - pos : HN_PAGE;
        if (n < HN_PAGE && (known < len || !m->wants_checkpoints)) break;
        h = hash_ids(h, ids + pos, n);
        hn_prefix *p = lookup(m->tree, at, key, h, ids + pos, n);
        if (!p && !(p = grow(m, at, key, h, ids + pos, n))) {
            touch(m->tree, at);
            prune(m, at);
            return HN_FAIL(err, HONE_E_NOMEM, "a node for %d positions of sequence %d that are to be kept", n, seq);
        }
        fill(m, p, seq);
        at = p;
    }
    touch(m->tree, at);
    if (at && m->state_floats) give_state(m, at, seq);
    return HONE_OK;
}
