/* hf_stored: folders whose matrices are stored otherwise. One layer of a small model, in which one matrix is packed;
 * its numbers are written down here, by the published layouts, not computed by hone. What is wrong or unknown is
 * refused by name, and nothing is left behind. */
#include "stored_files.h"

#include <math.h>

/* ---- eight bits ------------------------------------------------------------------------------------------------- */

static const uint8_t e4m3[] = { 0x00, 0x01, 0x07, 0x08, 0x38, 0x3C, 0x7E, 0xB8, 0xFE, 0x81 };
static const float e4m3_is[] = { 0, 0x1p-9F, 0x7p-9F, 0x1p-6F, 1, 1.5F, 448, -1, -448, -0x1p-9F };
static const uint8_t e5m2[] = { 0x00, 0x01, 0x04, 0x3C, 0x3E, 0x7B, 0xC0, 0x84 };
static const float e5m2_is[] = { 0, 0x1p-16F, 0x1p-14F, 1, 1.5F, 57344, -2, -0x1p-14F };

/* A block's rows 16 to 31 have another scale. */
static void fp8_blocks(void **state)
{
    uint8_t q[E * E];
    const float scale[2] = { 2, 0.5F };
    memset(q, 0x38, sizeof q);
    memcpy(q, e4m3, sizeof e4m3);
    memcpy(q + 20 * E, e4m3, sizeof e4m3);
    begin("\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [16, 32]}");
    add_rest(E);
    add(DOWN "weight", "F8_E4M3", "32, 32", q, sizeof q);
    add(DOWN "weight_scale_inv", "F32", "2, 1", scale, sizeof scale);
    hn_gguf *g = converted("fp8", "F32");
    equal(down(g), e4m3_is, 10, 2);
    equal(down(g) + 20 * E, e4m3_is, 10, 0.5F);
    assert_true(down(g)[15 * E + 31] == 2 && down(g)[16 * E] == 0.5F);
    hn_gguf_close(g);
}

#define FLOAT_BLOCKS(block) \
    GROUPS("float-quantized", "\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"block\"" block)

/* The same, as compressed-tensors says it: two scales of rows, and two of columns, one block of 20. */
static void fp8_group_blocks(void **state)
{
    static const char *const says[] = { FLOAT_BLOCKS(", \"block_structure\": [16, 20]"),
                                        FLOAT_BLOCKS(", \"block_structure\": \"16x20\"") };
    uint8_t q[E * E];
    const float scale[4] = { 2, 4, 0.5F, 8 };
    memset(q, 0x38, sizeof q);
    for (int i = 0; i < 2; i++) {
        begin(says[i]);
        add_rest(E);
        add(DOWN "weight", "F8_E4M3", "32, 32", q, sizeof q);
        add(DOWN "weight_scale", "F32", "2, 2", scale, sizeof scale);
        hn_gguf *g = converted(i ? "fp8w" : "fp8g", "F32");
        assert_true(down(g)[15 * E + 19] == 2 && down(g)[15 * E + 20] == 4);
        assert_true(down(g)[16 * E + 19] == 0.5F && down(g)[16 * E + 20] == 8);
        hn_gguf_close(g);
    }
}

/* A scale for each row, of which those of activations are no part. */
static void fp8_rows(void **state)
{
    uint8_t q[E * E];
    uint16_t scale[E];
    const float one = 1;
    memset(q, 0x3C, sizeof q);
    for (int i = 0; i < E; i++) scale[i] = (uint16_t)(i == 3 ? 0x4000 : 0x3F80); /* BF16: 2, 1 */
    memcpy(q + 3 * E, e5m2, sizeof e5m2);
    begin("\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\"}");
    add_rest(E);
    add(DOWN "weight", "F8_E5M2", "32, 32", q, sizeof q);
    add(DOWN "weight_scale", "BF16", "32, 1", scale, sizeof scale);
    add(DOWN "input_scale", "F32", "1", &one, 4);
    hn_gguf *g = converted("rows", "F32");
    equal(down(g) + 3 * E, e5m2_is, 8, 2);
    assert_true(down(g)[2 * E] == 1 && down(g)[4 * E] == 1);
    hn_gguf_close(g);
}

