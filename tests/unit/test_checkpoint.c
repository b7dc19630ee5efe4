/* Checkpoints and the loop around them: going on from any step gives the same bytes as never having
 * stopped; what is damaged, cut or of another run is refused by name; files that cannot be written
 * leave older ones alone. */
#define _GNU_SOURCE
#include "train_model.h"

#include <math.h>
#include <sys/resource.h>
#include <signal.h>

static int begin(void **state) { return tr_begin(state, NULL, 2, 23); }

/* The bytes of the state, by way of a checkpoint. */
static unsigned char *state_of(hone_trainer *t, size_t *n)
{
    hone_error e = { 0 };
    hone_train_status s;
    char path[200];
    hone_trainer_get_status(t, &s);
    snprintf(path, sizeof path, "%s", tm_path("look"));
    if (hone_trainer_save(t, path, 1, &e)) fail_msg("%s", e.message);
    snprintf(path + strlen(path), 40, "/step-%08lld.ckpt", (long long)s.step);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *p = malloc(*n);
    assert_int_equal(fread(p, 1, *n, f), *n);
    fclose(f);
    return p;
}

static void same_state(hone_trainer *a, hone_trainer *b)
{
    size_t na, nb;
    unsigned char *x = state_of(a, &na), *y = state_of(b, &nb);
    assert_int_equal(na, nb);
    assert_memory_equal(x, y, na);
    free(x);
    free(y);
}

static const char *folder(const char *name)
{
    static char path[160];
    char cmd[300];
    snprintf(path, sizeof path, "%s", tm_path(name));
    snprintf(cmd, sizeof cmd, "rm -rf %s", path);
    assert_int_equal(system(cmd), 0);
    return path;
}

static void save(hone_trainer *t, const char *dir, int keep)
{
    hone_error e = { 0 };
    if (hone_trainer_save(t, dir, keep, &e)) fail_msg("%s", e.message);
}

static int64_t resumed(hone_trainer *t, const char *dir, char *note, size_t n)
{
    int64_t step;
    hone_error e = { 0 };
    if (hone_trainer_resume(t, dir, &step, note, n, &e)) fail_msg("%s", e.message);
    return step;
}

static void resume_anywhere(void **state)
{
    char note[400];
    hone_trainer *a = tr_new(ctx, model, tr_params(data));
    hone_train_step last = { 0 };
    for (int i = 0; i < 12; i++) last = tr_step(a);
    assert_true(last.done && last.eval && isfinite(last.val_loss));
    for (int stop = 1; stop < 12; stop++) {
        const char *dir = folder("resume");
        hone_trainer *b = tr_new(ctx, model, tr_params(data));
        for (int i = 0; i < stop; i++) tr_step(b);
        save(b, dir, 2);
        hone_trainer_free(b);
        b = tr_new(ctx, model, tr_params(data));
        assert_int_equal(resumed(b, dir, note, sizeof note), stop);
        assert_string_equal(note, "");
        for (int i = stop; i < 12; i++) last = tr_step(b);
        same_state(a, b);
        hone_trainer_free(b);
    }
    hone_train_step s;
    hone_error e = { 0 };
    assert_int_equal(hone_trainer_step(a, &s, &e), HONE_E_ARG);
    hone_trainer_free(a);
}

/* Threads, the kernels' level and recomputation change no bit. */
static void same_on_any_threads(void **state)
{
    hone_trainer *a = tr_new(ctx, model, tr_params(data));
    for (int i = 0; i < 5; i++) tr_step(a);
    for (int32_t n = 1; n <= 3; n += 2) {
        hone_context *c = tm_context(n == 3 ? "scalar" : NULL, n);
        hone_train_params p = tr_params(data);
        p.recompute = n == 3;
        hone_trainer *b = tr_new(c, model, p);
        for (int i = 0; i < 5; i++) tr_step(b);
        same_state(a, b);
        hone_trainer_free(b);
        hone_context_free(c);
    }
    hone_trainer_free(a);
}

