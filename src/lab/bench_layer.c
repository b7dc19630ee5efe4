/* layer.*: the parts of a forward pass over 512 tokens of one sequence, with the model's own
 * weights, through the backend, as the engine runs them; layers take turns, so that their
 * weights are as cold as in a pass. Before anything is timed, the parts put together must
 * give the logits of the engine's own pass, bit by bit. Knows the engine's session. */
#include "engine/engine.h"
#include "lab/bench_rooms.h"

#include <stdlib.h>

enum { TOKENS = 512, ROWS_PER_CHUNK = 8 };

typedef enum part { PART_EMBED = 0, PART_TABLE, PART_ROPE, PART_NORM, PART_CORE, PART_ATTN, PART_FFN, PART_TIME_MIX, PART_CHANNEL_MIX, PART_FULL, PART_ALL } part;

typedef struct layer_job {
    hone_session *s;
    const hone_model *m;
    part part;
    int32_t il;
    hn_row *rows;
    hone_token *tokens;
    float *logits, *mine;
    hone_error err;
    bool failed;
} layer_job;

/* ---- the parts ------------------------------------------------------------------------------- */

static void do_heads(layer_job *j, const hn_layer *l, int32_t il)
{
    const hn_hparams *hp = &j->m->hp;
    hn_scratch *s = &j->s->s;
    const hn_heads heads = { .q = s->q, .k = s->k, .v = s->v, .q_norm = l->attn_q_norm, .k_norm = l->attn_k_norm, .cs = s->rope,
                             .n_head = hp->n_head, .n_rot = hp->n_rot, .neox = hp->rope_neox, .eps = hp->rms_eps };
    j->s->be->op->heads(j->s->be, &heads, &j->s->kv[il], j->rows, TOKENS);
}

static void do_core(layer_job *j, int32_t il)
{
    const hn_hparams *hp = &j->m->hp;
    j->s->be->op->attention(j->s->be, &j->s->s.act, j->s->s.q, &j->s->kv[il], j->rows, NULL, TOKENS, hp->n_head, 1.0f / sqrtf((float)hp->head_dim));
}

static void do_attn(layer_job *j, int32_t il)
{
    const hn_hparams *hp = &j->m->hp;
    const hn_layer *l = &j->m->layers[il];
    hn_backend *be = j->s->be;
    hn_scratch *s = &j->s->s;
    const hn_product qkv[] = { { .w = &l->attn_q, .y = s->q }, { .w = &l->attn_k, .y = s->k }, { .w = &l->attn_v, .y = s->v } };
    be->op->rms_norm(be, &s->act, s->x, l->attn_norm, hp->n_embd, TOKENS, hp->rms_eps);
    be->op->matmul(be, &s->act, qkv, 3);
    do_heads(j, l, il);
    do_core(j, il);
    be->op->matmul(be, &s->act, &(hn_product){ .w = &l->attn_output, .y = s->h, .sum = s->x }, 1);
}

static void do_ffn(layer_job *j, int32_t il)
{
    const hn_hparams *hp = &j->m->hp;
    const hn_layer *l = &j->m->layers[il];
    hn_backend *be = j->s->be;
    hn_scratch *s = &j->s->s;
    be->op->rms_norm(be, &s->act, s->x, l->ffn_norm, hp->n_embd, TOKENS, hp->rms_eps);
    be->op->gate_up(be, &s->ff, &s->act, &l->ffn_gate, &l->ffn_up, s->up);
    be->op->matmul(be, &s->ff, &(hn_product){ .w = &l->ffn_down, .y = s->h, .sum = s->x }, 1);
}

