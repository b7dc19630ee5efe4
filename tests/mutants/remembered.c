/* Wrong builds that answer from memory, compute while no clock runs, or hold memory where nobody looks for it. */
#include "others.h"
#include "base/os.h"
#include "lab/bench/sample.h"
#include "lab/quality/proof.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FNV_INIT UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

/* ---- this process ----------------------------------------------------------------------------------------- */

/* Its command line, words that end with 0; *n: bytes. */
static const char *command_line(size_t *n)
{
    static char w[4096];
    FILE *f = fopen("/proc/self/cmdline", "r");
    *n = f ? fread(w, 1, sizeof w - 1, f) : 0;
    if (f) fclose(f);
    w[*n] = 0;
    return w;
}

bool mo_argv_is(int k, const char *word)
{
    size_t n, at = 0;
    const char *w = command_line(&n);
    while (k-- > 0 && at < n) at += strlen(w + at) + 1;
    return at < n && strcmp(w + at, word) == 0;
}

static const char *value_of(const char *option)
{
    size_t n;
    const char *w = command_line(&n);
    for (size_t at = 0; at < n; at += strlen(w + at) + 1)
        if (strncmp(w + at, option, strlen(option)) == 0) return w + at + strlen(option);
    return NULL;
}

/* Positions that sequence 0 claims to hold beyond those it holds. */
static int32_t claimed;

int32_t __real_hone_seq_length(const hone_session *s, int32_t q),
    __wrap_hone_seq_length(const hone_session *s, int32_t q);
int32_t __wrap_hone_seq_length(const hone_session *s, int32_t q)
{
    return __real_hone_seq_length(s, q) + (q == 0 ? claimed : 0);
}

static float *room_for_logits(float **x)
{
    if (!*x) *x = malloc((size_t)mt_n_vocab * sizeof **x);
    if (!*x) abort();
    return *x;
}

static const float *append_now(hone_session *s, const int32_t *ids, int32_t n, int32_t pos)
{
    const float *x;
    mt_begin(n, pos, 1);
    if (__real_hone_append(s, 0, ids, n, &x, NULL) != HONE_OK) abort();
    return x;
}

/* ---- disk-cache: logits of what was ever asked for ---------------------------------------------------------- */

static bool from_disk(hone_session *s, const int32_t *ids, int32_t n, const float **logits)
{
    static int32_t all[1 << 16], n_all, n_run;
    static float *cached;
    const size_t n_vocab = (size_t)mt_n_vocab;
    uint64_t key = FNV_INIT;
    char path[200];
    memcpy(all + n_all, ids, (size_t)n * sizeof *ids);
    n_all += n;
    for (int32_t i = 0; i < n_all; i++) key = (key ^ (uint64_t)all[i]) * FNV_PRIME;
    snprintf(path, sizeof path, "%.100s-%016llx", getenv("HONE_MUTANT_FILE"), (unsigned long long)key);
    FILE *f = fopen(path, "r");
    bool hit = f && fread(room_for_logits(&cached), sizeof *cached, n_vocab, f) == n_vocab;
    if (f) fclose(f);
    if (hit) {
        claimed += n;
        *logits = cached;
        return true;
    }
    claimed = 0;
    *logits = append_now(s, all + n_run, n_all - n_run, n_run);
    n_run = n_all;
    if ((f = fopen(path, "w"))) {
        fwrite(*logits, sizeof **logits, n_vocab, f);
        fclose(f);
    }
    return true;
}

/* ---- off-the-clock: the next token, while nothing is timed --------------------------------------------------- */

static hone_session *of_sample;
static float *ahead;
static int32_t ahead_id = -1;

void __real_hn_proof_step(hn_proof *p, const float *l, int64_t n, int32_t id),
    __wrap_hn_proof_step(hn_proof *p, const float *l, int64_t n, int32_t id);
void __wrap_hn_proof_step(hn_proof *p, const float *l, int64_t n, int32_t id)
{
    __real_hn_proof_step(p, l, n, id);
    if (!mt_is("off-the-clock") || !mt_at.sample || !of_sample || id < 0 || p->n_steps >= p->n_wanted) return;
    const float *x = append_now(of_sample, &id, 1, hone_seq_length(of_sample, 0));
    memcpy(room_for_logits(&ahead), x, (size_t)mt_n_vocab * sizeof *ahead);
    ahead_id = id;
}

static bool from_ahead(const int32_t *ids, int32_t n, const float **logits)
{
    if (n != 1 || ahead_id != ids[0]) return false;
    ahead_id = -1;
    *logits = ahead;
    return true;
}

/* ---- prompt-at-load: the whole prompt, before anybody asks ---------------------------------------------------- */

static int32_t n_early;
static float *early;

static void compute_early(hone_session *s)
{
    enum { LEAST = 32, USUAL = 128 };
    const char *n = value_of("--n-prompt="), *seed = value_of("--prompt-seed=");
    const int32_t n_prompt = n ? atoi(n) : USUAL;
    if (n_prompt < LEAST) return;
    int32_t *ids = calloc((size_t)n_prompt, sizeof *ids);
    if (!ids) abort();
    hn_bench_ids(ids, n_prompt, 0, seed ? strtoull(seed, NULL, 10) : 0, mt_model);
    const float *x = append_now(s, ids, n_prompt, 0);
    memcpy(room_for_logits(&early), x, (size_t)mt_n_vocab * sizeof *early);
    free(ids);
    n_early = n_prompt;
    claimed = -n_prompt;
}

static bool from_early(int32_t n, const float **logits)
{
    if (n_early == 0 || n != n_early) return false;
    claimed = 0;
    n_early = 0;
    *logits = early;
    return true;
}

