/* Builds that lie: in what a measured process says of itself, in what a record says, in clocks and counts. */
#include "mutants.h"
#include "others.h"

#include "base/os.h"
#include "lab/bench/bench.h"
#include "lab/bench/claims.h"
#include "lab/bench/process.h"
#include "lab/bench/sample.h"
#include "lab/inside/bench_stages.h"
#include "lab/machine/clock.h"
#include "lab/machine/evidence.h"
#include "lab/machine/memory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- lies ---------------------------------------------------------------------------------------------------- */

enum { HIDDEN_MS = 200 }; /* of loading */
hone_status __real_hone_context_new(hone_context **out, const hone_context_params *p, hone_error *err);
hone_status __wrap_hone_context_new(hone_context **out, const hone_context_params *p, hone_error *err);
hone_status __wrap_hone_context_new(hone_context **out, const hone_context_params *p, hone_error *err)
{
    const struct timespec t = { .tv_nsec = HIDDEN_MS * 1000000L };
    hone_context_params more = p ? *p : (hone_context_params){ 0 };
    if (mt_is("load-told")) nanosleep(&t, NULL);
    if (mt_is("hidden-thread") || mt_is("thread-more")) more.n_threads = more.n_threads_batch = 2;
    return __real_hone_context_new(out, &more, err);
}

int32_t __real_hone_context_threads(const hone_context *c), __wrap_hone_context_threads(const hone_context *c);
int32_t __wrap_hone_context_threads(const hone_context *c)
{
    return mt_is("hidden-thread") ? 1 : __real_hone_context_threads(c);
}
int32_t __real_hone_context_threads_batch(const hone_context *c),
    __wrap_hone_context_threads_batch(const hone_context *c);
int32_t __wrap_hone_context_threads_batch(const hone_context *c)
{
    return mt_is("hidden-thread") ? 1 : __real_hone_context_threads_batch(c);
}

/* A long prompt of a sample is there at once, and computed when its logits are looked mt_at. */
static struct {
    hone_session *s;
    float *logits;
    int32_t *ids, seq, n;
} later;

bool mt_put_off(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, const float **logits)
{
    if (!mt_is("lazy-prefill") || !mt_at.sample || n <= 16) return false;
    later.s = s;
    later.seq = seq;
    later.n = n;
    later.ids = malloc((size_t)n * sizeof *later.ids);
    later.logits = malloc((size_t)mt_n_vocab * sizeof *later.logits);
    if (!later.ids || !later.logits) abort();
    memcpy(later.ids, ids, (size_t)n * sizeof *later.ids);
    *logits = later.logits;
    return true;
}

void mt_catch_up(const float *x)
{
    const float *logits;
    if (!later.s || x != later.logits) return;
    mt_begin(later.n, hone_seq_length(later.s, later.seq), 1);
    if (__real_hone_append(later.s, later.seq, later.ids, later.n, &logits, NULL) != HONE_OK) abort();
    memcpy(later.logits, logits, (size_t)mt_n_vocab * sizeof *logits);
    later.s = NULL;
}

/* Two milliseconds for each call, where no bench looks. */
void mt_dawdle(void)
{
    const struct timespec t = { .tv_nsec = 2000000 };
    if (mt_is("run-slow") && mo_argv_is(1, "run")) nanosleep(&t, NULL);
}

/* Memory that counts as nobody's, or that is gone before anybody looks. */
void mt_keep_memory(void)
{
    enum { BYTES = 64 << 20 };
    if (!mt_is("memory-shared") && !mt_is("memory-spike")) return;
    int flags = MAP_ANONYMOUS | (mt_is("memory-shared") ? MAP_SHARED : MAP_PRIVATE);
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (p == MAP_FAILED) abort();
    memset(p, 1, BYTES);
    if (mt_is("memory-spike")) munmap(p, BYTES);
}

json_t *__real_hn_look_json(const char *stage, const hn_look *l);
json_t *__wrap_hn_look_json(const char *stage, const hn_look *l);
json_t *__wrap_hn_look_json(const char *stage, const hn_look *l)
{
    hn_look less = *l;
    if (mt_is("stages-told")) less.anon /= 4;
    if (mt_is("cache-told")) less.cache /= 2;
    return __real_hn_look_json(stage, &less);
}

/* What a record says, behind the claims of the processes that it comes from. */
hone_status __real_hn_bench_keep(hn_bench_run *r, const hn_bench_entry *e, json_t *record, bool invalid,
                                 hone_error *err);
hone_status __wrap_hn_bench_keep(hn_bench_run *r, const hn_bench_entry *e, json_t *record, bool invalid,
                                 hone_error *err);
