/* short_names: the names that stand for repositories. Owns the shipped list and the reading of the user's own; what a
 * name means otherwise is names.c. */
#include "hub/names.h"

#include "base/os.h"
#include "base/source.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20 };

/* Of each family what fits ordinary machines; repositories whose files are GGUF and whose owners are known for it. */
static const char shipped[] = "bge-small CompendiumLabs/bge-small-en-v1.5-gguf\n"
                              "deepseek-r1-7b bartowski/DeepSeek-R1-Distill-Qwen-7B-GGUF\n"
                              "deepseek-r1-8b bartowski/DeepSeek-R1-Distill-Llama-8B-GGUF\n"
                              "gemma2-2b bartowski/gemma-2-2b-it-GGUF\n"
                              "gemma2-9b bartowski/gemma-2-9b-it-GGUF\n"
                              "gemma3 ggml-org/gemma-3-4b-it-GGUF\n"
                              "gemma3-1b ggml-org/gemma-3-1b-it-GGUF\n"
                              "gemma3-4b ggml-org/gemma-3-4b-it-GGUF\n"
                              "gemma3-12b ggml-org/gemma-3-12b-it-GGUF\n"
                              "gemma3-27b ggml-org/gemma-3-27b-it-GGUF\n"
                              "gpt-oss ggml-org/gpt-oss-20b-GGUF\n"
                              "gpt-oss-20b ggml-org/gpt-oss-20b-GGUF\n"
                              "gpt-oss-120b ggml-org/gpt-oss-120b-GGUF\n"
                              "llama3.1 bartowski/Meta-Llama-3.1-8B-Instruct-GGUF\n"
                              "llama3.2 bartowski/Llama-3.2-3B-Instruct-GGUF\n"
                              "llama3.2-1b bartowski/Llama-3.2-1B-Instruct-GGUF\n"
                              "llama3.2-3b bartowski/Llama-3.2-3B-Instruct-GGUF\n"
                              "llama3.3 bartowski/Llama-3.3-70B-Instruct-GGUF\n"
                              "mistral bartowski/Mistral-7B-Instruct-v0.3-GGUF\n"
                              "mistral-nemo bartowski/Mistral-Nemo-Instruct-2407-GGUF\n"
                              "nomic-embed-text nomic-ai/nomic-embed-text-v1.5-GGUF\n"
                              "phi3.5 bartowski/Phi-3.5-mini-instruct-GGUF\n"
                              "phi4 bartowski/phi-4-GGUF\n"
                              "qwen2.5 Qwen/Qwen2.5-7B-Instruct-GGUF\n"
                              "qwen2.5-0.5b Qwen/Qwen2.5-0.5B-Instruct-GGUF\n"
                              "qwen2.5-1.5b Qwen/Qwen2.5-1.5B-Instruct-GGUF\n"
                              "qwen2.5-3b Qwen/Qwen2.5-3B-Instruct-GGUF\n"
                              "qwen2.5-7b Qwen/Qwen2.5-7B-Instruct-GGUF\n"
                              "qwen2.5-14b Qwen/Qwen2.5-14B-Instruct-GGUF\n"
                              "qwen2.5-coder Qwen/Qwen2.5-Coder-7B-Instruct-GGUF\n"
                              "qwen2.5-coder-1.5b Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF\n"
                              "qwen3 Qwen/Qwen3-8B-GGUF\n"
                              "qwen3-0.6b Qwen/Qwen3-0.6B-GGUF\n"
                              "qwen3-1.7b Qwen/Qwen3-1.7B-GGUF\n"
                              "qwen3-4b Qwen/Qwen3-4B-GGUF\n"
                              "qwen3-8b Qwen/Qwen3-8B-GGUF\n"
                              "qwen3-14b Qwen/Qwen3-14B-GGUF\n"
                              "qwen3-32b Qwen/Qwen3-32B-GGUF\n"
                              "qwen3-30b-a3b Qwen/Qwen3-30B-A3B-GGUF\n"
                              "qwen3-embedding Qwen/Qwen3-Embedding-0.6B-GGUF\n"
                              "smollm2 bartowski/SmolLM2-1.7B-Instruct-GGUF\n"
                              "smollm2-135m bartowski/SmolLM2-135M-Instruct-GGUF\n"
                              "smollm2-360m bartowski/SmolLM2-360M-Instruct-GGUF\n"
                              "tinyllama TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF\n";

static size_t count_lines(const char *s)
{
    size_t n = 1;
    for (; *s; s++) n += *s == '\n';
    return n;
}

