/* Runs single kernels as the engine does: products and attention through the CPU backend
 * and its pool, weights cold, outputs compared with the scalar level bit by bit before
 * and after the clock runs. Owns the order of these, rates and the roof; refuses to know
 * ids and reports. */
#include "lab/inside/kern_priv.h"
#include "lab/quality/proof.h"

#include <math.h>

/* ---- the roof ----------------------------------------------------------------------------------------- */

typedef struct one_call {
    hn_kern_result *r;
    double cache_bytes; /* 0: nobody knows; it may hold that much of what is rotated */
} one_call;

static void judge_call(void *arg, hn_verdict *v, const hn_peaks *p)
{
    const one_call *c = arg;
    hn_kern_result *r = c->r;
    const double s = r->time.median;
    const hn_peak_kind kind = r->integers ? HN_PEAK_INT8 : HN_PEAK_F32;
    double read = hn_peaks_at(p, HN_PEAK_READ_BW, r->config.threads) * 1e9;
    double mul = hn_peaks_at(p, kind, r->config.threads) * 1e9;
    if (!(read > 0 && mul > 0)) return;
    double read_s = r->bytes / read, mul_s = r->ops / mul;
    r->roof = read_s > mul_s ? "read" : r->integers ? "int8" : "f32";
    r->share = fmax(read_s, mul_s) / s;
    double most = hn_peaks_most(p, HN_PEAK_READ_BW, r->config.threads) * 1e9;
    if (c->cache_bytes > 0) hn_check_read(v, r->bytes, c->cache_bytes / r->rotated_bytes, most, s);
    most = hn_peaks_most(p, kind, r->config.threads) * 1e9;
    if (p->bound) hn_check_compute(v, "one call", r->ops / most, s);
}

static void judge(hn_kern_result *r, const hn_kern_bench *b, hn_peaks *p, bool (*stop)(void *))
{
    double s = r->time.median;
    r->rate = r->unit[0] == 'u'   ? 1e6 * s
              : r->unit[0] == 'T' ? 1e-12 * r->ops / s
              : r->unit[2] == '/' ? 1e-9 * r->bytes / s
                                  : 1e-9 * r->ops / s;
    if (r->verdict.state == HN_UNCHECKED) r->verdict.state = HN_VALID;
    if (!p || r->rotated_bytes == 0) return;
    one_call c = { r, (double)b->cache_bytes };
    const unsigned kinds = 1u << HN_PEAK_READ_BW | 1u << (r->integers ? HN_PEAK_INT8 : HN_PEAK_F32);
    hn_check_twice(&r->verdict, judge_call, &c, p, kinds, r->config.threads, stop);
}

static void describe(hn_kern_result *r, const hn_kern_bench *b)
{
    const hn_kern *k = &b->k;
    double n = (double)k->n[0];
    r->rmse = r->share = r->rate = NAN;
    r->unit = "us";
    if (hn_kern_is_product(k)) {
        r->integers = hn_act_kind_of((hn_type)k->type) != HN_ACT_F32;
        r->bytes = (double)(r->config.packed ? b->packed_bytes : b->plain_bytes);
        r->ops = 2 * n * (double)k->n[1] * r->config.columns;
        r->rotated_bytes = r->bytes * (double)(r->config.packed ? b->n_packed : b->n_plain);
        r->unit = r->config.columns <= 4 ? "GB/s" : r->integers ? "TOPS" : "GFLOP/s";
    } else if (hn_kb_is_attn(k)) {
        double seen = 0;
        for (int64_t t = 0; t < hn_kb_attn_tokens(k); t++) seen += (double)b->rows[t].pos + 1;
        r->bytes = 4 * (double)k->n[1] * (double)k->n[2] * (double)k->n[3];
        r->ops = 4 * n * (double)k->n[2] * seen;
        r->rotated_bytes = (double)b->plain_bytes * (double)b->n_plain;
        r->unit = k->kind == HN_KERN_ATTN_DECODE ? "GB/s" : "GFLOP/s";
    } else if (hn_kb_is_wkv(k)) {
        r->bytes = 8 * n * (double)k->n[1] * (double)k->n[1]; /* read and written */
        r->ops = 10 * n * (double)k->n[1] * (double)k->n[1] * (double)k->n[2];
        r->rotated_bytes = (double)b->plain_bytes * (double)b->n_plain;
        r->unit = k->n[2] == 1 ? "GB/s" : "GFLOP/s";
    } else if (k->kind == HN_KERN_DECODE || k->kind == HN_KERN_ENCODE) {
        r->bytes = 4 * n;
        r->unit = "GB/s";
    }
}

