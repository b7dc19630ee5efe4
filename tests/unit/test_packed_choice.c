/* Which types of a packed file are read packed: what is kept decides, type by type; bits, bytes and notes follow; and
 * the measurement that is kept is one. */
#define _GNU_SOURCE
#include "lab/machine/roof.h"
#include "model/packed.h"
#include "tiny_model.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

static const tm_shape shape = TM("llama", 256, 4, 2, 64, 256, 37, 2, 1e4, 1e-5, .qkv_bias = true);
static char model_path[160], pack_path[180];

static const hn_type types[] = { HN_F32, HN_F16, HN_Q8_0, HN_Q4_K, HN_Q6_K };
enum { N_TYPE = sizeof types / sizeof *types, N_LOGIT = 3 * 37 };

static void keep_all(float speed)
{
    for (int i = 0; i < N_TYPE; i++)
        assert_true(hn_packed_keep(&(hn_packed_speed){ { speed, speed, speed, speed } }, types[i], hn_packed_widths[0],
                                   hn_cpu_best()));
}
static void keep_one(hn_type t, float a, float b, float c, float d)
{
    assert_true(hn_packed_keep(&(hn_packed_speed){ { a, b, c, d } }, t, hn_packed_widths[0], hn_cpu_best()));
}

static hone_model *open_with(const char *packed)
{
    hone_error err = { 0 };
    hone_model *m;
    if (hone_model_open(&m, model_path, &(hone_model_params){ .packed = packed }, &err)) fail_msg("%s", err.message);
    return m;
}

static void answer_of(const hone_model *m, float y[N_LOGIT])
{
    hone_context *c = tm_context(hn_cpu_level_name(hn_cpu_best()), 2);
    hone_session *s = tm_session(c, m, 8, 1, 4, HONE_CACHE_F16);
    tm_run(s, 0, (const int32_t[]){ 0, 36, 17 }, 3, y);
    hone_session_free(s);
    hone_context_free(c);
}

/* The model as it is opened by itself, with the plain file's answer and as many bytes as it says. */
static hone_model *opened(const char *packed)
{
    float want[N_LOGIT], got[N_LOGIT];
    hone_model *m = open_with("off");
    hone_model_info in;
    uint64_t bytes = 0;
    answer_of(m, want);
    hone_model_close(m);
    m = open_with(packed);
    answer_of(m, got);
    assert_memory_equal(want, got, sizeof want);
    hone_model_get_info(m, &in);
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++)
        bytes += m->packed_of && m->packed_of[i] ? m->packed_of[i]->n_bytes : 0;
    assert_int_equal(in.packed_bytes, bytes);
    assert_int_equal(in.packed_path != NULL, bytes > 0);
    return m;
}

static void words_are(const hone_model *m, const char *want)
{
    char words[HN_WEIGHTS_WORDS];
    hone_model_info in;
    hone_model_get_info(m, &in);
    assert_string_equal(hn_weights_words(words, &in), want);
}

