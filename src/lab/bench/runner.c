/* The one loop of fresh processes: how one is started, judged, voided, repeated, and what
 * came of all of them made a record. Refuses to know what the processes do inside
 * (cli/bench/bench_child.c, sample.h) and which entry asks. */
#define _GNU_SOURCE
#include "lab/bench/runner.h"

#include "base/os.h"
#include "lab/bench/bench.h"
#include "lab/bench/process.h"
#include "lab/machine/clock.h"
#include "lab/machine/evidence.h"
#include "lab/machine/roof.h"
#include "lab/record/record_read.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"
#include "base/json_tree.h"

#include <math.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_REPEATS = 2 };             /* of one sample that was voided */
static const double most_voided = 0.5; /* of all samples, and one */
enum { HN_TIMES_ALIKE = 6 };           /* so many times, to the nanosecond or nearly, are not alike by chance */

/* ---- one entry ----------------------------------------------------------------------------- */

hone_status hn_runner_begin(hn_runner *p, hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hone_model *m;
    *p = (hn_runner){ .r = r, .e = e, .quick = r->set.quick };
    hone_status st = hn_bench_model(r, &m, err);
    if (st != HONE_OK) return st;
    snprintf(p->packed, sizeof p->packed, "%s", r->info.packed_path ? r->info.packed_path : "");
    snprintf(p->packed_note, sizeof p->packed_note, "%s", r->info.packed_note);
    p->bytes_per_token = (double)hn_bytes_per_token(&r->info);
    p->n_bytes = r->info.n_bytes;
    p->fingerprint = r->info.fingerprint;
    p->n_ctx_train = r->info.n_window ? 0 : r->info.n_ctx_train;
    p->n_layer = r->info.n_layer;
    p->has_tokenizer = r->info.has_tokenizer;
    p->state_bytes = r->info.recurrent ? r->info.state_bytes : 0;
    st = hn_work_of(&p->work, r->set.model, err);
    hn_work_add(&p->work, &r->info);
    hn_bench_model_close(r);
    return st;
}

int32_t hn_runner_samples(const hn_runner *p, int32_t most)
{
    return p->r->free_samples && p->r->set.samples > most ? most : p->r->set.samples;
}

void hn_bunch_free(hn_bunch *b)
{
    json_decref(b->all);
    json_decref(b->voided);
    hn_argv_free(&b->args);
    b->all = b->voided = NULL;
}

