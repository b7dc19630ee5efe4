/* hone pull: a model comes from the hub, ollama's registry or any address. Owns the options, progress and what is told;
 * how it comes is hub's. */
#include "cli/cli.h"
#include "hub/pull.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

static const hn_opt pull_opts[] = {
    HN_OPT("type", NULL, STR, "TYPE",
           "this quantization of the repository (as NAME:TYPE), as in Q4_K_M; without, the "
           "one that fits this machine's memory"),
    HN_OPT("rev", "--revision", STR, "REV", "a branch, tag or commit of the repository (as NAME@REV; default: main)"),
    HN_OPT("checkpoint", NULL, FLAG, NULL,
           "the checkpoint of the repository, for hone convert, where it has a GGUF, too (default: the GGUF)"),
    HN_OPT("list", NULL, FLAG, NULL, "only show what the repository has, with sizes, and what would be taken"),
    HN_OPT("output", "-o", FILE, "FILE", "where a file from an address goes (default: hone's own folder of models)",
           .use = HN_USE_NONE),
    HN_OPT("offline", NULL, FLAG, NULL, "use no network: is it here? (HF_HUB_OFFLINE=1 means it too)"),
    HN_OPT_END,
};
static const hn_opt_group pull_group = { "What to pull", pull_opts };

static const hn_opt net_opts[] = {
    HN_OPT("connections", NULL, I32, "N", "pieces that come at a time", .def = "4", .min = 1, .max = HN_DOWNLOAD_CONNS),
    HN_OPT("piece", NULL, F32, "MIB", "size of a piece in MiB; an interruption costs at most this much of each",
           .def = "64", .min = 0.00390625, .max = 4096),
    HN_OPT("retries", NULL, I32, "N", "times in a row that something may fail before it is given up", .def = "6",
           .min = 1, .max = 1000),
    HN_OPT("retry-wait", NULL, F32, "S", "seconds before the first try again; then 2, 4, 8, 8 times as many",
           .def = "1", .min = 0.001, .max = 60),
    HN_OPT("timeout", NULL, I32, "S", "seconds without a byte after which a connection counts as lost", .def = "30",
           .min = 1, .max = 3600),
    HN_OPT("insecure", NULL, FLAG, NULL, "allow http without encryption beyond this machine"),
    HN_OPT_END,
};
static const hn_opt_group net_group = { "Network", net_opts };
static const hn_opt_group *const groups[] = { &pull_group, &net_group, NULL };

/* ---- progress ----------------------------------------------------------------------------------------- */

typedef struct meter {
    double begin, at, rate; /* ms, ms, bytes per second */
    uint64_t first, last;
    bool begun;
} meter;

static const char *amount(char dst[24], double bytes)
{
    if (bytes < 1e6) snprintf(dst, 24, "%.0f kB", bytes / 1e3);
    else if (bytes < 1e9) snprintf(dst, 24, "%.1f MB", bytes / 1e6);
    else snprintf(dst, 24, "%.2f GB", bytes / 1e9);
    return dst;
}

static const char *remaining(char dst[24], double s)
{
    if (s < 0 || s > 359999) snprintf(dst, 24, "–");
    else if (s < 3600) snprintf(dst, 24, "%d:%02d", (int)s / 60, (int)s % 60);
    else snprintf(dst, 24, "%d:%02d:%02d", (int)s / 3600, (int)s / 60 % 60, (int)s % 60);
    return dst;
}

static void on_progress(void *arg, const char *file, uint64_t done, uint64_t size)
{
    meter *m = arg;
    char label[400], a[24], b[24], r[24], left[24];
    double now = hn_now_ms();
    if (!hn_stderr_is_tty()) return;
    if (!m->begun || done < m->last) *m = (meter){ .begin = now, .at = now, .first = done, .begun = true };
    double dt = (now - m->at) / 1e3;
    if (dt >= 0.5) { /* the last few seconds count most */
        double seen = (double)(done - m->last) / dt;
        m->rate = m->rate > 0 ? 0.8 * m->rate + 0.2 * seen : seen;
        m->at = now;
        m->last = done;
    }
    const char *slash = strrchr(file, '/');
    int n = snprintf(label, sizeof label, "%.120s  %s of %s", slash ? slash + 1 : file, amount(a, (double)done),
                     amount(b, (double)size));
    if (m->rate > 0 && n > 0 && (size_t)n < sizeof label)
        snprintf(label + n, sizeof label - (size_t)n, "  %s/s  %s left", amount(r, m->rate),
                 remaining(left, (double)(size - done) / m->rate));
    hn_progress_fn(label, done, size);
}

