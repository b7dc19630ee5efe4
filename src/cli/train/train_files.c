/* The files of hone train: what it reads, what it writes, and that none is both. Owns names; refuses to
 * know what stands in the files. */
#include "cli/train/train_command.h"

#include <errno.h>
#include <limits.h>
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

typedef struct role {
    const char *what, *path, *option;
    bool folder;
} role; /* option: gives it another name */

/* What is written last must not fail for what is known first. */
static int check_place(const role *out)
{
    struct stat s;
    const char *name = HN_ESC(out->path, strlen(out->path));
    hone_error err;
    if (!out->folder) {
        if (hn_file_check(out->path, &err) != HONE_OK) return hn_cli_fail(&err);
    } else if (stat(out->path, &s) == 0) {
        if (!S_ISDIR(s.st_mode))
            return hn_cli_error(HN_EXIT_FAILURE, "%s: is a file; expected a folder for %s (%s)", name, out->what,
                                out->option);
        return access(out->path, W_OK | X_OK) == 0
                   ? 0
                   : hn_cli_error(HN_EXIT_FAILURE, "%s: cannot write %s: %s", name, out->what, strerror(errno));
    }
    char *in = folder_of(out->path);
    if (!in) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for file names");
    int rc = 0;
    if (stat(in, &s) != 0 || access(in, W_OK | X_OK) != 0)
        rc = hn_cli_error(HN_EXIT_FAILURE, "%s: cannot write %s: %s", name, out->what, strerror(errno));
    else if (!S_ISDIR(s.st_mode))
        rc = hn_cli_error(HN_EXIT_FAILURE, "%s: cannot write %s: %s", name, out->what, strerror(ENOTDIR));
    free(in);
    return rc;
}

static bool has_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat s;
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && lstat(path, &s) == 0;
}

/* As whoever writes the folder refuses it, hours later. */
static int check_peft(const char *folder)
{
    if (!folder || !has_file(folder, "config.json") || has_file(folder, "adapter_config.json")) return 0;
    return hn_cli_error(HN_EXIT_USAGE,
                        "%s: has a config.json and no adapter_config.json: it is the folder of a model; expected a "
                        "folder for the adapter alone (--peft)",
                        HN_ESC(folder, strlen(folder)));
}

int hn_train_files(hn_train_job *j)
{
    const hn_opts *o = j->cli->opts;
    bool begun = hn_opts_given(o, "from-config");
    const char *log = hn_opts_str(o, "log"), *folder = hn_opts_str(o, "checkpoints");
    j->out = hn_opts_str(o, "output");
    j->peft = hn_opts_str(o, "peft");
    if (!j->out && (begun || !j->p.plan_only))
        return hn_cli_usage(j->cli, "no output; expected -o %s.gguf", j->p.full ? "MODEL" : "ADAPTER");
    if (j->out) {
        j->log = log ? with_suffix(log, "") : with_suffix(j->out, ".jsonl");
        j->folder = folder ? with_suffix(folder, "") : with_suffix(j->out, ".ckpt");
        j->base = begun ? with_suffix(j->out, ".begin.gguf") : NULL;
        if (!j->log || !j->folder || (begun && !j->base))
            return hn_cli_error(HN_EXIT_NOMEM, "out of memory for file names");
    }
    const role list[] = { { "the output", j->out, "-o", false },
                          { "the model to begin from", j->base, "-o", false },
                          { "the log", j->log, "--log", false },
                          { "the folder of checkpoints", j->folder, "--checkpoints", true },
                          { "the PEFT folder", j->peft, "--peft", true } };
    hn_file_use made[3]; /* names made here; those of options are known */
    size_t n = 0;
    if (j->base) made[n++] = (hn_file_use){ j->base, list[1].what, list[1].option, HN_FILE_WRITTEN };
    if (j->log && !log) made[n++] = (hn_file_use){ j->log, list[2].what, list[2].option, HN_FILE_WRITTEN };
    if (j->folder && !folder) made[n++] = (hn_file_use){ j->folder, list[3].what, list[3].option, HN_FILE_FOLDER };
    int rc = hn_cli_files_apart(j->cli, made, n, 0);
    for (size_t i = 0; i < sizeof list / sizeof *list && !rc; i++)
        if (list[i].path) rc = check_place(&list[i]);
    return rc ? rc : check_peft(j->peft);
}
