/* What sequences remember, against a model that recomputes everything. First the memory alone, of plans no family has
 * yet (windows, states and both), on a backend whose memory nobody else may touch: a position's content is a hash of
 * all ids up to it. Then sessions of five families: random appends, forks, cuts, syncs, snapshots, files and refusals,
 * and after each the logits of a session that ran the same ids from nothing.
 * HONE_MEMORY_STEPS: steps per plan and family; 10000 in the long setting. */
#include "../unit/growth.h"
#include "../unit/tiny_rwkv.h"
#include "engine/engine.h"
#include "engine/prefix.h"
#include "../unit/slowed.h"

#include <sys/mman.h>

enum { STEPS = SLOWED ? 80 : 250 };

static long steps(long unit)
{
    const char *s = getenv("HONE_MEMORY_STEPS");
    return s ? atol(s) : STEPS * unit;
}

static uint64_t drawn;
static uint32_t draw(uint32_t n) { return (uint32_t)(hn_rand64(4711, drawn++) >> 20) % n; }

/* ---- a backend whose memory is its own -------------------------------------------------------------- */

static struct {
    char *p;
    size_t n;
} areas[64];
static int n_area, n_copy;

static void allow(int prot)
{
    for (int i = 0; i < n_area; i++) assert_int_equal(mprotect(areas[i].p, areas[i].n, prot), 0);
}
static hn_buf *far_alloc(hn_backend *b, uint64_t bytes, hn_mem_kind kind)
{
    char *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    areas[n_area].p = p;
    areas[n_area++].n = bytes;
    return (hn_buf *)(void *)p;
}
static void far_release(hn_backend *b, hn_buf *p)
{
    for (int i = 0; i < n_area; i++)
        if (areas[i].p == (char *)p) {
            munmap(areas[i].p, areas[i].n);
            areas[i] = areas[--n_area];
            break;
        }
}
static void far_copy(hn_backend *b, hn_buf *dst, size_t dst_at, const hn_buf *src, size_t src_at, size_t n)
{
    allow(PROT_READ | PROT_WRITE);
    memcpy((char *)dst + dst_at, (const char *)src + src_at, n);
    allow(PROT_NONE);
    n_copy++;
}
static void far_fill0(hn_backend *b, hn_buf *dst, size_t at, size_t n)
{
    allow(PROT_READ | PROT_WRITE);
    memset((char *)dst + at, 0, n);
    allow(PROT_NONE);
}
static const hn_backend_ops far_ops = {
    .name = "far", .alloc = far_alloc, .release = far_release, .copy = far_copy, .fill0 = far_fill0
};
static hn_backend far_backend = { &far_ops };

/* ---- memory alone ------------------------------------------------------------------------------------- */

enum { N_SEQ = 5, N_CTX = 700, N_LAYER = 6, N_IDS = 3 };

#define KV(w)                                                                                    \
    {                                                                                            \
        .kind = HN_MEMORY_KV, .n_head_kv = 2, .d_k = 16, .d_v = 16, .window = (w), .kv_from = -1 \
    }
#define STATE(n)                                                                                       \
    {                                                                                                  \
        .kind = HN_MEMORY_STATE | HN_MEMORY_CONV, .state_floats = (n), .conv_floats = 4, .kv_from = -1 \
    }
typedef struct plan {
    const char *name;
    hn_memory_layer layer[N_LAYER];
} plan;
static const plan plans[] = {
    { "positions", { KV(0), KV(0), { .kind = HN_MEMORY_KV, .kv_from = 1 }, { .kv_from = -1 }, KV(0), KV(0) } },
    { "windows", { KV(0), KV(100), KV(100), KV(1), KV(0), KV(300) } },
    { "latent",
      { { .kind = HN_MEMORY_LATENT, .n_head_kv = 1, .d_k = 40, .kv_from = -1 }, KV(0), KV(0), KV(0), KV(0), KV(0) } },
    { "states", { STATE(20), STATE(40), STATE(20), STATE(20), STATE(20), STATE(20) } },
    { "hybrid",
      { STATE(20),
        KV(0),
        STATE(20),
        KV(130),
        { .kv_from = -1 },
        { .kind = HN_MEMORY_KV | HN_MEMORY_STATE,
          .n_head_kv = 1,
          .d_k = 8,
          .d_v = 8,
          .state_floats = 8,
          .kv_from = -1 } } },
};

static hn_seq_memory *mem;
static const plan *now;
static int32_t ids[N_SEQ][N_CTX], len[N_SEQ]; /* the model */
static long n_refused;

/* What was kept, as far as it is known that nothing of it had to go. */
enum { N_KEPT = 64 };
static struct {
    int32_t ids[N_CTX], len;
    uint64_t scope;
} was[N_KEPT];
static int n_kept;
static long n_from_tree;

/* Bytes that sequences and checkpoints hold. */
static uint64_t theirs(void)
{
    uint64_t held, alone;
    hn_prefix_bytes(mem, &held, &alone);
    return mem->used - alone;
}

static uint64_t mixed(uint64_t h, int32_t id) { return hn_mix64(h * 31 + (uint64_t)id + 1); }

