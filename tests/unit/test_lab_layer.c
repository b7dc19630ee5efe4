/* layer.* on families whose layers read what others left, turn part of a head, or have experts: an honest build's
 * results are valid, and the work that is held against the roof is what a token has. */
#include "base/os.h"
#include "family_vectors.h"
#include "lab/bench/bench.h"

#include <math.h>

static const char path[] = "/tmp/hone-test-lab-layer.gguf";

typedef struct seen {
    const char *family;
    int n, unchecked;
    double ops; /* of the last record */
} seen;

static hone_status look(void *arg, const hn_bench_entry *e, json_t *record, hone_error *err)
{
    seen *s = arg;
    const json_t *valid = json_object_get(record, "valid");
    const char *why = json_string_value(json_object_get(record, "invalid_reason"));
    if (json_is_false(valid)) fail_msg("%s: %s: %s", s->family, e->id, why);
    s->n++;
    s->unchecked += json_is_null(valid);
    s->ops = json_number_value(json_object_get(json_object_get(record, "roofline"), "ops"));
    return HONE_OK;
}

/* The records of some entries, of the last of which *ops is told. */
static seen run_layers(const char *family, const char *const *ids)
{
    char file[80];
    snprintf(file, sizeof file, "%s.json", family);
    vector v = load(file);
    seen s = { .family = family };
    hn_bench_run r;
    hone_error err;
    const hn_bench_settings set = { .model = path,
                                    .threads = 1,
                                    .samples = 2,
                                    .n_prompt = -1,
                                    .n_gen = -1,
                                    .depth = -1,
                                    .quick = true,
                                    .seed = 1,
                                    .sink = look,
                                    .sink_arg = &s };
    save_without(&v, path, NULL);
    if (hn_bench_begin(&r, &set, &err) != HONE_OK) fail_msg("%s: %s", family, err.message);
    snprintf(r.no_roof, sizeof r.no_roof, "not for this test");
    for (; *ids; ids++) {
        const hone_status st = hn_bench_run_one(&r, hn_bench_find(*ids), &err);
        if (st != HONE_OK && st != HONE_E_UNSUPPORTED) fail_msg("%s: %s: %s", family, *ids, err.message);
    }
    hn_bench_end(&r);
    json_decref(v.j);
    unlink(path);
    return s;
}

static void test_families(void **state)
{
    static const char *const all[] = { "layer.rope", "layer.attn", "layer.ffn", "layer.full", "layer.all", NULL };
    static const struct {
        const char *name;
        int unchecked; /* heads that grow, or of several widths, are not compared */
    } families[] = { { "mixtral", 0 },  { "gemma3n", 0 }, { "commandr", 0 },    { "qwen3next", 0 },
                     { "falconh1", 0 }, { "phi3", 1 },    { "smallthinker", 0 } };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const seen s = run_layers(families[i].name, all);
        assert_true(s.n >= 3);
        assert_int_equal(s.unchecked, families[i].unchecked);
    }
}

/* Products of two numbers, twice: of its width 32, 4 heads of 8 and 2 of keys, experts 24 wide; two of three layers
 * read all rows. */
static void test_operations(void **state)
{
    enum { TOKENS = 512, E = 32, FF = 24, EXPERTS = 8, USED = 2, KV = 16, READ = 2 };
    static const char *const full[] = { "layer.full", NULL }, *const attn[] = { "layer.attn", NULL },
                             *const whole[] = { "layer.all", NULL };
    const double half = E * EXPERTS + USED * 3.0 * E * FF, mixer = 2.0 * E * E + 2.0 * E * KV;
    /* of six digits */
    assert_float_equal(run_layers("mixtral", full).ops / (2 * TOKENS * (half + mixer)), 1, 1e-5);
    assert_float_equal(run_layers("mixtral", attn).ops / (2 * TOKENS * mixer), 1, 1e-5);
    assert_float_equal(run_layers("mixtral", whole).ops / (2 * (TOKENS * READ + 1) * (half + mixer)), 1, 1e-5);
}

int main(void)
{
    hn_cache_bytes_set(1 << 20);
    (void)has_layout;
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_families), cmocka_unit_test(test_operations) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
