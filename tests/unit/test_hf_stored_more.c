/* hf_stored_more: folders whose matrices are stored otherwise, by programs that say less than today's, or say it with
 * other words or types: what they mean, and what is refused. */
#include "stored_files.h"

#include <math.h>

/* Each row's columns: even ones code − 8, odd ones (code − zero) · scale of another group; `more`: v2's zeros are what
 * they say, one less than v1's. */
static void is_gptq(hn_gguf *g, int more)
{
    for (int o = 0; o < E; o++)
        for (int i = 0; i < E; i++) {
            int zero = i % 2 == 0 ? 8 : o % 8 ? 3 : 16, code = i % 16;
            float scale = i % 2 == 0 ? 1 : o == 9 ? 4 : 0.5F;
            float want = (float)(code - (zero - more) % 16) * scale;
            if (down(g)[o * E + i] != want)
                fail_msg("row %d, column %d is %g, expected %g", o, i, (double)down(g)[o * E + i], (double)want);
        }
    hn_gguf_close(g);
}

/* transformers' GPTQConfig and GPTQModel: checkpoint_format, else format. */
static void gptq_formats(void **state)
{
    static const struct {
        const char *says, *refusal;
        int more;
    } rows[] = {
        { GPTQ(", \"format\": \"gptq\""), NULL, 0 },
        { GPTQ(", \"format\": \"gptq_v2\""), NULL, 1 },
        { GPTQ(", \"checkpoint_format\": \"gptq_v2\""), NULL, 1 },
        { GPTQ(", \"checkpoint_format\": \"gptq_v2\", \"format\": \"gptq\""), NULL, 1 },
        { GPTQ(", \"checkpoint_format\": \"gptq\", \"format\": \"gptq_v2\""), NULL, 0 },
        { GPTQ(", \"checkpoint_format\": null, \"format\": \"gptq_v2\""), NULL, 1 },
        { GPTQ(", \"format\": \"marlin\""), "format = \"marlin\"|gptq_v2", 0 },
        { "\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"format\": \"gemv\"}",
          "format = \"gemv\"|gemm", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16];
        snprintf(name, sizeof name, "format%zu", i);
        begin(rows[i].says);
        add_rest(E);
        add_gptq(1);
        if (rows[i].refusal) refused(name, HONE_E_UNSUPPORTED, rows[i].refusal);
        else is_gptq(converted(name, "F32"), rows[i].more);
    }
}

/* AutoRound's configs without packing_format; its older word for a layout of its own is refused. */
static void auto_round(void **state)
{
    static const char *const says[] = { AUTO_ROUND("auto-round", "16", ""),
                                        AUTO_ROUND("auto-round", "16", ", \"packing_format\": \"auto\""),
                                        AUTO_ROUND("auto-round", "16", ", \"backend\": \"auto\"") };
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        char name[16];
        snprintf(name, sizeof name, "round%zu", i);
        begin(says[i]);
        add_rest(E);
        add_gptq(1);
        is_gptq(converted(name, "F32"), 0);
    }
    begin(AUTO_ROUND("auto-round", "16", ", \"backend\": \"auto_round:exllamav2\""));
    add_rest(E);
    add_gptq(1);
    refused("round-own", HONE_E_UNSUPPORTED, "backend = \"auto_round:exllamav2\"|auto_round:auto_gptq");
}

/* AutoGPTQ gave a bias to every linear layer: zeros where the model has none. */
static void gptq_biases(void **state)
{
    uint16_t bias[E] = { 0 };
    begin(GPTQ(""));
    add_rest(E);
    add_gptq(1);
    add(DOWN "bias", "F16", "32", bias, sizeof bias);
    is_gptq(converted("bias", "F32"), 0);
    bias[E - 1] = 0x3C00;
    begin(GPTQ(""));
    add_rest(E);
    add_gptq(1);
    add(DOWN "bias", "F16", "32", bias, sizeof bias);
    refused("bias1", HONE_E_FORMAT, "down_proj.bias|is no tensor of a model of class");
    bias[E - 1] = 0;
    begin("");
    add_rest(E);
    add_f32(DOWN "weight", "32, 32", E * E, 1);
    add(DOWN "bias", "F16", "32", bias, sizeof bias);
    refused("bias2", HONE_E_FORMAT, "down_proj.bias|is no tensor of a model of class");
}

