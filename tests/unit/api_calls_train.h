/* The calls of training: a part of api_calls.h, which has what they work on. */
#ifndef HN_API_CALLS_TRAIN_H
#define HN_API_CALLS_TRAIN_H

static void c_train_defaults(void)
{
    hone_train_params p;
    hone_train_defaults(NEED("p", &p));
    NEUTRAL(aw_is("p"));
}
static void c_init_model(void)
{
    const char *list[] = { txt_path, NEED("p->data[1]", txt_path) },
               *names[] = { "<|im_start|>", NEED("p->special[1]", "<|im_end|>") };
    hone_init_params p = { .config = NEED("p->config", shape_path),
                           .tokenizer = MAY("p->tokenizer", (const char *)NULL),
                           .data = NEED("p->data", list),
                           .n_data = COUNT("p->n_data", 2),
                           .n_vocab = RANGE("p->n_vocab", 300),
                           .name = MAY("p->name", "n"),
                           .seed = ANY("p->seed", (uint64_t)1),
                           .abort_fn = MAY("p->abort_fn", stop_never),
                           .abort_arg = MAY("p->abort_arg", ctx),
                           .special = NEED("p->special", names),
                           .n_special = COUNT("p->n_special", 2),
                           .max_bad_lines = LOW("p->max_bad_lines", (int64_t)0) };
    STATUS(hone_init_model(NEED("dst", out_path), NEED("p", &p), aw->err));
}
static void spoil_numbers(hone_train_params *p)
{
    p->val_share = RANGE("p->val_share", p->val_share);
    p->mask = RANGE("p->mask", p->mask);
    p->split = RANGE("p->split", p->split);
    p->max_bad_lines = LOW("p->max_bad_lines", p->max_bad_lines);
    p->n_layers = RANGE("p->n_layers", p->n_layers);
    p->rank = RANGE("p->rank", p->rank);
    p->alpha = RANGE("p->alpha", p->alpha);
    p->dropout = RANGE("p->dropout", p->dropout);
    p->steps = RANGE("p->steps", p->steps);
    p->epochs = RANGE("p->epochs", p->epochs);
    p->seq = RANGE("p->seq", p->seq);
    p->batch = RANGE("p->batch", p->batch);
    p->accumulate = RANGE("p->accumulate", p->accumulate);
    p->schedule = RANGE("p->schedule", p->schedule);
    p->lr = RANGE("p->lr", p->lr);
    p->min_lr = ANY("p->min_lr", p->min_lr);
    p->warmup = ANY("p->warmup", p->warmup);
    p->warmup_ratio = RANGE("p->warmup_ratio", p->warmup_ratio);
    p->beta1 = RANGE("p->beta1", p->beta1);
    p->beta2 = RANGE("p->beta2", p->beta2);
    p->eps = RANGE("p->eps", p->eps);
    p->weight_decay = RANGE("p->weight_decay", p->weight_decay);
    p->clip = RANGE("p->clip", p->clip);
    p->seed = ANY("p->seed", p->seed);
    p->eval_every = RANGE("p->eval_every", p->eval_every);
    p->patience = LOW("p->patience", p->patience);
    p->min_delta = RANGE("p->min_delta", p->min_delta);
}
static void c_trainer_new(void)
{
    hone_trainer *out = (hone_trainer *)1;
    hone_train_params p = train_params();
    const char *list[] = { data[0], NEED("p->data[1]", data[0]) },
               *val[] = { data[0], NEED("p->val_data[1]", data[0]) };
    p.data = NEED("p->data", list);
    p.n_data = COUNT("p->n_data", 2);
    p.val_data = NEED("p->val_data", val);
    p.n_val_data = COUNT("p->n_val_data", 2);
    p.output_type = MAY("p->output_type", "F16");
    p.targets = NEED("p->targets", "qv");
    p.chat_template = MAY("p->chat_template", "chatml");
    p.name = MAY("p->name", "n");
    p.abort_fn = MAY("p->abort_fn", stop_never);
    p.abort_arg = MAY("p->abort_arg", ctx);
    spoil_numbers(&p);
    STATUS(hone_trainer_new(NEED("out", &out), NEED("ctx", ctx), NEED("m", model), NEED("p", &p), aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_trainer_free(out);
}
static void c_trainer_free(void)
{
    hone_trainer *t = tr_new(ctx, model, train_params());
    hone_trainer_free(MAY("t", t));
    NEUTRAL(false);
    if (aw_is("t")) hone_trainer_free(t);
}
static void c_trainer_get_info(void)
{
    hone_train_info out;
    memset(&out, 1, sizeof out);
    hone_trainer_get_info(NEED("t", trainer), NEED("out", &out));
    NEUTRAL(aw_is("out") || !out.n_array);
    EMPTY("out", ZERO(out));
}
static void c_trainer_get_status(void)
{
    hone_train_status out;
    memset(&out, 1, sizeof out);
    hone_trainer_get_status(NEED("t", trainer), NEED("out", &out));
    NEUTRAL(aw_is("out") || !out.step);
    EMPTY("out", ZERO(out));
}
static void c_trainer_settings(void) { NEUTRAL(!*hone_trainer_settings(NEED("t", trainer))); }
static void c_trainer_step(void)
{
    hone_train_step out;
    memset(&out, 1, sizeof out);
    STATUS(hone_trainer_step(NEED("t", trainer), NEED("out", &out), aw->err));
    EMPTY("out", ZERO(out));
}
static void c_trainer_validate(void)
{
    double loss = 77;
    STATUS(hone_trainer_validate(NEED("t", trainer), NEED("loss", &loss), aw->err));
    EMPTY("loss", isnan(loss));
}
static void c_trainer_save(void)
{
    STATUS(hone_trainer_save(NEED("t", trainer), NEED("folder", folder), LOW("keep", 2), aw->err));
}
static void c_trainer_load(void)
{
    char path[200];
    hone_train_status s;
    hone_trainer_get_status(trainer, &s);
    assert_int_equal(hone_trainer_save(trainer, folder, 1, NULL), HONE_OK);
    snprintf(path, sizeof path, "%s/step-%08lld.ckpt", folder, (long long)s.step);
    STATUS(hone_trainer_load(NEED("t", trainer), NEED("path", path), aw->err));
}
static void c_trainer_resume(void)
{
    char note[80] = "x";
    int64_t step = 77;
    STATUS(hone_trainer_resume(NEED("t", trainer), NEED("folder", folder), NEED("step", &step), NEED("note", note),
                               TRUST("n_note", sizeof note), aw->err));
    EMPTY("step", step == 0);
    EMPTY("note", !*note);
}
static void c_train_checkpoints(void)
{
    int64_t step = 77;
    STATUS(hone_train_checkpoints(NEED("folder", folder), false, NEED("step", &step), aw->err));
    EMPTY("step", step == 0);
}
static void c_trainer_write(void) { STATUS(hone_trainer_write(NEED("t", trainer), NEED("path", out_path), aw->err)); }
static void c_trainer_write_peft(void)
{
    STATUS(hone_trainer_write_peft(NEED("t", trainer), NEED("folder", out_folder), aw->err));
}

#endif
