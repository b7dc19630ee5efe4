/* hone show: what a model is, in a screenful; every key and tensor is hone inspect's. Owns the choice of what people
 * ask first: what it is, what it takes, where it is from, what its maker allows. */
#include "base/json_tree.h"
#include "cli/cli.h"
#include "cli/inspect_memory.h"
#include "cli/model_card.h"
#include "hub/cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

static const hn_opt show_opts[] = {
    HN_OPT("model", "-m", FILE, "NAME", "the model: a name of hone list, or a GGUF file", .use = HN_USE_MODEL,
           .what = "the file"),
    HN_OPT("template", NULL, FLAG, NULL, "its chat template alone, as it is", .excl = "what"),
    HN_OPT("license", "--licence", FLAG, NULL, "its licence alone, as far as the file says it", .excl = "what"),
    HN_OPT("parameters", NULL, FLAG, NULL, "the settings its maker gives for sampling, alone", .excl = "what"),
    HN_OPT("ctx", "-c", I32, "N", "what a sequence of N positions takes in memory (default: 4096, and all it knows)",
           .min = 1, .max = 1 << 26),
    HN_OPT_END,
};
static const hn_opt_group show_group = { "What is shown", show_opts };
static const hn_opt_group *const groups[] = { &show_group, NULL };

enum { MOST_LAYER = 1 << 20 };

typedef struct showing {
    const hn_cli *cli;
    const char *path;
    hone_file *f;
    hn_model_card card;
    hn_locals here;
    const hn_local *from; /* what it is of those here, or NULL */
    hn_inspect_costs costs;
    char *licence, *parameters; /* malloc'ed, or NULL: nothing is known */
} showing;

/* Which of those here it is, if any. 0, or the exit code. */
static int find_local(showing *s)
{
    struct stat mine, sb;
    if (stat(s->path, &mine) != 0)
        return hn_cli_error(HN_EXIT_FAILURE, "%s: %s", HN_ESC(s->path, strlen(s->path)), strerror(errno));
    for (size_t i = 0; i < s->here.n && !s->from; i++) {
        const hn_local *m = &s->here.list[i];
        if (!*m->path || *m->trouble) continue;
        if (stat(m->path, &sb) != 0)
            return hn_cli_error(HN_EXIT_FAILURE, "%s: %s", HN_ESC(m->path, strlen(m->path)), strerror(errno));
        if (sb.st_dev == mine.st_dev && sb.st_ino == mine.st_ino) s->from = m;
    }
    return 0;
}

/* ---- texts that lie beside the model, in ollama's store ------------------------------------------------------- */

/* *text: the layer of this kind; NULL: there is none, or none that is fit to be shown. 0, or the exit code. */
static int layer_text(const showing *s, const char *kind, char **text)
{
    const hn_json_rules rules = { .max_bytes = MOST_LAYER, .max_depth = 16 };
    char root[HN_CACHE_PATH], path[HN_CACHE_PATH];
    hn_name name;
    json_t *o = NULL, *layer;
    size_t i, n;
    int rc = 0;
    hone_error err;
    *text = NULL;
    if (!s->from || s->from->where != HN_LOCAL_OLLAMA || hn_name_parse(&name, s->from->name, &err) != HONE_OK) return 0;
    if (hn_ollama_root(root, &err) != HONE_OK || hn_ollama_manifest(path, root, &name, &err) != HONE_OK ||
        hn_json_tree_file(&o, path, &rules, &err) != HONE_OK)
        return hn_cli_fail(&err);
    json_array_foreach(json_object_get(o, "layers"), i, layer)
    {
        if (*text || rc || strcmp(hn_json_text_of(layer, "mediaType"), kind) != 0) continue;
        if (json_integer_value(json_object_get(layer, "size")) > MOST_LAYER) continue;
        if (hn_ollama_blob(path, root, hn_json_text_of(layer, "digest"), &err) != HONE_OK) continue;
        if (hn_read_all(path, text, &n, &err) != HONE_OK) rc = hn_cli_fail(&err);
    }
    json_decref(o);
    return rc;
}

/* ---- what the file says -------------------------------------------------------------------------------------- */

static bool join(char **to, const char *a, const char *b, size_t n_b)
{
    size_t n = *to ? strlen(*to) : 0, k = strlen(a);
    char *p = realloc(*to, n + k + n_b + 2);
    if (!p) return false;
    memcpy(p + n, a, k);
    memcpy(p + n + k, b, n_b);
    memcpy(p + n + k + n_b, "\n", 2);
    *to = p;
    return true;
}

/* The licence: of ollama's store the text, else the words of the file. */
static bool read_licence(showing *s)
{
    const hn_model_card *c = &s->card;
    if (s->licence) return true;
    const hone_str *parts[] = { &c->licence, &c->licence_name, &c->licence_link };
    for (size_t i = 0; i < 3; i++)
        if (parts[i]->ptr && parts[i]->len && !join(&s->licence, "", parts[i]->ptr, parts[i]->len)) return false;
    return true;
}

