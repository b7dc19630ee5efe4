/* PEFT folders: an adapter that PEFT saved means what PEFT says it means (the golden
 * folder, by tests/golden/make_lora.py); what hone writes is the same adapter again;
 * configs that ask for another formula are refused by name. */
#include "model/lora.h"
#include "../fuzz/torch_bytes.h"
#include "model/ckpt.h"
#include "tiny_model.h"

#include <math.h>
#include <sys/stat.h>

#define GOLDEN "tests/golden/lora_peft"

static tiny *t;
static hone_model *base;

static const hn_lora_pair *pair_of(const hn_lora *l, const char *name)
{
    for (int32_t i = 0; i < l->n_pair; i++)
        if (!strcmp(l->pair[i].name, name)) return &l->pair[i];
    fail_msg("no pair for %s", name);
    return NULL;
}

static void check_golden(const hn_lora *l)
{
    FILE *f = fopen(GOLDEN "/delta.txt", "r");
    char name[64];
    long r, c, n = 0;
    double want;
    assert_non_null(f);
    while (fscanf(f, "%63s %ld %ld %lf", name, &r, &c, &want) == 4) {
        const hn_lora_pair *p = pair_of(l, name);
        double d = 0;
        for (int64_t j = 0; j < p->rank; j++) d += (double)p->b[r * p->rank + j] * (double)p->a[j * p->n_in + c];
        d *= (double)p->scale;
        if (fabs(d - want) > 2e-6 * (1 + fabs(want)))
            fail_msg("%s[%ld][%ld] is %.9g, PEFT has %.9g", name, r, c, d, want);
        n++;
    }
    fclose(f);
    assert_int_equal(n, 180);
}

static void golden(void **state)
{
    hone_error err = { 0 };
    hn_lora *l;
    if (hn_lora_open(&l, base, GOLDEN, &err)) fail_msg("%s", err.message);
    assert_int_equal(l->n_pair, 15);
    assert_true(pair_of(l, "blk.0.attn_k.weight")->rank == 3 && pair_of(l, "output.weight")->rank == 2);
    check_golden(l);
    hn_lora_close(l);
}

static void copy_file(const char *from, const char *to)
{
    char text[65536];
    FILE *f = fopen(from, "rb"), *o = fopen(to, "wb");
    assert_true(f && o);
    for (size_t n; (n = fread(text, 1, sizeof text, f));) assert_int_equal(fwrite(text, 1, n, o), n);
    fclose(f);
    assert_int_equal(fclose(o), 0);
}

static void text32(tb_bytes *b, const char *s, size_t n)
{
    tb_add(b, "X", 1);
    tb_num(b, 4, n);
    tb_add(b, s, n);
}
static void whole32(tb_bytes *b, uint64_t v)
{
    tb_add(b, "J", 1);
    tb_num(b, 4, v);
}

