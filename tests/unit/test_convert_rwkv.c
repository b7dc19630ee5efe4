/* convert, RWKV: every tensor of RWKV-6 and -7 in every dialect and container, number by number;
 * types; refusals by name; damaged files. */
#include "rwkv_files.h"

/* ---- helpers ---------------------------------------------------------------------------- */

static void convert(const char *src, const char *type, const char *dst)
{
    hone_error err = { 0 };
    if (hone_convert(src, NULL, type, dst, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
}

static void refused(const char *src, const char *type, hone_status want, const char *says)
{
    hone_error err = { 0 };
    int before = n_files(dir);
    hone_status st = hone_convert(src, NULL, type, in_dir("never.gguf"), NULL, &err);
    if (st != want || !strstr(err.message, says))
        fail_msg("status %d, message: %s; expected %d and: %s", st, err.message, want, says);
    if (!strstr(err.message, dir)) fail_msg("no file named in: %s", err.message);
    assert_int_equal(n_files(dir), before);
}

static void expect(const char *path, const model *m)
{
    hn_gguf *g = open_gguf(path);
    expect_model(g, m);
    hn_gguf_close(g);
}

/* A folder with a config of which `more` is the end. */
static const char *folder(const char *more, int version)
{
    char text[2048];
    mkdir(in_dir("hf"), 0700);
    empty_folder(in_dir("hf"));
    snprintf(text, sizeof text, version == 7 ? CONFIG7 : CONFIG6, more);
    write_text(in_dir("hf/config.json"), text);
    return in_dir("hf");
}

/* ---- right ones ----------------------------------------------------------------------------- */

static void test_dialects(void **state)
{
    static const struct {
        int version;
        dialect d;
    } all[] = { { 7, ORIGINAL }, { 7, FLA }, { 7, FLA_XX }, { 6, ORIGINAL }, { 6, HF } };
    model m;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        make_model(&m, all[i].version);
        m.fine = i & 1;
        write_safetensors(in_dir("m.safetensors"), &m, all[i].d, "F32");
        convert(in_dir("m.safetensors"), NULL, in_dir("m.gguf"));
        expect(in_dir("m.gguf"), &m);
        convert(in_dir("m.safetensors"), "F32", in_dir("m.gguf"));
        expect(in_dir("m.gguf"), &m);
    }
}

static void test_rwkv_cpp(void **state)
{
    for (int version = 6; version <= 7; version++) {
        model m;
        make_model(&m, version);
        m.fine = true;
        write_bin(in_dir("m.bin"), &m);
        convert(in_dir("m.bin"), NULL, in_dir("m.gguf"));
        expect(in_dir("m.gguf"), &m);
    }
}

static void test_folders(void **state)
{
    for (int version = 6; version <= 7; version++) {
        model m;
        make_model(&m, version);
        const char *f = folder("", version);
        dialect d = version == 7 ? FLA : HF;
        write_safetensors(in_dir("hf/model.safetensors"), &m, d, "F32");
        convert(f, NULL, in_dir("m.gguf"));
        expect(in_dir("m.gguf"), &m);
        unlink(in_dir("hf/config.json")); /* sizes come from the tensors */
        convert(f, NULL, in_dir("m.gguf"));
        expect(in_dir("m.gguf"), &m);
        folder("", version);
        for (size_t k = 0; k < 3; k++) { /* a series without index */
            char name[64];
            snprintf(name, sizeof name, "hf/model-%05zu-of-00003.safetensors", k + 1);
            write_safetensors_part(in_dir(name), &m, d, "F32", k, 3);
        }
        convert(f, NULL, in_dir("m.gguf"));
        expect(in_dir("m.gguf"), &m);
        unlink(in_dir("hf/model-00002-of-00003.safetensors"));
        refused(f, NULL, HONE_E_IO, "has no model-00002-of-00003.safetensors");
    }
}

static void write_index(const model *m, const char *odd_name, const char *odd_file)
{
    FILE *f = fopen(in_dir("hf/model.safetensors.index.json"), "w");
    assert_non_null(f);
    fprintf(f, "{\"metadata\":{\"total_size\":1.5},\"weight_map\":{");
    for (size_t i = 0; i < m->n; i++) {
        char name[128];
        dialect_name(name, sizeof name, &m->t[i], FLA);
        bool odd = odd_name && !strcmp(odd_name, m->t[i].name);
        if (odd && !odd_file) continue;
        fprintf(f, "%s\"%s\":\"%s\"", i ? "," : "", name, odd ? odd_file : i % 2 ? "b.safetensors" : "a.safetensors");
    }
    fprintf(f, "%s}}", odd_name && *odd_name == '+' ? ",\"more\":\"a.safetensors\"" : "");
    fclose(f);
}

static void test_shards(void **state)
{
    model m;
    make_model(&m, 7);
    const char *f = folder("", 7);
    write_safetensors_part(in_dir("hf/a.safetensors"), &m, FLA, "F32", 0, 2);
    write_safetensors_part(in_dir("hf/b.safetensors"), &m, FLA, "F32", 1, 2);
    write_index(&m, NULL, NULL);
    convert(f, NULL, in_dir("m.gguf"));
    expect(in_dir("m.gguf"), &m);
    write_index(&m, "blocks.1.att.k_k", NULL);
    refused(f, NULL, HONE_E_FORMAT, "is not in its weight_map");
    write_index(&m, "blocks.1.att.k_k", "c.safetensors");
    refused(f, NULL, HONE_E_IO, "its file c.safetensors is not in");
    write_index(&m, "emb.weight", "b.safetensors");
    refused(f, NULL, HONE_E_FORMAT, "in another file");
    write_index(&m, "+", NULL);
    refused(f, NULL, HONE_E_FORMAT, "missing there");
    static const char *const plain[] = { "../a.safetensors", "/etc/passwd", "", "..", "x/y", "a\\\\b", "a\\b" };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        write_index(&m, "emb.weight", plain[i]);
        refused(f, NULL, HONE_E_FORMAT, "expected a plain file name");
    }
    static const char *const broken[] = { "",
                                          "[]",
                                          "{}",
                                          "{\"weight_map\":{}}",
                                          "{\"weight_map\":3}",
                                          "{\"weight_map\":{\"a\":\"b\",\"a\":\"b\"}}",
                                          "{\"weight_map\":{\"a\":1}}" };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        write_text(in_dir("hf/model.safetensors.index.json"), broken[i]);
        refused(f, NULL, HONE_E_FORMAT, "index.json");
    }
    write_index(&m, NULL, NULL); /* the output must not be a source */
    hone_error err = { 0 };
    assert_int_equal(hone_convert(f, NULL, NULL, in_dir("hf/a.safetensors"), NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "is the source"));
}

