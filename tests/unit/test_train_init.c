/* Model files before and after training: shapes, values and metadata of a new model; and that
 * what is written after training holds the values given, in the types asked for. */
#include "data_files.h"
#include "forge/init.h"
#include "forge/trained.h"
#include "train/begin.h"
#include "train/train.h"

#include <math.h>

static const char *const special[] = { "<|bos|>", "<|endoftext|>" };
static hn_bpe *bpe;

static int begin(void **state)
{
    const char *text = "tests/golden/bpe_text.txt";
    hone_error e = { 0 };
    if (df_begin(state) != 0) return -1;
    if (hn_bpe_train(&bpe,
                     &(hn_bpe_params){
                         .path = &text, .n_path = 1, .rules = { .n_vocab = 400, .special = special, .n_special = 2 } },
                     &e) == HONE_OK)
        return 0;
    fprintf(stderr, "%s\n", e.message);
    return -1;
}

static int end(void **state)
{
    hn_bpe_free(bpe);
    return df_end(state);
}

static hone_model *open_model(const char *path)
{
    hone_model *m;
    hone_error e = { 0 };
    if (hone_model_open(&m, path, &(hone_model_params){ .packed = "off" }, &e) != HONE_OK) fail_msg("%s", e.message);
    return m;
}

static const char *init(const char *name, const char *config, const hn_init *like)
{
    hone_error e = { 0 };
    const char *path = df_path(name);
    hn_init p = *like;
    p.config = df_write("config.json", config, strlen(config));
    if (hn_init_model(path, &p, &e) != HONE_OK) fail_msg("%s", e.message);
    return path;
}

static const char llama[] = "{\"arch\": \"llama\", \"n_layer\": 3, \"n_embd\": 64, \"n_head\": 4, \"n_head_kv\": 2, "
                            "\"n_ff\": 96, \"n_ctx_train\": 128}";
static const char qwen2[] = "{\"arch\": \"qwen2\", \"n_layer\": 2, \"n_embd\": 64, \"n_head\": 4, \"n_head_kv\": 2, "
                            "\"n_ff\": 96, \"tied\": false}";
static const char qwen3[] = "{\"arch\": \"qwen3\", \"n_layer\": 2, \"n_embd\": 64, \"n_head\": 4, \"n_head_kv\": 2, "
                            "\"n_ff\": 256, \"head_dim\": 32, \"n_vocab\": 400}";
static hn_init ours(uint64_t seed)
{
    return (hn_init){ .bpe = bpe, .bos = 0, .eos = 1, .add_bos = true, .seed = seed };
}

static void moments(const hn_gguf_tensor *t, double *mean, double *dev)
{
    uint64_t n = t->n_bytes / 4;
    double s = 0, q = 0;
    for (uint64_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, (const char *)t->data + 4 * i, 4);
        s += x, q += (double)x * x;
    }
    *mean = s / (double)n;
    *dev = sqrt(q / (double)n - *mean * *mean);
}

static void check_values(const hone_model *m, int n_layer)
{
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        char name[64];
        double mean, dev, want = 0.02;
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        assert_int_equal(t->type, HN_F32);
        moments(t, &mean, &dev);
        if (strstr(name, "norm")) assert_true(mean == 1 && dev < 1e-9);
        else if (strstr(name, ".bias")) assert_true(mean == 0 && dev == 0);
        else {
            if (strstr(name, "attn_output") || strstr(name, "ffn_down")) want /= sqrt(2.0 * n_layer);
            double n = (double)(t->n_bytes / 4); /* five standard errors, of the mean and of the deviation */
            if (fabs(mean) > 5 * want / sqrt(n) || fabs(dev - want) > 5 * want / sqrt(2 * n))
                fail_msg("%s: %g ± %g", name, mean, dev);
        }
    }
}

static uint32_t u32(const hone_model *m, const char *key)
{
    uint32_t v = 0;
    bool found = false;
    assert_int_equal(hn_gguf_get_u32(m->file, key, &v, &found, NULL), HONE_OK);
    if (!found) fail_msg("no %s", key);
    return v;
}

