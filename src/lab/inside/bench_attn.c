/* kern.attn*, mem.kvlayout.*: attention by length, by kind of cache and level, against the
 * textbook's, and the layouts a cache could have. The engine's own goes through the
 * backend; textbook and layouts are plain C here, all of one code, and are not the engine's. */
#include "lab/inside/bench_rooms.h"
#include "lab/bench/bench.h"
#include "lab/inside/kern.h"
#include "lab/quality/proof.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { TOKENS = 512, MAX_LENGTHS = 4 };

/* ---- by length: kern_run.c measures -------------------------------------------------------------- */

static hone_status heads_of(hn_bench_run *r, int64_t *n_head, int64_t *n_head_kv, int64_t *d, hone_error *err)
{
    *n_head = 32; /* Llama 3.2 1B, unless there is a model */
    *n_head_kv = 8;
    *d = 64;
    hone_model *m;
    if (!r->set.model) return HONE_OK;
    hone_status st = hn_bench_model(r, &m, err);
    if (st == HONE_OK && r->info.recurrent)
        st = hn_bench_not_recurrent(r->at, "it has no attention (layer.time_mix and kern.wkv7 are what it has)", err);
    if (st != HONE_OK) return st;
    *n_head = r->info.n_head;
    *n_head_kv = r->info.n_head_kv;
    *d = r->info.head_dim;
    return HONE_OK;
}

static hone_status by_length(hn_bench_run *r, const hn_bench_entry *e, const char *kind, const int32_t *lengths, int n,
                             hone_error *err)
{
    int64_t h, hk, d;
    hone_status st = heads_of(r, &h, &hk, &d, err);
    for (int i = 0; i < n && st == HONE_OK; i++) {
        char id[HN_KERN_ID], variant[24];
        hn_kern k;
        hn_kern_bench *b;
        hn_kern_result kr;
        const hn_kern_config c = { .threads = r->set.threads,
                                   .n_samples = r->set.samples < HN_KERN_SAMPLES ? r->set.samples : HN_KERN_SAMPLES };
        snprintf(id, sizeof id, "kern.attn.%s.%lldx%lldx%lld.%d", kind, (long long)h, (long long)hk, (long long)d,
                 lengths[i]);
        snprintf(variant, sizeof variant, "%d positions", lengths[i]);
        if ((st = hn_kern_parse(&k, id, err)) != HONE_OK || (st = hn_kern_open(&b, &k, r->set.cpu, err)) != HONE_OK)
            break;
        st = hn_kern_measure(&kr, b, &c, r->no_roof[0] ? NULL : &r->peaks, r->set.stop, err);
        if (st == HONE_OK) st = hn_bench_add_kern(r, e, &k, &kr, variant, err);
        hn_kern_close(b);
        if (hn_bench_step(r, (double)(i + 1) / n) && st == HONE_OK)
            st = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
    }
    return st;
}

static hone_status run_attn(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const int32_t lengths[MAX_LENGTHS] = { 128, 512, 2048, 8192 };
    return by_length(r, e, "prefill", lengths, r->set.quick ? 2 : MAX_LENGTHS, err);
}

static hone_status run_bandwidth(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const int32_t lengths[MAX_LENGTHS] = { 512, 2048, 8192, 32768 };
    return by_length(r, e, "decode", lengths, r->set.quick ? 2 : MAX_LENGTHS, err);
}

/* ---- variants: kinds of cache, levels, the textbook ------------------------------------------------- */

typedef struct attn_job {
    hn_bench_be b;
    int64_t h, hk, d;
    hn_kv kv;
    char *cache;
    size_t cache_bytes;
    float *q, *k, *v, *scores, *out;
    hn_row *rows;
    hn_buf *be_q;
    hn_act *act;
    bool textbook;
    hn_bench_place place; /* in what calls leave, which comes into `left` */
    hn_bench_turned turned, turned_k, turned_v;
    float *left;
} attn_job;

enum { Q_KEY = 21 }; /* of the stream that queries are from; keys and values: of the next ones */

static float scale_of(const attn_job *j) { return 1 / sqrtf((float)j->d); }