/* AutoAWQ's config in a file of its own. */
static void awq_beside(void **state)
{
    static const char says[] = "{\"zero_point\": true, \"q_group_size\": 32, \"w_bit\": 4, \"version\": \"GEMM\"}",
                      other[] = "{\"scheme\": \"w8a8\"}";
    static const char *const names[] = { "quant_config.json", "quantize_config.json" };
    static const float want[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    char folder[160], path[200];
    uint32_t q[E][4], z[4] = { 0x11111111 };
    uint16_t scale[E];
    for (int i = 0; i < E; i++) {
        for (int w = 0; w < 4; w++) q[i][w] = 0x76543210;
        scale[i] = 0x3800; /* 0.5 */
    }
    for (int k = 0; k < 2; k++) {
        begin("");
        add_rest(E);
        add(DOWN "qweight", "I32", "32, 4", q, sizeof q);
        add(DOWN "qzeros", "I32", "1, 4", z, sizeof z);
        add(DOWN "scales", "F16", "1, 32", scale, sizeof scale);
        write_folder(folder, names[k]);
        snprintf(path, sizeof path, "%s/%s", folder, names[k]);
        put(path, says, sizeof says - 1, NULL, 0);
        hn_gguf *g = converted_folder(folder, "F32");
        for (int o = 0; o < E; o++)
            for (int i = 0; i < E; i++) assert_true(down(g)[o * E + i] == 0.5F * (want[o % 8] - (o < 8 ? 1 : 0)));
        hn_gguf_close(g);
    }
    begin(""); /* a plain checkpoint beside which another program left such a file */
    add_rest(E);
    add_f32(DOWN "weight", "32, 32", E * E, 3);
    write_folder(folder, "plain");
    snprintf(path, sizeof path, "%s/quant_config.json", folder);
    put(path, other, sizeof other - 1, NULL, 0);
    hn_gguf *g = converted_folder(folder, "F32");
    equal(down(g), &(float){ 3 }, 1, 1);
    hn_gguf_close(g);
}

/* ---- eight bits ----- */

static void wide(int n_ff)
{
    char *at = strstr(config, "\"intermediate_size\": 32"), rest[sizeof config];
    assert_non_null(at);
    snprintf(rest, sizeof rest, "%s", at + strlen("\"intermediate_size\": 32"));
    snprintf(at, sizeof config - (size_t)(at - config), "\"intermediate_size\": %d%s", n_ff, rest);
}

/* The last matrix [32, 160] as F8_E4M3 of ones, whose scales are 2 and 0.5. */
static void add_blocks(const char *says, const char *tail, const char *shape)
{
    enum { FF = 160 };
    static uint8_t q[E * FF];
    const float scale[2] = { 2, 0.5F };
    char name[96];
    memset(q, 0x38, sizeof q);
    begin(says);
    wide(FF);
    add_rest(FF);
    snprintf(name, sizeof name, DOWN "%s", tail);
    add(DOWN "weight", "F8_E4M3", "32, 160", q, sizeof q);
    add(name, "F32", shape, scale, sizeof scale);
}

#define FP8(more) "\"quantization_config\": {\"quant_method\": \"fp8\"" more "}"
#define BY_BLOCKS "\"quantization_config\": {\"quant_method\": \"modelopt\", \"quant_algo\": \"FP8_PB_WO\"}"

/* Blocks of 128: where the config says none (transformers' FineGrainedFP8Config), and ModelOpt's. */
static void blocks_of_128(void **state)
{
    static const char *const rows[][3] = { { FP8(""), "weight_scale_inv", "1, 2" },
                                           { BY_BLOCKS, "weight_scale", "1, 1, 2, 1" },
                                           { BY_BLOCKS, "weight_scale", "1, 2" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16];
        snprintf(name, sizeof name, "b128-%zu", i);
        add_blocks(rows[i][0], rows[i][1], rows[i][2]);
        hn_gguf *g = converted(name, "F32");
        const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "blk.0.ffn_down.weight");
        const float *x = t->data;
        for (int e = 0; e < E * 160; e++) assert_true(x[e] == (e % 160 < 128 ? 2 : 0.5F));
        hn_gguf_close(g);
    }
    add_blocks(FP8(", \"weight_block_size\": null"), "weight_scale_inv", "1, 2");
    refused("null-block", HONE_E_UNSUPPORTED, "weight_scale_inv|[1, 2]");
    add_blocks(BY_BLOCKS, "weight_scale", "2, 1, 1, 1"); /* two blocks of 32 rows */
    refused("pb-rows", HONE_E_UNSUPPORTED, "weight_scale|[2, 1, 1, 1]");
}

