/* Sessions: the caches of several sequences and the batches that extend them. All
 * memory is reserved before the first token; between a call's start and its logits
 * nothing is allocated. */
#include "engine/engine.h"
#include "base/floats.h"

#include <float.h>
#include <stdlib.h>

enum {
    DEFAULT_CTX = 4096,
    DEFAULT_CHUNK = 512,
    DEFAULT_CHECKPOINTS = 8,
    MAX_SEQ = 4096,
    MAX_CHUNK = 65536,
    MAX_CHECKPOINTS = 4096, /* kept states too */
    FEW_TOKENS = 4          /* of a recurrent model are run to their end: a copy of its state would take as long */
};

static int64_t max3(int64_t a, int64_t b, int64_t c) { return a > b ? (a > c ? a : c) : (b > c ? b : c); }

/* The most that any layer with positions asks of attention. */
static void attention_sizes(const hone_model *m, hn_backend_params *p)
{
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        const hn_layer_plan *l = &m->plan[il];
        if (!hn_plan_has_positions(l)) continue;
        p->n_head = max3(p->n_head, l->n_head, 0);
        p->n_head_kv = max3(p->n_head_kv, l->n_head_kv, 0);
        p->n_group = max3(p->n_group, l->n_head / l->n_head_kv, 0);
        p->d = max3(p->d, l->d_k, l->d_v);
    }
}

/* The longest row that any weight has. */
static int64_t longest_row(const hone_model *m)
{
    int64_t most = m->hp.n_embd;
    for (int32_t i = 0; i < m->n_weight; i++) most = m->weight[i]->n_in > most ? m->weight[i]->n_in : most;
    return most;
}

static int64_t widest_ff(const hn_hparams *hp) { return max3(hp->n_ff, hp->moe.n_ff, hp->moe.n_ff_shared); }

/* A backend that knows the model. */
static hone_status open_backend(hone_session *s, hone_error *err)
{
    const hone_context *ctx = s->ctx;
    const hn_hparams *hp = &s->model->hp;
    hn_backend_params p = { .pool = ctx->pool,
                            .threads_few = ctx->n_threads,
                            .threads_many = ctx->n_threads_batch,
                            .level = ctx->level,
                            .n_tok = s->n_chunk,
                            .max_n_in = max3(longest_row(s->model), (int64_t)hp->n_head * hp->head_dim, widest_ff(hp)),
                            .max_n_out = max3(hp->n_embd * max3(hp->n_hyper, 1, 0), widest_ff(hp),
                                              hp->moe.n_used * ((int64_t)hp->moe.n_ff + 32)),
                            .n_ctx = s->n_ctx,
                            .n_expert = hp->moe.n_expert,
                            .n_used = hp->moe.n_used };
    attention_sizes(s->model, &p);
    if (hp->index.block) {
        p.n_block = s->n_ctx / hp->index.block;
        p.n_chosen = (int64_t)hp->index.block * (hp->index.n_best + 1);
        if (p.n_chosen > s->n_ctx) p.n_chosen = s->n_ctx;
        if (p.n_block <= hp->index.n_best) p.n_block = p.n_chosen = 0; /* every query sees everything */
    }
    hone_status st = hn_backend_open(&s->be, ctx->backend, &p, err);
    if (st != HONE_OK) return st;
    const hn_upload u = hn_model_upload(s->model, s->n_ctx);
    return s->be->op->upload(s->be, &u, err);
}

/* What sequences remember, and each layer's view of it. */
static hone_status alloc_memory(hone_session *s, const hn_memory_params *mp, hone_error *err)
{
    const hn_hparams *hp = &s->model->hp;
    hone_status st = hn_memory_new(&s->mem, s->be, mp, err);
    if (st != HONE_OK) return st;
    s->kv = calloc((size_t)hp->n_layer, sizeof *s->kv);
    s->state = calloc((size_t)hp->n_layer, sizeof *s->state);
    s->last_row = calloc((size_t)s->n_seq, sizeof *s->last_row);
    if (!s->kv || !s->state || !s->last_row) return HN_FAIL(err, HONE_E_NOMEM, "session: tables of layers");
    for (int32_t il = 0; il < hp->n_layer; il++) {
        s->kv[il] = hn_memory_kv(s->mem, il);
        s->state[il] = hn_memory_state(s->mem, il, hp->n_embd);
    }
    return HONE_OK;
}

