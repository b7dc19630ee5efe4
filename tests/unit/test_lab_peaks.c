/* Measured peaks: the loops give what their work gives; what is stored comes back, what is
 * damaged, of another machine or not stored says so; the arithmetic of the roof; a rate
 * above it is invalid. */
#include "gguf_bytes.h"
#include "kernels/peaks.h"
#include "quant/quant.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/stats/verdict.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[64];

static hn_peaks example(void)
{
    hn_peaks p = { .hash = "0123abcd",
                   .level = "avx2",
                   .ts = "2025-01-31T12:34:56Z",
                   .cpu_model = "Some CPU",
                   .kernel = "Linux 6",
                   .cores = 4,
                   .clock_ghz = { 3.5, 3.6 },
                   .cache_bytes = 32000000,
                   .buffer_bytes = 536000000,
                   .huge_pages = 0.5,
                   .load = 0.25,
                   .steal_pct = 0.5,
                   .cpus = "0,1,2,3",
                   .bound = true };
    const double one[] = { 20, 200, 100, 150, 50, 60 };
    for (int k = 0; k < HN_PEAK_KINDS; k++) {
        snprintf(p.how[k], sizeof p.how[k], "loop %d", k);
        if (k == HN_PEAK_BF16) continue;
        p.n[k] = 3;
        for (int i = 0; i < 3; i++)
            p.at[k][i] = (hn_peak_point){ .threads = 1 << i,
                                          .best = one[k] * (1 << i),
                                          .most = 1.1 * one[k] * (1 << i),
                                          .median = one[k] * (1 << i),
                                          .spread = 0.125,
                                          .cpu_use = 1,
                                          .streams = k ? 0 : 8,
                                          .ahead = k ? 0 : 256 };
    }
    p.at[HN_PEAK_READ_BW][2].best = 36; /* reading saturates, and then loses a little */
    p.at[HN_PEAK_READ_BW][2].median = 35;
    p.at[HN_PEAK_READ_BW][2].most = 38;
    return p;
}

static hn_environ example_machine(void)
{
    hn_environ e = { .hash = "0123abcd" };
    return e;
}

static void spill(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

/* ---- loops --------------------------------------------------------------------------------- */

static void test_loops_do_their_work(void **state)
{
    enum { RUN = 16 * HN_PEAK_STEP, MOST = 16 * RUN };
    static _Alignas(64) uint64_t data[MOST / 8];
    uint64_t v;
    if (hn_peak_chain(&v, 3)) {
        uint64_t x = 0x0123456789ABCDEFu;
        for (int i = 0; i < 3 * 64 * 7; i++) x = x >> 1 | x << 63;
        assert_true(v == x && v == hn_peak_chain_expect(3));
    }
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!hn_cpu_has((hn_cpu_level)l)) continue;
        const hn_peak_loops *p = hn_peak_loops_get((hn_cpu_level)l);
        const hn_peak_op *ops[] = { &p->int8, &p->f32, &p->bf16 };
        for (int i = 0; i < 3; i++)
            for (int64_t n = 1; ops[i]->how && n < 30000; n = 3 * n + 1)
                assert_true(ops[i]->run(n) == hn_peak_expect(ops[i], n));
        for (int s = 1; s <= 16; s *= 2)
            for (size_t ahead = 0; ahead <= 256; ahead += 256) {
                uint64_t sum = 0;
                for (size_t i = 0; i < (size_t)s * RUN / 8; i++) sum += data[i] = hn_rand64((uint64_t)s, i);
                assert_true(p->read((const char *)data, RUN, s, ahead) == sum);
                data[(size_t)s * RUN / 8 - 1] ^= 1; /* the last word counts */
                assert_true(p->read((const char *)data, RUN, s, ahead) != sum);
            }
    }
}

static void test_quick_measurement(void **state)
{
    hn_peaks p;
    hone_error err;
    hn_peaks_params params = { .n_threads = 2, .quick = true };
    assert_int_equal(hn_peaks_measure(&p, &params, &err), HONE_OK);
    for (int k = 0; k < HN_PEAK_KINDS; k++) {
        if (k == HN_PEAK_BF16 && p.n[k] == 0) continue;
        assert_int_equal(p.n[k], 2);
        for (int i = 0; i < 2; i++)
            assert_true(p.at[k][i].threads == i + 1 && p.at[k][i].best > 0 && p.at[k][i].median > 0);
    }
    assert_true(p.quick);
    char path[160];
    snprintf(path, sizeof path, "%s/quick.json", dir);
    assert_int_equal(hn_peaks_store(&p, path, &err), HONE_E_ARG);
    assert_int_not_equal(access(path, F_OK), 0);
    params.cpu = "vax";
    assert_int_equal(hn_peaks_measure(&p, &params, &err), HONE_E_ARG);
}

