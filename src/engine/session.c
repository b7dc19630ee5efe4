/* Sessions: the caches of several sequences and the batches that extend them. All
 * memory is reserved before the first token; between a call's start and its logits
 * nothing is allocated. */
#include "engine/engine.h"

#include <float.h>
#include <stdlib.h>

enum { DEFAULT_CTX = 4096, DEFAULT_CHUNK = 512, DEFAULT_CHECKPOINTS = 8, MAX_SEQ = 4096, MAX_CHUNK = 65536, MAX_CHECKPOINTS = 4096 };

static bool own(hone_session *s, float **p, uint64_t n)
{
    *p = s->be->op->alloc(s->be, n);
    if (!*p) return false;
    s->own[s->n_own].p = p;
    s->own[s->n_own++].n = n;
    return true;
}

static int64_t max3(int64_t a, int64_t b, int64_t c) { return a > b ? (a > c ? a : c) : (b > c ? b : c); }

/* Bytes of the cache (or of all states), of the scratch for n_tok rows; false: absurd. */
static bool plan(const hone_session *s, uint64_t *cache_bytes, uint64_t *scratch_bytes)
{
    const hn_hparams *hp = &s->model->hp;
    uint64_t b = s->head_bytes, per_row, n_split = (uint64_t)(s->n_pos + HN_SPLIT - 1) / HN_SPLIT;
    if (hp->recurrent) {
        /* each sequence's, as it was before the running call, and what is remembered */
        if (!hn_mul_u64(s->state_floats * sizeof(float), 2 * (uint64_t)s->n_seq + (uint64_t)s->n_checkpoint, &b)) return false;
        per_row = 24 * (uint64_t)hp->n_embd + 3 * (uint64_t)hp->n_ff;
    } else {
        if (!hn_mul_u64(b, 2 * (uint64_t)hp->n_layer * (uint64_t)hp->n_head_kv, &b) || !hn_mul_u64(b, n_split, &b) || !hn_mul_u64(b, (uint64_t)s->n_seq, &b)) return false;
        per_row = 3 * (uint64_t)hp->n_embd + 3 * (uint64_t)hp->n_ff + 4 * (uint64_t)hp->n_head * (uint64_t)hp->head_dim;
    }
    *cache_bytes = b;
    return hn_mul_u64(per_row * sizeof(float), (uint64_t)s->n_chunk, scratch_bytes) && b < (uint64_t)1 << 46 && *scratch_bytes < (uint64_t)1 << 46;
}

static bool own_act(hone_session *s, hn_act *a, int64_t n)
{
    s->act[s->n_act].a = a;
    s->act[s->n_act++].n = n;
    return s->be->op->act_alloc(s->be, a, n, s->n_chunk);
}

/* The cache and scratch of models with attention. */
static bool alloc_attention(hone_session *s, uint64_t cache_bytes)
{
    const hn_hparams *hp = &s->model->hp;
    int64_t n_q = (int64_t)hp->n_head * hp->head_dim, n_kv = (int64_t)hp->n_head_kv * hp->head_dim, t = s->n_chunk, widest = max3(hp->n_embd, n_q, 0);
    s->cache_floats = cache_bytes / sizeof(float);
    s->kv = calloc((size_t)hp->n_layer, sizeof *s->kv);
    s->cache_mem = (char *)s->be->op->alloc_cache(s->be, s->cache_floats);
    if (!s->kv || !s->cache_mem || !own(s, &s->s.x, (uint64_t)(t * hp->n_embd)) || !own(s, &s->s.h, (uint64_t)(t * (widest + 31))) ||
        !own(s, &s->s.q, (uint64_t)(t * n_q)) || !own(s, &s->s.k, (uint64_t)(t * n_kv)) || !own(s, &s->s.v, (uint64_t)(t * n_kv)) ||
        !own(s, &s->s.up, (uint64_t)(t * (hp->n_ff + 31))) || !own(s, &s->s.rope, (uint64_t)(t * hp->n_rot)) ||
        !own_act(s, &s->s.act, widest) || !own_act(s, &s->s.ff, hp->n_ff))
        return false;
    size_t half = s->head_bytes * (size_t)hp->n_head_kv, split_bytes = 2 * half * (size_t)hp->n_layer;
    for (int32_t il = 0; il < hp->n_layer; il++)
        s->kv[il] = (hn_kv){ .k = s->cache_mem + 2 * half * (size_t)il, .v = s->cache_mem + 2 * half * (size_t)il + half,
                             .seq_bytes = split_bytes * (size_t)((s->n_pos + HN_SPLIT - 1) / HN_SPLIT), .split_bytes = split_bytes,
                             .head_bytes = s->head_bytes, .n_head_kv = hp->n_head_kv, .d = hp->head_dim, .type = s->cache };
    return true;
}