/* compressed-tensors' strategy group: scales of columns of each row. */
static void int8_groups(void **state)
{
    static const char says[] =
        GROUPS("int-quantized", "\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"group\", \"group_size\": 8");
    int8_t q[E][E], zero[E][4];
    float scale[E][4];
    for (int o = 0; o < E; o++)
        for (int i = 0; i < E; i++) {
            q[o][i] = (int8_t)((o + i) % 16 - 8);
            scale[o][i / 8] = (float)(1 + o + 32 * (i / 8));
            zero[o][i / 8] = (int8_t)(i / 8 - o % 4);
        }
    begin(says);
    add_rest(E);
    add(DOWN "weight", "I8", "32, 32", q, sizeof q);
    add(DOWN "weight_scale", "F32", "32, 4", scale, sizeof scale);
    add(DOWN "weight_zero_point", "I8", "32, 4", zero, sizeof zero);
    hn_gguf *g = converted("int-groups", "F32");
    for (int o = 0; o < E; o++)
        for (int i = 0; i < E; i++)
            assert_true(down(g)[o * E + i] == (float)(q[o][i] - zero[o][i / 8]) * scale[o][i / 8]);
    hn_gguf_close(g);
    begin(says);
    add_rest(E);
    add(DOWN "weight", "I8", "32, 32", q, sizeof q);
    add(DOWN "weight_scale", "F32", "32, 3", scale, 4 * 3 * E);
    refused("int-thirds", HONE_E_UNSUPPORTED, "weight_scale|[32, 3]");
    begin(says);
    add_rest(E);
    add(DOWN "weight", "I8", "32, 32", q, sizeof q);
    add(DOWN "weight_scale", "F32", "32, 0", scale, 0);
    refused("int-none", HONE_E_UNSUPPORTED, "weight_scale|[32, 0]");
}

/* A scale of caches that older programs wrote once for keys and values. */
static void cache_scales(void **state)
{
    uint8_t q[E * E];
    const float one = 1;
    memset(q, 0x38, sizeof q);
    begin(FP8(", \"activation_scheme\": \"static\""));
    add_rest(E);
    add(DOWN "weight", "F8_E4M3", "32, 32", q, sizeof q);
    add(DOWN "weight_scale", "F32", "", &one, 4);
    add("model.layers.0.self_attn.kv_scale", "F32", "", &one, 4);
    hn_gguf *g = converted("kv-scale", "F32");
    assert_true(down(g)[E * E - 1] == 1);
    hn_gguf_close(g);
}

/* ---- words ----- */

