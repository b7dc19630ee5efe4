/* rope: angles of rotary positions from a model's metadata: bases, Llama-3 factors, linear scaling, YaRN. Owns the
 * formulas; refuses to know who rotates. */
#include "kernels/kernels.h"
#include "model/hparams.h"

#include <math.h>

/* Angles of sane files are at most 1 a position; hn_sincos must not see what is beyond its range. */
enum { MAX_ANGLE = 16 };
_Static_assert((int64_t)HN_MAX_CTX *MAX_ANGLE <= (int64_t)1 << 30,
               "positions times angles stay in the range of hn_sincos");

static hone_status check_angles(const hone_model *m, const hn_rope *r, hone_error *err)
{
    for (int32_t i = 0; i < r->n_rot / 2; i++)
        if (!(fabs(r->freq[i]) <= MAX_ANGLE))
            return HN_FAIL(err, HONE_E_FORMAT,
                           "%s: the keys %s.rope.* turn pair %d by %g a position, expected at most %d", m->path,
                           m->arch->name, i, r->freq[i], MAX_ANGLE);
    return HONE_OK;
}

/* cos and sin are multiplied by attn_factor alone, times 1 + 0.1·ln(factor) where that is more than 1, as
 * ggml-org/llama.cpp does (src/llama-context.cpp, ggml/src/ggml-cpu/ops.cpp rope_yarn; it never reads yarn_attn_factor
 * for these families). Its converter copies Hugging Face's attention_factor, which is the *whole* magnitude there, into
 * yarn_attn_factor: where that is another number, answers differ from transformers', and a note says so. */
static hone_status yarn_magnitude(hone_model *m, hn_rope *r, float factor, bool extrapolates, hone_error *err)
{
    enum { NOTE_BYTES = 480 };
    char key[128], *note;
    float said = 1.0f;
    float multiplier = 0;
    double grown = 1.0, ln = 0;
    hone_status st = hn_get_real(m, "rope.scaling.yarn_attn_factor", 0, 1e6, 1.0, &said, err);
    if (st != HONE_OK) return st;
    if ((st = hn_get_real(m, "rope.scaling.yarn_log_multiplier", -1e-30, 1e6, 0, &multiplier, err)) != HONE_OK)
        return st;
    if (extrapolates && factor > 1.0f) ln = hn_log2_f64((double)factor) * 0.693147180559945309417;
    grown += 0.1 * ln;
    if (multiplier != 0) grown = m->hp.is->latent ? 1.0 : grown / (1.0 + 0.1 * (double)multiplier * ln);
    r->mscale = (float)((double)r->mscale * grown);
    if (said == 1.0f || fabsf(said - r->mscale) <= 1e-4f * r->mscale) return HONE_OK;
    if (!(note = hn_arena_alloc(m->arena, NOTE_BYTES))) return HN_FAIL(err, HONE_E_NOMEM, "%s: metadata", m->path);
    hn_arch_key(m, key, "rope.scaling.yarn_attn_factor");
    snprintf(note, NOTE_BYTES,
             "%s = %g is not used: rotations are scaled by %g, which is attn_factor times "
             "1 + 0.1 ln(factor), as in llama.cpp; a model that transformers scales by %g answers differently here",
             key, (double)said, (double)r->mscale, (double)said);
    m->formula_note = note;
    return HONE_OK;
}

/* YaRN (Peng et al. 2023): interpolate slow dimensions, keep fast ones, a ramp between. A
 * negative ext_factor means 1; 0 leaves plain interpolation, without the correction of
 * magnitude (ggml-org/llama.cpp:ggml/src/ggml-cpu/ops.cpp rope_yarn). */
static hone_status apply_yarn(hone_model *m, hn_rope *r, float base, float factor, hone_error *err)
{
    hone_status st;
    int32_t n = r->n_rot, n_orig;
    float fast, slow, ext;
    if ((st = hn_first_context(m, &n_orig, err)) != HONE_OK) return st;
    if ((st = hn_get_real(m, "rope.scaling.yarn_beta_fast", 0, 1e6, 32.0, &fast, err)) != HONE_OK) return st;
    if ((st = hn_get_real(m, "rope.scaling.yarn_beta_slow", 0, 1e6, 1.0, &slow, err)) != HONE_OK) return st;
    if ((st = hn_get_real(m, "rope.scaling.yarn_ext_factor", -1e6, 1e6, 1.0, &ext, err)) != HONE_OK) return st;
    if (ext < 0) ext = 1.0f;
    const double two_pi = 6.283185307179586477, l2 = hn_log2_f64(base);
    double lo = floor(n * hn_log2_f64(n_orig / (two_pi * (double)fast)) / (2.0 * l2));
    double hi = ceil(n * hn_log2_f64(n_orig / (two_pi * (double)slow)) / (2.0 * l2));
    lo = lo < 0 ? 0 : lo;
    hi = hi > n - 1 ? n - 1 : hi;
    for (int32_t i = 0; i < n / 2; i++) {
        double ramp = (i - lo) / (hi - lo > 0.001 ? hi - lo : 0.001);
        double mix = (double)ext * (1.0 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp));
        r->freq[i] *= (1.0 - mix) / (double)factor + mix;
    }
    return yarn_magnitude(m, r, factor, ext > 0, err);
}

