/* convert: hone_convert. Finds out from its content what the source is and hands it to the
 * conversion that knows it; what hone does not convert is refused by name. Owns the files being
 * read and the list of a checkpoint's tensors; refuses to know any format. */
#define _GNU_SOURCE
#include "base/file.h"
#include "model/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---------------------------------------------------------------------------- */

hone_status hn_source_open(hn_source *s, const char *path, hone_error *err)
{
    struct stat st;
    *s = (hn_source){path, -1, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang */
    if (fd < 0) return HN_FAIL(err, HONE_E_IO, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return HN_FAIL(err, HONE_E_IO, "%s: expected a regular file", path);
    }
    s->fd = fd;
    s->size = (uint64_t)st.st_size;
    return HONE_OK;
}

void hn_source_close(hn_source *s)
{
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

hone_status hn_source_read(const hn_source *s, uint64_t off, void *dst, uint64_t n, hone_error *err)
{
    for (uint64_t done = 0; done < n;) {
        ssize_t r = pread(s->fd, (char *)dst + done, n - done < 1 << 30 ? (size_t)(n - done) : 1 << 30, (off_t)(off + done));
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return HN_FAIL(err, HONE_E_IO, "%s: cannot read at byte %llu: %s", s->path, (unsigned long long)(off + done), strerror(errno));
        if (r == 0)
            return HN_FAIL(err, HONE_E_IO, "%s: ends at byte %llu, expected %llu: it changed while being read", s->path,
                           (unsigned long long)(off + done), (unsigned long long)s->size);
        done += (uint64_t)r;
    }
    return HONE_OK;
}

hone_status hn_source_text(char **text, size_t *len, const char *path, uint64_t max, hone_error *err)
{
    hn_source s;
    *text = NULL;
    *len = 0;
    hone_status st = hn_source_open(&s, path, err);
    if (st != HONE_OK) return st;
    if (s.size > max)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes, expected at most %llu", path, (unsigned long long)s.size, (unsigned long long)max);
    else if (!(*text = malloc((size_t)s.size + 1)))
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: %llu bytes", path, (unsigned long long)s.size);
    else if ((st = hn_source_read(&s, 0, *text, s.size, err)) == HONE_OK)
        (*text)[*len = (size_t)s.size] = 0;
    hn_source_close(&s);
    if (st != HONE_OK) {
        free(*text);
        *text = NULL;
    }
    return st;
}

/* ---- checkpoints ------------------------------------------------------------------------- */

hone_status hn_ckpt_new(hn_ckpt **out, const char *path, hone_error *err)
{
    hn_ckpt *c = *out = calloc(1, sizeof *c);
    if (!c || !(c->arena = hn_arena_new())) {
        free(c);
        *out = NULL;
        return HN_FAIL(err, HONE_E_NOMEM, "list of tensors");
    }
    c->path = path;
    return HONE_OK;
}

void hn_ckpt_free(hn_ckpt *c)
{
    if (!c) return;
    for (int32_t i = 0; i < c->n_part; i++) {
        hn_source_close(&c->part[i]);
        free(c->part_path[i]);
    }
    free(c->part);
    free(c->part_path);
    free(c->t);
    hn_index_free(&c->ix);
    hn_arena_free(c->arena);
    hn_config_free(&c->config);
    free(c);
}

hone_status hn_ckpt_add_part(hn_ckpt *c, const char *path, int32_t *part, hone_error *err)
{
    if (!c->part) {
        c->part = calloc(HN_CKPT_MAX_PARTS, sizeof *c->part);
        c->part_path = calloc(HN_CKPT_MAX_PARTS, sizeof *c->part_path);
    }
    if (c->n_part == HN_CKPT_MAX_PARTS) return HN_FAIL(err, HONE_E_FORMAT, "%s: more than %d files", c->path, HN_CKPT_MAX_PARTS);
    char *copy = strdup(path);
    if (!c->part || !c->part_path || !copy) {
        free(copy);
        return HN_FAIL(err, HONE_E_NOMEM, "%s", path);
    }
    hone_status st = hn_source_open(&c->part[c->n_part], copy, err);
    if (st != HONE_OK) {
        free(copy);
        return st;
    }
    c->part_path[c->n_part] = copy;
    *part = c->n_part++;
    return HONE_OK;
}

hone_status hn_ckpt_add(hn_ckpt *c, const hn_ckpt_tensor *t, hone_error *err)
{
    const char *path = c->part[t->part].path, *fault = hn_gguf_name_fault(t->name.ptr, t->name.len, HN_CKPT_MAX_NAME);
    for (size_t i = 0; i < t->name.len && !fault; i++)
        if ((unsigned char)t->name.ptr[i] < 0x20 || t->name.ptr[i] == 0x7F) fault = "contains a control byte";
    if (fault) return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor name \"%s\" %s", path, HN_ESC(t->name.ptr, t->name.len), fault);
    if (c->n == HN_CKPT_MAX_TENSORS) return HN_FAIL(err, HONE_E_FORMAT, "%s: more than %d tensors", path, HN_CKPT_MAX_TENSORS);
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 512;
        hn_ckpt_tensor *p = realloc(c->t, cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu tensors", path, cap);
        c->t = p;
        c->cap = cap;
    }
    hn_ckpt_tensor *n = &c->t[c->n];
    int64_t dup;
    *n = *t;
    n->name.ptr = hn_arena_strndup(c->arena, t->name.ptr, t->name.len);
    if (!n->name.ptr || !hn_index_add(&c->ix, c->t, sizeof *c->t, (uint32_t)c->n, &dup)) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu tensors", path, c->n);
    if (dup >= 0) return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s is there twice", path, HN_ESC(t->name.ptr, t->name.len));
    c->n++;
    return HONE_OK;
}

const hn_ckpt_tensor *hn_ckpt_find(const hn_ckpt *c, const char *name, size_t len)
{
    int64_t i = hn_index_find(&c->ix, c->t, sizeof *c->t, name, len);
    return i < 0 ? NULL : &c->t[i];
}

const char *hn_ckpt_shape(char dst[160], const hn_ckpt_tensor *t)
{
    size_t n = (size_t)snprintf(dst, 160, "[");
    for (int32_t i = t->n_dim; i-- > 0;) n += (size_t)snprintf(dst + n, 160 - n, "%llu%s", (unsigned long long)t->ne[i], i ? ", " : "");
    snprintf(dst + n, 160 - n, "]");
    return dst;
}

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
    return *title && strcmp(title, ".") && strcmp(title, "..") ? hn_gguf_put_str(w, "general.name", title, strlen(title), err) : HONE_OK;
}

