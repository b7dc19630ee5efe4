/* Prints digests of outputs that must not depend on the machine: decoders and
 * quantizers of every type, every kernel of the level that HONE_CPU names, random
 * numbers, and for each model named on the command line its tokens, logits and greedy
 * continuation. Built for several architectures and run at several CPU levels; the
 * outputs are compared byte for byte (compare.sh).
 * Usage: cross_check [-o LOGITS] [MODEL.gguf…]; LOGITS gets all logits as raw f32. */
#include "kernels/kernels.h"

#include <stdlib.h>

enum { N_ELEM = 4096, N_NEW = 6 };

static uint64_t digest_f32(uint64_t h, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u = hn_f32_bits(x[i]);
        if ((u & 0x7FFFFFFF) > 0x7F800000) u = 0x7FC00000; /* the sign of a NaN is the machine's business */
        unsigned char b[4] = { (unsigned char)u, (unsigned char)(u >> 8), (unsigned char)(u >> 16),
                               (unsigned char)(u >> 24) };
        h = hn_fnv1a(h, b, 4);
    }
    return h;
}

static int types(void)
{
    static unsigned char raw[8 * N_ELEM], again[8 * N_ELEM];
    static float x[N_ELEM], y[N_ELEM];
    int n_seen = 0;
    for (uint32_t id = 0; id < HN_TYPE_COUNT; id++) {
        const hn_type_info *ti = hn_type_get(id);
        if (!ti) continue;
        n_seen++;
        size_t n_bytes = (size_t)hn_row_bytes(ti, N_ELEM);
        for (size_t i = 0; i < n_bytes; i++) raw[i] = (unsigned char)(hn_rand64(id, i) >> 56);
        ti->dequantize(y, raw, N_ELEM);
        printf("type %s dequantize %016llx", ti->name, (unsigned long long)digest_f32(HN_FNV_INIT, y, N_ELEM));
        if (ti->quantize) {
            for (size_t i = 0; i < N_ELEM; i++) /* bell-shaped, with a few outliers */
                x[i] = (hn_rand_f32(7, 4 * i) + hn_rand_f32(7, 4 * i + 1) + hn_rand_f32(7, 4 * i + 2) - 1.5f) *
                       (hn_rand_f32(7, 4 * i + 3) > 0.99f ? 20.0f : 1.0f);
            ti->quantize(again, x, N_ELEM, NULL);
            printf(" quantize %016llx", (unsigned long long)hn_fnv1a(HN_FNV_INIT, again, n_bytes));
        }
        printf("\n");
    }
    return n_seen;
}

/* ---- kernels ---- */

static uint64_t rng_key, rng_at;
static float rndf(void) { return hn_rand_f32(rng_key, rng_at++) * 2.0f - 1.0f; }

/* n_bytes of rows of type t: random codes, scales that keep sums finite. */
static void fill_weights(hn_type t, unsigned char *w, size_t n_bytes)
{
    size_t block = hn_type_get(t)->block_bytes;
    bool has_min = t == HN_Q4_K || t == HN_Q5_K;
    for (size_t i = 0; i < n_bytes; i++) w[i] = (unsigned char)(hn_rand64(rng_key, rng_at++) >> 56);
    for (size_t i = 0; i + block <= n_bytes; i += block) {
        float f = rndf() * (rng_at % 13 ? 0.1f : 1e-7f); /* subnormal halves too */
        uint16_t h = t == HN_BF16 ? hn_f32_to_bf16(f) : hn_f32_to_f16(f);
        if (t == HN_F32) memcpy(w + i, &f, 4);
        else memcpy(w + i + (t == HN_Q6_K ? 208 : 0), &h, 2);
        h = hn_f32_to_f16(rndf() * 0.1f);
        if (has_min) memcpy(w + i + 2, &h, 2);
    }
}

