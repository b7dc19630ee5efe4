/* ckpt: the list of a checkpoint's tensors, from however many files. Owns the files being read and the
 * names; refuses to know any format. */
#define _GNU_SOURCE
#include "model/ckpt.h"

#include <stdlib.h>

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

typedef hone_status opener(hn_source *s, const char *path, hone_error *err);

static hone_status add_part(hn_ckpt *c, const char *path, opener *open, int32_t *part, hone_error *err)
{
    if (!c->part) {
        c->part = calloc(HN_CKPT_MAX_PARTS, sizeof *c->part);
        c->part_path = calloc(HN_CKPT_MAX_PARTS, sizeof *c->part_path);
    }
    if (c->n_part == HN_CKPT_MAX_PARTS)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: more than %d files", c->path, HN_CKPT_MAX_PARTS);
    char *copy = strdup(path);
    if (!c->part || !c->part_path || !copy) {
        free(copy);
        return HN_FAIL(err, HONE_E_NOMEM, "%s", path);
    }
    hone_status st = open(&c->part[c->n_part], copy, err);
    if (st != HONE_OK) {
        free(copy);
        return st;
    }
    c->part_path[c->n_part] = copy;
    *part = c->n_part++;
    return HONE_OK;
}

hone_status hn_ckpt_add_part(hn_ckpt *c, const char *path, int32_t *part, hone_error *err)
{
    return add_part(c, path, hn_source_open, part, err);
}

hone_status hn_ckpt_add_scratch(hn_ckpt *c, const char *path, int32_t *part, hone_error *err)
{
    return add_part(c, path, hn_source_scratch, part, err);
}

hone_status hn_ckpt_add(hn_ckpt *c, const hn_ckpt_tensor *t, hone_error *err)
{
    const char *path = c->part[t->part].path, *fault = hn_gguf_name_fault(t->name.ptr, t->name.len, HN_CKPT_MAX_NAME);
    for (size_t i = 0; i < t->name.len && !fault; i++)
        if ((unsigned char)t->name.ptr[i] < 0x20 || t->name.ptr[i] == 0x7F) fault = "contains a control byte";
    if (fault)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor name \"%s\" %s", path, HN_ESC(t->name.ptr, t->name.len), fault);
    if (c->n == HN_CKPT_MAX_TENSORS)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: more than %d tensors", path, HN_CKPT_MAX_TENSORS);
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
    if (!n->name.ptr || !hn_index_add(&c->ix, c->t, sizeof *c->t, (uint32_t)c->n, &dup))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu tensors", path, c->n);
    if (dup >= 0)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s is there twice", path, HN_ESC(t->name.ptr, t->name.len));
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
    for (int32_t i = t->n_dim; i-- > 0;)
        n += (size_t)snprintf(dst + n, 160 - n, "%llu%s", (unsigned long long)t->ne[i], i ? ", " : "");
    snprintf(dst + n, 160 - n, "]");
    return dst;
}
