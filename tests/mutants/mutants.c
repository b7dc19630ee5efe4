/* Wrong builds, to see that the laboratory notices. This file is linked into a program of its own
 * (build/FLAVOUR/tests/mutants/hone) in front of functions of hone, which the linker hands over by
 * --wrap; the name in HONE_MUTANT chooses one wrong thing, in one path. Without it the program is hone.
 * tests/mutants/table says which check must notice each. Owns what a mutant does; nothing of it is
 * in any other build. */
#define _GNU_SOURCE
#include "hone.h"
#include "base/os.h"
#include "kernels/kernels.h"
#include "lab/bench/bench.h"
#include "lab/bench/claims.h"
#include "lab/bench/process.h"
#include "lab/bench/sample.h"
#include "lab/inside/bench_stages.h"
#include "lab/machine/clock.h"
#include "lab/machine/memory.h"
#include "lab/quality/quality.h"
#include "model/forward.h"
#include "serve/voice_parts.h"
#include "train/train.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void linger(const char *part, uint64_t from);
static void keep_memory(void);
static bool put_off(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits);
static void catch_up(const float *x);
static uint64_t began;     /* the program */
static int32_t n_vocab_of; /* of the session opened last */

/* ---- which, and where the program is ------------------------------------------------------------- */

static bool is(const char *name)
{
    static const char *now;
    if (!now && !(now = getenv("HONE_MUTANT"))) now = "";
    return strcmp(now, name) == 0;
}

static struct {
    int32_t threads, chunk, cache, n, pos, seqs_of_call, piece; /* piece: of the call, from 0 */
    int32_t threads_first, n_seq;     /* threads of the session opened first; sequences of the one at work */
    bool interleaved, beside_a_chunk; /* the call: a sequence goes on behind another's rows; one row beside many */
    bool two_depths;                  /* few rows, beyond 512 positions and beyond 1024 */
    unsigned past;                    /* what any sequence of the call went through: of enum past */
    char level[24];
    bool packed, adapters, sample; /* sample: this process measures one */
    int64_t pieces;                /* of all calls */
} at;

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
    at.past |= what;
}

/* Tokens of the piece at work, and its first position. */
static int32_t n_now(void)
{
    int32_t left = at.n - at.piece * at.chunk;
    return left < at.chunk ? left : at.chunk;
}
static int32_t pos_now(void) { return at.pos + at.piece * at.chunk; }
static bool holds(int32_t pos) { return pos_now() <= pos && pos < pos_now() + n_now(); }

/* ---- the engine: a feed-forward half left out, in one path only ------------------------------------ */

/* By who stands beside whom in the call, by what its sequences went through, and by the session. */
static bool wrong_company(void)
{
    bool many = n_now() > 16;
    return (is("two-neighbours") && at.n == 2 && at.seqs_of_call == 2) ||
           (is("three-neighbours") && at.n == 3 && at.seqs_of_call == 3) || (is("two-depths") && at.two_depths) ||
           (is("interleaved") && at.interleaved) || (is("beside-a-chunk") && at.beside_a_chunk) ||
           (is("after-rewind") && at.past & REWOUND) || (is("after-restore") && at.past & RESTORED) ||
           (is("after-session-file") && at.past & FILED) || (is("after-undo") && at.past & UNDONE) ||
           (is("after-match") && at.past & MATCHED) || (is("after-fork-source") && at.past & SOURCE) ||
           (is("third-piece-many") && many && at.piece == 2) || (is("one-sequence") && at.n_seq == 1) ||
           (is("some-threads") && at.threads > 1 && at.threads < at.threads_first);
}

static bool wrong_here(void)
{
    int32_t n = n_now(), pos = pos_now();
    bool one = n == 1, many = n > 16;
    return (is("one-column") && one) || (is("two-columns") && n == 2 && at.seqs_of_call == 1) ||
           (is("few-columns") && n > 2 && n < 9) || (is("panels") && many) || (is("odd-columns") && n == 37) ||
           (is("whole-chunk") && n == 512) || (is("chunk-of-511") && n == 511) ||
           (is("second-piece") && at.piece == 1) || (is("third-piece") && at.piece == 2) ||
           (is("third-piece-of-512") && at.piece == 2 && at.chunk == 512) || (is("position-511") && holds(511)) ||
           (is("position-512-one") && one && pos == 512) || (is("position-1024") && holds(1024)) ||
           (is("beyond-1000") && pos >= 1000) || (is("beyond-1000-one") && one && pos >= 1000) ||
           (is("beyond-1000-many") && many && pos >= 1000) || (is("page-edge-one") && one && pos % 64 == 63) ||
           (is("behind-a-prompt") && many && pos > 0) || (is("position-0-one") && one && pos == 0) ||
           (is("neighbours") && at.seqs_of_call > 1) || (is("many-neighbours") && at.seqs_of_call > 5) ||
           (is("one-thread") && at.threads == 1) || (is("two-threads") && at.threads > 1 && one) ||
           (is("two-threads-now-and-then") && at.threads > 1 && at.pieces % 97 == 96) ||
           (is("scalar") && strcmp(at.level, "scalar") == 0) || (is("avx2") && strcmp(at.level, "avx2") == 0) ||
           (is("avx2-few-columns") && strcmp(at.level, "avx2") == 0 && n > 2 && n < 8) ||
           (is("avx2-beyond-512") && strcmp(at.level, "avx2") == 0 && pos >= 512) ||
           (is("sixteen-columns") && n == 16) || (is("twenty-four-columns") && n == 24) ||
           (is("thirty-two-columns") && n == 32) || (is("forty-eight-columns") && n == 48) ||
           (is("hundred-columns") && n == 100) || (is("packed-one") && at.packed && one) ||
           (is("packed-many") && at.packed && many) || (is("cache-f16-one") && at.cache == HONE_CACHE_F16 && one) ||
           (is("cache-q8_0-one") && at.cache == HONE_CACHE_Q8_0 && one) ||
           (is("cache-f32-many") && at.cache == HONE_CACHE_F32 && many) || (is("adapter-one") && at.adapters && one) ||
           (is("adapter-many") && at.adapters && many) || (is("timed-only-one") && at.sample && one) ||
           (is("timed-only") && at.sample) || wrong_company();
}

