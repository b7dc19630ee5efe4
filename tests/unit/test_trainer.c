/* The training loop where its inputs are wrong or extreme: numbers that are not finite are named, a
 * run that learns nothing is an error, what cannot be written is known before the first step, room is
 * that of the data and not of the settings. */
#include "train_model.h"
#include "train/data.h"

#include <math.h>

static int begin(void **state) { return tr_begin(state, NULL, 2, 23); }

/* A weight of the base that is NaN: the error names file, tensor and element, however short the run is. */
static void nan_in_the_base(void **state)
{
    hone_model *m = tr_model("nan.gguf", NAN);
    for (int64_t steps = 1; steps <= 9; steps += 4) {
        hone_train_params p = tr_params(data);
        p.steps = steps;
        hone_trainer *t = tr_new(ctx, m, p);
        hone_train_step s = { 0 };
        hone_train_status status;
        hone_error e = { 0 };
        hone_status st = HONE_OK;
        for (int64_t i = 1; i < (steps < 5 ? steps : 5); i++) assert_true(tr_step(t).skipped);
        st = hone_trainer_step(t, &s, &e);
        hone_trainer_get_status(t, &status);
        assert_int_equal(st, HONE_E_NUMERIC);
        assert_int_equal(status.n_skipped, steps < 5 ? steps : 5);
        assert_non_null(strstr(e.message, "nan.gguf: output_norm.weight: element 0 is nan"));
        assert_non_null(strstr(e.message, steps == 1 ? "step 1:" : "step 5:"));
        hone_trainer_free(t);
    }
    hone_model_close(m);
}

/* The least eps that is taken still gives numbers where moments are 0. */
static void least_eps(void **state)
{
    hone_train_params p = tr_params(data);
    p.eps = 1e-30;
    p.patience = 0;
    hone_trainer *t = tr_new(ctx, model, p);
    for (int i = 0; i < 5; i++) assert_false(tr_step(t).skipped);
    hone_trainer_free(t);
}

/* A checkpoint of a run that kept no best weights, gone on from by one that shall write them. */
static void best_is_sought_anew(void **state)
{
    hone_error e = { 0 };
    hone_train_status status;
    char path[200];
    hone_train_params p = tr_params(data);
    p.patience = 0;
    p.eval_every = 1;
    hone_trainer *t = tr_new(ctx, model, p);
    for (int i = 0; i < 3; i++) tr_step(t);
    hone_trainer_get_status(t, &status);
    assert_true(isfinite(status.best_val));
    snprintf(path, sizeof path, "%s", tm_path("unkept"));
    assert_int_equal(hone_trainer_save(t, path, 1, &e), HONE_OK);
    hone_trainer_free(t);
    p.patience = 2;
    t = tr_new(ctx, model, p);
    snprintf(path + strlen(path), 40, "/step-%08d.ckpt", 3);
    if (hone_trainer_load(t, path, &e)) fail_msg("%s", e.message);
    hone_trainer_get_status(t, &status);
    assert_int_equal(status.step, 3);
    assert_true(isnan(status.best_val));
    assert_true(tr_step(t).best);
    hone_trainer_free(t);
}

static void refused(hone_train_params p, const char *says)
{
    hone_trainer *t;
    hone_error e = { 0 };
    assert_int_equal(hone_trainer_new(&t, ctx, model, &p, &e), HONE_E_ARG);
    assert_null(t);
    if (!strstr(e.message, says)) fail_msg("%s: does not say '%s'", e.message, says);
}

static void known_before(void **state)
{
    hone_train_params p = tr_params(data);
    p.full = true;
    p.patience = 0;
    p.output_type = "Q4_Z";
    refused(p, "unknown type \"Q4_Z\"");
    p = tr_params(data);
    p.eps = 0; /* the first gradient of A is 0: 0/0 */
    refused(p, "eps: 0, expected 1e-30 to 1");
    p = tr_params(data);
    p.schedule = HONE_TRAIN_WSD + 1;
    refused(p, "schedule: 4, expected 0 to 3");
    p = tr_params(data);
    p.mask = HONE_TRAIN_LAST + 1;
    refused(p, "mask: 3, expected 0 to 2");
    p = tr_params(data);
    p.chat_template = "chatmll"; /* also where the data has no conversation */
    refused(p, "chatmll");
    p = tr_params(data);
    p.steps = 0;
    p.epochs = 1e6;
    p.max_bad_lines = 0;
    p.batch = 65536;
    p.seq = 1024;
    refused(p, "tokens in a micro-batch");
}

/* Epochs without packing are all as long; with it a number that would take hours to count is refused. */
static void many_epochs(void **state)
{
    hone_train_info info;
    hone_train_params p = tr_params(data);
    p.steps = 0;
    p.val_share = p.patience = 0;
    p.pack = false;
    p.seq = 64;
    p.batch = 4;
    p.accumulate = 1;
    p.plan_only = true;
    static const struct {
        double epochs;
        int64_t steps;
    } list[] = { { 1e6, 6000000 }, { 1, 6 }, { 0.5, 3 }, { 2.5, 15 }, { 2.51, 16 }, { 0.01, 1 }, { 7, 42 } };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) { /* 23 sequences, 4 a step: 6 an epoch */
        p.epochs = list[i].epochs;
        hone_trainer *t = tr_new(ctx, model, p);
        hone_trainer_get_info(t, &info);
        assert_int_equal(info.steps, list[i].steps);
        hone_trainer_free(t);
    }
}

