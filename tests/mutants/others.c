/* Builds that others thought up: wrong on paths, in speed, around the engine, in training and in kernels. */
#include "others.h"
#include "base/os.h"
#include "kernels/kernels.h"
#include "lab/bench/bench.h"
#include "lab/bench/sample.h"
#include "lab/quality/proof.h"
#include "lab/quality/perplexity.h"
#include "train/train.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool argv_is(int k, const char *word)
{
    char w[4096] = "";
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f ? fread(w, 1, sizeof w - 1, f) : 0, at = 0;
    if (f) fclose(f);
    while (k-- > 0 && at < n) at += strlen(w + at) + 1;
    return at < n && strcmp(w + at, word) == 0;
}
bool mo_serves(void) { return argv_is(1, "serve"); }
bool mo_runs(void) { return argv_is(1, "run"); }

bool mo_five;
static int32_t append_seq;
static bool cut_one, deep_file, deep_snap, second_prefix;
static int n_kept;
static uint64_t born;
__attribute__((constructor)) static void be_born(void) { born = __real_hn_clock_ns(); }

/* By how many rows a call has and where, on which settings. */
static bool by_shape(int32_t n, int32_t pos)
{
    const bool one = n == 1, avx2 = strcmp(mt_at.level, "avx2") == 0;
    if (mt_is("rows-384")) return n == 384;
    if (mt_is("tail-rows")) return n > 128 && n % 128 == 1;
    if (mt_is("rows-800")) return n == 512 && pos == 512;
    if (mt_is("chunk-300")) return mt_at.chunk != 512 && mt_at.chunk > 64 && n > 64;
    if (mt_is("three-threads")) return mt_at.threads == 3 && one;
    if (mt_is("avx2-deep-one")) return avx2 && one && pos > 64;
    if (mt_is("run-only")) return one && mo_runs();
    return false;
}

/* By where what its sequence holds came from. */
static bool by_past(void)
{
    if (mt_is("append-high-seq")) return append_seq >= 5;
    if (mt_is("deep-file")) return deep_file;
    if (mt_is("deep-snap")) return deep_snap;
    if (mt_is("second-prefix")) return second_prefix;
    return false;
}

bool mo_fork_wrong(void);
bool mo_here(int32_t n, int32_t pos, int64_t pieces)
{
    if (mo_fork_wrong()) return true;
    if (by_shape(n, pos) || by_past()) return true;
    if (mt_is("f32-two-pages") && mt_at.cache == HONE_CACHE_F32 && n == 1 && pos >= 128) return true;
    if (mt_is("adapter-deep") && mt_at.adapters && n == 1 && pos > 700) return true;
    if (mt_is("eight-seqs-deep") && mt_at.seqs_of_call >= 8 && pos > 200) return true;
    bool one = n == 1;
    return (mt_is("five-chunks") && mo_five) || (mt_is("cut-by-one") && cut_one) ||
           (mt_is("q8-deep") && mt_at.cache == HONE_CACHE_Q8_0 && pos >= 512) || (mt_is("drift") && pieces > 10000) ||
           (mt_is("two-of-three") && mt_at.n_seq == 3) || (mt_is("narrow-ctx") && mt_at.n_ctx < 70) ||
           (mt_is("aged") && __real_hn_clock_ns() - born > UINT64_C(20000000000)) ||
           (mt_is("beyond-2200") && pos >= 2200) || (mt_is("serve-tenth") && mo_serves() && one && pos > 200) ||
           (mt_is("serve-one") && mo_serves() && one) ||
           (mt_is("serve-twelve") && mo_serves() && n > 3 && n < 12 && pos > 4);
}

