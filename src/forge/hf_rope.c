/* hf_rope: rotations as config.json has them (rope_theta with rope_scaling, or rope_parameters, of all layers or of
 * each kind of them) as keys and tensors of GGUF. Owns the kinds of scaling: linear, yarn, llama3, longrope, dynamic.
 * The formulas are those of huggingface/transformers:src/transformers/modeling_rope_utils.py, checked by
 * tests/dev/check_convert.py; refuses to know who rotates. */
#include "forge/hf.h"

#include "kernels/kernels.h"

#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static const double ln2 = 0.693147180559945309417, two_pi = 6.283185307179586477;
static double ln(double x) { return hn_log2_f64(x) * ln2; }

/* What the config says of the layers that see everything, and of windowed ones. */
typedef struct rope {
    const json_t *all, *windowed; /* objects; windowed NULL: as all */
    const char *type;
    double base, root_base, window_base, part, factor; /* root_base: outside the object */
    int64_t n_ctx, n_orig;                             /* positions it was trained on at first */
    bool has_orig, is_based;                           /* the base has all that is scaled */
} rope;

/* ---- members of an object -------------------------------------------------------------------------------- */

static hone_status number(const hn_hf *f, const json_t *o, const char *key, double absent, double *out, hone_error *err)
{
    const json_t *v = json_object_get(o, key);
    *out = absent;
    if (!v || json_is_null(v)) return HONE_OK;
    *out = json_number_value(v);
    if (json_is_number(v) && isfinite(*out)) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s of the rotations is no number", f->path, key);
}

static hone_status need_number(const hn_hf *f, const json_t *o, const char *key, double *out, hone_error *err)
{
    hone_status st;
    TRY(number(f, o, key, NAN, out, err));
    if (*out > 0) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT,
                   "%s: %s of the rotations is missing or not above 0, which rope_type \"%s\" needs", f->path, key,
                   hn_json_text_of(o, json_object_get(o, "rope_type") ? "rope_type" : "type"));
}

static const char *type_of(const json_t *o)
{
    const char *t = hn_json_text_of(o, "rope_type");
    if (!*t) t = hn_json_text_of(o, "type");
    return *t ? t : "default";
}

/* Members that may be there, of any kind of scaling. */
static hone_status check_members(const hn_hf *f, const json_t *o, const char *also, hone_error *err)
{
    static const char known[] =
        "type rope_type rope_theta factor original_max_position_embeddings partial_rotary_factor";
    const char *k;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)o, k, v)
    {
        size_t n = strlen(k);
        if (json_is_null(v) || hn_hf_is_word(known, k, n) || hn_hf_is_word(also, k, n) || hn_hf_ignored(k)) continue;
        char expected[160];
        snprintf(expected, sizeof expected,
                 "only members that rope_scaling has for its type (HONE_IGNORE_KEYS=%.40s converts without it)", k);
        return hn_hf_refuse(f, k, v, expected, err);
    }
    return HONE_OK;
}

/* ---- what the config says ---------------------------------------------------------------------------------- */

static bool is_llama_like(const hn_hf *f)
{
    const hn_family *family = hn_family_find(f->of->arch, strlen(f->of->arch));
    for (const hn_slot *s = family->layer; s->name; s++)
        if (s->turn == HN_TURN_Q) return true;
    return false;
}

static hone_status head_width(hn_hf *f, int64_t *d, hone_error *err)
{
    int64_t n_embd, n_head;
    hone_status st;
    TRY(hn_hf_whole(f, "hidden_size", 0, &n_embd, err));
    TRY(hn_hf_whole(f, "num_attention_heads", 1, &n_head, err));
    return hn_hf_whole(f, "head_dim", n_head ? n_embd / n_head : 0, d, err);
}

