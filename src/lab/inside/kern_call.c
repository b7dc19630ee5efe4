/* One call of each kind of kernel, as the engine makes it: products, attention and recurrences through a backend, rows
 * by a table of kernels; and what it left. Refuses to know what a call is for: checks and clocks. */
#include "lab/inside/kern_priv.h"

void hn_kb_call_product(hn_kern_bench *b)
{
    hn_weight w = hn_kb_weight(b, b->turn++);
    b->be->op->matmul(b->be, b->act, &(hn_product){ .w = &w, .y = b->in_rows[0] }, 1);
}

void hn_kb_call_attn(hn_kern_bench *b)
{
    const hn_kv kv = hn_kb_kv(b, b->mem, b->turn++);
    const hn_attention a = { .q = b->in_rows[0], .n_head = b->k.n[0], .scale = HN_KB_ATTN_SCALE };
    hn_bench_attention(b->be, b->act, &a, &kv, b->rows, (int32_t)hn_kb_attn_tokens(&b->k));
}

void hn_kb_step(hn_kern_bench *b, hn_backend *be, hn_act *act, hn_buf *const x[HN_KB_WKV_INPUTS], const hn_state *s)
{
    const hn_time_mix m = hn_kb_mix(b, x);
    be->op->step_begin(be, &(hn_step_block){ .rows = b->rows, .n_tok = (int32_t)b->k.n[2], .n_seq = 1 });
    be->op->time_mix(be, act, &m, s);
    be->op->step_end(be, NULL, NULL);
}

void hn_kb_call_wkv(hn_kern_bench *b)
{
    const hn_state s = hn_kb_state(b, b->mem, b->turn++);
    hn_kb_step(b, b->be, b->act, b->in_rows, &s);
}

void hn_kb_wkv_again(hn_kern_bench *b)
{
    const size_t at = (size_t)(b->turn % b->n_plain) * b->plain_bytes;
    b->be->op->write(b->be, b->mem, at, b->plain, b->plain_bytes);
}

void hn_kb_fetch(hn_kern_bench *b)
{
    int64_t width = hn_kb_act_width(&b->k);
    if (hn_kern_is_product(&b->k)) b->be->op->read(b->be, b->y, b->in_rows[0], 0, b->y_floats * sizeof(float));
    else hn_bench_get(b->be, b->y, b->act, 0, (int64_t)b->y_floats / width, width);
}

void hn_kb_row_with(hn_kern_bench *b, const hn_kernels *t, float *y, void *q)
{
    const hn_type_info *ti = b->k.type >= 0 ? hn_type_get((uint32_t)b->k.type) : NULL;
    int64_t n = b->k.n[0];
    switch (b->k.kind) {
    case HN_KERN_NORM: t->rms_norm(y, b->in, b->in2, n, 1e-5f); break;
    case HN_KERN_LAYER_NORM: t->layer_norm(y, b->in, b->in2, b->in, n, 1e-5f); break;
    case HN_KERN_SILU: t->silu_mul(y, b->in, b->in2, n); break;
    case HN_KERN_EXP: t->exp(y, b->in, n); break;
    case HN_KERN_Q256: t->quantize256(q, b->in, n); break;
    case HN_KERN_Q32: t->quantize32(q, b->in, n); break;
    case HN_KERN_ROPE: /* in place, each time a quarter of a turn further, which is exact */
        hn_rope_apply(y, b->in2, n, b->k.n[1], (int32_t)b->k.n[1], true);
        break;
    case HN_KERN_DECODE: ti->dequantize(y, b->q, n); break;
    case HN_KERN_ENCODE: ti->quantize(q, b->in, n, NULL); break;
    default: break;
    }
}

const void *hn_kb_row_output(const hn_kern_bench *b, size_t *bytes)
{
    hn_kern_kind k = b->k.kind;
    *bytes = k == HN_KERN_Q256     ? hn_act_row_bytes(HN_ACT_Q256, b->k.n[0])
             : k == HN_KERN_Q32    ? (size_t)(b->k.n[0] / 32 * 40) /* less what fills it up */
             : k == HN_KERN_ENCODE ? hn_row_bytes(hn_type_get((uint32_t)b->k.type), (uint64_t)b->k.n[0])
                                   : (size_t)hn_kb_row_floats(&b->k) * sizeof(float);
    return k == HN_KERN_Q256 || k == HN_KERN_Q32 || k == HN_KERN_ENCODE ? b->q : (const void *)b->out;
}