/* The states and scratch of recurrent models. */
static bool alloc_recurrent(hone_session *s)
{
    const hn_hparams *hp = &s->model->hp;
    int64_t e = hp->n_embd, t = s->n_chunk, rank = max3(hp->rank_decay, hp->rank_iclr, max3(hp->rank_value, hp->rank_gate, max3(hp->n_extra, hp->n_decay, 1)));
    float **const rows[] = { &s->s.x, &s->s.r, &s->s.k, &s->s.v, &s->s.w, &s->s.a, &s->s.v_mix, &s->s.g, &s->s.v_first };
    s->state = calloc((size_t)hp->n_layer, sizeof *s->state);
    s->touched = calloc((size_t)s->n_seq, 1);
    s->last_row = calloc((size_t)s->n_seq, sizeof *s->last_row);
    s->checkpoint = calloc((size_t)s->n_checkpoint + 1, sizeof *s->checkpoint);
    s->state_mem = s->be->op->alloc_cache(s->be, s->state_floats * (uint64_t)s->n_seq);
    s->backup = s->be->op->alloc_cache(s->be, s->state_floats * (uint64_t)s->n_seq);
    if (!s->state || !s->touched || !s->last_row || !s->checkpoint || !s->state_mem || !s->backup || !own(s, &s->s.h, (uint64_t)(t * (e + 31)))) return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!own(s, rows[i], (uint64_t)(t * e))) return false;
    for (int c = 0; c < HN_MAX_SHIFT; c++)
        if (!own_act(s, &s->s.shift[c], e)) return false;
    for (int c = 0; c < (int)(sizeof s->s.low / sizeof *s->s.low); c++)
        if (!own_act(s, &s->s.low[c], rank)) return false;
    if (!own_act(s, &s->s.act, e) || !own_act(s, &s->s.ff, hp->n_ff)) return false;
    for (int32_t i = 0; i < s->n_checkpoint; i++) s->checkpoint[i].seq = -1;
    for (int32_t il = 0; il < hp->n_layer; il++)
        s->state[il] = (hn_state){ .mem = s->state_mem + (int64_t)il * hn_state_floats(hp), .seq_floats = s->state_floats, .n_embd = e };
    return true;
}