/* Block 0 may have values of its own for what it does not use: dropped. */
static void test_value_mix_of_block_0(void **state)
{
    model m;
    make_model(&m, 7);
    have_in(&m, 0, "att.v0", 3, 1, 1, E);
    have_in(&m, 0, "att.v1", 2, E, RV, 0);
    have_in(&m, 0, "att.v2", 2, RV, E, 0);
    write_safetensors(in_dir("m.safetensors"), &m, FLA, "F32");
    convert(in_dir("m.safetensors"), NULL, in_dir("m.gguf"));
    expect(in_dir("m.gguf"), &m);
    find_spec(&m, "blocks.0.att.v2")->shape[1] = E + 1;
    write_safetensors(in_dir("m.safetensors"), &m, FLA, "F32");
    refused(in_dir("m.safetensors"), NULL, HONE_E_FORMAT, "v_lora.lora.2.weight has shape [33, 12]");
}

/* Square low-rank matrices: the others of the file say how they lie, or else its dialect. */
static void test_square(void **state)
{
    for (int all = 0; all < 2; all++)
        for (int kind = 0; kind < 3; kind++) {
            static const char *const low[] = { "w1", "w2", "a1", "a2", "g1", "g2", "v1", "v2" };
            const char *src = in_dir("s");
            model m;
            make_model(&m, 7);
            for (size_t i = 0; i < m.n; i++)
                for (size_t k = 0; k < (all ? 8 : 2); k++)
                    if (is_low(&m.t[i]) && !strcmp(tail_of(&m.t[i]) + 4, low[k])) m.t[i].shape[0] = m.t[i].shape[1] = E;
            if (kind == 2) write_bin(src, &m);
            else write_safetensors(src, &m, kind ? FLA : ORIGINAL, "F32");
            convert(src, NULL, in_dir("m.gguf"));
            hn_gguf *g = open_gguf(in_dir("m.gguf"));
            expect_in(g, &m, 1, "time_mix_w1.weight", "att.w1", true, E, E, 1);
            expect_in(g, &m, 2, "time_mix_w2.weight", "att.w2", true, E, E, 1);
            expect_in(g, &m, 2, "time_mix_a2.weight", "att.a2", true, all ? E : RA, E, 1);
            expect_in(g, &m, 1, "time_mix_v1.weight", "att.v1", true, E, all ? E : RV, 1);
            hn_gguf_close(g);
        }
}

/* ---- types ------------------------------------------------------------------------------------ */

static const char *type_in(const hn_gguf *g, const char *name)
{
    return hn_type_get((uint32_t)hn_gguf_find_tensor(g, name)->type)->name;
}

static void expect_types(const char *src, const char *type, const char *matrix, const char *low, const char *head,
                         uint32_t file_type)
{
    convert(src, type, in_dir("m.gguf"));
    hn_gguf *g = open_gguf(in_dir("m.gguf"));
    assert_string_equal(type_in(g, "blk.1.channel_mix_key.weight"), matrix);
    assert_string_equal(type_in(g, "blk.1.time_mix_a1.weight"), low);
    assert_string_equal(type_in(g, "blk.0.time_mix_v2.weight"), low);
    assert_string_equal(type_in(g, "output.weight"), head);
    static const char *const always[] = { "blk.1.time_mix_w1.weight",         "blk.1.time_mix_w2.weight",
                                          "blk.2.time_mix_lerp_fused.weight", "blk.2.time_mix_r_k.weight",
                                          "blk.0.attn_norm_2.bias",           "token_embd_norm.weight",
                                          "blk.1.time_mix_ln.weight",         "blk.2.channel_mix_lerp_k.weight" };
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) assert_string_equal(type_in(g, always[i]), "F32");
    assert_int_equal(get_u32(g, "general.file_type"), file_type);
    hn_gguf_close(g);
}

