/* The seam holds: on a backend whose memory nobody else may touch (PROT_NONE but while one of its operations runs),
 * whole sessions of all families give the bits of the plain one, and who looks inside dies. And what the seam
 * promises: norms are done on return, backends are opened by name, a step that a device loses leaves the sequences as
 * they were. */
#include "engine/engine.h"
#include "model/lora.h"
#include "tiny_rwkv.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* ---- a backend that locks another's memory --------------------------------------------------------------- */

enum { MAX_AREA = 256, PAGE = 4096 };

typedef struct guard {
    hn_backend base;
    hn_backend *in;
    struct {
        void *p;
        size_t n;
    } area[MAX_AREA];
    int n_area;
} guard;

static int n_locked; /* operations so far */
static bool lost;    /* the next step fails */

static guard *self(hn_backend *b) { return (guard *)b; }

static void protect(guard *g, int prot)
{
    for (int i = 0; i < g->n_area; i++) assert_int_equal(mprotect(g->area[i].p, g->area[i].n, prot), 0);
}

static void add_area(void *arg, const hn_mem_block *b)
{
    guard *g = arg;
    assert_true(g->n_area < MAX_AREA);
    assert_int_equal((uintptr_t)b->host % PAGE, 0);
    g->area[g->n_area].p = b->host;
    g->area[g->n_area++].n = (b->bytes + PAGE - 1) / PAGE * PAGE;
}

static hn_backend *unlocked(hn_backend *b)
{
    protect(self(b), PROT_READ | PROT_WRITE);
    n_locked++;
    return self(b)->in;
}
static void lock(hn_backend *b) { protect(self(b), PROT_NONE); }
/* After what may have changed the list of blocks. */
static void lock_anew(hn_backend *b)
{
    self(b)->n_area = 0;
    self(b)->in->op->blocks(self(b)->in, add_area, self(b));
    lock(b);
}