/* A recurrent model's halves of a layer are its architecture's own; logits of the last token if wanted. */
static hn_forward batch_of(layer_job *j)
{
    static const int32_t last = TOKENS - 1;
    return (hn_forward){ .be = j->s->be, .s = &j->s->s, .kv = j->s->kv, .state = j->s->state, .rows = j->rows, .n_tok = TOKENS, .want = &last, .n_want = 1, .logits = j->mine };
}
static void do_time_mix(layer_job *j, int32_t il)
{
    const hn_forward f = batch_of(j);
    j->m->arch->time_mix(j->m, &f, il);
}
static void do_channel_mix(layer_job *j, int32_t il)
{
    const hn_forward f = batch_of(j);
    j->m->arch->channel_mix(j->m, &f, il);
}

static void do_layer(layer_job *j, int32_t il)
{
    if (j->m->hp.recurrent) {
        do_time_mix(j, il);
        do_channel_mix(j, il);
    } else {
        do_attn(j, il);
        do_ffn(j, il);
    }
}

static void do_table(layer_job *j)
{
    const hn_hparams *hp = &j->m->hp;
    j->s->be->op->rope_table(j->s->be, j->s->s.rope, hp->rope_freq, hp->n_rot, hp->rope_mscale, j->rows, TOKENS);
}

static void do_embed(layer_job *j) { j->s->be->op->embed(j->s->be, j->s->s.x, &j->m->token_embd, j->rows, TOKENS); }

/* The engine leaves norms to the product that follows; alone, by the same kernel on the same pool. */
static void norm_chunk(void *arg, int64_t chunk, int32_t thread)
{
    layer_job *j = arg;
    int64_t n = j->m->hp.n_embd;
    for (int64_t t = chunk * ROWS_PER_CHUNK; t < (chunk + 1) * ROWS_PER_CHUNK; t++)
        j->s->ctx->kernels->rms_norm(j->s->s.h + t * n, j->s->s.x + t * n, j->m->layers[j->il].attn_norm, n, j->m->hp.rms_eps);
}

static void do_norm(layer_job *j)
{
    const hone_model *m = j->m;
    hn_backend *be = j->s->be;
    if (m->hp.recurrent) be->op->layer_norm_rows(be, j->s->s.h, m->rwkv[j->il].attn_norm, m->rwkv[j->il].attn_norm_b, m->hp.n_embd, TOKENS, m->hp.ln_eps);
    else hn_pool_run(j->s->ctx->pool, norm_chunk, j, TOKENS / ROWS_PER_CHUNK);
}

static void do_all(layer_job *j)
{
    j->failed |= hone_seq_truncate(j->s, 0, 0, &j->err) != HONE_OK || hone_decode(j->s, j->tokens, TOKENS, j->logits, &j->err) != HONE_OK;
}

static void call_part(void *arg, int64_t calls)
{
    layer_job *j = arg;
    hn_pool_limit(j->s->ctx->pool, j->s->ctx->n_threads_batch);
    for (int64_t i = 0; i < calls && !j->failed; i++) {
        switch (j->part) {
        case PART_EMBED: do_embed(j); break;
        case PART_TABLE: do_table(j); break;
        case PART_ROPE: do_heads(j, &j->m->layers[j->il], j->il); break;
        case PART_NORM: do_norm(j); break;
        case PART_CORE: do_core(j, j->il); break;
        case PART_ATTN: do_attn(j, j->il); break;
        case PART_FFN: do_ffn(j, j->il); break;
        case PART_TIME_MIX: do_time_mix(j, j->il); break;
        case PART_CHANNEL_MIX: do_channel_mix(j, j->il); break;
        case PART_FULL: do_layer(j, j->il); break;
        default: do_all(j); break;
        }
        j->il = (j->il + 1) % j->m->hp.n_layer;
        hn_bench_sink(j->s->s.x);
    }
}

/* ---- all parts together are the engine's pass ------------------------------------------------------- */