static void test_types(void **state)
{
    model m;
    const char *src = in_dir("m.safetensors");
    static const struct {
        const char *dtype;
        bool fine;
        const char *type;
        uint32_t ft;
    } kept[] = {
        { "F32", true, "F32", 0 },     { "F32", false, "BF16", 32 }, { "F16", false, "F16", 1 },
        { "BF16", false, "BF16", 32 }, { "F64", true, "F32", 0 },
    };
    make_model(&m, 7);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) { /* nothing is rounded */
        m.fine = kept[i].fine;
        write_safetensors(src, &m, ORIGINAL, kept[i].dtype);
        expect_types(src, NULL, kept[i].type, kept[i].type, kept[i].type, kept[i].ft);
        expect(in_dir("m.gguf"), &m);
    }
    m.fine = false;
    write_safetensors(src, &m, ORIGINAL, "F16");
    expect_types(src, "F32", "F32", "F32", "F32", 0);
    expect(in_dir("m.gguf"), &m);
    expect_types(src, "bf16", "BF16", "BF16", "BF16", 32);
    expect(in_dir("m.gguf"), &m);                           /* these numbers fit */
    expect_types(src, "Q8_0", "Q8_0", "F16", "Q8_0", 7);    /* mixtures leave the low-rank ones as they are */
    expect_types(src, "Q4_K_M", "Q5_0", "F16", "Q8_0", 15); /* rows of 32 */
    expect_types(src, "Q4_0", "Q4_0", "F16", "Q8_0", 2);
    m.fine = true;
    write_safetensors(src, &m, ORIGINAL, "F32");
    expect_types(src, "F16", "F16", "F16", "F16", 1);
    hone_error err = { 0 };
    assert_int_equal(hone_convert(src, NULL, "Q99", in_dir("m.gguf"), NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "Q99"));
}

/* Q8_0 by hand. */
static void test_q8_0(void **state)
{
    model m;
    make_model(&m, 7);
    m.fine = true;
    write_safetensors(in_dir("m.safetensors"), &m, FLA, "F32");
    convert(in_dir("m.safetensors"), "Q8_0", in_dir("m.gguf"));
    hn_gguf *g = open_gguf(in_dir("m.gguf"));
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "blk.2.channel_mix_value.weight");
    assert_true(t && t->type == HN_Q8_0);
    for (size_t b = 0; b < F * E / 32; b++) {
        float x[32], amax = 0;
        for (size_t i = 0; i < 32; i++) {
            x[i] = value("blocks.2.ffn.value.weight", 32 * b + i, true);
            amax = fmaxf(amax, fabsf(x[i]));
        }
        const unsigned char *q = (const unsigned char *)t->data + 34 * b;
        uint16_t d;
        memcpy(&d, q, 2);
        assert_int_equal(d, hn_f32_to_f16(amax / 127));
        for (int i = 0; i < 32; i++) assert_int_equal((int8_t)q[2 + i], (int)roundf(x[i] * (1 / (amax / 127))));
    }
    hn_gguf_close(g);
}

/* rwkv.cpp's blocks are GGUF's: copied as they are. A block of Q5_1 and what it stands for by hand. */
static void test_blocks(void **state)
{
    model m;
    buffer b = { 0 };
    make_model(&m, 7);
    make_bin(&b, &m, NULL);
    size_t at = 0, old = 4 * E * E, new = E * 24;
    static const char name[] = "blocks.1.att.key.weight";
    for (size_t i = 0; i + sizeof name < b.n && !at; i++)
        if (!memcmp(b.p + i, name, sizeof name - 1)) at = i;
    assert_true(at > 0);
    unsigned char block[24] = {
        0x00, 0x3c, 0x00, 0xc0, 1, 0, 0, 0x80
    }; /* d 1, m -2; fifth bits of elements 0 and 31 */
    for (int i = 0; i < 16; i++) block[8 + i] = (unsigned char)(i | (15 - i) << 4);
    memcpy(b.p + at - 12, &(uint32_t){ 8 }, 4);
    size_t data = at + sizeof name - 1;
    memmove(b.p + data + new, b.p + data + old, b.n - data - old);
    b.n -= old - new;
    for (size_t i = 0; i < E; i++) memcpy(b.p + data + 24 * i, block, 24);
    write_bytes(in_dir("q.bin"), b.p, b.n);
    convert(in_dir("q.bin"), NULL, in_dir("m.gguf"));
    hn_gguf *g = open_gguf(in_dir("m.gguf"));
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "blk.1.time_mix_key.weight");
    assert_true(t && t->type == HN_Q5_1 && t->n_bytes == new);
    for (size_t i = 0; i < E; i++) assert_memory_equal((const char *)t->data + 24 * i, block, 24);
    hn_gguf_close(g);
    convert(in_dir("q.bin"), "F32", in_dir("m.gguf"));
    g = open_gguf(in_dir("m.gguf"));
    float x[32];
    memcpy(x, hn_gguf_find_tensor(g, "blk.1.time_mix_key.weight")->data, sizeof x);
    assert_true(x[0] == 16 - 2 && x[1] == 1 - 2 && x[16] == 15 - 2 && x[31] == 16 + 0 - 2);
    hn_gguf_close(g);
    refused(in_dir("q.bin"), "Q4_0", HONE_E_UNSUPPORTED, "blocks.1.att.key.weight is Q5_1 already");
    b.p[4] = 100; /* blocks of that version were others */
    write_bytes(in_dir("q.bin"), b.p, b.n);
    refused(in_dir("q.bin"), NULL, HONE_E_UNSUPPORTED, "Q5_1 in a file of version 100");
    free(b.p);
}

