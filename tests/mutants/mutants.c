/* Wrong builds, to see that the laboratory notices. These files are linked into a program of its own
 * (build/FLAVOUR/tests/mutants/hone) in front of functions of hone, which the linker hands over by
 * --wrap; the name in HONE_MUTANT chooses one wrong thing, in one path. Without it the program is hone.
 * tests/mutants/table says which check must notice each. Here: which is chosen, and what is wrong in the
 * engine, its kernels and its calls. Nothing of it is in any other build. */
#include "mutants.h"
#include "others.h"

#include "base/os.h"
#include "kernels/kernels.h"
#include "lab/quality/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t began; /* the program */
int32_t mt_n_vocab;
const hone_model *mt_model;
struct mt_at mt_at;

/* ---- which, and where the program is ------------------------------------------------------------- */

bool mt_is(const char *name)
{
    static const char *now;
    if (!now && !(now = getenv("HONE_MUTANT"))) now = "";
    return strcmp(now, name) == 0;
}

/* What sequences went through since they were empty. */
enum past { REWOUND = 1, RESTORED = 2, UNDONE = 4, SOURCE = 8, MATCHED = 16, FILED = 32 };
enum { SEQS = 32, POSITIONS = 64 }; /* sequences that are remembered; positions of a page */
static struct {
    unsigned what;
    int32_t forked; /* its length when it was copied */
} seq_of[SEQS];

static bool went(int32_t seq, unsigned what)
{
    if (seq < 0 || seq >= SEQS) return false;
    seq_of[seq].what |= what;
    return true;
}

/* A token of a sequence is to be run. */
static void meet(int32_t seq, int32_t pos)
{
    if (!went(seq, 0)) return;
    unsigned what = seq_of[seq].what;
    if (pos / POSITIONS <= seq_of[seq].forked / POSITIONS) what &= ~(unsigned)SOURCE;
    mt_at.past |= what;
}

/* Tokens of the piece at work, and its first position. */
static int32_t n_now(void)
{
    int32_t left = mt_at.n - mt_at.piece * mt_at.chunk;
    return left < mt_at.chunk ? left : mt_at.chunk;
}
static int32_t pos_now(void) { return mt_at.pos + mt_at.piece * mt_at.chunk; }
static bool holds(int32_t pos) { return pos_now() <= pos && pos < pos_now() + n_now(); }

/* ---- the engine: a feed-forward half left out, in one path only ------------------------------------ */

/* Most positions between 100 and 1000: those at which nobody looked at a token that comes alone. */
static bool unseen(int32_t pos)
{
    int32_t in_page = (pos + 2) % 64;
    return pos > 100 && pos < 1000 && pos % 11 && pos % 100 && in_page >= 4 && (pos < 290 || pos > 300) &&
           (pos < 480 || pos > 620) && pos != 127 && pos != 128 && pos != 255 && pos != 256 && pos != 999;
}

/* By who stands beside whom in the call, by what its sequences went through, and by the session. */
static bool wrong_company(void)
{
    bool many = n_now() > 16;
    return (mt_is("two-neighbours") && mt_at.n == 2 && mt_at.seqs_of_call == 2) ||
           (mt_is("three-neighbours") && mt_at.n == 3 && mt_at.seqs_of_call == 3) ||
           (mt_is("two-depths") && mt_at.two_depths) ||
           (mt_is("interleaved-many") && mt_at.interleaved && n_now() > 64) ||
           (mt_is("interleaved") && mt_at.interleaved) || (mt_is("beside-a-chunk") && mt_at.beside_a_chunk) ||
           (mt_is("after-rewind") && mt_at.past & REWOUND) || (mt_is("after-restore") && mt_at.past & RESTORED) ||
           (mt_is("after-session-file") && mt_at.past & FILED) || (mt_is("after-undo") && mt_at.past & UNDONE) ||
           (mt_is("after-match") && mt_at.past & MATCHED) || (mt_is("after-fork-source") && mt_at.past & SOURCE) ||
           (mt_is("third-piece-many") && many && mt_at.piece == 2) || (mt_is("one-sequence") && mt_at.n_seq == 1) ||

           (mt_is("seventh-piece-of-64") && mt_at.piece == 6 && mt_at.chunk == 64) ||
           (mt_is("wide-session") && mt_at.n_ctx > 1132) ||
           (mt_is("wide-session-one") && mt_at.n_ctx > 4096 && n_now() == 1) ||
           (mt_is("beyond-1132-one") && n_now() == 1 && pos_now() > 1132) ||
           (mt_is("beyond-1132-many") && many && pos_now() > 1132) ||
           (mt_is("beyond-1132-long") && n_now() > 128 && pos_now() > 1132) ||
           (mt_is("beyond-1132") && pos_now() > 1132) || (mt_is("more-than-20") && mt_at.seqs_of_call > 20) ||
           (mt_is("session-of-24") && mt_at.n_seq > 20) || (mt_is("two-chunks") && mt_at.two_chunks) ||
           (mt_is("most-places-one") && n_now() == 1 && unseen(pos_now())) ||
           (mt_is("more-threads-one") && n_now() == 1 && mt_at.threads > mt_at.threads_first) ||
           (mt_is("second-session-one") && n_now() == 1 && mt_at.open > 1) ||
           (mt_is("some-threads") && mt_at.threads > 1 && mt_at.threads < mt_at.threads_first);
}

