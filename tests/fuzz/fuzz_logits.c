/* Fuzz target: files of logits, kept as a reference. The input is a byte of settings, then edits of a good file, or a
 * file; the checksums may be made to fit. A file that is accepted has ids of its vocabulary and finite shapes, and
 * all of its rows can be asked for.
 * covers: src/lab/quality/logits_file.c */
#include "fuzz_models.h"
#include "lab/quality/perplexity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_VOCAB = 7, N_CTX = 6, HEAD = 224, DIGEST = 32 };

static uint8_t *good[2];
static size_t n_good[2];

static void begin(void)
{
    hone_error e = { 0 };
    hn_windows w;
    int32_t ids[4 * N_CTX];
    ff_begin();
    for (int i = 0; i < 4 * N_CTX; i++) ids[i] = i % N_VOCAB;
    FF_MUST(hn_windows_make(&w, ids, 4 * N_CTX, N_CTX, 0, -1, 0, &e) == HONE_OK);
    for (int k = 0; k < 2; k++) {
        hn_logits_file *f;
        hn_logits_head head = { .bits = k ? 16 : 32, .n_vocab = N_VOCAB, .fingerprint = 5, .label = "fuzz" };
        const char *path = ff_path("good");
        float rows[N_VOCAB];
        FF_MUST(hn_logits_create(&f, path, &head, &w, &e) == HONE_OK);
        for (int64_t r = 0; r < hn_windows_rows(&w); r++) {
            for (int i = 0; i < N_VOCAB; i++) rows[i] = (float)((r * 7 + i * 3) % 11) - 4;
            FF_MUST(hn_logits_put(f, rows, 1, &e) == HONE_OK);
        }
        FF_MUST(hn_logits_finish(f, &e) == HONE_OK);
        hn_logits_close(f);
        n_good[k] = ff_get(path, &good[k]);
    }
    hn_windows_free(&w);
    hone_model *m = fm_open("llama"), *other = fm_open("rwkv7"); /* what the head says of a vocabulary */
    unsigned char a[32], b[32];
    FF_MUST(hn_vocab_hash(a, m) && hn_vocab_hash(b, other) && memcmp(a, b, 32) != 0);
    FF_MUST(hn_vocab_compare(m, "a", m, "b", &e) == HONE_OK && hn_vocab_compare(m, "a", other, "b", &e) == HONE_E_ARG);
    hone_model_close(m);
    hone_model_close(other);
}

static void digest(uint8_t *to, const uint8_t *p, size_t n)
{
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, p, n);
    hn_sha256_end(&s, to);
}

/* Of the head, and of every window as the head describes them (see the file's drawing). */
static void fix_sums(uint8_t *p, size_t n)
{
    uint32_t bits;
    int32_t n_vocab, n_ctx, first;
    int64_t n_ids;
    if (n < HEAD) return;
    memcpy(&bits, p + 12, 4), memcpy(&n_vocab, p + 16, 4), memcpy(&n_ctx, p + 20, 4), memcpy(&first, p + 28, 4),
        memcpy(&n_ids, p + 40, 8);
    if (n_ids < 0 || (uint64_t)n_ids > n || n_vocab < 1 || n_vocab > 1 << 16 || n_ctx < 1 || n_ctx > 1 << 16 ||
        first < 0 || first > n_ctx)
        return;
    size_t at = HEAD + 4 * (size_t)n_ids, row = bits == 32 ? 4 * (size_t)n_vocab : 8 + 2 * (size_t)n_vocab;
    size_t window = row * (size_t)(n_ctx - 1 - first > 0 ? n_ctx - 1 - first : 0);
    if (at + DIGEST > n) return;
    digest(p + at, p, at);
    for (at += DIGEST; window && at + window + DIGEST <= n; at += window + DIGEST)
        digest(p + at + window, p + at, window);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ff_in in = { data, size };
    hone_error e = { 0 };
    if (!good[0]) begin();
    unsigned how = ff_u8(&in);
    size_t n = n_good[how & 1];
    uint8_t *file;
    if (how & 2) {
        FF_MUST((file = malloc(in.n + 1)) != NULL);
        memcpy(file, in.p, n = in.n);
    } else {
        file = ff_edited(good[how & 1], &n, &in);
    }
    if (how & 4) fix_sums(file, n);
    const char *path = ff_put("in", file, n);
    free(file);
    hn_logits_file *f = NULL;
    hn_logits_head head;
    hn_windows w;
    hn_logits_is_file(path);
    hone_status st = hn_logits_open(&f, path, &head, &w, &e);
    FF_MUST((st == HONE_OK) == (f != NULL) && (f || strstr(e.message, path) || st == HONE_E_NOMEM));
    if (!f) return 0;
    FF_MUST(head.n_vocab >= 1 && (head.bits == 16 || head.bits == 32) && w.n_window >= 1);
    for (int64_t i = 0; i < w.n_ids; i++) FF_MUST(w.ids[i] >= 0 && w.ids[i] < head.n_vocab);
    float *row = malloc((size_t)head.n_vocab * sizeof *row);
    FF_MUST(row);
    int64_t rows = hn_windows_rows(&w);
    for (int64_t r = 0; r < rows && st == HONE_OK; r++) {
        int32_t id = hn_windows_target(&w, r);
        FF_MUST(id >= 0 && id < head.n_vocab);
        st = hn_logits_get(f, row, 1, &e);
        hn_kl_row out;
        if (st == HONE_OK) hn_kl_of_row(&out, row, row, head.n_vocab, id);
    }
    if (st == HONE_OK) FF_MUST(hn_logits_get(f, row, 1, &e) != HONE_OK); /* there are no more */
    free(row);
    hn_logits_close(f);
    hn_windows_free(&w);
    return 0;
}