/* The session's limits, defaults filled in. */
static hone_status check_params(const hone_model *m, hone_session_params *p, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    if (p->n_ctx == 0)
        p->n_ctx = !hn_has_positions(m) ? HN_MAX_CTX : hp->n_ctx_train < DEFAULT_CTX ? hp->n_ctx_train : DEFAULT_CTX;
    if (p->n_checkpoints == 0) p->n_checkpoints = DEFAULT_CHECKPOINTS;
    if (p->n_seq == 0) p->n_seq = 1;
    if (p->n_chunk == 0) p->n_chunk = DEFAULT_CHUNK;
    if (p->n_ctx < 1 || p->n_ctx > HN_MAX_CTX)
        return HN_FAIL(err, HONE_E_ARG, "context of %d positions, expected 1 to %d", p->n_ctx, HN_MAX_CTX);
    if (p->n_seq < 1 || p->n_seq > MAX_SEQ)
        return HN_FAIL(err, HONE_E_ARG, "%d sequences, expected 1 to %d", p->n_seq, MAX_SEQ);
    if (p->n_chunk < 1 || p->n_chunk > MAX_CHUNK)
        return HN_FAIL(err, HONE_E_ARG, "chunk of %d tokens, expected 1 to %d", p->n_chunk, MAX_CHUNK);
    if (p->n_checkpoints < 0 || p->n_checkpoints > MAX_CHECKPOINTS)
        return HN_FAIL(err, HONE_E_ARG, "%d checkpoints, expected 0 to %d", p->n_checkpoints, MAX_CHECKPOINTS);
    if (p->n_kept_states < 0 || p->n_kept_states > MAX_CHECKPOINTS)
        return HN_FAIL(err, HONE_E_ARG, "%d kept states, expected 0 to %d", p->n_kept_states, MAX_CHECKPOINTS);
    if (p->cache < HONE_CACHE_F16 || p->cache > HONE_CACHE_Q8_0)
        return HN_FAIL(err, HONE_E_ARG, "cache type %d, expected f16, f32 or q8_0", (int)p->cache);
    if (hn_weight_is_there(&m->pos_embd) && p->n_ctx > m->pos_embd.n_out)
        return HN_FAIL(err, HONE_E_ARG,
                       "context of %d positions, expected at most %lld: %s learnt its positions, and has no more",
                       p->n_ctx, (long long)m->pos_embd.n_out, m->path);
    uint64_t total = hn_memory_total(), weights = m->bytes_per_token - m->again_bytes;
    if (!p->allow_paging && total && weights > total)
        return HN_FAIL(err, HONE_E_NOMEM,
                       "%s: %.1f GiB of weights are read for every token, this machine has %.1f GiB of memory: each "
                       "token would come from disk; use a smaller model or quantization, or let it (--allow-paging)",
                       m->path, (double)weights / 0x1p30, (double)total / 0x1p30);
    return HONE_OK;
}

/* The budget: what the caller says, else all that sequences can ask for and there is. One sequence of the whole
 * context, and all states, must fit then: a session that can never be full is refused at once. What the caller says
 * beyond that is for kept prefixes, as far as it is there. weights: bytes that are to stay in memory beside it. */
