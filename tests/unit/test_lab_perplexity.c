/* Windows, teacher forcing and perplexity against a plain computation over every window;
 * divergence against closed forms; files of logits, whole and damaged. */
#include "lab/quality/perplexity.h"
#include "lab/quality/sketch.h"
#include <math.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { NV = 23, N_IDS = 407, BOS = 22 };

/* A model that remembers: its logits depend on every id of the sequence so far. */
typedef struct fake {
    uint64_t past[128];
    int32_t length[128];
    float scale;
    int64_t calls, tokens, poison, stop;
    int biggest;
} fake;

static float logit(uint64_t past, int j, float scale)
{
    return (float)(hn_rand64(past, (uint64_t)j) % 4001) / 500.0f +
           scale * (float)(hn_rand64(past ^ 77, (uint64_t)j) % 100);
}
static uint64_t remember(uint64_t past, int32_t id) { return hn_mix64(past * 31 + (uint64_t)id + 1); }

static hone_status run_fake(void *arg, const hone_token *t, int32_t n, float *logits, hone_error *err)
{
    fake *f = arg;
    f->calls++;
    if (n > f->biggest) f->biggest = n;
    for (int32_t i = 0; i < n; i++) {
        if (f->stop && f->tokens == f->stop) return HN_FAIL(err, HONE_E_INTERRUPTED, "stop");
        f->tokens++;
        if (t[i].pos == 0) f->length[t[i].seq] = 0, f->past[t[i].seq] = 0;
        assert_int_equal(t[i].pos, f->length[t[i].seq]); /* without gaps */
        f->length[t[i].seq]++;
        f->past[t[i].seq] = remember(f->past[t[i].seq], t[i].id);
        if (!t[i].want_logits) continue;
        for (int j = 0; j < NV; j++) logits[j] = logit(f->past[t[i].seq], j, f->scale);
        if (f->poison && f->tokens == f->poison) logits[5] = NAN;
        logits += NV;
    }
    return HONE_OK;
}

static void make_ids(int32_t *ids, int n)
{
    for (int i = 0; i < n; i++) ids[i] = (int32_t)(hn_rand64(9, (uint64_t)i) % NV);
}

static hn_windows windows(int32_t n_ctx, int32_t stride, int32_t bos, int64_t most)
{
    int32_t ids[N_IDS];
    hn_windows w;
    hone_error err;
    make_ids(ids, N_IDS);
    assert_int_equal(hn_windows_make(&w, ids, N_IDS, n_ctx, stride, bos, most, &err), HONE_OK);
    return w;
}

/* The convention once more, as a loop over windows: the mean of -ln p. */
static double plain_nll(int32_t n_ctx, int32_t bos, int n_win, float scale, double *each)
{
    int32_t ids[N_IDS];
    double sum = 0;
    int n = 0;
    make_ids(ids, N_IDS);
    for (int win = 0; win < n_win; win++) {
        uint64_t past = 0;
        for (int k = 0; k < n_ctx - 1; k++) {
            past = remember(past, k == 0 && bos >= 0 ? bos : ids[win * n_ctx + k]);
            if (k < n_ctx / 2) continue;
            double total = 0;
            for (int j = 0; j < NV; j++) total += exp((double)logit(past, j, scale));
            double nll = log(total) - (double)logit(past, ids[win * n_ctx + k + 1], scale);
            if (each) each[n] = nll;
            sum += nll;
            n++;
        }
    }
    return sum / n;
}

static void convention(void **s)
{
    static const int32_t sizes[] = { 4, 5, 16, 33, 64, 100, 203 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int32_t bos = -1; bos <= BOS; bos += BOS + 1)
            for (int32_t batch = 1; batch <= 512; batch *= 8) {
                int32_t c = sizes[i];
                fake f = { .scale = 0 };
                hn_logits_source src = { .n_vocab = NV, .run = run_fake, .arg = &f };
                hn_windows w = windows(c, 0, bos, 0);
                hn_force_params p = { .n_batch = batch, .n_threads = 2 };
                hn_ppl out;
                hone_error err;
                assert_int_equal(hn_ppl_run(&out, &w, &src, &p, &err), HONE_OK);
                assert_int_equal(w.n_window, N_IDS / c);
                assert_int_equal(out.n, w.n_window * (c - 1 - c / 2));
                assert_int_equal(f.tokens, w.n_window * (c - 1)); /* the last token of a window is never run */
                double want = plain_nll(c, bos, N_IDS / c, 0, NULL);
                assert_true(fabs(out.mean.mean - want) < 1e-12 * want);
                assert_true(fabs(out.ppl - exp(want)) < 1e-10 * exp(want));
                assert_true(fabs(hn_ppl_after(&out, &w, 1) - exp(plain_nll(c, bos, 1, 0, NULL))) < 1e-10 * exp(want));
                hn_ppl_free(&out);
                hn_windows_free(&w);
            }
}

