/* The reader on sound files: those of the public gguf package, the format document's own
 * example, real vocabularies; and all of them cut short. */
#include "gguf/gguf.h"
#include "gguf_bytes.h"
#include "slowed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define CORPUS "tests/fuzz/corpus/gguf/"

static hn_gguf *must_open(const char *path)
{
    hn_gguf *g;
    hone_error err = { 0 };
    if (hn_gguf_open(&g, path, &err) != HONE_OK) fail_msg("%s", err.message);
    return g;
}

static hone_kv kv_of(const hn_gguf *g, const char *key)
{
    hone_kv kv;
    int64_t i = hn_gguf_find(g, key);
    if (i < 0) fail_msg("%s is absent", key);
    hn_gguf_kv(g, (uint64_t)i, &kv);
    assert_true(kv.key.len == strlen(key) && memcmp(kv.key.ptr, key, kv.key.len) == 0);
    return kv;
}

static bool str_is(hone_str s, const char *want) { return s.len == strlen(want) && memcmp(s.ptr, want, s.len) == 0; }

/* corpus/make_gguf.py says what is in these files */
static void test_kinds(void **state)
{
    hn_gguf *g = must_open(CORPUS "py_kinds.gguf");
    assert_true(hn_gguf_version(g) == 3 && hn_gguf_alignment(g) == 32 && hn_gguf_n_parts(g) == 1 &&
                hn_gguf_size(g) == 864);
    assert_string_equal(hn_gguf_path(g), CORPUS "py_kinds.gguf");
    hone_kv k;
    k = kv_of(g, "k.u8");
    assert_true(k.type == HONE_KV_U8 && k.v.u == 200 && k.count == 1);
    k = kv_of(g, "k.i8");
    assert_true(k.type == HONE_KV_I8 && k.v.i == -100);
    k = kv_of(g, "k.u16");
    assert_true(k.type == HONE_KV_U16 && k.v.u == 60000);
    k = kv_of(g, "k.i16");
    assert_true(k.type == HONE_KV_I16 && k.v.i == -30000);
    k = kv_of(g, "k.u32");
    assert_true(k.type == HONE_KV_U32 && k.v.u == 4000000000);
    k = kv_of(g, "k.i32");
    assert_true(k.type == HONE_KV_I32 && k.v.i == -2000000000);
    k = kv_of(g, "k.f32");
    assert_true(k.type == HONE_KV_F32 && k.v.f == (double)0.1f);
    k = kv_of(g, "k.bool");
    assert_true(k.type == HONE_KV_BOOL && k.v.b);
    k = kv_of(g, "k.str");
    assert_true(k.type == HONE_KV_STRING && str_is(k.v.s, "gr\xc3\xbc\xc3\x9f"
                                                          "e \xe2\x96\x81x"));
    k = kv_of(g, "k.u64");
    assert_true(k.type == HONE_KV_U64 && k.v.u == ((uint64_t)1 << 63) + 5);
    k = kv_of(g, "k.i64");
    assert_true(k.type == HONE_KV_I64 && k.v.i == -((int64_t)1 << 62));
    k = kv_of(g, "k.f64");
    assert_true(k.type == HONE_KV_F64 && k.v.f == -1e300);
    hn_gguf_array a, in;
    bool found;
    assert_int_equal(hn_gguf_get_array(g, "k.a_i32", &a, &found, NULL), HONE_OK);
    assert_true(found && a.elem_type == HONE_KV_I32 && a.count == 3 &&
                memcmp(a.data, "\1\0\0\0\377\377\377\377\7\0\0\0", 12) == 0);
    assert_int_equal(hn_gguf_get_array(g, "k.a_f32", &a, &found, NULL), HONE_OK);
    assert_true(a.elem_type == HONE_KV_F32 && a.count == 2 && memcmp(a.data, "\0\0\0\77\0\0\0\300", 8) == 0);
    assert_int_equal(hn_gguf_get_array(g, "k.a_bool", &a, &found, NULL), HONE_OK);
    assert_true(a.elem_type == HONE_KV_BOOL && a.count == 3 && memcmp(a.data, "\1\0\1", 3) == 0);
    assert_int_equal(hn_gguf_get_array(g, "k.a_u8", &a, &found, NULL), HONE_OK);
    assert_true(a.elem_type == HONE_KV_U8 && a.count == 3 && memcmp(a.data, "\1\2\377", 3) == 0);
    static const char *const strs[] = { "a", "", "bcd", "\xe2\x96\x81" };
    assert_int_equal(hn_gguf_get_array(g, "k.a_str", &a, &found, NULL), HONE_OK);
    uint64_t pos = 0, n = 0;
    for (hone_str s; hn_gguf_next_str(&a, &pos, &s); n++) assert_true(str_is(s, strs[n]));
    assert_true(n == 4 && a.count == 4);
    assert_int_equal(hn_gguf_get_array(g, "k.nested", &a, &found, NULL), HONE_OK);
    assert_true(a.elem_type == HONE_KV_ARRAY && a.count == 2);
    pos = 0;
    assert_true(hn_gguf_next_array(&a, &pos, &in) && in.elem_type == HONE_KV_I32 && in.count == 2 && in.data[0] == 1 &&
                in.data[4] == 2);
    assert_true(hn_gguf_next_array(&a, &pos, &in) && in.count == 1 && in.data[0] == 3);
    assert_false(hn_gguf_next_array(&a, &pos, &in));
    /* tensors: numpy shape (3, 2) is ne [2, 3] */
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "t.f32");
    assert_true(t && t->type == HN_F32 && t->n_dim == 2 && t->ne[0] == 2 && t->ne[1] == 3 && t->ne[2] == 1 &&
                t->n_bytes == 24 && t->offset == 0);
    for (int i = 0; i < 6; i++) assert_true(((const float *)t->data)[i] == (float)i);
    t = hn_gguf_find_tensor(g, "t.f16");
    assert_true(t && t->type == HN_F16 && t->n_dim == 3 && t->n_bytes == 16 &&
                memcmp((const char *)t->data + 14, "\0\107", 2) == 0);
    t = hn_gguf_find_tensor(g, "t.i8");
    assert_true(t && t->type == HN_I8 && t->ne[0] == 3 && memcmp(t->data, "\377\2\3", 3) == 0);
    assert_null(hn_gguf_find_tensor(g, "t.f3"));
    assert_true(hn_gguf_n_tensors(g) == 3 && hn_gguf_tensor_at(g, 2) == t);
    hn_gguf_close(g);
}

