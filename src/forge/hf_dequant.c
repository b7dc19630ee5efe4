/* hf_dequant: numbers of tensors that are stored otherwise, row by row: float8 with scales (DeepSeek's blocks, a scale
 * for a tensor or a row), bytes with scales, words of compressed-tensors, GPTQ and AWQ, MXFP4 and NVFP4 whose bytes
 * GGUF has in another order, BitNet's three values. Formulas: vllm-project/compressed-tensors:compressors,
 * casper-hansen/AutoAWQ:utils/packing_utils.py, AutoGPTQ/AutoGPTQ:qlinear_cuda_old.py, openai/gpt-oss:weights.py,
 * NVIDIA/Model-Optimizer:nvfp4_tensor.py. Refuses to know names and configs. */
#include "forge/hf_packed.h"

#include <math.h>
#include <stdlib.h>

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

enum { CHUNK = 16384 };

static const hn_ckpt_tensor *at(const hn_hf *f, int64_t i) { return i < 0 ? NULL : &f->c->t[i]; }

static uint64_t count(const hn_ckpt_tensor *t)
{
    uint64_t n = 1;
    for (int i = 0; i < HN_CKPT_MAX_DIM; i++) n *= t->ne[i]; /* its bytes lie in a file */
    return n;
}

static hone_status read_at(const hn_hf *f, const hn_ckpt_tensor *t, uint64_t byte, void *to, uint64_t n,
                           hone_error *err)
{
    return hn_source_read(&f->c->part[t->part], t->off + byte, to, n, err);
}

/* ---- scalars -------------------------------------------------------------------------------------------- */

/* sign, 4 bits of exponent, 3 of mantissa; no infinity; all ones is NaN */
static float e4m3(uint8_t v)
{
    if ((v & 0x7F) == 0x7F) return NAN;
    float x = hn_bits_f32((uint32_t)(v & 0x7F) << 20) * 0x1p120f;
    return v & 0x80 ? -x : x;
}

static float e5m2(uint8_t v) { return hn_f16_to_f32((uint16_t)(v << 8)); }

/* 2^(e − 127); 255 is NaN */
static float e8m0(uint8_t e) { return e == 255 ? NAN : e ? hn_bits_f32((uint32_t)e << 23) : 0x1p-127f; }

/* ---- what is held ---------------------------------------------------------------------------------------- */

static void let_go(hn_hf_packed *p)
{
    free(p->scales);
    free(p->orders);
    free(p->words);
    free(p->zeros);
    p->scales = NULL;
    p->orders = NULL;
    p->words = p->zeros = NULL;
}

static hone_status hold(const hn_hf *f, const hn_ckpt_tensor *t, void **out, hone_error *err)
{
    *out = malloc(t->n_bytes + 8);
    if (!*out)
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %llu bytes", HN_ESC(t->name.ptr, t->name.len),
                       (unsigned long long)t->n_bytes);
    return read_at(f, t, 0, *out, t->n_bytes, err);
}

static hone_status hold_scales(const hn_hf *f, hn_hf_packed *p, const hn_ckpt_tensor *t, hone_error *err)
{
    uint64_t n = count(t);
    void *raw;
    hone_status st = hold(f, t, &raw, err);
    p->scales = st == HONE_OK ? malloc(4 * n + 4) : NULL;
    if (st == HONE_OK && !p->scales)
        st = HN_FAIL(err, HONE_E_NOMEM, "%s: %llu scales", HN_ESC(t->name.ptr, t->name.len), (unsigned long long)n);
    if (st == HONE_OK && t->raw == HN_RAW_F8_E8M0)
        for (uint64_t i = 0; i < n; i++) p->scales[i] = e8m0(((uint8_t *)raw)[i]);
    else if (st == HONE_OK) hn_type_get(t->type)->dequantize(p->scales, raw, (int64_t)n);
    for (uint64_t i = 0; i < n && st == HONE_OK; i++)
        if (!isfinite(p->scales[i]))
            st = HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: element %llu is %s, expected a finite scale",
                         f->c->part[t->part].path, HN_ESC(t->name.ptr, t->name.len), (unsigned long long)i,
                         isnan(p->scales[i]) ? "NaN" : "infinite");
    free(raw);
    return st;
}