/* Where a position's 8 bytes are in K (or V) of a head, and a state's. */
static char *at_position(int32_t il, int32_t seq, int32_t pos, int32_t head, bool v)
{
    size_t block = hn_memory_block_at(mem, il, seq, pos, head, v);
    return (char *)hn_memory_kv(mem, il).mem + block + 8 * (size_t)(pos % HN_KEY_BLOCK);
}
static char *at_state(int32_t il, int32_t seq)
{
    hn_state s = hn_memory_state(mem, il, 1);
    return (char *)s.mem + (s.at + (size_t)mem->state_block[seq] * s.block_floats) * sizeof(float);
}
static bool has_kv(int32_t il) { return mem->group_of[il] >= 0; }
static bool has_state(int32_t il) { return now->layer[il].state_floats > 0; }

/* What a forward pass would do: positions [from, to) of seq, whose ids are known. */
static void compute(int32_t seq, const int32_t *id, int32_t from, int32_t to)
{
    uint64_t h = 7 + mem->key[seq].scope;
    for (int32_t i = 0; i < from; i++) h = mixed(h, id[i]);
    allow(PROT_READ | PROT_WRITE);
    for (int32_t pos = from; pos < to; pos++) {
        h = mixed(h, id[pos]);
        for (int32_t il = 0; il < N_LAYER; il++) {
            for (int32_t head = 0; has_kv(il) && head < now->layer[il].n_head_kv; head++)
                for (int v = 0; v < (now->layer[il].d_v ? 2 : 1); v++) {
                    uint64_t x = h + (uint64_t)(il * 8 + head * 2 + v);
                    memcpy(at_position(il, seq, pos, head, v), &x, 8);
                }
            uint64_t s;
            if (!has_state(il)) continue;
            memcpy(&s, at_state(il, seq), 8); /* from what is there: a wrong one stays wrong */
            s = mixed(s + mem->key[seq].scope, id[pos] + il);
            memcpy(at_state(il, seq), &s, 8);
        }
    }
    allow(PROT_NONE);
}

static void verify(int32_t seq)
{
    uint64_t h = 7 + mem->key[seq].scope, x;
    assert_int_equal(mem->length[seq], len[seq]);
    allow(PROT_READ);
    for (int32_t pos = 0; pos < len[seq]; pos++) {
        h = mixed(h, ids[seq][pos]);
        for (int32_t il = 0; il < N_LAYER; il++) {
            int32_t w = now->layer[il].window;
            if (!has_kv(il) || (w && pos < len[seq] - w + 1)) continue;
            for (int32_t head = 0; head < now->layer[il].n_head_kv; head++)
                for (int v = 0; v < (now->layer[il].d_v ? 2 : 1); v++) {
                    memcpy(&x, at_position(il, seq, pos, head, v), 8);
                    if (x != h + (uint64_t)(il * 8 + head * 2 + v))
                        fail_msg("%s: sequence %d of %d positions: layer %d, position %d differs", now->name, seq,
                                 len[seq], il, pos);
                }
        }
    }
    for (int32_t il = 0; il < N_LAYER && len[seq]; il++) {
        uint64_t s = 0;
        if (!has_state(il)) continue;
        for (int32_t pos = 0; pos < len[seq]; pos++) s = mixed(s + mem->key[seq].scope, ids[seq][pos] + il);
        memcpy(&x, at_state(il, seq), 8);
        if (x != s)
            fail_msg("%s: sequence %d of %d positions: the state of layer %d differs", now->name, seq, len[seq], il);
    }
    allow(PROT_NONE);
}

/* Every holder is counted, and every byte that is counted is held. */
static void balance(void)
{
    uint64_t used = 0;
    for (int32_t g = -1; g < mem->n_group; g++) {
        const hn_page_pool *p = g < 0 ? &mem->states : &mem->group[g].pool;
        uint32_t *n = calloc((size_t)p->n + 1, sizeof *n), *kept = calloc((size_t)p->n + 1, sizeof *kept), spare = 0;
        for (int32_t seq = 0; seq < N_SEQ; seq++) {
            if (g < 0 && mem->state_block[seq] != HN_NO_BLOCK) n[mem->state_block[seq]]++;
            for (int32_t k = g < 0 ? 0 : mem->group[g].first[seq]; g >= 0 && k < (len[seq] + HN_PAGE - 1) / HN_PAGE;
                 k++)
                n[mem->group[g].table[(int64_t)seq * mem->n_page + k]]++;
        }
        for (int32_t i = 0; i < mem->p.n_checkpoint; i++) {
            const hn_checkpoint *c = &mem->checkpoint[i];
            if (c->seq < 0) continue;
            if (g < 0 && mem->state_floats) n[c->state]++;
            if (g < 0 || !mem->group[g].window) continue;
            int32_t w = mem->group[g].window, lo = c->pos >= w ? (c->pos - w + 1) / HN_PAGE : 0;
            for (int32_t k = lo; k < (c->pos + HN_PAGE - 1) / HN_PAGE; k++) n[c->tail[mem->group[g].tail + k - lo]]++;
        }
        for (const hn_prefix *t = mem->tree->oldest; t; t = t->newer) {
            uint32_t held = g < 0 ? t->state : t->page[g];
            if (held != HN_NO_BLOCK) n[held]++, kept[held]++;
        }
        for (uint32_t i = 0; i < p->fresh; i++) {
            assert_int_equal(p->refs ? p->refs[i] : 0, n[i]);
            assert_int_equal(p->kept[i], kept[i]);
            if (n[i]) used += p->bytes;
            else if (i < p->fresh) spare++;
        }
        assert_int_equal(p->n_spare, spare);
        free(n);
        free(kept);
    }
    assert_int_equal(mem->used, used);
    assert_true(mem->used <= mem->p.budget);
    uint64_t n_node = 0, n_page = 0, n_state = 0;
    for (const hn_prefix *t = mem->tree->oldest; t; t = t->newer) {
        int32_t after = 0;
        for (const hn_prefix *c = mem->tree->oldest; c; c = c->newer) after += c->parent == t;
        assert_int_equal(t->n_child, after);
        n_node++, n_state += t->state != HN_NO_BLOCK;
        for (int32_t g = 0; g < mem->n_group; g++) n_page += t->page[g] != HN_NO_BLOCK;
    }
    assert_true(mem->tree->n_node == n_node && mem->tree->n_page == n_page && mem->tree->n_state == n_state);
    assert_true(n_state <= (uint64_t)mem->p.n_kept);
}