static hone_status read_rope(hn_hf *f, rope *r, hone_error *err)
{
    int64_t d;
    hone_status st;
    const json_t *scaling = hn_hf_get(f, "rope_scaling"), *newer = hn_hf_get(f, "rope_parameters");
    const json_t *p = json_object_size(scaling) ? scaling : newer;
    double root_part, x, alpha;
    *r = (rope){ .all = p };
    TRY(hn_hf_number(f, "rope_theta|rotary_emb_base|global_rope_theta", f->of->base != 0 ? f->of->base : 10000,
                     &r->root_base, NULL, err));
    TRY(hn_hf_number(f, "partial_rotary_factor|rotary_pct|rope_pct", f->of->part != 0 ? f->of->part : 1, &root_part,
                     NULL, err));
    TRY(hn_hf_number(f, "rope_local_base_freq|local_rope_theta", 0, &r->window_base, NULL, err));
    if (json_is_object(json_object_get(p, "full_attention")) ||
        json_is_object(json_object_get(p, "sliding_attention"))) {
        r->all = json_object_get(p, "full_attention");
        r->windowed = json_object_get(p, "sliding_attention");
    }
    TRY(number(f, r->all, "rope_theta", r->root_base, &r->base, err));
    TRY(number(f, r->all, "partial_rotary_factor", root_part, &r->part, err));
    if (!(r->part > 0 && r->part <= 1))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: partial_rotary_factor = %g, expected more than 0 and at most 1",
                       f->path, r->part);
    TRY(number(f, r->all, "alpha", 1, &alpha, err));
    TRY(number(f, r->all, "factor", 1, &r->factor, err));
    TRY(hn_hf_whole(f, "max_position_embeddings|n_positions", 0, &r->n_ctx, err));
    TRY(hn_hf_whole(f, "original_max_position_embeddings", 0, &r->n_orig, err));
    if (!r->n_orig) {
        TRY(number(f, r->all, "original_max_position_embeddings", 0, &x, err));
        r->n_orig = x > 0 && x < 1e9 ? (int64_t)x : 0;
    }
    r->has_orig = r->n_orig > 0;
    if (!r->has_orig) r->n_orig = r->n_ctx;
    r->type = type_of(r->all);
    if (alpha == 1 || strcmp(r->type, "dynamic")) return HONE_OK;
    /* HunYuan's: another base, and nothing dynamic */
    TRY(head_width(f, &d, err));
    if (d > 2 && alpha > 0) r->base *= pow(alpha, (double)d / ((double)d - 2));
    r->is_based = true;
    return HONE_OK;
}

/* ---- kinds --------------------------------------------------------------------------------------------------- */

/* cos and sin are multiplied by a; hone, as llama.cpp, has g(factor) there, over that of yarn_log_multiplier. */
static hone_status put_yarn(hn_hf *f, const rope *r, hone_error *err)
{
    double a, m, all, fast, slow, grown = 1 + 0.1 * (r->factor > 1 ? ln(r->factor) : 0), l = grown - 1;
    bool multiplies = !strcmp(f->of->arch, "mistral3"),
         latent = hn_family_find(f->of->arch, strlen(f->of->arch))->is->latent;
    const json_t *t = json_object_get(r->all, "truncate");
    hone_status st;
    TRY(check_members(
        f, r->all,
        "attention_factor attn_factor beta_fast beta_slow mscale mscale_all_dim truncate llama_4_scaling_beta "
        "apply_yarn_scaling finetuned",
        err));
    if (json_is_number(json_object_get(r->all, "attn_factor"))) /* DeepSeek-R1-0528-Qwen3-8B */
        hn_convert_note(f->a,
                        "%s: attn_factor = %g is not used: transformers knows attention_factor alone, and takes its "
                        "usual one",
                        f->path, json_number_value(json_object_get(r->all, "attn_factor")));
    if (json_is_false(t) && strcmp(f->of->arch, "gpt-oss")) return hn_hf_refuse(f, "truncate", t, "true", err);
    if (json_is_false(t))
        hn_convert_note(f->a, "%s: truncate is false; hone, as llama.cpp, begins and ends yarn's ramp at whole pairs",
                        f->path);
    TRY(need_number(f, r->all, "factor", &a, err));
    TRY(number(f, r->all, "mscale", 0, &m, err));
    TRY(number(f, r->all, "mscale_all_dim", 0, &all, err));
    TRY(number(f, r->all, "attention_factor", m != 0 && all != 0 ? (1 + m * l) / (1 + all * l) : grown, &a, err));
    TRY(number(f, r->all, "beta_fast", 0, &fast, err));
    TRY(number(f, r->all, "beta_slow", 0, &slow, err));
    TRY(hn_hf_put_str(f, "rope.scaling.type", "yarn", err));
    TRY(hn_hf_put_f32(f, "rope.scaling.factor", r->factor, err));
    TRY(hn_hf_put_u32(f, "rope.scaling.original_context_length", (uint32_t)r->n_orig, err));
    if (fast > 0) TRY(hn_hf_put_f32(f, "rope.scaling.yarn_beta_fast", fast, err));
    if (slow > 0) TRY(hn_hf_put_f32(f, "rope.scaling.yarn_beta_slow", slow, err));
    if ((multiplies || latent) && all != 0) {
        TRY(hn_hf_put_f32(f, "rope.scaling.yarn_log_multiplier", latent ? 0.1 * all : all, err));
        grown = latent ? 1 : grown / (1 + all * l);
    }
    return fabs(a / grown - 1) > 1e-7 ? hn_hf_put_f32(f, "rope.scaling.attn_factor", a / grown, err) : HONE_OK;
}