static void on_say(void *arg, const char *text) { hn_cli_note("%s", text); }

/* ---- what came ------------------------------------------------------------------------------------------ */

static json_t *text_or_null(const char *s) { return *s ? hn_json_str(s, strlen(s)) : json_null(); }

static int print_json(const hn_pulled *p)
{
    char name[HN_NAME_URL_MAX];
    json_t *o = hn_json_new("hone.pull/1"), *files = json_array();
    json_object_set_new(o, "name", text_or_null(hn_name_text(name, sizeof name, &p->name)));
    json_object_set_new(o, "repo", text_or_null(p->name.repo));
    json_object_set_new(o, "commit", text_or_null(p->commit));
    json_object_set_new(o, "path", text_or_null(p->path));
    json_object_set_new(o, "kind", json_string(p->checkpoint ? "checkpoint" : "model"));
    json_object_set_new(o, "why", text_or_null(p->why));
    json_object_set_new(o, "offline", json_boolean(p->offline));
    for (size_t i = 0; i < p->n; i++) {
        const hn_pulled_file *f = &p->file[i];
        json_t *e = json_object();
        json_object_set_new(e, "path", text_or_null(f->path));
        json_object_set_new(e, "size", json_integer((json_int_t)f->size));
        json_object_set_new(e, "sha256", text_or_null(f->sha256));
        json_object_set_new(e, "cached", json_boolean(f->cached));
        json_object_set_new(e, "local", text_or_null(f->local));
        json_array_append_new(files, e);
    }
    json_object_set_new(o, "files", files);
    json_object_set_new(o, "bytes", json_integer((json_int_t)p->bytes));
    json_object_set_new(o, "fetched", json_integer((json_int_t)p->fetched));
    json_object_set_new(o, "seconds", hn_json_num(p->seconds));
    return hn_json_print(o);
}

/* s as one word for a shell; cut short only where it would be longer than any path. Returns dst. */
static const char *word_of(char dst[2 * HN_CACHE_PATH], const char *s)
{
    size_t at = 0;
    bool plain = *s && *s != '-';
    for (const char *p = s; *p && plain; p++) plain = isalnum((unsigned char)*p) || strchr("/._-:@+,", *p);
    if (plain) {
        snprintf(dst, 2 * HN_CACHE_PATH, "%s", s);
        return dst;
    }
    dst[at++] = '\'';
    for (; *s && at + 6 < 2 * HN_CACHE_PATH; s++) {
        if (*s == '\'') at += (size_t)snprintf(dst + at, 5, "'\\''");
        else dst[at++] = *s;
    }
    dst[at++] = '\'';
    dst[at] = 0;
    return dst;
}

static int print_text(const hn_pulled *p)
{
    char name[HN_NAME_URL_MAX], word[2 * HN_CACHE_PATH], size[24], rate[24];
    const char *shown = p->name.kind == HN_NAME_URL ? p->path : hn_name_text(name, sizeof name, &p->name);
    hn_out_printf("%s: %s (%s)", HN_ESC(shown, strlen(shown)), amount(size, (double)p->bytes), p->why);
    if (p->fetched)
        hn_out_printf(", %.1f s, %s/s", p->seconds, amount(rate, p->seconds > 0 ? (double)p->fetched / p->seconds : 0));
    else hn_out_printf(", here already");
    hn_out_printf("\n%s\n", p->path);
    if (p->checkpoint) {
        const char *slash = strrchr(p->name.repo, '/');
        bool adapter = false;
        for (size_t i = 0; i < p->n; i++) {
            const char *base = strrchr(p->file[i].path, '/');
            adapter |= strcmp(base ? base + 1 : p->file[i].path, "adapter_config.json") == 0;
        }
        hn_out_printf("%s; this makes a %s of it:\n  hone convert %s%s -o %s.gguf\n",
                      adapter ? "an adapter" : "a checkpoint", adapter ? "file" : "model", word_of(word, p->path),
                      adapter ? " --base BASE.gguf" : "", slash ? slash + 1 : p->name.repo);
    } else if (hn_ends_with_gguf(p->path) ? !hn_gguf_is_side(p->path) : p->name.kind == HN_NAME_OLLAMA) {
        hn_out_printf("run it:  hone chat -m %s\n", word_of(word, shown));
    }
    return HN_EXIT_OK;
}