static void test_example(void **state)
{
    for (int v = 3; v >= 2; v--) {
        hn_gguf *g = must_open(v == 3 ? CORPUS "example.gguf" : CORPUS "example_v2.gguf");
        assert_int_equal(hn_gguf_version(g), v);
        hone_str arch;
        uint32_t n;
        assert_int_equal(hn_gguf_get_str(g, "general.architecture", &arch, NULL, NULL), HONE_OK);
        assert_int_equal(hn_gguf_get_u32(g, "llama.block_count", &n, NULL, NULL), HONE_OK);
        assert_true(str_is(arch, "llama") && n == 1);
        const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "t.weight");
        assert_true(t && t->ne[0] == 2 && t->ne[1] == 3 && ((const float *)t->data)[5] == 6.0f);
        hone_str raw = hn_gguf_kv_raw(g, 1);
        assert_true(raw.len == 0x66 - 0x45 && memcmp(raw.ptr, "\x11\0\0\0\0\0\0\0llama.b", 15) == 0);
        hn_gguf_close(g);
    }
}

static void test_fingerprint(void **state)
{
    hn_gguf *a = must_open(CORPUS "example.gguf"), *b = must_open(CORPUS "example_v2.gguf");
    assert_true(hn_gguf_fingerprint(a) != hn_gguf_fingerprint(b));
    FILE *f = fopen(CORPUS "example.gguf", "rb");
    unsigned char buf[224];
    assert_int_equal(fread(buf, 1, 224, f), 224);
    fclose(f);
    assert_true(hn_gguf_fingerprint(a) == hn_fnv1a(HN_FNV_INIT, buf, 0xbf)); /* up to the end of the descriptors */
    hn_gguf_close(a);
    hn_gguf_close(b);
}

