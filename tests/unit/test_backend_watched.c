/* Kernels are not instrumented for sanitizers: their tables tell what they read and write (kernels/watched.h). So for
 * ThreadSanitizer each entry is used on the same row by two threads that nothing orders, and must be reported; ordered,
 * it must not be. For AddressSanitizer each is used on rows that may not be used, and the bytes that it really changed
 * are those of which it told. Elsewhere than under a sanitizer there is nothing to see. */
#include "base/guard.h"
#include "kernels/kernels.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if HN_WATCHED

static int n_report;
#define SEEN_BY_SANITIZER __attribute__((visibility("default")))
#if HN_TSAN
SEEN_BY_SANITIZER void __tsan_on_report(void *report);
void __tsan_on_report(void *report) { n_report++; }
SEEN_BY_SANITIZER const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "exitcode=0:suppress_equal_addresses=0:suppress_equal_stacks=1:symbolize=0";
}
#else
SEEN_BY_SANITIZER void __asan_on_error(void);
void __asan_on_error(void) { n_report++; }
SEEN_BY_SANITIZER const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "halt_on_error=0:suppress_equal_pcs=0:symbolize=0"; }
#endif

/* ---- what entries work on -------------------------------------------------------------------------------------- */

enum { N = 256, ROWS = 16, HEAD = 64, BYTES = 1 << 20 };

static const hn_kernels *k;
static char *in, *in2, *out, *out2, *scratches[2]; /* [BYTES] each; in is what a kernel reads, out what it writes */
static _Thread_local char *scratch;                /* of this thread: it shares out alone */
static _Thread_local float first_value[HEAD];
static int type, cache;

static void do_product(hn_matmul_fn *fn, size_t stride)
{
    const hn_mm a = { .y = (float *)out,
                      .ldy = ROWS,
                      .w = in2,
                      .w_stride = stride,
                      .x = in,
                      .x_stride = 4096,
                      .n_in = N,
                      .n_col = 2,
                      .r1 = ROWS,
                      .panel = scratch };
    fn(&a);
}
static void do_matmul(void) { do_product(k->matmul[type], 2048); }
static void do_packed(void) { do_product(k->packed[type], 65536); }
static void do_decode(void) { k->decode[type]((float *)out, in, N); }
static void do_attn_of(hn_attn_fn *fn, bool latent, bool part)
{
    const hn_attn a = { .q = (const float *)in2,
                        .out = part ? NULL : (float *)out,
                        .q_stride = HEAD,
                        .out_stride = HEAD,
                        .k = in,
                        .v = latent ? in : in + BYTES / 2,
                        .page_bytes = 65536,
                        .scratch = (float *)scratch,
                        .n_tok = 1,
                        .n_q = 1,
                        .n_kv = 20,
                        .d = HEAD,
                        .d_v = latent ? HEAD / 2 : 0,
                        .scale = 1,
                        .part = part ? (float *)out : NULL,
                        .split1 = part };
    fn(&a);
}
static void do_attn(void) { do_attn_of(k->attn[cache], false, false); }
static void do_latent(void) { do_attn_of(k->attn_latent[cache], true, false); }
static void do_part(void) { do_attn_of(k->attn[cache], false, true); }
static void do_store_k(void) { k->store_k[cache](out, (const float *)in, HEAD, 5); }
static void do_store_v(void) { k->store_v[cache](out, (const float *)in, HEAD, 5); }
static void do_merge(void) { k->attn_merge((float *)out, (const float *)in, HEAD + 2, 2, HEAD, NULL); }
static void do_quantize256(void) { k->quantize256((hn_a256 *)out, (const float *)in, N); }
static void do_quantize32(void) { k->quantize32(out, (const float *)in, N); }
static void do_rms_norm(void) { k->rms_norm((float *)out, (const float *)in, (const float *)in2, N, 1e-5f); }
static void do_layer_norm(void) { k->layer_norm((float *)out, (const float *)in, (const float *)in2, NULL, N, 1e-5f); }
static void do_silu_mul(void) { k->silu_mul((float *)out, (const float *)in, (const float *)in2, N); }
static void do_gelu_mul(void) { k->gelu_mul((float *)out, (const float *)in, (const float *)in2, N); }
static void do_gelu_erf_mul(void) { k->gelu_erf_mul((float *)out, (const float *)in, (const float *)in2, N); }
static void do_oai_mul(void) { k->oai_mul((float *)out, (const float *)in, (const float *)in2, N); }
static void do_relu_mul(void) { k->relu_mul((float *)out, (const float *)in, (const float *)in2, N); }
static void do_xielu(void) { k->xielu((float *)out, N, &(const hn_xielu){ 1, 1, 0.5f, 0 }); }
static void do_silu_grad(void)
{
    k->silu_mul_grad((float *)out, (float *)out2, (const float *)in2, (const float *)in, (const float *)in2, N);
}
static void do_gelu_grad(void)
{
    k->gelu_mul_grad((float *)out, (float *)out2, (const float *)in2, (const float *)in, (const float *)in2, N);
}
static void do_norm_grad(void)
{
    k->rms_norm_grad((float *)out, (const float *)in, (const float *)in2, (const float *)in2, N, 1e-5f);
}
static void do_to_bf16(void) { k->to_bf16((uint16_t *)out, (const float *)in, N); }
static void do_exp(void) { k->exp((float *)out, (const float *)in, N); }
static void do_lerp(void) { k->lerp((float *)out, (const float *)in, (const float *)in2, (const float *)in2, NULL, N); }
static void do_low_rank(void) { k->low_rank((float *)out, (const float *)in, N, (const float *)in2, 2, N); }
static void do_wkv_of(hn_wkv_fn *fn)
{
    const float *x = (const float *)in2;
    const hn_wkv a = { .s = (float *)out,
                       .out = (float *)out2,
                       .r = (const float *)in,
                       .k = x,
                       .v = x,
                       .w = x,
                       .g = x,
                       .ln_w = x,
                       .ln_b = x,
                       .a = x,
                       .v_first = first_value,
                       .k_k = x,
                       .k_a = x,
                       .r_k = x,
                       .first = x,
                       .n = HEAD,
                       .eps = 1e-5f };
    fn(&a);
}
static void do_wkv6(void) { do_wkv_of(k->wkv6); }
static void do_wkv7(void) { do_wkv_of(k->wkv7); }
static void do_conv(void)
{
    const float *const rows[2] = { (const float *)in2, (const float *)in };
    k->conv(&(hn_conv_row){ .y = (float *)out, .x = rows, .w = (const float *)in2, .n = HEAD, .ldw = HEAD, .taps = 2 });
}
static void do_ssm(void)
{
    const float *x = (const float *)in2;
    k->ssm(&(hn_ssm_head){ .s = (float *)out,
                           .y = (float *)out2,
                           .x = (const float *)in,
                           .b = x,
                           .c = x,
                           .dt = 1,
                           .decay = 0.5f,
                           .p = HEAD,
                           .n = HEAD });
}
static void do_delta(void)
{
    const float *x = (const float *)in2;
    k->delta(&(hn_delta_head){ .s = (float *)out,
                               .out = (float *)out2,
                               .q = (const float *)in,
                               .k = x,
                               .v = x,
                               .gate = x,
                               .norm = x,
                               .decay = x,
                               .a = -1,
                               .beta = 1,
                               .eps = 1e-5f,
                               .n = HEAD });
}
static void do_tile(void)
{
    const hn_gemm_tile tile = { .a = in,
                                .b = in2,
                                .t = (float *)scratch,
                                .c = (float *)out,
                                .a_row = HN_GEMM_K,
                                .a_step = 1,
                                .b_step = HN_GEMM_COLS,
                                .ldc = HN_GEMM_COLS,
                                .steps = 4,
                                .rows = 2,
                                .cols = 16,
                                .alpha = 1,
                                .first = true,
                                .last = true };
    k->gemm->tile(&tile);
}
static void do_gemm_rows(void) { k->gemm->rows(out, (const float *)in, HEAD, 2, HEAD, false); }
static void do_map(void) { k->map[type]((float *)out, N); }