/* base^(−2i/n) per position, times scale, over factors. */
static hone_status make_table(hone_model *m, hn_rope *r, float base, const float *factors, double scale,
                              hone_error *err)
{
    int32_t n = r->n_rot;
    if (!(r->freq = hn_arena_alloc(m->arena, (size_t)(n / 2) * sizeof(double))))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: rope table", m->path);
    hn_rope_freqs(r->freq, n, base, factors, scale);
    return HONE_OK;
}

/* A base of angles from its key. */
static hone_status get_base(const hone_model *m, const char *suffix, double def, float *base, hone_error *err)
{
    char key[128];
    hone_status st = hn_get_real(m, suffix, 0, 1e12, def, base, err);
    if (st != HONE_OK || *base >= 1.0f) return st;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %g, expected at least 1", m->path, hn_arch_key(m, key, suffix),
                   (double)*base);
}

hone_status hn_rope_scaling(const hone_model *m, float *factor, bool *yarn, hone_error *err)
{
    char key[128];
    hone_status st;
    float zero_ok = 0, factor_old;
    bool found = false;
    if ((st = hn_gguf_get_f32(m->file, hn_arch_key(m, key, "rope.scaling.factor"), &zero_ok, &found, err)) != HONE_OK)
        return st;
    if (found && zero_ok == 0) *factor = 1.0f; /* 0 means none */
    else {
        if ((st = hn_get_real(m, "rope.scale_linear", 0, 1e6, 1.0, &factor_old, err)) != HONE_OK) return st;
        if ((st = hn_get_real(m, "rope.scaling.factor", 0, 1e6, factor_old, factor, err)) != HONE_OK) return st;
    }
    hone_str type = { "linear", 6 };
    if ((st = hn_gguf_get_str(m->file, hn_arch_key(m, key, "rope.scaling.type"), &type, NULL, err)) != HONE_OK)
        return st;
    bool none = type.len == 4 && !memcmp(type.ptr, "none", 4), linear = type.len == 6 && !memcmp(type.ptr, "linear", 6);
    const bool longrope = type.len == 8 && !memcmp(type.ptr, "longrope", 8);
    if (longrope && !m->rope_factors_long)
        return HN_FAIL(
            err, HONE_E_UNSUPPORTED,
            "%s: %s = \"longrope\", expected tensor rope_factors_long.weight beside it, and a family that has it",
            m->path, key);
    none |= longrope; /* the tensors say it all */
    *yarn = type.len == 4 && !memcmp(type.ptr, "yarn", 4);
    if (!none && !linear && !*yarn)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = \"%s\", expected none, linear or yarn", m->path, key,
                       HN_ESC(type.ptr, type.len));
    if (none) *factor = 1.0f;
    return HONE_OK;
}

/* How much of the heads of windowed layers turns: as much as of the others, but where their key says otherwise. */
static hone_status window_width(const hone_model *m, int32_t *n, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    char key[128];
    *n = hp->is->half_turns ? 2 * hp->n_rot : hp->n_rot;
    const bool own = hp->is->window_rope == HN_WINDOW_ROPE_OWN;
    if (!own && !(hp->is->reads & (HN_READS_GEMMA | HN_READS_QUERIES))) return HONE_OK;
    const int32_t most = hp->head_dim_window ? hp->head_dim_window : hp->head_dim;
    hone_status st = hn_get_int(m, "rope.dimension_count_swa", 2, most, *n, n, err);
    if (st != HONE_OK || (*n % 2 == 0 && *n <= most)) return st;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected an even number of at most %d, the width of a head",
                   m->path, hn_arch_key(m, key, "rope.dimension_count_swa"), *n, most);
}

