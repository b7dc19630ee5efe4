/* Runs single kernels as the engine does: products and attention through the CPU backend
 * and its pool, weights cold, outputs compared with the scalar level bit by bit before
 * and after the clock runs. Owns the data and the timing; refuses to know ids and reports. */
#define _GNU_SOURCE
#include "base/os.h"
#include "backend/backend.h"
#include "forge/synth.h"
#include "lab/inside/bench_rooms.h"
#include "lab/inside/kern.h"
#include "lab/machine/clock.h"
#include "lab/machine/roof.h"
#include "lab/quality/proof.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
    CHECK_ROWS = 8,
    CHECK_COLS = 8,
    PREFILL_TOKENS = 512,
    CACHES = 8, /* rotated data, in last-level caches */
    MIN_ROTATED = 64 << 20,
    EPOCH_NS = 2000000, /* a sample takes at least this long */
    WKV_INPUTS = 8,
    WKV_VECTORS = 6,
    MAX_COPIES = 1 << 16,
    X_KEY = 3 /* of the stream that b->x is from */
};

struct hn_kern_bench {
    hn_kern k;
    hn_cpu_level level;
    const hn_kernels *fast, *scalar;
    uint64_t cache_bytes;
    /* copies of one matrix; one cache of keys and values, or state, of which the backends have copies */
    char *plain, *packed;
    size_t plain_bytes, packed_bytes; /* of one copy */
    int64_t n_plain, n_packed;        /* copies */
    hn_buf *mem, *oracle_mem;         /* of plain: n_plain copies, one */
    hn_pool *pool, *pool1;
    hn_backend *be, *oracle;
    int32_t threads;
    hn_act *act, *act_check;        /* of be, of oracle */
    hn_buf *in_rows[WKV_INPUTS];    /* of be: queries, or the inputs of a recurrence; product: the output */
    hn_buf *check_rows[WKV_INPUTS]; /* of oracle */
    float *x, *y, *y_check;
    uint64_t y_floats;
    int64_t turn;
    /* a number of the output is spoilt before each call, of a row kernel before some, at another place every time, and
     * must be there behind it */
    hn_bench_place place;
    uint64_t key, n_drawn;  /* of which calls these are */
    hn_bench_turned turned; /* operands, between stretches */
    char *met;              /* of a recurrence: the state that the last call of a stretch will use, before it */
    unsigned char *spoilt;  /* of a row kernel: its output, and what that must be */
    const unsigned char *wanted;
    /* of the call being measured */
    hn_kern_config config;
    hn_row *rows;
    float *in, *in2, *out;
    void *q;
};

static const float attn_scale = 0.125f;

static bool is_wkv(const hn_kern *k) { return k->kind == HN_KERN_WKV7 || k->kind == HN_KERN_WKV6; }
static bool is_attn(const hn_kern *k) { return k->kind == HN_KERN_ATTN_DECODE || k->kind == HN_KERN_ATTN_PREFILL; }

static void fill_random(float *x, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i++) x[i] = 2 * hn_rand_f32(key, (uint64_t)i) - 1;
}

/* How many copies of n bytes are cold again when their turn comes. */
static int64_t copies_of(const hn_kern_bench *b, size_t n)
{
    uint64_t want = CACHES * b->cache_bytes;
    if (want < MIN_ROTATED) want = MIN_ROTATED;
    uint64_t c = (want + n - 1) / n;
    return (int64_t)(c > MAX_COPIES ? MAX_COPIES : c);
}

/* ---- data of products ------------------------------------------------------------------------- */

static size_t row_bytes(const hn_kern_bench *b)
{
    return (size_t)hn_row_bytes(hn_type_get((uint32_t)b->k.type), (uint64_t)b->k.n[1]);
}

/* Room for them; the caller fills the first and repeats it. */
static hone_status make_copies(char **out, size_t n, int64_t copies, const char *what, hone_error *err)
{
    uint64_t room = hn_memory_available(), want = (uint64_t)n * (uint64_t)copies;
    *out = room && want > room / 4 * 3 ? NULL : hn_pages_alloc_huge(want);
    if (!*out) return HN_FAIL(err, HONE_E_NOMEM, "%s: %lld copies of %zu bytes", what, (long long)copies, n);
    return HONE_OK;
}

static hone_status make_weights(hn_kern_bench *b, hone_error *err)
{
    hn_type t = (hn_type)b->k.type;
    hn_synth_tensor s = {
        .name = "w", .type = t, .n_dim = 2, .ne = { (uint64_t)b->k.n[1], (uint64_t)b->k.n[0], 1, 1 }, .std = 0.02f
    };
    b->plain_bytes = s.n_bytes = row_bytes(b) * (uint64_t)b->k.n[0];
    s.unit = hn_synth_unit(t);
    if (!(s.unit > 0))
        return HN_FAIL(err, HONE_E_ARG, "%s: hone cannot fill %s with random weights", b->k.id,
                       hn_type_get((uint32_t)t)->name);
    b->n_plain = copies_of(b, b->plain_bytes);
    hone_status st = make_copies(&b->plain, b->plain_bytes, b->n_plain, b->k.id, err);
    if (st != HONE_OK) return st;
    hn_synth_fill(&s, hn_synth_key(1, b->k.id), 0, s.n_bytes, b->plain);
    for (int64_t i = 1; i < b->n_plain; i++) memcpy(b->plain + (size_t)i * b->plain_bytes, b->plain, b->plain_bytes);
    return HONE_OK;
}

static hone_status make_packed(hn_kern_bench *b, hone_error *err)
{
    hn_type t = (hn_type)b->k.type;
    int64_t n_out = b->k.n[0], n_in = b->k.n[1];
    size_t row = row_bytes(b), group = hn_packed_group_bytes(t, n_in);
    b->packed_bytes = hn_packed_bytes(t, n_in, n_out);
    b->n_packed = copies_of(b, b->packed_bytes);
    hone_status st = make_copies(&b->packed, b->packed_bytes, b->n_packed, b->k.id, err);
    if (st != HONE_OK) return st;
    for (int64_t r = 0; r < n_out; r += HN_PACK_ROWS)
        hn_pack_group(t, b->packed + (size_t)(r / HN_PACK_ROWS) * group, b->plain + (size_t)r * row, row,
                      n_out - r < HN_PACK_ROWS ? (int)(n_out - r) : HN_PACK_ROWS, n_in);
    for (int64_t i = 1; i < b->n_packed; i++)
        memcpy(b->packed + (size_t)i * b->packed_bytes, b->packed, b->packed_bytes);
    return HONE_OK;
}