#define VOID(name, params, ...)          \
    static void g_##name params          \
    {                                    \
        hn_backend *in = unlocked(b);    \
        in->op->name(in, ##__VA_ARGS__); \
        lock(b);                         \
    }
#define GIVES(type, name, params, ...)              \
    static type g_##name params                     \
    {                                               \
        hn_backend *in = unlocked(b);               \
        type out = in->op->name(in, ##__VA_ARGS__); \
        lock_anew(b);                               \
        return out;                                 \
    }

GIVES(uint64_t, available, (hn_backend * b))
GIVES(hone_status, upload, (hn_backend * b, const hn_upload *u, hone_error *err), u, err)
GIVES(bool, reserve, (hn_backend * b, const hn_adapters *a), a)
GIVES(hn_buf *, alloc, (hn_backend * b, uint64_t n, hn_mem_kind k), n, k)
GIVES(hn_act *, act_alloc, (hn_backend * b, int64_t n, int64_t t), n, t)
GIVES(uint64_t, act_bytes, (hn_backend * b, int64_t n, int64_t t), n, t)
GIVES(int64_t, act_rows, (hn_backend * b, const hn_act *a), a)
GIVES(bool, layer, (hn_backend * b, int32_t il), il)
VOID(copy, (hn_backend * b, hn_buf *d, size_t da, const hn_buf *s, size_t sa, size_t n), d, da, s, sa, n)
VOID(fill0, (hn_backend * b, hn_buf *d, size_t at, size_t n), d, at, n)
VOID(read, (hn_backend * b, void *host, const hn_buf *s, size_t at, size_t n), host, s, at, n)
VOID(write, (hn_backend * b, hn_buf *d, size_t at, const void *host, size_t n), d, at, host, n)
VOID(act_shape, (hn_backend * b, hn_act *a, int64_t n, int64_t t), a, n, t)
VOID(act_read, (hn_backend * b, float *host, hn_act *a, const hn_act_part *p), host, a, p)
VOID(act_write, (hn_backend * b, hn_act *a, const float *host, const hn_act_part *p), a, host, p)
VOID(step_begin, (hn_backend * b, const hn_step_block *s), s)
VOID(embed, (hn_backend * b, hn_buf *y, const hn_weight *w, bool by), y, w, by)
VOID(embed_add, (hn_backend * b, hn_buf *y, const hn_weight *w, bool by, float s, float a), y, w, by, s, a)
VOID(rope, (hn_backend * b, hn_buf *cs, int i), cs, i)
VOID(norm, (hn_backend * b, const hn_norm *n), n)
VOID(add_norm, (hn_backend * b, hn_buf *x, hn_buf *y, const float *w, int64_t n, int64_t t, float e), x, y, w, n, t, e)
VOID(scale, (hn_backend * b, hn_buf *x, float f, int64_t n), x, f, n)
VOID(add, (hn_backend * b, hn_buf *x, const hn_buf *y, int64_t n), x, y, n)
VOID(gather, (hn_backend * b, hn_buf *y, const hn_buf *x, int64_t n), y, x, n)
VOID(loud, (hn_backend * b, hn_buf *y, const hn_buf *x, int64_t n, int64_t t), y, x, n, t)
VOID(predict, (hn_backend * b, const hn_streams *s), s)
VOID(correct, (hn_backend * b, const hn_streams *s), s)
VOID(sparse_glu, (hn_backend * b, hn_act *o, hn_glu k, hn_buf *g, const hn_buf *u, int64_t n, int64_t t, float cut), o,
     k, g, u, n, t, cut)
VOID(matmul, (hn_backend * b, hn_act *a, const hn_product *p, int n), a, p, n)
VOID(glu, (hn_backend * b, hn_act *o, hn_act *a, hn_glu k, const hn_weight *g, const hn_weight *u, float limit), o, a,
     k, g, u, limit)
VOID(route, (hn_backend * b, hn_buf *p, hn_act *a, const hn_route *r), p, a, r)
VOID(moe_glu, (hn_backend * b, hn_act *o, hn_act *a, const hn_moe *m), o, a, m)
VOID(moe_down, (hn_backend * b, hn_act *a, const hn_moe *m, int64_t n), a, m, n)
VOID(heads, (hn_backend * b, const hn_heads *h, const hn_kv *kv), h, kv)
VOID(latent, (hn_backend * b, const hn_latent *l, const hn_kv *kv), l, kv)
VOID(matmul_heads, (hn_backend * b, const hn_head_product *p), p)
VOID(attention, (hn_backend * b, hn_act *act, const hn_attention *a, const hn_kv *kv), act, a, kv)
VOID(token_shift, (hn_backend * b, const hn_shift *s, const hn_state *st), s, st)
VOID(time_mix, (hn_backend * b, hn_act *a, const hn_time_mix *m, const hn_state *st), a, m, st)
VOID(conv, (hn_backend * b, const hn_conv *c, const hn_state *st), c, st)
VOID(delta, (hn_backend * b, hn_act *a, const hn_delta_rule *d, const hn_state *st), a, d, st)
VOID(ssm, (hn_backend * b, hn_act *a, const hn_ssm *m, const hn_state *st), a, m, st)
VOID(logits, (hn_backend * b, float *host, hn_act *a, const hn_weight *w, hn_logits_tail t), host, a, w, t)

/* Theirs may be gone after it: the list is made anew. */
static void g_release(hn_backend *b, hn_buf *p)
{
    hn_backend *in = unlocked(b);
    in->op->release(in, p);
    lock_anew(b);
}
static void g_act_release(hn_backend *b, hn_act *a)
{
    hn_backend *in = unlocked(b);
    in->op->act_release(in, a);
    lock_anew(b);
}
static hone_status g_step_end(hn_backend *b, hn_fault *f, hone_error *err)
{
    hn_backend *in = unlocked(b);
    hone_status st = in->op->step_end(in, f, err);
    lock(b);
    if (!lost) return st;
    lost = false;
    return HN_FAIL(err, HONE_E_IO, "the device was lost");
}
static void g_blocks(hn_backend *b, hn_mem_block_fn *fn, void *arg) { self(b)->in->op->blocks(self(b)->in, fn, arg); }
static void g_free(hn_backend *b)
{
    hn_backend *in = unlocked(b);
    in->op->free(in);
    free(b);
}

static const hn_backend_ops guard_ops = {
    .name = "guard",
    .free = g_free,
    .available = g_available,
    .blocks = g_blocks,
    .upload = g_upload,
    .reserve = g_reserve,
    .alloc = g_alloc,
    .release = g_release,
    .copy = g_copy,
    .fill0 = g_fill0,
    .read = g_read,
    .write = g_write,
    .act_alloc = g_act_alloc,
    .act_release = g_act_release,
    .act_bytes = g_act_bytes,
    .act_rows = g_act_rows,
    .act_shape = g_act_shape,
    .act_read = g_act_read,
    .act_write = g_act_write,
    .step_begin = g_step_begin,
    .layer = g_layer,
    .step_end = g_step_end,
    .embed = g_embed,
    .embed_add = g_embed_add,
    .rope = g_rope,
    .norm = g_norm,
    .add_norm = g_add_norm,
    .scale = g_scale,
    .add = g_add,
    .gather = g_gather,
    .loud = g_loud,
    .predict = g_predict,
    .correct = g_correct,
    .sparse_glu = g_sparse_glu,
    .matmul = g_matmul,
    .glu = g_glu,
    .route = g_route,
    .moe_glu = g_moe_glu,
    .moe_down = g_moe_down,
    .heads = g_heads,
    .latent = g_latent,
    .matmul_heads = g_matmul_heads,
    .attention = g_attention,
    .token_shift = g_token_shift,
    .time_mix = g_time_mix,
    .conv = g_conv,
    .delta = g_delta,
    .ssm = g_ssm,
    .logits = g_logits,
};

static hone_status guard_open(hn_backend **out, const hn_backend_params *p, hone_error *err)
{
    guard *g = calloc(1, sizeof *g);
    assert_non_null(g);
    g->base.op = &guard_ops;
    hone_status st = hn_backend_open(&g->in, "cpu", p, err);
    if (st != HONE_OK) {
        free(g);
        return st;
    }
    *out = &g->base;
    lock_anew(*out);
    return HONE_OK;
}

/* ---- families ------------------------------------------------------------------------------------------------ */

enum { FAMILIES = 6, LEN = 48, CTX = 96, CHUNK = 16, MAX_LOGITS = 1 << 16 };

static hone_context *plain, *guarded;
static struct {
    const char *name, *matrix; /* which an adapter changes */
    hone_model *m;
    bool recurrent;
} family[FAMILIES];

static int set_up(void **state)
{
    const rw_shape rwkv[] = { rw_vec7, rw_vec6 };
    const tm_shape shapes[] = { tm_llama, tm_qwen2, tm_qwen3, tm_gemma3 };
    if (tm_make_dir(state) || !hn_backend_register("guard", guard_open)) return -1;
    plain = tm_context(NULL, 2);
    guarded = tm_context(NULL, 2);
    guarded->backend = "guard";
    for (int i = 0; i < FAMILIES; i++) {
        bool recurrent = i >= 4;
        tiny *t = recurrent ? rw_new(&rwkv[i - 4]) : tm_new(shapes[i]);
        family[i].name = recurrent ? rwkv[i - 4].arch : shapes[i].arch;
        family[i].matrix = recurrent ? "blk.1.time_mix_key.weight" : "blk.1.attn_v.weight";
        family[i].recurrent = recurrent;
        if (!recurrent) { /* activations in blocks, too */
            tm_retype(t, "blk.0.ffn_up.weight", HN_Q8_0);
            tm_retype(t, "blk.0.attn_q.weight", HN_Q8_0);
        }
        family[i].m = tm_open(t);
        tm_free(t);
    }
    return 0;
}
static int tear_down(void **state)
{
    for (int i = 0; i < FAMILIES; i++) hone_model_close(family[i].m);
    hone_context_free(plain);
    hone_context_free(guarded);
    return tm_remove_dir(state);
}

/* ---- whole sessions --------------------------------------------------------------------------------------------- */

typedef struct story {
    float *out; /* all logits */
    int32_t V;
    size_t n;
    int events, stops;
} story;

/* e is the error of who calls. */
#define OK(x)                                          \
    do {                                               \
        if ((x) != HONE_OK) fail_msg("%s", e.message); \
    } while (0)

static int32_t id_of(const story *t, int32_t pos) { return (int32_t)(hn_rand64(3, (uint64_t)pos) % (uint64_t)t->V); }

/* n ids to the end of seq; the logits of all, or of none. */
static void feed(story *t, hone_session *s, int32_t seq, int32_t n, bool want)
{
    int32_t ids[LEN], pos = hone_seq_length(s, seq);
    for (int32_t i = 0; i < n; i++) ids[i] = id_of(t, pos + i);
    assert_true(t->n + (size_t)(n * t->V) <= MAX_LOGITS);
    tm_run(s, seq, ids, n, want ? t->out + t->n : NULL);
    if (want) t->n += (size_t)(n * t->V);
}

static void count_event(void *arg, const hone_profile_event *e) { ((story *)arg)->events += e->end_ns >= e->start_ns; }
static bool stop_late(void *arg) { return ++((story *)arg)->stops == 4; }

static void fork_cut_restore(story *t, hone_session *s, bool recurrent)
{
    hone_error e = { 0 };
    OK(hone_seq_checkpoint(s, 0, &e));
    OK(hone_seq_copy(s, 1, 0, &e));
    hone_token both[] = { { id_of(t, 90), hone_seq_length(s, 0), 0, true },
                          { id_of(t, 91), hone_seq_length(s, 1), 1, true } };
    OK(hone_run_batch(s, both, 2, t->out + t->n, &e));
    t->n += (size_t)(2 * t->V);
    int32_t kept;
    OK(hone_seq_rewind(s, 0, recurrent ? hone_seq_length(s, 0) - 1 : 30, &kept, &e));
    feed(t, s, 0, 3, true);
    hone_snapshot *snap;
    OK(hone_seq_snapshot(s, 1, &snap, &e));
    OK(hone_seq_restore(s, 2, snap, &e));
    hone_snapshot_free(snap);
    feed(t, s, 2, 2, true);
    OK(hone_session_save(s, tm_path("guard.session"), &e));
    for (int32_t i = 0; i < 3; i++) OK(hone_seq_truncate(s, i, 0, &e));
    OK(hone_session_load(s, tm_path("guard.session"), &e));
    for (int32_t i = 0; i < 3; i++) feed(t, s, i, 1, true);
}

static void stopped_and_looked_at(story *t, hone_session *s)
{
    hone_error e = { 0 };
    const float *y;
    int32_t ids[LEN], n = hone_seq_length(s, 1);
    for (int32_t i = 0; i < 30; i++) ids[i] = id_of(t, n + i);
    hone_session_set_abort(s, stop_late, t);
    assert_int_equal(hone_append(s, 1, ids, 30, &y, &e), HONE_E_INTERRUPTED);
    hone_session_set_abort(s, NULL, NULL);
    assert_int_equal(hone_seq_length(s, 1), n);
    feed(t, s, 1, 1, true);
    hone_session_set_profile(s, count_event, t);
    feed(t, s, 1, 5, true);
    hone_session_set_profile(s, NULL, NULL);
    hone_memory use;
    hone_session_memory_use(s, &use);
    assert_true(use.cache.resident > 0 && use.scratch.resident > 0);
    assert_true(use.cache.resident <= (int64_t)use.cache.reserved);
}

/* An adapter of one matrix, in a file. */
static hone_adapter *adapter_of(int f)
{
    const hn_gguf_tensor *w = hn_gguf_find_tensor(family[f].m->file, family[f].matrix);
    hn_lora_pair p = { .name = (char *)(uintptr_t)family[f].matrix,
                       .n_in = (int64_t)w->ne[0],
                       .n_out = (int64_t)w->ne[1],
                       .rank = 3,
                       .scale = 1 };
    p.a = malloc((size_t)(p.rank * p.n_in) * sizeof(float));
    p.b = malloc((size_t)(p.rank * p.n_out) * sizeof(float));
    for (int64_t i = 0; i < p.rank * p.n_in; i++) p.a[i] = hn_rand_f32(5, (uint64_t)i) - 0.5f;
    for (int64_t i = 0; i < p.rank * p.n_out; i++) p.b[i] = hn_rand_f32(6, (uint64_t)i) - 0.5f;
    const hn_lora_about about = {
        .name = "a", .arch = family[f].name, .base_name = "b", .alpha = p.scale * (float)p.rank, .type = HN_F32
    };
    hone_error e = { 0 };
    hone_adapter *out;
    const char *path = tm_path("a.gguf");
    OK(hn_lora_write_gguf(path, &p, 1, &about, &e));
    OK(hone_adapter_open(&out, family[f].m, path, &e));
    free(p.a);
    free(p.b);
    return out;
}

static void tell(story *t, hone_context *c, int f, hone_kv_cache_type cache)
{
    hone_error e = { 0 };
    hone_session *s = tm_session(c, family[f].m, CTX, 3, CHUNK, cache);
    hone_model_info info;
    hone_model_get_info(family[f].m, &info);
    *t = (story){ .out = calloc(MAX_LOGITS, sizeof(float)), .V = info.n_vocab };
    feed(t, s, 0, 37, true); /* in chunks */
    feed(t, s, 0, 2, false);
    for (int i = 0; i < 2; i++) feed(t, s, 0, 1, true);
    fork_cut_restore(t, s, family[f].recurrent);
    stopped_and_looked_at(t, s);
    size_t before = t->n;
    hone_adapter *a = adapter_of(f);
    for (int32_t i = 0; i < 3; i++) OK(hone_seq_truncate(s, i, 0, &e));
    OK(hone_session_set_adapters(s, &a, NULL, 1, &e));
    feed(t, s, 0, 37, true);
    assert_memory_not_equal(t->out, t->out + before, (size_t)(37 * t->V) * sizeof(float)); /* it changes something */
    feed(t, s, 0, 1, true);
    hone_session_free(s);
    hone_adapter_close(a);
}

static void nobody_looks_inside(void **state)
{
    static const hone_kv_cache_type caches[] = { HONE_CACHE_F16, HONE_CACHE_F32, HONE_CACHE_Q8_0 };
    for (int f = 0; f < FAMILIES; f++) {
        story want, got;
        int before = n_locked;
        tell(&want, plain, f, caches[f % 3]);
        assert_int_equal(n_locked, before);
        tell(&got, guarded, f, caches[f % 3]);
        assert_true(n_locked > before + 100);
        assert_int_equal(want.n, got.n);
        assert_int_equal(want.events, got.events);
        assert_true(got.events > 10);
        if (memcmp(want.out, got.out, want.n * sizeof(float))) fail_msg("%s: other bits", family[f].name);
        free(want.out);
        free(got.out);
    }
}

/* ---- it can fail --------------------------------------------------------------------------------------------- */

static void first_of(void *arg, const hn_mem_block *b)
{
    void **first = arg;
    if (b->kind == (hn_mem_kind)(uintptr_t)first[1]) first[0] = b->host;
}

/* A child's end when it looks at the first byte of a kind of memory of s; kind −1: when it does not look. */
static int end_of(hone_session *s, int kind)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        void *first[] = { NULL, (void *)(uintptr_t)kind };
        signal(SIGSEGV, SIG_DFL);
        s->be->op->blocks(s->be, first_of, first);
        if (kind >= 0) _exit(*(volatile char *)first[0] ? 1 : 0);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void who_looks_dies(void **state)
{
    hone_session *s = tm_session(guarded, family[0].m, CTX, 1, CHUNK, HONE_CACHE_F16),
                 *open = tm_session(plain, family[0].m, CTX, 1, CHUNK, HONE_CACHE_F16);
    for (int kind = HN_MEM_ROWS; kind <= HN_MEM_OWN; kind++) {
        assert_int_equal(end_of(s, kind), -SIGSEGV);
        assert_int_equal(end_of(open, kind), 0);
    }
    assert_int_equal(end_of(s, -1), 0);
    hone_session_free(s);
    hone_session_free(open);
}

/* ---- promises of the seam --------------------------------------------------------------------------------------- */

/* A step that failed is none: its sequence goes on as if it had not been, a state that was written to goes back. */
static void lost_steps(void **state)
{
    for (int f = 0; f < FAMILIES; f++) {
        hone_session *s = tm_session(guarded, family[f].m, CTX, 1, CHUNK, HONE_CACHE_F16);
        story t = { .out = calloc(MAX_LOGITS, sizeof(float)) };
        hone_model_info info;
        hone_error e = { 0 };
        hone_model_get_info(family[f].m, &info);
        t.V = info.n_vocab;
        feed(&t, s, 0, 20, true);
        OK(hone_seq_checkpoint(s, 0, &e));
        lost = true;
        const float *y;
        const int32_t next = id_of(&t, 20);
        assert_int_equal(hone_append(s, 0, &next, 1, &y, &e), HONE_E_IO);
        assert_non_null(strstr(e.message, "the device was lost"));
        assert_int_equal(hone_seq_length(s, 0), 20);
        feed(&t, s, 0, 5, true);
        lost = true; /* now the state is its own: what it was is gone, but for the checkpoint */
        assert_int_equal(hone_append(s, 0, &next, 1, &y, &e), HONE_E_IO);
        int32_t left = family[f].recurrent ? 20 : 25;
        assert_int_equal(hone_seq_length(s, 0), left);
        size_t end = t.n;
        if (left < 25) feed(&t, s, 0, 25 - left, true);
        assert_memory_equal(t.out + end, t.out + (size_t)(left * t.V), (t.n - end) * sizeof(float));
        t.n = end;
        OK(hone_seq_truncate(s, 0, 0, &e));
        size_t at = t.n;
        feed(&t, s, 0, 25, true);
        assert_memory_equal(t.out, t.out + at, at * sizeof(float));
        free(t.out);
        hone_session_free(s);
    }
}

enum { N = 64, ROWS = 11 };

/* W = 1: y is the norm of what x was when it was called, whatever happens to x before the product. */
static void norms_are_done(void **state)
{
    static float one[N * N], x[ROWS * N], want[ROWS * N], got[ROWS * N], w[N], b[N];
    for (int i = 0; i < N; i++) {
        one[i * N + i] = 1;
        w[i] = 1 + 0.01f * (float)i;
        b[i] = 0.1f * (float)(i % 3);
    }
    for (int i = 0; i < ROWS * N; i++) x[i] = hn_rand_f32(9, (uint64_t)i) - 0.5f;
    const hn_weight weight = { .data = one, .type = HN_F32, .n_in = N, .n_out = N, .row_bytes = N * sizeof(float) };
    const hn_backend_params p = { .pool = plain->pool, .level = plain->level, .n_tok = ROWS, .max_n_in = N };
    hone_error e = { 0 };
    hn_backend *be;
    OK(hn_backend_open(&be, "cpu", &p, &e));
    hn_buf *bx = be->op->alloc(be, sizeof x, HN_MEM_ROWS), *by = be->op->alloc(be, sizeof x, HN_MEM_ROWS);
    hn_act *act = be->op->act_alloc(be, N, ROWS), *other = be->op->act_alloc(be, N, ROWS);
    const hn_act_part all = { .n_row = ROWS, .n_col = N };
    for (int kind = 0; kind < 2; kind++) {
        hn_norm n = { (hn_norm_kind)kind, bx, by, NULL, w, b, N, ROWS, 1e-5f, 0 };
        be->op->write(be, bx, 0, x, sizeof x);
        be->op->norm(be, &n);
        be->op->read(be, want, by, 0, sizeof want);
        for (int how = 0; how < 7; how++) {
            be->op->write(be, bx, 0, x, sizeof x);
            n.x = bx;
            n.y = how == 6 ? bx : NULL;
            n.act = act;
            be->op->norm(be, &n);
            hn_norm second = n;
            second.act = other;
            switch (how) {
            case 0: be->op->scale(be, bx, 3, ROWS * N); break;
            case 1: be->op->fill0(be, bx, 0, sizeof x); break;
            case 2:
                be->op->norm(be, &second);
                be->op->scale(be, bx, 2, N);
                break;
            case 3: be->op->act_read(be, got, act, &all); break;
            case 4:
                be->op->release(be, bx);
                bx = be->op->alloc(be, sizeof x, HN_MEM_ROWS);
                break;
            default: break;
            }
            if (how == 6) be->op->read(be, got, bx, 0, sizeof got);
            else if (how != 3) {
                be->op->matmul(be, act, &(hn_product){ .w = &weight, .y = by }, 1);
                be->op->read(be, got, by, 0, sizeof got);
            }
            assert_memory_equal(got, want, sizeof want);
        }
        be->op->act_read(be, got, other, &all); /* of case 2, from before x was changed */
        assert_memory_equal(got, want, sizeof want);
    }
    be->op->free(be);
}

/* Columns of an activation are read and written alone, and products see what was written. */
static void parts_of_activations(void **state)
{
    static float one[N * N], x[ROWS * N], got[ROWS * N], part[3 * 10];
    for (int i = 0; i < N; i++) one[i * N + i] = 1;
    for (int i = 0; i < ROWS * N; i++) x[i] = (float)i;
    for (int i = 0; i < 30; i++) part[i] = -1.0f - (float)i;
    const hn_weight weight = { .data = one, .type = HN_F32, .n_in = N, .n_out = N, .row_bytes = N * sizeof(float) };
    const hn_backend_params p = { .pool = plain->pool, .level = plain->level, .n_tok = ROWS, .max_n_in = N };
    hone_error e = { 0 };
    hn_backend *be;
    OK(hn_backend_open(&be, "cpu", &p, &e));
    hn_buf *y = be->op->alloc(be, sizeof x, HN_MEM_ROWS);
    hn_act *act = be->op->act_alloc(be, N, ROWS);
    be->op->act_shape(be, act, N, ROWS);
    be->op->act_write(be, act, x, &(hn_act_part){ .n_row = ROWS, .n_col = N });
    be->op->act_write(be, act, part, &(hn_act_part){ .row = 4, .n_row = 3, .col = 20, .n_col = 10 });
    for (int r = 0; r < 3; r++) memcpy(x + (4 + r) * N + 20, part + r * 10, 10 * sizeof(float));
    assert_int_equal(be->op->act_rows(be, act), ROWS);
    be->op->matmul(be, act, &(hn_product){ .w = &weight, .y = y }, 1);
    be->op->read(be, got, y, 0, sizeof got);
    assert_memory_equal(got, x, sizeof x);
    be->op->act_read(be, got, act, &(hn_act_part){ .row = 5, .n_row = 2, .col = 18, .n_col = 4 });
    for (int r = 0; r < 2; r++) assert_memory_equal(got + r * 4, x + (5 + r) * N + 18, 4 * sizeof(float));
    be->op->free(be);
}

static void opened_by_name(void **state)
{
    hone_error e = { 0 };
    hone_session *s;
    hone_context *c = tm_context(NULL, 1);
    c->backend = "abacus";
    assert_int_equal(hone_session_new(&s, c, family[0].m, NULL, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "no backend \"abacus\", expected one of: cpu, guard"));
    assert_true(hn_backend_register("abacus", guard_open));
    OK(hone_session_new(&s, c, family[0].m, NULL, &e));
    assert_string_equal(s->be->op->name, "guard");
    hone_session_free(s);
    hone_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_looks_inside), cmocka_unit_test(who_looks_dies),       cmocka_unit_test(lost_steps),
        cmocka_unit_test(norms_are_done),      cmocka_unit_test(parts_of_activations), cmocka_unit_test(opened_by_name),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
