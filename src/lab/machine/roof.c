/* What the peaks mean: which are possible at all, the roof at a number of threads, how
 * much of it a rate is, and when a rate is too good to be true. */
#define _GNU_SOURCE
#include "kernels/kernels.h"
#include "lab/machine/roof.h"
#include "lab/stats/verdict.h"

#include <math.h>
#include <stdlib.h>

/* ---- what is possible ---------------------------------------------------------------------- */

static const char *const kind_names[HN_PEAK_KINDS] = { "reading", "int8", "f32", "bf16", "dispatch", "barrier" };

enum { NEVER_GHZ = 8 }; /* where the clock is not known */

/* Most per core and cycle of anything built: four 512-bit units of products (matrix units are
 * not measured here), two loads of 64 bytes. */
static double most_per_cycle(hn_peak_kind k)
{
    const double units = 4;
    switch (k) {
    case HN_PEAK_READ_BW: return 128;
    case HN_PEAK_INT8: return units * 128;
    case HN_PEAK_F32: return units * 32;
    default: return units * 64;
    }
}

static hone_status check_point(const hn_peaks *p, hn_peak_kind k, int32_t i, hone_error *err)
{
    const double more = 1.25; /* than threads times one thread: clocks rise, neighbours leave */
    const hn_peak_point *at = &p->at[k][i], *one = &p->at[k][0];
    const char *name = kind_names[k];
    if (!(isfinite(at->best) && at->best > 0 && isfinite(at->median) && at->median > 0) || at->threads < 1)
        return HN_FAIL(err, HONE_E_NUMERIC, "peaks: %s with %d threads is %g, expected a positive rate", name,
                       at->threads, at->best);
    if (i > 0 && at->threads <= p->at[k][i - 1].threads)
        return HN_FAIL(err, HONE_E_NUMERIC, "peaks: %s: thread counts %d, %d; expected them to ascend", name,
                       p->at[k][i - 1].threads, at->threads);
    if (k >= HN_PEAK_DISPATCH) return HONE_OK;
    if (!(at->most >= at->best && at->most >= at->median && isfinite(at->most)))
        return HN_FAIL(err, HONE_E_NUMERIC, "peaks: %s with %d threads: best %g, median %g, but never more than %g",
                       name, at->threads, at->best, at->median, at->most);
    double ghz = p->clock_ghz[1] > 0 ? p->clock_ghz[1] : NEVER_GHZ, most = most_per_cycle(k) * ghz * at->threads;
    if (at->most > most)
        return HN_FAIL(err, HONE_E_NUMERIC,
                       "peaks: %s with %d threads at %.4g 10^9/s, but nothing does more than %.4g at %.2f GHz: the "
                       "work was not done",
                       name, at->threads, at->most, most, ghz);
    if (i > 0 && !p->quick && at->best > more * one->best * at->threads / one->threads)
        return HN_FAIL(err, HONE_E_NUMERIC,
                       "peaks: %s with %d threads at %.4g 10^9/s, but with %d at %.4g: one of them is wrong; measure "
                       "again on an idle machine",
                       name, at->threads, at->best, one->threads, one->best);
    return HONE_OK;
}

hone_status hn_peaks_check(const hn_peaks *p, hone_error *err)
{
    if (p->clock_ghz[1] != 0 && !(p->clock_ghz[0] > 0.01 && p->clock_ghz[0] <= p->clock_ghz[1] && p->clock_ghz[1] < 12))
        return HN_FAIL(err, HONE_E_NUMERIC, "peaks: clock of %g to %g GHz, expected 0.01 to 12", p->clock_ghz[0],
                       p->clock_ghz[1]);
    for (int k = 0; k < HN_PEAK_KINDS; k++) {
        if (p->n[k] < 1 && k != HN_PEAK_BF16)
            return HN_FAIL(err, HONE_E_NUMERIC, "peaks: %s was not measured", kind_names[k]);
        for (int32_t i = 0; i < p->n[k]; i++) {
            hone_status st = check_point(p, (hn_peak_kind)k, i, err);
            if (st != HONE_OK) return st;
        }
    }
    return HONE_OK;
}

/* ---- the roof ---------------------------------------------------------------------------------- */

static double greatest(const hn_peaks *p, hn_peak_kind kind, int32_t threads, bool most)
{
    double x = 0;
    for (int32_t i = 0; i < p->n[kind]; i++) {
        x = fmax(x, most ? p->at[kind][i].most : p->at[kind][i].best);
        if (p->at[kind][i].threads >= threads) break;
    }
    return x;
}

