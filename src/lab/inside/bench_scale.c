/* Entries that measure one thing at several settings, in turns: kernel levels, threads,
 * sequences, layers, weight types. Owns which settings; models of other sizes and types
 * are synthesised into a temporary folder and removed. */
#define _GNU_SOURCE
#include "lab/bench/runner.h"

#include "model/model.h"
#include "lab/bench/bench.h"
#include "lab/machine/roof.h"
#include "lab/record/record.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"
#include "base/file.h"

#include <math.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MOST = 12 };

static int32_t or_default(int32_t asked, int32_t def) { return asked > 0 ? asked : def; }

static void free_all(hn_bunch *b, size_t k)
{
    for (size_t i = 0; i < k; i++) hn_bunch_free(&b[i]);
}

/* All settings must give the tokens of the first that gave any, from the same logits; what its company answers is
 * each sequence's own. */
static void same_tokens(hn_bunch *b, size_t k, const char *const *names)
{
    json_t *first = NULL;
    size_t of = 0;
    char what[120];
    for (size_t i = 0; i < k; i++) {
        json_t *now = json_array_get(b[i].all, 0);
        if (!json_object_get(now, "ids")) continue;
        if (!first) {
            first = now, of = i;
            continue;
        }
        json_t *mine = json_copy(json_object_get(now, "proof"));
        json_object_del(mine, "company");
        if (!json_equal(json_object_get(first, "ids"), json_object_get(now, "ids")))
            hn_invalid(&b[i].verdict, "%s generated other tokens than %s", names[i], names[of]);
        else if (hn_proof_differ(what, sizeof what, json_object_get(first, "proof"), mine))
            hn_invalid(&b[i].verdict, "%s: %s are not those of %s", names[i], what, names[of]);
        json_decref(mine);
    }
}

/* What they all answered, computed again: by the settings of the last that can be valid. */
static hone_status check_all(hn_runner *p, hn_bunch *b, size_t k, hone_status ran, hone_error *err)
{
    size_t of = k - 1;
    while (of > 0 && b[of].verdict.state == HN_INVALID) of--;
    const hn_verdict *v = &b[of].verdict;
    bool could = v->state != HN_INVALID;
    ran = hn_bunch_check(p, &b[of], ran, err);
    for (size_t i = 0; i < k && could; i++) {
        if (v->state == HN_INVALID) hn_invalid(&b[i].verdict, "%s", v->reason);
        else if (v->state == HN_UNCHECKED && b[i].verdict.state == HN_VALID) b[i].verdict = *v;
    }
    return ran;
}

/* ---- e2e.backend ------------------------------------------------------------------------------ */

hone_status hn_run_e2e_backend(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hn_runner p;
    hn_bunch b[HN_CPU_LEVELS] = { 0 };
    const char *names[HN_CPU_LEVELS] = { 0 };
    size_t k = 0;
    hn_verdict quality = { 0 };
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st == HONE_OK) st = hn_runner_quality(&p, &quality, err);
    if (st != HONE_OK) return st;
    int32_t n_prompt = or_default(r->set.n_prompt, 8), n_gen = or_default(r->set.n_gen, 8);
    for (int l = 0; l < HN_CPU_LEVELS; l++) {
        if (!hn_cpu_has((hn_cpu_level)l)) continue;
        names[k] = hn_cpu_level_name((hn_cpu_level)l);
        b[k] = (hn_bunch){ .mode = "_sample", .verdict = quality };
        hn_argv_add(&b[k].args, "--cpu=%s", names[k]);
        hn_bunch_ask(&b[k++], n_prompt, n_gen, 0);
    }
    if (k < 2)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "e2e.backend compares kernel levels, and this machine has only %s",
                       names[0]);
    hone_status ran = hn_bunch_measure(&p, b, k, hn_runner_samples(&p, 6), err);
    same_tokens(b, k, names);
    ran = check_all(&p, b, k, ran, err);
    for (size_t i = 0; i < k && st == HONE_OK; i++)
        for (int prefill = 0; prefill < 2 && st == HONE_OK && hn_bunch_to_record(&b[i]); prefill++) {
            char variant[48];
            snprintf(variant, sizeof variant, "%s, %s", names[i], prefill ? "prefill" : "decode");
            const hn_runner_record rec = { .variant = variant,
                                           .unit = "tok/s",
                                           .better = 1,
                                           .path = prefill ? "prefill_tok_s" : "decode_tok_s",
                                           .decode = !prefill,
                                           .raw = !prefill,
                                           .config = hn_runner_config(&p, n_prompt, n_gen, "greedy"),
                                           .memory = hn_runner_memory(&b[i]) };
            st = hn_runner_add(&p, &b[i], &rec, err);
        }
    for (size_t i = 1; i < k && st == HONE_OK; i++) { /* round by round, as they were measured in turns */
        size_t n = json_array_size(b[i].all) < json_array_size(b[0].all) ? json_array_size(b[i].all)
                                                                         : json_array_size(b[0].all);
        double *x = calloc(json_array_size(b[i].all) + 1, sizeof *x);
        char variant[48], of[2][48];
        snprintf(variant, sizeof variant, "%s / %s, decode", names[i], names[0]);
        for (int j = 0; j < 2; j++) snprintf(of[j], sizeof of[j], "%s, decode", names[j ? 0 : i]);
        for (size_t j = 0; x && j < json_array_size(b[i].all); j++)
            x[j] = j < n ? hn_result_number(json_array_get(b[i].all, j), "decode_tok_s") /
                               hn_result_number(json_array_get(b[0].all, j), "decode_tok_s")
                         : NAN;
        const hn_runner_record rec = { .variant = variant,
                                       .unit = "x",
                                       .better = 1,
                                       .x = x,
                                       .ratio = { of[0], of[1] },
                                       .config = hn_runner_config(&p, n_prompt, n_gen, "greedy") };
        if (x && n) st = hn_runner_add(&p, &b[i], &rec, err);
        else json_decref(rec.config);
        free(x);
    }
    free_all(b, k);
    return st == HONE_OK ? ran : st;
}