/* compressed-tensors' bytes with a zero beside each scale: of a row, or of all. */
static void int8_zeros(void **state)
{
    static const char says[] = GROUPS("int-quantized", "\"num_bits\": 8, \"type\": \"int\", \"symmetric\": false");
    int8_t q[E][E], zero[E];
    uint16_t scale[E];
    const float act = 1;
    const int8_t act_zero = 3;
    for (int o = 0; o < E; o++) {
        for (int i = 0; i < E; i++) q[o][i] = (int8_t)(8 * i - 128);
        zero[o] = (int8_t)(o == 7 ? -128 : 4 * o - 20);
        scale[o] = (uint16_t)(o == 1 ? 0x3F00 : 0x3F80); /* BF16: 0.5, 1 */
    }
    for (int one = 0; one < 2; one++) {
        begin(says);
        add_rest(E);
        add(DOWN "weight", "I8", "32, 32", q, sizeof q);
        add(DOWN "weight_scale", "BF16", one ? "1" : "32, 1", scale, one ? 2 : sizeof scale);
        add(DOWN "weight_zero_point", "I8", one ? "1" : "32, 1", zero, one ? 1 : sizeof zero);
        add(DOWN "input_scale", "F32", "1", &act, 4);
        add(DOWN "input_zero_point", "I8", "1", &act_zero, 1);
        hn_gguf *g = converted(one ? "zero" : "zeros", "F32");
        for (int o = 0; o < E; o++)
            for (int i = 0; i < E; i++) {
                int z = one ? -20 : o == 7 ? -128 : 4 * o - 20;
                float want = (float)(8 * i - 128 - z) * (o == 1 && !one ? 0.5F : 1);
                if (down(g)[o * E + i] != want)
                    fail_msg("row %d, column %d is %g, expected %g", o, i, (double)down(g)[o * E + i], (double)want);
            }
        hn_gguf_close(g);
    }
    static const char *const off[][2] = { { "I8", "32" }, { "U8", "32, 1" }, { "I8", "16, 2" } };
    for (int i = 0; i < 3; i++) {
        char name[16];
        begin(says);
        add_rest(E);
        add(DOWN "weight", "I8", "32, 32", q, sizeof q);
        add(DOWN "weight_scale", "BF16", "32, 1", scale, sizeof scale);
        add(DOWN "weight_zero_point", off[i][0], off[i][1], zero, sizeof zero);
        snprintf(name, sizeof name, "zeros-off%d", i);
        refused(name, HONE_E_UNSUPPORTED, "weight_zero_point is|I8, a zero for each scale");
    }
}

/* ---- rotations ------------------------------------------------------------------------------------------------- */

#define TURNED(first, second)                                                                                       \
    "\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"int-quantized\", "           \
    "\"transform_config\": {\"config_groups\": {\"R1\": {\"type\": \"hadamard\", \"apply\": [{\"targets\": "        \
    "[\"Linear\"], \"location\": \"weight_output\"}]}, \"R4\": {\"type\": \"hadamard\", \"apply\": [{\"targets\": " \
    "[\"Linear\"], \"location\": \"" first "\"}, {\"targets\": [\"Linear\"], \"location\": \"" second               \
    "\", \"inverse\": true}]}}}}"

/* compressed-tensors rotates: in the weights alone nothing is left to do; what is done while a model runs is not. */
static void turned(void **state)
{
    static const char *const says[][3] = {
        { "turn0", TURNED("weight_output", "weight_input"), NULL },
        { "turn1", TURNED("input", "weight_input"), "R4.apply[0].location = \"input\"|weight_input or weight_output" },
        { "turn2", TURNED("weight_output", "output"), "R4.apply[1].location = \"output\"|activations" },
        { "turn3", TURNED("q_attn", "k_cache"), "R4.apply[0].location = \"q_attn\"" },
        { "turn4", TURNED("weight_input", "k_cache"), "R4.apply[1].location = \"k_cache\"" },
        { "turn5", TURNED("weight_input", "elsewhere"), "R4.apply[1].location = \"elsewhere\"" },
    };
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        begin(says[i][1]);
        add_rest(E);
        add_f32(DOWN "weight", "32, 32", E * E, 0.25F);
        if (says[i][2]) refused(says[i][0], HONE_E_UNSUPPORTED, says[i][2]);
        else hn_gguf_close(converted(says[i][0], "F32"));
    }
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* compressed-tensors: offsets of 8; two groups of 16 columns. */
static void packed_words(void **state)
{
    uint32_t q[E][4];
    uint16_t scale[E][2];
    const int64_t shape[2] = { E, E };
    static const float want[16] = { -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7 };
    for (int o = 0; o < E; o++) {
        q[o][0] = q[o][2] = 0x76543210;
        q[o][1] = q[o][3] = 0xFEDCBA98;
        scale[o][0] = 0x3F80;                               /* 1 */
        scale[o][1] = (uint16_t)(o == 5 ? 0x4080 : 0x3F00); /* 4; 0.5 */
    }
    begin("\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\"}");
    add_rest(E);
    add(DOWN "weight_packed", "I32", "32, 4", q, sizeof q);
    add(DOWN "weight_scale", "BF16", "32, 2", scale, sizeof scale);
    add(DOWN "weight_shape", "I64", "2", shape, sizeof shape);
    hn_gguf *g = converted("words", "F32");
    equal(down(g), want, 16, 1);
    equal(down(g) + 16, want, 16, 0.5F);
    equal(down(g) + 5 * E + 16, want, 16, 4);
    hn_gguf_close(g);
    /* what the config says of them must be what they are */
    static const char *const says[][2] = {
        { GROUPS("pack-quantized", "\"num_bits\": 8, \"type\": \"int\""), "weight_packed|num_bits of config_groups" },
        { GROUPS("pack-quantized", "\"num_bits\": 3, \"type\": \"int\""), "num_bits of config_groups|\"3\"|2, 4 or 8" },
        { GROUPS("pack-quantized", "\"num_bits\": 4, \"type\": \"float\""), "num_bits|\"4\"|8 of type float" },
        { GROUPS("pack-quantized", "\"num_bits\": 4, \"type\": \"posit\""), "type of config_groups|posit" },
        { FLOAT_BLOCKS(""), "block_structure" },
        { GROUPS("pack-quantized", "\"num_bits\": 4, \"type\": \"int\""), NULL },
    };
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        begin(says[i][0]);
        add_rest(E);
        add(DOWN "weight_packed", "I32", "32, 4", q, sizeof q);
        add(DOWN "weight_scale", "BF16", "32, 2", scale, sizeof scale);
        add(DOWN "weight_shape", "I64", "2", shape, sizeof shape);
        char name[16];
        snprintf(name, sizeof name, "group%zu", i);
        if (says[i][1]) refused(name, HONE_E_UNSUPPORTED, says[i][1]);
        else hn_gguf_close(converted(name, "F32"));
    }
}