/* One token, one head: all scores, their softmax, the weighted sum; k [n][kv heads][d], as v. */
static void textbook_head(const attn_job *j, float *out, int64_t t, int64_t h, float *p)
{
    int64_t d = j->d, stride = j->hk * d, at = h / (j->h / j->hk) * d;
    const float *q = j->q + (t * j->h + h) * d;
    float max = -INFINITY, sum = 0;
    for (int64_t i = 0; i <= t; i++) {
        float s = 0;
        for (int64_t k = 0; k < d; k++) s += q[k] * j->k[i * stride + at + k];
        p[i] = s * scale_of(j);
        max = p[i] > max ? p[i] : max;
    }
    for (int64_t i = 0; i <= t; i++) sum += p[i] = expf(p[i] - max);
    for (int64_t k = 0; k < d; k++) out[k] = 0;
    for (int64_t i = 0; i <= t; i++)
        for (int64_t k = 0; k < d; k++) out[k] += p[i] / sum * j->v[i * stride + at + k];
}

static void textbook_chunk(void *arg, int64_t t, int32_t thread)
{
    attn_job *j = arg;
    for (int64_t h = 0; h < j->h; h++)
        textbook_head(j, j->out + (t * j->h + h) * j->d, t, h, j->scores + (size_t)thread * TOKENS);
}

static void call_attn(void *arg, int64_t calls)
{
    attn_job *j = arg;
    int64_t width = j->h * j->d;
    for (int64_t i = 0; i < calls; i++) {
        int64_t at = hn_bench_next_place(&j->place);
        if (j->textbook) {
            j->out[at] = NAN;
            hn_pool_run(j->b.pool, textbook_chunk, j, TOKENS);
        } else {
            const hn_attention a = { .q = j->be_q, .n_head = j->h, .scale = scale_of(j) };
            if (i) hn_bench_turn_buf(&j->turned, j->b.be, j->be_q, j->q, TOKENS * width);
            hn_bench_spoil_act(j->b.be, j->act, width, at);
            hn_bench_attention(j->b.be, j->act, &a, &j->kv, j->rows, TOKENS);
        }
        hn_bench_sink(j->textbook ? (const void *)j->out : j->act);
        j->place.n_missed += isnan(j->textbook ? j->out[at] : hn_bench_look_act(j->b.be, j->act, width, at));
    }
}

/* Keys and values to the backend's cache. */
static void store(attn_job *j)
{
    for (int64_t t = 0; t < TOKENS; t++)
        for (int64_t i = 0; i < j->hk; i++) {
            char *at = j->cache + hn_kv_at(&j->kv, (uint32_t)(t / HN_PAGE), i);
            j->b.scalar->store_k[j->kv.type](at, j->k + (t * j->hk + i) * j->d, j->d, t % HN_PAGE);
            j->b.scalar->store_v[j->kv.type](at + j->kv.v_at, j->v + (t * j->hk + i) * j->d, j->d, t % HN_PAGE);
        }
    j->b.be->op->write(j->b.be, j->kv.mem, 0, j->cache, j->cache_bytes);
}

static hone_status open_attn(attn_job *j, hn_bench_run *r, hn_cache_type type, const char *level, bool textbook,
                             hone_error *err)
{
    *j = (attn_job){ .textbook = textbook };
    hone_status st = heads_of(r, &j->h, &j->hk, &j->d, err);
    if (st == HONE_OK)
        st = hn_bench_be_open(
            &j->b, r, level, 0,
            &(hn_backend_params){
                .max_n_in = j->h * j->d, .n_head = j->h, .n_head_kv = j->hk, .d = j->d, .n_ctx = TOKENS },
            err);
    if (st != HONE_OK) return st;
    size_t head = HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(type, j->d), half = head * (size_t)j->hk;
    j->cache_bytes = 2 * half * (TOKENS / HN_PAGE);
    j->cache = hn_pages_alloc(j->cache_bytes);
    j->q = hn_bench_floats(TOKENS * j->h * j->d, Q_KEY);
    j->k = hn_bench_floats(TOKENS * j->hk * j->d, Q_KEY + 1);
    j->v = hn_bench_floats(TOKENS * j->hk * j->d, Q_KEY + 2);
    j->place = hn_bench_places(TOKENS * j->h * j->d);
    j->left = hn_pages_alloc((size_t)j->place.n * sizeof(float));
    j->out = hn_pages_alloc((size_t)(TOKENS * j->h * j->d) * sizeof(float));
    j->scores = hn_pages_alloc((size_t)r->set.threads * TOKENS * sizeof(float));
    j->rows = calloc(TOKENS, sizeof *j->rows);
    j->kv.mem = j->b.be->op->alloc(j->b.be, j->cache_bytes, HN_MEM_CACHE);
    j->act = hn_bench_act(j->b.be, NULL, j->h * j->d, TOKENS);
    if (!j->cache || !j->q || !j->k || !j->v || !j->out || !j->left || !j->scores || !j->rows || !j->kv.mem ||
        !j->act || !(j->be_q = hn_bench_rows(j->b.be, j->q, TOKENS * j->h * j->d)))
        return HN_FAIL(err, HONE_E_NOMEM, "attention of %lld heads", (long long)j->h);
    j->kv = (hn_kv){ .mem = j->kv.mem,
                     .v_at = half,
                     .page_bytes = 2 * half,
                     .head_bytes = head,
                     .n_head_kv = (int32_t)j->hk,
                     .d = j->d,
                     .type = type };
    for (int64_t t = 0; t < TOKENS; t++) j->rows[t].pos = t;
    store(j);
    return HONE_OK;
}