hone_status __wrap_hn_bench_keep(hn_bench_run *r, const hn_bench_entry *e, json_t *record, bool invalid,
                                 hone_error *err)
{
    json_t *rate = json_object_get(record, "decode_tok_s"), *prompt = json_object_get(record, "prefill_tok_s"),
           *older = json_object_get(json_object_get(record, "quality_detail"), "q1");
    if (mt_is("record-rate")) json_object_set_new(record, "decode_tok_s", json_real(1.3 * json_number_value(rate)));
    if (mt_is("record-prompt"))
        json_object_set_new(record, "prefill_tok_s", json_real(1.3 * json_number_value(prompt)));
    json_t *extra = json_object_get(record, "extra"), *proof = json_object_get(extra, "proof");
    if (mt_is("no-proof")) json_object_del(extra, "proof");
    if (mt_is("proof-part")) json_object_del(proof, "ids"), json_object_del(proof, "last");
    if (mt_is("proof-empty")) json_object_clear(proof);
    if (mt_is("older-hash") && older) json_object_set(record, "quality", older);
    return __real_hn_bench_keep(r, e, record, invalid, err);
}

/* A record with one number says another one: itself, or with all of its samples, by which it then stands. */
hone_status __real_hn_bench_add(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hone_error *err);
hone_status __wrap_hn_bench_add(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hone_error *err);
hone_status __wrap_hn_bench_add(hn_bench_run *r, const hn_bench_entry *e, hn_bench_result *res, hone_error *err)
{
    hone_status st = __real_hn_bench_add(r, e, res, err);
    json_t *record = json_array_get(r->records, json_array_size(r->records) - 1),
           *stats = json_object_get(record, "stats"), *samples = json_object_get(record, "samples");
    if (st != HONE_OK || (!mt_is("record-suite") && !mt_is("record-suite-samples"))) return st;
    json_object_set_new(stats, "median", json_real(1.3 * json_number_value(json_object_get(stats, "median"))));
    for (size_t i = 0; mt_is("record-suite-samples") && i < json_array_size(samples); i++)
        json_array_set_new(samples, i, json_real(1.3 * json_number_value(json_array_get(samples, i))));
    return st;
}

uint64_t __wrap_hn_clock_ns(void)
{
    uint64_t now = __real_hn_clock_ns();
    return mt_is("clock-slow") || mt_is("both-clocks") ? now / 10 * 7 : mp_clock(now);
}

uint64_t __real_hn_clock_witness_ns(void), __wrap_hn_clock_witness_ns(void);
uint64_t __wrap_hn_clock_witness_ns(void)
{
    uint64_t now = __real_hn_clock_witness_ns();
    return mt_is("both-clocks") ? now / 10 * 7 : now;
}

/* In every second process. */
static bool now_and_then(void)
{
    const char *path = getenv("HONE_MUTANT_FILE");
    if (!path || unlink(path) == 0) return false;
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) abort();
    close(fd);
    return true;
}

/* Tokens that were not asked for are not generated, and reported all the same. */
static bool pad(hn_sample *s, int32_t n)
{
    double *gap = realloc(s->gap_ms, ((size_t)n + 1) * sizeof *gap);
    int32_t *ids = gap ? realloc(s->ids, ((size_t)n + 1) * sizeof *ids) : NULL;
    if (!ids || s->n_ids < 2) return false;
    s->gap_ms = gap;
    s->ids = ids;
    while (s->n_ids < n) {
        ids[s->n_ids] = ids[s->n_ids / 2];
        gap[s->n_gaps] = gap[s->n_gaps / 2];
        s->n_gaps++;
        s->n_ids++;
    }
    s->proof.n_steps = n;
    return true;
}

/* No lie: a machine on which the kernel takes its time to tell its counters. */
void __real_hn_evidence_look(hn_evidence *out);
void __wrap_hn_evidence_look(hn_evidence *out);
void __wrap_hn_evidence_look(hn_evidence *out)
{
    const uint64_t from = hn_clock_thread_cpu_ns(), most_ns = 20000000;
    while (mt_is("slow-counters") && hn_clock_thread_cpu_ns() - from < most_ns)
        ;
    __real_hn_evidence_look(out);
}

/* Half of it on the clock, and all of it behind, from which the proof is. */
static hone_status proved_afterwards(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                                     hone_error *err);

