/* The writer: byte for byte what the format document and the public gguf package write,
 * and no trace left where it fails. */
#include "gguf/gguf.h"
#include "gguf_bytes.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define CORPUS "tests/fuzz/corpus/gguf/"

static char dir[] = "/tmp/hone-test-ggufw-XXXXXX";
static const char *out_path(void)
{
    static char p[64];
    snprintf(p, sizeof p, "%s/out.gguf", dir);
    return p;
}

static unsigned char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s: cannot open", path);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *p = malloc(*n + 1);
    assert_int_equal(fread(p, 1, *n, f), *n);
    fclose(f);
    return p;
}

static void same_bytes(const char *a, const char *b)
{
    size_t na, nb;
    unsigned char *pa = slurp(a, &na), *pb = slurp(b, &nb);
    for (size_t i = 0; i < na && i < nb; i++)
        if (pa[i] != pb[i]) fail_msg("%s and %s differ at byte %zu: %02x, %02x", a, b, i, pa[i], pb[i]);
    if (na != nb) fail_msg("%s has %zu bytes, %s has %zu", a, na, b, nb);
    free(pa);
    free(pb);
}

static int files_in_dir(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

#define OK(x)                                                                       \
    do {                                                                            \
        hone_error err = { 0 };                                                     \
        if ((x) != HONE_OK) fail_msg("line %d: %s: %s", __LINE__, #x, err.message); \
    } while (0)
#define FAILS(x, st, text)                                                                                 \
    do {                                                                                                   \
        hone_error err = { 0 };                                                                            \
        assert_int_equal((x), st);                                                                         \
        if (!strstr(err.message, text)) fail_msg("line %d: '%s' not in: %s", __LINE__, text, err.message); \
    } while (0)

static hn_gguf_writer *new_writer(void)
{
    hn_gguf_writer *w;
    OK(hn_gguf_writer_new(&w, &err));
    return w;
}

static void test_example(void **state)
{
    hn_gguf_writer *w = new_writer();
    const int32_t ids[3] = { 1, -1, 7 };
    const float x[6] = { 1, 2, 3, 4, 5, 6 };
    OK(hn_gguf_put_str(w, "general.architecture", "llama", 5, &err));
    OK(hn_gguf_put_u32(w, "llama.block_count", 1, &err));
    OK(hn_gguf_put_array(w, "x.ids", HONE_KV_I32, ids, 3, &err));
    OK(hn_gguf_put_tensor(w, "t.weight", HN_F32, NE(2, 3), 2, &err));
    assert_int_equal(hn_gguf_write_size(w), 224);
    OK(hn_gguf_write_begin(w, out_path(), &err));
    assert_int_equal(files_in_dir(), 1); /* the temporary one */
    assert_int_not_equal(access(out_path(), F_OK), 0);
    OK(hn_gguf_write_data(w, x, 12, &err)); /* in pieces */
    OK(hn_gguf_write_data(w, (const char *)x + 12, 1, &err));
    OK(hn_gguf_write_data(w, (const char *)x + 13, 11, &err));
    OK(hn_gguf_write_end(w, &err));
    hn_gguf_writer_free(w);
    assert_int_equal(files_in_dir(), 1);
    same_bytes(out_path(), CORPUS "example.gguf");
    unlink(out_path());
}

static void test_put(void **state)
{
    hn_gguf_writer *w = new_writer();
    bb b = bb_head(3, 2, 11);
    const hone_str s[3] = { { "one", 3 }, { "", 0 }, { "\xff\0x", 3 } };
    const uint8_t bools[3] = { 1, 0, 1 };
    const uint16_t u16[2] = { 1, 65535 };
    const double f64[1] = { 0.1 };
    OK(hn_gguf_put_u32(w, "a.u32", 0xDEADBEEF, &err));
    bb_kv(&b, "a.u32", 4, 0xDEADBEEF, 4);
    OK(hn_gguf_put_i32(w, "a.i32", -2, &err));
    bb_kv(&b, "a.i32", 5, 0xFFFFFFFE, 4);
    OK(hn_gguf_put_u64(w, "a.u64", 0x0123456789ABCDEF, &err));
    bb_kv(&b, "a.u64", 10, 0x0123456789ABCDEF, 8);
    OK(hn_gguf_put_f32(w, "a.f32", -1.5f, &err));
    bb_kv(&b, "a.f32", 6, 0xBFC00000, 4);
    OK(hn_gguf_put_bool(w, "a.true", true, &err));
    bb_kv(&b, "a.true", 7, 1, 1);
    OK(hn_gguf_put_bool(w, "a.false", false, &err));
    bb_kv(&b, "a.false", 7, 0, 1);
    OK(hn_gguf_put_str(w, "a.str", "text", 4, &err));
    bb_kv_str(&b, "a.str", "text");
    OK(hn_gguf_put_str_array(w, "a.strs", s, 3, &err));
    bb_kv_array(&b, "a.strs", 8, 3);
    bb_str(&b, "one"), bb_str(&b, ""), bb_strn(&b, "\xff\0x", 3);
    OK(hn_gguf_put_array(w, "a.bools", HONE_KV_BOOL, bools, 3, &err));
    bb_kv_array(&b, "a.bools", 7, 3), bb_raw(&b, bools, 3);
    OK(hn_gguf_put_array(w, "a.u16s", HONE_KV_U16, u16, 2, &err));
    bb_kv_array(&b, "a.u16s", 2, 2), bb_le(&b, 1, 2), bb_le(&b, 65535, 2);
    OK(hn_gguf_put_array(w, "a.f64s", HONE_KV_F64, f64, 1, &err));
    bb_kv_array(&b, "a.f64s", 12, 1), bb_u64(&b, 0x3FB999999999999A);
    OK(hn_gguf_put_tensor(w, "odd", HN_I8, NE(5), 1, &err));
    bb_tensor(&b, "odd", 1, NE(5), 24, 0);
    OK(hn_gguf_put_tensor(w, "big", HN_F32, NE(1 << 10, 3 << 9), 2, &err));
    bb_tensor(&b, "big", 2, NE(1 << 10, 3 << 9), 0, 32);
    bb_pad(&b, 32);
    bb_raw(&b, "12345", 5);
    bb_pad(&b, 32);
    size_t n = (size_t)6 << 20, at = b.n; /* larger than the writer's buffer */
    bb_raw(&b, NULL, n);
    for (size_t i = 0; i < n; i++) b.p[at + i] = (unsigned char)(hn_mix64(i) >> 3);
    assert_int_equal(hn_gguf_write_size(w), b.n);
    OK(hn_gguf_write_begin(w, out_path(), &err));
    OK(hn_gguf_write_data(w, "12345", 5, &err));
    for (size_t i = 0, k = 1; i < n; i += k, k = k * 3 + 1) { /* pieces below and above the buffer */
        if (k > n - i) k = n - i;
        OK(hn_gguf_write_data(w, b.p + at + i, k, &err));
    }
    OK(hn_gguf_write_end(w, &err));
    hn_gguf_writer_free(w);
    char want[80];
    snprintf(want, sizeof want, "%s/want.gguf", dir);
    bb_save(&b, want);
    same_bytes(out_path(), want);
    unlink(want);
    unlink(out_path());
    bb_free(&b);
}

/* Reading and writing again gives the bytes that the public gguf package wrote. */
static void copy_file(const char *path)
{
    hn_gguf *g;
    OK(hn_gguf_open(&g, path, &err));
    hn_gguf_writer *w = new_writer();
    OK(hn_gguf_put_all(w, g, NULL, &err));
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, i);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        OK(hn_gguf_put_tensor(w, name, t->type, t->ne, t->n_dim, &err));
    }
    assert_int_equal(hn_gguf_write_size(w), hn_gguf_size(g));
    OK(hn_gguf_write_begin(w, out_path(), &err));
    for (uint64_t i = 0; i < hn_gguf_n_tensors(g); i++)
        OK(hn_gguf_write_data(w, hn_gguf_tensor_at(g, i)->data, hn_gguf_tensor_at(g, i)->n_bytes, &err));
    OK(hn_gguf_write_end(w, &err));
    hn_gguf_writer_free(w);
    hn_gguf_close(g);
    same_bytes(out_path(), path);
    unlink(out_path());
}

