/* hone rm: models off this machine. Owns which models the words mean, the question before, and the words after; what
 * goes and what stays is hub's. */
#include "cli/cli.h"
#include "cli/model_card.h"
#include "hub/removal.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const hn_opt rm_opts[] = {
    HN_OPT("yes", "-y", FLAG, NULL,
           "do not ask; needed where there is no terminal to ask on, and for files by their path"),
    HN_OPT("dry-run", NULL, FLAG, NULL, "show what would go, and remove nothing"),
    HN_OPT_END,
};
static const hn_opt_group rm_group = { "Removal", rm_opts };
static const hn_opt_group *const groups[] = { &rm_group, NULL };

typedef struct removing {
    const hn_cli *cli;
    hn_locals here;
    bool *going; /* [here.n] */
    hn_removal plan;
    hone_error err;
} removing;

/* ---- which models ------------------------------------------------------------------------------------ */

/* Is m what a name with a tag, path or revision means? */
static bool is_meant(const hn_local *m, const hn_name *n)
{
    char text[HN_NAME_URL_MAX];
    if (n->kind == HN_NAME_OLLAMA)
        return m->where == HN_LOCAL_OLLAMA && strcmp(m->name, hn_name_text(text, sizeof text, n)) == 0;
    if (n->kind != HN_NAME_HUB || m->where != HN_LOCAL_HUB || m->unfinished || strcmp(m->repo, n->repo) != 0)
        return false;
    if (*n->rev && strcmp(n->rev, m->rev) != 0 && strcmp(n->rev, m->commit) != 0) return false;
    if (*n->tag) return strcasecmp(n->tag, m->tag) == 0;
    for (size_t i = 0; *n->path && i < m->n_file; i++)
        if (strcmp(m->file[i], n->path) == 0) return true;
    return !*n->path; /* all of a revision */
}

/* Do two models of one revision have the tag? Which is to go is for its author to say. */
static const hn_local *twice(const removing *r, const hn_name *name)
{
    for (size_t i = 0; i < r->here.n && *name->tag; i++)
        for (size_t k = 0; k < i; k++) {
            const hn_local *a = &r->here.list[i], *b = &r->here.list[k];
            if (a->where == HN_LOCAL_HUB && is_meant(a, name) && is_meant(b, name) && !strcmp(a->commit, b->commit))
                return a;
        }
    return NULL;
}

/* Marks what text means; *n: how many. */
static void mark(removing *r, const char *text, const hn_name *name, size_t *n)
{
    for (size_t i = 0; i < r->here.n; i++) {
        const hn_local *m = &r->here.list[i];
        if (strcmp(m->name, text) != 0 && !is_meant(m, name)) continue;
        (*n)++;
        r->going[i] = true;
    }
}

static int no_such(const removing *r, const char *text)
{
    const char **names = calloc(r->here.n + 1, sizeof *names);
    for (size_t i = 0; names && i < r->here.n; i++) names[i] = r->here.list[i].name;
    const char *near = names ? hn_nearest(text, names, r->here.n) : NULL;
    int code = hn_cli_error(HN_EXIT_MODEL, "%s: no model of this name on this machine%s%s%s",
                            HN_ESC(text, strlen(text)), near ? "; did you mean " : "; hone list shows them",
                            near ? HN_ESC(near, strlen(near)) : "", near ? "?" : "");
    free(names);
    return code;
}

static int by_path(removing *r, const char *text)
{
    if (!hn_opts_flag(r->cli->opts, "yes") && !hn_opts_flag(r->cli->opts, "dry-run"))
        return hn_cli_usage(r->cli, "%s is a file, maybe outside the caches; expected --yes beside it, to be sure",
                            HN_ESC(text, strlen(text)));
    return hn_removal_add_path(&r->plan, text, &r->err) == HONE_OK ? 0 : hn_cli_fail(&r->err);
}

/* Is it this very entry of a folder, by whatever path? */
static bool is_entry(const char *path, const struct stat *entry)
{
    struct stat sb;
    return lstat(path, &sb) == 0 && sb.st_dev == entry->st_dev && sb.st_ino == entry->st_ino;
}

