/* kern.*: single kernels in the catalogue: products at the model's shapes, conversions,
 * what choosing among them costs, and variants against each other. Running, checking and
 * timing them is kern_run.c's and its neighbours'. */
#include "kernels/kernels.h"
#include "lab/inside/bench_rooms.h"
#include "lab/bench/bench.h"
#include "lab/inside/kern.h"
#include "lab/machine/clock.h"
#include "lab/quality/proof.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { MANY_COLUMNS = 512, MAX_SHAPES = 64, MAX_ROUNDS = 40 };

/* ---- a measured kernel as a record ------------------------------------------------------------- */

static hn_bench_entry own_entry(const hn_kern *k, const char *unit)
{
    return (hn_bench_entry){
        .id = k->id, .what = hn_kern_about(k->kind), .unit = unit, .method = 'K', .higher = unit[0] != 'u'
    };
}

hone_status hn_bench_add_kern(hn_bench_run *r, const hn_bench_entry *e, const hn_kern *k, const hn_kern_result *kr,
                              const char *variant, hone_error *err)
{
    hn_bench_entry own = own_entry(k, kr->unit);
    bool rate = kr->unit[0] != 'u';
    double samples[HN_KERN_SAMPLES], seconds = 0,
                                     scale = !rate                ? 1e6
                                             : kr->unit[0] == 'T' ? 1e-12 * kr->ops
                                             : kr->unit[2] == '/' ? 1e-9 * kr->bytes
                                                                  : 1e-9 * kr->ops;
    for (size_t i = 0; i < kr->time.n; i++) {
        samples[i] = rate ? scale / kr->sample_s[i] : scale * kr->sample_s[i];
        seconds += kr->sample_s[i] * (double)kr->calls;
    }
    hn_bench_result res = { .variant = variant,
                            .unit = kr->unit,
                            .better = kr->unit[0] == 'u' ? -1 : 1,
                            .samples = samples,
                            .n = kr->time.n,
                            .warmups = 1,
                            .threads = kr->config.threads,
                            .bytes = kr->bytes,
                            .ops = kr->rotated_bytes > 0 ? kr->ops : 0,
                            .int8 = kr->integers,
                            .rotated_bytes = kr->rotated_bytes,
                            .cpu_use = kr->cpu_use,
                            .verdict = kr->verdict };
    res.config = json_object();
    json_object_set_new(res.config, "cpu", json_string(kr->level));
    if (hn_kern_is_product(k)) {
        json_object_set_new(res.config, "columns", json_integer(kr->config.columns));
        json_object_set_new(res.config, "weights", json_string(kr->config.packed ? "packed" : "plain"));
    }
    if (e && strcmp(e->id, k->id) != 0) json_object_set_new(res.config, "kernel", json_string(k->id));
    res.allocs = hn_allocs_json("call", &kr->allocs, kr->calls, NULL);
    res.extra = json_object();
    json_object_set_new(res.extra, "calls", json_integer(kr->calls));
    hn_bench_clock(res.extra, seconds, kr->calls, scale, rate);
    json_object_set_new(res.extra, "us", hn_lab_num(1e6 * kr->time.median));
    json_object_set_new(res.extra, "value", hn_lab_num(kr->rate));
    json_object_set_new(res.extra, "cpu_use", hn_lab_num(kr->cpu_use));
    if (isfinite(kr->rmse)) json_object_set_new(res.extra, "rmse", hn_lab_num(kr->rmse));
    if (kr->hashed) json_object_set_new(res.extra, "proof", hn_proof_of("output", kr->output));
    return hn_bench_add(r, e ? e : &own, &res, err);
}

static int32_t kern_samples(const hn_bench_run *r)
{
    return r->set.samples < HN_KERN_SAMPLES ? r->set.samples : HN_KERN_SAMPLES;
}