static hone_status plan_memory(const hone_session *s, hn_memory_params *mp, uint64_t weights, uint64_t *scratch,
                               hone_error *err)
{
    hn_memory_bytes need;
    uint64_t have = s->be->op->available(s->be), total = hn_memory_total();
    bool sane = hn_memory_size(mp, &need);
    *scratch = hn_scratch_bytes(s->model, s->be, s->n_chunk);
    uint64_t least = need.one + need.states;
    sane = sane && least < (uint64_t)1 << 46;
    const char *paging = "";
    if (have && weights < total && total - weights < have) { /* files count as available */
        bool would_fit = sane && (mp->budget ? 0 : least) + *scratch <= have;
        have = total - weights;
        if (would_fit) paging = ", or let weights come from disk (--allow-paging)";
    }
    if (sane && (mp->budget ? !have || *scratch <= have : !have || least + *scratch <= have)) {
        uint64_t left = have ? have - *scratch : UINT64_MAX;
        if (!mp->budget) mp->budget = need.all < left ? need.all : left;
        else if (mp->budget > need.all && mp->budget > left) mp->budget = need.all > left ? need.all : left;
        return HONE_OK;
    }
    return !hn_has_positions(s->model)
               ? HN_FAIL(err, HONE_E_NOMEM,
                         "the states of %d sequences need %.1f GiB and scratch %.1f GiB, %.1f GiB are available beside "
                         "the weights; use fewer sequences or a smaller chunk%s",
                         s->n_seq, (double)need.states / 0x1p30, (double)*scratch / 0x1p30, (double)have / 0x1p30,
                         paging)
               : HN_FAIL(err, HONE_E_NOMEM,
                         "a context of %d positions × %d sequences%s needs %.1f GiB of cache and %.1f GiB of scratch, "
                         "%.1f GiB are available beside the weights; use a smaller context (-c) or chunk%s",
                         s->n_ctx, 1, s->n_seq > 1 ? ", as long as it may get," : "", (double)least / 0x1p30,
                         (double)*scratch / 0x1p30, (double)have / 0x1p30, paging);
}

