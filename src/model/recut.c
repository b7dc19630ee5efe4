/* recut: matrices that a file has in another order than the forward pass wants, copied when the model is opened. Owns
 * which number goes where; every number stays what it is. Refuses to know names of tensors. */
#include "model/hparams.h"

#include <stdlib.h>

hone_status hn_undeal(hone_model *m, const hn_slot *s, hn_weight *w, const hn_layer_plan *p, hone_error *err)
{
    const hn_slot_rare *rare = hn_slot_rarely(s);
    const hn_dim *part = rare->deal[0] ? rare->deal : rare->part;
    int64_t n = hn_dim_value(&m->hp, p, rare->dealt), share = w->n_out / n, before = 0;
    char *to = hn_arena_alloc(m->arena, (size_t)w->n_out * w->row_bytes);
    if (!to) return HN_FAIL(err, HONE_E_NOMEM, "%s: rows of %s", m->path, s->name);
    for (int i = 0; i < HN_MAX_PART && part[i]; i++) {
        int64_t rows = hn_dim_value(&m->hp, p, part[i]) / n;
        for (int64_t g = 0; g < n; g++)
            memcpy(to + (size_t)(before * n + g * rows) * w->row_bytes,
                   (const char *)w->data + (size_t)(g * share + before) * w->row_bytes, (size_t)rows * w->row_bytes);
        before += rows;
    }
    w->data = to;
    w->packed = NULL;
    return HONE_OK;
}

/* to [n_in, n_out] = from [n_out, n_in], elements of so many bytes. */
static void transpose(char *to, const char *from, int64_t n_in, int64_t n_out, size_t bytes)
{
    for (int64_t r = 0; r < n_out; r++)
        for (int64_t c = 0; c < n_in; c++)
            memcpy(to + (size_t)(c * n_out + r) * bytes, from + (size_t)(r * n_in + c) * bytes, bytes);
}

/* Rows of keys of one head as columns; blocks are decoded first, into room. */
static void turn_keys(char *to, const hn_weight *kv_b, int64_t row, int64_t nope, float *room)
{
    const hn_type_info *ti = hn_type_get(kv_b->type);
    const char *from = (const char *)kv_b->data + (size_t)row * kv_b->row_bytes;
    if (ti->block_elems == 1) {
        transpose(to, from, kv_b->n_in, nope, ti->block_bytes);
        return;
    }
    for (int64_t r = 0; r < nope; r++)
        ti->dequantize(room + r * kv_b->n_in, from + (size_t)r * kv_b->row_bytes, kv_b->n_in);
    transpose(to, (const char *)room, kv_b->n_in, nope, sizeof *room);
}

hone_status hn_split_kv_b(hone_model *m, hn_weight *k_b, hn_weight *v_b, const hn_weight *kv_b, const hn_layer_plan *p,
                          hone_error *err)
{
    const hn_type_info *ti = hn_type_get(kv_b->type);
    const int64_t nope = m->hp.d_nope, d_value = m->hp.d_value, rank = kv_b->n_in, share = nope + d_value;
    const hn_type type = ti->block_elems == 1 ? kv_b->type : HN_F32;
    *k_b = *v_b = *kv_b;
    k_b->packed = v_b->packed = NULL;
    k_b->type = type;
    k_b->n_in = nope;
    k_b->n_out = p->n_head * rank;
    k_b->row_bytes = (size_t)hn_row_bytes(hn_type_get(type), (uint64_t)nope);
    v_b->n_out = p->n_head * d_value;
    char *k = hn_arena_alloc(m->arena, (size_t)k_b->n_out * k_b->row_bytes),
         *v = hn_arena_alloc(m->arena, (size_t)v_b->n_out * v_b->row_bytes);
    float *room = malloc((size_t)(nope * rank) * sizeof *room);
    for (int64_t h = 0; k && v && room && h < p->n_head; h++) {
        turn_keys(k + (size_t)(h * rank) * k_b->row_bytes, kv_b, h * share, nope, room);
        memcpy(v + (size_t)(h * d_value) * v_b->row_bytes,
               (const char *)kv_b->data + (size_t)(h * share + nope) * v_b->row_bytes,
               (size_t)d_value * v_b->row_bytes);
    }
    free(room);
    k_b->data = k;
    v_b->data = v;
    return k && v && room ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: keys and values of heads", m->path);
}