/* ---- e2e.scale.threads ---------------------------------------------------------------------------- */

hone_status hn_run_scale_threads(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hn_runner p;
    hn_bunch b[MOST] = { 0 };
    char text[MOST][24];
    const char *names[MOST] = { 0 };
    size_t k = 0;
    hn_verdict quality = { 0 };
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st == HONE_OK) st = hn_runner_quality(&p, &quality, err);
    if (st != HONE_OK) return st;
    int32_t n_prompt = or_default(r->set.n_prompt, 64), n_gen = or_default(r->set.n_gen, 24), cores = hn_cpu_count(),
            last = 0;
    for (int32_t n = 1; k < MOST && last != cores; n *= 2) { /* 1, 2, 4 … and all */
        last = n < cores ? n : cores;
        snprintf(text[k], sizeof text[k], "%d thread%s", last, last == 1 ? "" : "s");
        names[k] = text[k];
        b[k] = (hn_bunch){ .mode = "_sample", .verdict = quality };
        hn_argv_add(&b[k].args, "--threads=%d", last);
        hn_argv_add(&b[k].args, "--threads-batch=%d", last);
        hn_bunch_ask(&b[k++], n_prompt, n_gen, 0);
    }
    hone_status ran = hn_bunch_measure(&p, b, k, hn_runner_samples(&p, 6), err);
    same_tokens(b, k, names);
    ran = check_all(&p, b, k, ran, err);
    for (size_t i = 0; i < k; i++)
        for (int prefill = 0; prefill < 2 && st == HONE_OK && hn_bunch_to_record(&b[i]); prefill++) {
            char variant[48];
            snprintf(variant, sizeof variant, "%s, %s", names[i], prefill ? "prefill" : "decode");
            const hn_runner_record rec = { .variant = variant,
                                           .path = prefill ? "prefill_tok_s" : "decode_tok_s",
                                           .decode = !prefill,
                                           .raw = !prefill,
                                           .config = hn_runner_config(&p, n_prompt, n_gen, "greedy"),
                                           .memory = hn_runner_memory(&b[i]) };
            st = hn_runner_add(&p, &b[i], &rec, err);
        }
    free_all(b, k);
    return st == HONE_OK ? ran : st;
}

/* ---- e2e.scale.batch ------------------------------------------------------------------------------- */

/* What `most` sequences answer with nobody beside them, which one process is asked: *said. */
static hone_status ask_alone(json_t **said, hn_runner *p, const hn_bunch *like, int32_t most, hone_error *err)
{
    hn_bunch alone = { .mode = "_alone" };
    snprintf(alone.word, sizeof alone.word, "%d", most);
    hn_argv_extend(&alone.args, hn_argv_words(&like->args));
    hone_status st = hn_bunch_once(p, &alone, said, err);
    hn_bunch_free(&alone);
    return st;
}