static void test_llama(void **state)
{
    hn_init p = ours(1);
    hone_model *m = open_model(init("a.gguf", llama, &p));
    const hn_vocab *v;
    hone_str name;
    check_values(m, 3);
    assert_int_equal(hn_gguf_n_tensors(m->file), 2 + 3 * 9);
    assert_int_equal(m->hp.n_vocab, bpe->n);
    assert_int_equal(u32(m, "llama.vocab_size"), bpe->n);
    assert_int_equal(u32(m, "llama.context_length"), 128);
    assert_int_equal(u32(m, "llama.attention.head_count_kv"), 2);
    assert_int_equal(u32(m, "llama.rope.dimension_count"), 16);
    assert_int_equal(u32(m, "general.file_type"), 0);
    assert_int_equal(hn_gguf_get_str(m->file, "general.name", &name, NULL, NULL), HONE_OK);
    assert_memory_equal(name.ptr, "a", name.len);
    assert_int_equal(hn_model_vocab(m, &v, NULL), HONE_OK);
    assert_true(hn_vocab_add_bos(v) && hn_vocab_bos(v) == 0 && hn_vocab_eos(v) == 1);
    hone_model_close(m);
}

static void test_others(void **state)
{
    hn_init p = ours(1);
    p.add_bos = false;
    hone_model *m = open_model(init("a.gguf", qwen2, &p));
    check_values(m, 2);
    assert_int_equal(hn_gguf_n_tensors(m->file), 3 + 2 * 12);
    assert_non_null(hn_gguf_find_tensor(m->file, "output.weight"));
    assert_non_null(hn_gguf_find_tensor(m->file, "blk.1.attn_v.bias"));
    /* the tokenizer of that model for the next one */
    hn_init q = { .tokenizer = m, .seed = 2, .name = "third" };
    hone_model *k = open_model(init("b.gguf", qwen3, &q));
    check_values(k, 2);
    assert_non_null(hn_gguf_find_tensor(k->file, "blk.1.attn_k_norm.weight"));
    assert_int_equal(u32(k, "qwen3.attention.key_length"), 32);
    assert_string_equal(k->name, "third");
    const hn_vocab *v;
    hn_ids ids = { 0 };
    assert_int_equal(hn_model_vocab(k, &v, NULL), HONE_OK);
    assert_false(hn_vocab_add_bos(v));
    assert_int_equal(hn_vocab_encode(v, "the river", 9, 0, &ids, NULL), HONE_OK);
    assert_true(ids.n < 9);
    free(ids.data);
    hone_model_close(k);
    hone_model_close(m);
}

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *s = malloc(1 << 22);
    *n = fread(s, 1, 1 << 22, f);
    fclose(f);
    return s;
}

