/* Ids of single kernels: which there are, at which shapes, what they mean, how a result
 * looks as JSON. Refuses to know how they are run. */
#define _GNU_SOURCE
#include "kernels/kernels.h"
#include "forge/synth.h"
#include "lab/inside/kern.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <stdlib.h>

typedef struct kind_info {
    const char *prefix, *about;
    int n_num;
    bool typed;
} kind_info;
static const kind_info kinds[HN_KERN_KINDS] = {
    [HN_KERN_GEMV] = { "kern.gemv", "product of few columns: GB/s of weights, cold", 2, true },
    [HN_KERN_GEMM] = { "kern.gemm", "product of many columns: TOPS (int8) or GFLOP/s", 2, true },
    [HN_KERN_ATTN_DECODE] = { "kern.attn.decode",
                              "one token against N positions, heads x KV heads x width: GB/s of keys and values, cold",
                              4, false },
    [HN_KERN_ATTN_PREFILL] = { "kern.attn.prefill", "the last min(N, 512) tokens of N: GFLOP/s", 4, false },
    [HN_KERN_WKV7] = { "kern.wkv7",
                       "RWKV-7's recurrence, heads x width, tokens of one sequence: GB/s of state read and written "
                       "(one token, cold) or GFLOP/s",
                       3, false },
    [HN_KERN_WKV6] = { "kern.wkv6", "RWKV-6's recurrence, the same", 3, false },
    [HN_KERN_NORM] = { "kern.norm", "RMS norm of a row: us", 1, false },
    [HN_KERN_SILU] = { "kern.silu", "silu(gate)*up of a row: us", 1, false },
    [HN_KERN_EXP] = { "kern.exp", "exp of a row: us", 1, false },
    [HN_KERN_LAYER_NORM] = { "kern.layernorm", "LayerNorm of a row: us", 1, false },
    [HN_KERN_Q256] = { "kern.act.q256", "activations to 8 bits, blocks of 256: us", 1, false },
    [HN_KERN_Q32] = { "kern.act.q32", "activations to 8 bits, blocks of 32: us", 1, false },
    [HN_KERN_ROPE] = { "kern.rope", "rotation of heads x width: us", 2, false },
    [HN_KERN_DECODE] = { "kern.quant.decode", "weights to f32: GB/s of f32", 1, true },
    [HN_KERN_ENCODE] = { "kern.quant.encode", "f32 to weights: GB/s of f32, and the relative error", 1, true },
};

const char *hn_kern_about(hn_kern_kind k) { return kinds[k].about; }

/* ---- ids ---------------------------------------------------------------------------------- */

/* What stands before number i of n: the last of three and more is a length. */
static char before(int n, int i) { return i == 0 || (n > 2 && i == n - 1) ? '.' : 'x'; }

static void write_id(hn_kern *k)
{
    const kind_info *ki = &kinds[k->kind];
    size_t n = (size_t)snprintf(k->id, sizeof k->id, "%s", ki->prefix);
    if (ki->typed) n += (size_t)snprintf(k->id + n, sizeof k->id - n, ".%s", hn_type_get((uint32_t)k->type)->name);
    for (int i = 0; i < ki->n_num; i++)
        n += (size_t)snprintf(k->id + n, sizeof k->id - n, "%c%lld", before(ki->n_num, i), (long long)k->n[i]);
}