/* general.sampling.* of the file, as "top_k 40" a line; of ollama's store its JSON. */
static bool read_parameters(showing *s)
{
    static const char prefix[] = "general.sampling.";
    char text[64];
    if (s->parameters) return true;
    for (uint64_t i = 0; i < hone_file_n_kv(s->f); i++) {
        hone_kv kv;
        hone_file_kv(s->f, i, &kv);
        size_t n = sizeof prefix - 1;
        if (kv.key.len <= n || memcmp(kv.key.ptr, prefix, n) != 0) continue;
        if (kv.type == HONE_KV_F32 || kv.type == HONE_KV_F64) snprintf(text, sizeof text, "%.6g", kv.v.f);
        else if (kv.type == HONE_KV_I32 || kv.type == HONE_KV_I64) snprintf(text, sizeof text, "%" PRId64, kv.v.i);
        else if (kv.type == HONE_KV_U32 || kv.type == HONE_KV_U64) snprintf(text, sizeof text, "%" PRIu64, kv.v.u);
        else continue;
        char line[200];
        snprintf(line, sizeof line, "%.100s ", HN_ESC(kv.key.ptr + n, kv.key.len - n));
        if (!join(&s->parameters, line, text, strlen(text))) return false;
    }
    return true;
}

/* ---- shown ------------------------------------------------------------------------------------------------------ */

static json_t *text_of(hone_str s) { return s.ptr ? hn_json_str(s.ptr, s.len) : json_null(); }
static json_t *text_or_null(const char *s) { return s && *s ? hn_json_str(s, strlen(s)) : json_null(); }
static const char *const where_names[] = { "hub", "ollama", "folder" };

static int print_json(const showing *s)
{
    const hn_model_card *c = &s->card;
    const hn_local *m = s->from;
    json_t *o = hn_json_new("hone.show/1");
    json_object_set_new(o, "name", text_or_null(m ? m->name : NULL));
    json_object_set_new(o, "path", text_or_null(s->path));
    json_object_set_new(o, "where", m ? json_string(where_names[m->where]) : json_null());
    json_object_set_new(o, "repo", text_or_null(m && m->where != HN_LOCAL_FOLDER ? m->repo : NULL));
    json_object_set_new(o, "commit", text_or_null(m ? m->commit : NULL));
    json_object_set_new(o, "title", text_of(c->name));
    json_object_set_new(o, "kind", text_of(c->kind));
    json_object_set_new(o, "family", text_of(c->family));
    json_object_set_new(o, "type", text_or_null(c->type));
    json_object_set_new(o, "parameters", json_integer((json_int_t)c->n_params));
    json_object_set_new(o, "bytes", json_integer((json_int_t)hone_file_size(s->f)));
    json_object_set_new(o, "parts", json_integer(c->n_parts));
    json_object_set_new(o, "context", c->n_ctx ? json_integer((json_int_t)c->n_ctx) : json_null());
    json_object_set_new(o, "tokenizer", text_of(c->tokenizer));
    json_object_set_new(o, "template", text_of(c->template));
    json_object_set_new(o, "license", text_or_null(s->licence));
    json_object_set_new(o, "sampling", text_or_null(s->parameters));
    json_object_set_new(o, "sequence", hn_inspect_json_memory(&s->costs));
    json_object_set_new(o, "memory", json_integer((json_int_t)hn_memory_for(c->n_bytes)));
    json_object_set_new(o, "fits", json_boolean(hn_memory_for(c->n_bytes) <= hn_memory_for_models()));
    return hn_json_print(o);
}

static void line_of(const char *label, hone_str s)
{
    if (s.ptr && s.len) hn_out_printf("%-16s %s\n", label, HN_ESC(s.ptr, s.len));
}

/* The first line of a text, and that there are more. */
static void first_line(const char *label, const char *text)
{
    if (!text || !*text) return;
    size_t n = strcspn(text, "\n"), all = strlen(text);
    hn_out_printf("%-16s %s%s\n", label, HN_ESC(text, n), n + 1 < all ? " …" : "");
}

static void print_origin(const showing *s)
{
    const hn_local *m = s->from;
    if (m) hn_out_printf("%-16s %s\n", "model", HN_ESC(m->name, strlen(m->name)));
    hn_out_printf("%-16s %s\n", "file", HN_ESC(s->path, strlen(s->path)));
    if (m && m->where == HN_LOCAL_HUB)
        hn_out_printf("%-16s hf.co/%s at %s%s%s\n", "from", m->repo, *m->rev ? m->rev : "", *m->rev ? ", " : "",
                      m->commit);
    if (m && m->where == HN_LOCAL_OLLAMA) hn_out_printf("%-16s ollama's store, %s\n", "from", m->repo);
}

