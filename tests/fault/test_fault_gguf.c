/* Out of memory at every possible place: the k-th allocation fails, for k = 1, 2, …
 * until the call succeeds. Each failure must be HONE_E_NOMEM with a message, leave *out
 * NULL and leak nothing (AddressSanitizer's leak check sees that in the asan flavour),
 * and the same call must succeed afterwards. */
#include "gguf/gguf.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "fail_each.h"

/* ---- what is tried ----------------------------------------------------------------------- */

static char path[] = "build/hone-fault-XXXXXX";

static hone_status write_file(hone_error *err)
{
    hn_gguf_writer *w;
    hone_status st = hn_gguf_writer_new(&w, err);
    if (st) {
        assert_null(w);
        return st;
    }
    static const float weights[64] = { 1, 2, 3 };
    const hone_str words[] = { { "a", 1 }, { "bc", 2 }, { "", 0 } };
    const int32_t numbers[] = { 1, 2, 3, 4 };
    char key[32];
    if ((st = hn_gguf_put_str(w, "general.architecture", "llama", 5, err))) goto end;
    if ((st = hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", words, 3, err))) goto end;
    if ((st = hn_gguf_put_array(w, "x.numbers", HONE_KV_I32, numbers, 4, err))) goto end;
    for (int i = 0; i < 40; i++) { /* enough that tables must grow */
        snprintf(key, sizeof key, "x.key%d", i);
        if ((st = hn_gguf_put_u32(w, key, (uint32_t)i, err))) goto end;
    }
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "t%d.weight", i);
        if ((st = hn_gguf_put_tensor(w, key, HN_F32, (uint64_t[]){ 32, 2 }, 2, err))) goto end;
    }
    if ((st = hn_gguf_write_begin(w, path, err))) goto end;
    for (int i = 0; i < 20; i++)
        if ((st = hn_gguf_write_data(w, weights, sizeof weights, err))) goto end;
    st = hn_gguf_write_end(w, err);
end:
    hn_gguf_writer_free(w);
    return st;
}

static hone_status read_file(hone_error *err)
{
    hn_gguf *g = (hn_gguf *)1;
    hone_status st = hn_gguf_open(&g, path, err);
    if (st) {
        assert_null(g);
        return st;
    }
    assert_int_equal(hn_gguf_n_tensors(g), 20);
    assert_non_null(hn_gguf_find_tensor(g, "t19.weight"));
    assert_true(hn_gguf_find(g, "x.key39") >= 0);
    hn_gguf_close(g);
    return HONE_OK;
}

static hone_status view_file(hone_error *err)
{
    hone_file *f = (hone_file *)1;
    hone_status st = hone_file_open(&f, path, err);
    if (st) {
        assert_null(f);
        return st;
    }
    float x[32];
    st = hone_file_read_f32(f, 0, 0, 32, x, err);
    if (!st) assert_true(x[2] == 3);
    hone_file_close(f);
    return st;
}

static void writing(void **state) { fail_each(write_file); }
static void reading(void **state) { fail_each(read_file); }
static void viewing(void **state) { fail_each(view_file); }

static int make(void **state)
{
    int fd = mkstemp(path);
    if (fd < 0) return -1;
    close(fd);
    return 0;
}
static int discard(void **state) { return unlink(path); }

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(writing), cmocka_unit_test(reading),
                                        cmocka_unit_test(viewing) };
    return cmocka_run_group_tests(tests, make, discard);
}