/* ---- only to look ----------------------------------------------------------------------------------------- */

static int print_list_json(const hn_pull_list *l)
{
    json_t *o = hn_json_new("hone.pull.list/1"), *models = json_array(), *files = json_array();
    json_object_set_new(o, "repo", text_or_null(l->name.repo));
    json_object_set_new(o, "commit", text_or_null(l->commit));
    for (size_t i = 0; i < l->sets.n; i++) {
        const hn_gguf_set *s = &l->sets.set[i];
        json_t *e = json_object(), *parts = json_array();
        json_object_set_new(e, "type", text_or_null(s->tag));
        json_object_set_new(e, "bytes", json_integer((json_int_t)s->bytes));
        json_object_set_new(e, "memory", json_integer((json_int_t)hn_memory_for(s->bytes)));
        json_object_set_new(e, "chosen", json_boolean(i == l->chosen));
        for (size_t k = 0; k < s->n_file; k++)
            json_array_append_new(parts, s->file[k] == SIZE_MAX ? json_null() : text_or_null(l->file[s->file[k]].path));
        json_object_set_new(e, "files", parts);
        json_array_append_new(models, e);
    }
    json_t *cut = json_array();
    for (size_t i = 0; i < l->sets.n_cut; i++) {
        const hn_gguf_cut *c = &l->sets.cut[i];
        json_t *e = json_object(), *parts = json_array();
        json_object_set_new(e, "type", text_or_null(c->tag));
        json_object_set_new(e, "bytes", json_integer((json_int_t)c->bytes));
        json_object_set_new(e, "parts", json_integer((json_int_t)(c->total > c->n_file ? c->total : c->n_file)));
        for (size_t k = 0; k < c->n_file; k++) json_array_append_new(parts, text_or_null(l->file[c->file[k]].path));
        json_object_set_new(e, "files", parts);
        json_array_append_new(cut, e);
    }
    for (size_t i = 0; i < l->n; i++) {
        json_t *e = json_object();
        json_object_set_new(e, "path", text_or_null(l->file[i].path));
        json_object_set_new(e, "size", json_integer((json_int_t)l->file[i].size));
        json_array_append_new(files, e);
    }
    json_object_set_new(o, "models", models);
    json_object_set_new(o, "cut", cut);
    json_object_set_new(o, "files", files);
    json_object_set_new(o, "why", text_or_null(l->why));
    return hn_json_print(o);
}

static int print_list(const hn_pull_list *l)
{
    char size[24], memory[24];
    uint64_t most = hn_memory_for_models();
    hn_out_printf("%s at %.12s\n", l->name.repo, l->commit);
    for (size_t i = 0; i < l->sets.n; i++) {
        const hn_gguf_set *s = &l->sets.set[i];
        const char *first = s->n_file && s->file[0] != SIZE_MAX ? l->file[s->file[0]].path : "(part 1 is missing)";
        bool fits = !most || hn_memory_for(s->bytes) <= most;
        hn_out_printf("%c %-12s %9s  %-9s %s%s\n", i == l->chosen ? '*' : ' ', *s->tag ? s->tag : "-",
                      amount(size, (double)s->bytes), fits ? "fits" : "too large", first,
                      s->n_missing    ? "  (parts are missing)"
                      : s->n_file > 1 ? " …"
                                      : "");
    }
    for (size_t i = 0; i < l->sets.n_cut; i++) {
        const hn_gguf_cut *c = &l->sets.cut[i];
        char parts[HN_CUT_WORDS];
        hn_out_printf("  %-12s %9s  %-9s %s%s  (cut into %s; to be joined before it runs)\n", *c->tag ? c->tag : "-",
                      amount(size, (double)c->bytes), "in pieces", l->file[c->file[0]].path, c->n_file > 1 ? " …" : "",
                      hn_gguf_cut_words(parts, c));
    }
    if (!l->sets.n && !l->sets.n_cut)
        for (size_t i = 0; i < l->n; i++)
            hn_out_printf("  %9s  %s\n", amount(size, (double)l->file[i].size), l->file[i].path);
    if (l->chosen != SIZE_MAX) hn_out_printf("* would be taken: %s\n", l->why);
    else if (l->sets.n || l->sets.n_cut) hn_out_printf("none would be taken by itself: %s\n", l->why);
    if (most) hn_out_printf("models may take %s of this machine's memory\n", amount(memory, (double)most));
    return HN_EXIT_OK;
}