/* One word of the command line: a whole repository is planned, single models are marked. */
static int add_word(removing *r, const char *text)
{
    hn_name name = { 0 };
    size_t n = 0;
    struct stat sb;
    bool there = lstat(text, &sb) == 0, path = there && strchr(text, '/');
    if (!there && errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG)
        return hn_cli_error(HN_EXIT_FAILURE, "%s: %s", HN_ESC(text, strlen(text)), strerror(errno));
    for (size_t i = 0; i < r->here.n && path; i++) /* a file of the caches goes as its model */
        if (r->here.list[i].where != HN_LOCAL_FOLDER && is_entry(r->here.list[i].path, &sb)) r->going[i] = true, n++;
    if (n) return 0;
    if (path || (there && hn_ends_with_gguf(text))) return by_path(r, text);
    if (hn_name_parse(&name, text, &r->err) != HONE_OK) return hn_cli_fail(&r->err);
    bool whole = name.kind == HN_NAME_HUB && !*name.rev && !*name.tag && !*name.path;
    const hn_local *one = twice(r, &name);
    if (one)
        return hn_cli_usage(r->cli, "%s: several files have this type; expected the path of one: %s/%s",
                            HN_ESC(text, strlen(text)), HN_ESC(one->repo, strlen(one->repo)),
                            one->n_file ? HN_ESC(one->file[0], strlen(one->file[0])) : "");
    if (!whole) mark(r, text, &name, &n);
    if (n) return 0;
    if (name.kind == HN_NAME_BARE && hn_name_expand(&name, &r->err) != HONE_OK) return hn_cli_fail(&r->err);
    whole = name.kind == HN_NAME_HUB && !*name.rev && !*name.tag && !*name.path;
    if (!whole) mark(r, text, &name, &n);
    if (!n && name.kind == HN_NAME_BARE) { /* of ollama's library, as where it is looked for */
        char other[2 * HN_NAME_PART + 20];
        snprintf(other, sizeof other, "ollama:%s%s%s", name.repo, *name.tag ? ":" : "", name.tag);
        if (hn_name_parse(&name, other, &r->err) == HONE_OK) mark(r, other, &name, &n);
    }
    if (!whole) return n ? 0 : no_such(r, text);
    hone_status st = hn_removal_add_repo(&r->plan, name.repo, &r->err); /* also where no model of it is whole */
    return st == HONE_OK ? 0 : st == HONE_E_IO ? no_such(r, text) : hn_cli_fail(&r->err);
}

static int make_plan(removing *r)
{
    int rc = 0;
    if (hn_cache_list(&r->here, HN_FIND_ALL, &r->err) != HONE_OK) return hn_cli_fail(&r->err);
    if (!(r->going = calloc(r->here.n + 1, sizeof *r->going)))
        return hn_cli_error(HN_EXIT_NOMEM, "no memory for a plan");
    for (int i = 0; i < hn_opts_n_args(r->cli->opts) && !rc; i++) rc = add_word(r, hn_opts_arg(r->cli->opts, i));
    for (size_t i = 0; i < r->here.n && !rc; i++)
        if (r->going[i] && hn_removal_add(&r->plan, &r->here, i, r->going, &r->err) != HONE_OK)
            rc = hn_cli_fail(&r->err);
    return rc;
}

/* ---- the question, and the words ------------------------------------------------------------------------- */

static void show_plan(const removing *r)
{
    char freed[24], kept[24];
    for (size_t i = 0; i < r->plan.n_tree; i++)
        hn_err_printf("%s/ and all in it\n", HN_ESC(r->plan.tree[i], strlen(r->plan.tree[i])));
    for (size_t i = 0; i < r->plan.n; i++) hn_err_printf("%s\n", HN_ESC(r->plan.file[i], strlen(r->plan.file[i])));
    hn_err_printf("hone: this frees %s", hn_size_words(freed, r->plan.bytes));
    if (r->plan.shared) hn_err_printf("; %s stay, as other models have them too", hn_size_words(kept, r->plan.shared));
    hn_err_printf("\n");
}

