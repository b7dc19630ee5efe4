/* lora_peft_write: an adapter as a PEFT folder. Each file appears whole (base/file.h), the tensors first, then the
 * template of the conversations it was trained on, if any, the config last: a folder that has a config is whole. So the
 * config of an adapter that was there before goes before its tensors do: they are nothing without their scale. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/os.h"
#include "base/source.h"
#include "forge/lora_halves.h"
#include "model/lora_modules.h"
#include "model/lora_peft.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a file ------------------------------------------------------------------------------------- */

static hone_status begin_file(hn_file **out, const char *folder, const char *name, uint64_t n_bytes, hone_error *err)
{
    char *path;
    *out = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0) return HN_FAIL(err, HONE_E_NOMEM, "%s: path", folder);
    hone_status st = hn_file_begin(out, path, &(hn_file_want){ .n_bytes = n_bytes }, err);
    free(path);
    return st;
}

/* Text of which a memory stream was made, as a whole file. Takes text. */
static hone_status write_text(const char *folder, const char *name, char *text, size_t n, hone_error *err)
{
    hn_file *f;
    hone_status st = begin_file(&f, folder, name, n, err);
    if (st == HONE_OK) st = hn_file_put(f, text, n, err);
    if (st == HONE_OK) st = hn_file_end(f, err);
    hn_file_drop(f);
    free(text);
    return st;
}

/* Text as a JSON string. */
static void put_str(FILE *f, const char *s)
{
    fputc('"', f);
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        if (*p == '"' || *p == '\\') fprintf(f, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7F) fprintf(f, "\\u%04x", *p);
        else fputc(*p, f);
    }
    fputc('"', f);
}

/* ---- modules ---------------------------------------------------------------------------------------- */

/* Pairs that have the names of modules and their rows' order; names, A and B are owned. */
typedef struct modules {
    hn_lora_pair *pair;
    int32_t n, cap;
} modules;

static void modules_free(modules *o)
{
    for (int32_t i = 0; i < o->n; i++) {
        free(o->pair[i].name);
        free(o->pair[i].a);
        free(o->pair[i].b);
    }
    free(o->pair);
}

static hone_status new_module(modules *o, hn_lora_pair **out, const char *name, int64_t n_in, int64_t n_out,
                              int64_t rank, hone_error *err)
{
    if (o->n == o->cap) {
        int32_t cap = o->cap ? 2 * o->cap : 64;
        hn_lora_pair *p = realloc(o->pair, (size_t)cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%d modules", cap);
        o->pair = p;
        o->cap = cap;
    }
    hn_lora_pair *p = *out = &o->pair[o->n++];
    *p = (hn_lora_pair){ .name = strdup(name), .n_in = n_in, .n_out = n_out, .rank = rank, .scale = 1 };
    p->a = malloc((size_t)(rank * n_in) * sizeof *p->a);
    p->b = malloc((size_t)(rank * n_out) * sizeof *p->b);
    return p->name && p->a && p->b ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "adapter of %s", name);
}

/* The modules that a tensor's matrices are in, of all that adapts them. */
static hone_status add_modules(modules *o, const hone_model *m, const hn_lora_thing *t, const hn_lora_thing *all,
                               int32_t n, hone_error *err)
{
    char name[HN_MAX_PART][HN_LORA_NAME];
    hn_lora_place to[HN_MAX_PART];
    hone_status st = HONE_OK;
    int count = hn_modules_of(name, to, m, &t->at);
    if (count < 0) return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: PEFT has no name for it", t->pair.name);
    for (int k = 0; k < count && st == HONE_OK; k++) {
        bool done = false;
        hn_lora_pair *p;
        int32_t n_source;
        for (int32_t i = 0; i < o->n && !done; i++) done = !strcmp(o->pair[i].name, name[k]);
        if (done) continue;
        int64_t rank = hn_modules_rank(&to[k], all, n, &n_source);
        st = new_module(o, &p, name[k], t->pair.n_in, hn_modules_rows(&to[k]), rank, err);
        if (st == HONE_OK) hn_modules_gather(p->a, p->b, &p->scale, &to[k], rank, all, n, m->hp.head_dim);
    }
    return st;
}

static hone_status make_modules(modules *o, const hone_model *m, const hn_lora_pair *pair, int32_t n, hone_error *err)
{
    hone_status st = HONE_OK;
    hn_lora_thing *all = calloc((size_t)n + 1, sizeof *all);
    if (!all) return HN_FAIL(err, HONE_E_NOMEM, "%d pairs", n);
    for (int32_t i = 0; i < n; i++) {
        all[i].pair = pair[i];
        hn_module_tensor(&all[i].at, m, pair[i].name);
    }
    for (int32_t i = 0; i < n && st == HONE_OK; i++) {
        const char *outside = hn_module_outside(pair[i].name);
        hn_lora_pair *p;
        if (all[i].at.n_part) st = add_modules(o, m, &all[i], all, n, err);
        else if (!outside) st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: PEFT has no name for it", pair[i].name);
        else if ((st = new_module(o, &p, outside, pair[i].n_in, pair[i].n_out, pair[i].rank, err)) == HONE_OK) {
            memcpy(p->a, pair[i].a, (size_t)(p->rank * p->n_in) * sizeof *p->a);
            memcpy(p->b, pair[i].b, (size_t)(p->rank * p->n_out) * sizeof *p->b);
            p->scale = pair[i].scale;
        }
    }
    free(all);
    return st;
}