/* Every sequence of every sample answered that, however many samples there are. */
static void each_alone(hn_bunch *b, size_t k, json_t *said)
{
    json_t *each = json_object_get(said, "each"), *sample;
    const char *bad = json_string_value(json_object_get(said, "invalid_reason"));
    size_t i;
    for (size_t s = 0; s < k; s++) {
        int32_t n = (int32_t)strtol(b[s].word, NULL, 10);
        if (bad) hn_invalid(&b[s].verdict, "the sequences alone: %.480s", bad);
        json_array_foreach(b[s].all, i, sample) for (int32_t q = 0; q < n && !bad; q++)
        {
            json_t *is = json_array_get(json_object_get(sample, "each"), (size_t)q);
            if (!is || !json_equal(is, json_array_get(each, (size_t)q)))
                hn_invalid(&b[s].verdict,
                           "sample %zu: sequence %d of %d answered otherwise among the others than alone", i + 1, q, n);
        }
    }
}

hone_status hn_run_scale_batch(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const int32_t sizes[] = { 1, 4, 8, 16 };
    static const char *const names[] = { "1 sequence", "4 sequences", "8 sequences", "16 sequences" };
    enum { K = 4 };
    hn_runner p;
    hn_bunch b[K] = { 0 };
    hn_verdict quality = { 0 };
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st == HONE_OK) st = hn_runner_quality(&p, &quality, err);
    if (st != HONE_OK) return st;
    int32_t n_prompt = or_default(r->set.n_prompt, 32), n_gen = or_default(r->set.n_gen, 16);
    if (n_gen < 2) return HN_FAIL(err, HONE_E_ARG, "e2e.scale.batch: -n %d, expected at least 2 tokens", n_gen);
    for (size_t k = 0; k < K; k++) {
        b[k] = (hn_bunch){ .mode = "_batch", .verdict = quality };
        snprintf(b[k].word, sizeof b[k].word, "%d", sizes[k]);
        hn_argv_add(&b[k].args, "--n-prompt=%d", n_prompt);
        hn_argv_add(&b[k].args, "--n-gen=%d", n_gen);
    }
    json_t *alone = NULL; /* first: what is measured until somebody stops it has been compared */
    hone_status ran = ask_alone(&alone, &p, &b[0], sizes[K - 1], err);
    if (ran == HONE_OK) ran = hn_bunch_measure(&p, b, K, hn_runner_samples(&p, 6), err);
    same_tokens(b, K, names); /* of sequence 0, whose prompt is the same in all */
    each_alone(b, K, alone);
    json_decref(alone);
    for (size_t i = 0; i < K; i++)
        for (int prefill = 0; prefill < 2 && st == HONE_OK && hn_bunch_to_record(&b[i]); prefill++) {
            json_t *config = hn_runner_config(&p, n_prompt, n_gen, "greedy");
            json_object_set_new(config, "sequences", json_integer(sizes[i]));
            char variant[48];
            snprintf(variant, sizeof variant, "%s, %s", names[i], prefill ? "prefill" : "decode");
            const hn_runner_record rec = { .variant = variant,
                                           .path = prefill ? "prefill_tok_s" : "decode_tok_s",
                                           .decode = i == 0 && !prefill,
                                           .raw = !prefill,
                                           .config = config,
                                           .memory = hn_runner_memory(&b[i]) };
            st = hn_runner_add(&p, &b[i], &rec, err);
        }
    free_all(b, K);
    return st == HONE_OK ? ran : st;
}

/* ---- models of the same shape ------------------------------------------------------------------------ */

typedef struct shape {
    json_t *json;
    uint64_t rest, per_layer;
} shape; /* weights outside of layers, in one */

