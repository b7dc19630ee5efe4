/* Fuzz target: checkpoints of training, for one small run that is made once. The first byte says how the rest is
 * taken: bit 0: it is the file; else it holds edits of a good one, each of a place (byte: 0 the header, 1 the
 * state, 2 the arrays, 3 the end; u16: bytes from there), a number of bytes (byte; at the end: that are cut off)
 * and the bytes. Bit 1: the sizes in the header and the checksum are made to fit, or nothing else would be reached.
 * Whatever it is, a refusal has a message and leaves the trainer as it was, a run goes on from the checkpoint before
 * where the newest is damaged, and from what is taken a step can be made.
 * covers: src/train/checkpoint.c src/base/sealed.c */
#include "../unit/data_files.h"
#include "train/trainer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) abort();
}

/* ---- a model of one layer with the vocabulary of bytes -------------------------------------------------- */

enum { E = 8, F = 12 };
static const struct {
    const char *name;
    uint64_t n_in, n_out;
} tensors[] = {
    { "token_embd.weight", E, DF_N },    { "output_norm.weight", E, 1 },       { "blk.0.attn_norm.weight", E, 1 },
    { "blk.0.ffn_norm.weight", E, 1 },   { "blk.0.attn_q.weight", E, E },      { "blk.0.attn_k.weight", E, E / 2 },
    { "blk.0.attn_v.weight", E, E / 2 }, { "blk.0.attn_output.weight", E, E }, { "blk.0.ffn_gate.weight", E, F },
    { "blk.0.ffn_up.weight", E, F },     { "blk.0.ffn_down.weight", F, E },
};
enum { N_TENSOR = sizeof tensors / sizeof *tensors };
static const struct {
    const char *key;
    uint32_t v;
} keys[] = {
    { "llama.context_length", 64 },     { "llama.embedding_length", E },     { "llama.block_count", 1 },
    { "llama.feed_forward_length", F }, { "llama.attention.head_count", 2 }, { "llama.attention.head_count_kv", 1 },
};

static hone_model *make_model(void)
{
    uint64_t off = 0;
    uint32_t eps, k = 0;
    hone_model *m;
    hone_error e = { 0 };
    memcpy(&eps, &(float){ 1e-5f }, 4);
    bb f = bb_head(3, N_TENSOR, sizeof keys / sizeof *keys + 9);
    bb_kv_str(&f, "general.architecture", "llama");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) bb_kv_u32(&f, keys[i].key, keys[i].v);
    bb_kv(&f, "llama.attention.layer_norm_rms_epsilon", 6, eps, 4);
    bb_kv_str(&f, "tokenizer.ggml.model", "gpt2");
    bb_kv_str(&f, "tokenizer.ggml.pre", "gpt-2");
    bb_kv_array(&f, "tokenizer.ggml.tokens", 8, DF_N);
    for (const char *const *s = (const char *const[]){ "<s>", "</s>", "<|im_start|>", "<|im_end|>", NULL }; *s; s++)
        bb_str(&f, *s);
    for (int b = 0; b < 256; b++) {
        char s[4];
        df_symbol(s, b);
        bb_str(&f, s);
    }
    bb_str(&f, "ab"), bb_str(&f, "bc");
    bb_kv_array(&f, "tokenizer.ggml.token_type", 5, DF_N);
    for (int i = 0; i < DF_N; i++) bb_u32(&f, i < 4 ? 3 : 1);
    bb_kv_array(&f, "tokenizer.ggml.merges", 8, 2);
    bb_str(&f, "a b"), bb_str(&f, "b c");
    bb_kv_u32(&f, "tokenizer.ggml.bos_token_id", DF_BOS);
    bb_kv_u32(&f, "tokenizer.ggml.eos_token_id", DF_EOS);
    for (int i = 0; i < N_TENSOR; i++) {
        bb_tensor(&f, tensors[i].name, tensors[i].n_out > 1 ? 2 : 1,
                  (const uint64_t[]){ tensors[i].n_in, tensors[i].n_out }, HN_F32, off);
        off += (tensors[i].n_in * tensors[i].n_out * 4 + 31) / 32 * 32;
    }
    bb_pad(&f, 32);
    for (int i = 0; i < N_TENSOR; i++, bb_pad(&f, 32))
        for (uint64_t j = 0; j < tensors[i].n_in * tensors[i].n_out; j++) {
            float x = tensors[i].n_out > 1 ? (float)(int)(++k * 37 % 101) / 101 - 0.5f : 1.0f;
            bb_raw(&f, &x, 4);
        }
    const char *path = df_path("model.gguf");
    bb_save(&f, path);
    bb_free(&f);
    df_must(hone_model_open(&m, path, NULL, &e) == HONE_OK, e.message);
    return m;
}

/* ---- the run ------------------------------------------------------------------------------------------------ */

static hone_trainer *t;
static uint8_t *good;
static size_t n_good;
static char folder[96], newest[160], aside[160]; /* aside: the good one, where no folder of checkpoints is */

static void put_file(const char *path, const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    must(f && (!n || fwrite(p, 1, n, f) == n) && fclose(f) == 0);
}

static void end(void) { df_end(NULL); }