/* A second look raises what is faster now, and leaves what is not. */
static void test_measured_again(void **state)
{
    hn_peaks p, was;
    hone_error err;
    const hn_peaks_params params = { .n_threads = 2, .quick = true };
    const unsigned kinds = 1u << HN_PEAK_INT8 | 1u << HN_PEAK_READ_BW;
    assert_int_equal(hn_peaks_measure(&p, &params, &err), HONE_OK);
    const double int8 = p.at[HN_PEAK_INT8][1].best, f32 = p.at[HN_PEAK_F32][1].most;
    for (int k = 0; k < HN_PEAK_DISPATCH; k++)
        for (int32_t i = 0; i < p.n[k]; i++) {
            hn_peak_point *at = &p.at[k][i];
            at->best /= 1000, at->most /= 1000, at->median /= 1000;
        }
    p.doubts[0] = 0;
    assert_true(hn_peaks_again(&p, kinds, 2, NULL));
    for (int i = 0; i < 2; i++) {
        const hn_peak_point *at = &p.at[HN_PEAK_INT8][i];
        assert_true(at->threads == i + 1 && at->best > 0.05 * int8 && at->most >= at->best && at->median > 0);
    }
    assert_true(p.at[HN_PEAK_F32][1].most < 0.01 * f32); /* nobody asked for it */
    assert_non_null(strstr(p.doubts, "int8 with 2 threads: "));
    assert_non_null(strstr(p.doubts, "reading with 1 thread: "));
    assert_int_equal(hn_peaks_check(&p, &err), HONE_OK);

    for (int k = 0; k < HN_PEAK_DISPATCH; k++)
        for (int32_t i = 0; i < p.n[k]; i++) p.at[k][i].best *= 100, p.at[k][i].most *= 100;
    was = p;
    assert_false(hn_peaks_again(&p, kinds, 2, NULL));
    assert_memory_equal(&p, &was, sizeof p);
    p.at[HN_PEAK_INT8][0].most = p.at[HN_PEAK_INT8][0].best = 1e-3;
    snprintf(p.level, sizeof p.level, "vax"); /* of another machine: nothing to measure */
    was = p;
    assert_false(hn_peaks_again(&p, kinds, 2, NULL));
    assert_memory_equal(&p, &was, sizeof p);
}

/* A rate of so many 10^9 int8 operations a second with two threads. */
static void judge_rate(void *arg, hn_verdict *v, const hn_peaks *p)
{
    hn_check_compute(v, "it", *(const double *)arg / hn_peaks_most(p, HN_PEAK_INT8, 2), 1);
}

/* A roof of a bad minute is measured again for whom it is too low, once; who is far beyond it, or beyond what is
 * measured now, is not believed. */
static void test_checked_twice(void **state)
{
    hn_peaks p, low;
    hone_error err;
    const hn_peaks_params params = { .n_threads = 2, .quick = true };
    assert_int_equal(hn_peaks_measure(&p, &params, &err), HONE_OK);
    const double real = p.at[HN_PEAK_INT8][1].most;
    for (int i = 0; i < 2; i++) {
        hn_peak_point *at = &p.at[HN_PEAK_INT8][i];
        at->best /= 1e4, at->most /= 1e4, at->median /= 1e4;
    }
    p.doubts[0] = 0;
    low = p;
    const struct {
        double rate;
        bool valid, looked;
    } rows[] = { { 1.04 / 1e4, true, false }, { 2 / 1e4, true, true }, { 8 / 1e4, false, false } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hn_verdict v = { 0 };
        double rate = rows[i].rate * real;
        p = low;
        hn_check_twice(&v, judge_rate, &rate, &p, 1u << HN_PEAK_INT8, 2, NULL);
        assert_int_equal(v.state, rows[i].valid ? HN_UNCHECKED : HN_INVALID);
        assert_int_equal(memcmp(&p, &low, sizeof p) != 0, rows[i].looked);
    }
    /* a roof that is right: three times of it stays wrong, and says so of the roof as it is now */
    hn_verdict v = { 0 };
    for (int i = 0; i < 2; i++) {
        hn_peak_point *at = &p.at[HN_PEAK_INT8][i];
        at->best = at->most = at->median = 100 * real * (i + 1);
    }
    double rate = 3 * 200 * real;
    low = p;
    hn_check_twice(&v, judge_rate, &rate, &p, 1u << HN_PEAK_INT8, 2, NULL);
    assert_int_equal(v.state, HN_INVALID);
    assert_memory_equal(&p, &low, sizeof p);
}