static hn_weight weight_of(const hn_kern_bench *b, int64_t turn)
{
    hn_weight w = {
        .data = b->plain, .type = (hn_type)b->k.type, .n_in = b->k.n[1], .n_out = b->k.n[0], .row_bytes = row_bytes(b)
    };
    if (b->config.packed) {
        w.packed = b->packed + (size_t)(turn % b->n_packed) * b->packed_bytes;
        w.group_bytes = hn_packed_group_bytes(w.type, w.n_in);
    } else w.data = b->plain + (size_t)(turn % b->n_plain) * b->plain_bytes;
    return w;
}

/* ---- data of attention -------------------------------------------------------------------------- */

static int64_t attn_tokens(const hn_kern *k)
{
    return k->kind == HN_KERN_ATTN_DECODE ? 1 : k->n[3] < PREFILL_TOKENS ? k->n[3] : PREFILL_TOKENS;
}
/* Bytes of K, or V, of one head of a page, and the number of pages. */
static size_t head_bytes(const hn_kern *k)
{
    return HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(HN_CACHE_F16, k->n[2]);
}
static int64_t n_pages(const hn_kern *k) { return (k->n[3] + HN_PAGE - 1) / HN_PAGE; }

static hn_kv kv_of(const hn_kern_bench *b, hn_buf *mem, int64_t turn)
{
    size_t head = head_bytes(&b->k), half = head * (size_t)b->k.n[1];
    size_t at = (size_t)(turn % b->n_plain) * b->plain_bytes;
    return (hn_kv){ .mem = mem,
                    .k_at = at,
                    .v_at = at + half,
                    .page_bytes = 2 * half,
                    .head_bytes = head,
                    .n_head_kv = (int32_t)b->k.n[1],
                    .d = b->k.n[2],
                    .type = HN_CACHE_F16 };
}

static hone_status make_cache(hn_kern_bench *b, hone_error *err)
{
    int64_t n_pos = b->k.n[3], width = b->k.n[1] * b->k.n[2], n_tok = attn_tokens(&b->k);
    b->plain_bytes = 2 * head_bytes(&b->k) * (size_t)b->k.n[1] * (size_t)n_pages(&b->k);
    hone_status st = make_copies(&b->plain, b->plain_bytes, 1, b->k.id, err);
    if (st != HONE_OK) return st;
    b->rows = calloc((size_t)n_tok, sizeof *b->rows);
    float *k = calloc((size_t)width, 2 * sizeof *k);
    if (!b->rows || !k) {
        free(k);
        return HN_FAIL(err, HONE_E_NOMEM, "%s: cache", b->k.id);
    }
    b->n_plain = 1;
    hn_kv kv = kv_of(b, NULL, 0);
    for (int64_t p = 0; p < n_pos; p++) {
        fill_random(k, 2 * width, (uint64_t)p);
        for (int64_t h = 0; h < b->k.n[1]; h++) {
            char *at = b->plain + hn_kv_at(&kv, (uint32_t)(p / HN_PAGE), h);
            b->scalar->store_k[kv.type](at, k + h * b->k.n[2], b->k.n[2], p % HN_PAGE);
            b->scalar->store_v[kv.type](at + kv.v_at, k + width + h * b->k.n[2], b->k.n[2], p % HN_PAGE);
        }
    }
    free(k);
    for (int64_t t = 0; t < n_tok; t++) b->rows[t].pos = n_pos - n_tok + t;
    return HONE_OK;
}

/* ---- data of a recurrence ------------------------------------------------------------------------ */

static int64_t wkv_width(const hn_kern *k) { return k->n[0] * k->n[1]; }

static hn_state state_of(const hn_kern_bench *b, hn_buf *mem, int64_t turn)
{
    return (hn_state){ .mem = mem,
                       .at = (size_t)(turn % b->n_plain) * (b->plain_bytes / sizeof(float)),
                       .n_embd = wkv_width(&b->k) };
}

static void first_state(float *mem, const hn_kern *k) { fill_random(mem, wkv_width(k) * (2 + k->n[1]), 5); }

static hone_status make_states(hn_kern_bench *b, hone_error *err)
{
    b->plain_bytes = (size_t)(wkv_width(&b->k) * (2 + b->k.n[1])) * sizeof(float);
    b->n_plain = 1;
    hone_status st = make_copies(&b->plain, b->plain_bytes, 1, b->k.id, err);
    if (st != HONE_OK) return st;
    first_state((float *)(void *)b->plain, &b->k);
    b->rows = calloc((size_t)b->k.n[2], sizeof *b->rows);
    if (!b->rows) return HN_FAIL(err, HONE_E_NOMEM, "%s: rows", b->k.id);
    for (int64_t t = 0; t < b->k.n[2]; t++)
        b->rows[t] = (hn_row){ .pos = t, .prev = (int32_t)t - 1, .last = t + 1 == b->k.n[2] };
    return HONE_OK;
}

/* b->x: eight inputs of all tokens, then six vectors. */
static int64_t wkv_floats(const hn_kern *k) { return wkv_width(k) * (WKV_INPUTS * k->n[2] + WKV_VECTORS); }

static hn_time_mix mix_of(const hn_kern_bench *b, hn_buf *const x[WKV_INPUTS])
{
    int64_t e = wkv_width(&b->k);
    float *v = b->x + WKV_INPUTS * e * b->k.n[2];
    hn_time_mix m = { .r = x[0],
                      .k = x[1],
                      .v = x[2],
                      .w = x[3],
                      .g = x[4],
                      .ln_w = v,
                      .ln_b = v + e,
                      .n_head = (int32_t)b->k.n[0],
                      .n = (int32_t)b->k.n[1],
                      .eps = 64e-5f };
    if (b->k.kind == HN_KERN_WKV6) m.first = v + 2 * e;
    else {
        m.a = x[5];
        m.v_mix = x[6];
        m.v_first = x[7];
        m.k_k = v + 3 * e;
        m.k_a = v + 4 * e;
        m.r_k = v + 5 * e;
    }
    return m;
}

/* ---- life ----------------------------------------------------------------------------------------- */

static int64_t widest(const hn_kern *k) { return hn_kern_is_product(k) ? k->n[1] : is_wkv(k) ? wkv_width(k) : 4096; }

static hone_status new_backend(hn_backend **out, hn_pool *pool, hn_cpu_level level, const hn_kern *k, hone_error *err)
{
    bool attn = is_attn(k);
    const hn_backend_params p = { .pool = pool,
                                  .level = level,
                                  .max_n_in = widest(k),
                                  .n_head = attn ? k->n[0] : 0,
                                  .n_head_kv = attn ? k->n[1] : 0,
                                  .d = attn ? k->n[2] : 0,
                                  .n_ctx = attn ? n_pages(k) * HN_PAGE : 0 };
    return hn_backend_open(out, NULL, &p, err);
}