hone_status hone_session_new(hone_session **out, hone_context *ctx, const hone_model *m,
                             const hone_session_params *params, hone_error *err)
{
    HN_FLOATS;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the session");
    HN_NEED(err, ctx, "a context");
    HN_NEED(err, m, "an open model");
    const hn_hparams *hp = &m->hp;
    hone_session_params p = params ? *params : (hone_session_params){ 0 };
    if (!m->arch) return HN_FAIL(err, HONE_E_ARG, "%s: opened for its vocabulary only", m->path);
    hone_status st = check_params(m, &p, err);
    if (st != HONE_OK) return st;

    hone_session *s = calloc(1, sizeof *s);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "session handle");
    s->ctx = ctx;
    s->model = m;
    s->n_ctx = p.n_ctx;
    s->n_seq = p.n_seq;
    s->n_chunk = p.n_chunk;
    s->cache = (hn_cache_type)p.cache;
    hn_memory_params mp = { .layer = m->memory,
                            .n_layer = hp->n_layer,
                            .type = s->cache,
                            .n_seq = p.n_seq,
                            .n_ctx = p.n_ctx,
                            .n_checkpoint = p.n_checkpoints,
                            .n_kept = p.n_kept_states,
                            .budget = p.cache_budget };
    uint64_t scratch_bytes = 0;
    size_t t = (size_t)p.n_chunk;
    if ((st = open_backend(s, err)) != HONE_OK) goto fail;
    if ((st = plan_memory(s, &mp, p.allow_paging ? 0 : m->bytes_per_token - m->again_bytes, &scratch_bytes, err)) !=
        HONE_OK)
        goto fail;
    if ((st = alloc_memory(s, &mp, err)) != HONE_OK) goto fail;
    s->next = calloc((size_t)p.n_seq, sizeof *s->next);
    s->set = calloc((size_t)p.n_seq, sizeof *s->set);
    s->in_step = calloc((size_t)p.n_seq, sizeof *s->in_step);
    s->rows = calloc(t, sizeof *s->rows);
    s->want = calloc(t, sizeof *s->want);
    s->prompt = calloc(t, sizeof *s->prompt);
    if (!s->next || !s->set || !s->in_step || !s->rows || !s->want || !s->prompt ||
        !hn_scratch_alloc(&s->s, m, s->be, p.n_chunk) ||
        !(s->logits = hn_pages_alloc((size_t)hp->n_vocab * sizeof(float)))) {
        st = HN_FAIL(err, HONE_E_NOMEM, "session: %.1f GiB of cache and %.1f GiB of scratch were refused",
                     (double)mp.budget / 0x1p30, (double)scratch_bytes / 0x1p30);
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
    for (int32_t i = 0; s->set && i < s->n_seq; i++) hn_seq_use_set(s, i, NULL);
    hn_adapters_forget(s);
    if (s->be) {
        hn_scratch_free(&s->s, s->be);
        hn_memory_free(s->mem);
        s->be->op->free(s->be);
    }
    hn_pages_free(s->logits, (size_t)s->model->hp.n_vocab * sizeof(float));
    free(s->set);
    free(s->in_step);
    free(s->kv);
    free(s->state);
    free(s->last_row);
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

/* Rows name their sequences' sets of adapters. Returns how many sets there are. */
static int32_t name_sets(hone_session *s, int32_t n)
{
    int32_t n_set = 0;
    for (int32_t i = 0; i < n; i++) {
        hn_adapter_set *set = s->set[s->rows[i].seq];
        if (!set) continue;
        if (!set->at) {
            s->in_step[n_set] = &set->of;
            set->at = ++n_set;
        }
        s->rows[i].set = set->at;
    }
    for (int32_t i = 0; n_set && i < n; i++)
        if (s->rows[i].set) s->set[s->rows[i].seq]->at = 0;
    return n_set;
}

/* One forward pass over n ≤ n_chunk tokens; lengths are the caller's business. As hn_forward_run. */
static hone_status run_chunk(hone_session *s, const hone_token *tok, int32_t n, bool may_abort, float *logits,
                             int32_t *n_wanted, hn_fault *fault, hone_error *err)
{
    int32_t n_want = 0;
    for (int32_t i = 0; i < n; i++) {
        s->rows[i] = (hn_row){ .token = tok[i].id, .seq = tok[i].seq, .pos = tok[i].pos, .end = s->next[tok[i].seq] };
        if (tok[i].want_logits) s->want[n_want++] = i;
    }
    if (s->mem->state_floats) link_rows(s, n);
    int32_t n_set = name_sets(s, n);
    hn_step_block step = { .rows = s->rows,
                           .n_tok = n,
                           .want = s->want,
                           .n_want = n_want,
                           .adapters = n_set ? s->in_step : NULL,
                           .n_adapters = n_set,
                           .stop = may_abort ? s->abort_fn : NULL,
                           .stop_arg = s->abort_arg };
    hn_memory_step(s->mem, &step);
    hn_forward f = { .be = s->profile_fn ? &s->profiled.base : s->be,
                     .s = &s->s,
                     .kv = s->kv,
                     .state = s->state,
                     .step = &step,
                     .logits = logits,
                     .hidden = s->hidden };
    *n_wanted = n_want;
    return hn_forward_run(s->model, &f, fault, err);
}

/* Ids, sequences and positions of the whole batch, before anything is touched. */
static hone_status check_batch(hone_session *s, const char *who, const hone_token *tok, int32_t n, bool have_logits,
                               hone_error *err)
{
    if (s->model->hp.both && !s->hidden)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: architecture %s reads whole texts and has no next token, expected hone_embed (hone embed)",
                       HN_ESC(s->model->path, strlen(s->model->path)), s->model->arch->name);
    memcpy(s->next, s->mem->length, (size_t)s->n_seq * sizeof *s->next);
    for (int32_t i = 0; i < n; i++) {
        if (tok[i].id < 0 || tok[i].id >= s->model->hp.n_vocab)
            return HN_FAIL(err, HONE_E_ARG, "token %d of the batch has id %d, expected 0 to %d", i, tok[i].id,
                           s->model->hp.n_vocab - 1);
        if (tok[i].seq < 0 || tok[i].seq >= s->n_seq)
            return HN_FAIL(err, HONE_E_ARG, "token %d of the batch has sequence %d, expected 0 to %d", i, tok[i].seq,
                           s->n_seq - 1);
        if (tok[i].pos != s->next[tok[i].seq])
            return HN_FAIL(err, HONE_E_ARG, "token %d of the batch has position %d in sequence %d, expected %d", i,
                           tok[i].pos, tok[i].seq, s->next[tok[i].seq]);
        if (tok[i].pos >= s->n_ctx) {
            int32_t total = s->mem->length[tok[i].seq];
            for (int32_t k = 0; k < n; k++) total += tok[k].seq == tok[i].seq;
            return HN_FAIL(err, HONE_E_CTX, "%d tokens do not fit a context of %d positions", total, s->n_ctx);
        }
        if (tok[i].want_logits && !have_logits)
            return HN_FAIL(err, HONE_E_ARG, "%s: logits is NULL; expected room for them, which token %d wants", who, i);
        s->next[tok[i].seq]++;
    }
    return HONE_OK;
}