/* ---- what is believed -------------------------------------------------------------------------- */

static void test_impossible_peaks_are_refused(void **state)
{
    hone_error err;
    hn_peaks good = example(), p;
    assert_int_equal(hn_peaks_check(&good, &err), HONE_OK);
#define REFUSED(CHANGE)                                             \
    do {                                                            \
        p = good;                                                   \
        CHANGE;                                                     \
        assert_int_equal(hn_peaks_check(&p, &err), HONE_E_NUMERIC); \
    } while (0)
    REFUSED(p.at[HN_PEAK_INT8][0].most = 1e6); /* 280 operations a cycle and unit */
    REFUSED(p.at[HN_PEAK_READ_BW][1].best = p.at[HN_PEAK_READ_BW][1].most =
                500); /* twelve times what one thread reads, times two */
    REFUSED(p.at[HN_PEAK_F32][2].best = NAN);
    REFUSED(p.at[HN_PEAK_F32][0].best = 0);
    REFUSED(p.at[HN_PEAK_F32][0].median = 111); /* above the most */
    REFUSED(p.at[HN_PEAK_F32][0].best = 111);
    REFUSED(p.at[HN_PEAK_F32][0].most = INFINITY);
    REFUSED(p.at[HN_PEAK_F32][1].threads = 1); /* not ascending */
    REFUSED(p.n[HN_PEAK_READ_BW] = 0);
    REFUSED(p.n[HN_PEAK_BARRIER] = 0);
    REFUSED(p.clock_ghz[1] = 50);
    REFUSED(p.clock_ghz[0] = 4); /* least above most */
#undef REFUSED
}

/* ---- storage -------------------------------------------------------------------------------------- */

static void test_stored_peaks_come_back(void **state)
{
    char path[160];
    hone_error err;
    hn_environ e = example_machine();
    hn_peaks p = example(), q;
    snprintf(path, sizeof path, "%s/new/folder/peaks.json", dir);
    assert_int_equal(hn_peaks_store(&p, path, &err), HONE_OK);
    assert_int_equal(hn_peaks_load(&q, path, &e, "avx2", &err), HONE_OK);
    assert_string_equal(q.hash, p.hash);
    assert_string_equal(q.ts, p.ts);
    assert_string_equal(q.cpus, p.cpus);
    assert_string_equal(q.doubts, "");
    assert_true(q.bound && !q.quick && q.cache_bytes == p.cache_bytes && q.buffer_bytes == p.buffer_bytes &&
                q.clock_ghz[1] == p.clock_ghz[1]);
    for (int k = 0; k < HN_PEAK_KINDS; k++) {
        assert_int_equal(q.n[k], p.n[k]);
        for (int i = 0; i < p.n[k]; i++)
            assert_true(q.at[k][i].threads == p.at[k][i].threads && q.at[k][i].best == p.at[k][i].best &&
                        q.at[k][i].median == p.at[k][i].median && q.at[k][i].streams == p.at[k][i].streams &&
                        fabs(q.at[k][i].most / p.at[k][i].most - 1) < 1e-5);
    }
    snprintf(p.doubts, sizeof p.doubts, "a neighbour");
    assert_int_equal(hn_peaks_store(&p, path, &err), HONE_OK); /* replaces */
    assert_int_equal(hn_peaks_load(&q, path, &e, "avx2", &err), HONE_OK);
    assert_string_equal(q.doubts, "a neighbour");
}

