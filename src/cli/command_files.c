/* The files of a command line: what it reads and what it writes, from the tables of its options alone, and that none is
 * both. Owns the list and its messages; which names are one file is base's, what stands in files nobody's here. */
#include "base/sealed.h"
#include "cli/cli.h"
#include "lab/record/record.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_USES = 512 };

typedef struct uses {
    const hn_cli *cli;
    hn_file_use use[MAX_USES];
    bool report[MAX_USES];     /* "-" is standard output */
    int makes[MAX_USES];       /* so many folders on the way are made */
    char *owned[3 * MAX_USES]; /* names and words made here */
    size_t n, n_owned;
    bool full, nomem;
    int folders; /* of what is added now: makes */
    int rc;      /* of a value that is wrong; said already */
} uses;

static void add(uses *u, const char *path, hn_file_role role, const char *what, const char *option)
{
    if (!path || !*path) return;
    if (u->n == MAX_USES) {
        u->full = true;
        return;
    }
    u->makes[u->n] = role == HN_FILE_WRITTEN ? u->folders : 0;
    u->use[u->n++] = (hn_file_use){ path, what, option, role };
}

/* The text, freed with the list. */
static const char *keep(uses *u, char *text)
{
    if (!text || u->n_owned == sizeof u->owned / sizeof *u->owned) {
        free(text);
        u->nomem = true;
        return NULL;
    }
    return u->owned[u->n_owned++] = text;
}

static const char *join(uses *u, const char *a, const char *b, const char *c)
{
    size_t n = strlen(a) + strlen(b) + strlen(c) + 1;
    char *s = malloc(n);
    if (s) snprintf(s, n, "%s%s%s", a, b, c);
    return keep(u, s);
}

/* "-o" where there is such a spelling, else "--output". */
static const char *spelling(uses *u, const hn_opt *o)
{
    if (!o->alias || o->alias[0] != '-' || o->alias[1] == '-') return join(u, "--", o->name, "");
    size_t n = strcspn(o->alias, " ");
    return keep(u, strndup(o->alias, n));
}

static const char *words_for(uses *u, const hn_opt *o, bool written)
{
    return o->what ? o->what : join(u, "what --", o->name, written ? " writes" : " reads");
}

/* ---- one value of one option ---------------------------------------------------------------------- */

static void add_model(uses *u, const char *path, const char *what)
{
    add(u, path, HN_FILE_READ, what, NULL);
    if (!hn_opts_has(u->cli->opts, "packed")) return;
    add(u, join(u, path, ".hpack", ""), HN_FILE_READ, "the packed weights of the model", NULL);
}

static void add_records(uses *u, const hn_opt *o, const char *name)
{
    char base[4096];
    hone_error ignored; /* the command says what is wrong with the name */
    if (hn_record_base(base, sizeof base, name, &ignored) != HONE_OK) return;
    const char *option = spelling(u, o);
    if (o->use == HN_USE_HISTORY) {
        add(u, join(u, base, ".jsonl", ""), HN_FILE_READ, words_for(u, o, false), NULL);
        return;
    }
    u->folders = HN_ALL_FOLDERS;
    add(u, join(u, base, ".jsonl", ""), HN_FILE_WRITTEN, "the records", option);
    add(u, join(u, base, ".md", ""), HN_FILE_WRITTEN, "the history", option);
    u->folders = 0;
}

static void add_adapter(uses *u, const hn_opt *o, const char *arg)
{
    char *path = NULL;
    float scale;
    int rc = u->rc ? u->rc : hn_cli_adapter_arg(arg, &path, &scale);
    if (rc) u->rc = rc;
    else add(u, keep(u, path), HN_FILE_READ, words_for(u, o, false), NULL);
}

static void add_peft(uses *u, const hn_opt *o, const char *folder)
{
    const char *option = spelling(u, o);
    add(u, folder, HN_FILE_FOLDER, words_for(u, o, true), option);
    u->folders = 1; /* the last one */
    add(u, join(u, folder, "/", "adapter_model.safetensors"), HN_FILE_WRITTEN, "the adapter in the PEFT folder",
        option);
    add(u, join(u, folder, "/", "adapter_config.json"), HN_FILE_WRITTEN, "the configuration in the PEFT folder",
        option);
    add(u, join(u, folder, "/", "chat_template.jinja"), HN_FILE_WRITTEN, "the template in the PEFT folder", option);
    u->folders = 0;
}

