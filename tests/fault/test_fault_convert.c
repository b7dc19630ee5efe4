/* Out of memory at every possible place of a conversion: the k-th allocation fails, for k = 1, 2, …
 * until it succeeds. Each failure is HONE_E_NOMEM with a message and leaves no file, nothing leaks
 * (AddressSanitizer sees that in the asan flavour), and the same call succeeds afterwards. */
#include "../unit/rwkv_files.h"

#include <stdarg.h>
#include <sys/mman.h>

#include "failing.h"

/* ---- what is tried ----------------------------------------------------------------------- */

/* A file, or the folder that came back. */
static void remove_output(const char *dst)
{
    if (unlink(dst) == 0) return;
    empty_folder(dst);
    rmdir(dst);
}

static void fail_each(const char *src, const char *vocabulary, const char *type)
{
    char dst[192];
    bool back = strstr(src, ".gguf") != NULL;
    snprintf(dst, sizeof dst, "%s/out%s", dir, back ? "" : ".gguf");
    hone_error err;
    assert_int_equal(hone_convert(src, vocabulary, type, dst, NULL, &err), HONE_OK);
    remove_output(dst);
    int files = n_files(dir);
    long k = 0, tried = 0;
    for (;; k++) {
        memset(&err, 0, sizeof err);
        n_failed = 0;
        countdown = k;
        hone_status st = hone_convert(src, vocabulary, type, dst, NULL, &err);
        countdown = -1;
        if (st == HONE_OK) remove_output(dst);
        assert_int_equal(n_files(dir), files);
        if (!n_failed) {
            assert_int_equal(st, HONE_OK);
            break;
        }
        tried++;
        if (st == HONE_OK) continue; /* it can do without that memory */
        if (st != HONE_E_NOMEM || err.code != st || !err.message[0])
            fail_msg("allocation %ld: status %d, message: %s", k, st, err.message);
        assert_true(k < 100000);
    }
    assert_true(tried > 20);
}

static void files(void **state)
{
    model m;
    char src[192], vocabulary[192];
    snprintf(src, sizeof src, "%s/m", dir);
    snprintf(vocabulary, sizeof vocabulary, "%s/v", dir);
    write_text(vocabulary, "1 'a' 1\n2 b'\\xff' 1\n");
    make_model(&m, 7);
    write_bin(src, &m);
    fail_each(src, vocabulary, "Q8_0");
    write_safetensors(src, &m, ORIGINAL, "BF16");
    fail_each(src, NULL, NULL);
    make_model(&m, 6);
    write_safetensors(src, &m, HF, "F32");
    fail_each(src, NULL, "F16");
}

static void folder(void **state)
{
    model m;
    char config[2048], src[192];
    make_model(&m, 7);
    snprintf(src, sizeof src, "%s/hf", dir);
    mkdir(src, 0700);
    snprintf(config, sizeof config, CONFIG7, "");
    write_text(in_dir("hf/config.json"), config);
    write_text(in_dir("hf/rwkv_vocab_v20230424.txt"), "1 'a' 1\n");
    write_text(in_dir("hf/tokenizer_config.json"), "{\"chat_template\":\"x\"}");
    FILE *f = fopen(in_dir("hf/model.safetensors.index.json"), "w");
    assert_non_null(f);
    for (size_t i = 0; i < m.n; i++) {
        char name[128];
        dialect_name(name, sizeof name, &m.t[i], FLA);
        fprintf(f, "%s\"%s\":\"%s.safetensors\"", i ? "," : "{\"weight_map\":{", name, i % 2 ? "b" : "a");
    }
    fprintf(f, "}}");
    fclose(f);
    write_safetensors_part(in_dir("hf/a.safetensors"), &m, FLA, "F32", 0, 2);
    write_safetensors_part(in_dir("hf/b.safetensors"), &m, FLA, "F32", 1, 2);
    fail_each(src, NULL, NULL);
}

/* The way back: nothing is left of a folder that was not finished. */
static void back(void **state)
{
    for (int version = 6; version <= 7; version++) {
        hone_error err;
        model m;
        char src[192];
        make_model(&m, version);
        write_text(in_dir("v.txt"), "1 'a' 1\n2 b'\\xff' 1\n");
        write_safetensors(in_dir("m.safetensors"), &m, ORIGINAL, "BF16");
        snprintf(src, sizeof src, "%s/m.gguf", dir);
        if (hone_convert(in_dir("m.safetensors"), in_dir("v.txt"), NULL, src, NULL, &err) != HONE_OK)
            fail_msg("%s", err.message);
        fail_each(src, NULL, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(files), cmocka_unit_test(folder), cmocka_unit_test(back) };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