static void keeps_the_last(void **state)
{
    hone_trainer *t = tr_new(ctx, model, tr_params(data));
    const char *dir = folder("keep");
    hone_error e = { 0 };
    int64_t step;
    assert_int_equal(hone_train_checkpoints(dir, false, &step, &e), HONE_OK);
    assert_int_equal(step, 0);
    for (int i = 1; i <= 6; i++) {
        tr_step(t);
        save(t, dir, 3);
    }
    char name[260];
    for (int i = 1; i <= 6; i++) {
        snprintf(name, sizeof name, "%s/step-%08d.ckpt", dir, i);
        assert_int_equal(access(name, F_OK) == 0, i > 3);
    }
    assert_int_equal(hone_train_checkpoints(dir, false, &step, &e), HONE_OK);
    assert_int_equal(step, 6);
    assert_int_equal(hone_train_checkpoints(dir, true, &step, &e), HONE_OK);
    assert_int_equal(hone_train_checkpoints(dir, false, &step, &e), HONE_OK);
    assert_int_equal(step, 0);
    hone_trainer_free(t);
}

static void damage(const char *path, long at, int how)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    if (how == 0) assert_int_equal(ftruncate(fileno(f), at % n), 0);
    else {
        fseek(f, at % n, SEEK_SET);
        int c = fgetc(f);
        fseek(f, at % n, SEEK_SET);
        fputc(c ^ 1 << at % 8, f);
    }
    fclose(f);
}

/* Any cut and any flipped bit is noticed, and the one before is taken. */
static void damaged_newest(void **state)
{
    hone_trainer *t = tr_new(ctx, model, tr_params(data)), *b = tr_new(ctx, model, tr_params(data));
    const char *dir = folder("damaged");
    char path[260], note[400];
    tr_step(t);
    save(t, dir, 5);
    tr_step(t);
    snprintf(path, sizeof path, "%s/step-00000002.ckpt", dir);
    for (int i = 0; i < 60; i++) {
        save(t, dir, 5);
        damage(path, (long)(hn_rand64(9, (uint64_t)i) >> 40) * (i < 40) + i, i % 3);
        assert_int_equal(resumed(b, dir, note, sizeof note), 1);
        assert_non_null(strstr(note, "step-00000002.ckpt"));
    }
    snprintf(path, sizeof path, "%s/step-00000001.ckpt", dir);
    damage(path, 100, 1);
    int64_t step;
    hone_error e = { 0 };
    assert_int_equal(hone_trainer_resume(b, dir, &step, note, sizeof note, &e),
                     HONE_E_FORMAT); /* none is whole: not silently anew */
    assert_int_equal(step, 0);
    hone_trainer_free(t);
    hone_trainer_free(b);
}

