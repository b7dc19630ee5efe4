/* Families against published vectors (tests/golden/families, one whole model each: keys, tensors by a rule, and the
 * logits that two independent programs computed in double precision): within a tolerance, and on every level, in any
 * chunks, by any threads, with every kind of cache and from an encoded file the same bits. Files are written byte by
 * byte, by nothing of hone. */
#include "engine/engine.h"
#include "family_vectors.h"
#include "train/train.h"

#include <math.h>

enum { PAGE = 64 };

/* ---- comparisons ------------------------------------------------------------------------------------ */

/* The farthest of all numbers that the vector has. */
static double farthest(const vector *v, const float *y)
{
    double most = 0;
    const char *pos;
    json_t *row;
    json_object_foreach(json_object_get(v->j, "logits"), pos, row) for (int k = 0; k < v->n_vocab; k++) most =
        fmax(most, fabs((double)y[atoi(pos) * v->n_vocab + k] - json_number_value(json_array_get(row, (size_t)k))));
    for (int t = 0; t < v->n; t++) {
        double sum = 0;
        int best = 0;
        for (int k = 0; k < v->n_vocab; k++) {
            sum += (double)y[t * v->n_vocab + k];
            if (y[t * v->n_vocab + k] > y[t * v->n_vocab + best]) best = k;
        }
        most = fmax(most, fabs(sum - json_number_value(json_array_get(json_object_get(v->j, "sum"), (size_t)t))) /
                              v->n_vocab);
        assert_int_equal(best, json_integer_value(json_array_get(json_object_get(v->j, "argmax"), (size_t)t)));
    }
    return most;
}

/* n_ctx: the positions of the session, of which rope may depend. */
static void run_model(const vector *v, const hone_model *model, const char *cpu, int32_t threads, int32_t chunk,
                      hone_kv_cache_type cache, float *y)
{
    hone_context *c = tm_context(cpu, threads);
    hone_session *s = tm_session(c, model, PAGE, 1, chunk, cache);
    tm_run(s, 0, v->tok, v->n, y);
    hone_session_free(s);
    hone_context_free(c);
}

static void check_bits(const vector *v, const hone_model *model, hone_kv_cache_type cache, float *first)
{
    float y[MAX_TOK * MAX_VOCAB];
    size_t bytes = (size_t)(v->n * v->n_vocab) * sizeof *y;
    run_model(v, model, "scalar", 1, v->n, cache, first);
    for (const char *const *cpu = tm_levels(); *cpu; cpu++)
        for (int32_t threads = 1; threads <= 3; threads += 2)
            for (int32_t chunk = 1; chunk <= v->n; chunk += chunk == 1 ? 4 : 7) {
                run_model(v, model, *cpu, threads, chunk, cache, y);
                if (memcmp(y, first, bytes))
                    fail_msg("%s: %s, %d threads, chunks of %d: other bits", v->name, *cpu, threads, chunk);
            }
}

/* Of rows whose logits nobody wants, layers at the end may leave out what nobody reads: the others are what they were.
 * t: two sequences side by side. */
static void check_wanted(const vector *v, hone_session *s, hone_token *t, const float *alone)
{
    hone_error err = { 0 };
    float y[2 * MAX_TOK * MAX_VOCAB];
    size_t row = (size_t)v->n_vocab * sizeof *y, at = 0;
    assert_int_equal(hone_seq_truncate(s, 0, 0, &err), HONE_OK);
    assert_int_equal(hone_seq_truncate(s, 2, 0, &err), HONE_OK);
    for (int i = 0; i < 2 * v->n; i++) t[i].want_logits = i / 4 >= 2 && i % 4 < 2; /* none of the first eight */
    assert_int_equal(hone_run_batch(s, t, 8, y, &err), HONE_OK);
    assert_int_equal(hone_run_batch(s, t + 8, (size_t)(2 * v->n - 8), y, &err), HONE_OK);
    for (int i = 4; i < v->n; i++) {
        if (!t[2 * i].want_logits) continue;
        assert_memory_equal(y + at * (size_t)v->n_vocab, alone + i * v->n_vocab, row);
        at += 2;
    }
    assert_true(at > 0);
}