static void limits(void **s)
{
    int32_t ids[N_IDS];
    hn_windows w;
    hone_error err;
    make_ids(ids, N_IDS);
    assert_int_equal(hn_windows_make(&w, ids, N_IDS, 204, 0, -1, 0, &err), HONE_E_ARG); /* 2 · 204 = 408 */
    assert_non_null(strstr(err.message, "407 tokens"));
    assert_non_null(strstr(err.message, "at least 408"));
    assert_int_equal(hn_windows_make(&w, ids, N_IDS, 3, 0, -1, 0, &err), HONE_E_ARG);
    assert_int_equal(hn_windows_make(&w, ids, N_IDS, 16, 16, -1, 0, &err), HONE_E_ARG);
    assert_int_equal(hn_windows_make(&w, ids, 0, 16, 0, -1, 0, &err), HONE_E_ARG);
    w = windows(100, 0, -1, 2);
    assert_int_equal(w.n_window, 2);
    assert_int_equal(w.n_possible, 4);
    assert_int_equal(hn_windows_target(&w, 0), ids[51]);
    assert_int_equal(hn_windows_target(&w, 48), ids[99]);
    assert_int_equal(hn_windows_target(&w, 49), ids[151]);
    hn_windows_free(&w);
    w = windows(64, 16, BOS, 0); /* (407 - 64 + 15) / 16 */
    assert_int_equal(w.n_window, 22);
    assert_int_equal(hn_windows_scored(&w), 16);
    for (int r = 0; r < 22 * 16; r++) assert_int_equal(hn_windows_target(&w, r), ids[48 + r]); /* each id once */
    hn_windows_free(&w);
    /* an id beyond the vocabulary never reaches the model */
    ids[300] = NV;
    assert_int_equal(hn_windows_make(&w, ids, N_IDS, 16, 0, -1, 0, &err), HONE_OK);
    hn_pieces p;
    assert_int_equal(hn_pieces_begin(&p, &w, NV, 64, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "number 300"));
    hn_windows_free(&w);
}

static void broken_and_stopped(void **s)
{
    hn_windows w = windows(40, 0, -1, 0);
    hn_force_params p = { .n_batch = 40, .n_threads = 1 };
    hn_ppl out;
    hone_error err;
    fake f = { .poison = 3 * 39 + 25 }; /* place 24 of window 3 */
    hn_logits_source src = { .n_vocab = NV, .run = run_fake, .arg = &f };
    assert_int_equal(hn_ppl_run(&out, &w, &src, &p, &err), HONE_OK);
    assert_int_equal(out.verdict.state, HN_INVALID);
    assert_non_null(strstr(out.verdict.reason, "window 3, token 24"));
    assert_int_equal(out.n_window, 3);
    assert_true(fabs(out.ppl - exp(plain_nll(40, -1, 3, 0, NULL))) < 1e-9);
    hn_ppl_free(&out);
    f = (fake){ .stop = 5 * 39 + 30 };
    assert_int_equal(hn_ppl_run(&out, &w, &src, &p, &err), HONE_E_INTERRUPTED);
    assert_int_equal(out.n_window, 5); /* what is complete stays */
    assert_true(fabs(out.ppl - exp(plain_nll(40, -1, 5, 0, NULL))) < 1e-9);
    hn_ppl_free(&out);
    hn_windows_free(&w);
}