static void keep(int32_t seq)
{
    int32_t i = n_kept++ % N_KEPT, copies = n_copy;
    uint64_t before = mem->used;
    assert_int_equal(hn_prefix_keep(mem, seq, NULL), HONE_OK);
    assert_true(mem->used <= before); /* of two pages that hold the same one may go */
    assert_int_equal(n_copy, copies);
    memcpy(was[i].ids, ids[seq], sizeof ids[seq]);
    was[i].len = mem->n_ids[seq] == len[seq] ? len[seq] : 0;
    was[i].scope = mem->key[seq].scope;
}

/* The place that the tree must have of ids [n] when nothing had to go. */
static int32_t kept_of(uint64_t scope, const int32_t *id, int32_t n)
{
    int32_t most = 0;
    if (mem->tree->n_evicted) return 0;
    for (int32_t k = 0; k < N_KEPT; k++) {
        int32_t same = 0;
        if (was[k].scope != scope) continue;
        while (same < was[k].len && same < n && was[k].ids[same] == id[same]) same++;
        if (!mem->wants_checkpoints) same = same / HN_PAGE * HN_PAGE;
        else if (same < was[k].len) same = 0;
        if (same > n - 1) same = mem->state_floats ? 0 : n - 1;
        most = same > most ? same : most;
    }
    return most;
}

/* What compute does, a few positions at a time, before which the windows go on. False: there is no memory for them. */
static bool compute_sliding(int32_t seq, int32_t to)
{
    hone_error err = { 0 };
    for (int32_t at = len[seq], next; at < to; at = next) {
        next = at + 1 + (int32_t)(hn_rand64(8, drawn + (uint64_t)at) % 80);
        if (next > to) next = to;
        hone_status st = hn_memory_slide(mem, seq, len[seq], at, next, &err);
        if (st != HONE_OK) {
            assert_int_equal(st, HONE_E_NOMEM);
            return false;
        }
        compute(seq, ids[seq], at, next);
    }
    return true;
}

static void grow(int32_t seq)
{
    int32_t n = 1 + (int32_t)draw(draw(4) ? 30 : 200), to = len[seq] + n;
    uint64_t before = theirs(), held, alone;
    bool copy = draw(2), fails = draw(6) == 0, slides = hn_rand64(9, drawn) & 1;
    if (to > N_CTX) return;
    for (int32_t i = len[seq]; i < to; i++) ids[seq][i] = (int32_t)draw(N_IDS);
    hone_error err = { 0 };
    hone_status st = hn_memory_extend(mem, seq, to, slides, copy, &err);
    if (st != HONE_OK) {
        assert_int_equal(st, HONE_E_NOMEM);
        assert_non_null(strstr(err.message, "cache_budget"));
        hn_memory_undo(mem, false);
        assert_int_equal(theirs(), before);
        hn_prefix_bytes(mem, &held, &alone);
        assert_int_equal(alone, 0); /* all that could go went before */
        n_refused++;
        return;
    }
    int32_t until = fails ? len[seq] + (int32_t)draw((uint32_t)n + 1) : to;
    if (!slides) compute(seq, ids[seq], len[seq], until);
    else if (!compute_sliding(seq, until)) fails = true;
    if (fails) { /* something went wrong in the middle */
        hn_memory_undo(mem, true);
        if (copy || !mem->state_floats) {
            assert_int_equal(mem->length[seq], len[seq]);
            assert_int_equal(theirs(), before);
        }
        len[seq] = mem->length[seq]; /* a state without a copy is lost */
        return;
    }
    for (int32_t i = len[seq]; i < to; i++) hn_memory_note(mem, seq, i, ids[seq][i]);
    mem->length[seq] = len[seq] = to;
    hn_memory_commit(mem);
}

/* Two sequences in one call, which may share what they write to; and it fails, before it runs or halfway. */
static void fail_both(int32_t a, int32_t b)
{
    int32_t seq[2] = { a, b }, to[2];
    bool keep = draw(2), ran = draw(4) > 0;
    hone_status st = HONE_OK;
    for (int i = 0; i < 2; i++) {
        to[i] = len[seq[i]] + 1 + (int32_t)draw(30);
        if (to[i] > N_CTX) return;
    }
    uint64_t before = theirs();
    for (int i = 0; i < 2 && st == HONE_OK; i++) st = hn_memory_extend(mem, seq[i], to[i], false, keep, NULL);
    ran = ran && st == HONE_OK;
    for (int i = 0; i < 2 && ran; i++) {
        int32_t more[N_CTX];
        memcpy(more, ids[seq[i]], sizeof more);
        for (int32_t k = len[seq[i]]; k < to[i]; k++) more[k] = (int32_t)draw(N_IDS);
        compute(seq[i], more, len[seq[i]], to[i]);
    }
    hn_memory_undo(mem, ran);
    if (!ran) assert_int_equal(theirs(), before);
    for (int i = 0; i < 2; i++) {
        if (keep || !ran || !mem->state_floats) assert_int_equal(mem->length[seq[i]], len[seq[i]]);
        len[seq[i]] = mem->length[seq[i]];
        verify(seq[i]);
    }
}