static void test_copy(void **state)
{
    copy_file(CORPUS "py_kinds.gguf"); /* every kind of value, nested arrays among them */
    copy_file(CORPUS "py_align64.gguf");
    copy_file(CORPUS "py_types.gguf");
    copy_file(CORPUS "example.gguf");
}

static void test_copy_some(void **state)
{
    hn_gguf *g;
    OK(hn_gguf_open(&g, CORPUS "py_split-00002-of-00003.gguf", &err));
    hn_gguf_writer *w = new_writer();
    OK(hn_gguf_put_str(w, "general.architecture", "mine", 4, &err));
    FAILS(hn_gguf_put_all(w, g, NULL, &err), HONE_E_ARG, "'general.architecture' is already there");
    hn_gguf_writer_free(w);
    w = new_writer();
    OK(hn_gguf_put_str(w, "general.architecture", "mine", 4, &err));
    OK(hn_gguf_put_all(w, g, (const char *const[]){ "x.absent", "general.architecture", NULL }, &err));
    OK(hn_gguf_write_begin(w, out_path(), &err));
    OK(hn_gguf_write_end(w, &err));
    hn_gguf_writer_free(w);
    hn_gguf_close(g);
    OK(hn_gguf_open(&g, out_path(), &err));
    assert_int_equal(hn_gguf_n_kv(g), 1); /* and no split.* */
    assert_int_equal(hn_gguf_find(g, "split.count"), -1);
    hn_gguf_close(g);
    unlink(out_path());
}