static void scores(void **s)
{
    float x[4] = { 0, 0, 0, 0 }, huge[3] = { 1e30f, 1e30f, -1e30f }, bad[2] = { 1, INFINITY };
    assert_true(fabs(hn_log_sum_exp(x, 4) - log(4)) < 1e-15);
    assert_true(hn_log_sum_exp(huge, 3) == (double)1e30f + log(2));
    assert_true(isnan(hn_log_sum_exp(bad, 2)));
    bad[1] = NAN;
    assert_true(isnan(hn_log_sum_exp(bad, 2)));
    double v[5] = { 1, 2, 3, 4, 10 };
    hn_mean m = hn_mean_of(v, 5);
    assert_true(m.mean == 4 && fabs(m.error - sqrt(50.0 / 5 / 4)) < 1e-15);
    assert_true(isnan(hn_mean_of(v, 1).error) && isnan(hn_mean_of(v, 0).mean));
    assert_true(hn_quantile(v, 5, 0.5) == 3 && hn_quantile(v, 5, 1) == 10 &&
                fabs(hn_quantile(v, 5, 0.9) - 7.6) < 1e-12);
}

/* ---- divergence ------------------------------------------------------------------------------ */

static void closed_forms(void **s)
{
    hn_kl_row r;
    float half[2] = { 3, 3 }, tilted[2] = { (float)log(3), 0 }; /* 1/2 1/2 against 3/4 1/4 */
    assert_true(hn_kl_of_row(&r, half, tilted, 2, 1));
    assert_true(fabs(r.kl - (0.5 * log(0.5 / 0.75) + 0.5 * log(0.5 / 0.25))) < 1e-7);
    assert_true(fabs(r.nll_ref - log(2)) < 1e-12 && fabs(r.nll_new - log(4)) < 1e-7);
    assert_true(r.same_top); /* ties go to the lowest id */
    assert_true(hn_kl_of_row(&r, tilted, half, 2, 0));
    assert_true(fabs(r.kl - (0.75 * log(1.5) + 0.25 * log(0.5))) < 1e-7);
    float a[3] = { 1, 2, 3 }, shifted[3] = { 11, 12, 13 }, swapped[3] = { 3, 2, 1 }, far[3] = { -300, 0, 300 };
    assert_true(hn_kl_of_row(&r, a, a, 3, 0) && r.kl == 0);
    assert_true(hn_kl_of_row(&r, a, shifted, 3, 0) && r.kl < 1e-14);
    assert_true(hn_kl_of_row(&r, a, swapped, 3, 0) && !r.same_top);
    double p = exp(3) / (exp(1) + exp(2) + exp(3)), q = exp(1) / (exp(1) + exp(2) + exp(3));
    assert_true(fabs(r.kl - (p - q) * 2) < 1e-12);                             /* (p-q)·ln(p/q), ln(p/q) = 2 */
    assert_true(hn_kl_of_row(&r, far, a, 3, 0) && isfinite(r.kl) && r.kl > 0); /* probabilities that underflow */
    a[1] = NAN;
    assert_false(hn_kl_of_row(&r, a, shifted, 3, 0));
    assert_false(hn_kl_of_row(&r, shifted, a, 3, 0));
}

static hn_kl compare(fake *ref, fake *now, int32_t batch, hone_status want)
{
    hn_windows w = windows(40, 0, BOS, 0);
    hn_logits_source a = { .n_vocab = NV, .run = run_fake, .arg = ref },
                     b = { .n_vocab = NV, .run = run_fake, .arg = now };
    hn_kl_side side[2] = { { .src = &a }, { .src = &b } };
    hn_force_params p = { .n_batch = batch, .n_threads = 2 };
    hn_kl out;
    hone_error err;
    assert_int_equal(hn_kl_run(&out, &w, &side[0], &side[1], 1, NV, &p, &err), want);
    hn_windows_free(&w);
    return out;
}

