/* A quick look at products of very many shapes. Owns the list of shapes, the few rows of each and the clock; refuses to
 * compare and to judge (lab/judge/net_looks.c). */
#include "base/os.h"
#include "lab/inside/net.h"
#include "forge/synth.h"
#include "kernels/kernels.h"
#include "lab/inside/bench_rooms.h"
#include "lab/machine/clock.h"
#include "lab/machine/roof.h"
#include "lab/stats/stats.h"

#include <stdlib.h>

enum {
    SAMPLES = 3,              /* of a point, at different rows; the least counts */
    SAMPLE_BYTES = 768 << 10, /* of weights, with few columns: some 50 us */
    TAIL = 3,                 /* rows beyond whole groups */
    SOME_COLUMNS = 4,
    MANY_COLUMNS = 64,
    MANY_ROWS = 2 * HN_PACK_ROWS + TAIL, /* with so many columns */
    CACHES = 3,                          /* the room for weights, in last-level caches, where they cannot be flushed */
    LEAST_ROOM = 64 << 20,
    MOST_ROOM = 384 << 20,
    MOST_SWEEPS = 100,
    MAX_WIDTHS = 256,
    MAX_SIDES = 4, /* thread counts of one run */
    MOST_IN = 1 << 20,
    MOST_THREADS = 1024
};

/* ---- points -------------------------------------------------------------------------------------- */

const char *hn_net_name(char dst[HN_NET_POINT], const hn_net_point *p)
{
    snprintf(dst, HN_NET_POINT, "%s.%d.c%d.t%d.%s", hn_type_get((uint32_t)p->type)->name, p->n_in, p->columns,
             p->threads, p->packed ? "packed" : "plain");
    return dst;
}

