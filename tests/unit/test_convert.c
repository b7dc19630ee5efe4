/* convert: every tensor byte for byte against independent offsets, the tokenizer, refused
 * and damaged sources. Two checkpoints: one made here, and stories260K where its data is. */
#define _GNU_SOURCE
#include "gguf/gguf.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-convert-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    DIR *d = opendir(dir);
    if (!d) return -1;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && unlinkat(dirfd(d), e->d_name, 0) != 0) unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
    closedir(d);
    return rmdir(dir);
}

static int n_files(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static const char *in_dir(const char *name)
{
    static char path[8][128];
    static int k;
    k = (k + 1) % 8;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

static void write_bytes(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static unsigned char *read_whole(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *p = malloc(*n + 1);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, *n, f), *n);
    fclose(f);
    return p;
}

static void convert(const char *src, const char *tokenizer, const char *type, const char *dst)
{
    hone_error err = { 0 };
    if (hone_convert(src, tokenizer, type, dst, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
}

static void refused(const char *src, const char *tokenizer, const char *type, hone_status want, const char *says)
{
    hone_error err = { 0 };
    int before = n_files();
    hone_status st = hone_convert(src, tokenizer, type, in_dir("never.gguf"), NULL, &err);
    if (st != want || !strstr(err.message, says))
        fail_msg("status %d, message: %s; expected %d and: %s", st, err.message, want, says);
    assert_int_equal(n_files(), before);
}

static hn_gguf *open_gguf(const char *path)
{
    hn_gguf *g;
    hone_error err = { 0 };
    if (hn_gguf_open(&g, path, &err) != HONE_OK) fail_msg("%s", err.message);
    return g;
}

static uint32_t get_u32(const hn_gguf *g, const char *key)
{
    uint32_t v = 0;
    bool found = false;
    assert_int_equal(hn_gguf_get_u32(g, key, &v, &found, NULL), HONE_OK);
    if (!found) fail_msg("%s is absent", key);
    return v;
}

static hone_str token(const hn_gguf *g, uint32_t id)
{
    hn_gguf_array a;
    uint64_t pos = 0;
    hone_str s = { 0 };
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.tokens", &a, NULL, NULL), HONE_OK);
    for (uint32_t i = 0; i <= id; i++) assert_true(hn_gguf_next_str(&a, &pos, &s));
    return s;
}

static void assert_token(const hn_gguf *g, uint32_t id, const char *text, int32_t type)
{
    hn_gguf_array a;
    int32_t t;
    hone_str s = token(g, id);
    if (s.len != strlen(text) || memcmp(s.ptr, text, s.len))
        fail_msg("token %u is %.*s, expected %s", id, (int)s.len, s.ptr, text);
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.token_type", &a, NULL, NULL), HONE_OK);
    memcpy(&t, a.data + 4 * id, 4);
    assert_int_equal(t, type);
}

/* ---- a checkpoint of our own --------------------------------------------------------- */

/* dim 64, hidden 96, 3 layers, 4 heads, 2 kv heads (kv_dim 32), vocab 300, seq 32. Offsets in
 * floats after the header, added up by hand. */
enum {
    DIM = 64,
    FF = 96,
    LAYERS = 3,
    KV = 32,
    VOCAB = 300,
    SEQ = 32,
    O_EMB = 0,
    O_ATT = 19200,
    O_Q = 19392,
    O_K = 31680,
    O_V = 37824,
    O_O = 43968,
    O_FFN = 56256,
    O_GATE = 56448,
    O_DOWN = 74880,
    O_UP = 93312,
    O_FINAL = 111744,
    O_UNUSED = 111808,
    O_CLS = 112320,
    N_TIED = 112320,
    N_UNTIED = 131520
};

static size_t make_checkpoint(unsigned char **out, bool tied)
{
    int32_t h[7] = { DIM, FF, LAYERS, 4, 2, tied ? VOCAB : -VOCAB, SEQ };
    size_t n = tied ? N_TIED : N_UNTIED;
    unsigned char *p = malloc(28 + 4 * n);
    assert_non_null(p);
    memcpy(p, h, 28);
    for (size_t i = 0; i < n; i++) {
        float f = hn_rand_f32(4, i) - 0.5f;
        memcpy(p + 28 + 4 * i, &f, 4);
    }
    *out = p;
    return 28 + 4 * n;
}

static void assert_f32(const hn_gguf *g, const char *name, uint64_t ne0, uint64_t ne1, const unsigned char *want)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
    if (!t) fail_msg("no tensor %s", name);
    assert_int_equal(t->type, HN_F32);
    assert_int_equal(t->ne[0], ne0);
    assert_int_equal(t->ne[1], ne1);
    assert_int_equal(t->n_dim, ne1 > 1 ? 2 : 1);
    if (memcmp(t->data, want, 4 * ne0 * ne1)) fail_msg("%s differs from the checkpoint", name);
}

static void check_own(const hn_gguf *g, const unsigned char *ckpt, bool tied)
{
    const unsigned char *p = ckpt + 28;
    static const struct {
        const char *name;
        size_t off, ne0, ne1;
    } layer[] = {
        { "attn_norm", O_ATT, DIM, 1 },  { "attn_q", O_Q, DIM, DIM },      { "attn_k", O_K, DIM, KV },
        { "attn_v", O_V, DIM, KV },      { "attn_output", O_O, DIM, DIM }, { "ffn_norm", O_FFN, DIM, 1 },
        { "ffn_gate", O_GATE, DIM, FF }, { "ffn_down", O_DOWN, FF, DIM },  { "ffn_up", O_UP, DIM, FF },
    };
    assert_int_equal(hn_gguf_n_tensors(g), LAYERS * 9 + (tied ? 2 : 3));
    assert_f32(g, "token_embd.weight", DIM, VOCAB, p + 4 * O_EMB);
    assert_f32(g, "output_norm.weight", DIM, 1, p + 4 * O_FINAL);
    if (tied) assert_null(hn_gguf_find_tensor(g, "output.weight"));
    else assert_f32(g, "output.weight", DIM, VOCAB, p + 4 * O_CLS);
    for (size_t il = 0; il < LAYERS; il++)
        for (size_t i = 0; i < sizeof layer / sizeof *layer; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%zu.%s.weight", il, layer[i].name);
            assert_f32(g, name, layer[i].ne0, layer[i].ne1, p + 4 * (layer[i].off + il * layer[i].ne0 * layer[i].ne1));
        }
}

static void test_own_checkpoint(void **state)
{
    for (int tied = 0; tied < 2; tied++) {
        unsigned char *ckpt;
        size_t n = make_checkpoint(&ckpt, tied);
        write_bytes(in_dir("own.bin"), ckpt, n);
        convert(in_dir("own.bin"), NULL, NULL, in_dir("own.gguf"));
        hn_gguf *g = open_gguf(in_dir("own.gguf"));
        check_own(g, ckpt, tied);
        assert_int_equal(get_u32(g, "llama.embedding_length"), DIM);
        assert_int_equal(get_u32(g, "llama.feed_forward_length"), FF);
        assert_int_equal(get_u32(g, "llama.block_count"), LAYERS);
        assert_int_equal(get_u32(g, "llama.attention.head_count"), 4);
        assert_int_equal(get_u32(g, "llama.attention.head_count_kv"), 2);
        assert_int_equal(get_u32(g, "llama.rope.dimension_count"), 16);
        assert_int_equal(get_u32(g, "llama.context_length"), SEQ);
        assert_int_equal(get_u32(g, "llama.vocab_size"), VOCAB);
        assert_int_equal(get_u32(g, "general.file_type"), 0);
        assert_int_equal(hn_gguf_find(g, "tokenizer.ggml.model"), -1);
        hone_str s;
        assert_int_equal(hn_gguf_get_str(g, "general.architecture", &s, NULL, NULL), HONE_OK);
        assert_memory_equal(s.ptr, "llama", 5);
        hn_gguf_close(g);
        free(ckpt);
    }
}

/* Q8_0 by hand: d = f16(amax / 127), codes round half away from zero. Rows of 96 and 64 fit. */
static void test_q8_0(void **state)
{
    unsigned char *ckpt;
    size_t n = make_checkpoint(&ckpt, true);
    write_bytes(in_dir("own.bin"), ckpt, n);
    convert(in_dir("own.bin"), NULL, "q8_0", in_dir("own.gguf"));
    hn_gguf *g = open_gguf(in_dir("own.gguf"));
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "blk.1.ffn_down.weight");
    assert_true(t && t->type == HN_Q8_0 && t->n_bytes == FF * DIM / 32 * 34);
    for (size_t b = 0; b < FF * DIM / 32; b++) {
        float x[32], amax = 0;
        memcpy(x, ckpt + 28 + 4 * (O_DOWN + FF * DIM + 32 * b), sizeof x);
        for (int i = 0; i < 32; i++) amax = fmaxf(amax, fabsf(x[i]));
        const unsigned char *q = (const unsigned char *)t->data + 34 * b;
        uint16_t d;
        memcpy(&d, q, 2);
        assert_int_equal(d, hn_f32_to_f16(amax / 127));
        for (int i = 0; i < 32; i++) assert_int_equal((int8_t)q[2 + i], (int)roundf(x[i] * (1 / (amax / 127))));
    }
    assert_int_equal(hn_gguf_find_tensor(g, "blk.1.ffn_norm.weight")->type, HN_F32);
    assert_int_equal(get_u32(g, "general.file_type"), 7);
    hn_gguf_close(g);
    free(ckpt);
}

/* ---- refusals ----------------------------------------------------------------------------- */

static void test_sources_refused_by_name(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        hone_status st;
        const char *says;
    } bad[] = {
        { "", 0, HONE_E_FORMAT, "empty" },
        { "GGUF\3\0\0\0", 8, HONE_E_UNSUPPORTED, "already GGUF" },
        { "PK\3\4xxxxxxxxxxxxxxxxxxxxxxxxxxxx", 32, HONE_E_FORMAT, "truncated" },
        { "\2\0\0\0\0\0\0\0{}", 10, HONE_E_UNSUPPORTED, "not an RWKV-6 or RWKV-7 checkpoint" },
        { "fmgg\x64\0\0\0", 8, HONE_E_FORMAT, "rwkv.cpp" },
        { "24ka\1\0\0\0", 8, HONE_E_UNSUPPORTED, "0x616b3432, version 1" },
        { "version https://git-lfs.github.com/spec/v1\n", 43, HONE_E_FORMAT, "LFS pointer" },
        { "tiny", 4, HONE_E_FORMAT, "4 bytes" },
        { "<!DOCTYPE html><html><head><title>", 34, HONE_E_FORMAT, "not a checkpoint that hone knows" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_bytes(in_dir("bad.bin"), bad[i].bytes, bad[i].n);
        refused(in_dir("bad.bin"), NULL, NULL, bad[i].st, bad[i].says);
        refused(in_dir("bad.bin"), NULL, NULL, bad[i].st, "bad.bin");
    }
    refused(in_dir("absent.bin"), NULL, NULL, HONE_E_IO, "absent.bin");
    refused(dir, NULL, NULL, HONE_E_FORMAT, "folder");
    assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
    refused(in_dir("fifo"), NULL, NULL, HONE_E_IO, "regular file");
    refused("/dev/zero", NULL, NULL, HONE_E_IO, "regular file");
}

static void test_folders_refused_by_name(void **state)
{
    static const char *const files[] = { "params.json", "config.json", "adapter_config.json" };
    static const char *const says[] = { "original Meta", "Hugging Face", "LoRA" };
    for (int i = 0; i < 3; i++) { /* each wins over the earlier ones */
        write_bytes(in_dir(files[i]), "{}", 2);
        refused(dir, NULL, NULL, HONE_E_UNSUPPORTED, says[i]);
    }
    for (int i = 0; i < 3; i++) unlink(in_dir(files[i]));
}

static void with_header(const unsigned char *ckpt, size_t n, int field, int32_t value)
{
    unsigned char *p = malloc(n);
    assert_non_null(p);
    memcpy(p, ckpt, n);
    memcpy(p + 4 * field, &value, 4);
    write_bytes(in_dir("bad.bin"), p, n);
    free(p);
}

static void test_damaged_headers(void **state)
{
    static const struct {
        int field;
        int32_t value;
        const char *says;
    } bad[] = {
        { 0, 0, "dim is 0" },
        { 0, -64, "dim is -64" },
        { 0, INT32_MAX, "dim is 2147483647" },
        { 0, 62, "multiple of n_heads" },
        { 0, 60, "even multiple" },
        { 1, 0, "hidden_dim is 0" },
        { 1, 97, "needs" },
        { 2, 0, "n_layers is 0" },
        { 2, 1024, "needs" },
        { 2, 4, "needs" },
        { 3, 0, "n_heads is 0" },
        { 3, 3, "multiple of n_heads = 3" },
        { 4, 0, "n_kv_heads is 0" },
        { 4, 3, "n_kv_heads = 3" },
        { 4, 8, "n_kv_heads = 8" },
        { 5, 0, "vocab_size is 0" },
        { 5, INT32_MIN, "vocab_size is -2147483648" },
        { 5, 301, "needs" },
        { 5, -VOCAB, "truncated" },
        { 6, 0, "seq_len is 0" },
        { 6, 33, "needs 449372" },
        { 6, 31, "longer" },
        { 6, -1, "seq_len is -1" },
    };
    unsigned char *ckpt;
    size_t n = make_checkpoint(&ckpt, true);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        with_header(ckpt, n, bad[i].field, bad[i].value);
        refused(in_dir("bad.bin"), NULL, NULL, HONE_E_FORMAT, bad[i].says);
    }
    for (size_t cut = 4; cut < n; cut = cut * 3 + 1) { /* truncated anywhere */
        write_bytes(in_dir("bad.bin"), ckpt, cut);
        refused(in_dir("bad.bin"), NULL, NULL, HONE_E_FORMAT, "bad.bin");
    }
    float nan = NAN;
    memcpy(ckpt + 28 + 4 * (O_GATE + FF * DIM + 5), &nan, 4);
    write_bytes(in_dir("bad.bin"), ckpt, n);
    refused(in_dir("bad.bin"), NULL, NULL, HONE_E_NUMERIC, "blk.1.ffn_gate.weight: element 5 is NaN");
    memcpy(ckpt + 28 + 4 * (O_GATE + FF * DIM + 5), &(float){ 1e30f }, 4);
    write_bytes(in_dir("bad.bin"), ckpt, n);
    refused(in_dir("bad.bin"), NULL, "Q8_0", HONE_E_NUMERIC,
            "blk.1.ffn_gate.weight: element 0 is, or stands beside, a number too large for Q8_0");
    refused(in_dir("bad.bin"), NULL, "F16", HONE_E_NUMERIC, "too large for F16");
    free(ckpt);
}