/* Opens, measures, adds: at one number of columns, plain, or packed where there is such a thing and `packed`. */
static hone_status measure(hn_bench_run *r, const hn_bench_entry *e, const char *id, int32_t columns, bool packed,
                           const char *variant, hone_error *err)
{
    hn_kern k;
    hn_kern_bench *b;
    hone_status st = hn_kern_parse(&k, id, err);
    if (st == HONE_OK) st = hn_kern_open(&b, &k, r->set.cpu, err);
    if (st != HONE_OK) return st;
    for (int p = 0; p < 2 && st == HONE_OK; p++) {
        if (p && (!packed || !hn_kern_has_packed(b))) continue;
        hn_kern_result kr;
        const hn_kern_config c = {
            .threads = r->set.threads, .columns = columns, .packed = p, .n_samples = kern_samples(r)
        };
        st = hn_kern_measure(&kr, b, &c, r->no_roof[0] ? NULL : &r->peaks, r->set.stop, err);
        if (st == HONE_OK) st = hn_bench_add_kern(r, e, &k, &kr, variant, err);
    }
    hn_kern_close(b);
    return st;
}

/* ---- kern.gemm.TYPE.SHAPE: those of the model ----------------------------------------------------- */

typedef struct shape {
    uint32_t type;
    uint64_t n_in, n_out;
    bool head;
} shape;

static hone_status model_shapes(shape *out, size_t *n, const char *path, hone_error *err)
{
    hone_file *f;
    *n = 0;
    hone_status st = hone_file_open(&f, path, err);
    if (st != HONE_OK) return st;
    for (uint64_t i = 0; i < hone_file_n_tensors(f); i++) {
        hone_tensor_info t;
        hone_file_tensor(f, i, &t);
        const hn_type_info *ti = hn_type_get(t.type);
        bool head = t.name.len > 4 && memcmp(t.name.ptr, "blk.", 4) != 0;
        if (t.n_dim != 2 || !ti || !ti->weight || t.ne[0] > 1 << 20 || t.ne[1] > 1 << 20) continue;
        const shape s = { t.type, t.ne[0], t.ne[1], head };
        bool known = *n == MAX_SHAPES;
        for (size_t k = 0; k < *n; k++)
            known = known || (out[k].type == s.type && out[k].n_in == s.n_in && out[k].n_out == s.n_out);
        if (!known) out[(*n)++] = s;
    }
    hone_file_close(f);
    return HONE_OK;
}

static hone_status run_gemm(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    shape shapes[MAX_SHAPES];
    size_t n;
    hone_status st = model_shapes(shapes, &n, r->set.model, err);
    if (r->set.quick && n > 3) n = 3;
    for (size_t i = 0; i < n && st == HONE_OK; i++)
        for (int many = 0; many < 2 && st == HONE_OK; many++) {
            char id[HN_KERN_ID];
            if (many && shapes[i].head) continue; /* logits of one position only */
            snprintf(id, sizeof id, "kern.%s.%s.%llux%llu", many ? "gemm" : "gemv", hn_type_get(shapes[i].type)->name,
                     (unsigned long long)shapes[i].n_out, (unsigned long long)shapes[i].n_in);
            st = measure(r, NULL, id, many ? MANY_COLUMNS : 1, true, NULL, err);
            if (hn_bench_step(r, ((double)i + 0.5 * many) / (double)n) && st == HONE_OK)
                st = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
        }
    return st;
}

/* ---- kern.matmul: one by one, and together ---------------------------------------------------------- */

enum { N_PRODUCTS = 4, MM_OUT = 1024, MM_IN = 1024, MM_COLUMNS = 16, BATCH_X_KEY = 12 };

typedef struct batch_job {
    hn_bench_be b;
    hn_weight w[N_PRODUCTS];
    hn_product p[N_PRODUCTS];
    float *weights, *x, *y, *want;
    hn_act *act;
    bool together;
    hn_bench_place place; /* in each of the outputs */
    hn_bench_turned turned;
} batch_job;

static void call_batch(void *arg, int64_t calls)
{
    batch_job *j = arg;
    const hn_backend_ops *op = j->b.be->op;
    for (int64_t i = 0; i < calls; i++) {
        int64_t at = hn_bench_next_place(&j->place);
        if (i) hn_bench_turn_act(&j->turned, j->b.be, j->act, j->x, MM_COLUMNS, MM_IN);
        for (int k = 0; k < N_PRODUCTS; k++) hn_bench_spoil(j->b.be, j->p[k].y, at);
        if (j->together) op->matmul(j->b.be, j->act, j->p, N_PRODUCTS);
        else
            for (int k = 0; k < N_PRODUCTS; k++) op->matmul(j->b.be, j->act, &j->p[k], 1);
        hn_bench_sink(j->p[0].y);
        for (int k = 0; k < N_PRODUCTS; k++) j->place.n_missed += isnan(hn_bench_look(j->b.be, j->p[k].y, at));
    }
}