static void close_attn(attn_job *j, const hn_bench_run *r)
{
    size_t q = (size_t)(TOKENS * j->h * j->d) * sizeof(float), kv = (size_t)(TOKENS * j->hk * j->d) * sizeof(float);
    hn_pages_free(j->cache, j->cache_bytes);
    hn_pages_free(j->q, q);
    hn_pages_free(j->k, kv);
    hn_pages_free(j->v, kv);
    hn_pages_free(j->out, q);
    hn_pages_free(j->left, q);
    hn_pages_free(j->scores, (size_t)r->set.threads * TOKENS * sizeof(float));
    free(j->rows);
    hn_bench_be_close(&j->b);
}

/* The textbook in double precision; the engine's also against its scalar level, bit by bit. f16 and q8_0
 * hold keys and values rounded: that is the larger tolerance. */
static hone_status check_attn(attn_job *j, hn_verdict *v, hone_error *err)
{
    static const int64_t at[] = { 0, 63, TOKENS - 1 };
    double want[1024], p[TOKENS];
    hn_backend *o = j->b.oracle;
    int64_t width = j->h * j->d;
    hn_act *act = hn_bench_act(o, NULL, width, 1);
    hn_kv kv = j->kv;
    hn_buf *q = hn_bench_rows(o, NULL, width);
    float *mine = j->out, *scalar = j->out + width; /* what only the textbook writes to */
    if (j->d > 1024) return HN_FAIL(err, HONE_E_UNSUPPORTED, "heads of %lld", (long long)j->d);
    if (!act || !q || !(kv.mem = o->op->alloc(o, j->cache_bytes, HN_MEM_CACHE)))
        return HN_FAIL(err, HONE_E_NOMEM, "reference");
    o->op->write(o, kv.mem, 0, j->cache, j->cache_bytes);
    call_attn(j, 1);
    for (size_t i = 0; i < 3; i++) {
        int64_t t = at[i], stride = j->hk * j->d;
        const float *got = j->textbook ? j->out + t * width : mine;
        if (!j->textbook) hn_bench_get(j->b.be, mine, j->act, t, 1, width);
        for (int64_t h = 0; h < j->h; h++) {
            double max = -INFINITY, sum = 0;
            int64_t k0 = h / (j->h / j->hk) * j->d;
            for (int64_t n = 0; n <= t; n++) {
                p[n] = 0;
                for (int64_t k = 0; k < j->d; k++)
                    p[n] += (double)j->q[(t * j->h + h) * j->d + k] * (double)j->k[n * stride + k0 + k];
                p[n] *= (double)scale_of(j);
                max = fmax(max, p[n]);
            }
            for (int64_t n = 0; n <= t; n++) sum += p[n] = exp(p[n] - max);
            for (int64_t k = 0; k < j->d; k++) want[k] = 0;
            for (int64_t n = 0; n <= t; n++)
                for (int64_t k = 0; k < j->d; k++) want[k] += p[n] / sum * (double)j->v[n * stride + k0 + k];
            hn_bench_near(v, got + h * j->d, want, j->d,
                          j->textbook || j->kv.type == HN_CACHE_F32 ? 1e-5
                          : j->kv.type == HN_CACHE_F16              ? 1e-3
                                                                    : 2e-2,
                          "attention");
        }
        if (j->textbook) continue;
        o->op->write(o, q, 0, j->q + t * width, (size_t)width * sizeof(float));
        hn_bench_attention(o, act, &(hn_attention){ .q = q, .n_head = j->h, .scale = scale_of(j) }, &kv, j->rows + t,
                           1);
        hn_bench_get(o, scalar, act, 0, 1, width);
        hn_bench_same(v, got, scalar, width, "attention against the scalar level");
    }
    hn_bench_proved(v);
    return HONE_OK;
}