static void what_is_kept_decides_by_type(void **state)
{
    hone_model_info in;
    hone_packed_info look;
    keep_all(1.2f);
    hone_model *m = opened(NULL);
    words_are(m, "packed");
    assert_non_null(strstr(m->packed_note, "Q4_K 1.20"));
    hone_model_close(m);

    keep_one(HN_Q8_0, 1.5f, 1.5f, 0.9f, 1.5f); /* slower at one of the points */
    keep_one(HN_F16, 0.98f, 1, 1, 1);          /* within the noise */
    m = opened(NULL);
    words_are(m, "mixed: F32 F16 Q4_K Q6_K packed, Q8_0 plain");
    assert_non_null(strstr(m->packed_note, "Q8_0 0.90"));
    assert_true(!m->output.packed && m->token_embd.packed);
    hone_model_close(m);
    assert_int_equal(hone_packed_find(model_path, NULL, &look, NULL), HONE_OK);
    assert_int_equal(look.state, HONE_PACKED_READY);
    assert_non_null(strstr(look.note, "Q8_0 plain"));
    /* and for several answers, as a server opens it */
    assert_non_null(strstr(look.note_several, "the mean of 1 and 4 columns:"));
    assert_non_null(strstr(look.note_several, "Q8_0 1.16"));
    assert_null(strstr(look.note_several, "Q8_0 plain"));
    assert_int_equal(hone_model_open(&m, model_path, &(hone_model_params){ .n_answers = 2 }, NULL), HONE_OK);
    words_are(m, "packed");
    assert_non_null(strstr(m->packed_note, look.note_several));
    hone_model_close(m);
    m = opened(pack_path); /* by name: all of it */
    words_are(m, "packed");
    assert_non_null(m->output.packed);
    hone_model_close(m);

    keep_all(0.5f);
    m = opened(NULL);
    words_are(m, "plain");
    hone_model_get_info(m, &in);
    assert_true(!in.packed_ignored && strstr(in.packed_note, "would be slower") && strstr(in.packed_note, "Q6_K 0.50"));
    hone_model_close(m);
    /* and what is not read needs no proof */
    assert_int_equal(utimensat(AT_FDCWD, pack_path, (struct timespec[2]){ { 1700000000, 5 }, { 1700000000, 5 } }, 0),
                     0);
    m = open_with(NULL);
    hone_model_get_info(m, &in);
    assert_true(!in.packed_path && !in.packed_compared);
    hone_model_close(m);
    keep_one(HN_Q4_K, 2, 2, 2, 2);
    m = opened(NULL);
    words_are(m, "mixed: Q4_K packed, F32 F16 Q8_0 Q6_K plain");
    hone_model_close(m);
}

/* Another level asks for itself; nonsense that is kept is no measurement. */
static void what_is_kept_is_of_a_level(void **state)
{
    keep_all(0.5f);
    assert_int_equal(setenv("HONE_CPU", "scalar", 1), 0);
    hone_model *m = open_with(NULL);
    if (hn_cpu_best() != HN_CPU_SCALAR) words_are(m, "packed");
    hone_model_close(m);
    unsetenv("HONE_CPU");
    keep_all(0);
    m = opened(NULL); /* too small to be worth a measurement */
    words_are(m, "packed");
    hone_model_close(m);
    keep_all(NAN);
    m = opened(NULL);
    words_are(m, "packed");
    hone_model_close(m);
}

/* Above 1: packed is faster. What disturbs a few products changes nothing. */
static void the_ratio_says_which_is_faster(void **state)
{
    float plain[] = { 900, 30, 31, 30, 32, 30, 33, 700 }, packed[] = { 20, 21, 20, 500, 20, 22, 800, 20 };
    assert_float_equal(hn_packed_ratio(plain, packed, 8), 30.0 / 20.0, 1e-6);
    assert_float_equal(hn_packed_ratio(packed, plain, 8), 20.0 / 30.0, 1e-6);
}

static void every_packed_type_is_measured(void **state)
{
    hn_packed_speed v[HN_TYPE_COUNT];
    bool there[HN_TYPE_COUNT];
    hone_error err = { 0 };
    int n = 0;
    if (hn_packed_measure_all(v, there, hn_packed_widths[0], hn_cpu_best(), &err)) fail_msg("%s", err.message);
    for (int t = 0; t < HN_TYPE_COUNT; t++) {
        if (!there[t]) continue;
        n++;
        for (int p = 0; p < HN_PACKED_POINTS; p++) assert_true(v[t].of[p] > 0.02f && v[t].of[p] < 50);
    }
    assert_true(n >= 3);
}

