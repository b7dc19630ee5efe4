/* Entries measured in fresh processes: how such a process is started, judged, voided and
 * made a record; loading, memory and the quality hash. Refuses to know what the processes
 * do inside (cli/bench_child.c, sample.h). */
#define _GNU_SOURCE
#include "lab/bench_process.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_REPEATS = 2 };              /* of one sample that was voided */
static const double most_voided = 0.5;  /* of all samples, and one */

/* ---- one entry ----------------------------------------------------------------------------- */

hone_status hn_proc_begin(hn_proc *p, hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hone_model *m;
    *p = (hn_proc){ .r = r, .e = e, .quick = r->set.quick };
    hone_status st = hn_bench_model(r, &m, err);
    if (st != HONE_OK) return st;
    snprintf(p->packed, sizeof p->packed, "%s", r->info.packed_path ? r->info.packed_path : "");
    p->bytes_per_token = (double)hn_bytes_per_token(&r->info);
    p->n_bytes = r->info.n_bytes;
    p->fingerprint = r->info.fingerprint;
    p->n_ctx_train = r->info.n_ctx_train;
    p->n_layer = r->info.n_layer;
    p->has_tokenizer = r->info.has_tokenizer;
    p->state_bytes = r->info.state_bytes;
    hn_bench_model_close(r);
    return HONE_OK;
}

int32_t hn_proc_samples(const hn_proc *p, int32_t most)
{
    return p->r->free_samples && p->r->set.samples > most ? most : p->r->set.samples;
}

void hn_bunch_arg(hn_bunch *b, const char *fmt, ...)
{
    size_t i = 0;
    while (i < sizeof b->args / sizeof *b->args - 1 && b->args[i][0]) i++;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->args[i], sizeof b->args[i], fmt, ap);
    va_end(ap);
}

void hn_bunch_free(hn_bunch *b)
{
    json_decref(b->all);
    json_decref(b->voided);
    b->all = b->voided = NULL;
}

/* ---- processes -------------------------------------------------------------------------------- */

/* What a process that refused means for the one who asked. */
static hone_status refused(const hn_child *c, const char *id, hone_error *err)
{
    switch (c->exit_code) {
    case 2: return HN_FAIL(err, HONE_E_ARG, "%s: the measured process refused: %s", id, c->message);
    case 3: return HN_FAIL(err, HONE_E_FORMAT, "%s: the measured process refused the model: %s", id, c->message);
    case 4: return HN_FAIL(err, HONE_E_NOMEM, "%s: the measured process ran out of memory: %s", id, c->message);
    case 6:
    case 130: return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: interrupted", id);
    default: return HONE_OK;
    }
}

/* *out: what it printed, or NULL with an invalid verdict. */
static hone_status run_child(hn_proc *p, hn_bunch *b, json_t **out, hone_error *err)
{
    char now[32];
    const char *argv[HN_PROC_ARGS + 16] = { "hone", "bench", b->mode };
    size_t n = 3;
    *out = NULL;
    if (b->word[0]) argv[n++] = b->word;
    for (const char *const *a = p->r->set.child_args; a && *a && n < HN_PROC_ARGS; a++) argv[n++] = *a;
    for (size_t i = 0; i < sizeof b->args / sizeof *b->args && b->args[i][0]; i++) argv[n++] = b->args[i];
    if (hn_bench_step(p->r, p->todo ? (double)p->done / p->todo : 0)) return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", p->e->id);
    snprintf(now, sizeof now, "%" PRIu64, hn_clock_ns());
    argv[n++] = now; /* last: the time of the spawn */
    argv[n] = NULL;
    hn_child c;
    hone_status st = hn_child_run(&c, argv, p->r->set.stop, err);
    if (st != HONE_OK) return st;
    p->done++;
    if ((st = refused(&c, p->e->id, err)) != HONE_OK) {
        hn_child_free(&c);
        return st;
    }
    if (!c.result) {
        char why[640];
        hn_child_why(&c, why, sizeof why);
        hn_invalid(&b->verdict, "%.480s", why);
    } else {
        json_t *anon = json_object_get(c.result, "peak_anon_mb");
        double seen = (double)c.peak_anon / 1e6; /* from outside */
        if (anon && !(json_number_value(anon) >= seen)) json_object_set_new(c.result, "peak_anon_mb", hn_lab_num(seen));
        *out = json_incref(c.result);
    }
    hn_child_free(&c);
    return HONE_OK;
}