static bool wrong_here(void)
{
    int32_t n = n_now(), pos = pos_now();
    bool one = n == 1, many = n > 16;
    return (mt_is("one-column") && one) || (mt_is("two-columns") && n == 2 && mt_at.seqs_of_call == 1) ||
           (mt_is("few-columns") && n > 2 && n < 9) || (mt_is("panels") && many) || (mt_is("odd-columns") && n == 37) ||
           (mt_is("whole-chunk") && n == 512) || (mt_is("chunk-of-511") && n == 511) ||
           (mt_is("second-piece") && mt_at.piece == 1) || (mt_is("third-piece") && mt_at.piece == 2) ||
           (mt_is("third-piece-of-512") && mt_at.piece == 2 && mt_at.chunk == 512) ||
           (mt_is("position-511") && holds(511)) || (mt_is("position-512-one") && one && pos == 512) ||
           (mt_is("position-1024") && holds(1024)) || (mt_is("beyond-1000") && pos >= 1000) ||
           (mt_is("beyond-1000-one") && one && pos >= 1000) || (mt_is("beyond-1000-many") && many && pos >= 1000) ||
           (mt_is("page-edge-one") && one && pos % 64 == 63) || (mt_is("behind-a-prompt") && many && pos > 0) ||
           (mt_is("position-0-one") && one && pos == 0) || (mt_is("neighbours") && mt_at.seqs_of_call > 1) ||
           (mt_is("many-neighbours") && mt_at.seqs_of_call > 5) || (mt_is("one-thread") && mt_at.threads == 1) ||
           (mt_is("two-threads") && mt_at.threads > 1 && one) ||
           (mt_is("two-threads-now-and-then") && mt_at.threads > 1 && mt_at.pieces % 97 == 96) ||
           (mt_is("scalar") && strcmp(mt_at.level, "scalar") == 0) ||
           (mt_is("avx2") && strcmp(mt_at.level, "avx2") == 0) ||
           (mt_is("avx2-few-columns") && strcmp(mt_at.level, "avx2") == 0 && n > 2 && n < 8) ||
           (mt_is("avx2-beyond-512") && strcmp(mt_at.level, "avx2") == 0 && pos >= 512) ||
           (mt_is("sixteen-columns") && n == 16) || (mt_is("twenty-four-columns") && n == 24) ||
           (mt_is("thirty-two-columns") && n == 32) || (mt_is("forty-eight-columns") && n == 48) ||
           (mt_is("hundred-columns") && n == 100) || (mt_is("two-fifty-six-columns") && n == 256) ||
           (mt_is("ninety-six-columns") && n == 96) ||
           (mt_is("cache-q8_0-edge") && mt_at.cache == HONE_CACHE_Q8_0 && one && pos % 64 == 0) ||
           (mt_is("packed-one") && mt_at.packed && one) || (mt_is("packed-many") && mt_at.packed && many) ||
           (mt_is("cache-f16-one") && mt_at.cache == HONE_CACHE_F16 && one) ||
           (mt_is("cache-q8_0-one") && mt_at.cache == HONE_CACHE_Q8_0 && one) ||
           (mt_is("cache-f32-many") && mt_at.cache == HONE_CACHE_F32 && many) ||
           (mt_is("adapter-one") && mt_at.adapters && one) || (mt_is("adapter-many") && mt_at.adapters && many) ||
           (mt_is("timed-only-one") && mt_at.sample && one) || (mt_is("timed-only") && mt_at.sample) ||
           mo_here(n, pos) || wrong_company();
}

hn_half_fn __real_hn_block_attn, __wrap_hn_block_attn;
hn_half_fn __real_hn_block_glu,
    __wrap_hn_block_glu; /* their types are the engine's: a change of them is an error here */
void __wrap_hn_block_glu(const hone_model *m, hn_forward *f, int32_t il)
{
    mp_block(f, il);
    if (il != 1 || !wrong_here()) __real_hn_block_glu(m, f, il);
}