static void test_damage_is_named(void **state)
{
    char path[160];
    hone_error err;
    hn_environ e = example_machine();
    hn_peaks p = example(), q;
    snprintf(path, sizeof path, "%s/damaged.json", dir);
    json_t *o = hn_peaks_json(&p);
    char *text = json_dumps(o, JSON_COMPACT);
    size_t n = strlen(text);
    for (size_t cut = 0; cut < n; cut += 7) { /* cut anywhere */
        spill(path, text, cut);
        assert_int_equal(hn_peaks_load(&q, path, &e, "avx2", &err), HONE_E_FORMAT);
        assert_non_null(strstr(err.message, "hone lab peaks"));
        assert_int_equal(q.n[HN_PEAK_READ_BW], 0);
    }
    for (size_t i = 0; i < n; i += 3) { /* any byte changed: refused, or still possible */
        char was = text[i];
        text[i] = (char)(hn_rand64(5, i) % 94 + 33);
        spill(path, text, n);
        hone_status st = hn_peaks_load(&q, path, &e, "avx2", &err);
        assert_true(st == HONE_OK || st == HONE_E_FORMAT || st == HONE_E_UNSUPPORTED);
        if (st == HONE_OK) assert_int_equal(hn_peaks_check(&q, &err), HONE_OK);
        text[i] = was;
    }
    free(text);
    const char *key;
    json_t *v;
    json_object_foreach(o, key, v)
    { /* any field gone or of another kind, except those that may be null */
        json_t *c = json_deep_copy(o);
        json_object_set_new(c, key, json_array());
        if (strcmp(key, "load") != 0) assert_int_equal(hn_peaks_parse(&q, c, &err), HONE_E_FORMAT);
        json_object_del(c, key);
        if (strcmp(key, "load") != 0 && strcmp(key, "cpus") != 0 && strcmp(key, "doubts") != 0)
            assert_int_equal(hn_peaks_parse(&q, c, &err), HONE_E_FORMAT);
        json_decref(c);
    }
    json_decref(o);
    assert_int_equal(hn_peaks_parse(&q, NULL, &err), HONE_E_FORMAT);
}

static void test_of_another_machine(void **state)
{
    char path[160];
    hone_error err;
    hn_environ e = example_machine(), other = { .hash = "ffffffff" };
    hn_peaks p = example(), q;
    snprintf(path, sizeof path, "%s/other.json", dir);
    assert_int_equal(hn_peaks_load(&q, path, &e, "avx2", &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "measure them: hone lab peaks"));
    assert_int_equal(hn_peaks_store(&p, path, &err), HONE_OK);
    assert_int_equal(hn_peaks_load(&q, path, &other, "avx2", &err), HONE_E_UNSUPPORTED);
    assert_int_equal(hn_peaks_load(&q, path, &e, "avx512", &err), HONE_E_UNSUPPORTED);
    hn_peaks slow = p; /* by a loop that was none of the fastest */
    snprintf(slow.how[HN_PEAK_INT8], sizeof slow.how[0], "vpmaddubsw + vpaddw, 256 bits");
    assert_int_equal(hn_peaks_store(&slow, path, &err), HONE_OK);
    assert_int_equal(hn_peaks_load(&q, path, &e, "avx2", &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "does not reach the machine's roof"));
    assert_non_null(strstr(err.message, "hone lab peaks --force"));
    p.cores = 8; /* measured with at most 4 threads: no roof of all cores */
    assert_int_equal(hn_peaks_store(&p, path, &err), HONE_OK);
    assert_int_equal(hn_peaks_load(&q, path, &e, "avx2", &err), HONE_E_FORMAT);
}

static void test_no_place_to_store(void **state)
{
    char path[160], file[128];
    hone_error err;
    hn_peaks p = example();
    snprintf(file, sizeof file, "%s/file", dir);
    spill(file, "x", 1);
    snprintf(path, sizeof path, "%s/file/peaks.json", dir); /* a file where a folder should be */
    assert_int_equal(hn_peaks_store(&p, path, &err), HONE_E_IO);
    assert_int_equal(hn_peaks_store(&p, "/proc/hone/peaks.json", &err), HONE_E_IO);
    if (geteuid() == 0) print_message("SKIP: root may write in read-only folders\n");
    else {
        char ro[160];
        snprintf(ro, sizeof ro, "%s/ro", dir);
        assert_int_equal(mkdir(ro, 0555), 0);
        snprintf(path, sizeof path, "%s/ro/peaks.json", dir);
        assert_int_equal(hn_peaks_store(&p, path, &err), HONE_E_IO);
        assert_non_null(strstr(err.message, "peaks.json"));
    }
    assert_int_equal(hn_peaks_store(&p, "/dev/full/x", &err), HONE_E_IO);
}

