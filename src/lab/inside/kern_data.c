/* The data of a single kernel's measurement, and its life: weights, caches and states in as many copies as are cold
 * again when their turn comes, rows, and the backends that hold them. Refuses to know calls, checks and clocks. */
#include "lab/inside/kern_priv.h"
#include "base/os.h"
#include "forge/synth.h"

#include <stdlib.h>

enum {
    CACHES = 8, /* rotated data, in last-level caches */
    MIN_ROTATED = 64 << 20,
    WKV_VECTORS = 6,
    MAX_COPIES = 1 << 16
};

/* How many copies of n bytes are cold again when their turn comes. */
static int64_t copies_of(const hn_kern_bench *b, size_t n)
{
    uint64_t want = CACHES * b->cache_bytes;
    if (want < MIN_ROTATED) want = MIN_ROTATED;
    uint64_t c = (want + n - 1) / n;
    return (int64_t)(c > MAX_COPIES ? MAX_COPIES : c);
}

void hn_kb_fill(float *x, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i++) x[i] = 2 * hn_rand_f32(key, (uint64_t)i) - 1;
}

/* ---- data of products --------------------------------------------------------------------------------- */

size_t hn_kb_row_bytes(const hn_kern_bench *b)
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
    b->plain_bytes = s.n_bytes = hn_kb_row_bytes(b) * (uint64_t)b->k.n[0];
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
    size_t row = hn_kb_row_bytes(b), group = hn_packed_group_bytes(t, n_in);
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

hn_weight hn_kb_weight(const hn_kern_bench *b, int64_t turn)
{
    hn_weight w = { .data = b->plain,
                    .type = (hn_type)b->k.type,
                    .n_in = b->k.n[1],
                    .n_out = b->k.n[0],
                    .row_bytes = hn_kb_row_bytes(b) };
    if (b->config.packed) {
        w.packed = b->packed + (size_t)(turn % b->n_packed) * b->packed_bytes;
        w.group_bytes = hn_packed_group_bytes(w.type, w.n_in);
    } else w.data = b->plain + (size_t)(turn % b->n_plain) * b->plain_bytes;
    return w;
}

/* ---- data of attention -------------------------------------------------------------------------------- */

/* Bytes of K, or V, of one head of a page, and the number of pages. */
static size_t head_bytes(const hn_kern *k)
{
    return HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(HN_CACHE_F16, k->n[2]);
}

static int64_t n_pages(const hn_kern *k) { return (k->n[3] + HN_PAGE - 1) / HN_PAGE; }