/* Beside a neighbour, after a fork and after a cut: the bits of the sequence alone. */
static void check_neighbours(const vector *v, const hone_model *model, const float *alone)
{
    hone_error err = { 0 };
    float y[2 * MAX_TOK * MAX_VOCAB];
    size_t row = (size_t)v->n_vocab * sizeof *y;
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, model, PAGE, 3, v->n, HONE_CACHE_F32);
    hone_token t[2 * MAX_TOK];
    for (int i = 0; i < v->n; i++) {
        t[2 * i] = (hone_token){ v->tok[i], i, 0, true };
        t[2 * i + 1] = (hone_token){ v->tok[v->n - 1 - i], i, 2, true };
    }
    assert_int_equal(hone_run_batch(s, t, (size_t)(2 * v->n), y, &err), HONE_OK);
    for (int i = 0; i < v->n; i++) assert_memory_equal(y + 2 * i * v->n_vocab, alone + i * v->n_vocab, row);
    check_wanted(v, s, t, alone);
    assert_int_equal(hone_seq_truncate(s, 1, 0, &err), HONE_OK);
    tm_run(s, 1, v->tok, v->n / 2, y);
    assert_int_equal(hone_seq_copy(s, 2, 1, &err), HONE_OK);
    tm_run(s, 2, v->tok + v->n / 2, v->n - v->n / 2, y);
    assert_memory_equal(y, alone + v->n / 2 * v->n_vocab, row * (size_t)(v->n - v->n / 2));
    assert_int_equal(hone_session_save(s, tm_path("family.session"), &err), HONE_OK);
    hone_session_free(s);
    /* what a file brings back, and a snapshot */
    s = tm_session(c, model, PAGE, 3, v->n, HONE_CACHE_F32);
    if (hone_session_load(s, tm_path("family.session"), &err)) fail_msg("%s: %s", v->name, err.message);
    hone_snapshot *snap;
    assert_int_equal(hone_seq_snapshot(s, 1, &snap, &err), HONE_OK);
    if (hone_snapshot_save(snap, tm_path("family.snapshot"), &err)) fail_msg("%s: %s", v->name, err.message);
    for (int i = 0; i < 3; i++) {
        if (i == 1) { /* from its file */
            hone_snapshot_free(snap);
            if (hone_snapshot_load(&snap, model, tm_path("family.snapshot"), &err))
                fail_msg("%s: %s", v->name, err.message);
        }
        tm_run(s, 1, v->tok + v->n / 2, v->n - v->n / 2, y);
        assert_memory_equal(y, alone + v->n / 2 * v->n_vocab, row * (size_t)(v->n - v->n / 2));
        assert_int_equal(hone_seq_restore(s, 1, snap, &err), HONE_OK);
    }
    hone_snapshot_free(snap);
    /* back to what was remembered, after another text */
    int32_t half = v->n / 2, kept = -1;
    assert_int_equal(hone_seq_truncate(s, 1, 0, &err), HONE_OK);
    tm_run(s, 1, v->tok, half, y);
    assert_int_equal(hone_seq_checkpoint(s, 1, &err), HONE_OK);
    tm_run(s, 1, v->tok, v->n - half, y);
    assert_int_equal(hone_seq_rewind(s, 1, half + 1, &kept, &err), HONE_OK);
    assert_int_equal(kept, hn_has_state(model) ? half : half + 1);
    assert_int_equal(hone_seq_truncate(s, 1, half, &err), HONE_OK);
    tm_run(s, 1, v->tok + half, v->n - half, y);
    assert_memory_equal(y, alone + half * v->n_vocab, row * (size_t)(v->n - half));
    hone_session_free(s);
    hone_context_free(c);
}

/* ---- experts ---------------------------------------------------------------------------------------- */

