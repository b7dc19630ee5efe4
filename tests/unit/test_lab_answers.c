/* Answers with sketches: what is kept is what the model said; comparisons find what was
 * changed, and nothing else; files that are damaged or lie are refused. */
#include "lab/quality/sketch.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { NV = 150 };

/* At (prompt, position) these logits, moved for ids and places of the test's choice. */
typedef struct fake {
    int prompt, from_pos, id;
    float by;
    int32_t at[HN_Q_PROMPTS];
    float bad;
} fake;

static float base(int p, int pos, int j)
{
    return (float)(hn_rand64((uint64_t)(p * 1000 + pos), (uint64_t)j) % 100000) / 10000.0f;
}

static hone_status run_fake(void *arg, const hone_token *t, int32_t n, float *logits, hone_error *err)
{
    fake *f = arg;
    for (int32_t i = 0; i < n; i++) {
        if (!t[i].want_logits) continue;
        for (int j = 0; j < NV; j++) logits[j] = base(t[i].seq, t[i].pos, j);
        if (t[i].seq == f->prompt && t[i].pos >= f->from_pos) logits[f->id] += f->by;
        if (f->bad != 0 && t[i].seq == 1 && t[i].pos == 30) logits[3] = f->bad;
        logits += NV;
    }
    return HONE_OK;
}

static hn_answers *answers(fake f)
{
    static hn_q_prompts p;
    hn_answers *a = calloc(1, sizeof *a);
    hn_logits_source src = { .n_vocab = NV, .run = run_fake, .arg = &f };
    hone_error err;
    hn_q_prompts_random(&p, NV);
    assert_non_null(a);
    assert_int_equal(hn_answers_run(a, &src, &p, &err), HONE_OK);
    snprintf(a->label, sizeof a->label, "fake");
    return a;
}

static void release(hn_answers *a)
{
    hn_answers_free(a);
    free(a);
}

static void sketch(void **s)
{
    hn_answers *a = answers((fake){ .by = 0 });
    assert_int_equal(a->n_top, 64);
    for (int p = 0; p < HN_Q_PROMPTS; p++)
        for (int k = 0; k < HN_Q_STEPS; k++) {
            const hn_sketch_step *t = &a->step[p][k];
            double sum = 0;
            int pos = 15 + k; /* prompts of 16 ids */
            for (int j = 0; j < NV; j++) sum += exp((double)base(p, pos, j));
            assert_true(fabs(t->lse - log(sum)) < 1e-12);
            assert_int_equal(t->ids[0], a->q.ids[p][k]);
            for (int i = 0; i < 64; i++) {
                assert_true(t->logits[i] == base(p, pos, t->ids[i]));
                if (i)
                    assert_true(t->logits[i] < t->logits[i - 1] ||
                                (t->logits[i] == t->logits[i - 1] && t->ids[i] > t->ids[i - 1]));
            }
            int above = 0;
            for (int j = 0; j < NV; j++) above += base(p, pos, j) > t->logits[63];
            assert_true(above <= 63); /* nothing greater was left out */
        }
    release(a);
}

