/* hf_back_rwkv: RWKV files become folders in the names that the hub's folders have, every number of them as it was, and
 * the same file again; the vocabulary's text, templates; what no folder can say is refused, and nothing is left. */
#define _GNU_SOURCE
#include "forge/convert.h"
#include "rwkv_files.h"

static void convert(const char *src, const char *type, const char *dst)
{
    hone_error err = { 0 };
    if (hone_convert(src, NULL, type, dst, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
}

static void refused(const char *src, hone_status want, const char *says)
{
    hone_error err = { 0 };
    hone_status st = hone_convert(src, NULL, NULL, in_dir("never"), NULL, &err);
    if (st != want || !strstr(err.message, says))
        fail_msg("status %d, message: %s; expected %d and: %s", st, err.message, want, says);
    assert_int_equal(access(in_dir("never"), F_OK), -1);
}

static void same_files(const char *a, const char *b)
{
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    int c;
    assert_true(x && y);
    for (size_t i = 0; (c = fgetc(x)) != EOF; i++)
        if (c != fgetc(y)) fail_msg("%s and %s differ at byte %zu", a, b, i);
    assert_int_equal(fgetc(y), EOF);
    fclose(x);
    fclose(y);
}

static void clear(const char *name)
{
    empty_folder(in_dir(name));
    rmdir(in_dir(name));
}

/* The model as a folder "hf", of a config. */
static void make_folder(const model *m, const char *dtype)
{
    char text[2048];
    clear("hf");
    mkdir(in_dir("hf"), 0700);
    snprintf(text, sizeof text, m->version == 7 ? CONFIG7 : CONFIG6, "");
    write_text(in_dir("hf/config.json"), text);
    write_safetensors(in_dir("hf/model.safetensors"), m, m->version == 7 ? FLA : HF, dtype);
}

static hn_ckpt *opened(const char *folder)
{
    hone_error err = { 0 };
    hn_ckpt *c;
    assert_int_equal(hn_ckpt_new(&c, folder, &err), HONE_OK);
    if (hn_ckpt_folder(c, folder, &err) != HONE_OK) fail_msg("%s", err.message);
    return c;
}

static double number(const hn_ckpt *c, const hn_ckpt_tensor *t, uint64_t i)
{
    const hn_type_info *ti = hn_type_get(t->type);
    unsigned char raw[4];
    float x;
    assert_int_equal(hn_source_read(&c->part[t->part], t->off + i * ti->block_bytes, raw, ti->block_bytes, NULL),
                     HONE_OK);
    ti->dequantize(&x, raw, 1);
    return x;
}

static uint64_t elements(const hn_ckpt_tensor *t)
{
    uint64_t n = 1;
    for (int d = 0; d < t->n_dim; d++) n *= t->ne[d];
    return n;
}

/* The same names, and under each the same numbers; vectors may have ones around them. */
static void same_tensors(const char *first, const char *again)
{
    hn_ckpt *a = opened(first), *b = opened(again);
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const hn_ckpt_tensor *t = &a->t[i], *u = hn_ckpt_find(b, t->name.ptr, t->name.len);
        if (!u) fail_msg("%.*s is missing", (int)t->name.len, t->name.ptr);
        assert_int_equal(elements(t), elements(u));
        if (t->ne[1] > 1)
            for (int d = 0; d < 3; d++) assert_int_equal(t->ne[d], u->ne[d]);
        for (uint64_t k = 0; k < elements(t); k++)
            if (number(a, t, k) != number(b, u, k))
                fail_msg("%.*s[%llu] is %g, expected %g", (int)t->name.len, t->name.ptr, (unsigned long long)k,
                         number(b, u, k), number(a, t, k));
    }
    hn_ckpt_free(a);
    hn_ckpt_free(b);
}

/* From the folder "hf" to a file, a folder, a file. */
static void round_trip(void)
{
    clear("again/hf");
    mkdir(in_dir("again"), 0700);
    convert(in_dir("hf"), NULL, in_dir("hf.gguf"));
    convert(in_dir("hf.gguf"), NULL, in_dir("again/hf"));
    convert(in_dir("again/hf"), NULL, in_dir("again/hf.gguf"));
    same_files(in_dir("hf.gguf"), in_dir("again/hf.gguf"));
}

static void test_there_and_back(void **state)
{
    static const char *const types[] = { "F32", "BF16", "F16" };
    for (int version = 6; version <= 7; version++)
        for (int i = 0; i < 4; i++) {
            model m;
            make_model(&m, version);
            m.fine = i == 3; /* no other type holds them */
            make_folder(&m, types[i % 3]);
            round_trip();
            same_tensors(in_dir("hf"), in_dir("again/hf"));
        }
}

/* Low-rank matrices that lie the same either way; one layer, which has no rank of values. */
static void test_odd_sizes(void **state)
{
    for (int version = 6; version <= 7; version++) {
        model m;
        make_model(&m, version);
        for (size_t i = 0; i < m.n; i++)
            if (is_low(&m.t[i]) && !strstr(m.t[i].name, "time_maa")) m.t[i].shape[0] = m.t[i].shape[1] = E;
        clear("hf");
        mkdir(in_dir("hf"), 0700); /* sizes come from the tensors */
        write_safetensors(in_dir("hf/model.safetensors"), &m, version == 7 ? FLA : HF, "F32");
        round_trip();
        same_tensors(in_dir("hf"), in_dir("again/hf"));
        make_model(&m, version);
        for (size_t i = 0; i < m.n;)
            if (strncmp(m.t[i].name, "blocks.", 7) || m.t[i].name[7] == '0') i++;
            else memmove(&m.t[i], &m.t[i + 1], (--m.n - i) * sizeof m.t[0]);
        write_safetensors(in_dir("hf/model.safetensors"), &m, version == 7 ? FLA : HF, "F32");
        round_trip();
        same_tensors(in_dir("hf"), in_dir("again/hf"));
    }
}

/* Blocks become numbers; the original's names lead to the same folder. */
static void test_other_sources(void **state)
{
    for (int version = 6; version <= 7; version++) {
        model m;
        make_model(&m, version);
        make_folder(&m, "F32");
        convert(in_dir("hf"), "Q8_0", in_dir("q.gguf"));
        clear("blocks");
        convert(in_dir("q.gguf"), NULL, in_dir("blocks"));
        hn_ckpt *c = opened(in_dir("blocks"));
        assert_int_equal(c->n, m.n);
        const char *name = version == 7 ? "model.layers.2.ffn.key.weight" : "rwkv.blocks.2.feed_forward.key.weight";
        const hn_ckpt_tensor *t = hn_ckpt_find(c, name, strlen(name));
        assert_non_null(t);
        assert_int_equal(t->type, HN_F32);
        for (uint64_t k = 0; k < elements(t); k++)
            assert_true(fabs(number(c, t, k) - (double)value("blocks.2.ffn.key.weight", k, false)) < 0.01);
        hn_ckpt_free(c);
        write_safetensors(in_dir("m.safetensors"), &m, ORIGINAL, "BF16");
        convert(in_dir("m.safetensors"), NULL, in_dir("m.gguf"));
        clear("names");
        convert(in_dir("m.gguf"), "BF16", in_dir("names"));
        same_tensors(in_dir("hf"), in_dir("names"));
    }
}

/* ---- the vocabulary --------------------------------------------------------------------------------------------- */

static void test_vocabulary(void **state)
{
    static const char text[] = "1 '\\x00' 1\n2 '\\t\\n\\r' 3\n3 '\\\\' 1\n4 \"'\" 1\n5 '\"' 1\n6 '\\'\"' 2\n"
                               "7 b'\\xc3\\xa9' 2\n8 b'\\xe9' 1\n9 ' a b ' 5\n10 b\"\\xff'\" 2\n11 '\\x7f' 1\n";
    static const char *const templates[] = { NULL, "{{ x }}\n" };
    for (int version = 6; version <= 7; version++)
        for (int i = 0; i < 2; i++) {
            model m;
            make_model(&m, version);
            make_folder(&m, "BF16");
            write_text(in_dir("hf/rwkv_vocab_v20230424.txt"), text);
            if (templates[i]) write_text(in_dir("hf/chat_template.jinja"), templates[i]);
            round_trip();
            same_files(in_dir("hf/rwkv_vocab_v20230424.txt"), in_dir("again/hf/rwkv_vocab_v20230424.txt"));
            assert_int_equal(access(in_dir("again/hf/chat_template.jinja"), F_OK) == 0, i == 1);
        }
}

/* The published vocabulary, as another converter stored it, is written so that it comes again. */
static void test_published(void **state)
{
    static const char path[] = "../shared/data/tokenizers/ggml-vocab-rwkv-world.gguf";
    if (access(path, R_OK) != 0) {
        printf("SKIP: %s is absent\n", path);
        skip();
    }
    hone_error err = { 0 };
    hn_gguf *want = open_gguf(path), *g;
    hn_gguf_array a, b;
    char *text, *again;
    size_t n, n2;
    assert_int_equal(hn_gguf_get_array(want, "tokenizer.ggml.tokens", &a, NULL, NULL), HONE_OK);
    if (hn_world_write(want, a.count, &text, &n, &err) != HONE_OK) fail_msg("%s", err.message);
    write_bytes(in_dir("w.txt"), text, n);
    model m; /* of so many tokens */
    make_model(&m, 7);
    find_spec(&m, "emb.weight")->shape[0] = find_spec(&m, "head.weight")->shape[0] = a.count;
    write_safetensors(in_dir("w.safetensors"), &m, ORIGINAL, "BF16");
    if (hone_convert(in_dir("w.safetensors"), in_dir("w.txt"), NULL, in_dir("w.gguf"), NULL, &err) != HONE_OK)
        fail_msg("%s", err.message);
    g = open_gguf(in_dir("w.gguf"));
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.tokens", &b, NULL, NULL), HONE_OK);
    assert_true(a.n_bytes == b.n_bytes && !memcmp(a.data, b.data, a.n_bytes));
    assert_int_equal(hn_world_write(g, a.count, &again, &n2, &err), HONE_OK);
    assert_true(n == n2 && !memcmp(text, again, n));
    free(text);
    free(again);
    hn_gguf_close(g);
    hn_gguf_close(want);
}

/* ---- files of others -------------------------------------------------------------------------------------------- */

typedef struct change {
    const char *key;
    uint32_t value;
    const char *leave, *add;     /* tensors */
    const char *text, *text_key; /* a string's key */
    int halved;                  /* outputs of layer il are divided by 2^(il / halved) */
} change;

static void rewrite(const char *from, const char *to, const change *c)
{
    hone_error err = { 0 };
    hn_gguf *g = open_gguf(from);
    hn_gguf_writer *w;
    const char *const except[] = { c->key ? c->key : c->text_key, NULL };
    static const float zero[4];
    assert_int_equal(hn_gguf_writer_new(&w, &err), HONE_OK);
    assert_int_equal(hn_gguf_put_all(w, g, except[0] ? except : NULL, &err), HONE_OK);
    if (c->key) assert_int_equal(hn_gguf_put_u32(w, c->key, c->value, &err), HONE_OK);
    if (c->text) assert_int_equal(hn_gguf_put_str(w, c->text_key, c->text, strlen(c->text), &err), HONE_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
            const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
            char name[80];
            int il = 0;
            snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
            if (c->leave && !strcmp(name, c->leave)) continue;
            if (!pass) {
                assert_int_equal(hn_gguf_put_tensor(w, name, t->type, t->ne, t->n_dim, &err), HONE_OK);
                continue;
            }
            float *x = malloc(t->n_bytes);
            memcpy(x, t->data, t->n_bytes);
            bool output = strstr(name, "time_mix_output") || strstr(name, "channel_mix_value");
            if (c->halved && output && sscanf(name, "blk.%d.", &il) == 1)
                for (uint64_t k = 0; k < t->n_bytes / 4; k++) x[k] /= (float)(1 << il / c->halved);
            assert_int_equal(hn_gguf_write_data(w, x, t->n_bytes, &err), HONE_OK);
            free(x);
        }
        if (c->add && !pass)
            assert_int_equal(hn_gguf_put_tensor(w, c->add, HN_F32, &(uint64_t){ 4 }, 1, &err), HONE_OK);
        if (c->add && pass) assert_int_equal(hn_gguf_write_data(w, zero, sizeof zero, &err), HONE_OK);
        if (!pass) assert_int_equal(hn_gguf_write_begin(w, to, &err), HONE_OK);
    }
    assert_int_equal(hn_gguf_write_end(w, &err), HONE_OK);
    hn_gguf_writer_free(w);
    hn_gguf_close(g);
}

