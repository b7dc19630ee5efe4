/* Pages, blocks, tables and counts of what sequences remember: seq_memory.h says what they are. Owns every number that
 * names a page; refuses to look into one. A call takes all it may need before it begins, notes what it replaces, and
 * ends with commit or undo: in between nothing can fail for want of memory. */
#include "engine/seq_memory.h"
#include "engine/prefix.h"

#include <stdlib.h>

/* ---- pages ---- */

static bool pool_new(hn_page_pool *p, hn_backend *be, uint64_t n, size_t bytes)
{
    p->bytes = bytes;
    p->n = n > HN_NO_BLOCK - 1 ? HN_NO_BLOCK - 1 : (uint32_t)n;
    p->mem = be->op->alloc(be, (uint64_t)p->n * bytes, HN_MEM_CACHE);
    p->refs = hn_pages_alloc((size_t)p->n * sizeof *p->refs);
    p->spare = hn_pages_alloc((size_t)p->n * sizeof *p->spare);
    p->kept = hn_pages_alloc((size_t)p->n * sizeof *p->kept);
    return p->mem && p->refs && p->spare && p->kept;
}

static void pool_free(hn_page_pool *p, hn_backend *be)
{
    be->op->release(be, p->mem);
    hn_pages_free(p->refs, (size_t)p->n * sizeof *p->refs);
    hn_pages_free(p->spare, (size_t)p->n * sizeof *p->spare);
    hn_pages_free(p->kept, (size_t)p->n * sizeof *p->kept);
}

static size_t page_at(const hn_page_pool *p, uint32_t number) { return (size_t)number * p->bytes; }

/* What the tree keeps gives way. False: there is no page, and the tree holds none that nobody else has. */
static bool take(hn_seq_memory *m, hn_page_pool *p, uint32_t *number)
{
    while (m->used + p->bytes > m->p.budget || (!p->n_spare && p->fresh == p->n))
        if (!hn_prefix_evict(m)) return false;
    *number = p->n_spare ? p->spare[--p->n_spare] : p->fresh++;
    p->refs[*number] = 1;
    m->used += p->bytes;
    return true;
}

static void drop(hn_seq_memory *m, hn_page_pool *p, uint32_t number)
{
    if (--p->refs[number]) return;
    p->spare[p->n_spare++] = number;
    m->used -= p->bytes;
}

void hn_memory_release(hn_seq_memory *m, int32_t group, uint32_t number)
{
    hn_page_pool *p = hn_memory_pool(m, group);
    for (int32_t i = 0; p->refs[number] == 1 && i < m->n_replaced; i++) {
        hn_replaced *r = &m->replaced[i];
        if (r->group != group || r->old != number || r->kept) continue;
        r->kept = true; /* the running call may have to bring it back: it counts for whom it was replaced */
        return;
    }
    drop(m, p, number);
}

static uint32_t *table_of(const hn_seq_memory *m, const hn_memory_group *g, int32_t seq)
{
    return g->table + (size_t)seq * (size_t)m->n_page;
}

/* ---- the plan ---- */

static bool has_positions(const hn_memory_layer *l)
{
    return (l->kind & (HN_MEMORY_KV | HN_MEMORY_LATENT)) && l->kv_from < 0;
}

/* Bytes of a page that layer l has, those to where its values and its index begin. */
static size_t layer_bytes(const hn_memory_params *p, const hn_memory_layer *l, size_t *v_at, size_t *i_at)
{
    size_t k = HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(p->type, l->d_k) * (size_t)l->n_head_kv,
           v = l->d_v ? HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(p->type, l->d_v) * (size_t)l->n_head_kv : 0;
    *v_at = k;
    *i_at = k + v;
    return k + v + (size_t)l->d_i * HN_PAGE * sizeof(float);
}

/* Groups with the bytes of their pages, where each layer lies in them; m->p is set. False: too many groups. */
static bool make_groups(hn_seq_memory *m)
{
    for (int32_t il = 0; il < m->p.n_layer; il++) {
        const hn_memory_layer *l = &m->p.layer[il];
        if (m->state_at) m->state_at[il] = m->state_floats;
        m->state_floats += (uint64_t)(l->state_floats + l->conv_floats);
        if (m->group_of) m->group_of[il] = -1;
        if (!has_positions(l)) continue;
        int32_t g = 0;
        bool latent = (l->kind & HN_MEMORY_LATENT) != 0;
        while (g < m->n_group && (m->group[g].window != l->window || m->group[g].latent != latent)) g++;
        if (g == HN_MAX_MEMORY_GROUP) return false;
        if (g == m->n_group) m->group[m->n_group++] = (hn_memory_group){ .window = l->window, .latent = latent };
        size_t v_at, i_at, bytes = layer_bytes(&m->p, l, &v_at, &i_at);
        if (m->group_of) {
            m->group_of[il] = g;
            m->k_at[il] = m->group[g].pool.bytes;
            m->v_at[il] = m->group[g].pool.bytes + v_at;
            m->i_at[il] = m->group[g].pool.bytes + i_at;
        }
        m->group[g].pool.bytes += bytes;
    }
    int32_t n_tail = 0;
    m->n_page = m->n_group ? hn_pages_of(m->p.n_ctx) : 0;
    m->wants_checkpoints = m->state_floats > 0;
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        if (!g->window) continue;
        m->wants_checkpoints = true;
        g->tail = n_tail;
        g->n_tail = g->window / HN_PAGE + 2;
        if (g->n_tail > m->n_page) g->n_tail = (int32_t)m->n_page;
        n_tail += g->n_tail;
    }
    if (!m->wants_checkpoints) m->p.n_checkpoint = 0;
    return true;
}