static void test_types_refused(void **state)
{
    unsigned char *ckpt;
    size_t n = make_checkpoint(&ckpt, true);
    write_bytes(in_dir("own.bin"), ckpt, n);
    refused(in_dir("own.bin"), NULL, "Q99", HONE_E_ARG, "Q99");
    hone_error err = { 0 };
    assert_int_equal(hone_convert(in_dir("own.bin"), NULL, NULL, in_dir("own.bin"), NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "is the source"));
    free(ckpt);
}

/* ---- tokenizer ---------------------------------------------------------------------------- */

static size_t put_piece(unsigned char *p, float score, const char *text)
{
    int32_t n = (int32_t)strlen(text);
    memcpy(p, &score, 4);
    memcpy(p + 4, &n, 4);
    memcpy(p + 8, text, (size_t)n);
    return 8 + (size_t)n;
}

static size_t make_tokenizer(unsigned char *p)
{
    size_t n = 4;
    memcpy(p, &(int32_t){ 12 }, 4);
    n += put_piece(p + n, 0, "<unk>");
    n += put_piece(p + n, 0, "\n<s>\n");
    n += put_piece(p + n, 0, "\n</s>\n");
    for (int i = 0; i < 256; i++) {
        char t[8];
        snprintf(t, sizeof t, "<0x%02X>", (unsigned)i);
        n += put_piece(p + n, 0, t);
    }
    n += put_piece(p + n, -1, " ");
    n += put_piece(p + n, -2, "  two words");
    for (int i = 261; i < VOCAB; i++) {
        char t[16];
        snprintf(t, sizeof t, "tok%d", i);
        n += put_piece(p + n, -(float)i, t);
    }
    return n;
}

