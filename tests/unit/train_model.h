/* A tiny model with a vocabulary of bytes, a text file for it and trainers on both, for tests
 * of the loop. */
#ifndef HN_TRAIN_MODEL_H
#define HN_TRAIN_MODEL_H

#include "data_files.h"
#include "tiny_model.h"

/* arch: what the file calls a llama. */
static hone_model *tr_model_of(const char *arch, const char *name, float nudge)
{
    tiny *m = tm_new((tm_shape)TM(arch, 16, 2, 1, 8, 24, DF_N, 2, 10000, 1e-5, .tied = true));
    tm_put_str(m, "tokenizer.ggml.model", "gpt2");
    tm_put_str(m, "tokenizer.ggml.pre", "gpt-2");
    bb *b = tm_put(m, "tokenizer.ggml.tokens", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_STRING), bb_u64(b, DF_N);
    for (const char *const *s = (const char *const[]){ "<s>", "</s>", "<|im_start|>", "<|im_end|>", NULL }; *s; s++)
        bb_str(b, *s);
    for (int i = 0; i < 256; i++) {
        char s[4];
        df_symbol(s, i);
        bb_str(b, s);
    }
    bb_str(b, "ab"), bb_str(b, "bc");
    b = tm_put(m, "tokenizer.ggml.token_type", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_I32), bb_u64(b, DF_N);
    for (int i = 0; i < DF_N; i++) bb_u32(b, i < 4 ? 3 : 1);
    b = tm_put(m, "tokenizer.ggml.merges", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_STRING), bb_u64(b, 2);
    bb_str(b, "a b"), bb_str(b, "b c");
    tm_put_u32(m, "tokenizer.ggml.bos_token_id", DF_BOS);
    tm_put_u32(m, "tokenizer.ggml.eos_token_id", DF_EOS);
    tm_tensor *t = tm_find(m, "output_norm.weight");
    t->f[0] += nudge;
    tm_encode(t, HN_F32);
    const char *path = tm_path(name);
    tm_save_raw(m, path);
    tm_free(m);
    hone_model *out;
    hone_error e = { 0 };
    if (hone_model_open(&out, path, NULL, &e)) fail_msg("%s", e.message);
    return out;
}

static hone_model *tr_model(const char *name, float nudge) { return tr_model_of("llama", name, nudge); }

static __attribute__((unused)) const char *tr_data(const char *name, int n)
{
    static const char *const words[] = { "the sea is wide", "abc abc",
                                         "a small boat sails over the sea, and back again", "cab", "who sees it?" };
    static char paths[4][160]; /* tm_path's last for a few calls only */
    static int k;
    char *path = paths[k++ % 4];
    snprintf(path, sizeof paths[0], "%s", tm_path(name));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < n; i++) fprintf(f, "{\"text\": \"%s %d\"}\n", words[i * 7 % 5], i * i % 11);
    fclose(f);
    return path;
}

/* Everything that a checkpoint must carry is in use: dropout, accumulation, packing, shuffling, validation. */
static __attribute__((unused)) hone_train_params tr_params(const char *const *data)
{
    hone_train_params p;
    hone_train_defaults(&p);
    p.data = data;
    p.n_data = 1;
    p.targets = "all";
    p.batch = 1;
    p.rank = 3;
    p.alpha = 6;
    p.dropout = 0.2;
    p.seq = 24;
    p.accumulate = 3;
    p.steps = 12;
    p.lr = 5e-2;
    p.warmup = 2;
    p.seed = 5;
    p.val_share = 0.2;
    p.eval_every = 3;
    p.patience = 100;
    return p;
}

static __attribute__((unused)) hone_trainer *tr_new(hone_context *c, const hone_model *m, hone_train_params p)
{
    hone_trainer *t;
    hone_error e = { 0 };
    if (hone_trainer_new(&t, c, m, &p, &e)) fail_msg("%s", e.message);
    return t;
}

static __attribute__((unused)) hone_train_step tr_step(hone_trainer *t)
{
    hone_train_step s;
    hone_error e = { 0 };
    if (hone_trainer_step(t, &s, &e)) fail_msg("%s", e.message);
    return s;
}

/* What a whole program trains with; tr_end goes with tr_begin as a group's teardown. */
static hone_context *ctx;
static hone_model *model;
static const char *data[1];

static __attribute__((unused)) int tr_begin(void **state, const char *level, int threads, int n)
{
    if (tm_make_dir(state)) return -1;
    ctx = tm_context(level, threads);
    model = tr_model("model.gguf", 0);
    data[0] = tr_data("data.jsonl", n);
    return 0;
}
static __attribute__((unused)) int tr_end(void **state)
{
    hone_model_close(model);
    hone_context_free(ctx);
    char cmd[100];
    snprintf(cmd, sizeof cmd, "rm -r %s", tm_dir);
    return system(cmd);
}

#endif