static hone_status hold_orders(const hn_hf *f, hn_hf_packed *p, const hn_ckpt_tensor *t, hone_error *err)
{
    void *raw;
    hone_status st = hold(f, t, &raw, err);
    p->orders = raw;
    for (uint64_t i = 0; i < p->n_in && st == HONE_OK && p->how == HN_PACKED_WORDS; i++)
        if (p->orders[i] == -1) { /* one of them: there is no order */
            free(p->orders);
            p->orders = NULL;
            return HONE_OK;
        }
    for (uint64_t i = 0; i < p->n_in && st == HONE_OK; i++)
        if (p->orders[i] < 0 || (uint64_t)p->orders[i] >= p->n_scale_in)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: %s: element %llu is %d, expected a group from 0 to %llu",
                         f->c->part[t->part].path, HN_ESC(t->name.ptr, t->name.len), (unsigned long long)i,
                         (int)p->orders[i], (unsigned long long)(p->n_scale_in - 1));
    return st;
}

static hone_status open_packed(const hn_hf *f, hn_hf_stored *s, hone_error *err)
{
    hn_hf_packed *p = (hn_hf_packed *)s;
    void *zeros = NULL, *words = NULL;
    bool across = p->how == HN_PACKED_GPTQ || p->how == HN_PACKED_AWQ; /* a row is not in one piece */
    hone_status st = HONE_OK;
    if (p->scales) return HONE_OK; /* two views of one source */
    if (p->scale >= 0) st = hold_scales(f, p, at(f, p->scale), err);
    if (st == HONE_OK && p->order >= 0) st = hold_orders(f, p, at(f, p->order), err);
    if (st == HONE_OK && p->zero >= 0) {
        st = hold(f, at(f, p->zero), &zeros, err);
        p->zeros = zeros;
    }
    if (st == HONE_OK && across) {
        st = hold(f, at(f, p->codes), &words, err);
        p->words = words;
    }
    if (st != HONE_OK) let_go(p);
    return st;
}

static void close_packed(hn_hf_stored *s) { let_go((hn_hf_packed *)s); }

/* ---- eight bits and scales -------------------------------------------------------------------------------- */

/* The scale of an element, and its zero, as there is one for each scale. */
static uint64_t scale_at(const hn_hf_packed *p, uint64_t row, uint64_t col)
{
    uint64_t m = row / p->n_out, o = row % p->n_out;
    return (m * p->n_scale_out + o / p->block_out) * p->n_scale_in + col / p->block_in;
}

static hone_status read_bytes(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, float *x,
                              hone_error *err)
{
    const hn_hf_packed *p = (const hn_hf_packed *)s;
    uint8_t raw[CHUNK];
    hone_status st;
    for (uint64_t k; n; n -= k, first += k) {
        k = n < CHUNK ? n : CHUNK;
        TRY(read_at(f, at(f, p->codes), first, raw, k, err));
        for (uint64_t i = 0; i < k;) {
            uint64_t row = (first + i) / p->n_in, col = (first + i) % p->n_in, end = p->block_in - col % p->block_in;
            uint64_t of = scale_at(p, row, col);
            float scale = p->scales[of], zero = p->zeros ? (float)((const int8_t *)p->zeros)[of] : 0;
            if (end > p->n_in - col) end = p->n_in - col;
            for (end = end < k - i ? i + end : k; i < end; i++) {
                float v = p->how == HN_PACKED_I8        ? (float)(int8_t)raw[i] - zero
                          : p->how == HN_PACKED_F8_E4M3 ? e4m3(raw[i])
                                                        : e5m2(raw[i]);
                *x++ = v * scale;
            }
        }
    }
    return HONE_OK;
}

/* ---- words of several codes --------------------------------------------------------------------------------- */

static uint32_t bits_of(uint32_t word, uint64_t i, int32_t bits)
{
    return word >> (i * (uint64_t)bits) & ((1u << bits) - 1);
}

static uint64_t group_of(const hn_hf_packed *p, uint64_t col)
{
    return p->orders ? (uint64_t)p->orders[col] : col / p->block_in;
}

/* Rows of words, the last of them maybe not full; zeros are packed down the rows. */
static hone_status read_words(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, float *x,
                              hone_error *err)
{
    const hn_hf_packed *p = (const hn_hf_packed *)s;
    uint64_t per = 32 / (uint64_t)p->bits, n_word = (p->n_in + per - 1) / per;
    uint32_t half = 1u << (p->bits - 1), word[CHUNK / 4];
    hone_status st;
    for (uint64_t k; n; n -= k, first += k) {
        uint64_t row = first / p->n_in, col = first % p->n_in, w = col / per;
        uint64_t m = row / p->n_out, o = row % p->n_out, n_zero = (p->n_out + per - 1) / per;
        k = p->n_in - col < n ? p->n_in - col : n;
        if (k > (CHUNK / 4 - 1) * per) k = (CHUNK / 4 - 1) * per;
        TRY(read_at(f, at(f, p->codes), 4 * (row * n_word + w), word, 4 * ((col + k - 1) / per - w + 1), err));
        for (uint64_t i = col; i < col + k; i++) {
            uint64_t g = group_of(p, i);
            uint32_t q = bits_of(word[i / per - w], i % per, p->bits), z = half;
            if (p->zeros) z = bits_of(p->zeros[(m * n_zero + o / per) * p->n_scale_in + g], o % per, p->bits);
            *x++ = (float)((int32_t)q - (int32_t)z) *
                   p->scales[(m * p->n_scale_out + o / p->block_out) * p->n_scale_in + g];
        }
    }
    return HONE_OK;
}