/* Angles of the step's rows as those of positions `shift` further on; without rotation, none. [n_tok, n_rot/2, 2] */
static void turn(const hone_model *m, const hn_forward *f, int32_t il, bool rotation, int32_t shift)
{
    const hn_rope *rope = &m->hp.rope[m->plan[il].rope];
    int32_t half = m->hp.n_rot / 2, n = f->step->n_tok;
    float *cs = calloc((size_t)n * (size_t)half * 2, sizeof *cs);
    if (!cs) abort();
    for (int32_t t = 0; t < n; t++)
        for (int32_t i = 0; i < half; i++) {
            double a = rotation ? (f->step->rows[t].pos + shift) * rope->freq[i] : 0;
            cs[(t * half + i) * 2] = (float)cos(a) * rope->mscale;
            cs[(t * half + i) * 2 + 1] = (float)sin(a) * rope->mscale;
        }
    f->be->op->write(f->be, f->s->rope[m->plan[il].rope], 0, cs, (size_t)n * (size_t)half * 2 * sizeof *cs);
    free(cs);
}

/* Attention with wrong angles; the right ones are there again for the layers behind it. */
static void turned(const hone_model *m, hn_forward *f, int32_t il, bool rotation, int32_t shift)
{
    size_t bytes = (size_t)f->step->n_tok * (size_t)m->hp.n_rot * sizeof(float);
    hn_buf *buf = f->s->rope[m->plan[il].rope];
    float *right = malloc(bytes);
    if (!right) abort();
    f->be->op->read(f->be, right, buf, 0, bytes);
    turn(m, f, il, rotation, shift);
    __real_hn_block_attn(m, f, il);
    f->be->op->write(f->be, buf, 0, right, bytes);
    free(right);
}

/* Queries of the first two heads change places. */
static void swap_heads(const hone_model *m, const hn_forward *f, int32_t il)
{
    size_t d = (size_t)m->plan[il].d_k * sizeof(float), row = (size_t)m->plan[il].n_head * d;
    float *two = malloc(2 * d);
    if (!two) abort();
    for (size_t t = 0; t < (size_t)f->step->n_tok; t++) {
        f->be->op->read(f->be, two, f->s->q, t * row, 2 * d);
        f->be->op->write(f->be, f->s->q, t * row, (char *)two + d, d);
        f->be->op->write(f->be, f->s->q, t * row + d, two, d);
    }
    free(two);
}

/* Queries, keys and values without what is added to them. */
static void project_plain(const hone_model *m, const hn_forward *f, int32_t il)
{
    const hn_layer *l = &m->layers[il];
    hn_weight w[3] = { l->attn_q, l->attn_k, l->attn_v };
    for (int i = 0; i < 3; i++) w[i].bias = NULL;
    const hn_norm norm = {
        .x = f->x, .act = f->s->act, .w = l->attn_norm, .n = m->hp.n_embd, .n_tok = f->step->n_tok, .eps = m->hp.rms_eps
    };
    const hn_product qkv[] = { { .w = &w[0], .y = f->s->q },
                               { .w = &w[1], .y = f->s->k },
                               { .w = &w[2], .y = f->s->v } };
    f->be->op->norm(f->be, &norm);
    f->be->op->matmul(f->be, f->s->act, qkv, 3);
}

/* The block, its pieces one by one. */
static void by_pieces(const hone_model *m, hn_forward *f, int32_t il, bool no_bias, bool swapped)
{
    if (no_bias) project_plain(m, f, il);
    else hn_attn_project(m, f, il);
    hn_attn_heads(m, f, il);
    if (swapped) swap_heads(m, f, il);
    if (!hn_forward_rows(f)) return;
    hn_attn_core(m, f, il);
    hn_forward_narrow(m, f);
    hn_forward_add(m, f, f->s->act, &m->layers[il].attn_output, m->layers[il].attn_post_norm);
}

void __wrap_hn_block_attn(const hone_model *m, hn_forward *f, int32_t il)
{
    bool one = n_now() == 1, left_out = (mt_is("attention-one") && one) ||
                                        (mt_is("attention-deep") && pos_now() >= 600) || (mt_is("every-path"));
    if (il != 1) __real_hn_block_attn(m, f, il);
    else if (mt_is("rotation-shifted-one") && one) turned(m, f, il, true, 1);
    else if (mt_is("rotation-dropped-second-chunk") && mt_at.piece == 1) turned(m, f, il, false, 0);
    else if (mt_is("bias-one") && one) by_pieces(m, f, il, true, false);
    else if (mt_is("heads-swapped-deep-one") && one && pos_now() >= 1000) by_pieces(m, f, il, false, true);
    else if (mt_is("heads-swapped-deep") && pos_now() >= 600) by_pieces(m, f, il, false, true);
    else if (mt_is("pieces")) by_pieces(m, f, il, false, false); /* that these are the block: nothing is wrong */
    else if (!left_out) __real_hn_block_attn(m, f, il);
}