static void test_paths(void **state)
{
    char path[256];
    hone_error err;
    hn_environ e = example_machine();
    setenv("XDG_STATE_HOME", "/state", 1);
    setenv("HOME", "/home/me", 1);
    assert_int_equal(hn_peaks_path(path, sizeof path, &e, "avx2", &err), HONE_OK);
    assert_string_equal(path, "/state/hone/peaks-0123abcd-avx2.json");
    setenv("XDG_STATE_HOME", "not/absolute", 1);
    assert_int_equal(hn_peaks_path(path, sizeof path, &e, "avx2", &err), HONE_OK);
    assert_string_equal(path, "/home/me/.local/state/hone/peaks-0123abcd-avx2.json");
    assert_int_equal(hn_peaks_path(path, 20, &e, "avx2", &err), HONE_E_IO);
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_int_equal(hn_peaks_path(path, sizeof path, &e, "avx2", &err), HONE_E_IO);
}

/* ---- the roof ----------------------------------------------------------------------------------------- */

static void test_roof_at_threads(void **state)
{
    hn_peaks p = example(), none = { 0 };
    assert_true(hn_peaks_at(&p, HN_PEAK_READ_BW, 1) == 20);
    assert_true(hn_peaks_at(&p, HN_PEAK_READ_BW, 2) == 40);
    assert_true(hn_peaks_at(&p, HN_PEAK_READ_BW, 3) == 40); /* never below fewer threads */
    assert_true(hn_peaks_at(&p, HN_PEAK_READ_BW, 4) == 40);
    assert_true(hn_peaks_at(&p, HN_PEAK_INT8, 3) == 800); /* the next count measured */
    assert_true(hn_peaks_at(&p, HN_PEAK_INT8, 64) == 800);
    assert_true(hn_peaks_at(&p, HN_PEAK_BF16, 1) == 0);
    assert_true(hn_peaks_at(&none, HN_PEAK_READ_BW, 1) == 0);
    assert_int_equal(hn_peaks_decode_threads(&none), 0);
    p.n[HN_PEAK_READ_BW] = 3;
    for (int i = 0; i < 3; i++)
        p.at[HN_PEAK_READ_BW][i] = (hn_peak_point){ .threads = 1 << i, .best = i == 0 ? 30 : i == 1 ? 58.3 : 60 };
    assert_int_equal(hn_peaks_decode_threads(&p), 2); /* 58.3 is within 3 % of 60 */
    p.at[HN_PEAK_READ_BW][1].best = 58.1;
    assert_int_equal(hn_peaks_decode_threads(&p), 4);
}

static void test_decode_roof(void **state)
{
    const uint64_t gb = 1000000000;
    hn_verdict v = { 0 };
    assert_true(isnan(hn_check_roof(&v, 1e9, gb, 0, 0, 0))); /* not measured: nothing is said */
    assert_true(isnan(hn_check_roof(&v, NAN, gb, 20, 20, 0)));
    assert_true(isnan(hn_check_roof(&v, 1e6, gb, 20, 20, gb / 2))); /* the cache holds too much of it */
    assert_true(fabs(hn_check_roof(&v, 10, gb, 20, 20, 0) - 0.5) < 1e-12);
    assert_true(fabs(hn_check_roof(&v, 20.9, gb, 20, 20, 0) - 1.045) < 1e-12); /* within the error of the roof */
    assert_true(hn_check_roof(&v, 22, gb, 20, 20, gb / 10) > 1);               /* 10 % need not come from memory */
    assert_int_equal(v.state, HN_UNCHECKED);
    assert_true(hn_check_roof(&v, 24, gb, 20, 20, gb / 10) > 1);
    assert_int_equal(v.state, HN_INVALID);
    assert_non_null(strstr(v.reason, "24.0 GB/s"));
    hn_invalid(&v, "a later reason");
    assert_null(strstr(v.reason, "later"));
    v = (hn_verdict){ 0 };
    assert_true(fabs(hn_check_roof(&v, 25, gb, 20, 25, 0) - 1.25) <
                1e-12); /* seen once: not the roof, but not impossible */
    assert_int_equal(v.state, HN_UNCHECKED);
    hn_check_roof(&v, 25, gb, 20, 20, 0);
    assert_int_equal(v.state, HN_INVALID);
}