static void gptq(void **state)
{
    static const char *const configs[] = {
        GPTQ(", \"desc_act\": true"),
        AUTO_ROUND("auto-round", "16", ", \"packing_format\": \"auto_round:auto_gptq\", \"data_type\": \"int\""),
        AUTO_ROUND("intel/auto-round", "16", ", \"packing_format\": \"auto_round:gptq\"")
    };
    for (int k = 0; k < 3; k++) {
        char name[16];
        snprintf(name, sizeof name, "gptq%d", k);
        begin(configs[k]);
        add_rest(E);
        add_gptq(1);
        hn_gguf *g = converted(name, "F32");
        for (int o = 0; o < E; o++)
            for (int i = 0; i < E; i++) { /* even columns: group 0, zero 8, scale 1 */
                float code = (float)(i % 16), scale = o == 9 ? 4 : 0.5F, zero = o % 8 ? 3 : 0;
                float want = i % 2 ? (code - zero) * scale : code - 8;
                if (down(g)[o * E + i] != want)
                    fail_msg("row %d, column %d is %g, expected %g", o, i, (double)down(g)[o * E + i], (double)want);
            }
        hn_gguf_close(g);
    }
}

/* Another width and another group than the config says, as GPTQModel's `dynamic` and AutoRound's `extra_config` give a
 * module: codes i modulo 8 (2 bits: 4) down each column, group g has the scale 2^-g. The other matrices are plain. */
static void add_width(int bits, int n_group, size_t n_zero)
{
    static const uint32_t three[] = { 0x88FAC688, 0xC688FAC6, 0xFAC688FA }, /* octal 76543210, over and over */
        z3[] = { 0xDB6DB6DB, 0xB6DB6DB6, 0x6DB6DB6D };                      /* octal 33333333 */
    uint32_t q[8][E], z[8][8];
    uint16_t scale[8][E];
    char shape[16];
    for (int w = 0; w < bits; w++)
        for (int o = 0; o < E; o++)
            q[w][o] = bits == 2 ? 0xE4E4E4E4 : bits == 3 ? three[w] : w % 2 ? 0x07060504 : 0x03020100;
    for (int g = 0; g < n_group; g++) {
        for (int w = 0; w < bits; w++) (&z[0][0])[g * bits + w] = bits == 2 ? 0 : bits == 3 ? z3[w] : 0x7F7F7F7F;
        for (int o = 0; o < E; o++) scale[g][o] = (uint16_t)(0x3C00 - 0x400 * g);
    }
    snprintf(shape, sizeof shape, "%d, 32", bits);
    add(DOWN "qweight", "I32", shape, q, 4 * E * (size_t)bits);
    snprintf(shape, sizeof shape, "%d, %zu", n_group, n_zero);
    add(DOWN "qzeros", "I32", shape, z, 4 * (size_t)n_group * n_zero);
    snprintf(shape, sizeof shape, "%d, 32", n_group);
    add(DOWN "scales", "F16", shape, scale, 2 * E * (size_t)n_group);
}

static void gptq_mixed(void **state)
{
    static const char *const configs[] = {
        GPTQ(", \"dynamic\": {\"+:.*down_proj\": {\"bits\": 8}, \"-:.*self_attn.*\": {}}"),
        AUTO_ROUND("auto-round", "16",
                   ", \"packing_format\": \"auto_round:auto_gptq\", \"extra_config\": "
                   "{\"model.layers.0.mlp.down_proj\": {\"bits\": 8, \"group_size\": 8}}")
    };
    static const int widths[][3] = { { 2, 8, 1 }, { 3, 2, 4 }, { 8, 4, 128 }, { 8, 1, 128 } }; /* bits, groups, zero */
    for (int k = 0; k < 8; k++) {
        const int *w = widths[k / 2], group = E / w[1];
        char name[16];
        snprintf(name, sizeof name, "mixed%d", k);
        begin(configs[k % 2]);
        add_rest(E);
        add_width(w[0], w[1], (size_t)w[0]);
        hn_gguf *g = converted(name, "F32");
        for (int e = 0; e < E * E; e++) {
            int i = e % E, code = i % (w[0] == 2 ? 4 : 8);
            float want = ldexpf((float)(code - w[2]), -(i / group));
            if (down(g)[e] != want)
                fail_msg("%s: row %d, column %d is %g, expected %g", name, e / E, i, (double)down(g)[e], (double)want);
        }
        hn_gguf_close(g);
    }
    begin(configs[0]);
    add_rest(E);
    add_width(8, 1, 5);
    refused("width", HONE_E_UNSUPPORTED, "qzeros is I32 of shape [1, 5]|2, 3, 4 or 8 bits for each of the 32 rows");
    begin(configs[0]);
    add_rest(E);
    add_width(8, 3, 8);
    refused("no-group", HONE_E_UNSUPPORTED,
            "scales is F16 of shape [3, 32]|a scale for each of 32 rows|divide the 32 columns");
}