/* Code i of a run of them in words; GPTQ's of three bits lie across two. */
static uint32_t code_at(const uint32_t *word, uint64_t stride, uint64_t i, int32_t bits)
{
    uint64_t bit = i * (uint64_t)bits, w = bit / 32;
    uint64_t both = word[w * stride];
    if (bit % 32 + (uint64_t)bits > 32) both |= (uint64_t)word[(w + 1) * stride] << 32;
    return (uint32_t)(both >> bit % 32) & ((1u << bits) - 1);
}

static hone_status read_gptq(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, float *x,
                             hone_error *err)
{
    const hn_hf_packed *p = (const hn_hf_packed *)s;
    uint32_t mask = (1u << p->bits) - 1;
    uint64_t n_zero = p->n_out * (uint64_t)p->bits / 32;
    for (uint64_t e = first; e < first + n; e++) {
        uint64_t o = e / p->n_in, i = e % p->n_in, g = group_of(p, i);
        uint32_t q = code_at(p->words + o, p->n_out, i, p->bits);
        uint32_t z = (code_at(p->zeros + g * n_zero, 1, o, p->bits) + p->one_less) & mask;
        *x++ = (float)((int32_t)q - (int32_t)z) * p->scales[g * p->n_out + o];
    }
    return HONE_OK;
}

/* The column that is code c of eight in a word stands at that place in it. */
static const uint8_t awq_place[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };

static hone_status read_awq(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, float *x,
                            hone_error *err)
{
    const hn_hf_packed *p = (const hn_hf_packed *)s;
    uint64_t n_word = p->n_out / 8;
    for (uint64_t e = first; e < first + n; e++) {
        uint64_t o = e / p->n_in, i = e % p->n_in, g = group_of(p, i), place = awq_place[o % 8];
        uint32_t q = bits_of(p->words[i * n_word + o / 8], place, 4);
        uint32_t z = bits_of(p->zeros[g * n_word + o / 8], place, 4);
        *x++ = (float)((int32_t)q - (int32_t)z) * p->scales[g * p->n_out + o];
    }
    return HONE_OK;
}

/* ---- MXFP4 --------------------------------------------------------------------------------------------------- */

/* Byte j of a block has elements 2j and 2j + 1 there, j and j + 16 here; the scale comes before it here. */
static hone_status blocks_mxfp4(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, void *out,
                                hone_error *err)
{
    const hn_hf_packed *p = (const hn_hf_packed *)s;
    uint8_t code[CHUNK], scale[CHUNK / 16], *y = out;
    hone_status st;
    uint64_t b = first / 32, end = (first + n) / 32;
    for (uint64_t k; b < end; b += k) {
        k = end - b < CHUNK / 16 ? end - b : CHUNK / 16;
        TRY(read_at(f, at(f, p->codes), 16 * b, code, 16 * k, err));
        TRY(read_at(f, at(f, p->scale), b, scale, k, err));
        for (uint64_t i = 0; i < k; i++, y += 17) {
            const uint8_t *c = code + 16 * i;
            if (scale[i] == 255)
                return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: element %llu is NaN (255), expected a finite scale",
                               f->c->part[at(f, p->scale)->part].path,
                               HN_ESC(at(f, p->scale)->name.ptr, at(f, p->scale)->name.len),
                               (unsigned long long)(b + i));
            y[0] = scale[i];
            for (int j = 0; j < 16; j++) {
                int lo = c[j / 2] >> 4 * (j % 2) & 15, hi = c[8 + j / 2] >> 4 * (j % 2) & 15;
                y[1 + j] = (uint8_t)(lo | hi << 4);
            }
        }
    }
    return HONE_OK;
}