/* What hone synth needs to make such a model again. */
static hone_status shape_of(shape *s, hn_bench_run *r, hone_error *err)
{
    hone_model *m;
    hone_file *f;
    hone_status st = hn_bench_model(r, &m, err);
    if (st != HONE_OK) return st;
    const hone_model_info *i = &r->info;
    const hn_hparams *hp = &m->hp;
    if (!hn_has_positions(m)) {
        bool v7 = strcmp(i->arch, "rwkv7") == 0;
        *s = (shape){ .json = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:i}", "arch", i->arch, "n_layer",
                                        (int)i->n_layer, "n_embd", (int)i->n_embd, "head_dim", (int)i->head_dim, "n_ff",
                                        (int)i->n_ff, "n_vocab", (int)i->n_vocab, "norm_eps", (double)hp->ln_eps,
                                        "rank_decay", (int)hp->rank_decay) };
        json_t *more =
            v7 ? json_pack("{s:i, s:i, s:i}", "rank_iclr", (int)hp->rank_iclr, "rank_value", (int)hp->rank_value,
                           "rank_gate", (int)hp->rank_gate)
               : json_pack("{s:i, s:i}", "rank_mix", (int)hp->rank_mix, "rescale_every", (int)hp->rescale_every);
        json_object_update(s->json, more);
        json_decref(more);
    } else
        *s = (shape){ .json = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "arch", i->arch, "n_layer",
                                        (int)i->n_layer, "n_embd", (int)i->n_embd, "n_head", (int)i->n_head,
                                        "n_head_kv", (int)i->n_head_kv, "head_dim", (int)i->head_dim, "n_ff",
                                        (int)i->n_ff, "n_vocab", (int)i->n_vocab, "n_ctx_train", (int)i->n_ctx_train) };
    uint64_t params = i->n_params;
    bool recurrent = !hn_has_positions(m);
    hn_bench_model_close(r);
    if ((st = hone_file_open(&f, r->set.model, err)) != HONE_OK) {
        json_decref(s->json);
        return st;
    }
    bool untied = hone_file_find_tensor(f, "output.weight") >= 0;
    if (!recurrent) json_object_set_new(s->json, "tied", json_boolean(!untied));
    uint64_t in_layers = 0;
    for (uint64_t t = 0; t < hone_file_n_tensors(f); t++) {
        hone_tensor_info info;
        hone_file_tensor(f, t, &info);
        if (info.name.len > 4 && memcmp(info.name.ptr, "blk.", 4) == 0)
            in_layers += info.ne[0] * info.ne[1] * info.ne[2] * info.ne[3];
    }
    hone_file_close(f);
    s->per_layer = in_layers / (uint64_t)json_integer_value(json_object_get(s->json, "n_layer"));
    s->rest = params - in_layers;
    return HONE_OK;
}

typedef struct folder {
    char path[512];
} folder;

static hone_status folder_new(folder *f, hone_error *err)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(f->path, sizeof f->path, "%.400s/hone-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(f->path) ? HONE_OK
                            : HN_FAIL(err, HONE_E_IO, "a temporary folder %s: %s", HN_ESC(f->path, strlen(f->path)),
                                      "cannot be made (TMPDIR says where)");
}

static void file_in(char *dst, size_t cap, const folder *f, const char *name)
{
    snprintf(dst, cap, "%.500s/%.40s", f->path, name);
}

/* Synthesises a model of the shape with n_layer layers in weights of `type`; file in the folder. */
static hone_status make_model(const folder *f, const shape *s, int32_t n_layer, const char *type, char *file,
                              size_t cap, bool (*stop)(void *), hone_error *err)
{
    char config[600];
    struct statvfs fs;
    double need = (double)(s->rest + s->per_layer * (uint64_t)n_layer) * 2.1; /* bytes, were it F16 */
    file_in(config, sizeof config, f, "shape.json");
    file_in(file, cap, f, "model.gguf");
    if (statvfs(f->path, &fs) == 0 && need > 0.8 * (double)fs.f_bavail * (double)fs.f_frsize)
        return HN_FAIL(err, HONE_E_IO, "%s: too little room for a model of %.1f GB (TMPDIR says where)",
                       HN_ESC(f->path, strlen(f->path)), need / 1e9);
    json_object_set_new(s->json, "n_layer", json_integer(n_layer));
    char *text = hn_json_text(s->json, JSON_COMPACT);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "the shape of a model as text");
    hone_status written = hn_file_replace(config, text, strlen(text), err);
    free(text);
    if (written != HONE_OK) return written;
    const hone_synth_params p = { .config_path = config, .type = type, .seed = 1 };
    const hone_progress pr = { .abort_fn = stop };
    hone_status st = hone_synth(&p, file, &pr, err);
    unlink(config);
    return st;
}