/* a·b·c added to *sum; false: absurd. */
static bool add_product(uint64_t *sum, uint64_t a, uint64_t b, uint64_t c)
{
    if (!hn_mul_u64(a, b, &a) || !hn_mul_u64(a, c, &a) || a >= (uint64_t)1 << 60) return false;
    *sum += a;
    return *sum < (uint64_t)1 << 60;
}

/* Blocks of states: of sequences, their copies within a call, checkpoints. */
static uint64_t n_blocks(const hn_memory_params *p) { return 2 * (uint64_t)p->n_seq + (uint64_t)p->n_checkpoint; }

bool hn_memory_size(const hn_memory_params *p, hn_memory_bytes *out)
{
    hn_seq_memory m = { .p = *p };
    *out = (hn_memory_bytes){ 0 };
    if (!make_groups(&m)) return false;
    if (!add_product(&out->states, m.state_floats * sizeof(float), n_blocks(&m.p), 1)) return false;
    out->all = out->states;
    if (!add_product(&out->all, m.state_floats * sizeof(float), (uint64_t)p->n_kept, 1)) return false;
    for (int32_t i = 0; i < m.n_group; i++) {
        const hn_memory_group *g = &m.group[i];
        uint64_t most = (uint64_t)m.n_page, least = g->window ? (uint64_t)g->n_tail : most;
        if (!add_product(&out->one, g->pool.bytes, least, 1)) return false;
        if (!add_product(&out->all, g->pool.bytes, most, (uint64_t)p->n_seq)) return false;
        if (!add_product(&out->all, g->pool.bytes, (uint64_t)g->n_tail, (uint64_t)m.p.n_checkpoint)) return false;
    }
    return true;
}

/* ---- life ---- */

static size_t table_bytes(const hn_seq_memory *m)
{
    return (size_t)m->p.n_seq * (size_t)m->n_page * sizeof *m->group[0].table;
}

static size_t ids_bytes(const hn_seq_memory *m) { return (size_t)m->p.n_seq * (size_t)m->p.n_ctx * sizeof *m->ids; }

static int32_t tail_pages(const hn_seq_memory *m)
{
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_group; i++) n += m->group[i].n_tail;
    return n;
}

/* need: what sequences and checkpoints can ask for; the rest of the budget is the tree's. */
static bool alloc_pools(hn_seq_memory *m, const hn_memory_bytes *need)
{
    uint64_t more = m->p.budget > need->all ? m->p.budget - need->all : 0;
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        uint64_t most = (uint64_t)m->p.n_seq * (uint64_t)m->n_page + (uint64_t)m->p.n_checkpoint * (uint64_t)g->n_tail +
                        more / g->pool.bytes,
                 n = m->p.budget / g->pool.bytes;
        g->table = hn_pages_alloc(table_bytes(m));
        g->first = calloc((size_t)m->p.n_seq, sizeof *g->first);
        if (!g->table || !g->first || !pool_new(&g->pool, m->be, n > most ? most : n < 1 ? 1 : n, g->pool.bytes))
            return false;
        m->tables[i] = g->table;
    }
    return !m->state_floats ||
           pool_new(&m->states, m->be, n_blocks(&m->p) + (uint64_t)m->p.n_kept, m->state_floats * sizeof(float));
}

static bool alloc_sequences(hn_seq_memory *m)
{
    size_t n_seq = (size_t)m->p.n_seq, n_tail = (size_t)tail_pages(m) + 1;
    m->state_block = malloc(n_seq * sizeof *m->state_block);
    m->length = calloc(n_seq, sizeof *m->length);
    m->held = calloc(n_seq, sizeof *m->held);
    m->ids = hn_pages_alloc(ids_bytes(m));
    m->n_ids = calloc(n_seq, sizeof *m->n_ids);
    m->key = calloc(n_seq, sizeof *m->key);
    m->call = calloc(n_seq, sizeof *m->call);
    m->replaced = calloc(n_seq * (size_t)(m->n_group + 1), sizeof *m->replaced);
    m->checkpoint = calloc((size_t)m->p.n_checkpoint + 1, sizeof *m->checkpoint);
    m->tree = hn_prefix_tree_new(m->p.n_kept);
    if (!m->state_block || !m->length || !m->held || !m->ids || !m->n_ids || !m->key || !m->call || !m->replaced ||
        !m->checkpoint || !m->tree)
        return false;
    for (size_t i = 0; i < n_seq; i++) m->state_block[i] = HN_NO_BLOCK;
    for (int32_t i = 0; i < m->p.n_checkpoint; i++) {
        m->checkpoint[i].seq = -1;
        if (!(m->checkpoint[i].tail = calloc(n_tail, sizeof *m->checkpoint[i].tail))) return false;
    }
    return true;
}