static bool matmuls(const hn_kernels *k, hn_type t)
{
    enum { N_OUT = 37, MAX_COL = 9, MAX_IN = 1056 };
    static const int cols[] = { 1, 2, 4, 7, 9 };
    const hn_type_info *ti = hn_type_get(t);
    const int64_t n_in = ti->block_elems == 256 ? 1024 : ti->block_elems == 32 ? 1056 : 600;
    const hn_act_kind kind = hn_act_kind_of(t);
    const size_t row = (size_t)hn_row_bytes(ti, (uint64_t)n_in), xs = hn_act_row_bytes(kind, n_in);
    const size_t group = hn_packed_group_bytes(t, n_in);
    static float xf[MAX_COL * MAX_IN], y[MAX_COL * N_OUT];
    unsigned char *w = malloc(row * N_OUT), *packed = aligned_alloc(64, hn_packed_bytes(t, n_in, N_OUT));
    unsigned char *x = aligned_alloc(64, xs * MAX_COL), *panel = aligned_alloc(64, HN_PANEL_BYTES(n_in) / 64 * 64);
    bool ok = w && packed && x && panel;
    rng_key = 1000 + (uint64_t)t, rng_at = 0;
    if (ok) {
        fill_weights(t, w, row * N_OUT);
        for (int64_t i = 0; i < MAX_COL * n_in; i++) xf[i] = rndf() * (rng_at % 17 ? 1.0f : 1e4f);
        for (int c = 0; c < MAX_COL; c++) {
            void *dst = x + (size_t)c * xs;
            if (kind == HN_ACT_Q256) k->quantize256(dst, xf + c * n_in, n_in);
            else if (kind == HN_ACT_Q32) k->quantize32(dst, xf + c * n_in, n_in);
            else memcpy(dst, xf + c * n_in, (size_t)n_in * sizeof(float));
        }
        for (int r = 0; r < N_OUT; r += HN_PACK_ROWS)
            hn_pack_group(t, packed + (size_t)(r / HN_PACK_ROWS) * group, w + (size_t)r * row, row,
                          N_OUT - r < HN_PACK_ROWS ? N_OUT - r : HN_PACK_ROWS, n_in);
        printf("kernel matmul %s", ti->name);
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
            for (int how = 0; how < 3; how++) { /* rows; rows with scratch; packed */
                hn_mm m = { y, N_OUT, how == 2 ? packed : w, how == 2 ? group : row, x, xs, n_in, cols[i],
                            0, N_OUT, how ? panel : NULL };
                (how == 2 ? k->packed : k->matmul)[t](&m);
                printf(" %016llx", (unsigned long long)digest_f32(HN_FNV_INIT, y, (size_t)(N_OUT * cols[i])));
            }
        printf("\n");
    }
    free(w);
    free(packed);
    free(x);
    free(panel);
    return ok;
}

static bool attention(const hn_kernels *k, hn_cache_type type)
{
    enum { D = 48, N_KV = 700, N_Q = 3, MAX_TOK = 5 };
    static const char *const names[HN_CACHE_TYPES] = { "f16", "f32", "q8_0" };
    static const struct {
        int n_tok, n_kv;
    } cases[] = { { 1, 1 }, { 1, 17 }, { 1, 64 },  { 1, 513 },     { 1, N_KV },
                  { 5, 1 }, { 5, 60 }, { 5, 509 }, { 5, N_KV - 4 } };
    static float q[MAX_TOK * N_Q * D], out[MAX_TOK * N_Q * D], row[D];
    const size_t plane = (N_KV + HN_SOFT_BLOCK) / HN_KEY_BLOCK * hn_cache_block_bytes(type, D);
    unsigned char *kc = calloc(1, plane), *vc = calloc(1, plane);
    float *scratch = aligned_alloc(64, ((size_t)hn_attn_floats(MAX_TOK * N_Q, D) * sizeof(float) + 63) & ~(size_t)63);
    bool ok = kc && vc && scratch;
    rng_key = 2000 + (uint64_t)type, rng_at = 0;
    for (int t = 0; ok && t < N_KV; t++) {
        for (int i = 0; i < D; i++) row[i] = rndf() * 3.0f;
        k->store_k[type](kc, row, D, t);
        for (int i = 0; i < D; i++) row[i] = rndf();
        k->store_v[type](vc, row, D, t);
    }
    if (ok) {
        for (int i = 0; i < MAX_TOK * N_Q * D; i++) q[i] = rndf() * 3.0f;
        printf("kernel attention %s %016llx", names[type],
               (unsigned long long)hn_fnv1a(hn_fnv1a(HN_FNV_INIT, kc, plane), vc, plane));
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            hn_attn a = { .q = q,
                          .out = out,
                          .q_stride = N_Q * D,
                          .out_stride = N_Q * D,
                          .k = kc,
                          .v = vc,
                          .page_bytes = HN_PAGE / HN_KEY_BLOCK * hn_cache_block_bytes(type, D),
                          .scratch = scratch,
                          .n_tok = cases[i].n_tok,
                          .n_q = N_Q,
                          .n_kv = cases[i].n_kv,
                          .d = D,
                          .scale = 0.25f };
            k->attn[type](&a);
            printf(" %016llx", (unsigned long long)digest_f32(HN_FNV_INIT, out, (size_t)(a.n_tok * N_Q * D)));
        }
        printf("\n");
    }
    free(kc);
    free(vc);
    free(scratch);
    return ok;
}

