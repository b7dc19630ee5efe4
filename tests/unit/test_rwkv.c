/* RWKV-7 and RWKV-6 against two independent sources: logits and states published with the
 * recipe of the weights (float64, computed elsewhere), and a forward pass in double
 * precision written here from the equations. The second is first checked by the first, then
 * used where no published numbers exist: odd sizes, one head and many, other files. And
 * one answer: the bytes of logits and states, however the tokens came. */
#include "rwkv_reference.h"
#include "slowed.h"

/* ---- published numbers ----------------------------------------------------------------------------- */

static const int32_t prompt[6] = { 3, 1, 4, 1, 5, 9 };

static const struct published {
    const rw_shape *shape;
    double logits[16], row[8], sum[2]; /* row: v7 the value 0, v6 the key 0 of head 1 in layer 1 */
} published[] = {
    { &rw_vec7,
      { -0.019917, 0.111421, -0.766469, 0.985544, -0.638991, -0.771848, -0.100124, -1.016740, 0.156366, -0.263759,
        -0.308969, -0.370056, -1.319124, -0.894486, -0.727085, 0.915739 },
      { -0.079412, -0.024474, -0.027655, -0.006999, 0.080362, 0.192916, 0.013314, -0.044303 },
      { -3.449003, 1.164707 } },
    { &rw_vec6,
      { -0.037809, 0.339436, -0.563550, 0.982791, -0.516681, -0.677690, -0.411390, -1.134667, -0.082341, -0.314956,
        -0.556661, -0.587828, -0.930063, -1.008993, -0.616423, 0.467966 },
      { -0.043213, 0.121958, -0.557374, -0.062650, 0.479928, 0.328048, -0.072617, 0.509439 },
      { -0.702111, -2.182806 } },
};
enum { N_PUBLISHED = sizeof published / sizeof *published };

/* The largest difference of a state [L]{a, f, S} from what is published of it. */
static double state_error(const struct published *p, const double *state)
{
    const rw_shape *s = p->shape;
    size_t per_layer = rw_state_floats(s) / 2;
    double worst = 0;
    for (int il = 0; il < 2; il++) {
        double sum = 0;
        for (size_t i = 2 * (size_t)s->E; i < per_layer; i++) sum += state[(size_t)il * per_layer + i];
        worst = fmax(worst, fabs(sum - p->sum[il]));
    }
    const double *S = state + per_layer + 2 * s->E + s->N * s->N;
    for (int j = 0; j < 8; j++) worst = fmax(worst, fabs(S[rw_is7(s) ? j * s->N : j] - p->row[j]));
    return worst;
}

static void reference_gives_published(void **state)
{
    for (int i = 0; i < N_PUBLISHED; i++) {
        double y[6 * 16], st[2048];
        tiny *m = rw_new(published[i].shape);
        reference(m, published[i].shape, prompt, 6, y, st);
        for (int j = 0; j < 16; j++)
            if (!(fabs(y[5 * 16 + j] - published[i].logits[j]) < 6e-7))
                fail_msg("%s: logit %d is %.7f, published %.6f", published[i].shape->arch, j, y[5 * 16 + j],
                         published[i].logits[j]);
        assert_true(state_error(&published[i], st) < 6e-7);
        tm_free(m);
    }
}

/* ---- states ------------------------------------------------------------------------------------------- */

static void read_file(const char *path, unsigned char **p, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    *p = malloc(*n + 1);
    assert_non_null(*p);
    assert_int_equal(fread(*p, 1, *n, f), *n);
    fclose(f);
}

/* The saved state of a session with one sequence that is not empty: the floats before the
 * checksum at the end of the file. */
static void saved_state(hone_session *s, const rw_shape *shape, float *out)
{
    hone_error err = { 0 };
    unsigned char *p;
    size_t n, want = rw_state_floats(shape) * sizeof(float);
    const char *path = tm_path("state");
    if (hone_session_save(s, path, &err)) fail_msg("%s", err.message);
    read_file(path, &p, &n);
    assert_true(n >= want + 8);
    memcpy(out, p + n - 8 - want, want);
    free(p);
}

static void engine_gives_published(void **state)
{
    for (int i = 0; i < N_PUBLISHED; i++) {
        const rw_shape *shape = published[i].shape;
        size_t n_state = rw_state_floats(shape);
        tiny *m = rw_new(shape);
        hone_model *model = tm_open(m);
        float first[6 * 16], first_state[2048];
        for (const char *const *cpu = tm_levels(); *cpu; cpu++) {
            hone_context *c = tm_context(*cpu, 2);
            hone_session *s = tm_session(c, model, 16, 1, 0, HONE_CACHE_F32);
            float y[6 * 16], st[2048];
            double wide[2048], worst = 0;
            tm_run(s, 0, prompt, 6, y);
            for (int j = 0; j < 16; j++) worst = fmax(worst, fabs((double)y[5 * 16 + j] - published[i].logits[j]));
            saved_state(s, shape, st);
            for (size_t j = 0; j < n_state; j++) wide[j] = (double)st[j];
            print_message("  %s on %-7s max error %.2g, of the state %.2g\n", shape->arch, *cpu, worst,
                          state_error(&published[i], wide));
            assert_true(worst <= 5e-6);
            assert_true(state_error(&published[i], wide) <= 5e-6);
            if (cpu == tm_levels()) memcpy(first, y, sizeof y), memcpy(first_state, st, n_state * sizeof *st);
            assert_memory_equal(y, first, sizeof y);
            assert_memory_equal(st, first_state, n_state * sizeof *st);
            hone_session_free(s);
            hone_context_free(c);
        }
        hone_model_close(model);
        tm_free(m);
    }
}

/* ---- against the reference ------------------------------------------------------------------------------- */

/* Logits of n tokens, and the state after them, against the reference; relative to the
 * largest of each. The same bytes on every level. */