/* Other converters divide the outputs of later layers of RWKV-6: a folder has them as they were. */
static void test_rescaled(void **state)
{
    model m;
    make_model(&m, 6);
    m.fine = true;
    make_folder(&m, "F32");
    convert(in_dir("hf"), NULL, in_dir("m.gguf"));
    for (int every = 1; every <= 2; every++) {
        rewrite(in_dir("m.gguf"), in_dir("x.gguf"),
                &(change){ .key = "rwkv6.rescale_every_n_layers", .value = (uint32_t)every, .halved = every });
        clear("back");
        convert(in_dir("x.gguf"), NULL, in_dir("back"));
        same_tensors(in_dir("hf"), in_dir("back"));
    }
}

static void test_refused(void **state)
{
    static const struct {
        change c;
        hone_status st;
        const char *says;
    } all[] = {
        { { .add = "mystery.weight" }, HONE_E_UNSUPPORTED, "mystery.weight has no place in a folder of class RWKV7" },
        { { .leave = "blk.1.time_mix_v0.weight" }, HONE_E_UNSUPPORTED, "has no tensor blk.1.time_mix_v0.weight" },
        { { .key = "rwkv7.context_length", .value = 512 }, HONE_E_UNSUPPORTED, "rwkv7.context_length is nothing" },
        { { .key = "rwkv7.attention.gate_lora_rank", .value = 12 },
          HONE_E_UNSUPPORTED,
          "time_mix_g1.weight has ne[1]" },
        { { .text = "gpt2", .text_key = "tokenizer.ggml.model" }, HONE_E_UNSUPPORTED, "is \"gpt2\", expected rwkv" },
    };
    model m;
    make_model(&m, 7);
    make_folder(&m, "BF16");
    write_text(in_dir("hf/rwkv_vocab_v20230424.txt"), "1 'a' 1\n2 'b' 1\n");
    convert(in_dir("hf"), NULL, in_dir("m.gguf"));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rewrite(in_dir("m.gguf"), in_dir("x.gguf"), &all[i].c);
        refused(in_dir("x.gguf"), all[i].st, all[i].says);
    }
    /* copies that nothing reads need not be copies, but must be there: hone's reader wants them */
    rewrite(in_dir("m.gguf"), in_dir("x.gguf"), &(change){ .leave = "blk.0.time_mix_v2.weight" });
    refused(in_dir("x.gguf"), HONE_E_UNSUPPORTED, "has no tensor blk.0.time_mix_v2.weight");
}

static bool stop(void *arg) { return --*(int *)arg < 0; }
static void test_stopped(void **state)
{
    model m;
    make_model(&m, 6);
    make_folder(&m, "F32");
    write_text(in_dir("hf/rwkv_vocab_v20230424.txt"), "1 'a' 1\n2 'b' 1\n");
    convert(in_dir("hf"), NULL, in_dir("m.gguf"));
    int n = 0;
    for (;; n++) {
        int left = n;
        hone_error err = { 0 };
        const hone_progress pr = { .arg = &left, .abort_fn = stop };
        hone_status st = hone_convert(in_dir("m.gguf"), NULL, NULL, in_dir("never"), &pr, &err);
        if (st == HONE_OK) break;
        assert_int_equal(st, HONE_E_INTERRUPTED);
        assert_int_equal(access(in_dir("never"), F_OK), -1);
    }
    assert_true(n > 60);
    clear("never");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_odd_sizes), cmocka_unit_test(test_other_sources),
        cmocka_unit_test(test_vocabulary),     cmocka_unit_test(test_published), cmocka_unit_test(test_rescaled),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
