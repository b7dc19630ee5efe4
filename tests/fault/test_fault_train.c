/* Out of memory at every possible place of training: the k-th allocation fails, for k = 1, 2, … until the call
 * succeeds. Each failure must be HONE_E_NOMEM with a message, leave no heap (the leak check of the asan
 * flavour) and no anonymous mapping behind, and training must then go on as if nothing had happened. */
#define _GNU_SOURCE
#include "../unit/train_model.h"

#define HN_FAILING_ALONE
#include "failing.h"

static char folder[160], adapter[160], peft[160];

static int begin(void **state)
{
    if (tr_begin(state, "scalar", 1, 9)) return -1;
    snprintf(folder, sizeof folder, "%s", tm_path("run.ckpt"));
    snprintf(adapter, sizeof adapter, "%s", tm_path("a.gguf"));
    snprintf(peft, sizeof peft, "%s", tm_path("a.peft"));
    return 0;
}

typedef hone_status operation(hone_trainer **t, hone_error *e);
static hone_train_step last;

static hone_status make(hone_trainer **t, hone_error *e)
{
    hone_train_params p = tr_params(data);
    return hone_trainer_new(t, ctx, model, &p, e);
}
static hone_status step(hone_trainer **t, hone_error *e) { return hone_trainer_step(*t, &last, e); }
static hone_status save(hone_trainer **t, hone_error *e) { return hone_trainer_save(*t, folder, 2, e); }
static hone_status write_gguf(hone_trainer **t, hone_error *e) { return hone_trainer_write(*t, adapter, e); }
static hone_status write_peft(hone_trainer **t, hone_error *e) { return hone_trainer_write_peft(*t, peft, e); }
static hone_status go_on(hone_trainer **t, hone_error *e)
{
    int64_t at;
    char note[200];
    return hone_trainer_resume(*t, folder, &at, note, sizeof note, e);
}

static void every_k(const char *what, operation *op, hone_trainer **t)
{
    for (long k = 0;; k++) {
        hone_error e = { 0 };
        int before = n_maps;
        countdown = k;
        hone_status st = op(t, &e);
        bool reached = countdown < 0;
        countdown = -1;
        if (st == HONE_OK) {
            if (!reached) break;
            if (op == make) fail_msg("%s: allocation %ld failed, and nobody noticed", what, k);
            continue; /* what can do without */
        }
        if (st != HONE_E_NOMEM || !e.message[0])
            fail_msg("%s, allocation %ld: status %d, %s", what, k, (int)st, e.message);
        assert_int_equal(n_maps, before);
        if (op == make) assert_null(*t);
        assert_true(k < 100000);
    }
}

static void everything(void **state)
{
    hone_trainer *t = NULL;
    char hex
        [65]; /* the base's identity is known from here on: without memory to look it up it would be computed again */
    assert_int_equal(hone_model_identity(model, hex, NULL, NULL), HONE_OK);
    every_k("new", make, &t);
    for (int i = 0; i < 4; i++) every_k("step", step, &t);
    double loss = last.loss;
    every_k("save", save, &t);
    every_k("resume", go_on, &t);
    every_k("write", write_gguf, &t);
    every_k("write as PEFT", write_peft, &t);
    hone_trainer_free(t);
    t = NULL; /* what failed on the way has left no trace */
    hone_error e = { 0 };
    assert_int_equal(make(&t, &e), HONE_OK);
    for (int i = 0; i < 4; i++) assert_int_equal(step(&t, &e), HONE_OK);
    assert_memory_equal(&last.loss, &loss, sizeof loss);
    hone_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(everything) };
    return cmocka_run_group_tests(tests, begin, tr_end);
}