static int look(const hn_cli *cli, const char *name, const hn_pull_want *want)
{
    static const char *const without[] = { "checkpoint", "output", "offline", "connections", "piece", NULL };
    hn_pull_list l;
    hone_error err;
    int rc = hn_cli_without_effect(cli, false, without, "--list fetches no file");
    if (rc) return rc;
    if (hn_pull_look(&l, name, want, &err) != HONE_OK) rc = hn_cli_fail(&err);
    else rc = cli->json ? print_list_json(&l) : print_list(&l);
    hn_pull_list_free(&l);
    return rc;
}

static bool offline_by_env(void)
{
    const char *v = getenv("HF_HUB_OFFLINE");
    return v && (!strcmp(v, "1") || !strcasecmp(v, "true") || !strcasecmp(v, "yes") || !strcasecmp(v, "on"));
}

static int run(const hn_cli *cli)
{
    const hn_opts *o = cli->opts;
    const char *name = hn_opts_arg(o, 0);
    meter m = { .begun = false };
    hone_error err;
    hn_pulled p;
    const hn_pull_want want = {
        .type = hn_opts_str(o, "type"),
        .rev = hn_opts_str(o, "rev"),
        .output = hn_opts_str(o, "output"),
        .checkpoint = hn_opts_flag(o, "checkpoint"),
        .offline = hn_opts_flag(o, "offline") || offline_by_env(),
        .insecure = hn_opts_flag(o, "insecure"),
        .silence_s = hn_opts_i32(o, "timeout"),
        .tries = hn_opts_i32(o, "retries"),
        .n_conn = hn_opts_i32(o, "connections"),
        .wait_s = (double)hn_opts_f32(o, "retry-wait"),
        .piece = (uint64_t)((double)hn_opts_f32(o, "piece") * 1048576.0),
        .stop = hn_abort_fn,
        .say = on_say,
        .progress = on_progress,
        .arg = &m,
    };
    if (hn_opts_flag(o, "list")) return look(cli, name, &want);
    if (want.output) {
        const hn_file_use made = { want.output, "the file", "-o", HN_FILE_WRITTEN };
        int rc = hn_cli_files_apart(cli, &made, 1, HN_ALL_FOLDERS);
        if (rc) return rc;
    }
    hone_status st = hn_pull(&p, name, &want, &err);
    hn_progress_end();
    int rc = st != HONE_OK && want.offline ? hn_cli_fail_model(&err)
             : st != HONE_OK               ? hn_cli_fail(&err)
             : cli->json                   ? print_json(&p)
                                           : print_text(&p);
    hn_pulled_free(&p);
    return rc;
}

const hn_command hn_command_pull = {
    .name = "pull",
    .summary = "Download a model: from the hub (owner/repo), from ollama (ollama:NAME), from an address",
    .args = "NAME",
    .min_args = 1,
    .max_args = 1,
    .groups = groups,
    .examples = "hone pull llama3.2\n"
                "hone pull bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M\n"
                "hone pull --list bartowski/Llama-3.2-3B-Instruct-GGUF\n"
                "hone pull hf.co/Qwen/Qwen3-0.6B          # a checkpoint: hone convert makes a model of it\n"
                "hone pull ollama:llama3.2:1b\n"
                "hone pull https://example.org/model.gguf -o model.gguf\n",
    .run = run,
};
