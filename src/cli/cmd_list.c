/* hone list: the models that are here, by the names that every -m takes. Headers alone are read; what is broken or not
 * whole is listed with the reason. Owns the table; what lies where is hub's. */
#define _GNU_SOURCE /* strcasestr */
#include "cli/cli.h"
#include "cli/model_card.h"
#include "hub/cache.h"

#include <stdlib.h>
#include <time.h>

static const hn_opt list_opts[] = {
    HN_OPT("names", NULL, FLAG, NULL, "the short names instead, and what they stand for (for hone pull)",
           .excl = "what"),
    HN_OPT("paths", NULL, FLAG, NULL, "the files alone, one a line", .excl = "what"),
    HN_OPT_END,
};
static const hn_opt_group list_group = { "What is shown", list_opts };
static const hn_opt_group *const groups[] = { &list_group, NULL };

enum { MOST_WORDS = 64 };

typedef struct row {
    const hn_local *m;
    char size[24], params[24], type[24], family[40], when[24];
    const char *fits, *state;
    char trouble[300];
    uint64_t n_params, n_ctx, n_bytes;
    bool adapter;
    hone_status failed; /* of opening it */
} row;

static const char *const where_names[] = { "hub", "ollama", "folder" };

/* ---- one model ----------------------------------------------------------------------------------------- */

static void take(char *dst, size_t cap, hone_str s)
{
    char text[200];
    snprintf(dst, cap, "%s", s.ptr ? hn_escape(text, sizeof text, s.ptr, s.len) : "");
}

/* Whether it fits: with what is free now, with all that models may take, or not at all. */
static const char *fits(uint64_t bytes)
{
    static uint64_t most, now; /* asked once: all models are measured by the same */
    uint64_t need = hn_memory_for(bytes);
    if (!most) {
        most = hn_memory_for_models();
        now = hn_memory_available();
    }
    if (!most) return "?";
    return need > most ? "no" : now && need > now ? "not now" : "yes";
}

static void read_header(row *r)
{
    hone_file *f;
    hone_error err;
    hone_status st = hone_file_open(&f, r->m->path, &err);
    if (st != HONE_OK) {
        const char *why = err.message;
        size_t n = strlen(r->m->path);
        if (strncmp(why, r->m->path, n) == 0 && strncmp(why + n, ": ", 2) == 0) why += n + 2;
        r->failed = st;
        r->state = st == HONE_E_IO ? "unreadable" : "broken";
        snprintf(r->trouble, sizeof r->trouble, "%.299s", why);
        return;
    }
    hn_model_card c;
    hn_model_card_of(&c, f);
    take(r->family, sizeof r->family, c.family);
    snprintf(r->type, sizeof r->type, "%s", c.type);
    hn_count_words(r->params, c.n_params);
    r->n_params = c.n_params;
    r->n_bytes = c.n_bytes;
    r->n_ctx = c.n_ctx;
    r->adapter = c.kind.ptr && c.kind.len == 7 && memcmp(c.kind.ptr, "adapter", 7) == 0;
    if (r->adapter) r->state = "adapter";
    r->fits = r->adapter ? "" : fits(c.n_bytes);
    hone_file_close(f);
}

static void fill(row *r, const hn_local *m)
{
    struct tm t;
    time_t when = (time_t)m->when;
    *r = (row){ .m = m, .fits = "", .state = "ready" };
    hn_size_words(r->size, m->bytes);
    if (m->when && localtime_r(&when, &t)) strftime(r->when, sizeof r->when, "%Y-%m-%d", &t);
    snprintf(r->type, sizeof r->type, "%.23s", m->tag);
    snprintf(r->trouble, sizeof r->trouble, "%.299s", m->trouble);
    if (m->unfinished) r->state = "unfinished";
    else if (*m->trouble) r->state = "incomplete";
    else if (m->checkpoint) r->state = "checkpoint";
    else read_header(r);
}

/* ---- shown ------------------------------------------------------------------------------------------------ */