static void add_read(uses *u, const hn_opt *o, const char *value)
{
    if (strcmp(value, "-") == 0) return;
    if (strcmp(o->name, "model") == 0) add_model(u, value, words_for(u, o, false));
    else add(u, value, HN_FILE_READ, words_for(u, o, false), NULL);
}

/* What is behind NAME= of a value of serve's --model. */
static const char *behind_name(const char *value)
{
    const char *eq = hn_cli_served_name(value);
    return eq ? eq + 1 : value;
}

static bool is_word(const char *value) { return strcmp(value, "auto") == 0 || strcmp(value, "off") == 0; }

static void add_value(uses *u, const hn_opt *o, const char *value)
{
    switch (o->use) {
    case HN_USE_KIND:
        if (o->kind == HN_OPT_FILE) add_read(u, o, value);
        break;
    case HN_USE_NONE: break;
    case HN_USE_DATA: add(u, value, HN_FILE_DATA, words_for(u, o, false), NULL); break;
    case HN_USE_MODEL: add_read(u, o, value); break;
    case HN_USE_SERVED: add_read(u, o, behind_name(value)); break;
    case HN_USE_SHELF: break; /* its files are looked for by the command */
    case HN_USE_AT:
        if (value[0] == '@') add_read(u, o, value + 1);
        break;
    case HN_USE_PACKED:
        if (!is_word(value)) add_read(u, o, value);
        break;
    case HN_USE_ADAPTER: add_adapter(u, o, value); break;
    case HN_USE_REPORT:
    case HN_USE_WRITE:
        if (u->n < MAX_USES) u->report[u->n] = o->use == HN_USE_REPORT;
        add(u, value, HN_FILE_WRITTEN, words_for(u, o, true), spelling(u, o));
        break;
    case HN_USE_FOLDER: add(u, value, HN_FILE_FOLDER, words_for(u, o, true), spelling(u, o)); break;
    case HN_USE_PEFT: add_peft(u, o, value); break;
    case HN_USE_HISTORY:
    case HN_USE_RECORDS: add_records(u, o, value); break;
    }
}

/* ---- a command line ----------------------------------------------------------------------------------- */

static void add_options(uses *u)
{
    const hn_opts *opts = u->cli->opts;
    for (const hn_opt_group *const *g = u->cli->cmd->groups; g && *g; g++)
        for (const hn_opt *o = (*g)->opts; o->name; o++) {
            bool text = o->kind == HN_OPT_FILE || o->kind == HN_OPT_STR;
            size_t n = text ? hn_opts_count(opts, o->name) : 0;
            /* of one that may not be repeated the last counts */
            for (size_t i = n && !o->repeat ? n - 1 : 0; i < n; i++) add_value(u, o, hn_opts_nth(opts, o->name, i));
            if (text && !n && o->def) add_value(u, o, o->def);
        }
}

static void add_arguments(uses *u)
{
    struct stat sb;
    for (int i = 0; u->cli->cmd->reads_args && i < hn_opts_n_args(u->cli->opts); i++) {
        const char *arg = hn_opts_arg(u->cli->opts, i);
        if (stat(arg, &sb) == 0) add(u, arg, HN_FILE_READ, "to be read", NULL);
    }
}

static void add_environment(uses *u)
{
    const char *packed = getenv("HONE_PACKED");
    if (packed && !is_word(packed) && hn_opts_has(u->cli->opts, "packed"))
        add(u, packed, HN_FILE_READ, "what HONE_PACKED names", NULL);
}

/* What the shell opened: > FILE is written, too, and < FILE is read. */
static int check_standard(const uses *u)
{
    static const char *const what[] = { "standard input comes from it", "standard output goes there",
                                        "standard error goes there" };
    for (int fd = 0; fd <= 2; fd++) {
        hn_file_id here, there;
        struct stat sb;
        if (fstat(fd, &sb) != 0 || !S_ISREG(sb.st_mode) || !hn_file_id_of_fd(&here, fd)) continue;
        for (size_t i = 0; i < u->n; i++) {
            const hn_file_use *w = &u->use[i];
            if (w->role != HN_FILE_WRITTEN || !hn_file_id_of(&there, w->path)) continue;
            if (!hn_file_id_same(here, there)) continue;
            return hn_cli_error(HN_EXIT_USAGE,
                                "%s would be %s, and %s; nothing was touched; expected another name (%s)",
                                HN_ESC(w->path, strlen(w->path)), w->what, what[fd], w->option ? w->option : "");
        }
    }
    return 0;
}

/* path without its last part; "." where it has one only. */
static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash) snprintf(path, 2, ".");
    for (; slash && slash > path && slash[-1] == '/'; slash--) {} /* a//b */
    if (slash) slash[slash == path] = 0;
}