static void awq(void **state)
{
    uint32_t q[E][4], z[1][4] = { { 0x11111111, 0, 0, 0 } };
    uint16_t scale[E];
    static const float want[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    for (int i = 0; i < E; i++) {
        for (int w = 0; w < 4; w++) q[i][w] = 0x76543210;
        scale[i] = 0x3800; /* 0.5 */
    }
    static const char *const configs[] = {
        "\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 32, \"version\": \"gemm\"}",
        AUTO_ROUND("auto-round", "32", ", \"packing_format\": \"auto_round:auto_awq\"")
    };
    for (int k = 0; k < 2; k++) {
        begin(configs[k]);
        add_rest(E);
        add(DOWN "qweight", "I32", "32, 4", q, sizeof q);
        add(DOWN "qzeros", "I32", "1, 4", z, sizeof z);
        add(DOWN "scales", "F16", "1, 32", scale, sizeof scale);
        hn_gguf *g = converted(k ? "awq1" : "awq", "F32");
        for (int o = 0; o < E; o++)
            for (int i = 0; i < E; i++) assert_true(down(g)[o * E + i] == 0.5F * (want[o % 8] - (o < 8 ? 1 : 0)));
        hn_gguf_close(g);
    }
}

/* ---- MXFP4: experts of gpt-oss ----- */

enum { N_EXPERT = 2 };

static const float levels[16] = { 0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6 };

static void add_gpt_oss(uint8_t scale)
{
    static const char *const q[] = { "q", "k", "v" };
    static uint8_t up[N_EXPERT][2 * E][16], down_b[N_EXPERT][E][16], up_s[N_EXPERT][2 * E], down_s[N_EXPERT][E];
    char name[96];
    add_f32("model.embed_tokens.weight", "8, 32", 8 * E, 0.5F);
    add_f32("lm_head.weight", "8, 32", 8 * E, 0.5F);
    add_f32("model.norm.weight", "32", E, 1);
    add_f32("model.layers.0.input_layernorm.weight", "32", E, 1);
    add_f32("model.layers.0.post_attention_layernorm.weight", "32", E, 1);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "model.layers.0.self_attn.%s_proj.weight", q[i]);
        add_f32(name, "32, 32", E * E, 0.25F);
        snprintf(name, sizeof name, "model.layers.0.self_attn.%s_proj.bias", q[i]);
        add_f32(name, "32", E, 0);
    }
    add_f32("model.layers.0.self_attn.o_proj.weight", "32, 32", E * E, 0.25F);
    add_f32("model.layers.0.self_attn.o_proj.bias", "32", E, 0);
    add_f32("model.layers.0.self_attn.sinks", "4", 4, 0);
    add_f32("model.layers.0.mlp.router.weight", "2, 32", 2 * E, 0.25F);
    add_f32("model.layers.0.mlp.router.bias", "2", 2, 0);
    for (int k = 0; k < N_EXPERT; k++)
        for (int r = 0; r < 2 * E; r++)
            for (int j = 0; j < 16; j++) { /* element e of a row is (e + r + k) mod 16 */
                up[k][r][j] = (uint8_t)((2 * j + r + k) % 16 | (2 * j + 1 + r + k) % 16 << 4);
                up_s[k][r] = (uint8_t)(r == 7 ? scale : 120 + r % 8);
                if (r < E) down_b[k][r][j] = up[k][r][j], down_s[k][r] = up_s[k][0];
            }
    add("model.layers.0.mlp.experts.gate_up_proj_blocks", "U8", "2, 64, 1, 16", up, sizeof up);
    add("model.layers.0.mlp.experts.gate_up_proj_scales", "U8", "2, 64, 1", up_s, sizeof up_s);
    add("model.layers.0.mlp.experts.down_proj_blocks", "U8", "2, 32, 1, 16", down_b, sizeof down_b);
    add("model.layers.0.mlp.experts.down_proj_scales", "U8", "2, 32, 1", down_s, sizeof down_s);
    add_f32("model.layers.0.mlp.experts.gate_up_proj_bias", "2, 64", 4 * E, 0);
    add_f32("model.layers.0.mlp.experts.down_proj_bias", "2, 32", 2 * E, 0);
}

static void begin_gpt_oss(void)
{
    begin("");
    snprintf(config, sizeof config,
             "{\"architectures\": [\"GptOssForCausalLM\"], \"model_type\": \"gpt_oss\", \"hidden_size\": 32, "
             "\"intermediate_size\": 32, \"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"head_dim\": 8, "
             "\"num_key_value_heads\": 4, \"vocab_size\": 8, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5, "
             "\"tie_word_embeddings\": false, \"num_local_experts\": 2, \"num_experts_per_tok\": 1, "
             "\"sliding_window\": 16, \"quantization_config\": "
             "{\"quant_method\": \"mxfp4\"}}");
}