/* compressed-tensors' words: codes 0 to 15 twice, scale 1 of columns 0 to 15 and 2 of the others. */
static void add_words(const char *dtype, const void *shape, size_t n_shape, const int32_t *order)
{
    uint32_t q[E][4];
    float scale[E][2];
    for (int o = 0; o < E; o++) {
        q[o][0] = q[o][2] = 0x76543210;
        q[o][1] = q[o][3] = 0xFEDCBA98;
        scale[o][0] = 1;
        scale[o][1] = 2;
    }
    begin("\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\"}");
    add_rest(E);
    add(DOWN "weight_packed", "I32", "32, 4", q, sizeof q);
    add(DOWN "weight_scale", "F32", "32, 2", scale, sizeof scale);
    add(DOWN "weight_shape", dtype, "2", shape, n_shape);
    if (order) add(DOWN "weight_g_idx", "I32", "32", order, 4 * E);
}

static void are_words(hn_gguf *g, bool ordered)
{
    for (int e = 0; e < E * E; e++) {
        int i = e % E, group = ordered ? i % 2 : i / 16;
        assert_true(down(g)[e] == (float)((i % 16 - 8) * (1 + group)));
    }
    hn_gguf_close(g);
}

/* Kimi's shapes are of 32 bits. */
static void narrow_shapes(void **state)
{
    static const int32_t shape[2] = { E, E }, off[2] = { -E, E };
    static const int64_t both[2] = { E, E };
    static const int16_t half[2] = { E, E };
    add_words("I32", shape, sizeof shape, NULL);
    are_words(converted("shape32", "F32"), false);
    add_words("I64", both, sizeof both, NULL);
    are_words(converted("shape64", "F32"), false);
    add_words("I32", off, sizeof off, NULL);
    refused("shape-off", HONE_E_UNSUPPORTED, "weight_packed|weight_shape");
    add_words("I16", half, sizeof half, NULL);
    refused("shape16", HONE_E_UNSUPPORTED, "weight_shape is I16|two I64 or I32");
}

/* compressed-tensors: a −1 anywhere means that columns have no order. */
static void no_order(void **state)
{
    static const int64_t shape[2] = { E, E };
    int32_t order[E];
    for (int i = 0; i < E; i++) order[i] = i % 2;
    add_words("I64", shape, sizeof shape, order);
    are_words(converted("order", "F32"), true);
    order[E - 1] = -1;
    add_words("I64", shape, sizeof shape, order);
    are_words(converted("no-order", "F32"), false);
    order[E - 1] = -2;
    add_words("I64", shape, sizeof shape, order);
    refused("order-off", HONE_E_FORMAT, "weight_g_idx|element 31|-2");
    begin(GPTQ(""));
    add_rest(E);
    add_gptq(-1);
    refused("order-gptq", HONE_E_FORMAT, "g_idx|element 1|is -1");
}

/* MLX's repositories name no method; older ones have no quantization_config at all. */
static void mlx(void **state)
{
    static const uint32_t q[E][4];
    static const char says[] = "{\"group_size\": 32, \"bits\": 4}";
    for (int i = 0; i < 2; i++) {
        char member[96];
        snprintf(member, sizeof member, "\"quantization%s\": %s", i ? "_config" : "", says);
        begin(member);
        add_rest(E);
        add(DOWN "weight", "U32", "32, 4", q, sizeof q);
        add_f32(DOWN "scales", "32, 1", E, 1);
        add_f32(DOWN "biases", "32, 1", E, 1);
        refused(i ? "mlx1" : "mlx0", HONE_E_UNSUPPORTED,
                i ? "quant_method is missing|MLX|compressed-tensors|unquantized"
                  : "down_proj.weight is U32 of shape [32, 4]|MLX|unquantized");
    }
}

/* ---- BitNet's three values ----- */

#define BITNET(more) "\"quantization_config\": {\"quant_method\": \"bitnet\"" more "}"
#define AUTO ", \"linear_class\": \"autobitlinear\""

static int three_of(int o, int i) { return (3 * o + i) % 3 - 1; }

