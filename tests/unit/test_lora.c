/* Adapters in GGUF files: what is written is read back; a file that does not fit its
 * model, or is no adapter hone knows, is refused by name. */
#include "model/lora.h"
#include "tiny_model.h"

#include <math.h>

enum { RANK = 3 };

static tiny *base_tiny;
static hone_model *base;

/* ---- adapters to write and to spoil -------------------------------------------------------- */

/* An adapter file as llama.cpp lays it out, tensor by tensor. */
static tiny *adapter_new(const char *arch, float alpha)
{
    tiny *a = calloc(1, sizeof *a);
    assert_non_null(a);
    a->s.arch = arch;
    tm_put_str(a, "general.architecture", arch);
    tm_put_str(a, "general.type", "adapter");
    tm_put_str(a, "adapter.type", "lora");
    tm_put_f32(a, "adapter.lora.alpha", alpha);
    return a;
}
static void add_half(tiny *a, const char *tensor, char letter, uint64_t ne0, uint64_t ne1)
{
    char name[64];
    snprintf(name, sizeof name, "%s.lora_%c", tensor, letter);
    tm_add(a, name, 2, ne0, ne1);
}
static void add_pair(tiny *a, const char *tensor, uint64_t n_in, uint64_t n_out, uint64_t rank)
{
    add_half(a, tensor, 'a', n_in, rank);
    add_half(a, tensor, 'b', rank, n_out);
}
static tiny *good(void)
{
    tiny *a = adapter_new("llama", 6);
    add_pair(a, "blk.1.ffn_down.weight", 48, 32, RANK); /* not in the order of the base */
    add_pair(a, "blk.0.attn_q.weight", 32, 32, RANK);
    return a;
}

static hone_status open_it(tiny *a, const hone_model *m, hn_lora **out, hone_error *err)
{
    static int k;
    char name[32];
    snprintf(name, sizeof name, "a%d.gguf", k++);
    tm_save_raw(a, tm_path(name));
    tm_free(a);
    return hn_lora_open(out, m, tm_path(name), err);
}

static void refused(tiny *a, const hone_model *m, hone_status want, const char *words)
{
    hone_error err = { 0 };
    hn_lora *l = (void *)1;
    hone_status st = open_it(a, m, &l, &err);
    assert_null(l);
    if (st != want || !strstr(err.message, words))
        fail_msg("%s, expected %s: %s (expected \"%s\")", hone_status_name(st), hone_status_name(want), err.message,
                 words);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void reads(void **state)
{
    hone_error err = { 0 };
    hn_lora *l;
    tiny *a = good();
    tm_put_str(a, "general.name", "one");
    const float q_a0 = tm_find(a, "blk.0.attn_q.weight.lora_a")->f[5],
                down_b9 = tm_find(a, "blk.1.ffn_down.weight.lora_b")->f[9];
    if (open_it(a, base, &l, &err)) fail_msg("%s", err.message);
    assert_int_equal(l->n_pair, 2);
    assert_string_equal(l->pair[0].name, "blk.0.attn_q.weight");
    assert_string_equal(l->pair[1].name, "blk.1.ffn_down.weight");
    assert_string_equal(l->name, "one");
    assert_string_equal(l->arch, "llama");
    assert_true(l->pair[1].n_in == 48 && l->pair[1].n_out == 32 && l->pair[1].rank == RANK && l->pair[1].scale == 2.0f);
    assert_true(l->pair[0].a[5] == q_a0 && l->pair[1].b[9] == down_b9);
    hn_lora_close(l);
}

static void without_alpha(void **state)
{
    hone_error err = { 0 };
    for (int absent = 0; absent < 2; absent++) {
        hn_lora *l;
        tiny *a = good();
        if (absent) tm_drop_kv(a, "adapter.lora.alpha");
        else tm_put_f32(a, "adapter.lora.alpha", 0);
        if (open_it(a, base, &l, &err)) fail_msg("%s", err.message);
        assert_true(l->pair[0].scale == 1.0f && l->pair[1].scale == 1.0f);
        hn_lora_close(l);
    }
}

/* A base that sees goes by its text's name here; an adapter made for it still has the other. */
static void names_of_the_base(void **state)
{
    static const struct {
        const char *arch, *base;
        bool fits;
    } list[] = { { "qwen2vl", "qwen2", true },     { "qwen25vl", "qwen2", true }, { "qwen2", "qwen2", true },
                 { "qwen3vl", "qwen3", true },     { "qwen3vl", "qwen2", false }, { "qwen2vl", "qwen3", false },
                 { "qwen3vlmoe", "qwen3", false }, { "gptoss", "qwen2", false } };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        hone_error err = { 0 };
        hn_lora *l = NULL;
        hone_model *m = NULL;
        const tm_shape *shape = !strcmp(list[i].base, "qwen2") ? &tm_qwen2 : &tm_qwen3;
        tiny *t = tm_new(*shape), *a = adapter_new(list[i].arch, 6);
        tm_save_raw(t, tm_path("named.gguf"));
        assert_int_equal(hone_model_open(&m, tm_path("named.gguf"), NULL, &err), HONE_OK);
        add_pair(a, "blk.0.ffn_up.weight", 32, 48, RANK);
        if (list[i].fits) {
            if (open_it(a, m, &l, &err)) fail_msg("%s: %s", list[i].arch, err.message);
            assert_string_equal(l->pair[0].name, "blk.0.ffn_up.weight");
            hn_lora_close(l);
        } else {
            refused(a, m, HONE_E_FORMAT, "wrong base model");
        }
        hone_model_close(m);
        tm_free(t);
    }
}