static size_t data_of(const buffer *b, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i + n < b->n; i++)
        if (!memcmp(b->p + i, name, n)) return i + n;
    fail_msg("no %s in the file", name);
    return 0;
}

static void test_numbers(void **state)
{
    static const struct {
        float x;
        const char *type, *says;
    } bad[] = {
        { NAN, NULL, "blocks.1.ffn.key.weight: element 70 is NaN" },
        { INFINITY, NULL, "element 70 is infinite" },
        { -INFINITY, "Q8_0", "element 70 is infinite" },
        { 70000, "F16", "element 70 is beyond F16" },
        { -65520, "F16", "beyond F16" },
        { 3.4e38f, "BF16", "beyond BF16" },
        { 1e30f, "Q8_0", "element 64 is in a block with numbers too large" }, /* 0 times an infinite scale */
    };
    model m;
    buffer b = { 0 };
    make_model(&m, 7);
    make_bin(&b, &m, NULL);
    size_t at = data_of(&b, "blocks.1.ffn.key.weight") + 4 * 70;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(b.p + at, &bad[i].x, 4);
        write_bytes(in_dir("n.bin"), b.p, b.n);
        refused(in_dir("n.bin"), bad[i].type, HONE_E_NUMERIC, bad[i].says);
    }
    memcpy(b.p + at, &(float){ 65519 }, 4); /* the last that rounds to a finite F16 */
    write_bytes(in_dir("n.bin"), b.p, b.n);
    convert(in_dir("n.bin"), "F16", in_dir("m.gguf"));
    at = data_of(&b, "blocks.1.att.w1") + 4 * 9; /* always F32 */
    memcpy(b.p + at, &(float){ NAN }, 4);
    write_bytes(in_dir("n.bin"), b.p, b.n);
    refused(in_dir("n.bin"), NULL, HONE_E_NUMERIC, "blocks.1.att.w1: element 9 is NaN");
    free(b.p);
    /* in a matrix that must be transposed, the element of the source is named */
    write_safetensors(in_dir("n.safetensors"), &m, ORIGINAL, "F64");
    FILE *f = fopen(in_dir("n.safetensors"), "r+b");
    unsigned char h[16384];
    assert_int_equal(fread(h, 1, sizeof h, f), sizeof h);
    char *entry = strstr((char *)h + 8, "\"blocks.2.att.g1\"");
    assert_non_null(entry);
    uint64_t n;
    memcpy(&n, h, 8);
    long off = strtol(strstr(entry, "offsets\":[") + 10, NULL, 10);
    static const struct {
        double v;
        const char *says;
    } odd[] = { { NAN, "NaN" }, { 1e300, "beyond F32" }, { 0.1, "no F32" } };
    for (int i = 0; i < 3; i++) {
        fseek(f, (long)(8 + n) + off + 8 * 33, SEEK_SET);
        fwrite(&odd[i].v, 8, 1, f);
        fflush(f);
        refused(in_dir("n.safetensors"), NULL, HONE_E_NUMERIC, "blocks.2.att.g1: element 33 is");
        refused(in_dir("n.safetensors"), NULL, HONE_E_NUMERIC, odd[i].says);
    }
    fclose(f);
    convert(in_dir("n.safetensors"), "F32", in_dir("m.gguf")); /* which may round */
}

/* ---- refusals ------------------------------------------------------------------------------------ */