static json_t *text(const char *s) { return hn_json_str(s, strlen(s)); }
static json_t *text_or_null(const char *s) { return *s ? text(s) : json_null(); }
static json_t *count_or_null(uint64_t n) { return n && n <= INT64_MAX ? json_integer((json_int_t)n) : json_null(); }

static json_t *json_row(const row *r)
{
    const hn_local *m = r->m;
    char when[32] = "";
    struct tm t;
    time_t at = (time_t)m->when;
    if (m->when && gmtime_r(&at, &t)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &t);
    json_t *o = json_object(), *files = json_array();
    for (size_t i = 0; i < m->n_file; i++) json_array_append_new(files, text(m->file[i]));
    json_object_set_new(o, "name", text(m->name));
    json_object_set_new(o, "state", json_string(r->state));
    json_object_set_new(o, "trouble", text_or_null(r->trouble));
    json_object_set_new(o, "where", json_string(where_names[m->where]));
    json_object_set_new(o, "path", text_or_null(m->path));
    json_object_set_new(o, "repo", text(m->repo));
    json_object_set_new(o, "revision", text_or_null(m->rev));
    json_object_set_new(o, "commit", text_or_null(m->commit));
    json_object_set_new(o, "files", files);
    json_object_set_new(o, "bytes", json_integer((json_int_t)m->bytes));
    json_object_set_new(o, "type", text_or_null(r->type));
    json_object_set_new(o, "family", text_or_null(r->family));
    json_object_set_new(o, "parameters", count_or_null(r->n_params));
    json_object_set_new(o, "context", count_or_null(r->n_ctx));
    json_object_set_new(o, "memory", count_or_null(r->n_bytes ? hn_memory_for(r->n_bytes) : 0));
    json_object_set_new(o, "fits", text_or_null(r->fits));
    json_object_set_new(o, "changed", text_or_null(when));
    return o;
}

static int print_json(const row *list, size_t n)
{
    json_t *o = hn_json_new("hone.list/1"), *models = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(models, json_row(&list[i]));
    json_object_set_new(o, "models", models);
    json_object_set_new(o, "memory", count_or_null(hn_memory_for_models()));
    return hn_json_print(o);
}

