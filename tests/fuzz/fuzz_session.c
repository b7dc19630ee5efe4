/* Fuzz target: session files, of each kind of cache and of a recurrent model. The input is a byte of settings, then
 * edits of a good file, or a file; the checksum may be made to fit, so that what is behind it is reached. A file
 * that is refused changes nothing; one that is taken can be gone on from, and saving it again and again gives the
 * same bytes.
 * covers: src/engine/session_file.c src/base/sealed.c */
#include "engine/engine.h"
#include "fuzz_file.h"
#include "fuzz_models.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_KIND = 4, N_CTX = 40, N_SEQ = 2 };

static struct kind {
    hone_session *s, *other;
    uint8_t *good;
    size_t n_good;
    int32_t n_vocab;
} kinds[N_KIND];

static void begin(void)
{
    static const hone_kv_cache_type cache[N_KIND] = { HONE_CACHE_F16, HONE_CACHE_F32, HONE_CACHE_Q8_0, HONE_CACHE_F32 };
    hone_context *ctx;
    hone_error e = { 0 };
    ff_begin();
    FF_MUST(hone_context_new(&ctx, &(hone_context_params){ .n_threads = 1 }, &e) == HONE_OK);
    for (int i = 0; i < N_KIND; i++) {
        hone_model *m = fm_open(i == 3 ? "rwkv7" : "llama");
        hone_model_info info;
        const float *logits;
        hone_session_params p = { .n_ctx = N_CTX, .n_seq = N_SEQ, .n_chunk = 8, .cache = cache[i] };
        hone_model_get_info(m, &info);
        kinds[i].n_vocab = info.n_vocab;
        FF_MUST(hone_session_new(&kinds[i].s, ctx, m, &p, &e) == HONE_OK);
        p.n_seq = 1;
        FF_MUST(hone_session_new(&kinds[i].other, ctx, m, &p, &e) == HONE_OK);
        int32_t ids[19];
        for (int k = 0; k < 19; k++) ids[k] = k * 7 % info.n_vocab;
        FF_MUST(hone_prefill(kinds[i].s, ids, 19, &logits, &e) == HONE_OK);
        FF_MUST(hone_decode(kinds[i].s, &(hone_token){ .id = 1, .seq = 1 }, 1, NULL, &e) == HONE_OK);
        FF_MUST(hone_session_save(kinds[i].s, ff_path("good"), &e) == HONE_OK);
        kinds[i].n_good = ff_get(ff_path("good"), &kinds[i].good);
    }
}

/* The last 8 bytes are those of base/sealed.h. */
static void seal(uint8_t *p, size_t n)
{
    if (n < 8) return;
    uint64_t h = hn_fnv1a(HN_FNV_INIT, p, n - 8);
    memcpy(p + n - 8, &h, 8);
}

static void same_again(hone_session *s)
{
    hone_error e = { 0 };
    uint8_t *a, *b;
    FF_MUST(hone_session_save(s, ff_path("a"), &e) == HONE_OK);
    FF_MUST(hone_session_load(s, ff_path("a"), &e) == HONE_OK);
    FF_MUST(hone_session_save(s, ff_path("b"), &e) == HONE_OK);
    size_t n = ff_get(ff_path("a"), &a), k = ff_get(ff_path("b"), &b);
    FF_MUST(n == k && memcmp(a, b, n) == 0);
    free(a);
    free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_error e = { 0 };
    ff_in in = { data, size };
    if (!kinds[0].s) begin();
    unsigned how = ff_u8(&in);
    struct kind *k = &kinds[how & 3];
    size_t n = how & 4 ? in.n : k->n_good;
    uint8_t *file = how & 4 ? NULL : ff_edited(k->good, &n, &in);
    if (how & 4) {
        FF_MUST((file = malloc(n + 1)) != NULL);
        memcpy(file, in.p, n);
    }
    if (how & 8) seal(file, n);
    const char *path = ff_put("in", file, n);
    hone_session *s = how & 16 ? k->other : k->s;
    int32_t n_seq = how & 16 ? 1 : N_SEQ, before[N_SEQ];
    for (int32_t i = 0; i < n_seq; i++) before[i] = hone_seq_length(s, i);
    hone_status st = hone_session_load(s, path, &e);
    if (st != HONE_OK) FF_MUST(strncmp(e.message, path, strlen(path)) == 0);
    for (int32_t i = 0; i < n_seq; i++) {
        int32_t len = hone_seq_length(s, i);
        FF_MUST(st == HONE_OK ? len >= 0 && (len <= N_CTX || (how & 3) == 3) : len == before[i]);
        hone_token t = { .id = (int32_t)(how % (unsigned)k->n_vocab), .pos = len, .seq = i };
        hone_status ran = hone_decode(s, &t, 1, NULL, &e);
        FF_MUST(ran == HONE_OK || (ran == HONE_E_CTX && len == N_CTX) || ran == HONE_E_NUMERIC || (how & 3) == 3);
        FF_MUST(hone_seq_truncate(s, i, ran == HONE_OK && (how & 3) != 3 ? len : 0, &e) == HONE_OK);
    }
    if (st == HONE_OK) same_again(s);
    free(file);
    return 0;
}