static int64_t row_floats(const hn_kern *k) { return k->kind == HN_KERN_ROPE ? k->n[0] * k->n[1] : k->n[0]; }
/* Bytes that every encoded row fits in. */
static size_t row_room(const hn_kern *k) { return ((size_t)row_floats(k) * 8 + 4096) & ~(size_t)63; }

/* What a row kernel is given, at first and at last. False: hone has no random weights of that type. */
static bool fill_operand(hn_kern_bench *b)
{
    int64_t n = row_floats(&b->k);
    fill_random(b->in, n, 1);
    if (b->k.kind != HN_KERN_DECODE) return true;
    hn_synth_tensor s = { .type = (hn_type)b->k.type,
                          .n_dim = 1,
                          .ne = { (uint64_t)n, 1, 1, 1 },
                          .std = 0.02f,
                          .unit = hn_synth_unit((hn_type)b->k.type) };
    s.n_bytes = hn_row_bytes(hn_type_get((uint32_t)b->k.type), (uint64_t)n);
    if (s.unit > 0) hn_synth_fill(&s, 1, 0, s.n_bytes, b->q);
    return s.unit > 0;
}

static hone_status make_rows(hn_kern_bench *b, hone_error *err)
{
    int64_t n = row_floats(&b->k);
    size_t f = ((size_t)n * sizeof(float) + 63) & ~(size_t)63;
    b->in = hn_pages_alloc_huge(f);
    b->in2 = hn_pages_alloc_huge(f);
    b->out = hn_pages_alloc_huge(f);
    b->q = hn_pages_alloc_huge(2 * row_room(&b->k)); /* the second half is the oracle's */
    b->x = hn_pages_alloc_huge(f);                   /* the oracle's output */
    if (!b->in || !b->in2 || !b->out || !b->q || !b->x) return HN_FAIL(err, HONE_E_NOMEM, "%s: rows", b->k.id);
    fill_random(b->in2, n, 2);
    if (!fill_operand(b))
        return HN_FAIL(err, HONE_E_ARG, "%s: hone cannot fill this type with random weights", b->k.id);
    return HONE_OK;
}

hone_status hn_kern_open(hn_kern_bench **out, const hn_kern *k, const char *cpu, hone_error *err)
{
    *out = NULL;
    hn_kern_bench *b = calloc(1, sizeof *b);
    if (!b) return HN_FAIL(err, HONE_E_NOMEM, "%s", k->id);
    b->k = *k;
    b->cache_bytes = hn_cache_bytes();
    hone_status st = hn_cpu_choose(&b->level, cpu, err);
    if (st == HONE_OK) {
        b->fast = hn_kernels_get(b->level);
        b->scalar = hn_kernels_get(HN_CPU_SCALAR);
        st = hn_pool_new(&b->pool1, 1, err);
    }
    if (st == HONE_OK) st = new_backend(&b->oracle, b->pool1, HN_CPU_SCALAR, k, err);
    if (st == HONE_OK)
        st = hn_kern_is_product(k) ? make_weights(b, err)
             : is_attn(k)          ? make_cache(b, err)
             : is_wkv(k)           ? make_states(b, err)
                                   : make_rows(b, err);
    if (st != HONE_OK) {
        hn_kern_close(b);
        return st;
    }
    *out = b;
    return HONE_OK;
}

/* Elements of an activation row: what a product takes, what attention gives. */
static int64_t act_width(const hn_kern *k)
{
    return is_wkv(k) ? wkv_width(k) : is_attn(k) ? k->n[0] * k->n[2] : k->n[1];
}

static void drop_backend(hn_kern_bench *b)
{
    if (b->be) b->be->op->free(b->be);
    hn_pages_free(b->y, b->y_floats * sizeof(float));
    hn_pages_free(b->y_check, b->y_floats * sizeof(float));
    hn_pool_free(b->pool);
    b->be = NULL;
    b->pool = NULL;
    b->y = b->y_check = NULL;
}

void hn_kern_close(hn_kern_bench *b)
{
    if (!b) return;
    drop_backend(b);
    if (b->oracle) b->oracle->op->free(b->oracle);
    hn_pool_free(b->pool1);
    hn_pages_free(b->plain, b->plain_bytes * (size_t)(hn_kern_is_product(&b->k) ? b->n_plain : 1));
    hn_pages_free(b->packed, b->packed_bytes * (size_t)b->n_packed);
    if (!hn_kern_is_product(&b->k) && !is_attn(&b->k) && !is_wkv(&b->k)) {
        size_t f = ((size_t)row_floats(&b->k) * sizeof(float) + 63) & ~(size_t)63;
        hn_pages_free(b->in, f);
        hn_pages_free(b->in2, f);
        hn_pages_free(b->out, f);
        hn_pages_free(b->x, f);
        hn_pages_free(b->q, 2 * row_room(&b->k));
    } else free(b->x);
    free(b->rows);
    free(b->met);
    free(b);
}

bool hn_kern_has_packed(const hn_kern_bench *b)
{
    return hn_kern_is_product(&b->k) && hn_can_pack((hn_type)b->k.type) && b->fast->packed[b->k.type];
}

/* ---- one call of each kind ------------------------------------------------------------------------- */

typedef void call_fn(hn_kern_bench *b);

static void call_product(hn_kern_bench *b)
{
    hn_weight w = weight_of(b, b->turn++);
    b->be->op->matmul(b->be, b->act, &(hn_product){ .w = &w, .y = b->in_rows[0] }, 1);
}

static void call_attn(hn_kern_bench *b)
{
    const hn_kv kv = kv_of(b, b->mem, b->turn++);
    const hn_attention a = { .q = b->in_rows[0], .n_head = b->k.n[0], .scale = attn_scale };
    hn_bench_attention(b->be, b->act, &a, &kv, b->rows, (int32_t)attn_tokens(&b->k));
}

static void mix_as_step(hn_kern_bench *b, hn_backend *be, hn_act *act, hn_buf *const x[WKV_INPUTS], const hn_state *s)
{
    const hn_time_mix m = mix_of(b, x);
    be->op->step_begin(be, &(hn_step_block){ .rows = b->rows, .n_tok = (int32_t)b->k.n[2], .n_seq = 1 });
    be->op->time_mix(be, act, &m, s);
    be->op->step_end(be, NULL, NULL);
}

static void call_wkv(hn_kern_bench *b)
{
    const hn_state s = state_of(b, b->mem, b->turn++);
    mix_as_step(b, b->be, b->act, b->in_rows, &s);
}

/* The next call meets what the first one met. */
static void wkv_again(hn_kern_bench *b)
{
    const size_t at = (size_t)(b->turn % b->n_plain) * b->plain_bytes;
    b->be->op->write(b->be, b->mem, at, b->plain, b->plain_bytes);
}