/* The tensors of a safetensors file as torch.save writes them: each its own storage, every second one turned. */
static void as_torch(const char *from, const char *to)
{
    enum { MOST = 64 };
    static char names[MOST][32];
    hone_error err;
    hn_ckpt *c;
    int32_t part;
    tb_member m[MOST + 2];
    tb_bytes pickle = { 0 };
    if (hn_ckpt_new(&c, from, &err) || hn_ckpt_add_part(c, from, &part, &err) || hn_safetensors_read(c, part, &err))
        fail_msg("%s", err.message);
    assert_true(c->n <= MOST);
    tb_add(&pickle, "\x80\2}", 3);
    for (size_t i = 0; i < c->n; i++) {
        const hn_ckpt_tensor *x = &c->t[i];
        uint64_t rows = x->ne[1], cols = x->ne[0], n = rows * cols;
        bool turned = i % 2;
        float *v = malloc(n * 4), *w = malloc(n * 4);
        char key[8];
        assert_true(v && w && x->type == HN_F32);
        assert_int_equal(hn_source_read(&c->part[part], x->off, v, n * 4, &err), HONE_OK);
        for (uint64_t r = 0; r < rows; r++)
            for (uint64_t k = 0; k < cols; k++) w[turned ? k * rows + r : r * cols + k] = v[r * cols + k];
        free(v);
        snprintf(key, sizeof key, "%zu", i);
        snprintf(names[i], sizeof names[i], "X/data/%zu", i);
        m[i + 1] = (tb_member){ names[i], w, n * 4 };
        text32(&pickle, x->name.ptr, x->name.len);
        tb_add(&pickle, TB_BYTES(TB_TENSOR "(("));
        text32(&pickle, "storage", 7);
        tb_add(&pickle, TB_BYTES("ctorch\nFloatStorage\n"));
        text32(&pickle, key, strlen(key));
        text32(&pickle, "cpu", 3);
        whole32(&pickle, n);
        tb_add(&pickle, TB_BYTES("tQK\0"));
        whole32(&pickle, rows), whole32(&pickle, cols);
        tb_add(&pickle, "\x86", 1);
        whole32(&pickle, turned ? 1 : cols), whole32(&pickle, turned ? rows : 1);
        tb_add(&pickle, TB_BYTES("\x86" TB_HOOKS "tRs"));
    }
    tb_add(&pickle, ".", 1);
    m[0] = (tb_member){ "X/data.pkl", pickle.p, pickle.n };
    m[c->n + 1] = (tb_member){ "X/version", "3\n", 2 };
    tb_bytes all = tb_archive(m, c->n + 2, 0);
    FILE *o = fopen(to, "wb");
    assert_true(o && fwrite(all.p, 1, all.n, o) == all.n && fclose(o) == 0);
    for (size_t i = 0; i <= c->n; i++) free((void *)(uintptr_t)m[i].data);
    free(all.p);
    hn_ckpt_free(c);
}

/* Where there is no safetensors, PyTorch's own file is read; where there is, it is not looked at. */
static void by_torch(void **state)
{
    static const char *const names[] = { "adapter_model.safetensors", "adapter_model.bin", "adapter_config.json" };
    hone_error err = { 0 };
    hn_lora *l, *again;
    char folder[200], file[3][260];
    snprintf(folder, sizeof folder, "%s", tm_path("torch"));
    mkdir(folder, 0777);
    for (int i = 0; i < 3; i++) snprintf(file[i], sizeof file[i], "%s/%s", folder, names[i]);
    copy_file(GOLDEN "/adapter_config.json", file[2]);
    as_torch(GOLDEN "/adapter_model.safetensors", file[1]);
    if (hn_lora_open(&again, base, folder, &err)) fail_msg("%s", err.message);
    check_golden(again);
    if (hn_lora_open(&l, base, GOLDEN, &err)) fail_msg("%s", err.message);
    assert_int_equal(again->hash, l->hash);
    hn_lora_close(again);
    copy_file(GOLDEN "/adapter_config.json", file[1]); /* no archive */
    assert_int_equal(hn_lora_open(&again, base, folder, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, file[1]));
    copy_file(GOLDEN "/adapter_model.safetensors", file[0]);
    if (hn_lora_open(&again, base, folder, &err)) fail_msg("%s", err.message);
    assert_int_equal(again->hash, l->hash);
    hn_lora_close(again);
    hn_lora_close(l);
    for (int i = 0; i < 3; i++) remove(file[i]);
    assert_int_equal(rmdir(folder), 0);
}

/* PEFT → GGUF and PEFT → PEFT by way of hone. */
static void there_and_back(void **state)
{
    hone_error err = { 0 };
    hn_lora *l, *again;
    char path[2][200];
    snprintf(path[0], sizeof path[0], "%s", tm_path("a.gguf"));
    snprintf(path[1], sizeof path[1], "%s", tm_path("folder"));
    if (hn_lora_open(&l, base, GOLDEN, &err)) fail_msg("%s", err.message);
    for (int i = 0; i < 2; i++) {
        if (hone_adapter_convert(base, GOLDEN, path[i], false, &err)) fail_msg("%s", err.message);
        if (hn_lora_open(&again, base, path[i], &err)) fail_msg("%s", err.message);
        assert_int_equal(again->n_pair, 15);
        check_golden(again);
        for (int32_t k = 0; k < l->n_pair; k++)
            assert_memory_equal(again->pair[k].a, l->pair[k].a,
                                (size_t)(l->pair[k].rank * l->pair[k].n_in) * sizeof(float));
        if (i == 1)
            for (int32_t k = 0; k < l->n_pair; k++)
                assert_memory_equal(again->pair[k].b, l->pair[k].b,
                                    (size_t)(l->pair[k].rank * l->pair[k].n_out) * sizeof(float));
        hn_lora_close(again);
    }
    hn_lora_close(l);
    char file[260];
    snprintf(file, sizeof file, "%s/adapter_config.json", path[1]), remove(file);
    snprintf(file, sizeof file, "%s/adapter_model.safetensors", path[1]), remove(file);
    assert_int_equal(rmdir(path[1]), 0); /* and nothing else was in it */
}