/* Two lists of factors, and a magnitude that grows with the context. */
static hone_status put_longrope(hn_hf *f, const rope *r, hone_error *err)
{
    double a, factor = r->has_orig ? (double)r->n_ctx / (double)r->n_orig : r->factor;
    hone_status st;
    if (!strcmp(f->of->arch, "phi3") && !hn_hf_get(f, "original_max_position_embeddings"))
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: has no original_max_position_embeddings beside max_position_embeddings, which a model of "
                       "class Phi3ForCausalLM with rope_type \"%s\" needs",
                       f->path, r->type);
    TRY(check_members(f, r->all, "short_factor long_factor attention_factor", err));
    TRY(number(f, r->all, "attention_factor", factor > 1 ? sqrt(1 + ln(factor) / ln((double)r->n_orig)) : 1, &a, err));
    TRY(hn_hf_put_u32(f, "rope.scaling.original_context_length", (uint32_t)r->n_orig, err));
    return hn_hf_put_f32(f, "rope.scaling.attn_factor", a, err);
}

static hone_status put_scaling(hn_hf *f, const rope *r, hone_error *err)
{
    hone_status st;
    if (!strcmp(r->type, "yarn")) return put_yarn(f, r, err);
    if (!strcmp(r->type, "longrope") || !strcmp(r->type, "su")) return put_longrope(f, r, err);
    if (!strcmp(r->type, "linear")) {
        TRY(check_members(f, r->all, "", err));
        TRY(hn_hf_put_str(f, "rope.scaling.type", "linear", err));
        return hn_hf_put_f32(f, "rope.scaling.factor", r->factor, err);
    }
    if (!strcmp(r->type, "llama3")) return check_members(f, r->all, "low_freq_factor high_freq_factor", err);
    if (!strcmp(r->type, "proportional")) return check_members(f, r->all, "", err); /* a tensor says it */
    if (!strcmp(r->type, "default") || !strcmp(r->type, "mrope")) /* all parts of a text's positions are equal */
        return check_members(f, r->all, "mrope_section mrope_interleaved llama_4_scaling_beta", err);
    if (r->is_based) return check_members(f, r->all, "alpha beta_fast beta_slow mscale mscale_all_dim", err);
    /* up to the context it was trained on, dynamic scaling does nothing; hone runs no more */
    if (!strcmp(r->type, "dynamic") && r->n_orig == r->n_ctx) return check_members(f, r->all, "", err);
    return HN_FAIL(err, HONE_E_UNSUPPORTED,
                   "%s: rope_type \"%s\"%s, expected default, linear, yarn, llama3, longrope, or dynamic without a "
                   "context of its own",
                   f->path, HN_ESC(r->type, strlen(r->type)),
                   strcmp(r->type, "dynamic") ? "" : " beyond a first context");
}

/* Windowed layers: another base, never scaled. */
static hone_status put_window(hn_hf *f, const rope *r, hone_error *err)
{
    const hn_switches *is = hn_family_find(f->of->arch, strlen(f->of->arch))->is;
    double base = r->window_base;
    hone_status st;
    /* said to be none it is that of all (transformers 4); not said it is the family's */
    if (json_is_null(json_object_get(f->config, "local_rope_theta"))) base = r->base;
    if (r->windowed) {
        const char *type = type_of(r->windowed);
        if (strcmp(type, "default"))
            return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: rope_type \"%s\" of sliding_attention, expected default",
                           f->path, HN_ESC(type, strlen(type)));
        TRY(check_members(f, r->windowed, "", err));
        if (base == 0) base = is->window_base != 0 ? (double)is->window_base : r->root_base;
        TRY(number(f, r->windowed, "rope_theta", base, &base, err));
    }
    const bool own_base = is->reads & (HN_READS_QUERIES | HN_READS_VALUES); /* files say it */
    if (is->window_rope == HN_WINDOW_ROPE_PLAIN && is->window_base == 0 && !own_base &&
        hn_hf_get(f, "sliding_window")) {
        if (base == 0) base = r->base;
        if (base != r->base)
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: rope_theta = %g of sliding_attention, expected %g as of full_attention", f->path, base,
                           r->base);
    }
    if (base == 0 && !strcmp(f->of->arch, "modern-bert")) base = (double)is->window_base; /* else llama.cpp: as all */
    if (base == 0) return HONE_OK;
    return hn_hf_put_f32(f, "rope.freq_base_swa", base, err);
}

