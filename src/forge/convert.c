/* convert: hone_convert. Finds out from its content what the source is and hands it to the
 * conversion that knows it; what hone does not convert is refused by name. Owns the files being
 * read; refuses to know any format. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/floats.h"
#include "forge/convert.h"
#include "forge/hf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

hone_status hn_put_name(hn_gguf_writer *w, const char *path, hone_error *err)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--; /* a folder may be named with one behind it */
    size_t start = end;
    while (start > 0 && path[start - 1] != '/') start--;
    size_t len = end - start, dot = len;
    while (dot > 0 && path[start + dot - 1] != '.') dot--;
    struct stat st;
    if (dot > 1 && !(stat(path, &st) == 0 && S_ISDIR(st.st_mode))) len = dot - 1;
    char title[160];
    hn_escape(title, sizeof title, path + start, len); /* file names may be any bytes */
    return *title && strcmp(title, ".") && strcmp(title, "..")
               ? hn_gguf_put_str(w, "general.name", title, strlen(title), err)
               : HONE_OK;
}

/* ---- what is it? ------------------------------------------------------------------------- */

enum { HEAD = 48 };
#define EXPECTED                                                                                                       \
    "expected a folder of transformers with config.json, an RWKV-6 or RWKV-7 checkpoint (safetensors, rwkv.cpp) or a " \
    "llama2.c checkpoint"

static uint32_t u32_at(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static bool begins(const unsigned char *h, size_t n, const char *with, size_t len)
{
    return n >= len && memcmp(h, with, len) == 0;
}

/* u64 length below 2^32, then '{': a llama2.c header there would have no hidden_dim; or '{"'
 * whatever the length: it would have thousands of layers. */
static bool is_safetensors(const unsigned char *h, size_t n)
{
    return n >= 10 && h[8] == '{' && (u32_at(h + 4) == 0 || h[9] == '"');
}

static hone_status refuse(const hn_source *s, const unsigned char *h, size_t n, hone_error *err)
{
    static const char lfs[] = "version https://git-lfs";
    if (n == 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: is empty, " EXPECTED, s->path);
    if (begins(h, n, lfs, sizeof lfs - 1))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: a git-LFS pointer, not the file itself; fetch it with: git lfs pull",
                       s->path);
    return HONE_OK;
}

/* A checkpoint in one file. */
static hone_status convert_ckpt_file(const hn_convert *a, hone_status (*read)(hn_ckpt *, int32_t, hone_error *),
                                     hone_error *err)
{
    hn_ckpt *c;
    int32_t part;
    hone_status st = hn_ckpt_new(&c, a->src, err);
    if (st != HONE_OK) return st;
    if ((st = hn_ckpt_add_part(c, a->src, &part, err)) == HONE_OK && (st = read(c, part, err)) == HONE_OK)
        st = hn_convert_rwkv(a, c, err);
    hn_ckpt_free(c);
    return st;
}

static hone_status convert_file(const hn_convert *a, hone_error *err)
{
    unsigned char h[HEAD];
    hn_source s;
    hone_status st = hn_source_open(&s, a->src, err);
    if (st != HONE_OK) return st;
    size_t n = s.size < sizeof h ? (size_t)s.size : sizeof h;
    if ((st = hn_source_read(&s, 0, h, n, err)) == HONE_OK && (st = refuse(&s, h, n, err)) == HONE_OK) {
        if (begins(h, n, "GGUF", 4)) st = hn_convert_back(a, err);
        else if (is_safetensors(h, n)) st = convert_ckpt_file(a, hn_safetensors_read, err);
        else if (hn_torch_is(h, n)) st = convert_ckpt_file(a, hn_torch_read, err);
        else if (n >= 4 && u32_at(h) == 0x67676d66) st = convert_ckpt_file(a, hn_rwkv_cpp_read, err);
        else st = hn_convert_llama2c(a, &s, err);
    }
    hn_source_close(&s);
    return st;
}

static hone_status check_architecture(hn_ckpt *c, hone_error *err)
{
    static const char want[] = "RWKV7ForCausalLM, Rwkv7ForCausalLM or Rwkv6ForCausalLM";
    const hn_member *m = hn_config_get(&c->config, "architectures"), *t = hn_config_get(&c->config, "model_type");
    hone_str arch = { 0 };
    if (m && m->kind == HN_J_OTHER && *m->str.ptr == '[') {
        hn_jread j;
        bool more;
        hone_status st;
        if ((st = hn_ckpt_json(&j, (char *)(uintptr_t)m->str.ptr, m->str.len, c->config.path, "architectures", err)) !=
            HONE_OK)
            return st;
        if ((st = hn_jread_open(&j, '[', &more)) != HONE_OK || (more && (st = hn_jread_str(&j, &arch)) != HONE_OK))
            return st;
    }
    if (!arch.len && t && t->kind == HN_J_STRING) arch = t->str;
    if (!arch.len)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: names no architecture of a Hugging Face checkpoint, expected %s",
                       c->config.path, want);
    hn_convert_rwkv_knows(arch.ptr, arch.len, &c->version); /* or it is a transformer: hf.c */
    return HONE_OK;
}