/* The sanitizer's words are wanted nowhere; those of a failure are. */
static int words = -1;
static void quiet(bool yes)
{
    if (yes) {
        int null = open("/dev/null", O_WRONLY);
        words = dup(2);
        dup2(null, 2);
        close(null);
    } else {
        dup2(words, 2);
        close(words);
    }
}

#if HN_TSAN

/* ---- two threads ----------------------------------------------------------------------------------------------- */

static int step; /* relaxed: it orders the threads in time, and nothing in ThreadSanitizer's eyes */
static void (*entry)(void);
static bool only_reads;

static void *first(void *unused)
{
    scratch = scratches[0];
    if (only_reads) memset(in, 0, BYTES);
    else entry();
    __atomic_store_n(&step, 1, __ATOMIC_RELAXED);
    return NULL;
}
static void *second(void *unused)
{
    scratch = scratches[1];
    while (__atomic_load_n(&step, __ATOMIC_RELAXED) != 1) usleep(100);
    entry();
    return NULL;
}

/* Reports of one thread's use (or writing of what is read) and another's, with or without an order between them. */
static int reports(void (*f)(void), bool reading, bool ordered)
{
    pthread_t a, b;
    int before = n_report;
    entry = f, only_reads = reading;
    __atomic_store_n(&step, 0, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&a, NULL, first, NULL), 0);
    if (ordered) pthread_join(a, NULL);
    assert_int_equal(pthread_create(&b, NULL, second, NULL), 0);
    if (!ordered) pthread_join(a, NULL);
    pthread_join(b, NULL);
    return n_report - before;
}

static void must_tell(const char *name, void (*f)(void), bool reads)
{
    quiet(true);
    bool ordered = reports(f, false, true), both = reports(f, false, false), read = !reads || reports(f, true, false);
    quiet(false);
    if (ordered) fail_msg("%s: %s %d %d: a report where one thread came after the other", k->name, name, type, cache);
    if (!both) fail_msg("%s: %s %d %d: two threads wrote one row, and nothing was said", k->name, name, type, cache);
    if (!read)
        fail_msg("%s: %s %d %d: a row was written while it was read, and nothing was said", k->name, name, type, cache);
}