static int print_text(const showing *s)
{
    const hn_model_card *c = &s->card;
    char a[24], b[24], d[24];
    print_origin(s);
    line_of("title", c->name);
    if (c->kind.ptr && (c->kind.len != 5 || memcmp(c->kind.ptr, "model", 5) != 0)) line_of("kind", c->kind);
    line_of("family", c->family);
    hn_out_printf("%-16s %s\n", "parameters", hn_count_words(a, c->n_params));
    hn_out_printf("%-16s %s, %s", "weights", c->type, hn_size_words(a, hone_file_size(s->f)));
    if (c->n_parts > 1) hn_out_printf(" in %d parts", (int)c->n_parts);
    hn_out_printf("\n");
    if (c->n_ctx) hn_out_printf("%-16s %" PRIu64 " positions\n", "context", c->n_ctx);
    line_of("tokenizer", c->tokenizer);
    hn_out_printf("%-16s %s\n", "chat template", c->template.ptr ? "yes (--template shows it)" : "none");
    first_line("licence", s->licence);
    first_line("sampling", s->parameters);
    uint64_t need = hn_memory_for(c->n_bytes), most = hn_memory_for_models();
    hn_out_printf("%-16s about %s, with room for a usual context; models may take %s here: it %s\n", "memory",
                  hn_size_words(a, need), hn_size_words(b, most), need <= most ? "fits" : "does not fit");
    if (need <= most && need > hn_memory_available())
        hn_out_printf("%-16s only %s are free now\n", "", hn_size_words(d, hn_memory_available()));
    hn_inspect_print_memory(&s->costs);
    return HN_EXIT_OK;
}

static int print_one(const showing *s, hone_str text, const char *what)
{
    if (!text.ptr || !text.len)
        return hn_cli_error(HN_EXIT_FAILURE, "%s says nothing of %s", HN_ESC(s->path, strlen(s->path)), what);
    if (s->cli->json) {
        json_t *o = hn_json_new("hone.show/1");
        json_object_set_new(o, "path", text_or_null(s->path));
        json_object_set_new(o, what, hn_json_str(text.ptr, text.len));
        return hn_json_print(o);
    }
    hn_out_write(text.ptr, text.len);
    if (text.ptr[text.len - 1] != '\n') hn_out_write("\n", 1);
    return HN_EXIT_OK;
}

static hone_str str_of(const char *s) { return (hone_str){ s, s ? strlen(s) : 0 }; }

static int show_it(showing *s)
{
    const hn_opts *o = s->cli->opts;
    hone_error err;
    hn_model_card_of(&s->card, s->f);
    if (hn_opts_flag(o, "template")) return print_one(s, s->card.template, "template");
    int rc = layer_text(s, "application/vnd.ollama.image.license", &s->licence);
    if (!rc) rc = layer_text(s, "application/vnd.ollama.image.params", &s->parameters);
    if (rc) return rc;
    if (!read_licence(s) || !read_parameters(s))
        return hn_cli_error(HN_EXIT_NOMEM, "no memory for the texts of a model");
    if (hn_opts_flag(o, "license")) return print_one(s, str_of(s->licence), "license");
    if (hn_opts_flag(o, "parameters")) return print_one(s, str_of(s->parameters), "sampling");
    int32_t n_ctx = hn_opts_given(o, "ctx") ? hn_opts_i32(o, "ctx") : 0;
    hone_status st = hn_inspect_memory(&s->costs, s->path, n_ctx, "f16", &err);
    if (st != HONE_OK && st != HONE_E_UNSUPPORTED && st != HONE_E_FORMAT) return hn_cli_fail_model(&err);
    if (st != HONE_OK) {
        s->costs.n = 0;
        hn_cli_note("hone does not run it: %s", err.message);
    }
    return s->cli->json ? print_json(s) : print_text(s);
}

static int run(const hn_cli *cli)
{
    showing s = { .cli = cli, .path = hn_opts_str(cli->opts, "model") };
    hone_error err;
    static const char *const plain[] = { "ctx", NULL };
    if (!s.path) return hn_cli_usage(cli, "missing argument: show needs NAME");
    bool one = hn_opts_flag(cli->opts, "template") || hn_opts_flag(cli->opts, "license") ||
               hn_opts_flag(cli->opts, "parameters");
    int rc = one ? hn_cli_without_effect(cli, false, plain, "one text was asked for") : 0;
    if (rc) return rc;
    if (hone_file_open(&s.f, s.path, &err) != HONE_OK) {
        rc = hn_cli_fail_model(&err);
        if (err.code == HONE_E_IO) hn_cli_advise_model(s.path);
        return rc;
    }
    if (hn_cache_list(&s.here, HN_FIND_ALL, &err) != HONE_OK) rc = hn_cli_fail(&err);
    if (!rc) rc = find_local(&s);
    if (!rc) rc = show_it(&s);
    free(s.licence);
    free(s.parameters);
    hn_locals_free(&s.here);
    hone_file_close(s.f);
    return rc;
}

const hn_command hn_command_show = {
    .name = "show",
    .summary = "What a model is: family, size, context, memory, licence, where it is from",
    .args = "NAME",
    .takes = "model",
    .groups = groups,
    .examples = "hone show llama3.2-1b\n"
                "hone show model.gguf --json\n"
                "hone show ollama:llama3.2 --template\n",
    .run = run,
};
