/* Adapters of every family, on the published vectors' models (tests/golden/families): of all matrices that PEFT has
 * names for, run beside the base and merged into it they give the same logits; as a PEFT folder and back they do too;
 * the modules have the names of transformers' classes. What no product takes by rows is refused by name.
 * tests/dev/check_lora_families.py holds them against merged weights in double and rows ordered by hand. */
#include "engine/engine.h"
#include "family_vectors.h"
#include "model/lora_modules.h"

#include <dirent.h>
#include <math.h>

enum { CTX = 64, MOST = 512, MOST_LOGITS = MAX_TOK * MAX_VOCAB };

/* Modules that transformers' classes have (named_modules of tiny models of each). */
static const struct {
    const char *arch, *module[3];
} known[] = {
    { "llama", { "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj" } },
    { "gemma3", { "model.layers.0.self_attn.o_proj", "model.layers.0.mlp.gate_proj" } },
    { "olmo2", { "model.layers.0.self_attn.k_proj", "model.layers.0.mlp.up_proj" } },
    { "phi3", { "model.layers.0.self_attn.qkv_proj", "model.layers.0.mlp.gate_up_proj" } },
    { "glm4", { "model.layers.0.self_attn.v_proj", "model.layers.0.mlp.gate_up_proj" } },
    { "phi2", { "model.layers.0.self_attn.dense", "model.layers.0.mlp.fc1" } },
    { "chatglm", { "model.layers.0.self_attn.v_proj", "model.layers.0.mlp.gate_up_proj" } },
    { "stablelm", { "model.layers.0.self_attn.o_proj", "model.layers.0.mlp.gate_proj" } },
    { "nemotron", { "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.up_proj" } },
    { "starcoder", { "transformer.h.0.attn.c_attn", "transformer.h.0.mlp.c_proj" } },
    { "hunyuan-moe", { "model.layers.0.mlp.shared_mlp.up_proj" } },
    { "starcoder2", { "model.layers.0.mlp.c_fc", "model.layers.0.mlp.c_proj" } },
    { "gptneox", { "gpt_neox.layers.0.attention.query_key_value", "gpt_neox.layers.0.mlp.dense_h_to_4h" } },
    { "bloom", { "transformer.h.0.self_attention.query_key_value", "transformer.h.0.mlp.dense_h_to_4h" } },
    { "mpt", { "transformer.blocks.0.attn.Wqkv", "transformer.blocks.0.ffn.down_proj" } },
    { "gpt2", { "transformer.h.0.attn.c_attn", "transformer.h.0.mlp.c_proj" } },
    { "deepseek2", { "model.layers.0.self_attn.kv_a_proj_with_mqa", "mlp.shared_experts.up_proj" } },
    { "llama4", { "feed_forward.shared_expert.gate_proj" } },
    { "qwen2moe", { "model.layers.0.mlp.shared_expert.up_proj", "model.layers.0.mlp.shared_expert_gate" } },
    { "granitehybrid", { "mamba.in_proj", "mamba.out_proj", "shared_mlp.input_linear" } },
    { "lfm2", { "conv.in_proj", "self_attn.out_proj", "feed_forward.w1" } },
    { "nemotron_h", { "mixer.in_proj", "mixer.q_proj", "mixer.up_proj" } },
    { "mamba", { "backbone.layers.0.mixer.x_proj", "backbone.layers.0.mixer.dt_proj" } },
    { "jamba", { "mamba.in_proj", "self_attn.o_proj", "feed_forward.gate_proj" } },
    { "mamba2", { "backbone.layers.0.mixer.out_proj" } },
    { "granite_swa", { "self_attn.v_proj", "self_attn.o_proj" } },
    { "step35", { "self_attn.g_proj", "mlp.shared_experts.gate_proj", "mlp.down_proj" } },
    { "laguna", { "self_attn.g_proj", "mlp.shared_experts.up_proj", "mlp.down_proj" } },
    { "muse-glimmer", { "self_attn.q_proj", "self_attn.gate_proj", "mlp.gate_proj" } },
    { "olmo", { "model.layers.0.self_attn.k_proj", "model.layers.0.mlp.up_proj" } },
    { "bitnet", { "self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj" } },
    { "deepseek32", { "self_attn.q_a_proj", "self_attn.indexer.wq_b", "self_attn.indexer.weights_proj" } },
    { "mimo2", { "self_attn.q_proj", "self_attn.v_proj", "self_attn.o_proj" } },
    { "openelm", { "transformer.layers.1.attn.qkv_proj", "transformer.layers.2.ffn.proj_1" } },
    { "dbrx", { "transformer.blocks.1.norm_attn_norm.attn.Wqkv" } },
    { "nanbeige", { "model.layers.1.self_attn.k_proj", "mlp.up_proj" } },
    { "hrm_text", { "model.L_module.layers.0.self_attn.gate_proj", "model.H_module.layers.1.mlp.up_proj" } },
    { "spark2_5", { "self_attn.q_k_v_proj", "self_attn.g_proj", "mlp.gate_proj" } },
    { "qwen35", { "self_attn.q_proj", "linear_attn.in_proj_qkv", "linear_attn.out_proj" } },
    { "qwen35moe", { "linear_attn.in_proj_z", "linear_attn.in_proj_b", "linear_attn.in_proj_a" } },
    { "qwen4exp",
      { "attn_hyper_connection.input_mix_weight_up", "self_attn.indexer.index_qk_proj", "linear_attn.in_proj_qkv" } },
    { "qwen3next", { "linear_attn.out_proj", "self_attn.o_proj", "mlp.shared_expert.down_proj" } },
};