hn_kv hn_kb_kv(const hn_kern_bench *b, hn_buf *mem, int64_t turn)
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
    int64_t n_pos = b->k.n[3], width = b->k.n[1] * b->k.n[2], n_tok = hn_kb_attn_tokens(&b->k);
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
    hn_kv kv = hn_kb_kv(b, NULL, 0);
    for (int64_t p = 0; p < n_pos; p++) {
        hn_kb_fill(k, 2 * width, (uint64_t)p);
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

/* ---- data of a recurrence ----------------------------------------------------------------------------- */

hn_state hn_kb_state(const hn_kern_bench *b, hn_buf *mem, int64_t turn)
{
    return (hn_state){ .mem = mem,
                       .at = (size_t)(turn % b->n_plain) * (b->plain_bytes / sizeof(float)),
                       .n_embd = hn_kb_wkv_width(&b->k) };
}

static void first_state(float *mem, const hn_kern *k) { hn_kb_fill(mem, hn_kb_wkv_width(k) * (2 + k->n[1]), 5); }

static hone_status make_states(hn_kern_bench *b, hone_error *err)
{
    b->plain_bytes = (size_t)(hn_kb_wkv_width(&b->k) * (2 + b->k.n[1])) * sizeof(float);
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

int64_t hn_kb_wkv_floats(const hn_kern *k) { return hn_kb_wkv_width(k) * (HN_KB_WKV_INPUTS * k->n[2] + WKV_VECTORS); }

hn_time_mix hn_kb_mix(const hn_kern_bench *b, hn_buf *const x[HN_KB_WKV_INPUTS])
{
    int64_t e = hn_kb_wkv_width(&b->k);
    float *v = b->x + HN_KB_WKV_INPUTS * e * b->k.n[2];
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

/* ---- data of rows ------------------------------------------------------------------------------------- */

bool hn_kb_fill_operand(hn_kern_bench *b)
{
    int64_t n = hn_kb_row_floats(&b->k);
    hn_kb_fill(b->in, n, 1);
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
    int64_t n = hn_kb_row_floats(&b->k);
    size_t f = ((size_t)n * sizeof(float) + 63) & ~(size_t)63;
    b->in = hn_pages_alloc_huge(f);
    b->in2 = hn_pages_alloc_huge(f);
    b->out = hn_pages_alloc_huge(f);
    b->q = hn_pages_alloc_huge(2 * hn_kb_row_room(&b->k)); /* the second half is the oracle's */
    b->x = hn_pages_alloc_huge(f);                         /* the oracle's output */
    if (!b->in || !b->in2 || !b->out || !b->q || !b->x) return HN_FAIL(err, HONE_E_NOMEM, "%s: rows", b->k.id);
    hn_kb_fill(b->in2, n, 2);
    if (!hn_kb_fill_operand(b))
        return HN_FAIL(err, HONE_E_ARG, "%s: hone cannot fill this type with random weights", b->k.id);
    return HONE_OK;
}

/* ---- life --------------------------------------------------------------------------------------------- */

static int64_t widest(const hn_kern *k)
{
    return hn_kern_is_product(k) ? k->n[1] : hn_kb_is_wkv(k) ? hn_kb_wkv_width(k) : 4096;
}

static hone_status new_backend(hn_backend **out, hn_pool *pool, hn_cpu_level level, const hn_kern *k, hone_error *err)
{
    bool attn = hn_kb_is_attn(k);
    const hn_backend_params p = { .pool = pool,
                                  .level = level,
                                  .max_n_in = widest(k),
                                  .n_head = attn ? k->n[0] : 0,
                                  .n_head_kv = attn ? k->n[1] : 0,
                                  .d = attn ? k->n[2] : 0,
                                  .n_ctx = attn ? n_pages(k) * HN_PAGE : 0 };
    return hn_backend_open(out, NULL, &p, err);
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
             : hn_kb_is_attn(k)    ? make_cache(b, err)
             : hn_kb_is_wkv(k)     ? make_states(b, err)
                                   : make_rows(b, err);
    if (st != HONE_OK) {
        hn_kern_close(b);
        return st;
    }
    *out = b;
    return HONE_OK;
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
    if (!hn_kern_is_product(&b->k) && !hn_kb_is_attn(&b->k) && !hn_kb_is_wkv(&b->k)) {
        size_t f = ((size_t)hn_kb_row_floats(&b->k) * sizeof(float) + 63) & ~(size_t)63;
        hn_pages_free(b->in, f);
        hn_pages_free(b->in2, f);
        hn_pages_free(b->out, f);
        hn_pages_free(b->x, f);
        hn_pages_free(b->q, 2 * hn_kb_row_room(&b->k));
    } else free(b->x);
    free(b->rows);
    free(b->met);
    free(b);
}

bool hn_kern_has_packed(const hn_kern_bench *b)
{
    return hn_kern_is_product(&b->k) && hn_can_pack((hn_type)b->k.type) && b->fast->packed[b->k.type];
}

/* ---- what one configuration needs --------------------------------------------------------------------- */

static hone_status prepare_product(hn_kern_bench *b, hone_error *err)
{
    int64_t n_in = b->k.n[1], n_col = b->config.columns;
    if (b->config.packed && !b->packed) {
        hone_status st = make_packed(b, err);
        if (st != HONE_OK) return st;
    }
    b->y_floats = (uint64_t)(b->k.n[0] * n_col);
    float *x = realloc(b->x, (size_t)(n_in * n_col) * sizeof *x);
    if (x) hn_kb_fill(b->x = x, n_in * n_col, HN_KB_X_KEY);
    b->act = x ? hn_bench_act(b->be, x, n_in, n_col) : NULL;
    b->in_rows[0] = hn_bench_rows(b->be, NULL, (int64_t)b->y_floats);
    if (!b->act || !b->in_rows[0]) return HN_FAIL(err, HONE_E_NOMEM, "%s: %lld columns", b->k.id, (long long)n_col);
    return HONE_OK;
}

/* The backend's copies of the cache or state, n_tok activations, and inputs of `all` floats each from x. */
static hone_status prepare_memory(hn_kern_bench *b, int64_t n_tok, int n_in, int64_t x_floats, hone_error *err)
{
    int64_t width = hn_kb_act_width(&b->k), all = width * n_tok;
    uint64_t room = hn_memory_available();
    float *x = realloc(b->x, (size_t)x_floats * sizeof *b->x);
    if (x) b->x = x;
    b->y_floats = (uint64_t)all;
    b->n_plain = copies_of(b, b->plain_bytes);
    uint64_t want = b->plain_bytes * (uint64_t)b->n_plain;
    b->mem = room && want > room / 4 * 3 ? NULL : b->be->op->alloc(b->be, want, HN_MEM_CACHE);
    b->act = hn_bench_act(b->be, NULL, width, n_tok);
    if (!x || !b->mem || !b->act) return HN_FAIL(err, HONE_E_NOMEM, "%s: %lld copies", b->k.id, (long long)b->n_plain);
    hn_kb_fill(b->x, x_floats, HN_KB_X_KEY);
    for (int64_t i = 0; i < b->n_plain; i++)
        b->be->op->write(b->be, b->mem, (size_t)i * b->plain_bytes, b->plain, b->plain_bytes);
    for (int i = 0; i < n_in; i++)
        if (!(b->in_rows[i] = hn_bench_rows(b->be, b->x + i * all, all)))
            return HN_FAIL(err, HONE_E_NOMEM, "%s: inputs", b->k.id);
    return HONE_OK;
}

static hone_status prepare_attn(hn_kern_bench *b, hone_error *err)
{
    int64_t n_tok = hn_kb_attn_tokens(&b->k);
    return prepare_memory(b, n_tok, 1, n_tok * hn_kb_act_width(&b->k), err);
}

static hone_status prepare_wkv(hn_kern_bench *b, hone_error *err)
{
    b->turn = 0;
    if (!b->met && !(b->met = malloc(b->plain_bytes))) return HN_FAIL(err, HONE_E_NOMEM, "%s: a state", b->k.id);
    return prepare_memory(b, b->k.n[2], HN_KB_WKV_INPUTS, hn_kb_wkv_floats(&b->k), err);
}

hone_status hn_kb_prepare(hn_kern_bench *b, hone_error *err)
{
    drop_backend(b);
    hone_status st = hn_pool_new(&b->pool, b->config.threads, err);
    if (st == HONE_OK) st = new_backend(&b->be, b->pool, b->level, &b->k, err);
    if (st == HONE_OK)
        st = hn_kern_is_product(&b->k) ? prepare_product(b, err)
             : hn_kb_is_wkv(&b->k)     ? prepare_wkv(b, err)
                                       : prepare_attn(b, err);
    if (st != HONE_OK) return st;
    b->y = hn_pages_alloc_huge(b->y_floats * sizeof(float));
    b->y_check = hn_pages_alloc_huge(b->y_floats * sizeof(float));
    return b->y && b->y_check ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: outputs", b->k.id);
}