static void add_ternary(void)
{
    static uint8_t codes[E / 4][E];
    memset(codes, 0, sizeof codes);
    for (int o = 0; o < E; o++)
        for (int i = 0; i < E; i++)
            codes[o % (E / 4)][i] |= (uint8_t)((unsigned)(three_of(o, i) + 1) << 2 * (o / (E / 4)));
    add(DOWN "weight", "U8", "8, 32", codes, sizeof codes);
}

/* Four rows in one; scales divide, or, of the other kind of layer, multiply. */
static void ternary(void **state)
{
    static const struct {
        const char *says;
        float one;
    } rows[] = { { BITNET(""), 0.5F },
                 { BITNET(", \"linear_class\": \"bitlinear\", \"quantization_mode\": \"offline\""), 0.5F },
                 { BITNET(AUTO), 2 },
                 { BITNET(AUTO ", \"quantization_mode\": \"offline\", \"use_rms_norm\": false"), 2 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16];
        snprintf(name, sizeof name, "three%zu", i);
        begin(rows[i].says);
        add_rest(E);
        add_ternary();
        add_f32(DOWN "weight_scale", "1", 1, 2);
        hn_gguf *g = converted(name, "F32");
        for (int k = 0; k < E * E; k++) assert_true(down(g)[k] == rows[i].one * (float)three_of(k / E, k % E));
        hn_gguf_close(g);
    }
    begin(BITNET(AUTO));
    add_rest(E);
    add_ternary();
    refused("three-alone", HONE_E_UNSUPPORTED, "down_proj.weight|weight_scale");
    begin(BITNET(AUTO));
    add_rest(E);
    add_ternary();
    add_f32(DOWN "weight_scale", "2", 2, 2);
    refused("three-two", HONE_E_UNSUPPORTED, "weight_scale|one scale");
    begin(BITNET(", \"linear_class\": \"other\""));
    add_rest(E);
    refused("three-class", HONE_E_UNSUPPORTED, "linear_class = \"other\"|autobitlinear");
    begin(BITNET(", \"use_rms_norm\": true"));
    add_rest(E);
    refused("three-norm", HONE_E_UNSUPPORTED, "use_rms_norm");
}

/* What a checkpoint of training holds becomes what it rounds to: magnitudes' mean is ½, and so is a one. */
static void masters(void **state)
{
    float w[E * E];
    uint16_t narrow[E * E];
    for (int k = 0; k < E * E; k++) w[k] = ((float)((k / E + k) % 4) - 1.5F) / 2;
    for (int k = 0; k < E * E; k++) narrow[k] = hn_f32_to_bf16(w[k]);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        begin(BITNET(AUTO ", \"quantization_mode\": \"online\""));
        add_rest(E);
        if (bf16) add(DOWN "weight", "BF16", "32, 32", narrow, sizeof narrow);
        else add(DOWN "weight", "F32", "32, 32", w, sizeof w);
        hn_gguf *g = converted(bf16 ? "master16" : "master", "F32");
        for (int k = 0; k < E * E; k++) {
            const int v = (k / E + k) % 4;
            assert_true(down(g)[k] == (v == 0 ? -0.5F : v == 3 ? 0.5F : 0));
        }
        hn_gguf_close(g);
    }
    begin(BITNET(AUTO ", \"quantization_mode\": \"online\""));
    add_rest(E);
    w[7] = NAN;
    add(DOWN "weight", "F32", "32, 32", w, sizeof w);
    refused("master-nan", HONE_E_NUMERIC, "down_proj.weight|finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gptq_formats), cmocka_unit_test(auto_round),    cmocka_unit_test(gptq_biases),
        cmocka_unit_test(awq_beside),   cmocka_unit_test(blocks_of_128), cmocka_unit_test(int8_groups),
        cmocka_unit_test(cache_scales), cmocka_unit_test(narrow_shapes), cmocka_unit_test(no_order),
        cmocka_unit_test(mlx),          cmocka_unit_test(ternary),       cmocka_unit_test(masters),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
