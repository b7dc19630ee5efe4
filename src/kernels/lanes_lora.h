/* What an adapter adds to a product, over sixteen lanes, included by lanes.h on each level.
 * Lanes are outputs, so nothing is summed across them; 64 outputs stay in registers. */

static void low_rank(float *y, const float *b, int64_t ldb, const float *h, int64_t rank, int64_t n)
{
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        v16 s[4];
        for (int q = 0; q < 4; q++) s[q] = v16_load(y + i + 16 * q);
        for (int64_t j = 0; j < rank; j++) {
            v16 hv = v16_set1(h[j]);
            for (int q = 0; q < 4; q++) s[q] = v16_fma(v16_load(b + j * ldb + i + 16 * q), hv, s[q]);
        }
        for (int q = 0; q < 4; q++) v16_store(y + i + 16 * q, s[q]);
    }
    for (; i + 16 <= n; i += 16) {
        v16 s = v16_load(y + i);
        for (int64_t j = 0; j < rank; j++) s = v16_fma(v16_load(b + j * ldb + i), v16_set1(h[j]), s);
        v16_store(y + i, s);
    }
    for (; i < n; i++)
        for (int64_t j = 0; j < rank; j++) y[i] = fmaf(b[j * ldb + i], h[j], y[i]);
}