double hn_peaks_at(const hn_peaks *p, hn_peak_kind kind, int32_t threads) { return greatest(p, kind, threads, false); }
double hn_peaks_most(const hn_peaks *p, hn_peak_kind kind, int32_t threads) { return greatest(p, kind, threads, true); }

double hn_check_roof(hn_verdict *v, double decode_tok_s, uint64_t bytes_per_token, double roof_gb_s, double most_gb_s,
                     uint64_t cache_bytes)
{
    if (!(roof_gb_s > 0) || !isfinite(decode_tok_s) || bytes_per_token <= 2 * cache_bytes) return NAN;
    double gb_s = decode_tok_s * (double)bytes_per_token * 1e-9,
           from_memory = decode_tok_s * (double)(bytes_per_token - cache_bytes) * 1e-9;
    if (from_memory > (1 + HN_ROOF_TOLERANCE) * most_gb_s)
        hn_invalid(v,
                   "decode reads %.1f GB/s of weights by this rate, but the machine reads %.1f GB/s: not all weights "
                   "were used, "
                   "or the roof is too low (hone lab peaks --force)",
                   gb_s, most_gb_s);
    return gb_s / roof_gb_s;
}

void hn_check_read(hn_verdict *v, double bytes, double kept, double most_b_s, double s)
{
    if (bytes / most_b_s * (1 - kept) > (1 + HN_ROOF_TOLERANCE) * s) /* false for NaN */
        hn_invalid(v,
                   "%.1f GB/s, but the machine reads %.1f GB/s: not everything was read, or the roof is too low (hone "
                   "lab peaks --force)",
                   1e-9 * bytes / s, 1e-9 * most_b_s);
}

void hn_check_compute(hn_verdict *v, const char *what, double least_s, double s)
{
    if (least_s > (1 + HN_ROOF_TOLERANCE) * s) /* false for NaN */
        hn_invalid(v,
                   "%s took %.4g s, but its multiplications alone take %.4g s on this machine: not all were done, or "
                   "the roof is too low "
                   "(hone lab peaks --force)",
                   what, s, least_s);
}

void hn_check_twice(hn_verdict *v, hn_roof_judge *judge, void *arg, hn_peaks *p, unsigned kinds, int32_t threads,
                    bool (*stop)(void *))
{
    const double states = 4; /* from the slowest minute of a machine to its fastest: no more than that */
    hn_verdict beyond = { 0 };
    judge(arg, &beyond, p);
    if (beyond.state == HN_INVALID && v->state != HN_INVALID) {
        hn_verdict far = { 0 };
        hn_peaks best = *p;
        for (int k = 0; k < HN_PEAK_KINDS; k++)
            for (int32_t i = 0; i < best.n[k]; i++) best.at[k][i].best *= states, best.at[k][i].most *= states;
        judge(arg, &far, &best);
        if (far.state != HN_INVALID && hn_peaks_again(p, kinds, threads, stop)) beyond = (hn_verdict){ 0 };
        judge(arg, &beyond, p); /* what it tells of the roof is of p */
    }
    if (beyond.state == HN_INVALID) hn_invalid(v, "%s", beyond.reason);
}

/* ---- work ------------------------------------------------------------------------------------------- */

static bool name_is(hone_str s, const char *name) { return s.len == strlen(name) && memcmp(s.ptr, name, s.len) == 0; }

/* Tensors of two dimensions and more that nothing is multiplied by: RWKV's vectors, and layer 0's copies. */
static bool no_matrix(hone_str s)
{
    static const char *const ends[] = { "time_mix_lerp_fused.weight", "time_mix_first.weight" };
    if (name_is(s, "blk.0.time_mix_v1.weight") || name_is(s, "blk.0.time_mix_v2.weight")) return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (s.len > n && memcmp(s.ptr + s.len - n, ends[i], n) == 0) return true;
    }
    return false;
}

/* A number of the metadata whose key ends so; 0: there is none. */
static double number_of(const hone_file *f, const char *end)
{
    size_t n = strlen(end);
    for (uint64_t i = 0; i < hone_file_n_kv(f); i++) {
        hone_kv kv;
        hone_file_kv(f, i, &kv);
        if (kv.type == HONE_KV_U32 && kv.key.len > n && memcmp(kv.key.ptr + kv.key.len - n, end, n) == 0)
            return (double)kv.v.u;
    }
    return 0;
}

/* Where a name goes on behind a part of it; NULL: it has no such part. */
static const char *behind(hone_str s, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n < s.len; i++)
        if (memcmp(s.ptr + i, part, n) == 0) return s.ptr + i + n;
    return NULL;
}