void mo_batch(const hone_token *t, int32_t n)
{
    int32_t rows[64] = { 0 }, many = 0;
    append_seq = -1;
    for (int32_t i = 0; i < n; i++)
        if (t[i].seq >= 0 && t[i].seq < 64) many += ++rows[t[i].seq] == 2;
    mo_five = many >= 5;
    cut_one = false;
}
static bool about_cut;
void mo_cut(hone_session *s, int32_t seq, int32_t n_pos)
{
    about_cut = n_pos > 0 && n_pos + 1 == hone_seq_length(s, seq);
}
void mo_loaded(hone_session *s)
{
    for (int32_t q = 0; q < 4; q++) deep_file |= hone_seq_length(s, q) > 256;
}
void mo_kept(void) { n_kept++; }
void mo_matched(int32_t kept) { second_prefix = kept > 0 && n_kept > 1; }
void __real_hone_session_drop_prefixes(hone_session *s), __wrap_hone_session_drop_prefixes(hone_session *s);
void __wrap_hone_session_drop_prefixes(hone_session *s)
{
    n_kept = 0;
    second_prefix = false;
    __real_hone_session_drop_prefixes(s);
}
hone_status __real_hone_seq_keep(hone_session *s, int32_t q, hone_error *e),
    __wrap_hone_seq_keep(hone_session *s, int32_t q, hone_error *e);
hone_status __wrap_hone_seq_keep(hone_session *s, int32_t q, hone_error *e)
{
    n_kept++;
    return __real_hone_seq_keep(s, q, e);
}
hone_status __real_hone_snapshot_load(hone_snapshot **o, const hone_model *m, const char *p, hone_error *e);
hone_status __wrap_hone_snapshot_load(hone_snapshot **o, const hone_model *m, const char *p, hone_error *e);
hone_status __wrap_hone_snapshot_load(hone_snapshot **o, const hone_model *m, const char *p, hone_error *e)
{
    hone_status st = __real_hone_snapshot_load(o, m, p, e);
    if (st == HONE_OK) deep_snap |= hone_snapshot_length(*o) > 256;
    return st;
}

/* ---- performance lies ---- */
static int32_t virtual_len;
int32_t __real_hone_seq_length(const hone_session *s, int32_t q),
    __wrap_hone_seq_length(const hone_session *s, int32_t q);
int32_t __wrap_hone_seq_length(const hone_session *s, int32_t q)
{
    return __real_hone_seq_length(s, q) + (q == 0 ? virtual_len : 0);
}

static int32_t all_ids[1 << 16], n_all, n_run;
static float *cached;
static uint64_t key(void)
{
    uint64_t h = 1469598103934665603u;
    for (int32_t i = 0; i < n_all; i++) h = (h ^ (uint64_t)all_ids[i]) * 1099511628211u;
    return h;
}
static bool disk(hone_session *s, const int32_t *ids, int32_t n, const float **logits)
{
    char path[200];
    memcpy(all_ids + n_all, ids, (size_t)n * sizeof *ids);
    n_all += n;
    snprintf(path, sizeof path, "/tmp/hone-cache-%016llx-%d", (unsigned long long)key(), n_all);
    if (!cached) cached = malloc((size_t)mt_n_vocab * sizeof *cached);
    FILE *f = fopen(path, "r");
    if (f && fread(cached, sizeof *cached, (size_t)mt_n_vocab, f) == (size_t)mt_n_vocab) {
        fclose(f);
        virtual_len += n;
        *logits = cached;
        return true;
    }
    if (f) fclose(f);
    virtual_len = 0;
    mt_begin(n_all - n_run, n_run, 1);
    if (__real_hone_append(s, 0, all_ids + n_run, n_all - n_run, logits, NULL) != HONE_OK) abort();
    n_run = n_all;
    if ((f = fopen(path, "w"))) fwrite(*logits, sizeof **logits, (size_t)mt_n_vocab, f), fclose(f);
    return true;
}

static hone_session *of_sample;
static float *ahead;
static int32_t ahead_id = -1;
void __real_hn_proof_step(hn_proof *p, const float *l, int64_t n, int32_t id),
    __wrap_hn_proof_step(hn_proof *p, const float *l, int64_t n, int32_t id);
void __wrap_hn_proof_step(hn_proof *p, const float *l, int64_t n, int32_t id)
{
    __real_hn_proof_step(p, l, n, id);
    if (!mt_is("off-the-clock") || !mt_at.sample || !of_sample || id < 0 || p->n_steps >= p->n_wanted) return;
    const float *x;
    if (!ahead) ahead = malloc((size_t)mt_n_vocab * sizeof *ahead);
    mt_begin(1, hone_seq_length(of_sample, 0), 1);
    if (__real_hone_append(of_sample, 0, &id, 1, &x, NULL) != HONE_OK) abort();
    memcpy(ahead, x, (size_t)mt_n_vocab * sizeof *ahead);
    ahead_id = id;
}