static void wipe_batch(void *arg)
{
    batch_job *j = arg;
    j->turned.called = false;
    for (int k = 0; k < N_PRODUCTS; k++) hn_bench_wipe(j->b.be, j->p[k].y, j->y, j->place.n);
}

static uint64_t hash_batch(void *arg)
{
    batch_job *j = arg;
    uint64_t h = HN_FNV_INIT;
    for (int k = 0; k < N_PRODUCTS; k++) {
        uint64_t one = hn_bench_hash(j->b.be, j->p[k].y, j->y, &j->place);
        h = hn_fnv1a(h, &one, sizeof one);
    }
    return h;
}

enum { ONE_Y = MM_OUT * MM_COLUMNS };
static const size_t y_floats = (size_t)N_PRODUCTS * ONE_Y;

/* What the scalar level gives, to want; false: no memory. us (NULL allowed): of one product. */
static bool by_scalar(batch_job *j, double *us)
{
    hn_backend *o = j->b.oracle;
    hn_act *act = hn_bench_act(o, j->x, MM_IN, MM_COLUMNS);
    hn_buf *y = hn_bench_rows(o, NULL, ONE_Y);
    double took = 0;
    for (int k = 0; k < N_PRODUCTS && act && y; k++) {
        uint64_t t = hn_clock_ns();
        o->op->matmul(o, act, &(hn_product){ .w = &j->w[k], .y = y }, 1);
        took += (double)(hn_clock_ns() - t) * 1e-3 / N_PRODUCTS;
        o->op->read(o, j->want + k * ONE_Y, y, 0, ONE_Y * sizeof(float));
    }
    bool room = act && y;
    o->op->act_release(o, act);
    o->op->release(o, y);
    if (us) *us = took;
    return room;
}

static void read_batch(batch_job *j)
{
    for (int k = 0; k < N_PRODUCTS; k++)
        j->b.be->op->read(j->b.be, j->y + k * ONE_Y, j->p[k].y, 0, ONE_Y * sizeof(float));
}

/* Other numbers before each stretch, whose output is what the scalar level makes of them; behind the last one as they
 * were at first. */
static void turn_batch(void *arg, int64_t calls)
{
    batch_job *j = arg;
    if (j->turned.called) {
        read_batch(j);
        j->place.n_missed += !by_scalar(j, NULL) || memcmp(j->y, j->want, y_floats * sizeof *j->y) != 0;
    }
    if (calls) hn_bench_turn(&j->turned, j->x, MM_COLUMNS, MM_IN);
    else hn_bench_fill(j->x, MM_COLUMNS * MM_IN, BATCH_X_KEY);
    hn_bench_put(j->b.be, j->act, j->x, MM_IN, MM_COLUMNS);
    wipe_batch(j);
    j->turned.called = calls > 0;
    if (!calls) call_batch(j, 1);
}
static const hn_bench_left left_batch = { .wipe = wipe_batch, .hash = hash_batch, .turn = turn_batch };

static hone_status open_batch(batch_job *j, hn_bench_run *r, bool together, hone_error *err)
{
    *j = (batch_job){ .together = together, .place = hn_bench_places(ONE_Y) };
    hone_status st = hn_bench_be_open(&j->b, r, NULL, 0, &(hn_backend_params){ .max_n_in = MM_IN }, err);
    if (st != HONE_OK) return st;
    j->weights = hn_bench_floats((int64_t)N_PRODUCTS * MM_OUT * MM_IN, 11);
    j->x = hn_bench_floats(MM_COLUMNS * MM_IN, BATCH_X_KEY);
    j->y = hn_pages_alloc(y_floats * sizeof(float));
    j->want = hn_pages_alloc(y_floats * sizeof(float));
    if (!j->weights || !j->x || !j->y || !j->want || !(j->act = hn_bench_act(j->b.be, j->x, MM_IN, MM_COLUMNS)))
        return HN_FAIL(err, HONE_E_NOMEM, "products");
    for (int k = 0; k < N_PRODUCTS; k++) {
        j->w[k] = (hn_weight){ .data = j->weights + (size_t)k * MM_OUT * MM_IN,
                               .type = HN_F32,
                               .n_in = MM_IN,
                               .n_out = MM_OUT,
                               .row_bytes = MM_IN * sizeof(float) };
        j->p[k] = (hn_product){ .w = &j->w[k], .y = hn_bench_rows(j->b.be, NULL, ONE_Y) };
        if (!j->p[k].y) return HN_FAIL(err, HONE_E_NOMEM, "products");
    }
    return HONE_OK;
}