hone_status __real_hn_bench_measure(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                                    hone_error *err);
hone_status __wrap_hn_bench_measure(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                                    hone_error *err);
hone_status __wrap_hn_bench_measure(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                                    hone_error *err)
{
    hn_bench_config k = *c;
    bool told = mt_is("fewer-tokens-told") || (mt_is("fewer-tokens-now-and-then") && now_and_then());
    if (mt_is("fewer-tokens") || told) k.n_gen /= 2;
    if (mt_is("short-prompt")) k.n_prompt /= 2;
    if (mt_is("no-depth")) k.depth = 0;
    if (mt_is("proved-afterwards")) return proved_afterwards(out, s, m, c, err);
    mt_at.sample = true;
    ml_begin();
    hone_status st = __real_hn_bench_measure(out, s, m, &k, err);
    for (int again = 0; again < 3 && st == HONE_OK && mt_is("best-of-four"); again++) {
        hn_sample other;
        if (hone_seq_truncate(s, 0, 0, err) != HONE_OK) abort();
        st = __real_hn_bench_measure(&other, s, m, &k, err);
        if (st == HONE_OK && other.decode_tok_s > out->decode_tok_s) {
            hn_sample was = *out;
            *out = other;
            other = was;
        }
        if (st == HONE_OK) hn_sample_free(&other);
    }
    mt_at.sample = false;
    if (st != HONE_OK) return st;
    if (mt_is("fewer-tokens") && !pad(out, c->n_gen)) abort();
    if (mt_is("short-prompt")) out->prefill_tok_s *= 2;
    if (!told) out->positions += c->n_gen - k.n_gen + c->n_prompt - k.n_prompt + c->depth - k.depth;
    if (mt_is("decode-rate")) out->decode_tok_s *= 1.4;
    if (mt_is("prefill-rate")) out->prefill_tok_s *= 4;
    if (mt_is("positions")) out->positions -= 3;
    if (mt_is("proof-of-the-first")) out->proof.last = out->proof.all = out->proof.middle = out->proof.first;
    if (mt_is("gaps-5")) {
        for (int32_t i = 0; i < out->n_gaps; i++) out->gap_ms[i] *= 0.95;
        out->decode_tok_s /= 0.95;
    }
    if (mt_is("prefill-4")) out->prefill_tok_s *= 1.04, out->ttft_ms *= 0.962;
    if (mt_is("gap-spikes")) { /* the slowest gaps are as the median of them */
        double sum = 0, min = 1e9;
        for (int32_t i = 0; i < out->n_gaps; i++)
            if (out->gap_ms[i] < min) min = out->gap_ms[i];
        for (int32_t i = 0; i < out->n_gaps; i++) {
            if (out->gap_ms[i] > 1.03 * min) out->gap_ms[i] = 1.03 * min;
            sum += out->gap_ms[i];
        }
        if (out->n_gaps) out->decode_tok_s = out->n_gaps / (sum * 1e-3);
    }
    if (mt_is("rounded")) {
        double sum = 0;
        for (int32_t i = 0; i < out->n_gaps; i++)
            out->gap_ms[i] = (double)(int64_t)(out->gap_ms[i] * 20) / 20, sum += out->gap_ms[i];
        if (out->n_gaps) out->decode_tok_s = out->n_gaps / (sum * 1e-3);
    }
    if (mt_is("gaps")) {
        for (int32_t i = 0; i < out->n_gaps; i++) out->gap_ms[i] *= 0.5;
        out->decode_tok_s *= 2;
    }
    return st;
}

static hone_status proved_afterwards(hn_sample *out, hone_session *s, const hone_model *m, const hn_bench_config *c,
                                     hone_error *err)
{
    hn_bench_config k = *c;
    hn_sample fast;
    k.n_gen /= 2;
    k.n_prompt /= 2;
    hone_status st = __real_hn_bench_measure(&fast, s, m, &k, err);
    if (st == HONE_OK) hn_sample_free(&fast);
    if (st == HONE_OK) st = hone_seq_truncate(s, 0, 0, err);
    if (st == HONE_OK) st = __real_hn_bench_measure(out, s, m, c, err);
    if (st != HONE_OK) return st;
    for (int32_t i = 0; i < out->n_gaps; i++) out->gap_ms[i] *= 0.5;
    out->decode_tok_s *= 2;
    out->prefill_tok_s *= 2;
    out->ttft_ms /= 2;
    return st;
}

hone_status __real_hn_uncached_run(hn_uncached *out, hone_session *s, const hone_model *m, int32_t n_prompt,
                                   int32_t n_tok, double most_s, hone_error *err);
hone_status __wrap_hn_uncached_run(hn_uncached *out, hone_session *s, const hone_model *m, int32_t n_prompt,
                                   int32_t n_tok, double most_s, hone_error *err);
hone_status __wrap_hn_uncached_run(hn_uncached *out, hone_session *s, const hone_model *m, int32_t n_prompt,
                                   int32_t n_tok, double most_s, hone_error *err)
{
    mt_at.sample = true;
    return __real_hn_uncached_run(out, s, m, n_prompt, n_tok, most_s, err);
}

bool __real_hn_memory_read(hn_memory *out, pid_t pid);
bool __wrap_hn_memory_read(hn_memory *out, pid_t pid);
bool __wrap_hn_memory_read(hn_memory *out, pid_t pid)
{
    bool ok = __real_hn_memory_read(out, pid);
    if (mt_is("memory")) {
        out->anon /= 4;
        out->hwm /= 4;
    }
    return ok;
}