static void test_tensors_refused(void **state)
{
    static const struct {
        const char *drop, *add;
        int n_dim;
        uint64_t a, b;
        hone_status st;
        const char *says;
    } bad[] = {
        { "blocks.1.att.w2", NULL, 0, 0, 0, HONE_E_FORMAT, "tensor blocks.1.att.w2 is missing" },
        { "blocks.2.ln2.bias", NULL, 0, 0, 0, HONE_E_FORMAT, "tensor blocks.2.ln2.bias is missing" },
        { "blocks.2.att.x_g", NULL, 0, 0, 0, HONE_E_FORMAT, "tensor blocks.2.att.x_g is missing" },
        { "blocks.1.ln1.weight", NULL, 0, 0, 0, HONE_E_FORMAT, "is no tensor of RWKV-7 with 1 blocks" },
        { "emb.weight", NULL, 0, 0, 0, HONE_E_FORMAT, "tensor emb.weight is missing" },
        { "head.weight", NULL, 0, 0, 0, HONE_E_FORMAT, "tensor head.weight is missing" },
        { "blocks.0.att.r_k", NULL, 0, 0, 0, HONE_E_UNSUPPORTED, "not an RWKV-6 or RWKV-7 checkpoint" },
        { NULL, "blocks.1.att.extra", 1, E, 0, HONE_E_FORMAT,
          "blocks.1.att.extra, of shape [32], is no tensor of RWKV-7" },
        { NULL, "blocks.3.att.k_k", 1, E, 0, HONE_E_FORMAT, "blocks.3.att.k_k, of shape [32], is no tensor" },
        { NULL, "blocks.1.ln0.weight", 1, E, 0, HONE_E_FORMAT, "blocks.1.ln0.weight" },
        { NULL, "blocks.01.ln1.weight", 1, E, 0, HONE_E_FORMAT, "blocks.01.ln1.weight" },
        { NULL, "blocks.1.ffn.s_emb.weight", 2, V, E, HONE_E_UNSUPPORTED, "RWKV-7a or 7b" },
        { NULL, "qkv.weight", 2, V, E, HONE_E_UNSUPPORTED, "RWKV-7a or 7b" },
        { NULL, "model.layers.1.attn.k_k", 1, E, 0, HONE_E_FORMAT, "are both blocks.1.att.k_k" },
        { NULL, "blocks.1.att.x_x", 2, 6, E, HONE_E_FORMAT, "blocks.1.att.x_" },
        { "blocks.1.att.key.weight", "blocks.1.att.key.weight", 2, E, E + 1, HONE_E_FORMAT,
          "blocks.1.att.key.weight has shape [32, 33], expected [32, 32]" },
        { "blocks.1.att.key.weight", "blocks.1.att.key.weight", 1, E * E, 0, HONE_E_FORMAT,
          "has shape [1024], expected [32, 32]" },
        { "blocks.1.ffn.key.weight", "blocks.1.ffn.key.weight", 2, E, F, HONE_E_FORMAT,
          "has shape [32, 96], expected [96, 32]" },
        { "head.weight", "head.weight", 2, V - 1, E, HONE_E_FORMAT,
          "head.weight has shape [39, 32], expected [40, 32]" },
        { "emb.weight", "emb.weight", 1, V * E, 0, HONE_E_FORMAT, "emb.weight has shape [1280]" },
        { "blocks.1.att.w1", "blocks.1.att.w1", 2, E, RW + 1, HONE_E_FORMAT,
          "has shape [32, 9], expected [32, 8] or [8, 32]" },
        { "blocks.1.att.v2", "blocks.1.att.v2", 2, RV, E + 1, HONE_E_FORMAT, "blocks.1.att.v2 has shape [12, 33]" },
        { "blocks.0.att.g1", "blocks.0.att.g1", 2, E + 1, RG, HONE_E_FORMAT, "blocks.0.att.g1 has shape [33, 16]" },
        { "blocks.2.att.k_a", "blocks.2.att.k_a", 1, E + 1, 0, HONE_E_FORMAT,
          "blocks.2.att.k_a has shape [33], expected [32]" },
        { "blocks.2.att.k_a", "blocks.2.att.k_a", 2, 2, E / 2, HONE_E_FORMAT,
          "blocks.2.att.k_a has shape [2, 16], expected [32]" },
        { "blocks.2.att.x_v", "blocks.2.att.x_v", 1, E - 1, 0, HONE_E_FORMAT,
          "blocks.2.att.x_v has shape [31], expected [32]" },
        { "blocks.1.att.r_k", "blocks.1.att.r_k", 2, N, H, HONE_E_FORMAT,
          "blocks.1.att.r_k has shape [16, 2], expected [2, 16] or [32]" },
        { "blocks.0.att.r_k", "blocks.0.att.r_k", 1, E, 0, HONE_E_FORMAT, "or a config.json with head_dim" },
        { "blocks.0.att.r_k", "blocks.0.att.r_k", 2, 3, 11, HONE_E_FORMAT, "a product of 32" },
        { "blocks.0.ffn.key.weight", "blocks.0.ffn.key.weight", 1, F, 0, HONE_E_FORMAT,
          "blocks.0.ffn.key.weight has shape [96]" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        model m;
        make_model(&m, 7);
        if (bad[i].drop) drop(&m, bad[i].drop);
        if (bad[i].add) have(&m, bad[i].add, bad[i].n_dim, bad[i].a, bad[i].b, 0);
        write_safetensors(in_dir("bad.safetensors"), &m, ORIGINAL, "F16");
        refused(in_dir("bad.safetensors"), NULL, bad[i].st, bad[i].says);
    }
    static const struct {
        const char *name;
        uint64_t a, b, c;
        const char *says;
    } bad6[] = {
        { "blocks.0.att.time_maa_w1", E, 5 * X + 1, 0, "five times over" },
        { "blocks.1.att.time_maa_w1", E, 5 * X + 5, 0, "expected [32, 30] or [30, 32]" },
        { "blocks.1.att.time_maa_w2", 4, X, E, "expected [5, 6, 32] or [5, 32, 6]" },
        { "blocks.1.att.time_maa_w2", 5, X, E + 1, "expected [5, " },
        { "blocks.2.att.time_faaaa", N, H, 0, "expected [2, 16]" },
        { "blocks.2.att.time_decay_w2", E, E, 0, "expected" },
    };
    for (size_t i = 0; i < sizeof bad6 / sizeof *bad6; i++) {
        model m;
        make_model(&m, 6);
        drop(&m, bad6[i].name);
        have(&m, bad6[i].name, bad6[i].c ? 3 : 2, bad6[i].a, bad6[i].b, bad6[i].c);
        write_safetensors(in_dir("bad.safetensors"), &m, ORIGINAL, "F16");
        refused(in_dir("bad.safetensors"), NULL, HONE_E_FORMAT, bad6[i].says);
    }
}

static void test_other_versions(void **state)
{
    static const struct {
        const char *names[4], *says;
    } old[] = {
        { { "emb.weight", "blocks.0.att.time_decay" }, "an RWKV-4 checkpoint" },
        { { "emb.weight", "blocks.0.att.time_decay", "blocks.0.att.ln_x.weight" }, "an RWKV-5.1 checkpoint" },
        { { "emb.weight", "blocks.0.att.time_decay", "blocks.0.att.ln_x.weight", "blocks.0.att.gate.weight" },
          "an RWKV-5.2 checkpoint" },
        { { "model.embed_tokens.weight", "h.0.attn.c_attn.weight" }, "not an RWKV-6 or RWKV-7 checkpoint" },
        { { "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight" }, "name the folder" },
    };
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        model m = { .version = 7 };
        for (int k = 0; k < 4 && old[i].names[k]; k++) have(&m, old[i].names[k], 1, E, 0, 0);
        write_safetensors(in_dir("old.safetensors"), &m, ORIGINAL, "F32");
        refused(in_dir("old.safetensors"), NULL, HONE_E_UNSUPPORTED, old[i].says);
        write_bin(in_dir("old.bin"), &m);
        refused(in_dir("old.bin"), NULL, HONE_E_UNSUPPORTED, old[i].says);
    }
    char config[256];
    snprintf(config, sizeof config, "%s", in_dir("config.json"));
    model m = { .version = 7 };
    have(&m, "h.0.attn.c_attn.weight", 1, E, 0, 0);
    write_safetensors(in_dir("old.safetensors"), &m, ORIGINAL, "F32");
    FILE *f = fopen(config, "wb");
    assert_true(f && fputs("{}", f) >= 0 && fclose(f) == 0);
    refused(in_dir("old.safetensors"), NULL, HONE_E_UNSUPPORTED, "name the folder");
    assert_int_equal(unlink(config), 0);
}