static void test_numbers(void **state)
{
    static const struct {
        uint32_t type;
        int size;
    } kinds[] = { { 0, 1 }, { 1, 1 }, { 2, 2 }, { 3, 2 }, { 4, 4 }, { 5, 4 }, { 10, 8 }, { 11, 8 } };
    for (int i = 0; i < 8; i++) {
        bb b = bb_head(3, 0, 2);
        bb_kv(&b, "n", kinds[i].type, 100, kinds[i].size);
        bb_kv(&b, "f", 12, 0x3FE0000000000000, 8); /* f64 0.5 */
        hn_gguf *g;
        uint32_t u = 0;
        float f = 0;
        assert_int_equal(hn_gguf_parse(&g, b.p, b.n, "n", NULL), HONE_OK);
        assert_int_equal(hn_gguf_get_u32(g, "n", &u, NULL, NULL), HONE_OK);
        assert_int_equal(hn_gguf_get_f32(g, "f", &f, NULL, NULL), HONE_OK);
        assert_true(u == 100 && f == 0.5f);
        hn_gguf_close(g);
        bb_free(&b);
    }
}

static void test_split(void **state)
{
    for (int m = 1; m <= 3; m++) {
        char path[128];
        snprintf(path, sizeof path, CORPUS "py_split-%05d-of-00003.gguf", m);
        hn_gguf *g = must_open(path);
        assert_true(hn_gguf_n_parts(g) == 3 && hn_gguf_n_tensors(g) == 5 && hn_gguf_size(g) == 288 + 256 + 192);
        for (int i = 0; i < 5; i++) {
            char name[16];
            snprintf(name, sizeof name, "t%d", i);
            const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
            assert_true(t && t->part == i / 2 && ((const float *)t->data)[3] == (float)i);
        }
        assert_true(hn_gguf_find(g, "general.architecture") >= 0);
        hn_gguf_close(g);
    }
}

/* ---- the public view -------------------------------------------------------------------------- */

