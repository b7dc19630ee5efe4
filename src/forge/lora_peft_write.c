/* lora_peft_write: an adapter as a PEFT folder. Each file appears whole (base/file.h), the tensors first, then the
 * template of the conversations it was trained on, if any, the config last: a folder that has a config is whole. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/os.h"
#include "forge/lora_halves.h"
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

/* ---- adapter_model.safetensors -------------------------------------------------------------------- */

/* The header of a safetensors file, its length a multiple of 8; *n_data: bytes behind it. */
static hone_status make_header(char **head, size_t *len, uint64_t *n_data, const hone_model *m,
                               const hn_lora_pair *pair, const hn_lora_halves *halves, hone_error *err)
{
    uint64_t at = 0;
    hone_status st = HONE_OK;
    *head = NULL;
    hn_os_text text;
    if (!hn_os_text_open(&text)) return HN_FAIL(err, HONE_E_NOMEM, "header of %zu tensors", halves->n);
    FILE *h = text.f;
    fputs("{\"__metadata__\":{\"format\":\"pt\"}", h);
    for (size_t i = 0; i < halves->n && st == HONE_OK; i++) {
        char module[96];
        const hn_recipe_tensor *t = &halves->t[i];
        const hn_type_info *ti = hn_type_get(t->type);
        uint64_t n = t->ne[0] * t->ne[1] * ti->block_bytes;
        if (!hn_peft_module_of(module, m, pair[i / 2].name)) {
            st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: PEFT has no name for it", pair[i / 2].name);
            break;
        }
        fprintf(h,
                ",\"base_model.model.%s.lora_%c.weight\":{\"dtype\":\"%s\",\"shape\":[%lld,%lld],"
                "\"data_offsets\":[%llu,%llu]}",
                module, i % 2 ? 'B' : 'A', ti->name, (long long)t->ne[1], (long long)t->ne[0], (unsigned long long)at,
                (unsigned long long)(at + n));
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

static hone_status end_tensors(void *to, hone_error *err) { return hn_file_end(((tensors_file *)to)->f, err); }

static hone_status write_tensors(const char *folder, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair,
                                 hn_type type, hone_error *err)
{
    static const hn_recipe_sink sink = { begin_tensors, put_piece, end_tensors };
    hn_lora_halves h;
    tensors_file to = { .folder = folder };
    hone_status st = hn_lora_halves_make(&h, folder, pair, n_pair, type, err);
    for (int32_t i = 0; st == HONE_OK && i < n_pair; i++)
        h.half[2 * i + 1].n_head = hn_peft_turned_heads(m, pair[i].name);
    if (st == HONE_OK) st = make_header(&to.head, &to.n_head, &to.n_data, m, pair, &h, err);
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

/* Are the targets the same in every layer of the model? Then their last names say it all. */
static bool everywhere(const hone_model *m, const hn_lora_pair *pair, int32_t n_pair)
{
    char name[64];
    for (int32_t i = 0; i < n_pair; i++) {
        const char *dot = strncmp(pair[i].name, "blk.", 4) ? NULL : strchr(pair[i].name + 4, '.');
        for (int32_t il = 0; dot && il < m->hp.n_layer; il++) {
            int32_t k = 0;
            snprintf(name, sizeof name, "blk.%d%s", il, dot);
            while (k < n_pair && strcmp(pair[k].name, name)) k++;
            if (k == n_pair) return false;
        }
    }
    return true;
}

static void put_targets(FILE *f, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair)
{
    bool all = everywhere(m, pair, n_pair);
    int n = 0;
    for (int32_t i = 0; i < n_pair; i++) {
        char module[96], earlier[96];
        hn_peft_module_of(module, m, pair[i].name);
        const char *dot = strrchr(module, '.'), *last = dot && all ? dot + 1 : module;
        bool seen = false;
        for (int32_t k = 0; all && k < i && !seen; k++) {
            hn_peft_module_of(earlier, m, pair[k].name);
            const char *d = strrchr(earlier, '.');
            seen = !strcmp(d ? d + 1 : earlier, last);
        }
        if (seen) continue;
        fputs(n++ ? ", " : "", f);
        put_str(f, last);
    }
}

static void put_config(FILE *f, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair,
                       const hn_lora_about *about)
{
    char module[96];
    int n = 0;
    fputs("{\n  \"peft_type\": \"LORA\",\n  \"task_type\": \"CAUSAL_LM\",\n  \"base_model_name_or_path\": ", f);
    put_str(f, about->base_name ? about->base_name : "");
    fprintf(f, ",\n  \"r\": %lld,\n  \"lora_alpha\": %.9g,\n  \"lora_dropout\": %.9g,\n  \"use_rslora\": %s,\n",
            (long long)pair[0].rank, alpha_of(&pair[0], about->rslora), (double)about->dropout,
            about->rslora ? "true" : "false");
    fputs("  \"use_dora\": false,\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": false,\n  \"inference_mode\": true,\n  "
          "\"init_lora_weights\": true,\n"
          "  \"modules_to_save\": null,\n  \"layers_to_transform\": null,\n  \"target_modules\": [",
          f);
    put_targets(f, m, pair, n_pair);
    fputs("],\n  \"rank_pattern\": {", f);
    for (int32_t i = 0; i < n_pair; i++) {
        if (pair[i].rank == pair[0].rank) continue;
        hn_peft_module_of(module, m, pair[i].name);
        fputs(n++ ? ", " : "", f);
        put_str(f, module);
        fprintf(f, ": %lld", (long long)pair[i].rank);
    }
    fputs("},\n  \"alpha_pattern\": {", f);
    n = 0;
    for (int32_t i = 0; i < n_pair; i++) {
        double a = alpha_of(&pair[i], about->rslora), first = alpha_of(&pair[0], about->rslora);
        if (fabs(a - first) <= 1e-6 * fabs(first)) continue;
        hn_peft_module_of(module, m, pair[i].name);
        fputs(n++ ? ", " : "", f);
        put_str(f, module);
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

static hone_status write_config(const char *folder, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair,
                                const hn_lora_about *about, hone_error *err)
{
    hn_os_text stream;
    char *text = NULL;
    size_t n = 0;
    if (hn_os_text_open(&stream)) {
        put_config(stream.f, m, pair, n_pair, about);
        text = hn_os_text_close(&stream, &n);
    }
    if (text) return write_text(folder, "adapter_config.json", text, n, err);
    return HN_FAIL(err, HONE_E_NOMEM, "%s: configuration of %d pairs", folder, n_pair);
}

hone_status hn_lora_write_peft(const char *path, const hone_model *m, const hn_lora_pair *pair, int32_t n_pair,
                               const hn_lora_about *about, hone_error *err)
{
    hone_status st;
    if (!hn_peft_has_modules(m))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: PEFT folders are for llama, qwen2, qwen3 and gemma3, %s is %s",
                       path, m->path, m->arch->name);
    bool made = mkdir(path, 0777) == 0;
    if (!made && errno != EEXIST)
        return HN_FAIL(err, HONE_E_IO, "%s: cannot make the folder: %s", path, strerror(errno));
    if ((st = write_tensors(path, m, pair, n_pair, about->type, err)) != HONE_OK) {
        if (made) rmdir(path);
        return st;
    }
    if ((st = write_template(path, about->chat_template, err)) != HONE_OK) return st;
    return write_config(path, m, pair, n_pair, about, err);
}