static void test_tokenizer(void **state)
{
    unsigned char *ckpt, tok[8192];
    size_t n = make_checkpoint(&ckpt, true), k = make_tokenizer(tok);
    write_bytes(in_dir("own.bin"), ckpt, n);
    write_bytes(in_dir("own.tok"), tok, k);
    convert(in_dir("own.bin"), in_dir("own.tok"), "F32", in_dir("own.gguf"));
    hn_gguf *g = open_gguf(in_dir("own.gguf"));
    check_own(g, ckpt, true);
    assert_token(g, 0, "<unk>", 2);
    assert_token(g, 1, "<s>", 3);
    assert_token(g, 2, "</s>", 3);
    assert_token(g, 3, "<0x00>", 6);
    assert_token(g, 258, "<0xFF>", 6);
    assert_token(g, 259, "\xE2\x96\x81", 1);
    assert_token(g, 260, "\xE2\x96\x81\xE2\x96\x81two\xE2\x96\x81words", 1);
    assert_token(g, 299, "tok299", 1);
    assert_int_equal(get_u32(g, "tokenizer.ggml.bos_token_id"), 1);
    assert_int_equal(get_u32(g, "tokenizer.ggml.eos_token_id"), 2);
    assert_int_equal(get_u32(g, "tokenizer.ggml.unknown_token_id"), 0);
    bool b = false;
    assert_int_equal(hn_gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &b, NULL, NULL), HONE_OK);
    assert_true(b);
    hn_gguf_array a;
    float score;
    assert_int_equal(hn_gguf_get_array(g, "tokenizer.ggml.scores", &a, NULL, NULL), HONE_OK);
    assert_int_equal(a.count, VOCAB);
    memcpy(&score, a.data + 4 * 299, 4);
    assert_true(score == -299);
    hn_gguf_close(g);

    const char *src = in_dir("own.bin"), *bad = in_dir("bad.tok");
    write_bytes(bad, tok, k - 1);
    refused(src, bad, NULL, HONE_E_FORMAT, "token 299: length is 6");
    write_bytes(bad, tok, k - 14);
    refused(src, bad, NULL, HONE_E_FORMAT, "ends after 299 tokens");
    tok[k] = 0;
    write_bytes(bad, tok, k + 1);
    refused(src, bad, NULL, HONE_E_FORMAT, "1 bytes follow");
    write_bytes(bad, tok, 100);
    refused(src, bad, NULL, HONE_E_FORMAT, "100 bytes");
    memcpy(tok + 8, &(int32_t){ -1 }, 4);
    write_bytes(bad, tok, k);
    refused(src, bad, NULL, HONE_E_FORMAT, "token 0: length is -1");
    memcpy(tok + 8, &(int32_t){ INT32_MAX }, 4);
    write_bytes(bad, tok, k);
    refused(src, bad, NULL, HONE_E_FORMAT, "token 0: length is 2147483647");
    refused(src, in_dir("absent.tok"), NULL, HONE_E_IO, "absent.tok");
    free(ckpt);
}