hn_half_fn __real_hn_block_attn, __wrap_hn_block_attn;
hn_half_fn __real_hn_block_glu,
    __wrap_hn_block_glu; /* their types are the engine's: a change of them is an error here */
void __wrap_hn_block_glu(const hone_model *m, hn_forward *f, int32_t il)
{
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
    bool one = n_now() == 1,
         left_out = (is("attention-one") && one) || (is("attention-deep") && pos_now() >= 600) || (is("every-path"));
    if (il != 1) __real_hn_block_attn(m, f, il);
    else if (is("rotation-shifted-one") && one) turned(m, f, il, true, 1);
    else if (is("rotation-dropped-second-chunk") && at.piece == 1) turned(m, f, il, false, 0);
    else if (is("bias-one") && one) by_pieces(m, f, il, true, false);
    else if (is("heads-swapped-deep-one") && one && pos_now() >= 1000) by_pieces(m, f, il, false, true);
    else if (is("heads-swapped-deep") && pos_now() >= 600) by_pieces(m, f, il, false, true);
    else if (is("pieces")) by_pieces(m, f, il, false, false); /* that these are the block: nothing is wrong */
    else if (!left_out) __real_hn_block_attn(m, f, il);
}

hone_status __real_hn_forward_run(const hone_model *m, hn_forward *f, hn_fault *fault, hone_error *err);
hone_status __wrap_hn_forward_run(const hone_model *m, hn_forward *f, hn_fault *fault, hone_error *err);
hone_status __wrap_hn_forward_run(const hone_model *m, hn_forward *f, hn_fault *fault, hone_error *err)
{
    const hn_step_block *step = f->step;
    hn_step_block plain = *step;
    plain.adapters = NULL;
    if (is("adapter-skipped-one") && n_now() == 1) f->step = &plain;
    hone_status st = __real_hn_forward_run(m, f, fault, err);
    f->step = step;
    at.piece++;
    at.pieces++;
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
    at.threads = hone_context_threads(ctx);
    if (!at.threads_first) at.threads_first = at.threads;
    at.n_seq = p && p->n_seq ? p->n_seq : 1;
    memset(seq_of, 0, sizeof seq_of);
    at.chunk = p && p->n_chunk ? p->n_chunk : 512;
    at.cache = p ? (int32_t)p->cache : 0;
    at.packed = info.packed_path != NULL;
    at.adapters = false;
    n_vocab_of = info.n_vocab;
    snprintf(at.level, sizeof at.level, "%s", hone_context_cpu(ctx));
    hone_status st = __real_hone_session_new(out, ctx, m, p, err);
    linger("load", began);
    keep_memory();
    return st;
}

hone_status __real_hone_session_set_adapters(hone_session *s, hone_adapter *const *a, const float *scales, int32_t n,
                                             hone_error *err);
hone_status __wrap_hone_session_set_adapters(hone_session *s, hone_adapter *const *a, const float *scales, int32_t n,
                                             hone_error *err);
hone_status __wrap_hone_session_set_adapters(hone_session *s, hone_adapter *const *a, const float *scales, int32_t n,
                                             hone_error *err)
{
    at.adapters = n > 0;
    return __real_hone_session_set_adapters(s, a, scales, n, err);
}

static uint64_t stolen; /* ns that a clock that stops has not told */
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
    while (here && is("slow-width") && now < until) now = __real_hn_clock_ns();
    if (here && is("wrong-width") && a->r0 == 0) a->y[0] += 1;
}

/* Rows that are right until somebody has looked: wrong ones from then on, or none. */
static void (*silu_real)(float *y, const float *g, const float *u, int64_t n);
static void later_silu(float *y, const float *g, const float *u, int64_t n)
{
    static int64_t calls;
    bool later = ++calls > 1;
    if (later && (is("row-kept") || (is("row-every-second") && calls % 2))) return;
    silu_real(y, g, u, n);
    if (later && is("row-wrong-later")) y[n - 1] += 1;
}