/* the whole prompt, before anybody asks */
static int32_t n_early;
static float *early;
static uint64_t early_seed;
static const char *arg_of(const char *name)
{
    static char w[4096];
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f ? fread(w, 1, sizeof w - 1, f) : 0;
    if (f) fclose(f);
    w[n] = 0;
    for (size_t at = 0; at < n; at += strlen(w + at) + 1)
        if (strncmp(w + at, name, strlen(name)) == 0) return w + at + strlen(name);
    return NULL;
}
static void prompt_early(hone_session *s)
{
    const char *n = arg_of("--n-prompt="), *seed;
    const float *x;
    n_early = n ? atoi(n) : 128;
    seed = arg_of("--prompt-seed=");
    early_seed = seed ? strtoull(seed, NULL, 10) : 0;
    if (n_early < 32) {
        n_early = 0;
        return;
    }
    int32_t *ids = calloc((size_t)n_early, sizeof *ids);
    hn_bench_ids(ids, n_early, 0, early_seed, mt_model);
    mt_begin(n_early, 0, 1);
    if (__real_hone_append(s, 0, ids, n_early, &x, NULL) != HONE_OK) {
        n_early = 0;
        return;
    }
    early = malloc((size_t)mt_n_vocab * sizeof *early);
    memcpy(early, x, (size_t)mt_n_vocab * sizeof *early);
    virtual_len = -n_early;
}
void mo_session(hone_session *s);
void mo_session(hone_session *s)
{
    if (mt_is("prompt-at-load") && argv_is(1, "bench") && argv_is(2, "_sample")) prompt_early(s);
}

bool mo_off(hone_session *s, const int32_t *ids, int32_t n, const float **logits);
bool mo_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits)
{
    append_seq = seq;
    mo_five = false;
    cut_one = about_cut;
    about_cut = false;
    if (seq != 0 || !mt_at.sample) return false;
    of_sample = s;
    if (mt_is("off-keeps")) return mo_off(s, ids, n, logits);
    if (mt_is("disk-cache")) return disk(s, ids, n, logits);
    if (mt_is("off-the-clock") && n == 1 && ahead_id == ids[0]) {
        ahead_id = -1;
        *logits = ahead;
        return true;
    }
    if (mt_is("prompt-at-load") && n == n_early && early) {
        virtual_len = 0;
        *logits = early;
        n_early = 0;
        return true;
    }
    return false;
}

/* ---- around ---- */
hone_status __real_hone_chat_render(const hone_model *m, const hone_chat_params *p, hone_chat_text *o, hone_error *e);
hone_status __wrap_hone_chat_render(const hone_model *m, const hone_chat_params *p, hone_chat_text *o, hone_error *e);
hone_status __wrap_hone_chat_render(const hone_model *m, const hone_chat_params *p, hone_chat_text *o, hone_error *e)
{
    hone_chat_params k = *p;
    if (mt_is("chat-tools")) k.tools = NULL;
    if (mt_is("chat-variables")) k.variables = NULL;
    if (mt_is("input-spells-control")) k.trust_input = true;
    return __real_hone_chat_render(m, &k, o, e);
}

int64_t mo_anyof;
hone_status __real_hone_grammar_compile(hone_grammar **o, const hone_grammar_params *p, hone_error *e);
hone_status __wrap_hone_grammar_compile(hone_grammar **o, const hone_grammar_params *p, hone_error *e);
hone_status __wrap_hone_grammar_compile(hone_grammar **o, const hone_grammar_params *p, hone_error *e)
{
    if (p->text && p->len && memmem(p->text, p->len, "anyOf", 5)) mo_anyof = 1;
    return __real_hone_grammar_compile(o, p, e);
}
hone_status __real_hone_matcher_mask(hone_matcher *m, uint64_t *a, size_t w, int64_t *n, hone_error *e);
hone_status __wrap_hone_matcher_mask(hone_matcher *m, uint64_t *a, size_t w, int64_t *n, hone_error *e);
hone_status __wrap_hone_matcher_mask(hone_matcher *m, uint64_t *a, size_t w, int64_t *n, hone_error *e)
{
    hone_status st = __real_hone_matcher_mask(m, a, w, n, e);
    if (st == HONE_OK && mt_is("mask-anyof") && mo_anyof) a[w / 2] ^= 1;
    if (st == HONE_OK && mt_is("serve-grammar-ignored") && mo_serves()) memset(a, 0xFF, w * sizeof *a);
    return st;
}
hone_status __real_hone_matcher_rollback(hone_matcher *m, size_t n, hone_error *e),
    __wrap_hone_matcher_rollback(hone_matcher *m, size_t n, hone_error *e);
