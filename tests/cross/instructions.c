/* Small fixed work for every slot of the kernel table, so that its instructions can be counted (instructions.sh): a
 * line for each kernel of each level that is not inherited from the level below,
 *   LEVEL <tab> KERNEL <tab> SHAPE <tab> ITEMS <tab>
 * and then whatever counts between the two marks of count_instructions.h ends the line. ITEMS: products of a matrix
 * product, of q·k and p·v in attention, states of a recurrence; elsewhere elements.
 * Every number is drawn from a fixed seed, so that a branch on data goes the same way each time. */
#include "count_instructions.h"
#include "kernels/kernels.h"
#include "kernels/peaks.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef FLAGS /* of the compiler, for the kernels */
#define FLAGS "unknown flags"
#endif

enum { ROWS = 64, COLS = 64, WIDE = 2880, N = 2048 };

static const hn_kernels *k, *below; /* the level at work and the one whose holes it does not fill */
static float xf[COLS * WIDE], y[ROWS * COLS], u[COLS * WIDE], v[COLS * WIDE];

static float draw(uint64_t key, uint64_t i) { return hn_rand_f32(key, i) * 2.0f - 1.0f; }

/* WORK between the marks, behind a line that names it. */
#define COUNT(KERNEL, SHAPE, ITEMS, WORK)                                         \
    do {                                                                          \
        printf("%s\t%s\t%s\t%lld\t", k->name, KERNEL, SHAPE, (long long)(ITEMS)); \
        fflush(stdout);                                                           \
        syscall(HN_MARK_BEGIN);                                                   \
        WORK;                                                                     \
        syscall(HN_MARK_END);                                                     \
    } while (0)
/* the same where the slot is this level's own */
#define COUNT_SLOT(SLOT, SHAPE, ITEMS, WORK)                                                 \
    do {                                                                                     \
        if (k->SLOT && (!below || k->SLOT != below->SLOT)) COUNT(#SLOT, SHAPE, ITEMS, WORK); \
    } while (0)

static void *room(size_t n_bytes)
{
    void *p = aligned_alloc(64, (n_bytes + 63) & ~(size_t)63);
    if (!p) abort();
    memset(p, 0, (n_bytes + 63) & ~(size_t)63);
    return p;
}

/* ---- products ---- */

static void weights(hn_type t, unsigned char *w, int64_t n)
{
    const hn_type_info *ti = hn_type_get(t);
    if (ti->quantize) {
        ti->quantize(w, v, n, NULL);
        return;
    }
    for (size_t i = 0; i < hn_row_bytes(ti, (uint64_t)n); i++) w[i] = (unsigned char)(hn_rand64(9, i) >> 56);
}

static void product(hn_type t, bool packed, int64_t n_in, int64_t n_row, int64_t n_col)
{
    const hn_type_info *ti = hn_type_get(t);
    const hn_act_kind kind = hn_act_kind_of(t);
    const size_t row = (size_t)hn_row_bytes(ti, (uint64_t)n_in), xs = hn_act_row_bytes(kind, n_in);
    const size_t group = packed ? hn_packed_group_bytes(t, n_in) : 0;
    unsigned char *w = room(row * (size_t)n_row), *x = room(xs * (size_t)n_col), *panel = room(HN_PANEL_BYTES(n_in));
    unsigned char *p = room(packed ? hn_packed_bytes(t, n_in, n_row) : 0);
    weights(t, w, n_in);
    for (int64_t r = 1; r < n_row; r++) memcpy(w + (size_t)r * row, w, row);
    for (int64_t r = 0; packed && r < n_row; r += HN_PACK_ROWS)
        hn_pack_group(t, p + (size_t)(r / HN_PACK_ROWS) * group, w + (size_t)r * row, row, HN_PACK_ROWS, n_in);
    for (int64_t c = 0; c < n_col; c++) {
        void *to = x + (size_t)c * xs;
        if (kind == HN_ACT_Q256) k->quantize256(to, xf + c * n_in, n_in);
        else if (kind == HN_ACT_Q32) k->quantize32(to, xf + c * n_in, n_in);
        else memcpy(to, xf + c * n_in, (size_t)n_in * sizeof(float));
    }
    hn_mm m = { y, n_row, packed ? p : w, packed ? group : row, x, xs, n_in, n_col, 0, n_row, panel };
    hn_matmul_fn *fn = (packed ? k->packed : k->matmul)[t];
    char name[40], shape[40];
    snprintf(name, sizeof name, "%s %s", packed ? "packed" : "matmul", ti->name);
    snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)n_row, (long long)n_in, (long long)n_col);
    COUNT(name, shape, n_row * n_in * n_col, fn(&m));
    free(w);
    free(x);
    free(panel);
    free(p);
}