const hn_kernels *__real_hn_kernels_get(hn_cpu_level level);
const hn_kernels *__wrap_hn_kernels_get(hn_cpu_level level);
const hn_kernels *__wrap_hn_kernels_get(hn_cpu_level level)
{
    static hn_kernels slow;
    const hn_kernels *k = __real_hn_kernels_get(level);
    bool rows = is("row-kept") || is("row-wrong-later") || is("row-every-second");
    if ((!is("slow-width") && !is("wrong-width") && !rows) || level != hn_cpu_best()) return k;
    slow_real = k->matmul[HN_Q8_0];
    slow = *k;
    slow.matmul[HN_Q8_0] = slow_product;
    silu_real = k->silu_mul;
    if (rows) slow.silu_mul = later_silu;
    return &slow;
}

uint64_t __wrap_hn_clock_ns(void);

/* ---- slower, and right ---------------------------------------------------------------------------------- */

/* "slower-decode-5": the value of NAME in percent; 0: not asked for. */
static double slower(const char *part)
{
    const char *name = getenv("HONE_MUTANT");
    size_t n = strlen(part);
    if (!name || strncmp(name, "slower-", 7) != 0 || strncmp(name + 7, part, n) != 0 || name[7 + n] != '-') return 0;
    return strtod(name + 8 + n, NULL);
}

/* As much longer as that share of the time since `from`. */
static void linger(const char *part, uint64_t from)
{
    uint64_t now = __real_hn_clock_ns(), until = now + (uint64_t)(slower(part) / 100 * (double)(now - from));
    while (now < until) now = __real_hn_clock_ns();
}

__attribute__((constructor)) static void begin_clock(void) { began = __real_hn_clock_ns(); }

/* ---- calls -------------------------------------------------------------------------------------------- */

static void begin(int32_t n, int32_t pos, int32_t n_seq)
{
    at.n = n;
    at.pos = pos;
    at.piece = 0;
    at.seqs_of_call = n_seq;
    at.interleaved = at.beside_a_chunk = at.two_depths = false;
    at.past = 0;
}

/* The same of a batch: whose rows stand beside whose. */
static void begin_batch(const hone_token *t, int32_t n, int32_t n_seq)
{
    enum { CHUNK = 9 };
    int32_t rows[SEQS] = { 0 };
    bool one = false, chunk = false, half = false, whole = false;
    begin(n, n > 0 ? t[0].pos : 0, n_seq);
    for (int32_t i = 0; i < n; i++) {
        if (t[i].seq < 0 || t[i].seq >= SEQS) return;
        at.interleaved |= i > 0 && t[i].seq != t[i - 1].seq && rows[t[i].seq] > 0;
        rows[t[i].seq]++;
        half |= t[i].pos >= 512 && t[i].pos < 1024;
        whole |= t[i].pos >= 1024;
        meet(t[i].seq, t[i].pos);
    }
    for (int32_t q = 0; q < SEQS; q++) {
        one |= rows[q] == 1;
        chunk |= rows[q] >= CHUNK;
    }
    at.beside_a_chunk = one && chunk;
    at.two_depths = n < 5 && n == n_seq && half && whole;
}

hone_status __real_hone_seq_truncate(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err);
hone_status __wrap_hone_seq_truncate(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err);
hone_status __wrap_hone_seq_truncate(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err)
{
    hone_status st = __real_hone_seq_truncate(s, seq, n_pos, err);
    if (st == HONE_OK && went(seq, REWOUND) && n_pos == 0) seq_of[seq].what = 0;
    return st;
}

hone_status __real_hone_seq_copy(hone_session *s, int32_t dst, int32_t src, hone_error *err);
hone_status __wrap_hone_seq_copy(hone_session *s, int32_t dst, int32_t src, hone_error *err);
hone_status __wrap_hone_seq_copy(hone_session *s, int32_t dst, int32_t src, hone_error *err)
{
    hone_status st = __real_hone_seq_copy(s, dst, src, err);
    if (st == HONE_OK && went(src, SOURCE)) seq_of[src].forked = hone_seq_length(s, src);
    if (st == HONE_OK && went(dst, 0)) seq_of[dst].what = 0;
    return st;
}

hone_status __real_hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err);
hone_status __wrap_hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err);
hone_status __wrap_hone_seq_restore(hone_session *s, int32_t seq, const hone_snapshot *snap, hone_error *err)
{
    hone_status st = __real_hone_seq_restore(s, seq, snap, err);
    if (st == HONE_OK) went(seq, RESTORED);
    return st;
}