static void drop_files(hn_proc *p, hn_bunch *b)
{
    const char *const files[] = { p->r->set.model, p->packed[0] ? p->packed : NULL };
    for (size_t i = 0; i < 2; i++) {
        if (!files[i]) continue;
        double left = hn_os_drop_file(files[i]);
        if (!(left >= 0 && left < 0.01)) b->unverified = true;
    }
}

/* Loads are those of a file in memory, unless it would not stay. */
static void read_through(const hn_proc *p, const char *path)
{
    enum { PIECE = 1 << 20 };
    struct stat sb;
    if (stat(path, &sb) != 0 || (uint64_t)sb.st_size > hn_memory_available()) return;
    FILE *f = fopen(path, "rbe");
    char *buf = malloc(PIECE);
    while (f && buf && !(p->r->set.stop && p->r->set.stop(NULL)) && fread(buf, 1, PIECE, f) == PIECE) {}
    free(buf);
    if (f) fclose(f);
}

double hn_result_number(json_t *o, const char *path)
{
    char key[64];
    while (o) {
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        o = json_is_array(o) ? json_array_get(o, key[0] == '-' ? json_array_size(o) - 1 : strtoul(key, NULL, 10)) : json_object_get(o, key);
        if (!path[n]) return json_is_number(o) ? json_number_value(o) : NAN;
        path += n + 1;
    }
    return NAN;
}

static double usual_mhz(const hn_bunch *b)
{
    double x[64];
    size_t i, n = 0;
    json_t *s;
    hn_stats st;
    json_array_foreach(b->all, i, s) if (n < 64 && isfinite(x[n] = hn_result_number(s, "clock_mhz"))) n++;
    return n && hn_stats_of(&st, x, n, NULL) == HONE_OK ? st.median : NAN;
}

static void judge_sample(hn_bunch *b, json_t *s)
{
    const char *why = json_string_value(json_object_get(s, "invalid_reason"));
    size_t i, n = json_array_size(b->all);
    json_t *request, *first = json_object_get(json_array_get(b->all, 0), "ids"), *ids = json_object_get(s, "ids");
    if (why) hn_invalid(&b->verdict, "sample %zu: %s", n, why);
    json_array_foreach(json_object_get(s, "requests"), i, request) {
        const char *reason = json_string_value(json_object_get(request, "invalid_reason"));
        if (reason) hn_invalid(&b->verdict, "sample %zu, request %zu: %s", n, i + 1, reason);
        if (!first) first = json_object_get(json_array_get(json_object_get(json_array_get(b->all, 0), "requests"), 0), "ids");
        if (!json_equal(first, json_object_get(request, "ids")))
            hn_invalid(&b->verdict, "sample %zu, request %zu generated other tokens than the first: the engine is not deterministic", n, i + 1);
    }
    if (ids && !json_equal(first, ids)) hn_invalid(&b->verdict, "sample %zu generated other tokens than sample 1: the engine is not deterministic", n);
}

/* One sample that counts, measured again when the machine, not the number, gives a reason. */
static hone_status take_sample(hn_proc *p, hn_bunch *b, hone_error *err)
{
    for (int tries = 0;; tries++) {
        json_t *s;
        char why[200] = "";
        if (b->drop) drop_files(p, b);
        hone_status st = run_child(p, b, &s, err);
        if (st != HONE_OK) return st;
        if (!s) return HONE_OK; /* a crash is a verdict */
        bool bad = hn_evidence_voids(s, b->from_disk, usual_mhz(b), why, sizeof why);
        if (bad && tries < MOST_REPEATS && (double)json_array_size(b->voided) < most_voided * b->wanted + 1) {
            json_array_append_new(b->voided, json_pack("{s:o, s:o}", "reason", hn_lab_str(why), "result", s));
            continue;
        }
        if (bad) {
            b->n_kept++;
            snprintf(b->kept, sizeof b->kept, "%s", why);
        }
        json_array_append_new(b->all, s);
        judge_sample(b, s);
        return HONE_OK;
    }
}