static void products(hn_type t, bool packed)
{
    hn_matmul_fn *fn = (packed ? k->packed : k->matmul)[t];
    if (!fn || (below && fn == (packed ? below->packed : below->matmul)[t])) return;
    if (!below) { /* the oracle is slow and not meant to be fast: one figure, to see what a level gains */
        product(t, packed, N, HN_PACK_ROWS, 1);
        return;
    }
    product(t, packed, N, ROWS, 1);
    product(t, packed, N, ROWS, 4);
    product(t, packed, N, ROWS / 2, COLS);
    product(t, packed, hn_type_get(t)->block_elems == 256 ? 2816 : WIDE, ROWS, 1); /* an odd number of blocks */
}

static void decoder(hn_type t)
{
    const hn_type_info *ti = hn_type_get(t);
    hn_dequantize_fn *fn = k->decode[t] ? k->decode[t] : ti->dequantize;
    if (below && fn == (below->decode[t] ? below->decode[t] : ti->dequantize)) return;
    unsigned char *w = room((size_t)hn_row_bytes(ti, N));
    char name[40];
    weights(t, w, N);
    snprintf(name, sizeof name, "decode %s", ti->name);
    COUNT(name, "2048", N, fn(u, w, N));
    free(w);
}

/* ---- attention ---- */

static void attend(hn_cache_type type, bool latent, int64_t d, int64_t d_v, int64_t n_q, int64_t n_tok, int64_t n_kv)
{
    static const char *const names[HN_CACHE_TYPES] = { "f16", "f32", "q8_0" };
    hn_attn_fn *fn = (latent ? k->attn_latent : k->attn)[type];
    if (below && fn == (latent ? below->attn_latent : below->attn)[type]) return;
    const size_t page = HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(type, d);
    const int64_t n_all = n_kv + n_tok - 1, rows = n_tok * n_q;
    unsigned char *kc = room(page * (size_t)((n_all + HN_PAGE - 1) / HN_PAGE)),
                  *vc = room(page * (size_t)((n_all + HN_PAGE - 1) / HN_PAGE));
    float *scratch = room((size_t)hn_attn_floats(rows, d) * sizeof(float)), *out = room((size_t)(rows * d) * 4);
    for (int64_t t = 0; t < n_all; t++) {
        size_t at = (size_t)(t / HN_PAGE) * page;
        (latent ? k->store_v : k->store_k)[type](kc + at, xf + t * 7 % 1000, d, t % HN_PAGE);
        k->store_v[type](vc + at, u + t * 11 % 1000, d, t % HN_PAGE);
    }
    hn_attn a = { .q = v,
                  .out = out,
                  .q_stride = n_q * d,
                  .out_stride = n_q * (d_v ? d_v : d),
                  .k = kc,
                  .v = latent ? kc : vc,
                  .page_bytes = page,
                  .scratch = scratch,
                  .n_tok = n_tok,
                  .n_q = n_q,
                  .n_kv = n_kv,
                  .d = d,
                  .d_v = d_v,
                  .scale = 0.1f };
    char name[40], shape[60];
    snprintf(name, sizeof name, "%s %s", latent ? "latent" : "attention", names[type]);
    snprintf(shape, sizeof shape, "%lldx%lld queries, %lld keys of %lld", (long long)n_tok, (long long)n_q,
             (long long)n_kv, (long long)d);
    COUNT(name, shape, rows * n_kv * (d + (d_v ? d_v : d)), fn(&a));
    free(kc);
    free(vc);
    free(scratch);
    free(out);
}

static void stores(hn_cache_type type)
{
    static const char *const names[HN_CACHE_TYPES] = { "f16", "f32", "q8_0" };
    unsigned char *page = room(HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(type, 128));
    for (int is_v = 0; is_v < 2; is_v++) {
        char name[40];
        snprintf(name, sizeof name, "store_%c %s", is_v ? 'v' : 'k', names[type]);
        if (!below || (is_v ? k->store_v[type] != below->store_v[type] : k->store_k[type] != below->store_k[type]))
            COUNT(name, "128", 128, (is_v ? k->store_v : k->store_k)[type](page, xf, 128, 5));
    }
    free(page);
}

/* ---- recurrences, training ---- */

