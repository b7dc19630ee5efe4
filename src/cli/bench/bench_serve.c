/* hone bench serve: how a server does with many clients, alone or beside another server, in interleaved rounds. Some of
 * what it answered is asked for again by one client alone: a server whose answers change with its load is told so. Owns
 * options and tables; lab/bench/load.c asks. */
#include "cli/bench/bench_command.h"
#include "lab/bench/load.h"
#include "lab/stats/stats.h"

#include <stdlib.h>

enum { MOST_SIZES = 16, MOST_ROUNDS = 100, OPEN_REQUESTS = 32, MOST_CLIENTS = 1024 };
enum { ALONE_REQUESTS = 3, ALONE_TOKENS = 16 }; /* at most: the first tokens of an answer may have no text yet */

static const hn_opt load_opts[] = {
    HN_OPT("url", NULL, STR, "URL", "the server, as hone serve names it when it is ready",
           .def = "http://127.0.0.1:8080"),
    HN_OPT("against", NULL, STR, "URL", "another server, asked the same in turn"),
    HN_OPT("api-key", NULL, STR, "KEY", "key of both"),
    HN_OPT("name", NULL, STR, "MODEL", "model to ask for (default: none named)"),
    HN_OPT("clients", NULL, STR, "LIST", "how many at once, each of whom asks again when it has its answer",
           .def = "1,4,16", .excl = "who asks"),
    HN_OPT("rate", NULL, F32, "X", "requests a second instead, at random times, whether or not others are answered",
           .min = 1e-3, .max = 1e6, .excl = "who asks"),
    HN_OPT("requests", NULL, I32, "N",
           "requests of each round and number of clients (default: twice the clients; with --rate 32)", .min = 1,
           .max = 1000000),
    HN_OPT("words", "-p --n-prompt", I32, "N", "words of each prompt, about as many tokens", .def = "256", .min = 1,
           .max = 1 << 20),
    HN_OPT("n-gen", "-n", I32, "N", "tokens of each answer", .def = "128", .min = 2, .max = 1 << 20),
    HN_OPT("rounds", "-r --samples", I32, "N", "rounds; an interval needs 6", .def = "3", .min = 1, .max = MOST_ROUNDS),
    HN_OPT("prompt-seed", NULL, U64, "S", "another series of prompts", .def = "0", .max = 9e18),
    HN_OPT("timeout", NULL, I32, "S", "longest silence of a server", .def = "600", .min = 1, .max = 86400),
    HN_OPT_END,
};
static const hn_opt_group load_group = { "Load", load_opts };
static const hn_opt_group *const groups[] = { &load_group, NULL };

/* Times of all rounds, ms. */
typedef struct times {
    double *ms; /* [n], malloc'ed */
    size_t n;
} times;

/* What one server did with one number of clients. */
typedef struct cell {
    double rate[MOST_ROUNDS]; /* tokens a second, of all clients */
    int n;
    times first, gap;
    times later;         /* of first: those that did not come with every other client's first request at one moment */
    times alone;         /* first texts of other prompts as long, when nobody else asks */
    hn_load_proof proof; /* of the last round */
    int32_t n_changed, n_failed;
    char problem[96]; /* of the first request that failed */
    int64_t n_prompt, n_token, n_request;
    double slowest; /* of the first words, beside the mean: 1 is fair */
} cell;

/* What the server that is asked first in a round answered, for the other one to be held against. */
typedef struct answers {
    uint64_t *hash; /* [n], 0: none */
    int32_t n;
    int32_t n_compared, n_other; /* of all rounds */
} answers;

typedef struct load_bench {
    const hn_cli *cli;
    const char *url[2];
    int n_url;
    int32_t size[MOST_SIZES]; /* clients; 0: open arrivals, the only one */
    int n_size;
    cell cell[2][MOST_SIZES];
    answers said[MOST_SIZES];
    char lie[80]; /* of the clock; "" */
} load_bench;

static int read_sizes(load_bench *b)
{
    const char *s = hn_opts_str(b->cli->opts, "clients");
    int32_t *ids;
    size_t n;
    hone_error err;
    if (hn_opts_given(b->cli->opts, "rate")) {
        b->n_size = 1;
        return 0;
    }
    if (hn_parse_ids(&ids, &n, s, strlen(s), "--clients", &err) != HONE_OK)
        return hn_cli_usage(b->cli, "%s", err.message);
    bool ok = n <= MOST_SIZES;
    for (size_t i = 0; ok && i < n; i++) {
        ok = ids[i] >= 1 && ids[i] <= MOST_CLIENTS;
        b->size[b->n_size++] = ids[i];
    }
    free(ids);
    return ok ? 0
              : hn_cli_usage(b->cli, "--clients %s: expected up to %d numbers from 1 to %d", s, (int)MOST_SIZES,
                             (int)MOST_CLIENTS);
}