/* Characters that a name takes on a terminal, as far as each is one wide. */
static int width(const char *s)
{
    int n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static void print_row(const row *r, int wide)
{
    char name[1400];
    hn_escape(name, sizeof name, r->m->name, strlen(r->m->name));
    int gap = wide - width(name);
    hn_out_printf("%s%*s  %10s  ", name, gap > 0 ? gap : 0, "", r->size);
    if (*r->trouble) hn_out_printf("%s: %s\n", r->state, HN_ESC(r->trouble, strlen(r->trouble)));
    else if (r->m->checkpoint) hn_out_printf("checkpoint; hone convert %s -o MODEL.gguf makes a model of it\n", name);
    else
        hn_out_printf("%-8s  %-12s  %8s  %-7s  %s\n", r->type, r->adapter ? "adapter" : r->family, r->params, r->fits,
                      r->when);
}

static int print_text(const hn_cli *cli, const row *list, size_t n)
{
    char name[1400];
    int wide = 4;
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        int k = width(hn_escape(name, sizeof name, list[i].m->name, strlen(list[i].m->name)));
        if (k > wide && k <= 64) wide = k;
        bytes += list[i].m->bytes;
    }
    if (n)
        hn_out_printf("%-*s  %10s  %-8s  %-12s  %8s  %-7s  %s\n", wide, "NAME", "SIZE", "TYPE", "FAMILY", "PARAMS",
                      "FITS", "CHANGED");
    for (size_t i = 0; i < n; i++) print_row(&list[i], wide);
    if (!n && hn_opts_n_args(cli->opts))
        hn_err_printf("hone: no model here has such a name; hone list without words shows all\n");
    else if (!n)
        hn_err_printf("hone: no models here%s; try: hone pull NAME, as in hone pull llama3.2-1b\n",
                      hn_cli_bundled() ? " but the bundled one, which hone chat takes" : "");
    else if (hn_out_is_tty()) {
        char all[24], most[24];
        hn_err_printf("%zu model%s, %s; models may take %s of this machine's memory\n", n, n == 1 ? "" : "s",
                      hn_size_words(all, bytes), hn_size_words(most, hn_memory_for_models()));
    }
    return HN_EXIT_OK;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

/* Is it among the words of the command line, or are there none? */
static bool wanted(const hn_cli *cli, const char *name)
{
    int n = hn_opts_n_args(cli->opts);
    for (int i = 0; i < n; i++)
        if (strcasestr(name, hn_opts_arg(cli->opts, i))) return true;
    return n == 0;
}

static int list_names(const hn_cli *cli)
{
    hn_short_names names;
    hone_error err;
    if (hn_short_names_read(&names, &err) != HONE_OK) return hn_cli_fail(&err);
    json_t *list = json_array();
    for (size_t i = 0; i < names.n; i++) {
        const hn_short_name *s = &names.list[i];
        if (!wanted(cli, s->name)) continue;
        if (cli->json)
            json_array_append_new(
                list, json_pack("{s:s, s:o, s:b}", "name", s->name, "means", text(s->means), "own", (int)s->own));
        else hn_out_printf("%-20s %s%s\n", s->name, HN_ESC(s->means, strlen(s->means)), s->own ? "  (your own)" : "");
    }
    hn_short_names_free(&names);
    if (!cli->json) {
        json_decref(list);
        return HN_EXIT_OK;
    }
    json_t *o = hn_json_new("hone.names/1");
    json_object_set_new(o, "names", list);
    return hn_json_print(o);
}

static int list_models(const hn_cli *cli, const hn_locals *here)
{
    row *list = calloc(here->n + 1, sizeof *list);
    size_t n = 0;
    bool paths = hn_opts_flag(cli->opts, "paths");
    if (!list) return hn_cli_error(HN_EXIT_NOMEM, "no memory for a list of %zu models", here->n);
    for (size_t i = 0; i < here->n && !hn_interrupted(); i++) {
        const hn_local *m = &here->list[i];
        if (!wanted(cli, m->name)) continue;
        if (!paths) fill(&list[n++], m);
        else if (!*m->trouble) hn_out_printf("%s\n", m->path);
    }
    size_t unread = 0, lost = 0;
    for (size_t i = 0; i < n; i++) unread += list[i].failed == HONE_E_IO, lost += list[i].failed == HONE_E_NOMEM;
    int rc = hn_interrupted() ? hn_exit_code(HONE_E_INTERRUPTED) : 0;
    if (lost) rc = hn_cli_error(HN_EXIT_NOMEM, "no memory to read the headers of %zu models", lost);
    if (!rc && !paths) rc = cli->json ? print_json(list, n) : print_text(cli, list, n);
    free(list);
    if (rc || !unread) return rc;
    return hn_cli_error(HN_EXIT_FAILURE, "%zu of the models could not be read", unread); /* as ls has it */
}

static int run(const hn_cli *cli)
{
    hn_locals here;
    hone_error err;
    if (hn_opts_flag(cli->opts, "paths") && cli->json)
        return hn_cli_usage(cli, "--paths and --json, which has the paths; choose one");
    if (hn_opts_flag(cli->opts, "names")) return list_names(cli);
    if (hn_cache_list(&here, HN_FIND_ALL, &err) != HONE_OK) return hn_cli_fail(&err);
    int rc = list_models(cli, &here);
    hn_locals_free(&here);
    return rc;
}

const hn_command hn_command_list = {
    .name = "list",
    .summary = "The models that are here, by the names that -m takes",
    .args = "[WORD…]",
    .max_args = MOST_WORDS,
    .groups = groups,
    .examples = "hone list\n"
                "hone list qwen\n"
                "hone list --names\n"
                "hone list --json | jq -r '.models[] | select(.fits == \"yes\").name'\n",
    .run = run,
};