static void recurrences(void)
{
    enum { D = 64, N_STATE = 128 };
    float *s = room(N_STATE * N_STATE * sizeof(float)), out[N_STATE];
    hn_wkv w = { .s = s,
                 .out = out,
                 .r = xf,
                 .k = u,
                 .v = v,
                 .w = xf + 64,
                 .g = u + 64,
                 .ln_w = v + 64,
                 .ln_b = u + 128,
                 .a = xf + 128,
                 .v_mix = xf + 192,
                 .v_first = y,
                 .k_k = u + 192,
                 .k_a = v + 192,
                 .r_k = u + 256,
                 .first = v + 256,
                 .n = D,
                 .eps = 1e-5f };
    COUNT_SLOT(wkv6, "64", D * D, k->wkv6(&w));
    COUNT_SLOT(wkv7, "64", D * D, k->wkv7(&w));
    hn_ssm_head ssm = {
        .s = s, .y = out, .x = xf, .b = u, .c = v, .dt = 0.1f, .decay = 0.9f, .d = 1, .p = 64, .n = 128
    };
    COUNT_SLOT(ssm, "64x128", 64 * 128, k->ssm(&ssm));
    hn_scan_run scan = { .s = s,
                         .y = out,
                         .x = xf,
                         .dt = xf + 128,
                         .a = s + 128 * 16,
                         .b = u,
                         .c = v,
                         .d = u + 128,
                         .lds = 128,
                         .lda = 128,
                         .p = 128,
                         .n = 16 };
    COUNT_SLOT(scan, "128x16", 128 * 16, k->scan(&scan));
    hn_delta_head delta = { .s = s,
                            .out = out,
                            .q = xf,
                            .k = u,
                            .v = v,
                            .gate = xf + 128,
                            .norm = u + 128,
                            .decay = v + 128,
                            .a = -0.5f,
                            .beta = 0.5f,
                            .eps = 1e-6f,
                            .n = N_STATE };
    COUNT_SLOT(delta, "128", N_STATE * N_STATE, k->delta(&delta));
    const float *taps[4] = { xf, xf + N, xf + 2 * N, xf + 3 * N };
    hn_conv_row conv = { .y = y, .x = taps, .w = u, .n = N, .ldw = N, .taps = 4, .silu = true };
    COUNT_SLOT(conv, "4x2048", 4 * N, k->conv(&conv));
    free(s);
}

static void training(void)
{
    if (below && k->gemm == below->gemm) return;
    float *t = room(HN_GEMM_ROWS * HN_GEMM_COLS * sizeof(float));
    for (int bf16 = 0; bf16 < 2; bf16++) {
        void (*tile)(const hn_gemm_tile *) = bf16 ? k->gemm->tile_bf16 : k->gemm->tile;
        float *a = room(6 * 256 * 4), *b = room(256 * 64 * 4);
        k->gemm->rows(a, xf, 256, 6, 256, bf16);
        k->gemm->copy(b, 64, u, 64, 256, 64, bf16);
        hn_gemm_tile g = { .a = a,
                           .b = b,
                           .t = t,
                           .c = y,
                           .a_row = 256,
                           .a_step = 1,
                           .b_step = 64,
                           .ldc = 64,
                           .steps = bf16 && k->gemm->pairs ? 128 : 256,
                           .rows = 6,
                           .cols = 64,
                           .alpha = 1,
                           .first = true,
                           .last = true };
        COUNT(bf16 ? "gemm.tile_bf16" : "gemm.tile", "6x256x64", 6 * 256 * 64, tile(&g));
        free(a);
        free(b);
    }
    COUNT("gemm.transpose", "16x256", 16 * 256, k->gemm->transpose(v, 64, u, 256, 16, 256, false));
    COUNT("gemm.copy", "16x256", 16 * 256, k->gemm->copy(v, 256, u, 256, 16, 256, false));
    free(t);
}

/* ---- rows ---- */

