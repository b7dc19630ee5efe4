/* Out of memory at every possible place of a folder's conversion, and of the way back: the k-th allocation fails, for
 * k = 1, 2, … until it succeeds. Each failure is HONE_E_NOMEM with a message, and leaves no file. */
#define _GNU_SOURCE
#include "../unit/hf_files.h"

#include "fail_each.h"

static char dir[64];
static const char *type;

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-fault-hf-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}
static int remove_dir(void **state) { return hf_remove(dir); }

static int n_files(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

static hone_status convert(hone_error *err)
{
    char src[128], dst[128];
    snprintf(src, sizeof src, "%s/hf", dir);
    snprintf(dst, sizeof dst, "%s/out.gguf", dir);
    hone_status st = hone_convert(src, NULL, type, dst, NULL, err);
    assert_int_equal(n_files(), st == HONE_OK ? 2 : 1);
    unlink(dst);
    return st;
}

static void each(const hf_folder *f, const char *as)
{
    char src[128];
    snprintf(src, sizeof src, "%s/hf", dir);
    hf_write(f, src);
    hf_write_text(src, "generation_config.json", "{\"top_k\":20,\"temperature\":0.6}");
    type = as;
    fail_each(convert);
    assert_int_equal(hf_remove(src), 0);
}

static void llama(void **state)
{
    hf_folder f;
    hf_llama(&f);
    each(&f, NULL);
}
static void shards(void **state)
{
    hf_folder f;
    hf_gemma2(&f);
    each(&f, "Q8_0");
}
static void held_whole(void **state)
{
    hf_folder f;
    hf_gpt2(&f);
    each(&f, "F16");
}

/* A config that its class completes. */
static void unsaid(void **state)
{
    static const char kinds[] = "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\","
                                "\"full_attention\"],";
    char config[2048];
    hf_folder f;
    hf_gemma4_of(&f, 4, 4, 4); /* unsaid, the last sees everything */
    const char *p = strstr(f.config, kinds), *shared = strstr(f.config, "\"num_kv_shared_layers\":2,");
    assert_true(p && shared && shared < p);
    snprintf(config, sizeof config, "%.*s%.*s%s", (int)(shared - f.config), f.config,
             (int)(p - shared - strlen("\"num_kv_shared_layers\":2,")), shared + strlen("\"num_kv_shared_layers\":2,"),
             p + sizeof kinds - 1);
    f.config = config;
    each(&f, "F32");
}

/* The way back: nothing is left of a folder that was not finished. */
static hone_status convert_back(hone_error *err)
{
    char src[128], dst[128];
    snprintf(src, sizeof src, "%s/in.gguf", dir);
    snprintf(dst, sizeof dst, "%s/back", dir);
    hone_status st = hone_convert(src, NULL, NULL, dst, NULL, err);
    assert_int_equal(access(dst, F_OK) == 0, st == HONE_OK);
    if (st == HONE_OK) hf_remove(dst);
    return st;
}

static void back_of(const hf_folder *f, bool dense)
{
    char src[128], dst[128];
    hone_error err;
    snprintf(src, sizeof src, "%s/hf", dir);
    snprintf(dst, sizeof dst, "%s/in.gguf", dir);
    hf_write(f, src);
    if (dense) hf_modules(src, "mean_tokens", true);
    if (hone_convert(src, NULL, "F32", dst, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    fail_each(convert_back);
    unlink(dst);
    assert_int_equal(hf_remove(src), 0);
}

static void back(void **state)
{
    hf_folder f;
    hf_llama(&f);
    back_of(&f, false);
    hf_gemma4(&f);
    back_of(&f, false);
    hf_gemma3n(&f);
    back_of(&f, false);
    hf_kimi(&f);
    back_of(&f, false);
    hf_roberta(&f);
    back_of(&f, false);
    hf_embedding_gemma(&f);
    back_of(&f, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(llama), cmocka_unit_test(shards), cmocka_unit_test(held_whole),
                                        cmocka_unit_test(unsaid), cmocka_unit_test(back) };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