/* Gate and up stand in turns; no bit of a block changes but for its place. */
static void mxfp4(void **state)
{
    static const char *const names[] = { "blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight" };
    begin_gpt_oss();
    add_gpt_oss(127);
    hn_gguf *g = converted("mxfp4", NULL);
    for (int half = 0; half < 2; half++) {
        const hn_gguf_tensor *t = hn_gguf_find_tensor(g, names[half]);
        assert_non_null(t);
        assert_int_equal(t->type, HN_MXFP4);
        const uint8_t *p = t->data;
        for (int k = 0; k < N_EXPERT; k++)
            for (int r = 0; r < E; r++, p += 17) {
                int row = 2 * r + half;
                assert_int_equal(p[0], row == 7 ? 127 : 120 + row % 8);
                for (int j = 0; j < 16; j++)
                    assert_int_equal(p[1 + j], (j + row + k) % 16 | (j + 16 + row + k) % 16 << 4);
            }
    }
    hn_gguf_close(g);
    begin_gpt_oss();
    add_gpt_oss(127);
    g = converted("mxfp4-f32", "F32");
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, names[1]);
    for (int e = 0; e < E; e++) assert_true(((const float *)t->data)[3 * E + e] == levels[(e + 7) % 16]); /* row 7 */
    hn_gguf_close(g);
}

/* ---- experts in one tensor, or in one each ----- */

/* Qwen3-VL's, as they are published: inputs first. */
static void add_turned(void)
{
    static float up[N_EXPERT][E][2 * E], last[N_EXPERT][E][E];
    for (int k = 0; k < N_EXPERT; k++)
        for (int r = 0; r < 2 * E; r++)
            for (int i = 0; i < E; i++) {
                up[k][i][r] = (float)((k * 2 * E + r) * E + i);
                if (r < E) last[k][i][r] = -(float)((k * E + r) * E + i);
            }
    add("model.layers.0.mlp.experts.gate_up_proj", "F32", "2, 32, 64", up, sizeof up);
    add("model.layers.0.mlp.experts.down_proj", "F32", "2, 32, 32", last, sizeof last);
}

static void add_experts(bool fused)
{
    static float up[N_EXPERT][2 * E][E], last[N_EXPERT][E][E];
    char name[96];
    for (int k = 0; k < N_EXPERT; k++)
        for (int r = 0; r < 2 * E; r++)
            for (int i = 0; i < E; i++) {
                up[k][r][i] = (float)((k * 2 * E + r) * E + i);
                if (r < E) last[k][r][i] = -(float)((k * E + r) * E + i);
            }
    if (fused) {
        add("model.layers.0.mlp.experts.gate_up_proj", "F32", "2, 64, 32", up, sizeof up);
        add("model.layers.0.mlp.experts.down_proj", "F32", "2, 32, 32", last, sizeof last);
        return;
    }
    for (int k = 0; k < N_EXPERT; k++) {
        snprintf(name, sizeof name, "model.layers.0.mlp.experts.%d.up_proj.weight", k);
        add(name, "F32", "32, 32", up[k][E], sizeof up[k] / 2);
        snprintf(name, sizeof name, "model.layers.0.mlp.experts.%d.gate_proj.weight", k);
        add(name, "F32", "32, 32", up[k], sizeof up[k] / 2);
        snprintf(name, sizeof name, "model.layers.0.mlp.experts.%d.down_proj.weight", k);
        add(name, "F32", "32, 32", last[k], sizeof last[k]);
    }
}

static void begin_moe(const char *more)
{
    static const char *const q[] = { "q", "k", "v", "o" };
    char name[96];
    begin("");
    snprintf(config, sizeof config,
             "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"model_type\": \"qwen3_moe\", \"hidden_size\": 32, "
             "\"intermediate_size\": 32, \"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"head_dim\": 8, "
             "\"num_key_value_heads\": 4, \"vocab_size\": 8, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-6, "
             "\"tie_word_embeddings\": true, \"num_experts\": 2, \"num_experts_per_tok\": 1, "
             "\"moe_intermediate_size\": 32%s}",
             more);
    add_f32("model.embed_tokens.weight", "8, 32", 8 * E, 0.5F);
    add_f32("model.norm.weight", "32", E, 1);
    add_f32("model.layers.0.input_layernorm.weight", "32", E, 1);
    add_f32("model.layers.0.post_attention_layernorm.weight", "32", E, 1);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "model.layers.0.self_attn.%s_proj.weight", q[i]);
        add_f32(name, "32, 32", E * E, 0.25F);
    }
    add_f32("model.layers.0.self_attn.q_norm.weight", "8", 8, 1);
    add_f32("model.layers.0.self_attn.k_norm.weight", "8", 8, 1);
    add_f32("model.layers.0.mlp.gate.weight", "2, 32", 2 * E, 0.25F);
}

/* The config under Qwen3-VL's name, which does not say that weights add up to 1. */
static void see(void)
{
    static const char class[] = "\"Qwen3MoeForCausalLM\"], \"model_type\": \"qwen3_moe\"",
                      other[] = "\"Qwen3VLMoeForConditionalGeneration\"], \"model_type\": \"qwen3_vl_moe_text\"";
    char *at = strstr(config, class), rest[sizeof config];
    assert_non_null(at);
    snprintf(rest, sizeof rest, "%s", at + sizeof class - 1);
    snprintf(at, sizeof config - (size_t)(at - config), "%s%s", other, rest);
}