static void test_configs_refused(void **state)
{
    static const struct {
        const char *from, *to;
        hone_status st;
        const char *says;
    } bad[] = {
        { "\"hidden_size\":32", "\"hidden_size\":64", HONE_E_FORMAT, "hidden_size is 64, expected 32" },
        { "\"num_hidden_layers\":3", "\"num_hidden_layers\":4", HONE_E_FORMAT, "num_hidden_layers is 4, expected 3" },
        { "\"vocab_size\":40", "\"vocab_size\":65536", HONE_E_FORMAT, "vocab_size is 65536, expected 40" },
        { "\"intermediate_size\":96", "\"intermediate_size\":128", HONE_E_FORMAT, "intermediate_size is 128" },
        { "\"head_size\":16", "\"head_size\":32", HONE_E_FORMAT, "head_size is 32, expected 16" },
        { "\"head_size\":16", "\"head_dim\":16", HONE_E_FORMAT, "group norm's epsilon" },
        { "\"decay_low_rank_dim\":8", "\"decay_low_rank_dim\":64", HONE_E_FORMAT,
          "decay_low_rank_dim is 64, expected 8" },
        { "\"v_low_rank_dim\":12", "\"v_low_rank_dim\":\"12\"", HONE_E_UNSUPPORTED, "v_low_rank_dim is 12" },
        { "\"norm_eps\":1e-05", "\"norm_eps\":1e-06", HONE_E_FORMAT, "norm_eps is 1e-06, expected 1e-05" },
        { "\"norm_eps\":1e-05", "\"layer_norm_epsilon\":1e-6", HONE_E_FORMAT, "layer_norm_epsilon is 1e-06" },
        { "\"x\":NaN", "\"group_norm_epsilon\":0.00016", HONE_E_FORMAT,
          "group_norm_epsilon is 0.00016, expected 0.00064" },
        { "\"norm_bias\":true", "\"norm_bias\":false", HONE_E_UNSUPPORTED, "norm_bias is false, expected true" },
        { "\"norm_first\":true", "\"norm_first\":false", HONE_E_UNSUPPORTED, "norm_first is false" },
        { "\"tie_word_embeddings\":false", "\"tie_word_embeddings\":true", HONE_E_UNSUPPORTED,
          "tie_word_embeddings is true, expected false" },
        { "\"attn\":null", "\"attn\":{\"layers\":[1]}", HONE_E_UNSUPPORTED, "attn is {" },
        { "\"x\":NaN", "\"quantization_config\":{}", HONE_E_UNSUPPORTED, "quantization_config is {}" },
        { "\"x\":NaN", "\"use_deep_embed\":true", HONE_E_UNSUPPORTED, "use_deep_embed is true" },
        { "\"x\":NaN", "\"embedding_layer_norm_fused\":true", HONE_E_UNSUPPORTED,
          "embedding_layer_norm_fused is true" },
        { "\"sqrelu\"", "\"silu\"", HONE_E_UNSUPPORTED, "hidden_act is silu, expected sqrelu" },
        { "[32,null,32]", "[32,64,32]", HONE_E_UNSUPPORTED, "value_dim is" },
        { "[32,null,32]", "64", HONE_E_FORMAT, "value_dim is 64, expected 32" },
        { "RWKV7ForCausalLM", "Rwkv6ForCausalLM", HONE_E_FORMAT, "names RWKV-6, but the tensors are those of RWKV-7" },
        { "RWKV7ForCausalLM", "XForCausalLM", HONE_E_UNSUPPORTED, "architecture \"XForCausalLM\"" },
        { "RWKV7ForCausalLM", "RWKV6Qwen2ForCausalLM", HONE_E_UNSUPPORTED, "RWKV6Qwen2ForCausalLM" },
        { "RWKV7ForCausalLM", "RwkvHybridForCausalLM", HONE_E_UNSUPPORTED, "RwkvHybridForCausalLM" },
        { "\"vocab_size\":40", "\"vocab_size\":40,\"vocab_size\":40", HONE_E_FORMAT, "\"vocab_size\" is there twice" },
        { "\"vocab_size\":40", "\"vocab_size\":40.5", HONE_E_FORMAT, "vocab_size is 40.5" },
        { "\"vocab_size\":40", "\"vocab_size\":", HONE_E_FORMAT, "expected a value" },
        { "\"x\":NaN", "\"x\":1e", HONE_E_FORMAT, "digits of an exponent" },
        { "\"x\":NaN", "\"x\":01", HONE_E_FORMAT, "leading zero" },
        { "\"x\":NaN", "\"x\":\"\\ud800\"", HONE_E_FORMAT, "surrogates" },
        { "\"x\":NaN", "\"x\":nul", HONE_E_FORMAT, "expected a value" },
    };
    model m;
    make_model(&m, 7);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[2048], other[2048];
        const char *f = folder("", 7);
        snprintf(text, sizeof text, CONFIG7, "");
        char *at = strstr(text, bad[i].from);
        assert_non_null(at);
        snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, bad[i].to, at + strlen(bad[i].from));
        write_text(in_dir("hf/config.json"), other);
        write_safetensors(in_dir("hf/model.safetensors"), &m, FLA, "F16");
        refused(f, NULL, bad[i].st, bad[i].says);
    }
    char deep[8192] = "{\"architectures\":[\"RWKV7ForCausalLM\"],\"d\":";
    for (int i = 0; i < 3000; i++) strcat(deep, "[");
    write_text(in_dir("hf/config.json"), deep);
    refused(in_dir("hf"), NULL, HONE_E_FORMAT, "no deeper nesting");
    write_text(in_dir("hf/config.json"), "{}");
    refused(in_dir("hf"), NULL, HONE_E_UNSUPPORTED, "names no architecture");
}