typedef struct keep {
    attn_job *j;
    double us;
    double base_us;
} keep;
static void call_keep(void *arg, int64_t calls) { call_attn(((keep *)arg)->j, calls); }
static void wipe_keep(void *arg)
{
    attn_job *j = ((keep *)arg)->j;
    j->turned.called = false;
    if (!j->textbook) hn_bench_wipe_act(j->b.be, j->act, j->left, j->h * j->d, TOKENS);
    for (int64_t i = 0; i < j->place.n && j->textbook; i++) j->out[i] = NAN;
}
static uint64_t hash_keep(void *arg)
{
    attn_job *j = ((keep *)arg)->j;
    if (!j->textbook) return hn_bench_hash_act(j->b.be, j->act, j->left, j->h * j->d, &j->place);
    return hn_bits_hash(j->out, j->place.n) + (uint64_t)j->place.n_missed;
}

/* Is token t of what a stretch left what the scalar level gives? o_kv: of the oracle. */
static bool same_token(attn_job *j, const hn_kv *o_kv, hn_buf *q, hn_act *act, float *want, int64_t t)
{
    hn_backend *o = j->b.oracle;
    const int64_t width = j->h * j->d;
    o->op->write(o, q, 0, j->q + t * width, (size_t)width * sizeof(float));
    hn_bench_attention(o, act, &(hn_attention){ .q = q, .n_head = j->h, .scale = scale_of(j) }, o_kv, j->rows + t, 1);
    hn_bench_get(o, want, act, 0, 1, width);
    return memcmp(want, j->left + t * width, (size_t)width * sizeof(float)) == 0;
}

/* Of what a stretch left: tokens whose query, key or value was turned, and, behind the last one, all. */
static bool stretch_right(attn_job *j, bool all)
{
    hn_backend *o = j->b.oracle;
    const int64_t width = j->h * j->d;
    const hn_bench_turned *const turned[] = { &j->turned, &j->turned_k, &j->turned_v };
    hn_kv kv = j->kv;
    hn_act *act = hn_bench_act(o, NULL, width, 1);
    hn_buf *q = hn_bench_rows(o, NULL, width);
    float *want = malloc((size_t)width * sizeof *want);
    kv.mem = o->op->alloc(o, j->cache_bytes, HN_MEM_CACHE);
    bool same = act && q && want && kv.mem;
    if (same) {
        o->op->write(o, kv.mem, 0, j->cache, j->cache_bytes);
        hn_bench_get(j->b.be, j->left, j->act, 0, TOKENS, width);
    }
    for (int64_t t = 0; t < TOKENS && all && same; t++) same = same_token(j, &kv, q, act, want, t);
    for (int i = 0; i < 3 * HN_TURNED && same && !all; i++)
        same = same_token(j, &kv, q, act, want, turned[i / HN_TURNED]->row[i % HN_TURNED]);
    o->op->act_release(o, act);
    o->op->release(o, q);
    o->op->release(o, kv.mem);
    free(want);
    return same;
}

/* The textbook, of a head that it has just worked on. */
static bool textbook_right(attn_job *j)
{
    float *p = malloc((size_t)(TOKENS + j->d) * sizeof *p);
    bool same = p != NULL;
    for (int i = 0; i < HN_TURNED && same; i++) {
        const int64_t t = j->turned.row[i], h = hn_bench_draw(&j->turned, j->h);
        textbook_head(j, p + TOKENS, t, h, p);
        same = memcmp(p + TOKENS, j->out + (t * j->h + h) * j->d, (size_t)j->d * sizeof *p) == 0;
    }
    free(p);
    return same;
}