static void every_type(void **state)
{
    static const hn_type types[] = { HN_F16, HN_BF16, HN_Q8_0, HN_Q4_0 };
    hone_error err = { 0 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        hn_lora *l;
        tiny *a = adapter_new("llama", 32);
        add_pair(a, "blk.0.attn_q.weight", 32, 32, 32);
        tm_retype(a, "blk.0.attn_q.weight.lora_a", types[i]);
        tm_retype(a, "blk.0.attn_q.weight.lora_b", types[i]);
        float want[2][32 * 32];
        memcpy(want[0], tm_find(a, "blk.0.attn_q.weight.lora_a")->f, sizeof want[0]);
        memcpy(want[1], tm_find(a, "blk.0.attn_q.weight.lora_b")->f, sizeof want[1]);
        if (open_it(a, base, &l, &err)) fail_msg("%s", err.message);
        assert_memory_equal(l->pair[0].a, want[0], sizeof want[0]);
        assert_memory_equal(l->pair[0].b, want[1], sizeof want[1]);
        hn_lora_close(l);
    }
}

static void wrong_files(void **state)
{
    tiny *a;
    refused(adapter_new("llama", 1), base, HONE_E_FORMAT, "no tensors");
    (a = good(), tm_put_str(a, "general.type", "model"));
    refused(a, base, HONE_E_FORMAT, "not an adapter");
    (a = good(), tm_drop_kv(a, "general.type"));
    refused(a, base, HONE_E_FORMAT, "not an adapter");
    (a = good(), tm_put_str(a, "adapter.type", "control"));
    refused(a, base, HONE_E_UNSUPPORTED, "adapter.type");
    (a = good(), tm_put_str(a, "general.architecture", "qwen2"));
    refused(a, base, HONE_E_FORMAT, "wrong base model");
    (a = good(), tm_put_str(a, "adapter.alora.invocation_string", "x"));
    refused(a, base, HONE_E_UNSUPPORTED, "activated LoRA");
    (a = good(), tm_drop(a, "blk.0.attn_q.weight.lora_a"));
    refused(a, base, HONE_E_FORMAT, "only half B");
    (a = good(), tm_drop(a, "blk.1.ffn_down.weight.lora_b"));
    refused(a, base, HONE_E_FORMAT, "only half A");
    (a = good(), tm_add(a, "blk.0.attn_norm.weight", 1, 32, 1));
    refused(a, base, HONE_E_UNSUPPORTED, "no half");
    (a = good(), add_pair(a, "blk.2.attn_q.weight", 32, 32, RANK));
    refused(a, base, HONE_E_FORMAT, "does not have");
    (a = good(), add_pair(a, "blk.0.attn_norm.weight", 32, 1, RANK));
    refused(a, base, HONE_E_UNSUPPORTED, "not a matrix");
    (a = good(), add_pair(a, "token_embd.weight", 32, 16, RANK));
    refused(a, base, HONE_E_UNSUPPORTED, "not of embeddings");
    (a = good(), add_pair(a, "blk.0.attn_k.weight", 31, 16, RANK));
    refused(a, base, HONE_E_FORMAT, "wrong base model?");
    (a = good(), add_pair(a, "blk.0.attn_k.weight", 32, 32, RANK));
    refused(a, base, HONE_E_FORMAT, "wrong base model?");
    (a = good(), add_half(a, "blk.0.attn_k.weight", 'a', 32, 4), add_half(a, "blk.0.attn_k.weight", 'b', 3, 16));
    refused(a, base, HONE_E_FORMAT, "expected the same");
    (a = good(), add_half(a, "blk.0.attn_k.weight", 'a', 4, 32),
     add_half(a, "blk.0.attn_k.weight", 'b', 16, 4)); /* as files were once */
    refused(a, base, HONE_E_FORMAT, "has shape");
    (a = good(), tm_put_f32(a, "adapter.lora.alpha", NAN));
    refused(a, base, HONE_E_FORMAT, "adapter.lora.alpha");
}