/* ---- stories260K --------------------------------------------------------------------------- */

#define STORIES "../shared/data/stories260K/"

static void test_stories(void **state)
{
    /* Offsets in bytes as listed beside the data. */
    static const struct {
        const char *name;
        size_t off, ne0, ne1;
    } layer[] = {
        { "attn_norm", 131100, 64, 1 },  { "attn_q", 132380, 64, 64 },      { "attn_k", 214300, 64, 32 },
        { "attn_v", 255260, 64, 32 },    { "attn_output", 296220, 64, 64 }, { "ffn_norm", 378140, 64, 1 },
        { "ffn_gate", 379420, 64, 172 }, { "ffn_down", 599580, 172, 64 },   { "ffn_up", 819740, 64, 172 },
    };
    size_t n, k;
    unsigned char *ckpt = read_whole(STORIES "stories260K.bin", &n), *tok = read_whole(STORIES "tok512.bin", &k);
    if (!ckpt || !tok) {
        printf("SKIP: " STORIES " is absent\n");
        free(ckpt);
        free(tok);
        skip();
    }
    convert(STORIES "stories260K.bin", STORIES "tok512.bin", NULL, in_dir("s.gguf"));
    hn_gguf *g = open_gguf(in_dir("s.gguf"));
    assert_int_equal(hn_gguf_n_tensors(g), 47);
    assert_f32(g, "token_embd.weight", 64, 512, ckpt + 28);
    assert_f32(g, "output_norm.weight", 64, 1, ckpt + 1039900);
    for (size_t il = 0; il < 5; il++)
        for (size_t i = 0; i < sizeof layer / sizeof *layer; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%zu.%s.weight", il, layer[i].name);
            assert_f32(g, name, layer[i].ne0, layer[i].ne1, ckpt + layer[i].off + 4 * il * layer[i].ne0 * layer[i].ne1);
        }
    /* The tokens that the golden encodings use. */
    assert_token(g, 1, "<s>", 3);
    assert_token(g, 2, "</s>", 3);
    assert_token(g, 13, "<0x0A>", 6);
    assert_token(g, 259, "\xE2\x96\x81t", 1);
    assert_token(g, 403, "\xE2\x96\x81Once", 1);
    assert_token(g, 410, "\xE2\x96\x81", 1);
    assert_token(g, 485, "\xC3\xA9", 1);
    hn_gguf_close(g);
    convert(STORIES "stories260K.bin", NULL, "Q4_K_M", in_dir("s.gguf")); /* 172 is no multiple of 32: F16 */
    g = open_gguf(in_dir("s.gguf"));
    assert_int_equal(hn_gguf_find_tensor(g, "blk.0.ffn_down.weight")->type, HN_F16);
    assert_int_equal(hn_gguf_find_tensor(g, "blk.0.attn_q.weight")->type, HN_Q5_0);
    hn_gguf_close(g);
    free(ckpt);
    free(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_checkpoint),
        cmocka_unit_test(test_q8_0),
        cmocka_unit_test(test_sources_refused_by_name),
        cmocka_unit_test(test_folders_refused_by_name),
        cmocka_unit_test(test_damaged_headers),
        cmocka_unit_test(test_types_refused),
        cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_stories),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
