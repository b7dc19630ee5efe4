/* begin: see begin.h. Reads the texts; the vocabulary is text/bpe.h's, the model forge/init.h's. */
#include "train/begin.h"
#include "base/floats.h"

#include "base/file.h"
#include "forge/init.h"
#include "forge/synth.h"
#include "train/data_parts.h"

static hone_status take_text(hn_data_reader *r, const char *s, size_t n)
{
    hone_status st = hn_bpe_text(r->arg, s, n, r->err);
    if (st != HONE_E_NOMEM) return st;
    return HN_FAIL(r->err, st, "%s:%lld: %zu different words so far", r->path, (long long)r->line,
                   hn_bpe_words(r->arg));
}

hone_status hn_bpe_train(hn_bpe **out, const hn_bpe_params *p, hone_error *err)
{
    hn_bpe_maker *m;
    hn_dataset d = { 0 };
    hn_data_params dp = {
        .path = p->path, .n_path = p->n_path, .max_bad = p->max_bad, .abort_fn = p->abort_fn, .abort_arg = p->abort_arg
    };
    *out = NULL;
    hone_status st = hn_bpe_begin(&m, &p->rules, err);
    hn_data_reader r = { .d = &d, .p = &dp, .err = err, .take = take_text, .arg = m };
    for (int32_t i = 0; i < p->n_path && st == HONE_OK; i++) { st = hn_data_read_path(&r, p->path[i]); }
    if (st == HONE_OK && !hn_bpe_words(m))
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: no text for a tokenizer", p->n_path ? p->path[0] : "data");
    if (st == HONE_OK) st = hn_bpe_end(out, m, err);
    hn_bpe_drop(m);
    return st;
}

/* Special tokens: <|bos|> = 0, <|endoftext|> = 1, then the caller's. */
static hone_status make_tokenizer(hn_bpe **out, const hone_init_params *p, hone_error *err)
{
    hone_status st = HONE_OK;
    hn_synth_shape shape = { 0 };
    *out = NULL;
    const char **special = calloc((size_t)p->n_special + 2, sizeof *special);
    if (!special) return HN_FAIL(err, HONE_E_NOMEM, "%d special tokens", p->n_special);
    special[0] = "<|bos|>";
    special[1] = "<|endoftext|>";
    for (int32_t i = 0; i < p->n_special; i++) special[2 + i] = p->special[i];
    hn_bpe_params b = { .path = p->data,
                        .n_path = p->n_data,
                        .rules = { .n_vocab = p->n_vocab, .special = special, .n_special = p->n_special + 2 },
                        .max_bad = p->max_bad_lines,
                        .abort_fn = p->abort_fn,
                        .abort_arg = p->abort_arg };
    if (!b.rules.n_vocab) st = hn_synth_config(&shape, p->config, err); /* which names what it misses */
    if (st == HONE_OK && !b.rules.n_vocab) b.rules.n_vocab = shape.n_vocab;
    if (st == HONE_OK) st = hn_bpe_train(out, &b, err);
    hn_synth_shape_free(&shape);
    free(special);
    return st;
}

hone_status hone_init_model(const char *dst, const hone_init_params *p, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, dst, "the path of the file to write");
    HN_NEED(err, p, "parameters");
    HN_NEED(err, p->config, "the path of a shape's JSON file");
    if (p->n_data < 0) return HN_FAIL(err, HONE_E_ARG, "%s: %d files of data, expected 0 or more", dst, p->n_data);
    if (p->n_data) HN_NEED(err, p->data, "a pointer to n_data paths");
    HN_NEED_EACH(err, p->data, p->n_data, "the path of a file");
    if (p->n_vocab < 0)
        return HN_FAIL(err, HONE_E_ARG, "%s: a vocabulary of %d tokens, expected 0 or more", dst, p->n_vocab);
    if (p->max_bad_lines < 0)
        return HN_FAIL(err, HONE_E_ARG, "%s: %lld bad lines that are left out, expected 0 or more", dst,
                       (long long)p->max_bad_lines);
    if (p->n_special < 0 || (p->n_special && p->tokenizer))
        return HN_FAIL(err, HONE_E_ARG, "%s: %d special tokens; expected 0 or more, of a tokenizer made of texts", dst,
                       p->n_special);
    if (p->n_special) HN_NEED(err, p->special, "a pointer to n_special texts");
    HN_NEED_EACH(err, p->special, p->n_special, "the text of a special token");
    hn_init init = { .config = p->config, .bos = 0, .eos = 1, .add_bos = true, .name = p->name, .seed = p->seed };
    hone_model *m = NULL;
    hn_bpe *bpe = NULL;
    hone_status st = HONE_OK;
    if (!p->tokenizer == !p->n_data)
        return HN_FAIL(err, HONE_E_ARG, "%s: expected either a model whose tokenizer is taken or texts to make one of",
                       dst);
    const hn_file_use use[] = { { dst, "the model to begin from", NULL, HN_FILE_WRITTEN },
                                { p->config, "the shape", NULL, HN_FILE_READ },
                                { p->tokenizer, "the model of the tokenizer", NULL, HN_FILE_READ } };
    st = hn_files_apart(use, sizeof use / sizeof *use, err);
    for (int32_t i = 0; i < p->n_data && st == HONE_OK; i++)
        st = hn_files_apart((const hn_file_use[]){ use[0], { p->data[i], "a text", NULL, HN_FILE_DATA } }, 2, err);
    if (st != HONE_OK) return st;
    if (p->tokenizer) {
        st = hone_model_open(&m, p->tokenizer, &(hone_model_params){ .vocab_only = true }, err);
        init.tokenizer = m;
    } else {
        st = make_tokenizer(&bpe, p, err);
        init.bpe = bpe;
    }
    if (st == HONE_OK) st = hn_init_model(dst, &init, err);
    hn_bpe_free(bpe);
    hone_model_close(m);
    return st;
}