/* A checksum that fits is no promise: counters that would overflow, or that no run has, are damage too. */
static void impossible_counters(void **state)
{
    static const struct {
        int field;
        int64_t value;
        const char *says;
    } cases[] = {
        { 0, -1, "number of steps is" },
        { 0, INT64_MAX, "number of steps is" },
        { 0, 7, "applied and skipped" },
        { 1, INT64_MIN, "steps applied" },
        { 4, -1, "micro-batches" },
        { 5, INT64_MAX - 1, "epochs" },
        { 6, 1 << 20, "sequence 1048576 of epoch" },
        { 9, 3, "steps to the best" },
        { 16, 4, "ends" },
        { 17, -1, "ends" },
    };
    hone_trainer *t = tr_new(ctx, model, tr_params(data)), *b = tr_new(ctx, model, tr_params(data));
    const char *dir = folder("counters");
    char path[260], note[400];
    tr_step(t);
    save(t, dir, 5);
    tr_step(t);
    snprintf(path, sizeof path, "%s/step-00000002.ckpt", dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n;
        uint64_t settings, sum;
        unsigned char *p = state_of(t, &n);
        memcpy(&settings, p + 16, 8);
        memcpy(p + 40 + settings + 8 * cases[i].field, &cases[i].value, 8);
        sum = hn_fnv1a(HN_FNV_INIT, p, n - 8);
        memcpy(p + n - 8, &sum, 8);
        FILE *f = fopen(path, "wb");
        assert_true(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
        free(p);
        assert_int_equal(resumed(b, dir, note, sizeof note), 1);
        if (!strstr(note, cases[i].says)) fail_msg("%s: does not say '%s'", note, cases[i].says);
    }
    hone_trainer_free(t);
    hone_trainer_free(b);
}

static void refused(const char *dir, const hone_model *m, hone_train_params p, const char *says)
{
    hone_trainer *t = tr_new(ctx, m, p);
    int64_t step;
    char note[400];
    hone_error e = { 0 };
    assert_int_equal(hone_trainer_resume(t, dir, &step, note, sizeof note, &e), HONE_E_ARG);
    if (!strstr(e.message, says)) fail_msg("%s: does not say '%s'", e.message, says);
    hone_trainer_free(t);
}

static void another_run(void **state)
{
    hone_trainer *t = tr_new(ctx, model, tr_params(data));
    const char *dir = folder("other");
    tr_step(t);
    save(t, dir, 1);
    hone_train_params p = tr_params(data);
    p.rank = 4;
    refused(dir, model, p, "rank is 3 there and 4 now");
    p = tr_params(data);
    p.lr = 4e-2;
    refused(dir, model, p, "learning_rate is 0.05");
    p = tr_params(data);
    p.full = true;
    refused(dir, model, p, "method is lora there and full now");
    p = tr_params(data);
    p.lr = 2e-4; /* 0.00020000000000000001 says the same */
    p.targets = "v,q";
    refused(dir, model, p, "targets is q,k,v,o,gate,up,down there and q,v now");
    p.targets = "all";
    refused(dir, model, p, "learning_rate is 0.05 there and 0.0002 now");
    p = tr_params(data);
    p.schedule = HONE_TRAIN_WSD;
    refused(dir, model, p, "schedule is cosine there and wsd now");
    p = tr_params(data);
    p.steps = 13;
    refused(dir, model, p, "steps is 12 there and 13 now");
    const char *other[1] = { tr_data("other.jsonl", 24) };
    refused(dir, model, tr_params(other), "data is ");
    hone_model *m = tr_model("nudged.gguf", 0.25f);
    refused(dir, m, tr_params(data), "base is ");
    hone_model_close(m);
    p = tr_params(data); /* what does not change a step may differ */
    p.recompute = true;
    p.eval_every = 1;
    hone_trainer *b = tr_new(ctx, model, p);
    char note[400];
    assert_int_equal(resumed(b, dir, note, sizeof note), 1);
    hone_trainer_free(b);
    hone_trainer_free(t);
}

/* With epochs the last step takes what is left: under a number of steps it would take more. Files of an older hone do
 * not say which it was. */
static void epochs_are_not_steps(void **state)
{
    hone_train_params p = tr_params(data);
    hone_train_info info;
    char note[400], path[260];
    const char *dir = folder("epochs");
    p.steps = 0;
    p.epochs = 1;
    hone_trainer *t = tr_new(ctx, model, p);
    hone_trainer_get_info(t, &info);
    tr_step(t);
    save(t, dir, 1);
    hone_train_params q = p;
    q.steps = info.steps;
    refused(dir, model, q, "micro_batches is ");
    size_t n;
    uint64_t settings, sum;
    unsigned char *x = state_of(t, &n), *line = memmem(x, n, "micro_batches ", 14), *end = memchr(line, '\n', 40);
    memcpy(&settings, x + 16, 8);
    size_t k = (size_t)(end + 1 - line);
    memmove(line, end + 1, (size_t)(x + n - end - 1));
    settings -= k;
    memcpy(x + 16, &settings, 8);
    n -= k;
    memcpy(x + 8, &(uint64_t){ n }, 8);
    sum = hn_fnv1a(HN_FNV_INIT, x, n - 8);
    memcpy(x + n - 8, &sum, 8);
    snprintf(path, sizeof path, "%s/step-00000001.ckpt", dir);
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(x, 1, n, f) == n && fclose(f) == 0);
    free(x);
    hone_trainer *b = tr_new(ctx, model, p);
    assert_int_equal(resumed(b, dir, note, sizeof note), 1);
    assert_string_equal(note, "");
    same_state(t, b);
    hone_trainer_free(b);
    hone_trainer_free(t);
}

static int asked; /* so often until the wish to stop; 0: never */
static bool stop_soon(void *arg) { return asked && --asked == 0; }

/* A validation that is interrupted has not been: it is made up for, here or after going on elsewhere, and all is as if
 * nobody had interrupted. */