/* Every half and every brain float there is, through products of one element by 1. */
static void every_half(const hn_kernels *k)
{
    static uint16_t w[65536];
    static unsigned char packed[65536 * 2];
    static float y[65536], one[16] = { 1.0f };
    for (int i = 0; i < 65536; i++) w[i] = (uint16_t)i;
    printf("kernel every 16 bits");
    for (int t = 0; t < 2; t++) {
        hn_type type = t ? HN_BF16 : HN_F16;
        size_t group = hn_packed_group_bytes(type, 1);
        hn_mm m = { y, 65536, w, 2, one, 64, 1, 1, 0, 65536, NULL };
        k->matmul[type](&m);
        printf(" %016llx", (unsigned long long)digest_f32(HN_FNV_INIT, y, 65536));
        for (int r = 0; r < 32768; r += HN_PACK_ROWS)
            hn_pack_group(type, packed + (size_t)r / HN_PACK_ROWS * group, w + 2 * r, 2, HN_PACK_ROWS, 1);
        m = (hn_mm){ y, 65536, packed, group, one, 64, 1, 1, 0, 32768, NULL };
        k->packed[type](&m);
        printf(" %016llx", (unsigned long long)digest_f32(HN_FNV_INIT, y, 32768));
    }
    printf("\n");
}

/* Every kernel of the level in use. */
static bool kernels(void)
{
    static const hn_type fast[] = { HN_F32,  HN_F16,  HN_BF16, HN_Q8_0,   HN_Q4_0,  HN_Q5_0,
                                    HN_Q4_K, HN_Q5_K, HN_Q6_K, HN_IQ4_XS, HN_IQ4_NL };
    hone_error err;
    hn_cpu_level level;
    if (hn_cpu_choose(&level, NULL, &err)) {
        fprintf(stderr, "cross_check: %s\n", err.message);
        return false;
    }
    const hn_kernels *k = hn_kernels_get(level);
    fprintf(stderr, "level %s\n", k->name);
    bool ok = strcmp(k->name, hn_cpu_level_name(level)) == 0;
    for (size_t i = 0; i < sizeof fast / sizeof *fast; i++) ok = ok && matmuls(k, fast[i]);
    for (int t = 0; t < HN_CACHE_TYPES; t++) ok = ok && attention(k, (hn_cache_type)t);

    every_half(k);

    enum { N = 1021 };
    static float x[N], w[N], y[N];
    static const float special[] = { NAN,        INFINITY,  -INFINITY, -0.0f,  0x1p-149f, 0x1p-126f,
                                     -0x1p-101f, 0x1p-100f, 3e38f,     -3e38f, 88.7f,     -103.5f };
    rng_key = 3000, rng_at = 0;
    for (int i = 0; i < N; i++) x[i] = rndf() * (i % 5 ? 4.0f : 120.0f), w[i] = rndf();
    k->rms_norm(y, x, w, N, 1e-5f);
    printf("kernel rms_norm %016llx", (unsigned long long)digest_f32(HN_FNV_INIT, y, N));
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) x[80 * i + 3] = special[i];
    k->silu_mul(y, x, w, N);
    printf(" silu_mul %016llx", (unsigned long long)digest_f32(HN_FNV_INIT, y, N));
    k->exp(y, x, N);
    printf(" exp %016llx\nkernel quantize", (unsigned long long)digest_f32(HN_FNV_INIT, y, N));
    for (size_t i = 0; i < sizeof special / sizeof *special;
         i++) { /* one special value in a block of small or usual ones */
        hn_a256 a;
        unsigned char b[320];
        for (int j = 0; j < 256; j++) w[j] = rndf() * (i % 2 ? 0x1p-120f : 1.0f);
        w[37] = special[i];
        k->quantize256(&a, w, 256);
        k->quantize32(b, w, 256);
        float d = a.d;
        a.d = 0.0f;
        uint64_t h = digest_f32(hn_fnv1a(hn_fnv1a(HN_FNV_INIT, &a, sizeof a), b, 256), &d, 1);
        printf(" %016llx",
               (unsigned long long)digest_f32(hn_fnv1a(h, b + 288, 32), (const float *)(const void *)(b + 256), 8));
    }
    printf("\n");
    return ok;
}