static void forward_recurrent(layer_job *j)
{
    const hone_model *m = j->m;
    const hn_forward f = batch_of(j);
    hn_pool_limit(j->s->ctx->pool, j->s->ctx->n_threads_batch);
    memset(hn_state_of(j->s, 0), 0, (size_t)j->s->state_floats * sizeof(float));
    hn_rwkv_begin(m, &f);
    for (int32_t il = 0; il < m->hp.n_layer; il++) do_layer(j, il);
    f.be->op->gather(f.be, f.s->x, f.s->x, f.want, m->hp.n_embd, 1);
    hn_rwkv_end(m, &f);
}

static void forward(layer_job *j)
{
    if (j->m->hp.recurrent) {
        forward_recurrent(j);
        return;
    }
    const hn_hparams *hp = &j->m->hp;
    hn_backend *be = j->s->be;
    hn_scratch *s = &j->s->s;
    const int32_t last = TOKENS - 1;
    hn_pool_limit(j->s->ctx->pool, j->s->ctx->n_threads_batch);
    do_embed(j);
    do_table(j);
    for (int32_t il = 0; il < hp->n_layer; il++) do_layer(j, il);
    be->op->gather(be, s->x, s->x, &last, hp->n_embd, 1);
    be->op->rms_norm(be, &s->act, s->x, j->m->output_norm, hp->n_embd, 1, hp->rms_eps);
    be->op->head(be, j->mine, &s->act, &j->m->output);
}

