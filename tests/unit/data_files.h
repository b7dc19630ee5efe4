/* A folder with a model that is only a vocabulary of bytes, and data files for it. Its tokens are
 * <s> </s> <|im_start|> <|im_end|>, then byte b as 4 + b, then what "a b" and "b c" merge to. */
#ifndef HN_DATA_FILES_H
#define HN_DATA_FILES_H

#include "gguf_bytes.h"
#include "train/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

enum { DF_BOS, DF_EOS, DF_START, DF_END, DF_BYTE, DF_AB = DF_BYTE + 256, DF_BC, DF_N };

/* Also for programs without cmocka. */
static inline void df_must(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static char df_dir[64];
static __attribute__((unused)) const char *df_path(const char *name)
{
    static char path[4][160];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", df_dir, name);
    return path[k];
}

static __attribute__((unused)) int df_begin(void **state)
{
    strcpy(df_dir, "/tmp/hone-data-XXXXXX");
    return mkdtemp(df_dir) ? 0 : -1;
}
static __attribute__((unused)) int df_end(void **state)
{
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -r %s", df_dir);
    return system(cmd);
}

static __attribute__((unused)) const char *df_write(const char *name, const char *bytes, size_t n)
{
    const char *path = df_path(name);
    FILE *f = fopen(path, "wb");
    df_must(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, path);
    return path;
}
#define DF_FILE(name, literal) df_write(name, literal, sizeof(literal) - 1)

/* The character that stands for a byte: the printable ones for themselves, the others from U+0100 on. */
static void df_symbol(char out[4], int b)
{
    int c = 0x100;
    for (int k = 0; k <= b; k++) {
        bool self = (k >= '!' && k <= '~') || (k >= 0xA1 && k <= 0xAC) || k >= 0xAE;
        if (k == b && self) c = b;
        else if (k < b && !self) c++;
    }
    snprintf(out, 4, c < 0x80 ? "%c" : "%c%c", c < 0x80 ? c : 0xC0 | c >> 6, 0x80 | (c & 63));
}

static int32_t df_eot = -1; /* of models made from now on; -1: none */

/* template_ NULL: without, and <|im_start|> and <|im_end|> have other names, which would stand for one. */
static __attribute__((unused)) hone_model *df_model(const char *name, const char *template_, bool add_bos)
{
    bb f = bb_head(3, 0, 8 + (template_ != NULL) + (df_eot >= 0));
    const char *special[] = { "<s>", "</s>", "<|im_start|>", "<|im_end|>" };
    hone_model *m;
    hone_error e = { 0 };
    bb_kv_str(&f, "tokenizer.ggml.model", "gpt2");
    bb_kv_str(&f, "tokenizer.ggml.pre", "gpt-2");
    bb_kv_array(&f, "tokenizer.ggml.tokens", 8, DF_N);
    for (int i = 0; i < 4; i++) bb_str(&f, template_ || i < 2 ? special[i] : i == 2 ? "<|two|>" : "<|three|>");
    for (int b = 0; b < 256; b++) {
        char s[4];
        df_symbol(s, b);
        bb_str(&f, s);
    }
    bb_str(&f, "ab");
    bb_str(&f, "bc");
    bb_kv_array(&f, "tokenizer.ggml.token_type", 5, DF_N);
    for (int i = 0; i < DF_N; i++) bb_u32(&f, i < 4 ? 3 : 1);
    bb_kv_array(&f, "tokenizer.ggml.merges", 8, 2);
    bb_str(&f, "a b");
    bb_str(&f, "b c");
    bb_kv_u32(&f, "tokenizer.ggml.bos_token_id", DF_BOS);
    bb_kv_u32(&f, "tokenizer.ggml.eos_token_id", DF_EOS);
    bb_kv(&f, "tokenizer.ggml.add_bos_token", 7, add_bos, 1);
    if (df_eot >= 0) bb_kv_u32(&f, "tokenizer.ggml.eot_token_id", (uint32_t)df_eot);
    if (template_) bb_kv_str(&f, "tokenizer.chat_template", template_);
    const char *path = df_path(name);
    bb_pad(&f, 32);
    bb_save(&f, path);
    bb_free(&f);
    df_must(hone_model_open(&m, path, &(hone_model_params){ .vocab_only = true }, &e) == HONE_OK, e.message);
    return m;
}

/* A sample as text, tokens that count in brackets. */
static __attribute__((unused)) char *df_show(const hn_data_sample *s)
{
    static char out[4096];
    static const char *const special[] = { "<s>", "</s>", "<|im_start|>", "<|im_end|>" };
    size_t n = 0;
    bool in = false;
    for (int32_t i = 0; i <= s->n; i++) {
        bool counts = i > 0 && i < s->n && s->target[i];
        if (counts != in) out[n++] = counts ? '[' : ']';
        in = counts;
        if (i == s->n) break;
        int32_t id = s->ids[i];
        if (id < DF_BYTE) n += (size_t)sprintf(out + n, "%s", special[id]);
        else if (id < DF_AB) out[n++] = (char)(id - DF_BYTE);
        else n += (size_t)sprintf(out + n, "{%s}", id == DF_AB ? "ab" : "bc");
    }
    out[n] = 0;
    return out;
}

#endif