hone_status hn_memory_new(hn_seq_memory **out, hn_backend *be, const hn_memory_params *p, hone_error *err)
{
    hn_memory_bytes need;
    *out = NULL;
    hn_seq_memory *m = calloc(1, sizeof *m);
    if (!m) return HN_FAIL(err, HONE_E_NOMEM, "memory of sequences");
    m->be = be;
    m->p = *p;
    size_t n = (size_t)p->n_layer;
    m->group_of = malloc(n * sizeof *m->group_of);
    m->k_at = calloc(n, sizeof *m->k_at);
    m->v_at = calloc(n, sizeof *m->v_at);
    m->i_at = calloc(n, sizeof *m->i_at);
    m->state_at = calloc(n, sizeof *m->state_at);
    bool ok = m->group_of && m->k_at && m->v_at && m->i_at && m->state_at && hn_memory_size(p, &need) && make_groups(m);
    if (ok && !m->p.budget) m->p.budget = need.all;
    if (!ok || !alloc_pools(m, &need) || !alloc_sequences(m)) {
        hn_memory_free(m);
        return HN_FAIL(err, HONE_E_NOMEM, "memory of %d sequences of %d positions was refused", p->n_seq, p->n_ctx);
    }
    *out = m;
    return HONE_OK;
}

void hn_memory_free(hn_seq_memory *m)
{
    if (!m) return;
    for (int32_t i = 0; i < m->n_group; i++) {
        pool_free(&m->group[i].pool, m->be);
        hn_pages_free(m->group[i].table, table_bytes(m));
        free(m->group[i].first);
    }
    pool_free(&m->states, m->be);
    hn_prefix_tree_free(m->tree);
    for (int32_t i = 0; m->checkpoint && i < m->p.n_checkpoint; i++) free(m->checkpoint[i].tail);
    hn_pages_free(m->ids, ids_bytes(m));
    void *const all[] = { m->group_of, m->k_at,  m->v_at, m->i_at, m->state_at, m->state_block, m->length,
                          m->held,     m->n_ids, m->key,  m->call, m->replaced, m->checkpoint };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(m);
}

hn_kv hn_memory_kv(const hn_seq_memory *m, int32_t il)
{
    const hn_memory_layer *l = &m->p.layer[il];
    if (l->kv_from >= 0) return hn_memory_kv(m, l->kv_from);
    if (m->group_of[il] < 0) return (hn_kv){ 0 };
    const hn_memory_group *g = &m->group[m->group_of[il]];
    return (hn_kv){ .mem = g->pool.mem,
                    .k_at = m->k_at[il],
                    .v_at = m->v_at[il],
                    .group = m->group_of[il],
                    .page_bytes = g->pool.bytes,
                    .head_bytes = HN_PAGE / HN_KEY_BLOCK * hn_memory_k_block(m, il),
                    .n_head_kv = l->n_head_kv,
                    .d = l->d_k,
                    .d_v = l->d_v != l->d_k ? l->d_v : 0,
                    .i_at = m->i_at[il],
                    .d_i = l->d_i,
                    .type = m->p.type };
}

hn_state hn_memory_state(const hn_seq_memory *m, int32_t il, int64_t n_embd)
{
    return (hn_state){
        .mem = m->states.mem,
        .at = (size_t)m->state_at[il],
        .block_floats = (size_t)m->state_floats,
        .conv_at = (size_t)m->state_at[il] + (size_t)m->p.layer[il].state_floats,
        .n_embd = n_embd,
    };
}

/* ---- checkpoints ---- */

static void free_checkpoint(hn_seq_memory *m, hn_checkpoint *c)
{
    if (c->seq < 0) return;
    if (m->state_floats) hn_memory_release(m, -1, c->state);
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        int64_t n = hn_pages_of(c->pos) - hn_memory_first(g, c->pos);
        for (int64_t k = 0; g->window && k < n; k++) hn_memory_release(m, i, c->tail[g->tail + k]);
    }
    c->seq = -1;
}

int32_t hn_memory_drop_checkpoints(hn_seq_memory *m, int32_t seq, int32_t pos)
{
    int32_t n = 0;
    for (int32_t i = 0; i < m->p.n_checkpoint; i++) {
        if (m->checkpoint[i].seq != seq || m->checkpoint[i].pos <= pos) continue;
        free_checkpoint(m, &m->checkpoint[i]);
        n++;
    }
    return n;
}

bool hn_memory_drop_oldest(hn_seq_memory *m)
{
    hn_checkpoint *c = NULL;
    for (int32_t i = 0; i < m->p.n_checkpoint; i++) {
        hn_checkpoint *o = &m->checkpoint[i];
        if (o->seq >= 0 && (!c || o->used < c->used)) c = o;
    }
    if (c) free_checkpoint(m, c);
    return c != NULL;
}