/* The template of its conversations goes with an adapter: into a folder, out of it, and not with the next one. */
static void the_template(void **state)
{
    const char *const jinja = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}\xC3\xA9";
    hone_error err = { 0 };
    hn_lora *l, *again;
    char folder[200], file[260], gguf[200], text[200] = "";
    snprintf(folder, sizeof folder, "%s", tm_path("talker"));
    snprintf(gguf, sizeof gguf, "%s", tm_path("talker.gguf"));
    snprintf(file, sizeof file, "%s/chat_template.jinja", folder);
    if (hn_lora_open(&l, base, GOLDEN, &err)) fail_msg("%s", err.message);
    assert_string_equal(l->chat_template, "");
    hn_lora_about about = { .arch = "llama", .alpha = 1, .type = HN_F32, .chat_template = jinja };
    if (hn_lora_write_peft(folder, base, l->pair, l->n_pair, &about, &err)) fail_msg("%s", err.message);
    FILE *f = fopen(file, "r"); /* as it is, in the file that transformers looks for */
    assert_true(f && fread(text, 1, sizeof text - 1, f) == strlen(jinja) && fclose(f) == 0);
    assert_string_equal(text, jinja);
    if (hn_lora_open(&again, base, folder, &err)) fail_msg("%s", err.message);
    assert_string_equal(again->chat_template, jinja);
    hn_lora_close(again);
    if (hone_adapter_convert(base, folder, gguf, false, &err)) fail_msg("%s", err.message);
    if (hn_lora_open(&again, base, gguf, &err)) fail_msg("%s", err.message);
    assert_string_equal(again->chat_template, jinja);
    hn_lora_close(again);
    f = fopen(file, "w");
    assert_true(f && fwrite("a\0b", 1, 3, f) == 3 && fclose(f) == 0);
    assert_int_equal(hn_lora_open(&again, base, folder, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, file));
    about.chat_template = NULL;
    if (hn_lora_write_peft(folder, base, l->pair, l->n_pair, &about, &err)) fail_msg("%s", err.message);
    assert_int_not_equal(access(file, F_OK), 0);
    hn_lora_close(l);
    snprintf(file, sizeof file, "%s/adapter_config.json", folder), remove(file);
    snprintf(file, sizeof file, "%s/adapter_model.safetensors", folder), remove(file);
    assert_int_equal(rmdir(folder), 0);
    remove(gguf);
}