/* A large file is measured, once; not where that could not be kept. */
static void large_files_are_measured_once(void **state)
{
    hn_packed_entry e = { .type = HN_Q4_0, .kind = HN_PACKED_MATRIX, .n_bytes = (uint64_t)1 << 30 };
    const hn_packed file = { .e = &e, .n = 1 };
    char words[500], *keep = strdup(getenv("XDG_STATE_HOME")), *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    hn_packed_choice c, again;
    hn_packed_choose(&c, &file, false, false);
    assert_true(c.n_measured == 0 && c.plain[HN_Q4_0] == (hn_cpu_best() != HN_CPU_AVX512));
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    hn_packed_choose(&c, &file, false, true);
    assert_true(c.n_measured == 0 && c.plain[HN_Q4_0] == (hn_cpu_best() != HN_CPU_AVX512));
    hn_packed_choice_words(words, sizeof words, &c);
    assert_true(!c.n_plain || strstr(words, "not measured"));
    setenv("XDG_STATE_HOME", keep, 1);
    if (home) setenv("HOME", home, 1);
    free(keep);
    free(home);
    hn_packed_choose(&c, &file, false, true);
    assert_true(c.n_measured == 1 && c.n_plain + c.n_packed == 1);
    assert_true(c.plain[HN_Q4_0] == (c.speed[HN_Q4_0] < HN_PACKED_AS_FAST));
    hn_packed_choose(&again, &file, false, false);
    assert_memory_equal(&again.speed, &c.speed, sizeof c.speed);
    e.n_bytes = 1 << 20; /* a small one takes what is known */
    hn_packed_choose(&again, &file, false, true);
    assert_memory_equal(&again.plain, &c.plain, sizeof c.plain);
}

/* What is slower with one column and faster with four is packed where several answers come at once, and there alone. */
static void several_answers_choose_for_several(void **state)
{
    const hn_packed_entry e = { .type = HN_Q4_0, .kind = HN_PACKED_MATRIX, .n_bytes = 1 << 20 };
    const hn_packed file = { .e = (hn_packed_entry *)&e, .n = 1 };
    const hn_cpu_level level = hn_cpu_best();
    char words[500];
    hn_packed_choice c;
    assert_true(hn_packed_keep(&(hn_packed_speed){ { 0.9f, 1.3f, 0.9f, 1.3f } }, HN_Q4_0, hn_packed_widths[0], level));
    hn_packed_choose(&c, &file, false, false);
    assert_true(c.plain[HN_Q4_0]);
    hn_packed_choose(&c, &file, true, false);
    assert_true(!c.plain[HN_Q4_0] && c.n_packed == 1);
    assert_float_equal(c.speed[HN_Q4_0], 1.0816653f, 1e-5);
    hn_packed_choice_words(words, sizeof words, &c);
    assert_non_null(strstr(words, "the mean of 1 and 4 columns: Q4_0 1.08"));
    assert_true(hn_packed_keep(&(hn_packed_speed){ { 1.3f, 1.3f, 0.8f, 1.1f } }, HN_Q4_0, hn_packed_widths[0], level));
    hn_packed_choose(&c, &file, true, false);
    assert_true(c.plain[HN_Q4_0]);
}

/* For one answer, few columns count as often as they come: where a prompt ends, once in ten tokens. No gain with
 * several columns makes up for slower tokens. */
static void one_answer_chooses_for_tokens(void **state)
{
    const struct {
        float of[HN_PACKED_POINTS], speed;
        bool plain;
    } cases[] = {
        { { 1.2f, 0.6f, 1.2f, 0.6f }, 1.0285714f, false }, /* 12 / (10 / 1.2 + 2 / 0.6) */
        { { 1.2f, 0.3f, 1.2f, 0.6f }, 0.8f, true },        { { 1.3f, 1.3f, 1.05f, 0.5f }, 0.8873239f, true },
        { { 0.9f, 2.0f, 0.9f, 2.0f }, 0.9f, true },        { { 1.1f, 1.4f, 1.2f, 1.4f }, 1.1f, false },
    };
    const hn_packed_entry e = { .type = HN_Q4_0, .kind = HN_PACKED_MATRIX, .n_bytes = 1 << 20 };
    const hn_packed file = { .e = (hn_packed_entry *)&e, .n = 1 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_packed_speed v;
        hn_packed_choice c;
        memcpy(v.of, cases[i].of, sizeof v.of);
        assert_true(hn_packed_keep(&v, HN_Q4_0, hn_packed_widths[0], hn_cpu_best()));
        hn_packed_choose(&c, &file, false, false);
        assert_float_equal(c.speed[HN_Q4_0], cases[i].speed, 1e-5);
        assert_true(c.plain[HN_Q4_0] == cases[i].plain);
    }
}

