/* The tree of a vocabulary: which bytes each token stands for, as masks need it. */
#include "text/text_priv.h"
#include "text/token_tree.h"

static hone_status fill(hn_token_tree *t, const hn_vocab *v, hone_error *err)
{
    int32_t n = hn_vocab_size(v), n_end = 0;
    size_t used = 0;
    hn_token_text *list = malloc(((size_t)n + 1) * sizeof *list);
    hone_str *piece = calloc((size_t)n + 1, sizeof *piece);
    int32_t *end = malloc(((size_t)n + 1) * sizeof *end);
    hone_status st = list && piece && end ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "tree of %d tokens", n);
    for (int32_t id = 0; id < n && st == HONE_OK; id++) {
        size_t len;
        if (hn_vocab_is_eog(v, id)) {
            end[n_end++] = id;
            continue;
        }
        const char *p = hn_vocab_piece(v, id, false, &len);
        if (!p || len == 0) continue;
        piece[id] = (hone_str){ p, len };
        list[used++] = (hn_token_text){ p, (uint32_t)len, id };
    }
    if (st == HONE_OK) st = hn_token_tree_make(t, list, used, err);
    free(list);
    if (st != HONE_OK) {
        free(piece);
        free(end);
        return st;
    }
    t->n_vocab = n;
    t->piece = piece;
    t->end_ids = end;
    t->n_end = n_end;
    return hn_token_tree_plain(t, err);
}

static void drop(hn_token_tree *t)
{
    if (t) hn_token_tree_free(t);
    free(t);
}

hone_status hn_vocab_tokens(const hn_vocab *v, const hn_token_tree **out, hone_error *err)
{
    hn_vocab *own = (hn_vocab *)v; /* what is learnt late is not part of what v says */
    *out = atomic_load(&own->tokens);
    if (*out) return HONE_OK;
    hn_token_tree *t = calloc(1, sizeof *t), *none = NULL;
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "tree of tokens");
    hone_status st = fill(t, v, err);
    if (st != HONE_OK) {
        drop(t);
        return st;
    }
    if (!atomic_compare_exchange_strong(&own->tokens, &none, t)) { /* another thread was faster */
        drop(t);
        t = none;
    }
    *out = t;
    return HONE_OK;
}

void hn_vocab_tokens_free(hn_vocab *v) { drop(atomic_load(&v->tokens)); }