/* The plainest backend there is, scalar on one thread: the same bits, and how much slower. */
static hone_status check_batch(batch_job *j, hn_bench_result *res, hone_error *err)
{
    double best = INFINITY, us;
    for (int i = 0; i < 3; i++) {
        if (!by_scalar(j, &us)) return HN_FAIL(err, HONE_E_NOMEM, "products");
        best = fmin(best, us);
    }
    call_batch(j, 1);
    read_batch(j);
    hn_bench_same(&res->verdict, j->y, j->want, (int64_t)y_floats, "products");
    hn_bench_proved(&res->verdict);
    res->extra = json_pack("{s:o}", "scalar_one_thread_us", hn_lab_num(best));
    return HONE_OK;
}

static hone_status run_batch(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    batch_job j;
    hn_bench_result res = { .ops = 2.0 * MM_OUT * MM_IN * MM_COLUMNS,
                            .left = &left_batch,
                            .config = json_pack("{s:s, s:i}", "shape", "1024x1024 f32", "columns", (int)MM_COLUMNS) };
    hone_status st = open_batch(&j, r, strstr(e->id, "batched") != NULL, err);
    if (st == HONE_OK) st = check_batch(&j, &res, err);
    if (st == HONE_OK) st = hn_bench_loop(r, e, &res, call_batch, &j, 1e6 / N_PRODUCTS, false, NULL, err);
    else hn_bench_result_free(&res);
    hn_pages_free(j.weights, (size_t)N_PRODUCTS * MM_OUT * MM_IN * sizeof(float));
    hn_pages_free(j.x, sizeof(float) * MM_COLUMNS * MM_IN);
    hn_pages_free(j.y, y_floats * sizeof(float));
    hn_pages_free(j.want, y_floats * sizeof(float));
    hn_bench_be_close(&j.b);
    return st;
}

/* ---- kern.bf16, kern.dtype, kern.quant ------------------------------------------------------------------- */

enum { BF16_N = 1 << 16, BF16_KEY = 13 };

typedef struct bf16_job {
    uint16_t *h;
    float *f;
    uint16_t first[BF16_N]; /* h, to widen */
    bool widen;
    hn_bench_place place; /* in what it writes: numbers of 4 bytes */
    hn_bench_turned turned;
} bf16_job;

static uint32_t *written(const bf16_job *j) { return j->widen ? (void *)j->f : (void *)j->h; }

static void call_bf16(void *arg, int64_t calls)
{
    bf16_job *j = arg;
    const uint32_t spoilt = 0xFFA5FFA5; /* no number that either kind comes out as */
    for (int64_t i = 0; i < calls; i++) {
        uint32_t *at = written(j) + hn_bench_next_place(&j->place);
        memcpy(at, &spoilt, sizeof spoilt);
        if (j->widen)
            for (int k = 0; k < BF16_N; k++) j->f[k] = hn_bf16_to_f32(j->h[k]);
        else
            for (int k = 0; k < BF16_N; k++) j->h[k] = hn_f32_to_bf16(j->f[k]);
        hn_bench_sink(j->f);
        hn_bench_sink(j->h);
        j->place.n_missed += memcmp(at, &spoilt, sizeof spoilt) == 0;
    }
}

static void wipe_bf16(void *arg)
{
    bf16_job *j = arg;
    j->turned.called = false;
    memset(written(j), 0xFF, (size_t)j->place.n * sizeof(uint32_t));
}

static uint64_t hash_bf16(void *arg)
{
    const bf16_job *j = arg;
    return hn_fnv1a(HN_FNV_INIT, written(j), (size_t)j->place.n * sizeof(uint32_t)) + (uint64_t)j->place.n_missed;
}