/* The furthest checkpoint of a sequence at or before pos; NULL: none. */
static hn_checkpoint *furthest(const hn_seq_memory *m, int32_t seq, int32_t pos)
{
    hn_checkpoint *best = NULL;
    for (int32_t i = 0; i < m->p.n_checkpoint; i++) {
        hn_checkpoint *c = &m->checkpoint[i];
        if (c->seq == seq && c->pos <= pos && (!best || c->pos > best->pos)) best = c;
    }
    return best;
}

void hn_memory_checkpoint(hn_seq_memory *m, int32_t seq)
{
    int32_t pos = m->length[seq];
    if (!m->p.n_checkpoint || !pos) return;
    hn_checkpoint *c = furthest(m, seq, pos);
    if (!c || c->pos != pos) { /* a new one: a free place, else the one not used for longest */
        c = &m->checkpoint[0];
        for (int32_t i = 1; i < m->p.n_checkpoint; i++) {
            hn_checkpoint *o = &m->checkpoint[i];
            if (c->seq >= 0 && (o->seq < 0 || o->used < c->used)) c = o;
        }
    }
    free_checkpoint(m, c);
    *c = (hn_checkpoint){ .seq = seq, .pos = pos, .used = ++m->clock, .state = m->state_block[seq], .tail = c->tail };
    if (m->state_floats) m->states.refs[c->state]++;
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        int64_t from = hn_memory_first(g, pos), n = hn_pages_of(pos) - from;
        for (int64_t k = 0; g->window && k < n; k++) {
            c->tail[g->tail + k] = table_of(m, g, seq)[from + k];
            g->pool.refs[c->tail[g->tail + k]]++;
        }
    }
}

/* ---- what a sequence holds ---- */

/* A page of a table, which may be one of a window that went on within a call. */
static void drop_slot(hn_seq_memory *m, hn_page_pool *p, uint32_t *slot)
{
    if (*slot != HN_NO_BLOCK) drop(m, p, *slot);
}

/* Lets go of the pages behind its length. */
static void trim(hn_seq_memory *m, int32_t seq)
{
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        uint32_t *t = table_of(m, g, seq);
        int64_t from = hn_pages_of(m->length[seq]);
        for (int64_t k = from < g->first[seq] ? g->first[seq] : from; k < hn_pages_of(m->held[seq]); k++)
            drop_slot(m, &g->pool, &t[k]);
        if (!m->length[seq]) g->first[seq] = 0;
    }
    m->held[seq] = m->length[seq];
    if (m->n_ids[seq] > m->length[seq]) m->n_ids[seq] = m->length[seq];
}

void hn_memory_set_state(hn_seq_memory *m, int32_t seq, uint32_t block)
{
    if (block != HN_NO_BLOCK) m->states.refs[block]++;
    if (m->state_block[seq] != HN_NO_BLOCK) drop(m, &m->states, m->state_block[seq]);
    m->state_block[seq] = block;
}

void hn_memory_empty(hn_seq_memory *m, int32_t seq)
{
    m->length[seq] = 0;
    trim(m, seq);
    hn_memory_set_state(m, seq, HN_NO_BLOCK);
}

/* The state and the last pages of windowed groups are those of c, of this sequence or one that began as it did. */
static void restore(hn_seq_memory *m, int32_t seq, hn_checkpoint *c)
{
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        uint32_t *t = table_of(m, g, seq);
        int32_t from = hn_memory_first(g, c->pos);
        int64_t n = hn_pages_of(c->pos) - from;
        if (!g->window) continue;
        for (int64_t k = 0; k < n; k++) g->pool.refs[c->tail[g->tail + k]]++;
        for (int64_t k = g->first[seq]; k < hn_pages_of(m->held[seq]); k++) drop(m, &g->pool, t[k]);
        memcpy(t + from, c->tail + g->tail, (size_t)n * sizeof *t);
        g->first[seq] = from;
    }
    if (m->state_floats) hn_memory_set_state(m, seq, c->state);
    c->used = ++m->clock;
    for (int32_t i = 0; i < m->n_group; i++) { /* the others forget positions */
        hn_memory_group *g = &m->group[i];
        uint32_t *t = table_of(m, g, seq);
        for (int64_t k = hn_pages_of(c->pos); !g->window && k < hn_pages_of(m->held[seq]); k++) drop(m, &g->pool, t[k]);
    }
    m->held[seq] = m->length[seq] = c->pos;
    trim(m, seq);
}

int32_t hn_memory_reach(const hn_seq_memory *m, int32_t seq, int32_t n_pos, hn_checkpoint **c)
{
    *c = NULL;
    if (n_pos >= m->length[seq]) return m->length[seq];
    bool direct = !m->state_floats;
    for (int32_t i = 0; i < m->n_group; i++)
        direct = direct && m->group[i].first[seq] <= hn_memory_first(&m->group[i], n_pos);
    if (n_pos <= 0 || direct) return n_pos;
    *c = furthest(m, seq, n_pos);
    return *c ? (*c)->pos : 0;
}

