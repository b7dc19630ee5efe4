/* The log of hone train: JSON lines of schema hone.train/1. The first is of kind "run" and says what is
 * trained; then a "step" each, "resume" where training went on, "end". A line is written as soon
 * as it is there; a run that was killed is continued without a step standing twice. */
#include "base/json_tree.h"
#include "base/os.h"
#include "cli/train/train_command.h"
#include "lab/machine/clock.h"
#include "lab/machine/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

json_t *hn_train_real(double x)
{
    char digits[40];
    if (!isfinite(x)) return json_null();
    snprintf(digits, sizeof digits, "%.9g", x);
    return json_real(strtod(digits, NULL));
}

static json_t *data_json(const hone_train_data *d)
{
    char hash[20];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)d->hash);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "files",
                     (json_int_t)d->n_file, "passed", (json_int_t)d->n_passed, "rejected", (json_int_t)d->n_rejected,
                     "records", (json_int_t)d->n_line, "bad", (json_int_t)d->n_bad, "samples", (json_int_t)d->n_sample,
                     "cut", (json_int_t)d->n_cut, "split", (json_int_t)d->n_split, "empty", (json_int_t)d->n_empty,
                     "tokens", (json_int_t)d->n_tok, "targets", (json_int_t)d->n_target, "hash", hash, "length",
                     json_pack("{s:i, s:i, s:i, s:i}", "min", (int)d->min_len, "median", (int)d->median_len, "p95",
                               (int)d->p95_len, "max", (int)d->max_len));
}

json_t *hn_train_settings_json(const hn_train_job *j)
{
    static const char *const masks[] = { "none", "prompt", "last" }, *const schedules[] = { "constant", "linear",
                                                                                            "cosine", "wsd" };
    const hone_train_params *p = &j->p;
    const hone_train_info *i = &j->info;
    json_t *o =
        json_pack("{s:s, s:i, s:i, s:i, s:b, s:s, s:I, s:I, s:s, s:b, s:b}", "method", p->full ? "full" : "lora", "seq",
                  (int)p->seq, "batch", (int)p->batch, "accumulate", (int)p->accumulate, "pack", (int)p->pack, "mask",
                  masks[p->mask], "steps", (json_int_t)i->steps, "warmup", (json_int_t)i->warmup, "schedule",
                  schedules[p->schedule], "bf16", (int)p->bf16, "recompute", (int)p->recompute);
    json_object_set_new(o, "seed", json_integer((json_int_t)p->seed));
    json_object_set_new(o, "epochs", p->steps ? json_null() : hn_train_real(p->epochs));
    json_object_set_new(o, "val_share", hn_train_real(p->n_val_data ? 0 : p->val_share));
    json_object_set_new(o, "eval_every", json_integer((json_int_t)p->eval_every));
    json_object_set_new(
        o, "early_stop",
        p->patience ? json_pack("{s:i, s:o}", "patience", (int)p->patience, "min_delta", hn_train_real(p->min_delta))
                    : json_null());
    const char *format = hn_opts_str(j->cli->opts, "chat-template");
    json_object_set_new(o, "chat_template", format ? hn_json_str(format, strlen(format)) : json_null());
    json_object_set_new(o, "split", json_string(hn_opts_str(j->cli->opts, "split")));
    json_object_set_new(o, "special", json_boolean(p->special));
    const struct {
        const char *name;
        double x;
    } reals[] = { { "lr", p->lr },       { "min_lr", i->min_lr },  { "beta1", p->beta1 },
                  { "beta2", p->beta2 }, { "eps", p->eps },        { "weight_decay", p->weight_decay },
                  { "clip", p->clip },   { "dropout", p->dropout } };
    for (size_t k = 0; k < sizeof reals / sizeof *reals; k++)
        json_object_set_new(o, reals[k].name, hn_train_real(reals[k].x));
    if (!p->full) {
        json_object_set_new(o, "targets", hn_json_str(p->targets, strlen(p->targets)));
        json_object_set_new(o, "rank", json_integer(p->rank));
        json_object_set_new(o, "alpha", hn_train_real(p->alpha));
        json_object_set_new(o, "rslora", json_boolean(p->rslora));
        json_object_set_new(o, "layers", json_integer(p->n_layers));
    }
    return o;
}

/* ---- lines --------------------------------------------------------------------------------------- */