static bool add_ns(times *t, uint64_t ns)
{
    if (!(t->n & (t->n - 1))) { /* full: room for twice as many */
        double *more = realloc(t->ms, (t->n ? 2 * t->n : 1) * sizeof *more);
        if (!more) return false;
        t->ms = more;
    }
    t->ms[t->n++] = (double)ns * 1e-6;
    return true;
}

static void count_failed(cell *c, const hn_load_run *r)
{
    c->n_failed += r->n_failed;
    for (int32_t i = 0; i < r->n && !c->problem[0]; i++)
        snprintf(c->problem, sizeof c->problem, "%s", r->one[i].problem);
}

static hone_status take(cell *c, const hn_load_run *r, hone_error *err)
{
    double worst = 0, sum = 0;
    const size_t before = c->first.n;
    bool ok = true;
    for (int32_t i = 0; ok && i < r->n; i++) {
        const hn_load_one *one = &r->one[i];
        if (one->problem[0]) continue;
        ok = add_ns(&c->first, one->first) && (one->opening || add_ns(&c->later, one->first));
    }
    for (size_t i = 0; ok && i < r->n_gap; i++) ok = add_ns(&c->gap, r->gap[i]);
    if (!ok) return HN_FAIL(err, HONE_E_NOMEM, "no memory for %d requests", r->n);

    for (size_t i = before; i < c->first.n; i++) {
        sum += c->first.ms[i];
        if (c->first.ms[i] > worst) worst = c->first.ms[i];
    }
    c->rate[c->n++] = r->seconds > 0 ? (double)r->n_token / r->seconds : 0;
    count_failed(c, r);
    c->n_prompt += r->n_prompt;
    c->n_token += r->n_token;
    c->n_request += r->n - r->n_failed;
    const double unfair = sum > 0 ? worst / (sum / (double)(c->first.n - before)) : 0;
    if (unfair > c->slowest) c->slowest = unfair;
    return HONE_OK;
}

/* What server `side` is asked with size k's clients. */
static hn_load_params load_of(const load_bench *b, int side, int k)
{
    const hn_opts *o = b->cli->opts;
    const bool open = !b->size[k];
    const int32_t n = hn_opts_given(o, "requests") ? hn_opts_i32(o, "requests") : open ? OPEN_REQUESTS : 2 * b->size[k];
    return (hn_load_params){ .url = b->url[side],
                             .api_key = hn_opts_str(o, "api-key"),
                             .model = hn_opts_str(o, "name"),
                             .n_clients = !open              ? b->size[k]
                                          : n < MOST_CLIENTS ? n
                                                             : MOST_CLIENTS, /* nobody waits for another's end */
                             .n_requests = n,
                             .n_words = hn_opts_i32(o, "words"),
                             .n_gen = hn_opts_i32(o, "n-gen"),
                             .rate = open ? (double)hn_opts_f32(o, "rate") : 0,
                             .timeout_s = hn_opts_i32(o, "timeout"),
                             .stop = hn_abort_fn };
}

static hone_status keep_answers(answers *a, const hn_load_run *r, hone_error *err)
{
    uint64_t *more = realloc(a->hash, (size_t)r->n * sizeof *more);
    if (!more) return HN_FAIL(err, HONE_E_NOMEM, "no memory for %d answers", r->n);
    a->hash = more;
    a->n = r->n;
    for (int32_t i = 0; i < r->n; i++) more[i] = r->one[i].problem[0] ? 0 : r->one[i].hash | 1;
    return HONE_OK;
}

static void compare_answers(answers *a, const hn_load_run *r)
{
    for (int32_t i = 0; i < r->n && i < a->n; i++) {
        if (!a->hash[i] || r->one[i].problem[0]) continue;
        a->n_compared++;
        a->n_other += a->hash[i] != (r->one[i].hash | 1);
    }
}