/* ---- an adapter ------------------------------------------------------------------------------------------ */

static float *drawn(uint64_t key, int64_t n, double size)
{
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(((double)(hn_rand64(key, (uint64_t)i) >> 11) * 0x1p-52 - 1) * size);
    return x;
}

/* Pairs of all tensors that are modules of layers; ranks differ. Without names (falcon-h1): all matrices of layers. */
static int32_t make_pairs(hn_lora_pair pair[MOST], const hone_model *m)
{
    int32_t n = 0;
    for (uint64_t i = 0; i < hn_gguf_n_tensors(m->file); i++) {
        const hn_gguf_tensor *t = hn_gguf_tensor_at(m->file, i);
        char name[HN_GGUF_MAX_NAME + 1], module[HN_MAX_PART][HN_LORA_NAME];
        hn_lora_place at, to[HN_MAX_PART];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        if (m->bound[i] != HN_BOUND_MATRIX || t->ne[2] != 1 || !hn_module_tensor(&at, m, name)) continue;
        if (!hn_modules_refused(m) && hn_modules_of(module, to, m, &at) < 0) continue;
        int64_t rank = 2 + n % 2, n_in = (int64_t)t->ne[0], n_out = (int64_t)t->ne[1];
        assert_true(n < MOST);
        pair[n] = (hn_lora_pair){ .name = strdup(name),
                                  .n_in = n_in,
                                  .n_out = n_out,
                                  .rank = rank,
                                  .a = drawn(2 * i, rank * n_in, 1 / sqrt((double)n_in)),
                                  .b = drawn(2 * i + 1, rank * n_out, 0.5),
                                  .scale = 3.0f / (float)rank };
        n++;
    }
    return n;
}

static void run(float *y, const vector *v, const hone_model *m, const char *adapter)
{
    hone_error err = { 0 };
    hone_adapter *a = NULL;
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, m, CTX, 1, v->n, HONE_CACHE_F32);
    if (adapter && hone_adapter_open(&a, m, adapter, &err)) fail_msg("%s: %s", v->name, err.message);
    if (a && hone_session_set_adapters(s, &a, NULL, 1, &err)) fail_msg("%s: %s", v->name, err.message);
    tm_run(s, 0, v->tok, v->n, y);
    hone_session_free(s);
    hone_adapter_close(a);
    hone_context_free(c);
}

/* The farthest logit as a part of the range of a. */
static double apart(const vector *v, const float *a, const float *b)
{
    double far = 0, lo = INFINITY, hi = -INFINITY;
    for (int i = 0; i < v->n * v->n_vocab; i++) {
        far = fmax(far, fabs((double)a[i] - (double)b[i]));
        lo = fmin(lo, (double)a[i]), hi = fmax(hi, (double)a[i]);
    }
    return far / (hi - lo);
}

/* ---- what is checked ------------------------------------------------------------------------------------- */

static void check_names(const hone_model *m, const char *folder)
{
    char path[256], text[1 << 16];
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    for (size_t i = 0; i < n; i++) text[i] = text[i] ? text[i] : ' ';
    text[n] = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int k = 0; k < 3 && known[i].module[k] && !strcmp(known[i].arch, m->arch->name); k++) {
            char full[128];
            if (m->plan->ffn == HN_FFN_MOE && strstr(known[i].module[k], ".mlp.down_proj")) continue; /* Mixtral */
            snprintf(full, sizeof full, "%s.lora_A.weight\"", known[i].module[k]);
            if (!strstr(text, full)) fail_msg("%s: no module %s in its folder", m->arch->name, known[i].module[k]);
        }
}

