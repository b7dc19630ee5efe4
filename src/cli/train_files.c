/* The files of hone train: what it reads, what it writes, and that none is both. Owns names; refuses to
 * know what stands in the files. */
#include "cli/train_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char *with_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s) + strlen(suffix) + 1;
    char *r = malloc(n);
    if (r) snprintf(r, n, "%s%s", s, suffix);
    return r;
}

/* The folder that path stands in. NULL: no memory. */
static char *folder_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    while (n > 0 && path[n - 1] != '/') n--;
    return n ? strndup(path, n) : strdup(".");
}

static size_t name_of(const char *path, const char **name)
{
    size_t n = strlen(path), at;
    while (n > 1 && path[n - 1] == '/') n--;
    for (at = n; at > 0 && path[at - 1] != '/'; at--) {}
    *name = path + at;
    return n - at;
}

/* One file, or one that would come to be under the same name. */
static bool same(const char *a, const char *b)
{
    struct stat x, y;
    bool there = stat(a, &x) == 0, too = stat(b, &y) == 0;
    if (there && too) return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    if (there || too) return false;
    const char *p, *q;
    size_t n = name_of(a, &p), k = name_of(b, &q);
    if (n != k || memcmp(p, q, n)) return false;
    char *f = folder_of(a), *g = folder_of(b);
    bool yes = f && g && stat(f, &x) == 0 && stat(g, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    free(f);
    free(g);
    return yes;
}

typedef struct role { const char *what, *path, *option; } role; /* option: gives it another name */

static int clash(const role *a, const role *b)
{
    return hn_cli_error(HN_EXIT_USAGE, "%s would be %s and is %s; nothing was touched; expected another name (%s)", HN_ESC(a->path, strlen(a->path)), a->what, b->what, a->option);
}

static int compare_with_inputs(const hn_train_job *j, const role *out)
{
    static const struct { const char *option, *what; } in[] = { { "model", "the model" }, { "data", "the data" }, { "val-data", "the data to validate with" },
                                                                { "from-config", "the shape" }, { "tokenizer", "the model of the tokenizer" } };
    for (size_t k = 0; k < sizeof in / sizeof *in; k++)
        for (size_t i = 0; i < hn_opts_count(j->cli->opts, in[k].option); i++) {
            const char *path = hn_opts_nth(j->cli->opts, in[k].option, i);
            if (same(out->path, path)) return clash(out, &(role){ in[k].what, path, NULL });
        }
    return 0;
}

/* What is written last must not fail for what is known first. */
static int check_place(const role *out, bool folder)
{
    struct stat s;
    const char *name = HN_ESC(out->path, strlen(out->path));
    if (!folder) {
        int rc = hn_cli_check_output(out->path);
        if (rc) return rc;
    } else if (stat(out->path, &s) == 0) {
        if (!S_ISDIR(s.st_mode)) return hn_cli_error(HN_EXIT_FAILURE, "%s: is a file; expected a folder for %s (%s)", name, out->what, out->option);
        return access(out->path, W_OK | X_OK) == 0 ? 0 : hn_cli_error(HN_EXIT_FAILURE, "%s: cannot write %s: %s", name, out->what, strerror(errno));
    }
    char *in = folder_of(out->path);
    if (!in) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for file names");
    int rc = 0;
    if (stat(in, &s) != 0 || access(in, W_OK | X_OK) != 0) rc = hn_cli_error(HN_EXIT_FAILURE, "%s: cannot write %s: %s", name, out->what, strerror(errno));
    else if (!S_ISDIR(s.st_mode)) rc = hn_cli_error(HN_EXIT_FAILURE, "%s: cannot write %s: %s", name, out->what, strerror(ENOTDIR));
    free(in);
    return rc;
}

int hn_train_files(hn_train_job *j)
{
    const hn_opts *o = j->cli->opts;
    bool begun = hn_opts_given(o, "from-config");
    const char *log = hn_opts_str(o, "log"), *folder = hn_opts_str(o, "checkpoints");
    j->out = hn_opts_str(o, "output");
    j->peft = hn_opts_str(o, "peft");
    if (!j->out && (begun || !j->p.plan_only)) return hn_cli_usage(j->cli, "no output; expected -o %s.gguf", j->p.full ? "MODEL" : "ADAPTER");
    if (j->out) {
        j->log = log ? with_suffix(log, "") : with_suffix(j->out, ".jsonl");
        j->folder = folder ? with_suffix(folder, "") : with_suffix(j->out, ".ckpt");
        j->base = begun ? with_suffix(j->out, ".begin.gguf") : NULL;
        if (!j->log || !j->folder || (begun && !j->base)) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for file names");
    }
    const role list[] = { { "the output", j->out, "-o" }, { "the model to begin from", j->base, "-o" }, { "the log", j->log, "--log" },
                          { "the folder of checkpoints", j->folder, "--checkpoints" }, { "the PEFT folder", j->peft, "--peft" } };
    int rc = 0, n = sizeof list / sizeof *list;
    for (int i = 0; i < n && !rc; i++) {
        if (!list[i].path) continue;
        rc = compare_with_inputs(j, &list[i]);
        for (int k = 0; k < i && !rc; k++)
            if (list[k].path && same(list[i].path, list[k].path)) rc = clash(&list[i], &list[k]);
        if (!rc) rc = check_place(&list[i], i > 2);
    }
    return rc;
}