static bool in_folder(const char *folder, const char *file, char *path, size_t cap)
{
    int n = snprintf(path, cap, "%s/%s", folder, file);
    return n > 0 && (size_t)n < cap && access(path, F_OK) == 0;
}

static hone_status convert_folder(const hn_convert *a, hone_error *err)
{
    char path[4352];
    hn_ckpt *c;
    hone_status st;
    if (in_folder(a->src, "adapter_config.json", path, sizeof path))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: a folder with adapter_config.json, a LoRA adapter, which is converted with its model: "
                       "--base MODEL.gguf",
                       a->src);
    bool config = in_folder(a->src, "config.json", path, sizeof path);
    if (!config && in_folder(a->src, "params.json", path, sizeof path))
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: a folder with params.json, an original Meta or Mistral checkpoint, which hone does not "
                       "convert yet; " EXPECTED,
                       a->src);
    if ((st = hn_ckpt_new(&c, a->src, err)) != HONE_OK) return st;
    if (config && (st = hn_config_load(&c->config, path, err)) == HONE_OK) st = check_architecture(c, err);
    c->takes_raw = config && !c->version;
    if (st == HONE_OK && (st = hn_ckpt_folder(c, a->src, err)) != HONE_OK && !config && c->no_weights)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: is a folder without config.json and without safetensors files; " EXPECTED,
                     a->src);
    if (st == HONE_OK) st = config && !c->version ? hn_convert_hf(a, c, err) : hn_convert_rwkv(a, c, err);
    hn_ckpt_free(c);
    return st;
}

void hn_convert_note(const hn_convert *a, const char *format, ...)
{
    char text[512];
    va_list ap;
    if (!a->note) return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    a->note(a->note_arg, text);
}

static hone_status convert(const hn_convert *a, hone_error *err)
{
    struct stat sb;
    if (a->type && !hn_mix_find(a->type, NULL, NULL))
        return HN_FAIL(
            err, HONE_E_ARG,
            "unknown type \"%s\"; expected F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0 or another mixture name",
            HN_ESC(a->type, strlen(a->type)));
    const hn_file_use use[] = { { a->dst, "the output", NULL, HN_FILE_WRITTEN },
                                { a->src, "the source", NULL, HN_FILE_READ },
                                { a->tokenizer, "the tokenizer", NULL, HN_FILE_READ } };
    hone_status st = hn_files_apart(use, sizeof use / sizeof *use, err);
    if (st != HONE_OK) return st;
    if (stat(a->src, &sb) == 0 && S_ISDIR(sb.st_mode)) return convert_folder(a, err);
    return convert_file(a, err);
}

hone_status hone_convert_with(const char *src, const char *dst, const hone_convert_params *p, const hone_progress *pr,
                              hone_error *err)
{
    HN_FLOATS;
    static const hone_convert_params none = { 0 };
    const hone_convert_params *q = p ? p : &none;
    HN_NEED(err, src, "the path of a checkpoint");
    HN_NEED(err, dst, "the path of the file to write");
    const hn_convert a = { src, q->tokenizer, q->type, dst, pr, q->pre, q->note, q->note_arg };
    return convert(&a, err);
}

hone_status hone_convert(const char *src, const char *tokenizer, const char *type, const char *dst,
                         const hone_progress *pr, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, src, "the path of a checkpoint");
    HN_NEED(err, dst, "the path of the file to write");
    const hn_convert a = { .src = src, .tokenizer = tokenizer, .type = type, .dst = dst, .pr = pr };
    return convert(&a, err);
}