/* The last output, to y. */
static void fetch(hn_kern_bench *b)
{
    int64_t width = act_width(&b->k);
    if (hn_kern_is_product(&b->k)) b->be->op->read(b->be, b->y, b->in_rows[0], 0, b->y_floats * sizeof(float));
    else hn_bench_get(b->be, b->y, b->act, 0, (int64_t)b->y_floats / width, width);
}

static void row_with(hn_kern_bench *b, const hn_kernels *t, float *y, void *q)
{
    const hn_type_info *ti = b->k.type >= 0 ? hn_type_get((uint32_t)b->k.type) : NULL;
    int64_t n = b->k.n[0];
    switch (b->k.kind) {
    case HN_KERN_NORM: t->rms_norm(y, b->in, b->in2, n, 1e-5f); break;
    case HN_KERN_LAYER_NORM: t->layer_norm(y, b->in, b->in2, b->in, n, 1e-5f); break;
    case HN_KERN_SILU: t->silu_mul(y, b->in, b->in2, n); break;
    case HN_KERN_EXP: t->exp(y, b->in, n); break;
    case HN_KERN_Q256: t->quantize256(q, b->in, n); break;
    case HN_KERN_Q32: t->quantize32(q, b->in, n); break;
    case HN_KERN_ROPE: /* in place, each time a quarter of a turn further, which is exact */
        hn_rope_apply(y, b->in2, n, b->k.n[1], (int32_t)b->k.n[1], true);
        break;
    case HN_KERN_DECODE: ti->dequantize(y, b->q, n); break;
    case HN_KERN_ENCODE: ti->quantize(q, b->in, n, NULL); break;
    default: break;
    }
}
static void call_row(hn_kern_bench *b)
{
    b->turn++;
    row_with(b, b->fast, b->out, b->q);
}

/* ---- checks: the same bits as the scalar level ------------------------------------------------------- */

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Columns and rows from the beginning, the middle and the end, rows anywhere, and columns that were turned. */
static bool check_product(hn_kern_bench *b, hn_kern_result *r)
{
    const int64_t n_out = b->k.n[0], n_in = b->k.n[1], n_col = b->config.columns, *turned = b->turned.row,
                  cols[CHECK_COLS] = { 0, n_col / 3, n_col / 2, n_col - 1, turned[0], turned[1], turned[2], turned[3] };
    const int64_t end = n_out > CHECK_ROWS ? n_out - CHECK_ROWS : 0;
    const int64_t starts[] = { 0, n_out / 2, end, hn_bench_draw(&b->turned, end + 1) };
    float *x = calloc((size_t)n_in, CHECK_COLS * sizeof *x), *want = calloc(CHECK_ROWS, CHECK_COLS * sizeof *want);
    hn_backend *o = b->oracle;
    hn_buf *y = hn_bench_rows(o, NULL, CHECK_ROWS * CHECK_COLS);
    hn_act *act = hn_bench_act(o, NULL, n_in, CHECK_COLS);
    bool same = x && want && y && act;
    if (!same) hn_invalid(&r->verdict, "no memory to check the outputs");
    for (int c = 0; c < CHECK_COLS && same; c++) memcpy(x + c * n_in, b->x + cols[c] * n_in, (size_t)n_in * sizeof *x);
    if (same) hn_bench_put(o, act, x, n_in, CHECK_COLS);
    for (size_t s = 0; s < sizeof starts / sizeof *starts && same; s++) {
        hn_weight w = { .data = b->plain + (size_t)starts[s] * row_bytes(b),
                        .type = (hn_type)b->k.type,
                        .n_in = n_in,
                        .n_out = min64(CHECK_ROWS, n_out - starts[s]),
                        .row_bytes = row_bytes(b) };
        o->op->matmul(o, act, &(hn_product){ .w = &w, .y = y }, 1);
        o->op->read(o, want, y, 0, CHECK_ROWS * CHECK_COLS * sizeof(float));
        for (int c = 0; c < CHECK_COLS && same; c++)
            for (int64_t i = 0; i < w.n_out && same; i++) {
                const float *got = &b->y[cols[c] * n_out + starts[s] + i], *exp = &want[c * w.n_out + i];
                same = memcmp(got, exp, sizeof *got) == 0;
                if (!same)
                    hn_invalid(&r->verdict, "row %lld, column %lld is %.9g, the scalar level gives %.9g",
                               (long long)(starts[s] + i), (long long)cols[c], (double)*got, (double)*exp);
            }
    }
    o->op->act_release(o, act);
    o->op->release(o, y);
    free(x);
    free(want);
    return same;
}

/* The oracle's own memory, with a cache or state and n_act activations' rows in it; false: none. */
static bool open_check(hn_kern_bench *b, const char *from, int64_t n_act, hn_kern_result *r)
{
    hn_backend *o = b->oracle;
    b->oracle_mem = o->op->alloc(o, b->plain_bytes, HN_MEM_CACHE);
    b->act_check = hn_bench_act(o, NULL, act_width(&b->k), n_act);
    if (b->oracle_mem && b->act_check) {
        o->op->write(o, b->oracle_mem, 0, from, b->plain_bytes);
        return true;
    }
    hn_invalid(&r->verdict, "no memory to check the outputs");
    return false;
}

static void close_check(hn_kern_bench *b)
{
    b->oracle->op->act_release(b->oracle, b->act_check);
    b->oracle->op->release(b->oracle, b->oracle_mem);
    for (int i = 0; i < WKV_INPUTS; i++) {
        b->oracle->op->release(b->oracle, b->check_rows[i]);
        b->check_rows[i] = NULL;
    }
    b->act_check = NULL;
    b->oracle_mem = NULL;
}

static bool check_attn(hn_kern_bench *b, hn_kern_result *r)
{
    enum { TOKENS = 5 };
    const int64_t n_tok = attn_tokens(&b->k), width = act_width(&b->k);
    const int64_t tokens[TOKENS] = { 0, n_tok / 2, n_tok - 1, b->turned.row[0], b->turned.row[1] };
    float *want = malloc((size_t)width * sizeof *want);
    bool same = want && open_check(b, b->plain, 1, r);
    const hn_kv kv = kv_of(b, b->oracle_mem, 0);
    for (int i = 0; i < (n_tok > 1 ? TOKENS : 1) && same; i++) {
        hn_buf *q = hn_bench_rows(b->oracle, b->x + tokens[i] * width, width);
        if (!(same = q != NULL)) {
            hn_invalid(&r->verdict, "no memory to check the outputs");
            break;
        }
        hn_bench_attention(b->oracle, b->act_check, &(hn_attention){ .q = q, .n_head = b->k.n[0], .scale = attn_scale },
                           &kv, b->rows + tokens[i], 1);
        hn_bench_get(b->oracle, want, b->act_check, 0, 1, width);
        b->oracle->op->release(b->oracle, q);
        same = memcmp(want, b->y + tokens[i] * width, (size_t)width * sizeof(float)) == 0;
        if (!same) hn_invalid(&r->verdict, "token %lld differs from the scalar level", (long long)tokens[i]);
    }
    close_check(b);
    free(want);
    return same;
}