void hn_memory_cut(hn_seq_memory *m, int32_t seq, int32_t n_pos, hn_checkpoint *c)
{
    if (c) restore(m, seq, c);
    else if (n_pos <= 0) hn_memory_empty(m, seq);
    else if (n_pos < m->length[seq]) {
        m->length[seq] = n_pos;
        trim(m, seq);
    }
    hn_memory_drop_checkpoints(m, seq, n_pos);
}

void hn_memory_fork(hn_seq_memory *m, int32_t dst, int32_t src)
{
    if (dst == src) return;
    hn_memory_empty(m, dst);
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        uint32_t *to = table_of(m, g, dst), *from = table_of(m, g, src);
        g->first[dst] = g->first[src];
        for (int64_t k = g->first[src]; k < hn_pages_of(m->length[src]); k++) g->pool.refs[to[k] = from[k]]++;
    }
    hn_memory_set_state(m, dst, m->state_block[src]);
    m->held[dst] = m->length[dst] = m->length[src];
    m->n_ids[dst] = m->n_ids[src];
    m->key[dst] = m->key[src];
    memcpy(hn_memory_ids(m, dst), hn_memory_ids(m, src), (size_t)m->n_ids[src] * sizeof *m->ids);
}

/* Of ids [n], those that a sequence begins with. */
static int32_t common(const hn_seq_memory *m, int32_t seq, const int32_t *ids, int32_t n)
{
    int32_t most = m->n_ids[seq] < n ? m->n_ids[seq] : n, i = 0;
    while (i < most && hn_memory_ids(m, seq)[i] == ids[i]) i++;
    return i;
}

int32_t hn_memory_match(hn_seq_memory *m, int32_t seq, const int32_t *ids, int32_t n)
{
    int32_t own = common(m, seq, ids, n), best = seq, at = -1;
    hn_checkpoint *c = NULL, *way;
    hn_prefix *node;
    for (int32_t k = 0; k < m->p.n_seq; k++) {
        int32_t i = k == 0 ? seq : k <= seq ? k - 1 : k; /* its own first */
        if (!hn_same_key(m->key[i], m->key[seq])) continue;
        int32_t most = i == seq ? own : common(m, i, ids, n);
        int32_t p = hn_memory_reach(m, i, most < n - 1 ? most : n - 1, &way);
        if (p <= at) continue;
        at = p;
        best = i;
        c = way;
    }
    int32_t kept = hn_prefix_find(m, m->key[seq], ids, n, &node);
    if (kept > at) {
        hn_prefix_attach(m, seq, node, ids, kept);
        hn_memory_drop_checkpoints(m, seq,
                                   own < kept ? own : kept); /* others follow, which may differ from those ids */
        return kept;
    }
    if (best != seq) {
        hn_memory_fork(m, seq, best);
        hn_memory_drop_checkpoints(m, seq, own);
    }
    hn_memory_cut(m, seq, at, c);
    return at;
}

/* ---- a call ---- */

static hone_status fail_full(const hn_seq_memory *m, int32_t seq, int32_t n_pos, hone_error *err)
{
    uint64_t more = 0;
    for (int32_t i = 0; i < m->n_group; i++)
        more += (uint64_t)(hn_pages_of(n_pos) - hn_pages_of(m->length[seq])) * m->group[i].pool.bytes;
    return HN_FAIL(err, HONE_E_NOMEM,
                   "no memory for %d more positions of sequence %d (%.1f MiB, and copies of what it shares): %.1f MiB "
                   "of the %.1f MiB that sequences may take are in use; cut or empty some of them, use fewer, or open "
                   "the session with a larger cache_budget",
                   n_pos - m->length[seq], seq, (double)more / 0x1p20, (double)m->used / 0x1p20,
                   (double)m->p.budget / 0x1p20);
}

/* A copy of page or block `old` in *slot, which nobody else holds. */
static bool replace(hn_seq_memory *m, hn_page_pool *p, uint32_t *slot, int32_t group, int32_t seq, bool keep)
{
    uint32_t old = *slot, new;
    if (!take(m, p, &new)) return false;
    if (old == HN_NO_BLOCK) m->be->op->fill0(m->be, p->mem, page_at(p, new), p->bytes);
    else {
        m->be->op->copy(m->be, p->mem, page_at(p, new), p->mem, page_at(p, old), p->bytes);
        m->copies++;
        m->copied_bytes += p->bytes;
    }
    m->replaced[m->n_replaced++] = (hn_replaced){ group, seq, old, new, keep };
    if (!keep && old != HN_NO_BLOCK) hn_memory_release(m, group, old); /* the tree may have let go of it meanwhile */
    *slot = new;
    return true;
}

/* Must a sequence have another block than this before it writes its state? */
static bool needs_block(const hn_seq_memory *m, uint32_t block, bool keep_state)
{
    return m->state_floats && (block == HN_NO_BLOCK || keep_state || m->states.refs[block] > 1);
}