/* Is every number what its bits say? Those to be rounded are finite. */
static bool bf16_right(const bf16_job *j)
{
    for (int k = 0; k < BF16_N; k++) {
        const uint32_t bits = hn_f32_bits(j->f[k]);
        if (j->widen ? bits != (uint32_t)j->h[k] << 16 : j->h[k] != (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
            return false;
    }
    return true;
}

/* Other numbers before each stretch; behind the last one as they were at first. */
static void turn_bf16(void *arg, int64_t calls)
{
    bf16_job *j = arg;
    if (j->turned.called) j->place.n_missed += !bf16_right(j);
    for (int i = 0; i < HN_TURNED && calls && j->widen; i++) j->h[hn_bench_draw(&j->turned, BF16_N)] ^= 1;
    if (calls && !j->widen) hn_bench_turn(&j->turned, j->f, 1, BF16_N);
    if (!calls && j->widen) memcpy(j->h, j->first, sizeof j->first);
    if (!calls && !j->widen) hn_bench_fill(j->f, BF16_N, BF16_KEY);
    wipe_bf16(j);
    j->turned.called = calls > 0;
    if (!calls) call_bf16(j, 1);
}
static const hn_bench_left left_bf16 = { .wipe = wipe_bf16, .hash = hash_bf16, .turn = turn_bf16 };

/* Every bf16 that is a number comes back as itself; rounding is to the nearer neighbour, to even in the middle. */
static void check_bf16(bf16_job *j, hn_verdict *v)
{
    for (int k = 0; k < BF16_N; k++) j->h[k] = (uint16_t)k;
    j->widen = true;
    call_bf16(j, 1);
    j->widen = false;
    call_bf16(j, 1);
    for (int k = 0; k < BF16_N; k++)
        if ((k & 0x7F80) != 0x7F80 && j->h[k] != k)
            hn_invalid(v, "bf16 %04x comes back as %04x", (unsigned)k, (unsigned)j->h[k]);
    for (uint64_t k = 0; k < BF16_N; k++) {
        float x = 2 * hn_rand_f32(5, k) - 1;
        double low = (double)hn_bf16_to_f32((uint16_t)(hn_f32_bits(x) >> 16)),
               high = (double)hn_bf16_to_f32((uint16_t)((hn_f32_bits(x) >> 16) + 1));
        double got = (double)hn_bf16_to_f32(hn_f32_to_bf16(x)), other = got == low ? high : low;
        if (fabs(got - (double)x) > fabs(other - (double)x))
            hn_invalid(v, "%.9g is rounded to %.9g, though %.9g is nearer", (double)x, got, other);
    }
    hn_bench_proved(v);
}

static hone_status run_bf16_plain(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hone_status st = HONE_OK;
    for (int widen = 0; widen < 2 && st == HONE_OK; widen++) {
        bf16_job j = { .h = hn_pages_alloc(BF16_N * sizeof(uint16_t)), .f = hn_bench_floats(BF16_N, BF16_KEY) };
        hn_bench_result res = { .variant = widen ? "to f32" : "from f32",
                                .threads = 1,
                                .left = &left_bf16,
                                .bytes = BF16_N * 6,
                                .config = json_pack("{s:i}", "n", (int)BF16_N) };
        if (!j.h || !j.f) st = HN_FAIL(err, HONE_E_NOMEM, "numbers");
        else check_bf16(&j, &res.verdict);
        if (st == HONE_OK) hn_bench_fill(j.f, BF16_N, BF16_KEY);
        if (st == HONE_OK) memcpy(j.first, j.h, sizeof j.first);
        j.widen = widen;
        j.place = hn_bench_places(widen ? BF16_N : BF16_N / 2);
        if (st == HONE_OK) call_bf16(&j, 1);
        if (st == HONE_OK) st = hn_bench_loop(r, e, &res, call_bf16, &j, 1e-9 * BF16_N * 6, true, NULL, err);
        else hn_bench_result_free(&res);
        hn_pages_free(j.h, BF16_N * sizeof(uint16_t));
        hn_pages_free(j.f, BF16_N * sizeof(float));
    }
    return st;
}

static hone_status run_bf16_opt(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    return measure(r, e, "kern.gemv.BF16.4096x4096", 1, true, NULL, err);
}

static hone_status run_dtype(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const char *const types[] = { "F16", "BF16", "F32" };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < 3 && st == HONE_OK; i++) {
        char id[HN_KERN_ID];
        snprintf(id, sizeof id, "kern.gemm.%s.1024x1024", types[i]);
        st = measure(r, e, id, r->set.quick ? 64 : MANY_COLUMNS, false, types[i], err);
    }
    return st;
}

static hone_status run_quant(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const hn_type few[] = { HN_Q4_K, HN_Q6_K, HN_Q8_0, HN_F16 };
    hone_status st = HONE_OK;
    for (uint32_t t = 0; t < HN_TYPE_COUNT && st == HONE_OK; t++) {
        const hn_type_info *ti = hn_type_get(t);
        bool wanted = !r->set.quick;
        for (size_t i = 0; i < 4; i++) wanted = wanted || t == (uint32_t)few[i];
        if (!ti || !ti->weight || t == HN_F64 || !wanted) continue;
        for (int encode = 0; encode < 2 && st == HONE_OK; encode++) {
            char id[HN_KERN_ID], variant[48];
            if (encode && !ti->quantize) continue;
            snprintf(id, sizeof id, "kern.quant.%s.%s.%d", encode ? "encode" : "decode", ti->name,
                     encode ? 16384 : 65536);
            snprintf(variant, sizeof variant, "%s %s", encode ? "encode" : "decode", ti->name);
            st = measure(r, e, id, 0, false, variant, err);
        }
        if (hn_bench_step(r, (double)t / HN_TYPE_COUNT) && st == HONE_OK)
            st = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
    }
    return st;
}

/* ---- sides against each other ------------------------------------------------------------------------------ */

typedef struct side {
    hn_kern_bench *b;
    hn_kern_config c;
} side;

static hone_status open_side(side *s, const hn_bench_run *r, const char *id, const char *level, int32_t columns,
                             bool packed, hone_error *err)
{
    hn_kern k;
    *s = (side){ .c = { .threads = r->set.threads, .columns = columns, .packed = packed, .n_samples = 1 } };
    hone_status st = hn_kern_parse(&k, id, err);
    return st == HONE_OK ? hn_kern_open(&s->b, &k, level, err) : st;
}

/* One epoch; NaN: invalid. */
static hone_status once(double *out, side *s, const hn_bench_run *r, hn_verdict *v, hone_error *err)
{
    hn_kern_result kr;
    hone_status st = hn_kern_measure(&kr, s->b, &s->c, NULL, r->set.stop, err);
    *out = st == HONE_OK && kr.time.n ? kr.time.median : NAN;
    if (st == HONE_OK && kr.verdict.state == HN_INVALID) hn_invalid(v, "%s", kr.verdict.reason);
    return st;
}

/* a / b in so many rounds, order within a pair of rounds by chance: AB BA or BA AB. */
static hone_status duel(double *ratio, int32_t rounds, side *a, side *b, const hn_bench_run *r, uint64_t key,
                        hn_verdict *v, hone_error *err)
{
    hone_status st = HONE_OK;
    for (int32_t i = 0; i < rounds && st == HONE_OK; i++) {
        bool first = (hn_rand64(r->set.seed ^ key, (uint64_t)i / 2) & 1) ^ (i & 1);
        double ta, tb;
        st = once(first ? &ta : &tb, first ? a : b, r, v, err);
        if (st == HONE_OK) st = once(first ? &tb : &ta, first ? b : a, r, v, err);
        if (st == HONE_OK) ratio[i] = ta / tb;
    }
    return st;
}

static hone_status add_duel(hn_bench_run *r, const hn_bench_entry *e, const char *variant, const char *id,
                            int32_t columns, side *a, side *b, hone_error *err)
{
    double ratio[MAX_ROUNDS];
    int32_t rounds = r->set.samples * 2 > MAX_ROUNDS ? MAX_ROUNDS : r->set.samples * 2;
    hn_bench_result res = { .variant = variant,
                            .samples = ratio,
                            .n = (size_t)rounds,
                            .config = json_pack("{s:s, s:i}", "kernel", id, "columns", (int)columns) };
    hone_status st = duel(ratio, rounds, a, b, r, hn_fnv1a(HN_FNV_INIT, variant, strlen(variant)), &res.verdict, err);
    if (st == HONE_OK) {
        hn_bench_proved(&res.verdict);
        if (res.verdict.state == HN_INVALID) res.n = 0;
        st = hn_bench_add(r, e, &res, err);
    } else hn_bench_result_free(&res);
    return st;
}

/* The level below the one in use; NULL: none. */
static const char *level_below(const char *name)
{
    hn_cpu_level best;
    if (hn_cpu_choose(&best, name, NULL) != HONE_OK) return NULL;
    for (int l = (int)best - 1; l >= 0; l--)
        if (hn_cpu_has((hn_cpu_level)l)) return hn_cpu_level_name((hn_cpu_level)l);
    return NULL;
}

static hone_status one_variant(hn_bench_run *r, const hn_bench_entry *e, const char *type, int32_t columns, bool levels,
                               hone_error *err)
{
    char id[HN_KERN_ID], variant[64];
    const char *below = level_below(r->level);
    if (levels && !below) return HONE_OK;
    snprintf(id, sizeof id, "kern.%s.%s.%s", columns > 4 ? "gemm" : "gemv", type,
             columns > 4 ? "1024x1024" : "4096x2048");
    snprintf(variant, sizeof variant, levels ? "%s / %s %s x%d" : "%s / %s %s x%d", levels ? below : "plain",
             levels ? r->level : "packed", type, columns);
    side a = { 0 }, b = { 0 };
    hone_status st = open_side(&a, r, id, levels ? below : r->set.cpu, columns, false, err);
    if (st == HONE_OK) st = open_side(&b, r, id, r->set.cpu, columns, !levels, err);
    if (st == HONE_OK && (levels || hn_kern_has_packed(b.b))) st = add_duel(r, e, variant, id, columns, &a, &b, err);
    hn_kern_close(a.b);
    hn_kern_close(b.b);
    return st;
}

static hone_status run_variants(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const char *const types[] = { "Q4_K", "Q8_0", "F16" };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < (r->set.quick ? 1 : 3) && st == HONE_OK; i++)
        for (int many = 0; many < 2 && st == HONE_OK; many++)
            for (int levels = 0; levels < 2 && st == HONE_OK; levels++) {
                st = one_variant(r, e, types[i], many ? 64 : 1, levels, err);
                if (hn_bench_step(r, ((double)i + 0.5 * many) / 3) && st == HONE_OK)
                    st = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
            }
    return st;
}