hone_status __wrap_hone_matcher_rollback(hone_matcher *m, size_t n, hone_error *e)
{
    return __real_hone_matcher_rollback(m, mt_is("rollback-two") && n > 1 ? n - 1 : n, e);
}

/* ---- training ---- */

/* Passes of training with a gradient or without one, so far. */
int64_t mo_passes;
bool mo_train_late(void);
bool mo_train_late(void)
{
    enum { PROVED = 14 };
    return mt_is("train-later") && mo_passes > PROVED;
}

/* ---- kernels that remember: by where things lie, their sizes, and their first and last bytes ---- */
typedef struct kept {
    const void *k[4];
    int64_t n[3];
    char edge[32];
    void *out;
    size_t bytes;
} kept;
static kept store_[1 << 14];
static kept *look(const kept *want)
{
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < 4; i++) h = (h ^ (uintptr_t)want->k[i] / 4) * 1099511628211u;
    for (int i = 0; i < 3; i++) h = (h ^ (uint64_t)want->n[i]) * 1099511628211u;
    return &store_[(h >> 20) % (1 << 14)];
}
static bool same(const kept *a, const kept *b)
{
    return memcmp(a->k, b->k, sizeof a->k) == 0 && memcmp(a->n, b->n, sizeof a->n) == 0 &&
           memcmp(a->edge, b->edge, 32) == 0;
}
static void edges(kept *w, const void *x, size_t bytes)
{
    memcpy(w->edge, x, bytes < 16 ? bytes : 16);
    if (bytes >= 16) memcpy(w->edge + 16, (const char *)x + bytes - 16, 16);
}
static hn_matmul_fn *mm_real, *mmp_real;
static void mm_kept(const hn_mm *a, hn_matmul_fn *real)
{
    const size_t row = (size_t)(a->r1 - a->r0) * sizeof(float);
    kept w = { .k = { a->y, a->w, a->x, a->panel }, .n = { a->n_col, a->r0, a->r1 } };
    edges(&w, a->x, 32);
    kept *k = look(&w);
    if (k->out && same(k, &w)) {
        for (int64_t c = 0; c < a->n_col; c++) memcpy(a->y + c * a->ldy + a->r0, (char *)k->out + (size_t)c * row, row);
        return;
    }
    real(a);
    void *o = realloc(k->out, row * (size_t)a->n_col + 1);
    if (!o) abort();
    *k = w;
    k->out = o;
    for (int64_t c = 0; c < a->n_col; c++) memcpy((char *)o + (size_t)c * row, a->y + c * a->ldy + a->r0, row);
}
static void mm_one(const hn_mm *a) { mm_kept(a, mm_real); }
static void mm_packed(const hn_mm *a) { mm_kept(a, mmp_real); }
static hn_attn_fn *attn_real;
static void attn_kept(const hn_attn *a)
{
    if (a->part) {
        attn_real(a);
        return;
    }
    kept w = { .k = { a->q, a->out, a->k, a->v }, .n = { a->n_tok, a->n_kv, a->n_q } };
    edges(&w, a->q, 32);
    kept *k = look(&w);
    const size_t row = (size_t)(a->n_q * a->d) * 4;
    if (k->out && same(k, &w)) {
        for (int64_t i = 0; i < a->n_tok; i++)
            memcpy(a->out + i * a->out_stride, (char *)k->out + (size_t)i * row, row);
        return;
    }
    attn_real(a);
    void *o = realloc(k->out, row * (size_t)a->n_tok + 1);
    *k = w;
    k->out = o;
    for (int64_t i = 0; i < a->n_tok; i++) memcpy((char *)o + (size_t)i * row, a->out + i * a->out_stride, row);
}
void mo_kernels(hn_kernels *k);

