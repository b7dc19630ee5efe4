/* advise: what stands where a model was looked for, and what to do about it. Owns these words; opening is the
 * library's, and it has said already what is wrong. */
#include "base/json_tree.h"
#include "cli/cli.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST = 4 };

static bool is_gguf(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".gguf") == 0 && name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }
static int keep(const struct dirent *e) { return is_gguf(e->d_name); }

/* "DIR/a.gguf, DIR/b.gguf …" of a folder's models; their number. */
static int list_models(const char *folder, char *dst, size_t cap)
{
    struct dirent **list;
    int n = scandir(folder, &list, keep, by_name);
    size_t at = 0;
    bool here = strcmp(folder, ".") == 0;
    dst[0] = 0;
    for (int i = 0; i < n; i++) {
        if (i < MOST && at < cap)
            at += (size_t)snprintf(dst + at, cap - at, "%s%s%s%s", i ? ", " : "", here ? "" : folder,
                                   here || folder[strlen(folder) - 1] == '/' ? "" : "/", list[i]->d_name);
        free(list[i]);
    }
    if (n > MOST && at < cap) snprintf(dst + at, cap - at, " and %d more", n - MOST);
    if (n >= 0) free(list);
    return n > 0 ? n : 0;
}

/* The class that a Hugging Face checkpoint's config.json names; false: it is none. */
static bool huggingface(const char *folder, char *name, size_t cap)
{
    char path[4096];
    json_t *o;
    struct stat sb;
    snprintf(path, sizeof path, "%s/config.json", folder);
    if (stat(path, &sb) != 0) return false;
    snprintf(name, cap, "config.json");
    if (hn_json_tree_file(&o, path, NULL, NULL) != HONE_OK) return true;
    const char *arch = json_string_value(json_array_get(json_object_get(o, "architectures"), 0));
    if (arch) snprintf(name, cap, "%s", HN_ESC(arch, strlen(arch)));
    json_decref(o);
    return true;
}

static void advise_folder(const char *path)
{
    char models[1024], name[200];
    const char *shown = HN_ESC(path, strlen(path));
    if (list_models(path, models, sizeof models))
        hn_err_printf("hone: try: one of its files: %s\n", HN_ESC(models, strlen(models)));
    else if (huggingface(path, name, sizeof name))
        hn_err_printf(
            "hone: %s is a Hugging Face checkpoint (%s); hone runs GGUF files\n"
            "hone: try: hone convert %s -o model.gguf; or get the model as GGUF (search for its name and GGUF)\n",
            shown, name, shown);
    else hn_err_printf("hone: try: the name of a .gguf file; the README says where models come from\n");
}

void hn_cli_advise_model(const char *path)
{
    char folder[4096], models[1024];
    struct stat sb;
    const char *slash = strrchr(path, '/');
    if (stat(path, &sb) == 0) {
        if (S_ISDIR(sb.st_mode)) advise_folder(path);
        else hn_err_printf("hone: try: ls -l %s\n", HN_ESC(path, strlen(path)));
        return;
    }
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
    if (list_models(folder, models, sizeof models)) {
        hn_err_printf("hone: try: a model that is there: %s\n", HN_ESC(models, strlen(models)));
        return;
    }
    if (!slash && !is_gguf(path))
        hn_err_printf("hone: try: a name of hone list, a .gguf file, or a short name of hone list --names, which hone "
                      "pull gets\n");
    else
        hn_err_printf("hone: try: a .gguf file (the README says where they come from), or one of random weights: hone "
                      "synth --list\n");
}