static void divergence(void **s)
{
    double na[400], nb[400], d[400];
    fake a = { .scale = 0 }, b = { .scale = 0.01f };
    hn_kl k = compare(&a, &b, 512, HONE_OK);
    int64_t n = 10 * 19;
    assert_int_equal(k.n, n);
    assert_true(fabs(k.nll_ref.mean - plain_nll(40, BOS, 10, 0, na)) < 1e-12);
    assert_true(fabs(k.nll_new.mean - plain_nll(40, BOS, 10, 0.01f, nb)) < 1e-12);
    double square = 0;
    for (int i = 0; i < n; i++) {
        d[i] = nb[i] - na[i];
        square += (exp(-nb[i]) - exp(-na[i])) * (exp(-nb[i]) - exp(-na[i]));
    }
    assert_true(fabs(k.ln_ratio.mean - hn_mean_of(d, n).mean) < 1e-12 &&
                fabs(k.ln_ratio.error - hn_mean_of(d, n).error) < 1e-12);
    assert_true(fabs(k.rms_dp - sqrt(square / (double)n)) < 1e-12);
    assert_true(k.kl.mean > 0 && k.kl_max >= k.kl_q[4] && k.kl_q[4] >= k.kl_q[3] && k.kl_q[3] >= k.kl_q[0] &&
                !k.identical);
    fake a2 = { .scale = 0 }, b2 = { .scale = 0.01f };
    hn_kl again = compare(&a2, &b2, 1, HONE_OK); /* cut otherwise: the same to the last bit */
    assert_true(again.kl.mean == k.kl.mean && again.kl_max == k.kl_max && again.ln_ratio.error == k.ln_ratio.error);
    fake c = { .scale = 0 }, e = { .scale = 0 };
    k = compare(&c, &e, 64, HONE_OK);
    assert_true(k.identical && k.kl.mean == 0 && k.kl_max == 0 && k.same_top == 1 && k.ln_ratio.mean == 0 &&
                k.rms_dp == 0);
}

static void divergence_of_broken_models(void **s)
{
    fake a = { .scale = 0 }, b = { .poison = 2 * 39 + 31 };
    hn_kl k = compare(&a, &b, 40, HONE_OK);
    assert_int_equal(k.verdict.state, HN_INVALID);
    assert_non_null(strstr(k.verdict.reason, "the model: window 2, token 30"));
    assert_int_equal(k.n, 2 * 19 + 10); /* what came before is still there */
    fake c = { .poison = 2 * 39 + 31 }, d = { .scale = 0 };
    k = compare(&c, &d, 40, HONE_OK);
    assert_int_equal(k.verdict.state, HN_INVALID);
    assert_non_null(strstr(k.verdict.reason, "the reference: window 2, token 30"));
    fake e = { .scale = 0 }, f = { .stop = 4 * 39 };
    k = compare(&e, &f, 40, HONE_E_INTERRUPTED);
    assert_int_equal(k.n, 4 * 19);
}

/* ---- files of logits ----------------------------------------------------------------------------- */

static char folder[] = "/tmp/hone-test-XXXXXX";
static char path[200];

static void save(int32_t bits, hn_windows *w)
{
    fake f = { .scale = 0.3f };
    hn_logits_source src = { .n_vocab = NV, .run = run_fake, .arg = &f };
    hn_logits_head head = { .bits = bits, .n_vocab = NV, .fingerprint = 42, .label = "a fake" };
    hn_kl_side ref = { .src = &src };
    hn_force_params p = { .n_batch = 100, .n_threads = 1 };
    hone_error err;
    assert_int_equal(hn_logits_create(&ref.save, path, &head, w, &err), HONE_OK);
    assert_int_equal(hn_kl_run(NULL, w, &ref, NULL, 0, NV, &p, &err), HONE_OK);
    assert_int_not_equal(access(path, F_OK), 0); /* not before it is whole */
    assert_int_equal(hn_logits_finish(ref.save, &err), HONE_OK);
    hn_logits_close(ref.save);
}

static hn_kl against_file(hone_status want, hone_error *err)
{
    fake f = { .scale = 0.3f };
    hn_logits_source src = { .n_vocab = NV, .run = run_fake, .arg = &f };
    hn_kl_side ref = { .src = NULL }, side = { .src = &src };
    hn_logits_head head;
    hn_windows w;
    hn_force_params p = { .n_batch = 64, .n_threads = 1 };
    hn_kl k = { 0 };
    hone_status st = hn_logits_open(&ref.file, path, &head, &w, err);
    if (st == HONE_OK) {
        assert_string_equal(head.label, "a fake");
        assert_int_equal(head.fingerprint, 42);
        assert_int_equal(w.bos, BOS);
        st = hn_kl_run(&k, &w, &ref, &side, 1, NV, &p, err);
        hn_logits_close(ref.file);
        hn_windows_free(&w);
    }
    assert_int_equal(st, want);
    return k;
}

