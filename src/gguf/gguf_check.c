/* The optional pass over tensor contents. Codes and grid indices are in range by
 * construction, so only numbers can be wrong: not finite, or a scale that is invalid. */
#include "gguf/gguf.h"

#include <inttypes.h>

enum { CHUNK = 4096 }; /* elements; a multiple of every block size */

static hone_status check_chunk(const hn_gguf *g, const hn_gguf_tensor *t, const hn_type_info *ti, uint64_t first,
                               uint64_t n, float *y, hone_error *err)
{
    const unsigned char *src = (const unsigned char *)t->data + first / ti->block_elems * ti->block_bytes;
    const char *path = HN_ESC(hn_gguf_path(g), strlen(hn_gguf_path(g))), *name = HN_ESC(t->name.ptr, t->name.len);
    if (t->type == HN_MXFP4) /* 255 means NaN, but decodes to numbers */
        for (uint64_t b = 0; b < n / 32; b++)
            if (src[17 * b] == 255)
                return HN_FAIL(err, HONE_E_NUMERIC,
                               "%s: tensor '%s': exponent byte of block %" PRIu64 " is 255, expected at most 254", path,
                               name, first / 32 + b);
    /* (decoding an F64 may overflow where the file is sound) */
    const bool as_it_is = t->type == HN_F32 || t->type == HN_F16 || t->type == HN_BF16 || t->type == HN_F64;
    if (!as_it_is) ti->dequantize(y, src, (int64_t)n);
    const uint64_t i = as_it_is ? hn_first_odd(src, t->type, n) : hn_first_odd(y, HN_F32, n);
    if (i == n) return HONE_OK;
    if (as_it_is) ti->dequantize(y + i, src + i * ti->block_bytes, 1);
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: tensor '%s' (%s): element %" PRIu64 " is %g, expected a finite number",
                   path, name, ti->name, first + i, (double)y[i]);
}

hone_status hn_gguf_check_data(const hn_gguf *g, hone_error *err)
{
    float y[CHUNK];
    for (uint64_t it = 0; it < hn_gguf_n_tensors(g); it++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(g, it);
        const hn_type_info *ti = hn_type_get((uint32_t)t->type);
        uint64_t n = t->n_bytes / ti->block_bytes * ti->block_elems;
        for (uint64_t first = 0; first < n; first += CHUNK) {
            hone_status st = check_chunk(g, t, ti, first, n - first < CHUNK ? n - first : CHUNK, y, err);
            if (st != HONE_OK) return st;
        }
    }
    return HONE_OK;
}