static void differences(void **s)
{
    hn_answers_diff d;
    hone_error err;
    hn_answers *a = answers((fake){ .by = 0 }), *b = answers((fake){ .by = 0 });
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_OK);
    assert_int_equal(d.what, HN_SAME);
    assert_int_equal(d.n_steps, 512);
    assert_true(d.max_dlogit == 0 && d.max_dlogp == 0 && d.kl_max == 0);
    release(b);
    /* the least likely of the sketch moves a little, from step 5 of prompt 3 on: no answer changes */
    int32_t id = a->step[3][5].ids[63];
    b = answers((fake){ .prompt = 3, .from_pos = 20, .id = id, .by = 1e-3f });
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_OK);
    assert_int_equal(d.what, HN_NUMERICS); /* step 16 is hashed */
    assert_int_equal(d.n_diverged, 0);
    assert_true(fabs(d.max_dlogit - 1e-3) < 1e-5 && d.at_prompt == 3 && d.at_step >= 5);
    assert_true(d.kl_max > 0 && d.kl_max < 1e-6);
    release(b);
    /* another answer, at step 7 of prompt 2 */
    id = a->step[2][7].ids[1];
    b = answers((fake){ .prompt = 2, .from_pos = 22, .id = id, .by = 50 });
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_OK);
    assert_int_equal(d.what, HN_DIFFERENT);
    assert_int_equal(d.n_diverged, 1);
    assert_int_equal(d.prompt, 2);
    assert_int_equal(d.step, 7);
    assert_int_equal(d.id_a, a->q.ids[2][7]);
    assert_int_equal(d.id_b, id);
    assert_int_equal(d.n_steps, 7 * 64 + 8); /* nothing behind the divergence is compared */
    /* at least so much divergence: p moved from the rest to one id; here it is nearly all of it */
    double pa = exp((double)a->step[2][7].logits[1] - a->step[2][7].lse), kl = (1 - pa) * 40;
    assert_true(d.kl_max > kl && d.kl_max < 50);
    release(b);
    /* an id from outside the sketch of a: never more divergence than there is */
    int outside = 0;
    bool in = true;
    for (; in; outside += in) {
        in = false;
        for (int i = 0; i < 64; i++) in = in || a->step[4][63].ids[i] == outside;
    }
    b = answers((fake){ .prompt = 4, .from_pos = 78, .id = outside, .by = 12 }); /* the last step alone */
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_OK);
    double all_a = 0, all_b = 0, true_kl = 0, true_back = 0;
    for (int j = 0; j < NV; j++) {
        all_a += exp((double)base(4, 78, j));
        all_b += exp((double)(base(4, 78, j) + (j == outside ? 12.0f : 0)));
    }
    for (int j = 0; j < NV; j++) {
        double la = (double)base(4, 78, j) - log(all_a),
               lb = (double)(base(4, 78, j) + (j == outside ? 12.0f : 0)) - log(all_b);
        true_kl += exp(la) * (la - lb);
        true_back += exp(lb) * (lb - la);
    }
    assert_true(d.kl_max > 0.5 * true_kl && d.kl_max <= true_kl + 1e-9);
    assert_int_equal(d.step, 63);
    assert_int_equal(hn_answers_compare(&d, b, a, &err), HONE_OK); /* the other way nearly all of it is outside */
    assert_true(d.kl_max > 0.1 * true_back && d.kl_max <= true_back + 1e-9);
    release(b);
    b = answers((fake){ .by = 0 }); /* the first of two divergences */
    b->q.ids[6][3] = (b->q.ids[6][3] + 1) % NV;
    b->q.ids[4][9] = (b->q.ids[4][9] + 1) % NV;
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_OK);
    assert_true(d.n_diverged == 2 && d.prompt == 4 && d.step == 9 && d.n_steps == 6 * 64 + 10 + 4);
    release(b);
    /* the long prompt: other logits than the eight show, and other answers, which their sketch knows nothing of */
    id = a->step[3][5].ids[63];
    snprintf(a->full, sizeof a->full, "q2-aaaaaaaa-11111111");
    for (int eight = 0; eight < 2; eight++)
        for (int words = 0; words < 2; words++) {
            b = answers((fake){ .prompt = 3, .from_pos = 20, .id = id, .by = eight ? 1e-3f : 0 });
            snprintf(b->full, sizeof b->full, "q2-%s-22222222", words ? "bbbbbbbb" : "aaaaaaaa");
            assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_OK);
            assert_int_equal(d.what, words ? HN_DIFFERENT : HN_NUMERICS);
            assert_int_equal(d.beyond, words || !eight);
            assert_int_equal(d.n_diverged, 0);
            release(b);
        }
    a->full[0] = 0;
    /* not comparable */
    b = answers((fake){ .by = 0 });
    b->n_vocab = NV - 1;
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_E_ARG);
    b->n_vocab = NV;
    b->from_text = true;
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_E_ARG);
    b->from_text = false;
    memset(a->vocab, 1, 32);
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_OK); /* unknown */
    memset(b->vocab, 2, 32);
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_E_ARG);
    release(a);
    release(b);
}

static char folder[] = "/tmp/hone-test-XXXXXX";
static char path[200];