hone_status hn_hf_put_rope(hn_hf *f, hone_error *err)
{
    const hn_family *family = hn_family_find(f->of->arch, strlen(f->of->arch));
    int64_t d;
    rope r;
    hone_status st;
    if (!family->is || family->is->nope_period < 0) return HONE_OK; /* nothing turns */
    TRY(read_rope(f, &r, err));
    TRY(head_width(f, &d, err));
    bool has_width = is_llama_like(f) || hn_hf_is_word("phi3|cohere2", f->of->arch, strlen(f->of->arch)) ||
                     r.part != 1 || !strcmp(r.type, "longrope") || !strcmp(r.type, "su");
    if (has_width && !f->own_width) TRY(hn_hf_put_u32(f, "rope.dimension_count", (uint32_t)((double)d * r.part), err));
    if (!f->own_base) TRY(hn_hf_put_f32(f, "rope.freq_base", r.base, err));
    TRY(put_scaling(f, &r, err));
    return put_window(f, &r, err);
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

static hone_status add_given(hn_hf *f, const char *name, const float *v, uint64_t n, hone_error *err)
{
    hone_status st;
    bool known = false;
    for (const hn_slot *s = f->m->arch->outer; s->name; s++) known |= !strcmp(s->name, name);
    if (!known)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: rope_scaling needs a tensor %s, which %s has no place for",
                       f->path, name, f->of->arch);
    TRY(hn_hf_begin(f, name, 1, &n, err));
    f->t[f->n - 1].always_f32 = true;
    return hn_hf_add(f, &(hn_hf_view){ .given = v, .n = { n }, .stride = { 1 } }, err);
}

/* The factors of a list of the config, one for each pair that turns. */
static hone_status add_list(hn_hf *f, const json_t *o, const char *key, const char *name, hone_error *err)
{
    const json_t *list = json_object_get(o, key);
    size_t n = (size_t)f->m->hp.n_rot / 2;
    float *v = hn_arena_alloc(f->arena, n * sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu factors", f->path, n);
    if (!json_is_array(list) || json_array_size(list) != n)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s of rope_scaling has %zu numbers, expected %zu: half of what turns",
                       f->path, key, json_array_size(list), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(list, i);
        v[i] = (float)json_number_value(x);
        if (!json_is_number(x) || !(v[i] > 0) || isinf(v[i]))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%zu] of rope_scaling is no number above 0", f->path, key, i);
    }
    return add_given(f, name, v, n, err);
}

/* Llama 3's: slow pairs over `factor`, fast ones as they are, a ramp between. */
static hone_status add_llama3(hn_hf *f, const rope *r, hone_error *err)
{
    double factor, low, high;
    const size_t n = (size_t)f->m->hp.n_rot / 2, all = f->m->hp.n_factor ? (size_t)f->m->hp.n_factor : n;
    hone_status st;
    float *v = hn_arena_alloc(f->arena, all * sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu factors", f->path, n);
    TRY(need_number(f, r->all, "factor", &factor, err));
    TRY(need_number(f, r->all, "low_freq_factor", &low, err));
    TRY(need_number(f, r->all, "high_freq_factor", &high, err));
    if (!r->has_orig)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: original_max_position_embeddings is missing, which rope_type \"llama3\" needs", f->path);
    double *freq = hn_arena_alloc(f->arena, n * sizeof *freq);
    if (!freq) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu factors", f->path, n);
    hn_rope_freqs(freq, 2 * (int32_t)n, (float)r->base, NULL, 1);
    for (size_t i = n; i < all; i++) v[i] = 1; /* of layers that turn more, whose angles are not scaled */
    for (size_t i = 0; i < n; i++) {
        double turns = (double)r->n_orig * freq[i] / two_pi; /* in the first context */
        double smooth = (turns - low) / (high - low);
        v[i] = turns > high ? 1 : turns < low ? (float)factor : (float)(1 / ((1 - smooth) / factor + smooth));
    }
    return add_given(f, "rope_freqs.weight", v, all, err);
}

/* Gemma 4's: the first part of all pairs turns, as slowly as if all did; others stand still. */
static hone_status add_part(hn_hf *f, const rope *r, hone_error *err)
{
    size_t n = (size_t)f->m->hp.n_rot / 2, turning = (size_t)((double)n * r->part);
    float *v = hn_arena_alloc(f->arena, (n + 1) * sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu factors", f->path, n);
    if (!(r->part > 0 && r->part <= 1))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: partial_rotary_factor = %g, expected more than 0, at most 1", f->path,
                       r->part);
    for (size_t i = 0; i < n; i++) v[i] = i < turning ? 1 : 1e30F;
    return add_given(f, "rope_freqs.weight", v, n, err);
}

hone_status hn_hf_rope_tensors(hn_hf *f, hone_error *err)
{
    rope r;
    hone_status st;
    if (!f->m->arch->is || f->m->arch->is->nope_period < 0) return HONE_OK;
    TRY(read_rope(f, &r, err));
    if (!strcmp(r.type, "llama3")) return add_llama3(f, &r, err);
    if (!strcmp(r.type, "proportional")) return add_part(f, &r, err);
    if (strcmp(r.type, "longrope") && strcmp(r.type, "su")) return HONE_OK;
    TRY(add_list(f, r.all, "long_factor", "rope_factors_long.weight", err));
    return add_list(f, r.all, "short_factor", "rope_factors_short.weight", err);
}