static hone_status read_mxfp4(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, float *x,
                              hone_error *err)
{
    uint8_t block[17 * 256];
    float y[32 * 256];
    hone_status st;
    for (uint64_t k; n; n -= k, first += k, x += k) { /* runs may begin within a block */
        uint64_t from = first / 32 * 32, whole = (first - from + n + 31) / 32 * 32;
        if (whole > 32 * 256) whole = 32 * 256;
        k = whole - (first - from) < n ? whole - (first - from) : n;
        TRY(blocks_mxfp4(f, s, from, whole, block, err));
        hn_type_get(HN_MXFP4)->dequantize(y, block, (int64_t)whole);
        memcpy(x, y + (first - from), 4 * k);
    }
    return HONE_OK;
}

/* ---- NVFP4 --------------------------------------------------------------------------------------------------- */

enum { NV_GROUP = 16, NV_BLOCK = 64, NV_BYTES = 36, NV_GROUPS = NV_BLOCK / NV_GROUP };

/* Groups [first, first + n) of 16 in blocks of 64, of which the last may not be full. Byte j of a group has elements 2j
 * and 2j + 1 there, j and j + 8 here; the scales of four groups stand before their codes, and have no sign here. */
static hone_status repack_nvfp4(const hn_hf *f, const hn_hf_packed *p, uint64_t first, uint64_t n, uint8_t *y,
                                hone_error *err)
{
    enum { AT_ONCE = CHUNK / 16 };
    uint8_t code[8 * AT_ONCE], scale[AT_ONCE];
    const hn_ckpt_tensor *from = at(f, p->scale);
    hone_status st;
    for (uint64_t k, g = 0; g < n; g += k) {
        k = n - g < AT_ONCE ? n - g : AT_ONCE;
        TRY(read_at(f, at(f, p->codes), 8 * (first + g), code, 8 * k, err));
        TRY(read_at(f, from, first + g, scale, k, err));
        for (uint64_t i = 0; i < k; i++) {
            uint64_t in = (g + i) % NV_GROUPS;
            uint8_t *block = y + (g + i) / NV_GROUPS * NV_BYTES, *to = block + NV_GROUPS + 8 * in;
            const uint8_t *c = code + 8 * i;
            float x = e4m3(scale[i]);
            if (!(x >= 0))
                return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: element %llu is %g, expected a scale of at least 0",
                               f->c->part[from->part].path, HN_ESC(from->name.ptr, from->name.len),
                               (unsigned long long)(first + g + i), (double)x);
            block[in] = scale[i] & 0x7F;
            for (int j = 0; j < 8; j++) {
                int lo = c[j / 2] >> 4 * (j % 2) & 15, hi = c[4 + j / 2] >> 4 * (j % 2) & 15;
                to[j] = (uint8_t)(lo | hi << 4);
            }
        }
    }
    return HONE_OK;
}

static hone_status blocks_nvfp4(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, void *out,
                                hone_error *err)
{
    return repack_nvfp4(f, (const hn_hf_packed *)s, first / NV_GROUP, n / NV_GROUP, out, err);
}

static hone_status read_nvfp4(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, float *x,
                              hone_error *err)
{
    enum { BLOCKS = 128 };
    uint8_t block[NV_BYTES * BLOCKS];
    float y[NV_BLOCK * BLOCKS];
    hone_status st;
    for (uint64_t k; n; n -= k, first += k, x += k) { /* runs may begin within a group */
        uint64_t skip = first % NV_GROUP, groups = (skip + n + NV_GROUP - 1) / NV_GROUP;
        if (groups > NV_GROUPS * BLOCKS) groups = NV_GROUPS * BLOCKS;
        k = groups * NV_GROUP - skip < n ? groups * NV_GROUP - skip : n;
        memset(block, 0, sizeof block);
        TRY(repack_nvfp4(f, (const hn_hf_packed *)s, first / NV_GROUP, groups, block, err));
        hn_type_get(HN_NVFP4)->dequantize(y, block, (int64_t)((groups + NV_GROUPS - 1) / NV_GROUPS * NV_BLOCK));
        for (uint64_t i = 0; i < k; i++) x[i] = s->beside[0] == 0 ? y[skip + i] : y[skip + i] * s->beside[0];
    }
    return HONE_OK;
}

/* ---- three values (Ma et al. 2024) ---------------------------------------------------------------------------- */