static void test_api(void **state)
{
    hone_file *f;
    hone_error err = { 0 };
    assert_int_equal(hone_file_open(&f, CORPUS "py_vocab.gguf", &err), HONE_OK);
    hn_gguf *g = must_open(CORPUS "py_vocab.gguf");
    assert_true(hone_file_version(f) == 3 && hone_file_n_parts(f) == 1 && hone_file_size(f) == 2368 &&
                hone_file_n_kv(f) == hn_gguf_n_kv(g));
    for (uint64_t i = 0; i < hone_file_n_kv(f); i++) {
        hone_kv kv, e;
        hone_file_kv(f, i, &kv);
        if (kv.type != HONE_KV_ARRAY) {
            assert_false(hone_file_kv_elem(f, i, 0, &e));
            continue;
        }
        assert_int_equal(kv.count, 100);
        for (uint64_t j = 0; j < 100; j++) {
            uint64_t k = (j * 37) % 100; /* in no order */
            char want[16];
            snprintf(want, sizeof want, "tok%d", (int)k);
            assert_true(hone_file_kv_elem(f, i, k, &e) && e.type == kv.elem_type);
            if (e.type == HONE_KV_STRING) assert_true(str_is(e.v.s, want));
            else if (e.type == HONE_KV_F32) assert_true(e.v.f == -(double)k);
            else assert_true(e.type == HONE_KV_I32 && e.v.i == 1);
        }
        assert_false(hone_file_kv_elem(f, i, 100, &e));
        assert_false(hone_file_kv_elem(f, i, UINT64_MAX, &e));
    }
    hn_gguf_close(g);
    hone_file_close(f);

    assert_int_equal(hone_file_open(&f, CORPUS "py_kinds.gguf", &err), HONE_OK);
    g = must_open(CORPUS "py_kinds.gguf");
    hone_kv e;
    uint64_t at = (uint64_t)hn_gguf_find(g, "k.nested");
    assert_true(hone_file_kv_elem(f, at, 1, &e) && e.type == HONE_KV_ARRAY && e.elem_type == HONE_KV_I32 &&
                e.count == 1);
    at = (uint64_t)hn_gguf_find(g, "k.a_bool");
    assert_true(hone_file_kv_elem(f, at, 1, &e) && e.type == HONE_KV_BOOL && !e.v.b);
    at = (uint64_t)hn_gguf_find(g, "k.a_i32");
    assert_true(hone_file_kv_elem(f, at, 1, &e) && e.v.i == -1);
    hone_tensor_info t;
    int64_t it = hone_file_find_tensor(f, "t.i8");
    assert_int_equal(it, 2);
    assert_int_equal(hone_file_find_tensor(f, "t.none"), -1);
    hone_file_tensor(f, 2, &t);
    assert_true(str_is(t.name, "t.i8") && t.type == 24 && strcmp(t.type_name, "I8") == 0 && t.n_bytes == 3 &&
                t.ne[0] == 3);
    float y[8] = { 0 };
    assert_int_equal(hone_file_read_f32(f, 2, 0, 3, y, &err), HONE_OK);
    assert_true(y[0] == -1 && y[1] == 2 && y[2] == 3);
    assert_int_equal(hone_file_read_f32(f, 1, 5, 3, y, &err), HONE_OK);
    assert_true(y[0] == 5 && y[2] == 7);
    assert_int_equal(hone_file_read_f32(f, 1, 6, 3, y, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "'t.f16'"));
    assert_int_equal(hone_file_read_f32(f, 1, UINT64_MAX, 2, y, &err), HONE_E_ARG);
    assert_int_equal(hone_file_read_f32(f, 3, 0, 1, y, &err), HONE_E_ARG);
    assert_int_equal(hone_file_check(f, &err), HONE_OK);
    hn_gguf_close(g);
    hone_file_close(f);

    assert_int_equal(hone_file_open(&f, CORPUS "py_align64.gguf", &err), HONE_OK);
    it = hone_file_find_tensor(f, "blk.1.w.weight"); /* Q8_0 */
    assert_int_equal(hone_file_read_f32(f, (uint64_t)it, 1, 32, y, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "block of 32"));
    assert_int_equal(hone_file_read_f32(f, (uint64_t)it, 32, 0, y, &err), HONE_OK);
    float row[64], half[32];
    assert_int_equal(hone_file_read_f32(f, (uint64_t)it, 0, 64, row, &err), HONE_OK);
    assert_int_equal(hone_file_read_f32(f, (uint64_t)it, 32, 32, half, &err), HONE_OK);
    assert_memory_equal(row + 32, half, sizeof half);
    hone_file_close(f);
    hone_file_close(NULL);
    uint32_t elems, bytes;
    const char *name;
    assert_true(hone_type_block(12, &elems, &bytes, &name) && elems == 256 && bytes == 144 &&
                strcmp(name, "Q4_K") == 0);
    assert_false(hone_type_block(4, &elems, &bytes, &name));
    assert_false(hone_type_block(0xFFFFFFFF, NULL, NULL, NULL));
}

/* ---- real files, whole and cut short -------------------------------------------------------------- */

static unsigned char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *p = malloc(*n + 1);
    size_t k = fread(p, 1, *n, f);
    fclose(f);
    assert_int_equal(k, *n);
    return p;
}

/* Every prefix in steps: refused, saying that it is cut short and where. `whole`: bytes that must be there. */
static void cut_short(const char *path, const unsigned char *p, size_t n, size_t step, size_t whole)
{
    for (size_t k = 0; k < n; k += step) {
        hn_gguf *g;
        hone_error err = { 0 };
        unsigned char *q = malloc(k ? k : 1); /* exact, so that sanitizers see every step beyond */
        memcpy(q, p, k);
        hone_status st = hn_gguf_parse(&g, q, k, path, &err);
        if (k >= whole) {
            if (st != HONE_OK) fail_msg("%s of %zu bytes: %s", path, k, err.message);
            hn_gguf_close(g);
        } else {
            if (st != HONE_E_FORMAT) fail_msg("%s cut to %zu of %zu bytes: %s", path, k, n, hone_status_name(st));
            if (!strstr(err.message, path) || (k >= 4 && !strstr(err.message, "cut short")) ||
                (k == 0 && !strstr(err.message, "empty")))
                fail_msg("%s cut to %zu of %zu bytes: %s", path, k, n, err.message);
        }
        free(q);
    }
}