/* Where there is no memory for a copy: is it the sequence's own once the tree lets go of it? */
static bool own_without_tree(hn_seq_memory *m, int32_t group, uint32_t number)
{
    const hn_page_pool *p = hn_memory_pool(m, group);
    return p->refs[number] == p->kept[number] + 1 && hn_prefix_can_let_go(m, group, number);
}

hone_status hn_memory_extend(hn_seq_memory *m, int32_t seq, int32_t n_pos, bool slides, bool keep_state,
                             hone_error *err)
{
    int32_t len = m->length[seq];
    m->call[m->n_call++] = seq;
    for (int64_t k = hn_pages_of(len); k < hn_pages_of(n_pos); k++) {
        for (int32_t i = 0; i < m->n_group; i++) {
            hn_memory_group *g = &m->group[i];
            uint32_t *slot = &table_of(m, g, seq)[k];
            if (slides && g->window) *slot = HN_NO_BLOCK;
            else if (!take(m, &g->pool, slot)) {
                while (i-- > 0) drop_slot(m, &m->group[i].pool, &table_of(m, &m->group[i], seq)[k]);
                return fail_full(m, seq, n_pos, err);
            }
        }
        m->held[seq] = (int32_t)(k + 1 < hn_pages_of(n_pos) ? (k + 1) * HN_PAGE : n_pos);
    }
    if (m->held[seq] < n_pos) m->held[seq] = n_pos;
    uint32_t freed[HN_MAX_MEMORY_GROUP]; /* the tree lets go of these, once it is sure that all is there */
    for (int32_t i = 0; i < m->n_group && len % HN_PAGE; i++) {
        hn_memory_group *g = &m->group[i];
        uint32_t *slot = &table_of(m, g, seq)[len / HN_PAGE];
        bool copied = g->pool.refs[*slot] == 1 || replace(m, &g->pool, slot, i, seq, false);
        if (!copied && !own_without_tree(m, i, *slot)) return fail_full(m, seq, n_pos, err);
        freed[i] = copied ? HN_NO_BLOCK : *slot;
    }
    uint32_t *block = &m->state_block[seq];
    if (needs_block(m, *block, keep_state) &&
        !replace(m, &m->states, block, -1, seq, keep_state && *block != HN_NO_BLOCK)) {
        if (keep_state || *block == HN_NO_BLOCK || !own_without_tree(m, -1, *block))
            return fail_full(m, seq, n_pos, err);
        hn_prefix_let_go(m, -1, *block);
    }
    for (int32_t i = 0; i < m->n_group && len % HN_PAGE; i++)
        if (freed[i] != HN_NO_BLOCK) hn_prefix_let_go(m, i, freed[i]);
    return HONE_OK;
}

hone_status hn_memory_slide(hn_seq_memory *m, int32_t seq, int32_t before, int32_t from, int32_t to, hone_error *err)
{
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        uint32_t *t = table_of(m, g, seq);
        if (!g->window) continue;
        for (int64_t k = hn_pages_of(before); k < hn_memory_first(g, from); k++) {
            drop_slot(m, &g->pool, &t[k]);
            t[k] = HN_NO_BLOCK;
        }
        for (int64_t k = hn_pages_of(from); k < hn_pages_of(to); k++)
            if (t[k] == HN_NO_BLOCK && !take(m, &g->pool, &t[k])) return fail_full(m, seq, to, err);
    }
    return HONE_OK;
}

void hn_memory_commit(hn_seq_memory *m)
{
    for (int32_t i = 0; i < m->n_replaced; i++)
        if (m->replaced[i].kept) drop(m, hn_memory_pool(m, m->replaced[i].group), m->replaced[i].old);
    for (int32_t i = 0; i < m->n_call; i++) {
        int32_t seq = m->call[i];
        trim(m, seq);
        for (int32_t k = 0; k < m->n_group; k++) {
            hn_memory_group *g = &m->group[k];
            for (; g->first[seq] < hn_memory_first(g, m->length[seq]); g->first[seq]++)
                drop_slot(m, &g->pool, &table_of(m, g, seq)[g->first[seq]]);
        }
    }
    m->n_call = m->n_replaced = 0;
}

/* What the running call had copied of a group (−1: the state) for a sequence; NULL: it writes to what was there. */
static const hn_replaced *copied(const hn_seq_memory *m, int32_t group, int32_t seq)
{
    for (int32_t i = 0; i < m->n_replaced; i++)
        if (m->replaced[i].group == group && m->replaced[i].seq == seq) return &m->replaced[i];
    return NULL;
}

/* Of those that shared a page or block the last writes to it, when the others have copies: may it be what it was? */
static bool written(const hn_seq_memory *m, int32_t group, uint32_t number)
{
    for (int32_t i = 0; i < m->n_call; i++) {
        int32_t seq = m->call[i] < 0 ? ~m->call[i] : m->call[i];
        if (copied(m, group, seq)) continue;
        int32_t at = m->length[seq] / HN_PAGE;
        if (group < 0 ? m->state_block[seq] == number
                      : m->length[seq] % HN_PAGE && table_of(m, &m->group[group], seq)[at] == number)
            return true;
    }
    return false;
}