hone_status hone_session_new(hone_session **out, hone_context *ctx, const hone_model *m, const hone_session_params *params, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the session");
    HN_NEED(err, ctx, "a context");
    HN_NEED(err, m, "an open model");
    const hn_hparams *hp = &m->hp;
    hone_session_params p = params ? *params : (hone_session_params){ 0 };
    if (!m->arch) return HN_FAIL(err, HONE_E_ARG, "%s: opened for its vocabulary only", m->path);
    if (p.n_ctx == 0) p.n_ctx = hp->recurrent ? HN_MAX_CTX : hp->n_ctx_train < DEFAULT_CTX ? hp->n_ctx_train : DEFAULT_CTX;
    if (p.n_checkpoints == 0) p.n_checkpoints = DEFAULT_CHECKPOINTS;
    if (p.n_seq == 0) p.n_seq = 1;
    if (p.n_chunk == 0) p.n_chunk = DEFAULT_CHUNK;
    if (p.n_ctx < 1 || p.n_ctx > HN_MAX_CTX) return HN_FAIL(err, HONE_E_ARG, "context of %d positions, expected 1 to %d", p.n_ctx, HN_MAX_CTX);
    if (p.n_seq < 1 || p.n_seq > MAX_SEQ) return HN_FAIL(err, HONE_E_ARG, "%d sequences, expected 1 to %d", p.n_seq, MAX_SEQ);
    if (p.n_chunk < 1 || p.n_chunk > MAX_CHUNK) return HN_FAIL(err, HONE_E_ARG, "chunk of %d tokens, expected 1 to %d", p.n_chunk, MAX_CHUNK);
    if (p.n_checkpoints < 0 || p.n_checkpoints > MAX_CHECKPOINTS) return HN_FAIL(err, HONE_E_ARG, "%d checkpoints, expected 0 to %d", p.n_checkpoints, MAX_CHECKPOINTS);
    if (p.cache < HONE_CACHE_F16 || p.cache > HONE_CACHE_Q8_0) return HN_FAIL(err, HONE_E_ARG, "cache type %d, expected f16, f32 or q8_0", (int)p.cache);

    uint64_t total = hn_memory_total();
    if (!p.allow_paging && total && m->bytes_per_token > total)
        return HN_FAIL(err, HONE_E_NOMEM, "%s: %.1f GiB of weights are read for every token, this machine has %.1f GiB of memory: each token would come from disk",
                       m->path, (double)m->bytes_per_token / 0x1p30, (double)total / 0x1p30);

    hone_session *s = calloc(1, sizeof *s);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "session handle");
    hone_status st;
    s->ctx = ctx;
    s->model = m;
    s->n_ctx = p.n_ctx;
    s->n_seq = p.n_seq;
    s->n_chunk = p.n_chunk;
    s->cache = (hn_cache_type)p.cache;
    s->n_checkpoint = hp->recurrent ? p.n_checkpoints : 0;
    s->state_floats = hp->recurrent ? (uint64_t)hp->n_layer * (uint64_t)hn_state_floats(hp) : 0;
    int64_t unit = p.n_ctx > HN_SPLIT ? HN_SPLIT : HN_SOFT_BLOCK, n_q = (int64_t)hp->n_head * hp->head_dim;
    s->n_pos = hp->recurrent ? 0 : (p.n_ctx + unit - 1) / unit * unit;
    s->head_bytes = (size_t)((s->n_pos < HN_SPLIT ? s->n_pos : HN_SPLIT) / HN_KEY_BLOCK) * hn_cache_block_bytes(s->cache, hp->head_dim);

    uint64_t cache_bytes = 0, scratch_bytes = 0, have = hn_memory_available();
    if (!plan(s, &cache_bytes, &scratch_bytes) || (have && cache_bytes + scratch_bytes > have)) {
        st = hp->recurrent ? HN_FAIL(err, HONE_E_NOMEM, "the states of %d sequences need %.1f GiB and scratch %.1f GiB, %.1f GiB are available; use fewer sequences or a smaller chunk",
                                     p.n_seq, (double)cache_bytes / 0x1p30, (double)scratch_bytes / 0x1p30, (double)have / 0x1p30)
                           : HN_FAIL(err, HONE_E_NOMEM,
                                     "a context of %d positions × %d sequences needs %.1f GiB of cache and %.1f GiB of scratch, %.1f GiB are available; use a smaller context (-c) or chunk",
                                     p.n_ctx, p.n_seq, (double)cache_bytes / 0x1p30, (double)scratch_bytes / 0x1p30, (double)have / 0x1p30);
        goto fail;
    }
    int64_t t = p.n_chunk;
    const hn_cpu_params bp = { .pool = ctx->pool, .kernels = ctx->kernels, .max_n_in = max3(hp->n_embd, n_q, hp->n_ff), .n_head = hp->recurrent ? 0 : hp->n_head,
                               .n_head_kv = hp->n_head_kv, .d = hp->head_dim, .n_ctx = s->n_pos };
    if ((st = hn_backend_cpu_new(&s->be, &bp, err)) != HONE_OK) goto fail;
    s->length = calloc((size_t)p.n_seq, sizeof *s->length);
    s->next = calloc((size_t)p.n_seq, sizeof *s->next);
    s->rows = calloc((size_t)t, sizeof *s->rows);
    s->want = calloc((size_t)t, sizeof *s->want);
    s->prompt = calloc((size_t)t, sizeof *s->prompt);
    if (!s->length || !s->next || !s->rows || !s->want || !s->prompt || !(hp->recurrent ? alloc_recurrent(s) : alloc_attention(s, cache_bytes)) ||
        !(s->logits = hn_pages_alloc((size_t)hp->n_vocab * sizeof(float)))) {
        st = HN_FAIL(err, HONE_E_NOMEM, "session: %.1f GiB of cache and %.1f GiB of scratch were refused", (double)cache_bytes / 0x1p30, (double)scratch_bytes / 0x1p30);
        goto fail;
    }
    *out = s;
    return HONE_OK;