static hone_status read_ternary(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, float *x,
                                hone_error *err)
{
    const hn_hf_packed *p = (const hn_hf_packed *)s;
    const uint64_t rows = p->n_out / 4;
    uint8_t raw[CHUNK];
    hone_status st;
    for (uint64_t k; n; n -= k, first += k) {
        const uint64_t o = first / p->n_in, col = first % p->n_in;
        k = p->n_in - col < n ? p->n_in - col : n;
        k = k < CHUNK ? k : CHUNK;
        TRY(read_at(f, at(f, p->codes), o % rows * p->n_in + col, raw, k, err));
        for (uint64_t i = 0; i < k; i++) {
            const float v = (float)(raw[i] >> 2 * (o / rows) & 3) - 1;
            *x++ = p->divides ? v / p->scales[0] : v * p->scales[0];
        }
    }
    return HONE_OK;
}

/* Numbers of a float source. */
static hone_status read_floats(const hn_hf *f, const hn_ckpt_tensor *t, uint64_t first, uint64_t n, float *x,
                               hone_error *err)
{
    const hn_type_info *ti = hn_type_get(t->type);
    uint8_t raw[CHUNK];
    hone_status st;
    for (uint64_t k; n; n -= k, first += k, x += k) {
        k = n < CHUNK / ti->block_bytes ? n : CHUNK / ti->block_bytes;
        TRY(read_at(f, t, first * ti->block_bytes, raw, k * ti->block_bytes, err));
        ti->dequantize(x, raw, (int64_t)k);
    }
    return HONE_OK;
}

/* scales[0]: one over the mean of all magnitudes. */
static hone_status open_master(const hn_hf *f, hn_hf_stored *s, hone_error *err)
{
    hn_hf_packed *p = (hn_hf_packed *)s;
    const hn_ckpt_tensor *t = at(f, p->codes);
    const uint64_t all = count(t);
    float x[CHUNK / 4];
    double sum = 0;
    hone_status st;
    if (p->scales) return HONE_OK;
    for (uint64_t i = 0, k; i < all; i += k) {
        k = all - i < CHUNK / 4 ? all - i : CHUNK / 4;
        TRY(read_floats(f, t, i, k, x, err));
        for (uint64_t j = 0; j < k; j++) sum += (double)fabsf(x[j]);
    }
    const float mean = (float)(sum / (double)all);
    if (!isfinite(mean))
        return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s: its numbers are not all finite", f->c->part[t->part].path,
                       HN_ESC(t->name.ptr, t->name.len));
    if (!(p->scales = malloc(sizeof *p->scales))) return HN_FAIL(err, HONE_E_NOMEM, "a scale");
    p->scales[0] = 1.0f / (mean > 1e-5f ? mean : 1e-5f);
    return HONE_OK;
}

/* As wide as they are stored, as transformers runs them. */
static hone_status read_master(const hn_hf *f, const hn_hf_stored *s, uint64_t first, uint64_t n, float *x,
                               hone_error *err)
{
    const hn_hf_packed *p = (const hn_hf_packed *)s;
    const hn_ckpt_tensor *t = at(f, p->codes);
    hone_status st;
    TRY(read_floats(f, t, first, n, x, err));
    for (uint64_t i = 0; i < n; i++) {
        float v = rintf(x[i] * p->scales[0]);
        v = (v > 1 ? 1 : v < -1 ? -1 : v) / p->scales[0];
        x[i] = t->type == HN_BF16  ? hn_bf16_to_f32(hn_f32_to_bf16(v))
               : t->type == HN_F16 ? hn_f16_to_f32(hn_f32_to_f16(v))
                                   : v;
    }
    return HONE_OK;
}

void hn_hf_packed_reader(hn_hf_packed *p, hn_type as)
{
    hn_hf_stored *s = &p->s;
    *s = (hn_hf_stored){ .as = as, .open = open_packed, .close = close_packed };
    switch (p->how) {
    case HN_PACKED_F8_E4M3:
    case HN_PACKED_F8_E5M2:
    case HN_PACKED_I8: s->read = read_bytes; break;
    case HN_PACKED_WORDS: s->read = read_words; break;
    case HN_PACKED_GPTQ: s->read = read_gptq; break;
    case HN_PACKED_AWQ: s->read = read_awq; break;
    case HN_PACKED_TERNARY: s->read = read_ternary; break;
    case HN_PACKED_MASTER:
        s->read = read_master;
        s->open = open_master;
        break;
    case HN_PACKED_MXFP4: *s = (hn_hf_stored){ .read = read_mxfp4, .blocks = blocks_mxfp4, .as = as }; break;
    case HN_PACKED_NVFP4:
        *s = (hn_hf_stored){
            .read = read_nvfp4, .blocks = blocks_nvfp4, .as = as, .beside = { p->beside[0], p->beside[1] }
        };
        break;
    }
}