/* Has a sequence the state still that it had before the running call? */
static bool has_copy(const hn_seq_memory *m, int32_t seq)
{
    const hn_replaced *r = copied(m, -1, seq);
    return r && !(r->old != HN_NO_BLOCK && written(m, -1, r->old));
}

void hn_memory_undo(hn_seq_memory *m, bool ran)
{
    for (int32_t i = 0; i < m->n_call; i++) { /* those that are lost: ~seq */
        trim(m, m->call[i]);
        if (ran && m->state_floats && !has_copy(m, m->call[i])) m->call[i] = ~m->call[i];
    }
    for (int32_t i = m->n_replaced - 1; i >= 0; i--) {
        const hn_replaced *r = &m->replaced[i];
        hn_page_pool *p = hn_memory_pool(m, r->group);
        uint32_t *slot = r->group < 0 ? &m->state_block[r->seq]
                                      : &table_of(m, &m->group[r->group], r->seq)[m->length[r->seq] / HN_PAGE];
        /* a copy of a page has all that was there, and the original what another sequence wrote: it stays */
        if (ran && r->group >= 0 && written(m, r->group, r->old)) continue;
        if (!r->kept && r->old != HN_NO_BLOCK) p->refs[r->old]++;
        drop(m, p, r->new);
        *slot = r->old;
    }
    m->n_replaced = 0;
    for (int32_t i = 0; i < m->n_call; i++) {
        if (m->call[i] >= 0) continue;
        int32_t seq = ~m->call[i];
        hn_checkpoint *c = furthest(m, seq, m->length[seq]);
        if (c) restore(m, seq, c);
        else hn_memory_empty(m, seq);
    }
    m->n_call = 0;
}

/* ---- bytes of a sequence ---- */

size_t hn_memory_block_at(const hn_seq_memory *m, int32_t il, int32_t seq, int64_t pos, int32_t head, int plane)
{
    hn_kv kv = hn_memory_kv(m, il);
    uint32_t page = m->tables[kv.group][(size_t)seq * (size_t)m->n_page + (size_t)(pos / HN_PAGE)];
    const size_t block = hn_memory_block(m, il, plane), at = plane == HN_PLANE_INDEX ? kv.i_at
                                                             : plane                 ? kv.v_at
                                                                                     : kv.k_at;
    if (plane == HN_PLANE_V) kv.head_bytes = hn_kv_v_head(&kv);
    return at + hn_kv_at(&kv, page, head) + (size_t)(pos % HN_PAGE / HN_KEY_BLOCK) * block;
}

int32_t hn_memory_from(const hn_seq_memory *m, int32_t il, int32_t length)
{
    const hn_memory_layer *l = &m->p.layer[il];
    if (!has_positions(l)) return -1;
    return hn_memory_first(&m->group[m->group_of[il]], length) * HN_PAGE;
}

uint64_t hn_memory_bytes_at(const hn_seq_memory *m, int32_t length)
{
    uint64_t n = length ? m->state_floats * sizeof(float) : 0;
    for (int32_t i = 0; i < m->n_group; i++)
        n += (uint64_t)(hn_pages_of(length) - hn_memory_first(&m->group[i], length)) * m->group[i].pool.bytes;
    return n;
}

uint64_t hn_memory_bytes_to(const hn_seq_memory *m, int32_t length)
{
    uint64_t n = hn_memory_bytes_at(m, length);
    for (int32_t i = 0; i < m->n_group; i++) {
        const hn_memory_group *g = &m->group[i];
        int64_t all = hn_pages_of(length), most = g->window && g->n_tail < all ? g->n_tail : all;
        int64_t then = all - hn_memory_first(g, length);
        if (most > then) n += (uint64_t)(most - then) * g->pool.bytes;
    }
    return n;
}

bool hn_memory_fits(const hn_seq_memory *m, const int32_t *length, int32_t n)
{
    uint64_t all = 0;
    for (int32_t i = 0; i < n; i++) all += hn_memory_bytes_at(m, length[i]);
    return all <= m->p.budget;
}

/* Of what a sequence holds, the bytes that nobody else does. */
static uint64_t bytes_alone(const hn_seq_memory *m, int32_t seq)
{
    uint32_t block = m->state_block[seq];
    uint64_t n = block != HN_NO_BLOCK && m->states.refs[block] == 1 ? m->states.bytes : 0;
    for (int32_t i = 0; i < m->n_group; i++) {
        const hn_memory_group *g = &m->group[i];
        for (int64_t k = g->first[seq]; k < hn_pages_of(m->length[seq]); k++)
            if (g->pool.refs[table_of(m, g, seq)[k]] == 1) n += g->pool.bytes;
    }
    return n;
}

/* Counts all that a sequence, its checkpoints and the tree hold once more (by 1) or less (by -1); every: the
 * checkpoints of all sequences. */