static void test_seed(void **state)
{
    size_t n[3];
    char *s[3];
    for (int i = 0; i < 3; i++) {
        hn_init p = ours(i == 2 ? 6 : 5);
        p.name = "x";
        s[i] = slurp(init("s.gguf", llama, &p), &n[i]);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(s[0], s[1], n[0]);
    assert_int_equal(n[0], n[2]);
    assert_memory_not_equal(s[0], s[2], n[0]);
    for (int i = 0; i < 3; i++) free(s[i]);
}

static void init_refused(const char *config, const hn_init *like, hone_status want, const char *says)
{
    hone_error e = { 0 };
    hn_init p = *like;
    const char *path = df_path("refused.gguf");
    p.config = df_write("config.json", config, strlen(config));
    hone_status st = hn_init_model(path, &p, &e);
    if (st != want || !strstr(e.message, says))
        fail_msg("%s \"%s\", expected \"%s\"", hone_status_name(st), e.message, says);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_init_refused(void **state)
{
    hn_init p = ours(1), none = { .seed = 1 };
    init_refused("{\"arch\": \"llama\", \"n_layer\": 1, \"n_embd\": 64, \"n_head\": 4, \"n_ff\": 96, \"n_vocab\": 401}",
                 &p, HONE_E_ARG, "n_vocab is 401, expected the 400 tokens of the tokenizer, or nothing");
    init_refused("{\"arch\": \"rwkv7\", \"n_layer\": 1, \"n_embd\": 64}", &p, HONE_E_UNSUPPORTED, "arch is rwkv7");
    init_refused("{\"arch\": \"llama\", \"n_layer\": 1}", &p, HONE_E_ARG, "n_embd is missing");
    init_refused(llama, &none, HONE_E_ARG, "expected one tokenizer");
    p.eos = 2;
    init_refused(llama, &p, HONE_E_ARG, "expected ids of the 2 special tokens");
}

/* ---- special tokens of one's own ------------------------------------------------------------------ */

static hone_init_params from_text(const char *const *data, const char *const *names, int32_t n, int32_t n_vocab)
{
    return (hone_init_params){ .config = df_write("config.json", llama, strlen(llama)),
                               .data = data,
                               .n_data = 1,
                               .n_vocab = n_vocab,
                               .special = names,
                               .n_special = n };
}

static const hn_vocab *vocab_of(const hone_model *m)
{
    const hn_vocab *v;
    assert_int_equal(hn_model_vocab(m, &v, NULL), HONE_OK);
    return v;
}

/* They are single tokens that text does not become, end what they end by their names, and change no other token. */
static void test_special_tokens(void **state)
{
    static const char *const names[] = { "<|im_start|>", "<|im_end|>" };
    const char *text = "tests/golden/bpe_text.txt";
    hone_error e = { 0 };
    hn_ids ids = { 0 };
    hone_init_params p = from_text(&text, names, 2, 302), plain = from_text(&text, NULL, 0, 300);
    assert_int_equal(hone_init_model(df_path("with.gguf"), &p, &e), HONE_OK);
    hone_model *m = open_model(df_path("with.gguf"));
    assert_int_equal(hone_init_model(df_path("without.gguf"), &plain, &e), HONE_OK);
    hone_model *k = open_model(df_path("without.gguf"));
    const hn_vocab *v = vocab_of(m), *w = vocab_of(k);
    assert_int_equal(hn_vocab_size(v), 302);
    assert_int_equal(hn_vocab_size(w), 300);
    for (int32_t i = 2; i < 300; i++) {
        size_t a, b;
        const char *s = hn_vocab_piece(v, i + 2, true, &a), *t = hn_vocab_piece(w, i, true, &b);
        if (a != b || memcmp(s, t, a) != 0) fail_msg("token %d is \"%.*s\", was \"%.*s\"", i, (int)a, s, (int)b, t);
    }
    assert_int_equal(hn_vocab_encode(v, "<|im_start|>the<|im_end|>", 25, HONE_TOK_SPECIAL, &ids, &e), HONE_OK);
    assert_true(ids.n >= 3 && ids.data[0] == 2 && ids.data[ids.n - 1] == 3);
    ids.n = 0;
    assert_int_equal(hn_vocab_encode(v, "<|im_end|>", 10, 0, &ids, &e), HONE_OK);
    assert_true(ids.n > 1);
    assert_true(hn_vocab_is_eog(v, 3) && hn_vocab_is_eog(v, 1) && !hn_vocab_is_eog(v, 2));
    assert_true(hn_vocab_bos(v) == 0 && hn_vocab_eos(v) == 1);
    free(ids.data);
    hone_model_close(m);
    hone_model_close(k);
}

static void special_refused(const char *const *names, int32_t n, const char *tokenizer, const char *says)
{
    const char *text = "tests/golden/bpe_text.txt";
    hone_error e = { 0 };
    hone_init_params p = from_text(&text, names, n, 400);
    if (tokenizer) p.tokenizer = tokenizer, p.data = NULL, p.n_data = 0;
    hone_status st = hone_init_model(df_path("refused.gguf"), &p, &e);
    if (st != HONE_E_ARG || !strstr(e.message, says))
        fail_msg("%s \"%s\", expected \"%s\"", hone_status_name(st), e.message, says);
    assert_int_equal(access(df_path("refused.gguf"), F_OK), -1);
}

static void test_special_refused(void **state)
{
    special_refused((const char *const[]){ "<|a|>", "<|a|>" }, 2, NULL, "\"<|a|>\": expected distinct ones");
    special_refused((const char *const[]){ "<|bos|>" }, 1, NULL, "\"<|bos|>\": expected distinct ones");
    special_refused((const char *const[]){ "a" }, 1, NULL, "that are no single bytes");
    special_refused((const char *const[]){ "" }, 1, NULL, "is empty");
    special_refused(NULL, 1, NULL, "special");
    special_refused((const char *const[]){ NULL }, 1, NULL, "special");
    special_refused(NULL, -1, NULL, "-1 special tokens");
    special_refused((const char *const[]){ "<|a|>" }, 1, "models/hone-tiny.gguf", "of a tokenizer made of texts");
}

/* ---- after training ------------------------------------------------------------------------------- */

enum { MAX_PARAM = 64 };
typedef struct params {
    hn_param p[MAX_PARAM];
    const hn_param *at[MAX_PARAM];
    int32_t n;
} params;

/* All tensors of m, with values of their own. */
static params *make_params(const hone_model *m)
{
    params *x = calloc(1, sizeof *x);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        hn_param *p = &x->p[x->n];
        snprintf(p->name, sizeof p->name, "%.*s", (int)t->name.len, t->name.ptr);
        p->cols = (int64_t)t->ne[0];
        p->rows = (int64_t)t->ne[1];
        p->p = malloc((size_t)(p->rows * p->cols) * sizeof *p->p);
        for (int64_t k = 0; k < p->rows * p->cols; k++) p->p[k] = hn_rand_f32((uint64_t)x->n, (uint64_t)k) - 0.3f;
        x->at[x->n++] = p;
    }
    return x;
}
static void free_params(params *x)
{
    for (int32_t i = 0; i < x->n; i++) free(x->p[i].p);
    free(x);
}

/* What is to be written, as it is now. */
static hone_status write_params(const char *path, const hone_model *m, const params *x, int32_t n, const char *type,
                                const char *name, hone_error *e)
{
    hn_trained_tensor *list = calloc((size_t)n, sizeof *list);
    assert_non_null(list);
    for (int32_t i = 0; i < n; i++)
        list[i] = (hn_trained_tensor){ x->at[i]->name, x->at[i]->p, x->at[i]->rows, x->at[i]->cols };
    const hn_trained p = { .tensor = list, .n_tensor = n, .type = type, .name = name };
    hone_status st = hn_write_trained(path, m, &p, e);
    free(list);
    return st;
}

static void test_write_trained(void **state)
{
    static const struct {
        const char *type;
        hn_type matrix, down;
        uint32_t file_type;
    } forms[] = {
        { NULL, HN_F32, HN_F32, 0 },      { "F32", HN_F32, HN_F32, 0 },    { "F16", HN_F16, HN_F16, 1 },
        { "BF16", HN_BF16, HN_BF16, 32 }, { "Q8_0", HN_Q8_0, HN_Q8_0, 7 }, { "Q4_K_M", HN_Q4_K, HN_Q6_K, 15 },
    };
    hn_init in = ours(3);
    static const char config[] = "{\"arch\": \"llama\", \"n_layer\": 2, \"n_embd\": 256, \"n_head\": 4, \"n_ff\": 256}";
    hone_model *m = open_model(init("base.gguf", config, &in));
    params *x = make_params(m);
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        hone_error e = { 0 };
        const char *path = df_path("trained.gguf");
        if (write_params(path, m, x, x->n, forms[f].type, f ? NULL : "renamed", &e) != HONE_OK)
            fail_msg("%s", e.message);
        hone_model *k = open_model(path);
        assert_string_equal(k->name, f ? "base" : "renamed");
        assert_int_equal(u32(k, "general.file_type"), forms[f].file_type);
        assert_int_equal(u32(k, "tokenizer.ggml.eos_token_id"), 1);
        assert_int_equal(hn_gguf_n_tensors(k->file), x->n);
        for (int32_t i = 0; i < x->n; i++) {
            const hn_gguf_tensor *t = hn_gguf_tensor_at(k->file, (uint64_t)i);
            const hn_type_info *ti = hn_type_get(t->type);
            int64_t cols = x->p[i].cols;
            char want[4 * 256];
            assert_memory_equal(t->name.ptr, x->p[i].name, t->name.len); /* the order of the base */
            assert_int_equal(t->type, t->n_dim < 2                             ? HN_F32
                                      : strstr(x->p[i].name, "blk.1.ffn_down") ? forms[f].down
                                      : strstr(x->p[i].name, "attn_q") || strstr(x->p[i].name, "ffn_up")
                                          ? forms[f].matrix
                                          : t->type);
            for (int64_t r = 0; r < x->p[i].rows; r++) { /* each row as the house's encoder gives it */
                uint64_t bytes = hn_row_bytes(ti, (uint64_t)cols);
                ti->quantize(want, x->p[i].p + r * cols, cols, NULL);
                assert_memory_equal((const char *)t->data + (uint64_t)r * bytes, want, bytes);
            }
        }
        hone_model_close(k);
    }
    /* only some were trained: the others stay */
    hone_error e = { 0 };
    const char *path = df_path("some.gguf");
    assert_int_equal(write_params(path, m, x, 2, "F16", NULL, &e), HONE_OK);
    hone_model *k = open_model(path);
    for (int32_t i = 2; i < x->n; i++) {
        const hn_gguf_tensor *a = hn_gguf_tensor_at(m->file, (uint64_t)i), *b = hn_gguf_tensor_at(k->file, (uint64_t)i);
        assert_int_equal(a->type, b->type);
        assert_memory_equal(a->data, b->data, a->n_bytes);
    }
    hone_model_close(k);
    free_params(x);
    hone_model_close(m);
}