fail:
    hone_session_free(s);
    return st;
}

void hone_session_free(hone_session *s)
{
    if (!s) return;
    if (s->be) {
        for (int i = 0; i < s->n_own; i++) s->be->op->release(s->be, *s->own[i].p, s->own[i].n);
        for (int i = 0; i < s->n_act; i++) s->be->op->act_release(s->be, s->act[i].a, s->act[i].n, s->n_chunk);
        if (s->state_mem) s->be->op->release(s->be, s->state_mem, s->state_floats * (uint64_t)s->n_seq);
        if (s->backup) s->be->op->release(s->be, s->backup, s->state_floats * (uint64_t)s->n_seq);
        if (s->cache_mem) s->be->op->release(s->be, (float *)s->cache_mem, s->cache_floats);
        s->be->op->free(s->be);
    }
    hn_pages_free(s->logits, (size_t)s->model->hp.n_vocab * sizeof(float));
    hn_checkpoints_free(s);
    hn_adapter_set_free(&s->adapters);
    free(s->kv);
    free(s->state);
    free(s->touched);
    free(s->last_row);
    free(s->length);
    free(s->next);
    free(s->rows);
    free(s->want);
    free(s->prompt);
    free(s);
}

/* ---- running ----------------------------------------------------------------------------------- */

/* Which rows of the batch follow each other in a sequence. */
static void link_rows(hone_session *s, int32_t n)
{
    for (int32_t i = 0; i < n; i++) s->last_row[s->rows[i].seq] = -1;
    for (int32_t i = 0; i < n; i++) {
        int32_t *last = &s->last_row[s->rows[i].seq];
        s->rows[i].prev = *last;
        s->rows[i].last = true;
        if (*last >= 0) s->rows[*last].last = false;
        *last = i;
    }
}

/* One forward pass over n ≤ n_chunk tokens; lengths are the caller's business. False: aborted. */
static bool run_chunk(hone_session *s, const hone_token *tok, int32_t n, bool may_abort, float *logits, int32_t *n_wanted)
{
    int32_t n_want = 0;
    for (int32_t i = 0; i < n; i++) {
        s->rows[i] = (hn_row){ .token = tok[i].id, .seq = tok[i].seq, .pos = tok[i].pos };
        if (tok[i].want_logits) s->want[n_want++] = i;
    }
    if (s->state) link_rows(s, n);
    hn_forward f = { .be = s->profile_fn ? &s->profiled.base : s->be, .s = &s->s, .kv = s->kv, .state = s->state, .rows = s->rows, .n_tok = n,
                     .want = s->want, .n_want = n_want, .logits = logits, .abort_fn = may_abort ? s->abort_fn : NULL, .abort_arg = s->abort_arg };
    *n_wanted = n_want;
    hn_pool_limit(s->ctx->pool, n > HN_FEW_TOKENS ? s->ctx->n_threads_batch : s->ctx->n_threads);
    bool done = s->model->arch->forward(hn_session_model(s), &f);
    if (s->profile_fn) hn_backend_profile_flush(&s->profiled);
    return done;
}