/* Other queries, keys and values before each stretch; behind the last one as they were at first. */
static void turn_keep(void *arg, int64_t calls)
{
    attn_job *j = ((keep *)arg)->j;
    const int64_t q = j->h * j->d, kv = j->hk * j->d;
    if (j->turned.called) j->place.n_missed += !(j->textbook ? textbook_right(j) : stretch_right(j, calls == 0));
    if (calls) {
        hn_bench_turn(&j->turned, j->q, TOKENS, q);
        hn_bench_turn(&j->turned_k, j->k, TOKENS, kv);
        hn_bench_turn(&j->turned_v, j->v, TOKENS, kv);
    } else {
        hn_bench_fill(j->q, TOKENS * q, Q_KEY);
        hn_bench_fill(j->k, TOKENS * kv, Q_KEY + 1);
        hn_bench_fill(j->v, TOKENS * kv, Q_KEY + 2);
    }
    j->b.be->op->write(j->b.be, j->be_q, 0, j->q, (size_t)(TOKENS * q) * sizeof(float));
    store(j);
    wipe_keep(arg);
    j->turned.called = calls > 0;
    if (!calls) call_attn(j, 1);
}
static const hn_bench_left left_keep = { .wipe = wipe_keep, .hash = hash_keep, .turn = turn_keep };
static void after_keep(void *arg, hn_bench_result *res, const hn_bench_timing *t)
{
    keep *k = arg;
    k->us = 1e6 * hn_bench_median(t->s, t->n);
    res->extra = json_pack("{s:o, s:o}", "gflops", hn_lab_num(res->ops / k->us * 1e-3), "times_textbook",
                           hn_lab_num(k->base_us / k->us));
}

static hone_status one_variant(hn_bench_run *r, const hn_bench_entry *e, hn_cache_type type, const char *level,
                               const char *variant, double *base_us, hone_error *err)
{
    attn_job j;
    bool textbook = !level;
    hone_status st = open_attn(&j, r, type, level, textbook, err);
    hn_bench_result res = { .variant = variant,
                            .int8 = type == HN_CACHE_Q8_0,
                            .left = &left_keep,
                            .ops = 4.0 * (double)(j.h * j.d) * (TOKENS * (TOKENS + 1.0) / 2),
                            .config =
                                json_pack("{s:i, s:s}", "tokens", (int)TOKENS, "cpu", level ? level : "plain C") };
    if (st == HONE_OK) st = check_attn(&j, &res.verdict, err);
    keep k = { &j, NAN, *base_us };
    if (st == HONE_OK) st = hn_bench_loop(r, e, &res, call_keep, &k, 1e6, false, after_keep, err);
    else hn_bench_result_free(&res);
    if (textbook) *base_us = k.us;
    close_attn(&j, r);
    return st;
}

static hone_status run_variants(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const char *const types[] = { "f16", "f32", "q8_0" };
    double base_us = NAN;
    hone_status st = one_variant(r, e, HN_CACHE_F32, NULL, "textbook", &base_us, err);
    for (int t = 0; t < HN_CACHE_TYPES && st == HONE_OK; t++)
        for (int l = 0; l < HN_CPU_LEVELS && st == HONE_OK; l++) {
            char variant[32];
            const char *level = hn_cpu_level_name((hn_cpu_level)l);
            bool own = strcmp(level, r->level) == 0;
            if (!hn_cpu_has((hn_cpu_level)l) || l == HN_CPU_SCALAR || (t != HN_CACHE_F16 && !own)) continue;
            snprintf(variant, sizeof variant, "%s, %s", types[t], level);
            st = one_variant(r, e, (hn_cache_type)t, level, variant, &base_us, err);
            if (hn_bench_step(r, (t + 1.0) / HN_CACHE_TYPES) && st == HONE_OK)
                st = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
        }
    return st;
}

/* ---- layouts of a cache: one step of four sequences ------------------------------------------------------ */

enum { BATCH = 4, KV_HEADS = 8, WIDTH = 64, LENGTH = 2048 };

typedef struct layout_job {
    float *k, *v, *q, *new_k, *new_v, *out, *scores;
    int64_t b, h, s;      /* strides of sequence, head, position, in floats */
    hn_bench_place place; /* in out */
} layout_job;

static const size_t cache_floats = (size_t)BATCH * KV_HEADS * LENGTH * WIDTH;