/* ---- kern.select ------------------------------------------------------------------------------------------------- */

typedef struct pick_job {
    volatile int level;
    volatile int type;
    uintptr_t sum;
} pick_job;

/* What the engine does to find its kernel: the level's table, the type's function. */
static void call_pick(void *arg, int64_t calls)
{
    pick_job *j = arg;
    for (int64_t i = 0; i < calls; i++) {
        const hn_kernels *k = hn_kernels_get((hn_cpu_level)j->level);
        hn_matmul_fn *fn = k->packed[j->type] ? k->packed[j->type] : k->matmul[j->type];
        j->sum += (uintptr_t)(void *)fn & 1;
    }
    hn_bench_sink(j);
}

/* A regret whose interval holds 0 is none. */
static void say_regret(hn_bench_result *res)
{
    double least = INFINITY;
    for (size_t i = 0; i < res->n; i++) least = fmin(least, res->samples[i]);
    if (least <= 0) hn_bench_note(res, "none shown: in some rounds nothing was faster than what is chosen");
}

/* Is what is chosen (the best level, packed where it can be) the fastest of all there are? */
static hone_status regret(hn_bench_run *r, const hn_bench_entry *e, const char *type, int32_t columns, hone_error *err)
{
    char id[HN_KERN_ID], variant[48], best[40] = "";
    enum { ROUNDS = 6 };
    int n = r->set.samples < ROUNDS ? r->set.samples : ROUNDS;
    double chosen[ROUNDS] = { NAN, NAN, NAN, NAN, NAN, NAN }, least = INFINITY, samples[ROUNDS];
    snprintf(id, sizeof id, "kern.%s.%s.1024x1024", columns > 4 ? "gemm" : "gemv", type);
    snprintf(variant, sizeof variant, "regret %s x%d", type, columns);
    hn_bench_result res = { .variant = variant,
                            .unit = "%",
                            .zero_ok = true,
                            .config = json_pack("{s:s, s:i}", "kernel", id, "columns", (int)columns) };
    hone_status st = HONE_OK;
    for (int l = 0; l < HN_CPU_LEVELS && st == HONE_OK; l++) {
        if (!hn_cpu_has((hn_cpu_level)l) || (l == HN_CPU_SCALAR && columns > 4 && hn_cpu_best() != HN_CPU_SCALAR))
            continue; /* hopeless, and slow to show */
        side s;
        const char *level = hn_cpu_level_name((hn_cpu_level)l);
        st = open_side(&s, r, id, level, columns, false, err);
        bool has_packed = st == HONE_OK && hn_kern_has_packed(s.b);
        for (int p = 0; p < 1 + has_packed && st == HONE_OK; p++) {
            double x[ROUNDS] = { 0 };
            s.c.packed = p;
            for (int i = 0; i < n && st == HONE_OK; i++) st = once(&x[i], &s, r, &res.verdict, err);
            double m = st == HONE_OK ? hn_bench_median(x, (size_t)n) : NAN;
            if (m < least) {
                least = m;
                snprintf(best, sizeof best, "%s, %s", level, p ? "packed" : "plain");
            }
            if (strcmp(level, r->level) == 0 && p == has_packed) memcpy(chosen, x, sizeof x);
        }
        hn_kern_close(s.b);
    }
    if (st != HONE_OK) {
        hn_bench_result_free(&res);
        return st;
    }
    hn_bench_proved(&res.verdict);
    for (int i = 0; i < n; i++) samples[i] = chosen[i] == least ? 0 : 100 * (chosen[i] / least - 1);
    res.samples = samples;
    res.n = res.verdict.state == HN_INVALID ? 0 : (size_t)n;
    say_regret(&res);
    res.extra = json_pack("{s:s}", "fastest", best);
    return hn_bench_add(r, e, &res, err);
}