/* Ids, sequences and positions of the whole batch, before anything is touched. */
static hone_status check_batch(hone_session *s, const hone_token *tok, int32_t n, bool have_logits, hone_error *err)
{
    memcpy(s->next, s->length, (size_t)s->n_seq * sizeof *s->next);
    for (int32_t i = 0; i < n; i++) {
        if (tok[i].id < 0 || tok[i].id >= s->model->hp.n_vocab)
            return HN_FAIL(err, HONE_E_ARG, "token %d of the batch has id %d, expected 0 to %d", i, tok[i].id, s->model->hp.n_vocab - 1);
        if (tok[i].seq < 0 || tok[i].seq >= s->n_seq)
            return HN_FAIL(err, HONE_E_ARG, "token %d of the batch has sequence %d, expected 0 to %d", i, tok[i].seq, s->n_seq - 1);
        if (tok[i].pos != s->next[tok[i].seq])
            return HN_FAIL(err, HONE_E_ARG, "token %d of the batch has position %d in sequence %d, expected %d", i, tok[i].pos, tok[i].seq, s->next[tok[i].seq]);
        if (tok[i].pos >= s->n_ctx) {
            int32_t total = s->length[tok[i].seq];
            for (int32_t k = 0; k < n; k++) total += tok[k].seq == tok[i].seq;
            return HN_FAIL(err, HONE_E_CTX, "%d tokens do not fit a context of %d positions", total, s->n_ctx);
        }
        if (tok[i].want_logits && !have_logits)
            return HN_FAIL(err, HONE_E_ARG, "hone_decode: logits is NULL; expected room for them, which token %d wants", i);
        s->next[tok[i].seq]++;
    }
    return HONE_OK;
}

/* A recurrent state forgets what it was: before a call that may be stopped halfway, those of its
 * sequences (all in the first n tokens of n_call) are copied. Few tokens are run to their end instead. */
static bool keep_states(hone_session *s, const hone_token *tok, int32_t n, int32_t n_call)
{
    if (!s->state) return true;
    if (!s->abort_fn || n_call <= HN_FEW_TOKENS) return false;
    memset(s->touched, 0, (size_t)s->n_seq);
    for (int32_t i = 0; i < n; i++) {
        if (!s->touched[tok[i].seq]) memcpy(s->backup + (uint64_t)tok[i].seq * s->state_floats, hn_state_of(s, tok[i].seq), s->state_floats * sizeof(float));
        s->touched[tok[i].seq] = 1;
    }
    return true;
}

static void undo_states(hone_session *s)
{
    for (int32_t i = 0; s->state && i < s->n_seq; i++)
        if (s->touched[i]) memcpy(hn_state_of(s, i), s->backup + (uint64_t)i * s->state_floats, s->state_floats * sizeof(float));
}

/* ---- what is no number ---- */

static const char *const cache_names[HN_CACHE_TYPES] = { "f16", "f32", "q8_0" };

/* "NaN", "infinity" or the digits of x. */
static const char *number_words(char dst[32], float x)
{
    if (isfinite(x)) snprintf(dst, 32, "%.9g", (double)x);
    else snprintf(dst, 32, "%s", isnan(x) ? "NaN" : x > 0 ? "infinity" : "-infinity");
    return dst;
}

#define OVERFLOWS "the weights, or activations made of them, overflow; "
#define CHECK "look for bad weights with: hone inspect %s --check"