/* May a call of so many tokens be stopped halfway? A recurrent state forgets what it was, unless it is copied before:
 * few tokens are run to their end instead. */
static bool may_stop(const hone_session *s, int32_t n_call)
{
    return !s->mem->state_floats || (s->abort_fn && n_call > FEW_TOKENS);
}

/* hn_memory_extend, of which a profile hears as of an operation: it may copy what others hold too. */
static hone_status extend_one(hone_session *s, int32_t seq, int32_t n_pos, bool slides, bool may_abort, hone_error *err)
{
    if (!s->profile_fn) return hn_memory_extend(s->mem, seq, n_pos, slides, may_abort, err);
    uint64_t bytes = s->mem->copied_bytes, start = hn_profile_now();
    hone_status st = hn_memory_extend(s->mem, seq, n_pos, slides, may_abort, err);
    bytes = s->mem->copied_bytes - bytes;
    if (bytes) hn_session_tell_copy(s, n_pos - s->mem->length[seq], bytes, start);
    return st;
}

/* Room for a checked batch, whose lengths will be s->next. */
static hone_status extend(hone_session *s, bool may_abort, hone_error *err)
{
    hone_status st = HONE_OK;
    for (int32_t i = 0; st == HONE_OK && i < s->n_seq; i++)
        if (s->next[i] > s->mem->length[i]) st = extend_one(s, i, s->next[i], false, may_abort, err);
    if (st != HONE_OK) hn_memory_undo(s->mem, false);
    return st;
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

/* A key or value that its cache cannot hold; the file is to blame where it was no number before. */
static hone_status fail_stored(const hone_session *s, const hn_fault *f, hone_error *err)
{
    char number[32], where[160], why[HN_BLAME];
    const char *path = HN_ESC(s->model->path, strlen(s->model->path));
    snprintf(where, sizeof where, "layer %d: %c of position %lld (sequence %d, head %lld) is %s", (int)f->layer,
             f->what, (long long)f->pos, (int)f->seq, (long long)f->head, number_words(number, f->value));
    if (!isfinite(f->value))
        return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s before it is stored, expected a finite number: %s", path, where,
                       hn_blame(why, s->model, s->set[f->seq], ""));
    hn_scale_words(why, s->set[f->seq]);
    return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s, expected at most %s; use an f32 cache: --kv f32%s%s", path, where,
                   s->cache == HN_CACHE_F16 ? "65504, the largest number that an f16 cache holds"
                                            : "8319008, 127 times the largest f16 scale of a q8_0 cache",
                   *why ? ", or a smaller scale of " : "", why);
}