static void check_adapter(const vector *v, const hone_model *m)
{
    static hn_lora_pair pair[MOST];
    static float base[MOST_LOGITS], with[MOST_LOGITS], merged[MOST_LOGITS], folder[MOST_LOGITS];
    hone_error err = { 0 };
    const char *gguf = tm_path("a.gguf"), *out = tm_path("merged.gguf"), *peft = tm_path("peft");
    int32_t n = make_pairs(pair, m);
    assert_true(n > 0);
    const hn_lora_about about = { .name = "a", .arch = m->arch->name, .alpha = 3, .type = HN_F32 };
    if (hn_lora_write_gguf(gguf, pair, n, &about, &err)) fail_msg("%s: %s", v->name, err.message);
    for (int32_t i = 0; i < n; i++) free(pair[i].name), free(pair[i].a), free(pair[i].b);
    run(base, v, m, NULL);
    run(with, v, m, gguf);
    if (!(apart(v, with, base) > 1e-3)) fail_msg("%s: the adapter changes nothing", v->name);
    const hone_merge_params p = { .base = m->path, .adapters = &gguf, .n_adapters = 1 };
    hone_model *other = NULL;
    if (hone_merge(&p, out, NULL, &err) || hone_model_open(&other, out, NULL, &err))
        fail_msg("%s: %s", v->name, err.message);
    run(merged, v, other, NULL);
    hone_model_close(other);
    if (!(apart(v, with, merged) <= 2e-5)) fail_msg("%s: merged %.3g apart", v->name, apart(v, with, merged));
    if (hn_modules_refused(m)) {
        assert_int_equal(hone_adapter_convert(m, gguf, peft, false, &err), HONE_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, m->arch->name));
        return;
    }
    if (hone_adapter_convert(m, gguf, peft, false, &err)) fail_msg("%s: %s", v->name, err.message);
    check_names(m, peft);
    run(folder, v, m, peft);
    if (!(apart(v, with, folder) <= 2e-5)) fail_msg("%s: as a folder %.3g apart", v->name, apart(v, with, folder));
}

/* A matrix that takes part otherwise than by its rows: an adapter of it would be left out in silence. */
static int check_refused(const hone_model *m)
{
    static const char *const names[] = { "position_embd.weight", "blk.1.attn_k_b.weight", "blk.1.ffn_up_exps.weight" };
    int n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, names[i]);
        if (!t) continue;
        hone_error err = { 0 };
        hone_adapter *a;
        char name[64];
        snprintf(name, sizeof name, "%s", names[i]);
        hn_lora_pair p = { .name = name, .n_in = (int64_t)t->ne[0], .n_out = (int64_t)t->ne[1], .rank = 1, .scale = 1 };
        p.a = drawn(1, p.n_in, 1), p.b = drawn(2, p.n_out, 1);
        const hn_lora_about about = { .name = "a", .arch = m->arch->name, .alpha = 1, .type = HN_F32 };
        assert_int_equal(hn_lora_write_gguf(tm_path("r.gguf"), &p, 1, &about, &err), HONE_OK);
        assert_int_equal(hone_adapter_open(&a, m, tm_path("r.gguf"), &err), HONE_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, names[i]));
        free(p.a), free(p.b);
        n++;
    }
    return n;
}

static void families(void **state)
{
    DIR *folder = opendir(FOLDER);
    int n = 0, refused = 0;
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        if (!strstr(e->d_name, ".json")) continue;
        vector v = load(e->d_name);
        hone_model *m = NULL;
        hone_error err = { 0 };
        save_as(&v, tm_path("base.gguf"), NULL, AS_IS);
        if (hone_model_open(&m, tm_path("base.gguf"), NULL, &err)) fail_msg("%s: %s", v.name, err.message);
        check_adapter(&v, m);
        refused += check_refused(m);
        hone_model_close(m);
        n++;
        json_decref(v.j);
    }
    closedir(folder);
    assert_int_equal(n, N_VECTOR);
    assert_true(refused >= 3);
}