/* What a first text takes when nobody else asks: of prompts that no load has, as a server may still know those. */
static hone_status measure_alone(cell *c, const hn_load_params *load, hone_error *err)
{
    hn_load_params p = *load;
    hn_load_run r;
    p.seed = hn_rand64(load->seed, UINT64_MAX);
    p.rate = 0;
    p.n_clients = 1;
    p.n_requests = ALONE_REQUESTS;
    if (p.n_gen > ALONE_TOKENS) p.n_gen = ALONE_TOKENS;
    hone_status st = hn_load(&r, &p, err);
    for (int32_t i = 0; st == HONE_OK && i < r.n; i++)
        if (!r.one[i].problem[0] && !add_ns(&c->alone, r.one[i].first))
            st = HN_FAIL(err, HONE_E_NOMEM, "no memory for %d requests", r.n);
    if (st == HONE_OK) count_failed(c, &r);
    hn_load_free(&r);
    return st;
}

/* One size in one round. Both servers get the same prompts, and no other size or round does: what a server still knows
 * of them would be time that is not measured. */
static hone_status measure(load_bench *b, int side, int k, int round, bool first, hone_error *err)
{
    cell *c = &b->cell[side][k];
    hn_load_params p = load_of(b, side, k);
    hn_load_run r;
    p.seed = hn_rand64(hn_opts_u64(b->cli->opts, "prompt-seed"), (uint64_t)(round * MOST_SIZES + k));
    hone_status st = measure_alone(c, &p, err);
    if (st != HONE_OK) return st;
    st = hn_load(&r, &p, err);
    if (r.lie[0]) snprintf(b->lie, sizeof b->lie, "%s", r.lie);
    if (st == HONE_OK) st = take(c, &r, err);
    if (st == HONE_OK) hn_load_keep(&c->proof, &r, p.seed);
    if (st == HONE_OK && b->n_url > 1 && first) st = keep_answers(&b->said[k], &r, err);
    else if (st == HONE_OK && b->n_url > 1) compare_answers(&b->said[k], &r);
    hn_load_free(&r);
    return st;
}

static hone_status prove(load_bench *b, int side, int k, hone_error *err)
{
    cell *c = &b->cell[side][k];
    const hn_load_params p = load_of(b, side, k);
    return hn_load_prove(&c->proof, &p, &c->n_changed, &c->n_failed, err);
}

/* All rounds, then the proofs. */
static hone_status measure_all(load_bench *b, hone_error *err)
{
    const int n_round = hn_opts_i32(b->cli->opts, "rounds"), each = b->n_size * b->n_url;
    hone_status st = HONE_OK;
    char label[64];
    for (int at = 0; st == HONE_OK && at < (n_round + 1) * each; at++) {
        int r = at / each, k = at % each / b->n_url, i = at % b->n_url;
        bool first = i == 0;
        if (b->n_url > 1 && r % 2) i = 1 - i; /* who is first changes */
        if (r >= n_round) snprintf(label, sizeof label, "the same again, alone");
        else if (b->size[k]) snprintf(label, sizeof label, "round %d of %d, %d clients", r + 1, n_round, b->size[k]);
        else snprintf(label, sizeof label, "round %d of %d", r + 1, n_round);
        hn_progress_fn(label, (uint64_t)at, (uint64_t)((n_round + 1) * each));
        st = r < n_round ? measure(b, i, k, r, first, err) : prove(b, i, k, err);
    }
    hn_progress_end();
    return st;
}

static hn_stats stats_of(const times *t)
{
    hn_stats s;
    if (!t->n || hn_stats_of(&s, t->ms, t->n, NULL) != HONE_OK)
        s = (hn_stats){ .median = NAN, .p90 = NAN, .p99 = NAN, .max = NAN };
    return s;
}

/* What is shown of a row's times. With clients that ask again, first texts are those behind each client's first
 * request: a burst of all clients at one moment is the beginning of a load, not the load. */
typedef struct waits {
    hn_stats first, gap;
    double alone; /* median of first texts when nobody else asks, ms */
} waits;

static waits waits_of(const cell *c)
{
    return (waits){ .first = stats_of(c->later.n ? &c->later : &c->first),
                    .gap = stats_of(&c->gap),
                    .alone = stats_of(&c->alone).median };
}

static json_t *ms_json(const times *t)
{
    const hn_stats s = stats_of(t);
    if (!t->n) return json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "median", hn_lab_num(s.median), "p90", hn_lab_num(s.p90), "p99",
                     hn_lab_num(s.p99), "max", hn_lab_num(s.max));
}

static json_t *times_json(const hn_stats *s, double one)
{
    return json_pack("{s:o, s:o, s:o}", "median", hn_lab_num(s->median / one), "p99", hn_lab_num(s->p99 / one), "max",
                     hn_lab_num(s->max / one));
}