static void layout_of(layout_job *j, const char *name)
{
    if (strcmp(name, "BHSD") == 0)
        *j = (layout_job){ .b = (int64_t)KV_HEADS * LENGTH * WIDTH, .h = (int64_t)LENGTH * WIDTH, .s = WIDTH };
    else if (strcmp(name, "BSHD") == 0)
        *j = (layout_job){ .b = (int64_t)LENGTH * KV_HEADS * WIDTH, .h = WIDTH, .s = (int64_t)KV_HEADS * WIDTH };
    else *j = (layout_job){ .b = (int64_t)LENGTH * WIDTH, .h = (int64_t)BATCH * LENGTH * WIDTH, .s = WIDTH };
}

/* Puts the new key and value behind the others, then attends to all of them. */
static void step_one(const layout_job *j, int b, int h)
{
    int64_t at = b * j->b + h * j->h;
    const float *q = j->q + (b * KV_HEADS + h) * WIDTH;
    float *out = j->out + (b * KV_HEADS + h) * WIDTH, max = -INFINITY, sum = 0;
    memcpy(j->k + at + (LENGTH - 1) * j->s, j->new_k + (b * KV_HEADS + h) * WIDTH, WIDTH * sizeof(float));
    memcpy(j->v + at + (LENGTH - 1) * j->s, j->new_v + (b * KV_HEADS + h) * WIDTH, WIDTH * sizeof(float));
    for (int64_t i = 0; i < LENGTH; i++) {
        const float *k = j->k + at + i * j->s;
        float lane[16] = { 0 }, s = 0;
        for (int d = 0; d < WIDTH; d += 16)
            for (int l = 0; l < 16; l++) lane[l] += q[d + l] * k[d + l];
        for (int l = 0; l < 16; l++) s += lane[l];
        j->scores[i] = s * 0.125f;
        max = j->scores[i] > max ? j->scores[i] : max;
    }
    for (int64_t i = 0; i < LENGTH; i++) sum += j->scores[i] = expf(j->scores[i] - max);
    memset(out, 0, WIDTH * sizeof *out);
    for (int64_t i = 0; i < LENGTH; i++) {
        const float *v = j->v + at + i * j->s;
        float p = j->scores[i] / sum;
        for (int d = 0; d < WIDTH; d++) out[d] += p * v[d];
    }
}

static void call_layout(void *arg, int64_t calls)
{
    layout_job *j = arg;
    for (int64_t i = 0; i < calls; i++) {
        int64_t at = hn_bench_next_place(&j->place);
        j->out[at] = NAN;
        for (int b = 0; b < BATCH; b++)
            for (int h = 0; h < KV_HEADS; h++) step_one(j, b, h);
        hn_bench_sink(j->out);
        j->place.n_missed += isnan(j->out[at]);
    }
}

static void wipe_layout(void *arg)
{
    layout_job *j = arg;
    for (int64_t i = 0; i < j->place.n; i++) j->out[i] = NAN;
}

static uint64_t hash_layout(void *arg)
{
    const layout_job *j = arg;
    return hn_bits_hash(j->out, j->place.n) + (uint64_t)j->place.n_missed;
}
static const hn_bench_left left_layout = { .wipe = wipe_layout, .hash = hash_layout };

static float *cell(const layout_job *j, float *x, int b, int h, int64_t i)
{
    return x + b * j->b + h * j->h + i * j->s;
}

/* Key or value d of a place, the same in all layouts. */
static float number_at(uint64_t which, int b, int h, int64_t i, int d)
{
    return 2 * hn_rand_f32(which,
                           (((uint64_t)b * KV_HEADS + (uint64_t)h) * LENGTH + (uint64_t)i) * WIDTH + (uint64_t)d) -
           1;
}

static void check_layout(layout_job *j, hn_verdict *v)
{
    double want[WIDTH], p[LENGTH], max = -INFINITY, sum = 0;
    int b = BATCH - 1, h = KV_HEADS - 2;
    call_layout(j, 1);
    for (int64_t i = 0; i < LENGTH; i++) {
        p[i] = 0;
        for (int d = 0; d < WIDTH; d++)
            p[i] += 0.125 * (double)j->q[(b * KV_HEADS + h) * WIDTH + d] *
                    (double)(i == LENGTH - 1 ? j->new_k[(b * KV_HEADS + h) * WIDTH + d] : number_at(31, b, h, i, d));
        max = fmax(max, p[i]);
    }
    for (int64_t i = 0; i < LENGTH; i++) sum += p[i] = exp(p[i] - max);
    for (int d = 0; d < WIDTH; d++) {
        want[d] = 0;
        for (int64_t i = 0; i < LENGTH; i++)
            want[d] += p[i] / sum *
                       (double)(i == LENGTH - 1 ? j->new_v[(b * KV_HEADS + h) * WIDTH + d] : number_at(32, b, h, i, d));
    }
    hn_bench_near(v, j->out + (b * KV_HEADS + h) * WIDTH, want, WIDTH, 1e-5, "attention");
    hn_bench_proved(v);
}