/* Of logits [n_want, n_vocab] of rows want[] one is not finite: the first that is not is named. */
static hone_status fail_logits(const hone_session *s, const float *logits, int32_t n_want, hone_error *err)
{
    int64_t n = s->model->hp.n_vocab, i = 0;
    char number[32], where[160], cache[64] = "", why[HN_BLAME];
    for (int32_t r = 0; r < n_want; r++, logits += n) {
        if (hn_all_within(logits, n, FLT_MAX)) continue;
        while (isfinite(logits[i])) i++;
        const hn_row *row = &s->rows[s->want[r]];
        const char *path = HN_ESC(s->model->path, strlen(s->model->path));
        snprintf(where, sizeof where, "the logit of token %lld after position %lld (token %d, sequence %d) is %s",
                 (long long)i, (long long)row->pos, (int)row->token, (int)row->seq, number_words(number, logits[i]));
        if (s->mem->n_group && s->cache != HN_CACHE_F32)
            snprintf(cache, sizeof cache, "rule out the %s cache with --kv f32, and ", cache_names[s->cache]);
        return HN_FAIL(err, HONE_E_NUMERIC, "%s: %s, expected a finite number: %s", path, where,
                       hn_blame(why, s->model, s->set[row->seq], cache));
    }
    return HONE_OK;
}

/* All chunks of a checked batch. */
static hone_status run_all(hone_session *s, const hone_token *tok, int32_t n_tok, bool may_abort, float *logits,
                           hone_error *err)
{
    HN_FLOATS;
    for (int32_t at = 0; at < n_tok;) {
        int32_t n = n_tok - at < s->n_chunk ? n_tok - at : s->n_chunk, n_wanted;
        hn_fault fault = { 0 };
        hone_status st = run_chunk(s, tok + at, n, may_abort, logits, &n_wanted, &fault, err);
        if (st == HONE_E_INTERRUPTED)
            return HN_FAIL(err, st, "interrupted after %d of %d tokens; the caches are as before", at, n_tok);
        if (st == HONE_E_NUMERIC) return fail_stored(s, &fault, err);
        if (st != HONE_OK) return st;
        if (fault.logits && !s->hidden && (st = fail_logits(s, logits, n_wanted, err)) != HONE_OK) return st;
        if (logits && !s->hidden) logits += (size_t)n_wanted * (size_t)s->model->hp.n_vocab;
        at += n;
    }
    memcpy(s->mem->length, s->next, (size_t)s->n_seq * sizeof *s->next); /* only now do the new positions exist */
    return HONE_OK;
}

/* who: the function that was called. lets_go: where memory is short checkpoints go, those least used first. */
static hone_status run_batch(hone_session *s, const char *who, const hone_token *tokens, int32_t n_tok, bool lets_go,
                             float *logits, hone_error *err)
{
    hone_status st;
    if (n_tok < 0) return HN_FAIL(err, HONE_E_ARG, "batch of %d tokens, expected 0 or more", n_tok);
    if (n_tok > (int64_t)s->n_seq * s->n_ctx) /* before a token is read: no array is as long */
        return HN_FAIL(err, HONE_E_CTX, "%d tokens do not fit %d sequences of %d positions", n_tok, s->n_seq, s->n_ctx);
    if ((st = check_batch(s, who, tokens, n_tok, logits != NULL, err)) != HONE_OK) return st;
    bool may_abort = may_stop(s, n_tok);
    while ((st = extend(s, may_abort, err)) != HONE_OK)
        if (st != HONE_E_NOMEM || !lets_go || !hn_memory_drop_oldest(s->mem)) return st;
    st = run_all(s, tokens, n_tok, may_abort, logits, err);
    if (st != HONE_OK) {
        hn_memory_undo(s->mem, true);
        return st;
    }
    for (int32_t i = 0; i < n_tok; i++) hn_memory_note(s->mem, tokens[i].seq, tokens[i].pos, tokens[i].id);
    hn_memory_commit(s->mem);
    return HONE_OK;
}