/* The folder of a file that will be written is there, or is one of so many that are made; and can be written to. */
static int check_folder(const hn_file_use *w, int makes)
{
    static char told[PATH_MAX];
    char folder[PATH_MAX], there[PATH_MAX];
    struct stat sb;
    if (strlen(w->path) >= sizeof folder || lstat(w->path, &sb) == 0) return 0; /* links are hn_file_check's */
    snprintf(folder, sizeof folder, "%s", w->path);
    cut_last(folder);
    snprintf(there, sizeof there, "%s", folder);
    for (; makes > 0 && stat(there, &sb) != 0 && errno == ENOENT && strcmp(there, ".") != 0; makes--) cut_last(there);
    const char *name = HN_ESC(w->path, strlen(w->path)), *in = HN_ESC(folder, strlen(folder));
    if (stat(there, &sb) != 0 && errno == ENOENT) {
        int code = hn_cli_error(HN_EXIT_FAILURE, "%s: cannot create: the folder %s is not there", name, in);
        hn_err_printf("hone: try: mkdir -p %s\n", in);
        return code;
    }
    if (access(there, W_OK | X_OK) != 0)
        return hn_cli_error(HN_EXIT_FAILURE, "%s: cannot create: %s", name, strerror(errno));
    if (strcmp(folder, there) != 0 && strcmp(told, folder) != 0) {
        hn_cli_note("the folder %s is not there yet and will be made", in);
        snprintf(told, sizeof told, "%s", folder);
    }
    return 0;
}

/* What could not be replaced in the end is refused before the work. */
static int check_places(const uses *u)
{
    hone_error err;
    for (size_t i = 0; i < u->n; i++) {
        const hn_file_use *w = &u->use[i];
        if (w->role != HN_FILE_WRITTEN) continue;
        if (hn_file_check(w->path, &err) != HONE_OK) return hn_cli_fail(&err);
        int rc = check_folder(w, u->makes[i]);
        if (rc) return rc;
    }
    return 0;
}

/* A model of gigabytes is not replaced by a session, and nobody waits for an answer to learn it. */
static int check_sessions(const uses *u)
{
    static const char magic[] = HN_SEALED_SESSION;
    hone_error err;
    for (size_t i = 0; i < u->n; i++) {
        const hn_file_use *w = &u->use[i];
        if (w->role != HN_FILE_WRITTEN || !w->option || strcmp(w->option, "--state-out") != 0) continue;
        if (hn_sealed_check_place(w->path, magic, sizeof magic - 1, "session file", &err) == HONE_OK) continue;
        return hn_cli_error(hn_exit_code(err.code), "%s (--state-out)", err.message);
    }
    return 0;
}

/* "-" is standard output where a command says so, and nowhere a file. */
static int check_dashes(uses *u)
{
    size_t kept = 0;
    for (size_t i = 0; i < u->n; i++) {
        const hn_file_use *w = &u->use[i];
        bool dash = !hn_file_is_read(w->role) && strcmp(w->path, "-") == 0;
        if (dash && !u->report[i])
            return hn_cli_usage(u->cli, "%s -: this cannot go to standard output; expected the name of a file (or ./-)",
                                w->option);
        if (!dash) u->makes[kept] = u->makes[i];
        if (!dash) u->use[kept++] = *w;
    }
    u->n = kept;
    return 0;
}

int hn_cli_files_apart(const hn_cli *cli, const hn_file_use *more, size_t n_more, int folders)
{
    hone_error err;
    uses *u = calloc(1, sizeof *u);
    if (!u) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the names of files");
    u->cli = cli;
    add_options(u);
    add_arguments(u);
    add_environment(u);
    u->folders = folders;
    for (size_t i = 0; i < n_more; i++) add(u, more[i].path, more[i].role, more[i].what, more[i].option);
    int rc = u->rc ? u->rc : u->nomem ? hn_cli_error(HN_EXIT_NOMEM, "no memory for the names of files") : 0;
    if (!rc && u->full) rc = hn_cli_usage(cli, "more than %d files on one command line", MAX_USES);
    if (!rc) rc = check_dashes(u);
    if (!rc && hn_files_apart(u->use, u->n, &err) != HONE_OK) rc = hn_cli_fail(&err);
    if (!rc) rc = check_places(u);
    if (!rc) rc = check_standard(u);
    if (!rc) rc = check_sessions(u);
    for (size_t i = 0; i < u->n_owned; i++) free(u->owned[i]);
    free(u);
    return rc;
}