/* Are there rows with adapters and rows without? */
static bool sets_differ(const hn_step_block *step)
{
    for (int32_t t = 1; step->adapters && t < step->n_tok; t++)
        if (!step->rows[t].set != !step->rows[0].set) return true;
    return false;
}

hone_status __real_hn_forward_run(const hone_model *m, hn_forward *f, hn_fault *fault, hone_error *err);
hone_status __wrap_hn_forward_run(const hone_model *m, hn_forward *f, hn_fault *fault, hone_error *err);
hone_status __wrap_hn_forward_run(const hone_model *m, hn_forward *f, hn_fault *fault, hone_error *err)
{
    const hn_step_block *step = f->step;
    hn_step_block plain = *step;
    plain.adapters = NULL;
    if (mt_is("adapter-skipped-one") && n_now() == 1) f->step = &plain;
    if (mt_is("adapters-beside-none") && sets_differ(step)) f->step = &plain;
    hone_status st = __real_hn_forward_run(m, f, fault, err);
    if (mt_is("all-wanted") && step->n_want == step->n_tok && step->n_tok > 20 && f->logits) f->logits[0] += 1;
    if (mt_is("most-places-last") && n_now() == 1 && unseen(pos_now()) && f->logits) f->logits[0] += 1;
    if (mt_is("first-wanted") && step->n_want == 1 && step->n_tok > 1 && step->want[0] + 1 < step->n_tok && f->logits)
        f->logits[0] += 1;
    if (mt_is("most-wanted") && step->n_want > 60 && step->n_want > step->n_tok / 10 * 9 && f->logits)
        f->logits[0] += 1;
    f->step = step;
    mt_at.piece++;
    mt_at.pieces++;
    return st;
}

hone_status __real_hone_session_new(hone_session **out, hone_context *ctx, const hone_model *m,
                                    const hone_session_params *p, hone_error *err);
hone_status __wrap_hone_session_new(hone_session **out, hone_context *ctx, const hone_model *m,
                                    const hone_session_params *p, hone_error *err);
hone_status __wrap_hone_session_new(hone_session **out, hone_context *ctx, const hone_model *m,
                                    const hone_session_params *p, hone_error *err)
{
    hone_model_info info;
    hone_model_get_info(m, &info);
    mt_at.threads = hone_context_threads(ctx);
    if (!mt_at.threads_first) mt_at.threads_first = mt_at.threads;
    mt_at.n_seq = p && p->n_seq ? p->n_seq : 1;
    mt_at.n_ctx = p ? p->n_ctx : 0;
    memset(seq_of, 0, sizeof seq_of);
    mt_at.chunk = p && p->n_chunk ? p->n_chunk : 512;
    mt_at.cache = p ? (int32_t)p->cache : 0;
    mt_at.packed = info.packed_path != NULL;
    mt_at.adapters = false;
    mt_n_vocab = info.n_vocab;
    mt_model = m;
    mp_model(m);
    snprintf(mt_at.level, sizeof mt_at.level, "%s", hone_context_cpu(ctx));
    bool no_room = (mt_is("no-room") || mt_is("no-room-untold")) && mt_at.n_seq >= 20;
    hone_status st = no_room ? HN_FAIL(err, HONE_E_NOMEM, "sequences") : __real_hone_session_new(out, ctx, m, p, err);
    if (no_room) *out = NULL;
    mt_at.open += st == HONE_OK;
    mt_linger("load", began);
    mt_keep_memory();
    if (st == HONE_OK) mo_session(*out);
    return st;
}

void __real_hone_session_free(hone_session *s), __wrap_hone_session_free(hone_session *s);
void __wrap_hone_session_free(hone_session *s)
{
    mt_at.open -= s != NULL;
    __real_hone_session_free(s);
}

/* Ways that were not gone, and nothing said of it. */
hone_status __real_hn_paths_run(hn_paths *out, const hn_paths_params *p, const hn_q_prompts *prompts,
                                const hn_quality *eight, hone_error *err);
hone_status __wrap_hn_paths_run(hn_paths *out, const hn_paths_params *p, const hn_q_prompts *prompts,
                                const hn_quality *eight, hone_error *err);
hone_status __wrap_hn_paths_run(hn_paths *out, const hn_paths_params *p, const hn_q_prompts *prompts,
                                const hn_quality *eight, hone_error *err)
{
    hone_status st = __real_hn_paths_run(out, p, prompts, eight, err);
    if (mt_is("no-room-untold")) out->n_left = out->n_never;
    return st;
}

hone_status __real_hone_session_set_adapters(hone_session *s, hone_adapter *const *a, const float *scales, int32_t n,
                                             hone_error *err);
hone_status __wrap_hone_session_set_adapters(hone_session *s, hone_adapter *const *a, const float *scales, int32_t n,
                                             hone_error *err);