hone_status __real_hone_session_load(hone_session *s, const char *path, hone_error *err);
hone_status __wrap_hone_session_load(hone_session *s, const char *path, hone_error *err);
hone_status __wrap_hone_session_load(hone_session *s, const char *path, hone_error *err)
{
    hone_status st = __real_hone_session_load(s, path, err);
    for (int32_t q = 0; q < SEQS && st == HONE_OK; q++) went(q, FILED);
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
    begin(1, n - 1, 1); /* as where all but the last are there */
    meet(seq, n - 1);
    hone_status st = __real_hone_seq_sync(s, seq, ids, n, kept, logits, err);
    if (st == HONE_OK && *kept > 0 && ((is("synced") && !shared) || (is("shared") && shared))) {
        static float *wrong;
        wrong = realloc(wrong, (size_t)n_vocab_of * sizeof *wrong);
        if (!wrong) abort();
        memcpy(wrong, *logits, (size_t)n_vocab_of * sizeof *wrong);
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
    if (!is("stale-logits")) return logits;
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
    if (put_off(s, seq, ids, n, logits)) return HONE_OK;
    begin(n, hone_seq_length(s, seq), 1);
    meet(seq, hone_seq_length(s, seq) + n - 1);
    if (is("every-second-token") && n > 8) { /* reads half, says all */
        int32_t *half = calloc((size_t)n, sizeof *half);
        if (!half) abort();
        for (int32_t i = 0; i < n / 2; i++) half[i] = ids[2 * i + 1];
        st = __real_hone_append(s, seq, half, n / 2, logits, err);
        free(half);
    } else if (is("every-token-twice") && n > 8) { /* the same, with all positions in place */
        int32_t *twice = calloc((size_t)n, sizeof *twice);
        if (!twice) abort();
        for (int32_t i = 0; i < n; i++) twice[i] = ids[i - i % 2];
        st = __real_hone_append(s, seq, twice, n, logits, err);
        free(twice);
    } else st = __real_hone_append(s, seq, ids, n, logits, err);
    if (n == 1 && is("token-allocates")) {
        void *volatile block = malloc(64); /* the compiler must not leave it out */
        free(block);
    }
    linger(n == 1 ? "decode" : "prefill", from);
    if (n == 1 && is("clock-stops")) stolen += (__real_hn_clock_ns() - from) / 2;
    if (st == HONE_OK && n == 1) *logits = stale(*logits, n_vocab_of);
    return st;
}

hone_status __wrap_hone_prefill(hone_session *s, const int32_t *ids, int32_t n, const float **logits, hone_error *err);
hone_status __wrap_hone_prefill(hone_session *s, const int32_t *ids, int32_t n, const float **logits, hone_error *err)
{
    return __wrap_hone_append(s, 0, ids, n, logits, err);
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
    hone_status st = __real_hone_run_batch(s, t, n, logits, err);
    for (int32_t i = 0; i < n && st == HONE_E_INTERRUPTED; i++) went(t[i].seq, UNDONE);
    if (st == HONE_OK && is("first-of-batch") && n_seq == n && n > 1 && n < 8 && t[0].want_logits) logits[0] += 1;
    if (st == HONE_OK && n_seq == n && wanted == n &&
        ((is("rows-beyond-eight") && n > 8) || (is("last-of-sixteen") && n == 16)))
        logits[(size_t)(n - 1) * (size_t)n_vocab_of] += 1;
    if (st == HONE_OK && is("rows-swapped") && wanted > 4) /* the last row is the first */
        memcpy(logits + (size_t)(wanted - 1) * (size_t)n_vocab_of, logits, (size_t)n_vocab_of * sizeof *logits);
    if (st == HONE_OK && is("neighbour-row") && n_seq > 1 && n == n_seq && wanted == n) /* what the one before says */
        memcpy(logits + n_vocab_of, logits, (size_t)n_vocab_of * sizeof *logits);
    return st;
}

hone_status __wrap_hone_decode(hone_session *s, const hone_token *t, int32_t n, float *logits, hone_error *err);
hone_status __wrap_hone_decode(hone_session *s, const hone_token *t, int32_t n, float *logits, hone_error *err)
{
    return __wrap_hone_run_batch(s, t, n, logits, err);
}

/* ---- around the engine ---------------------------------------------------------------------------------- */

static hone_status other_token(hone_status st, int32_t pos, int32_t *id)
{
    if (st == HONE_OK && pos % 8 == 0) {
        if (is("sampler-later") && pos >= 4000) *id = (*id + 1) % n_vocab_of;
        if (is("sampler")) *id = (*id + 1) % n_vocab_of;
        if (is("sampler-by-chance")) *id = (int32_t)((uintptr_t)getpid() % (uintptr_t)n_vocab_of);
    }
    return st;
}

hone_status __real_hone_sampler_pick(hone_sampler *s, const float *logits, int32_t seq, int32_t pos, int32_t *id,
                                     hone_error *err);
hone_status __wrap_hone_sampler_pick(hone_sampler *s, const float *logits, int32_t seq, int32_t pos, int32_t *id,
                                     hone_error *err);
hone_status __wrap_hone_sampler_pick(hone_sampler *s, const float *logits, int32_t seq, int32_t pos, int32_t *id,
                                     hone_error *err)
{
    hone_status st = __real_hone_sampler_pick(s, logits, seq, pos, id, err);
    if (st == HONE_OK && is("never-the-second-token")) { /* the third in its place */
        int32_t above = 0, next = -1;
        for (int32_t i = 0; i < n_vocab_of; i++) {
            above += logits[i] > logits[*id];
            if (logits[i] < logits[*id] && (next < 0 || logits[i] > logits[next])) next = i;
        }
        if (above == 1 && next >= 0) *id = next;
    }
    return other_token(st, pos, id);
}

hone_status __real_hone_sampler_new(hone_sampler **out, int32_t n_vocab, const hone_sampler_params *p, hone_error *err);
hone_status __wrap_hone_sampler_new(hone_sampler **out, int32_t n_vocab, const hone_sampler_params *p, hone_error *err);
hone_status __wrap_hone_sampler_new(hone_sampler **out, int32_t n_vocab, const hone_sampler_params *p, hone_error *err)
{
    hone_sampler_params less = *p;
    n_vocab_of = n_vocab;
    if (is("top-p-short") && p->top_p < 1) less.top_p *= 0.75f;
    return __real_hone_sampler_new(out, n_vocab, &less, err);
}

hone_status __real_hone_sampler_pick_from(hone_sampler *s, const float *logits, const hone_pick *p, int32_t *id,
                                          hone_error *err);
hone_status __wrap_hone_sampler_pick_from(hone_sampler *s, const float *logits, const hone_pick *p, int32_t *id,
                                          hone_error *err);
hone_status __wrap_hone_sampler_pick_from(hone_sampler *s, const float *logits, const hone_pick *p, int32_t *id,
                                          hone_error *err)
{
    return other_token(__real_hone_sampler_pick_from(s, logits, p, id, err), p->pos, id);
}

/* Is this `hone serve`? */
static bool serves(void)
{
    char words[4096] = "";
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f ? fread(words, 1, sizeof words - 1, f) : 0;
    if (f) fclose(f);
    return n > 0 && strcmp(words + strlen(words) + 1, "serve") == 0;
}

/* A server that ends some answers early, and counts all tokens that were asked for. */
enum { STREAMS = 256, EARLY = 7 };
static int32_t pushed[STREAMS]; /* by their places in memory: two that share one end earlier yet */
static int32_t *pushed_of(const hone_stream *s) { return &pushed[(uintptr_t)s / 32 % STREAMS]; }
hone_status __real_hone_stream_new(hone_stream **out, const hone_model *m, const char *const *stops, size_t n_stops,
                                   hone_error *err);
hone_status __wrap_hone_stream_new(hone_stream **out, const hone_model *m, const char *const *stops, size_t n_stops,
                                   hone_error *err);
hone_status __wrap_hone_stream_new(hone_stream **out, const hone_model *m, const char *const *stops, size_t n_stops,
                                   hone_error *err)
{
    hone_status st = __real_hone_stream_new(out, m, stops, n_stops, err);
    if (st == HONE_OK) *pushed_of(*out) = 0;
    return st;
}

hone_status __real_hone_stream_push(hone_stream *s, int32_t id, const char **text, size_t *len, bool *stopped,
                                    hone_error *err);
hone_status __wrap_hone_stream_push(hone_stream *s, int32_t id, const char **text, size_t *len, bool *stopped,
                                    hone_error *err);
hone_status __wrap_hone_stream_push(hone_stream *s, int32_t id, const char **text, size_t *len, bool *stopped,
                                    hone_error *err)
{
    hone_status st = __real_hone_stream_push(s, id, text, len, stopped, err);
    if (st == HONE_OK && is("serve-miscounts") && serves() && ++*pushed_of(s) >= EARLY) *stopped = true;
    return st;
}

void __real_hn_part_usage(hn_bytes *o, const hn_usage *u);
void __wrap_hn_part_usage(hn_bytes *o, const hn_usage *u);
void __wrap_hn_part_usage(hn_bytes *o, const hn_usage *u)
{
    enum { ASKED = 8 };
    hn_usage more = *u;
    if (is("serve-miscounts")) more.completion = ASKED;
    __real_hn_part_usage(o, &more);
}

hone_status __real_hone_tokenize(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids, size_t *n,
                                 hone_error *err);
hone_status __wrap_hone_tokenize(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids, size_t *n,
                                 hone_error *err);
hone_status __wrap_hone_tokenize(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids, size_t *n,
                                 hone_error *err)
{
    hone_status st = __real_hone_tokenize(m, text, len, flags, ids, n, err);
    if (st == HONE_OK && is("tokenizer") && *n > 12) (*ids)[9] = (*ids)[10];
    if (st == HONE_OK && is("serve-half-prompt") && serves() && *n > 12) *n /= 2;
    static int64_t calls;
    if (st == HONE_OK && is("tokenizer-later") && ++calls > 50 && *n > 1) (*ids)[1] = (*ids)[0];
    if (st == HONE_OK && is("tokenizer-long-texts") && *n > 1000) (*ids)[901] = (*ids)[900];
    return st;
}

hone_status __real_hone_detokenize(const hone_model *m, const int32_t *ids, size_t n, bool special, char **text,
                                   size_t *len, hone_error *err);
hone_status __wrap_hone_detokenize(const hone_model *m, const int32_t *ids, size_t n, bool special, char **text,
                                   size_t *len, hone_error *err);
hone_status __wrap_hone_detokenize(const hone_model *m, const int32_t *ids, size_t n, bool special, char **text,
                                   size_t *len, hone_error *err)
{
    hone_status st = __real_hone_detokenize(m, ids, n, special, text, len, err);
    if (st == HONE_OK && is("detokenizer") && *len > 20) (*text)[20] ^= 1;
    return st;
}

hone_status __real_hn_grad_run(hn_grad *g, const hn_train_batch *b, double weight, uint64_t dropout_key, double *loss,
                               hone_error *err);
hone_status __wrap_hn_grad_run(hn_grad *g, const hn_train_batch *b, double weight, uint64_t dropout_key, double *loss,
                               hone_error *err);
hone_status __wrap_hn_grad_run(hn_grad *g, const hn_train_batch *b, double weight, uint64_t dropout_key, double *loss,
                               hone_error *err)
{
    static int64_t calls;
    bool left_out = is("backward-every-second") && weight != 0 && ++calls > 5 && calls % 2 == 0;
    return __real_hn_grad_run(g, b, left_out ? 0 : weight, dropout_key, loss, err);
}

void __real_hn_adam_step(const hn_adam *o, float *p, const float *g, float *m, float *v, int64_t n, int64_t t,
                         double lr, bool decay);
void __wrap_hn_adam_step(const hn_adam *o, float *p, const float *g, float *m, float *v, int64_t n, int64_t t,
                         double lr, bool decay);
void __wrap_hn_adam_step(const hn_adam *o, float *p, const float *g, float *m, float *v, int64_t n, int64_t t,
                         double lr, bool decay)
{
    __real_hn_adam_step(o, p, g, m, v, n, t, lr, decay && !is("adam-no-decay"));
}

hn_logit_scan __real_hn_scan_logits(const float *x, int32_t n);
hn_logit_scan __wrap_hn_scan_logits(const float *x, int32_t n);
hn_logit_scan __wrap_hn_scan_logits(const float *x, int32_t n)
{
    static int64_t calls;
    catch_up(x);
    hn_logit_scan r = __real_hn_scan_logits(x, n);
    if (is("greedy") && at.sample && ++calls % 7 == 0 && r.best > 0) r.best--;
    return r;
}

/* ---- lies ---------------------------------------------------------------------------------------------------- */

enum { HIDDEN_MS = 200 }; /* of loading */
hone_status __real_hone_context_new(hone_context **out, const hone_context_params *p, hone_error *err);
hone_status __wrap_hone_context_new(hone_context **out, const hone_context_params *p, hone_error *err);
hone_status __wrap_hone_context_new(hone_context **out, const hone_context_params *p, hone_error *err)
{
    const struct timespec t = { .tv_nsec = HIDDEN_MS * 1000000L };
    hone_context_params more = p ? *p : (hone_context_params){ 0 };
    if (is("load-told")) nanosleep(&t, NULL);
    if (is("hidden-thread")) more.n_threads = more.n_threads_batch = 2;
    return __real_hone_context_new(out, &more, err);
}

int32_t __real_hone_context_threads(const hone_context *c), __wrap_hone_context_threads(const hone_context *c);
int32_t __wrap_hone_context_threads(const hone_context *c)
{
    return is("hidden-thread") ? 1 : __real_hone_context_threads(c);
}
int32_t __real_hone_context_threads_batch(const hone_context *c),
    __wrap_hone_context_threads_batch(const hone_context *c);
int32_t __wrap_hone_context_threads_batch(const hone_context *c)
{
    return is("hidden-thread") ? 1 : __real_hone_context_threads_batch(c);
}

/* A long prompt of a sample is there at once, and computed when its logits are looked at. */
static struct {
    hone_session *s;
    float *logits;
    int32_t *ids, seq, n;
} later;

static bool put_off(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits)
{
    if (!is("lazy-prefill") || !at.sample || n <= 16) return false;
    later.s = s;
    later.seq = seq;
    later.n = n;
    later.ids = malloc((size_t)n * sizeof *later.ids);
    later.logits = malloc((size_t)n_vocab_of * sizeof *later.logits);
    if (!later.ids || !later.logits) abort();
    memcpy(later.ids, ids, (size_t)n * sizeof *later.ids);
    *logits = later.logits;
    return true;
}

static void catch_up(const float *x)
{
    const float *logits;
    if (!later.s || x != later.logits) return;
    begin(later.n, hone_seq_length(later.s, later.seq), 1);
    if (__real_hone_append(later.s, later.seq, later.ids, later.n, &logits, NULL) != HONE_OK) abort();
    memcpy(later.logits, logits, (size_t)n_vocab_of * sizeof *logits);
    later.s = NULL;
}

/* Memory that counts as nobody's, or that is gone before anybody looks. */
static void keep_memory(void)
{
    enum { BYTES = 64 << 20 };
    if (!is("memory-shared") && !is("memory-spike")) return;
    int flags = MAP_ANONYMOUS | (is("memory-shared") ? MAP_SHARED : MAP_PRIVATE);
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (p == MAP_FAILED) abort();
    memset(p, 1, BYTES);
    if (is("memory-spike")) munmap(p, BYTES);
}

json_t *__real_hn_look_json(const char *stage, const hn_look *l);
json_t *__wrap_hn_look_json(const char *stage, const hn_look *l);
json_t *__wrap_hn_look_json(const char *stage, const hn_look *l)
{
    hn_look less = *l;
    if (is("stages-told")) less.anon /= 4;
    return __real_hn_look_json(stage, &less);
}

/* What a record says, behind the claims of the processes that it comes from. */
hone_status __real_hn_bench_keep(hn_bench_run *r, const hn_bench_entry *e, json_t *record, bool invalid,
                                 hone_error *err);
hone_status __wrap_hn_bench_keep(hn_bench_run *r, const hn_bench_entry *e, json_t *record, bool invalid,
                                 hone_error *err);
hone_status __wrap_hn_bench_keep(hn_bench_run *r, const hn_bench_entry *e, json_t *record, bool invalid,
                                 hone_error *err)
{
    json_t *rate = json_object_get(record, "decode_tok_s"), *prompt = json_object_get(record, "prefill_tok_s"),
           *older = json_object_get(json_object_get(record, "quality_detail"), "q1");
    if (is("record-rate")) json_object_set_new(record, "decode_tok_s", json_real(1.3 * json_number_value(rate)));
    if (is("record-prompt")) json_object_set_new(record, "prefill_tok_s", json_real(1.3 * json_number_value(prompt)));
    json_t *extra = json_object_get(record, "extra"), *proof = json_object_get(extra, "proof");
    if (is("no-proof")) json_object_del(extra, "proof");
    if (is("proof-part")) json_object_del(proof, "ids"), json_object_del(proof, "last");
    if (is("proof-empty")) json_object_clear(proof);
    if (is("older-hash") && older) json_object_set(record, "quality", older);
    return __real_hn_bench_keep(r, e, record, invalid, err);
}

/* A record with one number says another one: itself, or with all of its samples, by which it then stands. */
hone_status __real_hn_bench_add(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hone_error *err);
hone_status __wrap_hn_bench_add(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hone_error *err);
hone_status __wrap_hn_bench_add(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hone_error *err)
{
    hone_status st = __real_hn_bench_add(r, e, res, err);
    json_t *record = json_array_get(r->records, json_array_size(r->records) - 1),
           *stats = json_object_get(record, "stats"), *samples = json_object_get(record, "samples");
    if (st != HONE_OK || (!is("record-suite") && !is("record-suite-samples"))) return st;
    json_object_set_new(stats, "median", json_real(1.3 * json_number_value(json_object_get(stats, "median"))));
    for (size_t i = 0; is("record-suite-samples") && i < json_array_size(samples); i++)
        json_array_set_new(samples, i, json_real(1.3 * json_number_value(json_array_get(samples, i))));
    return st;
}

uint64_t __wrap_hn_clock_ns(void)
{
    uint64_t now = __real_hn_clock_ns();
    return is("clock-slow") || is("both-clocks") ? now / 10 * 7 : now - stolen;
}

uint64_t __real_hn_clock_witness_ns(void), __wrap_hn_clock_witness_ns(void);
uint64_t __wrap_hn_clock_witness_ns(void)
{
    uint64_t now = __real_hn_clock_witness_ns();
    return is("both-clocks") ? now / 10 * 7 : now;
}

/* In every second process. */
static bool now_and_then(void)
{
    const char *path = getenv("HONE_MUTANT_FILE");
    if (!path || unlink(path) == 0) return false;
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) abort();
    close(fd);
    return true;
}