/* Granite 4.0's dense models are granite in files; their class calls gate and up one module. */
static void modules_of_granite_4(void **state)
{
    static const struct {
        const char *module, *tensor;
        int n_part;
    } list[] = { { "model.layers.1.shared_mlp.input_linear", "blk.1.ffn_gate.weight", 2 },
                 { "model.layers.1.shared_mlp.output_linear", "blk.1.ffn_down.weight", 1 },
                 { "model.layers.1.mlp.gate_proj", "blk.1.ffn_gate.weight", 1 } };
    vector v = load("granite.json");
    hone_model *m = NULL;
    hone_error err = { 0 };
    save_as(&v, tm_path("base.gguf"), NULL, AS_IS);
    if (hone_model_open(&m, tm_path("base.gguf"), NULL, &err)) fail_msg("%s: %s", v.name, err.message);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        hn_lora_place at;
        char tensor[96];
        bool alone;
        hone_str name = { list[i].module, strlen(list[i].module) };
        if (!hn_module_find(&at, tensor, &alone, m, name)) fail_msg("no module %s", list[i].module);
        assert_string_equal(tensor, list[i].tensor);
        assert_int_equal(at.il, 1);
        assert_int_equal(at.n_part, list[i].n_part);
        assert_int_equal(alone, list[i].n_part == 1);
        if (list[i].n_part == 2) assert_int_equal(at.part[1].field, offsetof(hn_layer, ffn_up));
    }
    hone_model_close(m);
    json_decref(v.j);
}

/* Qwen3.5's delta rule: heads of values stand by their key in modules, and in tiles in the file; rows of what goes in,
 * columns of what comes out. */
static void tiles_of_qwen35(void **state)
{
    static const char *const names[] = { "in_proj_qkv", "in_proj_z", "in_proj_b", "out_proj" };
    static float from[1 << 12], one[1 << 12], a[1 << 12], b[1 << 12];
    vector v = load("qwen35.json");
    hone_model *m = NULL;
    hone_error err = { 0 };
    save_as(&v, tm_path("base.gguf"), NULL, AS_IS);
    if (hone_model_open(&m, tm_path("base.gguf"), NULL, &err)) fail_msg("%s: %s", v.name, err.message);
    const int d = m->hp.ssm_state, n_key = m->hp.ssm_group, each = m->hp.ssm_head / n_key;
    assert_true(each > 1 && n_key > 1);
    for (int i = 0; i < 1 << 12; i++) from[i] = (float)i, one[i] = 1;
    for (int i = 0; i < 4; i++) {
        const int front = i ? 0 : 2 * n_key * d, per = i == 2 ? 1 : d, n = front + n_key * each * per;
        char module[96], tensor[96];
        float scale;
        bool alone;
        hn_lora_place at, to;
        snprintf(module, sizeof module, "model.layers.0.linear_attn.%s", names[i]);
        if (!hn_module_find(&at, tensor, &alone, m, (hone_str){ module, strlen(module) })) fail_msg("no %s", module);
        assert_false(alone);
        assert_true(hn_module_tensor(&to, m, tensor));
        const hn_lora_thing t = { at, { .a = i == 3 ? from : one, .b = i == 3 ? one : from, .rank = 1, .scale = 1 } };
        hn_lora_thing thing = t;
        thing.pair.n_in = i == 3 ? n : m->hp.n_embd;
        hn_modules_gather(a, b, &scale, &to, 1, &thing, 1, m->hp.head_dim);
        const float *x = i == 3 ? a : b;
        for (int r = 0; r < front; r++) assert_true(x[r] == (float)r);
        for (int k = 0; k < n_key; k++)
            for (int j = 0; j < each; j++)
                for (int e = 0; e < per; e++)
                    assert_true(x[front + (j * n_key + k) * per + e] == (float)(front + (k * each + j) * per + e));
    }
    hone_model_close(m);
    json_decref(v.j);
}

/* The file of a vector under another maker's name. */
static void call_arch(const vector *v, const char *from, const char *to)
{
    size_t i, n = strlen(from);
    json_t *kv;
    char key[128];
    json_array_foreach(json_object_get(v->j, "kv"), i, kv)
    {
        const char *name = json_string_value(json_array_get(kv, 0));
        if (!strcmp(name, "general.architecture")) json_array_set_new(kv, 2, json_string(to));
        if (strncmp(name, from, n) != 0 || name[n] != '.') continue;
        if (!strcmp(to, "qwen") && !strcmp(name + n, ".feed_forward_length")) /* that of gate and up together */
            json_array_set_new(kv, 2, json_integer(2 * json_integer_value(json_array_get(kv, 2))));
        snprintf(key, sizeof key, "%s%s", to, name + n);
        json_array_set_new(kv, 0, json_string(key));
    }
}