/* The CPU backend, whose choices are looked at. */
enum { MOST_LAYERS = 8, MOST_USED = 8 };
static struct {
    void (*route)(hn_backend *b, hn_buf *picks, hn_act *act, const hn_route *r);
    int n;
    int32_t id[MOST_LAYERS][MOST_USED]; /* of the last row */
    int64_t rows[MOST_LAYERS];
} seen;
static hn_backend_ops looking;

static void look(hn_backend *b, hn_buf *picks, hn_act *act, const hn_route *r)
{
    seen.route(b, picks, act, r);
    assert_true(seen.n < MOST_LAYERS && r->n_used <= MOST_USED);
    size_t row = (size_t)((seen.rows[seen.n] = b->op->act_rows(b, act)) - 1);
    b->op->read(b, seen.id[seen.n++], picks, row * 8 * (size_t)r->n_used, (size_t)r->n_used * sizeof(int32_t));
}

static hone_status open_looking(hn_backend **out, const hn_backend_params *p, hone_error *err)
{
    hone_status st = hn_backend_open(out, "cpu", p, err);
    if (st != HONE_OK) return st;
    looking = *(*out)->op;
    seen.route = looking.route;
    looking.route = look;
    (*out)->op = &looking;
    return HONE_OK;
}

/* The experts of the last token, in each layer that has any, best first. */
static void check_picks(const vector *v, const hone_model *model)
{
    const json_t *want = json_object_get(v->j, "experts_last_token");
    float y[MAX_TOK * MAX_VOCAB];
    hone_context *c = tm_context(NULL, 1);
    assert_true(hn_backend_register("looking", open_looking));
    c->backend = "looking";
    hone_session *s = tm_session(c, model, PAGE, 1, v->n, HONE_CACHE_F32);
    seen.n = 0;
    tm_run(s, 0, v->tok, v->n, y);
    assert_int_equal(seen.n, json_object_size(want));
    int at = 0;
    for (int il = 0; il < 64 && at < seen.n; il++) {
        char key[8];
        snprintf(key, sizeof key, "%d", il);
        const json_t *ids = json_object_get(want, key);
        if (!ids) continue;
        for (size_t k = 0; k < json_array_size(ids); k++)
            assert_int_equal(seen.id[at][k], json_integer_value(json_array_get(ids, k)));
        at++;
    }
    assert_int_equal(at, seen.n);
    hone_session_free(s);
    hone_context_free(c);
}

/* However the file is written, it is the same model. */
static void check_layouts(const vector *v, const float *first)
{
    const char *path = tm_path("layout.gguf");
    float y[MAX_TOK * MAX_VOCAB];
    for (layout how = FUSED; how < LAYOUTS; how++) {
        hone_error err = { 0 };
        hone_model *model;
        if (!has_layout(v, how)) continue;
        save_as(v, path, NULL, how);
        if (hone_model_open(&model, path, NULL, &err)) fail_msg("%s: layout %d: %s", v->name, (int)how, err.message);
        run_model(v, model, NULL, 2, v->n, HONE_CACHE_F32, y);
        assert_memory_equal(y, first, (size_t)(v->n * v->n_vocab) * sizeof *y);
        hone_model_close(model);
    }
}

/* The sum of every state at the end, where the vector has it. */
static void check_states(const vector *v, const hone_model *model)
{
    const char *layer;
    json_t *want;
    float y[MAX_TOK * MAX_VOCAB];
    hone_context *c = tm_context("scalar", 1);
    hone_session *s = tm_session(c, model, PAGE, 1, v->n, HONE_CACHE_F32);
    tm_run(s, 0, v->tok, v->n, y);
    json_object_foreach(json_object_get(v->j, "state_sums"), layer, want)
    {
        size_t at = 0;
        int32_t il = atoi(layer);
        int64_t n = model->memory[il].state_floats;
        double sum = 0;
        float *f = malloc((size_t)n * sizeof *f);
        assert_non_null(f);
        assert_true(n > 0 && hn_memory_state_at(s->mem, 0, &at));
        s->be->op->read(s->be, f, s->mem->states.mem, at + (size_t)s->mem->state_at[il] * sizeof *f,
                        (size_t)n * sizeof *f);
        for (int64_t i = 0; i < n; i++) sum += (double)f[i];
        free(f);
        if (!(fabs(sum - json_number_value(want)) <= 2e-5)) /* which are given to five places */
            fail_msg("%s: the states of layer %s add up to %.6f, expected %.6f", v->name, layer, sum,
                     json_number_value(want));
    }
    hone_session_free(s);
    hone_context_free(c);
}