static void experts(void **state)
{
    static const char *const names[] = { "split", "fused", "vl-split", "vl-fused", "vl-turned" };
    for (int fused = 0; fused < 5; fused++) {
        begin_moe(fused < 2 ? ", \"norm_topk_prob\": true" : "");
        if (fused > 1) see();
        if (fused == 4) add_turned();
        else add_experts(fused % 2);
        hn_gguf *g = converted(names[fused], "F32");
        const hn_gguf_tensor *gate = hn_gguf_find_tensor(g, "blk.0.ffn_gate_exps.weight"),
                             *up = hn_gguf_find_tensor(g, "blk.0.ffn_up_exps.weight"),
                             *last = hn_gguf_find_tensor(g, "blk.0.ffn_down_exps.weight");
        assert_true(gate && up && last && gate->n_dim == 3 && gate->ne[2] == 2);
        for (int i = 0; i < N_EXPERT * E * E; i++) {
            int k = i / (E * E), in = i % (E * E);
            assert_true(((const float *)gate->data)[i] == (float)(k * 2 * E * E + in));
            assert_true(((const float *)up->data)[i] == (float)(k * 2 * E * E + E * E + in));
            assert_true(((const float *)last->data)[i] == -(float)i);
        }
        hn_gguf_close(g);
    }
    /* as Qwen3-Coder's config has it */
    begin_moe(", \"norm_topk_prob\": true, \"qkv_bias\": false, \"use_qk_norm\": true, "
              "\"shared_expert_intermediate_size\": 0");
    add_experts(false);
    hn_gguf_close(converted("coder", "F32"));
    begin_moe(", \"norm_topk_prob\": true, \"qkv_bias\": true");
    add_experts(false);
    refused("biases", HONE_E_UNSUPPORTED, "qkv_bias|true|expected false");
    begin_moe(", \"norm_topk_prob\": false");
    add_experts(false);
    refused("norm", HONE_E_UNSUPPORTED, "norm_topk_prob|false|expected true");
    begin_moe(", \"norm_topk_prob\": true, \"mlp_only_layers\": [0]");
    add_experts(false);
    refused("dense", HONE_E_UNSUPPORTED, "mlp_only_layers|[0]");
    begin_moe(", \"norm_topk_prob\": true, \"num_experts\": 3");
    add_experts(false);
    refused("twice", HONE_E_FORMAT, "num_experts");
}

/* ---- NVFP4: a factor stands beside the blocks ----- */

/* A number of the config becomes 64. */
static void widen(const char *key)
{
    char *p = strstr(config, key);
    assert_non_null(p);
    memcpy(p + strlen(key) + 3, "64", 2);
}

/* NAME [32, 64]: element e of row r is code (e + r) mod 16, of group g times 1.5 where r + g is 3, else 1. */
static void add_nvfp4(const char *name, bool modelopt, float factor, const char *shape, uint8_t scale)
{
    uint8_t q[E][E], s[E][4];
    const float other = 1 / factor, act = modelopt ? 0.5F : 2;
    char full[128];
    for (int r = 0; r < E; r++)
        for (int j = 0; j < E; j++) {
            q[r][j] = (uint8_t)((2 * j + r) % 16 | (2 * j + 1 + r) % 16 << 4);
            s[r][j / 8] = r + j / 8 == 3 ? 0x3C : 0x38;
        }
    s[2][0] = scale;
    snprintf(full, sizeof full, "%sweight%s", name, modelopt ? "" : "_packed");
    add(full, "U8", "32, 32", q, sizeof q);
    snprintf(full, sizeof full, "%sweight_scale", name);
    add(full, "F8_E4M3", shape, s, sizeof s);
    snprintf(full, sizeof full, "%sweight_%s", name, modelopt ? "scale_2" : "global_scale");
    add(full, "F32", modelopt ? "" : "1", modelopt ? &factor : &other, 4);
    snprintf(full, sizeof full, "%sinput_%s", name, modelopt ? "scale" : "global_scale");
    add(full, "F32", modelopt ? "" : "1", &act, 4);
}

static float nvfp4_at(int r, int e) { return levels[(e + r) % 16] * (r + e / 16 == 3 ? 1.5F : 1); }

#define MODELOPT(algo) "\"quantization_config\": {\"quant_method\": \"modelopt\", \"quant_algo\": \"" algo "\"}"
#define NVFP4_GROUPS GROUPS("nvfp4-pack-quantized", "\"num_bits\": 4, \"type\": \"float\"")

static void begin_nvfp4(const char *says, bool modelopt, float factor, const char *shape, uint8_t scale)
{
    begin(says);
    widen("intermediate_size");
    add_rest(2 * E);
    add_nvfp4(DOWN, modelopt, factor, shape, scale);
}

static void is_factor(const hn_gguf *g, const char *name, uint64_t n, const float *want)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
    if (!t) fail_msg("%s is missing", name);
    assert_true(t->type == HN_F32 && t->n_dim == 1 && t->ne[0] == n);
    equal(t->data, want, n, 1);
}

/* Rows of blocks: four scales, then of each group bytes of elements j and j + 8. */
static void check_nvfp4(const hn_gguf_tensor *t)
{
    assert_non_null(t);
    assert_true(t->type == HN_NVFP4 && t->ne[0] == 64 && t->ne[1] == E);
    const uint8_t *p = t->data;
    for (uint64_t row = 0; row < E * t->ne[2]; row++, p += 36)
        for (int g = 0; g < 4; g++) {
            int r = (int)(row % E);
            assert_int_equal(p[g], r + g == 3 ? 0x3C : 0x38);
            for (int j = 0; j < 8; j++)
                assert_int_equal(p[4 + 8 * g + j], (16 * g + j + r) % 16 | (16 * g + j + 8 + r) % 16 << 4);
        }
}