/* Measures the model in the folder; its records name it, not the one of -m. */
static hone_status measure_made(hn_runner *p, const char *file, const char *name, json_t *config, int32_t n_prompt,
                                int32_t n_gen, hone_error *err)
{
    hn_bench_run *r = p->r;
    hone_model *m;
    hone_model_info info;
    const char *model = r->set.model;
    json_t *of_model = r->model_json, *quality = r->quality;
    bool packed = r->packed;
    const hone_model_params mp = { .packed = "off" };
    hone_status st = hone_model_open(&m, file, &mp, err);
    if (st != HONE_OK) {
        json_decref(config);
        return st;
    }
    hone_model_get_info(m, &info);
    p->bytes_per_token = (double)hn_bytes_per_token(&info);
    r->model_json = hn_bench_model_json(file, &info);
    hone_model_close(m);
    r->set.model = file;
    r->packed = false;
    r->quality = NULL;
    hn_bunch b = { .mode = "_sample" };
    snprintf(b.verdict.reason, sizeof b.verdict.reason, "random weights: there is no answer to check");
    hn_argv_add(&b.args, "--model=%s", file);
    hn_argv_add(&b.args, "--packed=off");
    hn_bunch_ask(&b, n_prompt, n_gen, 0);
    hone_status ran = hn_bunch_measure(p, &b, 1, hn_runner_samples(p, 6), err);
    for (int k = 0; k < 3 && st == HONE_OK && hn_bunch_to_record(&b); k++) {
        static const struct {
            const char *variant, *unit, *path;
            int better;
        } rows[] = { { "decode", "tok/s", "decode_tok_s", 1 },
                     { "prefill", "tok/s", "prefill_tok_s", 1 },
                     { "peak resident", "MB", "hwm_mb", -1 } };
        json_t *c = hn_runner_config(p, n_prompt, n_gen, "greedy");
        char variant[64];
        snprintf(variant, sizeof variant, "%s, %s", name, rows[k].variant);
        json_object_update(c, config);
        const hn_runner_record rec = { .variant = variant,
                                       .unit = rows[k].unit,
                                       .better = rows[k].better,
                                       .path = rows[k].path,
                                       .decode = k == 0,
                                       .raw = k == 0,
                                       .config = c,
                                       .memory = hn_runner_memory(&b) };
        st = hn_runner_add(p, &b, &rec, err);
    }
    hn_bunch_free(&b);
    json_decref(config);
    json_decref(r->model_json);
    r->set.model = model;
    r->model_json = of_model;
    r->quality = quality;
    r->packed = packed;
    return st == HONE_OK ? ran : st;
}

typedef struct made {
    int32_t n_layer;
    const char *type;
} made;

static hone_status measure_shapes(hn_bench_run *r, const hn_bench_entry *e, const made *all, size_t n, hone_error *err)
{
    hn_runner p;
    shape s;
    folder f;
    char file[600];
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st == HONE_OK) st = shape_of(&s, r, err);
    if (st != HONE_OK) return st;
    if ((st = folder_new(&f, err)) != HONE_OK) {
        json_decref(s.json);
        return st;
    }
    const char *own = json_string_value(json_object_get(r->model_json, "type"));
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        int32_t layers = all[i].n_layer > 0 ? all[i].n_layer : p.n_layer;
        const char *type = all[i].type ? all[i].type : own;
        double bytes = 2.1 * (double)(s.rest + s.per_layer * (uint64_t)layers);
        if (bytes > 0.8 * (double)hn_memory_available()) {
            st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: a model of %.1f GB does not fit the memory that is free", e->id,
                         bytes / 1e9);
            break;
        }
        st = make_model(&f, &s, layers, type, file, sizeof file, r->set.stop, err);
        if (st == HONE_OK) {
            json_t *config = json_pack("{s:i, s:s}", "layers", (int)layers, "type", type);
            char name[40];
            if (all[i].type) snprintf(name, sizeof name, "%.30s", type);
            else snprintf(name, sizeof name, "%d layer%s", layers, layers == 1 ? "" : "s");
            st = measure_made(&p, file, name, config, or_default(r->set.n_prompt, 64), or_default(r->set.n_gen, 24),
                              err);
        }
        file_in(file, sizeof file, &f, "model.gguf");
        unlink(file);
        if (st == HONE_E_ARG) { /* a type or shape that synth cannot make */
            char why[800];
            snprintf(why, sizeof why, "%.700s", err ? err->message : "?");
            st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: hone synth makes no model like this one: %s", e->id, why);
        }
    }
    rmdir(f.path);
    json_decref(s.json);
    return st;
}

hone_status hn_run_scale_size(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hn_runner p;
    hone_status st = hn_runner_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    const made all[] = { { p.n_layer > 4 ? p.n_layer / 4 : 1, NULL },
                         { p.n_layer > 2 ? p.n_layer / 2 : 1, NULL },
                         { p.n_layer, NULL } };
    return measure_shapes(r, e, all, 3, err);
}

hone_status hn_run_scale_quant(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const made all[] = { { 0, "Q4_0" }, { 0, "Q4_K_M" }, { 0, "Q5_K_M" },
                                { 0, "Q6_K" }, { 0, "Q8_0" },   { 0, "F16" } };
    static const made few[] = { { 0, "Q4_K_M" }, { 0, "Q8_0" } };
    return r->set.quick ? measure_shapes(r, e, few, 2, err) : measure_shapes(r, e, all, 6, err);
}
