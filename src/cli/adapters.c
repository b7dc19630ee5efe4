/* --lora: opening the adapters that the options name and giving them to a session. What
 * was opened last is kept as JSON, for records and the line about loading. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_ADAPTERS = 64 };

static const hn_opt lora_opts[] = {
    HN_OPT("lora", NULL, FILE, "FILE[:SCALE]",
           "an adapter, GGUF or a PEFT folder, times SCALE (default 1); may be given several times", .repeat = true,
           .use = HN_USE_ADAPTER, .forward = HN_FORWARD_ADAPTERS),
    HN_OPT_END,
};
const hn_opt_group hn_group_lora = { "Adapters", lora_opts };

static json_t *in_use; /* array of {file, hash, scale, rank, pairs} */
static char *in_use_template;

json_t *hn_cli_adapters_json(void) { return in_use && json_array_size(in_use) ? json_deep_copy(in_use) : NULL; }

const char *hn_cli_adapters_words(char *dst, size_t cap)
{
    size_t i, n = 0;
    json_t *a;
    dst[0] = 0;
    json_array_foreach(in_use, i, a)
    {
        const char *file = json_string_value(json_object_get(a, "file")), *slash = strrchr(file, '/');
        if (slash && slash[1]) file = slash + 1;
        if (n < cap)
            n += (size_t)snprintf(dst + n, cap - n, "%s%s × %.4g (rank %d)", i ? ", " : ", adapter ",
                                  HN_ESC(file, strlen(file)), json_number_value(json_object_get(a, "scale")),
                                  (int)json_integer_value(json_object_get(a, "rank")));
    }
    return dst;
}

/* The whole of s as a number? */
static bool is_number(const char *s, float *out)
{
    char *end;
    if (!*s || *s == ' ') return false;
    errno = 0;
    double v = strtod(s, &end);
    *out = (float)v;
    return *end == 0;
}

int hn_cli_adapter_arg(const char *arg, char **path, float *scale)
{
    const char *colon = strrchr(arg, ':');
    float v = 1;
    bool scaled = colon && colon > arg && is_number(colon + 1, &v);
    if (scaled && !(v >= -1e6f && v <= 1e6f))
        return hn_cli_error(HN_EXIT_USAGE, "--lora %s: the scale is %g, expected -1e6 to 1e6", HN_ESC(arg, strlen(arg)),
                            (double)v);
    if (!*arg) return hn_cli_error(HN_EXIT_USAGE, "--lora is empty; expected FILE or FILE:SCALE");
    char *before = colon && !scaled && access(arg, F_OK) != 0 ? strndup(arg, (size_t)(colon - arg)) : NULL;
    bool no_number = before && *before && access(before, F_OK) == 0; /* the file is there without what follows it */
    free(before);
    if (no_number)
        return hn_cli_error(HN_EXIT_USAGE, "--lora %s: the scale is '%s', expected a number", HN_ESC(arg, strlen(arg)),
                            HN_ESC(colon + 1, strlen(colon + 1)));
    *path = scaled ? strndup(arg, (size_t)(colon - arg)) : strdup(arg);
    if (*path && scaled && access(*path, F_OK) != 0 && access(arg, F_OK) == 0) { /* the number is part of the name */
        scaled = false;
        free(*path);
        *path = strdup(arg);
    }
    *scale = scaled ? v : 1;
    return *path ? 0 : hn_cli_error(HN_EXIT_NOMEM, "no memory for a file name");
}

/* Opens the i-th. */
static int open_one(const hn_cli *cli, const hone_model *m, size_t i, hone_adapter **out, float *scale)
{
    char *path, hash[20];
    hone_error err;
    hone_adapter_info info;
    int rc = hn_cli_adapter_arg(hn_opts_nth(cli->opts, "lora", i), &path, scale);
    if (rc) return rc;
    if (hone_adapter_open(out, m, path, &err) != HONE_OK) {
        rc = hn_cli_fail_model(&err);
    } else {
        hone_adapter_get_info(*out, &info);
        if (*scale != 0 && *info.chat_template) {
            free(in_use_template);
            in_use_template = strdup(info.chat_template);
        }
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)info.hash);
        json_array_append_new(in_use, json_pack("{s:o, s:s, s:f, s:i, s:i}", "file", hn_json_str(path, strlen(path)),
                                                "hash", hash, "scale", (double)*scale, "rank", (int)info.rank, "pairs",
                                                (int)info.n_pairs));
    }
    free(path);
    return rc;
}

/* What is opened and waits for its session. */
static struct {
    const hone_model *m;
    hone_adapter *a[MAX_ADAPTERS];
    float scale[MAX_ADAPTERS];
    size_t n;
} opened;

static void close_opened(void)
{
    for (size_t i = 0; i < opened.n; i++) hone_adapter_close(opened.a[i]);
    opened.n = 0;
    opened.m = NULL;
}

static int open_all(const hn_cli *cli, const hone_model *m)
{
    size_t n = hn_opts_has(cli->opts, "lora") ? hn_opts_count(cli->opts, "lora") : 0;
    int rc = 0;
    if (opened.m == m) return 0;
    if (n > MAX_ADAPTERS) return hn_cli_usage(cli, "--lora: %zu adapters; expected at most %d", n, MAX_ADAPTERS);
    close_opened();
    json_decref(in_use);
    in_use = json_array();
    free(in_use_template);
    in_use_template = NULL;
    for (; opened.n < n && !rc; opened.n += !rc)
        rc = open_one(cli, m, opened.n, &opened.a[opened.n], &opened.scale[opened.n]);
    if (rc) close_opened();
    else opened.m = m;
    return rc;
}

int hn_cli_adapters_template(const hn_cli *cli, const hone_model *m, const char **source)
{
    int rc = open_all(cli, m);
    *source = rc ? NULL : in_use_template;
    return rc;
}

int hn_cli_set_adapters(const hn_cli *cli, const hone_model *m, hone_session *s)
{
    hone_error err;
    int rc = open_all(cli, m);
    if (!rc && opened.n && hone_session_set_adapters(s, opened.a, opened.scale, (int32_t)opened.n, &err) != HONE_OK)
        rc = hn_cli_fail(&err);
    close_opened();
    return rc;
}

hone_status hn_cli_scale_adapters(const hn_cli *cli, const hone_model *m, hone_session *s, int32_t seq, uint64_t draw,
                                  hone_error *err)
{
    hone_adapter *a[MAX_ADAPTERS + 1];
    float scale[MAX_ADAPTERS + 1];
    if (open_all(cli, m)) return HN_FAIL(err, HONE_E_ARG, "the adapters do not fit the model");
    const size_t n = opened.n;
    for (size_t i = 0; i <= n && n; i++) {
        a[i] = opened.a[i % n];
        scale[i] = 0.125f * (float)(1 + hn_rand64(draw, i) % 11);
    }
    hone_status st = n ? hone_seq_set_adapters(s, seq, a, scale, (int32_t)n + 1, err) : HONE_OK;
    close_opened();
    return st;
}