static void errors_of(tiny *m, const rw_shape *shape, int n, double *of_logits, double *of_state)
{
    int32_t ids[MAX_TOK];
    size_t n_state = rw_state_floats(shape), n_logits = (size_t)(n * shape->V);
    double *want = malloc(n_logits * sizeof *want), *want_st = malloc(n_state * sizeof *want_st);
    float *y = malloc(n_logits * sizeof *y), *st = malloc(n_state * sizeof *st), *y0 = malloc(n_logits * sizeof *y),
          *st0 = malloc(n_state * sizeof *st);
    double worst = 0, largest = 0;
    assert_true(want && want_st && y && st && y0 && st0 && n <= MAX_TOK);
    for (int i = 0; i < n; i++) ids[i] = (i * i + 3 * i + 1) % shape->V;
    reference(m, shape, ids, n, want, want_st);
    hone_model *model = tm_open(m);
    for (const char *const *cpu = tm_levels(); *cpu; cpu++) {
        hone_context *c = tm_context(*cpu, 2);
        hone_session *s = tm_session(c, model, MAX_TOK, 1, 32, HONE_CACHE_F32);
        tm_run(s, 0, ids, n, y);
        saved_state(s, shape, st);
        if (cpu == tm_levels()) memcpy(y0, y, n_logits * sizeof *y), memcpy(st0, st, n_state * sizeof *st);
        assert_memory_equal(y, y0, n_logits * sizeof *y);
        assert_memory_equal(st, st0, n_state * sizeof *st);
        hone_session_free(s);
        hone_context_free(c);
    }
    for (size_t i = 0; i < n_logits; i++)
        worst = fmax(worst, fabs((double)y[i] - want[i])), largest = fmax(largest, fabs(want[i]));
    *of_logits = isfinite(worst) ? worst / largest : INFINITY;
    worst = largest = 0;
    for (size_t i = 0; i < n_state; i++)
        worst = fmax(worst, fabs((double)st[i] - want_st[i])), largest = fmax(largest, fabs(want_st[i]));
    *of_state = isfinite(worst) ? worst / largest : INFINITY;
    for (size_t i = 0; i < n_logits; i++) assert_true(isfinite(y[i]));
    for (size_t i = 0; i < n_state; i++) assert_true(isfinite(st[i]));
    hone_model_close(model);
    free(want), free(want_st), free(y), free(st), free(y0), free(st0);
}

static void shapes(void **state)
{
    static const rw_shape list[] = {
        R7(64, 64, 256, 40, 2, 32, 32, 16, 32),           /* one head */
        R7(96, 8, 50, 33, 3, 5, 7, 3, 9),                 /* twelve narrow ones, odd ranks */
        R7(60, 20, 77, 19, 2, 1, 2, 3, 4, .no_v0 = true), /* no size a multiple of a lane */
        R7(128, 128, 130, 40, 2, 17, 33, 9, 30),          /* wider than usual */
        R7(21, 7, 30, 19, 3, 3, 3, 3, 3, .eps = 1e-3),
        R7(6, 1, 10, 11, 2, 2, 2, 2, 2),     /* heads of one */
        R7(160, 32, 100, 40, 1, 8, 8, 8, 8), /* a single layer: no mixing of v */
        R6(64, 64, 224, 40, 2, 32, 64),
        R6(96, 8, 50, 33, 3, 3, 5, .separate = true),
        R6(60, 20, 77, 19, 2, 1, 1),
        R6(64, 16, 96, 40, 5, 4, 8, .rescale = 2),
        R6(48, 16, 96, 40, 4, 4, 4, .rescale = 1, .separate = true),
        R6(128, 128, 130, 40, 2, 8, 16),
        R6(21, 7, 30, 19, 3, 2, 3, .eps = 1e-3),
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        tiny *m = rw_new(&list[i]);
        double e, es;
        errors_of(m, &list[i], 70, &e, &es);
        print_message("  %s, case %zu: logits %.2g, state %.2g\n", list[i].arch, i, e, es);
        assert_true(e < 1e-5);
        assert_true(es < 1e-5);
        tm_free(m);
    }
}

static void big_matrices_as(tiny *m, hn_type type)
{
    static const char *const names[] = { "receptance", "key", "value", "output", "gate" };
    for (int t = 0; t < m->n_t; t++) {
        char *name = m->t[t].name, *p = strstr(name, "_mix_");
        bool matrix = !strcmp(name, "output.weight") || !strcmp(name, "token_embd.weight");
        for (size_t j = 0; p && j < sizeof names / sizeof *names; j++) {
            size_t n = strlen(names[j]);
            if (!strncmp(p + 5, names[j], n) && p[5 + n] == '.') matrix = true;
        }
        if (matrix && m->t[t].ne[0] % hn_type_get(type)->block_elems == 0) tm_encode(&m->t[t], type);
    }
}

/* Weights of other types: the reference has the decoded values and rounds activations as the
 * engine does. What remains, for block types, is a value at the edge of two codes. */
static void types(void **state)
{
    static const rw_shape list[] = { R7(256, 64, 512, 40, 2, 32, 32, 16, 32), R6(256, 64, 512, 40, 2, 32, 32) };
    static const struct {
        hn_type type;
        double bar;
    } kinds[] = { { HN_F16, 1e-5 },  { HN_BF16, 1e-5 }, { HN_Q8_0, 3e-2 },
                  { HN_Q4_0, 3e-2 }, { HN_Q4_K, 3e-2 }, { HN_Q6_K, 3e-2 } };
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k += SLOWED ? 2 : 1) {
            tiny *m = rw_new(&list[i]);
            double e, es;
            big_matrices_as(m, kinds[k].type);
            for (int t = 0; t < m->n_t; t++) {
                char *p = strstr(m->t[t].name, "time_mix_");
                if (rw_is7(&list[i]) && p && m->t[t].n_dim == 2 && m->t[t].type == HN_F32 && p[9] != 'w')
                    tm_encode(&m->t[t], k % 2 ? HN_BF16 : HN_F16);
            }
            errors_of(m, &list[i], 24, &e, &es);
            print_message("  %s, %s: logits %.2g, state %.2g\n", list[i].arch, hn_type_get(kinds[k].type)->name, e, es);
            assert_true(e < kinds[k].bar);
            assert_true(es < kinds[k].bar);
            tm_free(m);
        }
}

/* Decays of none and of all, gates wide open and shut, a head without keys. */
static void extremes(void **state)
{
    static const rw_shape list[] = { R7(48, 16, 64, 40, 3, 4, 4, 4, 4), R6(48, 16, 64, 40, 3, 4, 4) };
    for (size_t i = 0; i < 2; i++) {
        tiny *m = rw_new(&list[i]);
        double e, es;
        for (int t = 0; t < m->n_t; t++) {
            tm_tensor *x = &m->t[t];
            bool gate =
                strstr(x->name, "time_mix_w0") || strstr(x->name, "time_mix_a0") || strstr(x->name, "time_mix_v0");
            if (gate)
                for (int j = 0; j < 48; j += 3) x->f[j] = j % 2 ? 200.0f : -200.0f;
            if (strstr(x->name, "time_mix_decay.weight"))
                for (int j = 0; j < 48; j += 3) x->f[j] = j % 2 ? 8.0f : -40.0f;
            if (strstr(x->name, "time_mix_key")) memset(x->f, 0, 16 * 48 * sizeof(float));
            tm_encode(x, HN_F32);
        }
        errors_of(m, &list[i], 70, &e, &es);
        print_message("  %s: logits %.2g, state %.2g\n", list[i].arch, e, es);
        assert_true(e < 1e-5);
        assert_true(es < 1e-5);
        tm_free(m);
    }
}