static json_t *cell_json(const cell *c)
{
    hn_stats s;
    json_t *samples = json_array(), *o = json_object();
    for (int i = 0; i < c->n; i++) json_array_append_new(samples, hn_lab_num(c->rate[i]));
    if (hn_stats_of(&s, c->rate, (size_t)c->n, NULL) == HONE_OK) json_object_set_new(o, "tok_s", hn_lab_num(s.median));
    json_object_set_new(o, "samples", samples);
    const waits w = waits_of(c);
    json_object_set_new(o, "first_ms", ms_json(&c->first));
    json_object_set_new(o, "first_later_ms", ms_json(&c->later));
    json_object_set_new(o, "first_alone_ms", ms_json(&c->alone));
    json_object_set_new(o, "first_over_alone", times_json(&w.first, w.alone));
    json_object_set_new(o, "gap_ms", ms_json(&c->gap));
    json_object_set_new(o, "gap_over_median", times_json(&w.gap, w.gap.median));
    json_object_set_new(o, "slowest_first", hn_lab_num(c->slowest));
    json_object_set_new(o, "requests", json_integer(c->n_request));
    json_object_set_new(o, "failed", json_integer(c->n_failed));
    json_object_set_new(o, "answers_changed", json_integer(c->n_changed));
    json_object_set_new(o, "prompt_tokens", json_integer(c->n_prompt));
    json_object_set_new(o, "tokens", json_integer(c->n_token));
    return o;
}

/* Median of the rounds' ratios, with its interval from six rounds on. */
static double ratio_of(const cell *a, const cell *b, double ci[2])
{
    double x[MOST_ROUNDS];
    int n = 0;
    hn_stats s;
    ci[0] = ci[1] = NAN;
    for (int i = 0; i < a->n && i < b->n; i++)
        if (b->rate[i] > 0) x[n++] = a->rate[i] / b->rate[i];
    if (!n || hn_stats_of(&s, x, (size_t)n, NULL) != HONE_OK) return NAN;
    if (n >= 6) {
        ci[0] = s.ci95[0];
        ci[1] = s.ci95[1];
    }
    return s.median;
}

static int print_json(load_bench *b, bool valid)
{
    json_t *o = hn_json_new("hone.bench.serve/1"), *rows = json_array();
    for (int k = 0; k < b->n_size; k++) {
        json_t *row = json_object();
        json_object_set_new(row, "clients", b->size[k] ? json_integer(b->size[k]) : json_null());
        if (!b->size[k]) json_object_set_new(row, "rate", hn_lab_num((double)hn_opts_f32(b->cli->opts, "rate")));
        json_object_set_new(row, "server", cell_json(&b->cell[0][k]));
        if (b->n_url > 1) {
            double ci[2], x = ratio_of(&b->cell[0][k], &b->cell[1][k], ci);
            json_object_set_new(row, "against", cell_json(&b->cell[1][k]));
            json_object_set_new(row, "ratio", hn_lab_num(x));
            json_object_set_new(row, "ratio_ci95", json_pack("[o, o]", hn_lab_num(ci[0]), hn_lab_num(ci[1])));
            json_object_set_new(row, "answers_compared", json_integer(b->said[k].n_compared));
            json_object_set_new(row, "answers_other", json_integer(b->said[k].n_other));
        }
        json_array_append_new(rows, row);
    }
    json_object_set_new(o, "url", hn_lab_str(b->url[0]));
    json_object_set_new(o, "against", b->n_url > 1 ? hn_lab_str(b->url[1]) : json_null());
    json_object_set_new(o, "valid", json_boolean(valid));
    json_object_set_new(o, "rows", rows);
    return hn_json_print(o);
}

/* p99 where there are enough of them, else the greatest. */
static double tail_of(const hn_stats *s) { return isfinite(s->p99) ? s->p99 : s->max; }

static void print_row(const char *name, int32_t clients, const cell *c)
{
    char many[16] = "open";
    hn_stats rate;
    if (hn_stats_of(&rate, c->rate, (size_t)c->n, NULL) != HONE_OK) return;
    if (clients) snprintf(many, sizeof many, "%d", clients);
    const waits w = waits_of(c);
    hn_out_printf("%7s  %-8s %9.1f  %9.1f %9.1f %6.2f %6.2f  %8.2f %8.2f %6.2f  %6.2f  %6d %8d\n", many, name,
                  rate.median, w.first.median, w.first.max, w.first.median / w.alone, tail_of(&w.first) / w.alone,
                  w.gap.median, w.gap.max, tail_of(&w.gap) / w.gap.median, c->slowest, c->n_failed, c->n_changed);
}

