/* hparams_pool: the numbers of what becomes of rows that are no logits: how those of a text are pooled, and what is
 * behind that. Of every family; the keys are those of ggml-org/llama.cpp:gguf-py/gguf/constants.py. Refuses to know how
 * it is done (engine/embed.c). */
#include "model/hparams.h"

enum { MAX_CLASS = 65536, MAX_TYPES = 1024 };

/* As many scores as names of them, one without names. */
static hone_status class_hparams(hone_model *m, hone_error *err)
{
    char key[128];
    hn_gguf_array a;
    int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, "classifier.output_labels"));
    m->hp.n_class = 1;
    if (at < 0) return HONE_OK;
    if (!hn_gguf_kv_array(m->file, (uint64_t)at, &a) || a.elem_type != HONE_KV_STRING)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is no array of strings, expected the names of a classifier's scores",
                       m->path, key);
    if (a.count > MAX_CLASS)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has %llu names, expected at most %d", m->path, key,
                       (unsigned long long)a.count, MAX_CLASS);
    if (a.count) m->hp.n_class = (int32_t)a.count;
    return HONE_OK;
}

/* Kinds of text, of which token_types has a row each. */
static hone_status type_hparams(hone_model *m, hone_error *err)
{
    static const char key[] = "tokenizer.ggml.token_type_count";
    uint32_t n = 0;
    hone_status st = hn_gguf_get_u32(m->file, key, &n, NULL, err);
    if (st != HONE_OK) return st;
    if (n > MAX_TYPES)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %u, expected at most %d", m->path, key, n, MAX_TYPES);
    if (!n) n = 2;
    m->hp.n_type = (int32_t)n;
    return HONE_OK;
}

/* llama.cpp writes −1 where nothing is said. */
static hone_status kind_of_pooling(const hone_model *m, int32_t *pooling, hone_error *err)
{
    char key[128];
    uint32_t v;
    bool found = false;
    hone_status st = hn_gguf_get_u32(m->file, hn_arch_key(m, key, "pooling_type"), &v, &found, err);
    *pooling = HN_POOL_UNSAID;
    if (st != HONE_OK || !found || v == UINT32_MAX) return st;
    return hn_get_int(m, "pooling_type", 0, HN_POOL_KINDS - 1, -1, pooling, err);
}

/* Rows of ColBERT's models are narrower than the others', by a layer of their own. */
static hone_status lfm2_hparams(hone_model *m, hn_hparams *hp, hone_error *err)
{
    char key[128];
    hone_status st = hn_get_int(m, "embedding_length_out", 1, HN_MAX_EMBD, hp->n_embd, &hp->n_dense[0], err);
    if (st != HONE_OK || hp->n_dense[0] == hp->n_embd || hn_gguf_find_tensor(m->file, "dense_2.weight")) return st;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %d, but there is no tensor dense_2.weight that makes %d of %d numbers",
                   m->path, hn_arch_key(m, key, "embedding_length_out"), hp->n_dense[0], hp->n_dense[0], hp->n_embd);
}

/* What ModernBERT's classifiers judge: the mean, where files do not say it, as llama.cpp has it. */
static hone_status judged_hparams(const hone_model *m, hn_hparams *hp, hone_error *err)
{
    int32_t pooling;
    hone_status st = hn_get_int(m, "classifier.pooling_type", HN_POOL_MEAN, HN_POOL_FIRST, HN_POOL_MEAN, &pooling, err);
    hp->rank_mean = pooling == HN_POOL_MEAN;
    return st;
}

hone_status hn_pool_hparams(hone_model *m, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    hone_status st = kind_of_pooling(m, &hp->pooling, err);
    if (st != HONE_OK) return st;
    if ((st = class_hparams(m, err)) != HONE_OK || (st = type_hparams(m, err)) != HONE_OK) return st;
    if (m->arch->bit == HN_LFM2) return lfm2_hparams(m, hp, err);
    if (m->arch->bit == HN_MODERN_BERT) return judged_hparams(m, hp, err);
    if (m->arch->bit != HN_GEMMA_EMBEDDING) return HONE_OK;
    if ((st = hn_get_int(m, "dense_2_feat_out", 0, HN_MAX_EMBD, 0, &hp->n_dense[0], err)) != HONE_OK) return st;
    return hn_get_int(m, "dense_3_feat_out", 0, HN_MAX_EMBD, 0, &hp->n_dense[1], err);
}