/* ---- adapter_model.safetensors -------------------------------------------------------------------- */

/* The header of a safetensors file, its length a multiple of 8; *n_data: bytes behind it. */
static hone_status make_header(char **head, size_t *len, uint64_t *n_data, const hn_lora_pair *pair,
                               const hn_lora_halves *halves, hone_error *err)
{
    uint64_t at = 0;
    hone_status st = HONE_OK;
    *head = NULL;
    hn_os_text text;
    if (!hn_os_text_open(&text)) return HN_FAIL(err, HONE_E_NOMEM, "header of %zu tensors", halves->n);
    FILE *h = text.f;
    fputs("{\"__metadata__\":{\"format\":\"pt\"}", h);
    for (size_t i = 0; i < halves->n && st == HONE_OK; i++) {
        const hn_recipe_tensor *t = &halves->t[i];
        const hn_type_info *ti = hn_type_get(t->type);
        uint64_t n = t->ne[0] * t->ne[1] * ti->block_bytes;
        fprintf(h,
                ",\"base_model.model.%s.lora_%c.weight\":{\"dtype\":\"%s\",\"shape\":[%lld,%lld],"
                "\"data_offsets\":[%llu,%llu]}",
                pair[i / 2].name, i % 2 ? 'B' : 'A', ti->name, (long long)t->ne[1], (long long)t->ne[0],
                (unsigned long long)at, (unsigned long long)(at + n));
        at += n;
    }
    fputc('}', h);
    while (st == HONE_OK && fflush(h) == 0 && text.n % 8) fputc(' ', h);
    *head = hn_os_text_close(&text, len);
    if (st == HONE_OK && !*head) st = HN_FAIL(err, HONE_E_NOMEM, "header of %zu tensors", halves->n);
    *n_data = at;
    return st;
}

typedef struct tensors_file {
    const char *folder;
    char *head;
    size_t n_head;
    uint64_t n_data;
    const char *config; /* what the folder's will be */
    size_t n_config;
    hn_file *f;
} tensors_file;

static hone_status begin_tensors(void *to, hone_error *err)
{
    tensors_file *t = to;
    unsigned char n_head[8];
    for (int i = 0; i < 8; i++) n_head[i] = (unsigned char)((uint64_t)t->n_head >> 8 * i & 255);
    hone_status st =
        begin_file(&t->f, t->folder, "adapter_model.safetensors", sizeof n_head + t->n_head + t->n_data, err);
    if (st == HONE_OK) st = hn_file_put(t->f, n_head, sizeof n_head, err);
    return st == HONE_OK ? hn_file_put(t->f, t->head, t->n_head, err) : st;
}

static hone_status put_piece(void *to, const hn_recipe_piece *p, hone_error *err)
{
    return hn_file_put(((tensors_file *)to)->f, p->data, p->n_bytes, err);
}

/* A config that was there says how the tensors that were there are scaled: another than theirs goes before they come,
 * and is back where they do not. */
static hone_status end_tensors(void *to, hone_error *err)
{
    enum { MAX_CONFIG = 1 << 24 };
    tensors_file *t = to;
    char *path, *old = NULL;
    size_t n = 0;
    hone_status st = HONE_OK;
    if (asprintf(&path, "%s/adapter_config.json", t->folder) < 0)
        return HN_FAIL(err, HONE_E_NOMEM, "%s: path", t->folder);
    if (access(path, F_OK) == 0) st = hn_source_text(&old, &n, path, MAX_CONFIG, err);
    bool same = old && n == t->n_config && memcmp(old, t->config, n) == 0;
    if (st == HONE_OK && !same && unlink(path) != 0 && errno != ENOENT)
        st = HN_FAIL(err, HONE_E_IO, "%s: the configuration of another adapter cannot be removed: %s",
                     HN_ESC(path, strlen(path)), strerror(errno));
    if (st == HONE_OK) {
        hone_error other;
        if (!same) hn_file_sync_folder(path);
        st = hn_file_end(t->f, err);
        if (st != HONE_OK && old && !same) hn_file_replace(path, old, n, &other);
    }
    free(old);
    free(path);
    return st;
}

