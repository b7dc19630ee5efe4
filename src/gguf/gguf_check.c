/* The optional pass over tensor contents. Codes and grid indices are in range by
 * construction, so only numbers can be wrong: not finite, or a scale that is invalid. */
#include "gguf/gguf.h"

#include <inttypes.h>
#include <math.h>

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
    ti->dequantize(y, src, (int64_t)n);
    for (uint64_t i = 0; i < n; i++) {
        if (isfinite(y[i])) continue;
        if (t->type == HN_F64) { /* decoding may overflow where the file is sound */
            double d;
            memcpy(&d, src + 8 * i, 8);
            if (isfinite(d)) continue;
        }
        return HN_FAIL(err, HONE_E_NUMERIC, "%s: tensor '%s' (%s): element %" PRIu64 " is %g, expected a finite number",
                       path, name, ti->name, first + i, (double)y[i]);
    }
    return HONE_OK;
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