/* A key or value that its cache cannot hold; the file is to blame where it was no number before. */
static hone_status fail_stored(const hone_session *s, const hn_fault *f, hone_error *err)
{
    char number[32], where[160];
    const char *path = HN_ESC(s->model->path, strlen(s->model->path));
    snprintf(where, sizeof where, "layer %d: %c of position %lld (sequence %d, head %lld) is %s",
             (int)(f->kv - s->kv), f->what, (long long)f->pos, (int)f->seq, (long long)f->head,
             number_words(number, f->value));
    if (!isfinite(f->value))
        return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s before it is stored, expected a finite number: " OVERFLOWS CHECK,
                       path, where, path);
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s, expected at most %s; use an f32 cache: --kv f32", path, where,
                   f->kv->type == HN_CACHE_F16 ? "65504, the largest number that an f16 cache holds"
                                               : "8319008, 127 times the largest f16 scale of a q8_0 cache");
}

/* Logits [n_want, n_vocab] of rows want[]: all finite, or the first that is not is named. */
static hone_status check_logits(const hone_session *s, const float *logits, int32_t n_want, hone_error *err)
{
    int64_t n = s->model->hp.n_vocab, i = 0;
    char number[32], where[160], cache[64] = "";
    for (int32_t r = 0; r < n_want; r++, logits += n) {
        if (hn_all_within(logits, n, FLT_MAX)) continue;
        while (isfinite(logits[i])) i++;
        const hn_row *row = &s->rows[s->want[r]];
        const char *path = HN_ESC(s->model->path, strlen(s->model->path));
        snprintf(where, sizeof where, "the logit of token %lld after position %lld (token %d, sequence %d) is %s",
                 (long long)i, (long long)row->pos, (int)row->token, (int)row->seq, number_words(number, logits[i]));
        if (s->kv && s->cache != HN_CACHE_F32)
            snprintf(cache, sizeof cache, "rule out the %s cache with --kv f32, and ", cache_names[s->cache]);
        return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s, expected a finite number: " OVERFLOWS "%s" CHECK, path, where,
                       cache, path);
    }
    return HONE_OK;
}

/* Of a chunk that was run: what could not be stored, asked once, else what the logits hold. */
static hone_status check_numbers(hone_session *s, const float *logits, int32_t n_want, hone_error *err)
{
    hn_fault f = s->be->op->fault(s->be);
    return f.kv ? fail_stored(s, &f, err) : check_logits(s, logits, n_want, err);
}

/* A recurrent state is made of what failed, and has no past: where it was not copied before, it goes back. */
static void lose_states(hone_session *s, const hone_token *tok, int32_t n)
{
    for (int32_t i = 0; s->state && i < n; i++) hn_state_lost(s, tok[i].seq);
}

/* All chunks of a checked batch. */
static hone_status run_all(hone_session *s, const hone_token *tok, int32_t n_tok, bool may_abort, float *logits, hone_error *err)
{
    for (int32_t at = 0; at < n_tok;) {
        int32_t n = n_tok - at < s->n_chunk ? n_tok - at : s->n_chunk, n_wanted;
        if (!run_chunk(s, tok + at, n, may_abort, logits, &n_wanted)) {
            s->be->op->fault(s->be); /* of a step that never was */
            return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted after %d of %d tokens; the caches are as before", at, n_tok);
        }
        hone_status st = check_numbers(s, logits, n_wanted, err);
        if (st != HONE_OK) return st;
        if (logits) logits += (size_t)n_wanted * (size_t)s->model->hp.n_vocab;
        at += n;
    }
    memcpy(s->length, s->next, (size_t)s->n_seq * sizeof *s->next); /* only now do the new positions exist */
    return HONE_OK;
}