void hn_bunch_ask(hn_bunch *b, int32_t n_prompt, int32_t n_gen, int32_t depth)
{
    hn_argv_add(&b->args, "--n-prompt=%d", n_prompt);
    hn_argv_add(&b->args, "--n-gen=%d", n_gen);
    if (depth >= 0) hn_argv_add(&b->args, "--depth=%d", depth);
    b->asked = (hn_asked){ .n_prompt = n_prompt, .n_gen = n_gen, .depth = depth > 0 ? depth : 0 };
    b->counted = true;
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

/* What the machine did around a process, for what that says of it. */
static void count(hn_seen *seen, const hn_evidence *a, json_t *result)
{
    hn_evidence b;
    double told = hn_json_number_of(result, "clock_mhz");
    hn_evidence_look(&b);
    seen->counted = true;
    seen->stolen = b.ticks.total > a->ticks.total ? (int64_t)(b.ticks.steal - a->ticks.steal) : -1;
    seen->throttled = a->throttled >= 0 && b.throttled >= 0 ? b.throttled - a->throttled : -1;
    seen->stopped = a->stopped >= 0 && b.stopped >= 0 ? b.stopped - a->stopped : -1;
    /* a clock much slower than it was around the process, which is no time to be slow in, is not believed; work of all
     * cores may slow it by a third */
    double least = fmin(a->mhz, b.mhz);
    if (least > 0 && told < 0.65 * least) json_object_set_new(result, "clock_mhz", hn_lab_num(least));
}

/* *out: what it printed, or NULL with the reason in why. */
static hone_status run_child(hn_runner *p, hn_bunch *b, json_t **out, char *why, size_t cap, hone_error *err)
{
    hn_argv a = { 0 };
    hn_child c;
    hn_evidence before;
    *out = NULL;
    if (hn_bench_step(p->r, p->todo ? (double)p->done / p->todo : 0))
        return HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", p->e->id);
    hn_argv_add(&a, "hone");
    hn_argv_add(&a, "bench");
    hn_argv_add(&a, "%s", b->mode);
    if (b->word[0]) hn_argv_add(&a, "%s", b->word);
    hn_argv_extend(&a, p->r->set.child_args);
    hn_argv_extend(&a, hn_argv_words(&b->args)); /* they overrule */
    hn_evidence_look(&before);
    hn_argv_add(&a, "%" PRIu64, hn_clock_ns()); /* last: the time of the spawn */
    a.lost = a.lost || b->args.lost;
    hone_status st = hn_argv_check(&a, "a process", err);
    if (st == HONE_OK) st = hn_child_run(&c, hn_argv_words(&a), p->r->set.stop, err);
    char false_claim[400] = "";
    bool as_asked = st != HONE_OK || hn_claims_settings(c.result, hn_argv_words(&a), false_claim, sizeof false_claim);
    hn_argv_free(&a);
    if (st != HONE_OK) return st;
    count(&c.seen, &before, c.result);
    p->done++;
    st = refused(&c, p->e->id, err);
    p->r->told = p->r->told || st != HONE_OK;
    if (st == HONE_OK && !c.result) hn_child_why(&c, why, cap);
    else if (st == HONE_OK) {
        double seen = (double)(c.seen.anon > c.seen.own_peak ? c.seen.anon : c.seen.own_peak) / 1e6; /* from outside */
        json_t *anon = json_object_get(c.result, "peak_anon_mb");
        if (anon && !(json_number_value(anon) >= seen)) json_object_set_new(c.result, "peak_anon_mb", hn_lab_num(seen));
        json_object_set_new(c.result, "seen_s", hn_lab_num(c.seen.told_s > 0 ? c.seen.told_s : c.seen.wall_s));
        char late[80];
        if (hn_claims_late(c.result, &c.seen, late, sizeof late))
            json_object_set_new(c.result, "late", hn_lab_str(late));
        const hn_asked *asked = b->counted ? &b->asked : NULL;
        bool certain = !as_asked || !hn_claims_disturbed(c.result, &c.seen, false_claim, sizeof false_claim) ||
                       !hn_claims_exact(c.result, asked, false_claim, sizeof false_claim);
        if (certain || !hn_claims_hold(c.result, asked, &c.seen, false_claim, sizeof false_claim))
            json_object_set_new(c.result, certain ? "false_for_certain" : "false_claim", hn_lab_str(false_claim));
        *out = json_incref(c.result);
    }
    hn_child_free(&c);
    return st;
}

static void drop_files(hn_runner *p, hn_bunch *b)
{
    const char *const files[] = { p->r->set.model, p->packed[0] ? p->packed : NULL };
    for (size_t i = 0; i < 2; i++) {
        if (!files[i]) continue;
        double left = hn_os_drop_file(files[i]);
        if (!(left >= 0 && left < 0.01)) b->unverified = true;
    }
}

/* Loads are those of a file in memory, unless it would not stay. */
static void read_through(const hn_runner *p, const char *path)
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

/* Of an array: the last ("-"), by number, or the one whose "stage" it is ("512 positions"). */
static json_t *element(json_t *array, const char *key)
{
    json_t *s;
    size_t i;
    if (strcmp(key, "-") == 0) return json_array_get(array, json_array_size(array) - 1);
    if (!key[strspn(key, "0123456789")]) return json_array_get(array, strtoul(key, NULL, 10));
    json_array_foreach(array, i, s) if (strcmp(hn_record_text(s, "stage"), key) == 0) return s;
    return NULL;
}

static json_t *result_at(json_t *o, const char *path)
{
    char key[64];
    while (o) {
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        o = json_is_array(o) ? element(o, key) : json_object_get(o, key);
        if (!path[n]) return o;
        path += n + 1;
    }
    return NULL;
}

/* One path: a number, numbers that are added, or "LIST.1-.KEY": the median of all but the first. */
static double number_at(json_t *o, const char *path)
{
    const char rest[] = ".1-.", *cut = strstr(path, rest);
    char head[80];
    double x[64], sum = 0;
    size_t i, n = 0;
    json_t *v;
    hn_stats st;
    if (!cut) {
        o = result_at(o, path);
        json_array_foreach(o, i, v) sum += json_number_value(v);
        return json_is_number(o) ? json_number_value(o) : json_is_array(o) ? sum : NAN;
    }
    snprintf(head, sizeof head, "%.*s", (int)(cut - path), path);
    json_array_foreach(result_at(o, head), i, v)
    {
        v = result_at(v, cut + sizeof rest - 1);
        if (i > 0 && n < sizeof x / sizeof *x && json_is_number(v)) x[n++] = json_number_value(v);
    }
    return n && hn_stats_of(&st, x, n, NULL) == HONE_OK ? st.median : NAN;
}

/* '+', '-' or '/' between two blanks; 0: none begins here. */
static char sign_at(const char *s) { return s[0] == ' ' && s[1] && strchr("+-/", s[1]) && s[2] == ' ' ? s[1] : '\0'; }

/* From *at on, up to its end or a closing bracket, from left to right. depth: of brackets; no record has many. */
static double number_of(json_t *o, const char **at, int depth)
{
    enum { DEEPEST = 4 };
    double sum = NAN;
    for (char sign = 0;; *at += 3) {
        char word[96], *end;
        size_t n = 0;
        double v;
        if (**at == '(') {
            if (depth == DEEPEST) return NAN;
            ++*at;
            v = number_of(o, at, depth + 1);
            *at += **at == ')';
        } else {
            while ((*at)[n] && (*at)[n] != ')' && !sign_at(*at + n)) n++;
            snprintf(word, sizeof word, "%.*s", (int)n, *at);
            v = strtod(word, &end);
            if (end == word || *end) v = number_at(o, word);
            *at += n;
        }
        sum = sign == '+' ? sum + v : sign == '-' ? sum - v : sign == '/' ? sum / v : v;
        if (!(sign = sign_at(*at))) return sum;
    }
}

double hn_result_number(json_t *o, const char *path) { return number_of(o, &path, 0); }

static double usual_mhz(const hn_bunch *b)
{
    double x[64];
    size_t i, n = 0;
    json_t *s;
    hn_stats st;
    json_array_foreach(b->all, i, s) if (n < 64 && isfinite(x[n] = hn_result_number(s, "clock_mhz"))) n++;
    return n && hn_stats_of(&st, x, n, NULL) == HONE_OK ? st.median : NAN;
}

hone_status hn_bunch_once(hn_runner *p, hn_bunch *b, json_t **out, hone_error *err)
{
    char why[640] = "";
    hone_status st = run_child(p, b, out, why, sizeof why, err);
    if (st == HONE_OK && !*out) *out = json_pack("{s:o}", "invalid_reason", hn_lab_str(why));
    return st;
}

/* What each sample, and each request of one, must have in common with the first: it was asked the same. */
static void judge_answer(hn_bunch *b, json_t *first, json_t *answer, const char *which)
{
    char what[120];
    json_t *was = json_object_get(first, "ids"), *is = json_object_get(answer, "ids"); /* loading generates none */
    json_t *gaps = json_object_get(answer, "gaps_ms");
    size_t i;
    if ((was || is) && !json_equal(was, is))
        hn_invalid(&b->verdict, "%s generated other tokens than the first: the engine is not deterministic", which);
    if (hn_proof_differ(what, sizeof what, json_object_get(first, "proof"), json_object_get(answer, "proof")))
        hn_invalid(&b->verdict, "%s: %s are not those of the first: the engine is not deterministic", which, what);
    if (json_array_size(gaps) < HN_TIMES_ALIKE) return;
    json_array_foreach(b->all, i, was) if (was != answer && json_equal(json_object_get(was, "gaps_ms"), gaps))
        hn_invalid(&b->verdict, "%s has the very times of sample %zu: it was not measured", which, i + 1);
}

static void judge_sample(hn_bunch *b, json_t *s)
{
    const char *why = json_string_value(json_object_get(s, "invalid_reason"));
    size_t i, n = json_array_size(b->all);
    json_t *request, *first = json_array_get(b->all, 0);
    char which[60];
    if (why) hn_invalid(&b->verdict, "sample %zu: %s", n, why);
    json_t *requests = json_object_get(first, "requests");
    json_array_foreach(json_object_get(s, "requests"), i, request)
    {
        const char *reason = json_string_value(json_object_get(request, "invalid_reason"));
        snprintf(which, sizeof which, "sample %zu, request %zu", n, i + 1);
        if (reason) hn_invalid(&b->verdict, "%s: %s", which, reason);
        judge_answer(b, json_array_get(requests, 0), request, which);
    }
    snprintf(which, sizeof which, "sample %zu", n);
    if (!requests && !why) judge_answer(b, first, s, which);
}

/* One sample that counts, measured again when the machine, not the number, gives a reason. */
static hone_status take_sample(hn_runner *p, hn_bunch *b, hone_error *err)
{
    for (int tries = 0;; tries++) {
        json_t *s;
        char why[640] = "";
        if (b->drop) drop_files(p, b);
        hone_status st = run_child(p, b, &s, why, sizeof why, err);
        if (st != HONE_OK) return st;
        if (!s) { /* a crash is a verdict */
            hn_invalid(&b->verdict, "sample %zu: %.480s", json_array_size(b->all) + 1, why);
            if (b->keep_crashes) json_array_append_new(b->all, json_pack("{s:o}", "invalid_reason", hn_lab_str(why)));
            return HONE_OK;
        }
        const char *claim = json_string_value(json_object_get(s, "false_claim")),
                   *certain = json_string_value(json_object_get(s, "false_for_certain")),
                   *late = json_string_value(json_object_get(s, "late"));
        bool bad = hn_evidence_voids(s, b->from_disk, usual_mhz(b), why, sizeof why);
        if (late && !bad) snprintf(why, sizeof why, "%s", late);
        bad = bad || late;
        if (claim) snprintf(why, sizeof why, "%s", claim);
        bad = bad || claim;
        if (bad && !certain && tries < MOST_REPEATS &&
            (double)json_array_size(b->voided) < most_voided * b->wanted + 1) {
            json_array_append_new(b->voided, json_pack("{s:o, s:o}", "reason", hn_lab_str(why), "result", s));
            continue;
        }
        if (certain) json_object_set(s, "invalid_reason", json_object_get(s, "false_for_certain"));
        else if (claim)
            json_object_set(s, "invalid_reason", json_object_get(s, "false_claim")); /* it says so each time */
        else if (bad) {
            b->n_kept++;
            snprintf(b->kept, sizeof b->kept, "%.*s", (int)sizeof b->kept - 1, why);
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

/* Beyond the samples asked for: while there is time, and something that can come out valid. */
static bool more_time(const hn_runner *p, const hn_bunch *b, size_t k, uint64_t t0)
{
    bool any = false;
    for (size_t i = 0; i < k; i++) any = any || b[i].verdict.state != HN_INVALID;
    return any && (double)(hn_clock_ns() - t0) * 1e-9 < p->r->set.measure_s;
}

hone_status hn_bunch_measure(hn_runner *p, hn_bunch *b, size_t k, int32_t n, hone_error *err)
{
    const hn_bench_settings *set = &p->r->set;
    int32_t warmups = !p->r->free_warmups ? set->warmups : b->no_warmup ? 0 : 1;
    size_t order[16];
    p->todo = (int32_t)k * (warmups + n);
    p->done = 0;
    for (size_t i = 0; i < k; i++) {
        b[i].wanted = n;
        if (!b[i].all) b[i].all = json_array();
        if (!b[i].voided) b[i].voided = json_array();
        if (!b[i].drop && i == 0 && !p->r->quality) { /* the run for the hash has read all of it */
            read_through(p, set->model);
            if (p->packed[0]) read_through(p, p->packed);
        }
        uint64_t t0 = hn_clock_ns();
        for (int32_t w = 0; !b[i].drop && (w < warmups || (double)(hn_clock_ns() - t0) * 1e-9 < set->warm_up_s); w++) {
            json_t *unused;
            char why[640] = "";
            hone_status st = run_child(p, &b[i], &unused, why, sizeof why, err);
            json_decref(unused);
            if (st != HONE_OK) return st;
            if (why[0]) { /* it crashes: no need to see it ten times */
                if (!b[i].keep_crashes) hn_invalid(&b[i].verdict, "%.480s", why);
                break;
            }
            b[i].warmups++;
        }
    }
    uint64_t t0 = hn_clock_ns();
    for (int32_t round = 0; round < n || more_time(p, b, k, t0); round++) {
        shuffle(order, k, set->seed, (uint64_t)round);
        bool any = false;
        for (size_t i = 0; i < k; i++) {
            hn_bunch *one = &b[order[i]];
            if (one->verdict.state == HN_INVALID && json_array_size(one->all) == 0 && !one->keep_crashes) continue;
            any = true;
            hone_status st = take_sample(p, one, err);
            if (st != HONE_OK) return st;
        }
        if (!any) break;
    }
    return HONE_OK;
}

hone_status hn_bunch_not_checked(hn_bunch *b, hone_status st)
{
    if (st == HONE_OK || b->verdict.state != HN_VALID) return st;
    b->verdict.state = HN_UNCHECKED;
    snprintf(b->verdict.reason, sizeof b->verdict.reason, "it ended before the answer was computed again");
    return st;
}

hone_status hn_bunch_check(hn_runner *p, hn_bunch *b, hone_status ran, hone_error *err)
{
    enum { MOST = 120000 }; /* bytes of a word of a command line */
    if (p->r->set.no_quality || ran != HONE_OK) return hn_bunch_not_checked(b, ran);
    json_t *sample = json_array_get(b->all, 0), *request = json_array_get(json_object_get(sample, "requests"), 0),
           *first = request ? request : sample, *ids = json_object_get(first, "ids"), *id, *again;
    size_t i, n = json_array_size(ids);
    hn_bunch check = { .mode = "_check" };
    hn_os_text text;
    char what[120];
    if (!b->counted || !first || b->verdict.state == HN_INVALID) return HONE_OK;
    if (!hn_os_text_open(&text)) return HN_FAIL(err, HONE_E_NOMEM, "%zu ids again", n);
    if (request) fprintf(text.f, "%.*s:", (int)strcspn(b->word, ","), b->word);
    if (n == 0) fprintf(text.f, "-");
    json_array_foreach(ids, i, id) fprintf(text.f, "%s%d", i ? "," : "", (int)json_integer_value(id));
    char *words = hn_os_text_close(&text, NULL);
    if (!words) return HN_FAIL(err, HONE_E_NOMEM, "%zu ids again", n);
    if (strlen(words) > MOST) {
        free(words);
        if (b->verdict.state != HN_VALID) return HONE_OK;
        b->verdict.state = HN_UNCHECKED;
        snprintf(b->verdict.reason, sizeof b->verdict.reason,
                 "%zu tokens are more than are computed again: ask for fewer (-n)", n);
        return HONE_OK;
    }
    hn_argv_extend(&check.args, hn_argv_words(&b->args));
    hn_argv_add(&check.args, "%s", words); /* no option: a word of the command line */
    free(words);
    hone_status st = hn_bunch_once(p, &check, &again, err);
    const char *bad = json_string_value(json_object_get(again, "invalid_reason"));
    if (bad) hn_invalid(&b->verdict, "the answer computed again: %.480s", bad);
    else if (hn_proof_differ(what, sizeof what, json_object_get(first, "proof"), json_object_get(again, "proof")))
        hn_invalid(&b->verdict,
                   "%s of the timed run are not those of the same tokens in chunks of 37 and calls of 5: the engine is "
                   "wrong in one of the two",
                   what);
    json_decref(again);
    hn_argv_free(&check.args);
    return hn_bunch_not_checked(b, st);
}

/* ---- records ------------------------------------------------------------------------------------ */

json_t *hn_runner_config(const hn_runner *p, int32_t n_prompt, int32_t n_gen, const char *sampler)
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

double hn_bunch_median(const hn_bunch *b, const char *path)
{
    double *x = calloc(json_array_size(b->all) + 1, sizeof *x), median = NAN;
    size_t i, n = 0;
    json_t *s;
    hn_stats st;
    json_array_foreach(b->all, i, s) if (x && isfinite(x[n] = hn_result_number(s, path))) n++;
    if (n && hn_stats_of(&st, x, n, NULL) == HONE_OK) median = st.median;
    free(x);
    return median;
}

json_t *hn_bunch_gaps(const hn_bunch *b, const char *path)
{
    size_t i, k, n = 0, cap = 1;
    json_t *s, *g, *o = NULL;
    json_array_foreach(b->all, i, s) cap += json_array_size(result_at(s, path));
    double *x = malloc(cap * sizeof *x);
    hn_stats st;
    if (!x) return json_null();
    json_array_foreach(b->all, i, s) json_array_foreach(result_at(s, path), k, g) x[n++] = json_number_value(g);
    if (n && hn_stats_of(&st, x, n, NULL) == HONE_OK)
        o = json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "n", (int)n, "p50", hn_lab_num(st.median), "p90",
                      hn_lab_num(st.p90), "p95", hn_lab_num(st.p95), "p99", hn_lab_num(st.p99), "max",
                      hn_lab_num(st.max), "mean", hn_lab_num(st.mean));
    free(x);
    return o ? o : json_null();
}

/* At this path: "allocs", or "allocs.prompt". */
static json_t *allocs_at(const hn_bunch *b, const char *path)
{
    static const char *const numbers[] = { "n", "bytes", "freed" };
    json_t *first = result_at(json_array_get(b->all, 0), path), *v;
    if (!first) return hn_allocs_json(NULL, NULL, 0, NULL);
    json_t *o = json_object();
    if ((v = json_object_get(first, "op"))) json_object_set(o, "op", v);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char at[64];
        snprintf(at, sizeof at, "%s.%s", path, numbers[i]);
        json_object_set_new(o, numbers[i], hn_lab_num(hn_bunch_median(b, at)));
    }
    if ((v = json_object_get(first, "missing"))) json_object_set(o, "missing", v);
    return o;
}

json_t *hn_bunch_allocs(const hn_bunch *b, const char *path)
{
    static const struct {
        const char *metric, *allocs;
    } behind[] = { { "decode_tok_s", "allocs" },
                   { "itl_ms", "allocs" },
                   { "steady_tok_s", "allocs" },
                   { "sustained_tok_s", "allocs" },
                   { "prefill_tok_s", "allocs.prompt" },
                   { "ttft_ms", "allocs.prompt" },
                   { "total_ms", "allocs" } };
    const char *dot = path ? strrchr(path, '.') : NULL, *metric = dot ? dot + 1 : path;
    for (size_t i = 0; metric && i < sizeof behind / sizeof *behind; i++) {
        char at[96];
        if (strcmp(metric, behind[i].metric) != 0) continue;
        snprintf(at, sizeof at, "%.*s%s", dot ? (int)(dot + 1 - path) : 0, path, behind[i].allocs);
        bool load = strcmp(hn_record_text(result_at(json_array_get(b->all, 0), at), "op"), "load") == 0;
        if (load == (strcmp(metric, "total_ms") == 0)) return allocs_at(b, at);
    }
    return hn_allocs_json(NULL, NULL, 0, NULL);
}

json_t *hn_bunch_allocs_of_run(const hn_bunch *b)
{
    json_t *o = allocs_at(b, "allocs");
    json_object_set_new(o, "prompt", allocs_at(b, "allocs.prompt"));
    return o;
}

json_t *hn_runner_memory(const hn_bunch *b)
{
    static const char *const keys[] = { "peak_anon_mb",      "hwm_mb",          "mapped_mb",
                                        "model_resident_mb", "engine.cache_mb", "engine.scratch_mb",
                                        "engine.logits_mb" };
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *dot = strchr(keys[i], '.');
        json_object_set_new(o, dot ? dot + 1 : keys[i], hn_lab_num(hn_bunch_median(b, keys[i])));
    }
    return o;
}

json_t *hn_runner_stages(const hn_bunch *b)
{
    json_t *s = json_object_get(json_array_get(b->all, json_array_size(b->all) - 1), "stages");
    return json_pack("{s:o}", "stages", s ? json_incref(s) : json_null());
}

bool hn_bunch_some(const hn_bunch *b) { return json_array_size(b->all) > 0; }

static void note_bunch(hn_bench_result *res, const hn_bunch *b, size_t n)
{
    size_t again = json_array_size(b->voided);
    const char *first = json_string_value(json_object_get(json_array_get(b->voided, 0), "reason"));
    if (again)
        hn_bench_note(res, "%zu sample%s measured again: %s%s", again, again == 1 ? " was" : "s were",
                      first ? first : "?", again > 1 ? ", …" : "");
    if (b->n_kept) hn_bench_note(res, "%d of %zu samples kept although %s: it would not stop", b->n_kept, n, b->kept);
    if ((int32_t)json_array_size(b->all) < b->wanted && b->verdict.state != HN_INVALID)
        hn_bench_note(res, "interrupted after %zu of %d", json_array_size(b->all), b->wanted);
    if (b->unverified)
        hn_bench_note(
            res, "the model's files could not be dropped from memory, or the system does not show it: cold-unverified");
}

hone_status hn_runner_add(hn_runner *p, hn_bunch *b, const hn_runner_record *rec, hone_error *err)
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
    json_array_foreach(b->all, i, s)
    {
        double v = rec->path ? hn_result_number(s, rec->path) : rec->x[i];
        if (isfinite(v)) x[used++] = scale * v;
    }
    s = json_array_get(b->all, 0);
    json_t *level = json_object_get(json_object_get(s, "engine"), "cpu");
    double threads = hn_result_number(s, "engine.threads");
    if (level) json_object_set(config, "cpu", level);
    json_t *adapters = json_object_get(json_object_get(s, "engine"), "adapters");
    if (adapters) json_object_set(config, "adapters", adapters);
    hn_bench_result res = { .variant = rec->variant,
                            .unit = rec->unit,
                            .better = rec->better,
                            .config = config,
                            .samples = x,
                            .n = used,
                            .zero_ok = rec->zero_ok,
                            .warmups = b->warmups,
                            .threads = threads > 0 ? (int32_t)threads : 0,
                            .verdict = b->verdict,
                            .allocs = hn_bunch_allocs(b, rec->path),
                            .extra = rec->extra,
                            .memory = rec->memory,
                            .voided = (int32_t)json_array_size(b->voided) };
    if (strstr(rec->unit ? rec->unit : p->e->unit, "tok/s") && threads > 0)
        res.cpu_use = hn_bunch_median(b, "cpu_use") / threads; /* all of them work then; not while a model is opened */
    if (rec->decode) {                                         /* a cache may hold half of a small model */
        res.bytes = p->bytes_per_token;
        res.rotated_bytes = p->bytes_per_token > 2 * (double)hn_cache_bytes() ? p->bytes_per_token : 0;
    }
    if (!res.extra) res.extra = json_object();
    json_t *proof = result_at(s, "proof") ? result_at(s, "proof") : result_at(s, "requests.0.proof");
    if (proof) json_object_set(res.extra, "proof", proof);
    if (rec->path) json_object_set_new(res.extra, "from", json_string(rec->path));
    if (rec->path && scale != 1) json_object_set_new(res.extra, "scale", json_real(scale));
    if (rec->ratio[0]) json_object_set_new(res.extra, "ratio", json_pack("[s, s]", rec->ratio[0], rec->ratio[1]));
    if (rec->raw && json_array_size(b->voided)) json_object_set(res.extra, "voided", b->voided);
    if (rec->raw) res.full_samples = json_incref(b->all);
    if (p->r->quality && b->verdict.state != HN_UNCHECKED)
        res.quality = json_string_value(json_object_get(p->r->quality, "hash"));
    note_bunch(&res, b, n);
    if (rec->note) hn_bench_note(&res, "%s", rec->note);
    hone_status st = hn_bench_add(p->r, p->e, &res, err);
    free(x);
    return st;
}

hone_status hn_runner_quality(hn_runner *p, hn_verdict *v, hone_error *err)
{
    if (p->r->set.no_quality) {
        if (v->state == HN_UNCHECKED) snprintf(v->reason, sizeof v->reason, "quality not checked (--no-quality)");
        return HONE_OK;
    }
    if (!p->r->quality) {
        hn_bunch q = { .mode = "_quality" };
        char crash[640] = "";
        hone_status st = run_child(p, &q, &p->r->quality, crash, sizeof crash, err);
        if (st != HONE_OK) return st;
        if (!p->r->quality) {
            hn_invalid(v, "quality run: %.480s", crash);
            return HONE_OK;
        }
    }
    const char *why = json_string_value(json_object_get(p->r->quality, "reason"));
    if (!json_is_true(json_object_get(p->r->quality, "valid")))
        hn_invalid(v, "%s", why ? why : "the quality run gave no verdict");
    else if (v->state == HN_UNCHECKED) v->state = HN_VALID;
    return HONE_OK;
}