static void print_table(load_bench *b)
{
    hn_out_printf("server   %s%s%s\n", b->url[0], b->n_url > 1 ? "\nagainst  " : "", b->n_url > 1 ? b->url[1] : "");
    hn_out_printf("load     %d words, %d tokens an answer, %d rounds%s", hn_opts_i32(b->cli->opts, "words"),
                  hn_opts_i32(b->cli->opts, "n-gen"), hn_opts_i32(b->cli->opts, "rounds"),
                  b->n_url > 1 ? ", in turn" : "");
    if (!b->size[0]) hn_out_printf(", %g requests a second", (double)hn_opts_f32(b->cli->opts, "rate"));
    hn_out_printf("\n\n");
    hn_out_printf("clients            tok/s   first ms       max  alone    p99    gap ms      max    p99  unfair  "
                  "failed  changed\n");
    for (int k = 0; k < b->n_size; k++) {
        print_row("server", b->size[k], &b->cell[0][k]);
        if (b->n_url < 2) continue;
        print_row("against", b->size[k], &b->cell[1][k]);
        double ci[2], x = ratio_of(&b->cell[0][k], &b->cell[1][k], ci);
        if (isnan(ci[0])) hn_out_printf("%7s  ratio    %9.3f\n", "", x);
        else hn_out_printf("%7s  ratio    %9.3f  %.3f to %.3f (95 %%)\n", "", x, ci[0], ci[1]);
    }
}

/* A server that failed, or whose answers depend on its load, has no rate to be proud of. Only the first is judged. */
static bool judge(load_bench *b)
{
    bool valid = !b->lie[0];
    if (!valid) hn_cli_note("%s", b->lie);
    for (int side = 0; side < b->n_url; side++) {
        int failed = 0, changed = 0;
        const char *first = "";
        for (int k = 0; k < b->n_size; k++) {
            failed += b->cell[side][k].n_failed;
            if (!first[0]) first = b->cell[side][k].problem;
            changed += b->cell[side][k].n_changed;
        }
        if (!failed && !changed) continue;
        if (side == 0) valid = false;
        hn_cli_note("%s: %d requests failed%s%s%s, %d answers were others when asked for alone", b->url[side], failed,
                    first[0] ? " (the first: " : "", first, first[0] ? ")" : "", changed);
    }
    return valid;
}

/* Other numerics may answer otherwise: no fault of either, but their rates are then of different work. */
static void say_others(const load_bench *b)
{
    int n = 0, other = 0;
    for (int k = 0; k < b->n_size; k++) {
        n += b->said[k].n_compared;
        other += b->said[k].n_other;
    }
    if (other)
        hn_cli_note("%d of %d answers of %s were others than those of %s: what is compared is not the same work", other,
                    n, b->url[1], b->url[0]);
}

static int run(const hn_cli *cli)
{
    static load_bench b; /* large */
    hone_error err;
    b = (load_bench){ .cli = cli, .url = { hn_opts_str(cli->opts, "url"), hn_opts_str(cli->opts, "against") } };
    b.n_url = b.url[1] ? 2 : 1;
    int rc = read_sizes(&b);
    if (!rc && measure_all(&b, &err) != HONE_OK) rc = hn_cli_fail(&err);
    if (!rc) {
        bool valid = judge(&b);
        say_others(&b);
        if (cli->json) rc = print_json(&b, valid);
        else print_table(&b);
        if (!rc && !valid) rc = hn_cli_error(HN_EXIT_FAILURE, "invalid result: see the notes above");
    }
    for (int k = 0; k < MOST_SIZES; k++) free(b.said[k].hash);
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < MOST_SIZES; k++) {
            const cell *c = &b.cell[side][k];
            free(c->first.ms);
            free(c->later.ms);
            free(c->alone.ms);
            free(c->gap.ms);
        }
    return rc;
}

const hn_command hn_command_bench_serve = {
    .name = "bench serve",
    .summary = "Measure a server with many clients, alone or beside another",
    .groups = groups,
    .examples = "hone bench serve --url http://127.0.0.1:8080\n"
                "hone bench serve --url http://127.0.0.1:8080 --against http://127.0.0.1:8081 --clients 1,16 -r 6\n",
    .run = run,
};
