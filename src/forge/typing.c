/* typing: see typing.h. */
#include "forge/typing.h"

#include "base/os.h"
#include "base/utf8.h"
#include "model/hparams.h"

#include <stdlib.h>

hone_status hn_typing_begin(hn_typing *y, const char *name, const char *expected, hone_error *err)
{
    *y = (hn_typing){ .name = name };
    if (name && !hn_mix_find(name, &y->base, &y->file_type))
        return HN_FAIL(err, HONE_E_ARG, "unknown type \"%s\"%s", HN_ESC(name, strlen(name)), expected);
    return HONE_OK;
}

/* N of "blk.N…", -1: outside layers. */
static int64_t layer_of(hone_str name)
{
    int64_t il = 0;
    if (name.len <= 4 || memcmp(name.ptr, "blk.", 4) != 0 || name.ptr[4] < '0' || name.ptr[4] > '9') return -1;
    for (size_t i = 4; i < name.len && name.ptr[i] >= '0' && name.ptr[i] <= '9' && il < 1 << 24; i++)
        il = 10 * il + (name.ptr[i] - '0');
    return il;
}

/* As llama.cpp goes through a file (llama-model-loader.h:weight_name_comparer). */
static int by_layer(const void *a, const void *b, void *list)
{
    const hn_typed *t = list, *x = &t[*(const size_t *)a], *y = &t[*(const size_t *)b];
    int64_t lx = layer_of(x->name), ly = layer_of(y->name);
    if (lx != ly) return lx < ly ? -1 : 1;
    return hn_str_compare(x->name, y->name);
}

static void text_of(char dst[HN_GGUF_MAX_NAME + 1], hone_str s)
{
    snprintf(dst, HN_GGUF_MAX_NAME + 1, "%.*s", (int)(s.len < HN_GGUF_MAX_NAME ? s.len : HN_GGUF_MAX_NAME), s.ptr);
}

hone_status hn_typing_of(hn_typing *y, const hn_mix_model *mix, hn_typed *t, size_t n, hone_error *err)
{
    char name[HN_GGUF_MAX_NAME + 1];
    hn_mix_model m = *mix;
    hn_mix_state state = { 0 };
    if (!y->name) return HONE_OK;
    size_t *order = malloc((n + 1) * sizeof *order);
    if (!order) return HN_FAIL(err, HONE_E_NOMEM, "list of %zu tensors", n);
    m.tied = true;
    m.n_v = 0;
    for (size_t i = 0; i < n; i++) {
        order[i] = i;
        text_of(name, t[i].name);
        m.n_v += hn_mix_is_v(name);
        m.tied = m.tied && strcmp(name, "output.weight") != 0;
    }
    hn_os_sort(order, n, sizeof *order, by_layer, t);
    for (size_t i = 0; i < n; i++) {
        hn_typed *x = &t[order[i]];
        text_of(name, x->name);
        x->type = hn_is_float(y->base) ? y->base : hn_mix_type(y->name, &m, &state, name, x->ne, x->n_dim);
    }
    free(order);
    return HONE_OK;
}

/* Heads of keys of the first layer, which may have none: what the rules go by. */
static int32_t first_heads_of_keys(const hone_model *m)
{
    char key[128];
    uint32_t v = (uint32_t)m->hp.n_head;
    hn_gguf_array a;
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, "attention.head_count_kv"));
    if (at < 0 || !hn_gguf_kv_array(m->file, (uint64_t)at, &a))
        return hn_gguf_get_u32(m->file, key, &v, NULL, NULL) == HONE_OK ? (int32_t)v : m->hp.n_head_kv;
    v = 0;
    for (uint32_t i = 0; i < hn_gguf_type_size(a.elem_type) && i < 4 && a.count; i++) v |= (uint32_t)a.data[i] << 8 * i;
    return (int32_t)v;
}

hn_mix_model hn_typing_model(const hone_model *m)
{
    return (hn_mix_model){ .arch = m->arch->name,
                           .n_layer = (m->hp.block_of ? m->hp.n_block : m->hp.n_layer) + m->hp.n_nextn,
                           .n_head = m->hp.n_head,
                           .n_head_kv = first_heads_of_keys(m),
                           .n_expert = m->hp.moe.n_expert };
}

hone_status hn_typing_check(const hn_typing *y, const char *name, hn_type type, uint64_t ne0, hone_error *err)
{
    const hn_type_info *ti = hn_type_get(type);
    if (!ti || ne0 % ti->block_elems)
        return HN_FAIL(err, HONE_E_ARG, "%s: rows of %llu elements do not fit type %s", name, (unsigned long long)ne0,
                       ti ? ti->name : y->name);
    if (!ti->quantize)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: hone has no encoder for %s, which %s asks for; expected a type such as F16, Q8_0 or Q4_K_M",
                       name, ti->name, y->name);
    return HONE_OK;
}

uint32_t hn_file_type_of(const uint64_t count[HN_TYPE_COUNT])
{
    int most = HN_F32;
    uint32_t out = 0;
    for (int i = 0; i < HN_TYPE_COUNT; i++)
        if (count[i] > count[most]) most = i;
    return hn_mix_find(hn_type_get((uint32_t)most)->name, NULL, &out) ? out : 0;
}