static void nvfp4(void **state)
{
    static const char *const says[] = { MODELOPT("NVFP4"), MODELOPT("MIXED_PRECISION"), NVFP4_GROUPS };
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "nvfp4-%d", i);
        begin_nvfp4(says[i], i < 2, 4, "32, 4", 0x38);
        hn_gguf *g = converted(name, i ? NULL : "Q8_0"); /* rounded once is enough */
        check_nvfp4(hn_gguf_find_tensor(g, "blk.0.ffn_down.weight"));
        is_factor(g, "blk.0.ffn_down.scale", 1, (float[]){ 4 });
        is_factor(g, "blk.0.ffn_down.input_scale", 1, (float[]){ 0.5F });
        hn_gguf_close(g);
    }
    begin_nvfp4(says[0], true, 4, "32, 4", 0x38);
    hn_gguf *g = converted("nvfp4-f32", "F32");
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "blk.0.ffn_down.weight");
    assert_null(hn_gguf_find_tensor(g, "blk.0.ffn_down.scale"));
    for (int r = 0; r < E; r++)
        for (int e = 0; e < 2 * E; e++) assert_true(((const float *)t->data)[r * 2 * E + e] == 4 * nvfp4_at(r, e));
    hn_gguf_close(g);
}

/* A factor for each expert. */
static void nvfp4_experts(void **state)
{
    char name[96];
    begin_moe(", \"norm_topk_prob\": true, " MODELOPT("W4A16_NVFP4"));
    widen("moe_intermediate_size");
    for (int k = 0; k < N_EXPERT; k++) {
        snprintf(name, sizeof name, "model.layers.0.mlp.experts.%d.gate_proj.weight", k);
        add_f32(name, "64, 32", 2 * E * E, 1);
        snprintf(name, sizeof name, "model.layers.0.mlp.experts.%d.up_proj.weight", k);
        add_f32(name, "64, 32", 2 * E * E, 1);
        snprintf(name, sizeof name, "model.layers.0.mlp.experts.%d.down_proj.", k);
        add_nvfp4(name, true, k ? 8 : 0.25F, "32, 4", 0x38);
    }
    hn_gguf *g = converted("nvfp4-experts", NULL);
    check_nvfp4(hn_gguf_find_tensor(g, "blk.0.ffn_down_exps.weight"));
    is_factor(g, "blk.0.ffn_down_exps.scale", 2, (float[]){ 0.25F, 8 });
    hn_gguf_close(g);
}

/* Rows that are no whole blocks: numbers, rounded once. */
static void nvfp4_narrow(void **state)
{
    uint8_t q[E][E / 2], s[E][2];
    const float factor = 4;
    memset(q, 0x52, sizeof q); /* 1, 3 */
    memset(s, 0x38, sizeof s);
    s[1][1] = 0x3C;
    begin(MODELOPT("NVFP4"));
    add_rest(E);
    add(DOWN "weight", "U8", "32, 16", q, sizeof q);
    add(DOWN "weight_scale", "F8_E4M3", "32, 2", s, sizeof s);
    add(DOWN "weight_scale_2", "F32", "", &factor, 4);
    hn_gguf *g = converted("nvfp4-narrow", NULL);
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "blk.0.ffn_down.weight");
    assert_int_equal(t->type, HN_BF16);
    const uint16_t *x = t->data;
    assert_true(x[0] == 0x4080 && x[1] == 0x4140 && x[E + 16] == 0x40C0); /* 4, 12; 6 */
    assert_null(hn_gguf_find_tensor(g, "blk.0.ffn_down.scale"));
    hn_gguf_close(g);
}

/* compressed-tensors' MXFP4: the scale, then of a row's 32 elements j and j + 16. */
static void packed_mxfp4(void **state)
{
    uint8_t q[E][E / 2], s[E];
    for (int r = 0; r < E; r++) {
        for (int j = 0; j < E / 2; j++) q[r][j] = (uint8_t)((2 * j + r) % 16 | (2 * j + 1 + r) % 16 << 4);
        s[r] = (uint8_t)(120 + r % 8);
    }
    begin(GROUPS("mxfp4-pack-quantized", "\"num_bits\": 4, \"type\": \"float\""));
    add_rest(E);
    add(DOWN "weight_packed", "U8", "32, 16", q, sizeof q);
    add(DOWN "weight_scale", "U8", "32, 1", s, sizeof s);
    hn_gguf *g = converted("mx-packed", NULL);
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "blk.0.ffn_down.weight");
    assert_true(t && t->type == HN_MXFP4 && t->ne[0] == E && t->ne[1] == E);
    const uint8_t *p = t->data;
    for (int r = 0; r < E; r++, p += 17) {
        assert_int_equal(p[0], 120 + r % 8);
        for (int j = 0; j < 16; j++) assert_int_equal(p[1 + j], (j + r) % 16 | (j + 16 + r) % 16 << 4);
    }
    hn_gguf_close(g);
}