static void match(int32_t seq)
{
    int32_t want[N_CTX], like = (int32_t)draw(N_SEQ), n = 1 + (int32_t)draw(N_CTX), got, best = 0, copies = n_copy;
    bool old = draw(2); /* what was kept once, or what a sequence holds */
    int k = (int)draw(n_kept && n_kept < N_KEPT ? (uint32_t)n_kept : N_KEPT);
    const int32_t *from = old ? was[k].ids : ids[like];
    int32_t most = old ? was[k].len : len[like], same = draw(2) ? most : (int32_t)draw((uint32_t)most + 1);
    if (n <= same && draw(2)) n = same + 1 < N_CTX ? same + 1 : N_CTX;
    for (int32_t i = 0; i < n; i++) want[i] = i < same ? from[i] : (int32_t)draw(N_IDS);
    for (k = 0; k < N_SEQ; k++) {
        int32_t i = 0;
        if (mem->key[k].scope != mem->key[seq].scope) continue;
        while (i < len[k] && i < n - 1 && ids[k][i] == want[i]) i++;
        if (i > best) best = i;
    }
    int32_t least = kept_of(mem->key[seq].scope, want, n);
    if (!mem->wants_checkpoints && best > least) least = best;
    got = hn_memory_match(mem, seq, want, n);
    assert_in_range(got, least, n - 1);
    n_from_tree += got > best;
    assert_int_equal(n_copy, copies);
    memcpy(ids[seq], want, (size_t)got * sizeof *want);
    len[seq] = got;
}

static void step_alone(void)
{
    int32_t seq = (int32_t)draw(N_SEQ), other = (int32_t)draw(N_SEQ), n, copies = n_copy;
    hn_checkpoint *c;
    switch (draw(16)) {
    case 0:
        if (other == seq) break;
        hn_memory_fork(mem, seq, other);
        hn_memory_drop_checkpoints(mem, seq, -1);
        assert_int_equal(n_copy, copies);
        memcpy(ids[seq], ids[other], sizeof ids[seq]);
        len[seq] = len[other];
        break;
    case 1:
    case 2:
        n = (int32_t)draw((uint32_t)len[seq] + 1);
        int32_t to = hn_memory_reach(mem, seq, n, &c);
        assert_true(to <= n && (mem->wants_checkpoints || to == n));
        hn_memory_cut(mem, seq, to, c);
        len[seq] = to;
        break;
    case 3: hn_memory_checkpoint(mem, seq); break;
    case 4: match(seq); break;
    case 5: /* from somewhere else */
        if (draw(3)) break;
        n = (int32_t)draw(N_CTX / 2);
        if (hn_memory_renew(mem, seq, n, ids[other], NULL) != HONE_OK) break;
        memmove(ids[seq], ids[other], sizeof ids[seq]);
        len[seq] = n;
        for (int32_t il = 0; il < N_LAYER && n; il++)
            if (has_state(il))
                far_fill0(&far_backend, mem->states.mem, (size_t)(at_state(il, seq) - (char *)mem->states.mem), 8);
        for (int32_t g = 0; g < mem->n_group; g++) assert_true(mem->group[g].first[seq] <= n / HN_PAGE);
        for (int32_t g = 0; g < mem->n_group; g++) /* compute writes all positions: give it all pages */
            if (mem->group[g].first[seq]) n = 0;
        if (n || !len[seq]) compute(seq, ids[seq], 0, n);
        else hn_memory_cut(mem, seq, 0, NULL), len[seq] = 0;
        break;
    case 6:
        if (other != seq) fail_both(seq, other);
        break;
    case 7:
    case 8: keep(seq); break;
    case 9: match(seq); break;
    case 10: /* gone, and maybe another's turn */
        if (draw(3)) keep(seq);
        hn_memory_cut(mem, seq, 0, NULL);
        len[seq] = 0;
        mem->key[seq].scope = draw(4) == 0;
        break;
    default: grow(seq);
    }
}