/* 0: yes. */
static int ask(const removing *r)
{
    char answer[16] = "";
    if (!isatty(STDIN_FILENO) || !hn_stderr_is_tty())
        return hn_cli_usage(r->cli, "nothing was removed: there is no terminal to ask on; expected --yes");
    show_plan(r);
    hn_err_printf("hone: remove? [y/N] ");
    if (!fgets(answer, sizeof answer, stdin)) *answer = 0;
    if (hn_interrupted()) return hn_exit_code(HONE_E_INTERRUPTED);
    answer[strcspn(answer, "\r\n")] = 0;
    if (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0) return 0;
    hn_err_printf("hone: nothing was removed\n");
    return HN_EXIT_FAILURE;
}

static int report(const removing *r, bool dry)
{
    char freed[24];
    if (!r->cli->json) {
        if (dry) show_plan(r);
        else hn_err_printf("hone: removed; %s are free now\n", hn_size_words(freed, r->plan.bytes));
        return HN_EXIT_OK;
    }
    json_t *o = hn_json_new("hone.rm/1"), *files = json_array(), *trees = json_array();
    for (size_t i = 0; i < r->plan.n; i++)
        json_array_append_new(files, hn_json_str(r->plan.file[i], strlen(r->plan.file[i])));
    for (size_t i = 0; i < r->plan.n_tree; i++)
        json_array_append_new(trees, hn_json_str(r->plan.tree[i], strlen(r->plan.tree[i])));
    json_object_set_new(o, "removed", json_boolean(!dry));
    json_object_set_new(o, "files", files);
    json_object_set_new(o, "folders", trees);
    json_object_set_new(o, "freed", json_integer((json_int_t)r->plan.bytes));
    json_object_set_new(o, "shared", json_integer((json_int_t)r->plan.shared));
    return hn_json_print(o);
}

/* While the question stood others may have come to need what the plan has: it is made again, and must be the same. */
static int plan_again(removing *r)
{
    removing now = { .cli = r->cli };
    int rc = make_plan(&now);
    bool same = !rc && now.plan.n == r->plan.n && now.plan.n_tree == r->plan.n_tree && now.plan.bytes == r->plan.bytes;
    for (size_t i = 0; same && i < now.plan.n; i++) same = strcmp(now.plan.file[i], r->plan.file[i]) == 0;
    if (!rc && !same)
        rc = hn_cli_error(HN_EXIT_FAILURE, "what is here has changed meanwhile; nothing was removed: ask again");
    if (!rc && hn_removal_check(&now.plan, &now.err) != HONE_OK) rc = hn_cli_fail(&now.err);
    hn_removal_free(&now.plan);
    hn_locals_free(&now.here);
    free(now.going);
    return rc;
}

static int work(removing *r)
{
    bool dry = hn_opts_flag(r->cli->opts, "dry-run");
    int rc = make_plan(r);
    if (rc) return rc;
    if (!dry && hn_removal_check(&r->plan, &r->err) != HONE_OK) return hn_cli_fail(&r->err);
    if (!dry && !hn_opts_flag(r->cli->opts, "yes") && ((rc = ask(r)) || (rc = plan_again(r)))) return rc;
    if (!dry && hn_removal_do(&r->plan, &r->err) != HONE_OK) return hn_cli_fail(&r->err);
    return report(r, dry);
}

static int run(const hn_cli *cli)
{
    removing r = { .cli = cli };
    int rc = work(&r);
    hn_removal_free(&r.plan);
    hn_locals_free(&r.here);
    free(r.going);
    return rc;
}

const hn_command hn_command_rm = {
    .name = "rm",
    .summary = "Remove models that are here",
    .args = "NAME…",
    .min_args = 1,
    .max_args = 256,
    .groups = groups,
    .examples = "hone rm bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M\n"
                "hone rm bartowski/Llama-3.2-1B-Instruct-GGUF --dry-run\n"
                "hone rm --yes ollama:llama3.2 models/old.gguf\n",
    .run = run,
};