static void nvfp4_refused(void **state)
{
    begin_nvfp4(MODELOPT("INT4_AWQ"), true, 1, "32, 4", 0x38);
    refused("nv-algo", HONE_E_UNSUPPORTED, "quant_algo|INT4_AWQ|NVFP4");
    begin_nvfp4(MODELOPT("NVFP4"), true, 1, "128", 0x38);
    refused("nv-shape", HONE_E_UNSUPPORTED, "weight_scale|[128]|16 columns");
    begin_nvfp4(MODELOPT("NVFP4"), true, 1, "32, 4", 0xB8);
    refused("nv-negative", HONE_E_NUMERIC, "weight_scale|element 8 is -1");
    begin_nvfp4(MODELOPT("NVFP4"), true, 1, "32, 4", 0x7F);
    refused("nv-nan", HONE_E_NUMERIC, "weight_scale|element 8 is");
    begin_nvfp4(NVFP4_GROUPS, false, INFINITY, "32, 4", 0x38);
    refused("nv-factor", HONE_E_NUMERIC, "weight_global_scale is 0");
}

/* ---- refusals ----- */

/* The last matrix as F8_E4M3, with scales of some shape, or without. */
static void fp8(const char *more, const char *shape, size_t n, uint8_t code)
{
    uint8_t q[E * E];
    memset(q, 0x38, sizeof q);
    q[7] = code;
    begin(more);
    add_rest(E);
    add(DOWN "weight", "F8_E4M3", "32, 32", q, sizeof q);
    if (shape) add_f32(DOWN "weight_scale_inv", shape, n, n == 4 ? NAN : 1);
}

static void refusals(void **state)
{
    static const char blocks[] =
        "\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [16, 32]}";
    static const char unknown[] =
        "\"quantization_config\": {\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true}";
    uint8_t words[E][4 * 4] = { { 0 } };
    fp8(unknown, "2, 1", 2, 0);
    refused("bnb", HONE_E_UNSUPPORTED, "quant_method|bitsandbytes|unquantized");
    fp8(blocks, NULL, 0, 0);
    refused("no-scales", HONE_E_UNSUPPORTED, "down_proj.weight|F8_E4M3|unquantized");
    fp8(blocks, "3, 1", 3, 0);
    refused("scales", HONE_E_UNSUPPORTED, "weight_scale_inv|[3, 1]");
    fp8(blocks, "2, 2", 4, 0);
    refused("blocks", HONE_E_UNSUPPORTED, "weight_scale_inv|[2, 2]");
    fp8("\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [16, 16]}", "2, 2", 4, 0);
    refused("nan-scale", HONE_E_NUMERIC, "weight_scale_inv|element 0|NaN");
    fp8(blocks, "2, 1", 2, 0x7F);
    refused("nan", HONE_E_NUMERIC, "down_proj.weight|element 7|NaN");
    begin(GPTQ(", \"checkpoint_format\": \"marlin\""));
    add_rest(E);
    add_gptq(1);
    refused("marlin", HONE_E_UNSUPPORTED, "checkpoint_format|marlin|gptq_v2");
    static const char *const packings[][3] = {
        { "other-packing", AUTO_ROUND("auto-round", "16", ", \"packing_format\": \"auto_round:gptqmodel\""),
          "packing_format|gptqmodel|auto_round:auto_gptq" },
        { "floats",
          AUTO_ROUND("auto-round", "16", ", \"packing_format\": \"auto_round:auto_gptq\", \"data_type\": \"fp\""),
          "data_type|fp|int" }
    };
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++) {
        begin(packings[i][1]);
        add_rest(E);
        add_gptq(1);
        refused(packings[i][0], HONE_E_UNSUPPORTED, packings[i][2]);
    }
    begin(GPTQ(""));
    add_rest(E);
    add_gptq(2);
    refused("groups", HONE_E_FORMAT, "g_idx|element 1|is 2|0 to 1");
    begin("");
    add_rest(E);
    add_gptq(1);
    refused("unsaid", HONE_E_UNSUPPORTED, "qweight|quant_method");
    begin("\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"version\": \"gemv\"}");
    add_rest(E);
    add_gptq(1);
    refused("gemv", HONE_E_UNSUPPORTED, "version|gemv");
    begin("");
    add_rest(E);
    add(DOWN "weight", "I8", "32, 32", data, E * E);
    refused("bytes", HONE_E_UNSUPPORTED, "down_proj.weight|I8|unquantized");
    begin("\"quantization_config\": {\"quant_method\": \"compressed-tensors\"}");
    add_rest(E);
    add(DOWN "weight_packed", "I32", "32, 4", words, sizeof words);
    add_f32(DOWN "weight_scale", "32, 2", 2 * E, 1);
    add(DOWN "weight_shape", "I64", "2", (int64_t[]){ E, 4096 }, 16);
    refused("shape", HONE_E_UNSUPPORTED, "weight_packed|[32, 4]|weight_shape");
    begin_gpt_oss();
    add_gpt_oss(255);
    refused("mxfp4-nan", HONE_E_NUMERIC, "gate_up_proj_scales|255");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp8_blocks),    cmocka_unit_test(fp8_group_blocks),
        cmocka_unit_test(fp8_rows),      cmocka_unit_test(packed_words),
        cmocka_unit_test(gptq),          cmocka_unit_test(awq),
        cmocka_unit_test(mxfp4),         cmocka_unit_test(experts),
        cmocka_unit_test(refusals),      cmocka_unit_test(nvfp4),
        cmocka_unit_test(nvfp4_experts), cmocka_unit_test(nvfp4_narrow),
        cmocka_unit_test(nvfp4_refused), cmocka_unit_test(packed_mxfp4),
        cmocka_unit_test(gptq_mixed),    cmocka_unit_test(int8_zeros),
        cmocka_unit_test(turned),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