static void memory_is_what_was_computed(void **state)
{
    long n_all = 0, n_evicted = 0;
    n_from_tree = 0;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        for (int tight = 0; tight < 3; tight++) { /* room for all that is kept; for little; for some */
            hn_memory_params p = { .layer = plans[i].layer,
                                   .n_layer = N_LAYER,
                                   .type = HN_CACHE_F16,
                                   .n_seq = N_SEQ,
                                   .n_ctx = N_CTX,
                                   .n_checkpoint = 4,
                                   .n_kept = tight ? 3 : 300 };
            hn_memory_bytes need;
            now = &plans[i];
            drawn = i * 1000003 + (uint64_t)tight;
            assert_true(hn_memory_size(&p, &need));
            p.budget = tight == 0   ? 40 * need.all
                       : tight == 1 ? (need.all - need.states) / 12 + need.states / 3
                                    : need.all / 2;
            assert_int_equal(hn_memory_new(&mem, &far_backend, &p, NULL), HONE_OK);
            memset(len, 0, sizeof len);
            long n = steps(4);
            n_refused = n_kept = 0;
            memset(was, 0, sizeof was);
            for (long k = 0; k < n; k++) {
                step_alone();
                verify((int32_t)draw(N_SEQ));
                if (k % 10) continue;
                for (int32_t seq = 0; seq < N_SEQ; seq++) verify(seq);
                balance();
            }
            assert_true(tight != 1 || n_refused > n / 200);
            assert_true(tight || mem->state_floats || n > 9999 ||
                        !mem->tree->n_evicted); /* or else kept_of asks for nothing */
            n_all += n, n_evicted += (long)mem->tree->n_evicted;
            hn_prefix_drop_all(mem);
            balance();
            hn_memory_free(mem);
            assert_int_equal(n_area, 0);
        }
    print_message("%ld steps: %ld matches went further for the tree, %ld of its nodes gave way\n", n_all, n_from_tree,
                  n_evicted);
    assert_true(n_from_tree > n_all / 200 && n_evicted > n_all / 200);
}

/* Behind a window pages go; a cut that needs them goes to the nearest checkpoint, and says how far. */
static void windows_drop_pages(void **state)
{
    static const hn_memory_layer one[N_LAYER] = { KV(128), KV(128), KV(128), KV(128), KV(128), KV(128) };
    static const plan only = { "one window", { KV(128), KV(128), KV(128), KV(128), KV(128), KV(128) } };
    hn_memory_params p = { .layer = one, .n_layer = N_LAYER, .n_seq = N_SEQ, .n_ctx = N_CTX, .n_checkpoint = 2 };
    hn_checkpoint *c;
    now = &only;
    memset(len, 0, sizeof len);
    assert_int_equal(hn_memory_new(&mem, &far_backend, &p, NULL), HONE_OK);
    size_t page = mem->group[0].pool.bytes;
    for (int32_t n = 10; n <= 640; n += 10) {
        assert_int_equal(hn_memory_extend(mem, 0, n, false, false, NULL), HONE_OK);
        compute(0, ids[0], len[0], n);
        mem->length[0] = len[0] = n;
        hn_memory_commit(mem);
        if (n == 320) hn_memory_checkpoint(mem, 0);
        assert_true(mem->used <= (128 / HN_PAGE + 2) * 2 * page);
    }
    verify(0);
    assert_int_equal(hn_memory_reach(mem, 0, 639, &c), mem->group[0].first[0] * HN_PAGE <= 639 - 127 ? 639 : 320);
    assert_int_equal(hn_memory_reach(mem, 0, 400, &c), 320);
    assert_non_null(c);
    hn_memory_cut(mem, 0, 320, c);
    len[0] = 320;
    verify(0);
    balance();
    assert_int_equal(hn_memory_reach(mem, 0, 100, &c), mem->group[0].first[0] ? 0 : 100);
    hn_memory_free(mem);
}

/* ---- sessions ------------------------------------------------------------------------------------------ */

static hone_context *ctx;
static struct {
    const char *name;
    hone_model *m;
} family[5];
enum { SEQS = 4, CTX = 330, MAX_IDS = 5 };
static hone_session *live, *fresh;
static int V;

static int set_up(void **state)
{
    const rw_shape rwkv[] = { rw_vec7, rw_vec6 };
    if (tm_make_dir(state)) return -1;
    ctx = tm_context(NULL, 2);
    static const tm_shape shapes[] = { TM("llama", 32, 4, 2, 8, 48, 16, 2, 1e4, 1e-5, .tied = true),
                                       TM("qwen2", 32, 4, 2, 8, 48, 16, 2, 1e6, 1e-6, .qkv_bias = true),
                                       TM("qwen3", 32, 4, 2, 8, 48, 16, 2, 1e6, 1e-6) };
    for (int i = 0; i < 5; i++) {
        tiny *t = i < 3 ? tm_new(shapes[i]) : rw_new(&rwkv[i - 3]);
        family[i].name = i < 3 ? shapes[i].arch : rwkv[i - 3].arch;
        family[i].m = tm_open(t);
        tm_free(t);
    }
    return 0;
}
static int tear_down(void **state)
{
    for (int i = 0; i < 5; i++) hone_model_close(family[i].m);
    hone_context_free(ctx);
    return tm_remove_dir(state);
}

/* The next token of seq gives the logits that all its ids give from nothing. */
static void goes_on(int f, int32_t seq)
{
    const float *want;
    float *got = malloc((size_t)V * sizeof *got);
    hone_error err = { 0 };
    int32_t n = len[seq];
    if (n + 1 > CTX) return free(got);
    ids[seq][n] = (int32_t)draw(MAX_IDS);
    hone_token t = { ids[seq][n], n, seq, true };
    hone_status st = hone_run_batch(live, &t, 1, got, &err);
    if (st == HONE_OK) {
        len[seq]++;
        assert_int_equal(hone_seq_truncate(fresh, 0, 0, NULL), HONE_OK);
        assert_int_equal(hone_append(fresh, 0, ids[seq], n + 1, &want, NULL), HONE_OK);
        if (memcmp(want, got, (size_t)V * sizeof *got))
            fail_msg("%s: sequence %d differs from what its %d ids give", family[f].name, seq, n + 1);
    } else if (st != HONE_E_NOMEM) fail_msg("%s: %s", family[f].name, err.message);
    assert_int_equal(hone_seq_length(live, seq), len[seq]);
    free(got);
}