static void test_bad_calls(void **state)
{
    hn_gguf_writer *w = new_writer();
    char name[65];
    memset(name, 'n', sizeof name);
    name[64] = 0;
    OK(hn_gguf_put_u32(w, "a", 1, &err));
    FAILS(hn_gguf_put_str(w, "a", "x", 1, &err), HONE_E_ARG, "'a' is already there");
    FAILS(hn_gguf_put_u32(w, "", 1, &err), HONE_E_ARG, "empty");
    FAILS(hn_gguf_put_u32(w, "a\n", 1, &err), HONE_E_ARG, "'a\\x0a' contains a control byte");
    FAILS(hn_gguf_put_u32(w, "\xff", 1, &err), HONE_E_ARG, "UTF-8");
    FAILS(hn_gguf_put_array(w, "b", HONE_KV_STRING, "", 1, &err), HONE_E_ARG, "fixed size");
    FAILS(hn_gguf_put_array(w, "b", (hone_kv_type)99, "", 1, &err), HONE_E_ARG, "fixed size");
    FAILS(hn_gguf_put_array(w, "b", HONE_KV_U8, "", (1 << 24) + 1, &err), HONE_E_ARG, "16777217");
    FAILS(hn_gguf_put_array(w, "b", HONE_KV_BOOL, "\2", 1, &err), HONE_E_ARG, "bool 0 is 2");
    FAILS(hn_gguf_put_str(w, "b", "", (64 << 20) + 1, &err), HONE_E_ARG, "67108865");
    FAILS(hn_gguf_put_i32(w, "general.alignment", 64, &err), HONE_E_ARG, "u32");
    FAILS(hn_gguf_put_str(w, "general.alignment", "64", 2, &err), HONE_E_ARG, "u32");
    FAILS(hn_gguf_put_u32(w, "general.alignment", 48, &err), HONE_E_ARG, "48");
    FAILS(hn_gguf_put_tensor(w, "", HN_F32, NE(1), 1, &err), HONE_E_ARG, "empty");
    FAILS(hn_gguf_put_tensor(w, name, HN_F32, NE(1), 1, &err), HONE_E_ARG, "63");
    FAILS(hn_gguf_put_tensor(w, "t", (hn_type)4, NE(32), 1, &err), HONE_E_ARG, "type 4");
    FAILS(hn_gguf_put_tensor(w, "t", HN_Q4_K, NE(128), 1, &err), HONE_E_ARG, "256");
    FAILS(hn_gguf_put_tensor(w, "t", HN_F32, NE(1, 0), 2, &err), HONE_E_ARG, "dimension 1 is 0");
    FAILS(hn_gguf_put_tensor(w, "t", HN_F32, NE((uint64_t)1 << 40, 1 << 20), 2, &err), HONE_E_ARG, "too large");
    FAILS(hn_gguf_put_tensor(w, "t", HN_F32, NE(1), 0, &err), HONE_E_ARG, "0 dimensions");
    FAILS(hn_gguf_put_tensor(w, "t", HN_F32, NE(1, 1, 1, 1, 1), 5, &err), HONE_E_ARG, "5 dimensions");
    name[63] = 0;
    OK(hn_gguf_put_tensor(w, name, HN_F32, NE(2), 1, &err));
    FAILS(hn_gguf_put_tensor(w, name, HN_F32, NE(2), 1, &err), HONE_E_ARG, "already there");
    FAILS(hn_gguf_put_u32(w, "general.alignment", 64, &err), HONE_E_ARG, "after 1 tensors");
    FAILS(hn_gguf_write_data(w, name, 1, &err), HONE_E_ARG, "before write_begin");
    FAILS(hn_gguf_write_end(w, &err), HONE_E_ARG, "before write_begin");
    OK(hn_gguf_write_begin(w, out_path(), &err));
    FAILS(hn_gguf_put_u32(w, "late", 1, &err), HONE_E_ARG, "'late'");
    FAILS(hn_gguf_write_begin(w, out_path(), &err), HONE_E_ARG, "twice");
    OK(hn_gguf_write_data(w, name, 4, &err));
    FAILS(hn_gguf_write_data(w, name, 5, &err), HONE_E_ARG, "9 bytes of data given, 8 expected");
    assert_int_equal(files_in_dir(), 0);
    FAILS(hn_gguf_write_data(w, name, 4, &err), HONE_E_ARG, "after the end");
    hn_gguf_writer_free(w);
    hn_gguf_writer_free(NULL);
}

