/* types: the table of GGUF tensor types, and why other ids are refused. The only place
 * that maps an id to its block, decoder and encoder. Ids and sizes:
 * ggml-org/ggml:include/ggml.h and src/ggml.c; fork ids: ikawrakow/ik_llama.cpp:ggml/include/ggml.h. */
#include "quant/codecs.h"

#include <strings.h>

/* Types with a C layout in quant.h take their size from it. */
static const hn_type_info table[HN_TYPE_COUNT] = {
    [HN_F32] = { "F32", 1, 4, true, hn_deq_f32, hn_q_f32 },
    [HN_F16] = { "F16", 1, 2, true, hn_deq_f16, hn_q_f16 },
    [HN_Q4_0] = { "Q4_0", 32, sizeof(hn_q4_0), true, hn_deq_q4_0, hn_q_q4_0 },
    [HN_Q4_1] = { "Q4_1", 32, 20, true, hn_deq_q4_1, hn_q_q4_1 },
    [HN_Q5_0] = { "Q5_0", 32, sizeof(hn_q5_0), true, hn_deq_q5_0, hn_q_q5_0 },
    [HN_Q5_1] = { "Q5_1", 32, 24, true, hn_deq_q5_1, hn_q_q5_1 },
    [HN_Q8_0] = { "Q8_0", 32, sizeof(hn_q8_0), true, hn_deq_q8_0, hn_q_q8_0 },
    [HN_Q8_1] = { "Q8_1", 32, 36, false, hn_deq_q8_1, NULL },
    [HN_Q2_K] = { "Q2_K", 256, 84, true, hn_deq_q2_K, hn_q_q2_K },
    [HN_Q3_K] = { "Q3_K", 256, 110, true, hn_deq_q3_K, hn_q_q3_K },
    [HN_Q4_K] = { "Q4_K", 256, sizeof(hn_q4_K), true, hn_deq_q4_K, hn_q_q4_K },
    [HN_Q5_K] = { "Q5_K", 256, sizeof(hn_q5_K), true, hn_deq_q5_K, hn_q_q5_K },
    [HN_Q6_K] = { "Q6_K", 256, sizeof(hn_q6_K), true, hn_deq_q6_K, hn_q_q6_K },
    [HN_Q8_K] = { "Q8_K", 256, 292, false, hn_deq_q8_K, NULL },
    [HN_IQ2_XXS] = { "IQ2_XXS", 256, 66, true, hn_deq_iq2_xxs, NULL },
    [HN_IQ2_XS] = { "IQ2_XS", 256, 74, true, hn_deq_iq2_xs, NULL },
    [HN_IQ3_XXS] = { "IQ3_XXS", 256, 98, true, hn_deq_iq3_xxs, NULL },
    [HN_IQ1_S] = { "IQ1_S", 256, 50, true, hn_deq_iq1_s, NULL },
    [HN_IQ4_NL] = { "IQ4_NL", 32, 18, true, hn_deq_iq4_nl, hn_q_iq4_nl },
    [HN_IQ3_S] = { "IQ3_S", 256, 110, true, hn_deq_iq3_s, NULL },
    [HN_IQ2_S] = { "IQ2_S", 256, 82, true, hn_deq_iq2_s, NULL },
    [HN_IQ4_XS] = { "IQ4_XS", 256, 136, true, hn_deq_iq4_xs, hn_q_iq4_xs },
    [HN_I8] = { "I8", 1, 1, false, hn_deq_i8, NULL },
    [HN_I16] = { "I16", 1, 2, false, hn_deq_i16, NULL },
    [HN_I32] = { "I32", 1, 4, false, hn_deq_i32, NULL },
    [HN_I64] = { "I64", 1, 8, false, hn_deq_i64, NULL },
    [HN_F64] = { "F64", 1, 8, true, hn_deq_f64, NULL },
    [HN_IQ1_M] = { "IQ1_M", 256, 56, true, hn_deq_iq1_m, NULL },
    [HN_BF16] = { "BF16", 1, 2, true, hn_deq_bf16, hn_q_bf16 },
    [HN_TQ1_0] = { "TQ1_0", 256, 54, true, hn_deq_tq1_0, hn_q_tq1_0 },
    [HN_TQ2_0] = { "TQ2_0", 256, 66, true, hn_deq_tq2_0, hn_q_tq2_0 },
    [HN_MXFP4] = { "MXFP4", 32, 17, true, hn_deq_mxfp4, hn_q_mxfp4 },
    [HN_NVFP4] = { "NVFP4", 64, 36, true, hn_deq_nvfp4, hn_q_nvfp4 },
    [HN_Q1_0] = { "Q1_0", 128, 18, true, hn_deq_q1_0, hn_q_q1_0 },
    [HN_Q2_0] = { "Q2_0", 64, 18, true, hn_deq_q2_0, hn_q_q2_0 },
};

const hn_type_info *hn_type_get(uint32_t id) { return id < HN_TYPE_COUNT && table[id].name ? &table[id] : NULL; }