static bool stop_some(void *arg) { return draw(40) == 0; }

static void append_some(int32_t seq)
{
    const float *y;
    int32_t n = 1 + (int32_t)draw(draw(3) ? 20 : 120);
    if (len[seq] + n > CTX) return;
    for (int32_t i = 0; i < n; i++) ids[seq][len[seq] + i] = (int32_t)draw(MAX_IDS);
    hone_session_set_abort(live, draw(3) ? NULL : stop_some, NULL);
    hone_error err = { 0 };
    hone_status st = hone_append(live, seq, ids[seq] + len[seq], n, &y, &err);
    hone_session_set_abort(live, NULL, NULL);
    if (st == HONE_OK) len[seq] += n;
    else if (st != HONE_E_NOMEM && st != HONE_E_INTERRUPTED) fail_msg("%s", err.message);
}

static void sync_some(int32_t seq)
{
    const float *y;
    int32_t want[CTX], kept, like = (int32_t)draw(SEQS), n = 1 + (int32_t)draw(150);
    int32_t same = len[like] ? (int32_t)draw((uint32_t)len[like] + 1) : 0;
    for (int32_t i = 0; i < n; i++) want[i] = i < same ? ids[like][i] : (int32_t)draw(MAX_IDS);
    hone_error err = { 0 };
    hone_status st = hone_seq_sync(live, seq, want, n, &kept, &y, &err);
    if (st != HONE_OK && st != HONE_E_NOMEM) fail_msg("%s", err.message);
    assert_true(kept < n);
    len[seq] = st == HONE_OK ? n : kept;
    memcpy(ids[seq], want, (size_t)len[seq] * sizeof *want);
}

static void step_session(hone_snapshot **snap, int32_t *snap_ids, bool may_save)
{
    int32_t seq = (int32_t)draw(SEQS), other = (int32_t)draw(SEQS), n;
    hone_error err = { 0 };
    hone_status st = HONE_OK;
    switch (draw(12)) {
    case 0:
        if ((st = hone_seq_copy(live, seq, other, &err)) != HONE_OK) fail_msg("%s", err.message);
        memmove(ids[seq], ids[other], sizeof ids[seq]);
        len[seq] = len[other];
        break;
    case 1:
        if ((st = hone_seq_rewind(live, seq, (int32_t)draw((uint32_t)len[seq] + 1), &n, &err)) != HONE_OK)
            fail_msg("%s", err.message);
        len[seq] = n;
        break;
    case 2: assert_int_equal(hone_seq_checkpoint(live, seq, NULL), HONE_OK); break;
    case 3:
        hone_snapshot_free(*snap);
        assert_int_equal(hone_seq_snapshot(live, seq, snap, NULL), HONE_OK);
        memcpy(snap_ids, ids[seq], sizeof ids[seq]);
        break;
    case 4:
        if (!*snap) break;
        st = hone_seq_restore(live, seq, *snap, &err);
        if (st == HONE_E_NOMEM) break;
        if (st != HONE_OK) fail_msg("%s", err.message);
        memcpy(ids[seq], snap_ids, sizeof ids[seq]);
        len[seq] = hone_snapshot_length(*snap);
        break;
    case 5:
        if (!may_save || draw(4)) break;
        if ((st = hone_session_save(live, tm_path("memory.session"), &err)) != HONE_OK) fail_msg("%s", err.message);
        st = hone_session_load(live, tm_path("memory.session"), &err);
        if (st != HONE_OK && st != HONE_E_NOMEM) fail_msg("%s", err.message);
        break;
    case 6:
        assert_int_equal(hone_seq_truncate(live, seq, 0, NULL), HONE_OK);
        len[seq] = 0;
        break;
    case 7:
    case 8: sync_some(seq); break;
    default: append_some(seq);
    }
}

static void sessions_are_what_was_computed(void **state)
{
    static int32_t snap_ids[N_CTX];
    for (int f = 0; f < 5; f++) {
        hone_model_info info;
        hone_model_get_info(family[f].m, &info);
        V = info.n_vocab;
        drawn = 555 + (uint64_t)f * 7919;
        fresh = tm_session(ctx, family[f].m, CTX, 1, 512, HONE_CACHE_F16);
        hone_session_memory use;
        hone_session *probe = tm_session(ctx, family[f].m, CTX, SEQS, 33, HONE_CACHE_F16);
        hone_session_get_memory(probe, &use);
        hone_session_free(probe);
        for (int tight = 0; tight < 2; tight++) {
            const hone_session_params p = { .n_ctx = CTX,
                                            .n_seq = SEQS,
                                            .n_chunk = 33,
                                            .n_checkpoints = 3,
                                            .cache_budget = tight ? use.cache_bytes / 2 : 0 };
            hone_snapshot *snap = NULL;
            hone_error err = { 0 };
            if (hone_session_new(&live, ctx, family[f].m, &p, &err)) fail_msg("%s", err.message);
            memset(len, 0, sizeof len);
            long n = steps(1) / 2;
            for (long k = 0; k < n; k++) {
                step_session(&snap, snap_ids, true);
                for (int32_t seq = 0; seq < SEQS; seq++) assert_int_equal(hone_seq_length(live, seq), len[seq]);
                if (k % 3 == 0) goes_on(f, (int32_t)draw(SEQS));
            }
            for (int32_t seq = 0; seq < SEQS; seq++) goes_on(f, seq);
            hone_snapshot_free(snap);
            hone_session_free(live);
        }
        hone_session_free(fresh);
    }
}