static hn_gguf_writer *small_writer(void)
{
    hn_gguf_writer *w = new_writer();
    OK(hn_gguf_put_tensor(w, "t", HN_F32, NE(1 << 20), 1, &err));
    return w;
}

static void test_failures_leave_nothing(void **state)
{
    static float x[1 << 20];
    char path[128];
    bb old = { 0 };
    bb_raw(&old, "old", 3);
    bb_save(&old, out_path());
    bb_free(&old);
    /* too little data */
    hn_gguf_writer *w = small_writer();
    OK(hn_gguf_write_begin(w, out_path(), &err));
    OK(hn_gguf_write_data(w, x, 100, &err));
    FAILS(hn_gguf_write_end(w, &err), HONE_E_ARG, "'t': 100 bytes of data given, 4194304 expected");
    hn_gguf_writer_free(w);
    assert_int_equal(files_in_dir(), 1);
    /* freed before the end */
    w = small_writer();
    OK(hn_gguf_write_begin(w, out_path(), &err));
    OK(hn_gguf_write_data(w, x, sizeof x, &err));
    assert_int_equal(files_in_dir(), 2);
    hn_gguf_writer_free(w);
    assert_int_equal(files_in_dir(), 1);
    /* two writers of one process */
    hn_gguf_writer *v = small_writer();
    w = small_writer();
    OK(hn_gguf_write_begin(w, out_path(), &err));
    OK(hn_gguf_write_begin(v, out_path(), &err));
    hn_gguf_writer_free(v);
    assert_int_equal(files_in_dir(), 2);
    hn_gguf_writer_free(w);
    /* more than any disk has */
    w = new_writer();
    for (int i = 0; i < 64; i++) {
        snprintf(path, sizeof path, "t%d", i);
        OK(hn_gguf_put_tensor(w, path, HN_F32, NE((uint64_t)1 << 40, 256), 2, &err));
    }
    FAILS(hn_gguf_write_begin(w, out_path(), &err), HONE_E_IO, "bytes needed");
    hn_gguf_writer_free(w);
    /* a limit known beforehand, and one met on the way */
    struct rlimit rl, low;
    getrlimit(RLIMIT_FSIZE, &rl);
    low = rl;
    low.rlim_cur = 1 << 20;
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &low);
    w = small_writer();
    hone_error e1 = { 0 }, e2 = { 0 };
    hone_status s1 = hn_gguf_write_begin(w, out_path(), &e1);
    hn_gguf_writer_free(w);
    setrlimit(RLIMIT_FSIZE, &rl);
    w = small_writer();
    hone_status s0 = hn_gguf_write_begin(w, out_path(), &e2);
    setrlimit(RLIMIT_FSIZE, &low);
    hone_status s2 = hn_gguf_write_data(w, x, sizeof x, &e2);
    setrlimit(RLIMIT_FSIZE, &rl);
    signal(SIGXFSZ, was);
    assert_int_equal(s1, HONE_E_IO);
    if (!strstr(e1.message, "4194368 bytes needed") || !strstr(e1.message, "1048576")) fail_msg("%s", e1.message);
    assert_int_equal(s0, HONE_OK);
    assert_int_equal(s2, HONE_E_IO);
    if (!strstr(e2.message, "File too large after 1048576 of 4194368 bytes") ||
        !strstr(e2.message, "3145792 more needed"))
        fail_msg("%s", e2.message);
    assert_int_equal(files_in_dir(), 1); /* removed at once, not only at free */
    hn_gguf_writer_free(w);
    /* places where no file can be */
    snprintf(path, sizeof path, "%s/no/such/out.gguf", dir);
    w = small_writer();
    FAILS(hn_gguf_write_begin(w, path, &err), HONE_E_IO, "No such file");
    hn_gguf_writer_free(w);
    w = small_writer();
    FAILS(hn_gguf_write_begin(w, dir, &err), HONE_E_IO, "a directory");
    hn_gguf_writer_free(w);
    w = small_writer();
    FAILS(hn_gguf_write_begin(w, "/dev/null", &err), HONE_E_IO, "a device");
    hn_gguf_writer_free(w);
    w = small_writer();
    FAILS(hn_gguf_write_begin(w, "", &err), HONE_E_ARG, "no file name");
    hn_gguf_writer_free(w);
    /* through all of it, the old file stays */
    size_t n;
    unsigned char *p = slurp(out_path(), &n);
    assert_true(n == 3 && memcmp(p, "old", 3) == 0);
    free(p);
    /* and success replaces it */
    w = small_writer();
    OK(hn_gguf_write_begin(w, out_path(), &err));
    OK(hn_gguf_write_data(w, x, sizeof x, &err));
    OK(hn_gguf_write_end(w, &err));
    FAILS(hn_gguf_write_end(w, &err), HONE_E_ARG, "twice");
    hn_gguf_writer_free(w);
    assert_int_equal(files_in_dir(), 1);
    hn_gguf *g;
    OK(hn_gguf_open(&g, out_path(), &err));
    hn_gguf_close(g);
    unlink(out_path());
}