static void interrupted_validation(void **state)
{
    char note[400];
    hone_error e = { 0 };
    hone_trainer *a = tr_new(ctx, model, tr_params(data));
    for (int i = 0; i < 12; i++) tr_step(a);
    for (int stop = 3; stop <= 12; stop += 3)
        for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
            const char *dir = folder("validation");
            hone_train_params p = tr_params(data);
            hone_train_step s;
            hone_train_status is;
            p.abort_fn = stop_soon;
            hone_trainer *b = tr_new(ctx, model, p);
            for (int i = 1; i < stop; i++) tr_step(b);
            for (int again = 0; again < 2; again++) { /* in the step, and when it is made up for */
                asked = 2;                            /* behind the first micro-batch */
                assert_int_equal(hone_trainer_step(b, &s, &e), HONE_E_INTERRUPTED);
                assert_true(s.step == stop && !s.eval && !s.done);
                hone_trainer_get_status(b, &is);
                assert_true(is.step == stop && !is.done && is.eval_due);
            }
            if (elsewhere) {
                save(b, dir, 1);
                hone_trainer_free(b);
                b = tr_new(ctx, model, p);
                assert_int_equal(resumed(b, dir, note, sizeof note), stop);
                assert_string_equal(note, "");
                hone_trainer_get_status(b, &is);
                assert_true(is.eval_due); /* so hone train --stop-after does not end before it */
            }
            s = tr_step(b);
            hone_trainer_get_status(b, &is);
            assert_false(is.eval_due);
            assert_true(s.step == stop && s.eval && isfinite(s.val_loss) && s.n_tok == 0 && s.done == (stop == 12));
            for (int i = stop; i < 12; i++) s = tr_step(b);
            assert_true(s.done && s.step == 12);
            same_state(a, b);
            hone_trainer_free(b);
        }
    hone_trainer_free(a);
}

/* A file that may not grow is as good as a full disk. */
static void disk_full(void **state)
{
    hone_trainer *t = tr_new(ctx, model, tr_params(data));
    const char *dir = folder("full");
    struct rlimit old, small = { 5000, 0 };
    hone_error e = { 0 };
    char note[400];
    tr_step(t);
    save(t, dir, 1);
    tr_step(t);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    hone_status st = hone_trainer_save(t, dir, 1, &e);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(st, HONE_E_IO);
    assert_non_null(strstr(e.message, "step 2"));
    assert_non_null(strstr(e.message, "older ones are untouched"));
    hone_trainer *b = tr_new(ctx, model, tr_params(data));
    assert_int_equal(resumed(b, dir, note, sizeof note), 1);
    assert_string_equal(note, "");
    tr_step(b);
    same_state(t, b);
    hone_trainer_free(b);
    hone_trainer_free(t);
}

/* ---- the loop -------------------------------------------------------------------------------------- */

static void epochs_end_where_the_data_ends(void **state)
{
    hone_train_params p = tr_params(data);
    hone_train_info info;
    p.steps = 0;
    p.epochs = 2;
    p.val_share = 0;
    p.patience = 0;
    p.pack = false;
    p.seq = 64; /* a sample for each record */
    hone_trainer *t = tr_new(ctx, model, p);
    hone_trainer_get_info(t, &info);
    assert_int_equal(info.n_sequence, 23);
    assert_int_equal(info.steps, 16); /* 46 sequences, 3 a step: the last has one */
    int64_t n_tok = 0;
    hone_train_step s;
    do {
        s = tr_step(t);
        n_tok += s.n_tok;
    } while (!s.done);
    assert_int_equal(s.step, 16);
    assert_int_equal(n_tok, 2 * info.train.n_tok);
    hone_trainer_free(t);
}

/* The same tokens as one micro-batch or as many: the same loss and nearly the same weights. */
static void accumulation(void **state)
{
    double loss[2], norm[2];
    for (int k = 0; k < 2; k++) {
        hone_train_params p = tr_params(data);
        p.dropout = 0;
        p.batch = k ? 4 : 1;
        p.accumulate = k ? 1 : 4;
        hone_trainer *t = tr_new(ctx, model, p);
        hone_train_step s = tr_step(t);
        loss[k] = s.loss;
        norm[k] = s.grad_norm;
        hone_trainer_free(t);
    }
    assert_true(fabs(loss[0] / loss[1] - 1) < 1e-6);
    assert_true(fabs(norm[0] / norm[1] - 1) < 1e-5);
}