/* ---- what is it? ------------------------------------------------------------------------- */

enum { HEAD = 48 };
#define EXPECTED "expected an RWKV-6 or RWKV-7 checkpoint (safetensors, rwkv.cpp) or a llama2.c checkpoint"

static uint32_t u32_at(const unsigned char *p) { uint32_t v; memcpy(&v, p, 4); return v; }

static bool begins(const unsigned char *h, size_t n, const char *with, size_t len) { return n >= len && memcmp(h, with, len) == 0; }

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
    if (begins(h, n, "GGUF", 4)) return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: already GGUF, and hone cannot change its type yet; " EXPECTED, s->path);
    if (begins(h, n, lfs, sizeof lfs - 1))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: a git-LFS pointer, not the file itself; fetch it with: git lfs pull", s->path);
    if (begins(h, n, "PK\3\4", 4) || begins(h, n, "\x80\2\x8a\x0a", 4))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: a PyTorch checkpoint (%s), which hone does not convert: save its tensors as safetensors", s->path,
                       h[0] == 'P' ? "zip" : "pickle");
    return HONE_OK;
}

/* A checkpoint in one file. */
static hone_status convert_ckpt_file(const hn_convert *a, hone_status (*read)(hn_ckpt *, int32_t, hone_error *), hone_error *err)
{
    hn_ckpt *c;
    int32_t part;
    hone_status st = hn_ckpt_new(&c, a->src, err);
    if (st != HONE_OK) return st;
    if ((st = hn_ckpt_add_part(c, a->src, &part, err)) == HONE_OK && (st = read(c, part, err)) == HONE_OK) st = hn_convert_rwkv(a, c, err);
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
        if (is_safetensors(h, n)) st = convert_ckpt_file(a, hn_safetensors_read, err);
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
    hone_str arch = {0};
    if (m && m->kind == HN_J_OTHER && *m->str.ptr == '[') {
        hn_jread j;
        bool more;
        hone_status st;
        if ((st = hn_convert_json(&j, (char *)(uintptr_t)m->str.ptr, m->str.len, c->config.path, "architectures",
                                  err)) != HONE_OK) return st;
        if ((st = hn_jread_open(&j, '[', &more)) != HONE_OK || (more && (st = hn_jread_str(&j, &arch)) != HONE_OK)) return st;
    }
    if (!arch.len && t && t->kind == HN_J_STRING) arch = t->str;
    if (!arch.len) return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: names no architecture of a Hugging Face checkpoint, expected %s", c->config.path, want);
    if (!hn_convert_rwkv_knows(arch.ptr, arch.len, &c->version))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: a Hugging Face checkpoint of architecture \"%s\", which hone does not convert yet; expected %s", c->config.path,
                       HN_ESC(arch.ptr, arch.len), want);
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
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: a folder with adapter_config.json, a LoRA adapter, which is converted with its model: --base MODEL.gguf", a->src);
    bool config = in_folder(a->src, "config.json", path, sizeof path);
    if (!config && in_folder(a->src, "params.json", path, sizeof path))
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: a folder with params.json, an original Meta or Mistral checkpoint, which hone does not convert yet; " EXPECTED, a->src);
    if ((st = hn_ckpt_new(&c, a->src, err)) != HONE_OK) return st;
    if (config && (st = hn_config_load(&c->config, path, err)) == HONE_OK) st = check_architecture(c, err);
    if (st == HONE_OK && (st = hn_safetensors_folder(c, a->src, err)) == HONE_E_IO && !config && c->n_part == 0)
        st = HN_FAIL(err, HONE_E_IO, "%s: is a folder without config.json and without safetensors files; " EXPECTED, a->src);
    if (st == HONE_OK) st = hn_convert_rwkv(a, c, err);
    hn_ckpt_free(c);
    return st;
}

hone_status hone_convert(const char *src, const char *tokenizer, const char *type, const char *dst, const hone_progress *pr, hone_error *err)
{
    hn_convert a = {src, tokenizer, type, dst, pr};
    struct stat sb;
    HN_NEED(err, src, "the path of a checkpoint");
    HN_NEED(err, dst, "the path of the file to write");
    if (type && !hn_mix_find(type, NULL, NULL))
        return HN_FAIL(err, HONE_E_ARG, "unknown type \"%s\"; expected F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0 or another mixture name", HN_ESC(type, strlen(type)));
    const hn_file_use use[] = { { dst, "the output", NULL, HN_FILE_WRITTEN },
                                { src, "the source", NULL, HN_FILE_READ },
                                { tokenizer, "the tokenizer", NULL, HN_FILE_READ } };
    hone_status st = hn_files_apart(use, sizeof use / sizeof *use, err);
    if (st != HONE_OK) return st;
    if (stat(src, &sb) == 0 && S_ISDIR(sb.st_mode)) return convert_folder(&a, err);
    return convert_file(&a, err);
}