/* Takes o. 0 or the exit code. */
static int put(hn_train_job *j, json_t *o)
{
    char *line = o ? hn_json_text(o, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(o);
    if (!line) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for the log");
    errno = 0;
    bool ok = fprintf(j->log_file, "%s\n", line) > 0 && fflush(j->log_file) == 0;
    int e = errno;
    free(line);
    return ok ? 0
              : hn_cli_error(HN_EXIT_FAILURE, "%s: cannot write the log: %s; checkpoints are in %s",
                             HN_ESC(j->log, strlen(j->log)), e ? strerror(e) : "write failed",
                             HN_ESC(j->folder, strlen(j->folder)));
}

static json_t *line_of(const char *kind)
{
    json_t *o = hn_json_new(HN_TRAIN_SCHEMA);
    json_object_set_new(o, "kind", json_string(kind));
    return o;
}

static json_t *with_time(const char *kind)
{
    char ts[40];
    json_t *o = line_of(kind);
    hn_utc_now(ts, sizeof ts);
    json_object_set_new(o, "ts", json_string(ts));
    return o;
}

static json_t *names_json(const char *const *path, int32_t n)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < n; i++) json_array_append_new(list, hn_json_str(path[i], strlen(path[i])));
    return list;
}

static json_t *run_json(const hn_train_job *j)
{
    char hash[17];
    const char *base = (j->base ? j->base : hn_opts_str(j->cli->opts, "model"));
    hone_model_info info;
    hone_model_get_info(j->m, &info);
    snprintf(hash, sizeof hash, "%.16s", j->info.base_identity);
    json_t *o = with_time("run");
    json_object_set_new(o, "base",
                        json_pack("{s:o, s:s, s:s, s:I, s:s, s:s}", "file", hn_json_str(base, strlen(base)), "arch",
                                  info.arch, "type", info.type, "parameters", (json_int_t)info.n_params, "hash", hash,
                                  "identity", j->info.base_identity));
    json_object_set_new(o, "output", hn_json_str(j->out, strlen(j->out)));
    json_object_set_new(o, "settings", hn_train_settings_json(j));
    json_object_set_new(o, "trainable", json_integer((json_int_t)j->info.n_trainable));
    json_object_set_new(o, "files",
                        json_pack("{s:o, s:o}", "data", names_json(j->p.data, j->p.n_data), "validation",
                                  names_json(j->p.val_data, j->p.n_val_data)));
    json_object_set_new(o, "data", data_json(&j->info.train));
    json_object_set_new(o, "validation", j->info.val.n_sample ? data_json(&j->info.val) : json_null());
    json_object_set_new(o, "machine",
                        json_pack("{s:s, s:i, s:s}", "cpu", hone_context_cpu(j->ctx), "threads",
                                  (int)hone_context_threads_batch(j->ctx), "hone", hone_version()));
    return o;
}

/* ---- the file --------------------------------------------------------------------------------------- */

/* Of an old log, what stays: its run, and steps up to the one that training goes on from. *memory: there was none to
 * tell. */
static bool stays(const char *line, size_t n, int64_t step, bool *memory)
{
    json_t *o;
    *memory = hn_json_tree(&o, line, n, NULL, "log", NULL) == HONE_E_NOMEM;
    const char *kind = json_string_value(json_object_get(o, "kind"));
    bool is_run = kind && strcmp(kind, "run") == 0, is_end = kind && strcmp(kind, "end") == 0;
    json_t *at = json_object_get(o, "step");
    bool keep = is_run || (kind && !is_end && json_is_integer(at) && json_integer_value(at) <= (json_int_t)step);
    json_decref(o);
    return keep;
}

/* Replaces the old log by what stays of it; of a new run, by nothing. */
static int cut_log(hn_train_job *j)
{
    hn_os_text kept;
    char *old, *text = NULL;
    size_t n, n_text;
    bool bad = false;
    hone_error err;
    if (!j->resumed) return hn_file_replace(j->log, "", 0, &err) == HONE_OK ? 0 : hn_cli_fail(&err);
    if (hn_read_all(j->log, &old, &n, &err) != HONE_OK) return hn_cli_fail(&err);
    FILE *f = hn_os_text_open(&kept) ? kept.f : NULL;
    for (const char *p = old, *end = old + n; f && p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);
        bool memory = false;
        if (nl && stays(p, len, j->resumed, &memory)) fprintf(f, "%.*s\n", (int)len, p);
        bad = bad || memory;
        p += len + (nl != NULL);
    }
    if (f) text = hn_os_text_close(&kept, &n_text);
    if (bad) {
        free(text);
        text = NULL;
    }
    int rc = text ? 0 : hn_cli_error(HN_EXIT_NOMEM, "out of memory for the log");
    if (!rc && hn_file_replace(j->log, text, n_text, &err) != HONE_OK) rc = hn_cli_fail(&err);
    free(text);
    free(old);
    return rc;
}

/* Whose file is it? A log is told by its first line; what is none is not ours to empty: -o NAME makes NAME.jsonl one,
 * which may be a file of something else. */