static void count_holders(hn_seq_memory *m, int32_t seq, bool every, int by)
{
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        for (int64_t k = g->first[seq]; k < hn_pages_of(m->length[seq]); k++)
            g->pool.refs[table_of(m, g, seq)[k]] += (uint32_t)by;
        for (int32_t c = 0; g->window && c < m->p.n_checkpoint; c++) {
            const hn_checkpoint *at = &m->checkpoint[c];
            bool counts = at->seq >= 0 && (every || at->seq == seq);
            int64_t n = counts ? hn_pages_of(at->pos) - hn_memory_first(g, at->pos) : 0;
            for (int64_t k = 0; k < n; k++) g->pool.refs[at->tail[g->tail + k]] += (uint32_t)by;
        }
        for (const hn_prefix *p = m->tree->oldest; p; p = p->newer)
            if (p->page[i] != HN_NO_BLOCK) g->pool.refs[p->page[i]] += (uint32_t)by;
    }
    if (m->state_block[seq] != HN_NO_BLOCK) m->states.refs[m->state_block[seq]] += (uint32_t)by;
    for (int32_t c = 0; m->state_floats && c < m->p.n_checkpoint; c++)
        if (m->checkpoint[c].seq >= 0 && (every || m->checkpoint[c].seq == seq))
            m->states.refs[m->checkpoint[c].state] += (uint32_t)by;
    for (const hn_prefix *p = m->tree->oldest; p; p = p->newer)
        if (p->state != HN_NO_BLOCK) m->states.refs[p->state] += (uint32_t)by;
}

static uint64_t bytes_in_use(const hn_page_pool *p)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->fresh; i++) n += p->refs[i] ? p->bytes : 0;
    return n;
}

/* Bytes that would be in use if neither the sequence nor the tree held anything; every: nor any checkpoint. */
static uint64_t bytes_of_others(hn_seq_memory *m, int32_t seq, bool every)
{
    count_holders(m, seq, every, -1);
    uint64_t n = bytes_in_use(&m->states);
    for (int32_t i = 0; i < m->n_group; i++) n += bytes_in_use(&m->group[i].pool);
    count_holders(m, seq, every, 1);
    return n;
}

/* Room for so many bytes in place of what the sequence has. Checkpoints of others go for it, those not used for longest
 * first, where that is enough: false, and nothing went, where it is not. */
static bool make_room(hn_seq_memory *m, int32_t seq, uint64_t need)
{
    if (m->used - bytes_alone(m, seq) + need <= m->p.budget) return true;
    if (bytes_of_others(m, seq, true) + need > m->p.budget) return false;
    hn_memory_drop_checkpoints(m, seq, -1); /* they are as good as gone */
    while (bytes_of_others(m, seq, false) + need > m->p.budget && hn_memory_drop_oldest(m)) {}
    return true;
}

/* take, for whose bytes there is room without the tree: nothing of it stays in the way. */
static bool take_over(hn_seq_memory *m, hn_page_pool *p, uint32_t *number)
{
    if (take(m, p, number)) return true;
    hn_prefix_drop_all(m);
    return take(m, p, number);
}

hone_status hn_memory_renew(hn_seq_memory *m, int32_t seq, int32_t n_pos, const int32_t *ids, hone_error *err)
{
    if (!make_room(m, seq, hn_memory_bytes_at(m, n_pos))) return fail_full(m, seq, n_pos, err);
    hn_memory_drop_checkpoints(m, seq, -1);
    hn_memory_empty(m, seq);
    bool ok = true;
    for (int32_t i = 0; i < m->n_group; i++) {
        hn_memory_group *g = &m->group[i];
        g->first[seq] = hn_memory_first(g, n_pos);
        for (int64_t k = g->first[seq]; k < hn_pages_of(n_pos); k++)
            ok = ok && take_over(m, &g->pool, &table_of(m, g, seq)[k]);
    }
    if (m->state_floats && n_pos) ok = ok && take_over(m, &m->states, &m->state_block[seq]);
    (void)ok; /* a pool has pages for every sequence at its longest, or as many as the budget */
    m->held[seq] = m->length[seq] = n_pos;
    m->n_ids[seq] = ids ? n_pos : 0;
    if (ids) memcpy(hn_memory_ids(m, seq), ids, (size_t)n_pos * sizeof *ids);
    return HONE_OK;
}

/* ---- reports ---- */

static size_t used_of(const hn_page_pool *p)
{
    enum { HUGE = 2 << 20 }; /* what the system may give at once */
    size_t all = (size_t)p->n * p->bytes, used = ((size_t)p->fresh * p->bytes + HUGE - 1) / HUGE * HUGE;
    return used < all ? used : all;
}

size_t hn_memory_used_of(const hn_seq_memory *m, const hn_buf *buf)
{
    for (int32_t i = 0; i < m->n_group; i++)
        if (m->group[i].pool.mem == buf) return used_of(&m->group[i].pool);
    return m->states.mem == buf ? used_of(&m->states) : 0;
}

uint64_t hn_memory_reserved(const hn_seq_memory *m)
{
    uint64_t n = (uint64_t)m->states.n * m->states.bytes;
    for (int32_t i = 0; i < m->n_group; i++) n += (uint64_t)m->group[i].pool.n * m->group[i].pool.bytes;
    return n;
}