static void files(void **s)
{
    hone_error err;
    hn_windows w = windows(40, 0, BOS, 3);
    save(32, &w);
    assert_true(hn_logits_is_file(path));
    hn_kl k = against_file(HONE_OK, &err);
    assert_true(k.identical && k.kl_max == 0 && k.n == 57);
    unlink(path);
    save(16, &w);
    k = against_file(HONE_OK, &err);
    assert_true(!k.identical && k.kl_max > 0 && k.kl_max < 1e-7); /* 16 bits are not exact, and good enough for 1e-5 */
    unlink(path);
    hn_windows_free(&w);
}

static void damaged_files(void **s)
{
    hone_error err;
    hn_windows w = windows(16, 0, BOS, 2);
    save(32, &w);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    unsigned char *all = malloc((size_t)size + 1);
    rewind(f);
    assert_int_equal(fread(all, 1, (size_t)size, f), size);
    fclose(f);
    for (long i = 0; i < size; i++) { /* any one byte */
        f = fopen(path, "r+b");
        fseek(f, i, SEEK_SET);
        fputc(all[i] ^ (1 << (i % 8)), f);
        fclose(f);
        against_file(HONE_E_FORMAT, &err);
        f = fopen(path, "r+b");
        fseek(f, i, SEEK_SET);
        fputc(all[i], f);
        fclose(f);
    }
    against_file(HONE_OK, &err);
    for (long n = 0; n < size; n += 1 + size / 97) { /* cut off */
        assert_int_equal(truncate(path, n), 0);
        against_file(HONE_E_FORMAT, &err);
        f = fopen(path, "wb");
        fwrite(all, 1, (size_t)size, f);
        fclose(f);
    }
    f = fopen(path, "ab");
    fputc(0, f);
    fclose(f);
    against_file(HONE_E_FORMAT, &err);
    assert_non_null(strstr(err.message, "its head promises"));
    unlink(path);
    against_file(HONE_E_IO, &err);
    free(all);
    hn_windows_free(&w);
}

static void unfinished_files(void **s)
{
    hn_logits_file *f;
    hone_error err;
    hn_windows w = windows(16, 0, -1, 2);
    hn_logits_head head = { .bits = 32, .n_vocab = NV };
    float row[NV] = { 0 };
    assert_int_equal(hn_logits_create(&f, path, &head, &w, &err), HONE_OK);
    assert_int_equal(hn_logits_put(f, row, 1, &err), HONE_OK);
    assert_int_equal(hn_logits_finish(f, &err), HONE_E_ARG);
    hn_logits_close(f);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing is left behind */
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/hone-test-XXXXXX")));
    snprintf(path, sizeof path, "%s/none/logits", folder);
    assert_int_equal(hn_logits_create(&f, path, &head, &w, &err), HONE_E_IO);
    hn_windows_free(&w);
}

static void fixed_text(void **s)
{
    static const char want[] = "f928470b933676b1029b6d6b730ffa8deb03aa8e27a9e6b48a9bdceab09619f7";
    unsigned char d[32];
    char hex[65];
    hn_sha256 h;
    hn_sha256_init(&h);
    hn_sha256_add(&h, hn_q_corpus, strlen(hn_q_corpus));
    hn_sha256_end(&h, d);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", d[i]);
    assert_string_equal(hn_q_corpus_name, "t1");
    assert_string_equal(hex, want); /* another text needs another name */
    int32_t ids[1000];
    hn_q_corpus_random(ids, 1000, 7);
    for (int i = 0; i < 1000; i++) assert_true(ids[i] >= 0 && ids[i] < 7);
}

int main(void)
{
    if (!mkdtemp(folder)) return 77;
    snprintf(path, sizeof path, "%s/logits", folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convention),
        cmocka_unit_test(limits),
        cmocka_unit_test(broken_and_stopped),
        cmocka_unit_test(scores),
        cmocka_unit_test(closed_forms),
        cmocka_unit_test(divergence),
        cmocka_unit_test(divergence_of_broken_models),
        cmocka_unit_test(files),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(unfinished_files),
        cmocka_unit_test(fixed_text),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return rc;
}