static void test_cut_short(void **state)
{
    /* end of the last tensor's data; without the padding the file still serves */
    static const struct {
        const char *path;
        size_t whole;
    } c[] = {
        { CORPUS "py_kinds.gguf", 835 }, { CORPUS "example.gguf", 0xd8 }, { CORPUS "py_align64.gguf", 0 },
        { CORPUS "py_types.gguf", 0 },   { CORPUS "py_vocab.gguf", 0 },
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        size_t n, whole = c[i].whole;
        unsigned char *p = slurp(c[i].path, &n);
        assert_non_null(p);
        if (!whole) { /* ask the reader, whose numbers the other two confirm */
            hn_gguf *g;
            assert_int_equal(hn_gguf_parse(&g, p, n, "x", NULL), HONE_OK);
            for (uint64_t k = 0; k < hn_gguf_n_tensors(g); k++) {
                const hn_gguf_tensor *t = hn_gguf_tensor_at(g, k);
                size_t end = (size_t)((const unsigned char *)t->data + t->n_bytes - p);
                if (end > whole) whole = end;
            }
            if (!hn_gguf_n_tensors(g)) {
                hone_str last = hn_gguf_kv_raw(g, hn_gguf_n_kv(g) - 1);
                whole = (size_t)((const unsigned char *)last.ptr + last.len - p);
            }
            hn_gguf_close(g);
        }
        cut_short(c[i].path, p, n, 1, whole);
        free(p);
    }
}

static void test_real(void **state)
{
    static const struct {
        const char *name;
        uint64_t n_tok, n_merge;
    } c[] = {
        { "llama-spm", 32000, 0 },  { "gpt-2", 50257, 50000 },          { "qwen2", 151936, 151387 },
        { "phi-3", 32064, 0 },      { "deepseek-coder", 32256, 31757 }, { "starcoder", 49152, 48872 },
        { "rwkv-world", 65536, 0 },
    };
    int seen = 0;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char path[128];
        snprintf(path, sizeof path, "../shared/data/tokenizers/ggml-vocab-%s.gguf", c[i].name);
        size_t n;
        unsigned char *p = slurp(path, &n);
        if (!p) continue;
        seen++;
        hn_gguf *g = must_open(path);
        hn_gguf_array a;
        bool found;
        assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.tokens", &a, &found, NULL), HONE_OK);
        if (!found || a.count != c[i].n_tok) fail_msg("%s: %llu tokens", path, found ? (unsigned long long)a.count : 0);
        uint64_t pos = 0, k = 0;
        for (hone_str s; hn_gguf_next_str(&a, &pos, &s); k++) {}
        assert_true(k == a.count);
        assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.merges", &a, &found, NULL), HONE_OK);
        if ((found ? a.count : 0) != c[i].n_merge)
            fail_msg("%s: %llu merges", path, found ? (unsigned long long)a.count : 0);
        hone_str last = hn_gguf_kv_raw(g, hn_gguf_n_kv(g) - 1);
        size_t size = (size_t)hn_gguf_size(g);
        hn_gguf_close(g);
        assert_int_equal(hn_gguf_parse(&g, p, n, "x", NULL), HONE_OK);
        last = hn_gguf_kv_raw(g, hn_gguf_n_kv(g) - 1);
        size_t whole = (size_t)((const unsigned char *)last.ptr + last.len - p);
        hn_gguf_close(g);
        assert_true(size == n);
        cut_short(path, p, n, n < 1 << 20 ? 1024 : n / (SLOWED ? 75 : 300), whole);
        free(p);
    }
    if (!seen) {
        print_message("SKIP: no vocabulary files under ../shared/data/tokenizers\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest t[] = {
        cmocka_unit_test(test_kinds),     cmocka_unit_test(test_example), cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_split),   cmocka_unit_test(test_api),
        cmocka_unit_test(test_cut_short), cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests_name("gguf_read", t, NULL, NULL);
}