/* ---- a measurement ------------------------------------------------------------------------------------ */

static double rmse_of(hn_kern_bench *b)
{
    double e = 0, x = 0;
    hn_type_get((uint32_t)b->k.type)->dequantize(b->out, b->q, b->k.n[0]);
    for (int64_t i = 0; i < b->k.n[0]; i++) {
        double d = (double)b->out[i] - (double)b->in[i];
        e += d * d;
        x += (double)b->in[i] * (double)b->in[i];
    }
    return sqrt(e / x);
}

hone_status hn_kern_measure(hn_kern_result *r, hn_kern_bench *b, const hn_kern_config *c, hn_peaks *peaks,
                            bool (*stop)(void *), hone_error *err)
{
    *r = (hn_kern_result){ .config = *c };
    bool product = hn_kern_is_product(&b->k), attn = hn_kb_is_attn(&b->k), wkv = hn_kb_is_wkv(&b->k),
         pooled = product || attn || wkv;
    if (c->n_samples < 1 || c->n_samples > HN_KERN_SAMPLES || c->threads < 1 || (product && c->columns < 1) ||
        (c->packed && !hn_kern_has_packed(b)))
        return HN_FAIL(err, HONE_E_ARG, "%s: %d samples, %d threads, %d columns%s", b->k.id, c->n_samples, c->threads,
                       c->columns, c->packed ? ", packed" : "");
    if (!pooled) r->config.threads = 1;
    b->config = r->config;
    b->turned = (hn_bench_turned){ 0 };
    b->turn = 0;
    snprintf(r->level, sizeof r->level, "%s", hn_cpu_level_name(b->level));
    hone_status st = pooled ? hn_kb_prepare(b, err) : HONE_OK;
    if (st != HONE_OK) return st;
    describe(r, b);
    hn_kb_call_fn *call = product ? hn_kb_call_product : attn ? hn_kb_call_attn : wkv ? hn_kb_call_wkv : hn_kb_call_row;
    if (b->k.kind == HN_KERN_ROPE) memcpy(b->out, b->in, (size_t)hn_kb_row_floats(&b->k) * sizeof(float));
    for (int64_t i = 0; b->k.kind == HN_KERN_ROPE && i < b->k.n[1]; i++) b->in2[i] = i % 2 ? 1.0f : 0.0f;
    call(b);
    if (pooled) hn_kb_fetch(b);
    if (!(product ? hn_kb_check_product(b, r)
          : attn  ? hn_kb_check_attn(b, r)
          : wkv   ? hn_kb_check_wkv(b, b->plain, 1, r)
                  : hn_kb_check_row(b, r)))
        return HONE_OK;
    if (pooled) memcpy(b->y_check, b->y, b->y_floats * sizeof(float));
    st = hn_kb_time_calls(r, b, call, stop, err);
    if (st != HONE_OK) return st;
    int64_t n_missed = b->place.n_missed;
    if (wkv) { /* it goes on from the state it left: once more from the first */
        hn_kb_wkv_again(b);
        call(b);
    } else if (!pooled && b->k.kind != HN_KERN_ROPE) call(b); /* of the first operands again */
    if (pooled) hn_kb_fetch(b);
    if (pooled && memcmp(b->y_check, b->y, b->y_floats * sizeof(float)) != 0)
        hn_invalid(&r->verdict, "the outputs changed from call to call");
    if (n_missed)
        hn_invalid(&r->verdict, "%lld of the timed calls that were watched left a number out, or another one there",
                   (long long)n_missed);
    if (!pooled) hn_kb_check_row(b, r);
    r->hashed = b->k.kind != HN_KERN_ROPE;
    if (pooled) r->output = hn_bits_hash(b->y, (int64_t)b->y_floats);
    if (b->k.kind == HN_KERN_ENCODE) r->rmse = rmse_of(b);
    judge(r, b, peaks, stop);
    return HONE_OK;
}