static void test_alignment(void **state)
{
    for (uint32_t a = 8; a <= 4096; a *= 8) {
        hn_gguf_writer *w = new_writer();
        OK(hn_gguf_put_u32(w, "general.alignment", a, &err));
        OK(hn_gguf_put_tensor(w, "t", HN_I8, NE(3), 1, &err));
        OK(hn_gguf_put_tensor(w, "u", HN_I8, NE(3), 1, &err));
        OK(hn_gguf_write_begin(w, out_path(), &err));
        OK(hn_gguf_write_data(w, "abcd", 3, &err));
        OK(hn_gguf_write_data(w, "efgh", 3, &err));
        OK(hn_gguf_write_end(w, &err));
        hn_gguf_writer_free(w);
        hn_gguf *g;
        OK(hn_gguf_open(&g, out_path(), &err));
        assert_true(hn_gguf_alignment(g) == a && hn_gguf_find_tensor(g, "u")->offset == a && hn_gguf_size(g) % a == 0);
        assert_memory_equal(hn_gguf_find_tensor(g, "u")->data, "efg", 3);
        hn_gguf_close(g);
        unlink(out_path());
    }
}

int main(void)
{
    if (!mkdtemp(dir)) return 1;
    const struct CMUnitTest t[] = {
        cmocka_unit_test(test_example),   cmocka_unit_test(test_put),
        cmocka_unit_test(test_copy),      cmocka_unit_test(test_copy_some),
        cmocka_unit_test(test_bad_calls), cmocka_unit_test(test_failures_leave_nothing),
        cmocka_unit_test(test_alignment),
    };
    int r = cmocka_run_group_tests_name("gguf_write", t, NULL, NULL);
    rmdir(dir);
    return r;
}