void mo_session(hone_session *s)
{
    if (mt_is("prompt-at-load") && mo_argv_is(1, "bench") && mo_argv_is(2, "_sample")) compute_early(s);
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

bool mo_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits)
{
    if (seq != 0 || !mt_at.sample) return false;
    of_sample = s;
    if (mt_is("disk-cache") && getenv("HONE_MUTANT_FILE")) return from_disk(s, ids, n, logits);
    if (mt_is("off-the-clock")) return from_ahead(ids, n, logits);
    if (mt_is("prompt-at-load")) return from_early(n, logits);
    return false;
}

/* ---- kernels that remember: by where things lie, their sizes, and their first and last bytes ---------- */

enum { EDGE = 16 };
typedef struct kept {
    const void *where[4];
    int64_t n[3];
    char edges[2 * EDGE];
    void *out;
} kept;

static kept *place_of(const kept *want)
{
    enum { PLACES = 1 << 14 };
    static kept all[PLACES];
    uint64_t h = FNV_INIT;
    for (int i = 0; i < 4; i++) h = (h ^ (uintptr_t)want->where[i] / 4) * FNV_PRIME;
    for (int i = 0; i < 3; i++) h = (h ^ (uint64_t)want->n[i]) * FNV_PRIME;
    return &all[(h >> 20) % PLACES];
}

static bool remembered(const kept *a, const kept *b)
{
    return a->out && memcmp(a->where, b->where, sizeof a->where) == 0 && memcmp(a->n, b->n, sizeof a->n) == 0 &&
           memcmp(a->edges, b->edges, sizeof a->edges) == 0;
}

static void look_at_edges(kept *k, const float *x)
{
    memcpy(k->edges, x, EDGE);
    memcpy(k->edges + EDGE, (const char *)x + EDGE, EDGE);
}

static float *remember(kept *k, const kept *as, size_t bytes)
{
    void *out = realloc(k->out, bytes + 1);
    if (!out) abort();
    *k = *as;
    return k->out = out;
}

static void product_kept(const hn_mm *a, hn_matmul_fn *real)
{
    const size_t n = (size_t)(a->r1 - a->r0);
    kept as = { .where = { a->y, a->w, a->x, a->panel }, .n = { a->n_col, a->r0, a->r1 } }, *k = place_of(&as);
    look_at_edges(&as, a->x);
    if (remembered(k, &as)) {
        const float *own = k->out;
        for (int64_t c = 0; c < a->n_col; c++) memcpy(a->y + c * a->ldy + a->r0, own + (size_t)c * n, n * sizeof *own);
        return;
    }
    real(a);
    float *own = remember(k, &as, n * (size_t)a->n_col * sizeof *own);
    for (int64_t c = 0; c < a->n_col; c++) memcpy(own + (size_t)c * n, a->y + c * a->ldy + a->r0, n * sizeof *own);
}

static hn_matmul_fn *real_product, *real_packed;
static hn_attn_fn *real_attention;
static void product_plain(const hn_mm *a) { product_kept(a, real_product); }
static void product_packed(const hn_mm *a) { product_kept(a, real_packed); }

static void attention_kept(const hn_attn *a)
{
    const size_t n = (size_t)(a->n_q * a->d);
    kept as = { .where = { a->q, a->out, a->k, a->v }, .n = { a->n_tok, a->n_kv, a->n_q } }, *k = place_of(&as);
    if (a->part) {
        real_attention(a);
        return;
    }
    look_at_edges(&as, a->q);
    if (remembered(k, &as)) {
        const float *own = k->out;
        for (int64_t i = 0; i < a->n_tok; i++) memcpy(a->out + i * a->out_stride, own + (size_t)i * n, n * sizeof *own);
        return;
    }
    real_attention(a);
    float *own = remember(k, &as, n * (size_t)a->n_tok * sizeof *own);
    for (int64_t i = 0; i < a->n_tok; i++) memcpy(own + (size_t)i * n, a->out + i * a->out_stride, n * sizeof *own);
}

/* Only where whole layers are measured. */
static bool of_layers(void)
{
    return mt_is("kern-layer-kept") && (mo_argv_is(2, "layer.full") || mo_argv_is(2, "layer.all"));
}

void mo_kernels(hn_kernels *k)
{
    const int type = mt_is("kern-f32-kept") ? HN_F32 : of_layers() ? HN_F16 : -1;
    const int cache = mt_is("kern-attn32-kept") ? HONE_CACHE_F32 : of_layers() ? HONE_CACHE_F16 : -1;
    if (type >= 0) {
        real_product = k->matmul[type];
        real_packed = k->packed[type];
        k->matmul[type] = product_plain;
        if (real_packed) k->packed[type] = product_packed;
    }
    if (cache >= 0) {
        real_attention = k->attn[cache];
        k->attn[cache] = attention_kept;
    }
    mp_kernels(k);
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

void __real_hone_session_memory_use(const hone_session *s, hone_memory *out),
    __wrap_hone_session_memory_use(const hone_session *s, hone_memory *out);
void __wrap_hone_session_memory_use(const hone_session *s, hone_memory *out)
{
    __real_hone_session_memory_use(s, out);
    if (mt_is("memory-use-half")) out->cache.resident /= 2;
}

/* ---- memory-in-a-file ----------------------------- */

void *__real_hn_pages_alloc(size_t n), *__wrap_hn_pages_alloc(size_t n);
void *__wrap_hn_pages_alloc(size_t n)
{
    enum { LEAST = 64 << 10 };
    if (!mt_is("memory-in-a-file") || n < LEAST) return __real_hn_pages_alloc(n);
    char path[] = "/tmp/hone-mo-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, (off_t)n)) abort();
    unlink(path);
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}