static hone_status check_kern(const hn_kern *k, const char *id, hone_error *err)
{
    enum { MOST = 1 << 20, MAX_TOKENS = 4096 };
    const char *name = HN_ESC(id, strlen(id));
    for (int i = 0; i < kinds[k->kind].n_num; i++)
        if (k->n[i] < 1 || k->n[i] > MOST)
            return HN_FAIL(err, HONE_E_ARG, "%s: %lld in the shape, expected 1 to %d", name, (long long)k->n[i], MOST);
    int64_t row = k->kind == HN_KERN_GEMV || k->kind == HN_KERN_GEMM ? k->n[1] : k->n[0];
    if (k->type >= 0) {
        const hn_type_info *ti = hn_type_get((uint32_t)k->type);
        if (!ti->weight) return HN_FAIL(err, HONE_E_ARG, "%s: %s is no type of weights", name, ti->name);
        if (row % ti->block_elems)
            return HN_FAIL(err, HONE_E_ARG, "%s: rows of %lld, expected a multiple of %u for %s", name, (long long)row,
                           ti->block_elems, ti->name);
        if (k->kind == HN_KERN_ENCODE && !ti->quantize)
            return HN_FAIL(err, HONE_E_ARG, "%s: hone cannot encode %s", name, ti->name);
    }
    if (k->kind == HN_KERN_Q256 && row % 256)
        return HN_FAIL(err, HONE_E_ARG, "%s: rows of %lld, expected a multiple of 256", name, (long long)row);
    if (k->kind == HN_KERN_Q32 && row % 32)
        return HN_FAIL(err, HONE_E_ARG, "%s: rows of %lld, expected a multiple of 32", name, (long long)row);
    if ((k->kind == HN_KERN_ATTN_DECODE || k->kind == HN_KERN_ATTN_PREFILL) && k->n[0] % k->n[1])
        return HN_FAIL(err, HONE_E_ARG, "%s: %lld heads, expected a multiple of the %lld KV heads", name,
                       (long long)k->n[0], (long long)k->n[1]);
    if ((k->kind == HN_KERN_WKV7 || k->kind == HN_KERN_WKV6) &&
        (k->n[1] > HN_MAX_WKV || k->n[0] * k->n[1] > MOST / 4 || k->n[2] > MAX_TOKENS))
        return HN_FAIL(err, HONE_E_ARG, "%s: expected heads of at most %d, %d columns in all and %d tokens", name,
                       HN_MAX_WKV, MOST / 4, MAX_TOKENS);
    if (k->kind == HN_KERN_ROPE && k->n[1] % 2)
        return HN_FAIL(err, HONE_E_ARG, "%s: heads of %lld, expected an even number", name, (long long)k->n[1]);
    return HONE_OK;
}

static bool read_numbers(hn_kern *k, const char *s, int n)
{
    for (int i = 0; i < n; i++) {
        char *end;
        if (*s < '0' || *s > '9') return false;
        long long v = strtoll(s, &end, 10);
        if (end - s > 9) return false;
        k->n[i] = v;
        s = end;
        if (i + 1 < n && *s++ != before(n, i + 1)) return false;
    }
    return *s == 0;
}

static const char *const shape_like[] = { "", "65536", "8192x2048", "40x64.512",
                                          "32x8x64.4096" }; /* of n_num numbers */

/* The first kernel of a row of the catalogue: "kern.attn" has kern.attn.decode; −1: there is no such row. */
static int first_of_row(const char *id)
{
    const size_t n = strlen(id);
    for (int k = 0; k < HN_KERN_KINDS; k++)
        if (strncmp(kinds[k].prefix, id, n) == 0 && (kinds[k].prefix[n] == '.' || !kinds[k].prefix[n])) return k;
    return -1;
}

hone_status hn_kern_parse(hn_kern *out, const char *id, hone_error *err)
{
    const char *name = HN_ESC(id, strlen(id));
    for (int k = 0; k < HN_KERN_KINDS; k++) {
        size_t n = strlen(kinds[k].prefix);
        if (strncmp(id, kinds[k].prefix, n) != 0 || id[n] != '.') continue;
        *out = (hn_kern){ .kind = (hn_kern_kind)k, .type = -1 };
        const char *rest = id + n + 1;
        if (kinds[k].typed) {
            char type[32];
            size_t len = strcspn(rest, ".");
            snprintf(type, sizeof type, "%.*s", (int)(len < 31 ? len : 31), rest);
            out->type = hn_type_by_name(type);
            if (out->type < 0 || !rest[len])
                return HN_FAIL(err, HONE_E_ARG, "%s: '%s' is no type of weights before a shape", name,
                               HN_ESC(type, strlen(type)));
            rest += len + 1;
        }
        if (!read_numbers(out, rest, kinds[k].n_num))
            return HN_FAIL(err, HONE_E_ARG, "%s: '%s' is no shape; expected %s, as in %s", name,
                           HN_ESC(rest, strlen(rest)), kinds[k].n_num == 1 ? "a number" : "numbers",
                           shape_like[kinds[k].n_num]);
        write_id(out);
        return check_kern(out, id, err);
    }
    const int of_row = first_of_row(id);
    if (of_row >= 0)
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: a row of many kernels; expected one of them, as in %s%s.%s (all of them: "
                       "hone lab list)",
                       name, kinds[of_row].prefix, kinds[of_row].typed ? ".Q4_K" : "", shape_like[kinds[of_row].n_num]);
    return HN_FAIL(err, HONE_E_ARG, "%s: no such kernel; try: hone lab list", name);
}