/* Which layout is faster depends on how long rows are: those that most bytes of a type are nearest to are asked. */
static void the_width_of_most_bytes_chooses(void **state)
{
    hn_packed_entry e[] = { { .type = HN_Q4_0, .kind = HN_PACKED_MATRIX, .n_in = 896, .n_bytes = 1000 },
                            { .type = HN_Q4_0, .kind = HN_PACKED_MATRIX, .n_in = 2880, .n_bytes = 1000 },
                            { .type = HN_Q4_0, .kind = HN_PACKED_MATRIX, .n_in = 28672, .n_bytes = 1900 } };
    const hn_packed file = { .e = e, .n = 3 };
    const hn_cpu_level level = hn_cpu_best();
    hn_packed_choice c;
    assert_true(hn_packed_keep(&(hn_packed_speed){ { 1.5f, 1.5f, 1.5f, 1.5f } }, HN_Q4_0, hn_packed_widths[0], level));
    assert_true(hn_packed_keep(&(hn_packed_speed){ { 0.6f, 0.6f, 0.6f, 0.6f } }, HN_Q4_0, hn_packed_widths[1], level));
    assert_true(hn_packed_keep(&(hn_packed_speed){ { 0.7f, 0.7f, 0.7f, 0.7f } }, HN_Q4_0, hn_packed_widths[2], level));
    hn_packed_choose(&c, &file, false, false); /* 2880 is nearer to 2048 than to 4096, by their ratio */
    assert_float_equal(c.speed[HN_Q4_0], 1.5f, 1e-6);
    e[2].n_bytes = 2100;
    hn_packed_choose(&c, &file, false, false);
    assert_float_equal(c.speed[HN_Q4_0], 0.7f, 1e-6);
    e[1].n_in = 2912, e[1].n_bytes = 5000;
    hn_packed_choose(&c, &file, false, false);
    assert_float_equal(c.speed[HN_Q4_0], 0.6f, 1e-6);
}

static int set_up(void **state)
{
    if (tm_make_dir(state)) return -1;
    snprintf(model_path, sizeof model_path, "%s", tm_path("m.gguf"));
    snprintf(pack_path, sizeof pack_path, "%s.hpack", model_path);
    tiny *m = tm_new(shape);
    hone_error err = { 0 };
    tm_retype(m, "token_embd.weight", HN_Q6_K);
    tm_retype(m, "output.weight", HN_Q8_0);
    tm_retype(m, "blk.0.attn_q.weight", HN_Q4_K);
    tm_retype(m, "blk.0.attn_k.weight", HN_F16);
    tm_save(m, model_path);
    tm_free(m);
    unsetenv("HONE_CPU");
    unsetenv("HONE_PACKED");
    return hone_pack(model_path, &(hone_pack_params){ .force = true }, NULL, NULL, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_decides_by_type),   cmocka_unit_test(what_is_kept_is_of_a_level),
        cmocka_unit_test(large_files_are_measured_once),  cmocka_unit_test(several_answers_choose_for_several),
        cmocka_unit_test(one_answer_chooses_for_tokens),  cmocka_unit_test(the_width_of_most_bytes_chooses),
        cmocka_unit_test(the_ratio_says_which_is_faster), cmocka_unit_test(every_packed_type_is_measured),
    };
    return cmocka_run_group_tests(tests, set_up, tm_remove_dir);
}