/* ---- one answer ------------------------------------------------------------------------------------------- */

enum { LEN = 60, V = 40 };

/* Models of every kind of weight, and what a session of one token at a time, one thread and
 * scalar kernels makes of them: logits of every token, and the state after each. */
static const rw_shape subject_shapes[] = {
    R7(256, 64, 320, V, 2, 32, 32, 16, 32),
    R7(96, 32, 100, V, 3, 5, 7, 3, 9),
    R6(256, 64, 320, V, 2, 32, 32),
    R6(60, 12, 77, V, 3, 3, 5, .rescale = 2, .separate = true),
};
static const hn_type subject_types[] = { HN_Q4_K, HN_Q8_0, HN_Q6_K, HN_BF16 };
enum { N_SUBJECTS = sizeof subject_shapes / sizeof *subject_shapes, N_TEXT = 3 };

static struct subject {
    const rw_shape *shape;
    tiny *t;
    hone_model *m;
    size_t n_state;
    float *logits[N_TEXT], *state[N_TEXT]; /* [LEN][V], [LEN + 1][n_state] */
} subjects[N_SUBJECTS];

static const int32_t *text(int k)
{
    static int32_t ids[N_TEXT][LEN];
    for (int i = 0; i < LEN; i++) ids[k][i] = (int32_t)(hn_rand64((uint64_t)k, (uint64_t)i) % V);
    return ids[k];
}

/* What a file says of a session: its sequences' states one after another; none of empty ones. */
static void states_of(hone_session *s, int n_seq, float *out, size_t n_state, int32_t *lengths)
{
    hone_error err = { 0 };
    unsigned char *p;
    size_t n, at = 64 + 4 * (size_t)n_seq;
    const char *path = tm_path("states");
    if (hone_session_save(s, path, &err)) fail_msg("%s", err.message);
    read_file(path, &p, &n);
    assert_memory_equal(p, "HONESES2", 8);
    for (int i = 0; i < n_seq; i++) {
        memcpy(&lengths[i], p + 64 + 4 * i, 4);
        memset(out + (size_t)i * n_state, 0, n_state * sizeof *out);
        if (!lengths[i]) continue;
        assert_true(at + n_state * sizeof *out + 8 <= n);
        memcpy(out + (size_t)i * n_state, p + at, n_state * sizeof *out);
        at += n_state * sizeof *out;
    }
    assert_int_equal(at + 8, n);
    free(p);
}

static void expect_state(hone_session *s, int n_seq, int seq, const struct subject *u, int k, int len, const char *what)
{
    float *st = malloc((size_t)n_seq * u->n_state * sizeof *st);
    int32_t lengths[8];
    assert_non_null(st);
    states_of(s, n_seq, st, u->n_state, lengths);
    assert_int_equal(lengths[seq], len);
    if (memcmp(st + (size_t)seq * u->n_state, u->state[k] + (size_t)len * u->n_state, u->n_state * sizeof *st))
        fail_msg("%s E %d: %s: another state", u->shape->arch, u->shape->E, what);
    free(st);
}
static void expect_logits(const float *got, const struct subject *u, int k, int from, int n, const char *what)
{
    for (int i = 0; i < n; i++)
        if (memcmp(got + i * V, u->logits[k] + (from + i) * V, V * sizeof *got))
            fail_msg("%s E %d: %s: other logits at %d", u->shape->arch, u->shape->E, what, from + i);
}

static int make_subjects(void **state)
{
    if (tm_make_dir(state)) return -1;
    hone_context *c = tm_context("scalar", 1);
    for (int i = 0; i < N_SUBJECTS; i++) {
        struct subject *u = &subjects[i];
        *u = (struct subject){ .shape = &subject_shapes[i],
                               .t = rw_new(&subject_shapes[i]),
                               .n_state = rw_state_floats(&subject_shapes[i]) };
        big_matrices_as(u->t, subject_types[i]);
        u->m = tm_open(u->t);
        for (int k = 0; k < N_TEXT; k++) {
            hone_session *s = tm_session(c, u->m, 0, 1, 1, HONE_CACHE_F16);
            int32_t len;
            u->logits[k] = malloc(LEN * V * sizeof(float));
            u->state[k] = calloc((LEN + 1) * u->n_state, sizeof(float));
            assert_true(u->logits[k] && u->state[k]);
            for (int t = 0; t < LEN; t++) {
                tm_run(s, 0, text(k) + t, 1, u->logits[k] + t * V);
                states_of(s, 1, u->state[k] + (size_t)(t + 1) * u->n_state, u->n_state, &len);
            }
            hone_session_free(s);
        }
    }
    hone_context_free(c);
    return 0;
}
static int drop_subjects(void **state)
{
    for (int i = 0; i < N_SUBJECTS; i++) {
        hone_model_close(subjects[i].m);
        tm_free(subjects[i].t);
        for (int k = 0; k < N_TEXT; k++) free(subjects[i].logits[k]), free(subjects[i].state[k]);
    }
    return tm_remove_dir(state);
}

static void level_threads_and_chunk_do_not_matter(void **state)
{
    static const int chunks[] = { 1, 2, 6, 64 };
    float y[LEN * V];
    for (const char *const *cpu = tm_levels(); *cpu; cpu++)
        for (int threads = 1; threads <= 3; threads++) {
            hone_context *c = tm_context(*cpu, threads);
            for (int i = 0; i < N_SUBJECTS; i++)
                for (int j = threads == 1 ? 0 : 2; j < 4; j++) {
                    char what[64];
                    snprintf(what, sizeof what, "%s, %d threads, chunk %d", *cpu, threads, chunks[j]);
                    hone_session *s = tm_session(c, subjects[i].m, 0, 1, chunks[j], HONE_CACHE_F16);
                    tm_run(s, 0, text(0), LEN, y);
                    expect_logits(y, &subjects[i], 0, 0, LEN, what);
                    expect_state(s, 1, 0, &subjects[i], 0, LEN, what);
                    hone_session_free(s);
                }
            hone_context_free(c);
        }
}

/* Two and three sequences in one batch, taking turns unevenly; also where only some logits
 * are wanted, and none. */