static void check_case(const vector *v)
{
    hone_error err = { 0 };
    hone_model *model;
    float first[MAX_TOK * MAX_VOCAB];
    const char *path = tm_path("family.gguf");
    double tolerance = json_number_value(json_object_get(v->j, "tolerance_f32"));
    save_without(v, path, NULL);
    if (hone_model_open(&model, path, NULL, &err)) fail_msg("%s: %s", v->name, err.message);
    for (int cache = 2; cache >= 0; cache--) { /* f32 first */
        hone_kv_cache_type type = cache == 2 ? HONE_CACHE_F32 : cache == 1 ? HONE_CACHE_F16 : HONE_CACHE_Q8_0;
        check_bits(v, model, type, first);
        if (type != HONE_CACHE_F32) continue;
        double far = farthest(v, first);
        print_message("%-14s %.1e\n", v->name, far);
        if (!(far <= tolerance)) fail_msg("%s: %.2e from the vector, expected at most %.0e", v->name, far, tolerance);
        check_neighbours(v, model, first);
        check_states(v, model);
        check_layouts(v, first);
        if (json_object_get(v->j, "experts_last_token")) check_picks(v, model);
    }
    hone_model_close(model);
}

static void families_are_their_vectors(void **state)
{
    struct dirent **files;
    int n = scandir(FOLDER, &files, NULL, alphasort), n_run = 0;
    const char *only = getenv("HONE_TEST_FAMILY");
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        if (strstr(files[i]->d_name, ".json") && (!only || !strncmp(files[i]->d_name, only, strlen(only)))) {
            vector v = load(files[i]->d_name);
            check_case(&v);
            n_run++;
            json_decref(v.j);
        }
        free(files[i]);
    }
    free(files);
    if (!only) assert_int_equal(n_run, N_VECTOR);
}

/* Each key that a vector's file has is wanted, or has a value that files without it mean: never another crash, never
 * another answer in silence. */
static void missing_keys_are_told_or_mean_what_they_said(void **state)
{
    struct dirent **files;
    int n = scandir(FOLDER, &files, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (strstr(files[i]->d_name, ".json")) {
            vector v = load(files[i]->d_name);
            const json_t *kv = json_object_get(v.j, "kv");
            for (size_t k = 0; k < json_array_size(kv); k++) {
                const char *key = json_string_value(json_array_get(json_array_get(kv, k), 0));
                hone_error err = { 0 };
                hone_model *model;
                save_without(&v, tm_path("family.gguf"), key);
                if (hone_model_open(&model, tm_path("family.gguf"), NULL, &err)) {
                    assert_true(strlen(err.message) > 0);
                    continue;
                }
                float y[MAX_TOK * MAX_VOCAB];
                run_model(&v, model, NULL, 1, v.n, HONE_CACHE_F32, y);
                hone_model_close(model);
            }
            json_decref(v.j);
        }
        free(files[i]);
    }
    free(files);
}

/* Norms of heads that a file may lack: without them heads are not normed, which is not a norm whose weights are 1. */
static void absent_norms_are_none(void **state)
{
    vector v = load("glm4moe.json");
    float y[2][MAX_TOK * MAX_VOCAB];
    for (int i = 0; i < 2; i++) {
        hone_error err = { 0 };
        hone_model *model;
        save_as(&v, tm_path("family.gguf"), NULL, i ? HEAD_NORMS_OF_ONE : NO_HEAD_NORMS);
        if (hone_model_open(&model, tm_path("family.gguf"), NULL, &err)) fail_msg("%s", err.message);
        run_model(&v, model, NULL, 1, v.n, HONE_CACHE_F32, y[i]);
        hone_model_close(model);
    }
    double most = 0;
    for (int i = 0; i < v.n * v.n_vocab; i++) most = fmax(most, fabs((double)y[0][i] - (double)y[1][i]));
    assert_true(most > 0.01);
    json_decref(v.j);
}