/* No batch is larger than the data, and nothing is allocated for one that is. */
static void room_of_the_data(void **state)
{
    hone_train_info info;
    for (int pack = 0; pack < 2; pack++) {
        hone_train_params p = tr_params(data);
        p.pack = pack;
        p.batch = 65536;
        p.seq = 64;
        p.steps = 2;
        p.val_share = p.patience = 0;
        p.accumulate = 1;
        hone_trainer *t = tr_new(ctx, model, p);
        hone_trainer_get_info(t, &info);
        assert_int_equal(info.max_tok, info.train.n_tok);
        assert_int_equal(tr_step(t).n_tok, info.train.n_tok);
        assert_int_equal(tr_step(t).n_tok, info.train.n_tok);
        hone_trainer_free(t);
    }
}

/* A format by name in place of the model's, which has none: the same samples as text that looks like it. */
static void chat_template(void **state)
{
    char path[200];
    hone_train_info info;
    hone_error e = { 0 };
    hone_trainer *t;
    snprintf(path, sizeof path, "%s", tm_path("chat.jsonl"));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"messages\": [{\"role\": \"user\", \"content\": \"abc\"}, {\"role\": \"assistant\", \"content\": "
          "\"cab\"}]}\n",
          f);
    fclose(f);
    hone_train_params p = tr_params((const char *const[]){ path });
    p.seq = 128;
    p.steps = 1;
    p.val_share = p.patience = 0;
    p.chat_template = "{% for m in messages %}{{ m.content }}|{% endfor %}{% if add_generation_prompt %}{% endif %}";
    t = tr_new(ctx, model, p);
    hone_trainer_get_info(t, &info);
    assert_int_equal(info.train.n_tok, 7); /* ab c | c ab | </s> */
    hone_trainer_free(t);
    p.chat_template = "{% for m in messages %}";
    assert_int_not_equal(hone_trainer_new(&t, ctx, model, &p, &e), HONE_OK);
}

static void expect_arch(const char *path, const char *want)
{
    hn_gguf *g;
    hone_str arch = { "", 0 };
    hone_kv kv;
    hone_error e = { 0 };
    if (hn_gguf_open(&g, path, &e)) fail_msg("%s", e.message);
    assert_int_equal(hn_gguf_get_str(g, "general.architecture", &arch, NULL, &e), HONE_OK);
    if (arch.len != strlen(want) || memcmp(arch.ptr, want, arch.len)) fail_msg("%.*s", (int)arch.len, arch.ptr);
    for (uint64_t i = 0; i < hn_gguf_n_kv(g); i++) {
        hn_gguf_kv(g, i, &kv);
        assert_false(kv.key.len > 6 && !memcmp(kv.key.ptr, "llama.", 6));
    }
    hn_gguf_close(g);
}

/* A llama by another name: what is trained of it goes with the file that has this name, and is not written as PEFT
 * where the modules have other names. */
static void files_keep_their_name(void **state)
{
    static const char *const archs[] = { "xverse", "internlm2" };
    for (int k = 0; k < 4; k++) {
        const char *arch = archs[k / 2], *peft = k / 2 ? "peft1" : "peft0";
        hone_model *m = tr_model_of(arch, "named.gguf", 0), *again;
        hone_error e = { 0 };
        hone_adapter *a;
        hone_train_params p = tr_params(data);
        p.full = k % 2;
        p.steps = 1;
        p.val_share = p.patience = p.dropout = 0;
        if (p.full) p.targets = NULL, p.rank = 0, p.alpha = 0;
        hone_trainer *t = tr_new(ctx, m, p);
        tr_step(t);
        if (hone_trainer_write(t, tm_path("out.gguf"), &e)) fail_msg("%s", e.message);
        expect_arch(tm_path("out.gguf"), arch);
        if (!p.full) {
            if (hone_adapter_open(&a, m, tm_path("out.gguf"), &e)) fail_msg("%s", e.message);
            hone_adapter_close(a);
            assert_int_equal(hone_trainer_write_peft(t, tm_path(peft), &e), HONE_OK);
        } else {
            if (hone_model_open(&again, tm_path("out.gguf"), NULL, &e)) fail_msg("%s", e.message);
            hone_model_close(again);
        }
        hone_trainer_free(t);
        hone_model_close(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_in_the_base),     cmocka_unit_test(least_eps),
        cmocka_unit_test(best_is_sought_anew), cmocka_unit_test(known_before),
        cmocka_unit_test(many_epochs),         cmocka_unit_test(room_of_the_data),
        cmocka_unit_test(chat_template),       cmocka_unit_test(files_keep_their_name)
    };
    return cmocka_run_group_tests(tests, begin, tr_end);
}