static void rows(void)
{
    unsigned char *q = room(hn_act_row_bytes(HN_ACT_Q32, N) + hn_act_row_bytes(HN_ACT_Q256, N));
    COUNT_SLOT(quantize256, "2048", N, k->quantize256((hn_a256 *)q, xf, N));
    COUNT_SLOT(quantize32, "2048", N, k->quantize32(q, xf, N));
    COUNT_SLOT(rms_norm, "2048", N, k->rms_norm(y, xf, u, N, 1e-6f));
    COUNT_SLOT(rms_norm, "900", 900, k->rms_norm(y, xf, u, 900, 1e-6f));
    COUNT_SLOT(layer_norm, "2048", N, k->layer_norm(y, xf, u, v, N, 1e-6f));
    COUNT_SLOT(silu_mul, "2048", N, k->silu_mul(y, xf, u, N));
    COUNT_SLOT(gelu_mul, "2048", N, k->gelu_mul(y, xf, u, N));
    COUNT_SLOT(gelu_erf_mul, "2048", N, k->gelu_erf_mul(y, xf, u, N));
    COUNT_SLOT(oai_mul, "2048", N, k->oai_mul(y, xf, u, N));
    COUNT_SLOT(relu_mul, "2048", N, k->relu_mul(y, xf, u, N));
    COUNT_SLOT(exp, "2048", N, k->exp(y, xf, N));
    COUNT_SLOT(lerp, "2048", N, k->lerp(y, xf, u, v, NULL, N));
    COUNT_SLOT(map[HN_MAP_TANH], "2048", N, k->map[HN_MAP_TANH](y, N));
    COUNT_SLOT(map[HN_MAP_SIGMOID], "2048", N, k->map[HN_MAP_SIGMOID](y, N));
    COUNT_SLOT(map[HN_MAP_SILU], "2048", N, k->map[HN_MAP_SILU](y, N));
    COUNT_SLOT(map[HN_MAP_SQRELU], "2048", N, k->map[HN_MAP_SQRELU](y, N));
    COUNT_SLOT(map[HN_MAP_GELU], "2048", N, k->map[HN_MAP_GELU](y, N));
    COUNT_SLOT(map[HN_MAP_SOFTPLUS], "2048", N, k->map[HN_MAP_SOFTPLUS](y, N));
    COUNT_SLOT(map[HN_MAP_GELU_ERF], "2048", N, k->map[HN_MAP_GELU_ERF](y, N));
    COUNT_SLOT(xielu, "2048", N, k->xielu(y, N, &(const hn_xielu){ 0.75f, 1.25f, 0.5f, -1e-6f }));
    COUNT_SLOT(attn_merge, "4x128", 4 * 128, k->attn_merge(y, xf, 130, 4, 128, NULL));
    COUNT_SLOT(low_rank, "2048x16", N * 16, k->low_rank(y, u, N, xf, 16, N));
    COUNT_SLOT(silu_mul_grad, "2048", N, k->silu_mul_grad(y, y + N, xf, u, v, N));
    COUNT_SLOT(gelu_mul_grad, "2048", N, k->gelu_mul_grad(y, y + N, xf, u, v, N));
    COUNT_SLOT(rms_norm_grad, "2048", N, k->rms_norm_grad(y, xf, u, v, N, 1e-6f));
    COUNT_SLOT(to_bf16, "2048", N, k->to_bf16((uint16_t *)q, xf, N));
    free(q);
}

/* The loops that the roof is measured with: beside their products they have next to nothing to do. */
static void peaks(hn_cpu_level l)
{
    enum { STEPS = 1000, BYTES = 1 << 16 };
    const hn_peak_loops *p = hn_peak_loops_get(l);
    const struct {
        const char *name;
        const hn_peak_op *op;
    } loops[] = { { "peak int8", &p->int8 }, { "peak f32", &p->f32 }, { "peak bf16", &p->bf16 } };
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (loops[i].op->how)
            COUNT(loops[i].name, loops[i].op->how, (long long)loops[i].op->ops * STEPS, loops[i].op->run(STEPS));
    char *bytes = room(4 * BYTES);
    COUNT("peak read", "4 streams", 4 * BYTES, p->read(bytes, BYTES, 4, 0));
    free(bytes);
}

/* All lines of the level at work. */
static void level(void)
{
    for (int i = 0; i < COLS * WIDE; i++) {
        xf[i] = draw(1, (uint64_t)i);
        u[i] = draw(2, (uint64_t)i);
        v[i] = draw(3, (uint64_t)i);
    }
    rows();
    for (int t = 0; t < HN_TYPE_COUNT; t++) {
        const hn_type_info *ti = hn_type_get((uint32_t)t);
        if (!ti || !ti->weight) continue;
        products((hn_type)t, false);
        products((hn_type)t, true);
        decoder((hn_type)t);
    }
    for (int t = 0; t < HN_CACHE_TYPES; t++) {
        stores((hn_cache_type)t);
        attend((hn_cache_type)t, false, 128, 0, 4, 1, below ? 512 : 64);
        if (below) attend((hn_cache_type)t, false, 100, 0, 4, 1, 512);
        if (below) attend((hn_cache_type)t, false, 128, 0, 4, 16, 256);
        attend((hn_cache_type)t, true, 576, 512, 16, 1, 64);
    }
    recurrences();
    training();
}

int main(void)
{
#ifdef __clang__
    printf("built by\tclang %d.%d.%d %s\n", __clang_major__, __clang_minor__, __clang_patchlevel__, FLAGS);
#else
    printf("built by\tgcc %d.%d.%d %s\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__, FLAGS);
#endif
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!hn_cpu_has((hn_cpu_level)l)) continue;
        below = k;
        k = hn_kernels_get((hn_cpu_level)l);
        peaks((hn_cpu_level)l);
        level();
    }
    return 0;
}