static hone_status run_layout(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    layout_job j;
    const char *name = strrchr(e->id, '.') + 1;
    int64_t heads = (int64_t)BATCH * KV_HEADS * WIDTH;
    layout_of(&j, name);
    j.place = hn_bench_places(heads);
    j.k = hn_pages_alloc(cache_floats * sizeof(float));
    j.v = hn_pages_alloc(cache_floats * sizeof(float));
    j.q = hn_bench_floats(heads, 33);
    j.new_k = hn_bench_floats(heads, 34);
    j.new_v = hn_bench_floats(heads, 35);
    j.out = hn_bench_floats(heads, 36);
    j.scores = hn_bench_floats(LENGTH, 37);
    hone_status st = j.k && j.v && j.q && j.new_k && j.new_v && j.out && j.scores
                         ? HONE_OK
                         : HN_FAIL(err, HONE_E_NOMEM, "cache of %zu bytes", 8 * cache_floats);
    hn_bench_result res = { .threads = 1,
                            .left = &left_layout,
                            .ops = 4.0 * KV_HEADS * LENGTH * WIDTH,
                            .config = json_pack("{s:s}", "shape", "4 sequences, 8 heads of 64, 2048 positions, f32") };
    for (int b = 0; b < BATCH && st == HONE_OK; b++)
        for (int h = 0; h < KV_HEADS; h++)
            for (int64_t i = 0; i < LENGTH - 1; i++)
                for (int d = 0; d < WIDTH; d++) {
                    cell(&j, j.k, b, h, i)[d] = number_at(31, b, h, i, d);
                    cell(&j, j.v, b, h, i)[d] = number_at(32, b, h, i, d);
                }
    if (st == HONE_OK) {
        check_layout(&j, &res.verdict);
        st = hn_bench_loop(r, e, &res, call_layout, &j, 1e6 / BATCH, false, NULL, err);
    } else hn_bench_result_free(&res);
    hn_pages_free(j.k, cache_floats * sizeof(float));
    hn_pages_free(j.v, cache_floats * sizeof(float));
    for (float **p = (float *[]){ j.q, j.new_k, j.new_v, j.out, NULL }; *p; p++)
        hn_pages_free(*p, (size_t)heads * sizeof(float));
    hn_pages_free(j.scores, LENGTH * sizeof(float));
    return st;
}

#define ATTN(id_, what_, unit_, higher_, suites_, cost_, run_)                                                       \
    {                                                                                                                \
        .id = id_, .what = what_, .unit = unit_, .method = 'K', .higher = higher_, .suites = suites_, .cost = cost_, \
        .uses = "model pre", .run = run_                                                                             \
    }
const hn_bench_entry hn_bench_attn[] = {
    ATTN("kern.attn", "causal attention of the last 512 of 128 to 8192 tokens, the model's heads", "GFLOP/s", true,
         "quick full ci", 4, run_attn),
    ATTN("kern.attn.variants",
         "512 tokens: the textbook in plain C, the engine's with each kind of cache and on each level", "us", false,
         "full", 4, run_variants),
    ATTN("kern.attn.bw", "one token against 512 to 32768 positions: keys and values read", "GB/s", true, "full ci", 4,
         run_bandwidth),
    ATTN("mem.kvlayout.BHSD",
         "one token appended and attended, plain C, one thread: sequence, head, position (the engine's: blocks of 16 "
         "positions in this order)",
         "us", false, "full", 2, run_layout),
    ATTN("mem.kvlayout.BSHD", "the same: sequence, position, head", "us", false, "full", 2, run_layout),
    ATTN("mem.kvlayout.HBSD", "the same: head, sequence, position", "us", false, "full", 2, run_layout),
    { 0 },
};