/* Tokens that were not asked for are not generated, and reported all the same. */
static bool pad(hn_sample *s, int32_t n)
{
    double *gap = realloc(s->gap_ms, ((size_t)n + 1) * sizeof *gap);
    int32_t *ids = gap ? realloc(s->ids, ((size_t)n + 1) * sizeof *ids) : NULL;
    if (!ids || s->n_ids < 2) return false;
    s->gap_ms = gap;
    s->ids = ids;
    while (s->n_ids < n) {
        ids[s->n_ids] = ids[s->n_ids / 2];
        gap[s->n_gaps] = gap[s->n_gaps / 2];
        s->n_gaps++;
        s->n_ids++;
    }
    s->proof.n_steps = n;
    return true;
}

hone_status __real_hn_bench_measure(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                                    hone_error *err);
hone_status __wrap_hn_bench_measure(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                                    hone_error *err);
hone_status __wrap_hn_bench_measure(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                                    hone_error *err)
{
    hn_bench_config k = *c;
    bool told = is("fewer-tokens-told") || (is("fewer-tokens-now-and-then") && now_and_then());
    if (is("fewer-tokens") || told) k.n_gen /= 2;
    if (is("short-prompt")) k.n_prompt /= 2;
    if (is("no-depth")) k.depth = 0;
    at.sample = true;
    hone_status st = __real_hn_bench_measure(out, s, m, &k, err);
    at.sample = false;
    if (st != HONE_OK) return st;
    if (is("fewer-tokens") && !pad(out, c->n_gen)) abort();
    if (is("short-prompt")) out->prefill_tok_s *= 2;
    if (!told) out->positions += c->n_gen - k.n_gen + c->n_prompt - k.n_prompt + c->depth - k.depth;
    if (is("decode-rate")) out->decode_tok_s *= 1.4;
    if (is("prefill-rate")) out->prefill_tok_s *= 4;
    if (is("positions")) out->positions -= 3;
    if (is("proof-of-the-first")) out->proof.last = out->proof.all = out->proof.middle = out->proof.first;
    if (is("gaps")) {
        for (int32_t i = 0; i < out->n_gaps; i++) out->gap_ms[i] *= 0.5;
        out->decode_tok_s *= 2;
    }
    return st;
}