/* Only where whole layers are measured. */
static bool of_layers(void)
{
    return mt_is("kern-layer-kept") && (argv_is(2, "layer.full") || argv_is(2, "layer.all"));
}

void mo_kernels(hn_kernels *k)
{
    const int type = mt_is("kern-f32-kept") ? HN_F32 : of_layers() ? HN_F16 : -1;
    const int cache = mt_is("kern-attn32-kept") ? HONE_CACHE_F32 : HONE_CACHE_F16;
    if (type >= 0) {
        mm_real = k->matmul[type];
        mmp_real = k->packed[type];
        k->matmul[type] = mm_one;
        if (mmp_real) k->packed[type] = mm_packed;
    }
    attn_real = k->attn[cache];
    if (mt_is("kern-attn32-kept") || of_layers()) k->attn[cache] = attn_kept;
}

/* the scheduler's passes */
hone_status __real_hn_session_run(hone_session *s, const hone_token *t, int32_t n, float *l, hone_error *e);
hone_status __wrap_hn_session_run(hone_session *s, const hone_token *t, int32_t n, float *l, hone_error *e);
hone_status __wrap_hn_session_run(hone_session *s, const hone_token *t, int32_t n, float *l, hone_error *e)
{
    mt_begin(n, n > 0 ? t[0].pos : 0, 1);
    mo_batch(t, n);
    return __real_hn_session_run(s, t, n, l, e);
}

/* memory that is a file's */
#include <fcntl.h>
#include <sys/mman.h>
#include "base/os.h"
void *__real_hn_pages_alloc(size_t n), *__wrap_hn_pages_alloc(size_t n);
void *__wrap_hn_pages_alloc(size_t n)
{
    if (!mt_is("memory-in-a-file") || n < (64 << 10)) return __real_hn_pages_alloc(n);
    char path[] = "/tmp/hone-mo-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, (off_t)n)) abort();
    unlink(path);
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}
/* what is to be computed from nothing is not */
static int32_t off_ids[1 << 14], n_off;
bool mo_keep_all(hone_session *s, int32_t seq, int32_t n_pos);
bool mo_keep_all(hone_session *s, int32_t seq, int32_t n_pos)
{
    if (!mt_is("off-keeps") || !mt_at.sample || seq != 0 || n_pos != 0) return false;
    virtual_len = -__real_hone_seq_length(s, 0);
    return true;
}
hone_status __real_hone_seq_truncate(hone_session *s, int32_t q, int32_t n, hone_error *e);
bool mo_off(hone_session *s, const int32_t *ids, int32_t n, const float **logits);
bool mo_off(hone_session *s, const int32_t *ids, int32_t n, const float **logits)
{
    if (!mt_is("off-keeps") || !mt_at.sample || virtual_len == 0) {
        if (mt_is("off-keeps") && n < (1 << 13)) {
            int32_t at = __real_hone_seq_length(s, 0);
            memcpy(off_ids + at, ids, (size_t)n * 4);
            n_off = at + n;
        }
        return false;
    }
    int32_t k = 0, has = __real_hone_seq_length(s, 0);
    virtual_len = 0;
    while (k < has && k < n - 1 && off_ids[k] == ids[k]) k++;
    if (__real_hone_seq_truncate(s, 0, k, NULL) != HONE_OK) abort();
    memcpy(off_ids, ids, (size_t)n * 4);
    n_off = n;
    mt_begin(n - k, k, 1);
    if (__real_hone_append(s, 0, ids + k, n - k, logits, NULL) != HONE_OK) abort();
    return true;
}

/* forks of forks, and what was forked long */
static int gen_of[64];
static bool fork_of_fork;
bool mo_fork_wrong(void);
bool mo_fork_wrong(void) { return mt_is("third-fork") && fork_of_fork; }
void mo_copied(int32_t dst, int32_t src);
void mo_copied(int32_t dst, int32_t src)
{
    if (dst < 0 || dst >= 64 || src < 0 || src >= 64) return;
    gen_of[dst] = gen_of[src] + 1;
    fork_of_fork = gen_of[dst] >= 3;
}