/* Outputs of the call before, and the state left behind, which so many calls went on with from a first one. */
static bool check_wkv(hn_kern_bench *b, const char *from, int64_t calls, hn_kern_result *r)
{
    int64_t width = wkv_width(&b->k), n_tok = b->k.n[2], all = width * n_tok;
    float *want = malloc((size_t)all * sizeof *want);
    char *states = malloc(2 * b->plain_bytes);
    bool same = open_check(b, from, n_tok, r) && want && states;
    for (int i = 0; i < WKV_INPUTS && same; i++)
        same = (b->check_rows[i] = hn_bench_rows(b->oracle, b->x + i * all, all)) != NULL;
    if (!same) hn_invalid(&r->verdict, "no memory to check the outputs");
    if (same) {
        const hn_state s = state_of(b, b->oracle_mem, 0);
        for (int64_t i = 0; i < calls; i++) mix_as_step(b, b->oracle, b->act_check, b->check_rows, &s);
        hn_bench_get(b->oracle, want, b->act_check, 0, n_tok, width);
        b->oracle->op->read(b->oracle, states, b->oracle_mem, 0, b->plain_bytes);
        const size_t at = (size_t)((b->turn - 1) % b->n_plain) * b->plain_bytes; /* of the call before */
        b->be->op->read(b->be, states + b->plain_bytes, b->mem, at, b->plain_bytes);
    }
    for (int64_t t = 0; t < n_tok && same; t++) {
        same = memcmp(want + t * width, b->y + t * width, (size_t)width * sizeof(float)) == 0;
        if (!same) hn_invalid(&r->verdict, "token %lld differs from the scalar level", (long long)t);
    }
    if (same && memcmp(states, states + b->plain_bytes, b->plain_bytes) != 0) {
        same = false;
        hn_invalid(&r->verdict, "the state differs from the scalar level's");
    }
    close_check(b);
    free(want);
    free(states);
    return same;
}

/* What a row kernel leaves: numbers, or bytes of an activation or a weight. */
static const void *row_output(const hn_kern_bench *b, size_t *bytes)
{
    hn_kern_kind k = b->k.kind;
    *bytes = k == HN_KERN_Q256     ? hn_act_row_bytes(HN_ACT_Q256, b->k.n[0])
             : k == HN_KERN_Q32    ? (size_t)(b->k.n[0] / 32 * 40) /* less what fills it up */
             : k == HN_KERN_ENCODE ? hn_row_bytes(hn_type_get((uint32_t)b->k.type), (uint64_t)b->k.n[0])
                                   : (size_t)row_floats(&b->k) * sizeof(float);
    return k == HN_KERN_Q256 || k == HN_KERN_Q32 || k == HN_KERN_ENCODE ? b->q : (const void *)b->out;
}

/* Where so many quarters of a turn bring what lies at `half` from its other half. */
static bool turned_right(const hn_kern_bench *b)
{
    int64_t d = b->k.n[1], half = d / 2;
    const float *in = b->in, *out = b->out;
    for (int64_t h = 0; h < b->k.n[0]; h++, in += d, out += d)
        for (int64_t i = 0; i < half; i++) {
            float x = in[i], y = in[i + half];
            const float want[4][2] = { { x, y }, { -y, x }, { -x, -y }, { y, -x } };
            if (out[i] != want[b->turn % 4][0] || out[i + half] != want[b->turn % 4][1]) return false;
        }
    return true;
}

/* After the first call and after the last one. Decoding and encoding have one code for all levels: that they go on the
 * same is seen here, and what they give is in the record, for other programs to differ from. */
static bool check_row(hn_kern_bench *b, hn_kern_result *r)
{
    size_t bytes;
    const void *out = row_output(b, &bytes);
    bool coded = out == b->q;
    char *q2 = (char *)b->q + row_room(&b->k);
    if (b->k.kind == HN_KERN_ROPE) {
        bool right = turned_right(b);
        if (!right) hn_invalid(&r->verdict, "the row is not turned as often as it was called");
        return right;
    }
    row_with(b, b->scalar, b->x, q2);
    bool same = memcmp(out, coded ? q2 : (const void *)b->x, bytes) == 0;
    if (!same) hn_invalid(&r->verdict, "the output differs from the scalar level");
    r->output = hn_fnv1a(HN_FNV_INIT, out, bytes);
    return same;
}

/* What the calls before left; those that are timed must write all of it again. */
static void wipe(hn_kern_bench *b)
{
    enum { OTHER = 0xA5 };
    if (hn_kern_is_product(&b->k)) {
        memset(b->y, OTHER, b->y_floats * sizeof(float));
        b->be->op->write(b->be, b->in_rows[0], 0, b->y, b->y_floats * sizeof(float));
    } else if (is_attn(&b->k)) {
        const int64_t width = act_width(&b->k);
        memset(b->y, OTHER, b->y_floats * sizeof(float));
        hn_bench_put(b->be, b->act, b->y, width, (int64_t)b->y_floats / width);
    } else if (!is_wkv(&b->k) && b->k.kind != HN_KERN_ROPE) { /* these go on from what they left */
        size_t bytes;
        bool coded = row_output(b, &bytes) == b->q;
        memset(coded ? (void *)b->q : b->out, OTHER, bytes);
    }
}

/* ---- timing ------------------------------------------------------------------------------------------------- */

/* A call of a row kernel. One in place, which turns numbers, leaves none as it was. */
static void watch_row(hn_kern_bench *b)
{
    unsigned char *at = b->spoilt + hn_bench_next_place(&b->place) * (int64_t)sizeof(uint32_t);
    const unsigned char *want = b->wanted + (at - b->spoilt);
    bool turns = b->k.kind == HN_KERN_ROPE;
    uint32_t was, is;
    memcpy(&was, turns ? at : want, sizeof was);
    is = turns ? was : ~was;
    memcpy(at, &is, sizeof is);
    call_row(b);
    memcpy(&is, at, sizeof is);
    b->place.n_missed += turns ? is == was : is != was;
}

/* A call of a product, of attention, or of a recurrence, whose outputs are other ones each time. */
static void watch_pooled(hn_kern_bench *b, call_fn *call)
{
    bool product = hn_kern_is_product(&b->k);
    int64_t i = hn_bench_next_place(&b->place), width = act_width(&b->k);
    if (product) hn_bench_spoil(b->be, b->in_rows[0], i);
    else hn_bench_spoil_act(b->be, b->act, width, i);
    call(b);
    float is = product ? hn_bench_look(b->be, b->in_rows[0], i) : hn_bench_look_act(b->be, b->act, width, i);
    b->place.n_missed += is_wkv(&b->k) ? isnan(is) : memcmp(&is, &b->y_check[i], sizeof is) != 0;
}