/* A line of the user's file, checked; the names in it are no paths, so nothing of it needs escaping later. */
static hone_status check_line(const hn_short_name *s, const char *path, size_t line, hone_error *err)
{
    hn_name n;
    hone_error why;
    const char *name = HN_ESC(s->name, strlen(s->name));
    if (!hn_ollama_part_ok(s->name))
        return HN_FAIL(err, HONE_E_ARG, "%s:%zu: \"%s\" is no short name; expected letters, digits, - . and _", path,
                       line, name);
    if (hn_name_parse(&n, s->means, &why) != HONE_OK)
        return HN_FAIL(err, HONE_E_ARG, "%s:%zu: %.700s", path, line, why.message);
    if (n.kind != HN_NAME_HUB && n.kind != HN_NAME_OLLAMA && n.kind != HN_NAME_URL)
        return HN_FAIL(err, HONE_E_ARG,
                       "%s:%zu: %s stands for \"%s\"; expected owner/repo[:TAG], ollama:NAME or an address", path, line,
                       name, HN_ESC(s->means, strlen(s->means)));
    return HONE_OK;
}

/* Lines "NAME MEANING" of text, which is cut into pieces. path NULL: shipped, and right. */
static hone_status add_lines(hn_short_names *out, char *text, const char *path, hone_error *err)
{
    hone_status st = HONE_OK;
    size_t line = 0;
    for (char *p = text, *next; p && *p && st == HONE_OK; p = next) {
        line++;
        if ((next = strchr(p, '\n'))) *next++ = 0;
        p[strcspn(p, "#\r")] = 0;
        char *save = NULL, *name = strtok_r(p, " \t", &save), *means = strtok_r(NULL, " \t", &save);
        if (!name) continue;
        hn_short_name s = { name, means ? means : "", path != NULL };
        if (path) st = check_line(&s, path, line, err);
        if (st == HONE_OK && path && strtok_r(NULL, " \t", &save))
            st = HN_FAIL(err, HONE_E_ARG, "%s:%zu: more than two words; expected NAME MEANING", path, line);
        if (st == HONE_OK) out->list[out->n++] = s;
    }
    return st;
}

static int by_name(const void *a, const void *b, void *unused)
{
    const hn_short_name *x = a, *y = b;
    int k = strcasecmp(x->name, y->name);
    (void)unused;
    return k ? k : (int)y->own - (int)x->own; /* the own one first */
}

/* Of those with one name the first stays. */
static void drop_doubles(hn_short_names *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!n || strcasecmp(s->list[n - 1].name, s->list[i].name) != 0) s->list[n++] = s->list[i];
    s->n = n;
}

/* The user's file; false: there is no place for one. */
static bool own_path(char *dst, size_t cap)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool given = config && config[0] == '/';
    if (!given && !(home && home[0] == '/')) return false;
    int n = snprintf(dst, cap, "%s%s/hone/names", given ? config : home, given ? "" : "/.config");
    return n > 0 && (size_t)n < cap;
}

static hone_status read_own(hn_short_names *out, char path[4096], hone_error *err)
{
    size_t len;
    if (!own_path(path, 4096) || access(path, F_OK) != 0) return HONE_OK;
    hone_status st = hn_source_text(&out->own, &len, path, MOST_BYTES, err);
    if (st == HONE_OK && strlen(out->own) != len)
        st =
            HN_FAIL(err, HONE_E_ARG, "%s: has a zero byte at %zu; expected lines NAME MEANING", path, strlen(out->own));
    return st;
}

hone_status hn_short_names_read(hn_short_names *out, hone_error *err)
{
    char path[4096];
    *out = (hn_short_names){ 0 };
    hone_status st = read_own(out, path, err);
    if (st == HONE_OK && !(out->text = strdup(shipped))) st = HN_FAIL(err, HONE_E_NOMEM, "the list of short names");
    size_t most = st == HONE_OK ? count_lines(out->text) + (out->own ? count_lines(out->own) : 0) : 0;
    if (st == HONE_OK && !(out->list = calloc(most, sizeof *out->list)))
        st = HN_FAIL(err, HONE_E_NOMEM, "the list of short names");
    if (st == HONE_OK) st = add_lines(out, out->text, NULL, err);
    if (st == HONE_OK && out->own) st = add_lines(out, out->own, path, err);
    if (st != HONE_OK) {
        hn_short_names_free(out);
        return st;
    }
    hn_os_sort(out->list, out->n, sizeof *out->list, by_name, NULL);
    drop_doubles(out);
    return HONE_OK;
}

void hn_short_names_free(hn_short_names *s)
{
    free(s->list);
    free(s->text);
    free(s->own);
    *s = (hn_short_names){ 0 };
}