/* A family that is trained, but not its files with experts. */
static void experts_are_not_trained(void **state)
{
    static const char *const files[] = { "mistral.json", "mixtral.json" };
    for (int i = 0; i < 2; i++) {
        vector v = load(files[i]);
        hone_error err = { 0 };
        hone_model *model;
        save_without(&v, tm_path("family.gguf"), NULL);
        assert_int_equal(hone_model_open(&model, tm_path("family.gguf"), NULL, &err), HONE_OK);
        assert_int_equal(hn_grad_check(model, &err), i == 0 ? HONE_OK : HONE_E_UNSUPPORTED);
        if (i) assert_non_null(strstr(err.message, "mixtures of experts"));
        hone_model_close(model);
        json_decref(v.j);
    }
}

/* A router that sees what its layer begins with chooses for the rows that the layer gives, alone: in the last layer for
 * those whose logits are wanted. */
static void wanted_rows_choose_early(void **state)
{
    vector v = load("smallthinker.json");
    const int n_layer = (int)number_of(&v, "block_count");
    float all[MAX_TOK * MAX_VOCAB], last[MAX_VOCAB];
    hone_error err = { 0 };
    hone_model *model;
    save_without(&v, tm_path("family.gguf"), NULL);
    assert_int_equal(hone_model_open(&model, tm_path("family.gguf"), NULL, &err), HONE_OK);
    hone_context *c = tm_context(NULL, 1);
    (void)hn_backend_register("looking", open_looking); /* maybe it is there */
    c->backend = "looking";
    hone_session *s = tm_session(c, model, PAGE, 1, v.n, HONE_CACHE_F32);
    seen.n = 0;
    tm_run(s, 0, v.tok, v.n, all);
    for (int il = 0; il < seen.n; il++) assert_int_equal(seen.rows[il], v.n);
    for (int wanted = 0; wanted < 2; wanted++) {
        hone_token t[MAX_TOK];
        assert_int_equal(hone_seq_truncate(s, 0, 0, &err), HONE_OK);
        seen.n = 0;
        for (int i = 0; i < v.n; i++) t[i] = (hone_token){ v.tok[i], i, 0, wanted && i == v.n - 1 };
        assert_int_equal(hone_decode(s, t, v.n, last, &err), HONE_OK);
        assert_int_equal(seen.n, n_layer - 1 + wanted);
        for (int il = 0; il < seen.n; il++) assert_int_equal(seen.rows[il], il < n_layer - 1 ? v.n : 1);
    }
    assert_memory_equal(last, all + (v.n - 1) * v.n_vocab, (size_t)v.n_vocab * sizeof *last);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(model);
    json_decref(v.j);
}

/* A file that says that its last block drafts, but that is a layer: it is not left out in silence. */
static void layers_are_no_drafts(void **state)
{
    vector v = load("glm4moe.json");
    hone_error err = { 0 };
    hone_model *model;
    save_as(&v, tm_path("family.gguf"), NULL, DRAFT_OF_NONE);
    assert_int_equal(hone_model_open(&model, tm_path("family.gguf"), NULL, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "glm4moe.nextn_predict_layers = 1"));
    assert_non_null(strstr(err.message, "nextn.eh_proj.weight"));
    json_decref(v.j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_are_their_vectors), cmocka_unit_test(absent_norms_are_none),
        cmocka_unit_test(experts_are_not_trained),    cmocka_unit_test(wanted_rows_choose_early),
        cmocka_unit_test(layers_are_no_drafts),       cmocka_unit_test(missing_keys_are_told_or_mean_what_they_said),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
