/* Prints digests of outputs that must not depend on the machine: decoders and
 * quantizers of every type, random numbers, and for each model named on the command
 * line its tokens, logits and greedy continuation. Built for several architectures and
 * run at several CPU levels; the outputs are compared byte for byte (compare.sh).
 * Usage: cross_check [MODEL.gguf…] */
#include "quant/quant.h"

#include <stdlib.h>

enum { N_ELEM = 4096, N_NEW = 12 };

static uint64_t digest_f32(uint64_t h, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u = hn_f32_bits(x[i]);
        if ((u & 0x7FFFFFFF) > 0x7F800000) u = 0x7FC00000; /* the sign of a NaN is the machine's business */
        unsigned char b[4] = { (unsigned char)u, (unsigned char)(u >> 8), (unsigned char)(u >> 16), (unsigned char)(u >> 24) };
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

static int fail(const char *what, const hone_error *err)
{
    fprintf(stderr, "cross_check: %s: %s\n", what, err->message);
    return 1;
}

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
        n = 24;
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
        printf("logits %zu %016llx\n", i, (unsigned long long)digest_f32(HN_FNV_INIT, logits + i * (size_t)info.n_vocab, (size_t)info.n_vocab));

    const float *last = logits + (n - 1) * (size_t)info.n_vocab;
    for (int k = 0; k < N_NEW; k++) {
        int32_t best = 0;
        for (int32_t v = 1; v < info.n_vocab; v++)
            if (last[v] > last[best]) best = v;
        if (hone_prefill(s, &best, 1, &last, &err)) goto failed;
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
    if (types() < 30) {
        fprintf(stderr, "cross_check: the type table is too short\n");
        return 1;
    }
    for (uint64_t k = 0; k < 4; k++) printf("random %016llx %a\n", (unsigned long long)hn_rand64(42, k), (double)hn_rand_f32(42, k));
    int rc = 0;
    for (int i = 1; i < argc; i++) rc |= one_model(argv[i]);
    return rc;
}