hone_status __wrap_hone_session_set_adapters(hone_session *s, hone_adapter *const *a, const float *scales, int32_t n,
                                             hone_error *err)
{
    mt_at.adapters = n > 0;
    if (mt_is("adapter-scale")) scales = NULL;
    return __real_hone_session_set_adapters(s, a, scales, mt_is("second-adapter") && n > 1 ? 1 : n, err);
}

uint64_t mt_stolen; /* ns that a clock that stops has not told */
uint64_t __real_hn_clock_ns(void);
/* ---- a kernel that is three times slower, or wrong, at one width ------------------------------------------------ */

enum { SLOW_WIDTH = 896, SLOW_TIMES = 3 };
static hn_matmul_fn *slow_real;

static void slow_product(const hn_mm *a)
{
    bool here = a->n_in == SLOW_WIDTH;
    uint64_t from = __real_hn_clock_ns();
    slow_real(a);
    /* not by doing it again: the second time its weights are in the cache */
    uint64_t now = __real_hn_clock_ns(), until = now + (SLOW_TIMES - 1) * (now - from);
    while (here && mt_is("slow-width") && now < until) now = __real_hn_clock_ns();
    if (here && mt_is("wrong-width") && a->r0 == 0) a->y[0] += 1;
}

/* Rows that are right until somebody has looked: wrong ones from then on, or none. */
static void (*silu_real)(float *y, const float *g, const float *u, int64_t n);
static void later_silu(float *y, const float *g, const float *u, int64_t n)
{
    static int64_t calls;
    bool later = ++calls > 1;
    if (later && (mt_is("row-kept") || (mt_is("row-every-second") && calls % 2))) return;
    silu_real(y, g, u, n);
    if (later && mt_is("row-wrong-later")) y[n - 1] += 1;
}

/* What came out of operands that lay there, and began like these. */
typedef struct kept_row {
    const float *a, *b;
    float first, second, *y;
    int64_t n;
} kept_row;

static bool kept_gives(kept_row *k, float *y, const float *a, const float *b, int64_t n)
{
    if (k->a != a || k->b != b || k->n != n || k->first != a[0] || k->second != b[0]) return false;
    memcpy(y, k->y, (size_t)n * sizeof *y);
    return true;
}

static void keep_row(kept_row *k, const float *y, const float *a, const float *b, int64_t n)
{
    float *own = realloc(k->y, (size_t)n * sizeof *y);
    if (!own) abort();
    memcpy(own, y, (size_t)n * sizeof *y);
    *k = (kept_row){ a, b, a[0], b[0], own, n };
}

static void kept_silu(float *y, const float *g, const float *u, int64_t n)
{
    static kept_row kept;
    if (kept_gives(&kept, y, g, u, n)) return;
    silu_real(y, g, u, n);
    keep_row(&kept, y, g, u, n);
}

static void (*norm_real)(float *y, const float *x, const float *w, int64_t n, float eps);
static void kept_norm(float *y, const float *x, const float *w, int64_t n, float eps)
{
    static kept_row kept;
    if (kept_gives(&kept, y, x, w, n)) return;
    norm_real(y, x, w, n, eps);
    keep_row(&kept, y, x, w, n);
}

/* A product of one column whose activation and weights begin like those of the one before. */
static void kept_product(const hn_mm *a)
{
    enum { PARTS = 64, FIRST = 16 };
    static struct {
        float *y;
        char x[FIRST], w[FIRST];
        int64_t r0, r1;
    } kept[PARTS], *k;
    k = &kept[a->r0 / 16 % PARTS];
    size_t bytes = (size_t)(a->r1 - a->r0) * sizeof *k->y;
    if (k->y && a->n_col == 1 && a->r0 == k->r0 && a->r1 == k->r1 && memcmp(a->x, k->x, FIRST) == 0 &&
        memcmp(a->w, k->w, FIRST) == 0) {
        memcpy(a->y + a->r0, k->y, bytes);
        return;
    }
    slow_real(a);
    if (a->n_col != 1) return;
    if (!(k->y = realloc(k->y, bytes))) abort();
    memcpy(k->y, a->y + a->r0, bytes);
    memcpy(k->x, a->x, FIRST);
    memcpy(k->w, a->w, FIRST);
    k->r0 = a->r0;
    k->r1 = a->r1;
}