static void company_does_not_matter(void **state)
{
    float y[3 * LEN * V];
    for (const char *const *cpu = tm_levels(); *cpu; cpu++)
        for (int mode = 0; mode < 4; mode++) {
            hone_context *c = tm_context(*cpu, 1 + mode % 3);
            for (int i = 0; i < N_SUBJECTS; i++) {
                hone_error err = { 0 };
                hone_token batch[3 * LEN];
                int at[3] = { 0 }, n = 0, n_seq = mode == 0 ? 2 : 3, row = 0;
                while (n < n_seq * LEN)
                    for (int seq = n_seq - 1; seq >= 0; seq--)
                        for (int k = 0; k <= (mode == 0 ? 0 : 2 * seq) && at[seq] < LEN; k++, n++) {
                            bool want = mode < 2 || (mode == 2 && at[seq] % 7 == 3);
                            batch[n] = (hone_token){ text(seq)[at[seq]], at[seq], seq, want };
                            at[seq]++;
                        }
                hone_session *s = tm_session(c, subjects[i].m, 0, 3, mode == 1 ? 5 : 0, HONE_CACHE_F16);
                if (hone_decode(s, batch, n, mode == 3 ? NULL : y, &err)) fail_msg("%s", err.message);
                for (int t = 0; t < n; t++)
                    if (batch[t].want_logits)
                        expect_logits(y + row++ * V, &subjects[i], batch[t].seq, batch[t].pos, 1, "in company");
                for (int seq = 0; seq < n_seq; seq++) expect_state(s, 3, seq, &subjects[i], seq, LEN, "in company");
                hone_session_free(s);
            }
            hone_context_free(c);
        }
}

/* ---- going back, forking, saving ------------------------------------------------------------------------------ */

static void snapshots_and_forks(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    float y[LEN * V];
    for (int i = 0; i < N_SUBJECTS; i++) {
        const struct subject *u = &subjects[i];
        hone_error err = { 0 };
        hone_session *s = tm_session(c, u->m, 0, 2, 0, HONE_CACHE_F16),
                     *other = tm_session(c, u->m, 0, 1, 3, HONE_CACHE_F16);
        hone_snapshot *snap[3];
        for (int j = 0; j < 3; j++) { /* at 0, 17 and 34 */
            assert_int_equal(hone_seq_snapshot(s, 0, &snap[j], &err), HONE_OK);
            assert_int_equal(hone_snapshot_length(snap[j]), 17 * j);
            assert_true(hone_snapshot_bytes(snap[j]) >= (j ? u->n_state * sizeof(float) : 0));
            if (j < 2) tm_run(s, 0, text(0) + 17 * j, 17, y);
        }
        tm_run(s, 0, text(1), 9, y); /* goes elsewhere */
        for (int j = 2; j >= 0; j--) {
            hone_session *to = j == 1 ? other : s;
            int seq = j == 2 ? 1 : 0;
            assert_int_equal(hone_seq_restore(to, seq, snap[j], &err), HONE_OK);
            assert_int_equal(hone_seq_length(to, seq), 17 * j);
            if (j) expect_state(to, to == s ? 2 : 1, seq, u, 0, 17 * j, "restored");
            tm_run(to, seq, text(0) + 17 * j, LEN - 17 * j, y);
            expect_logits(y, u, 0, 17 * j, LEN - 17 * j, "restored");
            expect_state(to, to == s ? 2 : 1, seq, u, 0, LEN, "restored");
        }
        assert_int_equal(hone_seq_truncate(s, 0, 0, &err), HONE_OK);
        tm_run(s, 0, text(2), 20, y);
        expect_logits(y, u, 2, 0, 20, "emptied");
        assert_int_equal(hone_seq_copy(s, 1, 0, &err), HONE_OK); /* a fork: both go on by themselves */
        tm_run(s, 0, text(1), 9, y);
        tm_run(s, 1, text(2) + 20, LEN - 20, y);
        expect_logits(y, u, 2, 20, LEN - 20, "forked");
        for (int k = 0; k < 2; k++) { /* of another model, or of another session's sequence */
            const struct subject *v = &subjects[(i + 1 + k) % N_SUBJECTS];
            hone_session *foreign = tm_session(c, v->m, 0, 1, 0, HONE_CACHE_F16);
            tm_run(foreign, 0, text(0), 5, y);
            assert_int_equal(hone_seq_restore(foreign, 0, snap[1], &err), HONE_E_ARG);
            expect_state(foreign, 1, 0, v, 0, 5, "a refused snapshot");
            hone_session_free(foreign);
        }
        assert_int_equal(hone_seq_restore(s, 2, snap[1], &err), HONE_E_ARG);
        assert_int_equal(hone_seq_restore(s, -1, snap[1], &err), HONE_E_ARG);
        hone_snapshot *none = (hone_snapshot *)1;
        assert_int_equal(hone_seq_snapshot(s, 2, &none, &err), HONE_E_ARG);
        assert_null(none);
        for (int j = 0; j < 3; j++) hone_snapshot_free(snap[j]);
        hone_snapshot_free(NULL);
        hone_session_free(s);
        hone_session_free(other);
    }
    hone_context_free(c);
}