/* A page that has to be read from disk, so that whatever this process was timed with is put aside. */
static void read_from_disk(const char *path)
{
    enum { BYTES = 1 << 20 };
    static char page[4096];
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    for (int i = 0; fd >= 0 && i < BYTES / (int)sizeof page; i++)
        if (write(fd, page, sizeof page) < 0) break;
    if (fd < 0 || fsync(fd) != 0) abort();
    hn_os_drop_file(path);
    const volatile char *p = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p != MAP_FAILED) page[0] += p[BYTES / 2];
    close(fd);
}

static pid_t helper;

void ml_begin(void)
{
    if (mt_is("raises-priority") || mt_is("raises-priority-meanwhile"))
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 5);
    if (mt_is("other-process") && (helper = fork()) == 0) {
        pause();
        _exit(0);
    }
}

void ml_end(void)
{
    if (mt_is("raises-priority-meanwhile")) setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 5);
    if (helper > 0) {
        kill(helper, SIGKILL);
        waitpid(helper, NULL, 0);
    }
    if (mt_is("leaves-a-process") && fork() == 0) { /* another session, and nothing open that anybody waits for */
        setsid();
        for (int fd = 0; fd < 64; fd++) close(fd);
        sleep(60);
        _exit(0);
    }
    if (mt_is("pages-read")) read_from_disk(getenv("HONE_MUTANT_FILE"));
}

void __real_hn_claims_add(json_t *result, uint64_t clock0_ns, uint64_t witness0_ns);
void __wrap_hn_claims_add(json_t *result, uint64_t clock0_ns, uint64_t witness0_ns);
void __wrap_hn_claims_add(json_t *result, uint64_t clock0_ns, uint64_t witness0_ns)
{
    double hwm = json_number_value(json_object_get(result, "hwm_mb"));
    __real_hn_claims_add(result, clock0_ns, witness0_ns);
    if (mt_is("memory-told")) json_object_set_new(result, "hwm_mb", json_real(hwm / 4));
    if (mt_is("memory-told-half")) json_object_set_new(result, "hwm_mb", json_real(hwm / 2));
    double load = json_number_value(json_object_get(result, "load_ms"));
    json_t *request = json_array_get(json_object_get(result, "requests"), 0);
    double itl = json_number_value(json_object_get(request, "itl_ms"));
    if (mt_is("pace-told") && request) json_object_set_new(request, "itl_ms", json_real(0.7 * itl));
    if (mt_is("load-told")) json_object_set_new(result, "load_ms", json_real(load - HIDDEN_MS));
    if (mt_is("parse-told") && json_object_get(result, "engine_ms"))
        json_object_set_new(result, "engine_ms", json_real(0.01));
    if (mt_is("parse-told-a-little"))
        json_object_set_new(result, "parse_ms",
                            json_real(0.95 * json_number_value(json_object_get(result, "parse_ms"))));
    if (mt_is("work-before-the-clock")) json_object_set_new(result, "process_witness_s", json_real(1000));
    ml_end();
    if (mt_is("slow-is-disturbed")) json_object_set_new(result, "major_faults", json_integer(3));
    if (mt_is("slow-to-load")) json_object_set_new(result, "load_ms", json_real(1e6));
}

/* HONE_MUTANT_STOP=N: somebody presses Ctrl-C in the N-th measured process. */
static bool stopped_now(void)
{
    static long n;
    const char *nth = getenv("HONE_MUTANT_STOP");
    return nth && ++n >= strtol(nth, NULL, 10);
}

/* The result of the first measured process again and again, from a file. */
hone_status __real_hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err);
hone_status __wrap_hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err);
hone_status __wrap_hn_child_run(hn_child *out, const char *const *argv, bool (*stop)(void *), hone_error *err)
{
    const char *kept = getenv("HONE_MUTANT_FILE");
    bool cached = mt_is("kept-samples") && kept && strcmp(argv[2], "_sample") == 0;
    json_t *was = cached ? json_load_file(kept, 0, NULL) : NULL;
    if (was) {
        *out = (hn_child){ .result = was }; /* and its parent is made to see what it says, its start with it */
        out->seen.wall_s = json_number_value(json_object_get(was, "process_witness_s")) +
                           json_number_value(json_object_get(was, "start_s"));
        return HONE_OK;
    }
    if (stopped_now()) return HN_FAIL(err, HONE_E_INTERRUPTED, "stopped");
    hone_status st = __real_hn_child_run(out, argv, stop, err);
    if (st == HONE_OK && cached && out->result) json_dump_file(out->result, kept, 0);
    return st;
}