static void write_text(const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void files(void **s)
{
    hn_answers_diff d;
    hone_error err;
    hn_answers *a = answers((fake){ .by = 0 }), *b = calloc(1, sizeof *b);
    for (int i = 0; i < 32; i++) a->vocab[i] = (unsigned char)(7 * i);
    a->model = json_pack("{s:s}", "name", "m");
    assert_int_equal(hn_answers_save(a, path, &err), HONE_OK);
    assert_true(hn_answers_is_file(path));
    assert_int_equal(hn_answers_load(b, path, &err), HONE_OK);
    assert_string_equal(b->q.hash, a->q.hash);
    assert_string_equal(b->label, "fake");
    assert_string_equal(json_string_value(json_object_get(b->model, "name")), "m");
    assert_memory_equal(b->step, a->step, sizeof a->step); /* every number as it was */
    assert_memory_equal(b->vocab, a->vocab, 32);
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_OK);
    assert_int_equal(d.what, HN_SAME);
    hn_answers_free(b);
    /* what lies is refused, each lie by name */
    json_error_t e;
    for (int lie = 0; lie < 10; lie++) {
        json_t *o = json_load_file(path, 0, &e), *step = json_array_get(json_object_get(o, "sketch"), 70);
        assert_non_null(o);
        switch (lie) {
        case 0: json_object_set_new(o, "schema", json_string("hone.bench/1")); break;
        case 1: json_object_set_new(o, "n_vocab", json_integer(20)); break; /* ids beyond it */
        case 2: json_object_del(o, "vocab_sha256"); break;
        case 3: json_object_set_new(o, "hash", json_null()); break;
        case 4: json_object_del(step, "lse"); break;
        case 5: json_array_remove(json_object_get(step, "ids"), 9); break;
        case 6: json_array_set_new(json_object_get(step, "logits"), 9, json_string("x")); break;
        case 7: json_array_set_new(json_object_get(step, "ids"), 0, json_integer(-1)); break;
        case 8: json_array_remove(json_object_get(o, "sketch"), 511); break;
        case 9:
            json_array_set(json_object_get(step, "ids"), 0, json_array_get(json_object_get(step, "ids"), 1));
            break; /* not what was answered */
        }
        char *text = json_dumps(o, JSON_REAL_PRECISION(17)), *was = path + 0;
        char keep[220];
        snprintf(keep, sizeof keep, "%s.keep", was);
        rename(path, keep);
        write_text(text);
        assert_int_equal(hn_answers_load(b, path, &err), HONE_E_FORMAT);
        rename(keep, path);
        free(text);
        json_decref(o);
    }
    write_text("{\"schema\":\"hone.answers/1\"");
    assert_int_equal(hn_answers_load(b, path, &err), HONE_E_FORMAT);
    write_text("GGUF");
    assert_false(hn_answers_is_file(path));
    unlink(path);
    assert_int_equal(hn_answers_load(b, path, &err), HONE_E_IO);
    release(a);
    release(b);
}

static void broken_model(void **s)
{
    hn_answers_diff d;
    hone_error err;
    hn_answers *a = answers((fake){ .by = 0 }), *b = answers((fake){ .bad = NAN });
    assert_int_equal(b->q.verdict.state, HN_INVALID);
    assert_string_equal(b->q.hash, "");
    assert_int_equal(hn_answers_compare(&d, a, b, &err), HONE_E_NUMERIC);
    release(a);
    release(b);
}

static void similarity(void **s)
{
    int32_t a[] = { 1, 2, 3, 4 }, b[] = { 1, 3, 4, 5 }, c[] = { 9, 9, 9, 9 };
    assert_true(hn_id_similarity(a, 4, a, 4) == 1);
    assert_true(hn_id_similarity(a, 4, b, 4) == 0.5); /* one out, one in */
    assert_true(hn_id_similarity(a, 4, c, 4) == 0);
    assert_true(hn_id_similarity(a, 4, a, 2) == 0.5);
    assert_true(hn_id_similarity(a, 0, a, 0) == 1 && hn_id_similarity(a, 0, a, 3) == 0);
    int32_t k[] = { 'k', 'i', 't', 't', 'e', 'n' }, g[] = { 's', 'i', 't', 't', 'i', 'n', 'g' };
    assert_true(fabs(hn_id_similarity(k, 6, g, 7) - (1 - 3.0 / 7)) < 1e-15);
}

int main(void)
{
    if (!mkdtemp(folder)) return 77;
    snprintf(path, sizeof path, "%s/answers.json", folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sketch),       cmocka_unit_test(differences), cmocka_unit_test(files),
        cmocka_unit_test(broken_model), cmocka_unit_test(similarity),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return rc;
}