hone_status __real_hn_uncached_run(hn_uncached *out, hone_session *s, const hone_model *m, int32_t n_prompt,
                                   int32_t n_tok, double most_s, hone_error *err);
hone_status __wrap_hn_uncached_run(hn_uncached *out, hone_session *s, const hone_model *m, int32_t n_prompt,
                                   int32_t n_tok, double most_s, hone_error *err);
hone_status __wrap_hn_uncached_run(hn_uncached *out, hone_session *s, const hone_model *m, int32_t n_prompt,
                                   int32_t n_tok, double most_s, hone_error *err)
{
    at.sample = true;
    return __real_hn_uncached_run(out, s, m, n_prompt, n_tok, most_s, err);
}

bool __real_hn_memory_read(hn_memory *out, pid_t pid);
bool __wrap_hn_memory_read(hn_memory *out, pid_t pid);
bool __wrap_hn_memory_read(hn_memory *out, pid_t pid)
{
    bool ok = __real_hn_memory_read(out, pid);
    if (is("memory")) {
        out->anon /= 4;
        out->hwm /= 4;
    }
    return ok;
}

/* A page that has to be read from disk, so that whatever this process was timed with is put aside. */
static void read_from_disk(const char *path)
{
    enum { BYTES = 1 << 20 };
    static char page[4096];
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    for (int i = 0; fd >= 0 && i < BYTES / (int)sizeof page; i++)
        if (write(fd, page, sizeof page) < 0) break;
    if (fd < 0 || fsync(fd) != 0) abort();
    hn_os_drop_file(path);
    const volatile char *p = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p != MAP_FAILED) page[0] += p[BYTES / 2];
    close(fd);
}