static void wrong_numbers(void **state)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    for (int i = 0; i < 3; i++) {
        tiny *a = good();
        ((float *)tm_find(a, "blk.0.attn_q.weight.lora_b")->data)[17] = bad[i];
        refused(a, base, HONE_E_NUMERIC, "blk.0.attn_q.weight.lora_b: element 17");
    }
}

static void wrong_paths(void **state)
{
    hone_error err = { 0 };
    hn_lora *l;
    assert_int_equal(hn_lora_open(&l, base, tm_path("nothing.gguf"), &err), HONE_E_IO);
    tm_save_raw(base_tiny, tm_path("model.gguf"));
    assert_int_equal(hn_lora_open(&l, base, tm_path("model.gguf"), &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "not an adapter"));
    FILE *f = fopen(tm_path("adapter_model.safetensors"), "w");
    assert_non_null(f);
    fputs("\x02\0\0\0\0\0\0\0{}", f);
    fclose(f);
    assert_int_equal(hn_lora_open(&l, base, tm_path("adapter_model.safetensors"), &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "folder"));
}

static bool hits(const char *read, const char *dst)
{
    const hn_file_use use = { read, "the adapter", NULL, HN_FILE_READ };
    return hn_lora_apart(dst, false, &use, 1, NULL) == HONE_E_ARG;
}

/* What a new file may not replace: the adapter, any part of one that is split, either file of a folder. */
static void own_files(void **state)
{
    static const char split[] = "tests/fuzz/corpus/gguf/py_split-0000%d-of-00003.gguf",
                      peft[] = "tests/golden/lora_peft";
    char a[128], b[128];
    for (int i = 1; i <= 3; i++)
        for (int k = 1; k <= 3; k++) {
            snprintf(a, sizeof a, split, i), snprintf(b, sizeof b, split, k);
            assert_true(hits(a, b));
        }
    assert_true(hits(peft, "tests/golden/../golden/lora_peft"));
    assert_true(hits(peft, "tests/golden/lora_peft/adapter_config.json"));
    assert_true(hits("tests/golden/lora_peft/", "tests/golden/lora_peft/adapter_model.safetensors"));
    assert_false(hits(peft, a));
    assert_false(hits(a, "tests/golden/lora_peft/adapter_config.json"));
    assert_false(hits(a, tm_path("new.gguf")));
    assert_false(hits(tm_path("none.gguf"), a));
}

static void tied_head(void **state)
{
    tiny *t = tm_new(tm_llama_tied);
    hone_model *m = tm_open(t);
    tiny *a = adapter_new("llama", 1);
    add_pair(a, "output.weight", 32, 16, RANK);
    refused(a, m, HONE_E_UNSUPPORTED, "token embedding");
    hone_model_close(m);
    tm_free(t);
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void fill(float *x, int64_t n, const char *name)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)tm_u(name, (uint64_t)i);
}