static void shuffle(size_t *order, size_t k, uint64_t seed, uint64_t round)
{
    for (size_t i = 0; i < k; i++) order[i] = i;
    for (size_t i = k; i > 1; i--) {
        size_t j = (size_t)(hn_rand64(seed ^ 0x70726F63u, round * 64 + i) % i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

hone_status hn_bunch_measure(hn_proc *p, hn_bunch *b, size_t k, int32_t n, hone_error *err)
{
    const hn_bench_settings *set = &p->r->set;
    int32_t warmups = p->r->free_warmups ? 1 : set->warmups;
    size_t order[16];
    p->todo = (int32_t)k * (warmups + n);
    p->done = 0;
    for (size_t i = 0; i < k; i++) {
        b[i].wanted = n;
        if (!b[i].all) b[i].all = json_array();
        if (!b[i].voided) b[i].voided = json_array();
        if (!b[i].drop && i == 0) {
            read_through(p, set->model);
            if (p->packed[0]) read_through(p, p->packed);
        }
        uint64_t t0 = hn_clock_ns();
        for (int32_t w = 0; !b[i].drop && (w < warmups || (double)(hn_clock_ns() - t0) * 1e-9 < set->warm_up_s); w++) {
            json_t *unused;
            hone_status st = run_child(p, &b[i], &unused, err);
            json_decref(unused);
            if (st != HONE_OK) return st;
            if (b[i].verdict.state == HN_INVALID) break; /* it crashes: no need to see it ten times */
            b[i].warmups++;
        }
    }
    uint64_t t0 = hn_clock_ns();
    for (int32_t round = 0; round < n || (double)(hn_clock_ns() - t0) * 1e-9 < set->measure_s; round++) {
        shuffle(order, k, set->seed, (uint64_t)round);
        bool any = false;
        for (size_t i = 0; i < k; i++) {
            hn_bunch *one = &b[order[i]];
            if (one->verdict.state == HN_INVALID && json_array_size(one->all) == 0) continue;
            any = true;
            hone_status st = take_sample(p, one, err);
            if (st != HONE_OK) return st;
        }
        if (!any) break;
    }
    return HONE_OK;
}

/* ---- records ------------------------------------------------------------------------------------ */

json_t *hn_proc_config(const hn_proc *p, int32_t n_prompt, int32_t n_gen, const char *sampler)
{
    const hn_bench_settings *s = &p->r->set;
    json_t *o = json_object();
    if (n_prompt >= 0) json_object_set_new(o, "n_prompt", json_integer(n_prompt));
    if (n_gen >= 0) json_object_set_new(o, "n_gen", json_integer(n_gen));
    if (n_gen >= 0) json_object_set_new(o, "depth", json_integer(0));
    json_object_set_new(o, "chunk", json_integer(s->chunk));
    json_object_set_new(o, "kv", json_string(s->kv));
    json_object_set_new(o, "sampler", sampler ? json_string(sampler) : json_null());
    return o;
}

static double median_of(json_t *all, const char *path)
{
    double x[1024];
    size_t i, n = 0;
    json_t *s;
    hn_stats st;
    json_array_foreach(all, i, s) if (n < 1024 && isfinite(x[n] = hn_result_number(s, path))) n++;
    return n && hn_stats_of(&st, x, n, NULL) == HONE_OK ? st.median : NAN;
}

json_t *hn_proc_memory(const hn_bunch *b)
{
    static const char *const keys[] = { "peak_anon_mb", "hwm_mb", "mapped_mb", "model_resident_mb", "engine.cache_mb", "engine.scratch_mb", "engine.logits_mb" };
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *dot = strchr(keys[i], '.');
        json_object_set_new(o, dot ? dot + 1 : keys[i], hn_lab_num(median_of(b->all, keys[i])));
    }
    return o;
}

json_t *hn_proc_stages(const hn_bunch *b)
{
    json_t *s = json_object_get(json_array_get(b->all, json_array_size(b->all) - 1), "stages");
    return json_pack("{s:o}", "stages", s ? json_incref(s) : json_null());
}

bool hn_proc_some(const hn_bunch *b) { return json_array_size(b->all) > 0; }

static void note_bunch(hn_bench_result *res, const hn_bunch *b, size_t n)
{
    size_t again = json_array_size(b->voided);
    const char *first = json_string_value(json_object_get(json_array_get(b->voided, 0), "reason"));
    if (again) hn_bench_note(res, "%zu sample%s measured again: %s%s", again, again == 1 ? " was" : "s were", first ? first : "?", again > 1 ? ", …" : "");
    if (b->n_kept) hn_bench_note(res, "%d of %zu samples kept although %s: it would not stop", b->n_kept, n, b->kept);
    if ((int32_t)json_array_size(b->all) < b->wanted && b->verdict.state != HN_INVALID)
        hn_bench_note(res, "interrupted after %zu of %d", json_array_size(b->all), b->wanted);
    if (b->unverified) hn_bench_note(res, "the model's files could not be dropped from memory, or the system does not show it: cold-unverified");
}

hone_status hn_proc_add(hn_proc *p, hn_bunch *b, const hn_proc_record *rec, hone_error *err)
{
    size_t n = json_array_size(b->all), used = 0, i;
    double *x = calloc(n + 1, sizeof *x), scale = rec->scale != 0 ? rec->scale : 1;
    json_t *s, *config = rec->config ? rec->config : json_object();
    if (!x) {
        json_decref(config);
        json_decref(rec->extra);
        json_decref(rec->memory);
        return HN_FAIL(err, HONE_E_NOMEM, "%zu samples", n);
    }
    json_array_foreach(b->all, i, s) {
        double v = rec->path ? hn_result_number(s, rec->path) : rec->x[i];
        if (isfinite(v)) x[used++] = scale * v;
    }
    s = json_array_get(b->all, 0);
    json_t *level = json_object_get(json_object_get(s, "engine"), "cpu");
    double threads = hn_result_number(s, "engine.threads");
    if (level) json_object_set(config, "cpu", level);
    hn_bench_result res = { .variant = rec->variant, .unit = rec->unit, .better = rec->better, .config = config, .samples = x, .n = used, .zero_ok = rec->zero_ok,
                            .warmups = b->warmups, .threads = threads > 0 ? (int32_t)threads : 0, .verdict = b->verdict, .extra = rec->extra,
                            .memory = rec->memory, .voided = (int32_t)json_array_size(b->voided) };
    if (rec->decode) { /* a cache may hold half of a small model */
        res.bytes = p->bytes_per_token;
        res.rotated_bytes = p->bytes_per_token > 2 * (double)hn_cache_bytes() ? p->bytes_per_token : 0;
    }
    if (!res.extra) res.extra = json_object();
    if (rec->raw && json_array_size(b->voided)) json_object_set(res.extra, "voided", b->voided);
    if (rec->raw) res.full_samples = json_incref(b->all);
    if (p->r->quality && b->verdict.state != HN_UNCHECKED) res.quality = json_string_value(json_object_get(p->r->quality, "hash"));
    note_bunch(&res, b, n);
    if (rec->note) hn_bench_note(&res, "%s", rec->note);
    hone_status st = hn_bench_add(p->r, p->e, &res, err);
    free(x);
    return st;
}

hone_status hn_proc_quality(hn_proc *p, hn_verdict *v, hone_error *err)
{
    if (!p->r->quality) {
        hn_bunch q = { .mode = "_quality" };
        hone_status st = run_child(p, &q, &p->r->quality, err);
        if (st != HONE_OK) return st;
        if (!p->r->quality) {
            hn_invalid(v, "quality run: %.480s", q.verdict.reason);
            return HONE_OK;
        }
    }
    const char *why = json_string_value(json_object_get(p->r->quality, "reason"));
    if (!json_is_true(json_object_get(p->r->quality, "valid"))) hn_invalid(v, "%s", why ? why : "the quality run gave no verdict");
    else if (v->state == HN_UNCHECKED) v->state = HN_VALID;
    return HONE_OK;
}

/* ---- loading -------------------------------------------------------------------------------------- */

static hone_status run_load(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hn_proc p;
    char path[40];
    hone_status st = hn_proc_begin(&p, r, e, err);
    snprintf(path, sizeof path, "%s_ms", strchr(e->id, '.') + 1);
    for (int cold = 0; cold < 2 && st == HONE_OK; cold++) {
        hn_bunch b = { .mode = "_load", .from_disk = cold, .drop = cold };
        snprintf(b.verdict.reason, sizeof b.verdict.reason, "loading has no output to compare");
        hone_status ran = hn_bunch_measure(&p, &b, 1, hn_proc_samples(&p, 1000), err);
        json_t *extra = json_object();
        for (const char *const *k = (const char *const[]){ "start_ms", "parse_ms", "config_ms", "engine_ms", "total_ms", "tokenizer_ms", NULL }; *k; k++)
            json_object_set_new(extra, *k, hn_lab_num(median_of(b.all, *k)));
        const hn_proc_record rec = { .variant = !cold ? "warm" : b.unverified ? "cold-unverified" : "cold", .path = path, .extra = extra,
                                     .config = hn_proc_config(&p, -1, -1, NULL), .raw = true, .memory = hn_proc_memory(&b) };
        if (hn_proc_some(&b) || b.verdict.state == HN_INVALID) st = hn_proc_add(&p, &b, &rec, err);
        else {
            json_decref(rec.extra);
            json_decref(rec.config);
            json_decref(rec.memory);
        }
        hn_bunch_free(&b);
        if (st == HONE_OK) st = ran;
    }
    return st;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static double stage(json_t *result, const char *name, const char *key)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(result, "stages"), i, s) {
        const char *n = json_string_value(json_object_get(s, "stage"));
        if (n && strcmp(n, name) == 0) return hn_result_number(s, key);
    }
    return NAN;
}

/* A number of a stage, less that of another. */
typedef struct memory_row { const char *variant, *key, *stage, *less; double scale; const char *note; } memory_row;

static hone_status memory_rows(hn_proc *p, hn_bunch *b, const memory_row *rows, int32_t n_prompt, int32_t n_gen, hone_error *err)
{
    hone_status st = HONE_OK;
    size_t n = json_array_size(b->all);
    double *x = calloc(n + 1, sizeof *x);
    if (!x) return HN_FAIL(err, HONE_E_NOMEM, "%zu samples", n);
    for (const memory_row *row = rows; row->key && st == HONE_OK; row++) {
        size_t i;
        json_t *s;
        json_array_foreach(b->all, i, s) x[i] = stage(s, row->stage, row->key) - (row->less ? stage(s, row->less, row->key) : 0);
        const hn_proc_record rec = { .variant = row->variant, .x = x, .scale = row->scale, .zero_ok = true, .extra = hn_proc_stages(b), .raw = row == rows,
                                     .config = hn_proc_config(p, n_prompt, n_gen, NULL), .memory = hn_proc_memory(b), .note = row->note };
        st = hn_proc_add(p, b, &rec, err);
    }
    free(x);
    return st;
}

static hone_status run_memory(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    enum { FEW = 6, PROMPT = 512, GEN = 16 };
    static const memory_row of_loading[] = {
        { "anon", "anon_mb", "config", NULL, 1, "all anonymous memory of a process that has opened the model; the session comes later" },
        { "metadata", "anon_mb", "parse", "start", 1, "what reading the file's directory added" },
        { "tensors", "tensors_mb", "config", NULL, 1, "pages of weights mapped: touched, or mapped by the kernel around what was touched" },
        { 0 } };
    static const memory_row loaded[] = { { "anon", "anon_mb", "session", NULL, 1, NULL }, { "all", "rss_mb", "session", NULL, 1, "shared libraries and pages of the model included" }, { 0 } };
    static const memory_row forward[] = { { "anon", "anon_mb", "generated", NULL, 1, NULL },
                                          { "growth", "anon_mb", "generated", "session", 1, "over the loaded model: KV cache or state, scratch, tokenizer" }, { 0 } };
    static const memory_row kv[] = { { NULL, "kv_mb", "2048 positions", NULL, 1, NULL }, { 0 } };
    static const memory_row state[] = { { NULL, "state_mb", "2048 positions", NULL, 1, "with the copy that an interrupted call goes back to" },
                                        { "growth", "state_mb", "2048 positions", "512 positions", 1, "from 512 to 2048 positions" }, { 0 } };
    static const memory_row per_token[] = { { NULL, "anon_mb", "2048 positions", "512 positions", 1.0 / 1536, "all growth of the process from 512 to 2048 positions, by 1536" }, { 0 } };
    static const memory_row trained[] = { { NULL, "anon_mb", "step", "session", 1, "what the first step of training added: adapters, moments, activations; the mapped model is extra" }, { 0 } };
    static const struct { const char *id, *word; const memory_row *rows; } which[] = { { "load.memory", "load", of_loading }, { "memory.load", "load", loaded },
        { "memory.forward", "forward", forward }, { "memory.kv2048", "kv", kv }, { "memory.state", "kv", state }, { "memory.per_token", "kv", per_token },
        { "memory.train", "train", trained } };
    size_t i = 0;
    while (strcmp(which[i].id, e->id) != 0) i++;
    hn_proc p;
    hone_status st = hn_proc_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    if (p.state_bytes && which[i].rows == kv) return hn_bench_not_recurrent(e, "it has no KV cache; memory.state is what it has", err);
    if (p.state_bytes && which[i].rows == trained) return hn_bench_not_recurrent(e, "hone does not train recurrent models", err);
    if (!p.state_bytes && which[i].rows == state) return hn_bench_only_recurrent(e, err);
    bool trains = which[i].rows == trained, forwards = strcmp(which[i].word, "forward") == 0;
    int32_t n_prompt = r->set.n_prompt > 0 ? r->set.n_prompt : trains && r->set.quick ? 64 : PROMPT, n_gen = r->set.n_gen >= 0 ? r->set.n_gen : GEN;
    hn_bunch b = { .mode = "_memory", .from_disk = true }; /* time is not what is measured */
    snprintf(b.word, sizeof b.word, "%s", which[i].word);
    snprintf(b.verdict.reason, sizeof b.verdict.reason, "memory has no output to compare");
    if (forwards || trains) {
        hn_bunch_arg(&b, "--n-prompt=%d", n_prompt);
        hn_bunch_arg(&b, "--n-gen=%d", trains ? 0 : n_gen);
    }
    hone_status ran = hn_bunch_measure(&p, &b, 1, hn_proc_samples(&p, FEW), err);
    if (hn_proc_some(&b) || b.verdict.state == HN_INVALID) st = memory_rows(&p, &b, which[i].rows, forwards || trains ? n_prompt : -1, forwards ? n_gen : -1, err);
    hn_bunch_free(&b);
    return st == HONE_OK ? ran : st;
}

/* ---- quality ----------------------------------------------------------------------------------------- */

static hone_status run_quality(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    enum { FEW = 2 };
    hn_proc p;
    hone_status st = hn_proc_begin(&p, r, e, err);
    if (st != HONE_OK) return st;
    hn_bunch b = { .mode = "_quality" };
    hone_status ran = hn_bunch_measure(&p, &b, 1, hn_proc_samples(&p, FEW), err);
    json_t *first = json_array_get(b.all, 0), *s;
    size_t i;
    json_array_foreach(b.all, i, s) {
        const char *why = json_string_value(json_object_get(s, "reason"));
        if (!json_is_true(json_object_get(s, "valid"))) hn_invalid(&b.verdict, "%s", why ? why : "the quality run gave no verdict");
        if (!json_equal(json_object_get(s, "hash"), json_object_get(first, "hash"))) hn_invalid(&b.verdict, "two processes gave two hashes: the engine is not deterministic");
    }
    if (hn_proc_some(&b) && b.verdict.state != HN_INVALID) b.verdict.state = HN_VALID;
    if (first) { /* this run's later entries need not do it again */
        json_decref(r->quality);
        r->quality = json_incref(first);
    }
    const hn_proc_record rec = { .path = "seconds", .config = hn_proc_config(&p, -1, HN_Q_STEPS, "greedy"), .raw = true,
                                 .note = "the record is the hash; the samples say how long it took" };
    if (hn_proc_some(&b) || b.verdict.state == HN_INVALID) st = hn_proc_add(&p, &b, &rec, err);
    else json_decref(rec.config);
    hn_bunch_free(&b);
    return st == HONE_OK ? ran : st;
}

/* ---- the catalogue's rows ------------------------------------------------------------------------------- */

#define PROC(id_, what_, unit_, higher_, target_, suites_, cost_, run_) \
    { .id = id_, .what = what_, .unit = unit_, .target = target_, .method = 'P', .higher = higher_, .model = true, .suites = suites_, .cost = cost_, .run = run_ }
#define NEEDS(id_, what_, unit_, needs_) { .id = id_, .what = what_, .unit = unit_, .method = 'P', .model = true, .suites = "", .needs = needs_ }

const hn_bench_entry hn_bench_process[] = {
    PROC("load.parse", "mapping the file and checking its directory, warm and cold", "ms", false, "< 1 ms", "quick full ci", 1, run_load),
    PROC("load.config", "architecture, hyper-parameters, binding every weight, warm and cold", "ms", false, "< 1 ms", "quick full ci", 1, run_load),
    PROC("load.engine", "threads and session, warm and cold", "ms", false, "about 106 ms", "quick full ci", 1, run_load),
    PROC("load.total", "process started to ready, warm and cold", "ms", false, "< 200 ms (guides: < 5 s)", "quick full ci", 1, run_load),
    PROC("load.memory", "what an opened model takes: anonymous memory, the directory, weights touched", "MB", false, "anon < 2 MB, metadata < 1 MB, tensors 0", "quick full ci", 1, run_memory),
    PROC("e2e.clean", "a known text comes out, and how fast", "tok/s", true, NULL, "quick full ci", 2, hn_run_e2e_clean),
    PROC("e2e.gen", "a request: prompt 128, 100 tokens, temperature 0.7, top-p 0.9", "tok/s", true,
         "guides: decode 90+, prefill 150+ (2.9B); 5 to 20 tok/s, first token < 500 ms (14B)", "quick full ci", 40, hn_run_e2e_gen),
    PROC("e2e.kvcache.on", "512 tokens with the KV cache, or a recurrent state", "s", false, NULL, "full", 60, hn_run_e2e_kv_on),
    PROC("e2e.kvcache.off", "the same, every token from the whole text before it; and how many times slower", "s", false, NULL, "full", 60, hn_run_e2e_kv_off),
    PROC("e2e.cold", "the first request of a process against later ones; start to first token, warm and cold", "x", false, NULL, "full", 30, hn_run_e2e_cold),
    PROC("e2e.cpu", "CPU use, context switches and cache misses of a token", "%", true, NULL, "quick full ci", 20, hn_run_e2e_cpu),
    PROC("e2e.backend", "each kernel level of this machine, in turns, and their ratios", "x", true, NULL, "full", 60, hn_run_e2e_backend),
    PROC("e2e.scale.size", "the same shape with a quarter, half and all of its layers (random weights)", "tok/s", true, NULL, "full", 60, hn_run_scale_size),
    PROC("e2e.scale.quant", "the same shape in other weight types (random weights)", "tok/s", true, NULL, "full", 90, hn_run_scale_quant),
    PROC("e2e.scale.threads", "1 to all threads, in turns", "tok/s", true, NULL, "full ci", 40, hn_run_scale_threads),
    PROC("e2e.scale.batch", "1, 4, 8 and 16 sequences at once", "tok/s", true, NULL, "full", 40, hn_run_scale_batch),
    NEEDS("e2e.fused.on", "fused operations", "x", "an unfused path to choose: hone computes gate and up, and attention with its soft-max, in one operation each, and keeps no other"),
    NEEDS("e2e.fused.off", "the same without", "x", "an unfused path to choose: there is none"),
    { .id = "e2e.profile", .what = "what each operation of a prompt and of a token takes of its time", .unit = "%", .method = 'O', .model = true, .suites = "full", .cost = 20,
      .run = hn_run_e2e_profile },
    PROC("memory.load", "memory of a process that is ready to generate", "MB", false, NULL, "quick full ci", 2, run_memory),
    PROC("memory.forward", "the same after a prompt and a few tokens", "MB", false, NULL, "quick full ci", 10, run_memory),
    PROC("memory.kv2048", "KV cache of 2048 positions, as it is in memory", "MB", false, NULL, "full", 30, run_memory),
    PROC("memory.state", "state of a recurrent model after 2048 positions, as it is in memory, and its growth", "MB", false, NULL, "full", 10, run_memory),
    PROC("memory.train", "memory that a step of training adds: LoRA r8 on Q and V, seq 512 (quick: 64)", "MB", false, NULL, "full", 20, run_memory),
    PROC("memory.per_token", "growth of the whole process by a token", "MB", false, "< 100 MB", "full", 30, run_memory),
    PROC("quality", "the quality hash: what the model answers, and with which bits", "s", false, NULL, "quick full ci", 15, run_quality),
    { 0 },
};