static int fail(const char *what, const hone_error *err)
{
    fprintf(stderr, "cross_check: %s: %s\n", what, err->message);
    return 1;
}

/* ---- models ---- */

static FILE *logits_to;
static bool keep_logits(const float *x, size_t n) { return !logits_to || fwrite(x, sizeof *x, n, logits_to) == n; }

static int one_model(const char *path)
{
    static const char text[] = "Once upon a time, there was a little girl named Zo\xC3\xAB. She had 12 red balls!";
    hone_error err = { 0 };
    hone_context *ctx = NULL;
    hone_model *m = NULL;
    hone_session *s = NULL;
    int32_t *ids = NULL;
    float *logits = NULL;
    size_t n = 0;
    int rc = 1;
    hone_model_info info;

    if (hone_context_new(&ctx, &(hone_context_params){ .n_threads = 2 }, &err)) goto failed;
    if (hone_model_open(&m, path, NULL, &err)) goto failed;
    hone_model_get_info(m, &info);
    if (info.has_tokenizer) {
        if (hone_tokenize(m, text, sizeof text - 1, HONE_TOK_SPECIAL | HONE_TOK_ADD, &ids, &n, &err)) goto failed;
    } else {
        n = 17;
        ids = malloc(n * sizeof *ids);
        if (!ids) goto failed;
        for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(hn_rand64(3, i) % (uint64_t)info.n_vocab);
    }
    printf("model %s %d layers: tokens", info.arch, info.n_layer);
    for (size_t i = 0; i < n; i++) printf(" %d", ids[i]);
    printf("\n");

    hone_session_params sp = { .n_ctx = (int32_t)n + N_NEW, .n_seq = 1, .n_chunk = 7 };
    if (hone_session_new(&s, ctx, m, &sp, &err)) goto failed;
    logits = malloc(n * (size_t)info.n_vocab * sizeof *logits);
    hone_token *batch = calloc(n, sizeof *batch);
    if (!logits || !batch) {
        free(batch);
        goto failed;
    }
    for (size_t i = 0; i < n; i++) batch[i] = (hone_token){ ids[i], (int32_t)i, 0, true };
    hone_status st = hone_decode(s, batch, (int32_t)n, logits, &err);
    free(batch);
    if (st) goto failed;
    for (size_t i = 0; i < n; i++)
        printf("logits %zu %016llx\n", i,
               (unsigned long long)digest_f32(HN_FNV_INIT, logits + i * (size_t)info.n_vocab, (size_t)info.n_vocab));

    if (!keep_logits(logits, n * (size_t)info.n_vocab)) goto failed;

    const float *last = logits + (n - 1) * (size_t)info.n_vocab;
    for (int k = 0; k < N_NEW; k++) {
        int32_t best = 0;
        for (int32_t v = 1; v < info.n_vocab; v++)
            if (last[v] > last[best]) best = v;
        if (hone_prefill(s, &best, 1, &last, &err)) goto failed;
        if (!keep_logits(last, (size_t)info.n_vocab)) goto failed;
        printf("greedy %d %016llx\n", best, (unsigned long long)digest_f32(HN_FNV_INIT, last, (size_t)info.n_vocab));
    }
    rc = 0;
failed:
    if (rc) fail(path, &err);
    free(logits);
    hone_free(ids);
    hone_session_free(s);
    hone_model_close(m);
    hone_context_free(ctx);
    return rc;
}

int main(int argc, char **argv)
{
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "-o") == 0) {
        first = 3;
        if (!(logits_to = fopen(argv[2], "wb"))) {
            perror(argv[2]);
            return 1;
        }
    }
    if (!kernels()) return 1;
    if (types() < 30) {
        fprintf(stderr, "cross_check: the type table is too short\n");
        return 1;
    }
    for (uint64_t k = 0; k < 4; k++)
        printf("random %016llx %a\n", (unsigned long long)hn_rand64(42, k), (double)hn_rand_f32(42, k));
    int rc = 0;
    for (int i = first; i < argc; i++) rc |= one_model(argv[i]);
    if (logits_to && fclose(logits_to) != 0) rc = 1;
    return rc;
}