hone_status hn_rope_width(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    char key[128];
    int32_t n = hp->head_dim;
    hone_status st = hn_get_int(m, "rope.dimension_count", 2, hp->head_dim, hp->head_dim, &n, err);
    if (st != HONE_OK) return st;
    if (n % 2)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d is odd", m->path, hn_arch_key(m, key, "rope.dimension_count"),
                       n);
    if (!hp->rope_neox && !hp->is->part_turns && n != hp->head_dim)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %d, expected the head width %d for architecture %s", m->path,
                       hn_arch_key(m, key, "rope.dimension_count"), n, hp->head_dim, m->arch->name);
    hp->n_rot = n;
    if (!hp->is->half_turns) return HONE_OK;
    if (n % 4)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, expected a multiple of 4: half of it turns", m->path,
                       hn_arch_key(m, key, "rope.dimension_count"), n);
    hp->n_rot = n / 2;
    for (int32_t il = 0; il < hp->n_layer && !hp->n_factor; il++)
        if (m->plan[il].window && (st = window_width(m, &n, err)) == HONE_OK) hp->n_factor = n / 2;
    return st;
}

static hone_status check_factors(const hone_model *m, const float *factors, const char *name, hone_error *err)
{
    for (int32_t i = 0; factors && i < m->hp.n_rot / 2; i++)
        if (!(factors[i] >= 1.0f / MAX_ANGLE) || isinf(factors[i]))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s.weight[%d] = %g, expected a number of at least %g",
                           m->path, name, i, (double)factors[i], 1.0 / MAX_ANGLE);
    return HONE_OK;
}

/* Of sessions of more positions than the model was trained on at first: other factors (Ding et al. 2024). */
static hone_status long_table(hone_model *m, float base, double scale, bool yarn, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    if (!m->rope_factors_long) return HONE_OK;
    if (yarn)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: rope.scaling.type = \"yarn\" beside tensor rope_factors_long.weight: expected one of both",
                       m->path);
    if ((st = check_factors(m, m->rope_factors_long, "rope_factors_long", err)) != HONE_OK) return st;
    if ((st = hn_first_context(m, &hp->n_ctx_long, err)) != HONE_OK) return st;
    hp->rope[HN_ROPE_LONG].n_rot = hp->n_rot;
    hp->rope[HN_ROPE_LONG].mscale = hp->rope[HN_ROPE_ALL].mscale;
    if ((st = make_table(m, &hp->rope[HN_ROPE_LONG], base, m->rope_factors_long, scale, err)) != HONE_OK) return st;
    return check_angles(m, &hp->rope[HN_ROPE_LONG], err);
}

/* A table of r->n_rot and that base, scaled as the file says. */
static hone_status scaled_table(hone_model *m, hn_rope *r, float base, float factor, bool yarn, hone_error *err)
{
    hone_status st = make_table(m, r, base, m->rope_factors, yarn ? 1.0 : 1.0 / (double)factor, err);
    if (st == HONE_OK) st = hn_get_real(m, "rope.scaling.attn_factor", 0, 1e6, 1.0, &r->mscale, err);
    if (st == HONE_OK && yarn) st = apply_yarn(m, r, base, factor, err);
    return st == HONE_OK ? check_angles(m, r, err) : st;
}

hone_status hn_rope_tables(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st;
    float base, factor;
    bool yarn;
    const float *factors = m->rope_factors;
    if ((st = get_base(m, "rope.freq_base", 10000, &base, err)) != HONE_OK) return st;
    if ((st = hn_rope_scaling(m, &factor, &yarn, err)) != HONE_OK) return st;
    st = check_factors(m, factors, m->rope_factors_long ? "rope_factors_short" : "rope_freqs", err);
    if (st != HONE_OK) return st;
    hp->rope[0].n_rot = hp->n_rot;
    if ((st = scaled_table(m, &hp->rope[0], base, factor, yarn, err)) != HONE_OK) return st;
    if ((st = long_table(m, base, 1.0 / (double)factor, yarn, err)) != HONE_OK) return st;
    if (hp->window_base != 0 || (hp->window && hp->is->window_rope == HN_WINDOW_ROPE_OWN)) {
        if ((st = get_base(m, "rope.freq_base_swa", (double)base, &base, err)) != HONE_OK) return st;
        if ((st = window_width(m, &hp->rope[HN_ROPE_WINDOW].n_rot, err)) != HONE_OK) return st;
        return scaled_table(m, &hp->rope[HN_ROPE_WINDOW], base, factor, yarn, err);
    }
    if (!hp->window || hp->is->window_rope != HN_WINDOW_ROPE_PLAIN) return HONE_OK;
    /* windowed layers: a base of their own, nothing scaled */
    if (hp->is->window_base != 0) base = hp->is->window_base;
    if ((st = get_base(m, "rope.freq_base_swa", (double)base, &base, err)) != HONE_OK) return st;
    if ((st = window_width(m, &hp->rope[1].n_rot, err)) != HONE_OK) return st;
    hp->rope[1].mscale = 1.0f;
    return make_table(m, &hp->rope[1], base, NULL, 1.0, err);
}