hone_status hone_decode(hone_session *s, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err)
{
    hone_status st;
    HN_NEED(err, s, "a session");
    if (n_tok < 0) return HN_FAIL(err, HONE_E_ARG, "batch of %d tokens, expected 0 or more", n_tok);
    if (n_tok) HN_NEED(err, tokens, "a pointer to n_tok tokens");
    if (n_tok > (int64_t)s->n_seq * s->n_ctx) /* before a token is read: no array is as long */
        return HN_FAIL(err, HONE_E_CTX, "%d tokens do not fit %d sequences of %d positions", n_tok, s->n_seq, s->n_ctx);
    if ((st = check_batch(s, tokens, n_tok, logits != NULL, err)) != HONE_OK) return st;
    bool may_abort = keep_states(s, tokens, n_tok, n_tok);
    st = run_all(s, tokens, n_tok, may_abort, logits, err);
    if (st != HONE_OK && may_abort) undo_states(s);
    else if (st == HONE_E_NUMERIC) lose_states(s, tokens, n_tok);
    return st;
}

hone_status hone_prefill(hone_session *s, const int32_t *tokens, int32_t n_tok, const float **logits, hone_error *err)
{
    hone_status st = HONE_OK;
    if (logits) *logits = NULL;
    HN_NEED(err, s, "a session");
    HN_NEED(err, tokens, "a pointer to n_tok ids");
    HN_NEED(err, logits, "a place for the logits' address");
    int32_t len = s->length[0];
    if (n_tok < 1) return HN_FAIL(err, HONE_E_ARG, "prompt of %d tokens, expected at least 1", n_tok);
    if ((int64_t)len + n_tok > s->n_ctx)
        return HN_FAIL(err, HONE_E_CTX, "%lld tokens do not fit a context of %d positions", (long long)len + n_tok, s->n_ctx);
    for (int32_t i = 0; i < n_tok; i++)
        if (tokens[i] < 0 || tokens[i] >= s->model->hp.n_vocab)
            return HN_FAIL(err, HONE_E_ARG, "token %d of the prompt has id %d, expected 0 to %d", i, tokens[i], s->model->hp.n_vocab - 1);
    bool may_abort = false;
    for (int32_t at = 0; at < n_tok && st == HONE_OK;) {
        int32_t n = n_tok - at < s->n_chunk ? n_tok - at : s->n_chunk;
        for (int32_t i = 0; i < n; i++)
            s->prompt[i] = (hone_token){ .id = tokens[at + i], .pos = len + at + i, .seq = 0, .want_logits = at + i == n_tok - 1 };
        if (at == 0) may_abort = keep_states(s, s->prompt, n, n_tok);
        if ((st = check_batch(s, s->prompt, n, true, err)) == HONE_OK) st = run_all(s, s->prompt, n, may_abort, s->logits, err);
        at += n;
    }
    if (st != HONE_OK) {
        s->length[0] = len;
        if (may_abort) undo_states(s);
        else if (st == HONE_E_NUMERIC) lose_states(s, s->prompt, 1);
        return st;
    }
    *logits = s->logits;
    return HONE_OK;
}

void hone_session_set_abort(hone_session *s, bool (*fn)(void *), void *arg)
{
    if (!s) return;
    s->abort_fn = fn;
    s->abort_arg = arg;
}

void hone_session_get_memory(const hone_session *s, hone_session_memory *out)
{
    uint64_t owned = 0;
    if (!out) return;
    *out = (hone_session_memory){ 0 };
    if (!s) return;
    for (int i = 0; i < s->n_own; i++) owned += s->own[i].n * sizeof(float);
    for (int i = 0; i < s->n_act; i++)
        owned += (hn_act_row_bytes(HN_ACT_F32, s->act[i].n) + hn_act_row_bytes(HN_ACT_Q256, s->act[i].n + 255) + hn_act_row_bytes(HN_ACT_Q32, s->act[i].n + 31)) * (uint64_t)s->n_chunk;
    *out = (hone_session_memory){ .cache_bytes = (s->cache_floats + s->state_floats * (uint64_t)s->n_seq) * sizeof(float), .scratch_bytes = owned, .logits_bytes = (uint64_t)s->model->hp.n_vocab * sizeof(float) };
}