/* A state can be cut where it was remembered, nowhere else. */
static void checkpoints(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    float y[LEN * V];
    for (int i = 0; i < N_SUBJECTS; i++) {
        const struct subject *u = &subjects[i];
        hone_error err = { 0 };
        int32_t kept;
        hone_session *s = tm_session(c, u->m, 0, 2, 0, HONE_CACHE_F16);
        tm_run(s, 0, text(0), 20, y);
        assert_int_equal(hone_seq_truncate(s, 0, 20, &err), HONE_OK);
        assert_int_equal(hone_seq_truncate(s, 0, 19, &err), HONE_E_UNSUPPORTED);
        assert_int_equal(hone_seq_truncate(s, 0, 21, &err), HONE_E_ARG);
        assert_int_equal(hone_seq_truncate(s, 0, -1, &err), HONE_E_ARG);
        expect_state(s, 2, 0, u, 0, 20, "a refused cut");
        assert_int_equal(hone_seq_checkpoint(s, 0, &err), HONE_OK);
        tm_run(s, 0, text(0) + 20, 10, y);
        assert_int_equal(hone_seq_checkpoint(s, 0, &err), HONE_OK);
        tm_run(s, 0, text(1), 7, y);
        assert_int_equal(hone_seq_truncate(s, 0, 25, &err), HONE_E_UNSUPPORTED);
        assert_int_equal(hone_seq_truncate(s, 0, 30, &err), HONE_OK);
        expect_state(s, 2, 0, u, 0, 30, "cut at a checkpoint");
        tm_run(s, 0, text(0) + 30, 12, y);
        expect_logits(y, u, 0, 30, 12, "cut at a checkpoint");
        assert_int_equal(hone_seq_rewind(s, 0, 29, &kept, &err), HONE_OK);
        assert_int_equal(kept, 20);
        assert_int_equal(hone_seq_length(s, 0), 20);
        expect_state(s, 2, 0, u, 0, 20, "rewound");
        tm_run(s, 0, text(1), 12, y);
        assert_int_equal(hone_seq_truncate(s, 0, 30, &err), HONE_E_UNSUPPORTED); /* that was another text */
        assert_int_equal(hone_seq_rewind(s, 0, 30, &kept, &err), HONE_OK);
        assert_int_equal(kept, 20);
        assert_int_equal(hone_seq_rewind(s, 0, 1000, &kept, &err), HONE_OK);
        assert_int_equal(kept, 20);
        tm_run(s, 1, text(2), 25, y); /* what one remembers another cannot have */
        assert_int_equal(hone_seq_truncate(s, 1, 20, &err), HONE_E_UNSUPPORTED);
        assert_int_equal(hone_seq_copy(s, 0, 1, &err), HONE_OK);
        assert_int_equal(hone_seq_truncate(s, 0, 20, &err), HONE_E_UNSUPPORTED);
        expect_state(s, 2, 0, u, 2, 25, "copied over a checkpoint");
        assert_int_equal(hone_seq_rewind(s, 0, 24, &kept, &err), HONE_OK);
        assert_int_equal(kept, 0);
        tm_run(s, 0, text(0), 3, y);
        expect_logits(y, u, 0, 0, 3, "rewound to nothing");
        hone_snapshot *snap; /* and what is restored brings no memory of before */
        assert_int_equal(hone_seq_snapshot(s, 1, &snap, &err), HONE_OK);
        assert_int_equal(hone_seq_checkpoint(s, 0, &err), HONE_OK);
        assert_int_equal(hone_seq_restore(s, 0, snap, &err), HONE_OK);
        assert_int_equal(hone_seq_truncate(s, 0, 3, &err), HONE_E_UNSUPPORTED);
        expect_state(s, 2, 0, u, 2, 25, "restored over a checkpoint");
        hone_snapshot_free(snap);
        assert_int_equal(hone_seq_truncate(s, 0, 0, &err), HONE_OK);
        tm_run(s, 0, text(0), 3, y);
        /* more places than are kept: those that are there are right, the last are there */
        int n_there = 0;
        for (int t = 3; t < 40; t++) {
            assert_int_equal(hone_seq_checkpoint(s, 0, &err), HONE_OK);
            tm_run(s, 0, text(0) + t, 1, y);
        }
        assert_int_equal(hone_seq_rewind(s, 0, 39, &kept, &err), HONE_OK);
        assert_int_equal(kept, 39);
        for (int t = 38; t > 2; t--) {
            hone_status st = hone_seq_truncate(s, 0, t, &err);
            if (st == HONE_E_UNSUPPORTED) continue;
            assert_int_equal(st, HONE_OK);
            expect_state(s, 2, 0, u, 0, t, "one of many checkpoints");
            n_there++;
        }
        assert_true(n_there >= 4);
        hone_session_free(s);
    }
    hone_context_free(c);
}