/* A flat r_k says nothing of heads: the config does. */
static void test_flat_heads(void **state)
{
    model m;
    make_model(&m, 7);
    const char *f = folder("", 7);
    for (int il = 0; il < L; il++) {
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.att.r_k", il);
        drop(&m, name);
        have(&m, name, 1, E, 0, 0);
    }
    write_safetensors(in_dir("hf/model.safetensors"), &m, FLA, "F32");
    convert(f, NULL, in_dir("m.gguf"));
    expect(in_dir("m.gguf"), &m);
}

/* ---- damaged rwkv.cpp files --------------------------------------------------------------------- */

static void test_bin_truncated(void **state)
{
    model m;
    buffer b = { 0 };
    size_t ends[160], n_cut = 0;
    make_model(&m, 7);
    make_bin(&b, &m, ends);
    for (size_t i = 0; i < 24; i++, n_cut++) { /* anywhere in the header */
        write_bytes(in_dir("cut.bin"), b.p, i);
        refused(in_dir("cut.bin"), NULL, HONE_E_FORMAT, "cut.bin");
    }
    const char *path = in_dir("cut.bin"), *out = in_dir("never.gguf");
    write_bytes(path, b.p, b.n);
    int fd = open(path, O_RDWR), files = n_files(dir);
    assert_true(fd >= 0);
    for (size_t i = m.n; i-- > 0;) { /* and at every byte of a tensor's description, from behind */
        if (!ends[i]) continue;
        for (size_t cut = ends[i] + 1; cut >= 24 && cut + 80 > ends[i]; cut--, n_cut++) {
            hone_error err = { 0 };
            assert_int_equal(ftruncate(fd, (off_t)cut), 0);
            hone_status st = hone_convert(path, NULL, NULL, out, NULL, &err);
            if ((st != HONE_E_FORMAT && st != HONE_E_UNSUPPORTED) || !strstr(err.message, path))
                fail_msg("cut at %zu: status %d, message: %s", cut, st, err.message);
            assert_int_not_equal(access(out, F_OK), 0);
        }
    }
    close(fd);
    assert_int_equal(n_files(dir), files);
    assert_true(n_cut > 4000);
    free(b.p);
}