static int check_log(const hn_train_job *j, int fd)
{
    enum { MAX_LINE = 1 << 20 };
    char *line = malloc(MAX_LINE);
    if (!line) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for the log");
    ssize_t n = pread(fd, line, MAX_LINE, 0);
    const char *nl = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;
    json_t *o = NULL;
    hone_status st = n > 0 ? hn_json_tree(&o, line, nl ? (size_t)(nl - line) : (size_t)n, NULL, j->log, NULL) : HONE_OK;
    const char *schema = json_string_value(json_object_get(o, "schema"));
    bool ours = n <= 0 || (schema && strcmp(schema, HN_TRAIN_SCHEMA) == 0);
    json_decref(o);
    free(line);
    if (st == HONE_E_NOMEM) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for the log");
    if (ours) return 0;
    return hn_cli_error(
        HN_EXIT_USAGE,
        "%s would be the log, and is no log of hone train (its first line is no JSON of schema " HN_TRAIN_SCHEMA
        "); it is left as it is: name another file, --log FILE",
        HN_ESC(j->log, strlen(j->log)));
}

/* To append to; where a file system has no locks, without one. */
int hn_train_log_lock(hn_train_job *j)
{
    const char *name = HN_ESC(j->log, strlen(j->log));
    int fd = open(j->log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666), rc = 0;
    if (fd < 0) return hn_cli_error(HN_EXIT_FAILURE, "%s: %s", name, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        rc = hn_cli_error(HN_EXIT_FAILURE, "%s: another hone train is writing it; expected another output (-o)", name);
    else rc = check_log(j, fd);
    if (!rc && !(j->log_file = fdopen(fd, "a"))) rc = hn_cli_error(HN_EXIT_NOMEM, "out of memory for the log");
    if (rc) close(fd);
    return rc;
}

int hn_train_log_open(hn_train_job *j)
{
    struct stat s;
    FILE *old = j->log_file; /* locked until the new one is */
    int rc = 0;
    rc = cut_log(j);
    if (!rc) rc = hn_train_log_lock(j);
    if (j->log_file != old) fclose(old);
    if (!rc && fstat(fileno(j->log_file), &s) != 0)
        rc = hn_cli_error(HN_EXIT_FAILURE, "%s: %s", HN_ESC(j->log, strlen(j->log)), strerror(errno));
    if (!rc && s.st_size == 0) rc = put(j, run_json(j));
    if (rc || !j->resumed) return rc;
    json_t *o = with_time("resume");
    json_object_set_new(o, "step", json_integer((json_int_t)j->resumed));
    return put(j, o);
}

int hn_train_log_step(hn_train_job *j, const hone_train_step *s)
{
    hn_memory mem;
    json_t *o = line_of("step");
    double ms = s->data_ms + s->gradient_ms + s->optimizer_ms;
    json_object_set_new(o, "step", json_integer((json_int_t)s->step));
    json_object_set_new(o, "epoch", hn_train_real(s->epoch));
    json_object_set_new(o, "loss", hn_train_real(s->loss));
    json_object_set_new(o, "val_loss", s->eval ? hn_train_real(s->val_loss) : json_null());
    json_object_set_new(o, "lr", hn_train_real(s->lr));
    json_object_set_new(o, "grad_norm", hn_train_real(s->grad_norm));
    json_object_set_new(o, "n_tok", json_integer((json_int_t)s->n_tok));
    json_object_set_new(o, "n_target", json_integer((json_int_t)s->n_target));
    json_object_set_new(o, "tok_s", hn_json_num(ms > 0 ? 1e3 * (double)s->n_tok / ms : NAN));
    json_object_set_new(o, "ms",
                        json_pack("{s:o, s:o, s:o, s:o}", "data", hn_json_num(s->data_ms), "gradient",
                                  hn_json_num(s->gradient_ms), "optimizer", hn_json_num(s->optimizer_ms), "eval",
                                  s->eval ? hn_json_num(s->eval_ms) : json_null()));
    json_object_set_new(o, "peak_rss_mb", hn_memory_read(&mem, 0) ? hn_json_num((double)mem.hwm / 1e6) : json_null());
    if (s->skipped) json_object_set_new(o, "skipped", json_true());
    return put(j, o);
}

int hn_train_log_end(hn_train_job *j, const char *why)
{
    hone_train_status s;
    hone_trainer_get_status(j->t, &s);
    json_t *o = with_time("end");
    json_object_set_new(o, "why", json_string(why));
    json_object_set_new(o, "step", json_integer((json_int_t)s.step));
    json_object_set_new(o, "best_val", hn_train_real(s.best_val));
    json_object_set_new(o, "best_step", json_integer((json_int_t)s.best_step));
    json_object_set_new(o, "skipped", json_integer((json_int_t)s.n_skipped));
    return put(j, o);
}

void hn_train_log_close(hn_train_job *j)
{
    if (j->log_file) fclose(j->log_file);
    j->log_file = NULL;
}
