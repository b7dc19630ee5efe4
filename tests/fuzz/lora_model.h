/* A model small enough to be made for every fuzz target of adapters: one layer of two heads. */
#ifndef HN_FUZZ_LORA_MODEL_H
#define HN_FUZZ_LORA_MODEL_H

#include "model/lora.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROMISE(x)         \
    do {                   \
        if (!(x)) abort(); \
    } while (0)

enum { E = 8, F = 12, V = 4 };

static void put_matrix(hn_gguf_writer *w, const char *name, uint64_t n_in, uint64_t n_out, bool write)
{
    const uint64_t ne[2] = { n_in, n_out };
    static const float zeros[E * F];
    if (!write) PROMISE(hn_gguf_put_tensor(w, name, HN_F32, ne, n_out > 1 ? 2 : 1, NULL) == HONE_OK);
    else PROMISE(hn_gguf_write_data(w, zeros, n_in * n_out * sizeof(float), NULL) == HONE_OK);
}

static hone_model *make_model(void)
{
    static const struct {
        const char *key;
        uint32_t v;
    } keys[] = {
        { "llama.context_length", 64 },     { "llama.embedding_length", E },     { "llama.block_count", 1 },
        { "llama.feed_forward_length", F }, { "llama.attention.head_count", 2 }, { "llama.attention.head_count_kv", 1 },
    };
    static const struct {
        const char *name;
        uint64_t n_in, n_out;
    } tensors[] = {
        { "token_embd.weight", E, V },       { "output_norm.weight", E, 1 },      { "output.weight", E, V },
        { "blk.0.attn_norm.weight", E, 1 },  { "blk.0.ffn_norm.weight", E, 1 },   { "blk.0.attn_q.weight", E, E },
        { "blk.0.attn_k.weight", E, E / 2 }, { "blk.0.attn_v.weight", E, E / 2 }, { "blk.0.attn_output.weight", E, E },
        { "blk.0.ffn_gate.weight", E, F },   { "blk.0.ffn_up.weight", E, F },     { "blk.0.ffn_down.weight", F, E },
    };
    char path[] = "/tmp/hone-fuzz-lora-XXXXXX";
    hn_gguf_writer *w;
    hone_model *m;
    int fd = mkstemp(path);
    PROMISE(fd >= 0 && hn_gguf_writer_new(&w, NULL) == HONE_OK);
    close(fd);
    PROMISE(hn_gguf_put_str(w, "general.architecture", "llama", 5, NULL) == HONE_OK);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        PROMISE(hn_gguf_put_u32(w, keys[i].key, keys[i].v, NULL) == HONE_OK);
    PROMISE(hn_gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f, NULL) == HONE_OK);
    for (int write = 0; write < 2; write++) {
        for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
            put_matrix(w, tensors[i].name, tensors[i].n_in, tensors[i].n_out, write);
        if (!write) PROMISE(hn_gguf_write_begin(w, path, NULL) == HONE_OK);
    }
    PROMISE(hn_gguf_write_end(w, NULL) == HONE_OK);
    hn_gguf_writer_free(w);
    PROMISE(hone_model_open(&m, path, NULL, NULL) == HONE_OK);
    unlink(path); /* it stays mapped */
    return m;
}

/* What every accepted adapter keeps. */
static void check_lora(const hone_model *m, const hn_lora *l)
{
    for (int32_t i = 0; i < l->n_pair; i++) {
        const hn_lora_pair *p = &l->pair[i];
        const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, p->name);
        PROMISE(t && t->ne[0] == (uint64_t)p->n_in && t->ne[1] == (uint64_t)p->n_out && p->rank >= 1 &&
                isfinite(p->scale));
        for (int64_t k = 0; k < p->rank * p->n_in; k++) PROMISE(isfinite(p->a[k]));
        for (int64_t k = 0; k < p->rank * p->n_out; k++) PROMISE(isfinite(p->b[k]));
    }
}

#endif