/* ---- promises ---------------------------------------------------------------------------------------------- */

static void sixteen_share_a_prefix(void **state)
{
    enum { SHARED = 4096, MANY = 16 };
    static int32_t prompt[SHARED + 8];
    hone_token batch[MANY];
    hone_error err = { 0 };
    const float *y;
    const hone_session_params p = { .n_ctx = SHARED + 8, .n_seq = MANY };
    hone_session *all, *one = tm_session(ctx, family[0].m, SHARED + 8, 1, 512, HONE_CACHE_F16);
    hone_model_info info;
    hone_model_get_info(family[0].m, &info);
    V = info.n_vocab;
    float *got = malloc((size_t)(MANY * V) * sizeof *got);
    drawn = 99;
    for (int i = 0; i < SHARED + 8; i++) prompt[i] = (int32_t)draw(16);
    if (hone_session_new(&all, ctx, family[0].m, &p, &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_append(all, 0, prompt, SHARED, &y, NULL), HONE_OK);
    hone_session_memory before, after;
    hone_session_get_memory(all, &before);
    for (int32_t i = 1; i < MANY; i++) {
        int32_t kept;
        assert_int_equal(
            i % 2 ? hone_seq_copy(all, i, 0, NULL) : hone_seq_match(all, i, prompt, SHARED + 1, &kept, NULL), HONE_OK);
        assert_int_equal(hone_seq_length(all, i), SHARED);
    }
    hone_session_get_memory(all, &after);
    assert_int_equal(before.cache_used_bytes, after.cache_used_bytes); /* tables alone */
    assert_int_equal(all->mem->copies, 0);
    for (int k = 0; k < 3; k++) {
        for (int32_t i = 0; i < MANY; i++) batch[i] = (hone_token){ (i + k) % 16, SHARED + k, i, true };
        assert_int_equal(hone_run_batch(all, batch, MANY, got, NULL), HONE_OK);
        for (int32_t i = 0; i < MANY; i += 5) {
            for (int j = 0; j <= k; j++) prompt[SHARED + j] = (i + j) % 16;
            int32_t kept;
            assert_int_equal(hone_seq_sync(one, 0, prompt, SHARED + k + 1, &kept, &y, NULL), HONE_OK);
            assert_memory_equal(y, got + i * V, (size_t)V * sizeof *y);
        }
    }
    hone_session_get_memory(all, &after);
    assert_int_equal(after.cache_used_bytes, before.cache_used_bytes / (SHARED / HN_PAGE) * (SHARED / HN_PAGE + MANY));
    free(got);
    hone_session_free(all);
    hone_session_free(one);
}

/* Sixteen sequences of 32k positions of an 8B shape: address space, hardly any memory, at once. */
static void open_and_close(void *arg, size_t n_ctx)
{
    hn_memory_params p = *(const hn_memory_params *)arg;
    hn_seq_memory *m;
    p.n_ctx = (int32_t)n_ctx;
    assert_int_equal(hn_memory_new(&m, &far_backend, &p, NULL), HONE_OK);
    hn_memory_free(m);
}

/* n texts of a page that nobody runs; then whether they give way is asked as often: where memory is full, as that of a
 * server is, each request asks. */
static void ask_for_room(void *arg, size_t n)
{
    hn_memory_params p = *(const hn_memory_params *)arg;
    int32_t text[HN_PAGE] = { 0 };
    hn_seq_memory *m;
    p.n_ctx = HN_PAGE;
    p.n_seq = 1;
    assert_int_equal(hn_memory_new(&m, &far_backend, &p, NULL), HONE_OK);
    for (size_t i = 0; i < n; i++) {
        text[0] = (int32_t)i;
        assert_int_equal(hn_memory_renew(m, 0, HN_PAGE, text, NULL), HONE_OK);
        assert_int_equal(hn_prefix_keep(m, 0, NULL), HONE_OK);
    }
    hn_memory_empty(m, 0);
    for (size_t i = 0; i < n; i++) assert_true(hn_prefix_can_free(m, m->group[0].pool.bytes));
    assert_true(hn_prefix_can_free(m, n * m->group[0].pool.bytes));
    assert_false(hn_prefix_can_free(m, n * m->group[0].pool.bytes + 1));
    hn_memory_free(m);
}

/* A page that three places share is free for whoever needs all of it, whatever a third of its bytes is. */
static void shared_page_is_free(void **state)
{
    const hn_memory_layer layer = {
        .kind = HN_MEMORY_KV, .n_head_kv = 1, .d_k = 16, .d_v = 16, .window = 200, .kv_from = -1
    };
    hn_memory_params p = { .layer = &layer, .n_layer = 1, .n_seq = 1, .n_ctx = 2 * HN_PAGE, .budget = 1 << 20 };
    int32_t text[HN_PAGE] = { 0 };
    hn_seq_memory *m;
    assert_int_equal(hn_memory_new(&m, &far_backend, &p, NULL), HONE_OK);
    const uint64_t page = m->group[0].pool.bytes;
    assert_int_equal(hn_memory_renew(m, 0, 60, text, NULL), HONE_OK);
    for (int32_t n = 60; n > 30; n -= 10) {
        hn_checkpoint *c;
        assert_int_equal(hn_memory_reach(m, 0, n, &c), n);
        hn_memory_cut(m, 0, n, c);
        assert_int_equal(hn_prefix_keep(m, 0, NULL), HONE_OK);
    }
    hn_memory_empty(m, 0);
    assert_int_equal(m->tree->n_node, 3);
    assert_int_equal(m->used, page);
    assert_true(page % 3 != 0);
    assert_true(hn_prefix_can_free(m, page));
    assert_false(hn_prefix_can_free(m, page + 1));
    hn_memory_free(m);
}

/* A page that the tree has as the end of one text and within another cannot be let go of: none of it is. */
static void refused_extension_changes_nothing(void **state)
{
    const hn_memory_layer layer = {
        .kind = HN_MEMORY_KV, .n_head_kv = 1, .d_k = 16, .d_v = 16, .window = 64, .kv_from = -1
    };
    hn_memory_params p = { .layer = &layer, .n_layer = 1, .n_seq = 2, .n_ctx = 4 * HN_PAGE, .budget = 1 << 20 };
    enum { AT = 2 * HN_PAGE, TO = 3 * HN_PAGE };
    int32_t text[TO] = { 0 };
    hn_seq_memory *m;
    assert_int_equal(hn_memory_new(&m, &far_backend, &p, NULL), HONE_OK);
    assert_int_equal(hn_memory_renew(m, 0, AT, text, NULL), HONE_OK);
    assert_int_equal(hn_prefix_keep(m, 0, NULL), HONE_OK);
    assert_int_equal(hn_memory_extend(m, 0, TO, false, false, NULL), HONE_OK);
    for (int32_t i = AT; i < TO; i++) hn_memory_note(m, 0, i, 0);
    m->length[0] = TO;
    hn_memory_commit(m);
    assert_int_equal(hn_prefix_keep(m, 0, NULL), HONE_OK); /* behind the page */
    assert_int_equal(hn_memory_match(m, 1, text, AT), AT - 1);
    assert_int_equal(hn_prefix_keep(m, 1, NULL), HONE_OK); /* within it */
    const uint64_t nodes = m->tree->n_node, evicted = m->tree->n_evicted;
    m->p.budget = m->used;
    assert_int_equal(hn_memory_extend(m, 1, AT, false, false, NULL), HONE_E_NOMEM);
    hn_memory_undo(m, false);
    assert_int_equal(m->tree->n_node, nodes);
    assert_int_equal(m->tree->n_evicted, evicted);
    hn_memory_free(m);
}

static void room_is_found_at_once(void **state)
{
    const hn_memory_layer layer = { .kind = HN_MEMORY_KV, .n_head_kv = 1, .d_k = 16, .d_v = 16, .kv_from = -1 };
    hn_memory_params p = { .layer = &layer, .n_layer = 1, .budget = (uint64_t)1 << 30 };
    assert_true(grows_as_input("room", ask_for_room, &p, 100, 8000));
}

static void large_sessions_open(void **state)
{
    static hn_memory_layer layer[32];
    for (int i = 0; i < 32; i++)
        layer[i] = (hn_memory_layer){ .kind = HN_MEMORY_KV, .n_head_kv = 8, .d_k = 128, .d_v = 128, .kv_from = -1 };
    hn_memory_params p = { .layer = layer, .n_layer = 32, .n_seq = 16, .n_ctx = 32768, .budget = (uint64_t)16 << 30 };
    hn_memory_bytes need;
    assert_true(hn_memory_size(&p, &need));
    assert_int_equal(need.all, (uint64_t)64 << 30);
    assert_true(grows_as_input("opening", open_and_close, &p, 1024, 32768)); /* tables, and no page */
    double ms = 1e3 * thread_seconds();
    assert_int_equal(hn_memory_new(&mem, &far_backend, &p, NULL), HONE_OK);
    print_message("16 sequences of 32768 positions: opened in %.3f ms of CPU time\n", 1e3 * thread_seconds() - ms);
    assert_int_equal(mem->used, 0);
    assert_int_equal(hn_memory_extend(mem, 3, 8192, false, false, NULL), HONE_OK);
    mem->length[3] = 8192;
    hn_memory_commit(mem);
    assert_int_equal(mem->used, (uint64_t)1 << 30);
    n_copy = 0;
    ms = 1e3 * thread_seconds();
    hn_memory_fork(mem, 4, 3);
    print_message("fork at position 8192: %.4f ms\n", 1e3 * thread_seconds() - ms);
    assert_int_equal(n_copy, 0);
    assert_int_equal(mem->used, (uint64_t)1 << 30);
    hone_error err = { 0 };
    int32_t full = 0;
    for (int32_t seq = 0; seq < 16 && !full; seq++)
        if (hn_memory_extend(mem, seq, 32768, false, false, &err) != HONE_OK) full = seq;
    assert_int_equal(full, 4); /* 4 GiB each */
    assert_non_null(strstr(err.message, "16384.0 MiB"));
    hn_memory_undo(mem, false);
    assert_int_equal(mem->used, (uint64_t)1 << 30);
    assert_int_equal(mem->length[3], 8192);
    hn_memory_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_what_was_computed),
        cmocka_unit_test(windows_drop_pages),
        cmocka_unit_test(sessions_are_what_was_computed),
        cmocka_unit_test(sixteen_share_a_prefix),
        cmocka_unit_test(room_is_found_at_once),
        cmocka_unit_test(large_sessions_open),
        cmocka_unit_test(shared_page_is_free),
        cmocka_unit_test(refused_extension_changes_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