static void test_compute_roof(void **state)
{
    hn_peaks p = example();
    hn_work w = { .int8_layers = 1e9, .float_layers = 1e8, .int8_head = 4e8 };
    /* two threads: 400 GOPS of int8, 200 GFLOP/s of f32 */
    double s = hn_work_prefill_s(&w, &p, 2, 10, false);
    assert_true(fabs(s - (2 * (1e10 + 4e8) / 400e9 + 2 * 1e9 / 200e9)) < 1e-12);
    hn_verdict v = { 0 };
    assert_true(fabs(hn_work_prefill_s(&w, &p, 2, 10, true) - s / 1.1) < 1e-12);
    hn_check_compute(&v, "prefill", s, 2 * s);
    hn_check_compute(&v, "prefill", NAN, 1);
    hn_check_compute(&v, "prefill", s, NAN);
    hn_check_compute(&v, "prefill", s, 0.96 * s);
    assert_int_equal(v.state, HN_UNCHECKED);
    hn_check_compute(&v, "prefill", s, 0.9 * s);
    assert_int_equal(v.state, HN_INVALID);
    assert_non_null(strstr(v.reason, "prefill took"));
    p.n[HN_PEAK_F32] = 0;
    assert_true(isnan(hn_work_prefill_s(&w, &p, 2, 10, false)));
    w.float_layers = 0;
    assert_true(hn_work_prefill_s(&w, &p, 2, 10, false) > 0); /* not asked for */
    assert_true(isnan(hn_work_prefill_s(&(hn_work){ 0 }, &p, 2, 10, false)));
}

/* What no CPU does, at 8 GHz and 512 operations of int8 or 128 of floats a cycle, is not believed. */
static void test_no_cpu_is_so_fast(void **state)
{
    const hn_work int8 = { .int8_layers = 1e9 }, floats = { .float_head = 1e9 };
    hn_verdict v = { 0 };
    const double least = 2 * 1e9 * 10 / (2 * 512 * 8e9), head = 2 * 1e9 / (128 * 8e9);
    hn_check_possible(&v, &int8, 2, 10, 1.01 * least);
    hn_check_possible(&v, &int8, 2, 10, NAN);
    hn_check_possible(&v, &int8, 0, 10, 1e-9); /* nobody knows on how many */
    hn_check_possible(&v, &floats, 1, 10, 1.01 * head);
    hn_check_possible(&v, &(hn_work){ 0 }, 2, 10, 1e-9);
    assert_int_equal(v.state, HN_UNCHECKED);
    hn_check_possible(&v, &floats, 1, 10, 0.99 * head);
    assert_int_equal(v.state, HN_INVALID);
    v = (hn_verdict){ 0 };
    hn_check_possible(&v, &int8, 2, 10, 0.99 * least);
    assert_int_equal(v.state, HN_INVALID);
    assert_non_null(strstr(v.reason, "a prompt of 10 tokens took"));
}

static void test_work_of_a_file(void **state)
{
    char path[160];
    hone_error err;
    hn_work w;
    snprintf(path, sizeof path, "%s/w.gguf", dir);
    char config[160];
    snprintf(config, sizeof config, "%s/w.json", dir);
    const char *shape = "{\"arch\":\"llama\",\"n_layer\":2,\"n_embd\":256,\"n_head\":4,\"n_head_kv\":2,\"n_ff\":512,"
                        "\"n_vocab\":1000,\"tied\":true}";
    spill(config, shape, strlen(shape));
    hone_synth_params sp = { .config_path = config, .type = "Q8_0", .n_threads = 1 };
    assert_int_equal(hone_synth(&sp, path, NULL, &err), HONE_OK);
    assert_int_equal(hn_work_of(&w, path, &err), HONE_OK);
    assert_true(w.int8_layers == 2 * (2 * 256 * 256 + 2 * 128 * 256 + 3 * 256 * 512));
    assert_true(w.int8_head == 256 * 1000 && w.float_layers == 0 && w.float_head == 0);
    sp.type = "F16";
    assert_int_equal(hone_synth(&sp, path, NULL, &err), HONE_OK);
    assert_int_equal(hn_work_of(&w, path, &err), HONE_OK);
    assert_true(w.int8_layers == 0 && w.float_head == 256 * 1000 && w.float_layers > 0);
    assert_int_not_equal(hn_work_of(&w, config, &err), HONE_OK);
}