/* Saved at any token, restored into another session, and on: as if never stopped. */
static void save_and_load(void **state)
{
    float y[LEN * V];
    const char *path = tm_path("saved");
    for (int i = 0; i < N_SUBJECTS; i++) {
        const struct subject *u = &subjects[i];
        for (int at = 1; at < LEN; at += i % 2 ? 11 : 7) {
            hone_error err = { 0 };
            int32_t kept;
            hone_context *c = tm_context(at % 2 ? NULL : "scalar", 1 + at % 3),
                         *d = tm_context(at % 2 ? "scalar" : NULL, 2);
            hone_session *s = tm_session(c, u->m, 0, 2, 0, HONE_CACHE_F16),
                         *r = tm_session(d, u->m, 0, 3, 4, HONE_CACHE_Q8_0);
            tm_run(s, 1, text(1), at, y);
            if (hone_session_save(s, path, &err)) fail_msg("%s", err.message);
            tm_run(r, 0, text(0), 9, y); /* what is overwritten */
            assert_int_equal(hone_seq_checkpoint(r, 0, &err), HONE_OK);
            tm_run(r, 1, text(0), 9, y);
            assert_int_equal(hone_seq_checkpoint(r, 1, &err), HONE_OK);
            tm_run(r, 2, text(2), 9, y);
            if (hone_session_load(r, path, &err)) fail_msg("%s", err.message);
            assert_int_equal(hone_seq_length(r, 0), 0);
            assert_int_equal(hone_seq_length(r, 1), at);
            assert_int_equal(hone_seq_length(r, 2), 0);
            if (at > 9) assert_int_equal(hone_seq_truncate(r, 1, 9, &err), HONE_E_UNSUPPORTED);
            tm_run(r, 1, text(1) + at, LEN - at, y);
            expect_logits(y, u, 1, at, LEN - at, "loaded");
            expect_state(r, 3, 1, u, 1, LEN, "loaded");
            tm_run(r, 0, text(0), 5, y);
            expect_logits(y, u, 0, 0, 5, "an empty sequence after loading");
            tm_run(r, 2, text(0), 5, y);
            expect_logits(y, u, 0, 0, 5, "a sequence the file has not");
            assert_int_equal(hone_seq_rewind(r, 0, 4, &kept, &err), HONE_OK);
            assert_int_equal(kept, 0);
            hone_session_free(s);
            hone_session_free(r);
            hone_context_free(c);
            hone_context_free(d);
        }
    }
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A batch that wants no logits runs through what is no number; nothing keeps the state that it leaves. */
static void states_that_are_none(void **state)
{
    for (int v = 0; v < 2; v++) {
        const rw_shape *shape = v ? &rw_vec6 : &rw_vec7;
        hone_error err = { 0 };
        hone_snapshot *snap;
        const float *y;
        tiny *t = rw_new(shape);
        tm_tensor *embd = tm_find(t, "token_embd.weight");
        for (int i = 0; i < shape->E; i++) embd->f[7 * shape->E + i] = INFINITY;
        tm_encode(embd, HN_F32);
        hone_model *m = tm_open(t);
        hone_context *c = tm_context(NULL, 1);
        hone_session *s;
        const hone_session_params p = { .n_seq = 2, .n_ctx = 100, .n_kept_states = 4 };
        assert_int_equal(hone_session_new(&s, c, m, &p, &err), HONE_OK);
        const int32_t good[4] = { 1, 2, 3, 4 };
        if (hone_append(s, 0, good, 4, &y, &err)) fail_msg("%s", err.message);
        assert_int_equal(hone_seq_checkpoint(s, 0, &err), HONE_OK);
        const hone_token bad[3] = { { 7, 4, 0, false }, { 5, 5, 0, false }, { 6, 6, 0, false } };
        assert_int_equal(hone_run_batch(s, bad, 3, NULL, &err), HONE_OK);
        assert_int_equal(hone_seq_checkpoint(s, 0, &err), HONE_E_NUMERIC);
        if (!strstr(err.message, "layer 0: the state of sequence 0 at 7 positions has a number that is "))
            fail_msg("%s", err.message);
        assert_int_equal(hone_seq_keep(s, 0, &err), HONE_E_NUMERIC);
        assert_int_equal(hone_seq_snapshot(s, 0, &snap, &err), HONE_E_NUMERIC);
        assert_null(snap);
        assert_int_equal(hone_session_save(s, tm_path("none.session"), &err), HONE_E_NUMERIC);
        assert_int_not_equal(access(tm_path("none.session"), F_OK), 0);
        assert_int_equal(hone_append(s, 0, good, 1, &y, &err), HONE_E_NUMERIC);
        assert_int_equal(hone_seq_length(s, 0), 4); /* the checkpoint is the good one */
        assert_int_equal(hone_append(s, 0, good, 1, &y, &err), HONE_OK);
        assert_int_equal(hone_seq_keep(s, 0, &err), HONE_OK);
        hone_session_free(s);
        hone_context_free(c);
        hone_model_close(m);
        tm_free(t);
    }
}

/* Damaged files and those of others are refused, and nothing has changed. */
static void refused_states(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    const struct subject *u = &subjects[1];
    hone_error err = { 0 };
    float y[LEN * V];
    unsigned char *p;
    size_t n, n_tried = 0;
    hone_session *s = tm_session(c, u->m, 0, 2, 0, HONE_CACHE_F16),
                 *narrow = tm_session(c, u->m, 0, 1, 0, HONE_CACHE_F16);
    tm_run(s, 0, text(0), 10, y);
    tm_run(s, 1, text(1), 20, y);
    if (hone_session_save(s, tm_path("good"), &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_session_load(narrow, tm_path("good"), &err),
                     HONE_E_CTX); /* one sequence has no room for two */
    read_file(tm_path("good"), &p, &n);
    tm_run(s, 0, text(0) + 10, 5, y);
    for (size_t at = 0; at < n; at += at < 64 || at > n - 16 ? 1 : n / 40, n_tried++) {
        p[at] ^= 0x10;
        write_file(tm_path("bad"), p, n);
        hone_status st = hone_session_load(s, tm_path("bad"), &err);
        if (st == HONE_OK || st == HONE_E_NOMEM || st == HONE_E_IO || !strstr(err.message, "bad"))
            fail_msg("byte %zu changed: %s %s", at, hone_status_name(st), err.message);
        p[at] ^= 0x10;
    }
    for (size_t len = 0; len < n; len += len < 64 ? 7 : n / 20, n_tried++) {
        write_file(tm_path("bad"), p, len);
        assert_int_not_equal(hone_session_load(s, tm_path("bad"), &err), HONE_OK);
    }
    write_file(tm_path("bad"), p, n + 1);
    assert_int_not_equal(hone_session_load(s, tm_path("bad"), &err), HONE_OK);
    free(p);
    assert_true(n_tried > 100);
    expect_state(s, 2, 0, u, 0, 15, "refused files");
    expect_state(s, 2, 1, u, 1, 20, "refused files");
    tm_run(s, 0, text(0) + 15, LEN - 15, y);
    expect_logits(y, u, 0, 15, LEN - 15, "refused files");

    /* another architecture, another size, and the same but for the weights */
    tiny *twin = rw_new(u->shape);
    big_matrices_as(twin, subject_types[1]);
    for (int k = 0; k < 16; k++) tm_find(twin, "blk.1.time_mix_w0.weight")->f[k] += 1.0f;
    tm_encode(tm_find(twin, "blk.1.time_mix_w0.weight"), HN_F32);
    hone_model *m = tm_open(twin), *llama = tm_open((tm_free(twin), twin = tm_new(tm_llama)));
    const hone_model *list[] = { m, llama, subjects[0].m, subjects[2].m, subjects[3].m };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        hone_session *o = tm_session(c, list[i], 64, 2, 0, HONE_CACHE_F16);
        hone_status st = hone_session_load(o, tm_path("good"), &err);
        if (st != HONE_E_ARG) fail_msg("model %zu: %s %s", i, hone_status_name(st), err.message);
        assert_int_equal(hone_seq_length(o, 0), 0);
        hone_session_free(o);
    }
    hone_session *o = tm_session(c, llama, 64, 2, 0, HONE_CACHE_F16); /* and the other way round */
    tm_run(o, 0, (const int32_t[]){ 1, 2, 3 }, 3, NULL);
    if (hone_session_save(o, tm_path("llama"), &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_session_load(s, tm_path("llama"), &err), HONE_E_ARG);
    expect_state(s, 2, 0, u, 0, LEN, "a state of llama");
    hone_session_free(o);
    hone_model_close(m);
    hone_model_close(llama);
    tm_free(twin);
    hone_session_free(s);
    hone_session_free(narrow);
    hone_context_free(c);
}

/* A call that is refused or stopped leaves the states as they were. */
static int stop_after;
static bool stop(void *arg) { return stop_after-- <= 0; }
static void failures_change_nothing(void **state)
{
    float y[LEN * V];
    for (int i = 0; i < N_SUBJECTS; i++) {
        const struct subject *u = &subjects[i];
        hone_error err = { 0 };
        const float *last;
        hone_context *c = tm_context(NULL, 2);
        hone_session *s = tm_session(c, u->m, 0, 2, 6, HONE_CACHE_F16);
        hone_token batch[40];
        tm_run(s, 0, text(0), 13, y);
        tm_run(s, 1, text(1), 3, y);
        for (int t = 0; t < 40; t++)
            batch[t] = (hone_token){ text(t % 2)[(t % 2 ? 3 : 13) + t / 2], (t % 2 ? 3 : 13) + t / 2, t % 2, false };
        batch[39].id = V;
        assert_int_equal(hone_decode(s, batch, 40, NULL, &err), HONE_E_ARG);
        batch[39].id = 0, batch[39].pos++;
        assert_int_equal(hone_decode(s, batch, 40, NULL, &err), HONE_E_ARG);
        batch[39].pos--, batch[39].seq = 2;
        assert_int_equal(hone_decode(s, batch, 40, NULL, &err), HONE_E_ARG);
        batch[39].seq = 1;
        hone_session_set_abort(s, stop, NULL);
        for (int k = 0; k < 10; k++) {
            stop_after = k;
            if (hone_decode(s, batch, 40, NULL, &err) == HONE_OK) fail_msg("not stopped at %d", k);
            stop_after = k;
            assert_int_equal(hone_prefill(s, text(2), 30, &last, &err), HONE_E_INTERRUPTED);
        }
        expect_state(s, 2, 0, u, 0, 13, "stopped");
        expect_state(s, 2, 1, u, 1, 3, "stopped");
        hone_session_set_abort(s, NULL, NULL);
        tm_run(s, 0, text(0) + 13, LEN - 13, y);
        expect_logits(y, u, 0, 13, LEN - 13, "stopped before");
        hone_session_free(s);
        hone_context_free(c);
    }
}

/* Positions are a number here: no room is reserved for them, and none runs out. */
static void length_costs_nothing(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    const struct subject *u = &subjects[1];
    hone_session_memory a, b;
    hone_session *s = tm_session(c, u->m, 0, 1, 64, HONE_CACHE_F16),
                 *short_one = tm_session(c, u->m, 16, 1, 64, HONE_CACHE_F16);
    float *y = malloc(1000 * V * sizeof *y), *z = malloc(1000 * V * sizeof *z);
    int32_t ids[1000];
    assert_true(y && z);
    hone_session_get_memory(s, &a);
    hone_session_get_memory(short_one, &b);
    assert_int_equal(a.cache_bytes, b.cache_bytes);
    assert_true(a.cache_bytes >= u->n_state * sizeof(float));
    assert_true(hone_session_n_ctx(s) >= 1 << 24);
    for (int i = 0; i < 1000; i++) ids[i] = i % V;
    for (int i = 0; i < 6; i++) tm_run(s, 0, ids, 1000, y);
    assert_int_equal(hone_seq_length(s, 0), 6000); /* more than other caches have by default */
    hone_session_get_memory(s, &b);
    assert_int_equal(a.cache_bytes, b.cache_bytes);
    for (int i = 0; i < 1000 * V; i++) assert_true(isfinite(y[i]));
    free(y);
    free(z);
    hone_session_free(s);
    hone_session_free(short_one);
    hone_context_free(c);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void info(void **state)
{
    for (int i = 0; i < N_SUBJECTS; i++) {
        hone_model_info in;
        const rw_shape *s = subjects[i].shape;
        hone_model_get_info(subjects[i].m, &in);
        assert_string_equal(in.arch, s->arch);
        assert_int_equal(in.n_embd, s->E);
        assert_int_equal(in.n_layer, s->L);
        assert_int_equal(in.head_dim, s->N);
        assert_int_equal(in.n_head, s->E / s->N);
        assert_int_equal(in.n_head_kv, s->E / s->N);
        assert_int_equal(in.n_ff, s->F);
        assert_int_equal(in.n_vocab, s->V);
        assert_int_equal(in.state_bytes, rw_state_floats(s) * 4);
        assert_false(in.has_tokenizer);
    }
    tiny *t = tm_new(tm_llama);
    hone_model *m = tm_open(t);
    hone_model_info in;
    hone_model_get_info(m, &in);
    assert_int_equal(in.state_bytes, 0);
    hone_model_close(m);
    tm_free(t);
}

/* The same model from files that say it otherwise. */
static void spellings(void **state)
{
    for (int v = 0; v < 8; v++) {
        const rw_shape *s = v < 5 ? &rw_vec7 : &rw_vec6;
        tiny *m = rw_new(s), *plain = rw_new(s);
        double e, es, want[6 * 16], st[2048];
        float y[6 * 16];
        switch (v) {
        case 0: /* without what the first layer has no use for, or with shapes of no sense */
            tm_drop(m, "blk.0.time_mix_v0.weight");
            tm_drop(m, "blk.0.time_mix_v1.weight");
            tm_drop(m, "blk.0.time_mix_v2.weight");
            break;
        case 1:
            tm_find(m, "blk.0.time_mix_v1.weight")->ne[0] = 8, tm_find(m, "blk.0.time_mix_v1.weight")->ne[1] = 8;
            break;
        case 2:
            tm_find(m, "blk.1.time_mix_r_k.weight")->ne[0] = 8, tm_find(m, "blk.1.time_mix_r_k.weight")->ne[1] = 2,
                       tm_find(m, "blk.1.time_mix_r_k.weight")->n_dim = 2;
            break;
        case 3: tm_put_u32(m, "rwkv7.token_shift_count", 2), tm_drop_kv(m, "rwkv7.attention.head_count"); break;
        case 4: tm_put_u32(m, "rwkv7.attention.head_count", 77); break; /* ignored */
        case 5: tm_find(m, "blk.0.channel_mix_lerp_r.weight")->n_dim = 3; break;
        case 6: tm_put_u32(m, "rwkv6.rescale_every_n_layers", 0); break;
        default: tm_find(m, "blk.0.time_mix_lerp_x.weight")->n_dim = 4; break;
        }
        reference(plain, s, prompt, 6, want, st);
        hone_model *model = tm_open(m);
        hone_context *c = tm_context(NULL, 1);
        hone_session *one = tm_session(c, model, 0, 1, 0, HONE_CACHE_F16);
        tm_run(one, 0, prompt, 6, y);
        e = es = 0;
        for (int j = 0; j < 6 * 16; j++) e = fmax(e, fabs((double)y[j] - want[j]));
        if (!(e < 5e-6)) fail_msg("spelling %d: error %g", v, e);
        hone_session_free(one);
        hone_context_free(c);
        hone_model_close(model);
        tm_free(m);
        tm_free(plain);
    }
}

static void expect_refusal(tiny *m, hone_status want, const char *says, const char *also)
{
    hone_error err = { 0 };
    hone_model *model;
    const char *path = tm_path("refused.gguf");
    tm_save_raw(m, path);
    hone_status st = hone_model_open(&model, path, NULL, &err);
    if (st != want || model || !strstr(err.message, says) || !strstr(err.message, "refused.gguf") ||
        (also && !strstr(err.message, also)))
        fail_msg("expected %s with \"%s\", got %s: %s", hone_status_name(want), says, hone_status_name(st),
                 err.message);
    tm_free(m);
}
static tiny *without_kv(const rw_shape *s, const char *key)
{
    tiny *m = rw_new(s);
    tm_drop_kv(m, key);
    return m;
}
static tiny *with_u32(const rw_shape *s, const char *key, uint32_t v)
{
    tiny *m = rw_new(s);
    tm_put_u32(m, key, v);
    return m;
}
static tiny *with_shape(const rw_shape *s, const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    tiny *m = rw_new(s);
    tm_tensor *t = tm_find(m, name);
    assert_non_null(t);
    memcpy(t->ne, (uint64_t[4]){ a, b, c, d }, sizeof t->ne);
    t->n_dim = d > 1 ? 4 : c > 1 ? 3 : 2;
    t->n_bytes = a * b * c * d * 4;
    t->data = realloc(t->data, t->n_bytes);
    assert_non_null(t->data);
    memset(t->data, 0, t->n_bytes);
    return m;
}

static void refusals(void **state)
{
    static const char *const keys7[] = { "rwkv7.context_length", "rwkv7.embedding_length",
                                         "rwkv7.block_count",    "rwkv7.feed_forward_length",
                                         "rwkv7.wkv.head_size",  "rwkv7.attention.layer_norm_epsilon" };
    for (size_t i = 0; i < sizeof keys7 / sizeof *keys7; i++)
        expect_refusal(without_kv(&rw_vec7, keys7[i]), HONE_E_FORMAT, keys7[i], NULL);
    expect_refusal(with_u32(&rw_vec7, "rwkv7.wkv.head_size", 0), HONE_E_FORMAT, "wkv.head_size", NULL);
    expect_refusal(with_u32(&rw_vec7, "rwkv7.wkv.head_size", 3), HONE_E_FORMAT, "wkv.head_size", "16");
    expect_refusal(with_u32(&rw_vec7, "rwkv7.wkv.head_size", 32), HONE_E_FORMAT, "wkv.head_size", "16");
    expect_refusal(with_u32(&rw_vec6, "rwkv6.wkv.head_size", 5), HONE_E_FORMAT, "wkv.head_size", "16");
    expect_refusal(with_u32(&rw_vec7, "rwkv7.attention.decay_lora_rank", 5), HONE_E_FORMAT, "time_mix_w1", NULL);
    expect_refusal(with_u32(&rw_vec7, "rwkv7.attention.gate_lora_rank", 3), HONE_E_FORMAT, "time_mix_g1", NULL);
    expect_refusal(with_u32(&rw_vec7, "rwkv7.token_shift_count", 1), HONE_E_UNSUPPORTED, "token_shift_count", NULL);
    expect_refusal(with_u32(&rw_vec6, "rwkv6.time_mix_extra_dim", 5), HONE_E_FORMAT, "time_mix_w1", NULL);
    expect_refusal(with_u32(&rw_vec6, "rwkv6.time_decay_extra_dim", 9), HONE_E_FORMAT, "time_mix_decay_w1", NULL);
    /* every tensor is needed, but for layer 0's v */
    for (int which = 0; which < 2; which++) {
        const rw_shape *s = which ? &rw_vec6 : &rw_vec7;
        tiny *all = rw_new(s);
        for (int i = 0; i < all->n_t; i++) {
            const char *name = all->t[i].name;
            if (strstr(name, "blk.0.time_mix_v") && strlen(strrchr(name, '_')) == strlen("_v0.weight")) continue;
            if (!strncmp(name, "token_embd_norm", 15)) continue; /* may be folded into the table */
            tiny *m = rw_new(s);
            tm_drop(m, name);
            expect_refusal(m, HONE_E_FORMAT, name, NULL);
        }
        tm_free(all);
        tiny *half = rw_new(s);
        tm_drop(half, "token_embd_norm.weight");
        expect_refusal(half, HONE_E_FORMAT, "token_embd_norm", NULL);
        half = rw_new(s);
        tm_drop(half, "token_embd_norm.bias");
        expect_refusal(half, HONE_E_FORMAT, "token_embd_norm", NULL);
    }
    /* dimensions that are swapped, short or of another place */
    expect_refusal(with_shape(&rw_vec7, "blk.1.time_mix_w1.weight", 4, 16, 1, 1), HONE_E_FORMAT, "blk.1.time_mix_w1",
                   "{4, 16");
    expect_refusal(with_shape(&rw_vec7, "blk.0.time_mix_a2.weight", 16, 4, 1, 1), HONE_E_FORMAT, "blk.0.time_mix_a2",
                   NULL);
    expect_refusal(with_shape(&rw_vec7, "blk.0.time_mix_lerp_fused.weight", 16, 1, 1, 5), HONE_E_FORMAT,
                   "time_mix_lerp_fused", NULL);
    expect_refusal(with_shape(&rw_vec7, "blk.1.time_mix_key.weight", 16, 15, 1, 1), HONE_E_FORMAT, "time_mix_key",
                   NULL);
    expect_refusal(with_shape(&rw_vec7, "blk.1.time_mix_r_k.weight", 2, 8, 1, 1), HONE_E_FORMAT, "time_mix_r_k", NULL);
    expect_refusal(with_shape(&rw_vec7, "output.weight", 16, 15, 1, 1), HONE_E_FORMAT, "output.weight", NULL);
    expect_refusal(with_shape(&rw_vec6, "blk.0.time_mix_w2.weight", 16, 4, 5, 1), HONE_E_FORMAT, "time_mix_w2", NULL);
    expect_refusal(with_shape(&rw_vec6, "blk.0.time_mix_first.weight", 2, 8, 1, 1), HONE_E_FORMAT, "time_mix_first",
                   NULL);
    expect_refusal(with_shape(&rw_vec6, "blk.0.time_mix_lerp_fused.weight", 16, 1, 1, 6), HONE_E_FORMAT,
                   "time_mix_lerp_fused", NULL);
    /* hybrids have an attention's names around the same recurrence */
    static const char *const hybrids[] = { "arwkv7", "rwkv6qwen2" };
    for (int i = 0; i < 2; i++) {
        tiny *m = rw_new(i ? &rw_vec6 : &rw_vec7);
        tm_put_str(m, "general.architecture", hybrids[i]);
        expect_refusal(m, HONE_E_UNSUPPORTED, hybrids[i], NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_gives_published),
        cmocka_unit_test(engine_gives_published),
        cmocka_unit_test(shapes),
        cmocka_unit_test(types),
        cmocka_unit_test(extremes),
        cmocka_unit_test(level_threads_and_chunk_do_not_matter),
        cmocka_unit_test(company_does_not_matter),
        cmocka_unit_test(snapshots_and_forks),
        cmocka_unit_test(checkpoints),
        cmocka_unit_test(save_and_load),
        cmocka_unit_test(refused_states),
        cmocka_unit_test(states_that_are_none),
        cmocka_unit_test(failures_change_nothing),
        cmocka_unit_test(length_costs_nothing),
        cmocka_unit_test(info),
        cmocka_unit_test(spellings),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, make_subjects, drop_subjects);
}