/* Once for a run and its model. */
static hone_status check_forward(layer_job *j, const hn_bench_run *r, hn_verdict *v, hone_error *err)
{
    static uint64_t known;
    static hn_verdict verdict;
    uint64_t key = hn_mix64(r->t0_ns) ^ r->info.fingerprint;
    if (known != key) {
        verdict = (hn_verdict){ 0 };
        do_all(j);
        if (j->failed) {
            *err = j->err;
            return j->err.code;
        }
        forward(j);
        hn_scan scan = hn_scan_logits(j->logits, j->m->hp.n_vocab);
        if (!scan.finite || scan.all_equal) hn_invalid(&verdict, "the logits of the pass are %s", scan.finite ? "all equal" : "not all numbers");
        hn_bench_same(&verdict, j->mine, j->logits, j->m->hp.n_vocab, "logits of the parts together");
        hn_bench_proved(&verdict);
        known = key;
    }
    *v = verdict;
    return HONE_OK;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void close_job(layer_job *j)
{
    hone_session_free(j->s);
    free(j->rows);
    free(j->tokens);
    free(j->logits);
    free(j->mine);
}

static hone_status open_job(layer_job *j, hn_bench_run *r, hone_error *err)
{
    *j = (layer_job){ 0 };
    hone_model *m;
    int32_t chunk = r->set.chunk, ids[TOKENS];
    hone_status st = hn_bench_model(r, &m, err);
    if (st != HONE_OK) return st;
    j->m = m;
    r->set.chunk = TOKENS; /* one pass, whatever the engine is told elsewhere */
    st = hn_bench_session(r, &j->s, TOKENS, 1, err);
    r->set.chunk = chunk;
    if (st != HONE_OK) return st;
    j->rows = calloc(TOKENS, sizeof *j->rows);
    j->tokens = calloc(TOKENS, sizeof *j->tokens);
    j->logits = calloc((size_t)m->hp.n_vocab, sizeof *j->logits);
    j->mine = calloc((size_t)m->hp.n_vocab, sizeof *j->mine);
    if (!j->rows || !j->tokens || !j->logits || !j->mine) return HN_FAIL(err, HONE_E_NOMEM, "pass of %d tokens", (int)TOKENS);
    hn_bench_ids(ids, TOKENS, 0, m);
    for (int32_t t = 0; t < TOKENS; t++) {
        j->rows[t] = (hn_row){ .token = ids[t], .pos = t, .prev = t - 1, .last = t == TOKENS - 1 };
        j->tokens[t] = (hone_token){ .id = ids[t], .pos = t, .want_logits = t == TOKENS - 1 };
    }
    return HONE_OK;
}

/* ---- the work, for the roof ------------------------------------------------------------------------------- */

typedef struct work { double int8, floats; } work; /* weights multiplied for each token */
static void add_work(work *w, const hn_weight *m)
{
    *(hn_act_kind_of(m->type) == HN_ACT_F32 ? &w->floats : &w->int8) += (double)m->n_in * (double)m->n_out;
}

static void add_recurrent_work(work *w, const layer_job *j, int32_t il)
{
    const hn_rwkv_layer *l = &j->m->rwkv[il];
    const hn_weight *time_mix[] = { &l->receptance, &l->key, &l->value, &l->gate, &l->output, &l->w1, &l->w2, &l->a1, &l->a2, &l->v1, &l->v2, &l->g1, &l->g2 };
    const hn_weight *channel_mix[] = { &l->channel_key, &l->channel_value, &l->channel_receptance };
    for (int i = 0; i < 13 && j->part != PART_CHANNEL_MIX; i++)
        if (time_mix[i]->data) add_work(w, time_mix[i]);
    for (int i = 0; i < 5 && j->part != PART_CHANNEL_MIX; i++) {
        if (l->mix1[i].data) add_work(w, &l->mix1[i]);
        if (l->mix2[i].data) add_work(w, &l->mix2[i]);
    }
    for (int i = 0; i < 3 && j->part != PART_TIME_MIX; i++)
        if (channel_mix[i]->data) add_work(w, channel_mix[i]);
}

static void set_ops(hn_bench_result *res, const layer_job *j)
{
    work w = { 0, 0 };
    int32_t n = j->m->hp.n_layer;
    for (int32_t il = 0; il < n; il++) {
        if (j->m->hp.recurrent) {
            if (j->part >= PART_TIME_MIX) add_recurrent_work(&w, j, il);
            continue;
        }
        const hn_layer *l = &j->m->layers[il];
        const hn_weight *attn[] = { &l->attn_q, &l->attn_k, &l->attn_v, &l->attn_output }, *ffn[] = { &l->ffn_gate, &l->ffn_up, &l->ffn_down };
        for (int i = 0; i < 4 && (j->part == PART_ATTN || j->part >= PART_FULL); i++) add_work(&w, attn[i]);
        for (int i = 0; i < 3 && j->part >= PART_FFN; i++) add_work(&w, ffn[i]);
    }
    double passes = j->part == PART_ALL ? 1 : n;
    if (w.int8 > 0 && w.floats > 0) hn_bench_note(res, "weights of both kinds of arithmetic: no one roof");
    else {
        res->int8 = w.int8 > 0;
        res->ops = 2 * TOKENS * (w.int8 + w.floats) / passes;
    }
}

static const char *kind_text(const layer_job *j, char *dst, size_t cap)
{
    const hn_hparams *hp = &j->m->hp;
    snprintf(dst, cap, "width %d, %d layers", hp->n_embd, hp->n_layer);
    return dst;
}

static hone_status one_part(hn_bench_run *r, const hn_bench_entry *e, layer_job *j, part p, const char *variant, hone_error *err)
{
    char shape[64];
    j->part = p;
    j->il = 0;
    hn_bench_result res = { .variant = variant, .config = json_pack("{s:i, s:i, s:s, s:s, s:i}", "n_prompt", (int)TOKENS, "chunk", (int)TOKENS, "kv", r->set.kv, "shape",
                                                                    kind_text(j, shape, sizeof shape), "batch", 1) };
    hone_status st = check_forward(j, r, &res.verdict, err);
    if (st != HONE_OK) {
        hn_bench_result_free(&res);
        return st;
    }
    set_ops(&res, j);
    if (TOKENS > j->m->hp.n_ctx_train) hn_bench_note(&res, "%d positions, but the model was trained for %d", (int)TOKENS, j->m->hp.n_ctx_train);
    if (p != PART_ALL) { /* what a part finds: activations of a pass, and the table */
        forward(j);
        do_embed(j);
    }
    st = hn_bench_loop(r, e, &res, call_part, j, 1e3, false, NULL, err);
    if (j->failed) {
        *err = j->err;
        return j->err.code;
    }
    return st;
}

static hone_status run(hn_bench_run *r, const hn_bench_entry *e, const part *parts, const char *const *variants, int n, hone_error *err)
{
    layer_job j;
    hone_status st = open_job(&j, r, err);
    bool recurrent = st == HONE_OK && j.m->hp.recurrent, mixes = parts[0] == PART_TIME_MIX || parts[0] == PART_CHANNEL_MIX;
    if (recurrent && parts[0] == PART_TABLE) st = hn_bench_not_recurrent(e, "it has no positions to rotate by", err);
    else if (recurrent && parts[0] == PART_CORE) st = hn_bench_not_recurrent(e, "it has no attention (layer.time_mix)", err);
    else if (recurrent && parts[0] == PART_FFN) st = hn_bench_not_recurrent(e, "it has no such block (layer.channel_mix)", err);
    else if (st == HONE_OK && mixes && !recurrent) st = hn_bench_only_recurrent(e, err);
    for (int i = 0; i < n && st == HONE_OK; i++) st = one_part(r, e, &j, parts[i], variants ? variants[i] : NULL, err);
    close_job(&j);
    return st;
}

static hone_status run_one(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const struct { const char *name; part p; } names[] = {
        { "embed", PART_EMBED }, { "norm", PART_NORM }, { "ffn", PART_FFN }, { "time_mix", PART_TIME_MIX }, { "channel_mix", PART_CHANNEL_MIX }, { "full", PART_FULL }, { "all", PART_ALL } };
    const char *name = strchr(e->id, '.') + 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0) return run(r, e, &names[i].p, NULL, 1, err);
    return HN_FAIL(err, HONE_E_ARG, "%s: no such part", e->id);
}