static void early_stop(void **state)
{
    hone_train_params p = tr_params(data);
    p.steps = 1000;
    p.eval_every = 1;
    p.patience = 3;
    p.lr = 0; /* no gain but the first */
    hone_trainer *t = tr_new(ctx, model, p);
    hone_train_step s;
    do s = tr_step(t);
    while (!s.done);
    assert_true(s.stopped_early);
    assert_int_equal(s.step, 4);
    char folder[160];
    snprintf(folder, sizeof folder, "%s.early", data[0]);
    hone_error e;
    assert_int_equal(hone_trainer_save(t, folder, 1, &e), HONE_OK);
    hone_trainer_free(t);
    static const struct {
        int32_t patience;
        int64_t ends;
    } more[] = { { 3, 4 }, { 5, 6 }, { 0, 5 } }; /* it goes on with more patience, and with none to the next stop */
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        hone_train_status status;
        char note[200];
        int64_t step;
        p.patience = more[i].patience;
        t = tr_new(ctx, model, p);
        assert_int_equal(hone_trainer_resume(t, folder, &step, note, sizeof note, &e), HONE_OK);
        hone_trainer_get_status(t, &status);
        assert_int_equal(step, 4);
        assert_int_equal(status.done, p.patience == 3);
        assert_int_equal(status.stopped_early, p.patience == 3);
        for (s.done = status.done; !s.done && status.step < more[i].ends; hone_trainer_get_status(t, &status))
            s = tr_step(t);
        assert_int_equal(status.step, more[i].ends);
        assert_int_equal(status.stopped_early, p.patience != 0);
        hone_trainer_free(t);
    }
}

/* A rate that throws the weights out of all numbers: left out, counted, then an error with the step. */
static void not_finite(void **state)
{
    hone_train_params p = tr_params(data);
    hone_train_step s = { 0 };
    hone_train_status status;
    hone_error e = { 0 };
    p.lr = 1000;
    p.warmup = 0;
    p.steps = 400;
    p.schedule = HONE_TRAIN_CONSTANT;
    p.clip = 0;
    p.full = true;
    hone_trainer *t = tr_new(ctx, model, p);
    hone_status st = HONE_OK;
    for (int i = 0; i < 400 && st == HONE_OK; i++) {
        st = hone_trainer_step(t, &s, &e);
        if (st == HONE_OK && !s.skipped) assert_true(isfinite(s.loss) && isfinite(s.grad_norm));
    }
    hone_trainer_get_status(t, &status);
    if (st == HONE_OK) skip(); /* a model that bears it */
    assert_int_equal(st, HONE_E_NUMERIC);
    assert_int_equal(status.n_skipped >= 5, true);
    char says[40];
    snprintf(says, sizeof says, "step %lld:", (long long)status.step);
    assert_non_null(strstr(e.message, says));
    hone_trainer_free(t);
}

static void refuses(void **state)
{
    hone_trainer *t;
    hone_error e = { 0 };
    hone_train_params p = tr_params(data);
    p.targets = "q,vv";
    assert_int_equal(hone_trainer_new(&t, ctx, model, &p, &e), HONE_E_ARG);
    assert_null(t);
    assert_non_null(strstr(e.message, "'vv'"));
    for (const char *const *s = (const char *const[]){ "", "q,", ",q", "q q", "attn_", NULL }; *s; s++) {
        p.targets = *s;
        assert_int_equal(hone_trainer_new(&t, ctx, model, &p, &e), HONE_E_ARG);
    }
    p = tr_params(data);
    p.lr = NAN;
    assert_int_equal(hone_trainer_new(&t, ctx, model, &p, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "learning rate"));
    p = tr_params(data);
    p.plan_only = true;
    t = tr_new(ctx, model, p);
    hone_train_info plan, real;
    hone_trainer_get_info(t, &plan);
    hone_train_step s;
    assert_int_equal(hone_trainer_step(t, &s, &e), HONE_E_ARG);
    hone_trainer_free(t);
    p.plan_only = false;
    t = tr_new(ctx, model, p);
    hone_trainer_get_info(t, &real);
    assert_int_equal(plan.n_trainable, real.n_trainable);
    assert_int_equal(plan.n_trainable, 2 * 3 * ((16 + 16) + 2 * (16 + 8) + (16 + 16) + 2 * (16 + 24) + (24 + 16)));
    assert_int_equal(plan.state_bytes, real.state_bytes);
    hone_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(resume_anywhere),
                                        cmocka_unit_test(same_on_any_threads),
                                        cmocka_unit_test(keeps_the_last),
                                        cmocka_unit_test(damaged_newest),
                                        cmocka_unit_test(impossible_counters),
                                        cmocka_unit_test(another_run),
                                        cmocka_unit_test(epochs_are_not_steps),
                                        cmocka_unit_test(interrupted_validation),
                                        cmocka_unit_test(disk_full),
                                        cmocka_unit_test(epochs_end_where_the_data_ends),
                                        cmocka_unit_test(accumulation),
                                        cmocka_unit_test(early_stop),
                                        cmocka_unit_test(not_finite),
                                        cmocka_unit_test(refuses) };
    return cmocka_run_group_tests(tests, begin, tr_end);
}