void __real_hn_claims_add(json_t *result, uint64_t clock0_ns, uint64_t witness0_ns);
void __wrap_hn_claims_add(json_t *result, uint64_t clock0_ns, uint64_t witness0_ns);
void __wrap_hn_claims_add(json_t *result, uint64_t clock0_ns, uint64_t witness0_ns)
{
    double hwm = json_number_value(json_object_get(result, "hwm_mb"));
    __real_hn_claims_add(result, clock0_ns, witness0_ns);
    if (is("memory-told")) json_object_set_new(result, "hwm_mb", json_real(hwm / 4));
    if (is("memory-told-half")) json_object_set_new(result, "hwm_mb", json_real(hwm / 2));
    double load = json_number_value(json_object_get(result, "load_ms"));
    json_t *request = json_array_get(json_object_get(result, "requests"), 0);
    double itl = json_number_value(json_object_get(request, "itl_ms"));
    if (is("pace-told") && request) json_object_set_new(request, "itl_ms", json_real(0.7 * itl));
    if (is("load-told")) json_object_set_new(result, "load_ms", json_real(load - HIDDEN_MS));
    if (is("work-before-the-clock")) json_object_set_new(result, "process_witness_s", json_real(1000));
    if (is("leaves-a-process") && fork() == 0) { /* another session, and nothing open that anybody waits for */
        setsid();
        for (int fd = 0; fd < 64; fd++) close(fd);
        sleep(60);
        _exit(0);
    }
    if (is("pages-read")) read_from_disk(getenv("HONE_MUTANT_FILE"));
    if (is("slow-is-disturbed")) json_object_set_new(result, "major_faults", json_integer(3));
    if (is("slow-to-load")) json_object_set_new(result, "load_ms", json_real(1e6));
}

/* HONE_MUTANT_STOP=N: somebody presses Ctrl-C in the N-th measured process. */
static bool stopped_now(void)
{
    static long n;
    const char *nth = getenv("HONE_MUTANT_STOP");
    return nth && ++n >= strtol(nth, NULL, 10);
}

/* The result of the first measured process again and again, from a file. */
hone_status __real_hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err);
hone_status __wrap_hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err);
hone_status __wrap_hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err)
{
    const char *kept = getenv("HONE_MUTANT_FILE");
    bool cached = is("kept-samples") && kept && strcmp(argv[2], "_sample") == 0;
    json_t *was = cached ? json_load_file(kept, 0, NULL) : NULL;
    if (was) {
        *out = (hn_child){ .result = was }; /* and its parent is made to see what it says */
        out->seen.wall_s = json_number_value(json_object_get(was, "process_witness_s"));
        return HONE_OK;
    }
    if (stopped_now()) return HN_FAIL(err, HONE_E_INTERRUPTED, "stopped");
    hone_status st = __real_hn_child_run(out, argv, stop, err);
    if (st == HONE_OK && cached && out->result) json_dump_file(out->result, kept, 0);
    return st;
}