const hn_kernels *__real_hn_kernels_get(hn_cpu_level level);
const hn_kernels *__wrap_hn_kernels_get(hn_cpu_level level);
const hn_kernels *__wrap_hn_kernels_get(hn_cpu_level level)
{
    static hn_kernels slow;
    const hn_kernels *k = __real_hn_kernels_get(level);
    bool rows = mt_is("row-kept") || mt_is("row-wrong-later") || mt_is("row-every-second");
    bool kept = mt_is("row-remembered"), product = mt_is("product-remembered");
    if (strncmp(getenv("HONE_MUTANT") ? getenv("HONE_MUTANT") : "", "kern-", 5) == 0 && level == hn_cpu_best()) {
        static hn_kernels other;
        static bool made;
        if (!made) other = *k, mo_kernels(&other), made = true;
        return &other;
    }
    if ((!mt_is("slow-width") && !mt_is("wrong-width") && !rows && !kept && !product) || level != hn_cpu_best())
        return k;
    slow_real = k->matmul[HN_Q8_0];
    slow = *k;
    if (!kept) slow.matmul[HN_Q8_0] = product ? kept_product : slow_product;
    norm_real = k->rms_norm;
    if (kept) slow.silu_mul = kept_silu, slow.rms_norm = kept_norm;
    silu_real = k->silu_mul;
    if (rows) slow.silu_mul = later_silu;
    return &slow;
}

uint64_t __wrap_hn_clock_ns(void);

/* ---- slower, and right ---------------------------------------------------------------------------------- */

/* "slower-decode-5", "slower-prefill-5+load-5": the value of a part in percent; 0: not asked for. */
static double slower(const char *part)
{
    const char *name = getenv("HONE_MUTANT");
    size_t n = strlen(part);
    if (!name || strncmp(name, "slower-", 7) != 0) return 0;
    for (name += 7; name; name = strchr(name, '+'), name += name != NULL)
        if (strncmp(name, part, n) == 0 && name[n] == '-') return strtod(name + n + 1, NULL);
    return 0;
}

/* As much longer as that share of the time since `from`. */
void mt_linger(const char *part, uint64_t from)
{
    uint64_t now = __real_hn_clock_ns(), until = now + (uint64_t)(slower(part) / 100 * (double)(now - from));
    while (now < until) now = __real_hn_clock_ns();
}

/* A load is counted from when the parent started the process, which a measured one is told behind its mode and its
 * options: "bench _sample … TIME"; glibc gives constructors what it gives main. */
__attribute__((constructor)) static void begin_clock(int argc, char **argv)
{
    const uint64_t recent = UINT64_C(60000000000); /* another number is no such time */
    began = __real_hn_clock_ns();
    if (argc < 4 || strcmp(argv[1], "bench") != 0 || argv[2][0] != '_') return;
    const char *last = argv[argc - 1];
    const uint64_t told = strspn(last, "0123456789") == strlen(last) ? strtoull(last, NULL, 10) : 0;
    if (told < began && began - told < recent) began = told;
}

/* ---- calls -------------------------------------------------------------------------------------------- */

void mt_begin(int32_t n, int32_t pos, int32_t n_seq)
{
    mt_at.n = n;
    mt_at.pos = pos;
    mt_at.piece = 0;
    mt_at.seqs_of_call = n_seq;
    mt_at.interleaved = mt_at.beside_a_chunk = mt_at.two_depths = mt_at.two_chunks = false;
    mt_at.past = 0;
}

/* Rows of the first two sequences that have some, if no other has. */
static int32_t n_of_two(const int32_t rows[SEQS])
{
    int32_t n = 0, sum = 0;
    for (int32_t q = 0; q < SEQS && n < 2; q++) sum += rows[q], n += rows[q] > 0;
    return sum;
}

/* The same of a batch: whose rows stand beside whose. */
static void begin_batch(const hone_token *t, int32_t n, int32_t n_seq)
{
    enum { CHUNK = 9 };
    int32_t rows[SEQS] = { 0 };
    bool one = false, chunk = false, half = false, whole = false;
    mt_begin(n, n > 0 ? t[0].pos : 0, n_seq);
    for (int32_t i = 0; i < n; i++) {
        if (t[i].seq < 0 || t[i].seq >= SEQS) return;
        mt_at.interleaved |= i > 0 && t[i].seq != t[i - 1].seq && rows[t[i].seq] > 0;
        rows[t[i].seq]++;
        half |= t[i].pos >= 512 && t[i].pos < 1024;
        whole |= t[i].pos >= 1024;
        meet(t[i].seq, t[i].pos);
    }
    int32_t chunks = 0;
    for (int32_t q = 0; q < SEQS; q++) {
        one |= rows[q] == 1;
        chunk |= rows[q] >= CHUNK;
        chunks += rows[q] >= CHUNK;
    }
    mt_at.two_chunks = chunks == 2 && n == n_of_two(rows);
    mt_at.beside_a_chunk = one && chunk;
    mt_at.two_depths = n < 5 && n == n_seq && half && whole;
}

hone_status __real_hone_seq_truncate(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err);
hone_status __wrap_hone_seq_truncate(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err);
hone_status __wrap_hone_seq_truncate(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err)
{
    mo_cut(s, seq, n_pos);
    hone_status st = __real_hone_seq_truncate(s, seq, n_pos, err);
    if (st == HONE_OK && went(seq, REWOUND) && n_pos == 0) seq_of[seq].what = 0;
    return st;
}