static void writes(void **state)
{
    float qa[RANK * 32], qb[32 * RANK], va[5 * 32], vb[16 * 5];
    fill(qa, RANK * 32, "qa"), fill(qb, RANK * 32, "qb"), fill(va, 5 * 32, "va"), fill(vb, 16 * 5, "vb");
    const hn_lora_pair pair[2] = {
        { .name = (char *)"blk.0.attn_q.weight", .n_in = 32, .n_out = 32, .rank = RANK, .a = qa, .b = qb, .scale = 2 },
        { .name = (char *)"blk.1.attn_v.weight", .n_in = 32, .n_out = 16, .rank = 5, .a = va, .b = vb, .scale = 2 }
    };
    for (int f16 = 0; f16 < 2; f16++) {
        hn_lora_about about = { .name = "two",
                                .arch = "llama",
                                .base_name = "tiny",
                                .alpha = 6,
                                .dropout = 0.5f,
                                .steps = 7,
                                .type = f16 ? HN_F16 : HN_F32 };
        hone_error err = { 0 };
        hn_lora *l;
        const char *path = tm_path("w.gguf");
        if (hn_lora_write_gguf(path, pair, 2, &about, &err)) fail_msg("%s", err.message);
        if (hn_lora_open(&l, base, path, &err)) fail_msg("%s", err.message);
        assert_int_equal(l->n_pair, 2);
        assert_string_equal(l->name, "two");
        assert_true(l->pair[0].scale == 2.0f);
        for (int i = 0; i < 2; i++) /* s·B comes back, whatever of it is in the scale */
            for (int64_t k = 0; k < pair[i].n_out * pair[i].rank; k++)
                assert_true(fabsf(l->pair[i].scale * l->pair[i].b[k] - pair[i].scale * pair[i].b[k]) <=
                            (f16 ? 2e-3f : 1e-6f));
        if (!f16) {
            assert_memory_equal(l->pair[0].a, qa, sizeof qa);
            assert_memory_equal(l->pair[0].b, qb, sizeof qb);
            assert_memory_equal(l->pair[1].a, va, sizeof va);
        }
        hn_lora_close(l);
        hone_file *file;
        assert_int_equal(hone_file_open(&file, path, &err), HONE_OK);
        assert_true(hone_file_find_tensor(file, "blk.0.attn_q.weight.lora_a") >= 0);
        hone_tensor_info info;
        hone_file_tensor(file, (uint64_t)hone_file_find_tensor(file, "blk.1.attn_v.weight.lora_b"), &info);
        assert_true(info.ne[0] == 5 && info.ne[1] == 16 && info.type == (f16 ? HN_F16 : HN_F32));
        hone_file_close(file);
    }
}

static void does_not_write(void **state)
{
    float a[32] = { 0 }, b[32] = { 0 };
    hn_lora_pair pair = {
        .name = (char *)"blk.0.attn_q.weight", .n_in = 32, .n_out = 32, .rank = 1, .a = a, .b = b, .scale = 1
    };
    hn_lora_about about = { .arch = "llama", .alpha = 1, .type = HN_F16 };
    hone_error err = { 0 };
    b[3] = 70000;
    assert_int_equal(hn_lora_write_gguf(tm_path("no.gguf"), &pair, 1, &about, &err), HONE_E_NUMERIC);
    assert_non_null(strstr(err.message, "lora_b: element 3"));
    b[3] = NAN;
    about.type = HN_F32;
    assert_int_equal(hn_lora_write_gguf(tm_path("no.gguf"), &pair, 1, &about, &err), HONE_E_NUMERIC);
    b[3] = 0;
    about.type = HN_Q8_0;
    assert_int_equal(hn_lora_write_gguf(tm_path("no.gguf"), &pair, 1, &about, &err), HONE_E_ARG);
    about.type = HN_F32;
    pair.name = (char *)"blk.0.a_name_that_is_longer_than_readers_take_it_in_files.weight";
    assert_int_equal(hn_lora_write_gguf(tm_path("no.gguf"), &pair, 1, &about, &err), HONE_E_ARG);
    assert_int_equal(access(tm_path("no.gguf"), F_OK), -1);
}

static void hashes(void **state)
{
    uint64_t h[4];
    hone_error err = { 0 };
    for (int i = 0; i < 4; i++) {
        hn_lora *l;
        tiny *a = good();
        if (i == 1) tm_put_f32(a, "adapter.lora.alpha", 7);
        if (i == 2) ((float *)tm_find(a, "blk.0.attn_q.weight.lora_b")->data)[1] += 1;
        if (open_it(a, base, &l, &err)) fail_msg("%s", err.message);
        h[i] = l->hash;
        hn_lora_close(l);
    }
    assert_true(h[0] == h[3] && h[0] != h[1] && h[0] != h[2] && h[1] != h[2]);
}

static int setup(void **state)
{
    if (tm_make_dir(state)) return -1;
    base_tiny = tm_new(tm_llama);
    base = tm_open(base_tiny);
    return 0;
}
static int teardown(void **state)
{
    hone_model_close(base);
    tm_free(base_tiny);
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),       cmocka_unit_test(without_alpha),  cmocka_unit_test(names_of_the_base),
        cmocka_unit_test(every_type),  cmocka_unit_test(wrong_files),    cmocka_unit_test(wrong_numbers),
        cmocka_unit_test(wrong_paths), cmocka_unit_test(own_files),      cmocka_unit_test(tied_head),
        cmocka_unit_test(writes),      cmocka_unit_test(does_not_write), cmocka_unit_test(hashes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