/* ---- the list --------------------------------------------------------------------------------- */

typedef struct list {
    hn_kern *k;
    size_t n, cap;
    bool failed;
} list;

static void add(list *l, hn_kern_kind kind, int32_t type, int64_t a, int64_t b, int64_t c, int64_t d)
{
    hn_kern k = { .kind = kind, .type = type, .n = { a, b, c, d } };
    write_id(&k);
    if (check_kern(&k, k.id, NULL) != HONE_OK) return;
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->k[i].id, k.id) == 0) return;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 128;
        hn_kern *grown = realloc(l->k, cap * sizeof *grown);
        if (!grown) {
            l->failed = true;
            return;
        }
        l->k = grown;
        l->cap = cap;
    }
    l->k[l->n++] = k;
}

static void add_products(list *l, hn_kern_kind kind, const hn_synth_shape *s)
{
    static const hn_type types[] = { HN_Q4_K,   HN_Q5_K,   HN_Q6_K, HN_Q8_0, HN_Q4_0, HN_Q5_0,
                                     HN_IQ4_XS, HN_IQ4_NL, HN_F16,  HN_BF16, HN_F32 };
    int64_t e = s->n_embd, q = (int64_t)s->n_head * s->head_dim, kv = (int64_t)s->n_head_kv * s->head_dim;
    const int64_t shapes[][2] = { { q, e }, { kv, e }, { e, q }, { s->n_ff, e }, { e, s->n_ff }, { s->n_vocab, e } };
    const int64_t ranks[] = { s->rank_decay, s->rank_iclr, s->rank_value, s->rank_gate, 5 * (int64_t)s->rank_mix,
                              s->rank_mix }; /* 0: none */
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        bool whole =
            types[t] == HN_F16 || types[t] == HN_BF16 || types[t] == HN_F32; /* low-rank matrices are not quantized */
        for (size_t i = 0; i < 6 && whole; i++) {
            if (ranks[i] && i != 5) add(l, kind, (int32_t)types[t], ranks[i], e, 0, 0);
            if (ranks[i] && i != 4) add(l, kind, (int32_t)types[t], e, ranks[i], 0, 0);
        }
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            if (kind == HN_KERN_GEMM && shapes[i][0] == s->n_vocab) continue; /* logits of one position only */
            add(l, kind, (int32_t)types[t], shapes[i][0], shapes[i][1], 0, 0);
        }
    }
}