static void watch_from_here(hn_kern_bench *b, bool row)
{
    size_t bytes;
    const bool coded = row && row_output(b, &bytes) == b->q;
    b->spoilt = coded ? b->q : (void *)b->out;
    b->wanted = coded ? (unsigned char *)b->q + row_room(&b->k) : (unsigned char *)b->x;
    b->key = hn_rand64(hn_clock_ns(), 0);
    b->turned = (hn_bench_turned){ 0 };
    b->place = hn_bench_places(row ? (int64_t)(bytes / sizeof(uint32_t)) : (int64_t)b->y_floats);
}

/* Calls of a row kernel take some ten ns, and watching one a quarter of that: of 16 one is watched, which nobody knows
 * before. */
static void rows(hn_kern_bench *b, int64_t calls)
{
    enum { APART = 16 };
    for (int64_t i = 0; i < calls;) {
        int64_t n = (int64_t)(hn_rand64(b->key, b->n_drawn++) % (2 * APART - 1));
        for (n = n < calls - i ? n : calls - i; n > 0; n--, i++) call_row(b);
        if (i++ < calls) watch_row(b);
    }
}

/* Bytes at the beginning, at the end or anywhere. */
static void turn_weights(hn_kern_bench *b)
{
    enum { EDGE = 8, BEGIN = 0, END, KINDS = 3 };
    const int64_t n = (int64_t)hn_row_bytes(hn_type_get((uint32_t)b->k.type), (uint64_t)b->k.n[0]),
                  kind = hn_bench_draw(&b->turned, KINDS), edge = n < EDGE || kind > END ? n : EDGE;
    int64_t at = hn_bench_draw(&b->turned, edge);
    if (kind == END) at = n - 1 - at;
    ((unsigned char *)b->q)[at] ^= 1; /* of no kind of scale an infinity */
}

/* Who remembers outputs by where their operands lie, and by a part of them, copies a wrong one from here on: no clock
 * runs, numbers become others, and what must come out is made anew. What the calls before left is looked at as a whole.
 */
static void turn_row(hn_kern_bench *b, bool back)
{
    size_t bytes;
    const void *out = row_output(b, &bytes);
    if (b->k.kind == HN_KERN_ROPE) return; /* it is given what it left */
    if (b->turned.called) b->place.n_missed += memcmp(out, b->wanted, bytes) != 0;
    for (int i = back ? 0 : HN_TURN_KINDS - 1; i < HN_TURN_KINDS; i++) { /* in every way behind the last stretch */
        if (b->k.kind == HN_KERN_DECODE) turn_weights(b);
        else hn_bench_turn(&b->turned, b->in, 1, row_floats(&b->k));
        if (!back) continue;
        row_with(b, b->scalar, b->x, (char *)b->q + row_room(&b->k));
        call_row(b);
        b->place.n_missed += memcmp(out, b->wanted, bytes) != 0;
    }
    if (back) fill_operand(b);
    row_with(b, b->scalar, b->x, (char *)b->q + row_room(&b->k));
    wipe(b);
    b->turned.called = !back;
}

/* What a stretch left as a whole is what the call before it gave, which was checked. */
static void look_whole(hn_kern_bench *b)
{
    fetch(b);
    if (b->turned.called) b->place.n_missed += memcmp(b->y_check, b->y, b->y_floats * sizeof(float)) != 0;
}

static void begin_stretch(hn_kern_bench *b, bool back)
{
    memcpy(b->y_check, b->y, b->y_floats * sizeof(float));
    if (!back) wipe(b);
    b->turned.called = !back;
}

/* One more call with x as it is, looked at. */
static void call_again(hn_kern_bench *b, hn_kern_result *r, int64_t n_row, int64_t n)
{
    const bool product = hn_kern_is_product(&b->k);
    if (product) hn_bench_put(b->be, b->act, b->x, n, n_row);
    else b->be->op->write(b->be, b->in_rows[0], 0, b->x, (size_t)(n_row * n) * sizeof(float));
    if (product) call_product(b);
    else call_attn(b);
    fetch(b);
    if (product) check_product(b, r);
    else check_attn(b, r);
}

/* The same of a product by its activation, of attention by its queries: x [n_row][n]. Behind the last stretch it is
 * turned in every way: what that one left in somebody's memory is asked for. */
static void turn_rows(hn_kern_bench *b, hn_kern_result *r, bool back, int64_t n_row, int64_t n)
{
    if (r->verdict.state == HN_INVALID) return;
    look_whole(b);
    for (int i = 0; back && i < HN_TURN_KINDS; i++) {
        hn_bench_turn(&b->turned, b->x, n_row, n);
        call_again(b, r, n_row, n);
    }
    if (back) fill_random(b->x, n_row * n, X_KEY);
    else hn_bench_turn(&b->turned, b->x, n_row, n);
    call_again(b, r, n_row, n);
    begin_stretch(b, back);
}

/* Of a recurrence by its inputs, of which one is another one each time; the state is the first one again. What the
 * last call of a stretch left goes on from what it met, once more each time that the states came round. */
static void turn_wkv(hn_kern_bench *b, hn_kern_result *r, bool back)
{
    const int64_t n_tok = b->k.n[2], width = wkv_width(&b->k), all = n_tok * width;
    if (r->verdict.state == HN_INVALID) return;
    if (b->turned.called) {
        fetch(b);
        if (!check_wkv(b, b->met, (r->calls - 1) / b->n_plain + 1, r)) return;
    }
    if (back) fill_random(b->x, wkv_floats(&b->k), X_KEY);
    else hn_bench_turn(&b->turned, b->x + hn_bench_draw(&b->turned, WKV_INPUTS) * all, n_tok, width);
    for (int i = 0; i < WKV_INPUTS; i++)
        b->be->op->write(b->be, b->in_rows[i], 0, b->x + i * all, (size_t)all * sizeof(float));
    wkv_again(b);
    call_wkv(b);
    fetch(b);
    check_wkv(b, b->plain, 1, r);
    const size_t last = (size_t)((b->turn + r->calls - 1) % b->n_plain) * b->plain_bytes;
    b->be->op->read(b->be, b->met, b->mem, last, b->plain_bytes);
    b->turned.called = !back;
}

/* Before each stretch that is timed; back: behind the last one, as it was at first. */
static void turn(hn_kern_bench *b, hn_kern_result *r, bool back)
{
    if (hn_kern_is_product(&b->k)) turn_rows(b, r, back, b->config.columns, b->k.n[1]);
    else if (is_attn(&b->k)) turn_rows(b, r, back, attn_tokens(&b->k), act_width(&b->k));
    else if (is_wkv(&b->k)) turn_wkv(b, r, back);
    else turn_row(b, back);
}