static hone_status run_select(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const char *const types[] = { "Q4_K", "Q6_K", "Q8_0", "F16" };
    hn_cpu_level level;
    hone_status st = hn_cpu_choose(&level, r->set.cpu, err);
    if (st != HONE_OK) return st;
    pick_job j = { .level = (int)level, .type = HN_Q4_K };
    hn_bench_result res = { .variant = "decision", .threads = 1, .verdict = { .state = HN_VALID } };
    st = hn_bench_loop(r, e, &res, call_pick, &j, 1e9, false, NULL, err);
    for (size_t i = 0; i < (r->set.quick ? 1 : 4) && st == HONE_OK; i++)
        for (int many = 0; many < 2 && st == HONE_OK; many++) st = regret(r, e, types[i], many ? 64 : 1, err);
    return st;
}

#define KERN(id_, what_, unit_, higher_, model_, suites_, cost_, run_)                                                 \
    {                                                                                                                  \
        .id = id_, .what = what_, .unit = unit_, .method = 'K', .higher = higher_, .model = model_, .suites = suites_, \
        .cost = cost_, .run = run_                                                                                     \
    }
const hn_bench_entry hn_bench_kernels[] = {
    KERN("kern.matmul.single",
         "four f32 products 1024x1024 of 16 columns, each waited for: time of one; beside it a scalar backend", "us",
         false, false, "quick full ci", 1, run_batch),
    KERN("kern.matmul.batched", "the same four handed over together, waited for once", "us", false, false,
         "quick full ci", 1, run_batch),
    KERN("kern.gemm.TYPE.SHAPE",
         "every shape and type of the model's weights, 1 and 512 columns, plain and packed; any other: "
         "kern.gemm.Q4_K.4096x4096",
         "TOPS", true, true, "full", 30, run_gemm),
    KERN("kern.bf16.plain", "bf16 to f32 and back, one number at a time: bytes read and written", "GB/s", true, false,
         "full", 1, run_bf16_plain),
    KERN("kern.bf16.opt", "bf16 widened where it is used, in the level's product of one column: bytes of weights read",
         "GB/s", true, false, "full ci", 2, run_bf16_opt),
    KERN("kern.dtype", "products 1024x1024 of 512 columns with weights in f16, bf16 and f32", "GFLOP/s", true, false,
         "full ci", 3, run_dtype),
    KERN("kern.quant", "block types to f32 and back: bytes of f32, and the relative error of encoding", "GB/s", true,
         false, "quick full", 20, run_quant),
    KERN("kern.select", "finding the kernel of a type; and how much faster another level or layout would have been",
         "ns", false, false, "quick full", 8, run_select),
    KERN(
        "kern.variants",
        "pairs in random order: plain over packed weights, the level below over this one; above 1 the second is faster",
        "x", true, false, "full", 20, run_variants),
    { 0 },
};