hone_status hn_kern_list(hn_kern **out, size_t *n, const char *preset, hone_error *err)
{
    *out = NULL;
    *n = 0;
    const hn_synth_shape *s = hn_synth_preset(preset, NULL);
    if (!s)
        return HN_FAIL(err, HONE_E_ARG, "unknown preset '%s'; see: hone synth --list", HN_ESC(preset, strlen(preset)));
    list l = { 0 };
    add_products(&l, HN_KERN_GEMV, s);
    add_products(&l, HN_KERN_GEMM, s);
    if (hn_synth_is_rwkv(s)) {
        hn_kern_kind wkv = strcmp(s->arch, "rwkv7") == 0 ? HN_KERN_WKV7 : HN_KERN_WKV6;
        for (int64_t n_tok = 1; n_tok <= 512; n_tok *= 512) add(&l, wkv, -1, s->n_head, s->head_dim, n_tok, 0);
        add(&l, HN_KERN_LAYER_NORM, -1, s->n_embd, 0, 0, 0);
    } else {
        for (int64_t len = 128; len <= 32768; len *= 4)
            add(&l, HN_KERN_ATTN_DECODE, -1, s->n_head, s->n_head_kv, s->head_dim, len);
        for (int64_t len = 512; len <= 8192; len *= 4)
            add(&l, HN_KERN_ATTN_PREFILL, -1, s->n_head, s->n_head_kv, s->head_dim, len);
        add(&l, HN_KERN_NORM, -1, s->n_embd, 0, 0, 0);
        add(&l, HN_KERN_SILU, -1, s->n_ff, 0, 0, 0);
        add(&l, HN_KERN_ROPE, -1, s->n_head, s->head_dim, 0, 0);
    }
    add(&l, HN_KERN_EXP, -1, s->n_ff, 0, 0, 0);
    for (int i = 0; i < 2; i++) {
        add(&l, HN_KERN_Q256, -1, i ? s->n_ff : s->n_embd, 0, 0, 0);
        add(&l, HN_KERN_Q32, -1, i ? s->n_ff : s->n_embd, 0, 0, 0);
    }
    for (uint32_t t = 0; t < HN_TYPE_COUNT; t++) {
        const hn_type_info *ti = hn_type_get(t);
        if (!ti || !ti->weight || t == HN_F64) continue;
        add(&l, HN_KERN_DECODE, (int32_t)t, 65536, 0, 0, 0);
        add(&l, HN_KERN_ENCODE, (int32_t)t, 16384, 0, 0, 0);
    }
    if (l.failed) {
        free(l.k);
        return HN_FAIL(err, HONE_E_NOMEM, "list of kernels");
    }
    *out = l.k;
    *n = l.n;
    return HONE_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------------ */

json_t *hn_kern_json(const hn_kern *k, const hn_kern_result *r)
{
    json_t *o = json_object(), *samples = json_array(), *roof = json_object();
    bool product = k->kind <= HN_KERN_GEMM;
    for (size_t i = 0; i < r->time.n; i++) json_array_append_new(samples, hn_lab_num(r->sample_s[i] * 1e6));
    hn_stats us = { .n = 0 };
    double x[HN_KERN_SAMPLES];
    for (size_t i = 0; i < r->time.n; i++) x[i] = r->sample_s[i] * 1e6;
    hn_stats_of(&us, x, r->time.n, NULL);
    json_object_set_new(o, "id", json_string(k->id));
    json_object_set_new(o, "config",
                        json_pack("{s:i, s:s, s:o, s:o}", "threads", (int)r->config.threads, "cpu", r->level, "columns",
                                  product ? json_integer(r->config.columns) : json_null(), "layout",
                                  product ? json_string(r->config.packed ? "packed" : "plain") : json_null()));
    json_object_set_new(o, "unit", json_string(r->unit));
    json_object_set_new(o, "better", json_string(strcmp(r->unit, "us") == 0 ? "lower" : "higher"));
    json_object_set_new(o, "value", hn_lab_num(r->rate));
    json_object_set_new(o, "calls", json_integer(r->calls));
    json_object_set_new(o, "samples_us", samples);
    json_object_set_new(o, "stats_us", hn_stats_json(&us));
    json_object_set_new(o, "cpu_use", hn_lab_num(r->cpu_use));
    json_object_set_new(roof, "bytes", hn_lab_num(r->bytes));
    json_object_set_new(roof, "ops", hn_lab_num(r->ops));
    json_object_set_new(roof, "rotated_mb", hn_lab_num(r->rotated_bytes / 1e6));
    json_object_set_new(roof, "bound", r->roof ? json_string(r->roof) : json_null());
    json_object_set_new(roof, "pct", hn_lab_num(100 * r->share));
    json_object_set_new(o, "roofline", roof);
    json_object_set_new(o, "rmse", hn_lab_num(r->rmse));
    json_object_set_new(o, "valid", json_boolean(r->verdict.state == HN_VALID));
    json_object_set_new(o, "invalid_reason",
                        r->verdict.state == HN_VALID ? json_null() : hn_lab_str(r->verdict.reason));
    return o;
}