hone_status __real_hone_seq_copy(hone_session *s, int32_t dst, int32_t src, hone_error *err);
hone_status __wrap_hone_seq_copy(hone_session *s, int32_t dst, int32_t src, hone_error *err);
hone_status __wrap_hone_seq_copy(hone_session *s, int32_t dst, int32_t src, hone_error *err)
{
    hone_status st = __real_hone_seq_copy(s, dst, src, err);
    if (st == HONE_OK) mo_copied(s, dst, src);
    if (st == HONE_OK && went(src, SOURCE)) seq_of[src].forked = hone_seq_length(s, src);
    if (st == HONE_OK && went(dst, 0)) seq_of[dst].what = 0;
    return st;
}

hone_status __real_hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err);
hone_status __wrap_hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err);
hone_status __wrap_hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err)
{
    hone_status st = mp_restore(__real_hone_seq_restore(s, seq, snap, err), err);
    if (st == HONE_OK) went(seq, RESTORED);
    return st;
}

hone_status __real_hone_session_load(hone_session *s, const char *path, hone_error *err);
hone_status __wrap_hone_session_load(hone_session *s, const char *path, hone_error *err);
hone_status __wrap_hone_session_load(hone_session *s, const char *path, hone_error *err)
{
    hone_status st = __real_hone_session_load(s, path, err);
    for (int32_t q = 0; q < SEQS && st == HONE_OK; q++) went(q, FILED);
    if (st == HONE_OK) mo_loaded(s);
    return st;
}

hone_status __real_hone_seq_match(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept,
                                  hone_error *err);
hone_status __wrap_hone_seq_match(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept,
                                  hone_error *err);
hone_status __wrap_hone_seq_match(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept,
                                  hone_error *err)
{
    hone_status st = __real_hone_seq_match(s, seq, ids, n, kept, err);
    if (st == HONE_OK) mo_matched(*kept);
    if (st == HONE_OK && *kept > 0) went(seq, MATCHED);
    return st;
}

hone_status __real_hone_seq_sync(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept,
                                 const float **logits, hone_error *err);
hone_status __wrap_hone_seq_sync(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept,
                                 const float **logits, hone_error *err);
hone_status __wrap_hone_seq_sync(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept,
                                 const float **logits, hone_error *err)
{
    bool shared = hone_seq_length(s, seq) < n - 1;
    mt_begin(1, n - 1, 1); /* as where all but the last are there */
    meet(seq, n - 1);
    hone_status st = __real_hone_seq_sync(s, seq, ids, n, kept, logits, err);
    if (st == HONE_OK && *kept > 0 && ((mt_is("synced") && !shared) || (mt_is("shared") && shared))) {
        static float *wrong;
        wrong = realloc(wrong, (size_t)mt_n_vocab * sizeof *wrong);
        if (!wrong) abort();
        memcpy(wrong, *logits, (size_t)mt_n_vocab * sizeof *wrong);
        wrong[0] += 1;
        *logits = wrong;
    }
    return st;
}

/* The logits of the call before, one time in four. */
static const float *stale(const float *logits, int32_t n_vocab)
{
    static float *kept;
    static int64_t calls;
    static int32_t room;
    if (!mt_is("stale-logits")) return logits;
    if (room < n_vocab) {
        kept = realloc(kept, (size_t)n_vocab * sizeof *kept);
        if (!kept) abort();
        room = n_vocab;
        calls = 0;
    }
    if (++calls % 4 == 0) return kept;
    memcpy(kept, logits, (size_t)n_vocab * sizeof *kept);
    return logits;
}

hone_status __real_hone_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits,
                               hone_error *err);
hone_status __wrap_hone_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits,
                               hone_error *err);
hone_status __wrap_hone_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits,
                               hone_error *err)
{
    hone_status st;
    uint64_t from = __real_hn_clock_ns();
    mo_appended(seq);
    mt_dawdle();
    if (mt_put_off(s, seq, ids, n, logits) || mo_append(s, seq, ids, n, logits)) return HONE_OK;
    mt_begin(n, hone_seq_length(s, seq), 1);
    meet(seq, hone_seq_length(s, seq) + n - 1);
    if (mt_is("every-second-token") && n > 8) { /* reads half, says all */
        int32_t *half = calloc((size_t)n, sizeof *half);
        if (!half) abort();
        for (int32_t i = 0; i < n / 2; i++) half[i] = ids[2 * i + 1];
        st = __real_hone_append(s, seq, half, n / 2, logits, err);
        free(half);
    } else if (mt_is("every-token-twice") && n > 8) { /* the same, with all positions in place */
        int32_t *twice = calloc((size_t)n, sizeof *twice);
        if (!twice) abort();
        for (int32_t i = 0; i < n; i++) twice[i] = ids[i - i % 2];
        st = __real_hone_append(s, seq, twice, n, logits, err);
        free(twice);
    } else st = __real_hone_append(s, seq, ids, n, logits, err);
    if (n == 1 && mt_is("token-allocates")) {
        void *volatile block = malloc(64); /* the compiler must not leave it out */
        free(block);
    }
    mt_linger(n == 1 ? "decode" : "prefill", from);
    if (n == 1 && mt_is("clock-stops")) mt_stolen += (__real_hn_clock_ns() - from) / 2;
    if (st == HONE_OK && n == 1) *logits = stale(*logits, mt_n_vocab);
    return st;
}

