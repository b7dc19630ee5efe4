/* packed_choice: which types of a packed file are read packed, and which from the model after all. Bits are the same
 * either way, so it is decided by speed, measured here once for each type, machine, kernel level and build, and kept
 * (base/known.h). Owns the measurement and the rule where there is none; refuses to know whose file it is
 * (packed_find.c) and how a product is made (backend.h). */
#define _GNU_SOURCE
#include "backend/backend.h"
#include "base/os.h"
#include "kernels/kernels.h"
#include "model/packed.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* One look takes some 0.1 s a type. */
enum {
    MAX_IN = 8192, /* a row's elements: of each of hn_packed_widths */
    MANY = 4,      /* columns of the second question */
    PAIRS = 15,
    MIN_PAIRS = 7,          /* of a plain and a packed product, one after the other */
    POINT_US = 14000,       /* no more pairs after so long */
    SAMPLE_US = 300,        /* one product of one thread */
    LEAST_BYTES = 16 << 20, /* of each layout, or the last-level cache, so that both together are cold again */
    MOST_BYTES = 64 << 20,  /* … when their turn comes; of larger caches the measurement says less */
    ROOM = 8,               /* so much of the free memory may that be: an eighth */
    LOOK_MS = 3000          /* for all types at a start; what is not looked at by then waits for the next one */
};

/* A packed file of less is not worth the look: its rows stay in the cache, and it is over at once. */
static const uint64_t worth_bytes = (uint64_t)64 << 20;

/* ---- what is kept --------------------------------------------------------------------------------- */

static const char kind[] = "layout";

const int32_t hn_packed_widths[HN_PACKED_WIDTHS] = { 2048, 4096, MAX_IN };

/* The nearest of hn_packed_widths, by their ratio. */
static int width_of(uint64_t n_in)
{
    int w = 0;
    while (w < HN_PACKED_WIDTHS - 1 && n_in * n_in > (uint64_t)hn_packed_widths[w] * (uint64_t)hn_packed_widths[w + 1])
        w++;
    return w;
}