static void test_bin_damaged(void **state)
{
    static const struct {
        size_t at;
        uint32_t v;
        hone_status st;
        const char *says;
    } bad[] = {
        { 4, 99, HONE_E_UNSUPPORTED, "version 99" },
        { 4, 102, HONE_E_UNSUPPORTED, "version 102" },
        { 8, V + 1, HONE_E_FORMAT, "n_vocab 41" },
        { 12, 64, HONE_E_FORMAT, "n_embed 64" },
        { 16, 2, HONE_E_FORMAT, "n_layer 2" },
        { 20, 4, HONE_E_UNSUPPORTED, "removed data type Q4_1_O (4)" },
        { 20, 5, HONE_E_UNSUPPORTED, "Q4_2" },
        { 20, 6, HONE_E_UNSUPPORTED, "Q4_3" },
        { 20, 10, HONE_E_UNSUPPORTED, "Q8_1" },
        { 20, 17, HONE_E_FORMAT, "data type 17, expected 0 to 16" },
        { 20, UINT32_MAX, HONE_E_FORMAT, "data type 4294967295" },
        { 24, 0, HONE_E_FORMAT, "tensor 0, at byte 24, has 0 dimensions" },
        { 24, 4, HONE_E_FORMAT, "has 4 dimensions" },
        { 24, UINT32_MAX, HONE_E_FORMAT, "has 4294967295 dimensions" },
        { 28, 0, HONE_E_FORMAT, "a name of 0 bytes" },
        { 28, 256, HONE_E_FORMAT, "a name of 256 bytes" },
        { 28, UINT32_MAX, HONE_E_FORMAT, "a name of 4294967295 bytes" },
        { 32, 4, HONE_E_UNSUPPORTED, "emb.weight has the removed data type" },
        { 32, 16, HONE_E_UNSUPPORTED, "Q8_K" },
        { 32, 11, HONE_E_FORMAT, "rows of 32, expected a multiple of 256" },
        { 36, 0, HONE_E_FORMAT, "has shape [40, 0], expected no 0" },
        { 36, UINT32_MAX, HONE_E_FORMAT, "but the file ends at" },
        { 40, UINT32_MAX, HONE_E_FORMAT, "but the file ends at" },
        { 44, 0x000a0a0a, HONE_E_FORMAT, "tensor name" },
    };
    model m;
    make_model(&m, 7);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        buffer b = { 0 };
        make_bin(&b, &m, NULL);
        memcpy(b.p + bad[i].at, &bad[i].v, 4);
        write_bytes(in_dir("bad.bin"), b.p, b.n);
        refused(in_dir("bad.bin"), NULL, bad[i].st, bad[i].says);
        free(b.p);
    }
    have(&m, "emb.weight", 2, V, E, 0);
    write_bin(in_dir("bad.bin"), &m);
    refused(in_dir("bad.bin"), NULL, HONE_E_FORMAT, "tensor emb.weight is there twice");
    buffer huge = { 0 }; /* sizes whose product wraps */
    make_model(&m, 7);
    make_bin(&huge, &m, NULL);
    huge.n = 24;
    put_bin_head(&huge, "emb.weight", 0, (uint64_t[]){ UINT32_MAX, UINT32_MAX, UINT32_MAX }, 3);
    write_bytes(in_dir("bad.bin"), huge.p, huge.n);
    refused(in_dir("bad.bin"), NULL, HONE_E_FORMAT, "too large");
    free(huge.p);
}

/* ---- progress --------------------------------------------------------------------------------------- */

typedef struct watch {
    uint64_t done, total;
    int calls, stop_after;
} watch;
static void on_progress(void *arg, uint64_t done, uint64_t total)
{
    watch *w = arg;
    assert_true(done >= w->done && done <= total);
    w->done = done;
    w->total = total;
    w->calls++;
}
static bool on_abort(void *arg)
{
    const watch *w = arg;
    return w->stop_after >= 0 && w->calls >= w->stop_after;
}

static void test_progress(void **state)
{
    model m;
    make_model(&m, 7);
    write_safetensors(in_dir("m.bin"), &m, ORIGINAL, "F32"); /* tensors are turned: each is asked about */
    unlink(in_dir("m.gguf"));
    int files = n_files(dir);
    for (int type = 0; type < 2; type++) /* to the end, then stopped at every moment at which it asks */
        for (int stop = -1, calls = 1; stop < calls; stop++) {
            watch w = { .stop_after = stop };
            hone_progress pr = { on_progress, &w, on_abort };
            hone_error err = { 0 };
            hone_status st = hone_convert(in_dir("m.bin"), NULL, type ? NULL : "Q8_0", in_dir("m.gguf"), &pr, &err);
            if (stop < 0) {
                assert_int_equal(st, HONE_OK);
                assert_true(w.done == w.total && w.total > 10000 && w.calls > 10);
                calls = w.calls;
                unlink(in_dir("m.gguf"));
            } else {
                assert_int_equal(st, HONE_E_INTERRUPTED);
            }
            assert_int_equal(n_files(dir), files);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dialects),
        cmocka_unit_test(test_rwkv_cpp),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_value_mix_of_block_0),
        cmocka_unit_test(test_square),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_q8_0),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_tensors_refused),
        cmocka_unit_test(test_other_versions),
        cmocka_unit_test(test_configs_refused),
        cmocka_unit_test(test_flat_heads),
        cmocka_unit_test(test_bin_truncated),
        cmocka_unit_test(test_bin_damaged),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