static double seconds_of(hn_kern_bench *b, call_fn *call, int64_t calls, hn_stretches *sum)
{
    const hn_clocks from = hn_clocks_begin();
    if (call == call_row) rows(b, calls);
    for (int64_t i = 0; i < calls && call != call_row; i++) watch_pooled(b, call);
    return hn_stretches_add(sum, &from);
}

static double cpu_seconds(void)
{
    struct rusage u = { 0 };
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static hone_status time_calls(hn_kern_result *r, hn_kern_bench *b, call_fn *call, bool (*stop)(void *), hone_error *err)
{
    int64_t calls = 1;
    hn_stretches sum = { 0 };
    char lie[160];
    watch_from_here(b, call == call_row);
    for (double s; (s = seconds_of(b, call, calls, &sum)) * 1e9 < EPOCH_NS;) { /* calibrate; warms up as well */
        double want = s > 0 ? 1.2 * EPOCH_NS * 1e-9 / s * (double)calls : 10.0 * (double)calls;
        calls = want > 10.0 * (double)calls ? 10 * calls : (int64_t)want + 1;
    }
    r->calls = calls;
    hn_allocs_begin();
    seconds_of(b, call, calls, &sum);
    hn_allocs_end(&r->allocs);
    wipe(b);
    b->place.n_missed = 0;
    int n = 0;
    double cpu = cpu_seconds();
    uint64_t t = hn_clock_ns();
    sum = (hn_stretches){ 0 };
    while (n < r->config.n_samples) {
        if (stop && stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", b->k.id);
        turn(b, r, false);
        r->sample_s[n++] = seconds_of(b, call, calls, &sum) / (double)calls;
    }
    double wall = (double)(hn_clock_ns() - t) * 1e-9, used = cpu_seconds() - cpu;
    turn(b, r, true);
    r->cpu_use = used / (wall * r->config.threads);
    if (hn_stretches_lie(lie, sizeof lie, &sum, used, wall, r->config.threads)) hn_invalid(&r->verdict, "%s", lie);
    return hn_stats_of(&r->time, r->sample_s, (size_t)n, err);
}

/* ---- the roof -------------------------------------------------------------------------------------------------- */

static void judge(hn_kern_result *r, const hn_kern_bench *b, const hn_peaks *p)
{
    double s = r->time.median;
    r->rate = r->unit[0] == 'u'   ? 1e6 * s
              : r->unit[0] == 'T' ? 1e-12 * r->ops / s
              : r->unit[2] == '/' ? 1e-9 * r->bytes / s
                                  : 1e-9 * r->ops / s;
    if (r->verdict.state == HN_UNCHECKED) r->verdict.state = HN_VALID;
    if (!p || r->rotated_bytes == 0) return;
    double read = hn_peaks_at(p, HN_PEAK_READ_BW, r->config.threads) * 1e9;
    double mul = hn_peaks_at(p, r->integers ? HN_PEAK_INT8 : HN_PEAK_F32, r->config.threads) * 1e9;
    if (!(read > 0 && mul > 0)) return;
    double read_s = r->bytes / read, mul_s = r->ops / mul, kept = (double)b->cache_bytes / r->rotated_bytes;
    r->roof = read_s > mul_s ? "read" : r->integers ? "int8" : "f32";
    r->share = fmax(read_s, mul_s) / s;
    double most = hn_peaks_most(p, HN_PEAK_READ_BW, r->config.threads) * 1e9;
    if (b->cache_bytes && /* 0: nobody knows; it may hold that much of what is rotated */
        r->bytes / most * (1 - kept) > (1 + HN_ROOF_TOLERANCE) * s)
        hn_invalid(&r->verdict,
                   "%.1f GB/s, but the machine reads %.1f GB/s: not everything was read, or the roof is too low (hone "
                   "lab peaks --force)",
                   1e-9 * r->bytes / s, 1e-9 * most);
    most = hn_peaks_most(p, r->integers ? HN_PEAK_INT8 : HN_PEAK_F32, r->config.threads) * 1e9;
    if (p->bound) hn_check_compute(&r->verdict, "one call", r->ops / most, s);
}

static void describe(hn_kern_result *r, const hn_kern_bench *b)
{
    const hn_kern *k = &b->k;
    double n = (double)k->n[0];
    r->rmse = r->share = r->rate = NAN;
    r->unit = "us";
    if (hn_kern_is_product(k)) {
        r->integers = hn_act_kind_of((hn_type)k->type) != HN_ACT_F32;
        r->bytes = (double)(r->config.packed ? b->packed_bytes : b->plain_bytes);
        r->ops = 2 * n * (double)k->n[1] * r->config.columns;
        r->rotated_bytes = r->bytes * (double)(r->config.packed ? b->n_packed : b->n_plain);
        r->unit = r->config.columns <= 4 ? "GB/s" : r->integers ? "TOPS" : "GFLOP/s";
    } else if (is_attn(k)) {
        double seen = 0;
        for (int64_t t = 0; t < attn_tokens(k); t++) seen += (double)b->rows[t].pos + 1;
        r->bytes = 4 * (double)k->n[1] * (double)k->n[2] * (double)k->n[3];
        r->ops = 4 * n * (double)k->n[2] * seen;
        r->rotated_bytes = (double)b->plain_bytes * (double)b->n_plain;
        r->unit = k->kind == HN_KERN_ATTN_DECODE ? "GB/s" : "GFLOP/s";
    } else if (is_wkv(k)) {
        r->bytes = 8 * n * (double)k->n[1] * (double)k->n[1]; /* read and written */
        r->ops = 10 * n * (double)k->n[1] * (double)k->n[1] * (double)k->n[2];
        r->rotated_bytes = (double)b->plain_bytes * (double)b->n_plain;
        r->unit = k->n[2] == 1 ? "GB/s" : "GFLOP/s";
    } else if (k->kind == HN_KERN_DECODE || k->kind == HN_KERN_ENCODE) {
        r->bytes = 4 * n;
        r->unit = "GB/s";
    }
}

/* ---- a measurement ------------------------------------------------------------------------------------------------
 */

static hone_status prepare_product(hn_kern_bench *b, hone_error *err)
{
    int64_t n_in = b->k.n[1], n_col = b->config.columns;
    if (b->config.packed && !b->packed) {
        hone_status st = make_packed(b, err);
        if (st != HONE_OK) return st;
    }
    b->y_floats = (uint64_t)(b->k.n[0] * n_col);
    float *x = realloc(b->x, (size_t)(n_in * n_col) * sizeof *x);
    if (x) fill_random(b->x = x, n_in * n_col, X_KEY);
    b->act = x ? hn_bench_act(b->be, x, n_in, n_col) : NULL;
    b->in_rows[0] = hn_bench_rows(b->be, NULL, (int64_t)b->y_floats);
    if (!b->act || !b->in_rows[0]) return HN_FAIL(err, HONE_E_NOMEM, "%s: %lld columns", b->k.id, (long long)n_col);
    return HONE_OK;
}

/* The backend's copies of the cache or state, n_tok activations, and inputs of `all` floats each from x. */
static hone_status prepare_memory(hn_kern_bench *b, int64_t n_tok, int n_in, int64_t x_floats, hone_error *err)
{
    int64_t width = act_width(&b->k), all = width * n_tok;
    uint64_t room = hn_memory_available();
    float *x = realloc(b->x, (size_t)x_floats * sizeof *b->x);
    if (x) b->x = x;
    b->y_floats = (uint64_t)all;
    b->n_plain = copies_of(b, b->plain_bytes);
    uint64_t want = b->plain_bytes * (uint64_t)b->n_plain;
    b->mem = room && want > room / 4 * 3 ? NULL : b->be->op->alloc(b->be, want, HN_MEM_CACHE);
    b->act = hn_bench_act(b->be, NULL, width, n_tok);
    if (!x || !b->mem || !b->act) return HN_FAIL(err, HONE_E_NOMEM, "%s: %lld copies", b->k.id, (long long)b->n_plain);
    fill_random(b->x, x_floats, X_KEY);
    for (int64_t i = 0; i < b->n_plain; i++)
        b->be->op->write(b->be, b->mem, (size_t)i * b->plain_bytes, b->plain, b->plain_bytes);
    for (int i = 0; i < n_in; i++)
        if (!(b->in_rows[i] = hn_bench_rows(b->be, b->x + i * all, all)))
            return HN_FAIL(err, HONE_E_NOMEM, "%s: inputs", b->k.id);
    return HONE_OK;
}

static hone_status prepare_attn(hn_kern_bench *b, hone_error *err)
{
    int64_t n_tok = attn_tokens(&b->k);
    return prepare_memory(b, n_tok, 1, n_tok * act_width(&b->k), err);
}

static hone_status prepare_wkv(hn_kern_bench *b, hone_error *err)
{
    b->turn = 0;
    if (!b->met && !(b->met = malloc(b->plain_bytes))) return HN_FAIL(err, HONE_E_NOMEM, "%s: a state", b->k.id);
    return prepare_memory(b, b->k.n[2], WKV_INPUTS, wkv_floats(&b->k), err);
}

static hone_status prepare(hn_kern_bench *b, hone_error *err)
{
    drop_backend(b);
    hone_status st = hn_pool_new(&b->pool, b->config.threads, err);
    if (st == HONE_OK) st = new_backend(&b->be, b->pool, b->level, &b->k, err);
    if (st == HONE_OK)
        st = hn_kern_is_product(&b->k) ? prepare_product(b, err)
             : is_wkv(&b->k)           ? prepare_wkv(b, err)
                                       : prepare_attn(b, err);
    if (st != HONE_OK) return st;
    b->y = hn_pages_alloc_huge(b->y_floats * sizeof(float));
    b->y_check = hn_pages_alloc_huge(b->y_floats * sizeof(float));
    return b->y && b->y_check ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: outputs", b->k.id);
}

static double rmse_of(hn_kern_bench *b)
{
    double e = 0, x = 0;
    hn_type_get((uint32_t)b->k.type)->dequantize(b->out, b->q, b->k.n[0]);
    for (int64_t i = 0; i < b->k.n[0]; i++) {
        double d = (double)b->out[i] - (double)b->in[i];
        e += d * d;
        x += (double)b->in[i] * (double)b->in[i];
    }
    return sqrt(e / x);
}

hone_status hn_kern_measure(hn_kern_result *r, hn_kern_bench *b, const hn_kern_config *c, const hn_peaks *peaks,
                            bool (*stop)(void *), hone_error *err)
{
    *r = (hn_kern_result){ .config = *c };
    bool product = hn_kern_is_product(&b->k), attn = is_attn(&b->k), wkv = is_wkv(&b->k),
         pooled = product || attn || wkv;
    if (c->n_samples < 1 || c->n_samples > HN_KERN_SAMPLES || c->threads < 1 || (product && c->columns < 1) ||
        (c->packed && !hn_kern_has_packed(b)))
        return HN_FAIL(err, HONE_E_ARG, "%s: %d samples, %d threads, %d columns%s", b->k.id, c->n_samples, c->threads,
                       c->columns, c->packed ? ", packed" : "");
    if (!pooled) r->config.threads = 1;
    b->config = r->config;
    b->turned = (hn_bench_turned){ 0 };
    b->turn = 0;
    snprintf(r->level, sizeof r->level, "%s", hn_cpu_level_name(b->level));
    hone_status st = pooled ? prepare(b, err) : HONE_OK;
    if (st != HONE_OK) return st;
    describe(r, b);
    call_fn *call = product ? call_product : attn ? call_attn : wkv ? call_wkv : call_row;
    if (b->k.kind == HN_KERN_ROPE) memcpy(b->out, b->in, (size_t)row_floats(&b->k) * sizeof(float));
    for (int64_t i = 0; b->k.kind == HN_KERN_ROPE && i < b->k.n[1]; i++) b->in2[i] = i % 2 ? 1.0f : 0.0f;
    call(b);
    if (pooled) fetch(b);
    if (!(product ? check_product(b, r)
          : attn  ? check_attn(b, r)
          : wkv   ? check_wkv(b, b->plain, 1, r)
                  : check_row(b, r)))
        return HONE_OK;
    if (pooled) memcpy(b->y_check, b->y, b->y_floats * sizeof(float));
    st = time_calls(r, b, call, stop, err);
    if (st != HONE_OK) return st;
    int64_t n_missed = b->place.n_missed;
    if (wkv) { /* it goes on from the state it left: once more from the first */
        wkv_again(b);
        call(b);
    } else if (!pooled && b->k.kind != HN_KERN_ROPE) call(b); /* of the first operands again */
    if (pooled) fetch(b);
    if (pooled && memcmp(b->y_check, b->y, b->y_floats * sizeof(float)) != 0)
        hn_invalid(&r->verdict, "the outputs changed from call to call");
    if (n_missed)
        hn_invalid(&r->verdict, "%lld of the timed calls that were watched left a number out, or another one there",
                   (long long)n_missed);
    if (!pooled) check_row(b, r);
    r->hashed = b->k.kind != HN_KERN_ROPE;
    if (pooled) r->output = hn_bits_hash(b->y, (int64_t)b->y_floats);
    if (b->k.kind == HN_KERN_ENCODE) r->rmse = rmse_of(b);
    judge(r, b, peaks);
    return HONE_OK;
}
