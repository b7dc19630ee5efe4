/* stored_files: one layer of a small model as a folder, of which tests store the last matrix of the feed-forward part
 * as quantizers do; what hone makes of it, or its refusal. Defines _GNU_SOURCE: included first. */
#ifndef HN_TEST_STORED_FILES_H
#define HN_TEST_STORED_FILES_H

#define _GNU_SOURCE
#include "gguf/gguf.h"
#include "hone.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-stored-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}
static int remove_one(const char *path, const struct stat *sb, int kind, struct FTW *where) { return remove(path); }
static int remove_dir(void **state) { return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* ---- a folder ------------------------------------------------------------------------------------------------- */

enum { E = 32, MOST = 1 << 17 };
static char header[16384], data[MOST], config[2048];
static size_t n_header, n_data;

static void begin(const char *more)
{
    n_header = (size_t)snprintf(header, sizeof header, "{");
    n_data = 0;
    snprintf(config, sizeof config,
             "{\"architectures\": [\"Qwen2ForCausalLM\"], \"model_type\": \"qwen2\", \"hidden_size\": 32, "
             "\"intermediate_size\": 32, \"num_hidden_layers\": 1, \"num_attention_heads\": 4, "
             "\"num_key_value_heads\": 4, \"vocab_size\": 8, \"max_position_embeddings\": 64, "
             "\"tie_word_embeddings\": true, \"rms_norm_eps\": 1e-6%s%s}",
             *more ? ", " : "", more);
}

/* shape: "8, 4" */
static void add(const char *name, const char *type, const char *shape, const void *p, size_t n)
{
    assert_true(n_data + n <= sizeof data);
    n_header += (size_t)snprintf(header + n_header, sizeof header - n_header,
                                 "%s\"%s\": {\"dtype\": \"%s\", \"shape\": [%s], \"data_offsets\": [%zu, %zu]}",
                                 n_header > 1 ? ", " : "", name, type, shape, n_data, n_data + n);
    assert_true(n_header < sizeof header - 16);
    memcpy(data + n_data, p, n);
    n_data += n;
}

static void add_f32(const char *name, const char *shape, size_t n, float x)
{
    static float v[E * E * 8];
    for (size_t i = 0; i < n; i++) v[i] = x;
    add(name, "F32", shape, v, 4 * n);
}

/* All but the feed-forward part's last matrix. */
static void add_rest(int n_ff)
{
    static const char *const q[] = { "q", "k", "v" };
    char name[96];
    add_f32("model.embed_tokens.weight", "8, 32", 8 * E, 0.5F);
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
    snprintf(name, sizeof name, "%d, 32", n_ff);
    add_f32("model.layers.0.mlp.gate_proj.weight", name, (size_t)n_ff * E, 0.25F);
    add_f32("model.layers.0.mlp.up_proj.weight", name, (size_t)n_ff * E, 0.25F);
}

#define DOWN "model.layers.0.mlp.down_proj."

static void put(const char *path, const void *a, size_t n, const void *b, size_t m)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(a, 1, n, f), n);
    if (m) assert_int_equal(fwrite(b, 1, m, f), m);
    assert_int_equal(fclose(f), 0);
}

static void write_folder(char folder[160], const char *name)
{
    char path[200];
    snprintf(folder, 160, "%s/%s", dir, name);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/config.json", folder);
    put(path, config, strlen(config), NULL, 0);
    header[n_header++] = '}';
    uint64_t n = n_header;
    unsigned char h[8 + sizeof header];
    for (int i = 0; i < 8; i++) h[i] = (unsigned char)(n >> 8 * i);
    memcpy(h + 8, header, n_header);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    put(path, h, 8 + n_header, data, n_data);
}

static hn_gguf *converted_folder(const char *folder, const char *type)
{
    char file[200];
    hone_error err;
    hn_gguf *g;
    snprintf(file, sizeof file, "%s.gguf", folder);
    if (hone_convert(folder, NULL, type, file, NULL, &err) != HONE_OK) fail_msg("%s: %s", folder, err.message);
    if (hn_gguf_open(&g, file, &err) != HONE_OK) fail_msg("%s", err.message);
    return g;
}

static hn_gguf *converted(const char *name, const char *type)
{
    char folder[160];
    write_folder(folder, name);
    return converted_folder(folder, type);
}

/* The folder is refused, and the message has all of "a|b". */
static void refused(const char *name, hone_status want, const char *words)
{
    char folder[160], file[200], word[96];
    hone_error err;
    write_folder(folder, name);
    snprintf(file, sizeof file, "%s.gguf", folder);
    hone_status st = hone_convert(folder, NULL, "F32", file, NULL, &err);
    if (st != want) fail_msg("%s: status %d, expected %d: %s", name, (int)st, (int)want, st ? err.message : "");
    for (const char *p = words; *p; p += *p == '|') {
        size_t n = strcspn(p, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        if (!strstr(err.message, word)) fail_msg("%s: \"%s\" lacks \"%s\"", name, err.message, word);
        p += n;
    }
    assert_int_not_equal(access(file, F_OK), 0);
}

static const float *down(const hn_gguf *g)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "blk.0.ffn_down.weight");
    assert_non_null(t);
    assert_int_equal(t->type, HN_F32);
    assert_int_equal(t->ne[0], E);
    assert_int_equal(t->ne[1], E);
    return (const float *)t->data;
}

/* x[i] = want[i] · by */
static void equal(const float *x, const float *want, size_t n, float by)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != want[i] * by) fail_msg("element %zu is %g, expected %g", i, (double)x[i], (double)(want[i] * by));
}

/* ---- configs and matrices of several tests ----- */

#define GROUPS(format, weights)                                                                        \
    "\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"" format "\", " \
    "\"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"], \"weights\": {" weights "}}}}"

#define GPTQ(more) "\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 16" more "}"

/* Columns of codes; zeros stored less one; the group of each column. */
static void add_gptq(int32_t group)
{
    uint32_t q[4][E], z[2][4];
    uint16_t scale[2][E];
    int32_t order[E];
    for (int o = 0; o < E; o++) {
        q[0][o] = q[2][o] = 0x76543210;
        q[1][o] = q[3][o] = 0xFEDCBA98;
        scale[0][o] = 0x3C00; /* F16: 1 */
        scale[1][o] = (uint16_t)(o == 9 ? 0x4400 : 0x3800);
        order[o] = o % 2 ? group : 0;
    }
    for (int w = 0; w < 4; w++) z[0][w] = 0x77777777, z[1][w] = 0x2222222F; /* rows 0, 8, …: 15 + 1 is 0 */
    add(DOWN "qweight", "I32", "4, 32", q, sizeof q);
    add(DOWN "qzeros", "I32", "2, 4", z, sizeof z);
    add(DOWN "scales", "F16", "2, 32", scale, sizeof scale);
    add(DOWN "g_idx", "I32", "32", order, sizeof order);
}
#define AUTO_ROUND(method, group, more) \
    "\"quantization_config\": {\"quant_method\": \"" method "\", \"bits\": 4, \"group_size\": " group more "}"

#endif