static hone_status write_tensors(const char *folder, const hn_lora_pair *pair, int32_t n_pair, hn_type type,
                                 const char *config, size_t n_config, hone_error *err)
{
    static const hn_recipe_sink sink = { begin_tensors, put_piece, end_tensors };
    hn_lora_halves h;
    tensors_file to = { .folder = folder, .config = config, .n_config = n_config };
    hone_status st = hn_lora_halves_make(&h, folder, pair, n_pair, type, err);
    if (st == HONE_OK) st = make_header(&to.head, &to.n_head, &to.n_data, pair, &h, err);
    if (st == HONE_OK) {
        hn_recipe r = { .dst = folder, .t = h.t, .n = h.n, .piece_bytes = HN_LORA_PIECE_BYTES };
        st = hn_recipe_run(&r, &sink, &to, err);
    }
    hn_file_drop(to.f);
    free(to.head);
    hn_lora_halves_free(&h);
    return st;
}

/* ---- adapter_config.json ------------------------------------------------------------------------------ */

static double alpha_of(const hn_lora_pair *p, bool rslora)
{
    double a = (double)p->scale * (rslora ? sqrt((double)p->rank) : (double)p->rank);
    return fabs(a - rint(a)) < 1e-5 * fabs(a) ? rint(a) : a;
}

/* The number of a layer in a module's name, where it stands, what follows; NULL: it has none. */
static const char *after_layer(const char *module, int *at)
{
    for (const char *s = strchr(module, '.'); s; s = strchr(s + 1, '.')) {
        size_t n = strspn(s + 1, "0123456789");
        if (!n || s[1 + n] != '.') continue;
        *at = (int)(s + 1 - module);
        return s + 1 + n;
    }
    return NULL;
}

/* Are the targets the same in every layer of the model? Then their last names say it all. */
static bool everywhere(const hone_model *m, const hn_lora_pair *pair, int32_t n_pair)
{
    char name[128];
    for (int32_t i = 0; i < n_pair; i++) {
        int at = 0;
        const char *rest = after_layer(pair[i].name, &at);
        for (int32_t il = 0; rest && il < m->hp.n_layer; il++) {
            int32_t k = 0;
            snprintf(name, sizeof name, "%.*s%d%s", at, pair[i].name, il, rest);
            while (k < n_pair && strcmp(pair[k].name, name)) k++;
            if (k == n_pair) return false;
        }
    }
    return true;
}

static const char *last_name(const char *module)
{
    const char *dot = strrchr(module, '.');
    return dot ? dot + 1 : module;
}

static void put_targets(FILE *f, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair)
{
    bool all = everywhere(m, pair, n_pair);
    int n = 0;
    for (int32_t i = 0; i < n_pair; i++) {
        bool seen = false;
        for (int32_t k = 0; all && k < i && !seen; k++)
            seen = !strcmp(last_name(pair[k].name), last_name(pair[i].name));
        if (seen) continue;
        fputs(n++ ? ", " : "", f);
        put_str(f, all ? last_name(pair[i].name) : pair[i].name);
    }
}

static void put_config(FILE *f, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair,
                       const hn_lora_about *about)
{
    int n = 0;
    fputs("{\n  \"peft_type\": \"LORA\",\n  \"task_type\": \"CAUSAL_LM\",\n  \"base_model_name_or_path\": ", f);
    put_str(f, about->base_name ? about->base_name : "");
    fprintf(f, ",\n  \"r\": %lld,\n  \"lora_alpha\": %.9g,\n  \"lora_dropout\": %.9g,\n  \"use_rslora\": %s,\n",
            (long long)pair[0].rank, alpha_of(&pair[0], about->rslora), (double)about->dropout,
            about->rslora ? "true" : "false");
    fprintf(f, "  \"use_dora\": false,\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": %s,\n",
            hn_modules_transposed(m) ? "true" : "false");
    fputs("  \"inference_mode\": true,\n  \"init_lora_weights\": true,\n"
          "  \"modules_to_save\": null,\n  \"layers_to_transform\": null,\n  \"target_modules\": [",
          f);
    put_targets(f, m, pair, n_pair);
    fputs("],\n  \"rank_pattern\": {", f);
    for (int32_t i = 0; i < n_pair; i++) {
        if (pair[i].rank == pair[0].rank) continue;
        fputs(n++ ? ", " : "", f);
        put_str(f, pair[i].name);
        fprintf(f, ": %lld", (long long)pair[i].rank);
    }
    fputs("},\n  \"alpha_pattern\": {", f);
    n = 0;
    for (int32_t i = 0; i < n_pair; i++) {
        double a = alpha_of(&pair[i], about->rslora), first = alpha_of(&pair[0], about->rslora);
        if (fabs(a - first) <= 1e-6 * fabs(first)) continue;
        fputs(n++ ? ", " : "", f);
        put_str(f, pair[i].name);
        fprintf(f, ": %.9g", a);
    }
    fputs("}\n}\n", f);
}