static void begin(void)
{
    static const char text[] = "{\"text\": \"the sea is wide\"}\n{\"text\": \"a boat sails\"}\n{\"text\": \"abc "
                               "abc\"}\n{\"text\": \"who sees it?\"}\n{\"text\": \"back again\"}\n";
    static const char *path[1];
    hone_context *ctx;
    hone_train_params p;
    hone_train_step step;
    hone_error e = { 0 };
    must(df_begin(NULL) == 0);
    atexit(end);
    path[0] = df_write("data.jsonl", text, sizeof text - 1);
    hone_train_defaults(&p);
    p.data = path, p.n_data = 1, p.targets = "qv", p.rank = 2, p.seq = 32, p.batch = 1, p.accumulate = 2, p.epochs = 40,
    p.dropout = 0.1, p.val_share = 0.2, p.eval_every = 1, p.lr = 1e-2;
    must(hone_context_new(&ctx, &(hone_context_params){ .n_threads = 1 }, &e) == HONE_OK);
    df_must(hone_trainer_new(&t, ctx, make_model(), &p, &e) == HONE_OK, e.message);
    snprintf(folder, sizeof folder, "%s/run", df_dir);
    snprintf(newest, sizeof newest, "%s/step-00000002.ckpt", folder);
    snprintf(aside, sizeof aside, "%s/good", df_dir);
    for (int i = 0; i < 2; i++)
        must(hone_trainer_step(t, &step, &e) == HONE_OK && hone_trainer_save(t, folder, 2, &e) == HONE_OK);
    FILE *f = fopen(newest, "rb");
    must(f && fseek(f, 0, SEEK_END) == 0 && (n_good = (size_t)ftell(f)) > 0);
    rewind(f);
    must((good = malloc(n_good)) && fread(good, 1, n_good, f) == n_good);
    fclose(f);
    must(rename(newest, aside) == 0);
}

static uint64_t word(const uint8_t *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static size_t edited(uint8_t *out, const uint8_t *data, size_t size)
{
    size_t n = n_good, state = 40 + (size_t)word(good + 16);
    const size_t from[3] = { 0, state, state + sizeof(hn_train_state) };
    memcpy(out, good, n_good);
    while (size >= 4) {
        size_t place = data[0] & 3, off = data[1] | (size_t)data[2] << 8, len = data[3];
        data += 4, size -= 4;
        if (place == 3) n = len < n ? n - len : 0;
        else {
            if (len > size) len = size;
            if (from[place] + off + len <= n_good) memcpy(out + from[place] + off, data, len);
            data += len, size -= len;
        }
    }
    return n;
}

static void make_fit(uint8_t *p, size_t n)
{
    uint64_t v = n;
    if (n < 48) return;
    memcpy(p + 8, &v, 8);
    v = hn_fnv1a(HN_FNV_INIT, p, n - 8);
    memcpy(p + n - 8, &v, 8);
}

/* All that a step changes. */
static uint64_t state_of(void)
{
    uint64_t h = hn_fnv1a(HN_FNV_INIT, &t->st, sizeof t->st);
    hn_cursor c = hn_loader_tell(t->loader);
    h = hn_fnv1a(h, &c, sizeof c);
    for (int32_t i = 0; i < t->n_array; i++) {
        const hn_param *a = hn_grad_param(t->grad, i);
        size_t n = (size_t)(a->rows * a->cols) * sizeof(float);
        h = hn_fnv1a(hn_fnv1a(hn_fnv1a(h, a->p, n), t->mom[i], n), t->var[i], n);
    }
    return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_error e = { 0 };
    hone_train_step step;
    char note[400];
    int64_t at;
    if (!t) begin();
    if (size < 1 || size > 1 << 16) return 0;
    size_t n = data[0] & 1 ? size - 1 : n_good;
    uint8_t *file = malloc(n + 1);
    must(file != NULL);
    if (data[0] & 1) memcpy(file, data + 1, n);
    else n = edited(file, data + 1, size - 1);
    if (data[0] & 2) make_fit(file, n);
    put_file(newest, file, n);
    must(hone_trainer_load(t, aside, &e) == HONE_OK);
    uint64_t before = state_of();
    hone_status st = hone_trainer_load(t, newest, &e);
    if (st != HONE_OK) must(strncmp(e.message, newest, strlen(newest)) == 0 && state_of() == before);
    hone_status all = hone_trainer_resume(t, folder, &at, note, sizeof note, &e);
    if (st == HONE_E_FORMAT) must(all == HONE_OK && at == 1 && note[0]);
    else must(all == st && at == (st == HONE_OK ? 2 : 0));
    must(hone_train_checkpoints(folder, false, &at, &e) == HONE_OK && at == 2);
    if (st == HONE_OK) {
        must(hone_trainer_load(t, newest, &e) == HONE_OK);
        int64_t from = t->st.step;
        must(from >= 0 && from <= (int64_t)1 << 53 && t->st.n_micro >= 0 && t->st.cursor.epoch >= 0 &&
             t->st.n_tok >= 0);
        st = hone_trainer_step(t, &step, &e);
        must(st == HONE_OK ? t->st.step == from + 1 : e.message[0] != 0);
    }
    free(file);
    return 0;
}