/* Another adapter over one that was there, stopped on the way: its tensors never go with the scale of the other. */
static void halfway(void **state)
{
    float a[32] = { 1 }, b[32] = { 1 };
    hn_lora_pair pair = {
        .name = (char *)"blk.1.attn_q.weight", .n_in = 32, .n_out = 32, .rank = 1, .a = a, .b = b, .scale = 8
    };
    hn_lora_about about = { .arch = "llama", .alpha = 8, .type = HN_F32 };
    hone_error err = { 0 };
    hn_lora *l;
    char folder[200], file[260], inside[280], config[260];
    snprintf(folder, sizeof folder, "%s", tm_path("halfway"));
    if (hn_lora_write_peft(folder, base, &pair, 1, &about, &err)) fail_msg("%s", err.message);
    snprintf(file, sizeof file, "%s/chat_template.jinja", folder);
    snprintf(inside, sizeof inside, "%s/x", file);
    assert_true(mkdir(file, 0700) == 0 && mkdir(inside, 0700) == 0);
    b[0] = 3; /* the same scale: it stays what it is */
    assert_int_equal(hn_lora_write_peft(folder, base, &pair, 1, &about, &err), HONE_E_IO);
    snprintf(config, sizeof config, "%s/adapter_config.json", folder);
    assert_int_equal(access(config, F_OK), 0);
    pair.scale = 2;
    about.alpha = 2;
    b[0] = 5;
    assert_int_equal(hn_lora_write_peft(folder, base, &pair, 1, &about, &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "chat_template.jinja"));
    assert_true(rmdir(inside) == 0 && rmdir(file) == 0); /* which would be refused, too */
    assert_int_not_equal(hn_lora_open(&l, base, folder, &err), HONE_OK);
    if (hn_lora_write_peft(folder, base, &pair, 1, &about, &err)) fail_msg("%s", err.message);
    if (hn_lora_open(&l, base, folder, &err)) fail_msg("%s", err.message);
    assert_true(l->pair[0].scale == 2 && l->pair[0].b[0] == 5);
    hn_lora_close(l);
    /* a config that does not go: nothing is touched */
    snprintf(file, sizeof file, "%s/adapter_config.json", folder);
    assert_true(remove(file) == 0 && mkdir(file, 0700) == 0);
    b[0] = 7;
    assert_int_not_equal(hn_lora_write_peft(folder, base, &pair, 1, &about, &err), HONE_OK);
    assert_non_null(strstr(err.message, "adapter_config.json"));
    assert_int_equal(rmdir(file), 0);
    snprintf(file, sizeof file, "%s/adapter_model.safetensors", folder), remove(file);
    assert_int_equal(rmdir(folder), 0);
}

/* Facts that a trainer has, as PEFT's config says them. */
static void facts(void **state)
{
    float a[2 * 32] = { 0 }, b[32 * 2] = { 0 };
    hn_lora_pair pair = {
        .name = (char *)"blk.1.attn_q.weight", .n_in = 32, .n_out = 32, .rank = 2, .a = a, .b = b, .scale = 8 / sqrtf(2)
    };
    hn_lora_about about = { .arch = "llama",
                            .base_name = "a \"base\"",
                            .alpha = 8 * sqrtf(2),
                            .dropout = 0.25f,
                            .rslora = true,
                            .type = HN_F16 };
    hone_error err = { 0 };
    char path[200], file[260], text[2000] = "";
    for (int i = 0; i < 64; i++) b[i] = (float)i;
    snprintf(path, sizeof path, "%s", tm_path("facts"));
    if (hn_lora_write_peft(path, base, &pair, 1, &about, &err)) fail_msg("%s", err.message);
    snprintf(file, sizeof file, "%s/adapter_config.json", path);
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    assert_non_null(strstr(text, "\"a \\\"base\\\"\""));
    assert_non_null(strstr(text, "\"lora_alpha\": 8,"));
    assert_non_null(strstr(text, "\"lora_dropout\": 0.25"));
    assert_non_null(strstr(text, "\"use_rslora\": true"));
    assert_non_null(strstr(text, "[\"model.layers.1.self_attn.q_proj\"]")); /* not every layer has it */
    hn_lora *l;
    if (hn_lora_open(&l, base, path, &err)) fail_msg("%s", err.message);
    assert_true(fabsf(l->pair[0].scale - pair.scale) < 1e-6f);
    assert_memory_equal(l->pair[0].b, b, sizeof b);
    hn_lora_close(l);
    remove(file);
    snprintf(file, sizeof file, "%s/adapter_model.safetensors", path), remove(file);
    rmdir(path);
    b[5] = 1e6f; /* no F16: nothing stays behind */
    assert_int_equal(hn_lora_write_peft(path, base, &pair, 1, &about, &err), HONE_E_NUMERIC);
    assert_int_equal(access(path, F_OK), -1);
}

/* ---- refusals ------------------------------------------------------------------------------------ */