static bool read_point(hn_net_point *p, const char *s, size_t n)
{
    char text[HN_NET_POINT], type[16], layout[8], again[HN_NET_POINT];
    int n_in, columns, threads;
    if (n >= sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", (int)n, s);
    if (sscanf(text, "%15[^.].%9d.c%9d.t%9d.%7s", type, &n_in, &columns, &threads, layout) != 5) return false;
    *p = (hn_net_point){ .type = hn_type_by_name(type),
                         .n_in = n_in,
                         .columns = columns,
                         .threads = threads,
                         .packed = strcmp(layout, "packed") == 0 };
    if (p->type < 0 || !hn_type_get((uint32_t)p->type)->weight || n_in < 1 || n_in > MOST_IN || columns < 1 ||
        columns > MANY_COLUMNS || threads < 1 || threads > MOST_THREADS)
        return false;
    return (uint32_t)n_in % hn_type_get((uint32_t)p->type)->block_elems == 0 &&
           strcmp(hn_net_name(again, p), text) == 0;
}

static int ascending(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

static hone_status widths_of(int32_t *width, int *n, const hn_synth_shape *s, hone_error *err)
{
    hn_synth_plan *plan;
    hone_status st = hn_synth_plan_new(&plan, s, "F16", err);
    if (st != HONE_OK) return st;
    for (size_t i = 0; i < plan->n; i++) {
        const hn_synth_tensor *t = &plan->t[i];
        bool matrix = t->n_dim > 1 && (t->type == HN_F16 || t->type == HN_MXFP4);
        int k = 0;
        while (k < *n && width[k] != (int32_t)t->ne[0]) k++;
        if (matrix && k == *n && *n < MAX_WIDTHS) width[(*n)++] = (int32_t)t->ne[0];
    }
    hn_synth_plan_free(plan);
    return HONE_OK;
}

hone_status hn_net_list(hn_net_point **out, size_t *n, const hn_net_wanted *w, hone_error *err)
{
    const int32_t columns[] = { 1, SOME_COLUMNS, MANY_COLUMNS }, threads[] = { 1, w->n_threads };
    const hone_synth_preset *preset;
    int32_t width[MAX_WIDTHS];
    int n_width = 0;
    hn_cpu_level level;
    *out = NULL;
    *n = 0;
    hone_status st = hn_cpu_choose(&level, w->cpu, err);
    size_t n_preset = hone_synth_presets(&preset);
    const hn_synth_shape *one = w->preset ? hn_synth_preset(w->preset, NULL) : NULL;
    if (w->preset && !one)
        return HN_FAIL(err, HONE_E_ARG, "unknown preset '%s'; see: hone synth --list, or leave it out for all of them",
                       HN_ESC(w->preset, strlen(w->preset)));
    for (size_t i = 0; i < (one ? 1 : n_preset) && st == HONE_OK; i++)
        st = widths_of(width, &n_width, one ? one : hn_synth_preset(preset[i].name, NULL), err);
    if (st != HONE_OK) return st;
    qsort(width, (size_t)n_width, sizeof *width, ascending);
    const hn_kernels *k = hn_kernels_get(level);
    hn_net_point *p = calloc((size_t)n_width * HN_TYPE_COUNT * 12, sizeof *p);
    if (!p) return HN_FAIL(err, HONE_E_NOMEM, "list of points");
    for (int32_t t = 0; t < HN_TYPE_COUNT; t++) {
        const hn_type_info *ti = hn_type_get((uint32_t)t);
        if (!ti || !ti->weight || !k->matmul[t] || !(hn_synth_unit((hn_type)t) > 0)) continue;
        for (int i = 0; i < n_width; i++)
            for (int l = 0; l < 1 + (k->packed[t] != NULL) && (uint32_t)width[i] % ti->block_elems == 0; l++)
                for (int c = 0; c < 3; c++)
                    for (int h = 0; h < 1 + (w->n_threads > 1) && (c < 2 ? w->gemv : w->gemm); h++)
                        p[(*n)++] = (hn_net_point){ t, width[i], columns[c], threads[h], l };
    }
    *out = p;
    return HONE_OK;
}

/* ---- weights: few rows, again and again ------------------------------------------------------------ */

typedef struct slot { /* rows of one type, width and layout */
    int32_t type, n_in;
    bool packed;
    size_t at, bytes; /* in the room */
    int64_t n_row;    /* of a sample; then as many again, SAMPLES times, and a group to warm up with */
    size_t row, group, sample_bytes;
} slot;

typedef struct result {
    double us;
    uint64_t hash;
    bool there;
} result;

typedef struct net {
    hn_net_point *p;
    result *r;
    slot *s; /* of the points of a batch: s[i] of point i */
    size_t n;
    hn_cpu_level level;
    const hn_kernels *k;
    char *room;
    size_t room_bytes, largest; /* of the slots */
    int64_t widest;
    struct {
        int32_t threads;
        hn_pool *pool;
        hn_backend *be;
        hn_act *act;
        hn_buf *y;
    } side[MAX_SIDES];
    int n_side, sweeps;
    bool flushes; /* the processor drops from its caches what it is told to */
    float *x, *y;
    uint64_t y_floats;
    volatile uint64_t seen;
} net;

static int64_t rows_of(const slot *s, int32_t columns)
{
    return columns >= MANY_COLUMNS && s->n_row > MANY_ROWS ? MANY_ROWS : s->n_row;
}

static slot slot_of(const hn_net_point *p)
{
    slot s = { .type = p->type, .n_in = p->n_in, .packed = p->packed };
    s.row = (size_t)hn_row_bytes(hn_type_get((uint32_t)p->type), (uint64_t)p->n_in);
    s.group = p->packed ? hn_packed_group_bytes((hn_type)p->type, p->n_in) : HN_PACK_ROWS * s.row;
    int64_t groups = (int64_t)((SAMPLE_BYTES + s.group - 1) / s.group);
    s.n_row = groups * HN_PACK_ROWS + TAIL;
    s.sample_bytes = (size_t)(groups + 1) * s.group;
    s.bytes = (SAMPLES * s.sample_bytes + s.group + 63) & ~(size_t)63;
    return s;
}

static bool same_slot(const slot *a, const slot *b)
{
    return a->type == b->type && a->n_in == b->n_in && a->packed == b->packed;
}

/* One group of random rows, repeated. */
static hone_status fill_slot(net *x, const slot *s, hone_error *err)
{
    char *at = x->room + s->at, *rows = s->packed ? malloc(HN_PACK_ROWS * s->row) : at;
    hn_synth_tensor t = { .name = "net", .type = (hn_type)s->type, .n_dim = 2, .std = 0.02f };
    if (!rows) return HN_FAIL(err, HONE_E_NOMEM, "rows of a shape");
    t.ne[0] = (uint64_t)s->n_in;
    t.ne[1] = HN_PACK_ROWS;
    t.ne[2] = t.ne[3] = 1;
    t.n_bytes = HN_PACK_ROWS * s->row;
    t.unit = hn_synth_unit(t.type);
    hn_synth_fill(&t, hn_synth_key((uint64_t)s->n_in, "net"), 0, t.n_bytes, rows);
    if (s->packed) {
        hn_pack_group(t.type, at, rows, s->row, HN_PACK_ROWS, s->n_in);
        free(rows);
    }
    for (size_t k = s->group; k + s->group <= s->bytes; k += s->group) memcpy(at + k, at, s->group);
    return HONE_OK;
}

/* ---- a point ------------------------------------------------------------------------------------------ */

static double product_us(net *x, int side, const slot *s, size_t at, int64_t n_row)
{
    const char *p = x->room + s->at + at;
    hn_weight w = { .data = p, .type = (hn_type)s->type, .n_in = s->n_in, .n_out = n_row, .row_bytes = s->row };
    if (s->packed) {
        w.packed = p;
        w.group_bytes = s->group;
    }
    hn_backend *be = x->side[side].be;
    uint64_t t = hn_clock_ns();
    be->op->matmul(be, x->side[side].act, &(hn_product){ .w = &w, .y = x->side[side].y }, 1);
    return (double)(hn_clock_ns() - t) * 1e-3;
}

static void measure_point(net *x, size_t i, int side)
{
    const hn_net_point *p = &x->p[i];
    const slot *s = &x->s[i];
    hn_backend *be = x->side[side].be;
    int64_t n_row = rows_of(s, p->columns);
    hn_bench_put(be, x->side[side].act, x->x, p->n_in, p->columns);
    product_us(x, side, s, SAMPLES * s->sample_bytes, HN_PACK_ROWS); /* the activation's form, the threads awake */
    if (!x->r[i].there) x->r[i].us = 1e18;
    for (int k = 0; k < SAMPLES; k++) {
        double us = product_us(x, side, s, (size_t)k * s->sample_bytes, n_row);
        if (us < x->r[i].us) x->r[i].us = us;
        if (k) continue;
        uint64_t h = 0xcbf29ce484222325u;
        be->op->read(be, x->y, x->side[side].y, 0, (size_t)(n_row * p->columns) * sizeof *x->y);
        for (int64_t b = 0; b < n_row * p->columns; b++) {
            uint32_t bits;
            memcpy(&bits, &x->y[b], sizeof bits);
            h = hn_mix64(h ^ bits);
        }
        x->r[i].hash = h;
    }
    x->r[i].there = true;
}

/* Reads what no slot of the batch has, so that what they have leaves the cache. */
static void evict(net *x, size_t used)
{
    if (used >= x->room_bytes / CACHES * 2) return;
    uint64_t sum = 0;
    for (size_t i = used; i + 64 <= x->room_bytes; i += 64) sum += (unsigned char)x->room[i];
    x->seen += sum;
}

/* Points [a, b) of so many columns, one after the other. */
static void measure_alike(net *x, size_t a, size_t b, size_t used, int side, int32_t columns)
{
    bool any = false;
    for (size_t i = a; i < b; i++) {
        const hn_net_point *p = &x->p[i];
        int32_t as = p->columns == 1 ? 1 : p->columns < MANY_COLUMNS ? SOME_COLUMNS : MANY_COLUMNS;
        if (p->threads != x->side[side].threads || as != columns || x->s[i].bytes == 0) continue;
        if (x->flushes) hn_os_flush_caches(x->room + x->s[i].at, x->s[i].bytes);
        else if (!any) evict(x, used);
        any = true;
        measure_point(x, i, side);
    }
}

/* Points [a, b), whose slots stand in the room: all of one number of threads and columns, then of the next, so that a
 * slot is cold when its turn comes again. */
static void measure_batch(net *x, size_t a, size_t b, size_t used)
{
    static const int32_t columns[] = { 1, SOME_COLUMNS, MANY_COLUMNS };
    for (int sweep = 0; sweep < x->sweeps; sweep++)
        for (int side = 0; side < x->n_side; side++)
            for (int c = 0; c < 3; c++) measure_alike(x, a, b, used, side, columns[c]);
}

static hone_status measure_all(net *x, hone_error *err)
{
    size_t a = 0, used = 0, i;
    for (i = 0; i < x->n; i++) {
        const hn_net_point *p = &x->p[i];
        bool can = x->k->matmul[p->type] && (!p->packed || (hn_can_pack((hn_type)p->type) && x->k->packed[p->type])) &&
                   hn_synth_unit((hn_type)p->type) > 0;
        x->s[i] = can ? slot_of(p) : (slot){ .bytes = 0 };
        if (!can) continue;
        if (x->s[i].bytes > x->room_bytes)
            return HN_FAIL(err, HONE_E_ARG, "rows of %d elements do not fit the room of the net", p->n_in);
        if (i > a && x->s[i - 1].bytes && same_slot(&x->s[i - 1], &x->s[i])) {
            x->s[i].at = x->s[i - 1].at;
            continue;
        }
        if (used + x->s[i].bytes > x->room_bytes) {
            measure_batch(x, a, i, used);
            a = i;
            used = 0;
        }
        x->s[i].at = used;
        used += x->s[i].bytes;
        hone_status st = fill_slot(x, &x->s[i], err);
        if (st != HONE_OK) return st;
    }
    measure_batch(x, a, i, used);
    return HONE_OK;
}

/* ---- a run --------------------------------------------------------------------------------------------- */

static hone_status read_points(net *x, const char *points, hone_error *err)
{
    size_t cap = 1;
    for (const char *s = points; *s; s++) cap += *s == ',';
    x->p = calloc(cap, sizeof *x->p);
    x->r = calloc(cap, sizeof *x->r);
    x->s = calloc(cap, sizeof *x->s);
    if (!x->p || !x->r || !x->s) return HN_FAIL(err, HONE_E_NOMEM, "%zu points", cap);
    char *end;
    long sweeps = strtol(points, &end, 10);
    if (sweeps < 1 || sweeps > MOST_SWEEPS || *end != ',')
        return HN_FAIL(err, HONE_E_ARG, "'%.20s' begins no list of points; expected 1 to %d sweeps and a comma",
                       HN_ESC(points, strlen(points)), MOST_SWEEPS);
    x->sweeps = (int)sweeps;
    for (const char *s = end + 1; *s;) {
        size_t len = strcspn(s, ",");
        hn_net_point *p = &x->p[x->n++];
        if (!read_point(p, s, len))
            return HN_FAIL(err, HONE_E_ARG, "'%s' is no point of the net; expected one as Q4_K.8192.c1.t2.packed",
                           HN_ESC(s, len));
        x->widest = p->n_in > x->widest ? p->n_in : x->widest;
        slot t = slot_of(p);
        x->largest = t.bytes > x->largest ? t.bytes : x->largest;
        uint64_t floats = (uint64_t)rows_of(&t, p->columns) * (uint64_t)p->columns;
        x->y_floats = floats > x->y_floats ? floats : x->y_floats;
        s += len + (s[len] == ',');
    }
    return HONE_OK;
}

static hone_status open_sides(net *x, hone_error *err)
{
    for (size_t i = 0; i < x->n; i++) {
        int k = 0;
        while (k < x->n_side && x->side[k].threads != x->p[i].threads) k++;
        if (k < x->n_side) continue;
        if (k == MAX_SIDES) return HN_FAIL(err, HONE_E_ARG, "more than %d numbers of threads at once", MAX_SIDES);
        x->side[k].threads = x->p[i].threads;
        x->n_side++;
        hone_status st = hn_pool_new(&x->side[k].pool, x->p[i].threads, err);
        if (st != HONE_OK) return st;
        const hn_backend_params p = { .pool = x->side[k].pool, .level = x->level, .max_n_in = x->widest };
        if ((st = hn_backend_open(&x->side[k].be, NULL, &p, err)) != HONE_OK) return st;
        x->side[k].act = x->side[k].be->op->act_alloc(x->side[k].be, x->widest, MANY_COLUMNS);
        x->side[k].y = hn_bench_rows(x->side[k].be, NULL, (int64_t)x->y_floats);
        if (!x->side[k].act || !x->side[k].y) return HN_FAIL(err, HONE_E_NOMEM, "rows of the net");
    }
    return HONE_OK;
}

static hone_status make_room(net *x, hone_error *err)
{
    x->flushes = hn_os_flush_caches(x, sizeof *x);
    uint64_t want = x->flushes ? x->largest : CACHES * hn_cache_bytes(), room = hn_memory_available();
    x->room_bytes = (size_t)(want < LEAST_ROOM ? LEAST_ROOM : want > MOST_ROOM ? MOST_ROOM : want);
    x->room = room && x->room_bytes > room / 2 ? NULL : hn_pages_alloc_huge(x->room_bytes);
    x->x = hn_bench_floats(x->widest * MANY_COLUMNS, 7);
    x->y = malloc(x->y_floats * sizeof *x->y);
    if (x->room && x->x && x->y) {
        memset(x->room, 1, x->room_bytes); /* pages nobody wrote are all one page, which reading evicts nothing for */
        return HONE_OK;
    }
    return HN_FAIL(err, HONE_E_NOMEM, "%zu bytes of weights", x->room_bytes);
}

static json_t *results_json(const net *x)
{
    json_t *points = json_array();
    for (size_t i = 0; i < x->n; i++) {
        char hex[20];
        snprintf(hex, sizeof hex, "%016llx", (unsigned long long)x->r[i].hash);
        json_array_append_new(points, x->r[i].there ? json_pack("{s:o, s:s}", "us", hn_lab_num(x->r[i].us), "hash", hex)
                                                    : json_null());
    }
    return json_pack("{s:s, s:o}", "level", hn_cpu_level_name(x->level), "points", points);
}

hone_status hn_net_measure(json_t **out, const char *points, const char *cpu, hone_error *err)
{
    net x = { .n = 0 };
    *out = NULL;
    hone_status st = hn_cpu_choose(&x.level, cpu, err);
    if (st == HONE_OK) {
        x.k = hn_kernels_get(x.level);
        st = read_points(&x, points, err);
    }
    if (st == HONE_OK) st = make_room(&x, err);
    if (st == HONE_OK) st = open_sides(&x, err);
    if (st == HONE_OK) st = measure_all(&x, err);
    if (st == HONE_OK) *out = results_json(&x);
    for (int i = 0; i < x.n_side; i++) {
        if (x.side[i].be) x.side[i].be->op->free(x.side[i].be);
        hn_pool_free(x.side[i].pool);
    }
    if (x.room) hn_pages_free(x.room, x.room_bytes);
    if (x.x) hn_pages_free(x.x, (size_t)(x.widest * MANY_COLUMNS) * sizeof *x.x);
    free(x.y);
    free(x.p);
    free(x.r);
    free(x.s);
    return st;
}