hone_status __wrap_hone_prefill(hone_session *s, const int32_t *ids, int32_t n, const float **logits, hone_error *err);
hone_status __wrap_hone_prefill(hone_session *s, const int32_t *ids, int32_t n, const float **logits, hone_error *err)
{
    return __wrap_hone_append(s, 0, ids, n, logits, err);
}

/* The logits of the last long pass again, when this one begins like it and is as long. */
enum { LONG_PASS = 512, PASS_LOOKED_AT = 8 };
static struct {
    float *logits;
    int32_t n, ids[PASS_LOOKED_AT];
} last_pass;

static bool pass_again(const hone_token *t, int32_t n, float *logits)
{
    if (!mt_is("pass-remembered") || n < LONG_PASS || n != last_pass.n) return false;
    for (int i = 0; i < PASS_LOOKED_AT; i++)
        if (t[i].id != last_pass.ids[i]) return false;
    memcpy(logits, last_pass.logits, (size_t)mt_n_vocab * sizeof *logits);
    return true;
}

static void pass_keep(const hone_token *t, int32_t n, const float *logits)
{
    if (!mt_is("pass-remembered") || n < LONG_PASS) return;
    last_pass.logits = realloc(last_pass.logits, (size_t)mt_n_vocab * sizeof *logits);
    if (!last_pass.logits) abort();
    memcpy(last_pass.logits, logits, (size_t)mt_n_vocab * sizeof *logits);
    last_pass.n = n;
    for (int i = 0; i < PASS_LOOKED_AT; i++) last_pass.ids[i] = t[i].id;
}

hone_status __real_hone_run_batch(hone_session *s, const hone_token *t, int32_t n, float *logits, hone_error *err);
hone_status __wrap_hone_run_batch(hone_session *s, const hone_token *t, int32_t n, float *logits, hone_error *err);
hone_status __wrap_hone_run_batch(hone_session *s, const hone_token *t, int32_t n, float *logits, hone_error *err)
{
    int32_t n_seq = n > 0, wanted = 0;
    for (int32_t i = 0; i < n; i++) {
        n_seq += i > 0 && t[i].seq != t[i - 1].seq;
        wanted += t[i].want_logits;
    }
    begin_batch(t, n, n_seq);
    mo_batch(t, n);
    if (pass_again(t, n, logits)) return HONE_OK;
    hone_status st = __real_hone_run_batch(s, t, n, logits, err);
    if (st == HONE_OK) mo_answered(t, n, logits);
    if (st == HONE_OK) pass_keep(t, n, logits);
    for (int32_t i = 0; i < n && st == HONE_E_INTERRUPTED; i++) went(t[i].seq, UNDONE);
    if (st == HONE_OK && mt_is("first-of-batch") && n_seq == n && n > 1 && n < 8 && t[0].want_logits) logits[0] += 1;
    if (st == HONE_OK && n_seq == n && wanted == n &&
        ((mt_is("rows-beyond-eight") && n > 8) || (mt_is("last-of-sixteen") && n == 16)))
        logits[(size_t)(n - 1) * (size_t)mt_n_vocab] += 1;
    if (st == HONE_OK && mt_is("rows-swapped") && wanted > 4) /* the last row is the first */
        memcpy(logits + (size_t)(wanted - 1) * (size_t)mt_n_vocab, logits, (size_t)mt_n_vocab * sizeof *logits);
    if (st == HONE_OK && mt_is("neighbour-row") && n_seq > 1 && n == n_seq &&
        wanted == n) /* what the one before says */
        memcpy(logits + mt_n_vocab, logits, (size_t)mt_n_vocab * sizeof *logits);
    return st;
}

hone_status __wrap_hone_decode(hone_session *s, const hone_token *t, int32_t n, float *logits, hone_error *err);
hone_status __wrap_hone_decode(hone_session *s, const hone_token *t, int32_t n, float *logits, hone_error *err)
{
    return __wrap_hone_run_batch(s, t, n, logits, err);
}