hone_status hone_run_batch(hone_session *s, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err)
{
    HN_NEED(err, s, "a session");
    if (n_tok > 0) HN_NEED(err, tokens, "a pointer to n_tok tokens");
    return run_batch(s, __func__, tokens, n_tok, true, logits, err);
}

hone_status hn_session_run(hone_session *s, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err)
{
    return run_batch(s, "hone_scheduler_step", tokens, n_tok, false, logits, err);
}

hone_status hn_session_hidden(hone_session *s, int32_t n_tok, float *hidden, hone_error *err)
{
    s->hidden = hidden;
    hone_status st = run_batch(s, "hone_embed", s->prompt, n_tok, true, hidden, err);
    s->hidden = NULL;
    return st;
}

/* Pages of windows for the next *n of a call's tokens, whose first position is `from`; fewer where memory is short: a
 * page's worth needs what a session of that length is counted with, beside checkpoints, which go then. */
static hone_status slide(hone_session *s, int32_t seq, int32_t before, int32_t from, int32_t *n, hone_error *err)
{
    hone_status st;
    while ((st = hn_memory_slide(s->mem, seq, before, from, from + *n, err)) == HONE_E_NOMEM)
        if (*n > HN_PAGE) *n = *n / 2 > HN_PAGE ? *n / 2 : HN_PAGE;
        else if (!hn_memory_drop_oldest(s->mem)) break;
    return st;
}

/* Appends checked ids to a sequence in chunks; logits of the last to s->logits. */
static hone_status append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n_tok, hone_error *err)
{
    int32_t len = s->mem->length[seq];
    bool may_abort = may_stop(s, n_tok);
    hone_status st;
    while ((st = extend_one(s, seq, len + n_tok, true, may_abort, err)) != HONE_OK) {
        hn_memory_undo(s->mem, false);
        if (st != HONE_E_NOMEM || !hn_memory_drop_oldest(s->mem)) return st;
    }
    for (int32_t at = 0; at < n_tok && st == HONE_OK;) {
        int32_t n = n_tok - at < s->n_chunk ? n_tok - at : s->n_chunk;
        if ((st = slide(s, seq, len, len + at, &n, err)) != HONE_OK) break;
        for (int32_t i = 0; i < n; i++)
            s->prompt[i] =
                (hone_token){ .id = ids[at + i], .pos = len + at + i, .seq = seq, .want_logits = at + i == n_tok - 1 };
        if ((st = check_batch(s, __func__, s->prompt, n, true, err)) == HONE_OK)
            st = run_all(s, s->prompt, n, may_abort, s->logits, err);
        at += n;
    }
    if (st != HONE_OK) {
        s->mem->length[seq] = len;
        hn_memory_undo(s->mem, true);
        return st;
    }
    for (int32_t i = 0; i < n_tok; i++) hn_memory_note(s->mem, seq, len + i, ids[i]);
    hn_memory_commit(s->mem);
    return HONE_OK;
}

static hone_status check_ids(const hone_session *s, const int32_t *ids, int32_t n, hone_error *err)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= s->model->hp.n_vocab)
            return HN_FAIL(err, HONE_E_ARG, "token %d of the prompt has id %d, expected 0 to %d", i, ids[i],
                           s->model->hp.n_vocab - 1);
    return HONE_OK;
}

hone_status hone_append(hone_session *s, int32_t seq, const int32_t *ids, int32_t n_tok, const float **logits,
                        hone_error *err)
{
    hone_status st;
    if (logits) *logits = NULL;
    HN_NEED(err, s, "a session");
    HN_NEED(err, ids, "a pointer to n_tok ids");
    HN_NEED(err, logits, "a place for the logits' address");
    if ((st = hn_check_seq(s, seq, err)) != HONE_OK) return st;
    if (n_tok < 1) return HN_FAIL(err, HONE_E_ARG, "prompt of %d tokens, expected at least 1", n_tok);
    if ((int64_t)s->mem->length[seq] + n_tok > s->n_ctx)
        return HN_FAIL(err, HONE_E_CTX, "%lld tokens do not fit a context of %d positions",
                       (long long)s->mem->length[seq] + n_tok, s->n_ctx);
    if ((st = check_ids(s, ids, n_tok, err)) != HONE_OK || (st = append(s, seq, ids, n_tok, err)) != HONE_OK) return st;
    *logits = s->logits;
    return HONE_OK;
}

