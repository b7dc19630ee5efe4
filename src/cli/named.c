/* named: names of models on the command line. Every option that names a model takes a file or the name of one that is
 * here; the name becomes the file before anything else looks at it. Owns this one step; what a name means and where it
 * is looked for is hub's. Never asks a network. */
#include "cli/cli.h"
#include "hub/cache.h"

#include <stdlib.h>
#include <unistd.h>

_Static_assert((int)HN_CLI_PATH == (int)HN_CACHE_PATH, "paths of one length");

hone_status hn_cli_model_path(char *path, const char *text, hone_error *err)
{
    hn_name name;
    *path = 0;
    if (access(text, F_OK) == 0) return HONE_OK; /* what is there is meant */
    hone_status st = hn_name_parse(&name, text, err);
    if (st != HONE_OK || name.kind == HN_NAME_NONE) return st;
    return hn_cache_find(path, &name, err);
}

bool hn_cli_is_model_name(const char *text)
{
    char path[HN_CACHE_PATH];
    hn_name name;
    hone_error ignored;
    if (hn_name_parse(&name, text, &ignored) != HONE_OK || name.kind == HN_NAME_NONE) return false;
    if (name.kind != HN_NAME_BARE || hn_cache_find(path, &name, &ignored) == HONE_OK) return true;
    return hn_name_expand(&name, &ignored) == HONE_OK && name.kind != HN_NAME_BARE;
}

const char *hn_cli_served_name(const char *value)
{
    const char *eq = strchr(value, '='), *scheme = strstr(value, "://");
    if (!eq || eq == value || (scheme && scheme < eq)) return NULL;
    return access(value, F_OK) == 0 ? NULL : eq;
}

/* ---- options ---------------------------------------------------------------------------------------- */

static int failed(const char *text, const hone_error *err)
{
    hn_name name;
    int code = hn_cli_fail_model(err);
    if (err->code == HONE_E_IO && !strstr(err->message, "`hone pull ") && hn_name_parse(&name, text, NULL) == HONE_OK &&
        name.kind == HN_NAME_BARE)
        hn_cli_advise_model(text);
    return code;
}

/* value as the option shall have it now: before, path, behind. */
static int put(hn_opts *opts, const char *option, size_t i, const char *before, int n_before, const char *path,
               const char *behind)
{
    hone_error err;
    size_t n = (size_t)n_before + strlen(path) + strlen(behind) + 2;
    char *text = malloc(n);
    if (!text) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the name of a model");
    snprintf(text, n, "%.*s%s%s%s", n_before, before, n_before ? "=" : "", path, behind);
    hone_status st = hn_opts_replace(opts, option, i, text, &err);
    free(text);
    return st == HONE_OK ? 0 : hn_cli_fail(&err);
}

/* NAME=FILE: the file. FILE: requests call it what was typed, as a cache's file says little of it. */
static int served(hn_opts *opts, const hn_opt *o, size_t i, const char *value)
{
    char path[HN_CACHE_PATH];
    hone_error err;
    const char *eq = hn_cli_served_name(value), *text = eq ? eq + 1 : value;
    if (hn_cli_model_path(path, text, &err) != HONE_OK) return failed(text, &err);
    if (!*path) return 0;
    bool plain = !eq && strchr(value, '='); /* an address */
    char called[HN_NAME_URL_MAX];
    hn_name name;
    if (!eq && strstr(value, "://") && hn_name_parse(&name, value, NULL) == HONE_OK &&
        (name.kind == HN_NAME_HUB || name.kind == HN_NAME_OLLAMA)) { /* by its short form: a scheme begins an address */
        value = hn_name_text(called, sizeof called, &name);
        plain = false;
    }
    return put(opts, o->name, i, value, plain ? 0 : eq ? (int)(eq - value) : (int)strlen(value), path, "");
}

static int adapter(hn_opts *opts, const hn_opt *o, size_t i, const char *value)
{
    char path[HN_CACHE_PATH], *file;
    float scale;
    hone_error err;
    int rc = hn_cli_adapter_arg(value, &file, &scale);
    if (rc) return rc;
    if (hn_cli_model_path(path, file, &err) != HONE_OK) rc = failed(file, &err);
    else if (*path) rc = put(opts, o->name, i, "", 0, path, value + strlen(file)); /* and :SCALE */
    free(file);
    return rc;
}

static int shelf(hn_opts *opts, const hn_opt *o, size_t i, const char *value)
{
    char path[HN_CACHE_PATH];
    hn_name name;
    hone_error err;
    if (access(value, F_OK) == 0) return 0;
    if (hn_name_parse(&name, value, &err) != HONE_OK) return hn_cli_fail(&err);
    if (name.kind != HN_NAME_HUB) return 0; /* the command says what is wrong with it */
    if (hn_cache_find_folder(path, &name, &err) != HONE_OK) return hn_cli_fail_model(&err);
    return put(opts, o->name, i, "", 0, path, "");
}

static int resolve(hn_opts *opts, const hn_opt *o, size_t i)
{
    char path[HN_CACHE_PATH];
    const char *value = hn_opts_nth(opts, o->name, i);
    hone_error err;
    switch (o->use) {
    case HN_USE_MODEL:
        if (hn_cli_model_path(path, value, &err) != HONE_OK) return failed(value, &err);
        return *path ? put(opts, o->name, i, "", 0, path, "") : 0;
    case HN_USE_SERVED: return served(opts, o, i, value);
    case HN_USE_ADAPTER: return adapter(opts, o, i, value);
    case HN_USE_SHELF: return shelf(opts, o, i, value);
    default: return 0;
    }
}

/* As hn_cli_model_path. A command that reads checkpoints means the one that is here, also beside a GGUF, and half of
 * one is no reason to take that. */
static hone_status argument(const hn_command *cmd, char *path, const char *text, hone_error *err)
{
    hn_name name;
    if (!cmd->checkpoint_args) return hn_cli_model_path(path, text, err);
    *path = 0;
    if (access(text, F_OK) == 0) return HONE_OK;
    hone_status st = hn_name_parse(&name, text, err);
    if (st != HONE_OK || name.kind == HN_NAME_NONE) return st;
    name.checkpoint_first = true;
    return hn_cache_find(path, &name, err);
}

/* Arguments are models or something else: one that means no model stays as it is. */
static int resolve_args(const hn_command *cmd, hn_opts *opts)
{
    char path[HN_CACHE_PATH];
    int rc = 0;
    for (int i = 0; i < hn_opts_n_args(opts) && !rc; i++) {
        hn_name name;
        hone_error err;
        const char *text = hn_opts_arg(opts, i);
        if (argument(cmd, path, text, &err) == HONE_OK) {
            if (*path) rc = put(opts, NULL, (size_t)i, "", 0, path, "");
        } else if (hn_name_parse(&name, text, NULL) != HONE_OK || name.kind != HN_NAME_BARE)
            rc = hn_cli_fail_model(&err);
    }
    return rc;
}

int hn_cli_resolve_models(const hn_cli *cli, hn_opts *opts)
{
    int rc = 0;
    for (const hn_opt_group *const *g = cli->cmd->groups; g && *g; g++)
        for (const hn_opt *o = (*g)->opts; o->name && !rc; o++)
            for (size_t i = 0; o->use && i < hn_opts_count(opts, o->name) && !rc; i++) rc = resolve(opts, o, i);
    return rc || !cli->cmd->names_args ? rc : resolve_args(cli->cmd, opts);
}