static void test_write_refused(void **state)
{
    hn_init in = ours(3);
    hone_model *m = open_model(init("base2.gguf", llama, &in));
    params *x = make_params(m);
    hone_error e = { 0 };
    const char *path = df_path("no.gguf");
    const char *type = NULL;
    float keep = x->p[4].p[7];
    x->p[4].p[7] = NAN;
    assert_int_equal(write_params(path, m, x, x->n, type, NULL, &e), HONE_E_NUMERIC);
    assert_non_null(strstr(e.message, "element 7 is nan"));
    x->p[4].p[7] = 1e6f;
    type = "F16";
    assert_int_equal(write_params(path, m, x, x->n, type, NULL, &e), HONE_E_NUMERIC);
    assert_non_null(strstr(e.message, "beyond its type"));
    x->p[4].p[7] = keep;
    type = "Q9";
    assert_int_equal(write_params(path, m, x, x->n, type, NULL, &e), HONE_E_ARG);
    type = NULL;
    x->p[3].rows--;
    assert_int_equal(write_params(path, m, x, x->n, type, NULL, &e), HONE_E_ARG);
    x->p[3].rows++;
    x->at[1] = x->at[0];
    assert_int_equal(write_params(path, m, x, x->n, type, NULL, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "given twice"));
    snprintf(x->p[0].name, sizeof x->p[0].name, "blk.9.x");
    assert_int_equal(write_params(path, m, x, x->n, type, NULL, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "no tensor \"blk.9.x\""));
    assert_int_equal(access(path, F_OK), -1);
    /* over the file it was read from: the mapping keeps the old bytes */
    x->at[1] = &x->p[1];
    snprintf(x->p[0].name, sizeof x->p[0].name, "%.*s", (int)hn_gguf_tensor_at(m->file, 0)->name.len,
             hn_gguf_tensor_at(m->file, 0)->name.ptr);
    assert_int_equal(write_params(df_path("base2.gguf"), m, x, x->n, type, NULL, &e), HONE_OK);
    free_params(x);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_special_tokens),
        cmocka_unit_test(test_special_refused),
        cmocka_unit_test(test_init_refused),
        cmocka_unit_test(test_write_trained),
        cmocka_unit_test(test_write_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