/* "_exps.": of all experts; "ffn_gate.E.weight": of expert E; "ffn_gate.weight": of none. */
static bool of_experts(hone_str s)
{
    static const char *const parts[] = { ".ffn_gate.", ".ffn_up.", ".ffn_down." };
    if (behind(s, "_exps.")) return true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *p = behind(s, parts[i]);
        if (p && *p >= '0' && *p <= '9') return true;
    }
    return false;
}

/* The share of a tensor that a token is multiplied with: of experts, those that it asks for. */
static double share_of(const hone_file *f, hone_str name)
{
    double all = number_of(f, ".expert_count"), used = number_of(f, ".expert_used_count");
    return all > 0 && used > 0 && used <= all && of_experts(name) ? used / all : 1;
}

/* How often a token runs through the layer that a tensor is of: all layers of some models, or each of two stacks. */
static double times_of(const hone_file *f, hone_str name)
{
    const double loops = number_of(f, ".num_loops"), stack = number_of(f, ".hrm.layers_per_stack"),
                 high = number_of(f, ".hrm.h_cycles");
    double block = 0;
    if (!behind(name, "blk.")) return 1;
    for (const char *p = behind(name, "blk."); *p >= '0' && *p <= '9'; p++) block = 10 * block + (*p - '0');
    if (stack > 0) return block < stack ? high * number_of(f, ".hrm.l_cycles") : high;
    return loops > 1 ? loops : 1;
}

hone_status hn_work_of(hn_work *out, const char *path, hone_error *err)
{
    *out = (hn_work){ 0 };
    hone_file *f;
    hone_status st = hone_file_open(&f, path, err);
    if (st != HONE_OK) return st;
    bool tied = hone_file_find_tensor(f, "output.weight") < 0;
    for (uint64_t i = 0; i < hone_file_n_tensors(f); i++) {
        hone_tensor_info t;
        hone_file_tensor(f, i, &t);
        bool head = name_is(t.name, tied ? "token_embd.weight" : "output.weight");
        if (t.n_dim < 2 || (!head && (t.name.len < 4 || memcmp(t.name.ptr, "blk.", 4) != 0))) continue;
        if (no_matrix(t.name)) continue;
        bool integers = t.type < HN_TYPE_COUNT && hn_act_kind_of((hn_type)t.type) != HN_ACT_F32;
        double n = (double)t.ne[0] * (double)t.ne[1] * (double)t.ne[2] * (double)t.ne[3] * share_of(f, t.name) *
                   times_of(f, t.name);
        *(head       ? integers ? &out->int8_head : &out->float_head
          : integers ? &out->int8_layers
                     : &out->float_layers) += n;
    }
    hone_file_close(f);
    return HONE_OK;
}

void hn_work_add(hn_work *w, const hone_model_info *info)
{
    enum { PER_ELEMENT = 5 }; /* multiplications and additions in pairs, as a weight is one */
    w->bytes_per_token = hn_bytes_per_token(info);
    bool rwkv = strncmp(info->arch, "rwkv", 4) == 0;
    if (rwkv) w->float_layers += PER_ELEMENT * (double)info->n_layer * (double)info->n_embd * (double)info->head_dim;
    else w->float_layers += PER_ELEMENT * (double)info->state_bytes / (double)sizeof(float);
}

/* At so many operations a second of each kind. */
static double prefill_s(const hn_work *w, int32_t n_tok, double int8, double f32)
{
    double n_int8 = w->int8_layers * n_tok + w->int8_head, n_float = w->float_layers * n_tok + w->float_head;
    if ((n_int8 > 0 && !(int8 > 0)) || (n_float > 0 && !(f32 > 0)) || !(n_int8 + n_float > 0)) return NAN;
    return (n_int8 > 0 ? 2 * n_int8 / int8 : 0) + (n_float > 0 ? 2 * n_float / f32 : 0);
}

double hn_work_prefill_s(const hn_work *w, const hn_peaks *p, int32_t threads, int32_t n_tok, bool most)
{
    return prefill_s(w, n_tok, greatest(p, HN_PEAK_INT8, threads, most) * 1e9,
                     greatest(p, HN_PEAK_F32, threads, most) * 1e9);
}

void hn_check_possible(hn_verdict *v, const hn_work *w, int32_t threads, int32_t n_tok, double s)
{
    const double cycles = NEVER_GHZ * 1e9 * threads;
    const double least_s =
        prefill_s(w, n_tok, cycles * most_per_cycle(HN_PEAK_INT8), cycles * most_per_cycle(HN_PEAK_F32));
    if (least_s > s) /* false for NaN */
        hn_invalid(v,
                   "a prompt of %d tokens took %.4g s, but %d threads of no CPU make its multiplications in less than "
                   "%.4g s: not all were done",
                   (int)n_tok, s, (int)threads, least_s);
}