static hone_status run_rope(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const part parts[] = { PART_TABLE, PART_ROPE };
    return run(r, e, parts, (const char *const[]){ "table of angles", "rotate and store" }, 2, err);
}

static hone_status run_attn(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    static const part parts[] = { PART_CORE, PART_ATTN };
    return run(r, e, parts, (const char *const[]){ "core", "with products" }, 2, err);
}

#define LAYER(id_, what_, target_, suites_, cost_, run_) \
    { .id = id_, .what = what_, .unit = "ms", .target = target_, .method = 'O', .model = true, .suites = suites_, .cost = cost_, .run = run_ }
const hn_bench_entry hn_bench_layer[] = {
    LAYER("layer.embed", "rows of the embedding for 512 tokens", NULL, "full", 1, run_one),
    LAYER("layer.rope", "cosines and sines of a pass; queries and keys of a layer rotated, keys and values stored", NULL, "full", 1, run_rope),
    LAYER("layer.norm", "one norm of 512 rows (the engine makes it together with what the product takes)", NULL, "full", 1, run_one),
    LAYER("layer.attn", "attention of a layer, alone, and with norm, rotation and its four products", NULL, "full", 3, run_attn),
    LAYER("layer.ffn", "norm, gate, up, silu, down of a layer", NULL, "full", 3, run_one),
    LAYER("layer.time_mix", "time mix of a layer of a recurrent model: shift, products, recurrence", NULL, "full", 3, run_one),
    LAYER("layer.channel_mix", "channel mix of a layer of a recurrent model: shift and its two or three products", NULL, "full", 3, run_one),
    LAYER("layer.full", "one whole layer", "< 100 ms at width 5120", "quick full ci", 3, run_one),
    LAYER("layer.all", "a whole pass: embedding, all layers, logits of the last token", "< 5 s for 48 layers", "quick full ci", 10, run_one),
    { 0 },
};
