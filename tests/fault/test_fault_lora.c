/* Out of memory with adapters: opening one (GGUF, PEFT folder), giving it to a session,
 * converting and merging. The k-th allocation fails, for k = 1, 2, … until the call
 * succeeds. Each failure must be HONE_E_NOMEM with a message, leave the session as it
 * was, and leak nothing (AddressSanitizer's leak check sees that in the asan flavour). */
#include "../unit/tiny_model.h"

#include <math.h>
#include <sys/mman.h>

#include "fail_each.h"

/* ---- what is tried ----------------------------------------------------------------------- */

static const char folder[] = "tests/golden/lora_peft";
static char gguf[160], base[160];
static tiny *t;
static hone_model *m;
static hone_context *ctx;
static hone_session *s;
static hone_adapter *kept;

static hone_status open_folder(hone_error *err)
{
    hone_adapter *a;
    hone_status st = hone_adapter_open(&a, m, folder, err);
    assert_true((st == HONE_OK) == (a != NULL));
    hone_adapter_close(a);
    return st;
}
static hone_status open_gguf(hone_error *err)
{
    hone_adapter *a;
    hone_status st = hone_adapter_open(&a, m, gguf, err);
    assert_true((st == HONE_OK) == (a != NULL));
    hone_adapter_close(a);
    return st;
}
static hone_status give(hone_error *err)
{
    hone_adapter *two[2] = { kept, kept };
    uint64_t before = hone_session_adapters_hash(s);
    hone_status st = hone_session_set_adapters(s, two, (float[]){ 1, 0.5f }, 2, err);
    countdown = -1; /* what follows is not under test */
    if (st != HONE_OK) assert_true(hone_session_adapters_hash(s) == before);
    else assert_int_equal(hone_session_set_adapters(s, NULL, NULL, 0, NULL), HONE_OK);
    return st;
}
static hone_status convert_gguf(hone_error *err)
{
    return hone_adapter_convert(m, folder, tm_path("out.gguf"), true, err);
}
static hone_status convert_folder(hone_error *err) { return hone_adapter_convert(m, gguf, tm_path("out"), false, err); }
static hone_status merge(hone_error *err)
{
    const char *const paths[2] = { gguf, folder };
    const hone_merge_params p = { .base = base, .adapters = paths, .n_adapters = 2, .type = "F16" };
    return hone_merge(&p, tm_path("merged.gguf"), NULL, err);
}

static void opening_folder(void **state) { fail_each(open_folder); }
static void opening_gguf(void **state) { fail_each(open_gguf); }
static void giving(void **state) { fail_each(give); }
static void converting_to_gguf(void **state) { fail_each(convert_gguf); }
static void converting_to_folder(void **state) { fail_each(convert_folder); }
static void merging(void **state) { fail_each(merge); }

static int setup(void **state)
{
    hone_error err = { 0 };
    if (tm_make_dir(state)) return -1;
    t = tm_new(tm_llama);
    snprintf(base, sizeof base, "%s", tm_path("base.gguf"));
    tm_save(t, base);
    snprintf(gguf, sizeof gguf, "%s", tm_path("a.gguf"));
    if (hone_model_open(&m, base, NULL, &err) || hone_adapter_convert(m, folder, gguf, false, &err) ||
        hone_adapter_open(&kept, m, gguf, &err))
        fail_msg("%s", err.message);
    ctx = tm_context(NULL, 1);
    s = tm_session(ctx, m, 64, 1, 8, HONE_CACHE_F16);
    return 0;
}
static int teardown(void **state)
{
    char file[200];
    hone_session_free(s);
    hone_context_free(ctx);
    hone_adapter_close(kept);
    hone_model_close(m);
    tm_free(t);
    snprintf(file, sizeof file, "%s/out/adapter_config.json", tm_dir), remove(file);
    snprintf(file, sizeof file, "%s/out/adapter_model.safetensors", tm_dir), remove(file);
    snprintf(file, sizeof file, "%s/out", tm_dir);
    if (rmdir(file)) return -1; /* temporary files were left there */
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_folder),     cmocka_unit_test(opening_gguf),         cmocka_unit_test(giving),
        cmocka_unit_test(converting_to_gguf), cmocka_unit_test(converting_to_folder), cmocka_unit_test(merging)
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