#else

/* ---- rows that may not be used ---------------------------------------------------------------------------------- */

/* Reports of an entry while n bytes from p may not be used. */
static int reports(void (*f)(void), char *p, size_t n)
{
    int before = n_report;
    hn_guard(p, n);
    f();
    hn_unguard(p, n);
    return n_report - before;
}

/* The bytes of out that an entry changes lie in [*first, *end), whose end is that of a float. */
static void changes(void (*f)(void), size_t *first, size_t *end)
{
    *first = BYTES, *end = 0;
    for (int fill = 0x5A; fill <= 0xA5; fill += 0xA5 - 0x5A) {
        memset(out, fill, BYTES);
        f();
        for (size_t i = 0; i < BYTES; i++)
            if ((unsigned char)out[i] != fill) {
                if (i < *first) *first = i;
                if (i >= *end) *end = i + 1;
            }
    }
    *end = (*end + 3) / 4 * 4;
    memset(out, 0, BYTES);
}

static void must_tell(const char *name, void (*f)(void), bool reads)
{
    size_t from, end;
    scratch = scratches[0];
    quiet(true);
    changes(f, &from, &end);
    bool wrongly = reports(f, out + end, BYTES - end), lower = end && reports(f, out, from / 8 * 8 + 8);
    bool upper = end && reports(f, out + (end - 1) / 8 * 8, 8), read = !reads || reports(f, in, BYTES);
    quiet(false);
    if (!end) fail_msg("%s: %s %d %d wrote nothing", k->name, name, type, cache);
    if (wrongly) fail_msg("%s: %s %d %d told of bytes behind those it wrote", k->name, name, type, cache);
    if (!lower || !upper) fail_msg("%s: %s %d %d wrote, and nothing was said", k->name, name, type, cache);
    if (!read) fail_msg("%s: %s %d %d: its row may not be read, and nothing was said", k->name, name, type, cache);
}

#endif

static void every_entry_tells(void **state)
{
#define ONE(name)              \
    {                          \
#name, do_##name, true \
    }
    static const struct {
        const char *name;
        void (*f)(void);
        bool reads;
    } plain[] = { ONE(merge),
                  ONE(quantize256),
                  ONE(quantize32),
                  ONE(rms_norm),
                  ONE(layer_norm),
                  ONE(silu_mul),
                  ONE(gelu_mul),
                  ONE(gelu_erf_mul),
                  ONE(oai_mul),
                  ONE(relu_mul),
                  { "xielu", do_xielu, false },
                  ONE(silu_grad),
                  ONE(gelu_grad),
                  ONE(norm_grad),
                  ONE(to_bf16),
                  ONE(exp),
                  ONE(lerp),
                  ONE(low_rank),
                  ONE(wkv6),
                  ONE(wkv7),
                  ONE(conv),
                  ONE(ssm),
                  ONE(delta),
                  ONE(gemm_rows),
                  { "tile", do_tile, false } };
    static const struct {
        const char *name;
        void (*f)(void);
    } by_cache[] = { { "attn", do_attn },
                     { "latent", do_latent },
                     { "part", do_part },
                     { "store_k", do_store_k },
                     { "store_v", do_store_v } };
    int products = 0;
    for (hn_cpu_level l = 0; l <= hn_cpu_best(); l++) {
        if (!hn_cpu_has(l)) continue;
        k = hn_kernels_get(l);
        for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) must_tell(plain[i].name, plain[i].f, plain[i].reads);
        for (cache = 0; cache < HN_CACHE_TYPES; cache++)
            for (size_t i = 0; i < sizeof by_cache / sizeof *by_cache; i++)
                must_tell(by_cache[i].name, by_cache[i].f, true);
        cache = 0;
        for (type = 1; type < HN_MAP_KINDS; type++)
            if (k->map[type]) must_tell("map", do_map, false);
        for (type = 0; type < HN_TYPE_COUNT; type++) {
            if (k->matmul[type]) must_tell("matmul", do_matmul, true), products++;
            if (k->packed[type]) must_tell("packed", do_packed, true), products++;
            if (k->decode[type]) must_tell("decode", do_decode, true);
        }
        type = 0;
    }
    assert_true(products > 20);
}

int main(void)
{
    char **all[] = { &in, &in2, &out, &out2, &scratches[0], &scratches[1] };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i] = aligned_alloc(64, BYTES);
        assert_non_null(*all[i]);
        memset(*all[i], 0, BYTES);
    }
    if (HN_ASAN) memset(in, 0x3C, BYTES), memset(in2, 0x3C, BYTES); /* as f32 0.01, as f16 1.06: what adds is seen */
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_entry_tells) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(*all[i]);
    return failed;
}

#else

int main(void)
{
    puts("1..1\nok 1 # SKIP not built for a sanitizer");
    return 0;
}

#endif