int32_t hn_type_by_name(const char *name)
{
    for (int32_t id = 0; name && id < HN_TYPE_COUNT; id++)
        if (table[id].name && !strcasecmp(table[id].name, name)) return id;
    return -1;
}

#define IK "ik_llama.cpp type "
static const struct {
    uint32_t id;
    const char *why;
} refused[] = {
    { 4, "removed type Q4_2" },
    { 5, "removed type Q4_3" },
    { 31, "removed type Q4_0_4_4" },
    { 32, "removed type Q4_0_4_8" },
    { 33, "removed type Q4_0_8_8" },
    { 36, "removed type IQ4_NL_4_4, or I2_S of BitNet forks" },
    { 37, "removed type IQ4_NL_4_8" },
    { 38, "removed type IQ4_NL_8_8" },
    { 97, IK "Q8_0_X4" },
    { 98, IK "Q8_1_X4" },
    { 99, IK "Q8_2_X4" },
    { 133, IK "Q6_0" },
    { 134, IK "IQ1_BN" },
    { 135, IK "IQ2_BN" },
    { 136, IK "Q8_K64" },
    { 137, IK "IQ2_K" },
    { 138, IK "IQ3_K" },
    { 139, IK "IQ4_K" },
    { 140, IK "IQ5_K" },
    { 141, IK "IQ6_K" },
    { 144, IK "IQ4_KS" },
    { 145, IK "IQ2_KS" },
    { 146, IK "IQ4_KSS" },
    { 147, IK "Q8_K16" },
    { 148, IK "Q8_K32" },
    { 149, IK "Q8_KR8" },
    { 150, IK "Q8_K128" },
    { 151, IK "Q8_KV" },
    { 152, IK "IQ5_KS" },
    { 153, IK "IQ2_KT" },
    { 154, IK "IQ3_KT" },
    { 155, IK "IQ4_KT" },
    { 156, IK "IQ3_KS" },
    { 157, IK "IQ2_KL" },
    { 158, IK "IQ1_KT" },
    { 202, IK "Q4_0_R8" },
    { 206, IK "Q5_0_R4" },
    { 208, IK "Q8_0_R8" },
    { 210, IK "Q2_K_R4" },
    { 211, IK "Q3_K_R4" },
    { 212, IK "Q4_K_R4" },
    { 213, IK "Q5_K_R4" },
    { 214, IK "Q6_K_R4" },
    { 216, IK "IQ2_XXS_R4" },
    { 217, IK "IQ2_XS_R4" },
    { 218, IK "IQ3_XXS_R4" },
    { 219, IK "IQ1_S_R4" },
    { 220, IK "IQ4_NL_R4" },
    { 221, IK "IQ3_S_R4" },
    { 222, IK "IQ2_S_R4" },
    { 223, IK "IQ4_XS_R8" },
    { 229, IK "IQ1_M_R4" },
    { 230, IK "BF16_R16" },
    { 233, IK "Q6_0_R4" },
    { 335, IK "IQ2_BN_R4" },
    { 337, IK "IQ2_K_R4" },
    { 338, IK "IQ3_K_R4" },
    { 339, IK "IQ4_K_R4" },
    { 340, IK "IQ5_K_R4" },
    { 344, IK "IQ4_KS_R4" },
    { 352, IK "IQ5_KS_R4" },
    { 398, IK "Q8_KV_R8" },
    { 399, IK "Q8_K_R8" },
};

const char *hn_type_why_not(uint32_t id)
{
    const hn_type_info *ti = hn_type_get(id);
    if (ti && ti->weight) return "a supported weight type";
    if (ti)
        return id == HN_Q8_1 || id == HN_Q8_K ? "an activation format, never a weight"
                                              : "an integer type, not a weight";
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].id == id) return refused[i].why;
    if (id >= 90 && id <= 99) return "a type of a fork (ids 90 to 99)";
    if (id >= 133 && id <= 158) return "a type of ik_llama.cpp (ids 133 to 158)";
    if (id >= 202 && id <= 399) return "a row-interleaved type of ik_llama.cpp (ids 202 to 399)";
    return "unknown type, newer than this hone or corrupt";
}

bool hn_tensor_nbytes(const hn_type_info *ti, const uint64_t *ne, int n_dim, uint64_t *out)
{
    if (!ti || n_dim < 0 || n_dim > 4) return false;
    uint64_t first = n_dim > 0 ? ne[0] : 1, n_elem = first, n_bytes;
    if (first % ti->block_elems) return false;
    for (int i = 0; i < n_dim; i++)
        if (ne[i] == 0) {
            *out = 0;
            return true;
        }
    if (!hn_mul_u64(first / ti->block_elems, ti->block_bytes, &n_bytes)) return false;
    for (int i = 1; i < n_dim; i++)
        if (!hn_mul_u64(n_elem, ne[i], &n_elem) || !hn_mul_u64(n_bytes, ne[i], &n_bytes)) return false;
    if (n_elem > INT64_MAX || n_bytes > INT64_MAX) return false; /* sizes are signed elsewhere */
    *out = n_bytes;
    return true;
}