/* Of this type, by rows of so many elements, on this machine at this level with this build. */
static void key_of(hn_known_key *key, hn_type t, int32_t n_in, hn_cpu_level level)
{
    char cpu[128], text[1400];
    hn_sha256 s;
    hn_os_cpu_name(cpu, sizeof cpu);
    int n = snprintf(text, sizeof text, "%s|%d|%s|%d|%d|%s|%s|%d", cpu, hn_cpu_count(), hn_cpu_level_name(level),
                     (int)t, (int)n_in, hone_version(), hone_build_info(), HN_PACK_VERSION);
    hn_sha256_init(&s);
    hn_sha256_add(&s, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    hn_sha256_end(&s, key->sum);
    memcpy(&key->dev, key->sum, sizeof key->dev);
    key->ino = (uint64_t)t;
}

static bool plausible(const hn_packed_speed *v)
{
    for (int i = 0; i < HN_PACKED_POINTS; i++)
        if (!(v->of[i] > 0.01f && v->of[i] < 100)) return false;
    return true;
}

static bool known(hn_packed_speed *v, hn_type t, int32_t n_in, hn_cpu_level level)
{
    hn_known_key key;
    key_of(&key, t, n_in, level);
    return hn_known_get(&key, kind, v, sizeof *v) && plausible(v);
}

bool hn_packed_keep(const hn_packed_speed *v, hn_type t, int32_t n_in, hn_cpu_level level)
{
    hn_known_key key;
    char what[80];
    key_of(&key, t, n_in, level);
    snprintf(what, sizeof what, "%s packed over plain, rows of %d, at %s", hn_type_get(t)->name, (int)n_in,
             hn_cpu_level_name(level));
    return hn_known_put(&key, kind, what, v, sizeof *v);
}

/* ---- the measurement ------------------------------------------------------------------------------ */

typedef struct look {
    hn_type type;
    int32_t n_in;
    size_t row, group; /* bytes */
    char *data[2];     /* plain, packed: the same sixteen rows over and over */
    size_t bytes;      /* of each */
    size_t at[2];      /* where the next product begins */
    hn_backend *be;
    hn_act *act;
    hn_buf *y;
    int64_t n_row; /* of a product, a multiple of HN_PACK_ROWS */
} look;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static size_t wanted_bytes(void)
{
    uint64_t cache = hn_cache_bytes();
    return cache < LEAST_BYTES ? LEAST_BYTES : cache > MOST_BYTES ? MOST_BYTES : (size_t)cache;
}

/* Microseconds of one product of the next rows in a layout. */
static double product_us(look *l, bool packed)
{
    size_t stride = packed ? l->group / HN_PACK_ROWS : l->row, n = (size_t)l->n_row * stride;
    if (l->at[packed] + n > l->bytes) l->at[packed] = 0;
    const char *p = l->data[packed] + l->at[packed];
    hn_weight w = { .data = p, .type = l->type, .n_in = l->n_in, .n_out = l->n_row, .row_bytes = l->row };
    if (packed) {
        w.packed = p;
        w.group_bytes = l->group;
    }
    l->at[packed] += n;
    double t = now_us();
    l->be->op->matmul(l->be, l->act, &(hn_product){ .w = &w, .y = l->y }, 1);
    return now_us() - t;
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

float hn_packed_ratio(float *plain_us, float *packed_us, int n)
{
    qsort(plain_us, (size_t)n, sizeof *plain_us, ascending);
    qsort(packed_us, (size_t)n, sizeof *packed_us, ascending);
    return plain_us[n / 4] / packed_us[n / 4];
}

static float ratio_of(look *l)
{
    float us[2][PAIRS];
    int n = 0;
    product_us(l, false); /* their pages, the activation's form */
    product_us(l, true);
    for (double begin = now_us(); n < PAIRS && (n < MIN_PAIRS || now_us() - begin < POINT_US); n++) {
        bool first = n % 2;
        us[first][n] = (float)product_us(l, first);
        us[!first][n] = (float)product_us(l, !first);
    }
    return hn_packed_ratio(us[false], us[true], n);
}

/* Rows of a product that one thread is busy with for SAMPLE_US, times n_thread; a quarter of the data at most. */
static void choose_rows(look *l, int32_t n_thread)
{
    int64_t most = (int64_t)(l->bytes / 4 / (l->group / HN_PACK_ROWS > l->row ? l->group / HN_PACK_ROWS : l->row));
    l->n_row = HN_PACK_ROWS;
    product_us(l, false);
    double us = product_us(l, false);
    double want = HN_PACK_ROWS * (double)n_thread * SAMPLE_US / (us > 0.1 ? us : 0.1);
    int64_t n = want < (double)most ? (int64_t)want : most;
    l->n_row = n / HN_PACK_ROWS * HN_PACK_ROWS;
    if (l->n_row < HN_PACK_ROWS) l->n_row = HN_PACK_ROWS;
}

/* A backend with its rows on so many threads. */
typedef struct side {
    hn_pool *pool;
    hn_backend *be;
    hn_act *act;
    hn_buf *y;
    int32_t n_thread;
} side;

static hone_status open_side(side *s, int32_t n_thread, hn_cpu_level level, size_t bytes, hone_error *err)
{
    const uint64_t most_rows = bytes / 4 / HN_PACK_ROWS + HN_PACK_ROWS; /* a block has more bytes than that a row */
    s->n_thread = n_thread;
    hone_status st = hn_pool_new(&s->pool, n_thread, err);
    if (st != HONE_OK) return st;
    const hn_backend_params p = { .pool = s->pool, .level = level, .max_n_in = MAX_IN };
    if ((st = hn_backend_open(&s->be, NULL, &p, err)) != HONE_OK) return st;
    s->act = s->be->op->act_alloc(s->be, MAX_IN, MANY);
    s->y = s->be->op->alloc(s->be, most_rows * MANY * sizeof(float), HN_MEM_ROWS);
    return s->act && s->y ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "rows to compare layouts with");
}

static void close_side(side *s)
{
    if (s->be) s->be->op->free(s->be); /* and all memory of it */
    hn_pool_free(s->pool);
}

static void measure_on(look *l, side *s, float *v)
{
    static const int columns[] = { 1, MANY };
    float x[MAX_IN];
    l->be = s->be;
    l->act = s->act;
    l->y = s->y;
    for (int c = 0; c < 2; c++) {
        s->be->op->act_shape(s->be, s->act, l->n_in, columns[c]);
        for (int t = 0; t < columns[c]; t++) {
            for (int64_t i = 0; i < l->n_in; i++) x[i] = 2 * hn_rand_f32((uint64_t)t, (uint64_t)i) - 1;
            s->be->op->act_write(s->be, s->act, x, &(hn_act_part){ .row = t, .n_row = 1, .n_col = l->n_in });
        }
        choose_rows(l, s->n_thread);
        v[c] = ratio_of(l);
    }
}

/* Sixteen rows of random numbers in both layouts, repeated. */
static bool fill(look *l)
{
    const hn_type_info *ti = hn_type_get(l->type);
    float *x = malloc((size_t)l->n_in * sizeof *x);
    if (!x || !ti->quantize) {
        free(x);
        return false;
    }
    for (int r = 0; r < HN_PACK_ROWS; r++) {
        for (int64_t i = 0; i < l->n_in; i++) x[i] = hn_rand_f32((uint64_t)r, (uint64_t)i) - 0.5f;
        ti->quantize(l->data[0] + (size_t)r * l->row, x, l->n_in, NULL);
    }
    free(x);
    hn_pack_group(l->type, l->data[1], l->data[0], l->row, HN_PACK_ROWS, l->n_in);
    const size_t unit[2] = { HN_PACK_ROWS * l->row, l->group };
    for (int i = 0; i < 2; i++)
        for (size_t at = unit[i]; at + unit[i] <= l->bytes; at += unit[i]) memcpy(l->data[i] + at, l->data[i], unit[i]);
    return true;
}

hone_status hn_packed_measure(hn_packed_speed v[HN_TYPE_COUNT], const int32_t n_in[HN_TYPE_COUNT], hn_cpu_level level,
                              hone_error *err)
{
    look l = { .bytes = wanted_bytes() };
    side s[2] = { { .n_thread = 0 } };
    uint64_t room = hn_memory_available();
    const int n_side = hn_cpu_count() > 1 ? 2 : 1;
    if (room && l.bytes > room / ROOM / 2) /* less stays in the cache, and says something else */
        return HN_FAIL(err, HONE_E_NOMEM, "%zu bytes to compare layouts with, of %llu that are free", 2 * l.bytes,
                       (unsigned long long)room);
    l.bytes -= l.bytes % (1 << 20);
    hone_status st = HONE_OK;
    for (int i = 0; i < 2; i++) l.data[i] = l.bytes ? hn_pages_alloc_huge(l.bytes) : NULL;
    if (!l.data[0] || !l.data[1]) st = HN_FAIL(err, HONE_E_NOMEM, "%zu bytes to compare layouts with", 2 * l.bytes);
    for (int i = 0; i < n_side && st == HONE_OK; i++)
        st = open_side(&s[i], i ? hn_cpu_count() : 1, level, l.bytes, err);
    for (int t = 0; t < HN_TYPE_COUNT && st == HONE_OK; t++) {
        if (!n_in[t]) continue;
        l.n_in = n_in[t];
        l.type = (hn_type)t;
        l.row = (size_t)hn_row_bytes(hn_type_get((uint32_t)t), (uint64_t)l.n_in);
        l.group = hn_packed_group_bytes(l.type, l.n_in);
        l.at[0] = l.at[1] = 0;
        if (!fill(&l)) st = HN_FAIL(err, HONE_E_NOMEM, "rows of %s to compare layouts with", hn_type_get(l.type)->name);
        for (int i = 0; i < 2 && st == HONE_OK; i++) measure_on(&l, &s[i < n_side ? i : 0], v[t].of + 2 * i);
        if (st == HONE_OK && !plausible(&v[t]))
            st = HN_FAIL(err, HONE_E_NUMERIC, "%s: times of two layouts that cannot be", hn_type_get(l.type)->name);
    }
    for (int i = 0; i < 2; i++) {
        close_side(&s[i]);
        if (l.data[i]) hn_pages_free(l.data[i], l.bytes);
    }
    return st;
}

/* v = the medians of it and two looks more, of the types wanted. */
static hone_status twice_more(hn_packed_speed v[HN_TYPE_COUNT], const int32_t n_in[HN_TYPE_COUNT], hn_cpu_level level,
                              hone_error *err)
{
    hn_packed_speed more[2][HN_TYPE_COUNT];
    hone_status st = HONE_OK;
    for (int i = 0; i < 2 && st == HONE_OK; i++) st = hn_packed_measure(more[i], n_in, level, err);
    for (int t = 0; t < HN_TYPE_COUNT && st == HONE_OK; t++)
        for (int p = 0; p < HN_PACKED_POINTS && n_in[t]; p++) {
            float x[] = { v[t].of[p], more[0][t].of[p], more[1][t].of[p] };
            qsort(x, 3, sizeof *x, ascending);
            v[t].of[p] = x[1];
        }
    return st;
}

hone_status hn_packed_measure_all(hn_packed_speed out[HN_TYPE_COUNT], bool there[HN_TYPE_COUNT], int32_t n_in,
                                  hn_cpu_level level, hone_error *err)
{
    int32_t want[HN_TYPE_COUNT];
    const hn_kernels *k = hn_kernels_get(level);
    for (int t = 0; t < HN_TYPE_COUNT; t++)
        there[t] = hn_type_get((uint32_t)t) && hn_can_pack((hn_type)t) && k->packed[t], want[t] = there[t] ? n_in : 0;
    hone_status st = hn_packed_measure(out, want, level, err);
    return st == HONE_OK ? twice_more(out, want, level, err) : st;
}

/* ---- the choice ------------------------------------------------------------------------------------ */

/* What an answer asks of weights: tokens one by one, and a pass of few columns where a prompt ends, which takes some
 * two tokens' time. Ten tokens to each such pass are a short answer. */
float hn_packed_of_one(const hn_packed_speed *v)
{
    const float tokens = 10, pass = 2;
    float least = v->of[0];
    for (int i = 0; i < HN_PACKED_POINTS; i += 2) {
        float token = v->of[i], few = v->of[i + 1];
        float both = (tokens + pass) / (tokens / token + pass / few);
        float here = token < both ? token : both;
        least = here < least ? here : least;
    }
    return least;
}

float hn_packed_of_several(const hn_packed_speed *v)
{
    return sqrtf(v->of[HN_PACKED_POINTS - 2] * v->of[HN_PACKED_POINTS - 1]);
}

/* Where nothing can be measured or kept: AVX-512's packed products were faster on every machine tried, others' not. */
static bool usual(hn_cpu_level level) { return level == HN_CPU_AVX512; }

/* One type, and twice more where little decides. */
static bool measure_one(hn_packed_speed *out, hn_type t, int32_t n_in, hn_cpu_level level)
{
    hn_packed_speed v[HN_TYPE_COUNT] = { { { 0 } } }; /* half a measurement decides nothing */
    int32_t only[HN_TYPE_COUNT] = { 0 };
    only[t] = n_in;
    if (hn_packed_measure(v, only, level, NULL) != HONE_OK) return false;
    float least = hn_packed_of_one(&v[t]);
    if (least > 0.8f && least < 1.1f && twice_more(v, only, level, NULL) != HONE_OK) return false;
    *out = v[t];
    return true;
}

/* Measures and keeps what is wanted, as far as LOOK_MS reach; what could not be kept is not measured: every start would
 * pay for it. */
static void learn(hn_packed_speed out[HN_TYPE_COUNT], const int32_t want[HN_TYPE_COUNT], hn_cpu_level level)
{
    const hn_packed_speed nothing = { { 0 } };
    double begin = now_us();
    for (int t = 0; t < HN_TYPE_COUNT && now_us() - begin < LOOK_MS * 1e3; t++) {
        if (!want[t] || !hn_packed_keep(&nothing, (hn_type)t, want[t], level)) continue;
        if (!measure_one(&out[t], (hn_type)t, want[t], level))
            return; /* no memory, no time: the next start tries again */
        hn_packed_keep(&out[t], (hn_type)t, want[t], level);
    }
}

void hn_packed_choose(hn_packed_choice *c, const hn_packed *file, bool several, bool measure)
{
    hn_cpu_level level;
    uint64_t bytes = 0, of[HN_TYPE_COUNT][HN_PACKED_WIDTHS] = { { 0 } };
    hn_packed_speed v[HN_TYPE_COUNT] = { { { 0 } } };
    int32_t want[HN_TYPE_COUNT] = { 0 };
    *c = (hn_packed_choice){ .several = several };
    if (hn_cpu_choose(&level, NULL, NULL) != HONE_OK) return; /* the context says what is wrong with it */
    c->level = hn_cpu_level_name(level);
    for (uint64_t i = 0; i < file->n; i++) {
        const hn_packed_entry *e = &file->e[i];
        if (e->kind != HN_PACKED_MATRIX) continue;
        c->there[e->type] = true;
        of[e->type][width_of(e->n_in)] += e->n_bytes;
        bytes += e->n_bytes;
    }
    bool large = bytes >= worth_bytes;
    const hn_kernels *k = hn_kernels_get(level); /* a type without a packed product is read from the model either way */
    for (int t = 0; t < HN_TYPE_COUNT; t++) {
        int most = 0;
        for (int w = 1; w < HN_PACKED_WIDTHS; w++)
            if (of[t][w] > of[t][most]) most = w;
        const int32_t n_in = hn_packed_widths[most];
        if (c->there[t] && k->packed[t] && !known(&v[t], (hn_type)t, n_in, level)) want[t] = n_in;
    }
    if (measure && large) learn(v, want, level);
    for (int t = 0; t < HN_TYPE_COUNT; t++) {
        if (!c->there[t]) continue;
        if (plausible(&v[t])) c->speed[t] = several ? hn_packed_of_several(&v[t]) : hn_packed_of_one(&v[t]);
        c->plain[t] = c->speed[t] > 0 ? c->speed[t] < HN_PACKED_AS_FAST : large && !usual(level);
        c->n_measured += c->speed[t] > 0;
        c->n_plain += c->plain[t];
        c->n_packed += !c->plain[t];
    }
}

/* " Q4_K Q6_K" */
static size_t names(char *dst, size_t cap, size_t n, const hn_packed_choice *c, bool plain, bool figures)
{
    for (int t = 0; t < HN_TYPE_COUNT && n < cap; t++) {
        if (!c->there[t] || c->plain[t] != plain) continue;
        n += (size_t)snprintf(dst + n, cap - n, " %s", hn_type_get((uint32_t)t)->name);
        if (figures && c->speed[t] > 0 && n < cap)
            n += (size_t)snprintf(dst + n, cap - n, " %.2f", (double)c->speed[t]);
    }
    return n < cap ? n : cap - 1;
}

void hn_packed_choice_words(char *dst, size_t cap, const hn_packed_choice *c)
{
    size_t n = 0;
    dst[0] = 0;
    if (c->n_plain && c->n_packed) {
        n = (size_t)snprintf(dst, cap, "mixed:");
        n = names(dst, cap, n, c, false, false);
        n += (size_t)snprintf(dst + n, cap - n, " packed,");
        n = names(dst, cap, n, c, true, false);
        n += (size_t)snprintf(dst + n, cap - n, " plain; ");
    }
    if (!c->n_measured) {
        if (c->n_plain)
            snprintf(
                dst + n, cap - n,
                "not measured: no memory for it, or nowhere to keep it (set XDG_STATE_HOME or HOME); plain is the safe "
                "guess at %s",
                c->level);
        return;
    }
    n += (size_t)snprintf(dst + n, cap - n,
                          c->several ? "speed packed / plain here at %s, %d threads, the mean of 1 and %d columns:"
                                     : "speed packed / plain here at %s, the least of 1 and %d threads, of answers "
                                       "with prompts that end in %d columns:",
                          c->level, hn_cpu_count(), MANY);
    n = names(dst, cap, n, c, false, true);
    names(dst, cap, n, c, true, true);
}