/* Row r of part k (q, k, v) of the fused module, of `each` heads of queries for each of keys, whose halves are apart
 * there where the file's pairs are neighbours. */
static int64_t dealt_row(int k, int64_t r, int64_t d, int64_t each, bool turned)
{
    int64_t head = r / d, in = r % d;
    int64_t slot = k ? head * (each + 2) + each + k - 1 : head / each * (each + 2) + head % each;
    if (turned && k < 2) in = in % 2 * (d / 2) + in / 2;
    return slot * d + in;
}

/* Modules of models that are another family by their formula: their names, read and written; q, k and v in one matrix,
 * for each head of keys in turn. */
static void modules_of_others(void **state)
{
    static const struct {
        const char *vector, *from, *arch, *module, *tensor;
        int dealt; /* 1: q, k, v by heads; 2: turned, too */
    } list[] = {
        { "mistral.json", "llama", "internlm2", "model.layers.1.attention.wqkv", "blk.1.attn_q.weight", 2 },
        { "mistral.json", "llama", "internlm2", "model.layers.0.feed_forward.w3", "blk.0.ffn_up.weight", 0 },
        { "phi2.json", "phi2", "falcon", "transformer.h.1.self_attention.query_key_value", "blk.1.attn_q.weight", 1 },
        { "phi2.json", "phi2", "falcon", "transformer.h.0.mlp.dense_4h_to_h", "blk.0.ffn_down.weight", 0 },
        { "starcoder2.json", "starcoder2", "codeshell", "transformer.h.1.attn.c_attn", "blk.1.attn_q.weight", 0 },
        { "mistral.json", "llama", "qwen", "transformer.h.1.attn.c_attn", "blk.1.attn_q.weight", 0 },
        { "mistral.json", "llama", "qwen", "transformer.h.0.mlp.w2", "blk.0.ffn_gate.weight", 0 },
        { "bailingmoe2.json", "bailingmoe2", "hy_v3", "model.layers.1.mlp.shared_experts.up_proj",
          "blk.1.ffn_up_shexp.weight", 0 },
    };
    static float one[1 << 10], from[1 << 12], a[1 << 12], b[1 << 12];
    for (int i = 0; i < 1 << 12; i++) from[i] = (float)i;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        vector v = load(list[i].vector);
        hone_model *m = NULL;
        hone_error err = { 0 };
        char tensor[96], names[HN_MAX_PART][HN_LORA_NAME];
        bool alone, found = false;
        hn_lora_place at, to[HN_MAX_PART], as;
        call_arch(&v, list[i].from, list[i].arch);
        save_as(&v, tm_path("base.gguf"), NULL, AS_IS);
        if (hone_model_open(&m, tm_path("base.gguf"), NULL, &err)) fail_msg("%s: %s", list[i].arch, err.message);
        assert_null(hn_modules_unwritten(m));
        hone_str name = { list[i].module, strlen(list[i].module) };
        if (!hn_module_find(&at, tensor, &alone, m, name)) fail_msg("no module %s", list[i].module);
        const int n_tensor = hn_modules_tensors(names, to, m, &at);
        if (n_tensor == 1) assert_string_equal(names[0], tensor);
        assert_true(n_tensor >= 1 && hn_module_tensor(&as, m, names[0]));
        const int n = hn_modules_of(names, to, m, &as);
        for (int k = 0; k < n; k++) found = found || !strcmp(names[k], list[i].module);
        if (!found) fail_msg("%s is not called %s again", tensor, list[i].module);
        for (int k = 0; k < at.n_part && list[i].dealt; k++) {
            float scale;
            const int64_t d = m->hp.head_dim, each = m->hp.n_head / m->hp.n_head_kv;
            hn_lora_place part = { .il = at.il, .n_part = 1 };
            part.part[0] = at.part[k];
            const hn_lora_thing t = { at, { .a = one, .b = from, .rank = 1, .n_in = m->hp.n_embd, .scale = 1 } };
            hn_modules_gather(a, b, &scale, &part, 1, &t, 1, d);
            for (int64_t r = 0; r < part.part[0].rows; r++)
                if (b[r] != (float)dealt_row(k, r, d, each, list[i].dealt == 2))
                    fail_msg("%s: row %d of part %d is %g", list[i].arch, (int)r, k, (double)b[r]);
        }
        hone_model_close(m);
        json_decref(v.j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(modules_of_others), cmocka_unit_test(families),
                                        cmocka_unit_test(modules_of_granite_4), cmocka_unit_test(tiles_of_qwen35) };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