/* A folder with this config and, unless NULL, this safetensors header and n floats of `value`. */
static void folder_with(const char *config, const char *head, int n, float value, char path[200])
{
    char file[260];
    snprintf(path, 200, "%s", tm_path("bad"));
    mkdir(path, 0777);
    snprintf(file, sizeof file, "%s/adapter_config.json", path);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(config, f);
    fclose(f);
    snprintf(file, sizeof file, "%s/adapter_model.safetensors", path);
    remove(file);
    if (!head) return;
    f = fopen(file, "w");
    assert_non_null(f);
    uint64_t len = strlen(head);
    for (int i = 0; i < 8; i++) fputc((int)(len >> 8 * i & 255), f);
    fputs(head, f);
    for (int i = 0; i < n; i++) fwrite(&value, 4, 1, f);
    fclose(f);
}
static void refused(const char *config, const char *head, int n, float value, hone_status want, const char *words)
{
    char path[200];
    hone_error err = { 0 };
    hn_lora *l = (void *)1;
    folder_with(config, head, n, value, path);
    hone_status st = hn_lora_open(&l, base, path, &err);
    assert_null(l);
    if (st != want || !strstr(err.message, words))
        fail_msg("%s: %s (expected %s, \"%s\")", hone_status_name(st), err.message, hone_status_name(want), words);
}

#define HEAD "{\"peft_type\": \"LORA\", \"r\": 1, \"lora_alpha\": 2"
#define PAIR(MODULE, IN, OUT, A_END, B_END)                                               \
    "{\"base_model.model." MODULE ".lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[1," #IN \
    "],\"data_offsets\":[0," #A_END "]},"                                                 \
    "\"base_model.model." MODULE ".lora_B.weight\":{\"dtype\":\"F32\",\"shape\":[" #OUT   \
    ",1],\"data_offsets\":[" #A_END "," #B_END "]}}"

static void wrong_configs(void **state)
{
    static const char *const set[] = { "\"use_dora\": true",
                                       "\"bias\": \"all\"",
                                       "\"modules_to_save\": [\"lm_head\"]",
                                       "\"lora_bias\": true",
                                       "\"fan_in_fan_out\": true",
                                       "\"trainable_token_indices\": [1]",
                                       "\"alora_invocation_tokens\": [1, 2]",
                                       "\"layer_replication\": [[0, 1]]",
                                       "\"target_parameters\": [\"x\"]",
                                       "\"init_lora_weights\": \"pissa\"",
                                       "\"use_qalora\": true",
                                       "\"use_bdlora\": {\"nblocks\": 2}",
                                       "\"kasa_config\": {\"beta\": 1e-4}",
                                       "\"arrow_config\": {\"top_k\": 3}",
                                       "\"monteclora_config\": {\"num_samples\": 8}",
                                       "\"use_something\": 1" };
    char config[400];
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        char key[40];
        snprintf(config, sizeof config, HEAD ", %s}", set[i]);
        sscanf(set[i], "\"%39[a-z_]", key);
        refused(config, NULL, 0, 0, HONE_E_UNSUPPORTED, key);
    }
    refused("{\"r\": 1}", NULL, 0, 0, HONE_E_FORMAT, "peft_type");
    refused("{\"peft_type\": \"IA3\"}", NULL, 0, 0, HONE_E_UNSUPPORTED, "IA3");
    refused("{\"peft_type\": \"LORA\", \"r\": 1}", NULL, 0, 0, HONE_E_FORMAT, "lora_alpha");
    refused("{\"peft_type\": \"LORA\", \"r\": \"x\", \"lora_alpha\": 1}", NULL, 0, 0, HONE_E_FORMAT, "\"r\"");
    refused("[]", NULL, 0, 0, HONE_E_FORMAT, "JSON");
    refused(HEAD "}", NULL, 0, 0, HONE_E_IO, "adapter_model.safetensors");
    refused(HEAD ", \"alpha_pattern\": {\".*q_proj\": 3}}", PAIR("model.layers.0.self_attn.q_proj", 32, 32, 128, 256),
            64, 0, HONE_E_UNSUPPORTED, "regular expression");
    refused(HEAD ", \"alpha_pattern\": {\"q_proj\": \"x\"}}", PAIR("model.layers.0.self_attn.q_proj", 32, 32, 128, 256),
            64, 0, HONE_E_FORMAT, "alpha_pattern");
}