hone_status hn_lora_apart(const char *dst, bool peft, const hn_file_use *read, size_t n_read, hone_error *err)
{
    static const char *const name[] = { "adapter_model.safetensors", "adapter_config.json", HN_PEFT_TEMPLATE };
    hn_file_use pair[2] = { { dst, "the adapter", NULL, peft ? HN_FILE_FOLDER : HN_FILE_WRITTEN } };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < n_read && st == HONE_OK; i++) {
        pair[1] = read[i];
        st = hn_files_apart(pair, 2, err);
        for (int k = 0; k < 3 && peft && st == HONE_OK; k++) {
            char *path;
            if (asprintf(&path, "%s/%s", dst, name[k]) < 0) return HN_FAIL(err, HONE_E_NOMEM, "%s: path", dst);
            const hn_file_use inner[] = { { path, "a file of the adapter", NULL, HN_FILE_WRITTEN }, read[i] };
            st = hn_files_apart(inner, 2, err);
            free(path);
        }
    }
    return st;
}

/* Is there a file of that name in the folder? */
static hone_status has_file(bool *has, const char *folder, const char *name, hone_error *err)
{
    char *path;
    struct stat sb;
    if (asprintf(&path, "%s/%s", folder, name) < 0) return HN_FAIL(err, HONE_E_NOMEM, "%s: path", folder);
    *has = lstat(path, &sb) == 0;
    free(path);
    return HONE_OK;
}

/* A folder of transformers' may hold a model, whose files would be mixed with the adapter's, and its template lost. */
static hone_status refuse_model(const char *folder, hone_error *err)
{
    bool model, adapter;
    hone_status st = has_file(&model, folder, "config.json", err);
    if (st == HONE_OK) st = has_file(&adapter, folder, "adapter_config.json", err);
    if (st != HONE_OK || !model || adapter) return st;
    return HN_FAIL(err, HONE_E_ARG,
                   "%s: has a config.json and no adapter_config.json: it is the folder of a model; expected a folder "
                   "for the adapter alone, new or of an adapter",
                   HN_ESC(folder, strlen(folder)));
}

/* chat_template.jinja, as Hugging Face has it; one of the adapter that was here before does not stay. */
static hone_status write_template(const char *folder, const char *source, hone_error *err)
{
    char *path;
    if (source && *source) {
        char *text = strdup(source);
        if (!text) return HN_FAIL(err, HONE_E_NOMEM, "%s: chat template", folder);
        return write_text(folder, HN_PEFT_TEMPLATE, text, strlen(text), err);
    }
    if (asprintf(&path, "%s/" HN_PEFT_TEMPLATE, folder) < 0) return HN_FAIL(err, HONE_E_NOMEM, "%s: path", folder);
    hone_status st = HONE_OK;
    if (unlink(path) != 0 && errno != ENOENT)
        st = HN_FAIL(err, HONE_E_IO, "%s: the template of another adapter cannot be removed: %s",
                     HN_ESC(path, strlen(path)), strerror(errno));
    free(path);
    return st;
}

static hone_status make_config(char **text, size_t *n, const char *folder, const hone_model *m,
                               const hn_lora_pair *pair, int32_t n_pair, const hn_lora_about *about, hone_error *err)
{
    hn_os_text stream;
    if (hn_os_text_open(&stream)) {
        put_config(stream.f, m, pair, n_pair, about);
        *text = hn_os_text_close(&stream, n);
    }
    return *text ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: configuration of %d pairs", folder, n_pair);
}

hone_status hn_lora_write_peft(const char *path, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair,
                               const hn_lora_about *about, hone_error *err)
{
    modules o = { .n = 0 };
    char *config = NULL;
    size_t n = 0;
    const char *why = hn_modules_unwritten(m);
    if (why)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: PEFT folders are not for %s (%s): %s", path, m->filed_arch,
                       m->path, why);
    hone_status st = refuse_model(path, err);
    if (st == HONE_OK) st = make_modules(&o, m, pair, n_pair, err);
    if (st == HONE_OK) st = make_config(&config, &n, path, m, o.pair, o.n, about, err);
    bool made = st == HONE_OK && mkdir(path, 0777) == 0;
    if (st == HONE_OK && !made && errno != EEXIST)
        st = HN_FAIL(err, HONE_E_IO, "%s: cannot make the folder: %s", path, strerror(errno));
    if (st == HONE_OK) st = write_tensors(path, o.pair, o.n, about->type, config, n, err);
    if (st != HONE_OK && made) rmdir(path);
    if (st == HONE_OK) st = write_template(path, about->chat_template, err);
    if (st == HONE_OK) st = write_text(path, "adapter_config.json", config, n, err); /* which frees it */
    else free(config);
    modules_free(&o);
    return st;
}