/* Of experts a token is multiplied with those that it asks for. */
static void test_work_of_experts(void **state)
{
    static const struct {
        const char *name;
        uint64_t ne[4];
    } list[] = { { "token_embd.weight", { 32, 10, 1, 1 } },
                 { "blk.0.ffn_up_exps.weight", { 32, 16, 8, 1 } },
                 { "blk.0.ffn_gate.3.weight", { 32, 16, 1, 1 } },
                 { "blk.0.ffn_gate.weight", { 32, 16, 1, 1 } } };
    enum { N = sizeof list / sizeof *list };
    char path[160];
    hone_error err;
    hn_work w;
    uint64_t at = 0;
    bb b = bb_head(3, N, 3);
    bb_kv_str(&b, "general.architecture", "qwen3moe");
    bb_kv_u32(&b, "qwen3moe.expert_count", 8);
    bb_kv_u32(&b, "qwen3moe.expert_used_count", 2);
    for (int i = 0; i < N; i++) {
        bb_tensor(&b, list[i].name, list[i].ne[2] > 1 ? 3 : 2, list[i].ne, HN_F32, at);
        at += list[i].ne[0] * list[i].ne[1] * list[i].ne[2] * sizeof(float);
    }
    bb_pad(&b, 32);
    bb_raw(&b, NULL, at);
    snprintf(path, sizeof path, "%s/experts.gguf", dir);
    bb_save(&b, path);
    bb_free(&b);
    if (hn_work_of(&w, path, &err)) fail_msg("%s", err.message);
    assert_true(w.float_head == 320 && w.int8_layers == 0);
    assert_true(w.float_layers == 32 * 16 * 2 + 32 * 16 / 4 + 32 * 16);
}

/* Layers that run several times are multiplied with as often. */
static void test_work_of_layers_again(void **state)
{
    static const char *const names[] = { "token_embd.weight", "blk.0.ffn_up.weight", "blk.1.ffn_up.weight" };
    static const uint64_t ne[4] = { 32, 16, 1, 1 };
    enum { N = sizeof names / sizeof *names, ONE = 32 * 16, HIGH = 2, LOW = 3, LOOPS = 3 };
    for (int stacks = 0; stacks < 2; stacks++) {
        char path[160];
        hone_error err;
        hn_work w;
        bb b = bb_head(3, N, stacks ? 4 : 2);
        bb_kv_str(&b, "general.architecture", stacks ? "hrm_text" : "nanbeige");
        if (!stacks) bb_kv_u32(&b, "nanbeige.num_loops", LOOPS);
        if (stacks) bb_kv_u32(&b, "hrm_text.hrm.layers_per_stack", 1);
        if (stacks) bb_kv_u32(&b, "hrm_text.hrm.h_cycles", HIGH);
        if (stacks) bb_kv_u32(&b, "hrm_text.hrm.l_cycles", LOW);
        for (uint64_t i = 0; i < N; i++) bb_tensor(&b, names[i], 2, ne, HN_F32, i * ONE * sizeof(float));
        bb_pad(&b, 32);
        bb_raw(&b, NULL, N * ONE * sizeof(float));
        snprintf(path, sizeof path, "%s/again.gguf", dir);
        bb_save(&b, path);
        bb_free(&b);
        if (hn_work_of(&w, path, &err)) fail_msg("%s", err.message);
        assert_true(w.float_head == ONE && w.float_layers == ONE * (stacks ? HIGH * LOW + HIGH : 2 * LOOPS));
    }
}

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/test_lab_peaks.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops_do_their_work),
        cmocka_unit_test(test_quick_measurement),
        cmocka_unit_test(test_measured_again),
        cmocka_unit_test(test_checked_twice),
        cmocka_unit_test(test_impossible_peaks_are_refused),
        cmocka_unit_test(test_stored_peaks_come_back),
        cmocka_unit_test(test_damage_is_named),
        cmocka_unit_test(test_of_another_machine),
        cmocka_unit_test(test_no_place_to_store),
        cmocka_unit_test(test_roof_at_threads),
        cmocka_unit_test(test_decode_roof),
        cmocka_unit_test(test_compute_roof),
        cmocka_unit_test(test_no_cpu_is_so_fast),
        cmocka_unit_test(test_work_of_a_file),
        cmocka_unit_test(test_work_of_experts),
        cmocka_unit_test(test_work_of_layers_again),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