/* PEFT 0.21 looks for (.*\.)?KEY$ as a regular expression: what it makes of each, asked of its get_pattern_key. */
static void alpha_patterns(void **state)
{
    static const struct {
        const char *keys;
        float alpha;
    } list[] = {
        { "\"q_proj\": 3", 3 },
        { "\"q.proj\": 3", 3 },
        { "\"self.attn.q_proj\": 3", 3 },
        { "\"proj\": 3", 2 },
        { "\".proj\": 3", 2 },
        { "\"...proj\": 3", 2 },
        { "\"......\": 3", 3 },
        { "\"layers.0.self_attn\": 3", 2 },
        { "\"^model.layers.0.self_attn.q_proj\": 3", 3 },
        { "\"^model.layers.0.self.attn.q.proj\": 3", 3 },
        { "\"^self_attn.q_proj\": 3", 2 },
        { "\"k_proj\": 5, \"q_proj\": 3, \"attn.q_proj\": 4", 3 },
        { "\"attn.q_proj\": 4, \"q_proj\": 3", 3 },
        { "\"layers.1.self_attn.q_proj\": 3", 2 },
    };
    char config[300], path[200];
    hone_error err = { 0 };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        snprintf(config, sizeof config, HEAD ", \"alpha_pattern\": {%s}}", list[i].keys);
        folder_with(config, PAIR("model.layers.0.self_attn.q_proj", 32, 32, 128, 256), 64, 0, path);
        hn_lora *l;
        if (hn_lora_open(&l, base, path, &err)) fail_msg("%s", err.message);
        if (l->pair[0].scale != list[i].alpha) fail_msg("%s: %g", list[i].keys, (double)l->pair[0].scale);
        hn_lora_close(l);
    }
}

static void wrong_tensors(void **state)
{
    refused(HEAD "}", PAIR("model.layers.0.self_attn.q_proj", 32, 31, 128, 252), 63, 0, HONE_E_FORMAT,
            "wrong base model");
    refused("{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 2}",
            PAIR("model.layers.0.self_attn.q_proj", 32, 32, 128, 256), 64, 0, HONE_E_FORMAT, "says r = 2");
    refused(HEAD "}", PAIR("model.layers.7.self_attn.q_proj", 32, 32, 128, 256), 64, 0, HONE_E_FORMAT, "does not have");
    refused(HEAD "}", PAIR("model.layers.0.self_attn.c_attn", 32, 32, 128, 256), 64, 0, HONE_E_UNSUPPORTED,
            "no counterpart");
    refused(HEAD "}", PAIR("model.layers.0.self_attn.q_proj", 32, 32, 128, 256), 64, NAN, HONE_E_NUMERIC,
            "lora_A.weight: element 0 is NaN");
    refused(HEAD "}",
            "{\"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[1,32],"
            "\"data_offsets\":[0,128]}}",
            32, 0, HONE_E_FORMAT, "only half A");
    refused(HEAD "}",
            "{\"base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector\":{\"dtype\":\"F32\",\"shape\":["
            "32],\"data_offsets\":[0,128]}}",
            32, 0, HONE_E_UNSUPPORTED, "DoRA");
    refused(HEAD "}",
            "{\"base_model.model.model.embed_tokens.lora_embedding_A\":{\"dtype\":\"F32\",\"shape\":[1,32],\"data_"
            "offsets\":[0,128]}}",
            32, 0, HONE_E_UNSUPPORTED, "embeddings");
    refused(HEAD "}", "{\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[32],\"data_offsets\":[0,128]}}", 32, 0,
            HONE_E_UNSUPPORTED, "no half");
    refused(HEAD "}", "{}", 0, 0, HONE_E_FORMAT, "no tensors");
}

static int setup(void **state)
{
    if (tm_make_dir(state)) return -1;
    t = tm_new(tm_llama);
    base = tm_open(t);
    return 0;
}
static int teardown(void **state)
{
    char file[200];
    snprintf(file, sizeof file, "%s/bad/adapter_config.json", tm_dir), remove(file);
    snprintf(file, sizeof file, "%s/bad/adapter_model.safetensors", tm_dir), remove(file);
    snprintf(file, sizeof file, "%s/bad", tm_dir), rmdir(file);
    hone_model_close(base);
    tm_free(t);
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(golden),         cmocka_unit_test(by_torch),
                                        cmocka_unit_test(there_and_back), cmocka_unit_test(the_template),
                                        cmocka_unit_test(facts),          cmocka_unit_test(alpha_patterns),
                                        cmocka_unit_test(wrong_configs),  cmocka_unit_test(wrong_tensors),
                                        cmocka_unit_test(halfway) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