hone_status hone_seq_sync(hone_session *s, int32_t seq, const int32_t *ids, int32_t n, int32_t *kept,
                          const float **logits, hone_error *err)
{
    hone_status st;
    if (kept) *kept = 0;
    if (logits) *logits = NULL;
    HN_NEED(err, s, "a session");
    HN_NEED(err, ids, "a pointer to n ids");
    HN_NEED(err, kept, "a place for the number of positions that were there");
    HN_NEED(err, logits, "a place for the logits' address");
    if ((st = hn_check_seq(s, seq, err)) != HONE_OK) return st;
    if (n < 1) return HN_FAIL(err, HONE_E_ARG, "prompt of %d tokens, expected at least 1", n);
    if (n > s->n_ctx) return HN_FAIL(err, HONE_E_CTX, "%d tokens do not fit a context of %d positions", n, s->n_ctx);
    if ((st = check_ids(s, ids, n, err)) != HONE_OK) return st;
    *kept = hn_memory_match(s->mem, seq, ids, n);
    if ((st = append(s, seq, ids + *kept, n - *kept, err)) != HONE_OK) {
        *kept = s->mem->length[seq]; /* a state that was lost is there up to its last checkpoint */
        return st;
    }
    *logits = s->logits;
    return HONE_OK;
}

/* ---- names of an older version ---- */

hone_status hone_decode(hone_session *s, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err)
{
    HN_NEED(err, s, "a session");
    if (n_tok > 0) HN_NEED(err, tokens, "a pointer to n_tok tokens");
    return run_batch(s, __func__, tokens, n_tok, true, logits, err);
}

hone_status hone_prefill(hone_session *s, const int32_t *tokens, int32_t n_tok, const float **logits, hone_error *err)
{
    if (logits) *logits = NULL;
    HN_NEED(err, s, "a session");
    HN_NEED(err, tokens, "a pointer to n_tok ids");
    HN_NEED(err, logits, "a place for the logits' address");
    return hone_append(s, 0, tokens, n_tok, logits, err);
}

/* ---- parts of a pass, for who measures them ---- */

hone_status hn_session_hold(hone_session *s, int32_t seq, int32_t n_pos, hone_error *err)
{
    hone_status st = hn_memory_renew(s->mem, seq, n_pos, NULL, err);
    if (st == HONE_OK) hn_session_zero_state(s, seq);
    return st;
}

void hn_session_zero_state(hone_session *s, int32_t seq)
{
    size_t at;
    if (hn_memory_state_at(s->mem, seq, &at)) s->be->op->fill0(s->be, s->mem->states.mem, at, hn_state_bytes(s));
}

void hone_session_set_abort(hone_session *s, bool (*fn)(void *), void *arg)
{
    if (!s) return;
    s->abort_fn = fn;
    s->abort_arg = arg;
}

static void add_scratch(void *arg, const hn_mem_block *b)
{
    if (b->kind != HN_MEM_CACHE) *(uint64_t *)arg += b->bytes;
}

void hone_session_get_memory(const hone_session *s, hone_session_memory *out)
{
    uint64_t owned = 0;
    if (!out) return;
    *out = (hone_session_memory){ 0 };
    if (!s) return;
    s->be->op->blocks(s->be, add_scratch, &owned);
    *out = (hone_session_memory){ .cache_bytes = hn_memory_reserved(s->mem),
                                  .cache_budget_bytes = s->mem->p.budget,
                                  .cache_used_bytes = s->mem->used,
                                  .scratch_bytes = owned,
                                  .logits_bytes = (uint64_t)s->model->hp.n_vocab * sizeof(float) };
}
